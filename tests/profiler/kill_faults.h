// SPDX-License-Identifier: MIT
//
// kill faults: what a disk may do to a recorder. Linked into a program, it stands between the program (SQLite too) and
// the system's calls that write to files, and lets them fail from some byte on.
//
//     KILL_FAULT=WHICH:ERRNO:BYTES     WHICH: part of the file's path, e.g. "trace.db-wal", "feed", or "" for all below
//     KILL_FAULT=WHICH:SLOW:NS         nothing fails, but each write takes so many ns more: what lies between two
//     writes
//                                      (a COMMIT) lasts long enough to be hit
//     KILL_FAULT_DIR=DIR               files elsewhere are let through
//     KILL_FAULT_LATCH=FILE            once this file exists the fault is there from the first byte on: a disk that is
//                                      full stays full for every process; made when the fault begins
#ifndef TIDE_TESTS_KILL_FAULTS_H
#define TIDE_TESTS_KILL_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

/// How many calls were made to fail.
uint64_t kill_faults_seen(void);

#endif
