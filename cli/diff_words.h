// SPDX-License-Identifier: MIT
//
// diff_words: what text, Markdown and JSON of a comparison share.
#ifndef TIDE_CLI_DIFF_WORDS_H
#define TIDE_CLI_DIFF_WORDS_H

#include "cli/diff_view.h"

/// "+20.00 KiB (+39.2 %)", "-512 B", "0 B"
const char *cli_diff_change(uint64_t a, uint64_t b, bool percent, char *buf, size_t buf_bytes);
uint64_t cli_diff_abs(uint64_t a, uint64_t b);
/// "added", "resized, moved", "unchanged"; of two moments of one "at A alone", "at B alone".
const char *cli_diff_what(const cli_diff_view *v, const tide_diff_row *r, char *buf, size_t buf_bytes);
/// "3 added, 2 removed, …"
const char *cli_diff_counts(const cli_diff_view *v, char *buf, size_t buf_bytes);
/// "at its peak, in conv1", "2.5 ms from the begin, event 17"
const char *cli_diff_moment(const cli_diff_side *side, char *buf, size_t buf_bytes);
/// What runs at the moment; NULL: no name is known.
const char *cli_diff_step(const cli_diff_side *side);
/// An operator's name; what is no tensor's in brackets; "(no operator)" for none.
const char *cli_diff_key(const tide_diff_step *s, char *buf, size_t buf_bytes);
bool cli_diff_row_differs(const tide_diff_row *r);
size_t cli_diff_n_changed(const tide_diff_step *list, size_t n);

typedef struct cli_diff_rest {
    size_t n_changed;
    uint64_t a_bytes, b_bytes;
} cli_diff_rest;
cli_diff_rest cli_diff_sum(const tide_diff_step *list, size_t n);

enum { CLI_DIFF_MAX_FIGURES = 8 };
typedef struct cli_diff_figure {
    const char *key, *title;
    uint64_t a, b;
} cli_diff_figure;
/// Figures that both sides know. @return how many
size_t cli_diff_figures(const cli_diff_view *v, cli_diff_figure out[CLI_DIFF_MAX_FIGURES]);

#endif
