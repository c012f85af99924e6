// SPDX-License-Identifier: MIT
//
// Causes by hand: settings, inputs, operators and their order, what is told first and what is not told; and for random
// pairs of cases that both waterfalls sum to the change exactly.
#include "tests/gate/causes_fixture.h"

// ---- nothing changed ----

static void what_is_alike_has_no_cause(void **state) {
    (void)state;
    pair p = alike();
    end(&p, "");
}

/// Settings, tensors and times differ, but no figure: nothing is to blame.
static void noise_has_no_cause(void **state) {
    (void)state;
    pair p = alike();
    set(&p.b, "strategy", "greedy_by_size");
    set(&p.b, "allocator", "arena");
    give_text(&tensor(&p.b, "d")->name, "e");
    know(&p.a, TIDE_GATE_TIME, 1000);
    know(&p.b, TIDE_GATE_TIME, 9000);
    know(&p.a, TIDE_GATE_PLAN_TIME, 1000);
    end(&p, "");
}

/// What one side alone measured is a matter of settings, not of tensors.
static void what_was_not_measured(void **state) {
    (void)state;
    pair p = alike();
    set(&p.a, "runs", "3");
    put_step(&p.b, "tanh", "Tanh");
    give_text(&tensor(&p.b, "d")->name, "e");
    know(&p.a, TIDE_GATE_PEAK, 5);
    end(&p, "setting: runs is not set instead of 3\n");
}

// ---- settings and inputs ----

static void settings_come_first(void **state) {
    (void)state;
    pair p = alike();
    set(&p.b, "strategy", "greedy_by_size");
    set(&p.b, "align", "256");
    set(&p.b, "passes", "views slices parts order");
    set(&p.b, "runs", "7");
    resize(&p.b, "c", 8192, 8192);
    end(&p,
        "setting: align is 256 instead of not set\n"
        "setting: passes: without in-place (views slices parts order instead of views slices in-place parts order)\n"
        "setting: strategy is greedy_by_size instead of search\n"
        "tensor_resized: c of conv2 takes 8.00 KiB instead of 4.00 KiB\n"
        "setting: runs is 7 instead of not set, which moves no figure that changed\n");
}

static void settings_of_runs_move_figures_of_runs(void **state) {
    (void)state;
    pair p = alike();
    set(&p.b, "allocator", "arena");
    know(&p.a, TIDE_GATE_RESERVED, 100);
    know(&p.b, TIDE_GATE_RESERVED, 200);
    end(&p, "setting: allocator is arena instead of not set\n");
}

static void inputs(void **state) {
    (void)state;
    pair p = alike();
    give_text(&p.a.inputs, "data 1x3x8x8, mask 1x4");
    give_text(&p.b.inputs, "data 2x3x8x8, mask 1x4");
    resize(&p.b, "a", 2048, 2048);
    resize(&p.b, "b", 4096, 4096);
    resize(&p.b, "c", 8192, 8192);
    resize(&p.b, "d", 1024, 0);
    end(&p, "inputs: the inputs are data 2x3x8x8 instead of data 1x3x8x8\n"
            "tensor_resized: 4 of 4 tensors grew to 2.00 times their size, 14.00 KiB at the peak instead of 7.00 KiB, "
            "among them c of conv2 (8.00 KiB instead of 4.00 KiB)\n");
}

// ---- operators ----

static void operators_that_came(void **state) {
    (void)state;
    pair p = alike();
    put_step(&p.b, "relu9", "Relu");
    put_tensor(&p.b, "r", "relu9", 4096, 4096);
    end(&p, "operator_added: 1 operator more: relu9 (Relu); it holds 4.00 KiB at the peak in r\n");

    p = alike();
    for (int i = 0; i < 12; i++) {
        char name[16];
        snprintf(name, sizeof name, "relu%d", 10 + i);
        put_step(&p.b, name, "Relu");
        put_tensor(&p.b, name, name, 100, i == 7 ? 1024 : 0);
    }
    put_tensor(&p.b, "z", "relu17", 100, 100);
    end(&p, "operator_added: 12 operators more, among them relu17 (Relu), relu10 (Relu), relu11 (Relu); they hold "
            "1.10 KiB at the peak, 1.00 KiB of it in relu17\n");
}

static void operators_that_went(void **state) {
    (void)state;
    pair p = alike();
    put_step(&p.a, "tanh", "Tanh");
    put_step(&p.a, "sin", "");
    put_tensor(&p.a, "t", "tanh", 512, 512);
    end(&p, "operator_removed: 2 operators fewer: tanh (Tanh), sin; they held 512 B at the peak in t\n");
}

static void operators_of_another_type(void **state) {
    (void)state;
    pair p = alike();
    give_text(&p.a.steps[0].op, "FusedConv");
    give_text(&p.a.steps[2].op, "FusedConv");
    resize(&p.b, "c", 8192, 8192);
    end(&p, "operator_added: 2 operators are of another type, among them conv1 Conv instead of FusedConv\n"
            "tensor_resized: c of conv2 takes 8.00 KiB instead of 4.00 KiB\n");
}

static void one_that_moved(void **state) {
    (void)state;
    pair p = alike();
    swap_steps(&p.b, 1, 2);
    resize(&p.b, "d", 512, 512);
    end(&p, "order: relu1 runs after conv2 (before: before it)\n"
            "alive: d of add (512 B) is alive at the peak, before it was not\n");
    p = alike(); // the last one comes first: it moved, the rest did not
    swap_steps(&p.b, 3, 2);
    swap_steps(&p.b, 2, 1);
    swap_steps(&p.b, 1, 0);
    resize(&p.b, "d", 512, 512);
    end(&p, "order: add runs before conv1 (before: after it)\n"
            "alive: d of add (512 B) is alive at the peak, before it was not\n");
}

/// Whatever is shuffled, what stays is a longest common order: no smaller set moved.
static void the_smallest_set_moved(void **state) {
    (void)state;
    enum { N = 9 };
    tide_rng rng = {3};
    for (int round = 0; round < 300; round++) {
        tide_gate_case a = a_case("k"), b = a_case("k");
        int order[N];
        for (int i = 0; i < N; i++) order[i] = i;
        for (int i = N - 1; i > 0; i--) {
            const int k = (int)tide_rng_below(&rng, (uint64_t)i + 1), x = order[i];
            order[i] = order[k];
            order[k] = x;
        }
        for (int i = 0; i < N; i++) {
            char name[8];
            snprintf(name, sizeof name, "s%d", i);
            put_step(&a, name, "Relu");
            snprintf(name, sizeof name, "s%d", order[i]);
            put_step(&b, name, "Relu");
        }
        put_tensor(&b, "t", "", 1, 1);
        int longest = 0, best[N];
        for (int i = 0; i < N; i++) { // by definition
            best[i] = 1;
            for (int k = 0; k < i; k++)
                if (order[k] < order[i] && best[k] + 1 > best[i]) best[i] = best[k] + 1;
            if (best[i] > longest) longest = best[i];
        }
        tide_error err = TIDE_ERROR_INIT;
        tide_gate_result r = {.n = 1, .cases = tide_host_calloc(1, sizeof *r.cases)};
        assert_tide_ok(tide_gate_causes(&a, &b, r.cases, &err), &err);
        size_t moved = 0;
        for (size_t i = 0; i < r.cases->n_causes; i++) {
            const tide_gate_cause *c = &r.cases->causes[i];
            if (c->kind != TIDE_GATE_CAUSE_ORDER) continue;
            moved += c->n;
            // Each sentence is true: it ran on the one side of the other operator, and runs on the other side.
            const bool after = strncmp(c->b, "after s", 7) == 0;
            const int me = c->name[1] - '0', other = c->b[strlen(c->b) - 1] - '0';
            int my_place = 0, other_place = 0;
            for (int k = 0; k < N; k++) {
                if (order[k] == me) my_place = k;
                if (order[k] == other) other_place = k;
            }
            assert_true((my_place > other_place) == after);
            assert_true((me > other) != after);
        }
        assert_int_equal(moved, N - longest);
        tide_gate_result_deinit(&r);
        tide_gate_case_deinit(&a);
        tide_gate_case_deinit(&b);
    }
}

static void many_that_moved(void **state) {
    (void)state;
    pair p = {a_case("k"), a_case("k")};
    for (int i = 0; i < 20; i++) {
        char name[8];
        snprintf(name, sizeof name, "s%d", i);
        put_step(&p.a, name, "Relu");
        snprintf(name, sizeof name, "s%d", 19 - i);
        put_step(&p.b, name, "Relu");
    }
    put_tensor(&p.a, "t", "s4", 100, 0);
    put_tensor(&p.b, "t", "s4", 100, 100);
    char *text = causes_text(&p.a, &p.b);
    assert_text_has(text, "order: 19 of 20 operators run at another place, among them s4 ");
    tide_host_free(text);
    tide_gate_case_deinit(&p.a);
    tide_gate_case_deinit(&p.b);
}

// ---- what nothing explains ----

static void nothing_explains_it(void **state) {
    (void)state;
    pair p = alike();
    know(&p.a, TIDE_GATE_RESERVED, 1048576);
    know(&p.b, TIDE_GATE_RESERVED, 2097152);
    give_text(&p.b.peak_step, "add");
    finish_case(&p.a);
    finish_case(&p.b);
    char *text = causes_text(&p.a, &p.b);
    assert_text_has(text, "unexplained: reserved_bytes is 2.00 MiB");
    assert_text_has(text, "instead of 1.00 MiB");
    assert_text_has(text, "no setting, operator or tensor that differs explains it; the peak is at add (before: at "
                          "conv2)");
    tide_host_free(text);
    know(&p.b, TIDE_GATE_LEAKED, 5);
    know(&p.a, TIDE_GATE_LEAKED, 0);
    resize(&p.b, "c", 8192, 8192); // explains sizes, but no leak
    text = causes_text(&p.a, &p.b);
    assert_text_has(text, "tensor_resized: c of conv2");
    assert_text_has(text, "unexplained: leaked_bytes is 5 B");
    assert_null(strstr(text, "reserved_bytes"));
    tide_host_free(text);
    tide_gate_case_deinit(&p.a);
    tide_gate_case_deinit(&p.b);
}

/// Numbers of allocations are only reported: where nothing else differs, no cause is searched.
static void what_is_only_reported(void **state) {
    (void)state;
    pair p = alike();
    know(&p.a, TIDE_GATE_ALLOCATIONS, 5);
    know(&p.b, TIDE_GATE_ALLOCATIONS, 6);
    end(&p, "");
}

// ---- order of telling ----

static void everything_at_once(void **state) {
    (void)state;
    pair p = alike();
    set(&p.b, "align", "256");
    give_text(&p.b.inputs, "x 2x4");
    swap_steps(&p.b, 1, 2);
    put_step(&p.b, "tanh", "Tanh");
    tensor(&p.b, "d")->kind = TIDE_KIND_KV_CACHE;
    give_text(&tensor(&p.a, "a")->inside, "b");
    resize(&p.b, "c", 8192, 8192);
    tensor(&p.b, "b")->leaked_bytes = 1;
    tensor(&p.b, "b")->warm_allocations = 1;
    put_holes(&p.b, 7);
    for (int side = 0; side < 2; side++) {
        know(side == 0 ? &p.a : &p.b, TIDE_GATE_LEAKED, (uint64_t)side);
        know(side == 0 ? &p.a : &p.b, TIDE_GATE_WARM, (uint64_t)side);
    }
    finish_case(&p.a);
    finish_case(&p.b);
    tide_error err = TIDE_ERROR_INIT;
    tide_gate_result r = {.n = 1, .cases = tide_host_calloc(1, sizeof *r.cases)};
    assert_tide_ok(tide_gate_causes(&p.a, &p.b, r.cases, &err), &err);
    static const tide_gate_cause_kind want[] = {
        TIDE_GATE_CAUSE_SETTING, TIDE_GATE_CAUSE_INPUTS,     TIDE_GATE_CAUSE_OPERATOR_ADDED, TIDE_GATE_CAUSE_ORDER,
        TIDE_GATE_CAUSE_KIND,    TIDE_GATE_CAUSE_PLACE_LOST, TIDE_GATE_CAUSE_TENSOR_RESIZED, TIDE_GATE_CAUSE_LEAK,
        TIDE_GATE_CAUSE_STEADY,  TIDE_GATE_CAUSE_HOLES};
    // a has its own bytes on both sides of the peak and moved nothing: it is not told.
    size_t at = 0;
    for (size_t i = 0; i < r.cases->n_causes; i++) {
        if (want[at] == TIDE_GATE_CAUSE_PLACE_LOST) at++;
        assert_int_equal(r.cases->causes[i].kind, want[at++]);
    }
    assert_int_equal(at, sizeof want / sizeof want[0]);
    const tide_gate_cause *c = &r.cases->causes[5];
    assert_string_equal(c->name, "c");
    assert_string_equal(c->owner, "conv2");
    assert_int_equal(c->a_bytes, 4096);
    assert_int_equal(c->b_bytes, 8192);
    assert_int_equal(c->n, 1);
    assert_string_equal(r.cases->causes[0].name, "align");
    assert_string_equal(r.cases->causes[0].a, "");
    assert_string_equal(r.cases->causes[0].b, "256");
    tide_gate_result_deinit(&r);
    tide_gate_case_deinit(&p.a);
    tide_gate_case_deinit(&p.b);
}

/// What goes the way of the change is told before what goes against it, however large that is.
static void the_way_of_the_change(void **state) {
    (void)state;
    pair p = alike();
    resize(&p.b, "c", 100, 100);
    resize(&p.b, "a", 6000, 6000);
    end(&p, "tensor_resized: a of conv1 takes 5.86 KiB instead of 1.00 KiB\n"
            "tensor_resized: c of conv2 takes 100 B instead of 4.00 KiB\n");
}

// ---- waterfalls ----

static void assert_waterfall(const tide_gate_part *parts, size_t n, const tide_gate_case *a, const tide_gate_case *b) {
    uint64_t sum_a = 0, sum_b = 0, last = UINT64_MAX;
    for (size_t i = 0; i < n; i++) {
        assert_true(parts[i].a_bytes != parts[i].b_bytes);
        sum_a += parts[i].a_bytes;
        sum_b += parts[i].b_bytes;
        const uint64_t change = parts[i].a_bytes > parts[i].b_bytes ? parts[i].a_bytes - parts[i].b_bytes
                                                                    : parts[i].b_bytes - parts[i].a_bytes;
        assert_true(change <= last);
        last = change;
    }
    assert_int_equal(sum_b - sum_a, b->held_bytes - a->held_bytes);
}

static void waterfalls_sum_to_the_change(void **state) {
    (void)state;
    tide_rng rng = {11};
    size_t n_causes = 0;
    for (int round = 0; round < 3000; round++) {
        tide_gate_cases two = {0};
        tide_error err = TIDE_ERROR_INIT;
        tide_gate_result r = {.n = 1, .cases = tide_host_calloc(1, sizeof *r.cases)};
        tide_gate_case x = random_case(&rng), y = random_case(&rng);
        give_text(&x.key, "a");
        give_text(&y.key, "b");
        add_case(&two, x);
        add_case(&two, y);
        const tide_gate_case *a = &two.items[0], *b = &two.items[1];
        assert_tide_ok(tide_gate_causes(a, b, r.cases, &err), &err);
        assert_waterfall(r.cases->by_operator, r.cases->n_by_operator, a, b);
        assert_waterfall(r.cases->by_kind, r.cases->n_by_kind, a, b);
        for (size_t i = 0; i < r.cases->n_causes; i++) {
            assert_true(r.cases->causes[i].text[0] != '\0');
            assert_true(r.cases->causes[i].n > 0);
        }
        assert_true(r.cases->n_causes > 0 || a->held_bytes == b->held_bytes);
        n_causes += r.cases->n_causes;
        tide_gate_result_deinit(&r);
        assert_causes(a, a, "");
        tide_gate_cases_deinit(&two);
    }
    assert_true(n_causes > 3000);
}

static void parts_by_name(void **state) {
    (void)state;
    pair p = alike();
    resize(&p.b, "c", 8192, 8192);
    resize(&p.b, "a", 24, 24);
    put_holes(&p.b, 50);
    tide_gate_tensor *t = put_tensor(&p.b, "w", "", 9, 9);
    t->kind = TIDE_KIND_PERSISTENT;
    tide_error err = TIDE_ERROR_INIT;
    tide_gate_result r = {.n = 1, .cases = tide_host_calloc(1, sizeof *r.cases)};
    assert_tide_ok(tide_gate_causes(&p.a, &p.b, r.cases, &err), &err);
    const tide_gate_judged *j = r.cases;
    static const char *const operators[] = {"conv2", "conv1", "holes", "(weights)"};
    static const char *const kinds_of[] = {"Workspace", "holes", "Persistent"};
    assert_int_equal(j->n_by_operator, 4);
    for (size_t i = 0; i < 4; i++) assert_string_equal(j->by_operator[i].key, operators[i]);
    assert_int_equal(j->by_operator[1].a_bytes, 1024);
    assert_int_equal(j->by_operator[1].b_bytes, 24);
    assert_int_equal(j->n_by_kind, 3);
    for (size_t i = 0; i < 3; i++) assert_string_equal(j->by_kind[i].key, kinds_of[i]);
    tide_gate_result_deinit(&r);
    p.b.held_bytes++; // a case that does not add up has no waterfall
    r = (tide_gate_result){.n = 1, .cases = tide_host_calloc(1, sizeof *r.cases)};
    assert_tide_status(tide_gate_causes(&p.a, &p.b, r.cases, &err), TIDE_ERR_INVALID);
    tide_gate_result_deinit(&r);
    tide_gate_case_deinit(&p.a);
    tide_gate_case_deinit(&p.b);
}

static void without_memory(void **state) {
    (void)state;
    pair p = alike();
    put_step(&p.b, "tanh", "Tanh");
    swap_steps(&p.b, 1, 2);
    resize(&p.b, "c", 8192, 8192);
    give_text(&p.b.inputs, "x 2x4");
    set(&p.b, "passes", "views");
    tide_status st = TIDE_ERR_NOMEM;
    int64_t n = 0;
    for (; st != TIDE_OK; n++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_gate_result r = {.n = 1, .cases = tide_host_calloc(1, sizeof *r.cases)};
        tide_host_fail_after(n);
        st = tide_gate_causes(&p.a, &p.b, r.cases, &err);
        tide_host_fail_after(-1);
        if (st != TIDE_OK) assert_int_equal(st, TIDE_ERR_NOMEM);
        tide_gate_result_deinit(&r);
    }
    assert_true(n > 40);
    tide_gate_case_deinit(&p.a);
    tide_gate_case_deinit(&p.b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(what_is_alike_has_no_cause),
        tide_unit_test(noise_has_no_cause),
        tide_unit_test(what_was_not_measured),
        tide_unit_test(settings_come_first),
        tide_unit_test(settings_of_runs_move_figures_of_runs),
        tide_unit_test(inputs),
        tide_unit_test(operators_that_came),
        tide_unit_test(operators_that_went),
        tide_unit_test(operators_of_another_type),
        tide_unit_test(one_that_moved),
        tide_unit_test(the_smallest_set_moved),
        tide_unit_test(many_that_moved),
        tide_unit_test(nothing_explains_it),
        tide_unit_test(what_is_only_reported),
        tide_unit_test(everything_at_once),
        tide_unit_test(the_way_of_the_change),
        tide_unit_test(waterfalls_sum_to_the_change),
        tide_unit_test(parts_by_name),
        tide_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
