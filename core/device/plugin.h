// SPDX-License-Identifier: MIT
//
// plugin: types of devices that lie in a module of their own and are loaded when they are asked for. What program and
// module agree on, and loading one.
//
//     program                                     module (cuda/device/plugin.c)
//     tide_device_load("cuda")
//        opens the file (core/base/module.h)
//        tidemark_device_plugin()           ->    its tide_device_plugin; the program checks its ABI
//        plugin->open(&host, …)             ->    checks the host's ABI, looks for a driver and devices
//        tide_device_register(ops, self)    <-    a table of devices
//
// A module links the sources of core/base that it needs once more. What must be one in the process (ids of streams and
// events, tidemark's own memory, the log) it takes from the host's table.
#ifndef TIDE_CORE_DEVICE_PLUGIN_H
#define TIDE_CORE_DEVICE_PLUGIN_H

#include "core/base/log.h"
#include "core/device/device_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Of the two tables below. The table of devices (TIDE_DEVICE_ABI) is checked when it is registered.
enum { TIDE_DEVICE_PLUGIN_ABI = 1 };
#define TIDE_DEVICE_PLUGIN_SYMBOL "tidemark_device_plugin"

/// What the program gives to a module. Borrowed for as long as the process lives.
typedef struct tide_device_plugin_host {
    uint32_t abi;             ///< TIDE_DEVICE_PLUGIN_ABI; stays first
    uint64_t (*new_id)(void); ///< tide_device_new_id
    void *(*calloc)(size_t n, size_t size_bytes);
    void *(*realloc)(void *ptr, size_t size_bytes);
    void (*free)(void *ptr);
    void (*log)(tide_log_level level, const char *line);
} tide_device_plugin_host;

/// What a module gives to the program.
typedef struct tide_device_plugin {
    uint32_t abi; ///< TIDE_DEVICE_PLUGIN_ABI; stays first
    /// Find the driver and its devices: `ops` and `self` are as tide_device_register takes them, until close(self).
    /// @return TIDE_ERR_NOT_IMPLEMENTED with what is missing: a driver, its version, a device
    tide_status (*open)(const tide_device_plugin_host *host, const tide_device_ops **ops, void **self, tide_error *err);
    /// Give everything back. No thread uses a device any more.
    void (*close)(void *self);
} tide_device_plugin;

/// The type of TIDE_DEVICE_PLUGIN_SYMBOL.
typedef const tide_device_plugin *(*tide_device_plugin_get)(void);

/**
 * Make `device` usable: TIDE_OK when it is already, or a module for its type could be loaded and has it. The CPU and
 * registered types need none. To be called where a person names a device; tide_device_require never loads anything.
 *
 * @return TIDE_OK; TIDE_ERR_NOT_IMPLEMENTED: not available, with the reason; TIDE_ERR_INVALID: there is no such number
 */
tide_status tide_device_load(tide_device device, tide_error *err) TIDE_NODISCARD;
/// Why the devices of a type cannot be used, without a word about a single device: TIDE_OK when they can.
tide_status tide_device_load_type(tide_device_type type, tide_error *err) TIDE_NODISCARD;
/// Unregister what was loaded and give it back to its driver. No thread uses such a device any more. For tests, and for
/// programs that go on without.
void tide_device_unload(void);

#ifdef __cplusplus
}
#endif
#endif
