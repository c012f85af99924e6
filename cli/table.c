// SPDX-License-Identifier: MIT
//
// Tables of text. See table.h.
#include "cli/table.h"

#include <inttypes.h>
#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/base/host_alloc.h"
#include "core/base/utf8.h"

enum { GAP = 2, MIN_NAME = 8 };

void cli_table_add(cli_table *t, const char *text) {
    if (t->failed) return; // a cell that is missing would shift all behind it
    char *cell = tide_host_alloc(strlen(text) + 1);
    if (cell == NULL || tide_host_grow(&t->cells, &t->cap, t->n + 1, sizeof *t->cells) != TIDE_OK) {
        tide_host_free(cell);
        t->failed = true;
        return;
    }
    t->cells[t->n++] = cli_clean(text, cell, strlen(text) + 1);
}

void cli_table_addf(cli_table *t, const char *fmt, ...) {
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    cli_table_add(t, text);
}

void cli_table_add_bytes(cli_table *t, uint64_t bytes) {
    char text[24];
    cli_table_add(t, tide_format_bytes(bytes, text, sizeof text));
}

void cli_table_add_ns(cli_table *t, uint64_t ns) {
    char text[24];
    cli_table_add(t, tide_format_ns(ns, "us", text, sizeof text));
}

size_t cli_terminal_width(void) {
    const char *columns = getenv("COLUMNS");
    struct winsize size;
    char *end;
    if (columns != NULL) {
        const unsigned long n = strtoul(columns, &end, 10);
        if (end != columns && *end == '\0' && n < 10000) return n;
    }
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

static size_t width_of(const char *text) {
    size_t n = 0;
    uint32_t cp;
    for (size_t step; (step = tide_utf8_decode(text, &cp)) > 0; text += step) n++;
    return n;
}

static void measure(const cli_table *t, size_t *widths) {
    for (size_t c = 0; c < t->n_columns; c++) widths[c] = width_of(t->columns[c].head);
    for (size_t i = 0; i < t->n; i++) {
        const size_t w = width_of(t->cells[i]);
        if (w > widths[i % t->n_columns]) widths[i % t->n_columns] = w;
    }
}

/// Take from the widest name, one column after another, until a line fits or no name can give any more.
static void fit(const cli_table *t, size_t *widths, size_t indent) {
    const size_t limit = cli_terminal_width();
    size_t line = indent + GAP * (t->n_columns - 1);
    for (size_t c = 0; c < t->n_columns; c++) line += widths[c];
    for (; limit > 0 && line > limit; line--) {
        size_t widest = t->n_columns;
        for (size_t c = 0; c < t->n_columns; c++) {
            if (!t->columns[c].may_be_cut || widths[c] <= MIN_NAME) continue;
            if (widest == t->n_columns || widths[c] > widths[widest]) widest = c;
        }
        if (widest == t->n_columns) return;
        widths[widest]--;
    }
}

/// `text` in `width` columns; its last character that fits gives way to a mark when there is more.
static void print_cell(const char *text, const cli_column *column, size_t width, bool is_last, FILE *to) {
    const size_t full = width_of(text);
    const bool cut = full > width;
    const int pad = cut ? 0 : (int)(width - full);
    if (column->right) fprintf(to, "%*s", pad, "");
    size_t bytes = strlen(text);
    if (cut) {
        uint32_t cp;
        bytes = 0;
        for (size_t i = 0; i + 1 < width; i++) bytes += tide_utf8_decode(text + bytes, &cp);
    }
    fwrite(text, 1, bytes, to);
    if (cut) fputs(strcmp(nl_langinfo(CODESET), "UTF-8") == 0 ? "…" : "~", to);
    if (!column->right && !is_last) fprintf(to, "%*s", pad, "");
}

static void print_row(const cli_table *t, char *const *cells, const size_t *widths, const char *indent, FILE *to) {
    size_t last = t->n_columns - 1;
    while (cells != NULL && last > 0 && cells[last][0] == '\0') last--; // no blanks at the end of a line
    fputs(indent, to);
    for (size_t c = 0; c <= last; c++) {
        if (c > 0) fprintf(to, "%*s", GAP, "");
        print_cell(cells != NULL ? cells[c] : t->columns[c].head, &t->columns[c], widths[c], c == last, to);
    }
    fputc('\n', to);
}

void cli_table_print(cli_table *t, const char *indent, FILE *to) {
    size_t widths[16];
    measure(t, widths);
    fit(t, widths, strlen(indent));
    print_row(t, NULL, widths, indent, to);
    for (size_t row = 0; row + t->n_columns <= t->n; row += t->n_columns)
        print_row(t, t->cells + row, widths, indent, to);
    if (t->failed) cli_cut(to);
    for (size_t i = 0; i < t->n; i++) tide_host_free(t->cells[i]);
    tide_host_free(t->cells);
    *t = (cli_table){.columns = t->columns, .n_columns = t->n_columns};
}
