// SPDX-License-Identifier: MIT
//
// What the files of the app share. Private to tui/app*, tui/run.c.
#ifndef TIDE_TUI_APP_INTERNAL_H
#define TIDE_TUI_APP_INTERNAL_H

#include "tui/app.h"
#include "tui/scene/query_cache.h"

/// TIDE_ERR_INVALID for a size that cannot be drawn.
tide_status tide__app_check_size(int width, int height, tide_error *err) TIDE_NODISCARD;
/// AUTO resolved by the locale.
tide_tui_glyph_tier tide__app_glyph_tier(const tide_tui_options *opt);
/// The same for a screen, where characters beyond ASCII are not shown when the locale is not UTF-8.
tide_tui_glyph_tier tide__app_screen_tier(const tide_tui_options *opt);
/// Use the results of requests for plans, files and SQL.
void tide__app_take_results(tide_tui_app *app);
/// Some of them are there and not used yet.
bool tide__app_has_results(const tide_tui_app *app);
/// B is the app's own subject again, or the session's, after two moments of A were compared.
void tide__app_show_own_b(tide_tui_app *app);
/// Progress of these requests, in the panes that show their results.
void tide__app_show_progress(tide_tui_app *app);

// ---- app_output.c: what leaves the view ----

void tide__effect_copy(tide_tui_app *app, const char *text);
void tide__effect_export(tide_tui_app *app, const char *path);
void tide__effect_save_plan(tide_tui_app *app, const char *path);
void tide__effect_batch(tide_tui_app *app);

// ---- app_requests.c: what takes long ----

void tide__effect_plan(tide_tui_app *app);
void tide__effect_open(tide_tui_app *app, const char *path);
void tide__effect_sql(tide_tui_app *app, const char *query);
void tide__effect_worst(tide_tui_app *app);

#endif
