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
    tide_text clean = {0};
    tide_utf8_add_clean(&clean, text);
    for (const char *c = tide_text_str(&clean); *c != '\0'; c++) {
        if (p->markdown && strchr("\\`*_[]<>#|~&", *c) != NULL) tide_text_add(p->out, "\\");
        tide_text_add_n(p->out, c, 1);
    }
    if (clean.failed) p->out->failed = true;
    tide_text_deinit(&clean);
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

/// Cells of the rows that are shown, said.
typedef struct said {
    char **cells; // [rows][columns], owned
    size_t n_rows;
    int n_columns;
    bool shown[TIDE_REPORT_MAX_COLUMNS]; // a column that knows nothing is left out
} said;

static bool is_number(const tide_report_table *t, int column) {
    return t->columns[column].unit != TIDE_UNIT_TEXT && t->columns[column].unit != TIDE_UNIT_FLAG;
}

static void said_deinit(said *s) {
    for (size_t i = 0; s->cells != NULL && i < s->n_rows * (size_t)s->n_columns; i++) tide_host_free(s->cells[i]);
    tide_host_free(s->cells);
}

static bool say_all(const paper *p, const tide_report_table *t, size_t max, said *s) {
    *s = (said){.n_rows = t->n_rows < max ? t->n_rows : max, .n_columns = t->n_columns};
    s->cells = tide_host_calloc(s->n_rows * (size_t)s->n_columns + 1, sizeof *s->cells);
    if (s->cells == NULL) return false;
    for (int c = 0; c < s->n_columns; c++) s->shown[c] = tide_report_knows(t, c);
    for (size_t row = 0; row < s->n_rows; row++) {
        for (int c = 0; c < s->n_columns; c++) {
            tide_report_value v = {0};
            char buf[96];
            t->value(t, row, c, &v);
            tide_text text = {0};
            paper cell = {&text, p->markdown};
            add_foreign(&cell, tide_report_say(t, c, &v, buf, sizeof buf));
            s->cells[row * (size_t)s->n_columns + (size_t)c] = tide_host_strdup(tide_text_str(&text));
            const bool failed = text.failed || s->cells[row * (size_t)s->n_columns + (size_t)c] == NULL;
            tide_text_deinit(&text);
            if (failed) return false;
        }
    }
    return true;
}

enum { MAX_WIDTH = 40 };

/// Characters, not bytes; a name of another script may stand a little askew.
static size_t width_of(const char *text) {
    size_t n = 0;
    for (; *text != '\0'; text++) n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

static void add_padded(paper *p, const char *text, size_t width, bool right) {
    const size_t w = width_of(text), pad = w < width ? width - w : 0;
    if (right) tide_text_addf(p->out, "%*s", (int)pad, "");
    tide_text_add(p->out, text);
    if (!right) tide_text_addf(p->out, "%*s", (int)pad, "");
}

static void plain_rows(paper *p, const tide_report_table *t, const said *s) {
    size_t widths[TIDE_REPORT_MAX_COLUMNS] = {0};
    int last = 0;
    for (int c = 0; c < t->n_columns; c++)
        if (s->shown[c]) last = c;
    for (int c = 0; c < t->n_columns; c++) {
        widths[c] = width_of(t->columns[c].title);
        for (size_t row = 0; row < s->n_rows; row++) {
            const size_t w = width_of(s->cells[row * (size_t)s->n_columns + (size_t)c]);
            if (w > widths[c]) widths[c] = w;
        }
        if (widths[c] > MAX_WIDTH) widths[c] = MAX_WIDTH;
    }
    for (size_t line = 0; line <= s->n_rows; line++) {
        for (int c = 0; c < t->n_columns; c++) {
            const char *text =
                line == 0 ? t->columns[c].title : s->cells[(line - 1) * (size_t)s->n_columns + (size_t)c];
            if (!s->shown[c]) continue;
            if (c > 0) tide_text_add(p->out, "  ");
            add_padded(p, text, c < last || is_number(t, c) ? widths[c] : 0, is_number(t, c));
        }
        tide_text_add(p->out, "\n");
    }
}

static void markdown_rows(paper *p, const tide_report_table *t, const said *s) {
    for (int c = 0; c < t->n_columns; c++)
        if (s->shown[c]) tide_text_addf(p->out, "| %s ", t->columns[c].title);
    tide_text_add(p->out, "|\n");
    for (int c = 0; c < t->n_columns; c++)
        if (s->shown[c]) tide_text_add(p->out, is_number(t, c) ? "| ---: " : "| --- ");
    tide_text_add(p->out, "|\n");
    for (size_t row = 0; row < s->n_rows; row++) {
        for (int c = 0; c < t->n_columns; c++)
            if (s->shown[c]) tide_text_addf(p->out, "| %s ", s->cells[row * (size_t)s->n_columns + (size_t)c]);
        tide_text_add(p->out, "|\n");
    }
}

static void table(paper *p, const tide_report_table *t, size_t max) {
    char title[160];
    snprintf(title, sizeof title, "%s%s", t->title,
             t->report->has_b && t->of[0] == 'a' ? " (A)"
             : t->of[0] == 'b'                   ? " (B)"
                                                 : "");
    heading(p, 2, title);
    if (t->what[0] != '\0') tide_text_addf(p->out, "%s\n%s", t->what, p->markdown ? "\n" : "");
    if (t->n_rows == 0) {
        tide_text_addf(p->out, "%s\n", t->empty);
        return;
    }
    said s;
    if (!say_all(p, t, max, &s))
        p->out->failed = true;
    else if (p->markdown)
        markdown_rows(p, t, &s);
    else
        plain_rows(p, t, &s);
    said_deinit(&s);
    if (t->n_rows > max) tide_text_addf(p->out, "%s%zu more rows.\n", p->markdown ? "\n" : "", t->n_rows - max);
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
