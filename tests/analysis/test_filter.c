// SPDX-License-Identifier: MIT
//
// Filters as text: what is understood, in which one form it is given back, what is refused and where.
#include "tests/tide_test.h"

#include "analysis/rows.h"
#include "core/base/text.h"

static void in_one_form(void **state) {
    (void)state;
    static const struct {
        const char *text, *form;
        tide_axis axis;
    } cases[] = {
        {"", "", TIDE_AXIS_STEPS},
        {"  conv   !relu\t", "conv !relu", TIDE_AXIS_STEPS},
        {"\"two words\" !\"a=b\"", "\"two words\" !\"a=b\"", TIDE_AXIS_STEPS},
        {"\"conv\" \"leaked\"", "conv \"leaked\"", TIDE_AXIS_STEPS},
        {"NAME~^conv[0-9]+$ !owner~\"a b\"", "name~^conv[0-9]+$ !owner~\"a b\"", TIDE_AXIS_STEPS},
        {"kind=Workspace,default role!=weight", "kind=Workspace,default role!=weight", TIDE_AXIS_STEPS},
        {"size>=1MiB size<4k", "size>=1MiB size<4k", TIDE_AXIS_STEPS},
        {"life>10 begin<=3 end!=7", "life>10 begin<=3 end!=7", TIDE_AXIS_STEPS},
        {"life<=1.5ms begin>2s end>0 alive@10us", "life<=1.5ms begin>2s end>0 alive@10us", TIDE_AXIS_NS},
        {"alive@peak alive@CURSOR alive@4", "alive@peak alive@CURSOR alive@4", TIDE_AXIS_STEPS},
        {"leaked !ALIAS planned persistent", "leaked !alias planned persistent", TIDE_AXIS_STEPS},
        {"exec=0 !exec=12", "exec=0 !exec=12", TIDE_AXIS_NS},
        {"top=100 fill=scratch,kvcache", "top=100 fill=scratch,kvcache", TIDE_AXIS_STEPS},
        {"device=cpu,cuda:1 allocator!=arena", "device=cpu,cuda:1 allocator!=arena", TIDE_AXIS_STEPS},
        {"user@host /a/b.c conv1_out", "user@host /a/b.c conv1_out", TIDE_AXIS_STEPS},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tide_filter *f = NULL, *again = NULL;
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(tide_filter_parse(cases[i].text, cases[i].axis, &f, &err), &err);
        assert_string_equal(tide_filter_text(f), cases[i].form);
        assert_tide_ok(tide_filter_parse(tide_filter_text(f), cases[i].axis, &again, &err), &err);
        assert_string_equal(tide_filter_text(again), cases[i].form);
        tide_filter_destroy(f);
        tide_filter_destroy(again);
    }
    tide_filter_destroy(NULL);
}

static void refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *where, *msg, *hint;
        tide_axis axis;
    } cases[] = {
        {"conv sise>4k", "character 6", "there is no condition 'sise'", "did you mean 'size'?", TIDE_AXIS_STEPS},
        {"a foo=3", "character 3", "there is no condition 'foo'", "put it in quotes", TIDE_AXIS_STEPS},
        {"kind=Worksapce", "character 6", "there is no kind 'Worksapce'", "did you mean 'Workspace'?", TIDE_AXIS_STEPS},
        {"kind=Default,Worksapce", "character 14", "there is no kind 'Worksapce'", "Workspace", TIDE_AXIS_STEPS},
        {"role=wait", "character 6", "there is no role 'wait'", "", TIDE_AXIS_STEPS},
        {"fill=scratsh", "character 6", "there is no fill 'scratsh'", "did you mean 'scratch'?", TIDE_AXIS_STEPS},
        {"exec=-1", "character 6", "a number from 0 on", "", TIDE_AXIS_NS},
        {"exec>1", "character 5", "behind 'exec' goes =", "", TIDE_AXIS_NS},
        {"size>", "character 6", "a value is missing", "", TIDE_AXIS_STEPS},
        {"size>>3", "character 6", "a size is expected", "", TIDE_AXIS_STEPS},
        {"size~3", "character 5", "behind 'size' goes", "", TIDE_AXIS_STEPS},
        {"name=a", "character 5", "behind 'name' goes ~", "", TIDE_AXIS_STEPS},
        {"name~a(", "character 6", "cannot read the expression 'a('", "", TIDE_AXIS_STEPS},
        {"\"abc", "character 1", "no partner", "", TIDE_AXIS_STEPS},
        {"\"abc\"d", "character 6", "a blank is expected", "", TIDE_AXIS_STEPS},
        {"ab\"c", "character 3", "a quotation mark goes", "", TIDE_AXIS_STEPS},
        {"a !", "character 4", "a word is expected", "", TIDE_AXIS_STEPS},
        {"life>1ms", "character 6", "a number of steps", "", TIDE_AXIS_STEPS},
        {"life>10", "character 6", "a time with its unit", "", TIDE_AXIS_NS},
        {"life>10fs", "character 6", "a time with its unit", "", TIDE_AXIS_NS},
        {"alive@paek", "character 7", "there is no moment 'paek'", "did you mean 'peak'?", TIDE_AXIS_STEPS},
        {"alife@peak", "character 1", "there is no condition 'alife'", "did you mean", TIDE_AXIS_STEPS},
        {"top=0", "character 5", "a number from 1 on", "", TIDE_AXIS_STEPS},
        {"!top=4", "character 2", "cannot be turned round", "", TIDE_AXIS_STEPS},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tide_filter *f = NULL;
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_status(tide_filter_parse(cases[i].text, cases[i].axis, &f, &err), TIDE_ERR_INVALID);
        assert_null(f);
        assert_text_has(err.msg, cases[i].msg);
        assert_text_has(err.where, cases[i].where);
        assert_int_equal(strlen(err.where), strlen(cases[i].where));
        assert_text_has(err.hint, cases[i].hint);
    }
}

/// Every number of allocations that may succeed: a clean failure or all of it.
static void without_memory(void **state) {
    (void)state;
    const char *text = "conv name~a.*b kind=Workspace,Default device=cpu size>=4k life>2 alive@peak top=5 !leaked";
    for (int64_t n = 0;; n++) {
        tide_filter *f = NULL;
        tide_error err = TIDE_ERROR_INIT;
        tide_host_fail_after(n);
        const tide_status st = tide_filter_parse(text, TIDE_AXIS_STEPS, &f, &err);
        tide_host_fail_after(-1);
        if (st == TIDE_OK) {
            tide_filter_destroy(f);
            assert_true(n > 5);
            return;
        }
        assert_int_equal(st, TIDE_ERR_NOMEM);
    }
}

/// Random bytes of the alphabet of filters: understood or refused, never anything else.
static void any_text(void **state) {
    (void)state;
    static const char alphabet[] = "aeivlk=<>!~@\"(,. 0149ms[*\\size";
    tide_rng rng = {42};
    for (int i = 0; i < 20000; i++) {
        char text[24];
        const size_t n = (size_t)tide_rng_below(&rng, sizeof text - 1);
        for (size_t k = 0; k < n; k++) text[k] = alphabet[tide_rng_below(&rng, sizeof alphabet - 1)];
        text[n] = '\0';
        tide_filter *f = NULL, *again = NULL;
        tide_error err = TIDE_ERROR_INIT;
        const tide_status st = tide_filter_parse(text, i % 2 == 0 ? TIDE_AXIS_NS : TIDE_AXIS_STEPS, &f, &err);
        if (st != TIDE_OK) {
            assert_int_equal(st, TIDE_ERR_INVALID);
            assert_true(err.where[0] != '\0');
            continue;
        }
        assert_tide_ok(
            tide_filter_parse(tide_filter_text(f), i % 2 == 0 ? TIDE_AXIS_NS : TIDE_AXIS_STEPS, &again, &err), &err);
        assert_string_equal(tide_filter_text(f), tide_filter_text(again));
        tide_filter_destroy(f);
        tide_filter_destroy(again);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_one_form),
        cmocka_unit_test(refused),
        cmocka_unit_test(without_memory),
        cmocka_unit_test(any_text),
    };
    return cmocka_run_group_tests_name("filter", tests, NULL, NULL);
}
