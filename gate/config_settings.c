// SPDX-License-Identifier: MIT
//
// How cases are planned and run: [defaults] and the same keys of a [[model]]. See config_internal.h.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/base/nearest.h"
#include "core/memory/allocators/allocators.h"
#include "gate/config_internal.h"
#include "planner/passes.h"

enum { MAX_RUNS = 100000000, MAX_CONTEXTS = 1024, MAX_RECOMPUTE_PERCENT = 1000000 };

const char *const tide__gate_settings_keys[] = {"strategy",  "node_limit", "align", "fuse",      "passes",
                                                "no_passes", "recompute",  "run",   "runs",      "contexts",
                                                "allocator", "limit",      "seed",  "input_dir", NULL};

// ---- planning ----

static const char *strategy_at(const void *ctx, size_t i) { return ((const tide_strategy *const *)ctx)[i]->name; }

tide_status tide__gate_strategy_check(const tide__gate_reader *r, const tide_gate_node *n, const char **out) {
    const char *text;
    const tide_strategy *strategy;
    TIDE_TRY(tide__gate_text(r, n, &text));
    if (tide_strategy_find(text, &strategy, NULL) == TIDE_OK) {
        *out = strategy->name;
        return TIDE_OK;
    }
    const tide_status st = tide__gate_bad(r, n, "there is no strategy '%.64s'", text);
    const tide_strategy *const *all;
    const size_t n_all = tide_strategies(&all);
    const char *near = tide_nearest_word(text, strategy_at, all, n_all);
    if (near != NULL)
        tide_error_hint(r->err, "did you mean '%s'?", near);
    else
        tide_error_hint(r->err, "`tidemark plan --strategy ?` lists them all; search is the best one");
    return st;
}

tide_status tide__gate_align_check(const tide__gate_reader *r, const tide_gate_node *n, uint64_t *out) {
    TIDE_TRY(tide__gate_size(r, n, out));
    if (tide_is_pow2(*out)) return TIDE_OK;
    return tide__gate_bad(r, n, "an alignment of %" PRIu64 " bytes: want a power of two", *out);
}

static tide_status read_pass(const tide__gate_reader *r, const tide_gate_node *n, unsigned *bits) {
    const char *words[TIDE_N_PASSES];
    size_t pass, n_words = 0;
    for (size_t p = 0; p < TIDE_N_PASSES; p++) {
        if (p != TIDE_PASS_RECOMPUTE) words[n_words++] = tide_pass_name((tide_pass)p); // `recompute` switches that one
    }
    TIDE_TRY(tide__gate_choice(r, n, words, n_words, &pass));
    tide_pass found = TIDE_PASS_VIEWS;
    TIDE_TRY(tide_pass_parse(words[pass], &found, r->err));
    if ((*bits & (1u << found)) != 0) return tide__gate_bad(r, n, "pass '%s' is named twice", words[pass]);
    *bits |= 1u << found;
    return TIDE_OK;
}

static tide_status read_passes(const tide__gate_reader *r, const tide_gate_node *table, unsigned *no_passes) {
    const tide_gate_node *with = tide__gate_find(table, "passes"), *less = tide__gate_find(table, "no_passes");
    if (with == NULL && less == NULL) return TIDE_OK;
    if (with != NULL && less != NULL)
        return tide__gate_contradiction(r, less, with, "'passes' and 'no_passes' in one table: keep one of them");
    const tide_gate_node *list = with != NULL ? with : less;
    TIDE_TRY(tide__gate_is(r, list, TIDE_GATE_NODE_LIST));
    unsigned bits = 0;
    for (const tide_gate_node *n = list->first; n != NULL; n = n->next) TIDE_TRY(read_pass(r, n, &bits));
    const unsigned all = ((1u << TIDE_N_PASSES) - 1) & ~(1u << TIDE_PASS_RECOMPUTE);
    *no_passes = with != NULL ? all & ~bits : bits;
    return TIDE_OK;
}

/// A percentage: 10, 2.5, "10 %".
static tide_status read_recompute(const tide__gate_reader *r, const tide_gate_node *n, double *share) {
    double percent = n->real;
    if (n->type == TIDE_GATE_NODE_TEXT) {
        const char *text;
        TIDE_TRY(tide__gate_text(r, n, &text));
        size_t len = strlen(text);
        if (text[len - 1] == '%') len--;
        while (len > 0 && text[len - 1] == ' ') len--;
        if (!tide__gate_parse_decimal(text, len, &percent)) percent = -1;
    } else if (n->type != TIDE_GATE_NODE_INTEGER && n->type != TIDE_GATE_NODE_REAL) {
        percent = -1;
    }
    if (!(percent >= 0 && percent <= MAX_RECOMPUTE_PERCENT)) {
        const tide_status st = tide__gate_bad(r, n, "'recompute' is no percentage from 0 to %d", MAX_RECOMPUTE_PERCENT);
        tide_error_hint(r->err, "recompute = 10 lets the plan compute up to 10 %% more");
        return st;
    }
    *share = percent / 100;
    return TIDE_OK;
}

static tide_status read_planning(const tide__gate_reader *r, const tide_gate_node *table,
                                 tide_gate_plan_settings *out) {
    const tide_gate_node *n;
    bool fuse;
    if ((n = tide__gate_find(table, "strategy")) != NULL) TIDE_TRY(tide__gate_strategy_check(r, n, &out->strategy));
    if ((n = tide__gate_find(table, "node_limit")) != NULL)
        TIDE_TRY(tide__gate_count(r, n, 1, INT64_MAX, &out->node_limit));
    if ((n = tide__gate_find(table, "align")) != NULL) TIDE_TRY(tide__gate_align_check(r, n, &out->align_bytes));
    if ((n = tide__gate_find(table, "seed")) != NULL) TIDE_TRY(tide__gate_count(r, n, 0, INT64_MAX, &out->seed));
    if ((n = tide__gate_find(table, "fuse")) != NULL) {
        TIDE_TRY(tide__gate_bool(r, n, &fuse));
        out->no_fuse = !fuse;
    }
    if ((n = tide__gate_find(table, "recompute")) != NULL) TIDE_TRY(read_recompute(r, n, &out->recompute_share));
    return read_passes(r, table, &out->no_passes);
}

// ---- running ----

static const char *allocator_at(const void *ctx, size_t i) {
    (void)ctx;
    return tide_allocator_name_at(i);
}

static tide_status read_allocator(const tide__gate_reader *r, const tide_gate_node *n, const char **out) {
    const char *text;
    TIDE_TRY(tide__gate_text(r, n, &text));
    size_t n_all = 0;
    for (const char *name; (name = tide_allocator_name_at(n_all)) != NULL; n_all++) {
        if (strcmp(name, text) != 0) continue;
        *out = name;
        return TIDE_OK;
    }
    const tide_status st = tide__gate_bad(r, n, "there is no allocator '%.64s'", text);
    const char *near = tide_nearest_word(text, allocator_at, NULL, n_all);
    if (near != NULL)
        tide_error_hint(r->err, "did you mean '%s'?", near);
    else
        tide_error_hint(r->err, "`tidemark allocators` lists them");
    return st;
}

/// Keys that mean something in a run alone, in a table that says that there is none.
static tide_status check_run(const tide__gate_reader *r, const tide_gate_node *table, const tide_gate_node *run) {
    static const char *const of_runs[] = {"runs", "contexts", "allocator", "limit"};
    if (run == NULL || run->truth) return TIDE_OK;
    for (size_t i = 0; i < sizeof of_runs / sizeof of_runs[0]; i++) {
        const tide_gate_node *n = tide__gate_find(table, of_runs[i]);
        if (n != NULL)
            return tide__gate_contradiction(r, n, run, "'%s' is about runs, and run = false in the same table", n->key);
    }
    return TIDE_OK;
}

static tide_status read_running(const tide__gate_reader *r, const tide_gate_node *table, tide_gate_plan_settings *out) {
    const tide_gate_node *n, *run = tide__gate_find(table, "run");
    if (run != NULL) TIDE_TRY(tide__gate_bool(r, run, &out->run));
    TIDE_TRY(check_run(r, table, run));
    if ((n = tide__gate_find(table, "runs")) != NULL) TIDE_TRY(tide__gate_count(r, n, 1, MAX_RUNS, &out->runs));
    if ((n = tide__gate_find(table, "contexts")) != NULL)
        TIDE_TRY(tide__gate_count(r, n, 1, MAX_CONTEXTS, &out->contexts));
    if ((n = tide__gate_find(table, "allocator")) != NULL) TIDE_TRY(read_allocator(r, n, &out->allocator));
    if ((n = tide__gate_find(table, "limit")) != NULL) {
        TIDE_TRY(tide__gate_size(r, n, &out->limit_bytes));
        if (out->limit_bytes == 0) return tide__gate_bad(r, n, "a limit of 0 bytes: want at least 1");
    }
    if ((n = tide__gate_find(table, "input_dir")) != NULL) {
        const char *text;
        TIDE_TRY(tide__gate_text(r, n, &text));
        out->input_dir = tide__gate_join(r, text);
        if (out->input_dir == NULL) return tide__gate_no_memory(r);
    }
    return TIDE_OK;
}

tide_status tide__gate_settings_read(const tide__gate_reader *r, const tide_gate_node *table,
                                     tide_gate_plan_settings *out) {
    TIDE_TRY(read_planning(r, table, out));
    return read_running(r, table, out);
}
