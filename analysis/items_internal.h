// SPDX-License-Identifier: MIT
//
// How a table of items is made; shared by the files for plans and for traces. Private to analysis/.
//
//     add, in any order -> columns -> order by begin, size, number -> columns moved in place -> indexes
//
// Columns are made at once for as many items as there can be: pages that nobody writes to take no memory.
#ifndef TIDE_ANALYSIS_ITEMS_INTERNAL_H
#define TIDE_ANALYSIS_ITEMS_INTERNAL_H

#include "analysis/items.h"
#include "core/base/text.h"

/// Numbers of items: the upper bits by a table, the lower ones in id_low. A program hands out its block numbers one
/// after the other, so few upper parts are enough for any trace; when they are not, each item has its own number.
enum { TIDE__ID_LOW_BITS = 24, TIDE__ID_PAGES = 256 };
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
    uint64_t id_page[TIDE__ID_PAGES]; ///< id >> TIDE__ID_LOW_BITS
    size_t n_id_pages;
    uint64_t *wide_id;    ///< [n] in place of all that; NULL
    uint32_t *by_id;      ///< [n] items by number, planned tensors behind blocks; NULL: too many
    int64_t *reach;       ///< [n / TIDE__REACH_ITEMS] latest end of all items up to the end of that stretch
    uint32_t *site_items; ///< [n_sites] how many items each has
    tide__site_names names;
} tide__items_inside;

/// A table from keys of three numbers to 0, 1, 2, ...
typedef struct tide__intern {
    uint64_t (*keys)[3]; ///< [n], owned
    size_t n, cap;
    uint32_t *slots; ///< [n_slots] index + 1; owned
    size_t n_slots;
} tide__intern;

/// The index of `key`, a new one when *is_new. TIDE_ERR_NOMEM.
tide_status tide__intern_put(tide__intern *t, const uint64_t key[3], uint32_t *out, bool *is_new) TIDE_NODISCARD;
void tide__intern_deinit(tide__intern *t);

typedef struct tide__items_builder {
    tide_items items;
    tide__items_inside *inside;
    size_t cap, cap_sites, cap_shapes;
    tide__intern sites, shapes;
    const char **shape_texts; ///< [n_shape_texts] devices and allocators; owned, not the texts
    size_t n_shape_texts, cap_shape_texts;
    int64_t begin, end;  ///< of the axis
    size_t last_id_page; ///< that was used
} tide__items_builder;

/// One item. begin <= end, on the axis.
typedef struct tide__item {
    int64_t begin, end;
    uint32_t site, shape;
    uint64_t id, place;
    bool open_ended;
} tide__item;

/// Room for `cap` items. TIDE_ERR_NOMEM; tide__items_abandon in any case.
tide_status tide__items_begin(tide__items_builder *b, size_t cap, int64_t begin, int64_t end) TIDE_NODISCARD;
/// A copy of `text` that lives as long as the items; NULL: no memory.
const char *tide__items_text(tide__items_builder *b, const char *text);
/// A site that is new; texts are copied.
tide_status tide__items_add_site(tide__items_builder *b, const char *name, const char *owner, int64_t step,
                                 uint32_t *out) TIDE_NODISCARD;
/// A shape, the one that is there when there is one. Device and allocator must come from tide__items_text, once each.
tide_status tide__items_shape(tide__items_builder *b, const tide_item_shape *shape, uint32_t *out) TIDE_NODISCARD;
/// TIDE_ERR_NOMEM; TIDE_ERR_OVERFLOW when there are more than a 32-bit number can tell apart.
tide_status tide__items_add(tide__items_builder *b, const tide__item *item) TIDE_NODISCARD;
/// Take out what was added as number `i`; the last one takes its place.
void tide__items_remove(tide__items_builder *b, size_t i);
/// Sort, make the indexes, hand over.
tide_status tide__items_finish(tide__items_builder *b, tide_items *out) TIDE_NODISCARD;
/// Gives back what is left. Takes one that was finished.
void tide__items_abandon(tide__items_builder *b);

/// Fill and persistence of a shape by the rules of the profiler's timeline.
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
void tide__site_names_deinit(tide__site_names *n);
/// Those of the items; NULL of items made by hand.
const tide__site_names *tide__items_names(const tide_items *items);

#endif
