// SPDX-License-Identifier: MIT
//
// planner/cover_tree and planner/radix, on which the verifier rests, against arrays that tell the truth.
#include "core/base/assert.h"
#include "core/base/text.h"
#include "planner/cover_tree.h"
#include "planner/radix.h"
#include "tests/tide_test.h"

// ---- cover tree ----

enum { MAX_POSITIONS = 70, MAX_STRETCHES = 40, BYTES = 4 * MAX_POSITIONS };

typedef struct stretch {
    size_t from, to;
    uint32_t owner;
} stretch;

typedef struct oracle {
    uint64_t positions[MAX_POSITIONS];
    size_t n_positions;
    stretch stretches[MAX_STRETCHES];
    size_t n;
} oracle;

/// The owner of a byte, or TIDE_COVER_NONE. The oracle never gives one byte to two owners.
static uint32_t owner_at(const oracle *o, uint64_t byte) {
    for (size_t k = 0; k < o->n; k++) {
        if (o->positions[o->stretches[k].from] <= byte && byte < o->positions[o->stretches[k].to])
            return o->stretches[k].owner;
    }
    return TIDE_COVER_NONE;
}

static uint32_t owner_between(const oracle *o, uint64_t lo, uint64_t hi) {
    uint32_t owner = TIDE_COVER_NONE;
    for (uint64_t byte = lo; byte < hi; byte++) {
        const uint32_t at = owner_at(o, byte);
        if (at == TIDE_COVER_NONE || at == owner) continue;
        owner = owner == TIDE_COVER_NONE ? at : TIDE_COVER_SEVERAL;
    }
    return owner;
}

static void compare(const oracle *o, const tide_cover_tree *t, tide_rng *rng) {
    uint64_t covered = 0;
    for (uint64_t byte = 0; byte < BYTES; byte++) covered += owner_at(o, byte) != TIDE_COVER_NONE;
    assert_int_equal(tide__cover_tree_bytes(t), covered);
    for (int k = 0; k < 4; k++) {
        const size_t from = tide_rng_below(rng, o->n_positions - 1);
        const size_t to = from + 1 + tide_rng_below(rng, o->n_positions - 1 - from);
        assert_int_equal(tide__cover_tree_owner(t, from, to), owner_between(o, o->positions[from], o->positions[to]));
        const uint64_t lo = tide_rng_below(rng, BYTES), hi = lo + 1 + tide_rng_below(rng, BYTES - lo);
        assert_int_equal(tide__cover_tree_owner_of_bytes(t, lo, hi), owner_between(o, lo, hi));
    }
}

static void a_cover_tree_is_an_array_of_owners(void **state) {
    (void)state;
    size_t n_added = 0, n_refused = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        tide_rng rng = {seed};
        oracle o = {.n_positions = 2 + tide_rng_below(&rng, MAX_POSITIONS - 1)};
        for (size_t k = 0; k < o.n_positions; k++)
            o.positions[k] = k == 0 ? tide_rng_below(&rng, 4) : o.positions[k - 1] + 1 + tide_rng_below(&rng, 3);
        tide_cover_tree t;
        assert_tide_status(tide__cover_tree_init(&t, o.positions, o.n_positions), TIDE_OK);
        for (int step = 0; step < 200; step++) {
            if (o.n > 0 && (o.n == MAX_STRETCHES || tide_rng_below(&rng, 3) == 0)) {
                const size_t k = tide_rng_below(&rng, o.n);
                tide__cover_tree_remove(&t, o.stretches[k].from, o.stretches[k].to);
                o.stretches[k] = o.stretches[--o.n];
            } else {
                const size_t from = tide_rng_below(&rng, o.n_positions - 1);
                const size_t reach = o.n_positions - 1 - from;
                const stretch s = {from, from + 1 + tide_rng_below(&rng, seed % 2 == 0 || reach < 6 ? reach : 6),
                                   (uint32_t)tide_rng_below(&rng, 3)};
                const uint32_t owner = tide__cover_tree_owner(&t, s.from, s.to);
                if (owner == TIDE_COVER_NONE || owner == s.owner) {
                    tide__cover_tree_add(&t, s.from, s.to, s.owner);
                    o.stretches[o.n++] = s;
                    n_added++;
                } else {
                    n_refused++;
                }
            }
            compare(&o, &t, &rng);
        }
        while (o.n > 0) {
            o.n--;
            tide__cover_tree_remove(&t, o.stretches[o.n].from, o.stretches[o.n].to);
        }
        assert_int_equal(tide__cover_tree_bytes(&t), 0);
        assert_int_equal(tide__cover_tree_owner(&t, 0, o.n_positions - 1), TIDE_COVER_NONE);
        tide__cover_tree_deinit(&t);
    }
    assert_true(n_added > 5000 && n_refused > 5000);
}

// ---- radix ----

static void check_sorted(const tide_radix_key *keys, const uint64_t *of_id, size_t n) {
    for (size_t k = 0; k < n; k++) {
        assert_true(keys[k].key == of_id[keys[k].id]);
        if (k == 0) continue;
        assert_true(keys[k - 1].key <= keys[k].key);
        if (keys[k - 1].key == keys[k].key) assert_true(keys[k - 1].id < keys[k].id); // stable, hence each id once
    }
}

static void radix_sorts_and_keeps_ties(void **state) {
    (void)state;
    enum { MAX_N = 5000 };
    static tide_radix_key keys[MAX_N], room[MAX_N];
    static uint64_t of_id[MAX_N];
    static const size_t sizes[] = {0, 1, 2, 47, 48, 49, 50, 300, MAX_N};
    static const unsigned shifts[] = {0, 7, 20, 43, 60, 63};
    tide_rng rng = {5};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        for (size_t b = 0; b < sizeof shifts / sizeof shifts[0]; b++) {
            for (size_t i = 0; i < sizes[s]; i++) {
                of_id[i] = tide_rng_u64(&rng) >> shifts[b];
                keys[i] = (tide_radix_key){of_id[i], (uint32_t)i};
            }
            tide__radix_sort(keys, room, sizes[s]);
            check_sorted(keys, of_id, sizes[s]);
        }
    }
}

static void digits_that_agree_are_passed_over(void **state) {
    (void)state;
    enum { N = 1000 };
    static tide_radix_key keys[N], room[N];
    static uint64_t of_id[N];
    for (size_t i = 0; i < N; i++) {
        of_id[i] = UINT64_C(0xFF00000000000000) | (uint64_t)((i * 7) % 10) << 33;
        keys[i] = (tide_radix_key){of_id[i], (uint32_t)i};
    }
    tide__radix_sort(keys, room, N);
    check_sorted(keys, of_id, N);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(a_cover_tree_is_an_array_of_owners),
        tide_unit_test(radix_sorts_and_keeps_ties),
        tide_unit_test(digits_that_agree_are_passed_over),
    };
    tide_assert_slowly(true);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
