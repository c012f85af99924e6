// SPDX-License-Identifier: MIT
//
// names: texts, scopes, devices and threads that events refer to by a small number, kept once each. Numbers count from
// 1 in order of first use; 0 is none. Private to profiler/.
//
// The lists keep what was not yet written to the file, so that a batch writes the names it needs before its events.
#ifndef TIDE_PROFILER_NAMES_H
#define TIDE_PROFILER_NAMES_H

#include "core/base/map.h"
#include "core/memory/observer.h"

/// A scope as the file knows it: the same operator below the same parent is one row however often it is entered.
typedef struct tide__scope_row {
    int64_t name_id;
    int64_t parent_id; ///< 0: outermost
    int32_t kind;      ///< tide_scope_kind
    int32_t step;      ///< -1: none
} tide__scope_row;

/// A thread of one of the recorded processes: row of table thread.
typedef struct tide__thread_row {
    int64_t id; ///< in the file
    int64_t process_id;
    int64_t number; ///< in its process
    char *name;     ///< owned; NULL: not known
    bool is_written;
} tide__thread_row;

/// Zero-initialise.
typedef struct tide__names {
    tide_strmap by_text;
    char **fresh; ///< [n_fresh], owned: texts with the last n_fresh numbers, not yet in the file
    size_t n_fresh, cap_fresh;
    int64_t n_texts;

    tide__scope_row *scopes; ///< [n_scopes]; number = index + 1
    size_t n_scopes, cap_scopes;
    size_t n_scopes_written;
    tide_index scope_index;

    tide_device *devices; ///< [n_devices]; number = index + 1
    size_t n_devices, cap_devices;
    size_t n_devices_written;

    tide__thread_row *threads; ///< [n_threads] in order of arrival
    size_t n_threads, cap_threads;
    size_t n_threads_unwritten;
    tide_map thread_ids, thread_numbers; ///< index by id; index by process and number
    int64_t last_free_thread;            ///< ids up to here are taken
} tide__names;

/// NULL is number 0. @return TIDE_OK, TIDE_ERR_NOMEM
tide_status tide__names_text(tide__names *n, const char *text, int64_t *id) TIDE_NODISCARD;
/// The text of a kind of scope in the file, and the kind of a text; false: none.
const char *tide__names_scope_text(int32_t kind);
bool tide__names_scope_kind(const char *text, int32_t *kind);
/// NULL is number 0. Its parents are put too. @return TIDE_OK, TIDE_ERR_NOMEM, TIDE_ERR_INVALID for a scope that is
/// nested deeper than any program nests: a chain that runs in a circle
tide_status tide__names_scope(tide__names *n, const tide_scope *scope, int64_t *id) TIDE_NODISCARD;
/// A scope given by numbers of this list; the same row is put once. TIDE_ERR_INVALID when its name or its parent is not
/// there, its kind is none or its step below -1.
tide_status tide__names_scope_row(tide__names *n, const tide__scope_row *row, int64_t *id) TIDE_NODISCARD;
tide_status tide__names_device(tide__names *n, tide_device device, int64_t *id) TIDE_NODISCARD;
/// Thread `number` of process `process_id`. Its id is its number where that is free (so it is for the first process),
/// else the lowest free one. `name` may be NULL or "" (not told); one that is told later takes its place.
/// TIDE_ERR_INVALID for numbers below 1 or beyond 2^31 - 1.
tide_status tide__names_thread(tide__names *n, int64_t process_id, int64_t number, const char *name,
                               int64_t *id) TIDE_NODISCARD;
/// A thread as a file has it. TIDE_ERR_BAD_INPUT when its id or its number is taken, or out of range.
tide_status tide__names_put_thread(tide__names *n, int64_t id, int64_t process_id, int64_t number,
                                   const char *name) TIDE_NODISCARD;
/// All that is there has been written to the file.
void tide__names_written(tide__names *n);
void tide__names_deinit(tide__names *n);

#endif
