// SPDX-License-Identifier: MIT
//
// Files, written whole or not at all. See output.h.
#include "core/base/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/base/text.h"

#define INFIX ".tidemark-tmp-"

enum {
    N_LIVE = 64,        // temporaries of one process at a time
    MAX_LINKS = 40,     // as the kernel
    N_DIGITS = 16,      // of a temporary's name
    MAX_BASE = 200,     // of its name is the target's: a name has 255 bytes at most
    NAME_BYTES = 256,   // MAX_BASE, INFIX and N_DIGITS
    MAX_TRIES = 16,     // another process may remove a name when it cleans up
    MAX_CLEAN_MS = 200, // that a handler gives other threads
};

// ---- errors ----

tide_status tide_output_failed(const char *what, const char *path, int why, tide_error *err) {
    if (why == ENOMEM) return TIDE_NO_MEMORY(err, "to write '%s'", path);
    const char *slash = strrchr(path, '/');
    struct stat info;
    char folder[PATH_MAX] = ".";
    if (slash != NULL) snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    if (why == ENOENT && stat(folder, &info) != 0) {
        const tide_status st =
            TIDE_FAIL(err, TIDE_ERR_WRITE, "cannot %s '%s': the folder '%s' does not exist", what, path, folder);
        tide_error_hint(err, "make it, or name another");
        return st;
    }
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_WRITE, "cannot %s '%s': %s", what, path, strerror(why));
    if (why == ENOSPC || why == EDQUOT) tide_error_hint(err, "make room there, or name a file on another disk");
    return st;
}

// ---- outputs that are not finished ----

/// Names of this process's temporaries, for a handler: it may run at any moment and on any thread.
typedef struct live {
    atomic_int state; ///< of enum
    pid_t pid;        ///< in a child of fork they are the parent's
    int dir_fd;
    bool is_folder;
    char name[NAME_BYTES];
} live;

enum { FREE, TAKEN, MAKING, MADE };

static live all_live[N_LIVE];

/// A handler must not come while a name is registered and its file not there yet: it would wait for its own thread.
static void hold_signals(sigset_t *before) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, before);
}

static void release_signals(const sigset_t *before) { pthread_sigmask(SIG_SETMASK, before, NULL); }

static live *take_live(void) {
    for (size_t i = 0; i < N_LIVE; i++) {
        int expected = FREE;
        if (atomic_compare_exchange_strong(&all_live[i].state, &expected, TAKEN)) return &all_live[i];
    }
    errno = EMFILE;
    return NULL;
}

static void give_live_back(live *l) {
    TIDE_ASSERT(atomic_load(&l->state) != FREE);
    atomic_store(&l->state, FREE);
}

/// Everything in the folder, which is ours alone. Async-signal-safe, unlike readdir.
static void empty_folder(int fd) {
    _Alignas(struct dirent64) char buf[4096];
    if (lseek(fd, 0, SEEK_SET) != 0) return;
    for (ssize_t n; (n = getdents64(fd, buf, sizeof buf)) > 0;) {
        for (ssize_t at = 0; at < n;) {
            const struct dirent64 *e = (const struct dirent64 *)(const void *)(buf + at);
            if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) unlinkat(fd, e->d_name, 0);
            at += e->d_reclen;
        }
    }
}

static void remove_folder(int dir_fd, const char *name) {
    const int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return;
    // Another thread may make one more file before the folder is gone.
    for (int i = 0; i < MAX_CLEAN_MS; i++) {
        empty_folder(fd);
        if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0 || errno != ENOTEMPTY) break;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    close(fd);
}

static void remove_temporary(int dir_fd, const char *name, bool is_folder) {
    if (is_folder)
        remove_folder(dir_fd, name);
    else
        unlinkat(dir_fd, name, 0);
}

void tide_output_remove_all(void) {
    const int before = errno;
    for (size_t i = 0; i < N_LIVE; i++) {
        live *l = &all_live[i];
        for (int k = 0; k < MAX_CLEAN_MS && atomic_load(&l->state) == MAKING && l->pid == getpid(); k++)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        if (atomic_load(&l->state) == MADE && l->pid == getpid()) remove_temporary(l->dir_fd, l->name, l->is_folder);
    }
    errno = before;
}

// ---- the real path ----

/// The place of a file, behind all links.
typedef struct place {
    char *path;       ///< owned
    const char *name; ///< in `path`
    int dir_fd;       ///< of the folder; -1: `stream` is meant, or there is none
    int stream;       ///< a descriptor of this process, as /dev/stdout names it; -1: none
    bool exists;
    struct stat old; ///< when it exists
} place;

/// /dev/stdout and its like: what is open, not what has its name in a folder.
static int descriptor_of(const char *path) {
    static const char *const heads[] = {"/dev/fd/", "/proc/self/fd/"};
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        const size_t n = strlen(heads[i]);
        if (strncmp(path, heads[i], n) != 0) continue;
        const char *digits = path + n;
        const size_t n_digits = strspn(digits, "0123456789");
        if (n_digits == 0 || n_digits > 6 || digits[n_digits] != '\0') continue;
        int fd = 0;
        for (; *digits != '\0'; digits++) fd = fd * 10 + (*digits - '0');
        return fd;
    }
    return -1;
}

/// Bytes of the folder's part of `path`, with its last '/'.
static size_t folder_bytes(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? (size_t)(slash - path) + 1 : 0;
}

/// Links of other users in folders that all users may write to are not followed: the rule of fs.protected_symlinks
/// (proc(5)), which holds for open() and not for a program that reads links itself.
static bool may_follow(const char *folder, const struct stat *link) {
    struct stat info;
    if (stat(folder[0] != '\0' ? folder : ".", &info) != 0) return false;
    const bool is_public = (info.st_mode & S_ISVTX) != 0 && (info.st_mode & S_IWOTH) != 0;
    return !is_public || link->st_uid == geteuid() || link->st_uid == info.st_uid;
}

/// Where the link at `path` leads. @return 0 or an errno
static int read_link(const char *path, const struct stat *info, char **out) {
    char to[PATH_MAX];
    char *folder = tide_host_strndup(path, folder_bytes(path));
    if (folder == NULL) return ENOMEM;
    int e = may_follow(folder, info) ? 0 : EACCES;
    const ssize_t n = e == 0 ? readlink(path, to, sizeof to) : 0;
    if (n < 0) e = errno;
    if (n >= (ssize_t)sizeof to) e = ENAMETOOLONG;
    tide_text text = {0};
    if (e == 0 && to[0] != '/') tide_text_add(&text, folder);
    if (e == 0) tide_text_add_n(&text, to, (size_t)n);
    tide_host_free(folder);
    if (e == 0 && text.failed) e = ENOMEM;
    if (e != 0) tide_text_deinit(&text);
    *out = text.data;
    return e;
}

static int follow(const char *path, char **out) {
    char *at = tide_host_strdup(path);
    *out = NULL;
    for (int i = 0; at != NULL; i++) {
        struct stat info;
        const bool is_link = descriptor_of(at) < 0 && lstat(at, &info) == 0 && S_ISLNK(info.st_mode);
        if (!is_link) {
            *out = at;
            return 0;
        }
        char *next = NULL;
        const int e = i < MAX_LINKS ? read_link(at, &info, &next) : ELOOP;
        tide_host_free(at);
        if (e != 0) return e;
        at = next;
    }
    return ENOMEM;
}

tide_status tide_output_follow(const char *path, char **out, tide_error *err) {
    const int e = follow(path, out);
    return e == 0 ? TIDE_OK : tide_output_failed("write", path, e, err);
}

static int open_folder(const place *p, int *fd) {
    char *folder = tide_host_strndup(p->path, (size_t)(p->name - p->path));
    if (folder == NULL) return ENOMEM;
    *fd = open(folder[0] != '\0' ? folder : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    const int e = *fd >= 0 ? 0 : errno;
    tide_host_free(folder);
    return e;
}

static int open_place(const char *path, place *p) {
    *p = (place){.dir_fd = -1, .stream = -1};
    if (path[0] == '\0') return ENOENT;
    int e = follow(path, &p->path);
    if (e != 0) return e;
    p->stream = descriptor_of(p->path);
    if (p->stream >= 0) return 0;
    p->name = p->path + folder_bytes(p->path);
    if (p->name[0] == '\0') return EISDIR;
    e = open_folder(p, &p->dir_fd);
    if (e != 0) return e;
    if (fstatat(p->dir_fd, p->name, &p->old, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT ? 0 : errno;
    p->exists = true;
    if (S_ISDIR(p->old.st_mode)) return EISDIR;
    if (S_ISLNK(p->old.st_mode)) return ELOOP; // made in this moment
    return faccessat(p->dir_fd, p->name, W_OK, AT_EACCESS) == 0 ? 0 : errno;
}

static void close_place(place *p) {
    if (p->dir_fd >= 0) close(p->dir_fd);
    tide_host_free(p->path);
    *p = (place){.dir_fd = -1, .stream = -1};
}

// ---- temporary names ----

typedef struct temporary {
    live *entry; ///< NULL: none
    int fd;      ///< of the file, or of the folder; holds the lock
} temporary;

/// ".<name>.tidemark-tmp-" of the files that are to become `name`.
static void print_head(const char *name, char head[NAME_BYTES]) {
    snprintf(head, NAME_BYTES, ".%.*s" INFIX, MAX_BASE, name);
}

static int print_name(const char *target, char name[NAME_BYTES]) {
    uint64_t chance;
    ssize_t n;
    while ((n = getrandom(&chance, sizeof chance, 0)) < 0 && errno == EINTR) {
    }
    if (n != (ssize_t)sizeof chance) return n < 0 ? errno : EIO;
    char head[NAME_BYTES];
    print_head(target, head);
    const int len =
        snprintf(name, NAME_BYTES, "%.*s%0*llx", NAME_BYTES - N_DIGITS - 1, head, N_DIGITS, (unsigned long long)chance);
    return len > 0 && len < NAME_BYTES ? 0 : ENAMETOOLONG;
}

/// Create what `l` names; its descriptor, or -1 with errno.
static int make_entry(const live *l, mode_t mode) {
    if (!l->is_folder) return openat(l->dir_fd, l->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (mkdirat(l->dir_fd, l->name, mode) != 0) return -1;
    return openat(l->dir_fd, l->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/// Whether it is still there, and locked as ours as far as its file system knows locks: a process that cleans up may
/// have come between.
static bool is_ours(int fd) {
    struct stat info;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
    return fstat(fd, &info) == 0 && info.st_nlink > 0;
}

static int make_named(const place *p, bool is_folder, mode_t mode, temporary *t) {
    live *l = t->entry;
    TIDE_ASSERT(atomic_load(&l->state) == TAKEN && p->dir_fd >= 0 && p->name[0] != '\0');
    l->pid = getpid();
    l->dir_fd = p->dir_fd;
    l->is_folder = is_folder;
    const int e = print_name(p->name, l->name);
    if (e != 0) return e;
    sigset_t before;
    hold_signals(&before);
    atomic_store(&l->state, MAKING);
    t->fd = make_entry(l, mode);
    const int why = errno;
    atomic_store(&l->state, t->fd >= 0 ? MADE : TAKEN);
    release_signals(&before);
    return t->fd >= 0 ? 0 : why;
}

/// Remove it, or only forget it.
static void end_temporary(temporary *t, bool remove) {
    if (t->entry == NULL) return;
    TIDE_ASSERT(t->fd < 0 || atomic_load(&t->entry->state) == MADE);
    if (remove && t->fd >= 0) remove_temporary(t->entry->dir_fd, t->entry->name, t->entry->is_folder);
    give_live_back(t->entry);
    if (t->fd >= 0) close(t->fd);
    *t = (temporary){.fd = -1};
}

static int make_temporary(const place *p, bool is_folder, mode_t mode, temporary *t) {
    int e = EAGAIN;
    for (int i = 0; i < MAX_TRIES && (e == EAGAIN || e == EEXIST || (is_folder && e == ENOENT)); i++) {
        *t = (temporary){.entry = take_live(), .fd = -1};
        if (t->entry == NULL) return errno;
        e = make_named(p, is_folder, mode, t);
        if (e == 0 && is_ours(t->fd)) return 0;
        if (e == 0) e = EAGAIN;
        end_temporary(t, true);
    }
    return e;
}

// ---- temporary files of processes that ended ----

static bool is_temporary_of(const char *name, const char *head) {
    const size_t n = strlen(head);
    return strncmp(name, head, n) == 0 && strspn(name + n, "0123456789abcdef") == N_DIGITS &&
           name[n + N_DIGITS] == '\0';
}

/// One that has no writer any more: nothing holds its lock.
static void remove_dead(int dir_fd, const char *name) {
    struct stat info;
    if (fstatat(dir_fd, name, &info, AT_SYMLINK_NOFOLLOW) != 0 || info.st_uid != geteuid()) return;
    if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) return;
    const int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) remove_temporary(dir_fd, name, S_ISDIR(info.st_mode));
    close(fd);
}

static void clean_up(const place *p) {
    char head[NAME_BYTES];
    print_head(p->name, head);
    const int fd = openat(p->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL) {
        if (fd >= 0) close(fd);
        return; // a folder that may not be listed
    }
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        if (is_temporary_of(e->d_name, head)) remove_dead(p->dir_fd, e->d_name);
    }
    closedir(dir);
}

// ---- writing ----

static int write_all(int fd, const char *data, size_t len) {
    while (len > 0) {
        const ssize_t n = write(fd, data, len);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno;
        if (n == 0) return ENOSPC;
        data += n;
        len -= (size_t)n;
    }
    return 0;
}

static int write_stream(int fd, const char *data, size_t len) {
    if (fd == STDOUT_FILENO && fflush(stdout) != 0) return errno;
    return write_all(fd, data, len);
}

/// A device, a pipe: a rename would put a plain file in its place.
static int write_special(const place *p, const char *data, size_t len) {
    const int fd = openat(p->dir_fd, p->name, O_WRONLY | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) return errno;
    int e = write_all(fd, data, len);
    if (close(fd) != 0 && e == 0) e = errno;
    return e;
}

/// Room first, so that a full disk leaves the file as it was.
static int fill(int fd, off_t old_bytes, const char *data, size_t len) {
    if ((off_t)len > old_bytes) {
        const int e = posix_fallocate(fd, old_bytes, (off_t)len - old_bytes);
        if (e != 0 && ftruncate(fd, old_bytes) != 0) return errno;
        if (e != 0 && e != EOPNOTSUPP && e != EINVAL) return e;
    }
    const int e = write_all(fd, data, len);
    if (e != 0) return e;
    return ftruncate(fd, (off_t)len) == 0 && (fsync(fd) == 0 || errno == EINVAL) ? 0 : errno;
}

static int write_in_place(const place *p, const char *data, size_t len) {
    TIDE_ASSERT(p->exists && p->dir_fd >= 0);
    const int fd = openat(p->dir_fd, p->name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return errno;
    struct stat info;
    sigset_t before;
    hold_signals(&before); // the one way in which a file can be seen half written
    int e = fstat(fd, &info) != 0 ? errno : !S_ISREG(info.st_mode) ? EINVAL : fill(fd, info.st_size, data, len);
    release_signals(&before);
    if (close(fd) != 0 && e == 0) e = errno;
    return e;
}

/// Mode, owner and group of the file that is replaced. False: they cannot be kept.
static bool adopt(const place *p, int fd) {
    if (!p->exists) return true;
    TIDE_ASSERT(S_ISREG(p->old.st_mode));
    if (p->old.st_nlink > 1 || getxattr(p->path, "system.posix_acl_access", NULL, 0) > 0) return false;
    struct stat mine;
    if (fstat(fd, &mine) != 0) return false;
    if ((mine.st_uid != p->old.st_uid || mine.st_gid != p->old.st_gid) && fchown(fd, p->old.st_uid, p->old.st_gid) != 0)
        return false;
    return fchmod(fd, p->old.st_mode & 0777) == 0;
}

/// A power failure after the rename must not leave nothing where there was something.
static int sync_replacing(const place *p, int fd) {
    return !p->exists || fsync(fd) == 0 || errno == EINVAL ? 0 : errno;
}

static bool takes_no_new_file(int e) { return e == EACCES || e == EPERM || e == EROFS || e == EBUSY; }

static int write_beside(const place *p, const char *data, size_t len) {
    if (p->exists && p->old.st_nlink > 1) return write_in_place(p, data, len);
    clean_up(p);
    temporary t;
    int e = make_temporary(p, false, p->exists ? 0600 : 0666, &t);
    if (e == 0) e = write_all(t.fd, data, len);
    const bool is_kept = e == 0 && adopt(p, t.fd);
    if (is_kept) e = sync_replacing(p, t.fd);
    if (is_kept && e == 0 && renameat(p->dir_fd, t.entry->name, p->dir_fd, p->name) != 0) e = errno;
    const bool in_place = p->exists && ((e == 0 && !is_kept) || takes_no_new_file(e));
    end_temporary(&t, e != 0 || !is_kept);
    return in_place ? write_in_place(p, data, len) : e;
}

static int write_to(const char *path, const char *data, size_t len) {
    place p;
    int e = open_place(path, &p);
    if (e == 0 && p.stream >= 0)
        e = write_stream(p.stream, data, len);
    else if (e == 0 && p.exists && !S_ISREG(p.old.st_mode))
        e = write_special(&p, data, len);
    else if (e == 0)
        e = write_beside(&p, data, len);
    close_place(&p);
    return e;
}

tide_status tide_write_file(const char *path, const char *data, size_t len, tide_error *err) {
    if (strcmp(path, "-") == 0) {
        if (fwrite(data, 1, len, stdout) == len && fflush(stdout) == 0) return TIDE_OK;
        return TIDE_FAIL(err, TIDE_ERR_WRITE, "cannot write to standard output: %s", strerror(errno));
    }
    const int e = write_to(path, data, len);
    return e == 0 ? TIDE_OK : tide_output_failed("write", path, e, err);
}

tide_status tide_append_file(const char *path, const char *data, size_t len, tide_error *err) {
    const int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOCTTY | O_CLOEXEC, 0666);
    const ssize_t n = fd >= 0 ? write(fd, data, len) : -1;
    int e = n < 0 ? errno : (size_t)n < len ? ENOSPC : 0;
    if (fd >= 0 && close(fd) != 0 && e == 0) e = errno;
    return e == 0 ? TIDE_OK : tide_output_failed("append to", path, e, err);
}

// ---- files that a library makes, or that are written piece by piece ----

struct tide_output {
    place place;
    temporary folder; ///< none: what is put goes straight to where it is read
    char *path;       ///< as it was asked for, owned
    char *file;       ///< in the folder, owned
    int fd;           ///< where pieces are put; -1: a library makes the file
    bool is_lent;     ///< the descriptor was open before
};

static void free_output(tide_output *o) {
    if (o->fd >= 0 && !o->is_lent) close(o->fd);
    close_place(&o->place);
    tide_host_free(o->path);
    tide_host_free(o->file);
    tide_host_free(o);
}

static int begin(tide_output *o, const char *path) {
    const int e = open_place(path, &o->place);
    if (e != 0) return e;
    if (o->place.stream >= 0 || (o->place.exists && !S_ISREG(o->place.old.st_mode))) return ESPIPE;
    clean_up(&o->place);
    return make_temporary(&o->place, true, 0700, &o->folder);
}

static bool name_file(tide_output *o, const char *path) {
    tide_text file = {0};
    tide_text_add_n(&file, o->place.path, (size_t)(o->place.name - o->place.path));
    tide_text_addf(&file, "%s/new", o->folder.entry->name);
    o->file = file.data; // deallocated with it, also where it failed
    o->path = tide_host_strdup(path);
    return !file.failed && o->path != NULL;
}

tide_status tide_output_begin(const char *path, tide_output **out, tide_error *err) {
    tide_output *o = tide_host_calloc(1, sizeof *o);
    if (o == NULL) return tide_output_failed("write", path, ENOMEM, err);
    o->place.dir_fd = o->place.stream = o->folder.fd = o->fd = -1;
    int e = begin(o, path);
    if (e == 0 && !name_file(o, path)) e = ENOMEM;
    if (e == 0) {
        *out = o;
        return TIDE_OK;
    }
    const tide_status st = e == ESPIPE
                               ? TIDE_FAIL(err, TIDE_ERR_WRITE, "cannot write '%s': it is not a regular file", path)
                               : tide_output_failed("write", path, e, err);
    tide_output_drop(o);
    return st;
}

const char *tide_output_file(const tide_output *o) { return o->file; }

const char *tide_output_target(const tide_output *o) { return o->place.path; }

/// Into the old file, from the new one, which is whole.
static int copy_in_place(const place *p, int fd) {
    struct stat info;
    if (fstat(fd, &info) != 0) return errno;
    if (info.st_size == 0) return write_in_place(p, "", 0);
    void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) return errno;
    const int e = write_in_place(p, data, (size_t)info.st_size);
    munmap(data, (size_t)info.st_size);
    return e;
}

static int put_in_place(const tide_output *o) {
    TIDE_ASSERT(o->folder.entry != NULL && o->folder.fd >= 0);
    const place *p = &o->place;
    const int fd = openat(o->folder.fd, "new", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return errno;
    int e = 0;
    const bool is_kept = adopt(p, fd);
    if (is_kept) e = sync_replacing(p, fd);
    if (is_kept && e == 0 && renameat(o->folder.fd, "new", p->dir_fd, p->name) != 0) e = errno;
    if (p->exists && ((e == 0 && !is_kept) || takes_no_new_file(e))) e = copy_in_place(p, fd);
    close(fd);
    return e;
}

// ---- piece by piece ----

static bool is_stdout(const char *path) { return strcmp(path, "-") == 0; }

/// What is read while it is written: a stream of this process, a pipe, a device.
static int open_direct(tide_output *o) {
    o->is_lent = o->place.stream >= 0;
    o->fd = o->is_lent ? o->place.stream
                       : openat(o->place.dir_fd, o->place.name, O_WRONLY | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
    if (o->fd < 0) return errno;
    return o->fd == STDOUT_FILENO && fflush(stdout) != 0 ? errno : 0;
}

static int open_new(tide_output *o) {
    const mode_t mode = o->place.exists ? 0600 : 0666;
    o->fd = openat(o->folder.fd, "new", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    return o->fd >= 0 ? 0 : errno;
}

static int open_output(tide_output *o, const char *path) {
    o->path = tide_host_strdup(path);
    if (o->path == NULL) return ENOMEM;
    if (is_stdout(path)) {
        o->place.stream = STDOUT_FILENO;
        return open_direct(o);
    }
    const int e = begin(o, path);
    if (e == ESPIPE) return open_direct(o);
    return e == 0 ? open_new(o) : e;
}

static tide_status failed_to_put(const char *path, int why, tide_error *err) {
    if (!is_stdout(path)) return tide_output_failed("write", path, why, err);
    return TIDE_FAIL(err, TIDE_ERR_WRITE, "cannot write to standard output: %s", strerror(why));
}

tide_status tide_output_open(const char *path, tide_output **out, tide_error *err) {
    tide_output *o = tide_host_calloc(1, sizeof *o);
    if (o == NULL) return tide_output_failed("write", path, ENOMEM, err);
    o->place.dir_fd = o->place.stream = o->folder.fd = o->fd = -1;
    const int e = open_output(o, path);
    if (e == 0) {
        *out = o;
        return TIDE_OK;
    }
    const tide_status st = failed_to_put(path, e, err);
    tide_output_drop(o);
    return st;
}

tide_status tide_output_put(tide_output *o, const char *data, size_t len, tide_error *err) {
    TIDE_ASSERT(o->fd >= 0);
    const int e = write_all(o->fd, data, len);
    return e == 0 ? TIDE_OK : failed_to_put(o->path, e, err);
}

/// The last piece was put. What a disk has no room for may be told here first.
static int close_pieces(tide_output *o) {
    const int fd = o->fd;
    o->fd = -1;
    return fd < 0 || o->is_lent || close(fd) == 0 ? 0 : errno;
}

tide_status tide_output_end(tide_output *o, tide_error *err) {
    int e = close_pieces(o);
    if (e == 0 && o->folder.entry != NULL) e = put_in_place(o);
    const tide_status st = e == 0 ? TIDE_OK : failed_to_put(o->path, e, err);
    tide_output_drop(o);
    return st;
}

void tide_output_drop(tide_output *o) {
    if (o == NULL) return;
    end_temporary(&o->folder, true);
    free_output(o);
}
