// SPDX-License-Identifier: MIT
//
// rows: items filtered, sorted, grouped: what a Gantt chart or a table has from top to bottom. Nothing is left out in
// silence: what a filter removes is counted, and what is too much for a row each is grouped, never cut.
#ifndef TIDE_ANALYSIS_ROWS_H
#define TIDE_ANALYSIS_ROWS_H

#include "analysis/subject.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TIDE_ROW_SORT_MAP(XX)                                                                                          \
    XX(BEGIN, "begin")                                                                                                 \
    XX(OFFSET, "offset")                                                                                               \
    XX(SIZE, "size")                                                                                                   \
    XX(LIFE, "life")                                                                                                   \
    XX(AREA, "area") /* size x life */                                                                                 \
    XX(NAME, "name")
typedef enum tide_row_sort {
#define XX(name, text) TIDE_ROW_SORT_##name,
    TIDE_ROW_SORT_MAP(XX)
#undef XX
        TIDE_N_ROW_SORTS
} tide_row_sort;
const char *tide_row_sort_name(tide_row_sort sort);

#define TIDE_ROW_GROUP_MAP(XX)                                                                                         \
    XX(NONE, "none")   /* an item each */                                                                              \
    XX(NAME, "name")   /* same name, owner and step */                                                                 \
    XX(OWNER, "owner") /* same owner */                                                                                \
    XX(KIND, "kind")                                                                                                   \
    XX(SIZE, "size") /* powers of two */
typedef enum tide_row_group {
#define XX(name, text) TIDE_ROW_GROUP_##name,
    TIDE_ROW_GROUP_MAP(XX)
#undef XX
        TIDE_N_ROW_GROUPS
} tide_row_group;
const char *tide_row_group_name(tide_row_group group);
enum {
    TIDE_ROWS_GROUP_FROM = 500000,  ///< items from which on views group by name unless the user chose otherwise
    TIDE_ROWS_WITH_REACH = 2000000, ///< up to so many members rows know the order of their ends
    TIDE_ROWS_LATE = 8,
    TIDE_ROWS_LATEST = 64,
};

/**
 * Conditions, all of which must hold. Text, one or more separated by blanks:
 *
 *     WORD  !WORD                    name or owner contains it (or does not), whatever the case; "two words" in quotes
 *     name~RE  owner~RE  !name~RE    extended regular expression
 *     kind=workspace  role=weight  device=cpu  allocator=arena  fill=scratch    by name; != for the rest; a,b: either
 *     size>=1MiB  size<4k  life>10  life<=1.5ms  begin<…  end>…   life, begin, end in steps, or with a unit of time
 *     alive@peak  alive@cursor  alive@T   alive at that moment (T: step or time after the begin)
 *     exec=12                        alive in that execution of the run, from 0; in a plan's buffer one of its tensors
 *     leaked  alias  planned  persistent  and with !
 *     top=100                        only the largest so many of what is left by all others
 */
typedef struct tide_filter tide_filter;
/// TIDE_ERR_INVALID with the place in the text, what was expected there, and the nearest word as a hint.
tide_status tide_filter_parse(const char *text, tide_axis axis, tide_filter **out, tide_error *err) TIDE_NODISCARD;
void tide_filter_destroy(tide_filter *f);
/// The text again, in one form.
const char *tide_filter_text(const tide_filter *f);
/// Whether it holds at all depends on the cursor (alive@cursor).
bool tide_filter_follows_cursor(const tide_filter *f);

typedef struct tide_rows_options {
    tide_row_sort sort;
    bool reverse;         ///< BEGIN, OFFSET, NAME rise and SIZE, LIFE, AREA fall unless reversed
    bool persistent_last; ///< by BEGIN: what is always there goes below everything else
    tide_row_group group;
    const tide_filter *const *filters; ///< [n_filters], all of which must let an item pass
    size_t n_filters;
    int64_t cursor;         ///< for alive@cursor
    uint32_t only_group_of; ///< with group NONE: only items of that item's site; TIDE_NO_ITEM: all
} tide_rows_options;

typedef struct tide_rows {
    size_t n;          ///< rows
    uint32_t *members; ///< [n_members] items; those of one row together, by begin
    size_t n_members;
    uint32_t *first;       ///< [n + 1] of each row in members; NULL: row r is members[r] alone
    uint64_t *bytes;       ///< [n] of grouped rows: sum of sizes; NULL without groups
    uint32_t *reach;       ///< [n_members] of grouped rows: the members of each by end; NULL: too many
    int64_t *late;         ///< then, of each row every TIDE_ROWS_LATE-th end, from first[row] / TIDE_ROWS_LATE + row on
    int64_t *latest;       ///< and of each TIDE_ROWS_LATEST members the latest end and the first begin, in the same
                           ///< way, as pairs
    uint8_t *fill;         ///< [n] of grouped rows: the tide_item_fill of all members; TIDE_N_ITEM_FILLS: they
                           ///< differ. NULL without groups
    char **keys;           ///< [n] of grouped rows, for people; owned; NULL without groups
    size_t n_hidden;       ///< items that filters keep out
    uint64_t hidden_bytes; ///< sum of their sizes
} tide_rows;

/// The subject's items must be loaded. 100,000 items: some milliseconds. TIDE_ERR_CANCELLED, TIDE_ERR_NOMEM.
tide_status tide_rows_make(tide_subject *s, const tide_rows_options *opt, const tide_progress *progress, tide_rows *out,
                           tide_error *err) TIDE_NODISCARD;
void tide_rows_deinit(tide_rows *r);
/// Row of an item; SIZE_MAX: hidden. O(members).
size_t tide_rows_find(const tide_rows *r, uint32_t item);

/// What a row is in one column. With more than TIDE_ROWS_WITH_REACH members of all rows, and more than 1000 of this one
/// alive in the window, an `n` of 16 or more may be up to 7 too high, and one that dies among fewer than 8 may go
/// unsaid.
typedef struct tide_row_span {
    uint32_t n;        ///< members alive somewhere in it, at most 255 counted
    uint8_t fill;      ///< tide_item_fill of the largest; where members differ, of the largest that was looked at
    bool starts, ends; ///< one is born, one dies in it
} tide_row_span;
/// The row in `n` equal columns of [t0, t1), as tide_subject_columns cuts them. O(n log members), whatever the zoom.
void tide_rows_spans(const tide_rows *r, const tide_items *items, size_t row, int64_t t0, int64_t t1, size_t n,
                     tide_row_span *out);

/// Sites whose name or owner matches an extended regular expression, whatever the case; bits by site, *n_items that
/// belong to them. `bits` is made, tide_host_free. TIDE_ERR_INVALID with what regcomp says.
tide_status tide_items_search(const tide_items *items, const char *regex, uint8_t **bits, size_t *n_items,
                              tide_error *err) TIDE_NODISCARD;

// ---- private to analysis/ ----

/// Of the rows that are made so far: the order of their members' ends (`with_reach`), or a part of it. `part`: of a row
/// of many so many ends are sorted at once, or a sixteenth of them when that is more; 32 bytes each.
tide_status tide__rows_make_ends(const tide_items *items, bool with_reach, size_t part, const tide_progress *progress,
                                 tide_rows *rows) TIDE_NODISCARD;
enum { TIDE__ROWS_PART = 1 << 18 };
/// When an item is gone: one that lives shorter than the clock can tell is there at its begin.
static inline int64_t tide__item_gone(const tide_items *items, uint32_t i) {
    const int64_t begin = tide_items_begin(items, i), end = tide_items_end(items, i);
    return end > begin ? end : begin + 1;
}

#ifdef __cplusplus
}
#endif
#endif
