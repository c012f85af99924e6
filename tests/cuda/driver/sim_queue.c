// SPDX-License-Identifier: MIT
//
// The thread of a stream. It starts with the first piece of work, sleeps when there is none, and goes after a while
// without any, so that thousands of streams cost thousands of threads only while they work.
//
// Work comes over a list that many push on and one takes whole. Pushing releases, taking acquires; nothing goes the
// other way: a host thread that pushes is not ordered behind what the stream did before (see sim.h).
//
// `sleeper` says what the thread does: AWAKE looks at the list before it sleeps; ASLEEP is to be woken; GONE is to be
// started. The look after the store needs both in this order, which the atomic exchange gives on x86-64; elsewhere a
// wake that was missed costs one round of the timed sleep.
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/cuda/driver/sim.h"
#include "tests/cuda/driver/sim_kernels.h"

enum { AWAKE, ASLEEP, GONE };
#define IDLE_NS 100000000L
#define STACK_BYTES ((size_t)1 << 20)

struct sim_op {
    sim_op *next;
    sim_work work;
    sim_point *done;
    size_t n_deps;
    tidesim_work event; ///< ids only, until it has run
    sim_point *deps[];
};

struct sim_queue {
    sim_op *_Atomic pushed; ///< last one first
    _Atomic uint32_t sleeper;
    _Atomic bool closed;
    _Atomic uint32_t refs; ///< the stream's own and the thread's
};

sim_queue *sim_queue_new(void) {
    sim_queue *queue = SIM_NEW(sim_queue);
    atomic_init(&queue->sleeper, GONE);
    atomic_init(&queue->refs, 1);
    return queue;
}

static void unref(sim_queue *queue) {
    if (atomic_fetch_sub_explicit(&queue->refs, 1, memory_order_release) != 1) return;
    (void)atomic_load_explicit(&queue->refs, memory_order_acquire);
    free(queue);
}

static void tell_hook(sim_op *op, uint64_t begin_ns) {
    const tidesim_hooks *hooks = atomic_load_explicit(&sim_hooks, memory_order_acquire);
    if (hooks == NULL || hooks->work == NULL) return;
    tidesim_work *event = &op->event;
    const sim_work *work = &op->work;
    event->kind = work->sort == SIM_WORK_COPY   ? TIDESIM_WORK_COPY
                  : work->sort == SIM_WORK_FILL ? TIDESIM_WORK_MEMSET
                  : work->sort == SIM_WORK_HOST ? TIDESIM_WORK_HOST_FUNC
                                                : TIDESIM_WORK_KERNEL;
    event->begin_ns = begin_ns;
    event->end_ns = sim_now_ns();
    event->bytes = work->bytes * (work->height > 1 ? work->height : 1);
    event->src = work->src;
    event->dst = work->dst;
    event->src_type = work->src_type;
    event->dst_type = work->dst_type;
    event->src_device = work->src_device;
    event->dst_device = work->dst_device;
    event->value = work->value;
    event->name = work->kernel != NULL ? work->kernel->name : NULL;
    memcpy(event->grid, work->grid, sizeof event->grid);
    memcpy(event->block, work->block, sizeof event->block);
    event->shared_bytes = work->shared_bytes;
    event->graph = work->graph_id;
    event->node = work->node_id;
    hooks->work(hooks->user, event);
}

static void run(sim_op *op) {
    for (size_t i = 0; i < op->n_deps; i++) {
        sim_point_wait(op->deps[i]);
        sim_point_unref(op->deps[i]);
    }
    const bool timed = sim_work_is_timed(&op->work) || op->work.sort == SIM_WORK_HOST;
    const uint64_t begin_ns = timed ? sim_now_ns() : 0;
    sim_work_run(&op->work);
    if (timed) tell_hook(op, begin_ns);
    sim_work_done(&op->work);
    sim_point_done(op->done);
    sim_point_unref(op->done);
    free(op);
}

static sim_op *take_all(sim_queue *queue) {
    sim_op *last_first = atomic_exchange_explicit(&queue->pushed, NULL, memory_order_acquire), *in_order = NULL;
    while (last_first != NULL) {
        sim_op *next = last_first->next;
        last_first->next = in_order;
        in_order = last_first;
        last_first = next;
    }
    return in_order;
}

static bool is_empty(sim_queue *queue) { return atomic_load_explicit(&queue->pushed, memory_order_relaxed) == NULL; }

static bool becomes(sim_queue *queue, uint32_t from, uint32_t to) {
    return atomic_compare_exchange_strong_explicit(&queue->sleeper, &from, to, memory_order_relaxed,
                                                   memory_order_relaxed);
}

// Sleeps until work comes. False: none came, and the thread is to end.
static bool sleep_well(sim_queue *queue) {
    atomic_exchange_explicit(&queue->sleeper, ASLEEP, memory_order_acquire);
    const struct timespec idle = {.tv_nsec = IDLE_NS};
    if (is_empty(queue) && !atomic_load_explicit(&queue->closed, memory_order_relaxed))
        syscall(SYS_futex, (void *)(uintptr_t)&queue->sleeper, FUTEX_WAIT_PRIVATE, ASLEEP, &idle, NULL, 0);
    if (!is_empty(queue)) {
        atomic_store_explicit(&queue->sleeper, AWAKE, memory_order_relaxed);
        return true;
    }
    // Who pushes now either sees GONE and starts another thread, or is seen here.
    if (!becomes(queue, ASLEEP, GONE)) return true;
    return !is_empty(queue) && becomes(queue, GONE, AWAKE);
}

static void *work_on(void *arg) {
    sim_queue *queue = arg;
    do {
        for (sim_op *op = take_all(queue), *next; op != NULL; op = next) {
            next = op->next;
            run(op);
        }
    } while (!is_empty(queue) || sleep_well(queue));
    unref(queue);
    return NULL;
}

// A program's signals are not for our threads.
static int start(sim_queue *queue) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    const int failed = pthread_create(&thread, &attr, work_on, queue);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return failed;
}

static void wake(sim_queue *queue) {
    const uint32_t was = atomic_exchange_explicit(&queue->sleeper, AWAKE, memory_order_release);
    if (was == ASLEEP) syscall(SYS_futex, (void *)(uintptr_t)&queue->sleeper, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    if (was != GONE) return;
    atomic_fetch_add_explicit(&queue->refs, 1, memory_order_relaxed);
    for (int tries = 0; start(queue) != 0; tries++) {
        if (tries == 1000) {
            fputs("tidesim: no thread for a stream\n", stderr);
            abort();
        }
        usleep(1000);
    }
}

void sim_queue_close(sim_queue *queue) {
    atomic_store_explicit(&queue->closed, true, memory_order_relaxed);
    if (atomic_load_explicit(&queue->sleeper, memory_order_relaxed) != GONE) wake(queue);
    unref(queue);
}

sim_point *sim_queue_push(sim_queue *queue, sim_work work, sim_point *const *deps, size_t n_deps,
                          const sim_stream *stream, uint32_t correlation) {
    sim_op *op = sim_new(sizeof *op + n_deps * sizeof *deps);
    op->work = work;
    op->done = sim_point_new();
    op->n_deps = n_deps;
    for (size_t i = 0; i < n_deps; i++) op->deps[i] = sim_point_ref(deps[i]);
    op->event.device = (uint32_t)stream->ctx->device->ordinal;
    op->event.context = (uint32_t)stream->ctx->object.id;
    op->event.stream = (uint32_t)stream->id;
    op->event.correlation = correlation;
    sim_point *done = sim_point_ref(op->done);
    sim_op *last = atomic_load_explicit(&queue->pushed, memory_order_relaxed);
    do {
        op->next = last;
    } while (
        !atomic_compare_exchange_weak_explicit(&queue->pushed, &last, op, memory_order_release, memory_order_relaxed));
    wake(queue);
    return done;
}
