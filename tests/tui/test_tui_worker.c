// SPDX-License-Identifier: MIT
//
// The worker's thread: results, short waits, replacement, cancelling, stopping, subjects of its own. Fake questions
// that wait for a gate make every order of things certain; nothing sleeps.
#include "tests/tide_test.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "tests/analysis/subject_fixture.h"
#include "tui/scene/worker.h"

enum { TIMEOUT_MS = 20000 };

/// Counts what was made and released over all questions of a test.
static atomic_int n_made, n_released, n_run;

/// Opened by the test, waited for by a question.
typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool is_open, was_reached;
} gate;

static gate new_gate(void) { return (gate){.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER}; }

static void set_gate(gate *g, bool *what) {
    pthread_mutex_lock(&g->lock);
    *what = true;
    pthread_cond_broadcast(&g->moved);
    pthread_mutex_unlock(&g->lock);
}

static void wait_gate(gate *g, const bool *what) {
    pthread_mutex_lock(&g->lock);
    while (!*what) pthread_cond_wait(&g->moved, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

typedef struct question {
    int n, answer;
    gate *gate;        ///< NULL: it waits for nothing
    uint64_t takes_ns; ///< at least
    bool loops;        ///< reports progress until it is cancelled
    tide_status status;
    const tide_subject *saw_a, *saw_b;
    size_t saw_items;
} question;

static tide_status run_question(void *ctx, tide_subject *a, tide_subject *b, const tide_progress *progress,
                                tide_error *err) {
    question *q = ctx;
    atomic_fetch_add(&n_run, 1);
    q->saw_a = a;
    q->saw_b = b;
    if (a != NULL) q->saw_items = tide_subject_get_facts(a)->n_items;
    if (q->gate != NULL) {
        set_gate(q->gate, &q->gate->was_reached);
        if (!q->loops) wait_gate(q->gate, &q->gate->is_open);
    }
    while (q->loops) {
        if (!progress->tell(progress->ctx, 0.25, "looping")) return TIDE_FAIL(err, TIDE_ERR_CANCELLED, "cancelled");
    }
    for (const uint64_t begin = tide_now_ns(); tide_now_ns() - begin < q->takes_ns;) continue;
    if (q->status != TIDE_OK) return TIDE_FAIL(err, q->status, "no answer to %d", q->n);
    q->answer = 2 * q->n;
    return TIDE_OK;
}

static void release_question(void *ctx) {
    atomic_fetch_add(&n_released, 1);
    tide_host_free(ctx);
}

static question *new_question(int n) {
    question *q = tide_host_calloc(1, sizeof *q);
    assert_non_null(q);
    q->n = n;
    atomic_fetch_add(&n_made, 1);
    return q;
}

static void ask(tide_tui_worker *w, int slot, uint64_t key, question *q) {
    const tide_tui_request job = {.slot = slot, .key = key, .run = run_question, .release = release_question, .ctx = q};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_tui_worker_submit(w, &job, &err), &err);
}

static tide_tui_worker *start(void) {
    tide_tui_worker *w = NULL;
    tide_error err = TIDE_ERROR_INIT;
    atomic_store(&n_made, 0);
    atomic_store(&n_released, 0);
    atomic_store(&n_run, 0);
    assert_tide_ok(tide_tui_worker_start(NULL, NULL, &w, &err), &err);
    return w;
}

static void stop(tide_tui_worker *w) {
    tide_tui_worker_stop(w);
    assert_int_equal(atomic_load(&n_made), atomic_load(&n_released));
}

/// Waits until the answer is there.
static question *take(tide_tui_worker *w, int slot, uint64_t key, tide_status *status) {
    void *ctx = NULL;
    tide_error err = TIDE_ERROR_INIT;
    while (!tide_tui_worker_take(w, slot, key, &ctx, status, &err)) {
        struct pollfd fd = {.fd = tide_tui_worker_wake_fd(w), .events = POLLIN};
        assert_int_equal(poll(&fd, 1, TIMEOUT_MS), 1);
        tide_tui_worker_drain_wake(w);
    }
    return ctx;
}

static void an_answer_comes_with_its_key(void **state) {
    (void)state;
    tide_tui_worker *w = start();
    ask(w, 3, 77, new_question(21));
    tide_status status = TIDE_ERR_UNKNOWN;
    question *q = take(w, 3, 77, &status);
    assert_int_equal(status, TIDE_OK);
    assert_int_equal(q->answer, 42);
    void *ctx;
    assert_false(tide_tui_worker_take(w, 3, 77, &ctx, &status, NULL)); // once
    release_question(q);

    ask(w, 3, 78, new_question(1));
    release_question(take(w, 3, 78, &status));
    ask(w, 3, 79, new_question(1));
    while (tide_tui_worker_is_busy(w, 3, 79)) continue;
    assert_false(tide_tui_worker_take(w, 3, 80, &ctx, &status, NULL)); // another question's
    stop(w);
}

static void what_it_says_of_a_failure_arrives(void **state) {
    (void)state;
    tide_tui_worker *w = start();
    question *q = new_question(5);
    q->status = TIDE_ERR_NOT_FOUND;
    ask(w, 0, 1, q);
    while (tide_tui_worker_is_busy(w, 0, 1)) continue;
    void *ctx = NULL;
    tide_status status = TIDE_OK;
    tide_error err = TIDE_ERROR_INIT;
    assert_true(tide_tui_worker_take(w, 0, 1, &ctx, &status, &err));
    assert_int_equal(status, TIDE_ERR_NOT_FOUND);
    assert_string_equal(err.msg, "no answer to 5");
    release_question(ctx);
    const tide_tui_request bad = {
        .slot = TIDE_TUI_MAX_REQUESTS, .run = run_question, .release = release_question, .ctx = new_question(1)};
    assert_int_equal(tide_tui_worker_submit(w, &bad, NULL), TIDE_ERR_INVALID); // and the question is released
    stop(w);
}

static void a_long_question_does_not_block_its_caller(void **state) {
    (void)state;
    tide_tui_worker *w = start();
    gate g = new_gate();
    question *q = new_question(4);
    q->gate = &g;
    ask(w, 1, 9, q); // comes back although nothing is answered
    wait_gate(&g, &g.was_reached);
    assert_true(tide_tui_worker_is_busy(w, 1, 9));
    assert_false(tide_tui_worker_is_busy(w, 1, 10));
    void *ctx;
    tide_status status;
    assert_false(tide_tui_worker_take(w, 1, 9, &ctx, &status, NULL));
    char said[64];
    tide_tui_worker_progress(w, 1, said, sizeof said);
    assert_string_equal(said, "working");

    ask(w, 2, 11, new_question(8)); // waits behind it
    tide_tui_worker_progress(w, 2, said, sizeof said);
    assert_string_equal(said, "waiting");
    assert_true(tide_tui_worker_is_busy(w, 2, 11));
    set_gate(&g, &g.is_open);
    release_question(take(w, 1, 9, &status));
    question *second = take(w, 2, 11, &status);
    assert_int_equal(second->answer, 16);
    release_question(second);
    tide_tui_worker_progress(w, 2, said, sizeof said);
    assert_string_equal(said, "");
    stop(w);
}

/// The caller waits up to `until_ns` for a quick result. @return whether it is there when the caller goes on
static bool is_there_at_once(tide_tui_worker *w, int slot, uint64_t key, question *q, uint64_t until_ns) {
    const tide_tui_request request = {.slot = slot,
                                      .key = key,
                                      .run = run_question,
                                      .release = release_question,
                                      .ctx = q,
                                      .wait_until_ns = until_ns};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_tui_worker_submit(w, &request, &err), &err);
    void *ctx;
    tide_status status;
    if (!tide_tui_worker_take(w, slot, key, &ctx, &status, NULL)) return false;
    release_question(ctx);
    return true;
}

/// The caller waits for a result, but not when the last one of the slot took long.
static void quick_results_are_waited_for(void **state) {
    (void)state;
    tide_tui_worker *w = start();
    const uint64_t ns_per_ms = 1000000, far = tide_now_ns() + (uint64_t)TIMEOUT_MS * ns_per_ms;
    question *quick = new_question(1), *slow = new_question(2), *blocked = new_question(3);
    quick->takes_ns = ns_per_ms;
    slow->takes_ns = 2 * (uint64_t)TIDE_TUI_WAIT_MS * ns_per_ms;
    assert_true(is_there_at_once(w, 6, 1, quick, far));
    assert_true(is_there_at_once(w, 7, 2, slow, far));
    gate g = new_gate();
    blocked->gate = &g;
    assert_false(is_there_at_once(w, 7, 3, blocked, far));
    assert_true(tide_now_ns() < far);
    assert_true(tide_tui_worker_is_busy(w, 7, 3));
    set_gate(&g, &g.is_open);
    tide_status status;
    release_question(take(w, 7, 3, &status));
    stop(w);
}

static void a_newer_question_replaces_an_older_one(void **state) {
    (void)state;
    tide_tui_worker *w = start();
    gate g = new_gate();
    question *q = new_question(1);
    q->gate = &g;
    q->loops = true; // for ever, unless it is cancelled
    ask(w, 5, 1, q);
    wait_gate(&g, &g.was_reached);
    char said[64] = "";
    while (strcmp(said, "looping 25 %") != 0) tide_tui_worker_progress(w, 5, said, sizeof said);
    ask(w, 5, 2, new_question(6));
    assert_false(tide_tui_worker_is_busy(w, 5, 1));
    tide_status status;
    question *second = take(w, 5, 2, &status);
    assert_int_equal(status, TIDE_OK);
    assert_int_equal(second->answer, 12);
    release_question(second);
    // One that waits, and one that was answered and never taken, are replaced too.
    gate h = new_gate();
    question *blocks = new_question(1);
    blocks->gate = &h;
    ask(w, 0, 1, blocks);
    wait_gate(&h, &h.was_reached);
    ask(w, 6, 1, new_question(1));
    ask(w, 6, 2, new_question(2));
    const int run_before = atomic_load(&n_run);
    set_gate(&h, &h.is_open);
    while (tide_tui_worker_is_busy(w, 6, 2)) continue;
    assert_int_equal(atomic_load(&n_run), run_before + 1); // the replaced one never ran
    ask(w, 6, 3, new_question(3));
    question *third = take(w, 6, 3, &status);
    assert_int_equal(third->answer, 6);
    release_question(third);
    stop(w);
}

static void cancelling_frees_the_slot_at_once(void **state) {
    (void)state;
    tide_tui_worker *w = start();
    gate g = new_gate();
    question *q = new_question(1);
    q->gate = &g;
    q->loops = true;
    ask(w, 4, 1, q);
    wait_gate(&g, &g.was_reached);
    tide_tui_worker_cancel(w, 4);
    assert_false(tide_tui_worker_is_busy(w, 4, 1));
    ask(w, 4, 2, new_question(3));
    tide_status status;
    release_question(take(w, 4, 2, &status));
    tide_tui_worker_cancel(w, 4); // nothing there
    stop(w);
}

static void stopping_gives_everything_back(void **state) {
    (void)state;
    tide_tui_worker *w = start();
    gate g = new_gate();
    question *q = new_question(1);
    q->gate = &g;
    q->loops = true;
    ask(w, 0, 1, q);
    wait_gate(&g, &g.was_reached);
    for (int i = 1; i < TIDE_TUI_MAX_REQUESTS; i++) ask(w, i, 1, new_question(i));
    stop(w); // counts
    tide_tui_worker_stop(NULL);
}

/// Behind a question that tells how far it is, the next one says what it waits for.
static void who_waits_says_for_what(void **state) {
    (void)state;
    tide_tui_worker *w = start();
    gate g = new_gate();
    char said[64];
    question *long_one = new_question(1);
    long_one->gate = &g;
    long_one->loops = true;
    ask(w, 1, 1, long_one);
    wait_gate(&g, &g.was_reached);
    do { // until it has told of itself
        tide_tui_worker_progress(w, 1, said, sizeof said);
    } while (strcmp(said, "looping 25 %") != 0);
    ask(w, 2, 2, new_question(3));
    tide_tui_worker_progress(w, 2, said, sizeof said);
    assert_string_equal(said, "looping 25 %, then this");
    tide_tui_worker_cancel(w, 1);
    tide_status status;
    release_question(take(w, 2, 2, &status));
    stop(w);
}

static void it_has_subjects_of_its_own(void **state) {
    (void)state;
    tide_subject *a = subject_of_plan(random_plan(1, 40, 12)), *b = subject_of_plan(random_plan(2, 30, 12));
    tide_subject *c = subject_of_plan(random_plan(3, 20, 12));
    tide_tui_worker *w = NULL;
    tide_error err = TIDE_ERROR_INIT;
    atomic_store(&n_made, 0);
    atomic_store(&n_released, 0);
    assert_tide_ok(tide_tui_worker_start(a, b, &w, &err), &err);
    tide_status status;
    ask(w, 0, 1, new_question(1));
    question *q = take(w, 0, 1, &status);
    const tide_subject *first_a = q->saw_a, *first_b = q->saw_b;
    assert_ptr_not_equal(first_a, a);
    assert_ptr_not_equal(first_b, b);
    assert_int_equal(q->saw_items, 40);
    release_question(q);
    // Another B: A stays the one it was, with all that it has loaded.
    assert_tide_ok(tide_tui_worker_set_subjects(w, a, c, &err), &err);
    ask(w, 0, 2, new_question(1));
    q = take(w, 0, 2, &status);
    assert_ptr_equal(q->saw_a, first_a);
    assert_ptr_not_equal(q->saw_b, NULL);
    release_question(q);
    // Another A, no B; and a question that ran in between is not answered.
    gate g = new_gate();
    question *long_one = new_question(1);
    long_one->gate = &g;
    long_one->loops = true;
    ask(w, 1, 1, long_one);
    wait_gate(&g, &g.was_reached);
    assert_tide_ok(tide_tui_worker_set_subjects(w, c, NULL, &err), &err);
    assert_tide_ok(tide_tui_worker_set_subjects(w, c, b, &err), &err); // before it came to the last one
    assert_tide_ok(tide_tui_worker_set_subjects(w, c, NULL, &err), &err);
    assert_false(tide_tui_worker_is_busy(w, 1, 1));
    ask(w, 0, 3, new_question(1));
    q = take(w, 0, 3, &status);
    assert_int_equal(q->saw_items, 20);
    assert_null(q->saw_b);
    release_question(q);
    stop(w);
    tide_subject_destroy(a);
    tide_subject_destroy(b);
    tide_subject_destroy(c);
}

/// Whatever the order, every question is released once and every answer is the right one.
static void a_storm_of_questions(void **state) {
    (void)state;
    tide_tui_worker *w = start();
    tide_rng rng = {99};
    uint64_t keys[TIDE_TUI_MAX_REQUESTS] = {0};
    for (int i = 0; i < 3000; i++) {
        const int slot = (int)tide_rng_below(&rng, TIDE_TUI_MAX_REQUESTS);
        void *ctx = NULL;
        tide_status status;
        switch (tide_rng_below(&rng, 8)) {
        case 0:
            tide_tui_worker_cancel(w, slot);
            keys[slot] = 0;
            break;
        case 1:
        case 2:
        case 3:
            if (keys[slot] != 0 && tide_tui_worker_take(w, slot, keys[slot], &ctx, &status, NULL)) {
                assert_int_equal(((question *)ctx)->answer, 2 * (int)keys[slot]);
                release_question(ctx);
                keys[slot] = 0;
            }
            break;
        default:
            keys[slot] = (uint64_t)i + 1;
            ask(w, slot, keys[slot], new_question(i + 1));
        }
    }
    stop(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(an_answer_comes_with_its_key),
        tide_unit_test(what_it_says_of_a_failure_arrives),
        tide_unit_test(a_long_question_does_not_block_its_caller),
        tide_unit_test(quick_results_are_waited_for),
        tide_unit_test(a_newer_question_replaces_an_older_one),
        tide_unit_test(cancelling_frees_the_slot_at_once),
        tide_unit_test(stopping_gives_everything_back),
        tide_unit_test(who_waits_says_for_what),
        tide_unit_test(it_has_subjects_of_its_own),
        tide_unit_test(a_storm_of_questions),
    };
    return cmocka_run_group_tests_name("tui_worker", tests, NULL, NULL);
}
