// SPDX-License-Identifier: MIT
//
// What leaves the view: the clipboard, files, the command line that prints it again. See app_internal.h.
#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/base/output.h"
#include "planner/planner.h"
#include "tui/app_internal.h"
#include "tui/draw/frame_svg.h"
#include "tui/pane_document.h"
#include "tui/state/state_file.h"
#include "tui/term/clipboard.h"

static void say_error(tide_tui_app *app, const tide_error *err) {
    tide_tui_say(&app->st, true, "%s%s%s", err->msg, err->note[0] != '\0' ? ": " : "", err->note);
}

// ---- copy ----

void tide__effect_copy(tide_tui_app *app, const char *text) {
    tide_text path = {0}, control = {0};
    tide_error err = TIDE_ERROR_INIT;
    const char *term = getenv("TERM"), *tmux = getenv("TMUX");
    const bool goes_out =
        app->to_terminal != NULL && tide_tui_osc52(text, term, tmux != NULL && tmux[0] != '\0', &control);
    if (goes_out && !control.failed) app->to_terminal(app->terminal, control.data, control.len);
    if (app->opt != NULL && app->opt->no_copy_file) {
        tide_tui_say(&app->st, !goes_out,
                     goes_out
                         ? "%zu bytes copied, for the terminal's clipboard alone: no file is kept (--no-state)"
                         : "%zu bytes not copied: there is no terminal with a clipboard, and --no-state keeps no file",
                     strlen(text));
        tide_text_deinit(&control);
        return;
    }
    tide_status st = tide_tui_copy_file(&path, &err);
    if (st == TIDE_OK) st = tide_tui_make_folders(tide_text_str(&path), &err);
    if (st == TIDE_OK) st = tide_write_file(tide_text_str(&path), text, strlen(text), &err);
    if (st != TIDE_OK && !goes_out)
        say_error(app, &err);
    else if (st != TIDE_OK)
        tide_tui_say(&app->st, false, "%zu bytes for the terminal's clipboard (no file: %s)", strlen(text), err.msg);
    else if (goes_out)
        tide_tui_say(&app->st, false, "copied (for terminals without OSC 52: %s)", tide_text_str(&path));
    else
        tide_tui_say(&app->st, false, "copied to %s: this terminal has no clipboard", tide_text_str(&path));
    tide_text_deinit(&control);
    tide_text_deinit(&path);
}

// ---- export ----

static bool ends_with(const char *text, const char *end) {
    const size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

/// What the view shows: the frame as text or as a picture, the pane that has the focus as data.
static tide_status write_view(tide_tui_app *app, const char *path, tide_text *out, tide_error *err) {
    const tide_tui_pane pane = app->st.focus;
    if (ends_with(path, ".txt") || ends_with(path, ".svg")) {
        TIDE_TRY(tide_tui_app_frame(app, err)); // without the line that asked for it
        if (ends_with(path, ".txt"))
            tide_tui_grid_to_text(&app->grid, out);
        else
            tide_tui_grid_to_svg(&app->grid, out);
    } else {
        if (app->scene.busy[pane][0] != '\0' || app->scene.is_earlier[pane])
            return TIDE_FAIL(err, TIDE_ERR_INVALID, "what '%s' shows is still being made: try again when it is there",
                             tide_tui_pane_name(pane));
        return ends_with(path, ".csv") ? tide__pane_write_csv(&app->scene, pane, "", out, err)
                                       : tide__pane_write_json(&app->scene, pane, out, err);
    }
    return out->failed ? TIDE_NO_MEMORY(err, "for the frame") : TIDE_OK;
}

static void say_what_was_written(tide_tui_app *app, const char *path) {
    tide_tui_state *st = &app->st;
    const bool filters = (st->n_filters > 0 && !st->filters_off) || st->hides_persistent;
    if (ends_with(path, ".txt") || ends_with(path, ".svg"))
        tide_tui_say(st, false, "this frame is written to %s", path);
    else if (!ends_with(path, ".html"))
        tide_tui_say(st, false, "what the pane '%s' shows is written to %s", tide_tui_pane_name(st->focus), path);
    else
        tide_tui_say(st, false, "everything%s is written to %s%s", filters ? ", also what is filtered here," : "", path,
                     filters ? ": the page has filters of its own" : "");
}

void tide__effect_export(tide_tui_app *app, const char *path) {
    static const char *const of_view[] = {".txt", ".csv", ".json", ".svg"};
    const tide_tui_session *s = app->session;
    tide_error err = TIDE_ERROR_INIT;
    tide_text text = {0};
    bool is_of_view = false;
    for (size_t i = 0; i < sizeof of_view / sizeof of_view[0]; i++) is_of_view |= ends_with(path, of_view[i]);
    tide_status st;
    if (is_of_view) {
        st = write_view(app, path, &text, &err);
        if (st == TIDE_OK) st = tide_write_file(path, tide_text_str(&text), text.len, &err);
    } else if (ends_with(path, ".html") && s->export_view != NULL) {
        st = s->export_view(s->ctx, app->st.a, app->st.b, path, &err);
    } else {
        st = TIDE_FAIL(&err, TIDE_ERR_INVALID, "cannot tell what to write by the ending of '%s': .txt, .svg, .csv%s",
                       path, s->export_view != NULL ? ", .json or .html" : " or .json");
    }
    tide_text_deinit(&text);
    if (st != TIDE_OK)
        say_error(app, &err);
    else
        say_what_was_written(app, path);
}

// ---- plans ----

/// Why no run can follow a plan with this edit, into `why`; "": one can, as far as the plan and the model tell.
static bool cannot_run(const tide_tui_app *app, const tide_memory_plan *plan, const tide_edit *edit, char *why,
                       size_t why_bytes) {
    const tide_tui_session *s = app->session;
    tide_in_place asked = {0};
    tide_error err = TIDE_ERROR_INIT;
    if (!tide_edit_keeps_meaning(plan, edit)) {
        snprintf(why, why_bytes, "it takes away what an operator needs");
        return true;
    }
    if (edit->kind != TIDE_EDIT_IN_PLACE || s->retable_in_place == NULL) return false;
    memcpy(asked.other, edit->other, sizeof asked.other);
    const tide_status st = s->retable_in_place(s->retable_ctx, edit->item, &asked, &err);
    const bool is_refused = st == TIDE_OK && asked.other[0] == '\0' && asked.why.len > 0;
    if (is_refused) snprintf(why, why_bytes, "%s", tide_text_str(&asked.why));
    tide_text_deinit(&asked.why);
    return is_refused;
}

static void say_whether_it_runs(tide_tui_app *app, const tide_memory_plan *plan, const char *path) {
    const tide_tui_state *st = &app->st;
    bool is_unknown = false;
    for (size_t i = 0; i < st->n_edits; i++) {
        const tide_edit *edit = &st->edits[i];
        char why[256];
        is_unknown = is_unknown || (edit->kind == TIDE_EDIT_IN_PLACE && app->session->retable_in_place == NULL);
        if (!cannot_run(app, plan, edit, why, sizeof why)) continue;
        tide_text text = {0};
        tide_edit_print(edit, &text);
        tide_tui_say(&app->st, true, "written to %s, but no run can follow it: '%s': %s", path, tide_text_str(&text),
                     why);
        tide_text_deinit(&text);
        return;
    }
    tide_tui_say(&app->st, false,
                 is_unknown ? "written to %s: run --plan takes it if the operators may overwrite what they read"
                            : "written to %s: run --plan takes it",
                 path);
}

void tide__effect_save_plan(tide_tui_app *app, const char *path) {
    const tide_memory_plan *plan = NULL;
    if (app->own_b != NULL && app->own_b_is_whatif) plan = tide_subject_get_facts(app->own_b)->plan;
    if (plan == NULL || app->plan_key != 0) {
        tide_tui_say(&app->st, true,
                     app->plan_key != 0 ? "the plan is still being made" : "there is no changed plan yet");
        return;
    }
    tide_error err = TIDE_ERROR_INIT;
    tide_text text = {0};
    tide_status got = tide_plan_to_json(&plan, 1, NULL, &text, &err);
    if (got == TIDE_OK) got = tide_write_file(path, tide_text_str(&text), text.len, &err);
    tide_text_deinit(&text);
    if (got != TIDE_OK) {
        say_error(app, &err);
        return;
    }
    say_whether_it_runs(app, plan, path);
}

// ---- the command line that prints this view ----

/// One word for a shell, in quotes where it needs them.
static void add_quoted(tide_text *out, const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=+,@%";
    if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
        tide_text_add(out, word);
        return;
    }
    tide_text_add(out, "'");
    for (const char *p = word; *p != '\0'; p++) {
        if (*p == '\'')
            tide_text_add(out, "'\\''");
        else
            tide_text_add_n(out, p, 1);
    }
    tide_text_add(out, "'");
}

static void add_command(tide_text *out, const char *name, const char *argument) {
    tide_text line = {0};
    tide_text_addf(&line, "%s%s%s", name, argument[0] != '\0' ? " " : "", argument);
    tide_text_add(out, " --command ");
    add_quoted(out, tide_text_str(&line));
    tide_text_deinit(&line);
}

/// A moment as "goto" and "range" take it, exact.
static void add_time(tide_text *out, const tide_subject_facts *f, int64_t t) {
    if (f->axis == TIDE_AXIS_STEPS)
        tide_text_addf(out, "%lld", (long long)t);
    else
        tide_text_addf(out, "%lluns", (unsigned long long)t - (unsigned long long)f->origin);
}

static void add_window(tide_text *out, const tide_tui_state *st, const tide_subject_facts *f) {
    tide_text words = {0};
    const tide_tui_window w = st->window;
    if (w.begin > f->begin || w.end < f->end) {
        add_time(&words, f, w.begin);
        tide_text_add(&words, " ");
        add_time(&words, f, w.end);
        add_command(out, "fit", tide_text_str(&words));
        tide_text_deinit(&words);
    }
    if (st->cursor == f->peak.t && st->cursor_event == f->peak.event) return;
    add_time(&words, f, st->cursor);
    add_command(out, "goto", tide_text_str(&words));
    tide_text_deinit(&words);
}

static void add_edits(tide_text *out, const tide_tui_state *st) {
    for (size_t i = 0; i < st->n_edits; i++) {
        tide_text edit = {0};
        tide_edit_print(&st->edits[i], &edit);
        add_command(out, "edit", tide_text_str(&edit));
        tide_text_deinit(&edit);
    }
}

/// Orders of lists: each is that of the list that has the focus.
static void add_orders(tide_text *out, const tide_tui_state *st) {
    for (int i = 0; i < TIDE_TUI_N_LISTS; i++) {
        const tide_tui_list_order *order = &st->orders[i];
        if (order->column[0] == 0) continue;
        char words[TIDE_TUI_MAX_COLUMN + 32];
        snprintf(words, sizeof words, "%s %s%s", tide_tui_list_name((tide_tui_list)i), order->column,
                 order->reverse ? " reversed" : "");
        add_command(out, "sort", words);
    }
}

static void write_command_line(const tide_tui_state *st, const char *prefix, int width, int height, tide_text *out) {
    const tide_subject_facts *f = tide_subject_get_facts(st->a);
    tide_text_addf(out, "%s --once --size %dx%d --no-state", prefix, width, height);
    add_edits(out, st);
    add_command(out, "view", tide_tui_preset_name(st->preset));
    add_orders(out, st);
    add_command(out, "pane", tide_tui_pane_name(st->focus));
    if (st->curve_kind >= 0) add_command(out, "kind", tide_memory_kind_name((tide_memory_kind)st->curve_kind));
    if (st->bands_by != TIDE_BAND_BY_KIND)
        add_command(out, "bands", st->bands_by < 0 ? "off" : tide_band_by_name((tide_band_by)st->bands_by));
    if (st->folds_weights != tide_tui_folds_on_opening(f))
        add_command(out, "set", st->folds_weights ? "weights off" : "weights on");
    if (st->sort != TIDE_ROW_SORT_BEGIN || (st->opens_alive && !st->is_opening)) {
        char words[64];
        const bool in_list = tide_tui_list_of(st->focus) < TIDE_TUI_N_LISTS; // whose order is another
        snprintf(words, sizeof words, "%s%s", in_list ? "sort " : "", tide_row_sort_name(st->sort));
        add_command(out, in_list ? "set" : "sort", words);
    }
    if (st->reverse) add_command(out, "set", "reverse on");
    if (st->group_chosen) add_command(out, "group", tide_row_group_name(st->group));
    if (st->hides_persistent) add_command(out, "set", "persistent off");
    for (size_t i = 0; !st->filters_off && i < st->n_filters; i++) add_command(out, "filter", st->filters[i]);
    if (st->search[0] != '\0') add_command(out, "search", st->search);
    add_window(out, st, f);
}

void tide__effect_batch(tide_tui_app *app) {
    tide_text line = {0};
    tide_error err = TIDE_ERROR_INIT;
    const char *prefix = app->session->batch_prefix != NULL ? app->session->batch_prefix : "tidemark tui FILE";
    write_command_line(&app->st, prefix, app->grid.width, app->grid.height, &line);
    if (line.failed) {
        tide_tui_say(&app->st, true, "no memory for the command line");
    } else if (tide_tui_query_cache_set_text(app->cache, tide_text_str(&line), &err) != TIDE_OK) {
        say_error(app, &err);
    } else {
        app->st.overlay = TIDE_TUI_OVERLAY_MESSAGE;
        app->st.overlay_top = 0;
    }
    tide_text_deinit(&line);
}
