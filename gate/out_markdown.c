// SPDX-License-Identifier: MIT
//
// A result as Markdown, for a step's summary or a comment. See outputs.h.
//
// Names stand inside code alone: in a table between backticks, below it inside a fence, in a <summary> inside <code>.
// There nothing is a link, a mention, a reference or HTML; what could end the code is shown as an escape.
//
// The table is written here and not by tide_table_lines (analysis/table.h): nothing else writes it, its rows end at a
// limit of bytes and its cells are code of any length, so that declaring it took 65 lines more for the same output.
#include <stdio.h>

#include "gate/out_internal.h"

enum { DEFAULT_MAX_BYTES = 60000, ROOM_FOR_MISSING = 192 };

/// What is written so far and what was left out.
typedef struct page {
    tide_text *out;
    size_t max_bytes; ///< of what this call adds, less what must follow
    size_t begin;     ///< out->len before it
    size_t rows, rows_left, causes, causes_left;
    bool full; ///< nothing more of this sort: a part is never left out between two others
} page;

/// Take `part` when it fits; else count it as left out.
static bool take(page *p, tide_text *part) {
    if (part->failed) p->out->failed = true;
    const bool fits = !p->full && p->out->len - p->begin + part->len <= p->max_bytes;
    if (fits) tide_text_add(p->out, tide_text_str(part));
    p->full = !fits;
    tide_text_deinit(part);
    *part = (tide_text){0};
    return fits;
}

/// A cell of a table: " `text` |".
static void add_cell(tide_text *out, tide_text *plain) {
    if (plain->failed) out->failed = true;
    if (plain->len == 0) {
        tide_text_add(out, " |");
        return;
    }
    tide_text_add(out, " `");
    tide__gate_flush(out, plain, tide__gate_for_code);
    tide_text_add(out, "` |");
}

static void add_key_cell(tide_text *out, const tide_gate_judged *c, tide_gate_verdict verdict) {
    tide_text plain = {0};
    tide_text_addf(out, "| %s |", tide__gate_word(verdict));
    tide__gate_clean(&plain, c->key, TIDE__GATE_NAME_CHARS);
    add_cell(out, &plain);
}

/// One row of the table; row NULL: the case as a whole.
static void add_row(tide_text *out, const tide_gate_judged *c, const tide_gate_row *row) {
    tide_text plain = {0};
    add_key_cell(out, c, row != NULL ? row->verdict : c->verdict);
    if (row == NULL) {
        tide_text_addf(out, " %s | | | |", tide_gate_state_name(c->state));
        if (c->reason != NULL) tide__gate_clean(&plain, c->reason, TIDE__GATE_SENTENCE_CHARS);
        add_cell(out, &plain);
        tide_text_add(out, "\n");
        return;
    }
    const tide_gate_unit unit = tide_gate_metric_get(row->metric)->unit;
    char id[96], a[96], b[96], change[96];
    tide_text_addf(out, " %s | %s | %s | %s |", tide_gate_metric_text(row->metric, row->kind, id, sizeof id),
                   tide_gate_value_text(unit, row->baseline, a, sizeof a),
                   tide_gate_value_text(unit, row->current, b, sizeof b),
                   row->baseline.known && row->current.known
                       ? tide_gate_change_text(unit, row->baseline, row->current, change, sizeof change)
                       : "");
    if (row->verdict != TIDE_GATE_PASS_VERDICT) {
        tide_text_add(&plain, tide__gate_breach(row));
        if (row->limit[0] != '\0') tide_text_add(&plain, ": ");
        tide__gate_clean(&plain, row->limit, TIDE__GATE_SENTENCE_CHARS);
    }
    add_cell(out, &plain);
    tide_text_add(out, "\n");
}

static void take_row(page *p, const tide_gate_judged *c, const tide_gate_row *row) {
    tide_text line = {0};
    p->rows++;
    add_row(&line, c, row);
    if (!take(p, &line)) p->rows_left++;
}

static void take_rows(page *p, const tide_gate_judged *c) {
    size_t n_told = 0;
    for (size_t i = 0; i < c->n_rows; i++) {
        if (!tide__gate_row_is_told(&c->rows[i])) continue;
        take_row(p, c, &c->rows[i]);
        n_told++;
    }
    if (n_told == 0 || c->reason != NULL) take_row(p, c, NULL);
}

static void take_causes(page *p, const tide_gate_judged *c, size_t max_causes) {
    tide_text why = {0}, key = {0}, part = {0};
    tide__gate_say_why(&why, c, max_causes, "- ", "\n");
    if (why.failed) p->out->failed = true;
    if (why.len > 0) {
        p->causes++;
        tide__gate_clean(&key, c->key, TIDE__GATE_NAME_CHARS);
        tide_text_addf(&part, "\n<details><summary>%s <code>", tide__gate_word(c->verdict));
        tide__gate_flush(&part, &key, tide__gate_for_xml);
        tide_text_add(&part, "</code>: why</summary>\n\n```text\n");
        tide__gate_flush(&part, &why, tide__gate_for_code);
        tide_text_add(&part, "```\n\n</details>\n");
        if (!take(p, &part)) p->causes_left++;
    }
    tide_text_deinit(&why);
    tide_text_deinit(&part);
}

static void add_head(tide_text *out, const tide_gate_result *r) {
    tide_text plain = {0};
    tide_text_add(out, "### tidemark check: ");
    tide__gate_say_verdict(out, r);
    tide_text_add(out, "\n\n");
    if (r->baseline_path[0] != '\0') {
        tide_text_add(out, "Baseline `");
        tide__gate_clean(&plain, r->baseline_path, TIDE__GATE_NAME_CHARS);
        tide__gate_flush(out, &plain, tide__gate_for_code);
        tide_text_add(out, "`");
        if (r->last_update != NULL && r->last_update[0] != '\0') {
            tide_text_add(out, ", last changed `");
            tide__gate_clean(&plain, r->last_update, TIDE__GATE_SENTENCE_CHARS);
            tide__gate_flush(out, &plain, tide__gate_for_code);
            tide_text_add(out, "`");
        }
        tide_text_add(out, ".\n\n");
    }
    if (r->reason != NULL) {
        tide_text_add(out, "`");
        tide__gate_clean(&plain, r->reason, TIDE__GATE_SENTENCE_CHARS);
        tide__gate_flush(out, &plain, tide__gate_for_code);
        tide_text_add(out, "`\n\n");
    }
}

/// What stands below, whatever was left out above.
static void add_foot(tide_text *out, const tide_gate_result *r, size_t n_quiet) {
    if (n_quiet > 0) tide_text_addf(out, "\nAs before or within budget: %zu of %zu.\n", n_quiet, r->n);
    tide_text advice = {0};
    tide__gate_say_advice(&advice, r, tide__gate_advise(r), "", "\n");
    if (advice.failed) out->failed = true;
    if (advice.len > 0) {
        tide_text_add(out, "\n```text\n");
        tide__gate_flush(out, &advice, tide__gate_for_code);
        tide_text_add(out, "```\n");
    }
}

static void take_table(page *p, const tide_gate_result *r, size_t max_rows) {
    static const char head[] = "| | case | what | baseline | now | change | limit |\n|---|---|---|--:|--:|--:|---|\n";
    size_t n_told = 0;
    tide_text line = {0};
    for (int rank = 0; rank < TIDE__GATE_QUIET; rank++) {
        for (size_t i = 0; i < r->n; i++) {
            if ((int)tide__gate_rank_of(&r->cases[i]) != rank) continue;
            if (n_told++ == 0) {
                tide_text_add(&line, head);
                take(p, &line);
            }
            if (max_rows > 0 && n_told > max_rows) p->full = true;
            take_rows(p, &r->cases[i]);
        }
    }
}

void tide_gate_print_markdown(const tide_gate_result *r, const tide_gate_output_options *opt, tide_text *out) {
    static const tide_gate_output_options defaults = {0};
    if (opt == NULL) opt = &defaults;
    const size_t max_causes = opt->max_causes > 0 ? opt->max_causes : TIDE__GATE_MAX_CAUSES;
    const size_t max_bytes = opt->max_bytes > 0 ? opt->max_bytes : DEFAULT_MAX_BYTES;
    size_t n_quiet = 0, n_told = 0;
    for (size_t i = 0; i < r->n; i++) n_quiet += tide__gate_rank_of(&r->cases[i]) == TIDE__GATE_QUIET;
    tide_text foot = {0};
    add_foot(&foot, r, n_quiet);
    const size_t kept = foot.len + ROOM_FOR_MISSING;
    page p = {.out = out, .max_bytes = max_bytes > kept ? max_bytes - kept : 0, .begin = out->len};
    add_head(out, r);
    take_table(&p, r, opt->max_rows);
    p.full = false;
    for (int rank = 0; rank < TIDE__GATE_QUIET; rank++) {
        for (size_t i = 0; i < r->n; i++) {
            if ((int)tide__gate_rank_of(&r->cases[i]) != rank) continue;
            if (opt->max_rows > 0 && n_told++ >= opt->max_rows) p.full = true;
            take_causes(&p, &r->cases[i], max_causes);
        }
    }
    if (p.rows_left + p.causes_left > 0)
        tide_text_addf(out, "\nLeft out here: %zu of %zu rows, the causes of %zu of %zu cases. The JSON has all.\n",
                       p.rows_left, p.rows, p.causes_left, p.causes);
    tide__gate_flush(out, &foot, tide_text_add);
}
