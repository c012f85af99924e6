// SPDX-License-Identifier: MIT
//
// Frames of the view: layout, scene, cells, each made of the one before; and the state that is kept on leaving. See
// app.h, app_internal.h.
#include <langinfo.h>
#include <stdio.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "tui/app_internal.h"
#include "tui/draw/draw.h"
#include "tui/draw/panes.h"
#include "tui/state/state_file.h"

enum { MAX_WIDTH = 2000, MAX_HEIGHT = 2000 };

tide_status tide__app_check_size(int width, int height, tide_error *err) {
    if (width >= 1 && height >= 1 && width <= MAX_WIDTH && height <= MAX_HEIGHT) return TIDE_OK;
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_INVALID, "a frame of %dx%d cells cannot be drawn", width, height);
    tide_error_hint(err, "give a size between 1x1 and %dx%d, for example 120x40", MAX_WIDTH, MAX_HEIGHT);
    return st;
}

tide_tui_glyph_tier tide__app_glyph_tier(const tide_tui_options *opt) {
    const tide_tui_glyph_tier tier = opt != NULL ? opt->glyphs : TIDE_TUI_GLYPHS_AUTO;
    if (tier != TIDE_TUI_GLYPHS_AUTO) return tier;
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0 ? TIDE_TUI_GLYPHS_BLOCK : TIDE_TUI_GLYPHS_ASCII;
}

tide_tui_glyph_tier tide__app_screen_tier(const tide_tui_options *opt) {
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0 ? tide__app_glyph_tier(opt) : TIDE_TUI_GLYPHS_ASCII;
}

static tide_status renew_worker(tide_tui_app *app, tide_error *err) {
    const tide_subject *b = app->st.b != app->st.a ? app->st.b : NULL;
    if (app->worker == NULL || app->worker_b == b) return TIDE_OK;
    const bool was_planning = app->plan_key != 0;
    tide__query_drop_pending(app->cache);
    app->plan_key = app->open_key = app->sql_key = app->worst_key = 0;
    TIDE_TRY(tide_tui_worker_set_subjects(app->worker, app->st.a, b, err));
    app->worker_b = b;
    if (was_planning) tide__effect_plan(app);
    return TIDE_OK;
}

/// What stands behind a message while lines were logged.
static const char logged_words[] = " logged: :messages)";

/// Where that begins; NULL: the message tells of no lines.
static char *logged_part(char *message) {
    const size_t n = strlen(message), n_words = sizeof logged_words - 1;
    if (n < n_words || strcmp(message + n - n_words, logged_words) != 0) return NULL;
    return strrchr(message, '(');
}

/// Lines that were logged since the last action are added to its message, also to one that comes after them; or replace
/// it when they are worse.
static void say_what_was_logged(tide_tui_app *app) {
    char line[sizeof app->st.message], shown[sizeof app->st.message];
    bool is_error = false;
    const size_t n = tide_tui_messages_news(app->messages, line, sizeof line, &is_error);
    if (app->logged_seq != app->st.seq) app->n_logged = 0;
    app->logged_seq = app->st.seq;
    app->n_logged += n;
    snprintf(shown, sizeof shown, "%s", app->st.message);
    char *before = logged_part(shown);
    if (app->n_logged == 0 || (n == 0 && (before != NULL || shown[0] == '\0'))) return;
    if (before != NULL && before > shown) before[-1] = '\0'; // the space before it goes too
    const bool is_worse = n > 0 && (shown[0] == '\0' || (is_error && !app->st.message_is_error));
    tide_tui_say(&app->st, is_worse ? is_error : app->st.message_is_error, "%.400s (%zu%s", is_worse ? line : shown,
                 app->n_logged, logged_words);
}

/// A map of letters gives some of its lines to their names: as many as what it shows needs.
static tide_status add_map_legend(tide_tui_app *app, tide_error *err) {
    enum { SIGNS = 2 };
    const tide_tui_view view = {&app->scene, app->glyphs, &app->grid};
    tide_tui_tints tints;
    tide_tui_letters_make(&view, &tints);
    if (tints.n == 0) return TIDE_OK;
    tide_tui_layout_add_map_legend(&app->layout, tints.n + SIGNS);
    return tide_tui_scene_make(app->cache, &app->st, &app->layout, &app->scene, err);
}

tide_status tide_tui_app_look(tide_tui_app *app, tide_error *err) {
    TIDE_TRY(tide__query_collect(app->cache, &app->st, err));
    tide__app_take_results(app);
    say_what_was_logged(app);
    if (app->st.b == NULL) tide__app_show_own_b(app);
    TIDE_TRY(renew_worker(app, err));
    tide_tui_layout_make(app->grid.width, app->grid.height, app->st.preset, app->st.focus, &app->layout);
    app->st.fine_curve = app->glyphs->braille;
    TIDE_TRY(tide_tui_scene_make(app->cache, &app->st, &app->layout, &app->scene, err));
    TIDE_TRY(add_map_legend(app, err));
    tide_tui_pane_settle(&app->st, &app->scene);
    tide__app_show_progress(app);
    app->scene.shows_seq = app->opt != NULL && app->opt->test_mode;
    app->scene.is_busy = tide_tui_app_is_busy(app);
    return TIDE_OK;
}

tide_status tide_tui_app_frame(tide_tui_app *app, tide_error *err) {
    TIDE_TRY(tide_tui_app_look(app, err));
    const tide_tui_view view = {&app->scene, app->glyphs, &app->grid};
    tide_tui_draw(&view);
    app->n_frames++;
    return TIDE_OK;
}

tide_status tide_tui_app_resize(tide_tui_app *app, int width, int height, tide_error *err) {
    TIDE_TRY(tide__app_check_size(width, height, err));
    return tide_tui_grid_resize(&app->grid, width, height, err);
}

bool tide_tui_app_is_busy(tide_tui_app *app) {
    return tide__query_is_pending(app->cache) || tide__app_has_results(app);
}
bool tide_tui_app_has_news(tide_tui_app *app) {
    return tide_tui_query_cache_has_news(app->cache) || tide__app_has_results(app);
}

/// Options of the command line are not saved.
tide_status tide_tui_app_save(const tide_tui_app *app, tide_error *err) {
    if (app->opt == NULL || app->opt->state_file == NULL) return TIDE_OK;
    tide_tui_state *kept;
    TIDE_TRY(TIDE_NEW(&kept, 1, err, "for the state of the view"));
    *kept = app->st;
    if (app->opt->no_mouse) kept->mouse = true;
    if (kept->capacity_bytes == app->session->capacity_bytes) kept->capacity_bytes = 0;
    const tide_status st = tide_tui_state_save(kept, app->opt->state_file, err);
    tide_host_free(kept);
    return st;
}
