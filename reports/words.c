// SPDX-License-Identifier: MIT
//
// Markdown and plain text: summary, conclusions, and of each table the first rows; what is left out is counted.
#include <stdio.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/base/utf8.h"
#include "reports/render.h"

typedef struct paper {
    tide_text *out;
    bool markdown;
} paper;

/// Foreign text: no line breaks, and in Markdown nothing that formats or ends a cell.
static void add_foreign(paper *p, const char *text) {
    (p->markdown ? tide_markdown_add : tide_utf8_add_clean)(p->out, text);
}

static void heading(paper *p, int level, const char *text) {
    if (p->markdown) {
        tide_text_addf(p->out, "\n%.*s ", level, "###");
        add_foreign(p, text);
        tide_text_add(p->out, "\n\n");
        return;
    }
    tide_text_add(p->out, "\n");
    add_foreign(p, text);
    tide_text_add(p->out, "\n");
    tide_text_add(p->out, level == 1 ? "====================\n" : "--------------------\n");
}

static void fact(void *ctx, const char *key, const char *value, const char *note) {
    paper *p = ctx;
    tide_text_addf(p->out, p->markdown ? "- **%s**: " : "%-22s ", key);
    add_foreign(p, value);
    if (note[0] != '\0') {
        tide_text_add(p->out, p->markdown ? " - " : "  ");
        add_foreign(p, note);
    }
    tide_text_add(p->out, "\n");
}

// ---- tables ----

static const tide_lines_style text_style = {.begin = "",
                                            .between = "  ",
                                            .end = "",
                                            .is_padded = true,
                                            .keeps_blanks = true,
                                            .max_width = 40,
                                            .escape = tide_utf8_add_clean};
static const tide_lines_style markdown_style = {.begin = "| ",
                                                .between = " | ",
                                                .end = " |",
                                                .rule = "| --- ",
                                                .rule_right = "| ---: ",
                                                .rule_end = "|",
                                                .escape = tide_markdown_add};

static void table(paper *p, const tide_report_table *t, size_t max) {
    char title[160];
    snprintf(title, sizeof title, "%s%s", t->title, t->side);
    heading(p, 2, title);
    if (t->what[0] != '\0') tide_text_addf(p->out, "%s\n%s", t->what, p->markdown ? "\n" : "");
    if (t->table.n_rows == 0) {
        tide_text_addf(p->out, "%s\n", t->empty);
        return;
    }
    tide_table_lines(&t->table, max, p->markdown ? &markdown_style : &text_style, p->out);
    if (t->table.n_rows > max)
        tide_text_addf(p->out, "%s%zu more rows.\n", p->markdown ? "\n" : "", t->table.n_rows - max);
}

/// Lines of sentences with foreign names in them; in Markdown a paragraph each.
static void sentences(paper *p, const tide_text *text) {
    for (const char *line = tide_text_str(text); *line != '\0' && !p->out->failed;) {
        const size_t n = strcspn(line, "\n");
        char *one = tide_host_calloc(n + 1, 1);
        if (one == NULL) {
            p->out->failed = true;
            return;
        }
        memcpy(one, line, n);
        add_foreign(p, one);
        tide_host_free(one);
        tide_text_add(p->out, p->markdown ? "\n\n" : "\n");
        line += n + (line[n] == '\n');
    }
    if (text->failed) p->out->failed = true;
}

static void side_head(paper *p, const tide_report *r, const tide_report_side *s, const char *name) {
    if (name[0] != '\0') heading(p, 2, name);
    tide_report_facts(r, s, fact, p);
    tide_text text = {0};
    tide_report_conclusions(s, &text);
    tide_text_add(p->out, "\n");
    sentences(p, &text);
    tide_text_deinit(&text);
}

void tide_report_words(const tide_report *r, bool markdown, tide_text *out) {
    paper p = {out, markdown};
    if (markdown) tide_text_add(out, "# ");
    add_foreign(&p, tide_report_title(&r->a));
    if (r->has_b) {
        tide_text_add(out, " and ");
        add_foreign(&p, tide_report_title(&r->b));
    }
    tide_text_add(out, markdown ? "\n\n" : "\n====================\n\n");
    side_head(&p, r, &r->a, r->has_b ? "A" : "");
    if (r->has_b) {
        side_head(&p, r, &r->b, "B");
        heading(&p, 2, "A and B");
        tide_text text = {0};
        tide_diff_print(&r->diff, r->a.subject, r->b.subject, 5, &text);
        sentences(&p, &text);
        tide_text_deinit(&text);
    }
    tide_report_table tables[TIDE_REPORT_MAX_TABLES];
    const size_t n = tide_report_tables(r, tables);
    for (size_t i = 0; i < n && !out->failed; i++) table(&p, &tables[i], r->opt.max_rows);
}
