// SPDX-License-Identifier: MIT
//
// What the files of the causes share. A finder makes a draft of a cause and its sentence. At the end causes are
// sorted: by rank, then those that explain the direction of the change before those against it, then by bytes.
#ifndef TIDE_GATE_CAUSES_INTERNAL_H
#define TIDE_GATE_CAUSES_INTERNAL_H

#include "core/base/map.h"
#include "gate/judge.h"
#include "gate/measured_internal.h"

/// Classes of figures that changed. A cause is added only if it can have changed a figure of these classes.
enum {
    TIDE__CHANGED_PLAN = 1,   ///< sizes by the plan
    TIDE__CHANGED_RUN = 2,    ///< sizes as measured
    TIDE__CHANGED_LEAKS = 4,  ///
    TIDE__CHANGED_STEADY = 8, ///< allocations
};

/// The order of causes.
typedef enum tide__cause_rank {
    TIDE__RANK_MACHINE,
    TIDE__RANK_SETTING,
    TIDE__RANK_INPUTS,
    TIDE__RANK_OPERATOR,
    TIDE__RANK_ORDER,
    TIDE__RANK_KIND,
    TIDE__RANK_PLACE,
    TIDE__RANK_TENSOR,
    TIDE__RANK_LEAK,
    TIDE__RANK_STEADY,
    TIDE__RANK_HOLES,
    TIDE__RANK_UNEXPLAINED,
    TIDE__RANK_NOTE ///< a difference that cannot have changed any of the changed figures
} tide__cause_rank;

/// Texts are borrowed.
typedef struct tide__cause_draft {
    tide_gate_cause_kind kind;
    tide__cause_rank rank;
    const char *name, *owner, *a, *b; ///< NULL: ""
    uint64_t a_bytes, b_bytes;
    size_t n;
    int64_t weight; ///< change of the held bytes, with its sign; causes of one rank are sorted by it
} tide__cause_draft;

/// An operator, or a name in parentheses for tensors without one, with the bytes it holds at both peaks.
typedef struct tide__cause_owner {
    const char *key; ///< borrowed
    uint64_t a_bytes, b_bytes;
    const tide_gate_tensor *a_largest, *b_largest; ///< the largest tensor at that peak; NULL: none
    bool both, added, removed;                     ///< the operator is on both sides, only in b, only in a
} tide__cause_owner;

typedef struct tide__cause_found {
    tide_gate_cause cause;
    tide__cause_rank rank;
    int64_t weight;
    bool against; ///< makes the change smaller
    size_t seq;
} tide__cause_found;

typedef struct tide__cause_search {
    const tide_gate_case *a, *b;
    tide_gate_judged *out;
    tide_error *err;
    unsigned changed; ///< TIDE__CHANGED_…: figures that both sides have
    unsigned lost;    ///< TIDE__CHANGED_…: figures that only one side has
    bool peak_moved;  ///< the bytes at the peak changed, or a measured size did; else only persistent tensors did
    int direction;    ///< of held_bytes, or else of all bytes together: -1, 0, 1
    tide_strmap owner_index;   ///< key -> owners
    tide__cause_owner *owners; ///< [n_owners] in order of the tensors
    size_t n_owners, cap_owners;
    tide__cause_found *found; ///< [n_found] owned
    size_t n_found, cap_found;
} tide__cause_search;

static inline int tide__sign(int64_t x) { return (x > 0) - (x < 0); }
/// b - a, limited to what int64_t holds.
int64_t tide__change(uint64_t a, uint64_t b);

/// Adds a cause; takes `sentence`, also on failure.
tide_status tide__cause_add(tide__cause_search *g, const tide__cause_draft *draft, tide_text *sentence) TIDE_NODISCARD;

/// The causes that were found into g->out, sorted.
tide_status tide__causes_finish(tide__cause_search *g) TIDE_NODISCARD;
/// Free what `g` owns.
void tide__causes_drop(tide__cause_search *g);

tide_status tide__causes_find_owners(tide__cause_search *g) TIDE_NODISCARD;
/// NULL: no tensor belongs to that operator.
tide__cause_owner *tide__causes_owner(const tide__cause_search *g, const char *key);
/// Waterfalls into g->out.
tide_status tide__causes_add_parts(tide__cause_search *g) TIDE_NODISCARD;

/// Operators that were added or removed, and the smallest set of operators that moved.
tide_status tide__causes_add_steps(tide__cause_search *g) TIDE_NODISCARD;
/// Everything about tensors.
tide_status tide__causes_add_tensors(tide__cause_search *g) TIDE_NODISCARD;

// ---- words ----

typedef struct tide__bytes_text {
    char text[24];
} tide__bytes_text;
static inline tide__bytes_text tide__words(uint64_t bytes) {
    tide__bytes_text t;
    tide_format_bytes(bytes, t.text, sizeof t.text);
    return t;
}
/// "2.00 KiB instead of 1.00 KiB"; in bytes where both would read the same.
void tide__say_instead(tide_text *out, uint64_t b, uint64_t a);
/// "; the peak is at conv3 (before: at relu1)"; writes nothing when a peak is not known.
void tide__say_peak(tide_text *out, const tide__cause_search *g);

#endif
