// SPDX-License-Identifier: MIT
//
// Texts, scopes and devices by number. See names.h.
#include "profiler/names.h"

#include "core/base/host_alloc.h"

enum { MAX_DEPTH = 1024, MAX_DEVICES = 65535 };

tide_status tide__names_text(tide__names *n, const char *text, int64_t *id) {
    *id = 0;
    if (text == NULL) return TIDE_OK;
    uint64_t known;
    if (tide_strmap_get(&n->by_text, text, &known)) {
        *id = (int64_t)known;
        return TIDE_OK;
    }
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

/// The slot that holds the number of `row`, or the free one where it belongs. The table is never full.
static uint32_t *scope_slot(const tide__names *n, uint32_t *slots, size_t cap, const tide__scope_row *row) {
    const uint64_t h = mix(mix(mix(mix(1, (uint64_t)row->name_id), (uint64_t)row->parent_id), (uint64_t)row->step),
                           (uint64_t)row->kind);
    size_t i = (size_t)(h >> 20) & (cap - 1);
    while (slots[i] != 0 && !same_scope(&n->scopes[slots[i] - 1], row)) i = (i + 1) & (cap - 1);
    return &slots[i];
}

static tide_status scope_rehash(tide__names *n, size_t cap) {
    uint32_t *slots = tide_host_calloc(cap, sizeof *slots);
    if (slots == NULL) return TIDE_ERR_NOMEM;
    for (size_t i = 0; i < n->n_scopes; i++) *scope_slot(n, slots, cap, &n->scopes[i]) = (uint32_t)(i + 1);
    tide_host_free(n->scope_slots);
    n->scope_slots = slots;
    n->cap_scope_slots = cap;
    return TIDE_OK;
}

static tide_status put_scope(tide__names *n, const tide__scope_row *row, int64_t *id) {
    if (2 * (n->n_scopes + 1) > n->cap_scope_slots)
        TIDE_TRY(scope_rehash(n, n->cap_scope_slots == 0 ? 64 : 2 * n->cap_scope_slots));
    uint32_t *slot = scope_slot(n, n->scope_slots, n->cap_scope_slots, row);
    if (*slot == 0) {
        if (n->n_scopes >= UINT32_MAX) return TIDE_ERR_NOMEM;
        TIDE_TRY(tide_host_grow(&n->scopes, &n->cap_scopes, n->n_scopes + 1, sizeof *n->scopes));
        n->scopes[n->n_scopes++] = *row;
        *slot = (uint32_t)n->n_scopes;
    }
    *id = *slot;
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

void tide__names_written(tide__names *n) {
    for (size_t i = 0; i < n->n_fresh; i++) tide_host_free(n->fresh[i]);
    n->n_fresh = 0;
    n->n_scopes_written = n->n_scopes;
    n->n_devices_written = n->n_devices;
}

void tide__names_deinit(tide__names *n) {
    tide__names_written(n);
    tide_host_free(n->fresh);
    tide_strmap_deinit(&n->by_text);
    tide_host_free(n->scopes);
    tide_host_free(n->scope_slots);
    tide_host_free(n->devices);
    *n = (tide__names){0};
}
