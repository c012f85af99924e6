// SPDX-License-Identifier: MIT
//
// axis: from times to columns and to words. A window [begin, end) of the axis is spread evenly over n columns as
// tide_subject_columns() does: column i spans from floor(i * span / n) to floor((i + 1) * span / n), and at least one
// unit. Bars, curve and ruler use the same map, so that they line up to the cell.
#ifndef TIDE_TUI_AXIS_H
#define TIDE_TUI_AXIS_H

#include "analysis/subject.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_tui_window {
    int64_t begin, end; ///< half-open, begin < end
} tide_tui_window;

uint64_t tide_tui_window_span(tide_tui_window w);
/// First column that `t` lies in: -1 before the window, `n` from its end on.
int tide_tui_column_of(tide_tui_window w, int n, int64_t t);
/// Columns [*from, *to) of a bar [begin, end), clipped to the window, at least one wide. @return 0 when some of it is
/// inside; -1 when all of it lies before the window, 1 after it
int tide_tui_columns_of(tide_tui_window w, int n, int64_t begin, int64_t end, int *from, int *to);
/// What one column is worth in time, at least 1.
int64_t tide_tui_column_time(tide_tui_window w, int n);

/// The whole axis of a subject, never empty.
tide_tui_window tide_tui_whole(const tide_subject_facts *f);
/// `t` moved by a signed `by`, held inside [lo, hi]; no overflow.
int64_t tide_tui_move_time(int64_t t, int64_t by, int64_t lo, int64_t hi);

/// Distance of ticks: 1, 2 or 5 times a power of ten, so that at most `n_ticks` of them fall into the window.
int64_t tide_tui_tick_time(tide_tui_window w, int n_ticks);
/// "12" (step) or "1.50 ms" after the origin.
char *tide_tui_format_time(const tide_subject_facts *f, int64_t t, char *buf, size_t buf_bytes);
/// "12 steps" or "1.50 ms".
char *tide_tui_format_span(const tide_subject_facts *f, int64_t begin, int64_t end, char *buf, size_t buf_bytes);
/// At most five characters: "999", "1.50K", "15.0M", "1023G".
char *tide_tui_format_short(uint64_t bytes, char *buf, size_t buf_bytes);
/// Where the axis counts from: 0 for steps, the origin for times.
int64_t tide_tui_zero(const tide_subject_facts *f);

#ifdef __cplusplus
}
#endif
#endif
