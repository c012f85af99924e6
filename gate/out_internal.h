// SPDX-License-Identifier: MIT
//
// out_internal: what the seven outputs share: foreign text made showable, the words for a verdict, a figure and a
// cause, and the escapes of each format. All words are plain text of one line; each format escapes them as a whole.
#ifndef TIDE_GATE_OUT_INTERNAL_H
#define TIDE_GATE_OUT_INTERNAL_H

#include "gate/outputs.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Characters of a name, of a sentence, and of either where programs read it: longer ones lose their middle.
enum { TIDE__GATE_NAME_CHARS = 160, TIDE__GATE_SENTENCE_CHARS = 600, TIDE__GATE_JSON_CHARS = 4096 };
enum { TIDE__GATE_MAX_CAUSES = 5 };

// ---- out_clean.c ----

/// `text` as one line of valid UTF-8: control characters, line separators, bytes that are no UTF-8, what turns the
/// direction of text or cannot be seen, and what XML forbids are shown as \n, \x1b, \u202e. Of more than `max_chars`
/// characters the middle is left out, and how many that are stands in its place.
void tide__gate_clean(tide_text *out, const char *text, size_t max_chars);
/// Of plain text for a log: "##", which runners take for a command anywhere in a line, is shown as "#\x23".
void tide__gate_for_log(tide_text *out, const char *plain);
/// For XML content and attributes.
void tide__gate_for_xml(tide_text *out, const char *plain);
/// Between backticks or inside a fence of Markdown, also within a table: backticks and pipes are shown as \x60, \x7c.
void tide__gate_for_code(tide_text *out, const char *plain);
/// For a workflow command of GitHub: %, CR and LF as %25, %0D, %0A; of a property also : and , as %3A and %2C.
void tide__gate_for_command(tide_text *out, const char *plain, bool is_property);
/// For a message of SARIF: "](", which would begin a link, is shown as "]\x28" (2.1.0, section 3.11.6).
void tide__gate_for_sarif(tide_text *out, const char *plain);
/// A relative reference or a file URI (RFC 3986).
void tide__gate_for_uri(tide_text *out, const char *path);
/// `escape` of what `plain` holds, then `plain` is empty again; a failure of either stays in `out`.
void tide__gate_flush(tide_text *out, tide_text *plain, void (*escape)(tide_text *, const char *));

// ---- out_words.c ----

/// One thing that failed or warned, in the form that lists of findings want.
typedef struct tide__gate_finding {
    const tide_gate_judged *judged; ///< NULL: the whole, nothing could be compared
    const tide_gate_row *row;       ///< NULL: the case as a whole
    bool is_error;
} tide__gate_finding;

/// In which order cases are told.
typedef enum tide__gate_rank {
    TIDE__GATE_TOLD_FAIL,
    TIDE__GATE_TOLD_NOT_COMPARABLE,
    TIDE__GATE_TOLD_WARN,
    TIDE__GATE_TOLD_PASS, ///< it changed, was added or removed, and that is allowed
    TIDE__GATE_QUIET,     ///< as it was: counted, not told
    TIDE__GATE_N_RANKS
} tide__gate_rank;
tide__gate_rank tide__gate_rank_of(const tide_gate_judged *c);
/// "FAIL", "NOT COMPARABLE", "WARN", "pass".
const char *tide__gate_word(tide_gate_verdict v);
/// "FAIL: 2 of 12 cases failed, 1 warned, 9 pass; 1 added".
void tide__gate_say_verdict(tide_text *out, const tide_gate_result *r);
/// Whether a row is worth a line: it is no pass, or an exact figure of it differs.
bool tide__gate_row_is_told(const tide_gate_row *row);
/// "25.00 KiB (25600) -> 50.00 KiB (51200), +25.00 KiB (+100 %)".
void tide__gate_say_figures(tide_text *out, const tide_gate_row *row);
/// "13 cases were measured on another machine than the baseline's (instructions: …): figures with kernels' scratch are
/// not judged"; nothing where there is none.
void tide__gate_say_elsewhere(tide_text *out, const tide_gate_result *r);
/// "planned_bytes: 25 KiB … (+100 %); worse than the baseline; limit: any growth (the default)".
void tide__gate_say_row(tide_text *out, const tide_gate_row *row);
/// "worse than the baseline", "over its budget", "below its budget", "better than the baseline".
const char *tide__gate_breach(const tide_gate_row *row);
/// The reason, the causes and what made the change of the peak ("peak +25.00 KiB by operator: conv1 +10.00 KiB, 3 more
/// +15.00 KiB") as lines of their own, each behind `head` and before `tail`.
void tide__gate_say_why(tide_text *out, const tide_gate_judged *c, size_t max_causes, const char *head,
                        const char *tail);

/// Calls `each` for every finding: failures first, then what warns, in the order of keys and metrics.
void tide__gate_each_finding(const tide_gate_result *r, void (*each)(void *ctx, const tide__gate_finding *f),
                             void *ctx);
/// "models/a.json: planned_bytes", one line.
void tide__gate_say_title(tide_text *out, const tide__gate_finding *f);
/// What, by how much, the limit and the causes; lines are parted by `tail`.
void tide__gate_say_finding(tide_text *out, const tide_gate_result *r, const tide__gate_finding *f, const char *tail);

// ---- out_advice.c ----

/// What can be done about a verdict: several may hold.
typedef struct tide__gate_advice {
    bool accept;     ///< a baseline can take it over: tide__gate_say_command
    bool make;       ///< there is no usable baseline yet: the same command makes it
    bool budget;     ///< something is over its budget: only its place in the configuration changes that
    bool unmeasured; ///< something could not be measured: no baseline takes that over
} tide__gate_advice;
tide__gate_advice tide__gate_advise(const tide_gate_result *r);
/// That part of the whole advice which is about one finding.
tide__gate_advice tide__gate_advise_finding(const tide_gate_result *r, const tide__gate_finding *f);
/// `tidemark check --update-baseline --reason "…"`, with the configuration where it is not the default's name.
void tide__gate_say_command(tide_text *out, const tide_gate_result *r);
/// The advice as sentences, a line each, behind `head` and before `tail`.
void tide__gate_say_advice(tide_text *out, const tide_gate_result *r, tide__gate_advice a, const char *head,
                           const char *tail);

/// Where a finding is shown: the file that was measured; where there is none its entry in the configuration; without a
/// configuration the baseline. `c` NULL: nothing could be compared. @return a path, "" none; *line is 0 where none is
/// known
const char *tide__gate_place(const tide_gate_result *r, const tide_gate_judged *c, unsigned *line);

#ifdef __cplusplus
}
#endif
#endif
