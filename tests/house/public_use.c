// SPDX-License-Identifier: MIT
//
// A program that knows the public headers alone, in what C and C++ have in common: it plans lifetimes, records itself
// with that plan, once through an allocator of tidemark's and once with a block of its own, and reads its trace.
//
//     public_use TRACE
#include <stdio.h>
#include <string.h>

#include "tidemark/tidemark.h"

enum { OWN_BYTES = 4000, OWN_RESERVED = 4096 };

static int n_faults;

static void check(bool good, const char *what) {
    if (good) return;
    printf("wrong: %s\n", what);
    n_faults++;
}
#define CHECK(x) check((x), #x)
#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        if ((call) != TIDE_OK) {                                                                                       \
            printf("%s: %s\n", #call, err.msg);                                                                        \
            n_faults++;                                                                                                \
            return;                                                                                                    \
        }                                                                                                              \
    } while (0)

// ---- plan ----

/// With what is alive at each step:                            0     1     2     3     4     5
///     a  1,000 B, aligned to 64: 1,024                       1024  1024
///     b  2,000 B: 2,048; v lies 512 B into it at step 3            2048  2048  1024
///     c  3,000 B: 3,008, not needed at steps 3 and 4                     3008              3008
///     d  4,096 B                                                               4096  4096
static void fill(tide_lifetimes *lt) {
    tide_error err = TIDE_ERROR_INIT;
    tide_gap gap = {3, 5, 0, 0};
    const tide_lifetime a = tide_lifetime_make("a", 1000, 64, 0, 2), b = tide_lifetime_make("b", 2000, 64, 1, 3);
    tide_lifetime c = tide_lifetime_make("c", 3000, 64, 2, 6);
    const tide_lifetime d = tide_lifetime_make("d", 4096, 64, 3, 5), v = tide_lifetime_make("v", 1000, 64, 3, 4);
    c.gaps = &gap;
    c.n_gaps = 1;
    MUST(tide_lifetimes_add(lt, &a, &err));
    MUST(tide_lifetimes_add(lt, &b, &err));
    MUST(tide_lifetimes_add(lt, &c, &err));
    MUST(tide_lifetimes_add(lt, &d, &err));
    MUST(tide_lifetimes_add(lt, &v, &err));
    MUST(tide_lifetimes_alias(lt, 4, TIDE_ALIAS_GIVEN, 1, 512, &err));
    CHECK(tide_lifetimes_alias(lt, 0, TIDE_ALIAS_GIVEN, 0, 0, &err) == TIDE_ERR_INVALID);
    CHECK(strstr(err.msg, "'a'") != NULL && err.status == TIDE_ERR_INVALID);
}

static void make_plan(tide_memory_plan **plan) {
    tide_error err = TIDE_ERROR_INIT;
    tide_lifetimes lt;
    const tide_strategy *by_size = NULL;
    uint64_t bound = 0;
    int64_t step = -1;
    memset(&lt, 0, sizeof lt);
    fill(&lt);
    MUST(tide_lower_bound(&lt, &bound, &step, &err));
    CHECK(bound == 5120 && step == 3);
    CHECK(tide_strategy_find("serch", &by_size, &err) == TIDE_ERR_INVALID && strstr(err.hint, "search") != NULL);
    MUST(tide_strategy_find("greedy_by_size", &by_size, &err));
    MUST(tide_plan_make(&lt, by_size, NULL, plan, &err));
    CHECK((*plan)->verified);
    tide_memory_plan_destroy(*plan);
    *plan = NULL;
    MUST(tide_plan_make(&lt, tide_strategy_default(), NULL, plan, &err));
    tide_lifetimes_deinit(&lt); // the plan has its own
    CHECK((*plan)->verified && (*plan)->lower_bound_bytes == bound && (*plan)->bytes >= bound);
    CHECK((*plan)->offsets[4] == (*plan)->offsets[1] + 512 && (*plan)->offsets[0] % 64 == 0);
    CHECK(strcmp((*plan)->lifetimes.items[2].name, "c") == 0 && (*plan)->n_buffers == 1);
}

// ---- record ----

/// A block of an allocator of our own: tidemark is told of it.
static void tell_of_own(const tide_observer *to, tide_memory_op op, uint64_t id) {
    tide_memory_event e;
    memset(&e, 0, sizeof e);
    e.op = op;
    e.block_id = id;
    e.device = TIDE_CPU;
    e.kind = TIDE_KIND_KV_CACHE;
    e.requested_bytes = OWN_BYTES;
    e.reserved_bytes = OWN_RESERVED;
    e.address = 4096;
    e.thread = tide_thread_id();
    e.allocator = "ours";
    e.tag = "page";
    e.scope = tide_scope_current();
    to->on_memory(to->self, &e);
}

static void work(tide_recorder *recorder, tide_allocator *from, const tide_memory_plan *plan) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_observer to = tide_recorder_observer(recorder);
    tide_block *buffer = NULL;
    tide_scope scope;
    memset(&scope, 0, sizeof scope);
    scope.name = "step";
    scope.kind = TIDE_SCOPE_OPERATOR;
    scope.index = 7;
    MUST(tide_block_create(from, (size_t)plan->bytes, (size_t)plan->align_bytes, TIDE_KIND_WORKSPACE, 0, "buffer",
                           &buffer, &err));
    memset(tide_block_data(buffer), 1, (size_t)plan->bytes);
    tide_block_unref(tide_block_ref(buffer));
    const uint64_t id = tide_block_new_id();
    CHECK(id != 0 && tide_block_new_id() != id);
    tide_scope_enter(&scope, &to);
    CHECK(tide_scope_current() == &scope);
    tell_of_own(&to, TIDE_MEM_ALLOC, id);
    tide_scope_leave(&scope, &to);
    tide_recorder_mark(recorder, "warm");
    tell_of_own(&to, TIDE_MEM_FREE_COMPLETED, id);
    tide_block_unref(buffer);
}

static void check_allocators(tide_allocator *cpu) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *arena = NULL, *paged = NULL, *limit = NULL;
    tide_allocator_stats stats;
    tide_block *block = NULL;
    MUST(tide_arena_create(cpu, 1024, 0, &arena, &err));
    MUST(tide_paged_create(cpu, 512, 2, &paged, &err));
    MUST(tide_limit_create(cpu, 100, &limit, &err));
    CHECK(tide_block_create(limit, 101, 0, TIDE_KIND_DEFAULT, 0, NULL, &block, &err) == TIDE_ERR_NOMEM);
    CHECK(tide_block_create(paged, 513, 0, TIDE_KIND_KV_CACHE, 0, NULL, &block, &err) == TIDE_ERR_NO_SPACE);
    MUST(tide_block_create(arena, 1024, 0, TIDE_KIND_WORKSPACE, 0, NULL, &block, &err));
    tide_allocator_get_stats(arena, &stats);
    CHECK(stats.active_bytes == 1024 && stats.n_allocs == 1);
    CHECK(tide_allocator_reset(arena, &err) == TIDE_ERR_BUSY);
    tide_block_unref(block);
    MUST(tide_allocator_reset(arena, &err));
    tide_allocator_trim(paged);
    tide_allocator_unref(arena);
    tide_allocator_unref(paged);
    tide_allocator_unref(limit);
}

static void record(const char *path, const tide_memory_plan *plan) {
    tide_error err = TIDE_ERROR_INIT;
    tide_recorder *recorder = NULL;
    tide_allocator *cpu = NULL, *heard = NULL;
    tide_recorder_stats stats;
    tide_run_info info;
    int64_t run_id = 0;
    memset(&info, 0, sizeof info);
    info.model = "public_use";
    info.mode = "planned";
    info.strategy = plan->strategy;
    CHECK(tide_recorder_open("", NULL, &recorder, &err) == TIDE_ERR_INVALID);
    MUST(tide_recorder_open(path, NULL, &recorder, &err));
    const tide_observer to = tide_recorder_observer(recorder);
    MUST(tide_allocator_create_by_name(tide_allocator_name_at(0), &cpu, &err));
    MUST(tide_instrumented_create(cpu, &to, &heard, &err));
    check_allocators(cpu); // not heard
    MUST(tide_recorder_begin_run(recorder, &info, plan, &run_id, &err));
    CHECK(run_id == 1);
    work(recorder, heard, plan);
    MUST(tide_recorder_end_run(recorder, &err));
    MUST(tide_recorder_put_meta(recorder, "colour", "blue", &err));
    MUST(tide_recorder_flush(recorder, &err));
    tide_recorder_get_stats(recorder, &stats);
    CHECK(stats.n_lost == 0 && stats.n_events > 0 && stats.n_threads == 1);
    MUST(tide_recorder_close(recorder, &err));
    tide_allocator_unref(heard);
    tide_allocator_unref(cpu);
}

// ---- read ----

static void read_facts(tide_trace *trace) {
    tide_error err = TIDE_ERROR_INIT;
    tide_trace_info info;
    tide_trace_run *runs = NULL;
    tide_trace_mark *marks = NULL;
    size_t n_runs = 0, n_marks = 0;
    char colour[16];
    MUST(tide_trace_get_info(trace, &info, &err));
    CHECK(info.state == TIDE_TRACE_COMPLETE && info.n_lost == 0 && info.n_problems == 0 && info.n_blocks == 2);
    MUST(tide_trace_meta(trace, "colour", colour, sizeof colour, &err));
    CHECK(strcmp(colour, "blue") == 0);
    MUST(tide_trace_runs(trace, &runs, &n_runs, &err));
    CHECK(n_runs == 1 && strcmp(runs[0].model, "public_use") == 0 && runs[0].has_plan);
    tide_trace_runs_free(runs);
    MUST(tide_trace_marks(trace, &marks, &n_marks, &err));
    CHECK(n_marks == 1 && strcmp(marks[0].name, "warm") == 0);
    tide_live_set set;
    MUST(tide_trace_live_set(trace, marks[0].t_ns, &set, &err));
    CHECK(set.n > 0);
    tide_live_set_deinit(&set);
    tide_trace_marks_free(marks);
}

static void read_bytes(tide_trace *trace, uint64_t plan_bytes) {
    tide_error err = TIDE_ERROR_INIT;
    tide_trace_kind *kinds = NULL;
    tide_trace_block *blocks = NULL;
    tide_live_set set;
    size_t n_kinds = 0, n_blocks = 0;
    uint64_t peak = 0, event = 0;
    MUST(tide_trace_kinds(trace, 1, &kinds, &n_kinds, &err));
    CHECK(n_kinds == 2 && kinds[0].kind == TIDE_KIND_WORKSPACE && kinds[1].kind == TIDE_KIND_KV_CACHE);
    CHECK(kinds[0].peak_bytes == plan_bytes && kinds[0].predicted_bytes == plan_bytes);
    CHECK(kinds[1].peak_bytes == OWN_BYTES && kinds[1].peak_reserved_bytes == OWN_RESERVED);
    CHECK(strcmp(tide_memory_kind_name(kinds[1].kind), "KVCache") == 0);
    tide_trace_kinds_free(kinds);
    MUST(tide_trace_run_peak(trace, 0, -1, NULL, &peak, &event, NULL, &err));
    CHECK(peak == plan_bytes + OWN_BYTES);
    MUST(tide_trace_live_set_after(trace, event, &set, &err));
    CHECK(set.n == 2 && set.requested_bytes == peak);
    CHECK(strcmp(set.items[1].name, "page") == 0 && strcmp(set.items[1].scope, "step") == 0);
    CHECK(set.items[1].scope_index == 7 && strcmp(set.items[1].allocator, "ours") == 0);
    tide_live_set_deinit(&set);
    MUST(tide_trace_blocks(trace, 1, &blocks, &n_blocks, &err));
    CHECK(n_blocks == 2 && blocks[0].free_ns != UINT64_MAX && blocks[1].free_ns != UINT64_MAX);
    CHECK(strcmp(blocks[0].name, "buffer") == 0 && blocks[0].requested_bytes == plan_bytes);
    tide_trace_blocks_free(blocks, n_blocks);
}

static void read_trace(const char *path, uint64_t plan_bytes) {
    tide_error err = TIDE_ERROR_INIT;
    tide_trace *trace = NULL;
    CHECK(tide_trace_open("no/such/file", &trace, &err) == TIDE_ERR_IO && err.msg[0] != '\0');
    CHECK(strcmp(tide_status_name(err.status), "ERR_IO") == 0);
    CHECK(strcmp(tide_status_text(err.status), "input/output error") == 0);
    MUST(tide_trace_open(path, &trace, &err));
    read_facts(trace);
    read_bytes(trace, plan_bytes);
    tide_trace_close(trace);
}

int main(int argc, char **argv) {
    tide_memory_plan *plan = NULL;
    char device[32];
    tide_collector_hook(argc, argv);
    if (argc != 2) return 2;
    CHECK(strcmp(tide_device_format(TIDE_CPU, device, sizeof device), "cpu") == 0);
    make_plan(&plan);
    if (plan != NULL) {
        record(argv[1], plan);
        read_trace(argv[1], plan->bytes);
        printf("%llu bytes planned\n", (unsigned long long)plan->bytes);
    }
    tide_memory_plan_destroy(plan);
    remove(argv[1]);
    printf("%d faults\n", n_faults);
    return n_faults == 0 ? 0 : 1;
}
