// SPDX-License-Identifier: MIT
//
// A program that could record and does not: every call with no recorder, many times. It says what that took: threads,
// open files, libraries, allocations of its process; and nanoseconds a call, which are printed and not judged.
#define _GNU_SOURCE
#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tidemark/record.h"
#include "tidemark/version.h"

enum { ROUNDS = 2000000, CALLS = 6 };

static size_t n_entries(const char *folder) {
    DIR *d = opendir(folder);
    size_t n = 0;
    while (d != NULL && readdir(d) != NULL) n++;
    if (d != NULL) closedir(d);
    return n;
}

static size_t n_libraries(void) {
    FILE *f = fopen("/proc/self/maps", "r");
    char line[512];
    size_t n = 0;
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        n += strstr(line, "sqlite") || strstr(line, "tidemark-trace");
    if (f != NULL) fclose(f);
    return n;
}

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void calls(tide_recorder *r, const void *p) {
    static tide_memory_event e;
    static tide_scope scope = {.name = "op", .kind = TIDE_SCOPE_OPERATOR};
    tide_recorder_enter(r, &scope);
    tide_recorder_alloc(r, TIDE_KIND_WORKSPACE, p, 64, "x");
    tide_recorder_free(r, p);
    tide_recorder_tell(r, TIDE_MEM_ALLOC, &e);
    tide_recorder_mark(r, "m");
    tide_recorder_leave(r, &scope);
}

int main(void) {
    tide_recorder *volatile none = NULL;
    char memory[64];
    const size_t threads = n_entries("/proc/self/task"), files = n_entries("/proc/self/fd");
    const size_t allocated = mallinfo2().uordblks;
    const double begin_ns = now_ns();
    for (int i = 0; i < ROUNDS; i++) calls(none, memory);
    const double took_ns = now_ns() - begin_ns;
    const size_t more = mallinfo2().uordblks - allocated;
    const tide_observer deaf = tide_recorder_observer(none);
    tide_memory_event e = {.op = TIDE_MEM_ALLOC};
    deaf.on_memory(deaf.self, &e);
    tide_recorder_abandon(none);
    tide_collector_hook(0, NULL);
    const bool is_clean = more == 0 && threads == n_entries("/proc/self/task") && files == n_entries("/proc/self/fd") &&
                          n_libraries() == 0 && tide_scope_current() == NULL;
    printf("%.2f ns a call, %zu bytes allocated, version %s\n", took_ns / ROUNDS / CALLS, more, tide_version());
    printf("%s\n", is_clean ? "nothing was opened" : "something was opened");
    return is_clean ? 0 : 1;
}
