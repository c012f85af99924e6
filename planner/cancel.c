// SPDX-License-Identifier: MIT
//
// See cancel.h.
#include "planner/cancel.h"

static _Thread_local tide__cancel *current;

tide__cancel *tide__cancel_work_for(tide__cancel *c) {
    tide__cancel *before = current;
    current = c;
    return before;
}

tide__cancel *tide__cancel_current(void) { return current; }

bool tide__is_cancelled(void) {
    tide__cancel *c = current;
    if (c == NULL || c->is_cancelled == NULL) return false;
    if (atomic_load_explicit(&c->was_cancelled, memory_order_relaxed)) return true;
    if (!c->is_cancelled(c->ctx)) return false;
    atomic_store_explicit(&c->was_cancelled, true, memory_order_relaxed);
    return true;
}
