// SPDX-License-Identifier: MIT
//
// JSON: "tidemark.report": facts, curve, pictures' regions and every table of each input, keys in a fixed order, sizes
// as integers of bytes, null for what is not known (docs/schemas/report.json). The page carries the same with its items
// in columns, words once.
#include <string.h>

#include "analysis/answer_tables.h"
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

typedef enum item_column {
    ID,
    NAME,
    OWNER,
    KIND,
    ROLE,
    SIZE,
    TAKES,
    BEGIN,
    END,
    OPEN,
    FILL,
    PLACE,
    REGION,
    LIES_IN
} item_column;

static void region_of(tide_json_out *j, const tide_report_side *s, uint32_t i) {
    uint64_t lo, hi;
    const size_t k =
        tide_space_of_item(&s->space, s->items, i, &lo, &hi) ? tide_space_region_at(&s->space, lo) : SIZE_MAX;
    if (k == SIZE_MAX)
        tide_json_null(j, NULL);
    else
        tide_json_u64(j, NULL, k);
}

/// Where an item stands in the columns; SIZE_MAX: it is too small to be there.
static size_t live_index(const tide_report_side *s, uint32_t item) {
    if (s->live == NULL) return item;
    size_t lo = 0, hi = s->n_live;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (s->live[mid] < item)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < s->n_live && s->live[lo] == item ? lo : SIZE_MAX;
}

static void lies_in(tide_json_out *j, const tide_report_side *s, uint32_t i, words *w) {
    tide_item_facts facts;
    if (tide_items_shape(s->items, i)->alias == TIDE_ALIAS_NONE) {
        tide_json_null(j, NULL);
    } else if (tide_subject_item(s->subject, i, &facts, NULL) != TIDE_OK) {
        w->failed = true;
    } else if (facts.alias_of == TIDE_NO_ITEM) {
        tide_json_null(j, NULL);
    } else {
        const size_t at = live_index(s, facts.alias_of);
        if (at == SIZE_MAX)
            tide_json_null(j, NULL);
        else
            tide_json_u64(j, NULL, at);
    }
}

static void item_value(tide_json_out *j, const tide_report_side *s, item_column column, uint32_t i, words *w) {
    const tide_items *it = s->items;
    const tide_item_shape *shape = tide_items_shape(it, i);
    switch (column) {
    case ID:
        tide_json_u64(j, NULL, tide_items_id(it, i));
        break;
    case NAME:
        word(j, w, tide_items_site(it, i)->name);
        break;
    case OWNER:
        word(j, w, tide_items_site(it, i)->owner);
        break;
    case KIND:
        word(j, w, tide_memory_kind_name(shape->kind));
        break;
    case ROLE:
        word(j, w, shape->is_planned ? tide_role_name(shape->role) : NULL);
        break;
    case SIZE:
        tide_json_u64(j, NULL, shape->size_bytes);
        break;
    case TAKES:
        tide_json_u64(j, NULL, shape->reserved_bytes);
        break;
    case BEGIN:
        tide_json_u64(j, NULL, tide_report_time(s->facts, tide_items_begin(it, i)));
        break;
    case END:
        tide_json_u64(j, NULL, tide_report_time(s->facts, tide_items_end(it, i)));
        break;
    case OPEN:
        tide_json_u64(j, NULL, tide_items_is_open_ended(it, i));
        break;
    case FILL:
        tide_json_u64(j, NULL, shape->fill);
        break;
    case PLACE:
        if (it->place != NULL && it->place[i] != TIDE_NO_OFFSET)
            tide_json_u64(j, NULL, it->place[i]);
        else
            tide_json_null(j, NULL);
        break;
    case REGION:
        region_of(j, s, i);
        break;
    case LIES_IN:
        lies_in(j, s, i, w);
        break;
    }
}

/// Keys items_left_out, left_out_bytes, items, steps and words of the object that is open.
static void add_items(tide_json_out *j, const tide_report_side *s) {
    static const char *const keys[] = {"id",    "name", "owner", "kind", "role",  "size_bytes", "reserved_bytes",
                                       "begin", "end",  "open",  "fill", "place", "region",     "lies_in"};
    words w = {0};
    tide_json_u64(j, "items_left_out", s->items->n - s->n_live);
    tide_json_u64(j, "left_out_bytes", s->live_rest_bytes);
    tide_json_open(j, "items", '{');
    for (size_t c = 0; c < sizeof keys / sizeof keys[0]; c++) {
        tide_json_open_flat(j, keys[c], '[');
        for (size_t k = 0; k < s->n_live && !j->out->failed; k++)
            item_value(j, s, (item_column)c, s->live != NULL ? s->live[k] : (uint32_t)k, &w);
        tide_json_close(j, ']');
    }
    tide_json_close(j, '}');
    // names of steps, among the same words
    tide_json_open(j, "steps", '{');
    tide_json_open_flat(j, "begin", '[');
    for (size_t i = 0; i < s->n_steps; i++) tide_json_u64(j, NULL, tide_report_time(s->facts, s->steps[i].begin));
    tide_json_close(j, ']');
    tide_json_open_flat(j, "name", '[');
    for (size_t i = 0; i < s->n_steps; i++) word(j, &w, s->steps[i].name);
    tide_json_close(j, ']');
    tide_json_close(j, '}');
    tide_json_open_flat(j, "words", '[');
    for (size_t i = 0; i < w.places.map.n; i++) tide_json_text(j, NULL, w.list[i]);
    tide_json_close(j, ']');
    if (w.failed) j->out->failed = true;
    tide_strmap_deinit(&w.places);
    tide_host_free(w.list);
}

// ---- facts ----

static void peak_part(tide_json_out *j, const tide_report_side *s) {
    const tide_subject_facts *f = s->facts;
    tide_json_open_flat(j, "peak", '{');
    tide_json_u64(j, "bytes", f->peak_bytes);
    tide_json_u64(j, "t", tide_report_time(f, f->peak.t));
    if (f->is_trace)
        tide_json_u64(j, "event", f->peak.event);
    else
        tide_json_null(j, "event");
    tide_json_text_or_null(j, "step", tide_report_step_at(f, f->peak.t));
    tide_json_u64(j, "held_bytes", s->why.held_bytes);
    tide_json_u64(j, "explained_t", tide_report_time(f, s->why.at.t));
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
    tide_json_bool(j, "fits", s->needs_bytes <= r->opt.capacity_bytes);
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
    if (f->is_trace)
        tide_json_i64(j, "run", f->run_id);
    else
        tide_json_null(j, "run");
    tide_json_u64(j, "n_items", s->items->n);
    peak_part(j, s);
    plan_part(j, f);
    levels_part(j, f);
    fit_part(j, r, s);
    tide_json_bytes(j, "needs_bytes", s->needs_bytes);
    if (f->is_trace)
        tide_json_u64(j, "lost_events", f->n_lost);
    else
        tide_json_null(j, "lost_events");
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
        if (g->bound_bytes > 0)
            tide_json_u64(j, "bound_bytes", g->bound_bytes);
        else
            tide_json_null(j, "bound_bytes");
        tide_json_bool(j, "guessed", g->is_guessed);
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
    if (columns)
        add_items(j, s);
    else
        tables(j, r, of);
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
