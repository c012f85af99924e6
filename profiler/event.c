// SPDX-License-Identifier: MIT
//
// Names of operations. See event.h.
#include "profiler/event.h"

#include <stddef.h>

const char *tide__op_name(int op) {
    switch (op) {
#define XX(name, value, text)                                                                                          \
    case (value):                                                                                                      \
        return text;
        TIDE_MEMORY_OP_MAP(XX)
        TIDE__TRACE_OP_MAP(XX)
#undef XX
    default:
        return NULL;
    }
}
