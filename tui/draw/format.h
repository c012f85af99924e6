// SPDX-License-Identifier: MIT
//
// format: moments, amounts, shares and names as text, as all panes show them.
#ifndef TIDE_TUI_DRAW_FORMAT_H
#define TIDE_TUI_DRAW_FORMAT_H

#include "tui/scene/scene.h"
#include "tui/state/keys.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    TIDE_TUI_WORD = 48, ///< bytes that suffice for any of these
};

/// "step 12" or "1.5 ms" (after the begin of the axis).
char *tide_tui_when(const tide_subject_facts *f, int64_t t, char *buf, size_t buf_bytes);
/// "step 12 (conv1)" where the step at `t` is known.
char *tide_tui_when_named(const tide_subject_facts *f, int64_t t, char *buf, size_t buf_bytes);
/// The same; outside of steps, of a run that has some, "1.5 ms (before any step)".
char *tide_tui_when_in_step(const tide_subject_facts *f, int64_t t, char *buf, size_t buf_bytes);
/// "1.50 KiB"; "unknown".
char *tide_tui_bytes(uint64_t bytes, char *buf, size_t buf_bytes);
/// "1,536".
char *tide_tui_exact(uint64_t n, char *buf, size_t buf_bytes);
/// What b is more than a: "+1.50 KiB", "-20 B", "0 B".
char *tide_tui_change(uint64_t a, uint64_t b, char *buf, size_t buf_bytes);
/// "12.3 %"; "-" when `whole` is 0.
char *tide_tui_percent(uint64_t part, uint64_t whole, char *buf, size_t buf_bytes);
/// What `b` is more than `a`, in percent of a: "+12.3 %", "-4.0 %"; "" when a is nothing.
char *tide_tui_change_percent(uint64_t a, uint64_t b, char *buf, size_t buf_bytes);
/// "tensor" of a plan, "block" of a trace; with an s for another number than one.
const char *tide_tui_item_word(const tide_subject_facts *f, size_t n);
/// The step that runs at `t`; "" unknown.
const char *tide_tui_step_name(const tide_subject_facts *f, int64_t t);
/// Name of an item of the scene's A, "(unnamed)"; "item 7" while items are not loaded.
const char *tide_tui_item_name(const tide_tui_scene *s, uint32_t item, char *buf, size_t buf_bytes);
/// The name, or "(unnamed)".
const char *tide_tui_named(const char *name);
/// The name of a pool, with its kind where another one has that name: one allocator can serve several kinds.
void tide_tui_say_pool(const tide_tui_scene *s, size_t row, char *buf, size_t buf_bytes);
/// The first key of an action, "" without one.
char *tide_tui_key_of(tide_tui_action action, char *buf, size_t buf_bytes);

/// Columns of [0, w) that `part` of `whole` takes; at least one for anything that is not nothing.
int tide_tui_share_of(uint64_t part, uint64_t whole, int w);

#ifdef __cplusplus
}
#endif
#endif
