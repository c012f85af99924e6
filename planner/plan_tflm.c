// SPDX-License-Identifier: MIT
//
// A plan as TensorFlow Lite Micro takes it: the contents of the metadata buffer "OfflineMemoryAllocation" of a model
// (tflite-micro, docs/memory_management.md), a list of little-endian int32.
//
//     [version 1][subgraph 0][n][offset of tensor 0] … [offset of tensor n - 1]      -1: planned when the model starts
//
// Tensor i is the i-th of the list: the list has to be in the model's own order. Scratch of kernels is left out: there
// it is no tensor, and its kernels ask for theirs when they start.
#include <inttypes.h>

#include "core/base/host_alloc.h"
#include "planner/planner.h"

enum { VERSION = 1, SUBGRAPH = 0, AT_RUN_TIME = -1 };

static void add_int32(tide_text *out, int32_t value) {
    const uint32_t u = (uint32_t)value;
    const char bytes[4] = {(char)(u & 0xff), (char)(u >> 8 & 0xff), (char)(u >> 16 & 0xff), (char)(u >> 24)};
    tide_text_add_n(out, bytes, sizeof bytes);
}

static bool is_listed(const tide_lifetime *item) { return item->role != TIDE_ROLE_SCRATCH; }

/// There is one arena: what the places of two buffers mean together cannot be said.
static tide_status check_one_buffer(const tide_memory_plan *plan, tide_error *err) {
    if (plan->n_buffers <= 1) return TIDE_OK;
    const tide_plan_buffer *a = &plan->buffers[0], *b = &plan->buffers[1];
    char x[32], y[32];
    const tide_status st = TIDE_FAIL(
        err, TIDE_ERR_INVALID,
        "TensorFlow Lite Micro has one arena, and the plan has %zu buffers: %s on %s, %s on %s%s", plan->n_buffers,
        tide_memory_kind_name(a->kind), tide_device_format(a->device, x, sizeof x), tide_memory_kind_name(b->kind),
        tide_device_format(b->device, y, sizeof y), plan->n_buffers > 2 ? ", …" : "");
    tide_error_hint(err, "--to c-header and --to json hold any number of buffers");
    return st;
}

static tide_status check_numbers(const tide_memory_plan *plan, size_t *n, tide_error *err) {
    *n = 0;
    for (size_t i = 0; i < plan->lifetimes.n; i++) {
        const tide_lifetime *item = &plan->lifetimes.items[i];
        if (!is_listed(item)) continue;
        ++*n;
        if (plan->offsets[i] == TIDE_NO_OFFSET || plan->offsets[i] <= INT32_MAX) continue;
        return TIDE_FAIL(err, TIDE_ERR_OVERFLOW,
                         "tensor '%s' lies at %" PRIu64 ": offsets of TensorFlow Lite Micro end at %" PRId32,
                         item->name, plan->offsets[i], INT32_MAX);
    }
    if (*n <= INT32_MAX) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "%zu tensors: TensorFlow Lite Micro counts to %" PRId32, *n, INT32_MAX);
}

tide_status tide_plan_to_tflm(const tide_memory_plan *plan, tide_text *out, tide_error *err) {
    size_t n;
    TIDE_TRY(check_one_buffer(plan, err));
    TIDE_TRY(check_numbers(plan, &n, err));
    add_int32(out, VERSION);
    add_int32(out, SUBGRAPH);
    add_int32(out, (int32_t)n);
    for (size_t i = 0; i < plan->lifetimes.n; i++) {
        if (!is_listed(&plan->lifetimes.items[i])) continue;
        const bool has_place = plan->offsets[i] != TIDE_NO_OFFSET;
        add_int32(out, has_place ? (int32_t)plan->offsets[i] : AT_RUN_TIME);
    }
    return out->failed ? TIDE_NO_MEMORY(err, "for the offsets of %zu tensors", n) : TIDE_OK;
}
