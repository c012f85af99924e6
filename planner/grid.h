// SPDX-License-Identifier: MIT
//
// grid: text in columns that are as wide as their widest cell, and decimals that do not depend on the locale. For the
// planner's tables and reports; private to the planner.
#ifndef TIDE_PLANNER_GRID_H
#define TIDE_PLANNER_GRID_H

#include "core/base/text.h"

typedef struct tide_grid {
    const char *columns; ///< one letter a column: 'l' left, 'r' right
    char **cells;        ///< [n], owned, row by row
    size_t n, cap;
    bool failed; ///< a cell ran out of memory
} tide_grid;

/// Append the next cell: numbers and words of ours, at most 127 bytes.
void tide__grid_cell(tide_grid *g, const char *fmt, ...) TIDE_PRINTF(2, 3);
/// Append a name from a file, of any length, as tide__add_name prints it.
void tide__grid_name(tide_grid *g, const char *name);
/// Print all rows, two blanks between columns, no blanks at line ends; frees the grid.
void tide__grid_finish(tide_grid *g, tide_text *out);

/// Append a name from a file as it may be shown: what would steer the terminal or is no UTF-8 becomes U+FFFD.
void tide__add_name(tide_text *out, const char *name);

/// `value` with `decimals` (0 … 9) places and a point, whatever the locale: into `buf`, returned. 32 bytes suffice.
char *tide__format_fixed(double value, int decimals, char *buf, size_t buf_bytes);
/// Bytes as KiB with two places, exact for any size; no unit. 32 bytes suffice.
char *tide__format_kb(uint64_t bytes, char *buf, size_t buf_bytes);

#endif
