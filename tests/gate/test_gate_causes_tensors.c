// SPDX-License-Identifier: MIT
//
// Causes that are tensors: kind, place, size, presence at the peak, leaks, allocations; alone and many alike.
#include "gate/measured_internal.h"
#include "tests/gate/causes_fixture.h"

static void kinds(void **state) {
    (void)state;
    pair p = alike();
    tide_gate_tensor *t = tensor(&p.b, "b");
    t->persistent = true;
    t->kind = TIDE_KIND_PERSISTENT;
    p.b.held_bytes -= t->at_peak_bytes;
    t->at_peak_bytes = 0;
    end(&p, "kind: b of relu1 (2.00 KiB) is Persistent instead of Workspace, held for the whole run\n");
    p = alike();
    tensor(&p.b, "b")->persistent = true;
    resize(&p.b, "c", 4100, 4100);
    end(&p, "kind: b of relu1 (2.00 KiB) is Workspace, persistent instead of Workspace, held for the whole run\n"
            "tensor_resized: c of conv2 takes 4100 B instead of 4096 B\n");
}

static void places(void **state) {
    (void)state;
    pair p = alike();
    give_text(&tensor(&p.a, "b")->inside, "a");
    give_text(&tensor(&p.a, "b")->alias, "in-place");
    resize(&p.a, "b", 2048, 0);
    end(&p, "place_lost: b of relu1 takes 2.00 KiB of its own at the peak; before it lay in a (in-place)\n");
    p = alike();
    give_text(&tensor(&p.b, "b")->inside, "a");
    give_text(&tensor(&p.b, "b")->alias, "view");
    resize(&p.b, "b", 2048, 0);
    end(&p, "place_shared: b of relu1 lies in a (view); before it took 2.00 KiB of its own at the peak\n");
    p = alike();
    for (int i = 0; i < 8; i++) {
        char name[8];
        snprintf(name, sizeof name, "r%d", i);
        tide_gate_tensor *t = put_tensor(&p.a, name, "relu1", 100, 0);
        give_text(&t->inside, "a");
        give_text(&t->alias, "in-place");
        put_tensor(&p.b, name, "relu1", 100, i == 3 ? 100 : 0);
    }
    end(&p,
        "place_lost: 8 tensors take 100 B of their own at the peak; before they lay in others (in-place), among them "
        "r3 of relu1\n");
}

static void tensors_more_and_fewer(void **state) {
    (void)state;
    pair p = alike();
    put_tensor(&p.b, "x", "add", 100, 100);
    put_tensor(&p.b, "y", "add", 100, 0); // holds nothing at the peak: not to blame
    put_tensor(&p.a, "z", "conv1", 30, 30);
    end(&p, "tensor_added: 1 tensor more: x of add, 100 B at the peak\n"
            "tensor_removed: 1 tensor fewer: z of conv1, 30 B at the peak\n");
    p = alike();
    for (int i = 0; i < 5; i++) {
        char name[8];
        snprintf(name, sizeof name, "w%d", i);
        tide_gate_tensor *t = put_tensor(&p.b, name, "", 1024, 0);
        t->persistent = true;
        t->kind = TIDE_KIND_PERSISTENT;
    }
    know(&p.a, TIDE_GATE_NAIVE, 1);
    know(&p.b, TIDE_GATE_NAIVE, 2);
    end(&p, "tensor_added: 5 tensors more, 5.00 KiB for the whole run, among them w0 (1.00 KiB)\n");
}

/// The same tensor under another name has moved no figure, but nothing else could have.
static void idle_ones_where_nothing_else_is(void **state) {
    (void)state;
    pair p = alike();
    resize(&p.b, "d", 1024, 0);
    know(&p.a, TIDE_GATE_NAIVE, 7680);
    know(&p.b, TIDE_GATE_NAIVE, 8192);
    end(&p, "tensor_resized: d of add takes 1.00 KiB instead of 512 B, not at the peak\n");
}

static void sizes_by_shares(void **state) {
    (void)state;
    pair p = alike();
    for (int i = 0; i < 6; i++) {
        char name[8];
        snprintf(name, sizeof name, "t%d", i);
        put_tensor(&p.a, name, "add", 100, 100);
        put_tensor(&p.b, name, "add", (uint64_t)(110 + 10 * i), (uint64_t)(110 + 10 * i));
    }
    resize(&p.b, "c", 2048, 2048);
    end(&p, "tensor_resized: c of conv2 takes 2.00 KiB instead of 4.00 KiB\n"
            "tensor_resized: 6 of 10 tensors grew to between 1.10 and 1.60 times their size, 810 B at the peak instead "
            "of 600 B, among them t5 of add (160 B instead of 100 B)\n");
}

static void alive_at_another_peak(void **state) {
    (void)state;
    pair p = alike();
    give_text(&p.b.peak_step, "add");
    resize(&p.b, "a", 1024, 0);
    resize(&p.b, "d", 512, 512);
    resize(&p.b, "b", 2048, 1000);
    end(&p,
        "not_alive: b of relu1 holds at the peak 1000 B instead of 2.00 KiB; the peak is at add (before: at conv2)\n"
        "not_alive: a of conv1 (1.00 KiB) is not alive at the peak, before it was; the peak is at add (before: at "
        "conv2)\n"
        "alive: d of add (512 B) is alive at the peak, before it was not; the peak is at add (before: at conv2)\n");
}

// ---- runs ----

static void leaks(void **state) {
    (void)state;
    pair p = alike();
    tensor(&p.b, "a")->leaked_bytes = 4096;
    tensor(&p.b, "a")->warm_allocations = 3; // steady state did not change: not told
    know(&p.a, TIDE_GATE_LEAKED, 0);
    know(&p.b, TIDE_GATE_LEAKED, 4096);
    swap_steps(&p.b, 1, 2); // cannot leak
    end(&p, "leak: a of conv1: 4.00 KiB never given back (before: 0 B)\n");
    p = alike();
    tensor(&p.a, "a")->leaked_bytes = 4096;
    know(&p.a, TIDE_GATE_LEAKED, 4096);
    know(&p.b, TIDE_GATE_LEAKED, 0);
    end(&p, "leak: a of conv1: all given back (before: 4.00 KiB never)\n");
}

static void steady_state(void **state) {
    (void)state;
    pair p = alike();
    tensor(&p.b, "b")->warm_allocations = 3;
    tensor(&p.b, "a")->leaked_bytes = 64; // no figure of leaks changed: not told
    know(&p.a, TIDE_GATE_WARM, 0);
    know(&p.b, TIDE_GATE_WARM, 3);
    end(&p, "steady: b of relu1 (2.00 KiB): 3 allocations in steady state (before: 0)\n");
}

static void holes(void **state) {
    (void)state;
    pair p = alike();
    put_holes(&p.a, 512);
    put_holes(&p.b, 2048);
    end(&p, "holes: 1.50 KiB more between the tensors at the peak: 2.00 KiB instead of 512 B\n");
}

static void put_both(pair *p, const char *name, const char *owner, uint64_t a, uint64_t b, bool persistent) {
    tide_gate_tensor *x = put_tensor(&p->a, name, owner, a, persistent ? 0 : a);
    tide_gate_tensor *y = put_tensor(&p->b, name, owner, b, persistent ? 0 : b);
    x->persistent = y->persistent = persistent;
    if (persistent) x->kind = y->kind = TIDE_KIND_PERSISTENT;
}

/// A share of growth that half of them have is told by itself; what persists is told apart from what is planned.
static void the_frequent_share(void **state) {
    (void)state;
    pair p = alike();
    for (int i = 0; i < 13; i++) {
        char name[8];
        snprintf(name, sizeof name, "t%02d", i);
        const uint64_t b = i < 5 ? 200 : i < 10 ? 300 + (uint64_t)i : 50;
        put_both(&p, name, "add", 100, b, false);
    }
    for (int i = 0; i < 4; i++) {
        char name[8];
        snprintf(name, sizeof name, "w%d", i);
        put_both(&p, name, "", 1000, 2000, true);
    }
    put_both(&p, "z", "", 7, 70000, true);
    end(&p,
        "tensor_resized: z takes 68.36 KiB instead of 7 B\n"
        "tensor_resized: 4 of 22 tensors grew to 2.00 times their size, 7.81 KiB for the whole run instead of 3.91 "
        "KiB, "
        "among them w0 (1.95 KiB instead of 1000 B)\n"
        "tensor_resized: 5 of 22 tensors grew to between 3.05 and 3.09 times their size, 1.50 KiB at the peak instead "
        "of 500 B, among them t09 of add (309 B instead of 100 B)\n"
        "tensor_resized: 5 of 22 tensors grew to 2.00 times their size, 1000 B at the peak instead of 500 B, among "
        "them "
        "t00 of add (200 B instead of 100 B)\n"
        "tensor_resized: t10 of add takes 50 B instead of 100 B\n"
        "tensor_resized: t11 of add takes 50 B instead of 100 B\n"
        "tensor_resized: t12 of add takes 50 B instead of 100 B\n");
    p = alike();
    put_both(&p, "grown0", "add", 0, 64, false);
    for (int i = 1; i < 4; i++) {
        char name[8];
        snprintf(name, sizeof name, "grown%d", i);
        put_both(&p, name, "add", 64, 128, false);
    }
    end(&p, "tensor_resized: 4 of 8 tensors grew, 448 B at the peak instead of 192 B, among them grown0 of add (64 B "
            "instead of 0 B)\n");
}

/// As much is held at the peak as before, but all bytes together grew: only what persists can have done it.
static void the_peak_stays(void **state) {
    (void)state;
    pair p = alike();
    resize(&p.b, "a", 2048, 2048);
    resize(&p.b, "b", 1024, 1024);
    put_both(&p, "w", "", 100, 200, true);
    finish_case(&p.a);
    finish_case(&p.b);
    p.b.metrics[TIDE_GATE_TOTAL].u += 100;
    assert_causes(&p.a, &p.b, "tensor_resized: w takes 200 B instead of 100 B\n");
    know(&p.a, TIDE_GATE_PEAK, 1); // where the measured peak changed too, any of them can
    know(&p.b, TIDE_GATE_PEAK, 2);
    assert_causes(&p.a, &p.b,
                  "tensor_resized: a of conv1 takes 2.00 KiB instead of 1.00 KiB\n"
                  "tensor_resized: w takes 200 B instead of 100 B\n"
                  "tensor_resized: b of relu1 takes 1.00 KiB instead of 2.00 KiB\n");
    tide_gate_case_deinit(&p.a);
    tide_gate_case_deinit(&p.b);
}

/// A tensor with a unique name is matched by name alone, even with another owner; several tensors of one name are
/// matched by their owners.
static void another_owner(void **state) {
    (void)state;
    pair p = alike();
    give_text(&tensor(&p.b, "c")->owner, "fused");
    resize(&p.b, "c", 8192, 8192);
    end(&p, "tensor_resized: c of fused takes 8.00 KiB instead of 4.00 KiB\n");
    p = alike();
    put_tensor(&p.a, "e", "op1", 10, 10);
    put_tensor(&p.a, "e", "op2", 20, 20);
    put_tensor(&p.b, "e", "op2", 20, 20);
    put_tensor(&p.b, "e", "op3", 40, 40);
    end(&p, "tensor_added: 1 tensor more: e of op3, 40 B at the peak\n"
            "tensor_removed: 1 tensor fewer: e of op1, 10 B at the peak\n");
}

/// Sums that no number holds are the largest one, not what is left of them.
static void sums_beyond_measure(void **state) {
    (void)state;
    pair p = alike();
    for (size_t i = 0; i < 4; i++) {
        tide_gate_tensor *t = tensor(&p.b, (const char *const[]){"a", "b", "c", "d"}[i]);
        t->leaked_bytes = UINT64_MAX / 2 + 1;
    }
    know(&p.a, TIDE_GATE_LEAKED, 0);
    know(&p.b, TIDE_GATE_LEAKED, UINT64_MAX);
    end(&p, "leak: 4 tensors, among them a of conv1: 16.00 EiB never given back (before: 0 B)\n");
}

/// What is in a case for its leak alone is told as that, and not as a tensor more.
static void a_block_that_only_leaks(void **state) {
    (void)state;
    pair p = alike();
    put_tensor(&p.b, "e", "", 64, 0)->leaked_bytes = 64;
    give_text(&p.b.tensors[4].name, "");
    tide__case_sort_tensors(&p.b);
    know(&p.a, TIDE_GATE_LEAKED, 0);
    know(&p.b, TIDE_GATE_LEAKED, 64);
    know(&p.a, TIDE_GATE_PEAK, 100);
    know(&p.b, TIDE_GATE_PEAK, 164);
    finish_case(&p.a);
    finish_case(&p.b);
    char *text = causes_text(&p.a, &p.b);
    assert_true(strncmp(text, "leak: a block without a name: 64 B never given back (before: 0 B)\n", 64) == 0);
    assert_null(strstr(text, "tensor_added"));
    assert_null(strstr(text, "unexplained")); // what is not given back can raise the measured peak
    tide_host_free(text);
    tide_gate_case_deinit(&p.a);
    tide_gate_case_deinit(&p.b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(kinds),
        tide_unit_test(places),
        tide_unit_test(tensors_more_and_fewer),
        tide_unit_test(idle_ones_where_nothing_else_is),
        tide_unit_test(sizes_by_shares),
        tide_unit_test(alive_at_another_peak),
        tide_unit_test(leaks),
        tide_unit_test(steady_state),
        tide_unit_test(holes),
        tide_unit_test(the_frequent_share),
        tide_unit_test(the_peak_stays),
        tide_unit_test(another_owner),
        tide_unit_test(a_block_that_only_leaks),
        tide_unit_test(sums_beyond_measure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
