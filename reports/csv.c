// SPDX-License-Identifier: MIT
//
// CSV: one row per item, RFC 4180 (header, CRLF, doubled quotes), units in the column names, plain integers, an empty
// cell for what is unknown. The bytes of an alias are those of the item named `inside`: sums leave aliases out. Times
// are as on the axis: of a run, nanoseconds of CLOCK_MONOTONIC as in the trace.
#include "reports/render.h"

#include <inttypes.h>

#include "reports/escape.h"

static void add_row(const tide_timeline *tl, const tide_timeline_item *item, tide_text *out) {
    tide_text_addf(out, "%" PRIu64 ",", item->id);
    tide_report_add_csv(out, item->name);
    tide_text_add(out, ",");
    tide_report_add_csv(out, item->owner);
    tide_text_addf(out, ",%s,%s", tide_memory_kind_name(item->kind),
                   tide_report_knows_role(tl, item) ? tide_role_name(item->role) : "");
    tide_text_addf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRId64 ",%" PRId64, item->size_bytes, item->reserved_bytes,
                   item->begin, item->end);
    tide_text_addf(out, ",%d,%d,", item->open_ended, item->persistent);
    if (item->pool != TIDE_NO_POOL) tide_text_addf(out, "%" PRId32, item->pool);
    tide_text_add(out, ",");
    if (item->offset_bytes != TIDE_NO_OFFSET) tide_text_addf(out, "%" PRIu64, item->offset_bytes);
    tide_text_addf(out, ",%d,", tide_timeline_alive_at(item, tl->peak_t));
    const char *inside = tide_timeline_inside(tl, item);
    if (inside != NULL) tide_text_add(out, tide_alias_kind_name(item->alias));
    tide_text_add(out, ",");
    if (inside != NULL) tide_report_add_csv(out, inside);
    tide_text_add(out, "\r\n");
}

tide_status tide_report_csv(const tide_timeline *tl, tide_text *out, tide_error *err) {
    (void)err;
    const char *unit = tl->axis == TIDE_AXIS_STEPS ? "step" : "ns";
    tide_text_addf(out,
                   "id,name,owner,kind,role,size_bytes,reserved_bytes,begin_%s,end_%s,open_ended,persistent,pool,"
                   "offset_bytes,alive_at_peak,alias,inside\r\n",
                   unit, unit);
    for (size_t i = 0; i < tl->n_items; i++) add_row(tl, &tl->items[i], out);
    return TIDE_OK;
}
