// SPDX-License-Identifier: MIT
//
// Log lines. See log.h.
#include "core/base/log.h"

#include <stdio.h>

static void to_standard_error(void *ctx, tide_log_level level, const char *line) {
    (void)ctx, (void)level;
    fprintf(stderr, "tidemark: %s\n", line);
}

static tide_log_fn sink = to_standard_error;
static void *sink_ctx;
static tide_log_level sink_level = TIDE_LOG_WARN;
static tide_message_fn messages; ///< of tide__log_set_messages

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

static void to_messages(void *ctx, tide_log_level level, const char *line) {
    (void)level;
    messages(ctx, line);
}

void tide__log_set_messages(tide_message_fn fn, void *ctx) {
    messages = fn;
    tide_log_set(fn != NULL ? to_messages : NULL, ctx, TIDE_LOG_WARN);
}
