// SPDX-License-Identifier: MIT
//
// What all panes draw with: text, lines of text that scroll, the heading of a pane, a table that scrolls. See
// canvas.h.
//
//     -- table: alive at step 5 (conv1) ---------- 12 tensors, 3.20 MiB --
//     == TABLE: alive at step 5 (conv1) ========== 12 tensors, 3.20 MiB ==    the focus: a double rule and capitals,
//                                                                             not only a colour
//     name              op       size    share      titles; columns of the highest rank are left out first
//     conv1_out         conv1   1.00 MiB  34.0 %
//   > relu1_out         relu1   1.00 MiB  34.0 %    the selected row: a sign in the margin besides the colour
//     fc_out            fc       40.0 KiB   1.2 %
//                                             3/12    the selected row of all rows, when not all are on the screen
#include "tui/draw/canvas.h"

#include <stdio.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/utf8.h"
#include "tui/draw/format.h"

int tide_tui_text(const tide_tui_view *v, int x, int y, int w, const char *text, tide_tui_cut cut, tide_tui_role role) {
    return tide_tui_put_text(v->grid, v->glyphs, x, y, w, text, cut, role);
}

tide_tui_rect tide_tui_body_of(const tide_tui_scene *s, tide_tui_pane pane) {
    const tide_tui_rect r = s->layout->panes[pane];
    if (r.w <= 0 || r.h <= 1) return (tide_tui_rect){r.x, r.y, 0, 0};
    return (tide_tui_rect){r.x, r.y + 1, r.w, r.h - 1};
}

// ---- lines of text that scroll ----

int tide_tui_lines_y(const tide_tui_lines *p) {
    if (p->n < p->top || p->r.h <= 0 || p->n - p->top >= (size_t)p->r.h) return -1;
    return p->r.y + (int)(p->n - p->top);
}

int tide_tui_lines_text(tide_tui_lines *p, int x, int w, const char *text, tide_tui_cut cut, tide_tui_role role) {
    const int y = tide_tui_lines_y(p);
    if (x + w > p->r.w) w = p->r.w - x;
    if (x < 0 || y < 0 || w <= 0) return 0;
    return tide_tui_text(p->v, p->r.x + x, y, w, text, cut, role);
}

void tide_tui_lines_right(tide_tui_lines *p, int x, int w, const char *text, tide_tui_role role) {
    const int need = tide_tui_text_width(p->v->glyphs, text), skip = need < w ? w - need : 0;
    tide_tui_lines_text(p, x + skip, w - skip, text, TIDE_TUI_CUT_END, role);
}

void tide_tui_lines_fill(tide_tui_lines *p, int x, int w, uint32_t glyph, tide_tui_role role) {
    const int y = tide_tui_lines_y(p);
    if (x + w > p->r.w) w = p->r.w - x;
    if (x >= 0 && y >= 0 && w > 0) tide_tui_fill_row(p->v->grid, p->r.x + x, y, w, glyph, role);
}

void tide_tui_lines_next(tide_tui_lines *p) { p->n++; }

/// Columns of the character at `text`, whose bytes go to *n.
static int character_width(const tide_tui_view *v, const char *text, size_t *n) {
    char one[8];
    uint32_t cp;
    *n = tide_utf8_decode(text, &cp);
    if (cp >= ' ' && cp < 0x7F) return 1;
    memcpy(one, text, *n);
    one[*n] = '\0';
    return tide_tui_text_width(v->glyphs, one);
}

size_t tide_tui_wrap_line(const tide_tui_view *v, int w, const char *text, size_t *skip) {
    size_t at = 0, blank = 0, bytes = 0;
    int used = 0;
    while (text[at] != '\0' && text[at] != '\n') {
        if (text[at] == ' ' && at > 0) blank = at; // a word may also end right at the edge
        const int more = character_width(v, text + at, &bytes);
        if (used + more > w || at + bytes >= TIDE_TUI_LINE) break;
        used += more;
        at += bytes;
    }
    *skip = text[at] == '\n' ? 1 : 0;
    if (text[at] == '\0' || text[at] == '\n') return at;
    const size_t n = blank > 0 ? blank : at > 0 ? at : bytes; // a word that is longer than the line is broken
    while (text[n + *skip] == ' ') ++*skip;
    return n;
}

void tide_tui_lines_wrap(tide_tui_lines *p, int x, const char *text, tide_tui_role role) {
    const int w = p->r.w - x > 1 ? p->r.w - x : 1;
    char line[TIDE_TUI_LINE];
    do {
        size_t skip = 0;
        const size_t n = tide_tui_wrap_line(p->v, w, text, &skip);
        TIDE_ASSERT(n < sizeof line);
        memcpy(line, text, n);
        line[n] = '\0';
        tide_tui_lines_text(p, x, w, line, TIDE_TUI_CUT_END, role);
        tide_tui_lines_next(p);
        text += n + skip;
    } while (*text != '\0');
}

size_t tide_tui_wrap_count(const tide_tui_view *v, int w, const char *text) {
    tide_tui_lines counted = {.v = v, .r = {.w = w}};
    tide_tui_lines_wrap(&counted, 0, text, TIDE_TUI_ROLE_TEXT);
    return counted.n;
}

size_t tide_tui_settle_top(size_t n, size_t row, size_t top, int h) {
    const size_t room = h > 0 ? (size_t)h : 1;
    if (row >= n) row = n > 0 ? n - 1 : 0;
    if (row < top) top = row;
    if (row - top >= room) top = row - room + 1;
    if (n > room && top > n - room) top = n - room;
    return n <= room ? 0 : top;
}

// ---- heading ----

static uint32_t rule_of(const tide_tui_view *v, bool focused) {
    if (!focused) return v->glyphs->rule;
    return v->glyphs->ascii ? '=' : 0x2550; // a double rule
}

/// " text " inside the rule, at column x. @return columns used
static int inlay(const tide_tui_view *v, int x, int y, int w, const char *text, tide_tui_role role) {
    if (w < 3 || text[0] == '\0') return 0;
    tide_tui_put(v->grid, x, y, ' ', role);
    const int used = tide_tui_text(v, x + 1, y, w - 2, text, TIDE_TUI_CUT_END, role);
    tide_tui_put(v->grid, x + 1 + used, y, ' ', role);
    return used + 2;
}

/// As many facts as fit into `room` columns; "…" stands for the others. @return columns
static int fit_facts(const tide_tui_view *v, const char *facts, int room, char *buf, size_t buf_bytes) {
    snprintf(buf, buf_bytes, "%s", facts);
    int w = tide_tui_text_width(v->glyphs, buf);
    while (w > room) {
        char *comma = strrchr(buf, ',');
        if (comma == NULL) return 0;
        snprintf(comma, buf_bytes - (size_t)(comma - buf), v->glyphs->ascii ? "~" : "\xE2\x80\xA6");
        w = tide_tui_text_width(v->glyphs, buf);
    }
    return w;
}

tide_tui_rect tide_tui_heading(const tide_tui_view *v, tide_tui_pane pane, const char *title, const char *facts) {
    const tide_tui_rect r = v->scene->layout->panes[pane];
    if (r.w <= 0 || r.h <= 0) return (tide_tui_rect){r.x, r.y, 0, 0};
    const bool focused = v->scene->state->focus == pane;
    const tide_tui_role role = focused ? TIDE_TUI_ROLE_TITLE : TIDE_TUI_ROLE_DIM;
    tide_tui_fill_row(v->grid, r.x, r.y, r.w, rule_of(v, focused), role);

    char name[192];
    snprintf(name, sizeof name, "%s", tide_tui_pane_name(pane));
    for (char *c = name; focused && *c != '\0'; c++)
        if (*c >= 'a' && *c <= 'z') *c = (char)(*c - 'a' + 'A');
    const size_t len = strlen(name);
    if (title[0] != '\0') snprintf(name + len, sizeof name - len, ": %s", title);
    // The pane shows the moment in its title, while the one of the cursor is being made.
    char with_progress[256];
    if (v->scene->is_earlier[pane]) {
        const char *busy = v->scene->busy[pane];
        snprintf(with_progress, sizeof with_progress, "%s%s%s", busy[0] != '\0' ? busy : "working",
                 facts[0] != '\0' ? ", " : "", facts);
        facts = with_progress;
    }

    // The title first; facts have what is left, and end at one of their commas rather than in the middle of a number.
    const int need = tide_tui_text_width(v->glyphs, name), room = r.w - 2;
    char some[256];
    const int facts_w = fit_facts(v, facts, room - (need < 40 ? need : 40) - 5, some, sizeof some);
    const int title_room = facts_w > 0 ? room - facts_w - 3 : room;
    inlay(v, r.x + 1, r.y, title_room, name, focused ? TIDE_TUI_ROLE_TITLE : TIDE_TUI_ROLE_LABEL);
    if (facts_w > 0) inlay(v, r.x + r.w - facts_w - 3, r.y, facts_w + 2, some, role);
    return (tide_tui_rect){r.x, r.y + 1, r.w, r.h - 1};
}

/// The text of an error as a sentence.
static void sentence_of(const char *words, char *buf, size_t buf_bytes) {
    const size_t n = strlen(words);
    const bool ends = n > 0 && strchr(".!?", words[n - 1]) != NULL;
    snprintf(buf, buf_bytes, "%s%s", words, ends ? "" : ".");
    const bool is_word = (words[0] >= 'a' && words[0] <= 'z') && strpbrk(words, " ") != NULL;
    if (is_word) buf[0] = (char)(words[0] - 'a' + 'A');
}

bool tide_tui_draw_state_of(const tide_tui_view *v, tide_tui_pane pane, tide_tui_rect body, const char *empty) {
    const char *error = v->scene->error[pane], *busy = v->scene->busy[pane];
    char text[512];
    tide_tui_role role = TIDE_TUI_ROLE_DIM;
    if (error[0] != '\0') {
        sentence_of(error, text, sizeof text);
        role = TIDE_TUI_ROLE_TEXT;
    } else if (busy[0] != '\0') {
        // Progress of the worker; keys work meanwhile.
        snprintf(text, sizeof text, "Working: %s%s", busy, v->glyphs->ascii ? "..." : "\xE2\x80\xA6");
        role = TIDE_TUI_ROLE_KEY;
    } else if (empty != NULL && empty[0] != '\0') {
        snprintf(text, sizeof text, "%s", empty);
    } else {
        return false;
    }
    if (body.w > 2 && body.h > 0) {
        tide_tui_lines p = {.v = v, .r = {body.x + 1, body.y, body.w - 2, body.h}};
        tide_tui_lines_wrap(&p, 0, text, role);
    }
    return true;
}

// ---- table ----

enum { MAX_COLUMNS = 16, GAP = 2, MARGIN = 2, CELL = 320 };

typedef struct fitted {
    int w[MAX_COLUMNS]; ///< 0: left out
    size_t top;
} fitted;

static int clamp_w(const tide_tui_column *c, int w) {
    if (!c->stretch && w < c->min_w) w = c->min_w; // of one that stretches it is how far it may be cut
    return c->max_w > 0 && w > c->max_w ? c->max_w : w;
}

/// The title, with a mark behind it when the list is sorted by the column.
static void title_of(const tide_tui_view *v, const tide_tui_table *t, int c, char *buf, size_t buf_bytes) {
    const tide_tui_column *column = &t->columns[c];
    const char *sorted = v->scene->sorted[t->list].column;
    char mark[5] = "";
    if (column->key != NULL && sorted != NULL && strcmp(sorted, column->key) == 0)
        mark[tide_utf8_encode(v->scene->sorted[t->list].falls ? v->glyphs->falls : v->glyphs->rises, mark)] = 0;
    snprintf(buf, buf_bytes, "%s%s", column->title, mark);
}

/// What every column needs for the rows that show, its title included.
static void measure(const tide_tui_view *v, const tide_tui_table *t, int h, fitted *f) {
    char text[CELL];
    for (int c = 0; c < t->n_columns; c++) {
        title_of(v, t, c, text, sizeof text);
        f->w[c] = tide_tui_text_width(v->glyphs, text);
    }
    for (size_t row = f->top; row < t->n_rows && row - f->top < (size_t)h; row++) {
        for (int c = 0; c < t->n_columns; c++) {
            text[0] = '\0';
            (void)t->cell(t->ctx, row, c, text, sizeof text);
            const int w = tide_tui_text_width(v->glyphs, text);
            if (w > f->w[c]) f->w[c] = w;
        }
    }
    for (int c = 0; c < t->n_columns; c++) f->w[c] = clamp_w(&t->columns[c], f->w[c]);
}

/// The smallest width of a column; one that stretches has names, which may be cut.
static int least(const tide_tui_column *c, int w) {
    const int floor_w = c->min_w > 0 ? c->min_w : 8;
    return c->stretch && w > floor_w ? floor_w : w;
}

static int total(const tide_tui_table *t, const fitted *f) {
    int sum = 0;
    for (int c = 0; c < t->n_columns; c++)
        if (f->w[c] > 0) sum += least(&t->columns[c], f->w[c]) + (sum > 0 ? GAP : 0);
    return sum;
}

/// The column of the highest rank that may be left out; -1: none.
static int expendable(const tide_tui_table *t, const fitted *f) {
    int worst = -1;
    for (int c = 0; c < t->n_columns; c++)
        if (f->w[c] > 0 && t->columns[c].rank > 0 && (worst < 0 || t->columns[c].rank > t->columns[worst].rank))
            worst = c;
    return worst;
}

/// Leave columns out, the highest rank first, until the rest fits; give what is left over to those that stretch: first
/// what they need, to the lowest rank first, then the rest, so that columns do not move about when one scrolls.
static void fit(const tide_tui_table *t, int room, fitted *f) {
    while (total(t, f) > room) {
        const int worst = expendable(t, f);
        if (worst < 0) break;
        f->w[worst] = 0;
    }
    int left = room - total(t, f), need[MAX_COLUMNS], n = 0, order[MAX_COLUMNS];
    for (int c = 0; c < t->n_columns; c++) {
        need[c] = f->w[c];
        if (f->w[c] == 0 || !t->columns[c].stretch) continue;
        f->w[c] = least(&t->columns[c], f->w[c]);
        order[n++] = c;
        for (int k = n - 1; k > 0 && t->columns[order[k]].rank < t->columns[order[k - 1]].rank; k--) {
            order[k] = order[k - 1];
            order[k - 1] = c;
        }
    }
    for (int pass = 0; pass < 2; pass++) {
        for (int k = 0; k < n && left > 0; k++) {
            const int c = order[k];
            int more = pass == 0 ? need[c] - f->w[c] : clamp_w(&t->columns[c], f->w[c] + left / (n - k)) - f->w[c];
            if (more > left) more = left;
            f->w[c] += more;
            left -= more;
        }
    }
    if (left < 0 && n > 0) f->w[order[0]] = f->w[order[0]] + left > 1 ? f->w[order[0]] + left : 1;
}

static void put_cell(const tide_tui_view *v, const tide_tui_column *c, int x, int y, int w, const char *text,
                     tide_tui_role role) {
    const int need = tide_tui_text_width(v->glyphs, text), skip = c->right && need < w ? w - need : 0;
    tide_tui_text(v, x + skip, y, w - skip, text, c->right ? TIDE_TUI_CUT_END : TIDE_TUI_CUT_MIDDLE, role);
}

static void draw_row(const tide_tui_view *v, const tide_tui_table *t, const fitted *f, tide_tui_rect r, int y,
                     size_t row, bool titles) {
    char text[CELL];
    int x = r.x + MARGIN;
    for (int c = 0; c < t->n_columns; c++) {
        if (f->w[c] == 0) continue;
        tide_tui_role role = TIDE_TUI_ROLE_LABEL;
        text[0] = '\0';
        if (titles) {
            title_of(v, t, c, text, sizeof text);
        } else {
            role = t->cell(t->ctx, row, c, text, sizeof text);
        }
        const int w = x + f->w[c] > r.x + r.w ? r.x + r.w - x : f->w[c];
        if (w > 0) put_cell(v, &t->columns[c], x, y, w, text, role);
        x += f->w[c] + GAP;
    }
}

/// "3/12" at the right end of the titles.
static void draw_place(const tide_tui_view *v, const tide_tui_table *t, tide_tui_rect r, int used) {
    char row[TIDE_TUI_WORD], n[TIDE_TUI_WORD], place[2 * TIDE_TUI_WORD + 2];
    tide_tui_exact((t->row < t->n_rows ? t->row : t->n_rows - 1) + 1, row, sizeof row);
    snprintf(place, sizeof place, "%s/%s", row, tide_tui_exact(t->n_rows, n, sizeof n));
    const int w = tide_tui_text_width(v->glyphs, place);
    if (used + 2 + w <= r.w) tide_tui_text(v, r.x + r.w - w, r.y, w, place, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_DIM);
}

static bool has_room(tide_tui_rect body, const tide_tui_table *t) {
    return body.w > MARGIN && body.h > 0 && t->n_rows > 0 && t->n_columns <= MAX_COLUMNS;
}

/// The widths of the columns, and the first row, in `h` lines.
static fitted fit_table(const tide_tui_view *v, tide_tui_rect body, const tide_tui_table *t, int h) {
    fitted f = {.top = tide_tui_settle_top(t->n_rows, t->has_selection ? t->row : t->top, t->top, h)};
    measure(v, t, h, &f);
    fit(t, body.w - MARGIN, &f);
    return f;
}

int tide_tui_table_column_at(const tide_tui_view *v, tide_tui_rect body, const tide_tui_table *t, int x) {
    if (!has_room(body, t) || body.h < 2) return -1;
    const fitted f = fit_table(v, body, t, body.h - 1);
    int at = body.x + MARGIN;
    for (int c = 0; c < t->n_columns; c++) {
        if (f.w[c] == 0) continue;
        if (x >= at && x < at + f.w[c]) return c;
        at += f.w[c] + GAP;
    }
    return -1;
}

void tide_tui_draw_table_of(const tide_tui_view *v, tide_tui_rect body, const tide_tui_table *t) {
    if (!has_room(body, t)) return;
    // A single line shows the selected row rather than titles.
    const bool has_titles = body.h > 1;
    const int h = body.h - has_titles;
    const fitted f = fit_table(v, body, t, h);
    const bool scrolls = t->n_rows > (size_t)h;
    if (has_titles) {
        int used = MARGIN;
        for (int c = 0; c < t->n_columns; c++)
            if (f.w[c] > 0) used += f.w[c] + GAP;
        draw_row(v, t, &f, body, body.y, 0, true);
        if (scrolls) draw_place(v, t, body, used - GAP);
    }
    for (size_t i = 0; i < (size_t)h && f.top + i < t->n_rows; i++) {
        const int y = body.y + has_titles + (int)i;
        draw_row(v, t, &f, body, y, f.top + i, false);
        const uint32_t mark = t->mark != NULL ? t->mark(t->ctx, f.top + i) : 0;
        if (mark != 0) tide_tui_put(v->grid, body.x, y, mark, TIDE_TUI_ROLE_KEY);
        if (!t->has_selection || f.top + i != t->row) continue;
        tide_tui_put(v->grid, body.x, y, '>', TIDE_TUI_ROLE_CURSOR);
        tide_tui_mark_row(v->grid, body.x, y, body.w, TIDE_TUI_MARK_SELECTED);
    }
}

// ---- lists ----

bool tide_tui_list_begin(const tide_tui_scene *s, tide_tui_list list, tide_tui_rect body, tide_tui_list_table *out) {
    const tide_tui_pane pane = tide_tui_pane_of_list(list);
    const bool is_leaks = list == TIDE_TUI_LIST_LEAKS;
    const size_t n_pools = s->pools != NULL ? s->pools->n : 0, n_all = tide_tui_scene_rows(s, pane);
    const size_t n = is_leaks ? n_all - n_pools : list == TIDE_TUI_LIST_POOLS ? n_pools : n_all;
    if (n == 0) return false;
    *out = (tide_tui_list_table){.t = {.n_rows = n, .has_selection = true, .list = list, .ctx = out},
                                 .r = body,
                                 .scene = s,
                                 .so_far = &out->sum};
    const size_t row = tide_tui_scene_row(s, pane), top = s->state->pane_top[pane], first = is_leaks ? n_pools : 0;
    out->t.row = row >= first && row < first + n ? row - first : 0;
    out->t.top = top >= first && top < first + n ? top - first : 0;
    out->t.has_selection = row >= first && row < first + n;
    return true;
}
