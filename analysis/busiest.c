// SPDX-License-Identifier: MIT
//
// See busiest.h.
#include "analysis/busiest.h"

tide_status tide_subject_busiest(tide_subject *s, tide_moment *out, tide_error *err) {
    const tide_curve_key live = {.of = TIDE_CURVE_LIVE, .kind = -1};
    const tide_curve_key predicted = {.of = TIDE_CURVE_PREDICTED, .kind = -1};
    const tide_subject_facts *f = tide_subject_get_facts(s);
    uint64_t bytes, live_bytes;
    tide_moment at;
    tide_error why = TIDE_ERROR_INIT;
    *out = f->peak;
    if (!f->is_trace || f->end <= f->begin) return TIDE_OK;
    const tide_status st = tide_subject_peak_between(s, predicted, f->begin, f->end - 1, &bytes, &at, &why);
    if (st == TIDE_ERR_NOT_FOUND) return TIDE_OK; // there is no plan
    if (st != TIDE_OK && err != NULL) *err = why;
    if (st != TIDE_OK) return st;
    TIDE_TRY(tide_subject_bytes_at(s, live, at, &live_bytes, err));
    if (live_bytes == f->peak_bytes) *out = at;
    return TIDE_OK;
}
