// SPDX-License-Identifier: MIT
//
// config, the parts that only gate/config*.c share: the reader of one file, its typed keys, rules in layers, targets.
#ifndef TIDE_GATE_CONFIG_INTERNAL_H
#define TIDE_GATE_CONFIG_INTERNAL_H

#include "core/base/host_alloc.h"
#include "core/base/map.h"
#include "core/base/text.h"
#include "gate/config.h"
#include "gate/config_node.h"

// ---- reading one file ----

typedef struct tide__gate_reader {
    tide_gate_arena *arena; ///< of the configuration: what it keeps
    const char *name;       ///< of the file in messages; limited, so that a message has room for its reason
    const char *folder;     ///< of the file, ending in "/"; "" the current one
    tide_error *err;
} tide__gate_reader;

/// "cannot read 'NAME': …" at the place of `n`.
tide_status tide__gate_bad(const tide__gate_reader *r, const tide_gate_node *n, const char *fmt, ...)
    TIDE_PRINTF(3, 4) TIDE_NODISCARD;
#define TIDE__GATE_NO_MEMORY(r) TIDE_NO_MEMORY((r)->err, "to read '%s'", (r)->name)
/// Two keys that exclude each other: as tide__gate_bad at `n`, and a note with the place of `other`.
tide_status tide__gate_contradiction(const tide__gate_reader *r, const tide_gate_node *n, const tide_gate_node *other,
                                     const char *fmt, ...) TIDE_PRINTF(4, 5) TIDE_NODISCARD;
/// Copies that live as long as the configuration: of a text, and of where a node stands ("tidemark.toml:12").
tide_status tide__gate_keep(const tide__gate_reader *r, const char *text, const char **out) TIDE_NODISCARD;
tide_status tide__gate_keep_place(const tide__gate_reader *r, const tide_gate_node *n, const char **out) TIDE_NODISCARD;

/// NULL: the table has no such member.
const tide_gate_node *tide__gate_find(const tide_gate_node *table, const char *key);
/// `n` is a table and has no members but `known` [n_known]; the first other one is named with the nearest known.
tide_status tide__gate_keys(const tide__gate_reader *r, const tide_gate_node *n, const char *what,
                            const char *const *known, size_t n_known) TIDE_NODISCARD;
/// Each fails with what was wanted and what is there instead. Texts are the node's, not empty and without a NUL.
tide_status tide__gate_is(const tide__gate_reader *r, const tide_gate_node *n, tide_gate_node_type want) TIDE_NODISCARD;
tide_status tide__gate_text(const tide__gate_reader *r, const tide_gate_node *n, const char **out) TIDE_NODISCARD;
tide_status tide__gate_bool(const tide__gate_reader *r, const tide_gate_node *n, bool *out) TIDE_NODISCARD;
tide_status tide__gate_count(const tide__gate_reader *r, const tide_gate_node *n, uint64_t min, uint64_t max,
                             uint64_t *out) TIDE_NODISCARD;
/// An integer of bytes, or text as tide_parse_bytes takes it.
tide_status tide__gate_size(const tide__gate_reader *r, const tide_gate_node *n, uint64_t *out) TIDE_NODISCARD;
/// One of `words` [n_words].
tide_status tide__gate_choice(const tide__gate_reader *r, const tide_gate_node *n, const char *const *words,
                              size_t n_words, size_t *out) TIDE_NODISCARD;
/// The node's name in messages: "key 'align'", "value 2 of 'aligns'".
const char *tide__gate_call(const tide_gate_node *n, char *buf, size_t buf_bytes);

// ---- limits ----

/// Reads digits with an optional point and more digits, in any locale the same way.
bool tide__gate_parse_decimal(const char *text, size_t len, double *out);
// ---- rules ----

typedef enum tide__gate_field_id {
    TIDE__GATE_WARN,
    TIDE__GATE_FAIL,
    TIDE__GATE_GAIN_WARN,
    TIDE__GATE_GAIN_FAIL,
    TIDE__GATE_BUDGET,
    TIDE__GATE_WARN_BUDGET,
    TIDE__GATE_N_FIELDS
} tide__gate_field_id;

typedef enum tide__gate_gain { TIDE__GATE_GAIN_OFF, TIDE__GATE_GAIN_WARNS, TIDE__GATE_GAIN_FAILS } tide__gate_gain;

/// One limit as one place of the configuration sets it.
typedef struct tide__gate_field {
    bool is_set;
    bool is_off; ///< removes an inherited limit
    tide_gate_limit limit;
    tide_gate_value value;      ///< of the budgets
    const tide_gate_node *node; ///< NULL: the default
    const char *place;          ///< NULL: the default
} tide__gate_field;

/// The rule for one metric as one place of the configuration sets it.
typedef struct tide__gate_rule {
    tide_gate_metric metric;
    int kind;
    bool is_word; ///< "off", "report", …: replaces all inherited limits
    bool is_off;
    bool has_gain;
    tide__gate_gain gain;
    const tide_gate_node *node;
    const char *place;
    tide__gate_field fields[TIDE__GATE_N_FIELDS];
} tide__gate_rule;

/// [rules], the rules of a [[model]] or of an [[override]].
typedef struct tide__gate_layer {
    const char *match;      ///< of an override: pattern of keys; else NULL
    tide__gate_rule *rules; ///< [n] by metric, then kind, -1 first
    size_t n, cap;
    const tide_gate_node *node; ///< what messages point at
    size_t n_matched;           ///< targets
} tide__gate_layer;

/// `rules` (NULL: none) and `max_bytes` (NULL: none) into a layer.
tide_status tide__gate_layer_read(const tide__gate_reader *r, const tide_gate_node *rules,
                                  const tide_gate_node *max_bytes, tide__gate_layer *out) TIDE_NODISCARD;
/// The limits that result from several layers.
typedef struct tide__gate_resolved {
    bool is_off, has_gain_of_its_own;
    tide__gate_gain gain;
    const char *gain_place;
    tide__gate_field fields[TIDE__GATE_N_FIELDS];
} tide__gate_resolved;

// ---- targets ----

typedef struct tide__gate_held {
    const tide__gate_layer *model; ///< NULL: none
    const uint32_t *overrides;     ///< [n_overrides] indices, ascending
    size_t n_overrides;
} tide__gate_held;

struct tide_gate_config {
    tide_gate_arena arena; ///< texts and trees
    const char *path;
    const char *shown; ///< the same, bounded: what origins begin with
    const char *baseline;
    bool is_baseline_wanted;
    const tide_gate_node *baseline_node; ///< NULL: the file does not say
    tide_gate_level removed, added;
    tide__gate_gain gain;
    const char *gain_place; ///< NULL: the default
    tide__gate_layer rules;
    tide__gate_layer *overrides; ///< [n_overrides]
    size_t n_overrides, cap_overrides;
    tide__gate_layer **models; ///< [n_models], each owned: targets point at them
    size_t n_models, cap_models;
    tide_gate_target *targets;    ///< [n_targets]
    tide__gate_held *held;        ///< [n_targets]
    const tide_gate_node **nodes; ///< [n_targets] what gave them; NULL of files on the command line
    size_t n_targets, cap_targets, cap_held, cap_nodes;
    tide_strmap keys; ///< index of the target
};

/// Combines the layers for a metric of `key`; `held` NULL: the key is no target.
void tide__gate_resolve(const tide_gate_config *c, const tide__gate_held *held, const char *key, tide_gate_metric m,
                        int kind, tide__gate_resolved *out);
/// Refuses rules that contradict each other for a target, and rules without effect.
tide_status tide__gate_check_rules(const tide__gate_reader *r, tide_gate_config *c) TIDE_NODISCARD;
bool tide__gate_matches(const char *pattern, const char *key);

/// [defaults] and the keys of them that a [[model]] may have too, on top of `out`.
tide_status tide__gate_settings_read(const tide__gate_reader *r, const tide_gate_node *table,
                                     tide_gate_plan_settings *out) TIDE_NODISCARD;
extern const char *const tide__gate_settings_keys[]; ///< ends with NULL

/// Adds the targets of one [[model]] to c->targets.
tide_status tide__gate_model_read(const tide__gate_reader *r, tide_gate_config *c, const tide_gate_node *model,
                                  const tide_gate_plan_settings *defaults) TIDE_NODISCARD;
/// A file of the command line; `t` is copied. A key that is there already is an error.
tide_status tide__gate_target_add_file(const tide__gate_reader *r, tide_gate_config *c,
                                       const tide_gate_target *t) TIDE_NODISCARD;
/// Adds a target that cannot be measured, for the entry at `node` that has no file any more. `why` is static.
tide_status tide__gate_target_add_empty(const tide__gate_reader *r, tide_gate_config *c, const char *pattern,
                                        const char *why, const tide_gate_node *node) TIDE_NODISCARD;

// ---- files ----

/// Plain files that `pattern` matches below r->folder, without that folder, bytewise sorted; a pattern without
/// wildcards, or that is the name of a file, is itself. *out [n] in the arena; n is 0 where nothing matches.
tide_status tide__gate_glob(const tide__gate_reader *r, const tide_gate_node *n, const char *pattern,
                            const char *const **out, size_t *n_out) TIDE_NODISCARD;
/// Refuses `**`, and patterns that would take too long to match.
tide_status tide__gate_pattern_check(const tide__gate_reader *r, const tide_gate_node *n,
                                     const char *pattern) TIDE_NODISCARD;
/// "./a//b" -> "a/b"; lives as long as the configuration.
tide_status tide__gate_clean_path(const tide__gate_reader *r, const char *path, const char **out) TIDE_NODISCARD;
/// The path that can be opened: below r->folder unless absolute; lives as long as the configuration.
tide_status tide__gate_join(const tide__gate_reader *r, const char *path, const char **out) TIDE_NODISCARD;

#endif
