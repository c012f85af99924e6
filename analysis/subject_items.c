// SPDX-License-Identifier: MIT
//
// The table of a subject's items, which several subjects of one input can share. See subject.h.
#include <stdatomic.h>

#include "analysis/subject_internal.h"
#include "core/base/host_alloc.h"

struct tide_items_hold {
    atomic_uint n_holds;
    tide_items items; ///< never changed once there
};

const tide_items *tide_subject_items(const tide_subject *s) { return s->items != NULL ? &s->items->items : NULL; }

const tide_items *tide_items_held(const tide_items_hold *hold) { return &hold->items; }

tide_items_hold *tide_subject_hold_items(const tide_subject *s) {
    if (s->items != NULL) atomic_fetch_add_explicit(&s->items->n_holds, 1, memory_order_relaxed);
    return s->items;
}

void tide_items_let_go(tide_items_hold *hold) {
    if (hold == NULL || atomic_fetch_sub_explicit(&hold->n_holds, 1, memory_order_acq_rel) != 1) return;
    tide_items_deinit(&hold->items);
    tide_host_free(hold);
}

/// The hold becomes the subject's own.
static void put(tide_subject *s, tide_items_hold *hold) {
    tide_items_let_go(s->items);
    s->items = hold;
    s->is_stale = false;
    if (s->facts.run_id != 0) s->facts.n_items = hold->items.n;
}

tide_status tide__subject_put_items(tide_subject *s, tide_items *items, tide_error *err) {
    tide_items_hold *hold = tide_host_alloc(sizeof *hold);
    if (hold == NULL) {
        tide_items_deinit(items);
        return TIDE_NO_MEMORY(err, "for a table of items");
    }
    atomic_init(&hold->n_holds, 1);
    hold->items = *items;
    *items = (tide_items){0};
    put(s, hold);
    return TIDE_OK;
}

void tide_subject_give_items(tide_subject *s, tide_items_hold *hold) {
    if (hold == s->items) return;
    atomic_fetch_add_explicit(&hold->n_holds, 1, memory_order_relaxed);
    put(s, hold);
}

void tide_subject_take_items(tide_subject *s, tide_subject *from) {
    if (from->items == NULL || s == from) return;
    put(s, from->items);
    from->items = NULL;
}
