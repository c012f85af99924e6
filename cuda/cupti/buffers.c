// SPDX-License-Identifier: MIT
//
// Buffers for CUPTI's activity records. CUPTI asks for one for each thread that makes records, in the middle of the
// program's calls and with locks of its own held: nothing is done there but to push and pop.
//
//     free list --give--> CUPTI fills it --take--> full list --records.c--> free list
//
// At most MAX_BUFFERS; beyond that a request is refused, and CUPTI drops records and counts them.
#include <string.h>
#include <sys/mman.h>

#include "cuda/cupti/recorder.h"

enum { BUFFER_BYTES = 1 << 20, MAX_BUFFERS = 256 };

typedef struct buffer {
    uint8_t *bytes; ///< NULL: not made yet
    size_t valid;
    struct buffer *next;
} buffer;

static buffer buffers[MAX_BUFFERS];
static size_t n_buffers;
static buffer *first_free, *first_full, **last_full = &first_full;
static uint64_t n_refused;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/// With the lock. NULL: no more.
static buffer *new_buffer(void) {
    if (n_buffers == MAX_BUFFERS) return NULL;
    void *pages = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return NULL;
    buffer *b = &buffers[n_buffers++];
    b->bytes = pages;
    return b;
}

void CUPTIAPI tide__cupti_give_buffer(uint8_t **out, size_t *size, size_t *max_records) {
    *max_records = 0; // as many as fit
    *size = 0;
    *out = NULL;
    pthread_mutex_lock(&lock);
    buffer *b = first_free;
    if (b != NULL)
        first_free = b->next;
    else
        b = new_buffer();
    n_refused += b == NULL;
    pthread_mutex_unlock(&lock);
    if (b == NULL) return;
    *out = b->bytes;
    *size = BUFFER_BYTES;
}

/// With the lock.
static buffer *buffer_of(const uint8_t *bytes) {
    for (size_t i = 0; i < n_buffers; i++)
        if (buffers[i].bytes == bytes) return &buffers[i];
    return NULL;
}

void CUPTIAPI tide__cupti_take_buffer(CUcontext context, uint32_t stream, uint8_t *bytes, size_t size, size_t valid) {
    (void)context, (void)stream;
    pthread_mutex_lock(&lock);
    buffer *b = buffer_of(bytes);
    if (b != NULL) {
        b->valid = valid <= size ? valid : size;
        b->next = NULL;
        *last_full = b;
        last_full = &b->next;
    }
    pthread_mutex_unlock(&lock);
}

uint8_t *tide__cupti_full_buffer(size_t *valid) {
    pthread_mutex_lock(&lock);
    buffer *b = first_full;
    if (b != NULL) {
        first_full = b->next;
        if (first_full == NULL) last_full = &first_full;
        *valid = b->valid;
    }
    pthread_mutex_unlock(&lock);
    return b != NULL ? b->bytes : NULL;
}

void tide__cupti_buffer_done(uint8_t *bytes) {
    pthread_mutex_lock(&lock);
    buffer *b = buffer_of(bytes);
    if (b != NULL) {
        b->next = first_free;
        first_free = b;
    }
    pthread_mutex_unlock(&lock);
}

uint64_t tide__cupti_refused_buffers(void) {
    pthread_mutex_lock(&lock);
    const uint64_t n = n_refused;
    pthread_mutex_unlock(&lock);
    return n;
}
