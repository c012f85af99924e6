// SPDX-License-Identifier: MIT
//
// Items of a memory plan: its tensors over the steps of the execution order. See items.h.
#include <string.h>

#include "analysis/items_internal.h"

tide_item_shape tide__shape_of_tensor(const tide_lifetime *l) {
    const uint64_t held = l->alias == TIDE_ALIAS_NONE ? tide_lifetime_aligned_bytes(l) : l->size_bytes;
    tide_item_shape shape = {.size_bytes = l->size_bytes,
                             .reserved_bytes = held,
                             .allocator = "",
                             .kind = l->kind,
                             .role = l->role,
                             .alias = l->alias,
                             .is_planned = true};
    tide__shape_classify(&shape, l->persistent);
    return shape;
}

static tide_status add_tensor(tide__items_builder *b, const tide_memory_plan *plan, size_t i, const char *device,
                              const char *none) {
    const tide_lifetimes *lt = &plan->lifetimes;
    const tide_lifetime *l = &lt->items[i];
    // Persistent ones live for all steps: their first step says nothing about who made them.
    const bool has_owner = !l->persistent && l->begin_step >= 0;
    const bool has_name = has_owner && (uint64_t)l->begin_step < lt->n_step_names;
    tide_item_shape shape = tide__shape_of_tensor(l);
    shape.device = device;
    shape.allocator = none;
    tide__item item = {.begin = l->begin_step, .end = l->end_step, .id = i, .place = plan->offsets[i]};
    TIDE_TRY(tide__items_add_site(b, l->name, has_name ? lt->step_names[l->begin_step] : "",
                                  has_owner ? l->begin_step : -1, &item.site));
    TIDE_TRY(tide__items_put_shape(b, &shape, &item.shape));
    return tide__items_add(b, &item);
}

static tide_status add_tensors(tide__items_builder *b, const tide_memory_plan *plan) {
    const char *device = NULL, *none = tide__items_text(b, "");
    tide_device last = {0};
    for (size_t i = 0; i < plan->lifetimes.n; i++) {
        const tide_device d = plan->lifetimes.items[i].device;
        if (device == NULL || !tide_device_equal(d, last)) {
            char text[32];
            tide_device_format(d, text, sizeof text);
            device = NULL;
            for (size_t k = 0; k < b->n_shape_texts; k++)
                if (strcmp(b->shape_texts[k], text) == 0) device = b->shape_texts[k];
            if (device == NULL) device = tide__items_text(b, text);
            last = d;
        }
        if (device == NULL || none == NULL) return TIDE_ERR_NOMEM;
        TIDE_TRY(add_tensor(b, plan, i, device, none));
    }
    return TIDE_OK;
}

tide_status tide_items_of_plan(const tide_memory_plan *plan, tide_items *out, tide_error *err) {
    tide__items_builder b;
    tide_status st = tide__items_start(&b, plan->lifetimes.n, 0, plan->lifetimes.n_steps);
    if (st == TIDE_OK) st = add_tensors(&b, plan);
    if (st == TIDE_OK) st = tide__items_finish(&b, NULL, out);
    tide__items_abandon(&b);
    if (st == TIDE_ERR_OVERFLOW) return TIDE_FAIL(err, st, "the plan has too many tensors to be shown");
    return st == TIDE_OK ? st : TIDE_FAIL(err, st, "no memory for the tensors of a plan");
}
