// SPDX-License-Identifier: MIT
//
// Stacked bands of what lives. See bands.h.
//
//     columns -> fullest moments -> what lives then, by group -> the largest groups -> a band for each
//
// Which groups are the largest is known behind the last column only. Until then each column keeps the bytes of all its
// groups; where these are too many, the columns are gone through once more.
#include "analysis/bands.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/plan_pools.h"
#include "analysis/subject_internal.h"
#include "core/base/host_alloc.h"
#include "core/base/map.h"
#include "profiler/lanes.h"

enum { MAX_ENTRIES = 8 << 20 }; // 16 bytes each

typedef struct group {
    const char *name; // owned by the names
    tide_band_sort sort;
    int kind;
    bool in_buffer;     // some of it lies in a plan's buffer: it stands next to what is unused of that
    uint64_t now;       // bytes in the column that is looked at
    uint64_t most, sum; // of all columns
    size_t band;        // that it is in; SIZE_MAX: none yet
} group;

/// The bytes of a group in one column.
typedef struct entry {
    uint64_t bytes;
    uint32_t group;
} entry;

typedef struct known_text { // of a tide_map: texts of a trace stay where they are
    uint64_t address;
    uint64_t group;
} known_text;

typedef struct maker {
    tide_subject *s;
    const tide_bands_options *opt;
    const tide_progress *progress;
    tide_error *err;
    tide_bands *out;
    bool *is_dropped; // [n], owned
    group *groups;    // [n_groups], owned
    size_t n_groups, cap_groups;
    char **names; // [n_groups], owned
    size_t cap_names;
    tide_strmap by_name;
    tide_map by_text;
    size_t special[TIDE_BAND_DROPPED + 1]; // groups of sorts that have one; SIZE_MAX: not yet
    uint32_t *tensor_group;                // [tensors] of a plan, owned
    uint64_t *counts;                      // [tensors], owned
    entry *entries;                        // owned
    size_t n_entries, cap_entries;
    size_t *entries_end; // [n] of each column, owned
    bool has_all;        // entries are those of every column
} maker;

const char *tide_band_by_name(tide_band_by by) {
    switch (by) {
#define XX(name, text)                                                                                                 \
    case TIDE_BAND_BY_##name:                                                                                          \
        return text;
        TIDE_BAND_BY_MAP(XX)
#undef XX
    default:
        return "";
    }
}

void tide_bands_deinit(tide_bands *b) {
    for (size_t i = 0; i < b->n_items; i++) {
        tide_host_free(b->items[i].name);
        tide_host_free(b->items[i].bytes);
    }
    tide_host_free(b->items);
    tide_host_free(b->bytes);
    tide_host_free(b->at);
    *b = (tide_bands){0};
}

static uint64_t sum_or_most(uint64_t a, uint64_t b) { return a + b < a ? UINT64_MAX : a + b; }

// ---- groups ----

static tide_status add_group(maker *m, const char *name, tide_band_sort sort, int kind, uint64_t *out) {
    TIDE_TRY(TIDE_GROW(&m->groups, &m->cap_groups, m->n_groups + 1, m->err, "for bands"));
    TIDE_TRY(TIDE_GROW(&m->names, &m->cap_names, m->n_groups + 1, m->err, "for bands"));
    char **copy = &m->names[m->n_groups];
    TIDE_TRY(TIDE_COPY_TEXT(copy, name, m->err, "for bands"));
    m->groups[m->n_groups] = (group){.name = *copy, .sort = sort, .kind = kind, .band = SIZE_MAX};
    *out = m->n_groups++;
    return TIDE_OK;
}

/// The one group of a sort: weights, unused, dropped.
static tide_status special_group(maker *m, tide_band_sort sort, uint64_t *out) {
    static const char *const names[] = {
        [TIDE_BAND_WEIGHTS] = "weights", [TIDE_BAND_UNUSED] = "unused in the buffer", [TIDE_BAND_DROPPED] = "dropped"};
    if (m->special[sort] == SIZE_MAX) {
        uint64_t made;
        TIDE_TRY(add_group(m, names[sort], sort, sort == TIDE_BAND_WEIGHTS ? TIDE_KIND_PERSISTENT : -1, &made));
        m->special[sort] = (size_t)made;
    }
    *out = m->special[sort];
    return TIDE_OK;
}

static tide_status group_named(maker *m, const char *name, int kind, uint64_t *out) {
    if (tide_strmap_get(&m->by_name, name, out)) return TIDE_OK;
    TIDE_TRY(add_group(m, name, TIDE_BAND_GROUP, kind, out));
    return tide_strmap_put(&m->by_name, name, *out) == TIDE_OK ? TIDE_OK : TIDE_NO_MEMORY(m->err, "for bands");
}

static const char *made_by(const char *owner, tide_role role) {
    if (owner[0] != '\0') return owner;
    return role == TIDE_ROLE_INPUT    ? "(inputs)"
           : role == TIDE_ROLE_OUTPUT ? "(outputs)"
           : role == TIDE_ROLE_WEIGHT ? "(weights)"
                                      : "(no operator)";
}

/// The group of something that lives, whatever it is asked by.
static tide_status group_of(maker *m, tide_memory_kind kind, const char *name, const char *owner, tide_role role,
                            uint64_t *out) {
    if (m->opt->by == TIDE_BAND_BY_PROCESS) return group_named(m, "the program", -1, out); // of a plan
    if (kind == TIDE_KIND_PERSISTENT) return special_group(m, TIDE_BAND_WEIGHTS, out);
    if (m->opt->by == TIDE_BAND_BY_KIND) return group_named(m, tide_memory_kind_name(kind), (int)kind, out);
    const char *text = name[0] != '\0' ? name : "(no name)";
    return group_named(m, m->opt->by == TIDE_BAND_BY_TENSOR ? text : made_by(owner, role), -1, out);
}

// ---- what lives at a moment ----

static void start_column(maker *m) {
    for (size_t i = 0; i < m->n_groups; i++) m->groups[i].now = 0;
}

/// The group of a pool, which `key` stands for; `format` has its name.
__attribute__((format(printf, 4, 5))) static tide_status pool_group(maker *m, uint64_t key, uint64_t *out,
                                                                    const char *format, ...) {
    const known_text *known = tide_map_find(&m->by_text, key);
    if (known != NULL) {
        *out = known->group;
        return TIDE_OK;
    }
    char name[96];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    TIDE_TRY(group_named(m, name, -1, out));
    const known_text made = {key, *out};
    return tide_map_put(&m->by_text, &made) ? TIDE_OK : TIDE_NO_MEMORY(m->err, "for bands");
}

/// By pool: where a tensor of a plan lies.
static tide_status pool_of_tensor(maker *m, const tide_memory_plan *plan, uint32_t tensor, uint64_t *out) {
    const tide_lifetime *l = &plan->lifetimes.items[tensor];
    if (l->kind == TIDE_KIND_PERSISTENT) return special_group(m, TIDE_BAND_WEIGHTS, out);
    const uint32_t pool = tide__plan_pool_of(plan, (uint32_t)tide_lifetimes_root(&plan->lifetimes, tensor, NULL));
    if (pool == UINT32_MAX) return group_named(m, tide_memory_kind_name(l->kind), -1, out);
    const uint64_t key = 1 + (uint64_t)pool; // below all addresses
    if (plan->n_pools == 0) return pool_group(m, key, out, "buffer %s", tide_memory_kind_name(l->kind));
    return pool_group(m, key, out, "pool %" PRIu32, pool);
}

/// By pool: a block is in the pool of its allocator, for its kind, or in the buffer that it lies in.
static tide_status pool_of_block(maker *m, const tide_live *b, uint64_t *out) {
    if (b->in_buffer) {
        const tide__planned_runs *planned;
        TIDE_TRY(tide__subject_planned(m->s, &planned, m->err));
        const tide_executions *x = tide__planned_run(planned, b->plan_run_id);
        if (x != NULL) return pool_of_tensor(m, x->plan, b->tensor, out);
    }
    if (b->kind == TIDE_KIND_PERSISTENT) return special_group(m, TIDE_BAND_WEIGHTS, out);
    const uint64_t key = (uint64_t)(uintptr_t)b->allocator << 4 | (uint64_t)b->kind;
    return pool_group(m, key, out, "%.64s %s", b->allocator, tide_memory_kind_name(b->kind));
}

/// By process: its weights and what is unused in its buffers too.
static tide_status process_of_block(maker *m, uint64_t block_id, uint64_t *out) {
    const uint32_t process = tide_trace_process_of(block_id);
    const uint64_t key = 1 + (uint64_t)process; // below all addresses
    const known_text *known = tide_map_find(&m->by_text, key);
    if (known != NULL) {
        *out = known->group;
        return TIDE_OK;
    }
    char name[TIDE_LANE_NAME_BYTES];
    TIDE_TRY(tide_trace_lane_name(tide_subject_trace(m->s), process, name, m->err));
    TIDE_TRY(group_named(m, name[0] != '\0' ? name : "(no process)", -1, out));
    const known_text made = {key, *out};
    return tide_map_put(&m->by_text, &made) ? TIDE_OK : TIDE_NO_MEMORY(m->err, "for bands");
}

static tide_status describe_plan(maker *m) {
    const tide_lifetimes *lt = &m->s->plan->lifetimes;
    TIDE_TRY(TIDE_NEW(&m->tensor_group, lt->n + 1, m->err, "for bands"));
    TIDE_TRY(TIDE_NEW(&m->counts, lt->n + 1, m->err, "for bands"));
    for (size_t i = 0; i < lt->n; i++) {
        const tide_lifetime *l = &lt->items[i];
        const bool has_owner = !l->persistent && l->begin_step >= 0 && (uint64_t)l->begin_step < lt->n_step_names;
        uint64_t of;
        if (!tide_kind_is_among(m->opt->kind, (int)l->kind)) continue;
        TIDE_TRY(m->opt->by == TIDE_BAND_BY_POOL
                     ? pool_of_tensor(m, m->s->plan, (uint32_t)i, &of)
                     : group_of(m, l->kind, l->name, has_owner ? lt->step_names[l->begin_step] : "", l->role, &of));
        m->tensor_group[i] = (uint32_t)of;
    }
    return TIDE_OK;
}

static tide_status add_up_plan(maker *m, tide_moment at) {
    const tide_lifetimes *lt = &m->s->plan->lifetimes;
    const tide_plan_live *live;
    if (m->tensor_group == NULL) TIDE_TRY(describe_plan(m));
    TIDE_TRY(tide__subject_plan_live(m->s, &live, m->err));
    TIDE_TRY(tide_plan_live_counts(m->s->plan, live, at.t, m->counts, m->err));
    for (size_t i = 0; i < lt->n; i++)
        if (m->counts[i] > 0 && tide_kind_is_among(m->opt->kind, (int)lt->items[i].kind))
            m->groups[m->tensor_group[i]].now += m->counts[i];
    return TIDE_OK;
}

/// The group of a block, or of a tensor in a plan's buffer: by the address of its text where that has been seen.
static tide_status group_of_block(maker *m, const tide_live *b, uint64_t *out) {
    if (m->opt->by == TIDE_BAND_BY_PROCESS) return process_of_block(m, b->block_id, out);
    if (b->is_unused) return special_group(m, TIDE_BAND_UNUSED, out);
    if (m->opt->by == TIDE_BAND_BY_POOL) return pool_of_block(m, b, out);
    const char *text = m->opt->by == TIDE_BAND_BY_TENSOR ? b->name : b->scope;
    if (b->kind == TIDE_KIND_PERSISTENT || m->opt->by == TIDE_BAND_BY_KIND || text[0] == '\0') {
        const tide_lifetime *tensor = tide__run_plan_tensor(&m->s->run, b->name);
        const tide_role role = tensor != NULL ? tensor->role : TIDE_ROLE_INTERMEDIATE;
        return group_of(m, b->kind, b->name, b->scope, role, out);
    }
    const known_text *known = tide_map_find(&m->by_text, (uint64_t)(uintptr_t)text);
    if (known != NULL) {
        *out = known->group;
        return TIDE_OK;
    }
    TIDE_TRY(group_named(m, text, -1, out));
    const known_text made = {(uint64_t)(uintptr_t)text, *out};
    return tide_map_put(&m->by_text, &made) ? TIDE_OK : TIDE_NO_MEMORY(m->err, "for bands");
}

static tide_status add_up_set(maker *m, const tide_live_set *set) {
    for (size_t i = 0; i < set->n; i++) {
        uint64_t of;
        if (set->items[i].requested_bytes == 0 || !tide_kind_is_among(m->opt->kind, (int)set->items[i].kind)) continue;
        TIDE_TRY(group_of_block(m, &set->items[i], &of));
        m->groups[of].now += set->items[i].requested_bytes;
        m->groups[of].in_buffer |= set->items[i].in_buffer;
    }
    return TIDE_OK;
}

/// By kind, where no buffer is looked into, the curves of the kinds tell.
static tide_status add_up_kinds(maker *m, tide_moment at) {
    for (size_t i = 0; i < m->s->facts.n_kinds; i++) {
        const tide_trace_kind *k = &m->s->facts.kinds[i];
        uint64_t of, bytes;
        if (!tide_kind_is_among(m->opt->kind, (int)k->kind)) continue;
        TIDE_TRY(tide_trace_bytes_after(m->s->trace, (int)k->kind, k->device, at.event, &bytes, m->err));
        if (bytes == 0) continue;
        TIDE_TRY(group_of(m, k->kind, "", "", TIDE_ROLE_INTERMEDIATE, &of));
        m->groups[of].now += bytes;
    }
    return TIDE_OK;
}

/// Kinds that the facts leave out (nothing of the run was of them) can live all the same, from before it.
static bool sums_up(const maker *m, size_t column) {
    uint64_t sum = 0;
    for (size_t i = 0; i < m->n_groups; i++) sum += m->groups[i].now;
    return sum == m->out->bytes[column];
}

static tide_status add_up_trace(maker *m, size_t column) {
    const tide_moment at = m->out->at[column];
    const tide__planned_runs *planned;
    TIDE_TRY(tide__subject_planned(m->s, &planned, m->err));
    if (m->opt->by == TIDE_BAND_BY_KIND && planned->n == 0) {
        TIDE_TRY(add_up_kinds(m, at));
        if (sums_up(m, column)) return TIDE_OK;
        start_column(m);
    }
    tide_live_set set;
    TIDE_TRY(tide_trace_live_set_after(m->s->trace, at.event, &set, m->err));
    tide_status st = tide_trace_expand_buffers(m->s->trace, &set, m->err);
    if (st == TIDE_OK) st = add_up_set(m, &set);
    tide_live_set_deinit(&set);
    return st;
}

static bool same_moment(tide_moment a, tide_moment b, bool is_trace) {
    return is_trace ? a.event == b.event : a.t == b.t;
}

/// The groups' bytes in column `i`; they are those of the column before when the moment is the same.
static tide_status add_up(maker *m, size_t i) {
    const tide_bands *b = m->out;
    const bool is_trace = m->s->trace != NULL;
    if (!tide_progress_goes_on(m->progress, 0.3 + 0.7 * (double)i / (double)b->n, "adding up"))
        return TIDE_FAIL(m->err, TIDE_ERR_CANCELLED, "cancelled");
    if (i > 0 && !m->is_dropped[i] && !m->is_dropped[i - 1] && b->bytes[i] == b->bytes[i - 1] &&
        same_moment(b->at[i], b->at[i - 1], is_trace))
        return TIDE_OK;
    start_column(m);
    if (b->bytes[i] == 0) return TIDE_OK;
    if (!m->is_dropped[i]) return is_trace ? add_up_trace(m, i) : add_up_plan(m, b->at[i]);
    uint64_t of;
    TIDE_TRY(special_group(m, TIDE_BAND_DROPPED, &of));
    m->groups[of].now = b->bytes[i];
    return TIDE_OK;
}

// ---- columns ----

/// Keep what the groups have in column `i`, as long as there is room.
static tide_status keep_column(maker *m, size_t i) {
    for (size_t g = 0; g < m->n_groups; g++) {
        group *of = &m->groups[g];
        if (of->now > of->most) of->most = of->now;
        of->sum = sum_or_most(of->sum, of->now);
        if (of->now == 0 || !m->has_all) continue;
        if (m->n_entries == MAX_ENTRIES) {
            m->has_all = false;
            continue;
        }
        TIDE_TRY(TIDE_GROW(&m->entries, &m->cap_entries, m->n_entries + 1, m->err, "for bands"));
        m->entries[m->n_entries++] = (entry){of->now, (uint32_t)g};
    }
    m->entries_end[i] = m->n_entries;
    return TIDE_OK;
}

static void put(const maker *m, size_t column, size_t g, uint64_t bytes) {
    tide_band *b = &m->out->items[m->groups[g].band];
    b->bytes[column] += bytes;
    b->sum_bytes = sum_or_most(b->sum_bytes, bytes);
    if (b->bytes[column] > b->most_bytes) b->most_bytes = b->bytes[column];
}

static tide_status fill_column(maker *m, size_t i) {
    if (m->has_all) {
        for (size_t k = i > 0 ? m->entries_end[i - 1] : 0; k < m->entries_end[i]; k++)
            put(m, i, m->entries[k].group, m->entries[k].bytes);
        return TIDE_OK;
    }
    TIDE_TRY(add_up(m, i));
    for (size_t g = 0; g < m->n_groups; g++)
        if (m->groups[g].now > 0) put(m, i, g, m->groups[g].now);
    return TIDE_OK;
}

// ---- which groups have a band ----

/// Sorts in their order; kinds in theirs, those of a buffer behind the others; other groups by what they have in the
/// column where they have most.
static int by_size(const void *a, const void *b) {
    const group *x = *(const group *const *)a, *y = *(const group *const *)b;
    if (x->sort != y->sort) return x->sort < y->sort ? -1 : 1;
    if (x->kind >= 0 && y->kind >= 0 && x->in_buffer != y->in_buffer) return y->in_buffer ? -1 : 1;
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    if (x->most != y->most) return x->most > y->most ? -1 : 1;
    if (x->sum != y->sum) return x->sum > y->sum ? -1 : 1;
    return strcmp(x->name, y->name);
}

/// From below: what is there most of the time, so that what stands on it is even.
static int by_sum(const void *a, const void *b) {
    const group *x = *(const group *const *)a, *y = *(const group *const *)b;
    if (x->sort != y->sort) return x->sort < y->sort ? -1 : 1;
    if (x->kind >= 0 && y->kind >= 0 && x->in_buffer != y->in_buffer) return y->in_buffer ? -1 : 1;
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    if (x->sum != y->sum) return x->sum > y->sum ? -1 : 1;
    return strcmp(x->name, y->name);
}

static tide_status add_band(maker *m, const char *name, tide_band_sort sort, int kind, size_t n_names) {
    tide_bands *b = m->out;
    tide_band *x = &b->items[b->n_items];
    *x = (tide_band){.sort = sort, .kind = kind, .n_names = n_names};
    TIDE_TRY(TIDE_COPY_TEXT(&x->name, name, m->err, "for bands"));
    b->n_items++;
    return TIDE_NEW(&x->bytes, b->n, m->err, "for bands");
}

/// A band each for the first `n` of the groups, and one for all others of them.
static tide_status add_bands(maker *m, group **groups, size_t n_groups, size_t n) {
    char rest[48];
    if (n > 1) qsort(groups, n, sizeof *groups, by_sum);
    for (size_t i = 0; i < n_groups; i++) {
        group *g = groups[i];
        if (i == n) {
            snprintf(rest, sizeof rest, "%zu others", n_groups - n);
            TIDE_TRY(add_band(m, rest, TIDE_BAND_REST, -1, n_groups - n));
        }
        if (i < n) TIDE_TRY(add_band(m, g->name, g->sort, g->kind, 1));
        g->band = m->out->n_items - 1;
    }
    return TIDE_OK;
}

static tide_status choose_from(maker *m, group **order, size_t n) {
    size_t first = 0, end, room = m->opt->max_bands;
    if (n > 1) qsort(order, n, sizeof *order, by_size);
    for (size_t i = 0; i < n; i++) room -= order[i]->sort != TIDE_BAND_GROUP;
    while (first < n && order[first]->sort < TIDE_BAND_GROUP) first++;
    for (end = first; end < n && order[end]->sort == TIDE_BAND_GROUP;) end++;
    TIDE_TRY(add_bands(m, order, first, first));
    TIDE_TRY(add_bands(m, order + first, end - first, end - first > room ? room - 1 : end - first));
    return add_bands(m, order + end, n - end, n - end);
}

static tide_status choose(maker *m) {
    group **order;
    size_t n = 0;
    TIDE_TRY(TIDE_NEW(&m->out->items, m->opt->max_bands, m->err, "for bands"));
    TIDE_TRY(TIDE_NEW(&order, m->n_groups + 1, m->err, "for bands"));
    for (size_t i = 0; i < m->n_groups; i++)
        if (m->groups[i].most > 0) order[n++] = &m->groups[i];
    const tide_status st = choose_from(m, order, n);
    tide_host_free(order);
    return st;
}

// ---- all of it ----

static tide_status make(maker *m) {
    const tide_bands_options *o = m->opt;
    tide_bands *b = m->out;
    TIDE_TRY(TIDE_NEW(&b->bytes, o->n, m->err, "for bands"));
    TIDE_TRY(TIDE_NEW(&b->at, o->n, m->err, "for bands"));
    TIDE_TRY(TIDE_NEW(&m->is_dropped, o->n, m->err, "for bands"));
    TIDE_TRY(TIDE_NEW(&m->entries_end, o->n, m->err, "for bands"));
    TIDE_TRY(tide__bands_moments(m->s, o, b->at, b->bytes, m->is_dropped, m->progress, m->err));
    for (size_t i = 0; i < o->n; i++) {
        TIDE_TRY(add_up(m, i));
        TIDE_TRY(keep_column(m, i));
    }
    TIDE_TRY(choose(m));
    for (size_t i = 0; i < o->n; i++) TIDE_TRY(fill_column(m, i));
    return TIDE_OK;
}

static void maker_deinit(maker *m) {
    for (size_t i = 0; i < m->n_groups; i++) tide_host_free(m->names[i]);
    tide_host_free(m->names);
    tide_host_free(m->groups);
    tide_strmap_deinit(&m->by_name);
    tide_map_deinit(&m->by_text);
    tide_host_free(m->tensor_group);
    tide_host_free(m->counts);
    tide_host_free(m->entries);
    tide_host_free(m->entries_end);
    tide_host_free(m->is_dropped);
}

tide_status tide_bands_make(tide_subject *s, const tide_bands_options *opt, const tide_progress *progress,
                            tide_bands *out, tide_error *err) {
    if (opt->n == 0 || opt->n > INT32_MAX || opt->t1 <= opt->t0)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "a window without columns");
    if (opt->max_bands < TIDE_BANDS_LEAST)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "%zu bands are too few, %d the least", opt->max_bands,
                         TIDE_BANDS_LEAST);
    *out = (tide_bands){.by = opt->by, .n = opt->n};
    maker m = {.s = s,
               .opt = opt,
               .progress = progress,
               .err = err,
               .out = out,
               .by_text = TIDE_MAP(known_text),
               .has_all = true};
    for (size_t i = 0; i < sizeof m.special / sizeof m.special[0]; i++) m.special[i] = SIZE_MAX;
    const tide_status st = make(&m);
    maker_deinit(&m);
    if (st != TIDE_OK) tide_bands_deinit(out);
    return st;
}
