// SPDX-License-Identifier: MIT
//
// stream_caching against a plain model that always tells the truth: flat lists of pieces, searched from end to end, and
// no trees, queues or events. Random allocations with alignments, declared uses, releases, steps of held streams,
// trims, streams that come and go. After each step the address that was given, all numbers and check() must agree.
#include "core/base/assert.h"
#include "stream_caching_test.h"

enum { MAX_SEGMENTS = 256, MAX_PIECES = 1024, MAX_USES = 8, N_STREAMS = 4, N_STEPS = 6000 };

typedef enum piece_state { IDLE, OUT, PENDING } piece_state;

/// Streams are told apart by their id; 0 means "every stream" here (the fake's stream 0 is not used).
typedef struct piece {
    uintptr_t addr;
    size_t size;
    piece_state state;
    tide_stream_id home;
    tide_stream_id uses[MAX_USES]; ///< [n_uses]
    uint64_t until[MAX_USES];      ///< pending: pieces of work of that stream that must be done
    size_t n_uses;
    tide_memory mem;
    tide_stream_id stream;
} piece;

typedef struct segment {
    uintptr_t addr;
    size_t size;
    bool large;
    piece pieces[MAX_PIECES]; ///< [n], by address
    size_t n;
} segment;

typedef struct model {
    segment segments[MAX_SEGMENTS];
    size_t n;
    uint64_t n_taken_over;
} model;

typedef struct place {
    segment *seg;
    size_t at;
} place;

// ---- the model ----

static size_t round_up(size_t bytes, size_t step) { return (bytes + step - 1) / step * step; }

static void merge(segment *seg) {
    for (size_t i = 0; i + 1 < seg->n;) {
        piece *p = &seg->pieces[i];
        if (p->state == IDLE && p[1].state == IDLE && p->home == p[1].home) {
            p->size += p[1].size;
            memmove(p + 1, p + 2, (seg->n - i - 2) * sizeof *p);
            seg->n--;
        } else {
            i++;
        }
    }
}

static bool fits(const piece *p, size_t need, size_t align) {
    const uintptr_t begin = (p->addr + align - 1) & ~(uintptr_t)(align - 1);
    return begin + need <= p->addr + p->size;
}

/// The smallest piece of at least `need` bytes, the lowest of these, in that state and at that home.
static place smallest(model *m, piece_state state, tide_stream_id home, bool large, size_t need) {
    place best = {NULL, 0};
    for (size_t s = 0; s < m->n; s++) {
        for (size_t i = 0; i < m->segments[s].n; i++) {
            const piece *p = &m->segments[s].pieces[i];
            if (p->state != state || m->segments[s].large != large || p->size < need) continue;
            if (state == IDLE && p->home != home) continue;
            const piece *b = best.seg != NULL ? &best.seg->pieces[best.at] : NULL;
            if (b == NULL || p->size < b->size || (p->size == b->size && p->addr < b->addr))
                best = (place){&m->segments[s], i};
        }
    }
    return best;
}

static place best_fit(model *m, piece_state state, tide_stream_id home, bool large, size_t need, size_t align) {
    const place first = smallest(m, state, home, large, need);
    if (first.seg == NULL || fits(&first.seg->pieces[first.at], need, align)) return first;
    return smallest(m, state, home, large, need + align - 512);
}

static uint64_t n_done(tide_stream_id stream) {
    const fake_stream *s = fake_find_key(stream);
    return s != NULL ? s->n_done : UINT64_MAX;
}

/// Uses that are over are forgotten (all of them when `all`); pending pieces without any become idle.
static void settle(model *m, bool all) {
    for (size_t s = 0; s < m->n; s++) {
        segment *seg = &m->segments[s];
        for (size_t i = 0; i < seg->n; i++) {
            piece *p = &seg->pieces[i];
            if (p->state != PENDING) continue;
            size_t n = 0;
            for (size_t u = 0; u < p->n_uses; u++) {
                if (all || n_done(p->uses[u]) >= p->until[u]) continue;
                p->uses[n] = p->uses[u];
                p->until[n++] = p->until[u];
            }
            p->n_uses = n;
            if (n == 0) p->state = IDLE;
        }
        merge(seg);
    }
}

static piece *insert_at(segment *seg, size_t at, const piece *p) {
    assert_true(seg->n < MAX_PIECES);
    memmove(&seg->pieces[at + 1], &seg->pieces[at], (seg->n - at) * sizeof *p);
    seg->pieces[at] = *p;
    seg->n++;
    return &seg->pieces[at];
}

static piece *cut(place from, size_t need, size_t align, tide_stream_id stream) {
    piece *p = &from.seg->pieces[from.at];
    const uintptr_t begin = (p->addr + align - 1) & ~(uintptr_t)(align - 1);
    if (begin > p->addr) {
        const piece front = {.addr = p->addr, .size = begin - p->addr, .state = IDLE, .home = p->home};
        p->addr += front.size;
        p->size -= front.size;
        insert_at(from.seg, from.at++, &front);
    }
    p = &from.seg->pieces[from.at];
    const size_t rest = p->size - need;
    if (from.seg->large ? rest > MIB : rest >= 512) {
        const piece back = {.addr = p->addr + need, .size = rest, .state = IDLE, .home = p->home};
        p->size = need;
        insert_at(from.seg, from.at + 1, &back);
    }
    p = &from.seg->pieces[from.at];
    p->state = OUT;
    p->home = p->stream = stream;
    return p;
}

/// Where the request must go; NULL: to new memory of *segment_bytes.
static piece *predict(model *m, size_t size, size_t align, tide_stream_id stream, size_t *segment_bytes) {
    if (align < 512) align = 512;
    const size_t need = round_up(size, 512), worst = need + align - 512;
    const bool large = worst > MIB;
    *segment_bytes = !large ? 2 * MIB : worst <= 10 * MIB ? 20 * MIB : round_up(worst, 2 * MIB);
    settle(m, false);
    place from = best_fit(m, IDLE, stream, large, need, align);
    if (from.seg == NULL) from = best_fit(m, IDLE, 0, large, need, align);
    if (from.seg == NULL) {
        const place pending = best_fit(m, PENDING, 0, large, need, align);
        if (pending.seg == NULL) return NULL;
        piece *p = &pending.seg->pieces[pending.at];
        const uintptr_t inside = p->addr;
        p->state = IDLE;
        p->n_uses = 0;
        p->home = stream;
        merge(pending.seg);
        m->n_taken_over++;
        from = (place){pending.seg, 0}; // whatever it was merged into
        while (pending.seg->pieces[from.at].addr + pending.seg->pieces[from.at].size <= inside) from.at++;
    }
    return cut(from, need, align, stream);
}

static piece *predict_new(model *m, const ears *e, size_t size, size_t align, tide_stream_id stream) {
    if (align < 512) align = 512;
    assert_true(m->n < MAX_SEGMENTS);
    segment *seg = &m->segments[m->n++];
    *seg = (segment){.addr = (uintptr_t)e->segment,
                     .size = e->segment_bytes,
                     .large = round_up(size, 512) + align - 512 > MIB,
                     .n = 1};
    seg->pieces[0] = (piece){.addr = seg->addr, .size = seg->size, .state = IDLE, .home = stream};
    return cut((place){seg, 0}, round_up(size, 512), align, stream);
}

/// The `n`-th live piece.
static piece *nth_out(model *m, uint64_t n) {
    for (size_t s = 0; s < m->n; s++) {
        for (size_t i = 0; i < m->segments[s].n; i++) {
            piece *p = &m->segments[s].pieces[i];
            if (p->state == OUT && n-- == 0) return p;
        }
    }
    return NULL;
}

/// Trim: nothing pending is left, and segments that are idle go.
static void trim(model *m) {
    settle(m, true);
    size_t kept = 0;
    for (size_t s = 0; s < m->n; s++) {
        bool busy = false;
        for (size_t i = 0; i < m->segments[s].n; i++) busy = busy || m->segments[s].pieces[i].state != IDLE;
        if (busy && kept != s) m->segments[kept] = m->segments[s];
        kept += busy;
    }
    m->n = kept;
}

static void forget(model *m, tide_stream_id stream) {
    for (size_t s = 0; s < m->n; s++) {
        segment *seg = &m->segments[s];
        for (size_t i = 0; i < seg->n; i++) {
            piece *p = &seg->pieces[i];
            size_t n = 0;
            for (size_t u = 0; u < p->n_uses; u++) {
                if (p->uses[u] == stream) continue;
                p->uses[n] = p->uses[u];
                p->until[n++] = p->until[u];
            }
            p->n_uses = n;
            if (p->state == PENDING && n == 0) p->state = IDLE;
            if (p->home == stream) p->home = 0;
        }
        merge(seg);
    }
}

static void declare(piece *p, tide_stream_id stream) {
    if (stream == p->stream) return;
    for (size_t i = 0; i < p->n_uses; i++) {
        if (p->uses[i] == stream) return;
    }
    assert_true(p->n_uses < MAX_USES);
    p->uses[p->n_uses++] = stream;
}

/// Each use waits for all that its stream had to do by then, the event included.
static void release(piece *p) {
    p->state = p->n_uses > 0 ? PENDING : IDLE;
    for (size_t i = 0; i < p->n_uses; i++) p->until[i] = fake_find_key(p->uses[i])->n_queued;
}

// ---- one against the other ----

typedef struct totals {
    uint64_t requested, active, pending, n_pending, n_out, cached, reserved, largest;
} totals;

static totals count(const model *m) {
    totals t = {0};
    for (size_t s = 0; s < m->n; s++) {
        t.reserved += m->segments[s].size;
        for (size_t i = 0; i < m->segments[s].n; i++) {
            const piece *p = &m->segments[s].pieces[i];
            if (p->state == IDLE) {
                t.cached += p->size;
                if (p->size > t.largest) t.largest = p->size;
                continue;
            }
            t.active += p->size;
            if (p->state == PENDING) {
                t.pending += p->size;
                t.n_pending++;
            } else {
                t.requested += p->mem.requested_bytes;
                t.n_out++;
            }
        }
    }
    return t;
}

static void assert_agree(const tide_allocator *a, const model *m, int step, const char *what) {
    const tide_allocator_stats s = stats_of(a);
    const totals t = count(m);
    const bool same = s.requested_bytes == t.requested && s.active_bytes == t.active && s.pending_bytes == t.pending &&
                      s.n_pending == t.n_pending && s.cached_bytes == t.cached && s.reserved_bytes == t.reserved &&
                      s.largest_free_bytes == t.largest;
    if (!same)
        fail_msg("step %d, %s: requested %" PRIu64 "/%" PRIu64 ", active %" PRIu64 "/%" PRIu64 ", pending %" PRIu64
                 "/%" PRIu64 ", cached %" PRIu64 "/%" PRIu64 ", reserved %" PRIu64 "/%" PRIu64 ", largest %" PRIu64
                 "/%" PRIu64,
                 step, what, s.requested_bytes, t.requested, s.active_bytes, t.active, s.pending_bytes, t.pending,
                 s.cached_bytes, t.cached, s.reserved_bytes, t.reserved, s.largest_free_bytes, t.largest);
    assert_sound(a);
}

static size_t any_size(tide_rng *rng) {
    switch (tide_rng_below(rng, 10)) {
    case 0:
        return 1 * MIB + (size_t)tide_rng_below(rng, 9 * MIB);
    case 1:
        return 10 * MIB + (size_t)tide_rng_below(rng, 8 * MIB);
    case 2:
        return 512 * (1 + (size_t)tide_rng_below(rng, 4)); // many of the same
    default:
        return (size_t)1 << tide_rng_below(rng, 20);
    }
}

static size_t any_align(tide_rng *rng) {
    return tide_rng_below(rng, 4) == 0 ? (size_t)1 << tide_rng_below(rng, 22) : 0;
}

typedef struct match {
    tide_allocator *a;
    model *m;
    ears e;
    tide_stream_id streams[N_STREAMS];
    tide_rng rng;
    int step;
} match;

static tide_stream_id any_stream(match *x) { return x->streams[tide_rng_below(&x->rng, N_STREAMS)]; }

static void step_alloc(match *x) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_alloc_request req = {
        .size_bytes = any_size(&x->rng), .align_bytes = any_align(&x->rng), .stream = any_stream(x)};
    const size_t n_taken = x->e.n_taken;
    size_t segment_bytes = 0;
    piece *p = predict(x->m, req.size_bytes, req.align_bytes, req.stream, &segment_bytes);
    tide_memory mem = {0};
    assert_tide_ok(tide_allocator_alloc(x->a, &req, &mem, &err), &err);
    assert_true(x->e.n_taken == n_taken + (p == NULL));
    if (p == NULL) {
        assert_true(x->e.segment_bytes == segment_bytes);
        p = predict_new(x->m, &x->e, req.size_bytes, req.align_bytes, req.stream);
    }
    if (p->addr != (uintptr_t)mem.data || p->size != mem.reserved_bytes)
        fail_msg("step %d: %zu B, alignment %zu: got %zu at %p, want %zu at %p", x->step, req.size_bytes,
                 req.align_bytes, mem.reserved_bytes, mem.data, p->size, (void *)p->addr);
    p->mem = mem;
}

static void step_use(match *x, piece *p) {
    const tide_stream_id stream = any_stream(x);
    touch(&(tide_memory){.data = p->mem.data, .requested_bytes = 1}, stream);
    tide_allocator_record_use(x->a, &p->mem, stream);
    declare(p, stream);
}

static void step_release(match *x, piece *p) {
    const tide_stream_id stream = tide_rng_below(&x->rng, 3) == 0 ? any_stream(x) : p->stream;
    declare(p, stream);
    tide_allocator_release(x->a, &p->mem, stream);
    release(p);
    for (size_t s = 0; s < x->m->n; s++) merge(&x->m->segments[s]);
}

static void step_streams(match *x) {
    const size_t i = (size_t)tide_rng_below(&x->rng, N_STREAMS);
    for (uint64_t n = tide_rng_below(&x->rng, 12); n > 0; n--) fake_step(x->streams[i]);
}

static void step_end_stream(match *x) {
    const size_t i = (size_t)tide_rng_below(&x->rng, N_STREAMS);
    // Pieces that are still out must not be released on a stream that is gone later on: that would be another use.
    end_stream(x->streams[i]);
    forget(x->m, x->streams[i]);
    x->streams[i] = new_stream();
}

static const char *step(match *x) {
    const uint64_t n_out = count(x->m).n_out, dice = tide_rng_below(&x->rng, 1000);
    piece *p = n_out > 0 ? nth_out(x->m, tide_rng_below(&x->rng, n_out)) : NULL;
    if (p == NULL || (dice < 400 && n_out < 120)) {
        step_alloc(x);
        return "alloc";
    }
    if (dice < 550) {
        step_use(x, p);
        return "use";
    }
    if (dice < 850) {
        step_release(x, p);
        return "release";
    }
    if (dice < 990) {
        step_streams(x);
        return "streams";
    }
    if (dice < 995) {
        step_end_stream(x);
        return "end of a stream";
    }
    tide_allocator_trim(x->a);
    trim(x->m);
    return "trim";
}

static void agrees_with_a_plain_model(uint64_t seed) {
    model *m = calloc(1, sizeof *m); // 58 MiB: neither for the stack nor for the data of all tests of this program
    assert_non_null(m);
    match x = {.a = make_fake(), .m = m, .rng = {seed}};
    listen_with(x.a, &x.e);
    fake_hold(true);
    for (int i = 0; i < N_STREAMS; i++) x.streams[i] = new_stream();
    uint64_t n_pending = 0;
    for (x.step = 0; x.step < N_STEPS; x.step++) {
        const char *what = step(&x);
        assert_agree(x.a, m, x.step, what);
        n_pending += count(m).n_pending > 0;
    }
    // The walk has been everywhere.
    assert_true(n_pending > N_STEPS / 4 && m->n_taken_over > 10 && x.e.n_given > 3);
    for (piece *p; (p = nth_out(m, 0)) != NULL;) step_release(&x, p);
    tide_allocator_trim(x.a);
    trim(m);
    assert_agree(x.a, m, N_STEPS, "the end");
    assert_true(stats_of(x.a).reserved_bytes == 0);
    tide_allocator_unref(x.a);
    for (int i = 0; i < N_STREAMS; i++) end_stream(x.streams[i]);
    fake_teardown();
    free(m);
}

static void agrees_with_a_plain_model_1(void **state) {
    (void)state;
    agrees_with_a_plain_model(1);
}

static void agrees_with_a_plain_model_2(void **state) {
    (void)state;
    agrees_with_a_plain_model(20221107);
}

int main(void) {
    const struct CMUnitTest tests[] = {tide_unit_test(agrees_with_a_plain_model_1),
                                       tide_unit_test(agrees_with_a_plain_model_2)};
    tide_assert_slowly(true);
    return cmocka_run_group_tests_name("allocator stream_caching, model", tests, NULL, NULL);
}
