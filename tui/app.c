// SPDX-License-Identifier: MIT
//
// One session of the view, driven by a terminal, a script or a test. See app.h.
//
//     app.c           opening, keys, what actions leave to the app, recordings
//     app_output.c    what leaves the view: clipboard, files, the command line that prints it
//     app_frame.c     frames
//     app_requests.c  plans, files and SQL, made by the worker thread
#include "tui/app.h"

#include <string.h>

#include "core/base/host_alloc.h"
#include "tui/app_internal.h"
#include "tui/state/state_file.h"

// ---- opening ----

/// A saved view that cannot be used is reported and not changed; the view opens without it.
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

/// --view goes before the saved preset.
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

/// Lines as behind ':', one after the other.
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

static tide_status open_query_cache(tide_tui_app *app, bool with_worker, tide_error *err) {
    const tide_tui_session *session = app->session;
    if (with_worker) TIDE_TRY(tide_tui_worker_start(session->a, session->b, &app->worker, err));
    TIDE_TRY(tide_tui_query_cache_create(app->worker, &app->cache, err));
    app->cache->session = session;
    app->worker_b = session->b;
    return TIDE_OK;
}

/// Where nothing else was asked for before: what is alive at the peak, where the cursor is.
static void choose_rows(tide_tui_app *app) {
    tide_tui_state *s = &app->st;
    const tide_tui_state none = {.sort = TIDE_ROW_SORT_BEGIN};
    if (app->opt != NULL && app->opt->is_data) s->folds_weights = false; // figures are those of everything
    s->opens_alive = app->opt != NULL && app->opt->opens_alive && !s->is_recording;
    const bool is_plain = s->n_filters == 0 && s->sort == none.sort && !s->reverse && !s->hides_persistent &&
                          !s->group_chosen && s->search[0] == '\0';
    s->is_opening = s->opens_alive && is_plain && s->cursor == tide_subject_get_facts(s->a)->peak.t;
}

tide_status tide_tui_app_open(const tide_tui_session *session, const tide_tui_options *opt, int width, int height,
                              bool with_worker, tide_tui_app **out, tide_error *err) {
    *out = NULL;
    TIDE_TRY(tide__app_check_size(width, height, err));
    tide_tui_app *app;
    TIDE_TRY(TIDE_NEW(&app, 1, err, "for the view"));
    app->session = session;
    app->opt = opt;
    app->glyphs = tide_tui_glyphs_for(tide__app_glyph_tier(opt), true);
    tide_tui_state_init(&app->st, session->a, session->b);
    app->st.capacity_bytes = session->capacity_bytes;
    app->st.follows = opt != NULL && opt->follow && app->st.is_recording;
    tide_status st = tide_tui_grid_resize(&app->grid, width, height, err);
    if (st == TIDE_OK) st = open_query_cache(app, with_worker, err);
    if (st == TIDE_OK) st = load_state(app, err);
    if (opt != NULL && opt->no_mouse) app->st.mouse = false;
    if (st == TIDE_OK) choose_preset(app);
    choose_rows(app);
    if (st == TIDE_OK) st = run_commands(app, err);
    if (st != TIDE_OK)
        tide_tui_app_close(app);
    else
        *out = app;
    return st;
}

void tide_tui_app_close(tide_tui_app *app) {
    if (app == NULL) return;
    tide_tui_query_cache_destroy(app->cache); // releases pending requests
    tide_tui_worker_stop(app->worker);
    tide_subject_destroy(app->own_b);
    tide_tui_grid_deinit(&app->grid);
    tide_host_free(app);
}

// ---- what actions leave to the app ----

static void save_state(tide_tui_app *app) {
    tide_error err = TIDE_ERROR_INIT;
    if (tide_tui_app_save(app, &err) != TIDE_OK) tide_tui_say(&app->st, true, "%s", err.msg);
}

static void forget_state(tide_tui_app *app) {
    tide_error err = TIDE_ERROR_INIT;
    if (app->opt == NULL || app->opt->state_file == NULL) return;
    if (tide_tui_state_forget(app->opt->state_file, &err) != TIDE_OK) tide_tui_say(&app->st, true, "%s", err.msg);
}

static void list_messages(tide_tui_app *app) {
    tide_text list = {0};
    tide_error err = TIDE_ERROR_INIT;
    tide_tui_messages_list(app->messages, &list);
    if (list.failed) {
        tide_tui_say(&app->st, true, "no memory for the messages");
    } else if (list.len == 0) {
        tide_tui_say(&app->st, false, "nothing was logged");
    } else if (tide_tui_query_cache_set_text(app->cache, tide_text_str(&list), &err) != TIDE_OK) {
        tide_tui_say(&app->st, true, "%s", err.msg);
    } else {
        app->st.overlay = TIDE_TUI_OVERLAY_MESSAGE;
        app->st.overlay_top = 0;
        app->st.message_is_error = false;
    }
    tide_text_deinit(&list);
}

static void cancel(tide_tui_app *app) {
    tide__query_cancel_all(app->cache);
    tide_tui_say(&app->st, false, "cancelled");
}

static void do_effect(tide_tui_app *app, const tide_tui_result *r) {
    switch (r->effect) {
    case TIDE_TUI_EFFECT_COPY:
        tide__effect_copy(app, r->text);
        break;
    case TIDE_TUI_EFFECT_EXPORT:
        tide__effect_export(app, r->text);
        break;
    case TIDE_TUI_EFFECT_SAVE_PLAN:
        tide__effect_save_plan(app, r->text);
        break;
    case TIDE_TUI_EFFECT_PLAN:
        tide__effect_plan(app);
        break;
    case TIDE_TUI_EFFECT_WORST:
        tide__effect_worst(app);
        break;
    case TIDE_TUI_EFFECT_SQL:
        tide__effect_sql(app, r->text);
        break;
    case TIDE_TUI_EFFECT_OPEN_B:
        tide__effect_open(app, r->text);
        break;
    case TIDE_TUI_EFFECT_SAVE_STATE:
        save_state(app);
        break;
    case TIDE_TUI_EFFECT_FORGET_STATE:
        forget_state(app);
        break;
    case TIDE_TUI_EFFECT_BATCH:
        tide__effect_batch(app);
        break;
    case TIDE_TUI_EFFECT_MESSAGES:
        list_messages(app);
        break;
    case TIDE_TUI_EFFECT_CANCEL:
        cancel(app);
        break;
    case TIDE_TUI_EFFECT_MOUSE: // the terminal looks at state.mouse
    case TIDE_TUI_EFFECT_NONE:
        break;
    }
}

// ---- actions ----

/// The scene that actions get; NULL before the first one is made.
static const tide_tui_scene *seen(const tide_tui_app *app) { return app->scene.state != NULL ? &app->scene : NULL; }

static unsigned done(tide_tui_app *app, const tide_tui_result *r) {
    if (r->flags & TIDE_TUI_EFFECT) do_effect(app, r);
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
    app->has_grown |= grew || !st->is_recording;
    if (st->is_paused || !app->has_grown) return !st->is_recording;
    app->has_grown = false;
    follow(st, app->seen_axis.end > app->seen_axis.begin ? app->seen_axis : before);
    f = tide_subject_get_facts(st->a);
    app->seen_axis = (tide_tui_window){f->begin, f->end};
    if (tide__query_a_grew(app->cache, &why) != TIDE_OK) tide_tui_say(st, true, "%s", why.msg);
    if (!st->is_recording)
        tide_tui_say(st, false, "the recording has ended: %llu events", (unsigned long long)f->n_events);
    return true;
}
