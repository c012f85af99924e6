// SPDX-License-Identifier: MIT
//
// A feed in a program that forks, has no memory, may write no larger files, is killed.
#include <signal.h>
#include <sys/resource.h>
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
    atomic_store(&tide__feed_head(f)->drain, TIDE__DRAIN_FAILED); // nobody will make room for the last gap
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
    int n_not_made = 0, n_refusing = 0;
    for (int64_t n = 0; n < n_allocs; n++) {
        tide_host_fail_after(n);
        const tide_status st = fill_a_feed(&dir, &s);
        tide_host_fail_after(-1);
        if (st != TIDE_OK) assert_int_equal(st, TIDE_ERR_NOMEM);
        n_not_made += st != TIDE_OK;
        n_refusing += st == TIDE_OK && s.n_refused > 0;
        assert_int_equal(tmp_dir_count(&dir), 0);
    }
    assert_true(n_not_made >= 5);    // the feed, its table, its names
    assert_int_equal(n_refusing, 1); // the ring; a table that cannot grow goes on as it is
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

static void a_limit_on_file_sizes_kills_nobody(void **state) {
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
        tide_unit_test(no_memory_at_each_allocation),
        tide_unit_test(a_limit_on_file_sizes_kills_nobody),
        tide_unit_test(places_where_nothing_can_be_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
