// SPDX-License-Identifier: MIT
//
// What was there before a memory snapshot of PyTorch began: the first events of its trace. See replay.h.
//
//     process 0, device 0     segments by address, blocks by address     all at the first moment of the process
//     process 0, device 1     segments, blocks                           the same moment
//     process 0               the first event that was recorded
#include <string.h>

#include "cli/replay.h"
#include "core/base/host_alloc.h"

bool cli_replay_is_pytorch(const tide_trace_event *e) {
    static const char pool[] = "pytorch pool ";
    return strcmp(e->allocator, "pytorch") == 0 || strncmp(e->allocator, pool, sizeof pool - 1) == 0;
}

/// The first moment of the event's process.
static uint64_t begin_of(const cli_replay_before *b, const tide_trace_event *e) {
    for (size_t i = 0; i < b->n; i++)
        if (b->items[i].process == e->process) return b->items[i].begin_ns;
    return e->t_ns;
}

static tide_status begin_at(cli_replay_before *b, const tide_trace_event *e, struct cli_replay_begin **out,
                            tide_error *err) {
    for (size_t i = 0; i < b->n; i++) {
        const size_t at = (b->latest + i) % b->n;
        *out = &b->items[at];
        if ((*out)->process != e->process || (*out)->device != e->device) continue;
        b->latest = at;
        return TIDE_OK;
    }
    const struct cli_replay_begin begin = {.process = e->process, .device = e->device, .begin_ns = begin_of(b, e)};
    TIDE_TRY(TIDE_GROW(&b->items, &b->cap, b->n + 1, err, "for the devices of a trace"));
    b->latest = b->n;
    *out = &b->items[b->n++];
    **out = begin;
    return TIDE_OK;
}

tide_status cli_replay_is_before(cli_replay_before *b, tide_memory_op op, const tide_trace_event *e, bool *out,
                                 tide_error *err) {
    struct cli_replay_begin *at = NULL;
    TIDE_TRY(begin_at(b, e, &at, err));
    at->is_over = at->is_over || e->t_ns != at->begin_ns || !cli_replay_is_pytorch(e) ||
                  (op != TIDE_MEM_ALLOC && (op != TIDE_MEM_SEGMENT_ALLOC || at->has_block));
    at->has_block = at->has_block || op == TIDE_MEM_ALLOC;
    *out = !at->is_over;
    return TIDE_OK;
}

void cli_replay_before_deinit(cli_replay_before *b) { tide_host_free(b->items); }
