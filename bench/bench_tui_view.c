// SPDX-License-Identifier: MIT
//
// What a key costs in the view: action, questions, layout and cells, at 200x60, with the worker as on a terminal (of
// which only the bytes are missing). Keys follow each other at once, without waiting for the worker, as when a key is
// held down. The time until the worker has everything of the last key on the screen is printed separately, and what one
// key costs of the processor until then, one after the other.
#include <locale.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench_recorder.h"
#include "bench/bench_tui.h"
#include "bench/planner_child.h"
#include "tui/app.h"

enum { WIDTH = 200, HEIGHT = 60, PRESSES = 40, MOVES = 16 };

static void must(tide_status st, const tide_error *err, const char *what) {
    if (st == TIDE_OK) return;
    fprintf(stderr, "%s: %s\n", what, err->msg);
    exit(3);
}

static void frame(tide_tui_app *app) {
    tide_error err = TIDE_ERROR_INIT;
    must(tide_tui_app_frame(app, &err), &err, "frame");
}

static void wait_for_worker(tide_tui_app *app) {
    struct pollfd fd = {.fd = tide_tui_worker_wake_fd(app->worker), .events = POLLIN};
    (void)poll(&fd, 1, 1000);
    tide_tui_worker_drain_wake(app->worker);
}

/// Until nothing is being done aside. @return ms
static double settle(tide_tui_app *app) {
    const double begin = bench_tui_ms();
    while (tide_tui_app_is_busy(app)) {
        wait_for_worker(app);
        frame(app);
    }
    return bench_tui_ms() - begin;
}

typedef struct key_row {
    const char *what, *keys; ///< pressed in turn
} key_row;

/// Samples of all keys of a view together, for the one figure: by the clock, and by the processor of this thread alone,
/// which is what counts on a machine that is busy with other things.
static bench_samples all_keys, all_cpu;

static double cpu_ms(void) { return bench_cpu_ns(CLOCK_THREAD_CPUTIME_ID) / 1e6; }

static void time_keys(tide_tui_app *app, const key_row *row) {
    static bench_samples key, cpu;
    const size_t n = strlen(row->keys);
    key.n = cpu.n = 0;
    for (size_t i = 0; i < PRESSES; i++) {
        const double begin = bench_tui_ms(), cpu_begin = cpu_ms();
        (void)tide_tui_app_key(app, (uint32_t)(unsigned char)row->keys[i % n]);
        frame(app);
        const double took = bench_tui_ms() - begin, worked = cpu_ms() - cpu_begin;
        bench_add(&key, took);
        bench_add(&cpu, worked);
        bench_add(&all_keys, took);
        bench_add(&all_cpu, worked);
    }
    printf("  %-24s %8.3f ms  p99 %8.3f; CPU %8.3f  p99 %8.3f; then aside %8.1f\n", row->what,
           bench_quantile(&key, 0.5), bench_quantile(&key, 0.99), bench_quantile(&cpu, 0.5), bench_quantile(&cpu, 0.99),
           settle(app));
    fflush(stdout);
}

/// What one key costs until its answer is on the screen, the worker's part and the frames in between: of the processor.
static void time_settled(tide_tui_app *app, const key_row *row) {
    static bench_samples cpu;
    const size_t n = strlen(row->keys);
    cpu.n = 0;
    for (size_t i = 0; i < PRESSES; i++) {
        const double begin = bench_cpu_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e6;
        (void)tide_tui_app_key(app, (uint32_t)(unsigned char)row->keys[i % n]);
        frame(app);
        (void)settle(app);
        bench_add(&cpu, bench_cpu_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e6 - begin);
    }
    printf("  %-24s CPU until settled %8.3f ms, p99 %8.3f\n", row->what, bench_quantile(&cpu, 0.5),
           bench_quantile(&cpu, 0.99));
    fflush(stdout);
}

// ---- bytes ----

/// What goes to the screen for a key: `at_once` of the frame that it makes, `in_all` until everything is there that is
/// done aside for it.
static void count_bytes(tide_tui_app *app, const key_row *row) {
    static bench_samples at_once, in_all;
    const size_t n = strlen(row->keys);
    at_once.n = in_all.n = 0;
    const tide_tui_glyphs *before = app->glyphs;
    bench_tui_screen_open(WIDTH, HEIGHT);
    app->glyphs = tide_tui_glyphs_for(TIDE_TUI_GLYPHS_BLOCK, false); // as on a screen with colours
    frame(app);
    (void)bench_tui_screen_show(&app->grid);
    for (size_t i = 0; i < MOVES; i++) {
        (void)tide_tui_app_key(app, (uint32_t)(unsigned char)row->keys[i % n]);
        frame(app);
        uint64_t sent = bench_tui_screen_show(&app->grid);
        bench_add(&at_once, (double)sent);
        while (tide_tui_app_is_busy(app)) {
            wait_for_worker(app);
            if (!tide_tui_app_has_news(app)) continue;
            frame(app);
            sent += bench_tui_screen_show(&app->grid);
        }
        bench_add(&in_all, (double)sent);
    }
    bench_tui_screen_close();
    app->glyphs = before;
    printf("  %-24s %8.0f bytes, max %6.0f; with what comes aside %6.0f, max %6.0f\n", row->what,
           bench_quantile(&at_once, 0.5), bench_quantile(&at_once, 1), bench_quantile(&in_all, 0.5),
           bench_quantile(&in_all, 1));
    fflush(stdout);
}

static void view(tide_tui_app *app, int number, const char *name) {
    static const key_row rows[] = {{"cursor", "lllllhhh"},
                                   {"row", "jjjjkk"},
                                   {"zoom in and out", "+++---"},
                                   {"pan", "LLLHH"},
                                   {"next peak, previous", "pP"},
                                   {"next change, previous", "]["},
                                   {"fit", "f"}};
    char line[32];
    all_keys.n = all_cpu.n = 0;
    snprintf(line, sizeof line, "view %d", number);
    (void)tide_tui_app_line(app, "whole");
    double begin = bench_tui_ms();
    (void)tide_tui_app_line(app, line);
    frame(app);
    const double took = bench_tui_ms() - begin;
    printf("%s: shown after %.1f ms, complete after %.1f ms more\n", name, took, settle(app));
    (void)tide_tui_app_line(app, "whole");
    (void)tide_tui_app_line(app, "zoom-in");
    frame(app);
    settle(app);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) time_keys(app, &rows[i]);
    printf("  %-24s %8.3f ms  p99 %8.3f; CPU %8.3f  p99 %8.3f\n", "ALL", bench_quantile(&all_keys, 0.5),
           bench_quantile(&all_keys, 0.99), bench_quantile(&all_cpu, 0.5), bench_quantile(&all_cpu, 0.99));
    (void)tide_tui_app_line(app, "whole");
    (void)tide_tui_app_line(app, "zoom-in");
    frame(app);
    settle(app);
    time_settled(app, &rows[0]);
    for (size_t i = 0; i < 2; i++) count_bytes(app, &rows[i]);
}

static void rows(tide_tui_app *app) {
    static const key_row keys[] = {{"sort", "o"}, {"reverse", "r"}, {"scroll by pages", " "}};
    static const char *const lines[] = {"filter size>=64KiB", "filter",    "filter alive@cursor", "filter",
                                        "search conv1",       "sort size", "group owner",         "group none"};
    (void)tide_tui_app_line(app, "view 1");
    frame(app);
    settle(app);
    printf("rows\n");
    for (size_t i = 0; i + 1 < sizeof keys / sizeof keys[0]; i++) time_keys(app, &keys[i]);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        const double begin = bench_tui_ms();
        (void)tide_tui_app_line(app, lines[i]);
        frame(app);
        const double took = bench_tui_ms() - begin;
        printf("  :%-31s %8.3f ms, then aside %8.1f\n", lines[i], took, settle(app));
    }
}

void bench_tui_view(const char *path, tide_memory_plan *plan) {
    static const char *const names[] = {"lifetimes", "memory", "peak", "allocators"};
    tide_subject *s = NULL;
    tide_error err = TIDE_ERROR_INIT;
    (void)setlocale(LC_ALL, "C.UTF-8");
    double begin = bench_tui_ms();
    must(path != NULL ? tide_subject_of_trace(path, -1, &s, &err) : tide_subject_of_plan(plan, NULL, &s, &err), &err,
         "open");
    const double opened = bench_tui_ms() - begin, opened_cpu = cpu_ms();
    const tide_tui_session session = {.a = s};
    tide_tui_app *app;
    must(tide_tui_app_open(&session, NULL, WIDTH, HEIGHT, true, &app, &err), &err, "view");
    const double worker = bench_tui_ms() - begin;
    frame(app);
    const double first = bench_tui_ms() - begin;
    printf(
        "first frame %.1f ms (%.1f of the processor): %.1f (%.1f) to open, %.1f for the worker's own, %.1f to draw\n",
        first, cpu_ms(), opened, opened_cpu, worker - opened, first - worker);
    fflush(stdout);
    bench_tui_print_once("first frame", first);
    settle(app);
    bench_tui_print_once("everything loaded", bench_tui_ms() - begin);
    for (int i = 0; i < 4; i++) view(app, i + 1, names[i]);
    rows(app);
    bench_tui_print_once("at the end", bench_tui_ms() - begin);
    tide_tui_app_close(app);
    tide_subject_destroy(s);
    fflush(stdout);
}
