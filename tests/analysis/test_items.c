// SPDX-License-Identifier: MIT
//
// Tables of items: order, numbers of any size, what may be alive in a window, searches, and no memory at any place.
#include "tests/analysis/subject_fixture.h"

#include <ctype.h>

#include "analysis/items_internal.h"
#include "analysis/rows.h"

static void check_order(const tide_items *it) {
    for (uint32_t i = 1; i < it->n; i++) {
        const uint64_t a = tide_items_shape(it, i - 1)->size_bytes, b = tide_items_shape(it, i)->size_bytes;
        assert_true(tide_items_begin(it, i - 1) <= tide_items_begin(it, i));
        if (tide_items_begin(it, i - 1) < tide_items_begin(it, i)) continue;
        assert_true(a >= b);
        if (a == b) assert_true(tide_items_id(it, i - 1) <= tide_items_id(it, i));
    }
}

static void tensors_of_a_plan(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_memory_plan *plan = random_plan(21, 300, 50);
    tide_items items;
    assert_tide_ok(tide_items_of_plan(plan, &items, &err), &err);
    assert_int_equal(items.n, plan->lifetimes.n);
    check_order(&items);
    for (uint32_t i = 0; i < plan->lifetimes.n; i++) {
        const tide_lifetime *l = &plan->lifetimes.items[i];
        const uint32_t k = tide_items_find(&items, i);
        assert_int_equal(tide_items_find_at(&items, i, l->begin_step, l->size_bytes), k);
        assert_int_equal(tide_items_id(&items, k), i);
        assert_string_equal(tide_items_site(&items, k)->name, l->name);
        assert_int_equal(tide_items_site(&items, k)->step, l->persistent ? -1 : l->begin_step);
        assert_int_equal(tide_items_shape(&items, k)->size_bytes, l->size_bytes);
        assert_int_equal(tide_items_shape(&items, k)->alias, l->alias);
        assert_string_equal(tide_items_shape(&items, k)->device, "cpu");
        assert_int_equal(tide_items_begin(&items, k), l->begin_step);
        assert_int_equal(tide_items_end(&items, k), l->end_step);
        assert_true(items.place[k] == plan->offsets[i]);
        assert_false(tide_items_is_open_ended(&items, k));
    }
    assert_int_equal(tide_items_find(&items, 300), TIDE_NO_ITEM);
    assert_int_equal(tide_items_find_at(&items, 0, 1000, 1), TIDE_NO_ITEM);
    for (size_t s = 1; s < items.n_shapes; s++) // each shape once
        assert_true(memcmp(&items.shapes[s - 1], &items.shapes[s], sizeof items.shapes[0]) != 0);
    tide_items_deinit(&items);
    tide_memory_plan_destroy(plan);
}

/// Numbers of blocks: close together, of many processes, all over the 64 bits.
static void numbers_of_any_size(void **state) {
    (void)state;
    enum { N = 5000 };
    static const uint64_t spread[] = {1, UINT64_C(1) << 20, UINT64_C(1) << 33, UINT64_C(1) << 48};
    for (size_t form = 0; form < 4; form++) {
        tide__items_builder b;
        tide_rng rng = {form + 1};
        assert_int_equal(tide__items_start(&b, N, 0, 1000), TIDE_OK);
        const char *none = tide__items_text(&b, "");
        uint32_t site, shape;
        assert_int_equal(tide__items_add_site(&b, "a", "", -1, &site), TIDE_OK);
        for (uint64_t i = 0; i < N; i++) {
            const tide_item_shape s = {.size_bytes = 64 * (1 + i % 3), .device = none, .allocator = none};
            assert_int_equal(tide__items_put_shape(&b, &s, &shape), TIDE_OK);
            const int64_t begin = (int64_t)tide_rng_below(&rng, 1000);
            const tide__item item = {.begin = begin,
                                     .end = begin + (int64_t)(i % 5),
                                     .site = site,
                                     .shape = shape,
                                     .id = i * spread[form] + 7,
                                     .place = i,
                                     .open_ended = i % 11 == 0};
            assert_int_equal(tide__items_add(&b, &item), TIDE_OK);
        }
        tide_items it;
        assert_int_equal(tide__items_finish(&b, NULL, &it), TIDE_OK);
        tide__items_abandon(&b);
        check_order(&it);
        assert_int_equal(it.n_shapes, 3);
        for (uint64_t i = 0; i < N; i++) {
            const uint32_t k = tide_items_find(&it, i * spread[form] + 7);
            assert_true(k < it.n);
            assert_int_equal(it.place[k], i); // every column moved along
            assert_int_equal(tide_items_is_open_ended(&it, k), i % 11 == 0);
            assert_int_equal(tide_items_end(&it, k) - tide_items_begin(&it, k), i % 5);
            assert_int_equal(tide_items_shape(&it, k)->size_bytes, 64 * (1 + i % 3));
            assert_int_equal(tide_items_find_at(&it, tide_items_id(&it, k), tide_items_begin(&it, k), 64 * (1 + i % 3)),
                             k);
        }
        assert_int_equal(tide_items_find(&it, 6), TIDE_NO_ITEM);
        for (int k = 0; k < 300; k++) {
            const int64_t t0 = (int64_t)tide_rng_below(&rng, 1000), t1 = t0 + 1 + (int64_t)tide_rng_below(&rng, 50);
            uint32_t from, to;
            tide_items_range(&it, t0, t1, &from, &to);
            for (uint32_t i = 0; i < it.n; i++) {
                const int64_t gone = tide_items_end(&it, i) > tide_items_begin(&it, i) ? tide_items_end(&it, i)
                                                                                       : tide_items_begin(&it, i) + 1;
                if (tide_items_begin(&it, i) < t1 && gone > t0) assert_true(from <= i && i < to);
            }
            if (t0 > 100) assert_true(from > 0); // and much of what is over is left out
        }
        tide_items_deinit(&it);
    }
}

static uint64_t of_chance(uint64_t i, unsigned what) {
    tide_rng rng = {i * 8 + what};
    return tide_rng_u64(&rng);
}

/// Times as far apart as they can be, some near each other; every width that a value can have is there.
static tide__item item_of_chance(uint64_t i) {
    const int64_t begin = (int64_t)(of_chance(i, 0) >> (2 + i / 64 % 62));
    const uint64_t life = of_chance(i, 1) >> (2 + i / 4096 % 62);
    return (tide__item){.begin = begin,
                        .end = begin + (int64_t)life,
                        .site = (uint32_t)(of_chance(i, 2) % (i % 2000 < 1000 ? 3 : 70000)),
                        .shape = (uint32_t)(of_chance(i, 3) % 300),
                        .id = i,
                        .place = of_chance(i, 4),
                        .open_ended = of_chance(i, 5) % 3 == 0};
}

/// More than a page of items in no order: each is what it was, at its place.
static void packed_and_ordered(void **state) {
    (void)state;
    enum { N = (1 << TIDE_ITEMS_PAGE_BITS) + 70001 };
    tide__items_builder b;
    uint32_t number;
    assert_int_equal(tide__items_start(&b, N + 100, 0, INT64_MAX), TIDE_OK);
    const char *none = tide__items_text(&b, "");
    for (int i = 0; i < 70000; i++) assert_int_equal(tide__items_add_site(&b, "a", "", i, &number), TIDE_OK);
    for (uint64_t i = 0; i < 300; i++) {
        const tide_item_shape s = {.size_bytes = 1 + i, .device = none, .allocator = none};
        assert_int_equal(tide__items_put_shape(&b, &s, &number), TIDE_OK);
    }
    for (uint64_t i = 0; i < N; i++) {
        const tide__item item = item_of_chance(i);
        if (tide__items_add(&b, &item) != TIDE_OK) fail_msg("item %d", (int)i);
    }
    tide_items it;
    assert_int_equal(tide__items_finish(&b, NULL, &it), TIDE_OK);
    tide__items_abandon(&b);
    assert_int_equal(it.n, N);
    check_order(&it);
    uint8_t *seen = tide_host_calloc(N, 1);
    unsigned widths = 0;
    for (uint32_t k = 0; k < it.n; k++) {
        const uint64_t i = tide_items_id(&it, k);
        assert_true(i < N && seen[i] == 0);
        const tide__item want = item_of_chance(i);
        assert_int_equal(tide_items_begin(&it, k), want.begin);
        assert_int_equal(tide_items_end(&it, k), want.end);
        assert_int_equal(tide_items_site(&it, k)->step, want.site);
        assert_int_equal(tide_items_shape(&it, k)->size_bytes, 1 + want.shape);
        assert_int_equal(tide_items_is_open_ended(&it, k), want.open_ended);
        assert_true(it.place[k] == want.place);
        widths |= 1u << it.chunks[k >> TIDE_ITEMS_CHUNK_BITS].n_bytes[TIDE_ITEMS_BEGIN];
        widths |= 1u << it.chunks[k >> TIDE_ITEMS_CHUNK_BITS].n_bytes[TIDE_ITEMS_END];
        seen[i] = 1;
    }
    for (unsigned n_bytes = 1; n_bytes <= 8; n_bytes++) assert_true((widths >> n_bytes & 1) != 0);
    tide_host_free(seen);
    tide_items_deinit(&it);
}

/// Places are kept of as many items as there are, however many there could have been; of too many none are.
static void places_of_many(void **state) {
    (void)state;
    for (size_t more = 0; more < 2; more++) {
        const size_t n = TIDE_ITEMS_KEEP_PLACES + more;
        tide__items_builder b;
        assert_int_equal(tide__items_start(&b, 3 * n, 0, 10), TIDE_OK);
        const char *none = tide__items_text(&b, "");
        const tide_item_shape s = {.size_bytes = 64, .device = none, .allocator = none};
        tide__item item = {.end = 5};
        assert_int_equal(tide__items_add_site(&b, "a", "", -1, &item.site), TIDE_OK);
        assert_int_equal(tide__items_put_shape(&b, &s, &item.shape), TIDE_OK);
        for (uint64_t i = 0; i < n; i++) {
            item.id = item.place = i;
            if (tide__items_add(&b, &item) != TIDE_OK) fail_msg("item %d", (int)i);
        }
        tide_items it;
        assert_int_equal(tide__items_finish(&b, NULL, &it), TIDE_OK);
        tide__items_abandon(&b);
        assert_int_equal(it.n, n);
        assert_int_equal(it.place != NULL, more == 0);
        if (more == 0) assert_int_equal(it.place[n - 1], n - 1);
        assert_int_equal(tide_items_find(&it, n - 1), n - 1); // without an index: one by one
        assert_int_equal(tide_items_find(&it, n), TIDE_NO_ITEM);
        tide_items_deinit(&it);
    }
}

static bool holds(const char *text, const char *part) {
    for (; *text != '\0'; text++) {
        size_t k = 0;
        while (part[k] != '\0' && tolower((unsigned char)text[k]) == part[k]) k++;
        if (part[k] == '\0') return true;
    }
    return false;
}

static void searches(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_memory_plan *plan = random_plan(22, 400, 50);
    tide_items items;
    uint8_t *bits = NULL;
    size_t n = 0, want = 0;
    assert_tide_ok(tide_items_of_plan(plan, &items, &err), &err);
    assert_tide_ok(tide_items_search(&items, "P_4", &bits, &n, &err), &err); // owners Op_4, Op_40, ...
    for (uint32_t i = 0; i < items.n; i++) {
        const tide_item_site *s = tide_items_site(&items, i);
        const bool is = holds(s->name, "p_4") || holds(s->owner, "p_4");
        assert_int_equal(is, (bits[tide_items_site_of(&items, i) / 8] >> (tide_items_site_of(&items, i) % 8) & 1) != 0);
        want += is;
    }
    assert_true(want > 0);
    assert_int_equal(n, want);
    tide_host_free(bits);
    // the same by other ways: a class, an optional letter, an alternative, a group, braces
    static const char *const same[] = {"[oO]p_4", "x?op_4", "^Op_4|^op_4.", "(Op)_4", "Op_{1}4", "O.*_4"};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        assert_tide_ok(tide_items_search(&items, same[i], &bits, &n, &err), &err);
        assert_int_equal(n, want);
        tide_host_free(bits);
    }
    assert_tide_ok(tide_items_search(&items, "t[0-9]+$", &bits, &n, &err), &err);
    assert_int_equal(n, items.n);
    tide_host_free(bits);
    assert_tide_ok(tide_items_search(&items, "t1\nOp", &bits, &n, &err), &err); // not across name and owner
    tide_host_free(bits);
    assert_tide_status(tide_items_search(&items, "a(", &bits, &n, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "a(");
    tide_items_deinit(&items);
    tide_memory_plan_destroy(plan);
}

/// A subject, its items and rows of every kind, where the n-th allocation fails: an error, and nothing is lost.
static tide_status all_of_it(const tide_memory_plan *plan, const char *path, tide_error *err) {
    tide_subject *s = NULL;
    if (path == NULL) {
        tide_memory_plan *copy = NULL;
        TIDE_TRY(tide_memory_plan_copy(plan, &copy, err));
        TIDE_TRY(tide_subject_of_plan(copy, "x.json", &s, err));
    } else {
        TIDE_TRY(tide_subject_of_trace(path, 2, &s, err));
    }
    tide_filter *f = NULL;
    tide_live_items live = {0};
    uint8_t *bits = NULL;
    uint64_t low[4], high[4];
    size_t n;
    tide_status st = tide_subject_load(s, NULL, err);
    if (st == TIDE_OK) st = tide_filter_parse("!zzz size>1 alive@peak top=9", tide_subject_get_facts(s)->axis, &f, err);
    const tide_filter *const list[] = {f};
    for (int g = 0; st == TIDE_OK && g < TIDE_N_ROW_GROUPS; g++) {
        tide_rows r;
        const tide_rows_options opt = {.group = (tide_row_group)g,
                                       .sort = TIDE_ROW_SORT_AREA,
                                       .filters = list,
                                       .n_filters = 1,
                                       .only_group_of = TIDE_NO_ITEM};
        st = tide_rows_make(s, &opt, NULL, &r, err);
        if (st == TIDE_OK) tide_rows_deinit(&r);
    }
    if (st == TIDE_OK) st = tide_subject_live(s, tide_subject_get_facts(s)->peak, &live, err);
    tide_live_items_deinit(&live);
    for (int of = 0; st == TIDE_OK && of <= TIDE_CURVE_RESERVED; of++) {
        const tide_curve_key key = {(tide_curve_of)of, -1, "cpu"};
        const tide_subject_facts *facts = tide_subject_get_facts(s);
        st = tide_subject_columns(s, key, facts->begin, facts->end, 4, low, high, err);
    }
    if (st == TIDE_OK) st = tide_items_search(tide_subject_items(s), "a.*b", &bits, &n, err);
    if (st == TIDE_OK) tide_host_free(bits);
    tide_filter_destroy(f);
    tide_subject_destroy(s);
    return st;
}

static void no_memory_anywhere(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    demo_record(d.file, 0);
    tide_memory_plan *plan = random_plan(23, 40, 12);
    for (int form = 0; form < 2; form++) {
        tide_host_stats before, after;
        for (int64_t n = 0;; n = tide_test_next_failure(n)) {
            tide_error err = TIDE_ERROR_INIT;
            tide_host_get_stats(&before);
            tide_host_fail_after(n);
            const tide_status st = all_of_it(plan, form == 0 ? NULL : d.file, &err);
            tide_host_fail_after(-1);
            tide_host_get_stats(&after);
            assert_int_equal(before.n_live, after.n_live);
            if (st == TIDE_OK) break;
            if (st != TIDE_ERR_NOMEM) fail_msg("allocation %d: %s: %s", (int)n, tide_status_name(st), err.msg);
            assert_true(n < 5000 && err.msg[0] != '\0');
        }
    }
    tide_memory_plan_destroy(plan);
    tmp_dir_remove(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_of_a_plan),  cmocka_unit_test(numbers_of_any_size),
        cmocka_unit_test(packed_and_ordered), cmocka_unit_test(places_of_many),
        cmocka_unit_test(searches),           cmocka_unit_test(no_memory_anywhere),
    };
    return cmocka_run_group_tests_name("items", tests, NULL, NULL);
}
