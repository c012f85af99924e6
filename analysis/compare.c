// SPDX-License-Identifier: MIT
//
// compare: the rows of two sides are matched, the change of the peak is split by operator and by kind, and people get
// sentences. See compare.h.
#include "analysis/compare.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/explain_internal.h"
#include "analysis/subject_internal.h"
#include "core/base/host_alloc.h"
#include "core/base/map.h"
#include "core/base/text.h"

typedef struct diff_side {
    tide_subject *s;
    const tide_subject_facts *facts;
    const tide_items *items; // NULL: not loaded
    tide_explanation e;
} diff_side;

typedef struct diff_work {
    diff_side a, b;
    bool rows_at, is_same; // same: items have the same numbers on both sides
    const tide_progress *progress;
    tide_error *err;
} diff_work;

/// TIDE_ERR_CANCELLED when the caller has enough.
static tide_status report(const diff_work *w, double share, const char *what) {
    if (tide_progress_goes_on(w->progress, share, what)) return TIDE_OK;
    return TIDE_FAIL(w->err, TIDE_ERR_CANCELLED, "comparing was cancelled");
}

// ---- rows: items of both sides are matched ----
//
//     names      "conv1_out" -> 0, "relu1_out" -> 1 …        of both sides
//     ranks      conv1_out, relu1_out, conv1_out …           in order of birth: 0, 0, 1 …
//     A's table  by name, then rank: [0.0 0.1 0.2][1.0 1.1]  where B's items find theirs

/// An item of one side.
typedef struct entry {
    const char *name, *owner;
    const tide_lifetime *tensor; // of a planned one; else NULL
    int64_t begin;
    uint64_t id, bytes, at_bytes, place;
    uint32_t item, key, rank;
    bool is_planned, is_matched;
} entry;

typedef struct side_list {
    entry *list; // [n], owned
    size_t n;
} side_list;

// ---- entries ----

static void add_plan(const diff_side *side, entry *e) {
    const tide_memory_plan *plan = side->facts->plan;
    e->place = TIDE_NO_OFFSET;
    const uint64_t tensor = tide_planned_tensor(e->id);
    if (!e->is_planned || plan == NULL || tensor >= plan->lifetimes.n) return;
    if (tide_id_is_planned(e->id) && tide_planned_run(e->id) != side->facts->run_id) return; // another run's plan
    e->tensor = &plan->lifetimes.items[tensor];
    e->place = plan->offsets[tensor];
}

static entry entry_of_live(const diff_side *side, const tide_live_item *x) {
    entry e = {.name = x->site.name,
               .owner = x->site.owner,
               .begin = x->begin,
               .id = x->id,
               .bytes = x->shape.size_bytes,
               .at_bytes = x->counts_bytes,
               .item = x->item,
               .is_planned = x->shape.is_planned};
    add_plan(side, &e);
    return e;
}

static entry entry_of_item(const diff_side *side, uint32_t i) {
    const tide_items *items = side->items;
    const tide_item_site *site = tide_items_site(items, i);
    const tide_item_shape *shape = tide_items_shape(items, i);
    entry e = {.name = site->name,
               .owner = site->owner,
               .begin = tide_items_begin(items, i),
               .id = tide_items_id(items, i),
               .bytes = shape->size_bytes,
               .item = i,
               .is_planned = shape->is_planned};
    add_plan(side, &e);
    return e;
}

static int by_birth(const void *a, const void *b) {
    const entry *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    if (x->is_planned != y->is_planned) return x->is_planned ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

/// Items, and those alive that are not among them: all that holds bytes has a row.
static tide_status list_side(const diff_work *w, const diff_side *side, side_list *out) {
    const tide_live_items *live = &side->e.live;
    const size_t n_items = w->rows_at ? 0 : side->items->n;
    TIDE_TRY(TIDE_NEW(&out->list, n_items + live->n + 1, w->err, "to compare items"));
    for (uint32_t i = 0; i < n_items; i++) out->list[out->n++] = entry_of_item(side, i);
    for (size_t i = 0; i < live->n; i++) {
        const tide_live_item *x = &live->items[i];
        if (x->item < n_items)
            out->list[x->item].at_bytes = x->counts_bytes;
        else
            out->list[out->n++] = entry_of_live(side, x);
    }
    // Items are in this order already.
    if (w->rows_at && out->n > 1) qsort(out->list, out->n, sizeof *out->list, by_birth);
    return TIDE_OK;
}

// ---- two subjects: by name and rank ----

/// A number for each name of both sides.
static tide_status number_names(tide_strmap *names, side_list *l) {
    tide_text key = {0};
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < l->n; i++) {
        entry *e = &l->list[i];
        uint64_t number = names->map.n;
        key.len = 0;
        tide_text_addf(&key, "%s%s", e->name[0] != '\0' ? "" : "\1", e->name[0] != '\0' ? e->name : e->owner);
        if (key.failed || number >= UINT32_MAX) {
            st = TIDE_ERR_NOMEM;
        } else if (!tide_strmap_get(names, key.data, &number)) {
            st = tide_strmap_put(names, key.data, number);
        }
        e->key = (uint32_t)number;
    }
    tide_text_deinit(&key);
    return st;
}

/// How often each name came before; counts [n_names] ends as how often it is there.
static void rank(side_list *l, uint32_t *counts, size_t n_names) {
    memset(counts, 0, n_names * sizeof *counts);
    for (size_t i = 0; i < l->n; i++) l->list[i].rank = counts[l->list[i].key]++;
}

static tide_status match_names(const diff_work *w, side_list *a, side_list *b, entry **partners) {
    tide_strmap names = {0};
    tide_status st = number_names(&names, a);
    if (st == TIDE_OK) st = number_names(&names, b);
    const size_t n_names = names.map.n;
    tide_strmap_deinit(&names);
    uint32_t *counts = tide_host_alloc((n_names + 1) * sizeof *counts);
    size_t *first = tide_host_alloc((n_names + 1) * sizeof *first);
    entry **table = tide_host_alloc((a->n + 1) * sizeof *table);
    if (counts == NULL || first == NULL || table == NULL) st = TIDE_ERR_NOMEM;
    if (st == TIDE_OK) {
        rank(b, counts, n_names);
        rank(a, counts, n_names);
        size_t at = 0;
        for (size_t k = 0; k < n_names; k++) {
            first[k] = at;
            at += counts[k];
        }
        for (size_t i = 0; i < a->n; i++) table[first[a->list[i].key] + a->list[i].rank] = &a->list[i];
        for (size_t i = 0; i < b->n; i++) {
            const entry *e = &b->list[i];
            partners[i] = e->rank < counts[e->key] ? table[first[e->key] + e->rank] : NULL;
        }
    }
    tide_host_free(counts);
    tide_host_free(first);
    tide_host_free(table);
    return st == TIDE_OK ? TIDE_OK : TIDE_NO_MEMORY(w->err, "to compare items");
}

// ---- one subject: by number, then by name ----

/// Run and tensor of a planned one: the same in another execution.
static uint64_t number_of(const entry *e) {
    return tide_id_is_planned(e->id) ? tide_planned_id(tide_planned_run(e->id), 0, tide_planned_tensor(e->id)) : e->id;
}

static int compare_numbers(const entry *x, const entry *y) {
    if (x->is_planned != y->is_planned) return x->is_planned ? 1 : -1;
    if (number_of(x) != number_of(y)) return number_of(x) < number_of(y) ? -1 : 1;
    if (x->is_planned) return (x->rank > y->rank) - (x->rank < y->rank);
    return (x->begin > y->begin) - (x->begin < y->begin); // a number that was given twice
}

static int by_number(const void *a, const void *b) {
    const entry *x = a, *y = b;
    const int order = compare_numbers(x, y);
    return order != 0 ? order : (x->begin > y->begin) - (x->begin < y->begin);
}

/// Tensors that are alive in several contexts: the first, the second, … of each side are the same.
static void sort_by_number(side_list *l) {
    if (l->n > 1) qsort(l->list, l->n, sizeof *l->list, by_number);
    for (size_t i = 1; i < l->n; i++)
        if (number_of(&l->list[i]) == number_of(&l->list[i - 1])) l->list[i].rank = l->list[i - 1].rank + 1;
}

static void match_numbers(side_list *a, side_list *b, entry **partners) {
    sort_by_number(a);
    sort_by_number(b);
    for (size_t i = 0, k = 0; i < b->n; i++) {
        while (k < a->n && compare_numbers(&a->list[k], &b->list[i]) < 0) k++;
        partners[i] = k < a->n && compare_numbers(&a->list[k], &b->list[i]) == 0 ? &a->list[k] : NULL;
        if (partners[i] != NULL) partners[i]->is_matched = true;
    }
}

static int compare_names(const entry *x, const entry *y) {
    const int order = strcmp(x->name, y->name);
    return order != 0 ? order : strcmp(x->owner, y->owner);
}

static int by_name(const void *a, const void *b) {
    const entry *const *x = a, *const *y = b;
    const int order = compare_names(*x, *y);
    return order != 0 ? order : by_birth(*x, *y);
}

/// Blocks of a side that no number has matched, by name.
static size_t list_left(side_list *l, entry *const *partners, entry **out) {
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++) {
        const bool is_matched = partners != NULL ? partners[i] != NULL : l->list[i].is_matched;
        if (!is_matched && !l->list[i].is_planned) out[n++] = &l->list[i];
    }
    if (n > 1) qsort(out, n, sizeof(entry *), by_name);
    return n;
}

/// What one execution frees another one allocates anew: blocks that stay without a partner are matched by name,
/// operator and how often both came before.
static tide_status match_left(const diff_work *w, side_list *a, side_list *b, entry **partners) {
    entry **left = NULL;
    TIDE_TRY(TIDE_NEW(&left, a->n + b->n + 1, w->err, "to compare items"));
    const size_t n_a = list_left(a, NULL, left), n_b = list_left(b, partners, left + n_a);
    for (size_t i = 0, k = n_a; i < n_a && k < n_a + n_b;) {
        const int order = compare_names(left[i], left[k]);
        if (order == 0) partners[left[k] - b->list] = left[i];
        i += order <= 0;
        k += order >= 0;
    }
    tide_host_free(left);
    return TIDE_OK;
}

// ---- rows ----

static bool same_step(const tide_lifetimes *a, int64_t a_step, const tide_lifetimes *b, int64_t b_step) {
    const bool named = (uint64_t)a_step < a->n_step_names && (uint64_t)b_step < b->n_step_names;
    return named ? strcmp(a->step_names[a_step], b->step_names[b_step]) == 0 : a_step == b_step;
}

/// What persists lives for all steps, whatever they are.
static bool is_retimed(const diff_work *w, const entry *a, const entry *b) {
    if (a->tensor == NULL || b->tensor == NULL || (a->tensor->persistent && b->tensor->persistent)) return false;
    const tide_lifetimes *x = &w->a.facts->plan->lifetimes, *y = &w->b.facts->plan->lifetimes;
    return !same_step(x, a->tensor->begin_step, y, b->tensor->begin_step) ||
           !same_step(x, a->tensor->end_step - 1, y, b->tensor->end_step - 1);
}

/// A block of a run asked for its tensor's bytes with the rounding; a tensor in a plan's buffer stands with its own.
/// Where one is the block and the other the tensor, both are what is held.
static uint64_t bytes_beside(const entry *e, const entry *other) {
    return e->tensor != NULL && other != NULL && other->tensor == NULL ? tide_lifetime_aligned_bytes(e->tensor)
                                                                       : e->bytes;
}

static tide_diff_row row_of(const diff_work *w, const entry *a, const entry *b) {
    const entry *any = a != NULL ? a : b;
    tide_diff_row r = {.name = any->name, .owner = any->owner, .a = TIDE_NO_ITEM, .b = TIDE_NO_ITEM};
    if (a != NULL) {
        r.a = a->item;
        r.a_bytes = bytes_beside(a, b);
        r.a_at_bytes = a->at_bytes;
    }
    if (b != NULL) {
        r.b = b->item;
        r.b_bytes = bytes_beside(b, a);
        r.b_at_bytes = b->at_bytes;
    }
    if (a == NULL) r.what = TIDE_DIFF_ADDED;
    if (b == NULL) r.what = TIDE_DIFF_REMOVED;
    if (a == NULL || b == NULL) return r;
    if (r.a_bytes != r.b_bytes) r.what |= TIDE_DIFF_RESIZED;
    if (a->tensor != NULL && b->tensor != NULL && a->place != b->place) r.what |= TIDE_DIFF_MOVED;
    if (is_retimed(w, a, b)) r.what |= TIDE_DIFF_RETIMED;
    return r;
}

static tide_status make_rows(const diff_work *w, side_list *a, side_list *b, entry **partners, tide_diff *d) {
    TIDE_TRY(TIDE_NEW(&d->rows, a->n + b->n + 1, w->err, "to compare items"));
    for (size_t i = 0; i < b->n; i++) {
        if (partners[i] != NULL) partners[i]->is_matched = true;
        d->rows[d->n++] = row_of(w, partners[i], &b->list[i]);
    }
    for (size_t i = 0; i < a->n; i++) {
        if (!a->list[i].is_matched) d->rows[d->n++] = row_of(w, &a->list[i], NULL);
    }
    return TIDE_OK;
}

static tide_status make_all_rows(diff_work *w, tide_diff *d) {
    side_list a = {0}, b = {0};
    entry **partners = NULL;
    tide_status st = list_side(w, &w->a, &a);
    if (st == TIDE_OK) st = list_side(w, &w->b, &b);
    if (st == TIDE_OK) st = report(w, 0.6, "matching");
    if (st == TIDE_OK) {
        partners = tide_host_alloc((b.n + 1) * sizeof *partners);
        if (partners == NULL) st = TIDE_NO_MEMORY(w->err, "to compare items");
    }
    if (st == TIDE_OK && w->is_same) match_numbers(&a, &b, partners);
    if (st == TIDE_OK && w->is_same) st = match_left(w, &a, &b, partners);
    if (st == TIDE_OK && !w->is_same) st = match_names(w, &a, &b, partners);
    if (st == TIDE_OK) st = report(w, 0.8, "matching");
    if (st == TIDE_OK) st = make_rows(w, &a, &b, partners, d);
    tide_host_free(a.list);
    tide_host_free(b.list);
    tide_host_free(partners);
    return st;
}

// ---- the words for changes, once ----

const char *tide_diff_change_name(unsigned index) {
    static const char *const names[TIDE_DIFF_N_CHANGES] = {"added", "removed", "resized", "moved", "retimed"};
    return names[index];
}

const char *tide_diff_changes(unsigned what, const char *comma, const char *none, char *buf, size_t buf_bytes) {
    size_t len = 0;
    snprintf(buf, buf_bytes, "%s", what == 0 ? none : "");
    for (unsigned i = 0; i < TIDE_DIFF_N_CHANGES && len < buf_bytes; i++)
        if ((what & 1u << i) != 0)
            len += (size_t)snprintf(buf + len, buf_bytes - len, "%s%s", len > 0 ? comma : "", tide_diff_change_name(i));
    return buf;
}

size_t tide_diff_n_changed(const tide_diff *d, unsigned index) {
    const size_t counts[TIDE_DIFF_N_CHANGES] = {d->n_added, d->n_removed, d->n_resized, d->n_moved, d->n_retimed};
    return counts[index];
}

const char *tide_diff_counts(const tide_diff *d, char *buf, size_t buf_bytes) {
    size_t len = 0;
    for (unsigned i = 0; i < TIDE_DIFF_N_CHANGES && len < buf_bytes; i++)
        len += (size_t)snprintf(buf + len, buf_bytes - len, "%zu %s, ", tide_diff_n_changed(d, i),
                                tide_diff_change_name(i));
    if (len < buf_bytes) snprintf(buf + len, buf_bytes - len, "%zu unchanged", d->n_unchanged);
    return buf;
}

// ---- sentences ----

typedef struct bytes_text {
    char text[32];
} bytes_text;

static bytes_text words(uint64_t bytes) {
    bytes_text b;
    tide_format_bytes(bytes, b.text, sizeof b.text);
    return b;
}

/// "+12.00 KiB", "-512 B", "no change"
static bytes_text change_words(uint64_t a, uint64_t b) {
    bytes_text t;
    char bytes[24];
    if (a == b)
        snprintf(t.text, sizeof t.text, "no change");
    else
        snprintf(t.text, sizeof t.text, "%c%s", b > a ? '+' : '-',
                 tide_format_bytes(b > a ? b - a : a - b, bytes, sizeof bytes));
    return t;
}

static void print_sum(const tide_diff *d, const tide_subject *a, const tide_subject *b, tide_text *out) {
    const tide_subject_facts *x = tide_subject_get_facts(a), *y = tide_subject_get_facts(b);
    const bool at_peaks = d->a_at.t == x->peak.t && d->b_at.t == y->peak.t;
    const char *where = at_peaks ? "at its peak" : "at its moment";
    if (d->a_bytes == d->b_bytes)
        tide_text_addf(out, "B holds as much %s as A (%s)", where, words(d->a_bytes).text);
    else
        tide_text_addf(out, "B holds %s %s %s (%s, A %s)",
                       words(d->b_bytes > d->a_bytes ? d->b_bytes - d->a_bytes : d->a_bytes - d->b_bytes).text,
                       d->b_bytes > d->a_bytes ? "more" : "less", where, words(d->b_bytes).text,
                       words(d->a_bytes).text);
}

/// "conv2 +14.00 KiB, rounding -2.00 KiB, others +512 B"
static void print_steps(const tide_diff_step *list, size_t n, size_t n_rows, tide_text *out) {
    const char *comma = "";
    uint64_t a = 0, b = 0;
    for (size_t i = 0; i < n; i++) {
        if (list[i].a_bytes == list[i].b_bytes) continue;
        if (i >= n_rows) {
            a += list[i].a_bytes;
            b += list[i].b_bytes;
            continue;
        }
        tide_text_addf(out, "%s%s %s", comma, list[i].key, change_words(list[i].a_bytes, list[i].b_bytes).text);
        comma = ", ";
    }
    if (a != b) tide_text_addf(out, "%sothers %s", comma, change_words(a, b).text);
}

static bool has_change(const tide_diff_step *list, size_t n) { return n > 0 && list[0].a_bytes != list[0].b_bytes; }

static void print_figures(const tide_diff *d, tide_text *out) {
    if (d->a_peak_bytes != d->b_peak_bytes)
        tide_text_addf(out, "Peak: A %s, B %s (%s).\n", words(d->a_peak_bytes).text, words(d->b_peak_bytes).text,
                       change_words(d->a_peak_bytes, d->b_peak_bytes).text);
    if (d->a_plan_bytes != TIDE_UNKNOWN_BYTES && d->b_plan_bytes != TIDE_UNKNOWN_BYTES)
        tide_text_addf(out, "Planned buffers: A %s, B %s (%s).\n", words(d->a_plan_bytes).text,
                       words(d->b_plan_bytes).text, change_words(d->a_plan_bytes, d->b_plan_bytes).text);
}

static void print_row(const tide_diff_row *r, tide_text *out) {
    tide_text_addf(out, "%s", r->name[0] != '\0' ? r->name : r->owner[0] != '\0' ? r->owner : "(no name)");
    if ((r->what & TIDE_DIFF_ADDED) != 0) tide_text_addf(out, ": only in B, %s", words(r->b_bytes).text);
    if ((r->what & TIDE_DIFF_REMOVED) != 0) tide_text_addf(out, ": only in A, %s", words(r->a_bytes).text);
    if ((r->what & TIDE_DIFF_RESIZED) != 0)
        tide_text_addf(out, ": %s, was %s", words(r->b_bytes).text, words(r->a_bytes).text);
    if ((r->what & TIDE_DIFF_MOVED) != 0) tide_text_add(out, ", lies elsewhere");
    if ((r->what & TIDE_DIFF_RETIMED) != 0) tide_text_add(out, ", retimed");
    if (r->a_at_bytes != r->b_at_bytes)
        tide_text_addf(out, "%s held %s in A, %s in B (%s)", r->what == 0 ? ":" : ";", words(r->a_at_bytes).text,
                       words(r->b_at_bytes).text, change_words(r->a_at_bytes, r->b_at_bytes).text);
    tide_text_add(out, "\n");
}

void tide_diff_print(const tide_diff *d, const tide_subject *a, const tide_subject *b, size_t n_rows, tide_text *out) {
    char counts[192];
    print_sum(d, a, b, out);
    if (has_change(d->by_owner, d->n_by_owner)) {
        tide_text_add(out, ": ");
        print_steps(d->by_owner, d->n_by_owner, n_rows, out);
    }
    tide_text_add(out, ".\n");
    if (has_change(d->by_kind, d->n_by_kind)) {
        tide_text_add(out, "By kind: ");
        print_steps(d->by_kind, d->n_by_kind, n_rows, out);
        tide_text_add(out, ".\n");
    }
    print_figures(d, out);
    tide_text_addf(out, "%s.\n", tide_diff_counts(d, counts, sizeof counts));
    for (size_t i = 0, n = 0; i < d->n && n < n_rows; i++) {
        if (d->rows[i].what == 0 && d->rows[i].a_at_bytes == d->rows[i].b_at_bytes) continue;
        print_row(&d->rows[i], out);
        n++;
    }
}

// ---- waterfall ----

typedef struct waterfall {
    tide_strmap index;
    tide_diff_step *list; // [n], owned
    size_t n, cap;
} waterfall;

static tide_status put(waterfall *w, const char *key, bool is_part, bool is_b, uint64_t bytes) {
    uint64_t i;
    if (bytes == 0) return TIDE_OK;
    // A part and an operator of one name are two steps: no text of a part begins with a control character.
    tide_text whole = {0};
    tide_text_addf(&whole, "%s%s", is_part ? "\1" : "", key);
    tide_status st = whole.failed ? TIDE_ERR_NOMEM : TIDE_OK;
    if (st == TIDE_OK && !tide_strmap_get(&w->index, whole.data, &i)) {
        i = w->n;
        st = tide_host_grow(&w->list, &w->cap, w->n + 1, sizeof *w->list);
        if (st == TIDE_OK) st = tide_strmap_put(&w->index, whole.data, i);
        char *own = st == TIDE_OK ? tide_host_strdup(key) : NULL;
        if (own == NULL) st = TIDE_ERR_NOMEM;
        if (st == TIDE_OK) w->list[w->n++] = (tide_diff_step){.key = own, .is_part = is_part};
    }
    tide_text_deinit(&whole);
    if (st != TIDE_OK) return st;
    uint64_t *side = is_b ? &w->list[i].b_bytes : &w->list[i].a_bytes;
    *side += bytes;
    return TIDE_OK;
}

static bool has_device_but(const tide_explanation *e, const char *device) {
    for (size_t i = 0; i < e->live.n; i++) {
        if (strcmp(e->live.items[i].shape.device, device) != 0) return true;
    }
    return false;
}

/// Keys of both sides must be made alike.
static bool need_devices(const tide_explanation *a, const tide_explanation *b) {
    const tide_explanation *any = a->live.n > 0 ? a : b;
    if (any->live.n == 0) return false;
    const char *device = any->live.items[0].shape.device;
    return has_device_but(a, device) || has_device_but(b, device);
}

static tide_status put_kinds(waterfall *w, const tide_explanation *e, bool with_device, bool is_b) {
    for (size_t i = 0; i < e->live.n; i++) {
        const tide_live_item *x = &e->live.items[i];
        char buf[128];
        TIDE_TRY(put(w, tide__kind_key(x, with_device, buf, sizeof buf), false, is_b, x->counts_bytes));
    }
    return TIDE_OK;
}

static tide_status put_owners(waterfall *w, const tide_explanation *e, bool is_b) {
    for (size_t i = 0; i < e->n_by_owner; i++) TIDE_TRY(put(w, e->by_owner[i].key, false, is_b, e->by_owner[i].bytes));
    return TIDE_OK;
}

/// Parts that no live item has: of a plan rounding is in what they count.
static tide_status put_parts(waterfall *w, const tide_explanation *e, bool is_b, bool is_trace) {
    for (int k = TIDE_PART_ROUNDING; k < TIDE_N_PARTS; k++) {
        if (k == TIDE_PART_ROUNDING && !is_trace) continue;
        TIDE_TRY(put(w, tide_part_name((tide_part_kind)k), true, is_b, e->parts[k]));
    }
    return TIDE_OK;
}

static uint64_t change(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

static int by_change(const void *a, const void *b) {
    const tide_diff_step *x = a, *y = b;
    const uint64_t x_change = change(x->a_bytes, x->b_bytes), y_change = change(y->a_bytes, y->b_bytes);
    if (x_change != y_change) return x_change > y_change ? -1 : 1;
    if (x->is_part != y->is_part) return x->is_part ? 1 : -1;
    return strcmp(x->key, y->key);
}

static void free_steps(tide_diff_step *list, size_t n) {
    for (size_t i = 0; i < n; i++) tide_host_free(list[i].key);
    tide_host_free(list);
}

static tide_status make_waterfall(const diff_side *a, const diff_side *b, bool by_kind, tide_diff_step **out,
                                  size_t *n) {
    waterfall w = {0};
    const bool with_device = by_kind && need_devices(&a->e, &b->e);
    tide_status st = by_kind ? put_kinds(&w, &a->e, with_device, false) : put_owners(&w, &a->e, false);
    if (st == TIDE_OK) st = by_kind ? put_kinds(&w, &b->e, with_device, true) : put_owners(&w, &b->e, true);
    if (st == TIDE_OK) st = put_parts(&w, &a->e, false, a->facts->is_trace);
    if (st == TIDE_OK) st = put_parts(&w, &b->e, true, b->facts->is_trace);
    tide_strmap_deinit(&w.index);
    if (st != TIDE_OK) {
        free_steps(w.list, w.n);
        return st;
    }
    if (w.n > 1) qsort(w.list, w.n, sizeof *w.list, by_change);
    *out = w.list;
    *n = w.n;
    return TIDE_OK;
}

// ---- rows in order ----

static uint64_t larger(const tide_diff_row *r) { return r->a_bytes > r->b_bytes ? r->a_bytes : r->b_bytes; }

static int by_weight(const void *a, const void *b) {
    const tide_diff_row *x = a, *y = b;
    const uint64_t x_change = change(x->a_at_bytes, x->b_at_bytes), y_change = change(y->a_at_bytes, y->b_at_bytes);
    if (x_change != y_change) return x_change > y_change ? -1 : 1;
    if (larger(x) != larger(y)) return larger(x) > larger(y) ? -1 : 1;
    const int by_name = strcmp(x->name, y->name);
    if (by_name != 0) return by_name;
    const uint32_t x_item = x->a != TIDE_NO_ITEM ? x->a : x->b, y_item = y->a != TIDE_NO_ITEM ? y->a : y->b;
    return (x_item > y_item) - (x_item < y_item);
}

static void count(tide_diff *d) {
    for (size_t i = 0; i < d->n; i++) {
        const unsigned what = d->rows[i].what;
        d->n_added += (what & TIDE_DIFF_ADDED) != 0;
        d->n_removed += (what & TIDE_DIFF_REMOVED) != 0;
        d->n_resized += (what & TIDE_DIFF_RESIZED) != 0;
        d->n_moved += (what & TIDE_DIFF_MOVED) != 0;
        d->n_retimed += (what & TIDE_DIFF_RETIMED) != 0;
        d->n_unchanged += what == 0;
    }
}

// ---- the whole ----

/// The share of the whole that explaining one side is.
typedef struct side_share {
    const diff_work *w;
    double from;
    const char *what;
} side_share;

static bool report_side(void *ctx, double share, const char *what) {
    const side_share *x = ctx;
    (void)what;
    return tide_progress_goes_on(x->w->progress, x->from + 0.2 * share, x->what);
}

static tide_status open_side(const diff_work *w, diff_side *side, tide_subject *s, const tide_moment *at,
                             const side_share *share) {
    const bool rows_at = w->rows_at;
    tide_error *err = w->err;
    TIDE_TRY(report(w, share->from, share->what));
    side->s = s;
    side->facts = tide_subject_get_facts(s);
    side->items = tide_subject_items(s);
    if (!rows_at && side->items == NULL)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot compare '%s': its items are not loaded", side->facts->title);
    if (!rows_at && side->items->n > TIDE_COMPARE_MAX_ITEMS) {
        const tide_status st = TIDE_FAIL(err, TIDE_ERR_NO_SPACE, "cannot compare all %zu items of '%s': more than %d",
                                         side->items->n, side->facts->title, (int)TIDE_COMPARE_MAX_ITEMS);
        tide_error_hint(err, "compare what is alive at two moments");
        return st;
    }
    side_share own = *share;
    const tide_progress progress = {.tell = report_side, .ctx = &own};
    const bool is_wanted = w->progress != NULL && w->progress->tell != NULL;
    return tide_explain(s, at != NULL ? *at : side->facts->peak, 0, is_wanted ? &progress : NULL, &side->e, err);
}

static tide_status fill(diff_work *w, tide_diff *d) {
    const diff_side *a = &w->a, *b = &w->b;
    d->a_at = a->e.at;
    d->b_at = b->e.at;
    d->a_bytes = a->e.held_bytes;
    d->b_bytes = b->e.held_bytes;
    d->a_peak_bytes = a->facts->peak_bytes;
    d->b_peak_bytes = b->facts->peak_bytes;
    d->a_plan_bytes = a->facts->has_plan ? a->facts->plan_bytes : TIDE_UNKNOWN_BYTES;
    d->b_plan_bytes = b->facts->has_plan ? b->facts->plan_bytes : TIDE_UNKNOWN_BYTES;
    if (make_waterfall(a, b, false, &d->by_owner, &d->n_by_owner) != TIDE_OK ||
        make_waterfall(a, b, true, &d->by_kind, &d->n_by_kind) != TIDE_OK)
        return TIDE_NO_MEMORY(w->err, "to compare");
    TIDE_TRY(make_all_rows(w, d));
    TIDE_TRY(report(w, 0.9, "sorting"));
    if (d->n > 1) qsort(d->rows, d->n, sizeof *d->rows, by_weight);
    count(d);
    return TIDE_OK;
}

/// Whether the numbers of their items mean the same.
static bool is_same(const tide_subject *a, const tide_subject *b) {
    const tide_subject_facts *x = tide_subject_get_facts(a), *y = tide_subject_get_facts(b);
    return a == b || (x->is_trace && y->is_trace && x->path[0] != '\0' && strcmp(x->path, y->path) == 0 &&
                      x->run_id == y->run_id);
}

tide_status tide_compare(tide_subject *a, const tide_moment *a_at, tide_subject *b, const tide_moment *b_at,
                         bool rows_at, const tide_progress *progress, tide_diff *out, tide_error *err) {
    diff_work w = {.rows_at = rows_at, .progress = progress, .err = err};
    tide_diff d = {0};
    w.is_same = is_same(a, b);
    w.rows_at = w.rows_at || w.is_same;
    tide_status st = open_side(&w, &w.a, a, a_at, &(side_share){&w, 0, "explaining A"});
    if (st == TIDE_OK) st = open_side(&w, &w.b, b, b_at, &(side_share){&w, 0.2, "explaining B"});
    if (st == TIDE_OK) st = report(&w, 0.4, "matching");
    if (st == TIDE_OK) st = fill(&w, &d);
    tide_explanation_deinit(&w.a.e);
    tide_explanation_deinit(&w.b.e);
    if (st != TIDE_OK) {
        tide_diff_deinit(&d);
        return st;
    }
    *out = d;
    return TIDE_OK;
}

void tide_diff_deinit(tide_diff *d) {
    tide_host_free(d->rows);
    free_steps(d->by_owner, d->n_by_owner);
    free_steps(d->by_kind, d->n_by_kind);
    *d = (tide_diff){0};
}
