// SPDX-License-Identifier: MIT
//
// Who is told that a stream is gone. Calls run without a lock, so that a listener may take its own; each run of calls
// notes on a list where it stands, so that a listener that leaves knows whether one of them is with it just now.
#include <pthread.h>

#include "core/device/device_internal.h"

/// One tide__stream_tell_destroyed on its way through the listeners; lives on its caller's stack.
typedef struct telling {
    tide_stream_listener *now;  ///< being called; NULL between two calls
    tide_stream_listener *next; ///< to be called next
    struct telling *other;
} telling;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t call_ended = PTHREAD_COND_INITIALIZER;
static tide_stream_listener *first_listener;
static telling *first_telling;

void tide_stream_listen(tide_stream_listener *listener) {
    pthread_mutex_lock(&lock);
    listener->next = first_listener;
    first_listener = listener;
    pthread_mutex_unlock(&lock);
}

static bool is_being_called(const tide_stream_listener *listener) {
    for (const telling *t = first_telling; t != NULL; t = t->other) {
        if (t->now == listener) return true;
    }
    return false;
}

void tide_stream_unlisten(tide_stream_listener *listener) {
    pthread_mutex_lock(&lock);
    tide_stream_listener **at = &first_listener;
    while (*at != NULL && *at != listener) at = &(*at)->next;
    if (*at != NULL) *at = listener->next;
    for (telling *t = first_telling; t != NULL; t = t->other) {
        if (t->next == listener) t->next = listener->next;
    }
    while (is_being_called(listener)) pthread_cond_wait(&call_ended, &lock);
    pthread_mutex_unlock(&lock);
}

static void leave(telling *t) {
    telling **at = &first_telling;
    while (*at != t) at = &(*at)->other;
    *at = t->other;
}

void tide__stream_tell_destroyed(tide_device device, tide_stream_id stream) {
    pthread_mutex_lock(&lock);
    telling t = {.next = first_listener, .other = first_telling};
    first_telling = &t;
    while (t.next != NULL) {
        t.now = t.next;
        t.next = t.now->next;
        pthread_mutex_unlock(&lock);
        t.now->on_destroyed(t.now->self, device, stream);
        pthread_mutex_lock(&lock);
        t.now = NULL;
        pthread_cond_broadcast(&call_ended);
    }
    leave(&t);
    pthread_mutex_unlock(&lock);
}
