// SPDX-License-Identifier: MIT
//
// out_json: foreign text and text that is clean as values of a JSON document.
#ifndef TIDE_GATE_OUT_JSON_H
#define TIDE_GATE_OUT_JSON_H

#include "core/base/json_out.h"
#include "gate/out_internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Foreign text, cleaned and cut; NULL gives null.
void tide__gate_add_text(tide_json_out *j, const char *key, const char *text, size_t max_chars);
/// Text that is clean; it is emptied.
void tide__gate_add_plain(tide_json_out *j, const char *key, tide_text *text);

#ifdef __cplusplus
}
#endif
#endif
