// SPDX-License-Identifier: MIT
//
// Operators that were added or removed, and operators that moved. The moved ones are the smallest set without which
// both sides run the rest in the same order: the steps outside of a longest increasing subsequence of places
// (Schensted 1961, by patience sorting: Fredman 1975, doi 10.1016/0012-365X(75)90103-X). O(n log n).
#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "gate/causes_internal.h"

enum { NAMED_AT_MOST = 3, NONE = -1 };

/// Pairs of steps by name: the n-th step of a name on one side belongs to the n-th of that name on the other.
typedef struct matching {
    int64_t *of_a; ///< [n_steps of a] place in b, or NONE; owned
    int64_t *of_b; ///< [n_steps of b] place in a; owned
    bool *unmoved; ///< [n_steps of b] in the longest common order; owned
} matching;

static void matching_deinit(matching *m) {
    tide_host_free(m->of_a);
    tide_host_free(m->of_b);
    tide_host_free(m->unmoved);
}

typedef struct named {
    const char *name;
    size_t i;
} named;

static int compare_named(const void *a, const void *b) {
    const named *x = a, *y = b;
    const int order = strcmp(x->name, y->name);
    return order != 0 ? order : (x->i > y->i) - (x->i < y->i);
}

static named *sorted_steps(const tide_gate_case *c) {
    named *list = tide_host_calloc(c->n_steps + 1, sizeof *list);
    for (size_t i = 0; list != NULL && i < c->n_steps; i++) list[i] = (named){tide__case_text(c->steps[i].name), i};
    if (list != NULL) qsort(list, c->n_steps, sizeof *list, compare_named);
    return list;
}

static tide_status match(const tide__cause_search *g, matching *m) {
    const size_t n_a = g->a->n_steps, n_b = g->b->n_steps;
    named *a = sorted_steps(g->a), *b = sorted_steps(g->b);
    m->of_a = tide_host_calloc(n_a + 1, sizeof *m->of_a);
    m->of_b = tide_host_calloc(n_b + 1, sizeof *m->of_b);
    m->unmoved = tide_host_calloc(n_b + 1, sizeof *m->unmoved);
    const bool good = a != NULL && b != NULL && m->of_a != NULL && m->of_b != NULL && m->unmoved != NULL;
    for (size_t i = 0; good && i < n_a; i++) m->of_a[i] = NONE;
    for (size_t i = 0; good && i < n_b; i++) m->of_b[i] = NONE;
    for (size_t i = 0, k = 0; good && i < n_a && k < n_b;) {
        const int order = strcmp(a[i].name, b[k].name);
        if (order == 0) {
            m->of_a[a[i].i] = (int64_t)b[k].i;
            m->of_b[b[k].i] = (int64_t)a[i].i;
        }
        if (order <= 0) i++;
        if (order >= 0) k++;
    }
    tide_host_free(a);
    tide_host_free(b);
    return good ? TIDE_OK : TIDE_NO_MEMORY(g->err, "for the causes of a change");
}

// ---- added and removed ----

/// A step that only one side has, with the bytes its operator holds at the peak.
typedef struct one_sided {
    const tide_gate_step *step;
    uint64_t bytes;
    size_t i;
} one_sided;

static int compare_one_sided(const void *a, const void *b) {
    const one_sided *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return (x->i > y->i) - (x->i < y->i);
}

static void write_step(tide_text *out, const tide_gate_step *s) {
    tide_text_add(out, tide__case_text(s->name));
    if (tide__case_text(s->op)[0] != '\0') tide_text_addf(out, " (%s)", s->op);
}

static void write_one_sided(tide_text *out, const tide__cause_search *g, const one_sided *list, size_t n, bool is_b,
                            uint64_t bytes) {
    tide_text_addf(out, "%zu operator%s %s%s", n, n == 1 ? "" : "s", is_b ? "more" : "fewer",
                   n > NAMED_AT_MOST ? ", among them " : ": ");
    for (size_t i = 0; i < n && i < NAMED_AT_MOST; i++) {
        if (i > 0) tide_text_add(out, ", ");
        write_step(out, list[i].step);
    }
    if (bytes == 0) return;
    const tide__cause_owner *o = tide__causes_owner(g, list[0].step->name);
    const tide_gate_tensor *largest = is_b ? o->b_largest : o->a_largest;
    tide_text_addf(out, "; %s %s %s at the peak", n == 1 ? "it" : "they",
                   !is_b    ? "held"
                   : n == 1 ? "holds"
                            : "hold",
                   tide__words(bytes).text);
    if (largest->at_peak_bytes < bytes) tide_text_addf(out, ", %s of it", tide__words(largest->at_peak_bytes).text);
    tide_text_addf(out, " in %s", tide__case_text(largest->name));
}

/// Marks operators that both sides have, so that their tensors are not counted for an added operator of the same
/// name.
static void mark_both(tide__cause_search *g, const matching *m) {
    for (size_t k = 0; k < g->b->n_steps; k++) {
        tide__cause_owner *o = m->of_b[k] != NONE ? tide__causes_owner(g, tide__case_text(g->b->steps[k].name)) : NULL;
        if (o != NULL) o->both = true;
    }
}

static tide_status add_one_sided(tide__cause_search *g, const matching *m, bool is_b) {
    const tide_gate_case *c = is_b ? g->b : g->a;
    const int64_t *partner = is_b ? m->of_b : m->of_a;
    one_sided *list;
    TIDE_TRY(TIDE_NEW(&list, c->n_steps + 1, g->err, "for the causes of a change"));
    size_t n = 0;
    uint64_t bytes = 0;
    for (size_t i = 0; i < c->n_steps; i++) {
        if (partner[i] != NONE) continue;
        tide__cause_owner *o = tide__causes_owner(g, tide__case_text(c->steps[i].name));
        list[n] = (one_sided){&c->steps[i], 0, i};
        if (o != NULL && !o->both &&
            !(is_b ? o->added : o->removed)) { // count the bytes of a name once, also if two steps have it
            *(is_b ? &o->added : &o->removed) = true;
            list[n].bytes = is_b ? o->b_bytes : o->a_bytes;
            bytes += list[n].bytes;
        }
        n++;
    }
    tide_status st = TIDE_OK;
    if (n > 0) {
        qsort(list, n, sizeof *list, compare_one_sided);
        const tide__cause_draft d = {.kind = is_b ? TIDE_GATE_CAUSE_OPERATOR_ADDED : TIDE_GATE_CAUSE_OPERATOR_REMOVED,
                                     .rank = TIDE__RANK_OPERATOR,
                                     .name = list[0].step->name,
                                     .a = is_b ? "" : list[0].step->op,
                                     .b = is_b ? list[0].step->op : "",
                                     .a_bytes = is_b ? 0 : bytes,
                                     .b_bytes = is_b ? bytes : 0,
                                     .n = n,
                                     .weight = is_b ? tide__change(0, bytes) : tide__change(bytes, 0)};
        tide_text t = {0};
        write_one_sided(&t, g, list, n, is_b, bytes);
        st = tide__cause_add(g, &d, &t);
    }
    tide_host_free(list);
    return st;
}

/// Nodes whose operator type changed, for example a fused operator that is no longer fused.
static tide_status add_other_types(tide__cause_search *g, const matching *m) {
    size_t n = 0, first = 0;
    for (size_t k = g->b->n_steps; k-- > 0;) {
        if (m->of_b[k] == NONE) continue;
        const char *a = tide__case_text(g->a->steps[m->of_b[k]].op), *b = tide__case_text(g->b->steps[k].op);
        if (a[0] == '\0' || b[0] == '\0' || strcmp(a, b) == 0) continue;
        first = k;
        n++;
    }
    if (n == 0) return TIDE_OK;
    const tide_gate_step *now = &g->b->steps[first], *before = &g->a->steps[m->of_b[first]];
    const tide__cause_draft d = {.kind = TIDE_GATE_CAUSE_OPERATOR_ADDED,
                                 .rank = TIDE__RANK_OPERATOR,
                                 .name = now->name,
                                 .a = before->op,
                                 .b = now->op,
                                 .n = n};
    tide_text t = {0};
    if (n > 1) tide_text_addf(&t, "%zu operators are of another type, among them ", n);
    tide_text_addf(&t, "%s %s%s instead of %s", now->name, n > 1 ? "" : "is ", now->op, before->op);
    return tide__cause_add(g, &d, &t);
}

// ---- order ----

/// Marks the steps that did not move. Goes from the end, so that of two steps that changed places the later one
/// counts as moved.
static tide_status find_order(const tide__cause_search *g, matching *m) {
    const size_t n_b = g->b->n_steps;
    int64_t *tails =
        tide_host_calloc(n_b + 1, sizeof *tails); // tails[l]: last place of the best sequence of length l+1
    int64_t *next = tide_host_calloc(n_b + 1, sizeof *next);
    size_t len = 0;
    if (tails != NULL && next != NULL) {
        for (size_t k = n_b; k-- > 0;) {
            if (m->of_b[k] == NONE) continue;
            size_t lo = 0, hi = len; // the first sequence that does not end above this place
            while (lo < hi) {
                const size_t mid = lo + (hi - lo) / 2;
                if (m->of_b[tails[mid]] > m->of_b[k])
                    lo = mid + 1;
                else
                    hi = mid;
            }
            next[k] = lo > 0 ? tails[lo - 1] : NONE;
            tails[lo] = (int64_t)k;
            if (lo == len) len++;
        }
        for (int64_t k = len > 0 ? tails[len - 1] : NONE; k != NONE; k = next[k]) m->unmoved[k] = true;
    }
    const bool good = tails != NULL && next != NULL;
    tide_host_free(tails);
    tide_host_free(next);
    return good ? TIDE_OK : TIDE_NO_MEMORY(g->err, "for the causes of a change");
}

/// The nearest unmoved step that is now on the other side of step k. There always is one before or after k,
/// otherwise k would be unmoved too.
static const char *neighbour_of(const tide__cause_search *g, const matching *m, size_t k, bool *is_after) {
    for (size_t p = k; p-- > 0;) {
        if (!m->unmoved[p]) continue;
        if (m->of_b[p] < m->of_b[k]) break;
        *is_after = true;
        return g->b->steps[p].name;
    }
    *is_after = false;
    for (size_t s = k + 1; s < g->b->n_steps; s++)
        if (m->unmoved[s]) return g->b->steps[s].name;
    return "";
}

static uint64_t moved_bytes(const tide__cause_search *g, const char *name) {
    const tide__cause_owner *o = tide__causes_owner(g, name);
    return o != NULL ? (uint64_t)llabs(tide__change(o->a_bytes, o->b_bytes)) : 0;
}

static tide_status add_moved(tide__cause_search *g, const matching *m, size_t k, size_t n) {
    bool is_after;
    const char *other = neighbour_of(g, m, k, &is_after), *name = tide__case_text(g->b->steps[k].name);
    const tide__cause_owner *o = tide__causes_owner(g, name);
    tide_text t = {0}, a = {0}, b = {0};
    tide_text_addf(&a, "%s %s", is_after ? "before" : "after", other);
    tide_text_addf(&b, "%s %s", is_after ? "after" : "before", other);
    const tide__cause_draft d = {.kind = TIDE_GATE_CAUSE_ORDER,
                                 .rank = TIDE__RANK_ORDER,
                                 .name = name,
                                 .a = tide_text_str(&a),
                                 .b = tide_text_str(&b),
                                 .a_bytes = o != NULL ? o->a_bytes : 0,
                                 .b_bytes = o != NULL ? o->b_bytes : 0,
                                 .n = n};
    if (n > 1) tide_text_addf(&t, "%zu of %zu operators run at another place, among them ", n, g->b->n_steps);
    tide_text_addf(&t, "%s%s %s (before: %s it)", name, n > 1 ? "" : " runs", tide_text_str(&b),
                   is_after ? "before" : "after");
    if (a.failed || b.failed) t.failed = true;
    const tide_status st = tide__cause_add(g, &d, &t);
    tide_text_deinit(&a);
    tide_text_deinit(&b);
    return st;
}

static tide_status add_order(tide__cause_search *g, const matching *m) {
    size_t n = 0, most = 0;
    for (size_t k = 0; k < g->b->n_steps; k++) {
        if (m->of_b[k] == NONE || m->unmoved[k]) continue;
        if (n == 0 || moved_bytes(g, g->b->steps[k].name) > moved_bytes(g, g->b->steps[most].name)) most = k;
        n++;
    }
    if (n > NAMED_AT_MOST) return add_moved(g, m, most, n);
    for (size_t k = 0; n > 0 && k < g->b->n_steps; k++)
        if (m->of_b[k] != NONE && !m->unmoved[k]) TIDE_TRY(add_moved(g, m, k, 1));
    return TIDE_OK;
}

tide_status tide__causes_add_steps(tide__cause_search *g) {
    if (g->a->n_steps == 0 || g->b->n_steps == 0) return TIDE_OK; // a table of lifetimes without step names
    matching m = {0};
    tide_status st = match(g, &m);
    if (st == TIDE_OK) mark_both(g, &m);
    if (st == TIDE_OK) st = add_one_sided(g, &m, true);
    if (st == TIDE_OK) st = add_one_sided(g, &m, false);
    if (st == TIDE_OK) st = add_other_types(g, &m);
    const bool of_sizes = (g->changed & (TIDE__CHANGED_PLAN | TIDE__CHANGED_RUN)) != 0;
    if (st == TIDE_OK && of_sizes) st = find_order(g, &m);
    if (st == TIDE_OK && of_sizes) st = add_order(g, &m);
    matching_deinit(&m);
    return st;
}
