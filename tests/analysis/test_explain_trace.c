// SPDX-License-Identifier: MIT
//
// The explainer of traces: the demo trace by hand, and traces of real allocators and of chance where every figure is
// counted again from the events alone.
#include "analysis/explain_internal.h"
#include "tests/analysis/explain_fixture.h"

static tide_explanation explained(tide_subject *s, tide_moment at, size_t n_without) {
    tide_error err = TIDE_ERROR_INIT;
    tide_explanation e;
    assert_tide_ok(tide_explain(s, at, n_without, NULL, &e, &err), &err);
    return e;
}

/// Without all that have the name and owner of one that is alive and does not persist.
static uint64_t second_peak(const history *h, const tide_explanation *e, uint64_t *event) {
    static uint64_t away[MAX_EVENTS + 1];
    uint64_t best = 0;
    memset(away, 0, sizeof away);
    *event = 0;
    for (size_t k = 0; k < h->n_blocks; k++) {
        bool goes = false;
        for (size_t i = 0; i < e->live.n && !goes; i++) {
            const tide_live_item *x = &e->live.items[i];
            goes = !x->shape.persistent && are_alike(block_at(h, x->id, e->live.at.event), &h->blocks[k]);
        }
        for (uint64_t n = h->blocks[k].alloc_event; goes && n <= h->n_events && n < h->blocks[k].free_event; n++)
            away[n] += h->blocks[k].requested;
    }
    for (uint64_t k = 0; k <= h->n_events; k++) {
        if (h->bytes[k] - away[k] <= best) continue;
        best = h->bytes[k] - away[k];
        *event = k;
    }
    return best;
}

/// Of a long trace: while none of them is alive.
static uint64_t second_of_stretches(const history *h, const tide_explanation *e, uint64_t *event) {
    uint64_t best = 0, from = UINT64_MAX, to = 0; // some of them is alive in [from, to): all are at one moment
    *event = 0;
    for (size_t i = 0; i < e->live.n; i++) {
        const block *b = block_at(h, e->live.items[i].id, e->live.at.event);
        if (e->live.items[i].shape.persistent) continue;
        if (b->alloc_event < from) from = b->alloc_event;
        if (b->free_event > to) to = b->free_event;
    }
    for (uint64_t k = 0; k <= h->n_events; k++) {
        if ((from <= k && k < to) || h->bytes[k] <= best) continue;
        best = h->bytes[k];
        *event = k;
    }
    return best;
}

/// Of those that go the ones that are alive at the moment.
static void assert_now(const history *h, const tide_explanation *e, const tide_without *w, bool alike) {
    const block *b = block_at(h, e->live.items[w->live].id, e->live.at.event);
    uint64_t n = 0, bytes = 0;
    for (size_t i = 0; i < e->live.n; i++) {
        const tide_live_item *x = &e->live.items[i];
        const block *other = block_at(h, x->id, e->live.at.event);
        if (x->shape.persistent || (alike ? !are_alike(b, other) : other != b)) continue;
        n++;
        bytes += x->counts_bytes;
    }
    assert_int_equal(w->n_now, n);
    assert_int_equal(w->bytes, bytes);
}

static void assert_without(const history *h, const tide_explanation *e, bool alike) {
    for (size_t i = 0; i < e->n_without; i++) {
        const tide_without *w = &e->without[i];
        const block *b = block_at(h, e->live.items[w->live].id, e->live.at.event);
        uint64_t event, n;
        assert_int_equal(w->peak_bytes, peak_without(h, b, alike, &event, &n));
        assert_int_equal(w->at.event, event);
        assert_int_equal(w->n_alike, n);
        assert_now(h, e, w, alike);
        if (event > 0) assert_int_equal(w->at.t, h->events[event - 1].t_ns);
        for (size_t k = 0; alike && k < i; k++)
            assert_false(are_alike(b, block_at(h, e->live.items[e->without[k].live].id, e->live.at.event)));
    }
}

/// As of a trace that is too long for a replay: each block alone.
static void explain_alone(tide_subject *s, const history *h, tide_moment at, size_t n_without) {
    tide_error err = TIDE_ERROR_INIT;
    tide_explanation e = {.at = at};
    assert_tide_ok(tide_subject_live(s, at, &e.live, &err), &err);
    tide__reporter none = {0};
    assert_tide_ok(tide__explain_trace(s, n_without, 0, &none, &e, &err), &err);
    assert_without(h, &e, false);
    uint64_t event;
    if (n_without > 0) assert_int_equal(e.second_peak_bytes, second_of_stretches(h, &e, &event));
    for (size_t i = 0; i < e.n_without; i++) assert_true(e.second_peak_bytes <= e.without[i].peak_bytes);
    tide_explanation_deinit(&e);
}

static void assert_explained(tide_subject *s, const history *h, tide_moment at, size_t n_without) {
    tide_explanation e = explained(s, at, n_without);
    uint64_t want[4], parts = 0, owners = 0, kinds = 0, event;
    const uint64_t now = e.live.at.event;
    count(h, now, want);
    for (int k = 0; k < TIDE_N_PARTS; k++) parts += e.parts[k];
    for (size_t i = 0; i < e.n_by_owner; i++) owners += e.by_owner[i].bytes;
    for (size_t i = 0; i < e.n_by_kind; i++) kinds += e.by_kind[i].bytes;
    assert_int_equal(parts, e.held_bytes);
    assert_int_equal(owners, e.live.bytes);
    assert_int_equal(kinds, e.live.bytes);
    assert_int_equal(e.live.bytes, h->bytes[now]);
    assert_int_equal(e.parts[TIDE_PART_LIVE], want[0]);
    assert_int_equal(e.parts[TIDE_PART_ROUNDING], want[1] - want[0]);
    assert_int_equal(e.parts[TIDE_PART_HOLES], want[2]);
    assert_int_equal(e.parts[TIDE_PART_CACHED], want[3]);
    assert_int_equal(e.parts[TIDE_PART_SLACK] + e.parts[TIDE_PART_UNUSED], 0);
    assert_true(e.knows_ends);
    assert_without(h, &e, true);
    for (size_t i = 1; i < e.n_without; i++) assert_true(e.without[i - 1].peak_bytes <= e.without[i].peak_bytes);
    assert_int_equal(e.second_peak_bytes, n_without > 0 ? second_peak(h, &e, &event) : 0);
    if (e.second_peak_bytes > 0) assert_int_equal(e.second_peak.event, event);
    for (size_t i = 0; i < e.n_without; i++) assert_true(e.second_peak_bytes <= e.without[i].peak_bytes);
    tide_explanation_deinit(&e);
    explain_alone(s, h, at, n_without);
}

/// Moments of the whole trace, by event and by time, and its peak with all that could be without.
static void assert_trace(const char *path, bool loaded) {
    history *h = calloc(1, sizeof *h);
    assert_non_null(h);
    tide_subject *s = subject_of_trace(path, 0);
    if (loaded) load_items(s);
    read_history(tide_subject_trace(s), h);
    const size_t step = h->n_events / 60 + 1;
    for (uint64_t k = 1; k <= h->n_events; k += step) {
        assert_explained(s, h, (tide_moment){.t = (int64_t)h->events[k - 1].t_ns, .event = k}, 5);
        assert_explained(s, h, (tide_moment){.t = (int64_t)h->events[k - 1].t_ns}, 0);
    }
    assert_explained(s, h, tide_subject_get_facts(s)->peak, 1000);
    tide_subject_destroy(s);
    free(h);
}

static void real_allocators(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        tmp_dir d;
        tmp_dir_make(&d);
        working w;
        work_open(&w, d.file);
        work_at_random(&w, seed, 300);
        work_close(&w);
        assert_trace(d.file, seed % 2 == 0);
        tmp_dir_remove(&d);
    }
}

/// Events by chance, several in one nanosecond, some blocks never freed.
static void crowded_moments(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= (uint64_t)tide_test_rounds(2, 6); seed++) {
        tmp_dir d;
        feeder f;
        tide_rng rng = {seed};
        uint64_t ids[40] = {0}, sizes[40] = {0}, t = 1000, n_ids = 0;
        tmp_dir_make(&d);
        feeder_open(&f, d.file, 0, false);
        for (int i = 0; i < 700; i++) {
            const size_t slot = tide_rng_below(&rng, 40);
            t += tide_rng_below(&rng, 3) == 0;
            if (ids[slot] != 0) {
                feed(&f, t, TIDE_MEM_FREE_REQUESTED, ids[slot], TIDE_KIND_WORKSPACE, sizes[slot], "t");
                feed(&f, t, TIDE_MEM_FREE_COMPLETED, ids[slot], TIDE_KIND_WORKSPACE, sizes[slot], "t");
                ids[slot] = 0;
            } else {
                static const char *const names[] = {"t", "u", "v", ""};
                ids[slot] = ++n_ids;
                sizes[slot] = 1 + tide_rng_below(&rng, 5000);
                feed(&f, t, TIDE_MEM_ALLOC, ids[slot], TIDE_KIND_WORKSPACE, sizes[slot], names[slot % 4]);
            }
        }
        feeder_close(&f);
        assert_trace(d.file, false);
        tmp_dir_remove(&d);
    }
}

// ---- by hand ----

static const tide_without *without(const tide_explanation *e, const char *name) {
    for (size_t i = 0; i < e->n_without; i++) {
        if (strcmp(e->live.items[e->without[i].live].site.name, name) == 0) return &e->without[i];
    }
    fail_msg("nothing is said of '%s'", name);
    return NULL;
}

/// Run 1 of the demo trace at its peak, 1320: a, b, c, conv2.scratch and what persists, 5120 bytes.
static void the_naive_run(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    demo_record(d.file, 0);
    tide_subject *s = subject_of_trace(d.file, 1);
    const tide_subject_facts *f = tide_subject_get_facts(s);
    tide_explanation e = explained(s, f->peak, 20);
    assert_int_equal(e.at.t, 1320);
    assert_int_equal(e.held_bytes, 5120);
    assert_int_equal(e.parts[TIDE_PART_LIVE], 5120);
    // Without a 5120 - 1024 there; before, when a, conv.scratch and what persists were alive, it is less.
    assert_int_equal(without(&e, "a")->peak_bytes, 4096);
    assert_int_equal(without(&e, "a")->at.t, 1320);
    assert_string_equal(without(&e, "a")->step, "conv2");
    // Without c: 4352 twice; the first time is at 1120, of conv.
    assert_int_equal(without(&e, "c")->peak_bytes, 2560 + 1792);
    assert_int_equal(without(&e, "c")->at.t, 1120);
    assert_string_equal(without(&e, "c")->step, "conv");
    assert_int_equal(e.n_without, 4);
    // conv.scratch is left, and what persists: x, w and y are not among those that can go.
    assert_int_equal(e.second_peak_bytes, 2560 + 768);
    assert_int_equal(e.second_peak.t, 1120);
    tide_text t = {0};
    tide_explanation_print(&e, s, 2, &t);
    assert_text_has(tide_text_str(&t), "At 320 ns (conv2) 5.00 KiB are held: 5.00 KiB live.\n");
    assert_text_has(tide_text_str(&t),
                    "Without a (1.00 KiB) the peak would be 4.00 KiB, 20.0 % lower, at 320 ns (conv2)");
    assert_text_has(tide_text_str(&t),
                    "Without all that is alive and does not persist it would be 3.25 KiB, at 120 ns (conv).\n");
    tide_text_deinit(&t);
    tide_explanation_deinit(&e);
    tide_subject_destroy(s);
    tmp_dir_remove(&d);
}

/// Three executions of one operator, each with a scope of its own: what is made in all of them goes from all of them.
static void every_iteration(void **state) {
    (void)state;
    tmp_dir d;
    feeder f;
    tmp_dir_make(&d);
    feeder_open(&f, d.file, 0, false);
    for (uint64_t k = 0; k < 3; k++) {
        const uint64_t t = 1000 + 100 * k;
        const tide_scope run = {.name = "m", .kind = TIDE_SCOPE_RUN, .index = (int32_t)k};
        const tide_scope op = {.name = "conv", .kind = TIDE_SCOPE_OPERATOR, .index = 0, .parent = &run};
        feed_scope(&f, t, true, &run);
        feed_scope(&f, t + 1, true, &op);
        feed(&f, t + 2, TIDE_MEM_ALLOC, 10 * k + 1, TIDE_KIND_WORKSPACE, 640, "out");
        feed(&f, t + 3, TIDE_MEM_ALLOC, 10 * k + 2, TIDE_KIND_WORKSPACE, 320, "scratch");
        feed_free(&f, t + 10, 10 * k + 2, TIDE_KIND_WORKSPACE, 320, "scratch");
        feed_scope(&f, t + 11, false, &op);
        feed_free(&f, t + 20, 10 * k + 1, TIDE_KIND_WORKSPACE, 640, "out");
        feed_scope(&f, t + 21, false, &run);
    }
    feeder_close(&f);
    assert_trace(d.file, false);
    tide_subject *s = subject_of_trace(d.file, 0);
    tide_explanation e = explained(s, tide_subject_get_facts(s)->peak, 20);
    assert_int_equal(e.n_without, 2);
    assert_int_equal(without(&e, "out")->n_alike, 3);
    assert_int_equal(without(&e, "out")->peak_bytes, 320);
    assert_int_equal(without(&e, "scratch")->peak_bytes, 640);
    tide_text t = {0};
    tide_explanation_print(&e, s, 3, &t);
    assert_text_has(tide_text_str(&t),
                    "Without out (640 B, 1 now of 3 in the run made by conv, which all go) the peak would be 320 B, "
                    "66.7 % lower, at ");
    tide_text_deinit(&t);
    tide_explanation_deinit(&e);
    tide_subject_destroy(s);
    tmp_dir_remove(&d);
}

/// What lives when a run begins counts in it, and can be without as well as what comes later.
static void from_before_the_run(void **state) {
    (void)state;
    tmp_dir d;
    feeder f;
    tmp_dir_make(&d);
    feeder_open(&f, d.file, 0, false);
    const tide_run_info info = {.model = "m", .mode = "naive", .device = "cpu"};
    feed(&f, 100, TIDE_MEM_ALLOC, 1, TIDE_KIND_WORKSPACE, 9999, "gone before");
    feed_free(&f, 110, 1, TIDE_KIND_WORKSPACE, 9999, "gone before");
    feed(&f, 120, TIDE_MEM_ALLOC, 2, TIDE_KIND_WORKSPACE, 5000, "big");
    const int64_t run = feed_begin_run(&f, 200, &info, NULL);
    feed(&f, 210, TIDE_MEM_ALLOC, 3, TIDE_KIND_WORKSPACE, 100, "small");
    feed_free(&f, 220, 3, TIDE_KIND_WORKSPACE, 100, "small");
    feed_free(&f, 230, 2, TIDE_KIND_WORKSPACE, 5000, "big");
    feed(&f, 240, TIDE_MEM_ALLOC, 4, TIDE_KIND_WORKSPACE, 300, "late");
    feed_end_run(&f, 300);
    feed(&f, 310, TIDE_MEM_ALLOC, 5, TIDE_KIND_WORKSPACE, 7777, "behind");
    feeder_close(&f);
    tide_subject *s = subject_of_trace(d.file, run);
    for (int alone = 0; alone < 2; alone++) {
        tide_error err = TIDE_ERROR_INIT;
        tide__reporter none = {0};
        tide_explanation e = {.at = tide_subject_get_facts(s)->peak};
        assert_tide_ok(tide_subject_live(s, e.at, &e.live, &err), &err);
        assert_tide_ok(tide__explain_trace(s, 20, alone ? 0 : 1000, &none, &e, &err), &err);
        assert_int_equal(e.n_without, 2);
        assert_int_equal(without(&e, "big")->peak_bytes, 300);
        assert_int_equal(without(&e, "big")->at.t, 240);
        assert_int_equal(without(&e, "big")->n_alike, 1);
        assert_int_equal(without(&e, "small")->peak_bytes, 5000);
        assert_int_equal(without(&e, "small")->at.t, 200); // as the run begins
        assert_int_equal(e.second_peak_bytes, 300);
        tide_explanation_deinit(&e);
    }
    tide_subject_destroy(s);
    tmp_dir_remove(&d);
}

/// Run 2 has a buffer of 2560: the tensors that lie in it, in each execution.
static void the_planned_run(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    demo_record(d.file, 0);
    for (int loaded = 0; loaded < 2; loaded++) {
        tide_subject *s = subject_of_trace(d.file, 2);
        if (loaded) load_items(s);
        tide_explanation e = explained(s, (tide_moment){.t = 2160}, 20); // relu: a and b
        assert_int_equal(e.held_bytes, 2560 + DEMO_BYTES);
        assert_int_equal(e.parts[TIDE_PART_LIVE], 2560 + 1536);
        assert_int_equal(e.parts[TIDE_PART_UNUSED], DEMO_BYTES - 1536);
        assert_int_equal(e.live.n, 5);
        size_t n_planned = 0;
        for (size_t i = 0; i < e.live.n; i++) {
            const tide_live_item *x = &e.live.items[i];
            assert_string_not_equal(x->site.name, "plan buffer");
            if (!x->shape.is_planned) continue;
            n_planned++;
            assert_true(strcmp(x->site.name, "a") == 0 || strcmp(x->site.name, "b") == 0);
            assert_int_equal(x->counts_bytes, x->site.name[0] == 'a' ? 1024 : 512);
            assert_string_equal(x->site.owner, x->site.name[0] == 'a' ? "conv" : "relu");
            assert_int_equal(x->begin, x->site.name[0] == 'a' ? 2100 : 2150);
            assert_int_equal(x->item != TIDE_NO_ITEM, loaded);
        }
        assert_int_equal(n_planned, 2);
        // x, w and y persist. Without a the plan is 1536: b 512, c 768 and conv2.scratch 256 at step 2. The peak of the
        // run has 40 bytes of scratch more.
        assert_int_equal(e.n_without, 2);
        for (size_t i = 0; i < 2; i++) {
            const uint64_t plan_bytes = i == 0 ? 1536 : 2048;
            assert_string_equal(e.without[i].name, i == 0 ? "a" : "b");
            assert_true(e.without[i].has_plan);
            assert_int_equal(e.without[i].was_bytes, DEMO_BYTES);
            assert_int_equal(e.without[i].plan_bytes, plan_bytes);
            assert_int_equal(e.without[i].bytes, i == 0 ? 1024 : 512);
            assert_int_equal(e.without[i].peak_bytes,
                             tide_subject_get_facts(s)->peak_bytes - (DEMO_BYTES - plan_bytes));
        }
        // Without both, c and conv2.scratch are left in it.
        assert_int_equal(e.second_peak_bytes, tide_subject_get_facts(s)->peak_bytes - (DEMO_BYTES - 1024));
        tide_explanation_deinit(&e);
        // Before the first step, and between two executions, nothing lies in it; in the second they lie again.
        static const int64_t times[] = {2045, 2299, 2660};
        for (size_t k = 0; k < 3; k++) {
            e = explained(s, (tide_moment){.t = times[k]}, 20);
            assert_int_equal(e.parts[TIDE_PART_UNUSED], k < 2 ? DEMO_BYTES : DEMO_BYTES - 1792);
            assert_int_equal(e.held_bytes - e.parts[TIDE_PART_ROUNDING], 2560 + DEMO_BYTES + (k == 2 ? 40 : 0));
            tide_explanation_deinit(&e);
        }
        tide_subject_destroy(s);
    }
    tmp_dir_remove(&d);
}

/// One execution, in the second of three buffers; `says`: its scope has the number of the block.
static void record_contexts(const char *path, bool says) {
    feeder f;
    feeder_open(&f, path, 0, false);
    tide_memory_plan *plan = demo_plan_make();
    const tide_run_info info = {.model = "demo",
                                .source = "demo.json",
                                .mode = "planned",
                                .strategy = "by_hand",
                                .device = "cpu",
                                .n_contexts = 3};
    assert_int_equal(feed_begin_run(&f, 2000, &info, plan), 1);
    feed(&f, 2010, TIDE_MEM_ALLOC, 14, TIDE_KIND_WORKSPACE, DEMO_BYTES, "plan buffer");
    feed(&f, 2020, TIDE_MEM_ALLOC, 16, TIDE_KIND_WORKSPACE, DEMO_BYTES, "plan buffer");
    feed(&f, 2030, TIDE_MEM_ALLOC, 15, TIDE_KIND_WORKSPACE, DEMO_BYTES, "plan buffer");
    const tide_scope run = {.name = "demo", .kind = TIDE_SCOPE_RUN, .index = 0, .block_id = says ? 16 : 0};
    feed_scope(&f, 2090, true, &run);
    for (int i = 0; i < N_DEMO_STEPS; i++) {
        const tide_scope op = {.name = demo_steps[i], .kind = TIDE_SCOPE_OPERATOR, .index = i, .parent = &run};
        feed_scope(&f, 2100 + 50 * (uint64_t)i, true, &op);
        feed_scope(&f, 2140 + 50 * (uint64_t)i, false, &op);
    }
    feed_scope(&f, 2300, false, &run);
    feed_end_run(&f, 2900);
    tide_memory_plan_destroy(plan);
    feeder_close(&f);
}

/// Three contexts have a buffer each. The tensors lie in that which the run names; where it names none, all three stay
/// blocks, which cannot be told apart.
static void the_buffers_of_contexts(void **state) {
    (void)state;
    for (int k = 0; k < 4; k++) {
        const bool says = k % 2 == 0, loaded = k / 2 != 0;
        tmp_dir d;
        tmp_dir_make(&d);
        record_contexts(d.file, says);
        tide_subject *s = subject_of_trace(d.file, 1);
        if (loaded) load_items(s);
        tide_explanation e = explained(s, (tide_moment){.t = 2160}, 0);
        assert_int_equal(e.held_bytes, 3 * DEMO_BYTES);
        uint64_t blocks = 0;
        size_t n_planned = 0;
        for (size_t i = 0; i < e.live.n; i++) {
            n_planned += e.live.items[i].shape.is_planned;
            if (!e.live.items[i].shape.is_planned) blocks += e.live.items[i].id;
        }
        assert_int_equal(n_planned, says ? 2 : 0); // a and b
        assert_int_equal(e.live.n, says ? 4 : 3);
        assert_int_equal(blocks, says ? 14 + 15 : 14 + 15 + 16);
        assert_int_equal(e.parts[TIDE_PART_UNUSED], says ? DEMO_BYTES - 1536 : 0);
        if (loaded) assert_int_equal(tide_subject_items(s)->n, says ? 2 + 5 : 3 + 5);
        tide_explanation_deinit(&e);
        tide_subject_destroy(s);
        tmp_dir_remove(&d);
    }
}

static void before_everything(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    demo_record(d.file, 0);
    tide_subject *s = subject_of_trace(d.file, 0);
    tide_explanation e = explained(s, (tide_moment){.t = 1}, 5);
    assert_int_equal(e.held_bytes, 0);
    assert_int_equal(e.live.n, 0);
    assert_int_equal(e.second_peak_bytes, 5160); // the peak of the whole: nothing is alive that could go
    tide_text t = {0};
    tide_explanation_print(&e, s, 3, &t);
    assert_text_has(tide_text_str(&t), " 0 B are held.\n");
    tide_text_deinit(&t);
    tide_explanation_deinit(&e);
    tide_subject_destroy(s);
    tmp_dir_remove(&d);
}

static void out_of_memory(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tmp_dir d;
    tmp_dir_make(&d);
    demo_record(d.file, 0);
    bool failed = true;
    for (int64_t n = 0; failed; n++) {
        tide_host_stats before, after;
        tide_explanation e;
        tide_host_get_stats(&before);
        tide_subject *s = subject_of_trace(d.file, 2);
        tide_host_fail_after(n);
        const tide_status st = tide_explain(s, (tide_moment){.t = 2160}, 20, NULL, &e, &err);
        tide_host_fail_after(-1);
        failed = st != TIDE_OK;
        if (failed) assert_tide_status(st, TIDE_ERR_NOMEM);
        if (!failed) tide_explanation_deinit(&e);
        tide_subject_destroy(s);
        tide_host_get_stats(&after);
        assert_int_equal(before.n_live, after.n_live);
        assert_true(n < 2000);
        assert_true(failed || n > 10);
    }
    tmp_dir_remove(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(real_allocators),     tide_unit_test(crowded_moments),         tide_unit_test(the_naive_run),
        tide_unit_test(the_planned_run),     tide_unit_test(the_buffers_of_contexts), tide_unit_test(every_iteration),
        tide_unit_test(from_before_the_run), tide_unit_test(before_everything),       tide_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
