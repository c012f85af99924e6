// SPDX-License-Identifier: MIT
//
// Scanner of lifetime lists: lines, fields, heads, numbers, gaps. See lifetimes_csv.h.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "planner/lifetimes_csv.h"

const char *const tide__csv_heads[TIDE_N_CSV_COLUMNS] = {
#define XX(name, head) head,
    TIDE_CSV_COLUMN_MAP(XX)
#undef XX
};

tide_status tide__csv_bad_at(const tide_csv_scan *s, tide_csv_field f, tide_status st) {
    tide_error_where(s->err, "%s:%zu:%zu", s->path, s->line, f.at);
    return st;
}

static bool is_blank(char ch) { return ch == ' ' || ch == '\t'; }

tide_csv_field tide__csv_trim(tide_csv_field f) {
    while (f.len > 0 && is_blank(f.text[0])) {
        f.text++;
        f.at++;
        f.len--;
    }
    while (f.len > 0 && is_blank(f.text[f.len - 1])) f.len--;
    return f;
}

bool tide__csv_next_line(tide_csv_scan *s, tide_csv_field *out) {
    if (s->next == s->end) return false;
    const char *newline = memchr(s->next, '\n', (size_t)(s->end - s->next));
    const char *stop = newline != NULL ? newline : s->end;
    *out = (tide_csv_field){s->next, (size_t)(stop - s->next), 1};
    if (out->len > 0 && out->text[out->len - 1] == '\r') out->len--;
    s->next = newline != NULL ? newline + 1 : s->end;
    s->line++;
    static const char bom[] = "\xEF\xBB\xBF";
    if (s->line == 1 && out->len >= 3 && memcmp(out->text, bom, 3) == 0)
        *out = (tide_csv_field){out->text + 3, out->len - 3, 4};
    return true;
}

tide_status tide__csv_split(const tide_csv_scan *s, tide_csv_field line, tide_csv_field *out, size_t *n) {
    *n = 0;
    for (;;) {
        const char *comma = memchr(line.text, ',', line.len);
        const size_t len = comma != NULL ? (size_t)(comma - line.text) : line.len;
        const tide_csv_field f = tide__csv_trim((tide_csv_field){line.text, len, line.at});
        if (*n == TIDE_N_CSV_COLUMNS)
            return TIDE_CSV_BAD(s, f, "the line has more than %d fields", (int)TIDE_N_CSV_COLUMNS);
        if (f.len > 0 && f.text[0] == '"') return TIDE_CSV_BAD(s, f, "quoted fields are not read");
        out[(*n)++] = f;
        if (comma == NULL) return TIDE_OK;
        line = (tide_csv_field){comma + 1, line.len - len - 1, line.at + len + 1};
    }
}

// ---- heads ----

tide_status tide__csv_find_column(const tide_csv_scan *s, tide_csv_field f, tide_csv_column *out) {
    static const struct {
        const char *head;
        tide_csv_column column;
    } others[] = {{"buffer", TIDE_CSV_COLUMN_ID},
                  {"buffer_id", TIDE_CSV_COLUMN_ID},
                  {"start", TIDE_CSV_COLUMN_BEGIN},
                  {"begin", TIDE_CSV_COLUMN_BEGIN}};
    for (size_t i = 0; i < TIDE_N_CSV_COLUMNS + sizeof others / sizeof others[0]; i++) {
        const bool own = i < TIDE_N_CSV_COLUMNS;
        const char *head = own ? tide__csv_heads[i] : others[i - TIDE_N_CSV_COLUMNS].head;
        if (strlen(head) != f.len || memcmp(head, f.text, f.len) != 0) continue;
        *out = own ? (tide_csv_column)i : others[i - TIDE_N_CSV_COLUMNS].column;
        return TIDE_OK;
    }
    const tide_status st = TIDE_CSV_BAD(s, f, "there is no column '%.*s'", tide__csv_shown(f), f.text);
    tide_error_hint(s->err, "columns are id, lower, upper or end, size, alignment, hint, gaps, offset, rounded, kind, "
                            "device, role, persistent, alias, alias_kind, apart; see docs/lifetimes-format.md");
    return st;
}

// ---- numbers ----

tide_status tide__csv_count(const tide_csv_scan *s, tide_csv_field f, const char *what, int64_t *out) {
    size_t i = f.len > 0 && f.text[0] == '-' ? 1 : 0;
    const bool negative = i == 1;
    int64_t v = 0;
    if (i == f.len) return TIDE_CSV_BAD(s, f, "%s is missing", what);
    for (; i < f.len; i++) {
        const char ch = f.text[i];
        if (ch < '0' || ch > '9')
            return TIDE_CSV_BAD(s, f, "%s '%.*s' is no integer", what, tide__csv_shown(f), f.text);
        if (!tide_mul_i64(v, 10, &v) || !tide_add_i64(v, ch - '0', &v))
            return TIDE_CSV_BAD(s, f, "%s '%.*s' passes 2^63 - 1", what, tide__csv_shown(f), f.text);
    }
    if (negative && v != 0) return TIDE_CSV_BAD(s, f, "%s is -%" PRId64 ": want 0 or more", what, v);
    *out = v;
    return TIDE_OK;
}

// ---- gaps ----

/// Cut `f` at the first `ch`: the part before it into *head, the rest stays. @return false when there is none
static bool cut(tide_csv_field *f, char ch, tide_csv_field *head) {
    const char *at = f->len > 0 ? memchr(f->text, ch, f->len) : NULL;
    if (at == NULL) return false;
    const size_t len = (size_t)(at - f->text);
    *head = (tide_csv_field){f->text, len, f->at};
    *f = (tide_csv_field){at + 1, f->len - len - 1, f->at + len + 1};
    return true;
}

static tide_status read_gap(const tide_csv_scan *s, tide_csv_field f, int64_t end_shift, tide_gap *out) {
    const tide_csv_field whole = f;
    tide_csv_field begin, end, window = {0}, lo;
    *out = (tide_gap){0};
    if (!cut(&f, '-', &begin))
        return TIDE_CSV_BAD(s, whole, "the gap '%.*s' is none: want a-b or a-b@lo:hi", tide__csv_shown(whole),
                            whole.text);
    const bool has_window = cut(&f, '@', &end);
    if (has_window)
        window = f;
    else
        end = f;
    TIDE_TRY(tide__csv_count(s, begin, "the begin of a gap", &out->begin_step));
    TIDE_TRY(tide__csv_count(s, end, "the end of a gap", &out->end_step));
    if (!tide_add_i64(out->end_step, end_shift, &out->end_step))
        return TIDE_CSV_BAD(s, end, "the end of a gap passes 2^63 - 2");
    if (out->begin_step >= out->end_step)
        return TIDE_CSV_BAD(s, whole, "the gap '%.*s' is empty", tide__csv_shown(whole), whole.text);
    if (!has_window) return TIDE_OK;
    int64_t lo_bytes, hi_bytes;
    if (!cut(&window, ':', &lo))
        return TIDE_CSV_BAD(s, window, "the bytes of a gap are '%.*s': want lo:hi", tide__csv_shown(window),
                            window.text);
    TIDE_TRY(tide__csv_count(s, lo, "the first byte of a gap", &lo_bytes));
    TIDE_TRY(tide__csv_count(s, window, "the last byte of a gap", &hi_bytes));
    if (lo_bytes > hi_bytes)
        return TIDE_CSV_BAD(s, lo, "the bytes of a gap go from %" PRId64 " to %" PRId64, lo_bytes, hi_bytes);
    out->lo_bytes = (uint64_t)lo_bytes;
    out->hi_bytes = (uint64_t)hi_bytes;
    return TIDE_OK;
}

static int by_begin(const void *a, const void *b) {
    const tide_gap *x = a, *y = b;
    if (x->begin_step != y->begin_step) return x->begin_step < y->begin_step ? -1 : 1;
    return (x->end_step > y->end_step) - (x->end_step < y->end_step);
}

tide_status tide__csv_gaps(const tide_csv_scan *s, tide_csv_field f, int64_t end_shift, tide_gap **out, uint32_t *n) {
    tide_gap *gaps = NULL;
    size_t count = 0, cap = 0;
    tide_status st = TIDE_OK;
    while ((f = tide__csv_trim(f)).len > 0 && st == TIDE_OK) {
        size_t len = 0;
        while (len < f.len && !is_blank(f.text[len])) len++;
        if (count == UINT32_MAX || tide_host_grow(&gaps, &cap, count + 1, sizeof *gaps) != TIDE_OK) {
            st = TIDE_FAIL(s->err, TIDE_ERR_NOMEM, "no memory to read %s", s->path);
            break;
        }
        st = read_gap(s, (tide_csv_field){f.text, len, f.at}, end_shift, &gaps[count]);
        count++;
        f = (tide_csv_field){f.text + len, f.len - len, f.at + len};
    }
    if (st != TIDE_OK) {
        tide_host_free(gaps);
        return st;
    }
    if (count > 1) qsort(gaps, count, sizeof *gaps, by_begin);
    *out = gaps;
    *n = (uint32_t)count;
    return TIDE_OK;
}
