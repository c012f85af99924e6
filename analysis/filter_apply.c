// SPDX-License-Identifier: MIT
//
// Applying filters. What is asked of names is answered once per site, what is asked of sizes and kinds once per shape;
// an item looks both up and is asked for its times only:
//
//     site      1 1 0 1 ...     passes all conditions on names
//     shape     1 0 1 ...       passes all conditions on size, kind, device, ...
//     item      site[i] & shape[i] & times
#include <inttypes.h>
#include <string.h>

#include "analysis/filter_internal.h"
#include "analysis/items_order.h"
#include "analysis/subject_internal.h"
#include "core/base/host_alloc.h"

enum { REPORT_ITEMS = 1 << 20 };

typedef struct pass {
    tide_subject *s;
    const tide_items *items;
    const tide__condition **on_items; // [n_on_items] conditions on times
    size_t n_on_items, n_conditions;
    uint8_t *site, *shape; // 1: passes
    uint8_t *at_peak;      // bits of what is alive at the peak; NULL: no filter needs it
    int64_t begin, cursor;
    uint64_t top; // UINT64_MAX: all
} pass;

static bool compare(uint64_t a, tide__filter_op op, uint64_t b) {
    switch (op) {
    case TIDE__OP_EQ:
        return a == b;
    case TIDE__OP_NE:
        return a != b;
    case TIDE__OP_LT:
        return a < b;
    case TIDE__OP_LE:
        return a <= b;
    case TIDE__OP_GT:
        return a > b;
    default:
        return a >= b;
    }
}

static bool is_one_of(const char *text, const char *names) {
    for (; *names != '\0'; names += strlen(names) + 1)
        if (strcmp(text, names) == 0) return true;
    return false;
}

// ---- conditions ----

static bool on_site(const tide__condition *c) { return c->of <= TIDE__FILTER_OWNER; }
static bool on_item(const tide__condition *c) {
    return c->of == TIDE__FILTER_LIFE || c->of == TIDE__FILTER_BEGIN || c->of == TIDE__FILTER_END ||
           c->of == TIDE__FILTER_ALIVE || c->of == TIDE__FILTER_LEAKED || c->of == TIDE__FILTER_EXEC;
}

static bool site_holds(const tide__condition *c, const tide_item_site *site, const char *folded) {
    if (c->of == TIDE__FILTER_WORD) return strstr(folded, c->text) != NULL;
    return tide__pattern_matches(&c->pattern, site, folded, c->of == TIDE__FILTER_NAME, c->of == TIDE__FILTER_OWNER);
}

static bool shape_holds(const tide__condition *c, const tide_item_shape *s) {
    const bool equal = c->op == TIDE__OP_EQ;
    switch (c->of) {
    case TIDE__FILTER_KIND:
        return (c->set >> s->kind & 1) == equal;
    case TIDE__FILTER_ROLE:
        return (c->set >> s->role & 1) == equal;
    case TIDE__FILTER_FILL:
        return (c->set >> s->fill & 1) == equal;
    case TIDE__FILTER_DEVICE:
        return is_one_of(s->device, c->text) == equal;
    case TIDE__FILTER_ALLOCATOR:
        return is_one_of(s->allocator, c->text) == equal;
    case TIDE__FILTER_SIZE:
        return compare(s->size_bytes, c->op, c->value);
    case TIDE__FILTER_ALIAS:
        return s->alias != TIDE_ALIAS_NONE;
    case TIDE__FILTER_PLANNED:
        return s->is_planned;
    default:
        return s->persistent;
    }
}

/// Tensors in the buffer of a run are those of one execution; a block may live through several.
static bool lives_in(const pass *p, uint64_t execution, uint32_t i) {
    const tide_items *it = p->items;
    const tide_execution *e = &p->s->facts.executions->items[execution];
    if (tide_items_shape(it, i)->is_planned) return tide_planned_execution(tide_items_id(it, i)) == execution;
    const int64_t begin = tide_items_begin(it, i), end = tide_items_end(it, i);
    if (begin == end) return (int64_t)e->begin_ns <= begin && begin < (int64_t)e->end_ns;
    return begin < (int64_t)e->end_ns && end > (int64_t)e->begin_ns;
}

static bool item_holds(const pass *p, const tide__condition *c, uint32_t i) {
    const tide_items *it = p->items;
    switch (c->of) {
    case TIDE__FILTER_LIFE:
        return compare((uint64_t)(tide_items_end(it, i) - tide_items_begin(it, i)), c->op, c->value);
    case TIDE__FILTER_BEGIN:
        return compare((uint64_t)(tide_items_begin(it, i) - p->begin), c->op, c->value);
    case TIDE__FILTER_END:
        return compare((uint64_t)(tide_items_end(it, i) - p->begin), c->op, c->value);
    case TIDE__FILTER_LEAKED:
        return tide_items_is_never_freed(it, i);
    case TIDE__FILTER_EXEC:
        return lives_in(p, c->value, i);
    default:
        if (c->moment == TIDE__AT_PEAK) return tide__bit(p->at_peak, i);
        return tide_items_alive_at(it, i, c->moment == TIDE__AT_CURSOR ? p->cursor : p->begin + (int64_t)c->value);
    }
}

// ---- what is made once ----

/// A peak is an event, and what was given back in its nanosecond may have been alive: the live set knows. The planned
/// tensors of a run are not in it; they go by time.
static tide_status find_peak(pass *p, tide_error *err) {
    const tide_items *it = p->items;
    const tide_moment peak = p->s->facts.peak;
    if (p->at_peak != NULL) return TIDE_OK;
    p->at_peak = tide_host_calloc(it->n / 8 + 1, 1);
    if (p->at_peak == NULL) return TIDE_NO_MEMORY(err, "for a filter");
    tide_live_items l;
    TIDE_TRY(tide_subject_live(p->s, peak, &l, err));
    for (size_t i = 0; i < l.n; i++)
        if (l.items[i].item != TIDE_NO_ITEM) p->at_peak[l.items[i].item / 8] |= (uint8_t)(1u << (l.items[i].item % 8));
    tide_live_items_deinit(&l);
    if (!p->s->facts.is_trace || p->s->run.plan == NULL) return TIDE_OK;
    for (uint32_t i = 0; i < it->n; i++)
        if (tide_items_shape(it, i)->is_planned && tide_items_alive_at(it, i, peak.t))
            p->at_peak[i / 8] |= (uint8_t)(1u << (i % 8));
    return TIDE_OK;
}

static tide_status find_execution(const pass *p, const tide__condition *c, tide_error *err) {
    const tide_executions *x = p->s->facts.executions;
    if (x == NULL || x->n == 0)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "exec=%" PRIu64 ": no executions are known here", c->value);
    if (c->value >= x->n)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "exec=%" PRIu64 ": the run has %zu, from 0 on", c->value, x->n);
    return TIDE_OK;
}

static tide_status add_condition(pass *p, const tide__condition *c, tide_error *err) {
    const tide_items *it = p->items;
    const tide__site_names *names = tide__items_names(it);
    if (c->of == TIDE__FILTER_TOP) {
        if (c->value < p->top) p->top = c->value;
        return TIDE_OK;
    }
    if (c->of == TIDE__FILTER_EXEC) TIDE_TRY(find_execution(p, c, err));
    if (on_item(c)) {
        p->on_items[p->n_on_items++] = c;
        return c->of == TIDE__FILTER_ALIVE && c->moment == TIDE__AT_PEAK ? find_peak(p, err) : TIDE_OK;
    }
    if (on_site(c)) {
        for (size_t i = 0; i < it->n_sites; i++)
            if (p->site[i] != 0 && site_holds(c, &it->sites[i], names->folded + names->folded_at[i]) == c->negate)
                p->site[i] = 0;
        return TIDE_OK;
    }
    for (size_t i = 0; i < it->n_shapes; i++)
        if (shape_holds(c, &it->shapes[i]) == c->negate) p->shape[i] = 0;
    return TIDE_OK;
}

static tide_status prepare(pass *p, const tide_filter *const *filters, size_t n, tide_error *err) {
    for (size_t i = 0; i < n; i++) p->n_conditions += filters[i]->n;
    p->site = tide_host_alloc(p->items->n_sites + 1);
    p->shape = tide_host_alloc(p->items->n_shapes + 1);
    p->on_items = tide_host_alloc((p->n_conditions + 1) * sizeof *p->on_items);
    if (p->site == NULL || p->shape == NULL || p->on_items == NULL) return TIDE_NO_MEMORY(err, "for a filter");
    memset(p->site, 1, p->items->n_sites + 1);
    memset(p->shape, 1, p->items->n_shapes + 1);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < filters[i]->n; k++) TIDE_TRY(add_condition(p, &filters[i]->conditions[k], err));
    return TIDE_OK;
}

// ---- items ----

static bool item_passes(const pass *p, uint32_t i, uint32_t site, uint32_t shape) {
    if ((p->site[site] & p->shape[shape]) == 0) return false;
    for (size_t k = 0; k < p->n_on_items; k++)
        if (item_holds(p, p->on_items[k], i) == p->on_items[k]->negate) return false;
    return true;
}

/// Smallest size that is kept whole, and how many of the next smaller one are kept too.
static tide_status find_least(const pass *p, const uint8_t *bits, uint64_t *least, size_t *n_level) {
    const tide_items *it = p->items;
    const size_t n = it->n_shapes;
    tide__keyed *order = tide_host_alloc((2 * n + 1) * sizeof *order); // the second half is spare
    uint32_t *count = tide_host_calloc(n + 1, sizeof *count);
    const bool good = order != NULL && count != NULL;
    for (uint32_t i = 0; good && i < n; i++) // the largest first
        order[i] = (tide__keyed){.key = UINT64_MAX - it->shapes[i].size_bytes, .number = i};
    tide__items_some shapes;
    for (uint32_t i = 0; good && i < it->n; i++)
        count[tide__items_each(it, i, TIDE_ITEMS_SHAPE, &shapes)] += tide__bit(bits, i);
    if (good) tide__keyed_sort(order, order + n, n);
    size_t kept = 0;
    for (size_t k = 0; good && k < n;) {
        const uint64_t key = order[k].key;
        size_t level = 0;
        for (; k < n && order[k].key == key; k++) level += count[order[k].number];
        *least = UINT64_MAX - key;
        *n_level = (size_t)p->top - kept;
        if (kept + level > p->top) break;
        kept += level;
    }
    tide_host_free(order);
    tide_host_free(count);
    return good ? TIDE_OK : TIDE_ERR_NOMEM;
}

/// Keep the `top` largest of what passes, of those of one size the first.
static tide_status keep_top(const pass *p, uint8_t *bits, size_t n_pass) {
    uint64_t least = 0;
    size_t n_level = 0;
    if (n_pass <= p->top) return TIDE_OK;
    TIDE_TRY(find_least(p, bits, &least, &n_level));
    tide__items_some shapes;
    for (uint32_t i = 0; i < p->items->n; i++) {
        const uint64_t size = p->items->shapes[tide__items_each(p->items, i, TIDE_ITEMS_SHAPE, &shapes)].size_bytes;
        if (size > least || !tide__bit(bits, i)) continue;
        if (size == least && n_level > 0) {
            n_level--;
        } else {
            bits[i / 8] &= (uint8_t) ~(1u << (i % 8));
        }
    }
    return TIDE_OK;
}

static tide_status pass_items(const pass *p, const tide_progress *progress, uint8_t *bits, tide_error *err) {
    size_t n_pass = 0;
    const size_t n = p->items->n;
    tide__items_some sites, shapes;
    for (uint32_t i = 0; i < n; i++) {
        if (i % REPORT_ITEMS == 0 && i > 0 && !tide_progress_goes_on(progress, 0.5 * i / (double)n, "filtering"))
            return TIDE_FAIL(err, TIDE_ERR_CANCELLED, "filtering was cancelled");
        const uint32_t site = tide__items_each(p->items, i, TIDE_ITEMS_SITE, &sites);
        if (!item_passes(p, i, site, tide__items_each(p->items, i, TIDE_ITEMS_SHAPE, &shapes))) continue;
        bits[i / 8] |= (uint8_t)(1u << (i % 8));
        n_pass++;
    }
    const tide_status st = keep_top(p, bits, n_pass);
    return st == TIDE_OK ? st : TIDE_FAIL(err, st, "no memory for a filter");
}

tide_status tide__filters_apply(tide_subject *s, const tide_filter *const *filters, size_t n, int64_t cursor,
                                const tide_progress *progress, uint8_t **bits, tide_error *err) {
    pass p = {.s = s, .items = tide_subject_items(s), .begin = s->facts.origin, .cursor = cursor, .top = UINT64_MAX};
    uint8_t *out = tide_host_calloc(p.items->n / 8 + 1, 1);
    tide_status st = out != NULL ? prepare(&p, filters, n, err) : TIDE_NO_MEMORY(err, "for a filter");
    if (st == TIDE_OK) st = pass_items(&p, progress, out, err);
    tide_host_free(p.site);
    tide_host_free(p.shape);
    tide_host_free(p.on_items);
    tide_host_free(p.at_peak);
    if (st != TIDE_OK) {
        tide_host_free(out);
        return st;
    }
    *bits = out;
    return TIDE_OK;
}
