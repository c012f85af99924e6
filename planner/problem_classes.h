// SPDX-License-Identifier: MIT
//
// problem classes: aliases gathered under their roots, as rectangles in steps before ticks are numbered. Private to the
// planner.
#ifndef TIDE_PLANNER_PROBLEM_CLASSES_H
#define TIDE_PLANNER_PROBLEM_CLASSES_H

#include "planner/problem.h"

/// A rectangle as long as time is still in steps.
typedef struct tide_step_rect {
    int64_t begin, end;
    uint64_t lo, hi;
} tide_step_rect;

/// A growing list of them.
typedef struct tide_step_rects {
    tide_step_rect *list;
    size_t n, cap;
} tide_step_rects;

/// One table item with what lies inside it.
typedef struct tide_class {
    uint32_t root;   ///< table index of the item that has the place
    size_t first, n; ///< members in tide_classes.members, root among them
    size_t first_rect, n_rects;
} tide_class;

typedef struct tide_classes {
    tide_class *list; ///< [n] those that take space, by (device, kind), then canonical order
    size_t n;
    uint32_t *members; ///< table indices, those of one class together
    tide_step_rects rects;
} tide_classes;

/// Gather aliases under their roots and turn each class into disjoint rectangles, in canonical order.
tide_status tide__classes_make(const tide_lifetimes *lt, tide_classes *out, tide_error *err) TIDE_NODISCARD;
void tide__classes_deinit(tide_classes *c);

#endif
