// SPDX-License-Identifier: MIT
//
// The tables of all panes. Those of answers (pools, explanation, comparison) are declared in analysis/answer_tables.
// See tables.h.
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "analysis/answer_tables.h"
#include "tui/scene/tables.h"

#define TEXT TIDE_UNIT_TEXT
#define KIND TIDE_UNIT_KIND
#define COUNT TIDE_UNIT_COUNT
#define BYTES TIDE_UNIT_BYTES
#define TIME TIDE_UNIT_TIME
#define FLAG TIDE_UNIT_FLAG
#define ADDRESS TIDE_UNIT_ADDRESS

#define SHEET(sheet_name, s, list, count, ...)                                                                         \
    ((tide_table){                                                                                                     \
        .name = (sheet_name), TIDE_COLUMNS(list), .n_rows = (count), .data = (s), .facts = (s)->a, __VA_ARGS__})
#define ROWS_OF(array) .rows = (array), .row_bytes = sizeof *(array)

static const tide_tui_scene *scene_of(const tide_table *t) { return t->data; }
static const tide_items *items_of(const tide_table *t) { return tide_subject_items(scene_of(t)->state->a); }

// ---- items: tide_item_facts and tide_live_item both have a site and a shape ----

#define ITEM_COLUMNS(type)                                                                                             \
    {"name", "name", TEXT, TIDE_AT(type, site.name)}, {"owner", "made by", TEXT, TIDE_AT(type, site.owner)},           \
        {"step", "step of that", COUNT, TIDE_AT(type, site.step)}, {"kind", "kind", KIND, TIDE_AT(type, shape.kind)},  \
        {"device", "device", TEXT, TIDE_AT(type, shape.device)},                                                       \
        {"allocator", "allocator", TEXT, TIDE_AT(type, shape.allocator)},                                              \
        {"size_bytes", "size", BYTES, TIDE_AT(type, shape.size_bytes)},                                                \
        {"reserved_bytes", "reserved", BYTES, TIDE_AT(type, shape.reserved_bytes)},                                    \
        {"bound", "at most", TEXT, TIDE_AT(type, size.bound)},                                                         \
        {"extents", "came out as", TEXT, TIDE_AT(type, size.extents)},                                                 \
        {"actual_bytes", "came out", BYTES, TIDE_AT(type, size.bytes)}, {                                              \
        "id", "number", COUNT, TIDE_AT(type, id)                                                                       \
    }

static void gantt_never_freed(const void *row, tide_cell *v) {
    const tide_item_facts *x = row;
    tide_cell_count(v, x->open_ended || x->is_left);
}

static const tide_column gantt_columns[] = {
    ITEM_COLUMNS(tide_item_facts),
    {"place_bytes", "at", ADDRESS, TIDE_AT(tide_item_facts, place)},
    {"begin", "begins", TIME, TIDE_AT(tide_item_facts, begin)},
    {"end", "ends", TIME, TIDE_AT(tide_item_facts, end)},
    {"never_freed", "never freed", FLAG, .get = gantt_never_freed},
    {"persistent", "persistent", FLAG, TIDE_AT(tide_item_facts, shape.persistent)},
};
static const void *gantt_row(const tide_table *t, size_t i, void *room) {
    return tide_table_item_row(items_of(t), scene_of(t)->rows->members[i], room);
}

static const tide_column table_columns[] = {
    ITEM_COLUMNS(tide_live_item),
    {"counts_bytes", "counts", BYTES, TIDE_AT(tide_live_item, counts_bytes)},
    {"place_bytes", "at", ADDRESS, TIDE_AT(tide_live_item, place)},
    {"begin", "since", TIME, TIDE_AT(tide_live_item, begin)},
    {"free_requested", "given up by its owner", FLAG, TIDE_AT(tide_live_item, free_requested)},
};

// ---- groups of items ----

typedef struct group_row {
    const char *key;
    uint64_t n_items, bytes;
    int64_t begin;
} group_row;

static const tide_column group_columns[] = {
    {"group", "group", TEXT, TIDE_AT(group_row, key)},
    {"items", "items", COUNT, TIDE_AT(group_row, n_items)},
    {"size_bytes", "together", BYTES, TIDE_AT(group_row, bytes)},
    {"begin", "the first begins", TIME, TIDE_AT(group_row, begin)},
};
static const void *group_row_at(const tide_table *t, size_t i, void *room) {
    const tide_rows *rows = scene_of(t)->rows;
    group_row *g = room;
    *g = (group_row){.key = rows->keys[i],
                     .n_items = rows->first[i + 1] - rows->first[i],
                     .bytes = rows->bytes[i],
                     .begin = tide_items_begin(items_of(t), rows->members[rows->first[i]])};
    return g;
}

// ---- curve: a column of the screen each ----

typedef struct curve_row {
    int64_t begin;
    uint64_t min, max, reserved, predicted, b_min, b_max;
} curve_row;

static const tide_column curve_columns[] = {
    {"begin", "from", TIME, TIDE_AT(curve_row, begin)},
    {"min_bytes", "least", BYTES, TIDE_AT(curve_row, min)},
    {"max_bytes", "most", BYTES, TIDE_AT(curve_row, max)},
    {"reserved_bytes", "reserved", BYTES, TIDE_AT(curve_row, reserved)},
    {"predicted_bytes", "predicted", BYTES, TIDE_AT(curve_row, predicted)},
    {"b_min_bytes", "least of B", BYTES, TIDE_AT(curve_row, b_min)},
    {"b_max_bytes", "most of B", BYTES, TIDE_AT(curve_row, b_max)},
};
static uint64_t value_at(const uint64_t *values, size_t i) { return values != NULL ? values[i] : TIDE_UNKNOWN_BYTES; }
static int64_t begin_of_column(const tide_tui_scene *s, size_t i, size_t n) {
    const tide_tui_window w = s->state->window;
    const uint64_t span = tide_tui_window_span(w);
    return (int64_t)((uint64_t)w.begin + span / n * i + span % n * i / n);
}
static const void *curve_row_at(const tide_table *t, size_t i, void *room) {
    const tide_tui_scene *s = scene_of(t);
    curve_row *c = room;
    *c = (curve_row){.begin = begin_of_column(s, i, s->n_columns),
                     .min = value_at(s->min, i),
                     .max = value_at(s->max, i),
                     .reserved = value_at(s->reserved_max, i),
                     .predicted = value_at(s->predicted_max, i),
                     .b_min = value_at(s->b_min, i),
                     .b_max = value_at(s->b_max, i)};
    return c;
}

// ---- bands of the curve: one after the other, from below ----

typedef struct band_row {
    const char *band;
    int64_t begin;
    uint64_t bytes;
} band_row;

static const tide_column band_columns[] = {
    {"band", "band", TEXT, TIDE_AT(band_row, band)},
    {"begin", "from", TIME, TIDE_AT(band_row, begin)},
    {"size_bytes", "bytes", BYTES, TIDE_AT(band_row, bytes)},
};
static const void *band_row_at(const tide_table *t, size_t i, void *room) {
    const tide_tui_scene *s = scene_of(t);
    const tide_bands *b = s->bands;
    const size_t column = i % b->n;
    band_row *r = room;
    *r = (band_row){b->items[i / b->n].name, begin_of_column(s, column, b->n), b->items[i / b->n].bytes[column]};
    return r;
}

// ---- map: regions ----

static void region_bound(const void *row, tide_cell *v) {
    const tide_region *r = row;
    if (r->bound_bytes > 0) tide_cell_bytes(v, r->bound_bytes);
}

static const tide_column map_columns[] = {
    {"region", "region", TEXT, TIDE_AT(tide_region, label)},
    {"kind", "kind", KIND, TIDE_AT(tide_region, kind)},
    {"device", "device", TEXT, TIDE_TEXT_AT(tide_region, device)},
    {"base_bytes", "at", ADDRESS, TIDE_AT(tide_region, base)},
    {"size_bytes", "size", BYTES, TIDE_AT(tide_region, bytes)},
    {"bound_bytes", "lower bound", BYTES, .get = region_bound},
    {"begin", "there from", TIME, TIDE_AT(tide_region, begin)},
    {"end", "to", TIME, TIDE_AT(tide_region, end)},
    {"guessed", "not reported by an allocator", FLAG, TIDE_AT(tide_region, is_guessed)},
};

// ---- operators ----

/// The bodies of If, Loop and Scan that the step lies in.
static void operator_body(const void *row, tide_cell *v) {
    const tide_subject_facts *f = v->table->facts;
    if (f->plan == NULL || f->plan->lifetimes.n_regions == 0) return;
    const int64_t step = f->step_number[((const tide_tui_operator *)row)->step];
    tide_cell_text(v, tide_lifetimes_body_of(&f->plan->lifetimes, step, v->buf, sizeof v->buf));
}

static const tide_column operator_columns[] = {
    {"operator", "operator", TEXT, TIDE_AT(tide_tui_operator, name)},
    {"step", "step", COUNT, TIDE_AT(tide_tui_operator, step)},
    {"begin", "begins", TIME, TIDE_AT(tide_tui_operator, begin)},
    {"makes_bytes", "makes", BYTES, TIDE_AT(tide_tui_operator, makes_bytes)},
    {"frees_bytes", "frees", BYTES, TIDE_AT(tide_tui_operator, frees_bytes)},
    {"live_bytes", "highest while it runs", BYTES, TIDE_AT(tide_tui_operator, live_bytes)},
    {"body", "in", TEXT, .get = operator_body},
};

// ---- details: the selection, one row ----

typedef struct details_row {
    tide_item_facts item;
    const char *role, *alias, *alias_of, *below, *above, *before, *after, *consumers, *made_in, *why;
    uint64_t pool, gap_below, gap_above;
} details_row;
_Static_assert(sizeof(details_row) <= TIDE_ROW_BYTES, "the selection has room");

static const char *name_of(const tide_items *items, uint32_t item) {
    return items != NULL && item < items->n ? tide_items_site(items, item)->name : "";
}

static const void *details_row_at(const tide_table *t, size_t i, void *room) {
    const tide_tui_scene *s = scene_of(t);
    const tide_items *items = items_of(t);
    const tide_item_facts *x = &s->selection;
    details_row *d = room;
    (void)i;
    *d = (details_row){.item = *x,
                       .role = x->shape.is_planned ? tide_role_name(x->shape.role) : "",
                       .alias = x->shape.alias != TIDE_ALIAS_NONE ? tide_alias_kind_name(x->shape.alias) : "",
                       .alias_of = name_of(items, x->alias_of),
                       .below = name_of(items, s->below),
                       .above = name_of(items, s->above),
                       .before = name_of(items, s->before),
                       .after = name_of(items, s->after),
                       .consumers = s->consumers,
                       .made_in = s->made_in,
                       .why = s->why,
                       .pool = x->pool != TIDE_NO_POOL ? (uint64_t)x->pool : UINT64_MAX,
                       .gap_below = s->below != TIDE_NO_ITEM || s->gap_below > 0 ? s->gap_below : TIDE_UNKNOWN_BYTES,
                       .gap_above = s->above != TIDE_NO_ITEM || s->gap_above > 0 ? s->gap_above : TIDE_UNKNOWN_BYTES};
    return d;
}

static void details_never_freed(const void *row, tide_cell *v) {
    gantt_never_freed(&((const details_row *)row)->item, v);
}

static const tide_column details_columns[] = {
    ITEM_COLUMNS(tide_item_facts), // the item stands first in the row
    {"role", "role", TEXT, TIDE_AT(details_row, role)},
    {"times_sized", "times it came out", COUNT, TIDE_AT(details_row, item.size.n)},
    {"least_actual_bytes", "least of them", BYTES, TIDE_AT(details_row, item.size.least_bytes)},
    {"most_actual_bytes", "most of them", BYTES, TIDE_AT(details_row, item.size.most_bytes)},
    {"place_bytes", "at", ADDRESS, TIDE_AT(details_row, item.place)},
    {"pool", "pool", COUNT, TIDE_AT(details_row, pool)},
    {"begin", "begins", TIME, TIDE_AT(details_row, item.begin)},
    {"end", "ends", TIME, TIDE_AT(details_row, item.end)},
    {"never_freed", "never freed", FLAG, .get = details_never_freed},
    {"persistent", "persistent", FLAG, TIDE_AT(details_row, item.shape.persistent)},
    {"alias", "alias", TEXT, TIDE_AT(details_row, alias)},
    {"alias_of", "lies in", TEXT, TIDE_AT(details_row, alias_of)},
    {"below", "below it", TEXT, TIDE_AT(details_row, below)},
    {"gap_below_bytes", "free below it", BYTES, TIDE_AT(details_row, gap_below)},
    {"above", "above it", TEXT, TIDE_AT(details_row, above)},
    {"gap_above_bytes", "free above it", BYTES, TIDE_AT(details_row, gap_above)},
    {"before", "had its place before", TEXT, TIDE_AT(details_row, before)},
    {"after", "gets its place next", TEXT, TIDE_AT(details_row, after)},
    {"consumers", "read by", TEXT, TIDE_AT(details_row, consumers)},
    {"made_in", "made in", TEXT, TIDE_AT(details_row, made_in)},
    {"why", "why", TEXT, TIDE_AT(details_row, why)},
};

// ---- what-if ----

static void edit_words(const tide_edit *edit, tide_cell *v) {
    tide_text text = {0};
    tide_edit_print(edit, &text);
    snprintf(v->buf, sizeof v->buf, "%s", tide_text_str(&text));
    tide_text_deinit(&text);
    tide_cell_text(v, v->buf);
}
static void advice_edit(const void *row, tide_cell *v) { edit_words(&((const tide_edit_advice *)row)->edit, v); }
static void advice_change(const void *row, tide_cell *v) {
    const uint64_t now = v->table->facts->has_plan ? v->table->facts->plan_bytes : TIDE_UNKNOWN_BYTES;
    tide_cell_change(v, now, ((const tide_edit_advice *)row)->bytes);
}
static void advice_saves(const void *row, tide_cell *v) {
    const uint64_t now = v->table->facts->plan_bytes, then = ((const tide_edit_advice *)row)->bytes;
    if (v->table->facts->has_plan) tide_cell_bytes(v, now > then ? now - then : 0);
}
static void advice_runs(const void *row, tide_cell *v) {
    tide_cell_text(v, tide_runs_name(((const tide_edit_advice *)row)->runs));
}
static void edit_text(const void *row, tide_cell *v) { edit_words(row, v); }

static const tide_column advice_columns[] = {
    {"edit", "edit", TEXT, .get = advice_edit},
    {"plan_bytes", "the plan would take", BYTES, TIDE_AT(tide_edit_advice, bytes)},
    {"change_bytes", "change", TIDE_UNIT_CHANGE, .get = advice_change},
    {"saves_bytes", "saves", BYTES, .get = advice_saves},
    {"bound_bytes", "lower bound", BYTES, TIDE_AT(tide_edit_advice, bound_bytes)},
    {"runs", "a run can follow it", TEXT, .get = advice_runs},
};
static const tide_column edit_columns[] = {{"edit", "edit", TEXT, .get = edit_text}};

// ---- call stacks ----

typedef struct stack_row {
    const tide_call *call; ///< the last of the row
    uint64_t number, caller, level;
    char name[256];
} stack_row;
_Static_assert(sizeof(stack_row) <= TIDE_ROW_BYTES, "a row of the tree has room");

static void stack_bytes(const void *row, tide_cell *v) { tide_cell_bytes(v, ((const stack_row *)row)->call->bytes); }
static void stack_own(const void *row, tide_cell *v) { tide_cell_bytes(v, ((const stack_row *)row)->call->own_bytes); }
static void stack_blocks(const void *row, tide_cell *v) {
    tide_cell_count(v, ((const stack_row *)row)->call->n_blocks);
}
static void stack_share(const void *row, tide_cell *v) {
    tide_cell_share(v, ((const stack_row *)row)->call->bytes, scene_of(v->table)->call_tree->bytes);
}
static void call_name(const void *row, tide_cell *v) { tide_cell_text(v, ((const stack_row *)row)->call->name); }

static const tide_column stack_columns[] = {
    {"calls", "calls", TEXT, TIDE_TEXT_AT(stack_row, name)}, {"level", "level", COUNT, TIDE_AT(stack_row, level)},
    {"size_bytes", "bytes", BYTES, .get = stack_bytes},      {"share", "share", TIDE_UNIT_SHARE, .get = stack_share},
    {"own_bytes", "own", BYTES, .get = stack_own},           {"blocks", "blocks", COUNT, .get = stack_blocks},
};
static const void *stack_row_at(const tide_table *t, size_t i, void *room) {
    const tide_tui_scene *s = scene_of(t);
    const tide_tui_stack_row *from = &s->stack_rows[i];
    stack_row *r = room;
    tide_text text = {0};
    *r = (stack_row){.call = &s->call_tree->calls.calls[from->tail], .level = from->level};
    tide_call_tree_say(s->call_tree, from->head, " > ", &text, NULL);
    snprintf(r->name, sizeof r->name, "%s", tide_text_str(&text));
    tide_text_deinit(&text);
    return r;
}

static const tide_column call_columns[] = {
    {"call", "call", COUNT, TIDE_AT(stack_row, number)},
    {"caller", "called by", COUNT, TIDE_AT(stack_row, caller)},
    {"name", "name", TEXT, .get = call_name},
    {"size_bytes", "bytes", BYTES, .get = stack_bytes},
    {"own_bytes", "own", BYTES, .get = stack_own},
    {"blocks", "blocks", COUNT, .get = stack_blocks},
};
static const void *call_row_at(const tide_table *t, size_t i, void *room) {
    stack_row *r = room;
    *r = (stack_row){.call = &scene_of(t)->call_tree->calls.calls[i + 1], .number = i + 1};
    r->caller = r->call->parent > 0 ? r->call->parent : UINT64_MAX;
    return r;
}

static size_t stack_sheets(const tide_tui_scene *s, tide_table *out) {
    const size_t n_calls = s->call_tree != NULL ? s->call_tree->calls.n - 1 : 0;
    out[0] = SHEET("rows", s, stack_columns, s->n_stack_rows, .row = stack_row_at);
    out[1] = SHEET("calls", s, call_columns, n_calls, .row = call_row_at);
    return 2;
}

// ---- all of them ----

static tide_table gantt(const tide_tui_scene *s) {
    const size_t n = s->rows != NULL && tide_subject_items(s->state->a) != NULL ? s->rows->n : 0;
    if (s->rows != NULL && s->rows->first != NULL && s->rows->keys != NULL)
        return SHEET("rows", s, group_columns, n, .row = group_row_at);
    return SHEET("rows", s, gantt_columns, n, .row = gantt_row);
}

static size_t item_sheets(const tide_tui_scene *s, tide_tui_pane pane, tide_table *out) {
    switch (pane) {
    case TIDE_TUI_PANE_CURVE:
        *out = SHEET("rows", s, curve_columns, s->max != NULL ? s->n_columns : 0, .row = curve_row_at);
        if (s->bands == NULL) return 1;
        out[1] = SHEET("bands", s, band_columns, s->bands->n * s->bands->n_items, .row = band_row_at);
        return 2;
    case TIDE_TUI_PANE_GANTT:
        *out = gantt(s);
        return 1;
    case TIDE_TUI_PANE_MAP:
        *out = SHEET("rows", s, map_columns, 0, .row_bytes = sizeof(tide_region));
        if (s->space != NULL) out->rows = s->space->regions, out->n_rows = s->space->n;
        return 1;
    case TIDE_TUI_PANE_TABLE:
        *out = SHEET("rows", s, table_columns, 0, .row_bytes = sizeof(tide_live_item));
        if (s->live != NULL) out->rows = s->live->items, out->n_rows = s->live->n;
        return 1;
    case TIDE_TUI_PANE_OPERATORS:
        *out = SHEET("rows", s, operator_columns, s->n_operators, ROWS_OF(s->operators));
        return 1;
    case TIDE_TUI_PANE_DETAILS:
        *out = SHEET("rows", s, details_columns, s->has_selection ? 1 : 0, .row = details_row_at);
        return 1;
    default:
        return 0;
    }
}

size_t tide_tui_sheets_of(const tide_tui_scene *s, tide_tui_pane pane, tide_tui_sheet out[TIDE_TUI_MAX_SHEETS]) {
    const tide_table_view view = {.facts = s->a, .is_pane = true}, b_view = {.facts = s->b, .is_pane = true};
    size_t n = 0;
    switch (pane) {
    case TIDE_TUI_PANE_POOLS:
        out[n++] = tide_table_of_pools(&view, s->pools);
        out[n++] = tide_table_of_leaks(&view, s->leaks);
        out[n++] = tide_table_of_pool_tensors(&view, s->pool_tensors);
        out[n++] = tide_table_of_devices(&view, s->devices, s->device_memory != NULL ? s->device_memory->n : 0);
        if (s->b_pools == NULL) return n;
        out[n] = tide_table_of_pools(&b_view, s->b_pools);
        out[n++].name = "b_rows";
        return n;
    case TIDE_TUI_PANE_EXPLAIN:
        out[n++] = tide_table_of_parts(&view, s->explanation);
        out[n++] = tide_table_of_owners(&view, s->explanation);
        out[n++] = tide_table_of_kinds(&view, s->explanation);
        out[n++] = tide_table_of_live(&view, s->explanation);
        out[n++] = tide_table_of_without(&view, s->explanation);
        out[n++] = tide_table_of_ways(&view, s->explanation);
        return n;
    case TIDE_TUI_PANE_COMPARE:
        out[n++] = tide_table_of_changes(&view, s->diff);
        out[n++] = tide_table_of_owner_changes(&view, s->diff);
        out[n++] = tide_table_of_kind_changes(&view, s->diff);
        return n;
    case TIDE_TUI_PANE_WHATIF:
        out[n++] = SHEET("advice", s, advice_columns, s->n_advice, ROWS_OF(s->advice));
        out[n++] = SHEET("edits", s, edit_columns, s->state->n_edits, ROWS_OF(s->state->edits));
        return n;
    case TIDE_TUI_PANE_STACKS:
        return stack_sheets(s, out);
    default:
        return item_sheets(s, pane, out);
    }
}

// ---- lists ----

bool tide_tui_table_of_list(const tide_tui_scene *s, tide_tui_list list, tide_tui_sheet *out) {
    tide_tui_sheet sheets[TIDE_TUI_MAX_SHEETS];
    const tide_tui_pane pane = tide_tui_pane_of_list(list);
    const size_t i = list == TIDE_TUI_LIST_LEAKS ? 1 : 0;
    if (pane == TIDE_TUI_N_PANES || tide_tui_sheets_of(s, pane, sheets) <= i) return false;
    *out = sheets[i];
    return true;
}

size_t tide_tui_column_named(const tide_tui_sheet *t, const char *name) {
    for (size_t i = 0; i < t->n_columns; i++) {
        const char *key = t->columns[i].key;
        const size_t n = key != NULL ? strlen(key) : 0, tail = strlen("_bytes");
        if (key == NULL) continue;
        if (strcmp(key, name) == 0) return i;
        if (n > tail && strcmp(key + n - tail, "_bytes") == 0 && strlen(name) == n - tail &&
            strncmp(key, name, n - tail) == 0)
            return i;
    }
    for (size_t i = 0; i < t->n_columns; i++)
        if (t->columns[i].title != NULL && strcasecmp(t->columns[i].title, name) == 0) return i;
    return SIZE_MAX;
}
