// SPDX-License-Identifier: MIT
//
// pairs, from "is there a plan of at most N bytes?" to the smallest plan. See pairs.h.
//
//     proved bound --raised by NONE-->            <--lowered by FOUND-- best plan
#include <string.h>

#include "core/base/host_alloc.h"
#include "planner/search/pairs.h"

typedef struct improver {
    const tide_problem *p;
    tide_pairs *pairs;
    tide_placement *best;
    uint64_t *offsets; // [n] of the last probe
    uint64_t n_nodes, max_nodes, deadline_ns;
    uint64_t capacity_bytes;
} improver;

/// The next height above `bytes` that any plan can have.
static uint64_t next_height(const tide_problem *p, uint64_t bytes) {
    return bytes - bytes % p->grain_bytes + p->grain_bytes;
}

static void take_found(improver *m) {
    memcpy(m->best->offsets, m->offsets, m->p->n * sizeof *m->offsets);
    tide__placement_measure(m->best, m->p);
}

/// One probe with at most `max_nodes` of what is left. *answer says how it ended; best and proved follow it.
static tide_status probe(improver *m, uint64_t capacity_bytes, uint64_t max_nodes, tide_pairs_answer *answer,
                         tide_error *err) {
    const uint64_t left = m->max_nodes - m->n_nodes;
    TIDE_TRY(tide__pairs_search(m->pairs, capacity_bytes, max_nodes < left ? max_nodes : left, m->deadline_ns,
                                m->offsets, answer, &m->n_nodes, err));
    m->n_nodes++; // so that a limit on nodes ends probes that decide nothing
    if (m->n_nodes > m->max_nodes) m->n_nodes = m->max_nodes;
    if (*answer == TIDE_PAIRS_FOUND) take_found(m);
    if (*answer == TIDE_PAIRS_NONE && next_height(m->p, capacity_bytes) > m->best->proved_bytes) {
        m->best->proved_bytes = next_height(m->p, capacity_bytes);
        m->best->proof = TIDE_PROOF_SEARCH;
    }
    return TIDE_OK;
}

static bool is_done(const improver *m) {
    if (m->best->bytes <= m->best->proved_bytes) return true;
    if (m->capacity_bytes == 0) return false;
    return m->best->bytes <= m->capacity_bytes || m->best->proved_bytes > m->capacity_bytes;
}

/// From the best plan down, as long as that finds better ones. @return *answer of the last probe
static tide_status go_down(improver *m, uint64_t max_nodes, tide_pairs_answer *answer, tide_error *err) {
    *answer = TIDE_PAIRS_FOUND;
    while (*answer == TIDE_PAIRS_FOUND && !is_done(m)) {
        const uint64_t below = m->best->bytes - 1 - (m->best->bytes - 1) % m->p->grain_bytes;
        TIDE_TRY(probe(m, below, max_nodes, answer, err));
    }
    return TIDE_OK;
}

/// The bound first: where it can be met that ends it all. Each side gets more nodes the longer the other one is stuck.
static tide_status improve(improver *m, tide_error *err) {
    enum { FIRST_NODES = 2000 };
    tide_pairs_answer up = TIDE_PAIRS_NONE, down = TIDE_PAIRS_LIMIT;
    for (uint64_t n = FIRST_NODES; !is_done(m) && m->n_nodes < m->max_nodes; n *= 2) {
        const uint64_t before = m->n_nodes;
        const uint64_t at = m->capacity_bytes != 0 ? m->capacity_bytes : m->best->proved_bytes;
        TIDE_TRY(probe(m, at, n, &up, err));
        if (m->capacity_bytes == 0 && !is_done(m)) TIDE_TRY(go_down(m, n, &down, err));
        if (m->n_nodes == before && up == TIDE_PAIRS_LIMIT) break; // the deadline is over
        if (n > UINT64_MAX / 4) break;
    }
    return TIDE_OK;
}

tide_status tide__pairs_improve(const tide_problem *problem, uint64_t capacity_bytes, uint64_t max_nodes,
                                uint64_t deadline_ns, tide_placement *best, uint64_t *n_nodes, tide_error *err) {
    improver m = {.p = problem,
                  .best = best,
                  .max_nodes = max_nodes,
                  .deadline_ns = deadline_ns,
                  .capacity_bytes = capacity_bytes};
    TIDE_TRY(tide__pairs_create(problem, &m.pairs, err));
    m.offsets = tide_host_calloc(problem->n, sizeof *m.offsets);
    tide_status st =
        m.offsets != NULL ? TIDE_OK : TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to search %zu items", problem->n);
    if (st == TIDE_OK) st = improve(&m, err);
    *n_nodes += m.n_nodes;
    tide_host_free(m.offsets);
    tide__pairs_destroy(m.pairs);
    return st;
}
