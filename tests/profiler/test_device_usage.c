// SPDX-License-Identifier: MIT
//
// Samples of devices: from the observer to the file, as rows and in chunks, and back; what cannot be true; what is left
// of them in a damaged file; and a trace of a time before they were.
#include "core/base/output.h"
#include "profiler/devices.h"
#include "tests/profiler/trace_fixture.h"

enum { N_SAMPLES = 5000 }; ///< with a block between each two: three chunks

#define GIB (UINT64_C(1) << 30)

static const uint64_t total_bytes = 80 * GIB;

/// What sample `i` says; every third is of the second device.
static uint64_t used_of(uint64_t i) { return i == 0 ? 0 : i == 1 ? total_bytes : i * 7919 % total_bytes; }
static int32_t device_of(uint64_t i) { return i % 3 == 2 ? 1 : 0; }

static tide_memory_event sample_of(uint64_t i) {
    return (tide_memory_event){.op = TIDE_MEM_DEVICE_USAGE,
                               .t_ns = 1000 + 10 * i,
                               .device = {.type = TIDE_DEVICE_CUDA, .index = device_of(i)},
                               .requested_bytes = used_of(i),
                               .reserved_bytes = total_bytes,
                               .thread = 1};
}

static void open_form(feeder *f, const char *path, tide_record_form form) {
    *f = (feeder){.thread = 1};
    const tide_recorder_options opt = {.form = form, .now = feeder_now, .now_ctx = f, .quiet = true};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_recorder_open(path, &opt, &f->rec, &err), &err);
    f->obs = tide_recorder_observer(f->rec);
}

static void record(const char *path, tide_record_form form, uint64_t n) {
    feeder f;
    open_form(&f, path, form);
    for (uint64_t i = 0; i < n; i++) {
        const tide_memory_event e = sample_of(i);
        f.now = e.t_ns;
        f.obs.on_memory(f.obs.self, &e);
        feed(&f, e.t_ns + 1, i % 2 == 0 ? TIDE_MEM_ALLOC : TIDE_MEM_FREE_COMPLETED, i / 2 + 1, TIDE_KIND_DEFAULT, 64,
             "b");
    }
    f.now = 1000 + 10 * n;
    tide_recorder_mark(f.rec, "behind them");
    feeder_close(&f);
}

static tide_trace *open_checked(const char *path) {
    tide_error err = TIDE_ERROR_INIT;
    tide_trace *t = NULL;
    assert_tide_ok(tide_trace_open(path, &t, &err), &err);
    assert_tide_ok(tide_trace_check(t, &err), &err);
    return t;
}

/// Every sample of the file is one that was given; @return how many there are
static size_t assert_samples(const char *path) {
    tide_error err = TIDE_ERROR_INIT;
    tide_trace *t = open_checked(path);
    tide_trace_usage *samples = NULL;
    size_t n = 0;
    assert_tide_ok(tide_trace_device_usage(t, &samples, &n, &err), &err);
    uint64_t last = 0;
    for (size_t k = 0; k < n; k++) {
        const tide_trace_usage *s = &samples[k];
        const uint64_t i = (s->t_ns - 1000) / 10;
        assert_true(s->t_ns == 1000 + 10 * i && i < N_SAMPLES && s->event > last);
        assert_true(s->used_bytes == used_of(i) && s->total_bytes == total_bytes);
        assert_string_equal(s->device, device_of(i) == 0 ? "cuda:0" : "cuda:1");
        last = s->event;
    }
    tide_host_free(samples);
    tide_trace_close(t);
    return n;
}

static void rows_and_chunks_give_back_what_was_put_in(void **state) {
    (void)state;
    static const tide_record_form forms[] = {TIDE_RECORD_ROWS, TIDE_RECORD_CHUNKS};
    for (size_t k = 0; k < 2; k++) {
        tmp_dir d;
        tmp_dir_make(&d);
        record(d.file, forms[k], N_SAMPLES);
        assert_int_equal(assert_samples(d.file), N_SAMPLES);
        assert_sql(d.file, "SELECT count(*) > 0 FROM event_chunk", k == 0 ? "0\n" : "1\n");
        tide_error err = TIDE_ERROR_INIT;
        if (k == 1) assert_tide_ok(tide_trace_expand(d.file, &err), &err);
        assert_int_equal(assert_samples(d.file), N_SAMPLES);
        assert_sql(d.file,
                   "SELECT t_ns, device, used_bytes, total_bytes, run_id, thread FROM device_usage WHERE t_ns < 1030",
                   "1000|cuda:0|0|85899345920||1\n1010|cuda:0|85899345920|85899345920||1\n"
                   "1020|cuda:1|15838|85899345920||1\n");
        assert_sql(d.file, "SELECT op, kind, requested_bytes, reserved_bytes, address FROM events WHERE event_id = 1",
                   "device_usage|Default|0|85899345920|\n");
        // Part of no sum: blocks of the CPU are all that lived.
        assert_sql(d.file, "SELECT device FROM totals GROUP BY device", "cpu\n");
        assert_sql(d.file, "SELECT peak_bytes FROM peak", "64\n");
        tmp_dir_remove(&d);
    }
}

/// Marks are found the same way, with samples between them.
static void marks_are_found_too(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    record(d.file, TIDE_RECORD_CHUNKS, 3000);
    tide_error err = TIDE_ERROR_INIT;
    tide_trace *t = open_checked(d.file);
    tide_trace_mark *marks = NULL;
    size_t n = 0;
    assert_tide_ok(tide_trace_marks(t, &marks, &n, &err), &err);
    assert_int_equal(n, 1);
    assert_string_equal(marks[0].name, "behind them");
    assert_int_equal(marks[0].t_ns, 1000 + 10 * 3000);
    tide_trace_marks_free(marks);
    tide_trace_close(t);
    tmp_dir_remove(&d);
}

// ---- what cannot be ----

static void assert_refused(tide_memory_event e) {
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    open_form(&f, d.file, TIDE_RECORD_ROWS);
    e.t_ns = f.now = 1000;
    f.obs.on_memory(f.obs.self, &e);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_recorder_close(f.rec, &err), TIDE_ERR_INVALID);
    assert_non_null(strstr(err.msg, "more bytes in use than it has"));
    tmp_dir_remove(&d);
}

static void what_no_device_can_be_is_refused(void **state) {
    (void)state;
    tide_memory_event e = sample_of(5);
    e.requested_bytes = e.reserved_bytes + 1;
    assert_refused(e);
    e = sample_of(5);
    e.block_id = 1;
    assert_refused(e);
    e = sample_of(5);
    e.kind = TIDE_KIND_WORKSPACE;
    assert_refused(e);
}

/// The same in a file: its events are those that a recorder writes, or it is damaged.
static void such_a_row_is_damage(void **state) {
    (void)state;
    static const char *const changes[] = {"requested_bytes = reserved_bytes + 1", "block_id = 7", "kind = 2",
                                          "device = NULL"};
    for (size_t k = 0; k < sizeof changes / sizeof changes[0]; k++) {
        tmp_dir d;
        tmp_dir_make(&d);
        record(d.file, TIDE_RECORD_ROWS, 50);
        char text[160];
        snprintf(text, sizeof text, "UPDATE event SET %s WHERE id = 11", changes[k]);
        sql_exec(d.file, text);
        tide_error err = TIDE_ERROR_INIT;
        tide_trace *t = NULL;
        tide_status st = tide_trace_open(d.file, &t, &err);
        if (st == TIDE_OK) st = tide_trace_check(t, &err);
        assert_tide_status(st, TIDE_ERR_BAD_INPUT);
        tide_trace_close(t);
        char out[360];
        uint64_t n_lost = 0;
        snprintf(out, sizeof out, "%s/new.db", d.path);
        assert_tide_ok(tide_trace_recover(d.file, out, &n_lost, &err), &err);
        assert_int_equal(n_lost, 1);
        assert_int_equal(assert_samples(out), 49);
        tmp_dir_remove(&d);
    }
}

// ---- cut files ----

/// What is left of the samples when the file ends after `left` bytes.
static size_t left_after(const tmp_dir *d, const char *data, size_t left) {
    FILE *f = fopen(d->file, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, left, f), left);
    assert_int_equal(fclose(f), 0);
    char out[360];
    uint64_t n_lost = 0;
    tide_error err = TIDE_ERROR_INIT;
    snprintf(out, sizeof out, "%s/new.db", d->path);
    assert_tide_ok(tide_trace_recover(d->file, out, &n_lost, &err), &err);
    const size_t n = assert_samples(out);
    remove(out);
    return n;
}

/// Cut shorter and shorter, until some samples are gone and some are there.
static void recovered_after_a_cut(void **state) {
    (void)state;
    static const tide_record_form forms[] = {TIDE_RECORD_ROWS, TIDE_RECORD_CHUNKS};
    for (size_t k = 0; k < 2; k++) {
        tmp_dir d;
        tmp_dir_make(&d);
        record(d.file, forms[k], N_SAMPLES);
        char *data = NULL;
        size_t len = 0, n = N_SAMPLES;
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(tide_read_file(d.file, 0, &data, &len, &err), &err);
        const size_t step = (k == 0 ? 12 : 1) * (size_t)8192;
        for (size_t left = (k == 0 ? len * 4 / 5 : len - 8192) / 8192 * 8192; n == N_SAMPLES && left > step;
             left -= step)
            n = left_after(&d, data, left);
        assert_in_range(n, 1, N_SAMPLES - 1);
        tide_host_free(data);
        tmp_dir_remove(&d);
    }
}

// ---- before there were samples ----

/// A trace that an older program wrote: no such operation, no such view.
static void older_traces_are_read(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    demo_record(d.file, 0);
    sql_exec(d.file, "DELETE FROM op WHERE id = 9; DROP VIEW device_usage; DROP VIEW IF EXISTS device_memory");
    assert_int_equal(assert_samples(d.file), 0);
    tide_error err = TIDE_ERROR_INIT;
    tide_trace *t = open_checked(d.file);
    tide_text out = {0};
    assert_tide_ok(tide_trace_sql(t, "SELECT count(*) FROM device_usage", "|", 0, &out, &err), &err);
    assert_string_equal(tide_text_str(&out), "count(*)\n0\n");
    tide_text_deinit(&out);
    tide_trace_close(t);
    tmp_dir_remove(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(rows_and_chunks_give_back_what_was_put_in),
        tide_unit_test(marks_are_found_too),
        tide_unit_test(what_no_device_can_be_is_refused),
        tide_unit_test(such_a_row_is_damage),
        tide_unit_test(recovered_after_a_cut),
        tide_unit_test(older_traces_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
