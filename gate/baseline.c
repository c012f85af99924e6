// SPDX-License-Identifier: MIT
//
// The baseline file: reading it, and what is refused; writing it with other cases. It is sorted by key, has one figure,
// one step and one tensor in a line, and no times: the same cases give the same bytes. See baseline.h.
#include "gate/baseline.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/host_alloc.h"
#include "core/base/json.h"
#include "gate/measured_internal.h"

#define SCHEMA "tidemark.baseline"
/// Of version 1 the figures of models hold kernels' scratch, and cases know neither caches nor content.
enum { NEWEST_VERSION = 2, OLDEST_VERSION = 1 };

static void update_deinit(tide_gate_update *u) {
    for (size_t i = 0; i < u->n_changed; i++) tide_host_free(u->changed[i]);
    tide_host_free(u->changed);
    tide_host_free(u->date);
    tide_host_free(u->by);
    tide_host_free(u->reason);
    *u = (tide_gate_update){0};
}

void tide_gate_baseline_deinit(tide_gate_baseline *b) {
    for (size_t i = 0; i < b->n_updates; i++) update_deinit(&b->updates[i]);
    tide_host_free(b->updates);
    tide_gate_cases_deinit(&b->cases);
    tide_host_free(b->path);
    *b = (tide_gate_baseline){0};
}

// ---- reading ----

static tide_status read_update(tide_json_reader *r, const json_t *o, tide_gate_update *out) {
    json_t *changed;
    TIDE_TRY(tide_json_copy_text(r, o, "date", &out->date));
    TIDE_TRY(tide_json_copy_text(r, o, "by", &out->by));
    TIDE_TRY(tide_json_copy_text(r, o, "reason", &out->reason));
    TIDE_TRY(tide_json_get_list(r, o, "changed", &changed));
    TIDE_TRY(TIDE_NEW(&out->changed, json_array_size(changed) + 1, r->err, "for keys that changed"));
    for (size_t k = 0; k < json_array_size(changed); k++) {
        const char *key;
        TIDE_TRY(tide_json_text_in(r, changed, "changed", k, &key));
        TIDE_TRY(TIDE_COPY_TEXT(&out->changed[k], key, r->err, "for a key that changed"));
        out->n_changed++;
    }
    return TIDE_OK;
}

static tide_status read_updates(tide_json_reader *r, const json_t *doc, tide_gate_baseline *out) {
    json_t *list, *o;
    TIDE_TRY(tide_json_get_list(r, doc, "updates", &list));
    TIDE_TRY(TIDE_NEW(&out->updates, json_array_size(list) + 1, r->err, "for updates"));
    for (size_t i = 0; i < json_array_size(list); i++) {
        TIDE_TRY(tide_json_enter(r, list, "updates", i, &o));
        TIDE_TRY(read_update(r, o, &out->updates[out->n_updates++]));
    }
    r->at[0] = '\0';
    return TIDE_OK;
}

/// In version 1 the figures of a planned model contain kernels' scratch. They become the figures of the full plan;
/// the figures of the graph's tensors alone are not known. Tables of lifetimes, plans and traces have no scratch
/// and stay as they are.
static void take_from_version_1(tide_gate_case *c) {
    static const tide_gate_metric none[] = {TIDE_GATE_PLANNED, TIDE_GATE_TOTAL,  TIDE_GATE_LOWER_BOUND,
                                            TIDE_GATE_NAIVE,   TIDE_GATE_SAVING, TIDE_GATE_GAP};
    if (!tide_gate_case_has_machine(c)) return;
    c->metrics[TIDE_GATE_FULL_PLANNED] = c->metrics[TIDE_GATE_PLANNED];
    c->metrics[TIDE_GATE_FULL_TOTAL] = c->metrics[TIDE_GATE_TOTAL];
    c->metrics[TIDE_GATE_FULL_BOUND] = c->metrics[TIDE_GATE_LOWER_BOUND];
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) c->metrics[none[i]] = (tide_gate_value){0};
}

static tide_status read_case(tide_json_reader *r, const json_t *o, int version, tide_gate_cases *cases) {
    tide_gate_case c;
    TIDE_TRY(tide__case_of_json(r, o, &c));
    if (version == 1) take_from_version_1(&c);
    if (c.error != NULL || c.skipped) {
        const tide_status st = TIDE_JSON_BAD(r, "", "'%.200s' was never measured", c.key);
        tide_gate_case_deinit(&c);
        return st;
    }
    return tide_json_as_bad_input(r, "", tide_gate_cases_add(cases, &c, r->err));
}

static tide_status read_cases(tide_json_reader *r, const json_t *doc, tide_gate_baseline *out) {
    json_t *list, *o;
    TIDE_TRY(tide_json_get_list(r, doc, "cases", &list));
    for (size_t i = 0; i < json_array_size(list); i++) {
        TIDE_TRY(tide_json_enter(r, list, "cases", i, &o));
        TIDE_TRY(read_case(r, o, out->version, &out->cases));
    }
    return TIDE_OK;
}

static tide_status read_document(tide_json_reader *r, const json_t *doc, tide_gate_baseline *out) {
    TIDE_TRY(tide_json_check_schema(r, doc, SCHEMA, OLDEST_VERSION, NEWEST_VERSION, &out->version));
    TIDE_TRY(read_updates(r, doc, out));
    return read_cases(r, doc, out);
}

/// Any fault of the file means that no comparison took place: this must not look like a regression, nor like a pass.
static tide_status unusable(const char *path, tide_status st, tide_error *err) {
    if (st == TIDE_ERR_NOMEM) return TIDE_NO_MEMORY(err, "for the baseline '%s'", path);
    if (err == NULL) return TIDE_ERR_INCOMPARABLE;
    if (st == TIDE_ERR_IO)
        tide_error_prefix(err, "there is no baseline to compare with");
    else
        tide_error_prefix(err, "cannot compare with the baseline '%s'", path);
    err->status = TIDE_ERR_INCOMPARABLE;
    if (err->hint[0] != '\0') { // the hint becomes a note, to make room for the hint below
        const tide_error was = *err;
        tide_error_note(err, "%s%s%s", was.note, was.note[0] != '\0' ? "; " : "", was.hint);
    }
    tide_error_hint(err, "look at what is measured, then: tidemark check --update-baseline --reason \"…\"");
    return TIDE_ERR_INCOMPARABLE;
}

tide_status tide_gate_baseline_read(const char *path, tide_gate_baseline *out, tide_error *err) {
    tide_json_reader r = {.path = path, .err = err};
    json_t *doc = NULL;
    *out = (tide_gate_baseline){0};
    tide_status st = TIDE_COPY_TEXT(&out->path, path, err, "for the baseline '%s'", path);
    if (st == TIDE_OK) st = tide_json_read_file(&r, 0, &doc);
    if (st == TIDE_OK) st = read_document(&r, doc, out);
    json_decref(doc);
    if (st == TIDE_OK) return TIDE_OK;
    tide_gate_baseline_deinit(out);
    return unusable(path, st, err);
}

// ---- text ----

static void add_update(tide_json_out *j, const tide_gate_update *u) {
    tide_json_open_flat(j, NULL, '{');
    tide_json_text(j, "date", u->date);
    tide_json_text(j, "by", u->by);
    tide_json_text(j, "reason", u->reason);
    tide_json_open(j, "changed", '[');
    for (size_t i = 0; i < u->n_changed; i++) tide_json_text(j, NULL, u->changed[i]);
    tide_json_close(j, ']');
    tide_json_close(j, '}');
}

tide_status tide_gate_baseline_print(const tide_gate_baseline *b, tide_text *out, tide_error *err) {
    tide_json_out doc = {.out = out, .indent = true}, *const j = &doc;
    tide_json_open(j, NULL, '{');
    tide_json_text(j, "schema", SCHEMA);
    tide_json_i64(j, "version", NEWEST_VERSION);
    tide_json_open(j, "updates", '[');
    for (size_t i = 0; i < b->n_updates; i++) add_update(j, &b->updates[i]);
    tide_json_close(j, ']');
    tide_json_open(j, "cases", '[');
    for (size_t i = 0; i < b->cases.n; i++) tide__case_write_json(j, &b->cases.items[i]);
    tide_json_close(j, ']');
    tide_json_close(j, '}');
    tide_text_add(out, "\n");
    return out->failed ? TIDE_NO_MEMORY(err, "for a baseline") : TIDE_OK;
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

/// A copy of a case as the file stores it, without times.
static tide_status as_kept(const tide_gate_case *c, json_t **doc, tide_gate_case *out, tide_error *err) {
    *out = (tide_gate_case){0};
    *doc = tide__case_to_json(c);
    if (*doc == NULL) return TIDE_NO_MEMORY(err, "for a baseline");
    tide_json_reader r = {.path = c->key, .err = err, .at = "case"};
    return tide__case_of_json(&r, *doc, out);
}

/// Keys of cases that were added or removed or that differ; texts owned.
typedef struct changes {
    char **keys;
    size_t n, cap;
} changes;

static tide_status note(changes *list, const char *key, tide_error *err) {
    char *copy = tide_host_strdup(key);
    if (copy == NULL || tide_host_grow(&list->keys, &list->cap, list->n + 1, sizeof *list->keys) != TIDE_OK) {
        tide_host_free(copy);
        return TIDE_NO_MEMORY(err, "for a baseline");
    }
    list->keys[list->n++] = copy;
    return TIDE_OK;
}

static void free_changes(changes *list) {
    for (size_t i = 0; i < list->n; i++) tide_host_free(list->keys[i]);
    tide_host_free(list->keys);
    *list = (changes){0};
}

/// Removes what depends on the machine from the document of a case.
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

/// Whether the file would be the same with either case; or but for the machine: then the old case is kept, so that a
/// baseline does not change with the machine that updates it. `doc`, of `c`, is stripped of the machine for that.
static tide_status compare(const tide_gate_case *old, const tide_gate_case *c, json_t *doc, bool *same, bool *elsewhere,
                           tide_error *err) {
    json_t *was = tide__case_to_json(old);
    if (was == NULL) return TIDE_NO_MEMORY(err, "for a baseline");
    *same = json_equal(was, doc);
    if (tide_gate_case_has_machine(old) && !tide_gate_case_same_machine(old, c)) {
        strip_machine(was);
        strip_machine(doc);
        *elsewhere = json_equal(was, doc);
    }
    json_decref(was);
    return TIDE_OK;
}

static tide_status take_case(const tide_gate_baseline *b, const tide_gate_case *c, tide_gate_cases *fresh,
                             changes *list, tide_error *err) {
    json_t *doc;
    tide_gate_case kept;
    bool same = false, elsewhere = false;
    const tide_gate_case *old = tide_gate_cases_find(&b->cases, c->key);
    tide_status st = as_kept(c, &doc, &kept, err);
    if (st == TIDE_OK && old != NULL) st = compare(old, c, doc, &same, &elsewhere, err);
    json_decref(doc);
    if (st == TIDE_OK && elsewhere) {
        tide_gate_case_deinit(&kept);
        st = as_kept(old, &doc, &kept, err);
        json_decref(doc);
    } else if (st == TIDE_OK && !same) {
        st = note(list, c->key, err);
    }
    if (st == TIDE_OK) return tide_gate_cases_add(fresh, &kept, err);
    tide_gate_case_deinit(&kept);
    return st;
}

/// Both lists are sorted by key, and so is the result.
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
        update_deinit(&u);
        return TIDE_NO_MEMORY(err, "for a baseline");
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

// ---- where it must not be updated ----

const char *tide_gate_ci_name(void) {
    static const char *const names[] = {"GITHUB_ACTIONS", "GITLAB_CI", "BUILDKITE",
                                        "JENKINS_URL",    "TF_BUILD",  "TEAMCITY_VERSION"};
    const char *ci = getenv("CI");
    if (ci != NULL && ci[0] != '\0' && strcmp(ci, "0") != 0 && strcasecmp(ci, "false") != 0) return "CI";
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && value[0] != '\0') return names[i];
    }
    return NULL;
}
