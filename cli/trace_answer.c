// SPDX-License-Identifier: MIT
//
// The answer to a question in SQL: tab separated, or as JSON with the types that the columns have. See trace_view.h.
#include <stdio.h>
#include <string.h>

#include "cli/table.h"
#include "cli/trace_view.h"
#include "core/base/host_alloc.h"
#include "core/base/json.h"
#include "core/base/utf8.h"

/// What is unsafe becomes '?'; tabs and line ends are the table's.
static void print_clean(const char *text, size_t len) {
    uint32_t cp;
    for (const char *end = text + len; text < end;) {
        const size_t n = tide_utf8_decode(text, &cp);
        const bool bad = n == 0 || (tide_utf8_is_unsafe(cp) && cp != '\t' && cp != '\n');
        fwrite(bad ? "?" : text, 1, bad ? 1 : n, stdout);
        text += n > 0 ? n : 1; // 0: a zero byte
    }
}

/// The query as a table of its own, `n` columns c0, c1, …, each row as one JSON array.
static void wrap(const char *query, size_t n, tide_text *out) {
    size_t len = strlen(query);
    while (len > 0 && strchr("; \t\r\n", query[len - 1]) != NULL) len--;
    tide_text_add(out, "WITH q(");
    for (size_t i = 0; i < n; i++) tide_text_addf(out, "%sc%zu", i > 0 ? "," : "", i);
    tide_text_add(out, ") AS (");
    tide_text_add_n(out, query, len);
    tide_text_add(out, "\n) SELECT json_array("); // the line end: the query may end with a comment
    // JSON knows no bytes: they become hexadecimal digits; nor infinities.
    for (size_t i = 0; i < n; i++) {
        tide_text_addf(out, "%sCASE WHEN typeof(c%zu) = 'blob' THEN hex(c%zu) WHEN c%zu IN (9e999, -9e999) THEN NULL ",
                       i > 0 ? "," : "", i, i, i);
        tide_text_addf(out, "ELSE c%zu END", i);
    }
    tide_text_add(out, ") FROM q");
}

/// The words of `line`, which ends at a line end, between `separator`s, into the open array. @return how many they are
static size_t add_words(tide_json_out *j, const char *line, char separator) {
    const char *end = line + strcspn(line, "\n");
    for (size_t n = 1;; n++) {
        const char *stop = memchr(line, separator, (size_t)(end - line));
        if (stop == NULL) stop = end;
        char *word = tide_host_strndup(line, (size_t)(stop - line));
        if (word == NULL)
            j->out->failed = true;
        else
            tide_json_text(j, NULL, word);
        tide_host_free(word);
        if (stop == end) return n;
        line = stop + 1;
    }
}

/// Bytes that are no UTF-8 are replaced: JSON has no other strings.
static void clean_utf8(const char *text, tide_text *out) {
    uint32_t cp;
    for (size_t step; (step = tide_utf8_decode(text, &cp)) > 0; text += step) {
        if (cp == TIDE_UTF8_BAD)
            tide_text_add(out, TIDE_UTF8_REPLACEMENT);
        else
            tide_text_add_n(out, text, step);
    }
}

/// A row in SQLite's own JSON, of `len` bytes of clean UTF-8: only memory can be wrong with it.
static void add_row(tide_json_out *j, const char *row, size_t len) {
    json_t *values = tide_json_load(row, len, JSON_ALLOW_NUL, NULL);
    if (values == NULL) j->out->failed = true;
    tide_json_open(j, NULL, '[');
    for (size_t i = 0; i < json_array_size(values); i++) {
        tide_text value = {0};
        tide_json_print_safe(json_array_get(values, i), JSON_ENCODE_ANY | JSON_REAL_PRECISION(12), &value);
        if (value.failed) j->out->failed = true;
        tide_json_raw(j, NULL, tide_text_str(&value));
        tide_text_deinit(&value);
    }
    tide_json_close(j, ']');
    json_decref(values);
}

/// One row per line, behind the line of names.
static void add_rows(tide_json_out *j, const char *text) {
    const char *at = strchr(text, '\n');
    for (at = at != NULL ? at + 1 : ""; *at != '\0';) {
        const size_t len = strcspn(at, "\n");
        add_row(j, at, len);
        at += len + (at[len] == '\n');
    }
}

static const char unit_separator[] = "\x1F";

/// The names of the columns of `query`, *n of them.
static tide_status ask_columns(tide_trace *t, const char *query, tide_json_out *j, size_t *n, tide_error *err) {
    tide_text names = {0};
    const tide_status st = tide_trace_sql(t, query, unit_separator, 1, &names, err);
    tide_json_open(j, "columns", '[');
    if (st == TIDE_OK) *n = add_words(j, tide_text_str(&names), unit_separator[0]);
    tide_json_close(j, ']');
    tide_text_deinit(&names);
    return st == TIDE_OK && j->out->failed ? TIDE_NO_MEMORY(err, "for the columns") : st;
}

/// The rows of `query`, which has `n` columns.
static tide_status ask_rows(tide_trace *t, const char *query, size_t n, size_t max_rows, tide_json_out *j,
                            tide_error *err) {
    tide_text wrapped = {0}, rows = {0}, clean = {0};
    wrap(query, n, &wrapped);
    tide_status st = wrapped.failed ? TIDE_NO_MEMORY(err, "for the query")
                                    : tide_trace_sql(t, tide_text_str(&wrapped), unit_separator, max_rows, &rows, err);
    clean_utf8(tide_text_str(&rows), &clean);
    tide_json_open(j, "rows", '[');
    if (st == TIDE_OK) add_rows(j, tide_text_str(&clean));
    tide_json_close(j, ']');
    if (st == TIDE_OK && (rows.failed || clean.failed || j->out->failed)) st = TIDE_NO_MEMORY(err, "for the rows");
    tide_text_deinit(&wrapped);
    tide_text_deinit(&rows);
    tide_text_deinit(&clean);
    return st;
}

static tide_status answer_json(tide_trace *t, const char *query, size_t max_rows, tide_error *err) {
    tide_text text = {0};
    tide_json_out j = cli_document_begin("trace_rows", &text);
    size_t n = 0;
    tide_status st = ask_columns(t, query, &j, &n, err);
    if (st == TIDE_OK) st = ask_rows(t, query, n, max_rows, &j, err);
    cli_document_end(&j);
    if (st == TIDE_OK) return cli_document_print(&text) == CLI_EXIT_OK ? TIDE_OK : TIDE_NO_MEMORY(err, "for the rows");
    tide_text_deinit(&text);
    return st;
}

static tide_status answer_text(tide_trace *t, const char *query, size_t max_rows, tide_error *err) {
    tide_text rows = {0};
    tide_status st = tide_trace_sql(t, query, "\t", max_rows, &rows, err);
    if (st == TIDE_OK && rows.failed) st = TIDE_NO_MEMORY(err, "for the rows");
    if (st == TIDE_OK) print_clean(tide_text_str(&rows), rows.len);
    tide_text_deinit(&rows);
    return st;
}

int cli_trace_answer(tide_trace *t, const cli_trace_options *o, const char *query) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_status st =
        o->json ? answer_json(t, query, (size_t)o->max_rows, &err) : answer_text(t, query, (size_t)o->max_rows, &err);
    if (st == TIDE_OK) return CLI_EXIT_OK;
    cli_print_error(&err);
    return st == TIDE_ERR_INVALID ? CLI_EXIT_USAGE : cli_exit_code(st);
}
