// SPDX-License-Identifier: MIT
//
// Fill mode poison: kernels that read unwritten memory, or write memory that is not theirs, are found and the tensor is
// named. Each fault is planted by replacing the kernel of one step.
#include "core/memory/poison.h"
#include "core/runtime/runtime_internal.h"
#include "rt_util.h"

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#endif
#ifdef HAS_ASAN
int __asan_address_is_poisoned(void const volatile *addr);
static bool is_barred(const void *p) { return __asan_address_is_poisoned(p) != 0; }
#else
static bool is_barred(const void *p) {
    (void)p;
    return false;
}
#endif
/// The planted kernels do what AddressSanitizer would stop at once: here it must be found without it too.
#define UNCHECKED __attribute__((no_sanitize("address"), noinline))

// ---- the graph: every tensor is 240 B in a slot of 256 B ----

/// x -> a -> b -> c -> d -> y; a and c may share a place, b and d too.
static tide_graph *chain(void) {
    tide_graph *g = rt_graph("chain");
    rt_input(g, "x", "4x15");
    rt_node(g, "Sigmoid", "s0", "x", "a");
    rt_node(g, "Tanh", "s1", "a", "b");
    rt_node(g, "Sigmoid", "s2", "b", "c");
    rt_node(g, "Tanh", "s3", "c", "d");
    rt_node(g, "Sigmoid", "s4", "d", "y");
    rt_output(g, "y");
    return g;
}
enum { N_ELEMENTS = 60, SLOT_BYTES = 256 };

/// What the planted kernel does while it is armed: after its work, or instead of it.
static struct {
    bool armed, instead;
    void (*act)(const tide_kernel_args *args);
    tide_status (*real)(const tide_kernel *k, const tide_kernel_args *args, tide_error *err);
} plant;
/// Addresses that faults remember or aim at.
static const float *seen;
static unsigned char *target;

static tide_status run_planted(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    if (!plant.armed || !plant.instead) TIDE_TRY(plant.real(k, args, err));
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

/// Chain with the kernel of step `step_i` replaced, and a context of it.
static void open_planted(set *s, size_t step_i, void (*act)(const tide_kernel_args *), size_t scratch_bytes,
                         tide_run_mode mode, tide_fill fill) {
    rt_rig_open(&s->rig);
    s->p = rt_build(chain());
    s->step_i = step_i;
    s->def = s->p->steps[step_i].kernel.def;
    s->planted = *s->def;
    s->planted.run = run_planted;
    s->p->steps[step_i].kernel.def = &s->planted;
    if (scratch_bytes > 0) s->p->steps[step_i].kernel.workspace_bytes = scratch_bytes;
    plant.real = s->def->run;
    plant.act = act;
    plant.armed = true;
    plant.instead = false;
    s->m = rt_plan(s->p, "greedy_by_size");
    s->ip = rt_inference(&s->rig, s->p, s->m);
    s->c = rt_context(s->ip, mode, fill);
    rt_feed(s->c, s->p, &s->rig, 3);
}

static void close_planted(set *s) {
    tide_context_destroy(s->c);
    tide_inference_plan_unref(s->ip);
    tide_memory_plan_destroy(s->m);
    s->p->steps[s->step_i].kernel.def = s->def;
    tide_program_unref(s->p);
    rt_rig_close(&s->rig);
}

static unsigned char *slot_of(const set *s, const char *name) {
    const uint32_t v = tide_graph_find_value(s->p->graph, name);
    assert_true(s->ip->places[v].offset_bytes != TIDE_NO_OFFSET);
    return (unsigned char *)s->c->buffer->mem.data + s->ip->places[v].offset_bytes;
}

/// The run is refused with all the words; without the fault the same context gives what an untouched one gives.
static void assert_found(set *s, const char *const *words) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_context_run(s->c, &err), TIDE_ERR_RUNTIME);
    for (; *words != NULL; words++) assert_text_has(err.msg, *words);
    assert_null(tide_scope_current());
    if (s->c->mode == TIDE_RUN_NAIVE) assert_int_equal(rt_live(&s->rig, TIDE_KIND_WORKSPACE), 0);
    plant.armed = false;
    tide_context *clean = rt_context(s->ip, TIDE_RUN_PLANNED, TIDE_FILL_ZERO);
    rt_feed(clean, s->p, &s->rig, 3);
    rt_run(clean);
    rt_run(s->c);
    rt_assert_same_outputs(s->c, clean);
    tide_context_destroy(clean);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

// ---- no fault ----

static void tag_nothing(const tide_kernel_args *args) { (void)args; }

/// The same bytes under all three fills, in both modes, run after run.
static void test_fills_agree_X8(void **state) {
    (void)state;
    for (size_t k = 0;; k++) {
        tide_graph *g = rt_graph_nth(k);
        if (g == NULL) break;
        rt_rig rig;
        rt_rig_open(&rig);
        tide_program *p = rt_build(g);
        tide_memory_plan *m = rt_plan(p, "greedy_color");
        tide_inference_plan *ip = rt_inference(&rig, p, m);
        tide_context *first = NULL;
        for (int mode = TIDE_RUN_NAIVE; mode <= TIDE_RUN_PLANNED; mode++) {
            for (int fill = TIDE_FILL_ZERO; fill <= TIDE_FILL_POISON; fill++) {
                tide_context *c = rt_context(ip, (tide_run_mode)mode, (tide_fill)fill);
                rt_feed(c, p, &rig, k);
                for (int run = 0; run < 3; run++) {
                    rt_run(c);
                    if (first != NULL) rt_assert_same_outputs(c, first);
                }
                if (first == NULL)
                    first = c;
                else
                    tide_context_destroy(c);
            }
        }
        tide_context_destroy(first);
        tide_inference_plan_unref(ip);
        tide_memory_plan_destroy(m);
        tide_program_unref(p);
        rt_rig_close(&rig);
    }
}

/// The whole buffer is poison while no run is active: before the first run and after each run.
static void test_buffer_is_poison_between_runs_X8(void **state) {
    (void)state;
    set s;
    open_planted(&s, 0, tag_nothing, 0, TIDE_RUN_PLANNED, TIDE_FILL_POISON);
    for (int run = 0; run < 3; run++) {
        tide_asan_unpoison(s.c->buffer->mem.data, s.m->bytes);
        assert_int_equal(tide_poison_find(s.c->buffer->mem.data, s.m->bytes), s.m->bytes);
        tide_asan_poison(s.c->buffer->mem.data, s.m->bytes);
        rt_run(s.c);
    }
    close_planted(&s);
}

/// Numbers of the caller that look like poison pass through: they came in.
static void test_nan_from_outside_passes(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    for (int mode = TIDE_RUN_NAIVE; mode <= TIDE_RUN_PLANNED; mode++) {
        tide_graph *g = rt_graph("moved");
        rt_input(g, "x", "4x15");
        rt_node(g, "Identity", "first", "x", "a");
        rt_node(g, "Identity", "second", "a", "y");
        rt_output(g, "y");
        rt_rig rig;
        rt_rig_open(&rig);
        tide_program *p = rt_build(g);
        tide_memory_plan *m = rt_plan(p, "greedy_by_size");
        tide_inference_plan *ip = rt_inference(&rig, p, m);
        tide_context *c = rt_context(ip, (tide_run_mode)mode, TIDE_FILL_POISON);
        tide_tensor *x = rt_tensor("4x15", 1);
        memset((float *)tide_tensor_data(x) + 7, TIDE_POISON_BYTE, sizeof(float));
        assert_tide_ok(tide_context_set_inputs(c, &x, 1, &err), &err);
        rt_run(c);
        assert_memory_equal(tide_tensor_const_data(tide_context_output(c, 0)), tide_tensor_const_data(x),
                            tide_tensor_size_bytes(x));
        tide_tensor_unref(x);
        tide_context_destroy(c);
        tide_inference_plan_unref(ip);
        tide_memory_plan_destroy(m);
        tide_program_unref(p);
        rt_rig_close(&rig);
    }
}

// ---- stale reads ----

/// An accumulator that trusts its fresh output to be 0: the bug that zero filling hides.
static void accumulate(const tide_kernel_args *args) {
    float *y = args->out[0].data;
    const float *x = args->in[0].data;
    for (size_t i = 0; i < N_ELEMENTS; i++) y[i] += x[i];
}

UNCHECKED static void remember_input(const tide_kernel_args *args) { seen = args->in[0].data; }

/// Adds a number out of a tensor that died before.
UNCHECKED static void read_dead(const tide_kernel_args *args) {
    ((float *)args->out[0].data)[5] += target != NULL ? *(const float *)(const void *)(target + 20) : 0;
}

UNCHECKED static void leave_half(const tide_kernel_args *args) {
    unsigned char *y = args->out[0].data;
    for (size_t i = args->out[0].size_bytes / 2; i < args->out[0].size_bytes; i++) y[i] = TIDE_POISON_BYTE;
}

/// a stale read is found where its number comes out.
static void test_stale_read_X8(void **state) {
    (void)state;
    for (int mode = TIDE_RUN_NAIVE; mode <= TIDE_RUN_PLANNED; mode++) {
        set s;
        open_planted(&s, 1, accumulate, 0, (tide_run_mode)mode, TIDE_FILL_POISON);
        plant.instead = true;
        assert_found(&s, WORDS("'s1'", "tensor 'b'", "element 0 of 60", "poison pattern"));
        close_planted(&s);
    }
    set s;
    open_planted(&s, 4, read_dead, 0, TIDE_RUN_PLANNED, TIDE_FILL_POISON);
    target = slot_of(&s, "c"); // dead since step 3
    assert_true(target != slot_of(&s, "d"));
    assert_found(&s, WORDS("'s4'", "tensor 'y'", "element 5 of 60", "poison pattern"));
    close_planted(&s);
}

/// an output that is not written to its end is found too.
static void test_half_written_X8(void **state) {
    (void)state;
    set s;
    open_planted(&s, 4, leave_half, 0, TIDE_RUN_PLANNED, TIDE_FILL_POISON); // step 4 writes the graph output
    assert_found(&s, WORDS("'s4'", "tensor 'y'", "element 30 of 60"));
    close_planted(&s);
}

// ---- writes outside ----

UNCHECKED static void write_behind_output(const tide_kernel_args *args) {
    volatile unsigned char *y = args->out[0].data;
    y[args->out[0].size_bytes + 3] = 1;
}

UNCHECKED static void write_behind_scratch(const tide_kernel_args *args) {
    volatile unsigned char *w = args->workspace;
    for (size_t i = 0; i <= 100; i++) w[i] = 7;
}

UNCHECKED static void write_target(const tide_kernel_args *args) {
    (void)args;
    volatile unsigned char *p = target;
    p[11] = 0;
}

/// the red zone between a tensor's last byte and the end of its place.
static void test_write_behind_the_end_X8(void **state) {
    (void)state;
    for (int mode = TIDE_RUN_NAIVE; mode <= TIDE_RUN_PLANNED; mode++) {
        set s;
        open_planted(&s, 2, write_behind_output, 0, (tide_run_mode)mode, TIDE_FILL_POISON);
        assert_found(&s, WORDS("tensor 'c' of 240 B", "byte 3 behind its end", "red zone of 16 B", "after step 3"));
        close_planted(&s);
        open_planted(&s, 4, write_behind_output, 0, (tide_run_mode)mode, TIDE_FILL_POISON);
        assert_found(&s, WORDS("output 'y' of 240 B", "byte 3 behind its end", "at the end of the run"));
        close_planted(&s);
        open_planted(&s, 2, write_behind_scratch, 100, (tide_run_mode)mode, TIDE_FILL_POISON);
        assert_found(&s, WORDS("scratch 's2.scratch' of 100 B", "byte 0 behind its end", "after step 2"));
        close_planted(&s);
    }
}

/// a write into a place without an owner is found before the next owner writes it, or at the end of the run.
static void test_write_into_a_place_without_owner_X8(void **state) {
    (void)state;
    set s;
    open_planted(&s, 0, write_target, 0, TIDE_RUN_PLANNED, TIDE_FILL_POISON);
    target = slot_of(&s, "b"); // born at step 1
    assert_true(target != slot_of(&s, "a"));
    assert_found(&s, WORDS("tensor 'b'", "byte 11 of its place", "while it was free", "before step 1"));
    close_planted(&s);
    open_planted(&s, 4, write_target, 0, TIDE_RUN_PLANNED, TIDE_FILL_POISON);
    target = slot_of(&s, "a"); // dead for good, unless d lies there
    if (target == slot_of(&s, "d")) target = slot_of(&s, "c");
    assert_found(&s, WORDS("plan buffer", "while it was free", "the place of tensor '", "end of the run"));
    close_planted(&s);
}

/// Without poison the same faults pass unseen: it is the fill mode that finds them.
static void test_other_fills_see_nothing_X8(void **state) {
    (void)state;
    set s;
    open_planted(&s, 2, write_behind_output, 0, TIDE_RUN_PLANNED, TIDE_FILL_NONE);
    rt_run(s.c);
    close_planted(&s);
    open_planted(&s, 1, accumulate, 0, TIDE_RUN_PLANNED, TIDE_FILL_ZERO);
    plant.instead = true;
    rt_run(s.c);
    close_planted(&s);
}

// ---- what goes back to the allocator ----

typedef struct witness {
    tide_allocator *inner;
    size_t n_released, n_clean; ///< Workspace blocks; of these, poison from end to end
} witness;

static tide_status witness_alloc(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err) {
    return tide_allocator_alloc(((witness *)self)->inner, req, out, err);
}
static void witness_release(void *self, const tide_memory *mem, tide_stream_id last_stream) {
    witness *w = self;
    if (mem->kind == TIDE_KIND_WORKSPACE) {
        w->n_released++;
        w->n_clean += tide_poison_find(mem->data, mem->requested_bytes) == mem->requested_bytes;
    }
    tide_allocator_release(w->inner, mem, last_stream);
}
static void witness_stats(const void *self, tide_allocator_stats *out) {
    tide_allocator_get_stats(((const witness *)self)->inner, out);
}
static void witness_destroy(void *self) { tide_allocator_unref(((witness *)self)->inner); }

/// Naive memory is poisoned again before it is given back, also when a run fails: a stale pointer reads poison until
/// the memory is allocated again.
static void test_naive_memory_goes_back_as_poison_X8(void **state) {
    (void)state;
    static const tide_allocator_ops ops = {.abi = TIDE_ALLOCATOR_ABI,
                                           .name = "witness",
                                           .alloc = witness_alloc,
                                           .release = witness_release,
                                           .stats = witness_stats,
                                           .destroy = witness_destroy};
    tide_error err = TIDE_ERROR_INIT;
    set s;
    open_planted(&s, 2, write_behind_output, 100, TIDE_RUN_NAIVE, TIDE_FILL_POISON);
    tide_context_destroy(s.c);
    witness w = {0};
    assert_tide_ok(tide_cpu_allocator_create(&w.inner, &err), &err);
    tide_allocator *a;
    assert_tide_ok(tide_allocator_create(&ops, &w, TIDE_CPU, &a, &err), &err);
    assert_tide_ok(tide_registry_add(s.rig.registry, TIDE_KIND_WORKSPACE, a, 10, &err), &err);
    s.c = rt_context(s.ip, TIDE_RUN_NAIVE, TIDE_FILL_POISON);
    rt_feed(s.c, s.p, &s.rig, 3);
    assert_tide_status(tide_context_run(s.c, &err), TIDE_ERR_RUNTIME);
    assert_int_equal(w.n_released, 5); // a, b, the scratch of s2, c, d
    assert_int_equal(w.n_clean, w.n_released);
    plant.armed = false;
    rt_run(s.c);
    assert_int_equal(w.n_released, 10);
    assert_int_equal(w.n_clean, w.n_released);
    tide_allocator_unref(a);
    close_planted(&s);
}

// ---- under AddressSanitizer ----

static void look_at_bars(const tide_kernel_args *args) {
    const unsigned char *x = args->in[0].data, *y = args->out[0].data;
    for (size_t i = 0; i < N_ELEMENTS * sizeof(float); i++) assert_false(is_barred(x + i) || is_barred(y + i));
    assert_int_equal(is_barred(x + N_ELEMENTS * sizeof(float)), tide_asan_active());
    assert_int_equal(is_barred(y + N_ELEMENTS * sizeof(float)), tide_asan_active());
    assert_int_equal(is_barred(y + SLOT_BYTES - 1), tide_asan_active());
}

/// ASan bars a place while it has no owner, and opens exactly the tensor's bytes while the tensor lives.
static void test_bars_under_asan_X8(void **state) {
    (void)state;
    set s;
    open_planted(&s, 2, look_at_bars, 0, TIDE_RUN_PLANNED, TIDE_FILL_POISON);
    for (int run = 0; run < 2; run++) {
        const unsigned char *base = tide_context_buffer(s.c);
        for (uint64_t i = 0; i < s.m->bytes; i += 8) assert_int_equal(is_barred(base + i), tide_asan_active());
        rt_run(s.c);
    }
    // Who keeps an intermediate past the context can look at it: the buffer is no longer ours.
    tide_tensor *held = tide_tensor_ref(tide_context_value(s.c, tide_graph_find_value(s.p->graph, "b")));
    tide_context_destroy(s.c);
    s.c = NULL;
    assert_false(is_barred(tide_tensor_const_data(held)));
    tide_tensor_unref(held);
    close_planted(&s);
}

/// Nothing is allocated while warm here either.
static void test_no_allocation_while_warm(void **state) {
    (void)state;
    set s;
    open_planted(&s, 2, remember_input, 0, TIDE_RUN_PLANNED, TIDE_FILL_POISON);
    rt_run(s.c);
    assert_non_null(seen);
    tide_host_stats before, after;
    tide_host_get_stats(&before);
    const uint64_t n_allocs = rt_n_allocs(&s.rig);
    for (int run = 0; run < 50; run++) rt_run(s.c);
    tide_host_get_stats(&after);
    assert_int_equal(after.n_allocs, before.n_allocs);
    assert_int_equal(rt_n_allocs(&s.rig), n_allocs);
    close_planted(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_fills_agree_X8),
        tide_unit_test(test_buffer_is_poison_between_runs_X8),
        tide_unit_test(test_nan_from_outside_passes),
        tide_unit_test(test_stale_read_X8),
        tide_unit_test(test_half_written_X8),
        tide_unit_test(test_write_behind_the_end_X8),
        tide_unit_test(test_write_into_a_place_without_owner_X8),
        tide_unit_test(test_other_fills_see_nothing_X8),
        tide_unit_test(test_naive_memory_goes_back_as_poison_X8),
        tide_unit_test(test_bars_under_asan_X8),
        tide_unit_test(test_no_allocation_while_warm),
    };
    return tide_registry_default() == NULL ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
