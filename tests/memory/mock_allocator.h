// SPDX-License-Identifier: MIT
//
// An allocator for tests of blocks and storages: plain memory, and a note of everything that is asked of it.
#ifndef TIDE_TESTS_MOCK_ALLOCATOR_H
#define TIDE_TESTS_MOCK_ALLOCATOR_H

#include "core/memory/registry.h"
#include "memory_test.h"
#include "tests/device/fake_device.h"

/// Zero-initialise; used by one thread at a time.
typedef struct mock {
    int n_allocs, n_releases;
    tide_alloc_request asked; ///< the last request
    char asked_tag[32];
    void *given; ///< the last address
    tide_memory released;
    char released_tag[32];
    tide_stream_id released_stream, used_stream;
    int fail_after;     ///< allocations that are let through before one fails; -1: none fails
    bool has_context;   ///< its memory is not simple
    tide_device device; ///< memory of a fake one comes from there
    char order[32];     ///< 'a' allocation, 'f' failed one, 'r' release, 'd' destroy, as they come
    tide_allocator_stats stats;
} mock;

static inline void mock_note(mock *m, char what) {
    const size_t n = strlen(m->order);
    if (n + 1 < sizeof m->order) m->order[n] = what;
}

static inline bool mock_is_far(const mock *m) { return m->device.type >= TIDE_DEVICE_FIRST_EXTRA; }

/// NULL: there is none.
static inline void *mock_bytes(const mock *m, size_t size_bytes) {
    void *data = NULL;
    if (!mock_is_far(m)) return aligned_alloc(1024, size_bytes);
    return tide_device_mem_alloc(m->device, size_bytes, 1024, &data, NULL) == TIDE_OK ? data : NULL;
}

static inline tide_status mock_alloc(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err) {
    mock *m = (mock *)self;
    m->asked = *req;
    snprintf(m->asked_tag, sizeof m->asked_tag, "%s", req->tag != NULL ? req->tag : "(none)");
    const size_t reserved = (req->size_bytes + 1023) / 1024 * 1024;
    // An eighth of the address space is more than any machine has: refused here, before a sanitizer does.
    void *data = m->fail_after == 0 || req->size_bytes > SIZE_MAX / 8 ? NULL : mock_bytes(m, reserved);
    if (m->fail_after >= 0) m->fail_after--;
    mock_note(m, data != NULL ? 'a' : 'f');
    if (data == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "mock has no %zu B", req->size_bytes);
    // callers must not rely on zeros
    memset(mock_is_far(m) ? fake_peek(m->device.index, data, reserved) : data, 0xAB, reserved);
    m->n_allocs++;
    m->given = data;
    out->data = m->given;
    out->reserved_bytes = reserved;
    if (m->has_context) out->context = m;
    m->stats.n_allocs++;
    m->stats.requested_bytes += req->size_bytes;
    m->stats.active_bytes += reserved;
    m->stats.reserved_bytes += reserved;
    return TIDE_OK;
}

static inline void mock_release(void *self, const tide_memory *mem, tide_stream_id last_stream) {
    mock *m = (mock *)self;
    m->n_releases++;
    m->released = *mem;
    snprintf(m->released_tag, sizeof m->released_tag, "%s", mem->tag != NULL ? mem->tag : "(none)");
    m->released_stream = last_stream;
    m->stats.n_frees++;
    m->stats.requested_bytes -= mem->requested_bytes;
    m->stats.active_bytes -= mem->reserved_bytes;
    m->stats.reserved_bytes -= mem->reserved_bytes;
    mock_note(m, 'r');
    if (mock_is_far(m)) {
        tide_device_mem_free(m->device, mem->data);
    } else {
        free(mem->data);
    }
}

static inline void mock_stats(const void *self, tide_allocator_stats *out) { *out = ((const mock *)self)->stats; }
static inline void mock_destroy(void *self) { mock_note((mock *)self, 'd'); }
static inline void mock_record_use(void *self, const tide_memory *mem, tide_stream_id stream) {
    (void)mem;
    ((mock *)self)->used_stream = stream;
}

static const tide_allocator_ops mock_ops = {.abi = TIDE_ALLOCATOR_ABI,
                                            .name = "mock",
                                            .alloc = mock_alloc,
                                            .release = mock_release,
                                            .stats = mock_stats,
                                            .destroy = mock_destroy,
                                            .record_use = mock_record_use};

/// A fresh mock in `m` and an allocator around it.
static inline tide_allocator *make_mock(mock *m, tide_device device) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    memset(m, 0, sizeof *m);
    m->fail_after = -1;
    m->device = device;
    assert_tide_ok(tide_allocator_create(&mock_ops, m, device, &a, &err), &err);
    return a;
}

/// A registry in which `a` serves kind Default of its device.
static inline tide_registry *registry_of(tide_allocator *a) {
    tide_error err = TIDE_ERROR_INIT;
    tide_registry *r = NULL;
    assert_tide_ok(tide_registry_create(&r, &err), &err);
    assert_tide_ok(tide_registry_add(r, TIDE_KIND_DEFAULT, a, 0, &err), &err);
    return r;
}

#endif
