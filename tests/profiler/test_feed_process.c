// SPDX-License-Identifier: MIT
//
// A feed in a program that forks, has no memory, may write no larger files, is killed.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "feed_fixture.h"

// ---- processes ----

static int status_of(pid_t pid) {
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void put_some(tide__feed *f, uint64_t from, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        const tide_memory_event e = fx_event(TIDE_MEM_ALLOC, from + i);
        tide__feed_memory(f, &e);
    }
}

/// The mapped file is shared with a forked child, whose events would run into the parent's.
static void a_forked_child_is_silent(void **state) {
    (void)state;
    feed_fx *fx = fx_open(64, false);
    put_some(fx->feed, 1, 3);
    assert_false(tide__feed_is_child(fx->feed));
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        put_some(fx->feed, 100, 500); // more than there is room for: it must not wait either
        tide_scope s = {.name = "child"};
        tide__feed_scope(fx->feed, &(tide_scope_event){.enter = true, .scope = &s});
        tide__feed_run(fx->feed, true, 9, 0);
        tide__feed_check(fx->feed);
        tide__feed_stats stats;
        tide__feed_get_stats(fx->feed, &stats);
        const bool is_quiet = stats.n_events == 0 && tide__feed_error(fx->feed, NULL) == TIDE_OK;
        const bool is_child = tide__feed_is_child(fx->feed);
        tide__feed_end(fx->feed);
        tide__feed_destroy(fx->feed, true); // leaves the parent's file alone
        _exit(is_quiet && is_child ? 0 : 1);
    }
    assert_int_equal(status_of(pid), 0);
    assert_int_equal(access(tide__feed_path(fx->feed), F_OK), 0);
    assert_int_equal(atomic_load(&tide__feed_head(fx->feed)->state), TIDE__FEED_OPEN);
    put_some(fx->feed, 4, 3); // the parent goes on
    for (uint64_t i = 1; i <= 6; i++) assert_int_equal(fx_next(fx).block_id, i);
    assert_int_equal(fx_stats(fx).n_events, 6);
    assert_true(tide__feed_reader_producer_lives(fx->reader));
    fx_close(fx);
}

/// The locks on the file, of both ends, are not handed on to children: with the feed they go.
static void a_forked_child_holds_no_lock(void **state) {
    (void)state;
    feed_fx *fx = fx_open(64, false);
    int up[2], stay[2];
    assert_int_equal(pipe(up), 0);
    assert_int_equal(pipe(stay), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(stay[1]);
        tide__feed_reader_close(fx->reader, true); // leaves the parent's file alone
        char c = 'x';
        _exit(write(up[1], &c, 1) == 1 && read(stay[0], &c, 1) == 0 ? 0 : 1);
    }
    char path[400], c;
    snprintf(path, sizeof path, "%s", tide__feed_path(fx->feed));
    assert_int_equal(read(up[0], &c, 1), 1); // the child is there and has closed what it closes
    tide__feed_end(fx->feed);
    tide__feed_destroy(fx->feed, false);
    fx->feed = NULL;
    assert_true(tide__feed_is_in_use(path)); // by its reader
    tide__feed_reader_close(fx->reader, false);
    assert_false(tide__feed_is_in_use(path)); // though its process, this one, and a child of that live
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__feed_reader_open(path, false, &fx->reader, &err), &err);
    for (int i = 0; i < 2; i++) close(up[i]), close(stay[i]);
    assert_int_equal(status_of(pid), 0);
    fx_close(fx);
}

/// A recorder in a child of its own.
static void a_forked_child_may_have_its_own_feed(void **state) {
    (void)state;
    feed_fx *fx = fx_open(64, false);
    put_some(fx->feed, 1, 1);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        tide__feed *own = fx_create(&fx->dir, 64, false);
        put_some(own, 1, 5);
        put_some(fx->feed, 1, 5);
        tide__feed_stats stats;
        tide__feed_get_stats(own, &stats);
        tide__feed_end(own);
        tide__feed_destroy(own, true);
        _exit(stats.n_events == 5 ? 0 : 1);
    }
    assert_int_equal(status_of(pid), 0);
    assert_int_equal(fx_stats(fx).n_events, 1);
    fx_close(fx);
}

/// What a killed process put in is there, each slot whole, and that the process is gone can be seen, also while a
/// child that it forked lives on and has all of its files.
static void what_a_killed_process_put_in(void **state) {
    (void)state;
    enum { SLOTS = 1 << 14 };
    tmp_dir dir;
    tmp_dir_make(&dir);
    int up[2], stay[2];
    assert_int_equal(pipe(up), 0);
    assert_int_equal(pipe(stay), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        tide__feed *f = fx_create(&dir, SLOTS, false);
        if (fork() == 0) { // holds what it was given until the test is over
            close(stay[1]);
            char c;
            _exit(read(stay[0], &c, 1) == 0 ? 0 : 1);
        }
        for (uint64_t i = 1;; i++) {
            put_some(f, i, 1);
            if (i == 5000 && write(up[1], tide__feed_path(f), strlen(tide__feed_path(f)) + 1) < 0) _exit(1);
        }
    }
    close(up[1]);
    char path[400] = "";
    assert_true(read(up[0], path, sizeof path) > 0);
    assert_true(tide__feed_is_in_use(path));
    assert_int_equal(kill(pid, SIGKILL), 0);
    const int status = status_of(pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_false(tide__feed_is_in_use(path));
    tide__feed_reader *r;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__feed_reader_open(path, false, &r, &err), &err);
    assert_false(tide__feed_reader_producer_lives(r));
    const uint64_t end = tide__feed_reader_end(r, 0, 0, true);
    assert_true(end > 5000);
    for (uint64_t at = 1; at < end; at++) { // the first slot says whose they are
        const tide__slot *s = tide__feed_reader_slot(r, 0, at);
        assert_non_null(s);
        assert_int_equal(s->block_id, at);
        assert_int_equal(s->address, 0x1000 * at);
    }
    tide__feed_reader_close(r, true);
    close(stay[1]);
    close(stay[0]);
    close(up[0]);
    tmp_dir_remove(&dir);
}

// ---- others ----

/// Whatever the umask: what a program allocates is for its owner and for the drain.
static void a_feed_is_private(void **state) {
    (void)state;
    const mode_t before = umask(0);
    feed_fx *fx = fx_open(64, false);
    umask(before);
    put_some(fx->feed, 1, 3);
    struct stat st;
    assert_int_equal(stat(tide__feed_path(fx->feed), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    fx_close(fx);
}

static volatile sig_atomic_t n_heard;
static void *volatile heard_at;
static char *of_the_test; ///< a map of a file that is none of a feed
static size_t of_the_test_bytes;

static void on_bus_of_the_test(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)context;
    n_heard = n_heard + 1;
    heard_at = info->si_addr;
    mmap(of_the_test, of_the_test_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

/// A file of its own that the program itself has mapped and cut.
static void fault_elsewhere(const tmp_dir *dir) {
    const int fd = open(dir->file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    of_the_test_bytes = (size_t)sysconf(_SC_PAGESIZE);
    if (fd < 0 || ftruncate(fd, (off_t)of_the_test_bytes) != 0) _exit(90);
    of_the_test = mmap(NULL, of_the_test_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (of_the_test == MAP_FAILED || ftruncate(fd, 0) != 0) _exit(91);
    *(volatile char *)(of_the_test + 5) = 1;
    close(fd);
    remove(dir->file);
}

/// Cut to `bytes`, the feed ends with a word, and the program goes on: more events, other threads' rings, its own
/// handler for what is its own. @return an exit code
static int live_through_a_cut(const tmp_dir *dir, off_t bytes, bool has_handler) {
    if (has_handler) {
        struct sigaction a = {.sa_sigaction = on_bus_of_the_test, .sa_flags = SA_SIGINFO};
        if (sigaction(SIGBUS, &a, NULL) != 0) return 1;
    }
    tide__feed *f = fx_create(dir, 4096, false);
    tide__feed_reader *r = NULL;
    tide_error err = TIDE_ERROR_INIT;
    put_some(f, 1, 200);
    if (tide__feed_reader_open(tide__feed_path(f), false, &r, &err) != TIDE_OK) return 2;
    if (truncate(tide__feed_path(f), bytes) != 0) return 3;
    put_some(f, 201, 20000); // in wait mode: a thread that waits would wait for ever
    char tag[64];
    for (int i = 0; i < 20000; i++) { // into the log
        tide_memory_event e = fx_event(TIDE_MEM_ALLOC, 1);
        snprintf(tag, sizeof tag, "a new name %d", i);
        e.tag = tag;
        tide__feed_memory(f, &e);
    }
    if (tide__feed_error(f, &err) != TIDE_ERR_IO || strstr(err.msg, "cut short") == NULL) return 4;
    tide__feed_stats s;
    tide__feed_get_stats(f, &s);
    if (s.n_events + s.n_refused != 40200 || s.n_events < 200) return 10;
    // A reader in this process, or elsewhere: it is told, and is not killed.
    tide__feed_reader_end(r, 0, 0, true);
    for (uint64_t at = 0; at < 200; at++) (void)!tide__feed_reader_slot(r, 0, at);
    if (tide__feed_reader_refresh(r, &err) != TIDE_ERR_BAD_INPUT || strstr(err.msg, "cut short") == NULL) return 5;
    if (has_handler) {
        fault_elsewhere(dir);
        if (n_heard != 1 || heard_at != of_the_test + 5) return 6;
    }
    tide__feed_end(f);
    tide__feed_destroy(f, true);
    tide__feed_reader_close(r, true);
    struct sigaction now;
    if (sigaction(SIGBUS, NULL, &now) != 0) return 7;
    if (has_handler ? now.sa_sigaction != on_bus_of_the_test : now.sa_handler != SIG_DFL) return 8;
    return tmp_dir_count(dir) == 0 ? 0 : 9;
}

static void a_feed_that_is_cut_short(void **state) {
    (void)state;
    static const off_t lengths[] = {0,
                                    100,
                                    4096,
                                    TIDE__FEED_HEADER_BYTES,
                                    TIDE__FEED_HEADER_BYTES + 4096,
                                    TIDE__FEED_HEADER_BYTES + TIDE__FEED_LOG_BYTES + 4096};
    tmp_dir dir;
    tmp_dir_make(&dir);
    for (size_t i = 0; i < 2 * sizeof lengths / sizeof lengths[0]; i++) {
        const pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            signal(SIGBUS, SIG_DFL); // sanitizers hear it, too
            alarm(60);
            _exit(live_through_a_cut(&dir, lengths[i / 2], i % 2 == 1));
        }
        const int status = status_of(pid);
        if (!WIFEXITED(status)) fail_msg("cut to %ld: ended by signal %d", (long)lengths[i / 2], WTERMSIG(status));
        if (WEXITSTATUS(status) != 0) fail_msg("cut to %ld: %d", (long)lengths[i / 2], WEXITSTATUS(status));
    }
    tmp_dir_remove(&dir);
}

/// A fault that is none of ours ends a program without a handler, as it would without a feed; so does kill -BUS.
static void other_faults_are_not_ours(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        tmp_dir dir;
        tmp_dir_make(&dir);
        const pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            const struct rlimit no_core = {0};
            setrlimit(RLIMIT_CORE, &no_core);
            signal(SIGBUS, SIG_DFL);
            tide__feed *f = fx_create(&dir, 64, false);
            put_some(f, 1, 3);
            tmp_dir other = dir;
            snprintf(other.file, sizeof other.file, "%s/other", dir.path);
            if (i == 0) fault_elsewhere(&other);
            kill(getpid(), SIGBUS);
            _exit(1);
        }
        const int status = status_of(pid);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGBUS);
        tmp_dir_remove(&dir);
    }
}

// ---- no memory, no disk ----

/// A feed, 1200 names into it, more than its first table holds. @return how the making of it ended
static tide_status fill_a_feed(const tmp_dir *dir, tide__feed_stats *s) {
    const tide__feed_options opt = {.trace_path = dir->file, .rank = -1, .ring_slots = 64, .drop_when_full = true};
    tide__feed *f = NULL;
    tide_error err = TIDE_ERROR_INIT;
    const tide_status st = tide__feed_create(&opt, &f, &err);
    if (st != TIDE_OK) {
        assert_true(err.msg[0] != '\0');
        return st;
    }
    for (int i = 0; i < 1200; i++) {
        char tag[32];
        snprintf(tag, sizeof tag, "tag %d", i);
        tide_memory_event e = fx_event(TIDE_MEM_ALLOC, 1);
        e.tag = tag;
        tide__feed_memory(f, &e);
    }
    tide__feed_get_stats(f, s);
    assert_int_equal(s->n_events + s->n_refused, 1200);
    assert_int_equal(tide__feed_error(f, NULL), s->n_refused == 0 ? TIDE_OK : TIDE_ERR_NOMEM);
    atomic_store(&tide__feed_head(f)->drain, TIDE__DRAIN_FAILED); // no drain will make room for the last gap
    tide__feed_end(f);
    tide__feed_destroy(f, true);
    return TIDE_OK;
}

static void no_memory_at_each_allocation(void **state) {
    (void)state;
    tmp_dir dir;
    tmp_dir_make(&dir);
    tide__feed_stats s;
    tide_host_stats before, after;
    tide_host_get_stats(&before);
    assert_int_equal(fill_a_feed(&dir, &s), TIDE_OK);
    tide_host_get_stats(&after);
    const int64_t n_allocs = (int64_t)(after.n_allocs - before.n_allocs);
    assert_int_equal(s.n_refused, 0);
    int n_not_made = 0;
    for (int64_t n = 0; n < n_allocs; n++) {
        tide_host_fail_after(n);
        const tide_status st = fill_a_feed(&dir, &s);
        tide_host_fail_after(-1);
        if (st != TIDE_OK) assert_int_equal(st, TIDE_ERR_NOMEM);
        n_not_made += st != TIDE_OK;
        // A table that cannot grow goes on as it is, and a ring takes nothing of the heap.
        if (st == TIDE_OK) assert_int_equal(s.n_refused, 0);
        assert_int_equal(tmp_dir_count(&dir), 0);
    }
    assert_true(n_not_made >= 5); // the feed, its table, its names, its maps
    tmp_dir_remove(&dir);
}

/// In a child, so that the limit and its signal are the child's.
static int with_limit(const tmp_dir *dir, rlim_t bytes, int (*body)(const tmp_dir *dir)) {
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        const struct rlimit limit = {.rlim_cur = bytes, .rlim_max = bytes};
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(99);
        _exit(body(dir));
    }
    const int status = status_of(pid);
    if (!WIFEXITED(status)) fail_msg("ended by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

static int create_fails(const tmp_dir *dir) {
    const tide__feed_options opt = {.trace_path = dir->file, .rank = -1};
    tide__feed *f;
    tide_error err = TIDE_ERROR_INIT;
    if (tide__feed_create(&opt, &f, &err) != TIDE_ERR_WRITE) return 1;
    if (strstr(err.msg, "File too large") == NULL || strstr(err.note, "ulimit -f") == NULL) return 2;
    return tmp_dir_count(dir) == 0 ? 0 : 3;
}

/// Room for the header and the log, not for a ring: the thread is quiet, the program goes on.
static int ring_fails(const tmp_dir *dir) {
    const tide__feed_options opt = {.trace_path = dir->file, .rank = -1};
    tide__feed *f;
    tide_error err = TIDE_ERROR_INIT;
    if (tide__feed_create(&opt, &f, &err) != TIDE_OK) return 1;
    put_some(f, 1, 100);
    tide__feed_stats s;
    tide__feed_get_stats(f, &s);
    if (s.n_events != 0 || s.n_refused != 100 || s.n_rings != 0) return 2;
    if (tide__feed_error(f, &err) != TIDE_ERR_WRITE || strstr(err.msg, "File too large") == NULL) return 3;
    tide__feed_reader *r; // nothing is wrong with the file
    if (tide__feed_reader_open(tide__feed_path(f), true, &r, &err) != TIDE_OK) return 4;
    tide__feed_reader_close(r, false);
    tide__feed_end(f);
    tide__feed_destroy(f, true);
    return 0;
}

/// A signal that was waiting already is the program's.
static int a_waiting_signal_stays(const tmp_dir *dir) {
    sigset_t xfsz, pending;
    sigemptyset(&xfsz);
    sigaddset(&xfsz, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &xfsz, NULL);
    if (create_fails(dir) != 0) return 1;
    sigpending(&pending);
    if (sigismember(&pending, SIGXFSZ)) return 2; // ours was eaten
    raise(SIGXFSZ);
    if (create_fails(dir) != 0) return 3;
    sigpending(&pending);
    return sigismember(&pending, SIGXFSZ) ? 0 : 4;
}

static void a_limit_on_file_sizes_kills_no_process(void **state) {
    (void)state;
    tmp_dir dir;
    tmp_dir_make(&dir);
    assert_int_equal(with_limit(&dir, 0, create_fails), 0);
    assert_int_equal(with_limit(&dir, TIDE__FEED_HEADER_BYTES, create_fails), 0);
    assert_int_equal(with_limit(&dir, TIDE__FEED_HEADER_BYTES + TIDE__FEED_LOG_BYTES, ring_fails), 0);
    assert_int_equal(with_limit(&dir, 4096, a_waiting_signal_stays), 0);
    tmp_dir_remove(&dir);
}

static void places_where_nothing_can_be_made(void **state) {
    (void)state;
    tide__feed *f;
    tide_error err = TIDE_ERROR_INIT;
    tide__feed_options opt = {.trace_path = "/nonexistent folder/trace.db", .rank = -1};
    assert_tide_status(tide__feed_create(&opt, &f, &err), TIDE_ERR_WRITE);
    assert_text_has(err.msg, "cannot create '/nonexistent folder/trace.db.feed-");
    assert_text_has(err.msg, "No such file");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(a_forked_child_is_silent),
        tide_unit_test(a_forked_child_holds_no_lock),
        tide_unit_test(a_forked_child_may_have_its_own_feed),
        tide_unit_test(what_a_killed_process_put_in),
        tide_unit_test(a_feed_is_private),
        tide_unit_test(a_feed_that_is_cut_short),
        tide_unit_test(other_faults_are_not_ours),
        tide_unit_test(no_memory_at_each_allocation),
        tide_unit_test(a_limit_on_file_sizes_kills_no_process),
        tide_unit_test(places_where_nothing_can_be_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
