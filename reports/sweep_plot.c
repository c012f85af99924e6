// SPDX-License-Identifier: MIT
//
// The curves of one model in characters: one series as a filled area in eighths of a cell, several as letters; lines
// for budgets, a mark under each answer.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/sweep_tables.h"
#include "core/base/host_alloc.h"
#include "core/base/utf8.h"
#include "reports/sweep_internal.h"

enum { ROWS = 14, GUTTER = 12, MIN_WIDTH = 40, MAX_WIDTH = 400 };

/// What a cell shows: a space, an ASCII letter, '-' for a budget, or a level of 1 to 8 eighths.
typedef struct grid {
    unsigned char *cells; // [ROWS][n_columns]
    size_t n_columns;
    const tide_sweep *s;
    const tide__sweep_group *g;
    bool ascii;
} grid;

static double value_at(const grid *d, size_t column) {
    return (double)d->g->x_lo + ((double)column + 0.5) / (double)d->n_columns * (double)(d->g->x_hi - d->g->x_lo);
}

static size_t column_of(const grid *d, uint64_t value) {
    const double at = (double)(value - d->g->x_lo) / (double)(d->g->x_hi - d->g->x_lo) * (double)d->n_columns;
    const size_t c = (size_t)at;
    return c < d->n_columns ? c : d->n_columns - 1;
}

/// Eighths of a cell from the lower edge up.
static size_t height_of(const grid *d, double bytes) {
    const double h = bytes / (double)d->g->y_top * ROWS * 8;
    return h < ROWS * 8 ? (size_t)(h + 0.5) : (size_t)ROWS * 8;
}

/// What a series takes at a value between two of its points; below 0: outside of them.
static double between(const grid *d, const tide_sweep_series *series, double value) {
    const tide_sweep_point *before = NULL;
    for (size_t k = series->from; k < series->from + series->n; k++) {
        const tide_sweep_point *p = &d->s->points[k];
        if (p->error != NULL) continue;
        if ((double)p->value >= value) {
            if (before == NULL) return -1;
            const double part = (value - (double)before->value) / (double)(p->value - before->value);
            const double low = (double)tide__sweep_height(d->s, before);
            return low + part * ((double)tide__sweep_height(d->s, p) - low);
        }
        before = p;
    }
    return -1;
}

static void set(grid *d, size_t row, size_t column, unsigned char what) {
    d->cells[row * d->n_columns + column] = what;
}

static void draw_area(grid *d, const tide_sweep_series *series) {
    for (size_t c = 0; c < d->n_columns; c++) {
        const double bytes = between(d, series, value_at(d, c));
        const size_t height = bytes >= 0 ? height_of(d, bytes) : 0;
        for (size_t row = 0; row < ROWS && row * 8 < height; row++)
            set(d, row, c, (unsigned char)(height - row * 8 < 8 ? height - row * 8 : 8));
    }
}

static char letter_of(size_t i) { return (char)('a' + i % 26); }

static void draw_letters(grid *d, const tide_sweep_series *series, char letter) {
    for (size_t c = 0; c < d->n_columns; c++) {
        const double bytes = between(d, series, value_at(d, c));
        if (bytes < 0) continue;
        const size_t height = height_of(d, bytes), row = height > 0 ? (height - 1) / 8 : 0;
        unsigned char *cell = &d->cells[row * d->n_columns + c];
        *cell = *cell == 0 || *cell == '-' ? (unsigned char)letter : '*'; // several lie there
    }
}

/// Points that stand alone, and all of them where the curve between is thin.
static void draw_points(grid *d, const tide_sweep_series *series, char letter) {
    for (size_t k = series->from; k < series->from + series->n; k++) {
        const tide_sweep_point *p = &d->s->points[k];
        if (p->error != NULL) continue;
        const size_t height = height_of(d, (double)tide__sweep_height(d->s, p)), c = column_of(d, p->value);
        if (letter != '\0') {
            unsigned char *cell = &d->cells[(height > 0 ? (height - 1) / 8 : 0) * d->n_columns + c];
            if (*cell == 0) *cell = (unsigned char)letter;
            continue;
        }
        for (size_t row = 0; row < ROWS && row * 8 < height; row++) {
            if (d->cells[row * d->n_columns + c] == 0)
                set(d, row, c, (unsigned char)(height - row * 8 < 8 ? height - row * 8 : 8));
        }
    }
}

/// The row of a budget; ROWS: it is not in the picture.
static size_t row_of(const grid *d, uint64_t bytes) {
    if (!tide__sweep_shows(d->g, bytes) || bytes > d->g->y_top) return ROWS;
    const size_t height = height_of(d, (double)bytes);
    return height > 0 ? (height - 1) / 8 : 0;
}

static bool is_mine(const grid *d, const tide_sweep_answer *a) {
    return a->series >= d->g->from && a->series < d->g->from + d->g->n;
}

static void draw_budgets(grid *d) {
    for (size_t i = 0; i < d->s->n_answers; i++) {
        const size_t row = is_mine(d, &d->s->answers[i]) ? row_of(d, d->s->answers[i].budget_bytes) : ROWS;
        for (size_t c = 0; row < ROWS && c < d->n_columns; c++) {
            unsigned char *cell = &d->cells[row * d->n_columns + c];
            if (*cell <= 8) *cell = '-';
        }
    }
}

// ---- printing ----

static void print_cell(const grid *d, unsigned char what, tide_text *out) {
    static const char *const eighths[] = {" ",
                                          "\xE2\x96\x81",
                                          "\xE2\x96\x82",
                                          "\xE2\x96\x83",
                                          "\xE2\x96\x84",
                                          "\xE2\x96\x85",
                                          "\xE2\x96\x86",
                                          "\xE2\x96\x87",
                                          "\xE2\x96\x88"};
    if (what > 8) {
        if (what == '-' && !d->ascii)
            tide_text_add(out, "\xE2\x94\x80");
        else
            tide_text_addf(out, "%c", what);
        return;
    }
    if (d->ascii)
        tide_text_add(out, what >= 4 ? "#" : what > 0 ? "." : " ");
    else
        tide_text_add(out, eighths[what]);
}

/// What stands left of a row: a budget, or the height at its upper edge where that is of use.
static void label_of(const grid *d, size_t row, char *buf, size_t buf_bytes) {
    buf[0] = '\0';
    for (size_t i = 0; i < d->s->n_answers; i++) {
        const tide_sweep_answer *a = &d->s->answers[i];
        if (is_mine(d, a) && row_of(d, a->budget_bytes) == row) tide__sweep_bytes(a->budget_bytes, buf, buf_bytes);
    }
    if (buf[0] != '\0') return;
    if (row == ROWS - 1) tide_format_bytes(d->g->y_top, buf, buf_bytes);
    if (row == ROWS / 2 - 1) tide_format_bytes(d->g->y_top / 2, buf, buf_bytes);
}

static void print_rows(const grid *d, tide_text *out) {
    for (size_t row = ROWS; row-- > 0;) {
        char label[24];
        label_of(d, row, label, sizeof label);
        tide_text_addf(out, "%*s %s", GUTTER - 2, label, d->ascii ? "|" : "\xE2\x94\x82");
        size_t end = d->n_columns;
        while (end > 0 && d->cells[row * d->n_columns + end - 1] == 0) end--;
        for (size_t c = 0; c < end; c++) print_cell(d, d->cells[row * d->n_columns + c], out);
        tide_text_add(out, "\n");
    }
    tide_text_addf(out, "%*s %s", GUTTER - 2, "0", d->ascii ? "+" : "\xE2\x94\x94");
    for (size_t c = 0; c < d->n_columns; c++) tide_text_add(out, d->ascii ? "-" : "\xE2\x94\x80");
    tide_text_add(out, "\n");
}

/// `text` into the line from `at` on, as far as there is room and nothing stands there.
static bool put(char *line, size_t n, size_t at, const char *text) {
    const size_t len = strlen(text);
    if (at + len > n) at = n > len ? n - len : 0;
    for (size_t i = at > 0 ? at - 1 : 0; i < at + len + 1 && i < n; i++) {
        if (line[i] != ' ') return false;
    }
    memcpy(line + at, text, len < n - at ? len : n - at);
    return true;
}

/// Marks of the answers, then the ends of the axis and its name.
static void print_axis(const grid *d, tide_text *out) {
    const size_t n = d->n_columns;
    char *line = tide_host_alloc(n + 1), text[64];
    if (line == NULL) {
        out->failed = true;
        return;
    }
    bool any = false;
    memset(line, ' ', n);
    for (size_t i = 0; i < d->s->n_answers; i++) {
        const tide_sweep_answer *a = &d->s->answers[i];
        if (!is_mine(d, a) || a->none_fits || a->value < d->g->x_lo) continue;
        const size_t at = column_of(d, a->value);
        const size_t len = (size_t)snprintf(text, sizeof text, "^%" PRIu64, a->value);
        if (at + len <= n) {
            any |= put(line, n, at, text);
            continue;
        }
        snprintf(text, sizeof text, "%" PRIu64 "^", a->value);
        any |= put(line, n, at + 1 > len ? at + 1 - len : 0, text);
    }
    size_t end = n;
    while (end > 0 && line[end - 1] == ' ') end--;
    if (any) tide_text_addf(out, "%*s%.*s\n", GUTTER, "", (int)end, line);
    line[n] = '\0';
    memset(line, ' ', n);
    snprintf(text, sizeof text, "%" PRIu64, d->g->x_lo);
    (void)put(line, n, 0, text);
    snprintf(text, sizeof text, "%" PRIu64, d->g->x_hi);
    (void)put(line, n, n, text);
    tide_text_addf(out, "%*s%s ", GUTTER, "", line);
    tide_utf8_add_clean(out, d->s->extent);
    tide_text_add(out, "\n");
    tide_host_free(line);
}

static void print_legend(const grid *d, tide_text *out) {
    for (size_t i = 0; i < d->g->n && d->g->n > 1; i++) {
        tide_text label = {0};
        tide__sweep_label(d->s, d->g->from + i, &label);
        tide_text_addf(out, "%*s%c  ", GUTTER, "", letter_of(i));
        tide_utf8_add_clean(out, tide_text_str(&label));
        tide_text_add(out, "\n");
        if (label.failed) out->failed = true;
        tide_text_deinit(&label);
    }
}

void tide__sweep_plot(const tide_sweep *s, const tide__sweep_group *g, const tide_sweep_paper *paper, tide_text *out) {
    unsigned width = paper->width != 0 ? paper->width : 80;
    if (width < MIN_WIDTH) width = MIN_WIDTH;
    if (width > MAX_WIDTH) width = MAX_WIDTH;
    const size_t name = strlen(s->extent) < 12 ? strlen(s->extent) : 12; // behind the axis
    grid d = {.n_columns = width - GUTTER - name - 1, .s = s, .g = g, .ascii = paper->ascii};
    d.cells = tide_host_calloc(ROWS * d.n_columns, 1);
    if (d.cells == NULL) {
        out->failed = true;
        return;
    }
    for (size_t i = 0; i < g->n; i++) {
        const tide_sweep_series *series = &s->series[g->from + i];
        if (g->n == 1)
            draw_area(&d, series);
        else
            draw_letters(&d, series, letter_of(i));
        draw_points(&d, series, g->n == 1 ? '\0' : letter_of(i));
    }
    draw_budgets(&d);
    tide_utf8_add_clean(out, tide_sweep_model_name(s, s->series[g->from].model));
    tide_text_addf(out, ": %s by ", tide__sweep_what(s));
    tide_utf8_add_clean(out, s->extent);
    tide_text_add(out, "\n");
    print_rows(&d, out);
    print_axis(&d, out);
    print_legend(&d, out);
    tide_host_free(d.cells);
}
