// SPDX-License-Identifier: MIT
//
// Making, refreshing and freeing a subject, and its table of items. See subject.h.
#include "analysis/subject.h"

#include <string.h>

#include "analysis/subject_internal.h"
#include "core/base/host_alloc.h"
#include "core/base/text.h"

// ---- life ----

static void forget_live(tide_subject *s) {
    if (s->has_live) tide__plan_live_deinit(&s->live);
    s->has_live = false;
}

void tide_subject_destroy(tide_subject *s) {
    if (s == NULL) return;
    tide__subject_forget_curves(s);
    forget_live(s);
    tide_items_let_go(s->items);
    tide__run_plan_deinit(&s->run);
    tide_trace_close(s->trace);
    tide_memory_plan_destroy(s->plan);
    tide_host_free(s->kinds);
    tide_host_free(s->step_names);
    tide_host_free(s->step_begin);
    tide_host_free(s->devices);
    tide_host_free(s->path);
    tide_host_free(s->title);
    tide_host_free(s);
}

static tide_status create(const char *path, tide_subject **out, tide_error *err) {
    tide_subject *s = tide_host_calloc(1, sizeof *s);
    if (s != NULL && path != NULL) s->path = tide_host_strdup(path);
    if (s == NULL || (path != NULL && s->path == NULL)) {
        tide_host_free(s);
        return TIDE_NO_MEMORY(err, "for a subject");
    }
    *out = s;
    return TIDE_OK;
}

tide_status tide_subject_of_plan(tide_memory_plan *plan, const char *path, tide_subject **out, tide_error *err) {
    tide_subject *s = NULL;
    tide_status st = create(path, &s, err);
    if (st != TIDE_OK) {
        tide_memory_plan_destroy(plan);
        return st;
    }
    s->plan = plan;
    st = tide__subject_plan_facts(s, err);
    if (st != TIDE_OK) {
        tide_subject_destroy(s);
        return st;
    }
    *out = s;
    return TIDE_OK;
}

tide_status tide_subject_of_trace(const char *path, int64_t run_id, tide_subject **out, tide_error *err) {
    tide_subject *s = NULL;
    TIDE_TRY(create(path, &s, err));
    tide_status st = tide_trace_open(path, &s->trace, err);
    if (st == TIDE_OK && run_id < 0) st = tide_trace_shown_run(s->trace, &run_id, err);
    if (st == TIDE_OK) st = tide__subject_trace_facts(s, run_id, err);
    if (st != TIDE_OK) {
        tide_subject_destroy(s);
        return st;
    }
    *out = s;
    return TIDE_OK;
}

tide_status tide_subject_again(const tide_subject *s, tide_subject **out, tide_error *err) {
    if (s->facts.is_trace) return tide_subject_of_trace(s->path, s->facts.run_id, out, err);
    tide_memory_plan *copy;
    TIDE_TRY(tide_memory_plan_copy(s->plan, &copy, err));
    return tide_subject_of_plan(copy, s->path, out, err);
}

char *tide_subject_format_since(const tide_subject_facts *f, int64_t t, const char *us, char *buf, size_t buf_bytes) {
    return tide_format_moment_ns(tide_subject_since(f, t), (uint64_t)f->end - (uint64_t)f->begin, us, buf, buf_bytes);
}

const tide_subject_facts *tide_subject_get_facts(const tide_subject *s) { return &s->facts; }

tide_trace *tide_subject_trace(tide_subject *s) { return s->trace; }

const tide_memory_plan *tide__subject_plan(const tide_subject *s) { return s->trace == NULL ? s->plan : s->run.plan; }

tide_status tide_subject_refresh(tide_subject *s, bool *grew, tide_error *err) {
    bool has_grown = false;
    if (s->trace != NULL) TIDE_TRY(tide_trace_refresh(s->trace, &has_grown, err));
    if (grew != NULL) *grew = has_grown;
    if (!has_grown) return TIDE_OK;
    s->is_stale = true;
    tide__subject_forget_curves(s);
    forget_live(s);
    return tide__subject_trace_facts(s, s->facts.run_id, err);
}

// ---- items ----

tide_status tide_subject_load(tide_subject *s, const tide_progress *progress, tide_error *err) {
    if (s->items != NULL && !s->is_stale) return TIDE_OK;
    tide_items items;
    TIDE_TRY(s->trace == NULL ? tide_items_of_plan(s->plan, &items, err)
                              : tide_items_of_trace(s->trace, s->facts.run_id, progress, &items, err));
    return tide__subject_put_items(s, &items, err);
}

/// The address of a block whose place was not kept; not known of one whose number was given twice.
static tide_status look_up_place(tide_subject *s, tide_item_facts *out, tide_error *err) {
    tide_trace_block_row row;
    const tide_status st = tide_trace_find_block(s->trace, out->id, &row, err);
    if (st == TIDE_ERR_NOT_FOUND) {
        if (err != NULL) tide_error_clear(err);
        return TIDE_OK;
    }
    TIDE_TRY(st);
    if (tide__cut(s->facts.begin, s->facts.end, row.alloc_ns) == out->begin) out->place = row.address;
    return TIDE_OK;
}

tide_status tide_subject_item(tide_subject *s, uint32_t item, tide_item_facts *out, tide_error *err) {
    const tide_items *it = tide_subject_items(s);
    if (it == NULL || item >= it->n) return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "there is no item %u", item);
    *out = (tide_item_facts){.item = item,
                             .id = tide_items_id(it, item),
                             .site = *tide_items_site(it, item),
                             .shape = *tide_items_shape(it, item),
                             .begin = tide_items_begin(it, item),
                             .end = tide_items_end(it, item),
                             .open_ended = tide_items_is_open_ended(it, item),
                             .place = it->place != NULL ? it->place[item] : TIDE_NO_OFFSET,
                             .pool = TIDE_NO_POOL,
                             .alias_of = TIDE_NO_ITEM};
    const tide_memory_plan *plan = tide__subject_plan(s);
    if (out->shape.is_planned && plan != NULL && out->id < plan->lifetimes.n) {
        const tide_lifetime *l = &plan->lifetimes.items[out->id];
        out->pool = plan->pools[out->id];
        out->place = plan->offsets[out->id];
        if (l->alias != TIDE_ALIAS_NONE) out->alias_of = tide_items_find_tensor(it, l->alias_of);
        return TIDE_OK;
    }
    return it->place == NULL && s->trace != NULL ? look_up_place(s, out, err) : TIDE_OK;
}
