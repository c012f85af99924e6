// SPDX-License-Identifier: MIT
//
// Causes of changes to real plans: a small graph is planned in two ways that differ in one thing, and what is told
// first is that thing.
#include "tests/gate/case_fixture.h"

/// stem -> left -> right (a branch each) -> sum -> out; the stem is read by both branches.
static tide_graph *graph(const char *shape) {
    tide_graph *g = case_graph("net", "x", shape);
    case_node(g, "Sigmoid", "stem", "stem.out", "x", NULL, NULL);
    case_node(g, "Relu", "left", "left.out", "stem.out", NULL, NULL);
    case_node(g, "Concat", "wide", "wide.out", "left.out", "left.out", "stem.out");
    case_node(g, "Tanh", "right", "right.out", "stem.out", NULL, NULL);
    case_node(g, "Concat", "both", "both.out", "wide.out", "right.out", NULL);
    case_node(g, "Relu", "last", "last.out", "both.out", NULL, NULL);
    case_node(g, "Sigmoid", "end", "end.out", "last.out", NULL, NULL);
    case_output(g, "end.out");
    return g;
}

typedef struct way {
    const char *shape, *strategy, *persistent, *extra;
    tide_pass_options passes;
    const char *sample; ///< in place of that graph
    bool wide_first;
} way;

static void edit_table(tide_lifetimes *lt, const way *w) {
    if (w->persistent == NULL) return;
    tide_lifetime *item = &lt->items[index_of(lt, w->persistent)];
    item->persistent = true;
    item->begin_step = 0;
    item->end_step = lt->n_steps;
}

static tide_program *build(const way *w) {
    tide_graph *g = graph(w->shape != NULL ? w->shape : "1x16x8x8");
    if (w->extra != NULL) {
        case_node(g, "Relu", w->extra, "extra.out", "wide.out", NULL, NULL);
        case_output(g, "extra.out");
    }
    return case_build(g, NULL, 0);
}

static tide_gate_case measure(const way *w) {
    tide_error err = TIDE_ERROR_INIT;
    tide_program *p = w->sample != NULL ? case_sample(w->sample) : build(w);
    tide_pass_options passes = w->passes;
    tide_lifetimes lt;
    if (passes.align_bytes == 0) passes.align_bytes = 64;
    passes.off[TIDE_PASS_ORDER] = true;
    if (w->wide_first) {
        uint32_t order[16];
        for (uint32_t i = 0; i < p->n_steps; i++) order[i] = i;
        order[2] = 3;
        order[3] = 2;
        assert_tide_ok(tide_program_reorder(p, order, &err), &err);
    }
    assert_tide_ok(tide_passes_run(p, &passes, &lt, NULL, &err), &err);
    edit_table(&lt, w);
    tide_memory_plan *plan = make_plan(&lt, w->strategy != NULL ? w->strategy : "greedy_by_size");
    const char *ops[256];
    assert_true(p->n_steps <= 256);
    for (size_t i = 0; i < p->n_steps; i++) ops[i] = p->graph->nodes[p->steps[i].node].op_type;
    tide_gate_case c = {.key = tide_host_strdup("net")};
    assert_tide_ok(tide_gate_case_of_plan(plan, ops, &c, &err), &err);
    give_text(&c.inputs, w->shape != NULL ? w->shape : "1x16x8x8");
    assert_adds_up(&c);
    assert_int_equal(c.held_bytes, plan->bytes);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
    tide_program_unref(p);
    return c;
}

/// The two differ, the first cause is `first`, and both waterfalls sum to the change. *rest may hold the other causes.
static char *compare(const way *wa, const way *wb, const char *first) {
    tide_error err = TIDE_ERROR_INIT;
    tide_gate_case a = measure(wa), b = measure(wb);
    tide_gate_result r = {.n = 1, .cases = tide_host_calloc(1, sizeof *r.cases)};
    assert_tide_ok(tide_gate_causes(&a, &b, r.cases, &err), &err);
    const tide_gate_judged *j = r.cases;
    uint64_t by_operator = 0, by_kind = 0;
    for (size_t i = 0; i < j->n_by_operator; i++) by_operator += j->by_operator[i].b_bytes - j->by_operator[i].a_bytes;
    for (size_t i = 0; i < j->n_by_kind; i++) by_kind += j->by_kind[i].b_bytes - j->by_kind[i].a_bytes;
    assert_int_equal(by_operator, b.held_bytes - a.held_bytes);
    assert_int_equal(by_kind, b.held_bytes - a.held_bytes);
    tide_gate_result_deinit(&r);
    char *text = causes_text(&a, &b);
    if (strncmp(text, first, strlen(first)) != 0) fail_msg("--- causes\n%s--- first wanted\n%s", text, first);
    tide_gate_case_deinit(&a);
    tide_gate_case_deinit(&b);
    return text;
}

static const way plain = {0};

static void the_same_plan(void **state) {
    (void)state;
    tide_gate_case a = measure(&plain), b = measure(&plain);
    assert_causes(&a, &b, "");
    tide_gate_case_deinit(&a);
    tide_gate_case_deinit(&b);
}

static void alignment_up(void **state) {
    (void)state;
    const way small = {.shape = "1x5x3x3"}, w = {.shape = "1x5x3x3", .passes.align_bytes = 1024};
    char *text = compare(&small, &w, "setting: align is 1024 instead of 64\n");
    assert_text_has(text, "6 of 8 tensors grew to between 1.33 and 5.33 times their size, 2.00 KiB at the peak instead "
                          "of 960 B, among them left.out of left (1.00 KiB instead of 192 B)\n");
    tide_host_free(text);
    // As much is held at the peak as before: what moved all bytes together is what persists.
    const way even = {.passes.align_bytes = 8192};
    text = compare(&plain, &even,
                   "setting: align is 8192 instead of 64\n"
                   "tensor_resized: x takes 8.00 KiB instead of 4.00 KiB\n");
    assert_null(strstr(text, "stem"));
    tide_host_free(text);
}

static void one_more_in_the_batch(void **state) {
    (void)state;
    const way w = {.shape = "2x16x8x8"};
    char *text = compare(&plain, &w, "inputs: the inputs are 2x16x8x8 instead of 1x16x8x8\n");
    assert_text_has(text, "tensor_resized: both.out of both takes 32.00 KiB instead of 16.00 KiB\n");
    tide_host_free(text);
}

static void in_place_off(void **state) {
    (void)state;
    const way w = {.passes.off[TIDE_PASS_IN_PLACE] = true};
    char *text = compare(&plain, &w,
                         "place_lost: last.out of last takes 16.00 KiB of its own at the peak; before it lay "
                         "in both.out (in-place)\n");
    tide_host_free(text);
    text = compare(&w, &plain, "place_shared: last.out of last lies in both.out (in-place)");
    tide_host_free(text);
}

static void another_strategy(void **state) {
    (void)state;
    const way best = {.sample = "unet"}, w = {.sample = "unet", .strategy = "greedy_color"};
    char *text = compare(&best, &w, "setting: strategy is greedy_color instead of greedy_by_size\n");
    assert_text_has(text, "holes: ");
    tide_host_free(text);
}

static void another_order(void **state) {
    (void)state;
    const way now = {.wide_first = true, .passes.off = {[TIDE_PASS_PARTS] = true}};
    const way was = {.passes.off = {[TIDE_PASS_PARTS] = true}};
    tide_gate_case a = measure(&was), b = measure(&now);
    know(&b, TIDE_GATE_PLANNED, b.held_bytes + 1); // the order alone is no change of a figure here
    char *text = causes_text(&a, &b);
    assert_text_has(text, "order: wide runs after right (before: before it)\n");
    tide_host_free(text);
    tide_gate_case_deinit(&a);
    tide_gate_case_deinit(&b);
}

static void a_tensor_made_persistent(void **state) {
    (void)state;
    const way off = {.passes.off = {[TIDE_PASS_PARTS] = true, [TIDE_PASS_IN_PLACE] = true, [TIDE_PASS_VIEWS] = true}};
    way w = off;
    w.persistent = "right.out";
    char *text = compare(&off, &w, "kind: right.out");
    assert_text_has(text, "of right (4.00 KiB) is Workspace, persistent instead of Workspace, held for the whole run");
    tide_host_free(text);
}

static void an_operator_more(void **state) {
    (void)state;
    const way w = {.extra = "spare"};
    char *text = compare(&plain, &w, "operator_added: 1 operator more: spare (Relu)");
    tide_host_free(text);
    text = compare(&w, &plain, "operator_removed: 1 operator fewer: spare (Relu)");
    tide_host_free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(the_same_plan),
        tide_unit_test(alignment_up),
        tide_unit_test(one_more_in_the_batch),
        tide_unit_test(in_place_off),
        tide_unit_test(another_strategy),
        tide_unit_test(another_order),
        tide_unit_test(a_tensor_made_persistent),
        tide_unit_test(an_operator_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
