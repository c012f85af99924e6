// SPDX-License-Identifier: MIT
//
// plugin: starting and stopping the recorder, for its two uses: the table for tidemark's own process (plugin.c) and
// injection into a foreign one (inject.c). By one thread at a time.
#ifndef TIDE_CUDA_CUPTI_PLUGIN_H
#define TIDE_CUDA_CUPTI_PLUGIN_H

#include "core/device/cupti_plugin.h"

/// As tide_cupti_plugin.start.
tide_status tide__cupti_start(const tide_observer *observer, const tide_cupti_host *host,
                              tide_error *err) TIDE_NODISCARD;
bool tide__cupti_is_started(void);
/// Flush and parse for the last time; the callbacks go on. At most four seconds, then it is noted that it hung.
void tide__cupti_last_round(void);
/// Nothing is recorded after this. `unsubscribes`: tell CUPTI, and forget everything, so that it can be started again;
/// not at the end of a process, when the driver may be gone already.
void tide__cupti_stop(tide_cupti_counts *counts, bool unsubscribes);
void tide__cupti_count(tide_cupti_counts *counts);

#endif
