// SPDX-License-Identifier: MIT
//
// facts: what the reports derive from a timeline, once for all formats.
#ifndef TIDE_REPORTS_FACTS_H
#define TIDE_REPORTS_FACTS_H

#include "profiler/timeline.h"

#ifdef __cplusplus
extern "C" {
#endif

/// How a bar is drawn: colour and hatch; class names of the style sheet.
#define TIDE_REPORT_FILL_MAP(XX)                                                                                       \
    XX(INTERMEDIATE, "intermediate")                                                                                   \
    XX(SCRATCH, "scratch")                                                                                             \
    XX(INOUT, "input, output, default")                                                                                \
    XX(WEIGHT, "weight, persistent")                                                                                   \
    XX(KV_CACHE, "KV cache")                                                                                           \
    XX(HOST, "host memory")
typedef enum tide_report_fill {
#define XX(name, text) TIDE_REPORT_FILL_##name,
    TIDE_REPORT_FILL_MAP(XX)
#undef XX
        TIDE_REPORT_N_FILLS
} tide_report_fill;
tide_report_fill tide_report_fill_of(const tide_timeline_item *item);
const char *tide_report_fill_text(tide_report_fill fill);

/// Whether the role is known: a trace that does not tell says INTERMEDIATE.
bool tide_report_knows_role(const tide_timeline *tl, const tide_timeline_item *item);

/// (plan - bound) / bound; false: unknown.
bool tide_report_gap(const tide_timeline *tl, double *out);
/// 1 - plan / naive; false: unknown.
bool tide_report_saving(const tide_timeline *tl, double *out);
/// How high plan and lower bound stand beside the curve: on top of what it holds and no plan places.
typedef struct tide_report_levels {
    bool known;           ///< false: no plan, or nobody knows what lies below it; all else is 0 then
    uint64_t below;       ///< persistent tensors of a plan, the predicted bytes of all but Workspace in a run
    uint64_t plan, bound; ///< heights: `below` and the bytes of each
    char words[64];       ///< what `below` is: "weights, inputs, outputs"; "" when it is nothing
} tide_report_levels;
tide_report_levels tide_report_levels_of(const tide_timeline *tl);
/// Weights, inputs and outputs: what is there for the whole run and would stand above everything else.
bool tide_report_persists(const tide_timeline_item *item);
bool tide_report_alive_at(const tide_timeline_item *item, int64_t t);

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
