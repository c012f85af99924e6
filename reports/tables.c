// SPDX-License-Identifier: MIT
//
// See tables.h. Tables of answers are declared in analysis/answer_tables; here are those that reports alone have.
#include "reports/tables.h"

#include <assert.h>
#include <string.h>

#include "analysis/answer_tables.h"
#include "reports/render.h"

#define TEXT TIDE_UNIT_TEXT
#define NAME TIDE_UNIT_NAME
#define KIND TIDE_UNIT_KIND
#define COUNT TIDE_UNIT_COUNT
#define BYTES TIDE_UNIT_BYTES
#define TIME TIDE_UNIT_TIME
#define FLAG TIDE_UNIT_FLAG

// ---- kinds ----

static void kind_difference(const void *row, tide_cell *v) {
    const tide_trace_kind *k = row;
    tide_cell_change(v, k->peak_bytes, k->predicted_bytes);
}

static const tide_column kind_columns[] = {
    {"kind", "Kind", KIND, TIDE_AT(tide_trace_kind, kind)},
    {"device", "Device", NAME, TIDE_TEXT_AT(tide_trace_kind, device)},
    {"predicted_bytes", "Predicted", BYTES, TIDE_AT(tide_trace_kind, predicted_bytes)},
    {"measured_bytes", "Measured peak", BYTES, TIDE_AT(tide_trace_kind, peak_bytes)},
    {"difference_bytes", "Predicted - measured", TIDE_UNIT_CHANGE, .get = kind_difference},
    {"reserved_peak_bytes", "Active peak", BYTES, TIDE_AT(tide_trace_kind, peak_reserved_bytes)},
    {"requested_bytes", "Allocated in the run", BYTES, TIDE_AT(tide_trace_kind, requested_bytes)},
    {"live_at_end_bytes", "Live at the end", BYTES, TIDE_AT(tide_trace_kind, live_at_end_bytes)},
};

static tide_table kinds(const tide_report_side *s) {
    return (tide_table){.name = "kinds",
                        TIDE_COLUMNS(kind_columns),
                        .rows = s->facts->kinds,
                        .row_bytes = sizeof *s->facts->kinds,
                        .n_rows = s->facts->n_kinds};
}

// ---- devices ----

static const tide_column device_part_columns[] = {
    {"device", "Device", NAME, TIDE_AT(tide_report_device_part, device)},
    {"of", "Of", NAME, TIDE_AT(tide_report_device_part, of)},
    {"name", "Who", NAME, TIDE_AT(tide_report_device_part, name)},
    {"bytes", "Bytes", BYTES, TIDE_AT(tide_report_device_part, bytes)},
};

static tide_table device_parts(const tide_report_side *s) {
    return (tide_table){.name = "device_parts",
                        TIDE_COLUMNS(device_part_columns),
                        .rows = s->device_parts,
                        .row_bytes = sizeof *s->device_parts,
                        .n_rows = s->n_device_parts,
                        .facts = s->facts};
}

// ---- operators ----

static void step_share(const void *row, tide_cell *v) {
    const tide_report_step *s = row;
    tide_cell_share(v, s->live_bytes, v->table->facts->peak_bytes);
}

static const tide_column step_columns[] = {
    {"begin", "At", TIME, TIDE_AT(tide_report_step, begin)},
    {"name", "Operator", NAME, TIDE_AT(tide_report_step, name)},
    {"makes_bytes", "Makes", BYTES, TIDE_AT(tide_report_step, makes_bytes)},
    {"frees_bytes", "Frees", BYTES, TIDE_AT(tide_report_step, frees_bytes)},
    {"live_bytes", "Highest while it runs", BYTES, TIDE_AT(tide_report_step, live_bytes)},
    {"share", "Of the peak", TIDE_UNIT_SHARE, .get = step_share},
};

static tide_table operators(const tide_report_side *s) {
    return (tide_table){.name = "operators",
                        TIDE_COLUMNS(step_columns),
                        .rows = s->steps,
                        .row_bytes = sizeof *s->steps,
                        .n_rows = s->n_steps,
                        .facts = s->facts,
                        .from_origin = true};
}

// ---- items: the table's data is its side ----

/// A block that is not of a plan has no role.
static void item_role(const void *row, tide_cell *v) {
    const tide_item_facts *x = row;
    tide_cell_text(v, x->shape.is_planned ? tide_role_name(x->shape.role) : NULL);
}
static void item_alias(const void *row, tide_cell *v) {
    const tide_item_facts *x = row;
    tide_cell_text(v, x->shape.alias != TIDE_ALIAS_NONE ? tide_alias_kind_name(x->shape.alias) : NULL);
}
/// The name of what an alias lies in: its bytes are that one's, sums leave it out.
static void item_lies_in(const void *row, tide_cell *v) {
    const tide_report_side *s = v->table->data;
    const tide_item_facts *x = row;
    tide_item_facts facts;
    if (x->shape.alias == TIDE_ALIAS_NONE) return;
    if (tide_subject_item(s->subject, x->item, &facts, NULL) != TIDE_OK || facts.alias_of == TIDE_NO_ITEM) return;
    tide_cell_text(v, tide_items_site(s->items, facts.alias_of)->name);
}
static void item_at_peak(const void *row, tide_cell *v) {
    const tide_report_side *s = v->table->data;
    tide_cell_count(v, tide_items_alive_at(s->items, ((const tide_item_facts *)row)->item, s->facts->peak.t));
}

static void item_never_freed(const void *row, tide_cell *v) {
    const tide_item_facts *x = row;
    tide_cell_count(v, x->open_ended || x->is_left);
}

static const tide_column item_columns[] = {
    {"id", "Id", COUNT, TIDE_AT(tide_item_facts, id)},
    {"name", "Name", NAME, TIDE_AT(tide_item_facts, site.name)},
    {"owner", "Operator", TEXT, TIDE_AT(tide_item_facts, site.owner)},
    {"kind", "Kind", KIND, TIDE_AT(tide_item_facts, shape.kind)},
    {"device", "Device", NAME, TIDE_AT(tide_item_facts, shape.device)},
    {"role", "Role", NAME, .get = item_role},
    {"size_bytes", "Size", BYTES, TIDE_AT(tide_item_facts, shape.size_bytes)},
    {"reserved_bytes", "Takes", BYTES, TIDE_AT(tide_item_facts, shape.reserved_bytes)},
    {"bound", "At most", TEXT, TIDE_AT(tide_item_facts, size.bound)},
    {"extents", "Came out as", TEXT, TIDE_AT(tide_item_facts, size.extents)},
    {"actual_bytes", "Came out", BYTES, TIDE_AT(tide_item_facts, size.bytes)},
    {"begin", "Begin", TIME, TIDE_AT(tide_item_facts, begin)},
    {"end", "End", TIME, TIDE_AT(tide_item_facts, end)},
    {"open_ended", "Never freed", FLAG, .get = item_never_freed},
    {"persistent", "Persistent", FLAG, TIDE_AT(tide_item_facts, shape.persistent)},
    {"place", "Place", COUNT, TIDE_AT(tide_item_facts, place)},
    {"alias", "Alias", NAME, .get = item_alias},
    {"lies_in", "Lies in", NAME, .get = item_lies_in},
    {"at_peak", "Alive at the peak", FLAG, .get = item_at_peak},
};

static const void *item_row(const tide_table *t, size_t i, void *room) {
    return tide_table_item_row(((const tide_report_side *)t->data)->items, (uint32_t)i, room);
}

static tide_table items(const tide_report_side *s) {
    return (tide_table){.name = "items",
                        TIDE_COLUMNS(item_columns),
                        .row = item_row,
                        .n_rows = s->items->n,
                        .data = s,
                        .facts = s->facts,
                        .from_origin = true};
}

static void item_end(const void *row, tide_cell *v) {
    const tide_item_facts *x = row;
    v->known = !x->open_ended;
    v->i = x->end;
}

static const tide_column page_columns[] = {
    {NULL, "Name", NAME, TIDE_AT(tide_item_facts, site.name), .sort = "name"},
    {NULL, "Operator", TEXT, TIDE_AT(tide_item_facts, site.owner), .sort = "owner"},
    {NULL, "Kind", KIND, TIDE_AT(tide_item_facts, shape.kind), .sort = "kind"},
    {NULL, "Role", NAME, .get = item_role, .sort = "role"},
    {NULL, "Size (B)", BYTES, TIDE_AT(tide_item_facts, shape.size_bytes), .sort = "size"},
    {NULL, "Takes (B)", BYTES, TIDE_AT(tide_item_facts, shape.reserved_bytes), .sort = "takes"},
    {NULL, "Begin", TIME, TIDE_AT(tide_item_facts, begin), .sort = "begin"},
    {NULL, "End", TIME, .get = item_end, .sort = "end"},
    {NULL, "Place (B)", COUNT, TIDE_AT(tide_item_facts, place), .sort = "place"},
};

/// The row of folded weights. Its name lies behind it in `room`.
static const void *weights_row(const tide_report_side *s, void *room) {
    tide_item_facts *x = room;
    static_assert(sizeof *x + 64 <= TIDE_ROW_BYTES, "the name has room");
    char *name = (char *)room + sizeof *x;
    *x = (tide_item_facts){.item = TIDE_NO_ITEM,
                           .site.name = tide_report_weights_name(&s->weights, name, 64),
                           .site.owner = "",
                           .shape.size_bytes = s->weights.size_bytes,
                           .shape.reserved_bytes = s->weights.reserved_bytes,
                           .shape.kind = TIDE_KIND_PERSISTENT,
                           .begin = s->weights.begin,
                           .end = s->weights.end,
                           .place = TIDE_NO_OFFSET};
    return x;
}

static const void *largest_row(const tide_table *t, size_t i, void *room) {
    const tide_report_side *s = t->data;
    if (s->weights.folded && i == 0) return weights_row(s, room);
    return tide_table_item_row(s->items, s->largest[i - s->weights.folded], room);
}

tide_table tide_report_page_items(const tide_report_side *s) {
    return (tide_table){.name = "items",
                        TIDE_COLUMNS(page_columns),
                        .row = largest_row,
                        .n_rows = s->n_largest + s->weights.folded,
                        .data = s,
                        .facts = s->facts,
                        .from_origin = true,
                        .is_exact = true};
}

// ---- call stacks ----

static void stack_share(const void *row, tide_cell *v) {
    const tide_report_side *s = v->table->data;
    tide_cell_share(v, ((const tide_group *)row)->requested_bytes, s->why.live.bytes);
}

static const tide_column stack_columns[] = {
    {"stack", "Call stack", NAME, TIDE_AT(tide_group, key), .may_be_cut = true},
    {"blocks", "Blocks", COUNT, TIDE_AT(tide_group, n_blocks)},
    {"bytes", "Bytes", BYTES, TIDE_AT(tide_group, requested_bytes)},
    {"share", "Share", TIDE_UNIT_SHARE, .get = stack_share},
};

static tide_table stacks(const tide_report_side *s) {
    return (tide_table){.name = "peak_by_stack",
                        TIDE_COLUMNS(stack_columns),
                        .rows = s->stacks,
                        .row_bytes = sizeof *s->stacks,
                        .n_rows = s->n_stacks,
                        .data = s,
                        .facts = s->facts};
}

static void function_share(const void *row, tide_cell *v) {
    const tide_report_side *s = v->table->data;
    tide_cell_share(v, ((const tide_group *)row)->with_bytes, s->why.live.bytes);
}

static const tide_column function_columns[] = {
    {"function", "Function", NAME, TIDE_AT(tide_group, key), .may_be_cut = true},
    {"own_blocks", "Own blocks", COUNT, TIDE_AT(tide_group, n_blocks)},
    {"own_bytes", "Own", BYTES, TIDE_AT(tide_group, requested_bytes)},
    {"own_share", "Share", TIDE_UNIT_SHARE, .get = stack_share},
    {"with_callees_blocks", "Blocks with callees", COUNT, TIDE_AT(tide_group, with_blocks)},
    {"with_callees_bytes", "With callees", BYTES, TIDE_AT(tide_group, with_bytes)},
    {"with_callees_share", "Share", TIDE_UNIT_SHARE, .get = function_share},
};

static tide_table functions(const tide_report_side *s) {
    return (tide_table){.name = "peak_by_function",
                        TIDE_COLUMNS(function_columns),
                        .rows = s->functions,
                        .row_bytes = sizeof *s->functions,
                        .n_rows = s->n_functions,
                        .data = s,
                        .facts = s->facts};
}

// ---- settings of an allocator ----

static void setting_change(const void *row, tide_cell *v) {
    const tide_report_setting *x = row;
    tide_cell_change(v, x->recorded_bytes, x->reserved_bytes);
}
static void setting_share(const void *row, tide_cell *v) {
    const tide_report_setting *x = row;
    if (x->reserved_bytes != TIDE_UNKNOWN_BYTES) tide_cell_share(v, x->reserved_bytes, x->recorded_bytes);
}

static const tide_column setting_columns[] = {
    {"setting", "Setting", NAME, TIDE_TEXT_AT(tide_report_setting, name)},
    {"device", "Device", TEXT, TIDE_TEXT_AT(tide_report_setting, device)},
    {"reserved_bytes", "Reserves at most", BYTES, TIDE_AT(tide_report_setting, reserved_bytes)},
    {"change_bytes", "Than recorded", TIDE_UNIT_CHANGE, .get = setting_change},
    {"share", "Of it", TIDE_UNIT_SHARE, .get = setting_share},
    {"failed", "Failed requests", COUNT, TIDE_AT(tide_report_setting, n_failed)},
    {"note", "Note", TEXT, TIDE_TEXT_AT(tide_report_setting, note)},
};

static tide_table settings(const tide_report_side *s) {
    return (tide_table){.name = "settings",
                        TIDE_COLUMNS(setting_columns),
                        .rows = s->settings != NULL ? s->settings->rows : NULL,
                        .row_bytes = sizeof *s->settings->rows,
                        .n_rows = s->settings != NULL ? s->settings->n : 0};
}

static const char *words_for_no_settings(const tide_report_side *s) {
    return s->settings != NULL && s->settings->why_not[0] != '\0' ? s->settings->why_not : NULL;
}

// ---- all of them ----

bool tide_report_is_items(const tide_report_table *t) { return strcmp(t->table.name, "items") == 0; }

/// Takes over those that have rows, or words instead.
static size_t take(tide_report_table *tables, size_t n_tables, const char *of, const char *side,
                   tide_report_table *out) {
    size_t n = 0;
    for (size_t i = 0; i < n_tables; i++) {
        if (tables[i].table.n_rows == 0 && tables[i].empty == NULL) continue;
        tables[i].of = of;
        tables[i].side = side;
        if (!tide_report_is_items(&tables[i])) tide_table_hide_unknown(&tables[i].table);
        out[n++] = tables[i];
    }
    return n;
}

static size_t pair_tables(const tide_report *r, tide_report_table *out) {
    const tide_table_view view = {.facts = r->a.facts};
    tide_report_table tables[] = {
        {tide_table_of_owner_changes(&view, &r->diff), .title = "Change by operator",
         .what = "What each operator holds at the peak of A and of B; the changes sum to the change of what is held.",
         .empty = "Nothing is held by either."},
        {tide_table_of_kind_changes(&view, &r->diff), .title = "Change by kind", .what = "The same by kind of memory."},
        {tide_table_of_changes(&view, &r->diff), .title = "Change by tensor",
         .what = "Matched by name; largest change of the peak first.", .empty = "There is nothing to compare."},
    };
    return take(tables, sizeof tables / sizeof tables[0], "", "", out);
}

/// What the columns of allocators mean; where none tells what it took, those of it are left out.
static const char *words_for_pools(const tide_report_side *s) {
    if (!s->facts->is_trace) return "";
    for (size_t i = 0; i < s->pools.n; i++)
        if (s->pools.items[i].reserved_bytes == TIDE_UNKNOWN_BYTES)
            return "Active is what blocks hold, rounding included. What they took from the system is not known where "
                   "an "
                   "allocator keeps blocks and does not record it.";
    return "Cached is reserved but held by no block; never used: by no block at any time.";
}

static const char *words_for_without(const tide_report_side *s) {
    return s->facts->is_trace
               ? "If one tensor and all that lie in it were not there and nothing else changed: the next binding "
                 "constraint; and what a plan of the rest takes. A block that is not of a plan goes in every "
                 "execution, "
                 "with all of its name and operator."
               : "If one tensor and all that lie in it were not there and nothing else changed: the next binding "
                 "constraint; and what a plan of the rest takes.";
}

static size_t side_tables(const tide_report *r, const tide_report_side *s, const char *of, tide_report_table *out) {
    const tide_table_view view = {.facts = s->facts};
    const bool is_trace = s->facts->is_trace;
    tide_report_table tables[] = {
        {kinds(s), .title = "Predicted and measured, by kind",
         .what = is_trace
                     ? "Predicted is what the plan says, measured the highest that was live; active is the same with "
                       "rounding, allocated what all allocations of the run asked for, one after the other."
                     : "Predicted is what the plan says, measured the highest that was live."},
        {tide_table_of_parts(&view, &s->why), .title = "What the peak is made of",
         .what = "Each byte that is held at the peak is in one part: they sum to it."},
        {settings(s), .title = "Other settings of the allocator",
         .what = "The recorded requests again, simulated: what PyTorch would have reserved with these settings "
                 "(PYTORCH_CUDA_ALLOC_CONF), and into what the blocks fit when all of them are known before.",
         .empty = words_for_no_settings(s)},
        {tide_table_of_lanes(&s->lanes), .title = "Processes side by side",
         .what = "Each process, and how far it is from the median of the others where it is furthest: more than they "
                 "have then and shortly before and after, or less. Moments count from the begin of the trace."},
        {tide_table_of_lane_causes(&s->lanes), .title = "What the one that differs most holds",
         .what = "At the moment when it is furthest from the others, by name; others: the median."},
        {tide_table_of_owners(&view, &s->why), .title = "The peak by operator",
         .what = "What is live at the peak, by who made it."},
        {stacks(s), .title = "The peak by call stack",
         .what = "What is live at the peak, by the lines of Python that led there, outermost first, and the operator."},
        {functions(s), .title = "The peak by function",
         .what = "Own is what the function allocated itself: the innermost line of Python that is no library's, or "
                 "else the innermost function. With callees is what it and all that it called hold; a block counts "
                 "once, so the column does not sum to the peak."},
        {tide_table_of_live(&view, &s->why), .title = "Alive at the peak",
         .what = "Largest first. Of an alias counts what it alone keeps."},
        {tide_table_of_without(&view, &s->why), .title = "What would lower the peak", .what = words_for_without(s)},
        {tide_table_of_ways(&view, &s->why), .title = "How to get there",
         .what = "Changes that a run could follow, each planned: the plan with it. Run twice: operators."},
        {operators(s), .title = "Operators",
         .what =
             is_trace
                 ? "What each one makes and frees the first time it runs, weights, inputs and outputs aside. Tensors "
                   "that share bytes of a buffer count together. Highest is what is live meanwhile: of a plan's "
                   "buffer what tensors use of it."
                 : "What each one makes and frees, weights, inputs and outputs aside. Tensors that share bytes "
                   "count together."},
        {tide_table_of_pools(&view, &s->pools), .title = is_trace ? "Allocators at the peak" : "Pools and buffers",
         .what = words_for_pools(s)},
        {tide_table_of_devices(&view, s->devices, s->device_memory.n), .title = "Devices",
         .what =
             "When most of each was in use, as its driver counts. Allocators is what the program's allocators have, "
             "outside what was taken from the driver itself, unexplained the rest; off is how far the driver's number "
             "is below the sum of both."},
        {device_parts(s), .title = "Who has a device's bytes",
         .what = "At the same moment. What lies outside is there twice, by the driver's function and by who asked."},
        {tide_table_of_leaks(&view, &s->leaks), .title = "Never freed",
         .what = "Grouped by who allocated them; those that grow first.",
         .empty = is_trace ? "Everything was freed." : NULL},
        {items(s), .title = is_trace ? "Blocks and tensors" : "Tensors", .what = "", .empty = "Nothing lives here."},
    };
    _Static_assert(2 * sizeof tables / sizeof tables[0] + 3 <= TIDE_REPORT_MAX_TABLES, "both sides and the pair");
    return take(tables, sizeof tables / sizeof tables[0], of, !r->has_b ? "" : of[0] == 'a' ? " (A)" : " (B)", out);
}

size_t tide_report_tables(const tide_report *r, tide_report_table out[TIDE_REPORT_MAX_TABLES]) {
    size_t n = 0;
    if (r->has_b) n += pair_tables(r, out + n);
    n += side_tables(r, &r->a, "a", out + n);
    if (r->has_b) n += side_tables(r, &r->b, "b", out + n);
    return n;
}
