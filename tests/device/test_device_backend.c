// SPDX-License-Identifier: MIT
//
// The table of device types: which backends may register, under which number, and what a call reports for a type
// without a backend. The last test fills the table for good, so it stays the last.
#include "tests/device/device_test.h"
#include "tests/device/fake_device.h"

/// A table like the fake's, under another name; tests spoil copies of it.
static tide_device_ops ops_named(const char *name) {
    tide_device_ops ops = fake_ops;
    ops.name = name;
    return ops;
}

static tide_status try_register(const tide_device_ops *ops, tide_error *err) {
    tide_device_type type = (tide_device_type)99;
    const tide_status st = tide_device_register(ops, &fake, &type, err);
    if (st != TIDE_OK) assert_int_equal(type, 99);
    return st;
}

static void bad_tables_are_refused(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_device_ops ops = ops_named("bad");
    ops.abi = TIDE_DEVICE_ABI + 1;
    assert_tide_status(try_register(&ops, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "ABI 2");
    static const char *const names[] = {"", "Bad", "bad0", "bad:0", "bad name", "b\xc3\xa4z", "longerthanisgood"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        ops = ops_named(names[i]);
        assert_tide_status(try_register(&ops, &err), TIDE_ERR_INVALID);
        assert_text_has(err.msg, names[i]);
    }
    ops = ops_named(NULL);
    assert_tide_status(try_register(&ops, &err), TIDE_ERR_INVALID);
}

static void not_called(void) {}

/// Each entry that must be there is missed by its name; pinned memory, capture, pool, mapping and patterns are all or
/// nothing, and what maps says in which steps.
static void every_missing_entry_is_named(void **state) {
    (void)state;
    static const struct {
        const char *name;
        size_t offset;
    } rows[] = {
#define ROW(entry) {#entry, offsetof(tide_device_ops, entry)}
        ROW(count),
        ROW(mem_alloc),
        ROW(mem_free),
        ROW(pinned_alloc),
        ROW(pinned_free),
        ROW(copy),
        ROW(fill),
        ROW(call),
        ROW(stream_create),
        ROW(stream_destroy),
        ROW(stream_sync),
        ROW(event_create),
        ROW(event_destroy),
        ROW(stream_wait_event),
        ROW(event_record),
        ROW(event_query),
        ROW(event_sync),
        ROW(capture_begin),
        ROW(capture_end),
        ROW(capture_launch),
        ROW(capture_destroy),
        ROW(facts),
        ROW(pool_alloc),
        ROW(pool_free),
        ROW(pool_keep),
        ROW(pool_trim),
        ROW(pool_stats),
        ROW(vm_reserve),
        ROW(vm_release),
        ROW(vm_map),
        ROW(vm_unmap),
        ROW(pattern_fill),
        ROW(pattern_check),
#undef ROW
    };
    // All that follows abi and name is entries; memory_info may be missing by itself.
    const size_t n_entries = (sizeof(tide_device_ops) - offsetof(tide_device_ops, count)) / sizeof(void (*)(void));
    assert_int_equal(sizeof rows / sizeof rows[0] + 1, n_entries);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_device_ops ops = fake_ops_pinned;
        ops.name = "holes";
        for (size_t k = 0; k < n_entries; k++) {
            void (**entry)(void) = (void (**)(void))((char *)&ops + offsetof(tide_device_ops, count)) + k;
            if (*entry == NULL) *entry = not_called;
        }
        memset((char *)&ops + rows[i].offset, 0, sizeof(void (*)(void)));
        assert_tide_status(try_register(&ops, &err), TIDE_ERR_INVALID);
        assert_text_has(err.msg, "holes");
        assert_text_has(err.msg, rows[i].name);
    }
}

static void a_type_keeps_its_number_and_its_name(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    fake_setup(2);
    const tide_device_type type = fake.type;
    assert_true(type >= TIDE_DEVICE_FIRST_EXTRA && (int)type < TIDE_MAX_DEVICE_TYPES);
    assert_tide_status(try_register(&fake_ops, &err), TIDE_ERR_EXISTS);
    assert_text_has(err.msg, "fake");
    char buf[32];
    assert_string_equal(tide_device_format(fake_at(1), buf, sizeof buf), "fake:1");
    fake_teardown();

    const tide_device was = {type, 0};
    void *self = &self;
    assert_null(tide_device_find(was, &self));
    assert_ptr_equal(self, &self);
    assert_string_equal(tide_device_format(was, buf, sizeof buf), "fake:0");
    assert_tide_status(tide_device_require(was, &err), TIDE_ERR_NOT_IMPLEMENTED);
    assert_text_has(err.msg, "fake:0");

    const tide_device_ops other = ops_named("other");
    tide_device_type other_type;
    assert_tide_ok(tide_device_register(&other, &fake, &other_type, &err), &err);
    assert_true(other_type != type);
    fake_setup(1);
    assert_int_equal(fake.type, type);
    fake_teardown();
    tide_device_unregister(other_type);
}

static void names_of_registered_types_are_devices(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_device d = TIDE_CPU;
    assert_tide_status(tide_device_parse("fake:1", &d, &err), TIDE_ERR_INVALID);
    fake_setup(2);
    assert_tide_ok(tide_device_parse("fake:1", &d, &err), &err);
    assert_true(tide_device_equal(d, fake_at(1)));
    assert_tide_ok(tide_device_require(d, &err), &err);
    assert_tide_ok(tide_device_parse("fake", &d, &err), &err);
    assert_true(tide_device_equal(d, fake_at(0)));
    assert_tide_ok(tide_device_parse("fake:2", &d, &err), &err);
    assert_tide_status(tide_device_require(d, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "there are 2 fake devices");
    d.index = -1;
    assert_tide_status(tide_device_require(d, &err), TIDE_ERR_INVALID);
    static const char *const bad[] = {"fak", "fakes", "fake:", "fake:-1", "fake0", "fake:0x", "Fake", ":1", "cpu:0"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (tide_device_parse(bad[i], &d, &err) != TIDE_ERR_INVALID) fail_msg("'%s' is a device", bad[i]);
        assert_text_has(err.hint, "cuda:1, fake");
    }
    fake_teardown();
}

static void the_list_has_every_device(void **state) {
    (void)state;
    tide_device list[4];
    const size_t n_before = tide_device_list(list, 4);
    assert_int_equal(n_before, 1);
    assert_true(tide_device_equal(list[0], TIDE_CPU));
    fake_setup(5);
    assert_int_equal(tide_device_list(NULL, 0), 6);
    assert_int_equal(tide_device_list(list, 4), 6);
    assert_true(tide_device_equal(list[0], TIDE_CPU));
    for (int32_t i = 0; i < 3; i++) assert_true(tide_device_equal(list[i + 1], fake_at(i)));
    fake_teardown();
}

/// A call of every kind.
static void each_call_is(tide_device d, tide_status want) {
    tide_error err = TIDE_ERROR_INIT;
    void *ptr = NULL;
    uint64_t id;
    bool done;
    char byte;
#define IS(expr)                                                                                                       \
    do {                                                                                                               \
        tide_error_clear(&err);                                                                                        \
        assert_tide_status(expr, want);                                                                                \
        assert_true(err.msg[0] != '\0');                                                                               \
    } while (0)
    IS(tide_device_mem_alloc(d, 1, 1, &ptr, &err));
    IS(tide_device_copy(d, 0, TIDE_COPY_WITHIN_DEVICE, &byte, &byte, 1, &err));
    IS(tide_device_fill(d, 0, &byte, 0, 1, &err));
    IS(tide_device_call(d, 0, gate_pass, NULL, &err));
    IS(tide_device_transfer(d, &byte, TIDE_CPU, &byte, 1, 0, &err));
    IS(tide_device_transfer(TIDE_CPU, &byte, d, &byte, 1, 0, &err));
    IS(tide_device_transfer(d, &byte, d, &byte, 0, 0, &err));
    IS(tide_stream_create(d, &id, &err));
    IS(tide_stream_sync(d, 0, &err));
    IS(tide_stream_wait_event(d, 0, 1, &err));
    IS(tide_event_create(d, &id, &err));
    IS(tide_event_record(d, 1, 0, &err));
    IS(tide_event_query(d, 1, &done, &err));
    IS(tide_event_sync(d, 1, &err));
    IS(tide_capture_begin(d, 1, &err));
    IS(tide_capture_end(d, 1, &id, &err));
    IS(tide_capture_launch(d, 1, 1, &err));
#undef IS
    assert_false(tide_device_has_pinned(d));
    tide_device_mem_free(d, NULL); // no memory and no backend: no crash
    tide_stream_destroy(d, 1);
    tide_event_destroy(d, 1);
    tide_capture_destroy(d, 1);
}

static void calls_without_a_device_say_so(void **state) {
    (void)state;
    each_call_is((tide_device){TIDE_DEVICE_CUDA, 0}, TIDE_ERR_NOT_IMPLEMENTED);
    each_call_is((tide_device){(tide_device_type)15, 0}, TIDE_ERR_INVALID);
    each_call_is((tide_device){(tide_device_type)-1, 0}, TIDE_ERR_INVALID);
    each_call_is((tide_device){TIDE_DEVICE_CPU, 1}, TIDE_ERR_INVALID);
    fake_setup(2);
    each_call_is(fake_at(2), TIDE_ERR_INVALID);
    for (int i = 0; i < FAKE_N_CALLS; i++) {
        const bool ends = i == FAKE_STREAM_DESTROY || i == FAKE_EVENT_DESTROY || i == FAKE_CAPTURE_DESTROY;
        assert_int_equal(fake.n_calls[i], ends ? 1 : 0);
    }
    fake_teardown();
}

static void what_a_table_leaves_out_is_not_implemented(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_device_ops plain = ops_named("plain");
    plain.capture_begin = NULL;
    plain.capture_end = NULL;
    plain.capture_launch = NULL;
    plain.capture_destroy = NULL;
    fake_setup(1);
    tide_device d = {.index = 0};
    assert_tide_ok(tide_device_register(&plain, &fake, &d.type, &err), &err);
    uint64_t id = 5;
    assert_tide_status(tide_capture_begin(d, 1, &err), TIDE_ERR_NOT_IMPLEMENTED);
    assert_text_has(err.msg, "plain:0 cannot capture");
    assert_tide_status(tide_capture_end(d, 1, &id, &err), TIDE_ERR_NOT_IMPLEMENTED);
    assert_tide_status(tide_capture_launch(d, 1, 1, &err), TIDE_ERR_NOT_IMPLEMENTED);
    tide_capture_destroy(d, 1);
    assert_int_equal(id, 5);
    assert_false(tide_device_has_pinned(d));
    assert_false(tide_device_has_pinned(TIDE_CPU));
    tide_device_unregister(d.type);
    fake_teardown();
    fake_setup_with(1, true);
    assert_true(tide_device_has_pinned(fake_at(0)));
    fake_teardown();
}

static void the_cpu_stays(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_device_unregister(TIDE_DEVICE_CPU);
    tide_device_unregister((tide_device_type)-1);
    tide_device_unregister((tide_device_type)TIDE_MAX_DEVICE_TYPES);
    tide_device_unregister((tide_device_type)14);
    assert_tide_ok(tide_device_require(TIDE_CPU, &err), &err);
    const tide_device_ops second = ops_named("cpu");
    assert_tide_status(try_register(&second, &err), TIDE_ERR_EXISTS);
}

static void cuda_has_its_own_number(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    const tide_device_ops cuda = ops_named("cuda");
    fake_setup(2);
    for (int round = 0; round < 2; round++) { // a plug-in may come again
        tide_device_type type;
        assert_tide_ok(tide_device_register(&cuda, &fake, &type, &err), &err);
        assert_int_equal(type, TIDE_DEVICE_CUDA);
        assert_tide_ok(tide_device_require((tide_device){type, 1}, &err), &err);
        assert_tide_status(tide_device_require((tide_device){type, 2}, &err), TIDE_ERR_INVALID);
        tide_device_unregister(type);
        assert_tide_status(tide_device_require((tide_device){type, 1}, &err), TIDE_ERR_NOT_IMPLEMENTED);
    }
    fake_teardown();
}

typedef struct registrar {
    pthread_t thread;
    tide_device_ops ops;
    char name[8];
    int n_done;
    bool odd;
} registrar;

static void *come_and_go(void *arg) {
    registrar *r = arg;
    for (int i = 0; i < 50; i++) {
        tide_device d = {.index = 0};
        if (tide_device_register(&r->ops, &fake, &d.type, NULL) != TIDE_OK) continue;
        tide_device back = TIDE_CPU;
        char text[32];
        const bool found = tide_device_parse(tide_device_format(d, text, sizeof text), &back, NULL) == TIDE_OK;
        r->odd |= !found || !tide_device_equal(back, d) || strncmp(text, r->name, strlen(r->name)) != 0;
        tide_device_unregister(d.type);
        r->n_done++;
    }
    return NULL;
}

static void types_come_and_go_on_many_threads(void **state) {
    (void)state;
    static registrar r[4];
    fake_setup(1);
    for (size_t i = 0; i < 4; i++) {
        r[i] = (registrar){.ops = fake_ops};
        snprintf(r[i].name, sizeof r[i].name, "thr%c", (char)('a' + (char)i));
        r[i].ops.name = r[i].name;
        assert_int_equal(pthread_create(&r[i].thread, NULL, come_and_go, &r[i]), 0);
    }
    for (size_t i = 0; i < 4; i++) pthread_join(r[i].thread, NULL);
    for (size_t i = 0; i < 4; i++) {
        assert_false(r[i].odd);
        assert_int_equal(r[i].n_done, 50);
    }
    fake_teardown();
}

static void the_table_is_full_at_sixteen(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    static char names[TIDE_MAX_DEVICE_TYPES][8];
    static tide_device_ops ops[TIDE_MAX_DEVICE_TYPES];
    static tide_device_type types[TIDE_MAX_DEVICE_TYPES];
    size_t n = 0;
    fake_setup(0);
    for (; n < TIDE_MAX_DEVICE_TYPES; n++) {
        snprintf(names[n], sizeof names[n], "full%c", (char)('a' + (char)n));
        ops[n] = ops_named(names[n]);
        const tide_status st = tide_device_register(&ops[n], &fake, &types[n], &err);
        if (st == TIDE_ERR_NO_SPACE) break;
        assert_tide_ok(st, &err);
        assert_true(types[n] >= TIDE_DEVICE_FIRST_EXTRA && (int)types[n] < TIDE_MAX_DEVICE_TYPES);
        for (size_t i = 0; i < n; i++) assert_true(types[i] != types[n]);
    }
    assert_true(n > 0 && n < TIDE_MAX_DEVICE_TYPES);
    assert_text_has(err.msg, names[n]);
    assert_text_has(err.msg, "16");
    for (size_t i = 0; i < n; i++) tide_device_unregister(types[i]);
    // Room is not made by leaving: a number stays with its name.
    assert_tide_status(try_register(&ops[n], &err), TIDE_ERR_NO_SPACE);
    for (size_t i = 0; i < n; i++) {
        tide_device_type again;
        assert_tide_ok(tide_device_register(&ops[i], &fake, &again, &err), &err);
        assert_int_equal(again, types[i]);
        tide_device_unregister(again);
    }
    fake_teardown();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(bad_tables_are_refused),
        tide_unit_test(every_missing_entry_is_named),
        tide_unit_test(a_type_keeps_its_number_and_its_name),
        tide_unit_test(names_of_registered_types_are_devices),
        tide_unit_test(the_list_has_every_device),
        tide_unit_test(calls_without_a_device_say_so),
        tide_unit_test(what_a_table_leaves_out_is_not_implemented),
        tide_unit_test(the_cpu_stays),
        tide_unit_test(cuda_has_its_own_number),
        tide_unit_test(types_come_and_go_on_many_threads),
        tide_unit_test(the_table_is_full_at_sixteen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
