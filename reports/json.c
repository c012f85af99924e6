// SPDX-License-Identifier: MIT
//
// JSON: "tidemark.report": facts, curve, pictures' regions and every table of each input, keys in a fixed order, sizes
// as integers of bytes, null for what is not known (docs/schemas/report.json). The page carries the same with its items
// in columns, words once.
#include <string.h>

#include "analysis/answer_tables.h"
#include "analysis/bisect.h"
#include "core/base/host_alloc.h"
#include "core/base/map.h"
#include "reports/render.h"

// ---- items in columns: what the page carries, each word once ----

typedef struct words {
    tide_strmap places;
    const char **list; // [places.map.n], borrowed
    size_t cap;
    bool failed;
} words;

static void word(tide_json_out *j, words *w, const char *text) {
    if (text == NULL || text[0] == '\0') {
        tide_json_null(j, NULL);
        return;
    }
    uint64_t place = w->places.map.n;
    if (!tide_strmap_get(&w->places, text, &place)) {
        if (tide_host_grow(&w->list, &w->cap, w->places.map.n + 1, sizeof *w->list) != TIDE_OK ||
            tide_strmap_put(&w->places, text, place) != TIDE_OK) {
            w->failed = true;
            return;
        }
        w->list[place] = text;
    }
    tide_json_u64(j, NULL, place);
}

/// The data of the table.
typedef struct item_source {
    const tide_report_side *side;
    const uint32_t *items; // [n] items of the rows; NULL: the first n
    bool repeats;          // they are the tensors that executions repeat
    bool *failed;          // an item could not be looked up
} item_source;

static void item_role(const void *row, tide_cell *v) {
    const tide_item_facts *x = row;
    tide_cell_text(v, x->shape.is_planned ? tide_role_name(x->shape.role) : NULL);
}
static void item_region(const void *row, tide_cell *v) {
    const tide_report_side *s = ((const item_source *)v->table->data)->side;
    uint64_t lo, hi;
    if (!tide_space_of_item(&s->space, s->items, ((const tide_item_facts *)row)->item, &lo, &hi)) return;
    const size_t region = tide_space_region_at(&s->space, lo);
    if (region != SIZE_MAX) tide_cell_count(v, region);
}
/// Where an item stands among the tensors that executions repeat, which are in the order of the items.
static size_t tensor_index(const tide_report_repeats *r, uint32_t item) {
    size_t lo = 0, hi = r->n;
    TIDE_BISECT(lo, hi, r->tensors[mid] < item);
    return lo < r->n && r->tensors[lo] == item ? lo : SIZE_MAX;
}
static void item_lies_in(const void *row, tide_cell *v) {
    const item_source *source = v->table->data;
    const tide_report_side *s = source->side;
    const tide_item_facts *x = row;
    tide_item_facts facts;
    if (x->shape.alias == TIDE_ALIAS_NONE) return;
    if (tide_subject_item(s->subject, x->item, &facts, NULL) != TIDE_OK) {
        *source->failed = true;
        return;
    }
    if (facts.alias_of == TIDE_NO_ITEM) return;
    const size_t at =
        source->repeats ? tensor_index(&s->repeats, facts.alias_of) : tide_report_live_index(s, facts.alias_of);
    if (at != SIZE_MAX) tide_cell_count(v, at);
}

/// What lies in a tensor of a plan counts in whole multiples of this.
static void item_multiple(const void *row, tide_cell *v) {
    const tide_subject_facts *f = ((const item_source *)v->table->data)->side->facts;
    const tide_item_facts *x = row;
    const tide_memory_plan *plan = f->executions != NULL ? f->executions->plan : f->is_trace ? NULL : f->plan;
    const uint64_t tensor = tide_planned_tensor(x->id);
    if (!x->shape.is_planned || plan == NULL || tensor >= plan->lifetimes.n) return;
    const tide_lifetime *l = &plan->lifetimes.items[tensor];
    tide_cell_bytes(v, l->unrounded ? 1 : l->align_bytes);
}

/// 1: it lives on at the end; 2: never freed either, and it ended with its process.
static void item_open(const void *row, tide_cell *v) {
    const tide_item_facts *x = row;
    tide_cell_count(v, x->open_ended ? 1 : x->is_left ? 2 : 0);
}

static const tide_column item_columns[] = {
    {"id", NULL, TIDE_UNIT_COUNT, TIDE_AT(tide_item_facts, id)},
    {"name", NULL, TIDE_UNIT_TEXT, TIDE_AT(tide_item_facts, site.name)},
    {"owner", NULL, TIDE_UNIT_TEXT, TIDE_AT(tide_item_facts, site.owner)},
    {"kind", NULL, TIDE_UNIT_KIND, TIDE_AT(tide_item_facts, shape.kind)},
    {"role", NULL, TIDE_UNIT_TEXT, .get = item_role},
    {"size_bytes", NULL, TIDE_UNIT_BYTES, TIDE_AT(tide_item_facts, shape.size_bytes)},
    {"reserved_bytes", NULL, TIDE_UNIT_BYTES, TIDE_AT(tide_item_facts, shape.reserved_bytes)},
    {"begin", NULL, TIDE_UNIT_TIME, TIDE_AT(tide_item_facts, begin)},
    {"end", NULL, TIDE_UNIT_TIME, TIDE_AT(tide_item_facts, end)},
    {"open", NULL, TIDE_UNIT_COUNT, .get = item_open},
    {"fill", NULL, TIDE_UNIT_COUNT, TIDE_AT(tide_item_facts, shape.fill)},
    {"place", NULL, TIDE_UNIT_ADDRESS, TIDE_AT(tide_item_facts, place)},
    {"region", NULL, TIDE_UNIT_COUNT, .get = item_region},
    {"lies_in", NULL, TIDE_UNIT_COUNT, .get = item_lies_in},
    {"multiple_bytes", NULL, TIDE_UNIT_BYTES, .get = item_multiple},
    // Left out where nothing is sized while running.
    {"bound", NULL, TIDE_UNIT_TEXT, TIDE_AT(tide_item_facts, size.bound)},
    {"extents", NULL, TIDE_UNIT_TEXT, TIDE_AT(tide_item_facts, size.extents)},
    {"actual_bytes", NULL, TIDE_UNIT_BYTES, TIDE_AT(tide_item_facts, size.bytes)},
};
enum { N_SIZED_ITEM_COLUMNS = 3, N_SIZED_TENSOR_COLUMNS = 1 }; // at their ends

static const void *item_row(const tide_table *t, size_t i, void *room) {
    const item_source *source = t->data;
    return tide_table_item_row(source->side->items, source->items != NULL ? source->items[i] : (uint32_t)i, room);
}

// tensors that executions repeat: of the plan, between which of their steps

static const tide_lifetime *tensor_of(const void *row, const tide_cell *v) {
    const tide_executions *x = ((const item_source *)v->table->data)->side->facts->executions;
    return &x->plan->lifetimes.items[tide_planned_tensor(((const tide_item_facts *)row)->id)];
}
static void step_of(int64_t step, tide_cell *v) {
    const tide_subject_facts *f = ((const item_source *)v->table->data)->side->facts;
    size_t lo = 0, hi = f->n_steps;
    TIDE_BISECT(lo, hi, f->step_number[mid] < step);
    tide_cell_count(v, lo);
}
static void tensor_number(const void *row, tide_cell *v) {
    tide_cell_count(v, tide_planned_tensor(((const tide_item_facts *)row)->id));
}
static void tensor_from(const void *row, tide_cell *v) { step_of(tensor_of(row, v)->begin_step, v); }
static void tensor_to(const void *row, tide_cell *v) { step_of(tensor_of(row, v)->end_step, v); }

static const tide_column tensor_columns[] = {
    {"number", NULL, TIDE_UNIT_COUNT, .get = tensor_number},
    {"name", NULL, TIDE_UNIT_TEXT, TIDE_AT(tide_item_facts, site.name)},
    {"owner", NULL, TIDE_UNIT_TEXT, TIDE_AT(tide_item_facts, site.owner)},
    {"kind", NULL, TIDE_UNIT_KIND, TIDE_AT(tide_item_facts, shape.kind)},
    {"role", NULL, TIDE_UNIT_TEXT, .get = item_role},
    {"size_bytes", NULL, TIDE_UNIT_BYTES, TIDE_AT(tide_item_facts, shape.size_bytes)},
    {"reserved_bytes", NULL, TIDE_UNIT_BYTES, TIDE_AT(tide_item_facts, shape.reserved_bytes)},
    {"from", NULL, TIDE_UNIT_COUNT, .get = tensor_from},
    {"to", NULL, TIDE_UNIT_COUNT, .get = tensor_to},
    {"fill", NULL, TIDE_UNIT_COUNT, TIDE_AT(tide_item_facts, shape.fill)},
    {"place", NULL, TIDE_UNIT_ADDRESS, TIDE_AT(tide_item_facts, place)},
    {"region", NULL, TIDE_UNIT_COUNT, .get = item_region},
    {"lies_in", NULL, TIDE_UNIT_COUNT, .get = item_lies_in},
    {"multiple_bytes", NULL, TIDE_UNIT_BYTES, .get = item_multiple},
    {"bound", NULL, TIDE_UNIT_TEXT, TIDE_AT(tide_item_facts, size.bound)},
};

static bool is_same(tide_unit unit, const tide_cell *a, const tide_cell *b) {
    if (a->known != b->known || !a->known) return a->known == b->known;
    if (tide_unit_is_words(unit)) return strcmp(a->text, b->text) == 0;
    return unit == TIDE_UNIT_TIME ? a->i == b->i : a->u == b->u;
}

/// Whether all rows say the same in that column.
static bool is_one_value(const tide_table *t, size_t column) {
    tide_row_room room;
    tide_cell first, v;
    if (t->n_rows < 2) return false;
    tide_table_cell(t, tide_table_row(t, 0, &room), column, &first);
    for (size_t i = 1; i < t->n_rows; i++) {
        tide_table_cell(t, tide_table_row(t, i, &room), column, &v);
        if (!is_same(t->columns[column].unit, &first, &v)) return false;
    }
    return true;
}

static uint64_t number_of(const tide_table *t, size_t column, size_t row, bool *known) {
    tide_row_room room;
    tide_cell v;
    tide_table_cell(t, tide_table_row(t, row, &room), column, &v);
    *known = v.known;
    return t->columns[column].unit == TIDE_UNIT_TIME ? (uint64_t)v.i : v.u;
}

static size_t n_digits(uint64_t u) {
    size_t n = 1;
    while (u >= 10) {
        u /= 10;
        n++;
    }
    return n;
}

/// Whether a column of numbers is shorter as what each adds to the one before it: times and addresses are.
static bool is_shorter_by_steps(const tide_table *t, size_t column) {
    size_t as_is = 0, as_steps = 0;
    uint64_t before = 0;
    for (size_t i = 0; i < t->n_rows; i++) {
        bool known;
        const uint64_t now = number_of(t, column, i, &known);
        if (!known || now > INT64_MAX) return false;
        as_is += n_digits(now);
        as_steps += now < before ? 1 + n_digits(before - now) : n_digits(now - before);
        before = now;
    }
    return as_steps < as_is;
}

/// The column of bytes that a row takes, where no row takes more than its size.
static bool is_size_again(const tide_table *t, size_t column) {
    static const char key[] = "reserved_bytes", size_key[] = "size_bytes";
    if (column == 0 || strcmp(t->columns[column].key, key) != 0 || strcmp(t->columns[column - 1].key, size_key) != 0)
        return false;
    for (size_t i = 0; i < t->n_rows; i++) {
        bool known, size_known;
        if (number_of(t, column, i, &known) != number_of(t, column - 1, i, &size_known) || known != size_known)
            return false;
    }
    return true;
}

static void add_steps(tide_json_out *j, const tide_table *t, size_t column) {
    uint64_t before = 0;
    tide_json_open_flat(j, t->columns[column].key, '{');
    tide_json_open_flat(j, "steps", '[');
    for (size_t i = 0; i < t->n_rows && !j->out->failed; i++) {
        bool known;
        const uint64_t now = number_of(t, column, i, &known);
        tide_json_i64(j, NULL, (int64_t)(now - before));
        before = now;
    }
    tide_json_close(j, ']');
    tide_json_close(j, '}');
}

/// How many rows must be written where all behind them say what the row `period` before them says.
static size_t rows_before_repeat(const tide_table *t, size_t column, size_t period) {
    tide_row_room room;
    tide_cell now, before;
    size_t i = t->n_rows;
    for (; i > period; i--) {
        tide_table_cell(t, tide_table_row(t, i - 1, &room), column, &now);
        tide_table_cell(t, tide_table_row(t, i - 1 - period, &room), column, &before);
        if (!is_same(t->columns[column].unit, &now, &before)) break;
    }
    return i;
}

/// After how many rows a run that does the same again and again repeats itself, by its names; 0: it does not. The
/// period is a distance between two rows that have the name of the last one.
static size_t find_period(const tide_table *t, size_t name_column) {
    enum { TRIES = 8 };
    tide_row_room room;
    tide_cell last, v;
    size_t best = 0, least = t->n_rows / 2;
    if (t->n_rows < 2) return 0;
    tide_table_cell(t, tide_table_row(t, t->n_rows - 1, &room), name_column, &last);
    for (size_t i = t->n_rows - 1, tries = 0; i > 0 && tries < TRIES; i--) {
        tide_table_cell(t, tide_table_row(t, i - 1, &room), name_column, &v);
        if (!is_same(t->columns[name_column].unit, &last, &v)) continue;
        const size_t period = t->n_rows - i, rows = rows_before_repeat(t, name_column, period);
        tries++;
        if (rows < least) {
            least = rows;
            best = period;
        }
    }
    return best;
}

static void add_values(tide_json_out *j, const char *key, const tide_table *t, size_t column, size_t n, words *w) {
    const tide_unit unit = t->columns[column].unit;
    tide_row_room room;
    tide_cell v;
    tide_json_open_flat(j, key, '[');
    for (size_t i = 0; i < n && !j->out->failed; i++) {
        tide_table_cell(t, tide_table_row(t, i, &room), column, &v);
        if (tide_unit_is_words(unit))
            word(j, w, v.known ? v.text : NULL);
        else
            tide_json_u64_if(j, NULL, v.known, unit == TIDE_UNIT_TIME ? (uint64_t)v.i : v.u);
    }
    tide_json_close(j, ']');
}

/// A column as an array: numbers, and of a text its place among the words. What is the same in all rows stands once;
/// {"first": […], "period": n} goes on with what stands n rows before; {"steps": […]} has what each number adds to the
/// one before; "size_bytes" is that column once more.
static void add_column(tide_json_out *j, const tide_table *t, size_t column, size_t period, words *w) {
    const char *key = t->columns[column].key;
    const bool is_one = is_one_value(t, column);
    const size_t n = period > 0 && !is_one ? rows_before_repeat(t, column, period) : t->n_rows;
    if (!is_one && is_size_again(t, column)) {
        tide_json_text(j, key, "size_bytes");
    } else if (n < t->n_rows / 2) {
        tide_json_open_flat(j, key, '{');
        add_values(j, "first", t, column, n, w);
        tide_json_u64(j, "period", period);
        tide_json_close(j, '}');
    } else if (!is_one && !tide_unit_is_words(t->columns[column].unit) && is_shorter_by_steps(t, column)) {
        add_steps(j, t, column);
    } else {
        add_values(j, key, t, column, is_one ? 1 : t->n_rows, w);
    }
}

/// The second column is the name.
static void add_columns(tide_json_out *j, const char *key, const tide_table *t, words *w) {
    tide_json_open(j, key, '{');
    const size_t period = find_period(t, 1);
    tide_json_u64(j, "n", t->n_rows);
    for (size_t c = 0; c < t->n_columns; c++) add_column(j, t, c, period, w);
    tide_json_close(j, '}');
}

/// What came out of tensors that executions repeat: {tensor: its number, execution, extents, actual_bytes}, each a
/// list. Left out where nothing is sized while running.
static void add_sizes(tide_json_out *j, const tide_report_side *s, words *w) {
    const tide_sizes *z = &s->items->sizes;
    if (s->facts->n_bounded == 0 || s->repeats.n == 0) return;
    const char *const keys[] = {"tensor", "execution", "extents", "actual_bytes"};
    tide_json_open(j, "sizes", '{');
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
        tide_json_open_flat(j, keys[k], '[');
        for (size_t i = 0; i < z->n && !j->out->failed; i++) {
            const tide_size *x = &z->items[i];
            if (!tide_id_is_planned(x->id)) continue;
            if (k == 2)
                word(j, w, x->extents);
            else
                tide_json_u64(j, NULL,
                              k == 0   ? tide_planned_tensor(x->id)
                              : k == 1 ? tide_planned_execution(x->id)
                                       : x->bytes);
        }
        tide_json_close(j, ']');
    }
    tide_json_close(j, '}');
}

/// Keys items, of which those are left out that executions repeat, and tensors, which these are; null: none.
static void add_item_columns(tide_json_out *j, const tide_report_side *s, words *w) {
    uint32_t *others = NULL;
    item_source source = {.side = s, .items = s->live, .failed = &w->failed};
    tide_table t = {TIDE_COLUMNS(item_columns), .row = item_row,    .n_rows = s->n_live, .data = &source,
                    .facts = s->facts,          .from_origin = true};
    const bool is_sized = s->facts->n_bounded > 0;
    if (!is_sized) t.n_columns -= N_SIZED_ITEM_COLUMNS;
    if (s->repeats.n > 0) {
        size_t n = 0;
        others = tide_host_alloc((s->items->n + 1) * sizeof *others);
        if (others == NULL) w->failed = true;
        for (uint32_t i = 0; others != NULL && i < s->items->n; i++)
            if (!tide_report_is_repeated(s, i)) others[n++] = i;
        source.items = others;
        t.n_rows = n;
    }
    add_columns(j, "items", &t, w);
    if (s->repeats.n == 0) {
        tide_json_null(j, "tensors");
    } else {
        source.items = s->repeats.tensors;
        source.repeats = true;
        t = (tide_table){TIDE_COLUMNS(tensor_columns), .row = item_row, .n_rows = s->repeats.n, .data = &source,
                         .facts = s->facts};
        if (!is_sized) t.n_columns -= N_SIZED_TENSOR_COLUMNS;
        add_columns(j, "tensors", &t, w);
    }
    add_sizes(j, s, w);
    tide_host_free(others);
}

/// The bodies that each step lies in; left out where there are none.
static void add_bodies(tide_json_out *j, const tide_report_side *s, words *w) {
    const tide_memory_plan *plan = s->facts->plan;
    if (plan == NULL || plan->lifetimes.n_regions == 0) return;
    tide_json_open_flat(j, "body", '[');
    for (size_t i = 0; i < s->n_steps; i++) word(j, w, s->steps[i].body);
    tide_json_close(j, ']');
}

/// Keys items_left_out, left_out_bytes, items, tensors, steps and words of the object that is open.
static void add_items(tide_json_out *j, const tide_report_side *s) {
    words w = {0};
    tide_json_u64(j, "items_left_out", s->items->n - s->n_live);
    tide_json_u64(j, "left_out_bytes", s->live_rest_bytes);
    add_item_columns(j, s, &w);
    // names of steps, among the same words
    tide_json_open(j, "steps", '{');
    tide_json_open_flat(j, "begin", '[');
    for (size_t i = 0; i < s->n_steps; i++) tide_json_u64(j, NULL, tide_report_time(s->facts, s->steps[i].begin));
    tide_json_close(j, ']');
    tide_json_open_flat(j, "name", '[');
    for (size_t i = 0; i < s->n_steps; i++) word(j, &w, s->steps[i].name);
    tide_json_close(j, ']');
    add_bodies(j, s, &w);
    tide_json_close(j, '}');
    tide_json_open_flat(j, "words", '[');
    for (size_t i = 0; i < w.places.map.n; i++) tide_json_text(j, NULL, w.list[i]);
    tide_json_close(j, ']');
    if (w.failed) j->out->failed = true;
    tide_strmap_deinit(&w.places);
    tide_host_free(w.list);
}

// ---- executions ----

/// Beyond these the page says when executions ran, not their steps, but where their tensors hang on them.
enum { MAX_EXECUTION_STEPS = 5000 };

/// Where its steps begin, each from the one before; null: it has not all of them, or there are too many.
static void execution_steps(tide_json_out *j, const tide_subject_facts *f, const tide_execution *e, bool fit) {
    const tide_execution_step *steps = tide_execution_steps(f->executions, e);
    if (!fit || !tide_report_has_all_steps(f, e)) {
        tide_json_null(j, NULL);
        return;
    }
    uint64_t before = e->begin_ns;
    tide_json_open_flat(j, NULL, '[');
    for (size_t i = 0; i < e->n_steps; i++) {
        tide_json_u64(j, NULL, steps[i].t_ns - before);
        before = steps[i].t_ns;
    }
    tide_json_close(j, ']');
}

/// The index in the subject's steps of the one that execution `i` ran at its peak; SIZE_MAX: none.
static size_t peak_step_of(const tide_report_side *s, size_t i) {
    const tide_subject_facts *f = s->facts;
    const tide_execution *e = &f->executions->items[i];
    const size_t at = tide_execution_step_at(f->executions, e, s->sums[i].peak.event);
    if (at == SIZE_MAX) return SIZE_MAX;
    const int64_t step = tide_execution_steps(f->executions, e)[at].step;
    size_t lo = 0, hi = f->n_steps;
    TIDE_BISECT(lo, hi, f->step_number[mid] < step);
    return lo < f->n_steps && f->step_number[lo] == step ? lo : SIZE_MAX;
}

/// Whether any allocator says what it takes from the system.
static bool tells_taken(const tide_report_side *s) {
    for (size_t i = 0; i < s->pools.n; i++)
        if (!s->pools.items[i].is_planned && s->pools.items[i].tells_segments) return true;
    return false;
}

/// What each execution comes to, by the numbers of its events.
static void add_execution_sums(tide_json_out *j, const tide_report_side *s, size_t n) {
    const bool tells = tells_taken(s);
    tide_json_open_flat(j, "peak_bytes", '[');
    for (size_t i = 0; i < n; i++) tide_json_u64(j, NULL, s->sums[i].peak.live_bytes);
    tide_json_close(j, ']');
    tide_json_open_flat(j, "peak_at", '[');
    for (size_t i = 0; i < n; i++) tide_json_u64(j, NULL, tide_report_time(s->facts, (int64_t)s->sums[i].peak.t_ns));
    tide_json_close(j, ']');
    tide_json_open_flat(j, "peak_step", '[');
    for (size_t i = 0; i < n; i++) {
        const size_t step = peak_step_of(s, i);
        tide_json_u64_if(j, NULL, step != SIZE_MAX, step);
    }
    tide_json_close(j, ']');
    tide_json_open_flat(j, "allocations", '[');
    for (size_t i = 0; i < n; i++) tide_json_u64(j, NULL, s->sums[i].n_allocs);
    tide_json_close(j, ']');
    tide_json_open_flat(j, "taken_bytes", '['); // null: no allocator says
    for (size_t i = 0; i < n; i++) tide_json_u64_if(j, NULL, tells, s->sums[i].taken_bytes);
    tide_json_close(j, ']');
}

/// Of the tensors that executions repeat, where an execution has them: [region that is written, its own region] of each
/// buffer. null: in the regions that are written.
static void execution_regions(tide_json_out *j, const tide_report_side *s, uint64_t written, uint64_t own) {
    const tide_space *sp = &s->space;
    if (own == written || own == 0) {
        tide_json_null(j, NULL);
        return;
    }
    tide_json_open_flat(j, NULL, '[');
    for (size_t from = 0; from < sp->n; from++) {
        if (sp->regions[from].buffer_block != written) continue;
        for (size_t to = 0; to < sp->n; to++) {
            const tide_region *a = &sp->regions[from], *b = &sp->regions[to];
            if (b->buffer_block != own || b->kind != a->kind || strcmp(b->device, a->device) != 0) continue;
            tide_json_open_flat(j, NULL, '[');
            tide_json_u64(j, NULL, from);
            tide_json_u64(j, NULL, to);
            tide_json_close(j, ']');
        }
    }
    tide_json_close(j, ']');
}

static void add_execution_regions(tide_json_out *j, const tide_report_side *s) {
    const tide_executions *x = s->facts->executions;
    size_t first = SIZE_MAX; // the one whose tensors are written
    tide_json_open_flat(j, "regions", '[');
    for (size_t i = 0; s->repeats.n > 0 && i < x->n; i++) {
        const bool repeats = s->repeats.is_repeated[i];
        if (repeats && first == SIZE_MAX) first = i;
        const uint64_t written = repeats ? x->items[first].buffer_block : 0;
        execution_regions(j, s, written, repeats ? x->items[i].buffer_block : 0);
    }
    tide_json_close(j, ']');
}

static void add_executions(tide_json_out *j, const tide_report_side *s) {
    const tide_subject_facts *f = s->facts;
    const tide_executions *x = f->executions;
    size_t n_steps = 0;
    if (s->sums == NULL) {
        tide_json_null(j, "executions");
        return;
    }
    for (size_t i = 0; i < x->n; i++) n_steps += x->items[i].n_steps;
    tide_json_open(j, "executions", '{');
    tide_json_u64(j, "lanes", x->n_lanes);
    tide_json_open_flat(j, "lane", '[');
    for (size_t i = 0; i < x->n; i++) tide_json_u64(j, NULL, x->items[i].lane);
    tide_json_close(j, ']');
    tide_json_open_flat(j, "begin", '[');
    for (size_t i = 0; i < x->n; i++) tide_json_u64(j, NULL, tide_report_time(f, (int64_t)x->items[i].begin_ns));
    tide_json_close(j, ']');
    tide_json_open_flat(j, "end", '[');
    for (size_t i = 0; i < x->n; i++) {
        const bool left = x->items[i].last_event != UINT64_MAX;
        tide_json_u64(j, NULL, tide_report_time(f, left ? (int64_t)x->items[i].end_ns : f->end));
    }
    tide_json_close(j, ']');
    add_execution_sums(j, s, x->n);
    tide_json_open(j, "steps", '[');
    for (size_t i = 0; i < x->n; i++) {
        const bool repeats = s->repeats.n > 0 && s->repeats.is_repeated[i];
        execution_steps(j, f, &x->items[i], repeats || n_steps <= MAX_EXECUTION_STEPS);
    }
    tide_json_close(j, ']');
    tide_json_open_flat(j, "idle", '['); // when the last tensor of those that are repeated went; null: it repeats none
    for (size_t i = 0; s->repeats.n > 0 && i < x->n; i++)
        tide_json_u64_if(j, NULL, s->repeats.is_repeated[i], tide_report_time(f, (int64_t)x->items[i].idle_ns));
    tide_json_close(j, ']');
    add_execution_regions(j, s);
    tide_json_close(j, '}');
}

// ---- pools: memory that they have, and what lies behind the tensors of a run ----

static void time_if(tide_json_out *j, const char *key, const tide_report_side *s, bool known, int64_t t) {
    tide_json_u64_if(j, key, known, known ? tide_report_time(s->facts, t) : 0);
}

/// Call stacks that are known, and what is live at the peak by each.
static void add_stacks(tide_json_out *j, const tide_report_side *s) {
    tide_json_open(j, "stacks", '[');
    for (size_t i = 0; i < s->n_stacks; i++) {
        if (tide_report_is_no_stack(&s->stacks[i])) continue;
        tide_json_open_flat(j, NULL, '[');
        tide_json_text(j, NULL, s->stacks[i].key);
        tide_json_u64(j, NULL, s->stacks[i].requested_bytes);
        tide_json_close(j, ']');
    }
    tide_json_close(j, ']');
}

static void add_rooms(tide_json_out *j, const tide_report_side *s) {
    tide_json_open(j, "rooms", '[');
    for (size_t i = 0; i < s->n_rooms; i++) {
        const tide_report_room *r = &s->rooms[i];
        tide_json_open_flat(j, NULL, '{');
        tide_json_u64(j, "pool", r->pool);
        tide_json_u64(j, "base", r->base);
        tide_json_u64(j, "bytes", r->bytes);
        time_if(j, "begin", s, true, r->begin);
        time_if(j, "end", s, r->end != INT64_MAX, r->end);
        tide_json_text_or_null(j, "why", r->why);
        tide_json_close(j, '}');
    }
    tide_json_close(j, ']');
}

/// When the pool was fragmented most; null: nothing is known of its free bytes.
static void add_worst(tide_json_out *j, const tide_report_side *s, size_t pool) {
    enum { MOST_NAMES = 8 };
    const tide_report_worst *w = s->worst != NULL ? &s->worst[pool] : NULL;
    if (w == NULL || !w->is_known) {
        tide_json_null(j, "worst");
        return;
    }
    tide_json_open_flat(j, "worst", '{');
    tide_json_u64(j, "t", tide_report_time(s->facts, w->worst.at.t));
    tide_json_u64_if(j, "event", s->facts->is_trace, w->worst.at.event);
    tide_json_real(j, "share", (double)w->worst.share);
    tide_json_u64(j, "free_bytes", w->worst.free_bytes);
    tide_json_u64(j, "largest_free_bytes", w->worst.largest_free_bytes);
    tide_json_u64(j, "n_splits", w->splits.n);
    tide_json_open_flat(j, "splits", '['); // [number, name, bytes] of the largest
    for (size_t i = 0; i < w->splits.n && i < MOST_NAMES; i++) {
        tide_json_open_flat(j, NULL, '[');
        tide_json_u64(j, NULL, w->splits.items[i].id);
        tide_json_text(j, NULL, w->splits.items[i].name);
        tide_json_u64(j, NULL, w->splits.items[i].bytes);
        tide_json_close(j, ']');
    }
    tide_json_close(j, ']');
    tide_json_close(j, '}');
}

static void add_pools(tide_json_out *j, const tide_report_side *s) {
    tide_json_open(j, "pools", '[');
    for (size_t i = 0; i < s->pools.n; i++) {
        const tide_pool *p = &s->pools.items[i];
        tide_json_open_flat(j, NULL, '{');
        tide_json_text(j, "name", p->name);
        tide_json_text(j, "device", p->device);
        tide_json_text(j, "kind", tide_memory_kind_name(p->kind));
        tide_json_bool(j, "tells_segments", p->tells_segments);
        tide_json_bool(j, "planned", p->is_planned);
        tide_json_u64(j, "context", p->context);
        tide_json_u64_if(j, "wasted_bytes", p->is_planned, p->wasted_bytes);
        add_worst(j, s, i);
        tide_json_close(j, '}');
    }
    tide_json_close(j, ']');
    add_rooms(j, s);
    add_stacks(j, s);
    tide_json_open(j, "buffers", '[');
    for (size_t i = 0; i < s->n_buffers; i++) {
        const tide_report_buffer *b = &s->buffers[i];
        tide_json_open_flat(j, NULL, '{');
        tide_json_text(j, "name", b->name);
        tide_json_text(j, "kind", tide_memory_kind_name(b->kind));
        tide_json_u64(j, "place", b->place);
        tide_json_u64(j, "size_bytes", b->size_bytes);
        tide_json_u64(j, "reserved_bytes", b->reserved_bytes);
        time_if(j, "begin", s, true, b->begin);
        time_if(j, "end", s, true, b->end);
        tide_json_bool(j, "open", b->open);
        tide_json_close(j, '}');
    }
    tide_json_close(j, ']');
}

/// Names of inputs and outputs beside a trace, whose blocks are no tensors of the plan: [[inputs], [outputs]].
static void add_roles(tide_json_out *j, const tide_report_side *s) {
    static const tide_role roles[] = {TIDE_ROLE_INPUT, TIDE_ROLE_OUTPUT};
    const tide_lifetimes *lt = s->facts->is_trace && s->facts->plan != NULL ? &s->facts->plan->lifetimes : NULL;
    tide_json_open_flat(j, "ends", '[');
    for (size_t k = 0; k < sizeof roles / sizeof roles[0]; k++) {
        tide_json_open_flat(j, NULL, '[');
        for (size_t i = 0; lt != NULL && i < lt->n; i++)
            if (lt->items[i].role == roles[k]) tide_json_text(j, NULL, lt->items[i].name);
        tide_json_close(j, ']');
    }
    tide_json_close(j, ']');
}

/// The page folds weights where they hold more than half of the peak.
static void add_page(tide_json_out *j, const tide_report_side *s) {
    add_roles(j, s);
    tide_json_bool(j, "folds_weights", s->weights.folded);
    add_executions(j, s);
    add_pools(j, s);
}

// ---- facts ----

static void peak_part(tide_json_out *j, const tide_report_side *s) {
    const tide_subject_facts *f = s->facts;
    tide_json_open_flat(j, "peak", '{');
    tide_json_u64(j, "bytes", f->peak_bytes);
    tide_json_u64(j, "t", tide_report_time(f, f->peak.t));
    tide_json_u64_if(j, "event", f->is_trace, f->peak.event);
    tide_json_text_or_null(j, "step", tide_subject_step_name_at(f, f->peak.t));
    tide_json_u64(j, "held_bytes", s->why.held_bytes);
    tide_json_u64(j, "explained_t", tide_report_time(f, s->why.at.t));
    tide_json_close(j, '}');
}

/// The peak of what was taken from the system; null where the trace does not know it.
static void reserved_part(tide_json_out *j, const tide_report_side *s) {
    if (!s->knows_reserved) {
        tide_json_null(j, "reserved");
        return;
    }
    tide_json_open_flat(j, "reserved", '{');
    tide_json_u64(j, "bytes", s->reserved_bytes);
    tide_json_u64(j, "t", tide_report_time(s->facts, s->reserved_at.t));
    tide_json_close(j, '}');
}

static void plan_part(tide_json_out *j, const tide_subject_facts *f) {
    double share;
    if (!f->has_plan) {
        tide_json_null(j, "plan");
        return;
    }
    tide_json_open_flat(j, "plan", '{');
    tide_json_u64(j, "bytes", f->plan_bytes);
    tide_json_u64(j, "naive_bytes", f->naive_bytes);
    tide_json_u64(j, "lower_bound_bytes", f->lower_bound_bytes);
    tide_json_u64(j, "proved_bytes", f->proved_bytes);
    tide_json_bool(j, "proven", f->proven);
    if (tide_report_gap(f, &share))
        tide_json_real(j, "gap", share);
    else
        tide_json_null(j, "gap");
    if (tide_report_saving(f, &share))
        tide_json_real(j, "saving", share);
    else
        tide_json_null(j, "saving");
    tide_json_close(j, '}');
}

static void levels_part(tide_json_out *j, const tide_subject_facts *f) {
    if (!f->levels.known) {
        tide_json_null(j, "levels");
        return;
    }
    tide_json_open_flat(j, "levels", '{');
    tide_json_u64(j, "below_bytes", f->levels.below);
    tide_json_u64(j, "plan_bytes", f->levels.plan);
    tide_json_u64(j, "bound_bytes", f->levels.bound);
    tide_json_text(j, "below", f->levels.words);
    tide_json_u64(j, "contexts", f->levels.n_contexts);
    tide_json_close(j, '}');
}

static void fit_part(tide_json_out *j, const tide_report *r, const tide_report_side *s) {
    if (r->opt.capacity_bytes == 0) {
        tide_json_null(j, "fit");
        return;
    }
    tide_json_open_flat(j, "fit", '{');
    tide_json_u64(j, "capacity_bytes", r->opt.capacity_bytes);
    tide_json_u64(j, "needs_bytes", s->needs_bytes);
    if (s->needs_bytes <= r->opt.capacity_bytes && s->facts->n_dynamic > 0)
        tide_json_null(j, "fits");
    else
        tide_json_bool(j, "fits", s->needs_bytes <= r->opt.capacity_bytes);
    tide_json_u64(j, "left_bytes", tide_report_left_for_tensors(r, s));
    tide_json_close(j, '}');
}

static void facts_part(tide_json_out *j, const tide_report *r, const tide_report_side *s) {
    const tide_subject_facts *f = s->facts;
    tide_json_text(j, "title", tide_report_title(s));
    tide_json_text_or_null(j, "source", tide_report_source(f));
    tide_json_text_or_null(j, "model", f->model);
    tide_json_text_or_null(j, "mode", f->mode);
    tide_json_text_or_null(j, "strategy", f->strategy);
    tide_json_text(j, "axis", f->axis == TIDE_AXIS_STEPS ? "steps" : "ns");
    tide_json_i64(j, "origin", f->origin);
    tide_json_i64(j, "begin", f->begin);
    tide_json_i64(j, "end", f->end);
    tide_json_u64_if(j, "run", f->is_trace, (uint64_t)f->run_id);
    tide_json_u64(j, "n_items", s->items->n);
    peak_part(j, s);
    reserved_part(j, s);
    plan_part(j, f);
    levels_part(j, f);
    fit_part(j, r, s);
    if (s->knows_process) tide_process_need_json(j, &s->process);
    tide_json_bytes(j, "needs_bytes", s->needs_bytes);
    tide_json_u64_if(j, "lost_events", f->is_trace, f->n_lost);
    tide_json_text_or_null(j, "trouble", f->trouble);
}

// ---- curve and regions ----

/// Columns of equal width; only those that differ from the one before: `at` says which.
static void columns(tide_json_out *j, const char *key, const uint64_t *min, const uint64_t *max, size_t n) {
    const uint64_t *const arrays[] = {min, max};
    static const char *const keys[] = {"min", "max"};
#define CHANGES(i) ((i) == 0 || max[i] != max[(i)-1] || (min != NULL && min[i] != min[(i)-1]))
    tide_json_open(j, key, '{');
    tide_json_u64(j, "columns", n);
    tide_json_open_flat(j, "at", '[');
    for (size_t i = 0; i < n; i++)
        if (CHANGES(i)) tide_json_u64(j, NULL, i);
    tide_json_close(j, ']');
    for (int k = 0; k < 2; k++) {
        if (arrays[k] == NULL) continue;
        tide_json_open_flat(j, keys[k], '[');
        for (size_t i = 0; i < n; i++)
            if (CHANGES(i)) tide_json_u64(j, NULL, arrays[k][i]);
        tide_json_close(j, ']');
    }
    tide_json_close(j, '}');
#undef CHANGES
}

/// Of steps only those at which it changes.
static void points(tide_json_out *j, const char *key, const uint64_t *values, size_t n) {
    tide_json_open(j, key, '{');
    tide_json_open_flat(j, "t", '[');
    for (size_t i = 0; i < n; i++)
        if (i == 0 || values[i] != values[i - 1]) tide_json_u64(j, NULL, i);
    tide_json_close(j, ']');
    tide_json_open_flat(j, "bytes", '[');
    for (size_t i = 0; i < n; i++)
        if (i == 0 || values[i] != values[i - 1]) tide_json_u64(j, NULL, values[i]);
    tide_json_close(j, ']');
    tide_json_close(j, '}');
}

static void curve_part(tide_json_out *j, const tide_report_side *s) {
    if (s->steps_are_columns) {
        points(j, "curve", s->max, s->n_columns);
    } else {
        columns(j, "curve", s->min, s->max, s->n_columns);
    }
    if (s->predicted == NULL)
        tide_json_null(j, "predicted");
    else
        columns(j, "predicted", NULL, s->predicted, s->n_columns);
    if (s->reserved == NULL)
        tide_json_null(j, "reserved_curve");
    else
        columns(j, "reserved_curve", NULL, s->reserved, s->n_columns);
}

/// The pools of a colouring plan: number, offset and bytes of each.
static void region_pools(tide_json_out *j, const tide_region *g) {
    tide_json_open_flat(j, "pools", '[');
    for (size_t i = 0; i < g->n_pools; i++) {
        tide_json_open_flat(j, NULL, '[');
        tide_json_u64(j, NULL, g->pools[i].number);
        tide_json_u64(j, NULL, g->pools[i].offset_bytes);
        tide_json_u64(j, NULL, g->pools[i].bytes);
        tide_json_close(j, ']');
    }
    tide_json_close(j, ']');
}

static void regions_part(tide_json_out *j, const tide_report_side *s) {
    tide_json_open(j, "regions", '[');
    for (size_t i = 0; i < s->space.n; i++) {
        const tide_region *g = &s->space.regions[i];
        tide_json_open_flat(j, NULL, '{');
        tide_json_text(j, "label", g->label);
        tide_json_text(j, "kind", tide_memory_kind_name(g->kind));
        tide_json_text(j, "device", g->device);
        tide_json_u64(j, "base", g->base);
        tide_json_u64(j, "bytes", g->bytes);
        tide_json_u64_if(j, "bound_bytes", g->bound_bytes > 0, g->bound_bytes);
        tide_json_bool(j, "guessed", g->is_guessed);
        region_pools(j, g);
        tide_json_close(j, '}');
    }
    tide_json_close(j, ']');
}

// ---- tables ----

/// Those of one input ("a", "b"), or of both ("").
static void tables(tide_json_out *j, const tide_report *r, const char *of) {
    tide_report_table all[TIDE_REPORT_MAX_TABLES];
    const size_t n = tide_report_tables(r, all);
    for (size_t i = 0; i < n; i++)
        if (strcmp(all[i].of, of) == 0) tide_table_json(&all[i].table, true, j);
}

// ---- documents ----

static void side(tide_json_out *j, const tide_report *r, const tide_report_side *s, const char *of, bool columns) {
    tide_json_open(j, NULL, '{');
    facts_part(j, r, s);
    curve_part(j, s);
    regions_part(j, s);
    if (columns) {
        add_page(j, s);
        add_items(j, s);
    } else {
        tables(j, r, of);
    }
    tide_json_close(j, '}');
}

static void comparison(tide_json_out *j, const tide_report *r, bool with_tables) {
    const tide_diff *d = &r->diff;
    if (!r->has_b) {
        tide_json_null(j, "comparison");
        return;
    }
    tide_json_open(j, "comparison", '{');
    tide_json_u64(j, "a_held_bytes", d->a_bytes);
    tide_json_u64(j, "b_held_bytes", d->b_bytes);
    tide_json_i64(j, "change_bytes", (int64_t)(d->b_bytes - d->a_bytes));
    tide_diff_json(d, j);
    if (with_tables) tables(j, r, "");
    tide_json_close(j, '}');
}

static void document(tide_json_out *j, const tide_report *r, const char *schema, bool columns) {
    tide_json_open(j, NULL, '{');
    tide_json_text(j, "schema", schema);
    tide_json_i64(j, "version", 2);
    tide_json_open(j, "sides", '[');
    side(j, r, &r->a, "a", columns);
    if (r->has_b) side(j, r, &r->b, "b", columns);
    tide_json_close(j, ']');
    comparison(j, r, !columns);
    tide_json_close(j, '}');
}

void tide_report_json(const tide_report *r, tide_text *out) {
    tide_json_out j = {.out = out, .indent = true};
    document(&j, r, "tidemark.report", false);
    tide_text_add(out, "\n");
}

void tide_report_json_data(const tide_report *r, tide_text *out) {
    tide_json_out j = {.out = out};
    document(&j, r, "tidemark.report.data", true);
}
