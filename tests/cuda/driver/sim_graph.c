// SPDX-License-Identifier: MIT
//
// Graphs and their launch. A launch runs the nodes of each stream that was captured in a thread of its own, and nodes
// follow others by points: so two nodes that the graph does not order run at the same time, and ThreadSanitizer sees
// them as unordered.
#include <unistd.h>

#include "tests/cuda/driver/sim_graph.h"

sim_graph *sim_graph_new(void) { return SIM_NEW(sim_graph); }

void sim_graph_delete(sim_graph *graph) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        sim_work_done(&graph->nodes[i].work);
        free(graph->nodes[i].deps);
    }
    sim_graph_memory_unref(graph->memory);
    free(graph->nodes);
    free(graph);
}

static uint32_t *copy_of(const uint32_t *numbers, size_t n) {
    uint32_t *copy = sim_new((n + 1) * sizeof *copy);
    if (n != 0) memcpy(copy, numbers, n * sizeof *copy);
    return copy;
}

uint32_t sim_graph_add(sim_graph *graph, sim_work work, const uint32_t *deps, size_t n_deps, uint32_t lane) {
    if (graph->n_nodes == graph->cap) {
        graph->cap = graph->cap == 0 ? 16 : 2 * graph->cap;
        graph->nodes = realloc(graph->nodes, graph->cap * sizeof *graph->nodes);
        if (graph->nodes == NULL) abort();
    }
    graph->nodes[graph->n_nodes] = (sim_node){work, n_deps, copy_of(deps, n_deps), lane};
    return (uint32_t)graph->n_nodes++;
}

sim_graph *sim_graph_copy(const sim_graph *graph) {
    sim_graph *copy = sim_graph_new();
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const sim_node *node = &graph->nodes[i];
        sim_graph_add(copy, sim_work_clone(&node->work), node->deps, node->n_deps, node->lane);
    }
    copy->n_lanes = graph->n_lanes;
    copy->memory = graph->memory;
    if (copy->memory != NULL) copy->memory->refs++;
    copy->object.id = graph->object.id;
    return copy;
}

static sim_graph *graph_of(CUgraph handle) { return sim_object_of(handle, SIM_GRAPH); }

SIM_ENTRY(cuGraphCreate, (CUgraph * phGraph, unsigned int flags), (phGraph, flags)) {
    if (phGraph == NULL || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    sim_graph *graph = sim_graph_new();
    graph->n_lanes = 1;
    sim_object_add(&graph->object, SIM_GRAPH);
    *phGraph = (CUgraph)graph;
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuGraphDestroy, (CUgraph hGraph), (hGraph)) {
    sim_graph *graph = graph_of(hGraph);
    if (graph == NULL || graph->capturing) return CUDA_ERROR_INVALID_VALUE;
    sim_object_remove(&graph->object);
    sim_graph_delete(graph);
    return CUDA_SUCCESS;
}

// Handles of nodes are numbers that only say which one it is: no call of the simulation takes one.
SIM_ENTRY(cuGraphGetNodes, (CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes), (hGraph, nodes, numNodes)) {
    const sim_graph *graph = graph_of(hGraph);
    if (graph == NULL || numNodes == NULL) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; nodes != NULL && i < *numNodes; i++)
        nodes[i] = i < graph->n_nodes ? (CUgraphNode)(uintptr_t)((uintptr_t)graph + i) : NULL;
    if (nodes == NULL || *numNodes > graph->n_nodes) *numNodes = graph->n_nodes;
    return CUDA_SUCCESS;
}

static CUresult instantiate(sim_call *call, CUgraphExec *out, CUgraph hGraph, cuuint64_t flags) {
    const sim_graph *graph = graph_of(hGraph);
    const cuuint64_t known = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                             CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
    if (graph == NULL || out == NULL || graph->capturing) return CUDA_ERROR_INVALID_VALUE;
    if (flags & ~known) return CUDA_ERROR_INVALID_VALUE;
    // Not simulated: memory that each launch frees first, and launches from a device.
    if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) return CUDA_ERROR_NOT_SUPPORTED;
    sim_graph_exec *exec = SIM_NEW(sim_graph_exec);
    exec->graph = sim_graph_copy(graph);
    exec->ctx = call->ctx;
    exec->lanes = sim_new((graph->n_lanes + 1) * sizeof(sim_queue *));
    for (uint32_t i = 0; i < graph->n_lanes; i++) exec->lanes[i] = sim_queue_new();
    sim_object_add(&exec->object, SIM_GRAPH_EXEC);
    *out = (CUgraphExec)exec;
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuGraphInstantiate_v2,
          (CUgraphExec * phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode, char *logBuffer, size_t bufferSize),
          (phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize)) {
    return instantiate(call, phGraphExec, hGraph, 0);
}

SIM_ENTRY(cuGraphInstantiateWithFlags, (CUgraphExec * phGraphExec, CUgraph hGraph, unsigned long long flags),
          (phGraphExec, hGraph, flags)) {
    return instantiate(call, phGraphExec, hGraph, flags);
}

SIM_ENTRY_PT(cuGraphInstantiateWithParams, _ptsz,
             (CUgraphExec * phGraphExec, CUgraph hGraph, CUDA_GRAPH_INSTANTIATE_PARAMS *params),
             (phGraphExec, hGraph, params)) {
    if (params == NULL) return CUDA_ERROR_INVALID_VALUE;
    const CUresult got =
        instantiate(call, phGraphExec, hGraph, params->flags & ~(cuuint64_t)CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD);
    params->result_out = got == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
    return got;
}

static sim_graph_exec *exec_of(CUgraphExec handle) { return sim_object_of(handle, SIM_GRAPH_EXEC); }

// cuda.h, cuGraphLaunch: launches of one executable graph follow each other, and what was in the stream before.
static CUresult run_in(sim_call *call, sim_graph_exec *exec, sim_stream *stream) {
    sim_point *begin, **done = sim_new((exec->graph->n_nodes + 1) * sizeof *done);
    const CUresult got = sim_submit_after(call, stream, (sim_work){0}, &exec->last, exec->last != NULL, &begin);
    if (got != CUDA_SUCCESS) {
        free(done);
        return got;
    }
    for (size_t i = 0; i < exec->graph->n_nodes; i++) {
        const sim_node *node = &exec->graph->nodes[i];
        sim_work work = sim_work_clone(&node->work);
        work.graph_id = (uint32_t)exec->graph->object.id;
        work.node_id = (uint32_t)i + 1;
        sim_point **deps = sim_new((node->n_deps + 1) * sizeof *deps);
        size_t n = 0;
        for (; n < node->n_deps; n++) deps[n] = done[node->deps[n]];
        if (n == 0) deps[n++] = begin;
        done[i] = sim_queue_push(exec->lanes[node->lane], work, deps, n, stream, call->correlation);
        free(deps);
    }
    sim_point_unref(exec->last);
    (void)sim_submit_after(call, stream, (sim_work){0}, done, exec->graph->n_nodes, &exec->last);
    for (size_t i = 0; i < exec->graph->n_nodes; i++) sim_point_unref(done[i]);
    sim_point_unref(begin);
    free(done);
    return CUDA_SUCCESS;
}

SIM_ENTRY_PT(cuGraphLaunch, _ptsz, (CUgraphExec hGraphExec, CUstream hStream), (hGraphExec, hStream)) {
    CUresult why;
    sim_graph_exec *exec = exec_of(hGraphExec);
    if (exec == NULL) return CUDA_ERROR_INVALID_VALUE;
    sim_stream *stream = sim_stream_of(call, hStream, &why);
    if (stream == NULL) return why;
    // A graph as a node of another one is not simulated.
    if (stream->capture != NULL) return sim_capture_break(stream, CUDA_ERROR_NOT_SUPPORTED);
    SIM_TRY(sim_graph_memory_open(exec->graph->memory));
    return run_in(call, exec, stream);
}

SIM_ENTRY_PT(cuGraphUpload, _ptsz, (CUgraphExec hGraphExec, CUstream hStream), (hGraphExec, hStream)) {
    CUresult why;
    if (exec_of(hGraphExec) == NULL) return CUDA_ERROR_INVALID_VALUE;
    return sim_stream_of(call, hStream, &why) == NULL ? why : CUDA_SUCCESS;
}

// cuda.h: a graph that runs goes on. Its nodes have all they need; memory of its own is waited for (GUESS).
SIM_ENTRY(cuGraphExecDestroy, (CUgraphExec hGraphExec), (hGraphExec)) {
    sim_graph_exec *exec = exec_of(hGraphExec);
    if (exec == NULL) return CUDA_ERROR_INVALID_VALUE;
    sim_object_remove(&exec->object);
    if (exec->last != NULL && exec->graph->memory != NULL) sim_wait(exec->last);
    for (uint32_t i = 0; i < exec->graph->n_lanes; i++) sim_queue_close(exec->lanes[i]);
    free(exec->lanes);
    sim_point_unref(exec->last);
    sim_graph_delete(exec->graph);
    free(exec);
    return CUDA_SUCCESS;
}

// Memory of graphs goes with them here, so there is never any that is unused (GUESS).
SIM_ENTRY(cuDeviceGraphMemTrim, (CUdevice device), (device)) {
    return sim_device_of(device) != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

SIM_ENTRY(cuDeviceGetGraphMemAttribute, (CUdevice device, CUgraphMem_attribute attr, void *value),
          (device, attr, value)) {
    if (sim_device_of(device) == NULL) return CUDA_ERROR_INVALID_DEVICE;
    if (value == NULL || attr > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) return CUDA_ERROR_INVALID_VALUE;
    const bool high = attr == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH || attr == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;
    const tidesim_count count = sim_ledger_count(device, TIDESIM_GRAPH);
    const cuuint64_t number = high ? count.peak_bytes : count.live_bytes;
    memcpy(value, &number, sizeof number);
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuDeviceSetGraphMemAttribute, (CUdevice device, CUgraphMem_attribute attr, void *value),
          (device, attr, value)) {
    if (sim_device_of(device) == NULL) return CUDA_ERROR_INVALID_DEVICE;
    return value == NULL || attr > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
