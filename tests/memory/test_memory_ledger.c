// SPDX-License-Identifier: MIT
//
// The ledger against a plain list, without host memory, with four threads, and what it keeps of a failed allocation.
#include "core/memory/ledger.h"

#include "memory_test.h"

static tide_ledger *make(void) {
    tide_error err = TIDE_ERROR_INIT;
    tide_ledger *l = NULL;
    assert_tide_ok(tide_ledger_create(&l, &err), &err);
    return l;
}

static void send_event(tide_ledger *l, const tide_memory_event *e) {
    const tide_observer obs = tide_ledger_observer(l);
    obs.on_memory(obs.self, e);
}

static void send_alloc(tide_ledger *l, uint64_t id, uint64_t bytes, const char *tag) {
    const tide_memory_event e = {.op = TIDE_MEM_ALLOC,
                                 .t_ns = 1000 + id,
                                 .block_id = id,
                                 .kind = TIDE_KIND_WORKSPACE,
                                 .requested_bytes = bytes,
                                 .reserved_bytes = bytes + 1,
                                 .allocator = "test",
                                 .tag = tag};
    send_event(l, &e);
}

static void send_free(tide_ledger *l, uint64_t id) {
    send_event(l, &(tide_memory_event){.op = TIDE_MEM_FREE_REQUESTED, .block_id = id, .allocator = "test"});
    send_event(l, &(tide_memory_event){.op = TIDE_MEM_FREE_COMPLETED, .block_id = id, .allocator = "test"});
}

// ---- against a plain list ----

enum { N_MODEL = 600 };

/// What is alive: bytes by place; id of place i is ids[i]; 0 bytes: dead.
typedef struct model {
    uint64_t ids[N_MODEL], bytes[N_MODEL];
} model;

/// The n-th largest, by looking at all of them each time.
static uint64_t nth_largest(const model *m, uint64_t after_id, size_t n) {
    bool taken[N_MODEL] = {false};
    size_t best = N_MODEL;
    for (size_t k = 0; k <= n; k++) {
        best = N_MODEL;
        for (size_t i = 0; i < N_MODEL; i++) {
            if (m->bytes[i] == 0 || taken[i] || m->ids[i] <= after_id) continue;
            if (best == N_MODEL || m->bytes[i] > m->bytes[best] ||
                (m->bytes[i] == m->bytes[best] && m->ids[i] < m->ids[best]))
                best = i;
        }
        if (best == N_MODEL) return 0;
        taken[best] = true;
    }
    return m->ids[best];
}

static void assert_same(tide_ledger *l, const model *m, uint64_t after_id, size_t n_max) {
    size_t n_alive = 0;
    for (size_t i = 0; i < N_MODEL; i++) n_alive += m->bytes[i] > 0 && m->ids[i] > after_id;
    static tide_live_block out[N_MODEL + 1];
    memset(out, 0xAA, sizeof out);
    assert_int_equal(tide_ledger_largest(l, after_id, out, n_max), n_alive);
    for (size_t i = 0; i < n_max && i < n_alive; i++) assert_true(out[i].block_id == nth_largest(m, after_id, i));
    if (n_alive < n_max) assert_true(out[n_alive].block_id == UINT64_C(0xAAAAAAAAAAAAAAAA)); // untouched
}

static void the_largest_are_those_of_a_plain_list(void **state) {
    (void)state;
    static model m;
    memset(&m, 0, sizeof m);
    tide_ledger *l = make();
    tide_rng rng = {4711};
    uint64_t last_id = 0;
    for (int step = 0; step < 20000; step++) {
        const size_t i = (size_t)tide_rng_below(&rng, N_MODEL);
        if (m.bytes[i] > 0) {
            send_free(l, m.ids[i]);
            m.bytes[i] = 0;
        } else {
            // Ids jump, so that homes in the table collide; sizes are few, so that ties are many.
            m.ids[i] = last_id += 1 + (tide_rng_below(&rng, 8) == 0 ? tide_rng_below(&rng, 1 << 20) : 0);
            m.bytes[i] = 1 + tide_rng_below(&rng, 50);
            send_alloc(l, m.ids[i], m.bytes[i], "t");
        }
        assert_true(tide_ledger_last_id(l) == last_id);
        if (step % 1000 != 0) continue;
        assert_same(l, &m, 0, 10);
        assert_same(l, &m, 0, 0);
        assert_same(l, &m, last_id - last_id / 4, 7);
        assert_same(l, &m, last_id, 5);
    }
    assert_same(l, &m, 0, N_MODEL + 1);
    for (size_t i = 0; i < N_MODEL; i++) {
        if (m.bytes[i] > 0) send_free(l, m.ids[i]);
    }
    assert_int_equal(tide_ledger_largest(l, 0, NULL, 0), 0);
    assert_true(tide_ledger_n_lost(l) == 0);
    tide_ledger_destroy(l);
    tide_ledger_destroy(NULL);
}

// ---- what is known of a block ----

static void every_field_of_a_live_block(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_ledger *l = make();
    const tide_observer obs = tide_ledger_observer(l);
    tide_allocator *cpu = NULL, *a = NULL;
    assert_tide_ok(tide_cpu_allocator_create(&cpu, &err), &err);
    assert_tide_ok(tide_instrumented_create(cpu, &obs, &a, &err), &err);
    tide_allocator_unref(cpu);
    tide_block *b = NULL, *plain = NULL;
    char tag[] = "conv1.out";
    const uint64_t before_ns = tide_now_ns();
    tide_scope run = {.name = "run", .kind = TIDE_SCOPE_RUN}, conv = {.name = "conv1", .kind = TIDE_SCOPE_OPERATOR};
    tide_scope inner = {.name = "inner run", .kind = TIDE_SCOPE_RUN};
    tide_scope_enter(&run, NULL);
    assert_tide_ok(tide_block_create(a, 10, 0, TIDE_KIND_DEFAULT, 0, NULL, &plain, &err), &err);
    tide_scope_enter(&conv, NULL);
    tide_scope_enter(&inner, NULL);
    assert_tide_ok(tide_block_create(a, 1000, 0, TIDE_KIND_KV_CACHE, 0, tag, &b, &err), &err);
    tide_scope_leave(&run, NULL);
    memset(tag, '?', sizeof tag - 1);

    tide_live_block out[3];
    assert_int_equal(tide_ledger_largest(l, 0, out, 3), 2);
    assert_true(out[0].block_id == b->id && out[1].block_id == plain->id);
    assert_true(tide_device_equal(out[0].device, TIDE_CPU));
    assert_int_equal(out[0].kind, TIDE_KIND_KV_CACHE);
    assert_true(out[0].requested_bytes == 1000 && out[0].reserved_bytes == b->mem.reserved_bytes);
    assert_true(out[0].t_ns >= before_ns && out[0].t_ns <= tide_now_ns());
    assert_string_equal(out[0].tag, "conv1.out"); // a copy of its own
    assert_string_equal(out[0].op, "conv1");      // the innermost scope that is no run
    assert_string_equal(out[0].allocator, "cpu");
    assert_false(out[0].pending);
    assert_null(out[1].tag);
    assert_null(out[1].op);
    assert_int_equal(tide_ledger_largest(l, plain->id, out, 3), 1); // born later
    assert_true(out[0].block_id == b->id);
    tide_block_unref(b);
    tide_block_unref(plain);
    assert_int_equal(tide_ledger_largest(l, 0, out, 3), 0);
    tide_allocator_unref(a);
    tide_ledger_destroy(l);
}

static void a_released_block_stays_until_its_free_is_complete(void **state) {
    (void)state;
    tide_ledger *l = make();
    tide_live_block out;
    send_alloc(l, 5, 100, "t");
    send_event(l, &(tide_memory_event){.op = TIDE_MEM_FREE_REQUESTED, .block_id = 5});
    assert_int_equal(tide_ledger_largest(l, 0, &out, 1), 1);
    assert_true(out.pending);
    send_event(l, &(tide_memory_event){.op = TIDE_MEM_FREE_COMPLETED, .block_id = 5});
    assert_int_equal(tide_ledger_largest(l, 0, &out, 1), 0);
    send_free(l, 5); // of an unknown block: allocated before the ledger listened
    send_event(l, &(tide_memory_event){.op = TIDE_MEM_SEGMENT_ALLOC, .block_id = 9, .requested_bytes = 1});
    assert_int_equal(tide_ledger_largest(l, 0, &out, 1), 0);
    assert_true(tide_ledger_n_lost(l) == 0);
    // What cannot be told apart is counted: no number, or one that is out.
    send_alloc(l, 0, 100, "t");
    send_alloc(l, 6, 100, "first");
    send_alloc(l, 6, 200, "second");
    assert_true(tide_ledger_n_lost(l) == 2);
    assert_int_equal(tide_ledger_largest(l, 0, &out, 1), 1);
    assert_string_equal(out.tag, "first");
    tide_ledger_destroy(l);
}

// ---- pools ----

static void send_placed(tide_ledger *l, uint64_t id, int32_t device, uint64_t address) {
    send_event(l, &(tide_memory_event){.op = TIDE_MEM_ALLOC,
                                       .block_id = id,
                                       .device = {.type = TIDE_DEVICE_CPU, .index = device},
                                       .requested_bytes = 8,
                                       .reserved_bytes = 8,
                                       .address = address,
                                       .allocator = "test"});
}

static void discard(tide_ledger *l, int32_t device, uint64_t address, uint64_t bytes) {
    send_event(l, &(tide_memory_event){.op = TIDE_MEM_POOL_DISCARD,
                                       .device = {.type = TIDE_DEVICE_CPU, .index = device},
                                       .address = address,
                                       .reserved_bytes = bytes});
}

static uint64_t n_live(tide_ledger *l) { return tide_ledger_largest(l, 0, NULL, 0); }

/// All that begins in the pool goes, on its device, and nothing else; a moment with a name is nothing at all.
static void a_discarded_pool_takes_its_blocks(void **state) {
    (void)state;
    tide_ledger *l = make();
    send_placed(l, 1, 0, 999);
    send_placed(l, 2, 0, 1000); // first byte of the pool
    send_placed(l, 3, 0, 1999); // last one
    send_placed(l, 4, 0, 2000);
    send_placed(l, 5, 1, 1500); // on another device
    send_placed(l, 6, 0, UINT64_MAX);
    discard(l, 0, 1000, 0); // an empty pool
    send_event(l, &(tide_memory_event){.op = TIDE_MEM_SNAPSHOT, .address = 1000, .reserved_bytes = 1000, .tag = "now"});
    assert_int_equal(n_live(l), 6);
    discard(l, 0, 1000, 1000);
    assert_int_equal(n_live(l), 4);
    send_free(l, 2); // a second free event, from a caller that does not know the pool
    tide_live_block out[4];
    assert_int_equal(tide_ledger_largest(l, 0, out, 4), 4);
    const uint64_t left[] = {1, 4, 5, 6};
    for (int i = 0; i < 4; i++) assert_int_equal(out[i].block_id, left[i]);
    discard(l, 0, 2000, UINT64_MAX); // to the end of all addresses: the sum would wrap
    assert_int_equal(n_live(l), 2);
    assert_true(tide_ledger_n_lost(l) == 0);
    tide_ledger_destroy(l);
}

/// In a table where taking one out moves others, none of them is passed by.
static void a_large_pool_goes_as_a_whole(void **state) {
    (void)state;
    enum { N = 5000 };
    tide_ledger *l = make();
    for (uint64_t id = 1; id <= N; id++) send_placed(l, id * 7919, 0, id % 3 == 0 ? 1 << 20 : 16 * id);
    discard(l, 0, 0, 1 << 20);
    assert_int_equal(n_live(l), N / 3);
    discard(l, 0, 1 << 20, 1);
    assert_int_equal(n_live(l), 0);
    tide_ledger_destroy(l);
}

static void texts_are_kept_once_and_never_move(void **state) {
    (void)state;
    tide_ledger *l = make();
    tide_live_block first, out;
    send_alloc(l, 1, 1, "the first");
    assert_int_equal(tide_ledger_largest(l, 0, &first, 1), 1);
    char tag[32];
    for (uint64_t i = 2; i < 3000; i++) {
        snprintf(tag, sizeof tag, "tag %u", (unsigned)(i % 700));
        send_alloc(l, i, 1, tag);
    }
    assert_string_equal(first.tag, "the first");
    tide_host_stats before, after;
    tide_host_get_stats(&before);
    for (uint64_t i = 2; i < 3000; i++) send_free(l, i);
    for (uint64_t i = 3000; i < 5998; i++) {
        snprintf(tag, sizeof tag, "tag %u", (unsigned)(i % 700));
        send_alloc(l, i, 2, tag);
    }
    tide_host_get_stats(&after);
    assert_true(after.n_allocs == before.n_allocs); // as many blocks and the same texts: nothing new
    assert_int_equal(tide_ledger_largest(l, 5996, &out, 1), 1);
    assert_string_equal(out.tag, "tag 397");
    assert_int_equal(tide_ledger_largest(l, 0, NULL, 0), 2999);
    tide_ledger_destroy(l);
}

// ---- without host memory ----

/// Every allocation of the ledger fails from the `good`-th on.
static void run_short_of_memory(int64_t good, bool *went_short) {
    enum { N = 700 };
    tide_ledger *l = make();
    *went_short = false;
    tide_host_fail_after(good);
    for (uint64_t i = 1; i <= N; i++) {
        char tag[16];
        snprintf(tag, sizeof tag, "t%u", (unsigned)i);
        tide_host_stats before, after;
        tide_host_get_stats(&before);
        send_alloc(l, i, i, tag);
        tide_host_get_stats(&after);
        if (*went_short) tide_host_fail_after(0);
        // The planted failure came to pass when a text or an entry got nothing.
        tide_live_block b;
        if (tide_ledger_largest(l, i - 1, &b, 1) == 0 || strcmp(b.tag, tag) != 0) {
            *went_short = true;
            tide_host_fail_after(0);
        }
    }
    tide_host_fail_after(-1);
    const size_t n_in = tide_ledger_largest(l, 0, NULL, 0);
    assert_true(n_in + tide_ledger_n_lost(l) == N); // counted, not forgotten
    assert_true(tide_ledger_last_id(l) == N);
    tide_live_block *all = calloc(N, sizeof *all);
    assert_non_null(all);
    assert_int_equal(tide_ledger_largest(l, 0, all, N), n_in);
    for (size_t i = 0; i < n_in; i++) {
        assert_true(all[i].requested_bytes == all[i].block_id);
        assert_true(all[i].tag[0] == 't' || strstr(all[i].tag, "no memory") != NULL);
    }
    free(all);
    for (uint64_t i = 1; i <= N; i++) send_free(l, i);
    assert_int_equal(tide_ledger_largest(l, 0, NULL, 0), 0);
    tide_ledger_destroy(l);
}

static void host_memory_ends(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_ledger *none = NULL;
    tide_host_fail_after(0);
    assert_tide_status(tide_ledger_create(&none, &err), TIDE_ERR_NOMEM);
    assert_null(none);
    size_t n_short = 0;
    bool went_short = true;
    for (int64_t good = 0; good < 1000; good += 1 + good / 8) {
        run_short_of_memory(good, &went_short);
        n_short += went_short;
    }
    assert_true(n_short > 20);
    assert_false(went_short); // in the end there was enough
}

/// The table cannot grow: it fills up to its last slot but one before anything is lost.
static void a_full_table_loses_only_what_does_not_fit(void **state) {
    (void)state;
    tide_ledger *l = make();
    send_alloc(l, 1, 1, "t"); // tables and texts are there now
    for (uint64_t i = 2; i <= 400; i++) {
        tide_host_fail_after(0);
        send_alloc(l, i, i, "t");
    }
    tide_host_fail_after(-1);
    assert_int_equal(tide_ledger_largest(l, 0, NULL, 0), 15);
    assert_true(tide_ledger_n_lost(l) == 385);
    for (uint64_t i = 1; i <= 400; i++) send_free(l, i);
    assert_int_equal(tide_ledger_largest(l, 0, NULL, 0), 0);
    tide_ledger_destroy(l);
}

// ---- out of memory ----

static void the_first_failure_is_kept_LT_32(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_ledger *l = make();
    tide_oom_report r;
    assert_false(tide_ledger_oom(l, &r));
    const tide_observer obs = tide_ledger_observer(l);
    tide_allocator *cpu = NULL, *arena = NULL, *a = NULL;
    assert_tide_ok(tide_cpu_allocator_create(&cpu, &err), &err);
    assert_tide_ok(tide_arena_create(cpu, 16384, 256, &arena, &err), &err);
    assert_tide_ok(tide_instrumented_create(arena, &obs, &a, &err), &err);
    tide_block *blocks[12], *none = NULL;
    tide_scope scope = {.name = "op", .kind = TIDE_SCOPE_OPERATOR};
    tide_scope_enter(&scope, NULL);
    for (int i = 0; i < 12; i++) {
        const tide_memory_kind kind = i % 2 == 0 ? TIDE_KIND_WORKSPACE : TIDE_KIND_KV_CACHE;
        assert_tide_ok(tide_block_create(a, 256 + 64 * (size_t)i, 256, kind, 0, "held", &blocks[i], &err), &err);
    }
    // A block of another device is not told of here.
    send_event(l, &(tide_memory_event){.op = TIDE_MEM_ALLOC,
                                       .block_id = UINT64_MAX,
                                       .device = {TIDE_DEVICE_CUDA, 1},
                                       .requested_bytes = 1 << 30});
    tide_allocator_stats now = stats_of(a);
    assert_tide_status(tide_block_create(a, 100000, 256, TIDE_KIND_WORKSPACE, 0, "first", &none, &err),
                       TIDE_ERR_NO_SPACE);
    tide_scope_leave(&scope, NULL);
    assert_tide_status(tide_block_create(a, 200000, 256, TIDE_KIND_WORKSPACE, 0, "second", &none, &err),
                       TIDE_ERR_NO_SPACE);
    assert_true(tide_ledger_oom(l, &r));
    assert_true(r.asked_bytes == 100000 && r.align_bytes == 256);
    assert_true(tide_device_equal(r.device, TIDE_CPU));
    assert_int_equal(r.kind, TIDE_KIND_WORKSPACE);
    assert_string_equal(r.tag, "first");
    assert_string_equal(r.op, "op");
    assert_string_equal(r.allocator, "arena");
    now.n_failed++;
    assert_memory_equal(&r.stats, &now, sizeof now);
    assert_true(r.would_fit_bytes == r.stats.largest_free_bytes);
    assert_int_equal(r.n_live, 12);
    assert_int_equal(r.n_blocks, TIDE_OOM_N_BLOCKS);
    assert_true(r.live_bytes == r.stats.requested_bytes);
    for (size_t i = 0; i < r.n_blocks; i++) {
        assert_true(r.blocks[i].block_id == blocks[11 - i]->id);
        assert_int_equal(r.blocks[i].kind, blocks[11 - i]->kind);
        assert_string_equal(r.blocks[i].op, "op");
    }
    // What it promised holds: that much fits, and a byte more does not.
    tide_block *fits = NULL;
    assert_tide_status(
        tide_block_create(a, (size_t)r.would_fit_bytes + 1, 256, TIDE_KIND_WORKSPACE, 0, "x", &fits, &err),
        TIDE_ERR_NO_SPACE);
    assert_tide_ok(tide_block_create(a, (size_t)r.would_fit_bytes, 256, TIDE_KIND_WORKSPACE, 0, "x", &fits, &err),
                   &err);
    tide_block_unref(fits);

    tide_ledger_clear_oom(l);
    assert_false(tide_ledger_oom(l, &r));
    assert_tide_status(tide_block_create(a, 300000, 256, TIDE_KIND_WORKSPACE, 0, "third", &none, &err),
                       TIDE_ERR_NO_SPACE);
    assert_true(tide_ledger_oom(l, &r));
    assert_string_equal(r.tag, "third");
    for (int i = 0; i < 12; i++) tide_block_unref(blocks[i]);
    tide_allocator_unref(a);
    tide_allocator_unref(arena);
    tide_allocator_unref(cpu);
    tide_ledger_destroy(l);
}

/// A limit says what its budget leaves, and that much fits indeed.
static void what_would_fit_into_a_budget(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_ledger *l = make();
    tide_oom_report r;
    const tide_observer obs = tide_ledger_observer(l);
    tide_allocator *cpu = NULL, *limit = NULL, *a = NULL;
    assert_tide_ok(tide_cpu_allocator_create(&cpu, &err), &err);
    assert_tide_ok(tide_limit_create(cpu, 10000, &limit, &err), &err);
    assert_tide_ok(tide_instrumented_create(limit, &obs, &a, &err), &err);
    tide_block *held = NULL, *b = NULL;
    assert_tide_ok(tide_block_create(a, 3000, 256, TIDE_KIND_WORKSPACE, 0, "held", &held, &err), &err); // takes 3072
    assert_tide_status(tide_block_create(a, 7000, 256, TIDE_KIND_WORKSPACE, 0, "b", &b, &err), TIDE_ERR_NOMEM);
    assert_true(tide_ledger_oom(l, &r));
    assert_true(r.would_fit_bytes == 6912); // 6928 are left, whole units of 256 among them
    assert_tide_ok(tide_block_create(a, 6912, 256, TIDE_KIND_WORKSPACE, 0, "b", &b, &err), &err);
    tide_block_unref(b);
    tide_block_unref(held);
    tide_allocator_unref(a);
    tide_allocator_unref(limit);
    tide_allocator_unref(cpu);
    tide_ledger_destroy(l);
}

// ---- threads ----

static void *churn(void *arg) {
    tide_allocator *a = arg;
    tide_rng rng = {(uint64_t)tide_thread_id()};
    tide_block *held[16] = {0};
    for (int step = 0; step < 2000; step++) {
        tide_block **slot = &held[tide_rng_below(&rng, 16)];
        tide_block_unref(*slot);
        *slot = NULL;
        char tag[16];
        snprintf(tag, sizeof tag, "t%u", (unsigned)tide_rng_below(&rng, 100));
        const size_t size = 1 + (size_t)tide_rng_below(&rng, 500);
        if (tide_block_create(a, size, 0, TIDE_KIND_DEFAULT, 0, tag, slot, NULL) != TIDE_OK) return a;
    }
    for (int i = 0; i < 16; i++) tide_block_unref(held[i]);
    return NULL;
}

static void four_threads_leave_nothing(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_ledger *l = make();
    const tide_observer obs = tide_ledger_observer(l);
    tide_allocator *cpu = NULL, *a = NULL;
    assert_tide_ok(tide_cpu_caching_allocator_create(&cpu, &err), &err);
    assert_tide_ok(tide_instrumented_create(cpu, &obs, &a, &err), &err);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, churn, a), 0);
    for (int i = 0; i < 50; i++) {
        tide_live_block out[10];
        const size_t n = tide_ledger_largest(l, 0, out, 10);
        for (size_t k = 1; k < n && k < 10; k++) assert_true(out[k - 1].requested_bytes >= out[k].requested_bytes);
    }
    for (int i = 0; i < 4; i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(tide_ledger_largest(l, 0, NULL, 0), 0);
    assert_true(tide_ledger_n_lost(l) == 0);
    tide_allocator_unref(a);
    tide_allocator_unref(cpu);
    tide_ledger_destroy(l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(the_largest_are_those_of_a_plain_list),
        tide_unit_test(every_field_of_a_live_block),
        tide_unit_test(a_released_block_stays_until_its_free_is_complete),
        tide_unit_test(a_discarded_pool_takes_its_blocks),
        tide_unit_test(a_large_pool_goes_as_a_whole),
        tide_unit_test(texts_are_kept_once_and_never_move),
        tide_unit_test(host_memory_ends),
        tide_unit_test(a_full_table_loses_only_what_does_not_fit),
        tide_unit_test(the_first_failure_is_kept_LT_32),
        tide_unit_test(what_would_fit_into_a_budget),
        tide_unit_test(four_threads_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
