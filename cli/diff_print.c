// SPDX-License-Identifier: MIT
//
// A comparison as Markdown and JSON. See diff_view.h.
#include <inttypes.h>
#include <string.h>

#include "cli/diff_words.h"

// ---- Markdown ----

/// A name inside a table's cell: nothing in it is taken for markup, a mention or the end of a cell.
static void add_cell(tide_text *out, const char *text) {
    char clean[200];
    cli_clean(text, clean, sizeof clean);
    for (const char *c = clean; *c != '\0'; c++) {
        switch (*c) {
        case '<':
            tide_text_add(out, "&lt;");
            break;
        case '>':
            tide_text_add(out, "&gt;");
            break;
        case '&':
            tide_text_add(out, "&amp;");
            break;
        case '@':
            tide_text_add(out, "&#64;");
            break;
        case '|':
        case '\\':
        case '`':
        case '*':
        case '_':
        case '[':
        case ']':
        case '~':
        case '#':
        case '!':
            tide_text_addf(out, "\\%c", *c);
            break;
        default:
            tide_text_add_n(out, c, 1);
        }
    }
}

static void add_side(const cli_diff_view *v, bool is_b, tide_text *out) {
    const cli_diff_side *s = is_b ? &v->b : &v->a;
    char at[160];
    tide_text_add(out, is_b ? "| B | " : "| A | ");
    add_cell(out, s->path);
    tide_text_add(out, " | ");
    add_cell(out, s->facts->title);
    tide_text_add(out, " | ");
    add_cell(out, cli_diff_moment(s, at, sizeof at));
    tide_text_add(out, " |\n");
}

static void add_bytes_cells(uint64_t a, uint64_t b, bool percent, tide_text *out) {
    char text[24], change[64];
    tide_text_addf(out, " %s |", tide_format_bytes(a, text, sizeof text));
    tide_text_addf(out, " %s |", tide_format_bytes(b, text, sizeof text));
    tide_text_addf(out, " %s |\n", cli_diff_change(a, b, percent, change, sizeof change));
}

static void add_waterfall(const cli_diff_view *v, const char *title, const tide_diff_step *list, size_t n,
                          tide_text *out) {
    const size_t n_changed = cli_diff_n_changed(list, n);
    const size_t shown = v->max_rows == 0 || n_changed <= v->max_rows ? n_changed : v->max_rows;
    if (n_changed == 0) return;
    tide_text_addf(out, "\n| %s | A | B | Change |\n|---|--:|--:|--:|\n", title);
    for (size_t i = 0; i < shown; i++) {
        char name[600];
        tide_text_add(out, "| ");
        add_cell(out, cli_diff_key(&list[i], name, sizeof name));
        tide_text_add(out, " |");
        add_bytes_cells(list[i].a_bytes, list[i].b_bytes, false, out);
    }
    const cli_diff_rest rest = cli_diff_sum(list + shown, n - shown);
    if (rest.n_changed > 0) {
        tide_text_addf(out, "| (%zu others) |", rest.n_changed);
        add_bytes_cells(rest.a_bytes, rest.b_bytes, false, out);
    }
}

static void add_row(const cli_diff_view *v, const tide_diff_row *r, tide_text *out) {
    char text[24], what[80], change[64];
    tide_text_add(out, "| ");
    add_cell(out, r->name[0] != '\0' ? r->name : "(no name)");
    tide_text_add(out, " | ");
    add_cell(out, r->owner);
    tide_text_addf(out, " | %s |", cli_diff_what(v, r, what, sizeof what));
    tide_text_addf(out, " %s |", r->what & TIDE_DIFF_ADDED ? "" : tide_format_bytes(r->a_bytes, text, sizeof text));
    tide_text_addf(out, " %s |", r->what & TIDE_DIFF_REMOVED ? "" : tide_format_bytes(r->b_bytes, text, sizeof text));
    tide_text_addf(out, " %s |\n",
                   r->a_at_bytes == r->b_at_bytes
                       ? ""
                       : cli_diff_change(r->a_at_bytes, r->b_at_bytes, false, change, sizeof change));
}

static void add_rows(const cli_diff_view *v, tide_text *out) {
    const tide_diff *d = v->diff;
    char counts[160];
    size_t n = 0;
    tide_text_addf(out, "\n%s.\n", cli_diff_counts(v, counts, sizeof counts));
    for (size_t i = 0; i < d->n; i++) {
        if (!cli_diff_row_differs(&d->rows[i])) continue;
        if (n == 0) tide_text_add(out, "\n| Tensor | Operator | What | A | B | Held |\n|---|---|---|--:|--:|--:|\n");
        if (v->max_rows == 0 || n < v->max_rows) add_row(v, &d->rows[i], out);
        n++;
    }
    if (v->max_rows != 0 && n > v->max_rows) tide_text_addf(out, "\n… and %zu more.\n", n - v->max_rows);
}

void cli_diff_markdown(const cli_diff_view *v, tide_text *out) {
    cli_diff_figure figures[CLI_DIFF_MAX_FIGURES];
    char change[64];
    const tide_diff *d = v->diff;
    if (!cli_diff_differs(d))
        tide_text_add(out, "**Nothing differs.**\n\n");
    else
        tide_text_addf(out, "**Held: %s**\n\n", cli_diff_change(d->a_bytes, d->b_bytes, true, change, sizeof change));
    tide_text_add(out, "|   | File | What | When |\n|---|---|---|---|\n");
    add_side(v, false, out);
    add_side(v, true, out);
    tide_text_add(out, "\n|   | A | B | Change |\n|---|--:|--:|--:|\n");
    const size_t n = cli_diff_figures(v, figures);
    for (size_t i = 0; i < n; i++) {
        tide_text_addf(out, "| %s |", figures[i].title);
        add_bytes_cells(figures[i].a, figures[i].b, true, out);
    }
    if (!cli_diff_differs(d)) return;
    add_waterfall(v, "By operator", d->by_owner, d->n_by_owner, out);
    add_waterfall(v, "By kind", d->by_kind, d->n_by_kind, out);
    add_rows(v, out);
}

// ---- JSON ----

static json_t *change_json(uint64_t a, uint64_t b) { return json_integer((json_int_t)b - (json_int_t)a); }

static json_t *side_json(const cli_diff_side *s) {
    json_t *o = json_object();
    const char *step = cli_diff_step(s);
    json_object_set_new(o, "file", cli_json_text(s->path));
    json_object_set_new(o, "title", cli_json_text(s->facts->title));
    json_object_set_new(o, "axis", json_string(s->facts->is_trace ? "ns" : "step"));
    json_object_set_new(o, "asked", cli_json_text(s->asked != NULL ? s->asked : "peak"));
    json_object_set_new(o, "at", json_integer(s->at.t - s->facts->origin));
    json_object_set_new(o, "event", s->at.event != 0 ? json_integer((json_int_t)s->at.event) : json_null());
    json_object_set_new(o, "step", step != NULL ? cli_json_text(step) : json_null());
    return o;
}

static json_t *waterfall_json(const tide_diff_step *list, size_t n) {
    json_t *rows = json_array();
    for (size_t i = 0; i < n; i++) {
        json_t *o = json_object();
        json_object_set_new(o, "key", cli_json_text(list[i].key));
        json_object_set_new(o, "part", json_boolean(list[i].is_part));
        json_object_set_new(o, "a_bytes", cli_json_bytes(list[i].a_bytes));
        json_object_set_new(o, "b_bytes", cli_json_bytes(list[i].b_bytes));
        json_object_set_new(o, "change_bytes", change_json(list[i].a_bytes, list[i].b_bytes));
        json_array_append_new(rows, o);
    }
    return rows;
}

static json_t *words_json(unsigned what) {
    json_t *list = json_array();
    for (unsigned i = 0; i < TIDE_DIFF_N_CHANGES; i++)
        if (what & (1u << i)) json_array_append_new(list, json_string(tide_diff_change_name(i)));
    return list;
}

static json_t *row_json(const tide_diff_row *r) {
    json_t *o = json_object();
    json_object_set_new(o, "name", cli_json_text(r->name));
    json_object_set_new(o, "owner", r->owner[0] != '\0' ? cli_json_text(r->owner) : json_null());
    json_object_set_new(o, "what", words_json(r->what));
    json_object_set_new(o, "a_bytes", r->what & TIDE_DIFF_ADDED ? json_null() : cli_json_bytes(r->a_bytes));
    json_object_set_new(o, "b_bytes", r->what & TIDE_DIFF_REMOVED ? json_null() : cli_json_bytes(r->b_bytes));
    json_object_set_new(o, "a_held_bytes", cli_json_bytes(r->a_at_bytes));
    json_object_set_new(o, "b_held_bytes", cli_json_bytes(r->b_at_bytes));
    json_object_set_new(o, "change_bytes", change_json(r->a_at_bytes, r->b_at_bytes));
    return o;
}

json_t *cli_diff_json(const cli_diff_view *v) {
    const tide_diff *d = v->diff;
    cli_diff_figure figures[CLI_DIFF_MAX_FIGURES];
    json_t *doc = cli_json_document("diff"), *list = json_array(), *counts = json_object(), *rows = json_array();
    json_object_set_new(doc, "differs", json_boolean(cli_diff_differs(d)));
    json_object_set_new(doc, "a", side_json(&v->a));
    json_object_set_new(doc, "b", side_json(&v->b));
    const size_t n = cli_diff_figures(v, figures);
    for (size_t i = 0; i < n; i++) {
        json_t *o = json_object();
        json_object_set_new(o, "figure", json_string(figures[i].key));
        json_object_set_new(o, "a_bytes", cli_json_bytes(figures[i].a));
        json_object_set_new(o, "b_bytes", cli_json_bytes(figures[i].b));
        json_object_set_new(o, "change_bytes", change_json(figures[i].a, figures[i].b));
        json_array_append_new(list, o);
    }
    json_object_set_new(doc, "figures", list);
    json_object_set_new(doc, "by_operator", waterfall_json(d->by_owner, d->n_by_owner));
    json_object_set_new(doc, "by_kind", waterfall_json(d->by_kind, d->n_by_kind));
    for (unsigned i = 0; i < TIDE_DIFF_N_CHANGES; i++)
        json_object_set_new(counts, tide_diff_change_name(i), json_integer((json_int_t)tide_diff_n_changed(d, i)));
    json_object_set_new(counts, "unchanged", json_integer((json_int_t)d->n_unchanged));
    json_object_set_new(doc, "counts", counts);
    for (size_t i = 0; i < d->n; i++)
        if (cli_diff_row_differs(&d->rows[i])) json_array_append_new(rows, row_json(&d->rows[i]));
    json_object_set_new(doc, "rows", rows);
    return doc;
}
