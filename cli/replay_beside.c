// SPDX-License-Identifier: MIT
//
// A replay with the allocator pytorch beside what PyTorch did, in a trace that came from one of its memory snapshots:
// it begins with the segments that were there, empties its cache when the recorded program did, and what it has
// reserved is compared at every moment. See replay.h.
//
//     trace    [segments, blocks of before][ event, event, … segment_free segment_free … event ]
//     replay    adopted, placed              alloc, release … trim                     …
#include <string.h>

#include "cli/replay.h"
#include "core/memory/allocators/pytorch.h"

static bool is_pytorch(const tide_trace_event *e) { return strcmp(e->allocator, "pytorch") == 0; }

void cli_replay_beside_open(cli_replay_beside *b, const cli_replay_source *s, tide_allocator *a, const char *name,
                            cli_replay_like *out) {
    *b = (cli_replay_beside){.allocator = a, .out = out};
    b->is_pytorch = tide_pytorch_is(a);
    // Other settings would have made other segments: then what was there before is asked for anew. So it is for ranges
    // that grow, which hold more than the pages that they have.
    b->adopts = b->is_pytorch && strcmp(name, "pytorch") == 0 && s->first_event <= 1 &&
                strstr(s->settings, "expandable_segments") == NULL;
    b->before.is_over = s->first_event > 1;
}

bool cli_replay_is_before(cli_replay_before *b, tide_memory_op op, const tide_trace_event *e) {
    if (b->is_over) return false;
    if (b->device == NULL) {
        b->device = e->device;
        b->begin_ns = e->t_ns;
    }
    b->is_over = (op != TIDE_MEM_SEGMENT_ALLOC && op != TIDE_MEM_ALLOC) || e->t_ns != b->begin_ns || !is_pytorch(e) ||
                 b->device != e->device || (b->has_block && op == TIDE_MEM_SEGMENT_ALLOC);
    b->has_block = b->has_block || op == TIDE_MEM_ALLOC;
    return !b->is_over;
}

tide_status cli_replay_beside_segment(cli_replay_beside *b, tide_memory_op op, const tide_trace_event *e,
                                      tide_stream_id stream, tide_error *err) {
    const bool is_before = cli_replay_is_before(&b->before, op, e);
    if (!is_pytorch(e)) return TIDE_OK;
    b->has_segments = true;
    if (op == TIDE_MEM_SEGMENT_ALLOC) {
        b->reserved_bytes += e->reserved_bytes;
        b->is_emptying = false;
        if (!is_before || !b->adopts) return TIDE_OK;
        void *const address = (void *)(uintptr_t)e->address;
        TIDE_TRY(tide_pytorch_adopt(b->allocator, address, (size_t)e->reserved_bytes, stream, err));
        b->out->n_adopted++;
        b->out->adopted_bytes += e->reserved_bytes;
        return TIDE_OK;
    }
    b->reserved_bytes -= e->reserved_bytes < b->reserved_bytes ? e->reserved_bytes : b->reserved_bytes;
    if (b->is_emptying) return TIDE_OK;
    b->is_emptying = true;
    b->out->n_emptied++;
    tide_allocator_trim(b->allocator);
    return TIDE_OK;
}

void cli_replay_beside_alloc(cli_replay_beside *b, const tide_trace_event *e) {
    if (cli_replay_is_before(&b->before, TIDE_MEM_ALLOC, e) && b->adopts)
        tide_pytorch_place_next(b->allocator, (const void *)(uintptr_t)e->address, (size_t)e->reserved_bytes);
}

static uint64_t between(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

void cli_replay_beside_compare(cli_replay_beside *b, tide_memory_op op, const tide_trace_event *e) {
    cli_replay_like *out = b->out;
    const bool is_before = cli_replay_is_before(&b->before, op, e);
    b->is_emptying = false;
    out->is_mixed = out->is_mixed || (b->before.device != NULL && e->device != b->before.device);
    if (is_before || !b->is_pytorch || !b->has_segments) return;
    tide_allocator_stats s;
    tide_allocator_get_stats(b->allocator, &s);
    out->n_moments++;
    const uint64_t apart = between(s.reserved_bytes, b->reserved_bytes);
    if (apart == 0) return;
    const cli_replay_apart now = {
        .event = e->id, .recorded_bytes = b->reserved_bytes, .replayed_bytes = s.reserved_bytes};
    if (out->n_apart++ == 0) out->first = now;
    if (apart > between(out->worst.recorded_bytes, out->worst.replayed_bytes)) out->worst = now;
}
