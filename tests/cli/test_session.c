// SPDX-License-Identifier: MIT
//
// A session sees what is not given back, by name; and `run` tells it, with its exit code. The program's own parts are
// linked in, all but main.c.
//
// The linker hands every tide_tensor_unref of the command line to us (CMakeLists.txt), so that one can be forgotten,
// and every tide_inference_plan_create, so that a kernel can be planted.
#include <getopt.h>
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/memory_report.h"
#include "cli/planning.h"
#include "cli/recording.h"
#include "core/memory/allocators/allocators.h"
#include "tests/tide_test.h"

// ---- the planted leak ----

/// Forget to give back the tensor of this name, once; NULL: forget nothing.
static const char *to_forget;
static tide_tensor *forgotten;

void __real_tide_tensor_unref(tide_tensor *t);
void __wrap_tide_tensor_unref(tide_tensor *t);
void __wrap_tide_tensor_unref(tide_tensor *t) {
    const tide_block *b = t != NULL ? tide_tensor_storage(t)->block : NULL;
    if (to_forget != NULL && b != NULL && b->tag != NULL && strcmp(b->tag, to_forget) == 0) {
        forgotten = t;
        to_forget = NULL;
        return;
    }
    __real_tide_tensor_unref(t);
}

// ---- the planted kernel ----

/// In the third plan that is made from now on, that of --verify, this step computes something else in planned runs.
static int to_spoil = -1, n_plans, n_spoilt_runs;
static const tide_op_def *real_def;
static tide_op_def spoilt_def;

static tide_status run_spoilt(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    TIDE_TRY(real_def->run(k, args, err));
    const int n = ++n_spoilt_runs; // naive, planned, planned, naive
    if (n == 2 || n == 3) ((float *)args->out[0].data)[7] += 1.0f;
    return TIDE_OK;
}

tide_status __real_tide_inference_plan_create(tide_program *program, const tide_inference_plan_options *opt,
                                              tide_inference_plan **out, tide_error *err);
tide_status __wrap_tide_inference_plan_create(tide_program *program, const tide_inference_plan_options *opt,
                                              tide_inference_plan **out, tide_error *err);
tide_status __wrap_tide_inference_plan_create(tide_program *program, const tide_inference_plan_options *opt,
                                              tide_inference_plan **out, tide_error *err) {
    if (to_spoil >= 0 && ++n_plans == 3) {
        tide_kernel *k = &program->steps[to_spoil].kernel;
        real_def = k->def;
        spoilt_def = *real_def;
        spoilt_def.run = run_spoilt;
        k->def = &spoilt_def;
        n_spoilt_runs = 0;
    }
    return __real_tide_inference_plan_create(program, opt, out, err);
}

// ---- shorthands ----

static cli_session *open_session(const char *allocator, uint64_t limit_bytes) {
    tide_error err = TIDE_ERROR_INIT;
    cli_session *s = NULL;
    const cli_session_options opt = {.allocator = allocator, .limit_bytes = limit_bytes};
    assert_tide_ok(cli_session_open(&opt, &s, &err), &err);
    return s;
}

static tide_tensor *make_tensor(cli_session *s, int64_t n, tide_memory_kind kind, const char *tag) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_tensor_spec spec = {.dtype = TIDE_U8,
                                   .shape = tide_shape_make(1, &n),
                                   .device = TIDE_CPU,
                                   .kind = kind,
                                   .registry = cli_session_registry(s),
                                   .tag = tag};
    tide_tensor *t = NULL;
    assert_tide_ok(tide_tensor_create(&spec, &t, &err), &err);
    return t;
}

/// What cli_leaks_print says, into `buf`.
static const char *text_of(const cli_leaks *leaks, char *buf, size_t buf_bytes) {
    memset(buf, 0, buf_bytes);
    FILE *f = fmemopen(buf, buf_bytes - 1, "w");
    assert_non_null(f);
    cli_leaks_print(leaks, f);
    fclose(f);
    return buf;
}

static const char *str_of(const json_t *row, const char *key) { return json_string_value(json_object_get(row, key)); }
static json_int_t int_of(const json_t *row, const char *key) { return json_integer_value(json_object_get(row, key)); }

static json_t *parse(tide_json_out *j) {
    tide_json_close(j, '}');
    json_t *doc = json_loads(tide_text_str(j->out), JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(doc);
    tide_text_deinit(j->out);
    return doc;
}

static json_t *leaks_document(const cli_leaks *leaks) {
    tide_text text = {0};
    tide_json_out j = {.out = &text};
    tide_json_open(&j, NULL, '{');
    cli_json_leaks(&j, "leaks", leaks);
    return parse(&j);
}

static json_t *recording_document(const cli_recording *recording) {
    tide_text text = {0};
    tide_json_out j = {.out = &text};
    tide_json_open(&j, NULL, '{');
    cli_json_recording(&j, recording);
    return parse(&j);
}

// ---- leaks ----

static void nothing_left_is_no_leak(void **state) {
    (void)state;
    cli_session *s = open_session("cpu", 0);
    tide_tensor *t = make_tensor(s, 1000, TIDE_KIND_WORKSPACE, "t");
    tide_tensor_unref(t);
    cli_session_end(s);
    cli_session_end(s);
    cli_leaks leaks;
    char buf[512];
    cli_session_get_leaks(s, &leaks);
    assert_true(leaks.n_at_end == 0 && leaks.n_late == 0 && leaks.n_blocks == 0);
    assert_string_equal(text_of(&leaks, buf, sizeof buf), "");
    json_t *doc = leaks_document(&leaks), *list = json_object_get(doc, "leaks");
    assert_int_equal(json_array_size(list), 0);
    json_decref(doc);
    cli_session_close(s);
    cli_session_close(NULL);
}

static void every_live_block_is_listed(void **state) {
    (void)state;
    cli_session *s = open_session("cpu", 0);
    const uint64_t before_ns = tide_now_ns();
    tide_scope conv = {.name = "conv1", .kind = TIDE_SCOPE_OPERATOR, .index = 0};
    tide_scope_enter(&conv, cli_session_observer(s));
    tide_tensor *small = make_tensor(s, 300, TIDE_KIND_KV_CACHE, "keys"),
                *large = make_tensor(s, 5000, TIDE_KIND_WORKSPACE, "conv1.out"),
                *good = make_tensor(s, 9000, TIDE_KIND_WORKSPACE, "given back");
    tide_scope_leave(&conv, cli_session_observer(s));
    tide_tensor_unref(good);
    cli_session_end(s);
    const uint64_t after_ns = tide_now_ns();

    cli_leaks leaks;
    cli_session_get_leaks(s, &leaks);
    assert_int_equal(leaks.n_at_end, 2);
    assert_int_equal(leaks.n_late, 0);
    assert_true(leaks.n_blocks == 2);
    json_t *doc = leaks_document(&leaks), *list = json_object_get(doc, "leaks");
    assert_int_equal(json_array_size(list), 2);
    const json_t *row = json_array_get(list, 0); // the largest first
    assert_string_equal(str_of(row, "tag"), "conv1.out");
    assert_string_equal(str_of(row, "kind"), "Workspace");
    assert_string_equal(str_of(row, "device"), "cpu");
    assert_string_equal(str_of(row, "operator"), "conv1");
    assert_string_equal(str_of(row, "found"), "session");
    assert_int_equal(int_of(row, "bytes"), 5120);
    assert_int_equal(int_of(row, "block_id"), tide_tensor_storage(large)->block->id);
    assert_true(int_of(row, "age_ns") > 0 && (uint64_t)int_of(row, "age_ns") <= after_ns - before_ns);
    assert_string_equal(str_of(json_array_get(list, 1), "tag"), "keys");
    json_decref(doc);
    char buf[1024];
    text_of(&leaks, buf, sizeof buf);
    assert_text_has(buf, "leak: 2 blocks, 5632 bytes, alive when the session ended\n");
    assert_text_has(buf, "conv1.out");
    assert_text_has(buf, "KVCache");
    assert_null(strstr(buf, "given back"));

    // Between end and close they may still go.
    tide_tensor_unref(small);
    tide_tensor_unref(large);
    cli_session_close(s);
}

/// Alive when its run was over, but given back before the session ended: told too. A block that stays to the end is in
/// one list only, however many runs it outlived.
static void blocks_that_outlive_their_run(void **state) {
    (void)state;
    cli_session *s = open_session("cpu_caching", 0);
    tide_tensor *weight = make_tensor(s, 100, TIDE_KIND_PERSISTENT, "weight");
    const cli_session_spec spec = {.runs = 1, .contexts = 1};
    cli_session_result r = {0};
    tide_tensor *late = NULL, *ever = NULL;
    for (int run = 0; run < 2; run++) {
        cli_session_mark mark;
        cli_session_begin(s, &spec, &mark);
        tide_tensor *good = make_tensor(s, 50, TIDE_KIND_WORKSPACE, "good");
        if (run == 0) {
            late = make_tensor(s, 2000, TIDE_KIND_WORKSPACE, "late");
            ever = make_tensor(s, 3000, TIDE_KIND_DEFAULT, "ever");
        }
        tide_tensor_unref(good);
        cli_session_finish(s, &mark, &r);
        if (run == 0) assert_true(r.kinds[TIDE_KIND_DEFAULT].peak_bytes == 3072);
    }
    tide_tensor_unref(late);
    tide_tensor_unref(weight);
    cli_session_end(s);
    cli_leaks leaks;
    cli_session_get_leaks(s, &leaks);
    assert_int_equal(leaks.n_at_end, 1);
    assert_string_equal(leaks.at_end[0].tag, "ever");
    assert_int_equal(leaks.n_late, 1);
    assert_string_equal(leaks.late[0].tag, "late");
    assert_true(leaks.n_blocks == 2);
    json_t *doc = leaks_document(&leaks), *list = json_object_get(doc, "leaks");
    assert_int_equal(json_array_size(list), 2);
    assert_string_equal(str_of(json_array_get(list, 1), "found"), "run");
    json_decref(doc);
    char buf[1024];
    assert_text_has(text_of(&leaks, buf, sizeof buf), "leak: 1 block, 2048 bytes, alive after the run's contexts");
    tide_tensor_unref(ever);
    cli_session_close(s);
}

/// Without host memory for names and lists the blocks are still counted.
static void without_memory_leaks_are_counted(void **state) {
    (void)state;
    cli_session *s = open_session("cpu", 0);
    tide_tensor *t[3];
    for (int i = 0; i < 3; i++) t[i] = make_tensor(s, 10, TIDE_KIND_DEFAULT, "t");
    tide_host_fail_after(0);
    cli_session_end(s);
    tide_host_fail_after(-1);
    cli_leaks leaks;
    char buf[512];
    cli_session_get_leaks(s, &leaks);
    assert_int_equal(leaks.n_at_end, 0);
    assert_true(leaks.n_blocks == 3);
    assert_string_equal(text_of(&leaks, buf, sizeof buf), "leak: 3 more, not listed for want of memory\n");
    for (int i = 0; i < 3; i++) tide_tensor_unref(t[i]);
    cli_session_close(s);
}

// ---- real runs ----

static void plan_sample(cli_session *s, const char *below, cli_plans *plans) {
    tide_error err = TIDE_ERROR_INIT;
    char path[1024];
    cli_input in;
    const cli_planning planning = {.weights_registry = cli_session_registry(s)};
    assert_tide_ok(cli_input_open(tide_source_path(below, path, sizeof path), &in, &err), &err);
    assert_tide_ok(cli_plans_make(&in, &planning, plans, &err), &err);
    cli_input_close(&in);
}

static tide_status run_sample(cli_session *s, const cli_plans *plans, tide_run_mode mode, cli_session_result *r,
                              tide_error *err) {
    const cli_session_spec spec = {.program = plans->program,
                                   .plan = plans->plans[0],
                                   .mode = mode,
                                   .device = TIDE_CPU,
                                   .runs = 2,
                                   .contexts = 2,
                                   .source = "sample"};
    return cli_session_run(s, &spec, r, err);
}

/// Whatever serves the memory, both modes give all of it back; a model that is forgotten is seen, weight by weight.
static void runs_give_back_what_they_take(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    static const char *const allocators[] = {"cpu", "cpu_caching", "stream_caching", "pinned"};
    for (size_t i = 0; i < 4; i++) {
        cli_session *s = open_session(allocators[i], 0);
        cli_plans plans = {0};
        cli_session_result r;
        plan_sample(s, "sample_graphs/lenet5.json", &plans);
        for (int mode = TIDE_RUN_NAIVE; mode <= TIDE_RUN_PLANNED; mode++) {
            assert_tide_ok(run_sample(s, &plans, (tide_run_mode)mode, &r, &err), &err);
            assert_true(r.kinds[TIDE_KIND_WORKSPACE].n_allocs > 0 && r.kinds[TIDE_KIND_WORKSPACE].n_live == 0);
            cli_session_result_deinit(&r);
        }
        cli_leaks leaks;
        if (i == 0) {
            cli_session_end(s); // the program still holds its weights
            cli_session_get_leaks(s, &leaks);
            assert_int_equal(leaks.n_at_end, 10);
            assert_string_equal(leaks.at_end[0].tag, "fc1.w");
            for (size_t k = 0; k < 10; k++) assert_int_equal(leaks.at_end[k].kind, TIDE_KIND_PERSISTENT);
            cli_plans_deinit(&plans);
        } else {
            cli_plans_deinit(&plans);
            cli_session_end(s);
            cli_session_get_leaks(s, &leaks);
            assert_true(leaks.n_blocks == 0 && leaks.n_at_end == 0 && leaks.n_late == 0);
        }
        cli_session_close(s);
    }
}

/// Outputs of the sample, planned, one behind the other; the contexts' memory lies in `file`, or is allocated.
static char *output_bytes(cli_session *s, const cli_plans *plans, tide_fill fill, const char *file, size_t *n) {
    tide_error err = TIDE_ERROR_INIT;
    cli_session_result r;
    const cli_session_spec spec = {.program = plans->program,
                                   .plan = plans->plans[0],
                                   .mode = TIDE_RUN_PLANNED,
                                   .fill = fill,
                                   .device = TIDE_CPU,
                                   .runs = 3,
                                   .contexts = 2,
                                   .seed = 5,
                                   .source = "sample",
                                   .buffer_file = file,
                                   .keep_outputs = true};
    assert_tide_ok(cli_session_run(s, &spec, &r, &err), &err);
    assert_int_equal(r.buffer_file.n_contexts, file != NULL ? 2 : 0);
    assert_int_equal(r.warm_allocations, 0);
    *n = 0;
    for (size_t i = 0; i < r.n_outputs; i++) *n += tide_tensor_size_bytes(r.outputs[i]);
    char *all = tide_host_alloc(*n), *at = all;
    assert_non_null(all);
    for (size_t i = 0; i < r.n_outputs; i++) {
        memcpy(at, tide_tensor_data(r.outputs[i]), tide_tensor_size_bytes(r.outputs[i]));
        at += tide_tensor_size_bytes(r.outputs[i]);
    }
    cli_session_result_deinit(&r);
    return all;
}

/// Byte for byte what allocated contexts compute, under every fill; the file is there afterwards and serves again.
static void contexts_in_a_file(void **state) {
    (void)state;
    static const char *const samples[] = {"lenet5", "densenet_block", "early_output", "split_two_outputs"};
    char folder[] = "/tmp/tidemark-session-XXXXXX", file[64], below[64];
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/buffer", folder);
    for (size_t i = 0; i < 4; i++) {
        cli_session *s = open_session("cpu", 0);
        cli_plans plans = {0};
        size_t n_want, n_got;
        snprintf(below, sizeof below, "sample_graphs/%s.json", samples[i]);
        plan_sample(s, below, &plans);
        char *want = output_bytes(s, &plans, TIDE_FILL_ZERO, NULL, &n_want);
        for (int fill = TIDE_FILL_ZERO; fill <= TIDE_FILL_POISON; fill++) {
            char *got = output_bytes(s, &plans, (tide_fill)fill, file, &n_got);
            assert_int_equal(n_got, n_want);
            assert_memory_equal(got, want, n_want);
            tide_host_free(got);
        }
        tide_host_free(want);
        assert_int_equal(unlink(file), 0);
        cli_plans_deinit(&plans);
        cli_session_end(s);
        cli_leaks leaks;
        cli_session_get_leaks(s, &leaks);
        assert_int_equal(leaks.n_blocks, 0);
        cli_session_close(s);
    }
    assert_int_equal(rmdir(folder), 0);
}

/// One budget for all kinds: a byte under what a run holds is too little, and what there was is told.
static void one_budget_for_all_kinds(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    uint64_t need = 0;
    for (int with = 0; with < 3; with++) {
        cli_session *s = open_session("cpu", with == 0 ? 0 : with == 1 ? need : need - 1);
        cli_plans plans = {0};
        cli_session_result r;
        tide_oom_report report;
        plan_sample(s, "sample_graphs/lenet5.json", &plans);
        const tide_status st = run_sample(s, &plans, TIDE_RUN_PLANNED, &r, &err);
        if (with < 2) {
            assert_tide_ok(st, &err);
            assert_false(cli_session_oom(s, &report));
            if (with == 0) need = r.total_peak_bytes; // sizes of this model are whole units: nothing is rounded up
            assert_true(r.total_peak_bytes == need);
        } else {
            assert_tide_status(st, TIDE_ERR_NOMEM);
            assert_true(cli_session_oom(s, &report));
            assert_string_equal(report.allocator, "limit");
            assert_true(report.n_live >= 10 && report.n_blocks == 10);
            assert_true(report.live_bytes + report.asked_bytes > need - 1);
            assert_true(report.would_fit_bytes < report.asked_bytes);
        }
        cli_session_result_deinit(&r);
        cli_plans_deinit(&plans);
        cli_session_close(s);
    }
}

/// What goes wrong with the trace in the middle of a session is kept for its end; runs and leaks are as without it.
static void a_run_outlives_its_recording(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    char folder[] = "/tmp/tide-session-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/t.db", folder);
    cli_recording_options opt = {.path = path, .recorder = {.drain = TIDE_RECORD_THREAD}};
    cli_recording recording;
    assert_tide_ok(cli_recording_open(&opt, &recording, &err), &err);
    const cli_session_options with = {.allocator = "cpu", .recorder = recording.recorder};
    cli_session *s = NULL;
    assert_tide_ok(cli_session_open(&with, &s, &err), &err);
    cli_plans plans = {0};
    cli_session_result r;
    plan_sample(s, "sample_graphs/lenet5.json", &plans);
    int64_t run_id;
    const tide_run_info in_the_way = {.model = "another", .mode = "naive", .device = "cpu"};
    assert_tide_ok(tide_recorder_begin_run(recording.recorder, &in_the_way, NULL, &run_id, &err), &err);
    assert_int_equal(cli_session_record_error(s)->status, TIDE_OK);
    for (int i = 0; i < 2; i++) {
        assert_tide_ok(run_sample(s, &plans, TIDE_RUN_NAIVE, &r, &err), &err);
        assert_true(r.kinds[TIDE_KIND_WORKSPACE].peak_bytes > 0);
        cli_session_result_deinit(&r);
        assert_int_equal(cli_session_record_error(s)->status, TIDE_ERR_INVALID); // a run is open
    }
    cli_plans_deinit(&plans);
    cli_session_end(s);
    cli_recording_end(&recording, TIDE_OK, cli_session_record_error(s));
    assert_null(recording.recorder);
    assert_true(recording.stats.n_events > 100);
    json_t *all = recording_document(&recording), *doc = json_object_get(all, "recorder");
    assert_string_equal(str_of(doc, "state"), "cut short");
    assert_text_has(str_of(doc, "reason"), "run");
    json_decref(all);
    assert_int_equal(cli_recording_report(&recording, CLI_EXIT_CHECK_FAILED), CLI_EXIT_OUTPUT);
    cli_session_close(s);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0); // nothing else was left
}

/// Nothing is said of a recording that there was not.
static void no_recording_no_words(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    const cli_recording_options opt = {0};
    cli_recording recording;
    assert_tide_ok(cli_recording_open(&opt, &recording, &err), &err);
    assert_null(recording.recorder);
    cli_recording_end(&recording, TIDE_ERR_IO, NULL);
    for (int code = CLI_EXIT_OK; code <= CLI_EXIT_OUTPUT; code++)
        assert_int_equal(cli_recording_report(&recording, code), code);
    json_t *all = recording_document(&recording);
    assert_true(json_is_null(json_object_get(all, "trace")) && json_is_null(json_object_get(all, "recorder")));
    json_decref(all);
}

// ---- the command ----

/// `tidemark run …` in this process; its standard output into `out`.
static int run_any(const cli_command *command, const char *const *args, int n, char *out, size_t out_bytes) {
    char copies[8][1024], *argv[9] = {NULL};
    for (int i = 0; i < n; i++) {
        snprintf(copies[i], sizeof copies[i], "%s", args[i]);
        argv[i] = copies[i];
    }
    fflush(stdout);
    FILE *file = tmpfile();
    assert_non_null(file);
    const int terminal = dup(STDOUT_FILENO);
    dup2(fileno(file), STDOUT_FILENO);
    optind = 0;
    const int code = command->run(n, argv);
    fflush(stdout);
    dup2(terminal, STDOUT_FILENO);
    close(terminal);
    rewind(file);
    out[fread(out, 1, out_bytes - 1, file)] = '\0';
    fclose(file);
    return code;
}

static int run_command(const char *const *args, int n, char *out, size_t out_bytes) {
    return run_any(&cli_command_run, args, n, out, out_bytes);
}

/// A leak planted into a real run: one of its inputs is never given back.
static void a_planted_leak_is_reported_and_fails(void **state) {
    (void)state;
    char path[1024];
    static char out[65536];
    tide_source_path("sample_graphs/lenet5.json", path, sizeof path);
    const char *const checked[] = {"run", "--leak-check", "-n", "2", path};
    const char *const as_json[] = {"run", "--leak-check", "-n", "2", path, "--json"};
    const char *const unchecked[] = {"run", "-n", "2", path};

    assert_int_equal(run_command(checked, 5, out, sizeof out), CLI_EXIT_OK);
    assert_text_has(out, "leaks: none\n");

    // What is forgotten here stays forgotten: its session is gone.
    static tide_tensor *kept[3];
    to_forget = "image";
    assert_int_equal(run_command(checked, 5, out, sizeof out), CLI_EXIT_CHECK_FAILED);
    kept[0] = forgotten;
    assert_non_null(kept[0]);
    assert_text_has(out, "leak: 1 block, 3328 bytes, alive when the session ended\n");
    assert_text_has(out, "  image  ");
    assert_null(strstr(out, "leaks: none"));

    to_forget = "image";
    assert_int_equal(run_command(as_json, 6, out, sizeof out), CLI_EXIT_CHECK_FAILED);
    kept[1] = forgotten;
    json_t *doc = json_loads(out, 0, NULL);
    assert_non_null(doc);
    const json_t *leaks = json_object_get(doc, "leaks");
    assert_int_equal(json_array_size(leaks), 1);
    assert_string_equal(str_of(json_array_get(leaks, 0), "tag"), "image");
    assert_string_equal(str_of(json_array_get(leaks, 0), "kind"), "Default");
    assert_int_equal(int_of(json_array_get(leaks, 0), "bytes"), 3328);
    json_decref(doc);

    to_forget = "image";
    assert_int_equal(run_command(unchecked, 4, out, sizeof out), CLI_EXIT_OK); // leaks do not fail it
    kept[2] = forgotten;
    assert_text_has(out, "leak: 1 block");
    assert_true(kept[0] != kept[1] && kept[1] != kept[2]);
}

static void compare_lenet(bool as_json, int spoilt, int code, char *out, size_t out_bytes) {
    char lenet[512];
    const char *const argv[] = {"compare", "--verify", "-n", "1", lenet, "--json"};
    tide_source_path("sample_graphs/lenet5.json", lenet, sizeof lenet);
    to_spoil = spoilt;
    n_plans = 0;
    assert_int_equal(run_any(&cli_command_compare, argv, as_json ? 6 : 5, out, out_bytes), code);
    to_spoil = -1;
}

/// compare --verify names the first tensor that differs, and its operator.
static void the_first_tensor_that_differs(void **state) {
    (void)state;
    static char out[16384];
    compare_lenet(false, -1, CLI_EXIT_OK, out, sizeof out);
    assert_text_has(out, "tensors naive = planned: bit for bit, 9 made by 9 steps");
    compare_lenet(false, 3, CLI_EXIT_CHECK_FAILED, out, sizeof out);
    assert_text_has(out, "outputs naive = planned: bit for bit"); // of the runs before
    assert_text_has(out, "tensors naive = planned: NO, after 3 that are equal\n"
                         "  first difference: step 3, node 'maxpool2' (MaxPool)\n"
                         "  makes 'maxpool2.out': 1 element differs, by 1\n");
    compare_lenet(true, 3, CLI_EXIT_CHECK_FAILED, out, sizeof out);
    json_t *doc = json_loads(out, 0, NULL);
    assert_non_null(doc);
    const json_t *tensors = json_object_get(doc, "tensors"), *first = json_object_get(tensors, "first");
    assert_int_equal(int_of(tensors, "compared"), 3);
    assert_true(json_is_false(json_object_get(tensors, "bitwise_equal")));
    assert_int_equal(int_of(first, "step"), 3);
    assert_string_equal(str_of(first, "node"), "maxpool2");
    assert_string_equal(str_of(first, "op"), "MaxPool");
    assert_string_equal(str_of(first, "tensor"), "maxpool2.out");
    assert_int_equal(int_of(first, "n_different"), 1);
    assert_true(json_is_null(json_object_get(first, "overwritten")));
    json_decref(doc);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(nothing_left_is_no_leak),       tide_unit_test(every_live_block_is_listed),
        tide_unit_test(blocks_that_outlive_their_run), tide_unit_test(without_memory_leaks_are_counted),
        tide_unit_test(runs_give_back_what_they_take), tide_unit_test(contexts_in_a_file),
        tide_unit_test(one_budget_for_all_kinds),      tide_unit_test(a_run_outlives_its_recording),
        tide_unit_test(no_recording_no_words),         cmocka_unit_test(a_planted_leak_is_reported_and_fails),
        tide_unit_test(the_first_tensor_that_differs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
