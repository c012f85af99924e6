// SPDX-License-Identifier: MIT
//
// A table as lines: plain text and Markdown. See table.h.
#include <string.h>

#include "analysis/table.h"
#include "core/base/host_alloc.h"
#include "core/base/utf8.h"

enum { MIN_WIDTH = 8 }; // a column that gives way keeps so many characters

/// The cells of the columns that are shown, as they will be written.
typedef struct grid {
    const tide_table *table;
    const tide_lines_style *style;
    size_t n_lines, n_columns; // line 0: the heading
    size_t *shown;             // [n_columns] of the table; owned
    size_t *widths;            // [n_columns]; owned
    char **cells;              // [n_lines][n_columns]; owned
} grid;

/// In characters.
static size_t width_of(const char *text) {
    size_t n = 0;
    uint32_t cp;
    for (size_t step; (step = tide_utf8_decode(text, &cp)) > 0; text += step) n++;
    return n;
}

static char *escaped(const grid *g, const char *text) {
    tide_text safe = {0};
    g->style->escape(&safe, text);
    char *copy = safe.failed ? NULL : tide_host_strdup(tide_text_str(&safe));
    tide_text_deinit(&safe);
    return copy;
}

static bool fill_line(grid *g, size_t line) {
    tide_row_room room;
    const tide_table *t = g->table;
    const void *row = line > 0 ? tide_table_row(t, line - 1, &room) : NULL;
    tide_cell v;
    bool good = true;
    for (size_t k = 0; good && k < g->n_columns; k++) {
        tide_text said = {0};
        if (line > 0) {
            tide_table_cell(t, row, g->shown[k], &v);
            tide_table_say(t, g->shown[k], &v, &said);
        } else {
            tide_text_add(&said, t->columns[g->shown[k]].title);
        }
        char *cell = said.failed ? NULL : escaped(g, tide_text_str(&said));
        tide_text_deinit(&said);
        good = cell != NULL;
        g->cells[line * g->n_columns + k] = cell;
    }
    return good;
}

static bool fill(grid *g) {
    g->shown = tide_host_calloc(g->table->n_columns, sizeof *g->shown);
    g->widths = tide_host_calloc(g->table->n_columns, sizeof *g->widths);
    g->cells = tide_host_calloc(g->n_lines * g->table->n_columns, sizeof *g->cells);
    if (g->shown == NULL || g->widths == NULL || g->cells == NULL) return false;
    for (size_t c = 0; c < g->table->n_columns; c++)
        if (tide_table_shows(g->table, c)) g->shown[g->n_columns++] = c;
    for (size_t line = 0; line < g->n_lines; line++)
        if (!fill_line(g, line)) return false;
    return true;
}

static void grid_deinit(grid *g) {
    for (size_t i = 0; g->cells != NULL && i < g->n_lines * g->n_columns; i++) tide_host_free(g->cells[i]);
    tide_host_free(g->cells);
    tide_host_free(g->widths);
    tide_host_free(g->shown);
}

static void measure(grid *g) {
    for (size_t i = 0; i < g->n_lines * g->n_columns; i++) {
        const size_t w = width_of(g->cells[i]), k = i % g->n_columns;
        if (w > g->widths[k]) g->widths[k] = w;
    }
    for (size_t k = 0; g->style->max_width > 0 && k < g->n_columns; k++)
        if (g->widths[k] > g->style->max_width) g->widths[k] = g->style->max_width;
}

/// Take from the widest column that may be cut, one after another, until a line fits or no column can give any more.
static void fit(grid *g) {
    const size_t limit = g->style->line_width;
    size_t line = strlen(g->style->begin) + strlen(g->style->between) * (g->n_columns - 1);
    for (size_t k = 0; k < g->n_columns; k++) line += g->widths[k];
    for (; limit > 0 && line > limit; line--) {
        size_t widest = g->n_columns;
        for (size_t k = 0; k < g->n_columns; k++) {
            if (!g->table->columns[g->shown[k]].may_be_cut || g->widths[k] <= MIN_WIDTH) continue;
            if (widest == g->n_columns || g->widths[k] > g->widths[widest]) widest = k;
        }
        if (widest == g->n_columns) return;
        g->widths[widest]--;
    }
}

static bool is_right(const grid *g, size_t k) {
    const tide_column *c = &g->table->columns[g->shown[k]];
    return c->is_right || (!tide_unit_is_words(c->unit) && c->unit != TIDE_UNIT_FLAG);
}

/// `text` in `width` columns; its last character that fits gives way to a mark when there is more.
static void add_cell(const grid *g, size_t k, const char *text, bool is_last, tide_text *out) {
    const size_t full = width_of(text), width = g->style->is_padded ? g->widths[k] : 0;
    const bool is_cut = full > width && g->style->line_width > 0, right = is_right(g, k);
    const int pad = full < width ? (int)(width - full) : 0;
    size_t bytes = strlen(text);
    if (is_cut) {
        uint32_t cp;
        bytes = 0;
        for (size_t i = 0; i + 1 < width; i++) bytes += tide_utf8_decode(text + bytes, &cp);
    }
    if (right) tide_text_addf(out, "%*s", pad, "");
    tide_text_add_n(out, text, bytes);
    if (is_cut) tide_text_add(out, g->style->cut_mark);
    if (!right && !is_last) tide_text_addf(out, "%*s", pad, "");
}

static void add_line(const grid *g, size_t line, tide_text *out) {
    char *const *cells = g->cells + line * g->n_columns;
    const bool has_end = g->style->end[0] != '\0';
    size_t last = g->n_columns - 1;
    while (!has_end && !g->style->keeps_blanks && line > 0 && last > 0 && cells[last][0] == '\0') last--;
    tide_text_add(out, g->style->begin);
    for (size_t k = 0; k <= last; k++) {
        if (k > 0) tide_text_add(out, g->style->between);
        add_cell(g, k, cells[k], k == last && !has_end, out);
    }
    tide_text_addf(out, "%s\n", g->style->end);
}

static void add_rule(const grid *g, tide_text *out) {
    for (size_t k = 0; k < g->n_columns; k++)
        tide_text_add(out, is_right(g, k) ? g->style->rule_right : g->style->rule);
    tide_text_addf(out, "%s\n", g->style->rule_end);
}

void tide_table_lines(const tide_table *t, size_t max_rows, const tide_lines_style *style, tide_text *out) {
    grid g = {.table = t, .style = style, .n_lines = 1 + (t->n_rows < max_rows ? t->n_rows : max_rows)};
    if (!fill(&g)) out->failed = true;
    if (!out->failed && g.n_columns > 0) {
        measure(&g);
        fit(&g);
        for (size_t line = 0; line < g.n_lines && !out->failed; line++) {
            add_line(&g, line, out);
            if (line == 0 && style->rule != NULL) add_rule(&g, out);
        }
    }
    grid_deinit(&g);
}

void tide_markdown_add(tide_text *out, const char *text) {
    tide_text clean = {0};
    tide_utf8_add_clean(&clean, text);
    for (const char *c = tide_text_str(&clean); *c != '\0'; c++) {
        if (strchr("\\`*_[]<>#|~&", *c) != NULL) tide_text_add(out, "\\");
        tide_text_add_n(out, c, 1);
    }
    if (clean.failed) out->failed = true;
    tide_text_deinit(&clean);
}
