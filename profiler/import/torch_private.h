// SPDX-License-Identifier: MIT
//
// torch_private: private pools of PyTorch (CUDA graphs, torch.cuda.MemPool). Events do not say of which pool they are;
// the segments at the end do (segment_pool_id). A segment that is there at the end was taken by the last segment_alloc
// at its address, or was there before: from then on what lies in it is of its pool.
//
//     segment_alloc A … segment_free A … segment_alloc A … end: A is of pool (0, 1)
//     the usual pool                     pool (0, 1)
//
// Of a segment that went before the end nothing tells the pool: it counts to the usual one. Private to profiler/import.
#ifndef TIDE_PROFILER_IMPORT_TORCH_PRIVATE_H
#define TIDE_PROFILER_IMPORT_TORCH_PRIVATE_H

#include "profiler/import/torch_snapshot.h"
#include "profiler/store/names.h"

typedef struct tide__torch_private {
    struct tide__torch_private_segment {
        uint64_t address, bytes;
        uint64_t n_left; ///< times that it is still taken; 0: it is there
        int64_t name;    ///< of the pool, an allocator of the trace
    } * items;           ///< [n], by address; owned
    size_t n;
} tide__torch_private;

/// Those of one device; names are put into `names`. TIDE_ERR_NOMEM
tide_status tide__torch_private_init(tide__torch_private *p, const tide__torch_snapshot *s, int64_t device,
                                     tide__names *names, const char *path, tide_error *err) TIDE_NODISCARD;
/// Before all events are taken: one that takes a segment is among them.
void tide__torch_private_count(tide__torch_private *p, uint64_t address);
/// A segment is taken.
void tide__torch_private_take(tide__torch_private *p, uint64_t address);
/// The pool that `address` is of now; 0: the usual one.
int64_t tide__torch_private_of(const tide__torch_private *p, uint64_t address);
void tide__torch_private_deinit(tide__torch_private *p);

#endif
