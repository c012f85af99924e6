// SPDX-License-Identifier: MIT
//
// One frame as text, for pipes, tests and screen readers: the same drawing as on the terminal. See tui.h.
#include "tui/draw.h"
#include "tui/tui.h"

enum { MAX_ONCE_WIDTH = 2000, MAX_ONCE_HEIGHT = 2000 };

tide_status tide_tui_once(const tide_timeline *tl, const tide_tui_options *opt, int width, int height, tide_text *out,
                          tide_error *err) {
    if (width < 1 || height < 1 || width > MAX_ONCE_WIDTH || height > MAX_ONCE_HEIGHT) {
        const tide_status st =
            TIDE_FAIL(err, TIDE_ERR_INVALID, "a frame of %dx%d cells cannot be drawn", width, height);
        tide_error_hint(err, "give a size between 1x1 and %dx%d, for example 120x40", MAX_ONCE_WIDTH, MAX_ONCE_HEIGHT);
        return st;
    }
    tide_tui_grid grid = {0};
    tide_tui_model model;
    TIDE_TRY(tide_tui_model_init(&model, tl, err));
    tide_status st = tide_tui_grid_resize(&grid, width, height, err);
    if (st == TIDE_OK) {
        tide_tui_layout layout;
        tide_tui_layout_make(width, height, &layout);
        tide_tui_settle(&model, &layout);
        const tide_tui_view view = {&model, &layout, tide_tui_glyphs_of(opt != NULL && opt->ascii), &grid};
        tide_tui_draw(&view);
        tide_tui_grid_to_text(&grid, out);
        if (out->failed) st = TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for a frame of %dx%d cells", width, height);
    }
    tide_tui_grid_deinit(&grid);
    tide_tui_model_deinit(&model);
    return st;
}
