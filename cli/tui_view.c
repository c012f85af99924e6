// SPDX-License-Identifier: MIT
//
// The terminal view over files. See tui_view.h.
#include "cli/tui_view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/folders.h"
#include "core/base/hash.h"
#include "core/base/host_alloc.h"

// ---- terminal ----

tide_status cli_tui_need_terminal(tide_error *err) {
    const char *term = getenv("TERM");
    tide_status st = TIDE_OK;
    if (!isatty(STDOUT_FILENO)) {
        st = TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot draw here: standard output is not a terminal");
    } else if (!isatty(STDIN_FILENO)) {
        st = TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot take keys: standard input is not a terminal");
    } else if (term == NULL || *term == '\0' || strcmp(term, "dumb") == 0) {
        st = TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot draw here: this terminal (TERM=%s) cannot move its cursor",
                       term != NULL ? term : "");
    }
    if (st != TIDE_OK)
        tide_error_hint(err, "--once prints one frame as text, --linear works in lines, --pane table --csv gives data");
    return st;
}

// ---- state ----

enum { MAX_PATH = 4096 };

char *cli_tui_state_path(const char *a, const char *b) {
    char real_a[MAX_PATH], real_b[MAX_PATH] = "", folder[MAX_PATH];
    const char *xdg = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (realpath(a, real_a) == NULL || (b != NULL && realpath(b, real_b) == NULL)) return NULL;
    int n;
    if (xdg != NULL && xdg[0] == '/')
        n = snprintf(folder, sizeof folder, "%s/tidemark", xdg);
    else if (home != NULL && home[0] == '/')
        n = snprintf(folder, sizeof folder, "%s/.local/state/tidemark", home);
    else
        return NULL;
    tide_error err = TIDE_ERROR_INIT; // a view without a place for its state is as good
    if (n < 0 || (size_t)n >= sizeof folder || cli_make_folders(folder, 0700, &err) != TIDE_OK) return NULL;
    const uint64_t hash = tide_hash_text(tide_hash_text(tide_hash_text(TIDE_HASH_START, real_a), "\n"), real_b);
    tide_text path = {0};
    tide_text_addf(&path, "%s/tui-%016" PRIx64, folder, hash);
    if (path.failed) tide_text_deinit(&path);
    return path.data;
}

// ---- session ----

void cli_shell_word(const char *text, tide_text *out) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
    if (*text != '\0' && text[strspn(text, plain)] == '\0') {
        tide_text_add(out, text);
        return;
    }
    tide_text_add(out, "'");
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            tide_text_add(out, "'\\''");
        else
            tide_text_add_n(out, text, 1);
    }
    tide_text_add(out, "'");
}

static tide_status open_other(void *ctx, const char *path, tide_subject **out, tide_error *err) {
    const cli_tui_session *s = ctx;
    return cli_subject_of_file(path, s->view, out, err);
}

static tide_status export_view(void *ctx, tide_subject *a, tide_subject *b, const char *path, tide_error *err) {
    (void)ctx;
    return cli_subject_report(a, b, NULL, path, err);
}

tide_status cli_tui_session_open(const cli_view *view, const char *a, const char *b, uint64_t capacity_bytes,
                                 cli_tui_session *out, tide_error *err) {
    out->view = view;
    TIDE_TRY(cli_subject_open(a, view, &out->a, err));
    if (b != NULL) TIDE_TRY(cli_subject_open(b, view, &out->b, err));
    tide_text_add(&out->prefix, " ");
    cli_shell_word(a, &out->prefix);
    if (b != NULL) {
        tide_text_add(&out->prefix, " ");
        cli_shell_word(b, &out->prefix);
    }
    if (out->prefix.failed) return TIDE_NO_MEMORY(err, "for a command line");
    out->session = (tide_tui_session){.a = out->a.subject,
                                      .b = out->b.subject,
                                      .retable = out->a.is_model ? cli_retable : NULL,
                                      .retable_batch = out->a.is_model ? cli_retable_batch : NULL,
                                      .retable_extents = out->a.is_model ? cli_retable_extents : NULL,
                                      .retable_in_place = out->a.is_model ? cli_retable_in_place : NULL,
                                      .retable_ctx = &out->a.model,
                                      .strategy_options = cli_strategy_options(&view->planning),
                                      .capacity_bytes = capacity_bytes,
                                      .open = open_other,
                                      .export_view = export_view,
                                      .ctx = out,
                                      .batch_prefix = tide_text_str(&out->prefix)};
    return TIDE_OK;
}

void cli_tui_session_close(cli_tui_session *s) {
    cli_subject_close(&s->a);
    cli_subject_close(&s->b);
    tide_text_deinit(&s->prefix);
    *s = (cli_tui_session){0};
}
