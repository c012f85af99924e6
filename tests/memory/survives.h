// SPDX-License-Identifier: MIT
//
// Does a process live that touches a byte? For tests of what AddressSanitizer bars.
#ifndef TIDE_TESTS_MEMORY_SURVIVES_H
#define TIDE_TESTS_MEMORY_SURVIVES_H

#include <sys/wait.h>
#include <unistd.h>

#include "tests/tide_test.h"

/// How a child ends that reads one byte: true when it lived.
static inline bool survives_reading(const volatile unsigned char *byte) {
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (freopen("/dev/null", "w", stderr) == NULL) _exit(3);
        (void)*byte;
        _exit(0);
    }
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    return WIFEXITED(how) && WEXITSTATUS(how) == 0;
}

#endif
