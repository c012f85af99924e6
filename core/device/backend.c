// SPDX-License-Identifier: MIT
//
// The table of device types. A type keeps its place (its number) and its name for the life of the process: a
// tide_device that is still held somewhere can lose its backend, but never mean another one.
#include "core/device/backend.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "core/device/device_internal.h"

/// Readers come on every call and take no lock: `ops` is written last when a type comes and first when it goes.
typedef struct device_slot {
    const tide_device_ops *_Atomic ops; ///< NULL: not registered
    void *_Atomic self;
    char name[TIDE__DEVICE_NAME_CHARS + 1]; ///< written once, before `named`
    atomic_bool named;
} device_slot;

static device_slot slots[TIDE_MAX_DEVICE_TYPES] = {
    [TIDE_DEVICE_CPU] = {.ops = &tide__cpu_device_ops, .name = "cpu", .named = true},
    [TIDE_DEVICE_CUDA] = {.name = "cuda", .named = true},
};
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;

static device_slot *slot_of(tide_device_type type) {
    return (unsigned)type < TIDE_MAX_DEVICE_TYPES ? &slots[type] : NULL;
}

const tide_device_ops *tide_device_find(tide_device device, void **self) {
    device_slot *slot = slot_of(device.type);
    const tide_device_ops *ops = slot != NULL ? atomic_load(&slot->ops) : NULL;
    if (ops != NULL) *self = atomic_load(&slot->self);
    return ops;
}

const char *tide__device_type_name(tide_device_type type) {
    const device_slot *slot = slot_of(type);
    return slot != NULL && atomic_load(&slot->named) ? slot->name : NULL;
}

/// The place that carries this name, in use or not; NULL when none does.
static device_slot *slot_named(const char *text, size_t n) {
    for (size_t i = 0; i < TIDE_MAX_DEVICE_TYPES; i++) {
        const bool same =
            atomic_load(&slots[i].named) && strlen(slots[i].name) == n && memcmp(slots[i].name, text, n) == 0;
        if (same) return &slots[i];
    }
    return NULL;
}

bool tide__device_type_named(const char *text, size_t n, tide_device_type *out) {
    const device_slot *slot = slot_named(text, n);
    if (slot == NULL) return false;
    const tide_device_type type = (tide_device_type)(slot - slots);
    if (type >= TIDE_DEVICE_FIRST_EXTRA && atomic_load(&slot->ops) == NULL) return false;
    *out = type;
    return true;
}

size_t tide_device_list(tide_device *out, size_t n_max) {
    size_t n = 0;
    for (int t = 0; t < TIDE_MAX_DEVICE_TYPES; t++) {
        void *self;
        const tide_device_ops *ops = tide_device_find((tide_device){(tide_device_type)t, 0}, &self);
        const int32_t count = ops != NULL ? ops->count(self) : 0;
        for (int32_t i = 0; i < count; i++, n++) {
            if (n < n_max) out[n] = (tide_device){(tide_device_type)t, i};
        }
    }
    return n;
}

// Registration.

/// The first entry that must be there and is not; NULL when all are.
static const char *missing_entry(const tide_device_ops *ops) {
#define NEED(entry)                                                                                                    \
    if (ops->entry == NULL) return #entry
    NEED(count);
    NEED(mem_alloc);
    NEED(mem_free);
    NEED(copy);
    NEED(fill);
    NEED(call);
    NEED(stream_create);
    NEED(stream_destroy);
    NEED(stream_sync);
    NEED(stream_wait_event);
    NEED(event_create);
    NEED(event_destroy);
    NEED(event_record);
    NEED(event_query);
    NEED(event_sync);
    if (ops->pinned_alloc != NULL || ops->pinned_free != NULL) {
        NEED(pinned_alloc);
        NEED(pinned_free);
    }
    if (ops->capture_begin != NULL || ops->capture_end != NULL || ops->capture_launch != NULL ||
        ops->capture_destroy != NULL) {
        NEED(capture_begin);
        NEED(capture_end);
        NEED(capture_launch);
        NEED(capture_destroy);
    }
    if (ops->pool_alloc != NULL || ops->pool_free != NULL || ops->pool_keep != NULL || ops->pool_trim != NULL ||
        ops->pool_stats != NULL) {
        NEED(pool_alloc);
        NEED(pool_free);
        NEED(pool_keep);
        NEED(pool_trim);
        NEED(pool_stats);
    }
    if (ops->vm_reserve != NULL || ops->vm_release != NULL || ops->vm_map != NULL || ops->vm_unmap != NULL) {
        NEED(facts); // says in which steps
        NEED(vm_reserve);
        NEED(vm_release);
        NEED(vm_map);
        NEED(vm_unmap);
    }
    if (ops->pattern_fill != NULL || ops->pattern_check != NULL) {
        NEED(pattern_fill);
        NEED(pattern_check);
    }
#undef NEED
    return NULL;
}

static tide_status check_name(const char *name, tide_error *err) {
    if (name == NULL || name[0] == '\0') return TIDE_FAIL(err, TIDE_ERR_INVALID, "a device type needs a name");
    const size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz");
    if (name[n] != '\0') {
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "'%s' cannot name a device type: lower case letters only", name);
    }
    if (n > TIDE__DEVICE_NAME_CHARS) {
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "'%s' cannot name a device type: %zu letters, %d are the most", name, n,
                         TIDE__DEVICE_NAME_CHARS);
    }
    return TIDE_OK;
}

static tide_status check_ops(const tide_device_ops *ops, tide_error *err) {
    if (ops->abi != TIDE_DEVICE_ABI) {
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "a device table of ABI %u was registered, this is ABI %d",
                         (unsigned)ops->abi, TIDE_DEVICE_ABI);
    }
    TIDE_TRY(check_name(ops->name, err));
    const char *missing = missing_entry(ops);
    if (missing == NULL) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_INVALID, "the table of device type '%s' has no %s", ops->name, missing);
}

/// The place for `name`: the one it had before, else the first that never had a name.
static device_slot *place_for(const char *name) {
    device_slot *slot = slot_named(name, strlen(name));
    for (size_t i = TIDE_DEVICE_FIRST_EXTRA; slot == NULL && i < TIDE_MAX_DEVICE_TYPES; i++) {
        if (!atomic_load(&slots[i].named)) slot = &slots[i];
    }
    return slot;
}

static tide_status place(const tide_device_ops *ops, void *self, tide_device_type *type, tide_error *err) {
    device_slot *slot = place_for(ops->name);
    if (slot == NULL) {
        return TIDE_FAIL(err, TIDE_ERR_NO_SPACE, "device type '%s' has no place: all %d are taken", ops->name,
                         TIDE_MAX_DEVICE_TYPES);
    }
    if (atomic_load(&slot->ops) != NULL) {
        return TIDE_FAIL(err, TIDE_ERR_EXISTS, "device type '%s' is registered already", ops->name);
    }
    if (!atomic_load(&slot->named)) {
        memcpy(slot->name, ops->name, strlen(ops->name) + 1);
        atomic_store(&slot->named, true);
    }
    atomic_store(&slot->self, self);
    atomic_store(&slot->ops, ops);
    *type = (tide_device_type)(slot - slots);
    return TIDE_OK;
}

tide_status tide_device_register(const tide_device_ops *ops, void *self, tide_device_type *type, tide_error *err) {
    TIDE_TRY(check_ops(ops, err));
    pthread_mutex_lock(&writing);
    const tide_status st = place(ops, self, type, err);
    pthread_mutex_unlock(&writing);
    return st;
}

void tide_device_unregister(tide_device_type type) {
    device_slot *slot = slot_of(type);
    if (slot == NULL || type == TIDE_DEVICE_CPU) return;
    pthread_mutex_lock(&writing);
    atomic_store(&slot->ops, NULL);
    atomic_store(&slot->self, NULL);
    pthread_mutex_unlock(&writing);
}
