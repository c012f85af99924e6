// SPDX-License-Identifier: MIT
//
// Fill mode poison where tensors lie on each other's bytes: what a relative owns is neither checked nor taken away, and
// all the rest is watched as ever. Faults are planted by replacing the kernel of one step.
#include "core/memory/poison.h"
#include "core/runtime/runtime_internal.h"
#include "rt_util.h"

#define UNCHECKED __attribute__((no_sanitize("address"), noinline))

static struct {
    bool armed;
    void (*act)(const tide_kernel_args *args);
    tide_status (*real)(const tide_kernel *k, const tide_kernel_args *args, tide_error *err);
} plant;
static unsigned char *target;

static tide_status run_planted(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    TIDE_TRY(plant.real(k, args, err));
    if (plant.armed) plant.act(args);
    return TIDE_OK;
}

typedef struct set {
    rt_rig rig;
    tide_program *p;
    tide_memory_plan *m;
    tide_inference_plan *ip;
    tide_context *c;
    const tide_op_def *def;
    tide_op_def planted;
    size_t step_i;
} set;

static void open_planted(set *s, tide_graph *g, const char *node, void (*act)(const tide_kernel_args *)) {
    rt_rig_open(&s->rig);
    s->p = rt_build(g);
    s->step_i = SIZE_MAX;
    for (size_t i = 0; i < s->p->n_steps; i++) {
        if (strcmp(s->p->steps[i].kernel.node->name, node) == 0) s->step_i = i;
    }
    assert_true(s->step_i != SIZE_MAX);
    s->m = rt_plan_aliased(s->p, "greedy_by_size", RT_ALL_ALIASES, NULL);
    s->ip = rt_inference(&s->rig, s->p, s->m);
    s->def = s->p->steps[s->step_i].kernel.def;
    s->planted = *s->def;
    s->planted.run = run_planted;
    s->p->steps[s->step_i].kernel.def = &s->planted;
    plant.real = s->def->run;
    plant.act = act;
    plant.armed = true;
    s->c = rt_context(s->ip, TIDE_RUN_PLANNED, TIDE_FILL_POISON);
    rt_feed(s->c, s->p, &s->rig, 3);
}

static unsigned char *place_of(const set *s, const char *name) {
    const uint32_t v = tide_graph_find_value(s->p->graph, name);
    assert_true(s->ip->places[v].offset_bytes != TIDE_NO_OFFSET);
    return (unsigned char *)s->c->buffer->mem.data + s->ip->places[v].offset_bytes;
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/// Refused with all the words; without the fault the same context gives the naive run's bits. Ends the case.
static void assert_found(set *s, const char *const *words) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_context_run(s->c, &err), TIDE_ERR_RUNTIME);
    for (; *words != NULL; words++) assert_text_has(err.msg, *words);
    plant.armed = false;
    tide_context *naive = rt_context(s->ip, TIDE_RUN_NAIVE, TIDE_FILL_POISON);
    rt_feed(naive, s->p, &s->rig, 3);
    rt_run(naive);
    for (int run = 0; run < 2; run++) {
        rt_run(s->c);
        rt_assert_same_outputs(s->c, naive);
    }
    tide_context_destroy(naive);
    tide_context_destroy(s->c);
    tide_inference_plan_unref(s->ip);
    tide_memory_plan_destroy(s->m);
    s->p->steps[s->step_i].kernel.def = s->def;
    tide_program_unref(s->p);
    rt_rig_close(&s->rig);
}

// ---- faults ----

UNCHECKED static void write_behind(const tide_kernel_args *args) {
    volatile unsigned char *y = args->out[0].data;
    y[args->out[0].size_bytes + 3] = 1;
}

UNCHECKED static void write_target(const tide_kernel_args *args) {
    (void)args;
    volatile unsigned char *p = target;
    p[11] = 1;
}

UNCHECKED static void read_target(const tide_kernel_args *args) {
    ((float *)args->out[0].data)[5] += *(const float *)(const void *)(target + 20);
}

static void leave_one_out(const tide_kernel_args *args) {
    memset((float *)args->out[0].data + 7, TIDE_POISON_BYTE, sizeof(float));
}

// ---- graphs ----

/// Two parts of 256 B, one whole; the tail works in place.
static tide_graph *joined(void) {
    tide_graph *g = rt_graph("joined");
    rt_input(g, "x", "4x16");
    rt_node(g, "Tanh", "first", "x", "p0");
    rt_node(g, "Sigmoid", "second", "x", "p1");
    rt_attr_int(g, rt_node(g, "Concat", "whole", "p0,p1", "w"), "axis", 0);
    rt_node(g, "Relu", "tail", "w", "r");
    rt_node(g, "Neg", "last", "r", "y");
    rt_output(g, "y");
    return g;
}

/// a has 8 rows, of which only the middle ones live on.
static tide_graph *cut(void) {
    static const int64_t from[] = {2}, to[] = {4}, axis[] = {0};
    tide_graph *g = rt_graph("cut");
    rt_input(g, "x", "8x16");
    rt_weight_i64(g, "from", from, 1);
    rt_weight_i64(g, "to", to, 1);
    rt_weight_i64(g, "axis", axis, 1);
    rt_node(g, "Tanh", "make", "x", "a");
    rt_node(g, "Slice", "cut", "a,from,to,axis", "s");
    rt_node(g, "Neg", "other", "s", "t");
    rt_node(g, "Relu", "more", "t", "u");
    rt_node(g, "Tanh", "last", "u", "y");
    rt_output(g, "y");
    return g;
}
enum { ROW = 64 };

/// 60 floats in 256 B: an alias of it has no red zone; the bytes behind it have no owner once the root is dead.
static tide_graph *short_chain(void) {
    tide_graph *g = rt_graph("short");
    rt_input(g, "x", "4x15");
    rt_node(g, "Tanh", "make", "x", "a");
    rt_node(g, "Relu", "over", "a", "b");
    rt_node(g, "Neg", "again", "b", "c");
    rt_node(g, "Tanh", "last", "c", "y");
    rt_output(g, "y");
    return g;
}

// ---- tests ----

static void test_overrun_into_a_part_that_is_not_born_X8(void **state) {
    (void)state;
    set s;
    open_planted(&s, joined(), "first", write_behind);
    assert_true(place_of(&s, "p0") + 4 * ROW == place_of(&s, "p1"));
    assert_true(place_of(&s, "p0") == place_of(&s, "w"));
    assert_found(&s, WORDS("tensor 'p1'", "byte 3 of its place", "while it was free", "before step 1"));
}

/// The rows of a dead whole that no slice needs are poison again: written or read, it shows.
static void test_what_a_slice_leaves_has_no_owner_X8(void **state) {
    (void)state;
    set s;
    open_planted(&s, cut(), "other", write_target);
    assert_true(place_of(&s, "s") == place_of(&s, "a") + 2 * ROW);
    target = place_of(&s, "a");
    assert_found(&s, WORDS("plan buffer", "while it was free", "end of the run"));
    open_planted(&s, cut(), "more", read_target);
    assert_true(place_of(&s, "u") == place_of(&s, "s")); // in place, twice
    target = place_of(&s, "a") + 5 * ROW;
    assert_found(&s, WORDS("tensor 'u'", "element 5 of 32", "poison pattern"));
}

/// In place the input is gone when the result is looked at: what it held is asked before.
static void test_poison_in_place_is_found_X8(void **state) {
    (void)state;
    set s;
    open_planted(&s, short_chain(), "over", leave_one_out);
    assert_true(place_of(&s, "a") == place_of(&s, "b"));
    assert_found(&s, WORDS("'over'", "tensor 'b'", "element 7 of 60", "poison pattern"));
    // A number of the caller's that looks like poison passes in place too.
    tide_error err = TIDE_ERROR_INIT;
    tide_graph *g = rt_graph("moved");
    rt_input(g, "x", "4x15");
    rt_node(g, "Identity", "make", "x", "a");
    rt_node(g, "Relu", "over", "a", "b");
    rt_node(g, "Identity", "last", "b", "y");
    rt_output(g, "y");
    open_planted(&s, g, "over", leave_one_out);
    plant.armed = false;
    assert_true(place_of(&s, "a") == place_of(&s, "b"));
    tide_tensor *x = rt_tensor("4x15", 1);
    memset((float *)tide_tensor_data(x) + 7, TIDE_POISON_BYTE, sizeof(float));
    assert_tide_ok(tide_context_set_inputs(s.c, &x, 1, &err), &err);
    rt_run(s.c);
    tide_tensor_unref(x);
    rt_feed(s.c, s.p, &s.rig, 3);
    plant.armed = true;
    assert_found(&s, WORDS("tensor 'b'", "element 7"));
}

/// An alias has no red zone of its own. The red zone of its root is checked as long as the root lives; after that the
/// bytes have no owner.
static void test_red_zone_of_the_root_X8(void **state) {
    (void)state;
    set s;
    open_planted(&s, short_chain(), "make", write_behind);
    assert_found(&s, WORDS("tensor 'a' of 240 B", "byte 3 behind its end", "red zone of 16 B"));
    open_planted(&s, short_chain(), "over", write_behind);
    assert_found(&s, WORDS("tensor 'a' of 240 B", "byte 3 behind its end"));
    open_planted(&s, short_chain(), "again", write_behind); // the root is dead
    assert_found(&s, WORDS("plan buffer", "while it was free", "end of the run"));
}

/// All is poison between runs, whatever lay on what.
static void test_buffer_is_poison_between_runs_X8(void **state) {
    (void)state;
    tide_graph *(*const graphs[])(void) = {joined, cut, short_chain, rt_graph_diamond, rt_graph_conv, rt_graph_long};
    for (size_t k = 0; k < sizeof graphs / sizeof *graphs; k++) {
        rt_rig rig;
        rt_rig_open(&rig);
        tide_program *p = rt_build(graphs[k]());
        tide_memory_plan *m = rt_plan_aliased(p, "greedy_by_size", RT_ALL_ALIASES, NULL);
        tide_inference_plan *ip = rt_inference(&rig, p, m);
        tide_context *c = rt_context(ip, TIDE_RUN_PLANNED, TIDE_FILL_POISON);
        rt_feed(c, p, &rig, k);
        for (int run = 0; run < 3; run++) {
            rt_run(c);
            tide_asan_unpoison(c->buffer->mem.data, m->bytes);
            assert_int_equal(tide_poison_find(c->buffer->mem.data, m->bytes), m->bytes);
            tide_asan_poison(c->buffer->mem.data, m->bytes);
        }
        tide_host_stats before, after;
        tide_host_get_stats(&before);
        rt_run(c);
        tide_host_get_stats(&after);
        assert_int_equal(after.n_allocs, before.n_allocs);
        tide_context_destroy(c);
        tide_inference_plan_unref(ip);
        tide_memory_plan_destroy(m);
        tide_program_unref(p);
        rt_rig_close(&rig);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_overrun_into_a_part_that_is_not_born_X8),
        tide_unit_test(test_what_a_slice_leaves_has_no_owner_X8),
        tide_unit_test(test_poison_in_place_is_found_X8),
        tide_unit_test(test_red_zone_of_the_root_X8),
        tide_unit_test(test_buffer_is_poison_between_runs_X8),
    };
    return tide_registry_default() == NULL ? 1 : cmocka_run_group_tests_name("alias_poison", tests, NULL, NULL);
}
