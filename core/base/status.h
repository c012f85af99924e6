// SPDX-License-Identifier: MIT
//
// Status codes and the error context: how every function of tidemark says that something went wrong.
//
// A function that can fail returns a tide_status and takes an optional tide_error as its last parameter. The
// status is for programs, the error is for people: what happened (msg), in which input (where), why (note) and
// what to do (hint). The command line prints the four as `error:`, `-->`, `note:` and `hint:`.
#ifndef TIDE_CORE_BASE_STATUS_H
#define TIDE_CORE_BASE_STATUS_H

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TIDE_PRINTF(fmt_i, arg_i) __attribute__((format(printf, fmt_i, arg_i)))
#define TIDE_NODISCARD __attribute__((warn_unused_result))
#define TIDE_UNUSED __attribute__((unused))
#else
#define TIDE_PRINTF(fmt_i, arg_i)
#define TIDE_NODISCARD
#define TIDE_UNUSED
#endif

/// One list for the enum, the names and the sentences. Values are stable: scripts and trace files hold them.
#define TIDE_STATUS_MAP(XX)                                                                                            \
    XX(OK, 0, "success")                                                                                               \
    XX(ERR_INVALID, 1, "invalid argument")                                                                             \
    XX(ERR_NOMEM, 2, "out of memory")                                                                                  \
    XX(ERR_NOT_IMPLEMENTED, 3, "not implemented")                                                                      \
    XX(ERR_RUNTIME, 4, "runtime error")                                                                                \
    XX(ERR_BACKEND, 5, "backend error")                                                                                \
    XX(ERR_UNKNOWN, 6, "unknown error")                                                                                \
    XX(ERR_BAD_INPUT, 10, "bad input")                                                                                 \
    XX(ERR_IO, 11, "input/output error")                                                                               \
    XX(ERR_NOT_FOUND, 12, "not found")                                                                                 \
    XX(ERR_OVERFLOW, 13, "arithmetic overflow")                                                                        \
    XX(ERR_NO_SPACE, 14, "no space left")                                                                              \
    XX(ERR_UNKNOWN_SIZE, 15, "size unknown")                                                                           \
    XX(ERR_CYCLE, 16, "graph has a cycle")                                                                             \
    XX(ERR_VERIFY, 17, "plan failed verification")                                                                     \
    XX(ERR_INCOMPARABLE, 18, "not comparable")                                                                         \
    XX(ERR_EXISTS, 19, "already exists")                                                                               \
    XX(ERR_BUSY, 20, "still in use")                                                                                   \
    XX(ERR_CANCELLED, 21, "cancelled")                                                                                 \
    XX(ERR_WRITE, 22, "output cannot be written")

typedef enum tide_status {
#define XX(name, value, text) TIDE_##name = (value),
    TIDE_STATUS_MAP(XX)
#undef XX
} tide_status;

/// The identifier of `st` as scripts see it, for example "ERR_NOMEM"; "ERR_?" for a value outside the list.
const char *tide_status_name(tide_status st);
/// The sentence of `st`, for example "out of memory".
const char *tide_status_text(tide_status st);

/// What went wrong, for people. Owned by the caller; NULL is allowed everywhere.
typedef struct tide_error {
    tide_status status;
    int line;         ///< source line that reported, for bug reports
    const char *file; ///< source file that reported; static text
    char msg[512];    ///< what; never empty once status != TIDE_OK
    char where[384];  ///< place in the input: file, node, byte offset, line:column; empty when there is none
    char note[384];   ///< why; may be empty
    char hint[256];   ///< what to do; may be empty
} tide_error;

#define TIDE_ERROR_INIT                                                                                                \
    { 0 }

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
