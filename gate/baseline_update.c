// SPDX-License-Identifier: MIT
//
// The baseline with other cases, and as text: sorted by key, a figure, a step and a tensor a line, without anything
// that is timed; the same cases give the same bytes. See baseline.h.
#include <string.h>

#include "core/base/host_alloc.h"
#include "gate/baseline_internal.h"
#include "gate/measured_internal.h"

static tide_status no_memory(tide_error *err) { return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for a baseline"); }

// ---- text ----

static json_t *update_to_json(const tide_gate_update *u) {
    json_t *changed = json_array();
    bool good = changed != NULL;
    for (size_t i = 0; good && i < u->n_changed; i++)
        good = json_array_append_new(changed, json_string(u->changed[i])) == 0;
    if (good)
        return json_pack("{s:s, s:s, s:s, s:o}", "date", u->date, "by", u->by, "reason", u->reason, "changed", changed);
    json_decref(changed);
    return NULL;
}

/// Levels of the layout: the list of updates; the list of cases, a case, and its lists and objects.
enum { LEVELS_OF_UPDATES = 1, LEVELS_OF_CASES = 3 };

static void add_list(tide_text *out, const char *key, json_t *list, bool good, int levels) {
    tide_text_addf(out, "  \"%s\": ", key);
    if (!good) out->failed = true;
    if (good) tide__case_add_json(out, list, 1, levels);
    json_decref(list);
}

tide_status tide_gate_baseline_print(const tide_gate_baseline *b, tide_text *out, tide_error *err) {
    json_t *updates = json_array(), *cases = json_array();
    bool good = updates != NULL && cases != NULL;
    for (size_t i = 0; good && i < b->n_updates; i++)
        good = json_array_append_new(updates, update_to_json(&b->updates[i])) == 0;
    for (size_t i = 0; good && i < b->cases.n; i++)
        good = json_array_append_new(cases, tide_gate_case_to_json(&b->cases.items[i], true)) == 0;
    tide_text_addf(out, "{\n  \"schema\": \"%s\",\n  \"version\": %d,\n", TIDE_GATE_BASELINE_SCHEMA,
                   TIDE_GATE_BASELINE_VERSION);
    add_list(out, "updates", updates, good, LEVELS_OF_UPDATES);
    tide_text_add(out, ",\n");
    add_list(out, "cases", cases, good, LEVELS_OF_CASES);
    tide_text_add(out, "\n}\n");
    return out->failed ? no_memory(err) : TIDE_OK;
}

// ---- update ----

static tide_status check_info(const tide_gate_cases *cases, const tide_gate_update_info *info, tide_error *err) {
    if (info->reason == NULL || info->reason[strspn(info->reason, " \t\r\n")] == '\0') {
        const tide_status st = TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot update the baseline without a reason");
        tide_error_hint(err, "--reason \"why it may be so\"");
        return st;
    }
    for (size_t i = 0; i < cases->n; i++) {
        const tide_gate_case *c = &cases->items[i];
        if (c->error == NULL && !c->skipped) continue;
        const tide_status st =
            TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot update the baseline: '%s' was not measured", c->key);
        tide_error_note(err, "%s", tide__case_text(c->error));
        return st;
    }
    return TIDE_OK;
}

/// A copy as the file will hold it: what is timed is gone.
static tide_status as_kept(const tide_gate_case *c, json_t **doc, tide_gate_case *out, tide_error *err) {
    *out = (tide_gate_case){0};
    *doc = tide_gate_case_to_json(c, true);
    return *doc != NULL ? tide_gate_case_of_json(*doc, c->key, out, err) : no_memory(err);
}

/// Keys of cases that came, went or differ; texts owned.
typedef struct changes {
    char **keys;
    size_t n, cap;
} changes;

static tide_status note(changes *list, const char *key, tide_error *err) {
    char *copy = tide_host_strdup(key);
    if (copy == NULL || tide_host_grow(&list->keys, &list->cap, list->n + 1, sizeof *list->keys) != TIDE_OK) {
        tide_host_free(copy);
        return no_memory(err);
    }
    list->keys[list->n++] = copy;
    return TIDE_OK;
}

static void free_changes(changes *list) {
    for (size_t i = 0; i < list->n; i++) tide_host_free(list->keys[i]);
    tide_host_free(list->keys);
    *list = (changes){0};
}

/// Whether the file would say the same of both.
static bool is_same(const tide_gate_case *old, const json_t *fresh) {
    json_t *doc = old != NULL ? tide_gate_case_to_json(old, true) : NULL;
    const bool same = doc != NULL && json_equal(doc, fresh);
    json_decref(doc);
    return same;
}

/// Takes out of a document of a case what depends on the machine.
static void strip_machine(json_t *doc) {
    json_t *settings = json_object_get(doc, "settings"), *figures = json_object_get(doc, "figures"), *value;
    const char *key;
    void *next;
    json_object_foreach_safe(settings, next, key, value) {
        if (tide_gate_setting_is_of_machine(key)) json_object_del(settings, key);
    }
    for (int i = 0; i < TIDE_GATE_N_METRICS; i++) {
        const tide_gate_metric m = (tide_gate_metric)i;
        const tide_gate_metric_def *def = tide_gate_metric_get(m);
        if (!def->per_kind && tide_gate_metric_is_of_machine(m, -1)) json_object_del(figures, def->id);
        for (int k = 0; def->per_kind && k < TIDE_N_KINDS; k++)
            if (tide_gate_metric_is_of_machine(m, k))
                json_object_del(json_object_get(figures, def->id), tide_memory_kind_name((tide_memory_kind)k));
    }
}

/// Whether the machine is all that differs: then the case stays as it is, so that a baseline does not change with
/// the machine that updates it.
static bool is_same_elsewhere(const tide_gate_case *old, const tide_gate_case *c, const json_t *fresh) {
    if (old == NULL || !tide_gate_case_has_machine(old) || tide_gate_case_same_machine(old, c)) return false;
    json_t *a = tide_gate_case_to_json(old, true), *b = json_deep_copy(fresh);
    if (a != NULL) strip_machine(a);
    if (b != NULL) strip_machine(b);
    const bool same = a != NULL && b != NULL && json_equal(a, b);
    json_decref(a);
    json_decref(b);
    return same;
}

static tide_status take_case(const tide_gate_baseline *b, const tide_gate_case *c, tide_gate_cases *fresh,
                             changes *list, tide_error *err) {
    json_t *doc;
    tide_gate_case kept;
    const tide_gate_case *old = tide_gate_cases_find(&b->cases, c->key);
    tide_status st = as_kept(c, &doc, &kept, err);
    const bool stays = st == TIDE_OK && is_same_elsewhere(old, c, doc);
    if (st == TIDE_OK && !stays && !is_same(old, doc)) st = note(list, c->key, err);
    json_decref(doc);
    if (stays) {
        tide_gate_case_deinit(&kept);
        st = as_kept(old, &doc, &kept, err);
        json_decref(doc);
    }
    if (st == TIDE_OK) return tide_gate_cases_add(fresh, &kept, err);
    tide_gate_case_deinit(&kept);
    return st;
}

/// Both lists are by key; so is what comes out.
static tide_status collect(const tide_gate_baseline *b, const tide_gate_cases *cases, tide_gate_cases *fresh,
                           changes *list, tide_error *err) {
    size_t old = 0;
    for (size_t i = 0; i <= cases->n; i++) {
        for (; old < b->cases.n; old++) {
            const int order = i < cases->n ? strcmp(b->cases.items[old].key, cases->items[i].key) : -1;
            if (order > 0) break;
            if (order < 0) TIDE_TRY(note(list, b->cases.items[old].key, err));
        }
        if (i < cases->n) TIDE_TRY(take_case(b, &cases->items[i], fresh, list, err));
    }
    return TIDE_OK;
}

static tide_status append_update(tide_gate_baseline *b, const tide_gate_update_info *info, changes *list,
                                 tide_error *err) {
    tide_gate_update u = {
        .date = tide__case_utf8(info->date), .by = tide__case_utf8(info->by), .reason = tide__case_utf8(info->reason)};
    size_t cap = b->n_updates;
    if (u.date == NULL || u.by == NULL || u.reason == NULL ||
        tide_host_grow(&b->updates, &cap, b->n_updates + 1, sizeof *b->updates) != TIDE_OK) {
        tide__baseline_update_deinit(&u);
        return no_memory(err);
    }
    u.changed = list->keys;
    u.n_changed = list->n;
    *list = (changes){0};
    b->updates[b->n_updates++] = u;
    return TIDE_OK;
}

tide_status tide_gate_baseline_update(tide_gate_baseline *b, const tide_gate_cases *cases,
                                      const tide_gate_update_info *info, bool *changed, tide_error *err) {
    TIDE_TRY(check_info(cases, info, err));
    tide_gate_cases fresh = {0};
    changes list = {0};
    tide_status st = collect(b, cases, &fresh, &list, err);
    *changed = st == TIDE_OK && list.n > 0;
    if (*changed) st = append_update(b, info, &list, err);
    if (st == TIDE_OK && *changed) {
        tide_gate_cases_deinit(&b->cases);
        b->cases = fresh;
        fresh = (tide_gate_cases){0};
    }
    tide_gate_cases_deinit(&fresh);
    free_changes(&list);
    return st;
}
