// SPDX-License-Identifier: MIT
//
// sim_device: a simulated device, "sim": addresses without memory. What is asked of it are ranges of numbers that
// nothing else has; there is no byte behind them, so 58 GB of a recorded GPU cost as much as one. Its streams do
// nothing, and so are always done. For replays of what another machine has recorded.
#ifndef TIDE_CORE_DEVICE_SIM_DEVICE_H
#define TIDE_CORE_DEVICE_SIM_DEVICE_H

#include "core/device/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The simulated device, of which there is one. It becomes a type of device at the first call, not before. What
/// tide_device_register returns.
tide_status tide_sim_device_open(tide_device *out, tide_error *err) TIDE_NODISCARD;
bool tide_sim_device_is(tide_device device);
/// tide_device_parse, for commands that take "sim" too: that opens it.
tide_status tide_sim_device_parse(const char *text, tide_device *out, tide_error *err) TIDE_NODISCARD;
/// So much memory it has from now on; 0: as much as is asked for.
void tide_sim_device_set_bytes(uint64_t total_bytes);
/// Its memory; 0: as much as is asked for.
uint64_t tide_sim_device_bytes(void);
/// A range at just this place, as if mem_alloc had given it: an address of a recorded program (below 2^48), or one of
/// its other devices moved above 2^62, where mem_alloc gives none. TIDE_ERR_INVALID for other places and for a range
/// that begins where another one does; TIDE_ERR_NOMEM.
tide_status tide_sim_device_take_at(void *address, size_t size_bytes, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
