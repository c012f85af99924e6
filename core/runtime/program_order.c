// SPDX-License-Identifier: MIT
//
// Another order for the steps of a program, second runs of its nodes, and both as a plan file names them. See
// program.h.
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/runtime/program_internal.h"

static tide_status no_memory(size_t n, tide_error *err) {
    return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for an order of %zu steps", n);
}

static const char *step_name(const tide_program *p, size_t step) { return p->graph->nodes[p->steps[step].node].name; }

tide_status tide_program_reorder(tide_program *p, const uint32_t *order, tide_error *err) {
    uint32_t *nodes = tide_host_calloc(p->n_steps + 1, sizeof *nodes);
    if (nodes == NULL) return no_memory(p->n_steps, err);
    tide_status st = TIDE_OK;
    for (size_t i = 0; i < p->n_steps && st == TIDE_OK; i++) {
        if (order[i] < p->n_steps)
            nodes[i] = p->steps[order[i]].node;
        else
            st = TIDE_FAIL(err, TIDE_ERR_INVALID, "the order names step %u; the program has %zu", order[i], p->n_steps);
    }
    if (st == TIDE_OK) st = tide__program_arrange(p, nodes, p->n_steps, NULL, 0, err);
    tide_host_free(nodes);
    return st;
}

tide_status tide_program_repeat(tide_program *p, uint32_t step, uint32_t before, tide_error *err) {
    if (step >= p->n_steps || before > p->n_steps)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "step %u again before step %u; the program has %zu steps", step, before,
                         p->n_steps);
    if (before <= step)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "node '%s' runs at step %u: before step %u it would be no second run",
                         step_name(p, step), step, before);
    uint32_t *nodes = tide_host_calloc(p->n_steps + 1, sizeof *nodes);
    if (nodes == NULL) return no_memory(p->n_steps + 1, err);
    for (size_t i = 0; i < p->n_steps; i++) nodes[i + (i >= before)] = p->steps[i].node;
    nodes[before] = (uint32_t)p->graph->n_nodes;
    const tide_status st = tide__program_arrange(p, nodes, p->n_steps + 1, &p->steps[step].node, 1, err);
    tide_host_free(nodes);
    return st;
}

// ---- as a plan file says ----

#define NO_STEP UINT32_MAX

/// From names to nodes. Steps may share a name: those are taken in the order in which they stand.
typedef struct follower {
    const tide_program *p;
    tide_strmap by_name; ///< name -> the first of its steps that is not taken; NO_STEP: none is left
    uint32_t *next;      ///< [n_steps] the next step of the same name; NO_STEP
    tide_strmap second;  ///< "<node>.again" -> index into again
    uint32_t *again;     ///< [n_again] nodes
    size_t n_again;
    uint32_t *nodes; ///< [n] the order
} follower;

static tide_status index_steps(follower *f, tide_error *err) {
    for (size_t i = f->p->n_steps; i-- > 0;) {
        uint64_t later = NO_STEP;
        tide_strmap_get(&f->by_name, step_name(f->p, i), &later);
        f->next[i] = (uint32_t)later;
        if (tide_strmap_put(&f->by_name, step_name(f->p, i), i) != TIDE_OK) return no_memory(f->p->n_steps, err);
    }
    return TIDE_OK;
}

static bool is_twin(const tide_program *p, uint32_t node_i) {
    for (size_t i = 0; i < p->n_twins; i++) {
        if (p->twins[i].first == node_i) return true;
    }
    return false;
}

static tide_status add_second(follower *f, const char *name, tide_error *err) {
    uint64_t step;
    if (!tide_strmap_get(&f->by_name, name, &step))
        return TIDE_FAIL(err, TIDE_ERR_INCOMPARABLE, "node '%s' is to run twice, and the program '%s' has none", name,
                         f->p->graph->name);
    const uint32_t node_i = f->p->steps[step].node;
    if (is_twin(f->p, node_i)) return TIDE_OK;
    tide_text again = {0};
    tide_text_addf(&again, "%s.again", name);
    tide_status st = TIDE_OK;
    if (!again.failed && tide_strmap_get(&f->second, again.data, NULL))
        st = TIDE_FAIL(err, TIDE_ERR_INCOMPARABLE, "node '%s' is to run a third time", name);
    else if (again.failed || tide_strmap_put(&f->second, again.data, f->n_again) != TIDE_OK)
        st = no_memory(f->p->n_steps, err);
    tide_text_deinit(&again);
    if (st == TIDE_OK) f->again[f->n_again++] = node_i;
    return st;
}

static tide_status find_step(follower *f, size_t at, const char *name, tide_error *err) {
    uint64_t i;
    if (tide_strmap_get(&f->second, name, &i)) {
        f->nodes[at] = (uint32_t)(f->p->graph->n_nodes + i);
        return TIDE_OK;
    }
    if (!tide_strmap_get(&f->by_name, name, &i))
        return TIDE_FAIL(err, TIDE_ERR_INCOMPARABLE, "step %zu is '%s', and the program '%s' has no such node", at,
                         name, f->p->graph->name);
    if (i == NO_STEP)
        return TIDE_FAIL(err, TIDE_ERR_INCOMPARABLE, "step %zu is '%s', which the program '%s' has fewer times", at,
                         name, f->p->graph->name);
    f->nodes[at] = f->p->steps[i].node;
    // Overwriting what is there takes no memory.
    return tide_strmap_put(&f->by_name, name, f->next[i]) == TIDE_OK ? TIDE_OK : no_memory(f->p->n_steps, err);
}

/// A second run that the program has already is a step of the order too.
static tide_status check_named(const follower *f, const char *name, tide_error *err) {
    tide_text again = {0};
    uint64_t step = NO_STEP;
    tide_text_addf(&again, "%s.again", name);
    tide_status st = again.failed ? no_memory(f->p->n_steps, err) : TIDE_OK;
    if (st == TIDE_OK && tide_strmap_get(&f->by_name, again.data, &step) && step != NO_STEP)
        st = TIDE_FAIL(err, TIDE_ERR_INCOMPARABLE, "node '%s' is to run twice, and the order has it once", name);
    tide_text_deinit(&again);
    return st;
}

static tide_status read_names(follower *f, char *const *names, size_t n, char *const *recomputed, size_t n_recomputed,
                              tide_error *err) {
    f->next = tide_host_calloc(f->p->n_steps + 1, sizeof *f->next);
    f->again = tide_host_calloc(n_recomputed + 1, sizeof *f->again);
    f->nodes = tide_host_calloc(n + 1, sizeof *f->nodes);
    if (f->next == NULL || f->again == NULL || f->nodes == NULL) return no_memory(n, err);
    TIDE_TRY(index_steps(f, err));
    for (size_t i = 0; i < n_recomputed; i++) TIDE_TRY(add_second(f, recomputed[i], err));
    for (size_t i = 0; i < n; i++) TIDE_TRY(find_step(f, i, names[i], err));
    for (size_t i = 0; i < n_recomputed; i++) TIDE_TRY(check_named(f, recomputed[i], err));
    return TIDE_OK;
}

tide_status tide_program_follow(tide_program *p, char *const *names, size_t n, char *const *recomputed,
                                size_t n_recomputed, tide_error *err) {
    follower f = {.p = p};
    tide_status st = read_names(&f, names, n, recomputed, n_recomputed, err);
    if (st == TIDE_OK) {
        st = tide__program_arrange(p, f.nodes, n, f.again, f.n_again, err);
        // What cannot be done to this program was done to the one that the names come from.
        if (st == TIDE_ERR_INVALID) {
            st = TIDE_ERR_INCOMPARABLE;
            if (err != NULL) err->status = st;
        }
    }
    tide_strmap_deinit(&f.by_name);
    tide_strmap_deinit(&f.second);
    tide_host_free(f.next);
    tide_host_free(f.again);
    tide_host_free(f.nodes);
    return st;
}
