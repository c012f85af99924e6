// SPDX-License-Identifier: MIT
//
// timeline: see timeline.h.
#include "planner/strategies/timeline.h"

#include "core/base/assert.h"
#include "core/base/host_alloc.h"

static tide_status walk(const tide_problem *p, const uint32_t *births, const uint32_t *deaths, tide_timeline_fn *born,
                        tide_timeline_fn *died, void *self, tide_error *err) {
    size_t n_dead = 0;
    for (size_t k = 0; k < p->n; k++) {
        const uint32_t tick = p->items[births[k]].begin;
        for (; n_dead < p->n && p->items[deaths[n_dead]].end <= tick; n_dead++)
            TIDE_TRY(died(self, deaths[n_dead], err));
        TIDE_ASSERT(k == 0 || p->items[births[k - 1]].begin <= tick);
        TIDE_TRY(born(self, births[k], err));
    }
    TIDE_ASSERT(n_dead < p->n || p->n == 0); // what was born last still lives
    for (; n_dead < p->n; n_dead++) TIDE_TRY(died(self, deaths[n_dead], err));
    return TIDE_OK;
}

tide_status tide__timeline_walk(const tide_problem *problem, tide_item_order order, tide_timeline_fn *born,
                                tide_timeline_fn *died, void *self, tide_error *err) {
    uint32_t *births = NULL, *deaths = NULL;
    TIDE_TRY(tide__order_make(problem, order, &births, err));
    tide_status st = tide__order_make(problem, TIDE_ORDER_END, &deaths, err);
    if (st == TIDE_OK) st = walk(problem, births, deaths, born, died, self, err);
    tide_host_free(births);
    tide_host_free(deaths);
    return st;
}
