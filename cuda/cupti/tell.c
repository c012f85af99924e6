// SPDX-License-Identifier: MIT
//
// Events of the recorder of CUDA memory: what happened to a block of the ledger, handed to the observer. See
// recorder.h.
//
// A free is two events. `free_requested` comes when the call begins: the program has given the memory up, and cuMemFree
// may now wait for the device's work for long. `free_completed` comes when it returned. The driver may give the address
// to another thread in between: then the new block's allocation ends the old block first (tide__cupti_make_room), so
// that no byte is ever live twice. A free that failed takes nothing away: the block is announced again under a new
// number.
#include "core/base/assert.h"
#include "cuda/cupti/recorder.h"

static tide_memory_event event_of(const tide__cupti_block *b, tide_memory_op op, uint64_t t_ns) {
    const tide_cupti_host *host = tide__cupti.host;
    const tide_device device = {.type = TIDE_DEVICE_CUDA, .index = b->device};
    return (tide_memory_event){.op = op,
                               .t_ns = t_ns,
                               .block_id = b->id,
                               .device = b->device >= 0 ? device : TIDE_CPU,
                               .kind = (tide_memory_kind)b->kind,
                               .stream = b->stream,
                               .requested_bytes = b->bytes,
                               .reserved_bytes = b->bytes,
                               .address = b->address,
                               .thread = host->thread_id(),
                               .allocator = b->allocator,
                               .tag = b->tag,
                               .scope = t_ns == 0 ? host->scope() : NULL};
}

static void put(const tide_memory_event *e) { tide__cupti.observer.on_memory(tide__cupti.observer.self, e); }

static void tell(const tide__cupti_block *b, tide_memory_op op, uint64_t t_ns) {
    const tide_memory_event e = event_of(b, op, t_ns);
    put(&e);
}

void tide__cupti_tell_alloc(tide__cupti_block *b, uint64_t t_ns) {
    tide_cupti_counts *n = &tide__cupti.counts;
    if (b->is_own) {
        n->own_bytes += b->device >= 0 ? b->bytes : 0;
        if (n->own_bytes > n->own_peak_bytes) n->own_peak_bytes = n->own_bytes;
        return;
    }
    b->id = tide__cupti.host->new_block_id();
    n->allocs++;
    tell(b, TIDE_MEM_ALLOC, t_ns);
}

void tide__cupti_tell_request(const tide__cupti_block *b) {
    if (!b->is_own) tell(b, TIDE_MEM_FREE_REQUESTED, 0);
}

void tide__cupti_tell_end(const tide__cupti_block *b, uint64_t t_ns) {
    if (b->is_own) {
        const uint64_t bytes = b->device >= 0 ? b->bytes : 0;
        TIDE_ASSERT(tide__cupti.counts.own_bytes >= bytes);
        tide__cupti.counts.own_bytes -= bytes;
        return;
    }
    tide__cupti.counts.frees++;
    tell(b, TIDE_MEM_FREE_COMPLETED, t_ns);
}

void tide__cupti_tell_again(tide__cupti_block *b, uint64_t address, const char *allocator) {
    if (!b->is_own) tell(b, TIDE_MEM_FREE_COMPLETED, 0);
    b->address = address;
    b->allocator = allocator;
    if (b->is_own) return;
    b->id = tide__cupti.host->new_block_id();
    tell(b, TIDE_MEM_ALLOC, 0);
}

void tide__cupti_tell_oom(int32_t device, uint8_t kind, const char *allocator, const char *tag, uint64_t bytes,
                          uint64_t stream) {
    const tide__cupti_block asked = {
        .device = device, .kind = kind, .allocator = allocator, .tag = tag, .bytes = bytes, .stream = stream};
    tide_memory_event e = event_of(&asked, TIDE_MEM_OOM, 0);
    e.reserved_bytes = 0;
    put(&e);
}

void tide__cupti_tell_segment(bool taken, uint64_t id, int32_t device, uint64_t address, uint64_t bytes,
                              uint64_t t_ns) {
    const tide__cupti_block segment = {.id = id,
                                       .device = device,
                                       .kind = TIDE_KIND_DEFAULT,
                                       .allocator = "cuMemAllocAsync",
                                       .address = address,
                                       .bytes = bytes};
    tide_memory_event e = event_of(&segment, taken ? TIDE_MEM_SEGMENT_ALLOC : TIDE_MEM_SEGMENT_FREE, t_ns);
    put(&e);
}

void tide__cupti_tell_usage(int32_t device, uint64_t used, uint64_t total, uint64_t t_ns) {
    const tide__cupti_block all = {.device = device, .kind = TIDE_KIND_DEFAULT, .bytes = used};
    tide_memory_event e = event_of(&all, TIDE_MEM_DEVICE_USAGE, t_ns);
    e.reserved_bytes = total;
    put(&e);
    tide__cupti.counts.samples++;
}
