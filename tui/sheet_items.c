// SPDX-License-Identifier: MIT
//
// Panes of things as tables: curve, gantt, map, table, operators, details. See sheet.h.
#include <inttypes.h>
#include <stdio.h>

#include "tui/sheet_internal.h"

#define TEXT TIDE_UNIT_TEXT
#define COUNT TIDE_UNIT_COUNT
#define BYTES TIDE_UNIT_BYTES
#define TIME TIDE_UNIT_TIME
#define FLAG TIDE_UNIT_FLAG
#define ADDRESS TIDE_UNIT_ADDRESS

const char *tide__item_name(const tide_tui_scene *s, uint32_t item) {
    const tide_items *items = tide_subject_items(s->state->a);
    return items != NULL && item < items->n ? tide_items_site(items, item)->name : "";
}

// ---- what it is: the same fields wherever an item is told of ----

enum { NAME, OWNER, STEP, KIND, DEVICE, ALLOCATOR, SIZE, RESERVED, N_WHAT };
#define WHAT_FIELDS                                                                                                    \
    {"name", "name", TEXT}, {"owner", "made by", TEXT}, {"step", "step of that", COUNT}, {"kind", "kind", TEXT},       \
        {"device", "device", TEXT}, {"allocator", "allocator", TEXT}, {"size_bytes", "size", BYTES}, {                 \
        "reserved_bytes", "reserved", BYTES                                                                            \
    }

static tide_tui_value get_what(const tide_item_site *site, const tide_item_shape *shape, size_t field) {
    switch (field) {
    case NAME:
        return tide__text(site->name);
    case OWNER:
        return tide__text(site->owner);
    case STEP:
        return site->step >= 0 ? tide__count((uint64_t)site->step) : tide__unknown();
    case KIND:
        return tide__text(tide_memory_kind_name(shape->kind));
    case DEVICE:
        return tide__text(shape->device);
    case ALLOCATOR:
        return tide__text(shape->allocator);
    case SIZE:
        return tide__bytes(shape->size_bytes);
    default:
        return tide__bytes(shape->reserved_bytes);
    }
}

// ---- curve ----

static const tide_column curve_fields[] = {
    {"begin", "from", TIME},
    {"min_bytes", "least", BYTES},
    {"max_bytes", "most", BYTES},
    {"predicted_bytes", "predicted", BYTES},
    {"b_min_bytes", "least of B", BYTES},
    {"b_max_bytes", "most of B", BYTES},
};

static tide_tui_value get_curve(const tide_tui_scene *s, size_t row, size_t field, char *buf) {
    (void)buf;
    const tide_tui_window w = s->state->window;
    const uint64_t span = tide_tui_window_span(w), n = s->n_columns;
    switch (field) {
    case 0:
        return tide__time((int64_t)((uint64_t)w.begin + span / n * row + span % n * row / n));
    case 1:
        return s->min != NULL ? tide__bytes(s->min[row]) : tide__unknown();
    case 2:
        return s->max != NULL ? tide__bytes(s->max[row]) : tide__unknown();
    case 3:
        return s->predicted_max != NULL ? tide__bytes(s->predicted_max[row]) : tide__unknown();
    case 4:
        return s->b_min != NULL ? tide__bytes(s->b_min[row]) : tide__unknown();
    default:
        return s->b_max != NULL ? tide__bytes(s->b_max[row]) : tide__unknown();
    }
}

// ---- gantt: an item each ----

static const tide_column gantt_fields[] = {
    WHAT_FIELDS,
    {"id", "number", COUNT},
    {"place_bytes", "at", ADDRESS},
    {"begin", "begins", TIME},
    {"end", "ends", TIME},
    {"never_freed", "never freed", FLAG},
    {"persistent", "persistent", FLAG},
};

static tide_tui_value get_item(const tide_items *items, uint32_t item, size_t field) {
    const tide_item_shape *shape = tide_items_shape(items, item);
    switch (field) {
    case N_WHAT:
        return tide__count(tide_items_id(items, item));
    case N_WHAT + 1:
        return items->place != NULL ? tide__bytes(items->place[item]) : tide__unknown();
    case N_WHAT + 2:
        return tide__time(tide_items_begin(items, item));
    case N_WHAT + 3:
        return tide__time(tide_items_end(items, item));
    case N_WHAT + 4:
        return tide__flag(tide_items_is_open_ended(items, item));
    case N_WHAT + 5:
        return tide__flag(shape->persistent);
    default:
        return get_what(tide_items_site(items, item), shape, field);
    }
}

static tide_tui_value get_gantt(const tide_tui_scene *s, size_t row, size_t field, char *buf) {
    (void)buf;
    return get_item(tide_subject_items(s->state->a), s->rows->members[row], field);
}

// ---- gantt: a group each ----

static const tide_column group_fields[] = {
    {"group", "group", TEXT},
    {"items", "items", COUNT},
    {"size_bytes", "together", BYTES},
    {"begin", "the first begins", TIME},
};

static tide_tui_value get_group(const tide_tui_scene *s, size_t row, size_t field, char *buf) {
    (void)buf;
    const tide_rows *rows = s->rows;
    switch (field) {
    case 0:
        return tide__text(rows->keys[row]);
    case 1:
        return tide__count(rows->first[row + 1] - rows->first[row]);
    case 2:
        return tide__bytes(rows->bytes[row]);
    default:
        return tide__time(tide_items_begin(tide_subject_items(s->state->a), rows->members[rows->first[row]]));
    }
}

// ---- map: regions ----

static const tide_column map_fields[] = {
    {"region", "region", TEXT},    {"kind", "kind", TEXT},        {"device", "device", TEXT},
    {"base_bytes", "at", ADDRESS}, {"size_bytes", "size", BYTES}, {"bound_bytes", "lower bound", BYTES},
    {"begin", "there from", TIME}, {"end", "to", TIME},           {"guessed", "nobody told of it", FLAG},
};

static tide_tui_value get_map(const tide_tui_scene *s, size_t row, size_t field, char *buf) {
    (void)buf;
    const tide_region *r = &s->space->regions[row];
    switch (field) {
    case 0:
        return tide__text(r->label);
    case 1:
        return tide__text(tide_memory_kind_name(r->kind));
    case 2:
        return tide__text(r->device);
    case 3:
        return tide__bytes(r->base);
    case 4:
        return tide__bytes(r->bytes);
    case 5:
        return r->bound_bytes > 0 ? tide__bytes(r->bound_bytes) : tide__unknown();
    case 6:
        return tide__time(r->begin);
    case 7:
        return tide__time(r->end);
    default:
        return tide__flag(r->is_guessed);
    }
}

// ---- table: who is alive at the cursor ----

static const tide_column table_fields[] = {
    WHAT_FIELDS,
    {"id", "number", COUNT},
    {"counts_bytes", "counts", BYTES},
    {"place_bytes", "at", ADDRESS},
    {"begin", "since", TIME},
    {"free_requested", "given up by its owner", FLAG},
};

static tide_tui_value get_table(const tide_tui_scene *s, size_t row, size_t field, char *buf) {
    (void)buf;
    const tide_live_item *l = &s->live->items[row];
    switch (field) {
    case N_WHAT:
        return tide__count(l->id);
    case N_WHAT + 1:
        return tide__bytes(l->counts_bytes);
    case N_WHAT + 2:
        return tide__bytes(l->place);
    case N_WHAT + 3:
        return tide__time(l->begin);
    case N_WHAT + 4:
        return tide__flag(l->free_requested);
    default:
        return get_what(&l->site, &l->shape, field);
    }
}

// ---- operators ----

static const tide_column operator_fields[] = {
    {"operator", "operator", TEXT},  {"step", "step", COUNT},         {"begin", "begins", TIME},
    {"makes_bytes", "makes", BYTES}, {"frees_bytes", "frees", BYTES}, {"live_bytes", "highest while it runs", BYTES},
};

static tide_tui_value get_operator(const tide_tui_scene *s, size_t row, size_t field, char *buf) {
    (void)buf;
    const tide_tui_operator *o = &s->operators[row];
    switch (field) {
    case 0:
        return tide__text(o->name);
    case 1:
        return tide__count(o->step);
    case 2:
        return tide__time(o->begin);
    case 3:
        return tide__bytes(o->makes_bytes);
    case 4:
        return tide__bytes(o->frees_bytes);
    default:
        return tide__bytes(o->live_bytes);
    }
}

// ---- details: the selection ----

static const tide_column details_fields[] = {
    WHAT_FIELDS,
    {"id", "number", COUNT},
    {"role", "role", TEXT},
    {"place_bytes", "at", ADDRESS},
    {"pool", "pool", COUNT},
    {"begin", "begins", TIME},
    {"end", "ends", TIME},
    {"never_freed", "never freed", FLAG},
    {"persistent", "persistent", FLAG},
    {"alias", "alias", TEXT},
    {"alias_of", "lies in", TEXT},
    {"below", "below it", TEXT},
    {"gap_below_bytes", "free below it", BYTES},
    {"above", "above it", TEXT},
    {"gap_above_bytes", "free above it", BYTES},
    {"before", "had its place before", TEXT},
    {"after", "gets its place next", TEXT},
    {"consumers", "read by", TEXT},
    {"why", "why", TEXT},
};

static tide_tui_value get_neighbour(const tide_tui_scene *s, size_t field) {
    switch (field) {
    case N_WHAT + 10:
        return tide__text(tide__item_name(s, s->below));
    case N_WHAT + 11:
        return s->below != TIDE_NO_ITEM || s->gap_below > 0 ? tide__bytes(s->gap_below) : tide__unknown();
    case N_WHAT + 12:
        return tide__text(tide__item_name(s, s->above));
    case N_WHAT + 13:
        return s->above != TIDE_NO_ITEM || s->gap_above > 0 ? tide__bytes(s->gap_above) : tide__unknown();
    case N_WHAT + 14:
        return tide__text(tide__item_name(s, s->before));
    case N_WHAT + 15:
        return tide__text(tide__item_name(s, s->after));
    case N_WHAT + 16:
        return tide__text(s->consumers);
    default:
        return tide__text(s->why);
    }
}

static tide_tui_value get_details(const tide_tui_scene *s, size_t row, size_t field, char *buf) {
    (void)row;
    (void)buf;
    const tide_item_facts *x = &s->selection;
    switch (field) {
    case N_WHAT:
        return tide__count(x->id);
    case N_WHAT + 1:
        return tide__text(x->shape.is_planned ? tide_role_name(x->shape.role) : "");
    case N_WHAT + 2:
        return tide__bytes(x->place);
    case N_WHAT + 3:
        return x->pool != TIDE_NO_POOL ? tide__count((uint64_t)x->pool) : tide__unknown();
    case N_WHAT + 4:
        return tide__time(x->begin);
    case N_WHAT + 5:
        return tide__time(x->end);
    case N_WHAT + 6:
        return tide__flag(x->open_ended);
    case N_WHAT + 7:
        return tide__flag(x->shape.persistent);
    case N_WHAT + 8:
        return tide__text(x->shape.alias != TIDE_ALIAS_NONE ? tide_alias_kind_name(x->shape.alias) : "");
    case N_WHAT + 9:
        return tide__text(tide__item_name(s, x->alias_of));
    default:
        return field < N_WHAT ? get_what(&x->site, &x->shape, field) : get_neighbour(s, field);
    }
}

// ---- all of them ----

static size_t n_shown(const tide_tui_scene *s) {
    return s->rows != NULL && tide_subject_items(s->state->a) != NULL ? s->rows->n : 0;
}

size_t tide__sheets_of_items(const tide_tui_scene *s, tide_tui_pane pane, tide_tui_sheet out[TIDE_TUI_MAX_SHEETS]) {
    switch (pane) {
    case TIDE_TUI_PANE_CURVE:
        out[0] = TIDE__SHEET(s, "rows", curve_fields, s->max != NULL ? s->n_columns : 0, get_curve);
        return 1;
    case TIDE_TUI_PANE_GANTT:
        if (s->rows != NULL && s->rows->first != NULL && s->rows->keys != NULL) {
            out[0] = TIDE__SHEET(s, "rows", group_fields, n_shown(s), get_group);
        } else {
            out[0] = TIDE__SHEET(s, "rows", gantt_fields, n_shown(s), get_gantt);
        }
        return 1;
    case TIDE_TUI_PANE_MAP:
        out[0] = TIDE__SHEET(s, "rows", map_fields, s->space != NULL ? s->space->n : 0, get_map);
        return 1;
    case TIDE_TUI_PANE_TABLE:
        out[0] = TIDE__SHEET(s, "rows", table_fields, s->live != NULL ? s->live->n : 0, get_table);
        return 1;
    case TIDE_TUI_PANE_OPERATORS:
        out[0] = TIDE__SHEET(s, "rows", operator_fields, s->n_operators, get_operator);
        return 1;
    case TIDE_TUI_PANE_DETAILS:
        out[0] = TIDE__SHEET(s, "rows", details_fields, s->has_selection ? 1 : 0, get_details);
        return 1;
    default:
        return 0;
    }
}
