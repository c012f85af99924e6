// SPDX-License-Identifier: MIT
//
// For a change that rewrites the baseline which judges it: its new entries are accepted if they give a reason.
#include <stdio.h>
#include <string.h>

#include "cli/check.h"
#include "core/base/host_alloc.h"

static bool same_update(const tide_gate_update *a, const tide_gate_update *b) {
    if (strcmp(a->date, b->date) != 0 || strcmp(a->by, b->by) != 0 || strcmp(a->reason, b->reason) != 0 ||
        a->n_changed != b->n_changed)
        return false;
    for (size_t i = 0; i < a->n_changed; i++) {
        if (strcmp(a->changed[i], b->changed[i]) != 0) return false;
    }
    return true;
}

static bool is_new(const tide_gate_update *u, const tide_gate_baseline *base) {
    for (size_t i = 0; i < base->n_updates; i++) {
        if (same_update(u, &base->updates[i])) return false;
    }
    return true;
}

/// The latest new entry with this case and a reason; NULL: there is none.
static const tide_gate_update *entry_of(const cli_check_baseline *b, const char *key) {
    for (size_t i = b->tree.n_updates; i-- > 0;) {
        const tide_gate_update *u = &b->tree.updates[i];
        if (u->reason[strspn(u->reason, " \t")] == '\0' || !is_new(u, &b->base)) continue;
        for (size_t k = 0; k < u->n_changed; k++) {
            if (strcmp(u->changed[k], key) == 0) return u;
        }
    }
    return NULL;
}

static const tide_gate_judged *judged_of(const tide_gate_result *r, const char *key) {
    for (size_t i = 0; i < r->n; i++) {
        if (strcmp(r->cases[i].key, key) == 0) return &r->cases[i];
    }
    return NULL;
}

static bool is_bad(tide_gate_verdict v) { return v == TIDE_GATE_FAIL_VERDICT || v == TIDE_GATE_NOT_COMPARABLE_VERDICT; }

/// Takes `reason`.
static tide_status set_verdict(tide_gate_judged *c, tide_gate_verdict verdict, tide_text *reason, tide_error *err) {
    if (reason->failed) {
        tide_text_deinit(reason);
        return TIDE_NO_MEMORY(err, "for a reason");
    }
    tide_host_free(c->reason);
    c->reason = reason->data; // moved
    c->verdict = verdict;
    return TIDE_OK;
}

static tide_status accept(tide_gate_judged *c, const tide_gate_update *u, tide_error *err) {
    tide_text reason = {0};
    tide_text_addf(&reason, "accepted: %s (%s, %s)", u->reason, u->by, u->date);
    TIDE_TRY(set_verdict(c, TIDE_GATE_WARN_VERDICT, &reason, err));
    for (size_t i = 0; i < c->n_rows; i++) {
        if (c->rows[i].verdict == TIDE_GATE_FAIL_VERDICT) c->rows[i].verdict = TIDE_GATE_WARN_VERDICT;
    }
    return TIDE_OK;
}

static bool gains(const tide_gate_judged *c) {
    for (size_t i = 0; i < c->n_rows; i++) {
        if (c->rows[i].is_gain) return true;
    }
    return false;
}

/// Checks a case that passes against the older baseline against the newer one too, because that one will judge the
/// next change. If it fails there, the entry was written by hand; if it is better, the limit was raised without
/// need.
static tide_status check_against_tree(tide_gate_judged *c, const tide_gate_judged *by_tree, const char *path,
                                      tide_error *err) {
    tide_text reason = {0};
    if (by_tree == NULL || c->state == TIDE_GATE_CASE_REMOVED) return TIDE_OK;
    if (is_bad(by_tree->verdict)) {
        tide_text_addf(&reason, "by %s as it is in this tree it does not pass: that is not what is measured", path);
        return set_verdict(c, TIDE_GATE_FAIL_VERDICT, &reason, err);
    }
    if (!gains(by_tree) || gains(c)) return TIDE_OK;
    tide_text_addf(&reason, "%s as it is in this tree allows more than is measured: update it", path);
    return set_verdict(c, TIDE_GATE_WARN_VERDICT, &reason, err);
}

static void count_again(tide_gate_result *r) {
    r->n_pass = r->n_warn = r->n_fail = r->n_not_comparable = 0;
    for (size_t i = 0; i < r->n; i++) {
        const tide_gate_verdict v = r->cases[i].verdict;
        r->n_pass += v == TIDE_GATE_PASS_VERDICT;
        r->n_warn += v == TIDE_GATE_WARN_VERDICT;
        r->n_fail += v == TIDE_GATE_FAIL_VERDICT;
        r->n_not_comparable += v == TIDE_GATE_NOT_COMPARABLE_VERDICT;
    }
    r->verdict = r->n_fail > 0             ? TIDE_GATE_FAIL_VERDICT
                 : r->n_not_comparable > 0 ? TIDE_GATE_NOT_COMPARABLE_VERDICT
                 : r->n_warn > 0           ? TIDE_GATE_WARN_VERDICT
                                           : TIDE_GATE_PASS_VERDICT;
    r->exit_code = r->n_fail > 0 ? CLI_EXIT_CHECK_FAILED : r->n_not_comparable > 0 ? CLI_EXIT_NO_BASELINE : CLI_EXIT_OK;
}

static void print_notes(const cli_check_baseline *b) {
    char base[4096], tree[4096], by[256], reason[1024];
    fprintf(stderr, "note: %s differs from %s, by which this is judged\n", cli_clean(b->tree.path, tree, sizeof tree),
            cli_clean(b->base.path, base, sizeof base));
    bool any = false;
    for (size_t i = 0; i < b->tree.n_updates; i++) {
        const tide_gate_update *u = &b->tree.updates[i];
        if (!is_new(u, &b->base)) continue;
        any = true;
        fprintf(stderr, "note: its update of %s by %s: %s\n", u->date, cli_clean(u->by, by, sizeof by),
                cli_clean(u->reason, reason, sizeof reason));
    }
    if (!any) fputs("note: it was changed without an update that gives a reason: nothing of it is accepted\n", stderr);
}

tide_status cli_check_accept(const tide_gate_config *config, const cli_check_baseline *baseline,
                             const tide_gate_cases *cases, tide_gate_result *r, tide_error *err) {
    if (!baseline->has_tree) return TIDE_OK;
    print_notes(baseline);
    tide_gate_result by_tree = {0};
    TIDE_TRY(tide_gate_judge(config, &baseline->tree, cases, &by_tree, err));
    tide_status st = TIDE_OK;
    bool all = true;
    for (size_t i = 0; st == TIDE_OK && i < r->n; i++) {
        tide_gate_judged *c = &r->cases[i];
        const tide_gate_judged *other = judged_of(&by_tree, c->key);
        if (!is_bad(c->verdict)) {
            st = check_against_tree(c, other, baseline->tree.path, err);
            continue;
        }
        const tide_gate_update *u = entry_of(baseline, c->key);
        // A case that also fails against the newer baseline is not what was accepted.
        if (u != NULL && (other == NULL || !is_bad(other->verdict)))
            st = accept(c, u, err);
        else
            all = false;
    }
    tide_gate_result_deinit(&by_tree);
    if (st != TIDE_OK) return st;
    if (all) { // also if the baselines had no case in common
        tide_host_free(r->reason);
        r->reason = NULL;
    }
    count_again(r);
    return TIDE_OK;
}
