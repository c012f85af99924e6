// SPDX-License-Identifier: MIT
//
// The strict rule: what a memory plan must hold for a program, and each way in which it may not (S27-11, S27-13,
// S27-26). Every plan here is a sound one that is broken in one place.
#include <inttypes.h>

#include "core/base/log.h"
#include "core/base/text.h"
#include "core/runtime/runtime_internal.h"
#include "rt_util.h"

static void keep_line(void *ctx, tide_log_level level, const char *line) {
    (void)level;
    tide_text_add(ctx, line);
}

typedef struct broken {
    rt_rig rig;
    tide_program *p;
    tide_memory_plan *m;
} broken;

static void open_case(broken *b, tide_graph *g) {
    rt_rig_open(&b->rig);
    b->p = rt_build(g);
    b->m = rt_plan(b->p, "greedy_by_size");
}

static size_t entry_of(const tide_memory_plan *m, const char *name) {
    for (size_t i = 0; i < m->lifetimes.n; i++) {
        if (strcmp(m->lifetimes.items[i].name, name) == 0) return i;
    }
    fail_msg("no entry '%s'", name);
    return 0;
}

/// The plan is refused with `want`, the message and the log have node and port, and nothing is left behind.
static void close_refused(broken *b, tide_status want, const char *node, const char *port, const char *word) {
    tide_error err = TIDE_ERROR_INIT;
    tide_text log = {0};
    tide_log_set(keep_line, &log, TIDE_LOG_ERROR);
    const tide_inference_plan_options opt = {.device = TIDE_CPU, .registry = b->rig.registry, .memory_plan = b->m};
    tide_inference_plan *ip = NULL;
    assert_tide_status(tide_inference_plan_create(b->p, &opt, &ip, &err), want);
    tide_log_set(NULL, NULL, TIDE_LOG_ERROR);
    assert_null(ip);
    assert_text_has(err.msg, "check memory plan");
    assert_text_has(err.msg, node);
    assert_text_has(err.msg, port);
    assert_text_has(err.msg, word);
    // Needs, offset where there is one, and size of the buffer, in the message and in the log line.
    char buffer[40];
    const tide_plan_buffer *work = tide_memory_plan_buffer(b->m, TIDE_CPU, TIDE_KIND_WORKSPACE);
    snprintf(buffer, sizeof buffer, "buffer of %" PRIu64 " B", work->bytes);
    assert_text_has(tide_text_str(&log), node);
    assert_text_has(tide_text_str(&log), port);
    assert_text_has(tide_text_str(&log), word);
    assert_text_has(tide_text_str(&log), want == TIDE_ERR_NO_SPACE ? buffer : "");
    assert_text_has(tide_text_str(&log), want == TIDE_ERR_NO_SPACE ? "offset" : "");
    assert_text_has(err.msg, want == TIDE_ERR_NO_SPACE ? buffer : "");
    tide_text_deinit(&log);
    // The same refusal without an error object.
    assert_tide_status(tide_inference_plan_create(b->p, &opt, &ip, NULL), want);
    tide_memory_plan_destroy(b->m);
    tide_program_unref(b->p);
    rt_rig_close(&b->rig);
}

static void delete_entry(tide_memory_plan *m, const char *name) {
    const size_t i = entry_of(m, name);
    tide_host_free(m->lifetimes.items[i].name);
    const size_t behind = m->lifetimes.n - i - 1;
    memmove(&m->lifetimes.items[i], &m->lifetimes.items[i + 1], behind * sizeof m->lifetimes.items[0]);
    memmove(&m->offsets[i], &m->offsets[i + 1], behind * sizeof m->offsets[0]);
    if (m->pools != NULL) memmove(&m->pools[i], &m->pools[i + 1], behind * sizeof m->pools[0]);
    m->lifetimes.n--;
}

static void test_missing_entry_S27_13(void **state) {
    (void)state;
    broken b;
    open_case(&b, rt_graph_diamond());
    delete_entry(b.m, "c");
    close_refused(&b, TIDE_ERR_RUNTIME, "'right'", "port 0 (tensor 'c')", "no entry");
}

static void test_missing_scratch_S27_13(void **state) {
    (void)state;
    broken b;
    open_case(&b, rt_graph_conv());
    const char *node = NULL;
    for (size_t i = 0; i < b.p->n_steps && node == NULL; i++) {
        // A kernel that asks for scratch: given some here when none of this build's does.
        if (b.p->steps[i].kernel.workspace_bytes > 0) node = b.p->steps[i].kernel.node->name;
    }
    if (node == NULL) {
        node = b.p->steps[0].kernel.node->name;
        b.p->steps[0].kernel.workspace_bytes = 100;
    } else {
        char name[64];
        snprintf(name, sizeof name, "%s.scratch", node);
        delete_entry(b.m, name);
    }
    close_refused(&b, TIDE_ERR_RUNTIME, node, "scratch", "no entry");
}

static void test_no_offset_S27_11(void **state) {
    (void)state;
    broken b;
    open_case(&b, rt_graph_diamond());
    b.m->offsets[entry_of(b.m, "b")] = TIDE_NO_OFFSET;
    close_refused(&b, TIDE_ERR_RUNTIME, "'left'", "port 0", "no offset");
}

static void test_outside_S27_11(void **state) {
    (void)state;
    broken b;
    open_case(&b, rt_graph_diamond());
    b.m->offsets[entry_of(b.m, "b")] = b.m->bytes;
    close_refused(&b, TIDE_ERR_NO_SPACE, "'left'", "port 0", "outside");
}

/// The last aligned offset there is: offset + size wraps around to a small number.
static void test_wrap_around_S27_11(void **state) {
    (void)state;
    broken b;
    open_case(&b, rt_graph_diamond());
    b.m->offsets[entry_of(b.m, "b")] = UINT64_MAX - 255;
    close_refused(&b, TIDE_ERR_NO_SPACE, "'left'", "port 0", "outside");
}

static void test_too_small_S27_11(void **state) {
    (void)state;
    broken b;
    open_case(&b, rt_graph_diamond());
    b.m->lifetimes.items[entry_of(b.m, "c")].size_bytes -= 1;
    close_refused(&b, TIDE_ERR_NO_SPACE, "'right'", "port 0", "needs 1024 B");
}

static void test_misaligned(void **state) {
    (void)state;
    broken b;
    open_case(&b, rt_graph_diamond());
    b.m->buffers[0].bytes += 512;
    b.m->offsets[entry_of(b.m, "b")] += 8;
    close_refused(&b, TIDE_ERR_RUNTIME, "'left'", "port 0", "multiple of 256");
}

/// A plan of another program with the same names would let a live tensor be overwritten.
static void test_stale_plan(void **state) {
    (void)state;
    broken b;
    open_case(&b, rt_graph_diamond());
    b.m->lifetimes.items[entry_of(b.m, "a")].end_step -= 1;
    close_refused(&b, TIDE_ERR_RUNTIME, "'top'", "port 0", "another program");
}

/// The buffer of a run on the CPU holds nothing that was planned for another device.
static void test_other_device(void **state) {
    (void)state;
    broken b;
    open_case(&b, rt_graph_diamond());
    b.m->lifetimes.items[entry_of(b.m, "b")].device = (tide_device){TIDE_DEVICE_CUDA, 1};
    close_refused(&b, TIDE_ERR_RUNTIME, "'left'", "port 0", "cuda:1");
}

/// A plan with a second buffer, of a kind that is not this program's.
static void open_two_buffers(broken *b) {
    rt_rig_open(&b->rig);
    b->p = rt_build(rt_graph_diamond());
    tide_error err = TIDE_ERROR_INIT;
    tide_lifetimes lt;
    assert_tide_ok(tide_liveness(b->p, TIDE_DEFAULT_ALIGN, &lt, &err), &err);
    char name[] = "cache";
    const tide_lifetime cache = {.name = name,
                                 .size_bytes = 100000,
                                 .align_bytes = 8,
                                 .begin_step = 0,
                                 .end_step = 1,
                                 .kind = TIDE_KIND_KV_CACHE,
                                 .device = TIDE_CPU,
                                 .node = TIDE_NO_INDEX,
                                 .port = TIDE_NO_INDEX,
                                 .value = TIDE_NO_INDEX};
    assert_tide_ok(tide_lifetimes_add(&lt, &cache, &err), &err);
    assert_tide_ok(tide_plan_make(&lt, tide_strategy_default(), NULL, &b->m, &err), &err);
    tide_lifetimes_deinit(&lt);
    assert_int_equal(b->m->n_buffers, 2);
}

/// S27-11, X-7: a run takes the Workspace buffer, not the sum of all, and its tensors' alignment, not that of others;
/// what ends behind that buffer is outside.
static void test_one_of_two_buffers_S27_11_X7(void **state) {
    (void)state;
    broken b;
    open_two_buffers(&b);
    const uint64_t work = tide_memory_plan_predicted(b.m, TIDE_KIND_WORKSPACE);
    assert_true(work > 0 && work + 100000 <= b.m->bytes);
    tide_inference_plan *ip = rt_inference(&b.rig, b.p, b.m);
    tide_context *c = rt_context(ip, TIDE_RUN_PLANNED, TIDE_FILL_POISON);
    tide_context_stats s;
    tide_context_get_stats(c, &s);
    assert_int_equal(s.buffer_bytes, work);
    assert_int_equal(rt_live(&b.rig, TIDE_KIND_WORKSPACE), work);
    assert_int_equal(ip->align_bytes, TIDE_DEFAULT_ALIGN);
    rt_feed(c, b.p, &b.rig, 1);
    rt_run(c);
    assert_int_equal(rt_peak(&b.rig, TIDE_KIND_WORKSPACE), work);
    tide_context_destroy(c);
    tide_inference_plan_unref(ip);
    b.m->offsets[entry_of(b.m, "b")] = work;
    close_refused(&b, TIDE_ERR_NO_SPACE, "'left'", "port 0", "outside");
}

/// Overlaps are not looked for here, so what the verifier has not seen is not run.
static void test_not_verified(void **state) {
    (void)state;
    broken b;
    open_case(&b, rt_graph_diamond());
    b.m->verified = false;
    tide_error err = TIDE_ERROR_INIT;
    const tide_inference_plan_options opt = {.device = TIDE_CPU, .registry = b.rig.registry, .memory_plan = b.m};
    tide_inference_plan *ip = NULL;
    assert_tide_status(tide_inference_plan_create(b.p, &opt, &ip, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "not been verified");
    assert_null(ip);
    tide_memory_plan_destroy(b.m);
    tide_program_unref(b.p);
    rt_rig_close(&b.rig);
}

/// S27-26: a tensor's capacity is its own slot, and binding says which of three things happened (S27-10).
static void test_slots_and_results_S27_10_S27_26(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    broken b;
    open_case(&b, rt_graph_long());
    tide_inference_plan *ip = rt_inference(&b.rig, b.p, b.m);
    tide_context *c = rt_context(ip, TIDE_RUN_PLANNED, TIDE_FILL_ZERO);
    size_t n = 0;
    for (size_t i = 0; i < b.m->lifetimes.n; i++) {
        const tide_lifetime *lt = &b.m->lifetimes.items[i];
        if (lt->role != TIDE_ROLE_INTERMEDIATE) continue;
        n++;
        tide_tensor *t = tide_context_value(c, lt->value);
        assert_int_equal(tide_tensor_capacity_bytes(t), tide_lifetime_aligned_bytes(lt));
        assert_int_equal(tide__context_bind(c, lt->value, &err), TIDE_BIND_BOUND);
        tide_shape grown = *tide_tensor_shape(t);
        grown.dims[0] *= 3;
        assert_tide_status(tide_tensor_set_shape(t, &grown, &err), TIDE_ERR_NO_SPACE);
    }
    tide_context_stats s;
    tide_context_get_stats(c, &s);
    assert_int_equal(s.n_bound, n);
    assert_int_equal(s.n_not_tried, 1); // the graph output
    assert_int_equal(s.n_failed, 0);
    const uint32_t x = tide_graph_find_value(b.p->graph, "x"), t0 = tide_graph_find_value(b.p->graph, "t0");
    assert_int_equal(tide__context_bind(c, x, &err), TIDE_BIND_NOT_TRIED);
    // A slot that is too small fails and leaves the tensor where it was.
    const void *before = tide_tensor_const_data(tide_context_value(c, t0));
    const tide__place kept = ip->places[t0];
    ip->places[t0].slot_bytes = 8;
    assert_int_equal(tide__context_bind(c, t0, &err), TIDE_BIND_FAILED);
    assert_text_has(err.msg, "t0");
    ip->places[t0] = kept;
    assert_ptr_equal(tide_tensor_const_data(tide_context_value(c, t0)), before);
    tide_context_destroy(c);
    c = rt_context(ip, TIDE_RUN_NAIVE, TIDE_FILL_ZERO);
    assert_int_equal(tide__context_bind(c, t0, &err), TIDE_BIND_NOT_TRIED);
    tide_context_get_stats(c, &s);
    assert_int_equal(s.n_bound, 0);
    assert_int_equal(s.n_not_tried, n + 1);
    tide_context_destroy(c);
    tide_inference_plan_unref(ip);
    tide_memory_plan_destroy(b.m);
    tide_program_unref(b.p);
    rt_rig_close(&b.rig);
}

/// Nodes may share a name: their scratch is told apart in the same way by planner and runtime.
static void test_same_names(void **state) {
    (void)state;
    broken b;
    rt_rig_open(&b.rig);
    tide_graph *g = rt_graph("twins");
    rt_input(g, "x", "4x64");
    rt_node(g, "Tanh", "twin", "x", "a");
    rt_node(g, "Sigmoid", "twin", "a", "twin.scratch");
    rt_node(g, "Tanh", "twin", "twin.scratch", "y");
    rt_output(g, "y");
    b.p = rt_build(g);
    for (size_t i = 0; i < 3; i++) b.p->steps[i].kernel.workspace_bytes = 100 * (i + 1);
    b.m = rt_plan(b.p, "greedy_by_size");
    tide_inference_plan *ip = rt_inference(&b.rig, b.p, b.m);
    for (size_t i = 0; i < 3; i++) {
        bool found = false;
        for (size_t k = 0; k < b.m->lifetimes.n; k++) {
            const tide_lifetime *lt = &b.m->lifetimes.items[k];
            if (lt->role != TIDE_ROLE_SCRATCH || lt->node != b.p->steps[i].node) continue;
            found = true;
            assert_int_equal(ip->scratch[i].offset_bytes, b.m->offsets[k]);
        }
        assert_true(found);
    }
    tide_inference_plan_unref(ip);
    tide_memory_plan_destroy(b.m);
    tide_program_unref(b.p);
    rt_rig_close(&b.rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_missing_entry_S27_13), tide_unit_test(test_missing_scratch_S27_13),
        tide_unit_test(test_no_offset_S27_11),     tide_unit_test(test_outside_S27_11),
        tide_unit_test(test_wrap_around_S27_11),   tide_unit_test(test_too_small_S27_11),
        tide_unit_test(test_misaligned),           tide_unit_test(test_stale_plan),
        tide_unit_test(test_other_device),         tide_unit_test(test_one_of_two_buffers_S27_11_X7),
        tide_unit_test(test_not_verified),         tide_unit_test(test_slots_and_results_S27_10_S27_26),
        tide_unit_test(test_same_names),
    };
    return tide_registry_default() == NULL ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
