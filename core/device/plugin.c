// SPDX-License-Identifier: MIT
//
// Loading the module behind a type of device. See plugin.h.
#include "core/device/plugin.h"

#include <pthread.h>

#include "core/base/host_alloc.h"
#include "core/base/module.h"
#include "core/device/backend.h"

#ifndef TIDE_HAS_CUDA
#define TIDE_HAS_CUDA 0 // whether the build of this program made the module
#endif

static const tide_module cuda_module = {
    .file = "libtidemark-cuda.so", .variable = "TIDEMARK_CUDA_PLUGIN", .symbol = TIDE_DEVICE_PLUGIN_SYMBOL};

/// The one that is loaded; guarded by `loading`.
static struct {
    const tide_device_plugin *plugin; ///< NULL: none
    void *self;
    tide_device_type type;
} loaded;
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

static void log_line(tide_log_level level, const char *line) { tide_log(level, "%s", line); }

static const tide_device_plugin_host host = {.abi = TIDE_DEVICE_PLUGIN_ABI,
                                             .new_id = tide_device_new_id,
                                             .calloc = tide_host_calloc,
                                             .realloc = tide_host_realloc,
                                             .free = tide_host_free,
                                             .log = log_line};

/// A module that is not there has one reason more when this build made none.
static tide_status open_module(const tide_device_plugin **out, tide_error *err) {
    void *entry = NULL;
    const tide_status st = tide_module_open(&cuda_module, &entry, err);
    if (st == TIDE_ERR_NOT_FOUND && !TIDE_HAS_CUDA) {
        TIDE_FAIL(err, st, "built without CUDA: there is no %s", cuda_module.file);
        tide_error_hint(err, "build with the CUDA toolkit, 13.0 or later, and -DTIDE_CUDA=ON");
    }
    if (st != TIDE_OK) return st;
    tide_device_plugin_get get;
    *(void **)&get = entry;
    *out = get();
    if (*out != NULL && (*out)->abi == TIDE_DEVICE_PLUGIN_ABI) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_BACKEND, "%s is of another version of tidemark: its ABI is %u, the program's %d",
                     cuda_module.file, *out != NULL ? (unsigned)(*out)->abi : 0U, TIDE_DEVICE_PLUGIN_ABI);
}

static tide_status open_devices(const tide_device_plugin *plugin, tide_error *err) {
    const tide_device_ops *ops = NULL;
    void *self = NULL;
    TIDE_TRY(plugin->open(&host, &ops, &self, err));
    tide_device_type type;
    const tide_status st = tide_device_register(ops, self, &type, err);
    if (st != TIDE_OK) {
        plugin->close(self);
        return st;
    }
    loaded.plugin = plugin;
    loaded.self = self;
    loaded.type = type;
    return TIDE_OK;
}

static bool is_registered(tide_device_type type) {
    void *self;
    return tide_device_find((tide_device){type, 0}, &self) != NULL;
}

tide_status tide_device_load_type(tide_device_type type, tide_error *err) {
    if (type != TIDE_DEVICE_CUDA) return tide_device_require((tide_device){type, 0}, err);
    const tide_device_plugin *plugin = NULL;
    pthread_mutex_lock(&loading);
    tide_status st = TIDE_OK;
    if (!is_registered(type)) {
        st = open_module(&plugin, err);
        if (st == TIDE_OK) st = open_devices(plugin, err);
    }
    pthread_mutex_unlock(&loading);
    if (st == TIDE_OK || st == TIDE_ERR_NOMEM) return st;
    if (err != NULL) err->status = TIDE_ERR_NOT_IMPLEMENTED;
    return TIDE_ERR_NOT_IMPLEMENTED;
}

tide_status tide_device_load(tide_device device, tide_error *err) {
    if (device.type != TIDE_DEVICE_CUDA) return tide_device_require(device, err);
    const tide_status st = tide_device_load_type(device.type, err);
    if (st == TIDE_OK) return tide_device_require(device, err);
    char name[32];
    tide_error_prefix(err, "device %s is not available", tide_device_format(device, name, sizeof name));
    return st;
}

void tide_device_unload(void) {
    pthread_mutex_lock(&loading);
    if (loaded.plugin != NULL) {
        tide_device_unregister(loaded.type);
        loaded.plugin->close(loaded.self);
        loaded.plugin = NULL;
    }
    pthread_mutex_unlock(&loading);
}
