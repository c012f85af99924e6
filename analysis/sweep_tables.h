// SPDX-License-Identifier: MIT
//
// sweep_tables: the points of a sweep as a table, for people and programs, and the whole sweep as JSON.
#ifndef TIDE_ANALYSIS_SWEEP_TABLES_H
#define TIDE_ANALYSIS_SWEEP_TABLES_H

#include "analysis/sweep.h"
#include "analysis/table.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TIDE_SWEEP_MAX_COLUMNS = 24 };
typedef struct tide_sweep_points {
    tide_column columns[TIDE_SWEEP_MAX_COLUMNS];
    tide_table table; ///< of these columns: where it stands, `points` stays
} tide_sweep_points;
/// The points, a row each. For people, columns that say the same everywhere are hidden. `s` is borrowed.
void tide_sweep_points_of(const tide_sweep *s, tide_sweep_points *points);
/// The model by the shortest end of its path that no other model has: "resnet50.onnx", "vit/model.onnx". Borrowed.
const char *tide_sweep_model_name(const tide_sweep *s, const char *model);

/// `tidemark.sweep`, version 1 (docs/schemas/sweep.json); tide_sweep_of_json reads it back. `indent`: in lines.
void tide_sweep_write_json(const tide_sweep *s, bool indent, tide_text *out);

#ifdef __cplusplus
}
#endif
#endif
