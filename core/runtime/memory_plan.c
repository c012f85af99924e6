// SPDX-License-Identifier: MIT
//
// memory plan: names of what plans are made of, and the helpers of a finished plan. The planner makes it; the runtime,
// the profiler and the reports read it. Nothing here places anything.
#include "core/runtime/memory_plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"

// ---- lifetimes ----
//
// The table that goes into the planner: which tensor is alive when, how large it is, inside which other it lies.

tide_lifetime tide_lifetime_make(const char *name, uint64_t size_bytes, uint64_t align_bytes, int64_t begin_step,
                                 int64_t end_step) {
    // Read only until it is copied: the field is not const because a table owns what it points to.
    return (tide_lifetime){.name = (char *)(uintptr_t)name,
                           .size_bytes = size_bytes,
                           .align_bytes = align_bytes,
                           .begin_step = begin_step,
                           .end_step = end_step,
                           .kind = TIDE_KIND_WORKSPACE,
                           .node = TIDE_NO_INDEX,
                           .port = TIDE_NO_INDEX,
                           .value = TIDE_NO_INDEX};
}

static tide_status check_fixed(const tide_lifetime *item, uint64_t aligned_bytes, tide_error *err) {
    uint64_t end;
    if (!item->fixed) return TIDE_OK;
    if (item->persistent)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "tensor '%s' is persistent: it has no place in a buffer to be fixed",
                         item->name);
    if (item->fixed_offset_bytes % item->align_bytes != 0)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "tensor '%s' is fixed at %llu, which is no multiple of %llu",
                         item->name, (unsigned long long)item->fixed_offset_bytes,
                         (unsigned long long)item->align_bytes);
    if (!tide_add_u64(item->fixed_offset_bytes, aligned_bytes, &end) || end > INT64_MAX)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "tensor '%s', fixed at %llu, ends past 2^63 - 1", item->name,
                         (unsigned long long)item->fixed_offset_bytes);
    return TIDE_OK;
}

static tide_status check_gaps(const tide_lifetime *item, tide_error *err) {
    int64_t free_from = item->begin_step, n_needed = item->end_step - item->begin_step;
    for (uint32_t k = 0; k < item->n_gaps; k++) {
        const tide_gap *gap = &item->gaps[k];
        if (gap->begin_step < free_from || gap->begin_step >= gap->end_step || gap->end_step > item->end_step)
            return TIDE_FAIL(err, TIDE_ERR_INVALID,
                             "tensor '%s' lives from step %lld to %lld: its gap %lld-%lld is empty, outside, or not "
                             "after the one before it",
                             item->name, (long long)item->begin_step, (long long)item->end_step,
                             (long long)gap->begin_step, (long long)gap->end_step);
        if (gap->lo_bytes > gap->hi_bytes || gap->hi_bytes > item->size_bytes)
            return TIDE_FAIL(err, TIDE_ERR_INVALID,
                             "tensor '%s' of %llu bytes: its gap %lld-%lld keeps bytes %llu to %llu", item->name,
                             (unsigned long long)item->size_bytes, (long long)gap->begin_step, (long long)gap->end_step,
                             (unsigned long long)gap->lo_bytes, (unsigned long long)gap->hi_bytes);
        free_from = gap->end_step;
        if (gap->lo_bytes == gap->hi_bytes) n_needed -= gap->end_step - gap->begin_step;
    }
    if (n_needed == 0)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "tensor '%s': its gaps leave no step at which it is needed",
                         item->name);
    return TIDE_OK;
}

static tide_status check_item(const tide_lifetimes *lt, const tide_lifetime *item, tide_error *err) {
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
    if (item->alias != TIDE_ALIAS_NONE)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "tensor '%s' comes as an alias: aliases are made by name, afterwards",
                         item->name);
    for (size_t k = 0; item->point_bytes != NULL && k < lt->n_points; k++) {
        if (item->point_bytes[k] > item->size_bytes)
            return TIDE_FAIL(err, TIDE_ERR_INVALID, "tensor '%s' of %llu bytes has %llu at profile point '%s'",
                             item->name, (unsigned long long)item->size_bytes, (unsigned long long)item->point_bytes[k],
                             lt->point_names[k]);
    }
    TIDE_TRY(check_fixed(item, aligned_bytes, err));
    return check_gaps(item, err);
}

static void deinit_item(tide_lifetime *item) {
    tide_host_free(item->name);
    tide_host_free(item->gaps);
    tide_host_free(item->point_bytes);
    tide_host_free(item->bound);
}

/// *(T **)out becomes a copy of the n elements at `from`; left alone where there is nothing. @return false without
/// memory
static bool copy_array(void *out, const void *from, size_t n, size_t elem_bytes) {
    if (n == 0 || from == NULL) return true;
    void *copy = tide_host_calloc(n, elem_bytes);
    if (copy == NULL) return false;
    memcpy(copy, from, n * elem_bytes);
    memcpy(out, &copy, sizeof copy); // `out` points to some T*
    return true;
}

/// *out owns copies of what `item` points to.
static tide_status copy_item(const tide_lifetime *item, size_t n_points, tide_lifetime *out) {
    *out = *item;
    out->gaps = NULL;
    out->point_bytes = NULL;
    out->bound = item->bound != NULL ? tide_host_strdup(item->bound) : NULL;
    out->name = tide_host_strdup(item->name);
    if (out->name != NULL && (out->bound != NULL || item->bound == NULL) &&
        copy_array(&out->gaps, item->gaps, item->n_gaps, sizeof *item->gaps) &&
        copy_array(&out->point_bytes, item->point_bytes, n_points, sizeof *item->point_bytes))
        return TIDE_OK;
    deinit_item(out);
    return TIDE_ERR_NOMEM;
}

tide_status tide_lifetimes_add(tide_lifetimes *lt, const tide_lifetime *item, tide_error *err) {
    TIDE_TRY(check_item(lt, item, err));
    if (tide_host_grow(&lt->items, &lt->cap, lt->n + 1, sizeof *lt->items) != TIDE_OK ||
        copy_item(item, lt->n_points, &lt->items[lt->n]) != TIDE_OK)
        return TIDE_NO_MEMORY(err, "for the lifetime of tensor '%s'", item->name);
    lt->n++;
    // A lifetime past the last step would make every per-step view wrong.
    if (lt->n_steps < item->end_step) lt->n_steps = item->end_step;
    return TIDE_OK;
}

/// Into a zeroed list; *n_out counts what is there even when memory ends.
static tide_status copy_names(char *const *names, size_t n, char ***out, size_t *n_out) {
    if (n == 0) return TIDE_OK;
    *out = tide_host_calloc(n, sizeof **out);
    if (*out == NULL) return TIDE_ERR_NOMEM;
    for (size_t i = 0; i < n; i++) {
        (*out)[i] = tide_host_strdup(names[i]);
        if ((*out)[i] == NULL) return TIDE_ERR_NOMEM;
        *n_out = i + 1;
    }
    return TIDE_OK;
}

static void free_names(char **names, size_t n) {
    for (size_t i = 0; i < n; i++) tide_host_free(names[i]);
    tide_host_free(names);
}

static tide_status copy_items(const tide_lifetimes *lt, tide_lifetimes *out) {
    if (lt->n == 0) return TIDE_OK;
    out->items = tide_host_calloc(lt->n, sizeof *out->items);
    if (out->items == NULL) return TIDE_ERR_NOMEM;
    out->cap = lt->n;
    for (size_t i = 0; i < lt->n; i++) {
        TIDE_TRY(copy_item(&lt->items[i], lt->n_points, &out->items[i]));
        out->n = i + 1;
    }
    return TIDE_OK;
}

static tide_status copy_regions(const tide_lifetimes *lt, tide_lifetimes *out) {
    if (lt->n_regions == 0) return TIDE_OK;
    out->regions = tide_host_calloc(lt->n_regions, sizeof *out->regions);
    if (out->regions == NULL) return TIDE_ERR_NOMEM;
    memcpy(out->regions, lt->regions, lt->n_regions * sizeof *out->regions);
    out->n_regions = lt->n_regions;
    return TIDE_OK;
}

static const char *const body_kinds[] = {"then", "else", "loop", "scan"};

const char *tide_plan_region_name(const tide_plan_region *r) { return body_kinds[r->kind]; }

bool tide_body_kind_parse(const char *name, tide_body_kind *out) {
    for (size_t k = 0; k < sizeof body_kinds / sizeof body_kinds[0]; k++) {
        if (strcmp(body_kinds[k], name) != 0) continue;
        *out = (tide_body_kind)k;
        return true;
    }
    return false;
}

/// Whether a region lies in another one.
static bool is_inside(const tide_plan_region *r, const tide_plan_region *other) {
    return other->begin_step <= r->open_step && r->end_step <= other->end_step;
}

/// The innermost region that holds the step, of those around `before`; NULL: there is none.
static const tide_plan_region *innermost(const tide_lifetimes *lt, int64_t step, const tide_plan_region *before) {
    const tide_plan_region *found = NULL;
    for (size_t i = 0; i < lt->n_regions; i++) {
        const tide_plan_region *r = &lt->regions[i];
        if (step < r->begin_step || step >= r->end_step) continue;
        if (before != NULL && (r == before || !is_inside(before, r))) continue;
        if (found == NULL || is_inside(r, found)) found = r;
    }
    return found;
}

char *tide_lifetimes_body_of(const tide_lifetimes *lt, int64_t step, char *buf, size_t buf_bytes) {
    size_t len = 0;
    TIDE_ASSERT(buf_bytes > 0);
    buf[0] = '\0';
    for (const tide_plan_region *r = innermost(lt, step, NULL); r != NULL && len < buf_bytes;
         r = innermost(lt, step, r)) {
        const bool named = (uint64_t)r->open_step < lt->n_step_names;
        const int n = snprintf(buf + len, buf_bytes - len, "%s%s of %s", len > 0 ? ", " : "", tide_plan_region_name(r),
                               named ? lt->step_names[r->open_step] : "a step");
        len += n > 0 ? (size_t)n : 0;
    }
    return buf;
}

tide_status tide_lifetimes_copy(const tide_lifetimes *lt, tide_lifetimes *out, tide_error *err) {
    tide_lifetimes copy = {.n_steps = lt->n_steps, .process = lt->process, .given_plan_bytes = lt->given_plan_bytes};
    tide_status st = copy_items(lt, &copy);
    if (st == TIDE_OK) st = copy_names(lt->step_names, lt->n_step_names, &copy.step_names, &copy.n_step_names);
    if (st == TIDE_OK) st = copy_names(lt->recomputed, lt->n_recomputed, &copy.recomputed, &copy.n_recomputed);
    if (st == TIDE_OK) st = copy_names(lt->dynamic, lt->n_dynamic, &copy.dynamic, &copy.n_dynamic);
    if (st == TIDE_OK) st = copy_names(lt->point_names, lt->n_points, &copy.point_names, &copy.n_points);
    if (st == TIDE_OK) st = copy_regions(lt, &copy);
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
    for (size_t i = 0; i < lt->n; i++) deinit_item(&lt->items[i]);
    free_names(lt->step_names, lt->n_step_names);
    free_names(lt->recomputed, lt->n_recomputed);
    free_names(lt->dynamic, lt->n_dynamic);
    free_names(lt->point_names, lt->n_points);
    tide_host_free(lt->items);
    tide_host_free(lt->regions);
    tide_host_free(lt->model);
    *lt = (tide_lifetimes){0};
}

uint64_t tide_lifetime_aligned_bytes(const tide_lifetime *item) {
    uint64_t aligned_bytes;
    if (item->unrounded) return item->size_bytes;
    return tide_align_up(item->size_bytes, item->align_bytes, &aligned_bytes) ? aligned_bytes : item->size_bytes;
}

// ---- aliases ----

uint32_t tide_lifetimes_root(const tide_lifetimes *lt, uint32_t i, uint64_t *offset_bytes) {
    uint64_t offset = 0;
    for (; lt->items[i].alias != TIDE_ALIAS_NONE; i = lt->items[i].alias_of) offset += lt->items[i].alias_offset_bytes;
    if (offset_bytes != NULL) *offset_bytes = offset;
    return i;
}

static const char *why_no_alias(const tide_lifetimes *lt, uint32_t i, uint32_t of, uint64_t offset_bytes) {
    const tide_lifetime *a = &lt->items[i], *b = &lt->items[of];
    uint64_t end;
    if (a->persistent || b->persistent) return "persistent tensors have memory of their own";
    if (a->alias != TIDE_ALIAS_NONE) return "it is an alias already";
    if (a->n_gaps > 0 || a->fixed || a->apart_set != 0)
        return "gaps, a fixed offset and a set to be kept apart from are the target's to have";
    if (!tide_device_equal(a->device, b->device) || a->kind != b->kind) return "they differ in device or kind";
    if (!tide_add_u64(offset_bytes, a->size_bytes, &end) || end > b->size_bytes) return "it would end outside";
    if (tide_lifetimes_root(lt, of, NULL) == i) return "that one lies inside this one";
    return NULL;
}

tide_status tide_lifetimes_alias(tide_lifetimes *lt, uint32_t i, tide_alias_kind kind, uint32_t of,
                                 uint64_t offset_bytes, tide_error *err) {
    if (i >= lt->n || of >= lt->n)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "alias of tensor %u to %u: there are %zu", i, of, lt->n);
    const char *why = kind == TIDE_ALIAS_NONE ? "no kind of alias is given" : why_no_alias(lt, i, of, offset_bytes);
    if (why != NULL)
        return TIDE_FAIL(
            err, TIDE_ERR_INVALID, "tensor '%s' of %llu bytes cannot lie %llu bytes into tensor '%s' of %llu: %s",
            lt->items[i].name, (unsigned long long)lt->items[i].size_bytes, (unsigned long long)offset_bytes,
            lt->items[of].name, (unsigned long long)lt->items[of].size_bytes, why);
    TIDE_ASSERT(offset_bytes <= lt->items[of].size_bytes && lt->items[i].alias == TIDE_ALIAS_NONE);
    lt->items[i].alias = kind;
    lt->items[i].alias_of = of;
    lt->items[i].alias_offset_bytes = offset_bytes;
    TIDE_ASSERT(tide_lifetimes_root(lt, i, NULL) != i);
    return TIDE_OK;
}

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

tide_status tide_memory_plan_copy(const tide_memory_plan *plan, tide_memory_plan **out, tide_error *err) {
    tide_memory_plan *copy;
    TIDE_TRY(TIDE_NEW(&copy, 1, err, "for a memory plan"));
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
        !copy_array(&copy->offsets, plan->offsets, plan->lifetimes.n, sizeof *copy->offsets) ||
        !copy_array(&copy->pools, plan->pools, plan->lifetimes.n, sizeof *copy->pools) ||
        !copy_array(&copy->pool_list, plan->pool_list, plan->n_pools, sizeof *copy->pool_list) ||
        !copy_array(&copy->buffers, plan->buffers, plan->n_buffers, sizeof *copy->buffers)) {
        st = TIDE_NO_MEMORY(err, "for a memory plan of %zu entries", plan->lifetimes.n);
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
    if (kind == TIDE_KIND_WORKSPACE && naive && (n_contexts > 1 || p->lifetimes.n_regions > 0))
        return TIDE_UNKNOWN_BYTES;
    for (size_t i = 0; i < p->lifetimes.n; i++) {
        const tide_lifetime *item = &p->lifetimes.items[i];
        if (!item->persistent || item->kind != kind) continue;
        uint64_t *sum = item->role == TIDE_ROLE_OUTPUT ? &each : &once;
        if (!tide_add_u64(*sum, tide_lifetime_aligned_bytes(item), sum)) return UINT64_MAX;
    }
    uint64_t all;
    return tide_mul_u64(each, n_contexts, &all) && tide_add_u64(all, once, &all) ? all : UINT64_MAX;
}

/// Bytes that are alive at each step, as what they add and take away there: [n_steps + 1].
static void add_life(const tide_lifetime *item, uint64_t *changes) {
    const uint64_t bytes = tide_lifetime_aligned_bytes(item);
    changes[item->begin_step] += bytes;
    changes[item->end_step] -= bytes;
}

tide_status tide_memory_plan_naive_peak(const tide_memory_plan *p, const bool *ran, uint64_t *out, tide_error *err) {
    const tide_lifetimes *lt = &p->lifetimes;
    uint64_t *changes, alive = 0, peak = 0;
    TIDE_TRY(TIDE_NEW(&changes, (size_t)lt->n_steps + 1, err, "for %" PRId64 " steps", lt->n_steps));
    for (size_t i = 0; i < lt->n; i++) {
        if (!lt->items[i].persistent && lt->items[i].kind == TIDE_KIND_WORKSPACE) add_life(&lt->items[i], changes);
    }
    for (int64_t step = 0; step < lt->n_steps; step++) {
        alive += changes[step];
        if (ran[step] && alive > peak) peak = alive;
    }
    tide_host_free(changes);
    *out = peak;
    return TIDE_OK;
}

uint64_t tide_memory_plan_predicted(const tide_memory_plan *p, tide_memory_kind kind) {
    return tide_memory_plan_predicted_run(p, kind, false, 1);
}
