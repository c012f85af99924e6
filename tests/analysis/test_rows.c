// SPDX-License-Identifier: MIT
//
// Rows against a naive loop over the items: filters, orders, groups, what a row is in a column.
#include "tests/analysis/subject_fixture.h"

#include "analysis/items_internal.h"
#include "analysis/items_order.h"
#include "analysis/rows.h"

enum { N_STEPS = 60, N_ITEMS = 700 };

static tide_rows make_rows(tide_subject *s, const tide_rows_options *opt) {
    tide_rows r;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_rows_make(s, opt, NULL, &r, &err), &err);
    return r;
}

static tide_filter *parse(const char *text) {
    tide_filter *f = NULL;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_filter_parse(text, TIDE_AXIS_STEPS, &f, &err), &err);
    return f;
}

/// Every item is in one row or hidden, and bytes add up.
static void check_whole(const tide_rows *r, const tide_items *items) {
    uint64_t bytes = r->hidden_bytes, all = 0;
    uint8_t *seen = tide_host_calloc(items->n + 1, 1);
    assert_int_equal(r->n_members + r->n_hidden, items->n);
    for (size_t k = 0; k < r->n_members; k++) {
        assert_int_equal(seen[r->members[k]], 0);
        seen[r->members[k]] = 1;
        bytes += tide_items_shape(items, r->members[k])->size_bytes;
    }
    for (size_t i = 0; i < items->n; i++) all += tide_items_shape(items, i)->size_bytes;
    assert_int_equal(bytes, all);
    if (r->first == NULL) assert_int_equal(r->n, r->n_members);
    for (size_t row = 0; r->first != NULL && row < r->n; row++) {
        uint64_t sum = 0;
        int fill = (int)tide_items_shape(items, r->members[r->first[row]])->fill;
        assert_true(r->first[row] < r->first[row + 1]);
        for (uint32_t k = r->first[row]; k < r->first[row + 1]; k++) {
            sum += tide_items_shape(items, r->members[k])->size_bytes;
            if (k > r->first[row]) assert_true(r->members[k - 1] < r->members[k]); // by begin
            if ((int)tide_items_shape(items, r->members[k])->fill != fill) fill = TIDE_N_ITEM_FILLS;
            assert_int_equal(tide_rows_find(r, r->members[k]), row);
        }
        assert_int_equal(sum, r->bytes[row]);
        assert_int_equal(fill, r->fill[row]);
        assert_true(r->keys[row][0] != '\0');
    }
    tide_host_free(seen);
}

static double sort_value(const tide_items *it, tide_row_sort sort, uint32_t i) {
    const double size = (double)tide_items_shape(it, i)->size_bytes,
                 life = (double)(tide_items_end(it, i) - tide_items_begin(it, i));
    switch (sort) {
    case TIDE_ROW_SORT_BEGIN:
        return (double)tide_items_begin(it, i);
    case TIDE_ROW_SORT_OFFSET:
        return it->place[i] == TIDE_NO_OFFSET ? 1e18 : (double)it->place[i];
    case TIDE_ROW_SORT_SIZE:
        return -size;
    case TIDE_ROW_SORT_LIFE:
        return -life;
    default:
        return -size * life;
    }
}

static void orders(void **state) {
    (void)state;
    tide_subject *s = subject_of_plan(random_plan(1, N_ITEMS, N_STEPS));
    const tide_items *it = load_items(s);
    for (int sort = 0; sort < TIDE_N_ROW_SORTS; sort++) {
        for (int reverse = 0; reverse < 2; reverse++) {
            const tide_rows_options opt = {
                .sort = (tide_row_sort)sort, .reverse = reverse != 0, .only_group_of = TIDE_NO_ITEM};
            tide_rows r = make_rows(s, &opt);
            check_whole(&r, it);
            assert_int_equal(r.n, it->n);
            for (size_t k = 1; k < r.n; k++) {
                const uint32_t a = r.members[k - 1], b = r.members[k];
                if (sort == TIDE_ROW_SORT_NAME) {
                    const int order = strcmp(tide_items_site(it, a)->name, tide_items_site(it, b)->name);
                    assert_true(reverse != 0 ? order >= 0 : order <= 0);
                    continue;
                }
                const double x = sort_value(it, (tide_row_sort)sort, a), y = sort_value(it, (tide_row_sort)sort, b);
                const bool last = sort == TIDE_ROW_SORT_OFFSET && (x == 1e18 || y == 1e18);
                assert_true(reverse != 0 && !last ? x >= y : x <= y);
                if (x == y) assert_true(a < b); // level: by begin
            }
            tide_rows_deinit(&r);
        }
    }
    const tide_rows_options opt = {.sort = TIDE_ROW_SORT_BEGIN, .persistent_last = true, .only_group_of = TIDE_NO_ITEM};
    tide_rows r = make_rows(s, &opt);
    for (size_t k = 1; k < r.n; k++)
        assert_true(tide_items_shape(it, r.members[k - 1])->persistent <=
                    tide_items_shape(it, r.members[k])->persistent);
    assert_true(tide_items_shape(it, r.members[r.n - 1])->persistent);
    tide_rows_deinit(&r);
    tide_subject_destroy(s);
}

// ---- filters against a loop ----

static bool holds_word(const tide_items *it, uint32_t i) {
    return strstr(tide_items_site(it, i)->name, "1") != NULL || strstr(tide_items_site(it, i)->owner, "1") != NULL;
}
static bool holds_size(const tide_items *it, uint32_t i) { return tide_items_shape(it, i)->size_bytes >= 2048; }
static bool holds_life(const tide_items *it, uint32_t i) { return tide_items_end(it, i) - tide_items_begin(it, i) > 4; }
static bool holds_kind(const tide_items *it, uint32_t i) {
    return tide_items_shape(it, i)->kind == TIDE_KIND_WORKSPACE && tide_items_shape(it, i)->role == TIDE_ROLE_SCRATCH;
}
static bool holds_alive(const tide_items *it, uint32_t i) {
    return tide_items_begin(it, i) <= 17 && 17 < tide_items_end(it, i);
}
static bool holds_name(const tide_items *it, uint32_t i) {
    const char *name = tide_items_site(it, i)->name;
    return strlen(name) == 3 && name[0] == 't' && name[1] == '4';
}
static bool holds_alias(const tide_items *it, uint32_t i) {
    return tide_items_shape(it, i)->alias != TIDE_ALIAS_NONE && !tide_items_shape(it, i)->persistent;
}
static bool holds_begin(const tide_items *it, uint32_t i) {
    return tide_items_begin(it, i) >= 10 && tide_items_end(it, i) < 40 &&
           tide_items_shape(it, i)->fill == TIDE_ITEM_FILL_INTERMEDIATE;
}

static void filters(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool (*holds)(const tide_items *it, uint32_t i);
    } cases[] = {
        {"1", holds_word},
        {"size>=2KiB", holds_size},
        {"!size<2048", holds_size},
        {"life>4", holds_life},
        {"kind=workspace role=scratch", holds_kind},
        {"kind!=default,persistent,KVCache,HostPinned,HostPageable role=Scratch device=cpu", holds_kind},
        {"alive@17", holds_alive},
        {"name~^t4.$", holds_name},
        {"alias !persistent", holds_alias},
        {"begin>=10 end<40 fill=intermediate", holds_begin},
    };
    tide_subject *s = subject_of_plan(random_plan(2, N_ITEMS, N_STEPS));
    const tide_items *it = load_items(s);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        tide_filter *f = parse(cases[c].text);
        const tide_filter *const list[] = {f};
        for (int group = 0; group < TIDE_N_ROW_GROUPS; group++) {
            const tide_rows_options opt = {.group = (tide_row_group)group,
                                           .sort = (tide_row_sort)(group % TIDE_N_ROW_SORTS),
                                           .filters = list,
                                           .n_filters = 1,
                                           .only_group_of = TIDE_NO_ITEM};
            tide_rows r = make_rows(s, &opt);
            check_whole(&r, it);
            size_t want = 0;
            for (uint32_t i = 0; i < it->n; i++) want += cases[c].holds(it, i);
            assert_true(want > 0 && want < it->n);
            assert_int_equal(r.n_members, want);
            for (size_t k = 0; k < r.n_members; k++) assert_true(cases[c].holds(it, r.members[k]));
            tide_rows_deinit(&r);
        }
        tide_filter_destroy(f);
    }
    tide_subject_destroy(s);
}

static void special_filters(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_subject *s = subject_of_plan(random_plan(3, N_ITEMS, N_STEPS));
    const tide_items *it = load_items(s);
    tide_live_items l;
    assert_tide_ok(tide_subject_live(s, tide_subject_get_facts(s)->peak, &l, &err), &err);
    tide_filter *peak = parse("alive@peak"), *cursor = parse("alive@cursor"), *top = parse("top=9 kind=Workspace");
    assert_true(tide_filter_follows_cursor(cursor));
    assert_false(tide_filter_follows_cursor(peak));
    const tide_filter *list[] = {peak, NULL};
    tide_rows_options opt = {.filters = list, .n_filters = 1, .only_group_of = TIDE_NO_ITEM};
    tide_rows r = make_rows(s, &opt);
    assert_int_equal(r.n, l.n);
    tide_rows_deinit(&r);
    list[0] = cursor;
    opt.cursor = tide_subject_get_facts(s)->peak.t;
    r = make_rows(s, &opt);
    assert_int_equal(r.n, l.n);
    tide_rows_deinit(&r);
    tide_live_items_deinit(&l);
    // two filters: both must let an item pass; top comes last of all
    list[0] = top;
    list[1] = cursor;
    opt.n_filters = 2;
    opt.sort = TIDE_ROW_SORT_SIZE;
    r = make_rows(s, &opt);
    assert_int_equal(r.n, 9);
    const uint64_t smallest = tide_items_shape(it, r.members[8])->size_bytes;
    size_t larger = 0;
    for (uint32_t i = 0; i < it->n; i++)
        larger += tide_items_alive_at(it, i, opt.cursor) && tide_items_shape(it, i)->kind == TIDE_KIND_WORKSPACE &&
                  tide_items_shape(it, i)->size_bytes > smallest;
    assert_true(larger < 9);
    for (size_t k = 0; k < r.n; k++) assert_true(tide_items_alive_at(it, r.members[k], opt.cursor));
    tide_rows_deinit(&r);
    opt = (tide_rows_options){.only_group_of = 5};
    r = make_rows(s, &opt);
    assert_int_equal(r.n, 1); // in a plan each tensor is a site of its own
    assert_int_equal(r.members[0], 5);
    assert_int_equal(tide_rows_find(&r, 6), SIZE_MAX);
    tide_rows_deinit(&r);
    tide_filter_destroy(peak);
    tide_filter_destroy(cursor);
    tide_filter_destroy(top);
    tide_subject_destroy(s);
}

// ---- spans ----

static void check_spans(const tide_rows *r, const tide_items *it, size_t row, int64_t t0, int64_t t1, size_t n) {
    tide_row_span got[64];
    tide_rows_spans(r, it, row, t0, t1, n, got);
    const uint32_t from = r->first != NULL ? r->first[row] : (uint32_t)row;
    const uint32_t to = r->first != NULL ? r->first[row + 1] : (uint32_t)row + 1;
    for (size_t c = 0; c < n; c++) {
        const int64_t lo = t0 + (t1 - t0) * (int64_t)c / (int64_t)n;
        int64_t hi = t0 + (t1 - t0) * (int64_t)(c + 1) / (int64_t)n;
        if (hi <= lo) hi = lo + 1;
        size_t alive = 0;
        bool starts = false, ends = false, fill = false;
        for (uint32_t k = from; k < to; k++) {
            const uint32_t i = r->members[k];
            const int64_t end =
                tide_items_end(it, i) > tide_items_begin(it, i) ? tide_items_end(it, i) : tide_items_begin(it, i) + 1;
            if (tide_items_begin(it, i) >= hi || end <= lo) continue;
            alive++;
            starts = starts || tide_items_begin(it, i) >= lo;
            ends = ends || (end <= hi && !tide_items_is_open_ended(it, i));
            fill = fill || tide_items_shape(it, i)->fill == got[c].fill;
        }
        assert_int_equal(got[c].n, alive < 255 ? alive : 255);
        assert_int_equal(got[c].starts, starts);
        assert_int_equal(got[c].ends, ends);
        if (alive > 0) assert_true(fill);
    }
}

static void spans(void **state) {
    (void)state;
    tide_subject *s = subject_of_plan(random_plan(4, 3 * N_ITEMS, N_STEPS));
    const tide_items *it = load_items(s);
    tide_rng rng = {9};
    for (int group = 0; group < TIDE_N_ROW_GROUPS; group++) {
        const tide_rows_options opt = {.group = (tide_row_group)group, .only_group_of = TIDE_NO_ITEM};
        tide_rows r = make_rows(s, &opt);
        for (int k = 0; k < tide_test_rounds(100, 200); k++) {
            const int64_t t0 = (int64_t)tide_rng_below(&rng, N_STEPS);
            const int64_t t1 = t0 + 1 + (int64_t)tide_rng_below(&rng, (uint64_t)(N_STEPS - t0));
            check_spans(&r, it, (size_t)tide_rng_below(&rng, r.n), t0, t1, 1 + (size_t)tide_rng_below(&rng, 64));
        }
        tide_rows_deinit(&r);
    }
    tide_subject_destroy(s);
}

/// Blocks that live shorter than the clock can tell, and those that are never freed.
static void spans_of_a_trace(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    tide_rng rng = {3};
    static const char *const tags[] = {"a", "b", "c"};
    for (uint64_t i = 1; i <= 600; i++) {
        feed(&f, 1000 + i, TIDE_MEM_ALLOC, i, TIDE_KIND_DEFAULT, 64 * (1 + i % 50), tags[i % 3]);
        if (i % 7 == 0)
            feed(&f, 1000 + i, TIDE_MEM_FREE_COMPLETED, i, TIDE_KIND_DEFAULT, 64 * (1 + i % 50), tags[i % 3]);
        if (i > 20 && (i - 20) % 7 != 0 && (i - 20) % 5 != 0)
            feed(&f, 1000 + i, TIDE_MEM_FREE_COMPLETED, i - 20, TIDE_KIND_DEFAULT, 64 * (1 + (i - 20) % 50),
                 tags[(i - 20) % 3]);
    }
    feeder_close(&f);
    tide_subject *s = subject_of_trace(d.file, 0);
    const tide_items *it = load_items(s);
    assert_int_equal(it->n, 600);
    assert_int_equal(it->n_sites, 3);
    for (int group = 0; group < TIDE_N_ROW_GROUPS; group++) {
        const tide_rows_options opt = {.group = (tide_row_group)group, .only_group_of = TIDE_NO_ITEM};
        tide_rows r = make_rows(s, &opt);
        check_whole(&r, it);
        if (group == TIDE_ROW_GROUP_NAME) assert_int_equal(r.n, 3);
        for (int k = 0; k < tide_test_rounds(100, 200); k++) {
            const int64_t t0 = 1000 + (int64_t)tide_rng_below(&rng, 600);
            check_spans(&r, it, (size_t)tide_rng_below(&rng, r.n), t0,
                        t0 + 1 + (int64_t)tide_rng_below(&rng, (uint64_t)(1602 - t0)),
                        1 + (size_t)tide_rng_below(&rng, 64));
        }
        tide_rows_deinit(&r);
    }
    tide_error err = TIDE_ERROR_INIT;
    tide_filter *leaked = NULL;
    assert_tide_ok(tide_filter_parse("leaked begin>=100ns", TIDE_AXIS_NS, &leaked, &err), &err);
    const tide_filter *const list[] = {leaked};
    const tide_rows_options opt = {.filters = list, .n_filters = 1, .only_group_of = TIDE_NO_ITEM};
    tide_rows r = make_rows(s, &opt);
    size_t want = 0;
    for (uint32_t i = 0; i < it->n; i++)
        want += tide_items_is_open_ended(it, i) && tide_items_begin(it, i) >= tide_subject_get_facts(s)->begin + 100;
    assert_true(want > 0);
    assert_int_equal(r.n, want);
    tide_rows_deinit(&r);
    uint8_t *found = NULL;
    size_t n_found = 0;
    assert_tide_ok(tide_items_search(it, "^a$|^b$", &found, &n_found, &err), &err);
    assert_int_equal(n_found, 400); // of two sites
    tide_host_free(found);
    const tide_rows_options only = {.only_group_of = 0};
    r = make_rows(s, &only);
    assert_int_equal(r.n, 200);
    tide_rows_deinit(&r);
    tide_filter_destroy(leaked);
    // The largest: of those of one size the first.
    tide_filter *top = NULL;
    assert_tide_ok(tide_filter_parse("top=31", TIDE_AXIS_NS, &top, &err), &err);
    const tide_filter *const tops[] = {top};
    const tide_rows_options largest = {.filters = tops, .n_filters = 1, .only_group_of = TIDE_NO_ITEM};
    r = make_rows(s, &largest);
    assert_int_equal(r.n, 31); // 12 of each size: 7 of the third largest
    uint64_t least = UINT64_MAX;
    uint32_t last = 0;
    for (size_t k = 0; k < r.n; k++)
        if (tide_items_shape(it, r.members[k])->size_bytes < least)
            least = tide_items_shape(it, r.members[k])->size_bytes;
    for (size_t k = 0; k < r.n; k++)
        if (tide_items_shape(it, r.members[k])->size_bytes == least) last = r.members[k];
    for (uint32_t i = 0; i < it->n; i++) {
        const uint64_t size = tide_items_shape(it, i)->size_bytes;
        assert_int_equal(tide_rows_find(&r, i) != SIZE_MAX, size > least || (size == least && i <= last));
    }
    tide_rows_deinit(&r);
    tide_filter_destroy(top);
    tide_subject_destroy(s);
    tmp_dir_remove(&d);
}

/// `part`: ends that are sorted at once.
static void assert_near_enough(tide_subject *s, size_t part) {
    enum { N_COLUMNS = 50 };
    tide_error err = TIDE_ERROR_INIT;
    tide_rng rng = {8 + part};
    const tide_items *it = tide_subject_items(s);
    const tide_subject_facts *facts = tide_subject_get_facts(s);
    const tide_rows_options opt = {.group = TIDE_ROW_GROUP_KIND, .only_group_of = TIDE_NO_ITEM};
    tide_rows exact = make_rows(s, &opt), many = make_rows(s, &opt);
    assert_int_equal(exact.n, 1);
    tide_host_free(many.reach);
    many.reach = NULL;
    assert_tide_ok(tide__rows_make_ends(it, false, part, NULL, &many), &err);
    assert_null(many.reach);
    for (int k = 0; k < tide_test_rounds(200, 400); k++) {
        const uint64_t all = (uint64_t)(facts->end - facts->begin), len = all >> tide_rng_below(&rng, 12);
        const int64_t t0 = facts->begin + (int64_t)tide_rng_below(&rng, all - len + 1), t1 = t0 + (int64_t)len;
        tide_row_span want[N_COLUMNS], got[N_COLUMNS];
        tide_rows_spans(&exact, it, 0, t0, t1, N_COLUMNS, want);
        tide_rows_spans(&many, it, 0, t0, t1, N_COLUMNS, got);
        size_t n_alive = 0;
        for (uint32_t i = 0; i < it->n; i++) n_alive += tide_items_begin(it, i) < t1 && tide_items_end(it, i) > t0;
        for (size_t c = 0; c < N_COLUMNS; c++) {
            const bool is_exact = n_alive < 1000 || got[c].n < 16;
            assert_true(got[c].n >= want[c].n && got[c].n <= want[c].n + (is_exact ? 0 : 7));
            assert_int_equal(got[c].starts, want[c].starts);
            assert_int_equal(got[c].fill, want[c].fill);
            if (n_alive < 1000) assert_int_equal(got[c].ends, want[c].ends);
            if (got[c].ends) assert_true(want[c].ends);
        }
    }
    tide_rows_deinit(&exact);
    tide_rows_deinit(&many);
}

/// A progress that cancels at the `left`-th call.
typedef struct listener {
    double from, to;
    int left, n_calls;
    double last;
} listener;

static bool hear(void *ctx, double share, const char *what) {
    listener *l = ctx;
    assert_true(what[0] != '\0');
    assert_true(share >= l->last && share >= l->from && share <= l->to);
    l->last = share;
    l->n_calls++;
    return l->left-- != 0;
}

static tide_status group_with_progress(tide_subject *s, size_t part, listener *l) {
    const tide_progress progress = {hear, l};
    const tide_rows_options opt = {.group = TIDE_ROW_GROUP_KIND, .only_group_of = TIDE_NO_ITEM};
    tide_error err = TIDE_ERROR_INIT;
    tide_rows r = {0};
    tide_status st = part == 0 ? tide_rows_make(s, &opt, &progress, &r, &err) : TIDE_OK;
    if (part > 0) {
        r = make_rows(s, &opt);
        tide_host_free(r.reach);
        r.reach = NULL;
        st = tide__rows_make_ends(tide_subject_items(s), false, part, &progress, &r);
    }
    tide_rows_deinit(&r);
    return st;
}

/// Grouping (`part` 0), or the ends of what is grouped: reported now and then, and cancelled at each of those times.
static void assert_grouping_gives_up(tide_subject *s, size_t part, int n_least) {
    listener whole = {.to = 1, .left = -1};
    assert_int_equal(group_with_progress(s, part, &whole), TIDE_OK);
    assert_true(whole.n_calls >= n_least);
    for (int left = 0; left < whole.n_calls; left++) {
        listener l = {.to = 1, .left = left};
        assert_int_equal(group_with_progress(s, part, &l), TIDE_ERR_CANCELLED);
        assert_int_equal(l.n_calls, left + 1);
    }
}

/// Rows of many millions know every eighth end only: exact where few are alive, and near enough where many are.
static void spans_of_many(void **state) {
    (void)state;
    enum { N = 40000 };
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    tide_rng rng = {8};
    static const char *const tags[] = {"a", "b", "c"};
    static uint64_t live[64];
    for (uint64_t i = 1; i <= N; i++) { // up to 64 alive, a tag each third, pauses in which nothing lives
        uint64_t *slot = &live[tide_rng_below(&rng, 64)];
        const uint64_t t = 1000 + 3 * i + (i - 1) / 10000 * 50000;
        if (i % 10000 == 0) {
            for (int k = 0; k < 64; k++)
                if (live[k] != 0)
                    feed(&f, t, TIDE_MEM_FREE_COMPLETED, live[k], TIDE_KIND_DEFAULT, 64, tags[live[k] % 3]);
            memset(live, 0, sizeof live);
            continue;
        }
        if (*slot != 0) feed(&f, t, TIDE_MEM_FREE_COMPLETED, *slot, TIDE_KIND_DEFAULT, 64, tags[*slot % 3]);
        feed(&f, t + 1, TIDE_MEM_ALLOC, i, TIDE_KIND_DEFAULT, 64, tags[i % 3]);
        *slot = i;
    }
    feeder_close(&f);
    tide_subject *s = subject_of_trace(d.file, 0);
    load_items(s);
    assert_near_enough(s, TIDE__ROWS_PART);
    assert_near_enough(s, 3000);
    assert_grouping_gives_up(s, 0, 3);
    assert_grouping_gives_up(s, 3000, 10);
    tide_subject_destroy(s);
    tmp_dir_remove(&d);
}

/// What is used for millions agrees with a plain sort.
static uint64_t key_of_number(const void *ctx, uint32_t number) { return ((const uint64_t *)ctx)[number]; }

static void sorts_of_many(void **state) {
    (void)state;
    enum { N = 300000 };
    tide_error err = TIDE_ERROR_INIT;
    uint64_t *keys = tide_host_alloc(N * sizeof *keys);
    uint8_t *bits = tide_host_calloc(N / 8 + 1, 1);
    tide_rng rng = {77};
    for (int form = 0; form < 3; form++) {
        size_t n = 0;
        for (uint32_t i = 0; i < N; i++) { // far apart, crowded, nearly all the same
            keys[i] =
                form == 0 ? tide_rng_u64(&rng) : (form == 1 ? 1000 + tide_rng_below(&rng, 5000) : 7 + (i % 1000 == 0));
            const bool on = form == 1 || tide_rng_below(&rng, 3) > 0;
            bits[i / 8] = (uint8_t)((bits[i / 8] & ~(1u << (i % 8))) | (unsigned)on << (i % 8));
            n += on;
        }
        uint32_t *order = NULL;
        assert_tide_ok(tide__bucket_sort(form == 1 ? NULL : bits, N, n, key_of_number, keys, NULL, &order), &err);
        for (size_t k = 0; k < n; k++) {
            if (form != 1) assert_true((bits[order[k] / 8] >> (order[k] % 8) & 1) != 0);
            if (k == 0) continue;
            assert_true(keys[order[k - 1]] < keys[order[k]] ||
                        (keys[order[k - 1]] == keys[order[k]] && order[k - 1] < order[k]));
        }
        tide_host_free(order);
    }
    tide_host_free(keys);
    tide_host_free(bits);
}

static bool in_order(const void *ctx, uint32_t a, uint32_t b) { return key_of_number(ctx, a) <= key_of_number(ctx, b); }

static tide_status sort_with_progress(int form, const uint64_t *keys, uint32_t n, listener *l) {
    const tide_progress progress = {hear, l};
    tide__sorting reporter = {.progress = &progress, .what = "sorting", .from = 0.25, .to = 0.75};
    uint32_t *order = NULL;
    if (form == 0) {
        reporter.total = 4 * (size_t)n;
        const tide_status st = tide__bucket_sort(NULL, n, n, key_of_number, keys, &reporter, &order);
        assert_true((st == TIDE_OK) == (order != NULL));
        tide_host_free(order);
        return st;
    }
    reporter.total = n;
    order = tide_host_alloc(n * sizeof *order);
    for (uint32_t i = 0; i < n; i++) order[i] = form == 1 ? i : n - 1 - i;
    const tide_status st = tide__merge_sort(order, n, in_order, keys, &reporter);
    for (uint32_t i = 1; st == TIDE_OK && i < n; i++) assert_true(in_order(keys, order[i - 1], order[i]));
    tide_host_free(order);
    return st;
}

/// A sort of many reports now and then, and ends when it is cancelled.
static void sorts_of_many_give_up(void **state) {
    (void)state;
    enum { N = 1200000 };
    uint64_t *keys = tide_host_alloc(N * sizeof *keys);
    tide_rng rng = {78};
    for (uint32_t i = 0; i < N; i++) keys[i] = tide_rng_u64(&rng) >> 20;
    for (int form = 0; form < 3; form++) {
        listener whole = {.from = 0.25, .to = 0.75, .left = -1};
        assert_int_equal(sort_with_progress(form, keys, N, &whole), TIDE_OK);
        assert_true(whole.n_calls >= 10 && whole.n_calls <= 100);
        assert_true(whole.last > 0.7);
        for (int left = 0; left < whole.n_calls; left += tide_test_rounds(45, 3)) {
            listener l = {.from = 0.25, .to = 0.75, .left = left};
            assert_int_equal(sort_with_progress(form, keys, N, &l), TIDE_ERR_CANCELLED);
            assert_int_equal(l.n_calls, left + 1);
        }
    }
    tide_host_free(keys);
}

static void no_items_no_rows(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_subject *s = subject_of_plan(demo_plan_make());
    const tide_rows_options opt = {.only_group_of = TIDE_NO_ITEM};
    tide_rows r;
    assert_tide_status(tide_rows_make(s, &opt, NULL, &r, &err), TIDE_ERR_INVALID);
    tide_subject_destroy(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders),        cmocka_unit_test(filters),          cmocka_unit_test(special_filters),
        cmocka_unit_test(spans),         cmocka_unit_test(spans_of_a_trace), cmocka_unit_test(no_items_no_rows),
        cmocka_unit_test(spans_of_many), cmocka_unit_test(sorts_of_many),    cmocka_unit_test(sorts_of_many_give_up),
    };
    return cmocka_run_group_tests_name("rows", tests, NULL, NULL);
}
