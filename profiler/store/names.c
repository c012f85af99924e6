// SPDX-License-Identifier: MIT
//
// Texts, scopes, devices and threads by number. See names.h.
#include "profiler/store/names.h"

#include <string.h>

#include "core/base/host_alloc.h"

/// Events keep these numbers in 32 bits, devices in 15.
enum { MAX_DEPTH = 1024, MAX_DEVICES = INT16_MAX };

tide_status tide__names_text(tide__names *n, const char *text, int64_t *id) {
    *id = 0;
    if (text == NULL) return TIDE_OK;
    uint64_t known;
    if (tide_strmap_get(&n->by_text, text, &known)) {
        *id = (int64_t)known;
        return TIDE_OK;
    }
    if (n->n_texts >= INT32_MAX) return TIDE_ERR_NOMEM;
    TIDE_TRY(tide_host_grow(&n->fresh, &n->cap_fresh, n->n_fresh + 1, sizeof *n->fresh));
    char *copy = tide_host_strdup(text);
    if (copy == NULL) return TIDE_ERR_NOMEM;
    if (tide_strmap_put(&n->by_text, text, (uint64_t)n->n_texts + 1) != TIDE_OK) {
        tide_host_free(copy);
        return TIDE_ERR_NOMEM;
    }
    n->fresh[n->n_fresh++] = copy;
    *id = ++n->n_texts;
    return TIDE_OK;
}

// ---- scopes ----

static uint64_t mix(uint64_t h, uint64_t v) { return (h ^ v) * 0x9E3779B97F4A7C15ULL ^ h >> 29; }

static bool same_scope(const tide__scope_row *a, const tide__scope_row *b) {
    return a->name_id == b->name_id && a->parent_id == b->parent_id && a->kind == b->kind && a->step == b->step;
}

static uint64_t scope_hash(const void *names, uint32_t i) {
    const tide__scope_row *row = &((const tide__names *)names)->scopes[i];
    return mix(mix(mix(mix(1, (uint64_t)row->name_id), (uint64_t)row->parent_id), (uint64_t)row->step),
               (uint64_t)row->kind) >>
           20;
}

static bool is_scope(const void *names, uint32_t i, const void *row) {
    return same_scope(&((const tide__names *)names)->scopes[i], row);
}

static const char *const scope_kinds[] = {[TIDE_SCOPE_REGION] = "region",
                                          [TIDE_SCOPE_RUN] = "run",
                                          [TIDE_SCOPE_OPERATOR] = "operator",
                                          [TIDE_SCOPE_FRAME] = "frame"};

const char *tide__names_scope_text(int32_t kind) {
    return kind >= 0 && kind <= TIDE_SCOPE_FRAME ? scope_kinds[kind] : scope_kinds[TIDE_SCOPE_REGION];
}

bool tide__names_scope_kind(const char *text, int32_t *kind) {
    for (int32_t i = 0; i <= TIDE_SCOPE_FRAME; i++) {
        if (strcmp(text, scope_kinds[i]) != 0) continue;
        *kind = i;
        return true;
    }
    return false;
}

static tide_status put_scope(tide__names *n, const tide__scope_row *row, int64_t *id) {
    if (n->n_scopes >= INT32_MAX) return TIDE_ERR_NOMEM;
    // The row stands behind the last one while it is looked for, and stays there if it is new.
    TIDE_TRY(tide_host_grow(&n->scopes, &n->cap_scopes, n->n_scopes + 1, sizeof *n->scopes));
    const uint32_t fresh = (uint32_t)n->n_scopes;
    n->scopes[fresh] = *row;
    uint32_t i = tide_index_find(&n->scope_index, scope_hash(n, fresh), n, is_scope, row);
    if (i == TIDE_INDEX_NONE) {
        TIDE_TRY(tide_index_put(&n->scope_index, fresh, n, scope_hash));
        i = fresh;
        n->n_scopes++;
    }
    *id = (int64_t)i + 1;
    return TIDE_OK;
}

static tide_status scope_at_depth(tide__names *n, const tide_scope *scope, int depth, int64_t *id) {
    *id = 0;
    if (scope == NULL) return TIDE_OK;
    if (depth > MAX_DEPTH) return TIDE_ERR_INVALID;
    tide__scope_row row = {.kind = (int32_t)scope->kind, .step = scope->index < 0 ? -1 : scope->index};
    TIDE_TRY(scope_at_depth(n, scope->parent, depth + 1, &row.parent_id));
    TIDE_TRY(tide__names_text(n, scope->name != NULL ? scope->name : "", &row.name_id));
    return put_scope(n, &row, id);
}

tide_status tide__names_scope(tide__names *n, const tide_scope *scope, int64_t *id) {
    return scope_at_depth(n, scope, 0, id);
}

tide_status tide__names_scope_row(tide__names *n, const tide__scope_row *row, int64_t *id) {
    if (row->name_id < 1 || row->name_id > n->n_texts || row->parent_id < 0 || row->parent_id > (int64_t)n->n_scopes ||
        row->kind < TIDE_SCOPE_REGION || row->kind > TIDE_SCOPE_FRAME || row->step < -1)
        return TIDE_ERR_INVALID;
    return put_scope(n, row, id);
}

// ---- devices ----

tide_status tide__names_device(tide__names *n, tide_device device, int64_t *id) {
    for (size_t i = 0; i < n->n_devices; i++) {
        if (!tide_device_equal(n->devices[i], device)) continue;
        *id = (int64_t)i + 1;
        return TIDE_OK;
    }
    if (n->n_devices >= MAX_DEVICES) return TIDE_ERR_INVALID;
    TIDE_TRY(tide_host_grow(&n->devices, &n->cap_devices, n->n_devices + 1, sizeof *n->devices));
    n->devices[n->n_devices++] = device;
    *id = (int64_t)n->n_devices;
    return TIDE_OK;
}

// ---- threads ----

typedef struct thread_key {
    uint64_t key; ///< id, or process and number
    uint64_t index;
} thread_key;

static uint64_t number_key(int64_t process_id, int64_t number) { return (uint64_t)process_id << 32 | (uint64_t)number; }

static bool is_number(int64_t n) { return n >= 1 && n <= INT32_MAX; }

/// The lowest id that no thread has.
static int64_t free_thread_id(tide__names *n) {
    int64_t id = n->last_free_thread + 1;
    while (tide_map_find(&n->thread_ids, (uint64_t)id) != NULL) id++;
    n->last_free_thread = id - 1;
    return id;
}

static tide_status put_thread(tide__names *n, const tide__thread_row *row) {
    TIDE_TRY(tide_host_grow(&n->threads, &n->cap_threads, n->n_threads + 1, sizeof *n->threads));
    const thread_key by_id = {(uint64_t)row->id, n->n_threads};
    const thread_key by_number = {number_key(row->process_id, row->number), n->n_threads};
    if (!tide_map_put(&n->thread_ids, &by_id)) return TIDE_ERR_NOMEM;
    if (!tide_map_put(&n->thread_numbers, &by_number)) {
        tide_map_take(&n->thread_ids, tide_map_find(&n->thread_ids, by_id.key));
        return TIDE_ERR_NOMEM;
    }
    n->threads[n->n_threads++] = *row;
    n->n_threads_unwritten += !row->is_written;
    return TIDE_OK;
}

/// A name that comes after its thread.
static tide_status name_thread(tide__names *n, tide__thread_row *row, const char *name) {
    if (name == NULL || name[0] == '\0' || (row->name != NULL && strcmp(row->name, name) == 0)) return TIDE_OK;
    char *copy = tide_host_strdup(name);
    if (copy == NULL) return TIDE_ERR_NOMEM;
    tide_host_free(row->name);
    row->name = copy;
    n->n_threads_unwritten += row->is_written;
    row->is_written = false;
    return TIDE_OK;
}

static void init_thread_maps(tide__names *n) {
    n->thread_ids.entry_bytes = sizeof(thread_key);
    n->thread_numbers.entry_bytes = sizeof(thread_key);
}

static tide_status add_thread(tide__names *n, tide__thread_row row, const char *name) {
    if (name != NULL && name[0] != '\0') {
        row.name = tide_host_strdup(name);
        if (row.name == NULL) return TIDE_ERR_NOMEM;
    }
    const tide_status st = put_thread(n, &row);
    if (st != TIDE_OK) tide_host_free(row.name);
    return st;
}

tide_status tide__names_thread(tide__names *n, int64_t process_id, int64_t number, const char *name, int64_t *id) {
    if (!is_number(process_id) || !is_number(number)) return TIDE_ERR_INVALID;
    init_thread_maps(n);
    const thread_key *known = tide_map_find(&n->thread_numbers, number_key(process_id, number));
    if (known != NULL) {
        tide__thread_row *row = &n->threads[known->index];
        *id = row->id;
        return name_thread(n, row, name);
    }
    const bool is_free = tide_map_find(&n->thread_ids, (uint64_t)number) == NULL;
    const tide__thread_row row = {
        .id = is_free ? number : free_thread_id(n), .process_id = process_id, .number = number};
    if (!is_number(row.id)) return TIDE_ERR_NOMEM;
    TIDE_TRY(add_thread(n, row, name));
    *id = row.id;
    return TIDE_OK;
}

tide_status tide__names_put_thread(tide__names *n, int64_t id, int64_t process_id, int64_t number, const char *name) {
    init_thread_maps(n);
    if (!is_number(id) || !is_number(process_id) || !is_number(number) ||
        tide_map_find(&n->thread_ids, (uint64_t)id) != NULL ||
        tide_map_find(&n->thread_numbers, number_key(process_id, number)) != NULL)
        return TIDE_ERR_BAD_INPUT;
    const tide__thread_row row = {.id = id, .process_id = process_id, .number = number};
    return add_thread(n, row, name);
}

void tide__names_written(tide__names *n) {
    for (size_t i = 0; i < n->n_fresh; i++) tide_host_free(n->fresh[i]);
    n->n_fresh = 0;
    n->n_scopes_written = n->n_scopes;
    n->n_devices_written = n->n_devices;
    for (size_t i = 0; n->n_threads_unwritten > 0 && i < n->n_threads; i++) n->threads[i].is_written = true;
    n->n_threads_unwritten = 0;
}

void tide__names_deinit(tide__names *n) {
    tide__names_written(n);
    tide_host_free(n->fresh);
    tide_strmap_deinit(&n->by_text);
    tide_host_free(n->scopes);
    tide_index_deinit(&n->scope_index);
    tide_host_free(n->devices);
    for (size_t i = 0; i < n->n_threads; i++) tide_host_free(n->threads[i].name);
    tide_host_free(n->threads);
    tide_map_deinit(&n->thread_ids);
    tide_map_deinit(&n->thread_numbers);
    *n = (tide__names){0};
}
