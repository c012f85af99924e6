// SPDX-License-Identifier: MIT
//
// order model: makes the model from facts, and computes what a node does to memory. See pass_order_model.h.
#include "planner/passes/pass_order_model.h"

#include <stdlib.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"

// ---- gluing ----

/// A step is late when it reads no tensor, needs no scratch, and exactly one node waits for it. (The caller also checks
/// that each tensor it makes is read: an unread one would be gone by the time the other step runs.)
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
    uint8_t *tensors = tide_host_calloc(f->n_tensors + 1, sizeof *tensors); // whether it is read
    uint8_t *steps = tide_host_calloc(f->n_steps + 1, sizeof *steps); // MAKES: a tensor; UNREAD: one that is not read
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
static bool number_nodes(const tide__order_facts *f, bool glue, uint32_t *node_of, size_t *n_nodes) {
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

/// Bytes that node `i` makes and that are alive when only `i` has run.
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

static void mark_late(tide__order_model *m, const tide__table *reads) {
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

// ---- atoms: the bytes of all roots, cut where a tensor begins or ends ----

/// More pairs of tensor and atom than this in one root (thousands of Concats nested): its members count apart instead.
enum { MAX_PAIRS = 1 << 20 };

static uint64_t end_of(const tide__order_facts *f, uint32_t t) {
    const tide__fact_tensor *x = &f->tensors[t];
    return x->root == t ? x->own_bytes : x->at_bytes + x->size_bytes;
}

static int compare_u64(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

typedef struct cutter {
    const tide__order_facts *f;
    tide__order_model *m;
    size_t cap_atoms;
    uint64_t *cuts; // room for those of one root
    size_t cap_cuts;
    tide__fact_pairs covers; // atom, tensor
} cutter;

static tide_status add_atom(cutter *c, uint64_t bytes, uint32_t *out, tide_error *err) {
    TIDE_TRY(
        TIDE_GROW(&c->m->atoms, &c->cap_atoms, c->m->n_atoms + 1, err, "for an order of %zu steps", c->f->n_steps));
    *out = (uint32_t)c->m->n_atoms++;
    c->m->atoms[*out] = (tide__model_atom){.bytes = bytes};
    return TIDE_OK;
}

static tide_status take_whole(cutter *c, uint32_t t, uint64_t bytes, tide_error *err) {
    uint32_t atom = 0;
    TIDE_TRY(add_atom(c, bytes, &atom, err));
    c->m->tensors[t].atoms = (tide__span){atom, 1};
    return tide__facts_add_pair(&c->covers, atom, t, err);
}

static tide_status list_cuts(cutter *c, uint32_t root, size_t *n_cuts, size_t *n_members, tide_error *err) {
    size_t n = 0, members = 0;
    uint32_t t = root;
    do {
        TIDE_TRY(TIDE_GROW(&c->cuts, &c->cap_cuts, n + 2, err, "for an order of %zu steps", c->f->n_steps));
        c->cuts[n++] = c->f->tensors[t].at_bytes;
        c->cuts[n++] = end_of(c->f, t);
        members++;
        t = c->f->tensors[t].next;
    } while (t != root);
    qsort(c->cuts, n, sizeof *c->cuts, compare_u64);
    size_t unique = 0;
    for (size_t i = 0; i < n; i++) {
        if (unique == 0 || c->cuts[i] != c->cuts[unique - 1]) c->cuts[unique++] = c->cuts[i];
    }
    *n_cuts = unique;
    *n_members = members;
    return TIDE_OK;
}

static size_t find_cut(const cutter *c, size_t n_cuts, uint64_t at) {
    size_t lo = 0, hi = n_cuts;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (c->cuts[mid] < at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static tide_status cut_root(cutter *c, uint32_t root, tide_error *err) {
    size_t n_cuts = 0, n_members = 0;
    TIDE_TRY(list_cuts(c, root, &n_cuts, &n_members, err));
    const bool apart = n_members > 1 && n_cuts * n_members > MAX_PAIRS;
    const uint32_t first = (uint32_t)c->m->n_atoms;
    for (size_t i = 0; !apart && i + 1 < n_cuts; i++) {
        uint32_t unused;
        TIDE_TRY(add_atom(c, c->cuts[i + 1] - c->cuts[i], &unused, err));
    }
    uint32_t t = root;
    do {
        if (apart) {
            TIDE_TRY(take_whole(c, t, c->f->tensors[t].own_bytes, err));
        } else {
            const uint32_t lo = first + (uint32_t)find_cut(c, n_cuts, c->f->tensors[t].at_bytes);
            const uint32_t hi = first + (uint32_t)find_cut(c, n_cuts, end_of(c->f, t));
            c->m->tensors[t].atoms = (tide__span){lo, hi - lo};
            for (uint32_t atom = lo; atom < hi; atom++) TIDE_TRY(tide__facts_add_pair(&c->covers, atom, t, err));
        }
        t = c->f->tensors[t].next;
    } while (t != root);
    return TIDE_OK;
}

static tide_status cut_atoms(const tide__order_facts *f, tide__order_model *m, tide_error *err) {
    cutter c = {.f = f, .m = m};
    tide__table covers = {0};
    tide_status st = TIDE_OK;
    for (uint32_t t = 0; t < f->n_tensors && st == TIDE_OK; t++) {
        if (f->tensors[t].root == t) st = cut_root(&c, t, err);
    }
    if (st == TIDE_OK && !tide__table_make(&covers, c.covers.list, c.covers.n, m->n_atoms, true))
        st = TIDE_NO_MEMORY(err, "for an order of %zu steps", f->n_steps);
    for (size_t a = 0; st == TIDE_OK && a < m->n_atoms; a++) m->atoms[a].covers = tide__table_span(&covers, a);
    m->covers = covers.items;
    covers.items = NULL;
    tide__table_deinit(&covers);
    tide_host_free(c.cuts);
    tide_host_free(c.covers.list);
    return st;
}

// ---- the model ----

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
            TIDE_TRY(TIDE_GROW(&x->m->touch, &x->cap_touch, x->n_touch + 1, err, "for an order of %zu steps",
                               x->f->n_steps));
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
        TIDE_TRY(
            TIDE_GROW(&x->m->overs, &x->cap_overs, x->n_overs + 1, err, "for an order of %zu steps", x->f->n_steps));
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
    tide_status st = ok ? TIDE_OK : TIDE_NO_MEMORY(err, "for an order of %zu steps", f->n_steps);
    for (uint32_t i = 0; i < m->n_nodes && st == TIDE_OK; i++) st = fill_node(&x, i, err);
    if (st == TIDE_OK) mark_late(m, &x.reads);
    tide_host_free(makes);
    tide_host_free(x.mark);
    tide_host_free(x.result);
    tide__table_deinit(&x.makes);
    tide__table_deinit(&x.reads);
    tide__table_deinit(&x.overs);
    return st;
}

// ---- entry points ----

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
    if (!number_nodes(f, glue, node_of, &m->n_nodes))
        return TIDE_NO_MEMORY(err, "for an order of %zu steps", f->n_steps);
    m->n_steps = f->n_steps;
    m->n_tensors = f->n_tensors;
    m->nodes = tide_host_calloc(m->n_nodes + 1, sizeof *m->nodes);
    m->tensors = tide_host_calloc(f->n_tensors + 1, sizeof *m->tensors);
    if (m->nodes == NULL || m->tensors == NULL) return TIDE_NO_MEMORY(err, "for an order of %zu steps", f->n_steps);
    for (size_t t = 0; t < f->n_tensors; t++) m->tensors[t].maker = node_of[f->tensors[t].maker];
    if (!fill_lists(f, node_of, m)) return TIDE_NO_MEMORY(err, "for an order of %zu steps", f->n_steps);
    TIDE_TRY(cut_atoms(f, m, err));
    return fill_nodes(f, node_of, m, err);
}

tide_status tide__order_model_make(const tide__order_facts *f, bool glue, tide__order_model *out, tide_error *err) {
    *out = (tide__order_model){0};
    uint32_t *node_of;
    TIDE_TRY(TIDE_NEW(&node_of, f->n_steps + 1, err, "for an order of %zu steps", f->n_steps));
    const tide_status st = make(f, glue, node_of, out, err);
    tide_host_free(node_of);
    if (st != TIDE_OK) tide__order_model_deinit(out);
    return st;
}

// ---- what a node does to memory ----

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

tide__effect tide__order_model_effect(const tide__order_model *m, const tide__ran *ran, uint32_t node,
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
    return (tide__effect){.transient_bytes = live_bytes + n->new_bytes + n->scratch_bytes - saved,
                          .after_bytes = live_bytes + n->new_bytes - freed};
}

tide_status tide__order_model_peak(const tide__order_model *m, const uint32_t *order, uint64_t *transients,
                                   uint64_t *peak_bytes, tide_error *err) {
    int32_t *place;
    TIDE_TRY(TIDE_NEW(&place, m->n_nodes + 1, err, "for an order of %zu steps", m->n_nodes));
    for (size_t i = 0; i < m->n_nodes; i++) place[i] = TIDE__NOT_RAN;
    const tide__ran ran = {.place = place};
    uint64_t live = 0, peak = 0;
    for (size_t i = 0; i < m->n_nodes; i++) {
        TIDE_ASSERT(place[order[i]] == TIDE__NOT_RAN);
        const tide__effect effect = tide__order_model_effect(m, &ran, order[i], live);
        if (effect.transient_bytes > peak) peak = effect.transient_bytes;
        if (transients != NULL) transients[i] = effect.transient_bytes;
        live = effect.after_bytes;
        place[order[i]] = TIDE__RAN;
    }
    *peak_bytes = peak;
    tide_host_free(place);
    return TIDE_OK;
}
