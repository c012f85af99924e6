// SPDX-License-Identifier: MIT
//
// status: how every function of tidemark says that something went wrong.
//
// A function that can fail returns a tide_status and takes an optional tide_error as its last parameter. The
// status is for programs, the error is for people: what happened (msg), in which input (where), why (note) and
// what to do (hint). The command line prints the four as `error:`, `-->`, `note:` and `hint:`.
//
// What holds in all headers of this folder, unless a function says otherwise:
//
//     units       sizes in bytes, times in nanoseconds of CLOCK_MONOTONIC, intervals half-open
//     ownership   pointers are borrowed until the call returns, and not NULL. *owned*: the caller gives it back, with
//                 the function that is named. *taken*: it is tidemark's from then on
//     results     what an `out` parameter points to counts only after TIDE_OK
//     errors      by the returned status. Memory that runs out is TIDE_ERR_NOMEM everywhere; nothing ends the process.
//                 What no call can return (a disk that is full while a program is recorded) is one line on standard
//                 error, or where tide_set_messages says
//     threads     any thread may call. Allocators, blocks and a recorder take calls of several threads at once; all
//                 else is used by one at a time
//     costs       a call that says nothing of its cost takes the same short time whatever it is given
#ifndef TIDEMARK_STATUS_H
#define TIDEMARK_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

/// A warning of the compiler for a result that is not looked at.
#if defined(__GNUC__)
#define TIDE_NODISCARD __attribute__((warn_unused_result))
#else
#define TIDE_NODISCARD
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

/// TIDE_OK (0) or why not: TIDE_ERR_INVALID, TIDE_ERR_NOMEM, … of the list.
typedef enum tide_status {
#define XX(name, value, text) TIDE_##name = (value),
    TIDE_STATUS_MAP(XX)
#undef XX
} tide_status;

/// What went wrong, for people. The caller's, 1.5 KiB, and nothing in it is to be freed. Filled by the function that
/// failed; after TIDE_OK it means nothing. NULL is allowed wherever one is asked for.
typedef struct tide_error {
    tide_status status;
    int line;         ///< source line that reported, for bug reports
    const char *file; ///< source file that reported; static text
    char msg[512];    ///< what; never empty once status != TIDE_OK
    char where[384];  ///< place in the input: file, node, byte offset, line:column; empty when there is none
    char note[384];   ///< why; may be empty
    char hint[256];   ///< what to do; may be empty
} tide_error;

/// `tide_error err = TIDE_ERROR_INIT;`: nothing has failed.
#ifdef __cplusplus
#define TIDE_ERROR_INIT                                                                                                \
    {}
#else
#define TIDE_ERROR_INIT                                                                                                \
    { 0 }
#endif

/// The identifier of `st` as scripts see it, for example "ERR_NOMEM"; "ERR_?" for a value outside the list. Static
/// text.
const char *tide_status_name(tide_status st);
/// The sentence of `st`, for example "out of memory". Static text.
const char *tide_status_text(tide_status st);

/// Gets a line without its end, about something that no call can return. Any thread; it must not call tidemark.
typedef void (*tide_message_fn)(void *ctx, const char *line);
/// Where such lines go; NULL: nowhere. "tidemark: LINE" on standard error when it was never called. Call it before the
/// other functions, from one thread.
void tide_set_messages(tide_message_fn fn, void *ctx);

#ifdef __cplusplus
}
#endif
#endif
