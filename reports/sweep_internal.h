// SPDX-License-Identifier: MIT
//
// What the writers of a sweep share. Private to reports/.
#ifndef TIDE_REPORTS_SWEEP_INTERNAL_H
#define TIDE_REPORTS_SWEEP_INTERNAL_H

#include "reports/sweep.h"

// ---- words ----

/// tide_format_bytes() without ".00": "8 GiB".
const char *tide__sweep_bytes(uint64_t bytes, char *buf, size_t buf_bytes);
/// How a series differs from the others of its model: "S=128, greedy_by_size, align 64"; the strategy where nothing
/// does.
void tide__sweep_label(const tide_sweep *s, size_t series, tide_text *out);

// ---- pictures: one for each model ----

/// Series [from, from + n) of one model; and what its picture spans.
typedef struct tide__sweep_group {
    size_t from, n;
    uint64_t x_lo, x_hi; ///< values; x_hi above x_lo
    uint64_t y_top;      ///< bytes, above 0
    size_t n_figures;    ///< points with figures; 0: nothing to draw
    bool has_errors, has_runs;
} tide__sweep_group;
/// Calls `take` for each.
void tide__sweep_groups(const tide_sweep *s, void (*take)(void *ctx, const tide__sweep_group *g), void *ctx);
/// Whether the budget is in the picture: one far above would leave nothing to see of the curves.
bool tide__sweep_shows(const tide__sweep_group *g, uint64_t budget_bytes);
// How high a point with figures stands in a picture: where budgets are drawn, what is held against them.
uint64_t tide__sweep_height(const tide_sweep *s, const tide_sweep_point *p);
/// With the lower bound in place of the planned buffers.
uint64_t tide__sweep_bound(const tide_sweep *s, const tide_sweep_point *p);
/// With the measured peak in place of what was predicted of it.
uint64_t tide__sweep_measured(const tide_sweep *s, const tide_sweep_point *p);
/// What the pictures show: "total bytes", or "bytes of the process".
const char *tide__sweep_what(const tide_sweep *s);
/// 1, 2 or 5 times a power of ten: the least that divides `span` into no more than `n` steps.
uint64_t tide__sweep_step(uint64_t span, unsigned n);
/// The step of bytes: a power of two.
uint64_t tide__sweep_step_bytes(uint64_t top, unsigned n);

/// The picture as an <svg> element; `y` as of tide_report_add_picture. Returns its height.
int tide__sweep_svg(const tide_sweep *s, const tide__sweep_group *g, int y, tide_text *out);
enum { TIDE__SWEEP_SVG_WIDTH = 720 };
/// The style of pictures and page beside that of the report.
extern const char tide__sweep_style[];

void tide__sweep_plot(const tide_sweep *s, const tide__sweep_group *g, const tide_sweep_paper *paper, tide_text *out);

#endif
