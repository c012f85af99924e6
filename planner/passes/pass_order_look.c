// SPDX-License-Identifier: MIT
//
// Looking at a step: what it does to memory when it runs next. See pass_order_model.h.
#include "core/base/host_alloc.h"
#include "planner/passes/pass_order_model.h"

static bool is_alive_after(const tide__order_model *m, const tide__ran *ran, uint32_t tensor, uint32_t node) {
    const tide__model_tensor *t = &m->tensors[tensor];
    if (t->maker != node && !tide__has_ran(ran, t->maker)) return false;
    for (uint32_t k = 0; k < t->readers.n; k++) {
        const uint32_t reader = m->readers[t->readers.first + k];
        if (reader != node && !tide__has_ran(ran, reader)) return true;
    }
    return false;
}

static bool atom_is_alive_after(const tide__order_model *m, const tide__ran *ran, uint32_t atom, uint32_t node) {
    const tide__span covers = m->atoms[atom].covers;
    for (uint32_t k = 0; k < covers.n; k++) {
        if (is_alive_after(m, ran, m->covers[covers.first + k], node)) return true;
    }
    return false;
}

static bool dies(const tide__order_model *m, const tide__ran *ran, uint32_t tensor, uint32_t node) {
    const tide__span atoms = m->tensors[tensor].atoms;
    for (uint32_t k = 0; k < atoms.n; k++) {
        if (atom_is_alive_after(m, ran, atoms.first + k, node)) return false;
    }
    return true;
}

tide__look tide__order_model_look(const tide__order_model *m, const tide__ran *ran, uint32_t node,
                                  uint64_t live_bytes) {
    const tide__model_node *n = &m->nodes[node];
    uint64_t freed = 0, saved = 0;
    for (uint32_t k = 0; k < n->touch.n; k++) {
        const uint32_t atom = m->touch[n->touch.first + k];
        if (!atom_is_alive_after(m, ran, atom, node)) freed += m->atoms[atom].bytes;
    }
    for (uint32_t k = 0; k < n->overs.n; k++) {
        const tide__model_over *over = &m->overs[n->overs.first + k];
        if (over->bytes > saved && dies(m, ran, over->tensor, node)) saved = over->bytes;
    }
    return (tide__look){.transient_bytes = live_bytes + n->new_bytes + n->scratch_bytes - saved,
                        .after_bytes = live_bytes + n->new_bytes - freed};
}

tide_status tide__order_model_peak(const tide__order_model *m, const uint32_t *order, uint64_t *transients,
                                   uint64_t *peak_bytes, tide_error *err) {
    int32_t *place = tide_host_calloc(m->n_nodes + 1, sizeof *place);
    if (place == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for an order of %zu steps", m->n_nodes);
    for (size_t i = 0; i < m->n_nodes; i++) place[i] = TIDE__NOT_RAN;
    const tide__ran ran = {.place = place};
    uint64_t live = 0, peak = 0;
    for (size_t i = 0; i < m->n_nodes; i++) {
        const tide__look look = tide__order_model_look(m, &ran, order[i], live);
        if (look.transient_bytes > peak) peak = look.transient_bytes;
        if (transients != NULL) transients[i] = look.transient_bytes;
        live = look.after_bytes;
        place[order[i]] = TIDE__RAN;
    }
    *peak_bytes = peak;
    tide_host_free(place);
    return TIDE_OK;
}
