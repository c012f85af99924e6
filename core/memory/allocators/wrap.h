// SPDX-License-Identifier: MIT
//
// wrap: what allocators around another one have in common. Their state begins with a tide__wrap; whatever they do not
// change goes straight to the inner allocator through the functions here, which fit into an allocator's table. Used by
// limit, fail_nth and poison.
#ifndef TIDE_CORE_MEMORY_ALLOCATORS_WRAP_H
#define TIDE_CORE_MEMORY_ALLOCATORS_WRAP_H

#include "core/memory/allocator_internal.h"

/// First member of the state of a wrapper.
typedef struct tide__wrap {
    tide_allocator *inner; ///< referenced
    bool deferred;         ///< inner is stream-aware: it says when a free is complete
    bool listening;        ///< to inner, by tide__wrap_hear, or for the allocator around this one, by tide__wrap_listen
} tide__wrap;

/// Takes a reference of `inner`.
void tide__wrap_init(tide__wrap *w, tide_allocator *inner);
/// Listen to a deferred inner allocator, for a wrapper that must know when a free is complete.
void tide__wrap_hear(tide__wrap *w, const tide_allocator_listener *ears);
/// Drops the reference. When it is the last one, inner completes what is pending while we still listen; when
/// another holds it too, it does not call us any more.
void tide__wrap_deinit(tide__wrap *w);

void tide__wrap_release(void *self, const tide_memory *mem, tide_stream_id last_stream);
void tide__wrap_props(const void *self, tide_allocator_props *out);
tide_status tide__wrap_reset(void *self, tide_error *err);
void tide__wrap_trim(void *self);
tide_status tide__wrap_check(const void *self, tide_error *err);
void tide__wrap_record_use(void *self, const tide_memory *mem, tide_stream_id stream);
void tide__wrap_listen(void *self, const tide_allocator_listener *listener);

/// "(no name)" for a request without a tag.
static inline const char *tide__tag_text(const char *tag) { return tag != NULL ? tag : "(no name)"; }

#endif
