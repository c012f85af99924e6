// SPDX-License-Identifier: MIT
//
// What a failing disk does to a program that records: nothing. Each test runs a program (kill_victim) whose trace lies
// on a disk that is full, too small, read-only, broken, or taken away, draining in a thread and in a process; the
// program must do all its work and end well, one line on stderr must say what happened, and what was kept must be
// readable, in order, without a hole.
#include <sched.h>
#include <sys/mount.h>

#include "core/base/output.h"
#include "tests/profiler/kill_run.h"

static const char *const drains[] = {"thread", "process"};
enum { N_DRAINS = 2 };
enum { ALL_EVENTS = 150000 }; ///< of each of two threads, in make soak

static uint64_t n_events(void) { return (uint64_t)tide_test_rounds(60000, ALL_EVENTS); }
/// The byte, of so many that all events take, at which the same share of those of a run has been written.
static uint64_t share(uint64_t bytes) { return bytes * n_events() / ALL_EVENTS; }

// ---- what must hold ----

static void assert_unharmed(kill_run *r) {
    if (!WIFEXITED(r->status) || WEXITSTATUS(r->status) != 0) {
        size_t n_lines;
        fail_msg("the program ended with %#x: %s", (unsigned)r->status, kill_run_stderr(r, &n_lines));
    }
    for (uint32_t t = 0; t < r->n_threads; t++)
        assert_int_equal(atomic_load(&r->shadow->threads[t].n_events), n_events());
    assert_int_not_equal(atomic_load(&r->shadow->status), TIDE_OK + 1); // close says that something went wrong
}

/// One line, and it names the trace (or its folder) and the reason.
static void assert_one_line(kill_run *r, const char *reason) {
    size_t n_lines;
    char *text = kill_run_stderr(r, &n_lines);
    if (n_lines != 1) fail_msg("%zu lines on stderr:\n%s", n_lines, text);
    assert_text_has(text, "trace");
    if (reason != NULL) assert_text_has(text, reason);
    tide_host_free(text);
}

/// @return how many events are there
static uint64_t assert_readable(kill_run *r) {
    kill_expect want = kill_run_expect(r, TIDE_TRACE_CUT_SHORT);
    kill_found found;
    tide_text why = {0};
    want.is_prefix = true;
    if (!kill_check_trace(&want, &found, &why)) fail_msg("%s", tide_text_str(&why));
    if (!kill_check_folder(r->trace, &why)) fail_msg("%s", tide_text_str(&why));
    tide_text_deinit(&why);
    return found.n_events;
}

static void begin(kill_run *r, const char *drain) {
    static char events[24];
    snprintf(events, sizeof events, "%" PRIu64, n_events());
    kill_run_init(r, drain);
    kill_run_arg(r, "--events", events);
    kill_run_arg(r, "--ring", "1024");
}

// ---- a disk that fails from some byte on ----

static bool was_refused(kill_run *r) {
    return WIFEXITED(r->status) && WEXITSTATUS(r->status) == 4 && atomic_load(&r->shadow->phase) == KILL_STARTS;
}

/// @return events that were kept; UINT64_MAX: there was no room to begin, and the program was told so
static uint64_t fail_at(const char *drain, const char *which, const char *error, const char *reason, uint64_t after) {
    kill_run r;
    begin(&r, drain);
    snprintf(r.fault, sizeof r.fault, "%s:%s:%" PRIu64, which, error, share(after));
    print_message("%s %s\n", drain, r.fault);
    kill_run_start(&r);
    kill_run_wait(&r, NULL);
    uint64_t n = UINT64_MAX;
    if (!was_refused(&r)) {
        assert_unharmed(&r);
        n = assert_readable(&r);
    }
    assert_one_line(&r, reason);
    kill_run_deinit(&r);
    return n;
}

static void disk_full(void **state) {
    (void)state;
    static const uint64_t after[] = {400000, 1000000, 3000000, 9000000};
    for (size_t i = 0; i < sizeof after / sizeof after[0]; i++) {
        for (int d = 0; d < N_DRAINS; d++) {
            const uint64_t n = fail_at(drains[d], "", "ENOSPC", NULL, after[i]);
            if (after[i] >= 3000000) assert_in_range(n, 1000, UINT64_MAX - 1);
        }
    }
}

static void log_cannot_grow(void **state) {
    (void)state;
    for (int d = 0; d < N_DRAINS; d++) {
        fail_at(drains[d], "trace.db-wal", "ENOSPC", "full", 0);
        assert_in_range(fail_at(drains[d], "trace.db-wal", "EDQUOT", NULL, 2000000), 1000, UINT64_MAX - 1);
    }
}

static void disk_breaks(void **state) {
    (void)state;
    for (int d = 0; d < N_DRAINS; d++) {
        fail_at(drains[d], "", "EIO", NULL, 500000);
        assert_in_range(fail_at(drains[d], "", "EIO", NULL, 5000000), 1000, UINT64_MAX - 1);
    }
}

static void disk_turns_read_only(void **state) {
    (void)state;
    for (int d = 0; d < N_DRAINS; d++)
        assert_in_range(fail_at(drains[d], "", "EROFS", NULL, 3000000), 1000, UINT64_MAX - 1);
}

// ---- a limit on the size of files ----

static void file_size_limit(void **state) {
    (void)state;
    static const uint64_t limits[] = {1500000, 4000000, 8000000};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        for (int d = 0; d < N_DRAINS; d++) {
            kill_run r;
            begin(&r, drains[d]);
            r.max_file_bytes = share(limits[i]) > limits[0] ? share(limits[i]) : limits[0]; // its rings are larger
            kill_run_start(&r);
            kill_run_wait(&r, NULL);
            assert_unharmed(&r);
            assert_one_line(&r, NULL);
            assert_true(assert_readable(&r) > 0);
            kill_run_deinit(&r);
        }
    }
}

// ---- files that are taken away ----

static void wait_until_it_records(kill_run *r) {
    const uint64_t end = tide_now_ns() + UINT64_C(60000000000);
    while (kill_run_sent(r) < 20000) {
        if (tide_now_ns() > end) fail_msg("the program does not record");
        kill_run_nap(200000);
    }
}

/// So that it is still at work when it happens, and when its drain looks at the file again, half a second later.
static void start_slowly(kill_run *r) {
    static char pace[24];
    snprintf(pace, sizeof pace, "%" PRIu64, UINT64_C(1200000000) / n_events());
    kill_run_arg(r, "--pace", pace);
    kill_run_start(r);
}

static void take_away(const char *drain, void (*take)(kill_run *r)) {
    kill_run r;
    begin(&r, drain);
    start_slowly(&r);
    wait_until_it_records(&r);
    take(&r);
    kill_run_wait(&r, NULL);
    assert_unharmed(&r);
    assert_one_line(&r, NULL);
    kill_run_deinit(&r);
}

static void take_folder(kill_run *r) { kill_run_remove_folder(r->dir); }
static void take_trace(kill_run *r) { assert_int_equal(unlink(r->trace), 0); }
static void take_trace_and_log(kill_run *r) {
    char path[320];
    take_trace(r);
    snprintf(path, sizeof path, "%s-wal", r->trace);
    unlink(path);
    snprintf(path, sizeof path, "%s-shm", r->trace);
    unlink(path);
}
/// Another file under the trace's name: it does not belong to the recording and must stay as it is.
static void replace_trace(kill_run *r) {
    tide_error err = TIDE_ERROR_INIT;
    take_trace_and_log(r);
    assert_tide_ok(tide_write_file(r->trace, "mine", 4, &err), &err);
}

static void folder_removed(void **state) {
    (void)state;
    for (int d = 0; d < N_DRAINS; d++) take_away(drains[d], take_folder);
}
static void trace_removed(void **state) {
    (void)state;
    for (int d = 0; d < N_DRAINS; d++) {
        take_away(drains[d], take_trace);
        take_away(drains[d], take_trace_and_log);
    }
}
static void trace_replaced(void **state) {
    (void)state;
    for (int d = 0; d < N_DRAINS; d++) {
        kill_run r;
        char *data;
        size_t len;
        tide_error err = TIDE_ERROR_INIT;
        begin(&r, drains[d]);
        start_slowly(&r);
        wait_until_it_records(&r);
        replace_trace(&r);
        kill_run_wait(&r, NULL);
        assert_unharmed(&r);
        assert_one_line(&r, NULL);
        assert_tide_ok(tide_read_file(r.trace, 0, &data, &len, &err), &err);
        assert_int_equal(len, 4);
        assert_memory_equal(data, "mine", 4);
        tide_host_free(data);
        kill_run_deinit(&r);
    }
}

// ---- where nothing can be written from the start ----

static void assert_refused(kill_run *r, const char *reason) {
    size_t n_lines;
    kill_run_start(r);
    kill_run_wait(r, NULL);
    char *text = kill_run_stderr(r, &n_lines);
    assert_true(WIFEXITED(r->status));
    if (WEXITSTATUS(r->status) != 4 || n_lines != 1) fail_msg("exit %d\n%s", WEXITSTATUS(r->status), text);
    assert_text_has(text, r->trace);
    if (reason != NULL) assert_text_has(text, reason);
    tide_host_free(text);
    assert_int_equal(atomic_load(&r->shadow->status), TIDE_ERR_WRITE + 1);
}

static void refused_at_the_start(void **state) {
    (void)state;
    static const char *const errors[] = {"ENOSPC", "EROFS", "EIO"};
    for (int d = 0; d < N_DRAINS; d++) {
        for (size_t i = 0; i < 3; i++) {
            kill_run r;
            begin(&r, drains[d]);
            snprintf(r.fault, sizeof r.fault, ":%s:0", errors[i]);
            assert_refused(&r, NULL);
            struct stat st;
            assert_int_not_equal(stat(r.trace, &st), 0); // nothing is left
            kill_run_deinit(&r);
        }
    }
}

// ---- real file systems, in a namespace of the child's own ----

static bool put_file(const char *path, const char *text) {
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    const bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0) close(fd);
    return ok;
}

/// In the child. Exit 77: this machine does not let us.
static void own_mounts(void) {
    char uids[32], gids[32];
    snprintf(uids, sizeof uids, "0 %u 1", (unsigned)geteuid());
    snprintf(gids, sizeof gids, "0 %u 1", (unsigned)getegid());
    if (geteuid() == 0 ? unshare(CLONE_NEWNS) != 0
                       : unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 || !put_file("/proc/self/setgroups", "deny") ||
                             !put_file("/proc/self/uid_map", uids) || !put_file("/proc/self/gid_map", gids))
        _exit(77);
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) _exit(77);
}

static void mount_read_only(kill_run *r) {
    own_mounts();
    if (mount(r->dir, r->dir, NULL, MS_BIND, NULL) != 0 ||
        mount(NULL, r->dir, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) != 0)
        _exit(77);
}

static bool was_not_allowed(const kill_run *r) {
    if (!WIFEXITED(r->status) || WEXITSTATUS(r->status) != 77) return false;
    print_message("[  SKIPPED ] no mounts of our own here\n");
    return true;
}

static void read_only_mount(void **state) {
    (void)state;
    for (int d = 0; d < N_DRAINS; d++) {
        kill_run r;
        size_t n_lines;
        begin(&r, drains[d]);
        r.before = mount_read_only;
        kill_run_start(&r);
        kill_run_wait(&r, NULL);
        if (!was_not_allowed(&r)) {
            char *text = kill_run_stderr(&r, &n_lines);
            if (WEXITSTATUS(r.status) != 4 || n_lines != 1) fail_msg("exit %d\n%s", WEXITSTATUS(r.status), text);
            assert_text_has(text, r.trace);
            assert_text_has(text, "ead-only");
            tide_host_free(text);
        }
        kill_run_deinit(&r);
    }
}

/// A file system of 6 MiB, and a copy of what is on it afterwards, made outside of it by a child that stays.
static void mount_small(kill_run *r) {
    own_mounts();
    if (mount("tmpfs", r->dir, "tmpfs", 0, "size=6m") != 0) _exit(77);
    const pid_t victim = fork();
    if (victim == 0) return; // goes on to be the victim
    int status = 0;
    char command[1000];
    while (waitpid(victim, &status, 0) < 0 && errno == EINTR) continue;
    // the collector, when there is one, is this process's child's child: wait until no process writes any more
    snprintf(command, sizeof command,
             "while ls -l /proc/[0-9]*/fd 2>/dev/null | grep -q '%.200s/'; do sleep 0.05; done; mkdir '%.200s/kept'; "
             "cp '%.200s'/* '%.200s/kept/'",
             r->dir, r->out.path, r->dir, r->out.path);
    if (system(command) != 0) _exit(75);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 76);
}

static void small_file_system(void **state) {
    (void)state;
    for (int d = 0; d < N_DRAINS; d++) {
        kill_run r;
        begin(&r, drains[d]);
        r.before = mount_small;
        kill_run_start(&r);
        kill_run_wait(&r, NULL);
        if (!was_not_allowed(&r)) {
            assert_unharmed(&r);
            assert_one_line(&r, "full");
            char kept[300];
            snprintf(kept, sizeof kept, "%.280s/kept", r.out.path);
            snprintf(r.trace, sizeof r.trace, "%.280s/trace.db", kept);
            assert_true(assert_readable(&r) > 1000);
            kill_run_remove_folder(kept);
        }
        kill_run_deinit(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(disk_full),
        tide_unit_test(log_cannot_grow),
        tide_unit_test(disk_breaks),
        tide_unit_test(disk_turns_read_only),
        tide_unit_test(file_size_limit),
        tide_unit_test(folder_removed),
        tide_unit_test(trace_removed),
        tide_unit_test(trace_replaced),
        tide_unit_test(refused_at_the_start),
        tide_unit_test(read_only_mount),
        tide_unit_test(small_file_system),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
