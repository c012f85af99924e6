// SPDX-License-Identifier: MIT
//
// Stream capture (cuda.h, cuStreamBeginCapture, cuThreadExchangeStreamCaptureMode; programming guide, "Creating a graph
// using stream capture"). Work of a stream that captures becomes a node after those before it; a stream that waits for
// an event of the capture joins it; what the capture cannot express invalidates it, and then everything but its end
// says so.
#include "tests/cuda/driver/sim_graph.h"

static sim_capture *live; ///< one per origin stream
static _Thread_local CUstreamCaptureMode my_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

sim_capture *sim_capture_find(uint64_t id) {
    sim_capture *capture = live;
    while (capture != NULL && capture->id != id) capture = capture->next;
    return capture;
}

void sim_capture_invalidate(sim_capture *capture) { capture->invalid = true; }

uint64_t sim_n_captures(void) {
    uint64_t n = 0;
    for (const sim_capture *capture = live; capture != NULL; capture = capture->next) n++;
    return n;
}

// cuda.h, cuThreadExchangeStreamCaptureMode: unsafe calls are prohibited by an own capture that is not relaxed, and, to
// a thread of mode GLOBAL, by any other's of mode GLOBAL.
static bool forbids(const sim_capture *capture, uint32_t tid) {
    if (my_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
    if (capture->tid == tid && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED) return true;
    return my_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

// Measured: the call gets 900 and the capture is invalidated.
CUresult sim_capture_forbids(void) {
    CUresult result = CUDA_SUCCESS;
    for (sim_capture *capture = live; capture != NULL; capture = capture->next) {
        if (!forbids(capture, sim_tid())) continue;
        capture->invalid = true;
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return result;
}

static bool blocks_legacy(const sim_capture *capture, const sim_ctx *ctx) {
    for (const sim_stream *stream = ctx->streams; stream != NULL; stream = stream->next)
        if (stream->capture == capture && !(stream->flags & CU_STREAM_NON_BLOCKING)) return true;
    return false;
}

bool sim_capture_blocks_legacy(const sim_ctx *ctx) {
    for (const sim_capture *capture = live; capture != NULL; capture = capture->next)
        if (blocks_legacy(capture, ctx)) return true;
    return false;
}

CUresult sim_capture_break(sim_stream *stream, CUresult why) {
    for (sim_capture *capture = live; capture != NULL; capture = capture->next)
        if (stream->capture == capture || (stream->is_legacy && blocks_legacy(capture, stream->ctx)))
            capture->invalid = true;
    return why;
}

static uint32_t lane_of(sim_stream *stream) {
    sim_graph *graph = stream->capture->graph;
    if (stream->capture_lane == UINT32_MAX) stream->capture_lane = graph->n_lanes++;
    return stream->capture_lane;
}

static void set_deps(sim_stream *stream, const uint32_t *deps, size_t n) {
    uint32_t *copy = sim_new((n + 1) * sizeof *copy);
    if (n != 0) memcpy(copy, deps, n * sizeof *copy);
    free(stream->capture_deps);
    stream->capture_deps = copy;
    stream->n_capture_deps = n;
}

uint32_t sim_capture_append(sim_stream *stream, sim_work work) {
    const uint32_t node =
        sim_graph_add(stream->capture->graph, work, stream->capture_deps, stream->n_capture_deps, lane_of(stream));
    set_deps(stream, &node, 1);
    return node;
}

CUresult sim_capture_add(sim_stream *stream, sim_work work) {
    if (stream->capture->invalid) {
        sim_work_done(&work);
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    if (work.sort != SIM_WORK_NONE) sim_capture_append(stream, work);
    return CUDA_SUCCESS;
}

CUresult sim_capture_record(sim_event *event, sim_stream *stream) {
    if (stream->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    sim_event_forget(event);
    event->capture_id = stream->capture->id;
    event->n_nodes = stream->n_capture_deps;
    event->nodes = sim_new((event->n_nodes + 1) * sizeof *event->nodes);
    if (event->n_nodes != 0) memcpy(event->nodes, stream->capture_deps, event->n_nodes * sizeof *event->nodes);
    return CUDA_SUCCESS;
}

static void join_deps(sim_stream *stream, const sim_event *event) {
    uint32_t *all = sim_new((stream->n_capture_deps + event->n_nodes + 1) * sizeof *all);
    size_t n = stream->n_capture_deps;
    if (n != 0) memcpy(all, stream->capture_deps, n * sizeof *all);
    for (size_t i = 0; i < event->n_nodes; i++) {
        bool known = false;
        for (size_t k = 0; k < n; k++) known = known || all[k] == event->nodes[i];
        if (!known) all[n++] = event->nodes[i];
    }
    set_deps(stream, all, n);
    free(all);
}

// The stream joins the event's capture, or has joined it before. cuda.h: CUDA_ERROR_STREAM_CAPTURE_MERGE for two
// captures; GUESS: an event whose capture is over is CUDA_ERROR_INVALID_VALUE, as for a query (measured there).
CUresult sim_capture_wait(sim_stream *stream, sim_event *event) {
    sim_capture *capture = sim_capture_find(event->capture_id);
    if (capture == NULL) return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture != NULL && stream->capture != capture) {
        capture->invalid = true;
        return sim_capture_break(stream, CUDA_ERROR_STREAM_CAPTURE_MERGE);
    }
    if (capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream->is_legacy) {
        capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    if (stream->capture == NULL) stream->capture_lane = UINT32_MAX;
    stream->capture = capture;
    join_deps(stream, event);
    return CUDA_SUCCESS;
}

// Entry points.

SIM_ENTRY(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode), (mode)) {
    if (mode == NULL || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    const CUstreamCaptureMode before = my_mode;
    my_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

SIM_ENTRY_PT(cuStreamBeginCapture_v2, _ptsz, (CUstream hStream, CUstreamCaptureMode mode), (hStream, mode)) {
    CUresult why;
    sim_stream *stream = sim_stream_of(call, hStream, &why);
    if (stream == NULL) return why;
    if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    if (stream->is_legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->capture != NULL) return CUDA_ERROR_ILLEGAL_STATE;
    sim_capture *capture = SIM_NEW(sim_capture);
    *capture = (sim_capture){live, sim_next_id(), mode, sim_tid(), false, stream, sim_graph_new()};
    sim_object_add(&capture->graph->object, SIM_GRAPH);
    capture->graph->capturing = true;
    live = capture;
    stream->capture = capture;
    stream->capture_lane = UINT32_MAX;
    set_deps(stream, NULL, 0);
    lane_of(stream);
    return CUDA_SUCCESS;
}

// Work of another stream that the origin does not follow: the graph would lose its order (cuda.h,
// CUDA_ERROR_STREAM_CAPTURE_UNJOINED). Measured: a stream that joined and has no work of its own is no such thing.
static bool is_unjoined(const sim_capture *capture) {
    const sim_graph *graph = capture->graph;
    bool *followed = sim_new(graph->n_nodes + 1);
    for (size_t i = 0; i < capture->origin->n_capture_deps; i++) followed[capture->origin->capture_deps[i]] = true;
    for (size_t i = graph->n_nodes; i-- > 0;)
        for (size_t k = 0; followed[i] && k < graph->nodes[i].n_deps; k++) followed[graph->nodes[i].deps[k]] = true;
    bool all = true;
    for (size_t i = 0; i < graph->n_nodes; i++) all = all && followed[i];
    free(followed);
    return !all;
}

static void leave_all(sim_object *object, void *user) {
    sim_stream *stream = (sim_stream *)object;
    if (stream->capture == user) stream->capture = NULL;
}

static void capture_delete(sim_capture *capture) {
    sim_objects_each(SIM_STREAM, leave_all, capture);
    sim_capture **link = &live;
    while (*link != capture) link = &(*link)->next;
    *link = capture->next;
    free(capture);
}

SIM_ENTRY_PT(cuStreamEndCapture, _ptsz, (CUstream hStream, CUgraph *phGraph), (hStream, phGraph)) {
    CUresult why;
    sim_stream *stream = sim_stream_of(call, hStream, &why);
    if (stream == NULL) return why;
    if (phGraph == NULL) return CUDA_ERROR_INVALID_VALUE;
    *phGraph = NULL;
    sim_capture *capture = stream->capture;
    if (capture == NULL) return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->origin != stream) return sim_capture_break(stream, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->tid != sim_tid())
        return sim_capture_break(stream, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    const CUresult result = capture->invalid       ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                            : is_unjoined(capture) ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED
                                                   : CUDA_SUCCESS;
    sim_graph *graph = capture->graph;
    graph->capturing = false;
    capture_delete(capture);
    if (result == CUDA_SUCCESS) {
        *phGraph = (CUgraph)graph;
        return CUDA_SUCCESS;
    }
    sim_object_remove(&graph->object);
    sim_graph_delete(graph);
    return result;
}

static void discard(sim_capture *capture) {
    sim_graph *graph = capture->graph;
    capture_delete(capture);
    sim_object_remove(&graph->object);
    sim_graph_delete(graph);
}

// The stream goes. GUESS: with the stream in which it began a capture is over.
void sim_capture_leave(sim_stream *stream) {
    sim_capture *capture = stream->capture;
    if (capture == NULL) return;
    capture->invalid = true;
    if (capture->origin == stream) discard(capture);
    stream->capture = NULL;
}

// The context goes: its captures with it.
void sim_captures_of_ctx_free(const sim_ctx *ctx) {
    for (sim_capture *capture = live, *next; capture != NULL; capture = next) {
        next = capture->next;
        if (capture->origin->ctx == ctx) discard(capture);
    }
}

static CUstreamCaptureStatus status_of(const sim_stream *stream) {
    if (stream->capture == NULL) return CU_STREAM_CAPTURE_STATUS_NONE;
    return stream->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

// cuda.h: of the legacy stream while a blocking one captures, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT; that invalidates
// nothing.
static CUresult implicit(const sim_stream *stream) {
    return stream->is_legacy && sim_capture_blocks_legacy(stream->ctx) ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
                                                                       : CUDA_SUCCESS;
}

SIM_ENTRY_PT(cuStreamIsCapturing, _ptsz, (CUstream hStream, CUstreamCaptureStatus *captureStatus),
             (hStream, captureStatus)) {
    CUresult why;
    const sim_stream *stream = sim_stream_of(call, hStream, &why);
    if (stream == NULL) return why;
    if (captureStatus == NULL) return CUDA_ERROR_INVALID_VALUE;
    SIM_TRY(implicit(stream));
    *captureStatus = status_of(stream);
    return CUDA_SUCCESS;
}

static CUresult info(const sim_stream *stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                     size_t *n) {
    if (status == NULL) return CUDA_ERROR_INVALID_VALUE;
    SIM_TRY(implicit(stream));
    *status = status_of(stream);
    if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
    if (id != NULL) *id = stream->capture->id;
    if (graph != NULL) *graph = (CUgraph)stream->capture->graph;
    if (n != NULL) *n = stream->n_capture_deps;
    return CUDA_SUCCESS;
}

// Handles of nodes are not given: their number is.
SIM_ENTRY_PT(cuStreamGetCaptureInfo_v2, _ptsz,
             (CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out, CUgraph *graph_out,
              const CUgraphNode **dependencies_out, size_t *numDependencies_out),
             (hStream, captureStatus_out, id_out, graph_out, dependencies_out, numDependencies_out)) {
    CUresult why;
    const sim_stream *stream = sim_stream_of(call, hStream, &why);
    if (stream == NULL) return why;
    if (dependencies_out != NULL) return CUDA_ERROR_NOT_SUPPORTED;
    return info(stream, captureStatus_out, id_out, graph_out, numDependencies_out);
}

SIM_ENTRY_PT(cuStreamGetCaptureInfo_v3, _ptsz,
             (CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out, CUgraph *graph_out,
              const CUgraphNode **dependencies_out, const CUgraphEdgeData **edgeData_out, size_t *numDependencies_out),
             (hStream, captureStatus_out, id_out, graph_out, dependencies_out, edgeData_out, numDependencies_out)) {
    CUresult why;
    const sim_stream *stream = sim_stream_of(call, hStream, &why);
    if (stream == NULL) return why;
    if (dependencies_out != NULL || edgeData_out != NULL) return CUDA_ERROR_NOT_SUPPORTED;
    return info(stream, captureStatus_out, id_out, graph_out, numDependencies_out);
}
