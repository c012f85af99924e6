// SPDX-License-Identifier: MIT
//
// cancel: whether a plan that is being made is still wanted. The caller of tide_plan_make may say no at any time
// (tide_strategy_options.is_cancelled); what makes plans asks here wherever it looks at the clock. Private to planner/.
//
// The question belongs to the thread that makes the plan and to those that it starts, so that several plans can be made
// at once, and nothing between tide_plan_make and the innermost loop has to carry it.
#ifndef TIDE_PLANNER_CANCEL_H
#define TIDE_PLANNER_CANCEL_H

#include <stdatomic.h>

#include "core/base/text.h"
#include "tidemark/plan.h"

typedef struct tide__cancel {
    bool (*is_cancelled)(void *ctx); ///< NULL: never
    void *ctx;
    atomic_bool was_cancelled; ///< no question is asked after the first yes
} tide__cancel;

/// From now on this thread works for `c` (NULL: for no call); returns what it worked for before. `c` must live as long.
tide__cancel *tide__cancel_work_for(tide__cancel *c);
/// What this thread works for, for threads that it starts; NULL: no call.
tide__cancel *tide__cancel_current(void);
/// Whether the plan that this thread works for is not wanted any more. Costs a call of the caller's function.
bool tide__is_cancelled(void);

/// Whether the work is to end: the time is over (`deadline_ns` of tide_now_ns(), 0: none), or it is not wanted any
/// more.
static inline bool tide__is_late(uint64_t deadline_ns) {
    return tide__is_cancelled() || (deadline_ns != 0 && tide_now_ns() >= deadline_ns);
}

#endif
