// SPDX-License-Identifier: MIT
//
// json_out: JSON written straight into a text, key by key. A library builds a tree first, which for a million tensors
// takes a gigabyte; what is written here is read back by one in the tests.
#ifndef TIDE_CORE_BASE_JSON_OUT_H
#define TIDE_CORE_BASE_JSON_OUT_H

#include "core/base/text.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TIDE_JSON_MAX_DEPTH = 63 }; ///< of what is written: deeper documents have no layout

/// Zero-initialise with `out` (and `indent`). Every value belongs to an object (key) or an array (key NULL).
typedef struct tide_json_out {
    tide_text *out;
    bool indent; ///< in lines, two blanks per level
    int depth;
    bool has_value;   ///< a comma is due
    int level;        ///< blanks before a line, in steps of the layout: objects and arrays on one line do not count
    uint64_t flat;    ///< bit d: what is open at depth d is on one line
    uint64_t objects; ///< bit d: what is open at depth d is an object
} tide_json_out;

void tide_json_open(tide_json_out *j, const char *key, char bracket);             ///< '{' or '['
void tide_json_open_flat(tide_json_out *j, const char *key, char bracket);        ///< with all inside it on one line
void tide_json_open_lines(tide_json_out *j, const char *key, char bracket);       ///< in lines, within what is on one
void tide_json_close(tide_json_out *j, char bracket);                             ///< '}' or ']'
void tide_json_text(tide_json_out *j, const char *key, const char *text);         ///< NULL: null
void tide_json_text_or_null(tide_json_out *j, const char *key, const char *text); ///< "" too: null
void tide_json_u64(tide_json_out *j, const char *key, uint64_t value);
void tide_json_sum(tide_json_out *j, const char *key, uint64_t bytes); ///< above 2^63 - 1, which no reader takes: that
void tide_json_u64_if(tide_json_out *j, const char *key, bool known, uint64_t value); ///< null where it is not known
void tide_json_bytes(tide_json_out *j, const char *key, uint64_t bytes);              ///< UINT64_MAX, unknown: null
void tide_json_i64(tide_json_out *j, const char *key, int64_t value);
/// Six digits behind the point; null where it is not finite.
void tide_json_real(tide_json_out *j, const char *key, double value);
/// So many significant digits at most, 1 to 17 ("0.5", "2.0", "1e-9"); null where it is not finite.
void tide_json_number(tide_json_out *j, const char *key, double value, int digits);
/// A value that is JSON already.
void tide_json_raw(tide_json_out *j, const char *key, const char *json);
void tide_json_bool(tide_json_out *j, const char *key, bool value);
void tide_json_null(tide_json_out *j, const char *key);

#ifdef __cplusplus
}
#endif
#endif
