// SPDX-License-Identifier: MIT
//
// draw words: how the panes of text say moments, amounts and shares; and paper, on which a pane writes lines one after
// the other, of which the screen shows a part.
#ifndef TIDE_TUI_DRAW_WORDS_H
#define TIDE_TUI_DRAW_WORDS_H

#include "tui/draw.h"
#include "tui/keys.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    TIDE_TUI_WORD = 48,  ///< bytes that suffice for any of these
    TIDE_TUI_LINE = 512, ///< of one line of wrapped text
};

/// "step 12" or "1.5 ms" (after the begin of the axis).
char *tide_tui_when(const tide_subject_facts *f, int64_t t, char *buf, size_t buf_bytes);
/// "step 12 (conv1)" where the step at `t` is known.
char *tide_tui_when_named(const tide_subject_facts *f, int64_t t, char *buf, size_t buf_bytes);
/// "1.50 KiB"; "unknown".
char *tide_tui_bytes(uint64_t bytes, char *buf, size_t buf_bytes);
/// "1,536".
char *tide_tui_exact(uint64_t n, char *buf, size_t buf_bytes);
/// What b is more than a: "+1.50 KiB", "-20 B", "0 B".
char *tide_tui_change(uint64_t a, uint64_t b, char *buf, size_t buf_bytes);
/// "12.3 %"; "-" of nothing.
char *tide_tui_percent(uint64_t part, uint64_t whole, char *buf, size_t buf_bytes);
/// What `b` is more than `a`, in percent of a: "+12.3 %", "-4.0 %"; "" when a is nothing.
char *tide_tui_change_percent(uint64_t a, uint64_t b, char *buf, size_t buf_bytes);
/// "tensor" of a plan, "block" of a trace; with an s for another number than one.
const char *tide_tui_item_word(const tide_subject_facts *f, size_t n);
/// The step that runs at `t`; "" unknown.
const char *tide_tui_step_name(const tide_subject_facts *f, int64_t t);
/// Name of an item of the scene's A, "(unnamed)"; "item 7" while items are not loaded.
const char *tide_tui_item_name(const tide_tui_scene *s, uint32_t item, char *buf, size_t buf_bytes);
/// A name for people: what has none is "(unnamed)".
const char *tide_tui_named(const char *name);
/// The first key of an action, "" without one.
char *tide_tui_key_of(tide_tui_action action, char *buf, size_t buf_bytes);

/// Columns of [0, w) that `part` of `whole` takes; at least one for anything that is not nothing.
int tide_tui_share_of(uint64_t part, uint64_t whole, int w);

// ---- paper ----

typedef struct tide_tui_paper {
    const tide_tui_view *v;
    tide_tui_rect r; ///< h == 0: lines are counted only
    size_t top;      ///< first line that the screen shows
    size_t n;        ///< lines that were written; the one being written is not among them
} tide_tui_paper;

/// Row of the screen of the line being written; -1: not shown.
int tide_tui_paper_y(const tide_tui_paper *p);
/// Text at column x of the line being written. @return columns used
int tide_tui_paper_text(tide_tui_paper *p, int x, int w, const char *text, tide_tui_cut cut, tide_tui_role role);
/// Text whose right end is column x + w.
void tide_tui_paper_right(tide_tui_paper *p, int x, int w, const char *text, tide_tui_role role);
void tide_tui_paper_fill(tide_tui_paper *p, int x, int w, uint32_t glyph, tide_tui_role role);
/// The line is done.
void tide_tui_paper_next(tide_tui_paper *p);
/// A text as one or more lines from column x, broken at blanks; "\n" breaks too.
void tide_tui_paper_wrap(tide_tui_paper *p, int x, const char *text, tide_tui_role role);
/// Bytes of `text` that make a line of at most `w` columns, broken at the last blank that allows it. *skip: blanks or
/// the "\n" behind it.
size_t tide_tui_wrap_line(const tide_tui_view *v, int w, const char *text, size_t *skip);
/// How many lines tide_tui_paper_wrap makes of it.
size_t tide_tui_wrap_count(const tide_tui_view *v, int w, const char *text);

/// First line to show so that line `row` of `n` is on a screen of `h` lines, near the wish `top`.
size_t tide_tui_settle_top(size_t n, size_t row, size_t top, int h);

#ifdef __cplusplus
}
#endif
#endif
