// SPDX-License-Identifier: MIT
//
// planner/formats: texts of other compilers' plans as tables; texts that are cut or changed anywhere.
#include "planner/formats/formats.h"
#include "planner/planner.h"
#include "tests/tide_test.h"

static const char xla_text[] = "BufferAssignment:\n"
                               "allocation 0: size 64, parameter 0, shape |f32[16]| at ShapeIndex {}:\n"
                               " value: <1 a.1 @0> (size=64,offset=0): f32[16]{0}\n"
                               "allocation 1: size 8, output shape is |(f32[], f32[])|, maybe-live-out:\n"
                               " value: <9 r{} @0> (size=8,offset=0): (f32[], f32[])\n"
                               "allocation 2: size 4, constant:\n"
                               " value: <2 c @0> (size=4,offset=0): f32[]\n"
                               "allocation 3: size 4, thread-local:\n"
                               " value: <0 lhs @0> (size=4,offset=0): f32[]\n"
                               "allocation 4: size 1280, preallocated-temp:\n"
                               " value: <3 x @0> (size=512,offset=0): f32[128]{0}\n"
                               " value: <4 y{1,0} @0> (size=512,offset=512): f32[128]{0}\n"
                               " value: <5 y2 @0> (size=512,offset=512): f32[128]{0}\n"
                               " value: <6 z @0> (size=256,offset=1024): f32[64]{0}\n"
                               "\nTotal bytes used: 1360 (1.33KiB)\n\nUsed values:\n<3 x @0>\n positions:\n  x\n\n\n"
                               "HloLiveRange (max 4):\n"
                               "  InstructionSequence:\n    0:a.1\n    1:x\n    2:y\n    3:r\n"
                               "  BufferLiveRange:\n"
                               "    a.1{}:0-4\n    c{}:0-2\n    x{}:1-2\n    y{1,0}:2-3\n    y2{}:3-3\n"
                               "    z{}:3-3\n    r{}:3-4\n"
                               "  Live ranges at 2 (peak):\n    x: 512 bytes\n";

static const char somas_text[] =
    "All Parameters:\n\nindex:\tsize:\tsource node name:\tnode out index:\n%0P\t#40S\tfc.weight\t0\n"
    "\n\nAll Tensors:\n\n"
    "index:\taligned_size:\toriginal_size:\toffset:\ttype:\tlifelong:\tlife_start:\tlife_end:\tsource node name:\n"
    "%0T\t#512S\t#40S\t&0\tCommon\tLifeLongNone\t0\t1\tAdd-op0\n"
    "%1T\t#512S\t#40S\t&0\tUnion\tLifeLongGraphEnd\t1\t2\tAdd-op1\n"
    "%2T\t#1024S\t#40S\t&1024\tCommon\tLifeLongNone\t1\t2\tSub-op2\n"
    "%3T\t#512S\t#40S\t&1536\tWorkspace\tLifeLongNone\t2\t2\tSub-op2\n"
    "%9CT\t#0S\t#0S\t&0\tControl\tLifeLongNone\t0\t1\tAdd-op0\n"
    "\n\nAll Nodes:\n\n"
    "$0\tAdd-op0\t0\tinputs[%0P, ]\toutputs[%0T, ]\tworkspace[]\tctrl_inputs[]\tctrl_outputs[]\tstreamID[@7]\n"
    "$1\tAdd-op1\t0\tinputs[%0T, ]\toutputs[%1T, ]\tworkspace[]\tctrl_inputs[]\tctrl_outputs[]\tstreamID[@7]\n"
    "$2\tSub-op2\t0\tinputs[%1T, ]\toutputs[%2T, ]\tworkspace[%3T, ]\tctrl_inputs[]\tctrl_outputs[]\tstreamID[@7]\n"
    "\n\nAll Union Tensors Info:\n\nunion tensors: [%0T %1T ]\n"
    "\n\nAll Original Contiguous Tensors Info:\n\ncontiguous tensors: [%2T %3T ]\n"
    "\n\nAll Processed Contiguous Tensors Info:\n\ncontiguous tensors: [%2T %3T ]\n"
    "\n\nAll Stream Groups:\n\nstm7 \n\n\nAll Merged Blocks:\n\nstart_offset:\tsize:\n0\t2048\n"
    "\nTotal Memory Size after reused:2048";

static tide_status read_text(const char *text, size_t len, tide_lifetimes *lt, tide_error *err) {
    return tide_lifetimes_from_format(tide_list_look(text, len), text, len, "dir/net.x.txt", lt, err);
}

static const tide_lifetime *item_of(const tide_lifetimes *lt, const char *name) {
    for (size_t i = 0; i < lt->n; i++) {
        if (strcmp(lt->items[i].name, name) == 0) return &lt->items[i];
    }
    fail_msg("no item '%s'", name);
    return NULL;
}

static void assert_item(const tide_lifetimes *lt, const char *name, uint64_t bytes, int64_t begin, int64_t end,
                        tide_role role, bool persistent) {
    const tide_lifetime *item = item_of(lt, name);
    assert_int_equal(item->size_bytes, bytes);
    assert_int_equal(item->begin_step, begin);
    assert_int_equal(item->end_step, end);
    assert_int_equal(item->role, role);
    assert_int_equal(item->persistent, persistent);
    assert_true(item->unrounded);
}

static void a_text_of_xla(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(read_text(xla_text, sizeof xla_text - 1, &lt, &err), &err);
    assert_string_equal(lt.model, "net.x");
    assert_int_equal(lt.n, 7);
    assert_int_equal(lt.n_steps, 5);
    assert_int_equal(lt.n_step_names, 5);
    assert_string_equal(lt.step_names[2], "y");
    assert_int_equal(lt.given_plan_bytes, 1280);
    assert_item(&lt, "x", 512, 1, 3, TIDE_ROLE_INTERMEDIATE, false);
    assert_item(&lt, "y{1,0}", 512, 2, 4, TIDE_ROLE_INTERMEDIATE, false);
    assert_item(&lt, "a.1", 64, 0, 5, TIDE_ROLE_INPUT, true);
    assert_item(&lt, "r", 8, 0, 5, TIDE_ROLE_OUTPUT, true);
    assert_item(&lt, "c", 4, 0, 5, TIDE_ROLE_WEIGHT, true);
    assert_int_equal(item_of(&lt, "x")->align_bytes, 256);
    assert_int_equal(item_of(&lt, "x")->alias, TIDE_ALIAS_NONE);
    const tide_lifetime *y2 = item_of(&lt, "y2"); // overwrites what it reads
    assert_int_equal(y2->alias, TIDE_ALIAS_GIVEN);
    assert_string_equal(lt.items[y2->alias_of].name, "y{1,0}");
    assert_int_equal(y2->alias_offset_bytes, 0);
    tide_lifetimes_deinit(&lt);
}

static void a_text_of_somas(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(read_text(somas_text, sizeof somas_text - 1, &lt, &err), &err);
    assert_int_equal(lt.n, 6);
    assert_int_equal(lt.n_steps, 3);
    assert_int_equal(lt.given_plan_bytes, 2048);
    assert_item(&lt, "%0T Add-op0", 512, 0, 2, TIDE_ROLE_INTERMEDIATE, false);
    assert_item(&lt, "%1T Add-op1", 512, 1, 3, TIDE_ROLE_INTERMEDIATE, false);
    assert_item(&lt, "%3T Sub-op2", 512, 2, 3, TIDE_ROLE_SCRATCH, false);
    assert_item(&lt, "%0P fc.weight", 40, 0, 3, TIDE_ROLE_WEIGHT, true);
    assert_int_equal(item_of(&lt, "%1T Add-op1")->alias, TIDE_ALIAS_GIVEN);
    // 512 bytes are left free before the first of the two, which are in its 1024
    assert_item(&lt, "(together 0)", 1536, 2, 3, TIDE_ROLE_INTERMEDIATE, false);
    assert_int_equal(item_of(&lt, "%2T Sub-op2")->alias, TIDE_ALIAS_PART);
    assert_int_equal(item_of(&lt, "%2T Sub-op2")->alias_offset_bytes, 0);
    assert_int_equal(item_of(&lt, "%3T Sub-op2")->alias_offset_bytes, 1024);
    tide_lifetimes_deinit(&lt);
}

/// No part of a text is taken for all of it.
static void cut_at_every_byte(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t len, whole; // from where on nothing is missing
    } cases[] = {{xla_text, sizeof xla_text - 1, 0}, {somas_text, sizeof somas_text - 1, sizeof somas_text - 1}};
    for (size_t k = 0; k < 2; k++) {
        const char *end = strstr(cases[k].text, "  Live ranges at ");
        const size_t whole = end != NULL ? (size_t)(end - cases[k].text) + strlen("  Live ranges at ") : cases[k].whole;
        for (size_t n = 1; n < cases[k].len; n++) {
            char *part = tide_host_strndup(cases[k].text, n); // so that ASan sees what is read behind it
            tide_lifetimes lt = {0};
            tide_error err = TIDE_ERROR_INIT;
            const bool known = tide_list_look(part, n) != TIDE_LIST_UNKNOWN;
            assert_true(known || n < 40);
            const tide_status st = known ? read_text(part, n, &lt, &err) : TIDE_ERR_BAD_INPUT;
            if ((st == TIDE_OK) != (n >= whole) || (st != TIDE_OK && st != TIDE_ERR_BAD_INPUT))
                fail_msg("case %zu cut at %zu of %zu: %s, %s", k, n, whole, tide_status_name(st), err.msg);
            tide_lifetimes_deinit(&lt);
            tide_host_free(part);
        }
    }
}

/// Whatever stands in a text: it is refused with its place, or a plan can be made of it.
static void bytes_changed_at_random(void **state) {
    (void)state;
    static const char letters[] = "0123456789{}[]<>()%#&:@,.- \n\t\0\xff|PTS";
    tide_rng rng = {.state = 20};
    const char *texts[] = {xla_text, somas_text};
    const size_t sizes[] = {sizeof xla_text - 1, sizeof somas_text - 1};
    for (int round = 0, n = tide_test_rounds(4000, 400000); round < n; round++) {
        const size_t k = (size_t)round % 2;
        char *text = tide_host_strndup(texts[k], sizes[k]);
        for (uint64_t i = 0, changes = 1 + tide_rng_below(&rng, 4); i < changes; i++)
            text[40 + tide_rng_below(&rng, sizes[k] - 40)] = letters[tide_rng_below(&rng, sizeof letters - 1)];
        tide_lifetimes lt = {0};
        tide_error err = TIDE_ERROR_INIT;
        tide_memory_plan *plan = NULL;
        const tide_status st = read_text(text, sizes[k], &lt, &err);
        if (st != TIDE_OK) {
            assert_tide_status(st, TIDE_ERR_BAD_INPUT);
            assert_true(err.where[0] != '\0');
        } else {
            const tide_strategy *strategy = NULL;
            assert_tide_ok(tide_strategy_find("greedy_by_size", &strategy, &err), &err);
            assert_tide_ok(tide_plan_make(&lt, strategy, NULL, &plan, &err), &err);
            tide_memory_plan_destroy(plan);
        }
        tide_lifetimes_deinit(&lt);
        tide_host_free(text);
    }
}

static void memory_that_runs_out(void **state) {
    (void)state;
    const char *texts[] = {xla_text, somas_text};
    for (size_t k = 0; k < 2; k++) {
        for (int64_t n = 0;; n++) {
            tide_lifetimes lt = {0};
            tide_error err = TIDE_ERROR_INIT;
            tide_host_fail_after(n);
            const tide_status st = read_text(texts[k], strlen(texts[k]), &lt, &err);
            tide_host_fail_after(-1);
            tide_lifetimes_deinit(&lt);
            if (st == TIDE_OK) break;
            assert_tide_status(st, TIDE_ERR_NOMEM);
            assert_true(n < 1000);
        }
    }
}

static void what_is_none(void **state) {
    (void)state;
    static const char *const texts[] = {
        "",           "B",           "BufferAssignment", "bufferassignment:", "id,lower,upper,size\n", "All Tensors:",
        "{\"a\": 1}", "HloModule x", "\xEF\xBB\xBF"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_int_equal(tide_list_look(texts[i], strlen(texts[i])), TIDE_LIST_UNKNOWN);
    assert_int_equal(tide_list_look("\xEF\xBB\xBF\n BufferAssignment:", 22), TIDE_LIST_XLA);
    tide_lifetimes lt = {0};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_lifetimes_from_format(TIDE_LIST_UNKNOWN, "", 0, "x", &lt, &err), TIDE_ERR_BAD_INPUT);
}

int main(void) {
    const struct CMUnitTest tests[] = {tide_unit_test(a_text_of_xla),        tide_unit_test(a_text_of_somas),
                                       tide_unit_test(cut_at_every_byte),    tide_unit_test(bytes_changed_at_random),
                                       tide_unit_test(memory_that_runs_out), tide_unit_test(what_is_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
