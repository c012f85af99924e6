// SPDX-License-Identifier: MIT
//
// One session of the view, driven by a terminal, a script or nobody. See app.h. Effects of actions are in effects.c.
#include "tui/app.h"

#include <langinfo.h>
#include <stdio.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "tui/app_internal.h"
#include "tui/draw/panes.h"
#include "tui/state/state_file.h"

enum { MAX_WIDTH = 2000, MAX_HEIGHT = 2000 };

// ---- opening ----

static tide_status check_size(int width, int height, tide_error *err) {
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

/// A saved view that cannot be used is said and left alone: it is never the reason that nothing is shown.
static tide_status load_state(tide_tui_app *app, tide_error *err) {
    if (app->opt == NULL || app->opt->state_file == NULL) return TIDE_OK;
    tide_error why = TIDE_ERROR_INIT;
    const tide_status st = tide_tui_state_load(&app->st, app->opt->state_file, NULL, &why);
    if (st == TIDE_ERR_NOMEM) {
        if (err != NULL) *err = why;
        return st;
    }
    if (st != TIDE_OK) tide_tui_say(&app->st, true, "%s; %s", why.msg, why.hint);
    return TIDE_OK;
}

/// What --view says counts more than what was saved.
static void choose_preset(tide_tui_app *app) {
    const int preset = app->opt != NULL ? app->opt->preset : 0;
    if (preset < 1 || preset > TIDE_TUI_N_PRESETS) return;
    char message[sizeof app->st.message];
    memcpy(message, app->st.message, sizeof message);
    const bool is_error = app->st.message_is_error;
    (void)tide_tui_do(&app->st, NULL, (tide_tui_action)(TIDE_TUI_VIEW_1 + preset - 1));
    if (!is_error) return;
    memcpy(app->st.message, message, sizeof message);
    app->st.message_is_error = true;
}

/// Lines as behind ':', each after what the one before has changed.
static tide_status run_commands(tide_tui_app *app, tide_error *err) {
    const char *p = app->opt != NULL && app->opt->commands != NULL ? app->opt->commands : "";
    while (*p != '\0') {
        const size_t n = strcspn(p, "\n");
        char line[TIDE_TUI_MAX_PROMPT];
        if (n >= sizeof line) return TIDE_FAIL(err, TIDE_ERR_INVALID, "a command of %zu bytes is too long", n);
        memcpy(line, p, n);
        line[n] = '\0';
        p += n + (p[n] == '\n');
        TIDE_TRY(tide_tui_app_look(app, err));
        (void)tide_tui_app_line(app, line);
        if (app->st.message_is_error) {
            const tide_status st = TIDE_FAIL(err, TIDE_ERR_INVALID, "command '%s': %s", line, app->st.message);
            tide_error_hint(err, "tidemark tui --keys lists all commands");
            return st;
        }
    }
    return TIDE_OK;
}

static tide_status open_desk(tide_tui_app *app, bool aside, tide_error *err) {
    const tide_tui_session *session = app->session;
    if (aside) TIDE_TRY(tide_tui_worker_start(session->a, session->b, &app->worker, err));
    TIDE_TRY(tide_tui_desk_create(app->worker, &app->desk, err));
    app->desk->session = session;
    app->worker_b = session->b;
    return TIDE_OK;
}

tide_status tide_tui_app_open(const tide_tui_session *session, const tide_tui_options *opt, int width, int height,
                              bool aside, tide_tui_app **out, tide_error *err) {
    *out = NULL;
    TIDE_TRY(check_size(width, height, err));
    tide_tui_app *app = tide_host_calloc(1, sizeof *app);
    if (app == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the view");
    app->session = session;
    app->opt = opt;
    app->glyphs = tide_tui_glyphs_for(tide__app_glyph_tier(opt), true);
    tide_tui_state_init(&app->st, session->a, session->b);
    app->st.capacity_bytes = session->capacity_bytes;
    app->st.follows = opt != NULL && opt->follow && app->st.is_recording;
    tide_status st = tide_tui_grid_resize(&app->grid, width, height, err);
    if (st == TIDE_OK) st = open_desk(app, aside, err);
    if (st == TIDE_OK) st = load_state(app, err);
    if (opt != NULL && opt->no_mouse) app->st.mouse = false;
    if (st == TIDE_OK) choose_preset(app);
    if (st == TIDE_OK) st = run_commands(app, err);
    if (st != TIDE_OK)
        tide_tui_app_close(app);
    else
        *out = app;
    return st;
}

void tide_tui_app_close(tide_tui_app *app) {
    if (app == NULL) return;
    tide_tui_desk_destroy(app->desk); // gives back what is being done aside
    tide_tui_worker_stop(app->worker);
    tide_subject_destroy(app->own_b);
    tide_tui_grid_deinit(&app->grid);
    tide_host_free(app);
}

// ---- frames ----

static tide_status renew_worker(tide_tui_app *app, tide_error *err) {
    const tide_subject *b = app->st.b != app->st.a ? app->st.b : NULL;
    if (app->worker == NULL || app->worker_b == b) return TIDE_OK;
    const bool was_planning = app->plan_key != 0;
    tide__desk_drop_questions(app->desk);
    app->plan_key = app->open_key = app->sql_key = 0;
    TIDE_TRY(tide_tui_worker_renew(app->worker, app->st.a, b, err));
    app->worker_b = b;
    if (was_planning) tide__effect_plan(app);
    return TIDE_OK;
}

/// Behind what is said already, unless it is worse than that.
static void say_what_was_logged(tide_tui_app *app) {
    char line[sizeof app->st.message], said[sizeof app->st.message];
    bool is_error;
    const size_t n = tide_tui_messages_news(app->messages, line, sizeof line, &is_error);
    if (n == 0) return;
    snprintf(said, sizeof said, "%s", app->st.message);
    if (said[0] == '\0' || (is_error && !app->st.message_is_error))
        tide_tui_say(&app->st, is_error, "%.400s (%zu logged: :messages)", line, n);
    else
        tide_tui_say(&app->st, app->st.message_is_error, "%.400s (%zu logged: :messages)", said, n);
}

tide_status tide_tui_app_look(tide_tui_app *app, tide_error *err) {
    TIDE_TRY(tide__desk_collect(app->desk, &app->st, err));
    tide__app_take_answers(app);
    say_what_was_logged(app);
    if (app->st.b == NULL) tide__app_show_own_b(app);
    TIDE_TRY(renew_worker(app, err));
    tide_tui_layout_make(app->grid.width, app->grid.height, app->st.preset, app->st.focus, &app->layout);
    app->st.fine_curve = app->glyphs->braille;
    TIDE_TRY(tide_tui_scene_make(app->desk, &app->st, &app->layout, &app->scene, err));
    tide_tui_pane_settle(&app->st, &app->scene);
    tide__app_say_what_is_done(app);
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
    TIDE_TRY(check_size(width, height, err));
    return tide_tui_grid_resize(&app->grid, width, height, err);
}

// ---- actions ----

/// What an action sees: nothing before the first look.
static const tide_tui_scene *seen(const tide_tui_app *app) { return app->scene.state != NULL ? &app->scene : NULL; }

static unsigned done(tide_tui_app *app, const tide_tui_result *r) {
    if (r->flags & TIDE_TUI_EFFECT) tide__app_effect(app, r);
    return r->flags;
}

unsigned tide_tui_app_key(tide_tui_app *app, uint32_t key) {
    const tide_tui_result r = tide_tui_press(&app->st, seen(app), key);
    return done(app, &r);
}

unsigned tide_tui_app_point(tide_tui_app *app, const tide_tui_mouse *mouse) {
    const tide_tui_scene *scene = seen(app);
    if (scene == NULL) return 0;
    const tide_tui_result r = tide_tui_point(&app->st, scene, mouse);
    return done(app, &r);
}

unsigned tide_tui_app_line(tide_tui_app *app, const char *line) {
    const tide_tui_result r = tide_tui_command(&app->st, seen(app), line);
    return done(app, &r);
}

// ---- recordings ----

/// The axis has grown from `before`: the whole stays the whole, the tail stays in view.
static void follow(tide_tui_state *st, tide_tui_window before) {
    const tide_subject_facts *f = tide_subject_get_facts(st->a);
    const bool was_whole = st->window.begin <= before.begin && st->window.end >= before.end;
    const int64_t span = (int64_t)tide_tui_window_span(st->window);
    if (was_whole)
        st->window = (tide_tui_window){f->begin, f->end};
    else if (st->follows)
        st->window = (tide_tui_window){f->end - span, f->end};
    if (st->follows) {
        st->cursor = f->end - 1;
        st->cursor_event = 0;
    }
    tide_tui_state_settle(st);
}

bool tide_tui_app_refresh(tide_tui_app *app) {
    tide_tui_state *st = &app->st;
    if (!st->is_recording) return false;
    const tide_subject_facts *f = tide_subject_get_facts(st->a);
    const tide_tui_window before = {f->begin, f->end};
    bool grew = false;
    tide_error why = TIDE_ERROR_INIT;
    if (tide_subject_refresh(st->a, &grew, &why) != TIDE_OK) {
        tide_tui_say(st, true, "cannot take in what was recorded: %s", why.msg);
        st->is_recording = false;
        return true;
    }
    st->is_recording = tide_subject_get_facts(st->a)->is_recording;
    if (grew) tide_tui_state_find_fullest(st);
    app->has_grown |= grew || !st->is_recording;
    if (st->is_paused || !app->has_grown) return !st->is_recording;
    app->has_grown = false;
    follow(st, app->seen_axis.end > app->seen_axis.begin ? app->seen_axis : before);
    f = tide_subject_get_facts(st->a);
    app->seen_axis = (tide_tui_window){f->begin, f->end};
    if (tide__desk_a_grew(app->desk, &why) != TIDE_OK) tide_tui_say(st, true, "%s", why.msg);
    if (!st->is_recording)
        tide_tui_say(st, false, "the recording has ended: %llu events", (unsigned long long)f->n_events);
    return true;
}

bool tide_tui_app_is_busy(tide_tui_app *app) { return tide__desk_is_busy(app->desk) || tide__app_has_answers(app); }
bool tide_tui_app_has_news(tide_tui_app *app) {
    return tide_tui_desk_has_news(app->desk) || tide__app_has_answers(app);
}

/// What the command line said for this once is not kept.
tide_status tide_tui_app_save(const tide_tui_app *app, tide_error *err) {
    if (app->opt == NULL || app->opt->state_file == NULL) return TIDE_OK;
    tide_tui_state *kept = tide_host_alloc(sizeof *kept);
    if (kept == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the state of the view");
    *kept = app->st;
    if (app->opt->no_mouse) kept->mouse = true;
    if (kept->capacity_bytes == app->session->capacity_bytes) kept->capacity_bytes = 0;
    const tide_status st = tide_tui_state_save(kept, app->opt->state_file, err);
    tide_host_free(kept);
    return st;
}
