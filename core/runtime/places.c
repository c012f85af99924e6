// SPDX-License-Identifier: MIT
//
// Needs of a program and places in a memory plan. See places.h.
#include "core/runtime/places.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/base/log.h"
#include "core/base/map.h"
#include "core/base/text.h"
#include "core/ops/ops.h"
#include "core/runtime/value_operand.h"

// ---- needs ----

static void note_step(const tide_program *p, int64_t step_i, tide__need *needs) {
    const tide_node *node = &p->graph->nodes[p->steps[step_i].node];
    for (size_t k = 0; k < node->n_inputs; k++) {
        if (node->inputs[k] != TIDE_NO_VALUE) needs[node->inputs[k]].last_step = step_i;
    }
    for (size_t k = 0; k < node->n_outputs; k++) {
        if (node->outputs[k] == TIDE_NO_VALUE) continue;
        tide__need *need = &needs[node->outputs[k]];
        TIDE_ASSERT(need->birth_step < 0); // each value is made once
        need->birth_step = need->last_step = step_i;
        const tide_value *value = &p->graph->values[node->outputs[k]];
        need->bounded = value->is_bounded;
        need->dynamic = value->is_dynamic && !value->is_bounded;
        need->intermediate = !need->dynamic;
    }
}

tide_status tide__needs_of(const tide_program *p, tide__need *needs, tide_error *err) {
    const tide_graph *g = p->graph;
    for (size_t v = 0; v < g->n_values; v++) needs[v] = (tide__need){.birth_step = -1, .last_step = -1};
    for (size_t i = 0; i < p->n_steps; i++) note_step(p, (int64_t)i, needs);
    for (size_t i = 0; i < g->n_outputs; i++) {
        needs[g->outputs[i]].intermediate = false;
        needs[g->outputs[i]].last_step = (int64_t)p->n_steps;
    }
    for (uint32_t v = 0; v < g->n_values; v++) {
        if (needs[v].birth_step < 0 || needs[v].dynamic || g->values[v].constant != NULL) continue;
        tide_operand op;
        TIDE_TRY(tide__value_most(g, v, &op, err));
        needs[v].size_bytes = op.size_bytes;
    }
    return TIDE_OK;
}

void tide__needs_leave(const tide_program *p, const tide_memory_plan *plan, tide__need *needs) {
    for (size_t i = 0; i < plan->lifetimes.n_dynamic; i++) {
        const uint32_t v = tide_graph_find_value(p->graph, plan->lifetimes.dynamic[i]);
        if (v == TIDE_NO_VALUE || !needs[v].bounded) continue;
        needs[v].bounded = needs[v].intermediate = false;
        needs[v].dynamic = true;
        needs[v].size_bytes = 0;
    }
}

// ---- entries by name ----

#define NO_ENTRY SIZE_MAX

typedef struct finder {
    const tide_program *p;
    const tide__need *needs;
    const tide_memory_plan *plan;
    tide_device device;
    uint64_t buffer_bytes; ///< of the plan's Workspace buffer on that device: the one buffer of a run
    tide_strmap entries;   ///< lifetime name -> index in the plan
    tide_strmap taken;     ///< names of values and of the scratch seen so far
} finder;

static tide_status index_entries(finder *f, tide_error *err) {
    if (f->plan->lifetimes.n > 0 && f->plan->offsets == NULL)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "memory plan '%s' has no offsets", f->plan->strategy);
    for (size_t i = 0; i < f->plan->lifetimes.n; i++) {
        if (tide_strmap_put(&f->entries, f->plan->lifetimes.items[i].name, i) != TIDE_OK)
            return TIDE_NO_MEMORY(err, "for %zu plan entries", f->plan->lifetimes.n);
    }
    const tide_graph *g = f->p->graph;
    for (size_t v = 0; v < g->n_values; v++) {
        if (tide_strmap_put(&f->taken, g->values[v].name, v) != TIDE_OK)
            return TIDE_NO_MEMORY(err, "for %zu names", g->n_values);
    }
    return TIDE_OK;
}

static size_t find_entry(const finder *f, const char *name) {
    uint64_t i;
    return tide_strmap_get(&f->entries, name, &i) ? (size_t)i : NO_ENTRY;
}

// ---- the strict rule ----

/// A value or scratch that needs a place: its name for messages, and its numbers.
typedef struct asker {
    const tide_node *node;
    char what[160]; ///< "port 0 (tensor 'x')", "scratch"
    uint64_t size_bytes;
    uint64_t align_bytes; ///< what kernels count on
    int64_t birth_step, last_step;
} asker;

static tide_status check_life(const asker *a, const tide_memory_plan *plan, size_t entry, tide_error *err) {
    const tide_lifetime *lt = &plan->lifetimes.items[entry];
    if (lt->begin_step <= a->birth_step && a->last_step < lt->end_step) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_RUNTIME,
                     "node '%s' %s: needed in steps %" PRId64 " to %" PRId64 ", but plan '%s' keeps its place only in "
                     "%" PRId64 " to %" PRId64 ": the plan was made for another program",
                     a->node->name, a->what, a->birth_step, a->last_step, plan->strategy, lt->begin_step,
                     lt->end_step - 1);
}

static tide_status check_device(const asker *a, const tide_memory_plan *plan, size_t entry, tide_device device,
                                tide_error *err) {
    const tide_lifetime *lt = &plan->lifetimes.items[entry];
    if (tide_device_equal(lt->device, device)) return TIDE_OK;
    char there[16], here[16];
    return TIDE_FAIL(err, TIDE_ERR_RUNTIME,
                     "node '%s' %s: needs %" PRIu64 " B on %s, but plan '%s' has its entry on %s", a->node->name,
                     a->what, a->size_bytes, tide_device_format(device, here, sizeof here), plan->strategy,
                     tide_device_format(lt->device, there, sizeof there));
}

static tide_status check_kind(const asker *a, const tide_memory_plan *plan, size_t entry, tide_error *err) {
    const tide_lifetime *lt = &plan->lifetimes.items[entry];
    if (lt->kind == TIDE_KIND_WORKSPACE) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_RUNTIME,
                     "node '%s' %s: needs %" PRIu64 " B of kind %s, but its entry in plan '%s' is of kind %s: its "
                     "offset belongs to another buffer",
                     a->node->name, a->what, a->size_bytes, tide_memory_kind_name(TIDE_KIND_WORKSPACE), plan->strategy,
                     tide_memory_kind_name(lt->kind));
}

/// The offset that the plan gives an alias must be the one that follows from its target.
static tide_status check_alias(const asker *a, const tide_memory_plan *plan, size_t entry, tide_error *err) {
    const tide_lifetime *lt = &plan->lifetimes.items[entry];
    if (lt->alias == TIDE_ALIAS_NONE) return TIDE_OK;
    if (lt->alias_of >= plan->lifetimes.n)
        return TIDE_FAIL(err, TIDE_ERR_RUNTIME,
                         "node '%s' %s: plan '%s' has it inside entry %" PRIu32 ", and there are %zu entries",
                         a->node->name, a->what, plan->strategy, lt->alias_of, plan->lifetimes.n);
    const tide_lifetime *of = &plan->lifetimes.items[lt->alias_of];
    const uint64_t there = plan->offsets[lt->alias_of], here = plan->offsets[entry];
    if (there <= here && here - there == lt->alias_offset_bytes && lt->size_bytes <= of->size_bytes &&
        lt->alias_offset_bytes <= of->size_bytes - lt->size_bytes)
        return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_RUNTIME,
                     "node '%s' %s: plan '%s' has its %" PRIu64 " B %" PRIu64 " B inside '%s', which has %" PRIu64
                     " B at offset %" PRIu64 ", but puts them at offset %" PRIu64,
                     a->node->name, a->what, plan->strategy, lt->size_bytes, lt->alias_offset_bytes, of->name,
                     of->size_bytes, there, here);
}

/// The alignment of an alias follows from its place in its target; what kernels need of it is the same.
static uint64_t wanted_align(const tide_lifetime *lt) {
    enum { ALIAS_ALIGN = 64 };
    return lt->alias != TIDE_ALIAS_NONE && lt->align_bytes > ALIAS_ALIGN ? ALIAS_ALIGN : lt->align_bytes;
}

static tide_status check_place(const finder *f, const asker *a, size_t entry, tide_error *err) {
    const tide_memory_plan *plan = f->plan;
    const tide_lifetime *lt = &plan->lifetimes.items[entry];
    const uint64_t offset = plan->offsets[entry], align = wanted_align(lt);
    TIDE_TRY(check_device(a, plan, entry, f->device, err));
    TIDE_TRY(check_kind(a, plan, entry, err));
    if (offset == TIDE_NO_OFFSET)
        return TIDE_FAIL(err, TIDE_ERR_RUNTIME,
                         "node '%s' %s: needs %" PRIu64
                         " B, but its entry in plan '%s' has no offset (buffer of %" PRIu64 " B)",
                         a->node->name, a->what, a->size_bytes, plan->strategy, f->buffer_bytes);
    if (lt->size_bytes < a->size_bytes)
        return TIDE_FAIL(err, TIDE_ERR_NO_SPACE,
                         "node '%s' %s: needs %" PRIu64 " B, but its entry in plan '%s' has %" PRIu64 " B at offset "
                         "%" PRIu64 " (buffer of %" PRIu64 " B)",
                         a->node->name, a->what, a->size_bytes, plan->strategy, lt->size_bytes, offset,
                         f->buffer_bytes);
    // Compared without adding, so that a huge offset cannot wrap around into the buffer.
    if (offset > f->buffer_bytes || lt->size_bytes > f->buffer_bytes - offset)
        return TIDE_FAIL(err, TIDE_ERR_NO_SPACE,
                         "node '%s' %s: needs %" PRIu64 " B, but plan '%s' puts %" PRIu64 " B at offset %" PRIu64
                         ", outside its buffer of %" PRIu64 " B",
                         a->node->name, a->what, a->size_bytes, plan->strategy, lt->size_bytes, offset,
                         f->buffer_bytes);
    if (offset % align != 0 || offset % a->align_bytes != 0)
        return TIDE_FAIL(err, TIDE_ERR_RUNTIME,
                         "node '%s' %s: needs %" PRIu64 " B at a multiple of %" PRIu64 " B, but plan '%s' puts it at "
                         "offset %" PRIu64 " (buffer of %" PRIu64 " B)",
                         a->node->name, a->what, a->size_bytes, align > a->align_bytes ? align : a->align_bytes,
                         plan->strategy, offset, f->buffer_bytes);
    TIDE_TRY(check_alias(a, plan, entry, err));
    return check_life(a, plan, entry, err);
}

/// The slot: the entry's bytes rounded up, cut at the end of the buffer; of an alias just the bytes that are asked for,
/// fewer than the entry's where the plan is for larger sizes too.
static tide__place place_of(const finder *f, const asker *a, size_t entry) {
    const tide_lifetime *lt = &f->plan->lifetimes.items[entry];
    const uint64_t offset = f->plan->offsets[entry];
    const uint64_t aligned = lt->alias != TIDE_ALIAS_NONE ? a->size_bytes : tide_lifetime_aligned_bytes(lt);
    const uint64_t left = f->buffer_bytes - offset;
    TIDE_ASSERT(offset <= f->buffer_bytes && a->size_bytes <= left && a->size_bytes <= aligned);
    return (tide__place){.offset_bytes = offset, .slot_bytes = aligned < left ? aligned : left};
}

static tide_status find_place(const finder *f, const asker *a, size_t entry, tide__place *out, tide_error *err) {
    tide_error own;
    tide_error *e = err != NULL ? err : &own; // the log line is written also when the caller wants no error
    tide_status st = TIDE_OK;
    if (entry == NO_ENTRY)
        st = TIDE_FAIL(e, TIDE_ERR_RUNTIME,
                       "strict rule: node '%s' %s: needs %" PRIu64 " B and has no entry in plan '%s' (%zu entries, "
                       "buffer of %" PRIu64 " B)",
                       a->node->name, a->what, a->size_bytes, f->plan->strategy, f->plan->lifetimes.n, f->buffer_bytes);
    else
        st = check_place(f, a, entry, e);
    if (st != TIDE_OK) {
        tide_log(TIDE_LOG_ERROR, "memory plan: %s", e->msg);
        return st;
    }
    *out = place_of(f, a, entry);
    return TIDE_OK;
}

static tide_status find_output(const finder *f, const tide_node *node, size_t port, tide__place *values,
                               tide_error *err) {
    const uint32_t v = node->outputs[port];
    if (v == TIDE_NO_VALUE || !f->needs[v].intermediate || f->needs[v].size_bytes == 0) return TIDE_OK;
    const tide_value *value = &f->p->graph->values[v];
    TIDE_ASSERT(f->needs[v].birth_step >= 0 && f->needs[v].birth_step <= f->needs[v].last_step);
    asker a = {.node = node,
               .size_bytes = f->needs[v].size_bytes,
               .align_bytes = tide_dtype_size(value->dtype),
               .birth_step = f->needs[v].birth_step,
               .last_step = f->needs[v].last_step};
    snprintf(a.what, sizeof a.what, "port %zu (tensor '%.120s')", port, value->name);
    return find_place(f, &a, find_entry(f, value->name), &values[v], err);
}

/// "<node>.scratch" or, where that name is taken (nodes may share a name), "<node>.scratch.2", ".3", … in step order.
static tide_status make_scratch_name(finder *f, const tide_node *node, tide_text *out, tide_error *err) {
    tide_text_addf(out, "%s.scratch", node->name);
    for (unsigned i = 2; !out->failed && tide_strmap_get(&f->taken, tide_text_str(out), NULL); i++) {
        out->len = 0;
        tide_text_addf(out, "%s.scratch.%u", node->name, i);
    }
    if (out->failed || tide_strmap_put(&f->taken, tide_text_str(out), 0) != TIDE_OK)
        return TIDE_NO_MEMORY(err, "for the name of the scratch of '%s'", node->name);
    return TIDE_OK;
}

static tide_status find_scratch(finder *f, size_t step_i, tide__place *scratch, tide_error *err) {
    const tide_program_step *step = &f->p->steps[step_i];
    if (step->kernel.workspace_bytes == 0) return TIDE_OK;
    const asker a = {.node = step->kernel.node,
                     .what = "scratch",
                     .size_bytes = step->kernel.workspace_bytes,
                     .align_bytes = TIDE_WORKSPACE_ALIGN,
                     .birth_step = (int64_t)step_i,
                     .last_step = (int64_t)step_i};
    tide_text name = {0};
    tide_status st = make_scratch_name(f, step->kernel.node, &name, err);
    // Without an entry the scratch of a step that is sized while running is taken by the step.
    const size_t entry = find_entry(f, st == TIDE_OK ? tide_text_str(&name) : "");
    const bool may_miss = tide_node_is_dynamic(f->p->graph, step->kernel.node);
    if (st == TIDE_OK && !(may_miss && entry == NO_ENTRY)) st = find_place(f, &a, entry, &scratch[step_i], err);
    tide_text_deinit(&name);
    return st;
}

static tide_status find_all(finder *f, tide__place *values, tide__place *scratch, tide_error *err) {
    for (size_t i = 0; i < f->p->n_steps; i++) {
        const tide_node *node = f->p->steps[i].kernel.node;
        for (size_t port = 0; port < node->n_outputs; port++) TIDE_TRY(find_output(f, node, port, values, err));
        TIDE_TRY(find_scratch(f, i, scratch, err));
    }
    return TIDE_OK;
}

tide_status tide__places_find(const tide_program *p, const tide__need *needs, const tide_memory_plan *plan,
                              tide_device device, tide__place *values, tide__place *scratch, tide_error *err) {
    const tide__place nowhere = {.offset_bytes = TIDE_NO_OFFSET};
    for (size_t v = 0; v < p->graph->n_values; v++) values[v] = nowhere;
    for (size_t i = 0; i < p->n_steps; i++) scratch[i] = nowhere;
    const tide_plan_buffer *buffer = tide_memory_plan_buffer(plan, device, TIDE_KIND_WORKSPACE);
    finder f = {
        .p = p, .needs = needs, .plan = plan, .device = device, .buffer_bytes = buffer != NULL ? buffer->bytes : 0};
    tide_status st = index_entries(&f, err);
    if (st == TIDE_OK) st = find_all(&f, values, scratch, err);
    tide_strmap_deinit(&f.entries);
    tide_strmap_deinit(&f.taken);
    return st;
}
