// SPDX-License-Identifier: MIT
//
// liveness, stage 1 of 4: when every tensor of a program is born and when its last user is done with it.
//
// Time is the index of a step in the order of execution. A tensor lives in the half-open interval
// [step that makes it, last step that reads it + 1); one that is never read lives through the step that makes it.
// Graph inputs, graph outputs and weights live through all steps and are never reused (S23-6, X-5).
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/graph/region.h"
#include "core/ops/ops.h"
#include "planner/plan.h"
#include "planner/process_need.h"

#define NO_STEP UINT32_MAX

typedef struct analysis {
    const tide_program *program;
    const tide_graph *graph;
    uint64_t align_bytes;
    int64_t n_steps;    // at least 1: what is persistent lives somewhere even when everything was folded away
    uint32_t *made;     // [n_values] step that makes the value; NO_STEP: none does
    uint32_t *last_use; // [n_values] last step that reads it; NO_STEP: none does
    tide_strmap names;  // every value's name and every name made up here
    tide_lifetimes out;
} analysis;

static const tide_node *node_at(const analysis *a, size_t step) {
    return &a->graph->nodes[a->program->steps[step].node];
}

// ---- makers and readers of values ----

static void note_made(analysis *a) {
    for (uint32_t step = 0; step < a->program->n_steps; step++) {
        const tide_node *node = node_at(a, step);
        for (size_t port = 0; port < node->n_outputs; port++) {
            if (node->outputs[port] != TIDE_NO_VALUE) a->made[node->outputs[port]] = step;
        }
    }
}

/// A value that a step reads must be there by then: fed, constant, or made by an earlier step.
static tide_status check_use(const analysis *a, uint32_t step, uint32_t value_i, tide_error *err) {
    const tide_value *value = &a->graph->values[value_i];
    if (value->is_input || value->constant != NULL) return TIDE_OK;
    if (a->made[value_i] != NO_STEP && a->made[value_i] < step) return TIDE_OK;
    if (a->made[value_i] == NO_STEP)
        return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "node '%s' reads tensor '%s', which nothing makes",
                         node_at(a, step)->name, value->name);
    return TIDE_FAIL(err, TIDE_ERR_INVALID, "step %u, node '%s', reads tensor '%s' before step %u makes it", step,
                     node_at(a, step)->name, value->name, a->made[value_i]);
}

static tide_status note_uses(analysis *a, tide_error *err) {
    for (uint32_t step = 0; step < a->program->n_steps; step++) {
        const tide_node *node = node_at(a, step);
        for (size_t i = 0; i < node->n_inputs; i++) {
            if (node->inputs[i] == TIDE_NO_VALUE) continue;
            TIDE_TRY(check_use(a, step, node->inputs[i], err));
            TIDE_ASSERT(a->last_use[node->inputs[i]] == NO_STEP || a->last_use[node->inputs[i]] <= step);
            a->last_use[node->inputs[i]] = step;
        }
    }
    return TIDE_OK;
}

// ---- sizes ----

/// Sizes are never guessed (S23-19): an unknown dtype, rank or extent ends the analysis.
static tide_status value_bytes(const tide_value *value, uint64_t *out, tide_error *err) {
    if (value->dtype == TIDE_DTYPE_UNDEFINED)
        return TIDE_FAIL(err, TIDE_ERR_UNKNOWN_SIZE, "tensor '%s' has no element type", value->name);
    if (!value->has_shape && !value->is_bounded)
        return TIDE_FAIL(err, TIDE_ERR_UNKNOWN_SIZE, "tensor '%s' has no shape, not even a rank", value->name);
    if (!tide_shape_known(tide_value_most(value))) {
        char shape[192];
        const tide_status st =
            TIDE_FAIL(err, TIDE_ERR_UNKNOWN_SIZE, "tensor '%s' has the shape %s: an extent is unknown", value->name,
                      tide_shape_format(&value->shape, shape, sizeof shape));
        tide_error_hint(err, "fix the shapes of the graph's inputs: --shape NAME=1x3x224x224");
        return st;
    }
    size_t bytes;
    const tide_status st = tide_shape_bytes(tide_value_most(value), value->dtype, &bytes, err);
    if (st != TIDE_OK) {
        tide_error_prefix(err, "tensor '%s'", value->name);
        return st;
    }
    *out = bytes;
    return TIDE_OK;
}

/// The wanted alignment, raised where elements of the type would otherwise lie askew.
static uint64_t value_align(const analysis *a, const tide_value *value) {
    const uint64_t element = tide_dtype_size(value->dtype);
    return element > a->align_bytes && tide_is_pow2(element) ? element : a->align_bytes;
}

/// The most that a value can be which is sized while running, as text of the caller's; *out NULL: its size is known.
static tide_status bound_of(const tide_value *value, char **out, tide_error *err) {
    char text[192];
    *out = NULL;
    if (!value->is_bounded) return TIDE_OK;
    if (value->bound->is_count)
        snprintf(text, sizeof text, "%" PRId64 " elements", value->bound->most.dims[0]);
    else
        tide_shape_format(&value->bound->most, text, sizeof text);
    *out = tide_host_strdup(text);
    return *out != NULL ? TIDE_OK : TIDE_NO_MEMORY(err, "for the bound of '%s'", value->name);
}

// ---- items ----

static tide_status add_item(analysis *a, tide_lifetime *item, tide_error *err) {
    if (item->value != TIDE_NO_INDEX) TIDE_TRY(bound_of(&a->graph->values[item->value], &item->bound, err));
    const tide_status st = tide_lifetimes_add(&a->out, item, err);
    tide_host_free(item->bound);
    // The shape was given by the file: a size that cannot be rounded up is too large, not a wrong argument.
    if (st != TIDE_ERR_INVALID) return st;
    return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "tensor '%s' of %llu bytes is too large to be planned", item->name,
                     (unsigned long long)item->size_bytes);
}

/// `name` may differ from the value's own.
static tide_status add_persistent(analysis *a, uint32_t value_i, char *name, tide_role role, tide_memory_kind kind,
                                  tide_error *err) {
    const tide_value *value = &a->graph->values[value_i];
    tide_lifetime item = {.name = name,
                          .align_bytes = value_align(a, value),
                          .begin_step = 0,
                          .end_step = a->n_steps,
                          .kind = kind,
                          .device = TIDE_CPU,
                          .role = role,
                          .persistent = true,
                          .node = value->producer,
                          .port = value->producer == TIDE_NO_NODE ? TIDE_NO_INDEX : value->producer_port,
                          .value = value_i};
    TIDE_TRY(value_bytes(value, &item.size_bytes, err));
    if (tide_program_is_mapped(a->program, value_i)) item.align_bytes = tide_dtype_size(value->dtype);
    return add_item(a, &item, err);
}

static tide_status add_inputs(analysis *a, tide_error *err) {
    for (size_t i = 0; i < a->graph->n_inputs; i++) {
        const uint32_t value_i = a->graph->inputs[i];
        TIDE_TRY(add_persistent(a, value_i, a->graph->values[value_i].name, TIDE_ROLE_INPUT, TIDE_KIND_DEFAULT, err));
    }
    return TIDE_OK;
}

static tide_status add_weights(analysis *a, tide_error *err) {
    for (uint32_t v = 0; v < a->graph->n_values; v++) {
        const tide_value *value = &a->graph->values[v];
        if (value->constant == NULL || value->is_input) continue;
        if (a->last_use[v] == NO_STEP && !value->is_output) continue;
        TIDE_TRY(add_persistent(a, v, value->name, TIDE_ROLE_WEIGHT, TIDE_KIND_PERSISTENT, err));
    }
    return TIDE_OK;
}

static tide_status add_intermediate(analysis *a, uint32_t step, size_t port, uint32_t value_i, tide_error *err) {
    const tide_value *value = &a->graph->values[value_i];
    const int64_t last = a->last_use[value_i] == NO_STEP ? step : a->last_use[value_i];
    TIDE_ASSERT(a->made[value_i] == step && last >= (int64_t)step && last < a->n_steps);
    tide_lifetime item = {.name = value->name,
                          .align_bytes = value_align(a, value),
                          .begin_step = step,
                          .end_step = last + 1,
                          .kind = TIDE_KIND_WORKSPACE,
                          .device = TIDE_CPU,
                          .role = TIDE_ROLE_INTERMEDIATE,
                          .node = a->program->steps[step].node,
                          .port = (uint32_t)port,
                          .value = value_i};
    TIDE_TRY(value_bytes(value, &item.size_bytes, err));
    return add_item(a, &item, err);
}

/// `stem`.`word` or, when some tensor has that name already, `stem`.`word`.2, .3, …
static tide_status make_name(analysis *a, const char *stem, const char *word, tide_text *out, tide_error *err) {
    tide_text_addf(out, "%s.%s", stem, word);
    for (unsigned i = 2; !out->failed && tide_strmap_get(&a->names, tide_text_str(out), NULL); i++) {
        out->len = 0;
        tide_text_addf(out, "%s.%s.%u", stem, word, i);
    }
    if (out->failed || tide_strmap_put(&a->names, tide_text_str(out), 0) != TIDE_OK)
        return TIDE_NO_MEMORY(err, "for the name '%s.%s'", stem, word);
    return TIDE_OK;
}

static tide_status add_scratch(analysis *a, uint32_t step, tide_error *err) {
    const tide_program_step *s = &a->program->steps[step];
    if (s->kernel.workspace_bytes == 0) return TIDE_OK;
    tide_text name = {0};
    tide_status st = make_name(a, node_at(a, step)->name, "scratch", &name, err);
    if (st == TIDE_OK) {
        tide_lifetime item = {.name = name.data,
                              .size_bytes = s->kernel.workspace_bytes,
                              .align_bytes =
                                  a->align_bytes > TIDE_WORKSPACE_ALIGN ? a->align_bytes : TIDE_WORKSPACE_ALIGN,
                              .begin_step = step,
                              .end_step = (int64_t)step + 1,
                              .kind = TIDE_KIND_WORKSPACE,
                              .device = TIDE_CPU,
                              .role = TIDE_ROLE_SCRATCH,
                              .node = s->node,
                              .port = TIDE_NO_INDEX,
                              .value = TIDE_NO_INDEX};
        st = add_item(a, &item, err);
    }
    tide_text_deinit(&name);
    return st;
}

static tide_status add_step(analysis *a, uint32_t step, tide_error *err) {
    const tide_node *node = node_at(a, step);
    for (size_t port = 0; port < node->n_outputs; port++) {
        const uint32_t value_i = node->outputs[port];
        if (value_i == TIDE_NO_VALUE) continue;
        const tide_value *value = &a->graph->values[value_i];
        if (value->constant != NULL) continue;                 // listed as a weight where it is read
        if (value->is_dynamic && !value->is_bounded) continue; // sized while running: no plan has a place for it
        if (value->is_output) {
            TIDE_TRY(add_persistent(a, value_i, value->name, TIDE_ROLE_OUTPUT, TIDE_KIND_DEFAULT, err));
        } else {
            TIDE_TRY(add_intermediate(a, step, port, value_i, err));
        }
    }
    return add_scratch(a, step, err);
}

/// A graph output that no step makes (an input handed through, a constant) is copied into a block of its own by the
/// runtime: that block is an item beside the value's own.
static tide_status add_copied_outputs(analysis *a, tide_error *err) {
    for (size_t i = 0; i < a->graph->n_outputs; i++) {
        const uint32_t value_i = a->graph->outputs[i];
        const tide_value *value = &a->graph->values[value_i];
        if (value->constant == NULL && !value->is_input) {
            if (a->made[value_i] != NO_STEP) continue;
            return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "nothing makes the graph output '%s'", value->name);
        }
        tide_text name = {0};
        tide_status st = make_name(a, value->name, "output", &name, err);
        if (st == TIDE_OK) st = add_persistent(a, value_i, name.data, TIDE_ROLE_OUTPUT, TIDE_KIND_DEFAULT, err);
        tide_text_deinit(&name);
        TIDE_TRY(st);
    }
    return TIDE_OK;
}

// ---- entry points ----

static tide_status name_steps(analysis *a) {
    const size_t n = a->program->n_steps;
    if (n == 0) return TIDE_OK;
    a->out.step_names = tide_host_calloc(n, sizeof *a->out.step_names);
    if (a->out.step_names == NULL) return TIDE_ERR_NOMEM;
    for (size_t i = 0; i < n; i++) {
        a->out.step_names[i] = tide_host_strdup(node_at(a, i)->name);
        if (a->out.step_names[i] == NULL) return TIDE_ERR_NOMEM;
        a->out.n_step_names = i + 1;
    }
    return TIDE_OK;
}

static tide_status name_recomputed(analysis *a) {
    const size_t n = a->program->n_twins;
    if (n == 0) return TIDE_OK;
    a->out.recomputed = tide_host_calloc(n, sizeof *a->out.recomputed);
    if (a->out.recomputed == NULL) return TIDE_ERR_NOMEM;
    for (size_t i = 0; i < n; i++) {
        a->out.recomputed[i] = tide_host_strdup(a->graph->nodes[a->program->twins[i].first].name);
        if (a->out.recomputed[i] == NULL) return TIDE_ERR_NOMEM;
        a->out.n_recomputed = i + 1;
    }
    return TIDE_OK;
}

/// `name` is taken; NULL: there was no memory for it.
static tide_status add_dynamic(analysis *a, char *name) {
    if (name == NULL) return TIDE_ERR_NOMEM;
    a->out.dynamic[a->out.n_dynamic++] = name;
    return TIDE_OK;
}

static tide_status name_dynamic(analysis *a) {
    size_t n = a->program->n_dynamic;
    for (size_t step = 0; step < a->program->n_steps; step++) n += tide_program_has_open_scratch(a->program, step);
    if (n == 0) return TIDE_OK;
    a->out.dynamic = tide_host_calloc(n, sizeof *a->out.dynamic);
    if (a->out.dynamic == NULL) return TIDE_ERR_NOMEM;
    for (size_t step = 0; step < a->program->n_steps; step++) {
        const tide_node *node = node_at(a, step);
        for (size_t port = 0; port < node->n_outputs; port++) {
            const uint32_t v = node->outputs[port];
            if (v == TIDE_NO_VALUE || !a->graph->values[v].is_dynamic || a->graph->values[v].is_bounded) continue;
            TIDE_TRY(add_dynamic(a, tide_host_strdup(a->graph->values[v].name)));
        }
        if (!tide_program_has_open_scratch(a->program, step)) continue;
        tide_text name = {0};
        tide_text_addf(&name, "%s.scratch", node->name);
        TIDE_TRY(add_dynamic(a, name.data));
    }
    return TIDE_OK;
}

static tide_body_kind body_kind(const tide_region *r) {
    static const tide_body_kind kinds[] = {[TIDE_REGION_THEN] = TIDE_BODY_THEN,
                                           [TIDE_REGION_ELSE] = TIDE_BODY_ELSE,
                                           [TIDE_REGION_LOOP] = TIDE_BODY_LOOP,
                                           [TIDE_REGION_SCAN] = TIDE_BODY_SCAN};
    return kinds[r->kind];
}

/// By the step that opens them: an outer one before those in it, a branch before the other one.
static tide_status list_regions(analysis *a) {
    const tide_program *p = a->program;
    if (p->graph->n_regions == 0) return TIDE_OK;
    a->out.regions = tide_host_calloc(p->graph->n_regions, sizeof *a->out.regions);
    if (a->out.regions == NULL) return TIDE_ERR_NOMEM;
    for (uint32_t step = 0; step < p->n_steps; step++) {
        const tide_node *node = node_at(a, step);
        if (node->opens == 0) continue;
        const tide_region *r = tide_region_of(p->graph, node->opens);
        const bool two = r->other != 0;
        const uint32_t end = p->steps[step].jump;
        a->out.regions[a->out.n_regions++] = (tide_plan_region){
            .kind = body_kind(r), .open_step = step, .begin_step = (int64_t)step + 1, .end_step = end};
        if (!two) continue;
        a->out.regions[a->out.n_regions++] = (tide_plan_region){
            .kind = TIDE_BODY_ELSE, .open_step = step, .begin_step = end, .end_step = p->steps[end - 1].jump};
    }
    return TIDE_OK;
}

static tide_status prepare(analysis *a, tide_error *err) {
    const size_t n = a->graph->n_values;
    a->out.n_steps = a->n_steps;
    a->out.model = tide_host_strdup(a->graph->name);
    a->made = tide_host_alloc(n * sizeof *a->made);
    a->last_use = tide_host_alloc(n * sizeof *a->last_use);
    tide_status st = a->out.model != NULL && a->made != NULL && a->last_use != NULL ? TIDE_OK : TIDE_ERR_NOMEM;
    for (size_t v = 0; v < n && st == TIDE_OK; v++) {
        a->made[v] = a->last_use[v] = NO_STEP;
        st = tide_strmap_put(&a->names, a->graph->values[v].name, v);
    }
    if (st == TIDE_OK) st = name_steps(a);
    if (st == TIDE_OK) st = name_recomputed(a);
    if (st == TIDE_OK) st = name_dynamic(a);
    if (st == TIDE_OK) st = list_regions(a);
    return st == TIDE_OK ? st : TIDE_FAIL(err, st, "no memory to analyse %zu values", n);
}

static tide_status analyse(analysis *a, tide_error *err) {
    TIDE_TRY(prepare(a, err));
    note_made(a);
    TIDE_TRY(note_uses(a, err));
    TIDE_TRY(add_inputs(a, err));
    TIDE_TRY(add_weights(a, err));
    for (uint32_t step = 0; step < a->program->n_steps; step++) TIDE_TRY(add_step(a, step, err));
    return add_copied_outputs(a, err);
}

tide_status tide_liveness(const tide_program *program, uint64_t align_bytes, tide_lifetimes *out, tide_error *err) {
    if (!tide_is_pow2(align_bytes))
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "alignment of %llu bytes: want a power of two",
                         (unsigned long long)align_bytes);
    tide__planner_entered();
    analysis a = {.program = program,
                  .graph = program->graph,
                  .align_bytes = align_bytes,
                  .n_steps = program->n_steps == 0 ? 1 : (int64_t)program->n_steps};
    const tide_status st = analyse(&a, err);
    if (st == TIDE_OK) {
        a.out.process = tide_process_facts_of(program, &a.out);
        *out = a.out;
    } else {
        tide_lifetimes_deinit(&a.out);
    }
    tide_host_free(a.made);
    tide_host_free(a.last_use);
    tide_strmap_deinit(&a.names);
    return st;
}
