// SPDX-License-Identifier: MIT
//
// planner/lifetimes_csv: MiniMalloc's form with our columns, there and back, and what is refused.
#include "tests/planner/lifetimes_test.h"
#include "tests/planner/plan_test.h"

static tide_status read_text(const char *text, tide_lifetimes *lt, tide_error *err) {
    return tide_lifetimes_from_csv(text, strlen(text), "dir/list.csv", 0, lt, err);
}

static void read_ok(const char *text, tide_lifetimes *lt) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(read_text(text, lt, &err), &err);
}

static void the_usual_form(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    read_ok("id,lower,upper,size\nb1,0,3,40\nb 2,1,7,0\n", &lt);
    assert_int_equal(lt.n, 2);
    assert_int_equal(lt.n_steps, 7);
    assert_string_equal(lt.model, "list");
    const tide_lifetime *x = &lt.items[0];
    assert_string_equal(x->name, "b1");
    assert_int_equal(x->begin_step, 0);
    assert_int_equal(x->end_step, 3);
    assert_int_equal(x->size_bytes, 40);
    assert_int_equal(x->align_bytes, 1);
    assert_int_equal(x->kind, TIDE_KIND_WORKSPACE);
    assert_int_equal(x->role, TIDE_ROLE_INTERMEDIATE);
    assert_true(x->unrounded);
    assert_false(x->persistent);
    assert_int_equal(x->node, TIDE_NO_INDEX);
    assert_string_equal(lt.items[1].name, "b 2");
    tide_lifetimes_deinit(&lt);
}

/// Bytes count as they stand and alignments constrain offsets alone, unless an alignment is asked for.
static void rounding_is_asked_for(void **state) {
    (void)state;
    static const char text[] = "id,lower,upper,size,alignment,rounded\nx,0,1,40,,\ny,0,1,40,32,\nz,0,1,40,32,1\n"
                               "u,0,1,40,32,0\n";
    static const struct {
        uint64_t asked, want[4];
    } cases[] = {{0, {40, 40, 64, 40}}, {1, {40, 40, 64, 40}}, {16, {48, 64, 64, 40}}};
    for (size_t k = 0; k < 3; k++) {
        tide_lifetimes lt = {0};
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(tide_lifetimes_from_csv(text, sizeof text - 1, "l", cases[k].asked, &lt, &err), &err);
        for (size_t i = 0; i < 4; i++) assert_int_equal(tide_lifetime_aligned_bytes(&lt.items[i]), cases[k].want[i]);
        assert_int_equal(lt.items[0].align_bytes, cases[k].asked > 1 ? 16 : 1);
        tide_lifetimes_deinit(&lt);
    }
}

static void forms_that_mean_the_same(void **state) {
    (void)state;
    static const char *const same[] = {
        "id,lower,upper,size,alignment\nx,2,9,40,8\n",
        "size,alignment,upper,buffer,begin\n40,8,9,x,2\n",
        "buffer_id,start,end,size,alignment\nx,2,8,40,8\n", // end is the last step
        "\xEF\xBB\xBFid,lower,upper,size,alignment\r\nx,2,9,40,8\r\n",
        "id , lower,\tupper,size,alignment\n  x ,2 , 9,40, 8",
        "id,lower,upper,size,alignment,hint,gaps,offset\n\nx,2,9,40,8,-1,,\n\n",
        "id,lower,upper,size,alignment,hint\nx,2,9,40,8,64\n",
        "id,lower,upper,size,alignment,kind,device,role,persistent,alias,alias_kind,apart\n"
        "x,2,9,40,8,Workspace,cpu,intermediate,0,,,\n",
    };
    tide_lifetimes first = {0};
    read_ok(same[0], &first);
    assert_int_equal(first.items[0].begin_step, 2);
    assert_int_equal(first.items[0].end_step, 9);
    assert_int_equal(first.items[0].align_bytes, 8);
    for (size_t i = 1; i < sizeof same / sizeof same[0]; i++) {
        tide_lifetimes lt = {0};
        read_ok(same[i], &lt);
        assert_same_lifetimes(&first, &lt);
        tide_lifetimes_deinit(&lt);
    }
    tide_lifetimes_deinit(&first);
}

/// Gaps in any order; an inclusive end shifts theirs too.
static void gaps_and_offsets(void **state) {
    (void)state;
    static const char *const same[] = {
        "id,lower,upper,size,gaps,offset\nx,2,20,40,4-6 8-9@8:24 12-13@5:5,128\n",
        "id,lower,upper,size,gaps,offset\nx,2,20,40,  12-13@5:5 8-9@8:24\t4-6 ,128\n",
        "id,lower,end,size,gaps,offset\nx,2,19,40,4-5 8-8@8:24 12-12@5:5,128\n",
    };
    for (size_t k = 0; k < 3; k++) {
        tide_lifetimes lt = {0};
        read_ok(same[k], &lt);
        const tide_lifetime *x = &lt.items[0];
        assert_int_equal(x->end_step, 20);
        assert_true(x->fixed);
        assert_int_equal(x->fixed_offset_bytes, 128);
        assert_int_equal(x->n_gaps, 3);
        static const tide_gap want[] = {{4, 6, 0, 0}, {8, 9, 8, 24}, {12, 13, 5, 5}};
        for (size_t g = 0; g < 3; g++) {
            assert_int_equal(x->gaps[g].begin_step, want[g].begin_step);
            assert_int_equal(x->gaps[g].end_step, want[g].end_step);
            assert_int_equal(x->gaps[g].lo_bytes, want[g].lo_bytes);
            assert_int_equal(x->gaps[g].hi_bytes, want[g].hi_bytes);
        }
        tide_lifetimes_deinit(&lt);
    }
}

/// Aliases may come before what they lie in; an offset of theirs must be the one that follows.
static void aliases_and_sets(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    read_ok("id,lower,upper,size,alias,offset,apart\n"
            "v,3,5,10,part+4,,\n"
            "part,1,3,16,whole+32,160,\n"
            "whole,2,6,64,,128,left\n"
            "a+3,0,1,8,,,right\n"
            "w,0,1,8,a+3,,\n" // there is no 'a': the whole is the name
            "u,0,1,8,a+3+0,,\n"
            "x,7,8,1,,,left\n",
            &lt);
    uint64_t at;
    assert_int_equal(tide_lifetimes_root(&lt, 0, &at), 2);
    assert_int_equal(at, 36);
    assert_int_equal(lt.items[0].alias, TIDE_ALIAS_GIVEN);
    assert_int_equal(lt.items[4].alias_of, 3);
    assert_int_equal(lt.items[5].alias_of, 3);
    assert_false(lt.items[1].fixed);
    assert_int_equal(lt.items[2].apart_set, lt.items[6].apart_set);
    assert_int_not_equal(lt.items[2].apart_set, lt.items[3].apart_set);
    assert_int_equal(lt.items[0].apart_set, 0);
    tide_lifetimes_deinit(&lt);

    // Sets whose names are numbers keep them.
    read_ok("id,lower,upper,size,apart\nx,0,1,8,7\ny,0,1,8,3\n", &lt);
    assert_int_equal(lt.items[0].apart_set, 7);
    assert_int_equal(lt.items[1].apart_set, 3);
    tide_lifetimes_deinit(&lt);
}

static void persistent_kinds_and_devices(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    read_ok("id,lower,upper,size,persistent,kind,device,role\n"
            "x,0,9,8,1,,,input\nw,0,9,8,1,Persistent,,weight\nk,0,9,8,0,KVCache,cuda:1,\ns,0,1,8,,,,scratch\n",
            &lt);
    assert_int_equal(lt.items[0].kind, TIDE_KIND_DEFAULT);
    assert_true(lt.items[0].persistent);
    assert_int_equal(lt.items[1].kind, TIDE_KIND_PERSISTENT);
    assert_int_equal(lt.items[1].role, TIDE_ROLE_WEIGHT);
    assert_int_equal(lt.items[2].kind, TIDE_KIND_KV_CACHE);
    assert_int_equal(lt.items[2].device.index, 1);
    assert_int_equal(lt.items[3].kind, TIDE_KIND_WORKSPACE);
    assert_int_equal(lt.items[3].role, TIDE_ROLE_SCRATCH);
    tide_lifetimes_deinit(&lt);
}

// ---- there and back ----

/// CSV -> table -> CSV -> table, and the second text is the first.
static void assert_round_trip(const tide_lifetimes *lt) {
    tide_error err = TIDE_ERROR_INIT;
    tide_text text = {0}, again = {0};
    tide_lifetimes back = {0};
    assert_tide_ok(tide_lifetimes_to_csv(lt, NULL, &text, &err), &err);
    assert_tide_ok(tide_lifetimes_from_csv(text.data, text.len, "list.csv", 0, &back, &err), &err);
    assert_same_lifetimes(lt, &back);
    assert_tide_ok(tide_lifetimes_to_csv(&back, NULL, &again, &err), &err);
    assert_string_equal(text.data, again.data);
    tide_lifetimes_deinit(&back);
    tide_text_deinit(&text);
    tide_text_deinit(&again);
}

static void every_feature_there_and_back(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        tide_rng rng = {seed};
        tide_lifetimes lt = {0};
        put_every_feature(&lt, &rng, 1 + tide_rng_below(&rng, 30));
        lt.n_steps = 0; // a list has no steps but those it lives in
        for (size_t i = 0; i < lt.n; i++) {
            if (lt.items[i].end_step > lt.n_steps) lt.n_steps = lt.items[i].end_step;
        }
        assert_round_trip(&lt);
        tide_lifetimes_deinit(&lt);
    }
}

/// "t+4" as the name of a target, where there is a "t" too.
static void names_that_look_like_places(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    tide_error err = TIDE_ERROR_INIT;
    put(&lt, "t", 100, 0, 5);
    put(&lt, "t+4", 100, 0, 5);
    put(&lt, "v", 50, 0, 5);
    put(&lt, "w", 50, 0, 5);
    assert_tide_ok(tide_lifetimes_alias(&lt, 2, TIDE_ALIAS_VIEW, 1, 0, &err), &err);
    assert_tide_ok(tide_lifetimes_alias(&lt, 3, TIDE_ALIAS_VIEW, 0, 4, &err), &err);
    assert_round_trip(&lt);
    tide_lifetimes_deinit(&lt);
}

/// The columns are those that are needed: what MiniMalloc can say is written as it reads it.
static void minimallocs_features_give_minimallocs_columns(void **state) {
    (void)state;
    static const char *const texts[] = {
        "id,lower,upper,size\nb1,0,3,40\nb2,1,7,0\n",
        "id,lower,upper,size,alignment,gaps,offset\nb1,0,3,40,16,,64\nb2,1,7,9,1,2-3 5-6@1:4,\n",
    };
    for (size_t k = 0; k < 2; k++) {
        tide_lifetimes lt = {0};
        tide_error err = TIDE_ERROR_INIT;
        tide_text out = {0};
        read_ok(texts[k], &lt);
        assert_tide_ok(tide_lifetimes_to_csv(&lt, NULL, &out, &err), &err);
        assert_string_equal(out.data, texts[k]);
        tide_text_deinit(&out);
        tide_lifetimes_deinit(&lt);
    }
}

/// A name that no such file can hold is refused by name, and nothing is written.
static void names_that_no_list_holds(void **state) {
    (void)state;
    static const char *const names[] = {"a,b", "a\nb", "\"a", " a", "a\t", "a\r"};
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        tide_lifetimes lt = {0};
        tide_text out = {0};
        tide_error err = TIDE_ERROR_INIT;
        put(&lt, names[k], 4, 0, 1);
        assert_tide_status(tide_lifetimes_to_csv(&lt, NULL, &out, &err), TIDE_ERR_INVALID);
        assert_text_has(err.hint, "JSON");
        assert_tide_status(tide_lifetimes_to_minimalloc(&lt, NULL, &out, &err), TIDE_ERR_INVALID);
        assert_int_equal(out.len, 0);
        tide_lifetimes_deinit(&lt);
    }
}

/// Aliases become gaps, sets a step after all others, sizes what is taken; persistent tensors are left out.
static void what_minimalloc_has_no_word_for(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    tide_error err = TIDE_ERROR_INIT;
    tide_text out = {0};
    read_ok("id,lower,upper,size,alignment,rounded,persistent,alias,apart\n"
            "whole,8,12,96,32,1,,,\n"
            "part0,3,9,32,1,,,whole,\n"
            "part1,5,9,64,1,,,whole+32,\n"
            "weight,0,12,1000,1,,1,,\n"
            "x,0,2,100,64,1,,,1\n"
            "y,4,5,10,1,,,,1\n",
            &lt);
    assert_tide_ok(tide_lifetimes_to_minimalloc(&lt, NULL, &out, &err), &err);
    assert_string_equal(out.data, "id,lower,upper,size,alignment,gaps\n"
                                  "whole,3,12,96,32,3-5@0:32\n"
                                  "x,0,14,128,64,2-13\n"
                                  "y,4,14,10,1,5-13\n");
    tide_text_deinit(&out);
    tide_lifetimes_deinit(&lt);

    // Two stretches are kept with what lies between them; what stays the same is one gap.
    read_ok("id,lower,upper,size,alias\nwhole,8,12,96,\na,3,8,8,whole\nb,3,8,8,whole+24\nc,5,8,16,whole+8\n", &lt);
    assert_tide_ok(tide_lifetimes_to_minimalloc(&lt, NULL, &out, &err), &err);
    assert_string_equal(out.data, "id,lower,upper,size,gaps\nwhole,3,12,96,3-8@0:32\n");
    tide_text_deinit(&out);
    tide_lifetimes_deinit(&lt);

    // Every offset or none.
    read_ok("id,lower,upper,size,offset\na,0,1,8,64\nb,0,1,8,\n", &lt);
    assert_tide_status(tide_lifetimes_to_minimalloc(&lt, NULL, &out, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "'a' has one, tensor 'b' has none");
    tide_memory_plan *plan = make_plan(&lt, "greedy_by_size");
    assert_tide_ok(tide_lifetimes_to_minimalloc(&lt, plan, &out, &err), &err);
    assert_string_equal(out.data, "id,lower,upper,size,offset\na,0,1,8,64\nb,0,1,8,0\n");
    tide_memory_plan_destroy(plan);
    tide_text_deinit(&out);
    tide_lifetimes_deinit(&lt);

    read_ok("id,lower,upper,size,kind\na,0,1,8,Workspace\nb,0,1,8,KVCache\n", &lt);
    assert_tide_status(tide_lifetimes_to_minimalloc(&lt, NULL, &out, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "one buffer");
    tide_lifetimes_deinit(&lt);
}

// ---- refusals ----

#define HEAD "id,lower,upper,size\n"
#define GAPS "id,lower,upper,size,gaps\n"
#define ALIAS "id,lower,upper,size,alias,offset\n"

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
    {"\xEF\xBB\xBFid,lower,upper,bytes\n", "'bytes'", "dir/list.csv:1:19"},
    {"id,lower,upper,size,alias_kind\n", "without 'alias'", "dir/list.csv:1:1"},
    {"a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a\n", "more than", "dir/list.csv:1:37"},
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
    {HEAD "x,0,1,9223372036854775808\n", "2^63", "dir/list.csv:2:7"},
    {HEAD "x,0,99999999999999999999,1\n", "2^63", "dir/list.csv:2:5"},
    {"id,start,end,size\nx,0,9223372036854775807,1\n", "2^63", "dir/list.csv:2:5"},
    {"id,lower,upper,size,alignment\nx,0,1,9223372036854775807,16\n", "rounded up", "dir/list.csv:2:1"},
    {"id,lower,upper,size,alignment\nx,0,1,2,0\n", "power of two", "dir/list.csv:2:9"},
    {"id,lower,upper,size,alignment\nx,0,1,2,3\n", "power of two", "dir/list.csv:2:9"},
    {"id,lower,upper,size,hint\nx,0,1,2,-2\n", "the hint is -2", "dir/list.csv:2:9"},
    {"id,lower,upper,size,hint\nx,0,1,2,here\n", "'here'", "dir/list.csv:2:9"},
    {"id,lower,upper,size,offset,alignment\nx,0,9,2,3,2\n", "no multiple of 2", "dir/list.csv:2:1"},
    {"id,lower,upper,size,offset\nx,0,9,2,-1\n", "the offset is -1", "dir/list.csv:2:9"},
    {"id,lower,upper,size,offset\nx,0,9,2,9223372036854775807\n", "past 2^63", "dir/list.csv:2:1"},
    {"id,lower,upper,size,offset,persistent\nx,0,9,2,4,1\n", "persistent", "dir/list.csv:2:1"},
    {GAPS "x,0,9,2,3\n", "want a-b", "dir/list.csv:2:9"},
    {GAPS "x,0,9,2,3-\n", "end of a gap is missing", "dir/list.csv:2:11"},
    {GAPS "x,0,9,2,-3\n", "begin of a gap is missing", "dir/list.csv:2:9"},
    {GAPS "x,0,9,2,3-4 5-x\n", "'x'", "dir/list.csv:2:15"},
    {GAPS "x,0,9,2,4-4\n", "is empty", "dir/list.csv:2:9"},
    {GAPS "x,0,9,2,4-3\n", "is empty", "dir/list.csv:2:9"},
    {GAPS "x,0,9,2,3-4@\n", "want lo:hi", "dir/list.csv:2:13"},
    {GAPS "x,0,9,2,3-4@1\n", "want lo:hi", "dir/list.csv:2:13"},
    {GAPS "x,0,9,2,3-4@1:\n", "last byte of a gap is missing", "dir/list.csv:2:15"},
    {GAPS "x,0,9,2,3-4@2:1\n", "from 2 to 1", "dir/list.csv:2:13"},
    {GAPS "x,0,9,2,3-4@0:3\n", "keeps bytes 0 to 3", "dir/list.csv:2:1"},
    {GAPS "x,2,9,2,1-3\n", "outside", "dir/list.csv:2:1"},
    {GAPS "x,0,9,2,8-10\n", "outside", "dir/list.csv:2:1"},
    {GAPS "x,0,9,2,3-6 5-7\n", "not after the one before", "dir/list.csv:2:1"},
    {"id,lower,end,size,gaps\nx,0,9,2,3-9223372036854775807\n", "2^63", "dir/list.csv:2:11"},
    {"id,lower,upper,size,kind\nx,0,1,2,Heap\n", "Heap", "dir/list.csv:2:9"},
    {"id,lower,upper,size,device\nx,0,1,2,tpu\n", "tpu", "dir/list.csv:2:9"},
    {"id,lower,upper,size,role\nx,0,1,2,guest\n", "guest", "dir/list.csv:2:9"},
    {"id,lower,upper,size,persistent\nx,0,1,2,yes\n", "want 0 or 1", "dir/list.csv:2:9"},
    {"id,lower,upper,size,rounded\nx,0,1,2,2\n", "want 0 or 1", "dir/list.csv:2:9"},
    {"id,lower,upper,size,device,kind\nx,0,1,2,cuda:0,HostPinned\n", "cuda:0", "dir/list.csv:2:1"},
    {ALIAS "x,0,1,2,y,\n", "no buffer 'y'", "dir/list.csv:2:9"},
    {ALIAS "x,0,1,2,x,\n", "inside this one", "dir/list.csv:2:9"},
    {ALIAS "x,0,1,2,y,\ny,0,1,2,x,\n", "inside this one", "dir/list.csv:3:9"},
    {ALIAS "x,0,1,2,y+1,\ny,0,1,2,,\n", "end outside", "dir/list.csv:2:9"},
    {ALIAS "x,0,1,2,y+99999999999999999999,\ny,0,1,2,,\n", "2^63", "dir/list.csv:2:11"},
    {ALIAS "x,0,1,2,y,8\ny,0,1,2,,\n", "'y', in which it lies, has none", "dir/list.csv:2:11"},
    {ALIAS "x,0,1,2,y+1,8\ny,0,1,4,,8\n", "makes it 9", "dir/list.csv:2:13"},
    {ALIAS "y,0,1,4,,8\n\nx,0,1,2,y,no\n", "'no'", "dir/list.csv:4:11"},
    {"id,lower,upper,size,alias,gaps\nx,0,9,2,y,3-4\ny,0,9,2,,\n", "the target's to have", "dir/list.csv:2:9"},
    {"id,lower,upper,size,alias,apart\nx,0,9,2,y,1\ny,0,9,2,,\n", "the target's to have", "dir/list.csv:2:9"},
    {"id,lower,upper,size,alias,persistent\nx,0,9,2,y,\ny,0,9,2,,1\n", "memory of their own", "dir/list.csv:2:9"},
    {"id,lower,upper,size,alias,kind\nx,0,9,2,y,KVCache\ny,0,9,2,,\n", "device or kind", "dir/list.csv:2:9"},
    {"id,lower,upper,size,alias,alias_kind\nx,0,9,2,y,twin\ny,0,9,2,,\n", "twin", "dir/list.csv:2:11"},
    {"id,lower,upper,size,alias,alias_kind\nx,0,9,2,y,none\ny,0,9,2,,\n", "none", "dir/list.csv:2:11"},
};

static void bad_lists_are_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        tide_lifetimes lt = {0};
        tide_error err = TIDE_ERROR_INIT;
        const tide_status st = read_text(refusals[i].text, &lt, &err);
        if (st != TIDE_ERR_BAD_INPUT) fail_msg("'%s': %s", refusals[i].text, tide_status_name(st));
        assert_text_has(err.msg, refusals[i].words);
        if (strcmp(err.where, refusals[i].where) != 0) fail_msg("'%s': %s", refusals[i].text, err.where);
        assert_int_equal(err.status, TIDE_ERR_BAD_INPUT);
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

/// Any bytes: an answer, no crash, no leak; what is read can be written and read again.
static void bytes_by_chance(void **state) {
    (void)state;
    static const char letters[] = "id,lowerupsz0129-+@:\n\r\"\t \xEF";
    static const char *const heads[] = {"", HEAD, GAPS, ALIAS};
    tide_rng rng = {77};
    size_t n_read = 0;
    for (int run = 0; run < 8000; run++) {
        char text[160];
        const char *head = heads[tide_rng_below(&rng, 4)];
        snprintf(text, sizeof text, "%s%s", head, head[0] != '\0' && tide_rng_below(&rng, 2) == 0 ? "x,0,9,8" : "");
        size_t len = strlen(text);
        const size_t n = tide_rng_below(&rng, tide_rng_below(&rng, 2) == 0 ? 12 : sizeof text - len);
        for (size_t i = 0; i < n; i++) text[len++] = letters[tide_rng_below(&rng, sizeof letters)];
        tide_lifetimes lt = {0};
        if (tide_lifetimes_from_csv(text, len, "list.csv", 1, &lt, NULL) == TIDE_OK) {
            assert_round_trip(&lt);
            n_read++;
        }
        tide_lifetimes_deinit(&lt);
    }
    assert_true(n_read > 10);
}

static void no_memory_leaves_nothing(void **state) {
    (void)state;
    static const char text[] = "id,lower,upper,size,gaps,alias,apart\nx,0,5,2,1-2,,s\ny,1,2,2,,x,\n";
    tide_lifetimes whole = {0};
    read_ok(text, &whole);
    for (int what = 0; what < 3; what++) {
        tide_status st = TIDE_ERR_NOMEM;
        int64_t n = 0;
        for (; st != TIDE_OK; n++) {
            tide_host_stats before, after;
            tide_lifetimes lt = {0};
            tide_text out = {0};
            tide_host_get_stats(&before);
            tide_host_fail_after(n);
            st = what == 0   ? read_text(text, &lt, NULL)
                 : what == 1 ? tide_lifetimes_to_csv(&whole, NULL, &out, NULL)
                             : tide_lifetimes_to_minimalloc(&whole, NULL, &out, NULL);
            tide_host_fail_after(-1);
            tide_lifetimes_deinit(&lt);
            tide_text_deinit(&out);
            tide_host_get_stats(&after);
            assert_int_equal(before.n_live, after.n_live);
            if (st != TIDE_OK) assert_tide_status(st, TIDE_ERR_NOMEM);
        }
        assert_true(n > 1);
    }
    tide_lifetimes_deinit(&whole);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(the_usual_form),
        tide_unit_test(rounding_is_asked_for),
        tide_unit_test(forms_that_mean_the_same),
        tide_unit_test(gaps_and_offsets),
        tide_unit_test(aliases_and_sets),
        tide_unit_test(persistent_kinds_and_devices),
        tide_unit_test(every_feature_there_and_back),
        tide_unit_test(names_that_look_like_places),
        tide_unit_test(minimallocs_features_give_minimallocs_columns),
        tide_unit_test(names_that_no_list_holds),
        tide_unit_test(what_minimalloc_has_no_word_for),
        tide_unit_test(bad_lists_are_refused),
        tide_unit_test(bytes_by_chance),
        tide_unit_test(no_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
