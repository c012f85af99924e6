// SPDX-License-Identifier: MIT
//
// json: jansson, and what it does not tell. When memory runs out while it reads, it mostly says that the text is not
// JSON; when it runs out while a document is built, a key is missing. Here both are known.
#ifndef TIDE_CORE_BASE_JSON_H
#define TIDE_CORE_BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Have jansson take its memory from host_alloc, for the whole process and before its first use. Without it the rest
/// of this header knows no more than jansson itself.
void tide_json_use_host_alloc(void);
/**
 * json_loadb, but when memory ran out json_error_code(at) is json_error_out_of_memory, wherever in the text that was.
 *
 * @param at  out; may be NULL
 * @return NULL on error; else the caller's to json_decref
 */
json_t *tide_json_load(const char *data, size_t len, size_t flags, json_error_t *at);
/// Whether an allocation of jansson's has failed since the process began, reading aside: what was built since may lack
/// something, and must not be written as if it were whole.
bool tide_json_ran_out(void);

#ifdef __cplusplus
}
#endif
#endif
