// SPDX-License-Identifier: MIT
//
// What can be done about a verdict, and where its limits stand. See out_internal.h.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/out_internal.h"

/// A row that a new baseline would take over.
static bool is_of_baseline(const tide_gate_row *row) {
    return row->verdict != TIDE_GATE_PASS_VERDICT && !row->over_budget;
}

/// Whether the change's own baseline has taken it over: what judged it says so.
static bool is_accepted(const tide_gate_judged *c) {
    static const char word[] = "accepted: ";
    return c->reason != NULL && strncmp(c->reason, word, sizeof word - 1) == 0;
}

tide__gate_advice tide__gate_advise(const tide_gate_result *r) {
    tide__gate_advice a = {.unmeasured = r->n_unmeasured > 0};
    if (r->reason != NULL && r->verdict == TIDE_GATE_NOT_COMPARABLE_VERDICT) a.make = true;
    bool changed = false;
    for (size_t i = 0; i < r->n; i++) {
        const tide_gate_judged *c = &r->cases[i];
        bool by_row = false;
        if (is_accepted(c)) continue;
        for (size_t k = 0; k < c->n_rows; k++) {
            by_row = by_row || c->rows[k].verdict == c->verdict;
            a.budget = a.budget || (c->rows[k].verdict != TIDE_GATE_PASS_VERDICT && c->rows[k].over_budget);
            changed = changed || is_of_baseline(&c->rows[k]);
        }
        const bool by_state = c->verdict != TIDE_GATE_PASS_VERDICT && !by_row;
        changed = changed || (by_state && c->state != TIDE_GATE_CASE_UNMEASURED && c->state != TIDE_GATE_CASE_ALONE);
    }
    // An update refuses what could not be measured: then the command would only fail.
    a.accept = changed && !a.make && !a.unmeasured && !r->is_final;
    a.make = a.make && !r->is_final;
    return a;
}

tide__gate_advice tide__gate_advise_finding(const tide_gate_result *r, const tide__gate_finding *f) {
    const tide__gate_advice all = tide__gate_advise(r);
    if (f->judged == NULL) return (tide__gate_advice){.make = all.make};
    if (is_accepted(f->judged)) return (tide__gate_advice){0};
    if (f->row != NULL)
        return (tide__gate_advice){.accept = all.accept && !f->row->over_budget, .budget = f->row->over_budget};
    const bool unmeasured = f->judged->state == TIDE_GATE_CASE_UNMEASURED;
    return (tide__gate_advice){.accept = all.accept && !unmeasured, .unmeasured = unmeasured};
}

/// A word of a shell command: quoted where it must be (POSIX, 2.2.2).
void tide_gate_add_word(tide_text *out, const char *word) {
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/+=:@%";
    if (word[0] != '\0' && word[0] != '-' && word[0] != '~' && word[strspn(word, plain)] == '\0') {
        tide_text_add(out, word);
        return;
    }
    tide_text_add(out, word[0] == '-' ? "./'" : "'");
    for (; *word != '\0'; word++) {
        if (*word == '\'')
            tide_text_add(out, "'\\''");
        else
            tide_text_add_n(out, word, 1);
    }
    tide_text_add(out, "'");
}

static bool is_default_config(const char *path) {
    return strcmp(path, "tidemark.toml") == 0 || strcmp(path, "./tidemark.toml") == 0;
}

void tide__gate_say_command(tide_text *out, const tide_gate_result *r) {
    tide_text command = {0};
    if (r->command != NULL) {
        tide__gate_clean(out, r->command, TIDE__GATE_SENTENCE_CHARS);
        return;
    }
    tide_text_add(&command, "tidemark check");
    if (r->config_path[0] == '\0') {
        tide_text_add(&command, " FILE… --baseline ");
        tide_gate_add_word(&command, r->baseline_path[0] != '\0' ? r->baseline_path : "BASELINE");
    } else if (!is_default_config(r->config_path)) {
        tide_text_add(&command, " --config ");
        tide_gate_add_word(&command, r->config_path);
    }
    tide_text_add(&command, " --update-baseline --reason \"…\"");
    tide__gate_clean(out, tide_text_str(&command), TIDE__GATE_SENTENCE_CHARS);
    if (command.failed) out->failed = true;
    tide_text_deinit(&command);
}

void tide__gate_say_advice(tide_text *out, const tide_gate_result *r, tide__gate_advice a, const char *head,
                           const char *tail) {
    if (a.accept || a.make) {
        tide_text_addf(out, "%s%s", head, a.make ? "to make a baseline: " : "to accept: ");
        tide__gate_say_command(out, r);
        tide_text_add(out, tail);
    }
    if (a.budget)
        tide_text_addf(out, "%sa budget is raised where it is set: no baseline accepts what is over it%s", head, tail);
    if (a.unmeasured)
        tide_text_addf(out, "%swhat could not be measured must be repaired or taken out: no baseline accepts it%s",
                       head, tail);
}

/// The number behind the colon at the end of "tidemark.toml:20"; 0: there is none.
static unsigned line_of(const char *origin) {
    const char *colon = strrchr(origin, ':');
    const unsigned long line = colon != NULL ? strtoul(colon + 1, NULL, 10) : 0;
    return line < 1u << 30 ? (unsigned)line : 0;
}

const char *tide__gate_place(const tide_gate_result *r, const tide_gate_judged *c, unsigned *line) {
    *line = 0;
    if (c != NULL && c->path != NULL) return c->path;
    if (r->config_path[0] == '\0') return r->baseline_path;
    if (c != NULL && c->origin != NULL) *line = line_of(c->origin);
    return r->config_path;
}
