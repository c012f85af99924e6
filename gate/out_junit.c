// SPDX-License-Identifier: MIT
//
// A result as JUnit XML (docs/schemas/junit.xsd): a suite for each case, a test for each figure. See outputs.h. There
// are no times in it: the same result gives the same bytes.
//
// No foreign text comes into it unescaped, and there is no CDATA that "]]>" could end.
#include "gate/out_internal.h"

/// A failure that a suite counts: `failures` are figures over their limits, `errors` what could not be judged.
typedef enum outcome { PASSED, FAILED, ERROR, SKIPPED } outcome;

typedef struct counts {
    size_t tests, failures, errors, skipped;
} counts;

static void add_attribute(tide_text *out, const char *name, tide_text *plain) {
    tide_text_addf(out, " %s=\"", name);
    tide__gate_flush(out, plain, tide__gate_for_xml);
    tide_text_add(out, "\"");
}

static void add_foreign(tide_text *out, const char *name, const char *text) {
    tide_text plain = {0};
    tide__gate_clean(&plain, text, TIDE__GATE_NAME_CHARS);
    add_attribute(out, name, &plain);
}

/// A name as xs:token wants it (no blanks at its ends, none doubled), and never empty.
static void add_name(tide_text *out, const char *name, const char *text) {
    tide_text clean = {0}, token = {0};
    tide__gate_clean(&clean, text, TIDE__GATE_NAME_CHARS);
    bool blank = true;
    for (const char *p = tide_text_str(&clean); *p != '\0'; p++) {
        if (*p != ' ') {
            if (blank && token.len > 0) tide_text_add_n(&token, " ", 1);
            tide_text_add_n(&token, p, 1);
        }
        blank = *p == ' ';
    }
    if (token.len == 0) tide_text_add(&token, "-");
    if (clean.failed) out->failed = true;
    tide_text_deinit(&clean);
    add_attribute(out, name, &token);
}

static void count_one(counts *n, outcome o) {
    n->tests++;
    n->failures += o == FAILED;
    n->errors += o == ERROR;
    n->skipped += o == SKIPPED;
}

static outcome outcome_of_row(const tide_gate_row *row) {
    return row->verdict == TIDE_GATE_FAIL_VERDICT ? FAILED : PASSED;
}

/// Of the case as a whole: whether it is there, was measured and is the same model.
static outcome outcome_of_whole(const tide_gate_judged *c) {
    if (c->state == TIDE_GATE_CASE_UNMEASURED || c->verdict == TIDE_GATE_NOT_COMPARABLE_VERDICT) return ERROR;
    if (c->state == TIDE_GATE_CASE_REMOVED && c->verdict != TIDE_GATE_FAIL_VERDICT) return SKIPPED;
    if (c->verdict != TIDE_GATE_FAIL_VERDICT) return PASSED;
    for (size_t i = 0; i < c->n_rows; i++)
        if (c->rows[i].verdict == TIDE_GATE_FAIL_VERDICT) return PASSED;
    return FAILED;
}

/// Timed figures are for looking: they pass no test and fail none.
static bool is_test(const tide_gate_row *row) { return tide_gate_metric_get(row->metric)->unit != TIDE_GATE_NS; }

static counts count_of(const tide_gate_judged *c) {
    counts n = {0};
    count_one(&n, outcome_of_whole(c));
    for (size_t i = 0; i < c->n_rows; i++)
        if (is_test(&c->rows[i])) count_one(&n, outcome_of_row(&c->rows[i]));
    return n;
}

static void add_counts(tide_text *out, const counts *n) {
    tide_text_addf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\"", n->tests, n->failures, n->errors);
}

/// The inside of a failure or an error: attributes, then the whole story.
static void add_failure(tide_text *out, const char *element, const char *type, tide_text *message, tide_text *body) {
    tide_text_addf(out, "      <%s type=\"%s\"", element, type);
    add_attribute(out, "message", message);
    tide_text_add(out, ">");
    tide__gate_flush(out, body, tide__gate_for_xml);
    tide_text_addf(out, "</%s>\n", element);
}

static void add_whole(tide_text *out, const tide_gate_result *r, const tide_gate_judged *c) {
    const outcome o = outcome_of_whole(c);
    tide_text_add(out, "    <testcase name=\"case\"");
    add_name(out, "classname", c->key);
    if (o == PASSED) {
        tide_text_add(out, "/>\n");
        return;
    }
    tide_text message = {0}, body = {0};
    tide_text_add(out, ">\n");
    if (c->reason != NULL) tide__gate_clean(&message, c->reason, TIDE__GATE_SENTENCE_CHARS);
    if (o == SKIPPED) {
        tide_text_add(out, "      <skipped>");
        tide__gate_flush(out, &message, tide__gate_for_xml);
        tide_text_add(out, "</skipped>\n");
    } else {
        tide__gate_say_finding(&body, r, &(tide__gate_finding){c, NULL, true}, "\n");
        add_failure(out, o == ERROR ? "error" : "failure", tide_gate_state_name(c->state), &message, &body);
    }
    tide_text_add(out, "    </testcase>\n");
}

static void add_row(tide_text *out, const tide_gate_result *r, const tide_gate_judged *c, const tide_gate_row *row) {
    char id[96];
    tide_text_addf(out, "    <testcase name=\"%s\"", tide_gate_metric_text(row->metric, row->kind, id, sizeof id));
    add_name(out, "classname", c->key);
    if (outcome_of_row(row) == PASSED) {
        tide_text_add(out, "/>\n");
        return;
    }
    tide_text message = {0}, body = {0};
    tide_text_add(out, ">\n");
    tide__gate_say_row(&message, row);
    tide__gate_say_finding(&body, r, &(tide__gate_finding){c, row, true}, "\n");
    add_failure(out, "failure", row->over_budget ? "budget" : row->is_gain ? "gain" : "growth", &message, &body);
    tide_text_add(out, "    </testcase>\n");
}

static void add_properties(tide_text *out, const tide_gate_judged *c) {
    tide_text_addf(out, "    <properties>\n      <property name=\"state\" value=\"%s\"/>\n",
                   tide_gate_state_name(c->state));
    const tide_gate_case *now = c->current != NULL ? c->current : c->baseline;
    const struct {
        const char *name, *value;
    } known[] = {{"model", now != NULL ? now->model : NULL}, {"inputs", now != NULL ? now->inputs : NULL}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].value == NULL || known[i].value[0] == '\0') continue;
        tide_text_addf(out, "      <property name=\"%s\"", known[i].name);
        add_foreign(out, "value", known[i].value);
        tide_text_add(out, "/>\n");
    }
    for (size_t i = 0; now != NULL && i < now->n_settings; i++) {
        tide_text name = {0};
        tide_text_addf(&name, "setting.%s", now->settings[i].key);
        tide_text_add(out, "      <property");
        add_name(out, "name", tide_text_str(&name));
        add_foreign(out, "value", now->settings[i].value);
        tide_text_add(out, "/>\n");
        if (name.failed) out->failed = true;
        tide_text_deinit(&name);
    }
    tide_text_add(out, "    </properties>\n");
}

/// What warns passes its test, so it is told here.
static void add_output(tide_text *out, const tide_gate_judged *c) {
    tide_text plain = {0};
    for (size_t i = 0; i < c->n_rows; i++) {
        if (c->rows[i].verdict != TIDE_GATE_WARN_VERDICT) continue;
        tide_text_add(&plain, "WARN ");
        tide__gate_say_row(&plain, &c->rows[i]);
        tide_text_add(&plain, "\n");
    }
    if (c->verdict == TIDE_GATE_WARN_VERDICT) tide__gate_say_why(&plain, c, TIDE__GATE_MAX_CAUSES, "- ", "\n");
    tide_text_add(out, "    <system-out>");
    tide__gate_flush(out, &plain, tide__gate_for_xml);
    tide_text_add(out, "</system-out>\n    <system-err/>\n");
}

static void add_suite(tide_text *out, const tide_gate_result *r, const tide_gate_judged *c, size_t id) {
    const counts n = count_of(c);
    tide_text_add(out, "  <testsuite");
    add_name(out, "name", c->key);
    tide_text_addf(out, " package=\"tidemark\" id=\"%zu\"", id);
    add_counts(out, &n);
    tide_text_addf(out, " skipped=\"%zu\">\n", n.skipped);
    add_properties(out, c);
    add_whole(out, r, c);
    for (size_t i = 0; i < c->n_rows; i++)
        if (is_test(&c->rows[i])) add_row(out, r, c, &c->rows[i]);
    add_output(out, c);
    tide_text_add(out, "  </testsuite>\n");
}

/// The suite of a result that has nothing to compare with.
static void add_nothing(tide_text *out, const tide_gate_result *r) {
    tide_text message = {0}, body = {0};
    tide_text_add(out, "  <testsuite name=\"baseline\" package=\"tidemark\" id=\"0\" tests=\"1\" failures=\"0\" "
                       "errors=\"1\" skipped=\"0\">\n    <properties>\n      <property name=\"baseline\"");
    add_foreign(out, "value", r->baseline_path);
    tide_text_add(out, "/>\n    </properties>\n    <testcase name=\"comparable\" classname=\"baseline\">\n");
    tide__gate_clean(&message, r->reason, TIDE__GATE_SENTENCE_CHARS);
    tide__gate_say_finding(&body, r, &(tide__gate_finding){NULL, NULL, true}, "\n");
    add_failure(out, "error", "not_comparable", &message, &body);
    tide_text_add(out, "    </testcase>\n    <system-out/>\n    <system-err/>\n  </testsuite>\n");
}

void tide_gate_print_junit(const tide_gate_result *r, tide_text *out) {
    const bool nothing = r->verdict == TIDE_GATE_NOT_COMPARABLE_VERDICT && r->reason != NULL;
    counts all = {.tests = nothing, .errors = nothing};
    for (size_t i = 0; i < r->n; i++) {
        const counts n = count_of(&r->cases[i]);
        all.tests += n.tests;
        all.failures += n.failures;
        all.errors += n.errors;
    }
    tide_text_add(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"tidemark check\"");
    add_counts(out, &all);
    tide_text_add(out, ">\n");
    if (nothing) add_nothing(out, r);
    for (size_t i = 0; i < r->n; i++) add_suite(out, r, &r->cases[i], i + nothing);
    tide_text_add(out, "</testsuites>\n");
}
