// SPDX-License-Identifier: MIT
//
// See symbols.h.
#include "cli/symbols.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/cli.h"
#include "core/base/module.h"

static tide_status open_plugin(const tide_symbols_plugin **out, tide_error *err) {
    static const tide_module module = {
        .file = TIDE_SYMBOLS_PLUGIN_FILE, .variable = "TIDEMARK_SYMBOLS", .symbol = TIDE_SYMBOLS_PLUGIN_SYMBOL};
    void *entry = NULL;
    TIDE_TRY(tide_module_open(&module, &entry, err));
    tide_symbols_plugin_get get;
    *(void **)&get = entry;
    *out = get();
    if ((*out)->version == TIDE_SYMBOLS_PLUGIN_VERSION) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "the plug-in for symbols is of another version of tidemark");
}

tide_status cli_symbols_name(const char *path, tide_symbols_report *out, tide_error *err) {
    const tide_symbols_plugin *plugin;
    *out = (tide_symbols_report){0};
    const tide_status st = open_plugin(&plugin, err);
    if (st == TIDE_OK) return tide_trace_name_frames(path, plugin, out, err);
    tide_error_prefix(err, "call stacks have no names");
    tide_error_hint(err, "it is " TIDE_SYMBOLS_PLUGIN_FILE ", built where cmake finds libdw (libdw-dev), beside the "
                         "program or where $TIDEMARK_SYMBOLS says; tidemark trace FILE --symbols names them later");
    if (err != NULL) err->status = TIDE_ERR_NOT_FOUND;
    return TIDE_ERR_NOT_FOUND;
}

void cli_symbols_print(const tide_symbols_report *r) {
    char clean[1024];
    if (r->n_refused > 0)
        fprintf(stderr, "note: functions of %" PRIu64 " file%s have no names: %s\n", r->n_refused,
                r->n_refused == 1 ? "" : "s", cli_clean(r->refused, clean, sizeof clean));
}
