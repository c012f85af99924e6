// SPDX-License-Identifier: MIT
//
// Real models, all the way: import, build, plan, run naive and planned; the two agree bit by bit and with the stored
// reference, with and without aliases, and every kind's measured peak is the predicted one. Needs models/ of the shared
// folder (ONNX's own test layout: model.onnx, test_data_set_K/input_I.pb, output_J.pb); models that are not there are
// skipped.
#include <inttypes.h>

#include "core/base/text.h"
#include "core/graph/import.h"
#include "core/tensor/compare.h"
#include "rt_util.h"

static const char *const models[] = {
    "mnist-8",          "ultraface-rfb-320", "fastestdet",          "yunet-n-dynamic",    "superres-espcn",
    "crepe-tiny",       "basic-pitch",       "selfie-segmentation", "vit-pgd-2-3-16",     "bert-toy",
    "light-squeezenet", "light-resnet50",    "scan-lstm-cntk",      "silero-vad",         "loop-crop-resize",
    "tiny-llm-kv",      "light-shufflenet",  "light-bvlc-alexnet",  "light-inception-v1", "light-densenet121",
};
enum { N_MODELS = sizeof models / sizeof models[0], MAX_PORTS = 16 };

static const struct {
    const char *strategy;
    unsigned aliases;
} plans[] = {{"greedy_by_size", 0}, {"greedy_color", 0}, {"greedy_by_size", RT_ALL_ALIASES}};

/// The stored outputs are ONNX Runtime's; its own result moves by 1e-3 when its optimisations are switched on.
static const double RTOL = 1e-3, ATOL = 1e-4;

typedef struct data_set {
    char dir[512];
    tide_tensor *in[MAX_PORTS];
    size_t n_in;
    tide_tensor *want[MAX_PORTS];
    size_t n_want;
} data_set;

static tide_tensor *load_pb(const char *dir, const char *stem, size_t i, tide_registry *registry) {
    char path[600];
    snprintf(path, sizeof path, "%s/%s_%zu.pb", dir, stem, i);
    FILE *f = fopen(path, "rb");
    if (f == NULL) return NULL;
    fclose(f);
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor *t;
    assert_tide_ok(tide_tensor_from_pb_file(path, registry, TIDE_KIND_DEFAULT, &t, NULL, &err), &err);
    return t;
}

/// Inputs come out of the rig, so that they are metered; references do not.
static bool load_set(const char *model, size_t k, tide_registry *registry, data_set *s) {
    char below[200], path[512];
    snprintf(below, sizeof below, "models/%s/test_data_set_%zu/output_0.pb", model, k);
    const char *shared = getenv("TIDE_SHARED_DIR");
    snprintf(path, sizeof path, "%s/%s", shared != NULL ? shared : "../shared", below);
    FILE *f = fopen(path, "rb");
    if (f == NULL) return false;
    fclose(f);
    *s = (data_set){0};
    const size_t len = strlen(path) - strlen("/output_0.pb");
    memcpy(s->dir, path, len);
    while (s->n_in < MAX_PORTS && (s->in[s->n_in] = load_pb(s->dir, "input", s->n_in, registry)) != NULL) s->n_in++;
    while (s->n_want < MAX_PORTS && (s->want[s->n_want] = load_pb(s->dir, "output", s->n_want, NULL)) != NULL)
        s->n_want++;
    return true;
}

static void drop_set(data_set *s) {
    for (size_t i = 0; i < s->n_in; i++) tide_tensor_unref(s->in[i]);
    for (size_t i = 0; i < s->n_want; i++) tide_tensor_unref(s->want[i]);
}

static tide_program *build(const char *model, const data_set *s, tide_registry *registry) {
    tide_error err = TIDE_ERROR_INIT;
    char below[200], buf[512];
    snprintf(below, sizeof below, "models/%s/model.onnx", model);
    const char *path = tide_shared_path(below, buf, sizeof buf);
    char *data;
    size_t len;
    assert_tide_ok(tide_read_file(path, 0, &data, &len, &err), &err);
    tide_graph *g;
    assert_tide_ok(tide_graph_from_onnx(data, len, path, &g, &err), &err);
    tide_host_free(data);
    tide_shape_binding shapes[MAX_PORTS];
    assert_int_equal(g->n_inputs, s->n_in);
    for (size_t i = 0; i < s->n_in; i++)
        shapes[i] = (tide_shape_binding){.name = g->values[g->inputs[i]].name, .shape = *tide_tensor_shape(s->in[i])};
    const tide_program_options opt = {
        .shapes = shapes, .n_shapes = s->n_in, .weights_registry = registry, .allow_dynamic = true};
    tide_program *p;
    assert_tide_ok(tide_program_build(g, &opt, &p, &err), &err);
    return p;
}

/// Run one mode from creation to outputs; check its peaks; the context stays for comparing.
static tide_context *run_mode(rt_rig *rig, const data_set *s, tide_program *p, const tide_memory_plan *m,
                              tide_run_mode mode) {
    tide_error err = TIDE_ERROR_INIT;
    tide_inference_plan *ip = rt_inference(rig, p, m);
    tide_meter_kind before[TIDE_N_KINDS];
    tide_meter_reset_peaks(rig->meter);
    for (int kind = 0; kind < TIDE_N_KINDS; kind++) tide_meter_get(rig->meter, (tide_memory_kind)kind, &before[kind]);
    tide_context *c = rt_context(ip, mode, TIDE_FILL_POISON);
    assert_tide_ok(tide_context_set_inputs(c, s->in, s->n_in, &err), &err);
    rt_run(c);
    rt_run(c);
    for (int kind = 0; kind < TIDE_N_KINDS; kind++) {
        uint64_t want = tide_memory_plan_predicted(m, (tide_memory_kind)kind);
        if (mode == TIDE_RUN_NAIVE && kind == TIDE_KIND_WORKSPACE) want = m->naive_peak_bytes;
        if (mode == TIDE_RUN_NAIVE && kind == TIDE_KIND_WORKSPACE && tide_context_ran(c) != NULL)
            assert_tide_ok(tide_memory_plan_naive_peak(m, tide_context_ran(c), &want, &err), &err);
        if (kind == TIDE_DYNAMIC_KIND && m->lifetimes.n_dynamic > 0) continue; // sized while running
        // Outputs of contexts that are still there for comparing.
        const uint64_t of_others = kind == TIDE_KIND_DEFAULT ? before[kind].live_bytes : 0;
        uint64_t inputs = 0;
        for (size_t i = 0; i < s->n_in && kind == TIDE_KIND_DEFAULT; i++) {
            const tide_block *b = tide_tensor_storage(s->in[i])->block;
            if (b != NULL) inputs += b->mem.requested_bytes;
        }
        const uint64_t got = rt_peak(rig, (tide_memory_kind)kind) - of_others + inputs;
        if (got != want)
            fail_msg("%s, %s, kind %s: predicted %" PRIu64 " B, measured %" PRIu64 " B", m->strategy,
                     mode == TIDE_RUN_NAIVE ? "naive" : "planned", tide_memory_kind_name((tide_memory_kind)kind), want,
                     got);
    }
    if (mode == TIDE_RUN_NAIVE) assert_int_equal(rt_live(rig, TIDE_KIND_WORKSPACE), 0);
    tide_inference_plan_unref(ip);
    return c;
}

static void compare_reference(const data_set *s, const tide_context *c, double *max_abs, double *max_rel) {
    tide_error err = TIDE_ERROR_INIT;
    assert_int_equal(tide_context_n_outputs(c), s->n_want);
    *max_abs = *max_rel = 0;
    for (size_t i = 0; i < s->n_want; i++) {
        tide_tensor_diff d;
        assert_tide_ok(tide_tensor_compare(tide_context_output(c, i), s->want[i], RTOL, ATOL, &d, &err), &err);
        if (!d.pass)
            fail_msg("output %zu: %lld elements outside the tolerance, first at %lld; max abs %.3g, max rel %.3g", i,
                     (long long)d.n_failed, (long long)d.first_failed, d.max_abs, d.max_rel);
        if (d.max_abs > *max_abs) *max_abs = d.max_abs;
        if (d.max_rel > *max_rel) *max_rel = d.max_rel;
    }
}

static void run_set(const char *model, size_t k, rt_rig *rig, data_set *s) {
    tide_program *p = build(model, s, rig->registry);
    tide_context *naive = NULL;
    double max_abs = 0, max_rel = 0;
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
        size_t n_aliases;
        tide_memory_plan *m = rt_plan_aliased(p, plans[i].strategy, plans[i].aliases, &n_aliases);
        assert_true(m->verified);
        if (naive == NULL) {
            naive = run_mode(rig, s, p, m, TIDE_RUN_NAIVE);
            if (!tide_rounding_decides(model)) compare_reference(s, naive, &max_abs, &max_rel);
        }
        tide_context *planned = run_mode(rig, s, p, m, TIDE_RUN_PLANNED);
        rt_assert_same_outputs(planned, naive);
        tide_context_stats st;
        tide_context_get_stats(planned, &st);
        print_message("%-20s set %zu  %-15s steps %4zu  aliases %3zu  buffer %9" PRIu64 "  lower bound %9" PRIu64
                      "  naive %10" PRIu64 "  weights %9" PRIu64 "  max abs %.2g rel %.2g\n",
                      model, k, m->strategy, p->n_steps, n_aliases, m->bytes, m->lower_bound_bytes, m->naive_bytes,
                      p->weight_bytes, max_abs, max_rel);
        assert_int_equal(st.n_failed, 0);
        tide_context_destroy(planned);
        tide_memory_plan_destroy(m);
    }
    tide_context_destroy(naive);
    tide_program_unref(p);
}

/// Under AddressSanitizer the three that take half of the time stay for `make soak`: the others have the same
/// operators, and Release runs them in the suite.
static bool takes_too_long(const char *model) {
#if defined(__SANITIZE_ADDRESS__)
    static const char *const large[] = {"light-resnet50", "light-bvlc-alexnet", "light-densenet121"};
    for (size_t i = 0; i < sizeof large / sizeof large[0] && tide_test_rounds(1, 0) == 1; i++)
        if (strcmp(model, large[i]) == 0) return true;
#endif
    (void)model;
    return false;
}

static void test_model(void **state) {
    const char *model = *state;
    if (takes_too_long(model)) {
        print_message("[  SKIPPED ] %s: under sanitizers in make soak alone\n", model);
        skip();
    }
    char below[200], buf[512];
    snprintf(below, sizeof below, "models/%s/model.onnx", model);
    if (tide_shared_path(below, buf, sizeof buf) == NULL) skip();
    for (size_t k = 0;; k++) {
        rt_rig rig;
        rt_rig_open(&rig);
        data_set s;
        const bool there = load_set(model, k, rig.registry, &s);
        if (there) {
            run_set(model, k, &rig, &s);
            drop_set(&s);
        }
        rt_rig_close(&rig);
        if (!there) break;
    }
}

/// One test per model; with arguments only those named.
int main(int argc, char **argv) {
    if (tide_registry_default() == NULL) return 1;
    struct CMUnitTest tests[N_MODELS];
    size_t n = 0;
    for (size_t i = 0; i < N_MODELS; i++) {
        bool wanted = argc < 2;
        for (int a = 1; a < argc; a++) wanted = wanted || strcmp(argv[a], models[i]) == 0;
        if (!wanted) continue;
        tests[n++] = (struct CMUnitTest){
            .name = models[i], .test_func = test_model, .initial_state = (void *)(uintptr_t)models[i]};
    }
    return _cmocka_run_group_tests("models", tests, n, NULL, NULL);
}
