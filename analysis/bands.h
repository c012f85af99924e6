// SPDX-License-Identifier: MIT
//
// bands: what the curve of live bytes is made of, as stacked bands: in each column of a window, at the moment when most
// lives in it, the bytes of each kind, operator, pool, tensor or process. The bands of a column sum to the curve there,
// to the byte.
//
//     bytes  |        ####            unused    bytes of plans' buffers that no tensor uses
//            |    oooo####oooo        rest      groups that have no band of their own
//            |  xxxxxxxxxxxxxxxx      groups    the largest
//            |wwwwwwwwwwwwwwwwwwwwww  weights   Persistent memory, lowest: it hardly changes
//            +----------------------
#ifndef TIDE_ANALYSIS_BANDS_H
#define TIDE_ANALYSIS_BANDS_H

#include "analysis/subject.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TIDE_BAND_BY_MAP(XX)                                                                                           \
    XX(KIND, "kind")                                                                                                   \
    XX(OPERATOR, "operator") /* that made it: the innermost scope */                                                   \
    XX(POOL, "pool")         /* of the plan, or its buffer; else the allocator, by kind */                             \
    XX(TENSOR, "tensor")     /* by name */                                                                             \
    XX(PROCESS, "process")   /* of a trace: ranks, lanes that were merged */
typedef enum tide_band_by {
#define XX(name, text) TIDE_BAND_BY_##name,
    TIDE_BAND_BY_MAP(XX)
#undef XX
        TIDE_N_BAND_BYS
} tide_band_by;
const char *tide_band_by_name(tide_band_by by);

enum { TIDE_BANDS_LEAST = 5 }; ///< that can be asked for: one of each sort, and one more group

typedef struct tide_bands_options {
    tide_band_by by;
    int kind;       ///< as of a curve: -1 all; TIDE_KINDS_BUT_WEIGHTS leaves weights out
    int64_t t0, t1; ///< the window, and its columns as those of tide_subject_columns
    size_t n;
    size_t max_bands; ///< at least TIDE_BANDS_LEAST
} tide_bands_options;

/// In the order of the stack, from below.
typedef enum tide_band_sort {
    TIDE_BAND_WEIGHTS,
    TIDE_BAND_GROUP,
    TIDE_BAND_REST,    ///< groups without a band of their own
    TIDE_BAND_UNUSED,  ///< what no tensor uses of plans' buffers
    TIDE_BAND_DROPPED, ///< lived at a moment whose events were dropped (tidemark run --max-trace): of what is not known
} tide_band_sort;

typedef struct tide_band {
    tide_band_sort sort;
    int kind;   ///< by kind, and of weights: the tide_memory_kind; else -1
    char *name; ///< for people: "Workspace", "conv1", "pool 2", "weights", "12 others", "unused in the buffer"; owned
    size_t n_names;      ///< of the rest: groups in it; else 1
    uint64_t *bytes;     ///< [n columns], owned
    uint64_t most_bytes; ///< in one column
    uint64_t sum_bytes;  ///< of all columns; UINT64_MAX where that is too much for a number
} tide_band;

typedef struct tide_bands {
    tide_band_by by;
    size_t n;         ///< columns
    uint64_t *bytes;  ///< [n] the curve: what the bands of a column sum to; owned
    tide_moment *at;  ///< [n] when that was; of moments that are as high, the first with most in plans' buffers; owned
    tide_band *items; ///< [n_items] from the lowest; one with no byte in any column is not there; owned
    size_t n_items;
} tide_bands;

/**
 * Of a plan, or of blocks by kind: milliseconds. Else each column costs a replay from the nearest snapshot, together at
 * most one of the whole window, and 16 bytes for each name that lives in it, up to 128 MiB; beyond that twice the time.
 * The curve is exact in every column: one that tide_subject_columns gives too high, because a spike beside it is in the
 * same leaf, is lower here.
 *
 * @param progress  told of each column
 * @return TIDE_ERR_INVALID for no columns, an empty window or too few bands; TIDE_ERR_CANCELLED; TIDE_ERR_NOMEM
 */
tide_status tide_bands_make(tide_subject *s, const tide_bands_options *opt, const tide_progress *progress,
                            tide_bands *out, tide_error *err) TIDE_NODISCARD;
void tide_bands_deinit(tide_bands *b);

// ---- private to analysis/ ----

/// The fullest moment of each column, and what the curve is there: at, bytes [n]. `is_dropped` [n]: its events are
/// gone.
tide_status tide__bands_moments(tide_subject *s, const tide_bands_options *opt, tide_moment *at, uint64_t *bytes,
                                bool *is_dropped, const tide_progress *progress, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
