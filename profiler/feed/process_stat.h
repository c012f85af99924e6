// SPDX-License-Identifier: MIT
//
// What /proc and the environment say of a process. For those who make or read feeds.
#ifndef TIDE_PROFILER_FEED_PROCESS_STAT_H
#define TIDE_PROFILER_FEED_PROCESS_STAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// State (field 3: 'R', 'S', 'Z' ...) and time of start (field 22, in clock ticks since boot) out of /proc/PID/stat.
/// False: no such process, or no /proc.
bool tide__process_stat(const char *path, char *state, uint64_t *start_ticks);

/// Page faults of the process so far, out of the text of /proc/PID/stat: without (field 10) and with (12) a read from
/// the disk. False: that is no such text.
bool tide__process_faults(const char *text, int64_t *minor, int64_t *major);

enum { TIDE__MAX_COMMAND = 4096 }; ///< bytes of a command line that are kept, its zero included
/// Of this process, its words apart by blanks; "": not known. Allocates nothing.
void tide__process_command(char text[TIDE__MAX_COMMAND]);
/// The rank of this process, as a launcher (Open MPI, MPICH, PMIx, Slurm, torchrun) told it; -1: none.
int32_t tide__process_rank(void);

#endif
