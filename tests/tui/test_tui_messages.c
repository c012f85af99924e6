// SPDX-License-Identifier: MIT
//
// Log lines while the view is open: kept from the sink, said, listed, and handed on in the end, each once.
#include "tests/tide_test.h"

#include <pthread.h>

#include "core/base/log.h"
#include "tui/term/messages.h"

typedef struct heard {
    size_t n;
    char last[256], all[4096];
} heard;

static void hear(void *ctx, tide_log_level level, const char *line) {
    heard *h = ctx;
    h->n++;
    snprintf(h->last, sizeof h->last, "%d %s", (int)level, line);
    const size_t len = strlen(h->all);
    snprintf(h->all + len, sizeof h->all - len, "%s\n", h->last);
}

static void lines_wait_until_the_screen_is_given_back(void **state) {
    (void)state;
    heard h = {0};
    char line[256];
    bool is_error = true;
    tide_log_set(hear, &h, TIDE_LOG_WARN);
    tide_tui_messages *m = tide_tui_messages_take();
    assert_non_null(m);
    assert_false(tide_tui_messages_has_news(m));
    assert_int_equal(tide_tui_messages_news(m, line, sizeof line, &is_error), 0);
    tide_log(TIDE_LOG_INFO, "nobody asked for it");
    tide_log(TIDE_LOG_WARN, "one %d", 1);
    tide_log(TIDE_LOG_ERROR, "bad\nline");
    tide_log(TIDE_LOG_WARN, "two");
    assert_int_equal(h.n, 0);
    assert_true(tide_tui_messages_has_news(m));
    // The gravest is said, however many came after it.
    assert_int_equal(tide_tui_messages_news(m, line, sizeof line, &is_error), 3);
    assert_string_equal(line, "bad line");
    assert_true(is_error);
    assert_false(tide_tui_messages_has_news(m));
    tide_log(TIDE_LOG_WARN, "three");
    assert_int_equal(tide_tui_messages_news(m, line, sizeof line, &is_error), 1);
    assert_string_equal(line, "three");
    assert_false(is_error);
    tide_text list = {0};
    tide_tui_messages_list(m, &list);
    assert_string_equal(tide_text_str(&list), "warning: one 1\nerror: bad line\nwarning: two\nwarning: three\n");
    tide_text_deinit(&list);
    assert_int_equal(h.n, 0);
    tide_tui_messages_give_back(m);
    assert_string_equal(h.all, "1 one 1\n0 bad line\n1 two\n1 three\n");
    tide_log(TIDE_LOG_WARN, "after");
    assert_string_equal(h.last, "1 after"); // the sink is the one that was set
    tide_log_set(NULL, NULL, TIDE_LOG_ERROR);
}

static void notes_come_when_they_are_asked_for(void **state) {
    (void)state;
    heard h = {0};
    tide_text list = {0};
    tide_log_set(hear, &h, TIDE_LOG_INFO);
    tide_tui_messages *m = tide_tui_messages_take();
    tide_log(TIDE_LOG_INFO, "built");
    tide_tui_messages_list(m, &list);
    assert_string_equal(tide_text_str(&list), "note: built\n");
    tide_text_deinit(&list);
    tide_tui_messages_give_back(m);
    assert_int_equal(h.n, 1);
    // Without a log receiver the view still shows warnings, and no line is printed at the end.
    tide_log_set(NULL, NULL, TIDE_LOG_ERROR);
    m = tide_tui_messages_take();
    tide_log(TIDE_LOG_WARN, "seen");
    assert_true(tide_tui_messages_has_news(m));
    tide_tui_messages_give_back(m);
    assert_int_equal(h.n, 1);
    assert_false(tide_log_enabled(TIDE_LOG_ERROR));
}

static void *log_much(void *arg) {
    for (int i = 0; i < 1000; i++) tide_log(TIDE_LOG_WARN, "thread %d line %d", *(const int *)arg, i);
    return NULL;
}

static void of_too_many_the_last_are_kept(void **state) {
    (void)state;
    heard h = {0};
    pthread_t threads[2];
    int numbers[2] = {0, 1};
    char line[256];
    bool is_error;
    tide_log_set(hear, &h, TIDE_LOG_WARN);
    tide_tui_messages *m = tide_tui_messages_take();
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, log_much, &numbers[i]), 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    assert_int_equal(tide_tui_messages_news(m, line, sizeof line, &is_error), 2000);
    tide_log(TIDE_LOG_WARN, "the end");
    tide_tui_messages_give_back(m);
    assert_int_equal(h.n, TIDE_TUI_MAX_MESSAGES + 1); // and how many are not kept
    assert_non_null(strstr(h.all, "1745 earlier lines are not kept"));
    assert_string_equal(h.last, "1 the end");
    tide_log_set(NULL, NULL, TIDE_LOG_ERROR);
    tide_tui_messages_give_back(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(lines_wait_until_the_screen_is_given_back),
        tide_unit_test(notes_come_when_they_are_asked_for),
        tide_unit_test(of_too_many_the_last_are_kept),
    };
    return cmocka_run_group_tests_name("tui_messages", tests, NULL, NULL);
}
