// SPDX-License-Identifier: MIT
//
// Runs and facts out of bytes that another program wrote. See registration.h. What a plan must be to be written into a
// trace is checked here, as it is where a plan is read back (profiler/store/plan_rows.c).
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/runtime/memory_plan.h"
#include "profiler/feed/registration.h"

static tide_status state_of(const tide__codec *c) {
    if (c->has_no_memory) return TIDE_ERR_NOMEM;
    return c->is_bad ? TIDE_ERR_BAD_INPUT : TIDE_OK;
}

/// Room for `n`, zeroed; NULL for none, and without memory.
static void *room(tide__codec *c, size_t n, size_t bytes) {
    void *list = n > 0 ? tide_host_calloc(n, bytes) : NULL;
    if (n > 0 && list == NULL) c->has_no_memory = true;
    return list;
}

/// *n counts the texts that are there, also when the last of them cannot be read.
static void take_texts(tide__codec *c, char ***texts, size_t *n) {
    size_t said = 0;
    tide__code_count(c, &said, 1);
    *texts = room(c, said, sizeof **texts);
    for (*n = 0; *texts != NULL && *n < said && state_of(c) == TIDE_OK; ++*n) {
        tide__code_text(c, &(*texts)[*n]);
        if (state_of(c) == TIDE_OK && (*texts)[*n] == NULL) c->is_bad = true;
        if (state_of(c) != TIDE_OK) return;
    }
}

static bool is_region(const tide_plan_region *x, const tide_lifetimes *lt) {
    return x->open_step < x->begin_step && x->begin_step < x->end_step && x->end_step <= lt->n_steps;
}

static void take_lists(tide__codec *c, tide_memory_plan *p) {
    tide_lifetimes *lt = &p->lifetimes;
    take_texts(c, &lt->point_names, &lt->n_points);
    take_texts(c, &lt->step_names, &lt->n_step_names);
    take_texts(c, &lt->recomputed, &lt->n_recomputed);
    take_texts(c, &lt->dynamic, &lt->n_dynamic);
    if (lt->n_step_names != 0 && lt->n_step_names != (uint64_t)lt->n_steps) c->is_bad = true;
    tide__code_count(c, &p->n_buffers, 1);
    p->buffers = room(c, p->n_buffers, sizeof *p->buffers);
    for (size_t i = 0; p->buffers != NULL && i < p->n_buffers; i++) tide__code_buffer(c, &p->buffers[i]);
    tide__code_count(c, &p->n_pools, 1);
    p->pool_list = room(c, p->n_pools, sizeof *p->pool_list);
    for (size_t i = 0; p->pool_list != NULL && i < p->n_pools; i++) {
        tide__code_pool(c, &p->pool_list[i]);
        if (p->pool_list[i].buffer >= p->n_buffers) c->is_bad = true;
    }
    tide__code_count(c, &lt->n_regions, 1);
    lt->regions = room(c, lt->n_regions, sizeof *lt->regions);
    for (size_t i = 0; lt->regions != NULL && i < lt->n_regions; i++) {
        tide__code_region(c, &lt->regions[i]);
        if (!is_region(&lt->regions[i], lt)) c->is_bad = true;
    }
}

/// What an alias is, until all tensors are there.
typedef struct alias {
    uint32_t tensor, of;
    tide_alias_kind kind;
    uint64_t offset_bytes;
} alias;

typedef struct aliases {
    alias *items;
    size_t n, cap;
} aliases;

/// Gaps and sizes at points, in memory of ours until the table has copied them.
static void take_tail(tide__codec *c, const tide_lifetimes *lt, tide_lifetime *item) {
    if (item->n_gaps > (uint64_t)(c->end - c->at) / 4) c->is_bad = true;
    if (state_of(c) != TIDE_OK) return;
    item->gaps = room(c, item->n_gaps, sizeof *item->gaps);
    for (uint32_t k = 0; item->gaps != NULL && k < item->n_gaps; k++) tide__code_gap(c, &item->gaps[k]);
    size_t n = 0;
    tide__code_count(c, &n, 1);
    if (n != 0 && n != lt->n_points) c->is_bad = true;
    if (state_of(c) != TIDE_OK) return;
    item->point_bytes = room(c, n, sizeof *item->point_bytes);
    for (size_t k = 0; item->point_bytes != NULL && k < n; k++) tide__code_size(c, &item->point_bytes[k]);
}

/// What has a place lies inside the buffers and the pools.
static bool is_placed(const tide_memory_plan *p, const tide_lifetime *item, uint64_t offset, int32_t pool) {
    uint64_t end;
    if (pool != TIDE_NO_POOL && (size_t)pool >= p->n_pools) return false;
    if (offset == TIDE_NO_OFFSET) return true;
    const uint64_t bytes = item->alias != TIDE_ALIAS_NONE ? item->size_bytes : tide_lifetime_aligned_bytes(item);
    return tide_add_u64(offset, bytes, &end) && end <= p->bytes;
}

/// One whose name and numbers are there: into the table.
static tide_status add_tensor(tide_memory_plan *p, size_t i, tide_lifetime *item, uint64_t offset, int32_t pool,
                              aliases *list) {
    tide_lifetimes *lt = &p->lifetimes;
    const alias a = {
        .tensor = (uint32_t)i, .of = item->alias_of, .kind = item->alias, .offset_bytes = item->alias_offset_bytes};
    if (item->name == NULL || item->end_step > lt->n_steps) return TIDE_ERR_BAD_INPUT;
    item->alias = TIDE_ALIAS_NONE;
    const tide_status st = tide_lifetimes_add(lt, item, NULL);
    if (st != TIDE_OK) return st == TIDE_ERR_NOMEM ? st : TIDE_ERR_BAD_INPUT;
    item->alias = a.kind;
    if (!is_placed(p, item, offset, pool)) return TIDE_ERR_BAD_INPUT;
    p->offsets[i] = offset;
    p->pools[i] = pool;
    if (a.kind == TIDE_ALIAS_NONE) return TIDE_OK;
    TIDE_TRY(tide_host_grow(&list->items, &list->cap, list->n + 1, sizeof *list->items));
    list->items[list->n++] = a;
    return TIDE_OK;
}

static tide_status take_tensor(tide__codec *c, tide_memory_plan *p, size_t i, aliases *list) {
    tide_lifetime item = {0};
    uint64_t offset = TIDE_NO_OFFSET;
    int32_t pool = TIDE_NO_POOL;
    tide__code_text(c, &item.name);
    tide__code_lifetime(c, &item);
    take_tail(c, &p->lifetimes, &item);
    tide__code_place(c, &offset, &pool);
    tide_status st = state_of(c);
    if (st == TIDE_OK) st = add_tensor(p, i, &item, offset, pool, list);
    tide_host_free(item.name);
    tide_host_free(item.gaps);
    tide_host_free(item.point_bytes);
    tide_host_free(item.bound);
    return st;
}

static tide_status take_tensors(tide__codec *c, tide_memory_plan *p, aliases *list) {
    size_t n = 0;
    tide__code_count(c, &n, TIDE__LEAST_TENSOR_BYTES);
    if (n >= TIDE_NO_INDEX) c->is_bad = true;
    TIDE_TRY(state_of(c));
    p->offsets = tide_host_calloc(n + 1, sizeof *p->offsets);
    p->pools = tide_host_calloc(n + 1, sizeof *p->pools);
    if (p->offsets == NULL || p->pools == NULL) return TIDE_ERR_NOMEM;
    for (size_t i = 0; i < n; i++) TIDE_TRY(take_tensor(c, p, i, list));
    for (size_t i = 0; i < p->n_pools; i++)
        if (p->pool_list[i].n_members > n) return TIDE_ERR_BAD_INPUT;
    for (size_t i = 0; i < list->n; i++) {
        const alias *a = &list->items[i];
        const tide_status st = tide_lifetimes_alias(&p->lifetimes, a->tensor, a->kind, a->of, a->offset_bytes, NULL);
        if (st != TIDE_OK) return st == TIDE_ERR_NOMEM ? st : TIDE_ERR_BAD_INPUT;
    }
    return TIDE_OK;
}

static tide_status take_plan(tide__codec *c, tide_memory_plan **out) {
    tide_memory_plan *p = tide_host_calloc(1, sizeof *p);
    if (p == NULL) return TIDE_ERR_NOMEM;
    aliases list = {0};
    tide__code_plan_head(c, p);
    tide_status st = state_of(c);
    if (st == TIDE_OK) {
        take_lists(c, p);
        st = state_of(c);
    }
    if (st == TIDE_OK) st = take_tensors(c, p, &list);
    tide_host_free(list.items);
    if (st != TIDE_OK) {
        tide_memory_plan_destroy(p);
        return st;
    }
    *out = p;
    return TIDE_OK;
}

void tide__run_taken_deinit(tide__run_taken *run) {
    const char *const texts[] = {run->info.model, run->info.source, run->info.mode, run->info.strategy,
                                 run->info.device};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) tide_host_free((char *)(uintptr_t)texts[i]);
    tide_memory_plan_destroy(run->plan);
    *run = (tide__run_taken){0};
}

/// *has_plan: one follows, which is not taken yet.
static tide_status take_head(tide__codec *c, tide__run_taken *out, bool *has_plan) {
    tide__run_taken run = {0};
    *has_plan = false;
    tide__code_run(c, &run.info, &run.begin_ns, has_plan);
    if (state_of(c) == TIDE_OK)
        *out = run;
    else
        tide__run_taken_deinit(&run);
    return state_of(c);
}

tide_status tide__registration_take_head(const void *bytes, size_t n, tide__run_taken *out) {
    tide__codec c = {.at = bytes, .end = (const uint8_t *)bytes + n};
    bool has_plan;
    return take_head(&c, out, &has_plan);
}

tide_status tide__registration_take_run(const void *bytes, size_t n, tide__run_taken *out) {
    tide__codec c = {.at = bytes, .end = (const uint8_t *)bytes + n};
    tide__run_taken run;
    bool has_plan;
    TIDE_TRY(take_head(&c, &run, &has_plan));
    tide_status st = has_plan ? take_plan(&c, &run.plan) : TIDE_OK;
    if (st == TIDE_OK && c.at != c.end) st = TIDE_ERR_BAD_INPUT;
    if (st == TIDE_OK)
        *out = run;
    else
        tide__run_taken_deinit(&run);
    return st;
}

tide_status tide__registration_take_fact(const void *bytes, size_t n, char **key, char **value) {
    tide__codec c = {.at = bytes, .end = (const uint8_t *)bytes + n};
    tide__code_text(&c, key);
    tide__code_text(&c, value);
    tide_status st = state_of(&c);
    if (st == TIDE_OK && (c.at != c.end || *key == NULL || tide__is_own_key(*key))) st = TIDE_ERR_BAD_INPUT;
    if (st == TIDE_OK) return TIDE_OK;
    tide_host_free(*key);
    tide_host_free(*value);
    *key = *value = NULL;
    return st;
}
