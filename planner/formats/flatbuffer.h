// SPDX-License-Identifier: MIT
//
// flatbuffer: reads the tables of a flatbuffer without its schema, by the numbers of their fields (flatbuffers.dev,
// "Internals"). Nothing of the file is trusted: every offset, length and field is checked against the file before it
// is used, numbers are little-endian on every machine, nothing needs to be aligned.
//
//     [offset of the root][identifier] …  vtable: [its bytes][bytes of the table][offset of field 0][of field 1] …
//                                         table:  [how far behind its vtable][fields …]
//
// Offsets may lead many times to the same bytes, so that a small file could be an endless one: what is read is counted,
// and more than some times the file is refused.
#ifndef TIDE_PLANNER_FORMATS_FLATBUFFER_H
#define TIDE_PLANNER_FORMATS_FLATBUFFER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/status.h"

typedef struct tide__fb {
    const unsigned char *data; ///< [len] borrowed
    size_t len;
    const char *path; ///< for messages
    uint64_t left;    ///< bytes that may still be read
    tide_error *err;
} tide__fb;

typedef struct tide__fb_table {
    size_t at;     ///< 0: there is none; all its fields are absent
    size_t vtable; ///< where its vtable lies
    uint16_t vtable_bytes;
} tide__fb_table;

/// Elements side by side: numbers, or offsets of tables.
typedef struct tide__fb_vector {
    size_t at; ///< of the first element
    size_t n;  ///< 0: none, or there is no vector
} tide__fb_vector;

typedef struct tide__fb_text {
    const char *data; ///< NULL: there is none. It ends at its first NUL, if it has one
    size_t len;
} tide__fb_text;

/// TIDE_ERR_BAD_INPUT at byte `at` of the file.
#define TIDE__FB_BAD(fb, at, ...) tide__fb_fault((fb), (at), TIDE_FAIL((fb)->err, TIDE_ERR_BAD_INPUT, __VA_ARGS__))
tide_status tide__fb_fault(tide__fb *fb, size_t at, tide_status st);

/// Count reading so many bytes once more, at `at`. TIDE_ERR_BAD_INPUT: that is too often.
tide_status tide__fb_spend(tide__fb *fb, size_t at, uint64_t n_bytes) TIDE_NODISCARD;
/// The root table. `fb` has data, len, path and err.
tide_status tide__fb_root(tide__fb *fb, tide__fb_table *out) TIDE_NODISCARD;

// Field `slot` of a table, counted from 0 in the order of the schema. Absent: `otherwise`, or all zero.

tide_status tide__fb_u8(tide__fb *fb, const tide__fb_table *t, unsigned slot, uint8_t otherwise,
                        uint8_t *out) TIDE_NODISCARD;
tide_status tide__fb_u32(tide__fb *fb, const tide__fb_table *t, unsigned slot, uint32_t otherwise,
                         uint32_t *out) TIDE_NODISCARD;
tide_status tide__fb_i32(tide__fb *fb, const tide__fb_table *t, unsigned slot, int32_t otherwise,
                         int32_t *out) TIDE_NODISCARD;
tide_status tide__fb_u64(tide__fb *fb, const tide__fb_table *t, unsigned slot, uint64_t otherwise,
                         uint64_t *out) TIDE_NODISCARD;
/// Of a union too: its type is the field before.
tide_status tide__fb_child(tide__fb *fb, const tide__fb_table *t, unsigned slot, tide__fb_table *out) TIDE_NODISCARD;
/// All of it lies in the file. `elem_bytes`: 1, 4 or 8; of a vector of tables 4.
tide_status tide__fb_list(tide__fb *fb, const tide__fb_table *t, unsigned slot, size_t elem_bytes,
                          tide__fb_vector *out) TIDE_NODISCARD;
/// The same of bytes that will not be read.
tide_status tide__fb_blob(tide__fb *fb, const tide__fb_table *t, unsigned slot, tide__fb_vector *out) TIDE_NODISCARD;
tide_status tide__fb_string(tide__fb *fb, const tide__fb_table *t, unsigned slot, tide__fb_text *out) TIDE_NODISCARD;

// Elements of a vector, i < n.

tide_status tide__fb_table_at(tide__fb *fb, const tide__fb_vector *v, size_t i, tide__fb_table *out) TIDE_NODISCARD;
int32_t tide__fb_i32_at(const tide__fb *fb, const tide__fb_vector *v, size_t i);
uint64_t tide__fb_u64_at(const tide__fb *fb, const tide__fb_vector *v, size_t i);

#endif
