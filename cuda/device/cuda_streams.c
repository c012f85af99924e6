// SPDX-License-Identifier: MIT
//
// Streams, and the work that is put on them. Streams of our own do not wait for the default stream, nor it for them
// (CU_STREAM_NON_BLOCKING); stream 0 is the default stream of the context.
//
// A copy from or to host memory that is not page-locked may wait for the stream (CUDA driver API, "API synchronization
// behavior"): that the call returns once it is queued holds for pinned memory.
#include <inttypes.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/device/backend.h"
#include "cuda/device/cuda_device.h"

// ---- holding a stream ----

static bool may_use(const cuda_stream *s, cuda_stream_use use) {
    return s != NULL && (use == CUDA_USE_MOVING || !s->closing);
}

/// The lock is held; it is given up while the stream's capture begins or is dropped. @return NULL with the reason
static cuda_stream *find(cuda_device *d, tide_stream_id stream, cuda_stream_use use, const char *what, tide_status *st,
                         tide_error *err) {
    cuda_stream *s = tide__id_table_get(&d->streams, stream);
    while (may_use(s, use) && s->changing && use != CUDA_USE_WORK) {
        pthread_cond_wait(&d->moved, &d->lock);
        s = tide__id_table_get(&d->streams, stream);
    }
    if (!may_use(s, use)) {
        *st = TIDE_FAIL(err, TIDE_ERR_INVALID, "cuda:%" PRId32 " has no stream %" PRIu64, d->index, stream);
        return NULL;
    }
    if (s->captured && use != CUDA_USE_WORK) {
        *st = TIDE_FAIL(err, TIDE_ERR_BUSY, "stream %" PRIu64 " of cuda:%" PRId32 " cannot %s while it is captured",
                        stream, d->index, what);
        return NULL;
    }
    return s;
}

tide_status cuda_hold(cuda_device *d, tide_stream_id stream, cuda_stream_use use, const char *what, cuda_held *out,
                      tide_error *err) {
    *out = (cuda_held){0};
    if (stream == 0) return TIDE_OK;
    tide_status st = TIDE_OK;
    pthread_mutex_lock(&d->lock);
    cuda_stream *s = find(d, stream, use, what, &st, err);
    if (s != NULL) {
        s->n_refs++;
        *out = (cuda_held){.stream = s, .handle = s->handle};
    }
    pthread_mutex_unlock(&d->lock);
    return st;
}

void cuda_let_go(cuda_device *d, cuda_held held) {
    if (held.stream == NULL) return;
    pthread_mutex_lock(&d->lock);
    TIDE_ASSERT(held.stream->n_refs > 0);
    held.stream->n_refs--;
    pthread_cond_broadcast(&d->moved);
    pthread_mutex_unlock(&d->lock);
}

tide_status cuda_on_stream(cuda_device *d, tide_stream_id stream, cuda_stream_use use, const char *what,
                           cuda_on_stream_fn fn, void *args, tide_error *err) {
    cuda_held held;
    TIDE_TRY(cuda_hold(d, stream, use, what, &held, err));
    tide_status st = cuda_enter(d, err);
    if (st == TIDE_OK) {
        st = fn(d, held.handle, args, err);
        cuda_leave(d);
    }
    cuda_let_go(d, held);
    return st;
}

// ---- their lives ----

static tide_status add_stream(cuda_device *d, cuda_stream *s, tide_error *err) {
    CUDA_TRY(d, d->cu->StreamCreate(&s->handle, CU_STREAM_NON_BLOCKING), err, "cuStreamCreate");
    s->id = tide_device_new_id();
    s->n_refs = 1;
    pthread_mutex_lock(&d->lock);
    const tide_status st = tide__id_table_put(&d->streams, s->id, s);
    pthread_mutex_unlock(&d->lock);
    if (st == TIDE_OK) return TIDE_OK;
    CUDA_GIVE_BACK(d, "cuStreamDestroy", d->cu->StreamDestroy(s->handle));
    return TIDE_FAIL(err, st, "no host memory for a stream of cuda:%" PRId32, d->index);
}

tide_status cuda_stream_create(void *self, int32_t index, tide_stream_id *out, tide_error *err) {
    cuda_device *d = cuda_at(self, index);
    cuda_stream *s = tide_host_calloc(1, sizeof *s);
    if (s == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no host memory for a stream of cuda:%" PRId32, index);
    tide_status st = cuda_enter(d, err);
    if (st == TIDE_OK) {
        st = add_stream(d, s, err);
        cuda_leave(d);
    }
    if (st != TIDE_OK) {
        tide_host_free(s);
        return st;
    }
    *out = s->id;
    return TIDE_OK;
}

/// Mark it as closing. @return the stream, held; NULL when there is none. *first: this call is the one that ends it
static cuda_stream *begin_close(cuda_device *d, tide_stream_id stream, bool *first) {
    pthread_mutex_lock(&d->lock);
    cuda_stream *s = tide__id_table_get(&d->streams, stream);
    while (s != NULL && s->changing) { // a capture that begins
        pthread_cond_wait(&d->moved, &d->lock);
        s = tide__id_table_get(&d->streams, stream);
    }
    *first = s != NULL && !s->closing;
    if (s != NULL) s->n_refs++;
    if (*first) {
        s->closing = true;
        s->changing = s->captured;
    }
    pthread_mutex_unlock(&d->lock);
    return s;
}

/// Out of the table once no other call uses it.
static void end_close(cuda_device *d, cuda_stream *s) {
    pthread_mutex_lock(&d->lock);
    tide__id_table_remove(&d->streams, s->id);
    while (s->n_refs > 2) pthread_cond_wait(&d->moved, &d->lock); // the table's and ours are left
    TIDE_ASSERT(!s->captured && !s->changing);
    pthread_mutex_unlock(&d->lock);
}

/// What an event waits for may be destroyed with the stream; so its work is waited for while it is still in the table.
void cuda_stream_destroy(void *self, int32_t index, tide_stream_id stream) {
    cuda_device *d = cuda_at(self, index);
    if (d == NULL || !cuda_enter_to_give_back(d)) return;
    bool first;
    cuda_stream *s = begin_close(d, stream, &first);
    if (first && s->changing) cuda_drop_capture(d, s);
    if (s != NULL) CUDA_GIVE_BACK(d, "cuStreamSynchronize", d->cu->StreamSynchronize(s->handle));
    if (first) {
        end_close(d, s);
        CUDA_GIVE_BACK(d, "cuStreamDestroy", d->cu->StreamDestroy(s->handle));
        tide_host_free(s);
    } else if (s != NULL) {
        cuda_let_go(d, (cuda_held){.stream = s});
    }
    cuda_leave(d);
}

static tide_status sync_stream(cuda_device *d, CUstream handle, void *args, tide_error *err) {
    (void)args;
    CUDA_TRY(d, d->cu->StreamSynchronize(handle), err, "cuStreamSynchronize");
    return TIDE_OK;
}

tide_status cuda_stream_sync(void *self, int32_t index, tide_stream_id stream, tide_error *err) {
    return cuda_on_stream(cuda_at(self, index), stream, CUDA_USE_MOVING, "be waited for", sync_stream, NULL, err);
}

// ---- work ----

typedef struct copy_args {
    tide_copy_direction direction;
    void *dst;
    const void *src;
    size_t size_bytes;
} copy_args;

static tide_status put_copy(cuda_device *d, CUstream handle, void *args, tide_error *err) {
    const copy_args *c = args;
    const CUdeviceptr dst = (CUdeviceptr)(uintptr_t)c->dst, src = (CUdeviceptr)(uintptr_t)c->src;
    if (c->size_bytes == 0) return TIDE_OK;
    switch (c->direction) {
    case TIDE_COPY_HOST_TO_DEVICE:
        CUDA_TRY(d, d->cu->MemcpyHtoDAsync(dst, c->src, c->size_bytes, handle), err, "cuMemcpyHtoDAsync of %zu B",
                 c->size_bytes);
        break;
    case TIDE_COPY_DEVICE_TO_HOST:
        CUDA_TRY(d, d->cu->MemcpyDtoHAsync(c->dst, src, c->size_bytes, handle), err, "cuMemcpyDtoHAsync of %zu B",
                 c->size_bytes);
        break;
    case TIDE_COPY_WITHIN_DEVICE:
        CUDA_TRY(d, d->cu->MemcpyDtoDAsync(dst, src, c->size_bytes, handle), err, "cuMemcpyDtoDAsync of %zu B",
                 c->size_bytes);
        break;
    }
    return TIDE_OK;
}

tide_status cuda_copy(void *self, int32_t index, tide_stream_id stream, tide_copy_direction direction, void *dst,
                      const void *src, size_t size_bytes, tide_error *err) {
    copy_args c = {.direction = direction, .dst = dst, .src = src, .size_bytes = size_bytes};
    if ((unsigned)direction > TIDE_COPY_WITHIN_DEVICE)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "%d is no direction of a copy", (int)direction);
    if (size_bytes > 0 && (dst == NULL || src == NULL)) {
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "a copy of %zu bytes has no %s", size_bytes,
                         dst == NULL ? "destination" : "source");
    }
    return cuda_on_stream(cuda_at(self, index), stream, CUDA_USE_WORK, NULL, put_copy, &c, err);
}

typedef struct fill_args {
    void *dst;
    unsigned char byte;
    size_t size_bytes;
} fill_args;

static tide_status put_fill(cuda_device *d, CUstream handle, void *args, tide_error *err) {
    const fill_args *f = args;
    if (f->size_bytes == 0) return TIDE_OK;
    CUDA_TRY(d, d->cu->MemsetD8Async((CUdeviceptr)(uintptr_t)f->dst, f->byte, f->size_bytes, handle), err,
             "cuMemsetD8Async of %zu B", f->size_bytes);
    return TIDE_OK;
}

tide_status cuda_fill(void *self, int32_t index, tide_stream_id stream, void *dst, unsigned char byte,
                      size_t size_bytes, tide_error *err) {
    fill_args f = {.dst = dst, .byte = byte, .size_bytes = size_bytes};
    if (size_bytes > 0 && dst == NULL)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "a fill of %zu bytes has no destination", size_bytes);
    return cuda_on_stream(cuda_at(self, index), stream, CUDA_USE_WORK, NULL, put_fill, &f, err);
}

typedef struct call_args {
    void (*fn)(void *arg);
    void *arg;
} call_args;

static tide_status put_call(cuda_device *d, CUstream handle, void *args, tide_error *err) {
    const call_args *c = args;
    CUDA_TRY(d, d->cu->LaunchHostFunc(handle, c->fn, c->arg), err, "cuLaunchHostFunc");
    return TIDE_OK;
}

tide_status cuda_call(void *self, int32_t index, tide_stream_id stream, void (*fn)(void *arg), void *arg,
                      tide_error *err) {
    call_args c = {.fn = fn, .arg = arg};
    if (fn == NULL) return TIDE_FAIL(err, TIDE_ERR_INVALID, "a call in stream order has no function");
    return cuda_on_stream(cuda_at(self, index), stream, CUDA_USE_WORK, NULL, put_call, &c, err);
}
