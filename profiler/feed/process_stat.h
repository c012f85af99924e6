// SPDX-License-Identifier: MIT
//
// What /proc says of a process. Private to profiler/feed/.
#ifndef TIDE_PROFILER_FEED_PROCESS_STAT_H
#define TIDE_PROFILER_FEED_PROCESS_STAT_H

#include <stdbool.h>
#include <stdint.h>

/// State (field 3: 'R', 'S', 'Z' ...) and time of start (field 22, in clock ticks since boot) out of /proc/PID/stat.
/// False: no such process, or no /proc.
bool tide__process_stat(const char *path, char *state, uint64_t *start_ticks);

#endif
