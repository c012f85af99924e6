// SPDX-License-Identifier: MIT
//
// json document: typed access to the keys of a JSON document, with the place of each fault. Private to the planner.
#ifndef TIDE_PLANNER_JSON_DOCUMENT_H
#define TIDE_PLANNER_JSON_DOCUMENT_H

#include <jansson.h>

#include "core/base/text.h"
#include "core/runtime/memory_plan.h"

typedef struct tide_doc_reader {
    const char *path; ///< of the document, for messages
    tide_error *err;
    char at[96];  ///< the object being read: "tensors[3]"; "" for the document
    json_t *root; ///< owned
} tide_doc_reader;

/// Note where the fault just reported lies: `key` of the object being read. @return `st`
tide_status tide__doc_bad_at(tide_doc_reader *r, const char *key, tide_status st);
#define TIDE_DOC_BAD(r, key, ...) tide__doc_bad_at((r), (key), TIDE_FAIL((r)->err, TIDE_ERR_BAD_INPUT, __VA_ARGS__))
/// What others refuse is the document's fault here: the same words as an input error at `key`.
tide_status tide__doc_as_bad_input(tide_doc_reader *r, const char *key, tide_status st);

/// Parse a document and check its schema and version.
tide_status tide__doc_open(tide_doc_reader *r, const char *data, size_t len, const char *schema,
                           int version) TIDE_NODISCARD;
void tide__doc_close(tide_doc_reader *r);

static inline bool tide__doc_has(const json_t *object, const char *key) { return json_object_get(object, key) != NULL; }
/// Each wants its key to be there with the right type. Counts are 0 … 2^63 - 1.
tide_status tide__doc_string(tide_doc_reader *r, const json_t *object, const char *key,
                             const char **out) TIDE_NODISCARD;
tide_status tide__doc_count(tide_doc_reader *r, const json_t *object, const char *key, int64_t *out) TIDE_NODISCARD;
tide_status tide__doc_bytes(tide_doc_reader *r, const json_t *object, const char *key, uint64_t *out) TIDE_NODISCARD;
tide_status tide__doc_list(tide_doc_reader *r, const json_t *object, const char *key, json_t **out) TIDE_NODISCARD;
tide_status tide__doc_object(tide_doc_reader *r, const json_t *object, const char *key, json_t **out) TIDE_NODISCARD;
/// Absent: *out stays as it is.
tide_status tide__doc_flag(tide_doc_reader *r, const json_t *object, const char *key, bool *out) TIDE_NODISCARD;
/// Absent or null: TIDE_NO_INDEX.
tide_status tide__doc_index(tide_doc_reader *r, const json_t *object, const char *key, uint32_t *out) TIDE_NODISCARD;
/// The i-th element of list `name`, which must be an object; messages point into it from here on.
tide_status tide__doc_enter(tide_doc_reader *r, const json_t *list, const char *name, size_t i,
                            json_t **out) TIDE_NODISCARD;
/// Messages point into "alias" or "gaps[2]" of the object being read from here on, until r->at[@return] = '\0'.
size_t tide__doc_go_into(tide_doc_reader *r, const char *fmt, ...) TIDE_PRINTF(2, 3);

// ---- writing ----

/// A JSON string; bytes that are no UTF-8 become U+FFFD, for a document must be text.
void tide__doc_add_string(tide_text *out, const char *text);
void tide__doc_add_key_string(tide_text *out, const char *key, const char *text);

#endif
