// SPDX-License-Identifier: MIT
//
// See feed_frames.h. What is looked up again and again is kept by who asks (preload/stacks.c): here is the log.
#include "profiler/feed/feed_frames.h"

#include <string.h>

#include "profiler/feed/feed_internal.h"

uint32_t tide__feed_module(tide__feed *f, const char *text) {
    const tide__log_record *r = tide__feed_intern(f, TIDE__LOG_MODULE, text, strlen(text));
    return r != NULL ? r->id : 0;
}

uint32_t tide__feed_frame(tide__feed *f, uint32_t parent, uint32_t module, uint64_t address) {
    const tide__log_frame payload = {.parent_id = parent, .module_id = module, .address = address};
    // One too many is no matter: several threads may find room for the last one.
    pthread_mutex_lock(&f->lock);
    const bool is_full = f->n_of[TIDE__LOG_FRAME] >= TIDE__FEED_MAX_FRAMES;
    pthread_mutex_unlock(&f->lock);
    if (is_full) return 0;
    const tide__log_record *r = tide__feed_intern(f, TIDE__LOG_FRAME, &payload, sizeof payload);
    return r != NULL ? r->id : 0;
}

void tide__feed_memory_in(tide__feed *f, const tide_memory_event *e, uint32_t frame) {
    tide_memory_event event = *e;
    event.stream |= (uint64_t)frame << TIDE__FRAME_SHIFT;
    tide__feed_memory(f, &event);
}
