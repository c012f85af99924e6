// SPDX-License-Identifier: MIT
//
// What the formats share that are texts. Private to planner/formats.
//
//     scan.c       lines of a text and what stands in them
//     together.c   buffers that must keep their distance, as aliases
//     xla_text.c   what the texts of XLA say
//     xla_place.c  which of its values lie together
//     xla.c        its values as a table
//     somas.c      what MindSpore's text says, as a table
#ifndef TIDE_PLANNER_FORMATS_TEXTS_H
#define TIDE_PLANNER_FORMATS_TEXTS_H

#include "core/base/map.h"
#include "core/base/status.h"
#include "planner/formats/formats_internal.h"

// ---- lines of a text (scan.c) ----

/// Set the first four, and `next` to the begin.
typedef struct tide__scan {
    const char *path;       ///< for messages
    const char *next, *end; ///< of the text
    tide_error *err;
    size_t line;           ///< number of the last line taken, from 1; 0: none
    const char *at, *stop; ///< what of it was not taken yet
} tide__scan;
/// Whether a text begins with `word`, blanks and a byte order mark left out.
bool tide__scan_begins(const char *data, size_t len, const char *word);
/// The next line without its end (LF or CRLF) and the text's byte order mark; false: there is none.
bool tide__scan_line(tide__scan *s);
/// Whether the line goes on with `word`, which is taken then.
bool tide__scan_eat(tide__scan *s, const char *word);
/// A decimal number up to 2^63 - 1, taken; false: there is none, or a larger one.
bool tide__scan_number(tide__scan *s, uint64_t *out);
/// What stands before the next `word`, which is taken too; false: it does not come.
bool tide__scan_until(tide__scan *s, const char *word, const char **text, size_t *len);
static inline bool tide__scan_is_done(const tide__scan *s) { return s->at == s->stop; }
/// Note that a fault just reported lies in line `line`; 0: in the text. @return `st`
tide_status tide__scan_fault(const tide__scan *s, size_t line, tide_status st);
/// Refuse the current line.
#define TIDE_SCAN_BAD(s, ...) tide__scan_fault((s), (s)->line, TIDE_FAIL((s)->err, TIDE_ERR_BAD_INPUT, __VA_ARGS__))

// ---- what lies together (together.c) ----

enum { TIDE_LIST_MAX_SHIFT = 61 }; ///< places and sizes of buffers are below 2 to the power of this: sums fit

/// The first n items of a table, in groups that move as one.
typedef struct tide__together {
    size_t n;
    uint32_t *parent; ///< [n] towards the root of the group
    uint64_t *place;  ///< [n] where an item lies in the plan that the file has; the caller's to fill
} tide__together;
tide_status tide__together_init(tide__together *t, size_t n, tide_error *err) TIDE_NODISCARD;
void tide__together_deinit(tide__together *t);
/// The two keep the distance that their places have.
void tide__together_bind(tide__together *t, uint32_t a, uint32_t b);
/// Make aliases of it in `lt`: items of a group that one of them covers lie in that one; else in an item more,
/// "(together N)", which is needed where all of them are. TIDE_ERR_NOMEM.
tide_status tide__together_apply(tide__together *t, tide_lifetimes *lt, tide_error *err) TIDE_NODISCARD;
/// The alignment that all `places` keep, at most `most` bytes: with it the file's plan is one of the table.
uint64_t tide__together_alignment(const uint64_t *places, size_t n, uint64_t most);

// ---- XLA ----

typedef struct tide__xla_allocation {
    uint64_t bytes;
    uint64_t color; ///< its memory space
    bool is_parameter, is_constant, is_thread_local, is_live_out, is_temp;
    size_t first, n; ///< its values
    size_t line;
} tide__xla_allocation;
typedef struct tide__xla_value {
    char *name; ///< as in the text, without "{}" at its end; owned
    uint64_t bytes, offset;
    int64_t begin, end; ///< the last step is one of its; begin -1: no live range
    uint32_t allocation;
    bool is_phi; ///< one place for several: it lies where the values lie that it stands for
    size_t line;
} tide__xla_value;
/// What the texts say. Zero-initialise.
typedef struct tide__xla {
    tide__xla_allocation *allocations; ///< [n_allocations]
    size_t n_allocations, cap_allocations;
    uint64_t total_bytes;    ///< of them
    tide__xla_value *values; ///< [n_values]
    size_t n_values, cap_values;
    tide_strmap names; ///< value -> index
    char **steps;      ///< [n_steps] what runs
    size_t n_steps, cap_steps;
    uint64_t max_step; ///< one more than the last of them: what leaves the module is needed until then
    bool has_assignment, has_ranges;
    tide__scan of_values; ///< the text that has the values, for faults; its path is owned
    char *other_path;     ///< of the second file; NULL: there was none
} tide__xla;
/// Reads the text, and the one beside it where one has not all of it. TIDE_ERR_BAD_INPUT; TIDE_ERR_NOMEM.
tide_status tide__xla_read(tide__xla *x, const char *data, size_t len, const char *path,
                           tide_error *err) TIDE_NODISCARD;
void tide__xla_deinit(tide__xla *x);
/// Which values of temporary memory lie together; `items` [n_values]: index in the table, TIDE_NO_INDEX: none.
/// TIDE_ERR_BAD_INPUT naming two that share bytes and may not.
tide_status tide__xla_place(const tide__xla *x, const uint32_t *items, tide__together *t,
                            tide_error *err) TIDE_NODISCARD;

#endif
