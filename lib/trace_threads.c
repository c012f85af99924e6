// SPDX-License-Identifier: MIT
//
// The number of a thread, in libtidemark-trace.so. Numbers are given out in one place in a process, tide_thread_id of
// libtidemark-record.so: here the copy that core/memory/thread_number.h looks at stays 0, so that it is asked each
// time.
#include "core/memory/thread_number.h"

_Thread_local uint32_t tide__thread_number_cache __attribute__((tls_model("initial-exec")));
