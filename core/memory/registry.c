// SPDX-License-Identifier: MIT
//
// registry: which allocator serves (device, kind). See registry.h.
//
// Rows are few (devices times kinds), so a sorted array and a binary search are enough. The first rows live in the
// object itself: the registry of the process is static and takes no host memory as long as it stays small.
#include "core/memory/registry.h"

#include <pthread.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/memory/allocator_internal.h"

enum { INLINE_ROWS = 4 * TIDE_N_KINDS };

struct tide_registry {
    pthread_mutex_t lock;
    tide_registry_row *rows; ///< [n], sorted by device, then kind; `few` at first
    size_t n, cap;
    tide_registry_row few[INLINE_ROWS];
};

tide_status tide_registry_create(tide_registry **out, tide_error *err) {
    tide_registry *r = tide_host_calloc(1, sizeof *r);
    if (r == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for an allocator registry");
    pthread_mutex_init(&r->lock, NULL);
    r->rows = r->few;
    r->cap = INLINE_ROWS;
    *out = r;
    return TIDE_OK;
}

void tide_registry_destroy(tide_registry *r) {
    if (r == NULL) return;
    for (size_t i = 0; i < r->n; i++) tide_allocator_unref(r->rows[i].allocator);
    if (r->rows != r->few) tide_host_free(r->rows);
    pthread_mutex_destroy(&r->lock);
    tide_host_free(r);
}

// ---- the registry of the process ----

static tide_registry the_default = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void fill_default(void) {
    the_default.rows = the_default.few;
    the_default.cap = INLINE_ROWS;
    tide_allocator *cpu = tide__cpu_allocator_shared();
    for (int kind = 0; kind < TIDE_N_KINDS; kind++) {
        the_default.few[the_default.n++] = (tide_registry_row){
            .device = TIDE_CPU, .kind = (tide_memory_kind)kind, .allocator = tide_allocator_ref(cpu)};
    }
}

tide_registry *tide_registry_default(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    return pthread_once(&once, fill_default) == 0 ? &the_default : NULL;
}

// ---- rows; the caller holds the lock ----

static int row_order(const tide_registry_row *row, tide_device device, tide_memory_kind kind) {
    if (row->device.type != device.type) return row->device.type < device.type ? -1 : 1;
    if (row->device.index != device.index) return row->device.index < device.index ? -1 : 1;
    if (row->kind != kind) return row->kind < kind ? -1 : 1;
    return 0;
}

/// Index of the first row that is not before (device, kind).
static size_t lower_bound(const tide_registry *r, tide_device device, tide_memory_kind kind) {
    size_t lo = 0, hi = r->n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (row_order(&r->rows[mid], device, kind) < 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

static bool make_room(tide_registry *r) {
    if (r->n < r->cap) return true;
    tide_registry_row *grown = tide_host_alloc(2 * r->cap * sizeof *grown);
    if (grown == NULL) return false;
    memcpy(grown, r->rows, r->n * sizeof *grown);
    if (r->rows != r->few) tide_host_free(r->rows);
    r->rows = grown;
    r->cap *= 2;
    return true;
}

/// @param dropped  out: the allocator that lost its row; its reference now belongs to the caller
static bool put_row(tide_registry *r, const tide_registry_row *row, tide_allocator **dropped) {
    const size_t i = lower_bound(r, row->device, row->kind);
    if (i < r->n && row_order(&r->rows[i], row->device, row->kind) == 0) {
        if (r->rows[i].priority > row->priority) return true;
        *dropped = r->rows[i].allocator;
    } else {
        if (!make_room(r)) return false;
        memmove(&r->rows[i + 1], &r->rows[i], (r->n - i) * sizeof r->rows[0]);
        r->n++;
    }
    r->rows[i] = *row;
    tide_allocator_ref(row->allocator);
    return true;
}

// ---- calls ----

tide_status tide_registry_add(tide_registry *r, tide_memory_kind kind, tide_allocator *a, int priority,
                              tide_error *err) {
    const tide_registry_row row = {
        .device = tide_allocator_device(a), .kind = kind, .priority = priority, .allocator = a};
    TIDE_TRY(tide_memory_kind_check(kind, row.device, err));
    tide_allocator *dropped = NULL;
    pthread_mutex_lock(&r->lock);
    const bool good = put_row(r, &row, &dropped);
    pthread_mutex_unlock(&r->lock);
    // Outside the lock: dropping may destroy the allocator, and that may take other locks.
    tide_allocator_unref(dropped);
    if (!good) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to register allocator '%s'", tide_allocator_name(a));
    return TIDE_OK;
}

static tide_status find(tide_registry *r, tide_device device, tide_memory_kind kind, bool ref, tide_allocator **out,
                        tide_error *err) {
    tide_allocator *found = NULL;
    pthread_mutex_lock(&r->lock);
    const size_t i = lower_bound(r, device, kind);
    if (i < r->n && row_order(&r->rows[i], device, kind) == 0) found = r->rows[i].allocator;
    if (found != NULL && ref) tide_allocator_ref(found);
    pthread_mutex_unlock(&r->lock);
    if (found == NULL) {
        char name[16];
        return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "no allocator is registered for kind %s on %s",
                         tide_memory_kind_name(kind), tide_device_format(device, name, sizeof name));
    }
    *out = found;
    return TIDE_OK;
}

tide_status tide_registry_get(tide_registry *r, tide_device device, tide_memory_kind kind, tide_allocator **out,
                              tide_error *err) {
    return find(r, device, kind, false, out, err);
}

tide_status tide_registry_acquire(tide_registry *r, tide_device device, tide_memory_kind kind, tide_allocator **out,
                                  tide_error *err) {
    return find(r, device, kind, true, out, err);
}

size_t tide_registry_rows(tide_registry *r, tide_registry_row *out, size_t n_max) {
    pthread_mutex_lock(&r->lock);
    const size_t n = r->n;
    for (size_t i = 0; i < n && i < n_max; i++) out[i] = r->rows[i];
    pthread_mutex_unlock(&r->lock);
    return n;
}
