// SPDX-License-Identifier: MIT
//
// lifetimes: the table that goes into the planner: what lives when, how large, inside what. See memory_plan.h.
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/runtime/memory_plan_internal.h"

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
}

/// *out owns copies of what `item` points to.
static tide_status copy_item(const tide_lifetime *item, size_t n_points, tide_lifetime *out) {
    *out = *item;
    out->gaps = NULL;
    out->point_bytes = NULL;
    out->name = tide_host_strdup(item->name);
    if (out->name != NULL && tide__copy_array(&out->gaps, item->gaps, item->n_gaps, sizeof *item->gaps) &&
        tide__copy_array(&out->point_bytes, item->point_bytes, n_points, sizeof *item->point_bytes))
        return TIDE_OK;
    deinit_item(out);
    return TIDE_ERR_NOMEM;
}

tide_status tide_lifetimes_add(tide_lifetimes *lt, const tide_lifetime *item, tide_error *err) {
    TIDE_TRY(check_item(lt, item, err));
    if (tide_host_grow(&lt->items, &lt->cap, lt->n + 1, sizeof *lt->items) != TIDE_OK ||
        copy_item(item, lt->n_points, &lt->items[lt->n]) != TIDE_OK)
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the lifetime of tensor '%s'", item->name);
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

tide_status tide_lifetimes_copy(const tide_lifetimes *lt, tide_lifetimes *out, tide_error *err) {
    tide_lifetimes copy = {.n_steps = lt->n_steps};
    tide_status st = copy_items(lt, &copy);
    if (st == TIDE_OK) st = copy_names(lt->step_names, lt->n_step_names, &copy.step_names, &copy.n_step_names);
    if (st == TIDE_OK) st = copy_names(lt->recomputed, lt->n_recomputed, &copy.recomputed, &copy.n_recomputed);
    if (st == TIDE_OK) st = copy_names(lt->point_names, lt->n_points, &copy.point_names, &copy.n_points);
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
    free_names(lt->point_names, lt->n_points);
    tide_host_free(lt->items);
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
    lt->items[i].alias = kind;
    lt->items[i].alias_of = of;
    lt->items[i].alias_offset_bytes = offset_bytes;
    return TIDE_OK;
}
