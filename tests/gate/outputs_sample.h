// SPDX-License-Identifier: MIT
//
// Results made by hand, for tests of what is written of them: every state and verdict, and names that try to break out
// of each format. Nothing is owned: a sample is not to be given to tide_gate_result_deinit.
#ifndef TIDE_TESTS_GATE_OUTPUTS_SAMPLE_H
#define TIDE_TESTS_GATE_OUTPUTS_SAMPLE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/outputs.h"

enum { SAMPLE_CASES = 96, SAMPLE_ROWS = 4, SAMPLE_CAUSES = 7, SAMPLE_TEXT = 12000 };

typedef struct sample {
    tide_gate_result r;
    tide_gate_judged cases[SAMPLE_CASES];
    tide_gate_row rows[SAMPLE_CASES][SAMPLE_ROWS];
    tide_gate_case sides[SAMPLE_CASES][2];
    tide_gate_cause causes[SAMPLE_CAUSES];
    tide_gate_part by_operator[3], by_kind[2];
    tide_gate_setting settings[2];
    char keys[SAMPLE_CASES][SAMPLE_TEXT];
    char sentence[SAMPLE_TEXT], config[SAMPLE_TEXT], baseline[SAMPLE_TEXT], origin[SAMPLE_TEXT + 8];
} sample;

/// What breaks out of JSON, XML, HTML, Markdown, shells, workflow commands, terminals and lines.
static const char *const sample_hostile[] = {
    "a \"quoted\" 'name' \\ back",
    "two\nlines\r\nand\ttabs",
    "x\n::set-output name=pwned::1\n::error::gotcha",
    "::error file=x,line=1::gotcha",
    "##[set-output name=pwned]1 ##vso[task.setvariable variable=p]1 ###[error]x",
    "</script><script>alert(1)</script><!--",
    "]]><failure message=\"x\"/><![CDATA[",
    "&amp;&lt;&#0;&entity;",
    "| a | b `code` ``` ~~~ |\n|---|",
    "@octocat @team/people #123 GH-1 owner/repo#1 deadbeefdeadbeef",
    "[link](https://evil.example) ![i](http://evil.example/x.png) <https://evil.example> www.evil.example",
    "**bold** _it_ ~~s~~ # head\n```\n</details>\n# out",
    "50% done%0A::error::x, a:b,c",
    "esc \033[31mred\033[0m bell\a nul-like \x01\x02\x1f del\x7f c1\xc2\x9b",
    "latin1 \xe9\xe8 overlong \xc0\xaf surrogate \xed\xa0\x80 beyond \xf4\x90\x80\x80\xff cut \xe2\x82",
    "right-to-left \xe2\x80\xae gpj.exe \xe2\x81\xa6isolate\xe2\x81\xa9 mark\xe2\x80\x8f zero\xe2\x80\x8bwidth "
    "\xef\xbb\xbf"
    "bom",
    "nonchar \xef\xbf\xbe \xef\xbf\xbf \xf0\x9f\xbf\xbf ls \xe2\x80\xa8 ps \xe2\x80\xa9",
    "$(touch pwned) `touch pwned` ; touch pwned & ${X} %s%n%d",
    "../../etc/passwd?a=b#c d",
    "   blank  led   and ended  ",
    "größe 張量 \xf0\x9f\x92\xbe",
    "-",
    "",
};
enum { SAMPLE_HOSTILE = sizeof sample_hostile / sizeof sample_hostile[0] };

static tide_gate_value sample_value(uint64_t u) { return (tide_gate_value){.known = true, .u = u, .real = (double)u}; }

static tide_gate_row *sample_row(tide_gate_judged *c, tide_gate_metric m, int kind, uint64_t a, uint64_t b,
                                 tide_gate_verdict verdict, const char *limit) {
    tide_gate_row *row = &c->rows[c->n_rows++];
    *row = (tide_gate_row){.metric = m, .kind = kind, .baseline = sample_value(a), .current = sample_value(b)};
    row->verdict = verdict;
    snprintf(row->limit, sizeof row->limit, "%.159s", limit);
    return row;
}

static tide_gate_judged *sample_case(sample *s, const char *name, const char *tag, tide_gate_state state,
                                     tide_gate_verdict verdict) {
    const size_t i = s->r.n++;
    tide_gate_judged *c = &s->cases[i];
    snprintf(s->keys[i], SAMPLE_TEXT, "models/%s%s", name, tag);
    *c = (tide_gate_judged){.key = s->keys[i], .state = state, .verdict = verdict, .rows = s->rows[i]};
    for (int side = 0; side < 2; side++)
        s->sides[i][side] = (tide_gate_case){.key = s->keys[i],
                                             .model = s->sentence,
                                             .signature = s->sentence,
                                             .inputs = s->sentence,
                                             .settings = s->settings,
                                             .n_settings = 2,
                                             .peak_step = s->sentence,
                                             .held_bytes = 4096,
                                             .holes_bytes = 256};
    if (state != TIDE_GATE_CASE_ADDED && state != TIDE_GATE_CASE_ALONE) c->baseline = &s->sides[i][0];
    if (state != TIDE_GATE_CASE_REMOVED) c->current = &s->sides[i][1];
    c->origin = s->origin;
    s->r.n_pass += verdict == TIDE_GATE_PASS_VERDICT;
    s->r.n_warn += verdict == TIDE_GATE_WARN_VERDICT;
    s->r.n_fail += verdict == TIDE_GATE_FAIL_VERDICT;
    s->r.n_not_comparable += verdict == TIDE_GATE_NOT_COMPARABLE_VERDICT;
    s->r.n_added += state == TIDE_GATE_CASE_ADDED;
    s->r.n_removed += state == TIDE_GATE_CASE_REMOVED;
    s->r.n_unmeasured += state == TIDE_GATE_CASE_UNMEASURED;
    return c;
}

/// Everything that is foreign holds `name`.
static void sample_init(sample *s, const char *name) {
    memset(s, 0, sizeof *s);
    snprintf(s->sentence, SAMPLE_TEXT, "%s", name);
    snprintf(s->config, SAMPLE_TEXT, "%s.toml", name);
    snprintf(s->baseline, SAMPLE_TEXT, "%s.json", name);
    snprintf(s->origin, sizeof s->origin, "%s:12", s->config);
    s->settings[0] = (tide_gate_setting){s->sentence, s->sentence};
    s->settings[1] = (tide_gate_setting){(char *)(uintptr_t) "strategy", (char *)(uintptr_t) "search"};
    for (int k = 0; k < SAMPLE_CAUSES; k++)
        s->causes[k] = (tide_gate_cause){.kind = (tide_gate_cause_kind)k,
                                         .name = s->sentence,
                                         .owner = s->sentence,
                                         .a = s->sentence,
                                         .b = s->sentence,
                                         .a_bytes = 1024,
                                         .b_bytes = 2048,
                                         .n = 1,
                                         .text = s->sentence};
    s->by_operator[0] = (tide_gate_part){s->sentence, 1024, 4096};
    s->by_operator[1] = (tide_gate_part){s->sentence, 2048, 1024};
    s->by_operator[2] = (tide_gate_part){(char *)(uintptr_t) "holes", 0, 0};
    s->by_kind[0] = (tide_gate_part){(char *)(uintptr_t) "Workspace", 3072, 5120};
    s->r = (tide_gate_result){
        .cases = s->cases, .baseline_path = s->baseline, .config_path = s->config, .last_update = s->sentence};
}

static tide_gate_judged *sample_changed(sample *s, const char *name, const char *tag) {
    char limit[160];
    snprintf(limit, sizeof limit, "any growth (%.120s:12)", s->config);
    tide_gate_judged *c = sample_case(s, name, tag, TIDE_GATE_CASE_CHANGED, TIDE_GATE_FAIL_VERDICT);
    sample_row(c, TIDE_GATE_PLANNED, -1, 3072, 5120, TIDE_GATE_FAIL_VERDICT, limit);
    sample_row(c, TIDE_GATE_KIND_PEAK, TIDE_KIND_WORKSPACE, 3072, 5120, TIDE_GATE_PASS_VERDICT, "");
    sample_row(c, TIDE_GATE_TIME, -1, 1000, 2000, TIDE_GATE_PASS_VERDICT, "");
    c->causes = s->causes, c->n_causes = SAMPLE_CAUSES;
    c->by_operator = s->by_operator, c->n_by_operator = 3;
    c->by_kind = s->by_kind, c->n_by_kind = 1;
    return c;
}

/// Every state and verdict there is.
static void sample_mixed(sample *s, const char *name) {
    sample_init(s, name);
    tide_gate_judged *c = sample_case(s, name, " added", TIDE_GATE_CASE_ADDED, TIDE_GATE_WARN_VERDICT);
    sample_row(c, TIDE_GATE_PLANNED, -1, 0, 7168, TIDE_GATE_PASS_VERDICT, "")->baseline.known = false;
    sample_row(c, TIDE_GATE_PLAN_TIME, -1, 0, 7168, TIDE_GATE_PASS_VERDICT, "")->baseline.known = false;
    c->reason = s->sentence;
    c = sample_case(s, name, " alone", TIDE_GATE_CASE_ALONE, TIDE_GATE_PASS_VERDICT);
    sample_row(c, TIDE_GATE_TOTAL, -1, 0, 512, TIDE_GATE_PASS_VERDICT, "")->baseline.known = false;
    c = sample_case(s, name, " budget", TIDE_GATE_CASE_UNCHANGED, TIDE_GATE_FAIL_VERDICT);
    sample_row(c, TIDE_GATE_TOTAL, -1, 9216, 9216, TIDE_GATE_FAIL_VERDICT, s->sentence)->over_budget = true;
    sample_changed(s, name, " changed");
    c = sample_case(s, name, " gain", TIDE_GATE_CASE_CHANGED, TIDE_GATE_WARN_VERDICT);
    sample_row(c, TIDE_GATE_PLANNED, -1, 5120, 3072, TIDE_GATE_WARN_VERDICT, s->sentence)->is_gain = true;
    tide_gate_row *share = sample_row(c, TIDE_GATE_SAVING, -1, 0, 0, TIDE_GATE_PASS_VERDICT, "");
    share->baseline.real = 0.25, share->current.real = 0.5;
    c = sample_case(s, name, " other", TIDE_GATE_CASE_OTHER_MODEL, TIDE_GATE_NOT_COMPARABLE_VERDICT);
    c->reason = s->sentence;
    c = sample_case(s, name, " removed", TIDE_GATE_CASE_REMOVED, TIDE_GATE_FAIL_VERDICT);
    c->reason = s->sentence;
    c = sample_case(s, name, " removed softly", TIDE_GATE_CASE_REMOVED, TIDE_GATE_PASS_VERDICT);
    c->reason = s->sentence;
    sample_case(s, name, " same", TIDE_GATE_CASE_UNCHANGED, TIDE_GATE_PASS_VERDICT);
    c = sample_case(s, name, " unmeasured", TIDE_GATE_CASE_UNMEASURED, TIDE_GATE_FAIL_VERDICT);
    c->reason = s->sentence;
    s->sides[s->r.n - 1][1].error = s->sentence;
    s->sides[s->r.n - 1][1].skipped = true;
    s->r.verdict = TIDE_GATE_FAIL_VERDICT, s->r.exit_code = 1;
}

/// All well.
static void sample_clean(sample *s, const char *name) {
    sample_init(s, name);
    s->r.last_update = NULL;
    for (int i = 0; i < 3; i++) {
        char tag[32];
        snprintf(tag, sizeof tag, "-%d", i);
        tide_gate_judged *c = sample_case(s, name, tag, TIDE_GATE_CASE_UNCHANGED, TIDE_GATE_PASS_VERDICT);
        sample_row(c, TIDE_GATE_PLANNED, -1, 3072, 3072, TIDE_GATE_PASS_VERDICT, "");
    }
}

/// One thing that got worse, which a baseline can take over.
static void sample_worse(sample *s, const char *name) {
    sample_init(s, name);
    sample_changed(s, name, "");
    sample_case(s, name, " same", TIDE_GATE_CASE_UNCHANGED, TIDE_GATE_PASS_VERDICT);
    s->r.verdict = TIDE_GATE_FAIL_VERDICT, s->r.exit_code = 1;
}

/// `n_fail` cases that fail, then `n_warn` that warn.
static void sample_many(sample *s, const char *name, size_t n_fail, size_t n_warn) {
    sample_init(s, name);
    for (size_t i = 0; i < n_fail + n_warn; i++) {
        char tag[32];
        snprintf(tag, sizeof tag, "-%02zu", i);
        tide_gate_judged *c = sample_changed(s, name, tag);
        if (i < n_fail) continue;
        c->verdict = c->rows[0].verdict = TIDE_GATE_WARN_VERDICT;
        s->r.n_fail--, s->r.n_warn++;
    }
    s->r.verdict = n_fail > 0 ? TIDE_GATE_FAIL_VERDICT : TIDE_GATE_WARN_VERDICT, s->r.exit_code = n_fail > 0;
}

/// There is no baseline.
static void sample_nothing(sample *s, const char *name) {
    sample_init(s, name);
    s->r.last_update = NULL;
    s->r.reason = s->sentence;
    s->r.verdict = TIDE_GATE_NOT_COMPARABLE_VERDICT, s->r.exit_code = 4;
}

#endif
