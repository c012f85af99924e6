// SPDX-License-Identifier: MIT
//
// Events: a moment of a stream that others can wait for and ask about (cuda.h, "Event Management").
#include "tests/cuda/driver/sim.h"

SIM_ENTRY(cuEventCreate, (CUevent * phEvent, unsigned int Flags), (phEvent, Flags)) {
    const unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    if (phEvent == NULL || Flags & ~known) return CUDA_ERROR_INVALID_VALUE;
    if (Flags & CU_EVENT_INTERPROCESS && !(Flags & CU_EVENT_DISABLE_TIMING)) return CUDA_ERROR_INVALID_VALUE;
    sim_event *event = SIM_NEW(sim_event);
    event->ctx = call->ctx;
    event->flags = Flags;
    sim_object_add(&event->object, SIM_EVENT);
    *phEvent = (CUevent)event;
    return CUDA_SUCCESS;
}

void sim_event_forget(sim_event *event) {
    sim_point_unref(event->point);
    event->point = NULL;
    event->clock.n = 0;
    event->capture_id = 0;
    free(event->nodes);
    event->nodes = NULL;
    event->n_nodes = 0;
}

static void event_delete(sim_object *object, void *user) {
    sim_event *event = (sim_event *)object;
    if (user != NULL && event->ctx != user) return;
    sim_event_forget(event);
    sim_clock_done(&event->clock);
    sim_object_remove(object);
    free(event);
}

void sim_events_of_ctx_free(sim_ctx *ctx) { sim_objects_each(SIM_EVENT, event_delete, ctx); }

static sim_event *event_of(CUevent handle) { return sim_object_of(handle, SIM_EVENT); }

// cuda.h: an event may be destroyed before it is done; who waits for it goes on waiting for the moment.
SIM_ENTRY(cuEventDestroy_v2, (CUevent hEvent), (hEvent)) {
    sim_event *event = event_of(hEvent);
    if (event == NULL) return CUDA_ERROR_INVALID_HANDLE;
    event_delete(&event->object, NULL);
    return CUDA_SUCCESS;
}

// cuda.h, cuEventRecord: "hEvent and hStream must be from the same context otherwise CUDA_ERROR_INVALID_HANDLE".
static CUresult record(sim_call *call, CUevent hEvent, CUstream hStream) {
    sim_event *event = event_of(hEvent);
    CUresult why;
    sim_stream *stream = event != NULL ? sim_stream_of(call, hStream, &why) : NULL;
    if (stream == NULL) return CUDA_ERROR_INVALID_HANDLE;
    if (event->ctx != stream->ctx) {
        sim_misused("an event of one context is recorded in a stream of another");
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (stream->capture != NULL) return sim_capture_record(event, stream);
    sim_point *point;
    SIM_TRY(sim_submit(call, stream, (sim_work){0}, &point));
    sim_event_forget(event);
    event->point = point;
    event->stream_id = stream->id;
    event->seq = stream->seq;
    sim_clock_join_all(&event->clock, &stream->clock);
    return CUDA_SUCCESS;
}

SIM_ENTRY_PT(cuEventRecord, _ptsz, (CUevent hEvent, CUstream hStream), (hEvent, hStream)) {
    return record(call, hEvent, hStream);
}

SIM_ENTRY_PT(cuEventRecordWithFlags, _ptsz, (CUevent hEvent, CUstream hStream, unsigned int flags),
             (hEvent, hStream, flags)) {
    if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
    return record(call, hEvent, hStream);
}

// cuda.h, cuStreamWaitEvent: the event may be of another context; one that was never recorded is nothing to wait for.
SIM_ENTRY_PT(cuStreamWaitEvent, _ptsz, (CUstream hStream, CUevent hEvent, unsigned int Flags),
             (hStream, hEvent, Flags)) {
    CUresult why;
    sim_event *event = event_of(hEvent);
    sim_stream *stream = event != NULL ? sim_stream_of(call, hStream, &why) : NULL;
    if (stream == NULL) return CUDA_ERROR_INVALID_HANDLE;
    if (Flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
    if (event->capture_id != 0) return sim_capture_wait(stream, event);
    // A capture cannot follow what lies outside of it: cuda.h, CUDA_ERROR_STREAM_CAPTURE_ISOLATION.
    if (stream->capture != NULL)
        return event->point == NULL ? CUDA_SUCCESS : sim_capture_break(stream, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    if (event->point == NULL) return CUDA_SUCCESS;
    sim_clock_join(&stream->clock, event->stream_id, event->seq);
    sim_clock_join_all(&stream->clock, &event->clock);
    return sim_submit_after(call, stream, (sim_work){0}, &event->point, 1, NULL);
}

// An event that was last recorded in a capture: 907 while that goes on, and it is invalidated; afterwards 1 (measured).
static CUresult captured(const sim_event *event) {
    if (event->capture_id == 0) return CUDA_SUCCESS;
    sim_capture *capture = sim_capture_find(event->capture_id);
    if (capture == NULL) return CUDA_ERROR_INVALID_VALUE;
    sim_capture_invalidate(capture);
    return CUDA_ERROR_CAPTURED_EVENT;
}

SIM_ENTRY(cuEventQuery, (CUevent hEvent), (hEvent)) {
    const sim_event *event = event_of(hEvent);
    if (event == NULL) return CUDA_ERROR_INVALID_HANDLE;
    SIM_TRY(captured(event));
    return event->point == NULL || sim_point_is_done(event->point) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

SIM_ENTRY(cuEventSynchronize, (CUevent hEvent), (hEvent)) {
    const sim_event *event = event_of(hEvent);
    if (event == NULL) return CUDA_ERROR_INVALID_HANDLE;
    SIM_TRY(captured(event));
    if (event->point == NULL) return CUDA_SUCCESS;
    sim_point *point = sim_point_ref(event->point);
    sim_wait(point);
    sim_point_unref(point);
    sim_pools_synchronised();
    return CUDA_SUCCESS;
}

static CUresult elapsed(float *pMilliseconds, CUevent hStart, CUevent hEnd) {
    const sim_event *start = event_of(hStart), *end = start != NULL ? event_of(hEnd) : NULL;
    if (end == NULL) return CUDA_ERROR_INVALID_HANDLE;
    if (pMilliseconds == NULL) return CUDA_ERROR_INVALID_VALUE;
    if (start->point == NULL || end->point == NULL) return CUDA_ERROR_INVALID_HANDLE;
    if ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) return CUDA_ERROR_INVALID_HANDLE;
    if (!sim_point_is_done(start->point) || !sim_point_is_done(end->point)) return CUDA_ERROR_NOT_READY;
    const double ns = (double)sim_point_time(end->point) - (double)sim_point_time(start->point);
    *pMilliseconds = (float)(ns / 1e6);
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuEventElapsedTime, (float *pMilliseconds, CUevent hStart, CUevent hEnd), (pMilliseconds, hStart, hEnd)) {
    return elapsed(pMilliseconds, hStart, hEnd);
}

SIM_ENTRY(cuEventElapsedTime_v2, (float *pMilliseconds, CUevent hStart, CUevent hEnd), (pMilliseconds, hStart, hEnd)) {
    return elapsed(pMilliseconds, hStart, hEnd);
}
