// SPDX-License-Identifier: MIT
//
// memray: what the reader of memray's captures is made of. Private to profiler/import.
//
//     memray_bytes.c   numbers and texts of the file
//     memray_stacks.c  lines, frames and stacks, as scopes
//     memray_blocks.c  what is alive by address and by range, as events
//     memray.c         the file's head
//     memray_actions.c what records do; those that both kinds of file have
//     memray_records.c the records of a file of all allocations
//     memray_sums.c    those of the other kind of file, which has sums instead
#ifndef TIDE_PROFILER_IMPORT_MEMRAY_H
#define TIDE_PROFILER_IMPORT_MEMRAY_H

#include "core/base/block_tree.h"
#include "profiler/import/import_internal.h"

// ---- bytes ----

/// What is read of the file. A file that grew in large steps ends in zero bytes when its program was killed: zeros are
/// given out only where another byte follows them. Zero-initialise but for the first two.
typedef struct tide__memray_bytes {
    const tide__unpack *in;
    const char *path;
    unsigned char *block; ///< [n], owned
    size_t n, at;
    uint64_t zeros;    ///< that are still to be given out
    uint64_t position; ///< bytes given out
    bool has_ended;    ///< the last read met the end of the file
    bool no_memory;
    const char *fault; ///< what was wrong with the last read; NULL: nothing
    char *text;        ///< [n_text] texts with their zero bytes, and data; owned
    size_t n_text, cap_text;
} tide__memray_bytes;

// Each is false where the file ends, or is wrong: then tide__memray_stopped says so.
bool tide__memray_byte(tide__memray_bytes *b, unsigned char *out) TIDE_NODISCARD;
/// `n` <= 8 bytes, the lowest first.
bool tide__memray_fixed(tide__memray_bytes *b, size_t n, uint64_t *out) TIDE_NODISCARD;
/// Seven bits a byte, the lowest first.
bool tide__memray_varint(tide__memray_bytes *b, uint64_t *out) TIDE_NODISCARD;
/// The same with the sign in the lowest bit.
bool tide__memray_signed(tide__memray_bytes *b, int64_t *out) TIDE_NODISCARD;
/// A difference to `*last`, which becomes what was meant.
bool tide__memray_delta(tide__memray_bytes *b, uint64_t *last) TIDE_NODISCARD;
/// To `b->text`, or behind what that holds: up to a zero byte, at most 4 MiB.
bool tide__memray_text(tide__memray_bytes *b, bool behind) TIDE_NODISCARD;
/// Behind what `b->text` holds: `n` bytes, at most 16 MiB.
bool tide__memray_data(tide__memray_bytes *b, uint64_t n) TIDE_NODISCARD;
/// TIDE_OK at the end of the file (has_ended), else why it could not be read.
tide_status tide__memray_stopped(tide__memray_bytes *b, tide_error *err) TIDE_NODISCARD;
/// TIDE_ERR_BAD_INPUT with the place in the file.
tide_status tide__memray_bad(const tide__memray_bytes *b, tide_error *err, const char *what);
void tide__memray_bytes_deinit(tide__memray_bytes *b);

#define TIDE__MEMRAY_READ(bytes, call, err)                                                                            \
    do {                                                                                                               \
        if (!(call)) return tide__memray_stopped((bytes), (err));                                                      \
    } while (0)

// ---- stacks ----

typedef struct tide__memray_code {
    char *text;         ///< function, a zero byte, file, a zero byte, table of lines; owned
    size_t file, table; ///< where they begin in it
    size_t n_table;
    int64_t first_line;
    bool is_line; ///< first_line is the line, there is no table
} tide__memray_code;

typedef struct tide__memray_frame {
    uint32_t code;
    int32_t offset;
    int64_t name, block_name; ///< texts of the trace; 0: not made yet
} tide__memray_frame;

typedef struct tide__memray_node {
    uint32_t parent, frame;
    int64_t scope; ///< 0: not made yet
} tide__memray_node;

/// All call stacks: a tree; node 0 is no frame. Zero-initialise but for the first three.
typedef struct tide__memray_stacks {
    tide__names *names;
    const char *path;
    uint32_t python_version;
    tide__memray_code *codes;
    tide__memray_frame *frames;
    tide__memray_node *nodes;
    size_t n_codes, cap_codes, n_frames, cap_frames, n_nodes, cap_nodes;
    uint64_t code_bytes; ///< of all texts
    tide_map code_ids, frame_keys, node_keys;
    uint32_t *way; ///< scratch
    size_t cap_way;
} tide__memray_stacks;

/// A function under the number `id` of the file; its texts are copied. TIDE_ERR_INVALID: no such number, or more than
/// 256 MiB of texts; TIDE_ERR_NOMEM.
tide_status tide__memray_put_code(tide__memray_stacks *s, uint64_t id, const tide__memray_code *code,
                                  tide_error *err) TIDE_NODISCARD;
/// The frame of an instruction. TIDE_ERR_NOT_FOUND: no such function; TIDE_ERR_NOMEM.
tide_status tide__memray_frame_of(tide__memray_stacks *s, uint64_t code_id, int32_t offset, uint32_t *frame,
                                  tide_error *err) TIDE_NODISCARD;
/// The stack that is `frame` on top of `parent`. TIDE_ERR_INVALID: more than 2^26 of them; TIDE_ERR_NOMEM.
tide_status tide__memray_push(tide__memray_stacks *s, uint32_t parent, uint32_t frame, uint32_t *node,
                              tide_error *err) TIDE_NODISCARD;
/// The scope of a stack and the name of its blocks; 0 and 0 of none.
tide_status tide__memray_scope(tide__memray_stacks *s, uint32_t node, int64_t *scope, int64_t *name,
                               tide_error *err) TIDE_NODISCARD;
/// What `n` blocks of a stack are called together.
tide_status tide__memray_sum_name(tide__memray_stacks *s, uint32_t node, uint64_t n, int64_t *name,
                                  tide_error *err) TIDE_NODISCARD;
void tide__memray_stacks_deinit(tide__memray_stacks *s);

// ---- blocks ----

/// Numbers of the file's versions from 12 on.
typedef enum tide__memray_allocator {
    TIDE__MEMRAY_NONE,
    TIDE__MEMRAY_PYMALLOC_FREE,
    TIDE__MEMRAY_PYMALLOC_MALLOC,
    TIDE__MEMRAY_PYMALLOC_CALLOC,
    TIDE__MEMRAY_PYMALLOC_REALLOC,
    TIDE__MEMRAY_FREE,
    TIDE__MEMRAY_MALLOC,
    TIDE__MEMRAY_REALLOC,
    TIDE__MEMRAY_CALLOC,
    TIDE__MEMRAY_POSIX_MEMALIGN,
    TIDE__MEMRAY_ALIGNED_ALLOC,
    TIDE__MEMRAY_MEMALIGN,
    TIDE__MEMRAY_VALLOC,
    TIDE__MEMRAY_PVALLOC,
    TIDE__MEMRAY_MMAP,
    TIDE__MEMRAY_MUNMAP,
    TIDE__MEMRAY_ALLOCATORS
} tide__memray_allocator;

/// Whether it is one that frees what it is told by the address alone.
static inline bool tide__memray_frees(unsigned a) { return a == TIDE__MEMRAY_FREE || a == TIDE__MEMRAY_PYMALLOC_FREE; }

/// What happened, and where.
typedef struct tide__memray_call {
    tide__memray_allocator allocator;
    uint64_t address, bytes;
    int64_t t_ns, scope, name, thread;
} tide__memray_call;

typedef struct tide__memray_range {
    int64_t block_id;
    int64_t scope, name, thread;
    uint32_t free_next; ///< of those that are free, + 1
} tide__memray_range;

/// Zero-initialise but for the first three and `live`.
typedef struct tide__memray_blocks {
    tide__new_trace *out;
    tide_import_report *report;
    const char *path;
    tide_map live;              ///< blocks by address
    tide_block_tree mapped;     ///< ranges that do not overlap, by address; id: their place in `ranges`
    tide__memray_range *ranges; ///< [n_ranges]
    size_t n_ranges, cap_ranges;
    uint32_t free_range; ///< + 1
    int64_t last_block, device, allocators[TIDE__MEMRAY_ALLOCATORS];
} tide__memray_blocks;

tide_status tide__memray_blocks_begin(tide__memray_blocks *b, tide_error *err) TIDE_NODISCARD;
/// A call of an allocator as events of the trace. bytes <= INT64_MAX, but for munmap; a mapped range is not empty and
/// ends with the last address.
tide_status tide__memray_take_call(tide__memray_blocks *b, const tide__memray_call *c, tide_error *err) TIDE_NODISCARD;
/// What versions 10 and 11 numbered otherwise; TIDE__MEMRAY_NONE: they have no such number.
tide__memray_allocator tide__memray_old_allocator(uint64_t number);
/// Whether it is one that gives memory.
bool tide__memray_gives(uint64_t allocator);
/// The sum of several blocks, without an address. Out: its number, for tide__memray_end_sum.
tide_status tide__memray_begin_sum(tide__memray_blocks *b, const tide__memray_call *c, int64_t *id,
                                   tide_error *err) TIDE_NODISCARD;
tide_status tide__memray_end_sum(tide__memray_blocks *b, int64_t id, const tide__memray_call *c,
                                 tide_error *err) TIDE_NODISCARD;
void tide__memray_blocks_deinit(tide__memray_blocks *b);

// ---- the file ----

/// A time in ms that is one in ns, with another one added.
#define TIDE__MEMRAY_MAX_MS (INT64_MAX / 2000000)

typedef struct tide__memray_head {
    uint32_t version, python_version;
    bool has_native, has_sums;
    uint64_t n_calls; ///< 0: not told
    int64_t begin_ms, end_ms;
    uint64_t main_thread, n_skipped; ///< the outermost frames of that thread that are memray's and not the program's
} tide__memray_head;

typedef struct tide__memray_thread {
    uint32_t *stack; ///< [n] nodes, owned
    size_t n, cap;
    int64_t id; ///< of the trace
} tide__memray_thread;

typedef struct tide__memray {
    tide__memray_bytes bytes;
    tide__memray_head head;
    tide__memray_stacks stacks;
    tide__memray_blocks blocks;
    tide__memray_thread *threads; ///< [n_threads]
    size_t n_threads, cap_threads;
    tide_map thread_ids;
    size_t thread;         ///< that the records are of; n_threads: none yet
    uint64_t tid;          ///< its number in the file
    uint64_t recent[15];   ///< addresses that came last
    uint64_t last_address; ///< from version 12 on in units of 8 bytes
    uint64_t last_native, last_line, last_frame;
    int64_t t_ns;
} tide__memray;

// What a record does, once it is read.

/// The records are of thread `tid` from here on.
tide_status tide__memray_enter_thread(tide__memray *m, uint64_t tid, tide_error *err) TIDE_NODISCARD;
/// The function that is read to bytes.text, with its file, and with its table of lines when `is_line` is not set.
tide_status tide__memray_take_code(tide__memray *m, uint64_t id, size_t file, size_t table, bool is_line,
                                   tide_error *err) TIDE_NODISCARD;
tide_status tide__memray_take_push(tide__memray *m, uint64_t code_id, int64_t offset, tide_error *err) TIDE_NODISCARD;
tide_status tide__memray_take_pop(tide__memray *m, size_t n, tide_error *err) TIDE_NODISCARD;
/// `allocator`: a number of version 12.
tide_status tide__memray_take_allocation(tide__memray *m, uint64_t allocator, uint64_t address, uint64_t bytes,
                                         tide_error *err) TIDE_NODISCARD;
/// `ms` since the begin.
tide_status tide__memray_take_time(tide__memray *m, uint64_t ms, tide_error *err) TIDE_NODISCARD;
/// Records that all versions and both kinds of file have: those of native code, and threads. `*known`: it was one.
tide_status tide__memray_take_common(tide__memray *m, unsigned char token, bool *known, tide_error *err) TIDE_NODISCARD;
/// The function and its file, to bytes.text. Out: where the file's name begins, and what comes behind it.
bool tide__memray_function(tide__memray *m, size_t *file, size_t *behind) TIDE_NODISCARD;
/// The last record was read: what is behind it is no part of the file, and must be zeros.
tide_status tide__memray_take_end(tide__memray *m, tide_error *err) TIDE_NODISCARD;

/// A record of a function with its table of lines, of version 12 and 13.
tide_status tide__memray_take_code_record(tide__memray *m, tide_error *err) TIDE_NODISCARD;

/// All records, up to the end of the file.
tide_status tide__memray_take_records(tide__memray *m, tide_error *err) TIDE_NODISCARD;
tide_status tide__memray_take_sums(tide__memray *m, tide_error *err) TIDE_NODISCARD;

#endif
