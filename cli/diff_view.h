// SPDX-License-Identifier: MIT
//
// diff_view: a comparison as `tidemark diff` prints it: text, Markdown, JSON; the same figures in all three.
#ifndef TIDE_CLI_DIFF_VIEW_H
#define TIDE_CLI_DIFF_VIEW_H

#include "analysis/compare.h"

typedef struct cli_diff_side {
    const char *path;
    const tide_subject_facts *facts;
    tide_moment at;
    const char *asked; ///< how the moment was asked for; NULL: the peak
} cli_diff_side;

typedef struct cli_diff_view {
    cli_diff_side a, b;
    bool one_subject; ///< two moments of one
    const tide_diff *diff;
    size_t max_rows; ///< of each list; 0: all
} cli_diff_view;

/// Whether anything differs: an item, or a byte held.
bool cli_diff_differs(const tide_diff *d);
/// Each appends to `out` and ends with a newline. Lists of text and Markdown end with how much they leave out.
void cli_diff_text(const cli_diff_view *v, tide_text *out);
void cli_diff_markdown(const cli_diff_view *v, tide_text *out);
/// `tidemark.diff` (docs/schemas/diff.json), with every row whatever max_rows says.
void cli_diff_json(const cli_diff_view *v, tide_text *out);

#endif
