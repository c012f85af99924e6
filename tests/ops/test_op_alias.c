// SPDX-License-Identifier: MIT
//
// What operators say about operands that may share bytes: each fact in a table of cases, and of random operands
// that the fact is true and that the kernel, finding its operands there, leaves the bytes alone and the answer as it
// is.
#include <sys/mman.h>

#include "one_op.h"

// ---- cases ----

typedef struct alias_case {
    const char *op;
    int opset;
    const char *in;       ///< shape of input 0 and of those that follow, separated by blanks
    const char *attr;     ///< "axis=1", "perm=0,2,1"; "" none
    const char *operands; ///< int64 inputs behind them: "1,2 3,4" is two lists; "" none
    size_t n_out, in_i, out_i;
    tide_op_alias_kind kind;
    uint64_t offset; ///< in elements (float32)
} alias_case;

#define V TIDE_OP_ALIAS_VIEW
#define P TIDE_OP_ALIAS_PART
#define S TIDE_OP_ALIAS_SLICE
#define NO TIDE_OP_ALIAS_NONE

static const alias_case cases[] = {
    {"Concat", 13, "2x3 5x3 1x3", "axis=0", "", 1, 0, 0, P, 0},
    {"Concat", 13, "2x3 5x3 1x3", "axis=0", "", 1, 1, 0, P, 6},
    {"Concat", 13, "2x3 5x3 1x3", "axis=-2", "", 1, 2, 0, P, 21},
    {"Concat", 13, "1x4x3 1x2x3", "axis=1", "", 1, 1, 0, P, 12},
    {"Concat", 13, "1x1x4 1x1x2", "axis=2", "", 1, 1, 0, P, 4},
    {"Concat", 13, "2x4x3 2x2x3", "axis=1", "", 1, 1, 0, NO, 0}, // two outer rows
    {"Concat", 13, "2x4x3 2x2x3", "axis=1", "", 1, 0, 0, NO, 0},
    {"Concat", 13, "2x3", "axis=1", "", 1, 0, 0, V, 0}, // nothing else in it
    {"Concat", 13, "2x0 2x3", "axis=1", "", 1, 1, 0, V, 0},
    {"Concat", 13, "0x3 2x3", "axis=0", "", 1, 0, 0, NO, 0}, // no bytes
    {"Split", 13, "6x4", "axis=0", "1,2,3", 3, 0, 0, S, 0},
    {"Split", 13, "6x4", "axis=0", "1,2,3", 3, 0, 1, S, 4},
    {"Split", 13, "6x4", "axis=0", "1,2,3", 3, 0, 2, S, 12},
    {"Split", 11, "6x4", "split=2,4", "", 2, 0, 1, S, 8},
    {"Split", 18, "7x2", "num_outputs=3", "", 3, 0, 2, S, 12}, // 3, 3, 1
    {"Split", 13, "1x6x4", "axis=1", "", 2, 0, 1, S, 12},
    {"Split", 13, "2x6x4", "axis=1", "", 2, 0, 1, NO, 0},
    {"Split", 13, "2x6", "axis=1", "", 1, 0, 0, V, 0},
    {"Split", 13, "6x4", "axis=0", "6,0", 2, 0, 0, V, 0},
    {"Slice", 13, "6x4", "", "2 5", 1, 0, 0, S, 8},
    {"Slice", 13, "6x4", "", "0,1 6,3", 1, 0, 0, NO, 0},       // gaps between the rows
    {"Slice", 13, "6x4", "", "2,1 3,3", 1, 0, 0, S, 9},        // within one row
    {"Slice", 13, "1x6x4", "", "3 6 1", 1, 0, 0, S, 12},       // axis 1
    {"Slice", 13, "2x6x4", "", "3 6 1", 1, 0, 0, NO, 0},       // two outer rows
    {"Slice", 13, "2x6x4", "", "1,3 2,6 0,1", 1, 0, 0, S, 36}, // one of them
    {"Slice", 13, "6x4", "", "0 6 0 2", 1, 0, 0, NO, 0},       // every other row
    {"Slice", 13, "6x4", "", "5 -7 0 -1", 1, 0, 0, NO, 0},     // backwards
    {"Slice", 13, "6x4", "", "5 4 0 -1", 1, 0, 0, S, 20},      // backwards, but one step
    {"Slice", 13, "6x4", "", "-100 100", 1, 0, 0, V, 0},
    {"Slice", 13, "6x4", "", "4 4", 1, 0, 0, NO, 0},
    {"Slice", 9, "6x4", "starts=1 ends=3", "", 1, 0, 0, S, 4},
    {"Transpose", 13, "1x3x4", "perm=1,0,2", "", 1, 0, 0, V, 0},
    {"Transpose", 13, "3x1x4x1", "perm=1,0,3,2", "", 1, 0, 0, V, 0},
    {"Transpose", 13, "3x1x4", "perm=2,1,0", "", 1, 0, 0, NO, 0},
    {"Transpose", 13, "1x5", "", "", 1, 0, 0, V, 0},
    {"Transpose", 13, "2x5", "", "", 1, 0, 0, NO, 0},
    {"Expand", 13, "3x4", "", "1,3,1", 1, 0, 0, V, 0},
    {"Expand", 13, "3x1", "", "3,4", 1, 0, 0, NO, 0},
    {"Tile", 13, "3x4", "", "1,1", 1, 0, 0, V, 0},
    {"Tile", 13, "3x4", "", "2,1", 1, 0, 0, NO, 0},
    {"Gather", 13, "5x4", "axis=0", "2,3,4", 1, 0, 0, S, 8},
    {"Gather", 13, "5x4", "axis=0", "-4,2", 1, 0, 0, S, 4},
    {"Gather", 13, "5x4", "axis=0", "3,2", 1, 0, 0, NO, 0},
    {"Gather", 13, "1x5x4", "axis=1", "0", 1, 0, 0, S, 0}, // the class token of a transformer
    {"Gather", 13, "2x5x4", "axis=1", "0", 1, 0, 0, NO, 0},
    {"Gather", 13, "3x2", "axis=0", "0,1,2", 1, 0, 0, V, 0},
    {"Reshape", 13, "3x4", "", "2,6", 1, 0, 0, V, 0},
    {"Squeeze", 13, "1x4", "", "0", 1, 0, 0, V, 0},
    {"Unsqueeze", 13, "4", "", "0", 1, 0, 0, V, 0},
    {"Flatten", 13, "3x4x2", "", "", 1, 0, 0, V, 0},
    {"Identity", 13, "3", "", "", 1, 0, 0, V, 0},
    {"Dropout", 13, "3", "", "", 2, 0, 0, V, 0},
    {"Dropout", 13, "3", "", "", 2, 0, 1, NO, 0},
    {"Relu", 13, "3", "", "", 1, 0, 0, NO, 0},
    {"Add", 13, "3 3", "", "", 1, 0, 0, NO, 0},
};

/// "1,2,3" -> ints. @return their number
static size_t read_ints(const char *text, int64_t *out) {
    size_t n = 0;
    for (const char *at = text;; n++) {
        char *end;
        out[n] = strtoll(at, &end, 10);
        at = end;
        if (*at++ != ',') return n + 1;
    }
}

static size_t count_words(const char *text) {
    size_t n = *text != '\0';
    for (; *text != '\0'; text++) n += *text == ' ';
    return n;
}

/// The i-th of the words, as a string of its own.
static const char *word(const char *text, size_t i, char buf[64]) {
    for (; i > 0; i--) text = strchr(text, ' ') + 1;
    const size_t n = strcspn(text, " ");
    memcpy(buf, text, n);
    buf[n] = '\0';
    return buf;
}

static void add_attrs(one_op *o, const char *text) {
    char buf[64];
    for (size_t i = 0; i < count_words(text); i++) {
        int64_t list[8];
        char *eq = strchr((char *)(uintptr_t)word(text, i, buf), '=');
        *eq = '\0';
        const size_t n = read_ints(eq + 1, list);
        const bool many = n > 1 || strcmp(buf, "starts") == 0 || strcmp(buf, "ends") == 0;
        if (many)
            one_ints(o, buf, n, list);
        else
            one_int(o, buf, list[0]);
    }
}

static void test_facts_of_each_operator_X6(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const alias_case *c = &cases[k];
        const size_t n_data = count_words(c->in), n_lists = count_words(c->operands);
        one_op o;
        int64_t lists[4][8];
        char buf[64];
        one_begin(&o, c->op, c->opset, n_data + n_lists, c->n_out);
        for (size_t i = 0; i < n_data; i++) one_in(&o, i, TIDE_F32, one_shape(word(c->in, i, buf)), NULL);
        for (size_t i = 0; i < n_lists; i++) {
            const int64_t n = (int64_t)read_ints(word(c->operands, i, buf), lists[i]);
            one_in(&o, n_data + i, TIDE_I64, tide_shape_make(1, &n), lists[i]);
        }
        add_attrs(&o, c->attr);
        assert_tide_ok(one_infer(&o), &o.err);
        const tide_op_alias a = one_alias(&o, c->in_i, c->out_i);
        if (a.kind != c->kind || (a.kind != NO && a.offset_bytes != c->offset * sizeof(float)))
            fail_msg("case %zu, %s of %s %s %s: kind %d at %llu B, want %d at %llu", k, c->op, c->in, c->attr,
                     c->operands, (int)a.kind, (unsigned long long)a.offset_bytes, (int)c->kind,
                     (unsigned long long)(c->offset * sizeof(float)));
        one_end(&o);
    }
}

/// Cast is a view only to the same type; indices that come while running promise nothing; absent operands neither.
static void test_facts_that_need_more_than_a_shape(void **state) {
    (void)state;
    one_op o;
    one_begin(&o, "Cast", 13, 1, 1);
    one_in(&o, 0, TIDE_F32, one_shape("4"), NULL);
    one_int(&o, "to", TIDE_F32);
    assert_tide_ok(one_infer(&o), &o.err);
    assert_int_equal(one_alias(&o, 0, 0).kind, V);
    o.attrs[0].i = TIDE_I32;
    assert_tide_ok(one_infer(&o), &o.err);
    assert_int_equal(one_alias(&o, 0, 0).kind, NO);
    assert_true(one_may_overwrite(&o, 0)); // as many bytes each
    o.attrs[0].i = TIDE_F64;
    assert_tide_ok(one_infer(&o), &o.err);
    assert_false(one_may_overwrite(&o, 0));
    one_end(&o);

    one_begin(&o, "Gather", 13, 2, 1);
    one_in(&o, 0, TIDE_F32, one_shape("4"), NULL);
    one_in(&o, 1, TIDE_I64, one_shape("2"), NULL);
    assert_tide_ok(one_infer(&o), &o.err);
    assert_int_equal(one_alias(&o, 0, 0).kind, NO);
    int64_t outside[2] = {3, 4};
    o.in[1].data = outside;
    assert_int_equal(one_alias(&o, 0, 0).kind, NO);
    one_end(&o);

    one_begin(&o, "Split", 13, 1, 2);
    one_in(&o, 0, TIDE_F32, one_shape("4"), NULL);
    assert_tide_ok(one_infer(&o), &o.err);
    o.out[1] = (tide_operand){.dtype = TIDE_DTYPE_UNDEFINED};
    assert_int_equal(one_alias(&o, 0, 0).kind, S);
    assert_int_equal(one_alias(&o, 0, 1).kind, NO);
    assert_int_equal(one_alias(&o, 1, 0).kind, NO); // there is no input 1
    assert_int_equal(one_alias(&o, 0, 2).kind, NO);
    one_end(&o);
}

/// As many bytes, but not as many elements: two floats are compared with eight, and eight bools come of it.
static void test_same_bytes_are_not_enough_to_overwrite(void **state) {
    (void)state;
    one_op o;
    one_begin(&o, "Less", 13, 2, 1);
    one_in(&o, 0, TIDE_F32, one_shape("2"), NULL);
    one_in(&o, 1, TIDE_F32, one_shape("4x2"), NULL);
    assert_tide_ok(one_infer(&o), &o.err);
    assert_int_equal(o.in[0].size_bytes, o.out[0].size_bytes);
    assert_false(one_may_overwrite(&o, 0));
    assert_false(one_may_overwrite(&o, 1));
    one_end(&o);
    one_begin(&o, "Pow", 13, 2, 1);
    one_in(&o, 0, TIDE_I8, one_shape("8"), NULL);
    one_in(&o, 1, TIDE_I64, one_shape("1"), NULL);
    assert_tide_ok(one_infer(&o), &o.err);
    assert_int_equal(o.in[1].size_bytes, o.out[0].size_bytes);
    assert_true(one_may_overwrite(&o, 0));
    assert_false(one_may_overwrite(&o, 1));
    one_end(&o);
    one_begin(&o, "Sum", 13, ONE_MAX, 1);
    for (size_t i = 0; i < ONE_MAX; i++) one_in(&o, i, TIDE_F32, one_shape("8"), NULL);
    assert_tide_ok(one_infer(&o), &o.err);
    assert_true(one_may_overwrite(&o, 31));
    assert_false(one_may_overwrite(&o, 32)); // the row has 32 bits
    one_end(&o);
}

// ---- the facts are true ----

enum { ROOM = 4096, GUARD = 64 };

/// Room for one operand with guards around it.
typedef struct room {
    unsigned char bytes[GUARD + ROOM + GUARD];
} room;
static unsigned char *inside(room *r) { return r->bytes + GUARD; }

static void fill(unsigned char *data, size_t n, tide_rng *rng) {
    for (size_t i = 0; i < n; i++) data[i] = (unsigned char)tide_rng_below(rng, 256);
}

static tide_shape random_shape(tide_rng *rng, int32_t rank, uint64_t extents) {
    tide_shape s = {.rank = rank};
    for (int32_t d = 0; d < rank; d++) s.dims[d] = (int64_t)tide_rng_below(rng, extents) + (extents > 3 ? 0 : 1);
    return s;
}

static const tide_dtype dtypes[] = {TIDE_F32, TIDE_F64, TIDE_I8, TIDE_F16};

static int64_t lists[4][8];

static void list_in(one_op *o, size_t i, size_t n) {
    const int64_t dim = (int64_t)n;
    one_in(o, i, TIDE_I64, tide_shape_make(1, &dim), lists[i]);
}

static void make_concat(one_op *o, tide_rng *rng, tide_dtype dtype, tide_shape s) {
    const size_t n = 1 + (size_t)tide_rng_below(rng, 4);
    const int32_t axis = (int32_t)tide_rng_below(rng, (uint64_t)s.rank);
    one_begin(o, "Concat", 13, n, 1);
    one_int(o, "axis", axis);
    for (size_t i = 0; i < n; i++) {
        s.dims[axis] = (int64_t)tide_rng_below(rng, 4);
        one_in(o, i, dtype, s, NULL);
    }
}

static void make_split(one_op *o, tide_rng *rng, tide_dtype dtype, tide_shape s) {
    const size_t n = 1 + (size_t)tide_rng_below(rng, 3);
    const int32_t axis = (int32_t)tide_rng_below(rng, (uint64_t)s.rank);
    one_begin(o, "Split", 13, 2, n);
    one_int(o, "axis", axis);
    s.dims[axis] = 0;
    for (size_t i = 0; i < n; i++) s.dims[axis] += lists[1][i] = (int64_t)tide_rng_below(rng, 4);
    one_in(o, 0, dtype, s, NULL);
    list_in(o, 1, n);
}

static void make_slice(one_op *o, tide_rng *rng, tide_dtype dtype, tide_shape s) {
    static int64_t axes[8], steps[8];
    one_begin(o, "Slice", 13, 5, 1);
    one_in(o, 0, dtype, s, NULL);
    for (int32_t d = 0; d < s.rank; d++) {
        lists[1][d] = (int64_t)tide_rng_below(rng, 8) - 4;
        lists[2][d] = tide_rng_below(rng, 2) != 0 ? 100 : (int64_t)tide_rng_below(rng, 8) - 4;
        if (tide_rng_below(rng, 2) != 0) lists[1][d] = 0;
        axes[d] = d;
        steps[d] = tide_rng_below(rng, 4) != 0 ? 1 : (int64_t)tide_rng_below(rng, 2) * 4 - 2;
    }
    list_in(o, 1, (size_t)s.rank);
    list_in(o, 2, (size_t)s.rank);
    const int64_t rank = s.rank;
    one_in(o, 3, TIDE_I64, tide_shape_make(1, &rank), axes);
    one_in(o, 4, TIDE_I64, tide_shape_make(1, &rank), steps);
}

static void make_transpose(one_op *o, tide_rng *rng, tide_dtype dtype, tide_shape s) {
    int64_t perm[8];
    for (int32_t d = 0; d < s.rank; d++) perm[d] = d;
    for (int32_t d = s.rank - 1; d > 0; d--) {
        const int32_t e = (int32_t)tide_rng_below(rng, (uint64_t)d + 1);
        const int64_t swap = perm[d];
        perm[d] = perm[e];
        perm[e] = swap;
    }
    one_begin(o, "Transpose", 13, 1, 1);
    one_ints(o, "perm", (size_t)s.rank, perm);
    one_in(o, 0, dtype, s, NULL);
}

static void make_gather(one_op *o, tide_rng *rng, tide_dtype dtype, tide_shape s) {
    const int32_t axis = (int32_t)tide_rng_below(rng, (uint64_t)s.rank);
    if (s.dims[axis] == 0) s.dims[axis] = 1;
    one_begin(o, "Gather", 13, 2, 1);
    one_int(o, "axis", axis);
    one_in(o, 0, dtype, s, NULL);
    const uint64_t extent = (uint64_t)s.dims[axis];
    const size_t n = 1 + (size_t)tide_rng_below(rng, extent);
    const uint64_t first = tide_rng_below(rng, extent - n + 1);
    for (size_t i = 0; i < n; i++)
        lists[1][i] = tide_rng_below(rng, 6) == 0 ? (int64_t)tide_rng_below(rng, extent) : (int64_t)(first + i);
    list_in(o, 1, n);
}

static void make_repeat(one_op *o, tide_rng *rng, tide_dtype dtype, tide_shape s) {
    const bool tile = tide_rng_below(rng, 2) != 0;
    one_begin(o, tile ? "Tile" : "Expand", 13, 2, 1);
    one_in(o, 0, dtype, s, NULL);
    for (int32_t d = 0; d < s.rank; d++)
        lists[1][d] = s.dims[d] == 1 || tile ? 1 + (int64_t)tide_rng_below(rng, 4) / 3 : 1;
    list_in(o, 1, (size_t)s.rank);
}

static void make_any(one_op *o, tide_rng *rng) {
    static void (*const makers[])(one_op *, tide_rng *, tide_dtype, tide_shape) = {
        make_concat, make_split, make_slice, make_transpose, make_gather, make_repeat};
    const int32_t rank = 1 + (int32_t)tide_rng_below(rng, 4);
    const tide_shape s = random_shape(rng, rank, tide_rng_below(rng, 2) == 0 ? 2 : 5);
    makers[tide_rng_below(rng, 6)](o, rng, dtypes[tide_rng_below(rng, 4)], s);
}

/// Room that can be made read-only: a kernel that copies bytes onto themselves changes nothing, and is caught by it.
static room *shared_room(void) {
    static room *r;
    if (r == NULL) r = mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(r != MAP_FAILED);
    return r;
}

static void run_on(one_op *o, room *r, bool read_only) {
    if (read_only) assert_int_equal(mprotect(r, sizeof *r, PROT_READ), 0);
    one_run(o);
    assert_int_equal(mprotect(r, sizeof *r, PROT_READ | PROT_WRITE), 0);
}

/// Output and input as the fact has them share bytes; the others have their own. Bytes, run, compare.
static void check_shared(one_op *o, room *data, room *want, size_t in_i, size_t out_i, tide_op_alias a) {
    room *const shared = shared_room();
    tide_operand *in = &o->in[in_i], *out = &o->out[out_i];
    void *const in_data = in->data, *const out_data = out->data;
    const bool part = a.kind == P;
    memset(shared->bytes, 0xA5, sizeof shared->bytes);
    in->data = inside(shared) + (part ? a.offset_bytes : 0);
    out->data = inside(shared) + (part ? 0 : a.offset_bytes);
    memcpy(in->data, inside(&data[in_i]), in->size_bytes);
    run_on(o, shared, !part); // beside one part the others are copied
    if (memcmp(out->data, inside(&want[out_i]), out->size_bytes) != 0)
        fail_msg("%s: output %zu differs when it shares bytes with input %zu", o->node.op_type, out_i, in_i);
    assert_memory_equal(in->data, inside(&data[in_i]), in->size_bytes);
    const size_t end = GUARD + (in->size_bytes > out->size_bytes ? in->size_bytes : out->size_bytes);
    for (size_t i = 0; i < sizeof shared->bytes; i++)
        if (i < GUARD || i >= end) assert_int_equal(shared->bytes[i], 0xA5);
    in->data = in_data;
    out->data = out_data;
}

/// All parts of a Concat, or all outputs of a Split, at once.
static void check_all_shared(one_op *o, room *data, room *want) {
    room *const shared = shared_room();
    const bool concat = strcmp(o->node.op_type, "Concat") == 0;
    if (!concat && strcmp(o->node.op_type, "Split") != 0) return;
    tide_operand *whole = concat ? &o->out[0] : &o->in[0];
    whole->data = inside(shared);
    bool all = true;
    if (!concat) memcpy(whole->data, inside(&data[0]), whole->size_bytes);
    const size_t n = concat ? o->node.n_inputs : o->node.n_outputs;
    for (size_t i = 0; i < n; i++) {
        const tide_op_alias a = concat ? one_alias(o, i, 0) : one_alias(o, 0, i);
        tide_operand *part = concat ? &o->in[i] : &o->out[i];
        if (a.kind == NO) {
            all = all && part->size_bytes == 0;
            continue;
        }
        part->data = inside(shared) + a.offset_bytes;
        if (concat) memcpy(part->data, inside(&data[i]), part->size_bytes);
    }
    run_on(o, shared, all);
    for (size_t i = 0; i < o->node.n_outputs; i++)
        if (o->out[i].size_bytes > 0) assert_memory_equal(o->out[i].data, inside(&want[i]), o->out[i].size_bytes);
}

static void assert_fact(const one_op *o, size_t in_i, size_t out_i, tide_op_alias a) {
    const tide_operand *in = &o->in[in_i], *out = &o->out[out_i];
    const char *const whole = a.kind == P ? out->data : in->data, *const inner = a.kind == P ? in->data : out->data;
    if (memcmp(whole + a.offset_bytes, inner, a.kind == P ? in->size_bytes : out->size_bytes) != 0)
        fail_msg("%s: it is not true that input %zu and output %zu share %llu", o->node.op_type, in_i, out_i,
                 (unsigned long long)a.offset_bytes);
}

static void test_facts_are_true_and_kernels_leave_bytes_alone(void **state) {
    (void)state;
    static room data[8], want[8];
    tide_rng rng = {20240611};
    size_t n_facts = 0, n_tried = 0;
    for (int round = 0; round < 6000; round++) {
        one_op o;
        make_any(&o, &rng);
        if (one_infer(&o) != TIDE_OK) fail_msg("round %d: %s", round, o.err.msg);
        for (size_t i = 0; i < o.node.n_inputs; i++) {
            assert_true(o.in[i].size_bytes <= ROOM);
            if (o.in[i].data != NULL) continue; // a list of integers
            o.in[i].data = inside(&data[i]);
            fill(o.in[i].data, o.in[i].size_bytes, &rng);
        }
        for (size_t i = 0; i < o.node.n_outputs; i++) {
            assert_true(o.out[i].size_bytes <= ROOM);
            o.out[i].data = inside(&want[i]);
        }
        one_run(&o);
        n_tried++;
        for (size_t in_i = 0; in_i < o.node.n_inputs; in_i++)
            for (size_t out_i = 0; out_i < o.node.n_outputs; out_i++) {
                const tide_op_alias a = one_alias(&o, in_i, out_i);
                if (a.kind == NO) continue;
                assert_fact(&o, in_i, out_i, a);
                check_shared(&o, data, want, in_i, out_i, a);
                n_facts++;
            }
        check_all_shared(&o, data, want);
        one_end(&o);
    }
    if (n_facts < n_tried / 2) fail_msg("%zu facts of %zu operators", n_facts, n_tried);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_facts_of_each_operator_X6),
        tide_unit_test(test_facts_that_need_more_than_a_shape),
        tide_unit_test(test_same_bytes_are_not_enough_to_overwrite),
        tide_unit_test(test_facts_are_true_and_kernels_leave_bytes_alone),
    };
    return cmocka_run_group_tests_name("op_alias", tests, NULL, NULL);
}
