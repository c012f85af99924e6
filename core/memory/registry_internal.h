// SPDX-License-Identifier: MIT
//
// The registry object, for registry.c (rows of device and kind) and registry_devices.c (what is known per device).
#ifndef TIDE_CORE_MEMORY_REGISTRY_INTERNAL_H
#define TIDE_CORE_MEMORY_REGISTRY_INTERNAL_H

#include <pthread.h>

#include "core/memory/registry.h"

enum { TIDE__INLINE_ROWS = 4 * TIDE_N_KINDS, TIDE__INLINE_DEVICES = 8 };

/// What is known of a device whatever the kind.
typedef struct tide__device_entry {
    tide_device device;
    tide_allocator *allocator; ///< referenced; NULL: nobody registered without a kind
    int priority;              ///< of `allocator`
    tide_stream_id stream;     ///< the current one
} tide__device_entry;

struct tide_registry {
    pthread_mutex_t lock;    ///< guards all below
    tide_registry_row *rows; ///< [n], sorted by device, then kind; `few` at first
    size_t n, cap;
    tide__device_entry *devices; ///< [n_devices], in order of arrival; `few_devices` at first
    size_t n_devices, cap_devices;
    tide_device default_device;
    tide_registry_row few[TIDE__INLINE_ROWS];
    tide__device_entry few_devices[TIDE__INLINE_DEVICES];
};

// The caller holds the lock. References of allocators that lose their place go to *dropped, for the caller to unref
// when the lock is free: dropping may destroy the allocator, and that may take other locks.

/// Entry of `device`, made when it is not there; NULL: no memory.
tide__device_entry *tide__registry_device(tide_registry *r, tide_device device);
/// NULL when nothing is known of `device`.
tide__device_entry *tide__registry_find_device(tide_registry *r, tide_device device);
/// Give `e` an allocator unless it has one of higher priority.
void tide__registry_put_device(tide__device_entry *e, tide_allocator *a, int priority, tide_allocator **dropped);
/// One row more can be put. False: no memory, nothing changed.
bool tide__registry_make_room(tide_registry *r);
/// There must be room.
void tide__registry_put_row(tide_registry *r, const tide_registry_row *row, tide_allocator **dropped);

#endif
