// SPDX-License-Identifier: MIT
//
// The view in lines, for screen readers, Braille displays and scripts. See tide_tui_linear in tui.h.
//
//     line read                what is done
//     j, Left, F6, …           the key
//     sort size, 12, :quit     the command
//     list [PANE] [N]          N rows of a pane from the selected one on
//     where                    the moment and the selection again
//     keys                     all keys and commands
//     (while a prompt asks)    the text that it asks for
//
// Prints one sentence for what has changed, or one row in a line; no drawing, no escapes.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/base/utf8.h"
#include "tui/app.h"
#include "tui/draw/panes.h"
#include "tui/sheet.h"

enum { WIDTH = 120, HEIGHT = 40, LIST_ROWS = 10, MAX_LINE = 4096 };

/// The values before a line; those that differ after it are printed.
typedef struct snapshot {
    tide_tui_preset preset;
    tide_tui_pane focus;
    tide_tui_overlay overlay;
    tide_tui_prompt prompt;
    tide_tui_window window;
    int64_t cursor;
    uint64_t cursor_event;
    bool shows_range;
    int64_t range_begin, range_end, space_lo, space_hi;
    size_t n_rows, n_filters, n_stack_rows;
    bool filters_off;
    tide_row_sort sort;
    bool reverse;
    tide_row_group group;
    tide_text selection;
} snapshot;

static void take_snapshot(const tide_tui_app *app, snapshot *out) {
    const tide_tui_state *st = &app->st;
    *out = (snapshot){.preset = st->preset,
                      .focus = st->focus,
                      .overlay = st->overlay,
                      .prompt = st->prompt,
                      .window = st->window,
                      .cursor = st->cursor,
                      .cursor_event = st->cursor_event,
                      .shows_range = st->shows_range,
                      .range_begin = st->range_begin,
                      .range_end = st->range_end,
                      .space_lo = st->space_lo,
                      .space_hi = st->space_hi,
                      .n_rows = app->scene.rows != NULL ? app->scene.rows->n : 0,
                      .n_filters = st->n_filters,
                      .n_stack_rows = app->scene.n_stack_rows,
                      .filters_off = st->filters_off,
                      .sort = st->sort,
                      .reverse = st->reverse,
                      .group = st->group};
    tide_tui_speak_selection(&app->scene, st->focus, &out->selection);
}

/// Sentences of one line, with ". " between.
static void begin_sentence(tide_text *out) {
    if (out->len > 0) tide_text_add(out, ". ");
}

static void say_time(const tide_tui_app *app, int64_t t, tide_text *out) {
    char buf[32];
    tide_text_add(out, tide_tui_format_time(app->scene.a, t, buf, sizeof buf));
}

static void say_span(const tide_tui_app *app, const char *what, int64_t begin, int64_t end, tide_text *out) {
    begin_sentence(out);
    tide_text_addf(out, "%s ", what);
    say_time(app, begin, out);
    tide_text_add(out, " to ");
    say_time(app, end, out);
}

static void say_rows(const tide_tui_app *app, tide_text *out) {
    const tide_tui_state *st = &app->st;
    const tide_rows *rows = app->scene.rows;
    char size[32];
    begin_sentence(out);
    const size_t n = rows != NULL ? rows->n : 0;
    tide_text_addf(out, "%zu %s by %s%s", n, n == 1 ? "row" : "rows", tide_row_sort_name(st->sort),
                   st->reverse ? ", reversed" : "");
    if (st->group != TIDE_ROW_GROUP_NONE) tide_text_addf(out, ", grouped by %s", tide_row_group_name(st->group));
    for (size_t i = 0; i < st->n_filters; i++) {
        tide_text_addf(out, ", filter%s ", st->filters_off ? " (off)" : "");
        tide_tui_add_clean(out, st->filters[i]);
    }
    if (rows == NULL || rows->n_hidden == 0) return;
    tide_text_addf(out, ", %zu hidden of %s", rows->n_hidden, tide_format_bytes(rows->hidden_bytes, size, sizeof size));
}

static size_t rows_of(const tide_tui_app *app, tide_tui_pane pane) {
    if (pane == TIDE_TUI_PANE_GANTT) return app->scene.rows != NULL ? app->scene.rows->n : 0;
    return tide_tui_pane_rows(&app->scene, pane);
}

static void say_selection(const tide_tui_app *app, const tide_text *selection, tide_text *out) {
    const tide_tui_pane pane = app->st.focus;
    const size_t n = pane == TIDE_TUI_PANE_EXPLAIN ? 0 : rows_of(app, pane);
    begin_sentence(out);
    if (selection->len == 0) {
        const bool busy = app->scene.busy[pane][0] != 0, has_error = app->scene.error[pane][0] != 0;
        tide_text_addf(out, "%s: ", tide_tui_pane_name(pane));
        tide_tui_add_clean(out, busy        ? app->scene.busy[pane]
                                : has_error ? app->scene.error[pane]
                                            : "nothing is selected");
        return;
    }
    if (n > 0) {
        const size_t row = pane == TIDE_TUI_PANE_GANTT ? app->st.row : tide_tui_pane_row(&app->scene, pane);
        tide_text_addf(out, "%zu of %zu: ", row + 1, n);
    }
    tide_text_add(out, tide_text_str(selection));
}

static void say_view(const tide_tui_app *app, tide_text *out) {
    tide_tui_pane panes[TIDE_TUI_N_PANES];
    const int n = tide_tui_preset_panes(app->st.preset, panes);
    begin_sentence(out);
    tide_text_addf(out, "view %s:", tide_tui_preset_name(app->st.preset));
    for (int i = 0; i < n; i++) tide_text_addf(out, "%s %s", i > 0 ? "," : "", tide_tui_pane_name(panes[i]));
}

static void say_range(const tide_tui_app *app, tide_text *out) {
    const tide_tui_range_facts *r = &app->scene.range;
    char peak[32], left[32];
    say_span(app, "range", app->st.range_begin, app->st.range_end, out);
    if (!r->known) return;
    tide_text_addf(out, ": at most %s, %zu made, %zu freed, %zu left with %s",
                   tide_format_bytes(r->peak_bytes, peak, sizeof peak), r->n_allocs, r->n_frees, r->n_left,
                   tide_format_bytes(r->left_bytes, left, sizeof left));
}

/// What part of the map's addresses, which lie end to end, is in view.
static void say_addresses(const tide_tui_app *app, tide_text *out) {
    const int64_t lo = app->st.space_lo, hi = app->st.space_hi;
    char from[32], to[32];
    begin_sentence(out);
    if (lo == hi) {
        tide_text_add(out, "all addresses");
    } else {
        tide_text_addf(out, "addresses %s to %s", tide_format_bytes((uint64_t)lo, from, sizeof from),
                       tide_format_bytes((uint64_t)hi, to, sizeof to));
    }
}

static const char *question_of(tide_tui_prompt prompt) {
    switch (prompt) {
    case TIDE_TUI_PROMPT_SEARCH:
        return "search for (a regular expression; empty ends)?";
    case TIDE_TUI_PROMPT_FILTER:
        return "filter (conditions; empty takes the last one off)?";
    case TIDE_TUI_PROMPT_GOTO:
        return "go to (step, time, event or name)?";
    case TIDE_TUI_PROMPT_NOTE:
        return "text of the mark (may be empty)?";
    default:
        return "command?";
    }
}

/// What an overlay says, line by line.
static void say_overlay(const tide_tui_app *app, tide_text *out) {
    char value[64];
    switch (app->st.overlay) {
    case TIDE_TUI_OVERLAY_HELP:
        tide_tui_print_keys(false, out);
        break;
    case TIDE_TUI_OVERLAY_SETUP:
        for (int i = 0; i < TIDE_TUI_N_SETTINGS; i++) {
            const tide_tui_setting s = (tide_tui_setting)i;
            tide_text_addf(out, "%s%s: %s (%s)\n", i == app->st.overlay_row ? "selected: " : "",
                           tide_tui_setting_name(s), tide_tui_setting_value(&app->st, s, value, sizeof value),
                           tide_tui_setting_what(s));
        }
        break;
    default: {
        const char *text = app->scene.overlay_text != NULL ? app->scene.overlay_text : "";
        for (size_t n; *text != 0; text += n + (text[n] == '\n')) {
            n = strcspn(text, "\n");
            char *line = tide_host_strndup(text, n);
            tide_tui_add_clean(out, line != NULL ? line : "");
            tide_text_add(out, "\n");
            out->failed |= line == NULL;
            tide_host_free(line);
        }
        break;
    }
    }
}

static void say_message(const tide_tui_app *app, tide_text *out) {
    if (app->st.message[0] == 0) return;
    begin_sentence(out);
    if (app->st.message_is_error) tide_text_add(out, "error: ");
    tide_tui_add_clean(out, app->st.message);
}

/// One line for everything that differs.
static void say_changes(const tide_tui_app *app, const snapshot *was, const snapshot *is, tide_text *out) {
    const bool other_rows = was->n_rows != is->n_rows || was->sort != is->sort || was->reverse != is->reverse ||
                            was->group != is->group || was->n_filters != is->n_filters ||
                            was->filters_off != is->filters_off;
    const bool other_moment = was->cursor != is->cursor || was->cursor_event != is->cursor_event;
    const bool other_focus = was->focus != is->focus;
    const bool other_selection = strcmp(tide_text_str(&was->selection), tide_text_str(&is->selection)) != 0;
    say_message(app, out);
    if (was->preset != is->preset) say_view(app, out);
    if (other_focus) {
        begin_sentence(out);
        tide_text_addf(out, "pane %s: %s", tide_tui_pane_name(is->focus), tide_tui_pane_what(is->focus));
    }
    if (was->window.begin != is->window.begin || was->window.end != is->window.end) {
        say_span(app, "window", is->window.begin, is->window.end, out);
    }
    if (was->space_lo != is->space_lo || was->space_hi != is->space_hi) say_addresses(app, out);
    if (other_moment) {
        begin_sentence(out);
        tide_tui_speak_moment(&app->scene, out);
    }
    if (is->shows_range &&
        (!was->shows_range || was->range_begin != is->range_begin || was->range_end != is->range_end)) {
        say_range(app, out);
    } else if (was->shows_range && !is->shows_range) {
        begin_sentence(out);
        tide_text_add(out, "no range");
    }
    if (other_rows) say_rows(app, out);
    if (was->n_stack_rows != is->n_stack_rows && is->focus == TIDE_TUI_PANE_STACKS && !other_focus) {
        begin_sentence(out);
        tide_text_addf(out, "%zu rows of calls", is->n_stack_rows);
    }
    if (other_selection || other_focus) say_selection(app, &is->selection, out);
    if (is->prompt != TIDE_TUI_PROMPT_NONE) {
        begin_sentence(out);
        tide_text_add(out, question_of(is->prompt));
        if (app->st.text[0] != 0) {
            tide_text_add(out, " ");
            tide_tui_add_clean(out, app->st.text);
        }
    }
    if (out->len == 0) tide_text_add(out, "nothing has changed");
    tide_text_add(out, "\n");
}

static void say_all(const tide_tui_app *app, tide_text *out) {
    snapshot is;
    take_snapshot(app, &is);
    tide_tui_speak_moment(&app->scene, out);
    if (is.shows_range) say_range(app, out);
    say_rows(app, out);
    say_selection(app, &is.selection, out);
    tide_text_add(out, "\n");
    tide_text_deinit(&is.selection);
}

static void say_hello(const tide_tui_app *app, tide_text *out) {
    const tide_subject_facts *f = app->scene.a;
    char peak[32];
    tide_tui_add_clean(out, f->title);
    tide_text_addf(out, ". Peak %s at ", tide_format_bytes(f->peak_bytes, peak, sizeof peak));
    say_time(app, f->peak.t, out);
    tide_text_addf(out, ", %" PRIu64 " %s", f->n_items, f->is_trace ? "blocks" : "tensors");
    say_view(app, out);
    say_message(app, out);
    tide_text_add(out, ". Lines are keys or commands; 'keys' tells all, 'list' the rows, 'quit' ends\n");
    say_all(app, out);
}

// ---- lists ----

static void list_rows(const tide_tui_app *app, const tide_tui_sheet *sheet, size_t from, size_t n, tide_text *out) {
    for (size_t row = from; row < sheet->n_rows && row - from < n; row++) {
        tide_text_addf(out, "%zu of %zu: ", row + 1, sheet->n_rows);
        tide_tui_speak_row(sheet, row, out);
        tide_text_add(out, "\n");
    }
    (void)app;
}

/// "list", "list table", "list 20", "list pools 5".
static void list(const tide_tui_app *app, const char *arguments, tide_text *out) {
    tide_tui_pane pane = app->st.focus;
    size_t n = LIST_ROWS;
    char word[2][32] = {"", ""};
    (void)sscanf(arguments, "%31s %31s", word[0], word[1]);
    for (int k = 0; k < 2; k++) {
        char *end;
        const unsigned long count = strtoul(word[k], &end, 10);
        if (word[k][0] >= '0' && word[k][0] <= '9' && *end == 0) n = count;
        for (int i = 0; i < TIDE_TUI_N_PANES; i++) {
            if (strcmp(word[k], tide_tui_pane_name((tide_tui_pane)i)) == 0) pane = (tide_tui_pane)i;
        }
    }
    tide_tui_sheet sheets[TIDE_TUI_MAX_SHEETS];
    const size_t n_sheets = tide_tui_sheets_of(&app->scene, pane, sheets);
    size_t n_all = 0;
    for (size_t i = 0; i < n_sheets; i++) {
        const size_t row = pane == TIDE_TUI_PANE_GANTT     ? app->st.row
                           : pane == TIDE_TUI_PANE_EXPLAIN ? 0
                                                           : tide_tui_pane_row(&app->scene, pane);
        if (n_sheets > 1 && sheets[i].n_rows > 0)
            tide_text_addf(out, "%s, %s:\n", tide_tui_pane_name(pane), sheets[i].name);
        list_rows(app, &sheets[i], i == 0 && row < sheets[i].n_rows ? row : 0, n, out);
        n_all += sheets[i].n_rows;
    }
    if (n_all > 0) return;
    const bool shown = app->layout.panes[pane].w > 0;
    tide_text_addf(out, "%s: %s\n", tide_tui_pane_name(pane),
                   !shown                           ? "not in this view"
                   : app->scene.error[pane][0] != 0 ? app->scene.error[pane]
                                                    : "nothing");
}

// ---- lines ----

static bool is_word(const char *line, const char *word) {
    const size_t n = strlen(word);
    return strncmp(line, word, n) == 0 && (line[n] == 0 || line[n] == ' ');
}

/// Into the prompt that is open, and Enter.
static unsigned answer_prompt(tide_tui_app *app, const char *line) {
    uint32_t cp;
    for (size_t n; (n = tide_utf8_decode(line, &cp)) > 0; line += n) {
        if (cp != TIDE_UTF8_BAD && !tide_utf8_is_control(cp)) (void)tide_tui_app_key(app, cp);
    }
    return tide_tui_app_key(app, TIDE_TUI_KEY_ENTER);
}

/// Names of commands go before labels of keys; both are what the help says.
static unsigned do_line(tide_tui_app *app, const char *line) {
    if (app->st.prompt != TIDE_TUI_PROMPT_NONE) return answer_prompt(app, line);
    const uint32_t key = tide_tui_key_named(line);
    const bool is_command = line[0] == ':' && line[1] != 0;
    const bool is_key = key != 0 && tide_tui_action_named(line) == TIDE_TUI_NOTHING;
    if (is_key && !is_command) return tide_tui_app_key(app, key);
    return tide_tui_app_line(app, line);
}

static tide_status run_line(tide_tui_app *app, const char *line, tide_text *out, bool *leave, tide_error *err) {
    const bool asks = app->st.prompt != TIDE_TUI_PROMPT_NONE;
    if (!asks && (line[0] == 0 || is_word(line, "where"))) {
        say_all(app, out);
        return TIDE_OK;
    }
    if (!asks && is_word(line, "list")) {
        list(app, line + strlen("list"), out);
        return TIDE_OK;
    }
    if (!asks && is_word(line, "keys")) {
        tide_tui_print_keys(false, out);
        return TIDE_OK;
    }
    snapshot was, is;
    take_snapshot(app, &was);
    *leave = (do_line(app, line) & TIDE_TUI_LEAVE) != 0;
    const tide_status st = tide_tui_app_look(app, err);
    if (st == TIDE_OK && !*leave) {
        take_snapshot(app, &is);
        if (is.overlay != TIDE_TUI_OVERLAY_NONE && is.overlay != TIDE_TUI_OVERLAY_SETUP) {
            say_overlay(app, out); // printed at once: there is nothing to scroll
            app->st.overlay = TIDE_TUI_OVERLAY_NONE;
        } else if (is.overlay == TIDE_TUI_OVERLAY_SETUP) {
            say_overlay(app, out);
        } else {
            say_changes(app, &was, &is, out);
        }
        tide_text_deinit(&is.selection);
    }
    tide_text_deinit(&was.selection);
    return st;
}

/// A line without its end; what is longer than the buffer is passed over. False: there is no more.
static bool read_line(FILE *in, char *line, size_t bytes) {
    if (fgets(line, (int)bytes, in) == NULL) return false;
    size_t n = strlen(line);
    if (n > 0 && line[n - 1] != '\n') {
        for (int c = fgetc(in); c != '\n' && c != EOF; c = fgetc(in)) {
        }
    }
    while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r')) line[--n] = 0;
    return true;
}

static tide_status flush(tide_text *text, FILE *out, tide_error *err) {
    const bool ok = !text->failed && fputs(tide_text_str(text), out) >= 0 && fflush(out) == 0;
    const bool failed = text->failed;
    tide_text_deinit(text);
    if (ok) return TIDE_OK;
    return failed ? TIDE_NO_MEMORY(err, "for a line") : TIDE_FAIL(err, TIDE_ERR_WRITE, "cannot write");
}

tide_status tide_tui_linear(const tide_tui_session *session, const tide_tui_options *opt, FILE *in, FILE *out,
                            tide_error *err) {
    tide_tui_app *app;
    char line[MAX_LINE];
    tide_text text = {0};
    bool leave = false;
    TIDE_TRY(tide_tui_app_open(session, opt, WIDTH, HEIGHT, false, &app, err));
    tide_status st = tide_tui_app_look(app, err);
    if (st == TIDE_OK) {
        say_hello(app, &text);
        st = flush(&text, out, err);
    }
    while (st == TIDE_OK && !leave && read_line(in, line, sizeof line)) {
        st = run_line(app, line, &text, &leave, err);
        if (st == TIDE_OK) st = flush(&text, out, err);
    }
    if (st == TIDE_OK) st = tide_tui_app_save(app, err);
    tide_text_deinit(&text);
    tide_tui_app_close(app);
    return st;
}
