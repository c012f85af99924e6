// SPDX-License-Identifier: MIT
//
// The selected item: what it is, its neighbours in address, the items that have its place before and after it, which
// operators read it, why it is alive. See scene_parts.h.
#include <stdio.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "tui/scene/scene_parts.h"

/// Items that are searched, in either direction, for the one that has the same place.
enum { MAX_LOOKED_AT = 200000 };

static const tide_item_shape *shape_of(const tide_items *items, uint32_t i) { return tide_items_shape(items, i); }

static uint64_t place_end(const tide_items *items, uint32_t i) {
    return items->place[i] + shape_of(items, i)->reserved_bytes;
}

/// Both in one buffer or address space, with a byte in common.
static bool share_places(const tide_items *items, uint32_t i, uint32_t k) {
    const tide_item_shape *a = shape_of(items, i), *b = shape_of(items, k);
    if (a->is_planned != b->is_planned || strcmp(a->device, b->device) != 0) return false;
    if (a->is_planned && a->kind != b->kind) return false;
    if (items->place[k] == TIDE_NO_OFFSET || b->alias != TIDE_ALIAS_NONE) return false;
    return items->place[i] < place_end(items, k) && items->place[k] < place_end(items, i);
}

static uint32_t place_before(const tide_items *items, uint32_t item) {
    const uint32_t stop = item > MAX_LOOKED_AT ? item - MAX_LOOKED_AT : 0;
    for (uint32_t i = item; i-- > stop;) {
        if (tide_items_end(items, i) <= tide_items_begin(items, item) && share_places(items, item, i)) return i;
    }
    return TIDE_NO_ITEM;
}

static uint32_t place_after(const tide_items *items, uint32_t item) {
    const uint64_t last = (uint64_t)item + 1 + MAX_LOOKED_AT;
    const uint32_t stop = last < items->n ? (uint32_t)last : (uint32_t)items->n;
    for (uint32_t i = item + 1; i < stop; i++) {
        if (tide_items_begin(items, i) >= tide_items_end(items, item) && share_places(items, item, i)) return i;
    }
    return TIDE_NO_ITEM;
}

static void neighbours(tide__frame *f, const tide_items *items, uint32_t item) {
    tide_tui_scene *out = f->out;
    out->beside_unknown = true;
    if (items->place == NULL || items->place[item] == TIDE_NO_OFFSET) return;
    if (!f->cache->places_there && shape_of(items, item)->reserved_bytes > 0) {
        f->cache->before = place_before(items, item);
        f->cache->after = f->out->selection.open_ended ? TIDE_NO_ITEM : place_after(items, item);
        f->cache->places_there = true;
    }
    out->before = f->cache->before;
    out->after = f->cache->after;
    if (out->space == NULL || out->map_is_moment) return;
    int64_t t = f->st->cursor;
    if (!tide_items_alive_at(items, item, t)) t = tide_items_begin(items, item);
    if (tide_space_neighbours(out->space, items, item, t, &out->below, &out->gap_below, &out->above, &out->gap_above,
                              NULL) == TIDE_OK) {
        out->beside_unknown = false;
    } else {
        out->below = out->above = TIDE_NO_ITEM;
        out->gap_below = out->gap_above = 0;
    }
}

// ---- readers ----

/// Adds a name to a short list, if it is not in it.
static void add_name(char *list, size_t room, const char *name) {
    const size_t used = strlen(list), n = strlen(name);
    if (n == 0 || used + n + 3 > room) return;
    for (const char *p = list; (p = strstr(p, name)) != NULL; p++) {
        const bool starts = p == list || p[-1] == ' ', ends = p[n] == '\0' || p[n] == ',';
        if (starts && ends) return;
    }
    snprintf(list + used, room - used, "%s%s", used > 0 ? ", " : "", name);
}

static const char *step_name(const tide_subject_facts *facts, int64_t step) {
    return step >= 0 && (size_t)step < facts->n_steps ? facts->step_names[step] : "";
}

/// A plan knows the steps that make what lies inside a tensor, and the last step that reads it; not the readers
/// between.
static void readers(tide__frame *f, uint32_t table_index) {
    const tide_memory_plan *plan = f->out->a->plan;
    tide_tui_scene *out = f->out;
    if (plan == NULL || table_index >= plan->lifetimes.n) return;
    const tide_lifetimes *lt = &plan->lifetimes;
    const tide_lifetime *l = &lt->items[table_index];
    if (l->persistent) return;
    for (size_t i = 0; i < lt->n; i++) {
        const tide_lifetime *other = &lt->items[i];
        if (other->alias == TIDE_ALIAS_NONE || other->alias_of != table_index) continue;
        if (other->begin_step < (int64_t)lt->n_step_names && other->begin_step > l->begin_step)
            add_name(out->consumers, sizeof out->consumers, lt->step_names[other->begin_step]);
    }
    const int64_t last = l->end_step - 1;
    if (last > l->begin_step && last < (int64_t)lt->n_step_names)
        add_name(out->consumers, sizeof out->consumers, lt->step_names[last]);
}

/// A tensor of the plan in a run is made by the step that its lifetime begins at.
static void find_body(tide__frame *f, uint64_t table_index) {
    const tide_memory_plan *plan = f->out->a->plan;
    if (plan == NULL || table_index >= plan->lifetimes.n || plan->lifetimes.items[table_index].persistent) return;
    tide_lifetimes_body_of(&plan->lifetimes, plan->lifetimes.items[table_index].begin_step, f->out->made_in,
                           sizeof f->out->made_in);
}

// ---- why ----

static void why_of_plan(tide__frame *f, const tide_item_facts *s) {
    char *why = f->out->why;
    const size_t room = sizeof f->out->why;
    const tide_subject_facts *a = f->out->a;
    const int64_t t = f->st->cursor, last = s->end - 1;
    if (s->shape.persistent) {
        snprintf(why, room, "%s: there for the whole run", tide_role_name(s->shape.role));
    } else if (t < s->begin) {
        snprintf(why, room, "not made yet: step %lld %s makes it", (long long)s->begin, step_name(a, s->begin));
    } else if (t >= s->end) {
        snprintf(why, room, "dead: step %lld %s read it last", (long long)last, step_name(a, last));
    } else if (last == s->begin) {
        snprintf(why, room, "alive in this step alone: not read later");
    } else if (t == last) {
        snprintf(why, room, "alive: this step reads it last");
    } else {
        snprintf(why, room, "alive: step %lld %s still reads it", (long long)last, step_name(a, last));
    }
}

static void why_of_trace(tide__frame *f, const tide_item_facts *s) {
    char *why = f->out->why;
    const size_t room = sizeof f->out->why;
    const tide_subject_facts *a = f->out->a;
    const int64_t t = f->st->cursor;
    char at[32];
    if (t < s->begin) {
        snprintf(why, room, "not there yet: made at %s", tide_tui_format_time(a, s->begin, at, sizeof at));
    } else if (s->open_ended) {
        snprintf(why, room, a->is_recording ? "alive: not freed so far" : "alive: never freed in this trace");
    } else {
        const bool is_gone = t >= s->end && s->end > s->begin;
        snprintf(why, room, "%s: %s at %s", is_gone ? "gone" : "alive",
                 s->is_left ? "never freed, its process ended" : "freed",
                 tide_tui_format_time(a, s->end, at, sizeof at));
    }
}

tide_status tide__scene_selection(tide__frame *f) {
    tide_tui_query_cache *cache = f->cache;
    const tide_items *items = tide_subject_items(f->st->a);
    const uint32_t item = f->st->item;
    if (items == NULL || item == TIDE_NO_ITEM || item >= items->n) return TIDE_OK;
    const uint64_t key = tide__key(tide__key(tide__key(0, cache->a_serial), cache->items_serial), item);
    if (!cache->selection_there || cache->selection_key != key) {
        tide_error why = TIDE_ERROR_INIT;
        cache->selection_there = false;
        const tide_status st = tide_subject_item(f->st->a, item, &cache->selection, &why);
        TIDE_TRY(tide__pass_no_memory(st, &why, f->err));
        if (st != TIDE_OK) {
            char text[256];
            tide__error_text(text, sizeof text, &why);
            tide__set_pane_error(f, TIDE_TUI_PANE_DETAILS, text);
            return TIDE_OK;
        }
        cache->selection_there = true;
        cache->places_there = false;
        cache->before = cache->after = TIDE_NO_ITEM;
        cache->selection_key = key;
    }
    f->out->selection = cache->selection;
    f->out->has_selection = true;
    if (!tide__is_shown(f, TIDE_TUI_PANE_DETAILS)) return TIDE_OK;
    neighbours(f, items, item);
    if (cache->selection.shape.is_planned) readers(f, (uint32_t)tide_planned_tensor(cache->selection.id));
    if (cache->selection.shape.is_planned) find_body(f, tide_planned_tensor(cache->selection.id));
    if (f->out->a->is_trace)
        why_of_trace(f, &cache->selection);
    else
        why_of_plan(f, &cache->selection);
    return TIDE_OK;
}
