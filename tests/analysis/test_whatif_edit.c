// SPDX-License-Identifier: MIT
//
// Edits as text: what is read, what is refused and where, and that text and edit come back from each other.
#include "analysis/whatif.h"
#include "core/base/text.h"
#include "tests/tide_test.h"

static tide_edit parsed(const char *text) {
    tide_error err = TIDE_ERROR_INIT;
    tide_edit edit;
    assert_tide_ok(tide_edit_parse(text, &edit, &err), &err);
    return edit;
}

static void assert_same_edit(const tide_edit *a, const tide_edit *b) {
    assert_int_equal(a->kind, b->kind);
    assert_string_equal(a->item, b->item);
    assert_string_equal(a->other, b->other);
    assert_int_equal(a->step, b->step);
    assert_int_equal(a->bytes, b->bytes);
    assert_string_equal(a->text, b->text);
}

/// What `text` is printed as.
static void assert_prints(const char *text, const char *want) {
    const tide_edit edit = parsed(text);
    tide_text out = {0};
    tide_edit_print(&edit, &out);
    assert_string_equal(tide_text_str(&out), want);
    const tide_edit again = parsed(tide_text_str(&out));
    assert_same_edit(&edit, &again);
    tide_text_deinit(&out);
}

static void every_form(void **state) {
    (void)state;
    assert_prints("free-earlier relu1_out", "free-earlier relu1_out");
    assert_prints("  free-earlier\trelu1_out   5 ", "free-earlier relu1_out 5");
    assert_prints("free-earlier relu1_out 0", "free-earlier relu1_out");
    assert_prints("in-place a b", "in-place a b");
    assert_prints("recompute a", "recompute a");
    assert_prints("align 64", "align 64");
    assert_prints("align 4KiB", "align 4096");
    assert_prints("align 64 32", "align 64 32"); // a tensor of the name "64"
    assert_prints("pin a 1.5KiB", "pin a 1536");
    assert_prints("unpin a", "unpin a");
    assert_prints("half a", "half a");
    assert_prints("gone a", "gone a");
    assert_prints("strategy greedy_by_size", "strategy greedy_by_size");
    assert_prints("pass order", "pass order");
    assert_prints("pass -in-place", "pass -in-place");
    assert_prints("extent x=8x3x224x224", "extent x=8x3x224x224");
    assert_prints("extent \"my input=8x3\"", "extent \"my input=8x3\"");
    assert_prints("batch 8", "batch 8");
    assert_prints("gone \"two words\"", "gone \"two words\"");
    assert_prints("gone \"a \\\"b\\\" \\\\\"", "gone \"a \\\"b\\\" \\\\\"");
    assert_prints("gone back\\slash", "gone back\\slash");
}

static void fields(void **state) {
    (void)state;
    const tide_edit a = parsed("in-place relu1_out conv1_out"), b = parsed("free-earlier t 7"), c = parsed("align t 8");
    assert_int_equal(a.kind, TIDE_EDIT_IN_PLACE);
    assert_string_equal(a.item, "relu1_out");
    assert_string_equal(a.other, "conv1_out");
    assert_int_equal(b.step, 7);
    assert_int_equal(c.bytes, 8);
    assert_string_equal(c.item, "t");
    assert_string_equal(parsed("align 8").item, "");
    assert_int_equal(parsed("batch 12").bytes, 12);
}

static void names_and_usages(void **state) {
    (void)state;
    for (int k = 0; k < TIDE_N_EDITS; k++) {
        const char *name = tide_edit_name((tide_edit_kind)k), *usage = tide_edit_usage((tide_edit_kind)k);
        assert_int_equal(strncmp(usage, name, strlen(name)), 0);
        assert_int_equal(usage[strlen(name)], ' ');
    }
    assert_string_equal(tide_edit_name((tide_edit_kind)99), "edit ?");
}

static void assert_refused(const char *text, const char *where, const char *message, const char *hint) {
    tide_error err = TIDE_ERROR_INIT;
    tide_edit edit = {.step = 77};
    assert_tide_status(tide_edit_parse(text, &edit, &err), TIDE_ERR_INVALID);
    assert_int_equal(edit.step, 77);
    assert_text_has(err.msg, message);
    assert_text_has(err.where, where);
    assert_text_has(err.hint, hint);
    assert_tide_status(tide_edit_parse(text, &edit, NULL), TIDE_ERR_INVALID);
}

static void refusals(void **state) {
    (void)state;
    assert_refused("", "character 1", "there is no edit ''", "");
    assert_refused("in-plaec a b", "character 1", "there is no edit 'in-plaec'", "did you mean 'in-place'?");
    assert_refused("  frobnicate a", "character 3", "no edit", "");
    assert_refused("in-place a", "character 11", "missing", "usage: in-place TENSOR OTHER");
    assert_refused("gone a b", "", "too many", "usage: gone TENSOR");
    assert_refused("gone a b c d", "character 12", "more than any edit", "");
    assert_refused("free-earlier a x", "character 16", "whole number", "");
    assert_refused("free-earlier a -1", "character 16", "whole number", "");
    assert_refused("free-earlier a 9223372036854775808", "character 16", "whole number", "");
    assert_refused("align 48", "character 7", "power of two", "");
    assert_refused("align 0", "character 7", "power of two", "");
    assert_refused("align many", "character 7", "want bytes", "");
    assert_refused("pin a 9223372036854775808", "character 7", "2^63", "");
    assert_refused("batch 0", "character 7", "too small", "");
    assert_refused("gone \"a", "character 6", "not closed", "");
    assert_refused("gone \"a\"b", "character 9", "blank", "");
    assert_refused("gone \"\"", "character 6", "name of a tensor", "");
    assert_refused("strategy greedy_by_sise", "character 10", "greedy_by_sise", "greedy_by_size");
    assert_refused("pass -ordre", "character 6", "ordre", "order");
    assert_refused("extent x", "character 8", "INPUT=DIMS", "");
    assert_refused("extent =3", "character 8", "INPUT=DIMS", "");
}

static void long_names(void **state) {
    (void)state;
    char text[400] = "gone ";
    memset(text + 5, 'n', 255);
    assert_int_equal(strlen(parsed(text).item), 255);
    text[5 + 255] = 'n';
    assert_refused(text, "character 6", "longer than 255 bytes", "");
    char extent[400] = "extent x=";
    memset(extent + 9, '1', 130);
    assert_refused(extent, "character 8", "longer than 127 bytes", "");
}

// ---- by chance ----

static void random_word(tide_rng *rng, char *out, size_t max) {
    static const char letters[] = "ab/.:_-19 \t\"\\\n=\xC3\xA9";
    const size_t n = 1 + tide_rng_below(rng, max);
    for (size_t i = 0; i < n; i++) out[i] = letters[tide_rng_below(rng, sizeof letters - 1)];
    out[n] = '\0';
}

static tide_edit random_edit(tide_rng *rng) {
    tide_edit e = {.kind = (tide_edit_kind)tide_rng_below(rng, TIDE_N_EDITS)};
    const tide_strategy *const *strategies;
    const size_t n = tide_strategies(&strategies);
    switch (e.kind) {
    case TIDE_EDIT_STRATEGY:
        snprintf(e.text, sizeof e.text, "%s", strategies[tide_rng_below(rng, n)]->name);
        return e;
    case TIDE_EDIT_PASS:
        snprintf(e.text, sizeof e.text, "%s%s", tide_rng_below(rng, 2) ? "-" : "",
                 tide_rng_below(rng, 2) ? "order" : "in-place");
        return e;
    case TIDE_EDIT_EXTENT:
        random_word(rng, e.text, 100);
        strncat(e.text, "=1x2", sizeof e.text - strlen(e.text) - 1);
        return e;
    case TIDE_EDIT_BATCH:
        e.bytes = 1 + (tide_rng_u64(rng) >> (1 + tide_rng_below(rng, 60)));
        return e;
    default:
        break;
    }
    if (e.kind != TIDE_EDIT_ALIGN || tide_rng_below(rng, 2)) random_word(rng, e.item, sizeof e.item - 1);
    if (e.kind == TIDE_EDIT_IN_PLACE) random_word(rng, e.other, 40);
    if (e.kind == TIDE_EDIT_ALIGN) e.bytes = UINT64_C(1) << tide_rng_below(rng, 63);
    if (e.kind == TIDE_EDIT_PIN) e.bytes = tide_rng_u64(rng) >> (1 + tide_rng_below(rng, 60));
    if (e.kind == TIDE_EDIT_FREE_EARLIER) e.step = (int64_t)(tide_rng_u64(rng) >> (1 + tide_rng_below(rng, 63)));
    return e;
}

static void any_edit_comes_back(void **state) {
    (void)state;
    tide_rng rng = {11};
    for (int round = 0; round < 20000; round++) {
        const tide_edit edit = random_edit(&rng);
        tide_text text = {0};
        tide_error err = TIDE_ERROR_INIT;
        tide_edit back;
        tide_edit_print(&edit, &text);
        if (tide_edit_parse(tide_text_str(&text), &back, &err) != TIDE_OK)
            fail_msg("round %d: [%s]: %s [%s]", round, tide_text_str(&text), err.msg, err.where);
        assert_same_edit(&edit, &back);
        tide_text_deinit(&text);
    }
}

static void any_text_is_read_or_refused(void **state) {
    (void)state;
    tide_rng rng = {12};
    size_t n_read = 0;
    for (int round = 0; round < 50000; round++) {
        char text[700], word[300];
        tide_error err = TIDE_ERROR_INIT;
        tide_edit edit;
        const tide_edit_kind kind = (tide_edit_kind)tide_rng_below(&rng, TIDE_N_EDITS + 1);
        random_word(&rng, word, 20 + tide_rng_below(&rng, 270));
        snprintf(text, sizeof text, "%s%s%s", kind < TIDE_N_EDITS ? tide_edit_name(kind) : "",
                 tide_rng_below(&rng, 9) ? " " : "", word);
        const tide_status st = tide_edit_parse(text, &edit, &err);
        if (st != TIDE_OK) {
            assert_int_equal(st, TIDE_ERR_INVALID);
            assert_true(err.msg[0] != '\0');
            continue;
        }
        n_read++;
        tide_text again = {0};
        tide_edit back;
        tide_edit_print(&edit, &again);
        assert_tide_ok(tide_edit_parse(tide_text_str(&again), &back, &err), &err);
        assert_same_edit(&edit, &back);
        tide_text_deinit(&again);
    }
    assert_true(n_read > 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(every_form),
        tide_unit_test(fields),
        tide_unit_test(names_and_usages),
        tide_unit_test(refusals),
        tide_unit_test(long_names),
        tide_unit_test(any_edit_comes_back),
        tide_unit_test(any_text_is_read_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
