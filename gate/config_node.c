// SPDX-License-Identifier: MIT
//
// The tree, its memory, its places, and JSON. See config_node.h.
#include "gate/config_node.h"

#include <stdalign.h>
#include <stdio.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/base/json.h"

// ---- memory ----

typedef struct tide_gate_chunk {
    alignas(16) struct tide_gate_chunk *next;
    size_t used, cap; // bytes behind this header
} tide_gate_chunk;

enum { CHUNK_BYTES = 16 * 1024 };

void *tide_gate_arena_take(tide_gate_arena *a, size_t bytes) {
    size_t need, with_header;
    if (!tide_add_size(bytes, 15, &need)) return NULL;
    need &= ~(size_t)15;
    if (a->chunks == NULL || a->chunks->cap - a->chunks->used < need) {
        const size_t cap = need > CHUNK_BYTES ? need : CHUNK_BYTES;
        if (!tide_add_size(cap, sizeof(tide_gate_chunk), &with_header)) return NULL;
        tide_gate_chunk *chunk = tide_host_calloc(1, with_header);
        if (chunk == NULL) return NULL;
        *chunk = (tide_gate_chunk){.next = a->chunks, .cap = cap};
        a->chunks = chunk;
    }
    void *out = (char *)(a->chunks + 1) + a->chunks->used;
    a->chunks->used += need;
    return out;
}

char *tide_gate_arena_text(tide_gate_arena *a, const char *text, size_t n) {
    size_t bytes;
    if (!tide_add_size(n, 1, &bytes)) return NULL;
    char *copy = tide_gate_arena_take(a, bytes);
    if (copy != NULL && n > 0) memcpy(copy, text, n);
    return copy;
}

void tide_gate_arena_deinit(tide_gate_arena *a) {
    while (a->chunks != NULL) {
        tide_gate_chunk *next = a->chunks->next;
        tide_host_free(a->chunks);
        a->chunks = next;
    }
}

// ---- tree ----

tide_gate_node *tide_gate_node_add(tide_gate_arena *a, tide_gate_node *parent, tide_gate_node_type type,
                                   const char *key, size_t key_len, int line) {
    tide_gate_node *n = tide_gate_arena_take(a, sizeof *n);
    if (n == NULL) return NULL;
    n->type = type;
    n->line = line;
    n->parent = parent;
    if (key != NULL && (n->key = tide_gate_arena_text(a, key, key_len)) == NULL) return NULL;
    if (parent == NULL) return n;
    n->index = parent->n++;
    if (parent->last != NULL)
        parent->last->next = n;
    else
        parent->first = n;
    parent->last = n;
    return n;
}

/// "model[1].rules.planned_bytes"; cut at its end.
static size_t path_of(const tide_gate_node *n, char *buf, size_t buf_bytes) {
    if (n->parent == NULL) return 0;
    const size_t at = path_of(n->parent, buf, buf_bytes);
    if (at + 1 >= buf_bytes) return at;
    int added;
    if (n->key == NULL)
        added = snprintf(buf + at, buf_bytes - at, "[%zu]", n->index);
    else
        added = snprintf(buf + at, buf_bytes - at, "%s%.128s", at > 0 ? "." : "", n->key);
    return added > 0 && (size_t)added < buf_bytes - at ? at + (size_t)added : buf_bytes - 1;
}

const char *tide_gate_node_place(const char *name, const tide_gate_node *n, char *buf, size_t buf_bytes) {
    char path[256] = "";
    if (n != NULL && n->line > 0)
        snprintf(buf, buf_bytes, "%s:%d", name, n->line);
    else if (n != NULL && path_of(n, path, sizeof path) > 0)
        snprintf(buf, buf_bytes, "%s: %s", name, path);
    else
        snprintf(buf, buf_bytes, "%s", name);
    return buf;
}

// ---- JSON ----

static tide_gate_node_type type_of(const json_t *v) {
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        return TIDE_GATE_NODE_TABLE;
    case JSON_ARRAY:
        return TIDE_GATE_NODE_LIST;
    case JSON_STRING:
        return TIDE_GATE_NODE_TEXT;
    case JSON_INTEGER:
        return TIDE_GATE_NODE_INTEGER;
    case JSON_REAL:
        return TIDE_GATE_NODE_REAL;
    case JSON_TRUE:
    case JSON_FALSE:
        return TIDE_GATE_NODE_BOOL;
    default:
        return TIDE_GATE_NODE_NULL;
    }
}

static tide_status convert(tide_json_reader *r, tide_gate_arena *a, json_t *v, tide_gate_node *parent, const char *key,
                           int depth, tide_gate_node **out);

static tide_status convert_members(tide_json_reader *r, tide_gate_arena *a, json_t *v, tide_gate_node *n, int depth) {
    const char *key;
    json_t *value;
    for (size_t i = 0; i < json_array_size(v); i++) TIDE_TRY(convert(r, a, json_array_get(v, i), n, NULL, depth, NULL));
    json_object_foreach(v, key, value) TIDE_TRY(convert(r, a, value, n, key, depth, NULL));
    return TIDE_OK;
}

/// Recursion is as deep as the document, so the depth is limited here.
static tide_status convert(tide_json_reader *r, tide_gate_arena *a, json_t *v, tide_gate_node *parent, const char *key,
                           int depth, tide_gate_node **out) {
    tide_gate_node *n = tide_gate_node_add(a, parent, type_of(v), key, key != NULL ? strlen(key) : 0, 0);
    if (n == NULL) return TIDE_NO_MEMORY(r->err, "to read '%s'", r->path);
    if (out != NULL) *out = n;
    switch (n->type) {
    case TIDE_GATE_NODE_TABLE:
    case TIDE_GATE_NODE_LIST:
        if (depth < TIDE_GATE_MAX_DEPTH) return convert_members(r, a, v, n, depth + 1);
        path_of(n, r->at, sizeof r->at);
        return TIDE_JSON_BAD(r, "", "objects and lists nested deeper than %d", TIDE_GATE_MAX_DEPTH);
    case TIDE_GATE_NODE_TEXT:
        n->text_len = json_string_length(v);
        n->text = tide_gate_arena_text(a, json_string_value(v), n->text_len);
        return n->text != NULL ? TIDE_OK : TIDE_NO_MEMORY(r->err, "to read '%s'", r->path);
    case TIDE_GATE_NODE_INTEGER:
        n->integer = json_integer_value(v);
        n->real = (double)n->integer;
        return TIDE_OK;
    case TIDE_GATE_NODE_REAL:
        n->real = json_real_value(v);
        return TIDE_OK;
    default:
        n->truth = json_is_true(v);
        return TIDE_OK;
    }
}

tide_status tide_gate_json_parse(const char *text, size_t len, const char *name, tide_gate_arena *a,
                                 tide_gate_node **out, tide_error *err) {
    tide_json_reader r = {.path = name, .err = err};
    json_t *doc;
    // A NUL that is written as \u0000 in a text is refused where the key is read.
    const size_t flags = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL;
    tide_status st = tide_json_parse(&r, text, len, flags, "not a JSON document", &doc);
    if (st == TIDE_OK) st = convert(&r, a, doc, NULL, NULL, 0, out);
    if (st == TIDE_ERR_BAD_INPUT) tide_error_prefix(err, "cannot read '%s'", name);
    json_decref(doc);
    return st;
}
