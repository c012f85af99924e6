// SPDX-License-Identifier: MIT
//
// The conformance suite over the allocators that wrap another one: each over plain and over stream-aware memory.
#include "conformance.h"

static void hear_nothing(void *self, const tide_memory_event *event) {
    (void)self;
    (void)event;
}

static tide_status cpu(tide_allocator **out, tide_error *err) { return tide_cpu_allocator_create(out, err); }
static tide_status streams(tide_allocator **out, tide_error *err) {
    return tide_stream_caching_create(TIDE_CPU, NULL, out, err);
}

static tide_status limit(tide_allocator *inner, tide_allocator **out, tide_error *err) {
    return tide_limit_create(inner, (uint64_t)8 << 30, out, err);
}
/// The second sharer of a budget whose first is idle.
static tide_status limit_shared(tide_allocator *inner, tide_allocator **out, tide_error *err) {
    tide_allocator *first = NULL;
    TIDE_TRY(limit(inner, &first, err));
    const tide_status st = tide_limit_create_shared(inner, first, out, err);
    tide_allocator_unref(first);
    return st;
}
static tide_status fail_nth(tide_allocator *inner, tide_allocator **out, tide_error *err) {
    return tide_fail_nth_create(inner, -1, out, err);
}
static tide_status poison(tide_allocator *inner, tide_allocator **out, tide_error *err) {
    return tide_poison_create(inner, out, err);
}
static tide_status instrumented(tide_allocator *inner, tide_allocator **out, tide_error *err) {
    const tide_observer deaf = {.on_memory = hear_nothing};
    return tide_instrumented_create(inner, &deaf, out, err);
}

#define XX(outer, inner)                                                                                               \
    static tide_status outer##_##inner(tide_allocator **out, tide_error *err) {                                        \
        tide_allocator *a = NULL;                                                                                      \
        TIDE_TRY(inner(&a, err));                                                                                      \
        const tide_status st = outer(a, out, err);                                                                     \
        tide_allocator_unref(a);                                                                                       \
        return st;                                                                                                     \
    }
XX(limit, cpu)
XX(limit, streams)
XX(limit_shared, cpu)
XX(fail_nth, cpu)
XX(fail_nth, streams)
XX(poison, cpu)
XX(poison, streams)
XX(instrumented, cpu)
XX(instrumented, streams)
XX(poison, limit_streams)
#undef XX

int main(void) {
    // poison writes every byte of a block.
    static conf_maker makers[] = {
        {.name = "limit(cpu)", .allocator = "limit", .create = limit_cpu},
        {.name = "limit(stream_caching)", .allocator = "limit", .create = limit_streams},
        {.name = "limit, shared(cpu)", .allocator = "limit", .create = limit_shared_cpu},
        {.name = "fail_nth(cpu)", .allocator = "fail_nth", .create = fail_nth_cpu},
        {.name = "fail_nth(stream_caching)", .allocator = "fail_nth", .create = fail_nth_streams},
        {.name = "poison(cpu)", .allocator = "poison", .create = poison_cpu, .top_bytes = 2 * MIB},
        {.name = "poison(stream_caching)", .allocator = "poison", .create = poison_streams, .top_bytes = 2 * MIB},
        {.name = "instrumented(cpu)", .allocator = "instrumented", .create = instrumented_cpu},
        {.name = "instrumented(stream_caching)", .allocator = "instrumented", .create = instrumented_streams},
        {.name = "poison(limit(stream_caching))",
         .allocator = "poison",
         .create = poison_limit_streams,
         .top_bytes = 2 * MIB},
    };
    return conformance_main(makers, sizeof makers / sizeof makers[0]);
}
