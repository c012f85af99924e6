// SPDX-License-Identifier: MIT
//
// What tests ask beside cuda.h: which objects are live, and what is left.
#include <stdio.h>

#include "tests/cuda/driver/sim.h"

struct count {
    uint64_t n;
    bool print;
    sim_sort sort;
};

static void count_object(sim_object *object, void *user) {
    struct count *count = user;
    if (object->own) return;
    count->n++;
    if (count->print) fprintf(stderr, "tidesim: left: %s %p\n", sim_sort_name(count->sort), (void *)object);
}

static void count_context(sim_object *object, void *user) { ((struct count *)user)->n += ((sim_ctx *)object)->active; }

SIM_API uint64_t tidesim_live(const char *sort) {
    struct count count = {0};
    sim_lock_take();
    if (strcmp(sort, "range") == 0) count.n = sim_n_ranges();
    if (strcmp(sort, "capture") == 0) count.n = sim_n_captures();
    for (int i = 0; i < SIM_SORTS; i++)
        if (strcmp(sort, sim_sort_name((sim_sort)i)) == 0)
            sim_objects_each((sim_sort)i, i == SIM_CONTEXT ? count_context : count_object, &count);
    sim_lock_drop();
    return count.n;
}

static bool count_range(sim_range *range, void *user) {
    struct count *count = user;
    count->n++;
    if (count->print)
        fprintf(stderr, "tidesim: left: %s %#llx, %llu bytes\n", tidesim_kind_name(range->kind),
                (unsigned long long)range->address, (unsigned long long)range->bytes);
    return true;
}

// Kernels and functions go with their library or module.
SIM_API uint64_t tidesim_left(bool print) {
    struct count count = {.print = print};
    sim_lock_take();
    for (int i = 0; i < SIM_SORTS; i++) {
        count.sort = (sim_sort)i;
        if (i != SIM_KERNEL && i != SIM_FUNCTION) sim_objects_each((sim_sort)i, count_object, &count);
    }
    sim_ranges_each(count_range, &count);
    sim_lock_drop();
    return count.n;
}

SIM_API void tidesim_reset_counts(void) {
    sim_fail_reset();
    sim_misuse_reset();
}
