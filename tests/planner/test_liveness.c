// SPDX-License-Identifier: MIT
//
// planner/liveness: lifetimes of programs that are put together by hand, without operators or kernels.
#include "tests/planner/plan_test.h"

/// A program under construction; one step a node, in the order of adding.
typedef struct model {
    tide_graph *graph;
    tide_program program;
    tide_program_step steps[64];
} model;

static model *model_begin(void) {
    model *m = tide_host_calloc(1, sizeof *m);
    assert_non_null(m);
    assert_tide_status(tide_graph_create("hand-made", "", &m->graph, NULL), TIDE_OK);
    m->program.graph = m->graph;
    m->program.steps = m->steps;
    return m;
}

static void model_end(model *m) {
    tide_graph_destroy(m->graph);
    tide_host_free(m);
}

/// A float32 value of `n` elements; n < 0: unknown extent.
static uint32_t value(model *m, const char *name, int64_t n) {
    uint32_t v;
    assert_tide_status(tide_graph_add_value(m->graph, name, &v, NULL), TIDE_OK);
    m->graph->values[v].dtype = TIDE_F32;
    m->graph->values[v].has_shape = true;
    m->graph->values[v].shape = tide_shape_make(1, &n);
    return v;
}

static uint32_t input(model *m, const char *name, int64_t n) {
    const uint32_t v = value(m, name, n);
    assert_tide_status(tide_graph_add_input(m->graph, v, NULL), TIDE_OK);
    return v;
}

static uint32_t constant(model *m, const char *name, int64_t n) {
    const uint32_t v = value(m, name, n);
    tide_tensor *t;
    const tide_shape shape = tide_shape_make(1, &n);
    assert_tide_status(tide_tensor_create_unbound(TIDE_F32, &shape, TIDE_CPU, &t, NULL), TIDE_OK);
    tide_graph_set_constant(m->graph, v, t);
    tide_tensor_unref(t);
    return v;
}

static void output(model *m, uint32_t v) { assert_tide_status(tide_graph_add_output(m->graph, v, NULL), TIDE_OK); }

static void node(model *m, const char *name, const uint32_t *in, size_t n_in, const uint32_t *out, size_t n_out,
                 size_t workspace_bytes) {
    uint32_t n;
    assert_tide_status(tide_graph_add_node(m->graph, name, "Op", "", 13, in, n_in, out, n_out, &n, NULL), TIDE_OK);
    assert_true(m->program.n_steps < 64);
    m->steps[m->program.n_steps++] = (tide_program_step){.node = n, .kernel.workspace_bytes = workspace_bytes};
}

static uint32_t unary(model *m, const char *name, uint32_t in, const char *out, int64_t n) {
    const uint32_t v = value(m, out, n);
    node(m, name, &in, 1, &v, 1, 0);
    return v;
}

static void analyse(model *m, tide_lifetimes *lt) {
    tide_error err = TIDE_ERROR_INIT;
    *lt = (tide_lifetimes){0};
    assert_tide_ok(tide_liveness(&m->program, TIDE_DEFAULT_ALIGN, lt, &err), &err);
}

typedef struct row {
    const char *name;
    uint64_t bytes;
    int64_t begin, end;
    tide_role role;
    tide_memory_kind kind;
    bool persistent;
} row;

static void assert_rows(const tide_lifetimes *lt, const row *rows, size_t n) {
    for (size_t i = 0; i < n && i < lt->n; i++) {
        const tide_lifetime *x = &lt->items[i];
        assert_string_equal(x->name, rows[i].name);
        if (x->size_bytes != rows[i].bytes || x->begin_step != rows[i].begin || x->end_step != rows[i].end ||
            x->role != rows[i].role || x->kind != rows[i].kind || x->persistent != rows[i].persistent)
            fail_msg("'%s': %" PRIu64 " bytes [%" PRId64 ", %" PRId64 ") %s %s %d", x->name, x->size_bytes,
                     x->begin_step, x->end_step, tide_role_name(x->role), tide_memory_kind_name(x->kind),
                     x->persistent);
    }
    assert_int_equal(lt->n, n);
}

#define INTERMEDIATE TIDE_ROLE_INTERMEDIATE, TIDE_KIND_WORKSPACE, false
#define SCRATCH TIDE_ROLE_SCRATCH, TIDE_KIND_WORKSPACE, false
#define INPUT TIDE_ROLE_INPUT, TIDE_KIND_DEFAULT, true
#define OUTPUT TIDE_ROLE_OUTPUT, TIDE_KIND_DEFAULT, true
#define WEIGHT TIDE_ROLE_WEIGHT, TIDE_KIND_PERSISTENT, true

// S23-4, S23-5, S23-6: golden table of six nodes with weights, scratch, a two-output node and an unused output.
static void six_nodes(void **state) {
    (void)state;
    model *m = model_begin();
    const uint32_t x = input(m, "x", 10), w = constant(m, "w", 100);
    (void)constant(m, "nobody's", 1000);
    const uint32_t a = value(m, "a", 20), b = value(m, "b", 30), c = value(m, "c", 40), d = value(m, "d", 5);
    const uint32_t e = value(m, "e", 6), f = value(m, "f", 7), y = value(m, "y", 8);
    node(m, "conv", (uint32_t[]){x, w}, 2, &a, 1, 999);
    node(m, "relu", &a, 1, &b, 1, 0);
    node(m, "split", &b, 1, (uint32_t[]){c, d}, 2, 0);
    node(m, "left", &c, 1, &e, 1, 0);
    node(m, "right", (uint32_t[]){d, TIDE_NO_VALUE}, 2, &f, 1, 0);
    node(m, "add", (uint32_t[]){a, e, f}, 3, &y, 1, 64);
    output(m, y);
    static const row want[] = {
        {"x", 40, 0, 6, INPUT},
        {"w", 400, 0, 6, WEIGHT},
        {"a", 80, 0, 6, INTERMEDIATE},
        {"conv.scratch", 999, 0, 1, SCRATCH},
        {"b", 120, 1, 3, INTERMEDIATE},
        {"c", 160, 2, 4, INTERMEDIATE},
        {"d", 20, 2, 5, INTERMEDIATE},
        {"e", 24, 3, 6, INTERMEDIATE},
        {"f", 28, 4, 6, INTERMEDIATE},
        {"y", 32, 0, 6, OUTPUT},
        {"add.scratch", 64, 5, 6, SCRATCH},
    };
    for (int run = 0; run < 100; run++) {
        tide_lifetimes lt;
        analyse(m, &lt);
        assert_rows(&lt, want, sizeof want / sizeof want[0]);
        assert_int_equal(lt.n_steps, 6);
        assert_int_equal(lt.n_step_names, 6);
        assert_string_equal(lt.step_names[2], "split");
        assert_string_equal(lt.model, "hand-made");
        assert_int_equal(lt.items[6].node, 2);
        assert_int_equal(lt.items[6].port, 1);
        assert_int_equal(lt.items[6].value, d);
        assert_int_equal(lt.items[3].value, TIDE_NO_INDEX);
        assert_int_equal(lt.items[3].align_bytes, TIDE_DEFAULT_ALIGN);
        tide_lifetimes_deinit(&lt);
    }
    model_end(m);
}

// S23-5: a skip connection used ten steps later lives until then; an unused value lives one step.
static void a_skip_of_ten_steps(void **state) {
    (void)state;
    model *m = model_begin();
    uint32_t v = input(m, "x", 4);
    uint32_t skip = 0;
    for (int i = 0; i < 12; i++) {
        char nodes[16], values[16];
        snprintf(nodes, sizeof nodes, "n%d", i);
        snprintf(values, sizeof values, "v%d", i);
        v = unary(m, nodes, v, values, 4);
        if (i == 2) skip = v;
    }
    const uint32_t y = value(m, "y", 4), unused = value(m, "unused", 4);
    node(m, "add", (uint32_t[]){v, skip}, 2, (uint32_t[]){y, unused}, 2, 0);
    output(m, y);
    tide_lifetimes lt;
    analyse(m, &lt);
    const tide_lifetime *s = &lt.items[index_of(&lt, "v2")];
    assert_int_equal(s->begin_step, 2);
    assert_int_equal(s->end_step - 1, 12); // the seed's death: index of the last consumer
    assert_int_equal(lt.items[index_of(&lt, "v3")].end_step - 1, 4);
    const tide_lifetime *u = &lt.items[index_of(&lt, "unused")];
    assert_int_equal(u->begin_step, 12);
    assert_int_equal(u->end_step, 13);
    tide_lifetimes_deinit(&lt);
    model_end(m);
}

// S23-20: both outputs of a split live on their own, and no plan gives them common bytes.
static void a_split_has_two_entries(void **state) {
    (void)state;
    model *m = model_begin();
    const uint32_t x = input(m, "x", 64), l = value(m, "l", 32), r = value(m, "r", 32), y = value(m, "y", 64);
    node(m, "split", &x, 1, (uint32_t[]){l, r}, 2, 0);
    node(m, "join", (uint32_t[]){r, l}, 2, &y, 1, 0);
    output(m, y);
    tide_lifetimes lt;
    analyse(m, &lt);
    const size_t li = index_of(&lt, "l"), ri = index_of(&lt, "r");
    assert_int_equal(lt.items[li].port, 0);
    assert_int_equal(lt.items[ri].port, 1);
    const tide_strategy *const *all;
    const size_t n = tide_strategies(&all);
    for (size_t s = 0; s < n; s++) {
        tide_memory_plan *plan = make_plan(&lt, all[s]->name);
        const uint64_t a = plan->offsets[li], b = plan->offsets[ri];
        assert_true(a + 256 <= b || b + 256 <= a);
        tide_memory_plan_destroy(plan);
    }
    tide_lifetimes_deinit(&lt);
    model_end(m);
}

// a graph output made early and used later is persistent: its place is its own for the whole run.
static void an_early_output_is_persistent(void **state) {
    (void)state;
    model *m = model_begin();
    const uint32_t x = input(m, "x", 4);
    const uint32_t early = unary(m, "n0", x, "early", 4);
    const uint32_t late = unary(m, "n1", early, "late", 4);
    output(m, late);
    output(m, early);
    tide_lifetimes lt;
    analyse(m, &lt);
    static const row want[] = {{"x", 16, 0, 2, INPUT}, {"early", 16, 0, 2, OUTPUT}, {"late", 16, 0, 2, OUTPUT}};
    assert_rows(&lt, want, 3);
    tide_lifetimes_deinit(&lt);
    model_end(m);
}

// An output that no step makes is listed by its own role and once more as the block that the runtime copies it to.
static void outputs_that_are_handed_through(void **state) {
    (void)state;
    model *m = model_begin();
    const uint32_t x = input(m, "x", 4), k = constant(m, "k", 8);
    (void)input(m, "x.output", 1); // takes the name that would be made up
    output(m, x);
    output(m, k);
    tide_lifetimes lt;
    analyse(m, &lt);
    static const row want[] = {{"x", 16, 0, 1, INPUT},
                               {"x.output", 4, 0, 1, INPUT},
                               {"k", 32, 0, 1, WEIGHT},
                               {"x.output.2", 16, 0, 1, OUTPUT},
                               {"k.output", 32, 0, 1, OUTPUT}};
    assert_rows(&lt, want, 5);
    assert_int_equal(lt.items[3].value, x);
    assert_int_equal(lt.items[4].value, k);
    assert_int_equal(lt.n_steps, 1); // everything folded away: what is persistent lives somewhere
    assert_int_equal(lt.n_step_names, 0);
    tide_memory_plan *plan = make_plan(&lt, "greedy_by_size");
    assert_int_equal(plan->bytes, 0);
    assert_true(plan->verified);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
    model_end(m);
}

static void scratch_names_are_unique(void **state) {
    (void)state;
    model *m = model_begin();
    const uint32_t x = input(m, "x", 1), a = value(m, "n.scratch", 1), b = value(m, "b", 1);
    node(m, "n", &x, 1, &a, 1, 10);
    node(m, "n", &a, 1, &b, 1, 20);
    output(m, b);
    tide_lifetimes lt;
    analyse(m, &lt);
    assert_int_equal(lt.items[index_of(&lt, "n.scratch")].role, TIDE_ROLE_INTERMEDIATE);
    assert_int_equal(lt.items[index_of(&lt, "n.scratch.2")].size_bytes, 10);
    assert_int_equal(lt.items[index_of(&lt, "n.scratch.3")].size_bytes, 20);
    tide_lifetimes_deinit(&lt);
    model_end(m);
}

// S23-15: 0 and what is no power of two is refused; a small alignment still leaves elements and scratch straight.
static void alignments(void **state) {
    (void)state;
    model *m = model_begin();
    const uint32_t x = input(m, "x", 3), y = value(m, "y", 3);
    node(m, "n", &x, 1, &y, 1, 10);
    static const uint64_t bad[] = {0, 3, 48, 257};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tide_lifetimes lt = {0};
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_status(tide_liveness(&m->program, bad[i], &lt, &err), TIDE_ERR_INVALID);
        assert_text_has(err.msg, "power of two");
        assert_int_equal(lt.n, 0);
    }
    tide_lifetimes lt = {0};
    assert_tide_status(tide_liveness(&m->program, 1, &lt, NULL), TIDE_OK);
    assert_int_equal(lt.items[index_of(&lt, "y")].align_bytes, 4);
    assert_int_equal(lt.items[index_of(&lt, "n.scratch")].align_bytes, 64);
    tide_lifetimes_deinit(&lt);
    model_end(m);
}

static void assert_refused(model *m, tide_status want, const char *name, const char *words) {
    tide_lifetimes lt = {0};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_liveness(&m->program, TIDE_DEFAULT_ALIGN, &lt, &err), want);
    assert_text_has(err.msg, name);
    assert_text_has(err.msg, words);
    assert_int_equal(lt.n, 0);
    assert_null(lt.items);
}

// S23-19: an unknown size ends the analysis and names the tensor; nothing is guessed.
static void unknown_sizes_are_not_guessed(void **state) {
    (void)state;
    model *m = model_begin();
    const uint32_t x = input(m, "x", 3);
    const uint32_t mid = unary(m, "n", x, "mid", TIDE_DIM_UNKNOWN);
    (void)unary(m, "o", mid, "y", 3);
    assert_refused(m, TIDE_ERR_UNKNOWN_SIZE, "'mid'", "unknown");
    m->graph->values[mid].has_shape = false;
    assert_refused(m, TIDE_ERR_UNKNOWN_SIZE, "'mid'", "no shape");
    m->graph->values[mid].dtype = TIDE_DTYPE_UNDEFINED;
    assert_refused(m, TIDE_ERR_UNKNOWN_SIZE, "'mid'", "no element type");
    model_end(m);
}

static void sizes_that_overflow_are_refused(void **state) {
    (void)state;
    model *m = model_begin();
    const uint32_t x = input(m, "x", 3);
    (void)unary(m, "n", x, "huge", INT64_MAX / 4); // fits in bytes, not when rounded up to 256
    assert_refused(m, TIDE_ERR_OVERFLOW, "'huge'", "");
    m->graph->values[1].shape.dims[0] = INT64_MAX; // elements fit, bytes do not
    assert_refused(m, TIDE_ERR_OVERFLOW, "'huge'", "");
    model_end(m);
}

static void broken_programs_are_refused(void **state) {
    (void)state;
    model *m = model_begin();
    const uint32_t x = input(m, "x", 3), a = value(m, "a", 3), b = value(m, "b", 3), orphan = value(m, "orphan", 3);
    node(m, "first", &a, 1, &b, 1, 0);
    node(m, "second", &x, 1, &a, 1, 0);
    assert_refused(m, TIDE_ERR_INVALID, "'a'", "before step 1 makes it");
    const tide_program_step t = m->steps[0];
    m->steps[0] = m->steps[1];
    m->steps[1] = t;
    output(m, orphan);
    assert_refused(m, TIDE_ERR_BAD_INPUT, "'orphan'", "nothing makes");
    const uint32_t c = value(m, "c", 3);
    node(m, "third", &orphan, 1, &c, 1, 0);
    assert_refused(m, TIDE_ERR_BAD_INPUT, "'orphan'", "nothing makes");
    model_end(m);
}

static void empty_tensors_are_listed(void **state) {
    (void)state;
    model *m = model_begin();
    const uint32_t x = input(m, "x", 3);
    const uint32_t none = unary(m, "n", x, "none", 0);
    const uint32_t y = unary(m, "o", none, "y", 3);
    output(m, y);
    tide_lifetimes lt;
    analyse(m, &lt);
    tide_memory_plan *plan = make_plan(&lt, "greedy_color");
    const size_t i = index_of(&lt, "none");
    assert_int_equal(lt.items[i].size_bytes, 0);
    assert_int_equal(plan->offsets[i], 0);
    assert_int_equal(plan->bytes, 0);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
    model_end(m);
}

/// A random graph: every node reads one to three earlier values and makes one or two.
static model *random_model(uint64_t seed) {
    tide_rng rng = {seed};
    model *m = model_begin();
    uint32_t pool[128];
    size_t n_pool = 0;
    pool[n_pool++] = input(m, "x0", 1 + (int64_t)tide_rng_below(&rng, 500));
    pool[n_pool++] = input(m, "x1", 1 + (int64_t)tide_rng_below(&rng, 500));
    const size_t n_nodes = 2 + tide_rng_below(&rng, 25);
    for (size_t i = 0; i < n_nodes; i++) {
        char name[64];
        snprintf(name, sizeof name, "w%zu", i);
        if (tide_rng_below(&rng, 3) == 0) pool[n_pool++] = constant(m, name, 1 + (int64_t)tide_rng_below(&rng, 900));
        uint32_t in[3], out[2];
        const size_t n_in = 1 + tide_rng_below(&rng, 3), n_out = 1 + tide_rng_below(&rng, 2);
        for (size_t k = 0; k < n_in; k++) in[k] = pool[tide_rng_below(&rng, n_pool)];
        for (size_t k = 0; k < n_out; k++) {
            snprintf(name, sizeof name, "v%zu_%zu", i, k);
            out[k] = value(m, name, (int64_t)tide_rng_below(&rng, 700));
        }
        snprintf(name, sizeof name, "n%zu", i);
        node(m, name, in, n_in, out, n_out, tide_rng_below(&rng, 3) == 0 ? tide_rng_below(&rng, 2000) : 0);
        for (size_t k = 0; k < n_out; k++) {
            pool[n_pool++] = out[k];
            if (tide_rng_below(&rng, 6) == 0) output(m, out[k]);
        }
    }
    return m;
}

// S23-6: in the plans of 1,000 random graphs no input, output or weight shares a byte with an intermediate.
static void nothing_persistent_is_shared(void **state) {
    (void)state;
    size_t n_persistent = 0, n_planned = 0;
    const tide_strategy *const *all;
    const size_t n_strategies = tide_strategies(&all);
    for (uint64_t seed = 0; seed < 1000; seed++) {
        model *m = random_model(seed);
        tide_lifetimes lt;
        analyse(m, &lt);
        for (size_t s = 0; s < n_strategies; s++) {
            tide_memory_plan *plan = make_plan(&lt, all[s]->name);
            for (size_t i = 0; i < lt.n; i++) {
                const tide_value *v = lt.items[i].value != TIDE_NO_INDEX ? &m->graph->values[lt.items[i].value] : NULL;
                const bool must = v != NULL && (v->is_input || v->is_output || v->constant != NULL);
                assert_int_equal(lt.items[i].persistent, must);
                // The buffer holds what has an offset; what is persistent has none, and so no byte of it.
                assert_int_equal(plan->offsets[i] == TIDE_NO_OFFSET, must);
                if (must) assert_int_equal(plan->pools[i], TIDE_NO_POOL);
                n_persistent += must;
                n_planned += !must;
            }
            assert_sound(plan);
            tide_memory_plan_destroy(plan);
        }
        tide_lifetimes_deinit(&lt);
        model_end(m);
    }
    assert_true(n_persistent > 10000 && n_planned > 10000);
}

static void no_memory_leaves_nothing(void **state) {
    (void)state;
    model *m = random_model(5);
    tide_status st = TIDE_ERR_NOMEM;
    int64_t n = 0;
    for (; st != TIDE_OK; n++) {
        tide_host_stats before, after;
        tide_lifetimes lt = {0};
        tide_host_get_stats(&before);
        tide_host_fail_after(n);
        st = tide_liveness(&m->program, 256, &lt, NULL);
        tide_host_fail_after(-1);
        tide_lifetimes_deinit(&lt);
        tide_host_get_stats(&after);
        assert_int_equal(before.n_live, after.n_live);
        if (st != TIDE_OK) assert_tide_status(st, TIDE_ERR_NOMEM);
    }
    assert_true(n > 20);
    model_end(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(six_nodes),
        tide_unit_test(a_skip_of_ten_steps),
        tide_unit_test(a_split_has_two_entries),
        tide_unit_test(an_early_output_is_persistent),
        tide_unit_test(outputs_that_are_handed_through),
        tide_unit_test(scratch_names_are_unique),
        tide_unit_test(alignments),
        tide_unit_test(unknown_sizes_are_not_guessed),
        tide_unit_test(sizes_that_overflow_are_refused),
        tide_unit_test(broken_programs_are_refused),
        tide_unit_test(empty_tensors_are_listed),
        tide_unit_test(nothing_persistent_is_shared),
        tide_unit_test(no_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
