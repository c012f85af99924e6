// SPDX-License-Identifier: MIT
//
// bench_search: what the strategy `search` reaches on hard instances made by chance, and with how much processor time:
// rectangles of time x bytes cut into pieces, some of which are then taken out. Their optimum is the rectangle's
// height, or next to it, however hard it is to find. Prints; passes and fails nothing. bench_planner has the known
// instances.
//
//     bench_search [SECONDS [THREADS [CASES [NODES]]]]
//
// With NODES, that many nodes instead of seconds: the figures are the same on any machine.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/base/text.h"
#include "planner/planner.h"

typedef struct setting {
    double seconds;
    uint32_t n_threads;
    size_t n_cases;
    uint64_t n_nodes; ///< 0: seconds
} setting;

typedef struct total {
    double log_ratios, cpu_s;
    size_t n, n_proven;
} total;

static double cpu_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void run(const char *name, const tide_lifetimes *lt, const setting *set, total *sum) {
    tide_error err = TIDE_ERROR_INIT;
    tide_memory_plan *plan;
    const tide_strategy_options opt = {.time_limit_ns = set->n_nodes > 0 ? 0 : (uint64_t)(set->seconds * 1e9),
                                       .node_limit = set->n_nodes,
                                       .n_threads = set->n_threads};
    const double begin = cpu_now();
    if (tide_plan_make(lt, tide_strategy_default(), &opt, &plan, &err) != TIDE_OK) {
        printf("%-28s %s\n", name, err.msg);
        return;
    }
    const double cpu_s = cpu_now() - begin, ratio = (double)plan->bytes / (double)plan->lower_bound_bytes;
    printf("%-28s %4zu %8.5f %8.3f  %s\n", name, lt->n, ratio, cpu_s, plan->proven ? "proven" : "");
    fflush(stdout);
    sum->log_ratios += log(ratio);
    sum->cpu_s += cpu_s;
    sum->n++;
    sum->n_proven += plan->proven;
    tide_memory_plan_destroy(plan);
}

typedef struct piece {
    uint32_t begin, end, lo, hi;
} piece;

enum { MAX_PIECES = 600 };

/// Into two, or into a pinwheel of five, which no straight cuts make. @return 0: too small
static size_t cut(tide_rng *rng, piece p, double pinwheels, double in_time, piece *out) {
    const uint32_t w = p.end - p.begin, h = p.hi - p.lo;
    if (w > 3 && h > 3 && tide_rng_f64(rng) < pinwheels) {
        const uint32_t a = p.begin + 1 + (uint32_t)tide_rng_below(rng, w - 2);
        const uint32_t b = a + 1 + (uint32_t)tide_rng_below(rng, p.end - a - 1);
        const uint32_t c = p.lo + 1 + (uint32_t)tide_rng_below(rng, h - 2);
        const uint32_t d = c + 1 + (uint32_t)tide_rng_below(rng, p.hi - c - 1);
        out[0] = (piece){p.begin, b, p.lo, c};
        out[1] = (piece){b, p.end, p.lo, d};
        out[2] = (piece){a, p.end, d, p.hi};
        out[3] = (piece){p.begin, a, c, p.hi};
        out[4] = (piece){a, b, c, d};
        return 5;
    }
    if (tide_rng_f64(rng) < in_time && w > 1) {
        const uint32_t at = p.begin + 1 + (uint32_t)tide_rng_below(rng, w - 1);
        out[0] = (piece){p.begin, at, p.lo, p.hi};
        out[1] = (piece){at, p.end, p.lo, p.hi};
        return 2;
    }
    if (h < 2) return 0;
    const uint32_t at = p.lo + 1 + (uint32_t)tide_rng_below(rng, h - 1);
    out[0] = (piece){p.begin, p.end, p.lo, at};
    out[1] = (piece){p.begin, p.end, at, p.hi};
    return 2;
}

static uint64_t area(piece p) { return (uint64_t)(p.end - p.begin) * (p.hi - p.lo); }

typedef struct style {
    const char *name;
    double pinwheels, in_time, kept; ///< shares
} style;

static void run_cut(uint64_t seed, const style *how, const setting *set, total *sum) {
    static const uint32_t counts[] = {100, 150, 200, 300, 400, 500}, lengths[] = {60, 200, 1000, 100000};
    tide_rng rng = {seed};
    const uint32_t n = counts[tide_rng_below(&rng, 6)], length = lengths[tide_rng_below(&rng, 4)];
    piece pieces[MAX_PIECES];
    size_t n_pieces = 1;
    pieces[0] = (piece){0, length, 0, 1024};
    while (n_pieces < n) {
        size_t at = tide_rng_below(&rng, n_pieces);
        for (uint64_t more = tide_rng_below(&rng, 4); more > 0; more--) {
            const size_t other = tide_rng_below(&rng, n_pieces);
            if (area(pieces[other]) > area(pieces[at])) at = other;
        }
        piece parts[5];
        const size_t n_parts = cut(&rng, pieces[at], how->pinwheels, how->in_time, parts);
        if (n_parts == 0) continue;
        pieces[at] = parts[0];
        for (size_t k = 1; k < n_parts; k++) pieces[n_pieces++] = parts[k];
    }
    tide_lifetimes lt = {0};
    tide_error err = TIDE_ERROR_INIT;
    for (size_t i = 0; i < n_pieces; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%zu", i);
        tide_lifetime item = {.name = name,
                              .size_bytes = (uint64_t)(pieces[i].hi - pieces[i].lo) * 1024,
                              .align_bytes = 1,
                              .begin_step = pieces[i].begin,
                              .end_step = pieces[i].end,
                              .kind = TIDE_KIND_WORKSPACE,
                              .device = TIDE_CPU,
                              .node = TIDE_NO_INDEX,
                              .port = TIDE_NO_INDEX,
                              .value = TIDE_NO_INDEX};
        if (tide_rng_f64(&rng) >= how->kept) continue;
        if (tide_lifetimes_add(&lt, &item, &err) != TIDE_OK) printf("%s\n", err.msg);
    }
    lt.n_steps = length;
    char title[64];
    snprintf(title, sizeof title, "%s %" PRIu64 ", %" PRIu32 " steps", how->name, seed, length);
    run(title, &lt, set, sum);
    tide_lifetimes_deinit(&lt);
}

int main(int argc, char **argv) {
    static const style styles[] = {{"cuts", 0.0, 0.6, 1.0},
                                   {"pinwheels", 0.5, 0.5, 1.0},
                                   {"with holes", 0.2, 0.55, 0.88},
                                   {"long", 0.3, 0.35, 0.95}};
    const setting set = {.seconds = argc > 1 ? strtod(argv[1], NULL) : 10.0,
                         .n_threads = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 2,
                         .n_cases = argc > 3 ? strtoul(argv[3], NULL, 10) : 12,
                         .n_nodes = argc > 4 ? strtoull(argv[4], NULL, 10) : 0};
    total sum = {0};
    printf("%-28s %4s %8s %8s\n", "rectangles cut into pieces", "n", "ratio", "CPU s");
    for (size_t k = 0; k < sizeof styles / sizeof *styles; k++) {
        for (uint64_t seed = 0; seed < set.n_cases; seed++) run_cut(seed, &styles[k], &set, &sum);
    }
    if (sum.n == 0) return 0;
    printf("%zu of %zu proven, ratio %.5f (geometric mean), CPU %.3f s\n", sum.n_proven, sum.n,
           exp(sum.log_ratios / (double)sum.n), sum.cpu_s);
    return 0;
}
