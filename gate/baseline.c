// SPDX-License-Identifier: MIT
//
// The baseline file: reading it, and what is refused. See baseline.h.
#include "gate/baseline.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/host_alloc.h"
#include "core/base/json.h"
#include "gate/baseline_internal.h"
#include "gate/measured_internal.h"

void tide__baseline_update_deinit(tide_gate_update *u) {
    for (size_t i = 0; i < u->n_changed; i++) tide_host_free(u->changed[i]);
    tide_host_free(u->changed);
    tide_host_free(u->date);
    tide_host_free(u->by);
    tide_host_free(u->reason);
    *u = (tide_gate_update){0};
}

void tide_gate_baseline_deinit(tide_gate_baseline *b) {
    for (size_t i = 0; i < b->n_updates; i++) tide__baseline_update_deinit(&b->updates[i]);
    tide_host_free(b->updates);
    tide_gate_cases_deinit(&b->cases);
    tide_host_free(b->path);
    *b = (tide_gate_baseline){0};
}

// ---- what cannot be compared with ----

/// Whatever is wrong with the file, nothing was compared: the caller must not take it for a regression, nor for a pass.
static tide_status unusable(tide_error *err) {
    if (err == NULL) return TIDE_ERR_INCOMPARABLE;
    err->status = TIDE_ERR_INCOMPARABLE;
    if (err->hint[0] != '\0') { // "did you mean" gives way to the remedy, and stays said
        const tide_error was = *err;
        tide_error_note(err, "%s%s%s", was.note, was.note[0] != '\0' ? "; " : "", was.hint);
    }
    tide_error_hint(err, "look at what is measured, then: tidemark check --update-baseline --reason \"…\"");
    return TIDE_ERR_INCOMPARABLE;
}
#define UNUSABLE(err, ...) (TIDE_FAIL(err, TIDE_ERR_INCOMPARABLE, __VA_ARGS__), unusable(err))

static tide_status no_memory(const char *path, tide_error *err) {
    return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the baseline '%s'", path);
}

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
    if (json_error_code(&at) == json_error_out_of_memory) return no_memory(path, err);
    (void)UNUSABLE(err, "cannot compare with the baseline '%s': %s", path, at.text);
    tide_error_where(err, "%s:%d:%d", path, at.line, at.column);
    return TIDE_ERR_INCOMPARABLE;
}

static tide_status check_schema(const char *path, const json_t *doc, int *known, tide_error *err) {
    const char *schema = json_string_value(json_object_get(doc, "schema"));
    const json_t *version = json_object_get(doc, "version");
    if (schema == NULL)
        return UNUSABLE(err, "cannot compare with '%s': it is no baseline, for it has no 'schema'", path);
    if (strcmp(schema, TIDE_GATE_BASELINE_SCHEMA) != 0)
        return UNUSABLE(err, "cannot compare with '%s': it is a '%.64s', not a '%s'", path, schema,
                        TIDE_GATE_BASELINE_SCHEMA);
    if (!json_is_integer(version))
        return UNUSABLE(err, "cannot compare with the baseline '%s': it has no 'version'", path);
    *known = TIDE_GATE_BASELINE_VERSION;
    if (json_integer_value(version) == TIDE_GATE_BASELINE_VERSION) return TIDE_OK;
    *known = TIDE_GATE_BASELINE_OLDEST;
    if (json_integer_value(version) == TIDE_GATE_BASELINE_OLDEST) return TIDE_OK;
    return UNUSABLE(
        err, "cannot compare with the baseline '%s': it is of version %" JSON_INTEGER_FORMAT ", known are %d to %d",
        path, json_integer_value(version), TIDE_GATE_BASELINE_OLDEST, TIDE_GATE_BASELINE_VERSION);
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
    out->date = tide_host_strdup(date);
    out->by = tide_host_strdup(by);
    out->reason = tide_host_strdup(reason);
    out->changed = tide_host_calloc(json_array_size(changed) + 1, sizeof *out->changed);
    if (out->date == NULL || out->by == NULL || out->reason == NULL || out->changed == NULL)
        return no_memory(path, err);
    for (size_t k = 0; k < json_array_size(changed); k++) {
        const char *key = json_string_value(json_array_get(changed, k));
        if (key == NULL) return bad_update(path, i, "'changed' is not a list of keys", err);
        out->changed[k] = tide_host_strdup(key);
        if (out->changed[k] == NULL) return no_memory(path, err);
        out->n_changed++;
    }
    return TIDE_OK;
}

static tide_status read_updates(const json_t *doc, tide_gate_baseline *out, tide_error *err) {
    const json_t *list = json_object_get(doc, "updates");
    if (!json_is_array(list))
        return UNUSABLE(err, "cannot compare with the baseline '%s': 'updates' is not a list", out->path);
    out->updates = tide_host_calloc(json_array_size(list) + 1, sizeof *out->updates);
    if (out->updates == NULL) return no_memory(out->path, err);
    for (size_t i = 0; i < json_array_size(list); i++)
        TIDE_TRY(read_update(out->path, i, json_array_get(list, i), &out->updates[out->n_updates++], err));
    return TIDE_OK;
}

/// What version 1 says of a model that was planned there holds kernels' scratch: it is kept as figures of the full
/// plan, and those of the graph's tensors alone are not known. Lists of lifetimes, plans and traces are what they were.
static void take_from_version_1(tide_gate_case *c) {
    static const tide_gate_metric none[] = {TIDE_GATE_PLANNED, TIDE_GATE_TOTAL,  TIDE_GATE_LOWER_BOUND,
                                            TIDE_GATE_NAIVE,   TIDE_GATE_SAVING, TIDE_GATE_GAP};
    if (!tide_gate_case_has_machine(c)) return;
    c->metrics[TIDE_GATE_FULL_PLANNED] = c->metrics[TIDE_GATE_PLANNED];
    c->metrics[TIDE_GATE_FULL_TOTAL] = c->metrics[TIDE_GATE_TOTAL];
    c->metrics[TIDE_GATE_FULL_BOUND] = c->metrics[TIDE_GATE_LOWER_BOUND];
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) c->metrics[none[i]] = (tide_gate_value){0};
}

static tide_status read_case(const json_t *o, int version, const char *where, tide_gate_cases *cases, tide_error *err) {
    tide_gate_case c;
    TIDE_TRY(tide_gate_case_of_json(o, where, &c, err));
    if (version == 1) take_from_version_1(&c);
    if (c.error != NULL || c.skipped) {
        const tide_status st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "'%.200s' was never measured", c.key);
        tide_error_where(err, "%s", where);
        tide_gate_case_deinit(&c);
        return st;
    }
    const tide_status st = tide_gate_cases_add(cases, &c, err);
    if (st == TIDE_ERR_EXISTS) tide_error_where(err, "%s", where);
    return st;
}

static tide_status read_cases(const json_t *doc, tide_gate_baseline *out, tide_error *err) {
    const json_t *list = json_object_get(doc, "cases");
    if (!json_is_array(list))
        return UNUSABLE(err, "cannot compare with the baseline '%s': 'cases' is not a list", out->path);
    for (size_t i = 0; i < json_array_size(list); i++) {
        tide_text where = {0};
        tide_text_addf(&where, "%s: cases[%zu]", out->path, i);
        const tide_status st =
            where.failed ? TIDE_ERR_NOMEM
                         : read_case(json_array_get(list, i), out->version, tide_text_str(&where), &out->cases, err);
        tide_text_deinit(&where);
        if (st == TIDE_ERR_NOMEM) return no_memory(out->path, err);
        if (st == TIDE_OK) continue;
        tide_error_prefix(err, "cannot compare with the baseline '%s'", out->path);
        return unusable(err);
    }
    return TIDE_OK;
}

tide_status tide_gate_baseline_read(const char *path, tide_gate_baseline *out, tide_error *err) {
    json_t *doc = NULL;
    *out = (tide_gate_baseline){.path = tide_host_strdup(path)};
    tide_status st = out->path != NULL ? TIDE_OK : no_memory(path, err);
    if (st == TIDE_OK) st = read_document(path, &doc, err);
    if (st == TIDE_OK) st = check_schema(path, doc, &out->version, err);
    if (st == TIDE_OK) st = read_updates(doc, out, err);
    if (st == TIDE_OK) st = read_cases(doc, out, err);
    json_decref(doc);
    if (st != TIDE_OK) tide_gate_baseline_deinit(out);
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
