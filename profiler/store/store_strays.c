// SPDX-License-Identifier: MIT
//
// What programs that were killed while they began to record left beside a trace: files in the making, which nobody will
// ever finish. See store.h.
//
//     <trace>.tmp-<pid>-<n>[-wal|-shm|-journal]     a trace without its name yet
//     <trace>.feed-<pid>-<n>.new                    a feed without its name yet
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

/// Whether `name` is a file in the making of the trace `base`; of which process.
static bool is_stray(const char *name, const char *base, long *pid) {
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    const size_t n = strlen(base), n_feed = strlen(TIDE__FEED_INFIX);
    if (strncmp(name, base, n) != 0) return false;
    name += n;
    if (strncmp(name, TIDE__FEED_INFIX, n_feed) == 0) {
        const char *rest = take_numbers(name + n_feed, pid);
        return rest != NULL && strcmp(rest, ".new") == 0;
    }
    if (strncmp(name, ".tmp-", 5) != 0) return false;
    const char *rest = take_numbers(name + 5, pid);
    for (size_t i = 0; rest != NULL && i < sizeof ends / sizeof ends[0]; i++)
        if (strcmp(rest, ends[i]) == 0) return true;
    return false;
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
