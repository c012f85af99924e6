// SPDX-License-Identifier: MIT
//
// What a [[model]] gives to measure: its files, times the extents, strategies and alignments that are listed. See
// config_internal.h.
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/tensor/dtype.h"
#include "gate/config_internal.h"

enum { MAX_EXTENTS = 16, MAX_AXES = MAX_EXTENTS + 2 };

// ---- what varies ----

/// One thing that has a value, or several that give a case each.
typedef struct axis {
    const char *name;
    bool is_extent;
    bool is_list; ///< told in the key, also of one value: a second one leaves the first one's key as it is
    const tide_gate_node **values;
    const char **texts; ///< [n] "N=8", as the key and the settings have it
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

/// Text of one value, checked.
static tide_status axis_value(const model_reader *m, const axis *a, const tide_gate_node *n, const char **out) {
    char text[256];
    uint64_t number;
    const char *strategy;
    if (a->is_extent) {
        TIDE_TRY(tide__gate_count(m->r, n, 1, INT64_MAX, &number));
        snprintf(text, sizeof text, "%.128s=%" PRIu64, a->name, number);
    } else if (strcmp(a->name, "align") == 0) {
        TIDE_TRY(tide__gate_align_check(m->r, n, &number));
        snprintf(text, sizeof text, "align=%" PRIu64, number);
    } else {
        TIDE_TRY(tide__gate_strategy_check(m->r, n, &strategy));
        snprintf(text, sizeof text, "strategy=%.128s", strategy);
    }
    *out = tide__gate_keep(m->r, text);
    return *out != NULL ? TIDE_OK : tide__gate_no_memory(m->r);
}

static tide_status add_axis(model_reader *m, const tide_gate_node *n, const char *name, bool is_extent) {
    axis a = {.name = name, .is_extent = is_extent, .is_list = n->type == TIDE_GATE_NODE_LIST};
    a.n = a.is_list ? n->n : 1;
    if (a.n == 0) return tide__gate_bad(m->r, n, "'%.64s' lists nothing", n->key);
    if (a.n > TIDE_GATE_MAX_CASES)
        return tide__gate_bad(m->r, n, "'%.64s' lists more than %d values", n->key, TIDE_GATE_MAX_CASES);
    a.texts = tide_gate_arena_take(m->r->arena, a.n * sizeof *a.texts);
    a.values = tide_gate_arena_take(m->r->arena, a.n * sizeof *a.values);
    if (a.texts == NULL || a.values == NULL) return tide__gate_no_memory(m->r);
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

/// In the order of their names, so that TOML and JSON give the same keys.
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

static tide_status read_shapes(model_reader *m, const tide_gate_node *n) {
    TIDE_TRY(tide__gate_is(m->r, n, TIDE_GATE_NODE_TABLE));
    const char **shapes = tide_gate_arena_take(m->r->arena, (n->n + 1) * sizeof *shapes);
    if (shapes == NULL) return tide__gate_no_memory(m->r);
    size_t k = 0;
    for (const tide_gate_node *s = n->first; s != NULL; s = s->next, k++) {
        tide_shape shape;
        TIDE_TRY(tide__gate_is(m->r, s, TIDE_GATE_NODE_TEXT));
        if (strlen(s->text) != s->text_len || tide_shape_parse(s->text, &shape, NULL) != TIDE_OK) {
            const tide_status st = tide__gate_bad(m->r, s, "'%.64s' is not a shape", s->text);
            tide_error_hint(m->r->err, "write the extents as 1x3x224x224");
            return st;
        }
        if (s->key[0] == '\0') return tide__gate_bad(m->r, s, "an input has a name");
        char *text = tide_gate_arena_take(m->r->arena, strlen(s->key) + s->text_len + 2);
        if (text == NULL) return tide__gate_no_memory(m->r);
        snprintf(text, strlen(s->key) + s->text_len + 2, "%s=%s", s->key, s->text);
        shapes[k] = text;
    }
    m->settings.shapes = shapes;
    m->settings.n_shapes = k;
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
    if (extents == NULL) return tide__gate_no_memory(m->r);
    for (size_t i = 0; i < m->n_axes; i++) {
        const axis *a = &m->axes[i];
        if (a->is_extent)
            extents[s->n_extents++] = a->texts[at[i]];
        else if (strcmp(a->name, "align") == 0)
            TIDE_TRY(tide__gate_align_check(m->r, a->values[at[i]], &s->align_bytes));
        else
            TIDE_TRY(tide__gate_strategy_check(m->r, a->values[at[i]], &s->strategy));
    }
    s->extents = extents;
    return TIDE_OK;
}

/// All combinations for one file, the last axis fastest.
static tide_status add_cases(const model_reader *m, const char *path) {
    size_t at[MAX_AXES] = {0};
    for (;;) {
        tide_gate_target t = {.path = tide__gate_join(m->r, path),
                              .key = key_of(m, path, at),
                              .settings = m->settings,
                              .why_empty = m->is_empty ? "no file matches this pattern" : NULL,
                              .origin = m->origin};
        if (t.path == NULL || t.key == NULL) return tide__gate_no_memory(m->r);
        TIDE_TRY(set_axes(m, at, &t.settings));
        TIDE_TRY(tide__gate_target_add(m->r, m->config, &t, m->node, m->layer));
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
    const char *pattern = tide__gate_clean_path(m->r, text);
    if (pattern == NULL) return tide__gate_no_memory(m->r);
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
    if (n_paths == 0) { // files went: that fails, and what is there is judged all the same
        const char *pattern = tide__gate_clean_path(m->r, text);
        m->is_empty = true;
        return pattern != NULL ? add_cases(m, pattern) : tide__gate_no_memory(m->r);
    }
    bool *is_out = tide_gate_arena_take(m->r->arena, n_paths);
    if (is_out == NULL) return tide__gate_no_memory(m->r);
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
    static const char *const own[] = {"path",       "name",   "exclude", "shapes",   "extents",
                                      "strategies", "aligns", "rules",   "max_bytes"};
    const char *known[32];
    size_t n = 0;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) known[n++] = own[i];
    for (size_t i = 0; tide__gate_settings_keys[i] != NULL; i++) known[n++] = tide__gate_settings_keys[i];
    return tide__gate_keys(r, model, "a model", known, n);
}

/// A layer of its own where the model has rules; targets point at it.
static tide_status read_layer(model_reader *m) {
    const tide_gate_node *rules = tide__gate_find(m->node, "rules");
    const tide_gate_node *max_bytes = tide__gate_find(m->node, "max_bytes");
    if (rules == NULL && max_bytes == NULL) return TIDE_OK;
    tide_gate_config *c = m->config;
    if (tide_host_grow(&c->models, &c->cap_models, c->n_models + 1, sizeof(*c->models)) != TIDE_OK)
        return tide__gate_no_memory(m->r);
    m->layer = tide_gate_arena_take(m->r->arena, sizeof *m->layer);
    if (m->layer == NULL) return tide__gate_no_memory(m->r);
    c->models[c->n_models++] = m->layer;
    m->layer->node = m->node;
    return tide__gate_layer_read(m->r, rules, max_bytes, m->layer);
}

tide_status tide__gate_model_read(const tide__gate_reader *r, tide_gate_config *c, const tide_gate_node *model,
                                  const tide_gate_plan_settings *defaults) {
    model_reader m = {.r = r, .config = c, .node = model, .settings = *defaults};
    TIDE_TRY(check_model_keys(r, model));
    m.origin = tide__gate_keep_place(r, model);
    if (m.origin == NULL) return tide__gate_no_memory(r);
    TIDE_TRY(tide__gate_settings_read(r, model, &m.settings));
    const tide_gate_node *n;
    if ((n = tide__gate_find(model, "name")) != NULL) TIDE_TRY(tide__gate_text(r, n, &m.name));
    if ((n = tide__gate_find(model, "shapes")) != NULL) TIDE_TRY(read_shapes(&m, n));
    if ((n = tide__gate_find(model, "extents")) != NULL) TIDE_TRY(read_extents(&m, n));
    TIDE_TRY(read_list(&m, "strategies", "strategy"));
    TIDE_TRY(read_list(&m, "aligns", "align"));
    TIDE_TRY(read_layer(&m));
    return read_files(&m);
}
