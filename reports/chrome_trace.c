// SPDX-License-Identifier: MIT
//
// A recorded trace in the Trace Event Format, written in one pass over its events. See chrome_trace.h.
//
// What is live is replayed here by the rules of the trace (profiler/store/replay_rules.h): a block that is allocated
// again while it is live ends first, a free of what is not live changes nothing, a pool that is discarded ends the
// blocks of its process in that range, the end of a process all of them. A block that outlives what is shown ends
// there, and its end says so; so do scopes that were not left.
#include "reports/chrome_trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/base/map.h"
#include "profiler/executions.h"
#include "profiler/holdings.h"
#include "profiler/moments.h"
#include "reports/chrome_pen.h"

enum { BATCH = 4096, FIRST_PROCESS = TIDE__CHROME_MEMORY + 1 };

/// A curve: of a device and kind, of an allocator on a device, of all.
typedef struct counter {
    const char *device, *what; ///< borrowed from the trace
    uint32_t process;          ///< number shown
    bool has_segments;         ///< the allocator tells what it takes from the system
    uint64_t requested_bytes, reserved_bytes, segment_bytes;
} counter;

/// A live block.
typedef struct live {
    uint64_t block_id; ///< key
    uint64_t id;       ///< of its slice: the event that allocated it
    uint64_t requested_bytes, reserved_bytes, address;
    uint64_t given_up_ns; ///< free_requested; 0: not
    const char *name, *allocator;
    uint32_t process, thread; ///< number shown; that allocated it
    uint32_t by_kind, by_allocator;
} live;

typedef struct frame {
    const char *name;
    int64_t index;
} frame;

/// The scopes that a thread is in.
typedef struct stack {
    uint64_t key; ///< number of the thread, plus 1
    uint32_t process;
    frame *frames; ///< [n] owned
    size_t n, cap;
} stack;

typedef struct writer {
    tide__chrome pen;
    tide_trace *t;
    tide_error *err;
    uint64_t origin_ns, end_ns;
    bool from_the_first; ///< nothing was dropped or is left out before
    tide_map live;       ///< of live
    tide_map stacks;     ///< of stack
    counter *counters;   ///< [n_counters] owned; the first is all memory
    size_t n_counters, cap_counters;
    uint64_t n_in_buffers; ///< tensors of executions that were written
} writer;

static uint64_t since(const writer *w, uint64_t t_ns) { return t_ns > w->origin_ns ? t_ns - w->origin_ns : 0; }

static tide__chrome_place place_of(const writer *w, uint32_t process, uint32_t thread, uint64_t t_ns) {
    return (tide__chrome_place){process, thread, since(w, t_ns)};
}

static bool is_text(const char *a, const char *b) { return a == b || strcmp(a, b) == 0; }

// ---- counters ----

/// Index of the counter, made when it is new.
static tide_status find_counter(writer *w, uint32_t process, const char *device, const char *what, uint32_t *out) {
    for (size_t i = 0; i < w->n_counters; i++) {
        const counter *c = &w->counters[i];
        *out = (uint32_t)i;
        if (c->process == process && is_text(c->what, what) && is_text(c->device, device)) return TIDE_OK;
    }
    TIDE_TRY(TIDE_GROW(&w->counters, &w->cap_counters, w->n_counters + 1, w->err, "for the allocators of a trace"));
    w->counters[w->n_counters] = (counter){.device = device, .what = what, .process = process};
    *out = (uint32_t)w->n_counters++;
    return TIDE_OK;
}

static void add_counter(writer *w, const counter *c, uint64_t t_ns) {
    char name[160];
    const bool is_allocator = c->process != TIDE__CHROME_MEMORY;
    if (is_allocator)
        snprintf(name, sizeof name, "%s on %s", c->what[0] != '\0' ? c->what : "(no name)", c->device);
    else
        snprintf(name, sizeof name, "%s%s%s", c->device, c->device[0] != '\0' ? " " : "", c->what);
    tide__chrome_open(&w->pen, "C", name, NULL, place_of(w, c->process, 0, t_ns));
    tide__chrome_args(&w->pen);
    if (!is_allocator) tide_json_u64(&w->pen.json, "requested", c->requested_bytes);
    tide_json_u64(&w->pen.json, is_allocator ? "active" : "reserved", c->reserved_bytes);
    if (c->has_segments) tide_json_u64(&w->pen.json, "segments", c->segment_bytes);
    tide__chrome_close(&w->pen);
}

/// A block comes or goes: what it changes, and the curves behind that.
static void count_block(writer *w, const live *b, bool comes, uint64_t t_ns, bool show) {
    const uint32_t which[] = {0, b->by_kind, b->by_allocator};
    for (size_t i = 0; i < sizeof which / sizeof which[0]; i++) {
        counter *c = &w->counters[which[i]];
        c->requested_bytes = comes ? c->requested_bytes + b->requested_bytes : c->requested_bytes - b->requested_bytes;
        c->reserved_bytes = comes ? c->reserved_bytes + b->reserved_bytes : c->reserved_bytes - b->reserved_bytes;
        if (show) add_counter(w, c, t_ns);
    }
}

// ---- blocks ----

static void end_block(writer *w, const live *b, uint64_t t_ns, const char *how) {
    tide_json_out *j = &w->pen.json;
    tide__chrome_open(&w->pen, "e", b->name, b->allocator, place_of(w, b->process, b->thread, t_ns));
    tide__chrome_id(&w->pen, 'b', b->id);
    if (how != NULL || (b->given_up_ns != 0 && b->given_up_ns < t_ns)) {
        tide__chrome_args(&w->pen);
        if (how != NULL) tide_json_text(j, "end", how);
        if (b->given_up_ns != 0) tide_json_u64(j, "waited_ns", t_ns - b->given_up_ns);
    }
    tide__chrome_close(&w->pen);
}

/// The slice of a block that is alive from `alloc_ns` on.
static void begin_block(writer *w, const live *b, const tide_trace_event *e) {
    char address[24];
    tide_json_out *j = &w->pen.json;
    tide__chrome_open(&w->pen, "b", b->name, b->allocator, place_of(w, b->process, b->thread, e->t_ns));
    tide__chrome_id(&w->pen, 'b', b->id);
    tide__chrome_args(&w->pen);
    tide_json_u64(j, "bytes", b->requested_bytes);
    tide_json_u64(j, "reserved", b->reserved_bytes);
    tide_json_text(j, "kind", e->kind);
    tide_json_text(j, "device", e->device);
    tide_json_text(j, "allocator", b->allocator);
    if (e->scope[0] != '\0') tide_json_text(j, "scope", e->scope);
    if (e->scope_index >= 0) tide_json_i64(j, "scope_index", e->scope_index);
    snprintf(address, sizeof address, "0x%" PRIx64, b->address);
    tide_json_text(j, "address", address);
    tide_json_u64(j, "block", b->block_id);
    tide_json_u64(j, "event", b->id);
    tide__chrome_close(&w->pen);
}

/// A block becomes live by `e`. `show`: its curves too.
static tide_status take_block(writer *w, const tide_trace_event *e, bool show) {
    if (e->block_id == 0) return TIDE_OK; // noted as a problem of the trace; it is not counted there either
    live *old = tide_map_find(&w->live, e->block_id);
    if (old != NULL) {
        end_block(w, old, e->t_ns, "allocated again");
        count_block(w, old, false, e->t_ns, false);
        tide_map_take(&w->live, old);
    }
    if (e->requested_bytes > INT64_MAX - w->counters[0].requested_bytes ||
        e->reserved_bytes > INT64_MAX - w->counters[0].reserved_bytes)
        return TIDE_OK; // too large to be true: the trace leaves it out of its sums
    live b = {.block_id = e->block_id,
              .id = e->id,
              .requested_bytes = e->requested_bytes,
              .reserved_bytes = e->reserved_bytes,
              .address = e->address,
              .name = e->name,
              .allocator = e->allocator,
              .process = FIRST_PROCESS + e->process,
              .thread = e->thread};
    TIDE_TRY(find_counter(w, TIDE__CHROME_MEMORY, e->device, e->kind, &b.by_kind));
    TIDE_TRY(find_counter(w, b.process, e->device, e->allocator, &b.by_allocator));
    if (!tide_map_put(&w->live, &b)) return TIDE_NO_MEMORY(w->err, "for the live blocks of a trace");
    begin_block(w, &b, e);
    count_block(w, &b, true, e->t_ns, show);
    return TIDE_OK;
}

static void free_block(writer *w, uint64_t block_id, uint64_t t_ns, const char *how) {
    live *b = tide_map_find(&w->live, block_id);
    if (block_id == 0 || b == NULL) return;
    end_block(w, b, t_ns, how);
    count_block(w, b, false, t_ns, true);
    tide_map_take(&w->live, b);
}

/// Whether the event, which is of no block, ends this one.
static bool ends_block(const writer *w, const tide_trace_event *e, const live *b) {
    if (b->process != FIRST_PROCESS + e->process) return false;
    if (e->code == TIDE_TRACE_PROCESS_END) return true;
    return is_text(w->counters[b->by_kind].device, e->device) && b->address - e->address < e->reserved_bytes;
}

/// The blocks that a discarded pool ends, or the end of a process; taking one out moves others, so they are listed
/// first.
static tide_status end_several(writer *w, const tide_trace_event *e, const char *how) {
    uint64_t *ids = NULL;
    size_t n = 0;
    TIDE_TRY(TIDE_NEW(&ids, w->live.n, w->err, "for blocks that end at once"));
    for (size_t i = 0; i < w->live.cap; i++) {
        const live *b = tide_map_at(&w->live, i);
        if (b != NULL && ends_block(w, e, b)) ids[n++] = b->block_id;
    }
    for (size_t i = 0; i < n; i++) free_block(w, ids[i], e->t_ns, how);
    tide_host_free(ids);
    return TIDE_OK;
}

/// Only from the first event on it is known what an allocator has taken.
static tide_status count_segment(writer *w, const tide_trace_event *e, bool comes) {
    uint32_t i;
    if (!w->from_the_first) return TIDE_OK;
    TIDE_TRY(find_counter(w, FIRST_PROCESS + e->process, e->device, e->allocator, &i));
    counter *c = &w->counters[i];
    c->has_segments = true;
    if (comes)
        c->segment_bytes += e->reserved_bytes;
    else
        c->segment_bytes -= e->reserved_bytes < c->segment_bytes ? e->reserved_bytes : c->segment_bytes;
    add_counter(w, c, e->t_ns);
    return TIDE_OK;
}

// ---- scopes ----

static tide_status stack_of(writer *w, uint32_t thread, stack **out) {
    const uint64_t key = (uint64_t)thread + 1;
    *out = tide_map_find(&w->stacks, key);
    if (*out != NULL) return TIDE_OK;
    const stack fresh = {.key = key, .process = FIRST_PROCESS};
    if (!tide_map_put(&w->stacks, &fresh)) return TIDE_NO_MEMORY(w->err, "for the threads of a trace");
    *out = tide_map_find(&w->stacks, key);
    return TIDE_OK;
}

static tide_status enter_scope(writer *w, const tide_trace_event *e) {
    stack *s;
    TIDE_TRY(stack_of(w, e->thread, &s));
    TIDE_TRY(TIDE_GROW(&s->frames, &s->cap, s->n + 1, w->err, "for the scopes of a trace"));
    s->frames[s->n++] = (frame){e->scope, e->scope_index};
    tide__chrome_open(&w->pen, "B", e->scope, "scope", place_of(w, s->process, e->thread, e->t_ns));
    if (e->scope_index >= 0) {
        tide__chrome_args(&w->pen);
        tide_json_i64(&w->pen.json, "index", e->scope_index);
    }
    tide__chrome_close(&w->pen);
    return TIDE_OK;
}

/// End the innermost scope of a thread.
static void end_scope(writer *w, stack *s, uint64_t t_ns, const char *how) {
    tide__chrome_open(&w->pen, "E", s->frames[--s->n].name, "scope",
                      place_of(w, s->process, (uint32_t)(s->key - 1), t_ns));
    if (how != NULL) {
        tide__chrome_args(&w->pen);
        tide_json_text(&w->pen.json, "end", how);
    }
    tide__chrome_close(&w->pen);
}

/// The scope is left with those inside it that were forgotten; nothing when it was entered before what is shown.
static tide_status leave_scope(writer *w, const tide_trace_event *e) {
    stack *s;
    TIDE_TRY(stack_of(w, e->thread, &s));
    size_t at = s->n;
    while (at > 0 && !(s->frames[at - 1].index == e->scope_index && is_text(s->frames[at - 1].name, e->scope))) at--;
    if (at == 0) return TIDE_OK;
    while (s->n > at) end_scope(w, s, e->t_ns, "not left");
    end_scope(w, s, e->t_ns, NULL);
    return TIDE_OK;
}

// ---- moments ----

static void add_moment(writer *w, const tide_trace_event *e, const char *name, const char *cat, uint32_t process,
                       const char *key, uint64_t value) {
    tide__chrome_open(&w->pen, "i", name, cat, place_of(w, process, e->thread, e->t_ns));
    tide_json_text(&w->pen.json, "s", process == TIDE__CHROME_MEMORY ? "g" : "p");
    tide__chrome_args(&w->pen);
    tide_json_u64(&w->pen.json, key, value);
    tide__chrome_close(&w->pen);
}

static void add_usage(writer *w, const tide_trace_event *e) {
    char name[96];
    snprintf(name, sizeof name, "%s in use by all processes", e->device);
    tide__chrome_open(&w->pen, "C", name, NULL, place_of(w, TIDE__CHROME_MEMORY, 0, e->t_ns));
    tide__chrome_args(&w->pen);
    tide_json_u64(&w->pen.json, "used", e->requested_bytes);
    tide__chrome_close(&w->pen);
}

static tide_status add_out_of_memory(writer *w, const tide_trace_event *e) {
    stack *s;
    char name[256];
    TIDE_TRY(stack_of(w, e->thread, &s)); // the event is of no block, which would say its process
    snprintf(name, sizeof name, "out of memory: %s", e->name);
    add_moment(w, e, name, "oom", s->process, "bytes", e->requested_bytes);
    return TIDE_OK;
}

// ---- the end of a process ----

/// With it go its blocks, its segments and the scopes that its threads are in.
static tide_status end_process(writer *w, const tide_trace_event *e) {
    static const char how[] = "its process ended";
    const uint32_t process = FIRST_PROCESS + e->process;
    TIDE_TRY(end_several(w, e, how));
    for (size_t i = 0; i < w->n_counters; i++) {
        counter *c = &w->counters[i];
        if (c->process != process || c->segment_bytes == 0) continue;
        c->segment_bytes = 0;
        add_counter(w, c, e->t_ns);
    }
    for (size_t i = 0; i < w->stacks.cap; i++) {
        stack *s = tide_map_at(&w->stacks, i);
        while (s != NULL && s->process == process && s->n > 0) end_scope(w, s, e->t_ns, how);
    }
    add_moment(w, e, "the process ended", "process", process, "event", e->id);
    return TIDE_OK;
}

// ---- events ----

static tide_status take_event(writer *w, const tide_trace_event *e) {
    live *b;
    switch (e->code) {
    case TIDE_MEM_ALLOC:
        return take_block(w, e, true);
    case TIDE_MEM_FREE_REQUESTED:
        b = e->block_id != 0 ? tide_map_find(&w->live, e->block_id) : NULL;
        if (b != NULL && b->given_up_ns == 0) b->given_up_ns = e->t_ns;
        break;
    case TIDE_MEM_FREE_COMPLETED:
        free_block(w, e->block_id, e->t_ns, NULL);
        break;
    case TIDE_MEM_POOL_DISCARD:
        return end_several(w, e, "its pool was discarded");
    case TIDE_MEM_SEGMENT_ALLOC:
    case TIDE_MEM_SEGMENT_FREE:
        return count_segment(w, e, e->code == TIDE_MEM_SEGMENT_ALLOC);
    case TIDE_MEM_OOM:
        return add_out_of_memory(w, e);
    case TIDE_MEM_SNAPSHOT:
        add_moment(w, e, e->name, "mark", TIDE__CHROME_MEMORY, "event", e->id);
        break;
    case TIDE_MEM_DEVICE_USAGE:
        add_usage(w, e);
        break;
    case TIDE_TRACE_SCOPE_ENTER:
        return enter_scope(w, e);
    case TIDE_TRACE_SCOPE_LEAVE:
        return leave_scope(w, e);
    case TIDE_TRACE_PROCESS_END:
        return end_process(w, e);
    case TIDE_TRACE_GAP:
        add_moment(w, e, "events were lost", "gap", TIDE__CHROME_MEMORY, "events", e->requested_bytes);
        break;
    default:
        break;
    }
    return TIDE_OK;
}

static tide_status take_events(writer *w, const tide_trace_extent *extent) {
    tide_trace_event *events;
    TIDE_TRY(TIDE_NEW(&events, BATCH, w->err, "for events"));
    tide_status st = TIDE_OK;
    size_t n = 1;
    for (uint64_t next = extent->first_event; next <= extent->last_event && n > 0 && st == TIDE_OK; next += n) {
        const uint64_t left = extent->last_event - next + 1;
        st = tide_trace_events(w->t, next, events, left < BATCH ? (size_t)left : BATCH, &n, w->err);
        for (size_t i = 0; i < n && st == TIDE_OK; i++) st = take_event(w, &events[i]);
        if (st == TIDE_OK) st = w->pen.st;
        if (st == TIDE_OK && n > 0 && events[n - 1].t_ns > w->end_ns) w->end_ns = events[n - 1].t_ns;
    }
    tide_host_free(events);
    return st;
}

// ---- what is there before, and at the end ----

/// Blocks that were alive when what is shown begins: their slices begin when they did, the curves begin with their sum.
static tide_status take_older(writer *w, const tide_trace_extent *extent) {
    tide_trace_event *events;
    size_t n;
    TIDE_TRY(tide_trace_allocs_before(w->t, extent->first_event, &events, &n, w->err));
    tide_status st = TIDE_OK;
    for (size_t i = 0; i < n && st == TIDE_OK; i++) st = take_block(w, &events[i], false);
    tide_host_free(events);
    return st;
}

static void end_all(writer *w) {
    for (size_t i = 0; i < w->stacks.cap; i++) {
        stack *s = tide_map_at(&w->stacks, i);
        while (s != NULL && s->n > 0) end_scope(w, s, w->end_ns, "not left");
    }
    for (size_t i = 0; i < w->live.cap; i++) {
        const live *b = tide_map_at(&w->live, i);
        if (b != NULL) end_block(w, b, w->end_ns, "alive at the end of what is shown");
    }
}

// ---- runs, and what lies in their buffers ----

static void add_slice(writer *w, const char *ph, const char *name, const char *cat, tide__chrome_place at, char sort,
                      uint64_t id) {
    tide__chrome_open(&w->pen, ph, name, cat, at);
    tide__chrome_id(&w->pen, sort, id);
}

/// The tensors in the plan's buffer during one execution, each from its first step there to its last.
static void add_execution(writer *w, const tide_executions *x, size_t n_before, uint32_t process) {
    static const char cat[] = "in a plan's buffer";
    const tide_execution *e = &x->items[n_before];
    const tide_execution_step *steps = tide_execution_steps(x, e);
    const tide_lifetimes *lt = &x->plan->lifetimes;
    const uint64_t over_ns = e->idle_ns != UINT64_MAX ? e->idle_ns : e->end_ns != UINT64_MAX ? e->end_ns : w->end_ns;
    for (size_t i = 0; i < lt->n && w->pen.st == TIDE_OK; i++) {
        size_t first, behind;
        if (x->plan->offsets[i] == TIDE_NO_OFFSET) continue;
        tide_execution_range(x, e, lt->items[i].begin_step, lt->items[i].end_step, &first, &behind);
        if (first >= behind) continue;
        const uint64_t begin_ns = steps[first].t_ns, end_ns = behind < e->n_steps ? steps[behind].t_ns : over_ns;
        const uint64_t id = w->n_in_buffers++;
        add_slice(w, "b", lt->items[i].name, cat, place_of(w, process, e->thread, begin_ns), 'x', id);
        tide__chrome_args(&w->pen);
        tide_json_u64(&w->pen.json, "bytes", lt->items[i].size_bytes);
        tide_json_u64(&w->pen.json, "offset", x->plan->offsets[i]);
        tide_json_u64(&w->pen.json, "execution", n_before);
        tide__chrome_close(&w->pen);
        add_slice(w, "e", lt->items[i].name, cat,
                  place_of(w, process, e->thread, end_ns > begin_ns ? end_ns : begin_ns), 'x', id);
        tide__chrome_close(&w->pen);
    }
}

static tide_status add_executions(writer *w, const tide_trace_run *run) {
    const tide_executions *x;
    if (!run->has_plan || strcmp(run->mode, "naive") == 0) return TIDE_OK; // tensors are blocks of their own
    TIDE_TRY(tide_trace_executions(w->t, run->id, &x, w->err));
    for (size_t i = 0; x->plan != NULL && i < x->n && w->pen.st == TIDE_OK; i++) {
        stack *s;
        TIDE_TRY(stack_of(w, x->items[i].thread, &s));
        add_execution(w, x, i, s->process);
    }
    return w->pen.st;
}

static tide_status add_run(writer *w, const tide_trace_run *run) {
    char name[512];
    snprintf(name, sizeof name, "%s: %s%s%s", run->model, run->mode, run->strategy[0] != '\0' ? ", " : "",
             run->strategy);
    const uint64_t id = (uint64_t)run->id;
    const tide__chrome_place begin = place_of(w, TIDE__CHROME_MEMORY, 0, run->begin_ns);
    const tide__chrome_place end = place_of(w, TIDE__CHROME_MEMORY, 0, run->end_ns);
    add_slice(w, "b", name, "run", begin, 'r', id);
    tide__chrome_args(&w->pen);
    tide_json_i64(&w->pen.json, "run", run->id);
    if (run->has_plan) tide_json_u64(&w->pen.json, "plan_bytes", run->plan_bytes);
    tide__chrome_close(&w->pen);
    add_slice(w, "e", name, "run", end, 'r', id);
    tide__chrome_close(&w->pen);
    return add_executions(w, run);
}

static tide_status add_runs(writer *w, int64_t run_id) {
    tide_trace_run *runs;
    size_t n;
    TIDE_TRY(tide_trace_runs(w->t, &runs, &n, w->err));
    tide_status st = TIDE_OK;
    for (size_t i = 0; i < n && st == TIDE_OK; i++) {
        if (run_id == 0 || runs[i].id == run_id) st = add_run(w, &runs[i]);
    }
    tide_trace_runs_free(runs);
    return st;
}

// ---- names of processes and threads ----

static void name_process(writer *w, const tide_trace_thread *thread) {
    char name[352], pid[32] = "", rank[32] = "";
    if (thread->pid >= 0) snprintf(pid, sizeof pid, " %" PRId64, thread->pid);
    if (thread->rank >= 0) snprintf(rank, sizeof rank, ", rank %" PRId64, thread->rank);
    snprintf(name, sizeof name, "process%s%s%s%s", pid, rank, thread->command[0] != '\0' ? ": " : "", thread->command);
    tide__chrome_name(&w->pen, FIRST_PROCESS + thread->process, 0, name);
}

static tide_status name_all(writer *w) {
    tide_trace_thread *threads;
    size_t n;
    TIDE_TRY(tide_trace_threads(w->t, &threads, &n, w->err));
    tide__chrome_name(&w->pen, TIDE__CHROME_MEMORY, 0, "memory");
    tide_status st = TIDE_OK;
    for (size_t i = 0; i < n && st == TIDE_OK; i++) {
        stack *s;
        char name[96];
        if (i == 0 || threads[i].process != threads[i - 1].process) name_process(w, &threads[i]);
        snprintf(name, sizeof name, "thread %" PRIu32 "%s%s", threads[i].number, threads[i].name[0] != '\0' ? ": " : "",
                 threads[i].name);
        tide__chrome_name(&w->pen, FIRST_PROCESS + threads[i].process, threads[i].number, name);
        st = stack_of(w, threads[i].number, &s);
        if (st == TIDE_OK) s->process = FIRST_PROCESS + threads[i].process;
    }
    tide_host_free(threads);
    return st;
}

// ---- the whole ----

static tide_status write_all(writer *w, int64_t run_id) {
    tide_trace_extent extent;
    uint32_t all;
    TIDE_TRY(tide_trace_get_extent(w->t, run_id, &extent, w->err));
    w->end_ns = extent.end_ns;
    w->from_the_first = extent.first_event <= 1;
    TIDE_TRY(find_counter(w, TIDE__CHROME_MEMORY, "", "all memory", &all));
    TIDE_TRY(name_all(w));
    TIDE_TRY(take_older(w, &extent));
    for (size_t i = 0; !w->from_the_first && i < w->n_counters; i++) add_counter(w, &w->counters[i], extent.begin_ns);
    if (extent.last_event >= extent.first_event) TIDE_TRY(take_events(w, &extent));
    end_all(w);
    return add_runs(w, run_id);
}

static void deinit(writer *w) {
    for (size_t i = 0; i < w->stacks.cap; i++) {
        stack *s = tide_map_at(&w->stacks, i);
        if (s != NULL) tide_host_free(s->frames);
    }
    tide_map_deinit(&w->stacks);
    tide_map_deinit(&w->live);
    tide_host_free(w->counters);
}

tide_status tide_chrome_trace_of_trace(tide_trace *t, int64_t run_id, tide_output *out, tide_error *err) {
    tide_trace_info info;
    TIDE_TRY(tide_trace_get_info(t, &info, err));
    writer w = {.t = t, .err = err, .origin_ns = info.begin_ns, .live = TIDE_MAP(live), .stacks = TIDE_MAP(stack)};
    tide__chrome_begin(&w.pen, out, err);
    const tide_status st = write_all(&w, run_id);
    if (w.pen.st == TIDE_OK) w.pen.st = st;
    deinit(&w);
    return tide__chrome_end(&w.pen);
}
