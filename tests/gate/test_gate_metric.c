// SPDX-License-Identifier: MIT
//
// Figures: names there and back, what stands in the table, how values and changes are printed.
#include "../tide_test.h"
#include "gate/metric.h"

static void test_each_metric_is_found_by_its_name(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    for (size_t i = 0; i < TIDE_GATE_N_METRICS; i++) {
        const tide_gate_metric_def *def = tide_gate_metric_get((tide_gate_metric)i);
        for (int kind = -1; kind < (def->per_kind ? TIDE_N_KINDS : 0); kind++) {
            char text[96];
            tide_gate_metric m;
            int got;
            tide_gate_metric_text((tide_gate_metric)i, kind, text, sizeof text);
            assert_tide_ok(tide_gate_metric_parse(text, &m, &got, &err), &err);
            assert_int_equal(m, i);
            assert_int_equal(got, kind);
        }
        assert_true(strlen(def->what) > 0);
    }
    assert_null(tide_gate_metric_get(TIDE_GATE_N_METRICS));
    char text[96];
    assert_string_equal(tide_gate_metric_text(TIDE_GATE_KIND_PEAK, TIDE_KIND_WORKSPACE, text, sizeof text),
                        "kind_peak_bytes.Workspace");
}

static void test_times_are_never_gated(void **state) {
    (void)state;
    for (size_t i = 0; i < TIDE_GATE_N_METRICS; i++) {
        const tide_gate_metric_def *def = tide_gate_metric_get((tide_gate_metric)i);
        if (def->unit == TIDE_GATE_NS) assert_int_equal(def->level, TIDE_GATE_REPORT);
    }
    assert_int_equal(tide_gate_metric_get(TIDE_GATE_PLANNED)->level, TIDE_GATE_FAIL);
    assert_int_equal(tide_gate_metric_get(TIDE_GATE_SAVING)->better, TIDE_GATE_MORE);
    assert_string_equal(tide_gate_level_name(TIDE_GATE_REPORT), "report");
    assert_string_equal(tide_gate_level_name(TIDE_GATE_WARN), "warn");
    assert_string_equal(tide_gate_level_name(TIDE_GATE_FAIL), "fail");
}

static void assert_unknown(const char *text, const char *msg, const char *hint) {
    tide_error err = TIDE_ERROR_INIT;
    tide_gate_metric m;
    int kind;
    assert_tide_status(tide_gate_metric_parse(text, &m, &kind, &err), TIDE_ERR_NOT_FOUND);
    assert_text_has(err.msg, msg);
    assert_text_has(err.hint, hint);
    assert_tide_status(tide_gate_metric_parse(text, &m, &kind, NULL), TIDE_ERR_NOT_FOUND);
}

static void test_unknown_names_get_the_nearest_known(void **state) {
    (void)state;
    assert_unknown("planed_bytes", "'planed_bytes'", "did you mean 'planned_bytes'?");
    assert_unknown("kind_peek_bytes.Workspace", "'kind_peek_bytes.Workspace'", "did you mean 'kind_peak_bytes'?");
    assert_unknown("kind_peak_bytes.Workspce", "no memory kind 'Workspce'", "'kind_peak_bytes.Workspace'");
    assert_unknown("kind_peak_bytes.", "no memory kind ''", "kinds are Default");
    assert_unknown("planned_bytes.Workspace", "one figure", "leave '.Workspace' out");
    assert_unknown("", "no metric ''", "docs/gate.md");
    assert_unknown("planned_byte", "", "'planned_bytes'"); // a beginning is no name
    char long_name[10001];
    memset(long_name, 'p', 10000);
    long_name[10000] = '\0';
    assert_unknown(long_name, "'pppp", "metrics are");
}

static void assert_value(tide_gate_unit unit, uint64_t u, double real, const char *want) {
    char text[64];
    const tide_gate_value v = {.known = true, .u = u, .real = real};
    assert_string_equal(tide_gate_value_text(unit, v, text, sizeof text), want);
}

static void test_values_are_printed_with_their_unit(void **state) {
    (void)state;
    assert_value(TIDE_GATE_BYTES, 1572864, 0, "1.50 MiB (1572864)");
    assert_value(TIDE_GATE_BYTES, 512, 0, "512 B");
    assert_value(TIDE_GATE_BYTES, UINT64_MAX, 0, "16.00 EiB (18446744073709551615)");
    assert_value(TIDE_GATE_COUNT, 12, 0, "12");
    assert_value(TIDE_GATE_SHARE, 0, 0.25, "25.0 %");
    assert_value(TIDE_GATE_SHARE, 0, 0, "0.0 %");
    assert_value(TIDE_GATE_SHARE, 0, 0.0004, "0.04 %");
    assert_value(TIDE_GATE_SHARE, 0, 0.00996, "1.0 %"); // two digits would read as 1.00
    assert_value(TIDE_GATE_SHARE, 0, 0.00994, "0.99 %");
    assert_value(TIDE_GATE_SHARE, 0, 0.000051, "0.01 %");
    assert_value(TIDE_GATE_SHARE, 0, 0.000049, "0.0049 %");
    assert_value(TIDE_GATE_SHARE, 0, 0.000001, "0.0001 %");
    assert_value(TIDE_GATE_NS, 4500000, 0, "4.5 ms");
    char text[64];
    assert_string_equal(tide_gate_value_text(TIDE_GATE_BYTES, (tide_gate_value){0}, text, sizeof text), "-");
}

static void assert_change(tide_gate_unit unit, tide_gate_value a, tide_gate_value b, const char *want) {
    char text[64];
    assert_string_equal(tide_gate_change_text(unit, a, b, text, sizeof text), want);
}

static tide_gate_value of(uint64_t u) { return (tide_gate_value){.known = true, .u = u}; }
static tide_gate_value share(double real) { return (tide_gate_value){.known = true, .real = real}; }

static void test_changes_have_a_sign_and_a_share(void **state) {
    (void)state;
    assert_change(TIDE_GATE_BYTES, of(400 * 1024), of(412 * 1024), "+12.00 KiB (+3.0 %)");
    assert_change(TIDE_GATE_BYTES, of(412 * 1024), of(206 * 1024), "-206.00 KiB (-50.0 %)");
    assert_change(TIDE_GATE_BYTES, of(0), of(100), "+100 B");
    assert_change(TIDE_GATE_BYTES, of(UINT64_C(1) << 40), of((UINT64_C(1) << 40) + 1), "+1 B (+9.1e-11 %)");
    assert_change(TIDE_GATE_BYTES, of(UINT64_MAX), of(0), "-16.00 EiB (-100.0 %)");
    assert_change(TIDE_GATE_COUNT, of(4), of(5), "+1 (+25.0 %)");
    assert_change(TIDE_GATE_SHARE, share(0.25), share(0.20), "-5.0 points");
    assert_change(TIDE_GATE_SHARE, share(0.25), share(0.255), "+0.50 points");
    assert_change(TIDE_GATE_NS, of(1000), of(2000), "+1 us (+100.0 %)");
    assert_change(TIDE_GATE_BYTES, of(7), of(7), "no change");
    assert_change(TIDE_GATE_BYTES, of(7), (tide_gate_value){0}, "-");
    assert_change(TIDE_GATE_BYTES, (tide_gate_value){0}, of(0), "-");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_each_metric_is_found_by_its_name),
        tide_unit_test(test_times_are_never_gated),
        tide_unit_test(test_unknown_names_get_the_nearest_known),
        tide_unit_test(test_values_are_printed_with_their_unit),
        tide_unit_test(test_changes_have_a_sign_and_a_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
