// SPDX-License-Identifier: MIT
//
// What the files of sheets share. Private to tui/sheet*.c.
#ifndef TIDE_TUI_SHEET_INTERNAL_H
#define TIDE_TUI_SHEET_INTERNAL_H

#include "core/memory/allocator.h"
#include "core/runtime/memory_plan.h"
#include "tui/sheet.h"

static inline tide_tui_value tide__text(const char *text) {
    return (tide_tui_value){.known = text != NULL && text[0] != 0, .text = text};
}
static inline tide_tui_value tide__count(uint64_t count) { return (tide_tui_value){.known = true, .count = count}; }
/// TIDE_UNKNOWN_BYTES is not known; TIDE_NO_OFFSET is the same number.
static inline tide_tui_value tide__bytes(uint64_t bytes) {
    return (tide_tui_value){.known = bytes != TIDE_UNKNOWN_BYTES, .count = bytes};
}
static inline tide_tui_value tide__time(int64_t t) { return (tide_tui_value){.known = true, .number = t}; }
static inline tide_tui_value tide__flag(bool flag) { return (tide_tui_value){.known = true, .count = flag}; }
static inline tide_tui_value tide__unknown(void) { return (tide_tui_value){.known = false}; }
static inline tide_tui_value tide__change(uint64_t from, uint64_t to) {
    if (from == TIDE_UNKNOWN_BYTES || to == TIDE_UNKNOWN_BYTES) return tide__unknown();
    return (tide_tui_value){.known = true, .number = (int64_t)(to - from)};
}

/// What panes of things have (curve, gantt, map, table, operators, details), and panes of answers.
size_t tide__sheets_of_items(const tide_tui_scene *scene, tide_tui_pane pane, tide_tui_sheet out[TIDE_TUI_MAX_SHEETS]);
size_t tide__sheets_of_answers(const tide_tui_scene *scene, tide_tui_pane pane,
                               tide_tui_sheet out[TIDE_TUI_MAX_SHEETS]);
/// Name of an item of A; "" for TIDE_NO_ITEM.
const char *tide__item_name(const tide_tui_scene *scene, uint32_t item);

#define TIDE__SHEET(of_scene, sheet_name, sheet_fields, rows, get_function)                                            \
    (tide_tui_sheet) {                                                                                                 \
        .name = (sheet_name), .fields = (sheet_fields), .n_fields = sizeof(sheet_fields) / sizeof((sheet_fields)[0]),  \
        .n_rows = (rows), .scene = (of_scene), .get = (get_function)                                                   \
    }

#endif
