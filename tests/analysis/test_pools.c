// SPDX-License-Identifier: MIT
//
// Pools: at every moment of a real trace the numbers of a plain replay; of a plan those of its tensors.
#include "analysis/pools.h"

#include "tests/analysis/allocator_fixture.h"

enum { MAX_EVENTS = 2000, MAX_POOLS = 16, MAX_SEGMENTS = 64, MAX_LIVE = 64 };

// ---- the plain replay ----

typedef struct plain_pool {
    const char *allocator;
    tide_memory_kind kind;
    bool tells;
    size_t n_segments, n_blocks;
    uint64_t reserved, active, requested, largest_free;
} plain_pool;

typedef struct plain_state {
    plain_pool pools[MAX_POOLS];
    size_t n;
} plain_state;

static tide_trace_event events[MAX_EVENTS];
static size_t n_events;
static plain_state states[MAX_EVENTS + 1]; // [i]: after i events
static const tide_trace_event *segments[MAX_SEGMENTS], *live[MAX_LIVE];
static size_t n_segments, n_live;

static tide_memory_kind kind_of(const tide_trace_event *e) {
    tide_memory_kind kind;
    assert_tide_ok(tide_memory_kind_parse(e->kind, &kind, NULL), (&(tide_error){0}));
    return kind;
}

static bool is_inside(const tide_trace_event *block, const tide_trace_event *segment) {
    return block->address >= segment->address &&
           block->address + block->reserved_bytes <= segment->address + segment->reserved_bytes;
}

static const tide_trace_event *segment_of(const tide_trace_event *block) {
    for (size_t i = 0; i < n_segments; i++) {
        if (is_inside(block, segments[i])) return segments[i];
    }
    return NULL;
}

static plain_pool *plain_pool_of(plain_state *s, const tide_trace_event *e, bool tells) {
    for (size_t i = 0; i < s->n; i++) {
        plain_pool *p = &s->pools[i];
        if (strcmp(p->allocator, e->allocator) == 0 && p->kind == kind_of(e) && p->tells == tells) return p;
    }
    assert_true(s->n < MAX_POOLS);
    s->pools[s->n] = (plain_pool){.allocator = e->allocator, .kind = kind_of(e), .tells = tells};
    return &s->pools[s->n++];
}

static uint64_t largest_free_of(const tide_trace_event *segment) {
    uint64_t largest = 0;
    // from the begin of the segment and behind every block up to the next one
    for (size_t k = 0; k <= n_live; k++) {
        if (k < n_live && !is_inside(live[k], segment)) continue;
        const uint64_t from = k < n_live ? live[k]->address + live[k]->reserved_bytes : segment->address;
        uint64_t to = segment->address + segment->reserved_bytes;
        for (size_t i = 0; i < n_live; i++) {
            if (is_inside(live[i], segment) && live[i]->address >= from && live[i]->address < to) to = live[i]->address;
        }
        if (to - from > largest) largest = to - from;
    }
    return largest;
}

static void add_up(plain_state *s) {
    for (size_t i = 0; i < n_segments; i++) {
        plain_pool *p = plain_pool_of(s, segments[i], true);
        p->n_segments++;
        p->reserved += segments[i]->reserved_bytes;
        const uint64_t free_bytes = largest_free_of(segments[i]);
        if (free_bytes > p->largest_free) p->largest_free = free_bytes;
    }
    for (size_t i = 0; i < n_live; i++) {
        const tide_trace_event *segment = segment_of(live[i]);
        plain_pool *p = plain_pool_of(s, segment != NULL ? segment : live[i], segment != NULL);
        p->n_blocks++;
        p->active += live[i]->reserved_bytes;
        p->requested += live[i]->requested_bytes;
        if (segment == NULL) p->reserved += live[i]->reserved_bytes;
    }
}

static void drop(const tide_trace_event **list, size_t *n, uint64_t block_id) {
    size_t i = 0;
    while (i < *n && list[i]->block_id != block_id) i++;
    assert_true(i < *n);
    list[i] = list[--*n];
}

static void replay_plainly(tide_trace *t) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_trace_events(t, 1, events, MAX_EVENTS, &n_events, &err), &err);
    assert_true(n_events < MAX_EVENTS);
    memset(states, 0, sizeof states);
    n_segments = n_live = 0;
    for (size_t i = 0; i < n_events; i++) {
        const tide_trace_event *e = &events[i];
        assert_int_equal(e->id, i + 1);
        if (strcmp(e->op, "alloc") == 0) live[n_live++] = e;
        if (strcmp(e->op, "free_completed") == 0) drop(live, &n_live, e->block_id);
        if (strcmp(e->op, "segment_alloc") == 0) segments[n_segments++] = e;
        if (strcmp(e->op, "segment_free") == 0) drop(segments, &n_segments, e->block_id);
        assert_true(n_live < MAX_LIVE && n_segments < MAX_SEGMENTS);
        add_up(&states[i + 1]);
    }
}

/// What a pool held after `i` events; nothing where it is not known yet.
static plain_pool plain_at(size_t i, const tide_pool *p) {
    for (size_t k = 0; k < states[i].n; k++) {
        const plain_pool *q = &states[i].pools[k];
        if (strcmp(q->allocator, p->name) == 0 && q->kind == p->kind && q->tells == p->tells_segments) return *q;
    }
    return (plain_pool){.allocator = p->name, .kind = p->kind, .tells = p->tells_segments};
}

static uint64_t cached_at(size_t i, const tide_pool *p) {
    const plain_pool q = plain_at(i, p);
    return q.reserved - q.active;
}

// ---- against it ----

static void check_pool(const tide_pool *p, size_t at, size_t first, size_t last, int64_t begin) {
    const plain_pool q = plain_at(at, p);
    assert_int_equal(p->n_segments, q.n_segments);
    assert_int_equal(p->n_blocks, q.n_blocks);
    assert_int_equal(p->reserved_bytes, q.reserved);
    assert_int_equal(p->active_bytes, q.active);
    assert_int_equal(p->requested_bytes, q.requested);
    assert_int_equal(p->cached_bytes, q.reserved - q.active);
    assert_true(p->largest_free_bytes == (q.n_segments > 0 ? q.largest_free : TIDE_UNKNOWN_BYTES));
    uint64_t peak_reserved = 0, peak_active = 0, unused = UINT64_MAX;
    for (size_t i = 0; i <= n_events; i++) {
        const plain_pool r = plain_at(i, p);
        if (r.reserved > peak_reserved) peak_reserved = r.reserved;
        if (r.active > peak_active) peak_active = r.active;
        if (i >= first && i <= last && r.reserved > 0 && r.reserved - r.active < unused) unused = r.reserved - r.active;
    }
    assert_int_equal(p->peak_reserved_bytes, peak_reserved);
    assert_int_equal(p->peak_active_bytes, peak_active);
    assert_int_equal(p->unused_bytes, unused != UINT64_MAX ? unused : 0);
    size_t i = at; // back to the last event after which less was left
    while (i > 0 && cached_at(i, p) >= cached_at(at, p)) i--;
    const bool ever = cached_at(i, p) < cached_at(at, p);
    if (p->tells_segments) assert_int_equal(p->unused_since, ever ? (int64_t)events[i].t_ns : begin);
}

/// Since when `bytes` are spare up to the moment, event for event; of any allocator or pool.
static void check_spare(tide_subject *s, const tide_pool *p, size_t at, uint64_t bytes, int64_t begin) {
    const tide_trace_spare_question q = {.pool = p->number, .at_event = at, .bytes = bytes};
    tide_error err = TIDE_ERROR_INIT;
    uint64_t since;
    assert_tide_ok(tide_trace_pool_spare_since(tide_subject_trace(s), &q, NULL, &since, &err), &err);
    size_t i = at;
    while (i > 0 && cached_at(i, p) >= bytes) i--;
    if (!p->tells_segments || (i == at && cached_at(i, p) < bytes))
        assert_true(since == UINT64_MAX);
    else
        assert_int_equal(since, cached_at(i, p) < bytes ? events[i].t_ns : (uint64_t)begin);
}

static void check_moment(tide_subject *s, tide_moment at, size_t at_i, size_t first, size_t last) {
    const tide_subject_facts *f = tide_subject_get_facts(s);
    tide_error err = TIDE_ERROR_INIT;
    tide_pools pools;
    const int64_t t0 = first > 0 ? (int64_t)events[first - 1].t_ns : f->begin;
    const int64_t t1 = last > 0 ? (int64_t)events[last - 1].t_ns : f->begin;
    assert_tide_ok(tide_pools_at(s, at, t0, t1, NULL, &pools, &err), &err);
    uint64_t reserved = 0, active = 0, want_reserved = 0, want_active = 0;
    for (size_t i = 0; i < pools.n; i++) {
        check_pool(&pools.items[i], at_i, first, last, f->begin);
        check_spare(s, &pools.items[i], at_i, 1 + pools.items[i].cached_bytes / 2, f->begin);
        check_spare(s, &pools.items[i], at_i, pools.items[i].cached_bytes, f->begin);
        check_spare(s, &pools.items[i], at_i, pools.items[i].cached_bytes + 1, f->begin);
        reserved += pools.items[i].reserved_bytes;
        active += pools.items[i].active_bytes;
        if (i > 0) assert_true(pools.items[i - 1].reserved_bytes >= pools.items[i].reserved_bytes);
    }
    for (size_t i = 0; i < states[at_i].n; i++) {
        want_reserved += states[at_i].pools[i].reserved;
        want_active += states[at_i].pools[i].active;
    }
    assert_int_equal(reserved, want_reserved); // none is missing
    assert_int_equal(active, want_active);
    assert_int_equal(pools.reserved_bytes, reserved);
    assert_int_equal(pools.cached_bytes, reserved - active);
    tide_pools_deinit(&pools);
}

static void every_moment_of_a_real_trace(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        tmp_dir dir;
        working w;
        tmp_dir_make(&dir);
        work_open(&w, dir.file);
        work_at_random(&w, seed, 250);
        work_close(&w);
        tide_subject *s = subject_of_trace(dir.file, 0);
        replay_plainly(tide_subject_trace(s));
        tide_rng rng = {seed};
        bool any_segment_went = false;
        for (size_t i = 1; i <= n_events; i++) {
            const size_t a = 1 + (size_t)tide_rng_below(&rng, n_events), b = 1 + (size_t)tide_rng_below(&rng, n_events);
            const tide_moment by_event = {(int64_t)events[i - 1].t_ns, events[i - 1].id};
            const tide_moment by_time = {(int64_t)events[i - 1].t_ns, 0};
            check_moment(s, i % 2 == 0 ? by_event : by_time, i, a < b ? a : b, a < b ? b : a);
            any_segment_went = any_segment_went || strcmp(events[i - 1].op, "segment_free") == 0;
        }
        assert_true(any_segment_went);
        tide_subject_destroy(s);
        tmp_dir_remove(&dir);
    }
}

/// What was summed up before goes on with what came since.
static void a_trace_that_grows(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tmp_dir dir;
    working w;
    tmp_dir_make(&dir);
    work_open(&w, dir.file);
    tide_subject *s = NULL;
    tide_rng rng = {5};
    for (int part = 0; part < 6; part++) {
        bool grew = true;
        work_at_random(&w, (uint64_t)part + 11, 60);
        assert_tide_ok(tide_recorder_flush(w.rec, &err), &err);
        if (s != NULL) assert_tide_ok(tide_subject_refresh(s, &grew, &err), &err);
        if (s == NULL) s = subject_of_trace(dir.file, 0);
        assert_true(grew && tide_subject_get_facts(s)->is_recording);
        replay_plainly(tide_subject_trace(s));
        for (int k = 0; k < 60; k++) {
            const size_t a = 1 + (size_t)tide_rng_below(&rng, n_events), b = 1 + (size_t)tide_rng_below(&rng, n_events);
            const size_t at = k < 50 ? 1 + (size_t)tide_rng_below(&rng, n_events) : n_events;
            const tide_moment by_event = {(int64_t)events[at - 1].t_ns, events[at - 1].id};
            check_moment(s, by_event, at, k == 1 ? 0 : (a < b ? a : b), k == 2 ? n_events : (a < b ? b : a));
        }
    }
    work_close(&w);
    tide_subject_destroy(s);
    tmp_dir_remove(&dir);
}

/// A run begins with what was held before it, and its peaks are its own.
static void a_run_begins_with_what_was_there(void **state) {
    (void)state;
    tmp_dir dir;
    working w;
    tide_error err = TIDE_ERROR_INIT;
    tmp_dir_make(&dir);
    work_open(&w, dir.file);
    work_alloc(&w, 0, 0, 30 << 20, TIDE_KIND_WORKSPACE, "before");
    work_free(&w, 0);
    const tide_run_info info = {.model = "m", .mode = "naive", .device = "cpu"};
    int64_t run_id;
    w.now += WORK_STEP_NS;
    const int64_t begin = (int64_t)w.now;
    assert_tide_ok(tide_recorder_begin_run(w.rec, &info, NULL, &run_id, &err), &err);
    work_alloc(&w, 0, 0, 20 << 20, TIDE_KIND_WORKSPACE, "inside");
    w.now += WORK_STEP_NS;
    assert_tide_ok(tide_recorder_end_run(w.rec, &err), &err);
    work_close(&w);
    tide_subject *s = subject_of_trace(dir.file, run_id);
    const tide_subject_facts *f = tide_subject_get_facts(s);
    tide_pools pools;
    assert_tide_ok(tide_pools_at(s, (tide_moment){f->begin, 0}, f->begin, f->end, NULL, &pools, &err), &err);
    assert_int_equal(pools.n, 1);
    assert_int_equal(pools.items[0].n_blocks, 0);
    assert_true(pools.items[0].reserved_bytes >= 30 << 20);
    assert_int_equal(pools.items[0].cached_bytes, pools.items[0].reserved_bytes);
    assert_true(pools.items[0].peak_active_bytes >= 20 << 20 && pools.items[0].peak_active_bytes < 30 << 20);
    assert_int_equal(pools.items[0].unused_bytes, pools.items[0].reserved_bytes - pools.items[0].peak_active_bytes);
    assert_int_equal(pools.items[0].unused_since, begin);
    tide_pools_deinit(&pools);
    tide_subject_destroy(s);
    tmp_dir_remove(&dir);
}

/// All of what a pool has lies idle while a run uses another one.
static void a_run_that_leaves_it_idle(void **state) {
    (void)state;
    tmp_dir dir;
    working w;
    tide_error err = TIDE_ERROR_INIT;
    tmp_dir_make(&dir);
    work_open(&w, dir.file);
    work_alloc(&w, 0, 0, 30 << 20, TIDE_KIND_WORKSPACE, "before");
    work_free(&w, 0);
    const tide_run_info info = {.model = "m", .mode = "naive", .device = "cpu"};
    int64_t run_id;
    w.now += WORK_STEP_NS;
    assert_tide_ok(tide_recorder_begin_run(w.rec, &info, NULL, &run_id, &err), &err);
    for (int i = 0; i < 200; i++) {
        work_alloc(&w, 0, 1, 4096, TIDE_KIND_WORKSPACE, "inside");
        work_free(&w, 0);
    }
    w.now += WORK_STEP_NS;
    assert_tide_ok(tide_recorder_end_run(w.rec, &err), &err);
    work_close(&w);
    tide_subject *s = subject_of_trace(dir.file, run_id);
    const tide_subject_facts *f = tide_subject_get_facts(s);
    for (int64_t k = 0; k < 5; k++) {
        tide_pools pools;
        const int64_t t = f->begin + (f->end - f->begin) / 5 * k;
        assert_tide_ok(tide_pools_at(s, (tide_moment){t, 0}, k % 2 == 0 ? f->begin : t, f->end, NULL, &pools, &err),
                       &err);
        assert_int_equal(pools.n, 2);
        assert_true(pools.items[0].tells_segments && pools.items[0].unused_bytes >= 30 << 20);
        assert_int_equal(pools.items[0].unused_bytes, pools.items[0].cached_bytes);
        assert_int_equal(pools.items[0].unused_since, f->begin);
        tide_pools_deinit(&pools);
    }
    tide_subject_destroy(s);
    tmp_dir_remove(&dir);
}

static bool refuse(void *ctx, double share, const char *what) {
    assert_true(share >= 0 && share <= 1 && what[0] != '\0');
    ++*(int *)ctx;
    return false;
}

static void it_can_be_cancelled(void **state) {
    (void)state;
    tmp_dir dir;
    tmp_dir_make(&dir);
    demo_record(dir.file, 0);
    tide_subject *s = subject_of_trace(dir.file, 0);
    tide_pools pools;
    tide_error err = TIDE_ERROR_INIT;
    int n_asked = 0;
    const tide_progress progress = {refuse, &n_asked};
    const tide_moment at = {2500, 0};
    assert_tide_status(tide_pools_at(s, at, 2000, 2900, &progress, &pools, &err), TIDE_ERR_CANCELLED);
    assert_int_equal(n_asked, 1);
    assert_tide_status(tide_pools_at(s, at, 2900, 2000, NULL, &pools, &err), TIDE_ERR_INVALID);
    assert_tide_ok(tide_pools_at(s, at, 2000, 2900, NULL, &pools, &err), &err); // and asked again
    tide_pools_deinit(&pools);
    // Once the run is summed up, another moment or window needs no work that could be cancelled.
    assert_tide_ok(tide_pools_at(s, (tide_moment){2100, 0}, 2200, 2300, &progress, &pools, &err), &err);
    tide_pools_deinit(&pools);
    assert_int_equal(n_asked, 1);
    tide_subject_destroy(s);
    tmp_dir_remove(&dir);
}

// ---- plans ----

/// The bytes of one buffer that are needed at a step, one by one.
static void paint(const tide_occupied *list, size_t n, const tide_memory_plan *plan, int64_t step, uint8_t *bytes) {
    memset(bytes, 0, plan->bytes);
    for (size_t i = 0; i < n; i++) {
        if (list[i].begin_step > step || list[i].end_step <= step) continue;
        memset(bytes + plan->offsets[list[i].root] + list[i].lo_bytes, 1, list[i].hi_bytes - list[i].lo_bytes);
    }
}

static void check_painted(const tide_pool *p, const uint8_t *bytes, uint64_t at) {
    uint64_t active = 0, run = 0, longest = 0;
    for (uint64_t i = at; i < at + p->reserved_bytes; i++) {
        active += bytes[i];
        run = bytes[i] != 0 ? 0 : run + 1;
        if (run > longest) longest = run;
    }
    assert_int_equal(p->active_bytes, active);
    assert_int_equal(p->cached_bytes, p->reserved_bytes - active);
    assert_int_equal(p->largest_free_bytes, longest);
    assert_true(p->requested_bytes <= p->active_bytes);
}

static uint64_t offset_of(const tide_memory_plan *plan, const tide_pool *p) {
    size_t number;
    if (plan->n_pools == 0 || sscanf(p->name, "pool %zu", &number) != 1) return 0;
    return plan->pool_list[number].offset_bytes;
}

/// The fewest painted bytes in any place of the pool; UINT64_MAX: it is too small.
static uint64_t least_painted(const tide_pool *p, const uint8_t *bytes, uint64_t at, uint64_t want) {
    uint64_t best, sum = 0;
    if (want > p->reserved_bytes) return UINT64_MAX;
    for (uint64_t k = 0; k < want; k++) sum += bytes[at + k];
    best = sum;
    for (uint64_t k = want; k < p->reserved_bytes; k++) {
        sum = sum + bytes[at + k] - bytes[at + k - want];
        if (sum < best) best = sum;
    }
    return best;
}

/// Requests of some sizes at a step. What is in the way may reach out of the place: it is at least what is painted
/// there.
static void check_requests(tide_subject *s, const tide_pool *p, const uint8_t *bytes, uint64_t begin, int64_t step) {
    tide_error err = TIDE_ERROR_INIT;
    const uint64_t sizes[] = {1, p->largest_free_bytes, p->largest_free_bytes + 1, p->reserved_bytes,
                              p->reserved_bytes + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (sizes[i] == 0) continue;
        tide_pool_request r;
        const uint64_t least = least_painted(p, bytes, begin, sizes[i]);
        assert_tide_ok(tide_pools_request(s, (tide_moment){step, 0}, p->number, sizes[i], NULL, &r, &err), &err);
        assert_int_equal(r.fit, least == UINT64_MAX ? TIDE_FIT_GROW : least == 0 ? TIDE_FIT_FREE : TIDE_FIT_BLOCKED);
        uint64_t sum = 0;
        for (size_t k = 0; k < r.n_blockers; k++) sum += r.blockers[k].bytes;
        assert_int_equal(sum, r.blocked_bytes);
        assert_int_equal(r.n_blockers > 0, r.fit == TIDE_FIT_BLOCKED);
        if (r.fit == TIDE_FIT_BLOCKED) assert_true(r.blocked_bytes >= least);
        assert_false(r.fit == TIDE_FIT_FREE && r.has_next);
        tide_pool_request_deinit(&r);
    }
}

/// Over all steps, a column each, what the pools were at each of them; and twice as wide.
static void check_history(tide_subject *s, const tide_pools *at, int64_t step, const tide_pool_history *h) {
    const size_t wide = h->n_columns / 2;
    for (size_t i = 0; i < at->n; i++) {
        const tide_pool *p = &at->items[i];
        for (size_t twice = 0; twice < 2; twice++) {
            const tide_trace_pool_column *c = &h->columns[p->number * h->n_columns + 2 * (size_t)step + twice];
            assert_int_equal(c->reserved_bytes, p->reserved_bytes);
            assert_int_equal(c->active_bytes, p->active_bytes);
            assert_int_equal(c->requested_bytes, p->requested_bytes);
            assert_int_equal(c->cached_bytes, p->cached_bytes);
            assert_int_equal(c->least_cached_bytes, p->cached_bytes);
            assert_int_equal(c->most_free_bytes, p->largest_free_bytes);
            assert_int_equal(c->least_free_bytes, p->largest_free_bytes);
        }
    }
    assert_int_equal(h->n_pools, at->n);
    assert_int_equal(wide, tide_subject_get_facts(s)->end);
}

/// What rectangles of the tensor's root hold at a step.
static uint64_t held_with(const tide_occupied *list, size_t n, uint32_t root, int64_t step) {
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        if (list[i].root == root && list[i].begin_step <= step && step < list[i].end_step)
            sum += list[i].hi_bytes - list[i].lo_bytes;
    return sum;
}

static uint64_t most_held_with(const tide_memory_plan *plan, uint32_t tensor) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_lifetime *l = &plan->lifetimes.items[tensor];
    const uint32_t root = tide_lifetimes_root(&plan->lifetimes, tensor, NULL);
    tide_occupied *list;
    size_t n;
    uint64_t most = 0;
    assert_tide_ok(tide_lifetimes_occupied(&plan->lifetimes, &list, &n, &err), &err);
    for (int64_t step = l->begin_step; step < l->end_step; step++) {
        const uint64_t bytes = held_with(list, n, root, step);
        if (bytes > most) most = bytes;
    }
    tide_host_free(list);
    return most;
}

/// Every tensor whose bytes lie in a pool, aliases too, once: by pool, the largest first, with what it leaves over.
static void check_tensors(tide_subject *s, const tide_memory_plan *plan) {
    tide_error err = TIDE_ERROR_INIT;
    tide_pool_tensors t;
    size_t n = 0;
    assert_tide_ok(tide_pools_tensors(s, &t, &err), &err);
    assert_int_equal(t.n_pools, plan->n_pools);
    for (uint32_t i = 0; i < plan->lifetimes.n; i++) {
        const tide_lifetime *l = &plan->lifetimes.items[i];
        const uint32_t root = tide_lifetimes_root(&plan->lifetimes, i, NULL);
        if (plan->n_pools == 0 || plan->pools[root] < 0 || l->size_bytes == 0) continue;
        const size_t pool = (size_t)plan->pools[root];
        size_t n_found = 0;
        for (size_t k = t.first[pool]; k < t.first[pool + 1]; k++) {
            if (strcmp(t.items[k].name, l->name) != 0 || t.items[k].begin != l->begin_step) continue;
            assert_int_equal(t.items[k].end, l->end_step);
            assert_int_equal(t.items[k].bytes, root == i ? tide_lifetime_aligned_bytes(l) : l->size_bytes);
            assert_int_equal(t.items[k].left_over, plan->pool_list[pool].size_bytes - most_held_with(plan, i));
            n_found++;
        }
        assert_int_equal(n_found, 1);
        n++;
    }
    assert_int_equal(t.n, n);
    for (size_t k = 0; k < t.n_pools; k++) {
        assert_true(t.first[k] < t.first[k + 1]);
        assert_int_equal(t.items[t.first[k]].left_over, 0); // a pool is as large as its largest tensor
        for (size_t i = t.first[k] + 1; i < t.first[k + 1]; i++)
            assert_true(t.items[i - 1].bytes >= t.items[i].bytes && t.items[i].colour == k);
    }
    tide_pool_tensors_deinit(&t);
}

static void check_plan(tide_memory_plan *plan) {
    tide_error err = TIDE_ERROR_INIT;
    tide_occupied *list;
    size_t n;
    assert_tide_ok(tide_lifetimes_occupied(&plan->lifetimes, &list, &n, &err), &err);
    uint8_t *bytes = tide_host_calloc(plan->bytes + 1, 1);
    tide_subject *s = subject_of_plan(plan);
    const int64_t n_steps = plan->lifetimes.n_steps;
    tide_pool_history history;
    assert_tide_ok(tide_pools_over(s, 0, n_steps, 2 * (size_t)n_steps, NULL, &history, &err), &err);
    for (int64_t step = 0; step < n_steps; step++) {
        tide_pools pools;
        paint(list, n, plan, step, bytes);
        const tide_moment at = {step, 0};
        assert_tide_ok(tide_pools_at(s, at, 0, n_steps, NULL, &pools, &err), &err);
        assert_int_equal(pools.n, plan->n_pools > 0 ? plan->n_pools : plan->n_buffers);
        assert_int_equal(pools.reserved_bytes, plan->bytes);
        for (size_t i = 0; i < pools.n; i++) {
            const tide_pool *p = &pools.items[i];
            check_painted(p, bytes, offset_of(plan, p));
            assert_int_equal(p->unused_bytes, p->reserved_bytes - p->peak_active_bytes);
            assert_true(p->peak_active_bytes >= p->active_bytes);
            assert_true(p->unused_since >= 0 && p->unused_since <= step);
            check_requests(s, p, bytes, offset_of(plan, p), step);
        }
        check_history(s, &pools, step, &history);
        tide_pools_deinit(&pools);
    }
    check_tensors(s, plan);
    tide_pool_history_deinit(&history);
    tide_host_free(bytes);
    tide_host_free(list);
    tide_subject_destroy(s);
}

static void pools_and_buffers_of_plans(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) check_plan(random_plan(seed, 30, 20));
    tide_error err = TIDE_ERROR_INIT;
    const tide_strategy *colour;
    assert_tide_ok(tide_strategy_find("greedy_color", &colour, &err), &err);
    tide_memory_plan *offsets = demo_plan_make(), *pools;
    assert_tide_ok(tide_plan_make(&offsets->lifetimes, colour, NULL, &pools, &err), &err);
    assert_true(pools->n_pools > 1);
    tide_memory_plan_destroy(offsets);
    check_plan(pools);
    for (uint64_t seed = 5; seed <= 8; seed++) {
        offsets = random_plan(seed, 30, 20);
        assert_tide_ok(tide_plan_make(&offsets->lifetimes, colour, NULL, &pools, &err), &err);
        tide_memory_plan_destroy(offsets);
        check_plan(pools);
    }
}

/// By hand: what is left of the demo's buffer of 2560 bytes at each step, and since when.
static void the_demo_plan(void **state) {
    (void)state;
    static const uint64_t cached[] = {768, 1024, 0, 768}, requested[] = {1600, 1500, 2400, 1700};
    static const int64_t since[] = {0, 1, 0, 3};
    tide_subject *s = subject_of_plan(demo_plan_make());
    tide_error err = TIDE_ERROR_INIT;
    for (int64_t step = 0; step < 4; step++) {
        tide_pools pools;
        const tide_moment at = {step, 0};
        assert_tide_ok(tide_pools_at(s, at, 0, 1, NULL, &pools, &err), &err);
        assert_int_equal(pools.n, 1);
        assert_string_equal(pools.items[0].name, "buffer");
        assert_int_equal(pools.items[0].cached_bytes, cached[step]);
        assert_int_equal(pools.items[0].requested_bytes, requested[step]);
        assert_int_equal(pools.items[0].unused_bytes, 768); // of steps 0 and 1
        assert_int_equal(pools.items[0].unused_since, since[step]);
        tide_pools_deinit(&pools);
    }
    tide_subject_destroy(s);
}

/// The worst moment is found exactly in a trace of more events than columns are exact for: at one of 30,000 steps a
/// second block splits what is free.
static void the_worst_moment(void **state) {
    (void)state;
    enum { N = 30000, WORST = 17777, PAGES = 16, PAGE = 4096 };
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    const tide_run_info info = {.model = "demo", .mode = "naive", .strategy = "", .device = "cpu"};
    feed_begin_run(&f, 900, &info, NULL);
    feed(&f, 950, TIDE_MEM_SEGMENT_ALLOC, 100, TIDE_KIND_WORKSPACE, PAGES * PAGE, "");
    for (uint64_t i = 0; i < N; i++) {
        const uint64_t t = 1000 + 10 * i;
        feed(&f, t, TIDE_MEM_ALLOC, 100, TIDE_KIND_WORKSPACE, PAGE, "a");
        if (i == WORST) feed(&f, t + 3, TIDE_MEM_ALLOC, 100 + PAGES / 2, TIDE_KIND_WORKSPACE, PAGE, "b");
        if (i == WORST) feed_free(&f, t + 4, 100 + PAGES / 2, TIDE_KIND_WORKSPACE, PAGE, "b");
        feed_free(&f, t + 5, 100, TIDE_KIND_WORKSPACE, PAGE, "a");
    }
    feed_end_run(&f, 1000 + 10 * N);
    feeder_close(&f);
    tide_subject *s = subject_of_trace(d.file, 1);
    const tide_subject_facts *facts = tide_subject_get_facts(s);
    tide_error err = TIDE_ERROR_INIT;
    tide_pool_worst w;
    for (int64_t cut = 0; cut < 5; cut++) { // windows that begin elsewhere
        assert_tide_ok(tide_pools_worst(s, 0, facts->begin + 777 * cut, facts->end, NULL, &w, &err), &err);
        assert_int_equal(w.at.t, 1000 + 10 * WORST + 3);
        assert_int_equal(w.at.event, 2 + 3 * WORST + 1);
        assert_int_equal((int)(1000 * w.share), 500); // 7 pages and 7 pages
        assert_int_equal(w.free_bytes, 14 * PAGE);
        assert_int_equal(w.largest_free_bytes, 7 * PAGE);
    }
    assert_tide_status(tide_pools_worst(s, 99, facts->begin, facts->end, NULL, &w, &err), TIDE_ERR_NOT_FOUND);
    tide_subject_destroy(s);
    tmp_dir_remove(&d);
}

/// Several events of one nanosecond: the worst of them counts, not what they come to; and what lies outside of the run
/// does not. What splits it is what is there after that event.
static void the_worst_of_events_that_share_a_time(void **state) {
    (void)state;
    enum { PAGES = 16, PAGE = 4096 };
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    const tide_run_info info = {.model = "demo", .mode = "naive", .strategy = "", .device = "cpu"};
    feed(&f, 500, TIDE_MEM_SEGMENT_ALLOC, 100, TIDE_KIND_WORKSPACE, PAGES * PAGE, "");                       // 1
    feed(&f, 510, TIDE_MEM_ALLOC, 104, TIDE_KIND_WORKSPACE, PAGE, "before");                                 // 2
    feed(&f, 511, TIDE_MEM_ALLOC, 108, TIDE_KIND_WORKSPACE, PAGE, "before");                                 // 3
    feed(&f, 512, TIDE_MEM_ALLOC, 112, TIDE_KIND_WORKSPACE, PAGE, "before");                                 // 4
    for (uint64_t id = 104; id <= 112; id += 4) feed_free(&f, 520, id, TIDE_KIND_WORKSPACE, PAGE, "before"); // to 10
    feed_begin_run(&f, 900, &info, NULL);
    feed(&f, 1000, TIDE_MEM_ALLOC, 101, TIDE_KIND_WORKSPACE, PAGE, "a");          // 11
    feed(&f, 2000, TIDE_MEM_ALLOC, 105, TIDE_KIND_WORKSPACE, PAGE, "b");          // 12
    feed(&f, 2000, TIDE_MEM_ALLOC, 110, TIDE_KIND_WORKSPACE, PAGE, "c");          // 13: the worst
    feed(&f, 2000, TIDE_MEM_FREE_REQUESTED, 105, TIDE_KIND_WORKSPACE, PAGE, "b"); // 14
    feed(&f, 2000, TIDE_MEM_FREE_COMPLETED, 105, TIDE_KIND_WORKSPACE, PAGE, "b"); // 15
    feed_free(&f, 3000, 110, TIDE_KIND_WORKSPACE, PAGE, "c");
    feed_end_run(&f, 4000);
    feeder_close(&f);
    tide_subject *s = subject_of_trace(d.file, 1);
    const tide_subject_facts *facts = tide_subject_get_facts(s);
    tide_error err = TIDE_ERROR_INIT;
    tide_pool_worst w;
    tide_pool_splits splits;
    assert_tide_ok(tide_pools_worst(s, 0, facts->begin, facts->end, NULL, &w, &err), &err);
    assert_int_equal(w.at.event, 13);
    assert_int_equal(w.at.t, 2000);
    assert_int_equal(w.free_bytes, 13 * PAGE); // 1, 3, 4 and 5 pages
    assert_int_equal(w.largest_free_bytes, 5 * PAGE);
    assert_tide_ok(tide_pools_splits(s, w.at, 0, &splits, &err), &err);
    assert_int_equal(splits.n, 3);
    assert_string_equal(splits.items[0].name, "a");
    assert_string_equal(splits.items[2].name, "c");
    tide_pool_splits_deinit(&splits);
    assert_tide_ok(tide_pools_worst(s, 0, 2001, facts->end, NULL, &w, &err), &err); // what holds then counts
    assert_int_equal(w.at.event, 15);
    assert_int_equal(w.at.t, 2001);
    tide_subject_destroy(s);
    tmp_dir_remove(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(every_moment_of_a_real_trace),
        tide_unit_test(a_trace_that_grows),
        tide_unit_test(a_run_begins_with_what_was_there),
        tide_unit_test(a_run_that_leaves_it_idle),
        tide_unit_test(it_can_be_cancelled),
        tide_unit_test(the_worst_moment),
        tide_unit_test(the_worst_of_events_that_share_a_time),
        tide_unit_test(pools_and_buffers_of_plans),
        tide_unit_test(the_demo_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
