// SPDX-License-Identifier: MIT
//
// One pane without a screen. See pane_document.h.
#include "tui/pane_document.h"
#include "core/base/nearest.h"

#include <string.h>

/// Wide enough that nothing is left out; the curve is told in the columns that it has then.
enum { WIDTH = 200, HEIGHT = 60 };

tide_status tide__pane_choose(const char *text, tide__pane_choice *out, tide_error *err) {
    const char *names[TIDE_TUI_N_PANES], *dot = strchr(text, '.');
    const size_t len = dot != NULL ? (size_t)(dot - text) : strlen(text);
    for (int i = 0; i < TIDE_TUI_N_PANES; i++) {
        names[i] = tide_tui_pane_name((tide_tui_pane)i);
        if (strlen(names[i]) != len || memcmp(names[i], text, len) != 0) continue;
        *out = (tide__pane_choice){(tide_tui_pane)i, dot != NULL ? dot + 1 : ""};
        return TIDE_OK;
    }
    (void)TIDE_FAIL(err, TIDE_ERR_INVALID, "there is no pane '%s'", text);
    const char *near = tide_nearest_of(text, names, TIDE_TUI_N_PANES);
    if (near != NULL) {
        tide_error_hint(err, "did you mean '%s'?", near);
    } else {
        tide_error_hint(err, "panes: curve, gantt, map, table, operators, pools, explain, compare, whatif, details");
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

tide_status tide__pane_open(const tide_tui_session *session, const tide_tui_options *opt, tide_tui_pane pane,
                            tide_tui_app **out, tide_error *err) {
    tide_tui_app *app;
    TIDE_TRY(tide_tui_app_open(session, opt, WIDTH, HEIGHT, false, &app, err));
    app->st.preset = preset_of(pane, app->st.preset);
    app->st.focus = pane;
    app->st.overlay = TIDE_TUI_OVERLAY_NONE;
    tide_status st = tide_tui_app_look(app, err);
    if (st == TIDE_OK && app->scene.trouble[pane][0] != 0) {
        st = TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "cannot show the pane '%s': %s", tide_tui_pane_name(pane),
                       app->scene.trouble[pane]);
    }
    if (st != TIDE_OK) {
        tide_tui_app_close(app);
        return st;
    }
    *out = app;
    return TIDE_OK;
}
