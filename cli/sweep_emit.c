// SPDX-License-Identifier: MIT
//
// Text by the width and letters of the terminal, files by their ending. See sweep_emit.h.
#include "cli/sweep_emit.h"

#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/base/output.h"
#include "reports/sweep.h"

bool cli_sweep_outs_good(const cli_command *cmd, const cli_sweep_options *o) {
    tide_error err = TIDE_ERROR_INIT;
    tide_report_format format;
    for (size_t i = 0; i < o->n_outs; i++) {
        if (tide_report_format_of_path(o->outs[i], &format, &err) != TIDE_OK) {
            cli_print_error(&err);
            return false;
        }
        for (size_t k = 0; k < o->n_files; k++) {
            if (!cli_same_file(o->files[k], o->outs[i])) continue;
            cli_usage(cmd, "-o: '%s' is an input; it would be replaced", o->outs[i]);
            return false;
        }
    }
    return true;
}

/// $COLUMNS, or what the terminal says, or 80.
static unsigned width_of_output(void) {
    const char *columns = getenv("COLUMNS");
    const long given = columns != NULL ? strtol(columns, NULL, 10) : 0;
    struct winsize size;
    if (given > 0 && given < 10000) return (unsigned)given;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
    return 80;
}

static tide_status write_file(const char *path, const tide_sweep *s, tide_error *err) {
    tide_report_format format;
    tide_text text = {0};
    TIDE_TRY(tide_report_format_of_path(path, &format, err));
    tide_status st = tide_report_sweep(s, format, NULL, &text, err);
    if (st == TIDE_OK) st = tide_write_file(path, tide_text_str(&text), text.len, err);
    tide_text_deinit(&text);
    return st;
}

tide_status cli_sweep_emit(const cli_sweep_options *o, const tide_sweep *s, tide_error *err) {
    for (size_t i = 0; i < o->n_outs; i++) TIDE_TRY(write_file(o->outs[i], s, err));
    const tide_sweep_paper paper = {.width = width_of_output(), .ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0};
    tide_text text = {0};
    const tide_status st = tide_report_sweep(s, o->json ? TIDE_REPORT_JSON : TIDE_REPORT_TEXT, &paper, &text, err);
    if (st == TIDE_OK) fwrite(tide_text_str(&text), 1, text.len, stdout);
    tide_text_deinit(&text);
    return st;
}
