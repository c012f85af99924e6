// SPDX-License-Identifier: MIT
//
// bench_recorder: what recording costs the program that is recorded, how fast events reach the file, what the file
// costs, and how long answers take. It prints and never judges, but for section kill, which says how many events were
// lost.
//
//     bench_recorder [--dir DIR] [--repeats N] [--day-events N] [--query-events N] [--latency-events N] [--kills N]
//                    [SECTION…]
//
// Sections: producer, latency, drain, query, heaptrack, kill, day. None named: all but kill.
#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "bench/bench_recorder.h"
#include "bench/planner_child.h"
#include "profiler/clock.h"

static const struct {
    const char *name;
    void (*run)(const bench_options *o);
    bool by_default;
} sections[] = {{"producer", bench_producer, true}, {"latency", bench_latency, true}, {"drain", bench_drain, true},
                {"query", bench_query, true},       {"heaptrack", bench_heap, true},  {"day", bench_day, true},
                {"kill", bench_kill, false}};
enum { N_SECTIONS = sizeof sections / sizeof sections[0] };

/// The kill test, which is a program of its own: how much was lost is what it prints.
void bench_kill(const bench_options *o) {
    char command[1200];
    printf("\n== kill: %" PRIu64 " kill -9 of each kind at random moments, 2 threads at full speed\n", o->kills);
    fflush(stdout);
    snprintf(command, sizeof command,
             "'%s/bench_kill_recorder' --victim '%s/bench_kill_victim' --kills %" PRIu64 " thread process", o->programs,
             o->programs, o->kills);
    if (system(command) != 0) puts("FAILED: see above");
}

// ---- the machine ----

static void print_line_of(const char *path, const char *key) {
    char line[256];
    FILE *f = fopen(path, "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        if (strncmp(line, key, strlen(key)) != 0) continue;
        const char *colon = strchr(line, ':');
        line[strcspn(line, "\n")] = '\0';
        printf("%s", colon != NULL ? colon + 2 : line);
        break;
    }
    if (f != NULL) fclose(f);
}

static void print_machine(const bench_options *o) {
    struct utsname name;
    struct statfs fs;
    printf("recorder: %ld x ", sysconf(_SC_NPROCESSORS_ONLN));
    print_line_of("/proc/cpuinfo", "model name");
    if (uname(&name) == 0) printf(", %s %s", name.sysname, name.release);
    printf(", clock ");
    print_line_of("/sys/devices/system/clocksource/clocksource0/current_clocksource", "");
    printf("%s, SQLite %s, gcc %s", tide__clock_has_ticks() ? "" : " (no ticks)", sqlite3_libversion(), __VERSION__);
    if (statfs(o->dir, &fs) == 0) printf(", file system %#lx", (unsigned long)fs.f_type);
    printf(", load ");
    print_line_of("/proc/loadavg", "");
    printf("\n%d repeats, medians; CPU ns are what to trust when others use the machine\n", o->repeats);
}

// ---- the program ----

static int usage(void) {
    fputs("usage: bench_recorder [--dir DIR] [--repeats N] [--day-events N] [--query-events N] [--latency-events N] "
          "[--kills N] [SECTION…]\nsections:",
          stderr);
    for (size_t s = 0; s < N_SECTIONS; s++) fprintf(stderr, " %s", sections[s].name);
    fputc('\n', stderr);
    return 2;
}

static bool take_section(const char *name, bool *wanted) {
    for (size_t s = 0; s < N_SECTIONS; s++) {
        if (strcmp(name, sections[s].name) != 0) continue;
        wanted[s] = true;
        return true;
    }
    return false;
}

static bool take_number(bench_options *o, const char *name, const char *value) {
    const uint64_t n = strtoull(value, NULL, 10);
    uint64_t repeats = 0;
    const struct {
        const char *name;
        uint64_t *to;
    } numbers[] = {{"--day-events", &o->day_events},
                   {"--query-events", &o->query_events},
                   {"--latency-events", &o->latency_events},
                   {"--kills", &o->kills},
                   {"--repeats", &repeats}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (strcmp(name, numbers[i].name) != 0 || n == 0) continue;
        *numbers[i].to = n;
        if (repeats > 0) o->repeats = repeats < 1000 ? (int)repeats : 1000;
        return true;
    }
    return false;
}

int main(int argc, char **argv) {
    static char programs[512];
    const char *tmp = getenv("TMPDIR");
    bench_options o = {.dir = tmp != NULL ? tmp : "/tmp",
                       .programs = programs,
                       .day_events = 20000000,
                       .query_events = 10000000,
                       .latency_events = 5000000,
                       .kills = 20,
                       .repeats = 5};
    bool wanted[N_SECTIONS] = {false}, some = false;
    snprintf(programs, sizeof programs, "%s", argv[0]);
    char *slash = strrchr(programs, '/');
    if (slash != NULL)
        *slash = '\0';
    else
        snprintf(programs, sizeof programs, ".");
    for (int i = 1; i < argc; i++) {
        const bool has_value = i + 1 < argc;
        if (strcmp(argv[i], "--dir") == 0 && has_value)
            o.dir = argv[++i];
        else if (has_value && take_number(&o, argv[i], argv[i + 1]))
            i++;
        else if (take_section(argv[i], wanted))
            some = true;
        else
            return usage();
    }
    print_machine(&o);
    for (size_t s = 0; s < N_SECTIONS; s++)
        if (some ? wanted[s] : sections[s].by_default) sections[s].run(&o);
    return 0;
}
