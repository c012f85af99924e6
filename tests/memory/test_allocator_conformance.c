// SPDX-License-Identifier: MIT
//
// The conformance suite over the allocators that own memory and know no streams.
#include "conformance.h"

static tide_status cpu_256(tide_allocator **out, tide_error *err) {
    return tide_cpu_allocator_create_aligned(256, out, err);
}

static tide_status caching_steps(tide_allocator **out, tide_error *err) {
    return tide_cpu_caching_allocator_create_sized(TIDE_SIZES_STEPS, out, err);
}

static tide_status device_cpu(tide_allocator **out, tide_error *err) {
    return tide_device_allocator_create(TIDE_CPU, out, err);
}

static tide_status arena(tide_allocator **out, tide_error *err) {
    tide_allocator *cpu = NULL;
    TIDE_TRY(tide_cpu_allocator_create(&cpu, err));
    const tide_status st = tide_arena_create(cpu, 160 * MIB, 64, out, err);
    tide_allocator_unref(cpu);
    return st;
}

static tide_status paged(tide_allocator **out, tide_error *err) {
    tide_allocator *cpu = NULL;
    TIDE_TRY(tide_cpu_allocator_create(&cpu, err));
    const tide_status st = tide_paged_create(cpu, 16384, 8, out, err);
    tide_allocator_unref(cpu);
    return st;
}

// What `caller` cuts blocks from: one at a time, for one test.
static void *brought;
static void bring(void) {
    brought = aligned_alloc(4096, 160 * MIB);
    assert_non_null(brought);
}
static void take_away(void) { free(brought); }

static tide_status caller(tide_allocator **out, tide_error *err) {
    return tide_caller_create(brought, 160 * MIB, 64, out, err);
}

int main(void) {
    static conf_maker makers[] = {
        {.name = "cpu", .allocator = "cpu", .create = tide_cpu_allocator_create},
        {.name = "cpu 256", .allocator = "cpu", .create = cpu_256},
        {.name = "cpu_caching", .allocator = "cpu_caching", .create = tide_cpu_caching_allocator_create},
        {.name = "cpu_caching steps", .allocator = "cpu_caching", .create = caching_steps},
        {.name = "device", .allocator = "device", .create = device_cpu},
        {.name = "arena", .allocator = "arena", .create = arena},
        {.name = "caller", .allocator = "caller", .create = caller, .before = bring, .after = take_away},
        {.name = "paged", .allocator = "paged", .create = paged},
    };
    return conformance_main(makers, sizeof makers / sizeof makers[0]);
}
