// SPDX-License-Identifier: MIT
//
// items: everything that lives in a subject: tensors of a plan, blocks of a trace. Made for millions: what repeats
// (names, sizes) is kept once, and of the rest 64 items at a time are packed, 10 to 20 bytes each: items stand in order
// of their begin, so that times and numbers of neighbours differ in few bytes.
//
//     chunk    the least begin, end, number of 64 items; bytes that suffice for what each column has above them
//     page     [begin - least, end - least, shape, site, number - least][the next item ...   [the next chunk ...
//
//     source          items
//     plan            its tensors, persistent ones too
//     trace, run      blocks that lived during the run; of a planned run in place of each context's buffer the tensors
//                     that lay in it, of every execution from the begin of their first step to the begin of the step
//                     that no longer needs them
//     trace, whole    every block; the same in place of buffers
#ifndef TIDE_ANALYSIS_ITEMS_H
#define TIDE_ANALYSIS_ITEMS_H

#include <endian.h>
#include <string.h>

#include "analysis/item_fill.h"
#include "analysis/sizes.h"
#include "profiler/executions.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What the axis of a subject counts.
typedef enum tide_axis { TIDE_AXIS_STEPS, TIDE_AXIS_NS } tide_axis;

enum { TIDE_NO_ITEM = UINT32_MAX, TIDE_ITEMS_KEEP_PLACES = 2000000 };

/// What made it. Items of one site differ in when they lived.
typedef struct tide_item_site {
    const char *name;  ///< tag or tensor, or ""
    const char *owner; ///< operator that made it, innermost scope, or ""
    int64_t step;      ///< step of that operator, number of that run; -1: none
} tide_item_site;

/// What it is.
typedef struct tide_item_shape {
    uint64_t size_bytes;            ///< requested (trace), of the tensor as its shape says (plan)
    uint64_t reserved_bytes;        ///< with what rounding adds
    const char *device, *allocator; ///< allocator "": of a plan
    tide_memory_kind kind;
    tide_role role; ///< of a plan; INTERMEDIATE where a trace does not say
    tide_item_fill fill;
    tide_alias_kind alias; ///< of a planned tensor that lies inside another one
    bool persistent;       ///< weights, inputs, outputs
    bool is_planned;       ///< a tensor of a plan; false: a block of a trace
} tide_item_shape;

enum {
    TIDE_ITEMS_CHUNK_BITS = 6, ///< items of a chunk
    TIDE_ITEMS_PAGE_BITS = 18, ///< and of a page
};
/// What is packed of an item, in that order.
enum { TIDE_ITEMS_BEGIN, TIDE_ITEMS_END, TIDE_ITEMS_SHAPE, TIDE_ITEMS_SITE, TIDE_ITEMS_ID, TIDE_ITEMS_N_COLUMNS };
/// Numbers of tensors that lie in the buffer of a planned run: run, execution and tensor in one, with a bit that no
/// block has. What does not fit is not among the items.
enum { TIDE_PLANNED_TENSOR_BITS = 22, TIDE_PLANNED_EXECUTION_BITS = 26, TIDE_PLANNED_RUN_BITS = 14 };
static inline bool tide_planned_id_fits(int64_t run_id, uint64_t execution, uint64_t tensor) {
    return ((uint64_t)run_id >> TIDE_PLANNED_RUN_BITS | execution >> TIDE_PLANNED_EXECUTION_BITS |
            tensor >> TIDE_PLANNED_TENSOR_BITS) == 0;
}
static inline uint64_t tide_planned_id(int64_t run_id, uint64_t execution, uint64_t tensor) {
    return UINT64_C(1) << 62 | (uint64_t)run_id << (TIDE_PLANNED_EXECUTION_BITS + TIDE_PLANNED_TENSOR_BITS) |
           execution << TIDE_PLANNED_TENSOR_BITS | tensor;
}
static inline bool tide_id_is_planned(uint64_t id) { return (id >> 62) == 1; }
static inline int64_t tide_planned_run(uint64_t id) {
    return (int64_t)(id >> (TIDE_PLANNED_EXECUTION_BITS + TIDE_PLANNED_TENSOR_BITS) &
                     ((1u << TIDE_PLANNED_RUN_BITS) - 1));
}
static inline uint64_t tide_planned_execution(uint64_t id) {
    return id >> TIDE_PLANNED_TENSOR_BITS & ((1u << TIDE_PLANNED_EXECUTION_BITS) - 1);
}
/// The index in its plan of a planned tensor: of a run by the number above, of a plan the number itself.
static inline uint64_t tide_planned_tensor(uint64_t id) {
    return tide_id_is_planned(id) ? id & ((1u << TIDE_PLANNED_TENSOR_BITS) - 1) : id;
}

/// 64 bytes, what is needed most in front: reading one item touches little more than one cache line here and one there.
typedef struct tide_items_chunk {
    const uint8_t *data;                   ///< in its page: values, the lowest byte first
    uint8_t item_bytes;                    ///< from one item to the next
    uint8_t at[TIDE_ITEMS_N_COLUMNS];      ///< where each value begins
    uint8_t n_bytes[TIDE_ITEMS_N_COLUMNS]; ///< that it has: 0 to 8
    int64_t begin, end;                    ///< least of its items
    uint64_t id;                           ///< the same
    uint64_t open_ended;                   ///< bit i: item i of it was never freed, and lives on (trace)
    uint64_t left;                         ///< bit i: it was never freed, and ended with its process
} tide_items_chunk;

/// Sorted by begin, then size descending, then id.
typedef struct tide_items {
    size_t n;
    tide_items_chunk *chunks; ///< [n / 64, rounded up], owned
    uint8_t **pages;          ///< [n_pages] data of chunks, and 8 bytes behind the last; owned
    size_t n_pages;
    uint64_t *place;       ///< [n] of a plan's tensor its offset in the buffer (TIDE_NO_OFFSET: none), of a block its
                           ///< address; NULL when there are more than TIDE_ITEMS_KEEP_PLACES
    tide_item_site *sites; ///< [n_sites], texts owned
    size_t n_sites;
    tide_item_shape *shapes; ///< [n_shapes], texts owned
    size_t n_shapes;
    tide_sizes sizes; ///< of those that are sized while running; texts owned
    void *inside;     ///< owned: texts, indexes
} tide_items;

/// One item in full. Texts are borrowed from the items.
typedef struct tide_item_facts {
    uint32_t item;
    uint64_t id;
    tide_item_site site;
    tide_item_shape shape;
    int64_t begin, end;
    bool open_ended;   ///< never freed, and it lives on
    bool is_left;      ///< never freed, and it ended with its process
    uint64_t place;    ///< TIDE_NO_OFFSET: none, or not kept
    int32_t pool;      ///< TIDE_NO_POOL: none
    uint32_t alias_of; ///< item that it lies in; TIDE_NO_ITEM
    tide_size size;    ///< what came out of it, where it is sized while running; bound "": it is not
} tide_item_facts;

/// Called now and then while long work runs; false cancels it (TIDE_ERR_CANCELLED). May be NULL.
typedef struct tide_progress {
    bool (*tell)(void *ctx, double share, const char *what); ///< share of 1 that is done
    void *ctx;
} tide_progress;
/// Reports it; false: cancelled. True without a progress.
static inline bool tide_progress_goes_on(const tide_progress *p, double share, const char *what) {
    return p == NULL || p->tell == NULL || p->tell(p->ctx, share, what);
}

/// `plan` is borrowed and not looked at afterwards. TIDE_ERR_NOMEM, TIDE_ERR_OVERFLOW.
tide_status tide_items_of_plan(const tide_memory_plan *plan, tide_items *out, tide_error *err) TIDE_NODISCARD;
/// run_id 0: the whole trace. About 1 us a block, and 6 bytes a block more than the items take while they are sorted.
/// TIDE_ERR_NOT_FOUND, TIDE_ERR_BAD_INPUT, TIDE_ERR_CANCELLED, TIDE_ERR_NOMEM.
tide_status tide_items_of_trace(tide_trace *trace, int64_t run_id, const tide_progress *progress, tide_items *out,
                                tide_error *err) TIDE_NODISCARD;
void tide_items_deinit(tide_items *items);

/// What the chunk of item `i` adds to its least value in `column`.
static inline uint64_t tide__items_packed(const tide_items *items, size_t i, int column) {
    const tide_items_chunk *c = &items->chunks[i >> TIDE_ITEMS_CHUNK_BITS];
    const size_t n_bytes = c->n_bytes[column], k = i & ((1u << TIDE_ITEMS_CHUNK_BITS) - 1);
    uint64_t value;
    memcpy(&value, c->data + c->at[column] + k * c->item_bytes, sizeof value);
    return le64toh(value) & (((UINT64_C(1) << (4 * n_bytes)) << (4 * n_bytes)) - 1); // 8 bytes: 0 - 1, all of it
}
/// When it begins and ends: half-open on the subject's axis; those alive before or after are cut to the axis. In a
/// trace begin == end is possible.
static inline int64_t tide_items_begin(const tide_items *items, size_t i) {
    return (int64_t)((uint64_t)items->chunks[i >> TIDE_ITEMS_CHUNK_BITS].begin +
                     tide__items_packed(items, i, TIDE_ITEMS_BEGIN));
}
static inline int64_t tide_items_end(const tide_items *items, size_t i) {
    return (int64_t)((uint64_t)items->chunks[i >> TIDE_ITEMS_CHUNK_BITS].end +
                     tide__items_packed(items, i, TIDE_ITEMS_END));
}
/// Places of its site and shape in sites and shapes; and these.
static inline uint32_t tide_items_site_of(const tide_items *items, size_t i) {
    return (uint32_t)tide__items_packed(items, i, TIDE_ITEMS_SITE);
}
static inline uint32_t tide_items_shape_of(const tide_items *items, size_t i) {
    return (uint32_t)tide__items_packed(items, i, TIDE_ITEMS_SHAPE);
}
static inline const tide_item_site *tide_items_site(const tide_items *items, size_t i) {
    return &items->sites[tide_items_site_of(items, i)];
}
static inline const tide_item_shape *tide_items_shape(const tide_items *items, size_t i) {
    return &items->shapes[tide_items_shape_of(items, i)];
}
/// Its number: index in the plan's table, or block number in the file.
static inline uint64_t tide_items_id(const tide_items *items, size_t i) {
    return items->chunks[i >> TIDE_ITEMS_CHUNK_BITS].id + tide__items_packed(items, i, TIDE_ITEMS_ID);
}
/// Never freed, and it lives on (trace).
static inline bool tide_items_is_open_ended(const tide_items *items, size_t i) {
    return (items->chunks[i >> TIDE_ITEMS_CHUNK_BITS].open_ended >> (i & ((1u << TIDE_ITEMS_CHUNK_BITS) - 1)) & 1) != 0;
}
/// Never freed, and it ended with its process.
static inline bool tide_items_is_left(const tide_items *items, size_t i) {
    return (items->chunks[i >> TIDE_ITEMS_CHUNK_BITS].left >> (i & ((1u << TIDE_ITEMS_CHUNK_BITS) - 1)) & 1) != 0;
}
/// Never freed, whether it lives on or not: a leak.
static inline bool tide_items_is_never_freed(const tide_items *items, size_t i) {
    return tide_items_is_open_ended(items, i) || tide_items_is_left(items, i);
}
/// TIDE_NO_ITEM when it is not there. O(log n); of more than a million items O(n), 1 ns each.
uint32_t tide_items_find(const tide_items *items, uint64_t id);
/// The item of which also begin (cut to the axis) and size are known: O(log n) for any number of items.
uint32_t tide_items_find_at(const tide_items *items, uint64_t id, int64_t begin, uint64_t size_bytes);
/// Items that may be alive somewhere in [t0, t1): all that are lie in [*from, *to).
void tide_items_range(const tide_items *items, int64_t t0, int64_t t1, uint32_t *from, uint32_t *to);
bool tide_items_alive_at(const tide_items *items, uint32_t i, int64_t t);

#ifdef __cplusplus
}
#endif
#endif
