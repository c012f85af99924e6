// SPDX-License-Identifier: MIT
//
// render: the writers behind reports.h, one per format, and the parts of the HTML page. Writers append to `out`;
// running out of memory there shows in out->failed, which tide_report_render() checks once.
#ifndef TIDE_REPORTS_RENDER_H
#define TIDE_REPORTS_RENDER_H

#include "reports/tables.h"

#ifdef __cplusplus
extern "C" {
#endif

void tide_report_json(const tide_report *r, tide_text *out);
/// What the page carries: the same facts, items in columns under `words`, one line: "tidemark.report.data".
void tide_report_json_data(const tide_report *r, tide_text *out);
void tide_report_words(const tide_report *r, bool markdown, tide_text *out);
void tide_report_svg(const tide_report *r, tide_text *out);
void tide_report_html(const tide_report *r, tide_text *out);

// ---- sentences of several formats ----

/// "lenet5: planned, greedy_by_size"; "untitled" when it has none.
const char *tide_report_title(const tide_report_side *s);
/// The facts of the head: key, value, remark ("" none). Calls `take` for each.
void tide_report_facts(const tide_report *r, const tide_report_side *s,
                       void (*take)(void *ctx, const char *key, const char *value, const char *note), void *ctx);
/// The conclusions about the peak, a sentence each, "\n" behind it.
void tide_report_conclusions(const tide_report_side *s, tide_text *out);

/// "weights (671)".
const char *tide_report_weights_name(const tide_report_weights *w, char *buf, size_t buf_bytes);

// ---- parts of the page ----

/// What is held at the peak, split by tensor: a bar and its parts in words, each a link to the tensor. `id`: "a", "b".
void tide_report_peak_bar(const tide_report *r, const tide_report_side *s, const char *id, tide_text *out);

/// Still pictures: for print, for readers without scripts, and for .svg. Each draws what is inside of an <svg> and
/// returns its height; 0: there is nothing to draw. All share the time axis.
typedef int (*tide_report_picture)(const tide_report *r, const tide_report_side *s, tide_text *inner);
int tide_report_svg_curve(const tide_report *r, const tide_report_side *s, tide_text *inner);
/// What is alive at the peak, by size; folded weights are its first row.
int tide_report_svg_alive(const tide_report *r, const tide_report_side *s, tide_text *inner);
int tide_report_svg_not_alive(const tide_report *r, const tide_report_side *s, tide_text *inner);
int tide_report_svg_weights(const tide_report *r, const tide_report_side *s, tide_text *inner);
int tide_report_svg_memory(const tide_report *r, const tide_report_side *s, tide_text *inner);
/// Each allocator and each pool of the plan over time: used, cached, where it grew and shrank. Nothing without pools.
int tide_report_svg_pools(const tide_report *r, const tide_report_side *s, tide_text *inner);
/// Each device but the CPU over time: allocators, outside of them, unexplained, free. Nothing without devices.
int tide_report_svg_devices(const tide_report *r, const tide_report_side *s, tide_text *inner);
/// Each process over time beside the median of all, those that differ most. Nothing of one process alone.
enum { TIDE_REPORT_MAX_LANES = 16 };
int tide_report_svg_lanes(const tide_report *r, const tide_report_side *s, tide_text *inner);
/// What is live at the peak by call stack: outermost on top, width by bytes. Nothing without call stacks.
int tide_report_svg_stacks(const tide_report *r, const tide_report_side *s, tide_text *inner);
/// What the areas of devices are.
void tide_report_devices_legend(tide_text *out);
/// Memory at the peak: addresses upwards, who lies where. Narrower than the others: it stands beside them.
enum { TIDE_REPORT_MAP_WIDTH = 380 };
int tide_report_svg_map(const tide_report *r, const tide_report_side *s, tide_text *inner);
/// Definitions of the hatches that tell fills apart without colour, once per document.
void tide_report_svg_hatches(tide_text *out);
/// The whole element with a name for those who cannot see it. `y`: where it stands in a document of its own, -1: in the
/// page. Returns its height.
int tide_report_add_picture(tide_report_picture draw, const tide_report *r, const tide_report_side *s,
                            const char *label, int y, tide_text *out);

/// Of reports/page, put together when the program is built.
extern const char tide_report_page_style[], tide_report_page_script[], tide_report_sort_script[];

#ifdef __cplusplus
}
#endif
#endif
