// SPDX-License-Identifier: MIT
//
// Items in columns: what the page carries. Each word once; see json_items.h.
#include "reports/json_items.h"

#include "core/base/host_alloc.h"
#include "core/base/map.h"

typedef struct words {
    tide_strmap places;
    const char **list; // [places.n], borrowed
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

void tide_report_json_items(tide_json_out *j, const tide_report_side *s) {
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
