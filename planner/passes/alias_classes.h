// SPDX-License-Identifier: MIT
//
// alias classes (private to planner/passes): tensors that lie inside one another, as one stiff shape, and the question
// whether two such shapes may become one. Used by pass_alias.c.
//
//     class of c    bytes | a a a a | b b |      a and b are Concat's inputs and lie in its output c; d is a view of a.
//                         | d       |            Every member has a fixed offset from the root, here c.
//                         | c             |
//
// A class is sound when no member's operator writes bytes of another one that is alive, but for the input that it may
// overwrite. The runtime holds every plan against the same rule, by code of its own (core/runtime/sharing.h).
#ifndef TIDE_PLANNER_PASSES_ALIAS_CLASSES_H
#define TIDE_PLANNER_PASSES_ALIAS_CLASSES_H

#include "core/runtime/alias_facts.h"
#include "planner/passes.h"

typedef struct tide__alias_class {
    uint32_t *members; ///< [n] items, by end step; NULL: the root alone
    size_t n, cap;
} tide__alias_class;

typedef struct tide__alias_classes {
    const tide_program *program;
    tide_lifetimes *lt;      ///< borrowed; aliases are marked in it
    tide_alias_facts facts;  ///< owned
    uint32_t *item_of;       ///< [n_values] item that may share memory; TIDE_NO_INDEX: none may
    uint32_t *root;          ///< [lt->n] the class of an item is list[root[i]]
    uint64_t *at;            ///< [lt->n] bytes from the root's first
    tide__alias_class *list; ///< [lt->n]
} tide__alias_classes;

/// Take up `lt`, made by tide_liveness of `program`, with the aliases it has already. `others`, [n_others]: what the
/// operators say at other sizes for which the table is too.
tide_status tide__alias_classes_init(tide__alias_classes *c, const tide_program *program,
                                     const tide_alias_facts *others, size_t n_others, tide_lifetimes *lt,
                                     tide_error *err) TIDE_NODISCARD;
void tide__alias_classes_deinit(tide__alias_classes *c);

/// Item `i` is to lie `offset_bytes` into item `of`. The smaller class moves into the larger, whichever is whose.
typedef struct tide__alias_wish {
    tide_alias_kind kind;
    uint32_t i, of;
    uint64_t offset_bytes;
} tide__alias_wish;

/**
 * Grant it if the class that comes of it is sound, fits into the larger of the two and keeps every member at a multiple
 * of TIDE_ALIAS_ALIGN.
 *
 * @param done  out: whether it was granted; a wish that is fulfilled already is not
 * @return TIDE_ERR_NOMEM
 * Cost O(members of the smaller class x members of the larger one that are alive with them).
 */
tide_status tide__alias_classes_join(tide__alias_classes *c, const tide__alias_wish *wish, bool *done,
                                     tide_error *err) TIDE_NODISCARD;

enum { TIDE_ALIAS_ALIGN = 64 }; ///< bytes: what kernels count on

/// Bytes alive at each step of a table as its aliases are now; what aliases share counts once.
/// @param out  owned, [lt->n_steps] of the Workspace; tide_host_free
tide_status tide__alias_live_bytes(const tide_lifetimes *lt, uint64_t **out, tide_error *err) TIDE_NODISCARD;

#endif
