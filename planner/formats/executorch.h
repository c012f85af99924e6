// SPDX-License-Identifier: MIT
//
// Values of an ExecuTorch program, between the two files that read one: executorch_values.c says what each is, where it
// lies and how large it is; executorch.c when it is needed.
#ifndef TIDE_PLANNER_FORMATS_EXECUTORCH_H
#define TIDE_PLANNER_FORMATS_EXECUTORCH_H

#include "planner/formats/flatbuffer.h"
#include "planner/formats/formats_internal.h"

#define TIDE__ET_NONE UINT32_MAX

/// How an instruction uses a value.
typedef enum tide__et_use { TIDE__ET_READS, TIDE__ET_WRITES, TIDE__ET_MAY_WRITE } tide__et_use;

typedef struct tide__et_value {
    bool is_tensor;
    bool is_constant; ///< its bytes are in the file, or in one beside it
    bool is_planned;  ///< the file gives it a place
    bool is_unbound;  ///< sized while running
    bool is_view;     ///< it lies in `view_of` and has no place of its own
    bool is_output;
    bool is_state;          ///< its bytes stay from one run to the next
    tide__et_use first_use; ///< by the first instruction that names it; inputs are written before
    tide_role role;
    tide_device device;
    uint64_t bytes;
    uint8_t type;    ///< ScalarType
    uint32_t data;   ///< of a constant: which of the program's; 0: it lies in another file
    uint32_t memory; ///< of its place
    uint64_t offset;
    tide__fb_text name;      ///< in the file; none for most
    tide__fb_vector members; ///< of a list of tensors: their values, -1 for none
    uint32_t view_of;        ///< TIDE__ET_NONE: none
    uint32_t united;         ///< parent in the sets of values that MoveCall makes one; itself: root
    int64_t first, last;     ///< steps; -1: not named
} tide__et_value;

typedef struct tide__et {
    tide__fb fb;
    tide__list list;
    tide__fb_table program, method;
    tide__fb_text method_name;
    tide__et_value *values; ///< [n_values] owned
    size_t n_values;
    uint64_t own_bytes;   ///< what the file's own plan needs
    tide__own_place *own; ///< [n_own] owned
    size_t n_own, cap_own;
    bool is_united; ///< some values are one
    tide_error *err;
} tide__et;

#define TIDE__ET_BAD(r, ...) tide__et_fault((r), TIDE_FAIL((r)->err, TIDE_ERR_BAD_INPUT, __VA_ARGS__))
tide_status tide__et_fault(const tide__et *r, tide_status st);

/// The program and its methods.
tide_status tide__et_open(tide__et *r, tide__fb_vector *methods) TIDE_NODISCARD;
/// The values of r->method: all but their lives; and r->own_bytes.
tide_status tide__et_read_values(tide__et *r) TIDE_NODISCARD;
/// Two values are the same bytes.
tide_status tide__et_unite(tide__et *r, uint32_t a, uint32_t b) TIDE_NODISCARD;
/// Each value of a set lives as long as the longest of it.
void tide__et_end_united(tide__et *r);
void tide__et_deinit(tide__et *r);

#endif
