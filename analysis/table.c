// SPDX-License-Identifier: MIT
//
// Values of cells, and how people read them. See table.h; each writer has a file of its own.
#include "analysis/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/memory/kind.h"

const void *tide_table_row(const tide_table *t, size_t i, tide_row_room *room) {
    return t->row != NULL ? t->row(t, i, room) : (const char *)t->rows + i * t->row_bytes;
}

/// The unsigned number at `at`, which has 1, 4 or 8 bytes.
static uint64_t read_number(const char *at, size_t n_bytes) {
    uint8_t one;
    uint32_t four;
    uint64_t eight;
    if (n_bytes == sizeof one) return memcpy(&one, at, sizeof one), one;
    if (n_bytes == sizeof four) return memcpy(&four, at, sizeof four), four;
    return memcpy(&eight, at, sizeof eight), eight;
}

static const char *read_text(const char *at, bool is_array) {
    const char *text;
    if (is_array) return at;
    memcpy(&text, at, sizeof text);
    return text;
}

static void read_member(const tide_column *c, const void *row, tide_cell *v) {
    const char *at = (const char *)row + c->at;
    switch (c->unit) {
    case TIDE_UNIT_TEXT:
    case TIDE_UNIT_NAME:
    case TIDE_UNIT_WORDS:
        tide_cell_text(v, read_text(at, c->is_array));
        break;
    case TIDE_UNIT_KIND:
        tide_cell_text(v, tide_memory_kind_name((tide_memory_kind)read_number(at, c->n_bytes)));
        break;
    case TIDE_UNIT_CHANGE:
    case TIDE_UNIT_TIME:
        v->known = true;
        v->i = (int64_t)read_number(at, sizeof v->i);
        break;
    case TIDE_UNIT_SHARE:
        v->known = true;
        memcpy(&v->real, at, sizeof v->real);
        break;
    default:
        v->u = read_number(at, c->n_bytes);
        v->known = v->u != UINT64_MAX;
    }
}

void tide_table_cell(const tide_table *t, const void *row, size_t column, tide_cell *out) {
    const tide_column *c = &t->columns[column];
    out->table = t;
    out->known = false;
    if (c->get != NULL)
        c->get(row, out);
    else
        read_member(c, row, out);
    if (c->unit == TIDE_UNIT_TEXT && out->known && out->text[0] == '\0') out->known = false;
    if (c->unit == TIDE_UNIT_TIME && t->from_origin) out->i = (int64_t)tide_subject_since(t->facts, out->i);
}

const char *tide_table_key(const tide_table *t, size_t column, char *buf, size_t buf_bytes) {
    const tide_column *c = &t->columns[column];
    if (c->unit != TIDE_UNIT_TIME) return c->key;
    snprintf(buf, buf_bytes, "%s_%s", c->key, t->facts->axis == TIDE_AXIS_STEPS ? "step" : "ns");
    return buf;
}

bool tide_table_shows(const tide_table *t, size_t column) {
    return t->columns[column].title != NULL && (t->hidden >> column & 1) == 0;
}

void tide_table_hide_unknown(tide_table *t) {
    tide_row_room room;
    tide_cell v;
    for (size_t c = 0; c < t->n_columns && t->n_rows > 0; c++) {
        bool known = false;
        for (size_t i = 0; i < t->n_rows && !known; i++) {
            tide_table_cell(t, tide_table_row(t, i, &room), c, &v);
            known = v.known && (!tide_unit_is_words(t->columns[c].unit) || v.text[0] != '\0');
        }
        if (!known) t->hidden |= UINT64_C(1) << c;
    }
}

bool tide_unit_is_words(tide_unit unit) { return unit <= TIDE_UNIT_KIND; }

char *tide_format_change(uint64_t a, uint64_t b, char *buf, size_t buf_bytes) {
    char size[24];
    snprintf(buf, buf_bytes, "%s%s",
             b < a   ? "-"
             : b > a ? "+"
                     : "",
             tide_format_bytes(b < a ? a - b : b - a, size, sizeof size));
    return buf;
}

static void say_time(const tide_table *t, int64_t i, tide_text *out) {
    char buf[32];
    const int64_t at = t->from_origin ? (int64_t)((uint64_t)t->facts->origin + (uint64_t)i) : i;
    if (t->is_exact || t->facts->axis == TIDE_AXIS_STEPS)
        tide_text_addf(out, "%" PRIu64, (uint64_t)i);
    else
        tide_text_add(out, tide_subject_format_since(t->facts, at, "\xC2\xB5s", buf, sizeof buf));
}

void tide_table_say(const tide_table *t, size_t column, const tide_cell *v, tide_text *out) {
    char buf[40];
    if (!v->known) {
        tide_text_add(out, t->blank != NULL ? t->blank : "");
        return;
    }
    switch (t->columns[column].unit) {
    case TIDE_UNIT_TEXT:
    case TIDE_UNIT_NAME:
    case TIDE_UNIT_WORDS:
    case TIDE_UNIT_KIND:
        tide_text_add(out, v->text);
        break;
    case TIDE_UNIT_BYTES:
        if (t->is_exact)
            tide_text_addf(out, "%" PRIu64, v->u);
        else
            tide_text_add(out, tide_format_bytes(v->u, buf, sizeof buf));
        break;
    case TIDE_UNIT_COUNT:
    case TIDE_UNIT_ADDRESS:
        tide_text_addf(out, "%" PRIu64, v->u);
        break;
    case TIDE_UNIT_DURATION:
        tide_text_add(out, tide_format_ns(v->u, "us", buf, sizeof buf));
        break;
    case TIDE_UNIT_FLAG:
        tide_text_add(out, v->u != 0 ? "yes" : "no");
        break;
    case TIDE_UNIT_CHANGE:
        if (t->is_exact)
            tide_text_addf(out, "%+" PRId64, v->i);
        else
            tide_text_add(out, v->i < 0 ? tide_format_change(0 - (uint64_t)v->i, 0, buf, sizeof buf)
                                        : tide_format_change(0, (uint64_t)v->i, buf, sizeof buf));
        break;
    case TIDE_UNIT_TIME:
        say_time(t, v->i, out);
        break;
    case TIDE_UNIT_SHARE:
        tide_text_addf(out, "%.1f %%", 100.0 * v->real);
        break;
    }
}
