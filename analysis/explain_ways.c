// SPDX-License-Identifier: MIT
//
// explain, how to get to where a storage is away, or smaller, at the peak. Every way is an edit of what-if that a
// runtime could follow, and was planned: the model's table is made again with it.
//
//     for one storage    recompute one of those that are alive of it; let its operator overwrite an input, where that
//                        is allowed (alias_facts.h)
//     for all            passes that show nothing, half the batch, half of another open extent: each planned once and
//                        kept, and a way for a storage that takes less at the peak of that plan than it does now
#include "analysis/explain_internal.h"

#include <stdio.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "planner/passes.h"

enum { MAX_RECOMPUTES = 2, LARGE_TABLE = 50000 };

typedef struct asker {
    tide_subject *s;
    const tide_strategy *strategy;
    tide_strategy_options options;
    tide__reporter *reporter;
    tide_explanation *e;
    size_t cap;
    tide_error *err;
} asker;

static tide_status add_way(asker *a, const tide_way *way) {
    TIDE_TRY(TIDE_GROW(&a->e->ways, &a->cap, a->e->n_ways + 1, a->err, "to explain what is held"));
    a->e->ways[a->e->n_ways++] = *way;
    return TIDE_OK;
}

// ---- one edit, planned ----

/// The table with one edit and its plan. *plan NULL: it cannot be made; `why` says why.
static tide_status try_edit(asker *a, const tide_edit *edit, tide_memory_plan **plan, tide_error *why) {
    tide_lifetimes lt = {0};
    *plan = NULL;
    TIDE_TRY(tide__report_share(a->reporter, 0.9, a->err));
    tide_status st = a->s->model.retable(a->s->model.ctx, edit, 1, &lt, why);
    if (st == TIDE_OK) st = tide_plan_make(&lt, a->strategy, &a->options, plan, why);
    tide_lifetimes_deinit(&lt);
    return st == TIDE_ERR_NOMEM ? TIDE_NO_MEMORY(a->err, "to explain what is held") : TIDE_OK;
}

// ---- for all ----

/// What the storage of the tensor takes at the peak of its buffer; 0: it is not alive there, or not in the table. And
/// how many lie in it.
static tide_status bytes_at_peak(const tide_memory_plan *plan, const char *name, uint64_t *bytes, uint64_t *n_inside,
                                 tide_error *err) {
    tide_peaks peaks;
    uint32_t i;
    *bytes = *n_inside = 0;
    if (tide__whatif_find(&plan->lifetimes, name, &i, NULL) != TIDE_OK) return TIDE_OK;
    const tide_lifetimes *lt = &plan->lifetimes;
    const uint32_t root = tide_lifetimes_root(lt, i, NULL);
    for (uint32_t k = 0; k < lt->n; k++) *n_inside += k != root && tide_lifetimes_root(lt, k, NULL) == root;
    TIDE_TRY(tide_peaks_find(lt, &peaks, err));
    for (size_t b = 0; b < peaks.n; b++) {
        for (size_t k = 0; k < peaks.list[b].n; k++) {
            const tide_peak_entry *x = &peaks.list[b].entries[k];
            if (!x->inside && tide_lifetimes_root(lt, x->item, NULL) == root) *bytes += x->bytes;
        }
    }
    tide_peaks_deinit(&peaks);
    return TIDE_OK;
}

static tide_status keep_common(asker *a, const tide_edit *edit) {
    tide__common_ways *c = &a->s->ways;
    tide_memory_plan *plan;
    tide_error own = TIDE_ERROR_INIT;
    TIDE_TRY(try_edit(a, edit, &plan, &own));
    if (plan == NULL) return TIDE_OK;
    tide_status st = TIDE_OK;
    if (plan->bytes < a->s->plan->bytes)
        st = TIDE_GROW(&c->list, &c->cap, c->n + 1, a->err, "to explain what is held");
    else
        st = TIDE_ERR_NOT_FOUND;
    if (st == TIDE_OK) {
        c->list[c->n++] = (tide__common_way){.edit = *edit, .plan = plan};
        return TIDE_OK;
    }
    tide_memory_plan_destroy(plan);
    return st == TIDE_ERR_NOT_FOUND ? TIDE_OK : st;
}

static tide_status keep_passes(asker *a) {
    for (int pass = 0; pass < TIDE_N_PASSES; pass++) {
        tide_edit edit = {.kind = TIDE_EDIT_PASS};
        if (tide__shows_pass(&a->s->plan->lifetimes, (tide_pass)pass)) continue;
        const char *name = tide_pass_name((tide_pass)pass);
        memcpy(edit.text, name, strlen(name) + 1);
        TIDE_TRY(keep_common(a, &edit));
    }
    return TIDE_OK;
}

static tide_status keep_batch(asker *a) {
    const tide_whatif *m = &a->s->model;
    uint64_t batch = 0;
    tide_error own = TIDE_ERROR_INIT;
    if (m->batch == NULL) return TIDE_OK;
    const tide_status st = m->batch(m->ctx, NULL, 0, &batch, &own);
    if (st == TIDE_ERR_NOMEM) return TIDE_NO_MEMORY(a->err, "to explain what is held");
    if (st != TIDE_OK || batch < 2) return TIDE_OK;
    return keep_common(a, &(tide_edit){.kind = TIDE_EDIT_BATCH, .bytes = batch / 2});
}

static tide_status keep_extents(asker *a) {
    tide_edit edits[TIDE_MAX_EXTENTS];
    size_t n;
    TIDE_TRY(tide__half_extents(&a->s->model, edits, &n, a->err));
    for (size_t i = 0; i < n; i++) TIDE_TRY(keep_common(a, &edits[i]));
    return TIDE_OK;
}

static tide_status make_common(asker *a) {
    if (a->s->ways.is_made) return TIDE_OK;
    tide__common_ways_deinit(&a->s->ways);
    TIDE_TRY(keep_passes(a));
    TIDE_TRY(keep_batch(a));
    TIDE_TRY(keep_extents(a));
    a->s->ways.is_made = true;
    return TIDE_OK;
}

void tide__common_ways_deinit(tide__common_ways *c) {
    for (size_t i = 0; i < c->n; i++) tide_memory_plan_destroy(c->list[i].plan);
    tide_host_free(c->list);
    *c = (tide__common_ways){0};
}

static tide_status add_common(asker *a, size_t without) {
    const tide_without *w = &a->e->without[without];
    for (size_t i = 0; i < a->s->ways.n; i++) {
        const tide__common_way *c = &a->s->ways.list[i];
        uint64_t bytes, n_inside;
        TIDE_TRY(bytes_at_peak(c->plan, w->name, &bytes, &n_inside, a->err));
        if (bytes >= w->bytes && n_inside <= w->n_inside) continue; // nor does it share its bytes with more
        const tide_way way = {.without = without,
                              .edit = c->edit,
                              .plan_bytes = c->plan->bytes,
                              .n_again = c->plan->lifetimes.n_recomputed};
        TIDE_TRY(add_way(a, &way));
    }
    return TIDE_OK;
}

// ---- for one ----

static tide_status try_recompute(asker *a, size_t without, const char *name, bool *found) {
    tide_without *w = &a->e->without[without];
    tide_edit edit = {.kind = TIDE_EDIT_RECOMPUTE};
    tide_memory_plan *plan;
    tide_error why = TIDE_ERROR_INIT;
    if (strlen(name) >= sizeof edit.item) return TIDE_OK;
    memcpy(edit.item, name, strlen(name) + 1);
    TIDE_TRY(try_edit(a, &edit, &plan, &why));
    if (plan == NULL) {
        if (w->why_not[0] == '\0') snprintf(w->why_not, sizeof w->why_not, "%.150s", why.msg);
        return TIDE_OK;
    }
    tide_status st = TIDE_OK;
    *found = plan->bytes < a->s->plan->bytes && tide_edit_keeps_meaning(plan, &edit);
    if (*found) {
        const tide_way way = {
            .without = without, .edit = edit, .plan_bytes = plan->bytes, .n_again = plan->lifetimes.n_recomputed};
        st = add_way(a, &way);
    } else if (w->why_not[0] == '\0') {
        char size[24];
        snprintf(w->why_not, sizeof w->why_not, "with '%.80s' recomputed the plan takes %s", name,
                 tide_format_bytes(plan->bytes, size, sizeof size));
    }
    tide_memory_plan_destroy(plan);
    return st;
}

/// Those alive of the storage, the largest first, until one helps.
static tide_status add_recompute(asker *a, size_t without) {
    const tide_lifetimes *lt = &a->s->plan->lifetimes;
    size_t n = 0;
    bool found = false;
    for (size_t i = 0; i < a->e->live.n && n < MAX_RECOMPUTES && !found; i++) {
        const tide_live_item *x = &a->e->live.items[i];
        if (!tide__can_go(x) || tide_lifetimes_root(lt, (uint32_t)x->id, NULL) != a->e->without[without].storage)
            continue;
        n++;
        TIDE_TRY(try_recompute(a, without, x->site.name, &found));
    }
    return TIDE_OK;
}

static void add_reason(tide_without *w, const char *why) {
    const size_t len = strlen(w->why_not);
    snprintf(w->why_not + len, sizeof w->why_not - len, "%s%.140s", len > 0 ? "; " : "", why);
}

/// The operator allows it: what the plan takes then.
static tide_status try_in_place(asker *a, size_t without, const char *name, const char *other) {
    tide_edit edit = {.kind = TIDE_EDIT_IN_PLACE};
    tide_whatif w = {.plan = a->s->plan, .options = a->options, .edits = &edit, .n = 1};
    tide_memory_plan *plan;
    tide_error own = TIDE_ERROR_INIT;
    char words[160];
    if (strlen(name) >= sizeof edit.item) return TIDE_OK;
    memcpy(edit.item, name, strlen(name) + 1);
    memcpy(edit.other, other, strlen(other) + 1);
    tide_status st = tide_whatif_make(&w, &plan, &own);
    if (st == TIDE_ERR_NOMEM) return TIDE_NO_MEMORY(a->err, "to explain what is held");
    if (st != TIDE_OK) {
        add_reason(&a->e->without[without], own.msg);
        return TIDE_OK;
    }
    if (plan->bytes < a->s->plan->bytes) {
        const tide_way way = {.without = without, .edit = edit, .plan_bytes = plan->bytes};
        st = add_way(a, &way);
    } else {
        char size[24];
        snprintf(words, sizeof words, "over '%.80s' the plan takes %s", other,
                 tide_format_bytes(plan->bytes, size, sizeof size));
        add_reason(&a->e->without[without], words);
    }
    tide_memory_plan_destroy(plan);
    return st;
}

static tide_status add_in_place(asker *a, size_t without) {
    const tide_whatif *m = &a->s->model;
    const tide_live_item *x = &a->e->live.items[a->e->without[without].live];
    tide_in_place found = {0};
    tide_error own = TIDE_ERROR_INIT;
    if (m->in_place == NULL || x->shape.role == TIDE_ROLE_SCRATCH) return TIDE_OK;
    TIDE_TRY(tide__report_share(a->reporter, 0.9, a->err));
    tide_status st = m->in_place(m->ctx, x->site.name, &found, &own);
    if (st == TIDE_OK && found.other[0] != '\0')
        st = try_in_place(a, without, x->site.name, found.other);
    else if (st == TIDE_OK && found.why.len > 0)
        add_reason(&a->e->without[without], tide_text_str(&found.why));
    else if (st != TIDE_ERR_NOMEM)
        st = TIDE_OK;
    tide_text_deinit(&found.why);
    return st == TIDE_ERR_NOMEM ? TIDE_NO_MEMORY(a->err, "to explain what is held") : st;
}

// ---- the whole ----

tide_status tide__add_ways(tide_subject *s, tide__reporter *reporter, tide_explanation *e, tide_error *err) {
    if (s->trace != NULL || s->model.retable == NULL || s->plan->lifetimes.n > LARGE_TABLE || e->n_without == 0)
        return TIDE_OK;
    asker a = {.s = s,
               .strategy = tide__strategy_of_plan(s->plan),
               .options = tide__options_for_many(s, s->plan),
               .reporter = reporter,
               .e = e,
               .err = err};
    TIDE_TRY(make_common(&a));
    for (size_t k = 0; k < e->n_without && k < TIDE_EXPLAIN_WAYS; k++) {
        const size_t before = e->n_ways;
        TIDE_TRY(add_recompute(&a, k));
        TIDE_TRY(add_in_place(&a, k));
        TIDE_TRY(add_common(&a, k));
        e->without[k].is_asked = true;
        e->without[k].has_way = e->n_ways > before;
    }
    return TIDE_OK;
}
