// SPDX-License-Identifier: MIT
//
// A baseline out of another revision, as `git show` gives it, and the name by which git signs. git is started as it is,
// without a shell.
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/check.h"
#include "core/base/assert.h"
#include "core/base/host_alloc.h"

extern char **environ;

static int open_memory(void) { return memfd_create("tidemark", MFD_CLOEXEC); }

static void name_of(int fd, char *path, size_t path_bytes) { snprintf(path, path_bytes, "/proc/self/fd/%d", fd); }

tide_status cli_check_memory_file(const char *data, size_t len, int *fd, char *path, size_t path_bytes,
                                  tide_error *err) {
    *fd = open_memory();
    size_t done = 0;
    while (*fd >= 0 && done < len) {
        const ssize_t n = write(*fd, data + done, len - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        done += (size_t)n;
    }
    if (*fd < 0 || done < len) {
        const tide_status st =
            TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for a file of %zu bytes: %s", len, strerror(errno));
        if (*fd >= 0) close(*fd);
        return st;
    }
    name_of(*fd, path, path_bytes);
    return TIDE_OK;
}

/// `argv` ends with NULL. @return the exit status of git, 128 and more when it was ended; -1 with errno: it could not
/// be started
static int run_git(const char *const *argv, size_t n_words, int out, int complaints) {
    posix_spawn_file_actions_t actions;
    pid_t pid = 0;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed != 0) {
        errno = failed;
        return -1;
    }
    failed = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", 0, 0);
    if (failed == 0) failed = posix_spawn_file_actions_adddup2(&actions, out, 1);
    if (failed == 0) failed = posix_spawn_file_actions_adddup2(&actions, complaints, 2);
    // posix_spawn writes to none of its arguments.
    enum { MOST_WORDS = 8 };
    char *words[MOST_WORDS];
    TIDE_ASSERT(n_words <= MOST_WORDS);
    memcpy(words, argv, n_words * sizeof *words);
    if (failed == 0) failed = posix_spawnp(&pid, "git", &actions, NULL, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    int status = 0;
    if (failed == 0 && waitpid(pid, &status, 0) < 0) failed = errno;
    errno = failed;
    if (failed != 0) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// The first line of what git said.
static void first_line(int fd, char *line, size_t line_bytes) {
    const ssize_t n = pread(fd, line, line_bytes - 1, 0);
    line[n > 0 ? n : 0] = '\0';
    line[strcspn(line, "\r\n")] = '\0';
}

static tide_status read_of_git(const char *folder, const char *object, int out, int complaints,
                               tide_gate_baseline *base, tide_error *err) {
    const char *const argv[] = {"git", "-C", folder, "show", "--end-of-options", object, NULL};
    const int code = run_git(argv, sizeof argv / sizeof argv[0], out, complaints);
    if (code == -1) return TIDE_FAIL(err, TIDE_ERR_INCOMPARABLE, "cannot start git: %s", strerror(errno));
    if (code != 0) {
        char said[256];
        first_line(complaints, said, sizeof said);
        const tide_status st = TIDE_FAIL(err, TIDE_ERR_INCOMPARABLE, "git has no baseline '%s'", object);
        tide_error_note(err, "git show ended with %d: %s", code, said[0] != '\0' ? said : "it said nothing");
        tide_error_hint(err, "fetch the revision (of a shallow clone), or commit a baseline there");
        return st;
    }
    char path[64];
    name_of(out, path, sizeof path);
    const tide_status st = tide_gate_baseline_read(path, base, err);
    if (st != TIDE_OK) tide_error_where(err, "%s", object);
    return st;
}

/// "REF:./NAME" and the folder that NAME lies in.
static tide_status split_path(const char *path, const char *ref, char **folder, char **object, tide_error *err) {
    const char *slash = strrchr(path, '/');
    tide_text text = {0};
    tide_text_addf(&text, "%s:./%s", ref, slash != NULL ? slash + 1 : path);
    *object = text.data;
    *folder =
        slash == NULL ? tide_host_strdup(".") : tide_host_strndup(path, slash == path ? 1 : (size_t)(slash - path));
    if (!text.failed && *folder != NULL) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the name of '%s'", path);
}

tide_status cli_check_baseline_of_ref(const char *path, const char *ref, tide_gate_baseline *out, tide_error *err) {
    *out = (tide_gate_baseline){0};
    char *folder = NULL, *object = NULL;
    tide_status st = split_path(path, ref, &folder, &object, err);
    const int text = open_memory(), complaints = open_memory();
    if (st == TIDE_OK && (text < 0 || complaints < 0))
        st = TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for what git says: %s", strerror(errno));
    if (st == TIDE_OK) st = read_of_git(folder, object, text, complaints, out, err);
    if (st == TIDE_OK) { // it is known by where it came from
        tide_host_free(out->path);
        out->path = object;
        object = NULL;
    }
    if (text >= 0) close(text);
    if (complaints >= 0) close(complaints);
    tide_host_free(folder);
    tide_host_free(object);
    return st;
}

bool cli_check_git_user(const char *path, char *name, size_t name_bytes) {
    char *folder = NULL, *object = NULL;
    tide_error err = TIDE_ERROR_INIT;
    const int text = open_memory(), complaints = open_memory();
    bool good = text >= 0 && complaints >= 0 && split_path(path, "", &folder, &object, &err) == TIDE_OK;
    if (good) {
        const char *const argv[] = {"git", "-C", folder, "config", "user.name", NULL};
        good = run_git(argv, sizeof argv / sizeof argv[0], text, complaints) == 0;
    }
    if (good) first_line(text, name, name_bytes);
    if (text >= 0) close(text);
    if (complaints >= 0) close(complaints);
    tide_host_free(folder);
    tide_host_free(object);
    return good && name[0] != '\0';
}
