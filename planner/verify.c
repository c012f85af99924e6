// SPDX-License-Identifier: MIT
//
// verifier: whether a plan is sound, whoever made it. Shares no code with any strategy and runs on every plan, in
// release builds too; the runtime's safety rests on it.
//
//     table      lives, gaps and sizes mean something; aliases lie inside their targets       verify_table.c
//     buffers    one for each device and kind, in order
//     places     each tensor has one, aligned, inside its buffer, where it was fixed          verify_places.c
//     pools      one tensor at a time, large enough, end to end                               verify_pools.c
//     overlap    no byte belongs to two classes at one step, or to two members of a set       verify_overlap.c
//     totals     what the plan says of itself                                                 verify_totals.c
//
// The first fault ends it. Each part may rely on what those before it have found sound.
#include <string.h>

#include "core/base/host_alloc.h"
#include "planner/verify_internal.h"

const char *tide_verify_text(tide_verify_code code) {
    switch (code) {
#define XX(name, text)                                                                                                 \
    case TIDE_VERIFY_##name:                                                                                           \
        return text;
        TIDE_VERIFY_MAP(XX)
#undef XX
    }
    return "fault ?";
}

static tide_status check_has_places(tide_verify_check *c) {
    if (c->n > UINT32_MAX / 4)
        return TIDE_FAIL(c->err, TIDE_ERR_OVERFLOW, "%zu tensors are more than the verifier can number", c->n);
    if (c->n == 0 || (c->plan->offsets != NULL && c->plan->pools != NULL)) return TIDE_OK;
    return TIDE_FAULT(c, MISSING, TIDE_VERIFY_NOBODY, TIDE_VERIFY_NOBODY, "the plan of %zu tensors has no places",
                      c->n);
}

static tide_status check_all(tide_verify_check *c, uint64_t *peaks) {
    TIDE_TRY(tide__verify_places(c));
    TIDE_TRY(tide__verify_rects(c));
    TIDE_TRY(tide__verify_pools(c));
    TIDE_TRY(tide__verify_overlap(c, peaks));
    TIDE_TRY(tide__verify_apart(c));
    return tide__verify_totals(c, peaks);
}

static tide_status check_plan(tide_verify_check *c) {
    TIDE_TRY(check_has_places(c));
    TIDE_TRY(tide__verify_table(c));
    TIDE_TRY(tide__verify_buffers(c));
    uint64_t *peaks = tide_host_calloc(c->plan->n_buffers, sizeof *peaks);
    if (peaks == NULL) return TIDE_FAIL(c->err, TIDE_ERR_NOMEM, "no memory to verify %zu buffers", c->plan->n_buffers);
    const tide_status st = check_all(c, peaks);
    tide_host_free(peaks);
    return st;
}

tide_status tide_plan_verify(const tide_memory_plan *plan, tide_verify_result *result, tide_error *err) {
    tide_verify_check c = {.plan = plan,
                           .items = plan->lifetimes.items,
                           .n = plan->lifetimes.n,
                           .result = {TIDE_VERIFY_OK, TIDE_VERIFY_NOBODY, TIDE_VERIFY_NOBODY},
                           .err = err};
    const tide_status st = check_plan(&c);
    tide_host_free(c.roots);
    tide_host_free(c.n_alive);
    tide_host_free(c.buffers);
    tide_host_free(c.bases);
    tide_host_free(c.ends);
    tide_host_free(c.rects);
    if (st == TIDE_ERR_VERIFY) tide_error_note(err, "%s", tide_verify_text(c.result.code));
    if (result != NULL) *result = c.result;
    return st;
}
