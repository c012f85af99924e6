// SPDX-License-Identifier: MIT
//
// What programs that were killed while they began to record left beside a trace: files in the making, which nobody will
// ever finish. See store.h.
//
//     <trace>.feed-<pid>-<n>.new
//
// (A trace in the making is core/base/output's to take away.)
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiler/feed/format.h"
#include "profiler/store/store.h"

/// Behind "<pid>-<n>" in `text`, and the pid; NULL: it does not begin so.
static const char *take_numbers(const char *text, long *pid) {
    const size_t n_pid = strspn(text, "0123456789");
    if (n_pid == 0 || n_pid > 9 || text[n_pid] != '-') return NULL;
    *pid = strtol(text, NULL, 10);
    const char *rest = text + n_pid + 1;
    const size_t n = strspn(rest, "0123456789");
    return n > 0 ? rest + n : NULL;
}

/// Whether `name` is a feed in the making of the trace `base`; of which process.
static bool is_stray(const char *name, const char *base, long *pid) {
    const size_t n = strlen(base), n_feed = strlen(TIDE__FEED_INFIX);
    if (strncmp(name, base, n) != 0 || strncmp(name + n, TIDE__FEED_INFIX, n_feed) != 0) return false;
    const char *rest = take_numbers(name + n + n_feed, pid);
    return rest != NULL && strcmp(rest, ".new") == 0;
}

void tide__store_remove_strays(const char *path) {
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const char *base = slash != NULL ? slash + 1 : path;
    const int len = slash != NULL ? (int)(slash - path) + 1 : 1;
    if (len >= (int)sizeof folder) return;
    snprintf(folder, sizeof folder, "%.*s", len, slash != NULL ? path : ".");
    DIR *dir = opendir(folder);
    if (dir == NULL) return;
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        long pid = 0;
        if (!is_stray(e->d_name, base, &pid) || pid <= 0) continue;
        if (kill((pid_t)pid, 0) != 0 && errno == ESRCH) unlinkat(dirfd(dir), e->d_name, 0);
    }
    closedir(dir);
}
