// SPDX-License-Identifier: MIT
//
// See diff_view.h. Text looks so:
//
//     A  lenet5.json          lenet5: planned, search
//     B  lenet5-nofuse.json   lenet5: planned, search
//
//                            A           B     Change
//     held         51.00 KiB   71.00 KiB  +20.00 KiB (+39.2 %)     at the peak, in conv1 / relu1
//     …
//     by operator  A  B  Change  ####     sums to +20.00 KiB
//     by kind
//     tensors      name  operator  what  A  B  change of what is held
#include "cli/diff_view.h"

#include <inttypes.h>
#include <string.h>

#include "analysis/answer_tables.h"
#include "cli/cli.h"
#include "cli/table.h"
#include "core/base/host_alloc.h"

#define TEXT TIDE_UNIT_TEXT
#define NAME TIDE_UNIT_NAME
#define BYTES TIDE_UNIT_BYTES
#define CHANGE TIDE_UNIT_CHANGE

typedef enum format { AS_TEXT, AS_MARKDOWN } format;

static bool row_differs(const tide_diff_row *r) { return r->what != 0 || r->a_at_bytes != r->b_at_bytes; }

/// Steps that changed, and the sums of all.
typedef struct step_sum {
    size_t n_changed;
    uint64_t a_bytes, b_bytes;
} step_sum;

static step_sum sum_of(const tide_diff_step *list, size_t n) {
    step_sum sum = {0};
    for (size_t i = 0; i < n; i++) {
        sum.n_changed += list[i].a_bytes != list[i].b_bytes;
        sum.a_bytes += list[i].a_bytes;
        sum.b_bytes += list[i].b_bytes;
    }
    return sum;
}

bool cli_diff_differs(const tide_diff *d) {
    if (d->a_bytes != d->b_bytes || d->a_peak_bytes != d->b_peak_bytes) return true;
    if (d->n_added + d->n_removed + d->n_resized + d->n_moved + d->n_retimed > 0) return true;
    return sum_of(d->by_owner, d->n_by_owner).n_changed > 0; // as much, of others
}

/// "+20.00 KiB (+39.2 %)", "-512 B", "0 B"
static const char *change_percent(uint64_t a, uint64_t b, char *buf, size_t buf_bytes) {
    char bytes[32], share[32] = "";
    const double by = (double)(a > b ? a - b : b - a);
    if (a != 0 && a != b) snprintf(share, sizeof share, " (%s%.1f %%)", b > a ? "+" : "-", 100.0 * by / (double)a);
    snprintf(buf, buf_bytes, "%s%s", tide_format_change(a, b, bytes, sizeof bytes), share);
    return buf;
}

// ---- tables as lines ----

/// A name inside a cell of Markdown: nothing in it is taken for markup, a mention or the end of the cell.
static void add_markdown(tide_text *out, const char *text) {
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
        default:
            if (strchr("|\\`*_[]~#!", *c) != NULL) tide_text_add(out, "\\");
            tide_text_add_n(out, c, 1);
        }
    }
}

static void add_table(const tide_table *t, const char *indent, format f, tide_text *out) {
    static const tide_lines_style markdown = {.begin = "| ",
                                              .between = " | ",
                                              .end = " |",
                                              .rule = "|---",
                                              .rule_right = "|--:",
                                              .rule_end = "|",
                                              .escape = add_markdown};
    if (f == AS_MARKDOWN)
        tide_table_lines(t, SIZE_MAX, &markdown, out);
    else
        cli_table_add(t, indent, out);
}

// ---- the two sides ----

/// What runs at the moment; NULL: no name is known.
static const char *step_of(const cli_diff_side *side) {
    const tide_subject_facts *f = side->facts;
    const char *name = tide_subject_step_name_at(f, side->at.t);
    return name[0] != '\0' ? name : NULL;
}

typedef struct side_row {
    const char *letter, *path, *title;
    char moment[160];
} side_row;

/// "at its peak, in conv1", "2.5 ms from the begin, in conv1"
static side_row row_of_side(const cli_diff_side *side, const char *letter) {
    const tide_subject_facts *f = side->facts;
    const char *step = step_of(side);
    side_row row = {.letter = letter, .path = side->path, .title = f->title};
    char at[64], ns[32];
    if (side->asked == NULL || strcmp(side->asked, "peak") == 0)
        snprintf(at, sizeof at, "at its peak");
    else if (f->is_trace)
        snprintf(at, sizeof at, "%s from the begin", tide_subject_format_since(f, side->at.t, "us", ns, sizeof ns));
    else
        snprintf(at, sizeof at, "at step %" PRId64, side->at.t);
    snprintf(row.moment, sizeof row.moment, "%s%s%.80s", at, step != NULL ? ", in " : "", step != NULL ? step : "");
    return row;
}

static const tide_column side_columns[] = {
    {NULL, " ", TEXT, TIDE_AT(side_row, letter)},
    {NULL, "File", TEXT, TIDE_AT(side_row, path), .may_be_cut = true},
    {NULL, "What", TEXT, TIDE_AT(side_row, title), .may_be_cut = true},
    {NULL, "When", TEXT, TIDE_TEXT_AT(side_row, moment), .may_be_cut = true},
};

static void add_sides(const cli_diff_view *v, format f, tide_text *out) {
    const side_row rows[] = {row_of_side(&v->a, "A"), row_of_side(&v->b, "B")};
    const tide_table t = {TIDE_COLUMNS(side_columns), .rows = rows, .row_bytes = sizeof rows[0], .n_rows = 2};
    add_table(&t, "", f, out);
}

static void add_side_json(const cli_diff_side *s, const char *key, tide_json_out *j) {
    tide_json_open(j, key, '{');
    tide_json_text(j, "file", s->path);
    tide_json_text(j, "title", s->facts->title);
    tide_json_text(j, "axis", s->facts->is_trace ? "ns" : "step");
    tide_json_text(j, "asked", s->asked != NULL ? s->asked : "peak");
    tide_json_i64(j, "at", s->at.t - s->facts->origin);
    tide_json_bytes(j, "event", s->at.event != 0 ? s->at.event : TIDE_UNKNOWN_BYTES);
    tide_json_text(j, "step", step_of(s));
    tide_json_close(j, '}');
}

// ---- figures ----

typedef struct figure {
    const char *key, *title;
    uint64_t a, b;
} figure;

static void figure_change(const void *row, tide_cell *v) {
    const figure *f = row;
    tide_cell_change(v, f->a, f->b);
}
static void figure_percent(const void *row, tide_cell *v) {
    const figure *f = row;
    tide_cell_text(v, change_percent(f->a, f->b, v->buf, sizeof v->buf));
}

static const tide_column figure_columns[] = {
    {"figure", NULL, NAME, TIDE_AT(figure, key)},
    {NULL, " ", NAME, TIDE_AT(figure, title)},
    {"a_bytes", "A", BYTES, TIDE_AT(figure, a)},
    {"b_bytes", "B", BYTES, TIDE_AT(figure, b)},
    {"change_bytes", NULL, CHANGE, .get = figure_change},
    {NULL, "Change", TEXT, .is_right = true, .get = figure_percent},
};

enum { MAX_FIGURES = 8 };
/// Figures that both sides know; `out` is the table's.
static tide_table figures_of(const cli_diff_view *v, figure out[MAX_FIGURES]) {
    const tide_subject_facts *a = v->a.facts, *b = v->b.facts;
    const tide_diff *d = v->diff;
    const bool plans = a->has_plan && b->has_plan;
    const figure figures[] = {
        {"held_bytes", "held", d->a_bytes, d->b_bytes},
        {"peak_bytes", "peak", d->a_peak_bytes, d->b_peak_bytes},
        {"plan_bytes", "planned buffers", plans ? a->plan_bytes : TIDE_UNKNOWN_BYTES, b->plan_bytes},
        {"naive_bytes", "naive", plans ? a->naive_bytes : TIDE_UNKNOWN_BYTES, b->naive_bytes},
        {"lower_bound_bytes", "lower bound", plans ? a->lower_bound_bytes : TIDE_UNKNOWN_BYTES, b->lower_bound_bytes},
    };
    size_t n = 0;
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        if (figures[i].a == TIDE_UNKNOWN_BYTES || figures[i].b == TIDE_UNKNOWN_BYTES) continue;
        if (v->one_subject && i > 0) break; // one and the same
        out[n++] = figures[i];
    }
    return (tide_table){
        .name = "figures", TIDE_COLUMNS(figure_columns), .rows = out, .row_bytes = sizeof *out, .n_rows = n};
}

// ---- operators and kinds ----

enum { BAR = 16, BAR_COLUMN = 4 };

/// An operator's name; what is no tensor's in brackets.
static void step_name(const void *row, tide_cell *v) {
    const tide_diff_step *s = row;
    snprintf(v->buf, 600, s->is_part ? "(%s)" : "%s", s->key[0] != '\0' ? s->key : "(no operator)");
    tide_cell_text(v, v->buf);
}
static void step_change(const void *row, tide_cell *v) {
    const tide_diff_step *s = row;
    tide_cell_change(v, s->a_bytes, s->b_bytes);
}
/// As long as its part of the largest change; the row of all others has none.
static void step_bar(const void *row, tide_cell *v) {
    const tide_diff_step *s = row, *largest = v->table->rows;
    const uint64_t change = s->a_bytes > s->b_bytes ? s->a_bytes - s->b_bytes : s->b_bytes - s->a_bytes;
    const uint64_t most =
        largest->a_bytes > largest->b_bytes ? largest->a_bytes - largest->b_bytes : largest->b_bytes - largest->a_bytes;
    if (row == v->table->data || most == 0) return;
    const size_t n = (size_t)((double)change / (double)most * BAR + 0.5);
    memset(v->buf, s->b_bytes > s->a_bytes ? '+' : '-', n > 0 ? n : 1);
    v->buf[n > 0 ? n : 1] = '\0';
    tide_cell_text(v, v->buf);
}

/// Those that changed, at most max_rows of them; all others as one more row, which is the table's data.
static void add_steps(const cli_diff_view *v, const char *title, const tide_diff_step *list, size_t n, format f,
                      tide_text *out) {
    const tide_column columns[] = {{NULL, f == AS_TEXT ? "" : title, TEXT, .may_be_cut = true, .get = step_name},
                                   {NULL, "A", BYTES, TIDE_AT(tide_diff_step, a_bytes)},
                                   {NULL, "B", BYTES, TIDE_AT(tide_diff_step, b_bytes)},
                                   {NULL, "Change", CHANGE, .get = step_change},
                                   [BAR_COLUMN] = {NULL, f == AS_TEXT ? "" : NULL, TEXT, .get = step_bar}};
    const size_t n_changed = sum_of(list, n).n_changed;
    const size_t shown = v->max_rows == 0 || n_changed <= v->max_rows ? n_changed : v->max_rows;
    const step_sum rest = sum_of(list + shown, n - shown);
    char key[64], change[32];
    if (n_changed == 0) return;
    if (f == AS_TEXT)
        tide_text_addf(out, "\n%s, in sum %s:\n", title,
                       tide_format_change(v->diff->a_bytes, v->diff->b_bytes, change, sizeof change));
    else
        tide_text_add(out, "\n");
    tide_diff_step *rows = tide_host_calloc(shown + 1, sizeof *rows);
    if (rows == NULL) {
        out->failed = true;
        return;
    }
    memcpy(rows, list, shown * sizeof *rows);
    snprintf(key, sizeof key, "(%zu others)", rest.n_changed);
    rows[shown] = (tide_diff_step){.key = key, .a_bytes = rest.a_bytes, .b_bytes = rest.b_bytes};
    const tide_table t = {TIDE_COLUMNS(columns), .rows = rows, .row_bytes = sizeof *rows,
                          .n_rows = shown + (rest.n_changed > 0), .data = &rows[shown]};
    add_table(&t, "  ", f, out);
    tide_host_free(rows);
}

// ---- items: the table's data is what follows ----

typedef struct item_rows {
    const cli_diff_view *view;
    uint32_t *differs; ///< [n] of the comparison's rows; owned
    size_t n;
} item_rows;

static bool item_rows_init(const cli_diff_view *v, item_rows *rows) {
    const tide_diff *d = v->diff;
    *rows = (item_rows){.view = v, .differs = tide_host_calloc(d->n, sizeof *rows->differs)};
    for (size_t i = 0; rows->differs != NULL && i < d->n; i++)
        if (row_differs(&d->rows[i])) rows->differs[rows->n++] = (uint32_t)i;
    return rows->differs != NULL;
}

static const void *item_row(const tide_table *t, size_t i, void *room) {
    const item_rows *rows = t->data;
    (void)room;
    return &rows->view->diff->rows[rows->differs[i]];
}

static void item_name(const void *row, tide_cell *v) {
    const tide_diff_row *r = row;
    tide_cell_text(v, r->name[0] != '\0' ? r->name : "(no name)");
}
/// "added", "resized, moved", "unchanged"; of two moments of one "at A alone", "at B alone".
static void item_what(const void *row, tide_cell *v) {
    const tide_diff_row *r = row;
    if (((const item_rows *)v->table->data)->view->one_subject &&
        (r->what & (TIDE_DIFF_ADDED | TIDE_DIFF_REMOVED)) != 0)
        tide_cell_text(v, r->what & TIDE_DIFF_ADDED ? "at B alone" : "at A alone");
    else
        tide_cell_text(v, tide_diff_changes(r->what, ", ", "unchanged", v->buf, sizeof v->buf));
}
static void item_words(const void *row, tide_cell *v) {
    tide_cell_text(v, tide_diff_changes(((const tide_diff_row *)row)->what, ", ", "", v->buf, sizeof v->buf));
}
static void item_held(const void *row, tide_cell *v) {
    tide_change_of_held(row, v);
    v->known &= v->i != 0;
}

static void add_items(const cli_diff_view *v, format f, tide_text *out) {
    const tide_column columns[] = {{NULL, f == AS_TEXT ? "" : "Tensor", TEXT, .may_be_cut = true, .get = item_name},
                                   {NULL, "Operator", TEXT, TIDE_AT(tide_diff_row, owner), .may_be_cut = true},
                                   {NULL, "What", TEXT, .get = item_what},
                                   {NULL, "A", BYTES, .get = tide_change_a_size},
                                   {NULL, "B", BYTES, .get = tide_change_b_size},
                                   {NULL, "Held", CHANGE, .get = item_held}};
    const tide_diff *d = v->diff;
    char counts[160];
    if (v->one_subject)
        snprintf(counts, sizeof counts, "%zu alive at A alone, %zu at B alone, %zu at both", d->n_removed, d->n_added,
                 d->n_unchanged);
    else
        tide_diff_counts(d, counts, sizeof counts);
    tide_text_addf(out, f == AS_TEXT ? "\n%s\n" : "\n%s.\n", counts);
    item_rows rows;
    if (!item_rows_init(v, &rows)) {
        out->failed = true;
        return;
    }
    const size_t shown = v->max_rows != 0 && rows.n > v->max_rows ? v->max_rows : rows.n;
    const tide_table t = {TIDE_COLUMNS(columns), .row = item_row, .n_rows = shown, .data = &rows};
    if (shown > 0 && f == AS_MARKDOWN) tide_text_add(out, "\n");
    if (shown > 0) add_table(&t, "  ", f, out);
    if (rows.n > shown && f == AS_TEXT)
        tide_text_addf(out, "  … and %zu more: --rows %zu\n", rows.n - shown, rows.n);
    else if (rows.n > shown)
        tide_text_addf(out, "\n… and %zu more.\n", rows.n - shown);
    tide_host_free(rows.differs);
}

static void add_items_json(const cli_diff_view *v, tide_json_out *j) {
    static const tide_column columns[] = {{"name", NULL, NAME, TIDE_AT(tide_diff_row, name)},
                                          {"owner", NULL, TEXT, TIDE_AT(tide_diff_row, owner)},
                                          {"what", NULL, TIDE_UNIT_WORDS, .get = item_words},
                                          {"a_bytes", NULL, BYTES, .get = tide_change_a_size},
                                          {"b_bytes", NULL, BYTES, .get = tide_change_b_size},
                                          {"a_held_bytes", NULL, BYTES, TIDE_AT(tide_diff_row, a_at_bytes)},
                                          {"b_held_bytes", NULL, BYTES, TIDE_AT(tide_diff_row, b_at_bytes)},
                                          {"change_bytes", NULL, CHANGE, .get = tide_change_of_held}};
    item_rows rows;
    if (!item_rows_init(v, &rows)) {
        j->out->failed = true;
        return;
    }
    const tide_table t = {.name = "rows", TIDE_COLUMNS(columns), .row = item_row, .n_rows = rows.n, .data = &rows};
    tide_table_json(&t, false, j);
    tide_host_free(rows.differs);
}

// ---- all ----

void cli_diff_text(const cli_diff_view *v, tide_text *out) {
    figure figures[MAX_FIGURES];
    const tide_table t = figures_of(v, figures);
    add_sides(v, AS_TEXT, out);
    tide_text_add(out, "\n");
    add_table(&t, "", AS_TEXT, out);
    if (!cli_diff_differs(v->diff)) {
        tide_text_add(out, "\nNothing differs.\n");
        return;
    }
    add_steps(v, "By operator", v->diff->by_owner, v->diff->n_by_owner, AS_TEXT, out);
    add_steps(v, "By kind", v->diff->by_kind, v->diff->n_by_kind, AS_TEXT, out);
    add_items(v, AS_TEXT, out);
}

void cli_diff_markdown(const cli_diff_view *v, tide_text *out) {
    figure figures[MAX_FIGURES];
    char change[64];
    const tide_diff *d = v->diff;
    const tide_table t = figures_of(v, figures);
    if (!cli_diff_differs(d))
        tide_text_add(out, "**Nothing differs.**\n\n");
    else
        tide_text_addf(out, "**Held: %s**\n\n", change_percent(d->a_bytes, d->b_bytes, change, sizeof change));
    add_sides(v, AS_MARKDOWN, out);
    tide_text_add(out, "\n");
    add_table(&t, "", AS_MARKDOWN, out);
    if (!cli_diff_differs(d)) return;
    add_steps(v, "By operator", d->by_owner, d->n_by_owner, AS_MARKDOWN, out);
    add_steps(v, "By kind", d->by_kind, d->n_by_kind, AS_MARKDOWN, out);
    add_items(v, AS_MARKDOWN, out);
}

void cli_diff_json(const cli_diff_view *v, tide_text *out) {
    const tide_diff *d = v->diff;
    const tide_table_view view = {.facts = v->a.facts};
    tide_table by_owner = tide_table_of_owner_changes(&view, d), by_kind = tide_table_of_kind_changes(&view, d);
    figure figures[MAX_FIGURES];
    const tide_table t = figures_of(v, figures);
    tide_json_out j = cli_document_begin("diff", out);
    tide_json_bool(&j, "differs", cli_diff_differs(d));
    add_side_json(&v->a, "a", &j);
    add_side_json(&v->b, "b", &j);
    tide_table_json(&t, false, &j);
    by_owner.name = "by_operator";
    by_kind.name = "by_kind";
    tide_table_json(&by_owner, false, &j);
    tide_table_json(&by_kind, false, &j);
    tide_json_open(&j, "counts", '{');
    tide_diff_counts_json(d, &j);
    tide_json_close(&j, '}');
    add_items_json(v, &j);
    cli_document_end(&j);
}
