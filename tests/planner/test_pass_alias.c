// SPDX-License-Identifier: MIT
//
// The alias passes on programs whose answer can be worked out by hand, on sample graphs and on real models: what lies
// in what, that only intermediates do (S23-6, X-5), and what it is worth.
#include "core/graph/import.h"
#include "planner/passes.h"
#include "tests/planner/plan_test.h"
#include "tests/planner/program_case.h"

// ---- programs ----

typedef struct model {
    tide_graph *g;
    tide_program *p;
    tide_lifetimes lt;
    tide_error err;
    size_t n[TIDE_N_PASSES]; ///< what each pass has found
} model;

static model *begin(void) {
    model *m = tide_host_calloc(1, sizeof *m);
    assert_non_null(m);
    assert_tide_ok(tide_graph_create("hand-made", "", &m->g, &m->err), &m->err);
    return m;
}

static void finish(model *m) {
    tide_lifetimes_deinit(&m->lt);
    tide_program_unref(m->p);
    tide_host_free(m);
}

static void input(model *m, const char *name, const char *shape) {
    uint32_t v;
    assert_tide_ok(tide_graph_add_value(m->g, name, &v, &m->err), &m->err);
    m->g->values[v].dtype = TIDE_F32;
    m->g->values[v].has_shape = true;
    assert_tide_ok(tide_shape_parse(shape, &m->g->values[v].shape, &m->err), &m->err);
    assert_tide_ok(tide_graph_add_input(m->g, v, &m->err), &m->err);
}

static size_t names(model *m, const char *list, uint32_t *out) {
    size_t n = 0;
    for (const char *at = list; *at != '\0';) {
        const size_t len = strcspn(at, ",");
        char name[32];
        assert_true(len < sizeof name && n < 8);
        memcpy(name, at, len);
        name[len] = '\0';
        assert_tide_ok(tide_graph_intern_value(m->g, name, &out[n++], &m->err), &m->err);
        at += len + (at[len] == ',');
    }
    return n;
}

static uint32_t node(model *m, const char *op, const char *in, const char *out) {
    uint32_t in_v[8], out_v[8], node_i;
    const size_t n_in = names(m, in, in_v), n_out = names(m, out, out_v);
    assert_tide_ok(tide_graph_add_node(m->g, out, op, "", 13, in_v, n_in, out_v, n_out, &node_i, &m->err), &m->err);
    return node_i;
}

static void axis(model *m, uint32_t node_i, int64_t i) {
    tide_attr a = {.name = tide_host_strdup("axis"), .type = TIDE_ATTR_INT, .i = i};
    assert_tide_ok(tide_graph_add_attr(m->g, node_i, &a, &m->err), &m->err);
}

static void ints(model *m, uint32_t node_i, const char *name, size_t n, const int64_t *list) {
    tide_attr a = {.name = tide_host_strdup(name), .type = TIDE_ATTR_INTS, .n = n};
    a.ints = tide_host_calloc(n, sizeof *a.ints);
    assert_non_null(a.ints);
    for (size_t i = 0; i < n; i++) a.ints[i] = list[i];
    assert_tide_ok(tide_graph_add_attr(m->g, node_i, &a, &m->err), &m->err);
}

static void constant(model *m, const char *name, size_t n, const int64_t *list) {
    const int64_t dim = (int64_t)n;
    const tide_tensor_spec spec = {.dtype = TIDE_I64, .shape = tide_shape_make(1, &dim), .device = TIDE_CPU};
    uint32_t v;
    tide_tensor *t;
    assert_tide_ok(tide_tensor_create(&spec, &t, &m->err), &m->err);
    memcpy(tide_tensor_data(t), list, n * sizeof *list);
    assert_tide_ok(tide_graph_add_value(m->g, name, &v, &m->err), &m->err);
    tide_graph_set_constant(m->g, v, t);
    tide_tensor_unref(t);
}

static void output(model *m, const char *name) {
    uint32_t v;
    assert_tide_ok(tide_graph_intern_value(m->g, name, &v, &m->err), &m->err);
    assert_tide_ok(tide_graph_add_output(m->g, v, &m->err), &m->err);
}

static uint64_t bound_of(model *m) {
    uint64_t bytes;
    assert_tide_ok(tide_lower_bound(&m->lt, &bytes, NULL, &m->err), &m->err);
    return bytes;
}

static void pass(model *m, tide_pass which) {
    assert_tide_ok(tide_pass_alias(m->p, which, &m->lt, &m->n[which], &m->err), &m->err);
}

static const tide_pass all_passes[] = {TIDE_PASS_VIEWS, TIDE_PASS_SLICES, TIDE_PASS_IN_PLACE, TIDE_PASS_PARTS};

static void build(model *m, uint64_t align_bytes, bool no_fuse) {
    const tide_program_options opt = {.no_fuse = no_fuse};
    assert_tide_ok(tide_program_build(m->g, &opt, &m->p, &m->err), &m->err);
    assert_tide_ok(tide_liveness(m->p, align_bytes, &m->lt, &m->err), &m->err);
}

static void build_and_pass(model *m) {
    build(m, 256, true);
    for (size_t k = 0; k < 4; k++) pass(m, all_passes[k]);
}

static const tide_lifetime *item(const model *m, const char *name) { return &m->lt.items[index_of(&m->lt, name)]; }

static void assert_alias(const model *m, const char *name, tide_alias_kind kind, const char *of,
                         uint64_t offset_bytes) {
    const tide_lifetime *t = item(m, name);
    const char *is_of = t->alias != TIDE_ALIAS_NONE ? m->lt.items[t->alias_of].name : "";
    if (t->alias != kind || strcmp(is_of, of) != 0 || t->alias_offset_bytes != offset_bytes)
        fail_msg("'%s' is %s of '%s' at %" PRIu64 ", want %s of '%s' at %" PRIu64, name, tide_alias_kind_name(t->alias),
                 is_of, t->alias_offset_bytes, tide_alias_kind_name(kind), of, offset_bytes);
}
static void assert_alone(const model *m, const char *name) { assert_alias(m, name, TIDE_ALIAS_NONE, "", 0); }

// ---- views ----

/// a chain of views is one lifetime, as long as its last user.
static void a_chain_of_views_is_one_lifetime_X6(void **state) {
    (void)state;
    model *m = begin();
    input(m, "x", "8x16");
    constant(m, "flat", 1, (int64_t[]){-1});
    constant(m, "back", 2, (int64_t[]){4, 32});
    node(m, "Tanh", "x", "a");
    node(m, "Reshape", "a,flat", "b");
    node(m, "Reshape", "b,back", "c");
    node(m, "Identity", "c", "d");
    node(m, "Softmax", "d", "e");
    node(m, "Neg", "e", "f");
    node(m, "Sub", "f,c", "y");
    output(m, "y");
    build(m, 256, true);
    assert_int_equal(bound_of(m), 3 * 512); // c, e and f
    pass(m, TIDE_PASS_VIEWS);
    assert_int_equal(m->n[TIDE_PASS_VIEWS], 3);
    assert_alias(m, "b", TIDE_ALIAS_VIEW, "a", 0);
    assert_alias(m, "c", TIDE_ALIAS_VIEW, "b", 0);
    assert_alias(m, "d", TIDE_ALIAS_VIEW, "c", 0);
    pass(m, TIDE_PASS_VIEWS); // there is nothing left
    assert_int_equal(m->n[TIDE_PASS_VIEWS], 0);
    // e may not be written over d: c, which is read later, has the same bytes.
    pass(m, TIDE_PASS_IN_PLACE);
    assert_alone(m, "e");
    assert_alias(m, "f", TIDE_ALIAS_IN_PLACE, "e", 0);
    assert_int_equal(bound_of(m), 2 * 512);
    finish(m);
}

/// X-5, S23-6: what is fed and what is asked for keep memory of their own, on either side of an operator.
static void inputs_and_outputs_stay_alone_X5_S23_6(void **state) {
    (void)state;
    model *m = begin();
    input(m, "x", "8x16");
    node(m, "Identity", "x", "a"); // a view of an input
    node(m, "Tanh", "a", "early"); // an output that is read again
    node(m, "Relu", "early", "b"); // … in place of it
    node(m, "Neg", "b", "c");
    axis(m, node(m, "Concat", "c,early", "d"), 0); // … a part of something
    node(m, "Neg", "d", "e");
    node(m, "Identity", "e", "y");       // an output that is a view
    node(m, "Identity", "x", "through"); // from outside to outside
    node(m, "Identity", "through", "again");
    output(m, "early");
    output(m, "y");
    output(m, "through");
    output(m, "again");
    build_and_pass(m);
    assert_alone(m, "x");
    assert_alone(m, "through");
    assert_alone(m, "again");
    assert_alone(m, "a");
    assert_alone(m, "early");
    assert_alone(m, "y");
    assert_alias(m, "c", TIDE_ALIAS_IN_PLACE, "b", 0);
    assert_alias(m, "b", TIDE_ALIAS_PART, "d", 0); // with c in it
    assert_alias(m, "e", TIDE_ALIAS_IN_PLACE, "d", 0);
    finish(m);
}

// ---- in place ----

/// When two inputs die, the older one is overwritten. An input that lives on is not overwritten, nor one that is read
/// twice elsewhere.
static void in_place_takes_what_dies(void **state) {
    (void)state;
    model *m = begin();
    input(m, "x", "8x16");
    constant(m, "backwards", 8, (int64_t[]){7, 6, 5, 4, 3, 2, 1, 0});
    node(m, "Tanh", "x", "old");
    node(m, "Sigmoid", "x", "young");
    node(m, "Add", "young,old", "sum");
    node(m, "Mul", "sum,sum", "square");
    node(m, "Sub", "square,x", "less");
    node(m, "Gather", "less,backwards", "turned"); // may overwrite nothing
    node(m, "Sub", "turned,less", "last");
    node(m, "Neg", "last", "y");
    output(m, "y");
    build_and_pass(m);
    assert_alias(m, "sum", TIDE_ALIAS_IN_PLACE, "old", 0);
    assert_alias(m, "square", TIDE_ALIAS_IN_PLACE, "sum", 0);
    assert_alias(m, "less", TIDE_ALIAS_IN_PLACE, "square", 0);
    assert_alone(m, "turned");
    assert_alias(m, "last", TIDE_ALIAS_IN_PLACE, "less", 0);
    assert_int_equal(bound_of(m), 2 * 512);
    finish(m);
}

/// Another input on the same bytes: Add(a, first row of a) must not write over a, nor over the row's.
static void in_place_spares_what_else_is_read(void **state) {
    (void)state;
    model *m = begin();
    input(m, "x", "8x16");
    constant(m, "zero", 1, (int64_t[]){0});
    constant(m, "one", 1, (int64_t[]){1});
    node(m, "Tanh", "x", "a");
    node(m, "Slice", "a,zero,one,zero", "row");
    node(m, "Add", "a,row", "sum");
    node(m, "Neg", "sum", "y");
    output(m, "y");
    build_and_pass(m);
    assert_alias(m, "row", TIDE_ALIAS_SLICE, "a", 0);
    assert_alone(m, "sum");
    finish(m);
}

/// A pool is written over its own input, from the front, where that lowers the peak; elsewhere it stays.
static void in_place_shrinks_at_the_peak(void **state) {
    (void)state;
    model *m = begin();
    input(m, "x", "1x4x32x32");
    for (int i = 0; i < 2; i++) {
        const uint32_t p = node(m, "MaxPool", i == 0 ? "a" : "c", i == 0 ? "b" : "d");
        ints(m, p, "kernel_shape", 2, (int64_t[]){3, 3});
        ints(m, p, "strides", 2, (int64_t[]){2, 2});
        ints(m, p, "pads", 4, (int64_t[]){1, 1, 1, 1});
    }
    node(m, "Tanh", "x", "a");
    node(m, "Softmax", "b", "c");
    node(m, "Neg", "d", "y");
    output(m, "y");
    build_and_pass(m);
    assert_alias(m, "b", TIDE_ALIAS_IN_PLACE, "a", 0);
    assert_alias(m, "c", TIDE_ALIAS_IN_PLACE, "b", 0);
    assert_alone(m, "d"); // c is a quarter of a: there is room enough
    finish(m);
}

// ---- slices and parts ----

/// S23-20: both outputs of a Split in their own bytes; what makes of each is in place; the Concat is where the input
/// was.
static void what_is_split_and_joined_stays_where_it_is_S23_20(void **state) {
    (void)state;
    model *m = begin();
    input(m, "x", "8x16");
    constant(m, "sizes", 2, (int64_t[]){3, 5});
    node(m, "Tanh", "x", "a");
    axis(m, node(m, "Split", "a,sizes", "s,t"), 0);
    node(m, "Sigmoid", "s", "u");
    node(m, "Neg", "t", "v");
    axis(m, node(m, "Concat", "u,v", "w"), 0);
    node(m, "Neg", "w", "y");
    output(m, "y");
    build_and_pass(m);
    assert_alias(m, "s", TIDE_ALIAS_SLICE, "a", 0);
    assert_alias(m, "t", TIDE_ALIAS_SLICE, "a", 192);
    assert_alias(m, "u", TIDE_ALIAS_IN_PLACE, "s", 0);
    assert_alias(m, "v", TIDE_ALIAS_IN_PLACE, "t", 0);
    const uint32_t w = (uint32_t)index_of(&m->lt, "w"), a = (uint32_t)index_of(&m->lt, "a");
    assert_int_equal(tide_lifetimes_root(&m->lt, w, NULL), tide_lifetimes_root(&m->lt, a, NULL));
    assert_int_equal(bound_of(m), 512);
    finish(m);
}

/// Concats in Concats, as DenseNet has them: every part lies in its whole, and that in the next one.
static void nested_wholes(void **state) {
    (void)state;
    model *m = begin();
    input(m, "x", "2x16");
    node(m, "Tanh", "x", "a");
    node(m, "Sigmoid", "a", "b");
    axis(m, node(m, "Concat", "a,b", "ab"), 0);
    node(m, "Softmax", "ab", "c");
    axis(m, node(m, "Concat", "ab,c", "abc"), 0);
    node(m, "Softmax", "abc", "d");
    axis(m, node(m, "Concat", "abc,d", "abcd"), 0);
    node(m, "Neg", "abcd", "y");
    output(m, "y");
    build_and_pass(m);
    assert_alias(m, "abc", TIDE_ALIAS_PART, "abcd", 0);
    assert_alias(m, "d", TIDE_ALIAS_PART, "abcd", 512);
    assert_alias(m, "ab", TIDE_ALIAS_PART, "abc", 0);
    assert_alias(m, "c", TIDE_ALIAS_PART, "abc", 256);
    assert_alias(m, "a", TIDE_ALIAS_PART, "ab", 0);
    assert_alias(m, "b", TIDE_ALIAS_PART, "ab", 128);
    assert_int_equal(bound_of(m), 1024); // the last whole alone
    finish(m);
}

/// Two wholes want the same tensor: one gets it, the larger first, and what lies at its other end is copied.
static void a_part_has_one_whole(void **state) {
    (void)state;
    model *m = begin();
    input(m, "x", "2x16");
    input(m, "z", "6x16");
    node(m, "Tanh", "x", "small");
    node(m, "Tanh", "z", "large");
    axis(m, node(m, "Concat", "large,small", "first"), 0);
    axis(m, node(m, "Concat", "small,large", "second"), 0);
    axis(m, node(m, "Concat", "small,small", "twice"), 0);
    node(m, "Sub", "first,second", "y");
    node(m, "Neg", "twice", "v");
    output(m, "y");
    output(m, "v");
    build_and_pass(m);
    assert_alias(m, "large", TIDE_ALIAS_PART, "first", 0);
    assert_alias(m, "small", TIDE_ALIAS_PART, "first", 384);
    assert_alone(m, "second");
    assert_alone(m, "twice");
    assert_int_equal(m->n[TIDE_PASS_PARTS], 2);
    finish(m);
}

/// A part that is overwritten in place after the Concat has read it would take the whole with it.
static void an_overwritten_tensor_is_no_part(void **state) {
    (void)state;
    model *m = begin();
    input(m, "x", "2x16");
    node(m, "Tanh", "x", "a");
    node(m, "Sigmoid", "x", "b");
    axis(m, node(m, "Concat", "a,b", "w"), 0);
    node(m, "Neg", "a", "over"); // the last to read a
    node(m, "Add", "over,b", "sum");
    axis(m, node(m, "Concat", "sum,w", "v"), 0);
    node(m, "Neg", "v", "y");
    output(m, "y");
    build_and_pass(m);
    assert_alias(m, "over", TIDE_ALIAS_IN_PLACE, "a", 0);
    assert_alias(m, "sum", TIDE_ALIAS_IN_PLACE, "b", 0); // the older of the two
    assert_alias(m, "w", TIDE_ALIAS_PART, "v", 128);
    // Both parts of w are overwritten while it is needed: one goes into v with what overwrites it, one stays alone.
    assert_alias(m, "b", TIDE_ALIAS_PART, "v", 0);
    assert_alone(m, "a");
    finish(m);
}

/// A thousand operators in one place: all of them share its bytes, and none is far from the root.
static void long_chains_stay_short(void **state) {
    (void)state;
    enum { N = 1000 };
    model *m = begin();
    input(m, "x", "8x16");
    char from[16] = "x", to[16];
    for (int i = 0; i < N; i++) {
        snprintf(to, sizeof to, "v%d", i);
        node(m, i % 3 == 0 ? "Identity" : "Neg", from, to);
        memcpy(from, to, sizeof to);
    }
    output(m, from);
    build_and_pass(m);
    assert_int_equal(m->n[TIDE_PASS_VIEWS] + m->n[TIDE_PASS_IN_PLACE], N - 2); // but for the first and the output
    assert_int_equal(bound_of(m), 512);
    size_t longest = 0;
    for (uint32_t i = 0; i < m->lt.n; i++) {
        size_t n = 0;
        for (uint32_t k = i; m->lt.items[k].alias != TIDE_ALIAS_NONE; k = m->lt.items[k].alias_of) n++;
        if (n > longest) longest = n;
    }
    assert_in_range(longest, 2, 40);
    finish(m);
}

/// Rows of 20 bytes: what would not lie at a multiple of 64 bytes keeps a place of its own.
static void alignment_is_kept(void **state) {
    (void)state;
    static const uint64_t aligns[] = {16, 64, 256};
    for (size_t k = 0; k < sizeof aligns / sizeof *aligns; k++) {
        model *m = begin();
        input(m, "x", "16x5");
        constant(m, "sizes", 2, (int64_t[]){7, 9});
        node(m, "Tanh", "x", "a");
        axis(m, node(m, "Split", "a,sizes", "s,t"), 0);
        node(m, "Softmax", "s", "u");
        axis(m, node(m, "Concat", "t,u,a", "w"), 0);
        node(m, "Neg", "w", "y");
        axis(m, node(m, "Concat", "a,t", "v"), 0);
        node(m, "Neg", "v", "z");
        output(m, "y");
        output(m, "z");
        build(m, aligns[k], true);
        for (size_t i = 0; i < 4; i++) pass(m, all_passes[i]);
        assert_alias(m, "s", TIDE_ALIAS_SLICE, "a", 0);
        assert_alias(m, "t", TIDE_ALIAS_PART, "w", 0);   // would begin at 140 of a
        assert_alone(m, "u");                            // would begin at 180 of w
        assert_alias(m, "a", TIDE_ALIAS_PART, "w", 320); // and not of v, which comes later
        for (size_t i = 0; i < m->lt.n; i++) assert_int_equal(m->lt.items[i].alias_offset_bytes % 64, 0);
        tide_memory_plan *plan = make_plan(&m->lt, "greedy_by_size");
        assert_true(plan->verified);
        tide_memory_plan_destroy(plan);
        finish(m);
    }
}

// ---- on files ----

static model *read_model(const char *path, bool no_fuse) {
    model *m = tide_host_calloc(1, sizeof *m);
    char *data;
    size_t len;
    assert_non_null(m);
    assert_tide_ok(tide_read_file(path, 0, &data, &len, &m->err), &m->err);
    const bool json = strstr(path, ".json") != NULL;
    assert_tide_ok(json ? tide_graph_from_json(data, len, path, &m->g, &m->err)
                        : tide_graph_from_onnx(data, len, path, &m->g, &m->err),
                   &m->err);
    tide_host_free(data);
    // Without kernels, and so without their scratch, which follows the processor's caches: figures are the same
    // anywhere.
    const tide_program_options opt = {.no_fuse = no_fuse, .no_kernels = true};
    assert_tide_ok(tide_program_build(m->g, &opt, &m->p, &m->err), &m->err);
    assert_tide_ok(tide_liveness(m->p, 256, &m->lt, &m->err), &m->err);
    return m;
}

/// S23-6, X-5: only intermediates of the Workspace lie in anything, and only such have something in them.
static void assert_only_intermediates(const model *m) {
    for (uint32_t i = 0; i < m->lt.n; i++) {
        const tide_lifetime *t = &m->lt.items[i];
        if (t->alias == TIDE_ALIAS_NONE) continue;
        const tide_lifetime *of = &m->lt.items[t->alias_of];
        assert_int_equal(t->role, TIDE_ROLE_INTERMEDIATE);
        assert_int_equal(of->role, TIDE_ROLE_INTERMEDIATE);
        assert_false(t->persistent || of->persistent);
        assert_true(t->alias_offset_bytes % 64 == 0);
        uint64_t at;
        const uint32_t root = tide_lifetimes_root(&m->lt, i, &at);
        assert_true(at + t->size_bytes <= m->lt.items[root].size_bytes);
    }
}

/// Once more from the beginning: the same table.
static void assert_same_again(model *m) {
    tide_lifetimes again;
    assert_tide_ok(tide_liveness(m->p, 256, &again, &m->err), &m->err);
    for (size_t k = 0; k < 4; k++) assert_tide_ok(tide_pass_alias(m->p, all_passes[k], &again, NULL, &m->err), &m->err);
    assert_int_equal(again.n, m->lt.n);
    for (size_t i = 0; i < again.n; i++) {
        const tide_lifetime *x = &again.items[i], *y = &m->lt.items[i];
        assert_true(x->alias == y->alias && x->alias_of == y->alias_of &&
                    x->alias_offset_bytes == y->alias_offset_bytes);
    }
    tide_lifetimes_deinit(&again);
}

typedef struct worth {
    const char *path; ///< in sample_graphs, or models/NAME of the shared folder
    double least;     ///< of the lower bound must go
    bool no_fuse;
} worth;

/// Each pass only lowers the bound, all of them together by at least what is known to be there; twice is the same.
static void assert_worth(const char *path, const worth *w) {
    model *m = read_model(path, w->no_fuse);
    const uint64_t given = bound_of(m);
    uint64_t before = given;
    for (size_t k = 0; k < 4; k++) {
        pass(m, all_passes[k]);
        const uint64_t after = bound_of(m);
        if (after > before) fail_msg("%s: %s raises the bound", path, tide_pass_name(all_passes[k]));
        before = after;
    }
    assert_only_intermediates(m);
    assert_same_again(m);
    const double saved = 1.0 - (double)before / (double)given;
    print_message("%-46s %s %9" PRIu64 " -> %9" PRIu64 "  %5.1f %%  (%zu views, %zu slices, %zu in place, %zu parts)\n",
                  path, w->no_fuse ? "unfused" : "fused  ", given, before, 100 * saved, m->n[TIDE_PASS_VIEWS],
                  m->n[TIDE_PASS_SLICES], m->n[TIDE_PASS_IN_PLACE], m->n[TIDE_PASS_PARTS]);
    if (saved < w->least) fail_msg("%s: %.3f saved, want %.3f", path, saved, w->least);
    tide_memory_plan *plan = make_plan(&m->lt, "greedy_by_size");
    assert_true(plan->verified);
    tide_memory_plan_destroy(plan);
    finish(m);
}

static void sample_graphs_are_worth_it(void **state) {
    (void)state;
    static const worth list[] = {
        {"diamond", 0.33, false},
        {"early_output", 0.5, false},
        {"long_skip", 0.33, false},
        {"view_chain", 0.5, false},
        {"split_two_outputs", 0.5, false},
        {"inception_block", 0.12, false},
        {"resnet50", 0.25, false},
        {"resnet18", 0.12, false},
        {"squeezenet1_1", 0.16, false},
        {"densenet_block", 0.0, false},
        {"transformer_encoder", 0.27, false},
        {"decoder_kv", 0.0, false},
        {"decoder_step", 0.0, false},
        {"mobilenet_v2", 0.0, false},
        {"unet", 0.0, false},
        {"lenet5", 0.0, false},
    };
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        char below[64], path[512];
        snprintf(below, sizeof below, "sample_graphs/%s.json", list[k].path);
        assert_worth(tide_source_path(below, path, sizeof path), &list[k]);
    }
}

/// Against programs as they come, where activations are nodes of their own; and what is left to gain once they are
/// fused.
static void models_are_worth_it(void **state) {
    (void)state;
    static const worth list[] = {
        {"light-squeezenet", 0.38, true},    {"light-squeezenet", 0.16, false},  {"light-inception-v1", 0.28, true},
        {"light-inception-v1", 0.24, false}, {"light-resnet50", 0.25, true},     {"light-resnet50", 0.25, false},
        {"light-densenet121", 0.14, true},   {"light-densenet121", 0.14, false}, {"light-bvlc-alexnet", 0.37, false},
        {"light-shufflenet", 0.0, true},     {"fastestdet", 0.45, true},         {"ultraface-rfb-320", 0.25, true},
    };
    size_t n_there = 0;
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        char below[64], path[512];
        snprintf(below, sizeof below, "models/%s/model.onnx", list[k].path);
        if (tide_shared_path(below, path, sizeof path) == NULL) continue;
        assert_worth(path, &list[k]);
        n_there++;
    }
    if (n_there == 0) skip();
}

static void only_alias_passes_are_taken(void **state) {
    (void)state;
    model *m = begin();
    input(m, "x", "4");
    node(m, "Neg", "x", "y");
    output(m, "y");
    build(m, 256, true);
    assert_tide_status(tide_pass_alias(m->p, TIDE_PASS_ORDER, &m->lt, NULL, &m->err), TIDE_ERR_INVALID);
    assert_text_has(m->err.msg, "order");
    assert_tide_ok(tide_pass_alias(m->p, TIDE_PASS_PARTS, &m->lt, NULL, &m->err), &m->err);
    finish(m);
}

/// Allocation after allocation fails: the status says so and nothing is left behind.
static void without_memory(void **state) {
    (void)state;
    char path[512];
    model *m = read_model(tide_source_path("sample_graphs/inception_block.json", path, sizeof path), false);
    for (size_t k = 0; k < 4; k++) {
        for (int64_t fail_at = 0;; fail_at++) {
            tide_lifetimes lt;
            assert_tide_ok(tide_lifetimes_copy(&m->lt, &lt, &m->err), &m->err);
            tide_host_fail_after(fail_at);
            const tide_status st = tide_pass_alias(m->p, all_passes[k], &lt, NULL, &m->err);
            tide_host_fail_after(-1);
            tide_lifetimes_deinit(&lt);
            if (st == TIDE_OK) break;
            assert_tide_status(st, TIDE_ERR_NOMEM);
            assert_true(fail_at < 1000);
        }
    }
    finish(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(a_chain_of_views_is_one_lifetime_X6),
        tide_unit_test(inputs_and_outputs_stay_alone_X5_S23_6),
        tide_unit_test(in_place_takes_what_dies),
        tide_unit_test(in_place_spares_what_else_is_read),
        tide_unit_test(in_place_shrinks_at_the_peak),
        tide_unit_test(what_is_split_and_joined_stays_where_it_is_S23_20),
        tide_unit_test(nested_wholes),
        tide_unit_test(a_part_has_one_whole),
        tide_unit_test(an_overwritten_tensor_is_no_part),
        tide_unit_test(long_chains_stay_short),
        tide_unit_test(alignment_is_kept),
        tide_unit_test(sample_graphs_are_worth_it),
        tide_unit_test(models_are_worth_it),
        tide_unit_test(only_alias_passes_are_taken),
        tide_unit_test(without_memory),
    };
    return tide_registry_default() == NULL ? 1 : cmocka_run_group_tests_name("pass_alias", tests, NULL, NULL);
}
