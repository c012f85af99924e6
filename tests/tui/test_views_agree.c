// SPDX-License-Identifier: MIT
//
// Terminal view and reports know nothing of each other, but times read the same in both. (What else they share is in
// profiler/timeline_facts.)
#include "tests/tide_test.h"

#include "reports/facts.h"
#include "tests/reports/sample_reports.h"
#include "tests/tui/timeline_sample.h"
#include "tui/model.h"

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
        tide_unit_test(times_read_alike),
    };
    return cmocka_run_group_tests_name("views_agree", tests, NULL, NULL);
}
