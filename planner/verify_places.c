// SPDX-License-Identifier: MIT
//
// verifier, places: the buffers, and each tensor's own place in its buffer. What two tensors do to each other is asked
// elsewhere.
#include <inttypes.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "planner/verify_internal.h"

// ---- buffers ----

static int compare_keys(tide_device a, tide_memory_kind a_kind, tide_device b, tide_memory_kind b_kind) {
    if (a.type != b.type) return a.type < b.type ? -1 : 1;
    if (a.index != b.index) return a.index < b.index ? -1 : 1;
    return (a_kind > b_kind) - (a_kind < b_kind);
}

static tide_status check_order(tide_verify_check *c, size_t b) {
    const tide_plan_buffer *x = &c->plan->buffers[b - 1], *y = &c->plan->buffers[b];
    const int order = compare_keys(x->device, x->kind, y->device, y->kind);
    if (order < 0) return TIDE_OK;
    return TIDE_FAULT(c, BUFFER, TIDE_VERIFY_NOBODY, TIDE_VERIFY_NOBODY, "buffers %zu and %zu are %s", b - 1, b,
                      order == 0 ? "of the same device and kind" : "not in order of device and kind");
}

static uint32_t find_buffer(const tide_verify_check *c, const tide_lifetime *item) {
    size_t lo = 0, hi = c->plan->n_buffers;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        const tide_plan_buffer *b = &c->plan->buffers[mid];
        const int order = compare_keys(b->device, b->kind, item->device, item->kind);
        if (order == 0) return (uint32_t)mid;
        if (order < 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return TIDE_VERIFY_NO_BUFFER;
}

/// c->ends counts classes here, so that a buffer for nobody is seen.
static tide_status assign_buffers(tide_verify_check *c) {
    for (size_t i = 0; i < c->n; i++) {
        c->buffers[i] = c->items[i].persistent ? TIDE_VERIFY_NO_BUFFER : find_buffer(c, &c->items[i]);
        if (c->n_alive[i] == 0) continue;
        if (c->buffers[i] == TIDE_VERIFY_NO_BUFFER)
            return TIDE_FAULT(c, BUFFER, i, TIDE_VERIFY_NOBODY,
                              "there is no buffer for tensor '%s' of kind %s on device %d:%d", c->items[i].name,
                              tide_memory_kind_name(c->items[i].kind), (int)c->items[i].device.type,
                              c->items[i].device.index);
        c->ends[c->buffers[i]]++;
    }
    for (size_t b = 0; b < c->plan->n_buffers; b++) {
        if (c->ends[b] == 0)
            return TIDE_FAULT(c, BUFFER, TIDE_VERIFY_NOBODY, TIDE_VERIFY_NOBODY, "no tensor lies in buffer %zu", b);
        c->ends[b] = 0;
    }
    return TIDE_OK;
}

tide_status tide__verify_buffers(tide_verify_check *c) {
    const size_t n = c->plan->n_buffers;
    c->buffers = tide_host_calloc(c->n, sizeof *c->buffers);
    c->bases = tide_host_calloc(n, sizeof *c->bases);
    c->ends = tide_host_calloc(n, sizeof *c->ends);
    if (c->buffers == NULL || c->bases == NULL || c->ends == NULL)
        return TIDE_FAIL(c->err, TIDE_ERR_NOMEM, "no memory to verify %zu tensors", c->n);
    uint64_t at = 0;
    for (size_t b = 0; b < n; b++) {
        if (b > 0) TIDE_TRY(check_order(c, b));
        c->bases[b] = at;
        if (!tide_add_u64(at, c->plan->buffers[b].bytes, &at))
            return TIDE_FAULT(c, BUFFER, TIDE_VERIFY_NOBODY, TIDE_VERIFY_NOBODY, "%zu buffers pass 2^64 bytes", b + 1);
    }
    if (at != c->plan->bytes)
        return TIDE_FAULT(c, BUFFER, TIDE_VERIFY_NOBODY, TIDE_VERIFY_NOBODY,
                          "the plan says %" PRIu64 " bytes, its %zu buffers together have %" PRIu64, c->plan->bytes, n,
                          at);
    return assign_buffers(c);
}

// ---- each tensor's place ----

static tide_status check_persistent(tide_verify_check *c, size_t i) {
    const uint64_t offset = c->plan->offsets[i];
    if (offset == TIDE_NO_OFFSET && c->plan->pools[i] == TIDE_NO_POOL) return TIDE_OK;
    return TIDE_FAULT(c, PERSISTENT, i, TIDE_VERIFY_NOBODY,
                      "persistent tensor '%s' was given offset %" PRIu64 ", pool %" PRId32, c->items[i].name, offset,
                      c->plan->pools[i]);
}

static tide_status check_alias_place(tide_verify_check *c, size_t i) {
    const tide_lifetime *a = &c->items[i];
    uint64_t want;
    if (!tide_add_u64(c->plan->offsets[a->alias_of], a->alias_offset_bytes, &want) || c->plan->offsets[i] != want)
        return TIDE_FAULT(c, ALIAS, i, a->alias_of,
                          "tensor '%s' lies at %" PRIu64 ", not %" PRIu64 " bytes into '%s' at %" PRIu64, a->name,
                          c->plan->offsets[i], a->alias_offset_bytes, c->items[a->alias_of].name,
                          c->plan->offsets[a->alias_of]);
    if (c->plan->pools[i] != TIDE_NO_POOL)
        return TIDE_FAULT(c, ALIAS, i, a->alias_of, "tensor '%s' names pool %" PRId32 " and lies inside '%s'", a->name,
                          c->plan->pools[i], c->items[a->alias_of].name);
    return TIDE_OK;
}

/// A tensor without bytes, or with none at any step, may lie anywhere up to the end, and where it is fixed anywhere.
static tide_status check_bounds(tide_verify_check *c, size_t i) {
    const uint32_t b = c->buffers[i];
    const uint64_t offset = c->plan->offsets[i], bytes = c->n_alive[i] > 0 ? tide__verify_bytes_of(c, i) : 0,
                   room = b != TIDE_VERIFY_NO_BUFFER ? c->plan->buffers[b].bytes : 0;
    uint64_t end;
    if (c->n_alive[i] == 0 && c->items[i].fixed) return TIDE_OK;
    if (!tide_add_u64(offset, bytes, &end) || end > room)
        return TIDE_FAULT(c, OUT_OF_BUFFER, i, TIDE_VERIFY_NOBODY,
                          "tensor '%s' of %" PRIu64 " bytes at %" PRIu64 " ends outside its buffer of %" PRIu64,
                          c->items[i].name, bytes, offset, room);
    if (bytes > 0 && end > c->ends[b]) c->ends[b] = end;
    return TIDE_OK;
}

static tide_status check_pool_entry(tide_verify_check *c, size_t i) {
    const int32_t pool = c->plan->pools[i];
    const char *name = c->items[i].name;
    if (c->plan->form == TIDE_PLAN_OFFSETS) {
        if (pool == TIDE_NO_POOL) return TIDE_OK;
        return TIDE_FAULT(c, POOL_SIZE, i, TIDE_VERIFY_NOBODY,
                          "tensor '%s' names pool %" PRId32 " of a plan without pools", name, pool);
    }
    if (pool == TIDE_NO_POOL && c->n_alive[i] == 0) return TIDE_OK;
    if (pool < 0 || (size_t)pool >= c->plan->n_pools)
        return TIDE_FAULT(c, MISSING, i, TIDE_VERIFY_NOBODY, "tensor '%s' has pool %" PRId32 ", the plan has %zu", name,
                          pool, c->plan->n_pools);
    const tide_plan_pool *p = &c->plan->pool_list[pool];
    if (c->plan->offsets[i] != p->offset_bytes)
        return TIDE_FAULT(c, POOL_SIZE, i, TIDE_VERIFY_NOBODY,
                          "tensor '%s' lies at %" PRIu64 ", its pool %" PRId32 " begins at %" PRIu64, name,
                          c->plan->offsets[i], pool, p->offset_bytes);
    if (p->buffer != c->buffers[i])
        return TIDE_FAULT(c, BUFFER, i, TIDE_VERIFY_NOBODY,
                          "tensor '%s' belongs to buffer %" PRIu32 ", its pool %" PRId32 " to buffer %" PRIu32, name,
                          c->buffers[i], pool, p->buffer);
    return TIDE_OK;
}

static tide_status check_root_place(tide_verify_check *c, size_t i) {
    const tide_lifetime *item = &c->items[i];
    const uint64_t offset = c->plan->offsets[i];
    if (item->fixed && offset != item->fixed_offset_bytes)
        return TIDE_FAULT(c, FIXED, i, TIDE_VERIFY_NOBODY, "tensor '%s' lies at %" PRIu64 ", it was fixed at %" PRIu64,
                          item->name, offset, item->fixed_offset_bytes);
    if (offset % item->align_bytes != 0)
        return TIDE_FAULT(c, MISALIGNED, i, TIDE_VERIFY_NOBODY,
                          "tensor '%s' lies at %" PRIu64 ", which is no multiple of %" PRIu64, item->name, offset,
                          item->align_bytes);
    TIDE_TRY(check_bounds(c, i));
    return check_pool_entry(c, i);
}

static tide_status check_entry(tide_verify_check *c, size_t i) {
    if (c->items[i].persistent) return check_persistent(c, i);
    if (c->plan->offsets[i] != TIDE_NO_OFFSET) return TIDE_OK;
    return TIDE_FAULT(c, MISSING, i, TIDE_VERIFY_NOBODY, "tensor '%s' has no offset", c->items[i].name);
}

/// Roots before aliases: where a target is at fault itself, it is named, not what lies in it.
tide_status tide__verify_places(tide_verify_check *c) {
    for (size_t i = 0; i < c->n; i++) TIDE_TRY(check_entry(c, i));
    for (size_t i = 0; i < c->n; i++) {
        if (!c->items[i].persistent && !tide__verify_is_alias(c, i)) TIDE_TRY(check_root_place(c, i));
    }
    for (size_t i = 0; i < c->n; i++) {
        if (tide__verify_is_alias(c, i)) TIDE_TRY(check_alias_place(c, i));
    }
    return TIDE_OK;
}
