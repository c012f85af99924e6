// SPDX-License-Identifier: MIT
//
// TfIdfVectorizer of int32 and int64 sequences: how often each n-gram of a pool occurs in a row, once with its elements
// side by side, then with 1 to max_skip_count elements between them. Strings are refused.
//
//     pool_int64s      all n-grams one after the other, first those of one element, then those of two …
//     ngram_counts     where in the pool those of one, of two … begin
//     ngram_indexes    for each n-gram the place of its count in the output
//     mode             TF: the count; IDF: its weight where it occurs; TFIDF: the count times its weight
#include <inttypes.h>
#include <string.h>

#include "core/ops/data_util.h"
#include "core/ops/op_list.h"
#include "core/ops/op_util.h"

typedef enum tfidf_mode { TF, IDF, TFIDF } tfidf_mode;

typedef struct tfidf {
    const int64_t *pool, *counts, *indexes;
    const float *weights; ///< NULL: 1
    size_t n_pool, n_counts, n_indexes;
    int64_t shortest, longest, most_skipped, width;
    tfidf_mode mode;
} tfidf;

/// The n-grams of each length fill their stretch of the pool, and there is an index for each.
static tide_status check_pool(const tide_node *node, const tfidf *t, tide_error *err) {
    size_t n_grams = 0;
    for (size_t i = 0; i < t->n_counts; i++) {
        const int64_t begin = t->counts[i], end = i + 1 < t->n_counts ? t->counts[i + 1] : (int64_t)t->n_pool;
        const int64_t length = (int64_t)i + 1;
        if (begin < 0 || end < begin || end > (int64_t)t->n_pool || (end - begin) % length != 0 ||
            (i == 0 && begin != 0))
            return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT,
                                "ngram_counts says that n-grams of %" PRId64 " are elements %" PRId64 " to %" PRId64
                                " of a pool of %zu",
                                length, begin, end, t->n_pool);
        n_grams += (size_t)((end - begin) / length);
    }
    if (n_grams != t->n_indexes)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "ngram_indexes has %zu numbers for %zu n-grams",
                            t->n_indexes, n_grams);
    return TIDE_OK;
}

static tide_status read_mode(const tide_node *node, tfidf *t, tide_error *err) {
    static const char *const names[] = {"TF", "IDF", "TFIDF"};
    const char *mode = tide_node_attr_string(node, "mode", "");
    for (int i = TF; i <= TFIDF; i++)
        if (strcmp(mode, names[i]) == 0) {
            t->mode = (tfidf_mode)i;
            return TIDE_OK;
        }
    return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "mode is '%s', must be TF, IDF or TFIDF", mode);
}

static tide_status read_node(const tide_node *node, tfidf *t, tide_error *err) {
    size_t n_weights;
    *t = (tfidf){.shortest = tide_node_attr_int(node, "min_gram_length", 0),
                 .longest = tide_node_attr_int(node, "max_gram_length", 0),
                 .most_skipped = tide_node_attr_int(node, "max_skip_count", 0)};
    t->pool = tide_node_attr_ints(node, "pool_int64s", &t->n_pool);
    t->counts = tide_node_attr_ints(node, "ngram_counts", &t->n_counts);
    t->indexes = tide_node_attr_ints(node, "ngram_indexes", &t->n_indexes);
    t->weights = tide_node_attr_floats(node, "weights", &n_weights);
    if (tide_node_attr(node, "pool_strings") != NULL)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_NOT_IMPLEMENTED, "a pool of strings is not served");
    if (t->shortest < 1 || t->longest < t->shortest || t->most_skipped < 0 || (size_t)t->longest > t->n_counts)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT,
                            "n-grams of %" PRId64 " to %" PRId64 " elements with up to %" PRId64
                            " skipped, from a pool of "
                            "n-grams of up to %zu",
                            t->shortest, t->longest, t->most_skipped, t->n_counts);
    if (t->weights != NULL && n_weights != t->n_indexes)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "there are %zu weights for %zu n-grams", n_weights,
                            t->n_indexes);
    TIDE_TRY(check_pool(node, t, err));
    for (size_t i = 0; i < t->n_indexes; i++) {
        if (t->indexes[i] < 0 || t->indexes[i] == INT64_MAX)
            return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "ngram_indexes[%zu] is %" PRId64, i, t->indexes[i]);
        if (t->indexes[i] >= t->width) t->width = t->indexes[i] + 1;
    }
    return read_mode(node, t, err);
}

static tide_status infer(const tide_infer *x, tide_error *err) {
    const tide_operand *in = &x->in[0];
    tfidf t;
    if (in->dtype != TIDE_I32 && in->dtype != TIDE_I64) return tide_data_no_dtype(x->node, in->dtype, err);
    TIDE_TRY(tide_op_require_rank(x->node, in, "X", 0, 2, err));
    TIDE_TRY(read_node(x->node, &t, err));
    const int64_t dims[] = {in->shape.dims[0], t.width};
    const bool has_rows = in->shape.rank == 2;
    return tide_op_set_out(x, 0, TIDE_F32, has_rows ? 2 : 1, has_rows ? dims : dims + 1, err);
}

/// Count, in y, the n-grams of `length` elements of a row of n, `apart` from each other.
static void count_grams(const tfidf *t, const tide_operand *in, int64_t row, int64_t n, int64_t length, int64_t apart,
                        size_t first_gram, float *y) {
    const int64_t begin = t->counts[length - 1];
    const int64_t end = (size_t)length < t->n_counts ? t->counts[length] : (int64_t)t->n_pool;
    if ((n - 1) / apart < length - 1) return; // also where the product would not fit
    for (int64_t at = 0; at + (length - 1) * apart < n; at++) {
        for (int64_t g = begin; g < end; g += length) {
            int64_t i = 0;
            while (i < length && tide_data_load_i64(in->dtype, in->data, row * n + at + i * apart) == t->pool[g + i])
                i++;
            if (i < length) continue;
            const size_t gram = first_gram + (size_t)((g - begin) / length);
            const float weight = t->weights != NULL ? t->weights[gram] : 1;
            float *to = &y[t->indexes[gram]];
            *to = t->mode == TF ? *to + 1 : t->mode == IDF ? weight : *to + weight;
        }
    }
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    const tide_operand *in = &args->in[0];
    tfidf t;
    TIDE_TRY(read_node(k->node, &t, err));
    const int64_t rows = in->shape.rank == 2 ? in->shape.dims[0] : 1;
    const int64_t n = in->shape.rank == 0 ? 1 : in->shape.dims[in->shape.rank - 1];
    float *y = args->out[0].data;
    if (args->out[0].size_bytes == 0) return TIDE_OK;
    memset(y, 0, args->out[0].size_bytes);
    for (int64_t r = 0; n > 0 && r < rows; r++) {
        size_t first_gram = 0;
        for (int64_t length = 1; length <= t.longest; length++) {
            // One element has no others to be apart from.
            const int64_t most = length == 1 ? 0 : t.most_skipped < n ? t.most_skipped : n;
            for (int64_t skipped = 0; length >= t.shortest && skipped <= most; skipped++)
                count_grams(&t, in, r, n, length, skipped + 1, first_gram, y + r * t.width);
            const int64_t end = (size_t)length < t.n_counts ? t.counts[length] : (int64_t)t.n_pool;
            first_gram += (size_t)((end - t.counts[length - 1]) / length);
        }
    }
    return TIDE_OK;
}

static double work(const tide_infer *x) {
    size_t n;
    tide_node_attr_ints(x->node, "pool_int64s", &n);
    const double skips = (double)tide_node_attr_int(x->node, "max_skip_count", 0) + 1;
    return (double)tide_op_numel(&x->in[0].shape) * (double)n * skips;
}

const tide_op_def tide_op_tfidf_vectorizer = {
    .name = "TfIdfVectorizer",
    .domain = "",
    .since = 9,
    .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "max_gram_length"), TIDE_ATTR(INT, "max_skip_count"),
                        TIDE_ATTR(INT, "min_gram_length"), TIDE_ATTR(STRING, "mode"), TIDE_ATTR(INTS, "ngram_counts"),
                        TIDE_ATTR(INTS, "ngram_indexes"), TIDE_ATTR(INTS, "pool_int64s"),
                        TIDE_ATTR(STRINGS, "pool_strings"), TIDE_ATTR(FLOATS, "weights")),
    .min_inputs = 1,
    .max_inputs = 1,
    .min_outputs = 1,
    .max_outputs = 1,
    .infer = infer,
    .work = work,
    .run = run};
