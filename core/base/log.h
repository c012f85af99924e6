// SPDX-License-Identifier: MIT
//
// Log lines of the library: warnings and errors go to standard error, unless the program sets another sink
// (tide_set_messages for programs that link libtidemark, tide_log_set for the house).
#ifndef TIDE_CORE_BASE_LOG_H
#define TIDE_CORE_BASE_LOG_H

#include "core/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tide_log_level { TIDE_LOG_ERROR, TIDE_LOG_WARN, TIDE_LOG_INFO, TIDE_LOG_DEBUG } tide_log_level;

typedef void (*tide_log_fn)(void *ctx, tide_log_level level, const char *line);

/// Set the sink and the highest level it gets; NULL silences. Not thread-safe against running log calls: set it
/// before the work begins.
void tide_log_set(tide_log_fn fn, void *ctx, tide_log_level max_level);
/// The sink that is set, for a sink that takes its place for a while; any of them may be NULL.
void tide_log_get(tide_log_fn *fn, void **ctx, tide_log_level *max_level);
/// What tide_set_messages does, in this copy of the library (lib/record_front.c has two to tell).
void tide__log_set_messages(tide_message_fn fn, void *ctx);
/// True when a line of `level` would reach the sink: guards work that only a log line needs.
bool tide_log_enabled(tide_log_level level);
void tide_log(tide_log_level level, const char *fmt, ...) TIDE_PRINTF(2, 3);

#ifdef __cplusplus
}
#endif
#endif
