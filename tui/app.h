// SPDX-License-Identifier: MIT
//
// app: the view without a terminal: state, query cache, scene and grid of one session, and the effects of actions
// (files, clipboard, plans, SQL). The terminal, --once, scripts and the linear mode drive it.
//
//     key, mouse, line -> app (action, effect) -> frame (layout, scene, cells) -> terminal | text | sentence
#ifndef TIDE_TUI_APP_H
#define TIDE_TUI_APP_H

#include "tui/actions.h"
#include "tui/draw/draw.h"
#include "tui/scene/worker.h"
#include "tui/term/messages.h"
#include "tui/tui.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_tui_app {
    tide_tui_state st;
    tide_tui_layout layout;
    tide_tui_scene scene; ///< of the last frame
    tide_tui_grid grid;   ///< of the last frame
    const tide_tui_glyphs *glyphs;

    // ---- the rest is the app's own ----
    const tide_tui_session *session; ///< borrowed
    const tide_tui_options *opt;     ///< borrowed; may be NULL
    tide_tui_query_cache *cache;
    tide_tui_worker *worker; ///< NULL: every query is run at once
    tide_subject *own_b;     ///< opened or planned by the app; NULL: st.b is the session's, or A, or there is none
    bool own_b_is_whatif;
    const tide_subject *worker_b;                                ///< that the worker has a copy of
    uint64_t n_asked;                                            ///< requests for plans, files and SQL so far
    uint64_t plan_key, open_key, sql_key, worst_key;             ///< of the pending request; 0: none
    tide_tui_window seen_axis;                                   ///< of a recording, when it was last shown
    bool has_grown;                                              ///< since then
    void (*to_terminal)(void *ctx, const char *bytes, size_t n); ///< for the clipboard; NULL: there is no terminal
    void *terminal;
    tide_tui_messages *messages; ///< keeps what is logged, borrowed; NULL: log lines are not kept
    uint64_t logged_seq;         ///< the action, by st.seq,
    size_t n_logged;             ///< after which so many lines were logged that the message tells of
    uint64_t n_frames;
} tide_tui_app;

/// Glyphs are chosen by the options and the locale. `with_worker`: long queries run on a worker thread; else at once.
/// The options' saved state, preset and commands are in effect afterwards. TIDE_ERR_INVALID for a size that cannot be
/// drawn, and for a command that is not understood (only with opt->commands).
tide_status tide_tui_app_open(const tide_tui_session *session, const tide_tui_options *opt, int width, int height,
                              bool with_worker, tide_tui_app **out, tide_error *err) TIDE_NODISCARD;
/// Takes NULL. Nothing is saved: tide_tui_app_save.
void tide_tui_app_close(tide_tui_app *app);

/// Layout, scene and cells, now: `scene` and `grid` are new. TIDE_ERR_NOMEM.
tide_status tide_tui_app_frame(tide_tui_app *app, tide_error *err) TIDE_NODISCARD;
/// Layout and scene alone: what the next action sees. TIDE_ERR_NOMEM.
tide_status tide_tui_app_look(tide_tui_app *app, tide_error *err) TIDE_NODISCARD;
/// Another size; the next frame has it.
tide_status tide_tui_app_resize(tide_tui_app *app, int width, int height, tide_error *err) TIDE_NODISCARD;

/// One action with its effects. @return TIDE_TUI_… flags. An error goes into st.message.
unsigned tide_tui_app_key(tide_tui_app *app, uint32_t key);
unsigned tide_tui_app_point(tide_tui_app *app, const tide_tui_mouse *mouse);
unsigned tide_tui_app_line(tide_tui_app *app, const char *line);

/// Read what was committed to a trace that is being recorded. True: the next frame differs.
bool tide_tui_app_refresh(tide_tui_app *app);
/// Whether requests are pending.
bool tide_tui_app_is_busy(tide_tui_app *app);
/// Whether the worker has results or progress that the last frame did not show.
bool tide_tui_app_has_news(tide_tui_app *app);
/// Write the state to the options' file, if there is one. The error is in `err`.
tide_status tide_tui_app_save(const tide_tui_app *app, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
