// SPDX-License-Identifier: MIT
//
// replay_servers: the allocators that one replay asks. Most replays ask one for everything. Those that are held against
// what was recorded ask as many as the recorded program had:
//
//     --allocator cpu          every block            --> one
//     --allocator pytorch…     a block of PyTorch     --> one for each process, device and private pool
//     --allocator as_recorded  any block              --> one for each process, device, name and kind of the trace
//
// and begin with the segments that PyTorch had before, empty a cache when the recorded program did, and compare what is
// reserved behind each block that was given or freed. Private to cli/replay*.c.
#ifndef TIDE_CLI_REPLAY_SERVERS_H
#define TIDE_CLI_REPLAY_SERVERS_H

#include "cli/replay.h"
#include "core/base/map.h"

/// Streams of the trace, and those of the device in their place: of each process its own.
typedef struct cli_replay_streams {
    tide_device device;
    tide_map rows; ///< begin as TIDE_MAP(cli_replay_stream)
    uint64_t n_made;
} cli_replay_streams;
typedef struct cli_replay_stream {
    uint64_t key; ///< first; of both below
    uint64_t recorded;
    uint64_t process;
    tide_stream_id here;
} cli_replay_stream;
/// The default stream stays the default stream. What tide_stream_create returns.
tide_status cli_replay_stream_of(cli_replay_streams *s, uint32_t process, uint64_t recorded, tide_stream_id *out,
                                 tide_error *err) TIDE_NODISCARD;
void cli_replay_streams_deinit(cli_replay_streams *s);

typedef struct cli_replay_server {
    uint32_t process;
    const char *device, *allocator, *kind; ///< texts of the trace; NULL: serves them all
    tide_allocator *a;                     ///< that is asked; owned
    tide_allocator *inner;                 ///< itself, where `a` is one around it, or else the same; owned
    uint64_t shift;                        ///< of recorded addresses: several devices have the same
    bool adopts;                           ///< begins with what was there before
    bool is_emptying;                      ///< the event before gave a segment back
    bool tells_segments;                   ///< the recorded one: what it reserves is known, or else what blocks hold
    uint64_t recorded_segments, recorded_blocks;
    tide_allocator_stats stats; ///< behind the last event
} cli_replay_server;

typedef struct cli_replay_servers {
    const cli_replay_source *source;
    const char *name;            ///< as the user gave it
    tide_device device;          ///< that blocks are asked on
    cli_replay_streams *streams; ///< borrowed
    tide_observer observer;      ///< hears them all; on_memory NULL: none does
    cli_replay_like *like;       ///< what the comparison found
    enum { CLI_REPLAY_ONE, CLI_REPLAY_PYTORCH, CLI_REPLAY_EACH } by;
    cli_replay_server *items; ///< [n], owned
    size_t n, cap, latest;
    struct cli_replay_was *was; ///< [n_was] segments of before, by server and address; owned
    size_t n_was, cap_was;
    tide_allocator_stats sum; ///< of all, behind the last event
} cli_replay_servers;

/// @param given  the one that is asked for everything (borrowed); NULL: made by `name`. source, name, device, observer
/// and like are set
tide_status cli_replay_servers_open(cli_replay_servers *s, tide_allocator *given, tide_error *err) TIDE_NODISCARD;
void cli_replay_servers_deinit(cli_replay_servers *s);

/// Index of the one that serves the event's block, made where it is the first. What tide_allocator_create_on returns.
tide_status cli_replay_server_of(cli_replay_servers *s, const tide_trace_event *e, size_t *out,
                                 tide_error *err) TIDE_NODISCARD;
/// A block of before is asked for next: where it lay.
void cli_replay_server_place(const cli_replay_server *server, const tide_trace_event *e);
/// What is asked for beside the bytes. 0: the allocator's own
size_t cli_replay_server_align(const cli_replay_servers *s, const tide_trace_event *e, tide_memory_kind kind);
/// The numbers of server `i` have changed: `sum` follows.
void cli_replay_servers_update(cli_replay_servers *s, size_t i);
/// All give back what they keep.
void cli_replay_servers_trim(cli_replay_servers *s);
/// A segment of the recorded program came or went.
tide_status cli_replay_servers_segment(cli_replay_servers *s, tide_memory_op op, const tide_trace_event *e,
                                       tide_error *err) TIDE_NODISCARD;
/// A block was given or freed, by server `i`. @param held  bytes of it in the recorded program
void cli_replay_servers_compare(cli_replay_servers *s, size_t i, tide_memory_op op, const tide_trace_event *e,
                                uint64_t held, bool is_before);

#endif
