// SPDX-License-Identifier: MIT
//
// memory plan: names of what plans are made of, and the helpers of a finished plan. The planner makes it; the runtime,
// the profiler and the reports read it. Nothing here places anything.
#include "core/runtime/memory_plan.h"

#include <string.h>
#include <strings.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/runtime/memory_plan_internal.h"

// ---- roles ----

const char *tide_role_name(tide_role role) {
    switch (role) {
#define XX(name, value, text)                                                                                          \
    case TIDE_ROLE_##name:                                                                                             \
        return text;
        TIDE_ROLE_MAP(XX)
#undef XX
    }
    return "role ?";
}

tide_status tide_role_parse(const char *text, tide_role *out, tide_error *err) {
#define XX(name, value, word)                                                                                          \
    if (strcasecmp(text, word) == 0) {                                                                                 \
        *out = TIDE_ROLE_##name;                                                                                       \
        return TIDE_OK;                                                                                                \
    }
    TIDE_ROLE_MAP(XX)
#undef XX
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_INVALID, "'%s' is no role of a tensor", text);
    tide_error_hint(err, "roles are intermediate, scratch, input, output, weight");
    return st;
}

// ---- names of aliases and proofs ----

const char *tide_alias_kind_name(tide_alias_kind kind) {
    switch (kind) {
#define XX(name, text)                                                                                                 \
    case TIDE_ALIAS_##name:                                                                                            \
        return text;
        TIDE_ALIAS_MAP(XX)
#undef XX
    }
    return "alias ?";
}

tide_status tide_alias_kind_parse(const char *text, tide_alias_kind *out, tide_error *err) {
#define XX(name, word)                                                                                                 \
    if (strcasecmp(text, word) == 0) {                                                                                 \
        *out = TIDE_ALIAS_##name;                                                                                      \
        return TIDE_OK;                                                                                                \
    }
    TIDE_ALIAS_MAP(XX)
#undef XX
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_INVALID, "'%s' is no kind of alias", text);
    tide_error_hint(err, "kinds are view, in-place, part, slice, given");
    return st;
}

const char *tide_proof_name(tide_proof proof) {
    switch (proof) {
#define XX(name, text)                                                                                                 \
    case TIDE_PROOF_##name:                                                                                            \
        return text;
        TIDE_PROOF_MAP(XX)
#undef XX
    }
    return "proof ?";
}

tide_status tide_proof_parse(const char *text, tide_proof *out, tide_error *err) {
#define XX(name, word)                                                                                                 \
    if (strcasecmp(text, word) == 0) {                                                                                 \
        *out = TIDE_PROOF_##name;                                                                                      \
        return TIDE_OK;                                                                                                \
    }
    TIDE_PROOF_MAP(XX)
#undef XX
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_INVALID, "'%s' proves nothing", text);
    tide_error_hint(err, "proofs are live sum, alignment, fixed offset, kept apart, search");
    return st;
}

// ---- plan ----

bool tide__copy_array(void *out, const void *from, size_t n, size_t elem_bytes) {
    if (n == 0 || from == NULL) return true;
    void *copy = tide_host_calloc(n, elem_bytes);
    if (copy == NULL) return false;
    memcpy(copy, from, n * elem_bytes);
    memcpy(out, &copy, sizeof copy); // `out` points to some T*
    return true;
}

tide_status tide_memory_plan_copy(const tide_memory_plan *plan, tide_memory_plan **out, tide_error *err) {
    tide_memory_plan *copy = tide_host_calloc(1, sizeof *copy);
    if (copy == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for a memory plan");
    *copy = *plan;
    copy->strategy = NULL;
    copy->lifetimes = (tide_lifetimes){0};
    copy->offsets = NULL;
    copy->pools = NULL;
    copy->pool_list = NULL;
    copy->buffers = NULL;
    tide_status st = tide_lifetimes_copy(&plan->lifetimes, &copy->lifetimes, err);
    if (st != TIDE_OK) goto fail;
    copy->strategy = tide_host_strdup(plan->strategy != NULL ? plan->strategy : "");
    if (copy->strategy == NULL ||
        !tide__copy_array(&copy->offsets, plan->offsets, plan->lifetimes.n, sizeof *copy->offsets) ||
        !tide__copy_array(&copy->pools, plan->pools, plan->lifetimes.n, sizeof *copy->pools) ||
        !tide__copy_array(&copy->pool_list, plan->pool_list, plan->n_pools, sizeof *copy->pool_list) ||
        !tide__copy_array(&copy->buffers, plan->buffers, plan->n_buffers, sizeof *copy->buffers)) {
        st = TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for a memory plan of %zu entries", plan->lifetimes.n);
        goto fail;
    }
    *out = copy;
    return TIDE_OK;
fail:
    tide_memory_plan_destroy(copy);
    return st;
}

void tide_memory_plan_destroy(tide_memory_plan *p) {
    if (p == NULL) return;
    tide_lifetimes_deinit(&p->lifetimes);
    tide_host_free(p->strategy);
    tide_host_free(p->offsets);
    tide_host_free(p->pools);
    tide_host_free(p->pool_list);
    tide_host_free(p->buffers);
    tide_host_free(p);
}

const tide_plan_buffer *tide_memory_plan_buffer(const tide_memory_plan *p, tide_device device, tide_memory_kind kind) {
    for (size_t b = 0; b < p->n_buffers; b++) {
        if (p->buffers[b].kind == kind && tide_device_equal(p->buffers[b].device, device)) return &p->buffers[b];
    }
    return NULL;
}

/// Whether the step is the second run of a node.
static bool is_again(const tide_lifetimes *lt, int64_t step) {
    static const char again[] = ".again";
    if (step < 0 || (uint64_t)step >= lt->n_step_names) return false;
    const char *name = lt->step_names[step];
    const size_t len = strlen(name), n = len < sizeof again ? 0 : len - (sizeof again - 1);
    if (n == 0 || strcmp(name + n, again) != 0) return false;
    for (size_t k = 0; k < lt->n_recomputed; k++) {
        if (strlen(lt->recomputed[k]) == n && memcmp(lt->recomputed[k], name, n) == 0) return true;
    }
    return false;
}

uint64_t tide_memory_plan_original_bytes(const tide_memory_plan *p) {
    uint64_t bytes = p->naive_bytes;
    for (size_t i = 0; p->lifetimes.n_recomputed > 0 && i < p->lifetimes.n; i++) {
        const tide_lifetime *item = &p->lifetimes.items[i];
        if (item->persistent || !is_again(&p->lifetimes, item->begin_step)) continue;
        const uint64_t own = tide_lifetime_aligned_bytes(item);
        bytes -= own < bytes ? own : bytes;
    }
    return bytes;
}

double tide_memory_plan_saving(const tide_memory_plan *p) {
    const uint64_t original = tide_memory_plan_original_bytes(p);
    if (original == 0) return 0.0;
    return 1.0 - (double)p->bytes / (double)original;
}

uint64_t tide_memory_plan_predicted_run(const tide_memory_plan *p, tide_memory_kind kind, bool naive,
                                        uint64_t n_contexts) {
    uint64_t once = 0, each = 0;
    for (size_t b = 0; b < p->n_buffers; b++) {
        const tide_plan_buffer *buffer = &p->buffers[b];
        if (buffer->kind != kind) continue;
        if (naive && n_contexts > 1) return TIDE_UNKNOWN_BYTES;
        if (!tide_add_u64(each, naive ? buffer->naive_peak_bytes : buffer->bytes, &each)) return UINT64_MAX;
    }
    if (kind == TIDE_KIND_WORKSPACE && naive && n_contexts > 1) return TIDE_UNKNOWN_BYTES;
    for (size_t i = 0; i < p->lifetimes.n; i++) {
        const tide_lifetime *item = &p->lifetimes.items[i];
        if (!item->persistent || item->kind != kind) continue;
        uint64_t *sum = item->role == TIDE_ROLE_OUTPUT ? &each : &once;
        if (!tide_add_u64(*sum, tide_lifetime_aligned_bytes(item), sum)) return UINT64_MAX;
    }
    uint64_t all;
    return tide_mul_u64(each, n_contexts, &all) && tide_add_u64(all, once, &all) ? all : UINT64_MAX;
}

uint64_t tide_memory_plan_predicted(const tide_memory_plan *p, tide_memory_kind kind) {
    return tide_memory_plan_predicted_run(p, kind, false, 1);
}
