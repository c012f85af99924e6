// SPDX-License-Identifier: MIT
//
// The cost of an order: see pass_order_model.h. This file makes the model of the facts; pass_order_look.c asks it.
#include "core/base/host_alloc.h"
#include "planner/passes/pass_order_model_internal.h"

static tide_status no_memory(const tide__order_facts *f, tide_error *err) {
    return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for an order of %zu steps", f->n_steps);
}

void tide__order_model_deinit(tide__order_model *m) {
    tide_host_free(m->nodes);
    tide_host_free(m->tensors);
    tide_host_free(m->atoms);
    tide_host_free(m->overs);
    tide_host_free(m->steps);
    tide_host_free(m->touch);
    tide_host_free(m->before);
    tide_host_free(m->behind);
    tide_host_free(m->readers);
    tide_host_free(m->covers);
    *m = (tide__order_model){0};
}

// ---- what each node touches ----

static uint64_t bytes_of(const tide__order_model *m, uint32_t tensor) {
    const tide__span atoms = m->tensors[tensor].atoms;
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < atoms.n; k++) bytes += m->atoms[atoms.first + k].bytes;
    return bytes;
}

typedef struct filler {
    const tide__order_facts *f;
    tide__order_model *m;
    const uint32_t *node_of;
    tide__table reads, makes, overs; // of nodes: tensors
    uint32_t *result;                // [n_nodes] what its last step's output 0 is; TIDE_NO_INDEX
    uint8_t *mark;                   // [n_atoms] READ, MADE
    size_t n_touch, cap_touch;
    size_t n_overs, cap_overs;
} filler;
enum { READ = 1, MADE = 2 };

static tide_status touch(filler *x, tide__model_node *n, uint32_t tensor, uint8_t how, tide_error *err) {
    const tide__span atoms = x->m->tensors[tensor].atoms;
    for (uint32_t atom = atoms.first; atom < atoms.first + atoms.n; atom++) {
        if (x->mark[atom] == 0) {
            if (tide_host_grow(&x->m->touch, &x->cap_touch, x->n_touch + 1, sizeof *x->m->touch) != TIDE_OK)
                return no_memory(x->f, err);
            x->m->touch[x->n_touch++] = atom;
            n->touch.n++;
        }
        x->mark[atom] |= how;
    }
    return TIDE_OK;
}

static bool fills_its_root(const tide__order_facts *f, uint32_t t) {
    const tide__fact_tensor *x = &f->tensors[t];
    return x->at_bytes == 0 && x->size_bytes == f->tensors[x->root].size_bytes;
}

static bool contains(const uint32_t *list, tide__span s, uint32_t item) {
    for (uint32_t k = 0; k < s.n; k++) {
        if (list[s.first + k] == item) return true;
    }
    return false;
}

static bool share_atoms(const tide__order_model *m, uint32_t a, uint32_t b) {
    const tide__span x = m->tensors[a].atoms, y = m->tensors[b].atoms;
    return x.first < y.first + y.n && y.first < x.first + x.n;
}

/// Overwriting puts both in one place: one of the two must be free to go where the other is. And no other input may lie
/// there that is read after it was overwritten.
static bool can_overwrite(const filler *x, uint32_t node, uint32_t in, uint32_t out) {
    if (share_atoms(x->m, in, out)) return false; // a view takes no place of its own
    if (!fills_its_root(x->f, in) && !fills_its_root(x->f, out)) return false;
    const tide__span reads = tide__table_span(&x->reads, node), overs = tide__table_span(&x->overs, node);
    for (uint32_t k = 0; k < reads.n; k++) {
        const uint32_t other = x->reads.items[reads.first + k];
        if (other != in && share_atoms(x->m, in, other) && !contains(x->overs.items, overs, other)) return false;
    }
    return true;
}

static tide_status fill_overs(filler *x, uint32_t node, tide_error *err) {
    tide__model_node *n = &x->m->nodes[node];
    const tide__span overs = tide__table_span(&x->overs, node);
    n->overs.first = (uint32_t)x->n_overs;
    for (uint32_t k = 0; k < overs.n && x->result[node] != TIDE_NO_INDEX; k++) {
        const uint32_t in = x->overs.items[overs.first + k], out = x->result[node];
        if (!can_overwrite(x, node, in, out)) continue;
        if (tide_host_grow(&x->m->overs, &x->cap_overs, x->n_overs + 1, sizeof *x->m->overs) != TIDE_OK)
            return no_memory(x->f, err);
        const uint64_t a = bytes_of(x->m, in), b = bytes_of(x->m, out);
        x->m->overs[x->n_overs++] = (tide__model_over){in, a < b ? a : b};
        n->overs.n++;
    }
    return TIDE_OK;
}

static void measure(filler *x, tide__model_node *n) {
    uint64_t touched = 0, saved = 0, cost = 1;
    for (uint32_t k = 0; k < n->touch.n; k++) {
        const uint32_t atom = x->m->touch[n->touch.first + k];
        touched += x->m->atoms[atom].bytes;
        if (x->mark[atom] == MADE) n->new_bytes += x->m->atoms[atom].bytes;
        cost += x->m->atoms[atom].covers.n;
        x->mark[atom] = 0;
    }
    for (uint32_t k = 0; k < n->overs.n; k++) {
        const tide__model_over *over = &x->m->overs[n->overs.first + k];
        if (over->bytes > saved) saved = over->bytes;
        const tide__span atoms = x->m->tensors[over->tensor].atoms;
        for (uint32_t a = 0; a < atoms.n; a++) cost += x->m->atoms[atoms.first + a].covers.n;
    }
    n->cost = cost < UINT32_MAX ? (uint32_t)cost : UINT32_MAX;
    n->least_bytes = touched + n->scratch_bytes - saved;
    if (n->least_bytes > x->m->floor_bytes) x->m->floor_bytes = n->least_bytes;
}

static tide_status fill_node(filler *x, uint32_t node, tide_error *err) {
    tide__model_node *n = &x->m->nodes[node];
    const tide__span reads = tide__table_span(&x->reads, node), makes = tide__table_span(&x->makes, node);
    n->touch.first = (uint32_t)x->n_touch;
    for (uint32_t k = 0; k < reads.n; k++) {
        const uint32_t t = x->reads.items[reads.first + k];
        if (x->m->tensors[t].maker != node) TIDE_TRY(touch(x, n, t, READ, err));
    }
    for (uint32_t k = 0; k < makes.n; k++) TIDE_TRY(touch(x, n, x->makes.items[makes.first + k], MADE, err));
    TIDE_TRY(fill_overs(x, node, err));
    measure(x, n);
    return TIDE_OK;
}

static tide_status fill_nodes(const tide__order_facts *f, const uint32_t *node_of, tide__order_model *m,
                              tide_error *err) {
    filler x = {.f = f, .m = m, .node_of = node_of};
    tide__fact_pair *makes = tide_host_calloc(f->n_tensors + 1, sizeof *makes);
    x.mark = tide_host_calloc(m->n_atoms + 1, sizeof *x.mark);
    x.result = tide_host_calloc(m->n_nodes + 1, sizeof *x.result);
    bool ok = makes != NULL && x.mark != NULL && x.result != NULL;
    for (uint32_t t = 0; ok && t < f->n_tensors; t++) makes[t] = (tide__fact_pair){m->tensors[t].maker, t};
    ok = ok && tide__table_make(&x.makes, makes, f->n_tensors, m->n_nodes, true) &&
         tide__table_of_nodes(&x.reads, &f->reads, node_of, NULL, false, m->n_nodes, true) &&
         tide__table_of_nodes(&x.overs, &f->overwrites, node_of, NULL, false, m->n_nodes, true);
    for (size_t i = 0; ok && i < m->n_nodes; i++) x.result[i] = TIDE_NO_INDEX;
    for (size_t i = 0; ok && i < f->results.n; i++) {
        const uint32_t node = node_of[f->results.list[i].step];
        const tide__span steps = m->nodes[node].steps;
        if (m->steps[steps.first + steps.n - 1] == f->results.list[i].step) x.result[node] = f->results.list[i].other;
    }
    tide_status st = ok ? TIDE_OK : no_memory(f, err);
    for (uint32_t i = 0; i < m->n_nodes && st == TIDE_OK; i++) st = fill_node(&x, i, err);
    if (st == TIDE_OK) tide__model_mark_late(m, &x.reads);
    tide_host_free(makes);
    tide_host_free(x.mark);
    tide_host_free(x.result);
    tide__table_deinit(&x.makes);
    tide__table_deinit(&x.reads);
    tide__table_deinit(&x.overs);
    return st;
}

// ---- the whole ----

/// Moves the lists of a table into the model; `spans` is where the first node's span is, node by node.
static void take_spans(tide__table *t, uint32_t **list, tide__span *spans, size_t stride, size_t n) {
    for (size_t i = 0; i < n; i++) *(tide__span *)((char *)spans + i * stride) = tide__table_span(t, i);
    *list = t->items;
    t->items = NULL;
    tide__table_deinit(t);
}

static bool fill_lists(const tide__order_facts *f, const uint32_t *node_of, tide__order_model *m) {
    const size_t stride = sizeof *m->nodes;
    tide__fact_pair *steps = tide_host_calloc(f->n_steps + 1, sizeof *steps);
    tide__table t = {0};
    bool ok = steps != NULL;
    for (uint32_t step = 0; ok && step < f->n_steps; step++) {
        steps[step] = (tide__fact_pair){node_of[step], step};
        m->nodes[node_of[step]].scratch_bytes += f->scratch_bytes[step];
    }
    ok = ok && tide__table_make(&t, steps, f->n_steps, m->n_nodes, true);
    if (ok) take_spans(&t, &m->steps, &m->nodes->steps, stride, m->n_nodes);
    ok = ok && tide__table_of_nodes(&t, &f->after, node_of, node_of, false, m->n_nodes, false);
    if (ok) take_spans(&t, &m->before, &m->nodes->before, stride, m->n_nodes);
    ok = ok && tide__table_of_nodes(&t, &f->after, node_of, node_of, true, m->n_nodes, false);
    if (ok) take_spans(&t, &m->behind, &m->nodes->behind, stride, m->n_nodes);
    ok = ok && tide__table_of_nodes(&t, &f->reads, node_of, NULL, true, f->n_tensors, true);
    if (ok) take_spans(&t, &m->readers, &m->tensors->readers, sizeof *m->tensors, f->n_tensors);
    tide__table_deinit(&t);
    tide_host_free(steps);
    return ok;
}

static tide_status make(const tide__order_facts *f, bool glue, uint32_t *node_of, tide__order_model *m,
                        tide_error *err) {
    if (!tide__model_number(f, glue, node_of, &m->n_nodes)) return no_memory(f, err);
    m->n_steps = f->n_steps;
    m->n_tensors = f->n_tensors;
    m->nodes = tide_host_calloc(m->n_nodes + 1, sizeof *m->nodes);
    m->tensors = tide_host_calloc(f->n_tensors + 1, sizeof *m->tensors);
    if (m->nodes == NULL || m->tensors == NULL) return no_memory(f, err);
    for (size_t t = 0; t < f->n_tensors; t++) m->tensors[t].maker = node_of[f->tensors[t].maker];
    if (!fill_lists(f, node_of, m)) return no_memory(f, err);
    TIDE_TRY(tide__model_cut(f, m, err));
    return fill_nodes(f, node_of, m, err);
}

tide_status tide__order_model_make(const tide__order_facts *f, bool glue, tide__order_model *out, tide_error *err) {
    *out = (tide__order_model){0};
    uint32_t *node_of = tide_host_calloc(f->n_steps + 1, sizeof *node_of);
    if (node_of == NULL) return no_memory(f, err);
    const tide_status st = make(f, glue, node_of, out, err);
    tide_host_free(node_of);
    if (st != TIDE_OK) tide__order_model_deinit(out);
    return st;
}
