// SPDX-License-Identifier: MIT
//
// A target as a case: its figures, words and tensors; that what is predicted is measured; leaks and allocations
// in steady state, which are planted, held against who made them; and what cannot be measured told as that. The
// program's own parts are linked in, all but main.c.
//
// The linker hands every tide_tensor_unref, tide_context_run and cli_session_open of the command line to us
// (CMakeLists.txt).
#include "cli/measure.h"

#include <unistd.h>

#include "cli/session.h"
#include "planner/passes.h"
#include "tests/tide_test.h"

// ---- planted faults ----

static const char *to_forget; // the tensor of this name is not given back, once; NULL: all are
static tide_tensor *forgotten;
static cli_session *session; // the last one that was opened
static int runs_left;        // turns until one takes memory; 0: none does
static int turns_that_take;

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

tide_status __real_cli_session_open(const cli_session_options *opt, cli_session **out, tide_error *err);
tide_status __wrap_cli_session_open(const cli_session_options *opt, cli_session **out, tide_error *err);
tide_status __wrap_cli_session_open(const cli_session_options *opt, cli_session **out, tide_error *err) {
    const tide_status st = __real_cli_session_open(opt, out, err);
    session = *out;
    return st;
}

static void take_and_give_back(const char *tag, int64_t n) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_tensor_spec spec = {.dtype = TIDE_U8,
                                   .shape = tide_shape_make(1, &n),
                                   .device = TIDE_CPU,
                                   .kind = TIDE_KIND_WORKSPACE,
                                   .registry = cli_session_registry(session),
                                   .tag = tag};
    tide_tensor *t = NULL;
    assert_tide_ok(tide_tensor_create(&spec, &t, &err), &err);
    tide_tensor_unref(t);
}

tide_status __real_tide_context_run(tide_context *c, tide_error *err);
tide_status __wrap_tide_context_run(tide_context *c, tide_error *err);
tide_status __wrap_tide_context_run(tide_context *c, tide_error *err) {
    if (runs_left > 0 && --runs_left < turns_that_take) {
        tide_scope scope = {.name = "softmax1", .kind = TIDE_SCOPE_OPERATOR, .index = 3};
        tide_scope_enter(&scope, NULL);
        take_and_give_back("planted", 100);
        tide_scope_leave(&scope, NULL);
    }
    return __real_tide_context_run(c, err);
}

// ---- shorthands ----

static tide_gate_case measure(const char *sample, const tide_gate_plan_settings *s) {
    char path[4096];
    tide_error err = TIDE_ERROR_INIT;
    tide_gate_case c;
    assert_tide_ok(cli_measure(tide_source_path(sample, path, sizeof path), "the key", s, &c, &err), &err);
    assert_string_equal(c.key, "the key");
    return c;
}

static const tide_gate_tensor *tensor(const tide_gate_case *c, const char *name) {
    for (size_t i = 0; i < c->n_tensors; i++) {
        if (strcmp(c->tensors[i].name, name) == 0) return &c->tensors[i];
    }
    fail_msg("there is no tensor '%s'", name);
    return NULL;
}

static void must_add_up(const tide_gate_case *c) {
    uint64_t sum = c->holes_bytes;
    for (size_t i = 0; i < c->n_tensors; i++) sum += c->tensors[i].at_peak_bytes;
    assert_int_equal(sum, c->held_bytes);
    for (size_t i = 1; i < c->n_tensors; i++) assert_true(strcmp(c->tensors[i - 1].name, c->tensors[i].name) <= 0);
}

static bool known(const tide_gate_case *c, tide_gate_metric m) { return c->metrics[m].known; }
static uint64_t figure(const tide_gate_case *c, tide_gate_metric m) {
    assert_true(known(c, m));
    return c->metrics[m].u;
}

static void must_say(const tide_gate_case *c, const char *key, const char *value) {
    assert_non_null(tide_gate_case_setting(c, key));
    assert_string_equal(tide_gate_case_setting(c, key), value);
}

// ---- figures and words ----

static void a_model_that_is_planned(void **state) {
    (void)state;
    tide_gate_case c = measure("sample_graphs/lenet5.json", &(tide_gate_plan_settings){.strategy = "greedy_by_size"});
    assert_null(c.error);
    assert_string_equal(c.model, "lenet5");
    assert_string_equal(c.signature, "image float32 -> probabilities float32");
    assert_string_equal(c.inputs, "image 1x1x28x28");
    must_say(&c, "strategy", "greedy_by_size");
    must_say(&c, "align", "256");
    must_say(&c, "fuse", "on");
    must_say(&c, "passes", "views slices in-place parts order");
    must_say(&c, "seed", "0");
    assert_null(tide_gate_case_setting(&c, "runs"));
    assert_string_equal(c.steps[0].name, "conv1");
    assert_string_equal(c.steps[0].op, "Conv");
    assert_int_equal(figure(&c, TIDE_GATE_OPERATORS), c.n_steps);
    assert_true(known(&c, TIDE_GATE_PLANNED) && !known(&c, TIDE_GATE_PEAK) && !known(&c, TIDE_GATE_LEAKED));
    must_add_up(&c);
    tide_gate_case_deinit(&c);
    c = measure("sample_graphs/lenet5.json", &(tide_gate_plan_settings){.no_fuse = true,
                                                                        .no_passes = 1U << TIDE_PASS_IN_PLACE,
                                                                        .recompute_share = 0.1,
                                                                        .align_bytes = 512,
                                                                        .seed = 7});
    must_say(&c, "fuse", "off");
    must_say(&c, "passes", "views slices parts order recompute");
    must_say(&c, "recompute", "10 %");
    must_say(&c, "align", "512");
    must_say(&c, "seed", "7");
    tide_gate_case_deinit(&c);
}

/// for each kind, whatever the alignment, with one context and with two.
static void what_is_predicted_is_measured(void **state) {
    (void)state;
    static const uint64_t aligns[] = {64, 256, 4096};
    for (size_t i = 0; i < 6; i++) {
        const tide_gate_plan_settings s = {.run = true, .align_bytes = aligns[i / 2], .contexts = 1 + i % 2, .runs = 2};
        tide_gate_case c = measure("sample_graphs/decoder_step.json", &s);
        assert_null(c.error);
        for (int k = 0; k < TIDE_N_KINDS; k++) {
            assert_true(c.kinds[TIDE_GATE_PREDICTED][k].known && c.kinds[TIDE_GATE_KIND_PEAK][k].known);
            assert_int_equal(c.kinds[TIDE_GATE_PREDICTED][k].u, c.kinds[TIDE_GATE_KIND_PEAK][k].u);
            assert_int_equal(c.kinds[TIDE_GATE_UNEXPLAINED][k].u, 0);
        }
        assert_true(c.kinds[TIDE_GATE_KIND_PEAK][TIDE_KIND_WORKSPACE].u > 0);
        assert_int_equal(figure(&c, TIDE_GATE_LEAKED), 0);
        assert_int_equal(figure(&c, TIDE_GATE_LEAKED_BLOCKS), 0);
        assert_int_equal(figure(&c, TIDE_GATE_WARM), 0);
        assert_true(figure(&c, TIDE_GATE_RESERVED) >= figure(&c, TIDE_GATE_PEAK));
        must_say(&c, "contexts", i % 2 == 0 ? "1" : "2");
        must_say(&c, "runs", "2");
        must_say(&c, "allocator", "cpu");
        must_add_up(&c);
        tide_gate_case_deinit(&c);
    }
    tide_gate_case c = measure("sample_graphs/lenet5.json", &(tide_gate_plan_settings){.run = true, .runs = 1});
    assert_false(known(&c, TIDE_GATE_WARM)); // a single run has no steady state
    tide_gate_case_deinit(&c);
}

static void extents_by_name(void **state) {
    (void)state;
    char path[4096];
    char **names = NULL;
    size_t n = 0;
    tide_error err = TIDE_ERROR_INIT;
    const char *sample = tide_source_path("sample_graphs/dynamic_batch.json", path, sizeof path);
    assert_tide_ok(cli_measure_extents(sample, &names, &n, &err), &err);
    assert_int_equal(n, 1);
    assert_string_equal(names[0], "batch");
    tide_host_free(names[0]);
    tide_host_free(names);
    static const char *const eight[] = {"batch=8"}, *const shape[] = {"x=8x64"},
                             *const twice[] = {"batch=8", "batch=8"};
    const struct {
        const char *const *extents;
        size_t n;
        const char *const *shapes;
        const char *says; // NULL: it is planned
    } rows[] = {{eight, 1, NULL, NULL},
                {NULL, 0, shape, NULL},
                {eight, 1, shape, NULL},
                {twice, 2, NULL, "twice"},
                {(const char *const[]){"batsh=8"}, 1, NULL, "did you mean 'batch'"},
                {(const char *const[]){"batch=9"}, 1, shape, "contradicts"},
                {(const char *const[]){"batch"}, 1, NULL, "not of the form"},
                {(const char *const[]){"batch=-1"}, 1, NULL, "not of the form"},
                {NULL, 0, NULL, "batch"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const tide_gate_plan_settings s = {.extents = rows[i].extents,
                                           .n_extents = rows[i].n,
                                           .shapes = rows[i].shapes,
                                           .n_shapes = rows[i].shapes != NULL ? 1 : 0};
        tide_gate_case c = measure("sample_graphs/dynamic_batch.json", &s);
        if (rows[i].says == NULL) {
            assert_null(c.error);
            assert_string_equal(c.inputs, "x 8x64");
        } else {
            assert_non_null(c.error);
            assert_text_has(c.error, rows[i].says);
            assert_false(c.skipped);
        }
        tide_gate_case_deinit(&c);
    }
}

static void what_cannot_be_measured(void **state) {
    (void)state;
    tide_gate_case c = measure("sample_graphs/none.json", &(tide_gate_plan_settings){0});
    assert_text_has(c.error, "none.json");
    assert_true(c.skipped);
    assert_int_equal(c.n_tensors, 0);
    tide_gate_case_deinit(&c);
    c = measure("sample_graphs/README.md", &(tide_gate_plan_settings){0});
    assert_non_null(c.error);
    assert_null(strchr(c.error, '\n'));
    assert_false(c.skipped);
    tide_gate_case_deinit(&c);
    c = measure("sample_graphs/lenet5.json", &(tide_gate_plan_settings){.strategy = "none"});
    assert_text_has(c.error, "no strategy 'none'");
    tide_gate_case_deinit(&c);
    c = measure("sample_graphs/lenet5.json", &(tide_gate_plan_settings){.run = true, .limit_bytes = 1000});
    assert_text_has(c.error, "budget of 1000 B");
    for (int m = 0; m < TIDE_GATE_N_METRICS; m++) assert_false(c.metrics[m].known);
    tide_gate_case_deinit(&c);
}

// ---- faults ----

/// An input that is not given back is reported as leaked; no other tensor is.
static void a_leak_has_a_name(void **state) {
    (void)state;
    static tide_tensor *kept; // what is forgotten stays so: its session is gone
    to_forget = "image";
    tide_gate_case c = measure("sample_graphs/lenet5.json", &(tide_gate_plan_settings){.run = true});
    kept = forgotten;
    assert_non_null(kept);
    assert_int_equal(figure(&c, TIDE_GATE_LEAKED), 3328);
    assert_int_equal(figure(&c, TIDE_GATE_LEAKED_BLOCKS), 1);
    for (size_t i = 0; i < c.n_tensors; i++)
        assert_int_equal(c.tensors[i].leaked_bytes, strcmp(c.tensors[i].name, "image") == 0 ? 3328 : 0);
    assert_int_equal(tensor(&c, "image")->leaked_bytes, 3328);
    must_add_up(&c);
    tide_gate_case_deinit(&c);
}

/// The first turn may take what it likes; the two behind the mark take something each.
static void steady_state_has_a_name(void **state) {
    (void)state;
    runs_left = 3;
    turns_that_take = 3;
    tide_gate_case c = measure("sample_graphs/lenet5.json", &(tide_gate_plan_settings){.run = true, .runs = 3});
    assert_int_equal(runs_left, 0);
    assert_int_equal(figure(&c, TIDE_GATE_WARM), 2);
    const tide_gate_tensor *t = tensor(&c, "planted");
    assert_int_equal(t->warm_allocations, 2);
    assert_string_equal(t->owner, "softmax1");
    assert_int_equal(t->at_peak_bytes, 0);
    must_add_up(&c);
    tide_gate_case_deinit(&c);
    runs_left = 3;
    turns_that_take = 0;
    c = measure("sample_graphs/lenet5.json", &(tide_gate_plan_settings){.run = true, .runs = 3});
    assert_int_equal(figure(&c, TIDE_GATE_WARM), 0);
    tide_gate_case_deinit(&c);
}

/// Every allocation of our own fails once: lack of memory is the only status, and nothing is left behind.
static void without_memory(void **state) {
    (void)state;
    char path[4096];
    tide_source_path("sample_graphs/diamond.json", path, sizeof path);
    const char *const extents[] = {"n=1"};
    for (int pass = 0; pass < 2; pass++) {
        const tide_gate_plan_settings s = {.strategy = "greedy_by_size", .run = pass == 1, .extents = extents};
        bool done = false;
        for (int64_t n = 0; !done; n += 1 + n / 16) {
            tide_error err = TIDE_ERROR_INIT;
            tide_gate_case c;
            tide_host_fail_after(n);
            const tide_status st = cli_measure(path, "k", &s, &c, &err);
            tide_host_fail_after(-1);
            if (st == TIDE_OK) {
                done = c.error == NULL && n > 3000;
                tide_gate_case_deinit(&c);
            } else {
                assert_int_equal(st, TIDE_ERR_NOMEM);
                assert_int_equal(err.status, TIDE_ERR_NOMEM);
                assert_null(c.key);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(a_model_that_is_planned), tide_unit_test(what_is_predicted_is_measured),
        tide_unit_test(extents_by_name),         tide_unit_test(what_cannot_be_measured),
        tide_unit_test(without_memory),          cmocka_unit_test(a_leak_has_a_name),
        tide_unit_test(steady_state_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
