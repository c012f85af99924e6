// SPDX-License-Identifier: MIT
//
// PyTorch programs under `tidemark record`. See torch_record.h.
#include "cli/torch_record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/recording.h"
#include "core/base/host_alloc.h"
#include "core/base/module.h"
#include "core/base/text.h"
#include "profiler/collector.h"
#include "profiler/query.h"

#define PYTHONPATH_ENV "PYTHONPATH"

/// A folder with that file in it, which Python reads at its start.
static const tide_module hooks = {.file = "python/sitecustomize.py", .variable = "TIDEMARK_PYTHON"};

static const char *const words[] = {[CLI_TORCH_MODULES] = "modules", [CLI_TORCH_OPERATORS] = "operators"};

bool cli_torch_parse(const char *text, cli_torch *out) {
    *out = text == NULL || strcmp(text, words[CLI_TORCH_MODULES]) == 0 ? CLI_TORCH_MODULES : CLI_TORCH_OPERATORS;
    return *out == CLI_TORCH_MODULES || strcmp(text, words[CLI_TORCH_OPERATORS]) == 0;
}

// ---- before the command ----

/// Ours, and behind it what the user has there.
static bool set_path(const char *folder) {
    const char *users = getenv(PYTHONPATH_ENV);
    const size_t n = strlen(folder);
    if (users == NULL || users[0] == '\0') return setenv(PYTHONPATH_ENV, folder, 1) == 0;
    if (strncmp(users, folder, n) == 0 && (users[n] == '\0' || users[n] == ':')) return true;
    tide_text both = {0};
    tide_text_addf(&both, "%s:%s", folder, users);
    const bool is_set = !both.failed && setenv(PYTHONPATH_ENV, both.data, 1) == 0;
    tide_text_deinit(&both);
    return is_set;
}

tide_status cli_torch_prepare(cli_torch what, tide_error *err) {
    // A recording around this one may have asked for it: its programs are not ours.
    if (unsetenv(TIDE_TORCH_ENV) != 0) return TIDE_NO_MEMORY(err, "for the command's environment");
    if (what == CLI_TORCH_OFF) return TIDE_OK;
    char path[4096];
    const tide_status st = cli_library_path(&hooks, path, sizeof path, err);
    if (st != TIDE_OK) {
        tide_error_prefix(err, "--torch");
        return st;
    }
    char *slash = strrchr(path, '/');
    if (slash != NULL) *slash = '\0';
    if (strchr(path, ':') != NULL)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "--torch: '%s': Python takes no path with a colon in it", path);
    const bool is_set = set_path(path) && setenv(TIDE_TORCH_ENV, words[what], 1) == 0;
    return is_set ? TIDE_OK : TIDE_NO_MEMORY(err, "for the command's environment");
}

// ---- after it ----

typedef struct summary {
    unsigned n_on, n_off;
    char on[128], off[512]; ///< of the first: "torch 1.13.0 modules", "torch 0.4: ..."
} summary;

static void take_line(const char *line, summary *s) {
    if (strncmp(line, "on ", 3) == 0) {
        if (s->n_on++ == 0) cli_clean(line + 3, s->on, sizeof s->on);
    } else if (strncmp(line, "off ", 4) == 0) {
        if (s->n_off++ == 0) cli_clean(line + 4, s->off, sizeof s->off);
    }
}

tide_status cli_torch_print(tide_trace *t, bool quiet, tide_error *err) {
    tide_text text = {0};
    summary s = {0};
    const tide_status st =
        tide_trace_sql(t, "SELECT value FROM meta WHERE key LIKE 'torch.%' ORDER BY key", "\t", 0, &text, err);
    char *rest = st == TIDE_OK ? text.data : NULL;
    while (rest != NULL && *rest != '\0') {
        char *end = strchr(rest, '\n');
        if (end != NULL) *end = '\0';
        take_line(rest, &s); // the first line is the name of the column
        rest = end != NULL ? end + 1 : NULL;
    }
    tide_text_deinit(&text);
    if (st != TIDE_OK) return st;
    if (s.n_on > 0 && !quiet)
        fprintf(stderr, "torch: %u process%s told what memory is for (%s)\n", s.n_on, s.n_on == 1 ? "" : "es", s.on);
    if (s.n_off > 0)
        fprintf(stderr, "warning: --torch: in %u process%s modules have no names, or not all: %s\n", s.n_off,
                s.n_off == 1 ? "" : "es", s.off);
    if (s.n_on + s.n_off == 0)
        fputs("warning: --torch: no process told of modules: none imported torch, or Python ignored $PYTHONPATH "
              "(python3 -E, -I, -S)\n",
              stderr);
    return TIDE_OK;
}
