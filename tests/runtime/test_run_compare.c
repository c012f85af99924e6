// SPDX-License-Identifier: MIT
//
// Two runs compared tensor by tensor: kernels that do something else in the planned run are planted, and the comparison
// has to name exactly what they did.
#include "core/runtime/run_compare.h"
#include "core/runtime/runtime_internal.h"
#include "tests/runtime/rt_util.h"

enum { MOST_STEPS = 40, NONE = -1 };

/// What is planted in every kernel of a program.
static struct {
    const tide_op_def *real[MOST_STEPS];
    tide_op_def planted[MOST_STEPS];
    const tide_kernel *kernels[MOST_STEPS];
    size_t n, runs;
    int changes;        // this step makes another number
    int writer, victim; // this step writes into what that step has made
    unsigned char *victims;
} plant;

static size_t step_of(const tide_kernel *k) {
    size_t i = 0;
    while (plant.kernels[i] != k) i++;
    return i;
}

/// The runs of a comparison: naive, planned; where they differ planned, naive, planned.
static bool is_planned(void) { return plant.runs == 2 || plant.runs == 3 || plant.runs == 5; }

static tide_status run_planted(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    const size_t step = step_of(k);
    if (step == 0) plant.runs++;
    TIDE_TRY(plant.real[step]->run(k, args, err));
    if (!is_planned()) return TIDE_OK;
    if ((int)step == plant.changes) ((float *)args->out[0].data)[5] += 0.5f;
    if ((int)step == plant.victim) plant.victims = args->out[0].data;
    if ((int)step == plant.writer) plant.victims[10] ^= 0x40; // half of its value
    return TIDE_OK;
}

typedef struct rig {
    rt_rig rt;
    tide_program *p;
    tide_memory_plan *m;
    tide_inference_plan *ip;
    tide_tensor *inputs[4];
} rig;

static void open_rig(rig *r, tide_graph *g, unsigned passes) {
    rt_rig_open(&r->rt);
    r->p = rt_build(g);
    r->m = rt_plan_aliased(r->p, "search", passes, NULL);
    plant.n = r->p->n_steps;
    assert_true(plant.n <= MOST_STEPS);
    for (size_t i = 0; i < plant.n; i++) {
        plant.real[i] = r->p->steps[i].kernel.def;
        plant.planted[i] = *plant.real[i];
        plant.planted[i].run = run_planted;
        plant.kernels[i] = &r->p->steps[i].kernel;
        r->p->steps[i].kernel.def = &plant.planted[i];
    }
    r->ip = rt_inference(&r->rt, r->p, r->m);
    for (size_t i = 0; i < r->p->graph->n_inputs; i++) {
        char shape[64];
        tide_shape_format(&r->p->graph->values[r->p->graph->inputs[i]].shape, shape, sizeof shape);
        shape[strlen(shape) - 1] = '\0';
        r->inputs[i] = rt_tensor(shape + 1, i + 1); // "[4x64]"
    }
}

static void close_rig(rig *r) {
    for (size_t i = 0; i < r->p->graph->n_inputs; i++) tide_tensor_unref(r->inputs[i]);
    tide_inference_plan_unref(r->ip);
    tide_memory_plan_destroy(r->m);
    for (size_t i = 0; i < plant.n; i++) r->p->steps[i].kernel.def = plant.real[i];
    tide_program_unref(r->p);
    rt_rig_close(&r->rt);
}

static tide_run_difference compare(const rig *r, tide_fill fill) {
    tide_error err = TIDE_ERROR_INIT;
    tide_run_difference d;
    plant.runs = 0;
    assert_tide_ok(tide_runs_compare(r->ip, (tide_tensor *const *)r->inputs, r->p->graph->n_inputs, fill, &d, &err),
                   &err);
    return d;
}

static uint32_t output_of(const rig *r, size_t step) { return r->p->steps[step].kernel.node->outputs[0]; }

static bool reads(const rig *r, size_t step, uint32_t value) {
    const tide_node *node = r->p->steps[step].kernel.node;
    for (size_t i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] == value) return true;
    return false;
}

/// The first step behind `step` that reads the value; n_steps: none.
static size_t reader_behind(const rig *r, size_t step, uint32_t value) {
    size_t i = step + 1;
    while (i < r->p->n_steps && !reads(r, i, value)) i++;
    return i;
}

static void plant_nothing(void) { plant.changes = plant.writer = plant.victim = NONE; }

static void equal_runs(void **state) {
    (void)state;
    plant_nothing();
    tide_graph *g;
    for (size_t k = 0; (g = rt_graph_nth(k)) != NULL; k++) {
        for (int passes = 0; passes < 2; passes++) {
            if (passes == 1) g = rt_graph_nth(k);
            rig r;
            open_rig(&r, g, passes == 1 ? RT_ALL_ALIASES : 0);
            for (int fill = TIDE_FILL_ZERO; fill <= TIDE_FILL_POISON; fill++) {
                const tide_run_difference d = compare(&r, (tide_fill)fill);
                assert_true(d.is_equal);
                assert_true(d.n_compared >= r.p->n_steps - 1);
                assert_true(d.value == TIDE_NO_VALUE && d.overwritten == TIDE_NO_VALUE);
                assert_int_equal(plant.runs, 2);
            }
            close_rig(&r);
        }
    }
}

/// A kernel that computes something else is named, with what it made, and no later one is.
static void another_number(void **state) {
    (void)state;
    rig r;
    plant_nothing();
    open_rig(&r, rt_graph_long(), RT_ALL_ALIASES);
    for (size_t i = 0; i < r.p->n_steps; i++) {
        plant.changes = (int)i;
        const tide_run_difference d = compare(&r, TIDE_FILL_ZERO);
        assert_false(d.is_equal);
        assert_int_equal(d.step, i);
        assert_int_equal(d.nth, 0);
        assert_int_equal(d.value, output_of(&r, i));
        assert_int_equal(d.diff.n_failed, 1);
        assert_int_equal(d.diff.first_failed, 5);
        assert_float_equal(d.diff.max_abs, 0.5, 1e-5);
        assert_int_equal(d.overwritten, TIDE_NO_VALUE);
        assert_int_equal(d.n_compared, i);
    }
    plant_nothing();
    assert_true(compare(&r, TIDE_FILL_ZERO).is_equal);
    close_rig(&r);
}

/// A step that writes into a tensor that another one still reads: all three are named.
static void an_overwritten_tensor(void **state) {
    (void)state;
    rig r;
    size_t n = 0;
    plant_nothing();
    open_rig(&r, rt_graph_long(), 0); // without aliases: what is written changes nothing else
    for (size_t made = 0; made < r.p->n_steps; made++) {
        const uint32_t victim = output_of(&r, made);
        size_t last = made;
        for (size_t i = made + 1; i < r.p->n_steps; i++)
            if (reads(&r, i, victim)) last = i;
        for (size_t writer = made + 1; writer < last; writer++) {
            plant.victim = (int)made;
            plant.writer = (int)writer;
            const tide_run_difference d = compare(&r, TIDE_FILL_ZERO);
            assert_false(d.is_equal);
            assert_int_equal(d.overwritten, victim);
            assert_int_equal(d.made_by, made);
            assert_int_equal(d.overwritten_by, writer);
            assert_int_equal(d.step, reader_behind(&r, writer, victim));
            assert_int_equal(d.value, output_of(&r, d.step));
            assert_int_equal(plant.runs, 5);
            n++;
        }
    }
    assert_true(n > 8);
    close_rig(&r);
}

static void what_cannot_be_compared(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_run_difference d;
    rig r;
    plant_nothing();
    open_rig(&r, rt_graph_long(), 0);
    assert_tide_status(tide_runs_compare(r.ip, (tide_tensor *const *)r.inputs, 1, TIDE_FILL_ZERO, &d, &err),
                       TIDE_ERR_INVALID);
    assert_text_has(err.msg, "2");
    tide_inference_plan *naive_only = rt_inference(&r.rt, r.p, NULL);
    assert_tide_status(tide_runs_compare(naive_only, (tide_tensor *const *)r.inputs, 2, TIDE_FILL_ZERO, &d, &err),
                       TIDE_ERR_INVALID);
    tide_inference_plan_unref(naive_only);
    close_rig(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {tide_unit_test(equal_runs), tide_unit_test(another_number),
                                       tide_unit_test(an_overwritten_tensor), tide_unit_test(what_cannot_be_compared)};
    return cmocka_run_group_tests_name("run_compare", tests, NULL, NULL);
}
