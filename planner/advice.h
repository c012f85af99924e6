// SPDX-License-Identifier: MIT
//
// advice: why a plan is as large as it is, and the smallest single change that would make it fit a budget. Every figure
// is computed by making the change to the table and bounding it anew; nothing is guessed.
#ifndef TIDE_PLANNER_ADVICE_H
#define TIDE_PLANNER_ADVICE_H

#include "planner/passes.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- what is alive at the peak ----

typedef struct tide_peak_entry {
    uint32_t item;  ///< in the table
    uint64_t bytes; ///< it takes at the peak; of an alias its own size, which the root's bytes include
    bool inside;    ///< an alias of the nearest entry before it that is none
} tide_peak_entry;

/// The first step at which the most bytes of one buffer are alive.
typedef struct tide_peak {
    tide_device device;
    tide_memory_kind kind;
    int64_t step;
    uint64_t bytes;
    tide_peak_entry *entries; ///< [n] largest first, each with its aliases behind it
    size_t n;
} tide_peak;

typedef struct tide_peaks {
    tide_peak *list; ///< [n], one for each buffer
    size_t n;
} tide_peaks;

tide_status tide_peaks_find(const tide_lifetimes *lt, tide_peaks *out, tide_error *err) TIDE_NODISCARD;
void tide_peaks_deinit(tide_peaks *p);
/// As a table: tensor, bytes, share, its maker, its last reader; of each buffer the `max_rows` largest, 0: 60.
void tide_peaks_print(const tide_peaks *p, const tide_lifetimes *lt, size_t max_rows, tide_text *out);

// ---- what to change ----

/// From the smallest change to the largest: those that fit are listed in this order.
#define TIDE_CHANGE_MAP(XX)                                                                                            \
    XX(SEARCH, "search")       /* look longer: the bound leaves room, no plan was found */                             \
    XX(PASS, "pass")           /* a pass that was off is on */                                                         \
    XX(PASSES, "passes")       /* all passes that were off are on */                                                   \
    XX(FUSE, "fuse")           /* operators are fused */                                                               \
    XX(QDQ, "qdq")             /* operators read and write quantised tensors */                                        \
    XX(MAP, "map")             /* weights stay in their file */                                                        \
    XX(THREADS, "threads")     /* kernels run on one thread: less scratch */                                           \
    XX(FOLD, "fold")           /* large constants are not folded: their operators run */                               \
    XX(ALIGN, "align")         /* a smaller alignment */                                                               \
    XX(RECOMPUTE, "recompute") /* tensors may be made twice */                                                         \
    XX(BATCH, "batch")         /* a smaller batch: the largest that fits, or 1 */                                      \
    XX(EXTENTS, "extents")     /* open extents of the inputs are half as large */                                      \
    XX(HALF, "half")           /* a tensor and what lies in it take half their bytes: 16 bits in place of 32 */        \
    XX(GONE, "gone")           /* a tensor and what lies in it are not there at all */                                 \
    XX(WEIGHTS, "weights")     /* weights take half their bytes */
typedef enum tide_change_kind {
#define XX(name, text) TIDE_CHANGE_##name,
    TIDE_CHANGE_MAP(XX)
#undef XX
        TIDE_N_CHANGES
} tide_change_kind;
const char *tide_change_name(tide_change_kind kind);

typedef struct tide_change {
    tide_change_kind kind;
    tide_pass pass;         ///< of PASS
    double recompute_share; ///< of RECOMPUTE: 0.1 is 10 %
    uint64_t align_bytes;   ///< of ALIGN
    uint64_t batch;         ///< of BATCH
    uint64_t limit_bytes;   ///< of FOLD
    uint32_t item;          ///< of HALF and GONE: in the table
} tide_change;

typedef struct tide_advice_row {
    tide_change change;
    char *what;          ///< in words, owned
    uint64_t need_bytes; ///< of everything with the change: what its plan takes, or the lower bound where none was made
    uint64_t saves_bytes; ///< against what is needed now
    bool fits;            ///< a plan of the changed table was made and fits
} tide_advice_row;

typedef struct tide_advice {
    uint64_t need_bytes, budget_bytes; ///< what it takes now, and what there is
    uint64_t persistent_bytes;         ///< weights, inputs, outputs: no plan changes them
    uint64_t process_bytes;            ///< what the process takes beside all that; 0: the table does not know it
    const char *largest;               ///< the largest part of what it takes, in words; static
    uint64_t largest_bytes;
    tide_advice_row *rows; ///< [n], the best first
    size_t n;
} tide_advice;

/// Make the table again with one thing changed. TIDE_ERR_NOT_FOUND: there is nothing to change (no open extents, …);
/// *what (host memory, taken) says in words what was done, NULL: the usual words.
typedef tide_status (*tide_remake)(void *ctx, const tide_change *change, tide_lifetimes *out, char **what,
                                   tide_error *err);

typedef struct tide_advice_question {
    const tide_memory_plan *plan; ///< that does not fit; borrowed
    uint64_t budget_bytes;        ///< for what tide_need_bytes says
    tide_remake remake;           ///< NULL: a bare list, whose tensors alone can be changed
    void *ctx;
    tide_pass_options passes; ///< as they were; of use with remake
    bool no_fuse, no_qdq;
    uint64_t batch;                ///< what the first open extent of the inputs is bound to; 0: none is open
    const tide_strategy *strategy; ///< that plans what may fit
} tide_advice_question;

/// TIDE_OK also when nothing helps: out->n is 0 then. Changes that fail are passed over; out of memory is not.
tide_status tide_advice_make(const tide_advice_question *q, tide_advice *out, tide_error *err) TIDE_NODISCARD;
void tide_advice_deinit(tide_advice *a);
void tide_advice_print(const tide_advice *a, tide_text *out);

#ifdef __cplusplus
}
#endif
#endif
