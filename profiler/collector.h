// SPDX-License-Identifier: MIT
//
// collector: the process that writes a trace for one or several others (tidemark collect, tidemark record). It shares a
// file with them and nothing else, so that whatever ends them leaves it whole.
#ifndef TIDE_PROFILER_COLLECTOR_H
#define TIDE_PROFILER_COLLECTOR_H

#include "tidemark/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Name of the environment variable through which processes find a running collector: the trace's absolute path.
#define TIDE_COLLECTOR_ENV "TIDEMARK_COLLECT"
/// How `tidemark record` hands its options for rings to the programs that it starts.
#define TIDE_RING_EVENTS_ENV "TIDEMARK_RING_EVENTS"
#define TIDE_ON_FULL_ENV "TIDEMARK_ON_FULL"
#define TIDE_MAX_WAIT_ENV "TIDEMARK_MAX_WAIT"
/// What it tells the library that records the malloc of any program (preload/).
#define TIDE_MALLOC_ENV "TIDEMARK_MALLOC"   ///< auto, on, off
#define TIDE_SELF_ENV "TIDEMARK_SELF"       ///< device:inode of the program tidemark, in hexadecimal digits
#define TIDE_STACKS_ENV "TIDEMARK_STACKS"   ///< calls of a call stack at most; not set: none are recorded
#define TIDE_TORCH_ENV "TIDEMARK_TORCH"     ///< modules, operators; not set: nothing of PyTorch's is named
#define TIDE_COMMAND_ENV "TIDEMARK_COMMAND" ///< process number of the command: while it lives the collector waits

/// Calls of a call stack that are recorded at most.
enum { TIDE_MAX_STACK_DEPTH = 64 };

typedef struct tide_collector_options {
    const char *path;
    /// Make the trace; false: it is there.
    bool create;
    /// The process that started this one and reads what is written to ready_fd; 0: none does. If it goes before it has
    /// a feed, that is the end.
    int parent;
    tide_record_form form;
    uint64_t max_bytes;
    size_t batch_events;
    unsigned hold_back_ms; ///< as in tide_recorder_options
    unsigned sample_ms;    ///< between two looks at what the system counts of each process; 0: none
    bool attached_late, quiet;
    /// One byte 1 is written there once feeds are taken, and it is closed; to a parent, if that cannot be, byte 2, the
    /// status as a byte, and message, place, note and hint, each with a zero behind it. -1: no process waits
    int ready_fd;
    /// Asked between rounds: no new process will come. NULL: true once a feed has been seen. The collector ends when
    /// this is true and all feeds have ended.
    bool (*is_over)(void *ctx);
    void *ctx;
} tide_collector_options;

/// Collect until all have ended, then finish the trace. Signals INT and TERM are held back: a Ctrl-C that ends the
/// recorded program must not end the collector before it. @return what ended the recording early, TIDE_OK otherwise
tide_status tide_collect(const tide_collector_options *opt, tide_error *err) TIDE_NODISCARD;

/// The recorder is closed next because the process ends: what it never freed ends with it. Without that a program that
/// closes its recorder may live on, and nothing is known of its memory.
void tide__recorder_process_ends(tide_recorder *r);

#ifdef __cplusplus
}
#endif
#endif
