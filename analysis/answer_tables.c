// SPDX-License-Identifier: MIT
//
// See answer_tables.h. Of each table first the columns of reports, then those of panes.
#include "analysis/answer_tables.h"

#include <stdio.h>

#define TEXT TIDE_UNIT_TEXT
#define NAME TIDE_UNIT_NAME
#define KIND TIDE_UNIT_KIND
#define COUNT TIDE_UNIT_COUNT
#define BYTES TIDE_UNIT_BYTES
#define CHANGE TIDE_UNIT_CHANGE
#define TIME TIDE_UNIT_TIME
#define FLAG TIDE_UNIT_FLAG
#define SHARE TIDE_UNIT_SHARE

#define N_OF(list) (sizeof(list) / sizeof((list)[0]))

typedef struct column_list {
    const char *name;
    const tide_column *columns;
    size_t n_columns;
} column_list;
#define LIST(name, columns) ((column_list){(name), (columns), N_OF(columns)})

static tide_table make(const tide_table_view *view, column_list report, column_list pane, const void *rows,
                       size_t row_bytes, size_t n_rows) {
    const column_list *list = view->is_pane ? &pane : &report;
    return (tide_table){.name = list->name,
                        .columns = list->columns,
                        .n_columns = list->n_columns,
                        .rows = rows,
                        .row_bytes = row_bytes,
                        .n_rows = n_rows,
                        .facts = view->facts,
                        .from_origin = !view->is_pane};
}
#define MAKE(view, report, pane, rows, n_rows) make(view, report, pane, rows, sizeof *(rows), n_rows)

// ---- pools ----

static void pool_segments(const void *row, tide_cell *v) {
    const tide_pool *p = row;
    if (p->tells_segments) tide_cell_count(v, p->n_segments);
}

static void pool_unused_since(const void *row, tide_cell *v) {
    const tide_pool *p = row;
    v->known = p->cached_bytes != TIDE_UNKNOWN_BYTES;
    v->i = p->unused_since;
}

static void pool_context(const void *row, tide_cell *v) {
    const tide_pool *p = row;
    if (p->context > 0) tide_cell_count(v, p->context);
}

static void pool_wasted(const void *row, tide_cell *v) {
    const tide_pool *p = row;
    if (p->is_planned) tide_cell_bytes(v, p->wasted_bytes);
}

static void pool_fragmentation(const void *row, tide_cell *v) {
    const tide_pool *p = row;
    if (p->largest_free_bytes != TIDE_UNKNOWN_BYTES)
        tide_cell_share(v, p->cached_bytes - p->largest_free_bytes, p->cached_bytes);
}

static const tide_column pool_columns[] = {
    {"name", "Pool", NAME, TIDE_AT(tide_pool, name)},
    {"device", "Device", NAME, TIDE_TEXT_AT(tide_pool, device)},
    {"kind", "Kind", KIND, TIDE_AT(tide_pool, kind)},
    {"reserved_bytes", "Reserved", BYTES, TIDE_AT(tide_pool, reserved_bytes)},
    {"active_bytes", "Active", BYTES, TIDE_AT(tide_pool, active_bytes)},
    {"requested_bytes", "Requested", BYTES, TIDE_AT(tide_pool, requested_bytes)},
    {"cached_bytes", "Cached", BYTES, TIDE_AT(tide_pool, cached_bytes)},
    {"unused_bytes", "Never used", BYTES, TIDE_AT(tide_pool, unused_bytes)},
    {"wasted_bytes", "Unused on average", BYTES, .get = pool_wasted},
    {"largest_free_bytes", "Largest free", BYTES, TIDE_AT(tide_pool, largest_free_bytes)},
    {"peak_reserved_bytes", "Reserved peak", BYTES, TIDE_AT(tide_pool, peak_reserved_bytes)},
    {"n_blocks", "Blocks", COUNT, TIDE_AT(tide_pool, n_blocks)},
    {"n_segments", "Segments", COUNT, .get = pool_segments},
};
static const tide_column pool_fields[] = {
    {"pool", "pool", TEXT, TIDE_AT(tide_pool, name)},
    {"device", "device", TEXT, TIDE_TEXT_AT(tide_pool, device)},
    {"kind", "kind", KIND, TIDE_AT(tide_pool, kind)},
    {"reserved_bytes", "taken from the system", BYTES, TIDE_AT(tide_pool, reserved_bytes)},
    {"active_bytes", "held by blocks", BYTES, TIDE_AT(tide_pool, active_bytes)},
    {"requested_bytes", "asked for", BYTES, TIDE_AT(tide_pool, requested_bytes)},
    {"cached_bytes", "cached", BYTES, TIDE_AT(tide_pool, cached_bytes)},
    {"unused_bytes", "not used at any moment of the window", BYTES, TIDE_AT(tide_pool, unused_bytes)},
    {"unused_since", "so much cached since", TIME, .get = pool_unused_since},
    {"largest_free_bytes", "largest free stretch", BYTES, TIDE_AT(tide_pool, largest_free_bytes)},
    {"fragmentation", "free outside of that stretch", SHARE, .get = pool_fragmentation},
    {"peak_reserved_bytes", "most taken", BYTES, TIDE_AT(tide_pool, peak_reserved_bytes)},
    {"peak_active_bytes", "most held", BYTES, TIDE_AT(tide_pool, peak_active_bytes)},
    {"segments", "segments", COUNT, .get = pool_segments},
    {"blocks", "blocks", COUNT, TIDE_AT(tide_pool, n_blocks)},
    {"tells_segments", "tells what it takes", FLAG, TIDE_AT(tide_pool, tells_segments)},
    {"is_planned", "a pool of the plan", FLAG, TIDE_AT(tide_pool, is_planned)},
    {"context", "context", COUNT, .get = pool_context},
    {"wasted_bytes", "unused on average", BYTES, .get = pool_wasted},
};

tide_table tide_table_of_pools(const tide_table_view *view, const tide_pools *pools) {
    const tide_pools none = {0}, *p = pools != NULL ? pools : &none;
    return MAKE(view, LIST("pools", pool_columns), LIST("rows", pool_fields), p->items, p->n);
}

// ---- devices ----

static const tide_column device_columns[] = {
    {"device", "Device", TEXT, TIDE_AT(tide_device_row, device)},
    {"at", "At", TIME, TIDE_AT(tide_device_row, t)},
    {"used_bytes", "In use", BYTES, TIDE_AT(tide_device_row, figures.used_bytes)},
    {"total_bytes", "Of", BYTES, TIDE_AT(tide_device_row, figures.total_bytes)},
    {"allocators_bytes", "Allocators", BYTES, TIDE_AT(tide_device_row, figures.allocators_bytes)},
    {"outside_bytes", "Outside", BYTES, TIDE_AT(tide_device_row, figures.outside_bytes)},
    {"unexplained_bytes", "Unexplained", BYTES, TIDE_AT(tide_device_row, figures.unexplained_bytes)},
    {"off_bytes", "Off", BYTES, TIDE_AT(tide_device_row, figures.off_bytes)},
    {"free_bytes", "Free", BYTES, TIDE_AT(tide_device_row, figures.free_bytes)},
};

tide_table tide_table_of_devices(const tide_table_view *view, const tide_device_row *rows, size_t n) {
    const column_list columns = LIST("devices", device_columns);
    return MAKE(view, columns, columns, rows, n);
}

static const tide_column pool_tensor_fields[] = {
    {"pool", "pool", COUNT, TIDE_AT(tide_pool_tensor, colour)},
    {"name", "tensor", TEXT, TIDE_AT(tide_pool_tensor, name)},
    {"begin_step", "from step", COUNT, TIDE_AT(tide_pool_tensor, begin)},
    {"end_step", "to step", COUNT, TIDE_AT(tide_pool_tensor, end)},
    {"reserved_bytes", "bytes", BYTES, TIDE_AT(tide_pool_tensor, bytes)},
    {"left_over_bytes", "left over", BYTES, TIDE_AT(tide_pool_tensor, left_over)},
};

tide_table tide_table_of_pool_tensors(const tide_table_view *view, const tide_pool_tensors *tensors) {
    const tide_pool_tensors none = {0}, *p = tensors != NULL ? tensors : &none;
    const column_list fields = LIST("tensors", pool_tensor_fields);
    return MAKE(view, fields, fields, p->items, p->n);
}

// ---- leaks ----

/// Events were lost: a free may be among them.
static void leak_uncertain(const void *row, tide_cell *v) {
    const tide_leaks *leaks = v->table->data;
    (void)row;
    tide_cell_count(v, leaks->n_lost > 0);
}

static const tide_column leak_columns[] = {
    {"name", "Name", NAME, TIDE_AT(tide_leak, name)},
    {"owner", "Scope", TEXT, TIDE_AT(tide_leak, owner)},
    {"kind", "Kind", KIND, TIDE_AT(tide_leak, kind)},
    {"device", "Device", NAME, TIDE_TEXT_AT(tide_leak, device)},
    {"n", "Not freed", COUNT, TIDE_AT(tide_leak, n)},
    {"n_allocated", "Of", COUNT, TIDE_AT(tide_leak, n_allocated)},
    {"bytes", "Bytes", BYTES, TIDE_AT(tide_leak, bytes)},
    {"first", "First at", TIME, TIDE_AT(tide_leak, first)},
    {"last", "Last at", TIME, TIDE_AT(tide_leak, last)},
    {"grows", "Grows", FLAG, TIDE_AT(tide_leak, grows)},
    {"uncertain", "May have been freed", FLAG, .get = leak_uncertain},
};
static const tide_column leak_fields[] = {
    {"name", "leak", TEXT, TIDE_AT(tide_leak, name)},
    {"owner", "made by", TEXT, TIDE_AT(tide_leak, owner)},
    {"kind", "kind", KIND, TIDE_AT(tide_leak, kind)},
    {"device", "device", TEXT, TIDE_TEXT_AT(tide_leak, device)},
    {"blocks", "blocks", COUNT, TIDE_AT(tide_leak, n)},
    {"bytes", "bytes", BYTES, TIDE_AT(tide_leak, bytes)},
    {"first", "the first", TIME, TIDE_AT(tide_leak, first)},
    {"last", "the last", TIME, TIDE_AT(tide_leak, last)},
    {"allocated", "made in all", COUNT, TIDE_AT(tide_leak, n_allocated)},
    {"grows", "grows", FLAG, TIDE_AT(tide_leak, grows)},
    {"uncertain", "events were lost: may have been freed", FLAG, .get = leak_uncertain},
};

tide_table tide_table_of_leaks(const tide_table_view *view, const tide_leaks *leaks) {
    const tide_leaks none = {0}, *l = leaks != NULL ? leaks : &none;
    tide_table t = MAKE(view, LIST("leaks", leak_columns), LIST("leaks", leak_fields), l->items, l->n);
    t.data = leaks;
    return t;
}

// ---- the peak explained: the answer is the table's data ----

static tide_table explain(const tide_table_view *view, column_list report, column_list pane, const tide_explanation *e,
                          const void *rows, size_t row_bytes, size_t n_rows) {
    tide_table t = make(view, report, pane, rows, row_bytes, n_rows);
    t.data = e;
    return t;
}

static void part_name(const void *row, tide_cell *v) {
    tide_cell_text(v, tide_part_name((tide_part_kind)((const uint64_t *)row - (const uint64_t *)v->table->rows)));
}
static void part_share(const void *row, tide_cell *v) {
    tide_cell_share(v, *(const uint64_t *)row, ((const tide_explanation *)v->table->data)->held_bytes);
}

static const tide_column part_columns[] = {
    {"part", "Part", TEXT, .get = part_name},
    {"bytes", "Bytes", BYTES, .n_bytes = sizeof(uint64_t)},
    {"share", "Share", SHARE, .get = part_share},
};
static const tide_column part_fields[] = {
    {"part", "part", TEXT, .get = part_name},
    {"bytes", "bytes", BYTES, .n_bytes = sizeof(uint64_t)},
};

tide_table tide_table_of_parts(const tide_table_view *view, const tide_explanation *e) {
    const bool is_there = e != NULL && (view->is_pane || e->held_bytes > 0);
    return explain(view, LIST("peak_parts", part_columns), LIST("parts", part_fields), e, e != NULL ? e->parts : NULL,
                   sizeof(uint64_t), is_there ? TIDE_N_PARTS : 0);
}

static void group_share(const void *row, tide_cell *v) {
    const tide_explain_group *g = row;
    tide_cell_share(v, g->bytes, ((const tide_explanation *)v->table->data)->live.bytes);
}

static const tide_column group_columns[] = {
    {"key", "Operator", NAME, TIDE_AT(tide_explain_group, key)},
    {"n", "Tensors", COUNT, TIDE_AT(tide_explain_group, n)},
    {"bytes", "Bytes", BYTES, TIDE_AT(tide_explain_group, bytes)},
    {"share", "Share", SHARE, .get = group_share},
};
static const tide_column group_fields[] = {
    {"name", "name", TEXT, TIDE_AT(tide_explain_group, key)},
    {"items", "items", COUNT, TIDE_AT(tide_explain_group, n)},
    {"bytes", "bytes", BYTES, TIDE_AT(tide_explain_group, bytes)},
};

tide_table tide_table_of_owners(const tide_table_view *view, const tide_explanation *e) {
    return explain(view, LIST("peak_by_operator", group_columns), LIST("by_owner", group_fields), e,
                   e != NULL ? e->by_owner : NULL, sizeof(tide_explain_group), e != NULL ? e->n_by_owner : 0);
}

tide_table tide_table_of_kinds(const tide_table_view *view, const tide_explanation *e) {
    return explain(view, LIST("peak_by_kind", group_columns), LIST("by_kind", group_fields), e,
                   e != NULL ? e->by_kind : NULL, sizeof(tide_explain_group), e != NULL ? e->n_by_kind : 0);
}

static void live_share(const void *row, tide_cell *v) {
    const tide_live_item *l = row;
    tide_cell_share(v, l->counts_bytes, ((const tide_explanation *)v->table->data)->live.bytes);
}
/// Not before the axis begins.
static void live_begin(const void *row, tide_cell *v) {
    const tide_live_item *l = row;
    v->known = true;
    v->i = l->begin > v->table->facts->begin ? l->begin : v->table->facts->begin;
}

static const tide_column live_columns[] = {
    {"name", "Name", NAME, TIDE_AT(tide_live_item, site.name)},
    {"owner", "Operator", TEXT, TIDE_AT(tide_live_item, site.owner)},
    {"kind", "Kind", KIND, TIDE_AT(tide_live_item, shape.kind)},
    {"bytes", "Bytes", BYTES, TIDE_AT(tide_live_item, counts_bytes)},
    {"share", "Share", SHARE, .get = live_share},
    {"begin", "Lives from", TIME, .get = live_begin},
};
static const tide_column live_fields[] = {
    {"name", "name", TEXT, TIDE_AT(tide_live_item, site.name)},
    {"owner", "made by", TEXT, TIDE_AT(tide_live_item, site.owner)},
    {"kind", "kind", KIND, TIDE_AT(tide_live_item, shape.kind)},
    {"size_bytes", "size", BYTES, TIDE_AT(tide_live_item, shape.size_bytes)},
    {"counts_bytes", "counts", BYTES, TIDE_AT(tide_live_item, counts_bytes)},
};

tide_table tide_table_of_live(const tide_table_view *view, const tide_explanation *e) {
    return explain(view, LIST("peak_items", live_columns), LIST("live", live_fields), e,
                   e != NULL ? e->live.items : NULL, sizeof(tide_live_item), e != NULL ? e->live.n : 0);
}

static const tide_live_item *left_out(const tide_table *t, const void *row) {
    return &((const tide_explanation *)t->data)->live.items[((const tide_without *)row)->live];
}
static void without_plan(const void *row, tide_cell *v) {
    const tide_without *w = row;
    if (w->has_plan) tide_cell_bytes(v, w->plan_bytes);
}
static void without_plan_saves(const void *row, tide_cell *v) {
    const tide_without *w = row;
    if (w->has_plan) tide_cell_bytes(v, w->was_bytes - w->plan_bytes);
}
static void without_alive(const void *row, tide_cell *v) { tide_cell_text(v, left_out(v->table, row)->site.name); }
static void without_owner(const void *row, tide_cell *v) { tide_cell_text(v, left_out(v->table, row)->site.owner); }
static void without_saves(const void *row, tide_cell *v) {
    tide_cell_bytes(v, v->table->facts->peak_bytes - ((const tide_without *)row)->peak_bytes);
}

static const tide_column without_columns[] = {
    {"name", "Without", NAME, TIDE_AT(tide_without, name)},
    {"n_inside", "Lie in it", COUNT, TIDE_AT(tide_without, n_inside)},
    {"bytes", "Their bytes", BYTES, TIDE_AT(tide_without, bytes)},
    {"peak_bytes", "The peak would be", BYTES, TIDE_AT(tide_without, peak_bytes)},
    {"saves_bytes", "Saved", BYTES, .get = without_saves},
    {"at", "Then at", TIME, TIDE_AT(tide_without, at.t)},
    {"step", "Which runs", TEXT, TIDE_AT(tide_without, step)},
    {"plan_bytes", "A plan of the rest", BYTES, .get = without_plan},
    {"plan_saves_bytes", "Saved of the plan", BYTES, .get = without_plan_saves},
};
static const tide_column without_fields[] = {
    {"name", "without", TEXT, TIDE_AT(tide_without, name)},
    {"peak_bytes", "the peak would be", BYTES, TIDE_AT(tide_without, peak_bytes)},
    {"at", "at", TIME, TIDE_AT(tide_without, at.t)},
    {"step", "while it runs", TEXT, TIDE_AT(tide_without, step)},
    {"items", "items", COUNT, TIDE_AT(tide_without, n_alike)},
    {"items_now", "of them at the moment", COUNT, TIDE_AT(tide_without, n_now)},
    {"n_inside", "lie in it", COUNT, TIDE_AT(tide_without, n_inside)},
    {"bytes", "their bytes", BYTES, TIDE_AT(tide_without, bytes)},
    {"alive", "now", TEXT, .get = without_alive},
    {"owner", "made by", TEXT, .get = without_owner},
    {"plan_bytes", "a plan of the rest", BYTES, .get = without_plan},
    {"plan_saves_bytes", "saved of the plan", BYTES, .get = without_plan_saves},
};

tide_table tide_table_of_without(const tide_table_view *view, const tide_explanation *e) {
    return explain(view, LIST("without", without_columns), LIST("without", without_fields), e,
                   e != NULL ? e->without : NULL, sizeof(tide_without), e != NULL ? e->n_without : 0);
}

static const tide_without *way_to(const tide_table *t, const void *row) {
    return &((const tide_explanation *)t->data)->without[((const tide_way *)row)->without];
}
static void way_without(const void *row, tide_cell *v) { tide_cell_text(v, way_to(v->table, row)->name); }
static void way_edit(const void *row, tide_cell *v) {
    tide_text text = {0};
    tide_edit_print(&((const tide_way *)row)->edit, &text);
    snprintf(v->buf, sizeof v->buf, "%s", tide_text_str(&text));
    tide_text_deinit(&text);
    tide_cell_text(v, v->buf);
}
static void way_saves(const void *row, tide_cell *v) {
    tide_cell_bytes(v, way_to(v->table, row)->was_bytes - ((const tide_way *)row)->plan_bytes);
}

static const tide_column way_columns[] = {
    {"name", "Without", NAME, .get = way_without},
    {"way", "Change", TEXT, .get = way_edit},
    {"n_again", "Run twice", COUNT, TIDE_AT(tide_way, n_again)},
    {"plan_bytes", "The plan with it", BYTES, TIDE_AT(tide_way, plan_bytes)},
    {"saves_bytes", "Saved", BYTES, .get = way_saves},
};
static const tide_column way_fields[] = {
    {"name", "without", TEXT, .get = way_without},
    {"way", "change", TEXT, .get = way_edit},
    {"n_again", "run twice", COUNT, TIDE_AT(tide_way, n_again)},
    {"plan_bytes", "the plan with it", BYTES, TIDE_AT(tide_way, plan_bytes)},
    {"plan_saves_bytes", "saved", BYTES, .get = way_saves},
};

tide_table tide_table_of_ways(const tide_table_view *view, const tide_explanation *e) {
    return explain(view, LIST("ways", way_columns), LIST("ways", way_fields), e, e != NULL ? e->ways : NULL,
                   sizeof(tide_way), e != NULL ? e->n_ways : 0);
}

// ---- a comparison ----

static void step_change(const void *row, tide_cell *v) {
    const tide_diff_step *s = row;
    tide_cell_change(v, s->a_bytes, s->b_bytes);
}

static const tide_column step_columns[] = {
    {"key", "Who", NAME, TIDE_AT(tide_diff_step, key)},
    {"part", "Part of no tensor", FLAG, TIDE_AT(tide_diff_step, is_part)},
    {"a_bytes", "A", BYTES, TIDE_AT(tide_diff_step, a_bytes)},
    {"b_bytes", "B", BYTES, TIDE_AT(tide_diff_step, b_bytes)},
    {"change_bytes", "Change", CHANGE, .get = step_change},
};
static const tide_column step_fields[] = {
    {"name", "name", TEXT, TIDE_AT(tide_diff_step, key)},
    {"a_bytes", "in A", BYTES, TIDE_AT(tide_diff_step, a_bytes)},
    {"b_bytes", "in B", BYTES, TIDE_AT(tide_diff_step, b_bytes)},
    {"change_bytes", "change", CHANGE, .get = step_change},
};

tide_table tide_table_of_owner_changes(const tide_table_view *view, const tide_diff *d) {
    return make(view, LIST("change_by_operator", step_columns), LIST("by_owner", step_fields),
                d != NULL ? d->by_owner : NULL, sizeof(tide_diff_step), d != NULL ? d->n_by_owner : 0);
}

tide_table tide_table_of_kind_changes(const tide_table_view *view, const tide_diff *d) {
    return make(view, LIST("change_by_kind", step_columns), LIST("by_kind", step_fields), d != NULL ? d->by_kind : NULL,
                sizeof(tide_diff_step), d != NULL ? d->n_by_kind : 0);
}

static void change_words(const tide_diff_row *r, const char *comma, tide_cell *v) {
    tide_cell_text(v, tide_diff_changes(r->what, comma, "unchanged", v->buf, sizeof v->buf));
}
static void change_what(const void *row, tide_cell *v) { change_words(row, ", ", v); }
static void change_what_narrow(const void *row, tide_cell *v) { change_words(row, ",", v); }
void tide_change_a_size(const void *row, tide_cell *v) {
    const tide_diff_row *r = row;
    if ((r->what & TIDE_DIFF_ADDED) == 0) tide_cell_bytes(v, r->a_bytes);
}
void tide_change_b_size(const void *row, tide_cell *v) {
    const tide_diff_row *r = row;
    if ((r->what & TIDE_DIFF_REMOVED) == 0) tide_cell_bytes(v, r->b_bytes);
}
void tide_change_of_held(const void *row, tide_cell *v) {
    const tide_diff_row *r = row;
    tide_cell_change(v, r->a_at_bytes, r->b_at_bytes);
}

static const tide_column change_columns[] = {
    {"name", "Name", NAME, TIDE_AT(tide_diff_row, name)},
    {"owner", "Operator", TEXT, TIDE_AT(tide_diff_row, owner)},
    {"what", "What", TEXT, .get = change_what},
    {"a_size_bytes", "Size in A", BYTES, .get = tide_change_a_size},
    {"b_size_bytes", "Size in B", BYTES, .get = tide_change_b_size},
    {"a_at_peak_bytes", "At A's peak", BYTES, TIDE_AT(tide_diff_row, a_at_bytes)},
    {"b_at_peak_bytes", "At B's peak", BYTES, TIDE_AT(tide_diff_row, b_at_bytes)},
    {"change_bytes", "Change of the peak", CHANGE, .get = tide_change_of_held},
};
static const tide_column change_fields[] = {
    {"name", "name", TEXT, TIDE_AT(tide_diff_row, name)},
    {"owner", "made by", TEXT, TIDE_AT(tide_diff_row, owner)},
    {"what", "what", TEXT, .get = change_what_narrow},
    {"a_bytes", "in A", BYTES, .get = tide_change_a_size},
    {"b_bytes", "in B", BYTES, .get = tide_change_b_size},
    {"change_bytes", "change", CHANGE, .get = tide_change_of_held},
    {"a_at_bytes", "held in A", BYTES, TIDE_AT(tide_diff_row, a_at_bytes)},
    {"b_at_bytes", "held in B", BYTES, TIDE_AT(tide_diff_row, b_at_bytes)},
};

tide_table tide_table_of_changes(const tide_table_view *view, const tide_diff *d) {
    return make(view, LIST("change_by_item", change_columns), LIST("rows", change_fields), d != NULL ? d->rows : NULL,
                sizeof(tide_diff_row), d != NULL ? d->n : 0);
}

void tide_diff_counts_json(const tide_diff *d, tide_json_out *j) {
    for (unsigned i = 0; i < TIDE_DIFF_N_CHANGES; i++)
        tide_json_u64(j, tide_diff_change_name(i), tide_diff_n_changed(d, i));
    tide_json_u64(j, "unchanged", d->n_unchanged);
}

void tide_diff_json(const tide_diff *d, tide_json_out *j) {
    tide_json_bytes(j, "a_peak_bytes", d->a_peak_bytes);
    tide_json_bytes(j, "b_peak_bytes", d->b_peak_bytes);
    tide_json_bytes(j, "a_plan_bytes", d->a_plan_bytes);
    tide_json_bytes(j, "b_plan_bytes", d->b_plan_bytes);
    tide_diff_counts_json(d, j);
}

// ---- items ----

_Static_assert(sizeof(tide_item_facts) <= TIDE_ROW_BYTES, "an item has room");

const tide_item_facts *tide_table_item_row(const tide_items *items, uint32_t i, void *room) {
    tide_item_facts *x = room;
    *x = (tide_item_facts){.item = i,
                           .id = tide_items_id(items, i),
                           .site = *tide_items_site(items, i),
                           .shape = *tide_items_shape(items, i),
                           .begin = tide_items_begin(items, i),
                           .end = tide_items_end(items, i),
                           .open_ended = tide_items_is_open_ended(items, i),
                           .is_left = tide_items_is_left(items, i),
                           .place = items->place != NULL ? items->place[i] : TIDE_NO_OFFSET,
                           .pool = TIDE_NO_POOL,
                           .alias_of = TIDE_NO_ITEM,
                           .size = tide_sizes_find(&items->sizes, tide_items_id(items, i))};
    return x;
}
