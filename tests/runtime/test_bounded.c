// SPDX-License-Identifier: MIT
//
// Tensors that are sized while running within bounds: their places stay where they are, their shapes follow each run;
// nothing is allocated, none of them at all is a case like any other, and what is past a bound is refused before it is
// written.
#include <math.h>

#include "core/runtime/runtime_internal.h"
#include "rt_util.h"

enum { N = 24, LARGE = 1 << 20 };

/// x -> Relu -> a -> NonZero -> n (an output) -> Transpose -> t; GatherND(a, t) -> g -> Exp -> y (an output).
static tide_graph *chosen(void) {
    tide_graph *g = rt_graph("chosen");
    rt_input(g, "x", "4x6");
    rt_node(g, "Relu", "relu", "x", "a");
    rt_node(g, "NonZero", "find", "a", "n");
    rt_node(g, "Transpose", "turn", "n", "t");
    rt_node(g, "GatherND", "take", "a,t", "g");
    rt_node(g, "Exp", "exp", "g", "y");
    rt_output(g, "n");
    rt_output(g, "y");
    return g;
}

static tide_program *build(tide_graph *g, uint64_t limit, const tide_bound_given *bounds, size_t n) {
    const tide_program_options opt = {
        .allow_dynamic = true, .bound_limit_bytes = limit, .bounds = bounds, .n_bounds = n};
    tide_error err = TIDE_ERROR_INIT;
    tide_program *p;
    assert_tide_ok(tide_program_build(g, &opt, &p, &err), &err);
    return p;
}

typedef struct set {
    rt_rig rig;
    tide_program *p;
    tide_memory_plan *m;
    tide_inference_plan *ip;
    tide_context *c;
} set;

static void open_set(set *s, tide_program *p, tide_run_mode mode, tide_fill fill) {
    rt_rig_open(&s->rig);
    s->p = p;
    s->m = rt_plan_aliased(p, "greedy_by_size", RT_ALL_ALIASES, NULL);
    s->ip = rt_inference(&s->rig, p, s->m);
    s->c = rt_context(s->ip, mode, fill);
}

static void close_set(set *s) {
    tide_context_destroy(s->c);
    tide_inference_plan_unref(s->ip);
    tide_memory_plan_destroy(s->m);
    tide_program_unref(s->p);
    rt_rig_close(&s->rig);
}

/// 4x6 numbers of which the first `n` are 1, 2, 3, … and the rest is below 0.
static tide_tensor *numbers(int n) {
    tide_tensor *t = rt_tensor("4x6", 1);
    float *x = tide_tensor_data(t);
    for (int i = 0; i < N; i++) x[i] = i < n ? (float)(i + 1) / 8 : -1;
    return t;
}

static tide_status run_with(tide_context *c, int n, tide_error *err) {
    tide_tensor *x = numbers(n);
    tide_status st = tide_context_set_inputs(c, &x, 1, err);
    tide_tensor_unref(x);
    return st == TIDE_OK ? tide_context_run(c, err) : st;
}

static void assert_answers(const tide_context *c, int n) {
    const tide_tensor *where = tide_context_output(c, 0), *y = tide_context_output(c, 1);
    assert_int_equal(tide_tensor_shape(where)->dims[0], 2);
    assert_int_equal(tide_tensor_shape(where)->dims[1], n);
    assert_int_equal(tide_tensor_shape(y)->dims[0], n);
    for (int i = 0; i < n; i++) {
        const int64_t *at = tide_tensor_const_data(where);
        assert_int_equal(at[i] * 6 + at[n + i], i);
        assert_float_equal(((const float *)tide_tensor_const_data(y))[i], expf((float)(i + 1) / 8), 1e-5);
    }
}

static const int counts[] = {7, 24, 0, 1, 24, 24, 3, 0, 0};

static void places_stay_and_shapes_follow(void **state) {
    (void)state;
    for (int mode = TIDE_RUN_NAIVE; mode <= TIDE_RUN_PLANNED; mode++)
        for (int fill = TIDE_FILL_NONE; fill <= TIDE_FILL_POISON; fill++) {
            set s;
            tide_error err = TIDE_ERROR_INIT;
            tide_program *p = build(chosen(), LARGE, NULL, 0);
            assert_int_equal(p->n_dynamic, 0);
            assert_int_equal(p->n_bounded, 4);
            open_set(&s, p, (tide_run_mode)mode, (tide_fill)fill);
            assert_int_equal(s.m->lifetimes.n_dynamic, 0);
            assert_int_equal(s.m->lifetimes.items[rt_entry(s.m, "g")].size_bytes, N * sizeof(float));
            assert_null(tide_context_output(s.c, 0)); // nothing has made it
            assert_tide_ok(run_with(s.c, 24, &err), &err);
            const tide_tensor *kept = tide_context_output(s.c, 1);
            const void *at = tide_tensor_const_data(kept);
            const uint64_t n_allocs = rt_n_allocs(&s.rig);
            for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
                assert_tide_ok(run_with(s.c, counts[i], &err), &err);
                assert_answers(s.c, counts[i]);
                assert_ptr_equal(tide_context_output(s.c, 1), kept);
                if (counts[i] > 0) assert_ptr_equal(tide_tensor_const_data(kept), at);
            }
            assert_int_equal(rt_live(&s.rig, TIDE_DYNAMIC_KIND), 0);
            assert_int_equal(rt_peak(&s.rig, TIDE_DYNAMIC_KIND), 0);
            if (mode == TIDE_RUN_PLANNED) assert_int_equal(rt_n_allocs(&s.rig), n_allocs);
            if (mode == TIDE_RUN_PLANNED) assert_int_equal(rt_live(&s.rig, TIDE_KIND_WORKSPACE), s.m->bytes);
            close_set(&s);
        }
}

static void what_came_out_is_noted(void **state) {
    (void)state;
    set s;
    tide_error err = TIDE_ERROR_INIT;
    const tide_context_bounded *list;
    open_set(&s, build(chosen(), LARGE, NULL, 0), TIDE_RUN_PLANNED, TIDE_FILL_ZERO);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) assert_tide_ok(run_with(s.c, counts[i], &err), &err);
    assert_tide_ok(run_with(s.c, 5, &err), &err);
    assert_int_equal(tide_context_list_bounded(s.c, &list), 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(list[i].n_runs, sizeof counts / sizeof *counts + 1);
        assert_int_equal(list[i].least_bytes, 0);
        assert_int_equal(list[i].most_bytes, list[i].bound_bytes);
        if (strcmp(list[i].name, "n") != 0) continue;
        assert_int_equal(list[i].bound.dims[1], N);
        assert_int_equal(list[i].last.dims[1], 5);
        assert_int_equal(list[i].last_bytes, 2 * 5 * sizeof(int64_t));
    }
    close_set(&s);
}

static void past_a_bound_is_refused(void **state) {
    (void)state;
    const tide_bound_given given[] = {{"g", tide_shape_make(1, (int64_t[]){6})}};
    for (int mode = TIDE_RUN_NAIVE; mode <= TIDE_RUN_PLANNED; mode++) {
        set s;
        tide_error err = TIDE_ERROR_INIT;
        open_set(&s, build(chosen(), LARGE, given, 1), (tide_run_mode)mode, TIDE_FILL_POISON);
        assert_int_equal(s.m->lifetimes.items[rt_entry(s.m, "g")].size_bytes, 6 * sizeof(float));
        for (int n = 4; n <= 8; n++) {
            const tide_status st = run_with(s.c, n, &err);
            assert_tide_status(st, n <= 6 ? TIDE_OK : TIDE_ERR_NO_SPACE);
            if (n <= 6) {
                assert_answers(s.c, n);
                continue;
            }
            assert_text_has(err.msg, "node 'take' (GatherND): tensor 'g' comes out as float32 [");
            assert_text_has(err.msg, "its bound is [6]");
            assert_null(tide_context_output(s.c, 0)); // of a run that failed there is nothing
            assert_tide_ok(run_with(s.c, 6, &err), &err);
            assert_answers(s.c, 6);
        }
        close_set(&s);
    }
}

static void bounds_that_cannot_be(void **state) {
    (void)state;
    static const struct {
        const char *name;
        tide_shape most;
        tide_status st;
        const char *says;
    } rows[] = {
        {"none", {1, {3}}, TIDE_ERR_NOT_FOUND, "no such tensor"},
        {"a", {2, {4, 6}}, TIDE_ERR_NOT_FOUND, "not sized while running"},
        {"n", {1, {3}}, TIDE_ERR_INVALID, "has 1 extents, and the tensor 2"},
        {"n", {2, {1, 5}}, TIDE_ERR_INVALID, "extent 0 is never less than 2"},
        {"n", {2, {-1, INT64_C(1) << 62}}, TIDE_OK, NULL}, // the rule's is less
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const tide_bound_given given[] = {{rows[i].name, rows[i].most}};
        const tide_program_options opt = {
            .allow_dynamic = true, .bound_limit_bytes = LARGE, .bounds = given, .n_bounds = 1};
        tide_error err = TIDE_ERROR_INIT;
        tide_program *p = NULL;
        assert_tide_status(tide_program_build(chosen(), &opt, &p, &err), rows[i].st);
        if (rows[i].says != NULL) assert_text_has(err.msg, rows[i].says);
        if (p != NULL) tide_program_unref(p);
    }
}

/// Where a rule asks for more than the limit, nothing is planned, but what is known of it is known behind it.
static void past_the_limit_there_is_no_place(void **state) {
    (void)state;
    tide_program *p = build(chosen(), 2 * N * sizeof(int64_t) - 1, NULL, 0);
    assert_int_equal(p->n_dynamic, 2); // n and t
    assert_int_equal(p->n_bounded, 2);
    tide_program_unref(p);
    p = build(chosen(), 0, NULL, 0);
    assert_int_equal(p->n_dynamic, 4);
    tide_program_unref(p);
}

/// One plan, two contexts, other sizes in each.
static void contexts_do_not_meet(void **state) {
    (void)state;
    set s;
    tide_error err = TIDE_ERROR_INIT;
    open_set(&s, build(chosen(), LARGE, NULL, 0), TIDE_RUN_PLANNED, TIDE_FILL_POISON);
    tide_context *other = rt_context(s.ip, TIDE_RUN_PLANNED, TIDE_FILL_POISON);
    for (int n = 0; n <= N; n++) {
        assert_tide_ok(run_with(s.c, n, &err), &err);
        assert_tide_ok(run_with(other, N - n, &err), &err);
        assert_answers(s.c, n);
        assert_answers(other, N - n);
    }
    tide_context_destroy(other);
    close_set(&s);
}

// ---- an operator that is watched ----

static struct {
    const tide_op_def *real;
    int n_prepared;
    bool writes_behind;
} watch;

static tide_status prepare_watched(const tide_prepare *x, tide_kernel *k, tide_error *err) {
    watch.n_prepared++;
    return watch.real->prepare != NULL ? watch.real->prepare(x, k, err) : TIDE_OK;
}

/// Its work; then one element more, which is in the place, but behind what has come out.
__attribute__((no_sanitize("address"))) static tide_status run_watched(const tide_kernel *k,
                                                                       const tide_kernel_args *args, tide_error *err) {
    TIDE_TRY(watch.real->run(k, args, err));
    if (watch.writes_behind) ((float *)args->out[0].data)[args->out[0].shape.dims[0]] = 7;
    return TIDE_OK;
}

static tide_op_def watched(set *s, const char *name) {
    for (size_t i = 0; i < s->p->graph->n_nodes; i++) {
        tide_node *node = &s->p->graph->nodes[i];
        if (strcmp(node->name, name) != 0) continue;
        watch.real = node->def;
        watch.n_prepared = 0;
        tide_op_def def = *node->def;
        def.prepare = prepare_watched;
        def.run = run_watched;
        return def;
    }
    fail_msg("no node '%s'", name);
    return (tide_op_def){0};
}

static void set_def(set *s, const char *name, const tide_op_def *def) {
    for (size_t i = 0; i < s->p->graph->n_nodes; i++) {
        if (strcmp(s->p->graph->nodes[i].name, name) == 0) s->p->graph->nodes[i].def = def;
    }
}

static void a_kernel_is_kept_as_long_as_sizes_stay(void **state) {
    (void)state;
    static const struct { int n, prepared; } rows[] = {{7, 1}, {7, 1}, {8, 2}, {8, 2}, {0, 3}, {0, 3}, {8, 4}};
    set s;
    tide_error err = TIDE_ERROR_INIT;
    open_set(&s, build(chosen(), LARGE, NULL, 0), TIDE_RUN_PLANNED, TIDE_FILL_POISON);
    const tide_op_def def = watched(&s, "exp");
    set_def(&s, "exp", &def);
    watch.writes_behind = false;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_tide_ok(run_with(s.c, rows[i].n, &err), &err);
        assert_answers(s.c, rows[i].n);
        assert_int_equal(watch.n_prepared, rows[i].prepared);
    }
    set_def(&s, "exp", watch.real);
    close_set(&s);
}

static void what_is_written_behind_the_end_is_found(void **state) {
    (void)state;
    set s;
    tide_error err = TIDE_ERROR_INIT;
    open_set(&s, build(chosen(), LARGE, NULL, 0), TIDE_RUN_NAIVE, TIDE_FILL_POISON);
    const tide_op_def def = watched(&s, "take");
    set_def(&s, "take", &def);
    watch.writes_behind = true;
    assert_tide_status(run_with(s.c, 7, &err), TIDE_ERR_RUNTIME);
    assert_text_has(err.msg, "tensor 'g' of 28 B: byte 0 behind its end was written");
    watch.writes_behind = false;
    assert_tide_ok(run_with(s.c, 7, &err), &err);
    set_def(&s, "take", watch.real);
    close_set(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(places_stay_and_shapes_follow),
        tide_unit_test(what_came_out_is_noted),
        tide_unit_test(past_a_bound_is_refused),
        tide_unit_test(bounds_that_cannot_be),
        tide_unit_test(past_the_limit_there_is_no_place),
        tide_unit_test(contexts_do_not_meet),
        tide_unit_test(a_kernel_is_kept_as_long_as_sizes_stay),
        tide_unit_test(what_is_written_behind_the_end_is_found),
    };
    return cmocka_run_group_tests_name("bounded", tests, NULL, NULL);
}
