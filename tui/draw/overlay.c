// SPDX-License-Identifier: MIT
//
// What is laid over the panes: the help, a message, the SQL behind a pane, settings. See draw.h.
//
//     == SQL of table ================================== 1-20 of 34 lines ==
//     SELECT name, scope, ...
//
// The help is made from the table of keys and from the glyphs in use: questions and the view that answers each, keys by
// group, what the glyphs mean. Its columns are filled from top to bottom and scroll together.
#include <stdio.h>
#include <string.h>

#include "tui/draw/draw.h"
#include "tui/draw/format.h"

// ---- help ----

enum { COLUMN_W = 56, GUTTER = 2, KEYS_W = 11, MAX_ENTRIES = 256, MAX_COLUMNS = 7 };

typedef struct entry {
    enum { ENTRY_BLANK, ENTRY_TITLE, ENTRY_ANSWER, ENTRY_BINDING, ENTRY_LEGEND, ENTRY_NOTE } kind;
    const char *text, *more;         ///< title; of a legend and of an answer what it says
    const tide_tui_binding *binding; ///< of a binding; of an answer the view to press
    uint32_t glyph;
    tide_tui_role role;
} entry;

typedef struct entries {
    entry list[MAX_ENTRIES];
    int n;
    char edits[TIDE_N_EDITS][112];
} entries;

static void add(entries *e, entry one) {
    if (e->n < MAX_ENTRIES) e->list[e->n++] = one;
}

static void add_title(entries *e, const char *text) {
    if (e->n > 0) add(e, (entry){.kind = ENTRY_BLANK});
    add(e, (entry){.kind = ENTRY_TITLE, .text = text});
}

static void add_legend(entries *e, uint32_t glyph, tide_tui_role role, const char *text) {
    add(e, (entry){.kind = ENTRY_LEGEND, .glyph = glyph, .role = role, .text = text});
}

// ---- what there is to say ----

/// Common questions, each with the view that answers it.
static void add_answers(entries *e) {
    static const struct {
        const char *question;
        tide_tui_action view;
    } answers[] = {
        {"what makes the peak: the first rows of the table", TIDE_TUI_VIEW_3},
        {"what would lower it: explain, and the advice below", TIDE_TUI_VIEW_3},
        {"is B better than A, and why: the waterfall", TIDE_TUI_VIEW_5},
        {"which allocator caches unused memory", TIDE_TUI_VIEW_4},
        {"where a leak began: below the allocators", TIDE_TUI_VIEW_4},
        {"where the holes are: addresses over time", TIDE_TUI_VIEW_2},
        {"which calls asked for what is alive", TIDE_TUI_VIEW_6},
    };
    add_title(e, "Questions");
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++)
        add(e, (entry){
                   .kind = ENTRY_ANSWER, .text = answers[i].question, .binding = tide_tui_binding_of(answers[i].view)});
}

static void add_bindings(entries *e) {
    const tide_tui_binding *b;
    const size_t n = tide_tui_bindings(&b);
    for (int group = 0; group < TIDE_TUI_N_KEY_GROUPS; group++) {
        add_title(e, tide_tui_key_group_title((tide_tui_key_group)group));
        for (size_t i = 0; i < n; i++)
            if ((int)b[i].group == group) add(e, (entry){.kind = ENTRY_BINDING, .binding = &b[i]});
    }
}

static const char *edit_meaning(tide_edit_kind kind) {
    switch (kind) {
    case TIDE_EDIT_FREE_EARLIER:
        return "dies there, or after the step that makes it";
    case TIDE_EDIT_IN_PLACE:
        return "overwrites the other, which dies there";
    case TIDE_EDIT_RECOMPUTE:
        return "is thrown away before the peak and made again";
    case TIDE_EDIT_ALIGN:
        return "another alignment, of one or of all";
    case TIDE_EDIT_PIN:
        return "lies there";
    case TIDE_EDIT_UNPIN:
        return "may lie anywhere";
    case TIDE_EDIT_HALF:
        return "half its bytes: 16 bits in place of 32";
    case TIDE_EDIT_GONE:
        return "is not there at all";
    case TIDE_EDIT_STRATEGY:
        return "plan with another one";
    case TIDE_EDIT_PASS:
        return "a pass on or off";
    case TIDE_EDIT_EXTENT:
        return "another shape of an input";
    case TIDE_EDIT_BATCH:
        return "another first extent of all inputs";
    default:
        return "";
    }
}

/// What stands behind ":edit".
static void add_edits(entries *e) {
    add_title(e, "Edits of a plan (:edit)");
    for (int kind = 0; kind < TIDE_N_EDITS; kind++) {
        snprintf(e->edits[kind], sizeof e->edits[kind], "%s: %s", tide_edit_usage((tide_edit_kind)kind),
                 edit_meaning((tide_edit_kind)kind));
        add(e, (entry){.kind = ENTRY_NOTE, .text = e->edits[kind]});
    }
}

static void add_legends(entries *e, const tide_tui_glyphs *g) {
    add_title(e, "Bars");
    for (int fill = 0; fill < TIDE_N_ITEM_FILLS; fill++)
        add_legend(e, g->bar[fill], (tide_tui_role)(TIDE_TUI_ROLE_BAR + fill),
                   tide_item_fill_text((tide_item_fill)fill));
    add_legend(e, g->before, TIDE_TUI_ROLE_DIM, "goes on before the window");
    add_legend(e, g->after, TIDE_TUI_ROLE_DIM, "goes on behind it");
    add_legend(e, g->density[0], TIDE_TUI_ROLE_TEXT, "a group: one is alive");
    add_legend(e, g->density[TIDE_TUI_N_DENSITIES - 1], TIDE_TUI_ROLE_TEXT, "a group: many are");
    add_title(e, "Curve");
    add_legend(e, g->rise[8], TIDE_TUI_ROLE_CURVE, "bytes alive during the whole column");
    add_legend(e, g->spike, TIDE_TUI_ROLE_SPIKE, "reached for a part of the column");
    add_legend(e, g->plan, TIDE_TUI_ROLE_PLAN, "plan, on top of weights, inputs, outputs");
    add_legend(e, g->bound, TIDE_TUI_ROLE_BOUND, "lower bound, likewise: no plan is smaller");
    add_legend(e, g->capacity, TIDE_TUI_ROLE_CAPACITY, "capacity");
    add_legend(e, g->predicted, TIDE_TUI_ROLE_PREDICTED, "what the plan predicts, beside a trace");
    add_legend(e, g->other, TIDE_TUI_ROLE_OTHER, "B");
    add_legend(e, g->peak, TIDE_TUI_ROLE_PEAK, "the peak");
    add_legend(e, g->cursor, TIDE_TUI_ROLE_CURSOR, "the time cursor, one for all panes");
    add_legend(e, g->edge, TIDE_TUI_ROLE_RANGE, "the selected range");
    add_title(e, "Map");
    add_legend(e, g->full, TIDE_TUI_ROLE_PLACE, "bytes of one item");
    add_legend(e, g->shared, TIDE_TUI_ROLE_TEXT, "of several, too small to tell apart");
    add_legend(e, g->hole, TIDE_TUI_ROLE_HOLE, "a hole: free, with something above it");
    add_legend(e, g->vacant, TIDE_TUI_ROLE_DIM, "free, with nothing above it");
    add_legend(e, g->outside, TIDE_TUI_ROLE_DIM, "no memory there at that time");
}

// ---- drawing ----

/// A line of the screen: an entry, or what did not fit into its first line.
typedef struct help_line {
    const entry *of;
    const char *text;
    size_t n;
    bool first;
} help_line;
typedef struct help_lines {
    help_line list[2 * MAX_ENTRIES];
    int n;
} help_lines;

static int indent_of(const entry *e) {
    return e->kind == ENTRY_TITLE ? 0 : e->kind == ENTRY_BINDING ? KEYS_W + 2 : e->kind == ENTRY_NOTE ? 1 : 5;
}

static void break_lines(const tide_tui_view *v, const entries *e, int w, help_lines *out) {
    for (int i = 0; i < e->n; i++) {
        const entry *one = &e->list[i];
        const char *text = one->kind == ENTRY_BINDING ? one->binding->what : one->text != NULL ? one->text : "";
        const int room = w - indent_of(one) > 4 ? w - indent_of(one) : 4;
        bool first = true;
        do {
            size_t skip = 0;
            const size_t n = tide_tui_wrap_line(v, room, text, &skip);
            if (out->n < 2 * MAX_ENTRIES) out->list[out->n++] = (help_line){one, text, n, first};
            first = false;
            text += n + skip;
        } while (*text != '\0');
    }
}

/// What stands before the text: keys, a name behind ':' where there is no key, a glyph.
static void write_lead(tide_tui_lines *p, const entry *e, int x) {
    char key[TIDE_TUI_WORD];
    if (e->kind == ENTRY_LEGEND) {
        tide_tui_lines_fill(p, x + 1, 2, e->glyph, e->role);
    } else if (e->kind == ENTRY_ANSWER && e->binding != NULL && e->binding->keys[0] != 0) {
        tide_tui_lines_text(p, x + 1, 3, tide_tui_key_label(e->binding->keys[0], key, sizeof key), TIDE_TUI_CUT_END,
                            TIDE_TUI_ROLE_KEY);
    } else if (e->kind == ENTRY_BINDING) {
        tide_text keys = {0};
        tide_tui_keys_label(e->binding, &keys);
        if (keys.len == 0) tide_text_addf(&keys, ":%s", e->binding->name);
        tide_tui_lines_text(p, x + 1, KEYS_W, tide_text_str(&keys), TIDE_TUI_CUT_END, TIDE_TUI_ROLE_KEY);
        tide_text_deinit(&keys);
    }
}

static void write_line(tide_tui_lines *p, const help_line *l, int x, int w) {
    char text[160];
    const size_t n = l->n < sizeof text ? l->n : sizeof text - 1;
    memcpy(text, l->text, n);
    text[n] = '\0';
    if (l->first) write_lead(p, l->of, x);
    const int indent = indent_of(l->of);
    tide_tui_lines_text(p, x + indent, w - indent, text, TIDE_TUI_CUT_END,
                        l->of->kind == ENTRY_TITLE ? TIDE_TUI_ROLE_TITLE : TIDE_TUI_ROLE_TEXT);
}

static void write_help(tide_tui_lines *p) {
    entries e = {.n = 0};
    add_answers(&e);
    add_bindings(&e);
    add_edits(&e);
    add_legends(&e, p->v->glyphs);
    int n_columns = (p->r.w + GUTTER) / (COLUMN_W + GUTTER);
    n_columns = n_columns < 1 ? 1 : n_columns > MAX_COLUMNS ? MAX_COLUMNS : n_columns;
    const int w = (p->r.w - GUTTER * (n_columns - 1)) / n_columns;
    help_lines lines = {.n = 0};
    break_lines(p->v, &e, w, &lines);
    // Where a column ends, a blank line is not carried over to the top of the next one.
    int first[MAX_COLUMNS + 1] = {0}, at = 0;
    const int per = (lines.n + n_columns - 1) / n_columns;
    for (int c = 0; c < n_columns; c++) {
        while (at < lines.n && lines.list[at].of->kind == ENTRY_BLANK) at++;
        first[c] = at;
        at = at + per < lines.n ? at + per : lines.n;
    }
    first[n_columns] = lines.n;
    for (int i = 0; i < per; i++) {
        for (int c = 0; c < n_columns; c++)
            if (first[c] + i < first[c + 1]) write_line(p, &lines.list[first[c] + i], c * (w + GUTTER), w);
        tide_tui_lines_next(p);
    }
}

// ---- the other overlays ----

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

static void write_lines(tide_tui_lines *p, const char *text) {
    char line[512];
    while (*text != '\0') {
        size_t n = strcspn(text, "\n");
        const size_t whole = n;
        if (n >= sizeof line) n = sizeof line - 1;
        memcpy(line, text, n);
        line[n] = '\0';
        const bool remark = line[0] == '-' && line[1] == '-';
        const bool error = strncmp(line, "error:", 6) == 0;
        tide_tui_lines_wrap(p, 0, line, error ? TIDE_TUI_ROLE_ERROR : remark ? TIDE_TUI_ROLE_DIM : TIDE_TUI_ROLE_TEXT);
        text += whole + (text[whole] == '\n');
    }
}

/// name, value, what it is; the selected one is marked.
static void write_settings(tide_tui_lines *p, const tide_tui_scene *s) {
    const int what_x = 2 + 12 + 16;
    char value[TIDE_TUI_WORD];
    for (int i = 0; i < TIDE_TUI_N_SETTINGS; i++) {
        const int y = tide_tui_lines_y(p);
        const bool selected = i == s->state->overlay_row;
        tide_tui_lines_text(p, 0, 1, selected ? ">" : " ", TIDE_TUI_CUT_END, TIDE_TUI_ROLE_CURSOR);
        tide_tui_lines_text(p, 2, 11, tide_tui_setting_name((tide_tui_setting)i), TIDE_TUI_CUT_END, TIDE_TUI_ROLE_KEY);
        tide_tui_lines_text(p, 14, p->r.w < 50 ? p->r.w - 14 : 15,
                            tide_tui_setting_value(s->state, (tide_tui_setting)i, value, sizeof value),
                            TIDE_TUI_CUT_END, TIDE_TUI_ROLE_TEXT);
        if (p->r.w >= 50)
            tide_tui_lines_text(p, what_x, p->r.w - what_x, tide_tui_setting_what((tide_tui_setting)i),
                                TIDE_TUI_CUT_END, TIDE_TUI_ROLE_DIM);
        if (selected && y >= 0) tide_tui_mark_row(p->v->grid, p->r.x, y, p->r.w, TIDE_TUI_MARK_SELECTED);
        tide_tui_lines_next(p);
    }
    char change[TIDE_TUI_WORD], back[TIDE_TUI_WORD], text[256];
    tide_tui_lines_next(p);
    snprintf(text, sizeof text,
             "%s changes the selected one, %s goes back, :set NAME VALUE sets any. Settings are kept.",
             tide_tui_key_of(TIDE_TUI_OPEN, change, sizeof change), tide_tui_key_of(TIDE_TUI_BACK, back, sizeof back));
    tide_tui_lines_wrap(p, 0, text, TIDE_TUI_ROLE_DIM);
}

static void write_overlay(tide_tui_lines *p, const tide_tui_scene *s) {
    const tide_tui_state *st = s->state;
    switch (st->overlay) {
    case TIDE_TUI_OVERLAY_HELP:
        write_help(p);
        break;
    case TIDE_TUI_OVERLAY_SETUP:
        write_settings(p, s);
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
    tide_tui_lines counted = {.v = &v, .r = {.w = body_of(s->layout).w}};
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
    tide_tui_lines p = {.v = v, .r = body, .top = (size_t)top};
    write_overlay(&p, s);
}
