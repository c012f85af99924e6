// SPDX-License-Identifier: MIT
//
// One frame as text, for pipes, documents and tests: state, layout, scene and drawing are those of the terminal. See
// tui.h.
#include "tui/app.h"

tide_status tide_tui_once(const tide_tui_session *session, const tide_tui_options *opt, int width, int height,
                          tide_text *out, tide_error *err) {
    tide_tui_app *app;
    TIDE_TRY(tide_tui_app_open(session, opt, width, height, false, &app, err));
    const tide_status st = tide_tui_app_frame(app, err);
    if (st == TIDE_OK) tide_tui_grid_to_text(&app->grid, out);
    tide_tui_app_close(app);
    if (st == TIDE_OK && out->failed)
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for a frame of %dx%d cells", width, height);
    return st;
}
