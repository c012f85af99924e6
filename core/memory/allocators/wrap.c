// SPDX-License-Identifier: MIT
//
// wrap: the calls that a wrapper hands on unchanged. See wrap.h.
#include "core/memory/allocators/wrap.h"

#include "core/base/assert.h"

void tide__wrap_init(tide__wrap *w, tide_allocator *inner) {
    tide_allocator_props props;
    tide_allocator_get_props(inner, &props);
    w->inner = tide_allocator_ref(inner);
    w->deferred = props.stream_aware && inner->ops->listen != NULL;
}

void tide__wrap_hear(tide__wrap *w, const tide_allocator_listener *ears) {
    TIDE_ASSERT(w->deferred && !w->listening);
    w->listening = true;
    tide_allocator_listen(w->inner, ears);
}

void tide__wrap_deinit(tide__wrap *w) {
    if (w->listening && atomic_load_explicit(&w->inner->refs, memory_order_acquire) > 1)
        tide_allocator_listen(w->inner, NULL);
    tide_allocator_unref(w->inner);
}

void tide__wrap_release(void *self, const tide_memory *mem, tide_stream_id last_stream) {
    tide_allocator_release(((tide__wrap *)self)->inner, mem, last_stream);
}

void tide__wrap_props(const void *self, tide_allocator_props *out) {
    tide_allocator_get_props(((const tide__wrap *)self)->inner, out);
}

tide_status tide__wrap_reset(void *self, tide_error *err) {
    return tide_allocator_reset(((tide__wrap *)self)->inner, err);
}

void tide__wrap_trim(void *self) { tide_allocator_trim(((tide__wrap *)self)->inner); }

tide_status tide__wrap_check(const void *self, tide_error *err) {
    return tide_allocator_check(((const tide__wrap *)self)->inner, err);
}

void tide__wrap_record_use(void *self, const tide_memory *mem, tide_stream_id stream) {
    tide_allocator_record_use(((tide__wrap *)self)->inner, mem, stream);
}

void tide__wrap_listen(void *self, const tide_allocator_listener *listener) {
    tide__wrap *w = self;
    w->listening = listener != NULL; // from now on through us: we end it when we go
    tide_allocator_listen(w->inner, listener);
}
