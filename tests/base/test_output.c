// SPDX-License-Identifier: MIT
//
// core/base/output: every sort of file that may have the name already, what lies in the way, what ends a writer half
// way.
#include "core/base/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/text.h"
#include "tests/tide_test.h"

/// A fresh folder; the tests work in it by short names.
typedef struct folder {
    char path[64];
    int before;
} folder;

static void enter(folder *f) {
    f->before = open(".", O_RDONLY | O_DIRECTORY);
    snprintf(f->path, sizeof f->path, "/tmp/tide_output_XXXXXX");
    assert_non_null(mkdtemp(f->path));
    assert_int_equal(chdir(f->path), 0);
    umask(022);
}

static int count_entries(void) {
    DIR *dir = opendir(".");
    int n = 0;
    for (const struct dirent *e = readdir(dir); e != NULL; e = readdir(dir))
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(dir);
    return n;
}

static void leave(folder *f) {
    char command[96];
    assert_int_equal(fchdir(f->before), 0);
    close(f->before);
    snprintf(command, sizeof command, "rm -rf %s", f->path);
    assert_int_equal(system(command), 0);
}

static void put(const char *path, const char *text) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_write_file(path, text, strlen(text), &err), &err);
}

static void refused(const char *path, const char *why) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_write_file(path, "new", 3, &err), TIDE_ERR_WRITE);
    assert_text_has(err.msg, path);
    assert_text_has(err.msg, why);
}

static void assert_content(const char *path, const char *want) {
    tide_error err = TIDE_ERROR_INIT;
    char *back = NULL;
    size_t len = 0;
    assert_tide_ok(tide_read_file(path, 0, &back, &len, &err), &err);
    assert_string_equal(back, want);
    tide_host_free(back);
}

static struct stat look(const char *path) {
    struct stat info;
    assert_int_equal(lstat(path, &info), 0);
    return info;
}

// ---- what has the name before ----

static void modes(void **state) {
    (void)state;
    folder f;
    enter(&f);
    put("new", "x");
    assert_int_equal(look("new").st_mode & 07777, 0644);
    static const mode_t all[] = {0600, 0640, 0664, 0755, 0200};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        assert_int_equal(chmod("new", all[i]), 0);
        put("new", "y");
        assert_int_equal(look("new").st_mode & 07777, all[i]);
    }
    if (geteuid() == 0) { // an owner can be kept by root alone
        assert_int_equal(chown("new", 1234, 2345), 0);
        put("new", "z");
        assert_int_equal(look("new").st_uid, 1234);
        assert_int_equal(look("new").st_gid, 2345);
    }
    assert_int_equal(count_entries(), 1);
    leave(&f);
}

static void symbolic_links(void **state) {
    (void)state;
    folder f;
    enter(&f);
    put("file", "old");
    assert_int_equal(mkdir("sub", 0700), 0);
    assert_int_equal(symlink("../file", "sub/first"), 0);
    assert_int_equal(symlink("sub/first", "second"), 0);
    put("second", "through two links");
    assert_content("file", "through two links");
    assert_true(S_ISLNK(look("second").st_mode) && S_ISLNK(look("sub/first").st_mode));
    assert_int_equal(symlink("sub/nothing", "dangling"), 0);
    put("dangling", "made");
    assert_content("sub/nothing", "made");
    assert_true(S_ISLNK(look("dangling").st_mode));
    assert_int_equal(symlink("b", "a"), 0);
    assert_int_equal(symlink("a", "b"), 0);
    refused("a", "symbolic links");
    assert_int_equal(symlink("no/where", "astray"), 0);
    refused("astray", "cannot write");
    assert_int_equal(symlink("/dev/null", "null"), 0);
    put("null", "x");
    assert_true(S_ISLNK(look("null").st_mode) && S_ISCHR(look("/dev/null").st_mode));
    leave(&f);
}

/// A link that another user puts into a folder where all may write leads nowhere.
static void links_of_others(void **state) {
    (void)state;
    if (geteuid() != 0) {
        print_message("[  SKIPPED ] only root can make a link that belongs to another user\n");
        return;
    }
    folder f;
    enter(&f);
    put("mine", "old");
    assert_int_equal(mkdir("public", 0777), 0);
    assert_int_equal(chmod("public", 01777), 0);
    assert_int_equal(symlink("../mine", "public/out"), 0);
    assert_int_equal(lchown("public/out", 1234, 1234), 0);
    refused("public/out", "Permission denied");
    assert_content("mine", "old");
    assert_int_equal(lchown("public/out", 0, 0), 0);
    put("public/out", "new");
    assert_content("mine", "new");
    leave(&f);
}

static void hard_links(void **state) {
    (void)state;
    folder f;
    enter(&f);
    put("one", "something that is longer");
    assert_int_equal(link("one", "two"), 0);
    static const char *const texts[] = {"short", "", "something that is longer than before"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        put("one", texts[i]);
        assert_content("two", texts[i]);
        assert_int_equal(look("one").st_ino, look("two").st_ino);
    }
    assert_int_equal(count_entries(), 2);
    leave(&f);
}

/// The disk is full while a file with two names is written: it is as it was.
static void hard_links_where_files_may_not_grow(void **state) {
    (void)state;
    folder f;
    enter(&f);
    put("one", "old");
    assert_int_equal(link("one", "two"), 0);
    struct rlimit before;
    getrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = 100, .rlim_max = before.rlim_max});
    static char much[4096];
    tide_error err = TIDE_ERROR_INIT;
    const tide_status in_place = tide_write_file("one", much, sizeof much, &err);
    const tide_status beside = tide_write_file("three", much, sizeof much, &err);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(in_place, TIDE_ERR_WRITE);
    assert_int_equal(beside, TIDE_ERR_WRITE);
    assert_content("two", "old");
    assert_int_equal(count_entries(), 2);
    leave(&f);
}

static void what_may_not_be_written(void **state) {
    (void)state;
    folder f;
    enter(&f);
    refused("no/such/f", "folder 'no/such' does not exist");
    refused("", "");
    assert_int_equal(mkdir("sub", 0700), 0);
    refused("sub", "directory");
    refused("sub/", "directory");
    put("file", "x");
    refused("file/f", "Not a directory");
    if (access("/dev/full", W_OK) == 0) refused("/dev/full", "No space");
    static char longest[300];
    memset(longest, 'n', 255);
    put(longest, "the longest name");
    longest[255] = 'n';
    refused(longest, "too long");
    leave(&f);
}

/// A user who is not root: files without the right to write, folders that take no new file.
static void as_another_user(void **state) {
    (void)state;
    if (geteuid() != 0) {
        print_message("[  SKIPPED ] root alone can become another user\n");
        return;
    }
    folder f;
    enter(&f);
    assert_int_equal(chmod(f.path, 0755), 0);
    put("kept", "old");
    assert_int_equal(chmod("kept", 0644), 0);
    put("open", "old");
    assert_int_equal(chmod("open", 0666), 0);
    const ino_t before = look("open").st_ino;
    assert_int_equal(seteuid(1234), 0);
    refused("kept", "Permission denied");
    refused("other", "Permission denied");
    put("open", "new"); // in place, since nothing can be put beside it
    assert_int_equal(seteuid(0), 0);
    assert_content("kept", "old");
    assert_content("open", "new");
    assert_int_equal(look("open").st_ino, before);
    assert_int_equal(look("open").st_uid, 0);
    assert_int_equal(count_entries(), 2);
    leave(&f);
}

static void what_is_no_file(void **state) {
    (void)state;
    folder f;
    enter(&f);
    assert_int_equal(mkfifo("pipe", 0600), 0);
    const int fd = open("pipe", O_RDWR);
    put("pipe", "through");
    char got[8] = "";
    assert_int_equal(read(fd, got, 7), 7);
    assert_string_equal(got, "through");
    close(fd);
    assert_true(S_ISFIFO(look("pipe").st_mode));
    // A descriptor by its name: what is written there already stays.
    put("log", "before ");
    const int log = open("log", O_WRONLY | O_APPEND);
    char name[32];
    snprintf(name, sizeof name, "/dev/fd/%d", log);
    put(name, "after");
    snprintf(name, sizeof name, "/proc/self/fd/%d", log);
    assert_int_equal(symlink(name, "to_log"), 0);
    put("to_log", "wards");
    close(log);
    assert_content("log", "before afterwards");
    assert_int_equal(count_entries(), 3);
    leave(&f);
}

static void appending(void **state) {
    (void)state;
    folder f;
    enter(&f);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_append_file("log", "a", 1, &err), &err);
    assert_tide_ok(tide_append_file("log", "b", 1, &err), &err);
    assert_content("log", "ab");
    assert_tide_status(tide_append_file("no/log", "b", 1, &err), TIDE_ERR_WRITE);
    assert_text_has(err.msg, "folder 'no'");
    leave(&f);
}

static void without_memory(void **state) {
    (void)state;
    folder f;
    enter(&f);
    put("file", "old");
    assert_int_equal(symlink("file", "link"), 0);
    tide_error err = TIDE_ERROR_INIT;
    tide_status st = TIDE_ERR_NOMEM;
    int64_t n = 0;
    for (; st == TIDE_ERR_NOMEM; n++) {
        assert_content("file", "old");
        tide_host_fail_after(n);
        st = tide_write_file("link", "new", 3, &err);
        tide_host_fail_after(-1);
    }
    assert_tide_status(st, TIDE_OK);
    assert_true(n > 2);
    assert_content("file", "new");
    assert_int_equal(count_entries(), 2);
    leave(&f);
}

// ---- files that a library makes ----

static tide_output *begin(const char *path) {
    tide_error err = TIDE_ERROR_INIT;
    tide_output *o = NULL;
    assert_tide_ok(tide_output_begin(path, &o, &err), &err);
    put(tide_output_file(o), "made by a library");
    char beside[256];
    snprintf(beside, sizeof beside, "%s-wal", tide_output_file(o));
    put(beside, "its log");
    return o;
}

static void a_file_with_others_beside_it(void **state) {
    (void)state;
    folder f;
    enter(&f);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_output_end(begin("new.db"), &err), &err);
    assert_content("new.db", "made by a library");
    assert_int_equal(count_entries(), 1);
    put("new.db", "old");
    assert_int_equal(chmod("new.db", 0600), 0);
    tide_output_drop(begin("new.db"));
    assert_content("new.db", "old");
    assert_int_equal(symlink("new.db", "link.db"), 0);
    tide_output *o = begin("link.db");
    assert_string_equal(tide_output_target(o), "new.db");
    assert_tide_ok(tide_output_end(o, &err), &err);
    assert_content("new.db", "made by a library");
    assert_int_equal(look("new.db").st_mode & 0777, 0600);
    assert_int_equal(link("new.db", "other.db"), 0);
    put("new.db", "old");
    assert_tide_ok(tide_output_end(begin("new.db"), &err), &err);
    assert_content("other.db", "made by a library");
    assert_int_equal(count_entries(), 3);
    assert_tide_status(tide_output_begin("/dev/null", &o, &err), TIDE_ERR_WRITE);
    assert_text_has(err.msg, "not a regular file");
    leave(&f);
}

// ---- piece by piece ----

static tide_output *open_pieces(const char *path) {
    tide_error err = TIDE_ERROR_INIT;
    tide_output *o = NULL;
    assert_tide_ok(tide_output_open(path, &o, &err), &err);
    assert_tide_ok(tide_output_put(o, "one, ", 5, &err), &err);
    assert_tide_ok(tide_output_put(o, "", 0, &err), &err);
    assert_tide_ok(tide_output_put(o, "two", 3, &err), &err);
    return o;
}

static void a_file_that_comes_in_pieces(void **state) {
    (void)state;
    folder f;
    enter(&f);
    tide_error err = TIDE_ERROR_INIT;
    tide_output *o = open_pieces("new");
    assert_int_equal(access("new", F_OK), -1); // not there before it is whole
    assert_tide_ok(tide_output_end(o, &err), &err);
    assert_content("new", "one, two");
    assert_int_equal(look("new").st_mode & 0777, 0644);
    put("old", "as it was, and longer");
    assert_int_equal(chmod("old", 0640), 0);
    tide_output_drop(open_pieces("old"));
    assert_content("old", "as it was, and longer");
    assert_int_equal(link("old", "other"), 0);
    assert_tide_ok(tide_output_end(open_pieces("old"), &err), &err);
    assert_content("other", "one, two");
    assert_int_equal(look("old").st_mode & 0777, 0640);
    assert_int_equal(symlink("new", "link"), 0);
    assert_tide_ok(tide_output_end(open_pieces("link"), &err), &err);
    assert_true(S_ISREG(look("new").st_mode));
    assert_int_equal(count_entries(), 4);
    leave(&f);
}

static void pieces_for_what_is_read_meanwhile(void **state) {
    (void)state;
    folder f;
    enter(&f);
    tide_error err = TIDE_ERROR_INIT;
    tide_output *o = NULL;
    assert_tide_ok(tide_output_end(open_pieces("/dev/null"), &err), &err);
    int fds[2];
    char path[32], got[16] = "";
    assert_int_equal(pipe(fds), 0);
    snprintf(path, sizeof path, "/dev/fd/%d", fds[1]);
    o = open_pieces(path);
    assert_int_equal(read(fds[0], got, sizeof got - 1), 8);
    assert_string_equal(got, "one, two");
    assert_tide_ok(tide_output_end(o, &err), &err);
    assert_int_equal(write(fds[1], "!", 1), 1); // it was lent, and is still open
    close(fds[0]);
    close(fds[1]);
    assert_tide_ok(tide_output_open("/dev/full", &o, &err), &err);
    assert_tide_status(tide_output_put(o, "x", 1, &err), TIDE_ERR_WRITE);
    assert_text_has(err.msg, "/dev/full");
    tide_output_drop(o);
    assert_tide_status(tide_output_open("nowhere/new", &o, &err), TIDE_ERR_WRITE);
    assert_text_has(err.msg, "does not exist");
    assert_tide_status(tide_output_open("", &o, &err), TIDE_ERR_WRITE);
    assert_tide_status(tide_output_open(".", &o, &err), TIDE_ERR_WRITE);
    assert_int_equal(count_entries(), 0);
    leave(&f);
}

// ---- ends ----

static void on_signal(int number) {
    tide_output_remove_all();
    signal(number, SIG_DFL);
    raise(number);
}

/// A child that has begun two outputs and waits. @return its pid
static pid_t start_writer(bool handles) {
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        if (handles) signal(SIGTERM, on_signal);
        begin("new.db");
        begin("file");
        assert_int_equal(write(ready[1], "r", 1), 1);
        for (;;) pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static void end_writer(pid_t pid, int number) {
    int how = 0;
    kill(pid, number);
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == number);
}

static void a_signal_leaves_nothing(void **state) {
    (void)state;
    folder f;
    enter(&f);
    put("file", "old");
    const pid_t pid = start_writer(true);
    assert_int_equal(count_entries(), 3);
    end_writer(pid, SIGTERM);
    assert_int_equal(count_entries(), 1);
    assert_content("file", "old");
    leave(&f);
}

/// What a killed writer left goes with the next who writes the same file; what a living one has stays.
static void the_next_removes_what_a_kill_left(void **state) {
    (void)state;
    folder f;
    enter(&f);
    put("file.other", "x");
    const pid_t killed = start_writer(false), living = start_writer(true);
    assert_int_equal(count_entries(), 1 + 4);
    end_writer(killed, SIGKILL);
    assert_int_equal(count_entries(), 1 + 4);
    put("file", "new");
    assert_int_equal(count_entries(), 1 + 1 + 3);
    put("new.db", "new");
    assert_int_equal(count_entries(), 2 + 1 + 2);
    end_writer(living, SIGTERM);
    assert_int_equal(count_entries(), 3);
    leave(&f);
}

/// Names that look like ours and are not are left alone.
static void what_looks_like_ours(void **state) {
    (void)state;
    folder f;
    enter(&f);
    static const char *const names[] = {".file.tidemark-tmp-", ".file.tidemark-tmp-0123456789abcde",
                                        ".file.tidemark-tmp-0123456789abcdefg", ".files.tidemark-tmp-0123456789abcdef",
                                        "file.tidemark-tmp-0123456789abcdef"};
    enum { N_NAMES = sizeof names / sizeof names[0] };
    for (int i = 0; i < N_NAMES; i++) close(open(names[i], O_CREAT | O_WRONLY, 0600));
    assert_int_equal(symlink("file", ".file.tidemark-tmp-aaaaaaaaaaaaaaaa"), 0);
    assert_int_equal(mkfifo(".file.tidemark-tmp-bbbbbbbbbbbbbbbb", 0600), 0);
    put("file", "x");
    assert_int_equal(count_entries(), N_NAMES + 3);
    close(open(".file.tidemark-tmp-cccccccccccccccc", O_CREAT | O_WRONLY, 0600));
    put("file", "y");
    assert_int_equal(count_entries(), N_NAMES + 3);
    leave(&f);
}

/// In a child of fork what the parent has begun is the parent's.
static void a_child_takes_nothing_away(void **state) {
    (void)state;
    folder f;
    enter(&f);
    tide_output *o = begin("new.db");
    const pid_t pid = fork();
    if (pid == 0) {
        tide_output_remove_all();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_output_end(o, &err), &err);
    assert_content("new.db", "made by a library");
    leave(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(modes),
        tide_unit_test(symbolic_links),
        tide_unit_test(links_of_others),
        tide_unit_test(hard_links),
        tide_unit_test(hard_links_where_files_may_not_grow),
        tide_unit_test(what_may_not_be_written),
        tide_unit_test(as_another_user),
        tide_unit_test(what_is_no_file),
        tide_unit_test(appending),
        tide_unit_test(without_memory),
        tide_unit_test(a_file_with_others_beside_it),
        tide_unit_test(a_file_that_comes_in_pieces),
        tide_unit_test(pieces_for_what_is_read_meanwhile),
        tide_unit_test(a_signal_leaves_nothing),
        tide_unit_test(the_next_removes_what_a_kill_left),
        tide_unit_test(what_looks_like_ours),
        tide_unit_test(a_child_takes_nothing_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
