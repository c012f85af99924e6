// SPDX-License-Identifier: MIT
//
// An assertion that failed. See assert.h.
#include "core/base/assert.h"

#include <stdio.h>
#include <stdlib.h>

void tide__assert_failed(const char *what, const char *file, int line, const char *function) {
    fprintf(stderr, "tidemark: %s:%d: %s: this does not hold: %s\n", file, line, function, what);
    abort();
}
