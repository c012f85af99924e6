// SPDX-License-Identifier: MIT
//
// Log lines of the library: nothing is printed unless the host program sets a sink.
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
/// True when a line of `level` would reach the sink: guards work that only a log line needs.
bool tide_log_enabled(tide_log_level level);
void tide_log(tide_log_level level, const char *fmt, ...) TIDE_PRINTF(2, 3);

#ifdef __cplusplus
}
#endif
#endif
