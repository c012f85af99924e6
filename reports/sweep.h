// SPDX-License-Identifier: MIT
//
// sweep: memory as a function of a size, for people and for programs: sentences, table, curves with budgets.
#ifndef TIDE_REPORTS_SWEEP_H
#define TIDE_REPORTS_SWEEP_H

#include "analysis/sweep.h"
#include "reports/reports.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_sweep_paper {
    unsigned width; ///< of plain text, in columns; 0: 80
    bool ascii;     ///< plain text without block characters
} tide_sweep_paper;

/// A sorted sweep in any format of reports. Byte-stable for equal input; names are escaped for the format. `paper` is
/// for TIDE_REPORT_TEXT and may be NULL. TIDE_ERR_NOMEM.
tide_status tide_report_sweep(const tide_sweep *s, tide_report_format format, const tide_sweep_paper *paper,
                              tide_text *out, tide_error *err) TIDE_NODISCARD;
/// "resnet50.onnx: the largest N that fits 8 GiB is 437 (7.99 GiB); 438 needs 8.01 GiB", in foreign text as it is.
void tide_sweep_sentence(const tide_sweep *s, const tide_sweep_answer *a, tide_text *out);

#ifdef __cplusplus
}
#endif
#endif
