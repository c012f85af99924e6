// SPDX-License-Identifier: MIT
//
// tide_plan_set_memory, see tidemark/plan.h: the planner's memory is that of core/base/host_alloc.
#include "core/base/host_alloc.h"
#include "tidemark/plan.h"

void tide_plan_set_memory(const tide_plan_memory *memory) {
    if (memory == NULL) {
        tide_host_set_source(NULL);
        return;
    }
    const tide_host_source source = {
        .take = memory->take, .resize = memory->resize, .give_back = memory->give_back, .ctx = memory->ctx};
    tide_host_set_source(&source);
}
