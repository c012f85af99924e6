// SPDX-License-Identifier: MIT
//
// compiler_pass: a pass that gives 10,000 buffers of a program their places in one arena, as a compiler would between
// scheduling and code generation. The order of execution is made up; everything else is what such a pass does.
//
//     compiler_pass [MILLISECONDS]      how long the search may take at most; 0: no clock, the same plan everywhere
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tidemark/plan.h"

enum { N_BUFFERS = 10000 };

/// The program: buffer i is written at step i and read a few steps later, every seventh much later.
static tide_status add_buffer(tide_lifetimes *lt, int64_t i, uint64_t *random, tide_error *err) {
    char name[24];
    *random = *random * UINT64_C(6364136223846793005) + 1442695040888963407; // Knuth's MMIX generator
    const uint64_t r = *random >> 33;
    const int64_t last = i + 2 + (int64_t)(r % 6) + (i % 7 == 0 ? 40 : 0);
    snprintf(name, sizeof name, "%%%" PRId64, i);
    const tide_lifetime item = tide_lifetime_make(name, 64 + r % 65536, 64, i, last);
    return tide_lifetimes_add(lt, &item, err);
}

int main(int argc, char **argv) {
    tide_lifetimes lifetimes = {0};
    tide_memory_plan *plan = NULL;
    tide_error err = TIDE_ERROR_INIT;
    tide_status st = TIDE_OK;
    uint64_t random = 1;
    const uint64_t limit_ms = argc > 1 ? strtoull(argv[1], NULL, 10) : 2000;
    const tide_strategy_options options = {.time_limit_ns = limit_ms * 1000000};
    for (int64_t i = 0; st == TIDE_OK && i < N_BUFFERS; i++) st = add_buffer(&lifetimes, i, &random, &err);
    // Buffer 1 is a view of the first bytes of buffer 0: it needs no place of its own.
    if (st == TIDE_OK) st = tide_lifetimes_alias(&lifetimes, 1, TIDE_ALIAS_GIVEN, 0, 0, &err);
    if (st == TIDE_OK) st = tide_plan_make(&lifetimes, tide_strategy_default(), &options, &plan, &err);
    if (st != TIDE_OK) {
        fprintf(stderr, "error: %s\n", err.msg);
        return 1;
    }
    printf("arena      %" PRIu64 " bytes, aligned to %" PRIu64 "\n", plan->bytes, plan->align_bytes);
    printf("no plan is smaller than %" PRIu64 " bytes: %s\n", plan->proved_bytes,
           plan->proven ? "this one is the best there is" : "between the two nothing is known");
    printf("without a plan %" PRIu64 " bytes, %.1f times as much\n", plan->naive_bytes,
           (double)plan->naive_bytes / (double)plan->bytes);
    printf("%%42 lies at byte %" PRIu64 "\n", plan->offsets[42]); // what the code generator wants to know
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lifetimes);
    return 0;
}
