// SPDX-License-Identifier: MIT
//
// Who was live: sets of blocks with their names. See moments.h.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/base/map.h"
#include "core/base/text.h"
#include "profiler/holdings.h"
#include "profiler/lanes.h"
#include "profiler/moments.h"
#include "profiler/read/moments_internal.h"

void tide_live_set_deinit(tide_live_set *s) {
    tide_host_free(s->items);
    *s = (tide_live_set){0};
}

static tide_live named(const tide_trace *t, const tide__live_block *b) {
    const tide__trace_scope scope = tide__trace_scope_of(t, b->scope_id);
    return (tide_live){.block_id = (uint64_t)b->block_id,
                       .name = tide__trace_text(t, b->tag_id),
                       .scope = scope.name,
                       .scope_index = scope.step,
                       .scope_id = (uint32_t)b->scope_id,
                       .device = tide__trace_device(t, b->device),
                       .allocator = tide__trace_text(t, b->allocator_id),
                       .kind = (tide_memory_kind)b->kind,
                       .thread = (uint32_t)b->thread,
                       .run_id = b->run_id,
                       .requested_bytes = (uint64_t)b->requested_bytes,
                       .reserved_bytes = (uint64_t)b->reserved_bytes,
                       .address = (uint64_t)b->address,
                       .stream = (uint64_t)b->stream,
                       .alloc_event = (uint64_t)b->alloc_event,
                       .alloc_ns = (uint64_t)b->alloc_ns,
                       .free_requested = b->free_requested_ns != 0};
}

/// A set that is being made: first the blocks, then their order, then names. Large items are moved once.
typedef struct builder {
    const tide_trace *t;
    tide_live_set set;
    tide__live_block *blocks; // [n], owned
    size_t n, cap;
} builder;

static tide_status put(builder *b, const tide__live_block *block) {
    TIDE_TRY(tide_host_grow(&b->blocks, &b->cap, b->n + 1, sizeof *b->blocks));
    b->blocks[b->n++] = *block;
    return TIDE_OK;
}

static tide_status put_live(builder *b, const tide__replay *r) {
    TIDE_TRY(tide_host_grow(&b->blocks, &b->cap, b->n + tide__replay_n_live(r), sizeof *b->blocks));
    const tide__live_block *block;
    for (size_t i = 0; (block = tide__replay_next(r, &i)) != NULL;) b->blocks[b->n++] = *block;
    return TIDE_OK;
}

typedef struct place {
    int64_t block_id, alloc_event;
    size_t i;
} place;

static int by_block(const void *a, const void *b) {
    const place *x = a, *y = b;
    if (x->block_id != y->block_id) return x->block_id < y->block_id ? -1 : 1;
    return (x->alloc_event > y->alloc_event) - (x->alloc_event < y->alloc_event);
}

/// Items in order of their numbers, with sums.
static tide_status fill(builder *b, tide_error *err) {
    tide_live_set *s = &b->set;
    place *places = tide_host_alloc((b->n + 1) * sizeof *places);
    s->items = tide_host_alloc((b->n + 1) * sizeof *s->items);
    tide_status st = TIDE_OK;
    if (places == NULL || s->items == NULL) st = TIDE_NO_MEMORY(err, "for the live blocks of '%s'", b->t->path);
    for (size_t i = 0; st == TIDE_OK && i < b->n; i++)
        places[i] = (place){b->blocks[i].block_id, b->blocks[i].alloc_event, i};
    if (st == TIDE_OK && b->n > 1) qsort(places, b->n, sizeof *places, by_block);
    for (size_t i = 0; st == TIDE_OK && i < b->n; i++) {
        const tide_live *item = &s->items[s->n];
        s->items[s->n++] = named(b->t, &b->blocks[places[i].i]);
        if (!tide_add_u64(s->requested_bytes, item->requested_bytes, &s->requested_bytes) ||
            !tide_add_u64(s->reserved_bytes, item->reserved_bytes, &s->reserved_bytes))
            st = tide__trace_bad_row(b->t, "event", (int64_t)item->alloc_event, err);
    }
    tide_host_free(places);
    return st;
}

/// `st` is how the making went; the set is handed over or given back.
static tide_status finish(builder *b, tide_status st, tide_live_set *out, tide_error *err) {
    if (st == TIDE_OK) st = fill(b, err);
    tide_host_free(b->blocks);
    if (st == TIDE_OK) {
        *out = b->set;
    } else {
        tide_live_set_deinit(&b->set);
    }
    return st;
}

static tide_status live_after(tide_trace *t, int64_t event_id, uint64_t t_ns, tide_live_set *out, tide_error *err) {
    const tide__replay *r;
    TIDE_TRY(tide__trace_state_after(t, event_id, &r, err));
    builder b = {.t = t, .set = {.trace = t, .t_ns = t_ns, .event_id = (uint64_t)event_id}};
    if (t_ns == UINT64_MAX) b.set.t_ns = (uint64_t)r->last_ns;
    tide_status st = put_live(&b, r);
    if (st != TIDE_OK) TIDE_NO_MEMORY(err, "for the live blocks of '%s'", t->path);
    return finish(&b, st, out, err);
}

tide_status tide_trace_live_set(tide_trace *t, uint64_t t_ns, tide_live_set *out, tide_error *err) {
    int64_t event_id;
    TIDE_TRY(tide__trace_event_at(t, t_ns, &event_id, err));
    return live_after(t, event_id, t_ns == UINT64_MAX ? UINT64_MAX - 1 : t_ns, out, err);
}

tide_status tide_trace_live_set_after(tide_trace *t, uint64_t event_id, tide_live_set *out, tide_error *err) {
    if (event_id > (uint64_t)t->last_event)
        return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "'%s' has no event %llu", t->path, (unsigned long long)event_id);
    return live_after(t, (int64_t)event_id, UINT64_MAX, out, err);
}

/// What the process had when it ended.
static tide_status put_left(builder *b, tide_trace *t, const tide__process_end *end, tide_error *err) {
    const tide__replay *r;
    TIDE_TRY(tide__trace_state_after(t, end->event - 1, &r, err));
    const tide__live_block *block;
    for (size_t i = 0; (block = tide__replay_next(r, &i)) != NULL;)
        if (tide__process_of_block(block->block_id) == end->process_id && put(b, block) != TIDE_OK)
            return TIDE_NO_MEMORY(err, "for the live blocks of '%s'", t->path);
    return TIDE_OK;
}

tide_status tide_trace_never_freed(tide_trace *t, uint64_t t_ns, tide_live_set *out, tide_error *err) {
    int64_t last;
    TIDE_TRY(tide__trace_event_at(t, t_ns, &last, err));
    builder b = {.t = t, .set = {.trace = t, .t_ns = t_ns, .event_id = (uint64_t)last}};
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < t->ends.n; i++) {
        const tide__process_end *end = &t->ends.items[i];
        if (end->event > t->first_event && end->event <= last) st = put_left(&b, t, end, err);
    }
    const tide__replay *r;
    if (st == TIDE_OK) st = tide__trace_state_after(t, last, &r, err);
    if (st == TIDE_OK && put_live(&b, r) != TIDE_OK) st = TIDE_NO_MEMORY(err, "for the live blocks of '%s'", t->path);
    return finish(&b, st, out, err);
}

// ---- over a window ----

static tide_status begin_window(void *ctx, const tide__replay *r) { return put_live(ctx, r); }

static tide_status put_alloc(void *ctx, const tide__replay *r, const tide__event *e, size_t series) {
    (void)series;
    if (e->op != TIDE_MEM_ALLOC) return TIDE_OK;
    const tide__live_block *block = tide__replay_find(r, e->block_id);
    return block != NULL && block->alloc_event == e->id ? put(ctx, block) : TIDE_OK;
}

tide_status tide_trace_alive_between(tide_trace *t, uint64_t t0, uint64_t t1, tide_live_set *out, tide_error *err) {
    if (t1 < t0) return TIDE_FAIL(err, TIDE_ERR_INVALID, "a window that ends before it begins");
    int64_t before, last;
    TIDE_TRY(tide__trace_event_before(t, t0, &before, err));
    TIDE_TRY(tide__trace_event_at(t, t1, &last, err));
    builder b = {.t = t, .set = {.trace = t, .t_ns = t1, .event_id = (uint64_t)last}};
    const tide_status st = tide__trace_walk(t, before + 1, last, begin_window, put_alloc, &b, err);
    return finish(&b, st, out, err);
}

// ---- freed at once ----

/// The allocs that may yet be temporary: of each thread the last, with `block_id` 0 for none.
typedef struct temporaries {
    builder b;
    tide__event *last; ///< [n] by thread, owned
    size_t n, cap;
} temporaries;

static tide_status look_at(temporaries *x, const tide__event *e) {
    if (e->op != TIDE_MEM_ALLOC && e->op != TIDE_MEM_FREE_COMPLETED) return TIDE_OK;
    const size_t thread = e->thread > 0 ? (size_t)e->thread : 0;
    TIDE_TRY(tide_host_grow(&x->last, &x->cap, thread + 1, sizeof *x->last));
    while (x->n <= thread) x->last[x->n++] = (tide__event){0};
    tide__event *last = &x->last[thread];
    if (e->op == TIDE_MEM_ALLOC) {
        *last = *e;
        return TIDE_OK;
    }
    tide__live_block block = {0};
    const bool is_temporary = last->block_id != 0 && last->block_id == e->block_id;
    memcpy(&block, last, sizeof *last);
    block.zero = 0; // the operation
    *last = (tide__event){0};
    return is_temporary ? put(&x->b, &block) : TIDE_OK;
}

static tide_status look_at_all(void *ctx, const tide__event *events, size_t n) {
    for (size_t i = 0; i < n; i++) TIDE_TRY(look_at(ctx, &events[i]));
    return TIDE_OK;
}

tide_status tide_trace_temporary(tide_trace *t, uint64_t t0, uint64_t t1, tide_live_set *out, tide_error *err) {
    if (t1 < t0) return TIDE_FAIL(err, TIDE_ERR_INVALID, "a window that ends before it begins");
    int64_t before, last;
    TIDE_TRY(tide__trace_event_before(t, t0, &before, err));
    TIDE_TRY(tide__trace_event_at(t, t1, &last, err));
    temporaries x = {.b = {.t = t, .set = {.trace = t, .t_ns = t1, .event_id = (uint64_t)last}}};
    const tide_status st = tide__trace_each(t, TIDE__READ_ALL, before + 1, last, look_at_all, &x, err);
    tide_host_free(x.last);
    return finish(&x.b, st, out, err);
}

// ---- as events ----

static int by_alloc(const void *a, const void *b) {
    const tide_live *x = a, *y = b;
    return (x->alloc_event > y->alloc_event) - (x->alloc_event < y->alloc_event);
}

static tide_trace_event alloc_of(const tide_live *b) {
    return (tide_trace_event){.id = b->alloc_event,
                              .t_ns = b->alloc_ns,
                              .code = TIDE_MEM_ALLOC,
                              .op = tide_memory_op_name(TIDE_MEM_ALLOC),
                              .block_id = b->block_id,
                              .requested_bytes = b->requested_bytes,
                              .reserved_bytes = b->reserved_bytes,
                              .address = b->address,
                              .stream = b->stream,
                              .kind = tide_memory_kind_name(b->kind),
                              .device = b->device,
                              .allocator = b->allocator,
                              .name = b->name,
                              .scope = b->scope,
                              .scope_index = b->scope_index,
                              .scope_id = b->scope_id,
                              .run_id = b->run_id,
                              .thread = b->thread,
                              .process = (uint32_t)(b->block_id >> TIDE__BLOCK_ID_BITS)};
}

tide_status tide_trace_allocs_before(tide_trace *t, uint64_t first_event, tide_trace_event **out, size_t *n,
                                     tide_error *err) {
    tide_live_set live = {0};
    *out = NULL;
    *n = 0;
    if (first_event <= 1) return TIDE_OK;
    TIDE_TRY(tide_trace_live_set_after(t, first_event - 1, &live, err));
    tide_status st = TIDE_OK;
    if (live.n > 0) {
        qsort(live.items, live.n, sizeof *live.items, by_alloc);
        st = TIDE_NEW(out, live.n, err, "for the blocks of '%s'", t->path);
    }
    for (size_t i = 0; i < live.n && st == TIDE_OK; i++) (*out)[(*n)++] = alloc_of(&live.items[i]);
    tide_live_set_deinit(&live);
    return st;
}

// ---- live sets by groups, and two of them side by side ----

/// A group of either set while both are counted.
typedef struct group {
    char *key;      // owned
    unsigned order; // of sizes and ages
    uint64_t n[2], requested[2], reserved[2];
} group;

typedef struct grouping {
    group *groups; // [n], owned
    size_t n, cap;
    tide_strmap by_key;
    const tide_live_set *process_of; // by process: whose name this is; NULL: none yet
    uint32_t process;
    char process_name[TIDE_LANE_NAME_BYTES];
} grouping;

static void grouping_deinit(grouping *g) {
    for (size_t i = 0; i < g->n; i++) tide_host_free(g->groups[i].key);
    tide_host_free(g->groups);
    tide_strmap_deinit(&g->by_key);
}

// ---- keys ----

/// "1 KiB", "16 MiB": an exact power of two.
static void power_text(unsigned bits, char *out, size_t out_bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    snprintf(out, out_bytes, "%u %s", 1u << bits % 10, units[bits / 10]);
}

/// "10 us", "1 s": an exact power of ten ns.
static void decade_text(unsigned decade, char *out, size_t out_bytes) {
    static const char *const units[] = {"ns", "us", "ms", "s"};
    unsigned unit = decade / 3, digits = decade % 3;
    if (unit > 3) {
        digits += 3 * (unit - 3);
        unit = 3;
    }
    snprintf(out, out_bytes, "1%.*s %s", (int)digits, "0000000000000000000", units[unit]);
}

static void size_key(uint64_t bytes, tide_text *key, unsigned *order) {
    *order = 0;
    if (bytes == 0) {
        tide_text_add(key, "0 B");
        return;
    }
    const unsigned bits = 63u - (unsigned)__builtin_clzll(bytes);
    char lo[24], hi[24];
    power_text(bits, lo, sizeof lo);
    power_text(bits + 1, hi, sizeof hi);
    if (bits == 63) snprintf(hi, sizeof hi, "16 EiB");
    tide_text_addf(key, "[%s, %s)", lo, hi);
    *order = bits + 1;
}

static void age_key(uint64_t ns, tide_text *key, unsigned *order) {
    enum { FIRST = 3 }; // below a microsecond all are one
    unsigned decade = 0;
    for (uint64_t rest = ns; rest >= 10; rest /= 10) decade++;
    char lo[32], hi[32];
    *order = decade;
    if (decade < FIRST) {
        *order = 0;
        tide_text_add(key, "< 1 us");
        return;
    }
    decade_text(decade, lo, sizeof lo);
    decade_text(decade + 1, hi, sizeof hi);
    tide_text_addf(key, "[%s, %s)", lo, hi);
}

/// Blocks come by their numbers, so that those of one process lie together and its name is looked up once.
static void process_key(grouping *g, const tide_live_set *s, const tide_live *b, tide_text *key) {
    const uint32_t process = tide_trace_process_of(b->block_id);
    if (g->process_of != s || g->process != process) {
        g->process_of = s;
        g->process = process;
        if (tide_trace_lane_name(s->trace, process, g->process_name, NULL) != TIDE_OK) key->failed = true;
    }
    tide_text_add(key, g->process_name[0] != '\0' ? g->process_name : "(no process)");
}

static void add_key(grouping *g, const tide_live_set *s, const tide_live *b, tide_group_by by, tide_text *key,
                    unsigned *order) {
    *order = 0;
    switch (by) {
    case TIDE_BY_KIND:
        tide_text_add(key, tide_memory_kind_name(b->kind));
        break;
    case TIDE_BY_DEVICE:
        tide_text_add(key, b->device);
        break;
    case TIDE_BY_SCOPE:
        if (b->is_unused) {
            tide_text_add(key, "(unused in the buffer)");
            break;
        }
        tide_text_add(key, b->scope[0] != '\0' ? b->scope : "(outside all scopes)");
        if (b->scope_index >= 0) tide_text_addf(key, " #%" PRId64, b->scope_index);
        break;
    case TIDE_BY_NAME:
        tide_text_add(key, b->name[0] != '\0' ? b->name : "(no name)");
        break;
    case TIDE_BY_ALLOCATOR:
        tide_text_add(key, b->allocator[0] != '\0' ? b->allocator : "(no name)");
        break;
    case TIDE_BY_SIZE:
        size_key(b->requested_bytes, key, order);
        break;
    case TIDE_BY_AGE:
        age_key(s->t_ns > b->alloc_ns ? s->t_ns - b->alloc_ns : 0, key, order);
        break;
    case TIDE_BY_THREAD:
        tide_text_addf(key, "thread %" PRIu32, b->thread);
        break;
    case TIDE_BY_RUN:
        if (b->run_id == 0) {
            tide_text_add(key, "(outside all runs)");
        } else {
            tide_text_addf(key, "run %" PRId64, b->run_id);
        }
        break;
    case TIDE_BY_PROCESS:
        process_key(g, s, b, key);
        break;
    case TIDE_BY_MODULE:
    case TIDE_BY_FUNCTION:
    case TIDE_BY_FILE:
    case TIDE_BY_LIBRARY:
    case TIDE_BY_STACK:
    case TIDE_BY_CATEGORY:
        tide__stack_key(s->trace, b->in_buffer ? 0 : b->scope_id, by, key);
        break;
    }
}

// ---- counting ----

/// The group of `key`, made when it is new; NULL without memory. Valid until the next call.
static group *group_of(grouping *g, const char *key, unsigned order) {
    uint64_t i;
    if (tide_strmap_get(&g->by_key, key, &i)) return &g->groups[i];
    if (tide_host_grow(&g->groups, &g->cap, g->n + 1, sizeof *g->groups) != TIDE_OK) return NULL;
    char *copy = tide_host_strdup(key);
    if (copy == NULL) return NULL;
    if (tide_strmap_put(&g->by_key, key, g->n) != TIDE_OK) {
        tide_host_free(copy);
        return NULL;
    }
    g->groups[g->n] = (group){.key = copy, .order = order};
    return &g->groups[g->n++];
}

static tide_status count(grouping *g, const tide_live_set *s, tide_group_by by, int side, tide_error *err) {
    tide_text key = {0};
    for (size_t i = 0; i < s->n; i++) {
        unsigned order;
        key.len = 0;
        add_key(g, s, &s->items[i], by, &key, &order);
        group *to = key.failed ? NULL : group_of(g, tide_text_str(&key), order);
        if (to == NULL) {
            tide_text_deinit(&key);
            return TIDE_NO_MEMORY(err, "to group blocks");
        }
        to->n[side]++;
        to->requested[side] += s->items[i].requested_bytes;
        to->reserved[side] += s->items[i].reserved_bytes;
    }
    tide_text_deinit(&key);
    return TIDE_OK;
}

// ---- one set ----

static int by_bytes(const void *a, const void *b) {
    const group *x = a, *y = b;
    if (x->requested[0] != y->requested[0]) return x->requested[0] > y->requested[0] ? -1 : 1;
    if (x->n[0] != y->n[0]) return x->n[0] > y->n[0] ? -1 : 1;
    return strcmp(x->key, y->key);
}

static int by_order(const void *a, const void *b) {
    const group *x = a, *y = b;
    return (x->order > y->order) - (x->order < y->order);
}

tide_status tide_live_set_group(const tide_live_set *s, tide_group_by by, tide_group **out, size_t *n,
                                tide_error *err) {
    grouping g = {0};
    tide_status st = count(&g, s, by, 0, err);
    tide_group *groups = st == TIDE_OK ? tide_host_calloc(g.n + 1, sizeof *groups) : NULL;
    if (st == TIDE_OK && groups == NULL) st = TIDE_NO_MEMORY(err, "to group blocks");
    if (st == TIDE_OK) {
        if (g.n > 1)
            qsort(g.groups, g.n, sizeof *g.groups, by == TIDE_BY_SIZE || by == TIDE_BY_AGE ? by_order : by_bytes);
        for (size_t i = 0; i < g.n; i++) {
            groups[i] = (tide_group){.key = g.groups[i].key,
                                     .n_blocks = g.groups[i].n[0],
                                     .requested_bytes = g.groups[i].requested[0],
                                     .reserved_bytes = g.groups[i].reserved[0]};
            g.groups[i].key = NULL;
        }
        size_t n_groups = g.n;
        if (tide_group_by_has_callees(by)) st = tide__groups_add_callees(s, by, &groups, &n_groups, err);
        if (st != TIDE_OK) tide_groups_free(groups, n_groups);
        if (st == TIDE_OK) {
            *out = groups;
            *n = n_groups;
        }
    }
    grouping_deinit(&g);
    return st;
}

void tide_groups_free(tide_group *groups, size_t n) {
    for (size_t i = 0; i < n; i++) tide_host_free(groups[i].key);
    tide_host_free(groups);
}

// ---- two sets ----

static uint64_t distance(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

static int by_change(const void *a, const void *b) {
    const group *x = a, *y = b;
    const uint64_t dx = distance(x->requested[0], x->requested[1]), dy = distance(y->requested[0], y->requested[1]);
    if (dx != dy) return dx > dy ? -1 : 1;
    const uint64_t nx = distance(x->n[0], x->n[1]), ny = distance(y->n[0], y->n[1]);
    if (nx != ny) return nx > ny ? -1 : 1;
    if (x->requested[1] != y->requested[1]) return x->requested[1] > y->requested[1] ? -1 : 1;
    return strcmp(x->key, y->key);
}

tide_status tide_live_set_compare(const tide_live_set *a, const tide_live_set *b, tide_group_by by,
                                  tide_group_change **out, size_t *n, tide_error *err) {
    grouping g = {0};
    tide_status st = count(&g, a, by, 0, err);
    if (st == TIDE_OK) st = count(&g, b, by, 1, err);
    tide_group_change *changes = st == TIDE_OK ? tide_host_calloc(g.n + 1, sizeof *changes) : NULL;
    if (st == TIDE_OK && changes == NULL) st = TIDE_NO_MEMORY(err, "to group blocks");
    if (st == TIDE_OK) {
        if (g.n > 1) qsort(g.groups, g.n, sizeof *g.groups, by_change);
        for (size_t i = 0; i < g.n; i++) {
            const group *from = &g.groups[i];
            changes[i] = (tide_group_change){from->key, from->n[0], from->n[1], from->requested[0], from->requested[1]};
            g.groups[i].key = NULL;
        }
        *out = changes;
        *n = g.n;
    }
    grouping_deinit(&g);
    return st;
}

void tide_group_changes_free(tide_group_change *changes, size_t n) {
    for (size_t i = 0; i < n; i++) tide_host_free(changes[i].key);
    tide_host_free(changes);
}

// ---- what blocks hold, change by change ----

typedef struct caller {
    const tide_trace *t;
    tide_status (*fn)(void *ctx, const tide_trace_held *held);
    void *ctx;
} caller;

static tide_status give_series(const caller *w, const tide__series *s, int64_t event, int64_t t_ns) {
    const tide_trace_held held = {.event = (uint64_t)event,
                                  .t_ns = (uint64_t)t_ns,
                                  .kind = (tide_memory_kind)s->kind,
                                  .device = tide__trace_device(w->t, s->device),
                                  .reserved_bytes = (uint64_t)s->live_reserved_bytes};
    return w->fn(w->ctx, &held);
}

static tide_status begin_all(void *ctx, const tide__replay *r) {
    const caller *w = ctx;
    for (size_t i = 1; i < r->n_series; i++)
        TIDE_TRY(give_series(w, &r->series[i], w->t->first_event - 1, w->t->begin_ns));
    return TIDE_OK;
}

static tide_status on_event(void *ctx, const tide__replay *r, const tide__event *e, size_t series) {
    const caller *w = ctx;
    if (series == 0) return TIDE_OK;
    if (r->n_changed == 1) return give_series(w, &r->series[series], e->id, e->t_ns);
    for (size_t i = 1; i < r->n_series; i++)
        if (r->series[i].last_event == e->id) TIDE_TRY(give_series(w, &r->series[i], e->id, e->t_ns));
    return TIDE_OK;
}

tide_status tide_trace_each_held(tide_trace *t, tide_status (*fn)(void *ctx, const tide_trace_held *held), void *ctx,
                                 tide_error *err) {
    caller w = {t, fn, ctx};
    return tide__trace_walk(t, t->first_event, t->last_event, begin_all, on_event, &w, err);
}
