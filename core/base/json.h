// SPDX-License-Identifier: MIT
//
// json: jansson on our memory, and what every reader of a document needs. Documents are written with json_out.h.
//
// Jansson does not report that memory ran out: while it reads it mostly says that the text is not JSON. Here it is
// known.
#ifndef TIDE_CORE_BASE_JSON_H
#define TIDE_CORE_BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Have jansson take its memory from host_alloc, for the whole process and before its first use. Without it running out
/// of memory is not noticed better than jansson does.
void tide_json_use_host_alloc(void);
/**
 * json_loadb, but when memory ran out json_error_code(at) is json_error_out_of_memory, wherever in the text that was.
 *
 * @param at  out; may be NULL
 * @return NULL on error; else the caller's to json_decref
 */
json_t *tide_json_load(const char *data, size_t len, size_t flags, json_error_t *at);
// ---- reading a document that may be wrong ----

typedef struct tide_json_reader tide_json_reader;

/// The document being read, and the object in it that is being read, for messages.
struct tide_json_reader {
    const char *path; ///< of the document
    tide_error *err;
    char at[256]; ///< the object: "tensors[3]"; "" for the document
    /// The words in which a key is refused. `value` is NULL: the key is missing; of another type than `want`; or an
    /// integer below 0. NULL: "the key 'x' is missing", "'x' is a list: want a string", "'x' is -1: want 0 or more".
    tide_status (*refuse)(tide_json_reader *r, const char *key, const json_t *value, json_type want);
};

/// Say where the fault just reported lies: `key` of the object being read; "" is the object itself. @return `st`
tide_status tide_json_fault_at(tide_json_reader *r, const char *key, tide_status st);
#define TIDE_JSON_BAD(r, key, ...) tide_json_fault_at((r), (key), TIDE_FAIL((r)->err, TIDE_ERR_BAD_INPUT, __VA_ARGS__))
/// What another function refused is a fault of the document: its message as TIDE_ERR_BAD_INPUT at `key`. TIDE_OK and
/// TIDE_ERR_NOMEM stay as they are.
tide_status tide_json_as_bad_input(tide_json_reader *r, const char *key, tide_status st);
/// Parse the document; *out is the caller's to json_decref, NULL after a failure. Refuses "`what`: why", with path,
/// line and column.
tide_status tide_json_parse(tide_json_reader *r, const char *data, size_t len, size_t flags, const char *what,
                            json_t **out) TIDE_NODISCARD;
/// The same of the file r->path, as tide_read_file reads it. No key may be there twice.
tide_status tide_json_read_file(tide_json_reader *r, size_t max_bytes, json_t **out) TIDE_NODISCARD;
/// The document says what it is: an object with this "schema" and a "version" from `oldest` to `newest`, which goes
/// into *version (may be NULL).
tide_status tide_json_check_schema(tide_json_reader *r, const json_t *doc, const char *schema, int oldest, int newest,
                                   int *version) TIDE_NODISCARD;
/// tide_json_parse and tide_json_check_schema.
tide_status tide_json_parse_schema(tide_json_reader *r, const char *data, size_t len, const char *schema, int version,
                                   json_t **out) TIDE_NODISCARD;

/// "an object", "a list", …
const char *tide_json_type_name(json_type type);
static inline bool tide_json_has(const json_t *object, const char *key) { return json_object_get(object, key) != NULL; }
/// Refuses what is no object, and a key that is not among `known` (a list that ends with NULL), with the nearest one.
tide_status tide_json_check_keys(tide_json_reader *r, const json_t *object, const char *const *known) TIDE_NODISCARD;

/// The value of `key`, borrowed. Refuses a value of another type, and a missing one if it `is_required`; else it is
/// NULL.
tide_status tide_json_get(tide_json_reader *r, const json_t *object, const char *key, json_type want, bool is_required,
                          json_t **out) TIDE_NODISCARD;
/// Each of these wants the key to be there. Texts are borrowed, but for a copy; counts are 0 … 2^63 - 1.
tide_status tide_json_get_text(tide_json_reader *r, const json_t *object, const char *key,
                               const char **out) TIDE_NODISCARD;
tide_status tide_json_copy_text(tide_json_reader *r, const json_t *object, const char *key, char **out) TIDE_NODISCARD;
tide_status tide_json_get_i64(tide_json_reader *r, const json_t *object, const char *key, int64_t *out) TIDE_NODISCARD;
tide_status tide_json_get_count(tide_json_reader *r, const json_t *object, const char *key,
                                int64_t *out) TIDE_NODISCARD;
tide_status tide_json_get_bytes(tide_json_reader *r, const json_t *object, const char *key,
                                uint64_t *out) TIDE_NODISCARD;
tide_status tide_json_get_list(tide_json_reader *r, const json_t *object, const char *key, json_t **out) TIDE_NODISCARD;
tide_status tide_json_get_object(tide_json_reader *r, const json_t *object, const char *key,
                                 json_t **out) TIDE_NODISCARD;
tide_status tide_json_get_bool(tide_json_reader *r, const json_t *object, const char *key, bool *out) TIDE_NODISCARD;
/// Absent: *out stays as it is.
tide_status tide_json_get_flag(tide_json_reader *r, const json_t *object, const char *key, bool *out) TIDE_NODISCARD;

/// The i-th element of the list `name`, which must be a text; borrowed.
tide_status tide_json_text_in(tide_json_reader *r, const json_t *list, const char *name, size_t i,
                              const char **out) TIDE_NODISCARD;
/// The i-th element of the list `name`, which must be an object; it is the object being read from here on.
tide_status tide_json_enter(tide_json_reader *r, const json_t *list, const char *name, size_t i,
                            json_t **out) TIDE_NODISCARD;
/// "alias" or "gaps[2]" of the object being read is the object being read from here on, until r->at[@return] = '\0'.
size_t tide_json_go_into(tide_json_reader *r, const char *fmt, ...) TIDE_PRINTF(2, 3);

/// Append a value as text, with jansson's `flags`, for a terminal or a file: control characters and what misleads the
/// eye are escaped, see tide_utf8_add_json_document. @return false: no memory (out->failed too)
bool tide_json_print_safe(const json_t *value, size_t flags, tide_text *out);

#ifdef __cplusplus
}
#endif
#endif
