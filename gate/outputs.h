// SPDX-License-Identifier: MIT
//
// outputs: a result as people, CI systems and programs want it. Names come from models and may hold anything: each
// format escapes them; control characters, bytes that are no UTF-8 and marks that turn the direction of text are shown
// as escapes in all of them, texts of 10 kB are cut with a mark.
#ifndef TIDE_GATE_OUTPUTS_H
#define TIDE_GATE_OUTPUTS_H

#include "gate/judge.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_gate_output_options {
    size_t max_causes;  ///< of a case; 0: 5
    size_t max_rows;    ///< cases told one by one; 0: all that are not "unchanged and pass"
    size_t max_bytes;   ///< of Markdown: what does not fit is left out with a line that says how much; 0: 60,000 (a
                        ///< comment holds 65,536 characters, a step's summary 1 MiB for all steps)
    bool verbose;       ///< of text: every figure, also those that pass
    const char *style;  ///< of HTML: the style of the page; NULL: none
    const char *script; ///< of HTML: makes its tables sort; NULL: none
} tide_gate_output_options;

/// For a terminal or a log: verdict first, then what failed with its cause and what to do, then what warned, new,
/// removed, and one line for all that is as it was.
void tide_gate_print_text(const tide_gate_result *r, const tide_gate_output_options *opt, tide_text *out);
/// For a step's summary or a comment. Ends with a newline, so that it can be appended to.
void tide_gate_print_markdown(const tide_gate_result *r, const tide_gate_output_options *opt, tide_text *out);
/// `tidemark.check`, version 3 (docs/schemas/check.json), and a newline.
void tide_gate_print_json(const tide_gate_result *r, tide_text *out);
/// A test case for each case and metric that was judged; failures with their causes. Valid by the common JUnit schema.
void tide_gate_print_junit(const tide_gate_result *r, tide_text *out);
/// SARIF 2.1.0; a clean run is a run with no results. Locations: the file that was measured, or its entry in the
/// configuration. A newline ends it.
void tide_gate_print_sarif(const tide_gate_result *r, tide_text *out);
/// Workflow commands of GitHub, one for each case that fails or warns: at most 10 errors and 10 warnings, escaped; the
/// rest is counted in the last one.
void tide_gate_print_annotations(const tide_gate_result *r, tide_text *out);

/// A page of baseline (A) against current (B): of each case that failed, warned or changed its peaks, causes, figures
/// and tensors of both sides, and what is not known. It loads nothing.
void tide_gate_print_html(const tide_gate_result *r, const tide_gate_output_options *opt, tide_text *out);

/// A word of a shell command behind what is there: quoted where it must be (POSIX, 2.2.2).
void tide_gate_add_word(tide_text *out, const char *word);

#ifdef __cplusplus
}
#endif
#endif
