// SPDX-License-Identifier: MIT
//
// timeline facts: what both views say of a timeline, said once: which class an item belongs to, what persists, how high
// plan and lower bound stand beside the curve.
#ifndef TIDE_PROFILER_TIMELINE_FACTS_H
#define TIDE_PROFILER_TIMELINE_FACTS_H

#include "profiler/timeline.h"

#ifdef __cplusplus
extern "C" {
#endif

/// How a bar is told apart: each view has a colour and a hatch or glyph for each.
#define TIDE_TIMELINE_FILL_MAP(XX)                                                                                     \
    XX(INTERMEDIATE, "intermediate")                                                                                   \
    XX(SCRATCH, "scratch")                                                                                             \
    XX(INOUT, "input, output, default")                                                                                \
    XX(WEIGHT, "weight, persistent")                                                                                   \
    XX(KV_CACHE, "KV cache")                                                                                           \
    XX(HOST, "host memory")
typedef enum tide_timeline_fill {
#define XX(name, text) TIDE_TIMELINE_FILL_##name,
    TIDE_TIMELINE_FILL_MAP(XX)
#undef XX
        TIDE_TIMELINE_N_FILLS
} tide_timeline_fill;
tide_timeline_fill tide_timeline_fill_of(const tide_timeline_item *item);
const char *tide_timeline_fill_text(tide_timeline_fill fill);

/// Weights, inputs and outputs: what is there for the whole run and would stand above everything else.
bool tide_timeline_persists(const tide_timeline_item *item);
bool tide_timeline_alive_at(const tide_timeline_item *item, int64_t t);

/// How high plan and lower bound stand beside the curve. The curve also holds what no plan places (weights, inputs,
/// outputs), so the lines stand on top of that, and every label says so.
typedef struct tide_timeline_levels {
    bool known;           ///< false: no plan, or nobody knows what lies below it; all else is 0 then
    uint64_t below;       ///< persistent tensors of a plan, the predicted bytes of all but Workspace in a run
    uint64_t plan, bound; ///< heights: `below` and the bytes of each
    char words[128];      ///< what `below` is: "weights, inputs, outputs"; "" when it is nothing
} tide_timeline_levels;
tide_timeline_levels tide_timeline_levels_of(const tide_timeline *tl);

#ifdef __cplusplus
}
#endif
#endif
