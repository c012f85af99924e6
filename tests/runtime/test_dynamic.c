// SPDX-License-Identifier: MIT
//
// Tensors that are sized while running: other sizes in each run of one context, in both modes and under every fill;
// what the caller holds stays; what cannot be is refused with the node named, and the context runs on.
#include <math.h>
#include <pthread.h>

#include "core/runtime/runtime_internal.h"
#include "planner/plan.h"
#include "planner/plan_json.h"
#include "rt_util.h"

enum { N = 24 };

/// x -> Tanh -> a -> Reshape by n -> r -> Relu -> q -> Reshape to one row -> y; Shape(r) -> s; a -> Sigmoid -> b ->
/// Sigmoid -> z. The sizes of r, q, y and s hang on n, which is fed; a, b and z are planned.
static tide_graph *reshaped(void) {
    static const int64_t row[] = {-1};
    tide_graph *g = rt_graph("reshaped");
    rt_input(g, "x", "4x6");
    rt_input(g, "n", "2");
    g->values[tide_graph_find_value(g, "n")].dtype = TIDE_I64;
    rt_weight_i64(g, "row", row, 1);
    rt_node(g, "Tanh", "tanh", "x", "a");
    rt_node(g, "Reshape", "by_n", "a,n", "r");
    rt_node(g, "Relu", "relu", "r", "q");
    rt_node(g, "Sigmoid", "first", "a", "b");
    rt_node(g, "Shape", "shape", "r", "s");
    rt_node(g, "Reshape", "to_row", "q,row", "y");
    rt_node(g, "Sigmoid", "second", "b", "z");
    rt_output(g, "y");
    rt_output(g, "s");
    rt_output(g, "z");
    return g;
}

static tide_program *build(tide_graph *g) {
    const tide_program_options opt = {.allow_dynamic = true};
    tide_error err = TIDE_ERROR_INIT;
    tide_program *p;
    assert_tide_ok(tide_program_build(g, &opt, &p, &err), &err);
    return p;
}

static tide_tensor *numbers(int64_t a, int64_t b) {
    const int64_t list[] = {a, b};
    const tide_shape shape = tide_shape_make(1, (int64_t[]){2});
    const tide_tensor_spec spec = {.dtype = TIDE_I64, .shape = shape, .device = TIDE_CPU};
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor *t;
    void *data;
    assert_tide_ok(tide_tensor_create(&spec, &t, &err), &err);
    assert_tide_ok(tide_tensor_write(t, &data, &err), &err);
    memcpy(data, list, sizeof list);
    return t;
}

static tide_status run_with(tide_context *c, tide_tensor *x, int64_t a, int64_t b, tide_error *err) {
    tide_tensor *n = numbers(a, b);
    tide_status st = tide_context_set_inputs(c, (tide_tensor *[]){x, n}, 2, err);
    tide_tensor_unref(n);
    return st == TIDE_OK ? tide_context_run(c, err) : st;
}

static const void *bytes_of(const tide_tensor *t) {
    tide_error err = TIDE_ERROR_INIT;
    const void *data;
    assert_tide_ok(tide_tensor_read(t, &data, &err), &err);
    return data;
}

static void assert_answers(const tide_context *c, const tide_tensor *x, int64_t a, int64_t b) {
    const tide_tensor *y = tide_context_output(c, 0), *s = tide_context_output(c, 1), *z = tide_context_output(c, 2);
    const float *in = bytes_of(x), *row = bytes_of(y), *last = bytes_of(z);
    assert_int_equal(tide_tensor_shape(y)->rank, 1);
    assert_int_equal(tide_tensor_shape(y)->dims[0], N);
    assert_int_equal(((const int64_t *)bytes_of(s))[0], a);
    assert_int_equal(((const int64_t *)bytes_of(s))[1], b);
    for (size_t i = 0; i < N; i++) {
        const float t = tanhf(in[i]);
        assert_float_equal(row[i], t > 0 ? t : 0, 1e-5);
        assert_float_equal(last[i], 1 / (1 + expf(-1 / (1 + expf(-t)))), 1e-5);
    }
}

typedef struct set {
    rt_rig rig;
    tide_program *p;
    tide_memory_plan *m;
    tide_inference_plan *ip;
    tide_context *c;
    tide_tensor *x;
} set;

static void open_set(set *s, tide_run_mode mode, tide_fill fill) {
    rt_rig_open(&s->rig);
    s->p = build(reshaped());
    s->m = rt_plan_aliased(s->p, "greedy_by_size", RT_ALL_ALIASES, NULL);
    s->ip = rt_inference(&s->rig, s->p, s->m);
    s->c = rt_context(s->ip, mode, fill);
    s->x = rt_tensor("4x6", 3);
}

static void close_set(set *s) {
    tide_context_destroy(s->c);
    tide_tensor_unref(s->x);
    tide_inference_plan_unref(s->ip);
    tide_memory_plan_destroy(s->m);
    tide_program_unref(s->p);
    rt_rig_close(&s->rig);
}

/// A run leaves nothing but its outputs.
static uint64_t outputs_bytes(const tide_context *c) {
    return tide_tensor_capacity_bytes(tide_context_output(c, 0)) +
           tide_tensor_capacity_bytes(tide_context_output(c, 1));
}

static void other_sizes_in_each_run(void **state) {
    (void)state;
    static const int64_t sizes[][2] = {{2, 12}, {24, 1}, {-1, 8}, {4, 6}, {4, 6}};
    for (int mode = TIDE_RUN_NAIVE; mode <= TIDE_RUN_PLANNED; mode++)
        for (int fill = TIDE_FILL_ZERO; fill <= TIDE_FILL_POISON; fill++) {
            set s;
            tide_error err = TIDE_ERROR_INIT;
            open_set(&s, (tide_run_mode)mode, (tide_fill)fill);
            assert_null(tide_context_output(s.c, 0)); // sized while running: not there yet
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
                assert_tide_ok(run_with(s.c, s.x, sizes[i][0], sizes[i][1], &err), &err);
                assert_answers(s.c, s.x, sizes[i][0] < 0 ? 3 : sizes[i][0], sizes[i][1]);
                assert_int_equal(rt_live(&s.rig, TIDE_DYNAMIC_KIND), outputs_bytes(s.c));
                if (mode == TIDE_RUN_PLANNED) assert_int_equal(rt_live(&s.rig, TIDE_KIND_WORKSPACE), s.m->bytes);
                if (mode == TIDE_RUN_NAIVE) assert_int_equal(rt_live(&s.rig, TIDE_KIND_WORKSPACE), 0);
            }
            close_set(&s);
        }
}

static void what_the_caller_holds_stays(void **state) {
    (void)state;
    set s;
    tide_error err = TIDE_ERROR_INIT;
    open_set(&s, TIDE_RUN_PLANNED, TIDE_FILL_POISON);
    assert_tide_ok(run_with(s.c, s.x, 2, 12, &err), &err);
    tide_tensor *held = tide_tensor_ref(tide_context_output(s.c, 1));
    assert_tide_ok(run_with(s.c, s.x, 3, 8, &err), &err);
    assert_ptr_not_equal(tide_context_output(s.c, 1), held);
    assert_int_equal(((const int64_t *)bytes_of(held))[0], 2);
    assert_answers(s.c, s.x, 3, 8);
    // An output of the last run can be an input of the next one.
    tide_tensor *n = tide_tensor_ref(tide_context_output(s.c, 1));
    assert_tide_ok(tide_context_set_inputs(s.c, (tide_tensor *[]){s.x, n}, 2, &err), &err);
    assert_tide_ok(tide_context_run(s.c, &err), &err);
    assert_answers(s.c, s.x, 3, 8);
    tide_tensor_unref(n);
    tide_tensor_unref(held);
    close_set(&s);
}

static void what_cannot_be_is_refused(void **state) {
    (void)state;
    static const int64_t bad[][2] = {{5, 5}, {INT64_MAX, 4}, {-2, 12}, {-1, -1}, {0, 5}, {INT64_MIN, 24}, {7, -1}};
    for (int mode = TIDE_RUN_NAIVE; mode <= TIDE_RUN_PLANNED; mode++) {
        set s;
        tide_error err = TIDE_ERROR_INIT;
        open_set(&s, (tide_run_mode)mode, TIDE_FILL_POISON);
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            assert_int_not_equal(run_with(s.c, s.x, bad[i][0], bad[i][1], &err), TIDE_OK);
            assert_text_has(err.msg, "node 'by_n' (Reshape)");
            assert_int_equal(rt_live(&s.rig, TIDE_DYNAMIC_KIND), 0);
            assert_null(tide_context_output(s.c, 0));
            assert_tide_ok(run_with(s.c, s.x, 6, 4, &err), &err);
            assert_answers(s.c, s.x, 6, 4);
        }
        close_set(&s);
    }
}

// ---- kernels that write past the end ----

static struct {
    const tide_op_def *real;
    bool armed, into_scratch;
} plant;
enum { SCRATCH_BYTES = 100 };

static tide_status prepare_planted(const tide_prepare *x, tide_kernel *k, tide_error *err) {
    (void)x;
    (void)err;
    k->workspace_bytes = SCRATCH_BYTES;
    return TIDE_OK;
}

/// Its work; then one byte, which is in the block, but behind what was asked for.
static tide_status run_planted(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    TIDE_TRY(plant.real->run(k, args, err));
    char *end = plant.into_scratch ? (char *)args->workspace + SCRATCH_BYTES
                                   : (char *)args->out[0].data + args->out[0].size_bytes;
    if (plant.armed) end[3] = 7;
    return TIDE_OK;
}

static tide_node *node_of(const set *s, const char *name) {
    for (size_t i = 0; i < s->p->graph->n_nodes; i++)
        if (strcmp(s->p->graph->nodes[i].name, name) == 0) return &s->p->graph->nodes[i];
    fail_msg("no node '%s'", name);
    return NULL;
}

static void what_is_written_behind_the_end_is_found(void **state) {
    (void)state;
    static const struct {
        const char *node;
        bool into_scratch;
        const char *says;
    } rows[] = {{"by_n", false, "tensor 'r' of 96 B: byte 3 behind its end"},
                {"to_row", false, "tensor 'y' of 96 B: byte 3 behind its end"}, // a graph output
                {"by_n", true, "scratch of 'by_n' of 100 B: byte 3 behind its end"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        set s;
        tide_error err = TIDE_ERROR_INIT;
        open_set(&s, TIDE_RUN_PLANNED, TIDE_FILL_POISON);
        tide_node *node = node_of(&s, rows[i].node);
        plant.real = node->def;
        plant.armed = true;
        plant.into_scratch = rows[i].into_scratch;
        tide_op_def planted = *plant.real;
        planted.prepare = prepare_planted;
        planted.run = run_planted;
        node->def = &planted;
        assert_tide_status(run_with(s.c, s.x, 4, 6, &err), TIDE_ERR_RUNTIME);
        assert_text_has(err.msg, rows[i].says);
        assert_text_has(err.msg, rows[i].node);
        plant.armed = false;
        assert_tide_ok(run_with(s.c, s.x, 4, 6, &err), &err);
        node->def = plant.real;
        close_set(&s);
    }
}

// ---- many contexts at the same time ----

enum { N_THREADS = 8, N_RUNS = 60 };

typedef struct worker {
    pthread_t thread;
    tide_context *c;
    tide_tensor *x; ///< one for all
    const float *row, *last;
    int first;
    int n_wrong;
} worker;

static bool ran_right(const worker *w, int run_i) {
    static const int64_t sizes[][2] = {{2, 12}, {24, 1}, {5, 5}, {4, 6}, {-1, 3}, {1, 24}};
    const int64_t *n = sizes[(w->first + run_i) % (int)(sizeof sizes / sizeof *sizes)];
    tide_error err = TIDE_ERROR_INIT;
    const tide_status st = run_with(w->c, w->x, n[0], n[1], &err);
    if (n[0] == 5) return st != TIDE_OK && tide_context_output(w->c, 0) == NULL;
    if (st != TIDE_OK) return false;
    const int64_t *s = tide_tensor_const_data(tide_context_output(w->c, 1));
    const float *y = tide_tensor_const_data(tide_context_output(w->c, 0));
    const float *z = tide_tensor_const_data(tide_context_output(w->c, 2));
    return s[0] == (n[0] < 0 ? 8 : n[0]) && s[1] == n[1] && memcmp(y, w->row, N * sizeof *y) == 0 &&
           memcmp(z, w->last, N * sizeof *z) == 0;
}

static void *work(void *arg) {
    worker *w = arg;
    for (int i = 0; i < N_RUNS; i++) w->n_wrong += !ran_right(w, i);
    return NULL;
}

/// Each thread goes through the sizes from another one on, and through one that is refused.
static void contexts_of_other_sizes_at_the_same_time(void **state) {
    (void)state;
    set s;
    worker w[N_THREADS] = {0};
    tide_error err = TIDE_ERROR_INIT;
    open_set(&s, TIDE_RUN_PLANNED, TIDE_FILL_POISON);
    assert_tide_ok(run_with(s.c, s.x, 4, 6, &err), &err);
    for (int i = 0; i < N_THREADS; i++)
        w[i] = (worker){.c = rt_context(s.ip, i % 2 == 0 ? TIDE_RUN_PLANNED : TIDE_RUN_NAIVE, TIDE_FILL_POISON),
                        .x = s.x,
                        .row = bytes_of(tide_context_output(s.c, 0)),
                        .last = bytes_of(tide_context_output(s.c, 2)),
                        .first = i};
    for (int i = 0; i < N_THREADS; i++) assert_int_equal(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
    for (int i = 0; i < N_THREADS; i++) pthread_join(w[i].thread, NULL);
    for (int i = 0; i < N_THREADS; i++) {
        assert_int_equal(w[i].n_wrong, 0);
        tide_context_destroy(w[i].c);
    }
    assert_int_equal(rt_live(&s.rig, TIDE_DYNAMIC_KIND), outputs_bytes(s.c));
    close_set(&s);
}

// ---- sizes that cannot be ----

/// n -> ConstantOfShape -> c -> Relu -> y.
static tide_graph *of_shape(void) {
    tide_graph *g = rt_graph("of_shape");
    rt_input(g, "n", "2");
    g->values[tide_graph_find_value(g, "n")].dtype = TIDE_I64;
    rt_node(g, "ConstantOfShape", "make", "n", "c");
    rt_node(g, "Relu", "relu", "c", "y");
    rt_output(g, "y");
    return g;
}

/// A tensor may be empty; but operators multiply extents, and those beside the 0 must not wrap.
static void what_is_empty_is_counted_all_the_same(void **state) {
    (void)state;
    static const struct {
        int64_t n[2];
        bool runs;
    } rows[] = {{{0, 0}, true},          {{0, 3}, true},          {{INT64_C(1) << 60, 0}, true},
                {{INT64_MAX, 0}, false}, {{0, INT64_MAX}, false}, {{2, 3}, true}};
    rt_rig rig;
    tide_error err = TIDE_ERROR_INIT;
    rt_rig_open(&rig);
    tide_program *p = build(of_shape());
    tide_memory_plan *m = rt_plan(p, "greedy_by_size");
    tide_inference_plan *ip = rt_inference(&rig, p, m);
    tide_context *c = rt_context(ip, TIDE_RUN_PLANNED, TIDE_FILL_POISON);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tide_tensor *n = numbers(rows[i].n[0], rows[i].n[1]);
        assert_tide_ok(tide_context_set_inputs(c, &n, 1, &err), &err);
        tide_tensor_unref(n);
        assert_tide_status(tide_context_run(c, &err), rows[i].runs ? TIDE_OK : TIDE_ERR_OVERFLOW);
        if (!rows[i].runs) assert_text_has(err.msg, "node 'make' (ConstantOfShape)");
        if (rows[i].runs) assert_int_equal(tide_tensor_shape(tide_context_output(c, 0))->dims[1], rows[i].n[1]);
    }
    tide_context_destroy(c);
    tide_inference_plan_unref(ip);
    tide_memory_plan_destroy(m);
    tide_program_unref(p);
    rt_rig_close(&rig);
}

/// The plan names them, in a file too; nothing else of it knows them. Without leave they are refused, as ever.
static void a_plan_names_them(void **state) {
    (void)state;
    static const char *const names[] = {"r", "q", "s", "y"};
    tide_program *p = build(reshaped());
    tide_memory_plan *m = rt_plan(p, "greedy_by_size"), *back;
    tide_error err = TIDE_ERROR_INIT;
    tide_text text = {0};
    assert_int_equal(p->n_dynamic, 4);
    assert_tide_ok(tide_plan_to_json((const tide_memory_plan *const *)&m, 1, NULL, &text, &err), &err);
    assert_tide_ok(tide_plan_from_json(tide_text_str(&text), text.len, "p.json", NULL, &back, &err), &err);
    for (int k = 0; k < 2; k++) {
        const tide_lifetimes *lt = k == 0 ? &m->lifetimes : &back->lifetimes;
        assert_int_equal(lt->n_dynamic, 4);
        for (size_t i = 0; i < 4; i++) {
            bool is_there = false;
            for (size_t j = 0; j < 4; j++) is_there = is_there || strcmp(lt->dynamic[j], names[i]) == 0;
            assert_true(is_there);
            for (size_t j = 0; j < lt->n; j++) assert_string_not_equal(lt->items[j].name, names[i]);
        }
    }
    tide_program *none = NULL;
    assert_tide_status(tide_program_build(reshaped(), NULL, &none, &err), TIDE_ERR_UNKNOWN_SIZE);
    assert_text_has(err.msg, "Reshape 'by_n'");
    tide_text_deinit(&text);
    tide_memory_plan_destroy(back);
    tide_memory_plan_destroy(m);
    tide_program_unref(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(other_sizes_in_each_run),
        tide_unit_test(what_the_caller_holds_stays),
        tide_unit_test(what_cannot_be_is_refused),
        tide_unit_test(what_is_written_behind_the_end_is_found),
        tide_unit_test(contexts_of_other_sizes_at_the_same_time),
        tide_unit_test(what_is_empty_is_counted_all_the_same),
        tide_unit_test(a_plan_names_them),
    };
    return cmocka_run_group_tests_name("dynamic", tests, NULL, NULL);
}
