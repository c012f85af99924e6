// SPDX-License-Identifier: MIT
//
// facts: what the reports derive from a timeline, once for all formats.
#ifndef TIDE_REPORTS_FACTS_H
#define TIDE_REPORTS_FACTS_H

#include "profiler/timeline_facts.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Whether the role is known: a trace that does not tell says INTERMEDIATE.
bool tide_report_knows_role(const tide_timeline *tl, const tide_timeline_item *item);

/// (plan - bound) / bound; false: unknown.
bool tide_report_gap(const tide_timeline *tl, double *out);
/// 1 - plan / naive; false: unknown.
bool tide_report_saving(const tide_timeline *tl, double *out);

/// Position on the axis for people: steps as they are, nanoseconds after the axis' begin.
uint64_t tide_report_time(const tide_timeline *tl, int64_t t);
/// "12" or "1.5 ms".
char *tide_report_format_time(const tide_timeline *tl, int64_t t, char *buf, size_t buf_bytes);
char *tide_report_format_span(const tide_timeline *tl, int64_t begin, int64_t end, char *buf, size_t buf_bytes);
/// tide_format_bytes() without ".00": "128 KiB", "1.50 MiB".
char *tide_report_format_round(uint64_t bytes, char *buf, size_t buf_bytes);

/// Indices of the `max` largest items, in the timeline's own order; all when there are no more. Owned by the caller
/// (tide_host_free); *out is NULL for none.
tide_status tide_report_largest(const tide_timeline *tl, size_t max, size_t **out, size_t *n,
                                tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
