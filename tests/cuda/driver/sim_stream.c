// SPDX-License-Identifier: MIT
//
// Streams, and how work gets into them: the default stream's order with others, and what a stream is known to follow.
//
// cuda.h and the page "Stream synchronization behavior": work of the legacy default stream waits for all blocking
// streams of its context, and their later work waits for it. A stream of CU_STREAM_NON_BLOCKING is outside of that; a
// thread's own default stream (CU_STREAM_PER_THREAD) is a blocking one.
#include <pthread.h>

#include "tests/cuda/driver/sim.h"

#define LEGACY_ID 7U // measured: cuStreamGetId of the legacy stream; the first created one has 13
static uint64_t last_stream_id = 12;

void sim_clock_join(sim_clock *clock, uint64_t stream_id, uint64_t seq) {
    for (size_t i = 0; i < clock->n; i++) {
        if (clock->ticks[i].stream_id != stream_id) continue;
        if (clock->ticks[i].seq < seq) clock->ticks[i].seq = seq;
        return;
    }
    if (clock->n == clock->cap) {
        clock->cap = clock->cap == 0 ? 4 : 2 * clock->cap;
        clock->ticks = realloc(clock->ticks, clock->cap * sizeof *clock->ticks);
        if (clock->ticks == NULL) abort();
    }
    clock->ticks[clock->n++] = (struct sim_tick){stream_id, seq};
}

void sim_clock_join_all(sim_clock *clock, const sim_clock *other) {
    for (size_t i = 0; i < other->n; i++) sim_clock_join(clock, other->ticks[i].stream_id, other->ticks[i].seq);
}

bool sim_clock_has(const sim_clock *clock, uint64_t stream_id, uint64_t seq) {
    for (size_t i = 0; i < clock->n; i++)
        if (clock->ticks[i].stream_id == stream_id) return clock->ticks[i].seq >= seq;
    return false;
}

void sim_clock_done(sim_clock *clock) {
    free(clock->ticks);
    *clock = (sim_clock){0};
}

static sim_entry_info stream_entry(const sim_ctx *ctx, uint64_t bytes) {
    return (sim_entry_info){.kind = TIDESIM_CONTEXT,
                            .device = ctx->device,
                            .address = (uint64_t)(uintptr_t)&ctx->stream_bytes,
                            .bytes = bytes,
                            .ctx = ctx,
                            .quiet = true};
}

// Measured: the first streams cost nothing, a thousand 548 MiB, and their end gives nothing back. Off unless
// TIDESIM_STREAM_BYTES says how much each takes; that 32 are free is a GUESS.
static bool take_for_stream(sim_ctx *ctx) {
    enum { FREE = 32 };
    const uint64_t n = ctx->n_streams + 1, more = n > ctx->most_streams && n > FREE ? sim.stream_bytes : 0;
    if (!sim_take(ctx->device, more)) return false;
    ctx->n_streams = n;
    if (n > ctx->most_streams) ctx->most_streams = n;
    if (more == 0) return true;
    const sim_entry_info before = stream_entry(ctx, ctx->stream_bytes),
                         after = stream_entry(ctx, ctx->stream_bytes + more);
    if (ctx->stream_bytes != 0) sim_ledger_free(&before);
    ctx->stream_bytes += more;
    sim_ledger_alloc(&after);
    return true;
}

static void give_of_streams(sim_ctx *ctx) {
    const sim_entry_info entry = stream_entry(ctx, ctx->stream_bytes);
    if (ctx->stream_bytes != 0) sim_ledger_free(&entry);
    sim_give(ctx->device, ctx->stream_bytes);
    ctx->stream_bytes = ctx->n_streams = ctx->most_streams = 0;
}

sim_stream *sim_stream_new(sim_ctx *ctx, uint32_t flags, int priority) {
    sim_stream *stream = SIM_NEW(sim_stream);
    stream->ctx = ctx;
    stream->flags = flags;
    stream->priority = priority;
    stream->queue = sim_queue_new();
    stream->is_legacy = ctx->legacy == NULL;
    stream->id = stream->is_legacy && !ctx->device->had_stream ? LEGACY_ID : ++last_stream_id;
    ctx->device->had_stream = true;
    if (!stream->is_legacy) {
        stream->next = ctx->streams;
        ctx->streams = stream;
        sim_object_add(&stream->object, SIM_STREAM);
    }
    sim_hook_life(true, true, ctx, stream);
    return stream;
}

static void stream_delete(sim_stream *stream) {
    sim_hook_life(true, false, stream->ctx, stream);
    sim_capture_leave(stream);
    if (!stream->is_legacy) sim_object_remove(&stream->object);
    sim_queue_close(stream->queue);
    sim_point_unref(stream->tail);
    sim_clock_done(&stream->clock);
    free(stream->capture_deps);
    free(stream);
}

static pthread_key_t thread_ends;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void destroy_mine(sim_object *object, void *user) {
    (void)user;
    sim_stream *stream = (sim_stream *)object;
    if (stream->is_per_thread && stream->owner_tid == sim_tid()) sim_stream_destroy(stream);
}

static void on_thread_end(void *value) {
    (void)value;
    if (sim_is_forked_child()) return;
    sim_lock_take();
    sim_objects_each(SIM_STREAM, destroy_mine, NULL);
    sim_lock_drop();
}

static void make_key(void) { pthread_key_create(&thread_ends, on_thread_end); }

// A thread's own default streams go when it ends (GUESS).
static sim_stream *per_thread(sim_ctx *ctx) {
    pthread_once(&once, make_key);
    pthread_setspecific(thread_ends, &thread_ends);
    const uint32_t tid = sim_tid();
    for (sim_stream *stream = ctx->streams; stream != NULL; stream = stream->next)
        if (stream->is_per_thread && stream->owner_tid == tid) return stream;
    sim_stream *stream = sim_stream_new(ctx, 0, 0);
    stream->is_per_thread = stream->object.own = true;
    stream->owner_tid = tid;
    return stream;
}

sim_stream *sim_stream_of(sim_call *call, CUstream handle, CUresult *why) {
    const uintptr_t number = (uintptr_t)handle;
    *why = CUDA_ERROR_INVALID_HANDLE;
    if (number == (uintptr_t)CU_STREAM_PER_THREAD || (number == 0 && call->row->needs & SIM_PER_THREAD))
        return per_thread(call->ctx);
    if (number == 0 || number == (uintptr_t)CU_STREAM_LEGACY) return call->ctx->legacy;
    return sim_object_of(handle, SIM_STREAM);
}

// Work.

static bool is_blocking(const sim_stream *stream) { return (stream->flags & CU_STREAM_NON_BLOCKING) == 0; }

typedef struct dep_list {
    sim_point **items;
    size_t n;
} dep_list;

static void follow(sim_stream *stream, sim_stream *before, dep_list *deps) {
    deps->items = realloc(deps->items, (deps->n + 1) * sizeof(sim_point *));
    if (deps->items == NULL) abort();
    deps->items[deps->n++] = before->tail;
    sim_clock_join(&stream->clock, before->id, before->seq);
    sim_clock_join_all(&stream->clock, &before->clock);
}

static void follow_default_order(sim_stream *stream, dep_list *deps) {
    sim_stream *legacy = stream->ctx->legacy;
    if (stream != legacy) {
        if (!is_blocking(stream) || stream->legacy_seen == legacy->seq) return;
        follow(stream, legacy, deps);
        stream->legacy_seen = legacy->seq;
        return;
    }
    for (sim_stream *other = stream->ctx->streams; other != NULL; other = other->next) {
        if (!is_blocking(other) || other->seen_by_legacy == other->seq) continue;
        follow(stream, other, deps);
        other->seen_by_legacy = other->seq;
    }
}

CUresult sim_submit_after(sim_call *call, sim_stream *stream, sim_work work, sim_point *const *before, size_t n_before,
                          sim_point **point) {
    if (point != NULL) *point = NULL;
    if (stream->capture != NULL) return sim_capture_add(stream, work);
    if (stream->is_legacy && sim_capture_blocks_legacy(stream->ctx)) {
        sim_work_done(&work);
        return sim_capture_break(stream, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    }
    dep_list deps = {0};
    deps.items = sim_new((n_before + 1) * sizeof(sim_point *));
    for (; deps.n < n_before; deps.n++) deps.items[deps.n] = before[deps.n];
    follow_default_order(stream, &deps);
    sim_point *done = sim_queue_push(stream->queue, work, deps.items, deps.n, stream, call->correlation);
    free(deps.items);
    sim_point_unref(stream->tail);
    stream->tail = done;
    stream->seq++;
    if (point != NULL) *point = sim_point_ref(done);
    return CUDA_SUCCESS;
}

CUresult sim_submit(sim_call *call, sim_stream *stream, sim_work work, sim_point **point) {
    return sim_submit_after(call, stream, work, NULL, 0, point);
}

// Waiting for all of a context.

typedef struct tail_list {
    sim_point **items;
    size_t n;
} tail_list;

static void add_tail(tail_list *tails, sim_point *point) {
    if (point == NULL) return;
    tails->items = realloc(tails->items, (tails->n + 1) * sizeof(sim_point *));
    if (tails->items == NULL) abort();
    tails->items[tails->n++] = sim_point_ref(point);
}

static void add_ctx(tail_list *tails, const sim_ctx *ctx) {
    if (!ctx->active) return;
    add_tail(tails, ctx->legacy->tail);
    for (const sim_stream *stream = ctx->streams; stream != NULL; stream = stream->next) add_tail(tails, stream->tail);
    for (size_t i = 0; i < ctx->n_orphans; i++) add_tail(tails, ctx->orphans[i]);
}

static void wait_all(tail_list *tails) {
    sim_lock_drop();
    for (size_t i = 0; i < tails->n; i++) sim_point_wait(tails->items[i]);
    sim_lock_take();
    for (size_t i = 0; i < tails->n; i++) sim_point_unref(tails->items[i]);
    free(tails->items);
}

void sim_ctx_drain(sim_ctx *ctx) {
    tail_list tails = {0};
    add_ctx(&tails, ctx);
    wait_all(&tails);
}

struct on_device {
    tail_list tails;
    const sim_device *device;
};

static void add_if_on(sim_object *object, void *user) {
    struct on_device *on = user;
    const sim_ctx *ctx = (const sim_ctx *)object;
    if (on->device == NULL || ctx->device == on->device) add_ctx(&on->tails, ctx);
}

void sim_device_drain(const sim_device *device) {
    struct on_device on = {.device = device};
    sim_objects_each(SIM_CONTEXT, add_if_on, &on);
    wait_all(&on.tails);
}

SIM_API void tidesim_drain(void) {
    sim_lock_take();
    sim_device_drain(NULL);
    sim_lock_drop();
}

// Streams that were destroyed with work to come: a wait for the context waits for them, too.
static void keep_orphan(sim_ctx *ctx, sim_point *tail) {
    size_t n = 0;
    for (size_t i = 0; i < ctx->n_orphans; i++) {
        if (sim_point_is_done(ctx->orphans[i]))
            sim_point_unref(ctx->orphans[i]);
        else
            ctx->orphans[n++] = ctx->orphans[i];
    }
    ctx->n_orphans = n;
    if (tail == NULL || sim_point_is_done(tail)) return;
    ctx->orphans = realloc(ctx->orphans, (n + 1) * sizeof(sim_point *));
    if (ctx->orphans == NULL) abort();
    ctx->orphans[ctx->n_orphans++] = sim_point_ref(tail);
}

void sim_stream_destroy(sim_stream *stream) {
    sim_stream **link = &stream->ctx->streams;
    while (*link != stream) link = &(*link)->next;
    *link = stream->next;
    if (!stream->is_per_thread) stream->ctx->n_streams--;
    keep_orphan(stream->ctx, stream->tail);
    stream_delete(stream);
}

void sim_streams_of_ctx_free(sim_ctx *ctx) {
    for (sim_stream *stream = ctx->streams, *next; stream != NULL; stream = next) {
        next = stream->next;
        stream_delete(stream);
    }
    stream_delete(ctx->legacy);
    give_of_streams(ctx);
    for (size_t i = 0; i < ctx->n_orphans; i++) sim_point_unref(ctx->orphans[i]);
    free(ctx->orphans);
    ctx->orphans = NULL;
    ctx->n_orphans = 0;
    ctx->streams = ctx->legacy = NULL;
}

// Entry points.

static CUresult create(sim_call *call, CUstream *phStream, unsigned flags, int priority) {
    if (phStream == NULL || flags & ~(unsigned)CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    // cuda.h, cuStreamCreateWithPriority: a priority outside of the range is clamped.
    if (priority > 0) priority = 0;
    if (priority < -5) priority = -5;
    if (!take_for_stream(call->ctx)) return CUDA_ERROR_OUT_OF_MEMORY;
    *phStream = (CUstream)sim_stream_new(call->ctx, flags, priority);
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuStreamCreate, (CUstream * phStream, unsigned int Flags), (phStream, Flags)) {
    return create(call, phStream, Flags, 0);
}

SIM_ENTRY(cuStreamCreateWithPriority, (CUstream * phStream, unsigned int flags, int priority),
          (phStream, flags, priority)) {
    return create(call, phStream, flags, priority);
}

// cuda.h: with work to come the call returns at once, and the resources go when the work is done.
SIM_ENTRY(cuStreamDestroy_v2, (CUstream hStream), (hStream)) {
    sim_stream *stream = (uintptr_t)hStream > 2 ? sim_object_of(hStream, SIM_STREAM) : NULL;
    if (stream == NULL) return CUDA_ERROR_INVALID_HANDLE;
    sim_stream_destroy(stream);
    return CUDA_SUCCESS;
}

#define STREAM_OR_RETURN(stream)                                                                                       \
    CUresult why_;                                                                                                     \
    sim_stream *stream = sim_stream_of(call, hStream, &why_);                                                          \
    if (stream == NULL) return why_

// Waiting for a stream that captures is a dependency that the graph cannot have. The legacy stream follows the others.
static CUresult capture_in_the_way(sim_stream *stream) {
    if (stream->capture != NULL) return sim_capture_break(stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    if (stream->is_legacy && sim_capture_blocks_legacy(stream->ctx))
        return sim_capture_break(stream, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    return CUDA_SUCCESS;
}

// The legacy stream's end comes after that of the blocking ones.
static tail_list tails_of(const sim_stream *stream) {
    tail_list tails = {0};
    add_tail(&tails, stream->tail);
    if (stream->is_legacy)
        for (const sim_stream *other = stream->ctx->streams; other != NULL; other = other->next)
            if (is_blocking(other)) add_tail(&tails, other->tail);
    return tails;
}

SIM_ENTRY_PT(cuStreamQuery, _ptsz, (CUstream hStream), (hStream)) {
    STREAM_OR_RETURN(stream);
    SIM_TRY(capture_in_the_way(stream));
    tail_list tails = tails_of(stream);
    bool done = true;
    for (size_t i = 0; i < tails.n; i++) {
        done = done && sim_point_is_done(tails.items[i]);
        sim_point_unref(tails.items[i]);
    }
    free(tails.items);
    return done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

SIM_ENTRY_PT(cuStreamSynchronize, _ptsz, (CUstream hStream), (hStream)) {
    STREAM_OR_RETURN(stream);
    SIM_TRY(capture_in_the_way(stream));
    tail_list tails = tails_of(stream);
    wait_all(&tails);
    sim_pools_synchronised();
    return CUDA_SUCCESS;
}

SIM_ENTRY_PT(cuStreamGetId, _ptsz, (CUstream hStream, unsigned long long *streamId), (hStream, streamId)) {
    STREAM_OR_RETURN(stream);
    if (streamId == NULL) return CUDA_ERROR_INVALID_VALUE;
    *streamId = stream->id;
    return CUDA_SUCCESS;
}

SIM_ENTRY_PT(cuStreamGetFlags, _ptsz, (CUstream hStream, unsigned int *flags), (hStream, flags)) {
    STREAM_OR_RETURN(stream);
    if (flags == NULL) return CUDA_ERROR_INVALID_VALUE;
    *flags = stream->flags;
    return CUDA_SUCCESS;
}

SIM_ENTRY_PT(cuStreamGetPriority, _ptsz, (CUstream hStream, int *priority), (hStream, priority)) {
    STREAM_OR_RETURN(stream);
    if (priority == NULL) return CUDA_ERROR_INVALID_VALUE;
    *priority = stream->priority;
    return CUDA_SUCCESS;
}

SIM_ENTRY_PT(cuStreamGetCtx, _ptsz, (CUstream hStream, CUcontext *pctx), (hStream, pctx)) {
    STREAM_OR_RETURN(stream);
    if (pctx == NULL) return CUDA_ERROR_INVALID_VALUE;
    *pctx = (CUcontext)stream->ctx;
    return CUDA_SUCCESS;
}

// No green contexts here.
SIM_ENTRY_PT(cuStreamGetCtx_v2, _ptsz, (CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx),
             (hStream, pCtx, pGreenCtx)) {
    STREAM_OR_RETURN(stream);
    if (pCtx == NULL || pGreenCtx == NULL) return CUDA_ERROR_INVALID_VALUE;
    *pCtx = (CUcontext)stream->ctx;
    *pGreenCtx = NULL;
    return CUDA_SUCCESS;
}

SIM_ENTRY_PT(cuStreamGetDevice, _ptsz, (CUstream hStream, CUdevice *device), (hStream, device)) {
    STREAM_OR_RETURN(stream);
    if (device == NULL) return CUDA_ERROR_INVALID_VALUE;
    *device = stream->ctx->device->ordinal;
    return CUDA_SUCCESS;
}

SIM_API uint32_t tidesim_stream_id(CUcontext context, CUstream handle) {
    sim_lock_take();
    const sim_ctx *ctx = sim_object_find(context, SIM_CONTEXT);
    const sim_stream *stream = (uintptr_t)handle > 2        ? sim_object_find(handle, SIM_STREAM)
                               : ctx != NULL && ctx->active ? ctx->legacy
                                                            : NULL;
    const uint32_t id = stream != NULL ? (uint32_t)stream->id : 0;
    sim_lock_drop();
    return id;
}
