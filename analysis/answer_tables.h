// SPDX-License-Identifier: MIT
//
// answer_tables: the tables of answers that reports and panes of the terminal view both write. Their keys differ, for
// programs read both; what a cell holds is declared once.
#ifndef TIDE_ANALYSIS_ANSWER_TABLES_H
#define TIDE_ANALYSIS_ANSWER_TABLES_H

#include "analysis/compare.h"
#include "analysis/device_memory.h"
#include "analysis/pools.h"
#include "analysis/table.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The reader of the table: reports count moments from the origin, panes give them as they are.
typedef struct tide_table_view {
    const tide_subject_facts *facts; ///< borrowed, as all else
    bool is_pane;
} tide_table_view;

// Each table borrows the answer; NULL: it is not there yet, the table has no rows. Names are those of reports and of
// panes: "pools" and "rows".

/// Where the bytes of devices are.
tide_table tide_table_of_devices(const tide_table_view *view, const tide_device_row *rows, size_t n);
tide_table tide_table_of_pools(const tide_table_view *view, const tide_pools *pools);
/// Tensors that pass through the pools of a colouring plan.
tide_table tide_table_of_pool_tensors(const tide_table_view *view, const tide_pool_tensors *tensors);
tide_table tide_table_of_leaks(const tide_table_view *view, const tide_leaks *leaks);
/// What is held: in parts that sum to it, by operator, by kind, each live item; and what would lower the peak.
tide_table tide_table_of_parts(const tide_table_view *view, const tide_explanation *e);
tide_table tide_table_of_owners(const tide_table_view *view, const tide_explanation *e);
tide_table tide_table_of_kinds(const tide_table_view *view, const tide_explanation *e);
tide_table tide_table_of_live(const tide_table_view *view, const tide_explanation *e);
tide_table tide_table_of_without(const tide_table_view *view, const tide_explanation *e);
/// How to get there: an edit a row.
tide_table tide_table_of_ways(const tide_table_view *view, const tide_explanation *e);
/// A comparison: by operator, by kind, item by item.
tide_table tide_table_of_owner_changes(const tide_table_view *view, const tide_diff *d);
tide_table tide_table_of_kind_changes(const tide_table_view *view, const tide_diff *d);
tide_table tide_table_of_changes(const tide_table_view *view, const tide_diff *d);

// Cells of a tide_diff_row, for tables that are declared elsewhere: its size in A and in B, the change of what is held.
void tide_change_a_size(const void *row, tide_cell *v);
void tide_change_b_size(const void *row, tide_cell *v);
void tide_change_of_held(const void *row, tide_cell *v);

/// How many items have each change, as keys of an object.
void tide_diff_counts_json(const tide_diff *d, tide_json_out *j);
/// The same behind the peaks and the plans.
void tide_diff_json(const tide_diff *d, tide_json_out *j);

/// A row that is item `i`, in `room`: what the columns of the items hold. Its pool and what it lies in are not looked
/// up.
const tide_item_facts *tide_table_item_row(const tide_items *items, uint32_t i, void *room);

#ifdef __cplusplus
}
#endif
#endif
