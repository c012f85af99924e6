// SPDX-License-Identifier: MIT
//
// Log lines. See log.h.
#include "core/base/log.h"

#include <stdio.h>

static tide_log_fn sink;
static void *sink_ctx;
static tide_log_level sink_level;

void tide_log_set(tide_log_fn fn, void *ctx, tide_log_level max_level) {
    sink = fn;
    sink_ctx = ctx;
    sink_level = max_level;
}

void tide_log_get(tide_log_fn *fn, void **ctx, tide_log_level *max_level) {
    if (fn != NULL) *fn = sink;
    if (ctx != NULL) *ctx = sink_ctx;
    if (max_level != NULL) *max_level = sink_level;
}

bool tide_log_enabled(tide_log_level level) { return sink != NULL && level <= sink_level; }

void tide_log(tide_log_level level, const char *fmt, ...) {
    if (!tide_log_enabled(level)) return;
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    sink(sink_ctx, level, line);
}
