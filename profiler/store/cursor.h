// SPDX-License-Identifier: MIT
//
// cursor: the events of a trace in order, whether they are rows or lie in chunks. Private to profiler/.
#ifndef TIDE_PROFILER_STORE_CURSOR_H
#define TIDE_PROFILER_STORE_CURSOR_H

#include "profiler/event.h"
#include "profiler/store/sql.h"

typedef struct tide__cursor tide__cursor;

/// Events first_event to last_event (both included; what is not there is skipped).
tide_status tide__cursor_open(const tide__sql *s, int64_t first_event, int64_t last_event, tide__cursor **out,
                              tide_error *err) TIDE_NODISCARD;
/// The next events; *n 0 at the end. Borrowed until the next call. TIDE_ERR_BAD_INPUT: a row or chunk that no recorder
/// wrote, an id that does not follow.
tide_status tide__cursor_next(tide__cursor *c, const tide__event **events, size_t *n, tide_error *err) TIDE_NODISCARD;
/// The whole chunk that the last batch lies in, borrowed as that one is. False: the batch was rows.
bool tide__cursor_chunk(const tide__cursor *c, const tide__event **events, size_t *n);
/// Start again elsewhere, keeping statements and buffers.
tide_status tide__cursor_seek(tide__cursor *c, int64_t first_event, int64_t last_event, tide_error *err) TIDE_NODISCARD;
void tide__cursor_close(tide__cursor *c);

/// TIDE_ERR_BAD_INPUT for row `id` of `table`: file, place, `why`.
tide_status tide__cursor_bad(const tide__sql *s, const char *table, int64_t id, const char *why, tide_error *err);

/// Searches by time in one file: its statements, and the chunk that was looked into last, are kept for the next one.
typedef struct tide__event_search tide__event_search;
tide_status tide__event_search_open(const tide__sql *s, tide__event_search **out, tide_error *err) TIDE_NODISCARD;
/// Number of the last event with t_ns <= `t_ns`, 0 when there is none: by a search of the file's order, no index.
tide_status tide__event_search_at(tide__event_search *s, int64_t t_ns, int64_t *event_id,
                                  tide_error *err) TIDE_NODISCARD;
/// Takes NULL.
void tide__event_search_close(tide__event_search *s);
/// The same once.
tide_status tide__cursor_event_at(const tide__sql *s, int64_t t_ns, int64_t *event_id, tide_error *err) TIDE_NODISCARD;

/// A virtual table over it for people: SELECT ... FROM all_events, with the columns of table event; bounds of id and
/// t_ns are used. What it needs of `s` it copies.
tide_status tide__cursor_register(const tide__sql *s, tide_error *err) TIDE_NODISCARD;

#endif
