// SPDX-License-Identifier: MIT
//
// The operator's row is asked about every pair of operands of every step. See alias_facts.h.
#include "core/runtime/alias_facts.h"

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/graph/region.h"
#include "core/runtime/value_operand.h"

/// What a Loop or a Scan makes is written by the step that closes it too: in its body nothing else may lie there, but
/// for what takes its place.
static bool is_written_again(const tide_graph *g, uint32_t value_i, const tide_node *reader) {
    const uint32_t producer = g->values[value_i].producer;
    if (producer == TIDE_NO_NODE || g->nodes[producer].opens == 0) return false;
    const uint32_t region = g->nodes[producer].opens;
    return tide_region_repeats(tide_region_of(g, region)) && tide_region_holds(g, region, reader);
}

static bool is_variable(const tide_graph *g, uint32_t value_i) {
    return value_i != TIDE_NO_VALUE && g->values[value_i].constant == NULL;
}

static tide_status add(tide_alias_facts *f, const tide_alias_fact *fact, tide_error *err) {
    TIDE_TRY(TIDE_GROW(&f->list, &f->cap, f->n + 1, err, "for %zu alias facts", f->n + 1));
    f->list[f->n++] = *fact;
    return TIDE_OK;
}

static tide_status ask_pair(const tide_graph *g, uint32_t step, const tide_infer *x, size_t in_i, size_t out_i,
                            tide_alias_facts *f, tide_error *err) {
    const tide_node *node = x->node;
    if (!is_variable(g, node->inputs[in_i]) || !is_variable(g, node->outputs[out_i])) return TIDE_OK;
    tide_alias_fact fact = {.step = step,
                            .in_i = (uint32_t)in_i,
                            .out_i = (uint32_t)out_i,
                            .in_value = node->inputs[in_i],
                            .out_value = node->outputs[out_i],
                            .alias = tide_op_alias_of(node->def, x, in_i, out_i),
                            .may_overwrite = out_i == 0 && tide_op_may_overwrite(node->def, x, in_i)};
    if (is_written_again(g, fact.in_value, node)) fact.alias = (tide_op_alias){TIDE_OP_ALIAS_NONE, 0};
    if (fact.alias.kind == TIDE_OP_ALIAS_NONE && !fact.may_overwrite) return TIDE_OK;
    fact.bytes = fact.alias.kind == TIDE_OP_ALIAS_PART ? x->in[in_i].size_bytes : x->out[out_i].size_bytes;
    TIDE_ASSERT(f->n == 0 || f->list[f->n - 1].step <= step);
    TIDE_ASSERT(fact.alias.kind != TIDE_OP_ALIAS_SLICE || fact.bytes <= x->in[in_i].size_bytes);
    return add(f, &fact, err);
}

static tide_status ask_step(const tide_graph *g, uint32_t step, const tide_node *node, tide_operand *operands,
                            tide_alias_facts *f, tide_error *err) {
    tide_operand *out = operands + node->n_inputs;
    TIDE_TRY(tide__value_operands(g, node->inputs, node->n_inputs, operands, err));
    TIDE_TRY(tide__value_operands(g, node->outputs, node->n_outputs, out, err));
    tide_bytes_before before;
    const tide_infer x = {
        .node = node, .in = operands, .n_in = node->n_inputs, .out = out, .n_out = node->n_outputs, .before = &before};
    for (size_t out_i = 0; out_i < node->n_outputs; out_i++) {
        before = (tide_bytes_before){0};
        for (size_t in_i = 0; in_i < node->n_inputs; in_i++) TIDE_TRY(ask_pair(g, step, &x, in_i, out_i, f, err));
    }
    return TIDE_OK;
}

// ---- what a region makes, and what becomes of it at the end of a body ----

static bool reads(const tide_node *n, uint32_t value_i) {
    for (size_t k = 0; k < n->n_inputs; k++) {
        if (n->inputs[k] == value_i) return true;
    }
    return false;
}

/// The last step before `close` that reads the value, in its body.
static int64_t last_read(const tide_program *p, uint32_t value_i, uint32_t close) {
    for (uint32_t step = close; step-- > p->steps[close].opened_by + 1;) {
        if (reads(p->steps[step].kernel.node, value_i)) return step;
    }
    return -1;
}

static tide_status ask_result(const tide_program *p, uint32_t step, uint32_t in_i, uint32_t out_value,
                              tide_alias_facts *f, tide_error *err) {
    const tide_graph *g = p->graph;
    const uint32_t in_value = p->steps[step].kernel.node->inputs[in_i];
    tide_operand in, out;
    if (!is_variable(g, in_value) || !is_variable(g, out_value) || in_value == out_value) return TIDE_OK;
    if (g->values[in_value].is_dynamic || g->values[out_value].is_dynamic) return TIDE_OK;
    TIDE_TRY(tide__value_operand(g, in_value, &in, err));
    TIDE_TRY(tide__value_operand(g, out_value, &out, err));
    if (in.size_bytes != out.size_bytes) return TIDE_OK;
    const tide_alias_fact fact = {.step = step,
                                  .in_i = in_i,
                                  .in_value = in_value,
                                  .out_value = out_value,
                                  .alias = {TIDE_OP_ALIAS_NEXT, 0},
                                  .bytes = in.size_bytes,
                                  .last_read = last_read(p, out_value, step)};
    return add(f, &fact, err);
}

static tide_status ask_close(const tide_program *p, uint32_t step, tide_alias_facts *f, tide_error *err) {
    const tide_region *r = tide_region_of(p->graph, p->steps[step].kernel.node->closes);
    const size_t first = tide_region_repeats(r) ? tide_region_first_next(r) : 0;
    for (uint32_t k = 0; k < r->n_carried; k++)
        TIDE_TRY(ask_result(p, step, (uint32_t)first + k, p->graph->nodes[r->open].outputs[k], f, err));
    return TIDE_OK;
}

const tide_alias_fact *tide_alias_fact_next(const tide_program *p, const tide_alias_facts *f, uint32_t value_i,
                                            int64_t step) {
    const uint32_t producer = p->graph->values[value_i].producer;
    if (producer == TIDE_NO_NODE || p->graph->nodes[producer].opens == 0) return NULL;
    // The first closing step behind `step` that belongs to the node that makes the value.
    for (size_t close = (size_t)step; close < p->n_steps; close++) {
        const tide_node *n = p->steps[close].kernel.node;
        if (n->closes == 0 || tide_region_of(p->graph, n->closes)->open != producer) continue;
        if ((int64_t)p->steps[close].opened_by >= step) return NULL;
        for (size_t k = f->first[close]; k < f->first[close + 1]; k++) {
            if (f->list[k].alias.kind == TIDE_OP_ALIAS_NEXT && f->list[k].out_value == value_i) return &f->list[k];
        }
        return NULL;
    }
    return NULL;
}

static bool says_nothing(const tide_op_def *def) {
    return def->alias == NULL && def->inplace_inputs == 0 && (def->flags & TIDE_OP_VIEW) == 0;
}

static tide_status ask_all(const tide_program *p, tide_alias_facts *f, tide_error *err) {
    for (uint32_t step = 0; step < p->n_steps; step++) {
        f->first[step] = f->n;
        const tide_node *node = &p->graph->nodes[p->steps[step].node];
        if (node->closes != 0) TIDE_TRY(ask_close(p, step, f, err));
        if (says_nothing(node->def) || tide_node_is_dynamic(p->graph, node)) continue;
        tide_operand *operands;
        TIDE_TRY(
            TIDE_NEW(&operands, node->n_inputs + node->n_outputs + 1, err, "for the operands of '%s'", node->name));
        const tide_status st = ask_step(p->graph, step, node, operands, f, err);
        tide_host_free(operands);
        TIDE_TRY(st);
    }
    f->first[p->n_steps] = f->n;
    return TIDE_OK;
}

tide_status tide_alias_facts_make(const tide_program *p, tide_alias_facts *out, tide_error *err) {
    tide_alias_facts f = {.n_steps = p->n_steps};
    f.first = tide_host_calloc(p->n_steps + 1, sizeof *f.first);
    tide_status st =
        f.first != NULL ? ask_all(p, &f, err) : TIDE_NO_MEMORY(err, "for the facts of %zu steps", p->n_steps);
    if (st != TIDE_OK) {
        tide_alias_facts_deinit(&f);
        return st;
    }
    TIDE_ASSERT(f.first[0] == 0 && f.first[f.n_steps] == f.n);
    *out = f;
    return TIDE_OK;
}

/// What `f` says of the same operands of the same step; NULL: nothing.
static const tide_alias_fact *same_operands(const tide_alias_facts *f, const tide_alias_fact *as) {
    TIDE_ASSERT(as->step < f->n_steps && f->first[as->step] <= f->first[as->step + 1]);
    for (size_t k = f->first[as->step]; k < f->first[as->step + 1]; k++) {
        if (f->list[k].in_i == as->in_i && f->list[k].out_i == as->out_i) return &f->list[k];
    }
    return NULL;
}

tide_status tide_alias_facts_narrow(tide_alias_facts *f, const tide_alias_facts *other, tide_error *err) {
    if (f->n_steps != other->n_steps)
        return TIDE_FAIL(err, TIDE_ERR_INCOMPARABLE, "alias facts of %zu steps and of %zu", f->n_steps, other->n_steps);
    for (size_t k = 0; k < f->n; k++) {
        tide_alias_fact *a = &f->list[k];
        const tide_alias_fact *b = same_operands(other, a);
        if (b == NULL || a->alias.kind != b->alias.kind || a->alias.offset_bytes != b->alias.offset_bytes)
            a->alias = (tide_op_alias){TIDE_OP_ALIAS_NONE, 0};
        a->may_overwrite = a->may_overwrite && b != NULL && b->may_overwrite;
    }
    return TIDE_OK;
}

void tide_alias_facts_deinit(tide_alias_facts *f) {
    tide_host_free(f->list);
    tide_host_free(f->first);
    *f = (tide_alias_facts){0};
}
