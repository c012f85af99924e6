// SPDX-License-Identifier: MIT
//
// Terminal view and reports know nothing of each other, but say the same of one timeline: which items persist, how bars
// are told apart, how high plan and bound stand and what they are made of, how times read.
#include "tests/tide_test.h"

#include "reports/facts.h"
#include "tests/reports/sample_reports.h"
#include "tests/tui/timeline_sample.h"
#include "tui/levels.h"
#include "tui/model.h"

static const tide_role roles[] = {
#define XX(name, value, text) TIDE_ROLE_##name,
    TIDE_ROLE_MAP(XX)
#undef XX
};

static void items_are_seen_alike(void **state) {
    (void)state;
    assert_int_equal(TIDE_TUI_N_FILLS, TIDE_REPORT_N_FILLS);
    for (int f = 0; f < TIDE_TUI_N_FILLS; f++)
        assert_string_equal(tide_tui_fill_text((tide_tui_fill)f), tide_report_fill_text((tide_report_fill)f));
    for (int kind = 0; kind < TIDE_N_KINDS; kind++) {
        for (size_t r = 0; r < sizeof roles / sizeof roles[0]; r++) {
            for (int persistent = 0; persistent < 2; persistent++) {
                const tide_timeline_item item = {
                    .kind = (tide_memory_kind)kind, .role = roles[r], .persistent = persistent, .end = 2};
                assert_int_equal(tide_tui_persists(&item), tide_report_persists(&item));
                assert_int_equal(tide_tui_fill_of(&item), tide_report_fill_of(&item));
                for (int64_t t = -1; t < 4; t++)
                    assert_int_equal(tide_tui_alive_at(&item, t), tide_report_alive_at(&item, t));
            }
        }
    }
}

static void check_levels(const tide_timeline *tl) {
    const tide_tui_levels a = tide_tui_levels_of(tl);
    const tide_report_levels b = tide_report_levels_of(tl);
    assert_int_equal(a.known, b.known);
    assert_int_equal(a.below, b.below);
    assert_int_equal(a.plan, b.plan);
    assert_int_equal(a.bound, b.bound);
    assert_string_equal(a.words, b.words);
}

static void levels_are_alike(void **state) {
    (void)state;
    tide_timeline *samples[] = {sample_small(),     sample_weights(), sample_empty(),
                                sample_many(50, 1), sample_one(),     sample_hostile_names()};
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        check_levels(samples[i]);
        sample_destroy(samples[i]);
    }
}

/// In a run the kinds say what lies below, in every combination.
static void levels_of_a_run(void **state) {
    (void)state;
    tide_timeline *tl = sample_small();
    tl->axis = TIDE_AXIS_NS;
    tide_host_free(tl->kinds);
    tl->kinds = tide_host_calloc(TIDE_N_KINDS, sizeof *tl->kinds);
    assert_non_null(tl->kinds);
    for (unsigned mask = 0; mask < 1u << TIDE_N_KINDS; mask++) {
        tl->n_kinds = 0;
        uint64_t below = 0;
        for (int kind = 0; kind < TIDE_N_KINDS; kind++) {
            if ((mask & 1u << kind) == 0) continue;
            const uint64_t bytes = UINT64_C(1000) << kind;
            tl->kinds[tl->n_kinds++] = (tide_trace_kind){.kind = (tide_memory_kind)kind, .predicted_bytes = bytes};
            if (kind != TIDE_KIND_WORKSPACE) below += bytes;
        }
        check_levels(tl);
        const tide_tui_levels l = tide_tui_levels_of(tl);
        assert_int_equal(l.below, below);
        assert_int_equal(l.plan, below + tl->plan_bytes);
        assert_int_equal(l.words[0] != '\0', below > 0);
        assert_int_equal(strstr(l.words, "weights") != NULL, (mask & 1u << TIDE_KIND_PERSISTENT) != 0);
        assert_int_equal(strstr(l.words, "KV cache") != NULL, (mask & 1u << TIDE_KIND_KV_CACHE) != 0);
    }
    tl->kinds[0].predicted_bytes = TIDE_UNKNOWN_BYTES;
    check_levels(tl);
    assert_false(tide_tui_levels_of(tl).known);
    sample_destroy(tl);
}

static void times_read_alike(void **state) {
    (void)state;
    tide_timeline *samples[] = {sample_small(), sample_many(5, 1)};
    for (size_t i = 0; i < 2; i++) {
        for (int64_t t = samples[i]->begin; t <= samples[i]->end; t += (samples[i]->end - samples[i]->begin) / 8) {
            char a[32], b[32];
            tide_tui_format_time(samples[i], t, a, sizeof a);
            tide_report_format_time(samples[i], t, b, sizeof b);
            assert_string_equal(a, b); // these are whole steps and milliseconds: no Greek letter
            tide_tui_format_span(samples[i], samples[i]->begin, t, a, sizeof a);
            tide_report_format_span(samples[i], samples[i]->begin, t, b, sizeof b);
            assert_string_equal(a, b);
        }
        sample_destroy(samples[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(items_are_seen_alike),
        tide_unit_test(levels_are_alike),
        tide_unit_test(levels_of_a_run),
        tide_unit_test(times_read_alike),
    };
    return cmocka_run_group_tests_name("views_agree", tests, NULL, NULL);
}
