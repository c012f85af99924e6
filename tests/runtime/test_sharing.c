// SPDX-License-Identifier: MIT
//
// Tensors on each other's bytes: every plan here is made by hand, from one in which each tensor has a place of its own
// and by laying some where others are. What the operators allow runs and gives the naive run's bits; everything else is
// refused with node, tensors and offsets, whatever the plan calls it (X-6, S27-11).
#include <inttypes.h>
#include <math.h>

#include "core/runtime/runtime_internal.h"
#include "rt_util.h"

typedef struct hand {
    rt_rig rig;
    tide_program *p;
    tide_memory_plan *m;
} hand;

static void open_hand(hand *h, tide_graph *g) {
    rt_rig_open(&h->rig);
    h->p = rt_build(g);
    h->m = rt_plan(h->p, "naive"); // no sharing
}

static void close_hand(hand *h) {
    tide_memory_plan_destroy(h->m);
    tide_program_unref(h->p);
    rt_rig_close(&h->rig);
}

static uint64_t offset_of(const hand *h, const char *name) { return h->m->offsets[rt_entry(h->m, name)]; }

/// Tensor `name` lies `offset_bytes` into `of`, and the plan says so.
static void lay(hand *h, const char *name, const char *of, uint64_t offset_bytes) {
    const size_t i = rt_entry(h->m, name), to = rt_entry(h->m, of);
    tide_lifetime *lt = &h->m->lifetimes.items[i];
    lt->alias = TIDE_ALIAS_GIVEN;
    lt->alias_of = (uint32_t)to;
    lt->alias_offset_bytes = offset_bytes;
    h->m->offsets[i] = h->m->offsets[to] + offset_bytes;
}

/// Accepted: runs under poison and zero like the naive one. Ends the case.
static void assert_runs(hand *h) {
    tide_inference_plan *ip = rt_inference(&h->rig, h->p, h->m);
    tide_context *naive = rt_context(ip, TIDE_RUN_NAIVE, TIDE_FILL_POISON);
    rt_feed(naive, h->p, &h->rig, 1);
    rt_run(naive);
    for (int fill = TIDE_FILL_ZERO; fill <= TIDE_FILL_POISON; fill++) {
        tide_context *c = rt_context(ip, TIDE_RUN_PLANNED, (tide_fill)fill);
        rt_feed(c, h->p, &h->rig, 1);
        for (int run = 0; run < 3; run++) {
            rt_run(c);
            rt_assert_same_outputs(c, naive);
        }
        tide_context_destroy(c);
    }
    tide_context_destroy(naive);
    tide_inference_plan_unref(ip);
    close_hand(h);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/// Refused with all the words. Ends the case.
static void assert_refused(hand *h, const char *const *words) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_inference_plan_options opt = {.device = TIDE_CPU, .registry = h->rig.registry, .memory_plan = h->m};
    tide_inference_plan *ip = NULL;
    assert_tide_status(tide_inference_plan_create(h->p, &opt, &ip, &err), TIDE_ERR_RUNTIME);
    assert_null(ip);
    assert_text_has(err.msg, "check memory plan");
    for (; *words != NULL; words++) assert_text_has(err.msg, *words);
    close_hand(h);
}

/// "at bytes A to B" of a tensor that ends with its slot.
static const char *bytes_text(const hand *h, const char *name, char buf[64]) {
    const size_t i = rt_entry(h->m, name);
    const tide_lifetime *lt = &h->m->lifetimes.items[i];
    const uint64_t n = lt->alias != TIDE_ALIAS_NONE ? lt->size_bytes : tide_lifetime_aligned_bytes(lt);
    snprintf(buf, 64, "%" PRIu64 " to %" PRIu64, h->m->offsets[i], h->m->offsets[i] + n);
    return buf;
}

// ---- graphs; all extents are such that rows are multiples of 64 B ----

/// x (8x16) -> a = Tanh -> b = OP(a) -> c = Tanh(b) -> y = Tanh(c)
static tide_graph *chain(const char *op) {
    tide_graph *g = rt_graph("chain");
    rt_input(g, "x", "8x16");
    rt_node(g, "Tanh", "make", "x", "a");
    rt_node(g, op, "middle", "a", "b");
    rt_node(g, "Tanh", "next", "b", "c");
    rt_node(g, "Tanh", "last", "c", "y");
    rt_output(g, "y");
    return g;
}

/// a, the rows of it, and what is made of them: a -> s (rows 2 and 3) -> t = Tanh(s); u = Sigmoid(a) or nothing
static tide_graph *slices(bool read_whole_later) {
    static const int64_t from[] = {2}, to[] = {4}, axis[] = {0};
    tide_graph *g = rt_graph("slices");
    rt_input(g, "x", "8x16");
    rt_weight_i64(g, "from", from, 1);
    rt_weight_i64(g, "to", to, 1);
    rt_weight_i64(g, "axis", axis, 1);
    rt_node(g, "Tanh", "make", "x", "a");
    rt_node(g, "Slice", "cut", "a,from,to,axis", "s");
    rt_node(g, "Sigmoid", "other", "x", "o");
    rt_node(g, "Relu", "reader", "s", "t");
    rt_node(g, "Tanh", "others", "o", "p");
    rt_output(g, "t");
    if (read_whole_later) {
        rt_node(g, "Sigmoid", "whole", "a", "u");
        rt_output(g, "u");
    }
    rt_output(g, "p");
    return g;
}

/// p0 and p1 -> w = Concat; one of them may be read after it
static tide_graph *parts(bool read_part_later) {
    tide_graph *g = rt_graph("parts");
    rt_input(g, "x", "2x16");
    rt_node(g, "Tanh", "first", "x", "p0");
    rt_node(g, "Sigmoid", "second", "x", "p1");
    rt_node(g, "Neg", "between", "x", "q");
    rt_attr_int(g, rt_node(g, "Concat", "whole", "p0,p1", "w"), "axis", 0);
    rt_node(g, "Relu", "reader", "w", "r");
    rt_node(g, "Tanh", "tail", "r", "y");
    rt_output(g, "y");
    rt_node(g, "Tanh", "others", "q", "z");
    rt_output(g, "z");
    if (read_part_later) {
        rt_node(g, "Neg", "late", "p1", "l");
        rt_output(g, "l");
    }
    return g;
}
enum { ROW = 64, PART = 2 * ROW };

// ---- what is allowed ----

static void test_view_and_in_place_X6(void **state) {
    (void)state;
    hand h;
    open_hand(&h, chain("Identity"));
    lay(&h, "b", "a", 0);
    assert_runs(&h);
    open_hand(&h, chain("Relu"));
    lay(&h, "b", "a", 0);
    lay(&h, "c", "b", 0); // an alias of an alias
    assert_runs(&h);
    // Also without the word: bytes and steps decide.
    open_hand(&h, chain("Relu"));
    h.m->offsets[rt_entry(h.m, "b")] = offset_of(&h, "a");
    assert_runs(&h);
}

static void test_slice_and_parts_X6(void **state) {
    (void)state;
    hand h;
    for (int later = 0; later < 2; later++) {
        open_hand(&h, slices(later != 0));
        lay(&h, "s", "a", 2 * ROW);
        assert_runs(&h);
        open_hand(&h, parts(later != 0));
        lay(&h, "p0", "w", 0);
        lay(&h, "p1", "w", PART);
        assert_runs(&h);
        // One of them elsewhere: it is copied, the other is not.
        open_hand(&h, parts(later != 0));
        lay(&h, "p1", "w", PART);
        assert_runs(&h);
    }
    open_hand(&h, parts(false));
    lay(&h, "p0", "w", 0);
    lay(&h, "p1", "w", PART);
    lay(&h, "r", "w", 0); // and over the whole in place, which takes the parts with it
    assert_runs(&h);
}

/// The same value at both inputs of an operator that may overwrite either.
static void test_same_value_twice_in_place(void **state) {
    (void)state;
    hand h;
    tide_graph *g = rt_graph("square");
    rt_input(g, "x", "8x16");
    rt_node(g, "Tanh", "make", "x", "a");
    rt_node(g, "Mul", "square", "a,a", "b");
    rt_node(g, "Identity", "view", "b", "c");
    rt_node(g, "Add", "both", "b,c", "d"); // two names, one place
    rt_node(g, "Neg", "last", "d", "y");
    rt_output(g, "y");
    open_hand(&h, g);
    lay(&h, "b", "a", 0);
    lay(&h, "c", "b", 0);
    lay(&h, "d", "c", 0);
    assert_runs(&h);
}

/// S23-20: both outputs of a Split live on in their own bytes of the input, and are right.
static void test_split_lies_in_its_input_S23_20(void **state) {
    (void)state;
    static const int64_t sizes[] = {3, 5};
    tide_graph *g = rt_graph("split");
    rt_input(g, "x", "8x16");
    rt_weight_i64(g, "sizes", sizes, 2);
    rt_node(g, "Tanh", "make", "x", "a");
    rt_attr_int(g, rt_node(g, "Split", "split", "a,sizes", "s0,s1"), "axis", 0);
    rt_node(g, "Sigmoid", "left", "s0", "l");
    rt_node(g, "Neg", "right", "s1", "r");
    rt_attr_int(g, rt_node(g, "Concat", "join", "l,r", "j"), "axis", 0);
    rt_node(g, "Tanh", "last", "j", "y");
    rt_output(g, "y");
    hand h;
    open_hand(&h, g);
    lay(&h, "s0", "a", 0);
    lay(&h, "s1", "a", 3 * ROW);
    lay(&h, "l", "s0", 0);
    lay(&h, "r", "s1", 0);
    lay(&h, "j", "a", 0); // what was taken apart is put together where it was
    tide_inference_plan *ip = rt_inference(&h.rig, h.p, h.m);
    tide_context *c = rt_context(ip, TIDE_RUN_PLANNED, TIDE_FILL_ZERO);
    rt_feed(c, h.p, &h.rig, 4);
    rt_run(c);
    const float *x = tide_tensor_const_data(c->inputs[0]), *y = tide_tensor_const_data(tide_context_output(c, 0));
    for (size_t i = 0; i < 8 * 16; i++) {
        const float t = tanhf(x[i]), want = tanhf(i < 3 * 16 ? 1.0f / (1.0f + expf(-t)) : -t);
        assert_float_equal(y[i], want, 1e-6);
    }
    tide_context_stats st;
    tide_context_get_stats(c, &st);
    assert_int_equal(st.n_view_bytes, 0); // neither the Split nor the Concat copied anything
    tide_context_destroy(c);
    tide_inference_plan_unref(ip);
    assert_runs(&h);
}

/// X-6, S27-12: a view has its tensor's address and copies nothing; with a place of its own it is a copy.
static void test_a_view_copies_nothing_X6_S27_12(void **state) {
    (void)state;
    hand h;
    open_hand(&h, chain("Identity"));
    for (int aliased = 0; aliased < 2; aliased++) {
        if (aliased != 0) lay(&h, "b", "a", 0);
        tide_inference_plan *ip = rt_inference(&h.rig, h.p, h.m);
        for (int mode = TIDE_RUN_NAIVE; mode <= TIDE_RUN_PLANNED; mode++) {
            const bool planned = mode == TIDE_RUN_PLANNED;
            tide_context *c = rt_context(ip, (tide_run_mode)mode, TIDE_FILL_ZERO);
            rt_feed(c, h.p, &h.rig, 2);
            for (int run = 0; run < 3; run++) rt_run(c);
            tide_context_stats st;
            tide_context_get_stats(c, &st);
            assert_int_equal(st.n_copied_bytes, 0);
            assert_int_equal(st.n_view_bytes, planned && aliased != 0 ? 0 : 3 * 8 * ROW);
            const uint32_t a = tide_graph_find_value(h.p->graph, "a"), b = tide_graph_find_value(h.p->graph, "b");
            if (planned) {
                const char *base = tide_context_buffer(c);
                assert_ptr_equal(tide_tensor_const_data(tide_context_value(c, b)), base + offset_of(&h, "b"));
                assert_int_equal(aliased, tide_tensor_const_data(tide_context_value(c, a)) ==
                                              tide_tensor_const_data(tide_context_value(c, b)));
            }
            tide_context_destroy(c);
        }
        tide_inference_plan_unref(ip);
    }
    close_hand(&h);
}

/// S27-26: an alias's capacity is its own bytes, so that it cannot grow over its relatives.
static void test_an_alias_has_just_its_bytes_S27_26(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    hand h;
    open_hand(&h, slices(true));
    lay(&h, "s", "a", 2 * ROW);
    tide_inference_plan *ip = rt_inference(&h.rig, h.p, h.m);
    tide_context *c = rt_context(ip, TIDE_RUN_PLANNED, TIDE_FILL_ZERO);
    tide_tensor *s = tide_context_value(c, tide_graph_find_value(h.p->graph, "s"));
    assert_int_equal(tide_tensor_capacity_bytes(s), 2 * ROW);
    tide_shape grown = *tide_tensor_shape(s);
    grown.dims[0] += 1;
    assert_tide_status(tide_tensor_set_shape(s, &grown, &err), TIDE_ERR_NO_SPACE);
    tide_context_destroy(c);
    tide_inference_plan_unref(ip);
    close_hand(&h);
}

/// x -> a -> r, a view of it, s -> b over s -> y; a is read again at the end
static tide_graph *of_rows(const char *shape) {
    static const int64_t flat[] = {-1, 8};
    tide_graph *g = rt_graph("rows");
    rt_input(g, "x", shape);
    rt_weight_i64(g, "flat", flat, 2);
    rt_node(g, "Tanh", "make", "x", "a");
    rt_node(g, "Reshape", "view", "a,flat", "r");
    rt_node(g, "Tanh", "other", "r", "s");
    rt_node(g, "Neg", "over", "s", "b");
    rt_node(g, "Tanh", "last", "b", "y");
    rt_node(g, "Sigmoid", "late", "a", "z");
    rt_output(g, "y");
    rt_output(g, "z");
    return g;
}

/// S27-23: the plan of the largest size serves the others, with what lies inside what: an alias then has fewer bytes
/// than its entry.
static void test_a_plan_for_larger_sizes_S27_23(void **state) {
    (void)state;
    static const char *const shapes[] = {"32x16", "8x16", "3x16", "1x16"};
    tide_program *largest = rt_build(of_rows(shapes[0]));
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        size_t n;
        hand h;
        rt_rig_open(&h.rig);
        h.p = rt_build(of_rows(shapes[i]));
        h.m = rt_plan_aliased(largest, "greedy_by_size", RT_ALL_ALIASES, &n);
        assert_int_equal(n, 2);
        assert_runs(&h);
    }
    tide_program_unref(largest);
}

// ---- what is not ----

/// A pool over its input: what lies behind its last byte, where the kernel still reads, is no red zone of it. An alias
/// has none; a tensor with a place of its own has, and gaps may make it look as if no other tensor were there.
static void test_a_red_zone_in_what_is_read_is_refused(void **state) {
    (void)state;
    static const int64_t two[] = {2, 2};
    for (int alone = 0; alone < 2; alone++) {
        tide_graph *g = rt_graph("pool");
        hand h;
        rt_input(g, "x", "1x1x8x12");
        rt_node(g, "Tanh", "make", "x", "a");
        const uint32_t node = rt_node(g, "MaxPool", "pool", "a", "b");
        rt_attr_ints(g, node, "kernel_shape", two, 2);
        rt_attr_ints(g, node, "strides", two, 2);
        rt_node(g, "Tanh", "last", "b", "y");
        rt_output(g, "y");
        open_hand(&h, g);
        lay(&h, "b", "a", 0);
        if (alone == 0) {
            assert_runs(&h);
        } else {
            h.m->lifetimes.items[rt_entry(h.m, "b")].alias = TIDE_ALIAS_NONE;
            assert_refused(&h, WORDS("'pool' (MaxPool", "tensor 'b'", "over tensor 'a'"));
        }
    }
}

static void test_in_place_while_it_is_needed_is_refused(void **state) {
    (void)state;
    hand h;
    char a[64], b[64];
    tide_graph *g = rt_graph("skip");
    rt_input(g, "x", "8x16");
    rt_node(g, "Tanh", "make", "x", "a");
    rt_node(g, "Relu", "middle", "a", "b");
    rt_node(g, "Add", "skip", "b,a", "y");
    rt_output(g, "y");
    open_hand(&h, g);
    lay(&h, "b", "a", 0);
    assert_refused(&h, WORDS("node 'middle' (Relu, step 1)", "tensor 'b'", bytes_text(&h, "b", b), "tensor 'a'",
                             bytes_text(&h, "a", a), "until step 2"));
}

/// Softmax may; a Transpose that moves elements may not, though the input dies there and has as many bytes.
static void test_operator_that_may_not_overwrite_is_refused(void **state) {
    (void)state;
    hand h;
    open_hand(&h, chain("Softmax"));
    lay(&h, "b", "a", 0);
    assert_runs(&h);
    open_hand(&h, chain("Transpose"));
    lay(&h, "b", "a", 0);
    assert_refused(&h, WORDS("node 'middle' (Transpose, step 1)", "'b'", "'a'", "does not allow"));
    open_hand(&h, chain("Relu"));
    h.m->bytes += 4096;
    lay(&h, "b", "a", 0);
    h.m->lifetimes.items[rt_entry(h.m, "b")].alias = TIDE_ALIAS_NONE;
    h.m->offsets[rt_entry(h.m, "b")] += 256; // over its input, and beside it
    assert_refused(&h, WORDS("node 'middle'", "'b'", "'a'"));
}

/// c = Add(a, s) over a, where s is a row of a: every row of c but that one would be made of the row that was.
static void test_another_input_on_the_bytes_is_refused(void **state) {
    (void)state;
    static const int64_t from[] = {2}, to[] = {3}, axis[] = {0};
    hand h;
    tide_graph *g = rt_graph("row");
    rt_input(g, "x", "8x16");
    rt_weight_i64(g, "from", from, 1);
    rt_weight_i64(g, "to", to, 1);
    rt_weight_i64(g, "axis", axis, 1);
    rt_node(g, "Tanh", "make", "x", "a");
    rt_node(g, "Slice", "cut", "a,from,to,axis", "s");
    rt_node(g, "Add", "add", "a,s", "c");
    rt_node(g, "Neg", "last", "c", "y");
    rt_output(g, "y");
    open_hand(&h, g);
    lay(&h, "s", "a", 2 * ROW);
    lay(&h, "c", "a", 0);
    assert_refused(&h, WORDS("node 'add' (Add, step 2)", "tensor 'c'", "tensor 's'", "until step 2"));
}

/// A value that is read once where it may be overwritten and once where it may not.
static void test_same_value_where_it_may_not_be_overwritten_is_refused(void **state) {
    (void)state;
    hand h;
    tide_graph *g = rt_graph("norm");
    rt_input(g, "x", "16");
    rt_node(g, "Tanh", "make", "x", "a");
    tide_error err = TIDE_ERROR_INIT;
    uint32_t in[2], out, node;
    assert_tide_ok(tide_graph_intern_value(g, "a", &in[0], &err), &err);
    in[1] = in[0];
    assert_tide_ok(tide_graph_intern_value(g, "b", &out, &err), &err);
    assert_tide_ok(tide_graph_add_node(g, "norm", "LayerNormalization", "", 17, in, 2, &out, 1, &node, &err), &err);
    rt_node(g, "Tanh", "last", "b", "y");
    rt_output(g, "y");
    open_hand(&h, g);
    lay(&h, "b", "a", 0);
    assert_refused(&h, WORDS("node 'norm'", "'b'", "'a'"));
}

static void test_slice_elsewhere_is_refused(void **state) {
    (void)state;
    hand h;
    open_hand(&h, slices(true));
    lay(&h, "s", "a", 3 * ROW); // it is rows 2 and 3
    assert_refused(&h, WORDS("node 'cut' (Slice, step 1)", "tensor 's'", "tensor 'a'"));
    // The whole is dead, the slice is not, and another tensor takes the place over it.
    open_hand(&h, slices(false));
    lay(&h, "s", "a", 2 * ROW);
    h.m->offsets[rt_entry(h.m, "o")] = offset_of(&h, "a");
    assert_refused(&h, WORDS("node 'other' (Sigmoid, step 2)", "tensor 'o'", "tensor 's'"));
}

static void test_part_elsewhere_is_refused(void **state) {
    (void)state;
    hand h;
    open_hand(&h, parts(false));
    lay(&h, "p0", "w", PART); // swapped
    lay(&h, "p1", "w", 0);
    assert_refused(&h, WORDS("node 'whole' (Concat, step 3)", "tensor 'w'", "tensor 'p"));
    // Between the birth of a part and the Concat another node writes there.
    open_hand(&h, parts(false));
    lay(&h, "p0", "w", 0);
    lay(&h, "p1", "w", PART);
    lay(&h, "q", "w", 0);
    assert_refused(&h, WORDS("node 'between' (Neg, step 2)", "tensor 'q'", "tensor 'p0'"));
    // The whole is overwritten in place while a part is still to be read.
    open_hand(&h, parts(true));
    lay(&h, "p1", "w", PART);
    lay(&h, "r", "w", 0);
    assert_refused(&h, WORDS("node 'reader' (Relu, step 4)", "tensor 'r'", "tensor 'p1'"));
    // A part of a Concat whose parts are not stretches: along axis 1 rows of both take turns.
    tide_graph *g = rt_graph("columns");
    rt_input(g, "x", "2x16");
    rt_node(g, "Tanh", "first", "x", "p0");
    rt_node(g, "Sigmoid", "second", "x", "p1");
    rt_attr_int(g, rt_node(g, "Concat", "whole", "p0,p1", "w"), "axis", 1);
    rt_node(g, "Tanh", "last", "w", "y");
    rt_output(g, "y");
    open_hand(&h, g);
    lay(&h, "p0", "w", 0);
    assert_refused(&h, WORDS("node 'whole'", "'w'", "'p0'"));
}

static void test_two_outputs_on_the_same_bytes_are_refused(void **state) {
    (void)state;
    hand h;
    tide_graph *g = rt_graph("split");
    rt_input(g, "x", "8x16");
    rt_node(g, "Tanh", "make", "x", "a");
    rt_attr_int(g, rt_node(g, "Split", "split", "a", "s0,s1"), "axis", 0);
    rt_node(g, "Sub", "sub", "s0,s1", "y");
    rt_output(g, "y");
    open_hand(&h, g);
    lay(&h, "s1", "s0", 0);
    assert_refused(&h, WORDS("node 'split'", "'s0'", "'s1'"));
}

static void test_scratch_on_a_tensor_is_refused(void **state) {
    (void)state;
    hand h;
    rt_rig_open(&h.rig);
    h.p = rt_build(chain("Relu"));
    h.p->steps[1].kernel.workspace_bytes = 512;
    h.m = rt_plan(h.p, "naive");
    h.m->offsets[rt_entry(h.m, "middle.scratch")] = offset_of(&h, "a");
    assert_refused(&h, WORDS("node 'middle' (Relu, step 1)", "its scratch", "tensor 'a'"));
}

/// What the plan says of an alias and where it puts it must agree.
static void test_alias_that_lies_elsewhere_is_refused(void **state) {
    (void)state;
    hand h;
    open_hand(&h, chain("Identity"));
    lay(&h, "b", "a", 0);
    h.m->lifetimes.items[rt_entry(h.m, "b")].alias_offset_bytes = 64;
    assert_refused(&h, WORDS("node 'middle' port 0 (tensor 'b')", "64 B inside 'a'"));
    open_hand(&h, chain("Identity"));
    lay(&h, "b", "a", 0);
    h.m->offsets[rt_entry(h.m, "b")] = offset_of(&h, "c");
    assert_refused(&h, WORDS("node 'middle' port 0 (tensor 'b')", "0 B inside 'a'"));
    open_hand(&h, chain("Identity"));
    lay(&h, "b", "a", 0);
    h.m->lifetimes.items[rt_entry(h.m, "b")].alias_of = 4711;
    assert_refused(&h, WORDS("node 'middle' port 0 (tensor 'b')", "entry 4711"));
    open_hand(&h, slices(true));
    lay(&h, "s", "a", 2 * ROW);
    lay(&h, "s", "a", 2 * ROW + 32);
    assert_refused(&h, WORDS("node 'cut' port 0 (tensor 's')", "multiple of 64 B"));
    open_hand(&h, chain("Identity"));
    h.m->lifetimes.items[rt_entry(h.m, "b")].kind = TIDE_KIND_KV_CACHE;
    assert_refused(&h, WORDS("node 'middle' port 0 (tensor 'b')", "KVCache"));
}

/// A fault in each of many plans: any two tensors that live together are laid on each other, all but the allowed are
/// refused.
static void test_any_two_on_each_other(void **state) {
    (void)state;
    size_t n_refused = 0, n_allowed = 0;
    for (size_t k = 0;; k++) {
        tide_graph *g = rt_graph_nth(k);
        if (g == NULL) break;
        rt_rig rig;
        rt_rig_open(&rig);
        tide_program *p = rt_build(g);
        tide_memory_plan *m = rt_plan(p, "naive");
        const tide_lifetime *items = m->lifetimes.items;
        for (size_t i = 0; i < m->lifetimes.n; i++) {
            for (size_t j = 0; j < m->lifetimes.n; j++) {
                if (i == j || items[i].persistent || items[j].persistent || items[i].size_bytes > items[j].size_bytes ||
                    !tide_lifetimes_conflict(&items[i], &items[j]))
                    continue;
                const uint64_t kept = m->offsets[i];
                m->offsets[i] = m->offsets[j];
                tide_inference_plan *ip = NULL;
                const tide_inference_plan_options opt = {
                    .device = TIDE_CPU, .registry = rig.registry, .memory_plan = m};
                const tide_status st = tide_inference_plan_create(p, &opt, &ip, NULL);
                const bool ok = st == TIDE_OK;
                if (!ok) assert_tide_status(st, TIDE_ERR_RUNTIME);
                n_allowed += ok;
                n_refused += !ok;
                tide_inference_plan_unref(ip);
                m->offsets[i] = kept;
            }
        }
        tide_memory_plan_destroy(m);
        tide_program_unref(p);
        rt_rig_close(&rig);
    }
    assert_true(n_refused > 20);
    assert_true(n_allowed > 5); // Relu and Tanh over their input, Add over one of its own
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_view_and_in_place_X6),
        tide_unit_test(test_slice_and_parts_X6),
        tide_unit_test(test_same_value_twice_in_place),
        tide_unit_test(test_split_lies_in_its_input_S23_20),
        tide_unit_test(test_a_view_copies_nothing_X6_S27_12),
        tide_unit_test(test_an_alias_has_just_its_bytes_S27_26),
        tide_unit_test(test_a_plan_for_larger_sizes_S27_23),
        tide_unit_test(test_a_red_zone_in_what_is_read_is_refused),
        tide_unit_test(test_in_place_while_it_is_needed_is_refused),
        tide_unit_test(test_operator_that_may_not_overwrite_is_refused),
        tide_unit_test(test_another_input_on_the_bytes_is_refused),
        tide_unit_test(test_same_value_where_it_may_not_be_overwritten_is_refused),
        tide_unit_test(test_slice_elsewhere_is_refused),
        tide_unit_test(test_part_elsewhere_is_refused),
        tide_unit_test(test_two_outputs_on_the_same_bytes_are_refused),
        tide_unit_test(test_scratch_on_a_tensor_is_refused),
        tide_unit_test(test_alias_that_lies_elsewhere_is_refused),
        tide_unit_test(test_any_two_on_each_other),
    };
    return tide_registry_default() == NULL ? 1 : cmocka_run_group_tests_name("sharing", tests, NULL, NULL);
}
