// SPDX-License-Identifier: MIT
//
// replay: the blocks of a trace, asked for again of a real allocator, in the order of the trace. See cmd_replay.c.
//
//     trace --> cli_replay_each --> what was recorded (cli_replay_recorded)
//                     |
//                     +-----------> one allocator, event by event (cli_replay_run): alloc -> tide_allocator_alloc,
//                                   free_completed -> tide_allocator_release
//
// A block is held from its alloc to its free_completed, as it was live in the trace; what its owner had given up
// (free_requested) and a stream still used is held too. The contents of the program's blocks are in no trace: memory is
// not touched, unless it is filled with a pattern and checked.
#ifndef TIDE_CLI_REPLAY_H
#define TIDE_CLI_REPLAY_H

#include "cli/cli.h"
#include "profiler/moments.h"
#include "tidemark/plan.h"
#include "tidemark/record.h"

// ---- the trace ----

typedef struct cli_replay_source {
    tide_trace *trace;
    const char *path;
    int64_t run_id;        ///< 0: the whole trace
    uint32_t kinds;        ///< bit k: blocks of tide_memory_kind k alone; 0: all
    const char *of_device; ///< blocks on it alone; NULL: on all
    uint64_t first_event, last_event;
    uint64_t begin_ns;       ///< of the trace: moments count from there
    uint64_t n_dropped;      ///< events that are gone, of the whole trace
    bool is_unfinished;      ///< it is being recorded, or was cut short
    uint32_t n_processes;    ///< in the whole trace
    uint64_t n_planned_runs; ///< of those that are replayed: each holds one buffer, whose tensors are no blocks
    uint64_t plan_bytes;     ///< of the largest such buffer
    char model[64];          ///< of the run, or of the first one; "" none
    char settings[512];      ///< of the allocator pytorch in the recorded program; "" none
} cli_replay_source;
/// Finds what there is; trace, path, run_id, kinds and of_device are set. TIDE_ERR_NOT_FOUND for a run that is not
/// there.
tide_status cli_replay_source_open(cli_replay_source *s, tide_error *err) TIDE_NODISCARD;
/// The kind of that name; false: there is none.
bool cli_replay_kind_of(const char *name, tide_memory_kind *out);

/// What the trace says of blocks that are alive: numbers from 0 on, of those that have ended used again.
#define CLI_REPLAY_NO_SLOT SIZE_MAX
/**
 * @param op    TIDE_MEM_ALLOC; TIDE_MEM_FREE_COMPLETED, also for each block that a pool_discard or the end of its
 *              process ends; a segment's, also where the latter gives it back;
 *              TIDE_MEM_OOM
 * @param slot  of the block; CLI_REPLAY_NO_SLOT: of a block that is alive already, or not alive, or of no block
 */
typedef tide_status (*cli_replay_fn)(void *ctx, tide_memory_op op, const tide_trace_event *e, size_t slot,
                                     tide_error *err);
/// First an alloc for each block that is alive when it begins, then every event of a block, a segment or a request that
/// failed. Memory: a few thousand events, and 64 bytes for each block that is alive.
tide_status cli_replay_each(const cli_replay_source *s, cli_replay_fn fn, void *ctx, tide_error *err) TIDE_NODISCARD;
/// Which events of a trace are what a memory snapshot of PyTorch begins with: the segments and blocks of each device
/// that were there before, all at the first moment of their process. Zero-initialise.
typedef struct cli_replay_before {
    struct cli_replay_begin {
        uint32_t process;
        const char *device;      ///< text of the trace
        uint64_t begin_ns;       ///< of the process
        bool is_over, has_block; ///< all segments come before the first block
    } * items;                   ///< [n], owned
    size_t n, cap, latest;
} cli_replay_before;
/// *out: whether the next event is part of it. In the order of the trace, each event once. TIDE_ERR_NOMEM
tide_status cli_replay_is_before(cli_replay_before *b, tide_memory_op op, const tide_trace_event *e, bool *out,
                                 tide_error *err) TIDE_NODISCARD;
void cli_replay_before_deinit(cli_replay_before *b);
/// Whether it is of PyTorch's allocator, or of a private pool of that.
bool cli_replay_is_pytorch(const tide_trace_event *e);

/// Sums at a moment.
typedef struct cli_replay_moment {
    uint64_t event, since_begin_ns;
    uint64_t requested_bytes, active_bytes, reserved_bytes; ///< reserved: TIDE_UNKNOWN_BYTES: not known
} cli_replay_moment;

/// What the program that was recorded did.
typedef struct cli_replay_recorded {
    uint64_t n_allocs, n_frees;
    uint64_t n_live_at_begin;        ///< part of n_allocs
    uint64_t n_leaked, leaked_bytes; ///< alive at the end
    uint64_t n_left, left_bytes;     ///< ended with their process, and were never freed
    uint64_t n_unknown_frees;        ///< of blocks that are not alive
    uint64_t n_twice;                ///< allocations of a block that is alive
    uint64_t n_empty;                ///< blocks of 0 bytes
    uint64_t n_failed;               ///< requests that failed
    uint64_t n_segments;             ///< taken from the system
    uint64_t largest_bytes;          ///< block
    uint64_t active_peak_bytes, reserved_peak_bytes;
    cli_replay_moment peak;        ///< first moment of the most requested bytes
    uint64_t worst_idle_bytes;     ///< of reserved - active, when a block was given
    uint64_t worst_rounding_bytes; ///< of active - requested, the same
    uint64_t end_reserved_bytes;   ///< after the last event
} cli_replay_recorded;
tide_status cli_replay_count(const cli_replay_source *s, cli_replay_recorded *out, tide_error *err) TIDE_NODISCARD;
/// The same in a pass of another's: open, one event after the other, close. TIDE_ERR_NOMEM
typedef struct cli_replay_counting cli_replay_counting;
tide_status cli_replay_counting_open(const cli_replay_source *s, cli_replay_recorded *out, cli_replay_counting **c,
                                     tide_error *err) TIDE_NODISCARD;
tide_status cli_replay_counting_event(cli_replay_counting *c, tide_memory_op op, const tide_trace_event *e, size_t slot,
                                      tide_error *err) TIDE_NODISCARD;
/// Takes NULL. With it *out is whole.
void cli_replay_counting_close(cli_replay_counting *c);

// ---- times ----

/// A histogram of nanoseconds: 64 steps for each doubling, so a value is at most 1.6 % below the true one.
typedef struct cli_replay_times {
    uint64_t counts[59][64];
    uint64_t n;
} cli_replay_times;
void cli_replay_times_add(cli_replay_times *t, uint64_t ns);
/// The value that `share` of all are at most; UINT64_MAX of none.
uint64_t cli_replay_times_at(const cli_replay_times *t, double share);

// ---- contents ----

/// Fills blocks with a pattern of their own and counts bytes that differ later.
typedef struct cli_replay_pattern {
    tide_device device;
    uint64_t *n_wrong; ///< page-locked memory of a device; NULL on the CPU
} cli_replay_pattern;
/// TIDE_ERR_NOT_IMPLEMENTED for a device that cannot.
tide_status cli_replay_pattern_open(tide_device device, cli_replay_pattern *out, tide_error *err) TIDE_NODISCARD;
void cli_replay_pattern_close(cli_replay_pattern *p);
tide_status cli_replay_pattern_fill(const cli_replay_pattern *p, tide_stream_id stream, void *data, size_t size_bytes,
                                    uint64_t seed, tide_error *err) TIDE_NODISCARD;
/// Waits for the stream. *n_wrong: bytes.
tide_status cli_replay_pattern_check(const cli_replay_pattern *p, tide_stream_id stream, const void *data,
                                     size_t size_bytes, uint64_t seed, uint64_t *n_wrong,
                                     tide_error *err) TIDE_NODISCARD;

// ---- one allocator ----

/// A request that was not met.
typedef struct cli_replay_failure {
    uint64_t event, since_begin_ns, asked_bytes;
    uint64_t requested_bytes, active_bytes, reserved_bytes; ///< held then
    char name[64];
    char why[512]; ///< the allocator's words
} cli_replay_failure;

/// A moment at which an allocator of a replay had not reserved what the recorded one had.
typedef struct cli_replay_apart {
    uint64_t event, recorded_bytes, replayed_bytes;
} cli_replay_apart;
/// A replay beside what was recorded: with the allocator pytorch, or as_recorded.
typedef struct cli_replay_like {
    uint64_t n_adopted, adopted_bytes; ///< segments that it began with
    uint64_t n_emptied;                ///< times that it gave back what it kept, as the recorded program did
    uint64_t n_moments, n_apart;       ///< compared; of these not the same. 0: not compared
    cli_replay_apart first, worst;     ///< with n_apart > 0
} cli_replay_like;

typedef struct cli_replay_result {
    char allocator[128]; ///< as it was named
    uint64_t active_peak_bytes, reserved_peak_bytes;
    cli_replay_moment peak; ///< first moment of the most requested bytes
    uint64_t worst_idle_bytes, worst_rounding_bytes;
    uint64_t n_allocs, n_frees, n_system, n_hits;
    uint64_t n_failed;
    cli_replay_failure failure;                                            ///< the first
    uint64_t alloc_median_ns, alloc_p99_ns, free_median_ns, free_p99_ns;   ///< UINT64_MAX: there was none
    uint64_t end_active_bytes, end_reserved_bytes, end_largest_free_bytes; ///< after the last event
    uint64_t n_leaked, leaked_bytes;                                       ///< alive then, freed behind it
    uint64_t n_streams;                                                    ///< that were made on the device
    uint64_t n_checked;                                                    ///< blocks
    uint64_t wrong_bytes;                                                  ///< TIDE_UNKNOWN_BYTES: not checked
    uint64_t n_wrong_blocks;
    cli_replay_failure wrong; ///< the first block with wrong bytes
    cli_replay_like like;
    int64_t out_run; ///< in the trace that the replay was recorded into; 0: none
} cli_replay_result;

typedef struct cli_replay_options {
    tide_device device;
    bool check;
    uint64_t limit_bytes;       ///< that may be reserved; 0: all there is
    tide_recorder *recorder;    ///< records the replay; NULL: none
    cli_replay_recorded *count; ///< counted in the same pass; NULL: not
    tide_error *record_error;   ///< with a recorder: the first error of recording, which does not end the replay
} cli_replay_options;
/// Those that a trace is replayed with when none is named: `max` at most into `names`, static texts. @return how many
size_t cli_replay_default_allocators(tide_device device, const char **names, size_t max);
/// Replays all of `s` with `a` (borrowed), which nothing else uses. What the allocator refuses is counted; any other
/// error ends it.
tide_status cli_replay_run(const cli_replay_source *s, const cli_replay_options *o, const char *name, tide_allocator *a,
                           cli_replay_result *out, tide_error *err) TIDE_NODISCARD;
/// The same with allocators of that name, made for it: "pytorch" has the settings of the recorded program, and
/// CLI_REPLAY_AS_RECORDED are those that the trace names. What tide_allocator_create_on returns.
tide_status cli_replay_with(const cli_replay_source *s, const cli_replay_options *o, const char *name,
                            cli_replay_result *out, tide_error *err) TIDE_NODISCARD;
#define CLI_REPLAY_AS_RECORDED "as_recorded"

// ---- a plan of the same blocks ----

enum { CLI_REPLAY_PLAN_ALIGN_BYTES = 512 }; ///< of each block, as in caching allocators of devices

typedef struct cli_replay_plan {
    char strategy[48];
    char name[56]; ///< in tables: "plan: search"
    uint64_t n_blocks;
    uint64_t bytes;                           ///< that the plan needs
    uint64_t lower_bound_bytes, proved_bytes; ///< as in tide_memory_plan
    bool proven;
    uint64_t time_ns;
} cli_replay_plan;
/// Plans the blocks of `s` as lifetimes. What tide_plan_make returns.
tide_status cli_replay_plan_make(const cli_replay_source *s, const tide_strategy *strategy, cli_replay_plan *out,
                                 tide_error *err) TIDE_NODISCARD;

/// The same blocks as a list: each with its name and number, kind, device and the bytes that were asked for, aligned to
/// `align_bytes`, or with 0 as allocators do: to 16 on the CPU and to 512 on devices; a step for each block that is
/// given. `out` is overwritten. TIDE_ERR_NOMEM, and what reading a trace returns.
tide_status cli_replay_lifetimes(const cli_replay_source *s, uint64_t align_bytes, tide_lifetimes *out,
                                 tide_error *err) TIDE_NODISCARD;
/// The same in parts of some thousands, the first ones first, so that the whole is never held: 40 bytes for each block.
/// All of them come twice, `pass` 0 and 1. A part is borrowed for the call; its steps are those of the whole.
typedef tide_status (*cli_replay_part_fn)(void *ctx, int pass, const tide_lifetimes *part, tide_error *err);
tide_status cli_replay_lifetimes_in_parts(const cli_replay_source *s, uint64_t align_bytes, cli_replay_part_fn take,
                                          void *ctx, tide_error *err) TIDE_NODISCARD;

/// What reading the clock twice takes: part of every time.
uint64_t cli_replay_clock_ns(void);

#endif
