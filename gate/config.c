// SPDX-License-Identifier: MIT
//
// A configuration: reading its file and its top-level keys, and what callers ask of it. See config.h.
#include "gate/config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "gate/config_internal.h"

enum {
    MAX_FILE_BYTES = 4 * 1024 * 1024,
    MAX_OVERRIDES = 1000,
    SHOWN_BYTES = 96, // of a path in messages: the end of a longer one
};

// ---- the object ----

static void deinit_layer(tide__gate_layer *layer) { tide_host_free(layer->rules); }

void tide_gate_config_destroy(tide_gate_config *c) {
    if (c == NULL) return;
    deinit_layer(&c->rules);
    for (size_t i = 0; i < c->n_overrides; i++) deinit_layer(&c->overrides[i]);
    for (size_t i = 0; i < c->n_models; i++) deinit_layer(c->models[i]);
    tide_host_free(c->overrides);
    tide_host_free(c->models);
    tide_host_free(c->targets);
    tide_host_free(c->held);
    tide_host_free(c->nodes);
    tide_strmap_deinit(&c->keys);
    tide_gate_arena_deinit(&c->arena);
    tide_host_free(c);
}

/// The path as messages show it: "…long/path/tidemark.toml".
static const char *shown_path(tide_gate_arena *a, const char *path) {
    const size_t n = strlen(path);
    char text[SHOWN_BYTES + 8];
    if (n <= SHOWN_BYTES) return tide_gate_arena_text(a, path, n);
    const char *tail = path + n - SHOWN_BYTES;
    while ((*tail & 0xC0) == 0x80) tail++; // not in the middle of a character
    const int len = snprintf(text, sizeof text, "…%s", tail);
    return tide_gate_arena_text(a, text, (size_t)len);
}

static tide_gate_config *new_config(const char *path, const char *name) {
    tide_gate_config *c = tide_host_calloc(1, sizeof *c);
    if (c == NULL) return NULL;
    c->is_baseline_wanted = true;
    c->removed = TIDE_GATE_FAIL;
    c->added = TIDE_GATE_WARN;
    c->gain = TIDE__GATE_GAIN_WARNS;
    c->path = tide_gate_arena_text(&c->arena, path, strlen(path));
    c->shown = shown_path(&c->arena, name);
    if (c->path != NULL && c->shown != NULL) return c;
    tide_gate_config_destroy(c);
    return NULL;
}

// ---- the top of the file ----

static tide_status read_version(const tide__gate_reader *r, const tide_gate_node *root) {
    const tide_gate_node *n = tide__gate_find(root, "version");
    if (n == NULL) {
        const tide_status st = tide__gate_bad(r, root, "it does not say its version");
        tide_error_hint(r->err, "write version = 1");
        return st;
    }
    TIDE_TRY(tide__gate_is(r, n, TIDE_GATE_NODE_INTEGER));
    if (n->integer == 1) return TIDE_OK;
    return tide__gate_bad(r, n, "version %" PRId64 " is not known here: want 1", n->integer);
}

static tide_status read_baseline(const tide__gate_reader *r, const tide_gate_node *root, tide_gate_config *c) {
    const tide_gate_node *n = tide__gate_find(root, "baseline");
    const char *text;
    c->baseline_node = n;
    if (n == NULL) return TIDE_OK;
    if (n->type == TIDE_GATE_NODE_BOOL) {
        c->is_baseline_wanted = n->truth;
        if (!n->truth) return TIDE_OK;
        return tide__gate_bad(r, n, "'baseline' names a file, or is false where budgets alone are wanted");
    }
    TIDE_TRY(tide__gate_text(r, n, &text));
    return tide__gate_join(r, text, &c->baseline);
}

static tide_status read_level(const tide__gate_reader *r, const tide_gate_node *root, const char *key,
                              tide_gate_level *out) {
    static const char *const words[] = {"report", "warn", "fail"};
    const tide_gate_node *n = tide__gate_find(root, key);
    size_t word;
    if (n == NULL) return TIDE_OK;
    TIDE_TRY(tide__gate_choice(r, n, words, 3, &word));
    *out = (tide_gate_level)word;
    return TIDE_OK;
}

static tide_status read_top(const tide__gate_reader *r, const tide_gate_node *root, tide_gate_config *c) {
    static const char *const known[] = {"version",  "baseline", "removed", "added",   "gain",
                                        "defaults", "rules",    "model",   "override"};
    static const char *const gains[] = {"off", "warn", "fail"};
    TIDE_TRY(tide__gate_keys(r, root, "a gate's configuration", known, sizeof known / sizeof known[0]));
    TIDE_TRY(read_version(r, root));
    TIDE_TRY(read_baseline(r, root, c));
    TIDE_TRY(read_level(r, root, "removed", &c->removed));
    TIDE_TRY(read_level(r, root, "added", &c->added));
    const tide_gate_node *n = tide__gate_find(root, "gain");
    if (n != NULL) {
        size_t word;
        TIDE_TRY(tide__gate_choice(r, n, gains, 3, &word));
        c->gain = (tide__gate_gain)word;
        TIDE_TRY(tide__gate_keep_place(r, n, &c->gain_place));
    }
    c->rules.node = tide__gate_find(root, "rules");
    return tide__gate_layer_read(r, c->rules.node, NULL, &c->rules);
}

// ---- its lists ----

static tide_status read_override(const tide__gate_reader *r, const tide_gate_node *n, tide_gate_config *c) {
    static const char *const known[] = {"match", "rules", "max_bytes"};
    TIDE_TRY(tide__gate_keys(r, n, "an override", known, sizeof known / sizeof known[0]));
    const tide_gate_node *match = tide__gate_find(n, "match"), *rules = tide__gate_find(n, "rules");
    const tide_gate_node *max_bytes = tide__gate_find(n, "max_bytes");
    if (match == NULL) return tide__gate_bad(r, n, "an override without 'match': of which cases?");
    if (rules == NULL && max_bytes == NULL) return tide__gate_bad(r, n, "an override without 'rules' or 'max_bytes'");
    if (c->n_overrides >= MAX_OVERRIDES) return tide__gate_bad(r, n, "more than %d overrides", MAX_OVERRIDES);
    TIDE_TRY(TIDE_GROW(&c->overrides, &c->cap_overrides, c->n_overrides + 1, r->err, "to read '%s'", r->name));
    tide__gate_layer *layer = &c->overrides[c->n_overrides++];
    *layer = (tide__gate_layer){.node = match};
    const char *text;
    TIDE_TRY(tide__gate_text(r, match, &text));
    TIDE_TRY(tide__gate_clean_path(r, text, &layer->match));
    TIDE_TRY(tide__gate_pattern_check(r, match, layer->match));
    return tide__gate_layer_read(r, rules, max_bytes, layer);
}

static tide_status read_models(const tide__gate_reader *r, const tide_gate_node *root, tide_gate_config *c,
                               const tide_gate_plan_settings *defaults) {
    const tide_gate_node *models = tide__gate_find(root, "model");
    if (models != NULL) TIDE_TRY(tide__gate_is(r, models, TIDE_GATE_NODE_LIST));
    if (models == NULL || models->n == 0) {
        const tide_status st = tide__gate_bad(r, models, "it names no model: there is nothing to measure");
        tide_error_hint(r->err, "write [[model]] and path = \"models/*.onnx\" below it");
        return st;
    }
    for (const tide_gate_node *n = models->first; n != NULL; n = n->next)
        TIDE_TRY(tide__gate_model_read(r, c, n, defaults));
    for (size_t i = 0; i < c->n_targets; i++)
        if (c->targets[i].why_empty == NULL) return TIDE_OK;
    const tide_gate_node *path = tide__gate_find(c->nodes[0], "path");
    const tide_status st = tide__gate_bad(r, path != NULL ? path : c->nodes[0], "%s: '%.256s'", c->targets[0].why_empty,
                                          c->targets[0].key);
    tide_error_hint(r->err, "patterns are looked up from the folder of the configuration");
    return st;
}

/// An override that matches no case becomes a target that cannot be measured.
static tide_status add_empty_overrides(const tide__gate_reader *r, tide_gate_config *c) {
    bool *is_empty = tide_gate_arena_take(r->arena, c->n_overrides + 1);
    if (is_empty == NULL) return TIDE__GATE_NO_MEMORY(r);
    for (size_t i = 0; i < c->n_overrides; i++) is_empty[i] = c->overrides[i].n_matched == 0;
    for (size_t i = 0; i < c->n_overrides; i++) {
        const tide__gate_layer *o = &c->overrides[i];
        if (is_empty[i] && !tide_strmap_get(&c->keys, o->match, NULL))
            TIDE_TRY(tide__gate_target_add_empty(r, c, o->match, "this override matches no case", o->node));
    }
    return TIDE_OK;
}

static tide_status read_document(const tide__gate_reader *r, const tide_gate_node *root, tide_gate_config *c) {
    TIDE_TRY(read_top(r, root, c));
    tide_gate_plan_settings defaults = {0};
    const tide_gate_node *n = tide__gate_find(root, "defaults");
    if (n != NULL) {
        size_t n_known = 0;
        while (tide__gate_settings_keys[n_known] != NULL) n_known++;
        TIDE_TRY(tide__gate_keys(r, n, "[defaults]", tide__gate_settings_keys, n_known));
        TIDE_TRY(tide__gate_settings_read(r, n, &defaults));
    }
    if ((n = tide__gate_find(root, "override")) != NULL) {
        TIDE_TRY(tide__gate_is(r, n, TIDE_GATE_NODE_LIST));
        for (const tide_gate_node *o = n->first; o != NULL; o = o->next) TIDE_TRY(read_override(r, o, c));
    }
    TIDE_TRY(read_models(r, root, c, &defaults));
    if (c->is_baseline_wanted && c->baseline == NULL)
        TIDE_TRY(tide__gate_join(r, "tidemark-baseline.json", &c->baseline));
    TIDE_TRY(add_empty_overrides(r, c));
    return tide__gate_check_rules(r, c);
}

// ---- the file ----

/// Standard input is JSON if it begins with a brace: no TOML document does.
static bool is_json(const char *path, const char *data, size_t len) {
    const size_t n = strlen(path);
    if (strcmp(path, "-") != 0) return n >= 5 && strcmp(path + n - 5, ".json") == 0;
    size_t i = 0;
    while (i < len && strchr(" \t\r\n", data[i]) != NULL && data[i] != '\0') i++;
    return i < len && data[i] == '{';
}

static const char *folder_of(tide_gate_arena *a, const char *path) {
    const char *slash = strcmp(path, "-") != 0 ? strrchr(path, '/') : NULL;
    return tide_gate_arena_text(a, path, slash != NULL ? (size_t)(slash - path) + 1 : 0);
}

static tide_status parse(tide__gate_reader *r, const char *path, const char *data, size_t len, tide_gate_config *c) {
    tide_gate_node *root = NULL;
    if (len == 0) {
        const tide_status st = TIDE_FAIL(r->err, TIDE_ERR_BAD_INPUT, "cannot read '%s': the file is empty", r->name);
        tide_error_hint(r->err, "docs/gate.md has a configuration to begin with");
        return st;
    }
    TIDE_TRY(is_json(path, data, len) ? tide_gate_json_parse(data, len, r->name, r->arena, &root, r->err)
                                      : tide_gate_toml_parse(data, len, r->name, r->arena, &root, r->err));
    return read_document(r, root, c);
}

tide_status tide_gate_config_read(const char *path, tide_gate_config **out, tide_error *err) {
    char *data;
    size_t len;
    TIDE_TRY(tide_read_file(path, MAX_FILE_BYTES, &data, &len, err));
    tide_gate_config *c = new_config(path, strcmp(path, "-") == 0 ? "standard input" : path);
    tide_status st;
    if (c != NULL) {
        tide__gate_reader r = {.arena = &c->arena, .name = c->shown, .folder = folder_of(&c->arena, path), .err = err};
        st = r.folder != NULL ? parse(&r, path, data, len, c) : TIDE__GATE_NO_MEMORY(&r);
    } else {
        st = TIDE_NO_MEMORY(err, "to read '%.200s'", path);
    }
    tide_host_free(data);
    if (st != TIDE_OK)
        tide_gate_config_destroy(c);
    else
        *out = c;
    return st;
}

// ---- files on the command line ----

static tide_status copy_texts(const tide__gate_reader *r, size_t n, const char *const **texts) {
    const char **out = tide_gate_arena_take(r->arena, (n + 1) * sizeof *out);
    if (out == NULL) return TIDE__GATE_NO_MEMORY(r);
    for (size_t i = 0; i < n; i++) TIDE_TRY(tide__gate_keep(r, (*texts)[i], &out[i]));
    *texts = out;
    return TIDE_OK;
}

static tide_status copy_settings(const tide__gate_reader *r, const tide_gate_plan_settings *from,
                                 tide_gate_plan_settings *out) {
    *out = from != NULL ? *from : (tide_gate_plan_settings){0};
    TIDE_TRY(copy_texts(r, out->n_shapes, &out->shapes));
    TIDE_TRY(copy_texts(r, out->n_extents, &out->extents));
    TIDE_TRY(copy_texts(r, out->n_bounds, &out->bounds));
    const char **texts[] = {&out->strategy, &out->allocator, &out->input_dir};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (*texts[i] != NULL) TIDE_TRY(tide__gate_keep(r, *texts[i], texts[i]));
    }
    return TIDE_OK;
}

static tide_status add_files(const tide__gate_reader *r, tide_gate_config *c, const char *const *paths, size_t n,
                             const tide_gate_plan_settings *settings) {
    tide_gate_target t = {.origin = "the command line"};
    TIDE_TRY(copy_settings(r, settings, &t.settings));
    for (size_t i = 0; i < n; i++) {
        TIDE_TRY(tide__gate_keep(r, paths[i], &t.path));
        TIDE_TRY(tide__gate_clean_path(r, paths[i], &t.key));
        TIDE_TRY(tide__gate_target_add_file(r, c, &t));
    }
    return TIDE_OK;
}

tide_status tide_gate_config_of_files(const char *const *paths, size_t n, const tide_gate_plan_settings *settings,
                                      tide_gate_config **out, tide_error *err) {
    tide_gate_config *c = new_config("", "the command line");
    if (c == NULL) return TIDE_NO_MEMORY(err, "for a configuration of %zu files", n);
    const tide__gate_reader r = {.arena = &c->arena, .name = c->shown, .folder = "", .err = err};
    const tide_status st = add_files(&r, c, paths, n, settings);
    if (st != TIDE_OK)
        tide_gate_config_destroy(c);
    else
        *out = c;
    return st;
}

// ---- questions ----

const tide_gate_target *tide_gate_config_targets(const tide_gate_config *c, size_t *n) {
    *n = c->n_targets;
    return c->targets;
}

const tide_gate_target *tide_gate_config_find(const tide_gate_config *c, const char *key) {
    uint64_t at;
    return tide_strmap_get(&c->keys, key, &at) ? &c->targets[at] : NULL;
}

const char *tide_gate_config_baseline(const tide_gate_config *c, bool *is_wanted) {
    if (is_wanted != NULL) *is_wanted = c->is_baseline_wanted;
    return c->baseline;
}

const char *tide_gate_config_path(const tide_gate_config *c) { return c->path; }
tide_gate_level tide_gate_config_removed(const tide_gate_config *c) { return c->removed; }
tide_gate_level tide_gate_config_added(const tide_gate_config *c) { return c->added; }
