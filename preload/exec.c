// SPDX-License-Identifier: MIT
//
// The functions of exec: another program takes the place of this one, and all that this one has not freed goes. The
// feed says so before; where exec fails, it takes that back. See preload.h.
//
// They may be called by a child of vfork, which has our memory and is not us (preload_mark_replaced), and by signal
// handlers: nothing is allocated.
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/preload.h"

/// `function` is one of preload_real, or NULL where the C library has none.
#define REPLACE(function, ...)                                                                                         \
    do {                                                                                                               \
        if (!preload_find_real() || preload_real.function == NULL) {                                                   \
            errno = ENOSYS;                                                                                            \
            return -1;                                                                                                 \
        }                                                                                                              \
        preload_mark_replaced(true);                                                                                   \
        const int result = preload_real.function(__VA_ARGS__);                                                         \
        const int saved = errno;                                                                                       \
        preload_mark_replaced(false);                                                                                  \
        errno = saved;                                                                                                 \
        return result;                                                                                                 \
    } while (0)

PRELOAD_EXPORT int execve(const char *path, char *const argv[], char *const envp[]) {
    REPLACE(execve, path, argv, envp);
}

PRELOAD_EXPORT int execv(const char *path, char *const argv[]) { REPLACE(execv, path, argv); }

PRELOAD_EXPORT int execvp(const char *file, char *const argv[]) { REPLACE(execvp, file, argv); }

PRELOAD_EXPORT int execvpe(const char *file, char *const argv[], char *const envp[]) {
    REPLACE(execvpe, file, argv, envp);
}

PRELOAD_EXPORT int fexecve(int fd, char *const argv[], char *const envp[]) { REPLACE(fexecve, fd, argv, envp); }

PRELOAD_EXPORT int execveat(int fd, const char *path, char *const argv[], char *const envp[], int flags) {
    REPLACE(execveat, fd, path, argv, envp, flags);
}

// ---- with a list of arguments ----

/// How many there are, the NULL behind them not counted.
static size_t count_arguments(va_list list) {
    size_t n = 0;
    while (va_arg(list, char *) != NULL) n++;
    return n;
}

/// argv and its environment out of `first` and what follows it, on the stack: there must be no other memory.
#define TAKE_ARGUMENTS(argv, envp, first, has_environment)                                                             \
    va_list list;                                                                                                      \
    va_start(list, first);                                                                                             \
    const size_t n_arguments = 1 + count_arguments(list);                                                              \
    va_end(list);                                                                                                      \
    if (n_arguments >= INT_MAX) {                                                                                      \
        errno = E2BIG;                                                                                                 \
        return -1;                                                                                                     \
    }                                                                                                                  \
    char **argv = __builtin_alloca((n_arguments + 1) * sizeof *argv);                                                  \
    va_start(list, first);                                                                                             \
    argv[0] = (char *)(uintptr_t)(first);                                                                              \
    for (size_t i = 1; i <= n_arguments; i++) argv[i] = va_arg(list, char *);                                          \
    char *const *envp = (has_environment) ? va_arg(list, char *const *) : NULL;                                        \
    va_end(list)

PRELOAD_EXPORT int execl(const char *path, const char *first, ...) {
    TAKE_ARGUMENTS(argv, unused, first, false);
    (void)unused;
    return execv(path, argv);
}

PRELOAD_EXPORT int execlp(const char *file, const char *first, ...) {
    TAKE_ARGUMENTS(argv, unused, first, false);
    (void)unused;
    return execvp(file, argv);
}

PRELOAD_EXPORT int execle(const char *path, const char *first, ...) {
    TAKE_ARGUMENTS(argv, envp, first, true);
    return execve(path, argv, envp);
}
