// SPDX-License-Identifier: MIT
//
// tui: the terminal view. State -> layout -> scene -> cells; one backend puts cells on a screen, one dumps them as
// text, one says them in lines (for screen readers and scripts).
#ifndef TIDE_TUI_TUI_H
#define TIDE_TUI_TUI_H

#include <stdio.h>

#include "analysis/subject.h"
#include "analysis/whatif.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tide_tui_glyph_tier {
    TIDE_TUI_GLYPHS_AUTO,
    TIDE_TUI_GLYPHS_BLOCK,
    TIDE_TUI_GLYPHS_BRAILLE,
    TIDE_TUI_GLYPHS_ASCII
} tide_tui_glyph_tier;
typedef enum tide_tui_colour_tier {
    TIDE_TUI_COLOUR_AUTO,
    TIDE_TUI_COLOUR_TRUE,
    TIDE_TUI_COLOUR_256,
    TIDE_TUI_COLOUR_16,
    TIDE_TUI_COLOUR_8,
    TIDE_TUI_COLOUR_MONO
} tide_tui_colour_tier;

/// What is looked at, and with what. Subjects are the caller's until the call returns; the view may make others.
typedef struct tide_tui_session {
    tide_subject *a, *b;              ///< b NULL: none
    tide_retable retable;             ///< of A's model, for what-if; NULL: there is none
    tide_retable_batch retable_batch; ///< the same
    tide_retable_extents retable_extents;
    tide_retable_in_place retable_in_place;
    void *retable_ctx;
    tide_strategy_options strategy_options;
    uint64_t capacity_bytes; ///< 0: none
    /// A file as a second subject (":compare FILE"); NULL: not to be had.
    tide_status (*open)(void *ctx, const char *path, tide_subject **out, tide_error *err);
    /// All of the subjects as a page, by the ending of `path` (.html): what reports make; NULL: there is none.
    tide_status (*export_view)(void *ctx, tide_subject *a, tide_subject *b, const char *path, tide_error *err);
    void *ctx;
    const char *batch_prefix; ///< "tidemark tui FILE": what :batch begins with
} tide_tui_session;

typedef struct tide_tui_options {
    tide_tui_glyph_tier glyphs;  ///< AUTO: block elements where the locale is UTF-8
    tide_tui_colour_tier colour; ///< AUTO: what the terminal has; NO_COLOR and TERM=dumb: mono
    bool no_mouse;
    bool is_data;     ///< what is asked for is data of a pane: weights count until they are folded by a command
    bool opens_alive; ///< the list of rows opens with what is alive at the peak, by size, until rows are asked for
    bool follow;      ///< of a trace that is being recorded
    int preset;       ///< 1 … 6; 0: the saved one or the first
    const char *state_file; ///< where view, filters and marks are kept; NULL: nowhere
    bool no_copy_file;      ///< what is copied goes to the terminal alone, and into no file
    const char *commands;   ///< lines to be done first, as behind ':' ("\n" between); NULL: none
    bool test_mode;         ///< the bottom line ends in "seq=N idle|busy": tests wait for states
} tide_tui_options;

/// One frame of `width` x `height` cells as text (no escapes), lines ending in '\n': `tui --once`. Every query is run
/// before it returns.
tide_status tide_tui_once(const tide_tui_session *session, const tide_tui_options *opt, int width, int height,
                          tide_text *out, tide_error *err) TIDE_NODISCARD;
/// Interactively on the terminal until the user quits. TIDE_ERR_INVALID when there is no usable terminal.
tide_status tide_tui_run(const tide_tui_session *session, const tide_tui_options *opt, tide_error *err) TIDE_NODISCARD;
/// In lines: every command read from `in` (the names behind ':' and the keys), every change printed as one line or
/// a plain table. No alternate screen, nothing drawn in place, no box drawing, no braille.
tide_status tide_tui_linear(const tide_tui_session *session, const tide_tui_options *opt, FILE *in, FILE *out,
                            tide_error *err) TIDE_NODISCARD;
/// Keys and mouse of `script` (tui/script.c), a frame after each "dump" line: what tests and documents use.
tide_status tide_tui_script(const tide_tui_session *session, const tide_tui_options *opt, int width, int height,
                            const char *script, tide_text *out, tide_error *err) TIDE_NODISCARD;
/// The table of keys and commands as plain text (`--keys`) or as the KEYS section of the man page (troff).
void tide_tui_print_keys(bool troff, tide_text *out);
/// What a pane shows as `tidemark.tui.<pane>` document or CSV, for `--pane NAME --json|--csv`.
/// A pane with several tables has all in its document; as CSV the first, or the one behind a dot: "pools.leaks"
/// (tui/sheet.h). TIDE_ERR_INVALID for a pane or command that is none, TIDE_ERR_NOT_FOUND when it has nothing to show.
tide_status tide_tui_pane_json(const tide_tui_session *session, const tide_tui_options *opt, const char *pane,
                               tide_text *out, tide_error *err) TIDE_NODISCARD;
tide_status tide_tui_pane_csv(const tide_tui_session *session, const tide_tui_options *opt, const char *pane,
                              tide_text *out, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
