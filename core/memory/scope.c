// SPDX-License-Identifier: MIT
//
// Scopes and numbers of threads: what each thread of the process has one of. See tidemark/memory.h.
//
// The stack of a thread is a list through the callers' own structs, innermost first:
//
//     innermost (thread-local) -> [conv1 | parent] -> [run 0 | parent] -> NULL
#include <stdatomic.h>

#include "core/base/assert.h"
#include "core/base/text.h"
#include "core/memory/thread_number.h"

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
