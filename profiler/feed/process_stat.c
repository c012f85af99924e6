// SPDX-License-Identifier: MIT
//
// What a process is, by hand: the name of the program in field 2 of /proc/PID/stat may hold blanks and brackets, and
// what is in a foreign program must not allocate. See process_stat.h.
#include "profiler/feed/process_stat.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/host_alloc.h"
#include "core/base/text.h"

/// Where field `n` (3 or more) of /proc/PID/stat begins; NULL: there are not so many.
static const char *field_of(const char *text, int n) {
    const char *at = strrchr(text, ')'); // the last one ends field 2
    for (int field = 2; at != NULL && field < n; field++) {
        at = strchr(at, ' ');
        if (at != NULL) at++;
    }
    return at;
}

static bool parse(const char *text, char *state, uint64_t *start_ticks) {
    const char *letter = field_of(text, 3), *start = field_of(text, 22);
    if (letter != NULL) *state = *letter;
    return start != NULL && sscanf(start, "%" SCNu64, start_ticks) == 1;
}

bool tide__process_faults(const char *text, int64_t *minor, int64_t *major) {
    const char *at = field_of(text, 10);
    return at != NULL && sscanf(at, "%" SCNd64 " %*s %" SCNd64, minor, major) == 2 && *minor >= 0 && *major >= 0;
}

bool tide__process_stat(const char *path, char *state, uint64_t *start_ticks) {
    char *text;
    size_t len;
    if (tide_read_file(path, 0, &text, &len, NULL) != TIDE_OK) return false;
    const bool is_read = parse(text, state, start_ticks);
    tide_host_free(text);
    return is_read;
}

void tide__process_command(char text[TIDE__MAX_COMMAND]) {
    text[0] = '\0';
    const int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    ssize_t n = read(fd, text, TIDE__MAX_COMMAND - 1);
    close(fd);
    while (n > 0 && text[n - 1] == '\0') n--;
    for (ssize_t i = 0; i < n; i++)
        if (text[i] == '\0') text[i] = ' ';
    text[n > 0 ? n : 0] = '\0';
}

int32_t tide__process_rank(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID", "RANK"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *text = getenv(names[i]);
        if (text == NULL || text[0] < '0' || text[0] > '9') continue;
        char *end;
        errno = 0;
        const long rank = strtol(text, &end, 10);
        if (errno == 0 && *end == '\0' && rank <= INT32_MAX) return (int32_t)rank;
    }
    return -1;
}
