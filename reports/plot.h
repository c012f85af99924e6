// SPDX-License-Identifier: MIT
//
// plot: what the still pictures share: one time axis with the same left and right edge and the same ticks, and the
// hatches that tell fills apart without colour.
#ifndef TIDE_REPORTS_PLOT_H
#define TIDE_REPORTS_PLOT_H

#include "reports/gather.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TIDE_PLOT_WIDTH = 1060, TIDE_PLOT_LEFT = 190, TIDE_PLOT_RIGHT = 1044 }; ///< user units of the SVG

/// Horizontal position of `t`, held inside the plot.
double tide_plot_x(const tide_subject_facts *f, int64_t t);
/// Ticks at 1, 2 or 5 times a power of ten: a grid line from `top` to `bottom` and a label at `label_y`; the axis' name
/// at the left.
void tide_plot_ticks(const tide_subject_facts *f, int top, int bottom, int label_y, tide_text *out);
/// The dashed line of the peak.
void tide_plot_peak_line(const tide_subject_facts *f, int top, int bottom, tide_text *out);
/// Definitions of the hatches, once per document.
void tide_plot_hatches(tide_text *out);

#ifdef __cplusplus
}
#endif
#endif
