// SPDX-License-Identifier: MIT
//
// torch_pen: dicts of a memory snapshot of PyTorch, with all keys that its viewer (MemoryViz.js) and _memory_viz.py
// look at. Private to reports.
#ifndef TIDE_REPORTS_TORCH_PEN_H
#define TIDE_REPORTS_TORCH_PEN_H

#include "core/base/output.h"
#include "core/memory/allocators/pytorch.h"
#include "reports/torch_frames.h"
#include "reports/torch_space.h"

typedef enum tide__torch_out_action {
    TIDE__TORCH_OUT_ALLOC,
    TIDE__TORCH_OUT_FREE_REQUESTED,
    TIDE__TORCH_OUT_FREE_COMPLETED,
    TIDE__TORCH_OUT_SEGMENT_ALLOC,
    TIDE__TORCH_OUT_SEGMENT_FREE,
    TIDE__TORCH_OUT_SEGMENT_MAP,
    TIDE__TORCH_OUT_SEGMENT_UNMAP,
    TIDE__TORCH_OUT_SNAPSHOT,
    TIDE__TORCH_OUT_OOM,
    TIDE__TORCH_OUT_N_ACTIONS
} tide__torch_out_action;

/// Words that are written often, by number.
enum {
    TIDE__TORCH_WORD_ACTION = TIDE__TORCH_OUT_N_ACTIONS, // those before are the actions
    TIDE__TORCH_WORD_ADDR,
    TIDE__TORCH_WORD_SIZE,
    TIDE__TORCH_WORD_STREAM,
    TIDE__TORCH_WORD_TIME_US,
    TIDE__TORCH_WORD_FRAMES,
    TIDE__TORCH_WORD_DEVICE_FREE,
    TIDE__TORCH_WORD_METADATA,
    TIDE__TORCH_N_WORDS
};

typedef struct tide__torch_pen {
    tide_output *out; ///< borrowed
    tide_error *err;
    tide_text text;
    tide_pickle_out pickle;
    tide__torch_frames frames;
    tide_pickle_word words[TIDE__TORCH_N_WORDS];
} tide__torch_pen;

typedef struct tide__torch_out_event {
    tide__torch_out_action action;
    uint64_t addr; ///< at an oom the free bytes of the device
    uint64_t size, stream, t_ns;
    uint32_t scope;
    const char *name, *kind; ///< of an allocation, as tide__torch_frames_put
    const char *metadata;    ///< NULL: none
} tide__torch_out_event;

void tide__torch_pen_begin(tide__torch_pen *pen, const tide_trace *t, tide_output *out, tide_error *err);
/// What was written so far goes to the file, if it is much or `all`. TIDE_ERR_WRITE; TIDE_ERR_NOMEM.
tide_status tide__torch_pen_flush(tide__torch_pen *pen, bool all) TIDE_NODISCARD;
void tide__torch_pen_deinit(tide__torch_pen *pen);

/// A key of the dict that is open.
void tide__torch_pen_key(tide__torch_pen *pen, const char *key);
tide_status tide__torch_pen_event(tide__torch_pen *pen, const tide__torch_out_event *e) TIDE_NODISCARD;
void tide__torch_pen_annotation(tide__torch_pen *pen, bool is_end, const char *name, uint32_t device, uint64_t t_ns);
/// The state of one device: its segments and what lies in them, as items of the list that is open. `named`: blocks show
/// their names where they have no stack.
tide_status tide__torch_pen_state(tide__torch_pen *pen, const tide__torch_space *s, uint32_t device,
                                  bool named) TIDE_NODISCARD;
/// The value of allocator_settings.
tide_status tide__torch_pen_settings(tide__torch_pen *pen, const tide_pytorch_options *o) TIDE_NODISCARD;

#endif
