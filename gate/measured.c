// SPDX-License-Identifier: MIT
//
// Cases: settings, figures, and the list of cases of one document. See measured.h.
#include "gate/measured_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/base/utf8.h"

// ---- one case ----

static void free_setting(tide_gate_setting *s) {
    tide_host_free(s->key);
    tide_host_free(s->value);
}

static void free_tensor(tide_gate_tensor *t) {
    tide_host_free(t->name);
    tide_host_free(t->owner);
    tide_host_free(t->inside);
    tide_host_free(t->alias);
}

void tide_gate_case_deinit(tide_gate_case *c) {
    for (size_t i = 0; i < c->n_settings; i++) free_setting(&c->settings[i]);
    for (size_t i = 0; i < c->n_steps; i++) {
        tide_host_free(c->steps[i].name);
        tide_host_free(c->steps[i].op);
    }
    for (size_t i = 0; i < c->n_tensors; i++) free_tensor(&c->tensors[i]);
    tide_host_free(c->settings);
    tide_host_free(c->steps);
    tide_host_free(c->tensors);
    tide_host_free(c->key);
    tide_host_free(c->model);
    tide_host_free(c->signature);
    tide_host_free(c->inputs);
    tide_host_free(c->content);
    tide_host_free(c->error);
    tide_host_free(c->peak_step);
    *c = (tide_gate_case){0};
}

/// The index at which `key` is or would be inserted.
static size_t setting_index(const tide_gate_case *c, const char *key, bool *there) {
    size_t at = 0;
    while (at < c->n_settings && strcmp(c->settings[at].key, key) < 0) at++;
    *there = at < c->n_settings && strcmp(c->settings[at].key, key) == 0;
    return at;
}

tide_status tide_gate_case_set(tide_gate_case *c, const char *key, const char *value, tide_error *err) {
    bool there;
    const size_t at = setting_index(c, key, &there);
    tide_gate_setting fresh = {.key = tide__case_utf8(key), .value = tide__case_utf8(value)};
    size_t cap = c->n_settings;
    if (fresh.key == NULL || fresh.value == NULL ||
        (!there && tide_host_grow(&c->settings, &cap, c->n_settings + 1, sizeof *c->settings) != TIDE_OK)) {
        free_setting(&fresh);
        return TIDE_NO_MEMORY(err, "for a setting");
    }
    if (there) {
        free_setting(&c->settings[at]);
    } else {
        memmove(&c->settings[at + 1], &c->settings[at], (c->n_settings - at) * sizeof *c->settings);
        c->n_settings++;
    }
    c->settings[at] = fresh;
    return TIDE_OK;
}

const char *tide_gate_case_setting(const tide_gate_case *c, const char *key) {
    bool there;
    const size_t at = setting_index(c, key, &there);
    return there ? c->settings[at].value : NULL;
}

// ---- the machine ----

static const char *const machine_keys[] = {"caches", "instructions", "library", "threads"};
enum { N_MACHINE_KEYS = sizeof machine_keys / sizeof machine_keys[0] };

bool tide_gate_setting_is_of_machine(const char *key) {
    for (size_t i = 0; i < N_MACHINE_KEYS; i++)
        if (strcmp(machine_keys[i], key) == 0) return true;
    return false;
}

bool tide_gate_case_has_machine(const tide_gate_case *c) { return tide_gate_case_setting(c, "instructions") != NULL; }

bool tide_gate_case_same_machine(const tide_gate_case *a, const tide_gate_case *b) {
    for (size_t i = 0; i < N_MACHINE_KEYS; i++) {
        const char *x = tide_gate_case_setting(a, machine_keys[i]), *y = tide_gate_case_setting(b, machine_keys[i]);
        if (strcmp(tide__case_text(x), tide__case_text(y)) != 0) return false;
    }
    return true;
}

// ---- figures ----

tide_gate_value tide_gate_case_value(const tide_gate_case *c, tide_gate_metric m, int kind) {
    if (!tide_gate_metric_get(m)->per_kind) return c->metrics[m];
    return kind >= 0 && kind < TIDE_N_KINDS ? c->kinds[m][kind] : (tide_gate_value){0};
}

int tide__case_n_values(tide_gate_metric m) { return tide_gate_metric_get(m)->per_kind ? TIDE_N_KINDS : 1; }

tide_gate_value tide__case_value(const tide_gate_case *c, tide_gate_metric m, int kind) {
    const tide_gate_value v = tide_gate_case_value(c, m, kind);
    if (v.known || !tide_gate_metric_get(m)->per_kind) return v;
    bool any = false;
    for (int k = 0; k < TIDE_N_KINDS; k++) any = any || c->kinds[m][k].known;
    return (tide_gate_value){.known = any};
}

int64_t tide__case_millionths(double share) { return llround(share * 1e6); }

bool tide__case_same_value(tide_gate_unit unit, tide_gate_value a, tide_gate_value b) {
    if (!a.known || !b.known) return a.known == b.known;
    if (unit == TIDE_GATE_SHARE) return tide__case_millionths(a.real) == tide__case_millionths(b.real);
    return a.u == b.u;
}

// ---- what makes a case sound ----

static bool is_clean(const char *text) {
    uint32_t cp = 0;
    for (size_t n; cp != TIDE_UTF8_BAD && (n = tide_utf8_decode(text, &cp)) > 0; text += n) {
    }
    return cp != TIDE_UTF8_BAD;
}

char *tide__case_utf8(const char *text) {
    if (text == NULL) text = "";
    if (is_clean(text)) return tide_host_strdup(text);
    tide_text out = {0};
    uint32_t cp;
    for (size_t n; (n = tide_utf8_decode(text, &cp)) > 0; text += n) {
        if (cp == TIDE_UTF8_BAD)
            tide_text_addf(&out, "\\x%02x", (unsigned)(unsigned char)*text);
        else
            tide_text_add_n(&out, text, n);
    }
    char *copy = out.failed ? NULL : tide_host_strdup(tide_text_str(&out));
    tide_text_deinit(&out);
    return copy;
}

/// Replaces a text of a case by its UTF-8 copy; a missing one becomes "".
static bool clean_in_place(char **text) {
    if (*text != NULL && is_clean(*text)) return true;
    char *clean = tide__case_utf8(*text);
    if (clean == NULL) return false;
    tide_host_free(*text);
    *text = clean;
    return true;
}

static bool clean_case(tide_gate_case *c) {
    bool good = clean_in_place(&c->key) && clean_in_place(&c->model) && clean_in_place(&c->signature) &&
                clean_in_place(&c->inputs) && clean_in_place(&c->peak_step) &&
                (c->error == NULL || clean_in_place(&c->error)) && (c->content == NULL || clean_in_place(&c->content));
    for (size_t i = 0; good && i < c->n_steps; i++)
        good = clean_in_place(&c->steps[i].name) && clean_in_place(&c->steps[i].op);
    for (size_t i = 0; good && i < c->n_tensors; i++) {
        tide_gate_tensor *t = &c->tensors[i];
        good = clean_in_place(&t->name) && clean_in_place(&t->owner) && clean_in_place(&t->inside) &&
               clean_in_place(&t->alias);
    }
    return good;
}

int tide__case_compare_tensors(const tide_gate_tensor *x, const tide_gate_tensor *y) {
    const int by_name = strcmp(x->name, y->name);
    return by_name != 0 ? by_name : strcmp(x->owner, y->owner);
}

static int compare_tensors(const void *a, const void *b) {
    const tide_gate_tensor *x = a, *y = b;
    const int order = tide__case_compare_tensors(x, y);
    if (order != 0) return order;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return (x->at_peak_bytes < y->at_peak_bytes) - (x->at_peak_bytes > y->at_peak_bytes);
}

void tide__case_sort_tensors(tide_gate_case *c) {
    size_t i = 1;
    while (i < c->n_tensors && compare_tensors(&c->tensors[i - 1], &c->tensors[i]) <= 0) i++;
    if (i < c->n_tensors) qsort(c->tensors, c->n_tensors, sizeof *c->tensors, compare_tensors);
}

tide_status tide__case_check(const tide_gate_case *c, tide_error *err) {
    uint64_t sum = c->holes_bytes;
    bool fits = true;
    for (size_t i = 0; fits && i < c->n_tensors; i++) fits = tide_add_u64(sum, c->tensors[i].at_peak_bytes, &sum);
    if (fits && sum == c->held_bytes) return TIDE_OK;
    const tide_status st =
        TIDE_FAIL(err, TIDE_ERR_INVALID, "the tensors of '%s' do not add up to what it holds at its peak",
                  tide__case_text(c->key));
    if (fits) tide_error_note(err, "with the holes they are %" PRIu64 " bytes, held are %" PRIu64, sum, c->held_bytes);
    return st;
}

// ---- the cases of a document ----

void tide_gate_cases_deinit(tide_gate_cases *cases) {
    for (size_t i = 0; i < cases->n; i++) tide_gate_case_deinit(&cases->items[i]);
    tide_host_free(cases->items);
    *cases = (tide_gate_cases){0};
}

/// The first case whose key is not below `key`.
static size_t lower_bound(const tide_gate_cases *cases, const char *key) {
    size_t lo = 0, hi = cases->n;
    if (hi > 0 && strcmp(cases->items[hi - 1].key, key) < 0) return hi; // most callers add cases in order
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (strcmp(cases->items[mid].key, key) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static tide_status add(tide_gate_cases *cases, tide_gate_case *c, tide_error *err) {
    if (!clean_case(c)) return TIDE_NO_MEMORY(err, "for a case");
    if (c->key[0] == '\0') return TIDE_FAIL(err, TIDE_ERR_INVALID, "a case has no key");
    TIDE_TRY(tide__case_check(c, err));
    tide__case_sort_tensors(c);
    const size_t at = lower_bound(cases, c->key);
    if (at < cases->n && strcmp(cases->items[at].key, c->key) == 0)
        return TIDE_FAIL(err, TIDE_ERR_EXISTS, "there are two cases '%s'", c->key);
    TIDE_TRY(TIDE_GROW(&cases->items, &cases->cap, cases->n + 1, err, "for %zu cases", cases->n + 1));
    memmove(&cases->items[at + 1], &cases->items[at], (cases->n - at) * sizeof *cases->items);
    cases->items[at] = *c;
    cases->n++;
    *c = (tide_gate_case){0};
    return TIDE_OK;
}

tide_status tide_gate_cases_add(tide_gate_cases *cases, tide_gate_case *c, tide_error *err) {
    const tide_status st = add(cases, c, err);
    tide_gate_case_deinit(c);
    return st;
}

const tide_gate_case *tide_gate_cases_find(const tide_gate_cases *cases, const char *key) {
    const size_t at = lower_bound(cases, key);
    return at < cases->n && strcmp(cases->items[at].key, key) == 0 ? &cases->items[at] : NULL;
}
