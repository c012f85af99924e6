// SPDX-License-Identifier: MIT
//
// Items of a trace's runs: blocks, and in place of a plan's buffer the tensors that lie in it, against the blocks of
// the trace and the tables that the demo is made of.
#include "tests/analysis/subject_fixture.h"

#include "analysis/item_fill.h"

/// An item as the blocks of the trace and the demo's own tables say it.
typedef struct wanted {
    uint64_t id, reserved_bytes, offset;
    const char *name, *owner;
    int64_t begin, end;
    bool open_ended, is_planned, persistent;
    tide_memory_kind kind;
    tide_role role;
} wanted;

static const demo_tensor *demo_of(const char *name) {
    for (size_t i = 0; i < N_DEMO; i++)
        if (strcmp(demo_tensors[i].name, name) == 0) return &demo_tensors[i];
    return NULL;
}

static int64_t cut(const tide_subject_facts *f, uint64_t t) {
    if (t > (uint64_t)f->end) return f->end;
    return (int64_t)t < f->begin ? f->begin : (int64_t)t;
}

/// Blocks of a run; what the plan says of a tensor holds for the block of that name. The plan's buffer is none.
static size_t want_blocks(const tide_subject_facts *f, const tide_trace_block *blocks, size_t n, wanted *out) {
    size_t n_out = 0;
    for (size_t i = 0; i < n; i++) {
        const tide_trace_block *b = &blocks[i];
        const demo_tensor *tensor = demo_of(b->name);
        if (strcmp(b->name, "plan buffer") == 0) continue;
        out[n_out++] = (wanted){.id = b->id,
                                .reserved_bytes = b->reserved_bytes,
                                .offset = b->address,
                                .name = b->name,
                                .owner = b->scope,
                                .begin = cut(f, b->alloc_ns),
                                .end = cut(f, b->free_ns),
                                .open_ended = b->free_ns == UINT64_MAX,
                                .persistent = tensor != NULL && tensor->offset == TIDE_NO_OFFSET,
                                .kind = b->kind,
                                .role = tensor != NULL ? tensor->role : TIDE_ROLE_INTERMEDIATE};
    }
    return n_out;
}

/// In the planned run the tensors that lie in the buffer, in both executions, the second 400 ns behind the first.
static size_t want_tensors(wanted *out) {
    static const struct {
        const char *name, *owner;
        int64_t begin, end;
    } times[] = {{"a", "conv", 2100, 2290},
                 {"conv.scratch", "conv", 2100, 2150},
                 {"b", "relu", 2150, 2250},
                 {"c", "conv2", 2200, 2290},
                 {"conv2.scratch", "conv2", 2200, 2250}};
    const size_t n = sizeof times / sizeof times[0];
    for (size_t i = 0; i < 2 * n; i++) {
        const demo_tensor *tensor = demo_of(times[i % n].name);
        const uint64_t execution = i / n;
        out[i] = (wanted){.id = tide_planned_id(2, execution, (uint64_t)(tensor - demo_tensors)),
                          .reserved_bytes = (tensor->size_bytes + 255) / 256 * 256,
                          .offset = tensor->offset,
                          .name = times[i % n].name,
                          .owner = times[i % n].owner,
                          .begin = times[i % n].begin + 400 * (int64_t)execution,
                          .end = times[i % n].end + 400 * (int64_t)execution,
                          .is_planned = true,
                          .kind = tensor->kind,
                          .role = tensor->role};
    }
    return 2 * n;
}

static void assert_item(tide_subject *s, uint32_t i, const wanted *list, size_t n) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_items *items = tide_subject_items(s);
    const wanted *want = NULL;
    tide_item_facts got;
    assert_tide_ok(tide_subject_item(s, i, &got, &err), &err);
    for (size_t k = 0; k < n; k++)
        if (list[k].id == got.id && list[k].is_planned == got.shape.is_planned) want = &list[k];
    assert_non_null(want);
    assert_string_equal(got.site.name, want->name);
    assert_string_equal(got.site.owner, want->owner);
    assert_int_equal(got.shape.reserved_bytes, want->reserved_bytes);
    assert_int_equal(got.begin, want->begin);
    assert_int_equal(got.end, want->end);
    assert_int_equal(got.open_ended, want->open_ended);
    assert_int_equal(got.shape.kind, want->kind);
    assert_int_equal(got.shape.role, want->role);
    assert_int_equal(got.shape.fill, tide_item_fill_of(want->kind, want->role));
    assert_int_equal(got.shape.persistent, tide_item_persists(want->kind, want->role, want->persistent));
    assert_int_equal(got.place, want->offset);
    assert_int_equal(tide_items_find(items, got.id), i);
    assert_int_equal(tide_items_find_at(items, got.id, got.begin, got.shape.size_bytes), i);
}

/// Items of each run are its blocks, of the planned one its tensors in place of the buffer; of the whole, table block.
static void items_of_each_run(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tmp_dir d;
    tmp_dir_make(&d);
    demo_record(d.file, 0);
    for (int64_t run = 1; run <= 2; run++) {
        tide_subject *s = subject_of_trace(d.file, run);
        const tide_items *items = load_items(s);
        tide_trace_block *blocks;
        wanted list[64];
        size_t n_blocks;
        assert_tide_ok(tide_trace_blocks(tide_subject_trace(s), run, &blocks, &n_blocks, &err), &err);
        assert_true(n_blocks + N_DEMO < 64);
        size_t n = want_blocks(tide_subject_get_facts(s), blocks, n_blocks, list);
        if (run == 2) n += want_tensors(list + n);
        assert_int_equal(items->n, n);
        assert_int_equal(n, run == 1 ? 8 : 4 + 2 * 5);
        for (uint32_t i = 0; i < items->n; i++) assert_item(s, i, list, n);
        assert_int_equal(tide_subject_get_facts(s)->n_items, items->n);
        tide_trace_blocks_free(blocks, n_blocks);
        tide_subject_destroy(s);
    }
    tide_subject *s = subject_of_trace(d.file, 0);
    char count[16];
    const tide_items *items = load_items(s);
    snprintf(count, sizeof count, "%zu\n", items->n - 2 * 5); // the tensors in place of one block
    assert_sql(d.file, "SELECT count(*) - 1 FROM block", count);
    assert_string_equal(items->shapes[0].allocator, "cpu");
    tide_item_facts kept;
    assert_tide_ok(tide_subject_item(s, tide_items_find(items, 15), &kept, &err), &err);
    assert_string_equal(kept.site.name, "kept");
    assert_string_equal(kept.site.owner, "add");
    assert_true(kept.open_ended);
    assert_int_equal(kept.place, 0x7f0000000000u + 15 * 4096);
    tide_subject_destroy(s);
    tmp_dir_remove(&d);
}

/// A run that stops in its first step: only tensors whose steps ran are items.
static void a_run_that_stopped(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    tide_memory_plan *plan = demo_plan_make();
    const tide_run_info info = {.model = "demo", .mode = "planned", .strategy = "by_hand", .device = "cpu"};
    feed(&f, 5, TIDE_MEM_ALLOC, 1, TIDE_KIND_DEFAULT, 100, "before");
    feed_begin_run(&f, 10, &info, plan);
    tide_memory_plan_destroy(plan);
    feed(&f, 20, TIDE_MEM_ALLOC, 2, TIDE_KIND_WORKSPACE, DEMO_BYTES, "plan buffer");
    feed(&f, 21, TIDE_MEM_ALLOC, 3, TIDE_KIND_DEFAULT, DEMO_BYTES, "as large as the buffer");
    const tide_scope op = {.name = "conv", .kind = TIDE_SCOPE_OPERATOR, .index = 0};
    feed_scope(&f, 30, true, &op);
    feed_end_run(&f, 40);
    feeder_close(&f);
    tide_subject *s = subject_of_trace(d.file, 1);
    const tide_items *items = load_items(s);
    static const struct {
        const char *name;
        int64_t begin, end;
    } want[] = {{"before", 10, 40}, {"as large as the buffer", 21, 40}, {"a", 30, 40}, {"conv.scratch", 30, 40}};
    assert_int_equal(items->n, 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_string_equal(tide_items_site(items, i)->name, want[i].name);
        assert_int_equal(tide_items_begin(items, i), want[i].begin);
        assert_int_equal(tide_items_end(items, i), want[i].end);
    }
    const tide_subject_facts *facts = tide_subject_get_facts(s);
    assert_int_equal(facts->peak_bytes, 100 + 2 * DEMO_BYTES);
    tide_subject_destroy(s);
    tmp_dir_remove(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(items_of_each_run),
        tide_unit_test(a_run_that_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
