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
#include "preload/stacks.h"
#include "profiler/feed/feed_frames.h"

_Thread_local preload_thread preload_self;

// ---- into the ring ----

static const char *const functions[] = {
#define XX(name, text) text,
    PRELOAD_FUNCTION_MAP(XX)
#undef XX
};

static inline bool is_range(const preload_event *e) { return e->how >= TIDE__BY_ADDRESS_RANGE; }

/// In the scope that the thread is in. `frame`: of the call stack, 0: none.
static inline void tell(const preload_event *e, uint32_t frame) {
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
                                     .scope = preload_scope_now(),
                                     .tag = functions[e->function]};
    if (__builtin_expect(preload_wants_stacks(), 0))
        tide__feed_memory_in(preload_feed, &event, frame);
    else
        tide__feed_memory(preload_feed, &event);
}

/// `stack` NULL: none.
static inline void tell_of(const preload_event *e, const preload_stack *stack) {
    tell(e, stack != NULL ? preload_stack_number(stack, false) : 0);
}

/// A named moment in the trace.
static void tell_mark(const char *name) {
    const tide_memory_event event = {.op = TIDE_MEM_SNAPSHOT,
                                     .device = TIDE_CPU,
                                     .thread = tide__thread_number(),
                                     .scope = preload_scope_now(),
                                     .tag = name};
    tide__feed_memory(preload_feed, &event);
}

static void tell_dropped(void) { tell_mark("a signal handler did more than could be recorded"); }

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

void preload_drop_early(void) {
    early.n = early.n_lost = 0;
    preload_stack_drop_kept();
}

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
    for (size_t i = 0; i < early.n; i++) tell_of(&early.events[i], preload_stack_kept(early.events[i].stack));
    if (early.n_lost > 0) tell_dropped();
    preload_drop_early();
}

/// With the lock held; false: the feed is there by now.
static bool keep_early(const preload_event *e, const preload_stack *stack) {
    const preload_state state = preload_get_state();
    if (state != PRELOAD_EARLY && state != PRELOAD_CHILD) return false;
    if (early.n == early.cap && !grow_early()) {
        early.n_lost++;
        return true;
    }
    preload_event *kept = &early.events[early.n++];
    *kept = *e;
    kept->stack = stack != NULL ? preload_stack_keep(stack) : 0;
    return true;
}

static __attribute__((noinline)) void put_early(const preload_event *e, const preload_stack *stack) {
    const int saved = errno;
    if (preload_get_state() == PRELOAD_CHILD) preload_begin_child();
    preload_lock_early();
    const bool is_kept = keep_early(e, stack);
    preload_unlock_early();
    if (!is_kept && preload_get_state() == PRELOAD_ON) tell_of(e, stack);
    errno = saved;
}

// ---- call stacks ----

/// Whether it says who asked.
static inline bool has_stack(const preload_event *e) {
    return __builtin_expect(preload_wants_stacks(), 0) && (e->op == TIDE_MEM_ALLOC || e->op == TIDE_MEM_OOM);
}

static inline void put(const preload_event *e, const preload_stack *stack) {
    if (__builtin_expect(preload_get_state() == PRELOAD_ON, 1))
        tell_of(e, stack);
    else
        put_early(e, stack);
}

static __attribute__((noinline)) void put_with_stack(const preload_event *e) {
    preload_stack stack;
    preload_stack_take(false, &stack);
    put(e, &stack);
}

// ---- inside ----

/// A signal handler came while the thread was inside.
static __attribute__((noinline)) void wait_inside(preload_thread *self, const preload_event *e) {
    if (preload_get_state() != PRELOAD_ON && preload_get_state() != PRELOAD_EARLY) return;
    if (self->n_waiting == PRELOAD_MAX_WAITING) {
        self->has_dropped = true;
        return;
    }
    preload_event *waits = &self->waiting[self->n_waiting];
    *waits = *e;
    waits->t_ns = 0;
    waits->stack = 0;
    if (has_stack(e) && preload_get_state() == PRELOAD_ON) {
        preload_stack stack;
        preload_stack_take(true, &stack);
        waits->stack = preload_stack_number(&stack, true);
    }
    atomic_signal_fence(memory_order_seq_cst);
    self->n_waiting++;
}

/// The last thing inside. What comes meanwhile waits as well, and is put in here.
static __attribute__((noinline)) void put_waiting(preload_thread *self) {
    for (unsigned i = 0; i < self->n_waiting; i++) {
        if (preload_get_state() == PRELOAD_ON)
            tell(&self->waiting[i], self->waiting[i].stack);
        else
            put_early(&self->waiting[i], NULL);
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
    if (has_stack(e)) {
        put_with_stack(e);
    } else {
        put(e, NULL);
        if (__builtin_expect(preload_wants_stacks(), 0)) preload_stack_see_free();
    }
    atomic_signal_fence(memory_order_seq_cst);
    if (__builtin_expect(self->n_waiting != 0 || self->has_dropped, 0)) put_waiting(self);
    self->is_inside = false;
}

// ---- of the program's own names ----

/// Whether there is a feed, which the first event of a forked child opens.
static bool has_feed(void) {
    if (preload_get_state() == PRELOAD_CHILD) preload_begin_child();
    return preload_get_state() == PRELOAD_ON;
}

/// False: the thread is inside already, or nothing is recorded.
static bool go_inside(preload_thread *self) {
    const preload_state state = preload_get_state();
    if (state == PRELOAD_OFF || state == PRELOAD_FORKED || self->is_inside) return false;
    self->is_inside = true;
    atomic_signal_fence(memory_order_seq_cst);
    return true;
}

static void come_out(preload_thread *self) {
    atomic_signal_fence(memory_order_seq_cst);
    if (self->n_waiting != 0 || self->has_dropped) put_waiting(self);
    self->is_inside = false;
}

void preload_put_scope(const tide_scope *scope, bool enter) {
    preload_thread *self = &preload_self;
    const int saved = errno;
    if (!go_inside(self)) return;
    const tide_scope_event event = {.enter = enter, .thread = tide__thread_number(), .scope = scope};
    if (has_feed()) tide__feed_scope(preload_feed, &event);
    come_out(self);
    errno = saved;
}

void preload_put_mark(const char *name) {
    preload_thread *self = &preload_self;
    const int saved = errno;
    if (!go_inside(self)) return;
    if (has_feed()) tell_mark(name);
    come_out(self);
    errno = saved;
}

void preload_put_fact(const void *bytes, size_t n) {
    preload_thread *self = &preload_self;
    const int saved = errno;
    if (!go_inside(self)) return;
    // One that cannot be put in is counted nowhere: it is no event.
    if (has_feed()) (void)!tide__feed_register(preload_feed, TIDE__LOG_FACT, bytes, n, NULL);
    come_out(self);
    errno = saved;
}
