// SPDX-License-Identifier: MIT
//
// The chain from a description to a tensor and back: order of the steps, what it costs, what happens when one of them
// fails, and that there is one way in.
#include <ctype.h>

#include "core/base/text.h"
#include "tests/memory/mock_allocator.h"
#include "tests/tensor/tensor_test.h"

// ---- LT-14, LT-3 ----

/// A mock that also notes how many of our own records there were when memory was asked for.
typedef struct recorder {
    mock m;
    uint64_t n_records;
} recorder;

static tide_status record_alloc(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err) {
    tide_host_stats h;
    tide_host_get_stats(&h);
    ((recorder *)self)->n_records = h.n_live;
    return mock_alloc(&((recorder *)self)->m, req, out, err);
}

static const tide_allocator_ops recorder_ops = {.abi = TIDE_ALLOCATOR_ABI,
                                                .name = "recorder",
                                                .alloc = record_alloc,
                                                .release = mock_release,
                                                .stats = mock_stats,
                                                .destroy = mock_destroy};

static uint64_t n_records(void) {
    tide_host_stats h;
    tide_host_get_stats(&h);
    return h.n_live;
}

// LT-14: checked byte count, allocator by (device, kind), storage, row-major strides, impl, handle: each step is seen
// by what the one before it has done and the one after it has not. LT-3: dropping the handle goes the way back.
static void chain_of_creation_LT_14_LT_3(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_registry *r = NULL;
    tide_tensor *t = NULL;
    assert_tide_ok(tide_registry_create(&r, &err), &err);
    tide_tensor_spec spec = {.dtype = TIDE_F32,
                             .shape = tide_shape_make(2, DIMS(INT64_C(1) << 33, INT64_C(1) << 33)),
                             .kind = TIDE_KIND_KV_CACHE,
                             .align_bytes = 128,
                             .stream = 0,
                             .registry = r,
                             .tag = "k0"};
    // 1: the size is computed before the allocator is looked up; there is none.
    assert_tide_status(tide_tensor_create(&spec, &t, &err), TIDE_ERR_OVERFLOW);
    // 2: the allocator is looked up by device and kind.
    spec.shape = tide_shape_make(2, DIMS(5, 10));
    assert_tide_status(tide_tensor_create(&spec, &t, &err), TIDE_ERR_NOT_FOUND);
    recorder right = {.m.fail_after = 0}, wrong = {.m.fail_after = -1};
    tide_allocator *a = NULL, *b = NULL;
    assert_tide_ok(tide_allocator_create(&recorder_ops, &right, TIDE_CPU, &a, &err), &err);
    assert_tide_ok(tide_allocator_create(&recorder_ops, &wrong, TIDE_CPU, &b, &err), &err);
    assert_tide_ok(tide_registry_add(r, TIDE_KIND_KV_CACHE, a, 0, &err), &err);
    assert_tide_ok(tide_registry_add(r, TIDE_KIND_DEFAULT, b, 0, &err), &err);
    // 3: storage. When it fails there is no impl, and no record is left.
    const uint64_t before = n_records();
    assert_tide_status(tide_tensor_create(&spec, &t, &err), TIDE_ERR_NOMEM);
    assert_text_has(err.msg, "tensor 'k0'");
    assert_null(t);
    assert_true(n_records() == before);
    assert_tide_ok(tide_tensor_create(&spec, &t, &err), &err);
    assert_string_equal(right.m.order, "fa");
    assert_int_equal(wrong.m.n_allocs, 0);
    assert_int_equal(right.m.asked.size_bytes, 256); // 200 B rounded up
    assert_int_equal(right.m.asked.align_bytes, 128);
    assert_int_equal(right.m.asked.kind, TIDE_KIND_KV_CACHE);
    assert_string_equal(right.m.asked_tag, "k0");
    const tide_block *block = tide_tensor_storage(t)->block;
    assert_true(right.m.asked.block_id == block->id);
    // 4, 5: the block's record was there when memory was asked for, the impl was not.
    assert_true(right.n_records == before + 1);
    assert_true(n_records() == before + 2);
    assert_int_equal(tide_tensor_strides(t)[0], 10);
    assert_int_equal(tide_tensor_strides(t)[1], 1);
    // 6: the handle is what it points to.
    assert_true(tide_tensor_is_defined(t));
    assert_ptr_equal(tide_tensor_data(t), right.m.given);
    // Freed again: storage, block, and the allocator with its last reference.
    tide_registry_destroy(r);
    tide_allocator_unref(a);
    tide_allocator_unref(b);
    assert_string_equal(wrong.m.order, "d");
    assert_string_equal(right.m.order, "fa");
    tide_tensor_unref(t);
    assert_string_equal(right.m.order, "fard");
    assert_true(right.m.released.block_id == right.m.asked.block_id);
}

// LT-34, S28-20: a tensor outlives registry and allocator handles; its bytes stay readable until it goes.
static void outlives_its_registry_S28_20(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    mock m;
    tide_allocator *a = make_mock(&m, TIDE_CPU);
    tide_registry *r = registry_of(a);
    const tide_tensor_spec spec = {
        .dtype = TIDE_I32, .shape = tide_shape_make(1, DIMS(100)), .registry = r, .tag = "kept"};
    tide_tensor *t = make(&spec), *view = NULL;
    for (int i = 0; i < 100; i++) ((int32_t *)tide_tensor_data(t))[i] = i;
    // Reuse allocates nothing new; the users share.
    const tide_shape square = tide_shape_make(2, DIMS(10, 10));
    assert_tide_ok(tide_tensor_view(t, &square, &view, &err), &err);
    assert_int_equal(m.n_allocs, 1);
    assert_int_equal(tide_storage_use_count(tide_tensor_storage(t)), 2);
    tide_registry_destroy(r);
    tide_allocator_unref(a);
    tide_tensor_unref(t);
    assert_string_equal(m.order, "a");
    assert_int_equal(((const int32_t *)tide_tensor_const_data(view))[99], 99);
    tide_tensor_unref(view);
    assert_string_equal(m.order, "ard");
}

// ---- LT-30 ----

static uint64_t host_calls(void) {
    tide_host_stats h;
    tide_host_get_stats(&h);
    return h.n_allocs;
}

// LT-30: a created tensor costs two pieces of host memory, impl and block; a view costs one; no separate control block.
static void pieces_per_tensor_LT_30(void **state) {
    (void)state;
    bench b; // instrumented: observing costs nothing here
    bench_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor_spec spec = spec_of(&b, TIDE_F32, 2, DIMS(3, 4));
    tide_tensor *warm = make(&spec); // whatever is made once per registry or allocator is there now
    for (int i = 0; i < 3; i++) {
        uint64_t before = host_calls();
        tide_tensor *t = make(&spec), *view = NULL, *twin = NULL;
        assert_true(host_calls() - before <= 2);
        before = host_calls();
        assert_tide_ok(tide_tensor_slice(t, 0, 0, 1, 1, &view, &err), &err);
        assert_true(host_calls() - before == 1);
        before = host_calls();
        assert_tide_ok(tide_tensor_lazy_clone(t, NULL, &twin, NULL, &err), &err);
        assert_true(host_calls() - before <= 3); // and what the two share
        before = host_calls();
        (void)tide_tensor_data(t);
        (void)tide_tensor_ref(t);
        tide_tensor_unref(t);
        const tide_shape flat = tide_shape_make(1, DIMS(12));
        assert_tide_ok(tide_tensor_set_shape(t, &flat, &err), &err);
        assert_true(host_calls() == before);
        tide_tensor_unref(t);
        tide_tensor_unref(view);
        tide_tensor_unref(twin);
    }
    tide_tensor_unref(warm);
    bench_close(&b);
}

// ---- LT-33 ----

/// What must stand among the parameters of a function that hands out a tensor: a kind, or something that has one.
static bool states_a_kind(const char *params) {
    static const char *const sources[] = {"tide_memory_kind ", "tide_tensor_spec *", "tide_storage *",
                                          "tide_tensor *t"};
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        if (strstr(params, sources[i]) != NULL) return true;
    }
    return false;
}

// LT-33: every function of the header that makes a tensor is told its kind, directly or by a storage or tensor that has
// one. Only the unbound tensor has none, as it has no memory.
static void no_path_without_a_kind_LT_33(void **state) {
    (void)state;
    char path[512];
    char *text = NULL;
    size_t len = 0;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_read_file(tide_source_path("core/tensor/tensor.h", path, sizeof path), 0, &text, &len, &err),
                   &err);
    int n_makers = 0, n_without = 0;
    for (const char *at = text; (at = strstr(at, "tide_status tide_")) != NULL;) {
        const char *open = strchr(at, '('), *end = strchr(at, ';');
        assert_true(open != NULL && end != NULL && open < end);
        char decl[512];
        assert_true((size_t)(end - at) < sizeof decl);
        memcpy(decl, at, (size_t)(end - at));
        decl[end - at] = '\0';
        for (char *c = decl; *c != '\0'; c++) {
            if (isspace((unsigned char)*c)) *c = ' ';
        }
        at = end;
        if (strstr(decl, "tide_tensor **out") == NULL) continue;
        n_makers++;
        if (states_a_kind(strchr(decl, '('))) continue;
        n_without++;
        if (strstr(decl, "tide_tensor_create_unbound(") == NULL) fail_msg("no kind: %s", decl);
    }
    assert_int_equal(n_without, 1);
    assert_true(n_makers >= 12);
    assert_false(states_a_kind("(tide_dtype dtype, const tide_shape *shape, tide_tensor **out, tide_error *err)"));
    tide_host_free(text);
}

// S28-8: a tensor cannot be copied by an assignment: the header keeps what it is to itself, and every call hands out a
// handle. So references (ref) and moves (take) are all there is, besides the clones that say so.
static void tensors_are_opaque_S28_8(void **state) {
    (void)state;
    char path[512];
    char *text = NULL;
    size_t len = 0;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_read_file(tide_source_path("core/tensor/tensor.h", path, sizeof path), 0, &text, &len, &err),
                   &err);
    assert_text_has(text, "\ntypedef struct tide_tensor tide_tensor;\n");
    assert_null(strstr(text, "struct tide_tensor {"));
    int n_handles = 0;
    for (const char *at = text; (at = strstr(at, "tide_tensor *")) != NULL; at++) n_handles++;
    assert_true(n_handles > 30); // it did look
    for (const char *at = text; (at = strstr(at, "tide_tensor ")) != NULL; at++) {
        const char after = at[strlen("tide_tensor ")];
        const bool is_typedef = strncmp(at, "tide_tensor tide_tensor;", 24) == 0;
        if (after != '*' && !is_typedef && isalpha((unsigned char)after)) fail_msg("by value: %.60s", at);
    }
    tide_host_free(text);
}

// ---- failures, one after another ----

/// A scenario on a bench; must leave nothing behind when it fails.
typedef tide_status (*scenario)(bench *b, tide_tensor *t, tide_error *err);

static tide_status run_create(bench *b, tide_tensor *t, tide_error *err) {
    (void)t;
    const tide_tensor_spec spec = spec_of(b, TIDE_F32, 2, DIMS(3, 4));
    tide_tensor *out = NULL;
    const tide_status st = tide_tensor_create(&spec, &out, err);
    assert_true((out != NULL) == (st == TIDE_OK));
    tide_tensor_unref(out);
    return st;
}
static tide_status run_resize(bench *b, tide_tensor *t, tide_error *err) {
    (void)b;
    const tide_shape more = tide_shape_make(1, DIMS(1000));
    return tide_tensor_resize(t, &more, NULL, err);
}
static tide_status run_clone(bench *b, tide_tensor *t, tide_error *err) {
    const tide_tensor_spec spec = spec_of(b, TIDE_F32, 0, NULL);
    tide_tensor *out = NULL;
    const tide_status st = tide_tensor_clone(t, &spec, &out, err);
    assert_true((out != NULL) == (st == TIDE_OK));
    tide_tensor_unref(out);
    return st;
}
static tide_status run_turned_clone(bench *b, tide_tensor *t, tide_error *err) {
    (void)b;
    tide_tensor *turned = NULL, *out = NULL;
    tide_status st = tide_tensor_as_strided(t, &(tide_shape){.rank = 2, .dims = {4, 10}}, DIMS(1, 4), 0, &turned, err);
    if (st == TIDE_OK) st = tide_tensor_contiguous(turned, &out, err);
    assert_true((out != NULL) == (st == TIDE_OK));
    tide_tensor_unref(turned);
    tide_tensor_unref(out);
    return st;
}
static tide_status run_lazy_clone_and_write(bench *b, tide_tensor *t, tide_error *err) {
    (void)b;
    tide_tensor *twin = NULL;
    tide_status st = tide_tensor_lazy_clone(t, NULL, &twin, NULL, err);
    assert_true((twin != NULL) == (st == TIDE_OK));
    if (st != TIDE_OK) assert_false(tide_tensor_is_cow(t)); // marked last
    void *data = NULL;
    if (st == TIDE_OK) st = tide_tensor_write(t, &data, err);
    if (twin != NULL && st != TIDE_OK) {
        assert_null(data);
        assert_true(tide_tensor_is_alias(t, twin)); // they share as before
    }
    tide_tensor_unref(twin);
    return st;
}
static tide_status run_bind_external(bench *b, tide_tensor *t, tide_error *err) {
    (void)b;
    static _Alignas(64) unsigned char theirs[64];
    tide_data_ptr ptr = tide_data_ptr_bare(theirs, TIDE_CPU);
    const tide_shape few = tide_shape_make(1, DIMS(4));
    tide_tensor *other = NULL;
    (void)t;
    tide_status st = tide_tensor_create_unbound(TIDE_F32, &few, TIDE_CPU, &other, err);
    if (st == TIDE_OK) {
        st = tide_tensor_bind_external(other, &ptr, 64, TIDE_KIND_DEFAULT, "theirs", err);
        assert_true((ptr.data == NULL) == (st == TIDE_OK));
        assert_true(tide_tensor_is_bound(other) == (st == TIDE_OK));
    }
    tide_tensor_unref(other);
    return st;
}

static void assert_unchanged(const tide_tensor *t) {
    assert_int_equal(tide_tensor_shape(t)->dims[0], 40);
    const float *x = tide_tensor_const_data(t);
    for (int i = 0; i < 40; i++) assert_true(x[i] == (float)i);
}

/// Fail the 1st, 2nd … piece of host memory, or block, until the scenario succeeds. @return how many failures there
/// were
static int fail_each(scenario run, bool blocks) {
    bench b;
    bench_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    const tide_tensor_spec spec = spec_of(&b, TIDE_F32, 1, DIMS(40));
    tide_tensor *t = make(&spec);
    for (int i = 0; i < 40; i++) ((float *)tide_tensor_data(t))[i] = (float)i;
    int n_failures = 0;
    for (;; n_failures++) {
        assert_true(n_failures < 50);
        const uint64_t live_bytes = bench_live_bytes(&b), records = n_records();
        if (blocks)
            assert_tide_ok(tide_fail_nth_arm(b.nth, n_failures, &err), &err);
        else
            tide_host_fail_after(n_failures);
        const tide_status st = run(&b, t, &err);
        tide_host_fail_after(-1);
        assert_tide_ok(tide_fail_nth_arm(b.nth, -1, &err), &err);
        if (st == TIDE_OK) break;
        assert_tide_status(st, TIDE_ERR_NOMEM);
        assert_true(err.msg[0] != '\0');
        assert_true(bench_live_bytes(&b) == live_bytes);
        assert_unchanged(t);
        void *data;
        assert_tide_ok(tide_tensor_write(t, &data, &err), &err); // usable as before, and the last owner of its memory
        assert_true(n_records() == records);
    }
    tide_tensor_unref(t);
    bench_close(&b);
    return n_failures;
}

static void every_piece_of_memory_fails_once(void **state) {
    (void)state;
    static const struct {
        scenario run;
        int n_host, n_blocks; // how often each is asked
    } rows[] = {{run_create, 2, 1},
                {run_resize, 1, 1},
                {run_clone, 2, 1},
                {run_turned_clone, 3, 1},
                {run_lazy_clone_and_write, 3, 1},
                {run_bind_external, 2, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const int n_host = fail_each(rows[i].run, false), n_blocks = fail_each(rows[i].run, true);
        if (n_host != rows[i].n_host || n_blocks != rows[i].n_blocks)
            fail_msg("scenario %zu: %d pieces of host memory, %d blocks", i, n_host, n_blocks);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(chain_of_creation_LT_14_LT_3), tide_unit_test(outlives_its_registry_S28_20),
        tide_unit_test(pieces_per_tensor_LT_30),      tide_unit_test(no_path_without_a_kind_LT_33),
        tide_unit_test(tensors_are_opaque_S28_8),     tide_unit_test(every_piece_of_memory_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
