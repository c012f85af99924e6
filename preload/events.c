// SPDX-License-Identifier: MIT
//
// An event into the feed, and what must wait: before there is a feed, and while the thread is inside of this library.
// See preload.h.
//
//     thread     inside? -- yes --> waiting [alloc p][free q]     a signal handler's; put in when the thread comes out
//                   | no
//     process    state ON ----> ring of the thread
//                EARLY, CHILD -> early [alloc a][alloc b] ...     put in once the feed is there, with the time of then
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/memory/thread_number.h"
#include "preload/preload.h"

_Thread_local preload_thread preload_self;

// ---- into the ring ----

static const char *const functions[] = {
#define XX(name, text) text,
    PRELOAD_FUNCTION_MAP(XX)
#undef XX
};

static inline bool is_range(const preload_event *e) { return e->how >= TIDE__BY_ADDRESS_RANGE; }

static inline void tell(const preload_event *e) {
    const tide_memory_event event = {.op = e->op,
                                     .t_ns = e->t_ns,
                                     .device = TIDE_CPU,
                                     .kind = TIDE_KIND_HOST_PAGEABLE,
                                     .requested_bytes = e->bytes,
                                     .reserved_bytes = e->bytes,
                                     .address = e->address,
                                     .stream = e->how,
                                     .thread = tide__thread_number(),
                                     .allocator = is_range(e) ? TIDE__BY_ADDRESS_RANGES : "malloc",
                                     .tag = functions[e->function]};
    tide__feed_memory(preload_feed, &event);
}

/// A mark in the trace.
static void tell_dropped(void) {
    const tide_memory_event event = {.op = TIDE_MEM_SNAPSHOT,
                                     .device = TIDE_CPU,
                                     .thread = tide__thread_number(),
                                     .tag = "a signal handler did more than could be recorded"};
    tide__feed_memory(preload_feed, &event);
}

// ---- before there is a feed ----

enum { FIRST_EARLY = 2048 };

static preload_event first_early[FIRST_EARLY];
static struct {
    atomic_flag lock;
    preload_event *events; ///< [n] of cap
    size_t n, cap, n_lost;
} early = {.lock = ATOMIC_FLAG_INIT, .events = first_early, .cap = FIRST_EARLY};

void preload_lock_early(void) {
    while (atomic_flag_test_and_set_explicit(&early.lock, memory_order_acquire)) sched_yield();
}

void preload_unlock_early(void) { atomic_flag_clear_explicit(&early.lock, memory_order_release); }

void preload_drop_early(void) { early.n = early.n_lost = 0; }

/// The system's calls, for the functions may be ours.
static bool grow_early(void) {
    const size_t cap = 2 * early.cap, bytes = cap * sizeof(preload_event);
    const long at =
        syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0L);
    if (at == -1) return false;
    preload_event *fresh = (preload_event *)at; // NOLINT(performance-no-int-to-ptr)
    memcpy(fresh, early.events, early.n * sizeof *fresh);
    if (early.events != first_early) syscall(SYS_munmap, early.events, early.cap * sizeof *fresh);
    early.events = fresh;
    early.cap = cap;
    return true;
}

void preload_flush_early(void) {
    for (size_t i = 0; i < early.n; i++) tell(&early.events[i]);
    if (early.n_lost > 0) tell_dropped();
    preload_drop_early();
}

/// With the lock held; false: the feed is there by now.
static bool keep_early(const preload_event *e) {
    const preload_state state = preload_get_state();
    if (state != PRELOAD_EARLY && state != PRELOAD_CHILD) return false;
    if (early.n < early.cap || grow_early())
        early.events[early.n++] = *e;
    else
        early.n_lost++;
    return true;
}

static __attribute__((noinline)) void put_early(const preload_event *e) {
    const int saved = errno;
    if (preload_get_state() == PRELOAD_CHILD) preload_begin_child();
    preload_lock_early();
    const bool is_kept = keep_early(e);
    preload_unlock_early();
    if (!is_kept && preload_get_state() == PRELOAD_ON) tell(e);
    errno = saved;
}

// ---- inside ----

/// A signal handler came while the thread was inside.
static __attribute__((noinline)) void wait_inside(preload_thread *self, const preload_event *e) {
    if (preload_get_state() != PRELOAD_ON && preload_get_state() != PRELOAD_EARLY) return;
    if (self->n_waiting == PRELOAD_MAX_WAITING) {
        self->has_dropped = true;
        return;
    }
    self->waiting[self->n_waiting] = *e;
    self->waiting[self->n_waiting].t_ns = 0;
    atomic_signal_fence(memory_order_seq_cst);
    self->n_waiting++;
}

/// The last thing inside. What comes meanwhile waits as well, and is put in here.
static __attribute__((noinline)) void put_waiting(preload_thread *self) {
    for (unsigned i = 0; i < self->n_waiting; i++) {
        if (preload_get_state() == PRELOAD_ON)
            tell(&self->waiting[i]);
        else
            put_early(&self->waiting[i]);
    }
    self->n_waiting = 0;
    if (self->has_dropped && preload_get_state() == PRELOAD_ON) tell_dropped();
    self->has_dropped = false;
}

void preload_put(const preload_event *e) {
    preload_thread *self = &preload_self;
    const preload_state state = preload_get_state();
    if (__builtin_expect(state == PRELOAD_OFF || state == PRELOAD_FORKED, 0)) return;
    if (__builtin_expect(self->is_inside, 0)) {
        wait_inside(self, e);
        return;
    }
    self->is_inside = true;
    atomic_signal_fence(memory_order_seq_cst);
    if (__builtin_expect(state == PRELOAD_ON, 1))
        tell(e);
    else
        put_early(e);
    atomic_signal_fence(memory_order_seq_cst);
    if (__builtin_expect(self->n_waiting != 0 || self->has_dropped, 0)) put_waiting(self);
    self->is_inside = false;
}
