// SPDX-License-Identifier: MIT
//
// finish: what is made once all events of a trace are in: the table of blocks, first executions of steps, sums held
// against what the producers counted; then one plain file. Private to profiler/.
//
//     base snapshot, events --> replay --> queue of ended blocks --> table block
//                                 |   \--> first executions     --> table step
//                                 |------> leaves, snapshots that are not there yet
//                                 \------> sums                 --> meta; against table total
#ifndef TIDE_PROFILER_STORE_FINISH_H
#define TIDE_PROFILER_STORE_FINISH_H

#include "profiler/store/sql.h"
#include "profiler/store/store.h"

/**
 * Fill tables block and step from the events and the base snapshot, in a transaction of their own unless one is open.
 * What the tables held before goes.
 *
 * @param in_memory  into TEMP tables of the same names, for a trace that is unfinished and must not be written; queries
 * on the connection find them first
 * @return TIDE_ERR_BAD_INPUT for events that no drain wrote; TIDE_ERR_NOMEM; TIDE_ERR_IO
 *
 * Memory: the live blocks and a queue of 65,536 ended ones, whatever the length of the trace.
 */
tide_status tide__finish_tables(const tide__sql *s, bool in_memory, tide_error *err) TIDE_NODISCARD;
/**
 * Tables, leaves and snapshots behind the last ones, the counts of meta (n_events, n_scope_events, n_blocks, n_runs,
 * n_names, n_scopes, n_lost, n_problems, first_kept_event; requested_bytes and freed_bytes: sums over table block, over
 * the rows that were freed; n_orphan_frees when it is missing), meta.state: "complete", or "cut short" with `reason`;
 * all in one transaction. Then leave WAL mode. A reader that holds the file open leaves it in WAL mode; that is no
 * error.
 *
 * Totals are compared with the counts of the recorded threads when they can be equal: every process closed, nothing
 * lost, dropped or contradicted. meta.totals is "equal" or "different" then; a difference is a row of table problem and
 * no error.
 *
 * `s` is gone afterwards, also on failure; then the trace is as it was, unfinished.
 */
tide_status tide__finish(tide__store *s, const char *reason, tide_error *err) TIDE_NODISCARD;
/// Turn chunks into rows, so that every SQLite shell sees the events. In transactions of 1 M events: stopped anywhere,
/// it has lost nothing. TIDE_ERR_BAD_INPUT, TIDE_ERR_IO, TIDE_ERR_BUSY while another process writes.
tide_status tide__finish_expand(const char *path, tide_error *err) TIDE_NODISCARD;

#endif
