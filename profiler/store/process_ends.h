// SPDX-License-Identifier: MIT
//
// process ends: which event ended all memory of a process (TIDE__OP_PROCESS_END), by process: rows "process_end.ID" of
// table meta, each with four numbers: the event, its time, how many blocks it ended and their bytes. With event 0 the
// process has ended, and no event of another one has followed yet: the event is written when one does. So who asks when
// a block went need not look for the event among all others, and a drain that takes over knows which ends are still to
// be written. Private to profiler/.
#ifndef TIDE_PROFILER_STORE_PROCESS_ENDS_H
#define TIDE_PROFILER_STORE_PROCESS_ENDS_H

#include "profiler/store/sql.h"

typedef struct tide__process_end {
    int64_t process_id; ///< row of table process
    int64_t event;      ///< 0: it is still to be written
    int64_t t_ns;
    int64_t n_blocks, bytes; ///< that went with it
} tide__process_end;

/// Zero-initialise.
typedef struct tide__process_ends {
    tide__process_end *items; ///< [n] by process, owned
    size_t n, cap;
} tide__process_ends;

#define TIDE__PROCESS_END_KEY "process_end."

/// What the file says, instead of what `ends` had. TIDE_ERR_BAD_INPUT: a row that no recorder wrote.
tide_status tide__process_ends_load(tide__process_ends *ends, const tide__sql *s, tide_error *err) TIDE_NODISCARD;
/// Put one in, or in the place of the one that its process has. TIDE_ERR_NOMEM.
tide_status tide__process_ends_put(tide__process_ends *ends, const tide__process_end *end) TIDE_NODISCARD;
/// NULL: that process has none.
const tide__process_end *tide__process_ends_find(const tide__process_ends *ends, int64_t process_id);
void tide__process_ends_deinit(tide__process_ends *ends);

/// A row of table meta as one. False: it is none, or one that no recorder wrote.
bool tide__process_end_parse(const char *key, const char *value, tide__process_end *out);
/// The row of one, inside a transaction; replaces.
tide_status tide__process_end_write(const tide__sql *s, const tide__process_end *end, tide_error *err) TIDE_NODISCARD;

#endif
