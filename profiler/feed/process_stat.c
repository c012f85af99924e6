// SPDX-License-Identifier: MIT
//
// One line of /proc, by hand: the name of the program in field 2 may hold blanks and brackets. See process_stat.h.
#include "profiler/feed/process_stat.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/base/text.h"

static bool parse(const char *text, char *state, uint64_t *start_ticks) {
    const char *at = strrchr(text, ')'); // the last one ends field 2
    for (int field = 2; at != NULL && field < 22; field++) {
        at = strchr(at, ' ');
        if (at != NULL) at++;
        if (at != NULL && field == 2) *state = *at;
    }
    return at != NULL && sscanf(at, "%" SCNu64, start_ticks) == 1;
}

bool tide__process_stat(const char *path, char *state, uint64_t *start_ticks) {
    char *text;
    size_t len;
    if (tide_read_file(path, 0, &text, &len, NULL) != TIDE_OK) return false;
    const bool is_read = parse(text, state, start_ticks);
    tide_host_free(text);
    return is_read;
}
