// SPDX-License-Identifier: MIT
//
// Tables of one subject: kinds, the peak and what it is made of, operators, pools, leaks, items.
#include <stdio.h>

#include "reports/tables_internal.h"

#define N_OF(columns) ((int)(sizeof(columns) / sizeof(columns)[0]))

// ---- kinds ----

static const tide_column kind_columns[] = {
    {"kind", "Kind", TIDE_UNIT_TEXT},
    {"device", "Device", TIDE_UNIT_TEXT},
    {"predicted_bytes", "Predicted", TIDE_UNIT_BYTES},
    {"measured_bytes", "Measured peak", TIDE_UNIT_BYTES},
    {"difference_bytes", "Predicted - measured", TIDE_UNIT_CHANGE},
    {"reserved_peak_bytes", "Reserved peak", TIDE_UNIT_BYTES},
    {"requested_bytes", "Requested in all", TIDE_UNIT_BYTES},
    {"live_at_end_bytes", "Live at the end", TIDE_UNIT_BYTES},
};
static void kinds(const tide_report_table *t, size_t row, int column, tide_report_value *v) {
    const tide_trace_kind *k = &t->side->facts->kinds[row];
    switch (column) {
    case 0:
        tide__put_text(v, tide_memory_kind_name(k->kind));
        break;
    case 1:
        tide__put_text(v, k->device);
        break;
    case 2:
        tide__put_bytes(v, k->predicted_bytes);
        break;
    case 3:
        tide__put_bytes(v, k->peak_bytes);
        break;
    case 4:
        tide__put_change(v, k->peak_bytes, k->predicted_bytes);
        break;
    case 5:
        tide__put_bytes(v, k->peak_reserved_bytes);
        break;
    case 6:
        tide__put_bytes(v, k->requested_bytes);
        break;
    default:
        tide__put_bytes(v, k->live_at_end_bytes);
    }
}

// ---- the peak ----

static const tide_column part_columns[] = {
    {"part", "Part", TIDE_UNIT_TEXT},
    {"bytes", "Bytes", TIDE_UNIT_BYTES},
    {"share", "Share", TIDE_UNIT_SHARE},
};
static void parts(const tide_report_table *t, size_t row, int column, tide_report_value *v) {
    const tide_explanation *e = &t->side->why;
    if (column == 0) tide__put_text(v, tide_part_name((tide_part_kind)row));
    if (column == 1) tide__put_bytes(v, e->parts[row]);
    if (column == 2) tide__put_share(v, e->parts[row], e->held_bytes);
}

static const tide_column group_columns[] = {
    {"key", "Operator", TIDE_UNIT_TEXT},
    {"n", "Tensors", TIDE_UNIT_COUNT},
    {"bytes", "Bytes", TIDE_UNIT_BYTES},
    {"share", "Share", TIDE_UNIT_SHARE},
};
static void peak_by_owner(const tide_report_table *t, size_t row, int column, tide_report_value *v) {
    const tide_explain_group *g = &t->side->why.by_owner[row];
    if (column == 0) tide__put_text(v, g->key);
    if (column == 1) tide__put_count(v, g->n);
    if (column == 2) tide__put_bytes(v, g->bytes);
    if (column == 3) tide__put_share(v, g->bytes, t->side->why.live.bytes);
}

static const tide_column live_columns[] = {
    {"name", "Name", TIDE_UNIT_TEXT},    {"owner", "Operator", TIDE_UNIT_TEXT}, {"kind", "Kind", TIDE_UNIT_TEXT},
    {"bytes", "Bytes", TIDE_UNIT_BYTES}, {"share", "Share", TIDE_UNIT_SHARE},   {"begin", "Lives from", TIDE_UNIT_TIME},
};
static void at_peak(const tide_report_table *t, size_t row, int column, tide_report_value *v) {
    const tide_live_item *l = &t->side->why.live.items[row];
    if (column == 0) tide__put_text(v, l->site.name);
    if (column == 1) tide__put_text_or_none(v, l->site.owner);
    if (column == 2) tide__put_text(v, tide_memory_kind_name(l->shape.kind));
    if (column == 3) tide__put_bytes(v, l->counts_bytes);
    if (column == 4) tide__put_share(v, l->counts_bytes, t->side->why.live.bytes);
    if (column == 5) {
        const int64_t begin = l->begin > t->side->facts->begin ? l->begin : t->side->facts->begin;
        tide__put_count(v, tide_report_time(t->side->facts, begin));
    }
}

static const tide_column without_columns[] = {
    {"name", "Without", TIDE_UNIT_TEXT},
    {"bytes", "Its bytes", TIDE_UNIT_BYTES},
    {"peak_bytes", "The peak would be", TIDE_UNIT_BYTES},
    {"saves_bytes", "Saved", TIDE_UNIT_BYTES},
    {"at", "Then at", TIDE_UNIT_TIME},
    {"step", "Which runs", TIDE_UNIT_TEXT},
};
static void without(const tide_report_table *t, size_t row, int column, tide_report_value *v) {
    const tide_without *w = &t->side->why.without[row];
    const tide_live_item *l = &t->side->why.live.items[w->live];
    if (column == 0) tide__put_text(v, l->site.name);
    if (column == 1) tide__put_bytes(v, l->counts_bytes);
    if (column == 2) tide__put_bytes(v, w->peak_bytes);
    if (column == 3) tide__put_bytes(v, t->side->facts->peak_bytes - w->peak_bytes);
    if (column == 4) tide__put_count(v, tide_report_time(t->side->facts, w->at.t));
    if (column == 5) tide__put_text_or_none(v, w->step);
}

// ---- operators ----

static const tide_column step_columns[] = {
    {"begin", "At", TIDE_UNIT_TIME},
    {"name", "Operator", TIDE_UNIT_TEXT},
    {"makes_bytes", "Makes", TIDE_UNIT_BYTES},
    {"frees_bytes", "Frees", TIDE_UNIT_BYTES},
    {"live_bytes", "Highest while it runs", TIDE_UNIT_BYTES},
    {"share", "Of the peak", TIDE_UNIT_SHARE},
};
static void steps(const tide_report_table *t, size_t row, int column, tide_report_value *v) {
    const tide_report_step *s = &t->side->steps[row];
    if (column == 0) tide__put_count(v, tide_report_time(t->side->facts, s->begin));
    if (column == 1) tide__put_text(v, s->name);
    if (column == 2) tide__put_bytes(v, s->makes_bytes);
    if (column == 3) tide__put_bytes(v, s->frees_bytes);
    if (column == 4) tide__put_bytes(v, s->live_bytes);
    if (column == 5) tide__put_share(v, s->live_bytes, t->side->facts->peak_bytes);
}

// ---- pools and leaks ----

static const tide_column pool_columns[] = {
    {"name", "Pool", TIDE_UNIT_TEXT},
    {"device", "Device", TIDE_UNIT_TEXT},
    {"kind", "Kind", TIDE_UNIT_TEXT},
    {"reserved_bytes", "Reserved", TIDE_UNIT_BYTES},
    {"active_bytes", "Active", TIDE_UNIT_BYTES},
    {"requested_bytes", "Requested", TIDE_UNIT_BYTES},
    {"cached_bytes", "Cached", TIDE_UNIT_BYTES},
    {"unused_bytes", "Never used", TIDE_UNIT_BYTES},
    {"largest_free_bytes", "Largest free", TIDE_UNIT_BYTES},
    {"peak_reserved_bytes", "Reserved peak", TIDE_UNIT_BYTES},
    {"n_blocks", "Blocks", TIDE_UNIT_COUNT},
    {"n_segments", "Segments", TIDE_UNIT_COUNT},
};
static void pools(const tide_report_table *t, size_t row, int column, tide_report_value *v) {
    const tide_pool *p = &t->side->pools.items[row];
    const uint64_t bytes[] = {p->reserved_bytes, p->active_bytes,       p->requested_bytes,    p->cached_bytes,
                              p->unused_bytes,   p->largest_free_bytes, p->peak_reserved_bytes};
    if (column == 0) tide__put_text(v, p->name);
    if (column == 1) tide__put_text(v, p->device);
    if (column == 2) tide__put_text(v, tide_memory_kind_name(p->kind));
    if (column >= 3 && column <= 9) tide__put_bytes(v, bytes[column - 3]);
    if (column == 10) tide__put_count(v, p->n_blocks);
    if (column == 11) {
        tide__put_count(v, p->n_segments);
        v->known = p->tells_segments;
    }
}

static const tide_column leak_columns[] = {
    {"name", "Name", TIDE_UNIT_TEXT},
    {"owner", "Scope", TIDE_UNIT_TEXT},
    {"kind", "Kind", TIDE_UNIT_TEXT},
    {"device", "Device", TIDE_UNIT_TEXT},
    {"n", "Not freed", TIDE_UNIT_COUNT},
    {"n_allocated", "Of", TIDE_UNIT_COUNT},
    {"bytes", "Bytes", TIDE_UNIT_BYTES},
    {"first", "First at", TIDE_UNIT_TIME},
    {"last", "Last at", TIDE_UNIT_TIME},
    {"grows", "Grows", TIDE_UNIT_FLAG},
    {"uncertain", "May have been freed", TIDE_UNIT_FLAG}, // events were lost
};
static void leaks(const tide_report_table *t, size_t row, int column, tide_report_value *v) {
    const tide_leak *l = &t->side->leaks.items[row];
    if (column == 0) tide__put_text(v, l->name);
    if (column == 1) tide__put_text_or_none(v, l->owner);
    if (column == 2) tide__put_text(v, tide_memory_kind_name(l->kind));
    if (column == 3) tide__put_text(v, l->device);
    if (column == 4) tide__put_count(v, l->n);
    if (column == 5) tide__put_count(v, l->n_allocated);
    if (column == 6) tide__put_bytes(v, l->bytes);
    if (column == 7) tide__put_count(v, tide_report_time(t->side->facts, l->first));
    if (column == 8) tide__put_count(v, tide_report_time(t->side->facts, l->last));
    if (column == 9) tide__put_count(v, l->grows);
    if (column == 10) tide__put_count(v, t->side->leaks.n_lost > 0);
}

// ---- items ----

static const tide_column item_columns[] = {
    {"id", "Id", TIDE_UNIT_COUNT},
    {"name", "Name", TIDE_UNIT_TEXT},
    {"owner", "Operator", TIDE_UNIT_TEXT},
    {"kind", "Kind", TIDE_UNIT_TEXT},
    {"device", "Device", TIDE_UNIT_TEXT},
    {"role", "Role", TIDE_UNIT_TEXT},
    {"size_bytes", "Size", TIDE_UNIT_BYTES},
    {"reserved_bytes", "Takes", TIDE_UNIT_BYTES},
    {"begin", "Begin", TIDE_UNIT_TIME},
    {"end", "End", TIDE_UNIT_TIME},
    {"open_ended", "Never freed", TIDE_UNIT_FLAG},
    {"persistent", "Persistent", TIDE_UNIT_FLAG},
    {"place", "Place", TIDE_UNIT_COUNT},
    {"alias", "Alias", TIDE_UNIT_TEXT},
    {"lies_in", "Lies in", TIDE_UNIT_TEXT},
    {"at_peak", "Alive at the peak", TIDE_UNIT_FLAG},
};
/// The name of what an alias lies in: its bytes are that one's, sums leave it out.
static void put_root(const tide_report_side *s, uint32_t i, tide_report_value *v) {
    tide_item_facts facts;
    if (tide_items_shape(s->items, i)->alias == TIDE_ALIAS_NONE) return;
    if (tide_subject_item(s->subject, i, &facts, NULL) != TIDE_OK || facts.alias_of == TIDE_NO_ITEM) return;
    tide__put_text(v, tide_items_site(s->items, facts.alias_of)->name);
}

static void items(const tide_report_table *t, size_t row, int column, tide_report_value *v) {
    const tide_items *it = t->side->items;
    const uint32_t i = (uint32_t)row;
    const tide_item_shape *shape = tide_items_shape(it, i);
    const tide_item_site *site = tide_items_site(it, i);
    switch (column) {
    case 0:
        tide__put_count(v, tide_items_id(it, i));
        break;
    case 1:
        tide__put_text(v, site->name);
        break;
    case 2:
        tide__put_text_or_none(v, site->owner);
        break;
    case 3:
        tide__put_text(v, tide_memory_kind_name(shape->kind));
        break;
    case 4:
        tide__put_text(v, shape->device);
        break;
    case 5: // a block that is not of a plan has no role
        tide__put_text(v, shape->is_planned ? tide_role_name(shape->role) : NULL);
        break;
    case 6:
        tide__put_bytes(v, shape->size_bytes);
        break;
    case 7:
        tide__put_bytes(v, shape->reserved_bytes);
        break;
    case 8:
        tide__put_count(v, tide_report_time(t->side->facts, tide_items_begin(it, i)));
        break;
    case 9:
        tide__put_count(v, tide_report_time(t->side->facts, tide_items_end(it, i)));
        break;
    case 10:
        tide__put_count(v, tide_items_is_open_ended(it, i));
        break;
    case 11:
        tide__put_count(v, shape->persistent);
        break;
    case 12:
        if (it->place != NULL && it->place[i] != TIDE_NO_OFFSET) tide__put_count(v, it->place[i]);
        break;
    case 13:
        tide__put_text(v, shape->alias != TIDE_ALIAS_NONE ? tide_alias_kind_name(shape->alias) : NULL);
        break;
    case 14:
        put_root(t->side, i, v);
        break;
    default:
        tide__put_count(v, tide_items_alive_at(it, i, t->side->facts->peak.t));
    }
}

size_t tide__report_side_tables(const tide_report *r, const tide_report_side *s, const char *of,
                                tide_report_table *out) {
    const bool is_trace = s->facts->is_trace;
    const tide_report_table tables[] = {
        {"kinds", "Predicted and measured, by kind",
         "Predicted is what the plan says, measured the highest that was live.", NULL, s, kind_columns,
         N_OF(kind_columns), s->facts->n_kinds, kinds, r, of},
        {"peak_parts", "What the peak is made of", "Each byte that is held at the peak is in one part: they sum to it.",
         NULL, s, part_columns, N_OF(part_columns), s->why.held_bytes > 0 ? TIDE_N_PARTS : 0, parts, r, of},
        {"peak_by_operator", "The peak by operator", "What is live at the peak, by who made it.", NULL, s,
         group_columns, N_OF(group_columns), s->why.n_by_owner, peak_by_owner, r, of},
        {"peak_items", "Alive at the peak", "Largest first. Of an alias counts what it alone keeps.", NULL, s,
         live_columns, N_OF(live_columns), s->why.live.n, at_peak, r, of},
        {"without", "What would lower the peak",
         "If one tensor were not there and nothing else changed: the next binding "
         "constraint.",
         NULL, s, without_columns, N_OF(without_columns), s->why.n_without, without, r, of},
        {"operators", "Operators", "What each one makes and frees, weights, inputs and outputs aside.", NULL, s,
         step_columns, N_OF(step_columns), s->n_steps, steps, r, of},
        {"pools", is_trace ? "Allocators at the peak" : "Pools and buffers",
         is_trace ? "Cached is reserved but held by no "
                    "block; never used: by no block at any time."
                  : "",
         NULL, s, pool_columns, N_OF(pool_columns), s->pools.n, pools, r, of},
        {"leaks", "Never freed", "Grouped by who allocated them; those that grow first.",
         is_trace ? "Everything was freed." : NULL, s, leak_columns, N_OF(leak_columns), s->leaks.n, leaks, r, of},
        {"items", is_trace ? "Blocks and tensors" : "Tensors", "", "Nothing lives here.", s, item_columns,
         N_OF(item_columns), s->items->n, items, r, of},
    };
    size_t n = 0;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        if (tables[i].n_rows > 0 || tables[i].empty != NULL) out[n++] = tables[i];
    }
    return n;
}
