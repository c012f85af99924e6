// SPDX-License-Identifier: MIT
//
// Call stacks of a feed by address: as the drain puts them into the trace, what cannot be, and their names afterwards
// by a plug-in of the test's own.
#include "profiler/feed/feed_frames.h"
#include "profiler/query.h"
#include "profiler/symbols.h"
#include "tests/profiler/drain_fixture.h"

static tide__feed *open_by_address(rig *r) {
    rig_open(r, 4096, false, NULL);
    tide_error err = TIDE_ERROR_INIT;
    tide__feed *f;
    const tide__feed_options opt = {
        .trace_path = r->dir.file, .command = "test", .rank = -1, .ring_slots = 4096, .by_address = true};
    assert_tide_ok(tide__feed_create(&opt, &f, &err), &err);
    return f;
}

static void put(tide__feed *f, uint64_t t_ns, uint64_t address, uint32_t frame) {
    const tide_memory_event e = {.op = TIDE_MEM_ALLOC,
                                 .t_ns = t_ns,
                                 .device = TIDE_CPU,
                                 .kind = TIDE_KIND_HOST_PAGEABLE,
                                 .requested_bytes = 8,
                                 .reserved_bytes = 8,
                                 .address = address,
                                 .thread = tide_thread_id(),
                                 .allocator = "malloc"};
    tide__feed_memory_in(f, &e, frame);
}

/// The drain has all of it, and the trace is finished.
static void finish(rig *r, tide__feed *f) {
    tide__feed_end(f);
    rig_finish(r);
    tide__feed_destroy(f, false);
}

#define STACKS                                                                                                         \
    "WITH RECURSIVE up(event, id, way) AS (SELECT id, scope_id, '' FROM event UNION ALL SELECT event, s.parent_id, "   \
    "way || '/' || n.text FROM up JOIN scope s ON s.id = up.id JOIN name n ON n.id = s.name_id) "                      \
    "SELECT event, way FROM up WHERE id IS NULL ORDER BY event"

static void test_frames_are_scopes(void **state) {
    (void)state;
    rig r;
    tide__feed *f = open_by_address(&r);
    const uint32_t sort = tide__feed_module(f, "c4f1 /usr/bin/sort"), other = tide__feed_module(f, "- /opt/sort");
    assert_int_equal(tide__feed_module(f, "c4f1 /usr/bin/sort"), sort);
    const uint32_t outer = tide__feed_frame(f, 0, sort, 0x5601), inner = tide__feed_frame(f, outer, other, 0x10);
    assert_int_equal(tide__feed_frame(f, 0, sort, 0x5601), outer);
    put(f, 100, 4096, inner);
    put(f, 200, 8192, 0);
    put(f, 300, 12288, outer);
    put(f, 400, 16384, tide__feed_frame(f, tide__feed_frame(f, 0, 0, TIDE__FRAME_DEEPER), 0, TIDE__FRAME_UNKNOWN));
    put(f, 500, 20480, tide__feed_frame(f, 0, 0, TIDE__FRAME_CUT));
    rig_rounds(&r);
    assert_sql(r.dir.file, STACKS, "1|/sort#2+0x10/sort+0x5601\n2|\n3|/sort+0x5601\n4|/[unknown]/[deeper]\n5|/[cut]\n");
    assert_sql(r.dir.file, "SELECT key, value FROM meta WHERE key GLOB 'module.*' ORDER BY key",
               "module.sort|c4f1 /usr/bin/sort\nmodule.sort#2|- /opt/sort\n");
    atomic_fetch_add(&tide__feed_head(f)->n_stacks_lost, 3);
    finish(&r, f);
    assert_sql(r.dir.file, "SELECT key, value FROM meta WHERE key GLOB 'stacks.*'", "stacks.2|lost=3 cut=0\n");
    rig_close(&r);
}

/// A range that goes in part: what is left has the stack of the range.
static void test_parts_of_a_range_keep_the_stack(void **state) {
    (void)state;
    rig r;
    tide__feed *f = open_by_address(&r);
    const uint32_t frame = tide__feed_frame(f, 0, tide__feed_module(f, "- /bin/a"), 1);
    tide_memory_event e = {.op = TIDE_MEM_ALLOC,
                           .t_ns = 100,
                           .device = TIDE_CPU,
                           .kind = TIDE_KIND_HOST_PAGEABLE,
                           .requested_bytes = 12288,
                           .reserved_bytes = 12288,
                           .address = 4096,
                           .stream = TIDE__BY_ADDRESS_RANGE,
                           .thread = tide_thread_id(),
                           .allocator = TIDE__BY_ADDRESS_RANGES};
    tide__feed_memory_in(f, &e, frame);
    e.op = TIDE_MEM_FREE_COMPLETED;
    e.t_ns = 200;
    e.address = 8192;
    e.requested_bytes = e.reserved_bytes = 4096;
    tide__feed_memory_in(f, &e, 0);
    rig_rounds(&r);
    assert_sql(r.dir.file, STACKS, "1|/a+0x1\n2|\n3|/a+0x1\n4|/a+0x1\n");
    finish(&r, f);
    rig_close(&r);
}

// ---- what cannot be ----

static void damage_with(tide__log_type type, const void *payload, size_t bytes) {
    rig r;
    tide__feed *f = open_by_address(&r);
    tide_error err = TIDE_ERROR_INIT;
    put(f, 100, 4096, tide__feed_frame(f, 0, tide__feed_module(f, "- /bin/a"), 1));
    rig_rounds(&r);
    assert_tide_ok(tide__feed_register(f, type, payload, bytes, &err), &err);
    put(f, 200, 8192, 0);
    rig_rounds(&r);
    assert_int_equal(rig_number(&r, "SELECT count(*) FROM problem WHERE what LIKE '%is damaged%'"), 1);
    assert_int_equal(rig_number(&r, "SELECT count(*) FROM scope"), 1);
    finish(&r, f);
    rig_close(&r);
}

static void test_what_cannot_be(void **state) {
    (void)state;
    static const tide__log_frame frames[] = {{2, 1, 5}, {UINT32_MAX, 1, 5}, {0, 2, 5}, {0, UINT32_MAX, 5}};
    for (size_t i = 0; i < sizeof frames / sizeof frames[0]; i++)
        damage_with(TIDE__LOG_FRAME, &frames[i], sizeof frames[i]);
    damage_with(TIDE__LOG_FRAME, &frames[0], sizeof frames[0] - 1);
    damage_with(TIDE__LOG_MODULE, "", 0);
}

/// A feed whose events say which block has scopes, and no frames.
static void test_a_frame_where_none_is(void **state) {
    (void)state;
    rig r;
    tide_error err = TIDE_ERROR_INIT;
    rig_open(&r, 4096, false, NULL);
    const tide__log_frame frame = {0, 0, 0};
    assert_tide_ok(tide__feed_register(r.feed, TIDE__LOG_FRAME, &frame, sizeof frame, &err), &err);
    rig_put(r.feed, 100, TIDE_MEM_ALLOC, 1, 8, NULL);
    rig_rounds(&r);
    assert_int_equal(rig_number(&r, "SELECT count(*) FROM problem WHERE what LIKE '%is damaged%'"), 1);
    rig_finish(&r);
    rig_close(&r);
}

static void test_more_frames_than_may_be(void **state) {
    (void)state;
    rig r;
    tide__feed *f = open_by_address(&r);
    const uint32_t module = tide__feed_module(f, "- /bin/a");
    uint32_t last = 0;
    for (uint64_t i = 0; i < TIDE__FEED_MAX_FRAMES; i++) last = tide__feed_frame(f, 0, module, i);
    assert_int_equal(last, TIDE__FEED_MAX_FRAMES);
    assert_int_equal(tide__feed_frame(f, 0, module, TIDE__FEED_MAX_FRAMES), 0);
    assert_int_equal(tide__feed_frame(f, last, module, 5), 0);
    put(f, 100, 4096, last);
    rig_rounds(&r);
    assert_sql(r.dir.file, STACKS, "1|/a+0xfffff\n");
    finish(&r, f);
    rig_close(&r);
}

// ---- names ----

static int n_open;

static void *open_file(const char *path, const char *build_id, char *why, size_t why_bytes) {
    snprintf(why, why_bytes, "the test refuses it");
    if (strcmp(path, "/bin/no") == 0 || strcmp(build_id, "beef") == 0) return NULL;
    n_open++;
    return (void *)&n_open;
}

/// 1: a function with a line; 2: one without; 3: inlined into another one, in a third one; else nothing.
static void find(void *file, uint64_t address, tide_symbol_put out, void *ctx) {
    static const tide_symbol symbols[] = {{"plain", "/src/a.c", 7},
                                          {"alone", NULL, 0},
                                          {"deep", "/src/a.c", 1},
                                          {"mid", "/src/b.c", 2},
                                          {"top", NULL, 0}};
    assert_ptr_equal(file, &n_open);
    if (address == 1 || address == 2) out(ctx, &symbols[address - 1]);
    for (int i = 2; address == 3 && i < 5; i++) out(ctx, &symbols[i]);
}

static void close_file(void *file) {
    assert_ptr_equal(file, &n_open);
    n_open--;
}

static const tide_symbols_plugin plugin = {TIDE_SYMBOLS_PLUGIN_VERSION, open_file, find, close_file};

static void test_names(void **state) {
    (void)state;
    rig r;
    tide_error err = TIDE_ERROR_INIT;
    tide_symbols_report report;
    tide__feed *f = open_by_address(&r);
    const uint32_t a = tide__feed_module(f, "- /bin/a"), no = tide__feed_module(f, "- /bin/no"),
                   odd = tide__feed_module(f, "- linux-vdso.so.1");
    const uint32_t outer = tide__feed_frame(f, 0, a, 3), twice = tide__feed_frame(f, outer, a, 3);
    put(f, 100, 4096, twice);
    put(f, 200, 8192, tide__feed_frame(f, twice, a, 1));
    put(f, 300, 12288, tide__feed_frame(f, outer, a, 2));
    put(f, 400, 16384, tide__feed_frame(f, outer, a, 99));
    put(f, 500, 20480, tide__feed_frame(f, 0, no, 1));
    put(f, 600, 24576, tide__feed_frame(f, 0, odd, 1));
    assert_int_equal(tide_trace_name_frames(r.dir.file, &plugin, &report, &err), TIDE_ERR_IO); // it is being recorded
    finish(&r, f);
    for (int i = 0; i < 2; i++) { // the second time nothing is left to do
        assert_tide_ok(tide_trace_name_frames(r.dir.file, &plugin, &report, &err), &err);
        assert_int_equal(n_open, 0);
        assert_int_equal(report.n_frames, i == 0 ? 7 : 3);
        assert_int_equal(report.n_named, i == 0 ? 4 : 0);
        assert_int_equal(report.n_refused, 2);
        assert_sql(
            r.dir.file, STACKS,
            "1|/deep @ /src/a.c:1 [a]/mid @ /src/b.c:2 [a]/top [a]/deep @ /src/a.c:1 [a]/mid @ /src/b.c:2 [a]/top [a]\n"
            "2|/plain @ /src/a.c:7 [a]/deep @ /src/a.c:1 [a]/mid @ /src/b.c:2 [a]/top [a]/deep @ /src/a.c:1 [a]/mid @ "
            "/src/b.c:2 [a]/top [a]\n"
            "3|/alone [a]/deep @ /src/a.c:1 [a]/mid @ /src/b.c:2 [a]/top [a]\n"
            "4|/a+0x63/deep @ /src/a.c:1 [a]/mid @ /src/b.c:2 [a]/top [a]\n"
            "5|/no+0x1\n6|/linux-vdso.so.1+0x1\n");
        assert_sql(r.dir.file, "SELECT key, value FROM meta WHERE key GLOB 'symbols.*' ORDER BY key",
                   "symbols.linux-vdso.so.1|it is no file\nsymbols.no|the test refuses it\n");
        tide_trace *t;
        assert_tide_ok(tide_trace_open(r.dir.file, &t, &err), &err);
        assert_tide_ok(tide_trace_check(t, &err), &err);
        tide_trace_close(t);
    }
    rig_close(&r);
}

/// Nothing is guessed: texts that only look like addresses, labels without a file, a trace without stacks.
static void test_nothing_to_name(void **state) {
    (void)state;
    rig r;
    tide_error err = TIDE_ERROR_INIT;
    tide_symbols_report report;
    tide__feed *f = open_by_address(&r);
    const uint32_t a = tide__feed_module(f, "- /bin/a");
    put(f, 100, 4096, tide__feed_frame(f, 0, a, 1));
    finish(&r, f);
    assert_sql(r.dir.file, "UPDATE name SET text = 'b+0x1' WHERE text = 'a+0x1'", "");
    assert_tide_ok(tide_trace_name_frames(r.dir.file, &plugin, &report, &err), &err);
    assert_int_equal(report.n_frames, 1);
    assert_int_equal(report.n_named, 0);
    static const char *const odd[] = {"a+0x", "a+0xg", "+0x1", "a+0x12345678123456789", "a+0x1 ", "a"};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        char query[128];
        snprintf(query, sizeof query, "UPDATE name SET text = '%s' WHERE id = (SELECT name_id FROM scope)", odd[i]);
        assert_sql(r.dir.file, query, "");
        assert_tide_ok(tide_trace_name_frames(r.dir.file, &plugin, &report, &err), &err);
        assert_int_equal(report.n_named, 0);
    }
    rig_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_frames_are_scopes),       tide_unit_test(test_parts_of_a_range_keep_the_stack),
        tide_unit_test(test_what_cannot_be),          tide_unit_test(test_a_frame_where_none_is),
        tide_unit_test(test_more_frames_than_may_be), tide_unit_test(test_names),
        tide_unit_test(test_nothing_to_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
