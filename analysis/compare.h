// SPDX-License-Identifier: MIT
//
// compare: two subjects, or two moments of one: what was added, removed, moved, resized, and which operators cause the
// change of the peak: signed parts that sum to it exactly.
#ifndef TIDE_ANALYSIS_COMPARE_H
#define TIDE_ANALYSIS_COMPARE_H

#include "analysis/explain.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Bits: an item can be moved and resized at once.
enum {
    TIDE_DIFF_ADDED = 1,   ///< only in B
    TIDE_DIFF_REMOVED = 2, ///< only in A
    TIDE_DIFF_RESIZED = 4,
    TIDE_DIFF_MOVED = 8,   ///< another offset (plans)
    TIDE_DIFF_RETIMED = 16 ///< another lifetime (plans: steps by their names)
};

/// What can change, in the order in which it is named: "added", "removed", "resized", "moved", "retimed" for the bits
/// 1, 2, 4, … in turn.
enum { TIDE_DIFF_N_CHANGES = 5, TIDE_DIFF_CHANGES_BYTES = 48 };
const char *tide_diff_change_name(unsigned index);
/// "resized, moved" for the bits of `what`; `none` for 0. TIDE_DIFF_CHANGES_BYTES suffice. @return `buf`
const char *tide_diff_changes(unsigned what, const char *comma, const char *none, char *buf, size_t buf_bytes);

/// Two subjects are matched by name (where there is none, by owner) and how often it came before: iteration 3's
/// "conv1_out" is iteration 3's; with `rows_at` how often among those that are alive. Two moments of one trace or plan
/// have the same items; blocks that are alive at one of them alone are matched by name and operator, for each execution
/// allocates its own: what is left then is added or removed.
typedef struct tide_diff_row {
    const char *name, *owner;        ///< borrowed from one of the subjects
    unsigned what;                   ///< TIDE_DIFF_… ; 0: unchanged
    uint32_t a, b;                   ///< items; TIDE_NO_ITEM
    uint64_t a_bytes, b_bytes;       ///< sizes
    uint64_t a_at_bytes, b_at_bytes; ///< their part of the held bytes at each side's moment
} tide_diff_row;

typedef struct tide_diff_step {
    char *key; ///< owned: operator, kind, or "holes", "rounding", … of the parts
    bool is_part;
    uint64_t a_bytes, b_bytes;
} tide_diff_step;

typedef struct tide_diff {
    tide_moment a_at, b_at;
    uint64_t a_bytes, b_bytes; ///< held at these moments: what the waterfall explains
    uint64_t a_peak_bytes, b_peak_bytes, a_plan_bytes,
        b_plan_bytes;    ///< of the subjects; plan: TIDE_UNKNOWN_BYTES without
    tide_diff_row *rows; ///< [n] largest change at the moment first, then the largest of size, then by name
    size_t n;
    size_t n_added, n_removed, n_resized, n_moved, n_retimed, n_unchanged;
    tide_diff_step *by_owner; ///< [n_by_owner] largest change first; changes sum to b_bytes - a_bytes
    size_t n_by_owner;
    tide_diff_step *by_kind; ///< [n_by_kind] the same
    size_t n_by_kind;
} tide_diff;

enum { TIDE_COMPARE_MAX_ITEMS = 1000000 };
/// Both at their own peaks unless moments are given (NULL: the peak). Items of both must be loaded (TIDE_ERR_INVALID),
/// unless `rows_at` is true: then only what is alive at the moments is compared. One subject twice, or two of the same
/// run of one trace, compares two moments of it, always with `rows_at`. TIDE_ERR_NO_SPACE: more than
/// TIDE_COMPARE_MAX_ITEMS in a subject; rows_at takes any. TIDE_ERR_CANCELLED; what tide_explain returns.
tide_status tide_compare(tide_subject *a, const tide_moment *a_at, tide_subject *b, const tide_moment *b_at,
                         bool rows_at, const tide_progress *progress, tide_diff *out, tide_error *err) TIDE_NODISCARD;
void tide_diff_deinit(tide_diff *d);
/// How many items have the change `index`.
size_t tide_diff_n_changed(const tide_diff *d, unsigned index);
/// "3 added, 0 removed, 1 resized, 0 moved, 2 retimed, 40 unchanged" @return `buf`
const char *tide_diff_counts(const tide_diff *d, char *buf, size_t buf_bytes);
/// "B holds 12 KiB more at its peak: conv2 +14 KiB, rounding -2 KiB, …" Sentences for people.
void tide_diff_print(const tide_diff *d, const tide_subject *a, const tide_subject *b, size_t n_rows, tide_text *out);

#ifdef __cplusplus
}
#endif
#endif
