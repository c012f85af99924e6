// SPDX-License-Identifier: MIT
//
// planner/plan_json: the `tidemark.plan` document, round trip and refusals.
#include "planner/plan_json.h"
#include "tests/planner/lifetimes_test.h"

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

static void assert_same_buffer(const tide_plan_buffer *a, const tide_plan_buffer *b) {
    assert_true(tide_device_equal(a->device, b->device));
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->align_bytes, b->align_bytes);
    assert_int_equal(a->bytes, b->bytes);
    assert_int_equal(a->naive_bytes, b->naive_bytes);
    assert_int_equal(a->naive_peak_bytes, b->naive_peak_bytes);
    assert_int_equal(a->lower_bound_bytes, b->lower_bound_bytes);
    assert_int_equal(a->proved_bytes, b->proved_bytes);
    assert_int_equal(a->proof, b->proof);
}

static void assert_same_plan(const tide_memory_plan *a, const tide_memory_plan *b) {
    assert_string_equal(a->strategy, b->strategy);
    assert_int_equal(a->form, b->form);
    assert_int_equal(a->bytes, b->bytes);
    assert_int_equal(a->naive_bytes, b->naive_bytes);
    assert_int_equal(a->naive_peak_bytes, b->naive_peak_bytes);
    assert_int_equal(a->lower_bound_bytes, b->lower_bound_bytes);
    assert_int_equal(a->proved_bytes, b->proved_bytes);
    assert_int_equal(a->align_bytes, b->align_bytes);
    assert_int_equal(a->time_ns, b->time_ns);
    assert_int_equal(a->proven, b->proven);
    assert_int_equal(a->verified, b->verified);
    assert_int_equal(a->n_pools, b->n_pools);
    for (size_t p = 0; p < a->n_pools; p++) {
        assert_int_equal(a->pool_list[p].size_bytes, b->pool_list[p].size_bytes);
        assert_int_equal(a->pool_list[p].offset_bytes, b->pool_list[p].offset_bytes);
        assert_int_equal(a->pool_list[p].n_members, b->pool_list[p].n_members);
        assert_int_equal(a->pool_list[p].buffer, b->pool_list[p].buffer);
    }
    assert_int_equal(a->n_buffers, b->n_buffers);
    for (size_t k = 0; k < a->n_buffers; k++) assert_same_buffer(&a->buffers[k], &b->buffers[k]);
    assert_same_lifetimes(&a->lifetimes, &b->lifetimes);
    assert_string_equal(a->lifetimes.model != NULL ? a->lifetimes.model : "", b->lifetimes.model);
    for (size_t i = 0; i < a->lifetimes.n; i++) {
        assert_int_equal(a->offsets[i], b->offsets[i]);
        assert_int_equal(a->pools[i], b->pools[i]);
    }
}

/// A plan that depends on no clock; NULL when the strategy cannot serve the table.
static tide_memory_plan *try_plan(const tide_lifetimes *lt, const tide_strategy *s) {
    const tide_strategy_options opt = {.node_limit = 300, .n_threads = 1};
    tide_memory_plan *plan = NULL;
    tide_error err = TIDE_ERROR_INIT;
    const tide_status st = tide_plan_make(lt, s, &opt, &plan, &err);
    if (st != TIDE_ERR_NOT_IMPLEMENTED) assert_tide_ok(st, &err);
    return plan;
}

static void assert_round_trip(const tide_memory_plan *const *plans, size_t n) {
    tide_text out = {0};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_plan_to_json(plans, n, NULL, &out, &err), &err);
    for (size_t s = 0; s < n; s++) {
        tide_memory_plan *back;
        assert_tide_ok(tide_plan_from_json(out.data, out.len, "p.json", plans[s]->strategy, &back, &err), &err);
        assert_same_plan(plans[s], back);
        tide_text one = {0}, again = {0};
        assert_tide_ok(tide_plan_to_json(&plans[s], 1, NULL, &one, &err), &err);
        assert_tide_ok(tide_plan_to_json((const tide_memory_plan *const *)&back, 1, NULL, &again, &err), &err);
        assert_string_equal(one.data, again.data);
        tide_text_deinit(&one);
        tide_text_deinit(&again);
        tide_memory_plan_destroy(back);
    }
    tide_text_deinit(&out);
}

static char **copy_names(const char *a, const char *b) {
    char **names = tide_host_calloc(2, sizeof *names);
    names[0] = tide_host_strdup(a);
    names[1] = tide_host_strdup(b);
    return names;
}

/// Two profile points, of which the second is the larger, and two nodes that run twice.
static void put_points_and_recomputed(tide_lifetimes *lt) {
    lt->recomputed = copy_names("conv", "re\"lu");
    lt->point_names = copy_names("batch=1", "batch=2");
    lt->n_recomputed = lt->n_points = 2;
    for (size_t i = 0; i < lt->n; i++) {
        uint64_t *points = tide_host_calloc(2, sizeof *points);
        points[0] = lt->items[i].size_bytes / 2;
        points[1] = lt->items[i].size_bytes;
        lt->items[i].point_bytes = points;
    }
}

// S23-14: plan -> JSON -> plan is identical; and so is the document written from what was read. Tables of every
// feature: several buffers, aliases, gaps, fixed offsets, sets to be kept apart, profile points, nodes that run twice.
static void round_trip(void **state) {
    (void)state;
    enum { MAX = 32 };
    const tide_strategy *const *all;
    const size_t n_all = tide_strategies(&all);
    assert_true(n_all <= MAX);
    size_t n_plans = 0, n_buffers = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        tide_rng rng = {seed};
        tide_lifetimes lt = {0};
        if (seed == 0)
            put_sample(&lt);
        else if (seed % 2 == 0)
            put_random(&lt, &rng, tide_rng_below(&rng, 40), 12, 3000, seed % 4 == 0);
        else
            put_every_feature(&lt, &rng, 1 + tide_rng_below(&rng, 20));
        if (seed % 3 == 1) put_points_and_recomputed(&lt);
        if (lt.n > 0) lt.items[0].node = (uint32_t)tide_rng_below(&rng, 100);
        tide_memory_plan *plans[MAX] = {0};
        size_t n = 0;
        for (size_t s = 0; s < n_all; s++) {
            plans[n] = try_plan(&lt, all[s]);
            n += plans[n] != NULL;
        }
        assert_true(n > 0);
        n_plans += n;
        n_buffers += plans[0]->n_buffers;
        assert_round_trip((const tide_memory_plan *const *)plans, n);
        for (size_t s = 0; s < n; s++) tide_memory_plan_destroy(plans[s]);
        tide_lifetimes_deinit(&lt);
    }
    assert_true(n_plans > 300 && n_buffers > 80);
}

/// What a search has proved is kept, where it contradicts nothing; a proof that can be made again is made again.
static void what_a_search_has_proved_is_kept(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put(&lt, "a", 10, 0, 2);
    put(&lt, "b", 10, 1, 3);
    put(&lt, "c", 10, 4, 5);
    tide_memory_plan *plan = make_plan(&lt, "naive");
    assert_int_equal(plan->bytes, 30);
    assert_int_equal(plan->proved_bytes, 20);
    static const struct {
        uint64_t bytes; // said to be proved
        tide_proof proof;
        const char *words; // NULL: taken
    } cases[] = {
        {20, TIDE_PROOF_LIVE_SUM, NULL},        {25, TIDE_PROOF_SEARCH, NULL},
        {30, TIDE_PROOF_SEARCH, NULL},          {31, TIDE_PROOF_SEARCH, "the plan has 30"},
        {19, TIDE_PROOF_SEARCH, "prove 20"},    {25, TIDE_PROOF_LIVE_SUM, "give 20"},
        {20, TIDE_PROOF_ALIGNMENT, "live sum"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        plan->buffers[0].proved_bytes = plan->proved_bytes = cases[k].bytes;
        plan->buffers[0].proof = cases[k].proof;
        plan->proven = plan->bytes == plan->proved_bytes;
        tide_text out = {0};
        tide_memory_plan *back = NULL;
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(tide_plan_to_json((const tide_memory_plan *const *)&plan, 1, NULL, &out, &err), &err);
        const tide_status st = tide_plan_from_json(out.data, out.len, "p", NULL, &back, &err);
        if (cases[k].words != NULL) {
            assert_tide_status(st, TIDE_ERR_BAD_INPUT);
            assert_text_has(err.msg, cases[k].words);
        } else {
            assert_tide_ok(st, &err);
            assert_same_plan(plan, back);
            assert_int_equal(back->proven, cases[k].bytes == 30);
        }
        tide_memory_plan_destroy(back);
        tide_text_deinit(&out);
    }
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
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
        "\"naive_peak_bytes\": 2560, \"proved_bytes\": 2560, \"proof\": \"live sum\", \"buffers\": [\n"
        "      {\"device\": \"cpu\", \"kind\": \"Workspace\", \"bytes\": 2560, \"naive_bytes\": 3072, "
        "\"naive_peak_bytes\": 2560, \"lower_bound_bytes\": 2560, \"proved_bytes\": 2560, "
        "\"proof\": \"live sum\", \"proven\": true, \"align_bytes\": 256}\n"
        "    ], \"n_pools\": 2, \"pools\": [\n"
        "      {\"id\": 0, \"size_bytes\": 1536, \"offset_bytes\": 0, \"members\": [\"b\"]},\n"
        "      {\"id\": 1, \"size_bytes\": 1024, \"offset_bytes\": 1536, \"members\": [\"a\", \"c\"]}\n"
        "    ]},\n"
        "    {\"strategy\": \"greedy_by_size\", \"form\": \"offsets\", \"bytes\": 2560, \"naive_bytes\": 3072, "
        "\"lower_bound_bytes\": 2560, \"saving\": 0.166667, \"proven\": true, \"verified\": true, \"time_ns\": 1001, "
        "\"naive_peak_bytes\": 2560, \"proved_bytes\": 2560, \"proof\": \"live sum\", \"buffers\": [\n"
        "      {\"device\": \"cpu\", \"kind\": \"Workspace\", \"bytes\": 2560, \"naive_bytes\": 3072, "
        "\"naive_peak_bytes\": 2560, \"lower_bound_bytes\": 2560, \"proved_bytes\": 2560, "
        "\"proof\": \"live sum\", \"proven\": true, \"align_bytes\": 256}\n"
        "    ], \"n_pools\": 0, \"pools\": []}\n"
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
    {"\"bytes\": 2560", "\"bytes\": 2304", TIDE_ERR_BAD_INPUT, "the tensors give 2560", "p.json: plans[0].bytes"},
    {"\"Workspace\", \"bytes\": 2560", "\"Workspace\", \"bytes\": 2304", TIDE_ERR_BAD_INPUT, "2304",
     "p.json: plans[0].bytes"},
    {"\"device\": \"cpu\", \"kind\": \"Workspace\", \"bytes\"",
     "\"device\": \"cuda:0\", \"kind\": \"Workspace\", \"bytes\"", TIDE_ERR_BAD_INPUT, "cuda:0",
     "p.json: plans[0].buffers[0].device"},
    {"\"kind\": \"Workspace\", \"bytes\"", "\"kind\": \"KVCache\", \"bytes\"", TIDE_ERR_BAD_INPUT, "KVCache",
     "p.json: plans[0].buffers[0].kind"},
    {"\"buffers\": [\n", "\"buffers\": [{},\n", TIDE_ERR_BAD_INPUT, "2 buffers", "p.json: plans[0].buffers"},
    {"\"proof\": \"live sum\", \"proven\"", "\"proof\": \"hope\", \"proven\"", TIDE_ERR_BAD_INPUT, "hope",
     "p.json: plans[0].buffers[0].proof"},
    {"\"naive_peak_bytes\": 2560", "\"naive_peak_bytes\": 2561", TIDE_ERR_BAD_INPUT, "2560",
     "p.json: plans[0].naive_peak_bytes"},
    {"\"proved_bytes\": 2560", "\"proved_bytes\": 2561", TIDE_ERR_BAD_INPUT, "2560", "p.json: plans[0].proved_bytes"},
    {"\"offset_bytes\": 0, ", "\"offset_bytes\": 0, \"buffer\": 1, ", TIDE_ERR_BAD_INPUT, "buffer 1 of 1",
     "p.json: plans[0].pools[0].buffer"},
    {"\"value\": 12", "\"value\": 12, \"fixed_offset\": 0", TIDE_ERR_BAD_INPUT, "fixed", "p.json: plans[0]"},
    {"\"value\": 12", "\"value\": 12, \"alias\": {\"of\": \"b\"}", TIDE_ERR_BAD_INPUT, "the tensors give 2048",
     "p.json: plans[0].buffers[0].lower_bound_bytes"},
    {"\"bytes\": 2560", "\"bytes\": 99999999999999999999", TIDE_ERR_BAD_INPUT, "too big", "p.json:8:"},
    {"\"naive_bytes\": 3072", "\"naive_bytes\": 9999", TIDE_ERR_BAD_INPUT, "3072", "p.json: plans[0].naive_bytes"},
    {"\"lower_bound_bytes\": 2560", "\"lower_bound_bytes\": 1", TIDE_ERR_BAD_INPUT, "2560",
     "p.json: plans[0].lower_bound_bytes"},
    {"\"pools\": [", "\"ponds\": [", TIDE_ERR_BAD_INPUT, "'pools' is missing", "p.json: plans[0].pools"},
    {"\"id\": 1", "\"id\": 0", TIDE_ERR_BAD_INPUT, "ids count", "p.json: plans[0].pools[1].id"},
    {"\"size_bytes\": 1536, \"offset_bytes\": 0", "\"size_bytes\": 1280, \"offset_bytes\": 0", TIDE_ERR_BAD_INPUT,
     "needs 1536", "p.json: plans[0]"},
    {"\"members\": [\"b\"]", "\"members\": [\"zz\"]", TIDE_ERR_BAD_INPUT, "'zz'", "p.json: plans[0].pools[0].members"},
    {"\"members\": [\"b\"]", "\"members\": [\"a\"]", TIDE_ERR_BAD_INPUT, "member of pool 0",
     "p.json: plans[0].pools[0].members"},
    {"\"members\": [\"b\"]", "\"members\": [3]", TIDE_ERR_BAD_INPUT, "members[0]", "p.json: plans[0].pools[0].members"},
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
    {"\"kind\": \"Workspace\", \"pers", "\"kind\": \"Heap\", \"pers", TIDE_ERR_BAD_INPUT, "Heap",
     "p.json: tensors[0].kind"},
    {"\"role\": \"weight\"", "\"role\": \"wait\"", TIDE_ERR_BAD_INPUT, "wait", "p.json: tensors[3].role"},
    {"\"kind\": \"Workspace\", \"persistent\": false, \"role\": \"intermediate\", \"device\": \"cpu\"",
     "\"kind\": \"HostPinned\", \"persistent\": false, \"role\": \"intermediate\", \"device\": \"cuda:0\"",
     TIDE_ERR_BAD_INPUT, "not on cuda:0", "p.json: tensors[0].kind"},
    {"\"device\": \"cpu\", \"align", "\"device\": \"tpu\", \"align", TIDE_ERR_BAD_INPUT, "tpu",
     "p.json: tensors[0].device"},
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
     "p.json: tensors[0].places[0].offset"},
    {"{\"pool\": 1, \"offset\": 1536}", "{\"pool\": -7, \"offset\": 1536}", TIDE_ERR_BAD_INPUT, "no pool number",
     "p.json: tensors[0].places"},
    {"{\"pool\": 1, \"offset\": 1536}", "{\"pool\": 0, \"offset\": 0}", TIDE_ERR_BAD_INPUT, "member of pool 1",
     "p.json: plans[0].pools[1].members"},
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

/// An alias lies where its root puts it: another offset is refused, none at all is as good as the right one.
static void aliases_lie_in_their_roots(void **state) {
    (void)state;
    static const struct {
        const char *offset;
        bool good;
    } cases[] = {{"20", true}, {"null", true}, {"21", false}, {"16", false}};
    for (size_t k = 0; k < 4; k++) {
        char json[600];
        snprintf(json, sizeof json,
                 "{\"schema\": \"tidemark.plan\", \"version\": 1, \"plans\": [{\"strategy\": \"mine\","
                 "\"form\": \"offsets\", \"bytes\": 46}], \"tensors\": ["
                 "{\"name\": \"v\", \"size_bytes\": 10, \"begin\": 3, \"end\": 4, \"places\": [{\"offset\": %s}],"
                 " \"alias\": {\"of\": \"a\", \"offset\": 4}},"
                 "{\"name\": \"a\", \"size_bytes\": 30, \"begin\": 0, \"end\": 2, \"places\": [{\"offset\": 16}]}]}",
                 cases[k].offset);
        tide_memory_plan *plan = NULL;
        tide_error err = TIDE_ERROR_INIT;
        const tide_status st = tide_plan_from_json(json, strlen(json), "p", NULL, &plan, &err);
        if (cases[k].good) {
            assert_tide_ok(st, &err);
            assert_int_equal(plan->offsets[0], 20);
        } else {
            assert_tide_status(st, TIDE_ERR_BAD_INPUT);
            assert_text_has(err.msg, "not where that one has");
            assert_text_has(err.where, "tensors[0].places");
        }
        tide_memory_plan_destroy(plan);
    }
}

/// A document of a time before buffers, aliases and proofs: the keys of version 1 as it was first written.
static void old_documents_are_read(void **state) {
    (void)state;
    static const char json[] =
        "{\"schema\": \"tidemark.plan\", \"version\": 1, \"model\": \"old\", \"n_steps\": 3, \"align_bytes\": 256, "
        "\"plans\": [{\"strategy\": \"greedy_by_size\", \"form\": \"offsets\", \"bytes\": 2560, \"naive_bytes\": 3072, "
        "\"lower_bound_bytes\": 2560, \"saving\": 0.166667, \"proven\": true, \"verified\": true, \"time_ns\": 7, "
        "\"n_pools\": 0, \"pools\": []}], \"order\": [\"x\", \"y\", \"z\"], \"tensors\": ["
        "{\"name\": \"a\", \"size_bytes\": 1000, \"begin\": 0, \"end\": 2, \"birth\": 0, \"death\": 1, "
        "\"kind\": \"Workspace\", \"persistent\": false, \"role\": \"intermediate\", \"device\": \"cpu\", "
        "\"align_bytes\": 256, \"aligned_bytes\": 1024, \"node\": 7, \"port\": 1, \"value\": 12, "
        "\"places\": [{\"pool\": -1, \"offset\": 1536}]},"
        "{\"name\": \"b\", \"size_bytes\": 1500, \"begin\": 1, \"end\": 3, \"align_bytes\": 256, "
        "\"places\": [{\"pool\": -1, \"offset\": 0}]},"
        "{\"name\": \"c\", \"size_bytes\": 300, \"begin\": 2, \"end\": 3, \"align_bytes\": 256, "
        "\"places\": [{\"pool\": -1, \"offset\": 1536}]}]}";
    tide_memory_plan *plan;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_plan_from_json(json, sizeof json - 1, "p", NULL, &plan, &err), &err);
    assert_int_equal(plan->n_buffers, 1);
    assert_int_equal(plan->buffers[0].bytes, 2560);
    assert_int_equal(plan->buffers[0].proved_bytes, 2560);
    assert_int_equal(plan->naive_peak_bytes, 2560);
    assert_true(plan->proven && plan->verified);
    tide_memory_plan_destroy(plan);
}

/// Everything that may stand beside the plans; readers pass over it.
static void extras_stand_beside_the_plans(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    tide_error err = TIDE_ERROR_INIT;
    put_sample(&lt);
    tide_memory_plan *plan = make_plan(&lt, "naive"), *back;
    tide_pass_report passes = {.given_bytes = 100, .work = 4, .extra_work = 1};
    passes.gains[TIDE_PASS_VIEWS] = (tide_pass_gain){.ran = true, .before_bytes = 100, .after_bytes = 80, .n = 2};
    char why[] = "cannot \"keep\" places", what[] = "--align 64";
    const tide_plan_refusal refused = {"greedy_color", why};
    tide_advice_row row = {.change = {.kind = TIDE_CHANGE_ALIGN}, .what = what, .need_bytes = 7, .fits = true};
    const tide_advice advice = {.need_bytes = 9, .budget_bytes = 8, .rows = &row, .n = 1};
    const tide_point_need point = {"x=1", 10, 20};
    tide_peaks peaks;
    assert_tide_ok(tide_peaks_find(&lt, &peaks, &err), &err);
    const tide_plan_extras extras = {.fits = "no",
                                     .passes = &passes,
                                     .refused = &refused,
                                     .n_refused = 1,
                                     .peaks = &peaks,
                                     .advice = &advice,
                                     .points = &point,
                                     .n_points = 1};
    tide_text out = {0};
    assert_tide_ok(tide_plan_to_json_with((const tide_memory_plan *const *)&plan, 1, &extras, &out, &err), &err);
    static const char *const parts[] = {
        "\"fits\": \"no\"",
        "{\"pass\": \"views\", \"ran\": true, \"before_bytes\": 100, \"after_bytes\": 80, \"n\": 2}",
        "\"extra_work\": 0.250000",
        "{\"strategy\": \"greedy_color\", \"why\": \"cannot \\\"keep\\\" places\"}",
        "{\"tensor\": \"b\", \"bytes\": 1536, \"share\": 0.600000, \"kind\": \"Workspace\", \"step\": 1, "
        "\"made_by\": \"relu\", \"last_read_by\": \"say \\\"fc\\\"\", \"inside\": null}",
        "\"need_bytes\": 9,\n  \"budget_bytes\": 8,",
        "{\"kind\": \"align\", \"change\": \"--align 64\", \"need_bytes\": 7, \"saves_bytes\": 0, \"fits\": true}",
        "{\"point\": \"x=1\", \"lower_bound_bytes\": 10, \"bytes\": 20}",
    };
    for (size_t k = 0; k < sizeof parts / sizeof parts[0]; k++) assert_text_has(out.data, parts[k]);
    assert_tide_ok(tide_plan_from_json(out.data, out.len, "p", NULL, &back, &err), &err);
    assert_same_plan(plan, back);
    tide_memory_plan_destroy(back);
    tide_text_deinit(&out);
    tide_peaks_deinit(&peaks);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
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
        tide_unit_test(aliases_lie_in_their_roots),
        tide_unit_test(old_documents_are_read),
        tide_unit_test(what_a_search_has_proved_is_kept),
        tide_unit_test(extras_stand_beside_the_plans),
        tide_unit_test(no_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
