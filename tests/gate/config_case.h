// SPDX-License-Identifier: MIT
//
// A folder of its own for each test of the configuration, and what the tests ask of one.
#ifndef TIDE_TESTS_GATE_CONFIG_CASE_H
#define TIDE_TESTS_GATE_CONFIG_CASE_H

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../tide_test.h"
#include "gate/config.h"

static char config_folder[512];

static int config_remove_entry(const char *path, const struct stat *info, int type, struct FTW *at) {
    (void)info, (void)type, (void)at;
    return remove(path);
}

/// The test runs in an empty folder, so that paths in messages are short and the same everywhere.
static int config_setup(void **state) {
    const char *tmp = getenv("TMPDIR");
    snprintf(config_folder, sizeof config_folder, "%s/tide-config-XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(config_folder) == NULL || chdir(config_folder) != 0) return -1;
    return tide_leak_setup(state);
}

static int config_teardown(void **state) {
    if (chdir("/") != 0 || nftw(config_folder, config_remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0) return -1;
    return tide_leak_teardown(state);
}
#define config_test(f) cmocka_unit_test_setup_teardown(f, config_setup, config_teardown)

static inline void put_bytes(const char *path, const char *data, size_t n) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}
static inline void put(const char *path, const char *text) { put_bytes(path, text, strlen(text)); }

/// Empty files: the configuration never looks into a model.
static inline void put_models(void) {
    assert_int_equal(mkdir("m", 0777), 0);
    put("m/b.onnx", "");
    put("m/a.onnx", "");
    put("m/B.onnx", "");
    put("m/c.json", "");
}

static inline tide_gate_config *config_of(const char *path, const char *text) {
    put(path, text);
    tide_gate_config *c = NULL;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_gate_config_read(path, &c, &err), &err);
    assert_non_null(c);
    return c;
}

/// An entry that holds for nothing is a target of its own.
static inline void assert_empty_target(const tide_gate_config *c, const char *key, const char *why,
                                       const char *origin) {
    size_t n;
    const tide_gate_target *t = tide_gate_config_targets(c, &n);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(t[i].key, key) != 0) continue;
        assert_non_null(t[i].why_empty);
        assert_non_null(strstr(t[i].why_empty, why));
        assert_string_equal(t[i].origin, origin);
        return;
    }
    fail_msg("no target '%s'", key);
}

/// Reading `text` fails as bad input, at `where`, with `msg` in the message and `more` in note or hint.
static inline void assert_refused(const char *path, const char *text, size_t len, const char *where, const char *msg,
                                  const char *more) {
    put_bytes(path, text, len);
    tide_gate_config *c = NULL;
    tide_error err = TIDE_ERROR_INIT;
    const tide_status st = tide_gate_config_read(path, &c, &err);
    if (st == TIDE_OK) fail_msg("taken, but should not be: %.400s", text);
    if (st != TIDE_ERR_BAD_INPUT || strcmp(err.where, where) != 0 || strstr(err.msg, msg) == NULL ||
        (more != NULL && strstr(err.note, more) == NULL && strstr(err.hint, more) == NULL))
        fail_msg("of\n%.400s\nwant '%s' at '%s' with '%s', got %s\n%s\n--> %s\nnote: %s\nhint: %s", text, msg, where,
                 more != NULL ? more : "", tide_status_name(st), err.msg, err.where, err.note, err.hint);
    if (c != NULL) fail_msg("a configuration and an error: %s", err.msg);
    assert_text_has(err.msg, "cannot read '");
}
static inline void assert_bad(const char *text, const char *where, const char *msg, const char *more) {
    assert_refused("t.toml", text, strlen(text), where, msg, more);
}
static inline void assert_bad_json(const char *text, const char *where, const char *msg, const char *more) {
    assert_refused("t.json", text, strlen(text), where, msg, more);
}

static inline const tide_gate_target *target_of(const tide_gate_config *c, const char *key) {
    size_t n;
    const tide_gate_target *targets = tide_gate_config_targets(c, &n);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(targets[i].key, key) == 0) return &targets[i];
    }
    for (size_t i = 0; i < n; i++) print_message("key %zu: %s\n", i, targets[i].key);
    fail_msg("there is no target '%s'", key);
    return NULL;
}

static inline tide_gate_rule rule_of(const tide_gate_config *c, const char *key, const char *metric) {
    tide_gate_metric m = TIDE_GATE_PLANNED;
    int kind = 0;
    tide_error err = TIDE_ERROR_INIT;
    tide_gate_rule rule;
    assert_tide_ok(tide_gate_metric_parse(metric, &m, &kind, &err), &err);
    tide_gate_config_rule(c, key, m, kind, &rule);
    return rule;
}

/// "any", "64K", "2%", "64K+2%", "-" none.
static inline void assert_limit(const tide_gate_limit *limit, const char *want) {
    char got[64];
    if (!limit->given)
        snprintf(got, sizeof got, "-");
    else if (!limit->has_amount && !limit->has_percent)
        snprintf(got, sizeof got, "any");
    else
        snprintf(got, sizeof got,
                 limit->has_amount && limit->has_percent ? "%llu+%g%%"
                 : limit->has_amount                     ? "%llu"
                                                         : "%.0llu%g%%",
                 (unsigned long long)limit->amount, limit->percent);
    assert_string_equal(got, want);
}

#endif
