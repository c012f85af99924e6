// SPDX-License-Identifier: MIT
//
// The points of a sweep as a table: described once, printed as CSV, HTML, Markdown and plain text.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/table.h"
#include "core/base/host_alloc.h"
#include "core/base/utf8.h"
#include "reports/escape.h"
#include "reports/sweep_internal.h"

typedef enum cell_type { WORDS, VALUE, BYTES, FLAG, TIME } cell_type;

typedef struct column {
    const char *key;   // for programs, with the unit
    const char *title; // for people; NULL: programs alone
    cell_type type;
    bool needs_figures, needs_run;
} column;

enum {
    MODEL,
    SIZES,
    STRATEGY,
    ALIGN,
    SWEPT,
    TOTAL,
    PLANNED,
    WEIGHTS,
    IO,
    OTHER,
    NAIVE,
    BOUND,
    PROVED,
    PROVEN,
    MEASURED,
    PLAN_TIME,
    RUN_TIME,
    ERROR,
    RANK,
    N_COLUMNS
};

static const column columns[N_COLUMNS] = {
    [MODEL] = {"model", "model", WORDS, false, false},
    [SIZES] = {"sizes", "sizes", WORDS, false, false},
    [STRATEGY] = {"strategy", "strategy", WORDS, false, false},
    [ALIGN] = {"align_bytes", "align", VALUE, false, false},
    [SWEPT] = {"value", "value", VALUE, false, false},
    [TOTAL] = {"total_bytes", "total", BYTES, true, false},
    [PLANNED] = {"planned_bytes", "planned", BYTES, true, false},
    [WEIGHTS] = {"weights_bytes", "weights", BYTES, true, false},
    [IO] = {"io_bytes", "inputs, outputs", BYTES, true, false},
    [OTHER] = {"other_bytes", NULL, BYTES, true, false},
    [NAIVE] = {"naive_bytes", "naive", BYTES, true, false},
    [BOUND] = {"lower_bound_bytes", "lower bound", BYTES, true, false},
    [PROVED] = {"proved_bytes", NULL, BYTES, true, false},
    [PROVEN] = {"proven", "proven", FLAG, true, false},
    [MEASURED] = {"measured_peak_bytes", "measured", BYTES, false, true},
    [PLAN_TIME] = {"plan_time_ns", NULL, TIME, true, false},
    [RUN_TIME] = {"time_ns", "time of a run", TIME, false, true},
    [ERROR] = {"error", "error", WORDS, false, false},
    [RANK] = {"rank", NULL, VALUE, false, false},
};

static const char *text_of(const tide_sweep_point *p, int c) {
    switch (c) {
    case MODEL:
        return p->model;
    case SIZES:
        return p->sizes;
    case STRATEGY:
        return p->strategy;
    default:
        return p->error != NULL ? p->error : "";
    }
}

static uint64_t number_of(const tide_sweep_point *p, int c) {
    switch (c) {
    case ALIGN:
        return p->align_bytes;
    case SWEPT:
        return p->value;
    case TOTAL:
        return p->total_bytes;
    case PLANNED:
        return p->planned_bytes;
    case WEIGHTS:
        return p->weights_bytes;
    case IO:
        return p->io_bytes;
    case OTHER:
        return p->other_bytes;
    case NAIVE:
        return p->naive_bytes;
    case BOUND:
        return p->lower_bound_bytes;
    case PROVED:
        return p->proved_bytes;
    case PROVEN:
        return p->proven;
    case MEASURED:
        return p->measured_peak_bytes;
    case PLAN_TIME:
        return p->plan_time_ns;
    case RUN_TIME:
        return p->time_ns;
    default:
        return p->rank;
    }
}

static bool is_known(const tide_sweep *s, const tide_sweep_point *p, int c) {
    if (columns[c].needs_figures && p->error != NULL) return false;
    if (columns[c].needs_run && !p->measured) return false;
    return c != SWEPT || s->extent[0] != '\0';
}

// ---- CSV ----

void tide__sweep_csv(const tide_sweep *s, tide_text *out) {
    for (int c = 0; c < N_COLUMNS; c++) tide_text_addf(out, "%s%s", c > 0 ? "," : "", columns[c].key);
    tide_text_add(out, "\r\n");
    for (size_t i = 0; i < s->n && !out->failed; i++) {
        const tide_sweep_point *p = &s->points[i];
        for (int c = 0; c < N_COLUMNS; c++) {
            if (c > 0) tide_text_add(out, ",");
            if (!is_known(s, p, c)) continue;
            if (columns[c].type == WORDS)
                tide_csv_add_guarded(out, text_of(p, c));
            else
                tide_text_addf(out, "%" PRIu64, number_of(p, c));
        }
        tide_text_add(out, "\r\n");
    }
}

// ---- for people ----

/// The sizes that are not swept: the swept one has a column of its own.
static const char *other_sizes(const tide_sweep *s, const tide_sweep_point *p) {
    if (s->extent[0] == '\0') return p->sizes;
    const char *rest = strlen(p->sizes) > strlen(s->extent) ? strchr(p->sizes + strlen(s->extent), ' ') : NULL;
    return rest != NULL ? rest + 1 : "";
}

/// Which columns say something: a model, a strategy or an alignment that is the same everywhere is said once elsewhere.
static void choose(const tide_sweep *s, bool shown[N_COLUMNS]) {
    for (int c = 0; c < N_COLUMNS; c++) shown[c] = columns[c].title != NULL;
    bool other_model = false, other_strategy = false, other_align = false, run = false, error = false, sizes = false;
    for (size_t i = 0; i < s->n; i++) {
        const tide_sweep_point *p = &s->points[i];
        other_model |= strcmp(p->model, s->points[0].model) != 0;
        other_strategy |= strcmp(p->strategy, s->points[0].strategy) != 0;
        other_align |= p->align_bytes != s->points[0].align_bytes;
        run |= p->measured;
        error |= p->error != NULL;
        sizes |= other_sizes(s, p)[0] != '\0';
    }
    shown[MODEL] = other_model || s->extent[0] == '\0';
    shown[SIZES] = sizes;
    shown[STRATEGY] = other_strategy;
    shown[ALIGN] = other_align;
    shown[SWEPT] = s->extent[0] != '\0';
    shown[MEASURED] = shown[RUN_TIME] = run;
    shown[ERROR] = error;
}

static const char *title_of(const tide_sweep *s, int c) { return c == SWEPT ? s->extent : columns[c].title; }

/// A cell as people read it, foreign text as it is.
static void say(const tide_sweep *s, const tide_sweep_point *p, int c, tide_text *out) {
    char buf[32];
    if (!is_known(s, p, c)) return;
    switch (columns[c].type) {
    case WORDS:
        tide_text_add(out, c == MODEL   ? tide__sweep_title(s, p->model)
                           : c == SIZES ? other_sizes(s, p)
                                        : text_of(p, c));
        break;
    case VALUE:
        tide_text_addf(out, "%" PRIu64, number_of(p, c));
        break;
    case BYTES:
        tide_text_add(out, tide_format_bytes(number_of(p, c), buf, sizeof buf));
        break;
    case FLAG:
        tide_text_add(out, number_of(p, c) != 0 ? "yes" : "no");
        break;
    case TIME:
        tide_text_add(out, tide_format_ns(number_of(p, c), "us", buf, sizeof buf));
        break;
    }
}

void tide__sweep_foreign(const char *text, bool markdown, tide_text *out) {
    uint32_t cp;
    for (size_t n; (n = tide_utf8_decode(text, &cp)) > 0; text += n) {
        if (tide_utf8_is_unsafe(cp)) {
            tide_text_add(out, TIDE_UTF8_REPLACEMENT);
            continue;
        }
        if (markdown && cp < 0x80 && strchr("\\`*_[]<>#|~&", (int)cp) != NULL) tide_text_add(out, "\\");
        tide_text_add_n(out, text, n);
    }
}

void tide__sweep_html_text(const char *text, size_t max_chars, tide_text *out) {
    tide_text clean = {0};
    tide__sweep_foreign(text, false, &clean);
    tide_report_add_html_cut(out, tide_text_str(&clean), max_chars);
    if (clean.failed) out->failed = true;
    tide_text_deinit(&clean);
}

/// Characters, not bytes.
static size_t width_of(const char *text) {
    size_t n = 0;
    for (; *text != '\0'; text++) n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

/// The cell escaped; NULL for want of memory. Owned.
static char *cell_text(const tide_sweep *s, const tide_sweep_point *p, int c, bool markdown) {
    tide_text raw = {0}, clean = {0};
    if (p != NULL)
        say(s, p, c, &raw);
    else
        tide_text_add(&raw, title_of(s, c));
    tide__sweep_foreign(tide_text_str(&raw), markdown, &clean);
    char *text = raw.failed || clean.failed ? NULL : tide_host_strdup(tide_text_str(&clean));
    tide_text_deinit(&raw);
    tide_text_deinit(&clean);
    return text;
}

static void add_cell(const char *text, size_t width, bool right, bool last, tide_text *out) {
    const size_t w = width_of(text), pad = w < width ? width - w : 0;
    if (right) tide_text_addf(out, "%*s", (int)pad, "");
    tide_text_add(out, text);
    if (!right && !last) tide_text_addf(out, "%*s", (int)pad, "");
}

static void add_lines(const tide_sweep *s, bool markdown, const bool shown[N_COLUMNS], char *const *cells,
                      tide_text *out) {
    size_t widths[N_COLUMNS] = {0};
    int last = 0;
    for (size_t i = 0; i < (s->n + 1) * N_COLUMNS; i++) {
        const int c = (int)(i % N_COLUMNS);
        if (shown[c] && c > last) last = c;
        if (shown[c] && c != ERROR && width_of(cells[i]) > widths[c]) widths[c] = width_of(cells[i]);
    }
    for (size_t row = 0; row <= s->n && !out->failed; row++) {
        bool first = true;
        for (int c = 0; c < N_COLUMNS; c++) {
            if (!shown[c]) continue;
            tide_text_add(out, markdown ? (first ? "| " : " | ") : (first ? "" : "  "));
            add_cell(cells[row * N_COLUMNS + (size_t)c], widths[c], columns[c].type != WORDS, c == last && !markdown,
                     out);
            first = false;
        }
        while (!markdown && !out->failed && out->len > 0 && out->data[out->len - 1] == ' ') out->len--;
        tide_text_add(out, markdown ? " |\n" : "\n");
        for (int c = 0; c < N_COLUMNS && markdown && row == 0; c++) {
            if (shown[c]) tide_text_add(out, columns[c].type != WORDS ? "|---:" : "|---");
        }
        if (markdown && row == 0) tide_text_add(out, "|\n");
    }
}

void tide__sweep_rows(const tide_sweep *s, bool markdown, tide_text *out) {
    bool shown[N_COLUMNS];
    choose(s, shown);
    const size_t n_cells = (s->n + 1) * N_COLUMNS;
    char **cells = tide_host_calloc(n_cells, sizeof *cells);
    bool good = cells != NULL;
    for (size_t i = 0; good && i < n_cells; i++) {
        const int c = (int)(i % N_COLUMNS);
        if (!shown[c]) continue;
        cells[i] = cell_text(s, i < N_COLUMNS ? NULL : &s->points[i / N_COLUMNS - 1], c, markdown);
        good = cells[i] != NULL;
    }
    if (good)
        add_lines(s, markdown, shown, cells, out);
    else
        out->failed = true;
    for (size_t i = 0; cells != NULL && i < n_cells; i++) tide_host_free(cells[i]);
    tide_host_free(cells);
}

// ---- HTML ----

static void html_cell(const tide_sweep *s, const tide_sweep_point *p, int c, bool is_first, tide_text *out) {
    tide_text raw = {0};
    const char *tag = is_first ? "th" : "td";
    say(s, p, c, &raw);
    tide_text_addf(out, "<%s%s", tag, is_first ? " scope=\"row\"" : "");
    if (columns[c].type == WORDS) tide_text_add(out, " class=\"w\"");
    if (columns[c].type == BYTES && is_known(s, p, c)) tide_text_addf(out, " title=\"%" PRIu64 " B\"", number_of(p, c));
    tide_text_add(out, ">");
    tide__sweep_html_text(tide_text_str(&raw), 200, out);
    tide_text_addf(out, "</%s>", tag);
    if (raw.failed) out->failed = true;
    tide_text_deinit(&raw);
}

void tide__sweep_html_table(const tide_sweep *s, tide_text *out) {
    bool shown[N_COLUMNS];
    choose(s, shown);
    tide_text_add(out, "<table>\n<thead><tr>");
    for (int c = 0; c < N_COLUMNS; c++) {
        if (!shown[c]) continue;
        tide_text_addf(out, "<th scope=\"col\"%s>", columns[c].type == WORDS ? " class=\"w\"" : "");
        tide__sweep_html_text(title_of(s, c), 60, out);
        tide_text_add(out, "</th>");
    }
    tide_text_add(out, "</tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < s->n && !out->failed; i++) {
        bool first = true;
        tide_text_add(out, "<tr>");
        for (int c = 0; c < N_COLUMNS; c++) {
            if (shown[c]) html_cell(s, &s->points[i], c, first, out);
            first &= !shown[c];
        }
        tide_text_add(out, "</tr>\n");
    }
    tide_text_add(out, "</tbody>\n</table>\n");
}
