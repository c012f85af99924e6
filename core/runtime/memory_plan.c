// SPDX-License-Identifier: MIT
//
// memory plan: the table of lifetimes and the helpers of a finished plan. The planner fills them; the runtime, the
// profiler and the reports read them. Nothing here places anything.
#include "core/runtime/memory_plan.h"

#include <string.h>
#include <strings.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"

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

// ---- lifetimes ----

static tide_status check_item(const tide_lifetime *item, tide_error *err) {
    if (item->name == NULL || item->name[0] == '\0') return TIDE_FAIL(err, TIDE_ERR_INVALID, "a lifetime has no name");
    if (item->begin_step < 0 || item->begin_step >= item->end_step)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "tensor '%s' lives from step %lld to %lld: want 0 <= begin < end",
                         item->name, (long long)item->begin_step, (long long)item->end_step);
    if (!tide_is_pow2(item->align_bytes))
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "tensor '%s' is aligned to %llu bytes: want a power of two", item->name,
                         (unsigned long long)item->align_bytes);
    uint64_t aligned_bytes;
    if (!tide_align_up(item->size_bytes, item->align_bytes, &aligned_bytes) || aligned_bytes > INT64_MAX)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "tensor '%s' of %llu bytes, rounded up to %llu, passes 2^63 - 1",
                         item->name, (unsigned long long)item->size_bytes, (unsigned long long)item->align_bytes);
    return TIDE_OK;
}

tide_status tide_lifetimes_add(tide_lifetimes *lt, const tide_lifetime *item, tide_error *err) {
    TIDE_TRY(check_item(item, err));
    char *name = tide_host_strdup(item->name);
    if (name == NULL || tide_host_grow(&lt->items, &lt->cap, lt->n + 1, sizeof *lt->items) != TIDE_OK) {
        tide_host_free(name);
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the lifetime of tensor '%s'", item->name);
    }
    lt->items[lt->n] = *item;
    lt->items[lt->n].name = name;
    lt->n++;
    // A lifetime past the last step would make every per-step view wrong.
    if (lt->n_steps < item->end_step) lt->n_steps = item->end_step;
    return TIDE_OK;
}

static tide_status copy_step_names(const tide_lifetimes *lt, tide_lifetimes *out) {
    if (lt->n_step_names == 0) return TIDE_OK;
    out->step_names = tide_host_calloc(lt->n_step_names, sizeof *out->step_names);
    if (out->step_names == NULL) return TIDE_ERR_NOMEM;
    for (size_t i = 0; i < lt->n_step_names; i++) {
        out->step_names[i] = tide_host_strdup(lt->step_names[i]);
        if (out->step_names[i] == NULL) return TIDE_ERR_NOMEM;
        out->n_step_names = i + 1;
    }
    return TIDE_OK;
}

static tide_status copy_items(const tide_lifetimes *lt, tide_lifetimes *out) {
    if (lt->n == 0) return TIDE_OK;
    out->items = tide_host_calloc(lt->n, sizeof *out->items);
    if (out->items == NULL) return TIDE_ERR_NOMEM;
    out->cap = lt->n;
    for (size_t i = 0; i < lt->n; i++) {
        out->items[i] = lt->items[i];
        out->items[i].name = tide_host_strdup(lt->items[i].name);
        if (out->items[i].name == NULL) return TIDE_ERR_NOMEM;
        out->n = i + 1;
    }
    return TIDE_OK;
}

tide_status tide_lifetimes_copy(const tide_lifetimes *lt, tide_lifetimes *out, tide_error *err) {
    tide_lifetimes copy = {.n_steps = lt->n_steps};
    tide_status st = copy_items(lt, &copy);
    if (st == TIDE_OK) st = copy_step_names(lt, &copy);
    if (st == TIDE_OK && lt->model != NULL) {
        copy.model = tide_host_strdup(lt->model);
        if (copy.model == NULL) st = TIDE_ERR_NOMEM;
    }
    if (st != TIDE_OK) {
        tide_lifetimes_deinit(&copy);
        return TIDE_FAIL(err, st, "no memory for a copy of %zu lifetimes", lt->n);
    }
    *out = copy;
    return TIDE_OK;
}

void tide_lifetimes_deinit(tide_lifetimes *lt) {
    for (size_t i = 0; i < lt->n; i++) tide_host_free(lt->items[i].name);
    for (size_t i = 0; i < lt->n_step_names; i++) tide_host_free(lt->step_names[i]);
    tide_host_free(lt->items);
    tide_host_free(lt->step_names);
    tide_host_free(lt->model);
    *lt = (tide_lifetimes){0};
}

uint64_t tide_lifetime_aligned_bytes(const tide_lifetime *item) {
    uint64_t aligned_bytes;
    return tide_align_up(item->size_bytes, item->align_bytes, &aligned_bytes) ? aligned_bytes : item->size_bytes;
}

// ---- plan ----

/// @return false without memory; where there is nothing, nothing is copied
static bool copy_array(void *out, const void *from, size_t n, size_t elem_bytes) {
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
    tide_status st = tide_lifetimes_copy(&plan->lifetimes, &copy->lifetimes, err);
    if (st != TIDE_OK) goto fail;
    copy->strategy = tide_host_strdup(plan->strategy != NULL ? plan->strategy : "");
    if (copy->strategy == NULL ||
        !copy_array(&copy->offsets, plan->offsets, plan->lifetimes.n, sizeof *copy->offsets) ||
        !copy_array(&copy->pools, plan->pools, plan->lifetimes.n, sizeof *copy->pools) ||
        !copy_array(&copy->pool_list, plan->pool_list, plan->n_pools, sizeof *copy->pool_list)) {
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
    tide_host_free(p);
}

double tide_memory_plan_saving(const tide_memory_plan *p) {
    if (p->naive_bytes == 0) return 0.0;
    return 1.0 - (double)p->bytes / (double)p->naive_bytes;
}

uint64_t tide_memory_plan_predicted_run(const tide_memory_plan *p, tide_memory_kind kind, bool naive,
                                        uint64_t n_contexts) {
    if (kind == TIDE_KIND_WORKSPACE && naive && n_contexts > 1) return TIDE_UNKNOWN_BYTES;
    uint64_t once = 0, each = 0;
    if (kind == TIDE_KIND_WORKSPACE) each = naive ? p->lower_bound_bytes : p->bytes;
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
