// SPDX-License-Identifier: MIT
//
// grid: see grid.h.
#include "planner/grid.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/base/utf8.h"

/// Takes `cell`; NULL: there was no memory for it.
static void add_cell(tide_grid *g, char *cell) {
    if (cell == NULL || tide_host_grow(&g->cells, &g->cap, g->n + 1, sizeof *g->cells) != TIDE_OK) {
        tide_host_free(cell);
        g->failed = true;
        return;
    }
    g->cells[g->n++] = cell;
}

void tide__grid_cell(tide_grid *g, const char *fmt, ...) {
    if (g->failed) return;
    va_list ap;
    va_start(ap, fmt);
    char buf[128];
    const int n = vsnprintf(buf, sizeof buf, fmt, ap);
    va_end(ap);
    add_cell(g, n < 0 || (size_t)n >= sizeof buf ? NULL : tide_host_strdup(buf));
}

void tide__grid_name(tide_grid *g, const char *name) {
    if (g->failed) return;
    tide_text cell = {0};
    tide__add_name(&cell, name);
    add_cell(g, cell.failed ? NULL : tide_host_strdup(tide_text_str(&cell)));
    tide_text_deinit(&cell);
}

void tide__add_name(tide_text *out, const char *name) { tide_utf8_add_clean(out, name); }

/// Characters on screen: UTF-8 continuation bytes take no place.
static size_t width_of(const char *text) {
    size_t n = 0;
    for (; *text != '\0'; text++) n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

static void add_blanks(tide_text *out, size_t n) {
    while (n-- > 0) tide_text_add_n(out, " ", 1);
}

static void print_row(const tide_grid *g, size_t first, const size_t *widths, size_t n_columns, tide_text *out) {
    size_t owed = 0; // blanks not yet printed, so that none end a line
    for (size_t k = 0; k < n_columns; k++) {
        const char *cell = g->cells[first + k];
        const size_t pad = widths[k] - width_of(cell);
        if (g->columns[k] == 'r') owed += pad;
        if (cell[0] != '\0') {
            add_blanks(out, owed);
            owed = 0;
            tide_text_add(out, cell);
        }
        owed += (g->columns[k] == 'l' ? pad : 0) + 2;
    }
    tide_text_add(out, "\n");
}

void tide__grid_finish(tide_grid *g, tide_text *out) {
    const size_t n_columns = strlen(g->columns);
    size_t *widths = tide_host_calloc(n_columns, sizeof *widths);
    if (widths == NULL) g->failed = true;
    for (size_t i = 0; i < g->n && !g->failed; i++) {
        const size_t w = width_of(g->cells[i]);
        if (w > widths[i % n_columns]) widths[i % n_columns] = w;
    }
    for (size_t i = 0; i + n_columns <= g->n && !g->failed; i += n_columns) print_row(g, i, widths, n_columns, out);
    if (g->failed) out->failed = true;
    for (size_t i = 0; i < g->n; i++) tide_host_free(g->cells[i]);
    tide_host_free(g->cells);
    tide_host_free(widths);
    *g = (tide_grid){0};
}

char *tide__format_fixed(double value, int decimals, char *buf, size_t buf_bytes) {
    uint64_t scale = 1;
    for (int i = 0; i < decimals; i++) scale *= 10;
    const double scaled = fabs(value) * (double)scale;
    const uint64_t whole = scaled < 1e18 ? (uint64_t)(scaled + 0.5) : (uint64_t)1e18;
    snprintf(buf, buf_bytes, "%s%" PRIu64 "%s", value < 0 && whole > 0 ? "-" : "", whole / scale,
             decimals > 0 ? "." : "");
    const size_t len = strlen(buf);
    if (decimals > 0) snprintf(buf + len, buf_bytes - len, "%0*" PRIu64, decimals, whole % scale);
    return buf;
}

char *tide__format_kb(uint64_t bytes, char *buf, size_t buf_bytes) {
    uint64_t whole = bytes / 1024, hundredths = (bytes % 1024 * 100 + 512) / 1024;
    if (hundredths == 100) {
        whole++;
        hundredths = 0;
    }
    snprintf(buf, buf_bytes, "%" PRIu64 ".%02" PRIu64, whole, hundredths);
    return buf;
}
