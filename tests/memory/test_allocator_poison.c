// SPDX-License-Identifier: MIT
//
// poison: what a stale read sees, and that every write outside a block is found, named and remembered. What it
// shares with every allocator is in test_allocator_conformance_wrapped.c.
#include <math.h>
#include <stdatomic.h>

#include "core/base/log.h"
#include "core/device/backend.h"
#include "core/memory/poison.h"
#include "memory_test.h"
#include "tests/device/fake_device.h"

// ---- an inner allocator that looks at what comes back ----

typedef struct keeper {
    _Alignas(4096) unsigned char bytes[16384];
    unsigned char back[16384]; ///< what was in a block when it came back
    size_t asked_bytes;
} keeper;

static tide_status keeper_alloc(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err) {
    keeper *k = self;
    (void)err;
    memset(k->bytes, 0x11, sizeof k->bytes);
    k->asked_bytes = req->size_bytes;
    out->data = k->bytes;
    return TIDE_OK;
}
static void keeper_release(void *self, const tide_memory *mem, tide_stream_id last_stream) {
    (void)last_stream;
    memcpy(((keeper *)self)->back, mem->data, mem->requested_bytes);
}
static void keeper_stats(const void *self, tide_allocator_stats *out) {
    *out = (tide_allocator_stats){.active_bytes = ((const keeper *)self)->asked_bytes};
}
static void keeper_destroy(void *self) { (void)self; }
static const tide_allocator_ops keeper_ops = {.abi = TIDE_ALLOCATOR_ABI,
                                              .name = "keeper",
                                              .alloc = keeper_alloc,
                                              .release = keeper_release,
                                              .stats = keeper_stats,
                                              .destroy = keeper_destroy};

static tide_allocator *poison_over(tide_allocator *inner) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    assert_tide_ok(tide_poison_create(inner, &a, &err), &err);
    tide_allocator_unref(inner);
    return a;
}

static tide_allocator *make_poison(void) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *cpu = NULL;
    assert_tide_ok(tide_cpu_allocator_create(&cpu, &err), &err);
    return poison_over(cpu);
}

static tide_memory take_as(tide_allocator *a, size_t size_bytes, size_t align_bytes, const char *tag) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_alloc_request req = {
        .size_bytes = size_bytes, .align_bytes = align_bytes, .kind = TIDE_KIND_WORKSPACE, .block_id = 12, .tag = tag};
    tide_memory mem = {0};
    assert_tide_ok(tide_allocator_alloc(a, &req, &mem, &err), &err);
    return mem;
}

// ---- the log ----

typedef struct lines {
    int n;
    char last[512];
} lines;

static void hear_line(void *ctx, tide_log_level level, const char *line) {
    lines *l = ctx;
    if (level != TIDE_LOG_ERROR) return;
    l->n++;
    snprintf(l->last, sizeof l->last, "%s", line);
}

// ---- tests ----

/// Zone, poison, zone; poison again when it is back.
static void memory_is_filled_both_ways(void **state) {
    (void)state;
    static keeper k;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *inner = NULL;
    assert_tide_ok(tide_allocator_create(&keeper_ops, &k, TIDE_CPU, &inner, &err), &err);
    tide_allocator *a = poison_over(inner);
    tide_memory mem = take(a, 1000, 64);
    assert_ptr_equal(mem.data, k.bytes + 64);
    assert_true(k.asked_bytes == 64 + 1000 + 64);
    assert_true(tide_poison_find(mem.data, 1000) == 1000);
    for (int i = 0; i < 64; i++) assert_true(k.bytes[i] != TIDE_POISON_BYTE && k.bytes[1064 + i] != TIDE_POISON_BYTE);
    assert_int_equal(k.bytes[1128], 0x11);
    for (int i = 0; i < 250; i++) assert_true(isnan(((float *)mem.data)[i]));
    memset(mem.data, 0, 1000);
    give(a, &mem);
    assert_true(tide_poison_find(k.back + 64, 1000) == 1000);
    // The stricter the alignment, the wider the zone in front.
    mem = take(a, 10, 4096);
    assert_ptr_equal(mem.data, k.bytes + 4096);
    give(a, &mem);
    tide_allocator_unref(a);
}

/// Each damaged byte, in front and behind, is found while the block lives, and is forgotten when it is put right.
static void check_names_the_live_block(void **state) {
    (void)state;
    tide_allocator *a = make_poison();
    const tide_memory other = take(a, 50, 0), mem = take_as(a, 100, 256, "conv1.out");
    unsigned char *const bytes = mem.data;
    for (int at = -256; at < 164; at++) {
        if (at >= 0 && at < 100) continue;
        const unsigned char was = bytes[at];
        tide_error err = TIDE_ERROR_INIT;
        bytes[at] = TIDE_POISON_BYTE; // a copy of poisoned bytes that ran too far
        assert_tide_status(tide_allocator_check(a, &err), TIDE_ERR_RUNTIME);
        char where[64];
        snprintf(where, sizeof where, "%d B %s", at < 0 ? -at : at - 99, at < 0 ? "before its start" : "past its end");
        assert_text_has(err.msg, where);
        assert_text_has(err.msg, "block 12 'conv1.out' (Workspace, 100 B)");
        bytes[at] = was;
        assert_sound(a);
    }
    memset(bytes, 0, 100);
    assert_sound(a);
    give(a, &mem);
    give(a, &other);
    assert_sound(a);
    tide_allocator_unref(a);
}

/// A release says it once in the log, and check() from then on, for the first block; the name outlives the block.
static void a_release_remembers(void **state) {
    (void)state;
    lines log = {0};
    tide_log_set(hear_line, &log, TIDE_LOG_ERROR);
    tide_allocator *a = make_poison();
    char tag[] = "early";
    tide_memory mem = take_as(a, 33, 0, tag);
    ((unsigned char *)mem.data)[33] = 0x2a;
    memset(tag, 'x', sizeof tag - 1); // the tag was borrowed for the call
    give(a, &mem);
    assert_int_equal(log.n, 1);
    assert_text_has(log.last, "poison: block 12 'early' (Workspace, 33 B)");
    assert_text_has(log.last, "1 B past its end, 0x2A");
    mem = take_as(a, 10, 0, "late");
    ((unsigned char *)mem.data)[-1] = 0;
    give(a, &mem);
    assert_int_equal(log.n, 2);
    mem = take_as(a, 10, 0, "good");
    give(a, &mem);
    assert_int_equal(log.n, 2);
    for (int i = 0; i < 2; i++) {
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_status(tide_allocator_check(a, &err), TIDE_ERR_RUNTIME);
        assert_text_has(err.msg, "'early'");
        assert_text_has(err.note, "2 blocks so far");
    }
    tide_log_set(NULL, NULL, TIDE_LOG_ERROR);
    tide_allocator_unref(a);
}

/// Through the floors above: a tensor's storage that is written one element too far.
static void a_block_written_too_far(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = make_poison();
    tide_block *b = NULL;
    assert_tide_ok(tide_block_create(a, 10 * sizeof(float), 0, TIDE_KIND_DEFAULT, 0, "logits", &b, &err), &err);
    void *data = NULL;
    assert_tide_ok(tide_block_write(b, &data, &err), &err);
    for (int i = 0; i <= 10; i++) ((volatile float *)data)[i] = 1.0f;
    assert_tide_status(tide_allocator_check(a, &err), TIDE_ERR_RUNTIME);
    assert_text_has(err.msg, "'logits' (Default, 40 B)");
    tide_block_unref(b);
    assert_tide_status(tide_allocator_check(a, &err), TIDE_ERR_RUNTIME);
    tide_allocator_unref(a);
}

static void zones_are_not_requested(void **state) {
    (void)state;
    tide_allocator *a = make_poison();
    const tide_memory mem = take(a, 1000, 0);
    tide_allocator_stats s = stats_of(a);
    assert_true(s.requested_bytes == 1000 && s.peak_requested_bytes == 1000);
    assert_true(mem.reserved_bytes == 1152 && s.active_bytes == 1152); // 1128 up to a multiple of 64
    give(a, &mem);
    s = stats_of(a);
    assert_true(s.requested_bytes == 0 && s.active_bytes == 0 && s.peak_requested_bytes == 1000);
    tide_allocator_unref(a);
}

static void host_memory_only(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    fake_setup(2);
    const tide_device device = fake_at(1);
    tide_allocator *inner = NULL, *a = NULL;
    assert_tide_ok(tide_device_allocator_create(device, &inner, &err), &err);
    assert_tide_status(tide_poison_create(inner, &a, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "fake:1");
    assert_null(a);
    tide_allocator_unref(inner);
    fake_teardown();
}

// ---- streams ----

typedef struct late_work {
    atomic_bool go;
    unsigned char *data;
    size_t size_bytes, n_intact;
    bool writes_too_far;
} late_work;

static void run_late(void *arg) {
    late_work *w = arg;
    while (!atomic_load(&w->go)) sched_yield();
    for (size_t i = 0; i < w->size_bytes; i++) w->n_intact += w->data[i] == 5;
    if (w->writes_too_far) w->data[w->size_bytes] = 1;
}

/// A released block that a stream still reads keeps its bytes; it is looked at and filled when the stream is done, so
/// that what the stream itself writes outside is found too (LT-35).
static void streams_are_waited_for(void **state) {
    (void)state;
    for (int bad = 0; bad < 2; bad++) {
        tide_error err = TIDE_ERROR_INIT;
        lines log = {0};
        tide_log_set(hear_line, &log, TIDE_LOG_ERROR);
        tide_allocator *inner = NULL;
        assert_tide_ok(tide_stream_caching_create(TIDE_CPU, NULL, &inner, &err), &err);
        tide_allocator *a = poison_over(inner);
        tide_stream_id stream = 0;
        assert_tide_ok(tide_stream_create(TIDE_CPU, &stream, &err), &err);
        const tide_memory mem = take_as(a, 3000, 0, "shared");
        memset(mem.data, 5, 3000);
        late_work work = {.data = mem.data, .size_bytes = 3000, .writes_too_far = bad != 0};
        assert_tide_ok(tide_device_call(TIDE_CPU, stream, run_late, &work, &err), &err);
        tide_allocator_record_use(a, &mem, stream);
        give(a, &mem);
        assert_true(stats_of(a).n_pending == 1 && stats_of(a).requested_bytes == 0);
        assert_int_equal(log.n, 0);
        atomic_store(&work.go, true);
        assert_tide_ok(tide_stream_sync(TIDE_CPU, stream, &err), &err);
        tide_allocator_trim(a);
        assert_true(work.n_intact == 3000);
        assert_true(stats_of(a).n_pending == 0);
        assert_int_equal(log.n, bad);
        assert_tide_status(tide_allocator_check(a, &err), bad != 0 ? TIDE_ERR_RUNTIME : TIDE_OK);
        if (bad != 0) assert_text_has(err.msg, "'shared' (Workspace, 3000 B)");
        tide_stream_destroy(TIDE_CPU, stream);
        tide_allocator_unref(a);
        tide_log_set(NULL, NULL, TIDE_LOG_ERROR);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(memory_is_filled_both_ways), tide_unit_test(check_names_the_live_block),
        tide_unit_test(a_release_remembers),        tide_unit_test(a_block_written_too_far),
        tide_unit_test(zones_are_not_requested),    tide_unit_test(host_memory_only),
        tide_unit_test(streams_are_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
