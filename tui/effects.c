// SPDX-License-Identifier: MIT
//
// From an effect to what does it. See app_internal.h.
#include "tui/app_internal.h"
#include "tui/state/state_file.h"

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
    } else if (tide_tui_desk_set_text(app->desk, tide_text_str(&list), &err) != TIDE_OK) {
        tide_tui_say(&app->st, true, "%s", err.msg);
    } else {
        app->st.overlay = TIDE_TUI_OVERLAY_MESSAGE;
        app->st.overlay_top = 0;
        app->st.message_is_error = false;
    }
    tide_text_deinit(&list);
}

static void cancel(tide_tui_app *app) {
    tide__desk_cancel(app->desk);
    tide_tui_say(&app->st, false, "cancelled");
}

void tide__app_effect(tide_tui_app *app, const tide_tui_result *r) {
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
