// SPDX-License-Identifier: MIT
//
// A feed in a program that starts and ends threads, and feeds that come and go meanwhile.
#include "feed_fixture.h"

#if defined(__SANITIZE_THREAD__)
enum { IS_TSAN = 1 };
#else
enum { IS_TSAN = 0 };
#endif

typedef struct worker {
    tide__feed *feed;
    pthread_t thread;
    uint64_t first, n; ///< block numbers
    uint32_t number;   ///< out: of the thread
} worker;

static void *put_n(void *arg) {
    worker *w = arg;
    w->number = tide_thread_id();
    char tag[32], name[32];
    tide_scope outer = {.name = "thread", .kind = TIDE_SCOPE_RUN, .index = (int32_t)w->first};
    tide_scope_enter(&outer, NULL);
    for (uint64_t i = 0; i < w->n; i++) {
        // Names that several threads meet for the first time together, in memory that is used again.
        snprintf(tag, sizeof tag, "tag %d", (int)(i / 3 % 500));
        snprintf(name, sizeof name, "scope %d", (int)(i / 7 % 100));
        tide_scope inner = {.name = name, .kind = TIDE_SCOPE_OPERATOR, .index = -1};
        tide_scope_enter(&inner, NULL);
        tide_memory_event e = fx_event(TIDE_MEM_ALLOC, w->first + i);
        e.tag = tag;
        e.scope = &inner;
        tide__feed_memory(w->feed, &e);
        tide_scope_leave(&inner, NULL);
    }
    tide_scope_leave(&outer, NULL);
    return NULL;
}

static void start(worker *w) { assert_int_equal(pthread_create(&w->thread, NULL, put_n, w), 0); }
static void join(worker *w) { assert_int_equal(pthread_join(w->thread, NULL), 0); }

/// Take one slot of `ring` and hold it against what put_n puts in. @return whether it was an event
static bool check_next(feed_fx *fx, size_t ring, uint64_t *next_id, bool *got) {
    tide__slot s;
    char want[80];
    *got = fx_take(fx, ring, true, &s);
    if (!*got || s.op == TIDE__SLOT_THREAD) return false;
    if (*next_id == 0) *next_id = s.block_id;
    assert_int_equal(s.block_id, (*next_id)++); // in order
    const uint64_t i = s.block_id % 1000000;
    snprintf(want, sizeof want, "tag %d", (int)(i / 3 % 500));
    assert_string_equal(fx_text(fx, s.tag), want);
    snprintf(want, sizeof want, "thread:%d/scope %d:-1", (int)(s.block_id - i), (int)(i / 7 % 100));
    assert_string_equal(fx_scope_path(fx, s.scope), want);
    return true;
}

/// Each thread's events in its own order, each name defined before it is used, while a reader follows.
static void threads_at_once(void **state) {
    (void)state;
    enum { N_THREADS = 8, N = IS_TSAN ? 5000 : 40000 };
    feed_fx *fx = fx_open(256, false);
    worker w[N_THREADS];
    for (size_t i = 0; i < N_THREADS; i++) {
        w[i] = (worker){.feed = fx->feed, .first = (i + 1) * 1000000, .n = N};
        start(&w[i]);
    }
    uint64_t next_id[FX_MAX_RINGS] = {0}, n_taken = 0;
    while (n_taken < (uint64_t)N_THREADS * N) {
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(tide__feed_reader_refresh(fx->reader, &err), &err);
        bool any = false, got;
        for (size_t k = 0; k < tide__feed_reader_n_rings(fx->reader); k++) {
            n_taken += check_next(fx, k, &next_id[k], &got);
            any = any || got;
        }
        if (!any) sched_yield();
    }
    for (int i = 0; i < N_THREADS; i++) join(&w[i]);
    assert_int_equal(fx_stats(fx).n_events, (uint64_t)N_THREADS * N);
    assert_int_equal(fx->n_of[TIDE__LOG_TEXT], 500 + 100 + 2); // each once, no matter which thread was first
    assert_int_equal(fx->n_of[TIDE__LOG_SCOPE], N_THREADS * 101);
    fx_close(fx);
}

enum { N_MEETING = 2, N_MEETINGS = IS_TSAN ? 300 : 3000 };

typedef struct meeting {
    tide__feed *feed;
    _Atomic int n_there; ///< over all rounds
} meeting;

static void *meet(void *arg) {
    meeting *m = arg;
    char tag[32];
    for (int i = 0; i < N_MEETINGS; i++) {
        snprintf(tag, sizeof tag, "new to all %d", i);
        tide_memory_event e = fx_event(TIDE_MEM_ALLOC, 1);
        e.tag = tag;
        atomic_fetch_add(&m->n_there, 1);
        // Both go on within some nanoseconds when both have a core: then one comes between the other's two looks.
        for (int spins = 1; atomic_load(&m->n_there) < (i + 1) * N_MEETING; spins++) {
            if (spins % 10000 == 0) sched_yield();
        }
        tide__feed_memory(m->feed, &e);
    }
    return NULL;
}

/// A name that no thread has seen is used by all of them in one moment: it gets one number.
static void a_name_that_all_meet_at_once(void **state) {
    (void)state;
    feed_fx *fx = fx_open(64, true);
    meeting m = {.feed = fx->feed};
    pthread_t t[N_MEETING];
    for (int i = 0; i < N_MEETING; i++) assert_int_equal(pthread_create(&t[i], NULL, meet, &m), 0);
    for (int i = 0; i < N_MEETING; i++) assert_int_equal(pthread_join(t[i], NULL), 0);
    fx_read_names(fx);
    assert_int_equal(fx->n_of[TIDE__LOG_TEXT], N_MEETINGS + 1);          // and the allocator's
    atomic_store(&tide__feed_head(fx->feed)->drain, TIDE__DRAIN_FAILED); // no drain makes room for the last gaps
    fx_close(fx);
}

/// Threads one after the other share one ring, and say when they take over. Their names are in the log.
static void a_ring_serves_thread_after_thread(void **state) {
    (void)state;
    enum { N_THREADS = 20 };
    feed_fx *fx = fx_open(64, false);
    for (int i = 0; i < N_THREADS; i++) {
        worker w = {.feed = fx->feed, .first = 1000000, .n = 2};
        start(&w);
        join(&w);
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(tide__feed_reader_refresh(fx->reader, &err), &err);
        assert_int_equal(tide__feed_reader_n_rings(fx->reader), 1);
        assert_int_equal(atomic_load(&tide__feed_reader_ring(fx->reader, 0)->owner), 0);
        tide__slot s;
        assert_true(fx_take(fx, 0, true, &s));
        assert_int_equal(s.op, TIDE__SLOT_THREAD);
        assert_int_equal(s.block_id, w.number);
        assert_int_equal(fx->n_of[TIDE__LOG_THREAD], i + 1);
        assert_int_equal(fx->of[TIDE__LOG_THREAD][i + 1]->id, w.number);
        for (int k = 0; k < 2; k++) assert_true(fx_take(fx, 0, true, &s));
        assert_int_equal(s.block_id, 1000001);
    }
    char name[16];
    assert_int_equal(pthread_getname_np(pthread_self(), name, sizeof name), 0);
    assert_string_equal((const char *)(fx->of[TIDE__LOG_THREAD][1] + 1), name); // threads inherit it
    fx_close(fx);
}

/// Feeds come and go while a thread lives; one may lie where another lay. None is taken for another.
static void feeds_come_and_go_while_threads_live(void **state) {
    (void)state;
    tmp_dir dir;
    tmp_dir_make(&dir);
    for (int i = 0; i < 30; i++) {
        tide__feed *f = fx_create(&dir, 64, false);
        const tide_memory_event e = fx_event(TIDE_MEM_ALLOC, 1);
        tide__feed_memory(f, &e);
        tide__feed_stats s;
        tide__feed_get_stats(f, &s);
        assert_true(s.n_events == 1 && s.n_rings == 1);
        tide__feed_end(f);
        tide__feed_destroy(f, true);
    }
    assert_int_equal(tmp_dir_count(&dir), 0);
    tmp_dir_remove(&dir);
}

/// More feeds at once than a thread keeps in mind: a ring is given back and another one, or the same, taken.
static void many_feeds_at_once(void **state) {
    (void)state;
    enum { N_FEEDS = 12 };
    tmp_dir dir;
    tmp_dir_make(&dir);
    tide__feed *f[N_FEEDS];
    for (int i = 0; i < N_FEEDS; i++) f[i] = fx_create(&dir, 64, false);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N_FEEDS; i++) {
            const tide_memory_event e = fx_event(TIDE_MEM_ALLOC, 1);
            tide__feed_memory(f[i], &e);
        }
    }
    for (int i = 0; i < N_FEEDS; i++) {
        tide__feed_stats s;
        tide__feed_get_stats(f[i], &s);
        assert_true(s.n_events == 3 && s.n_rings == 1);
        tide__feed_end(f[i]);
        tide__feed_destroy(f[i], true);
    }
    tmp_dir_remove(&dir);
}

typedef struct late {
    tide__feed *feed;
    _Atomic int step;
} late;

static void *outlive(void *arg) {
    late *l = arg;
    const tide_memory_event e = fx_event(TIDE_MEM_ALLOC, 1);
    tide__feed_memory(l->feed, &e);
    atomic_store(&l->step, 1);
    while (atomic_load(&l->step) != 2) sched_yield();
    return NULL; // its ring's feed is gone by now
}

static void a_thread_outlives_its_feed(void **state) {
    (void)state;
    tmp_dir dir;
    tmp_dir_make(&dir);
    late l = {.feed = fx_create(&dir, 64, false)};
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, outlive, &l), 0);
    while (atomic_load(&l.step) != 1) sched_yield();
    tide__feed_end(l.feed);
    tide__feed_destroy(l.feed, true);
    tide__feed *next = fx_create(&dir, 64, false); // likely where the first one was
    atomic_store(&l.step, 2);
    assert_int_equal(pthread_join(t, NULL), 0);
    tide__feed_end(next);
    tide__feed_destroy(next, true);
    tmp_dir_remove(&dir);
}

static pthread_key_t late_key;
static tide__feed_reader *late_reader;
static uint32_t late_owner, late_number;

static void put_late(void *feed) {
    const tide_memory_event e = fx_event(TIDE_MEM_FREE_COMPLETED, 2);
    tide__feed_memory(feed, &e);
    late_number = tide_thread_id();
    if (tide__feed_reader_refresh(late_reader, NULL) == TIDE_OK)
        late_owner = atomic_load(&tide__feed_reader_ring(late_reader, 0)->owner);
}

static void *leave_late(void *arg) {
    assert_int_equal(pthread_setspecific(late_key, arg), 0);
    const tide_memory_event e = fx_event(TIDE_MEM_ALLOC, 2);
    tide__feed_memory(arg, &e);
    return NULL;
}

/// A thread frees something while it ends, after its ring was given back: the event is there, and so is the ring.
static void events_of_a_thread_that_ends(void **state) {
    (void)state;
    feed_fx *fx = fx_open(64, false);
    late_reader = fx->reader;
    assert_int_equal(pthread_key_create(&late_key, put_late), 0); // after the feed's own: it is called after that
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, leave_late, fx->feed), 0);
    assert_int_equal(pthread_join(t, NULL), 0);
    assert_int_equal(fx_next(fx).op, TIDE_MEM_ALLOC);
    assert_int_equal(fx_next(fx).op, TIDE_MEM_FREE_COMPLETED);
    assert_int_equal(late_owner, late_number); // no other thread could own it then
    assert_int_equal(tide__feed_reader_n_rings(fx->reader), 1);
    assert_int_equal(atomic_load(&tide__feed_reader_ring(fx->reader, 0)->owner), 0);
    pthread_key_delete(late_key);
    fx_close(fx);
}

// ---- thousands ----

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { IS_SANITIZED = 1, N_MANY = 1200 }; // more than a table of a thousand has room for
#else
enum { IS_SANITIZED = 0, N_MANY = 4000 };
#endif
enum { EVENTS_OF_EACH = 20, N_MEASURED = 1000, MOST_BYTES = 100000000 };

typedef struct crowd {
    tide__feed *feed;
    pthread_barrier_t all_have_sent, may_go;
    _Atomic uint64_t n_started;
} crowd;

static void *live_long(void *arg) {
    crowd *c = arg;
    const uint64_t first = atomic_fetch_add(&c->n_started, 1) * EVENTS_OF_EACH;
    for (uint64_t i = 0; i < EVENTS_OF_EACH; i++) {
        const tide_memory_event e = fx_event(TIDE_MEM_ALLOC, 1 + first + i);
        tide__feed_memory(c->feed, &e);
    }
    pthread_barrier_wait(&c->all_have_sent);
    pthread_barrier_wait(&c->may_go);
    return NULL;
}

/// By the system's count.
static uint64_t resident_bytes(void) {
    FILE *f = fopen("/proc/self/statm", "re");
    assert_non_null(f);
    unsigned long all, resident;
    assert_int_equal(fscanf(f, "%lu %lu", &all, &resident), 2);
    assert_int_equal(fclose(f), 0);
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t disk_bytes(const char *path) {
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return (uint64_t)st.st_blocks * 512;
}

/// n threads that live at the same time, each with what it sent in a ring of its own, of the default size.
static void with_threads(size_t n, uint64_t *memory, uint64_t *disk) {
    feed_fx *fx = fx_open(0, false);
    crowd c = {.feed = fx->feed};
    pthread_attr_t attr;
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, 256 * 1024), 0);
    assert_int_equal(pthread_barrier_init(&c.all_have_sent, NULL, (unsigned)n + 1), 0);
    assert_int_equal(pthread_barrier_init(&c.may_go, NULL, (unsigned)n + 1), 0);
    pthread_t *t = calloc(n, sizeof *t);
    assert_non_null(t);
    const uint64_t before = resident_bytes(), disk_before = disk_bytes(tide__feed_path(fx->feed));
    for (size_t i = 0; i < n; i++) assert_int_equal(pthread_create(&t[i], &attr, live_long, &c), 0);
    pthread_barrier_wait(&c.all_have_sent);
    *memory = resident_bytes() - before;
    *disk = disk_bytes(tide__feed_path(fx->feed)) - disk_before;
    pthread_barrier_wait(&c.may_go);
    for (size_t i = 0; i < n; i++) assert_int_equal(pthread_join(t[i], NULL), 0);
    const tide__feed_stats s = fx_stats(fx);
    assert_true(s.n_events == n * EVENTS_OF_EACH && s.n_lost == 0 && s.n_refused == 0 && s.n_rings == n);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__feed_reader_refresh(fx->reader, &err), &err);
    assert_int_equal(tide__feed_reader_n_rings(fx->reader), n);
    uint64_t n_found = 0;
    for (size_t k = 0; k < n; k++) {
        const uint64_t end = tide__feed_reader_end(fx->reader, k, 0, false);
        for (uint64_t at = 0; at < end; at++)
            n_found += tide__feed_reader_slot(fx->reader, k, at)->op == TIDE_MEM_ALLOC;
    }
    assert_int_equal(n_found, n * EVENTS_OF_EACH);
    free(t);
    pthread_attr_destroy(&attr);
    pthread_barrier_destroy(&c.all_have_sent);
    pthread_barrier_destroy(&c.may_go);
    fx_close(fx);
}

static void thousands_of_threads(void **state) {
    (void)state;
    uint64_t memory, disk;
    with_threads(N_MANY, &memory, &disk);
}

/// With their stacks and all: a ring begins small.
static void threads_that_say_little_cost_little(void **state) {
    (void)state;
    uint64_t memory, disk;
    with_threads(N_MEASURED, &memory, &disk);
    assert_true(disk < MOST_BYTES);
    if (!IS_SANITIZED) assert_true(memory < MOST_BYTES); // sanitizers have memory of their own for each thread
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(threads_at_once),
        tide_unit_test(a_name_that_all_meet_at_once),
        tide_unit_test(a_ring_serves_thread_after_thread),
        tide_unit_test(feeds_come_and_go_while_threads_live),
        tide_unit_test(many_feeds_at_once),
        tide_unit_test(a_thread_outlives_its_feed),
        tide_unit_test(events_of_a_thread_that_ends),
        tide_unit_test(thousands_of_threads),
        tide_unit_test(threads_that_say_little_cost_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
