// SPDX-License-Identifier: MIT
//
// The page's tables: summary, predicted and measured per kind, pools, tensors. What is unknown is called unknown.
#include "reports/render.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/base/host_alloc.h"
#include "core/memory/allocator.h"
#include "reports/escape.h"

// ---- summary ----

static void add_card(tide_text *out, const char *term, const char *value, const char *more) {
    tide_text_addf(out, "<div><dt>%s</dt><dd>", term);
    tide_report_add_html(out, value);
    if (more != NULL) {
        tide_text_add(out, " <small>");
        tide_report_add_html(out, more);
        tide_text_add(out, "</small>");
    }
    tide_text_add(out, "</dd></div>\n");
}

static void add_bytes_card(tide_text *out, const char *term, bool known, uint64_t bytes, const char *more) {
    char human[24], exact[96];
    if (!known) {
        add_card(out, term, "unknown", more);
        return;
    }
    tide_format_bytes(bytes, human, sizeof human);
    snprintf(exact, sizeof exact, "%" PRIu64 " B%s%s", bytes, more != NULL ? ", " : "", more != NULL ? more : "");
    // Below 1 KiB the short form is the exact one.
    add_card(out, term, human, bytes < 1024 ? more : exact);
}

static void add_percent_card(tide_text *out, const char *term, bool known, double value, const char *more) {
    char text[32];
    snprintf(text, sizeof text, "%.1f %%", 100.0 * value);
    add_card(out, term, known ? text : "unknown", more);
}

static const char *or_unknown(const char *text) { return text != NULL && text[0] != '\0' ? text : "unknown"; }

void tide_report_html_summary(const tide_timeline *tl, tide_text *out) {
    char text[64], when[32];
    double gap = 0.0, saving = 0.0;
    const bool has_gap = tide_report_gap(tl, &gap), has_saving = tide_report_saving(tl, &saving);
    tide_text_add(out,
                  "<section aria-labelledby=\"s-summary\">\n<h2 id=\"s-summary\">Summary</h2>\n<dl class=\"cards\">\n");
    snprintf(text, sizeof text, "at %s%s", tl->axis == TIDE_AXIS_STEPS ? "step " : "",
             tide_report_format_time(tl, tl->peak_t, when, sizeof when));
    add_bytes_card(out, "Peak of live bytes", true, tl->peak_bytes, tl->n_items > 0 ? text : NULL);
    add_bytes_card(out, "Plan", tl->has_plan, tl->plan_bytes, tl->has_plan ? NULL : "no plan");
    add_bytes_card(out, "Lower bound", tl->has_plan, tl->lower_bound_bytes, NULL);
    add_percent_card(out, "Gap to the bound", has_gap, gap, NULL);
    add_bytes_card(out, "Naive", tl->has_plan, tl->naive_bytes, NULL);
    add_percent_card(out, "Saving", has_saving, saving, has_saving ? "against naive" : NULL);
    add_card(out, "Model", or_unknown(tl->model), NULL);
    add_card(out, "Mode", or_unknown(tl->mode), NULL);
    add_card(out, "Strategy", or_unknown(tl->strategy), NULL);
    snprintf(text, sizeof text, "%zu", tl->n_items);
    add_card(out, tl->axis == TIDE_AXIS_STEPS ? "Tensors" : "Blocks", text, NULL);
    add_card(out, "Length", tide_report_format_span(tl, tl->begin, tl->end, when, sizeof when), NULL);
    tide_text_add(out, "</dl>\n</section>\n");
}

// ---- predicted and measured ----

static void add_bytes_cell(tide_text *out, uint64_t bytes) {
    if (bytes == TIDE_UNKNOWN_BYTES) {
        tide_text_add(out, "<td>unknown</td>");
    } else {
        tide_text_addf(out, "<td>%" PRIu64 "</td>", bytes);
    }
}

static void add_kind_row(const tide_trace_kind *k, tide_text *out) {
    tide_text_addf(out, "<tr><th scope=\"row\" class=\"t\">%s</th><td class=\"t\">", tide_memory_kind_name(k->kind));
    tide_report_add_html(out, k->device);
    tide_text_add(out, "</td>");
    add_bytes_cell(out, k->predicted_bytes);
    add_bytes_cell(out, k->peak_bytes);
    if (k->predicted_bytes == TIDE_UNKNOWN_BYTES || k->peak_bytes == TIDE_UNKNOWN_BYTES) {
        tide_text_add(out, "<td>unknown</td>");
    } else {
        const int64_t difference = (int64_t)(k->predicted_bytes - k->peak_bytes);
        tide_text_addf(out, "<td>%s%" PRId64 "</td>", difference > 0 ? "+" : "", difference);
    }
    add_bytes_cell(out, k->peak_reserved_bytes);
    tide_text_add(out, "</tr>\n");
}

void tide_report_html_kinds(const tide_timeline *tl, tide_text *out) {
    if (tl->n_kinds == 0) return;
    tide_text_add(
        out, "<section aria-labelledby=\"s-kinds\">\n<h2 id=\"s-kinds\">Predicted and measured</h2>\n"
             "<p class=\"mute\">Highest bytes held per kind of memory: what the plan says and what was seen.</p>\n"
             "<div class=\"scroll\" role=\"region\" aria-labelledby=\"s-kinds\" tabindex=\"0\">\n<table>\n<thead><tr>"
             "<th scope=\"col\" class=\"t\">kind</th><th scope=\"col\" class=\"t\">device</th>"
             "<th scope=\"col\">predicted (B)</th><th scope=\"col\">measured (B)</th>"
             "<th scope=\"col\">difference (B)</th><th scope=\"col\">reserved (B)</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < tl->n_kinds; i++) add_kind_row(&tl->kinds[i], out);
    tide_text_add(out, "</tbody>\n</table>\n</div>\n</section>\n");
}

// ---- pools ----

enum { MAX_MEMBER_NAMES = 6 };

static void add_members(const tide_timeline *tl, size_t pool, tide_text *out) {
    size_t n = 0;
    for (size_t i = 0; i < tl->n_items; i++) {
        if (tl->items[i].pool < 0 || (size_t)tl->items[i].pool != pool) continue;
        n++;
        if (n > MAX_MEMBER_NAMES) continue;
        if (n > 1) tide_text_add(out, ", ");
        tide_report_add_html(out, tl->items[i].name);
    }
    if (n > MAX_MEMBER_NAMES) tide_text_addf(out, " and %zu more", n - MAX_MEMBER_NAMES);
}

void tide_report_html_pools(const tide_timeline *tl, tide_text *out) {
    if (tl->plan == NULL || tl->plan->n_pools == 0) return;
    tide_text_add(
        out, "<section aria-labelledby=\"s-pools\">\n<h2 id=\"s-pools\">Pools</h2>\n"
             "<p class=\"mute\">A pool holds one tensor at a time and is as large as its largest.</p>\n"
             "<div class=\"scroll\" role=\"region\" aria-labelledby=\"s-pools\" tabindex=\"0\">\n<table>\n<thead><tr>"
             "<th scope=\"col\">pool</th><th scope=\"col\">size (B)</th><th scope=\"col\">offset (B)</th>"
             "<th scope=\"col\">members</th><th scope=\"col\" class=\"t\">names</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < tl->plan->n_pools; i++) {
        const tide_plan_pool *p = &tl->plan->pool_list[i];
        tide_text_addf(
            out, "<tr><th scope=\"row\">%zu</th><td>%" PRIu64 "</td><td>%" PRIu64 "</td><td>%zu</td><td class=\"t w\">",
            i, p->size_bytes, p->offset_bytes, p->n_members);
        add_members(tl, i, out);
        tide_text_add(out, "</td></tr>\n");
    }
    tide_text_add(out, "</tbody>\n</table>\n</div>\n</section>\n");
}

// ---- tensors ----

/// Without end tags, which HTML does not need here (section 13.1.2.4 of the standard): a third of the table's bytes.
static void add_item_row(const tide_timeline *tl, const tide_timeline_item *item, bool with_pool, tide_text *out) {
    const char *inside = tide_timeline_inside(tl, item);
    tide_text_add(out, "<tr><td>");
    tide_report_add_html(out, item->name);
    if (inside != NULL) {
        tide_text_addf(out, " <small>%s in ", tide_alias_kind_name(item->alias));
        tide_report_add_html(out, inside);
        tide_text_add(out, "</small>");
    }
    tide_text_add(out, "<td>");
    tide_report_add_html(out, item->owner);
    tide_text_addf(out, "<td>%s<td>%s", tide_memory_kind_name(item->kind),
                   tide_report_knows_role(tl, item) ? tide_role_name(item->role) : "unknown");
    tide_text_addf(out, "<td>%" PRIu64 "<td>%" PRIu64, item->size_bytes, tide_report_time(tl, item->begin));
    if (item->open_ended) {
        tide_text_add(out, "<td>never freed");
    } else {
        tide_text_addf(out, "<td>%" PRIu64, tide_report_time(tl, item->end));
    }
    if (with_pool) tide_text_add(out, "<td>");
    if (with_pool && item->pool != TIDE_NO_POOL) tide_text_addf(out, "%" PRId32, item->pool);
    tide_text_add(out, "<td>");
    if (item->offset_bytes != TIDE_NO_OFFSET) tide_text_addf(out, "%" PRIu64, item->offset_bytes);
    tide_text_add(out, "\n");
}

tide_status tide_report_html_items(const tide_timeline *tl, tide_text *out, tide_error *err) {
    size_t *items, n;
    TIDE_TRY(tide_report_largest(tl, TIDE_REPORT_MAX_ROWS, &items, &n, err));
    const char *things = tl->axis == TIDE_AXIS_STEPS ? "Tensors" : "Blocks";
    const char *unit = tl->axis == TIDE_AXIS_STEPS ? "step" : "ns after start";
    bool with_pool = false;
    for (size_t i = 0; i < tl->n_items; i++) with_pool = with_pool || tl->items[i].pool != TIDE_NO_POOL;
    tide_text_addf(out, "<section aria-labelledby=\"s-items\">\n<h2 id=\"s-items\">%s</h2>\n", things);
    if (n < tl->n_items)
        tide_text_addf(out, "<p>The %zu largest of %zu are listed; a CSV or JSON report has them all.</p>\n", n,
                       tl->n_items);
    tide_text_addf(
        out,
        "<div class=\"scroll\" role=\"region\" aria-labelledby=\"s-items\" tabindex=\"0\">\n<table id=\"items\">\n"
        "<thead><tr><th scope=\"col\" class=\"t\">name</th><th scope=\"col\" class=\"t\">operator</th>"
        "<th scope=\"col\" class=\"t\">kind</th><th scope=\"col\" class=\"t\">role</th><th scope=\"col\">size (B)</th>"
        "<th scope=\"col\">begin (%s)</th><th scope=\"col\">end (%s)</th>%s<th scope=\"col\">offset "
        "(B)</th></tr></thead>\n<tbody>\n",
        unit, unit, with_pool ? "<th scope=\"col\">pool</th>" : "");
    for (size_t i = 0; i < n; i++) add_item_row(tl, &tl->items[items[i]], with_pool, out);
    tide_host_free(items);
    tide_text_add(out, "</tbody>\n</table>\n</div>\n</section>\n");
    return TIDE_OK;
}
