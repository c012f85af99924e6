// SPDX-License-Identifier: MIT
//
// KV cache: what is refused, and that no failure leaves half a change. White box where check() is shown to find damage.
#include "core/base/assert.h"
#include "core/memory/kv_cache_internal.h"
#include "kv_cache_test.h"

static void nonsense_is_refused(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *pages = make_pages_of(TIDE_CPU), *unpaged = NULL;
    tide_kv_cache *c = NULL;
    static const struct {
        size_t token_bytes, tokens_per_page;
        tide_status want;
    } rows[] = {{0, 4, TIDE_ERR_INVALID},
                {16, 0, TIDE_ERR_INVALID},
                {16, 17, TIDE_ERR_INVALID}, // 272 B, pages have 256
                {SIZE_MAX / 2, 3, TIDE_ERR_OVERFLOW}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const tide_kv_cache_options opt = {.token_bytes = rows[i].token_bytes,
                                           .tokens_per_page = rows[i].tokens_per_page};
        assert_tide_status(tide_kv_cache_create(pages, &opt, &c, &err), rows[i].want);
        assert_null(c);
    }
    const tide_kv_cache_options wide = {.token_bytes = 272, .tokens_per_page = 1};
    assert_tide_status(tide_kv_cache_create(pages, &wide, &c, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "pages of 272 B, allocator 'paged' gives at most 256 B");
    // Any allocator that gives blocks of that size will do.
    assert_tide_ok(tide_cpu_allocator_create(&unpaged, &err), &err);
    c = make_cache(unpaged, 0);
    tide_allocator_unref(unpaged);
    const tide_kv_sequence s = add(c);
    append(c, s, 0, 5);
    char out[8 * TOKEN];
    tide_kv_sequence t = 77;
    assert_tide_status(tide_kv_cache_append(c, 1, NULL, 1, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "no sequence 1");
    assert_tide_status(tide_kv_cache_fork(c, 1, &t, NULL), TIDE_ERR_INVALID);
    assert_tide_status(tide_kv_cache_truncate(c, 9, 0, NULL), TIDE_ERR_INVALID);
    assert_tide_status(tide_kv_cache_free(c, UINT32_MAX, NULL), TIDE_ERR_INVALID);
    assert_tide_status(tide_kv_cache_gather(c, 1, 0, 0, out, NULL), TIDE_ERR_INVALID);
    assert_tide_status(tide_kv_cache_truncate(c, s, 6, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "5 tokens");
    assert_tide_status(tide_kv_cache_gather(c, s, 3, 3, out, NULL), TIDE_ERR_INVALID);
    assert_tide_status(tide_kv_cache_gather(c, s, 6, SIZE_MAX, out, NULL), TIDE_ERR_INVALID);
    assert_tide_status(tide_kv_cache_append(c, s, NULL, SIZE_MAX, NULL), TIDE_ERR_OVERFLOW);
    assert_tide_status(tide_kv_cache_append(c, s, NULL, SIZE_MAX / TOKEN, NULL), TIDE_ERR_OVERFLOW);
    assert_int_equal(t, 77);
    assert_true(tide_kv_cache_n_tokens(c, s) == 5 && tide_kv_cache_n_tokens(c, 1) == 0);
    assert_true(tide_kv_cache_table(c, 1, NULL, 0) == 0);
    free_sequence(c, s);
    assert_tide_status(tide_kv_cache_free(c, s, NULL), TIDE_ERR_INVALID);
    assert_cache_sound(c);
    tide_kv_cache_destroy(c);
    tide_kv_cache_destroy(NULL);
    tide_allocator_unref(pages);
}

// ---- failures ----

/// A cache with a shared last page, so that an append of nine tokens takes a table, a copy and two pages more.
static tide_kv_cache *make_scene(tide_allocator *pages) {
    tide_kv_cache *c = make_cache(pages, 0);
    append(c, add(c), 0, 30);
    (void)fork_of(c, 0);
    return c;
}

/// Everything that can be seen of a cache with up to two sequences.
static void assert_scene(const tide_kv_cache *c, const uint64_t ids[8], const tide_kv_cache_stats *before) {
    static const unsigned char tokens[30] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14,
                                             15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29};
    for (tide_kv_sequence s = 0; s < 2; s++) {
        uint64_t now[8];
        assert_true(tide_kv_cache_table(c, s, now, 8) == 8);
        assert_memory_equal(now, ids, sizeof now);
        assert_tokens(c, s, tokens, 30);
    }
    const tide_kv_cache_stats after = numbers(c);
    assert_memory_equal(&after, before, sizeof after);
    assert_cache_sound(c);
}

/// Plant the n-th failure of host memory or of pages.
static void plant(tide_allocator *pages, bool in_pages, int n) {
    if (in_pages) {
        assert_tide_status(tide_fail_nth_arm(pages, n, NULL), TIDE_OK);
    } else {
        tide_host_fail_after(n);
    }
}

/// Fail the 1st, 2nd, 3rd … piece of host memory, and of pages, until the append succeeds: the sequence is as it was
/// each time (S28-4).
static void append_is_all_or_nothing(void **state) {
    (void)state;
    for (int in_pages = 0; in_pages < 2; in_pages++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_allocator *plain_pages = make_pages_of(TIDE_CPU), *pages = NULL;
        assert_tide_ok(tide_fail_nth_create(plain_pages, -1, &pages, &err), &err);
        tide_allocator_unref(plain_pages);
        tide_kv_cache *c = make_scene(pages);
        const tide_kv_cache_stats before = numbers(c);
        uint64_t ids[8];
        assert_true(tide_kv_cache_table(c, 0, ids, 8) == 8);
        unsigned char more[9 * TOKEN];
        memset(more, 0xEE, sizeof more);
        int n_failures = 0;
        tide_status st = TIDE_ERR_NOMEM;
        while (st != TIDE_OK) {
            plant(pages, in_pages != 0, n_failures);
            st = tide_kv_cache_append(c, 1, more, 9, &err);
            plant(pages, in_pages != 0, -1);
            if (st == TIDE_OK) break;
            assert_tide_status(st, TIDE_ERR_NOMEM);
            assert_scene(c, ids, &before);
            n_failures++;
        }
        // One copy and two pages more, each with two records of host memory. Room in the table and the slab stay once
        // they are there, so the last try takes nothing else.
        assert_int_equal(n_failures, in_pages != 0 ? 3 : 6);
        assert_true(tide_kv_cache_n_tokens(c, 1) == 39 && numbers(c).n_copied == 1);
        assert_cache_sound(c);
        tide_kv_cache_destroy(c);
        tide_allocator_unref(pages);
    }
}

static void host_memory_ends_elsewhere(void **state) {
    (void)state;
    tide_allocator *pages = make_pages_of(TIDE_CPU);
    const tide_kv_cache_options opt = {.token_bytes = TOKEN, .tokens_per_page = PER_PAGE, .tag = "kv"};
    tide_kv_cache *c = NULL;
    for (int n = 0; n < 2; n++) {
        tide_host_fail_after(n);
        assert_tide_status(tide_kv_cache_create(pages, &opt, &c, NULL), TIDE_ERR_NOMEM);
        assert_null(c);
    }
    tide_host_fail_after(-1);
    c = make_cache(pages, 0);
    tide_kv_sequence s = 99;
    tide_host_fail_after(0);
    assert_tide_status(tide_kv_cache_add(c, &s, NULL), TIDE_ERR_NOMEM);
    assert_int_equal(s, 99);
    append(c, add(c), 0, 30);
    const tide_kv_cache_stats before = numbers(c);
    tide_host_fail_after(0); // the table of the fork
    assert_tide_status(tide_kv_cache_fork(c, 0, &s, NULL), TIDE_ERR_NOMEM);
    tide_kv_cache_stats after = numbers(c);
    assert_memory_equal(&after, &before, sizeof after);
    assert_cache_sound(c);
    assert_int_equal(fork_of(c, 0), 1); // the number was not lost
    assert_true(numbers(c).n_shared_pages == 8);
    tide_host_fail_after(0); // freeing needs none
    truncate_to(c, 0, 1);
    free_sequence(c, 1);
    tide_kv_cache_destroy(c);
    tide_host_fail_after(-1);
    tide_allocator_unref(pages);
}

/// A device that does not copy: neither a copied page nor new tokens show.
static void copies_fail(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    fake_setup(2);
    const tide_device device = fake_at(1);
    tide_allocator *pages = make_pages_of(device);
    tide_kv_cache *c = make_scene(pages);
    const tide_kv_cache_stats before = numbers(c);
    uint64_t ids[8];
    char token[TOKEN] = {0};
    assert_true(tide_kv_cache_table(c, 0, ids, 8) == 8);
    fake_fail(FAKE_COPY, 0, -1);
    assert_tide_status(tide_kv_cache_append(c, 1, token, 1, &err), TIDE_ERR_BACKEND);
    assert_tide_status(tide_kv_cache_append(c, 1, NULL, 1, NULL), TIDE_ERR_BACKEND); // the copy of the page
    assert_tide_status(tide_kv_cache_gather(c, 1, 0, 1, token, NULL), TIDE_ERR_BACKEND);
    fake_fail(FAKE_COPY, 0, 0);
    assert_scene(c, ids, &before);
    tide_kv_cache_destroy(c);
    assert_int_equal(stats_of(pages).requested_bytes, 0);
    tide_allocator_unref(pages);
    fake_teardown();
}

/// check() finds each kind of damage and is content again when it is undone.
static void check_finds_damage(void **state) {
    (void)state;
    tide_allocator *pages = make_pages_of(TIDE_CPU);
    tide_kv_cache *c = make_scene(pages);
    tide__kv_page *const page = c->tables[0].pages[0];
    assert_cache_sound(c);
#define FINDS(damage, undo, words)                                                                                     \
    do {                                                                                                               \
        tide_error err = TIDE_ERROR_INIT;                                                                              \
        damage;                                                                                                        \
        assert_tide_status(tide_kv_cache_check(c, &err), TIDE_ERR_RUNTIME);                                            \
        assert_text_has(err.msg, words);                                                                               \
        undo;                                                                                                          \
        assert_cache_sound(c);                                                                                         \
    } while (0)
    FINDS(page->refs++, page->refs--, "is in 2 tables, its count says 3");
    FINDS(page->refs = 1, page->refs = 2, "its count says 1");
    FINDS(c->tables[1].n_tokens -= 4, c->tables[1].n_tokens += 4, "sequence 1 has 8 pages for 26 tokens, 7 are wanted");
    FINDS(c->tables[1].pages[0] = c->tables[1].pages[1], c->tables[1].pages[0] = page, "tables, its count says");
    FINDS(c->tables[1].used = false, c->tables[1].used = true, "sequence 1 is free and has 8 pages");
    FINDS(c->n_sequences++, c->n_sequences--, "2 sequences are there, 3 are counted");
    FINDS(c->n_pages--, c->n_pages++, "8 pages are there, 7 are counted");
    FINDS(c->first_free = 1, c->first_free = TIDE__KV_NO_NUMBER, "sequence 1 is free and in use");
    FINDS(tide_block_ref(page->block), tide_block_unref(page->block), "2 owners");
#undef FINDS
    tide_kv_cache_destroy(c);
    tide_allocator_unref(pages);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(nonsense_is_refused),        tide_unit_test(append_is_all_or_nothing),
        tide_unit_test(host_memory_ends_elsewhere), tide_unit_test(copies_fail),
        tide_unit_test(check_finds_damage),
    };
    tide_assert_slowly(true);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
