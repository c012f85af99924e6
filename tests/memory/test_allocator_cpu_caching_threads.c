// SPDX-License-Identifier: MIT
//
// The shards of the caching allocator: blocks that wander between threads, and numbers, peaks among them, that stay
// exact although every shard counts for itself.
#include "core/memory/allocator_internal.h"
#include "memory_test.h"

static tide_allocator *make(tide_size_classes sizes) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    assert_tide_ok(tide_cpu_caching_allocator_create_sized(sizes, &a, &err), &err);
    return a;
}

// ---- threads that do one thing at a time, when they are told ----

enum { N_HANDS = 12, N_SLOTS = 40 }; // more threads than shards

typedef enum errand { WAIT, TAKE, GIVE, LEAVE } errand;

typedef struct hand {
    pthread_t thread;
    pthread_cond_t told;
    struct bench *bench;
    errand todo;
} hand;

typedef struct bench {
    pthread_mutex_t lock;
    pthread_cond_t done;
    hand hands[N_HANDS];
    tide_allocator *a;
    tide_memory *slot; // of the errand
    size_t size_bytes;
} bench;

static void *follow(void *arg) {
    hand *h = arg;
    bench *b = h->bench;
    pthread_mutex_lock(&b->lock);
    for (;;) {
        while (h->todo == WAIT) pthread_cond_wait(&h->told, &b->lock);
        if (h->todo == TAKE) {
            const tide_alloc_request req = {.size_bytes = b->size_bytes, .align_bytes = 64, .block_id = 1};
            if (tide_allocator_alloc(b->a, &req, b->slot, NULL) != TIDE_OK) b->slot->data = NULL;
        } else if (h->todo == GIVE) {
            tide_allocator_release(b->a, b->slot, 0);
            b->slot->data = NULL;
        } else {
            break;
        }
        h->todo = WAIT;
        pthread_cond_signal(&b->done);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

static void hire(bench *b, tide_allocator *a) {
    *b = (bench){.lock = PTHREAD_MUTEX_INITIALIZER, .done = PTHREAD_COND_INITIALIZER, .a = a};
    for (int i = 0; i < N_HANDS; i++) {
        b->hands[i].bench = b;
        pthread_cond_init(&b->hands[i].told, NULL);
        assert_int_equal(pthread_create(&b->hands[i].thread, NULL, follow, &b->hands[i]), 0);
    }
}

static void send(bench *b, size_t hand_i, errand todo, tide_memory *slot, size_t size_bytes) {
    pthread_mutex_lock(&b->lock);
    b->slot = slot;
    b->size_bytes = size_bytes;
    b->hands[hand_i].todo = todo;
    pthread_cond_signal(&b->hands[hand_i].told);
    while (todo != LEAVE && b->hands[hand_i].todo != WAIT) pthread_cond_wait(&b->done, &b->lock);
    pthread_mutex_unlock(&b->lock);
}

static void dismiss(bench *b) {
    for (size_t i = 0; i < N_HANDS; i++) send(b, i, LEAVE, NULL, 0);
    for (int i = 0; i < N_HANDS; i++) pthread_join(b->hands[i].thread, NULL);
}

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

/// One event after the other over twelve threads, so that every moment has a true sum: the allocator's numbers, seldom
/// looked at or after every step, are those of a plain count. Blocks are freed by any thread.
static void follow_the_plain_count(tide_size_classes sizes, int look_every) {
    static bench b;
    tide_allocator *a = make(sizes);
    hire(&b, a);
    tide_rng rng = {(uint64_t)look_every};
    tide_memory slots[N_SLOTS] = {{0}};
    uint64_t requested = 0, active = 0, peak_requested = 0, peak_active = 0, n_allocs = 0, n_frees = 0;
    for (int step = 0; step < 4000; step++) {
        tide_memory *slot = &slots[tide_rng_below(&rng, N_SLOTS)];
        const size_t hand_i = (size_t)tide_rng_below(&rng, N_HANDS);
        if (slot->data != NULL) {
            requested -= slot->requested_bytes;
            active -= slot->reserved_bytes;
            send(&b, hand_i, GIVE, slot, 0);
            n_frees++;
        } else {
            const size_t size = (size_t)1 << tide_rng_below(&rng, 22);
            send(&b, hand_i, TAKE, slot, size + (size_t)tide_rng_below(&rng, size));
            assert_non_null(slot->data);
            requested += slot->requested_bytes;
            active += slot->reserved_bytes;
            n_allocs++;
        }
        peak_requested = larger(peak_requested, requested);
        peak_active = larger(peak_active, active);
        if (step % look_every != 0) continue;
        const tide_allocator_stats s = stats_of(a);
        assert_true(s.requested_bytes == requested && s.active_bytes == active);
        assert_int_equal(s.peak_requested_bytes, peak_requested);
        assert_int_equal(s.peak_active_bytes, peak_active);
        assert_true(s.n_allocs == n_allocs && s.n_frees == n_frees);
        assert_true(s.reserved_bytes == s.active_bytes + s.cached_bytes);
        assert_true(s.peak_reserved_bytes == s.reserved_bytes); // nothing was given back yet
        assert_sound(a);
    }
    for (int i = 0; i < N_SLOTS; i++) {
        if (slots[i].data != NULL) send(&b, 0, GIVE, &slots[i], 0);
    }
    dismiss(&b);
    assert_true(stats_of(a).active_bytes == 0 && stats_of(a).requested_bytes == 0);
    tide_allocator_trim(a);
    assert_true(stats_of(a).reserved_bytes == 0);
    assert_sound(a);
    tide_allocator_unref(a);
}

static void peaks_are_exact_over_threads(void **state) {
    (void)state;
    follow_the_plain_count(TIDE_SIZES_POW2, 1);
    follow_the_plain_count(TIDE_SIZES_POW2, 97);
    follow_the_plain_count(TIDE_SIZES_STEPS, 1333);
}

/// What one thread freed serves another one before the system is asked.
static void blocks_are_taken_from_other_shards(void **state) {
    (void)state;
    static bench b;
    tide_allocator *a = make(TIDE_SIZES_POW2);
    hire(&b, a);
    tide_memory mem = {0};
    send(&b, 0, TAKE, &mem, 5000);
    void *const first = mem.data;
    for (size_t i = 1; i < N_HANDS; i++) {
        send(&b, i - 1, GIVE, &mem, 0);
        send(&b, i, TAKE, &mem, 5000 + i);
        assert_ptr_equal(mem.data, first);
        assert_sound(a);
    }
    assert_true(stats_of(a).n_system == 1 && stats_of(a).n_hits == N_HANDS - 1);
    // All shards' caches are given back when the system refuses.
    send(&b, 5, GIVE, &mem, 0);
    tide__system_refuse(1);
    send(&b, 2, TAKE, &mem, 100000);
    assert_non_null(mem.data);
    assert_true(stats_of(a).reserved_bytes == 131072 && stats_of(a).cached_bytes == 0);
    send(&b, 3, GIVE, &mem, 0);
    dismiss(&b);
    tide_allocator_unref(a);
}

// ---- all at once ----

enum { N_THREADS = 8, N_TURNS = 4000, N_BASKETS = 64 };

typedef struct rush {
    tide_allocator *a;
    pthread_mutex_t locks[N_BASKETS];
    tide_memory baskets[N_BASKETS]; // where threads leave blocks for each other
    unsigned char fills[N_BASKETS];
    _Atomic int n_spoiled, n_failed;
    _Atomic uint64_t seed;
} rush;

static bool is_filled(const tide_memory *mem, unsigned char fill) {
    const unsigned char *p = mem->data;
    for (size_t i = 0; i < mem->requested_bytes; i += 61) {
        if (p[i] != fill) return false;
    }
    return p[mem->requested_bytes - 1] == fill;
}

static void *hurry(void *arg) {
    rush *r = arg;
    tide_rng rng = {atomic_fetch_add(&r->seed, 1)};
    for (int turn = 0; turn < N_TURNS; turn++) {
        const size_t i = (size_t)tide_rng_below(&rng, N_BASKETS);
        const size_t low = (size_t)1 << tide_rng_below(&rng, 15);
        const tide_alloc_request req = {.size_bytes = low + (size_t)tide_rng_below(&rng, low),
                                        .align_bytes = (size_t)1 << tide_rng_below(&rng, 14)};
        tide_memory mine = {0}, old;
        if (tide_allocator_alloc(r->a, &req, &mine, NULL) != TIDE_OK) {
            atomic_fetch_add(&r->n_failed, 1);
            continue;
        }
        const unsigned char fill = (unsigned char)turn;
        memset(mine.data, fill, mine.requested_bytes);
        pthread_mutex_lock(&r->locks[i]);
        old = r->baskets[i];
        const unsigned char old_fill = r->fills[i];
        r->baskets[i] = mine;
        r->fills[i] = fill;
        pthread_mutex_unlock(&r->locks[i]);
        if (old.data == NULL) continue;
        if (!is_filled(&old, old_fill)) atomic_fetch_add(&r->n_spoiled, 1);
        tide_allocator_release(r->a, &old, 0);
    }
    return NULL;
}

static void *disturb(void *arg) {
    rush *r = arg;
    for (int i = 0; i < 60; i++) {
        tide_error err = TIDE_ERROR_INIT;
        if (tide_allocator_check(r->a, &err) != TIDE_OK) atomic_fetch_add(&r->n_spoiled, 1);
        if (i % 10 == 9) tide_allocator_trim(r->a);
        const struct timespec nap = {.tv_nsec = 500000};
        nanosleep(&nap, NULL);
    }
    return NULL;
}

// LT-39: eight threads free each other's blocks while another thread checks and trims the allocator.
static void eight_threads_share_blocks(void **state) {
    (void)state;
    static const tide_size_classes schemes[] = {TIDE_SIZES_POW2, TIDE_SIZES_STEPS};
    for (int k = 0; k < 2; k++) {
        static rush r;
        r = (rush){.a = make(schemes[k]), .seed = 39};
        pthread_t threads[N_THREADS + 1];
        for (int i = 0; i < N_BASKETS; i++) pthread_mutex_init(&r.locks[i], NULL);
        for (int i = 0; i <= N_THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, i < N_THREADS ? hurry : disturb, &r), 0);
        for (int i = 0; i <= N_THREADS; i++) pthread_join(threads[i], NULL);
        assert_true(r.n_spoiled == 0 && r.n_failed == 0);
        uint64_t out = 0;
        for (int i = 0; i < N_BASKETS; i++) out += r.baskets[i].data != NULL ? r.baskets[i].requested_bytes : 0;
        const tide_allocator_stats s = stats_of(r.a);
        assert_int_equal(s.requested_bytes, out);
        assert_int_equal(s.n_allocs, N_THREADS * N_TURNS);
        assert_true(s.peak_requested_bytes >= out);
        assert_true(s.peak_requested_bytes <= (uint64_t)(N_BASKETS + 2 * N_THREADS) << 15);
        for (int i = 0; i < N_BASKETS; i++) give(r.a, &r.baskets[i]);
        assert_sound(r.a);
        assert_true(stats_of(r.a).active_bytes == 0 && stats_of(r.a).n_frees == stats_of(r.a).n_allocs);
        tide_allocator_unref(r.a);
    }
}

/// All threads hold what they have at one moment: the peak was at least that much, and no thread ever had more.
typedef struct stand {
    tide_allocator *a;
    pthread_barrier_t barrier;
} stand;

enum { HELD = 37, STAND_BYTES = 1000 };

static void *stand_still(void *arg) {
    stand *s = arg;
    tide_memory mem[HELD];
    const tide_alloc_request req = {.size_bytes = STAND_BYTES};
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < HELD; i++) {
            if (tide_allocator_alloc(s->a, &req, &mem[i], NULL) != TIDE_OK) abort();
        }
        if (round == 25) pthread_barrier_wait(&s->barrier);
        for (int i = 0; i < HELD; i++) tide_allocator_release(s->a, &mem[i], 0);
    }
    return NULL;
}

static void the_highest_moment_is_remembered(void **state) {
    (void)state;
    stand s = {.a = make(TIDE_SIZES_POW2)};
    pthread_t threads[N_THREADS];
    pthread_barrier_init(&s.barrier, NULL, N_THREADS);
    for (int i = 0; i < N_THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, stand_still, &s), 0);
    for (int i = 0; i < N_THREADS; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&s.barrier);
    // At the barrier all of them hold all they ever hold: the peak is known to the byte.
    assert_int_equal(stats_of(s.a).peak_requested_bytes, N_THREADS * HELD * STAND_BYTES);
    assert_int_equal(stats_of(s.a).peak_active_bytes, N_THREADS * HELD * 1024);
    assert_sound(s.a);
    tide_allocator_unref(s.a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(peaks_are_exact_over_threads),
        tide_unit_test(blocks_are_taken_from_other_shards),
        tide_unit_test(eight_threads_share_blocks),
        tide_unit_test(the_highest_moment_is_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
