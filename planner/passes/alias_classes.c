// SPDX-License-Identifier: MIT
//
// Two classes become one, or not. See alias_classes.h.
#include "planner/passes/alias_classes.h"

#include <string.h>

#include "core/base/host_alloc.h"
#include "planner/problem.h"

static const tide_lifetime *item(const tide__alias_classes *c, uint32_t i) { return &c->lt->items[i]; }

static size_t n_members(const tide__alias_class *k) { return k->members != NULL ? k->n : 1; }
static uint32_t member(const tide__alias_classes *c, uint32_t root, size_t k) {
    return c->list[root].members != NULL ? c->list[root].members[k] : root;
}

/// A trial: one class is to move into another. Both keep their own offsets until it is done.
typedef struct move {
    const tide__alias_classes *c;
    uint32_t child, parent; ///< roots
    uint64_t offset_bytes;  ///< of the child's root from the parent's
} move;

/// A stretch of the class to be, half-open.
typedef struct span {
    uint64_t lo, hi;
} span;

static bool is_in(const move *m, uint32_t i) { return m->c->root[i] == m->child || m->c->root[i] == m->parent; }

static span span_of(const move *m, uint32_t i) {
    const uint64_t lo = m->c->at[i] + (m->c->root[i] == m->child ? m->offset_bytes : 0);
    return (span){lo, lo + item(m->c, i)->size_bytes};
}

static span meet(span a, span b) { return (span){a.lo > b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi}; }

// ---- soundness ----

static const tide_alias_fact *facts_begin(const move *m, int64_t step) {
    return m->c->facts.list + m->c->facts.first[step];
}
static const tide_alias_fact *facts_end(const move *m, int64_t step) {
    return m->c->facts.list + m->c->facts.first[step + 1];
}

/// Whether the fact `f` holds in the joined class: the kernel does not write these bytes.
static bool leaves_alone(const move *m, const tide_alias_fact *f, span *out) {
    const uint32_t in = m->c->item_of[f->in_value], to = m->c->item_of[f->out_value];
    if (f->alias.kind == TIDE_OP_ALIAS_NONE || in == TIDE_NO_INDEX || to == TIDE_NO_INDEX || !is_in(m, in) ||
        !is_in(m, to))
        return false;
    const bool part = f->alias.kind == TIDE_OP_ALIAS_PART;
    const span inner = span_of(m, part ? in : to), whole = span_of(m, part ? to : in);
    *out = inner;
    return inner.lo >= whole.lo && inner.lo - whole.lo == f->alias.offset_bytes;
}

/// Whether the operator that makes `i` writes no byte of `s`. Parts come in the order in which they lie.
static bool is_kept(const move *m, uint32_t i, span s) {
    const tide_lifetime *t = item(m->c, i);
    for (const tide_alias_fact *f = facts_begin(m, t->begin_step); f < facts_end(m, t->begin_step); f++) {
        span kept;
        if (f->out_value != t->value || !leaves_alone(m, f, &kept)) continue;
        if (kept.lo <= s.lo && s.lo < kept.hi) s.lo = kept.hi;
        if (s.lo >= s.hi) return true;
    }
    return false;
}

/// Whether the step that makes `i` may overwrite `old` wherever it reads it.
static bool may_overwrite(const move *m, uint32_t i, uint32_t old) {
    const tide_lifetime *t = item(m->c, i), *o = item(m->c, old);
    const tide_node *node = &m->c->program->graph->nodes[t->node];
    size_t n_read = 0, n_allowed = 0;
    for (size_t k = 0; k < node->n_inputs; k++) n_read += node->inputs[k] == o->value;
    for (const tide_alias_fact *f = facts_begin(m, t->begin_step); f < facts_end(m, t->begin_step); f++)
        n_allowed += f->in_value == o->value && f->may_overwrite;
    return n_read > 0 && n_read == n_allowed;
}

/// Whether `old` dies in the step that makes `i`, and that step may overwrite it wherever it reads it.
static bool hands_over(const move *m, uint32_t i, uint32_t old) {
    const tide_lifetime *t = item(m->c, i), *o = item(m->c, old);
    if (t->port != 0 || o->end_step != t->begin_step + 1 || span_of(m, i).lo != span_of(m, old).lo) return false;
    return may_overwrite(m, i, old);
}

/// Whether `i` lies where `old`, which a region makes, gets its next content: nothing reads what it is now any more,
/// and the next content lies there at the end of the body.
static bool takes_place(const move *m, uint32_t i, uint32_t old) {
    const tide_lifetime *t = item(m->c, i);
    const tide_alias_fact *f = tide_alias_fact_next(m->c->program, &m->c->facts, item(m->c, old)->value, t->begin_step);
    if (f == NULL || t->end_step > (int64_t)f->step + 1) return false;
    const uint32_t next = m->c->item_of[f->in_value];
    if (next == TIDE_NO_INDEX || !is_in(m, next) || span_of(m, next).lo != span_of(m, old).lo) return false;
    if (t->begin_step != f->last_read) return t->begin_step > f->last_read;
    return t->port == 0 && span_of(m, i).lo == span_of(m, old).lo && may_overwrite(m, i, old);
}

/// Whether two members of the joined class that are alive together may share bytes.
static bool may_share(const move *m, uint32_t a, uint32_t b, span both) {
    const int64_t a_birth = item(m->c, a)->begin_step, b_birth = item(m->c, b)->begin_step;
    if (a_birth == b_birth) return is_kept(m, a, both) && is_kept(m, b, both);
    const uint32_t late = a_birth > b_birth ? a : b, early = a_birth > b_birth ? b : a;
    return is_kept(m, late, both) || hands_over(m, late, early) || takes_place(m, late, early);
}

/// First of the members, which are sorted by end step, that lives past step `begin`.
static size_t first_alive(const tide__alias_classes *c, uint32_t root, int64_t begin) {
    size_t lo = 0, hi = n_members(&c->list[root]);
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (item(c, member(c, root, mid))->end_step > begin)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

static bool is_sound_with(const move *m, uint32_t i, uint32_t other_root) {
    const tide_lifetime *t = item(m->c, i);
    const size_t n = n_members(&m->c->list[other_root]);
    for (size_t k = first_alive(m->c, other_root, t->begin_step); k < n; k++) {
        const uint32_t o = member(m->c, other_root, k);
        if (item(m->c, o)->begin_step >= t->end_step) continue;
        const span both = meet(span_of(m, i), span_of(m, o));
        if (both.lo < both.hi && !may_share(m, i, o, both)) return false;
    }
    return true;
}

/// Only pairs across the two classes are checked: inside each class nothing moves.
static bool is_sound(const move *m) {
    const bool child_is_small = n_members(&m->c->list[m->child]) <= n_members(&m->c->list[m->parent]);
    const uint32_t small = child_is_small ? m->child : m->parent, large = child_is_small ? m->parent : m->child;
    for (size_t k = 0; k < n_members(&m->c->list[small]); k++) {
        if (!is_sound_with(m, member(m->c, small, k), large)) return false;
    }
    return true;
}

// ---- which class moves ----

static uint64_t align_of(const tide_lifetime *t) {
    return t->align_bytes < TIDE_ALIAS_ALIGN ? t->align_bytes : TIDE_ALIAS_ALIGN;
}

static bool is_aligned(const move *m) {
    if (m->offset_bytes % TIDE_ALIAS_ALIGN != 0) return false; // the members are, from their root
    const uint64_t given = item(m->c, m->parent)->align_bytes;
    for (size_t k = 0; k < n_members(&m->c->list[m->child]); k++) {
        if (given < align_of(item(m->c, member(m->c, m->child, k)))) return false;
    }
    return true;
}

static bool fits(const move *m) {
    const tide_lifetime *child = item(m->c, m->child), *parent = item(m->c, m->parent);
    if (child->size_bytes > parent->size_bytes || m->offset_bytes > parent->size_bytes - child->size_bytes)
        return false;
    return !child->fixed && child->n_gaps == 0 && child->apart_set == 0 && child->kind == parent->kind &&
           tide_device_equal(child->device, parent->device);
}

/// Where i's root comes to lie from of's root: at[of] + offset - at[i], below zero when `behind`.
static void shift_of(const tide__alias_classes *c, const tide__alias_wish *w, uint64_t *bytes, bool *behind) {
    const uint64_t to = c->at[w->of] + w->offset_bytes, from = c->at[w->i];
    *behind = to < from;
    *bytes = *behind ? from - to : to - from;
}

static bool find_move(const tide__alias_classes *c, const tide__alias_wish *w, move *out) {
    uint64_t bytes;
    bool behind;
    shift_of(c, w, &bytes, &behind);
    *out = (move){c, c->root[w->i], c->root[w->of], bytes};
    if (behind || !fits(out)) {
        *out = (move){c, c->root[w->of], c->root[w->i], bytes};
        if ((!behind && bytes > 0) || !fits(out)) return false;
    }
    return is_sound(out) && is_aligned(out);
}

// ---- done ----

/// Aliases of aliases that a table may have in a row: finding a root goes through all of them.
enum { MAX_CHAIN = 16 };

static bool is_near_root(const tide__alias_classes *c, uint32_t i) {
    size_t n = 0;
    while (n < MAX_CHAIN && item(c, i)->alias != TIDE_ALIAS_NONE) i = item(c, i)->alias_of, n++;
    return n < MAX_CHAIN;
}

/// The table says it of the two that the wish is about, where they are what moves and fit; else of the roots.
static tide_status mark(const tide__alias_classes *c, const tide__alias_wish *w, const move *m, tide_error *err) {
    uint32_t of = m->parent;
    uint64_t offset = m->offset_bytes;
    if (m->child == w->i && is_near_root(c, w->of) && w->offset_bytes <= item(c, w->of)->size_bytes &&
        item(c, w->i)->size_bytes <= item(c, w->of)->size_bytes - w->offset_bytes) {
        of = w->of;
        offset = w->offset_bytes;
    } else if (m->child == w->of && is_near_root(c, w->i) && w->offset_bytes == 0 &&
               item(c, w->of)->size_bytes <= item(c, w->i)->size_bytes) {
        of = w->i;
        offset = 0;
    }
    return tide_lifetimes_alias(c->lt, m->child, w->kind, of, offset, err);
}

/// Make room, put `i` where its end step belongs; the list keeps its order.
static tide_status insert(tide__alias_classes *c, uint32_t root, uint32_t i) {
    tide__alias_class *k = &c->list[root];
    size_t at = first_alive(c, root, item(c, i)->end_step);
    TIDE_TRY(tide_host_grow(&k->members, &k->cap, k->n + 1, sizeof *k->members));
    memmove(k->members + at + 1, k->members + at, (k->n - at) * sizeof *k->members);
    k->members[at] = i;
    k->n++;
    return TIDE_OK;
}

/// A list of its own for a class that had none.
static tide_status unfold(tide__alias_classes *c, uint32_t root) {
    tide__alias_class *k = &c->list[root];
    if (k->members != NULL) return TIDE_OK;
    TIDE_TRY(tide_host_grow(&k->members, &k->cap, 2, sizeof *k->members));
    k->members[0] = root;
    k->n = 1;
    return TIDE_OK;
}

/// Insert the smaller list into the larger one, which becomes the parent's.
static tide_status merge(tide__alias_classes *c, const move *m) {
    TIDE_TRY(unfold(c, m->child));
    TIDE_TRY(unfold(c, m->parent));
    for (size_t k = 0; k < c->list[m->child].n; k++) {
        const uint32_t i = c->list[m->child].members[k];
        c->at[i] += m->offset_bytes;
        c->root[i] = m->parent;
    }
    if (c->list[m->child].n > c->list[m->parent].n) {
        const tide__alias_class swap = c->list[m->child];
        c->list[m->child] = c->list[m->parent];
        c->list[m->parent] = swap;
    }
    for (size_t k = 0; k < c->list[m->child].n; k++) TIDE_TRY(insert(c, m->parent, c->list[m->child].members[k]));
    tide_host_free(c->list[m->child].members);
    c->list[m->child] = (tide__alias_class){0};
    return TIDE_OK;
}

tide_status tide__alias_classes_join(tide__alias_classes *c, const tide__alias_wish *wish, bool *done,
                                     tide_error *err) {
    move m;
    *done = false;
    if (c->root[wish->i] == c->root[wish->of] || !find_move(c, wish, &m)) return TIDE_OK;
    TIDE_TRY(mark(c, wish, &m, err));
    if (merge(c, &m) != TIDE_OK) return TIDE_NO_MEMORY(err, "for %zu aliases", c->lt->n);
    *done = true;
    return TIDE_OK;
}

// ---- begin and end ----

static bool may_share_memory(const tide_lifetime *t) {
    return !t->persistent && t->role == TIDE_ROLE_INTERMEDIATE && t->kind == TIDE_KIND_WORKSPACE && t->size_bytes > 0 &&
           t->value != TIDE_NO_INDEX && t->begin_step >= 0;
}

static tide_status take_up(tide__alias_classes *c) {
    for (uint32_t i = 0; i < c->lt->n; i++) {
        c->root[i] = tide_lifetimes_root(c->lt, i, &c->at[i]);
        if (may_share_memory(item(c, i))) c->item_of[item(c, i)->value] = i;
    }
    for (uint32_t i = 0; i < c->lt->n; i++) {
        if (c->root[i] == i) continue;
        TIDE_TRY(unfold(c, c->root[i]));
        TIDE_TRY(insert(c, c->root[i], i));
    }
    return TIDE_OK;
}

tide_status tide__alias_classes_init(tide__alias_classes *c, const tide_program *program,
                                     const tide_alias_facts *others, size_t n_others, tide_lifetimes *lt,
                                     tide_error *err) {
    const size_t n_values = program->graph->n_values;
    *c = (tide__alias_classes){.program = program, .lt = lt};
    c->item_of = tide_host_alloc((n_values + 1) * sizeof *c->item_of);
    c->root = tide_host_calloc(lt->n + 1, sizeof *c->root);
    c->at = tide_host_calloc(lt->n + 1, sizeof *c->at);
    c->list = tide_host_calloc(lt->n + 1, sizeof *c->list);
    tide_status st =
        c->item_of != NULL && c->root != NULL && c->at != NULL && c->list != NULL ? TIDE_OK : TIDE_ERR_NOMEM;
    for (size_t v = 0; v < n_values && st == TIDE_OK; v++) c->item_of[v] = TIDE_NO_INDEX;
    if (st == TIDE_OK) st = take_up(c);
    if (st != TIDE_OK) st = TIDE_FAIL(err, st, "no memory for the aliases of %zu tensors", lt->n);
    if (st == TIDE_OK) st = tide_alias_facts_make(program, &c->facts, err);
    for (size_t k = 0; k < n_others && st == TIDE_OK; k++) st = tide_alias_facts_narrow(&c->facts, &others[k], err);
    if (st != TIDE_OK) tide__alias_classes_deinit(c);
    return st;
}

void tide__alias_classes_deinit(tide__alias_classes *c) {
    for (size_t i = 0; c->list != NULL && i < c->lt->n; i++) tide_host_free(c->list[i].members);
    tide_host_free(c->list);
    tide_host_free(c->item_of);
    tide_host_free(c->root);
    tide_host_free(c->at);
    tide_alias_facts_deinit(&c->facts);
    *c = (tide__alias_classes){0};
}

// ---- bytes alive at each step: heights of the rectangles, summed by tick, given to the steps of each tick ----

/// First the changes from tick to tick, then their running sum, modulo 2^64.
static void sum_ticks(const tide_problem *p, uint64_t *live) {
    for (size_t r = 0; r < p->n_rects; r++) {
        const uint64_t bytes = p->rects[r].hi_bytes - p->rects[r].lo_bytes;
        live[p->rects[r].begin] += bytes;
        live[p->rects[r].end] -= bytes;
    }
    for (uint32_t t = 1; t < p->n_ticks; t++) live[t] += live[t - 1];
}

static int64_t step_of(const tide_problem *p, uint32_t tick, int64_t n_steps) {
    if (tick >= p->n_ticks) return n_steps;
    const int64_t step = p->tick_steps != NULL ? p->tick_steps[tick] : (int64_t)tick;
    return step < 0 || step > n_steps ? n_steps : step; // no step: a tick of an apart set
}

static tide_status spread_over_steps(const tide_problem *p, int64_t n_steps, uint64_t *out) {
    uint64_t *live = tide_host_calloc((size_t)p->n_ticks + 1, sizeof *live);
    if (live == NULL) return TIDE_ERR_NOMEM;
    sum_ticks(p, live);
    for (uint32_t t = 0; t < p->n_ticks; t++) {
        for (int64_t s = step_of(p, t, n_steps); s < step_of(p, t + 1, n_steps); s++) out[s] = live[t];
    }
    tide_host_free(live);
    return TIDE_OK;
}

tide_status tide__alias_live_bytes(const tide_lifetimes *lt, uint64_t **out, tide_error *err) {
    tide_problems problems;
    TIDE_TRY(tide__problems_make(lt, &problems, err));
    uint64_t *live = tide_host_calloc((size_t)lt->n_steps + 1, sizeof *live);
    tide_status st = live != NULL ? TIDE_OK : TIDE_ERR_NOMEM;
    for (size_t i = 0; i < problems.n && st == TIDE_OK; i++) {
        if (problems.list[i].kind == TIDE_KIND_WORKSPACE) st = spread_over_steps(&problems.list[i], lt->n_steps, live);
    }
    tide__problems_deinit(&problems);
    if (st != TIDE_OK) {
        tide_host_free(live);
        return TIDE_FAIL(err, st, "no memory for the bytes alive at %lld steps", (long long)lt->n_steps);
    }
    *out = live;
    return TIDE_OK;
}
