// SPDX-License-Identifier: MIT
//
// Making errors: what fills a tide_error, and how a failure is handed on. The types are public (tidemark/status.h).
#ifndef TIDE_CORE_BASE_STATUS_H
#define TIDE_CORE_BASE_STATUS_H

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "tidemark/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TIDE_PRINTF(fmt_i, arg_i) __attribute__((format(printf, fmt_i, arg_i)))
#define TIDE_UNUSED __attribute__((unused))
#else
#define TIDE_PRINTF(fmt_i, arg_i)
#define TIDE_UNUSED
#endif

/// TIDE_ERR_NOMEM for ENOMEM, else `otherwise`: a file may fail to open because memory ran out.
static inline tide_status tide_status_of_errno(int number, tide_status otherwise) {
    return number == ENOMEM ? TIDE_ERR_NOMEM : otherwise;
}

/// Fill `err` (if not NULL; clears where, note and hint) and return `st`. Use through TIDE_FAIL.
tide_status tide_fail_at(tide_error *err, tide_status st, const char *file, int line, const char *fmt, ...)
    TIDE_PRINTF(5, 6);
/// Set or refine the parts of an error that is already filled; no-ops on NULL.
void tide_error_where(tide_error *err, const char *fmt, ...) TIDE_PRINTF(2, 3);
void tide_error_note(tide_error *err, const char *fmt, ...) TIDE_PRINTF(2, 3);
void tide_error_hint(tide_error *err, const char *fmt, ...) TIDE_PRINTF(2, 3);
/// Put `prefix: ` before the message, cutting its end when it no longer fits.
void tide_error_prefix(tide_error *err, const char *fmt, ...) TIDE_PRINTF(2, 3);
void tide_error_clear(tide_error *err);

#define TIDE_FAIL(err, st, ...) tide_fail_at((err), (st), __FILE__, __LINE__, __VA_ARGS__)
#define TIDE_TRY(expr)                                                                                                 \
    do {                                                                                                               \
        const tide_status try_st_ = (expr);                                                                            \
        if (try_st_ != TIDE_OK) return try_st_;                                                                        \
    } while (0)
#define TIDE_TRY_OR(label, st, expr)                                                                                   \
    do {                                                                                                               \
        (st) = (expr);                                                                                                 \
        if ((st) != TIDE_OK) goto label;                                                                               \
    } while (0)

#ifdef __cplusplus
}
#endif
#endif
