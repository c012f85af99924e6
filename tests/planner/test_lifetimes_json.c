// SPDX-License-Identifier: MIT
//
// planner/lifetimes_json: the `tidemark.lifetimes` document holds everything a table can, and refuses what is wrong.
#include "tests/planner/lifetimes_test.h"

static void put_names(char ***out, size_t *n_out, const char *stem, size_t n) {
    *out = n == 0 ? NULL : tide_host_calloc(n, sizeof **out);
    for (size_t i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s \"%zu\"", stem, i);
        (*out)[i] = tide_host_strdup(name);
    }
    *n_out = n;
}

/// Everything that CSV holds, and steps, points, indices and names that CSV does not.
static void put_whole(tide_lifetimes *lt, tide_rng *rng) {
    tide_error err = TIDE_ERROR_INIT;
    lt->model = tide_host_strdup("größe,\n\"x\"");
    put_names(&lt->point_names, &lt->n_points, "batch", tide_rng_below(rng, 4));
    put_every_feature(lt, rng, 1 + tide_rng_below(rng, 20));
    uint64_t points[4];
    tide_lifetime item = an_item("a,b\n", 0, 16, 1, 4);
    for (size_t k = 0; k < lt->n_points; k++) {
        points[k] = tide_rng_below(rng, 1000);
        if (points[k] > item.size_bytes) item.size_bytes = points[k];
    }
    if (lt->n_points > 0) item.point_bytes = points;
    item.node = 7;
    item.port = 0;
    item.value = 12;
    assert_tide_ok(tide_lifetimes_add(lt, &item, &err), &err);
    lt->n_steps = 40;
    if (tide_rng_below(rng, 2) == 0) put_names(&lt->step_names, &lt->n_step_names, "step", 40);
    put_names(&lt->recomputed, &lt->n_recomputed, "node", tide_rng_below(rng, 3));
}

// S27-23 with it: sizes per profile point are there and back.
static void there_and_back(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        tide_rng rng = {seed};
        tide_lifetimes lt = {0}, back = {0};
        tide_text text = {0}, again = {0};
        tide_error err = TIDE_ERROR_INIT;
        put_whole(&lt, &rng);
        assert_tide_ok(tide_lifetimes_to_json(&lt, NULL, &text, &err), &err);
        assert_tide_ok(tide_lifetimes_from_json(text.data, text.len, "l.json", &back, &err), &err);
        assert_same_lifetimes(&lt, &back);
        assert_string_equal(lt.model, back.model);
        assert_tide_ok(tide_lifetimes_to_json(&back, NULL, &again, &err), &err);
        assert_string_equal(text.data, again.data);
        tide_lifetimes_deinit(&back);
        tide_lifetimes_deinit(&lt);
        tide_text_deinit(&text);
        tide_text_deinit(&again);
    }
}

static void put_small(tide_lifetimes *lt) {
    tide_error err = TIDE_ERROR_INIT;
    uint64_t points[2] = {500, 1000};
    tide_gap gaps[2] = {{1, 2, 0, 0}, {3, 4, 8, 16}};
    lt->model = tide_host_strdup("tiny");
    put_names(&lt->point_names, &lt->n_points, "p", 2);
    tide_lifetime a = an_item("a", 1000, 256, 0, 6), b = an_item("b", 100, 1, 1, 3);
    a.point_bytes = points;
    a.gaps = gaps;
    a.n_gaps = 2;
    a.fixed = true;
    a.fixed_offset_bytes = 512;
    a.apart_set = 3;
    b.unrounded = true;
    assert_tide_ok(tide_lifetimes_add(lt, &a, &err), &err);
    assert_tide_ok(tide_lifetimes_add(lt, &b, &err), &err);
    assert_tide_ok(tide_lifetimes_alias(lt, 1, TIDE_ALIAS_PART, 0, 256, &err), &err);
}

static const char small[] =
    "{\n"
    "  \"schema\": \"tidemark.lifetimes\",\n"
    "  \"version\": 1,\n"
    "  \"model\": \"tiny\",\n"
    "  \"n_steps\": 6,\n"
    "  \"points\": [\"p \\\"0\\\"\", \"p \\\"1\\\"\"],\n"
    "  \"order\": [],\n"
    "  \"tensors\": [\n"
    "    {\"name\": \"a\", \"size_bytes\": 1000, \"begin\": 0, \"end\": 6, \"birth\": 0, \"death\": 5, "
    "\"kind\": \"Workspace\", \"persistent\": false, \"role\": \"intermediate\", \"device\": \"cpu\", "
    "\"align_bytes\": 256, \"aligned_bytes\": 1024, \"node\": null, \"port\": null, \"value\": null, "
    "\"gaps\": [{\"begin\": 1, \"end\": 2}, {\"begin\": 3, \"end\": 4, \"lo\": 8, \"hi\": 16}], "
    "\"fixed_offset\": 512, \"apart\": 3, \"point_bytes\": [500, 1000]},\n"
    "    {\"name\": \"b\", \"size_bytes\": 100, \"begin\": 1, \"end\": 3, \"birth\": 1, \"death\": 2, "
    "\"kind\": \"Workspace\", \"persistent\": false, \"role\": \"intermediate\", \"device\": \"cpu\", "
    "\"align_bytes\": 1, \"aligned_bytes\": 100, \"node\": null, \"port\": null, \"value\": null, "
    "\"alias\": {\"kind\": \"part\", \"of\": \"a\", \"offset\": 256}, \"unrounded\": true}\n"
    "  ]\n"
    "}\n";

static void the_document(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    tide_text out = {0};
    tide_error err = TIDE_ERROR_INIT;
    put_small(&lt);
    assert_tide_ok(tide_lifetimes_to_json(&lt, NULL, &out, &err), &err);
    assert_string_equal(out.data, small);
    tide_text_deinit(&out);
    tide_lifetimes_deinit(&lt);
}

static const struct {
    const char *find, *put_in, *words, *where;
} refusals[] = {
    {"tidemark.lifetimes", "tidemark.plan", "tidemark.plan", "l.json: schema"},
    {"\"version\": 1", "\"version\": 2", "version 2", "l.json: version"},
    {"\"n_steps\": 6", "\"n_steps\": 5", "until step 6", "l.json: n_steps"},
    {"\"order\": []", "\"order\": [\"one\"]", "1 steps of 6", "l.json: order"},
    {"\"order\": []", "\"order\": 4", "an integer", "l.json: order"},
    {"\"order\": []", "\"order\": [], \"recomputed\": [5]", "recomputed[0]", "l.json: recomputed"},
    {"\"points\": [", "\"points\": [7, ", "points[0]", "l.json: points"},
    {"[500, 1000]", "[500]", "1 sizes", "l.json: tensors[0].point_bytes"},
    {"[500, 1000]", "[500, -1]", "point_bytes[1]", "l.json: tensors[0].point_bytes"},
    {"[500, 1000]", "[500, 999]", "the largest of its points takes 999", "l.json: tensors[0].point_bytes"},
    {"[500, 1000]", "[500, 1001]", "takes 1001", "l.json: tensors[0].point_bytes"},
    {"\"end\": 2}", "\"end\": 1}", "is empty", "l.json: tensors[0]"},
    {"\"end\": 2}", "\"end\": 9}", "outside", "l.json: tensors[0]"},
    {"\"end\": 2}", "\"end\": 4}", "not after the one before", "l.json: tensors[0]"},
    {"{\"begin\": 1, \"end\": 2}", "[1, 2]", "gaps[0] is no object", "l.json: tensors[0].gaps"},
    {"\"lo\": 8", "\"lo\": -8", "want 0 or more", "l.json: tensors[0].gaps[1].lo"},
    {"\"lo\": 8", "\"lo\": 17", "keeps bytes 17 to 16", "l.json: tensors[0]"},
    {"\"hi\": 16", "\"hi\": 1001", "keeps bytes 8 to 1001", "l.json: tensors[0]"},
    {"\"fixed_offset\": 512", "\"fixed_offset\": 500", "no multiple of 256", "l.json: tensors[0]"},
    {"\"fixed_offset\": 512", "\"fixed_offset\": null", "null", "l.json: tensors[0].fixed_offset"},
    {"\"apart\": 3", "\"apart\": 0", "sets have numbers from 1", "l.json: tensors[0].apart"},
    {"\"apart\": 3", "\"apart\": 4294967296", "sets have numbers", "l.json: tensors[0].apart"},
    {"\"of\": \"a\"", "\"of\": \"c\"", "no tensor 'c'", "l.json: tensors[1].alias.of"},
    {"\"of\": \"a\"", "\"of\": \"b\"", "end outside", "l.json: tensors[1].alias"},
    {"\"kind\": \"part\"", "\"kind\": \"party\"", "party", "l.json: tensors[1].alias.kind"},
    {"\"offset\": 256", "\"offset\": 901", "end outside", "l.json: tensors[1].alias"},
    {"\"unrounded\": true", "\"unrounded\": 1", "true or false", "l.json: tensors[1].unrounded"},
    {"\"name\": \"b\"", "\"name\": \"a\"", "twice", "l.json: tensors[1].name"},
    {"\"tensors\"", "\"tensions\"", "'tensors' is missing", "l.json: tensors"},
    {"\"version\": 1", "\"version\": 1, \"version\": 1", "duplicate", "l.json:3:"},
};

static char *replaced(const char *text, const char *find, const char *put_in) {
    const char *at = strstr(text, find);
    if (at == NULL) fail_msg("the document has no '%s'", find);
    tide_text out = {0};
    tide_text_add_n(&out, text, (size_t)(at - text));
    tide_text_add(&out, put_in);
    tide_text_add(&out, at + strlen(find));
    return out.data;
}

static void bad_documents_are_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        char *bad = replaced(small, refusals[i].find, refusals[i].put_in);
        tide_lifetimes lt = {0};
        tide_error err = TIDE_ERROR_INIT;
        const tide_status st = tide_lifetimes_from_json(bad, strlen(bad), "l.json", &lt, &err);
        if (st != TIDE_ERR_BAD_INPUT) fail_msg("%s: %s", refusals[i].put_in, tide_status_name(st));
        assert_text_has(err.msg, refusals[i].words);
        assert_text_has(err.where, refusals[i].where);
        assert_int_equal(lt.n, 0);
        assert_tide_status(tide_lifetimes_from_json(bad, strlen(bad), "l.json", &lt, NULL), TIDE_ERR_BAD_INPUT);
        tide_host_free(bad);
    }
}

/// Cut anywhere, or damaged by chance: a refusal or a table, no crash, no leak.
static void damage_by_chance(void **state) {
    (void)state;
    static const char letters[] = "0123456789-\"{}[],:ntf eE.\x80";
    const size_t len = sizeof small - 1;
    tide_rng rng = {11};
    size_t n_read = 0;
    for (size_t cut = 0; cut < len - 1; cut++) {
        tide_lifetimes lt = {0};
        assert_tide_status(tide_lifetimes_from_json(small, cut, "l", &lt, NULL), TIDE_ERR_BAD_INPUT);
    }
    for (int run = 0; run < 3000; run++) {
        char *bad = tide_host_strndup(small, len);
        const size_t n = 1 + tide_rng_below(&rng, 3);
        for (size_t i = 0; i < n; i++) bad[tide_rng_below(&rng, len)] = letters[tide_rng_below(&rng, sizeof letters)];
        tide_lifetimes lt = {0};
        n_read += tide_lifetimes_from_json(bad, len, "l", &lt, NULL) == TIDE_OK;
        tide_lifetimes_deinit(&lt);
        tide_host_free(bad);
    }
    assert_true(n_read > 100 && n_read < 2900);
}

static void no_memory_leaves_nothing(void **state) {
    (void)state;
    tide_lifetimes whole = {0};
    put_small(&whole);
    for (int what = 0; what < 2; what++) {
        tide_status st = TIDE_ERR_NOMEM;
        int64_t n = 0;
        for (; st != TIDE_OK; n++) {
            tide_host_stats before, after;
            tide_lifetimes lt = {0};
            tide_text out = {0};
            tide_host_get_stats(&before);
            tide_host_fail_after(n);
            st = what == 0 ? tide_lifetimes_from_json(small, sizeof small - 1, "l", &lt, NULL)
                           : tide_lifetimes_to_json(&whole, NULL, &out, NULL);
            tide_host_fail_after(-1);
            tide_lifetimes_deinit(&lt);
            tide_text_deinit(&out);
            tide_host_get_stats(&after);
            assert_int_equal(before.n_live, after.n_live);
            if (st != TIDE_OK) assert_tide_status(st, TIDE_ERR_NOMEM);
        }
        assert_true(n > 2);
    }
    tide_lifetimes_deinit(&whole);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(there_and_back),
        tide_unit_test(the_document),
        tide_unit_test(bad_documents_are_refused),
        tide_unit_test(damage_by_chance),
        tide_unit_test(no_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
