// SPDX-License-Identifier: MIT
//
// HTML: one file that loads nothing. Without scripts it is whole: summary, still pictures, tables. With its script the
// pictures of the first section come alive: zoom, pan, hover, search, sort, filter, a link to what is shown.
#include <stdio.h>
#include <string.h>

#include "analysis/html_text.h"
#include "reports/render.h"

// ---- what the script of the page works with: the ids are those that reports/page/*.js asks for ----

static const char controls[] =
    "<p class=\"tools\">\n"
    "<label>Search <input id=\"live-search\" type=\"search\" placeholder=\"name or operator\"></label>\n"
    "<label>Show <select id=\"live-kind\"></select></label>\n"
    "<button type=\"button\" id=\"live-fold\" hidden></button>\n"
    "<label>Sort by <select id=\"live-sort\"><option value=\"size\">size</option><option value=\"begin\">begin</option>"
    "<option value=\"life\">life</option><option value=\"place\">place</option><option "
    "value=\"name\">name</option></select></label>\n"
    "<label>Bands <select id=\"live-by\"></select></label>\n"
    "<label>View <select id=\"live-view\"></select></label>\n"
    "<label>Go to <input id=\"live-goto\" placeholder=\"exec:12, 50%\"></label>"
    "<span id=\"live-goto-note\" role=\"status\"></span>\n";

static const char pictures[] =
    "<span class=\"buttons\"><button type=\"button\" id=\"live-in\" aria-label=\"Zoom in\">+</button>"
    "<button type=\"button\" id=\"live-out\" aria-label=\"Zoom out\">\xE2\x88\x92</button>"
    "<button type=\"button\" id=\"live-whole\">Whole</button><button type=\"button\" id=\"live-fit\">Fit</button>"
    "<button type=\"button\" id=\"live-peak\">Peak</button></span>\n</p>\n"
    "<div id=\"live-plot\" role=\"group\" aria-label=\"Timeline\" aria-describedby=\"live-keys\" tabindex=\"0\">\n"
    "<div id=\"live-time\">\n<canvas id=\"live-curve\" aria-hidden=\"true\"></canvas>\n<canvas id=\"live-mini\" "
    "aria-hidden=\"true\"></canvas>\n"
    "<div id=\"live-rows\" tabindex=\"0\" role=\"region\" aria-label=\"Lifetimes\"><canvas id=\"live-gantt\" "
    "aria-hidden=\"true\"></canvas><div "
    "id=\"live-height\"></div></div>\n</div>\n"
    "<div id=\"live-space\">\n<p id=\"live-space-title\"></p>\n<canvas id=\"live-map\" "
    "aria-hidden=\"true\"></canvas>\n</div>\n"
    "<div id=\"live-note\" hidden></div>\n</div>\n"
    "<p id=\"live-cursor\" role=\"status\"></p>\n<p id=\"live-kinds\"></p>\n"
    "<div id=\"live-details\" aria-live=\"polite\"></div>\n"
    "<p id=\"live-keys\" class=\"mute\">Keys: arrows move selection and cursor, + and \xE2\x88\x92 zoom, shift with "
    "arrows pans, 0 whole, f fits, p peak, w folds weights, m memory over time, g go to, / search, Esc clears. Wheel "
    "over "
    "the curve zooms, dragging pans.</p>\n";

static const char answers[] =
    "<div id=\"live-pools\" hidden>\n<h3>Pools at the cursor</h3>\n<canvas id=\"live-bands\" "
    "aria-hidden=\"true\"></canvas>\n<p class=\"mute\">Filled: used. Hatched: cached. Marks: where the pool took more, "
    "and gave back.</p>\n<p class=\"tools\"><label>A request of <input id=\"pools-request\" placeholder=\"64 "
    "MiB\"></label></p>\n<div id=\"pools-answer\" aria-live=\"polite\"></div>\n<div id=\"pools-growth\"></div>\n<div "
    "id=\"pools-worst\"></div>\n<div id=\"pools-waste\"></div>\n</div>\n"
    "<details id=\"live-executions-box\"><summary>Executions</summary>\n<div "
    "id=\"live-executions\"></div>\n</details>\n"
    "<details id=\"live-kind-box\"><summary>Peaks of the kinds</summary>\n<div "
    "id=\"live-kind-peaks\"></div>\n</details>\n"
    "<details id=\"live-two-box\"><summary>Two moments</summary>\n<p class=\"tools\"><label>From <input "
    "id=\"two-a\" value=\"peak\"></label><label>To <input id=\"two-b\" value=\"cursor\"></label><button "
    "type=\"button\" "
    "id=\"two-go\">Compare</button></p>\n<div id=\"two-out\" aria-live=\"polite\"></div>\n</details>\n</div>\n";

/// Pictures with their controls.
static void add_live(const tide_report *r, tide_text *out) {
    tide_text_add(out, "<div id=\"live\" hidden>\n");
    tide_text_add(out, controls);
    if (r->has_b)
        tide_text_add(out, "<label>Of <select id=\"live-side\"><option value=\"0\">A</option><option "
                           "value=\"1\">B</option></select></label>\n");
    tide_text_add(out, pictures);
    tide_text_add(out, answers);
}

// ---- the table of items ----

/// The table of items: without the script its largest rows.
static void add_items(const tide_report_side *s, const tide_report_table *t, tide_text *out) {
    static const tide_html_style style = {.attributes = " id=\"items\" class=\"c0 c1 c2 c3\"", .max_chars = 120};
    const tide_table items = tide_report_page_items(s);
    char size[24];
    tide_text_addf(out, "<section>\n<h3 id=\"s-items\">%s</h3>\n", t->title);
    if (t->table.n_rows == 0) {
        tide_text_addf(out, "<p>%s</p>\n</section>\n", t->empty);
        return;
    }
    tide_text_add(out,
                  "<p id=\"items-count\" role=\"status\" class=\"mute\"></p>\n<div class=\"scroll\" role=\"region\" "
                  "aria-labelledby=\"s-items\" tabindex=\"0\">\n");
    tide_table_html(&items, SIZE_MAX, &style, out);
    tide_text_add(out, "</div>\n<p id=\"items-rest\" class=\"mute\">");
    if (s->n_largest < s->items->n)
        tide_text_addf(out, "%zu of %zu, those alive at the peak first; the others hold %s in sum.", s->n_largest,
                       s->items->n, tide_format_bytes(s->rest_bytes, size, sizeof size));
    tide_text_add(
        out, "</p>\n<p id=\"items-pages\" hidden><button type=\"button\" id=\"items-back\">Back</button> <span "
             "id=\"items-page\"></span> <button type=\"button\" id=\"items-on\">On</button></p>\n<p id=\"items-save\" "
             "hidden>Save what is listed: <button type=\"button\" id=\"items-csv\">CSV</button> <button "
             "type=\"button\" id=\"items-json\">JSON</button></p>\n</section>\n");
}

enum { MAX_TABLE_ROWS = 100 };

// ---- head ----

static void add_fact_text(tide_text *out, const char *text) {
    if (text[0] == '\0') return;
    tide_text_add(out, " \xC2\xB7 ");
    tide_html_add_line(out, text);
}

static void add_titles(const tide_report *r, tide_text *out) {
    tide_html_add_line(out, tide_report_title(&r->a));
    if (!r->has_b) return;
    tide_text_add(out, " and ");
    tide_html_add_line(out, tide_report_title(&r->b));
}

/// <title> knows no elements: there a name is isolated by characters.
static void add_plain_title(const tide_report_side *s, tide_text *out) {
    const bool isolate = tide_html_is_right_to_left(tide_report_title(s));
    if (isolate) tide_text_add(out, "&#x2066;");
    tide_html_add(out, tide_report_title(s));
    if (isolate) tide_text_add(out, "&#x2069;");
}

static void add_style(const tide_report *r, tide_text *out) {
    if (r->opt.style_href == NULL) {
        tide_text_add(out, "<style>\n");
        tide_text_add(out, tide_report_page_style);
        tide_text_add(out, "</style>\n");
        return;
    }
    tide_text_add(out, "<link rel=\"stylesheet\" href=\"");
    tide_html_add_href(out, r->opt.style_href);
    tide_text_add(out, "\">\n");
}

/// A server can forbid scripts and styles inside by its Content-Security-Policy: then both are files
/// beside the page, and no element has a style of its own.
static void add_head(const tide_report *r, tide_text *out) {
    tide_text_add(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                       "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                       "<meta name=\"color-scheme\" content=\"light dark\">\n<title>");
    add_plain_title(&r->a, out);
    if (r->has_b) tide_text_add(out, " and ");
    if (r->has_b) add_plain_title(&r->b, out);
    tide_text_add(out, " - tidemark</title>\n");
    add_style(r, out);
    tide_text_add(out, "</head>\n<body>\n<header>\n<h1>");
    add_titles(r, out);
    tide_text_add(out, "</h1>\n<p class=\"mute\">tidemark memory report");
    add_fact_text(out, r->a.facts->model);
    add_fact_text(out, r->a.facts->mode);
    add_fact_text(out, r->a.facts->strategy);
    tide_text_add(out, "</p>\n</header>\n<main>\n");
}

// ---- summary ----

static void card(void *ctx, const char *key, const char *value, const char *note) {
    tide_text *out = ctx;
    tide_text_addf(out, "<div><dt>%s</dt><dd>", key);
    tide_html_add_line(out, value);
    if (note[0] != '\0') {
        tide_text_add(out, "<small>");
        tide_html_add_line(out, note);
        tide_text_add(out, "</small>");
    }
    tide_text_add(out, "</dd></div>\n");
}

/// Sentences, a paragraph each.
static void add_sentences(const tide_text *text, tide_text *out) {
    for (const char *line = tide_text_str(text); *line != '\0' && !out->failed;) {
        const size_t n = strcspn(line, "\n");
        tide_text one = {0};
        tide_text_add_n(&one, line, n);
        tide_text_add(out, "<p>");
        tide_html_add_line(out, tide_text_str(&one));
        tide_text_add(out, "</p>\n");
        if (one.failed) out->failed = true;
        tide_text_deinit(&one);
        line += n + (line[n] == '\n');
    }
    if (text->failed) out->failed = true;
}

static void add_summary(const tide_report *r, const tide_report_side *s, const char *name, tide_text *out) {
    if (name[0] != '\0') {
        tide_text_addf(out, "<h2>%s: ", name);
        tide_html_add_line(out, tide_report_title(s));
        tide_text_add(out, "</h2>\n");
    }
    tide_text_add(out, "<dl class=\"cards\">\n");
    tide_report_facts(r, s, card, out);
    tide_text_add(out, "</dl>\n");
    if (s->why.held_bytes > 0) {
        tide_text_addf(out, "<h2>The peak%s%s by tensor</h2>\n", name[0] != '\0' ? " of " : "", name);
        tide_report_peak_bar(r, s, name[0] == 'B' ? "b" : "a", out);
    }
}

static void add_why(const tide_report_side *s, const char *name, tide_text *out) {
    tide_text_addf(out, "<section class=\"why\">\n<h2>Why the peak%s%s is so high</h2>\n",
                   name[0] != '\0' ? " of " : "", name);
    tide_text text = {0};
    tide_report_conclusions(s, &text);
    add_sentences(&text, out);
    tide_text_deinit(&text);
    tide_text_add(out, "</section>\n");
}

static void add_comparison(const tide_report *r, tide_text *out) {
    tide_text text = {0};
    tide_text_add(out, "<section class=\"why\">\n<h2>A and B</h2>\n");
    tide_diff_print(&r->diff, r->a.subject, r->b.subject, 5, &text);
    add_sentences(&text, out);
    tide_text_deinit(&text);
    tide_text_add(out, "</section>\n");
}

// ---- still pictures ----

static void add_legend(const tide_report_side *s, tide_text *out) {
    bool seen[TIDE_N_ITEM_FILLS] = {false};
    for (size_t i = 0; i < s->items->n_shapes; i++) seen[s->items->shapes[i].fill] = true;
    tide_text_add(out, "<ul class=\"legend\">\n");
    for (int f = 0; f < TIDE_N_ITEM_FILLS; f++) {
        if (!seen[f]) continue;
        tide_text_addf(out,
                       "<li><svg width=\"28\" height=\"12\" aria-hidden=\"true\"><rect class=\"k%d\" width=\"28\" "
                       "height=\"12\"/></svg>%s</li>\n",
                       f, tide_item_fill_text((tide_item_fill)f));
    }
    tide_text_add(out, "</ul>\n");
}

static void figure(const tide_report *r, const char *of, const char *id, const char *title, tide_text *out) {
    tide_text_addf(out,
                   "<h3 id=\"s-%s-%s\">%s%s</h3>\n<div class=\"scroll\" role=\"region\" aria-labelledby=\"s-%s-%s\" "
                   "tabindex=\"0\">\n",
                   id, of, title,
                   !r->has_b      ? ""
                   : of[0] == 'a' ? " (A)"
                                  : " (B)",
                   id, of);
}

static void add_figure(const tide_report *r, const tide_report_side *s, const char *of, tide_report_picture draw,
                       const char *id, const char *title, const char *label, tide_text *out) {
    figure(r, of, id, title, out);
    tide_report_add_picture(draw, r, s, label, -1, out);
    tide_text_add(out, "</div>\n");
}

/// What is alive at the peak, and beside it where it lies then; below them the rest.
static void add_still(const tide_report *r, const tide_report_side *s, const char *of, tide_text *out) {
    char size[24];
    tide_text_add(out, "<div class=\"still\">\n");
    add_figure(r, s, of, tide_report_svg_curve, "curve", "Live bytes", "Live bytes over time", out);
    tide_text_add(out, "<div class=\"beside\">\n<div>\n");
    add_figure(r, s, of, tide_report_svg_alive, "lifetimes", "Lifetimes: alive at the peak",
               "Lifetimes; the table of items has them", out);
    tide_text_add(out, "</div>\n<div>\n");
    if (s->space.n > 0)
        add_figure(r, s, of, tide_report_svg_map, "map", "Memory at the peak", "Memory at the peak, addresses upwards",
                   out);
    tide_text_add(out, "</div>\n</div>\n");
    if (s->n_not_alive > 0)
        add_figure(r, s, of, tide_report_svg_not_alive, "others", "Lifetimes: not alive at the peak",
                   "Lifetimes; the table of items has them", out);
    if (s->n_largest > s->n_alive + s->n_not_alive)
        add_figure(r, s, of, tide_report_svg_weights, "weights", "Lifetimes: weights",
                   "Lifetimes of weights; the table of items has them", out);
    if (s->n_largest < s->items->n)
        tide_text_addf(out, "<p class=\"mute\">%zu of %zu are drawn, the largest; the others hold %s in sum.</p>\n",
                       s->n_largest, s->items->n, tide_format_bytes(s->rest_bytes, size, sizeof size));
    if (s->space.n > 0)
        add_figure(r, s, of, tide_report_svg_memory, "memory", "Memory over time",
                   "Memory over time, addresses upwards", out);
    tide_text_add(out, "</div>\n");
}

// ---- pools ----

/// What a side's pools are over time; the page has it beside the live pictures too.
static void add_pools(const tide_report *r, const tide_report_side *s, const char *of, tide_text *out) {
    if (s->pools.n == 0 || s->history.columns == NULL) return;
    tide_text_addf(
        out,
        "<section class=\"pools\">\n<h2>Pools over time%s</h2>\n<p class=\"mute\">Filled: used by blocks or tensors. "
        "Light: cached, taken from the system and kept. Marks: where it took more, and gave back. "
        "Fragmented: the share of what is cached that lies outside of its largest free block.",
        !r->has_b      ? ""
        : of[0] == 'a' ? ": A"
                       : ": B");
    if (s->pools.n > TIDE_REPORT_MAX_POOLS)
        tide_text_addf(out, " The largest %d of %zu are drawn; the table has all of them.", TIDE_REPORT_MAX_POOLS,
                       s->pools.n);
    tide_text_addf(out,
                   "</p>\n<div class=\"scroll\" role=\"region\" aria-label=\"Pools over time%s\" tabindex=\"0\">\n",
                   !r->has_b      ? ""
                   : of[0] == 'a' ? " (A)"
                                  : " (B)");
    tide_report_add_picture(tide_report_svg_pools, r, s,
                            "What each pool used and kept over time; the table of pools has "
                            "the numbers of the peak",
                            -1, out);
    tide_text_add(out, "</div>\n</section>\n");
}

// ---- devices ----

static void add_devices(const tide_report *r, const tide_report_side *s, const char *of, tide_text *out) {
    if (s->device_memory.n == 0 || s->device_columns == NULL) return;
    const char *side = !r->has_b ? "" : of[0] == 'a' ? ": A" : ": B";
    tide_text_addf(
        out,
        "<section class=\"devices\">\n<h2>Devices and processes over time%s</h2>\n<p class=\"mute\">What is in use of "
        "each "
        "device, by all processes, as its driver said now and then: between two samples what is unexplained "
        "stays as it was. Of a process: what is resident, as the system counted it, of it the blocks of the program "
        "and, unexplained, code, stacks and what malloc keeps; free is what was resident before. The tables of devices "
        "have the numbers of the peak.%s</p>\n",
        side,
        !tide_device_is_cut(&s->device_memory)
            ? ""
            : " The oldest events of the trace are gone: segments that were taken then count as unexplained.");
    tide_report_devices_legend(out);
    tide_text_addf(out, "<div class=\"scroll\" role=\"region\" aria-label=\"Devices over time%s\" tabindex=\"0\">\n",
                   side);
    tide_report_add_picture(
        tide_report_svg_devices, r, s,
        "What of each device allocators have, what was taken outside of them, what is unexplained and "
        "what is free over time; the table of devices has the numbers of the peak",
        -1, out);
    tide_text_add(out, "</div>\n</section>\n");
}

// ---- processes ----

static void add_lanes(const tide_report *r, const tide_report_side *s, const char *of, tide_text *out) {
    if (s->lanes.trace.n < 2 || s->facts->run_id != 0) return;
    const char *side = !r->has_b ? "" : of[0] == 'a' ? ": A" : ": B";
    tide_text_addf(out,
                   "<section class=\"lanes\">\n<h2>Processes side by side%s</h2>\n<p class=\"mute\">What each process "
                   "had; the dashed line is the median of all, the dotted one where it is furthest from the others.",
                   side);
    if (s->lanes.trace.n > TIDE_REPORT_MAX_LANES)
        tide_text_addf(out, " Of %zu the %d that differ most are drawn; the table has all of them.", s->lanes.trace.n,
                       TIDE_REPORT_MAX_LANES);
    tide_text_addf(
        out, "</p>\n<div class=\"scroll\" role=\"region\" aria-label=\"Processes side by side%s\" tabindex=\"0\">\n",
        side);
    tide_report_add_picture(tide_report_svg_lanes, r, s,
                            "What each process had over time beside the median of all; the table of processes has the "
                            "numbers",
                            -1, out);
    tide_text_add(out, "</div>\n</section>\n");
}

// ---- call stacks ----

/// The picture that the page's script makes in place of the still one.
static void add_flame(const char *of, const char *side, tide_text *out) {
    tide_text_addf(out,
                   "<div class=\"flame\" data-side=\"%d\" hidden>\n<div class=\"tools\"><label>Search calls <input "
                   "type=\"search\"></label> <span role=\"status\"></span></div>\n<p class=\"mute\">A click, or "
                   "Enter, zooms to a call; Esc goes back to its caller, arrows go from call to call.</p>\n<div "
                   "class=\"crumbs\" role=\"group\" aria-label=\"Zoomed to%s\"></div>\n<div class=\"scroll\"><svg "
                   "role=\"tree\" aria-label=\"Calls and what they hold at the peak%s\"></svg></div>\n</div>\n",
                   of[0] == 'b', side, side);
}

static void add_stacks(const tide_report *r, const tide_report_side *s, const char *of, tide_text *out) {
    char bytes[24];
    if (s->n_stacks == 0) return;
    const char *side = !r->has_b ? "" : of[0] == 'a' ? ": A" : ": B";
    tide_text_addf(
        out,
        "<section class=\"stacks\">\n<h2>The peak by call stack%s</h2>\n<p class=\"mute\">What is live at the "
        "peak. Width is bytes; a line stands above what it led to, the operator is the last.",
        side);
    for (size_t i = 0; i < s->n_stacks; i++)
        if (tide_report_is_no_stack(&s->stacks[i]))
            tide_text_addf(out, " %s more tell no stack.",
                           tide_format_bytes(s->stacks[i].requested_bytes, bytes, sizeof bytes));
    tide_text_add(out, "</p>\n");
    add_flame(of, side, out);
    tide_text_addf(out,
                   "<div class=\"still\">\n<div class=\"scroll\" role=\"region\" aria-label=\"Call stacks%s\" "
                   "tabindex=\"0\">\n",
                   side);
    tide_report_add_picture(tide_report_svg_stacks, r, s,
                            "What is live at the peak by call stack; the table of call stacks has the numbers", -1,
                            out);
    tide_text_add(out, "</div>\n</div>\n</section>\n");
}

// ---- all ----

static void add_side(const tide_report *r, const tide_report_side *s, const char *name, tide_text *out) {
    add_summary(r, s, name, out);
    if (s->items->n == 0)
        tide_text_add(out, s->facts->is_trace ? "<p>No block lived in this run.</p>\n"
                                              : "<p>This plan holds no tensor that lives.</p>\n");
}

/// A table of the page, its first rows.
static void add_table(const tide_report_table *t, tide_text *out) {
    static const tide_html_style style = {.exact_from = 1024, .max_chars = 120};
    char id[64];
    snprintf(id, sizeof id, "t-%s-%s", t->table.name, t->of[0] != '\0' ? t->of : "ab");
    tide_text_addf(out, "<section>\n<h3 id=\"%s\">%s%s</h3>\n", id, t->title, t->side);
    if (t->what[0] != '\0') tide_text_addf(out, "<p class=\"mute\">%s</p>\n", t->what);
    if (t->table.n_rows == 0) {
        tide_text_addf(out, "<p>%s</p>\n</section>\n", t->empty);
        return;
    }
    tide_text_addf(out, "<div class=\"scroll\" role=\"region\" aria-labelledby=\"%s\" tabindex=\"0\">\n", id);
    tide_table_html(&t->table, MAX_TABLE_ROWS, &style, out);
    tide_text_add(out, "</div>\n");
    if (t->table.n_rows > MAX_TABLE_ROWS)
        tide_text_addf(out, "<p class=\"mute\">%zu more rows are in the CSV and JSON reports.</p>\n",
                       t->table.n_rows - MAX_TABLE_ROWS);
    tide_text_add(out, "</section>\n");
}

static void add_tables(const tide_report *r, tide_text *out) {
    tide_report_table tables[TIDE_REPORT_MAX_TABLES];
    const size_t n = tide_report_tables(r, tables);
    const char *of = "?";
    for (size_t i = 0; i < n; i++) {
        if (r->has_b && strcmp(of, tables[i].of) != 0)
            tide_text_addf(out, "<h2>%s</h2>\n",
                           tables[i].of[0] == 'a'   ? "A"
                           : tables[i].of[0] == 'b' ? "B"
                                                    : "What changed");
        else if (!r->has_b && i == 0)
            tide_text_add(out, "<h2>Tables</h2>\n");
        of = tables[i].of;
        if (tide_report_is_items(&tables[i]) && of[0] == 'a')
            add_items(&r->a, &tables[i], out);
        else
            add_table(&tables[i], out);
    }
}

static void add_data(const tide_report *r, tide_text *out) {
    tide_text data = {0};
    tide_report_json_data(r, &data);
    tide_text_add(out, "<script type=\"application/json\" id=\"tidemark-data\">");
    if (data.failed)
        out->failed = true;
    else
        tide_html_add_json(out, tide_text_str(&data), data.len);
    tide_text_deinit(&data);
    tide_text_add(out, "</script>\n");
    if (r->opt.script_href != NULL) {
        tide_text_add(out, "<script defer src=\"");
        tide_html_add_href(out, r->opt.script_href);
        tide_text_add(out, "\"></script>\n");
        return;
    }
    tide_text_add(out, "<script>\n");
    tide_text_add(out, tide_report_page_script);
    tide_text_add(out, "</script>\n");
}

void tide_report_html(const tide_report *r, tide_text *out) {
    add_head(r, out);
    tide_report_svg_hatches(out);
    if (r->has_b) add_comparison(r, out);
    add_side(r, &r->a, r->has_b ? "A" : "", out);
    if (r->has_b) add_side(r, &r->b, "B", out);
    if (r->a.items->n > 0 || (r->has_b && r->b.items->n > 0)) {
        tide_text_add(out, "<section>\n<h2>Over time</h2>\n");
        add_live(r, out);
        add_legend(&r->a, out);
        if (r->a.items->n > 0) add_still(r, &r->a, "a", out);
        if (r->has_b && r->b.items->n > 0) add_still(r, &r->b, "b", out);
        tide_text_add(out, "</section>\n");
    }
    add_pools(r, &r->a, "a", out);
    if (r->has_b) add_pools(r, &r->b, "b", out);
    add_devices(r, &r->a, "a", out);
    if (r->has_b) add_devices(r, &r->b, "b", out);
    add_lanes(r, &r->a, "a", out);
    if (r->has_b) add_lanes(r, &r->b, "b", out);
    add_stacks(r, &r->a, "a", out);
    if (r->has_b) add_stacks(r, &r->b, "b", out);
    if (r->a.items->n > 0) add_why(&r->a, r->has_b ? "A" : "", out);
    if (r->has_b && r->b.items->n > 0) add_why(&r->b, "B", out);
    add_tables(r, out);
    tide_text_add(out,
                  "</main>\n<footer>\n<p>1 KiB is 1024 B. A lifetime runs from its begin up to, and not including, "
                  "its end.</p>\n</footer>\n");
    add_data(r, out);
    tide_text_add(out, "</body>\n</html>\n");
}
