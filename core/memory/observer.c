// SPDX-License-Identifier: MIT
//
// Scopes, thread numbers and the observer that forwards to two. See observer.h.
//
// The stack of a thread is a list through the callers' own structs, innermost first:
//
//     innermost (thread-local) -> [conv1 | parent] -> [run 0 | parent] -> NULL
#include "core/memory/observer.h"

#include <stdatomic.h>

#include "core/base/assert.h"
#include "core/base/text.h"
#include "core/memory/thread_number.h"

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

// ---- scopes ----

static _Thread_local const tide_scope *innermost;
static _Thread_local uint64_t n_entered;

static void tell_scope(const tide_observer *obs, const tide_scope *scope, bool enter) {
    if (obs == NULL || obs->on_scope == NULL) return;
    const tide_scope_event event = {
        .enter = enter, .t_ns = obs->no_time ? 0 : tide_now_ns(), .thread = tide_thread_id(), .scope = scope};
    obs->on_scope(obs->self, &event);
}

static bool is_entered(const tide_scope *scope) {
    for (const tide_scope *s = innermost; s != NULL; s = s->parent) {
        if (s == scope) return true;
    }
    return false;
}

void tide_scope_enter(tide_scope *scope, const tide_observer *obs) {
    TIDE_ASSERT(!is_entered(scope)); // else the list of scopes becomes a ring
    scope->parent = innermost;
    scope->entry = ++n_entered;
    innermost = scope;
    tell_scope(obs, scope, true);
}

void tide_scope_leave(tide_scope *scope, const tide_observer *obs) {
    // Leaving an outer scope leaves what was forgotten inside it; leaving one that is not entered does nothing.
    if (!is_entered(scope)) return;
    while (innermost != scope) {
        TIDE_ASSERT(innermost->parent != NULL);
        tell_scope(obs, innermost, false);
        innermost = innermost->parent;
    }
    tell_scope(obs, scope, false);
    innermost = scope->parent;
}

const tide_scope *tide_scope_current(void) { return innermost; }

_Thread_local uint32_t tide__thread_number_cache __attribute__((tls_model("initial-exec")));

uint32_t tide_thread_id(void) {
    static _Atomic uint32_t n_threads;
    uint32_t *mine = &tide__thread_number_cache;
    if (*mine == 0) *mine = atomic_fetch_add(&n_threads, 1) + 1;
    return *mine;
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
