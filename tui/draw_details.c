// SPDX-License-Identifier: MIT
//
// What there is to know about the selected item, as labelled fields in columns; the most wanted come first, and those
// that find no room are left out. See draw.h.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tui/draw.h"

enum { MAX_FIELDS = 16, FIELD_WIDTH = 26, LABEL_WIDTH = 9 };

typedef struct field {
    const char *label;
    char value[48];
    const char *foreign; ///< a name from the input instead of `value`
} field;

typedef struct fields {
    field list[MAX_FIELDS];
    int n;
} fields;

static void add(fields *f, const char *label, const char *fmt, ...) TIDE_PRINTF(3, 4);
static void add(fields *f, const char *label, const char *fmt, ...) {
    if (f->n == MAX_FIELDS) return;
    field *to = &f->list[f->n++];
    to->label = label;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(to->value, sizeof to->value, fmt, ap);
    va_end(ap);
}

static void add_life(fields *f, const tide_timeline *tl, const tide_timeline_item *item) {
    char a[32], b[32];
    tide_tui_format_time(tl, item->begin, a, sizeof a);
    add(f, "begin", "%s", a);
    if (item->open_ended) {
        add(f, "end", "never freed");
    } else {
        add(f, "end", "%s", tide_tui_format_time(tl, item->end, b, sizeof b));
    }
    add(f, "life", "%s", tide_tui_format_span(tl, item->begin, item->end, a, sizeof a));
}

static void add_place(fields *f, const tide_timeline_item *item) {
    if (item->pool != TIDE_NO_POOL) add(f, "pool", "%" PRId32, item->pool);
    if (item->offset_bytes != TIDE_NO_OFFSET) add(f, "offset", "%" PRIu64, item->offset_bytes);
    if (item->pool == TIDE_NO_POOL && item->offset_bytes == TIDE_NO_OFFSET) add(f, "offset", "none");
}

static void collect(const tide_tui_model *m, const tide_timeline_item *item, fields *f) {
    const tide_timeline *tl = m->tl;
    char size[24];
    const bool at_peak = tide_timeline_alive_at(item, tl->peak_t);
    add(f, "size", "%s", tide_format_bytes(item->size_bytes, size, sizeof size));
    add_life(f, tl, item);
    add(f, "at peak", "%s", at_peak ? "alive" : "not alive");
    const char *inside = tide_timeline_inside(tl, item);
    if (inside != NULL) { // its bytes are those of the other: no share of its own
        add(f, "inside", "%s", "");
        f->list[f->n - 1].foreign = inside;
    } else if (at_peak && tl->peak_bytes > 0) {
        add(f, "of peak", "%.1f %%", 100.0 * (double)item->size_bytes / (double)tl->peak_bytes);
    }
    add(f, "op", "%s", "none");
    if (item->owner[0] != '\0') f->list[f->n - 1].foreign = item->owner;
    add(f, "kind", "%s", tide_memory_kind_name(item->kind));
    if (tl->axis == TIDE_AXIS_STEPS || item->role != TIDE_ROLE_INTERMEDIATE)
        add(f, "role", "%s", tide_role_name(item->role));
    add_place(f, item);
    if (item->reserved_bytes != item->size_bytes)
        add(f, "reserved", "%s", tide_format_bytes(item->reserved_bytes, size, sizeof size));
    add(f, "at cursor", "%s", tide_timeline_alive_at(item, m->cursor) ? "alive" : "not alive");
    add(f, "id", "%" PRIu64, item->id);
}

static void draw_fields(const tide_tui_view *v, const tide_tui_rect r, const fields *f) {
    const int columns = r.w / FIELD_WIDTH > 0 ? r.w / FIELD_WIDTH : 1;
    for (int i = 0; i < f->n && i < columns * r.h; i++) {
        // Down the columns, so that related fields stand together.
        const int x = r.x + i / r.h * FIELD_WIDTH, y = r.y + i % r.h;
        tide_tui_text(v, x, y, LABEL_WIDTH, f->list[i].label, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_DIM);
        const char *value = f->list[i].foreign != NULL ? f->list[i].foreign : f->list[i].value;
        tide_tui_text(v, x + LABEL_WIDTH + 1, y, FIELD_WIDTH - LABEL_WIDTH - 2, value, TIDE_TUI_CUT_MIDDLE,
                      TIDE_TUI_ROLE_TEXT);
    }
}

/// The line for screens without room: size, life, share.
static void draw_one_line(const tide_tui_view *v, const tide_timeline_item *item) {
    const tide_timeline *tl = v->model->tl;
    const tide_tui_rect r = v->layout->details;
    char text[128], size[24], a[32], b[32];
    snprintf(text, sizeof text, "%s %s..%s %s%s", tide_format_bytes(item->size_bytes, size, sizeof size),
             tide_tui_format_time(tl, item->begin, a, sizeof a), tide_tui_format_time(tl, item->end, b, sizeof b),
             tide_memory_kind_name(item->kind), tide_timeline_alive_at(item, tl->peak_t) ? ", at peak" : "");
    tide_tui_text(v, r.x + 1, r.y, r.w - 2, text, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_TEXT);
}

void tide_tui_draw_details(const tide_tui_view *v) {
    const tide_timeline_item *item = tide_tui_selected(v->model);
    const tide_tui_rect r = v->layout->details;
    if (item == NULL || r.h == 0) return;
    if (r.h == 1) {
        draw_one_line(v, item);
        return;
    }
    tide_tui_fill_row(v->grid, r.x, r.y, r.w, v->glyphs->rule, TIDE_TUI_ROLE_DIM);
    tide_tui_put(v->grid, r.x + 1, r.y, ' ', TIDE_TUI_ROLE_DIM);
    const int w = tide_tui_text(v, r.x + 2, r.y, r.w - 6, item->name[0] != '\0' ? item->name : "(unnamed)",
                                TIDE_TUI_CUT_MIDDLE, TIDE_TUI_ROLE_TITLE);
    tide_tui_put(v->grid, r.x + 2 + w, r.y, ' ', TIDE_TUI_ROLE_DIM);
    fields f = {0};
    collect(v->model, item, &f);
    draw_fields(v, (tide_tui_rect){r.x + 1, r.y + 1, r.w - 2, r.h - 1}, &f);
}
