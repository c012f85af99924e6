// SPDX-License-Identifier: MIT
//
// What is laid over the panes: a message, the SQL behind a pane, settings; the help is draw_help.c's. See draw.h.
//
//     == SQL of table ================================== 1-20 of 34 lines ==
//     SELECT name, scope, …
#include <stdio.h>
#include <string.h>

#include "tui/draw_help.h"
#include "tui/draw_words.h"
#include "tui/pane_rows.h"
#include "tui/pane_sql.h"

static tide_tui_rect body_of(const tide_tui_layout *l) {
    const tide_tui_rect r = l->overlay;
    if (r.w < 4 || r.h < 2) return (tide_tui_rect){r.x, r.y, 0, 0};
    return (tide_tui_rect){r.x + 1, r.y + 1, r.w - 2, r.h - 1};
}

// ---- what is written on it ----

static const char *title_of(const tide_tui_scene *s, char *buf, size_t buf_bytes) {
    switch (s->state->overlay) {
    case TIDE_TUI_OVERLAY_HELP:
        return "HELP";
    case TIDE_TUI_OVERLAY_SQL:
        snprintf(buf, buf_bytes, "SQL of %s", tide_tui_pane_name(s->state->focus));
        return buf;
    case TIDE_TUI_OVERLAY_SETUP:
        return "SETTINGS";
    default:
        return s->state->message_is_error ? "ERROR" : "MESSAGE";
    }
}

static void write_lines(tide_tui_paper *p, const char *text) {
    char line[512];
    while (*text != '\0') {
        size_t n = strcspn(text, "\n");
        const size_t whole = n;
        if (n >= sizeof line) n = sizeof line - 1;
        memcpy(line, text, n);
        line[n] = '\0';
        const bool remark = line[0] == '-' && line[1] == '-';
        const bool error = strncmp(line, "error:", 6) == 0;
        tide_tui_paper_wrap(p, 0, line, error ? TIDE_TUI_ROLE_ERROR : remark ? TIDE_TUI_ROLE_DIM : TIDE_TUI_ROLE_TEXT);
        text += whole + (text[whole] == '\n');
    }
}

/// name, value, what it is; the selected one is marked.
static void write_settings(tide_tui_paper *p, const tide_tui_scene *s) {
    const int what_x = 2 + 12 + 16;
    char value[TIDE_TUI_WORD];
    for (int i = 0; i < TIDE_TUI_N_SETTINGS; i++) {
        const int y = tide_tui_paper_y(p);
        const bool selected = i == s->state->overlay_row;
        tide_tui_paper_text(p, 0, 1, selected ? ">" : " ", TIDE_TUI_CUT_END, TIDE_TUI_ROLE_CURSOR);
        tide_tui_paper_text(p, 2, 11, tide_tui_setting_name((tide_tui_setting)i), TIDE_TUI_CUT_END, TIDE_TUI_ROLE_KEY);
        tide_tui_paper_text(p, 14, p->r.w < 50 ? p->r.w - 14 : 15,
                            tide_tui_setting_value(s->state, (tide_tui_setting)i, value, sizeof value),
                            TIDE_TUI_CUT_END, TIDE_TUI_ROLE_TEXT);
        if (p->r.w >= 50)
            tide_tui_paper_text(p, what_x, p->r.w - what_x, tide_tui_setting_what((tide_tui_setting)i),
                                TIDE_TUI_CUT_END, TIDE_TUI_ROLE_DIM);
        if (selected && y >= 0) tide_tui_mark_row(p->v->grid, p->r.x, y, p->r.w, TIDE_TUI_MARK_SELECTED);
        tide_tui_paper_next(p);
    }
    char change[TIDE_TUI_WORD], back[TIDE_TUI_WORD], text[256];
    tide_tui_paper_next(p);
    snprintf(text, sizeof text,
             "%s changes the selected one, %s goes back, :set NAME VALUE sets any. Settings are kept.",
             tide_tui_key_of(TIDE_TUI_OPEN, change, sizeof change), tide_tui_key_of(TIDE_TUI_BACK, back, sizeof back));
    tide_tui_paper_wrap(p, 0, text, TIDE_TUI_ROLE_DIM);
}

static void write_overlay(tide_tui_paper *p, const tide_tui_scene *s) {
    const tide_tui_state *st = s->state;
    tide_text text = {0};
    switch (st->overlay) {
    case TIDE_TUI_OVERLAY_HELP:
        tide_tui_help_write(p);
        break;
    case TIDE_TUI_OVERLAY_SETUP:
        write_settings(p, s);
        break;
    case TIDE_TUI_OVERLAY_SQL:
        if (s->overlay_text != NULL && s->overlay_text[0] != '\0') {
            write_lines(p, s->overlay_text);
            break;
        }
        tide_tui_pane_sql(s, st->focus, &text);
        write_lines(p, tide_text_str(&text));
        tide_text_deinit(&text);
        break;
    default:
        write_lines(p, s->overlay_text != NULL && s->overlay_text[0] != '\0' ? s->overlay_text : st->message);
        break;
    }
}

// ---- scrolling ----

size_t tide_tui_overlay_lines(const tide_tui_scene *s, const tide_tui_glyphs *glyphs) {
    if (s->state->overlay == TIDE_TUI_OVERLAY_NONE) return 0;
    const tide_tui_view v = {.scene = s, .glyphs = glyphs};
    tide_tui_paper counted = {.v = &v, .r = {.w = body_of(s->layout).w}};
    if (counted.r.w == 0) return 0;
    const tide_tui_locale locale = tide_tui_locale_enter();
    write_overlay(&counted, s);
    tide_tui_locale_leave(locale);
    return counted.n;
}

int tide_tui_overlay_max_top(const tide_tui_scene *s, const tide_tui_glyphs *glyphs) {
    const size_t n = tide_tui_overlay_lines(s, glyphs);
    const int h = body_of(s->layout).h;
    return h <= 0 || n <= (size_t)h ? 0 : n - (size_t)h > 1000000 ? 1000000 : (int)(n - (size_t)h);
}

// ---- drawing ----

static void draw_frame(const tide_tui_view *v, const char *facts) {
    const tide_tui_rect r = v->scene->layout->overlay;
    char title[64];
    for (int y = r.y; y < r.y + r.h; y++) tide_tui_fill_row(v->grid, r.x, y, r.w, ' ', TIDE_TUI_ROLE_TEXT);
    tide_tui_fill_row(v->grid, r.x, r.y, r.w, v->glyphs->ascii ? '=' : 0x2550, TIDE_TUI_ROLE_TITLE);
    tide_tui_put(v->grid, r.x + 1, r.y, ' ', TIDE_TUI_ROLE_TITLE);
    const int used = tide_tui_text(v, r.x + 2, r.y, r.w - 4, title_of(v->scene, title, sizeof title), TIDE_TUI_CUT_END,
                                   TIDE_TUI_ROLE_TITLE);
    tide_tui_put(v->grid, r.x + 2 + used, r.y, ' ', TIDE_TUI_ROLE_TITLE);
    const int w = tide_tui_text_width(v->glyphs, facts);
    if (w == 0 || used + w + 8 > r.w) return;
    tide_tui_put(v->grid, r.x + r.w - w - 3, r.y, ' ', TIDE_TUI_ROLE_TITLE);
    tide_tui_text(v, r.x + r.w - w - 2, r.y, w, facts, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_TITLE);
    tide_tui_put(v->grid, r.x + r.w - 2, r.y, ' ', TIDE_TUI_ROLE_TITLE);
}

void tide_tui_draw_overlay(const tide_tui_view *v) {
    const tide_tui_scene *s = v->scene;
    const tide_tui_rect body = body_of(s->layout);
    if (s->state->overlay == TIDE_TUI_OVERLAY_NONE || body.w == 0) return;
    const size_t n = tide_tui_overlay_lines(s, v->glyphs);
    const int max_top = tide_tui_overlay_max_top(s, v->glyphs);
    int top = s->state->overlay_top < max_top ? s->state->overlay_top : max_top;
    if (top < 0) top = 0;
    char facts[64] = "";
    if (max_top > 0) snprintf(facts, sizeof facts, "lines %d-%zu of %zu", top + 1, (size_t)top + (size_t)body.h, n);
    draw_frame(v, facts);
    tide_tui_paper p = {.v = v, .r = body, .top = (size_t)top};
    write_overlay(&p, s);
}
