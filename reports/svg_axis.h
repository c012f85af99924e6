// SPDX-License-Identifier: MIT
//
// svg_axis: the time axis that the still pictures share. Private to reports/.
#ifndef TIDE_REPORTS_SVG_AXIS_H
#define TIDE_REPORTS_SVG_AXIS_H

#include "reports/gather.h"

enum { PLOT_WIDTH = 1060, PLOT_LEFT = 190, PLOT_RIGHT = 1044 }; // user units of the SVG

/// How long the axis is, at least 1.
uint64_t tide__svg_span(const tide_subject_facts *f);
/// Horizontal position of `t`, held inside the plot.
double tide__svg_x(const tide_subject_facts *f, int64_t t);
/// Ticks at 1, 2 or 5 times a power of ten: a grid line from `top` to `bottom` and a label at `label_y`; the axis' name
/// at the left.
void tide__svg_add_ticks(const tide_subject_facts *f, int top, int bottom, int label_y, tide_text *out);
/// The dashed line of the peak.
void tide__svg_add_peak_line(const tide_subject_facts *f, int top, int bottom, tide_text *out);

#endif
