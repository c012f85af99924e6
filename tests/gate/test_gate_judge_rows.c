// SPDX-License-Identifier: MIT
//
// One figure held against its rule: limits to the byte, budgets, gains, shares, and what is unknown.
#include "gate/judge.h"
#include "tests/gate/case_fixture.h"

static tide_gate_value v(uint64_t u) { return (tide_gate_value){.known = true, .u = u}; }
static tide_gate_value share(double real) { return (tide_gate_value){.known = true, .real = real}; }
static const tide_gate_value unknown = {0};

static const tide_gate_limit any = {.given = true};
static tide_gate_limit amount(uint64_t n) { return (tide_gate_limit){.given = true, .has_amount = true, .amount = n}; }
static tide_gate_limit percent(double p) { return (tide_gate_limit){.given = true, .has_percent = true, .percent = p}; }
static tide_gate_limit both(uint64_t n, double p) {
    return (tide_gate_limit){.given = true, .has_amount = true, .amount = n, .has_percent = true, .percent = p};
}

static tide_gate_row judged(const tide_gate_rule *rule, tide_gate_metric m, tide_gate_value a, tide_gate_value b) {
    tide_gate_row row = {0};
    assert_true(tide__judge_row(rule, m, -1, a.known, a, b, &row));
    return row;
}

static tide_gate_verdict verdict(const tide_gate_rule *rule, tide_gate_metric m, tide_gate_value a, tide_gate_value b) {
    return judged(rule, m, a, b).verdict;
}
static const tide_gate_verdict PASS = TIDE_GATE_PASS_VERDICT, WARN = TIDE_GATE_WARN_VERDICT,
                               FAIL = TIDE_GATE_FAIL_VERDICT;

static void any_growth(void **state) {
    (void)state;
    tide_gate_rule r = {.fail = any, .fail_origin = "the default"};
    assert_int_equal(verdict(&r, TIDE_GATE_PLANNED, v(100), v(100)), PASS);
    assert_int_equal(verdict(&r, TIDE_GATE_PLANNED, v(100), v(99)), PASS);
    assert_int_equal(verdict(&r, TIDE_GATE_PLANNED, v(UINT64_MAX - 1), v(UINT64_MAX)), FAIL);
    const tide_gate_row row = judged(&r, TIDE_GATE_PLANNED, v(100), v(101));
    assert_int_equal(row.verdict, FAIL);
    assert_string_equal(row.limit, "any growth (the default)");
    assert_false(row.over_budget || row.is_gain);
    assert_int_equal(row.baseline.u, 100);
    assert_int_equal(row.current.u, 101);
    assert_string_equal(judged(&r, TIDE_GATE_PLANNED, v(100), v(100)).limit, "");
}

/// 100 % of something tiny is no news, and neither is a drop in an ocean: both must be passed.
static void amount_and_percent(void **state) {
    (void)state;
    tide_gate_rule r = {.fail = both(65536, 2), .fail_origin = "tidemark.toml:12"};
    assert_int_equal(verdict(&r, TIDE_GATE_PLANNED, v(100), v(65636)), PASS);         // 65,536 more: not above it
    assert_int_equal(verdict(&r, TIDE_GATE_PLANNED, v(100), v(65637)), FAIL);         // and both are passed
    assert_int_equal(verdict(&r, TIDE_GATE_PLANNED, v(10000000), v(10200000)), PASS); // 2 %, not above
    assert_int_equal(verdict(&r, TIDE_GATE_PLANNED, v(10000000), v(10200001)), FAIL); //
    assert_int_equal(verdict(&r, TIDE_GATE_PLANNED, v(10000000), v(10100000)), PASS); // 100,000 more, but 1 %
    assert_int_equal(verdict(&r, TIDE_GATE_PLANNED, v(1000), v(3000)), PASS);         // 200 % more, but 2,000 B
    assert_int_equal(verdict(&r, TIDE_GATE_PLANNED, v(0), v(65537)), FAIL);           // from nothing: any percentage
    assert_string_equal(judged(&r, TIDE_GATE_PLANNED, v(1), v(1000000)).limit, "64.00 KiB and 2 % (tidemark.toml:12)");
    r.fail = amount(3);
    assert_int_equal(verdict(&r, TIDE_GATE_WARM, v(1), v(4)), PASS);
    assert_int_equal(verdict(&r, TIDE_GATE_WARM, v(1), v(5)), FAIL);
    assert_string_equal(judged(&r, TIDE_GATE_WARM, v(1), v(5)).limit, "3 (tidemark.toml:12)");
    r.fail = percent(0.5);
    assert_int_equal(verdict(&r, TIDE_GATE_PLANNED, v(1000), v(1005)), PASS);
    assert_int_equal(verdict(&r, TIDE_GATE_PLANNED, v(1000), v(1006)), FAIL);
    assert_string_equal(judged(&r, TIDE_GATE_PLANNED, v(1000), v(2000)).limit, "0.5 % (tidemark.toml:12)");
}

static void two_levels(void **state) {
    (void)state;
    tide_gate_rule r = {.warn = any, .fail = amount(10)};
    assert_int_equal(verdict(&r, TIDE_GATE_PLANNED, v(100), v(101)), WARN);
    assert_int_equal(verdict(&r, TIDE_GATE_PLANNED, v(100), v(110)), WARN);
    assert_int_equal(verdict(&r, TIDE_GATE_PLANNED, v(100), v(111)), FAIL);
    assert_string_equal(judged(&r, TIDE_GATE_PLANNED, v(100), v(110)).limit, "any growth");
    assert_string_equal(judged(&r, TIDE_GATE_PLANNED, v(100), v(111)).limit, "10 B");
}

/// A baseline that is better than it says lets as much come back unseen.
static void gains(void **state) {
    (void)state;
    tide_gate_rule r = {.fail = any, .gain_warn = amount(10), .gain_fail = percent(50)};
    assert_int_equal(verdict(&r, TIDE_GATE_PLANNED, v(100), v(90)), PASS);
    tide_gate_row row = judged(&r, TIDE_GATE_PLANNED, v(100), v(89));
    assert_int_equal(row.verdict, WARN);
    assert_true(row.is_gain);
    assert_false(row.over_budget);
    assert_string_equal(row.limit, "10 B");
    assert_int_equal(verdict(&r, TIDE_GATE_PLANNED, v(100), v(49)), FAIL);
    row = judged(&r, TIDE_GATE_PLANNED, v(UINT64_MAX), v(0)); // differences have more than 64 bits
    assert_int_equal(row.verdict, FAIL);
    assert_true(row.is_gain);
    assert_string_equal(row.limit, "50 %");
    assert_false(judged(&r, TIDE_GATE_PLANNED, v(100), v(101)).is_gain);
    r.gain_warn = any;
    assert_string_equal(judged(&r, TIDE_GATE_PLANNED, v(100), v(99)).limit, "any gain");
}

/// More of a saving is better: a loss is what is worse, and a budget is the least.
static void shares(void **state) {
    (void)state;
    tide_gate_rule r = {.fail = amount(20000), .gain_warn = any, .fail_origin = "here"}; // 2 points
    assert_int_equal(verdict(&r, TIDE_GATE_SAVING, share(0.5), share(0.48)), PASS);
    assert_int_equal(verdict(&r, TIDE_GATE_SAVING, share(0.5), share(0.479999)), FAIL);
    assert_string_equal(judged(&r, TIDE_GATE_SAVING, share(0.5), share(0.4)).limit, "2 points (here)");
    assert_int_equal(verdict(&r, TIDE_GATE_SAVING, share(0.5), share(0.5000001)), PASS); // less than is kept
    assert_true(judged(&r, TIDE_GATE_SAVING, share(0.5), share(0.500001)).is_gain);
    r = (tide_gate_rule){.fail = any};
    assert_string_equal(judged(&r, TIDE_GATE_SAVING, share(0.5), share(0.4)).limit, "any loss");
    assert_int_equal(verdict(&r, TIDE_GATE_GAP, share(0.1), share(0.2)), FAIL); // of a gap less is better
    assert_int_equal(verdict(&r, TIDE_GATE_GAP, share(-0.1), share(-0.2)), PASS);
    r = (tide_gate_rule){.fail = percent(10)};
    assert_int_equal(verdict(&r, TIDE_GATE_SAVING, share(0.5), share(0.45)), PASS);
    assert_int_equal(verdict(&r, TIDE_GATE_SAVING, share(0.5), share(0.449)), FAIL);
    r = (tide_gate_rule){.has_max = true, .max = share(0.25), .max_origin = "there"};
    assert_int_equal(verdict(&r, TIDE_GATE_SAVING, unknown, share(0.25)), PASS);
    const tide_gate_row row = judged(&r, TIDE_GATE_SAVING, unknown, share(0.249));
    assert_int_equal(row.verdict, FAIL);
    assert_true(row.over_budget);
    assert_text_has(row.limit, "at least 25");
    assert_text_has(row.limit, "(there)");
    r.max = share(0.1);
    assert_int_equal(verdict(&r, TIDE_GATE_GAP, unknown, share(0.11)), FAIL);
    assert_int_equal(verdict(&r, TIDE_GATE_GAP, unknown, share(0.1)), PASS);
}

static void budgets(void **state) {
    (void)state;
    tide_gate_rule r = {.has_max = true, .max = v(100), .has_warn_max = true, .warn_max = v(80), .max_origin = "m"};
    assert_int_equal(verdict(&r, TIDE_GATE_TOTAL, unknown, v(80)), PASS);
    assert_int_equal(verdict(&r, TIDE_GATE_TOTAL, unknown, v(81)), WARN);
    assert_int_equal(verdict(&r, TIDE_GATE_TOTAL, unknown, v(100)), WARN);
    const tide_gate_row row = judged(&r, TIDE_GATE_TOTAL, unknown, v(101));
    assert_int_equal(row.verdict, FAIL);
    assert_true(row.over_budget);
    assert_text_has(row.limit, "at most 100 B");
    assert_text_has(row.limit, "(m)");
    // What fails says why it fails: growth above a budget that only warns.
    r = (tide_gate_rule){.has_warn_max = true, .warn_max = v(80), .fail = any};
    assert_false(judged(&r, TIDE_GATE_TOTAL, v(89), v(90)).over_budget);
    assert_int_equal(verdict(&r, TIDE_GATE_TOTAL, v(89), v(90)), FAIL);
    assert_true(judged(&r, TIDE_GATE_TOTAL, v(90), v(90)).over_budget);
    assert_int_equal(verdict(&r, TIDE_GATE_TOTAL, v(90), v(90)), WARN);
    // An unmeasured figure may break the limit: that is no pass.
    const tide_gate_row lost = judged(&r, TIDE_GATE_LEAKED, unknown, unknown);
    assert_int_equal(lost.verdict, WARN);
    assert_text_has(lost.limit, "not measured, and may be at most");
    r = (tide_gate_rule){.has_max = true, .max = v(80)};
    assert_int_equal(verdict(&r, TIDE_GATE_LEAKED, unknown, unknown), FAIL);
}

/// Each limit says where it stands, whichever of them is exceeded.
static void where_limits_come_from(void **state) {
    (void)state;
    const tide_gate_rule r = {.warn = any,
                              .fail = percent(10),
                              .gain_warn = any,
                              .gain_fail = percent(10),
                              .warn_origin = "t:1",
                              .fail_origin = "t:2",
                              .gain_warn_origin = "t:3",
                              .gain_fail_origin = "t:4"};
    assert_string_equal(judged(&r, TIDE_GATE_PLANNED, v(100), v(101)).limit, "any growth (t:1)");
    assert_string_equal(judged(&r, TIDE_GATE_PLANNED, v(100), v(120)).limit, "10 % (t:2)");
    assert_string_equal(judged(&r, TIDE_GATE_PLANNED, v(100), v(99)).limit, "any gain (t:3)");
    assert_string_equal(judged(&r, TIDE_GATE_PLANNED, v(100), v(80)).limit, "10 % (t:4)");
    const tide_gate_rule warned = {.warn = any, .warn_origin = "t:1"};
    assert_string_equal(judged(&warned, TIDE_GATE_PEAK, v(5), unknown).limit,
                        "not measured, but in the baseline (t:1)");
    const tide_gate_rule budget = {.has_max = true,
                                   .max = v(100),
                                   .max_origin = "t:5",
                                   .has_warn_max = true,
                                   .warn_max = v(80),
                                   .warn_max_origin = "t:6"};
    assert_string_equal(judged(&budget, TIDE_GATE_TOTAL, unknown, v(90)).limit, "at most 80 B (t:6)");
    assert_string_equal(judged(&budget, TIDE_GATE_TOTAL, unknown, v(101)).limit, "at most 100 B (t:5)");
}

static void what_is_unknown(void **state) {
    (void)state;
    tide_gate_rule r = {.fail = any, .gain_fail = any, .fail_origin = "f"};
    tide_gate_row row;
    assert_false(tide__judge_row(&r, TIDE_GATE_PEAK, -1, true, unknown, unknown, &row));
    row = judged(&r, TIDE_GATE_PEAK, v(5), unknown); // a measurement that was skipped
    assert_int_equal(row.verdict, FAIL);
    assert_string_equal(row.limit, "not measured, but in the baseline (f)");
    assert_int_equal(verdict(&r, TIDE_GATE_PEAK, unknown, v(5)), PASS); // added
    r = (tide_gate_rule){.warn = any};
    assert_int_equal(verdict(&r, TIDE_GATE_PEAK, v(5), unknown), WARN);
    r = (tide_gate_rule){0}; // only reported
    assert_int_equal(verdict(&r, TIDE_GATE_ALLOCATIONS, v(5), unknown), PASS);
    assert_int_equal(verdict(&r, TIDE_GATE_ALLOCATIONS, v(5), v(6)), PASS);
}

static void times_never_fail(void **state) {
    (void)state;
    const tide_gate_rule r = {.warn = any, .fail = any, .gain_fail = any, .has_max = true, .max = v(1)};
    assert_int_equal(verdict(&r, TIDE_GATE_TIME, v(5), v(500)), PASS);
    assert_int_equal(verdict(&r, TIDE_GATE_TIME, v(500), v(5)), PASS);
    assert_int_equal(verdict(&r, TIDE_GATE_TIME, v(5), unknown), PASS);
    assert_false(tide__judge_differs(TIDE_GATE_TIME, v(5), v(500)));
    assert_true(tide__judge_differs(TIDE_GATE_PLANNED, v(5), v(500)));
    assert_false(tide__judge_differs(TIDE_GATE_PLANNED, v(5), unknown));
}

static void what_is_off(void **state) {
    (void)state;
    const tide_gate_rule r = {.fail = any, .has_max = true, .off = true};
    tide_gate_row row;
    assert_false(tide__judge_row(&r, TIDE_GATE_PLANNED, -1, true, v(1), v(2), &row));
    const tide_gate_rule on = {.fail = any};
    assert_false(tide__judge_row(&on, TIDE_GATE_KIND_PEAK, TIDE_KIND_KV_CACHE, true, v(0), v(0), &row)); // not used
    assert_true(tide__judge_row(&on, TIDE_GATE_KIND_PEAK, TIDE_KIND_KV_CACHE, true, v(0), v(1), &row));
    assert_int_equal(row.verdict, FAIL);
    assert_int_equal(row.kind, TIDE_KIND_KV_CACHE);
}

/// An origin that is too long is cut at its beginning: its end and the line stay, in whole characters.
static void a_long_origin(void **state) {
    (void)state;
    tide_gate_rule r = {.fail = any};
    for (size_t len = 100; len < sizeof r.fail_origin; len++) {
        memset(r.fail_origin, 0, sizeof r.fail_origin);
        for (size_t i = 0; i + 5 < len; i += 2) memcpy(r.fail_origin + i, "\xc3\xa9", 2);
        memcpy(r.fail_origin + strlen(r.fail_origin), ":321", 5);
        const tide_gate_row row = judged(&r, TIDE_GATE_PLANNED, v(1), v(2));
        assert_text_has(row.limit, ":321)");
        assert_true(strlen(row.limit) < sizeof row.limit);
        const char *at = strstr(row.limit, "(") + 1;
        assert_true(strncmp(at, "\xc3\xa9", 2) == 0 || strncmp(at, "\xe2\x80\xa6\xc3\xa9", 5) == 0);
    }
}

static void the_worse_of_two(void **state) {
    (void)state;
    static const tide_gate_verdict order[] = {TIDE_GATE_PASS_VERDICT, TIDE_GATE_WARN_VERDICT,
                                              TIDE_GATE_NOT_COMPARABLE_VERDICT, TIDE_GATE_FAIL_VERDICT};
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 4; k++) assert_int_equal(tide__judge_worse(order[i], order[k]), order[i > k ? i : k]);
    assert_string_equal(tide_gate_verdict_name(TIDE_GATE_NOT_COMPARABLE_VERDICT), "not_comparable");
    assert_string_equal(tide_gate_state_name(TIDE_GATE_CASE_OTHER_MODEL), "other_model");
    assert_string_equal(tide_gate_cause_name(TIDE_GATE_CAUSE_UNEXPLAINED), "unexplained");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(any_growth),
        tide_unit_test(amount_and_percent),
        tide_unit_test(two_levels),
        tide_unit_test(gains),
        tide_unit_test(shares),
        tide_unit_test(budgets),
        tide_unit_test(where_limits_come_from),
        tide_unit_test(what_is_unknown),
        tide_unit_test(times_never_fail),
        tide_unit_test(what_is_off),
        tide_unit_test(a_long_origin),
        tide_unit_test(the_worse_of_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
