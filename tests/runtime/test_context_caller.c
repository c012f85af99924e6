// SPDX-License-Identifier: MIT
//
// Contexts in memory of the caller's: the question is answered to the byte before anything is allocated, nothing is
// taken from the registry, nothing outside that memory is touched, and the results are the same bytes.
#include "context_test.h"
#include "core/memory/poison.h"
#include "planner/planner.h"
#include "planner/process_need.h"

enum { GUARD = 0xA5, GUARD_BYTES = 4096, MAX_ALIGN = 4096 };

// ---- memory of a test ----

/// Memory for `n` bytes at a multiple of MAX_ALIGN, with guards on both sides.
typedef struct brought {
    unsigned char *all, *memory;
    size_t n;
} brought;

static brought bring(size_t n) {
    brought b = {.n = n};
    const size_t rounded = (n + MAX_ALIGN - 1) / MAX_ALIGN * MAX_ALIGN;
    b.all = aligned_alloc(MAX_ALIGN, rounded + 2 * (size_t)GUARD_BYTES);
    assert_non_null(b.all);
    memset(b.all, GUARD, rounded + 2 * (size_t)GUARD_BYTES);
    b.memory = b.all + GUARD_BYTES;
    return b;
}

/// The guards are as they were. All of the memory can be written again: nothing of it is closed for AddressSanitizer.
static void take_away(brought *b) {
    for (size_t i = 0; i < GUARD_BYTES; i++) {
        if (b->all[i] != GUARD) fail_msg("byte %zu before the memory was written", GUARD_BYTES - i);
        if (b->memory[b->n + i] != GUARD) fail_msg("byte %zu behind what is needed was written", i);
    }
    memset(b->memory, 0, b->n);
    free(b->all);
}

static tide_context_need need_of(const tide_inference_plan *ip) {
    tide_error err = TIDE_ERROR_INIT;
    tide_context_need need;
    assert_tide_ok(tide_context_need_of(ip, &need, &err), &err);
    return need;
}

static tide_context *context_in(tide_inference_plan *ip, tide_fill fill, void *memory, size_t n,
                                const tide_observer *observer) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_context_options opt = {
        .mode = TIDE_RUN_PLANNED, .fill = fill, .observer = observer, .memory = memory, .memory_bytes = n};
    tide_context *c;
    assert_tide_ok(tide_context_create(ip, &opt, &c, &err), &err);
    return c;
}

// ---- the graphs ----

/// Of the outputs one is an input, one a constant, one has no elements, one is made by a step.
static tide_graph *handed_through(void) {
    tide_graph *g = rt_graph("handed");
    rt_input(g, "x", "4x15");
    rt_input(g, "none", "0x4");
    rt_weight(g, "w", "5", 1.0f, 2.0f);
    rt_node(g, "Tanh", "t", "x", "a");
    rt_node(g, "Sigmoid", "s", "a", "y");
    rt_node(g, "Tanh", "u", "none", "n");
    rt_output(g, "x");
    rt_output(g, "w");
    rt_output(g, "y");
    rt_output(g, "n");
    return g;
}

/// No intermediate, so no buffer: only an output.
static tide_graph *one_step(void) {
    tide_graph *g = rt_graph("one");
    rt_input(g, "x", "4x15");
    rt_node(g, "Tanh", "t", "x", "y");
    rt_output(g, "y");
    return g;
}

/// Nothing takes space.
static tide_graph *empty(void) {
    tide_graph *g = rt_graph("empty");
    rt_input(g, "x", "0x4");
    rt_node(g, "Tanh", "t", "x", "a");
    rt_node(g, "Tanh", "u", "a", "y");
    rt_output(g, "y");
    return g;
}

static tide_graph *graph_nth(size_t i) {
    static tide_graph *(*const more[])(void) = {handed_through, one_step, empty, two_steps};
    enum { N_MORE = sizeof more / sizeof more[0] };
    if (i < N_MORE) return more[i]();
    return rt_graph_nth(i - N_MORE);
}

/// The first two lay pools end to end.
static const char *const strategies[] = {"greedy_color", "naive", "greedy_by_size"};
enum { N_STRATEGIES = 3 };

static tide_memory_plan *plan_aligned(const tide_program *p, const char *strategy, uint64_t align_bytes) {
    tide_error err = TIDE_ERROR_INIT;
    tide_lifetimes lt;
    tide_memory_plan *m;
    const tide_strategy *s;
    assert_tide_ok(tide_liveness(p, align_bytes, &lt, &err), &err);
    assert_tide_ok(tide_strategy_find(strategy, &s, &err), &err);
    assert_tide_ok(tide_plan_make(&lt, s, NULL, &m, &err), &err);
    tide_lifetimes_deinit(&lt);
    return m;
}

// ---- the question ----

/// What it says is what a context takes from the registry, and what `plan` says of one more context. Asking takes no
/// memory, not even of the host.
static void ask_once(tide_program *p, const char *strategy, uint64_t align_bytes) {
    rt_rig rig;
    rt_rig_open(&rig);
    tide_memory_plan *m = plan_aligned(p, strategy, align_bytes);
    tide_inference_plan *ip = rt_inference(&rig, p, m);
    const uint64_t before = rt_n_allocs(&rig);
    tide_host_fail_after(0);
    const tide_context_need need = need_of(ip);
    tide_host_fail_after(-1);
    assert_int_equal(rt_n_allocs(&rig), before);
    tide_context *c = rt_context(ip, TIDE_RUN_PLANNED, TIDE_FILL_NONE);
    assert_int_equal(need.buffer_bytes, rt_live(&rig, TIDE_KIND_WORKSPACE));
    assert_int_equal(need.output_bytes, rt_live(&rig, TIDE_KIND_DEFAULT));
    assert_int_equal(need.bytes, need.buffer_bytes + need.output_bytes); // plans leave no padding between the two
    assert_int_equal(need.bytes, tide_process_need_of(m, 1).context_bytes);
    assert_int_equal(need.bytes, tide_process_need_of(m, 7).context_bytes);
    assert_true(need.align_bytes >= (need.bytes > 0 ? align_bytes : 1));
    tide_context_destroy(c);
    tide_inference_plan_unref(ip);
    tide_memory_plan_destroy(m);
    rt_rig_close(&rig);
}

static void test_the_question(void **state) {
    (void)state;
    static const uint64_t aligns[] = {4, 64, 256, MAX_ALIGN};
    tide_graph *g;
    for (size_t k = 0; (g = graph_nth(k)) != NULL; k++) {
        tide_program *p = rt_build(g);
        for (size_t i = 0; i < N_STRATEGIES; i++) {
            for (size_t a = 0; a < sizeof aligns / sizeof aligns[0]; a++) ask_once(p, strategies[i], aligns[a]);
        }
        tide_program_unref(p);
    }
}

/// Outputs may be asked to be stricter than the plan; then the end of the buffer is padded, and counted.
static void test_padding_is_counted(void **state) {
    (void)state;
    rt_rig rig;
    rt_rig_open(&rig);
    tide_error err = TIDE_ERROR_INIT;
    tide_program *p = rt_build(two_steps());
    tide_memory_plan *m = plan_aligned(p, "greedy_by_size", 4);
    const tide_inference_plan_options opt = {
        .device = TIDE_CPU, .registry = rig.registry, .memory_plan = m, .align_bytes = 1024};
    tide_inference_plan *ip;
    assert_tide_ok(tide_inference_plan_create(p, &opt, &ip, &err), &err);
    const tide_context_need need = need_of(ip);
    assert_int_equal(need.buffer_bytes, 4 * N);
    assert_int_equal(need.output_bytes, 1024);
    assert_int_equal(need.bytes, 2048);
    assert_int_equal(need.align_bytes, 1024);
    brought b = bring(need.bytes);
    tide_context *c = context_in(ip, TIDE_FILL_POISON, b.memory, b.n, NULL);
    assert_ptr_equal(tide_tensor_const_data(tide_context_output(c, 0)), b.memory + 1024);
    rt_feed(c, p, &rig, 1);
    rt_run(c);
    tide_context_destroy(c);
    take_away(&b);
    tide_inference_plan_unref(ip);
    tide_memory_plan_destroy(m);
    tide_program_unref(p);
    rt_rig_close(&rig);
}

// ---- running ----

static bool is_inside(const brought *b, const tide_tensor *t) {
    const unsigned char *data = tide_tensor_const_data(t);
    return data >= b->memory && data + tide_tensor_size_bytes(t) <= b->memory + b->n;
}

/// Nothing else is allocated: the registry has no row any more that a context could ask.
static void close_registry(const rt_rig *rig) {
    static const tide_memory_kind kinds[] = {TIDE_KIND_WORKSPACE, TIDE_KIND_DEFAULT};
    tide_error err = TIDE_ERROR_INIT;
    for (size_t i = 0; i < 2; i++)
        assert_tide_ok(tide_registry_remove(rig->registry, TIDE_CPU, kinds[i], true, &err), &err);
}

static void run_in_memory(tide_inference_plan *ip, tide_program *p, tide_fill fill, const tide_context *want,
                          uint64_t seed) {
    const tide_context_need need = need_of(ip);
    brought b = bring(need.bytes);
    tide_context *c = context_in(ip, fill, b.memory, b.n, NULL);
    if (need.buffer_bytes > 0) assert_ptr_equal(tide_context_buffer(c), b.memory);
    for (size_t i = 0; i < tide_context_n_outputs(c); i++) {
        if (tide_tensor_size_bytes(tide_context_output(c, i)) > 0)
            assert_true(is_inside(&b, tide_context_output(c, i)));
    }
    rt_feed(c, p, NULL, seed);
    rt_run(c);
    rt_assert_same_outputs(c, want);
    rt_run(c); // again, over what the first run left
    rt_assert_same_outputs(c, want);
    tide_context_destroy(c);
    take_away(&b);
}

static void test_same_bytes(void **state) {
    (void)state;
    tide_graph *g;
    for (size_t k = 0; (g = graph_nth(k)) != NULL; k++) {
        tide_program *p = rt_build(g);
        for (size_t i = 0; i < N_STRATEGIES; i++) {
            rt_rig rig;
            rt_rig_open(&rig);
            tide_memory_plan *m = rt_plan_aliased(p, strategies[i], RT_ALL_ALIASES, NULL);
            tide_inference_plan *ip = rt_inference(&rig, p, m);
            tide_context *want = rt_context(ip, TIDE_RUN_NAIVE, TIDE_FILL_ZERO);
            rt_feed(want, p, NULL, k);
            rt_run(want);
            close_registry(&rig);
            for (int fill = TIDE_FILL_ZERO; fill <= TIDE_FILL_POISON; fill++)
                run_in_memory(ip, p, (tide_fill)fill, want, k);
            tide_context_destroy(want);
            tide_inference_plan_unref(ip);
            tide_memory_plan_destroy(m);
            rt_rig_close(&rig);
        }
        tide_program_unref(p);
    }
}

/// What fresh memory holds, and what the buffer holds between runs.
static void test_fills(void **state) {
    (void)state;
    set s;
    open_set(&s, two_steps(), TIDE_RUN_PLANNED);
    const tide_context_need need = need_of(s.ip);
    static const int wants[] = {[TIDE_FILL_ZERO] = 0, [TIDE_FILL_NONE] = GUARD, [TIDE_FILL_POISON] = TIDE_POISON_BYTE};
    for (int fill = TIDE_FILL_ZERO; fill <= TIDE_FILL_POISON; fill++) {
        brought b = bring(need.bytes);
        tide_context *c = context_in(s.ip, (tide_fill)fill, b.memory, b.n, NULL);
        tide_asan_unpoison(b.memory, need.buffer_bytes);
        const size_t n_filled = need.bytes - (256 - 4 * N); // what is behind the output is filled when a run begins
        for (size_t i = 0; i < n_filled; i++) assert_int_equal(b.memory[i], wants[fill]);
        rt_feed(c, s.p, NULL, 3);
        rt_run(c);
        tide_asan_unpoison(b.memory, need.buffer_bytes);
        if (fill == TIDE_FILL_POISON) {
            assert_int_equal(tide_poison_find(b.memory, need.buffer_bytes), need.buffer_bytes);
            b.memory[8] = 1; // where no block is
            assert_tide_status(tide_context_run(c, NULL), TIDE_ERR_RUNTIME);
            rt_run(c); // it can run again
        }
        tide_context_destroy(c);
        take_away(&b);
    }
    close_set(&s);
}

// ---- what observers hear ----

typedef struct heard {
    size_t n_buffers, n_outputs, n_freed;
    uint64_t live_bytes;
    bool wrong; ///< an allocator of another name, or bytes that were not asked for
} heard;

static void on_memory(void *self, const tide_memory_event *e) {
    heard *h = self;
    if (strcmp(e->allocator, "caller") != 0 || e->reserved_bytes != e->requested_bytes) h->wrong = true;
    if (e->op == TIDE_MEM_ALLOC) {
        h->live_bytes += e->reserved_bytes;
        h->n_buffers += e->kind == TIDE_KIND_WORKSPACE && strcmp(e->tag, "plan buffer") == 0;
        h->n_outputs += e->kind == TIDE_KIND_DEFAULT && (strcmp(e->tag, "early") == 0 || strcmp(e->tag, "late") == 0);
    } else if (e->op == TIDE_MEM_FREE_COMPLETED) {
        h->live_bytes -= e->reserved_bytes;
        h->n_freed++;
    }
}

static void test_blocks_are_heard(void **state) {
    (void)state;
    set s;
    open_set(&s, rt_graph_early_output(), TIDE_RUN_PLANNED);
    const tide_context_need need = need_of(s.ip);
    heard h = {0};
    const tide_observer observer = {.self = &h, .on_memory = on_memory};
    brought b = bring(need.bytes);
    const uint64_t before = rt_n_allocs(&s.rig);
    tide_context *c = context_in(s.ip, TIDE_FILL_POISON, b.memory, b.n, &observer);
    assert_int_equal(h.live_bytes, need.bytes);
    assert_int_equal(h.n_buffers, 1);
    assert_int_equal(h.n_outputs, 2);
    rt_feed(c, s.p, NULL, 3);
    rt_run(c);
    rt_run(c);
    assert_int_equal(rt_n_allocs(&s.rig), before);
    assert_int_equal(h.n_buffers + h.n_outputs, 3);
    tide_context_destroy(c);
    assert_int_equal(h.n_freed, 3);
    assert_int_equal(h.live_bytes, 0);
    assert_false(h.wrong);
    take_away(&b);
    close_set(&s);
}

// ---- refused ----

static void assert_refused(tide_inference_plan *ip, tide_context_options opt, tide_status want, const char *says) {
    tide_error err = TIDE_ERROR_INIT;
    tide_context *c = NULL;
    assert_tide_status(tide_context_create(ip, &opt, &c, &err), want);
    assert_null(c);
    assert_text_has(err.msg, says);
}

static void test_refused(void **state) {
    (void)state;
    set s;
    open_set(&s, two_steps(), TIDE_RUN_PLANNED);
    const tide_context_need need = need_of(s.ip);
    assert_int_equal(need.bytes, 512);
    brought b = bring(need.bytes);
    tide_context_options opt = {.mode = TIDE_RUN_PLANNED, .memory = b.memory, .memory_bytes = 511};
    assert_refused(s.ip, opt, TIDE_ERR_NO_SPACE, "512 B are needed (buffer 256 B, outputs 256 B), there are 511 B");
    opt.memory_bytes = 0;
    assert_refused(s.ip, opt, TIDE_ERR_NO_SPACE, "there are 0 B");
    opt = (tide_context_options){.mode = TIDE_RUN_PLANNED, .memory = b.memory + 64, .memory_bytes = 512};
    assert_refused(s.ip, opt, TIDE_ERR_INVALID, "is no multiple of 256 B");
    opt.memory = NULL;
    assert_refused(s.ip, opt, TIDE_ERR_INVALID, "512 B at address NULL");
    opt = (tide_context_options){.mode = TIDE_RUN_NAIVE, .memory = b.memory, .memory_bytes = 512};
    assert_refused(s.ip, opt, TIDE_ERR_INVALID, "naive mode");
    tide_inference_plan *bare = rt_inference(&s.rig, s.p, NULL);
    opt.mode = TIDE_RUN_PLANNED;
    assert_refused(bare, opt, TIDE_ERR_INVALID, "no memory plan");
    tide_error err = TIDE_ERROR_INIT;
    tide_context_need none;
    assert_tide_status(tide_context_need_of(bare, &none, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "without a memory plan");
    tide_inference_plan_unref(bare);
    for (size_t i = 0; i < b.n; i++) assert_int_equal(b.memory[i], GUARD); // nothing was touched
    take_away(&b);
    close_set(&s);
}

/// An input may not lie in memory that the run writes, however it came there; behind what the context uses it may.
static void test_inputs_in_that_memory(void **state) {
    (void)state;
    set s;
    open_set(&s, two_steps(), TIDE_RUN_PLANNED);
    brought b = bring(1024);
    tide_context *c = context_in(s.ip, TIDE_FILL_NONE, b.memory, b.n, NULL);
    static const size_t offsets[] = {0, 256, 512 - 4, 512};
    for (size_t i = 0; i < 4; i++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_tensor *x;
        const int64_t dims[] = {4, 15};
        const tide_shape shape = tide_shape_make(2, dims);
        assert_tide_ok(tide_tensor_borrow(b.memory + offsets[i], 4 * N, TIDE_F32, &shape, TIDE_KIND_DEFAULT, &x, &err),
                       &err);
        const tide_status st = tide_context_set_inputs(c, &x, 1, &err);
        tide_tensor_unref(x);
        assert_int_equal(st, offsets[i] < 512 ? TIDE_ERR_INVALID : TIDE_OK);
        if (st != TIDE_OK) assert_text_has(err.msg, "memory that the same context writes");
    }
    tide_context_destroy(c);
    take_away(&b);
    close_set(&s);
}

// ---- outputs that others hold ----

/// S27-9 holds here too, as long as the memory is there.
static void test_output_outlives_context(void **state) {
    (void)state;
    set s;
    open_set(&s, two_steps(), TIDE_RUN_PLANNED);
    brought b = bring(need_of(s.ip).bytes);
    tide_tensor *x = rt_tensor("4x15", 5);
    tide_context *mine = context_in(s.ip, TIDE_FILL_POISON, b.memory, b.n, NULL);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_context_set_inputs(mine, &x, 1, &err), &err);
    rt_run(mine);
    tide_tensor *y = tide_tensor_ref(tide_context_output(mine, 0));
    tide_context_destroy(mine);
    assert_is_two_steps_of(y, floats(x));
    tide_tensor_unref(y);
    tide_tensor_unref(x);
    take_away(&b);
    close_set(&s);
}

/// A clone is a copy in a place that must be named; it keeps its bytes when the output is written again.
static void test_clones_lie_elsewhere(void **state) {
    (void)state;
    set s;
    open_set(&s, two_steps(), TIDE_RUN_PLANNED);
    brought b = bring(2 * need_of(s.ip).bytes); // more than is needed is no place for it either
    b.n = need_of(s.ip).bytes;
    tide_context *c = context_in(s.ip, TIDE_FILL_POISON, b.memory, 2 * b.n, NULL);
    rt_feed(c, s.p, NULL, 1);
    rt_run(c);
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor *copy = NULL;
    tide_tensor *y = tide_context_output(c, 0);
    assert_tide_status(tide_tensor_lazy_clone(y, NULL, &copy, NULL, &err), TIDE_ERR_NO_SPACE);
    assert_text_has(err.hint, "say device and kind");
    const tide_tensor_spec where = {.device = TIDE_CPU, .kind = TIDE_KIND_DEFAULT};
    assert_tide_ok(tide_tensor_lazy_clone(y, &where, &copy, NULL, &err), &err);
    float old[N];
    memcpy(old, floats(y), sizeof old);
    rt_feed(c, s.p, NULL, 2);
    rt_run(c);
    assert_memory_equal(floats(copy), old, sizeof old);
    assert_true(memcmp(floats(y), old, sizeof old) != 0);
    assert_true(is_inside(&b, y));
    tide_tensor_unref(copy);
    tide_context_destroy(c);
    take_away(&b);
    close_set(&s);
}

/// Parts of one memory, run by turns; the last one is next to a context of the registry.
static void test_several_contexts(void **state) {
    (void)state;
    enum { N_CONTEXTS = 5 };
    set s;
    open_set(&s, rt_graph_conv(), TIDE_RUN_PLANNED);
    const size_t part = need_of(s.ip).bytes;
    assert_int_equal(part % need_of(s.ip).align_bytes, 0);
    brought b = bring(N_CONTEXTS * part);
    tide_context *all[N_CONTEXTS];
    for (size_t i = 0; i < N_CONTEXTS; i++) {
        all[i] = context_in(s.ip, TIDE_FILL_POISON, b.memory + i * part, part, NULL);
        rt_feed(all[i], s.p, NULL, i);
    }
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < N_CONTEXTS; i++) rt_run(all[i]);
    for (size_t i = 0; i < N_CONTEXTS; i++) {
        rt_feed(s.c, s.p, NULL, i);
        rt_run(s.c);
        rt_assert_same_outputs(all[i], s.c);
    }
    for (size_t i = 0; i < N_CONTEXTS; i++) tide_context_destroy(all[i]);
    take_away(&b);
    close_set(&s);
}

/// Each piece of host memory for its tables fails once: nothing is leaked, and the memory is the caller's again.
static void test_host_memory_ends(void **state) {
    (void)state;
    set s;
    open_set(&s, rt_graph_early_output(), TIDE_RUN_PLANNED);
    brought b = bring(need_of(s.ip).bytes);
    heard h = {0};
    const tide_observer observer = {.self = &h, .on_memory = on_memory};
    const tide_context_options opt = {.mode = TIDE_RUN_PLANNED,
                                      .fill = TIDE_FILL_POISON,
                                      .observer = &observer,
                                      .memory = b.memory,
                                      .memory_bytes = b.n};
    tide_status st = TIDE_ERR_NOMEM;
    int64_t n = 0;
    for (; st == TIDE_ERR_NOMEM; n++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_context *c = NULL;
        tide_host_fail_after(n);
        st = tide_context_create(s.ip, &opt, &c, &err);
        tide_host_fail_after(-1);
        tide_context_destroy(c);
        assert_int_equal(h.live_bytes, 0);
    }
    assert_tide_status(st, TIDE_OK);
    assert_true(n > 20);
    take_away(&b);
    close_set(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_the_question),
        tide_unit_test(test_padding_is_counted),
        tide_unit_test(test_same_bytes),
        tide_unit_test(test_fills),
        tide_unit_test(test_blocks_are_heard),
        tide_unit_test(test_refused),
        tide_unit_test(test_inputs_in_that_memory),
        tide_unit_test(test_output_outlives_context),
        tide_unit_test(test_clones_lie_elsewhere),
        tide_unit_test(test_several_contexts),
        tide_unit_test(test_host_memory_ends),
    };
    return tide_registry_default() == NULL ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
