// SPDX-License-Identifier: MIT
//
// A result as SARIF 2.1.0 (OASIS): a rule for each metric and each state of a case, a result for each thing that failed
// or warned. See outputs.h. Sections in comments are the standard's.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/hash.h"
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

/// An object of a text alone, which is the form of every message.
static void add_message(tide_json_out *j, const char *key, const char *text) {
    tide_json_open(j, key, '{');
    tide_json_text(j, "text", text);
    tide_json_close(j, '}');
}

static void add_rule(tide_json_out *j, size_t rule) {
    const bool is_metric = rule < TIDE_GATE_N_METRICS;
    const char *what =
        is_metric ? tide_gate_metric_get((tide_gate_metric)rule)->what : case_rules[rule - TIDE_GATE_N_METRICS].what;
    tide_text full = {0};
    tide_text_addf(
        &full, is_metric ? "%s: worse than the baseline or over its budget by the rules of the configuration." : "%s.",
        what);
    if (full.failed) j->out->failed = true;
    tide_json_open(j, NULL, '{');
    tide_json_text(j, "id", rule_id(rule));
    add_message(j, "shortDescription", what);
    add_message(j, "fullDescription", tide_text_str(&full));
    add_message(j, "help",
                "tidemark check --json tells every figure and every cause. What is wanted is accepted with: tidemark "
                "check --update-baseline --reason \"…\"");
    tide_json_open(j, "defaultConfiguration", '{');
    tide_json_text(j, "level", rule_level(rule));
    tide_json_close(j, '}');
    tide_json_close(j, '}');
    tide_text_deinit(&full);
}

// ---- results ----

/// Names are parted by NUL. The same finding has the same fingerprint whatever its figures are (SARIF 2.1.0, 3.27.17).
static uint64_t add_to_hash(uint64_t hash, const char *text) { return tide_hash_bytes(hash, text, strlen(text) + 1); }

static void add_fingerprints(tide_json_out *j, const tide__gate_finding *f, const char *id) {
    uint64_t hash = add_to_hash(TIDE_HASH_START, id);
    if (f->judged != NULL) hash = add_to_hash(hash, f->judged->key);
    if (f->row != NULL) {
        char name[96];
        hash = add_to_hash(hash, tide_gate_metric_text(f->row->metric, f->row->kind, name, sizeof name));
        hash = add_to_hash(hash, tide__gate_breach(f->row));
    }
    char hex[24];
    snprintf(hex, sizeof hex, "%016" PRIx64, hash);
    tide_json_open(j, "partialFingerprints", '{');
    tide_json_text(j, "tidemark/v1", hex);
    // GitHub tells alerts apart by this one, and makes it of the line where it is absent: all findings are on few
    // lines.
    snprintf(hex, sizeof hex, "%016" PRIx64 ":1", hash);
    tide_json_text(j, "primaryLocationLineHash", hex);
    tide_json_close(j, '}');
}

/// Left out where there is no file to point at: nothing is known, or it came through standard input.
static void add_physical(tide_json_out *j, const char *path, unsigned line) {
    if (path[0] == '\0' || strcmp(path, "-") == 0) return;
    while (strncmp(path, "./", 2) == 0) path += 2;
    tide_text uri = {0};
    tide__gate_for_uri(&uri, path);
    tide_json_open(j, "physicalLocation", '{');
    tide_json_open(j, "artifactLocation", '{');
    tide__gate_add_plain(j, "uri", &uri);
    if (path[0] != '/') tide_json_text(j, "uriBaseId", "%SRCROOT%");
    tide_json_close(j, '}');
    tide_json_open(j, "region", '{');
    tide_json_u64(j, "startLine", line > 0 ? line : 1);
    tide_json_close(j, '}');
    tide_json_close(j, '}');
}

static void add_location(tide_json_out *j, const tide_gate_result *r, const tide__gate_finding *f) {
    unsigned line;
    const char *path = tide__gate_place(r, f->judged, &line);
    tide_json_open(j, NULL, '{');
    add_physical(j, path, line);
    if (f->judged != NULL) {
        tide_json_open(j, "logicalLocations", '[');
        tide_json_open(j, NULL, '{');
        tide__gate_add_text(j, "fullyQualifiedName", f->judged->key, TIDE__GATE_JSON_CHARS);
        tide_json_text(j, "kind", "resource");
        tide_json_close(j, '}');
        tide_json_close(j, ']');
    }
    tide_json_close(j, '}');
}

static void add_finding_text(tide_json_out *j, const tide_gate_result *r, const tide__gate_finding *f) {
    tide_text plain = {0}, text = {0};
    if (f->judged != NULL) {
        tide__gate_clean(&plain, f->judged->key, TIDE__GATE_NAME_CHARS);
        tide_text_add(&plain, ": ");
    }
    tide__gate_say_finding(&plain, r, f, "\n");
    if (plain.len > 0 && plain.data[plain.len - 1] == '\n') plain.data[--plain.len] = '\0';
    tide__gate_flush(&text, &plain, tide__gate_for_sarif);
    tide_json_open(j, "message", '{');
    tide__gate_add_plain(j, "text", &text);
    tide_json_close(j, '}');
}

typedef struct results {
    const tide_gate_result *result;
    tide_json_out json;
} results;

static void add_result(void *ctx, const tide__gate_finding *f) {
    results *out = ctx;
    tide_json_out *j = &out->json;
    const size_t rule = f->judged == NULL ? TIDE_GATE_N_METRICS + RULE_BASELINE
                        : f->row == NULL  ? TIDE_GATE_N_METRICS + (size_t)f->judged->state
                                          : (size_t)f->row->metric;
    tide_json_open(j, NULL, '{');
    tide_json_text(j, "ruleId", rule_id(rule));
    tide_json_u64(j, "ruleIndex", rule);
    tide_json_text(j, "level", f->is_error ? "error" : "warning");
    add_finding_text(j, out->result, f);
    tide_json_open(j, "locations", '[');
    add_location(j, out->result, f);
    tide_json_close(j, ']');
    add_fingerprints(j, f, rule_id(rule));
    tide_json_close(j, '}');
}

static void add_tool(tide_json_out *j) {
    tide_json_open(j, "tool", '{');
    tide_json_open(j, "driver", '{');
    tide_json_text(j, "name", "tidemark");
    tide_json_open(j, "rules", '[');
    for (size_t rule = 0; rule < TIDE_GATE_N_METRICS + N_CASE_RULES; rule++) add_rule(j, rule);
    tide_json_close(j, ']');
    tide_json_close(j, '}');
    tide_json_close(j, '}');
}

static void add_invocations(tide_json_out *j, const tide_gate_result *r) {
    tide_json_open(j, "invocations", '[');
    tide_json_open(j, NULL, '{');
    tide_json_bool(j, "executionSuccessful", true);
    tide_json_i64(j, "exitCode", r->exit_code);
    tide_json_close(j, '}');
    tide_json_close(j, ']');
}

void tide_gate_print_sarif(const tide_gate_result *r, tide_text *out) {
    results found = {.result = r, .json = {.out = out, .indent = true}};
    tide_json_out *j = &found.json;
    tide_json_open(j, NULL, '{');
    tide_json_text(j, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
    tide_json_text(j, "version", "2.1.0");
    tide_json_open(j, "runs", '[');
    tide_json_open(j, NULL, '{');
    add_tool(j);
    add_invocations(j, r);
    tide_json_text(j, "columnKind", "unicodeCodePoints");
    tide_json_open(j, "results", '['); // empty when all is well, never absent (3.14.23)
    tide__gate_each_finding(r, add_result, &found);
    tide_json_close(j, ']');
    tide_json_close(j, '}');
    tide_json_close(j, ']');
    tide_json_close(j, '}');
    tide_text_add(out, "\n");
}
