// SPDX-License-Identifier: MIT
//
// What goes into a feed comes out of it: every field, names by content, scopes by content, totals; and what cannot be.
#include <stdlib.h>
#include <sys/mman.h>

#include "feed_fixture.h"

// ---- events ----

static void every_field_comes_out(void **state) {
    (void)state;
    feed_fx *fx = fx_open(64, false);
    static const tide_memory_op ops[] = {TIDE_MEM_ALLOC,         TIDE_MEM_FREE_REQUESTED, TIDE_MEM_FREE_COMPLETED,
                                         TIDE_MEM_SEGMENT_ALLOC, TIDE_MEM_SEGMENT_FREE,   TIDE_MEM_OOM,
                                         TIDE_MEM_POOL_DISCARD,  TIDE_MEM_SNAPSHOT};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        const tide_memory_event e = {.op = ops[i],
                                     .t_ns = INT64_MAX - i,
                                     .block_id = (UINT64_C(1) << TIDE__BLOCK_ID_BITS) - 1 - i,
                                     .device = {.type = (tide_device_type)1, .index = (int32_t)i % 2},
                                     .kind = (tide_memory_kind)(i % TIDE_N_KINDS),
                                     .stream = UINT64_MAX - i,
                                     .requested_bytes = INT64_MAX - i,
                                     .reserved_bytes = INT64_MAX / 2 + i,
                                     .address = UINT64_MAX - 2 * i,
                                     .thread = 7,
                                     .allocator = i % 2 == 0 ? "even" : "odd",
                                     .tag = i == 3 ? NULL : "who"};
        tide__feed_memory(fx->feed, &e);
        const tide__slot s = fx_next(fx);
        assert_int_equal(s.op, ops[i]);
        assert_true(s.time == e.t_ns && s.block_id == e.block_id);
        assert_true(s.requested_bytes == e.requested_bytes && s.reserved_bytes == e.reserved_bytes);
        assert_true(s.address == e.address && s.stream == e.stream);
        assert_int_equal(s.kind_flags & 15, e.kind);
        assert_int_equal(s.kind_flags >> 4, TIDE__SLOT_NS | TIDE__SLOT_GIVEN);
        assert_string_equal(fx_allocator(fx, s.allocator), e.allocator);
        assert_int_equal(s.scope, 0);
        if (e.tag == NULL) {
            assert_int_equal(s.tag, 0);
        } else {
            assert_string_equal(fx_text(fx, s.tag), e.tag);
        }
        assert_in_range(s.device, 1, fx->n_of[TIDE__LOG_DEVICE]);
        tide__log_device d;
        memcpy(&d, fx->of[TIDE__LOG_DEVICE][s.device] + 1, sizeof d);
        assert_int_equal(d.type, 1);
        assert_int_equal(d.index, e.device.index);
    }
    assert_int_equal(fx->n_of[TIDE__LOG_DEVICE], 2);
    fx_close(fx);
}

static void expect_text(const feed_fx *fx, uint32_t number, const char *want) {
    if (want == NULL) {
        assert_int_equal(number, 0);
    } else {
        assert_string_equal(fx_text(fx, number), want);
    }
}

/// The slot is about that event; times are another test's.
static void expect_event(feed_fx *fx, const tide__slot *s, const tide_memory_event *e) {
    assert_int_equal(s->op, e->op);
    assert_int_equal(s->kind_flags & 15, e->kind);
    assert_true(s->block_id == e->block_id && s->address == e->address && s->stream == e->stream);
    assert_true(s->requested_bytes == e->requested_bytes && s->reserved_bytes == e->reserved_bytes);
    expect_text(fx, s->tag, e->tag);
    if (e->allocator == NULL) {
        assert_int_equal(s->allocator, 0);
    } else {
        assert_string_equal(fx_allocator(fx, s->allocator), e->allocator);
    }
    if (e->scope == NULL) {
        assert_int_equal(s->scope, 0);
    } else {
        assert_string_equal(fx_text(fx, fx_scope(fx, s->scope)->text_id), e->scope->name);
    }
    tide__log_device d;
    memcpy(&d, fx->of[TIDE__LOG_DEVICE][s->device] + 1, sizeof d);
    assert_true(d.type == (int32_t)e->device.type && d.index == e->device.index);
}

/// Each of many events differs from the one before in one field. Every event is read back as it was sent.
static void each_change_of_a_field_comes_out(void **state) {
    (void)state;
    enum { N = 50000, N_NAMES = 6, NAME_BYTES = 96 };
    feed_fx *fx = fx_open(64, false);
    tide_rng rng = {.state = 17};
    static _Alignas(64) char names[N_NAMES][NAME_BYTES]; // their content changes, too
    static tide_scope scopes[3];
    for (int i = 0; i < N_NAMES; i++) strcpy(names[i], "name");
    for (int i = 0; i < 3; i++) scopes[i] = (tide_scope){.name = "scope", .entry = (uint64_t)i};
    tide_memory_event e = fx_event(TIDE_MEM_ALLOC, 1);
    for (int i = 0; i < N; i++) {
        const uint64_t n = tide_rng_below(&rng, UINT64_C(1) << 40);
        char *name = names[n % N_NAMES] + n / 8 % 20;
        switch (tide_rng_below(&rng, 16)) {
        case 0:
            e.op = (tide_memory_op)(1 + n % 8);
            break;
        case 1:
            e.block_id = n;
            break;
        case 2:
            e.kind = (tide_memory_kind)(n % TIDE_N_KINDS);
            break;
        case 3:
            e.requested_bytes = n;
            break;
        case 4:
            e.reserved_bytes = n;
            break;
        case 5:
            e.address = n;
            break;
        case 6:
            e.stream = n;
            break;
        case 7:
            e.device = (tide_device){.type = (tide_device_type)(n % 2), .index = (int32_t)(n / 2 % 2)};
            break;
        case 8:
            e.thread = 1 + (uint32_t)(n % 2);
            break;
        case 9:
            e.t_ns = n % 3 == 0 ? 1 + n : 0;
            break;
        case 10:
            e.scope = n % 4 == 0 ? NULL : &scopes[n % 3];
            break;
        case 11:
            scopes[n % 3].name = n % 2 == 0 ? "scope" : "other", scopes[n % 3].entry += n % 3 != 0 ? 4 : 0;
            break;
        case 12:
            e.allocator = n % 8 == 0 ? NULL : n % 2 == 0 ? "test" : "a name that is longer than two blocks";
            break;
        case 13:
        case 14:
            e.tag = n % 8 == 0 ? NULL : name;
            break;
        default:
            // the last few bytes, which are whatever the lengths were before
            for (size_t k = strlen(name), to = n / 512 % 70; k < to; k++) name[k] = 'l';
            name[n / 512 % 70] = '\0';
            if (name[0] != '\0') name[strlen(name) - 1] = (char)('a' + n % 3);
        }
        // By hand and by number: what has no number is compared, what has one may change with it only.
        if (e.scope == &scopes[0]) scopes[0].entry = 0;
        tide__feed_memory(fx->feed, &e);
        const tide__slot s = fx_next(fx);
        expect_event(fx, &s, &e);
        assert_int_equal(s.kind_flags >> 4, e.t_ns != 0               ? TIDE__SLOT_NS | TIDE__SLOT_GIVEN
                                            : tide__clock_has_ticks() ? 0
                                                                      : TIDE__SLOT_NS);
        if (e.t_ns != 0) assert_true(s.time == e.t_ns);
    }
    assert_int_equal(fx_stats(fx).n_events, N);
    assert_int_equal(fx_stats(fx).n_refused, 0);
    fx_close(fx);
}

/// Producers may be told to note no ticks.
static void events_get_a_time_without_ticks(void **state) {
    (void)state;
    assert_int_equal(setenv("TIDE_NO_TICKS", "1", 1), 0);
    feed_fx *fx = fx_open(64, false);
    assert_false(tide__feed_head(fx->feed)->has_ticks);
    uint64_t last = tide_now_ns();
    for (int i = 0; i < 200; i++) {
        fx_alloc(fx, 1);
        const tide__slot s = fx_next(fx);
        assert_int_equal(s.kind_flags >> 4, TIDE__SLOT_NS);
        assert_true(last <= s.time && s.time <= tide_now_ns());
        last = s.time;
    }
    unsetenv("TIDE_NO_TICKS");
    fx_close(fx);
}

/// Without a time of its own an event gets that of its arrival, in ticks where there are any.
static void events_without_a_time_get_one(void **state) {
    (void)state;
    feed_fx *fx = fx_open(64, false);
    const bool has_ticks = tide__clock_has_ticks();
    assert_int_equal(tide__feed_head(fx->feed)->has_ticks, has_ticks);
    uint64_t last = has_ticks ? tide__ticks() : tide_now_ns();
    for (int i = 0; i < 10; i++) {
        fx_alloc(fx, 1);
        const uint64_t after = has_ticks ? tide__ticks() : tide_now_ns();
        const tide__slot s = fx_next(fx);
        assert_int_equal(s.kind_flags >> 4, has_ticks ? 0 : TIDE__SLOT_NS);
        assert_true(last <= s.time && s.time <= after);
        last = s.time;
    }
    fx_close(fx);
}

/// A ring names the thread of the events that follow, before the first event and at each change: the calling thread, or
/// another one that it sends for.
static void a_ring_says_whose_events_follow(void **state) {
    (void)state;
    feed_fx *fx = fx_open(64, false);
    static const uint32_t threads[] = {5, 5, 6, 6, 0, 5};
    for (size_t i = 0; i < 6; i++) {
        tide_memory_event e = fx_event(TIDE_MEM_ALLOC, i + 1);
        e.thread = threads[i];
        tide__feed_memory(fx->feed, &e);
    }
    static const struct {
        uint8_t op;
        uint64_t number;
    } want[] = {
        {TIDE__SLOT_THREAD, 5}, {1, 1}, {1, 2}, {TIDE__SLOT_THREAD, 6}, {1, 3}, {1, 4}, {TIDE__SLOT_THREAD, 0}, {1, 5},
        {TIDE__SLOT_THREAD, 5}, {1, 6}};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__feed_reader_refresh(fx->reader, &err), &err);
    tide__slot s;
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        assert_true(fx_take(fx, 0, true, &s));
        assert_int_equal(s.op, want[i].op);
        assert_int_equal(s.block_id, want[i].number);
    }
    assert_false(fx_take(fx, 0, true, &s));
    assert_int_equal(fx_stats(fx).n_events, 6); // who follows is no event
    fx_close(fx);
}

static void runs_stand_between_events(void **state) {
    (void)state;
    feed_fx *fx = fx_open(64, false);
    fx_alloc(fx, 1);
    tide__feed_run(fx->feed, true, 77, 12345);
    fx_alloc(fx, 2);
    tide__feed_run(fx->feed, false, 77, 0);
    assert_int_equal(fx_next(fx).block_id, 1);
    tide__slot s = fx_next(fx);
    assert_int_equal(s.op, TIDE__SLOT_RUN_BEGIN);
    assert_int_equal(s.block_id, 77);
    assert_int_equal(s.time, 12345);
    assert_int_equal(s.kind_flags, 15 | (TIDE__SLOT_NS | TIDE__SLOT_GIVEN) << 4);
    assert_int_equal(fx_next(fx).block_id, 2);
    s = fx_next(fx);
    assert_int_equal(s.op, TIDE__SLOT_RUN_END);
    assert_int_equal(s.block_id, 77);
    assert_true(s.time != 0);
    fx_close(fx);
}

// ---- names ----

static const char *tag_of_next(feed_fx *fx, const char *tag) {
    tide_memory_event e = fx_event(TIDE_MEM_ALLOC, 1);
    e.tag = tag;
    tide__feed_memory(fx->feed, &e);
    return fx_text(fx, fx_next(fx).tag);
}

static void a_text_has_one_number_wherever_it_lies(void **state) {
    (void)state;
    feed_fx *fx = fx_open(64, false);
    char a[] = "conv1.weight", b[] = "conv1.weight";
    assert_ptr_not_equal(a, b);
    const char *first = tag_of_next(fx, a);
    assert_ptr_equal(tag_of_next(fx, b), first); // the very same record
    assert_ptr_equal(tag_of_next(fx, a), first);
    assert_string_equal(tag_of_next(fx, ""), "");
    assert_null(tag_of_next(fx, NULL));
    fx_close(fx);
}

/// Memory of a text that holds another one by now: at each place in a cache line, of each length, changed at each byte,
/// longer, shorter.
static void reused_memory_is_noticed(void **state) {
    (void)state;
    feed_fx *fx = fx_open(64, false);
    _Alignas(64) char memory[128];
    for (size_t at = 0; at < 33; at++) {
        for (size_t len = 0; len < 90; len += len < 18 ? 1 : len < 40 ? 3 : 17) {
            char *text = memory + at;
            memset(memory, '#', sizeof memory);
            for (size_t i = 0; i < len; i++) text[i] = (char)('a' + i % 26);
            text[len] = '\0';
            assert_string_equal(tag_of_next(fx, text), text);
            for (size_t i = 0; i < len; i++) {
                const char was = text[i];
                text[i] = 'X';
                assert_string_equal(tag_of_next(fx, text), text);
                text[i] = was;
                assert_string_equal(tag_of_next(fx, text), text);
            }
            memcpy(text + len, "+", 2);
            assert_string_equal(tag_of_next(fx, text), text);
            text[len / 2] = '\0';
            assert_string_equal(tag_of_next(fx, text), text);
        }
    }
    fx_close(fx);
}

/// Bytes beside a text need not be there.
static void texts_at_the_end_of_memory(void **state) {
    (void)state;
    feed_fx *fx = fx_open(64, false);
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(two, MAP_FAILED);
    assert_int_equal(mprotect(two + page, page, PROT_NONE), 0);
    for (size_t len = 0; len < 40; len++) {
        char *text = two + page - len - 1;
        memset(text, 'e', len);
        text[len] = '\0';
        for (int again = 0; again < 2; again++) assert_string_equal(tag_of_next(fx, text), text);
    }
    munmap(two, 2 * page);
    fx_close(fx);
}

/// A text went on in the next page; then there is a shorter one in its place, and that page is gone.
static void texts_before_a_page_that_is_gone(void **state) {
    (void)state;
    feed_fx *fx = fx_open(64, false);
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t before = 2; before < 50; before++) { // bytes in the first page
        char *two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_ptr_not_equal(two, MAP_FAILED);
        char *text = two + page - before;
        memset(text, 'g', before + 40);
        for (int again = 0; again < 2; again++) assert_string_equal(tag_of_next(fx, text), text);
        text[before - 1] = '\0';
        assert_int_equal(munmap(two + page, page), 0);
        for (int again = 0; again < 2; again++) assert_string_equal(tag_of_next(fx, text), text);
        munmap(two, page);
    }
    fx_close(fx);
}

/// More than any cache holds, and more than the first table and the first piece of the log.
static void many_names(void **state) {
    (void)state;
    enum { N = 15000 };
    feed_fx *fx = fx_open(64, false);
    char *texts = calloc(N, 80);
    assert_non_null(texts);
    for (int i = 0; i < N; i++)
        snprintf(texts + 80 * i, 80, "a name of some length, so that a piece fills up %d", i * 7);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < N; i++) {
            const int k = round == 0 ? i : (i * 7919) % N;
            assert_string_equal(tag_of_next(fx, texts + 80 * k), texts + 80 * k);
        }
    }
    assert_int_equal(fx->n_of[TIDE__LOG_TEXT], N + 1); // and the allocator's
    assert_int_equal(fx_stats(fx).n_refused, 0);
    free(texts);
    fx_close(fx);
}

/// A name that needs a piece of the log of its own; one that is no name any more.
static void long_names(void **state) {
    (void)state;
    feed_fx *fx = fx_open(64, false);
    const size_t most = TIDE__FEED_MAX_TEXT;
    char *text = malloc(most + 2);
    assert_non_null(text);
    const size_t lengths[] = {1000, TIDE__FEED_LOG_BYTES - 16 - 64 - 1, TIDE__FEED_LOG_BYTES, 3 * TIDE__FEED_LOG_BYTES,
                              most};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        memset(text, 'a' + (int)i, lengths[i]);
        text[lengths[i]] = '\0';
        assert_string_equal(tag_of_next(fx, text), text);
        assert_string_equal(tag_of_next(fx, "short"), "short");
    }
    memset(text, 'z', most + 1);
    text[most + 1] = '\0';
    tide_memory_event e = fx_event(TIDE_MEM_ALLOC, 1);
    e.tag = text;
    tide__feed_memory(fx->feed, &e);
    assert_int_equal(fx_stats(fx).n_refused, 1);
    free(text);
    fx_close(fx);
}

/// 32 devices and 255 allocators have numbers; events of the next ones are refused, those of the first ones are not.
static void devices_and_allocators_end(void **state) {
    (void)state;
    feed_fx *fx = fx_open(64, false);
    tide_error err = TIDE_ERROR_INIT;
    for (int i = 0; i < 33; i++) {
        tide_memory_event e = fx_event(TIDE_MEM_ALLOC, (uint64_t)i + 1);
        e.device.index = i;
        tide__feed_memory(fx->feed, &e);
        if (i < 32) assert_int_equal(fx_next(fx).device, i + 1);
    }
    assert_int_equal(fx_stats(fx).n_refused, 1);
    assert_tide_status(tide__feed_error(fx->feed, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "more than 32 devices");
    char names[256][32];
    for (int i = 0; i < 256; i++) {
        snprintf(names[i], sizeof names[i], "allocator %d", i);
        tide_memory_event e = fx_event(TIDE_MEM_ALLOC, 1);
        e.allocator = i == 0 ? "test" : names[i]; // "test" has its number from above
        tide__feed_memory(fx->feed, &e);
        if (i < 255) assert_string_equal(fx_allocator(fx, fx_next(fx).allocator), e.allocator);
    }
    assert_int_equal(fx_stats(fx).n_refused, 2);
    assert_tide_status(tide__feed_error(fx->feed, &err), TIDE_ERR_INVALID); // the first one is kept
    assert_text_has(err.msg, "more than 32 devices");
    fx_alloc(fx, 9);
    assert_int_equal(fx_next(fx).block_id, 9);
    fx_close(fx);
}

/// Two allocators whose names come one after the other in one piece of memory.
static void allocator_names_are_compared(void **state) {
    (void)state;
    feed_fx *fx = fx_open(64, false);
    char name[32];
    for (int i = 0; i < 6; i++) {
        snprintf(name, sizeof name, "pool %d", i % 3);
        tide_memory_event e = fx_event(TIDE_MEM_ALLOC, 1);
        e.allocator = name;
        tide__feed_memory(fx->feed, &e);
        assert_string_equal(fx_allocator(fx, fx_next(fx).allocator), name);
    }
    assert_int_equal(fx->n_of[TIDE__LOG_ALLOCATOR], 3);
    tide_memory_event e = fx_event(TIDE_MEM_ALLOC, 1);
    e.allocator = NULL;
    tide__feed_memory(fx->feed, &e);
    assert_int_equal(fx_next(fx).allocator, 0);
    fx_close(fx);
}

// ---- totals and what cannot be ----

static void totals_are_those_of_the_events(void **state) {
    (void)state;
    feed_fx *fx = fx_open(64, false);
    uint64_t want[2][TIDE_N_KINDS][4] = {0};
    tide_rng rng = {.state = 3};
    for (int i = 0; i < 1000; i++) {
        tide_memory_event e = fx_event((tide_memory_op)(1 + tide_rng_below(&rng, 8)), 1);
        e.kind = (tide_memory_kind)tide_rng_below(&rng, TIDE_N_KINDS);
        e.device.index = (int32_t)tide_rng_below(&rng, 2);
        e.requested_bytes = tide_rng_below(&rng, 1000);
        tide__feed_memory(fx->feed, &e);
        const tide__slot s = fx_next(fx);
        uint64_t *t = want[s.device - 1][e.kind];
        if (e.op == TIDE_MEM_ALLOC) t[0]++, t[2] += e.requested_bytes;
        if (e.op == TIDE_MEM_FREE_COMPLETED) t[1]++, t[3] += e.requested_bytes;
    }
    const tide__ring_header *h = tide__feed_reader_ring(fx->reader, 0);
    for (int d = 0; d < 2; d++) {
        for (int k = 0; k < TIDE_N_KINDS; k++) {
            const tide__ring_total *t = &h->totals[d][k];
            assert_true(want[d][k][0] > 0);
            assert_true(t->n_allocs == want[d][k][0] && t->n_frees == want[d][k][1]);
            assert_true(t->requested_bytes == want[d][k][2] && t->freed_bytes == want[d][k][3]);
        }
    }
    assert_int_equal(fx_stats(fx).n_events, 1000);
    fx_close(fx);
}

static void impossible_events_are_refused(void **state) {
    (void)state;
    feed_fx *fx = fx_open(64, false);
    const tide_memory_event good = fx_event(TIDE_MEM_ALLOC, 1);
    tide_memory_event bad[8];
    for (int i = 0; i < 8; i++) bad[i] = good;
    bad[0].op = (tide_memory_op)0;
    bad[1].op = (tide_memory_op)(TIDE_MEM_SNAPSHOT + 1);
    bad[2].kind = (tide_memory_kind)TIDE_N_KINDS;
    bad[3].kind = (tide_memory_kind)-1;
    bad[4].block_id = UINT64_C(1) << TIDE__BLOCK_ID_BITS;
    bad[5].requested_bytes = UINT64_C(1) << 63;
    bad[6].reserved_bytes = UINT64_C(1) << 63;
    bad[7].t_ns = UINT64_C(1) << 63;
    for (int i = 0; i < 8; i++) tide__feed_memory(fx->feed, &bad[i]);
    const tide_scope scope = {.name = "s"};
    tide__feed_scope(fx->feed, &(tide_scope_event){.enter = true, .thread = 1});
    tide__feed_scope(fx->feed, &(tide_scope_event){.enter = true, .thread = 1, .scope = &scope, .t_ns = UINT64_MAX});
    assert_int_equal(fx_stats(fx).n_refused, 10);
    assert_int_equal(fx_stats(fx).n_events, 0);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide__feed_error(fx->feed, &err), TIDE_ERR_INVALID);
    assert_string_equal(err.msg, "cannot record an event: no such operation"); // of the first
    tide__feed_memory(fx->feed, &good);
    assert_int_equal(fx_next(fx).block_id, 1); // nothing of them is in the ring
    fx_close(fx);
}

static void ops_of_a_trace_have_names(void **state) {
    (void)state;
    for (int op = 1; op <= 10; op++) assert_string_equal(tide__op_name(op), tide_memory_op_name((tide_memory_op)op));
    assert_string_equal(tide__op_name(TIDE__OP_SCOPE_ENTER), "scope_enter");
    assert_string_equal(tide__op_name(TIDE__OP_SCOPE_LEAVE), "scope_leave");
    assert_string_equal(tide__op_name(TIDE__OP_GAP), "gap");
    assert_string_equal(tide__op_name(TIDE__OP_PROCESS_END), "process_end");
    static const int none[] = {-1, 0, 11, 15, 20, TIDE__SLOT_THREAD};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) assert_null(tide__op_name(none[i]));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(every_field_comes_out),
        tide_unit_test(each_change_of_a_field_comes_out),
        tide_unit_test(events_without_a_time_get_one),
        tide_unit_test(events_get_a_time_without_ticks),
        tide_unit_test(a_ring_says_whose_events_follow),
        tide_unit_test(runs_stand_between_events),
        tide_unit_test(a_text_has_one_number_wherever_it_lies),
        tide_unit_test(reused_memory_is_noticed),
        tide_unit_test(texts_at_the_end_of_memory),
        tide_unit_test(texts_before_a_page_that_is_gone),
        tide_unit_test(many_names),
        tide_unit_test(long_names),
        tide_unit_test(devices_and_allocators_end),
        tide_unit_test(allocator_names_are_compared),
        tide_unit_test(totals_are_those_of_the_events),
        tide_unit_test(impossible_events_are_refused),
        tide_unit_test(ops_of_a_trace_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
