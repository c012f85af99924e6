// SPDX-License-Identifier: MIT
//
// fail_nth: an inner allocator that lets n allocations through and fails the one after them, once. Tests plant it to
// meet every failure of a scenario in turn: n = 0, 1, 2, … until the scenario succeeds. It owns no memory:
//
//     n = 2      alloc  alloc  alloc  alloc ...
//     left        2->1   1->0   fails   all pass, until armed again
//
// The numbers are inner's, with the planted failures in n_failed. A planted failure does not call inner.
#include "core/base/host_alloc.h"
#include "core/memory/allocators/allocators.h"
#include "core/memory/allocators/wrap.h"

typedef struct fail_nth_state {
    tide__wrap wrap;      // first
    _Atomic int64_t left; // to let through before the failure; negative: none is planted
    _Atomic uint64_t n_planted;
} fail_nth_state;

/// Count one allocation; true for the one that fails, in one thread only.
static bool is_the_one(fail_nth_state *s) {
    int64_t left = atomic_load_explicit(&s->left, memory_order_relaxed);
    do {
        if (left < 0) return false;
    } while (
        !atomic_compare_exchange_weak_explicit(&s->left, &left, left - 1, memory_order_relaxed, memory_order_relaxed));
    return left == 0;
}

static tide_status fail_nth_alloc(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err) {
    fail_nth_state *s = self;
    if (!is_the_one(s)) return tide_allocator_alloc(s->wrap.inner, req, out, err);
    atomic_fetch_add_explicit(&s->n_planted, 1, memory_order_relaxed);
    return TIDE_FAIL(err, TIDE_ERR_NOMEM, "fail_nth: %zu B for '%s' fail, as was planted", req->size_bytes,
                     tide__tag_text(req->tag));
}

static void fail_nth_stats(const void *self, tide_allocator_stats *out) {
    const fail_nth_state *s = self;
    tide_allocator_get_stats(s->wrap.inner, out);
    out->n_failed += atomic_load_explicit(&s->n_planted, memory_order_relaxed);
}

static void fail_nth_props(const void *self, tide_allocator_props *out) {
    tide__wrap_props(self, out);
    out->what = "fails one allocation, for tests";
}

static void fail_nth_destroy(void *self) {
    fail_nth_state *s = self;
    tide__wrap_deinit(&s->wrap);
    tide_host_free(s);
}

static const tide_allocator_ops fail_nth_ops = {.abi = TIDE_ALLOCATOR_ABI,
                                                .name = "fail_nth",
                                                .alloc = fail_nth_alloc,
                                                .release = tide__wrap_release,
                                                .stats = fail_nth_stats,
                                                .props = fail_nth_props,
                                                .destroy = fail_nth_destroy,
                                                .reset = tide__wrap_reset,
                                                .trim = tide__wrap_trim,
                                                .check = tide__wrap_check,
                                                .record_use = tide__wrap_record_use,
                                                .listen = tide__wrap_listen};

tide_status tide_fail_nth_create(tide_allocator *inner, int64_t n, tide_allocator **out, tide_error *err) {
    fail_nth_state *s;
    TIDE_TRY(TIDE_NEW(&s, 1, err, "for the state of allocator 'fail_nth'"));
    tide__wrap_init(&s->wrap, inner);
    atomic_init(&s->left, n);
    return tide_allocator_create(&fail_nth_ops, s, tide_allocator_device(inner), out, err);
}

tide_status tide_fail_nth_arm(tide_allocator *a, int64_t n, tide_error *err) {
    if (a->ops != &fail_nth_ops) return TIDE_FAIL(err, TIDE_ERR_INVALID, "allocator '%s' is no fail_nth", a->ops->name);
    atomic_store_explicit(&((fail_nth_state *)a->self)->left, n, memory_order_relaxed);
    return TIDE_OK;
}
