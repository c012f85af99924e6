// SPDX-License-Identifier: MIT
//
// lifetimes_csv: the columns of lifetime lists (docs/lifetimes-format.md), for the reader and the writer. Private to
// the planner.
#ifndef TIDE_PLANNER_LIFETIMES_CSV_H
#define TIDE_PLANNER_LIFETIMES_CSV_H

/// Columns by the name the writer gives them. MiniMalloc's come first, then ours.
#define TIDE_CSV_COLUMN_MAP(XX)                                                                                        \
    XX(ID, "id")                                                                                                       \
    XX(BEGIN, "lower")                                                                                                 \
    XX(END, "upper") /* half-open */                                                                                   \
    XX(LAST, "end")  /* inclusive; read, never written */                                                              \
    XX(SIZE, "size")                                                                                                   \
    XX(ALIGNMENT, "alignment")                                                                                         \
    XX(HINT, "hint") /* a wish: read, checked and passed over */                                                       \
    XX(GAPS, "gaps")                                                                                                   \
    XX(OFFSET, "offset")                                                                                               \
    XX(ROUNDED, "rounded") /* takes its size rounded up to its alignment */                                            \
    XX(KIND, "kind")                                                                                                   \
    XX(DEVICE, "device")                                                                                               \
    XX(ROLE, "role")                                                                                                   \
    XX(PERSISTENT, "persistent")                                                                                       \
    XX(ALIAS, "alias")                                                                                                 \
    XX(ALIAS_KIND, "alias_kind")                                                                                       \
    XX(APART, "apart")                                                                                                 \
    XX(BOUND, "bound") /* the most extents of a tensor that is sized while running */
typedef enum tide_csv_column {
#define XX(name, head) TIDE_CSV_COLUMN_##name,
    TIDE_CSV_COLUMN_MAP(XX)
#undef XX
        TIDE_N_CSV_COLUMNS
} tide_csv_column;
static const char *const tide__csv_heads[TIDE_N_CSV_COLUMNS] = {
#define XX(name, head) head,
    TIDE_CSV_COLUMN_MAP(XX)
#undef XX
};

#endif
