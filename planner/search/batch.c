// SPDX-License-Identifier: MIT
//
// batch: a handful of skyline probes on several threads. Which one counts does not depend on who was first: it is the
// one with the lowest number. See search_internal.h.
#include <pthread.h>

#include "core/base/host_alloc.h"
#include "planner/search/search_internal.h"

typedef struct batch {
    const tide_sky_part *part;
    search_job *jobs;
    uint32_t n_jobs;
    _Atomic uint32_t next;
    _Atomic uint32_t winner; ///< lowest so far
    atomic_bool no_memory;
} batch;

/// Job `k` has an answer: those after it are not needed.
static void win(batch *b, uint32_t k) {
    uint32_t lowest = atomic_load(&b->winner);
    while (k < lowest && !atomic_compare_exchange_weak(&b->winner, &lowest, k)) {
    }
    for (uint32_t i = k + 1; i < b->n_jobs; i++) atomic_store(&b->jobs[i].stop, true);
}

static void work(batch *b, tide_sky_tree *tree) {
    for (;;) {
        const uint32_t k = atomic_fetch_add(&b->next, 1);
        if (k >= b->n_jobs || k > atomic_load(&b->winner)) return;
        search_job *job = &b->jobs[k];
        job->result = tide__sky_tree_run(tree, &job->probe, job->offsets, &job->n_nodes);
        job->n_work = tide__sky_tree_work(tree);
        if (job->result == TIDE_SKY_NOMEM) atomic_store(&b->no_memory, true);
        if (job->result != TIDE_SKY_LIMIT) win(b, k);
    }
}

/// Each node of a path takes some hundred bytes of a thread's stack, more under a sanitizer: threads made here have
/// room for the longest path, others for that of a few items.
enum { STACK_BYTES_PER_NODE = 1024, FEW_ITEMS = 4000 };

static void *work_aside(void *arg) {
    batch *b = arg;
    tide_sky_tree *tree;
    // Without memory the other threads do it, if there is one that surely can.
    if (tide__sky_tree_create(b->part, &tree, NULL) != TIDE_OK) {
        if (b->part->n > FEW_ITEMS) atomic_store(&b->no_memory, true);
        return NULL;
    }
    work(b, tree);
    tide__sky_tree_destroy(tree);
    return NULL;
}

static bool start_thread(batch *b, pthread_t *out) {
    pthread_attr_t attr;
    if (pthread_attr_init(&attr) != 0) return false;
    bool ok = true;
    if (b->part->n > FEW_ITEMS)
        ok = pthread_attr_setstacksize(&attr, (size_t)TIDE_SKY_MAX_DEPTH * STACK_BYTES_PER_NODE) == 0;
    ok = ok && pthread_create(out, &attr, work_aside, b) == 0;
    pthread_attr_destroy(&attr);
    return ok;
}

/// Starting a thread costs about as much as this many nodes.
enum { NODES_WORTH_A_THREAD = 1024, MAX_THREADS = 64 };

static uint32_t threads_for(const search_job *jobs, uint32_t n_jobs, uint32_t n_threads) {
    uint64_t nodes = 0;
    for (uint32_t k = 0; k < n_jobs; k++) {
        nodes += jobs[k].probe.node_limit < NODES_WORTH_A_THREAD ? jobs[k].probe.node_limit : NODES_WORTH_A_THREAD;
    }
    if (nodes < NODES_WORTH_A_THREAD) return 1;
    if (n_threads > n_jobs) n_threads = n_jobs;
    return n_threads < MAX_THREADS ? n_threads : MAX_THREADS;
}

tide_status tide__search_batch(const tide_sky_part *part, search_job *jobs, uint32_t n_jobs, uint32_t n_threads,
                               uint32_t *winner, tide_error *err) {
    batch b = {.part = part, .jobs = jobs, .n_jobs = n_jobs};
    atomic_init(&b.winner, n_jobs);
    for (uint32_t k = 0; k < n_jobs; k++) {
        atomic_init(&jobs[k].stop, false);
        jobs[k].probe.stop = &jobs[k].stop;
        jobs[k].result = TIDE_SKY_LIMIT;
        jobs[k].n_nodes = jobs[k].n_work = 0;
    }
    tide_sky_tree *tree;
    TIDE_TRY(tide__sky_tree_create(part, &tree, err));
    pthread_t threads[MAX_THREADS];
    uint32_t n_aside = 0;
    const uint32_t wanted = threads_for(jobs, n_jobs, n_threads);
    const bool is_own_stack_enough = part->n <= FEW_ITEMS;
    while (n_aside + is_own_stack_enough < wanted && start_thread(&b, &threads[n_aside])) n_aside++;
    if (is_own_stack_enough) work(&b, tree);
    if (!is_own_stack_enough && n_aside == 0) atomic_store(&b.no_memory, true);
    for (uint32_t k = 0; k < n_aside; k++) pthread_join(threads[k], NULL);
    tide__sky_tree_destroy(tree);
    *winner = atomic_load(&b.winner);
    if (atomic_load(&b.no_memory)) {
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "search: no memory for the tree of %u tensors", part->n);
    }
    return TIDE_OK;
}
