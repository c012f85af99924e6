// SPDX-License-Identifier: MIT
//
// out_json: building a JSON document that is whole or NULL: a value that memory did not suffice for marks all of it.
#ifndef TIDE_GATE_OUT_JSON_H
#define TIDE_GATE_OUT_JSON_H

#include "gate/out_internal.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide__gate_doc {
    bool failed; ///< something could not be made: the document is not to be used
} tide__gate_doc;

/// `value` is taken, also on failure.
void tide__gate_put(tide__gate_doc *d, json_t *object, const char *key, json_t *value);
void tide__gate_push(tide__gate_doc *d, json_t *array, json_t *value);
/// Foreign text, cleaned and cut; NULL gives null.
json_t *tide__gate_string(tide__gate_doc *d, const char *text, size_t max_chars);
/// Text that is clean; it is emptied.
json_t *tide__gate_plain(tide__gate_doc *d, tide_text *text);
/// `doc`, or NULL after dropping it.
json_t *tide__gate_done(tide__gate_doc *d, json_t *doc);

#ifdef __cplusplus
}
#endif
#endif
