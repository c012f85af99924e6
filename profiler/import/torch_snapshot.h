// SPDX-License-Identifier: MIT
//
// torch_snapshot: what a memory snapshot of PyTorch holds (torch.cuda.memory._dump_snapshot), as arrays of numbers. The
// events, which are nearly all of a large file, go to a spool as they are read; stacks are a tree that has each frame
// below its caller once. Private to profiler/import.
//
//     {"segments":          [{"address", "total_size", "blocks": [{"address", "size", "state", "frames"}, ...], ...},
//     ...],
//      "device_traces":     [[{"action", "addr", "size", "stream", "time_us", "frames"}, ...], ...],   a list a device
//      "allocator_settings": {...}, "external_annotations": [{"stage", "name", "device", "time_us"}, ...]}
#ifndef TIDE_PROFILER_IMPORT_TORCH_SNAPSHOT_H
#define TIDE_PROFILER_IMPORT_TORCH_SNAPSHOT_H

#include "core/base/map.h"
#include "core/memory/allocators/pytorch.h"
#include "profiler/import/pickle.h"

typedef enum tide__torch_action {
    TIDE__TORCH_ALLOC,
    TIDE__TORCH_FREE_REQUESTED,
    TIDE__TORCH_FREE_COMPLETED,
    TIDE__TORCH_SEGMENT_ALLOC,
    TIDE__TORCH_SEGMENT_FREE,
    TIDE__TORCH_SEGMENT_MAP,
    TIDE__TORCH_SEGMENT_UNMAP,
    TIDE__TORCH_SNAPSHOT,
    TIDE__TORCH_OOM,
    TIDE__TORCH_OTHER, ///< one that is not known
} tide__torch_action;

#define TIDE__TORCH_NO_TIME INT64_MIN
typedef struct tide__torch_event {
    int64_t time_us;       ///< TIDE__TORCH_NO_TIME: not told
    uint64_t addr;         ///< at an oom the free bytes of the device
    uint64_t size, stream; ///< size as the program asked for it; of segments their own
    uint32_t stack;        ///< node of the tree; 0: none
    uint32_t metadata;     ///< text that the program set; 0: none
    uint8_t action;        ///< tide__torch_action
} tide__torch_event;

typedef enum tide__torch_state {
    TIDE__TORCH_INACTIVE,
    TIDE__TORCH_ACTIVE,
    TIDE__TORCH_PENDING, ///< its free was requested, a stream still uses it
} tide__torch_state;

typedef struct tide__torch_block {
    uint64_t address, size, requested; ///< requested: size where it is not told
    uint32_t stack;
    uint8_t state;    ///< tide__torch_state
    bool has_address; ///< older versions of PyTorch tell none: then it follows from the blocks before it
} tide__torch_block;

typedef struct tide__torch_segment {
    uint64_t address, total, stream;
    int64_t device;
    uint64_t pool; ///< private one that it is of, its two numbers as one; 0: none
    uint32_t stack;
    uint64_t first_block, n_blocks; ///< of the snapshot's blocks
    bool is_expandable, is_small;
} tide__torch_segment;

typedef struct tide__torch_annotation {
    int64_t time_us, device;
    uint64_t number; ///< of it in the file
    uint32_t name;   ///< text
    bool is_end;
} tide__torch_annotation;

/// The events of one device: a stretch of the spool.
typedef struct tide__torch_track {
    uint64_t first, n;
    int64_t device;
} tide__torch_track;

typedef struct tide__torch_frame {
    uint32_t function, file; ///< texts
    int64_t line;
} tide__torch_frame;

/// A frame below its caller.
typedef struct tide__torch_node {
    uint32_t parent; ///< 0: the outermost
    uint32_t frame;
} tide__torch_node;

typedef struct tide__torch_snapshot {
    FILE *spool;               ///< of tide__torch_event; the caller's
    uint64_t n_events;         ///< in it
    char **texts;              ///< [n_texts], by number; [0] is ""; owned
    tide__torch_frame *frames; ///< [n_frames]
    tide__torch_node *nodes;   ///< [n_nodes]; [0] is none
    tide__torch_segment *segments;
    tide__torch_block *blocks;
    tide__torch_annotation *annotations;
    tide__torch_track *tracks; ///< those of the root's device_traces alone
    size_t n_texts, n_frames, n_nodes, n_segments, n_blocks, n_annotations, n_tracks;
    tide_pytorch_options settings; ///< what PyTorch refuses is left out
    bool has_settings;             ///< the file tells them
    bool has_ranges;               ///< it has events or segments of expandable segments
    uint64_t n_unknown_actions, n_without_time;
} tide__torch_snapshot;

/// Sizes: more than any memory has is refused, so that what they are rounded up to, and where they end, is a number
/// too.
#define TIDE__TORCH_MAX_BYTES (UINT64_C(1) << 62)
/// Whether there is a byte behind the last one of the range.
static inline bool tide__torch_is_range(uint64_t address, uint64_t bytes) { return bytes < UINT64_MAX - address; }

/**
 * Read a snapshot from `in`, called `path` in errors; its events go to `spool`, which is empty and can be read back.
 *
 * @param out  also after a failure to be given to tide__torch_snapshot_deinit
 * @return as tide__pickle_read; TIDE_ERR_BAD_INPUT for a pickle that is no memory snapshot; TIDE_ERR_WRITE for the
 * spool
 */
tide_status tide__torch_snapshot_read(FILE *in, const char *path, FILE *spool, tide__torch_snapshot *out,
                                      tide_error *err) TIDE_NODISCARD;
/// The same of a file of SQLite: torch_sqlite.c. TIDE_ERR_BAD_INPUT with table and row.
tide_status tide__torch_sqlite_read(const char *path, FILE *spool, tide__torch_snapshot *out,
                                    tide_error *err) TIDE_NODISCARD;
void tide__torch_snapshot_deinit(tide__torch_snapshot *s);

#endif
