// SPDX-License-Identifier: MIT
//
// A table of lifetimes in the making, as the readers of this folder fill it. See formats_internal.h.
#include <inttypes.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "planner/formats/formats_internal.h"

void tide__list_deinit(tide__list *l) { tide_strmap_deinit(&l->names); }

tide_status tide__list_unique(tide__list *l, const char *name, char **out) {
    tide_text text = {0};
    tide_text_add(&text, name);
    uint64_t n = 1;
    // The map counts how often a name was asked for, so that many tensors of one name do not look from the beginning.
    if (tide_strmap_get(&l->names, name, &n)) {
        do {
            text.len = 0;
            tide_text_addf(&text, "%s.%" PRIu64, name, ++n);
        } while (!text.failed && tide_strmap_get(&l->names, tide_text_str(&text), NULL));
    }
    tide_status st = text.failed ? TIDE_ERR_NOMEM : tide_strmap_put(&l->names, name, n);
    if (st == TIDE_OK && n > 1) st = tide_strmap_put(&l->names, tide_text_str(&text), 1);
    if (st == TIDE_OK) {
        *out = tide_host_strdup(tide_text_str(&text));
        if (*out == NULL) st = TIDE_ERR_NOMEM;
    }
    tide_text_deinit(&text);
    return st == TIDE_OK ? st : TIDE_NO_MEMORY(l->err, "to read %s", l->path);
}

/// Append `name`, which is taken.
static tide_status append_name(tide__list *l, char ***names, size_t *n, size_t *cap, char *name) {
    const tide_status st = TIDE_GROW(names, cap, *n + 1, l->err, "to read %s", l->path);
    if (st == TIDE_OK)
        (*names)[(*n)++] = name;
    else
        tide_host_free(name);
    return st;
}

tide_status tide__list_add_step(tide__list *l, char *name) {
    tide_lifetimes *lt = l->lt;
    if (lt->n_step_names == TIDE__LIST_MAX_STEPS) {
        tide_host_free(name);
        return TIDE_FAIL(l->err, TIDE_ERR_BAD_INPUT,
                         "'%s' has more than %d steps, subgraphs as often as they are called", l->path,
                         (int)TIDE__LIST_MAX_STEPS);
    }
    TIDE_TRY(append_name(l, &lt->step_names, &lt->n_step_names, &l->cap_steps, name));
    lt->n_steps = (int64_t)lt->n_step_names;
    return TIDE_OK;
}

tide_status tide__list_add_dynamic(tide__list *l, char *name) {
    return append_name(l, &l->lt->dynamic, &l->lt->n_dynamic, &l->cap_dynamic, name);
}

tide_status tide__list_add_region(tide__list *l, const tide_plan_region *region) {
    tide_lifetimes *lt = l->lt;
    TIDE_TRY(TIDE_GROW(&lt->regions, &l->cap_regions, lt->n_regions + 1, l->err, "to read %s", l->path));
    lt->regions[lt->n_regions++] = *region;
    return TIDE_OK;
}

tide_status tide__list_add_item(tide__list *l, const tide_lifetime *item) {
    const tide_status st = tide_lifetimes_add(l->lt, item, l->err);
    if (st == TIDE_OK || st == TIDE_ERR_NOMEM) return st;
    if (l->err != NULL) l->err->status = TIDE_ERR_BAD_INPUT;
    tide_error_where(l->err, "%s", l->path);
    return TIDE_ERR_BAD_INPUT;
}
