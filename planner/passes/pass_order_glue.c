// SPDX-License-Identifier: MIT
//
// Late steps: which they are, and which become one node with the step behind them. The proof is in pass_order_model.h.
#include "core/base/host_alloc.h"
#include "planner/passes/pass_order_model_internal.h"

// ---- gluing ----

/// A step is late when it reads no tensor, needs no scratch, and one node alone waits for it. (And, asked for by the
/// caller, makes no tensor that nobody reads: that would be gone by the time the other step runs.)
static bool is_late(const tide__order_facts *f, const tide__table *reads, const tide__table *behind,
                    const uint32_t *node_of, uint32_t step, uint32_t *target) {
    if (f->scratch_bytes[step] > 0 || tide__table_span(reads, step).n > 0) return false;
    const tide__span s = tide__table_span(behind, step);
    if (s.n == 0) return false;
    *target = node_of[behind->items[s.first]];
    for (uint32_t k = 1; k < s.n; k++) {
        if (node_of[behind->items[s.first + k]] != *target) return false;
    }
    return true;
}

/// node_of[step] := the step it is glued to, or itself; from the last step back, so that a target is known by then.
/// Facts are numbered in an order that can run, so successors have higher numbers.
static bool glue_steps(const tide__order_facts *f, uint32_t *node_of) {
    tide__table reads = {0}, behind = {0};
    bool ok = tide__table_make(&reads, f->reads.list, f->reads.n, f->n_steps, true);
    tide__fact_pair *turned = tide_host_calloc(f->after.n + 1, sizeof *turned);
    ok = ok && turned != NULL;
    for (size_t i = 0; ok && i < f->after.n; i++)
        turned[i] = (tide__fact_pair){f->after.list[i].other, f->after.list[i].step};
    ok = ok && tide__table_make(&behind, turned, f->after.n, f->n_steps, false);
    enum { MAKES = 1, UNREAD = 2 };
    uint8_t *tensors = tide_host_calloc(f->n_tensors + 1, sizeof *tensors); // whether anybody reads it
    uint8_t *steps = tide_host_calloc(f->n_steps + 1, sizeof *steps);       // MAKES: a tensor; UNREAD: one nobody reads
    ok = ok && tensors != NULL && steps != NULL;
    for (size_t i = 0; ok && i < f->reads.n; i++) tensors[f->reads.list[i].other] = 1;
    for (size_t t = 0; ok && t < f->n_tensors; t++)
        steps[f->tensors[t].maker] |= (uint8_t)(tensors[t] != 0 ? MAKES : MAKES | UNREAD);
    for (uint32_t step = (uint32_t)f->n_steps; ok && step-- > 0;) {
        uint32_t target;
        if (steps[step] == MAKES && is_late(f, &reads, &behind, node_of, step, &target)) node_of[step] = target;
    }
    tide_host_free(tensors);
    tide_host_free(steps);
    tide_host_free(turned);
    tide__table_deinit(&reads);
    tide__table_deinit(&behind);
    return ok;
}

/// Number what is left: node_of[step] becomes a node; nodes stand in the order of their last steps.
bool tide__model_number(const tide__order_facts *f, bool glue, uint32_t *node_of, size_t *n_nodes) {
    for (uint32_t step = 0; step < f->n_steps; step++) node_of[step] = step;
    if (glue && !glue_steps(f, node_of)) return false;
    uint32_t *number = tide_host_calloc(f->n_steps + 1, sizeof *number);
    if (number == NULL) return false;
    uint32_t n = 0;
    for (uint32_t step = 0; step < f->n_steps; step++) {
        if (node_of[step] == step) number[step] = n++;
    }
    for (uint32_t step = 0; step < f->n_steps; step++) node_of[step] = number[node_of[step]];
    tide_host_free(number);
    *n_nodes = n;
    return true;
}

// ---- late nodes ----

/// Of what node `i` makes: the bytes that are alive when it has run and nobody else has.
static uint64_t left_bytes(const tide__order_model *m, uint32_t i) {
    const tide__model_node *n = &m->nodes[i];
    uint64_t left = 0;
    for (uint32_t k = 0; k < n->touch.n; k++) {
        const tide__model_atom *atom = &m->atoms[m->touch[n->touch.first + k]];
        for (uint32_t c = 0; c < atom->covers.n; c++) {
            const tide__model_tensor *t = &m->tensors[m->covers[atom->covers.first + c]];
            const bool is_read = t->readers.n > 1 || (t->readers.n == 1 && m->readers[t->readers.first] != i);
            if (t->maker != i || !is_read) continue;
            left += atom->bytes;
            break;
        }
    }
    return left;
}

/// What a node needs beyond what is alive before it, in the best of cases.
static uint64_t needed_bytes(const tide__order_model *m, uint32_t i) {
    const tide__model_node *n = &m->nodes[i];
    uint64_t saved = 0;
    for (uint32_t k = 0; k < n->overs.n; k++) {
        if (m->overs[n->overs.first + k].bytes > saved) saved = m->overs[n->overs.first + k].bytes;
    }
    return n->new_bytes + n->scratch_bytes - saved;
}

void tide__model_mark_late(tide__order_model *m, const tide__table *reads) {
    for (uint32_t i = 0; i < m->n_nodes; i++) {
        tide__model_node *n = &m->nodes[i];
        const tide__span s = tide__table_span(reads, i);
        bool late = n->behind.n > 0;
        for (uint32_t k = 0; k < s.n && late; k++) late = m->tensors[reads->items[s.first + k]].maker == i;
        const uint64_t excess = late ? n->least_bytes - left_bytes(m, i) : 0;
        for (uint32_t k = 0; k < n->behind.n && late; k++)
            late = excess <= needed_bytes(m, m->behind[n->behind.first + k]);
        n->late = late;
    }
}
