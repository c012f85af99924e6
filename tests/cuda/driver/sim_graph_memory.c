// SPDX-License-Identifier: MIT
//
// Memory of graphs: cuMemAllocAsync and cuMemFreeAsync in a stream that captures become nodes.
//
// Programming guide, "Graph memory nodes": the address is fixed when the node is made; memory is there from the launch
// on. Measured: the launch takes 32 MiB of the device. A graph whose memory was not freed cannot be launched again
// (guide).
#include "tests/cuda/driver/sim_graph.h"

#define STEP_BYTES (32 * SIM_MIB)

static sim_graph_memory *memory_of(sim_graph *graph, sim_device *device) {
    if (graph->memory == NULL) {
        graph->memory = SIM_NEW(sim_graph_memory);
        graph->memory->refs = 1;
        graph->memory->device = device;
    }
    return graph->memory;
}

CUresult sim_graph_alloc(sim_stream *stream, CUdeviceptr *dptr, uint64_t bytes) {
    if (stream->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (bytes == 0 || bytes > (uint64_t)1 << 46) return CUDA_ERROR_INVALID_VALUE;
    const uint64_t span = sim_round_up(bytes, sim.granularity);
    const uint64_t address = sim_map_reserve(span, sim.granularity, 0);
    if (address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    sim_graph_memory *memory = memory_of(stream->capture->graph, stream->ctx->device);
    sim_range *range = SIM_NEW(sim_range);
    *range = (sim_range){.kind = TIDESIM_GRAPH,
                         .address = address,
                         .bytes = bytes,
                         .span = span,
                         .device = stream->ctx->device,
                         .readable = true,
                         .writable = true};
    sim_range_add(range);
    memory->ranges = realloc(memory->ranges, (memory->n + 1) * sizeof(sim_range *));
    memory->freed_inside = realloc(memory->freed_inside, (memory->n + 1) * sizeof(bool));
    if (memory->ranges == NULL || memory->freed_inside == NULL) abort();
    memory->ranges[memory->n] = range;
    memory->freed_inside[memory->n++] = false;
    sim_capture_append(stream, (sim_work){.sort = SIM_WORK_GRAPH_ALLOC, .dst = address, .bytes = bytes});
    *dptr = address;
    return CUDA_SUCCESS;
}

static bool *freed_inside(sim_graph_memory *memory, const sim_range *range) {
    for (size_t i = 0; memory != NULL && i < memory->n; i++)
        if (memory->ranges[i] == range) return &memory->freed_inside[i];
    return NULL;
}

CUresult sim_graph_free(sim_call *call, sim_stream *stream, sim_range *range) {
    if (stream->capture == NULL) {
        range->released = true;
        return sim_submit(call, stream, (sim_work){0}, NULL);
    }
    if (stream->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    bool *freed = freed_inside(stream->capture->graph->memory, range);
    if (freed == NULL || *freed) return sim_capture_break(stream, CUDA_ERROR_INVALID_VALUE);
    *freed = true;
    sim_capture_append(stream, (sim_work){.sort = SIM_WORK_GRAPH_FREE, .dst = range->address, .bytes = range->bytes});
    return CUDA_SUCCESS;
}

void sim_graph_free_now(sim_range *range) { range->released = true; }

static sim_entry_info entry_of(const sim_graph_memory *memory) {
    return (sim_entry_info){
        .kind = TIDESIM_GRAPH, .device = memory->device, .address = memory->ranges[0]->address, .bytes = memory->bytes};
}

// Allocations that the graph does not free itself must be free before they are made again.
static bool may_launch(const sim_graph_memory *memory) {
    for (size_t i = 0; i < memory->n; i++)
        if (memory->open && !memory->freed_inside[i] && !memory->ranges[i]->released) return false;
    return true;
}

CUresult sim_graph_memory_open(sim_graph_memory *memory) {
    if (memory == NULL || memory->n == 0) return CUDA_SUCCESS;
    if (!may_launch(memory)) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < memory->n; i++) memory->ranges[i]->released = false;
    if (memory->open) return CUDA_SUCCESS;
    uint64_t bytes = 0;
    for (size_t i = 0; i < memory->n; i++) bytes += memory->ranges[i]->span;
    memory->bytes = sim_round_up(bytes, STEP_BYTES);
    if (!sim_take(memory->device, memory->bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < memory->n; i++)
        if (!sim_map_open(memory->ranges[i]->address, memory->ranges[i]->span)) return CUDA_ERROR_OUT_OF_MEMORY;
    memory->open = true;
    const sim_entry_info entry = entry_of(memory);
    sim_ledger_alloc(&entry);
    return CUDA_SUCCESS;
}

void sim_graph_memory_unref(sim_graph_memory *memory) {
    if (memory == NULL || --memory->refs != 0) return;
    if (memory->open) {
        const sim_entry_info entry = entry_of(memory);
        sim_ledger_free(&entry);
        sim_give(memory->device, memory->bytes);
    }
    for (size_t i = 0; i < memory->n; i++) {
        sim_range_remove(memory->ranges[i]);
        sim_map_free(memory->ranges[i]->address, memory->ranges[i]->span);
        free(memory->ranges[i]);
    }
    free(memory->ranges);
    free(memory->freed_inside);
    free(memory);
}
