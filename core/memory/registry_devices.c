// SPDX-License-Identifier: MIT
//
// registry, the part that knows devices and not kinds: the allocator of a device, its current stream, and which device
// is the default one (LT-19). See registry.h.
//
// Devices are a handful: a list in order of arrival, searched from its start. An entry is never taken out, so a stream
// that was set stays set when the allocator goes.
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/memory/registry_internal.h"

tide__device_entry *tide__registry_find_device(tide_registry *r, tide_device device) {
    for (size_t i = 0; i < r->n_devices; i++) {
        if (tide_device_equal(r->devices[i].device, device)) return &r->devices[i];
    }
    return NULL;
}

static bool make_room_for_device(tide_registry *r) {
    if (r->n_devices < r->cap_devices) return true;
    tide__device_entry *grown = tide_host_alloc(2 * r->cap_devices * sizeof *grown);
    if (grown == NULL) return false;
    memcpy(grown, r->devices, r->n_devices * sizeof *grown);
    if (r->devices != r->few_devices) tide_host_free(r->devices);
    r->devices = grown;
    r->cap_devices *= 2;
    return true;
}

tide__device_entry *tide__registry_device(tide_registry *r, tide_device device) {
    tide__device_entry *e = tide__registry_find_device(r, device);
    if (e != NULL) return e;
    if (!make_room_for_device(r)) return NULL;
    e = &r->devices[r->n_devices++];
    *e = (tide__device_entry){.device = device};
    return e;
}

void tide__registry_put_device(tide__device_entry *e, tide_allocator *a, int priority, tide_allocator **dropped) {
    if (e->allocator != NULL && e->priority > priority) return;
    *dropped = e->allocator;
    e->allocator = tide_allocator_ref(a);
    e->priority = priority;
}

tide_status tide_registry_add_device(tide_registry *r, tide_allocator *a, int priority, tide_error *err) {
    const tide_registry_row row = {
        .device = tide_allocator_device(a), .kind = TIDE_KIND_DEFAULT, .priority = priority, .allocator = a};
    tide_allocator *dropped[2] = {NULL, NULL};
    pthread_mutex_lock(&r->lock);
    // Room for both first: either both places change or none.
    tide__device_entry *e = tide__registry_device(r, row.device);
    const bool good = e != NULL && tide__registry_make_room(r);
    if (good) {
        tide__registry_put_device(e, a, priority, &dropped[0]);
        tide__registry_put_row(r, &row, &dropped[1]);
    }
    pthread_mutex_unlock(&r->lock);
    for (int i = 0; i < 2; i++) tide_allocator_unref(dropped[i]);
    if (!good) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to register allocator '%s'", tide_allocator_name(a));
    return TIDE_OK;
}

tide_status tide_registry_acquire_device(tide_registry *r, tide_device device, tide_allocator **out, tide_error *err) {
    pthread_mutex_lock(&r->lock);
    const tide__device_entry *e = tide__registry_find_device(r, device);
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
    tide__device_entry *e = tide__registry_device(r, device);
    if (e != NULL) e->stream = stream;
    pthread_mutex_unlock(&r->lock);
    if (e == NULL)
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to note the current stream of %s",
                         tide_device_format(device, name, sizeof name));
    return TIDE_OK;
}

tide_stream_id tide_registry_current_stream(tide_registry *r, tide_device device) {
    pthread_mutex_lock(&r->lock);
    const tide__device_entry *e = tide__registry_find_device(r, device);
    const tide_stream_id stream = e != NULL ? e->stream : 0;
    pthread_mutex_unlock(&r->lock);
    return stream;
}
