// SPDX-License-Identifier: MIT
//
// Groups of live sets, and two sets side by side: keys, order, and sums that are the sets'.
#include "profiler/moments.h"

#include "core/base/text.h"
#include "tests/tide_test.h"

static tide_live block(uint64_t id, uint64_t bytes, tide_memory_kind kind, const char *name) {
    return (tide_live){.block_id = id,
                       .name = name,
                       .scope = "",
                       .scope_index = -1,
                       .device = "cpu",
                       .allocator = "",
                       .kind = kind,
                       .thread = 1 + (uint32_t)id % 2,
                       .run_id = (int64_t)id % 3,
                       .requested_bytes = bytes,
                       .reserved_bytes = bytes + 8,
                       .alloc_event = id,
                       .alloc_ns = 1000};
}

static tide_live_set set_of(tide_live *items, size_t n, uint64_t t_ns) {
    tide_live_set s = {.items = items, .n = n, .t_ns = t_ns};
    for (size_t i = 0; i < n; i++) {
        s.requested_bytes += items[i].requested_bytes;
        s.reserved_bytes += items[i].reserved_bytes;
    }
    return s;
}

static void assert_groups(const tide_live_set *s, tide_group_by by, const char *want) {
    tide_error err = TIDE_ERROR_INIT;
    tide_group *groups;
    size_t n;
    uint64_t n_blocks = 0, requested = 0, reserved = 0;
    tide_text got = {0};
    assert_tide_ok(tide_live_set_group(s, by, &groups, &n, &err), &err);
    for (size_t i = 0; i < n; i++) {
        tide_text_addf(&got, "%s: %d, %d\n", groups[i].key, (int)groups[i].n_blocks, (int)groups[i].requested_bytes);
        n_blocks += groups[i].n_blocks;
        requested += groups[i].requested_bytes;
        reserved += groups[i].reserved_bytes;
    }
    assert_string_equal(tide_text_str(&got), want);
    assert_int_equal(n_blocks, s->n);
    assert_int_equal(requested, s->requested_bytes);
    assert_int_equal(reserved, s->reserved_bytes);
    tide_text_deinit(&got);
    tide_groups_free(groups, n);
}

static void test_each_way(void **state) {
    (void)state;
    tide_live items[] = {
        block(1, 100, TIDE_KIND_DEFAULT, "a"),     block(2, 40, TIDE_KIND_WORKSPACE, "b"),
        block(3, 70, TIDE_KIND_WORKSPACE, "a"),    block(4, 0, TIDE_KIND_WORKSPACE, ""),
        block(5, 1, TIDE_KIND_PERSISTENT, "b"),    block(6, 1024, TIDE_KIND_DEFAULT, "c"),
        block(7, 1023, TIDE_KIND_DEFAULT, "long"),
    };
    items[0].scope = "conv";
    items[0].scope_index = 3;
    items[1].scope = "conv";
    items[1].scope_index = 4;
    items[2].scope = "load";
    items[3].device = "cuda:1";
    items[4].allocator = "arena";
    items[0].alloc_ns = 2001000 - 5;                   // 5 ns old
    items[1].alloc_ns = 2001000 - 1000;                // 1 us
    items[2].alloc_ns = 2001000 - 9999;                // just below 10 us
    items[3].alloc_ns = 2001000 - 10000;               // 10 us
    items[4].alloc_ns = 2001000 + 7;                   // of a window: it came later
    const tide_live_set s = set_of(items, 7, 2001000); // the others: 2 ms
    assert_groups(&s, TIDE_BY_KIND, "Default: 3, 2147\nWorkspace: 3, 110\nPersistent: 1, 1\n");
    assert_groups(&s, TIDE_BY_DEVICE, "cpu: 6, 2258\ncuda:1: 1, 0\n");
    assert_groups(&s, TIDE_BY_NAME, "c: 1, 1024\nlong: 1, 1023\na: 2, 170\nb: 2, 41\n(no name): 1, 0\n");
    assert_groups(&s, TIDE_BY_SCOPE, "(outside all scopes): 4, 2048\nconv #3: 1, 100\nload: 1, 70\nconv #4: 1, 40\n");
    assert_groups(&s, TIDE_BY_ALLOCATOR, "(no name): 6, 2257\narena: 1, 1\n");
    assert_groups(&s, TIDE_BY_SIZE,
                  "0 B: 1, 0\n[1 B, 2 B): 1, 1\n[32 B, 64 B): 1, 40\n[64 B, 128 B): 2, 170\n[512 B, 1 KiB): 1, 1023\n"
                  "[1 KiB, 2 KiB): 1, 1024\n");
    assert_groups(&s, TIDE_BY_AGE,
                  "< 1 us: 2, 101\n[1 us, 10 us): 2, 110\n[10 us, 100 us): 1, 0\n[1 ms, 10 ms): 2, 2047\n");
    assert_groups(&s, TIDE_BY_THREAD, "thread 2: 4, 1194\nthread 1: 3, 1064\n");
    assert_groups(&s, TIDE_BY_RUN, "run 1: 3, 1123\n(outside all runs): 2, 1094\nrun 2: 2, 41\n");
}

static void test_the_widest(void **state) {
    (void)state;
    tide_live items[] = {block(1, UINT64_C(1) << 63, TIDE_KIND_DEFAULT, "a"),
                         block(2, 3 << 20, TIDE_KIND_DEFAULT, "a")};
    items[0].alloc_ns = 0;
    items[1].alloc_ns = UINT64_MAX - UINT64_C(5000000000); // 5 s
    tide_error err = TIDE_ERROR_INIT;
    tide_group *groups;
    size_t n;
    const tide_live_set s = set_of(items, 2, UINT64_MAX);
    assert_tide_ok(tide_live_set_group(&s, TIDE_BY_SIZE, &groups, &n, &err), &err);
    assert_int_equal(n, 2);
    assert_string_equal(groups[0].key, "[2 MiB, 4 MiB)");
    assert_string_equal(groups[1].key, "[8 EiB, 16 EiB)");
    tide_groups_free(groups, n);
    assert_tide_ok(tide_live_set_group(&s, TIDE_BY_AGE, &groups, &n, &err), &err);
    assert_string_equal(groups[0].key, "[1 s, 10 s)");
    assert_string_equal(groups[1].key, "[10000000000 s, 100000000000 s)");
    tide_groups_free(groups, n);
    const tide_live_set none = {0};
    assert_tide_ok(tide_live_set_group(&none, TIDE_BY_NAME, &groups, &n, &err), &err);
    assert_int_equal(n, 0);
    tide_groups_free(groups, n);
}

static void test_two_sets(void **state) {
    (void)state;
    tide_live a[] = {block(1, 100, TIDE_KIND_DEFAULT, "same"), block(2, 500, TIDE_KIND_DEFAULT, "shrinks"),
                     block(3, 300, TIDE_KIND_DEFAULT, "shrinks"), block(4, 7, TIDE_KIND_DEFAULT, "gone")};
    tide_live b[] = {block(11, 100, TIDE_KIND_DEFAULT, "same"), block(12, 100, TIDE_KIND_DEFAULT, "shrinks"),
                     block(13, 6000, TIDE_KIND_DEFAULT, "new"), block(14, 3, TIDE_KIND_DEFAULT, "gone"),
                     block(15, 4, TIDE_KIND_DEFAULT, "gone")};
    const tide_live_set x = set_of(a, 4, 5000), y = set_of(b, 5, 9000);
    tide_error err = TIDE_ERROR_INIT;
    tide_group_change *changes;
    size_t n;
    tide_text got = {0};
    assert_tide_ok(tide_live_set_compare(&x, &y, TIDE_BY_NAME, &changes, &n, &err), &err);
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        tide_text_addf(&got, "%s: %d %d -> %d %d\n", changes[i].key, (int)changes[i].a_blocks, (int)changes[i].a_bytes,
                       (int)changes[i].b_blocks, (int)changes[i].b_bytes);
        sum += (int64_t)changes[i].b_bytes - (int64_t)changes[i].a_bytes;
    }
    assert_string_equal(tide_text_str(&got), "new: 0 0 -> 1 6000\nshrinks: 2 800 -> 1 100\ngone: 1 7 -> 2 7\n"
                                             "same: 1 100 -> 1 100\n");
    assert_int_equal(sum, (int64_t)y.requested_bytes - (int64_t)x.requested_bytes);
    tide_text_deinit(&got);
    tide_group_changes_free(changes, n);
}

static void test_out_of_memory_everywhere(void **state) {
    (void)state;
    tide_live a[40], b[40];
    for (size_t i = 0; i < 40; i++) a[i] = b[i] = block(i + 1, i * i * 100, TIDE_KIND_DEFAULT, "x");
    const tide_live_set x = set_of(a, 40, 5000), y = set_of(b, 40, 9000);
    bool done = false;
    int64_t after = 0;
    for (; !done && after < 1000; after++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_group *groups = NULL;
        tide_group_change *changes = NULL;
        size_t n_groups = 0, n_changes = 0;
        tide_host_fail_after(after);
        tide_status st = tide_live_set_group(&x, TIDE_BY_SIZE, &groups, &n_groups, &err);
        if (st == TIDE_OK) st = tide_live_set_compare(&x, &y, TIDE_BY_SIZE, &changes, &n_changes, &err);
        tide_host_fail_after(-1);
        done = st == TIDE_OK;
        if (!done) assert_tide_status(st, TIDE_ERR_NOMEM);
        tide_groups_free(groups, n_groups);
        tide_group_changes_free(changes, n_changes);
    }
    assert_true(done);
    assert_true(after > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_each_way),
        tide_unit_test(test_the_widest),
        tide_unit_test(test_two_sets),
        tide_unit_test(test_out_of_memory_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
