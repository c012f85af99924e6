// SPDX-License-Identifier: MIT
//
// What the sections of bench_recorder share. See bench_recorder.h.
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/bench_recorder.h"
#include "core/base/host_alloc.h"
#include "core/base/text.h"

#define T8(a) a "0", a "1", a "2", a "3", a "4", a "5", a "6", a "7"
const char *const bench_tags[BENCH_TAGS] = {T8("conv1.weight."), T8("conv2.out."),    T8("attention.scores."),
                                            T8("mlp.hidden."),   T8("kv_cache.page"), T8("norm."),
                                            T8("logits."),       T8("scratch.")};

bench_stream *bench_stream_new(uint64_t seed, uint32_t thread) {
    bench_stream *s = tide_host_calloc(1, sizeof *s);
    tide_rng rng = {.state = seed * 131 + thread};
    if (s == NULL) return NULL;
    for (size_t i = 0; i < BENCH_RANDOM; i++) {
        s->places[i] = (uint16_t)tide_rng_below(&rng, BENCH_SLOTS);
        const uint64_t top = UINT64_C(64) << tide_rng_below(&rng, 14);
        s->sizes[i] = (uint32_t)(top + tide_rng_below(&rng, top));
    }
    s->n_kinds = 4;
    s->next_id = ((uint64_t)(thread + 1) << 40) + 1;
    s->address = (uint64_t)(thread + 1) << 40;
    s->scope = (tide_scope){.name = "model", .kind = TIDE_SCOPE_RUN, .index = 0, .entry = 1};
    s->event =
        (tide_memory_event){.device = TIDE_CPU, .allocator = "cpu_caching", .thread = thread + 1, .scope = &s->scope};
    return s;
}

void bench_add(bench_samples *s, double value) {
    if (s->n < BENCH_MAX_SAMPLES) s->values[s->n++] = value;
}

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_quantile(bench_samples *s, double q) {
    if (s->n == 0) return 0;
    qsort(s->values, s->n, sizeof s->values[0], compare_doubles);
    return s->values[(size_t)(q * (double)(s->n - 1) + 0.5)];
}

void bench_make_dir(const bench_options *o, char *path, size_t path_bytes) {
    snprintf(path, path_bytes, "%s/tide-bench-XXXXXX", o->dir);
    if (mkdtemp(path) == NULL) {
        fprintf(stderr, "bench_recorder: cannot make a folder below '%s'\n", o->dir);
        exit(3);
    }
}

void bench_remove_dir(const char *path) {
    DIR *dir = opendir(path);
    if (dir == NULL) return;
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        char name[600];
        snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        if (e->d_name[0] != '.') remove(name);
    }
    closedir(dir);
    rmdir(path);
}

uint64_t bench_file_bytes(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

uint64_t bench_dir_bytes(const char *path, const char *part) {
    uint64_t n = 0;
    DIR *dir = opendir(path);
    if (dir == NULL) return 0;
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        char name[600];
        snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        if (e->d_name[0] != '.' && strstr(e->d_name, part) != NULL) n += bench_file_bytes(name);
    }
    closedir(dir);
    return n;
}

double bench_peak_rss_mb(void) {
    struct rusage used;
    return getrusage(RUSAGE_SELF, &used) == 0 ? (double)used.ru_maxrss / 1024 : 0;
}

double bench_rss_mb(void) {
    unsigned long all = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f == NULL) return 0;
    const int n = fscanf(f, "%lu %lu", &all, &resident);
    fclose(f);
    return n == 2 ? (double)resident * (double)sysconf(_SC_PAGESIZE) / 1048576 : 0;
}

void bench_must(tide_status st, const tide_error *err, const char *what) {
    if (st == TIDE_OK) return;
    fprintf(stderr, "bench_recorder: %s: %s %s %s\n", what, err->msg, err->where, err->note);
    exit(3);
}
