// SPDX-License-Identifier: MIT
//
// dump: the four stages of planning as text, each to be looked at alone: `plan --dump-stage` (S23-2).
#include <inttypes.h>

#include "core/base/host_alloc.h"
#include "planner/grid.h"
#include "planner/planner.h"

static const char *yes_no(bool b) { return b ? "yes" : "no"; }

/// What runs at `step`; "" when the list has no names.
static const char *step_name(const tide_lifetimes *lt, int64_t step) {
    return step >= 0 && (uint64_t)step < lt->n_step_names ? lt->step_names[step] : "";
}

static void add_heads(tide_grid *g, const char *const *heads, size_t n) {
    for (size_t i = 0; i < n; i++) tide__grid_cell(g, "%s", heads[i]);
}

/// In what an alias lies: "view in x + 64".
static void add_inside(tide_grid *g, const tide_lifetimes *lt, const tide_lifetime *item) {
    tide_text words = {0};
    if (item->alias != TIDE_ALIAS_NONE)
        tide_text_addf(&words, "%s in %s", tide_alias_kind_name(item->alias), lt->items[item->alias_of].name);
    if (item->alias != TIDE_ALIAS_NONE && item->alias_offset_bytes > 0)
        tide_text_addf(&words, " + %" PRIu64, item->alias_offset_bytes);
    if (words.failed) g->failed = true;
    tide__grid_name(g, tide_text_str(&words));
    tide_text_deinit(&words);
}

static void dump_liveness(const tide_lifetimes *lt, tide_text *out) {
    static const char *const heads[] = {"tensor", "bytes", "aligned", "birth",      "death",
                                        "kind",   "role",  "device",  "persistent", "made by"};
    tide_text_add(out, "1 liveness: ");
    tide__add_name(out, lt->model != NULL ? lt->model : "");
    tide_text_addf(out, ", %zu tensors, %" PRId64 " steps; birth and death are steps, both included\n", lt->n,
                   lt->n_steps);
    bool aliases = false;
    for (size_t i = 0; i < lt->n; i++) aliases = aliases || lt->items[i].alias != TIDE_ALIAS_NONE;
    tide_grid g = {.columns = aliases ? "lrrrrllllll" : "lrrrrlllll"};
    add_heads(&g, heads, sizeof heads / sizeof heads[0]);
    if (aliases) tide__grid_cell(&g, "inside");
    for (size_t i = 0; i < lt->n; i++) {
        const tide_lifetime *item = &lt->items[i];
        char device[16];
        tide__grid_name(&g, item->name);
        tide__grid_cell(&g, "%" PRIu64, item->size_bytes);
        tide__grid_cell(&g, "%" PRIu64, tide_lifetime_aligned_bytes(item));
        tide__grid_cell(&g, "%" PRId64, item->begin_step);
        tide__grid_cell(&g, "%" PRId64, item->end_step - 1);
        tide__grid_cell(&g, "%s", tide_memory_kind_name(item->kind));
        tide__grid_cell(&g, "%s", tide_role_name(item->role));
        tide__grid_cell(&g, "%s", tide_device_format(item->device, device, sizeof device));
        tide__grid_cell(&g, "%s", yes_no(item->persistent));
        tide__grid_name(&g, item->persistent ? "" : step_name(lt, item->begin_step));
        if (aliases) add_inside(&g, lt, item);
    }
    tide__grid_finish(&g, out);
}

static tide_status dump_graph(const tide_lifetimes *lt, tide_text *out, tide_error *err) {
    tide_interference *graph;
    TIDE_TRY(tide_interference_build(lt, &graph, err));
    size_t n_planned = 0;
    for (size_t i = 0; i < lt->n; i++) n_planned += !lt->items[i].persistent;
    tide_text_addf(out, "2 interference graph: %zu tensors that can share memory, %zu conflicts\n", n_planned,
                   tide_interference_n_edges(graph));
    for (size_t i = 0; i < lt->n; i++) {
        if (lt->items[i].persistent) continue;
        const uint32_t *neighbours;
        const size_t n = tide_interference_neighbours(graph, i, &neighbours);
        tide__add_name(out, lt->items[i].name);
        tide_text_add(out, ":");
        for (size_t k = 0; k < n; k++) {
            tide_text_add(out, " ");
            tide__add_name(out, lt->items[neighbours[k]].name);
        }
        tide_text_add(out, "\n");
    }
    tide_interference_destroy(graph);
    return TIDE_OK;
}

static void dump_pools(const tide_memory_plan *plan, tide_text *out) {
    const tide_lifetimes *lt = &plan->lifetimes;
    tide_text_add(out, "3 colouring by ");
    tide__add_name(out, plan->strategy);
    tide_text_addf(out, ": %zu pools\n", plan->n_pools);
    static const char *const heads[] = {"tensor", "aligned", "birth", "death", "pool"};
    tide_grid g = {.columns = "lrrrr"};
    add_heads(&g, heads, sizeof heads / sizeof heads[0]);
    for (size_t i = 0; i < lt->n; i++) {
        if (lt->items[i].persistent) continue;
        tide__grid_name(&g, lt->items[i].name);
        tide__grid_cell(&g, "%" PRIu64, tide_lifetime_aligned_bytes(&lt->items[i]));
        tide__grid_cell(&g, "%" PRId64, lt->items[i].begin_step);
        tide__grid_cell(&g, "%" PRId64, lt->items[i].end_step - 1);
        tide__grid_cell(&g, "%d", plan->pools[i]);
    }
    tide__grid_finish(&g, out);
}

/// An offset plan has no colours; what is shown then is the colouring of the same lifetimes, and it says so.
static tide_status dump_color(const tide_memory_plan *plan, tide_text *out, tide_error *err) {
    if (plan->form == TIDE_PLAN_POOLS) {
        dump_pools(plan, out);
        return TIDE_OK;
    }
    const tide_strategy *strategy;
    TIDE_TRY(tide_strategy_find("greedy_color", &strategy, err));
    tide_memory_plan *colored;
    TIDE_TRY(tide_plan_make(&plan->lifetimes, strategy, NULL, &colored, err));
    tide__add_name(out, plan->strategy);
    tide_text_add(out, " places by offset and has no colours; this is what colouring makes of the same tensors:\n");
    dump_pools(colored, out);
    tide_memory_plan_destroy(colored);
    return TIDE_OK;
}

static void dump_plan(const tide_memory_plan *plan, tide_text *out) {
    const tide_lifetimes *lt = &plan->lifetimes;
    tide_text_add(out, "4 plan by ");
    tide__add_name(out, plan->strategy);
    tide_text_addf(out, ": %" PRIu64 " bytes (naive %" PRIu64 ", lower bound %" PRIu64 "), %s\n", plan->bytes,
                   plan->naive_bytes, plan->lower_bound_bytes, plan->verified ? "verified" : "not verified");
    static const char *const heads[] = {"tensor", "offset", "end", "birth", "death", "pool"};
    tide_grid g = {.columns = "lrrrrr"};
    add_heads(&g, heads, sizeof heads / sizeof heads[0]);
    for (size_t i = 0; i < lt->n; i++) {
        if (lt->items[i].persistent) continue;
        tide__grid_name(&g, lt->items[i].name);
        tide__grid_cell(&g, "%" PRIu64, plan->offsets[i]);
        tide__grid_cell(&g, "%" PRIu64, plan->offsets[i] + tide_lifetime_aligned_bytes(&lt->items[i]));
        tide__grid_cell(&g, "%" PRId64, lt->items[i].begin_step);
        tide__grid_cell(&g, "%" PRId64, lt->items[i].end_step - 1);
        if (plan->pools[i] == TIDE_NO_POOL) {
            tide__grid_cell(&g, "-");
        } else {
            tide__grid_cell(&g, "%d", plan->pools[i]);
        }
    }
    tide__grid_finish(&g, out);
}

tide_status tide_plan_dump_stage(const tide_memory_plan *plan, tide_stage stage, tide_text *out, tide_error *err) {
    switch (stage) {
    case TIDE_STAGE_LIVENESS:
        dump_liveness(&plan->lifetimes, out);
        break;
    case TIDE_STAGE_GRAPH:
        TIDE_TRY(dump_graph(&plan->lifetimes, out, err));
        break;
    case TIDE_STAGE_COLOUR:
        TIDE_TRY(dump_color(plan, out, err));
        break;
    case TIDE_STAGE_PLAN:
        dump_plan(plan, out);
        break;
    default:
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "there is no stage %d of planning", (int)stage);
    }
    return out->failed ? TIDE_NO_MEMORY(err, "to print a stage of planning") : TIDE_OK;
}
