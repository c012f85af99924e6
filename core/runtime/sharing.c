// SPDX-License-Identifier: MIT
//
// One walk over the steps with the list of live values. See sharing.h.
#include "core/runtime/sharing.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"

/// A range of the buffer, half-open.
typedef struct span {
    uint64_t lo, hi;
} span;

typedef struct pair {
    uint32_t a, b;
} pair;

typedef struct walk {
    const tide_program *p;
    const tide__need *needs;
    const tide__place *values, *scratch;
    tide_alias_facts facts;
    uint32_t *alive; ///< [n_alive] values with a place
    size_t n_alive;
    span *kept; ///< [n_kept] of the current output: what its kernel does not write, in rising order
    size_t n_kept, cap_kept;
    pair *pairs; ///< [n_pairs] values that are aliases of each other
    size_t n_pairs, cap_pairs;
} walk;

static bool has_place(const tide__place *p) { return p->offset_bytes != TIDE_NO_OFFSET; }

static span slot_of(const tide__place *p) { return (span){p->offset_bytes, p->offset_bytes + p->slot_bytes}; }

static span meet(span a, span b) { return (span){a.lo > b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi}; }

static const tide_node *node_of(const walk *w, size_t step) { return w->p->steps[step].kernel.node; }

static const char *name_of(const walk *w, uint32_t v) { return w->p->graph->values[v].name; }

// ---- bytes that a kernel does not write ----

static const tide_alias_fact *facts_begin(const walk *w, size_t step) { return w->facts.list + w->facts.first[step]; }
static const tide_alias_fact *facts_end(const walk *w, size_t step) { return w->facts.list + w->facts.first[step + 1]; }

/// Whether the operands of a fact share their bytes as it says: the kernel sees that and copies nothing.
static bool lies_there(const walk *w, const tide_alias_fact *f) {
    const tide__place *in = &w->values[f->in_value], *out = &w->values[f->out_value];
    if (!has_place(in) || !has_place(out)) return false;
    // Where the difference is negative it wraps around to more than any offset.
    if (f->alias.kind == TIDE_OP_ALIAS_PART) return in->offset_bytes - out->offset_bytes == f->alias.offset_bytes;
    return f->alias.kind != TIDE_OP_ALIAS_NONE && out->offset_bytes - in->offset_bytes == f->alias.offset_bytes;
}

/// The bytes that are in both: all of the one inside.
static span shared_bytes(const walk *w, const tide_alias_fact *f) {
    const uint32_t inner = f->alias.kind == TIDE_OP_ALIAS_PART ? f->in_value : f->out_value;
    const uint64_t at = w->values[inner].offset_bytes;
    TIDE_ASSERT(has_place(&w->values[inner]) && f->bytes <= w->needs[inner].size_bytes);
    return (span){at, at + f->bytes};
}

/// Facts of one output come by input, and the parts of a Concat lie in that order: w->kept is sorted.
static tide_status note_kept(walk *w, size_t step, size_t port, tide_error *err) {
    w->n_kept = 0;
    for (const tide_alias_fact *f = facts_begin(w, step); f < facts_end(w, step); f++) {
        if (f->out_i != port || !lies_there(w, f)) continue;
        TIDE_TRY(TIDE_GROW(&w->kept, &w->cap_kept, w->n_kept + 1, err, "for %zu stretches", w->n_kept + 1));
        w->kept[w->n_kept++] = shared_bytes(w, f);
    }
    return TIDE_OK;
}

static bool is_kept(const walk *w, span s) {
    for (size_t i = 0; i < w->n_kept && s.lo < s.hi; i++) {
        if (w->kept[i].lo <= s.lo && s.lo < w->kept[i].hi) s.lo = w->kept[i].hi;
    }
    return s.lo >= s.hi;
}

// ---- the rule ----

/// Every place of `v` among the inputs of the step is one that output 0 may overwrite.
static bool may_overwrite(const walk *w, size_t step, uint32_t v) {
    const tide_node *node = node_of(w, step);
    size_t n_read = 0, n_allowed = 0;
    for (size_t i = 0; i < node->n_inputs; i++) n_read += node->inputs[i] == v;
    for (const tide_alias_fact *f = facts_begin(w, step); f < facts_end(w, step); f++)
        n_allowed += f->in_value == v && f->may_overwrite;
    return n_read > 0 && n_read == n_allowed;
}

/// An output smaller than the input that it overwrites may have no red zone in what the kernel still reads.
static bool has_zone_in(const walk *w, uint32_t out, uint32_t v) {
    const span slot = slot_of(&w->values[out]);
    const uint64_t end = slot.lo + w->needs[out].size_bytes;
    const span read = {w->values[v].offset_bytes, w->values[v].offset_bytes + w->needs[v].size_bytes};
    const span both = meet((span){end, slot.hi}, read);
    return both.lo < both.hi;
}

static bool hands_over(const walk *w, size_t step, size_t port, uint32_t v) {
    const tide__need *need = &w->needs[v];
    if (port != 0 || need->birth_step >= (int64_t)step || need->last_step != (int64_t)step) return false;
    const uint32_t out = node_of(w, step)->outputs[0];
    return w->values[v].offset_bytes == w->values[out].offset_bytes && !has_zone_in(w, out, v) &&
           may_overwrite(w, step, v);
}

/// `out` comes to lie where `v`, which a region makes, gets its next content: nothing reads what `v` is now any more,
/// and at the end of the body the next content is there.
static bool takes_place(const walk *w, size_t step, size_t port, uint32_t v) {
    const tide_alias_fact *next = tide_alias_fact_next(w->p, &w->facts, v, (int64_t)step);
    if (next == NULL || !has_place(&w->values[next->in_value])) return false;
    if (w->values[next->in_value].offset_bytes != w->values[v].offset_bytes) return false;
    if ((int64_t)step != next->last_read) return (int64_t)step > next->last_read;
    const uint32_t out = node_of(w, step)->outputs[port];
    return port == 0 && w->values[v].offset_bytes == w->values[out].offset_bytes && !has_zone_in(w, out, v) &&
           may_overwrite(w, step, v);
}

static tide_status fail_overlap(const walk *w, size_t step, const char *what, const tide__place *written, uint32_t v,
                                tide_error *err) {
    const span a = slot_of(written), b = slot_of(&w->values[v]);
    const tide_node *node = node_of(w, step);
    return TIDE_FAIL(err, TIDE_ERR_RUNTIME,
                     "node '%s' (%s, step %zu) would write %s at bytes %" PRIu64 " to %" PRIu64
                     " of the plan buffer over tensor '%s' at %" PRIu64 " to %" PRIu64 ", which is needed until step "
                     "%" PRId64 ": the operator does not allow that",
                     node->name, node->op_type, step, what, a.lo, a.hi, name_of(w, v), b.lo, b.hi,
                     w->needs[v].last_step);
}

static tide_status add_pair(walk *w, uint32_t a, uint32_t b, tide_error *err) {
    TIDE_ASSERT(a != b);
    TIDE_TRY(TIDE_GROW(&w->pairs, &w->cap_pairs, w->n_pairs + 1, err, "for %zu overlaps", w->n_pairs + 1));
    w->pairs[w->n_pairs++] = (pair){a, b};
    return TIDE_OK;
}

static tide_status check_against(walk *w, size_t step, size_t port, uint32_t out, uint32_t v, tide_error *err) {
    const span both = meet(slot_of(&w->values[out]), slot_of(&w->values[v]));
    if (both.lo >= both.hi || v == out) return TIDE_OK;
    if (!is_kept(w, both) && !hands_over(w, step, port, v) && !takes_place(w, step, port, v)) {
        char what[160];
        snprintf(what, sizeof what, "tensor '%.120s'", name_of(w, out));
        return fail_overlap(w, step, what, &w->values[out], v, err);
    }
    // Two outputs of one step meet twice.
    return w->needs[v].birth_step < (int64_t)step || v < out ? add_pair(w, out, v, err) : TIDE_OK;
}

static tide_status check_output(walk *w, size_t step, size_t port, tide_error *err) {
    const uint32_t out = node_of(w, step)->outputs[port];
    if (out == TIDE_NO_VALUE || !has_place(&w->values[out])) return TIDE_OK;
    TIDE_TRY(note_kept(w, step, port, err));
    for (size_t i = 0; i < w->n_alive; i++) TIDE_TRY(check_against(w, step, port, out, w->alive[i], err));
    return TIDE_OK;
}

static tide_status check_scratch(const walk *w, size_t step, tide_error *err) {
    if (!has_place(&w->scratch[step])) return TIDE_OK;
    for (size_t i = 0; i < w->n_alive; i++) {
        const span both = meet(slot_of(&w->scratch[step]), slot_of(&w->values[w->alive[i]]));
        if (both.lo < both.hi) return fail_overlap(w, step, "its scratch", &w->scratch[step], w->alive[i], err);
    }
    return TIDE_OK;
}

// ---- the walk ----

static void bear(walk *w, size_t step) {
    const tide_node *node = node_of(w, step);
    for (size_t k = 0; k < node->n_outputs; k++) {
        if (node->outputs[k] == TIDE_NO_VALUE || !has_place(&w->values[node->outputs[k]])) continue;
        TIDE_ASSERT(w->n_alive < w->p->graph->n_values && w->needs[node->outputs[k]].birth_step == (int64_t)step);
        w->alive[w->n_alive++] = node->outputs[k];
    }
}

static void bury(walk *w, size_t step) {
    size_t n = 0;
    for (size_t i = 0; i < w->n_alive; i++) {
        if (w->needs[w->alive[i]].last_step > (int64_t)step) w->alive[n++] = w->alive[i];
    }
    w->n_alive = n;
}

static void count_copies(const walk *w, tide__sharing *out) {
    for (size_t i = 0; i < w->facts.n; i++) {
        const tide_alias_fact *f = &w->facts.list[i];
        if (f->alias.kind == TIDE_OP_ALIAS_NONE || f->alias.kind == TIDE_OP_ALIAS_NEXT) continue;
        out->naive_copied_bytes += f->bytes;
        if (w->values == NULL || !lies_there(w, f)) out->copied_bytes += f->bytes;
    }
}

static tide_status walk_steps(walk *w, tide_error *err) {
    for (size_t step = 0; step < w->p->n_steps; step++) {
        bear(w, step);
        for (size_t port = 0; port < node_of(w, step)->n_outputs; port++) TIDE_TRY(check_output(w, step, port, err));
        TIDE_TRY(check_scratch(w, step, err));
        bury(w, step);
    }
    TIDE_ASSERT(w->n_alive == 0); // what has a place dies in the run
    return TIDE_OK;
}

// ---- aliases by value ----

/// Counting sort of both directions of every pair.
static tide_status gather_relatives(const walk *w, tide__sharing *out, tide_error *err) {
    const size_t n = w->p->graph->n_values;
    out->first = tide_host_calloc(n + 2, sizeof *out->first);
    out->list = tide_host_calloc(2 * w->n_pairs + 1, sizeof *out->list);
    if (out->first == NULL || out->list == NULL || w->n_pairs > UINT32_MAX / 2)
        return TIDE_NO_MEMORY(err, "for %zu overlaps", w->n_pairs);
    // first[v + 2] counts, then first[v + 1] is where the next one of v goes, and in the end where v + 1 begins.
    for (size_t i = 0; i < w->n_pairs; i++) {
        out->first[w->pairs[i].a + 2]++;
        out->first[w->pairs[i].b + 2]++;
    }
    for (size_t v = 2; v < n + 2; v++) out->first[v] += out->first[v - 1];
    for (size_t i = 0; i < w->n_pairs; i++) {
        out->list[out->first[w->pairs[i].a + 1]++] = w->pairs[i].b;
        out->list[out->first[w->pairs[i].b + 1]++] = w->pairs[i].a;
    }
    TIDE_ASSERT(out->first[n] == 2 * w->n_pairs && (n == 0 || out->first[n - 1] <= out->first[n]));
    return TIDE_OK;
}

tide_status tide__sharing_check(const tide_program *p, const tide__need *needs, const tide__place *values,
                                const tide__place *scratch, tide__sharing *out, tide_error *err) {
    walk w = {.p = p, .needs = needs, .values = values, .scratch = scratch};
    tide__sharing s = {0};
    tide_status st;
    TIDE_TRY_OR(done, st, tide_alias_facts_make(p, &w.facts, err));
    w.alive = tide_host_calloc(p->graph->n_values + 1, sizeof *w.alive);
    if (w.alive == NULL) {
        st = TIDE_NO_MEMORY(err, "for %zu values", p->graph->n_values);
        goto done;
    }
    if (values != NULL) TIDE_TRY_OR(done, st, walk_steps(&w, err));
    count_copies(&w, &s);
    st = gather_relatives(&w, &s, err);
done:
    tide_alias_facts_deinit(&w.facts);
    tide_host_free(w.alive);
    tide_host_free(w.kept);
    tide_host_free(w.pairs);
    if (st != TIDE_OK) {
        tide__sharing_deinit(&s);
        return st;
    }
    *out = s;
    return TIDE_OK;
}

void tide__sharing_deinit(tide__sharing *s) {
    tide_host_free(s->first);
    tide_host_free(s->list);
    *s = (tide__sharing){0};
}
