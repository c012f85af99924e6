// SPDX-License-Identifier: MIT
//
// Tensors that differ. They are matched by name and owner, and each gets the first cause that applies: kind, place,
// size, presence at the peak. Tensors that differ in the same way become one cause. A tensor that holds no bytes at
// either peak is a cause only when no other tensor can have changed the figures, or as part of a group.
//
// Sentences hold names as the model has them; the outputs escape them (outputs.h).
#include "gate/causes_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"

/// How a tensor differs. Differences with the same kind, persistence and group become one cause.
typedef struct tensor_diff {
    const tide_gate_tensor *a, *b; ///< NULL: absent on that side
    tide_gate_cause_kind kind;
    bool persistent; ///< now, or before if it was removed
    int64_t group;   ///< differences with the same number are alike: pairs of kinds, a share, an alias
    int64_t weight;  ///< change of the bytes that it holds
} tensor_diff;
/// `group` of resized tensors: their new size in percent of the old one, or one of these for mixed shares.
enum { SHARES_GREW = -2, SHARES_SHRANK = -1 };
/// "conv1_out of conv1".
static void say_tensor(tide_text *out, const tide_gate_tensor *t) {
    const char *name = tide__case_text(t->name), *owner = tide__case_text(t->owner);
    tide_text_add(out, name[0] != '\0' ? name : "a block without a name");
    if (owner[0] != '\0') tide_text_addf(out, " of %s", owner);
}

/// "Workspace", "Workspace, persistent".
static const char *kind_words(const tide_gate_tensor *t, char *buf, size_t buf_bytes) {
    const bool says = t->persistent && t->kind != TIDE_KIND_PERSISTENT;
    snprintf(buf, buf_bytes, "%s%s", tide_memory_kind_name(t->kind), says ? ", persistent" : "");
    return buf;
}

/// Bytes that count for a cause: those at the peak, or the whole size of a tensor that persists.
static uint64_t held_by(const tide_gate_tensor *t) {
    if (t == NULL) return 0;
    return t->at_peak_bytes > 0 ? t->at_peak_bytes : t->persistent ? t->bytes : 0;
}

// ---- sums ----

typedef struct sums {
    uint64_t a_held, b_held, a_bytes, b_bytes;
} sums;

/// What no number holds is the largest one: sizes of what is not at the peak are what a baseline says.
static void add_to(uint64_t *sum, uint64_t n) {
    if (!tide_add_u64(*sum, n, sum)) *sum = UINT64_MAX;
}

static sums sum_up(const tensor_diff *d, size_t n) {
    sums s = {0};
    for (size_t i = 0; i < n; i++) {
        add_to(&s.a_held, held_by(d[i].a));
        add_to(&s.b_held, held_by(d[i].b));
        add_to(&s.a_bytes, d[i].a != NULL ? d[i].a->bytes : 0);
        add_to(&s.b_bytes, d[i].b != NULL ? d[i].b->bytes : 0);
    }
    return s;
}

/// "4.00 KiB at the peak", "4.00 KiB for the whole run", "4.00 KiB, not at the peak"
static void say_held(tide_text *out, bool persistent, uint64_t held, uint64_t bytes) {
    if (persistent)
        tide_text_addf(out, "%s for the whole run", tide__words(bytes).text);
    else if (held > 0)
        tide_text_addf(out, "%s at the peak", tide__words(held).text);
    else
        tide_text_addf(out, "%s, not at the peak", tide__words(bytes).text);
}

// ---- one sentence for each kind ----

static void say_count(tide_text *out, const tensor_diff *d, size_t n) {
    const bool added = d->kind == TIDE_GATE_CAUSE_TENSOR_ADDED;
    const tide_gate_tensor *t = added ? d->b : d->a;
    const sums s = sum_up(d, n);
    tide_text_addf(out, "%zu tensor%s %s%s", n, n == 1 ? "" : "s", added ? "more" : "fewer", n == 1 ? ": " : ", ");
    if (n == 1) {
        say_tensor(out, t);
        tide_text_add(out, ", ");
    }
    say_held(out, t->persistent, added ? s.b_held : s.a_held, added ? s.b_bytes : s.a_bytes);
    if (n == 1) return;
    tide_text_add(out, ", among them ");
    say_tensor(out, t);
    tide_text_addf(out, " (%s)", tide__words(t->bytes).text);
}

/// "to 2.00 times their size", or the range where they differ.
static void say_shares(tide_text *out, const tensor_diff *d, size_t n) {
    double lo = 0, hi = 0;
    for (size_t i = 0; i < n; i++) {
        if (d[i].a->bytes == 0) return; // from nothing: there is no share
        const double share = (double)d[i].b->bytes / (double)d[i].a->bytes;
        if (i == 0 || share < lo) lo = share;
        if (i == 0 || share > hi) hi = share;
    }
    if (d->group >= 0)
        tide_text_addf(out, " to %.2f times their size", lo);
    else
        tide_text_addf(out, " to between %.2f and %.2f times their size", lo, hi);
}

static void say_resized(tide_text *out, const tide__cause_search *g, const tensor_diff *d, size_t n) {
    const sums s = sum_up(d, n);
    const bool grew = d->b->bytes > d->a->bytes;
    if (n > 1) {
        tide_text_addf(out, "%zu of %zu tensors %s", n, g->b->n_tensors, grew ? "grew" : "shrank");
        say_shares(out, d, n);
        if (s.a_held != s.b_held)
            tide_text_addf(out, ", %s %s instead of %s", tide__words(s.b_held).text,
                           d->persistent ? "for the whole run" : "at the peak", tide__words(s.a_held).text);
        tide_text_add(out, ", among them ");
    }
    say_tensor(out, d->b);
    tide_text_add(out, n > 1 ? " (" : " takes ");
    tide__say_instead(out, d->b->bytes, d->a->bytes);
    if (n > 1) tide_text_add(out, ")");
    if (n == 1 && s.a_held == 0 && s.b_held == 0) tide_text_add(out, ", not at the peak");
}

static void say_kind(tide_text *out, const tensor_diff *d, size_t n) {
    char a[64], b[64];
    const sums s = sum_up(d, n);
    const tide_gate_tensor *t = tide__case_text(d->b->owner)[0] != '\0' ? d->b : d->a; // what persists has no owner
    if (n > 1)
        tide_text_addf(out, "%zu tensors", n);
    else
        say_tensor(out, t);
    tide_text_addf(out, " (%s) %s %s instead of %s", tide__words(s.b_bytes).text, n > 1 ? "are" : "is",
                   kind_words(d->b, b, sizeof b), kind_words(d->a, a, sizeof a));
    if (d->b->persistent != d->a->persistent)
        tide_text_add(out, d->b->persistent ? ", held for the whole run" : ", planned with the others");
    if (n == 1) return;
    tide_text_add(out, ", among them ");
    say_tensor(out, t);
}

/// "conv1_out (in-place)"
static void say_inside(tide_text *out, const tide_gate_tensor *t, bool with_name) {
    const char *alias = tide__case_text(t->alias);
    tide_text_add(out, with_name ? t->inside : "others");
    if (alias[0] != '\0') tide_text_addf(out, " (%s)", alias);
}

/// "4.00 KiB of its own at the peak"
static void say_own(tide_text *out, size_t n, uint64_t held, uint64_t bytes) {
    tide_text_addf(out, "%s of %s own%s", tide__words(held > 0 ? held : bytes).text, n > 1 ? "their" : "its",
                   held > 0 ? " at the peak" : ", not at the peak");
}

static void say_place(tide_text *out, const tensor_diff *d, size_t n) {
    const sums s = sum_up(d, n);
    if (n > 1)
        tide_text_addf(out, "%zu tensors", n);
    else
        say_tensor(out, d->b);
    if (d->kind == TIDE_GATE_CAUSE_PLACE_LOST) {
        tide_text_add(out, n > 1 ? " take " : " takes ");
        say_own(out, n, s.b_held, s.b_bytes);
        tide_text_addf(out, "; before %s lay in ", n > 1 ? "they" : "it");
        say_inside(out, d->a, n == 1);
    } else {
        tide_text_add(out, n > 1 ? " lie in " : " lies in ");
        say_inside(out, d->b, n == 1);
        tide_text_addf(out, "; before %s took ", n > 1 ? "they" : "it");
        say_own(out, n, s.a_held, s.a_bytes);
    }
    if (n == 1) return;
    tide_text_add(out, ", among them ");
    say_tensor(out, d->b);
}

static void say_alive(tide_text *out, const tide__cause_search *g, const tensor_diff *d, size_t n) {
    const bool comes = d->kind == TIDE_GATE_CAUSE_ALIVE;
    const sums s = sum_up(d, n);
    if (n > 1) {
        tide_text_addf(out, "%zu tensors of the same size hold at the peak ", n);
        tide__say_instead(out, s.b_held, s.a_held);
        tide_text_add(out, ", among them ");
        say_tensor(out, d->b);
    } else if (s.a_held == 0 || s.b_held == 0) {
        say_tensor(out, d->b);
        tide_text_addf(out, " (%s) is %s at the peak, before it was%s", tide__words(comes ? s.b_held : s.a_held).text,
                       comes ? "alive" : "not alive", comes ? " not" : "");
    } else {
        say_tensor(out, d->b);
        tide_text_add(out, " holds at the peak ");
        tide__say_instead(out, s.b_held, s.a_held);
    }
    if (strcmp(tide__case_text(g->a->peak_step), tide__case_text(g->b->peak_step)) != 0) tide__say_peak(out, g);
}

static void say_leak(tide_text *out, const tensor_diff *d, size_t n) {
    uint64_t a = 0, b = 0;
    for (size_t i = 0; i < n; i++) {
        add_to(&a, d[i].a != NULL ? d[i].a->leaked_bytes : 0);
        add_to(&b, d[i].b != NULL ? d[i].b->leaked_bytes : 0);
    }
    if (n > 1) tide_text_addf(out, "%zu tensors, among them ", n);
    say_tensor(out, d->b != NULL ? d->b : d->a);
    if (b > 0)
        tide_text_addf(out, ": %s never given back (before: %s)", tide__words(b).text, tide__words(a).text);
    else
        tide_text_addf(out, ": all given back (before: %s never)", tide__words(a).text);
}

static void say_steady(tide_text *out, const tensor_diff *d, size_t n) {
    uint64_t a = 0, b = 0;
    for (size_t i = 0; i < n; i++) {
        add_to(&a, d[i].a != NULL ? d[i].a->warm_allocations : 0);
        add_to(&b, d[i].b != NULL ? d[i].b->warm_allocations : 0);
    }
    if (n > 1) tide_text_addf(out, "%zu tensors, among them ", n);
    say_tensor(out, d->b != NULL ? d->b : d->a);
    const tide_gate_tensor *t = d->b != NULL ? d->b : d->a;
    tide_text_addf(out, " (%s): %" PRIu64 " allocation%s in steady state (before: %" PRIu64 ")",
                   tide__words(t->bytes).text, b, b == 1 ? "" : "s", a);
}

/// The sentence of `n` differences of one group, the largest first.
static void say_diffs(tide_text *out, const tide__cause_search *g, const tensor_diff *d, size_t n) {
    switch (d->kind) {
    case TIDE_GATE_CAUSE_TENSOR_ADDED:
    case TIDE_GATE_CAUSE_TENSOR_REMOVED:
        say_count(out, d, n);
        break;
    case TIDE_GATE_CAUSE_TENSOR_RESIZED:
        say_resized(out, g, d, n);
        break;
    case TIDE_GATE_CAUSE_KIND:
        say_kind(out, d, n);
        break;
    case TIDE_GATE_CAUSE_PLACE_LOST:
    case TIDE_GATE_CAUSE_PLACE_SHARED:
        say_place(out, d, n);
        break;
    case TIDE_GATE_CAUSE_LEAK:
        say_leak(out, d, n);
        break;
    case TIDE_GATE_CAUSE_STEADY:
        say_steady(out, d, n);
        break;
    default:
        say_alive(out, g, d, n);
        break;
    }
}

// ---- differences of tensors ----

enum { ONE_BY_ONE = 3 };

typedef struct diffs {
    tensor_diff *list; // [n] owned
    size_t n, cap;
    bool any_weight;
} diffs;

static tide__cause_rank rank_of(tide_gate_cause_kind kind) {
    switch (kind) {
    case TIDE_GATE_CAUSE_KIND:
        return TIDE__RANK_KIND;
    case TIDE_GATE_CAUSE_PLACE_LOST:
    case TIDE_GATE_CAUSE_PLACE_SHARED:
        return TIDE__RANK_PLACE;
    case TIDE_GATE_CAUSE_LEAK:
        return TIDE__RANK_LEAK;
    case TIDE_GATE_CAUSE_STEADY:
        return TIDE__RANK_STEADY;
    default:
        return TIDE__RANK_TENSOR;
    }
}

static tide_status add(const tide__cause_search *g, diffs *d, tensor_diff x) {
    TIDE_TRY(TIDE_GROW(&d->list, &d->cap, d->n + 1, g->err, "for the causes of a change"));
    d->list[d->n++] = x;
    d->any_weight = d->any_weight || (x.weight != 0 && rank_of(x.kind) < TIDE__RANK_LEAK);
    return TIDE_OK;
}

// ---- how one differs ----

static int64_t kind_number(const tide_gate_tensor *t) { return 2 * (int64_t)t->kind + t->persistent; }

/// The share to which the size changed, in percent.
static int64_t size_percent(uint64_t a, uint64_t b) {
    if (a == 0) return SHARES_GREW;
    const double share = 100 * (double)b / (double)a;
    return share < 1e15 ? llround(share) : SHARES_GREW;
}

static int64_t alias_number(const tide_gate_tensor *t) {
    tide_alias_kind kind;
    const tide_status st = tide_alias_kind_parse(tide__case_text(t->alias), &kind, NULL);
    return st == TIDE_OK ? (int64_t)kind : -1;
}

static bool is_inside(const tide_gate_tensor *t) { return tide__case_text(t->inside)[0] != '\0'; }

/// The change of held bytes that the tensor explains. Where the bytes at the peak did not change, only persistent
/// tensors count.
static int64_t weight_of(const tide__cause_search *g, const tide_gate_tensor *a, const tide_gate_tensor *b) {
    const bool a_counts = g->peak_moved || (a != NULL && a->persistent);
    const bool b_counts = g->peak_moved || (b != NULL && b->persistent);
    return tide__change(a_counts ? held_by(a) : 0, b_counts ? held_by(b) : 0);
}

/// Finds how two tensors differ. False: they hold the same bytes.
static bool classify(const tide__cause_search *g, const tide_gate_tensor *a, const tide_gate_tensor *b,
                     tensor_diff *out) {
    TIDE_ASSERT(a != NULL || b != NULL);
    *out = (tensor_diff){.a = a, .b = b, .persistent = (b != NULL ? b : a)->persistent, .weight = weight_of(g, a, b)};
    if (a == NULL || b == NULL) {
        out->kind = a == NULL ? TIDE_GATE_CAUSE_TENSOR_ADDED : TIDE_GATE_CAUSE_TENSOR_REMOVED;
    } else if (a->kind != b->kind || a->persistent != b->persistent) {
        out->kind = TIDE_GATE_CAUSE_KIND;
        out->group = 2 * (int64_t)TIDE_N_KINDS * kind_number(a) + kind_number(b);
    } else if (is_inside(a) != is_inside(b)) {
        out->kind = is_inside(a) ? TIDE_GATE_CAUSE_PLACE_LOST : TIDE_GATE_CAUSE_PLACE_SHARED;
        out->group = alias_number(is_inside(a) ? a : b);
    } else if (a->bytes != b->bytes) {
        out->kind = TIDE_GATE_CAUSE_TENSOR_RESIZED;
        out->group = size_percent(a->bytes, b->bytes);
    } else {
        out->kind = a->at_peak_bytes < b->at_peak_bytes ? TIDE_GATE_CAUSE_ALIVE : TIDE_GATE_CAUSE_NOT_ALIVE;
        return a->at_peak_bytes != b->at_peak_bytes;
    }
    return true;
}

/// Whether a tensor that only one side has belongs to another cause: to its added or removed operator, or to a leak
/// or an allocation in steady state.
static bool is_of_other_cause(const tide__cause_search *g, const tensor_diff *d) {
    const tide_gate_tensor *t = d->a == NULL ? d->b : d->a;
    if (d->a != NULL && d->b != NULL) return false;
    if (held_by(t) == 0 && (t->leaked_bytes > 0 || t->warm_allocations > 0)) return true;
    const tide__cause_owner *o = tide__causes_owner(g, tide__case_text(t->owner));
    return o != NULL && (d->a == NULL ? o->added : o->removed);
}

static tide_status add_pair(const tide__cause_search *g, diffs *d, const tide_gate_tensor *a,
                            const tide_gate_tensor *b) {
    tensor_diff x;
    const unsigned of_sizes = TIDE__CHANGED_PLAN | TIDE__CHANGED_RUN;
    const uint64_t leak_a = a != NULL ? a->leaked_bytes : 0, leak_b = b != NULL ? b->leaked_bytes : 0;
    const uint64_t warm_a = a != NULL ? a->warm_allocations : 0, warm_b = b != NULL ? b->warm_allocations : 0;
    if ((g->changed & of_sizes) != 0 && classify(g, a, b, &x) && !is_of_other_cause(g, &x)) TIDE_TRY(add(g, d, x));
    x = (tensor_diff){.a = a, .b = b};
    if ((g->changed & (TIDE__CHANGED_LEAKS | TIDE__CHANGED_RUN)) != 0 && leak_a != leak_b) {
        x.kind = TIDE_GATE_CAUSE_LEAK;
        x.group = leak_a < leak_b;
        x.weight = tide__change(leak_a, leak_b);
        TIDE_TRY(add(g, d, x));
    }
    if ((g->changed & TIDE__CHANGED_STEADY) != 0 && warm_a != warm_b) {
        x.kind = TIDE_GATE_CAUSE_STEADY;
        x.group = warm_a < warm_b;
        x.weight = tide__change(warm_a, warm_b);
        TIDE_TRY(add(g, d, x));
    }
    return TIDE_OK;
}

static bool same_name(const tide_gate_case *c, size_t i, const char *name) {
    return i < c->n_tensors && strcmp(tide__case_text(c->tensors[i].name), name) == 0;
}

/// Whether tensors `i` and `k` are the only ones of their name. Then they are the same tensor even if their owners
/// differ: persistent tensors have no owner, and fusion changes the operator's name.
static bool is_only_pair(const tide_gate_case *a, size_t i, const tide_gate_case *b, size_t k) {
    if (i == a->n_tensors || k == b->n_tensors) return false;
    const char *name = tide__case_text(a->tensors[i].name);
    return same_name(b, k, name) && !same_name(a, i + 1, name) && !same_name(b, k + 1, name) &&
           (i == 0 || !same_name(a, i - 1, name)) && (k == 0 || !same_name(b, k - 1, name));
}

/// Both sides are sorted by name and owner. The n-th tensor of a name and owner on one side belongs to the n-th on
/// the other.
static tide_status collect(const tide__cause_search *g, diffs *d) {
    const tide_gate_case *a = g->a, *b = g->b;
    for (size_t i = 0, k = 0; i < a->n_tensors || k < b->n_tensors;) {
        const int order = i == a->n_tensors          ? 1
                          : k == b->n_tensors        ? -1
                          : is_only_pair(a, i, b, k) ? 0
                                                     : tide__case_compare_tensors(&a->tensors[i], &b->tensors[k]);
        const tide_gate_tensor *before = order <= 0 ? &a->tensors[i++] : NULL;
        const tide_gate_tensor *now = order >= 0 ? &b->tensors[k++] : NULL;
        TIDE_TRY(add_pair(g, d, before, now));
    }
    return TIDE_OK;
}

// ---- groups ----

/// By kind and group, the largest change first.
static int compare_diffs(const void *a, const void *b) {
    const tensor_diff *x = a, *y = b;
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    if (x->persistent != y->persistent) return x->persistent ? 1 : -1;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    const int64_t wx = llabs(x->weight), wy = llabs(y->weight);
    if (wx != wy) return wx > wy ? -1 : 1;
    return tide__case_compare_tensors(x->b != NULL ? x->b : x->a, y->b != NULL ? y->b : y->a);
}

static bool is_same_group(const tensor_diff *x, const tensor_diff *y) {
    return x->kind == y->kind && x->persistent == y->persistent && x->group == y->group;
}

static size_t group_end(const diffs *d, size_t begin) {
    size_t end = begin + 1;
    while (end < d->n && is_same_group(&d->list[end], &d->list[begin])) end++;
    return end;
}

static void sort(diffs *d) {
    if (d->n > 1) qsort(d->list, d->n, sizeof *d->list, compare_diffs);
}

static bool grew(const tensor_diff *d) { return d->a->bytes < d->b->bytes; }

/// Resized tensors are grouped by the share to which they changed. A share keeps its group if at least half of the
/// tensors that grew (or shrank) have it; all others form one group.
static void join_rare_shares(diffs *d) {
    size_t n[2][2] = {{0}}; // of what persists or not, that grew or shrank
    for (size_t i = 0; i < d->n; i++) {
        const tensor_diff *x = &d->list[i];
        if (x->kind == TIDE_GATE_CAUSE_TENSOR_RESIZED) n[x->persistent][grew(x)]++;
    }
    for (size_t i = 0, end; i < d->n; i = end) {
        end = group_end(d, i);
        const tensor_diff *x = &d->list[i];
        if (x->kind != TIDE_GATE_CAUSE_TENSOR_RESIZED) continue;
        if (end - i > ONE_BY_ONE && 2 * (end - i) >= n[x->persistent][grew(x)]) continue;
        for (size_t k = i; k < end; k++) d->list[k].group = grew(&d->list[k]) ? SHARES_GREW : SHARES_SHRANK;
    }
    sort(d);
}

/// The bytes of a tensor in its cause: leaked bytes; else the bytes it holds, or its size if the cause holds none.
static uint64_t bytes_of(tide_gate_cause_kind kind, const tide_gate_tensor *t, bool held) {
    if (t == NULL || kind == TIDE_GATE_CAUSE_STEADY) return 0;
    if (kind == TIDE_GATE_CAUSE_LEAK) return t->leaked_bytes;
    return held ? held_by(t) : t->bytes;
}

/// The text of one side of a cause: the kind, or the tensor that this one lies in.
static const char *side_of(tide_gate_cause_kind kind, const tide_gate_tensor *t, char *buf, size_t buf_bytes) {
    if (t == NULL) return "";
    if (kind == TIDE_GATE_CAUSE_KIND) return kind_words(t, buf, buf_bytes);
    if (kind == TIDE_GATE_CAUSE_PLACE_LOST || kind == TIDE_GATE_CAUSE_PLACE_SHARED) return tide__case_text(t->inside);
    return "";
}

/// a + b, limited to what int64_t holds.
static int64_t sum_of(int64_t a, int64_t b) {
    int64_t sum;
    if (!__builtin_add_overflow(a, b, &sum) && sum > -INT64_MAX) return sum;
    return a > 0 ? INT64_MAX : -INT64_MAX;
}

static tide_status add_cause(tide__cause_search *g, const tensor_diff *d, size_t n) {
    TIDE_ASSERT(d->a != NULL || d->b != NULL);
    const tide_gate_tensor *t = d->b != NULL ? d->b : d->a;
    const bool has_owner = d->a == NULL || tide__case_text(t->owner)[0] != '\0';
    char a[64], b[64];
    tide__cause_draft draft = {.kind = d->kind,
                               .rank = rank_of(d->kind),
                               .name = t->name,
                               .owner = has_owner ? t->owner : d->a->owner,
                               .a = side_of(d->kind, d->a, a, sizeof a),
                               .b = side_of(d->kind, d->b, b, sizeof b),
                               .n = n};
    bool held = false;
    for (size_t i = 0; i < n; i++) held = held || held_by(d[i].a) > 0 || held_by(d[i].b) > 0;
    for (size_t i = 0; i < n; i++) {
        add_to(&draft.a_bytes, bytes_of(d->kind, d[i].a, held));
        add_to(&draft.b_bytes, bytes_of(d->kind, d[i].b, held));
        if (draft.rank < TIDE__RANK_LEAK) draft.weight = sum_of(draft.weight, d[i].weight);
    }
    tide_text sentence = {0};
    say_diffs(&sentence, g, d, n);
    return tide__cause_add(g, &draft, &sentence);
}

/// Whether the difference is left out, because it explains no bytes and others do.
static bool is_left_out(const diffs *d, const tensor_diff *x) {
    return d->any_weight && x->weight == 0 && rank_of(x->kind) != TIDE__RANK_KIND;
}

static tide_status add_causes(tide__cause_search *g, const diffs *d) {
    for (size_t i = 0, end; i < d->n; i = end) {
        end = group_end(d, i);
        if (end - i > ONE_BY_ONE && !is_left_out(d, &d->list[i])) {
            TIDE_TRY(add_cause(g, &d->list[i], end - i));
            continue;
        }
        for (size_t k = i; k < end; k++)
            if (!is_left_out(d, &d->list[k])) TIDE_TRY(add_cause(g, &d->list[k], 1));
    }
    return TIDE_OK;
}

tide_status tide__causes_add_tensors(tide__cause_search *g) {
    diffs d = {0};
    tide_status st = collect(g, &d);
    if (st == TIDE_OK) {
        sort(&d);
        join_rare_shares(&d);
        st = add_causes(g, &d);
    }
    tide_host_free(d.list);
    return st;
}
