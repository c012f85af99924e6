// SPDX-License-Identifier: MIT
//
// Lifetimes as a CSV (docs/lifetimes-format.md). A column is written where some line needs it, so that a table which
// uses nothing but MiniMalloc's features becomes a file that MiniMalloc reads.
#include <inttypes.h>
#include <string.h>

#include "core/base/checked.h"
#include "planner/lifetimes_csv.h"
#include "planner/planner.h"

typedef struct writer {
    const tide_lifetimes *lt;
    const tide_memory_plan *plan; // NULL: offsets are those that were given
    bool has[TIDE_N_CSV_COLUMNS];
    tide_text *out;
} writer;

// ---- names ----

/// CSV of this form has no quoting: a name must survive the reader's trimming and splitting.
static const char *fault_of_name(const char *name) {
    const size_t len = strlen(name);
    if (len == 0) return "it is empty";
    if (strchr(name, ',') != NULL) return "it has a comma";
    if (strpbrk(name, "\r\n") != NULL) return "it has a line break";
    if (name[0] == '"') return "it begins with a quote";
    if (strchr(" \t", name[0]) != NULL || strchr(" \t", name[len - 1]) != NULL) return "it has blanks at an end";
    return NULL;
}

tide_status tide__csv_check_names(const tide_lifetimes *lt, tide_error *err) {
    for (size_t i = 0; i < lt->n; i++) {
        const char *fault = fault_of_name(lt->items[i].name);
        if (fault == NULL) continue;
        const tide_status st =
            TIDE_FAIL(err, TIDE_ERR_INVALID, "tensor '%s' cannot be listed in a CSV: %s", lt->items[i].name, fault);
        tide_error_hint(err, "this form of CSV has no quoting; JSON holds any name");
        return st;
    }
    return TIDE_OK;
}

/// "a+3" would be read as 3 bytes into "a".
static bool ends_like_an_offset(const char *name) {
    const char *plus = strrchr(name, '+');
    return plus != NULL && plus[1] != '\0' && strspn(plus + 1, "0123456789") == strlen(plus + 1);
}

// ---- columns ----

static bool offset_of(const writer *w, size_t i, uint64_t *out) {
    const tide_lifetime *item = &w->lt->items[i];
    if (w->plan != NULL) {
        *out = w->plan->offsets[i];
        return *out != TIDE_NO_OFFSET;
    }
    *out = item->fixed_offset_bytes;
    return item->fixed;
}

static void note_columns(writer *w) {
    static const tide_csv_column always[] = {TIDE_CSV_COLUMN_ID, TIDE_CSV_COLUMN_BEGIN, TIDE_CSV_COLUMN_END,
                                             TIDE_CSV_COLUMN_SIZE};
    for (size_t k = 0; k < sizeof always / sizeof always[0]; k++) w->has[always[k]] = true;
    for (size_t i = 0; i < w->lt->n; i++) {
        const tide_lifetime *item = &w->lt->items[i];
        uint64_t offset;
        w->has[TIDE_CSV_COLUMN_ALIGNMENT] |= item->align_bytes != 1;
        w->has[TIDE_CSV_COLUMN_GAPS] |= item->n_gaps > 0;
        w->has[TIDE_CSV_COLUMN_OFFSET] |= offset_of(w, i, &offset);
        w->has[TIDE_CSV_COLUMN_ROUNDED] |= !item->unrounded;
        w->has[TIDE_CSV_COLUMN_KIND] |= item->kind != (item->persistent ? TIDE_KIND_DEFAULT : TIDE_KIND_WORKSPACE);
        w->has[TIDE_CSV_COLUMN_DEVICE] |= !tide_device_equal(item->device, TIDE_CPU);
        w->has[TIDE_CSV_COLUMN_ROLE] |= item->role != TIDE_ROLE_INTERMEDIATE;
        w->has[TIDE_CSV_COLUMN_PERSISTENT] |= item->persistent;
        w->has[TIDE_CSV_COLUMN_ALIAS] |= item->alias != TIDE_ALIAS_NONE;
        w->has[TIDE_CSV_COLUMN_ALIAS_KIND] |= item->alias != TIDE_ALIAS_NONE && item->alias != TIDE_ALIAS_GIVEN;
        w->has[TIDE_CSV_COLUMN_APART] |= item->apart_set != 0;
    }
}

static void add_gaps(tide_text *out, const tide_lifetime *item) {
    for (uint32_t k = 0; k < item->n_gaps; k++) {
        const tide_gap *gap = &item->gaps[k];
        tide_text_addf(out, "%s%" PRId64 "-%" PRId64, k > 0 ? " " : "", gap->begin_step, gap->end_step);
        if (gap->hi_bytes > 0) tide_text_addf(out, "@%" PRIu64 ":%" PRIu64, gap->lo_bytes, gap->hi_bytes);
    }
}

static void add_alias(const writer *w, const tide_lifetime *item) {
    if (item->alias == TIDE_ALIAS_NONE) return;
    const char *name = w->lt->items[item->alias_of].name;
    tide_text_add(w->out, name);
    if (item->alias_offset_bytes > 0 || ends_like_an_offset(name))
        tide_text_addf(w->out, "+%" PRIu64, item->alias_offset_bytes);
}

static void add_cell(const writer *w, tide_csv_column column, size_t i) {
    const tide_lifetime *item = &w->lt->items[i];
    tide_text *out = w->out;
    char device[16];
    uint64_t offset;
    switch (column) {
    case TIDE_CSV_COLUMN_ID:
        tide_text_add(out, item->name);
        break;
    case TIDE_CSV_COLUMN_BEGIN:
        tide_text_addf(out, "%" PRId64, item->begin_step);
        break;
    case TIDE_CSV_COLUMN_END:
        tide_text_addf(out, "%" PRId64, item->end_step);
        break;
    case TIDE_CSV_COLUMN_SIZE:
        tide_text_addf(out, "%" PRIu64, item->size_bytes);
        break;
    case TIDE_CSV_COLUMN_ALIGNMENT:
        tide_text_addf(out, "%" PRIu64, item->align_bytes);
        break;
    case TIDE_CSV_COLUMN_GAPS:
        add_gaps(out, item);
        break;
    case TIDE_CSV_COLUMN_OFFSET:
        if (offset_of(w, i, &offset)) tide_text_addf(out, "%" PRIu64, offset);
        break;
    case TIDE_CSV_COLUMN_ROUNDED:
        tide_text_add(out, item->unrounded ? "0" : "1");
        break;
    case TIDE_CSV_COLUMN_KIND:
        tide_text_add(out, tide_memory_kind_name(item->kind));
        break;
    case TIDE_CSV_COLUMN_DEVICE:
        tide_text_add(out, tide_device_format(item->device, device, sizeof device));
        break;
    case TIDE_CSV_COLUMN_ROLE:
        tide_text_add(out, tide_role_name(item->role));
        break;
    case TIDE_CSV_COLUMN_PERSISTENT:
        tide_text_add(out, item->persistent ? "1" : "0");
        break;
    case TIDE_CSV_COLUMN_ALIAS:
        add_alias(w, item);
        break;
    case TIDE_CSV_COLUMN_ALIAS_KIND:
        if (item->alias != TIDE_ALIAS_NONE) tide_text_add(out, tide_alias_kind_name(item->alias));
        break;
    case TIDE_CSV_COLUMN_APART:
        if (item->apart_set != 0) tide_text_addf(out, "%" PRIu32, item->apart_set);
        break;
    case TIDE_CSV_COLUMN_LAST:
    case TIDE_CSV_COLUMN_HINT:
    case TIDE_N_CSV_COLUMNS:
        break;
    }
}

static void add_rows(const writer *w) {
    const char *comma = "";
    for (int k = 0; k < TIDE_N_CSV_COLUMNS; k++) {
        if (!w->has[k]) continue;
        tide_text_addf(w->out, "%s%s", comma, tide__csv_heads[k]);
        comma = ",";
    }
    tide_text_add(w->out, "\n");
    for (size_t i = 0; i < w->lt->n; i++) {
        comma = "";
        for (int k = 0; k < TIDE_N_CSV_COLUMNS; k++) {
            if (!w->has[k]) continue;
            tide_text_add(w->out, comma);
            add_cell(w, (tide_csv_column)k, i);
            comma = ",";
        }
        tide_text_add(w->out, "\n");
    }
}

tide_status tide__csv_hand_over(tide_text *own, tide_text *out, tide_error *err) {
    if (!own->failed) tide_text_add_n(out, own->data, own->len);
    const bool failed = own->failed || out->failed;
    tide_text_deinit(own);
    return failed ? TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for a list of lifetimes") : TIDE_OK;
}

tide_status tide_lifetimes_to_csv(const tide_lifetimes *lt, const tide_memory_plan *plan, tide_text *out,
                                  tide_error *err) {
    TIDE_TRY(tide__csv_check_names(lt, err));
    tide_text own = {0};
    writer w = {.lt = lt, .plan = plan, .out = &own};
    note_columns(&w);
    add_rows(&w);
    return tide__csv_hand_over(&own, out, err);
}
