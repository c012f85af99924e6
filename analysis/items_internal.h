// SPDX-License-Identifier: MIT
//
// How a table of items is made; shared by the files for plans and for traces. Private to analysis/.
//
//     add, in any order -> packed -> order by begin, size, number -> packed again in that order -> indexes
//
// A page of the first packing is given back as soon as all of it is in the second: they are nearly in the same order.
#ifndef TIDE_ANALYSIS_ITEMS_INTERNAL_H
#define TIDE_ANALYSIS_ITEMS_INTERNAL_H

#include "analysis/items.h"
#include "core/base/host_alloc.h"
#include "core/base/map.h"
#include "core/base/text.h"

/// Items per entry of the table of their ends.
enum { TIDE__REACH_ITEMS = 256 };

/// Names for sorting and searching, one per site.
typedef struct tide__site_names {
    uint32_t *rank;      ///< [n_sites] place of the site by name, then owner, then step; owned
    char *folded;        ///< all texts in lower case: "name\nowner" one behind the other; owned
    uint32_t *folded_at; ///< [n_sites + 1] where each begins; owned
} tide__site_names;

typedef struct tide__items_inside {
    char **pages; ///< [n_pages] of texts, owned
    size_t n_pages, cap_pages, page_used, page_bytes;
    uint32_t *by_id;      ///< [n] items by number, planned tensors behind blocks; NULL: too many
    int64_t *reach;       ///< [n / TIDE__REACH_ITEMS] latest end of all items up to the end of that stretch
    uint32_t *site_items; ///< [n_sites] how many items each has
    tide__site_names names;
} tide__items_inside;

/// A table from keys of three numbers to 0, 1, 2, ...
typedef struct tide__intern {
    uint64_t (*keys)[3]; ///< [n], owned
    size_t n, cap;
    tide_index index;
} tide__intern;

/// The index of `key`, a new one when *is_new. TIDE_ERR_NOMEM.
tide_status tide__intern_put(tide__intern *t, const uint64_t key[3], uint32_t *out, bool *is_new) TIDE_NODISCARD;

/// One item. begin <= end, on the axis.
typedef struct tide__item {
    int64_t begin, end;
    uint32_t site, shape;
    uint64_t id, place;
    bool open_ended, is_left;
} tide__item;

/// Items on their way into chunks.
typedef struct tide__items_packer {
    size_t cap;       ///< items there can be at most
    size_t page_used; ///< bytes of the last page
    size_t n_waiting; ///< of the chunk that is not full yet
    tide__item waiting[1 << TIDE_ITEMS_CHUNK_BITS];
} tide__items_packer;

typedef struct tide__items_builder {
    tide_items items; ///< those that wait in the packer are not among them
    tide__items_packer packer;
    tide__items_inside *inside;
    size_t cap, cap_sites, cap_shapes;
    tide__intern sites, shapes;
    const char **shape_texts; ///< [n_shape_texts] devices and allocators; owned, not the texts
    size_t n_shape_texts, cap_shape_texts;
    int64_t begin, end; ///< of the axis
} tide__items_builder;

// ---- items.c ----

/// Put one more into `items`, or let it wait there. At most packer->cap. TIDE_ERR_NOMEM.
tide_status tide__items_pack(tide_items *items, tide__items_packer *packer, const tide__item *item) TIDE_NODISCARD;
/// What waits becomes the last chunk.
tide_status tide__items_pack_end(tide_items *items, tide__items_packer *packer) TIDE_NODISCARD;
/// Put items order[0], order[1], ... [n] into that order, those that are not in it are left out; places too.
/// TIDE_ERR_CANCELLED, after which some are gone.
tide_status tide__items_repack(tide_items *items, const uint32_t *order, size_t n,
                               const tide_progress *progress) TIDE_NODISCARD;
/// Reports how much of the sorting is done. TIDE_ERR_CANCELLED.
tide_status tide__items_report(const tide_progress *progress, double share) TIDE_NODISCARD;

/// A column (site or shape) of one item after the other from the first on, for loops over all of them: some are taken
/// out at once. `some` is the caller's, of that column alone.
typedef struct tide__items_some {
    uint64_t values[1 << TIDE_ITEMS_CHUNK_BITS];
} tide__items_some;
static inline uint32_t tide__items_each(const tide_items *items, size_t i, int column, tide__items_some *some) {
    enum { CHUNK = 1 << TIDE_ITEMS_CHUNK_BITS };
    if (i % CHUNK == 0) {
        const tide_items_chunk *c = &items->chunks[i / CHUNK];
        const size_t n_bytes = c->n_bytes[column];
        const uint64_t mask = ((UINT64_C(1) << (4 * n_bytes)) << (4 * n_bytes)) - 1;
        const uint8_t *data = c->data + c->at[column];
        for (size_t k = 0; k < CHUNK; k++) {
            uint64_t value;
            memcpy(&value, data + k * c->item_bytes, sizeof value);
            some->values[k] = le64toh(value) & mask;
        }
    }
    return (uint32_t)some->values[i % CHUNK];
}

// ---- items_build.c ----

/// Room for `cap` items. TIDE_ERR_NOMEM; tide__items_abandon in any case.
tide_status tide__items_start(tide__items_builder *b, size_t cap, int64_t begin, int64_t end) TIDE_NODISCARD;
/// A copy of `text` that lives as long as the items; NULL: no memory.
const char *tide__items_text(tide__items_builder *b, const char *text);
/// A site that is new; texts are copied.
tide_status tide__items_add_site(tide__items_builder *b, const char *name, const char *owner, int64_t step,
                                 uint32_t *out) TIDE_NODISCARD;
/// A shape, the one that is there when there is one. Device and allocator must come from tide__items_text, once each.
tide_status tide__items_put_shape(tide__items_builder *b, const tide_item_shape *shape, uint32_t *out) TIDE_NODISCARD;
/// TIDE_ERR_NOMEM; TIDE_ERR_OVERFLOW when there are more than a 32-bit number can count.
tide_status tide__items_add(tide__items_builder *b, const tide__item *item) TIDE_NODISCARD;
/// Sort, make the indexes, hand over. TIDE_ERR_NOMEM, TIDE_ERR_CANCELLED.
tide_status tide__items_finish(tide__items_builder *b, const tide_progress *progress, tide_items *out) TIDE_NODISCARD;
/// Gives back what is left. Takes one that was finished.
void tide__items_abandon(tide__items_builder *b);

/// Fill and persistence of a shape (item_fill.h).
void tide__shape_classify(tide_item_shape *shape, bool persistent_in_plan);
/// The axis of a run, or of the whole trace (0): a nanosecond longer than to the last event then, so that it lies on
/// it.
tide_status tide__trace_axis(tide_trace *trace, int64_t run_id, int64_t *begin, int64_t *end,
                             tide_error *err) TIDE_NODISCARD;
/// `t` within [begin, end].
int64_t tide__cut(int64_t begin, int64_t end, uint64_t t);
/// A planned tensor as an item would have it; device stays NULL.
tide_item_shape tide__shape_of_tensor(const tide_lifetime *l);
/// The names of the sites, for search and order. TIDE_ERR_NOMEM.
tide_status tide__site_names_make(const tide_items *items, tide__site_names *out) TIDE_NODISCARD;
static inline void tide__site_names_deinit(tide__site_names *n) {
    tide_host_free(n->rank);
    tide_host_free(n->folded);
    tide_host_free(n->folded_at);
    *n = (tide__site_names){0};
}
/// Those of the items; NULL of items made by hand.
const tide__site_names *tide__items_names(const tide_items *items);

#endif
