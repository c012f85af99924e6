// SPDX-License-Identifier: MIT
//
// Graphs: what sim_capture.c (filling them), sim_graph.c (running them) and sim_graph_memory.c share.
#ifndef TIDE_TESTS_CUDA_DRIVER_SIM_GRAPH_H
#define TIDE_TESTS_CUDA_DRIVER_SIM_GRAPH_H

#include "tests/cuda/driver/sim.h"

/// A piece of work and the nodes that it follows, all with lower numbers.
typedef struct sim_node {
    sim_work work;
    size_t n_deps;
    uint32_t *deps;
    uint32_t lane; ///< which of the captured streams it came from
} sim_node;

/// Memory of a graph's allocation nodes: addresses from the capture on, bytes from the first launch on. Shared by a
/// graph and what was made of it.
typedef struct sim_graph_memory {
    uint32_t refs;
    sim_device *device;
    bool open;      ///< it has memory
    uint64_t bytes; ///< that the device gave
    size_t n;
    sim_range **ranges;
    bool *freed_inside; ///< [n]: the graph has a node that frees it
} sim_graph_memory;

struct sim_graph {
    sim_object object;
    size_t n_nodes, cap;
    sim_node *nodes;
    uint32_t n_lanes;
    sim_graph_memory *memory;
    bool capturing;
};

typedef struct sim_graph_exec {
    sim_object object;
    sim_graph *graph; ///< a copy of its own, which is no object
    sim_ctx *ctx;
    sim_queue **lanes;
    sim_point *last; ///< end of the last launch
} sim_graph_exec;

sim_graph *sim_graph_new(void);
void sim_graph_delete(sim_graph *graph);
/// Takes `work`. @return the number of the node
uint32_t sim_graph_add(sim_graph *graph, sim_work work, const uint32_t *deps, size_t n_deps, uint32_t lane);
sim_graph *sim_graph_copy(const sim_graph *graph);
void sim_graph_memory_unref(sim_graph_memory *memory);
/// Before a launch: gives the memory its bytes.
CUresult sim_graph_memory_open(sim_graph_memory *memory);
/// Allocation and free nodes of a stream that captures; a free of a graph's memory in a stream that does not.
CUresult sim_graph_alloc(sim_stream *stream, CUdeviceptr *dptr, uint64_t bytes);
CUresult sim_graph_free(sim_call *call, sim_stream *stream, sim_range *range);
void sim_graph_free_now(sim_range *range);

struct sim_capture {
    sim_capture *next; ///< among the live ones
    uint64_t id;
    CUstreamCaptureMode mode;
    uint32_t tid; ///< of the thread that began it
    bool invalid;
    sim_stream *origin;
    sim_graph *graph;
};

/// Appends to the graph of the stream's capture; deps become the new node.
uint32_t sim_capture_append(sim_stream *stream, sim_work work);

#endif
