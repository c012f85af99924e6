// SPDX-License-Identifier: MIT
//
// format: what a feed file holds. A feed is how events leave a recorded process: a mapped file beside the trace, so
// that its content can be read also when the process is killed the next moment.
//
//     header (1 MiB)    who records, state, table of chunks; a hole where the table is empty
//     chunk 0           log: the command; texts, scopes, devices, allocators in order of first use, each with its small
//                       number; runs with their plans and facts as the program tells them; frames of call stacks
//     chunk 1           ring of the first thread that recorded: header (16 KiB), then n_slots slots of 64 bytes
//     chunk 2, 3, ...   further rings, further chunks of the log, more room for a ring
//
// The file grows by whole chunks, each allocated on disk before it is used: a full disk refuses a chunk and never
// kills a write to memory. Chunks are found through the header's table only; n_chunks is stored last.
//
// A ring begins small. Where it is full and its producer may have more, it goes on in a chunk four times as large, and
// never comes back to what it had before: what waits there is read there. Positions count on.
//
//     chunk 1   | ring header | slots of positions 0 ... 99, 64 at a time |
//     chunk 7                          | slots of positions 100 ..., 256 at a time |     begin 100
//
// Order of a producer: names into the log, log size, slot, sequence of the slot, head of the ring. Order of a reader:
// heads, then log size, then names, then slots: every number in a slot is known then.
//
// The recorded process writes nothing but its feed, and reads in it what the drain answers: its state, its error, how
// far it has come. Only who drains writes the trace.
//
// One writer per ring, one writer per field unless said. A reader trusts nothing here: sizes and offsets are checked
// against the file, numbers against what the log defined. Private to profiler/.
#ifndef TIDE_PROFILER_FEED_FORMAT_H
#define TIDE_PROFILER_FEED_FORMAT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "core/memory/kind.h"
#include "profiler/clock.h"

#define TIDE__FEED_MAGIC                                                                                               \
    UINT64_C(0x6465656665646974) // "tidefeed", little-endian: a feed of another byte order is foreign

enum {
    TIDE__FEED_VERSION = 3,
    TIDE__FEED_HEADER_BYTES = 1 << 20,
    TIDE__FEED_MAX_CHUNKS = 32640,
    TIDE__FEED_FIXED_BYTES = 4096, ///< of the header, that hold all but the table
    TIDE__FEED_MAX_DEVICES = 32,
    TIDE__FEED_MAX_ALLOCATORS = 255,
    TIDE__FEED_MAX_KINDS = 15,       ///< what four bits hold beside "none"; the same in builds with more kinds
    TIDE__FEED_MAX_TEXT = 1 << 24,   ///< bytes of a name
    TIDE__FEED_MAX_FRAMES = 1 << 20, ///< of call stacks
    TIDE__FEED_MAX_RECORD = 1 << 30, ///< bytes of a run with its plan
    TIDE__FEED_LOG_BYTES = 1 << 18,  ///< of a chunk of the log, header included; larger when one record needs it
    TIDE__FEED_MIN_SLOTS = 64,
    TIDE__FEED_MAX_SLOTS = 1 << 24,
    TIDE__FEED_DEFAULT_SLOTS = 1 << 16, ///< 4 MiB for a thread that needs them
    TIDE__RING_GROWTH = 4,              ///< a ring begins with TIDE__FEED_MIN_SLOTS
    TIDE__RING_HEADER_BYTES = 16384,
};

typedef enum tide__chunk_kind {
    TIDE__CHUNK_LOG = 1,
    TIDE__CHUNK_RING = 2,
    TIDE__CHUNK_MORE = 3, ///< slots and nothing else, as many as there is room for
} tide__chunk_kind;
typedef struct tide__chunk_entry {
    uint64_t offset, bytes; ///< multiples of 4096
    uint32_t kind;
    uint32_t ring;  ///< whose room it is: 0, 1, ... in the order of the table
    uint64_t begin; ///< first position that is there
} tide__chunk_entry;

/// State of the recorded process.
typedef enum tide__feed_state {
    TIDE__FEED_OPEN = 1,   ///< or the process was killed: see who holds the lock
    TIDE__FEED_CLOSED = 2, ///< no event follows; stored after the last one
} tide__feed_state;
/// What the recorded process says of its own end before it comes.
typedef enum tide__feed_ending {
    TIDE__FEED_GOES_ON = 0,
    TIDE__FEED_ENDS = 1,        ///< as it wishes to
    TIDE__FEED_IS_REPLACED = 2, ///< by another program, in the same process (exec); taken back where that fails
} tide__feed_ending;
/// State of the drain.
typedef enum tide__feed_drain {
    TIDE__DRAIN_NONE = 0,
    TIDE__DRAIN_RUNNING = 1,
    TIDE__DRAIN_FAILED = 2, ///< nothing is taken any more, `error` says why: producers go quiet and only count
    TIDE__DRAIN_DONE = 3,   ///< all is in the trace, and the trace is finished
} tide__feed_drain;

/// Locks of the file (open file description locks, so that they go with the process however it ends).
enum {
    TIDE__FEED_LOCK_PRODUCER = 0,
    TIDE__FEED_LOCK_DRAIN = 1,
    TIDE__FEED_LOCK_CHILD = 2, ///< shared: forked children that may make feeds of their own; the drain waits for them
};                             ///< offsets of the byte that is locked

typedef struct tide__feed_header {
    uint64_t magic;
    uint32_t version, header_bytes, slot_bytes, max_chunks;
    uint32_t pid;
    int32_t rank;           ///< -1: none
    int64_t begin_ns;       ///< when it began to record; with the feed's name and pid what tells it from all others
    int64_t wall_ns;        ///< the same moment, ns since 1970
    uint64_t start_ticks;   ///< of the process, /proc/PID/stat field 22: a later process of the same pid is another one
    uint64_t pid_namespace; ///< inode of /proc/self/ns/pid, 0: not known; in another one the pid says nothing
    char boot_id[TIDE__BOOT_ID_BYTES]; ///< /proc/sys/kernel/random/boot_id: another boot has another clock
    uint32_t has_ticks;                ///< slots without TIDE__SLOT_NS hold ticks
    uint32_t ring_slots;
    tide__tick_pair first[2]; ///< when the feed was made
    tide__tick_pair
        last[2]; ///< the drain's last two, for a drain that takes over; both written before last_n is odd->even
    _Atomic uint32_t last_n; ///< a sequence lock: even is quiet
    _Atomic uint32_t state;  ///< tide__feed_state
    _Atomic uint32_t drain;  ///< tide__feed_drain
    _Atomic uint32_t drain_pid;
    _Atomic uint32_t n_chunks;
    uint32_t by_address;           ///< not 0: its allocs and frees have no block, see tide__by_address
    uint32_t is_late;              ///< not 0: blocks that it frees may have been made before
    _Atomic uint32_t ending;       ///< tide__feed_ending; events may follow to its very end
    _Atomic int64_t ending_ns;     ///< when it said so, CLOCK_MONOTONIC; stored before
    _Atomic int64_t process_id;    ///< of the drain: row of table process; 0: it has none yet
    _Atomic uint64_t n_registered; ///< of the drain: runs and facts that are in the trace, stored after COMMIT
    uint64_t n_heard, n_dropped; ///< events that the process counted, stored before CLOSED; dropped ones are among them
    uint32_t has_no_memory;      ///< of the drain, stored before FAILED: not 0: it ran out of memory
    char error[512];             ///< the same: why
    _Atomic uint64_t n_stacks_lost; ///< events without their call stack: there was no room for it
    _Atomic uint64_t n_stacks_cut;  ///< events with an incomplete one: no caller was found further out
    tide__chunk_entry chunks[TIDE__FEED_MAX_CHUNKS];
} tide__feed_header;
_Static_assert(sizeof(tide__feed_header) <= TIDE__FEED_HEADER_BYTES, "the first chunk follows");
_Static_assert(offsetof(tide__feed_header, chunks) <= TIDE__FEED_FIXED_BYTES, "the table begins in the first page");

/// First 64 bytes of a chunk of the log.
typedef struct tide__log_header {
    _Atomic uint64_t used_bytes; ///< behind this header; records never span chunks
    uint64_t zero[7];
} tide__log_header;

typedef enum tide__log_type {
    TIDE__LOG_TEXT = 1,      ///< id; the payload is the text, without a zero byte
    TIDE__LOG_SCOPE = 2,     ///< id; payload tide__log_scope
    TIDE__LOG_DEVICE = 3,    ///< id; payload tide__log_device
    TIDE__LOG_ALLOCATOR = 4, ///< id; payload: uint32_t text id
    TIDE__LOG_THREAD = 5,    ///< id: number of the thread; payload: its name, may be empty
    TIDE__LOG_COMMAND = 6,   ///< the first record of a feed; payload: the command line
    TIDE__LOG_RUN = 7,       ///< id: number of the run in its process; payload: registration.h
    TIDE__LOG_FACT = 8,      ///< id; payload: registration.h
    TIDE__LOG_MODULE = 9,    ///< id; payload: "BUILDID PATH" of a file that calls lie in, "-" where it has no build id
    TIDE__LOG_FRAME = 10,    ///< id; payload tide__log_frame: of a feed by address
    TIDE__LOG_TYPES
} tide__log_type;
/// Ids of each type count 1, 2, ... but for threads.
typedef struct tide__log_record {
    uint32_t bytes; ///< of the record with this head, a multiple of 8
    uint32_t type;
    uint32_t id;
    uint32_t payload_bytes;
} tide__log_record;
typedef struct tide__log_scope {
    uint32_t text_id, parent_id; ///< parent 0: outermost; a parent is defined before
    int32_t kind, step;          ///< tide_scope_kind; step -1: none
} tide__log_scope;
/// A call in a call stack.
typedef struct tide__log_frame {
    uint32_t parent_id; ///< who called; 0: it is the outermost. Defined before
    uint32_t module_id; ///< the file it lies in; 0: none. Defined before
    uint64_t address;   ///< as that file has it, in the instruction that called; without a file TIDE__FRAME_...
} tide__log_frame;
/// What stands in place of a call.
enum {
    TIDE__FRAME_UNKNOWN = 0, ///< a call that lies in no file: made while the program ran
    TIDE__FRAME_DEEPER = 1,  ///< more calls than were asked for
    TIDE__FRAME_CUT = 2,     ///< calls that were not found
};
typedef struct tide__log_device {
    int32_t type, index; ///< of tide_device
} tide__log_device;

/// What a slot says that is no event of the file.
enum {
    TIDE__SLOT_THREAD = 200,    ///< block_id: number of the thread whose events follow in this ring
    TIDE__SLOT_RUN_BEGIN = 201, ///< block_id: number of the run in its process
    TIDE__SLOT_RUN_END = 202,   ///< block_id: the same
};
enum {
    TIDE__SLOT_NS = 1,    ///< flag: `time` is in ns, not ticks
    TIDE__SLOT_GIVEN = 2, ///< flag: and it was given by the caller: such events may come late
};
enum { TIDE__SLOT_NO_KIND = 15, TIDE__SLOT_FLAG_SHIFT = 4 }; ///< of kind_flags

/// A feed by address is that of a program which frees addresses (preload/): an alloc or a free in it has block 0, and
/// the drain finds the block (drain_address.h). Field `stream` of such a slot says what it is about, in its low 32
/// bits, and the frame that asked for it in the high ones (0: not known); field `scope` is a scope, as in any feed. The
/// free of a block is put in before the block can be another thread's, its alloc after it was.
typedef enum tide__by_address {
    TIDE__BY_ADDRESS_BLOCK = 0,
    TIDE__BY_ADDRESS_MAY_COME_BACK = 1, ///< a free that may be taken back: of realloc
    TIDE__BY_ADDRESS_COMES_BACK = 2,    ///< an alloc: the block of the ring's last such free is there again
    TIDE__BY_ADDRESS_RANGE = 3,         ///< a range of pages comes; or whatever of it there is goes
    TIDE__BY_ADDRESS_RANGE_BACK = 4,    ///< what the ring's last free of a range ended is there again
    TIDE__BY_ADDRESS_RANGE_MOVED = 5,   ///< a range comes, if the ring's last free of a range ended any
} tide__by_address;
enum { TIDE__FRAME_SHIFT = 32 };       ///< of the frame in field `stream`
#define TIDE__BY_ADDRESS_RANGES "mmap" ///< allocator of ranges

typedef struct tide__slot {
    uint64_t time;
    uint64_t block_id;
    uint64_t requested_bytes, reserved_bytes;
    uint64_t address, stream;
    uint32_t tag, scope;       ///< numbers of the log; 0: none
    uint8_t op;                ///< tide_memory_op, TIDE__OP_..., TIDE__SLOT_...
    uint8_t kind_flags;        ///< kind in the low four bits (15: none), flags above
    uint8_t device;            ///< number of the log; 0: none
    uint8_t allocator;         ///< number of the log; 0: none
    _Atomic uint32_t sequence; ///< low 32 bits of (position + 1), stored last
} tide__slot;
_Static_assert(sizeof(tide__slot) == 64, "a slot is a cache line");

/// What a thread did to one (device, kind), by the events it counted, dropped ones too: what the file must hold.
typedef struct tide__ring_total {
    _Atomic uint64_t n_allocs, n_frees; ///< frees by free_completed
    _Atomic uint64_t requested_bytes, freed_bytes;
} tide__ring_total;

typedef struct tide__ring_header {
    // the producer's line
    _Atomic uint64_t head; ///< next position to write; stored after the slot's sequence
    uint64_t pad0[7];
    // the reader's line
    _Atomic uint64_t tail; ///< next position that is not yet in the trace, stored after COMMIT
    uint64_t pad1[7];
    // seldom written
    uint64_t n_slots;       ///< of the first room, a power of two
    _Atomic uint32_t owner; ///< number of the thread that writes; 0: free for another thread
    uint32_t zero;
    _Atomic uint64_t n_lost;     ///< events dropped so far
    _Atomic uint64_t blocked_ns; ///< time the thread waited for room
    uint64_t pad2;
    _Atomic uint64_t n_stuck; ///< slots of its last room when there was no place for a larger one; 0: it was never so
    uint64_t pad3;
    tide__ring_total totals[TIDE__FEED_MAX_DEVICES][TIDE__FEED_MAX_KINDS]; ///< [device number - 1][kind]
} tide__ring_header;
_Static_assert(sizeof(tide__ring_header) <= TIDE__RING_HEADER_BYTES, "the slots follow");
_Static_assert((int)TIDE_N_KINDS <= TIDE__FEED_MAX_KINDS, "a slot has four bits for the kind");

/// Name of a feed: "<trace>.feed-<pid>-<n>". Made as "<trace>.feed-<pid>-<n>.new" and renamed when its header is whole.
#define TIDE__FEED_INFIX ".feed-"

#endif
