// SPDX-License-Identifier: MIT
//
// assert: what must hold where the program is right, written in the code and checked while it runs.
//
// An assertion is about the program's own state, never about what comes from outside: a file, an argument or another
// process is refused with an error. Its expression has no effect but its value. Where assertions are off it is
// compiled, so that it cannot rot, and not evaluated.
//
//     TIDE_ASSERT_LEVEL  0: off (Release)   1: on (Debug, every build with sanitizers)
//
// TIDE_ASSERT costs no more than the code around it. What walks over a whole structure is a TIDE_ASSERT_SLOW: it is
// looked at only where the tests of that unit have asked for it (tide_assert_slowly).
#ifndef TIDE_CORE_BASE_ASSERT_H
#define TIDE_CORE_BASE_ASSERT_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef TIDE_ASSERT_LEVEL
#define TIDE_ASSERT_LEVEL 0
#endif

/// Whether TIDE_ASSERT_SLOW looks; set before there are other threads. False at the start.
extern bool tide__assert_slow;
void tide_assert_slowly(bool on);

/// From any thread.
__attribute__((noreturn, cold)) static inline void tide__assert_failed(const char *what, const char *file, int line,
                                                                       const char *function) {
    fprintf(stderr, "tidemark: %s:%d: %s: this does not hold: %s\n", file, line, function, what);
    abort();
}

#if TIDE_ASSERT_LEVEL > 0
#define TIDE_ASSERT(holds)                                                                                             \
    (__builtin_expect(!!(holds), 1) ? (void)0 : tide__assert_failed(#holds, __FILE__, __LINE__, __func__))
#define TIDE_ASSERT_SLOW(holds) (tide__assert_slow ? TIDE_ASSERT(holds) : (void)0)
#else
#define TIDE_ASSERT(holds) ((void)sizeof((holds) ? 1 : 0))
#define TIDE_ASSERT_SLOW(holds) TIDE_ASSERT(holds)
#endif

#ifdef __cplusplus
}
#endif

#endif
