// SPDX-License-Identifier: MIT
//
// Typed access to the keys of a configuration, and the words of its errors. See config_internal.h.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/nearest.h"
#include "gate/config_internal.h"

// ---- errors ----

static tide_status bad_at(const tide__gate_reader *r, const tide_gate_node *n, const char *fmt, va_list ap)
    TIDE_PRINTF(3, 0);
static tide_status bad_at(const tide__gate_reader *r, const tide_gate_node *n, const char *fmt, va_list ap) {
    char why[512], place[384];
    vsnprintf(why, sizeof why, fmt, ap);
    const tide_status st = TIDE_FAIL(r->err, TIDE_ERR_BAD_INPUT, "cannot read '%s': %s", r->name, why);
    tide_error_where(r->err, "%s", tide_gate_node_place(r->name, n, place, sizeof place));
    return st;
}

tide_status tide__gate_bad(const tide__gate_reader *r, const tide_gate_node *n, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const tide_status st = bad_at(r, n, fmt, ap);
    va_end(ap);
    return st;
}

tide_status tide__gate_contradiction(const tide__gate_reader *r, const tide_gate_node *n, const tide_gate_node *other,
                                     const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const tide_status st = bad_at(r, n, fmt, ap);
    va_end(ap);
    char place[320];
    tide_error_note(r->err, "the other one is at %s", tide_gate_node_place(r->name, other, place, sizeof place));
    return st;
}

tide_status tide__gate_keep(const tide__gate_reader *r, const char *text, const char **out) {
    *out = tide_gate_arena_text(r->arena, text, strlen(text));
    return *out != NULL ? TIDE_OK : TIDE__GATE_NO_MEMORY(r);
}

tide_status tide__gate_keep_place(const tide__gate_reader *r, const tide_gate_node *n, const char **out) {
    char place[384];
    return tide__gate_keep(r, tide_gate_node_place(r->name, n, place, sizeof place), out);
}

const char *tide__gate_call(const tide_gate_node *n, char *buf, size_t buf_bytes) {
    if (n->parent == NULL)
        snprintf(buf, buf_bytes, "the document");
    else if (n->key != NULL)
        snprintf(buf, buf_bytes, "key '%.64s'", n->key);
    else
        snprintf(buf, buf_bytes, "value %zu of '%.64s'", n->index + 1, n->parent->key != NULL ? n->parent->key : "?");
    return buf;
}

// ---- tables ----

const tide_gate_node *tide__gate_find(const tide_gate_node *table, const char *key) {
    if (table == NULL || table->type != TIDE_GATE_NODE_TABLE) return NULL;
    for (const tide_gate_node *n = table->first; n != NULL; n = n->next) {
        if (strcmp(n->key, key) == 0) return n;
    }
    return NULL;
}

static bool is_known(const char *key, const char *const *known, size_t n_known) {
    for (size_t i = 0; i < n_known; i++) {
        if (strcmp(known[i], key) == 0) return true;
    }
    return false;
}

static void hint_words(tide_error *err, const char *lead, const char *const *words, size_t n) {
    char list[224] = "";
    size_t at = 0;
    for (size_t i = 0; i < n && at + 1 < sizeof list; i++) {
        const int added = snprintf(list + at, sizeof list - at, "%s%s", i > 0 ? ", " : "", words[i]);
        if (added < 0 || (size_t)added >= sizeof list - at - 4) {
            snprintf(list + at, sizeof list - at, ", …");
            break;
        }
        at += (size_t)added;
    }
    tide_error_hint(err, "%s %s", lead, list);
}

tide_status tide__gate_keys(const tide__gate_reader *r, const tide_gate_node *n, const char *what,
                            const char *const *known, size_t n_known) {
    TIDE_TRY(tide__gate_is(r, n, TIDE_GATE_NODE_TABLE));
    for (const tide_gate_node *k = n->first; k != NULL; k = k->next) {
        if (is_known(k->key, known, n_known)) continue;
        const tide_status st = tide__gate_bad(r, k, "%s has no key '%.64s'", what, k->key);
        const char *near = tide_nearest_of(k->key, known, n_known);
        if (near != NULL)
            tide_error_hint(r->err, "did you mean '%s'?", near);
        else
            hint_words(r->err, "keys are", known, n_known);
        return st;
    }
    return TIDE_OK;
}

// ---- values ----

static const char *type_name(tide_gate_node_type type) {
    switch (type) {
    case TIDE_GATE_NODE_TABLE:
        return "a table";
    case TIDE_GATE_NODE_LIST:
        return "a list";
    case TIDE_GATE_NODE_TEXT:
        return "text";
    case TIDE_GATE_NODE_INTEGER:
        return "an integer";
    case TIDE_GATE_NODE_REAL:
        return "a number with a fraction";
    case TIDE_GATE_NODE_BOOL:
        return "true or false";
    case TIDE_GATE_NODE_DATE:
        return "a date or time";
    default:
        return "null";
    }
}

tide_status tide__gate_is(const tide__gate_reader *r, const tide_gate_node *n, tide_gate_node_type want) {
    if (n->type == want) return TIDE_OK;
    char call[128];
    return tide__gate_bad(r, n, "%s is %s: want %s", tide__gate_call(n, call, sizeof call), type_name(n->type),
                          type_name(want));
}

tide_status tide__gate_text(const tide__gate_reader *r, const tide_gate_node *n, const char **out) {
    char call[128];
    TIDE_TRY(tide__gate_is(r, n, TIDE_GATE_NODE_TEXT));
    if (n->text_len == 0) return tide__gate_bad(r, n, "%s is empty", tide__gate_call(n, call, sizeof call));
    if (strlen(n->text) != n->text_len)
        return tide__gate_bad(r, n, "%s has a NUL character in it", tide__gate_call(n, call, sizeof call));
    *out = n->text;
    return TIDE_OK;
}

tide_status tide__gate_bool(const tide__gate_reader *r, const tide_gate_node *n, bool *out) {
    TIDE_TRY(tide__gate_is(r, n, TIDE_GATE_NODE_BOOL));
    *out = n->truth;
    return TIDE_OK;
}

tide_status tide__gate_count(const tide__gate_reader *r, const tide_gate_node *n, uint64_t min, uint64_t max,
                             uint64_t *out) {
    char call[128];
    TIDE_TRY(tide__gate_is(r, n, TIDE_GATE_NODE_INTEGER));
    if (n->integer < 0 || (uint64_t)n->integer < min || (uint64_t)n->integer > max)
        return tide__gate_bad(r, n, "%s is %" PRId64 ": want %" PRIu64 " to %" PRIu64,
                              tide__gate_call(n, call, sizeof call), n->integer, min, max);
    *out = (uint64_t)n->integer;
    return TIDE_OK;
}

tide_status tide__gate_size(const tide__gate_reader *r, const tide_gate_node *n, uint64_t *out) {
    char call[128];
    if (n->type == TIDE_GATE_NODE_INTEGER) return tide__gate_count(r, n, 0, INT64_MAX, out);
    if (n->type != TIDE_GATE_NODE_TEXT)
        return tide__gate_bad(r, n, "%s is %s: want a size such as \"64MiB\" or 65536",
                              tide__gate_call(n, call, sizeof call), type_name(n->type));
    const char *text;
    TIDE_TRY(tide__gate_text(r, n, &text));
    if (tide_parse_bytes(text, out, NULL) == TIDE_OK) return TIDE_OK;
    const tide_status st =
        tide__gate_bad(r, n, "%s: '%.64s' is not a size", tide__gate_call(n, call, sizeof call), text);
    tide_error_hint(r->err, "write bytes with an optional unit: 4096, 64KiB, 1.5GiB, 10MB");
    return st;
}

tide_status tide__gate_choice(const tide__gate_reader *r, const tide_gate_node *n, const char *const *words,
                              size_t n_words, size_t *out) {
    char call[128];
    const char *text;
    TIDE_TRY(tide__gate_text(r, n, &text));
    for (size_t i = 0; i < n_words; i++) {
        if (strcmp(words[i], text) != 0) continue;
        *out = i;
        return TIDE_OK;
    }
    const tide_status st =
        tide__gate_bad(r, n, "%s: '%.64s' is not known", tide__gate_call(n, call, sizeof call), text);
    const char *near = tide_nearest_of(text, words, n_words);
    if (near != NULL)
        tide_error_hint(r->err, "did you mean '%s'?", near);
    else
        hint_words(r->err, "want one of", words, n_words);
    return st;
}
