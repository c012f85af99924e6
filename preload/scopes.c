// SPDX-License-Identifier: MIT
//
// What the program is at by its own words: scopes, marks and facts that a recorded program tells of, by functions that
// it finds in the process (python/tidemark_torch.py calls them through ctypes). See preload.h.
//
//     enter("layer1, forward")   -> stack of the thread [ResNet, forward][layer1, forward]   -> its events lie in the
//     last leave(1)                   -> back to a depth: what was left by an exception is left, too
//
// No memory of the program's is taken, and no name is copied twice: who calls keeps what tidemark_preload_name gave.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/text.h"
#include "preload/preload.h"
#include "profiler/feed/registration.h"

// For programs that look the names up: there is no header of them.
PRELOAD_EXPORT const char *tidemark_preload_name(const char *text);
PRELOAD_EXPORT uint32_t tidemark_preload_enter(const char *name, int kind);
PRELOAD_EXPORT void tidemark_preload_leave(uint32_t depth);
PRELOAD_EXPORT void tidemark_preload_mark(const char *name);
PRELOAD_EXPORT void tidemark_preload_fact(const char *key, const char *value);

_Thread_local preload_scopes preload_scopes_self;

static pthread_key_t at_thread_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_key;

static void give_back(void *stack) {
    preload_scopes_self = (preload_scopes){0};
    preload_own_free(stack);
}

static void make_key(void) { has_key = pthread_key_create(&at_thread_end, give_back) == 0; }

void preload_scopes_forget(void) { preload_scopes_self.n = 0; }

/// False: there is no room.
static bool has_stack(preload_scopes *s) {
    if (s->stack != NULL) return true;
    const bool was_at_work = preload_self.is_at_work;
    preload_self.is_at_work = true; // what the C library takes for the key is ours
    pthread_once(&once, make_key);
    tide_scope *stack = has_key ? preload_own_alloc(PRELOAD_MAX_SCOPES * sizeof *stack, 0) : NULL;
    if (stack != NULL && pthread_setspecific(at_thread_end, stack) != 0) {
        preload_own_free(stack);
        stack = NULL;
    }
    preload_self.is_at_work = was_at_work;
    s->stack = stack;
    return stack != NULL;
}

/// A copy of the name that stays, for the functions below; NULL: there is no room.
const char *tidemark_preload_name(const char *text) {
    const size_t n = strlen(text) + 1;
    char *copy = preload_own_alloc(n, 0);
    if (copy != NULL) memcpy(copy, text, n);
    return copy;
}

/// The thread enters a scope of that kind (tide_scope_kind: a region or an operator), by a name of
/// tidemark_preload_name.
/// @return the depth before it: what leave takes
uint32_t tidemark_preload_enter(const char *name, int kind) {
    preload_scopes *s = &preload_scopes_self;
    const uint32_t depth = s->n;
    if (name == NULL || !has_stack(s)) return depth;
    if (depth < PRELOAD_MAX_SCOPES) {
        s->stack[depth] = (tide_scope){.name = name,
                                       .kind = kind == TIDE_SCOPE_OPERATOR ? TIDE_SCOPE_OPERATOR : TIDE_SCOPE_REGION,
                                       .index = -1,
                                       .parent = depth > 0 ? &s->stack[depth - 1] : NULL,
                                       .entry = ++s->n_entered};
        atomic_signal_fence(memory_order_seq_cst);
    }
    s->n = depth + 1;
    if (depth < PRELOAD_MAX_SCOPES) preload_put_scope(&s->stack[depth], true);
    return depth;
}

/// Leave all scopes of the thread that lie deeper than `depth`.
void tidemark_preload_leave(uint32_t depth) {
    preload_scopes *s = &preload_scopes_self;
    while (s->n > depth) {
        if (s->n <= PRELOAD_MAX_SCOPES) preload_put_scope(&s->stack[s->n - 1], false);
        s->n--;
    }
}

/// A named moment.
void tidemark_preload_mark(const char *name) {
    if (name != NULL) preload_put_mark(name);
}

/// A line about the process in the trace's table of facts, under "KEY.<pid>.<time>".
void tidemark_preload_fact(const char *key, const char *value) {
    char whole[128];
    tide_text bytes = {0};
    snprintf(whole, sizeof whole, "%.64s.%ld.%llu", key, (long)getpid(), (unsigned long long)tide_now_ns());
    if (tide__registration_put_fact(&bytes, whole, value, NULL) == TIDE_OK) preload_put_fact(bytes.data, bytes.len);
    tide_text_deinit(&bytes);
}
