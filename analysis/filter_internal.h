// SPDX-License-Identifier: MIT
//
// The inside of a filter, shared by the file that reads one and the file that applies it. Private to analysis/.
#ifndef TIDE_ANALYSIS_FILTER_INTERNAL_H
#define TIDE_ANALYSIS_FILTER_INTERNAL_H

#include <regex.h>

#include "analysis/items_internal.h"
#include "analysis/rows.h"

/// What a condition looks at, with the word for it.
#define TIDE__FILTER_MAP(XX)                                                                                           \
    XX(WORD, "")                                                                                                       \
    XX(NAME, "name")                                                                                                   \
    XX(OWNER, "owner")                                                                                                 \
    XX(KIND, "kind")                                                                                                   \
    XX(ROLE, "role")                                                                                                   \
    XX(DEVICE, "device")                                                                                               \
    XX(ALLOCATOR, "allocator")                                                                                         \
    XX(FILL, "fill")                                                                                                   \
    XX(SIZE, "size")                                                                                                   \
    XX(LIFE, "life")                                                                                                   \
    XX(BEGIN, "begin")                                                                                                 \
    XX(END, "end")                                                                                                     \
    XX(ALIVE, "alive")                                                                                                 \
    XX(EXEC, "exec")                                                                                                   \
    XX(TOP, "top")                                                                                                     \
    XX(LEAKED, "leaked")                                                                                               \
    XX(ALIAS, "alias")                                                                                                 \
    XX(PLANNED, "planned")                                                                                             \
    XX(PERSISTENT, "persistent")
typedef enum tide__filter_of {
#define XX(name, text) TIDE__FILTER_##name,
    TIDE__FILTER_MAP(XX)
#undef XX
        TIDE__N_FILTERS
} tide__filter_of;

typedef enum tide__filter_op {
    TIDE__OP_EQ,
    TIDE__OP_NE,
    TIDE__OP_LT,
    TIDE__OP_LE,
    TIDE__OP_GT,
    TIDE__OP_GE,
    TIDE__OP_LIKE,
    TIDE__OP_AT
} tide__filter_op;

typedef enum tide__filter_moment { TIDE__AT_TIME, TIDE__AT_PEAK, TIDE__AT_CURSOR } tide__filter_moment;

/// An extended regular expression, with a text in lower case that every match contains, as far as one is seen.
typedef struct tide__pattern {
    regex_t regex;
    bool has_regex; ///< regex is to be freed
    char *literal;  ///< "" when none is seen; owned
    bool is_plain;  ///< the expression is that text and nothing else
} tide__pattern;
/// `folded`: "name\nowner" in lower case, for a quick no; which of the two are looked at.
bool tide__pattern_matches(const tide__pattern *p, const tide_item_site *site, const char *folded, bool name,
                           bool owner);

typedef struct tide__condition {
    tide__filter_of of;
    tide__filter_op op;
    bool negate;
    char *text; ///< WORD in lower case; DEVICE, ALLOCATOR: names, each with its end, an empty one last; owned
    tide__pattern pattern;
    uint64_t set;   ///< KIND, ROLE, FILL: bits
    uint64_t value; ///< SIZE, LIFE, TOP, EXEC; BEGIN, END, ALIVE: behind the begin of the axis
    tide__filter_moment moment;
} tide__condition;

struct tide_filter {
    tide__condition *conditions; ///< [n], owned
    size_t n, cap;
    tide_text text; ///< in one form
};

/// Bits by item of those that pass all filters (tide_host_free). `progress` may be NULL.
tide_status tide__filters_apply(tide_subject *s, const tide_filter *const *filters, size_t n, int64_t cursor,
                                const tide_progress *progress, uint8_t **bits, tide_error *err) TIDE_NODISCARD;

static inline bool tide__bit(const uint8_t *bits, size_t i) { return (bits[i / 8] >> (i % 8) & 1) != 0; }

#endif
