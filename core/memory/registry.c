// SPDX-License-Identifier: MIT
//
// registry: which allocator serves (device, kind). See registry.h.
//
// Rows are few (devices times kinds), so a sorted array and a binary search are enough. The first rows live in the
// object itself: the registry of the process is static and takes no host memory as long as it stays small.
#include "core/memory/registry.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/memory/allocator_internal.h"

enum { INLINE_ROWS = 4 * TIDE_N_KINDS, INLINE_DEVICES = 8 };

/// What is known of a device whatever the kind.
typedef struct device_row {
    tide_device device;
    tide_allocator *allocator; ///< referenced; NULL: none was registered without a kind
    int priority;              ///< of `allocator`
    tide_stream_id stream;     ///< the current one
} device_row;

struct tide_registry {
    pthread_mutex_t lock;    ///< guards all below
    tide_registry_row *rows; ///< [n], sorted by device, then kind; `few` at first
    size_t n, cap;
    device_row *devices; ///< [n_devices], in order of arrival; `few_devices` at first
    size_t n_devices, cap_devices;
    tide_device default_device;
    tide_registry_row few[INLINE_ROWS];
    device_row few_devices[INLINE_DEVICES];
};

static void use_inline_arrays(tide_registry *r) {
    r->rows = r->few;
    r->cap = INLINE_ROWS;
    r->devices = r->few_devices;
    r->cap_devices = INLINE_DEVICES;
}

tide_status tide_registry_create(tide_registry **out, tide_error *err) {
    tide_registry *r;
    TIDE_TRY(TIDE_NEW(&r, 1, err, "for an allocator registry"));
    pthread_mutex_init(&r->lock, NULL);
    use_inline_arrays(r);
    *out = r;
    return TIDE_OK;
}

void tide_registry_destroy(tide_registry *r) {
    if (r == NULL) return;
    for (size_t i = 0; i < r->n; i++) tide_allocator_unref(r->rows[i].allocator);
    for (size_t i = 0; i < r->n_devices; i++) tide_allocator_unref(r->devices[i].allocator);
    if (r->rows != r->few) tide_host_free(r->rows);
    if (r->devices != r->few_devices) tide_host_free(r->devices);
    pthread_mutex_destroy(&r->lock);
    tide_host_free(r);
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

/// NULL when there is none.
static tide_registry_row *find_row(const tide_registry *r, tide_device device, tide_memory_kind kind) {
    const size_t i = lower_bound(r, device, kind);
    return i < r->n && row_order(&r->rows[i], device, kind) == 0 ? &r->rows[i] : NULL;
}

/// One row more can be put. False: no memory, nothing changed.
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

static bool is_in_order(const tide_registry *r, size_t i) {
    const tide_registry_row *row = &r->rows[i];
    return (i == 0 || row_order(row - 1, row->device, row->kind) < 0) &&
           (i + 1 == r->n || row_order(row + 1, row->device, row->kind) > 0);
}

/// There must be room.
static void put_row(tide_registry *r, const tide_registry_row *row, tide_allocator **dropped) {
    TIDE_ASSERT(r->n <= r->cap && row->allocator != NULL);
    const size_t i = lower_bound(r, row->device, row->kind);
    if (i < r->n && row_order(&r->rows[i], row->device, row->kind) == 0) {
        if (r->rows[i].priority > row->priority) return;
        *dropped = r->rows[i].allocator;
    } else {
        TIDE_ASSERT(r->n < r->cap);
        memmove(&r->rows[i + 1], &r->rows[i], (r->n - i) * sizeof r->rows[0]);
        r->n++;
    }
    r->rows[i] = *row;
    tide_allocator_ref(row->allocator);
    TIDE_ASSERT(is_in_order(r, i));
}

static void cut_row(tide_registry *r, tide_registry_row *row) {
    const size_t i = (size_t)(row - r->rows);
    TIDE_ASSERT(i < r->n);
    r->n--;
    memmove(row, row + 1, (r->n - i) * sizeof *row);
}

/// NULL when nothing is known of `device`.
static device_row *find_device(tide_registry *r, tide_device device) {
    for (size_t i = 0; i < r->n_devices; i++) {
        if (tide_device_equal(r->devices[i].device, device)) return &r->devices[i];
    }
    return NULL;
}

static bool make_room_for_device(tide_registry *r) {
    if (r->n_devices < r->cap_devices) return true;
    device_row *grown = tide_host_alloc(2 * r->cap_devices * sizeof *grown);
    if (grown == NULL) return false;
    memcpy(grown, r->devices, r->n_devices * sizeof *grown);
    if (r->devices != r->few_devices) tide_host_free(r->devices);
    r->devices = grown;
    r->cap_devices *= 2;
    return true;
}

/// Entry of `device`, made when it is not there; NULL: no memory.
static device_row *device_entry(tide_registry *r, tide_device device) {
    device_row *e = find_device(r, device);
    if (e != NULL) return e;
    if (!make_room_for_device(r)) return NULL;
    TIDE_ASSERT(r->n_devices < r->cap_devices);
    e = &r->devices[r->n_devices++];
    *e = (device_row){.device = device};
    return e;
}

/// Give `e` an allocator unless it has one of higher priority.
static void put_device(device_row *e, tide_allocator *a, int priority, tide_allocator **dropped) {
    if (e->allocator != NULL && e->priority > priority) return;
    *dropped = e->allocator;
    e->allocator = tide_allocator_ref(a);
    e->priority = priority;
}

// ---- the registry of the process ----

static tide_registry the_default = {.lock = PTHREAD_MUTEX_INITIALIZER};

static_assert((int)TIDE_N_KINDS <= (int)INLINE_ROWS, "the first rows of the process's registry need no memory");

static void fill_default(void) {
    use_inline_arrays(&the_default);
    tide_allocator *cpu = tide__cpu_allocator_shared(), *none = NULL;
    for (int kind = 0; kind < TIDE_N_KINDS; kind++) {
        const tide_registry_row row = {.device = TIDE_CPU, .kind = (tide_memory_kind)kind, .allocator = cpu};
        put_row(&the_default, &row, &none);
    }
    put_device(device_entry(&the_default, TIDE_CPU), cpu, 0, &none);
}

tide_registry *tide_registry_default(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill_default);
    return &the_default;
}

// ---- calls ----

static tide_status no_row(tide_device device, tide_memory_kind kind, tide_error *err) {
    char name[32];
    return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "no allocator is registered for kind %s on %s",
                     tide_memory_kind_name(kind), tide_device_format(device, name, sizeof name));
}

tide_status tide_registry_add(tide_registry *r, tide_memory_kind kind, tide_allocator *a, int priority,
                              tide_error *err) {
    const tide_registry_row row = {
        .device = tide_allocator_device(a), .kind = kind, .priority = priority, .allocator = a};
    TIDE_TRY(tide_memory_kind_check(kind, row.device, err));
    tide_allocator *dropped = NULL;
    pthread_mutex_lock(&r->lock);
    const bool good = find_row(r, row.device, kind) != NULL || make_room(r);
    if (good) put_row(r, &row, &dropped);
    pthread_mutex_unlock(&r->lock);
    tide_allocator_unref(dropped);
    if (!good) return TIDE_NO_MEMORY(err, "to register allocator '%s'", tide_allocator_name(a));
    return TIDE_OK;
}

static tide_status find(tide_registry *r, tide_device device, tide_memory_kind kind, bool ref, tide_allocator **out,
                        tide_error *err) {
    pthread_mutex_lock(&r->lock);
    const tide_registry_row *row = find_row(r, device, kind);
    tide_allocator *found = row != NULL ? row->allocator : NULL;
    if (found != NULL && ref) tide_allocator_ref(found);
    pthread_mutex_unlock(&r->lock);
    if (found == NULL) return no_row(device, kind, err);
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

/// Blocks of `a` that are held, and those that a stream may still use.
static tide_status require_idle(const tide_allocator *a, tide_memory_kind kind, tide_error *err) {
    tide_allocator_stats s;
    tide_allocator_get_stats(a, &s);
    const uint64_t n_out = s.n_allocs - s.n_frees;
    if (n_out == 0 && s.n_pending == 0) return TIDE_OK;
    char name[32];
    const tide_status st =
        TIDE_FAIL(err, TIDE_ERR_BUSY,
                  "allocator '%s' cannot leave kind %s on %s: it has %" PRIu64 " blocks out, %" PRIu64 " bytes",
                  tide_allocator_name(a), tide_memory_kind_name(kind),
                  tide_device_format(tide_allocator_device(a), name, sizeof name), n_out, s.requested_bytes);
    if (s.n_pending > 0)
        tide_error_note(err, "%" PRIu64 " blocks were released, but a stream may still use them", s.n_pending);
    return st;
}

static tide_status remove_row(tide_registry *r, tide_device device, tide_memory_kind kind, bool even_if_busy,
                              tide_allocator *dropped[2], tide_error *err) {
    tide_registry_row *row = find_row(r, device, kind);
    if (row == NULL) return no_row(device, kind, err);
    if (!even_if_busy) TIDE_TRY(require_idle(row->allocator, kind, err));
    dropped[0] = row->allocator;
    cut_row(r, row);
    device_row *e = find_device(r, device);
    if (kind == TIDE_KIND_DEFAULT && e != NULL && e->allocator == dropped[0]) {
        dropped[1] = e->allocator;
        e->allocator = NULL;
    }
    return TIDE_OK;
}

tide_status tide_registry_remove(tide_registry *r, tide_device device, tide_memory_kind kind, bool even_if_busy,
                                 tide_error *err) {
    tide_allocator *dropped[2] = {NULL, NULL};
    pthread_mutex_lock(&r->lock);
    const tide_status st = remove_row(r, device, kind, even_if_busy, dropped, err);
    pthread_mutex_unlock(&r->lock);
    for (int i = 0; i < 2; i++) tide_allocator_unref(dropped[i]);
    return st;
}

size_t tide_registry_rows(tide_registry *r, tide_registry_row *out, size_t n_max) {
    pthread_mutex_lock(&r->lock);
    const size_t n = r->n;
    for (size_t i = 0; i < n && i < n_max; i++) out[i] = r->rows[i];
    pthread_mutex_unlock(&r->lock);
    return n;
}

tide_status tide_registry_stats(tide_registry *r, tide_device device, tide_memory_kind kind, tide_allocator_stats *out,
                                tide_error *err) {
    tide_allocator *a = NULL;
    TIDE_TRY(tide_registry_acquire(r, device, kind, &a, err));
    tide_allocator_get_stats(a, out);
    tide_allocator_unref(a);
    return TIDE_OK;
}

// ---- devices ----
//
// What is known of a device whatever the kind: its allocator, its current stream, and which device is the default one
// (LT-19).
//
// There are few devices: a list in order of arrival, searched from its start. An entry is never taken out, so a stream
// that was set stays set when the allocator goes.

tide_status tide_registry_add_device(tide_registry *r, tide_allocator *a, int priority, tide_error *err) {
    const tide_registry_row row = {
        .device = tide_allocator_device(a), .kind = TIDE_KIND_DEFAULT, .priority = priority, .allocator = a};
    tide_allocator *dropped[2] = {NULL, NULL};
    pthread_mutex_lock(&r->lock);
    // Room for both first: either both places change or none.
    device_row *e = device_entry(r, row.device);
    const bool good = e != NULL && make_room(r);
    if (good) {
        put_device(e, a, priority, &dropped[0]);
        put_row(r, &row, &dropped[1]);
    }
    pthread_mutex_unlock(&r->lock);
    for (int i = 0; i < 2; i++) tide_allocator_unref(dropped[i]);
    if (!good) return TIDE_NO_MEMORY(err, "to register allocator '%s'", tide_allocator_name(a));
    return TIDE_OK;
}

tide_status tide_registry_acquire_device(tide_registry *r, tide_device device, tide_allocator **out, tide_error *err) {
    pthread_mutex_lock(&r->lock);
    const device_row *e = find_device(r, device);
    tide_allocator *found = e != NULL && e->allocator != NULL ? tide_allocator_ref(e->allocator) : NULL;
    pthread_mutex_unlock(&r->lock);
    if (found == NULL) {
        char name[32];
        return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "no allocator is registered for device %s",
                         tide_device_format(device, name, sizeof name));
    }
    *out = found;
    return TIDE_OK;
}

void tide_registry_set_default_device(tide_registry *r, tide_device device) {
    pthread_mutex_lock(&r->lock);
    r->default_device = device;
    pthread_mutex_unlock(&r->lock);
}

tide_device tide_registry_default_device(tide_registry *r) {
    pthread_mutex_lock(&r->lock);
    const tide_device device = r->default_device;
    pthread_mutex_unlock(&r->lock);
    return device;
}

tide_status tide_registry_set_current_stream(tide_registry *r, tide_device device, tide_stream_id stream,
                                             tide_error *err) {
    char name[32];
    if (stream == TIDE_STREAM_CURRENT)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "the current stream of %s cannot be 'the current one'",
                         tide_device_format(device, name, sizeof name));
    pthread_mutex_lock(&r->lock);
    device_row *e = device_entry(r, device);
    if (e != NULL) e->stream = stream;
    pthread_mutex_unlock(&r->lock);
    if (e == NULL)
        return TIDE_NO_MEMORY(err, "to note the current stream of %s", tide_device_format(device, name, sizeof name));
    return TIDE_OK;
}

tide_stream_id tide_registry_current_stream(tide_registry *r, tide_device device) {
    pthread_mutex_lock(&r->lock);
    const device_row *e = find_device(r, device);
    const tide_stream_id stream = e != NULL ? e->stream : 0;
    pthread_mutex_unlock(&r->lock);
    return stream;
}
