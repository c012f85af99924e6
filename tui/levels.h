// SPDX-License-Identifier: MIT
//
// levels: how high plan and lower bound stand beside the curve. The curve also holds what no plan places (weights,
// inputs, outputs), so the lines stand on top of that, and every label says so.
#ifndef TIDE_TUI_LEVELS_H
#define TIDE_TUI_LEVELS_H

#include "profiler/timeline.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_tui_levels {
    bool known;           ///< false: no plan, or nobody knows what lies below it; all else is 0 then
    uint64_t below;       ///< persistent tensors of a plan, the predicted bytes of all but Workspace in a run
    uint64_t plan, bound; ///< heights: `below` and the bytes of each
    char words[64];       ///< what `below` is: "weights, inputs, outputs"; "" when it is nothing
} tide_tui_levels;

tide_tui_levels tide_tui_levels_of(const tide_timeline *tl);

#ifdef __cplusplus
}
#endif
#endif
