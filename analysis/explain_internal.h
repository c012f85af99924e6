// SPDX-License-Identifier: MIT
//
// What the files of explain share. Private to analysis/explain* and analysis/compare*.
#ifndef TIDE_ANALYSIS_EXPLAIN_INTERNAL_H
#define TIDE_ANALYSIS_EXPLAIN_INTERNAL_H

#include "analysis/explain.h"
#include "analysis/reporter.h"
#include "analysis/subject_internal.h"

/// most_events: of a run that is replayed; TIDE_EXPLAIN_ALIKE_EVENTS but in tests.
tide_status tide__explain_trace(tide_subject *s, size_t n_without, uint64_t most_events, tide__reporter *reporter,
                                tide_explanation *out, tide_error *err) TIDE_NODISCARD;

/// Whether it can be left out: what persists stays.
static inline bool tide__can_go(const tide_live_item *x) { return !x->shape.persistent && x->counts_bytes > 0; }
/// The step that runs at `t`; "" when it is not known.
const char *tide__step_at(const tide_subject_facts *f, int64_t t);

/// With the device where there is more than one. `buf` is used when the text is not there already.
const char *tide__kind_key(const tide_live_item *x, bool with_device, char *buf, size_t buf_bytes);

#endif
