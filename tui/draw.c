// SPDX-License-Identifier: MIT
//
// The frame: title, summary, footer, and the two frames without a view. See draw.h.
#include "tui/draw.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int tide_tui_text(const tide_tui_view *v, int x, int y, int w, const char *text, tide_tui_cut cut, tide_tui_role role) {
    return tide_tui_put_text(v->grid, v->glyphs, x, y, w, text, cut, role);
}

/// What is hidden, in at most `room` columns; the shortest form is for screens without a summary.
static void say_hidden(const tide_tui_model *m, int room, char *buf, size_t buf_bytes) {
    const size_t n = tide_tui_n_hidden(m);
    snprintf(buf, buf_bytes, "%zu of %zu rows (%zu persistent hidden: w)", m->n_rows, m->tl->n_items, n);
    if ((int)strlen(buf) > room)
        snprintf(buf, buf_bytes, "%zu of %zu rows (%zu hidden: w)", m->n_rows, m->tl->n_items, n);
    if ((int)strlen(buf) > room) snprintf(buf, buf_bytes, "%zu hidden: w", n);
}

void tide_tui_draw_title(const tide_tui_view *v) {
    const tide_timeline *tl = v->model->tl;
    const tide_tui_rect r = v->layout->title;
    char peak[40], size[24], hidden[96] = "";
    snprintf(peak, sizeof peak, "peak %s", tide_format_bytes(tl->peak_bytes, size, sizeof size));
    const int peak_w = (int)strlen(peak);
    if (v->layout->summary.h == 0 && tide_tui_n_hidden(v->model) > 0) say_hidden(v->model, 0, hidden, sizeof hidden);
    const int hidden_w = hidden[0] != '\0' ? (int)strlen(hidden) + 1 : 0;
    const char *title = tl->title != NULL && tl->title[0] != '\0' ? tl->title : "untitled";
    tide_tui_text(v, r.x + 1, r.y, r.w - peak_w - hidden_w - 3, title, TIDE_TUI_CUT_MIDDLE, TIDE_TUI_ROLE_TITLE);
    const int right = r.x + r.w - peak_w - 1;
    tide_tui_text(v, right - hidden_w, r.y, hidden_w, hidden, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_KEY);
    tide_tui_text(v, right, r.y, peak_w, peak, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_PEAK);
}

// ---- summary: facts in order of weight, as many as fit ----

static int add_fact(const tide_tui_view *v, int x, const char *text, tide_tui_role role) {
    const tide_tui_rect r = v->layout->summary;
    const int need = (int)strlen(text) + (x > r.x + 1 ? 3 : 0);
    if (x + need > r.x + r.w) return x;
    if (x > r.x + 1) {
        tide_tui_put(v->grid, x + 1, r.y, v->glyphs->ascii ? '|' : 0x2502, TIDE_TUI_ROLE_DIM);
        x += 3;
    }
    return x + tide_tui_text(v, x, r.y, r.x + r.w - x, text, TIDE_TUI_CUT_END, role);
}

void tide_tui_draw_summary(const tide_tui_view *v) {
    const tide_timeline *tl = v->model->tl;
    const tide_tui_rect r = v->layout->summary;
    if (r.h == 0) return;
    char text[160], size[24], when[32];
    int x = r.x + 1;
    if (tl->n_items == 0) return;
    if (tide_tui_n_hidden(v->model) > 0) {
        say_hidden(v->model, r.w - 2, text, sizeof text);
        x = add_fact(v, x, text, TIDE_TUI_ROLE_KEY);
    }
    snprintf(text, sizeof text, "peak at %s%s", tl->axis == TIDE_AXIS_STEPS ? "step " : "",
             tide_tui_format_time(tl, tl->peak_t, when, sizeof when));
    x = add_fact(v, x, text, TIDE_TUI_ROLE_PEAK);
    if (tl->has_plan) {
        snprintf(text, sizeof text, "plan %s", tide_format_bytes(tl->plan_bytes, size, sizeof size));
        x = add_fact(v, x, text, TIDE_TUI_ROLE_PLAN);
        snprintf(text, sizeof text, "lower bound %s", tide_format_bytes(tl->lower_bound_bytes, size, sizeof size));
        x = add_fact(v, x, text, TIDE_TUI_ROLE_BOUND);
        const tide_timeline_levels levels = tide_timeline_levels_of(tl);
        if (levels.below > 0) {
            snprintf(text, sizeof text, "+ %s %s", tide_format_bytes(levels.below, size, sizeof size), levels.words);
            x = add_fact(v, x, text, TIDE_TUI_ROLE_TEXT);
        }
        if (tl->lower_bound_bytes > 0) {
            const double gap = ((double)tl->plan_bytes - (double)tl->lower_bound_bytes) / (double)tl->lower_bound_bytes;
            snprintf(text, sizeof text, "gap %.1f %%", 100.0 * gap);
            x = add_fact(v, x, text, TIDE_TUI_ROLE_TEXT);
        }
    } else {
        x = add_fact(v, x, "no plan", TIDE_TUI_ROLE_DIM);
    }
    snprintf(text, sizeof text, "%zu item%s", tl->n_items, tl->n_items == 1 ? "" : "s");
    if (tide_tui_n_hidden(v->model) == 0) x = add_fact(v, x, text, TIDE_TUI_ROLE_TEXT);
    x = add_fact(v, x, tide_tui_format_span(tl, tl->begin, tl->end, when, sizeof when), TIDE_TUI_ROLE_TEXT);
    if (tl->has_plan) {
        snprintf(text, sizeof text, "naive %s", tide_format_bytes(tl->naive_bytes, size, sizeof size));
        add_fact(v, x, text, TIDE_TUI_ROLE_DIM);
    }
}

// ---- footer ----

/// Whether the hint of rank `rank` and all before it fit.
static int footer_ranks_that_fit(const tide_tui_binding *b, size_t n, int room) {
    int used = 0, fit = 0;
    for (int rank = 1; rank < 100; rank++) {
        for (size_t i = 0; i < n; i++) {
            if (b[i].footer == NULL || b[i].footer_rank != rank) continue;
            used += (int)strlen(b[i].footer) + 2;
            if (used - 2 > room) return fit;
            fit = rank;
        }
    }
    return fit;
}

void tide_tui_draw_footer(const tide_tui_view *v) {
    const tide_tui_rect r = v->layout->footer;
    const tide_tui_binding *b;
    const size_t n = tide_tui_bindings(&b);
    const int max_rank = footer_ranks_that_fit(b, n, r.w - 2);
    int x = r.x + 1;
    for (size_t i = 0; i < n; i++) {
        if (b[i].footer == NULL || b[i].footer_rank > max_rank) continue;
        const int key_w = (int)strcspn(b[i].footer, " ");
        const int w = tide_tui_text(v, x, r.y, r.x + r.w - x, b[i].footer, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_DIM);
        for (int k = 0; k < key_w; k++)
            tide_tui_put(v->grid, x + k, r.y, tide_tui_get(v->grid, x + k, r.y).glyph, TIDE_TUI_ROLE_KEY);
        x += w + 2;
    }
}

// ---- frames without a view ----

void tide_tui_draw_too_small(const tide_tui_view *v) {
    const int w = v->grid->width, h = v->grid->height;
    char text[64];
    snprintf(text, sizeof text, "needs %dx%d, has %dx%d (q quits)", TIDE_TUI_MIN_WIDTH, TIDE_TUI_MIN_HEIGHT, w, h);
    // Broken over as many lines as it takes: a terminal of a few cells still says something.
    const int len = (int)strlen(text);
    int at = 0;
    for (int y = 0; y < h && at < len; y++) {
        char line[64];
        snprintf(line, sizeof line, "%.*s", w < 63 ? w : 63, text + at);
        at += tide_tui_text(v, 0, y, w, line, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_TITLE);
    }
}

void tide_tui_draw_empty(const tide_tui_view *v) {
    const tide_tui_rect r = v->layout->curve;
    const char *text =
        v->model->tl->axis == TIDE_AXIS_STEPS ? "This plan holds no tensor that lives." : "No block lived in this run.";
    tide_tui_text(v, 2, r.y, v->layout->width - 4, text, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_TEXT);
}

void tide_tui_draw(const tide_tui_view *v) {
    tide_tui_grid_clear(v->grid);
    const tide_tui_locale locale = tide_tui_locale_enter();
    if (v->layout->too_small) {
        tide_tui_draw_too_small(v);
    } else {
        tide_tui_draw_title(v);
        if (v->model->help) {
            tide_tui_draw_help(v);
        } else {
            tide_tui_draw_summary(v);
            if (v->model->tl->n_items > 0) {
                tide_tui_draw_curve(v);
                tide_tui_draw_ruler(v);
                tide_tui_draw_gantt(v);
                tide_tui_draw_details(v);
            } else {
                tide_tui_draw_empty(v);
            }
        }
        tide_tui_draw_footer(v);
    }
    tide_tui_locale_leave(locale);
}
