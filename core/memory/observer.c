// SPDX-License-Identifier: MIT
//
// Names of operations, and the observer that forwards to two. See observer.h.
#include "core/memory/observer.h"

const char *tide_memory_op_name(tide_memory_op op) {
    switch (op) {
#define XX(name, value, text)                                                                                          \
    case TIDE_MEM_##name:                                                                                              \
        return text;
        TIDE_MEMORY_OP_MAP(XX)
#undef XX
    }
    return "op ?";
}

// ---- two observers as one ----

static void both_on_memory(void *self, const tide_memory_event *event) {
    const tide_observer_pair *pair = self;
    if (pair->a != NULL) pair->a->on_memory(pair->a->self, event);
    if (pair->b != NULL) pair->b->on_memory(pair->b->self, event);
}

static void both_on_scope(void *self, const tide_scope_event *event) {
    const tide_observer_pair *pair = self;
    if (pair->a != NULL && pair->a->on_scope != NULL) pair->a->on_scope(pair->a->self, event);
    if (pair->b != NULL && pair->b->on_scope != NULL) pair->b->on_scope(pair->b->self, event);
}

tide_observer tide_observer_both(const tide_observer_pair *pair) {
    const tide_observer *a = pair->a, *b = pair->b;
    const bool scopes = (a != NULL && a->on_scope != NULL) || (b != NULL && b->on_scope != NULL);
    // `self` is void * for every observer; the two callbacks above only read through it.
    return (tide_observer){.self = (void *)(uintptr_t)pair,
                           .on_memory = both_on_memory,
                           .on_scope = scopes ? both_on_scope : NULL,
                           .no_time = (a == NULL || a->no_time) && (b == NULL || b->no_time)};
}
