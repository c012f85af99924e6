// SPDX-License-Identifier: MIT
//
// names: texts, scopes and devices that events refer to by a small number, kept once each. Numbers count from 1 in
// order of first use; 0 is none. Private to profiler/.
//
// The lists keep what was not yet written to the file, so that a batch writes the names it needs before its events.
#ifndef TIDE_PROFILER_NAMES_H
#define TIDE_PROFILER_NAMES_H

#include "core/base/text.h"
#include "core/memory/observer.h"

/// A scope as the file knows it: the same operator below the same parent is one row however often it is entered.
typedef struct tide__scope_row {
    int64_t name_id;
    int64_t parent_id; ///< 0: outermost
    int32_t kind;      ///< tide_scope_kind
    int32_t step;      ///< -1: none
} tide__scope_row;

/// Zero-initialise.
typedef struct tide__names {
    tide_strmap by_text;
    char **fresh; ///< [n_fresh], owned: texts with the last n_fresh numbers, not yet in the file
    size_t n_fresh, cap_fresh;
    int64_t n_texts;

    tide__scope_row *scopes; ///< [n_scopes]; number = index + 1
    size_t n_scopes, cap_scopes;
    size_t n_scopes_written;
    uint32_t *scope_slots; ///< [cap_scope_slots] scope numbers by hash, 0: free
    size_t cap_scope_slots;

    tide_device *devices; ///< [n_devices]; number = index + 1
    size_t n_devices, cap_devices;
    size_t n_devices_written;
} tide__names;

/// NULL is number 0. @return TIDE_OK, TIDE_ERR_NOMEM
tide_status tide__names_text(tide__names *n, const char *text, int64_t *id) TIDE_NODISCARD;
/// NULL is number 0. Its parents are put too. @return TIDE_OK, TIDE_ERR_NOMEM, TIDE_ERR_INVALID for a scope that is
/// nested deeper than any program nests: a chain that runs in a circle
tide_status tide__names_scope(tide__names *n, const tide_scope *scope, int64_t *id) TIDE_NODISCARD;
tide_status tide__names_device(tide__names *n, tide_device device, int64_t *id) TIDE_NODISCARD;
/// All that is there has been written to the file.
void tide__names_written(tide__names *n);
void tide__names_deinit(tide__names *n);

#endif
