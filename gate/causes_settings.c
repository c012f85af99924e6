// SPDX-License-Identifier: MIT
//
// What somebody set: settings, and the sizes of the inputs. They are told first, for they move everything else.
#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "gate/causes_internal.h"

/// Settings of a run alone: no figure of a plan depends on them.
static bool is_of_runs(const char *key) {
    static const char *const keys[] = {"run", "runs", "allocator", "limit", "inputs", "input_dir"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strcmp(keys[i], key) == 0) return true;
    return false;
}

// ---- lists ----

/// A word of a list; *rest moves behind it. False: there is no more.
static bool next_word(const char **rest, const char *separator, const char **word, size_t *len) {
    const size_t n = strlen(separator);
    while (strncmp(*rest, separator, n) == 0) *rest += n;
    if (**rest == '\0') return false;
    const char *end = strstr(*rest, separator);
    *word = *rest;
    *len = end != NULL ? (size_t)(end - *rest) : strlen(*rest);
    *rest += *len;
    return true;
}

static bool has_word(const char *list, const char *separator, const char *word, size_t len) {
    const char *at;
    size_t n;
    while (next_word(&list, separator, &at, &n))
        if (n == len && memcmp(at, word, len) == 0) return true;
    return false;
}

/// Words of `list` that are not in `other`, with `head` in front. @return how many
static size_t say_missing(tide_text *out, const char *head, const char *list, const char *other,
                          const char *separator) {
    const char *word;
    size_t len, n = 0;
    while (next_word(&list, separator, &word, &len)) {
        if (has_word(other, separator, word, len)) continue;
        tide_text_add(out, n == 0 ? head : ", ");
        tide_text_add_n(out, word, len);
        n++;
    }
    return n;
}

static bool is_list(const char *value) { return strchr(value, ' ') != NULL; }

// ---- settings ----

static const char *or_nothing(const char *value) { return value[0] != '\0' ? value : "not set"; }

static void say_setting(tide_text *out, const char *key, const char *a, const char *b) {
    tide_text lists = {0};
    size_t n = 0;
    if (is_list(a) || is_list(b)) { // of a list what is not in both
        n += say_missing(&lists, " without ", a, b, " ");
        n += say_missing(&lists, n > 0 ? ", with " : " with ", b, a, " ");
    }
    if (n > 0)
        tide_text_addf(out, "%s:%s (%s instead of %s)", key, tide_text_str(&lists), or_nothing(b), or_nothing(a));
    else
        tide_text_addf(out, "%s is %s instead of %s", key, or_nothing(b), or_nothing(a));
    if (lists.failed) out->failed = true;
    tide_text_deinit(&lists);
}

static tide_status add_setting(tide__causing *g, const char *key, const char *a, const char *b) {
    if (strcmp(a, b) == 0) return TIDE_OK;
    const unsigned beyond_plans = TIDE__CHANGED_RUN | TIDE__CHANGED_LEAKS | TIDE__CHANGED_STEADY;
    const bool can = !is_of_runs(key) || ((g->changed | g->lost) & beyond_plans) != 0;
    const tide__cause_draft d = {.kind = TIDE_GATE_CAUSE_SETTING,
                                 .rank = can ? TIDE__RANK_SETTING : TIDE__RANK_NOTE,
                                 .name = key,
                                 .a = a,
                                 .b = b};
    tide_text t = {0};
    say_setting(&t, key, a, b);
    if (!can) tide_text_add(&t, ", which moves no figure that changed");
    return tide__cause_add(g, &d, &t);
}

/// One setting of both sides, "" where there is none; *i and *k move on. Both lists are by key. False: there is no
/// more.
static bool next_setting(const tide_gate_case *a, const tide_gate_case *b, size_t *i, size_t *k, const char **key,
                         const char **before, const char **now) {
    if (*i == a->n_settings && *k == b->n_settings) return false;
    const int order = *i == a->n_settings   ? 1
                      : *k == b->n_settings ? -1
                                            : strcmp(a->settings[*i].key, b->settings[*k].key);
    *key = order <= 0 ? a->settings[*i].key : b->settings[*k].key;
    *before = order <= 0 ? a->settings[(*i)++].value : "";
    *now = order >= 0 ? b->settings[(*k)++].value : "";
    return true;
}

static tide_status add_settings(tide__causing *g) {
    const char *key, *before, *now;
    for (size_t i = 0, k = 0; next_setting(g->a, g->b, &i, &k, &key, &before, &now);)
        if (!tide_gate_setting_is_of_machine(key)) TIDE_TRY(add_setting(g, key, before, now));
    return TIDE_OK;
}

// ---- machines ----

void tide__judge_say_machines(tide_text *out, const tide_gate_case *a, const tide_gate_case *b) {
    const char *key, *before, *now, *comma = "";
    for (size_t i = 0, k = 0; next_setting(a, b, &i, &k, &key, &before, &now);) {
        if (!tide_gate_setting_is_of_machine(key) || strcmp(before, now) == 0) continue;
        tide_text_addf(out, "%s%s: %s instead of %s", comma, key, now[0] != '\0' ? now : "not known",
                       before[0] != '\0' ? before : "not known");
        comma = "; ";
    }
}

/// Told before all else: a reader of figures must know that some of them are of another machine.
static tide_status add_machine(tide__causing *g) {
    if (!tide_gate_case_has_machine(g->a) || !tide_gate_case_has_machine(g->b)) return TIDE_OK;
    if (tide_gate_case_same_machine(g->a, g->b)) return TIDE_OK;
    const tide__cause_draft d = {.kind = TIDE_GATE_CAUSE_MACHINE, .rank = TIDE__RANK_MACHINE, .name = "machine"};
    tide_text t = {0};
    tide_text_add(&t, "measured on another machine than the baseline (");
    tide__judge_say_machines(&t, g->a, g->b);
    tide_text_add(&t, "), which moves kernels' scratch alone: figures that hold it are not judged");
    return tide__cause_add(g, &d, &t);
}

tide_status tide__causes_add_settings(tide__causing *g) {
    TIDE_TRY(add_machine(g));
    TIDE_TRY(add_settings(g));
    const char *a = tide__case_text(g->a->inputs), *b = tide__case_text(g->b->inputs);
    if (strcmp(a, b) == 0) return TIDE_OK;
    tide_text only_a = {0}, only_b = {0}, t = {0};
    const bool each = say_missing(&only_a, "", a, b, ", ") > 0 && say_missing(&only_b, "", b, a, ", ") > 0;
    const tide__cause_draft d = {.kind = TIDE_GATE_CAUSE_INPUTS,
                                 .rank = TIDE__RANK_INPUTS,
                                 .name = "inputs",
                                 .a = each ? tide_text_str(&only_a) : a,
                                 .b = each ? tide_text_str(&only_b) : b};
    tide_text_addf(&t, "the inputs are %s instead of %s", d.b[0] != '\0' ? d.b : "none", d.a[0] != '\0' ? d.a : "none");
    if (only_a.failed || only_b.failed) t.failed = true;
    const tide_status st = tide__cause_add(g, &d, &t);
    tide_text_deinit(&only_a);
    tide_text_deinit(&only_b);
    return st;
}
