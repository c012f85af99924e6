// SPDX-License-Identifier: MIT
//
// A result as SARIF 2.1.0 (OASIS): a rule for each metric and each state of a case, a result for each thing that failed
// or warned. See outputs.h. Sections in comments are the standard's.
#include <string.h>

#include "gate/out_json.h"

/// Rules that are no metric, behind those that are: one for each state of a case, one for the baseline itself.
static const struct {
    const char *id, *what, *level;
} case_rules[] = {
    {"case.unchanged", "a case that is as it was", "note"},
    {"case.changed", "a case that changed", "error"},
    {"case.added", "a case that the baseline does not have", "warning"},
    {"case.removed", "a case of the baseline that is not measured any more", "error"},
    {"case.unmeasured", "a case that could not be measured", "error"},
    {"case.other_model", "a case whose key names another model than in the baseline", "error"},
    {"case.alone", "a case that is held against budgets alone", "error"},
    {"baseline", "a baseline that is missing or cannot be compared with", "error"},
};
enum { N_CASE_RULES = sizeof case_rules / sizeof case_rules[0], RULE_BASELINE = N_CASE_RULES - 1 };
_Static_assert(RULE_BASELINE == TIDE_GATE_CASE_ALONE + 1, "a rule for each state");

static const char *rule_id(size_t rule) {
    return rule < TIDE_GATE_N_METRICS ? tide_gate_metric_get((tide_gate_metric)rule)->id
                                      : case_rules[rule - TIDE_GATE_N_METRICS].id;
}

static const char *rule_level(size_t rule) {
    if (rule >= TIDE_GATE_N_METRICS) return case_rules[rule - TIDE_GATE_N_METRICS].level;
    const tide_gate_level level = tide_gate_metric_get((tide_gate_metric)rule)->level;
    return level == TIDE_GATE_FAIL ? "error" : level == TIDE_GATE_WARN ? "warning" : "note";
}

static json_t *message(tide__gate_doc *d, json_t *text) {
    json_t *o = json_object();
    tide__gate_put(d, o, "text", text);
    return o;
}

static json_t *rule_json(tide__gate_doc *d, size_t rule) {
    const bool is_metric = rule < TIDE_GATE_N_METRICS;
    const char *what =
        is_metric ? tide_gate_metric_get((tide_gate_metric)rule)->what : case_rules[rule - TIDE_GATE_N_METRICS].what;
    json_t *o = json_object(), *configuration = json_object();
    tide_text full = {0};
    tide_text_addf(
        &full, is_metric ? "%s: worse than the baseline or over its budget by the rules of the configuration." : "%s.",
        what);
    tide__gate_put(d, o, "id", json_string(rule_id(rule)));
    tide__gate_put(d, o, "shortDescription", message(d, json_string(what)));
    tide__gate_put(d, o, "fullDescription", message(d, tide__gate_plain(d, &full)));
    tide__gate_put(d, o, "help",
                   message(d, json_string("tidemark check --json tells every figure and every cause. What is wanted is "
                                          "accepted with: tidemark check --update-baseline --reason \"…\"")));
    tide__gate_put(d, configuration, "level", json_string(rule_level(rule)));
    tide__gate_put(d, o, "defaultConfiguration", configuration);
    return o;
}

// ---- results ----

/// The same finding has the same fingerprint whatever its figures are (3.27.17): FNV-1a over names, parted by NUL.
static uint64_t add_to_hash(uint64_t hash, const char *text) {
    for (const char *p = text;; p++) {
        hash = (hash ^ (unsigned char)*p) * UINT64_C(0x100000001B3);
        if (*p == '\0') return hash;
    }
}

static json_t *fingerprints_json(tide__gate_doc *d, const tide__gate_finding *f, const char *id) {
    uint64_t hash = add_to_hash(UINT64_C(0xCBF29CE484222325), id);
    if (f->judged != NULL) hash = add_to_hash(hash, f->judged->key);
    if (f->row != NULL) {
        char name[96];
        hash = add_to_hash(hash, tide_gate_metric_text(f->row->metric, f->row->kind, name, sizeof name));
        hash = add_to_hash(hash, tide__gate_breach(f->row));
    }
    json_t *o = json_object();
    tide_text hex = {0};
    tide_text_addf(&hex, "%016llx", (unsigned long long)hash);
    tide__gate_put(d, o, "tidemark/v1", json_string(tide_text_str(&hex)));
    // GitHub tells alerts apart by this one, and makes it of the line where it is absent: all findings are on few
    // lines.
    tide_text_add(&hex, ":1");
    tide__gate_put(d, o, "primaryLocationLineHash", tide__gate_plain(d, &hex));
    return o;
}

/// NULL where there is no file to point at: nothing is known, or it came through standard input.
static json_t *physical_json(tide__gate_doc *d, const char *path, unsigned line) {
    if (path[0] == '\0' || strcmp(path, "-") == 0) return NULL;
    while (strncmp(path, "./", 2) == 0) path += 2;
    json_t *o = json_object(), *artifact = json_object(), *region = json_object();
    tide_text uri = {0};
    tide__gate_for_uri(&uri, path);
    tide__gate_put(d, artifact, "uri", tide__gate_plain(d, &uri));
    if (path[0] != '/') tide__gate_put(d, artifact, "uriBaseId", json_string("%SRCROOT%"));
    tide__gate_put(d, region, "startLine", json_integer(line > 0 ? line : 1));
    tide__gate_put(d, o, "artifactLocation", artifact);
    tide__gate_put(d, o, "region", region);
    return o;
}

static json_t *location_json(tide__gate_doc *d, const tide_gate_result *r, const tide__gate_finding *f) {
    unsigned line;
    const char *path = tide__gate_place(r, f->judged, &line);
    json_t *o = json_object(), *physical = physical_json(d, path, line);
    if (physical != NULL) tide__gate_put(d, o, "physicalLocation", physical);
    if (f->judged != NULL) {
        json_t *list = json_array(), *logical = json_object();
        tide__gate_put(d, logical, "fullyQualifiedName", tide__gate_string(d, f->judged->key, TIDE__GATE_JSON_CHARS));
        tide__gate_put(d, logical, "kind", json_string("resource"));
        tide__gate_push(d, list, logical);
        tide__gate_put(d, o, "logicalLocations", list);
    }
    return o;
}

typedef struct results {
    tide__gate_doc *doc;
    const tide_gate_result *result;
    json_t *list;
} results;

static json_t *finding_text(tide__gate_doc *d, const tide_gate_result *r, const tide__gate_finding *f) {
    tide_text plain = {0}, text = {0};
    if (f->judged != NULL) {
        tide__gate_clean(&plain, f->judged->key, TIDE__GATE_NAME_CHARS);
        tide_text_add(&plain, ": ");
    }
    tide__gate_say_finding(&plain, r, f, "\n");
    if (plain.len > 0 && plain.data[plain.len - 1] == '\n') plain.data[--plain.len] = '\0';
    tide__gate_flush(&text, &plain, tide__gate_for_sarif);
    return tide__gate_plain(d, &text);
}

static void add_result(void *ctx, const tide__gate_finding *f) {
    const results *out = ctx;
    tide__gate_doc *d = out->doc;
    const size_t rule = f->judged == NULL ? TIDE_GATE_N_METRICS + RULE_BASELINE
                        : f->row == NULL  ? TIDE_GATE_N_METRICS + (size_t)f->judged->state
                                          : (size_t)f->row->metric;
    json_t *o = json_object(), *locations = json_array();
    tide__gate_push(d, locations, location_json(d, out->result, f));
    tide__gate_put(d, o, "ruleId", json_string(rule_id(rule)));
    tide__gate_put(d, o, "ruleIndex", json_integer((json_int_t)rule));
    tide__gate_put(d, o, "level", json_string(f->is_error ? "error" : "warning"));
    tide__gate_put(d, o, "message", message(d, finding_text(d, out->result, f)));
    tide__gate_put(d, o, "locations", locations);
    tide__gate_put(d, o, "partialFingerprints", fingerprints_json(d, f, rule_id(rule)));
    tide__gate_push(d, out->list, o);
}

static json_t *tool_json(tide__gate_doc *d) {
    json_t *tool = json_object(), *driver = json_object(), *rules = json_array();
    for (size_t rule = 0; rule < TIDE_GATE_N_METRICS + N_CASE_RULES; rule++)
        tide__gate_push(d, rules, rule_json(d, rule));
    tide__gate_put(d, driver, "name", json_string("tidemark"));
    tide__gate_put(d, driver, "rules", rules);
    tide__gate_put(d, tool, "driver", driver);
    return tool;
}

json_t *tide_gate_to_sarif(const tide_gate_result *r) {
    tide__gate_doc d = {0};
    json_t *doc = json_object(), *runs = json_array(), *run = json_object();
    json_t *invocations = json_array(), *invocation = json_object();
    results out = {&d, r, json_array()};
    tide__gate_each_finding(r, add_result, &out);
    tide__gate_put(&d, invocation, "executionSuccessful", json_true());
    tide__gate_put(&d, invocation, "exitCode", json_integer(r->exit_code));
    tide__gate_push(&d, invocations, invocation);
    tide__gate_put(&d, run, "tool", tool_json(&d));
    tide__gate_put(&d, run, "invocations", invocations);
    tide__gate_put(&d, run, "columnKind", json_string("unicodeCodePoints"));
    tide__gate_put(&d, run, "results", out.list); // empty when all is well, never absent (3.14.23)
    tide__gate_push(&d, runs, run);
    tide__gate_put(&d, doc, "$schema", json_string("https://json.schemastore.org/sarif-2.1.0.json"));
    tide__gate_put(&d, doc, "version", json_string("2.1.0"));
    tide__gate_put(&d, doc, "runs", runs);
    return tide__gate_done(&d, doc);
}
