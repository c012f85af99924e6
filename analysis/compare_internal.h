// SPDX-License-Identifier: MIT
//
// What the files of compare share. Private to analysis/compare*.
#ifndef TIDE_ANALYSIS_COMPARE_INTERNAL_H
#define TIDE_ANALYSIS_COMPARE_INTERNAL_H

#include "analysis/compare.h"

typedef struct tide__diff_side {
    tide_subject *s;
    const tide_subject_facts *facts;
    const tide_items *items; ///< NULL: not loaded
    tide_explanation e;
} tide__diff_side;

typedef struct tide__diff_work {
    tide__diff_side a, b;
    bool rows_at, is_same; ///< same: items have the same numbers on both sides
    const tide_progress *progress;
    tide_error *err;
} tide__diff_work;

/// TIDE_ERR_CANCELLED when the caller has enough.
tide_status tide__diff_tell(const tide__diff_work *w, double share, const char *what) TIDE_NODISCARD;
/// d->rows, in no order yet.
tide_status tide__diff_rows(tide__diff_work *w, tide_diff *d) TIDE_NODISCARD;

#endif
