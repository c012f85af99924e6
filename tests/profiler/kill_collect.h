// SPDX-License-Identifier: MIT
//
// kill collect: the collector of a test program that starts itself as one ("PROGRAM collect TRACE ...").
#ifndef TIDE_TESTS_KILL_COLLECT_H
#define TIDE_TESTS_KILL_COLLECT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/collector.h"

/// main of the collector: what a recorder that was told to use a process runs.
static inline int kill_collect(int argc, char **argv) {
    static const char *const forms[] = {"auto", "rows", "chunks"};
    tide_collector_options opt = {.ready_fd = -1};
    tide_error err = TIDE_ERROR_INIT;
    for (int i = 2; i < argc; i++) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(name, "--attached-late") == 0) {
            opt.attached_late = true;
        } else if (strcmp(name, "--quiet") == 0) {
            opt.quiet = true;
        } else if (name[0] != '-') {
            opt.path = name;
        } else {
            const unsigned long long n = strtoull(value, NULL, 10);
            if (strcmp(name, "--max-bytes") == 0)
                opt.max_bytes = n;
            else if (strcmp(name, "--batch-events") == 0)
                opt.batch_events = n;
            else if (strcmp(name, "--ready-fd") == 0)
                opt.ready_fd = (int)n;
            else if (strcmp(name, "--form") != 0)
                return 2;
            for (int f = 0; f < 3 && strcmp(name, "--form") == 0; f++)
                if (strcmp(value, forms[f]) == 0) opt.form = (tide_record_form)f;
            i++;
        }
    }
    if (opt.path == NULL) return 2;
    return tide_collect(&opt, &err) == TIDE_OK ? 0 : 1;
}

#endif
