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

// ---- what cannot be compared with ----

/// Any fault of the file means that no comparison took place: this must not look like a regression, nor like a
/// pass.
static tide_status unusable(tide_error *err) {
    if (err == NULL) return TIDE_ERR_INCOMPARABLE;
    err->status = TIDE_ERR_INCOMPARABLE;
    if (err->hint[0] != '\0') { // the hint becomes a note, to make room for the hint below
        const tide_error was = *err;
        tide_error_note(err, "%s%s%s", was.note, was.note[0] != '\0' ? "; " : "", was.hint);
    }
    tide_error_hint(err, "look at what is measured, then: tidemark check --update-baseline --reason \"…\"");
    return TIDE_ERR_INCOMPARABLE;
}
#define UNUSABLE(err, ...) (TIDE_FAIL(err, TIDE_ERR_INCOMPARABLE, __VA_ARGS__), unusable(err))

// ---- reading ----

static tide_status read_document(const char *path, json_t **doc, tide_error *err) {
    char *data;
    size_t len;
    const tide_status st = tide_read_file(path, 0, &data, &len, err);
    if (st == TIDE_ERR_NOMEM) return st;
    if (st != TIDE_OK) {
        tide_error_prefix(err, "there is no baseline to compare with");
        return unusable(err);
    }
    size_t blanks = 0;
    while (blanks < len && strchr(" \t\r\n", data[blanks]) != NULL) blanks++;
    json_error_t at = {0};
    *doc = blanks < len ? tide_json_load(data, len, JSON_REJECT_DUPLICATES, &at) : NULL;
    tide_host_free(data);
    if (*doc != NULL) return TIDE_OK;
    if (blanks == len) return UNUSABLE(err, "cannot compare with the baseline '%s': it is empty", path);
    if (json_error_code(&at) == json_error_out_of_memory) return TIDE_NO_MEMORY(err, "for the baseline '%s'", path);
    (void)UNUSABLE(err, "cannot compare with the baseline '%s': %s", path, at.text);
    tide_error_where(err, "%s:%d:%d", path, at.line, at.column);
    return TIDE_ERR_INCOMPARABLE;
}

static tide_status check_schema(const char *path, const json_t *doc, int *known, tide_error *err) {
    const char *schema = json_string_value(json_object_get(doc, "schema"));
    const json_t *version = json_object_get(doc, "version");
    if (schema == NULL)
        return UNUSABLE(err, "cannot compare with '%s': it is no baseline, for it has no 'schema'", path);
    if (strcmp(schema, SCHEMA) != 0)
        return UNUSABLE(err, "cannot compare with '%s': it is a '%.64s', not a '%s'", path, schema, SCHEMA);
    if (!json_is_integer(version))
        return UNUSABLE(err, "cannot compare with the baseline '%s': it has no 'version'", path);
    *known = NEWEST_VERSION;
    if (json_integer_value(version) == NEWEST_VERSION) return TIDE_OK;
    *known = OLDEST_VERSION;
    if (json_integer_value(version) == OLDEST_VERSION) return TIDE_OK;
    return UNUSABLE(
        err, "cannot compare with the baseline '%s': it is of version %" JSON_INTEGER_FORMAT ", known are %d to %d",
        path, json_integer_value(version), OLDEST_VERSION, NEWEST_VERSION);
}

static tide_status bad_update(const char *path, size_t i, const char *what, tide_error *err) {
    (void)UNUSABLE(err, "cannot compare with the baseline '%s': %s", path, what);
    tide_error_where(err, "%s: updates[%zu]", path, i);
    return TIDE_ERR_INCOMPARABLE;
}

static tide_status read_update(const char *path, size_t i, const json_t *o, tide_gate_update *out, tide_error *err) {
    const char *date = json_string_value(json_object_get(o, "date"));
    const char *by = json_string_value(json_object_get(o, "by"));
    const char *reason = json_string_value(json_object_get(o, "reason"));
    const json_t *changed = json_object_get(o, "changed");
    if (date == NULL || by == NULL || reason == NULL)
        return bad_update(path, i, "an update has 'date', 'by' and 'reason', which are texts", err);
    if (!json_is_array(changed)) return bad_update(path, i, "'changed' is not a list of keys", err);
    TIDE_TRY(TIDE_COPY_TEXT(&out->date, date, err, "for the baseline '%s'", path));
    TIDE_TRY(TIDE_COPY_TEXT(&out->by, by, err, "for the baseline '%s'", path));
    TIDE_TRY(TIDE_COPY_TEXT(&out->reason, reason, err, "for the baseline '%s'", path));
    TIDE_TRY(TIDE_NEW(&out->changed, json_array_size(changed) + 1, err, "for the baseline '%s'", path));
    for (size_t k = 0; k < json_array_size(changed); k++) {
        const char *key = json_string_value(json_array_get(changed, k));
        if (key == NULL) return bad_update(path, i, "'changed' is not a list of keys", err);
        TIDE_TRY(TIDE_COPY_TEXT(&out->changed[k], key, err, "for the baseline '%s'", path));
        out->n_changed++;
    }
    return TIDE_OK;
}

static tide_status read_updates(const json_t *doc, tide_gate_baseline *out, tide_error *err) {
    const json_t *list = json_object_get(doc, "updates");
    if (!json_is_array(list))
        return UNUSABLE(err, "cannot compare with the baseline '%s': 'updates' is not a list", out->path);
    TIDE_TRY(TIDE_NEW(&out->updates, json_array_size(list) + 1, err, "for the baseline '%s'", out->path));
    for (size_t i = 0; i < json_array_size(list); i++)
        TIDE_TRY(read_update(out->path, i, json_array_get(list, i), &out->updates[out->n_updates++], err));
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
    tide_json_reader in = *r;
    TIDE_TRY(tide__case_of_json(&in, o, &c));
    if (version == 1) take_from_version_1(&c);
    if (c.error != NULL || c.skipped) {
        const tide_status st = TIDE_JSON_BAD(r, "", "'%.200s' was never measured", c.key);
        tide_gate_case_deinit(&c);
        return st;
    }
    const tide_status st = tide_gate_cases_add(cases, &c, r->err);
    return st == TIDE_ERR_EXISTS ? tide_json_fault_at(r, "", st) : st;
}

static tide_status read_cases(const json_t *doc, tide_gate_baseline *out, tide_error *err) {
    const json_t *list = json_object_get(doc, "cases");
    if (!json_is_array(list))
        return UNUSABLE(err, "cannot compare with the baseline '%s': 'cases' is not a list", out->path);
    for (size_t i = 0; i < json_array_size(list); i++) {
        tide_json_reader r = {.path = out->path, .err = err};
        snprintf(r.at, sizeof r.at, "cases[%zu]", i);
        const tide_status st = read_case(&r, json_array_get(list, i), out->version, &out->cases);
        if (st == TIDE_ERR_NOMEM) return TIDE_NO_MEMORY(err, "for the baseline '%s'", out->path);
        if (st == TIDE_OK) continue;
        tide_error_prefix(err, "cannot compare with the baseline '%s'", out->path);
        return unusable(err);
    }
    return TIDE_OK;
}

tide_status tide_gate_baseline_read(const char *path, tide_gate_baseline *out, tide_error *err) {
    json_t *doc = NULL;
    *out = (tide_gate_baseline){.path = tide_host_strdup(path)};
    tide_status st = out->path != NULL ? TIDE_OK : TIDE_NO_MEMORY(err, "for the baseline '%s'", path);
    if (st == TIDE_OK) st = read_document(path, &doc, err);
    if (st == TIDE_OK) st = check_schema(path, doc, &out->version, err);
    if (st == TIDE_OK) st = read_updates(doc, out, err);
    if (st == TIDE_OK) st = read_cases(doc, out, err);
    json_decref(doc);
    if (st != TIDE_OK) tide_gate_baseline_deinit(out);
    return st;
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

/// Whether the file would be the same with either case.
static bool is_same(const tide_gate_case *old, const json_t *fresh) {
    json_t *doc = old != NULL ? tide__case_to_json(old) : NULL;
    const bool same = doc != NULL && json_equal(doc, fresh);
    json_decref(doc);
    return same;
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

/// Whether only the machine differs. Then the old case is kept, so that a baseline does not change with the machine
/// that updates it.
static bool is_same_elsewhere(const tide_gate_case *old, const tide_gate_case *c, const json_t *fresh) {
    if (old == NULL || !tide_gate_case_has_machine(old) || tide_gate_case_same_machine(old, c)) return false;
    json_t *a = tide__case_to_json(old), *b = json_deep_copy(fresh);
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
    const bool keeps_old = st == TIDE_OK && is_same_elsewhere(old, c, doc);
    if (st == TIDE_OK && !keeps_old && !is_same(old, doc)) st = note(list, c->key, err);
    json_decref(doc);
    if (keeps_old) {
        tide_gate_case_deinit(&kept);
        st = as_kept(old, &doc, &kept, err);
        json_decref(doc);
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
