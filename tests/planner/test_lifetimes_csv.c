// SPDX-License-Identifier: MIT
//
// planner/lifetimes_csv: MiniMalloc's form, and what is refused.
#include "tests/planner/plan_test.h"

static tide_status read_text(const char *text, tide_lifetimes *lt, tide_error *err) {
    return tide_lifetimes_from_csv(text, strlen(text), "dir/list.csv", 16, lt, err);
}

static void the_usual_form(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(read_text("id,lower,upper,size\nb1,0,3,40\nb 2,1,7,0\n", &lt, &err), &err);
    assert_int_equal(lt.n, 2);
    assert_int_equal(lt.n_steps, 7);
    assert_string_equal(lt.model, "list");
    const tide_lifetime *x = &lt.items[0];
    assert_string_equal(x->name, "b1");
    assert_int_equal(x->begin_step, 0);
    assert_int_equal(x->end_step, 3);
    assert_int_equal(x->size_bytes, 40);
    assert_int_equal(x->align_bytes, 16);
    assert_int_equal(x->kind, TIDE_KIND_WORKSPACE);
    assert_int_equal(x->role, TIDE_ROLE_INTERMEDIATE);
    assert_false(x->persistent);
    assert_int_equal(x->node, TIDE_NO_INDEX);
    assert_string_equal(lt.items[1].name, "b 2");
    tide_lifetimes_deinit(&lt);
}

static void forms_that_mean_the_same(void **state) {
    (void)state;
    static const char *const same[] = {
        "id,lower,upper,size,alignment\nx,2,5,40,8\n",
        "size,alignment,upper,buffer,begin\n40,8,5,x,2\n",
        "buffer_id,start,end,size,alignment\nx,2,4,40,8\n", // end is the last step
        "\xEF\xBB\xBFid,lower,upper,size,alignment\r\nx,2,5,40,8\r\n",
        "id , lower,\tupper,size,alignment\n  x ,2 , 5,40, 8",
        "id,lower,upper,size,alignment,hint,gaps,offset\n\nx,2,5,40,8,-1,,\n\n",
    };
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        tide_lifetimes lt = {0};
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(read_text(same[i], &lt, &err), &err);
        assert_int_equal(lt.n, 1);
        assert_string_equal(lt.items[0].name, "x");
        assert_int_equal(lt.items[0].begin_step, 2);
        assert_int_equal(lt.items[0].end_step, 5);
        assert_int_equal(lt.items[0].size_bytes, 40);
        assert_int_equal(lt.items[0].align_bytes, 8);
        tide_lifetimes_deinit(&lt);
    }
}

#define HEAD "id,lower,upper,size\n"

static const struct {
    const char *text;
    const char *words;
    const char *where;
} refusals[] = {
    {"", "empty", "dir/list.csv:0:1"},
    {"\n", "no column ''", "dir/list.csv:1:1"},
    {HEAD, "no buffer", "dir/list.csv:1:1"},
    {"id,lower,upper\n", "'size' is missing", "dir/list.csv:1:1"},
    {"lower,upper,size\n", "'id' is missing", "dir/list.csv:1:1"},
    {"id,upper,size\n", "'lower' is missing", "dir/list.csv:1:1"},
    {"id,lower,size\n", "'upper' is missing", "dir/list.csv:1:1"},
    {"id,lower,upper,end,size\n", "both 'upper' and 'end'", "dir/list.csv:1:1"},
    {"id,lower,upper,size,size\n", "twice", "dir/list.csv:1:21"},
    {"id,lower,begin,upper,size\n", "twice", "dir/list.csv:1:10"},
    {"id,lower,upper,size,colour\n", "'colour'", "dir/list.csv:1:21"},
    {"id,lower,upper,bytes\n", "'bytes'", "dir/list.csv:1:16"},
    {"a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a\n", "more than", "dir/list.csv:1:19"},
    {HEAD "x,0,1\n", "3 fields, the head line 4", "dir/list.csv:2:1"},
    {HEAD "x,0,1,2,3\n", "5 fields", "dir/list.csv:2:1"},
    {HEAD "x,0,1,2\nx,1,2,3\n", "line 2 has it too", "dir/list.csv:3:1"},
    {HEAD ",0,1,2\n", "id is missing", "dir/list.csv:2:1"},
    {HEAD "\"x\",0,1,2\n", "quoted", "dir/list.csv:2:1"},
    {HEAD "x,zero,1,2\n", "'zero'", "dir/list.csv:2:3"},
    {HEAD "x,0,1.5,2\n", "'1.5'", "dir/list.csv:2:5"},
    {HEAD "x,0,1,2e3\n", "'2e3'", "dir/list.csv:2:7"},
    {HEAD "x,0,1,\n", "the size is missing", "dir/list.csv:2:7"},
    {HEAD "x,0,1,-\n", "the size is missing", "dir/list.csv:2:7"},
    {HEAD "x,0,1,-5\n", "-5", "dir/list.csv:2:7"},
    {HEAD "x,-1,1,5\n", "-1", "dir/list.csv:2:3"},
    {HEAD "x,3,3,5\n", "begin < end", "dir/list.csv:2:1"},
    {HEAD "x,3,2,5\n", "begin < end", "dir/list.csv:2:1"},
    {HEAD "x,0,1,9223372036854775807\n", "rounded up", "dir/list.csv:2:1"},
    {HEAD "x,0,1,9223372036854775808\n", "2^63", "dir/list.csv:2:7"},
    {HEAD "x,0,99999999999999999999,1\n", "2^63", "dir/list.csv:2:5"},
    {"id,start,end,size\nx,0,9223372036854775807,1\n", "2^63", "dir/list.csv:2:5"},
    {"id,lower,upper,size,alignment\nx,0,1,2,0\n", "power of two", "dir/list.csv:2:9"},
    {"id,lower,upper,size,alignment\nx,0,1,2,3\n", "power of two", "dir/list.csv:2:9"},
    {"id,lower,upper,size,gaps\nx,0,9,2,3-4\n", "gaps", "dir/list.csv:2:9"},
    {"id,lower,upper,size,offset\nx,0,9,2,64\n", "offsets", "dir/list.csv:2:9"},
};

static void bad_lists_are_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        tide_lifetimes lt = {0};
        tide_error err = TIDE_ERROR_INIT;
        const tide_status st = read_text(refusals[i].text, &lt, &err);
        if (st != TIDE_ERR_BAD_INPUT) fail_msg("'%s': %s", refusals[i].text, tide_status_name(st));
        assert_text_has(err.msg, refusals[i].words);
        assert_string_equal(err.where, refusals[i].where);
        assert_int_equal(lt.n, 0);
        assert_tide_status(read_text(refusals[i].text, &lt, NULL), TIDE_ERR_BAD_INPUT);
    }
    static const char zero_byte[] = HEAD "x\0y,0,1,2\n";
    tide_lifetimes lt = {0};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_lifetimes_from_csv(zero_byte, sizeof zero_byte - 1, "z", 1, &lt, &err), TIDE_ERR_BAD_INPUT);
    assert_text_has(err.msg, "zero byte");
    assert_tide_status(tide_lifetimes_from_csv(HEAD, strlen(HEAD), "z", 24, &lt, &err), TIDE_ERR_INVALID);
}

/// Any bytes: an answer, no crash, no leak.
static void bytes_by_chance(void **state) {
    (void)state;
    static const char letters[] = "id,lowerupsz0129-\n\r\"\t \xEF";
    tide_rng rng = {77};
    for (int run = 0; run < 5000; run++) {
        char text[128] = HEAD;
        size_t len = tide_rng_below(&rng, 2) == 0 ? 0 : strlen(text);
        const size_t n = tide_rng_below(&rng, sizeof text - len);
        for (size_t i = 0; i < n; i++) text[len++] = letters[tide_rng_below(&rng, sizeof letters)];
        tide_lifetimes lt = {0};
        if (tide_lifetimes_from_csv(text, len, "r", 1, &lt, NULL) == TIDE_OK) assert_true(lt.n > 0);
        tide_lifetimes_deinit(&lt);
    }
}

static void no_memory_leaves_nothing(void **state) {
    (void)state;
    tide_status st = TIDE_ERR_NOMEM;
    int64_t n = 0;
    for (; st != TIDE_OK; n++) {
        tide_host_stats before, after;
        tide_lifetimes lt = {0};
        tide_host_get_stats(&before);
        tide_host_fail_after(n);
        st = read_text(HEAD "x,0,1,2\ny,1,2,3\n", &lt, NULL);
        tide_host_fail_after(-1);
        tide_lifetimes_deinit(&lt);
        tide_host_get_stats(&after);
        assert_int_equal(before.n_live, after.n_live);
        if (st != TIDE_OK) assert_tide_status(st, TIDE_ERR_NOMEM);
    }
    assert_true(n > 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(the_usual_form),           tide_unit_test(forms_that_mean_the_same),
        tide_unit_test(bad_lists_are_refused),    tide_unit_test(bytes_by_chance),
        tide_unit_test(no_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
