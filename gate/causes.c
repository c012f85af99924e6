// SPDX-License-Identifier: MIT
//
// Why a case changed: collects what differs, leaves out what cannot have changed a figure, and sorts the rest. A figure
// that no cause explains gets a cause that says so. Settings and input sizes are found here, steps in causes_steps.c,
// tensors in causes_tensors.c. See judge.h.
#include "gate/causes_internal.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"

const char *tide_gate_cause_name(tide_gate_cause_kind k) {
    static const char *const names[] = {
#define XX(name, text) text,
        TIDE_GATE_CAUSE_MAP(XX)
#undef XX
    };
    return (size_t)k < sizeof names / sizeof names[0] ? names[k] : "cause ?";
}

// ---- settings ----

/// Settings that only matter in a run: no figure of a plan depends on them.
static bool is_of_runs(const char *key) {
    static const char *const keys[] = {"run", "runs", "allocator", "limit", "inputs", "input_dir"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strcmp(keys[i], key) == 0) return true;
    return false;
}

// ---- lists ----

/// Reads the next word of a list and moves *rest behind it. False: the list has ended.
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

/// Writes `head` and the words of `list` that are not in `other`. @return how many there are
static size_t write_missing(tide_text *out, const char *head, const char *list, const char *other,
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

static void write_setting(tide_text *out, const char *key, const char *a, const char *b) {
    tide_text lists = {0};
    size_t n = 0;
    if (is_list(a) || is_list(b)) { // of lists only the words that one side lacks
        n += write_missing(&lists, " without ", a, b, " ");
        n += write_missing(&lists, n > 0 ? ", with " : " with ", b, a, " ");
    }
    if (n > 0)
        tide_text_addf(out, "%s:%s (%s instead of %s)", key, tide_text_str(&lists), or_nothing(b), or_nothing(a));
    else
        tide_text_addf(out, "%s is %s instead of %s", key, or_nothing(b), or_nothing(a));
    if (lists.failed) out->failed = true;
    tide_text_deinit(&lists);
}

static tide_status add_setting(tide__cause_search *g, const char *key, const char *a, const char *b) {
    if (strcmp(a, b) == 0) return TIDE_OK;
    const unsigned beyond_plans = TIDE__CHANGED_RUN | TIDE__CHANGED_LEAKS | TIDE__CHANGED_STEADY;
    const bool can_matter = !is_of_runs(key) || ((g->changed | g->lost) & beyond_plans) != 0;
    const tide__cause_draft d = {.kind = TIDE_GATE_CAUSE_SETTING,
                                 .rank = can_matter ? TIDE__RANK_SETTING : TIDE__RANK_NOTE,
                                 .name = key,
                                 .a = a,
                                 .b = b};
    tide_text t = {0};
    write_setting(&t, key, a, b);
    if (!can_matter) tide_text_add(&t, ", which moves no figure that changed");
    return tide__cause_add(g, &d, &t);
}

/// Reads the next setting by key from both sides (both lists are sorted) and moves *i and *k on. A side without the
/// setting gives "". False: both lists have ended.
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

static tide_status add_settings(tide__cause_search *g) {
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

/// The first of the causes, because it tells the reader that some figures are of another machine.
static tide_status add_machine(tide__cause_search *g) {
    if (!tide_gate_case_has_machine(g->a) || !tide_gate_case_has_machine(g->b)) return TIDE_OK;
    if (tide_gate_case_same_machine(g->a, g->b)) return TIDE_OK;
    const tide__cause_draft d = {.kind = TIDE_GATE_CAUSE_MACHINE, .rank = TIDE__RANK_MACHINE, .name = "machine"};
    tide_text t = {0};
    tide_text_add(&t, "measured on another machine than the baseline (");
    tide__judge_say_machines(&t, g->a, g->b);
    tide_text_add(&t, "), which moves kernels' scratch alone: figures that hold it are not judged");
    return tide__cause_add(g, &d, &t);
}

static tide_status add_settings_and_inputs(tide__cause_search *g) {
    TIDE_TRY(add_machine(g));
    TIDE_TRY(add_settings(g));
    const char *a = tide__case_text(g->a->inputs), *b = tide__case_text(g->b->inputs);
    if (strcmp(a, b) == 0) return TIDE_OK;
    tide_text only_a = {0}, only_b = {0}, t = {0};
    const bool each = write_missing(&only_a, "", a, b, ", ") > 0 && write_missing(&only_b, "", b, a, ", ") > 0;
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

// ---- which figures changed ----

static unsigned class_of(tide_gate_metric m) {
    switch (m) {
    case TIDE_GATE_PEAK:
    case TIDE_GATE_KIND_PEAK:
    case TIDE_GATE_RESERVED:
    case TIDE_GATE_UNEXPLAINED:
        return TIDE__CHANGED_RUN;
    case TIDE_GATE_LEAKED:
    case TIDE_GATE_LEAKED_BLOCKS:
        return TIDE__CHANGED_LEAKS;
    case TIDE_GATE_WARM:
    case TIDE_GATE_ALLOCATIONS:
        return TIDE__CHANGED_STEADY;
    default:
        return TIDE__CHANGED_PLAN;
    }
}

/// The first kind of a metric whose value differs; -1 for a metric without kinds, -2 if no value differs.
static int differing_kind(const tide__cause_search *g, tide_gate_metric m) {
    const bool per_kind = tide_gate_metric_get(m)->per_kind;
    const bool elsewhere = tide_gate_case_has_machine(g->b) && !tide_gate_case_same_machine(g->a, g->b);
    for (int k = 0; k < tide__case_n_values(m); k++) {
        const int kind = per_kind ? k : -1;
        if (elsewhere && tide_gate_metric_is_of_machine(m, kind)) continue; // the machine is what differs
        if (tide__judge_differs(m, tide__case_value(g->a, m, kind), tide__case_value(g->b, m, kind))) return kind;
    }
    return -2;
}

/// Whether only one side has the metric.
static bool is_lost(const tide__cause_search *g, tide_gate_metric m) {
    if (tide_gate_metric_get(m)->unit == TIDE_GATE_NS) return false;
    return tide__case_value(g->a, m, 0).known != tide__case_value(g->b, m, 0).known;
}

static unsigned changed_classes(tide__cause_search *g) {
    unsigned changed = g->a->held_bytes != g->b->held_bytes ? TIDE__CHANGED_PLAN : 0;
    for (int i = 0; i < TIDE_GATE_N_METRICS; i++) {
        const tide_gate_metric m = (tide_gate_metric)i;
        if (differing_kind(g, m) != -2) changed |= class_of(m);
        if (is_lost(g, m)) g->lost |= class_of(m);
    }
    return changed;
}

// ---- what is left ----

static tide_status add_holes(tide__cause_search *g) {
    const uint64_t a = g->a->holes_bytes, b = g->b->holes_bytes;
    if (a == b || g->a->held_bytes == g->b->held_bytes) return TIDE_OK;
    const tide__cause_draft d = {.kind = TIDE_GATE_CAUSE_HOLES,
                                 .rank = TIDE__RANK_HOLES,
                                 .name = "holes",
                                 .a_bytes = a,
                                 .b_bytes = b,
                                 .weight = tide__change(a, b)};
    tide_text t = {0};
    tide_text_addf(&t, "%s %s between the tensors at the peak: ", tide__words(b > a ? b - a : a - b).text,
                   b > a ? "more" : "less");
    tide__say_instead(&t, b, a);
    return tide__cause_add(g, &d, &t);
}

/// Scratch changes the figures of a run only, because the plan of the graph's tensors does not contain it.
static tide_status add_scratch(tide__cause_search *g) {
    const tide_gate_value a = g->a->metrics[TIDE_GATE_SCRATCH], b = g->b->metrics[TIDE_GATE_SCRATCH];
    if (differing_kind(g, TIDE_GATE_SCRATCH) == -2) return TIDE_OK;
    const tide__cause_draft d = {.kind = TIDE_GATE_CAUSE_SCRATCH,
                                 .rank = TIDE__RANK_NOTE,
                                 .name = "scratch",
                                 .a_bytes = a.u,
                                 .b_bytes = b.u,
                                 .weight = tide__change(a.u, b.u)};
    tide_text t = {0};
    tide_text_add(&t, "the kernel that asks for most scratch takes ");
    tide__say_instead(&t, b.u, a.u);
    return tide__cause_add(g, &d, &t);
}

/// The classes of figures for which a cause was found.
static unsigned explained(const tide__cause_search *g) {
    unsigned all = 0;
    for (size_t i = 0; i < g->n_found; i++) {
        const tide__cause_rank rank = g->found[i].rank;
        if (rank == TIDE__RANK_MACHINE) continue; // no figure of the causes depends on the machine
        if (rank <= TIDE__RANK_OPERATOR)
            all |= ~0U;
        else if (rank == TIDE__RANK_LEAK)
            all |= TIDE__CHANGED_LEAKS | TIDE__CHANGED_RUN;
        else if (rank == TIDE__RANK_STEADY)
            all |= TIDE__CHANGED_STEADY | TIDE__CHANGED_RUN;
        else if (rank < TIDE__RANK_UNEXPLAINED)
            all |= TIDE__CHANGED_PLAN | TIDE__CHANGED_RUN;
    }
    return all;
}

static tide_status add_unexplained_figure(tide__cause_search *g, tide_gate_metric m, int kind) {
    const tide_gate_unit unit = tide_gate_metric_get(m)->unit;
    const tide_gate_value va = tide__case_value(g->a, m, kind), vb = tide__case_value(g->b, m, kind);
    char name[96], a[64], b[64];
    tide_gate_metric_text(m, kind, name, sizeof name);
    tide_gate_value_text(unit, va, a, sizeof a);
    tide_gate_value_text(unit, vb, b, sizeof b);
    const tide__cause_draft d = {.kind = TIDE_GATE_CAUSE_UNEXPLAINED,
                                 .rank = TIDE__RANK_UNEXPLAINED,
                                 .name = name,
                                 .a = a,
                                 .b = b,
                                 .a_bytes = unit == TIDE_GATE_BYTES ? va.u : 0,
                                 .b_bytes = unit == TIDE_GATE_BYTES ? vb.u : 0};
    tide_text t = {0};
    tide_text_addf(&t, "%s is %s instead of %s, and no setting, operator or tensor that differs explains it", name, b,
                   a);
    tide__say_peak(&t, g);
    return tide__cause_add(g, &d, &t);
}

/// Adds one figure of each class without a cause, among the figures that have a limit by default.
static tide_status add_unexplained(tide__cause_search *g) {
    unsigned explained_classes = explained(g);
    for (int i = 0; i < TIDE_GATE_N_METRICS; i++) {
        const tide_gate_metric m = (tide_gate_metric)i;
        const int kind = differing_kind(g, m);
        if (kind == -2 || (explained_classes & class_of(m)) != 0 || tide_gate_metric_get(m)->level != TIDE_GATE_FAIL)
            continue;
        TIDE_TRY(add_unexplained_figure(g, m, kind));
        explained_classes |= class_of(m);
    }
    return TIDE_OK;
}

// ---- all causes ----

static int direction_of(const tide__cause_search *g) {
    const int held = tide__sign(tide__change(g->a->held_bytes, g->b->held_bytes));
    const tide_gate_value a = g->a->metrics[TIDE_GATE_TOTAL], b = g->b->metrics[TIDE_GATE_TOTAL];
    return held != 0 || !a.known || !b.known ? held : tide__sign(tide__change(a.u, b.u));
}

static tide_status find_all(tide__cause_search *g) {
    TIDE_TRY(tide__case_check(g->a, g->err));
    TIDE_TRY(tide__case_check(g->b, g->err));
    TIDE_TRY(tide__causes_find_owners(g));
    TIDE_TRY(tide__causes_add_parts(g));
    g->changed = changed_classes(g);
    g->peak_moved = g->a->held_bytes != g->b->held_bytes || (g->changed & TIDE__CHANGED_RUN) != 0;
    g->direction = direction_of(g);
    if ((g->changed | g->lost) == 0) return TIDE_OK;
    TIDE_TRY(add_settings_and_inputs(g));
    if (g->changed == 0) return tide__causes_finish(g); // settings explain why a figure is missing
    TIDE_TRY(tide__causes_add_steps(g));
    TIDE_TRY(tide__causes_add_tensors(g));
    if (g->changed & (TIDE__CHANGED_PLAN | TIDE__CHANGED_RUN)) TIDE_TRY(add_holes(g));
    TIDE_TRY(add_scratch(g));
    TIDE_TRY(add_unexplained(g));
    return tide__causes_finish(g);
}

tide_status tide_gate_causes(const tide_gate_case *a, const tide_gate_case *b, tide_gate_judged *out, tide_error *err) {
    tide__cause_search g = {.a = a, .b = b, .out = out, .err = err};
    const tide_status st = find_all(&g);
    tide__causes_drop(&g);
    return st;
}
