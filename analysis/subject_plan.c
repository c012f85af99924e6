// SPDX-License-Identifier: MIT
//
// What a plan has alive at its steps as a curve: bytes that aliases share count once (tide_lifetimes_occupied). Which
// tensors these are, planner/plan_live.h tells.
#include <string.h>

#include "analysis/subject_internal.h"
#include "core/base/host_alloc.h"

const char *tide__subject_device(const tide_subject *s, tide_device device) {
    char text[32];
    tide_device_format(device, text, sizeof text);
    for (size_t i = 0; i < s->n_devices; i++)
        if (strcmp(s->devices[i], text) == 0) return s->devices[i];
    return "";
}

// ---- the curve ----

/// Whether a tensor is of that kind and device.
static bool matches(const tide_lifetime *l, int kind, const tide_device *device) {
    return tide_kind_is_among(kind, (int)l->kind) && (device == NULL || tide_device_equal(l->device, *device));
}

static tide_status parse_device(const tide_memory_plan *plan, const char *text, tide_device *out, tide_error *err) {
    bool known = tide_device_parse(text, out, NULL) == TIDE_OK, used = false;
    for (size_t i = 0; known && !used && i < plan->lifetimes.n; i++)
        used = tide_device_equal(plan->lifetimes.items[i].device, *out);
    return used ? TIDE_OK : TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "the plan has no device '%s'", text);
}

tide_status tide__plan_curve(const tide_memory_plan *plan, int kind, const char *device, tide__step_curve *out,
                             tide_error *err) {
    const tide_lifetimes *lt = &plan->lifetimes;
    tide_device d;
    tide_occupied *occupied;
    size_t n_occupied, n = 0;
    if (device != NULL) TIDE_TRY(parse_device(plan, device, &d, err));
    TIDE_TRY(tide_lifetimes_occupied(lt, &occupied, &n_occupied, err));
    tide__step_change *changes = tide_host_alloc((lt->n + n_occupied + 1) * sizeof *changes);
    if (changes == NULL) {
        tide_host_free(occupied);
        return TIDE_NO_MEMORY(err, "for the curve of a plan");
    }
    for (size_t i = 0; i < n_occupied; i++) {
        const tide_occupied *o = &occupied[i];
        if (matches(&lt->items[o->root], kind, device != NULL ? &d : NULL))
            changes[n++] =
                (tide__step_change){.begin = o->begin_step, .end = o->end_step, .bytes = o->hi_bytes - o->lo_bytes};
    }
    for (size_t i = 0; i < lt->n; i++) {
        const tide_lifetime *l = &lt->items[i];
        if (l->persistent && matches(l, kind, device != NULL ? &d : NULL))
            changes[n++] = (tide__step_change){
                .begin = l->begin_step, .end = l->end_step, .bytes = tide_lifetime_aligned_bytes(l)};
    }
    const tide_status st = tide__step_curve_make(changes, n, false, out);
    tide_host_free(changes);
    tide_host_free(occupied);
    if (st == TIDE_ERR_OVERFLOW) return TIDE_FAIL(err, st, "the tensors of the plan add up to more than 2^64 bytes");
    return st == TIDE_OK ? st : TIDE_FAIL(err, st, "no memory for the curve of a plan");
}

tide_status tide__subject_plan_live(tide_subject *s, const tide_plan_live **out, tide_error *err) {
    if (!s->has_live) TIDE_TRY(tide_plan_live_make(tide__subject_plan(s), &s->live, err));
    s->has_live = true;
    *out = &s->live;
    return TIDE_OK;
}
