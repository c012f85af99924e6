// SPDX-License-Identifier: MIT
//
// DETAILS: the selection. First why it is alive, then fields in columns, the most wanted first; what finds no room is
// left out, never cut in half. See draw.h.
//
//     == DETAILS: conv1_out ================================= alive at the cursor ==
//     Alive at step 5: relu1 reads it at step 6, its last reader.
//     size    1.00 MiB    made by  conv1 (step 1)    offset  0
//     life    5 steps     read by  relu1             below   nothing
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tui/draw/draw.h"
#include "tui/draw/format.h"

enum { MAX_FIELDS = 24, VALUE = 160, GAP = 3, MAX_COLUMNS = 8 };

typedef struct field {
    const char *label;
    char value[VALUE];
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

// ---- what there is to say ----

static void add_life(fields *f, const tide_tui_scene *s) {
    const tide_item_facts *item = &s->selection;
    char a[TIDE_TUI_WORD], b[TIDE_TUI_WORD], span[TIDE_TUI_WORD];
    tide_tui_when(s->a, item->begin, a, sizeof a);
    tide_tui_format_span(s->a, item->begin, item->end, span, sizeof span);
    if (item->open_ended) {
        add(f, "life", "from %s, never freed", a);
    } else {
        tide_tui_format_time(s->a, item->end, b, sizeof b);
        add(f, "life", item->is_left ? "%s to %s, never freed: its process ended" : "%s to %s", a, b);
        add(f, "lasts", "%s", span);
    }
}

static void add_makers(fields *f, const tide_tui_scene *s) {
    const tide_item_facts *item = &s->selection;
    char step[TIDE_TUI_WORD] = "";
    if (item->site.step >= 0) snprintf(step, sizeof step, " (step %" PRId64 ")", item->site.step);
    add(f, "made by", "%s%s",
        item->site.owner != NULL && item->site.owner[0] != '\0' ? item->site.owner : "(no operator)",
        item->site.owner != NULL && item->site.owner[0] != '\0' ? step : "");
    if (s->consumers[0] != '\0') add(f, "read by", "%s", s->consumers);
}

static void add_neighbour(fields *f, const tide_tui_scene *s, const char *label, uint32_t item, uint64_t gap) {
    char name[TIDE_TUI_WORD], size[TIDE_TUI_WORD];
    if (item == TIDE_NO_ITEM) {
        if (gap > 0) {
            add(f, label, "%s free", tide_tui_bytes(gap, size, sizeof size));
        } else {
            add(f, label, "nothing");
        }
    } else if (gap > 0) {
        add(f, label, "%s, %s free between", tide_tui_item_name(s, item, name, sizeof name),
            tide_tui_bytes(gap, size, sizeof size));
    } else {
        add(f, label, "%s", tide_tui_item_name(s, item, name, sizeof name));
    }
}

static void add_place(fields *f, const tide_tui_scene *s) {
    const tide_item_facts *item = &s->selection;
    char n[TIDE_TUI_WORD], name[TIDE_TUI_WORD];
    if (item->place == TIDE_NO_OFFSET) {
        add(f, "place", "%s", item->shape.persistent ? "of its own, outside the plan" : "none");
    } else if (item->shape.is_planned) {
        add(f, "offset", "%s", tide_tui_exact(item->place, n, sizeof n));
    } else {
        add(f, "address", "0x%" PRIx64, item->place);
    }
    if (item->pool != TIDE_NO_POOL) add(f, "pool", "%" PRId32, item->pool);
    if (item->alias_of != TIDE_NO_ITEM)
        add(f, "inside", "%s (%s)", tide_tui_item_name(s, item->alias_of, name, sizeof name),
            tide_alias_kind_name(item->shape.alias));
    if (item->place == TIDE_NO_OFFSET) return;
    if (!s->beside_unknown) {
        add_neighbour(f, s, "below", s->below, s->gap_below);
        add_neighbour(f, s, "above", s->above, s->gap_above);
    }
    if (s->before != TIDE_NO_ITEM) add(f, "before it", "%s", tide_tui_item_name(s, s->before, name, sizeof name));
    if (s->after != TIDE_NO_ITEM) add(f, "after it", "%s", tide_tui_item_name(s, s->after, name, sizeof name));
}

/// Of one that is sized while running: what it is at most, and what came out.
static void add_bound(fields *f, const tide_tui_scene *s) {
    const tide_size *x = &s->selection.size;
    char least[TIDE_TUI_WORD], most[TIDE_TUI_WORD], now[TIDE_TUI_WORD], share[TIDE_TUI_WORD], n[TIDE_TUI_WORD];
    if (!tide_size_is_bounded(x)) return;
    add(f, "at most", "%s", x->bound);
    if (x->n == 0) return;
    add(f, "came out", "%s, %s (%s)", x->extents, tide_tui_bytes(x->bytes, now, sizeof now),
        tide_tui_percent(x->bytes, s->selection.shape.size_bytes, share, sizeof share));
    if (x->n > 1)
        add(f, "each time", "%s to %s (%s times)", tide_tui_bytes(x->least_bytes, least, sizeof least),
            tide_tui_bytes(x->most_bytes, most, sizeof most), tide_tui_exact(x->n, n, sizeof n));
}

/// The bodies of If, Loop and Scan that the step lies in which made it.
static void add_body(fields *f, const tide_tui_scene *s) {
    if (s->made_in[0] != '\0') add(f, "in", "%s", s->made_in);
}

static void collect(const tide_tui_scene *s, fields *f) {
    const tide_item_facts *item = &s->selection;
    char size[TIDE_TUI_WORD], exact[TIDE_TUI_WORD], percent[TIDE_TUI_WORD];
    add(f, "size", "%s (%s B)", tide_tui_bytes(item->shape.size_bytes, size, sizeof size),
        tide_tui_exact(item->shape.size_bytes, exact, sizeof exact));
    add_bound(f, s);
    add_life(f, s);
    add_makers(f, s);
    add_body(f, s);
    add_place(f, s);
    if (item->shape.reserved_bytes != item->shape.size_bytes)
        add(f, "reserved", "%s", tide_tui_bytes(item->shape.reserved_bytes, size, sizeof size));
    add(f, "of peak", "%s", tide_tui_percent(item->shape.size_bytes, s->a->peak_bytes, percent, sizeof percent));
    add(f, "kind", "%s", tide_memory_kind_name(item->shape.kind));
    if (item->shape.is_planned) add(f, "role", "%s", tide_role_name(item->shape.role));
    if (item->shape.device != NULL && item->shape.device[0] != '\0') add(f, "device", "%s", item->shape.device);
    if (item->shape.allocator != NULL && item->shape.allocator[0] != '\0')
        add(f, "allocator", "%s", item->shape.allocator);
    add(f, item->shape.is_planned ? "index" : "block", "%" PRIu64, tide_planned_tensor(item->id));
    if (tide_id_is_planned(item->id)) add(f, "execution", "%" PRIu64, tide_planned_execution(item->id));
}

// ---- columns ----

/// Fields [from, to) one below the other at x: labels aligned. @return columns they take
static int column_w(const tide_tui_view *v, const fields *f, int from, int to, int *label_w) {
    int labels = 0, values = 0;
    for (int i = from; i < to; i++) {
        const int l = tide_tui_text_width(v->glyphs, f->list[i].label);
        const int w = tide_tui_text_width(v->glyphs, f->list[i].value);
        if (l > labels) labels = l;
        if (w > values) values = w;
    }
    *label_w = labels;
    return labels + 1 + values;
}

/// Fields go down the columns, so that related ones stand together. A column that does not fit is left out, except the
/// first.
static void draw_fields(const tide_tui_view *v, tide_tui_rect r, const fields *f) {
    if (r.h <= 0) return;
    int x = r.x;
    for (int from = 0; from < f->n; from += r.h) {
        const int to = from + r.h < f->n ? from + r.h : f->n;
        int label_w = 0;
        const int need = column_w(v, f, from, to, &label_w), room = r.x + r.w - x;
        if (from > 0 && room < label_w + 8) break;
        for (int i = from; i < to; i++) {
            const int y = r.y + i - from, value_x = x + label_w + 1;
            const int w = tide_tui_text_width(v->glyphs, f->list[i].value);
            if (from > 0 && w > r.x + r.w - value_x) continue;
            tide_tui_text(v, x, y, label_w < room ? label_w : room, f->list[i].label, TIDE_TUI_CUT_END,
                          TIDE_TUI_ROLE_DIM);
            tide_tui_text(v, value_x, y, r.x + r.w - value_x, f->list[i].value, TIDE_TUI_CUT_MIDDLE,
                          TIDE_TUI_ROLE_TEXT);
        }
        x += need + GAP;
    }
}

/// The line for screens without room.
static void draw_one_line(const tide_tui_view *v, tide_tui_rect r) {
    const tide_item_facts *item = &v->scene->selection;
    char text[512], size[TIDE_TUI_WORD], a[TIDE_TUI_WORD], b[TIDE_TUI_WORD];
    tide_tui_when(v->scene->a, item->begin, a, sizeof a);
    tide_tui_format_time(v->scene->a, item->end, b, sizeof b);
    snprintf(text, sizeof text, "%s %s..%s %s %s", tide_tui_bytes(item->shape.size_bytes, size, sizeof size), a,
             item->open_ended ? "(never freed)" : b, tide_memory_kind_name(item->shape.kind),
             tide_tui_named(item->site.name));
    tide_tui_text(v, r.x + 1, r.y, r.w - 2, text, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_TEXT);
}

void tide_tui_draw_details(const tide_tui_view *v) {
    const tide_tui_scene *s = v->scene;
    const tide_tui_rect r = s->layout->panes[TIDE_TUI_PANE_DETAILS];
    if (r.w <= 0 || r.h <= 0) return;
    if (r.h == 1 && s->has_selection) {
        draw_one_line(v, r);
        return;
    }
    char facts[64] = "";
    const tide_item_facts *item = &s->selection;
    const int64_t t = s->state->cursor;
    if (s->has_selection) {
        const bool alive = item->begin <= t && (item->open_ended || t < item->end);
        snprintf(facts, sizeof facts, "%s at the cursor", alive ? "alive" : t < item->begin ? "not born yet" : "dead");
    }
    const tide_tui_rect body =
        tide_tui_heading(v, TIDE_TUI_PANE_DETAILS, s->has_selection ? tide_tui_named(item->site.name) : "", facts);
    if (!s->has_selection) {
        tide_tui_draw_state_of(v, TIDE_TUI_PANE_DETAILS, body, "Nothing is selected.");
        return;
    }
    tide_tui_rect rest = {body.x + 1, body.y, body.w - 2, body.h};
    if (s->why[0] != '\0' && body.h >= 3 && rest.w > 0) {
        tide_tui_lines p = {.v = v, .r = {rest.x, rest.y, rest.w, body.h - 2}};
        tide_tui_lines_wrap(&p, 0, s->why, TIDE_TUI_ROLE_TITLE);
        const int used = p.n < (size_t)(body.h - 2) ? (int)p.n : body.h - 2;
        rest.y += used;
        rest.h -= used;
    }
    fields f = {.n = 0};
    collect(s, &f);
    draw_fields(v, rest, &f);
}
