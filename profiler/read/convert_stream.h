// SPDX-License-Identifier: MIT
//
// convert_stream: the events of one table of a trace that may be damaged, in order of their numbers, checked. Private
// to profiler/read.
//
//     event        rows, one each                          versions 1, 2, 3
//     scope_event  rows; become scope_enter, scope_leave   versions 1, 2: numbered apart
//     event_chunk  up to 4096 each                         version 3
#ifndef TIDE_PROFILER_READ_CONVERT_STREAM_H
#define TIDE_PROFILER_READ_CONVERT_STREAM_H

#include "profiler/read/convert_in.h"

typedef enum tide__stream_table { TIDE__STREAM_EVENTS, TIDE__STREAM_SCOPES, TIDE__STREAM_CHUNKS } tide__stream_table;

/// Zero-initialise. The event at hand is `event` while `has`; numbers of names are those of the file that is read.
typedef struct tide__stream {
    tide__in *in;
    tide__stream_table table;
    tide__walk walk;
    tide__event event;
    bool has;
    int64_t last_id, last_ns; ///< of the event before, 0 at first
    // Looked at, not yet given: a lenient reading needs the one that follows to know which of two times is wrong.
    tide__event ahead;
    bool has_ahead;
    tide__event *chunk; ///< [TIDE__CHUNK_MAX_EVENTS], of table event_chunk
    size_t n_chunk, next_in_chunk;
    uint64_t n_bad; ///< lenient: events, or whole chunks, that were there and could not be true
} tide__stream;

/// Stand on the first event.
tide_status tide__stream_open(tide__stream *s, tide__in *in, tide__stream_table table, tide_error *err) TIDE_NODISCARD;
/// Stand on the next one; `has` is false at the end. Strict: an event that no recorder wrote, a number that does not
/// follow the one before (versions 1 and 2), a time before the last one are errors; lenient: left out, as if missing.
tide_status tide__stream_next(tide__stream *s, tide_error *err) TIDE_NODISCARD;
/// Takes an all-zero struct.
void tide__stream_close(tide__stream *s);

#endif
