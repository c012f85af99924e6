// SPDX-License-Identifier: MIT
//
// probes: which capacities are tried with which orders, and how long. See search_state.h.
//
// Run times are heavy-tailed: most instances are solved at once with some rule and order and never with others. So
// there are restarts: many short probes with other rules and orders each time, in batches of a few; node limits follow
// the sequence of Luby, Sinclair & Zuckerman 1993. A *slot* is a position in the batch. Each slot keeps how many dead
// ends its probes met at each section; the counts decay from probe to probe. Half of the slots probe at the *target*;
// the others between it and the best plan, so that there is soon a better plan also where the target cannot be met. The
// target is the capacity that was asked for; where none was, every fourth batch takes the lower bound, and the others a
// random capacity above it.
#include <pthread.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "planner/cancel.h"
#include "planner/search/search_state.h"

// ---- a batch: a handful of probes on several threads ----
//
// Which answer counts does not depend on which thread was first: it is that of the job with the lowest number.

typedef struct search_job {
    tide_sky_probe probe;
    tide_sky_result result;
    uint64_t n_nodes, n_work;
    uint32_t *offsets; ///< [n items of the part], with TIDE_SKY_FOUND
    atomic_bool stop;
} search_job;

typedef struct batch {
    const tide_sky_part *part;
    search_job *jobs;
    uint32_t n_jobs;
    _Atomic uint32_t next;
    _Atomic uint32_t winner; ///< lowest so far
    atomic_bool no_memory;
    tide__cancel *cancel; ///< of the plan that it works for; NULL: none
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
    tide__cancel_work_for(b->cancel);
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

/**
 * Run probes of one part on up to `n_threads`, in order.
 *
 * @param winner  out: the first job that did not end at its limit, n_jobs when there is none; those after it are
 *                undefined, those before it have run to their limits
 */
static tide_status run_probes(const tide_sky_part *part, search_job *jobs, uint32_t n_jobs, uint32_t n_threads,
                              uint32_t *winner, tide_error *err) {
    batch b = {.part = part, .jobs = jobs, .n_jobs = n_jobs, .cancel = tide__cancel_current()};
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
        return TIDE_NO_MEMORY(err, "for the tree of %u tensors", part->n);
    }
    return TIDE_OK;
}

// ---- which probes ----

static const struct {
    tide_sky_rule rule;
    tide_sky_fit fit;
    tide_sky_trait key[TIDE_SKY_KEY_LENGTH];
} FIRST[] = {
    {TIDE_SKY_LOWEST, TIDE_SKY_FIT_NONE, {TIDE_SKY_TOTAL, TIDE_SKY_STEPS, TIDE_SKY_AREA}},
    {TIDE_SKY_FEWEST, TIDE_SKY_FIT_EDGES, {TIDE_SKY_SIZE, TIDE_SKY_AREA, TIDE_SKY_CONFLICTS}},
    {TIDE_SKY_WEIGHTED, TIDE_SKY_FIT_NONE, {TIDE_SKY_TOTAL, TIDE_SKY_STEPS, TIDE_SKY_SIZE}},
    {TIDE_SKY_KEY, TIDE_SKY_FIT_NONE, {TIDE_SKY_TOTAL, TIDE_SKY_STEPS, TIDE_SKY_AREA}},
    {TIDE_SKY_LOWEST, TIDE_SKY_FIT_EDGES, {TIDE_SKY_CONFLICTS, TIDE_SKY_TOTAL, TIDE_SKY_AREA}},
    {TIDE_SKY_FEWEST, TIDE_SKY_FIT_NONE, {TIDE_SKY_SIZE, TIDE_SKY_AREA, TIDE_SKY_CONFLICTS}},
    {TIDE_SKY_WEIGHTED, TIDE_SKY_FIT_EDGES, {TIDE_SKY_AREA, TIDE_SKY_CONFLICTS, TIDE_SKY_TICKS}},
    {TIDE_SKY_KEY_LOW, TIDE_SKY_FIT_EDGES, {TIDE_SKY_TOTAL, TIDE_SKY_STEPS, TIDE_SKY_CONFLICTS}},
};
enum { N_FIRST = sizeof FIRST / sizeof *FIRST };

/// The rule and order of probe number `k`: first those that have turned out well, then drawn ones.
static void configure(uint64_t seed, uint32_t k, tide_sky_probe *out) {
    tide_rng rng = {seed ^ (UINT64_C(0x9e3779b97f4a7c15) * (k + UINT64_C(1)))};
    out->seed = tide_rng_u64(&rng);
    if (k < N_FIRST) {
        out->rule = FIRST[k].rule;
        out->fit = FIRST[k].fit;
        memcpy(out->key, FIRST[k].key, sizeof out->key);
        return;
    }
    // Weights by dead ends are the best rule where the first descent fails; the others are there for diversity.
    out->rule =
        tide_rng_below(&rng, 4) == 0 ? (tide_sky_rule)tide_rng_below(&rng, TIDE_SKY_N_RULES) : TIDE_SKY_WEIGHTED;
    out->fit = (tide_sky_fit)tide_rng_below(&rng, TIDE_SKY_N_FITS);
    for (int i = 0; i < TIDE_SKY_KEY_LENGTH; i++) {
        out->key[i] = (tide_sky_trait)tide_rng_below(&rng, TIDE_SKY_N_TRAITS);
    }
}

/// The sequence 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 …: within a factor of log of the best restarts for any tree.
static uint64_t luby(uint32_t i) {
    for (uint32_t size = 1;; size = 2 * size + 1) {
        if (i == size - 1) return (size + UINT64_C(1)) / 2;
        if (i < size) return luby(i - size / 2);
    }
}

typedef struct batch_plan {
    search_part *part;
    uint32_t low, high; ///< grains: the first that may be possible, and what is known to be
    uint32_t target;    ///< low <= target < high
} batch_plan;

enum { RELAX_ITEMS = 1000 }; ///< parts with more items have a slot whose capacity rises
enum { AT_BOUND_ONLY = 4 };  ///< batches before the first that asks above it

/// The capacity of slot `k`. The first slot that has an answer counts, so the smallest capacity comes first. Once a
/// tree of this part was exhausted, slots bisect: either answer halves what is open.
static uint32_t capacity_of(const batch_plan *plan, uint32_t k, tide_rng *rng) {
    const uint32_t gap = plan->high - plan->low;
    if (plan->part->has_exhausted && k < SEARCH_SLOTS / 2) return plan->low + (gap >> (2 * k + 1));
    if (k == 0 && plan->target > plan->low) return plan->low;
    const uint32_t above = plan->high - plan->target - 1;
    if (k < SEARCH_SLOTS / 2 || plan->part->n_batches < AT_BOUND_ONLY || above == 0) return plan->target;
    // Slot by slot nearer to the best plan: within a half, a quarter, … of the gap below it.
    const uint32_t below = (uint32_t)(tide_rng_f64(rng) * (above >> (k - SEARCH_SLOTS / 2 + 1)));
    return plan->high - 1 - below;
}

/// One slot of a large part starts at the target and relaxes its capacity after a number of dead ends: so one descent
/// ends in a plan, and in a better one the larger that number is. In very large parts this slot comes first, for there
/// may be time for one descent only.
static bool may_relax(const search_part *part, uint32_t slot) {
    return part->n > RELAX_ITEMS && slot == (part->n > SEARCH_SLOW_ITEMS ? 0 : SEARCH_SLOTS - 1);
}

static void relax_capacity(const batch_plan *plan, tide_sky_probe *probe) {
    enum { FIRST_RELAX_AFTER = 16, MAX_DOUBLINGS = 8, NODES_PER_ITEM = 8 };
    const uint32_t n = plan->part->n_batches;
    probe->capacity = plan->target;
    probe->max_capacity = plan->high - 1;
    probe->relax_after = FIRST_RELAX_AFTER << (n < MAX_DOUBLINGS ? n : MAX_DOUBLINGS);
    probe->node_limit = NODES_PER_ITEM * (uint64_t)plan->part->n * (n + 1);
}

/// A descent visits half of the part's items and sections at each node, on average.
static uint64_t visits_per_node(const search_part *part) { return (part->n + (uint64_t)part->sky->n_sections) / 2 + 1; }

/// Whether what is left is enough for one descent of a very large part; where it is not, local search uses it better.
static bool can_afford_descent(const tide_search *s, const search_part *part) {
    if (part->n <= SEARCH_SLOW_ITEMS) return true;
    return tide__search_nodes_left(s, visits_per_node(part) * SEARCH_WORK_PER_VISIT) > part->n;
}

static uint32_t plan_jobs(const tide_search *s, const batch_plan *plan, search_job *jobs) {
    const search_part *part = plan->part;
    const uint64_t budget = (2 * (uint64_t)part->n + 64) * luby(part->n_batches);
    const uint64_t work = visits_per_node(part);
    uint64_t left = tide__search_nodes_left(s, work * SEARCH_WORK_PER_VISIT);
    uint32_t n = 0;
    for (; n < SEARCH_SLOTS && left > 0; n++) {
        tide_sky_probe *probe = &jobs[n].probe;
        configure(s->seed, part->n_batches * SEARCH_SLOTS + n, probe);
        tide_rng rng = {probe->seed};
        probe->capacity = capacity_of(plan, n, &rng);
        probe->dead_ends = part->dead_ends + (size_t)n * part->sky->n_sections;
        probe->node_limit = budget;
        if (may_relax(part, n)) relax_capacity(plan, probe);
        if (probe->node_limit > left) probe->node_limit = left;
        probe->work_limit = s->work_limit == UINT64_MAX ? 0 : probe->node_limit * work;
        probe->deadline_ns = s->deadline_ns;
        left -= probe->node_limit;
    }
    return n;
}

/// Dead ends of each slot decay. Slots that were stopped by another thread start anew: their counts depend on the
/// clock.
static void decay(search_part *part, uint32_t n_jobs, uint32_t winner) {
    for (uint32_t k = 0; k < n_jobs; k++) {
        uint32_t *dead_ends = part->dead_ends + (size_t)k * part->sky->n_sections;
        for (uint32_t s = 0; s < part->sky->n_sections; s++) dead_ends[s] = k <= winner ? dead_ends[s] * 3 / 4 : 0;
    }
}

/// A plan of the part has been found.
static void take(tide_search *s, search_part *part, const uint32_t *offsets) {
    const uint64_t grain = part->sky->grain_bytes;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < part->n; i++) {
        const uint64_t end = offsets[i] * grain + s->problem->items[part->items[i]].size_bytes;
        if (end > bytes) bytes = end;
    }
    if (bytes >= part->bytes) return;
    part->bytes = bytes;
    for (uint32_t i = 0; i < part->n; i++) s->best->offsets[part->items[i]] = offsets[i] * grain;
}

static void learn(tide_search *s, search_part *part, const search_job *won) {
    if (won->result == TIDE_SKY_FOUND) {
        take(s, part, won->offsets);
        return;
    }
    part->has_exhausted = true;
    const uint64_t above = (won->probe.capacity + UINT64_C(1)) * part->sky->grain_bytes;
    // In coarser grains than the sizes are, no plan means nothing.
    if (part->sky->exact && above > part->proved_bytes) part->proved_bytes = above;
    if (won->probe.capacity + UINT64_C(1) > part->lowest) part->lowest = won->probe.capacity + UINT64_C(1);
}

static tide_status run_batch(tide_search *s, const batch_plan *plan, tide_error *err) {
    search_part *part = plan->part;
    TIDE_ASSERT(plan->low <= plan->target && plan->target < plan->high);
    search_job jobs[SEARCH_SLOTS];
    memset(jobs, 0, sizeof jobs);
    for (uint32_t k = 0; k < SEARCH_SLOTS; k++) jobs[k].offsets = part->offsets + (size_t)k * part->n;
    const uint32_t n_jobs = plan_jobs(s, plan, jobs);
    uint32_t winner;
    TIDE_TRY(run_probes(part->sky, jobs, n_jobs, s->n_threads, &winner, err));
    TIDE_ASSERT(winner <= n_jobs);
    part->n_batches++;
    for (uint32_t k = 0; k < n_jobs && k <= winner; k++) {
        s->n_nodes += jobs[k].n_nodes;
        if (s->work_limit != UINT64_MAX) s->n_work += jobs[k].n_work * SEARCH_WORK_PER_VISIT;
    }
    if (n_jobs == 0) s->n_work = s->work_limit; // what is left is not enough for a node
    decay(part, n_jobs, winner);
    if (winner < n_jobs) learn(s, part, &jobs[winner]);
    tide__search_measure(s);
    return TIDE_OK;
}

/// The highest part that the skyline can take.
static search_part *highest_part(tide_search *s) {
    search_part *highest = NULL;
    for (size_t k = 0; k < s->n_parts; k++) {
        search_part *part = &s->parts[k];
        if (part->is_closed || part->n > TIDE_SKY_MAX_ITEMS) continue;
        if (highest == NULL || part->bytes > highest->bytes) highest = part;
    }
    return highest;
}

static tide_status open_part(const tide_search *s, search_part *part, tide_error *err) {
    if (part->sky != NULL) return TIDE_OK;
    tide_sky_part *sky;
    TIDE_TRY(TIDE_NEW(&sky, 1, err, "for %u tensors", part->n));
    const tide_status st = tide__sky_part_make(s->problem, part->items, part->n, sky, err);
    if (st != TIDE_OK) {
        tide_host_free(sky);
        return st;
    }
    part->sky = sky;
    part->dead_ends = tide_host_calloc((size_t)SEARCH_SLOTS * sky->n_sections, sizeof *part->dead_ends);
    part->offsets = tide_host_calloc((size_t)SEARCH_SLOTS * part->n, sizeof *part->offsets);
    if (part->dead_ends != NULL && part->offsets != NULL) return TIDE_OK;
    return TIDE_NO_MEMORY(err, "for %u tensors", part->n);
}

/// An instance that cannot meet its bound may easily meet a capacity slightly above it: so random targets are tried,
/// too.
static uint32_t target_of(const tide_search *s, const batch_plan *plan) {
    enum { BATCHES_PER_BOUND = 4 };
    const uint64_t asked = s->capacity_bytes / plan->part->sky->grain_bytes;
    const uint32_t n = plan->part->n_batches;
    if (asked > plan->low && asked < plan->high) return (uint32_t)asked;
    if (s->capacity_bytes != 0 || n < AT_BOUND_ONLY || n % BATCHES_PER_BOUND == 0) return plan->low;
    tide_rng rng = {s->seed + n};
    return plan->low + (uint32_t)((plan->high - plan->low) * tide_rng_f64(&rng));
}

/// No part needs to be lower than what is proved for the whole plan.
static tide_status probe_part(tide_search *s, search_part *part, tide_error *err) {
    const tide_status st = open_part(s, part, err);
    if (st == TIDE_ERR_NO_SPACE) {
        part->is_closed = true;
        return TIDE_OK;
    }
    TIDE_TRY(st);
    const uint64_t grain = part->sky->grain_bytes;
    const uint64_t high = (part->bytes + grain - 1) / grain;
    uint64_t low = s->best->proved_bytes / grain;
    if (part->sky->bound > low) low = part->sky->bound;
    if (part->lowest > low) low = part->lowest;
    if (low >= high || high > UINT32_MAX || !can_afford_descent(s, part)) {
        part->is_closed = true;
        return TIDE_OK;
    }
    batch_plan plan = {.part = part, .low = (uint32_t)low, .high = (uint32_t)high};
    plan.target = target_of(s, &plan);
    return run_batch(s, &plan, err);
}

tide_status tide__search_probe(tide_search *s, tide_error *err) {
    while (!tide__search_is_done(s) && !tide__search_is_over(s)) {
        search_part *part = highest_part(s);
        // A closed part does not get lower: the plan will be as high.
        if (part == NULL || part->bytes < s->best->bytes) break;
        TIDE_TRY(probe_part(s, part, err));
    }
    return TIDE_OK;
}
