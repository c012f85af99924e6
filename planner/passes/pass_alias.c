// SPDX-License-Identifier: MIT
//
// The four alias passes: what lies inside what. Each goes through what the operators say (core/runtime/alias_facts.h),
// wishes, and gets what keeps its class sound (alias_classes.h). Graph inputs, outputs and weights keep memory of their
// own (S23-6, X-5).
//
//     views     y = Reshape(x)        y lies in x, all of it
//     slices    a, b = Split(x)       both lie in x
//     in-place  y = Relu(x)           y takes over x's bytes where x dies; of several inputs the one that is freest
//               s = Add(s, x)         in a Loop: what is carried on takes the place of what came, and so does the
//               result of
//                                     a branch that of its If
//               y = MaxPool(x)        the front of them, but only where that lowers the peak: what is left of x's place
//                                     is a step in the shape, and steps are hard to pack
//     parts     y = Concat(a, b)      both are made where y will be; the largest are asked first
//
// Aliases can only lower the sum of bytes alive, at every step: a shared byte counts once. So each is taken that can be
// had; where two exclude one another (a part of two wholes, a slice that is to be a part), the order above and the
// bytes decide.
//
// Sources: in-place and views as in Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost", section 3;
// shared storage for concatenations as in Pleiss et al. 2017, "Memory-Efficient Implementation of DenseNets", here for
// any Concat with one outer row and without recomputing.
#include "planner/passes/pass_alias.h"

#include <stdlib.h>

#include "core/base/host_alloc.h"
#include "planner/passes/alias_classes.h"

typedef struct candidate {
    const tide_alias_fact *fact;
    uint32_t in, out; ///< items
} candidate;

typedef struct pass {
    tide__alias_classes classes;
    candidate *list; ///< [n] what this pass could do, by fact
    size_t n;
    size_t n_done;
} pass;

static bool is_wanted(tide_pass which, const tide_alias_fact *f) {
    switch (which) {
    case TIDE_PASS_VIEWS:
        return f->alias.kind == TIDE_OP_ALIAS_VIEW;
    case TIDE_PASS_SLICES:
        return f->alias.kind == TIDE_OP_ALIAS_SLICE;
    case TIDE_PASS_IN_PLACE:
        // Views are the other pass's, on or off.
        return (f->may_overwrite && f->alias.kind != TIDE_OP_ALIAS_VIEW) || f->alias.kind == TIDE_OP_ALIAS_NEXT;
    case TIDE_PASS_PARTS:
        return f->alias.kind == TIDE_OP_ALIAS_PART;
    case TIDE_PASS_ORDER:
    case TIDE_PASS_RECOMPUTE:
    case TIDE_N_PASSES:
        break;
    }
    return false;
}

static tide_status gather(pass *p, tide_pass which, tide_error *err) {
    const tide_alias_facts *facts = &p->classes.facts;
    TIDE_TRY(TIDE_NEW(&p->list, facts->n + 1, err, "for %zu candidates", facts->n));
    for (size_t k = 0; k < facts->n; k++) {
        const tide_alias_fact *f = &facts->list[k];
        const uint32_t in = p->classes.item_of[f->in_value], out = p->classes.item_of[f->out_value];
        if (in != TIDE_NO_INDEX && out != TIDE_NO_INDEX && is_wanted(which, f))
            p->list[p->n++] = (candidate){f, in, out};
    }
    return TIDE_OK;
}

static tide_status join(pass *p, tide_alias_kind kind, uint32_t i, uint32_t of, uint64_t offset_bytes, bool *done,
                        tide_error *err) {
    const tide__alias_wish wish = {kind, i, of, offset_bytes};
    TIDE_TRY(tide__alias_classes_join(&p->classes, &wish, done, err));
    p->n_done += *done;
    return TIDE_OK;
}

/// Views and slices: outputs inside inputs, in step order.
static tide_status run_inside(pass *p, tide_alias_kind kind, tide_error *err) {
    bool unused;
    for (size_t k = 0; k < p->n; k++) {
        const candidate *c = &p->list[k];
        TIDE_TRY(join(p, kind, c->out, c->in, c->fact->alias.offset_bytes, &unused, err));
    }
    return TIDE_OK;
}

// ---- parts: the largest first ----

static int compare_parts(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->fact->bytes != y->fact->bytes) return x->fact->bytes > y->fact->bytes ? -1 : 1;
    return (x->fact > y->fact) - (x->fact < y->fact); // by step, then input
}

static tide_status run_parts(pass *p, tide_error *err) {
    bool unused;
    qsort(p->list, p->n, sizeof *p->list, compare_parts);
    for (size_t k = 0; k < p->n; k++) {
        const candidate *c = &p->list[k];
        TIDE_TRY(join(p, TIDE_ALIAS_PART, c->in, c->out, c->fact->alias.offset_bytes, &unused, err));
    }
    return TIDE_OK;
}

// ---- in place: one input of each output ----

/// Better first: an input that fills its class, so that the output can still become part of something else; then the
/// one that has been there longer: the branch that joins it comes and goes, and the long life stays in one place.
static bool is_better(const pass *p, const candidate *a, const candidate *b) {
    const tide_lifetime *items = p->classes.lt->items;
    const bool a_fills = items[p->classes.root[a->in]].size_bytes == items[a->in].size_bytes;
    const bool b_fills = items[p->classes.root[b->in]].size_bytes == items[b->in].size_bytes;
    if (a_fills != b_fills) return a_fills;
    return items[a->in].begin_step < items[b->in].begin_step;
}

/// Candidates [from, to) write the same output: the best one that can be had.
static tide_status run_output(pass *p, size_t from, size_t to, tide_error *err) {
    bool done = false;
    for (size_t k = from; k < to && !done; k++) {
        size_t best = k;
        for (size_t j = k + 1; j < to; j++) best = is_better(p, &p->list[j], &p->list[best]) ? j : best;
        const candidate c = p->list[best];
        p->list[best] = p->list[k];
        const bool is_next = c.fact->alias.kind == TIDE_OP_ALIAS_NEXT; // the region's own value stays where it is
        TIDE_TRY(join(p, TIDE_ALIAS_IN_PLACE, is_next ? c.in : c.out, is_next ? c.out : c.in, 0, &done, err));
    }
    return TIDE_OK;
}

static uint64_t bytes_of(const pass *p, uint32_t i) { return p->classes.lt->items[i].size_bytes; }

static bool shrinks(const pass *p, const candidate *c) { return bytes_of(p, c->out) < bytes_of(p, c->in); }

/// The peak that is left when everything is had that may still be: outputs that shrink, and Concat's parts, each in the
/// step that makes it. `live` is bytes alive at each step now.
static uint64_t hoped_peak(const pass *p, const uint64_t *live) {
    const tide_alias_facts *facts = &p->classes.facts;
    uint64_t peak = 0;
    for (size_t s = 0; s < facts->n_steps; s++) {
        uint64_t less = 0;
        for (size_t k = facts->first[s]; k < facts->first[s + 1]; k++) {
            const tide_alias_fact *f = &facts->list[k];
            const uint32_t in = p->classes.item_of[f->in_value], out = p->classes.item_of[f->out_value];
            if (in == TIDE_NO_INDEX || out == TIDE_NO_INDEX || p->classes.root[in] == p->classes.root[out]) continue;
            const bool hoped =
                f->alias.kind == TIDE_OP_ALIAS_PART || (f->may_overwrite && bytes_of(p, out) < bytes_of(p, in));
            if (hoped) less += f->bytes;
        }
        const uint64_t left = less < live[s] ? live[s] - less : 0;
        if (left > peak) peak = left;
    }
    return peak;
}

static tide_status run_shrinking(pass *p, tide_error *err) {
    uint64_t *live;
    TIDE_TRY(tide__alias_live_bytes(p->classes.lt, &live, err));
    const uint64_t peak = hoped_peak(p, live);
    tide_status st = TIDE_OK;
    bool unused;
    for (size_t k = 0; k < p->n && st == TIDE_OK; k++) {
        const candidate *c = &p->list[k];
        if (shrinks(p, c) && live[c->fact->step] > peak)
            st = join(p, TIDE_ALIAS_IN_PLACE, c->out, c->in, 0, &unused, err);
    }
    tide_host_free(live);
    return st;
}

static tide_status run_in_place(pass *p, tide_error *err) {
    bool any_shrinks = false;
    for (size_t from = 0, to; from < p->n; from = to) {
        for (to = from + 1; to < p->n && p->list[to].out == p->list[from].out;) to++;
        if (shrinks(p, &p->list[from])) {
            any_shrinks = true; // such an operator has one input to write over
        } else {
            TIDE_TRY(run_output(p, from, to, err));
        }
    }
    return any_shrinks ? run_shrinking(p, err) : TIDE_OK;
}

// ---- entry points ----

static tide_status run(pass *p, tide_pass which, tide_error *err) {
    TIDE_TRY(gather(p, which, err));
    switch (which) {
    case TIDE_PASS_VIEWS:
        return run_inside(p, TIDE_ALIAS_VIEW, err);
    case TIDE_PASS_SLICES:
        return run_inside(p, TIDE_ALIAS_SLICE, err);
    case TIDE_PASS_IN_PLACE:
        return run_in_place(p, err);
    case TIDE_PASS_PARTS:
        return run_parts(p, err);
    case TIDE_PASS_ORDER:
    case TIDE_PASS_RECOMPUTE:
    case TIDE_N_PASSES:
        break;
    }
    return TIDE_FAIL(err, TIDE_ERR_INVALID, "pass '%s' makes no aliases", tide_pass_name(which));
}

/// tide_pass_alias, but only what the operators allow at other sizes too: `others`, [n_others].
static tide_status alias_at_points(const tide_program *program, const tide_alias_facts *others, size_t n_others,
                                   tide_pass which, tide_lifetimes *lt, size_t *n, tide_error *err) {
    pass p = {0};
    TIDE_TRY(tide__alias_classes_init(&p.classes, program, others, n_others, lt, err));
    const tide_status st = run(&p, which, err);
    tide_host_free(p.list);
    tide__alias_classes_deinit(&p.classes);
    if (n != NULL) *n = p.n_done;
    return st;
}

tide_status tide_pass_alias(const tide_program *program, tide_pass which, tide_lifetimes *lt, size_t *n,
                            tide_error *err) {
    return alias_at_points(program, NULL, 0, which, lt, n, err);
}

// ---- pass after pass over a table, each tried on a copy ----

/// The program whose aliases are found.
typedef struct where {
    const tide_program *program;
    const tide_alias_facts *others; ///< [n_others] the same program at other sizes
    size_t n_others;
} where;

/// On success *lt and *bytes are those with the pass, or as they were.
static tide_status run_one(const where *w, tide_pass which, tide_lifetimes *lt, uint64_t *bytes, tide_pass_gain *gain,
                           tide_error *err) {
    tide_lifetimes with;
    size_t n;
    uint64_t after;
    *gain = (tide_pass_gain){.ran = true, .before_bytes = *bytes, .after_bytes = *bytes};
    TIDE_TRY(tide_lifetimes_copy(lt, &with, err));
    tide_status st = alias_at_points(w->program, w->others, w->n_others, which, &with, &n, err);
    if (st == TIDE_OK) st = tide_lower_bound(&with, &after, NULL, err);
    if (st != TIDE_OK || after > *bytes) {
        tide_lifetimes_deinit(&with);
        return st;
    }
    tide_lifetimes_deinit(lt);
    *lt = with;
    *bytes = gain->after_bytes = after;
    gain->n = n;
    return TIDE_OK;
}

static tide_status run_all(const where *w, const tide_pass_options *opt, tide_pass_gain *gains, tide_lifetimes *lt,
                           uint64_t *bytes, tide_error *err) {
    static const tide_pass passes[] = {TIDE_PASS_VIEWS, TIDE_PASS_SLICES, TIDE_PASS_IN_PLACE, TIDE_PASS_PARTS};
    for (size_t k = 0; k < sizeof passes / sizeof passes[0]; k++) {
        tide_pass_gain unused;
        if (opt->off[passes[k]]) continue;
        TIDE_TRY(run_one(w, passes[k], lt, bytes, gains != NULL ? &gains[passes[k]] : &unused, err));
    }
    return TIDE_OK;
}

tide_status tide__alias_passes_run(const tide_program *program, const tide_pass_options *opt, tide_pass_gain *gains,
                                   tide_lifetimes *out, uint64_t *bare_bytes, uint64_t *bytes, tide_error *err) {
    const where w = {.program = program};
    TIDE_TRY(tide_liveness(program, opt->align_bytes, out, err));
    tide_status st = tide_lower_bound(out, bytes, NULL, err);
    if (bare_bytes != NULL) *bare_bytes = *bytes;
    if (st == TIDE_OK) st = run_all(&w, opt, gains, out, bytes, err);
    if (st != TIDE_OK) tide_lifetimes_deinit(out);
    return st;
}

tide_status tide_passes_at_points(const tide_program *program, const tide_alias_facts *others, size_t n_others,
                                  const tide_pass_options *opt, tide_lifetimes *lt, tide_error *err) {
    const where w = {.program = program, .others = others, .n_others = n_others};
    uint64_t bytes;
    TIDE_TRY(tide_lower_bound(lt, &bytes, NULL, err));
    return run_all(&w, opt, NULL, lt, &bytes, err);
}
