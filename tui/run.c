// SPDX-License-Identifier: MIT
//
// The loop: wait for keys, for the worker, for the next refresh of a recording; act; draw when something has changed.
// See tui.h, app.h, terminal.h.
//
//     wait -> input: each key acts on the scene as it is then; a frame when there is no more of it
//          -> worker: a frame when there is news, at most 30 in a second
//          -> clock: a recording is looked at 5 times a second
#include "core/base/log.h"
#include "tui/app_internal.h"
#include "tui/term/terminal.h"

enum { LOOK_EVERY_MS = 200, NEWS_EVERY_MS = 33, MAX_EVENTS_A_FRAME = 64, NS_PER_MS = 1000000 };

typedef struct loop {
    tide_tui_app *app;
    tide_tui_terminal *terminal;
    bool is_dirty, repaints, is_stale; ///< stale: the scene is older than the state
    bool leaves, is_gone;
    uint64_t drew_ms, looked_ms;
} loop;

static uint64_t now_ms(void) { return tide_now_ns() / NS_PER_MS; }

static void to_terminal(void *ctx, const char *bytes, size_t n) { tide_tui_terminal_write(ctx, bytes, n); }

// ---- frames ----

static tide_status draw(loop *l, tide_error *err) {
    int width, height;
    tide_tui_terminal_size(l->terminal, &width, &height);
    tide_tui_app *app = l->app;
    if (width != app->grid.width || height != app->grid.height) TIDE_TRY(tide_tui_app_resize(app, width, height, err));
    TIDE_TRY(tide_tui_app_frame(app, err));
    TIDE_TRY(tide_tui_terminal_show(l->terminal, &app->grid, l->repaints, err));
    tide_tui_terminal_set_mouse(l->terminal, app->st.mouse);
    l->is_dirty = l->repaints = l->is_stale = false;
    l->drew_ms = now_ms();
    return TIDE_OK;
}

// ---- input ----

/// Pasted text goes into a prompt, up to the end of a line. Without a prompt it is ignored: its characters are no keys.
static unsigned paste(tide_tui_app *app, uint32_t character) {
    if (app->st.prompt == TIDE_TUI_PROMPT_NONE || character == TIDE_TUI_KEY_ENTER || character < 0x20) return 0;
    return tide_tui_app_key(app, character);
}

static unsigned act(loop *l, const tide_tui_input *in) {
    switch (in->kind) {
    case TIDE_TUI_INPUT_KEY:
        return tide_tui_app_key(l->app, in->key);
    case TIDE_TUI_INPUT_PASTED:
        return paste(l->app, in->key);
    case TIDE_TUI_INPUT_MOUSE:
        return l->app->st.mouse ? tide_tui_app_point(l->app, &in->mouse) : 0;
    case TIDE_TUI_INPUT_RESIZE:
        return TIDE_TUI_REDRAWN | TIDE_TUI_REPAINT;
    case TIDE_TUI_INPUT_NONE:
    case TIDE_TUI_INPUT_GONE:
        break;
    }
    return 0;
}

/// All input that has come, up to a limit per frame. Each key acts on the scene that the key before it has made.
static tide_status take_input(loop *l, tide_error *err) {
    for (int n = 0; n < MAX_EVENTS_A_FRAME && !l->leaves; n++) {
        const tide_tui_input in = tide_tui_terminal_next(l->terminal);
        if (in.kind == TIDE_TUI_INPUT_NONE) return TIDE_OK;
        if (l->is_stale && in.kind != TIDE_TUI_INPUT_RESIZE) TIDE_TRY(tide_tui_app_look(l->app, err));
        const unsigned flags = act(l, &in);
        l->is_stale = true;
        if (flags & (TIDE_TUI_REDRAWN | TIDE_TUI_REPAINT)) l->is_dirty = true;
        if (flags & TIDE_TUI_REPAINT) l->repaints = true;
        if (flags & TIDE_TUI_LEAVE) l->leaves = true;
    }
    return TIDE_OK;
}

// ---- waiting ----

static int until(uint64_t then_ms, uint64_t every_ms) {
    const uint64_t passed = now_ms() - then_ms;
    return passed >= every_ms ? 0 : (int)(every_ms - passed);
}

static int timeout_of(const loop *l, bool has_news) {
    const int frame = has_news ? until(l->drew_ms, NEWS_EVERY_MS) : -1;
    const int look = l->app->st.is_recording ? until(l->looked_ms, LOOK_EVERY_MS) : -1;
    if (frame < 0) return look;
    return look < 0 || frame < look ? frame : look;
}

static void look_at_recording(loop *l) {
    if (!l->app->st.is_recording || until(l->looked_ms, LOOK_EVERY_MS) > 0) return;
    if (tide_tui_app_refresh(l->app)) l->is_dirty = true;
    l->looked_ms = now_ms();
}

/// Wait once and handle what woke it; *has_news: the worker has something for a frame.
static tide_status wait_once(loop *l, bool *has_news, tide_error *err) {
    tide_tui_app *app = l->app;
    const int worker_fd = app->worker != NULL ? tide_tui_worker_wake_fd(app->worker) : -1;
    const unsigned woke = tide_tui_terminal_wait(l->terminal, worker_fd, timeout_of(l, *has_news));
    if (woke & TIDE_TUI_WOKE_GONE) l->is_gone = true;
    if (woke & TIDE_TUI_WOKE_SUSPEND) tide_tui_terminal_suspend(l->terminal);
    if (woke & (TIDE_TUI_WOKE_SUSPEND | TIDE_TUI_WOKE_RESUME)) l->is_dirty = l->repaints = true;
    if (woke & TIDE_TUI_WOKE_OTHER) tide_tui_worker_drain_wake(app->worker);
    if (woke & TIDE_TUI_WOKE_INPUT) TIDE_TRY(take_input(l, err));
    look_at_recording(l);
    *has_news = tide_tui_app_has_news(app) || tide_tui_messages_has_news(app->messages);
    if (*has_news && until(l->drew_ms, NEWS_EVERY_MS) == 0) l->is_dirty = true;
    return TIDE_OK;
}

static tide_status run(loop *l, tide_error *err) {
    bool has_news = false;
    l->is_dirty = l->repaints = true;
    l->looked_ms = now_ms();
    while (!l->leaves && !l->is_gone) {
        if (l->is_dirty) TIDE_TRY(draw(l, err));
        TIDE_TRY(wait_once(l, &has_news, err));
    }
    return l->is_gone ? TIDE_FAIL(err, TIDE_ERR_IO, "the terminal is gone") : TIDE_OK;
}

// ---- all of it ----

/// On the screen: colours decide which glyphs tell neighbours apart.
static tide_status run_on_screen(tide_tui_app *app, const tide_tui_options *opt, tide_error *err) {
    loop l = {.app = app};
    TIDE_TRY(tide_tui_terminal_open(opt, &l.terminal, err));
    const bool mono = tide_tui_terminal_tier(l.terminal) == TIDE_TUI_COLOUR_MONO;
    app->glyphs = tide_tui_glyphs_for(tide__app_screen_tier(opt), mono);
    app->to_terminal = to_terminal;
    app->terminal = l.terminal;
    const tide_status st = run(&l, err);
    app->to_terminal = NULL;
    tide_tui_terminal_close(l.terminal);
    return st;
}

static tide_status run_app(const tide_tui_session *session, const tide_tui_options *opt, int width, int height,
                           tide_tui_messages *messages, tide_error *err) {
    tide_tui_app *app;
    TIDE_TRY(tide_tui_app_open(session, opt, width, height, true, &app, err));
    app->messages = messages;
    const tide_status st = run_on_screen(app, opt, err);
    tide_error why = TIDE_ERROR_INIT;
    if (st == TIDE_OK && tide_tui_app_save(app, &why) != TIDE_OK)
        tide_log(TIDE_LOG_WARN, "the view is not kept for the next time: %s", why.msg);
    tide_tui_app_close(app);
    return st;
}

tide_status tide_tui_run(const tide_tui_session *session, const tide_tui_options *opt, tide_error *err) {
    TIDE_TRY(tide_tui_terminal_check(err));
    int width, height;
    tide_tui_terminal_ask_size(&width, &height);
    tide_tui_messages *messages = tide_tui_messages_take();
    const tide_status st = run_app(session, opt, width, height, messages, err);
    tide_tui_messages_give_back(messages);
    return st;
}
