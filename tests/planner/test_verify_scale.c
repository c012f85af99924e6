// SPDX-License-Identifier: MIT
//
// planner/verify on a million tensors: sound plans pass, one wrong byte is found. Plans are laid out so that their
// totals are known without a planner. Times and memory are printed, not judged.
#include "tests/planner/verify_test.h"

enum { N = 1000000, LANES = 1000, LANE_BYTES = 4096, PER_LANE = N / LANES };

static tide_memory_plan *new_plan(size_t n, const char *name) {
    tide_memory_plan *p = tide_host_calloc(1, sizeof *p);
    assert_non_null(p);
    p->strategy = tide_host_strdup(name);
    p->form = TIDE_PLAN_OFFSETS;
    p->offsets = tide_host_calloc(n, sizeof *p->offsets);
    p->pools = tide_host_calloc(n, sizeof *p->pools);
    p->pool_list = tide_host_calloc(LANES, sizeof *p->pool_list);
    p->buffers = tide_host_calloc(1, sizeof *p->buffers);
    assert_true(p->offsets != NULL && p->pools != NULL && p->pool_list != NULL && p->buffers != NULL);
    p->buffers[0] = (tide_plan_buffer){.device = TIDE_CPU, .kind = TIDE_KIND_WORKSPACE};
    p->n_buffers = 1;
    return p;
}

static void put_at(tide_memory_plan *p, const tide_lifetime *item, uint64_t offset) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_lifetimes_add(&p->lifetimes, item, &err), &err);
    p->offsets[p->lifetimes.n - 1] = offset;
    p->pools[p->lifetimes.n - 1] = TIDE_NO_POOL;
}

/// Lanes of 4 KiB on top of each other; in each, one tensor after the other of any size and length, lanes out of step.
/// Totals by difference arrays over steps.
typedef struct counting {
    int64_t *own, *naive; // [n_steps + 1] bytes that come and go
    int64_t n_steps;
    uint64_t naive_bytes, end;
} counting;

static void count(int64_t *changes, int64_t begin, int64_t end, uint64_t bytes) {
    changes[begin] += (int64_t)bytes;
    changes[end] -= (int64_t)bytes;
}

static uint64_t peak_of(const int64_t *changes, int64_t n_steps) {
    int64_t sum = 0, most = 0;
    for (int64_t step = 0; step < n_steps; step++) {
        sum += changes[step];
        if (sum > most) most = sum;
    }
    return (uint64_t)most;
}

static void finish(tide_memory_plan *p, const counting *c) {
    tide_plan_buffer *b = &p->buffers[0];
    b->align_bytes = 64;
    b->bytes = c->end;
    b->naive_bytes = c->naive_bytes;
    b->naive_peak_bytes = peak_of(c->naive, c->n_steps);
    b->lower_bound_bytes = b->proved_bytes = peak_of(c->own, c->n_steps);
    settle_sums(p);
}

static void print_cost(const char *what, const tide_memory_plan *p) {
    tide_host_stats before, after;
    tide_error err = TIDE_ERROR_INIT;
    tide_host_reset_peak();
    tide_host_get_stats(&before);
    const uint64_t t0 = tide_now_ns();
    assert_tide_ok(tide_plan_verify(p, NULL, &err), &err);
    const uint64_t ns = tide_now_ns() - t0;
    tide_host_get_stats(&after);
    print_message("%s: %zu tensors, %lld steps, verified in %.0f ms with %.0f MiB\n", what, p->lifetimes.n,
                  (long long)p->lifetimes.n_steps, (double)ns / 1e6,
                  (double)(after.peak_bytes - before.live_bytes) / 1048576.0);
}

static counting counting_of(int64_t n_steps) {
    counting c = {.n_steps = n_steps};
    c.own = tide_host_calloc((size_t)n_steps + 1, sizeof *c.own);
    c.naive = tide_host_calloc((size_t)n_steps + 1, sizeof *c.naive);
    assert_true(c.own != NULL && c.naive != NULL);
    return c;
}

static void counting_deinit(counting *c) {
    tide_host_free(c->own);
    tide_host_free(c->naive);
}

/// `share` of 100 tensors get a view that outlives them by a step and a part that is there a step before.
static tide_memory_plan *lanes(uint64_t share, size_t *n_aliases) {
    tide_rng rng = {share};
    tide_memory_plan *p = new_plan(N, "lanes");
    counting c = counting_of(PER_LANE * 14 + LANES);
    *n_aliases = 0;
    for (uint64_t lane = 0; p->lifetimes.n + 3 <= N; lane++) {
        int64_t at = (int64_t)(lane % LANES);
        for (int k = 0; k < PER_LANE && p->lifetimes.n + 3 <= N; k++) {
            char name[32];
            snprintf(name, sizeof name, "t%zu", p->lifetimes.n);
            const int64_t begin = at + 1 + (int64_t)tide_rng_below(&rng, 3),
                          end = begin + 1 + (int64_t)tide_rng_below(&rng, 8);
            const uint64_t inside = 64 * tide_rng_below(&rng, 8), size = 193 + tide_rng_below(&rng, 3300);
            tide_lifetime item = an_item(name, size, 64, begin, end);
            const uint64_t bytes = def_own_bytes(&item), offset = lane * LANE_BYTES + inside;
            put_at(p, &item, offset);
            const uint32_t root = (uint32_t)p->lifetimes.n - 1;
            count(c.own, begin, end, bytes);
            count(c.naive, begin, end, bytes);
            c.naive_bytes += bytes;
            if (offset + bytes > c.end) c.end = offset + bytes;
            at = end;
            if (tide_rng_below(&rng, 100) >= share) continue;
            snprintf(name, sizeof name, "v%zu", p->lifetimes.n);
            const tide_lifetime view = an_item(name, size, 64, end - 1, end + 1);
            put_at(p, &view, offset);
            snprintf(name, sizeof name, "p%zu", p->lifetimes.n);
            const tide_lifetime part = an_item(name, 64, 64, begin - 1, begin + 1);
            put_at(p, &part, offset + 128);
            tide_error err = TIDE_ERROR_INIT;
            assert_tide_ok(tide_lifetimes_alias(&p->lifetimes, root + 1, TIDE_ALIAS_VIEW, root, 0, &err), &err);
            assert_tide_ok(tide_lifetimes_alias(&p->lifetimes, root + 2, TIDE_ALIAS_PART, root, 128, &err), &err);
            count(c.own, end, end + 1, bytes); // of a root that is rounded up, whole multiples of its alignment
            count(c.own, begin - 1, begin, 64);
            count(c.naive, end - 1, end + 1, bytes);
            count(c.naive, begin - 1, begin + 1, 64);
            c.naive_bytes += bytes + 64;
            *n_aliases += 2;
            at = end + 1;
        }
    }
    finish(p, &c);
    counting_deinit(&c);
    return p;
}

static void expect_overlap(tide_memory_plan *p, size_t i, uint64_t offset) {
    tide_verify_result result;
    const uint64_t was = p->offsets[i];
    p->offsets[i] = offset;
    assert_tide_status(tide_plan_verify(p, &result, NULL), TIDE_ERR_VERIFY);
    assert_int_equal(result.code, TIDE_VERIFY_OVERLAP);
    assert_true(result.a == i || result.b == i);
    p->offsets[i] = was;
}

static void a_million_tensors(void **state) {
    (void)state;
    size_t n_aliases;
    tide_memory_plan *p = lanes(0, &n_aliases);
    assert_true(p->lifetimes.n >= N - 2 && n_aliases == 0);
    print_cost("plain", p);
    // Somewhere in the middle one tensor is put on another that begins with it.
    const size_t i = p->lifetimes.n / 2;
    for (size_t j = 0; j < p->lifetimes.n; j++) {
        if (j == i || p->lifetimes.items[j].begin_step != p->lifetimes.items[i].begin_step) continue;
        expect_overlap(p, i, p->offsets[j]);
        break;
    }
    tide_memory_plan_destroy(p);
}

/// Two of three are aliases: a view that outlives its target, a part that is there before it.
static void a_million_tensors_of_which_most_are_aliases(void **state) {
    (void)state;
    size_t n_aliases;
    tide_memory_plan *p = lanes(100, &n_aliases);
    char what[48];
    snprintf(what, sizeof what, "%zu of them aliases", n_aliases);
    print_cost(what, p);
    assert_true(n_aliases > N / 2);
    p->buffers[0].lower_bound_bytes++;
    p->lower_bound_bytes++;
    assert_tide_status(tide_plan_verify(p, NULL, NULL), TIDE_ERR_VERIFY);
    tide_memory_plan_destroy(p);
}

/// One class of 200,000 members: long thin ones side by side, over each of them short ones over all bytes. As disjoint
/// rectangles that would be ten thousand million; the cover tree does not cut it up.
static void one_class_of_very_many(void **state) {
    (void)state;
    enum { M = 100000, THIN = 16 };
    tide_memory_plan *p = new_plan(2 * M + 1, "one class");
    counting c = counting_of(2 * M);
    const tide_lifetime whole = an_item("whole", (uint64_t)M * 2 * THIN, 64, 2 * M - 1, 2 * M);
    put_at(p, &whole, 0);
    tide_error err = TIDE_ERROR_INIT;
    for (int64_t k = 0; k < M; k++) {
        char name[32];
        snprintf(name, sizeof name, "thin%lld", (long long)k);
        const tide_lifetime thin = an_item(name, THIN, 64, 0, 2 * M - 1);
        put_at(p, &thin, (uint64_t)k * 2 * THIN);
        snprintf(name, sizeof name, "all%lld", (long long)k);
        const tide_lifetime all = an_item(name, whole.size_bytes, 64, 2 * k, 2 * k + 1);
        put_at(p, &all, 0);
        const uint32_t i = (uint32_t)p->lifetimes.n - 2;
        assert_tide_ok(tide_lifetimes_alias(&p->lifetimes, i, TIDE_ALIAS_PART, 0, p->offsets[i], &err), &err);
        assert_tide_ok(tide_lifetimes_alias(&p->lifetimes, i + 1, TIDE_ALIAS_VIEW, 0, 0, &err), &err);
        count(c.naive, 0, 2 * M - 1, 64);
        count(c.naive, 2 * k, 2 * k + 1, whole.size_bytes);
        c.naive_bytes += 64 + whole.size_bytes;
    }
    count(c.naive, 2 * M - 1, 2 * M, whole.size_bytes);
    c.naive_bytes += whole.size_bytes;
    count(c.own, 0, 1, whole.size_bytes);
    c.end = whole.size_bytes;
    finish(p, &c);
    print_cost("one class", p);
    counting_deinit(&c);
    tide_memory_plan_destroy(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(a_million_tensors),
        tide_unit_test(a_million_tensors_of_which_most_are_aliases),
        tide_unit_test(one_class_of_very_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
