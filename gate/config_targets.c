// SPDX-License-Identifier: MIT
//
// What a configuration measures. A [[model]] gives its files, times the extents, strategies and alignments that it
// lists; [defaults] and the same keys of a [[model]] say how each case is planned and run. See config_internal.h.
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/base/nearest.h"
#include "core/memory/allocators/allocators.h"
#include "core/tensor/dtype.h"
#include "gate/config_internal.h"
#include "planner/passes.h"

enum { MAX_RUNS = 100000000, MAX_CONTEXTS = 1024, MAX_RECOMPUTE_PERCENT = 1000000 };

const char *const tide__gate_settings_keys[] = {
    "strategy", "node_limit", "align",     "fuse",  "qdq",  "passes",    "no_passes",   "recompute", "run",
    "runs",     "contexts",   "allocator", "limit", "seed", "input_dir", "bound_limit", NULL};

// ---- planning ----

static const char *strategy_at(const void *ctx, size_t i) { return ((const tide_strategy *const *)ctx)[i]->name; }

static tide_status read_strategy(const tide__gate_reader *r, const tide_gate_node *n, const char **out) {
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

static tide_status read_align(const tide__gate_reader *r, const tide_gate_node *n, uint64_t *out) {
    TIDE_TRY(tide__gate_size(r, n, out));
    if (tide_is_pow2(*out)) return TIDE_OK;
    return tide__gate_bad(r, n, "an alignment of %" PRIu64 " bytes: want a power of two", *out);
}

static tide_status read_pass(const tide__gate_reader *r, const tide_gate_node *n, unsigned *bits) {
    const char *words[TIDE_N_PASSES];
    size_t pass, n_words = 0;
    for (size_t p = 0; p < TIDE_N_PASSES; p++) {
        if (p != TIDE_PASS_RECOMPUTE)
            words[n_words++] = tide_pass_name((tide_pass)p); // that pass has a key of its own, `recompute`
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
    bool fuse, qdq;
    if ((n = tide__gate_find(table, "strategy")) != NULL) TIDE_TRY(read_strategy(r, n, &out->strategy));
    if ((n = tide__gate_find(table, "node_limit")) != NULL)
        TIDE_TRY(tide__gate_count(r, n, 1, INT64_MAX, &out->node_limit));
    if ((n = tide__gate_find(table, "align")) != NULL) TIDE_TRY(read_align(r, n, &out->align_bytes));
    if ((n = tide__gate_find(table, "seed")) != NULL) TIDE_TRY(tide__gate_count(r, n, 0, INT64_MAX, &out->seed));
    if ((n = tide__gate_find(table, "fuse")) != NULL) {
        TIDE_TRY(tide__gate_bool(r, n, &fuse));
        out->no_fuse = !fuse;
    }
    if ((n = tide__gate_find(table, "qdq")) != NULL) {
        TIDE_TRY(tide__gate_bool(r, n, &qdq));
        out->no_qdq = !qdq;
    }
    if ((n = tide__gate_find(table, "recompute")) != NULL) TIDE_TRY(read_recompute(r, n, &out->recompute_share));
    if ((n = tide__gate_find(table, "bound_limit")) != NULL) {
        TIDE_TRY(tide__gate_size(r, n, &out->bound_limit_bytes));
        out->has_bound_limit = true;
    }
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

/// Refuses keys that only matter in a run, in a table with run = false.
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
        TIDE_TRY(tide__gate_join(r, text, &out->input_dir));
    }
    return TIDE_OK;
}

tide_status tide__gate_settings_read(const tide__gate_reader *r, const tide_gate_node *table,
                                     tide_gate_plan_settings *out) {
    TIDE_TRY(read_planning(r, table, out));
    return read_running(r, table, out);
}

// ---- the list of targets ----

static tide_status same_key(const tide__gate_reader *r, const tide_gate_config *c, const tide_gate_node *node,
                            const tide_gate_target *t, size_t other) {
    if (node == NULL || c->nodes[other] == NULL) {
        const tide_status st = TIDE_FAIL(r->err, TIDE_ERR_INVALID, "'%.256s' is given twice", t->key);
        tide_error_hint(r->err, "name each file once");
        return st;
    }
    const tide_status st =
        tide__gate_contradiction(r, node, c->nodes[other], "two entries give the case '%.200s'", t->key);
    tide_error_hint(r->err, "give one of them a name, or leave the file out of the pattern: exclude = [\"…\"]");
    return st;
}

/// Finds the overrides that match a target once, because its rules are looked up many times.
static tide_status find_overrides(const tide__gate_reader *r, tide_gate_config *c, const char *key,
                                  tide__gate_held *held) {
    size_t n = 0;
    for (size_t i = 0; i < c->n_overrides; i++) n += tide__gate_matches(c->overrides[i].match, key);
    if (n == 0) return TIDE_OK;
    uint32_t *found = tide_gate_arena_take(r->arena, n * sizeof *found);
    if (found == NULL) return TIDE__GATE_NO_MEMORY(r);
    held->overrides = found;
    for (size_t i = 0; i < c->n_overrides; i++) {
        if (!tide__gate_matches(c->overrides[i].match, key)) continue;
        found[held->n_overrides++] = (uint32_t)i;
        c->overrides[i].n_matched++;
    }
    return TIDE_OK;
}

static tide_status add_target(const tide__gate_reader *r, tide_gate_config *c, const tide_gate_target *t,
                              const tide_gate_node *node, const tide__gate_layer *model) {
    uint64_t other;
    if (tide_strmap_get(&c->keys, t->key, &other)) return same_key(r, c, node, t, (size_t)other);
    if (c->n_targets >= TIDE_GATE_MAX_CASES) return tide__gate_bad(r, node, "more than %d cases", TIDE_GATE_MAX_CASES);
    const size_t n = c->n_targets + 1;
    TIDE_TRY(TIDE_GROW(&c->targets, &c->cap_targets, n, r->err, "to read '%s'", r->name));
    TIDE_TRY(TIDE_GROW(&c->held, &c->cap_held, n, r->err, "to read '%s'", r->name));
    TIDE_TRY(TIDE_GROW(&c->nodes, &c->cap_nodes, n, r->err, "to read '%s'", r->name));
    tide__gate_held held = {.model = model};
    TIDE_TRY(find_overrides(r, c, t->key, &held));
    if (tide_strmap_put(&c->keys, t->key, c->n_targets) != TIDE_OK) return TIDE__GATE_NO_MEMORY(r);
    c->targets[c->n_targets] = *t;
    if (t->settings.node_limit == 0) c->targets[c->n_targets].settings.node_limit = TIDE_GATE_NODE_LIMIT;
    c->held[c->n_targets] = held;
    c->nodes[c->n_targets] = node;
    c->n_targets++;
    return TIDE_OK;
}

tide_status tide__gate_target_add_file(const tide__gate_reader *r, tide_gate_config *c, const tide_gate_target *t) {
    return add_target(r, c, t, NULL, NULL);
}

tide_status tide__gate_target_add_empty(const tide__gate_reader *r, tide_gate_config *c, const char *pattern,
                                        const char *why, const tide_gate_node *node) {
    tide_gate_target t = {.key = pattern, .why_empty = why};
    TIDE_TRY(tide__gate_join(r, pattern, &t.path));
    TIDE_TRY(tide__gate_keep_place(r, node, &t.origin));
    return add_target(r, c, &t, node, NULL);
}

// ---- what varies ----

enum { MAX_EXTENTS = 16, MAX_AXES = MAX_EXTENTS + 2 };

/// A setting with one value, or with a list of values that give one case each.
typedef struct axis {
    const char *name;
    bool is_extent;
    bool is_list; ///< the value is part of the key, also of a list with one value: adding a second value must not
                  ///< change the first key
    const tide_gate_node **values;
    const char **texts; ///< [n] "N=8", for the key and the settings
    size_t n;
} axis;

typedef struct model_reader {
    const tide__gate_reader *r;
    tide_gate_config *config;
    const tide_gate_node *node;
    const char *name; ///< NULL: none
    const char *origin;
    bool is_empty; ///< the pattern matches nothing
    tide_gate_plan_settings settings;
    tide__gate_layer *layer; ///< NULL: no rules of its own
    axis axes[MAX_AXES];
    size_t n_axes, n_extents;
} model_reader;

/// Checks one value and makes its text.
static tide_status axis_value(const model_reader *m, const axis *a, const tide_gate_node *n, const char **out) {
    char text[256];
    uint64_t number;
    const char *strategy;
    if (a->is_extent) {
        TIDE_TRY(tide__gate_count(m->r, n, 1, INT64_MAX, &number));
        snprintf(text, sizeof text, "%.128s=%" PRIu64, a->name, number);
    } else if (strcmp(a->name, "align") == 0) {
        TIDE_TRY(read_align(m->r, n, &number));
        snprintf(text, sizeof text, "align=%" PRIu64, number);
    } else {
        TIDE_TRY(read_strategy(m->r, n, &strategy));
        snprintf(text, sizeof text, "strategy=%.128s", strategy);
    }
    return tide__gate_keep(m->r, text, out);
}

static tide_status add_axis(model_reader *m, const tide_gate_node *n, const char *name, bool is_extent) {
    axis a = {.name = name, .is_extent = is_extent, .is_list = n->type == TIDE_GATE_NODE_LIST};
    a.n = a.is_list ? n->n : 1;
    if (a.n == 0) return tide__gate_bad(m->r, n, "'%.64s' lists nothing", n->key);
    if (a.n > TIDE_GATE_MAX_CASES)
        return tide__gate_bad(m->r, n, "'%.64s' lists more than %d values", n->key, TIDE_GATE_MAX_CASES);
    a.texts = tide_gate_arena_take(m->r->arena, a.n * sizeof *a.texts);
    a.values = tide_gate_arena_take(m->r->arena, a.n * sizeof *a.values);
    if (a.texts == NULL || a.values == NULL) return TIDE__GATE_NO_MEMORY(m->r);
    const tide_gate_node *value = a.is_list ? n->first : n;
    for (size_t i = 0; i < a.n; i++, value = value->next) {
        a.values[i] = value;
        TIDE_TRY(axis_value(m, &a, value, &a.texts[i]));
    }
    m->axes[m->n_axes++] = a;
    return TIDE_OK;
}

static int by_key(const void *a, const void *b) {
    return strcmp((*(const tide_gate_node *const *)a)->key, (*(const tide_gate_node *const *)b)->key);
}

/// Extents are taken in the order of their names, so that TOML and JSON give the same keys.
static tide_status read_extents(model_reader *m, const tide_gate_node *n) {
    const tide_gate_node *sorted[MAX_EXTENTS];
    TIDE_TRY(tide__gate_is(m->r, n, TIDE_GATE_NODE_TABLE));
    if (n->n > MAX_EXTENTS) return tide__gate_bad(m->r, n, "more than %d open extents", MAX_EXTENTS);
    size_t k = 0;
    for (const tide_gate_node *e = n->first; e != NULL; e = e->next) sorted[k++] = e;
    qsort(sorted, k, sizeof *sorted, by_key);
    for (size_t i = 0; i < k; i++) {
        if (sorted[i]->key[0] == '\0' || strlen(sorted[i]->key) > 128 || strchr(sorted[i]->key, '=') != NULL)
            return tide__gate_bad(m->r, sorted[i], "'%.64s' is no name of an extent", sorted[i]->key);
        TIDE_TRY(add_axis(m, sorted[i], sorted[i]->key, true));
    }
    m->n_extents = k;
    return TIDE_OK;
}

static tide_status read_list(model_reader *m, const char *key, const char *one) {
    const tide_gate_node *n = tide__gate_find(m->node, key), *single = tide__gate_find(m->node, one);
    if (n == NULL) return TIDE_OK;
    if (single != NULL)
        return tide__gate_contradiction(m->r, n, single, "'%s' and '%s' in one model: keep one of them", key, one);
    TIDE_TRY(tide__gate_is(m->r, n, TIDE_GATE_NODE_LIST));
    return add_axis(m, n, one, false);
}

/// "NAME=DIMS" of each key; `parse` says what DIMS may be.
static tide_status read_shapes(const model_reader *m, const tide_gate_node *n,
                               tide_status (*parse)(const char *text, tide_shape *out, tide_error *err),
                               const char *const **out, size_t *n_out) {
    TIDE_TRY(tide__gate_is(m->r, n, TIDE_GATE_NODE_TABLE));
    const char **shapes = tide_gate_arena_take(m->r->arena, (n->n + 1) * sizeof *shapes);
    if (shapes == NULL) return TIDE__GATE_NO_MEMORY(m->r);
    size_t k = 0;
    for (const tide_gate_node *s = n->first; s != NULL; s = s->next, k++) {
        tide_shape shape;
        TIDE_TRY(tide__gate_is(m->r, s, TIDE_GATE_NODE_TEXT));
        if (strlen(s->text) != s->text_len || parse(s->text, &shape, NULL) != TIDE_OK) {
            const tide_status st = tide__gate_bad(m->r, s, "'%.64s' is not a shape", s->text);
            tide_error_hint(m->r->err, "write the extents as 1x3x224x224");
            return st;
        }
        if (s->key[0] == '\0') return tide__gate_bad(m->r, s, "a tensor has a name");
        char *text = tide_gate_arena_take(m->r->arena, strlen(s->key) + s->text_len + 2);
        if (text == NULL) return TIDE__GATE_NO_MEMORY(m->r);
        snprintf(text, strlen(s->key) + s->text_len + 2, "%s=%s", s->key, s->text);
        shapes[k] = text;
    }
    *out = shapes;
    *n_out = k;
    return TIDE_OK;
}

// ---- cases ----

static void add_label(tide_text *key, const char *text, bool *is_first) {
    tide_text_add(key, *is_first ? " [" : ", ");
    tide_text_add(key, text);
    *is_first = false;
}

/// "models/gpt.onnx [small, N=8, strategy=search]".
static const char *key_of(const model_reader *m, const char *path, const size_t *at) {
    tide_text key = {0};
    bool is_first = true;
    tide_text_add(&key, path);
    if (m->name != NULL) add_label(&key, m->name, &is_first);
    for (size_t i = 0; i < m->n_axes; i++) {
        if (m->axes[i].is_list) add_label(&key, m->axes[i].texts[at[i]], &is_first);
    }
    if (!is_first) tide_text_add(&key, "]");
    const char *kept = key.failed ? NULL : tide_gate_arena_text(m->r->arena, key.data, key.len);
    tide_text_deinit(&key);
    return kept;
}

static tide_status set_axes(const model_reader *m, const size_t *at, tide_gate_plan_settings *s) {
    const char **extents = tide_gate_arena_take(m->r->arena, (m->n_extents + 1) * sizeof *extents);
    if (extents == NULL) return TIDE__GATE_NO_MEMORY(m->r);
    for (size_t i = 0; i < m->n_axes; i++) {
        const axis *a = &m->axes[i];
        if (a->is_extent)
            extents[s->n_extents++] = a->texts[at[i]];
        else if (strcmp(a->name, "align") == 0)
            TIDE_TRY(read_align(m->r, a->values[at[i]], &s->align_bytes));
        else
            TIDE_TRY(read_strategy(m->r, a->values[at[i]], &s->strategy));
    }
    s->extents = extents;
    return TIDE_OK;
}

/// Adds the cases of one file: all combinations of its axes, the last axis varies fastest.
static tide_status add_cases(const model_reader *m, const char *path) {
    size_t at[MAX_AXES] = {0};
    for (;;) {
        tide_gate_target t = {.key = key_of(m, path, at),
                              .settings = m->settings,
                              .why_empty = m->is_empty ? "no file matches this pattern" : NULL,
                              .origin = m->origin};
        if (t.key == NULL) return TIDE__GATE_NO_MEMORY(m->r);
        TIDE_TRY(tide__gate_join(m->r, path, &t.path));
        TIDE_TRY(set_axes(m, at, &t.settings));
        TIDE_TRY(add_target(m->r, m->config, &t, m->node, m->layer));
        size_t i = m->n_axes;
        while (i > 0 && ++at[i - 1] == m->axes[i - 1].n) at[--i] = 0;
        if (i == 0) return TIDE_OK;
    }
}

// ---- files ----

static tide_status exclude_by(const model_reader *m, const tide_gate_node *n, const char *const *paths, size_t n_paths,
                              bool *is_out) {
    const char *text;
    TIDE_TRY(tide__gate_text(m->r, n, &text));
    const char *pattern;
    TIDE_TRY(tide__gate_clean_path(m->r, text, &pattern));
    TIDE_TRY(tide__gate_pattern_check(m->r, n, pattern));
    bool is_used = false;
    for (size_t i = 0; i < n_paths; i++) {
        if (strcmp(pattern, paths[i]) != 0 && fnmatch(pattern, paths[i], FNM_PATHNAME) != 0) continue;
        is_used = is_out[i] = true;
    }
    if (is_used || tide_strmap_get(&m->config->keys, pattern, NULL)) return TIDE_OK;
    return tide__gate_target_add_empty(m->r, m->config, pattern, "this 'exclude' leaves nothing out", n);
}

static tide_status exclude(const model_reader *m, const char *const *paths, size_t n_paths, bool *is_out) {
    const tide_gate_node *n = tide__gate_find(m->node, "exclude");
    if (n == NULL) return TIDE_OK;
    if (n->type == TIDE_GATE_NODE_TEXT) return exclude_by(m, n, paths, n_paths, is_out);
    TIDE_TRY(tide__gate_is(m->r, n, TIDE_GATE_NODE_LIST));
    for (const tide_gate_node *p = n->first; p != NULL; p = p->next) TIDE_TRY(exclude_by(m, p, paths, n_paths, is_out));
    return TIDE_OK;
}

static tide_status read_files(model_reader *m) {
    const tide_gate_node *n = tide__gate_find(m->node, "path");
    if (n == NULL) return tide__gate_bad(m->r, m->node, "a model without 'path': what is measured?");
    const char *text;
    const char *const *paths = NULL;
    size_t n_paths = 0;
    TIDE_TRY(tide__gate_text(m->r, n, &text));
    if (strcmp(text, "-") == 0) return tide__gate_bad(m->r, n, "a model of a gate is a file, not standard input");
    TIDE_TRY(tide__gate_glob(m->r, n, text, &paths, &n_paths));
    if (n_paths == 0) { // the files are gone: this target fails, the other ones are judged all the same
        const char *pattern;
        TIDE_TRY(tide__gate_clean_path(m->r, text, &pattern));
        m->is_empty = true;
        return add_cases(m, pattern);
    }
    bool *is_out = tide_gate_arena_take(m->r->arena, n_paths);
    if (is_out == NULL) return TIDE__GATE_NO_MEMORY(m->r);
    TIDE_TRY(exclude(m, paths, n_paths, is_out));
    const size_t before = m->config->n_targets;
    for (size_t i = 0; i < n_paths; i++) {
        if (!is_out[i]) TIDE_TRY(add_cases(m, paths[i]));
    }
    if (m->config->n_targets > before || tide_strmap_get(&m->config->keys, text, NULL)) return TIDE_OK;
    return tide__gate_target_add_empty(m->r, m->config, text, "'exclude' leaves no file at all", n);
}

// ---- one [[model]] ----

static tide_status check_model_keys(const tide__gate_reader *r, const tide_gate_node *model) {
    static const char *const own[] = {"path",   "name",       "exclude", "shapes", "extents",
                                      "bounds", "strategies", "aligns",  "rules",  "max_bytes"};
    const char *known[32];
    size_t n = 0;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) known[n++] = own[i];
    for (size_t i = 0; tide__gate_settings_keys[i] != NULL; i++) known[n++] = tide__gate_settings_keys[i];
    return tide__gate_keys(r, model, "a model", known, n);
}

/// Makes a layer for the model if it has rules; its targets point at the layer.
static tide_status read_layer(model_reader *m) {
    const tide_gate_node *rules = tide__gate_find(m->node, "rules");
    const tide_gate_node *max_bytes = tide__gate_find(m->node, "max_bytes");
    if (rules == NULL && max_bytes == NULL) return TIDE_OK;
    tide_gate_config *c = m->config;
    TIDE_TRY(TIDE_GROW(&c->models, &c->cap_models, c->n_models + 1, m->r->err, "to read '%s'", m->r->name));
    m->layer = tide_gate_arena_take(m->r->arena, sizeof *m->layer);
    if (m->layer == NULL) return TIDE__GATE_NO_MEMORY(m->r);
    c->models[c->n_models++] = m->layer;
    m->layer->node = m->node;
    return tide__gate_layer_read(m->r, rules, max_bytes, m->layer);
}

tide_status tide__gate_model_read(const tide__gate_reader *r, tide_gate_config *c, const tide_gate_node *model,
                                  const tide_gate_plan_settings *defaults) {
    model_reader m = {.r = r, .config = c, .node = model, .settings = *defaults};
    TIDE_TRY(check_model_keys(r, model));
    TIDE_TRY(tide__gate_keep_place(r, model, &m.origin));
    TIDE_TRY(tide__gate_settings_read(r, model, &m.settings));
    const tide_gate_node *n;
    if ((n = tide__gate_find(model, "name")) != NULL) TIDE_TRY(tide__gate_text(r, n, &m.name));
    if ((n = tide__gate_find(model, "shapes")) != NULL)
        TIDE_TRY(read_shapes(&m, n, tide_shape_parse, &m.settings.shapes, &m.settings.n_shapes));
    if ((n = tide__gate_find(model, "bounds")) != NULL)
        TIDE_TRY(read_shapes(&m, n, tide_shape_parse_open, &m.settings.bounds, &m.settings.n_bounds));
    if ((n = tide__gate_find(model, "extents")) != NULL) TIDE_TRY(read_extents(&m, n));
    TIDE_TRY(read_list(&m, "strategies", "strategy"));
    TIDE_TRY(read_list(&m, "aligns", "align"));
    TIDE_TRY(read_layer(&m));
    return read_files(&m);
}
