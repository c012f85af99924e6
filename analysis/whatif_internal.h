// SPDX-License-Identifier: MIT
//
// What the files of whatif share. Private to analysis/whatif*.
#ifndef TIDE_ANALYSIS_WHATIF_INTERNAL_H
#define TIDE_ANALYSIS_WHATIF_INTERNAL_H

#include "analysis/whatif.h"

/// TIDE_ERR_NOT_FOUND with the nearest name as a hint.
tide_status tide__whatif_find(const tide_lifetimes *lt, const char *name, uint32_t *out, tide_error *err);
/// Whether the edit is one that only a model can serve.
bool tide__edit_needs_model(tide_edit_kind kind);
/// Make one edit on a table; those that the table cannot serve (strategy, pass, extent, batch) leave it as it is. After
/// a failure the table is as it was. TIDE_ERR_NOT_FOUND, TIDE_ERR_INVALID with why, TIDE_ERR_NOMEM.
tide_status tide__edit_apply(tide_lifetimes *lt, const tide_edit *edit, tide_error *err) TIDE_NODISCARD;
/// Whether the table computes the tensor a second time.
bool tide__is_recomputed(const tide_lifetimes *lt, uint32_t item);

#endif
