// SPDX-License-Identifier: MIT
//
// The fake device, fourth part: what a driver does beyond plain memory: a pool in the order of streams, addresses that
// are reserved first and mapped later, patterns, facts. Included by fake_device.h.
//
// The pool takes memory of the device in steps and frees a block where the stream reaches the free: work that touches
// the block after that is a fault. Mapped parts count as memory of the device; work on a part that is not mapped is a
// fault, and so is unmapping anything but what one map gave.
#ifndef TIDE_TESTS_DEVICE_FAKE_DRIVER_H
#define TIDE_TESTS_DEVICE_FAKE_DRIVER_H

#include <sys/mman.h>

#include "tests/device/fake_events.h"

#define FAKE_TOTAL_BYTES ((uint64_t)3 << 30)

static TIDE_UNUSED tide_status fake_facts(void *self, int32_t index, tide_device_facts *out, tide_error *err) {
    (void)self;
    (void)index;
    (void)err;
    *out = (tide_device_facts){
        .name = "fake", .total_bytes = FAKE_TOTAL_BYTES, .map_step_bytes = FAKE_STEP_BYTES, .has_pool = true};
    return TIDE_OK;
}

static TIDE_UNUSED tide_status fake_memory_info(void *self, int32_t index, uint64_t *free_bytes, uint64_t *total_bytes,
                                                tide_error *err) {
    (void)self;
    (void)err;
    pthread_mutex_lock(&fake.lock);
    *total_bytes = fake.limit_bytes < FAKE_TOTAL_BYTES ? fake.limit_bytes : FAKE_TOTAL_BYTES;
    *free_bytes = *total_bytes > fake.live_bytes[index] ? *total_bytes - fake.live_bytes[index] : 0;
    pthread_mutex_unlock(&fake.lock);
    return TIDE_OK;
}

// The pool.

/// False when the device has no memory left for it.
static TIDE_UNUSED bool fake_grow_pool(int32_t index, size_t size_bytes) {
    tide_device_pool_stats *s = &fake.pools[index].stats;
    if (size_bytes > FAKE_TOTAL_BYTES) return false;
    const uint64_t need = fake_steps(s->used_bytes + size_bytes);
    if (need <= s->reserved_bytes) return true;
    const uint64_t more = need - s->reserved_bytes;
    if (more > fake.limit_bytes || fake.live_bytes[index] > fake.limit_bytes - more) return false;
    fake.live_bytes[index] += more;
    if (fake.live_bytes[index] > fake.peak_bytes[index]) fake.peak_bytes[index] = fake.live_bytes[index];
    s->reserved_bytes = need;
    if (need > s->peak_reserved_bytes) s->peak_reserved_bytes = need;
    return true;
}

static TIDE_UNUSED tide_status fake_take_from_pool(int32_t index, size_t size_bytes, void **out, tide_error *err) {
    tide_device_pool_stats *s = &fake.pools[index].stats;
    uint64_t rounded = 0;
    char *real = NULL;
    if (fake_grow_pool(index, size_bytes) && tide_align_up(size_bytes, 512, &rounded))
        real = aligned_alloc(512, rounded);
    if (real == NULL)
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "the pool of fake:%" PRId32 " has no %zu bytes", index, size_bytes);
    fake_block *b = fake_new(sizeof *b);
    *b = (fake_block){.next = fake.blocks, .real = real, .size_bytes = size_bytes, .index = index, .pool = true};
    fake.blocks = b;
    fake.n_live_blocks++;
    s->used_bytes += size_bytes;
    if (s->used_bytes > s->peak_used_bytes) s->peak_used_bytes = s->used_bytes;
    *out = fake_show(index, real);
    return TIDE_OK;
}

static TIDE_UNUSED tide_status fake_pool_alloc(void *self, int32_t index, tide_stream_id stream, size_t size_bytes,
                                               void **out, tide_error *err) {
    (void)self;
    tide_status st = TIDE_OK;
    pthread_mutex_lock(&fake.lock);
    if (fake_planted(FAKE_POOL_ALLOC)) {
        st = fake_failed(FAKE_POOL_ALLOC, err);
    } else if (fake_find_live(index, stream, &st, err) != NULL) {
        st = fake_take_from_pool(index, size_bytes, out, err);
    }
    pthread_mutex_unlock(&fake.lock);
    return st;
}

static TIDE_UNUSED tide_status fake_pool_free(void *self, int32_t index, tide_stream_id stream, void *ptr,
                                              tide_error *err) {
    (void)self;
    tide_status st = TIDE_OK;
    pthread_mutex_lock(&fake.lock);
    if (fake_planted(FAKE_POOL_FREE)) {
        st = fake_failed(FAKE_POOL_FREE, err);
    } else {
        fake_stream *s = fake_find_live(index, stream, &st, err);
        const fake_work work = {.kind = FAKE_WORK_POOL_FREE, .dst = ptr};
        if (s != NULL) fake_queue(s, &work);
    }
    pthread_mutex_unlock(&fake.lock);
    return st;
}

static TIDE_UNUSED tide_status fake_pool_keep(void *self, int32_t index, uint64_t keep_bytes, tide_error *err) {
    (void)self;
    (void)err;
    pthread_mutex_lock(&fake.lock);
    fake.pools[index].keep_bytes = keep_bytes;
    pthread_mutex_unlock(&fake.lock);
    return TIDE_OK;
}

static TIDE_UNUSED tide_status fake_pool_trim(void *self, int32_t index, uint64_t keep_bytes, tide_error *err) {
    (void)self;
    (void)err;
    pthread_mutex_lock(&fake.lock);
    fake_shrink_pool(index, keep_bytes);
    pthread_mutex_unlock(&fake.lock);
    return TIDE_OK;
}

static TIDE_UNUSED tide_status fake_pool_stats(void *self, int32_t index, tide_device_pool_stats *out,
                                               tide_error *err) {
    (void)self;
    pthread_mutex_lock(&fake.lock);
    const bool fails = fake_planted(FAKE_POOL_STATS);
    *out = fake.pools[index].stats;
    pthread_mutex_unlock(&fake.lock);
    return fails ? fake_failed(FAKE_POOL_STATS, err) : TIDE_OK;
}

// Mapping.

static TIDE_UNUSED tide_status fake_reserve(int32_t index, size_t size_bytes, void **out, tide_error *err) {
    if (size_bytes == 0 || size_bytes % FAKE_STEP_BYTES != 0 || size_bytes > (size_t)1 << 40)
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "fake:%" PRId32 " reserves no %zu bytes", index, size_bytes);
    void *real = mmap(NULL, size_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (real == MAP_FAILED) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "fake: no addresses for %zu bytes", size_bytes);
    fake_range *r = fake_new(sizeof *r);
    *r = (fake_range){.next = fake.ranges, .real = real, .size_bytes = size_bytes, .index = index};
    fake.ranges = r;
    fake.n_ranges++;
    *out = fake_show(index, real);
    return TIDE_OK;
}

static TIDE_UNUSED tide_status fake_vm_reserve(void *self, int32_t index, size_t size_bytes, void **out,
                                               tide_error *err) {
    (void)self;
    pthread_mutex_lock(&fake.lock);
    const tide_status st =
        fake_planted(FAKE_VM_RESERVE) ? fake_failed(FAKE_VM_RESERVE, err) : fake_reserve(index, size_bytes, out, err);
    pthread_mutex_unlock(&fake.lock);
    return st;
}

static TIDE_UNUSED void fake_drop_mapping(fake_range *r, fake_mapping **at) {
    fake_mapping *m = *at;
    *at = m->next;
    fake.live_bytes[r->index] -= m->size_bytes;
    fake.n_mappings--;
    (void)madvise(m->real, m->size_bytes, MADV_DONTNEED);
    (void)mprotect(m->real, m->size_bytes, PROT_NONE);
    free(m);
}

static TIDE_UNUSED void fake_drop_range(fake_range *r) {
    fake_range **at = &fake.ranges;
    while (*at != r) at = &(*at)->next;
    *at = r->next;
    while (r->mappings != NULL) fake_drop_mapping(r, &r->mappings);
    munmap(r->real, r->size_bytes);
    fake.n_ranges--;
    free(r);
}

static TIDE_UNUSED fake_range *fake_range_of(int32_t index, const void *at) {
    const uintptr_t real = (uintptr_t)fake_show(index, at);
    fake_range *r = fake.ranges;
    while (r != NULL && !(r->index == index && real >= (uintptr_t)r->real && real < (uintptr_t)r->real + r->size_bytes))
        r = r->next;
    return r;
}

static TIDE_UNUSED void fake_vm_release(void *self, int32_t index, void *base, size_t size_bytes) {
    (void)self;
    pthread_mutex_lock(&fake.lock);
    fake.n_calls[FAKE_VM_RELEASE]++;
    fake_range *r = fake_range_of(index, base);
    if (r == NULL || fake_show(index, base) != r->real || size_bytes != r->size_bytes || r->mappings != NULL) {
        fake_fault("release of addresses that are not one empty range", index, base, size_bytes);
    } else {
        fake_drop_range(r);
    }
    pthread_mutex_unlock(&fake.lock);
}

static TIDE_UNUSED tide_status fake_map(fake_range *r, void *at, size_t size_bytes, tide_error *err) {
    char *real = fake_show(r->index, at);
    const bool in_steps = (size_t)(real - r->real) % FAKE_STEP_BYTES == 0 && size_bytes % FAKE_STEP_BYTES == 0;
    if (!in_steps || size_bytes == 0 || size_bytes > r->size_bytes - (size_t)(real - r->real))
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "fake: %zu bytes cannot be mapped at %p", size_bytes, at);
    for (size_t i = 0; i < size_bytes; i += FAKE_STEP_BYTES) {
        if (fake_mapping_at(r, (uintptr_t)real + i) != NULL)
            return TIDE_FAIL(err, TIDE_ERR_INVALID, "fake: %p is mapped already", at);
    }
    if (size_bytes > fake.limit_bytes || fake.live_bytes[r->index] > fake.limit_bytes - size_bytes)
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "fake:%" PRId32 " has no %zu bytes to map", r->index, size_bytes);
    if (mprotect(real, size_bytes, PROT_READ | PROT_WRITE) != 0) abort();
    fake_mapping *m = fake_new(sizeof *m);
    *m = (fake_mapping){.next = r->mappings, .real = real, .size_bytes = size_bytes};
    r->mappings = m;
    fake.n_mappings++;
    fake.live_bytes[r->index] += size_bytes;
    if (fake.live_bytes[r->index] > fake.peak_bytes[r->index]) fake.peak_bytes[r->index] = fake.live_bytes[r->index];
    return TIDE_OK;
}

static TIDE_UNUSED tide_status fake_vm_map(void *self, int32_t index, void *at, size_t size_bytes, tide_error *err) {
    (void)self;
    tide_status st;
    pthread_mutex_lock(&fake.lock);
    fake_range *r = fake_range_of(index, at);
    if (fake_planted(FAKE_VM_MAP)) {
        st = fake_failed(FAKE_VM_MAP, err);
    } else if (r == NULL) {
        st = TIDE_FAIL(err, TIDE_ERR_INVALID, "fake: %p was not reserved", at);
    } else {
        st = fake_map(r, at, size_bytes, err);
    }
    pthread_mutex_unlock(&fake.lock);
    return st;
}

static TIDE_UNUSED void fake_vm_unmap(void *self, int32_t index, void *at, size_t size_bytes) {
    (void)self;
    pthread_mutex_lock(&fake.lock);
    fake.n_calls[FAKE_VM_UNMAP]++;
    fake_range *r = fake_range_of(index, at);
    fake_mapping **m = r != NULL ? &r->mappings : NULL;
    while (m != NULL && *m != NULL && (*m)->real != fake_show(index, at)) m = &(*m)->next;
    if (m == NULL || *m == NULL || (*m)->size_bytes != size_bytes) {
        fake_fault("unmapping what no map gave", index, at, size_bytes);
    } else {
        fake_drop_mapping(r, m);
    }
    pthread_mutex_unlock(&fake.lock);
}

// Patterns.

static TIDE_UNUSED tide_status fake_pattern_fill(void *self, int32_t index, tide_stream_id stream, void *dst,
                                                 size_t size_bytes, uint64_t seed, tide_error *err) {
    (void)self;
    const fake_work work = {.kind = FAKE_WORK_PATTERN, .dst = dst, .size_bytes = size_bytes, .seed = seed};
    return fake_put(FAKE_PATTERN_FILL, index, stream, &work, err);
}

static TIDE_UNUSED tide_status fake_pattern_check(void *self, int32_t index, tide_stream_id stream, const void *src,
                                                  size_t size_bytes, uint64_t seed, uint64_t *n_wrong,
                                                  tide_error *err) {
    (void)self;
    const fake_work work = {
        .kind = FAKE_WORK_CHECK, .src = src, .size_bytes = size_bytes, .seed = seed, .n_wrong = n_wrong};
    return fake_put(FAKE_PATTERN_CHECK, index, stream, &work, err);
}

#define FAKE_DRIVER_OPS                                                                                                \
    .facts = fake_facts, .memory_info = fake_memory_info, .pool_alloc = fake_pool_alloc, .pool_free = fake_pool_free,  \
    .pool_keep = fake_pool_keep, .pool_trim = fake_pool_trim, .pool_stats = fake_pool_stats,                           \
    .vm_reserve = fake_vm_reserve, .vm_release = fake_vm_release, .vm_map = fake_vm_map, .vm_unmap = fake_vm_unmap,    \
    .pattern_fill = fake_pattern_fill, .pattern_check = fake_pattern_check

#endif
