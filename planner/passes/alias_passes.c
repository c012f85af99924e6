// SPDX-License-Identifier: MIT
//
// Pass after pass over a table, each tried on a copy. See alias_passes.h.
#include "planner/passes/alias_passes.h"

/// Whose aliases.
typedef struct where {
    const tide_program *program;
    const tide_alias_facts *others; ///< [n_others] the same program at other sizes
    size_t n_others;
} where;

/// On success *lt and *bytes are those with the pass, or as they were.
static tide_status run_one(const where *w, tide_pass pass, tide_lifetimes *lt, uint64_t *bytes, tide_pass_gain *gain,
                           tide_error *err) {
    tide_lifetimes with;
    size_t n;
    uint64_t after;
    *gain = (tide_pass_gain){.ran = true, .before_bytes = *bytes, .after_bytes = *bytes};
    TIDE_TRY(tide_lifetimes_copy(lt, &with, err));
    tide_status st = tide__pass_alias_at_points(w->program, w->others, w->n_others, pass, &with, &n, err);
    if (st == TIDE_OK) st = tide_lower_bound(&with, &after, NULL, err);
    if (st != TIDE_OK || after > *bytes) {
        tide_lifetimes_deinit(&with);
        return st;
    }
    tide_lifetimes_deinit(lt);
    *lt = with;
    *bytes = gain->after_bytes = after;
    gain->n = n;
    return TIDE_OK;
}

static tide_status run_all(const where *w, const tide_pass_options *opt, tide_pass_gain *gains, tide_lifetimes *lt,
                           uint64_t *bytes, tide_error *err) {
    static const tide_pass passes[] = {TIDE_PASS_VIEWS, TIDE_PASS_SLICES, TIDE_PASS_IN_PLACE, TIDE_PASS_PARTS};
    for (size_t k = 0; k < sizeof passes / sizeof passes[0]; k++) {
        tide_pass_gain unused;
        if (opt->off[passes[k]]) continue;
        TIDE_TRY(run_one(w, passes[k], lt, bytes, gains != NULL ? &gains[passes[k]] : &unused, err));
    }
    return TIDE_OK;
}

tide_status tide__alias_passes_run(const tide_program *program, const tide_pass_options *opt, tide_pass_gain *gains,
                                   tide_lifetimes *out, uint64_t *bare_bytes, uint64_t *bytes, tide_error *err) {
    const where w = {.program = program};
    TIDE_TRY(tide_liveness(program, opt->align_bytes, out, err));
    tide_status st = tide_lower_bound(out, bytes, NULL, err);
    if (bare_bytes != NULL) *bare_bytes = *bytes;
    if (st == TIDE_OK) st = run_all(&w, opt, gains, out, bytes, err);
    if (st != TIDE_OK) tide_lifetimes_deinit(out);
    return st;
}

tide_status tide_passes_at_points(const tide_program *program, const tide_alias_facts *others, size_t n_others,
                                  const tide_pass_options *opt, tide_lifetimes *lt, tide_error *err) {
    const where w = {.program = program, .others = others, .n_others = n_others};
    uint64_t bytes;
    TIDE_TRY(tide_lower_bound(lt, &bytes, NULL, err));
    return run_all(&w, opt, NULL, lt, &bytes, err);
}
