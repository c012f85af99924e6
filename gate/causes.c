// SPDX-License-Identifier: MIT
//
// Why a case changed: collects what differs, leaves out what cannot have moved a figure, and puts it in order. What
// explains nothing is not told; where nothing explains a figure, that is said. See judge.h.
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

tide_status tide__causes_no_memory(tide_error *err) {
    return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the causes of a change");
}

int64_t tide__change(uint64_t a, uint64_t b) {
    const uint64_t d = b > a ? b - a : a - b;
    const int64_t size = d < INT64_MAX ? (int64_t)d : INT64_MAX;
    return b > a ? size : -size;
}

// ---- what was found ----

typedef struct tide__cause_found {
    tide_gate_cause cause;
    tide__cause_rank rank;
    int64_t weight;
    bool against; ///< makes the change smaller
    size_t seq;
} tide__cause_found;

static void cause_deinit(tide_gate_cause *c) {
    tide_host_free(c->name);
    tide_host_free(c->owner);
    tide_host_free(c->a);
    tide_host_free(c->b);
    tide_host_free(c->text);
}

tide_status tide__cause_add(tide__causing *g, const tide__cause_draft *d, tide_text *sentence) {
    const bool good =
        !sentence->failed && tide_host_grow(&g->found, &g->cap_found, g->n_found + 1, sizeof *g->found) == TIDE_OK;
    tide_gate_cause c = {.kind = d->kind, .a_bytes = d->a_bytes, .b_bytes = d->b_bytes, .n = d->n > 0 ? d->n : 1};
    if (good) {
        c.name = tide_host_strdup(tide__case_text(d->name));
        c.owner = tide_host_strdup(tide__case_text(d->owner));
        c.a = tide_host_strdup(tide__case_text(d->a));
        c.b = tide_host_strdup(tide__case_text(d->b));
        c.text = tide_host_strdup(tide_text_str(sentence));
    }
    tide_text_deinit(sentence);
    if (c.name == NULL || c.owner == NULL || c.a == NULL || c.b == NULL || c.text == NULL) {
        cause_deinit(&c);
        return tide__causes_no_memory(g->err);
    }
    const bool against = g->direction != 0 && tide__sign(d->weight) == -g->direction;
    g->found[g->n_found] = (tide__cause_found){c, d->rank, d->weight, against, g->n_found};
    g->n_found++;
    return TIDE_OK;
}

static int compare_found(const void *a, const void *b) {
    const tide__cause_found *x = a, *y = b;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    if (x->against != y->against) return x->against ? 1 : -1;
    const int64_t wx = llabs(x->weight), wy = llabs(y->weight);
    if (wx != wy) return wx > wy ? -1 : 1;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

/// Into the result, in order.
static tide_status finish(tide__causing *g) {
    if (g->n_found == 0) return TIDE_OK;
    g->out->causes = tide_host_calloc(g->n_found, sizeof *g->out->causes);
    if (g->out->causes == NULL) return tide__causes_no_memory(g->err);
    qsort(g->found, g->n_found, sizeof *g->found, compare_found);
    for (size_t i = 0; i < g->n_found; i++) g->out->causes[i] = g->found[i].cause;
    g->out->n_causes = g->n_found;
    g->n_found = 0;
    return TIDE_OK;
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

/// The first kind of a metric whose value differs; -2: none does.
static int differing_kind(const tide__causing *g, tide_gate_metric m) {
    const bool per_kind = tide_gate_metric_get(m)->per_kind;
    const bool elsewhere = tide_gate_case_has_machine(g->b) && !tide_gate_case_same_machine(g->a, g->b);
    for (int k = 0; k < tide__case_n_values(m); k++) {
        const int kind = per_kind ? k : -1;
        if (elsewhere && tide_gate_metric_is_of_machine(m, kind)) continue; // the machine is what differs
        if (tide__judge_differs(m, tide__case_value(g->a, m, kind), tide__case_value(g->b, m, kind))) return kind;
    }
    return -2;
}

/// Whether a metric that one side knows was not measured on the other.
static bool is_lost(const tide__causing *g, tide_gate_metric m) {
    if (tide_gate_metric_get(m)->unit == TIDE_GATE_NS) return false;
    return tide__case_value(g->a, m, 0).known != tide__case_value(g->b, m, 0).known;
}

static unsigned changed_classes(tide__causing *g) {
    unsigned changed = g->a->held_bytes != g->b->held_bytes ? TIDE__CHANGED_PLAN : 0;
    for (int i = 0; i < TIDE_GATE_N_METRICS; i++) {
        const tide_gate_metric m = (tide_gate_metric)i;
        if (differing_kind(g, m) != -2) changed |= class_of(m);
        if (is_lost(g, m)) g->lost |= class_of(m);
    }
    return changed;
}

// ---- what is left ----

static tide_status add_holes(tide__causing *g) {
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

/// Scratch moves the figures of a run alone: what is planned of the graph's tensors does not hold it.
static tide_status add_scratch(tide__causing *g) {
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

/// Which classes of figures something was found for.
static unsigned explained(const tide__causing *g) {
    unsigned all = 0;
    for (size_t i = 0; i < g->n_found; i++) {
        const tide__cause_rank rank = g->found[i].rank;
        if (rank == TIDE__RANK_MACHINE) continue; // no figure that is told here depends on it
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

static tide_status say_unexplained(tide__causing *g, tide_gate_metric m, int kind) {
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

/// Figures that are held against limits by default: one of each class that nothing explains.
static tide_status add_unexplained(tide__causing *g) {
    unsigned told = explained(g);
    for (int i = 0; i < TIDE_GATE_N_METRICS; i++) {
        const tide_gate_metric m = (tide_gate_metric)i;
        const int kind = differing_kind(g, m);
        if (kind == -2 || (told & class_of(m)) != 0 || tide_gate_metric_get(m)->level != TIDE_GATE_FAIL) continue;
        TIDE_TRY(say_unexplained(g, m, kind));
        told |= class_of(m);
    }
    return TIDE_OK;
}

// ---- the whole ----

static int direction_of(const tide__causing *g) {
    const int held = tide__sign(tide__change(g->a->held_bytes, g->b->held_bytes));
    const tide_gate_value a = g->a->metrics[TIDE_GATE_TOTAL], b = g->b->metrics[TIDE_GATE_TOTAL];
    return held != 0 || !a.known || !b.known ? held : tide__sign(tide__change(a.u, b.u));
}

static tide_status find_all(tide__causing *g) {
    TIDE_TRY(tide__case_check(g->a, g->err));
    TIDE_TRY(tide__case_check(g->b, g->err));
    TIDE_TRY(tide__causes_find_owners(g));
    TIDE_TRY(tide__causes_add_parts(g));
    g->changed = changed_classes(g);
    g->peak_moved = g->a->held_bytes != g->b->held_bytes || (g->changed & TIDE__CHANGED_RUN) != 0;
    g->direction = direction_of(g);
    if ((g->changed | g->lost) == 0) return TIDE_OK;
    TIDE_TRY(tide__causes_add_settings(g));
    if (g->changed == 0) return finish(g); // what is not measured is a matter of settings
    TIDE_TRY(tide__causes_add_steps(g));
    TIDE_TRY(tide__causes_add_tensors(g));
    if (g->changed & (TIDE__CHANGED_PLAN | TIDE__CHANGED_RUN)) TIDE_TRY(add_holes(g));
    TIDE_TRY(add_scratch(g));
    TIDE_TRY(add_unexplained(g));
    return finish(g);
}

tide_status tide_gate_causes(const tide_gate_case *a, const tide_gate_case *b, tide_gate_judged *out, tide_error *err) {
    tide__causing g = {.a = a, .b = b, .out = out, .err = err};
    const tide_status st = find_all(&g);
    for (size_t i = 0; i < g.n_found; i++) cause_deinit(&g.found[i].cause);
    tide_host_free(g.found);
    tide_host_free(g.owners);
    tide_strmap_deinit(&g.owner_index);
    return st;
}
