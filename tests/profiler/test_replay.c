// SPDX-License-Identifier: MIT
//
// The replay against a model that is too simple to be wrong: a list of live blocks that is searched from end to end.
#include "tests/profiler/event_fixture.h"
#include "tests/profiler/replay_model.h"

// ---- both ----

typedef struct listener {
    int64_t gone[MODEL_MAX]; ///< [n]
    size_t n;
} listener;

static void hear_gone(void *ctx, const tide__live_block *block, const tide__event *end) {
    (void)end;
    listener *l = ctx;
    l->gone[l->n++] = block->block_id;
}

static int by_number(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int by_block_number(const void *a, const void *b) {
    const tide__live_block *x = a, *y = b;
    return (x->block_id > y->block_id) - (x->block_id < y->block_id);
}

static void assert_same_sums(const tide__replay *r, const model *m) {
    assert_int_equal(r->series[0].live_bytes, m->sum);
    assert_int_equal(r->series[0].live_reserved_bytes, m->sum_reserved);
    for (size_t i = 1; i < r->n_series; i++) {
        const tide__series *s = &r->series[i];
        assert_int_equal(s->live_bytes, m->bytes[s->device][s->kind]);
        assert_int_equal(s->live_reserved_bytes, m->reserved[s->device][s->kind]);
        assert_int_equal(s->n_allocs, m->n_allocs[s->device][s->kind]);
        assert_int_equal(s->n_frees, m->n_frees[s->device][s->kind]);
        assert_int_equal(s->requested_bytes, m->requested[s->device][s->kind]);
        assert_int_equal(s->freed_bytes, m->freed[s->device][s->kind]);
        assert_int_equal(s->left_bytes, m->left[s->device][s->kind]);
    }
}

static void assert_same_blocks(const tide__replay *r, const model *m) {
    assert_int_equal(tide__replay_n_live(r), m->n);
    for (size_t i = 0; i < m->n; i++) {
        const tide__live_block *b = tide__replay_find(r, m->live[i].block_id);
        assert_non_null(b);
        assert_memory_equal(b, &m->live[i], sizeof *b);
    }
    size_t n = 0;
    for (size_t i = 0; tide__replay_next(r, &i) != NULL;) n++;
    assert_int_equal(n, m->n);
}

/// How many series have other sums than in `before`, and that those are marked.
static size_t count_changed(const tide__replay *r, const tide__series *before, size_t n_before, int64_t id,
                            bool ends_process) {
    size_t n = 0;
    for (size_t i = 1; i < r->n_series; i++) {
        const tide__series *s = &r->series[i], old = i < n_before ? before[i] : (tide__series){0};
        // What goes with its process is in no count; a block of no bytes changes no sum either.
        const bool is_counted = s->n_allocs != old.n_allocs || s->n_frees != old.n_frees;
        const bool changed = is_counted || (ends_process && s->last_event == id);
        if (ends_process && !is_counted && !changed) assert_int_equal(s->live_bytes, old.live_bytes);
        assert_int_equal(changed, s->last_event == id);
        n += changed;
    }
    return n;
}

static model m;
static listener heard;

static bool is_end(const tide__event *e) {
    return e->op == TIDE_MEM_FREE_REQUESTED || e->op == TIDE_MEM_FREE_COMPLETED;
}

/// One event through both. @return what was wrong with it
static tide__problem apply_both(tide__replay *r, const tide__event *e) {
    tide__series before[64];
    const size_t n_before = r->n_series;
    assert_true(n_before <= 64);
    memcpy(before, r->series, n_before * sizeof before[0]);
    tide__problem problem;
    size_t series;
    heard.n = 0;
    // The drain asks before it takes an event, also about other ones; the rest do not ask.
    if (e->id % 3 == 2) (void)tide__replay_is_early(r, TIDE_MEM_FREE_COMPLETED, e->block_id ^ 1);
    const bool early = e->id % 3 == 2 ? tide__replay_find(r, e->block_id) == NULL && e->block_id > 0 && is_end(e)
                                      : tide__replay_is_early(r, e->op, e->block_id);
    assert_tide_status(tide__replay_apply(r, e, &problem, &series), TIDE_OK);
    const tide__problem want = model_apply(&m, e);
    assert_int_equal(problem, want);
    assert_int_equal(early, want == TIDE__PROBLEM_FREE_UNKNOWN || want == TIDE__PROBLEM_REQUESTED_UNKNOWN);
    assert_int_equal(r->n_problems, m.n_problems);
    assert_int_equal(heard.n, m.n_gone);
    qsort(heard.gone, heard.n, sizeof heard.gone[0], by_number);
    qsort(m.gone, m.n_gone, sizeof m.gone[0], by_block_number);
    for (size_t i = 0; i < heard.n; i++) assert_int_equal(heard.gone[i], m.gone[i].block_id);
    assert_same_sums(r, &m);
    const size_t n_changed = count_changed(r, before, n_before, e->id, e->op == TIDE__OP_PROCESS_END);
    assert_int_equal(r->n_changed, n_changed);
    assert_int_equal(series != 0, n_changed != 0);
    if (series != 0) assert_int_equal(r->series[series].last_event, e->id);
    assert_int_equal(r->last_event, e->id);
    assert_int_equal(r->last_ns, e->t_ns);
    return problem;
}

static void begin(tide__replay *r) {
    memset(&m, 0, sizeof m);
    assert_tide_status(tide__replay_init(r), TIDE_OK);
    r->on_gone = hear_gone;
    r->ctx = &heard;
}

static void test_it_says_what_the_model_says(void **state) {
    (void)state;
    static program p;
    static tide__replay r;
    const program all[] = {
        {.want_live = 40},
        {.want_live = 2000, .n_devices = 3, .n_kinds = 6, .requests = true},
        {.want_live = 300, .n_devices = 3, .n_kinds = 6, .lies = 200, .discards = 4, .scopes = 50, .requests = true},
        {.want_live = 5, .n_devices = 2, .n_kinds = 2, .lies = 700, .discards = 100},
        {.want_live = 200, .n_devices = 3, .n_kinds = 6, .lies = 20, .ends = 10, .requests = true},
        {.want_live = 3, .n_devices = 2, .n_kinds = 2, .discards = 50, .ends = 300},
    };
    size_t seen[8] = {0};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
        p = all[k];
        p.rng.state = 10 + k;
        begin(&r);
        for (int i = 0; i < 12000; i++) {
            const tide__event e = program_next(&p);
            seen[apply_both(&r, &e)]++;
            if (i % 500 == 0) assert_same_blocks(&r, &m);
        }
        assert_same_blocks(&r, &m);
        tide__replay_deinit(&r);
    }
    for (int problem = TIDE__PROBLEM_NONE; problem <= TIDE__PROBLEM_TOO_LARGE; problem++)
        assert_true(seen[problem] > 0);
}

static tide__event event_of(int op, int64_t id, int64_t block, int64_t bytes) {
    return (tide__event){.op = (uint8_t)op,
                         .id = id,
                         .t_ns = id,
                         .block_id = block,
                         .device = 1,
                         .requested_bytes = bytes,
                         .reserved_bytes = bytes,
                         .address = (block & 0xffffff) * 4096};
}

/// Numbers of several processes, and numbers with the same lower half, are different blocks.
static void test_numbers_that_look_alike_are_kept_apart(void **state) {
    (void)state;
    static tide__replay r;
    begin(&r);
    int64_t id = 0;
    static const unsigned shifts[] = {0, 32, 33, TIDE__BLOCK_ID_BITS, 49, 61};
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t k = 1; k <= 300; k++) {
            for (size_t s = 0; s < sizeof shifts / sizeof shifts[0]; s++) {
                const int64_t block = (INT64_C(1) << shifts[s]) + k * (s % 2 == 0 ? 1 : INT64_C(0x100000000));
                const tide__event e = event_of(pass == 0 ? TIDE_MEM_ALLOC : TIDE_MEM_FREE_COMPLETED, ++id, block, k);
                apply_both(&r, &e);
            }
        }
        assert_same_blocks(&r, &m);
    }
    assert_true(m.n < 600); // some of the numbers are the same
    // The same hash: the upper half is mixed into the lower one.
    const int64_t twin = INT64_C(1) << 32 | (5 ^ 0x9E3779B1);
    tide__event e = event_of(TIDE_MEM_ALLOC, ++id, 5, 100);
    apply_both(&r, &e);
    e = event_of(TIDE_MEM_FREE_COMPLETED, ++id, twin, 100);
    assert_int_equal(apply_both(&r, &e), TIDE__PROBLEM_FREE_UNKNOWN);
    e = event_of(TIDE_MEM_ALLOC, ++id, twin, 7);
    assert_int_equal(apply_both(&r, &e), TIDE__PROBLEM_NONE);
    assert_same_blocks(&r, &m);
    tide__replay_deinit(&r);
}

/// A search that was made before the table grew says nothing about the new one. A feed that lies can bring that about:
/// the slot that the search was for is no event, and room for others is made before its block is freed.
static void test_a_search_does_not_outlive_its_table(void **state) {
    (void)state;
    static tide__replay r;
    begin(&r);
    int64_t id = 0;
    for (int64_t block = 1; block <= 40; block++) {
        const tide__event e = event_of(TIDE_MEM_ALLOC, ++id, block, 10 * block);
        apply_both(&r, &e);
    }
    assert_false(tide__replay_is_early(&r, TIDE_MEM_FREE_COMPLETED, 7));
    assert_true(tide__replay_reserve(&r, 5000));
    const tide__event e = event_of(TIDE_MEM_FREE_COMPLETED, ++id, 7, 70);
    tide__problem problem;
    size_t series;
    heard.n = 0;
    assert_tide_status(tide__replay_apply(&r, &e, &problem, &series), TIDE_OK);
    assert_int_equal(problem, TIDE__PROBLEM_NONE);
    assert_int_equal(heard.n, 1);
    assert_int_equal(heard.gone[0], 7);
    assert_null(tide__replay_find(&r, 7));
    assert_int_equal(tide__replay_n_live(&r), 39);
    tide__replay_deinit(&r);
}

/// After a time of many blocks neither their memory nor looking at all live ones costs what it did.
static void test_few_blocks_after_many_are_cheap_to_look_at(void **state) {
    (void)state;
    static tide__replay r;
    begin(&r);
    int64_t id = 0;
    for (int64_t k = 1; k <= 6000; k++) {
        const tide__event e = event_of(TIDE_MEM_ALLOC, ++id, k, k);
        apply_both(&r, &e);
    }
    for (int64_t k = 1; k <= 6000; k++) {
        if (k % 600 == 7) continue;
        const tide__event e = event_of(TIDE_MEM_FREE_COMPLETED, ++id, k, k);
        apply_both(&r, &e);
        if (k % 97 == 0) assert_same_blocks(&r, &m);
    }
    assert_same_blocks(&r, &m);
    assert_int_equal(r.n_live, 10);
    assert_true(r.n_blocks <= 1024);
    const tide__event e = {.op = TIDE_MEM_POOL_DISCARD, .id = ++id, .device = 1, .reserved_bytes = 6001 * 4096};
    apply_both(&r, &e);
    assert_int_equal(r.n_live, 0);
    tide__replay_deinit(&r);
}

/// Blocks whose numbers all belong into one group of the table, and so into those behind it: entries that are gone must
/// not end the search for others, are used again, and do not fill the table for good.
static void test_blocks_that_belong_into_one_group(void **state) {
    (void)state;
    enum { N_IDS = 46, N_SLOTS = 64 };
    static tide__replay r;
    begin(&r);
    int64_t id = 0, ids[N_IDS], number = 0;
    tide__event e = event_of(TIDE_MEM_ALLOC, ++id, 1, 8);
    apply_both(&r, &e);
    e = event_of(TIDE_MEM_FREE_COMPLETED, ++id, 1, 8);
    apply_both(&r, &e);
    assert_int_equal(r.n_table, N_SLOTS);
    // The last group of the table: those that have no room in it are put into the first ones.
    for (size_t i = 0; i < N_IDS; i++) {
        do number++;
        while (tide__replay_group(&r, tide__replay_hash(number)) != N_SLOTS - TIDE__GROUP);
        ids[i] = number;
        e = event_of(TIDE_MEM_ALLOC, ++id, number, 8 + number);
        apply_both(&r, &e);
    }
    assert_int_equal(r.n_table, N_SLOTS);
    // Out of the full groups first: their entries stay marked.
    for (size_t i = 0; i < 20; i++) {
        e = event_of(TIDE_MEM_FREE_COMPLETED, ++id, ids[i], 1);
        assert_int_equal(apply_both(&r, &e), TIDE__PROBLEM_NONE);
        assert_same_blocks(&r, &m);
    }
    assert_int_equal(r.n_gone, 20);
    // 26 that live and 20 marks: two more in another group, and the table is made anew, as large as it is.
    for (size_t i = 0; i < 3; i++) {
        do number++;
        while (tide__replay_group(&r, tide__replay_hash(number)) != 2 * TIDE__GROUP);
        e = event_of(TIDE_MEM_ALLOC, ++id, number, 8);
        apply_both(&r, &e);
    }
    assert_int_equal(r.n_gone, 0);
    assert_int_equal(r.n_table, N_SLOTS);
    assert_same_blocks(&r, &m);
    tide_rng rng = {.state = 5};
    for (int turn = 0; turn < 4000; turn++) {
        const int64_t block = ids[tide_rng_below(&rng, N_IDS)];
        const bool is_live = tide__replay_find(&r, block) != NULL;
        e = event_of(is_live ? TIDE_MEM_FREE_COMPLETED : TIDE_MEM_ALLOC, ++id, block, 8 + turn);
        assert_int_equal(apply_both(&r, &e), TIDE__PROBLEM_NONE);
        if (turn % 16 == 0) assert_same_blocks(&r, &m);
    }
    // Others that come and go leave their marks, too, and the table does not grow for it.
    for (int turn = 0; turn < 4000; turn++) {
        e = event_of(TIDE_MEM_ALLOC, ++id, ++number, 1);
        apply_both(&r, &e);
        e = event_of(TIDE_MEM_FREE_COMPLETED, ++id, number, 1);
        apply_both(&r, &e);
    }
    assert_same_blocks(&r, &m);
    assert_true(r.n_table <= 2 * N_SLOTS);
    tide__replay_deinit(&r);
}

/// A range may end at the last address there is.
static void test_a_discard_at_the_end_of_the_address_space(void **state) {
    (void)state;
    static tide__replay r;
    assert_tide_status(tide__replay_init(&r), TIDE_OK);
    tide__problem problem;
    size_t series;
    tide__event e = event_of(TIDE_MEM_ALLOC, 1, 1, 10);
    e.address = INT64_MIN; // a large unsigned number, one above INT64_MAX
    assert_tide_status(tide__replay_apply(&r, &e, &problem, &series), TIDE_OK);
    e = (tide__event){
        .op = TIDE_MEM_POOL_DISCARD, .id = 2, .device = 1, .address = INT64_MAX - 4095, .reserved_bytes = 4096};
    assert_tide_status(tide__replay_apply(&r, &e, &problem, &series), TIDE_OK);
    assert_non_null(tide__replay_find(&r, 1));
    e.reserved_bytes++;
    assert_tide_status(tide__replay_apply(&r, &e, &problem, &series), TIDE_OK);
    assert_null(tide__replay_find(&r, 1));
    e = event_of(TIDE_MEM_ALLOC, 3, 1, 10);
    e.address = -4096;
    assert_tide_status(tide__replay_apply(&r, &e, &problem, &series), TIDE_OK);
    e.block_id = 2;
    e.id = 2;
    e.address = 0;
    assert_tide_status(tide__replay_apply(&r, &e, &problem, &series), TIDE_OK);
    e = (tide__event){.op = TIDE_MEM_POOL_DISCARD, .id = 3, .device = 1, .address = -8192, .reserved_bytes = 8192};
    assert_tide_status(tide__replay_apply(&r, &e, &problem, &series), TIDE_OK);
    assert_null(tide__replay_find(&r, 1));
    assert_non_null(tide__replay_find(&r, 2));
    tide__replay_deinit(&r);
}

static void test_sums_never_pass_the_largest_number(void **state) {
    (void)state;
    static tide__replay r;
    begin(&r);
    int64_t id = 0;
    const int64_t half = INT64_MAX / 2 + 1;
    tide__event e = event_of(TIDE_MEM_ALLOC, ++id, 1, half);
    assert_int_equal(apply_both(&r, &e), TIDE__PROBLEM_NONE);
    e = event_of(TIDE_MEM_ALLOC, ++id, 2, half);
    assert_int_equal(apply_both(&r, &e), TIDE__PROBLEM_TOO_LARGE); // both at once
    e = event_of(TIDE_MEM_FREE_COMPLETED, ++id, 1, half);
    assert_int_equal(apply_both(&r, &e), TIDE__PROBLEM_NONE);
    e = event_of(TIDE_MEM_ALLOC, ++id, 3, half);
    assert_int_equal(apply_both(&r, &e), TIDE__PROBLEM_TOO_LARGE); // together, over time
    e = event_of(TIDE_MEM_ALLOC, ++id, 4, half - 1);
    assert_int_equal(apply_both(&r, &e), TIDE__PROBLEM_NONE);
    e = event_of(TIDE_MEM_ALLOC, ++id, 5, 0);
    e.reserved_bytes = INT64_MAX;
    assert_int_equal(apply_both(&r, &e), TIDE__PROBLEM_TOO_LARGE);
    tide__replay_deinit(&r);
}

static void test_a_series_is_a_device_and_a_kind(void **state) {
    (void)state;
    static tide__replay r;
    assert_tide_status(tide__replay_init(&r), TIDE_OK);
    assert_int_equal(tide__replay_series(&r, 0, 0), 0);
    assert_int_equal(tide__replay_series(&r, -1, 0), 0);
    assert_int_equal(tide__replay_series(&r, TIDE__MAX_DEVICES, 0), 0);
    assert_int_equal(tide__replay_series(&r, 1, TIDE_N_KINDS), 0);
    assert_int_equal(tide__replay_series(&r, 1, TIDE__NO_KIND), 0);
    for (size_t want = 1; want < TIDE__MAX_DEVICES; want++) {
        assert_int_equal(tide__replay_series(&r, (int16_t)want, (uint8_t)(want % TIDE_N_KINDS)), want);
        assert_int_equal(r.series[want].device, want);
        assert_int_equal(r.series[want].kind, want % TIDE_N_KINDS);
    }
    assert_int_equal(tide__replay_series(&r, 7, 7 % TIDE_N_KINDS), 7);
    tide__problem problem;
    size_t series;
    tide__event e = event_of(TIDE_MEM_ALLOC, 1, 1, 1);
    e.device = 0;
    assert_tide_status(tide__replay_apply(&r, &e, &problem, &series), TIDE_ERR_INVALID);
    e.device = 1;
    e.kind = TIDE__NO_KIND;
    assert_tide_status(tide__replay_apply(&r, &e, &problem, &series), TIDE_ERR_INVALID);
    assert_int_equal(r.n_live, 0);
    tide__replay_deinit(&r);
}

static void test_blocks_of_a_snapshot_are_put_in(void **state) {
    (void)state;
    static tide__replay r;
    assert_tide_status(tide__replay_init(&r), TIDE_OK);
    tide__live_block b = {.block_id = 9,
                          .alloc_event = 3,
                          .requested_bytes = 100,
                          .reserved_bytes = 128,
                          .device = 2,
                          .kind = 1,
                          .free_requested_ns = 77};
    assert_tide_status(tide__replay_put(&r, &b), TIDE_OK);
    assert_memory_equal(tide__replay_find(&r, 9), &b, sizeof b);
    assert_int_equal(r.series[0].live_bytes, 100);
    assert_int_equal(r.series[1].live_reserved_bytes, 128);
    assert_int_equal(r.series[1].n_allocs, 0); // that was before
    assert_tide_status(tide__replay_put(&r, &b), TIDE_ERR_BAD_INPUT);
    const tide__live_block good = b;
#define REFUSED(field, value)                                                                                          \
    b = good;                                                                                                          \
    b.block_id = 10;                                                                                                   \
    b.field = (value);                                                                                                 \
    assert_tide_status(tide__replay_put(&r, &b), TIDE_ERR_BAD_INPUT)
    REFUSED(block_id, 0);
    REFUSED(block_id, -1);
    REFUSED(device, 0);
    REFUSED(device, TIDE__MAX_DEVICES);
    REFUSED(kind, TIDE_N_KINDS);
    REFUSED(requested_bytes, -1);
    REFUSED(reserved_bytes, -1);
    REFUSED(requested_bytes, INT64_MAX - 99);
    REFUSED(reserved_bytes, INT64_MAX - 127);
#undef REFUSED
    assert_int_equal(r.n_live, 1);
    tide__replay_deinit(&r);
}

/// Each allocation fails once: the event has not happened, and happens when there is memory again.
static void test_without_memory_nothing_changes(void **state) {
    (void)state;
    static tide__replay r;
    tide_host_fail_after(0);
    assert_tide_status(tide__replay_init(&r), TIDE_ERR_NOMEM);
    static program p = {.want_live = 900, .n_devices = 3, .n_kinds = 6, .lies = 50};
    begin(&r);
    int n_failed = 0;
    for (int i = 0; i < 5000; i++) {
        const tide__event e = program_next(&p);
        for (int fail = 0;; fail++) {
            tide__problem problem;
            size_t series;
            const size_t n_live = r.n_live;
            tide_host_fail_after(fail);
            const tide_status st = tide__replay_apply(&r, &e, &problem, &series);
            tide_host_fail_after(-1);
            if (st == TIDE_OK) break;
            assert_int_equal(st, TIDE_ERR_NOMEM);
            assert_int_equal(r.n_live, n_live);
            assert_same_sums(&r, &m);
            assert_int_equal(r.last_event, e.id - 1);
            n_failed++;
        }
        model_apply(&m, &e);
        assert_same_sums(&r, &m);
    }
    assert_same_blocks(&r, &m);
    assert_true(n_failed > 10);
    tide__replay_deinit(&r);
}

static void test_every_problem_has_words(void **state) {
    (void)state;
    for (int i = TIDE__PROBLEM_NONE; i <= TIDE__PROBLEM_TOTALS; i++)
        assert_true(strlen(tide__problem_text((tide__problem)i)) > 3);
    assert_string_equal(tide__problem_text((tide__problem)99), "unknown");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_it_says_what_the_model_says),
        tide_unit_test(test_numbers_that_look_alike_are_kept_apart),
        tide_unit_test(test_a_search_does_not_outlive_its_table),
        tide_unit_test(test_few_blocks_after_many_are_cheap_to_look_at),
        tide_unit_test(test_blocks_that_belong_into_one_group),
        tide_unit_test(test_a_discard_at_the_end_of_the_address_space),
        tide_unit_test(test_sums_never_pass_the_largest_number),
        tide_unit_test(test_a_series_is_a_device_and_a_kind),
        tide_unit_test(test_blocks_of_a_snapshot_are_put_in),
        tide_unit_test(test_without_memory_nothing_changes),
        tide_unit_test(test_every_problem_has_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
