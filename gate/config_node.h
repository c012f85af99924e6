// SPDX-License-Identifier: MIT
//
// config_node: a configuration as a tree that knows where each of its parts stands, whichever format it was written in.
// It is the one form that gate/config*.c read; gate/toml.cpp makes it of TOML, config_node.c of JSON.
#ifndef TIDE_GATE_CONFIG_NODE_H
#define TIDE_GATE_CONFIG_NODE_H

#include <stdint.h>

#include "core/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Memory that is given back all at once. Zero-initialise.
typedef struct tide_gate_arena {
    struct tide_gate_chunk *chunks; ///< owned, the one in use first
} tide_gate_arena;
/// Zeroed, 16-byte aligned; NULL without memory.
void *tide_gate_arena_take(tide_gate_arena *a, size_t bytes) TIDE_NODISCARD;
/// A copy with a NUL behind it.
char *tide_gate_arena_text(tide_gate_arena *a, const char *text, size_t n) TIDE_NODISCARD;
void tide_gate_arena_deinit(tide_gate_arena *a);

typedef enum tide_gate_node_type {
    TIDE_GATE_NODE_TABLE,
    TIDE_GATE_NODE_LIST,
    TIDE_GATE_NODE_TEXT,
    TIDE_GATE_NODE_INTEGER,
    TIDE_GATE_NODE_REAL,
    TIDE_GATE_NODE_BOOL,
    TIDE_GATE_NODE_DATE, ///< a date or a time of TOML, which no key takes
    TIDE_GATE_NODE_NULL, ///< of JSON, which no key takes
} tide_gate_node_type;

typedef struct tide_gate_node {
    tide_gate_node_type type;
    int line;        ///< of the key, or of a value in a list; 0: not known (JSON)
    const char *key; ///< of a table's member; NULL: the root, or a value in a list
    size_t index;    ///< of a value in a list
    const struct tide_gate_node *parent;
    struct tide_gate_node *first, *last; ///< members, values
    struct tide_gate_node *next;
    size_t n;         ///< members, values
    const char *text; ///< of TEXT
    size_t text_len;  ///
    int64_t integer;  ///< of INTEGER
    double real;      ///< of REAL, and of INTEGER too
    bool truth;       ///< of BOOL
} tide_gate_node;

enum { TIDE_GATE_MAX_DEPTH = 64 }; ///< of tables and lists in each other

/// A member of `parent` (NULL: the root). `key` is copied; NULL in a list. NULL without memory.
tide_gate_node *tide_gate_node_add(tide_gate_arena *a, tide_gate_node *parent, tide_gate_node_type type,
                                   const char *key, size_t key_len, int line) TIDE_NODISCARD;

/// Parse `text`; `name` is how messages call it. TIDE_ERR_BAD_INPUT, TIDE_ERR_NOMEM.
tide_status tide_gate_json_parse(const char *text, size_t len, const char *name, tide_gate_arena *a,
                                 tide_gate_node **out, tide_error *err) TIDE_NODISCARD;
/// No exception leaves it. What toml++ needs while it parses is the C++ library's own memory; the tree is in `a`.
tide_status tide_gate_toml_parse(const char *text, size_t len, const char *name, tide_gate_arena *a,
                                 tide_gate_node **out, tide_error *err) TIDE_NODISCARD;

/// Where a node stands: "tidemark.toml:12", "tidemark.json: model[1].rules.planned_bytes". Cut to `buf_bytes`.
const char *tide_gate_node_place(const char *name, const tide_gate_node *n, char *buf, size_t buf_bytes);

#ifdef __cplusplus
}
#endif
#endif
