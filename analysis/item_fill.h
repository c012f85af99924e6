// SPDX-License-Identifier: MIT
//
// item fill: which class an item belongs to, one list for all views; and what persists.
#ifndef TIDE_ANALYSIS_ITEM_FILL_H
#define TIDE_ANALYSIS_ITEM_FILL_H

#include "core/memory/allocator.h"
#include "core/runtime/memory_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/// How a bar is told apart: each view has a colour and a hatch or glyph for each.
#define TIDE_ITEM_FILL_MAP(XX)                                                                                         \
    XX(INTERMEDIATE, "intermediate")                                                                                   \
    XX(SCRATCH, "scratch")                                                                                             \
    XX(INOUT, "input, output, default")                                                                                \
    XX(WEIGHT, "weight, persistent")                                                                                   \
    XX(KV_CACHE, "KV cache")                                                                                           \
    XX(HOST, "host memory")
typedef enum tide_item_fill {
#define XX(name, text) TIDE_ITEM_FILL_##name,
    TIDE_ITEM_FILL_MAP(XX)
#undef XX
        TIDE_N_ITEM_FILLS
} tide_item_fill;
tide_item_fill tide_item_fill_of(tide_memory_kind kind, tide_role role);
/// "" for what is none.
const char *tide_item_fill_text(tide_item_fill fill);

/// Weights, inputs and outputs: what is there for the whole run and would stand above everything else. `in_plan`: the
/// plan says so of it.
bool tide_item_persists(tide_memory_kind kind, tide_role role, bool in_plan);

#ifdef __cplusplus
}
#endif
#endif
