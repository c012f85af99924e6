// SPDX-License-Identifier: MIT
//
// The view without a screen, for pipes, documents and tests: one frame as text, one pane as JSON or CSV. State, layout,
// scene and drawing are those of the terminal. See tui.h.
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/base/nearest.h"
#include "tui/app.h"
#include "tui/pane_document.h"

tide_status tide_tui_once(const tide_tui_session *session, const tide_tui_options *opt, int width, int height,
                          tide_text *out, tide_error *err) {
    tide_tui_app *app;
    TIDE_TRY(tide_tui_app_open(session, opt, width, height, false, &app, err));
    const tide_status st = tide_tui_app_frame(app, err);
    if (st == TIDE_OK) tide_tui_grid_to_text(&app->grid, out);
    tide_tui_app_close(app);
    if (st == TIDE_OK && out->failed) return TIDE_NO_MEMORY(err, "for a frame of %dx%d cells", width, height);
    return st;
}

// ---- one pane as a document ----

/// Wide enough that nothing is left out; the curve has the columns of this size.
enum { WIDTH = 200, HEIGHT = 60 };

/// "table", or "pools.leaks": the pane and the name of one of its sheets, "" when none is named.
typedef struct pane_choice {
    tide_tui_pane pane;
    const char *sheet;
} pane_choice;

/// TIDE_ERR_INVALID with the nearest name.
static tide_status choose_pane(const char *text, pane_choice *out, tide_error *err) {
    const char *names[TIDE_TUI_N_PANES], *dot = strchr(text, '.');
    const size_t len = dot != NULL ? (size_t)(dot - text) : strlen(text);
    for (int i = 0; i < TIDE_TUI_N_PANES; i++) {
        names[i] = tide_tui_pane_name((tide_tui_pane)i);
        if (strlen(names[i]) != len || memcmp(names[i], text, len) != 0) continue;
        *out = (pane_choice){(tide_tui_pane)i, dot != NULL ? dot + 1 : ""};
        return TIDE_OK;
    }
    (void)TIDE_FAIL(err, TIDE_ERR_INVALID, "there is no pane '%s'", text);
    const char *near = tide_nearest_of(text, names, TIDE_TUI_N_PANES);
    if (near != NULL) {
        tide_error_hint(err, "did you mean '%s'?", near);
    } else {
        tide_error_hint(err,
                        "panes: curve, gantt, map, table, operators, pools, explain, compare, whatif, stacks, details");
    }
    return TIDE_ERR_INVALID;
}

/// The preset that the pane belongs to, so that what it needs is there too.
static tide_tui_preset preset_of(tide_tui_pane pane, tide_tui_preset now) {
    for (int k = 0; k < TIDE_TUI_N_PRESETS; k++) {
        const tide_tui_preset preset = (tide_tui_preset)((now + k) % TIDE_TUI_N_PRESETS);
        tide_tui_pane panes[TIDE_TUI_N_PANES];
        const int n = tide_tui_preset_panes(preset, panes);
        for (int i = 0; i < n; i++) {
            if (panes[i] == pane) return preset;
        }
    }
    return now;
}

/// The app after the options' commands, with the pane in its scene. What is wrong with the pane is the call's failure.
static tide_status open_pane(const tide_tui_session *session, const tide_tui_options *opt, tide_tui_pane pane,
                             tide_tui_app **out, tide_error *err) {
    tide_tui_app *app;
    TIDE_TRY(tide_tui_app_open(session, opt, WIDTH, HEIGHT, false, &app, err));
    app->st.preset = preset_of(pane, app->st.preset);
    app->st.focus = pane;
    app->st.overlay = TIDE_TUI_OVERLAY_NONE;
    tide_status st = tide_tui_app_look(app, err);
    if (st == TIDE_OK && app->scene.error[pane][0] != 0) {
        st = TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "cannot show the pane '%s': %s", tide_tui_pane_name(pane),
                       app->scene.error[pane]);
    }
    if (st != TIDE_OK) {
        tide_tui_app_close(app);
        return st;
    }
    *out = app;
    return TIDE_OK;
}

tide_status tide_tui_pane_json(const tide_tui_session *session, const tide_tui_options *opt, const char *pane,
                               tide_text *out, tide_error *err) {
    pane_choice choice;
    tide_tui_app *app;
    TIDE_TRY(choose_pane(pane, &choice, err));
    TIDE_TRY(open_pane(session, opt, choice.pane, &app, err));
    const tide_status st = tide__pane_write_json(&app->scene, choice.pane, out, err);
    tide_tui_app_close(app);
    return st;
}

tide_status tide_tui_pane_csv(const tide_tui_session *session, const tide_tui_options *opt, const char *pane,
                              tide_text *out, tide_error *err) {
    pane_choice choice;
    tide_tui_app *app;
    TIDE_TRY(choose_pane(pane, &choice, err));
    TIDE_TRY(open_pane(session, opt, choice.pane, &app, err));
    const tide_status st = tide__pane_write_csv(&app->scene, choice.pane, choice.sheet, out, err);
    tide_tui_app_close(app);
    return st;
}
