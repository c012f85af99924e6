// SPDX-License-Identifier: MIT
//
// Feeds of a trace, and who uses them. See reader.h.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "profiler/feed/process_stat.h"
#include "profiler/feed/reader_internal.h"

// ---- by name ----

/// "<trace>.feed-<pid>-<n>", and nothing behind it.
static bool is_feed_name(const char *name, const char *trace_name) {
    const size_t n = strlen(trace_name);
    if (strncmp(name, trace_name, n) != 0) return false;
    name += n;
    if (strncmp(name, TIDE__FEED_INFIX, strlen(TIDE__FEED_INFIX)) != 0) return false;
    name += strlen(TIDE__FEED_INFIX);
    const size_t pid_digits = strspn(name, "0123456789");
    if (pid_digits == 0 || name[pid_digits] != '-') return false;
    name += pid_digits + 1;
    const size_t n_digits = strspn(name, "0123456789");
    return n_digits > 0 && name[n_digits] == '\0';
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static tide_status list_dir(DIR *dir, const char *trace_path, size_t dir_len, char ***paths, size_t *n) {
    size_t cap = 0;
    for (const struct dirent *d; (d = readdir(dir)) != NULL;) {
        if (!is_feed_name(d->d_name, trace_path + dir_len)) continue;
        TIDE_TRY(tide_host_grow(paths, &cap, *n + 1, sizeof **paths));
        tide_text path = {0};
        tide_text_add_n(&path, trace_path, dir_len);
        tide_text_add(&path, d->d_name);
        if (path.failed) {
            tide_text_deinit(&path);
            return TIDE_ERR_NOMEM;
        }
        (*paths)[(*n)++] = path.data;
    }
    return TIDE_OK;
}

tide_status tide__feed_list(const char *trace_path, char ***paths, size_t *n, tide_error *err) {
    *paths = NULL;
    *n = 0;
    const char *slash = strrchr(trace_path, '/');
    const size_t dir_len = slash != NULL ? (size_t)(slash - trace_path) + 1 : 0;
    char *dir_path = dir_len > 0 ? tide_host_strndup(trace_path, dir_len) : tide_host_strdup(".");
    if (dir_path == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to look for feeds of '%s'", trace_path);
    DIR *dir = opendir(dir_path);
    const int e = errno;
    tide_host_free(dir_path);
    if (dir == NULL) return TIDE_FAIL(err, TIDE_ERR_IO, "cannot look for feeds of '%s': %s", trace_path, strerror(e));
    const tide_status st = list_dir(dir, trace_path, dir_len, paths, n);
    closedir(dir);
    if (st == TIDE_OK) {
        if (*n > 1) qsort(*paths, *n, sizeof **paths, by_name);
        return TIDE_OK;
    }
    for (size_t i = 0; i < *n; i++) tide_host_free((*paths)[i]);
    tide_host_free(*paths);
    *paths = NULL;
    *n = 0;
    return TIDE_FAIL(err, st, "no memory to look for feeds of '%s'", trace_path);
}

// ---- who uses it ----

tide__lock_state tide__feed_lock_state(int fd, int byte) {
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    if (fcntl(fd, F_OFD_GETLK, &l) != 0) return TIDE__LOCK_UNKNOWN;
    return l.l_type == F_UNLCK ? TIDE__LOCK_FREE : TIDE__LOCK_HELD;
}

/// Whether this boot and this process's view of pids are those of the producer.
static bool is_same_world(const tide__feed_header *h) {
    struct stat st;
    if (h->pid_namespace == 0 || stat("/proc/self/ns/pid", &st) != 0) return false;
    return (uint64_t)st.st_ino == h->pid_namespace;
}

static bool is_other_boot(const tide__feed_header *h) {
    char *text;
    size_t len;
    if (tide_read_file("/proc/sys/kernel/random/boot_id", 0, &text, &len, NULL) != TIDE_OK) return false;
    text[strcspn(text, "\n")] = '\0';
    const bool is_other = h->boot_id[0] != '\0' && strncmp(text, h->boot_id, sizeof h->boot_id) != 0;
    tide_host_free(text);
    return is_other;
}

/// Whether a process of that pid runs that began when the producer did. Not known: true.
static bool is_running(const tide__feed_header *h) {
    char path[48];
    snprintf(path, sizeof path, "/proc/%" PRIu32 "/stat", h->pid);
    uint64_t ticks;
    char state;
    if (access("/proc/self/stat", R_OK) != 0) return true;
    // Without memory or files of our own to look closer, one that is there is believed.
    if (!tide__process_stat(path, &state, &ticks)) return access(path, F_OK) == 0;
    return state != 'Z' && state != 'X' && (h->start_ticks == 0 || ticks == h->start_ticks);
}

static bool producer_is_there(const tide__feed_reader *r) {
    const tide__lock_state lock = tide__feed_lock_state(r->file.fd, TIDE__FEED_LOCK_PRODUCER);
    if (lock == TIDE__LOCK_FREE || is_other_boot(r->head)) return false;
    // A process that the producer forked may hold the lock for it.
    return !is_same_world(r->head) || is_running(r->head);
}

bool tide__feed_reader_producer_lives(const tide__feed_reader *r) {
    if (atomic_load_explicit(&r->head->state, memory_order_acquire) != TIDE__FEED_OPEN) return false;
    return producer_is_there(r);
}

bool tide__feed_is_in_use(const char *path) {
    tide__feed_reader *r;
    if (tide__feed_reader_open(path, true, &r, NULL) != TIDE_OK) return false;
    const bool is_drained = tide__feed_lock_state(r->file.fd, TIDE__FEED_LOCK_DRAIN) == TIDE__LOCK_HELD;
    const bool is_used = is_drained || producer_is_there(r);
    tide__feed_reader_close(r, false);
    return is_used;
}
