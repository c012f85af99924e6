// SPDX-License-Identifier: MIT
//
// How tables are filled: parts of tables.c in files of their own. Private to reports/.
#ifndef TIDE_REPORTS_TABLES_INTERNAL_H
#define TIDE_REPORTS_TABLES_INTERNAL_H

#include "reports/tables.h"

/// Both append what there is and return how many.
size_t tide__report_pair_tables(const tide_report *r, tide_report_table *out);
size_t tide__report_side_tables(const tide_report *r, const tide_report_side *side, const char *of,
                                tide_report_table *out);

static inline void tide__put_text(tide_report_value *v, const char *text) {
    v->known = text != NULL;
    v->text = text;
}
/// The same where "" means that there is none.
static inline void tide__put_text_or_none(tide_report_value *v, const char *text) {
    tide__put_text(v, text != NULL && text[0] != '\0' ? text : NULL);
}
static inline void tide__put_count(tide_report_value *v, uint64_t n) {
    v->known = true;
    v->u = n;
}
/// Of bytes: TIDE_UNKNOWN_BYTES is not known.
static inline void tide__put_bytes(tide_report_value *v, uint64_t bytes) {
    v->known = bytes != TIDE_UNKNOWN_BYTES;
    v->u = bytes;
}
static inline void tide__put_change(tide_report_value *v, uint64_t from, uint64_t to) {
    v->known = from != TIDE_UNKNOWN_BYTES && to != TIDE_UNKNOWN_BYTES;
    v->i = (int64_t)(to - from);
}
static inline void tide__put_share(tide_report_value *v, uint64_t part, uint64_t whole) {
    v->known = whole > 0;
    v->real = whole > 0 ? (double)part / (double)whole : 0.0;
}

#endif
