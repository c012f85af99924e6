// SPDX-License-Identifier: MIT
//
// Compares cases with their baseline: pairs them, sets the state of each, and the verdict of all. Single figures are
// judged in judge_row.c, causes of changes are found in causes.c. See judge.h.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/host_alloc.h"
#include "core/base/map.h"
#include "gate/judge.h"
#include "gate/measured_internal.h"

const char *tide_gate_verdict_name(tide_gate_verdict v) {
    static const char *const names[] = {
#define XX(name, text) text,
        TIDE_GATE_VERDICT_MAP(XX)
#undef XX
    };
    return (size_t)v < sizeof names / sizeof names[0] ? names[v] : "verdict ?";
}

const char *tide_gate_state_name(tide_gate_state s) {
    static const char *const names[] = {
#define XX(name, text) text,
        TIDE_GATE_STATE_MAP(XX)
#undef XX
    };
    return (size_t)s < sizeof names / sizeof names[0] ? names[s] : "state ?";
}

/// Takes the text; *out is owned.
static tide_status move_text(tide_text *text, char **out, tide_error *err) {
    *out = text->failed ? NULL : tide_host_strdup(tide_text_str(text));
    tide_text_deinit(text);
    return *out != NULL ? TIDE_OK : TIDE_NO_MEMORY(err, "for a verdict");
}

static void judged_deinit(tide_gate_judged *j) {
    for (size_t i = 0; i < j->n_causes; i++) {
        tide_host_free(j->causes[i].name);
        tide_host_free(j->causes[i].owner);
        tide_host_free(j->causes[i].a);
        tide_host_free(j->causes[i].b);
        tide_host_free(j->causes[i].text);
    }
    for (size_t i = 0; i < j->n_by_operator; i++) tide_host_free(j->by_operator[i].key);
    for (size_t i = 0; i < j->n_by_kind; i++) tide_host_free(j->by_kind[i].key);
    tide_host_free(j->causes);
    tide_host_free(j->by_operator);
    tide_host_free(j->by_kind);
    tide_host_free(j->rows);
    tide_host_free(j->reason);
}

void tide_gate_result_deinit(tide_gate_result *r) {
    for (size_t i = 0; i < r->n; i++) judged_deinit(&r->cases[i]);
    tide_host_free(r->cases);
    tide_host_free(r->reason);
    tide_host_free(r->last_update);
    tide_host_free(r->machine);
    *r = (tide_gate_result){0};
}

// ---- one case ----

typedef struct judge_context {
    const tide_gate_config *config;
    const tide_gate_baseline *baseline; ///< NULL: compared with none
    bool none_in_common;                ///< no case is in both
    const tide_gate_case **old_case;    ///< [current] the baseline's case of one that was renamed; else NULL
    bool *is_renamed;                   ///< [cases of the baseline]
    size_t n_renamed;
    tide_error *err;
} judge_context;

/// Whether a figure per kind that is no longer measured gets no row. Kinds with bytes in the baseline get a row; if
/// no kind has any, Workspace alone gets one.
static bool has_no_row(const tide_gate_case *a, tide_gate_metric m, int kind, tide_gate_value before,
                       tide_gate_value now) {
    if (kind < 0 || !before.known || now.known || before.u > 0) return false;
    uint64_t all = 0;
    for (int k = 0; k < TIDE_N_KINDS; k++) all |= a->kinds[m][k].u;
    return all > 0 || kind != TIDE_KIND_WORKSPACE;
}

/// Whether the figure changed. A figure that only one side has counts as changed; a time never does.
static bool is_change(tide_gate_metric m, tide_gate_value before, tide_gate_value now) {
    const bool is_timed = tide_gate_metric_get(m)->unit == TIDE_GATE_NS;
    return tide__judge_differs(m, before, now) || (!is_timed && before.known != now.known);
}

/// Drops the limits of a figure that depends on the machine, unless the configuration sets them and the baseline
/// was measured on this machine. @return whether they were dropped because the machines differ
static bool drop_limits_of_machine(const tide_gate_case *a, const tide_gate_case *b, tide_gate_metric m, int kind,
                                   tide_gate_rule *rule) {
    if (rule->off || !tide_gate_metric_is_of_machine(m, kind) || !tide_gate_case_has_machine(b)) return false;
    const bool elsewhere = a != NULL && !tide_gate_case_same_machine(a, b);
    // Whether the process fits is asked of this machine.
    if (elsewhere && m != TIDE_GATE_PROCESS) rule->has_max = rule->has_warn_max = false;
    if (!elsewhere && !rule->is_default) return false;
    rule->warn = rule->fail = rule->gain_warn = rule->gain_fail = (tide_gate_limit){0};
    return elsewhere;
}

/// Whether the figure has a limit, but no value in the baseline to compare with.
static bool is_missing(const judge_context *g, const tide_gate_case *a, const tide_gate_rule *rule, tide_gate_metric m,
                       tide_gate_value before, tide_gate_value now) {
    if (a == NULL || g->baseline->is_partial || rule->off || before.known || !now.known) return false;
    return tide_gate_metric_get(m)->unit != TIDE_GATE_NS && (rule->fail.given || rule->warn.given);
}

/// Why a figure that has a budget is not known, where tensors without a bound are why.
static void say_unbounded(const tide_gate_case *c, tide_gate_row *row) {
    static const char is_missing_text[] = "not measured";
    const char *names = tide_gate_case_setting(c, TIDE_GATE_UNBOUNDED);
    char rest[sizeof row->limit];
    if (names == NULL || row->current.known || !row->over_budget) return;
    if (strncmp(row->limit, is_missing_text, sizeof is_missing_text - 1) != 0) return;
    snprintf(rest, sizeof rest, "%s", row->limit + sizeof is_missing_text - 1);
    snprintf(row->limit, sizeof row->limit, "no bound is known of %.60s%.70s", names, rest);
}

/// Judges one figure. False: it gets no row.
static bool judge_figure(const judge_context *g, const tide_gate_case *a, const tide_gate_case *b, const char *key,
                         tide_gate_metric m, int kind, tide_gate_row *row) {
    const tide_gate_value before = a != NULL ? tide__case_value(a, m, kind) : (tide_gate_value){0};
    const tide_gate_value now = tide__case_value(b, m, kind);
    tide_gate_rule rule = {0};
    if (a != NULL && has_no_row(a, m, kind, before, now)) return false;
    tide_gate_config_rule(g->config, key, m, kind, &rule);
    const bool elsewhere = drop_limits_of_machine(a, b, m, kind, &rule);
    // What is no model has no process: a budget for models says nothing about it.
    if (m == TIDE_GATE_PROCESS && !now.known && !before.known) return false;
    const bool missing = is_missing(g, a, &rule, m, before, now) && !has_no_row(b, m, kind, now, before);
    const bool has_row = tide__judge_row(&rule, m, kind, a != NULL, before, now, row);
    if (!has_row && !missing) return false;
    if (!has_row) *row = (tide_gate_row){.metric = m, .kind = kind, .baseline = before, .current = now};
    row->elsewhere = elsewhere;
    say_unbounded(b, row);
    if (!missing || row->verdict == TIDE_GATE_FAIL_VERDICT) return true; // it is over its budget, which counts more
    row->verdict = TIDE_GATE_NOT_COMPARABLE_VERDICT;
    row->over_budget = false;
    snprintf(row->limit, sizeof row->limit, "judged, but not in the baseline");
    return true;
}

/// Adds the rows of all figures. Without a case to compare with (`a` is NULL) only budgets are checked.
static tide_status add_rows(const judge_context *g, const tide_gate_case *a, const tide_gate_case *b,
                            tide_gate_judged *j, bool *differs) {
    size_t cap = 0;
    *differs = false;
    for (int i = 0; i < TIDE_GATE_N_METRICS; i++) {
        const tide_gate_metric m = (tide_gate_metric)i;
        const bool per_kind = tide_gate_metric_get(m)->per_kind;
        for (int k = 0; k < tide__case_n_values(m); k++) {
            tide_gate_row row;
            if (!judge_figure(g, a, b, j->key, m, per_kind ? k : -1, &row)) continue;
            TIDE_TRY(TIDE_GROW(&j->rows, &cap, j->n_rows + 1, g->err, "for a verdict"));
            j->rows[j->n_rows++] = row;
            j->verdict = tide__judge_worse(j->verdict, row.verdict);
            *differs = *differs || (!row.elsewhere && is_change(m, row.baseline, row.current));
        }
    }
    return TIDE_OK;
}

static tide_gate_verdict verdict_of_level(tide_gate_level level) {
    return level == TIDE_GATE_FAIL   ? TIDE_GATE_FAIL_VERDICT
           : level == TIDE_GATE_WARN ? TIDE_GATE_WARN_VERDICT
                                     : TIDE_GATE_PASS_VERDICT;
}

static tide_status judge_unmeasured(const judge_context *g, const tide_gate_case *c, tide_gate_judged *j) {
    tide_text reason = {0};
    j->state = TIDE_GATE_CASE_UNMEASURED;
    j->verdict = TIDE_GATE_FAIL_VERDICT;
    tide_text_addf(&reason, "%s: %s", c->skipped ? "was skipped" : "could not be measured",
                   c->error != NULL && c->error[0] != '\0' ? c->error : "no reason given");
    return move_text(&reason, &j->reason, g->err);
}

/// Whether the cases are of different models. Signatures are compared; tables and traces have none, there the
/// models' names are.
static bool is_other_model(const tide_gate_case *a, const tide_gate_case *b, const char **what, const char **x,
                           const char **y) {
    *what = "inputs and outputs";
    *x = tide__case_text(a->signature);
    *y = tide__case_text(b->signature);
    if (strcmp(*x, *y) != 0) return true;
    if ((*x)[0] != '\0') return false;
    *what = "a model of the name";
    *x = tide__case_text(a->model);
    *y = tide__case_text(b->model);
    return (*x)[0] != '\0' && (*y)[0] != '\0' && strcmp(*x, *y) != 0;
}

/// The reason of a case that has a baseline: its file was renamed, or the baseline lacks figures that have limits.
static tide_status add_reason(const judge_context *g, tide_gate_judged *j) {
    tide_text reason = {0};
    size_t n = 0;
    const tide_gate_row *first = NULL;
    if (j->renamed_from != NULL) {
        tide_text_addf(&reason, "renamed: the baseline has the same file as '%s'", j->renamed_from);
        j->verdict = tide__judge_worse(j->verdict, verdict_of_level(tide_gate_config_added(g->config)));
    }
    for (size_t i = 0; i < j->n_rows; i++) {
        if (j->rows[i].verdict != TIDE_GATE_NOT_COMPARABLE_VERDICT) continue;
        if (n++ == 0) first = &j->rows[i];
    }
    if (n > 0) {
        char id[96];
        tide_text_addf(&reason, "%sthe baseline has no figure of %s", reason.len > 0 ? "; " : "",
                       tide_gate_metric_text(first->metric, first->kind, id, sizeof id));
        if (n > 1) tide_text_addf(&reason, " and of %zu more", n - 1);
        tide_text_add(&reason, n > 1 ? ", which are judged" : ", which is judged");
        if (g->baseline->version == 1)
            tide_text_add(&reason, ": it is of version 1, whose figures hold kernels' scratch");
    }
    if (reason.len > 0 || reason.failed) return move_text(&reason, &j->reason, g->err);
    return TIDE_OK;
}

static tide_status judge_pair(const judge_context *g, const tide_gate_case *a, const tide_gate_case *b,
                              tide_gate_judged *j) {
    const char *what, *x, *y;
    bool differs;
    if (is_other_model(a, b, &what, &x, &y)) {
        tide_text reason = {0};
        j->state = TIDE_GATE_CASE_OTHER_MODEL;
        j->verdict = TIDE_GATE_NOT_COMPARABLE_VERDICT;
        tide_text_addf(&reason, "the baseline is of another model: it has %s %s, this one %s", what,
                       x[0] != '\0' ? x : "(none)", y[0] != '\0' ? y : "(none)");
        TIDE_TRY(move_text(&reason, &j->reason, g->err));
        return add_rows(g, NULL, b, j, &differs);
    }
    TIDE_TRY(add_rows(g, a, b, j, &differs));
    j->state = differs ? TIDE_GATE_CASE_CHANGED : TIDE_GATE_CASE_UNCHANGED;
    TIDE_TRY(add_reason(g, j));
    // Version 1 has the tensors of a plan with scratch. That is another plan, and it explains no change of this
    // one.
    const bool is_older = g->baseline->version == 1 && tide_gate_case_has_machine(a);
    return differs && !is_older ? tide_gate_causes(a, b, j, g->err) : TIDE_OK;
}

static tide_status judge_added(const judge_context *g, const tide_gate_case *b, tide_gate_judged *j) {
    bool differs;
    if (g->baseline == NULL) {
        j->state = TIDE_GATE_CASE_ALONE;
    } else {
        tide_text reason = {0};
        j->state = TIDE_GATE_CASE_ADDED;
        j->verdict =
            g->none_in_common ? TIDE_GATE_NOT_COMPARABLE_VERDICT : verdict_of_level(tide_gate_config_added(g->config));
        tide_text_add(&reason, "the baseline has no such case");
        TIDE_TRY(move_text(&reason, &j->reason, g->err));
    }
    return add_rows(g, NULL, b, j, &differs);
}

static tide_status judge_removed(const judge_context *g, tide_gate_judged *j) {
    tide_text reason = {0};
    j->state = TIDE_GATE_CASE_REMOVED;
    j->verdict =
        g->none_in_common ? TIDE_GATE_NOT_COMPARABLE_VERDICT : verdict_of_level(tide_gate_config_removed(g->config));
    tide_text_add(&reason, "the baseline has it, and it is not measured any more");
    return move_text(&reason, &j->reason, g->err);
}

static tide_status judge_case(const judge_context *g, const tide_gate_case *a, const tide_gate_case *b,
                              tide_gate_judged *j) {
    *j = (tide_gate_judged){.key = b != NULL ? b->key : a->key, .baseline = a, .current = b};
    if (a != NULL && b != NULL && strcmp(a->key, b->key) != 0) j->renamed_from = a->key;
    const tide_gate_target *target = b != NULL ? tide_gate_config_find(g->config, b->key) : NULL;
    if (target != NULL) j->origin = target->origin;
    if (target != NULL && !(b->skipped && b->error != NULL && access(target->path, F_OK) != 0)) j->path = target->path;
    if (b == NULL) return judge_removed(g, j);
    if (b->error != NULL || b->skipped) return judge_unmeasured(g, b, j);
    return a != NULL ? judge_pair(g, a, b, j) : judge_added(g, b, j);
}

// ---- the whole ----

static void count(tide_gate_result *out, const tide_gate_judged *j) {
    out->n_pass += j->verdict == TIDE_GATE_PASS_VERDICT;
    out->n_warn += j->verdict == TIDE_GATE_WARN_VERDICT;
    out->n_fail += j->verdict == TIDE_GATE_FAIL_VERDICT;
    out->n_not_comparable += j->verdict == TIDE_GATE_NOT_COMPARABLE_VERDICT;
    out->n_added += j->state == TIDE_GATE_CASE_ADDED;
    out->n_removed += j->state == TIDE_GATE_CASE_REMOVED;
    out->n_unmeasured += j->state == TIDE_GATE_CASE_UNMEASURED;
    out->verdict = tide__judge_worse(out->verdict, j->verdict);
}

static bool has_elsewhere(const tide_gate_judged *j) {
    for (size_t i = 0; i < j->n_rows; i++)
        if (j->rows[i].elsewhere) return true;
    return false;
}

/// Counts the cases that were measured on another machine than the baseline's, and notes how the first pair of
/// machines differs.
static tide_status count_elsewhere(const judge_context *g, tide_gate_result *out, const tide_gate_judged *j) {
    if (!has_elsewhere(j) || out->n_elsewhere++ > 0) return TIDE_OK;
    tide_text text = {0};
    tide__judge_say_machines(&text, j->baseline, j->current);
    return move_text(&text, &out->machine, g->err);
}

/// Both lists are sorted by key, and so is the result.
static tide_status judge_all(const judge_context *g, const tide_gate_cases *current, tide_gate_result *out) {
    static const tide_gate_cases none = {0};
    const tide_gate_cases *old = g->baseline != NULL ? &g->baseline->cases : &none;
    TIDE_TRY(TIDE_NEW(&out->cases, old->n + current->n + 1, g->err, "for a verdict"));
    for (size_t i = 0, k = 0; i < old->n || k < current->n;) {
        const int order = i == old->n ? 1 : k == current->n ? -1 : strcmp(old->items[i].key, current->items[k].key);
        const tide_gate_case *a = order <= 0 ? &old->items[i++] : NULL;
        const tide_gate_case *b = order >= 0 ? &current->items[k++] : NULL;
        if (b == NULL && g->is_renamed[a - old->items]) continue; // judged under its new name
        if (a == NULL) a = g->old_case[b - current->items];
        tide_gate_judged *j = &out->cases[out->n++];
        TIDE_TRY(judge_case(g, a, b, j));
        count(out, j);
        TIDE_TRY(count_elsewhere(g, out, j));
    }
    return TIDE_OK;
}

// ---- renamed files ----

/// The text by which a renamed case is recognised: the hash of its file and its label. False: the case has no hash.
static bool recognition_text(const tide_gate_case *c, tide_text *out) {
    const char *label = strrchr(c->key, '[');
    const size_t n = strlen(c->key);
    out->len = 0;
    if (tide__case_text(c->content)[0] == '\0') return false;
    tide_text_addf(out, "%s %s", c->content, n > 0 && c->key[n - 1] == ']' && label != NULL ? label : "");
    return !out->failed;
}

/// Pairs cases that only the baseline has with cases that only this measurement has, when both are of the same
/// file. If several match, the first one is taken.
static tide_status find_renamed(judge_context *g, const tide_gate_cases *old, const tide_gate_cases *current) {
    tide_strmap places = {0};
    tide_text id = {0};
    uint64_t at;
    tide_status st = TIDE_OK;
    for (size_t k = 0; st == TIDE_OK && k < current->n; k++) {
        const tide_gate_case *b = &current->items[k];
        if (tide_gate_cases_find(old, b->key) != NULL || !recognition_text(b, &id)) continue;
        if (!tide_strmap_get(&places, tide_text_str(&id), NULL)) st = tide_strmap_put(&places, tide_text_str(&id), k);
    }
    for (size_t i = 0; st == TIDE_OK && i < old->n; i++) {
        const tide_gate_case *a = &old->items[i];
        if (tide_gate_cases_find(current, a->key) != NULL || !recognition_text(a, &id)) continue;
        if (!tide_strmap_get(&places, tide_text_str(&id), &at) || g->old_case[at] != NULL) continue;
        g->old_case[at] = a;
        g->is_renamed[i] = true;
        g->n_renamed++;
    }
    if (id.failed) st = TIDE_ERR_NOMEM;
    tide_strmap_deinit(&places);
    tide_text_deinit(&id);
    return st == TIDE_OK ? TIDE_OK : TIDE_NO_MEMORY(g->err, "for a verdict");
}

static tide_status match_renamed(judge_context *g, const tide_gate_cases *current) {
    const size_t n_old = g->baseline != NULL ? g->baseline->cases.n : 0;
    TIDE_TRY(TIDE_NEW(&g->old_case, current->n + 1, g->err, "for a verdict"));
    TIDE_TRY(TIDE_NEW(&g->is_renamed, n_old + 1, g->err, "for a verdict"));
    return n_old > 0 ? find_renamed(g, &g->baseline->cases, current) : TIDE_OK;
}

/// Notes why no case can be compared, if that is so.
static tide_status find_reason(judge_context *g, const tide_gate_cases *current, tide_gate_result *out) {
    tide_text why = {0};
    if (current->n == 0) {
        tide_text_add(&why, "nothing was measured");
        return move_text(&why, &out->reason, g->err);
    }
    if (g->baseline == NULL) return TIDE_OK;
    const tide_gate_cases *old = &g->baseline->cases;
    if (g->n_renamed > 0) return TIDE_OK;
    for (size_t i = 0; i < current->n; i++)
        if (tide_gate_cases_find(old, current->items[i].key) != NULL) return TIDE_OK;
    g->none_in_common = true;
    if (old->n == 0)
        tide_text_addf(&why, "the baseline '%s' has no cases", out->baseline_path);
    else
        tide_text_addf(&why,
                       "the baseline '%s' is of other cases: it has %zu, the first '%s'; here are %zu, the first '%s'",
                       out->baseline_path, old->n, old->items[0].key, current->n, current->items[0].key);
    return move_text(&why, &out->reason, g->err);
}

static tide_status add_last_update(const tide_gate_baseline *b, tide_gate_result *out, tide_error *err) {
    tide_text text = {0};
    if (b != NULL && b->n_updates > 0) {
        const tide_gate_update *u = &b->updates[b->n_updates - 1];
        tide_text_addf(&text, "%s %s: %s", u->date, u->by, u->reason);
    }
    return move_text(&text, &out->last_update, err);
}

static int exit_code_of(tide_gate_verdict v) {
    return v == TIDE_GATE_FAIL_VERDICT ? 1 : v == TIDE_GATE_NOT_COMPARABLE_VERDICT ? 4 : 0;
}

tide_status tide_gate_judge(const tide_gate_config *config, const tide_gate_baseline *baseline,
                            const tide_gate_cases *current, tide_gate_result *out, tide_error *err) {
    judge_context g = {.config = config, .baseline = baseline, .err = err};
    *out = (tide_gate_result){.baseline_path = baseline != NULL && baseline->path != NULL ? baseline->path : "",
                              .config_path = tide_gate_config_path(config)};
    tide_status st = match_renamed(&g, current);
    if (st == TIDE_OK) st = find_reason(&g, current, out);
    if (st == TIDE_OK) st = judge_all(&g, current, out);
    if (st == TIDE_OK) st = add_last_update(baseline, out, err);
    tide_host_free(g.old_case);
    tide_host_free(g.is_renamed);
    if (st != TIDE_OK) {
        tide_gate_result_deinit(out);
        return st;
    }
    if (out->reason != NULL) out->verdict = tide__judge_worse(out->verdict, TIDE_GATE_NOT_COMPARABLE_VERDICT);
    out->exit_code = exit_code_of(out->verdict);
    return TIDE_OK;
}

tide_status tide_gate_nothing(const char *baseline_path, const char *config_path, const tide_error *why,
                              tide_gate_result *out, tide_error *err) {
    tide_text reason = {0};
    *out = (tide_gate_result){.verdict = TIDE_GATE_NOT_COMPARABLE_VERDICT,
                              .exit_code = exit_code_of(TIDE_GATE_NOT_COMPARABLE_VERDICT),
                              .baseline_path = tide__case_text(baseline_path),
                              .config_path = tide__case_text(config_path)};
    tide_text_add(&reason, why->msg);
    if (why->where[0] != '\0') tide_text_addf(&reason, " (%s)", why->where);
    if (why->note[0] != '\0') tide_text_addf(&reason, "; %s", why->note);
    tide_status st = move_text(&reason, &out->reason, err);
    if (st == TIDE_OK) st = add_last_update(NULL, out, err);
    if (st != TIDE_OK) tide_gate_result_deinit(out);
    return st;
}
