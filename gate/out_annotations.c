// SPDX-License-Identifier: MIT
//
// A result as workflow commands of GitHub, which shows them beside the code. See outputs.h. A step shows ten errors and
// ten warnings and drops the rest without a word: here the last of each counts what is not shown.
#include "gate/out_internal.h"

enum { MAX_OF_EACH = 10 };

typedef struct annotations {
    const tide_gate_result *result;
    tide_text *out;
    size_t total, shown; ///< of one level
} annotations;

static bool is_error(const tide_gate_judged *c) {
    return c->verdict == TIDE_GATE_FAIL_VERDICT || c->verdict == TIDE_GATE_NOT_COMPARABLE_VERDICT;
}

static void add_property(tide_text *out, const char *before, const char *name, const char *plain) {
    tide_text_addf(out, "%s%s=", before, name);
    tide__gate_for_command(out, plain, true);
}

/// The first row that is over its limit; NULL: the case as a whole is meant.
static const tide_gate_row *first_breach(const tide_gate_judged *c, size_t *n) {
    const tide_gate_row *first = NULL;
    *n = 0;
    for (size_t i = 0; i < c->n_rows; i++) {
        if (c->rows[i].verdict == TIDE_GATE_PASS_VERDICT) continue;
        if (first == NULL) first = &c->rows[i];
        ++*n;
    }
    return first;
}

/// Where the runner finds the file; nothing when the configuration came through standard input.
static void add_place(tide_text *out, const tide_gate_result *r, const tide_gate_judged *c, const char **before) {
    unsigned line;
    const char *path = tide__gate_place(r, c, &line);
    if (path[0] == '\0' || (path[0] == '-' && path[1] == '\0')) return;
    tide_text clean = {0};
    tide__gate_clean(&clean, path, TIDE__GATE_JSON_CHARS);
    add_property(out, *before, "file", tide_text_str(&clean));
    if (line > 0) tide_text_addf(out, ",line=%u", line);
    *before = ",";
    if (clean.failed) out->failed = true;
    tide_text_deinit(&clean);
}

/// "models/a.json: planned_bytes and 2 more".
static void say_title(tide_text *out, const tide_gate_judged *c, const tide_gate_row *first, size_t n) {
    tide__gate_say_title(out, &(tide__gate_finding){c, first, true});
    if (n > 1) tide_text_addf(out, " and %zu more", n - 1);
}

static void say_message(tide_text *out, const tide_gate_result *r, const tide_gate_judged *c) {
    tide__gate_advice advice = {0};
    size_t n = 0;
    for (size_t i = 0; i < c->n_rows; i++) {
        const tide_gate_row *row = &c->rows[i];
        if (row->verdict == TIDE_GATE_PASS_VERDICT) continue;
        const tide__gate_advice a = tide__gate_advise_finding(r, &(tide__gate_finding){c, row, true});
        advice.accept = advice.accept || a.accept;
        advice.budget = advice.budget || a.budget;
        tide__gate_say_row(out, row);
        tide_text_add(out, "\n");
        n++;
    }
    if (n == 0) {
        tide__gate_say_finding(out, r, &(tide__gate_finding){c, NULL, true}, "\n");
        return;
    }
    tide__gate_say_why(out, c, TIDE__GATE_MAX_CAUSES, "- ", "\n");
    tide__gate_say_advice(out, r, advice, "", "\n");
}

/// One annotation; c NULL: nothing could be compared.
static void add_annotation(annotations *a, const char *level, const tide_gate_judged *c) {
    if (a->shown == MAX_OF_EACH) return;
    if (++a->shown == MAX_OF_EACH && a->total > MAX_OF_EACH) {
        tide_text_addf(a->out, "::%s title=tidemark check::%zu more cases: the log and the summary have all\n", level,
                       a->total - MAX_OF_EACH + 1);
        return;
    }
    const char *before = " ";
    tide_text title = {0}, text = {0};
    size_t n = 0;
    const tide_gate_row *first = c != NULL ? first_breach(c, &n) : NULL;
    tide_text_addf(a->out, "::%s", level);
    add_place(a->out, a->result, c, &before);
    say_title(&title, c, first, n);
    add_property(a->out, before, "title", tide_text_str(&title));
    tide_text_add(a->out, "::");
    if (c != NULL)
        say_message(&text, a->result, c);
    else
        tide__gate_say_finding(&text, a->result, &(tide__gate_finding){NULL, NULL, true}, "\n");
    if (text.len > 0 && text.data[text.len - 1] == '\n') text.data[--text.len] = '\0';
    tide__gate_for_command(a->out, tide_text_str(&text), false);
    tide_text_add(a->out, "\n");
    if (title.failed || text.failed) a->out->failed = true;
    tide_text_deinit(&title);
    tide_text_deinit(&text);
}

void tide_gate_print_annotations(const tide_gate_result *r, tide_text *out) {
    const bool nothing = r->verdict == TIDE_GATE_NOT_COMPARABLE_VERDICT && r->reason != NULL;
    for (int errors = 1; errors >= 0; errors--) {
        const char *level = errors ? "error" : "warning";
        annotations a = {.result = r, .out = out, .total = errors && nothing};
        for (size_t i = 0; i < r->n; i++)
            a.total += r->cases[i].verdict != TIDE_GATE_PASS_VERDICT && is_error(&r->cases[i]) == errors;
        if (errors && nothing) add_annotation(&a, level, NULL);
        for (size_t i = 0; i < r->n; i++)
            if (r->cases[i].verdict != TIDE_GATE_PASS_VERDICT && is_error(&r->cases[i]) == errors)
                add_annotation(&a, level, &r->cases[i]);
    }
}
