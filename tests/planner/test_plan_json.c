// SPDX-License-Identifier: MIT
//
// planner/plan_json: the `tidemark.plan` document, round trip and refusals.
#include "tests/planner/plan_test.h"

static void put_model(tide_lifetimes *lt, const char *model, const char *const *steps, size_t n) {
    lt->model = tide_host_strdup(model);
    lt->step_names = tide_host_calloc(n, sizeof *lt->step_names);
    for (size_t i = 0; i < n; i++) lt->step_names[i] = tide_host_strdup(steps[i]);
    lt->n_step_names = n;
}

/// The document every refusal below is made of.
static void put_sample(tide_lifetimes *lt) {
    static const char *const steps[] = {"conv", "relu", "say \"fc\""};
    put_aligned(lt, "a", 1000, 256, 0, 2);
    put_aligned(lt, "b", 1500, 256, 1, 3);
    put_aligned(lt, "c", 300, 256, 2, 3);
    put_persistent(lt, "w", 5000, TIDE_ROLE_WEIGHT, TIDE_KIND_PERSISTENT, 3);
    put_model(lt, "tiny", steps, 3);
    lt->items[0].node = 7;
    lt->items[0].port = 1;
    lt->items[0].value = 12;
}

static char *write_document(const tide_lifetimes *lt, const char *const *strategies, size_t n, const char *fits) {
    tide_memory_plan *plans[16] = {0};
    for (size_t i = 0; i < n; i++) {
        plans[i] = make_plan(lt, strategies[i]);
        plans[i]->time_ns = 1000 + i;
    }
    tide_text out = {0};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_plan_to_json((const tide_memory_plan *const *)plans, n, fits, &out, &err), &err);
    for (size_t i = 0; i < n; i++) tide_memory_plan_destroy(plans[i]);
    return out.data;
}

static void assert_same_plan(const tide_memory_plan *a, const tide_memory_plan *b) {
    assert_string_equal(a->strategy, b->strategy);
    assert_int_equal(a->form, b->form);
    assert_int_equal(a->bytes, b->bytes);
    assert_int_equal(a->naive_bytes, b->naive_bytes);
    assert_int_equal(a->lower_bound_bytes, b->lower_bound_bytes);
    assert_int_equal(a->align_bytes, b->align_bytes);
    assert_int_equal(a->time_ns, b->time_ns);
    assert_int_equal(a->proven, b->proven);
    assert_int_equal(a->verified, b->verified);
    assert_int_equal(a->n_pools, b->n_pools);
    for (size_t p = 0; p < a->n_pools; p++) {
        assert_int_equal(a->pool_list[p].size_bytes, b->pool_list[p].size_bytes);
        assert_int_equal(a->pool_list[p].offset_bytes, b->pool_list[p].offset_bytes);
        assert_int_equal(a->pool_list[p].n_members, b->pool_list[p].n_members);
    }
    const tide_lifetimes *x = &a->lifetimes, *y = &b->lifetimes;
    assert_int_equal(x->n, y->n);
    assert_int_equal(x->n_steps, y->n_steps);
    assert_int_equal(x->n_step_names, y->n_step_names);
    for (size_t i = 0; i < x->n_step_names; i++) assert_string_equal(x->step_names[i], y->step_names[i]);
    assert_string_equal(x->model != NULL ? x->model : "", y->model);
    for (size_t i = 0; i < x->n; i++) {
        tide_lifetime p = x->items[i], q = y->items[i];
        assert_string_equal(p.name, q.name);
        assert_int_equal(p.size_bytes, q.size_bytes);
        assert_int_equal(p.align_bytes, q.align_bytes);
        assert_int_equal(p.begin_step, q.begin_step);
        assert_int_equal(p.end_step, q.end_step);
        assert_int_equal(p.kind, q.kind);
        assert_true(tide_device_equal(p.device, q.device));
        assert_int_equal(p.role, q.role);
        assert_int_equal(p.persistent, q.persistent);
        assert_int_equal(p.node, q.node);
        assert_int_equal(p.port, q.port);
        assert_int_equal(p.value, q.value);
        assert_int_equal(a->offsets[i], b->offsets[i]);
        assert_int_equal(a->pools[i], b->pools[i]);
    }
}

// S23-14: plan -> JSON -> plan is identical; and so is the document written from what was read.
static void round_trip(void **state) {
    (void)state;
    const tide_strategy *const *all;
    const size_t n = tide_strategies(&all);
    assert_true(n <= 16);
    for (uint64_t seed = 0; seed < 60; seed++) {
        tide_rng rng = {seed};
        tide_lifetimes lt = {0};
        if (seed == 0) {
            put_sample(&lt);
        } else {
            put_random(&lt, &rng, tide_rng_below(&rng, 40), 12, 3000, seed % 2 == 1);
            if (lt.n > 0) lt.items[0].node = (uint32_t)tide_rng_below(&rng, 100);
        }
        tide_memory_plan *plans[16] = {0};
        for (size_t s = 0; s < n; s++) plans[s] = make_plan(&lt, all[s]->name);
        tide_text out = {0};
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(tide_plan_to_json((const tide_memory_plan *const *)plans, n, NULL, &out, &err), &err);
        for (size_t s = 0; s < n; s++) {
            tide_memory_plan *back;
            assert_tide_ok(tide_plan_from_json(out.data, out.len, "p.json", all[s]->name, &back, &err), &err);
            assert_same_plan(plans[s], back);
            tide_text one = {0}, again = {0};
            assert_tide_ok(tide_plan_to_json((const tide_memory_plan *const *)&plans[s], 1, NULL, &one, &err), &err);
            assert_tide_ok(tide_plan_to_json((const tide_memory_plan *const *)&back, 1, NULL, &again, &err), &err);
            assert_string_equal(one.data, again.data);
            tide_text_deinit(&one);
            tide_text_deinit(&again);
            tide_memory_plan_destroy(back);
        }
        for (size_t s = 0; s < n; s++) tide_memory_plan_destroy(plans[s]);
        tide_text_deinit(&out);
        tide_lifetimes_deinit(&lt);
    }
}

// S23-3, S23-14: the whole document, word for word.
static void the_document(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put_sample(&lt);
    char *json = write_document(&lt, (const char *const[]){"greedy_color", "greedy_by_size"}, 2, "yes");
    assert_string_equal(
        json,
        "{\n"
        "  \"schema\": \"tidemark.plan\",\n"
        "  \"version\": 1,\n"
        "  \"model\": \"tiny\",\n"
        "  \"n_steps\": 3,\n"
        "  \"align_bytes\": 256,\n"
        "  \"fits\": \"yes\",\n"
        "  \"plans\": [\n"
        "    {\"strategy\": \"greedy_color\", \"form\": \"pools\", \"bytes\": 2560, \"naive_bytes\": 3072, "
        "\"lower_bound_bytes\": 2560, \"saving\": 0.166667, \"proven\": true, \"verified\": true, \"time_ns\": 1000, "
        "\"n_pools\": 2, \"pools\": [\n"
        "      {\"id\": 0, \"size_bytes\": 1536, \"offset_bytes\": 0, \"members\": [\"b\"]},\n"
        "      {\"id\": 1, \"size_bytes\": 1024, \"offset_bytes\": 1536, \"members\": [\"a\", \"c\"]}\n"
        "    ]},\n"
        "    {\"strategy\": \"greedy_by_size\", \"form\": \"offsets\", \"bytes\": 2560, \"naive_bytes\": 3072, "
        "\"lower_bound_bytes\": 2560, \"saving\": 0.166667, \"proven\": true, \"verified\": true, \"time_ns\": 1001, "
        "\"n_pools\": 0, \"pools\": []}\n"
        "  ],\n"
        "  \"order\": [\n"
        "    \"conv\",\n"
        "    \"relu\",\n"
        "    \"say \\\"fc\\\"\"\n"
        "  ],\n"
        "  \"tensors\": [\n"
        "    {\"name\": \"a\", \"size_bytes\": 1000, \"begin\": 0, \"end\": 2, \"birth\": 0, \"death\": 1, "
        "\"kind\": \"Workspace\", \"persistent\": false, \"role\": \"intermediate\", \"device\": \"cpu\", "
        "\"align_bytes\": 256, \"aligned_bytes\": 1024, \"node\": 7, \"port\": 1, \"value\": 12, "
        "\"places\": [{\"pool\": 1, \"offset\": 1536}, {\"pool\": -1, \"offset\": 1536}]},\n"
        "    {\"name\": \"b\", \"size_bytes\": 1500, \"begin\": 1, \"end\": 3, \"birth\": 1, \"death\": 2, "
        "\"kind\": \"Workspace\", \"persistent\": false, \"role\": \"intermediate\", \"device\": \"cpu\", "
        "\"align_bytes\": 256, \"aligned_bytes\": 1536, \"node\": null, \"port\": null, \"value\": null, "
        "\"places\": [{\"pool\": 0, \"offset\": 0}, {\"pool\": -1, \"offset\": 0}]},\n"
        "    {\"name\": \"c\", \"size_bytes\": 300, \"begin\": 2, \"end\": 3, \"birth\": 2, \"death\": 2, "
        "\"kind\": \"Workspace\", \"persistent\": false, \"role\": \"intermediate\", \"device\": \"cpu\", "
        "\"align_bytes\": 256, \"aligned_bytes\": 512, \"node\": null, \"port\": null, \"value\": null, "
        "\"places\": [{\"pool\": 1, \"offset\": 1536}, {\"pool\": -1, \"offset\": 1536}]},\n"
        "    {\"name\": \"w\", \"size_bytes\": 5000, \"begin\": 0, \"end\": 3, \"birth\": 0, \"death\": 2, "
        "\"kind\": \"Persistent\", \"persistent\": true, \"role\": \"weight\", \"device\": \"cpu\", "
        "\"align_bytes\": 1, \"aligned_bytes\": 5000, \"node\": null, \"port\": null, \"value\": null, "
        "\"places\": [{\"pool\": -1, \"offset\": null}, {\"pool\": -1, \"offset\": null}]}\n"
        "  ]\n"
        "}\n");
    tide_host_free(json);
    tide_lifetimes_deinit(&lt);
}

static void names_of_any_kind(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put(&lt, "quote\" back\\slash\ttab\x01", 4, 0, 1);
    put(&lt, "größe/權重:0", 4, 0, 1);
    const char *const one[] = {"naive"};
    char *json = write_document(&lt, one, 1, NULL);
    tide_memory_plan *back;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_plan_from_json(json, strlen(json), "p", NULL, &back, &err), &err);
    assert_string_equal(back->lifetimes.items[0].name, lt.items[0].name);
    assert_string_equal(back->lifetimes.items[1].name, lt.items[1].name);
    tide_memory_plan_destroy(back);
    tide_host_free(json);
    tide_lifetimes_deinit(&lt);

    // What is no UTF-8 still gives a document that can be read.
    lt = (tide_lifetimes){0};
    put(&lt, "bad\xFF\xC0\xAF\xED\xA0\x80 end\xE2\x82", 4, 0, 1);
    json = write_document(&lt, one, 1, NULL);
    assert_tide_ok(tide_plan_from_json(json, strlen(json), "p", NULL, &back, &err), &err);
    assert_text_has(back->lifetimes.items[0].name, "bad\xEF\xBF\xBD");
    tide_memory_plan_destroy(back);
    tide_host_free(json);
    tide_lifetimes_deinit(&lt);
}

static void the_writer_refuses_mixed_plans(void **state) {
    (void)state;
    tide_lifetimes a = {0}, b = {0};
    put(&a, "a", 4, 0, 1);
    put(&b, "b", 4, 0, 1);
    tide_memory_plan *plans[2] = {make_plan(&a, "naive"), make_plan(&b, "naive")};
    tide_text out = {0};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_plan_to_json((const tide_memory_plan *const *)plans, 2, NULL, &out, &err),
                       TIDE_ERR_INVALID);
    assert_tide_status(tide_plan_to_json((const tide_memory_plan *const *)plans, 0, NULL, &out, &err),
                       TIDE_ERR_INVALID);
    assert_int_equal(out.len, 0);
    tide_memory_plan_destroy(plans[0]);
    tide_memory_plan_destroy(plans[1]);
    tide_lifetimes_deinit(&a);
    tide_lifetimes_deinit(&b);
}

// ---- refusals ----

/// `text` with the first `find` replaced by `put_in`; host memory.
static char *replaced(const char *text, const char *find, const char *put_in) {
    const char *at = strstr(text, find);
    if (at == NULL) fail_msg("the document has no '%s'", find);
    tide_text out = {0};
    tide_text_add_n(&out, text, (size_t)(at - text));
    tide_text_add(&out, put_in);
    tide_text_add(&out, at + strlen(find));
    assert_non_null(out.data);
    return out.data;
}

static const struct refusal {
    const char *find, *put_in;
    tide_status status;
    const char *words; // in the message
    const char *where;
} refusals[] = {
    {"tidemark.plan", "tidemark.run", TIDE_ERR_BAD_INPUT, "tidemark.run", "p.json: schema"},
    {"\"schema\"", "\"schemes\"", TIDE_ERR_BAD_INPUT, "'schema' is missing", "p.json: schema"},
    {"\"version\": 1", "\"version\": 2", TIDE_ERR_BAD_INPUT, "version 2", "p.json: version"},
    {"\"version\": 1", "\"version\": \"1\"", TIDE_ERR_BAD_INPUT, "a string", "p.json: version"},
    {"\"model\": \"tiny\"", "\"model\": 5", TIDE_ERR_BAD_INPUT, "an integer", "p.json: model"},
    {"\"n_steps\": 3", "\"n_steps\": 2", TIDE_ERR_BAD_INPUT, "until step 3", "p.json: n_steps"},
    {"\"n_steps\": 3", "\"n_steps\": 4", TIDE_ERR_BAD_INPUT, "3 steps of 4", "p.json: order"},
    {"\"conv\",", "\"conv\", \"more\",", TIDE_ERR_BAD_INPUT, "4 steps of 3", "p.json: order"},
    {"\"conv\",", "17,", TIDE_ERR_BAD_INPUT, "order[0]", "p.json: order"},
    {"\"plans\"", "\"planes\"", TIDE_ERR_BAD_INPUT, "'plans' is missing", "p.json: plans"},
    {"\"form\": \"pools\"", "\"form\": \"heap\"", TIDE_ERR_BAD_INPUT, "heap", "p.json: plans[0].form"},
    {"\"form\": \"pools\"", "\"form\": \"offsets\"", TIDE_ERR_BAD_INPUT, "without pools", "p.json: plans[0]"},
    {"\"strategy\": \"greedy_color\"", "\"strategy\": null", TIDE_ERR_BAD_INPUT, "null", "p.json: plans[0].strategy"},
    {"\"bytes\": 2560", "\"bytes\": -1", TIDE_ERR_BAD_INPUT, "-1", "p.json: plans[0].bytes"},
    {"\"bytes\": 2560", "\"bytes\": 2304", TIDE_ERR_BAD_INPUT, "outside the buffer", "p.json: plans[0]"},
    {"\"bytes\": 2560", "\"bytes\": 99999999999999999999", TIDE_ERR_BAD_INPUT, "too big", "p.json:8:"},
    {"\"naive_bytes\": 3072", "\"naive_bytes\": 9999", TIDE_ERR_BAD_INPUT, "3072", "p.json: plans[0].naive_bytes"},
    {"\"lower_bound_bytes\": 2560", "\"lower_bound_bytes\": 1", TIDE_ERR_BAD_INPUT, "2560",
     "p.json: plans[0].lower_bound_bytes"},
    {"\"pools\": [", "\"ponds\": [", TIDE_ERR_BAD_INPUT, "'pools' is missing", "p.json: plans[0].pools"},
    {"\"id\": 1", "\"id\": 0", TIDE_ERR_BAD_INPUT, "ids count", "p.json: plans[].pools[1].id"},
    {"\"size_bytes\": 1536, \"offset_bytes\": 0", "\"size_bytes\": 1280, \"offset_bytes\": 0", TIDE_ERR_BAD_INPUT,
     "'b'", "p.json: plans[0]"},
    {"\"members\": [\"b\"]", "\"members\": [\"zz\"]", TIDE_ERR_BAD_INPUT, "'zz'", "p.json: plans[].pools[0].members"},
    {"\"members\": [\"b\"]", "\"members\": [\"a\"]", TIDE_ERR_BAD_INPUT, "member of pool 0",
     "p.json: plans[].pools[0].members"},
    {"\"members\": [\"b\"]", "\"members\": [3]", TIDE_ERR_BAD_INPUT, "members[0]", "p.json: plans[].pools[0].members"},
    {"\"tensors\"", "\"tensions\"", TIDE_ERR_BAD_INPUT, "'tensors' is missing", "p.json: tensors"},
    {"\"name\": \"b\"", "\"name\": \"a\"", TIDE_ERR_BAD_INPUT, "twice", "p.json: tensors[1].name"},
    {"\"name\": \"b\"", "\"name\": \"\"", TIDE_ERR_BAD_INPUT, "no name", "p.json: tensors[1]"},
    {"\"name\": \"b\", ", "", TIDE_ERR_BAD_INPUT, "'name' is missing", "p.json: tensors[1].name"},
    {"\"size_bytes\": 1500", "\"size_bytes\": -4", TIDE_ERR_BAD_INPUT, "-4", "p.json: tensors[1].size_bytes"},
    {"\"size_bytes\": 1500", "\"size_bytes\": 1500.5", TIDE_ERR_BAD_INPUT, "fraction", "p.json: tensors[1].size_bytes"},
    {"\"size_bytes\": 1500", "\"size_bytes\": 9223372036854775807", TIDE_ERR_BAD_INPUT, "2^63", "p.json: tensors[1]"},
    {"\"size_bytes\": 1500", "\"size_bytes\": 9223372036854775552", TIDE_ERR_BAD_INPUT, "add up", "p.json: plans[0]"},
    {"\"begin\": 1, ", "", TIDE_ERR_BAD_INPUT, "'begin' is missing", "p.json: tensors[1].begin"},
    {"\"begin\": 1,", "\"begin\": 3,", TIDE_ERR_BAD_INPUT, "begin < end", "p.json: tensors[1]"},
    {"\"begin\": 1,", "\"begin\": -1,", TIDE_ERR_BAD_INPUT, "-1", "p.json: tensors[1].begin"},
    {"\"kind\": \"Workspace\"", "\"kind\": \"Heap\"", TIDE_ERR_BAD_INPUT, "Heap", "p.json: tensors[0].kind"},
    {"\"role\": \"weight\"", "\"role\": \"wait\"", TIDE_ERR_BAD_INPUT, "wait", "p.json: tensors[3].role"},
    {"\"kind\": \"Workspace\", \"persistent\": false, \"role\": \"intermediate\", \"device\": \"cpu\"",
     "\"kind\": \"HostPinned\", \"persistent\": false, \"role\": \"intermediate\", \"device\": \"cuda:0\"",
     TIDE_ERR_BAD_INPUT, "not on cuda:0", "p.json: tensors[0].kind"},
    {"\"device\": \"cpu\"", "\"device\": \"tpu\"", TIDE_ERR_BAD_INPUT, "tpu", "p.json: tensors[0].device"},
    {"\"persistent\": false", "\"persistent\": 0", TIDE_ERR_BAD_INPUT, "true or false",
     "p.json: tensors[0].persistent"},
    {"\"align_bytes\": 256, \"aligned", "\"align_bytes\": 24, \"aligned", TIDE_ERR_BAD_INPUT, "power of two",
     "p.json: tensors[0]"},
    {"\"node\": 7", "\"node\": 4294967295", TIDE_ERR_BAD_INPUT, "no such index", "p.json: tensors[0].node"},
    {"\"places\": [{\"pool\": 1, \"offset\": 1536}", "\"places\": [7", TIDE_ERR_BAD_INPUT, "no place for plans[0]",
     "p.json: tensors[0].places"},
    {"{\"pool\": 1, \"offset\": 1536}", "{\"pool\": 1, \"offset\": null}", TIDE_ERR_BAD_INPUT, "no offset",
     "p.json: plans[0]"},
    {"{\"pool\": 1, \"offset\": 1536}", "{\"pool\": 1, \"offset\": \"x\"}", TIDE_ERR_BAD_INPUT, "a string",
     "p.json: tensors[0].offset"},
    {"{\"pool\": 1, \"offset\": 1536}", "{\"pool\": -7, \"offset\": 1536}", TIDE_ERR_BAD_INPUT, "no pool number",
     "p.json: tensors[0].places"},
    {"{\"pool\": 1, \"offset\": 1536}", "{\"pool\": 0, \"offset\": 0}", TIDE_ERR_BAD_INPUT, "member of pool 1",
     "p.json: plans[].pools[1].members"},
    {"\"n_steps\": 3", "\"n_steps\": 3, \"n_steps\": 3", TIDE_ERR_BAD_INPUT, "duplicate", "p.json:5:"},
    {"{\n", "[\n", TIDE_ERR_BAD_INPUT, "not a JSON document", "p.json:"},
};

static void bad_documents_are_refused(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put_sample(&lt);
    char *good = write_document(&lt, (const char *const[]){"greedy_color", "greedy_by_size"}, 2, NULL);
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        char *bad = replaced(good, refusals[i].find, refusals[i].put_in);
        tide_memory_plan *plan = NULL;
        tide_error err = TIDE_ERROR_INIT;
        const tide_status st = tide_plan_from_json(bad, strlen(bad), "p.json", NULL, &plan, &err);
        if (st != refusals[i].status)
            fail_msg("%s -> %s: %s, '%s'", refusals[i].find, refusals[i].put_in, tide_status_name(st), err.msg);
        assert_null(plan);
        assert_int_equal(err.status, st);
        assert_text_has(err.msg, refusals[i].words);
        assert_text_has(err.where, refusals[i].where);
        assert_tide_status(tide_plan_from_json(bad, strlen(bad), "p.json", NULL, &plan, NULL), st);
        tide_host_free(bad);
    }
    tide_host_free(good);
    tide_lifetimes_deinit(&lt);
}

static void cut_documents_are_refused(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put_sample(&lt);
    char *good = write_document(&lt, (const char *const[]){"greedy_color"}, 1, NULL);
    const size_t len = strlen(good);
    for (size_t cut = 0; cut < len - 1; cut++) { // len - 1: without the last newline it is whole
        tide_memory_plan *plan = NULL;
        tide_error err = TIDE_ERROR_INIT;
        const tide_status st = tide_plan_from_json(good, cut, "p.json", NULL, &plan, &err);
        if (cut == len - 1) continue;
        assert_tide_status(st, TIDE_ERR_BAD_INPUT);
        assert_null(plan);
    }
    static const char *const others[] = {"", "null", "[]", "{}", "\"tidemark.plan\"", "\xFF\xFE", "{\"a\":"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        tide_memory_plan *plan = NULL;
        assert_tide_status(tide_plan_from_json(others[i], strlen(others[i]), "p.json", NULL, &plan, NULL),
                           TIDE_ERR_BAD_INPUT);
    }
    tide_host_free(good);
    tide_lifetimes_deinit(&lt);
}

/// Damage by chance: a refusal, or a plan that the definition calls sound; no crash, no leak.
static void bytes_by_chance(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put_sample(&lt);
    char *json = write_document(&lt, (const char *const[]){"greedy_color"}, 1, NULL);
    const size_t len = strlen(json);
    static const char letters[] = "0123456789-\"{}[],:ntf eE.\x80";
    tide_rng rng = {3};
    size_t n_read = 0, n_refused = 0;
    for (int run = 0; run < 4000; run++) {
        char *bad = tide_host_strndup(json, len);
        const size_t n = 1 + tide_rng_below(&rng, 3);
        for (size_t i = 0; i < n; i++) bad[tide_rng_below(&rng, len)] = letters[tide_rng_below(&rng, sizeof letters)];
        tide_memory_plan *plan = NULL;
        if (tide_plan_from_json(bad, len, "p", NULL, &plan, NULL) == TIDE_OK) {
            assert_sound(plan);
            n_read++;
        } else {
            assert_null(plan);
            n_refused++;
        }
        tide_memory_plan_destroy(plan);
        tide_host_free(bad);
    }
    assert_true(n_read > 100 && n_refused > 1000);
    tide_host_free(json);
    tide_lifetimes_deinit(&lt);
}

static void strategies_are_chosen_by_name(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put_sample(&lt);
    char *json = write_document(&lt, (const char *const[]){"greedy_color", "greedy_by_size"}, 2, "no");
    tide_memory_plan *plan = NULL;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_plan_from_json(json, strlen(json), "p", NULL, &plan, &err), &err);
    assert_string_equal(plan->strategy, "greedy_color");
    tide_memory_plan_destroy(plan);
    plan = NULL;
    assert_tide_status(tide_plan_from_json(json, strlen(json), "p", "naive", &plan, &err), TIDE_ERR_NOT_FOUND);
    assert_null(plan);
    assert_text_has(err.msg, "'naive'");
    assert_text_has(err.note, "greedy_color, greedy_by_size");
    tide_host_free(json);
    tide_lifetimes_deinit(&lt);
}

/// The least a document needs: what a person writes by hand.
static void a_document_by_hand(void **state) {
    (void)state;
    static const char json[] =
        "{\"schema\": \"tidemark.plan\", \"version\": 1, \"plans\": [{\"strategy\": \"mine\","
        "\"form\": \"offsets\", \"bytes\": 30}], \"tensors\": ["
        "{\"name\": \"a\", \"size_bytes\": 10, \"begin\": 0, \"end\": 2, \"places\": [{\"offset\": 20}]},"
        "{\"name\": \"b\", \"size_bytes\": 20, \"begin\": 1, \"end\": 3, \"places\": [{\"offset\": 0}]}"
        "]}";
    tide_memory_plan *plan;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_plan_from_json(json, sizeof json - 1, "p", "mine", &plan, &err), &err);
    assert_int_equal(plan->lower_bound_bytes, 30);
    assert_true(plan->proven && plan->verified);
    assert_int_equal(plan->lifetimes.items[0].kind, TIDE_KIND_WORKSPACE);
    assert_int_equal(plan->lifetimes.n_steps, 3);
    tide_memory_plan_destroy(plan);
}

static void no_memory_leaves_nothing(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put_sample(&lt);
    char *json = write_document(&lt, (const char *const[]){"greedy_color"}, 1, NULL);
    tide_memory_plan *plan = make_plan(&lt, "greedy_color");
    for (int what = 0; what < 2; what++) {
        tide_status st = TIDE_ERR_NOMEM;
        int64_t n = 0;
        for (; st != TIDE_OK; n++) {
            tide_host_stats before, after;
            tide_memory_plan *back = NULL;
            tide_text out = {0};
            tide_error err = TIDE_ERROR_INIT;
            tide_host_get_stats(&before);
            tide_host_fail_after(n);
            st = what == 0 ? tide_plan_from_json(json, strlen(json), "p", NULL, &back, &err)
                           : tide_plan_to_json((const tide_memory_plan *const *)&plan, 1, NULL, &out, &err);
            tide_host_fail_after(-1);
            tide_memory_plan_destroy(back);
            tide_text_deinit(&out);
            tide_host_get_stats(&after);
            assert_int_equal(before.n_live, after.n_live);
            if (st != TIDE_OK) assert_tide_status(st, TIDE_ERR_NOMEM);
        }
        assert_true(n > 3);
    }
    tide_memory_plan_destroy(plan);
    tide_host_free(json);
    tide_lifetimes_deinit(&lt);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(round_trip),
        tide_unit_test(the_document),
        tide_unit_test(names_of_any_kind),
        tide_unit_test(the_writer_refuses_mixed_plans),
        tide_unit_test(bad_documents_are_refused),
        tide_unit_test(cut_documents_are_refused),
        tide_unit_test(bytes_by_chance),
        tide_unit_test(strategies_are_chosen_by_name),
        tide_unit_test(a_document_by_hand),
        tide_unit_test(no_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
