// SPDX-License-Identifier: MIT
//
// KV cache: small cases by hand, and random work on many sequences against plain arrays. What is refused, and every
// failure in turn, is in test_kv_cache_faults.c.
#include "core/base/assert.h"
#include "kv_cache_test.h"

// ---- by hand ----

/// Ten tokens in pages of four: 4 + 4 + 2. Growth is by whole pages (LT-16, LT-40).
static void it_grows_by_whole_pages(void **state) {
    (void)state;
    tide_allocator *pages = make_pages_of(TIDE_CPU);
    tide_kv_cache *c = make_cache(pages, 0);
    const tide_kv_sequence s = add(c);
    assert_int_equal(s, 0);
    for (unsigned i = 0; i < 10; i++) {
        append(c, s, i, 1);
        assert_true(numbers(c).n_pages == i / 4 + 1);
        assert_true(stats_of(pages).requested_bytes == (i / 4 + 1) * PAGE);
    }
    const tide_kv_cache_stats n = numbers(c);
    assert_true(n.n_sequences == 1 && n.n_pages == 3 && n.n_shared_pages == 0 && n.n_copied == 0);
    assert_true(n.page_bytes == 64 && n.taken_bytes == 192 && n.used_bytes == 160);
    assert_true(n.waste_bytes == 32 && n.saved_bytes == 0); // two tokens at the end of the last page
    for (unsigned i = 0; i < 10; i++) assert_int_equal(*(const unsigned char *)tide_kv_cache_token(c, s, i), i);
    assert_null(tide_kv_cache_token(c, s, 10));
    assert_null(tide_kv_cache_token(c, 1, 0));
    uint64_t ids[3];
    assert_true(tide_kv_cache_table(c, s, NULL, 0) == 3);
    assert_true(tide_kv_cache_table(c, s, ids, 3) == 3);
    assert_true(ids[0] < ids[1] && ids[1] < ids[2]);
    assert_cache_sound(c);
    tide_kv_cache_destroy(c);
    assert_true(stats_of(pages).requested_bytes == 0);
    tide_allocator_unref(pages);
}

/// A fork costs no page; the first to append into the shared last page copies its tokens there, the other does not.
static void forks_share_until_one_appends(void **state) { // LT-32
    (void)state;
    tide_allocator *pages = make_pages_of(TIDE_CPU);
    tide_kv_cache *c = make_cache(pages, 0);
    const tide_kv_sequence a = add(c);
    append(c, a, 0, 10);
    const tide_kv_sequence b = fork_of(c, a);
    tide_kv_cache_stats n = numbers(c);
    assert_true(n.n_pages == 3 && n.n_shared_pages == 3 && n.taken_bytes == 192 && n.used_bytes == 160);
    assert_true(n.waste_bytes == 32 && n.saved_bytes == 192 && stats_of(pages).n_allocs == 3);

    append(c, b, 100, 1);
    n = numbers(c);
    assert_true(n.n_copied == 1 && n.n_pages == 4 && n.n_shared_pages == 2);
    assert_true(n.used_bytes == (8 + 2 + 3) * TOKEN && n.waste_bytes == (2 + 1) * TOKEN && n.saved_bytes == 128);
    append(c, a, 10, 1); // alone in its last page again
    n = numbers(c);
    assert_true(n.n_copied == 1 && n.n_pages == 4 && n.waste_bytes == 2 * TOKEN);
    assert_tokens(c, a, (const unsigned char[]){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 11);
    assert_tokens(c, b, (const unsigned char[]){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 100}, 11);
    assert_cache_sound(c);

    // Full pages are never copied.
    append(c, a, 11, 1);
    const tide_kv_sequence d = fork_of(c, a);
    append(c, d, 50, 1);
    append(c, a, 60, 1);
    assert_true(numbers(c).n_copied == 1);
    // A sharer that was cut into the middle of a shared page copies only what it has.
    truncate_to(c, d, 6);
    append(c, d, 70, 1);
    assert_true(numbers(c).n_copied == 2);
    assert_tokens(c, d, (const unsigned char[]){0, 1, 2, 3, 4, 5, 70}, 7);
    assert_tokens(c, a, (const unsigned char[]){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 60}, 13);
    free_sequence(c, a);
    assert_tokens(c, b, (const unsigned char[]){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 100}, 11);
    free_sequence(c, b);
    free_sequence(c, d);
    n = numbers(c);
    assert_true(n.n_sequences == 0 && n.n_pages == 0 && n.used_bytes == 0 && stats_of(pages).requested_bytes == 0);
    tide_kv_cache_destroy(c);
    tide_allocator_unref(pages);
}

/// A page that two tables share counts with the longer one; empty pages go back; freed numbers are used again.
static void truncate_and_free(void **state) {
    (void)state;
    tide_allocator *pages = make_pages_of(TIDE_CPU);
    tide_kv_cache *c = make_cache(pages, 0);
    const tide_kv_sequence a = add(c);
    append(c, a, 0, 10);
    const tide_kv_sequence b = fork_of(c, a);
    truncate_to(c, b, 5);
    tide_kv_cache_stats n = numbers(c);
    assert_true(n.n_pages == 3 && n.n_shared_pages == 2 && n.used_bytes == 160);
    truncate_to(c, a, 3);
    n = numbers(c);
    assert_true(n.n_pages == 2 && n.n_shared_pages == 1);
    assert_true(n.used_bytes == 5 * TOKEN && n.waste_bytes == 3 * TOKEN);
    truncate_to(c, b, 4); // to the end of a page: the next one goes
    assert_true(numbers(c).n_pages == 1);
    truncate_to(c, b, 4);
    truncate_to(c, b, 0);
    assert_true(numbers(c).n_pages == 1 && numbers(c).n_shared_pages == 0);
    free_sequence(c, a);
    assert_true(numbers(c).n_pages == 0 && numbers(c).n_sequences == 1);
    assert_int_equal(add(c), a);
    assert_int_equal(add(c), 2);
    free_sequence(c, b);
    assert_int_equal(add(c), b);
    assert_cache_sound(c);
    tide_kv_cache_destroy(c);
    tide_allocator_unref(pages);
}

enum { MANY = 10000 };

/// A server's day: ten thousand forks of one prompt, each with a token of its own, come and go in any order. Nothing
/// here costs more with more sequences (LT-16, LT-40): with a search for a free number it was O(sequences) each.
static void many_sequences(void **state) {
    (void)state;
    tide_assert_slowly(false); // each change would walk over thousands of sequences
    tide_allocator *pages = make_pages_of(TIDE_CPU);
    tide_kv_cache *c = make_cache(pages, 0);
    static tide_kv_sequence live[MANY];
    tide_rng rng = {7};
    const tide_kv_sequence prompt = add(c);
    append(c, prompt, 0, 2 * PER_PAGE);
    for (size_t i = 0; i < MANY; i++) append(c, live[i] = fork_of(c, prompt), (unsigned)i, 1);
    tide_kv_cache_stats n = numbers(c);
    assert_true(n.n_sequences == MANY + 1 && n.n_pages == MANY + 2 && n.n_shared_pages == 2 && n.n_copied == 0);
    assert_true(n.saved_bytes == (uint64_t)2 * MANY * PAGE && n.waste_bytes == (uint64_t)MANY * 3 * TOKEN);
    for (size_t i = 0; i < 10 * MANY; i++) {
        tide_kv_sequence *const s = &live[tide_rng_u64(&rng) % MANY];
        free_sequence(c, *s);
        append(c, *s = fork_of(c, prompt), (unsigned)i, 1);
        assert_true(*s <= MANY); // numbers are given again
    }
    assert_cache_sound(c);
    n = numbers(c);
    assert_true(n.n_sequences == MANY + 1 && n.n_pages == MANY + 2);
    free_sequence(c, prompt);
    for (size_t i = 0; i < MANY; i++) free_sequence(c, live[i]);
    assert_true(numbers(c).n_pages == 0 && numbers(c).saved_bytes == 0);
    assert_cache_sound(c);
    tide_kv_cache_destroy(c);
    tide_allocator_unref(pages);
    tide_assert_slowly(true);
}

/// Pages of one token: every page is full, so nothing is wasted, and no sharer ever has to copy.
static void pages_of_one_token(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *pages = make_pages_of(TIDE_CPU);
    const tide_kv_cache_options opt = {.token_bytes = TOKEN, .tokens_per_page = 1, .tag = "kv"};
    tide_kv_cache *c = NULL;
    assert_tide_ok(tide_kv_cache_create(pages, &opt, &c, &err), &err);
    const tide_kv_sequence a = add(c);
    append(c, a, 0, 5);
    const tide_kv_sequence b = fork_of(c, a);
    truncate_to(c, b, 3);
    append(c, b, 50, 2);
    append(c, a, 60, 1);
    const tide_kv_cache_stats n = numbers(c);
    assert_true(n.n_pages == 8 && n.n_shared_pages == 3 && n.n_copied == 0);
    assert_true(n.waste_bytes == 0 && n.used_bytes == 8 * TOKEN && n.saved_bytes == 3 * TOKEN);
    assert_int_equal(*(const unsigned char *)tide_kv_cache_token(c, a, 3), 3);
    assert_int_equal(*(const unsigned char *)tide_kv_cache_token(c, b, 3), 50);
    assert_cache_sound(c);
    tide_kv_cache_destroy(c);
    tide_allocator_unref(pages);
}

// ---- against plain arrays ----

enum { N_PLAIN = 12, MAX_TOKENS = 200 };

typedef struct plain {
    bool used;
    tide_kv_sequence s;
    unsigned char tokens[MAX_TOKENS];
    size_t n;
} plain;

/// What must be the least and the most, whatever was shared.
static void assert_plain(const tide_kv_cache *c, const plain *all, const tide_allocator *pages) {
    const tide_kv_cache_stats n = numbers(c);
    size_t n_used = 0, n_entries = 0;
    for (int i = 0; i < N_PLAIN; i++) {
        if (!all[i].used) continue;
        n_used++;
        n_entries += (all[i].n + PER_PAGE - 1) / PER_PAGE;
        assert_true(tide_kv_cache_table(c, all[i].s, NULL, 0) == (all[i].n + PER_PAGE - 1) / PER_PAGE);
    }
    assert_true(n.n_sequences == n_used);
    assert_true(n.taken_bytes == n.n_pages * PAGE && n.taken_bytes + n.saved_bytes == n_entries * PAGE);
    assert_true(n.used_bytes + n.waste_bytes == n.taken_bytes);
    assert_true(stats_of(pages).requested_bytes == n.taken_bytes);
}

static void random_step(tide_kv_cache *c, plain *all, tide_rng *rng) {
    plain *p = &all[tide_rng_below(rng, N_PLAIN)], *q = &all[tide_rng_below(rng, N_PLAIN)];
    if (!p->used) {
        p->used = true;
        p->n = 0;
        if (q->used) { // includes p itself when it was free: then it is new
            p->s = q == p ? add(c) : fork_of(c, q->s);
            if (q != p) memcpy(p->tokens, q->tokens, q->n);
            p->n = q == p ? 0 : q->n;
        } else {
            p->s = add(c);
        }
        return;
    }
    const uint64_t what = tide_rng_below(rng, 10);
    if (what < 6) {
        const size_t n = (size_t)tide_rng_below(rng, 11);
        if (p->n + n > MAX_TOKENS) return;
        const unsigned first = (unsigned)tide_rng_below(rng, 256);
        append(c, p->s, first, n);
        for (size_t i = 0; i < n; i++) p->tokens[p->n + i] = (unsigned char)(first + i);
        p->n += n;
    } else if (what < 9) {
        p->n = (size_t)tide_rng_below(rng, p->n + 1);
        truncate_to(c, p->s, p->n);
    } else {
        free_sequence(c, p->s);
        p->used = false;
    }
}

static void many_steps(tide_device device, tide_stream_id stream, uint64_t seed, int n_steps) {
    tide_allocator *pages = make_pages_of(device);
    tide_kv_cache *c = make_cache(pages, stream);
    static plain all[N_PLAIN];
    memset(all, 0, sizeof all);
    tide_rng rng = {seed};
    for (int step = 0; step < n_steps; step++) {
        random_step(c, all, &rng);
        assert_cache_sound(c);
        assert_plain(c, all, pages);
        assert_sound(pages);
        // Tokens of other sequences are unchanged.
        for (int i = 0; i < N_PLAIN && step % 4 == 0; i++) {
            if (all[i].used) assert_tokens(c, all[i].s, all[i].tokens, all[i].n);
        }
    }
    assert_true(numbers(c).n_copied > 20);
    tide_kv_cache_destroy(c);
    assert_true(stats_of(pages).requested_bytes == 0);
    tide_allocator_unref(pages);
}

static void random_work_against_plain_arrays(void **state) { // LT-16
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) many_steps(TIDE_CPU, 0, seed, 2500);
}

/// The same where the bytes are moved by a stream of the CPU, and by a device whose memory the host cannot touch.
static void random_work_through_a_device(void **state) { // PT-25
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_stream_id stream = 0;
    assert_tide_ok(tide_stream_create(TIDE_CPU, &stream, &err), &err);
    many_steps(TIDE_CPU, stream, 5, 800);
    tide_stream_destroy(TIDE_CPU, stream);
    fake_setup(2);
    const tide_device device = fake_at(1);
    many_steps(device, 0, 6, 2500);
    assert_true(fake.n_copies[TIDE_COPY_WITHIN_DEVICE] > 20 && fake.n_live_blocks == 0);
    fake_teardown();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(it_grows_by_whole_pages),
        tide_unit_test(forks_share_until_one_appends),
        tide_unit_test(truncate_and_free),
        tide_unit_test(many_sequences),
        tide_unit_test(pages_of_one_token),
        tide_unit_test(random_work_against_plain_arrays),
        tide_unit_test(random_work_through_a_device),
    };
    tide_assert_slowly(true);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
