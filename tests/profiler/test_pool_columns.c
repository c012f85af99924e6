// SPDX-License-Identifier: MIT
//
// Pools over time, and requests, against a list of every state: two allocators whose segments are words of bits.
#include "profiler/holdings.h"

#include "tests/profiler/trace_fixture.h"

enum { UNIT = 256, SEGMENT = 64 * UNIT, N_SEGMENTS = 5, N_POOLS = 2, MOST_BLOCKS = 120, MOST_EVENTS = 48000 };

typedef struct held {
    uint64_t reserved, active, requested, largest;
} held;

typedef struct segment {
    bool is_there;
    uint64_t taken; // a bit for each unit
} segment;

typedef struct block {
    uint64_t id;
    int pool, segment;
    uint64_t unit, n_units, requested;
} block;

typedef struct world {
    feeder f;
    tide_rng rng;
    segment segments[N_POOLS][N_SEGMENTS];
    block blocks[MOST_BLOCKS];
    size_t n_blocks;
    uint64_t next_id, requested[N_POOLS];
    // after each event; [0] is before the first one
    held states[MOST_EVENTS + 1][N_POOLS];
    segment all[MOST_EVENTS + 1][N_POOLS][N_SEGMENTS];
    uint64_t times[MOST_EVENTS + 1];
    size_t n_events;
} world;

static const char *const names[N_POOLS] = {"alpha", "beta"}; // in the order of answers

static uint64_t address_of(int pool, int k) {
    return UINT64_C(0x10000000) * (uint64_t)(pool + 1) + (uint64_t)k * 0x100000;
}

static uint64_t ones(uint64_t n) { return n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1; }

static uint64_t longest_free(const segment *s) {
    uint64_t best = 0, run = 0;
    for (int u = 0; s->is_there && u < 64; u++) {
        run = (s->taken >> u & 1) != 0 ? 0 : run + 1;
        if (run > best) best = run;
    }
    return best * UNIT;
}

static void put(world *w, tide_memory_op op, int pool, uint64_t id, uint64_t address, uint64_t requested,
                uint64_t reserved) {
    w->f.now += tide_rng_below(&w->rng, 4) == 0 ? 0 : 1 + tide_rng_below(&w->rng, 40);
    const tide_memory_event e = {.op = op,
                                 .t_ns = w->f.now,
                                 .block_id = id,
                                 .device = TIDE_CPU,
                                 .kind = TIDE_KIND_WORKSPACE,
                                 .requested_bytes = requested,
                                 .reserved_bytes = reserved,
                                 .address = address,
                                 .thread = w->f.thread,
                                 .allocator = names[pool]};
    w->f.obs.on_memory(w->f.obs.self, &e);
    const size_t n = ++w->n_events;
    w->times[n] = w->f.now;
    memcpy(w->all[n], w->segments, sizeof w->segments);
    for (int p = 0; p < N_POOLS; p++) {
        held h = {.requested = w->requested[p]};
        for (int k = 0; k < N_SEGMENTS; k++) {
            const segment *s = &w->segments[p][k];
            if (!s->is_there) continue;
            h.reserved += SEGMENT;
            h.active += (uint64_t)__builtin_popcountll(s->taken) * UNIT;
            if (longest_free(s) > h.largest) h.largest = longest_free(s);
        }
        w->states[n][p] = h;
    }
}

static void take(world *w, int pool) {
    const uint64_t n = 1 + tide_rng_below(&w->rng, tide_rng_below(&w->rng, 6) == 0 ? 40 : 6);
    for (int k = 0; k < N_SEGMENTS; k++) {
        segment *s = &w->segments[pool][k];
        for (uint64_t u = 0; s->is_there && u + n <= 64; u++) {
            if ((s->taken & ones(n) << u) != 0 || tide_rng_below(&w->rng, 3) == 0) continue;
            s->taken |= ones(n) << u;
            const uint64_t requested = n * UNIT - tide_rng_below(&w->rng, UNIT);
            w->requested[pool] += requested;
            w->blocks[w->n_blocks++] = (block){++w->next_id, pool, k, u, n, requested};
            put(w, TIDE_MEM_ALLOC, pool, w->next_id, address_of(pool, k) + u * UNIT, requested, n * UNIT);
            return;
        }
    }
}

static void give(world *w) {
    block *b = &w->blocks[tide_rng_below(&w->rng, w->n_blocks)];
    w->segments[b->pool][b->segment].taken &= ~(ones(b->n_units) << b->unit);
    w->requested[b->pool] -= b->requested;
    const block gone = *b;
    *b = w->blocks[--w->n_blocks];
    put(w, TIDE_MEM_FREE_COMPLETED, gone.pool, gone.id, address_of(gone.pool, gone.segment) + gone.unit * UNIT,
        gone.requested, gone.n_units * UNIT);
}

static void change_segment(world *w, int pool) {
    const int k = (int)tide_rng_below(&w->rng, N_SEGMENTS);
    segment *s = &w->segments[pool][k];
    if (s->is_there && s->taken != 0) return;
    s->is_there = !s->is_there;
    put(w, s->is_there ? TIDE_MEM_SEGMENT_ALLOC : TIDE_MEM_SEGMENT_FREE, pool, 0, address_of(pool, k), SEGMENT,
        SEGMENT);
}

/// A trace of `n_events` and the list of its states.
static world *world_make(const char *path, uint64_t seed, size_t n_events) {
    world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->rng.state = seed;
    feeder_open(&w->f, path, 0, false);
    w->f.now = 1000;
    while (w->n_events < n_events) {
        const int pool = (int)tide_rng_below(&w->rng, N_POOLS);
        const uint64_t what = tide_rng_below(&w->rng, 100);
        if (what < 5)
            change_segment(w, pool);
        else if (w->n_blocks > 0 && (what < 50 || w->n_blocks == MOST_BLOCKS))
            give(w);
        else
            take(w, pool);
    }
    feeder_close(&w->f);
    return w;
}

// ---- columns ----

static void add_state(tide_trace_pool_column *c, const held *h) {
    const uint64_t cached = h->reserved - h->active;
    const float f = h->reserved == 0 ? -1.0F : cached == 0 ? 0 : (float)(1 - (double)h->largest / (double)cached);
    if (h->reserved > c->reserved_bytes) c->reserved_bytes = h->reserved;
    if (h->active > c->active_bytes) c->active_bytes = h->active;
    if (h->requested > c->requested_bytes) c->requested_bytes = h->requested;
    if (cached > c->cached_bytes) c->cached_bytes = cached;
    if (cached < c->least_cached_bytes) c->least_cached_bytes = cached;
    if (h->largest > c->most_free_bytes) c->most_free_bytes = h->largest;
    if (h->largest < c->least_free_bytes) c->least_free_bytes = h->largest;
    if (f > c->fragmentation) c->fragmentation = f;
}

/// The last event before `t`; 0: none.
static size_t before(const world *w, uint64_t t) {
    size_t n = 0;
    while (n < w->n_events && w->times[n + 1] < t) n++;
    return n;
}

/// Extremes of [t0, t1), with `more` events on each side.
static tide_trace_pool_column plainly(const world *w, int pool, uint64_t t0, uint64_t t1, size_t more) {
    tide_trace_pool_column c = {
        .least_cached_bytes = UINT64_MAX, .least_free_bytes = TIDE_UNKNOWN_BYTES, .fragmentation = -1};
    const size_t from = before(w, t0), to = before(w, t1) + more;
    for (size_t i = from > more ? from - more : 0; i <= to && i <= w->n_events; i++) add_state(&c, &w->states[i][pool]);
    return c;
}

static bool same(const tide_trace_pool_column *a, const tide_trace_pool_column *b) {
    return a->reserved_bytes == b->reserved_bytes && a->active_bytes == b->active_bytes &&
           a->requested_bytes == b->requested_bytes && a->cached_bytes == b->cached_bytes &&
           a->least_cached_bytes == b->least_cached_bytes && a->most_free_bytes == b->most_free_bytes &&
           a->least_free_bytes == b->least_free_bytes && a->fragmentation == b->fragmentation;
}

/// Whether all extremes of `in` lie within those of `out`.
static bool lies_in(const tide_trace_pool_column *in, const tide_trace_pool_column *out) {
    return in->reserved_bytes <= out->reserved_bytes && in->active_bytes <= out->active_bytes &&
           in->requested_bytes <= out->requested_bytes && in->cached_bytes <= out->cached_bytes &&
           in->least_cached_bytes >= out->least_cached_bytes && in->most_free_bytes <= out->most_free_bytes &&
           in->least_free_bytes >= out->least_free_bytes && in->fragmentation <= out->fragmentation;
}

static void print_column(const tide_trace_pool_column *c, char *out, size_t n) {
    snprintf(out, n,
             "reserved %" PRIu64 ", active %" PRIu64 ", requested %" PRIu64 ", cached %" PRIu64 " to %" PRIu64
             ", largest free %" PRIu64 " to %" PRIu64 ", fragmentation %f",
             c->reserved_bytes, c->active_bytes, c->requested_bytes, c->least_cached_bytes, c->cached_bytes,
             c->least_free_bytes, c->most_free_bytes, (double)c->fragmentation);
}

static void fail_column(int pool, size_t i, size_t n, const tide_trace_pool_column *got,
                        const tide_trace_pool_column *want) {
    char a[400], b[400];
    print_column(got, a, sizeof a);
    print_column(want, b, sizeof b);
    fail_msg("pool %d, column %zu of %zu:\n%s\n%s", pool, i, n, a, b);
}

/// `slack` 0: exactly; else no more than so many events away.
static void check_columns(tide_trace *t, const world *w, uint64_t t0, uint64_t t1, size_t n, size_t slack) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_trace_pool_columns_question q = {.t0_ns = t0, .t1_ns = t1, .n = n};
    tide_trace_pool_column *got;
    size_t n_pools;
    assert_tide_ok(tide_trace_pool_columns(t, &q, NULL, &got, &n_pools, &err), &err);
    assert_int_equal(n_pools, N_POOLS);
    const uint64_t len = t1 - t0;
    for (int p = 0; p < N_POOLS; p++) {
        for (size_t i = 0; i < n; i++) {
            const uint64_t from = t0 + i * len / n, to = t0 + (i + 1) * len / n;
            const tide_trace_pool_column exact = plainly(w, p, from, to, 0), wide = plainly(w, p, from, to, slack);
            const tide_trace_pool_column *c = &got[(size_t)p * n + i];
            if (slack == 0 ? !same(c, &exact) : !lies_in(&exact, c) || !lies_in(c, &wide))
                fail_column(p, i, n, c, &exact);
        }
    }
    tide_host_free(got);
}

static tide_trace *open_trace(const char *path) {
    tide_error err = TIDE_ERROR_INIT;
    tide_trace *t;
    assert_tide_ok(tide_trace_open(path, &t, &err), &err);
    return t;
}

static void columns_are_the_extremes_of_all_states(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    world *w = world_make(d.file, 1, 4000);
    tide_trace *t = open_trace(d.file);
    const uint64_t begin = w->times[1], end = w->times[w->n_events];
    tide_rng rng = {7};
    check_columns(t, w, begin, end, 1, 0);
    check_columns(t, w, begin, end, 137, 0);
    for (int k = 0; k < 60; k++) {
        const uint64_t t0 = begin + tide_rng_below(&rng, end - begin - 500);
        const uint64_t len = 400 + tide_rng_below(&rng, end - t0 - 400);
        check_columns(t, w, t0, t0 + len, 1 + tide_rng_below(&rng, 200), 0);
    }
    tide_trace_close(t);
    free(w);
    tmp_dir_remove(&d);
}

static void columns_of_many_events_miss_no_extreme(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    world *w = world_make(d.file, 2, MOST_EVENTS);
    tide_trace *t = open_trace(d.file);
    const uint64_t begin = w->times[1], end = w->times[w->n_events];
    check_columns(t, w, begin, end, 1000, 70); // an interval is 64 events
    check_columns(t, w, begin, end, 3, 70);
    check_columns(t, w, begin + (end - begin) / 3, end - 5, 250, 70);
    tide_trace_close(t);
    free(w);
    tmp_dir_remove(&d);
}

/// Fewer nanoseconds than columns; before the run and behind it; wrong windows.
static void columns_at_the_edges(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    world *w = world_make(d.file, 3, 300);
    tide_trace *t = open_trace(d.file);
    tide_error err = TIDE_ERROR_INIT;
    tide_trace_pool_column *got;
    size_t n;
    tide_trace_pool_columns_question q = {.t0_ns = w->times[150], .t1_ns = w->times[150] + 3, .n = 7};
    assert_tide_ok(tide_trace_pool_columns(t, &q, NULL, &got, &n, &err), &err);
    for (size_t i = 0; i < 7; i++) {
        const tide_trace_pool_column want = plainly(w, 0, q.t0_ns + i * 3 / 7, q.t0_ns + i * 3 / 7 + 1, 0);
        assert_true(same(&got[i], &want));
    }
    tide_host_free(got);
    q = (tide_trace_pool_columns_question){.t0_ns = 0, .t1_ns = 10, .n = 2};
    assert_tide_ok(tide_trace_pool_columns(t, &q, NULL, &got, &n, &err), &err);
    assert_int_equal(got[1].reserved_bytes, 0);
    assert_int_equal(got[1].least_free_bytes, TIDE_UNKNOWN_BYTES);
    tide_host_free(got);
    q = (tide_trace_pool_columns_question){.t0_ns = 0, .t1_ns = UINT64_MAX, .n = 1};
    assert_tide_ok(tide_trace_pool_columns(t, &q, NULL, &got, &n, &err), &err);
    assert_int_equal(got[0].reserved_bytes, plainly(w, 0, 0, UINT64_MAX, 0).reserved_bytes);
    tide_host_free(got);
    q = (tide_trace_pool_columns_question){.t0_ns = 10, .t1_ns = 10, .n = 2};
    assert_tide_status(tide_trace_pool_columns(t, &q, NULL, &got, &n, &err), TIDE_ERR_INVALID);
    q = (tide_trace_pool_columns_question){.t0_ns = 10, .t1_ns = 20, .n = 0};
    assert_tide_status(tide_trace_pool_columns(t, &q, NULL, &got, &n, &err), TIDE_ERR_INVALID);
    q = (tide_trace_pool_columns_question){.run_id = 9, .t0_ns = 10, .t1_ns = 20, .n = 1};
    assert_tide_status(tide_trace_pool_columns(t, &q, NULL, &got, &n, &err), TIDE_ERR_NOT_FOUND);
    tide_trace_close(t);
    free(w);
    tmp_dir_remove(&d);
}

// ---- requests ----

/// The fewest bytes in the way of any place of any segment; UINT64_MAX: none is that large.
static uint64_t fewest_in_the_way(const world *w, size_t event, int pool, uint64_t n_units) {
    uint64_t best = UINT64_MAX;
    for (int k = 0; k < N_SEGMENTS; k++) {
        const segment *s = &w->all[event][pool][k];
        if (!s->is_there) continue;
        for (uint64_t u = 0; u + n_units <= 64; u++) {
            const bool is_free = (s->taken & ones(n_units) << u) == 0;
            if (is_free) return 0;
        }
        best = best == UINT64_MAX && n_units <= 64 ? 1 : best; // blocks stand in the way
    }
    return best;
}

static void check_blocks(tide_trace *t, size_t event, const tide_trace_request *r, uint64_t bytes) {
    tide_error err = TIDE_ERROR_INIT;
    tide_live_set set;
    uint64_t sum = 0;
    size_t n = 0;
    assert_tide_ok(tide_trace_live_set_after(t, event, &set, &err), &err);
    for (size_t i = 0; i < set.n; i++) {
        const tide_live *l = &set.items[i];
        const bool is_in_the_way = l->address < r->address + bytes && l->address + l->reserved_bytes > r->address;
        bool is_listed = false;
        for (size_t k = 0; k < r->n_blocks; k++) is_listed = is_listed || r->blocks[k] == l->block_id;
        assert_int_equal(is_in_the_way, is_listed);
        if (!is_in_the_way) continue;
        sum += l->reserved_bytes;
        n++;
    }
    assert_int_equal(r->n_blocks, n);
    assert_int_equal(r->blocked_bytes, sum);
    tide_live_set_deinit(&set);
}

/// No place of a unit's multiple has less in its way.
static void check_least(tide_trace *t, const world *w, size_t event, int pool, const tide_trace_request *r,
                        uint64_t n_units) {
    tide_error err = TIDE_ERROR_INIT;
    tide_live_set set;
    assert_tide_ok(tide_trace_live_set_after(t, event, &set, &err), &err);
    for (int k = 0; k < N_SEGMENTS; k++) {
        for (uint64_t u = 0; w->all[event][pool][k].is_there && u + n_units <= 64; u++) {
            const uint64_t begin = address_of(pool, k) + u * UNIT, end = begin + n_units * UNIT;
            uint64_t sum = 0;
            for (size_t i = 0; i < set.n; i++) {
                const tide_live *l = &set.items[i];
                if (l->address < end && l->address + l->reserved_bytes > begin) sum += l->reserved_bytes;
            }
            assert_true(sum >= r->blocked_bytes);
        }
    }
    tide_live_set_deinit(&set);
}

static void check_request(tide_trace *t, const world *w, size_t event, int pool, uint64_t n_units) {
    tide_error err = TIDE_ERROR_INIT;
    tide_trace_request r;
    const uint64_t bytes = n_units * UNIT, least = fewest_in_the_way(w, event, pool, n_units);
    const tide_trace_request_question q = {.pool = (size_t)pool, .at_event = event, .bytes = bytes};
    assert_tide_ok(tide_trace_pool_request(t, &q, NULL, &r, &err), &err);
    assert_int_equal(r.fit, least == UINT64_MAX ? TIDE_FIT_GROW : least == 0 ? TIDE_FIT_FREE : TIDE_FIT_BLOCKED);
    if (r.fit != TIDE_FIT_GROW) {
        assert_int_equal(r.segment_bytes, SEGMENT);
        check_blocks(t, event, &r, bytes);
        check_least(t, w, event, pool, &r, n_units);
    }
    size_t next = event + 1;
    while (next <= w->n_events && w->states[next][pool].largest < bytes) next++;
    if (r.fit != TIDE_FIT_FREE) {
        assert_int_equal(r.next_event, next <= w->n_events ? next : UINT64_MAX);
        assert_int_equal(r.next_ns, next <= w->n_events ? w->times[next] : UINT64_MAX);
    }
    tide_trace_request_deinit(&r);
}

static void requests_are_served_where_there_is_room(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    world *w = world_make(d.file, 4, 6000);
    tide_trace *t = open_trace(d.file);
    tide_rng rng = {9};
    for (int k = 0; k < 400; k++)
        check_request(t, w, tide_rng_below(&rng, w->n_events + 1), (int)tide_rng_below(&rng, N_POOLS),
                      1 + tide_rng_below(&rng, 66));
    tide_error err = TIDE_ERROR_INIT;
    tide_trace_request r;
    tide_trace_request_question q = {.pool = 2, .at_event = 1, .bytes = 1};
    assert_tide_status(tide_trace_pool_request(t, &q, NULL, &r, &err), TIDE_ERR_NOT_FOUND);
    q = (tide_trace_request_question){.pool = 0, .at_event = 1};
    assert_tide_status(tide_trace_pool_request(t, &q, NULL, &r, &err), TIDE_ERR_INVALID);
    q = (tide_trace_request_question){.pool = 0, .at_event = UINT64_MAX, .bytes = UINT64_MAX};
    assert_tide_ok(tide_trace_pool_request(t, &q, NULL, &r, &err), &err);
    assert_int_equal(r.fit, TIDE_FIT_GROW);
    assert_int_equal(r.next_event, UINT64_MAX);
    tide_trace_request_deinit(&r);
    tide_trace_close(t);
    free(w);
    tmp_dir_remove(&d);
}

// ---- blocks that lie in one another ----

/// A free that comes late: for a time two blocks have the same bytes. What is free is not known then, and is again
/// afterwards.
static void what_is_free_is_found_again(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    feeder_open(&w->f, d.file, 0, false);
    w->f.now = 1000;
    const uint64_t at = address_of(0, 0);
    put(w, TIDE_MEM_SEGMENT_ALLOC, 0, 0, at, SEGMENT, SEGMENT);
    put(w, TIDE_MEM_ALLOC, 0, 1, at, UNIT, UNIT);
    put(w, TIDE_MEM_ALLOC, 0, 2, at, 2 * UNIT, 2 * UNIT); // over block 1
    put(w, TIDE_MEM_FREE_COMPLETED, 0, 1, at, UNIT, UNIT);
    for (uint64_t k = 0; k < 300; k++) {
        put(w, TIDE_MEM_ALLOC, 0, 10 + k, at + 10 * UNIT, UNIT, UNIT);
        put(w, TIDE_MEM_FREE_COMPLETED, 0, 10 + k, at + 10 * UNIT, UNIT, UNIT);
    }
    feeder_close(&w->f);
    tide_trace *t = open_trace(d.file);
    tide_error err = TIDE_ERROR_INIT;
    tide_trace_pool_column *got;
    size_t n;
    const tide_trace_pool_columns_question q = {.t0_ns = w->times[3], .t1_ns = w->times[604] + 1, .n = 300};
    assert_tide_ok(tide_trace_pool_columns(t, &q, NULL, &got, &n, &err), &err);
    assert_int_equal(got[3].least_free_bytes, TIDE_UNKNOWN_BYTES);
    assert_true(got[3].fragmentation == -1);
    assert_int_equal(got[299].most_free_bytes, 62 * UNIT);
    assert_int_equal(got[299].least_free_bytes, 53 * UNIT);
    tide_host_free(got);
    tide_trace_close(t);
    free(w);
    tmp_dir_remove(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(columns_are_the_extremes_of_all_states),
        tide_unit_test(columns_of_many_events_miss_no_extreme),
        tide_unit_test(columns_at_the_edges),
        tide_unit_test(requests_are_served_where_there_is_room),
        tide_unit_test(what_is_free_is_found_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
