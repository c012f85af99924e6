// SPDX-License-Identifier: MIT
//
// Rows in the order of one column. See table.h.
#include <stdlib.h>
#include <string.h>

#include "analysis/table.h"
#include "core/base/assert.h"
#include "core/base/host_alloc.h"

/// What a row is ordered by, in a form that rises.
typedef struct sort_key {
    bool known;
    uint32_t row;
    union {
        uint64_t u; ///< numbers: mapped so that the order of unsigned numbers is theirs
        size_t at;  ///< words: where in the texts of all rows
        const char *text;
    } of;
} sort_key;

/// An order of unsigned numbers that is the order of the real ones, -0.0 and 0.0 apart.
static uint64_t bits_of(double real) {
    uint64_t u;
    memcpy(&u, &real, sizeof u);
    return (u >> 63) != 0 ? ~u : u | UINT64_C(1) << 63;
}

static uint64_t number_of(tide_unit unit, const tide_cell *v) {
    switch (unit) {
    case TIDE_UNIT_CHANGE:
    case TIDE_UNIT_TIME:
        return (uint64_t)v->i ^ UINT64_C(1) << 63;
    case TIDE_UNIT_SHARE:
        return bits_of(v->real);
    default:
        return v->u;
    }
}

static int by_row(const sort_key *a, const sort_key *b) { return a->row < b->row ? -1 : a->row > b->row; }

static int rising(const void *a_, const void *b_) {
    const sort_key *a = a_, *b = b_;
    if (a->known != b->known) return a->known ? -1 : 1;
    if (!a->known || a->of.u == b->of.u) return by_row(a, b);
    return a->of.u < b->of.u ? -1 : 1;
}

static int rising_words(const void *a_, const void *b_) {
    const sort_key *a = a_, *b = b_;
    if (a->known != b->known) return a->known ? -1 : 1;
    const int cmp = a->known ? strcmp(a->of.text, b->of.text) : 0;
    return cmp != 0 ? cmp : by_row(a, b);
}

bool tide_unit_falls(tide_unit unit) {
    return !tide_unit_is_words(unit) && unit != TIDE_UNIT_TIME && unit != TIDE_UNIT_ADDRESS;
}

/// Texts of cells live until the next cell: `texts` keeps them.
static void read_keys(const tide_table *t, size_t column, bool falls, sort_key *keys, tide_text *texts) {
    const tide_unit unit = t->columns[column].unit;
    tide_row_room room;
    tide_cell v;
    for (size_t i = 0; i < t->n_rows; i++) {
        tide_table_cell(t, tide_table_row(t, i, &room), column, &v);
        keys[i] = (sort_key){.known = v.known, .row = (uint32_t)i};
        if (!v.known) continue;
        if (tide_unit_is_words(unit)) {
            keys[i].of.at = texts->len;
            tide_text_add_n(texts, v.text, strlen(v.text) + 1);
        } else {
            const uint64_t u = number_of(unit, &v);
            keys[i].of.u = falls ? ~u : u;
        }
    }
}

/// Words: from places in `texts` to pointers into it.
static void point_at_words(sort_key *keys, size_t n, const tide_text *texts) {
    for (size_t i = 0; i < n; i++)
        if (keys[i].known) keys[i].of.text = texts->data + keys[i].of.at;
}

/// Turns the known ones round; equal ones keep their order.
static void turn_round(sort_key *keys, size_t n, int (*cmp)(const void *, const void *), uint32_t *order) {
    size_t n_known = 0, out = 0;
    while (n_known < n && keys[n_known].known) n_known++;
    for (size_t end = n_known; end > 0;) { // groups of equal ones, the last first
        size_t begin = end - 1;
        while (begin > 0) {
            sort_key one = keys[begin - 1], other = keys[end - 1];
            one.row = other.row = 0;
            if (cmp(&one, &other) != 0) break;
            begin--;
        }
        for (size_t i = begin; i < end; i++) order[out++] = keys[i].row;
        end = begin;
    }
    for (size_t i = n_known; i < n; i++) order[out++] = keys[i].row;
    TIDE_ASSERT(out == n);
}

tide_status tide_table_order(const tide_table *t, size_t column, bool reverse, uint32_t *order, tide_error *err) {
    const tide_unit unit = t->columns[column].unit;
    const bool is_words = tide_unit_is_words(unit), falls = tide_unit_falls(unit);
    tide_text texts = {0};
    sort_key *keys;
    TIDE_ASSERT(column < t->n_columns && t->n_rows <= UINT32_MAX);
    TIDE_TRY(TIDE_NEW(&keys, t->n_rows > 0 ? t->n_rows : 1, err, "to sort %zu rows", t->n_rows));
    read_keys(t, column, falls, keys, &texts);
    if (texts.failed) {
        tide_host_free(keys);
        tide_text_deinit(&texts);
        return TIDE_NO_MEMORY(err, "to sort %zu rows", t->n_rows);
    }
    if (is_words && texts.len > 0) point_at_words(keys, t->n_rows, &texts);
    qsort(keys, t->n_rows, sizeof *keys, is_words ? rising_words : rising);
    if (reverse)
        turn_round(keys, t->n_rows, is_words ? rising_words : rising, order);
    else
        for (size_t i = 0; i < t->n_rows; i++) order[i] = keys[i].row;
    tide_host_free(keys);
    tide_text_deinit(&texts);
    return TIDE_OK;
}
