// SPDX-License-Identifier: MIT
//
// trace_view: what `tidemark trace` shows of a trace: its facts, who was live at a moment, what changed between two.
#ifndef TIDE_CLI_TRACE_VIEW_H
#define TIDE_CLI_TRACE_VIEW_H

#include "cli/cli.h"
#include "profiler/executions.h"

// ---- moments (trace_moment.c) ----

/// A stretch of the trace that is looked at: the whole of it, or one run.
typedef struct cli_span {
    int64_t run_id; ///< 0: the whole trace
    uint64_t begin_ns, end_ns;
    uint64_t origin_ns; ///< times count from here, whatever the stretch is
    uint64_t last_ns;   ///< where the whole trace ends
} cli_span;
/// run_id -1: the run that is shown when none is asked for. TIDE_ERR_NOT_FOUND for a run that is not there.
tide_status cli_trace_span(tide_trace *t, int64_t run_id, cli_span *out, tide_error *err) TIDE_NODISCARD;

/// How long after the origin; 0 before it.
static inline uint64_t cli_since(const cli_span *span, uint64_t t_ns) {
    return t_ns > span->origin_ns ? t_ns - span->origin_ns : 0;
}

/// "12.5ms" and "12.5 ms" are 12,500,000; false for what is no duration.
bool cli_duration(const char *text, uint64_t *ns);

typedef struct cli_moment {
    const char *text; ///< as it was given, borrowed
    uint64_t t_ns, event;
    bool by_event;     ///< `event` says it, not the time: many events can share a nanosecond
    bool has_time;     ///< t_ns is known before the event is read
    bool is_leaked;    ///< no moment: what was never freed until it
    bool is_temporary; ///< no moment: the temporary blocks from `from_ns` to it
    uint64_t from_ns;
} cli_moment;
/**
 * What people call a moment: of the span "peak" (the first highest), "begin", "end", "50%"; of the trace "12.5ms" from
 * its origin, "#123" (an event), "exec:12" (of the run's 13th execution its fullest moment; "exec:12:begin", ":end",
 * ":7" and ":conv1" where that step begins); or the name of a mark, the first one in the span ("mark:50%" when the name
 * looks like something else). "leaked" is no moment: what was never freed until the end, also what processes had that
 * ended before; nor is "temporary": all blocks of the span that their thread freed at once. The one place that reads
 * such words: `trace` and `diff` ask here.
 *
 * @return TIDE_ERR_INVALID for what is none, with the marks that there are
 */
tide_status cli_moment_of(tide_trace *t, const cli_span *span, const char *text, cli_moment *out,
                          tide_error *err) TIDE_NODISCARD;
/// "2.5 ms from the begin (50.0 %), event 17" or "(50.0 % of run 2)", into `buf`: times from the origin, shares of the
/// span.
char *cli_moment_place(const cli_moment *m, const cli_span *span, char *buf, size_t buf_bytes);
/// Who is live just after it, in place of a plan's buffer the tensors in it. out->t_ns and out->event_id are settled
/// with it.
tide_status cli_moment_live(tide_trace *t, const cli_moment *m, tide_live_set *out, tide_error *err) TIDE_NODISCARD;

// ---- views: text and JSON alike; each returns an exit code ----

typedef struct cli_trace_options {
    const char *path;
    int64_t run_id;          ///< -1: as the others show it; 0: the whole trace
    const char *at, *and_at; ///< NULL: not asked for
    const char *other;       ///< --compare; NULL
    bool grouped;
    tide_group_by by;
    bool by_callees;   ///< groups in the order of what they hold with all that they called
    uint64_t max_rows; ///< of live blocks, groups and answers; 0: all
    bool json;
} cli_trace_options;

int cli_trace_facts(tide_trace *t, const cli_trace_options *o);
/// What of each device but the CPU is in use just after `at` (NULL: when most is within the span), and who has it:
/// `devices` of a document, or lines on stdout (j NULL).
tide_status cli_trace_devices(tide_trace *t, const cli_span *span, const cli_moment *at, tide_json_out *j,
                              tide_error *err) TIDE_NODISCARD;
/// Who was live at o->at, block by block or in groups.
int cli_trace_live(tide_trace *t, const cli_trace_options *o);
/// o->at against o->and_at, or `t` against o->other.
int cli_trace_changes(tide_trace *t, const cli_trace_options *o);
int cli_trace_answer(tide_trace *t, const cli_trace_options *o, const char *query);
/// The processes side by side: which one differs from the others, when, and by what.
int cli_trace_lanes(tide_trace *t, const cli_trace_options *o);
/// Everything looked at. 1 when the file is sound but what it holds is not whole.
int cli_trace_check(tide_trace *t, const cli_trace_options *o);

/// "kind", "scope", …; false for a word that is none.
bool cli_group_by_of(const char *text, tide_group_by *out);
const char *cli_group_by_name(tide_group_by by);

#endif
