// SPDX-License-Identifier: MIT
//
// chrome pen: writes events of the Trace Event Format, one a line, and hands them to the file by the megabyte. The
// first failure is kept, and what comes later does nothing. Private to chrome_trace*.c.
#ifndef TIDE_REPORTS_CHROME_PEN_H
#define TIDE_REPORTS_CHROME_PEN_H

#include "core/base/json_out.h"
#include "core/base/output.h"

enum { TIDE__CHROME_MEMORY = 1 }; ///< the process that stands for all memory; recorded ones come behind it

typedef struct tide__chrome {
    tide_output *out; ///< borrowed
    tide_error *err;  ///< borrowed
    tide_status st;
    tide_text text;     ///< what is not written yet
    tide_json_out json; ///< into `text`: arguments of an event are put here
} tide__chrome;

/// Where an event stands. Times in nanoseconds since the beginning of what is shown.
typedef struct tide__chrome_place {
    uint32_t process, thread;
    uint64_t t_ns;
} tide__chrome_place;

/// Begin the document.
void tide__chrome_begin(tide__chrome *c, tide_output *out, tide_error *err);
/// Begin an event of phase `ph`; its own keys follow, then arguments (tide__chrome_args) if it has some, then
/// tide__chrome_close. `cat` may be NULL.
void tide__chrome_open(tide__chrome *c, const char *ph, const char *name, const char *cat, tide__chrome_place at);
/// Its id: one letter and a number, in words that no other event of another sort has.
void tide__chrome_id(tide__chrome *c, char sort, uint64_t number);
/// Begin its arguments.
void tide__chrome_args(tide__chrome *c);
/// End its arguments, and it.
void tide__chrome_close(tide__chrome *c);
/// Name a process (thread 0: itself) or a thread of it.
void tide__chrome_name(tide__chrome *c, uint32_t process, uint32_t thread, const char *name);
/// End the document and free what the pen has. @return the first failure
tide_status tide__chrome_end(tide__chrome *c);

#endif
