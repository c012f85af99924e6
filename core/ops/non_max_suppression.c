// SPDX-License-Identifier: MIT
//
// NonMaxSuppression: of the boxes of each batch and class those of the highest scores that overlap none that was taken
// before by more than a threshold. How many there are hangs on the content: inference counts them.
#include <string.h>

#include "core/base/checked.h"
#include "core/ops/data_util.h"
#include "core/ops/op_util.h"

typedef struct boxes {
    const float *corners; ///< [n_batches, n, 4]
    const float *scores;  ///< [n_batches, n_classes, n]
    int64_t n_batches, n_classes, n;
    int64_t most; ///< of each class
    float overlap, least_score;
    bool has_least_score;
    bool is_centred;    ///< a box is its centre and its extents, not two corners
    int64_t most_pairs; ///< that may be held against each other
} boxes;

typedef struct box {
    float x0, y0, x1, y1;
} box;

/// A box with the score that it has in a class.
typedef struct candidate {
    float score;
    int64_t i;
} candidate;

enum { ROOM_PER_BOX = sizeof(candidate) + sizeof(int64_t) }; ///< bytes: a candidate, and its number once it is taken
/// Well below a second. A file of a few bytes can have millions of constant boxes: that may cost a run, but not a plan,
/// hours.
enum { MOST_PAIRS_OF_A_PLAN = 1 << 24 };

static box box_at(const boxes *b, int64_t batch, int64_t i) {
    const float *c = &b->corners[(batch * b->n + i) * 4];
    if (b->is_centred) return (box){c[0] - c[2] / 2, c[1] - c[3] / 2, c[0] + c[2] / 2, c[1] + c[3] / 2};
    // [y1, x1, y2, x2], any two corners that lie across
    return (box){fminf(c[1], c[3]), fminf(c[0], c[2]), fmaxf(c[1], c[3]), fmaxf(c[0], c[2])};
}

static bool overlaps(const boxes *b, box p, box q) {
    const float w = fminf(p.x1, q.x1) - fmaxf(p.x0, q.x0), h = fminf(p.y1, q.y1) - fmaxf(p.y0, q.y0);
    if (!(w > 0) || !(h > 0)) return false;
    const float p_area = (p.x1 - p.x0) * (p.y1 - p.y0), q_area = (q.x1 - q.x0) * (q.y1 - q.y0);
    return w * h / (p_area + q_area - w * h) > b->overlap;
}

/// The highest first, of equal ones the one that comes first; what is no number last.
static bool goes_before(const candidate *a, const candidate *b) {
    if (isnan(a->score) || isnan(b->score)) {
        if (isnan(a->score) != isnan(b->score)) return isnan(b->score);
    } else if (a->score != b->score) {
        return a->score > b->score;
    }
    return a->i < b->i;
}

/// heap[n] is one but for heap[top], which sinks: none goes before the one above it.
static void sink(candidate *heap, int64_t n, int64_t top) {
    const candidate moving = heap[top];
    for (int64_t child; (child = 2 * top + 1) < n; top = child) {
        if (child + 1 < n && goes_before(&heap[child + 1], &heap[child])) child++;
        if (goes_before(&moving, &heap[child])) break;
        heap[top] = heap[child];
    }
    heap[top] = moving;
}

/// Into taken[], the best first; few are taken of many, so the others stay a heap. `memory`: ROOM_PER_BOX for each box.
/// @return how many; -1 when that takes more pairs than are left
static int64_t take(const boxes *b, int64_t batch, int64_t class_i, void *memory, int64_t **taken, int64_t *n_pairs) {
    candidate *heap = memory;
    int64_t n = 0, n_taken = 0;
    const float *scores = &b->scores[(batch * b->n_classes + class_i) * b->n];
    *taken = (int64_t *)(heap + b->n);
    for (int64_t i = 0; i < b->n; i++) {
        if (!b->has_least_score || scores[i] > b->least_score) heap[n++] = (candidate){scores[i], i};
    }
    for (int64_t top = n / 2; top-- > 0;) sink(heap, n, top);
    while (n > 0 && n_taken < b->most) {
        const int64_t best = heap[0].i;
        heap[0] = heap[--n];
        sink(heap, n, 0);
        const box next = box_at(b, batch, best);
        bool is_free = true;
        for (int64_t k = 0; is_free && k < n_taken; k++) is_free = !overlaps(b, next, box_at(b, batch, (*taken)[k]));
        if ((*n_pairs += n_taken) > b->most_pairs) return -1;
        if (is_free) (*taken)[n_taken++] = best;
    }
    return n_taken;
}

/// Rows of batch, class and box. @return how many; `out` NULL: only that; -1 as of take()
static int64_t take_all(const boxes *b, void *memory, int64_t *out) {
    int64_t n = 0, n_pairs = 0, *taken;
    for (int64_t batch = 0; b->n > 0 && b->most > 0 && batch < b->n_batches; batch++) {
        for (int64_t c = 0; c < b->n_classes; c++) {
            const int64_t n_taken = take(b, batch, c, memory, &taken, &n_pairs);
            if (n_taken < 0) return -1;
            for (int64_t k = 0; out != NULL && k < n_taken; k++) {
                const int64_t row[] = {batch, c, taken[k]};
                memcpy(&out[(n + k) * 3], row, sizeof row);
            }
            n += n_taken;
        }
    }
    return n;
}

// ---- operands ----

static bool has(const tide_operand *in, size_t n_in, size_t i) { return i < n_in && tide_operand_present(&in[i]); }

/// Of operands whose content is known and that were checked.
static boxes read_boxes(const tide_node *node, const tide_operand *in, size_t n_in) {
    boxes b = {.corners = in[0].data,
               .scores = in[1].data,
               .n_batches = in[0].shape.dims[0],
               .n = in[0].shape.dims[1],
               .n_classes = in[1].shape.dims[1],
               .most_pairs = INT64_MAX / 2,
               .is_centred = tide_node_attr_int(node, "center_point_box", 0) != 0};
    if (has(in, n_in, 2)) b.most = tide_data_load_i64(TIDE_I64, in[2].data, 0);
    if (has(in, n_in, 3)) b.overlap = (float)tide_data_load_f64(TIDE_F32, in[3].data, 0);
    b.has_least_score = has(in, n_in, 4);
    if (b.has_least_score) b.least_score = (float)tide_data_load_f64(TIDE_F32, in[4].data, 0);
    return b;
}

static tide_status check_scalars(const tide_infer *x, tide_error *err) {
    static const char *const names[] = {"boxes", "scores", "max_output_boxes_per_class", "iou_threshold",
                                        "score_threshold"};
    for (size_t i = 0; i < x->n_in; i++) {
        if (!tide_op_has_in(x, i)) continue;
        TIDE_TRY(tide_op_require_dtype(x->node, &x->in[i], names[i], i == 2 ? TIDE_I64 : TIDE_F32, err));
        if (i >= 2 && tide_op_numel(&x->in[i].shape) != 1)
            return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "'%s' must be one number", names[i]);
    }
    for (size_t i = 0; i < x->n_in; i++) {
        if (tide_op_has_in(x, i)) TIDE_TRY(tide_op_require_const(x->node, &x->in[i], names[i], err));
    }
    return TIDE_OK;
}

static tide_status scratch_bytes(const tide_node *node, int64_t n, size_t *out, tide_error *err) {
    if (tide_mul_size((size_t)n, ROOM_PER_BOX, out)) return TIDE_OK;
    return TIDE_OP_FAIL(err, node, TIDE_ERR_OVERFLOW, "too many boxes");
}

static tide_status infer(const tide_infer *x, tide_error *err) {
    const tide_operand *in = x->in;
    TIDE_TRY(tide_op_require_rank(x->node, &in[0], "boxes", 3, 3, err));
    TIDE_TRY(tide_op_require_rank(x->node, &in[1], "scores", 3, 3, err));
    const int64_t *b = in[0].shape.dims, *s = in[1].shape.dims;
    if (b[2] != 4 || s[0] != b[0] || s[2] != b[1])
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT,
                            "boxes of [batches, n, 4] want scores of [batches, classes, n]");
    TIDE_TRY(check_scalars(x, err));
    boxes all = read_boxes(x->node, in, x->n_in);
    if (!x->is_running) all.most_pairs = MOST_PAIRS_OF_A_PLAN;
    const int64_t centred = tide_node_attr_int(x->node, "center_point_box", 0);
    if (centred != 0 && centred != 1)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "center_point_box is %lld, must be 0 or 1",
                            (long long)centred);
    if (!(all.overlap >= 0 && all.overlap <= 1))
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "iou_threshold is %g, must be 0 to 1",
                            (double)all.overlap);
    size_t bytes;
    TIDE_TRY(scratch_bytes(x->node, b[1], &bytes, err));
    void *own = bytes > x->scratch_bytes ? tide_host_alloc(bytes + 1) : NULL;
    if (own == NULL && bytes > x->scratch_bytes)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_NOMEM, "no memory to sort boxes");
    const int64_t n = take_all(&all, own != NULL ? own : x->scratch, NULL);
    tide_host_free(own);
    if (n < 0)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_UNKNOWN_SIZE, "%lld boxes are too many to be counted for a plan",
                            (long long)b[1]);
    return tide_op_set_out(x, 0, TIDE_I64, 2, (int64_t[]){n, 3}, err);
}

static tide_status prepare(const tide_prepare *x, tide_kernel *k, tide_error *err) {
    return scratch_bytes(x->node, x->in[0].shape.dims[1], &k->workspace_bytes, err);
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    const boxes all = read_boxes(k->node, a->in, a->n_in);
    (void)err;
    if (a->out[0].size_bytes > 0) take_all(&all, a->workspace, a->out[0].data);
    return TIDE_OK;
}

const tide_op_def tide_op_non_max_suppression = {.name = "NonMaxSuppression",
                                                 .domain = "",
                                                 .since = 10,
                                                 .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "center_point_box")),
                                                 .min_inputs = 2,
                                                 .max_inputs = 5,
                                                 .min_outputs = 1,
                                                 .max_outputs = 1,
                                                 .infer = infer,
                                                 .prepare = prepare,
                                                 .run = run};
