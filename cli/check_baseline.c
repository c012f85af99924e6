// SPDX-License-Identifier: MIT
//
// What the cases of `tidemark check` are held against: a baseline file, that of another revision, or a plan, a model or
// a trace that is measured in its place; and bringing the file up to date.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/check.h"
#include "core/base/host_alloc.h"
#include "core/base/output.h"

/// Where the baseline is; NULL: nobody says. *wanted false: none shall be used.
static const char *path_of(const cli_check_options *o, const tide_gate_config *config, bool *wanted) {
    const char *path = tide_gate_config_baseline(config, wanted);
    if (o->no_baseline) *wanted = false;
    if (o->baseline == NULL) return path;
    *wanted = true;
    return o->baseline;
}

// ---- another file in its place ----

/// Whether it is a baseline, good or bad, as its first key says (docs/gate.md); what is not there or empty is one that
/// is missing.
static bool is_baseline(const char *data, size_t len) {
    const char *const schema = "\"tidemark.baseline\"";
    return len == 0 || memmem(data, len < 4096 ? len : 4096, schema, strlen(schema)) != NULL;
}

/// `path` measured as the one target is, and under its key.
static tide_status measure_baseline(const char *path, const tide_gate_config *config, tide_gate_baseline *out,
                                    tide_error *err) {
    size_t n;
    const tide_gate_target *targets = tide_gate_config_targets(config, &n);
    if (n != 1)
        return TIDE_FAIL(err, TIDE_ERR_INCOMPARABLE,
                         "'%s' is no baseline file, and only a single FILE can be held against a plan, model or trace",
                         path);
    TIDE_TRY(cli_check_measure_other(&targets[0], path, &out->cases, err));
    out->path = tide_host_strdup(path);
    return out->path != NULL ? TIDE_OK : TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the name of '%s'", path);
}

/// A baseline file, or anything else that can be measured.
static tide_status read_any(const char *path, const tide_gate_config *config, cli_check_baseline *to, tide_error *err) {
    tide_gate_baseline *out = &to->base;
    char *data = NULL;
    size_t len = 0;
    tide_status st = tide_read_file(path, 0, &data, &len, err);
    if (st == TIDE_ERR_IO) return tide_gate_baseline_read(path, out, err); // which says how one is made
    if (st != TIDE_OK) return st;
    // Standard input cannot be read twice.
    int fd = -1;
    char in_memory[64];
    const char *from = path;
    if (strcmp(path, "-") == 0) {
        st = cli_check_memory_file(data, len, &fd, in_memory, sizeof in_memory, err);
        from = in_memory;
    }
    const bool is_file = is_baseline(data, len);
    to->is_measured = !is_file;
    tide_host_free(data);
    if (st == TIDE_OK)
        st = is_file ? tide_gate_baseline_read(from, out, err) : measure_baseline(from, config, out, err);
    if (fd >= 0) close(fd);
    if (st != TIDE_OK || from == path) return st;
    tide_host_free(out->path);
    out->path = tide_host_strdup(path);
    return out->path != NULL ? TIDE_OK : TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the name of '%s'", path);
}

// ---- loading ----

/// Whether they are the same to a byte, as they would be written.
static tide_status same_text(const tide_gate_baseline *a, const tide_gate_baseline *b, bool *same, tide_error *err) {
    tide_text x = {0}, y = {0};
    tide_status st = tide_gate_baseline_print(a, &x, err);
    if (st == TIDE_OK) st = tide_gate_baseline_print(b, &y, err);
    *same = st == TIDE_OK && x.len == y.len && memcmp(tide_text_str(&x), tide_text_str(&y), x.len) == 0;
    tide_text_deinit(&x);
    tide_text_deinit(&y);
    return st;
}

static tide_status load_of_ref(const char *path, const char *ref, cli_check_baseline *out, tide_error *err) {
    TIDE_TRY(cli_check_baseline_of_ref(path, ref, &out->base, err));
    if (access(path, F_OK) != 0) return TIDE_OK; // taken out of the tree: the older one holds
    TIDE_TRY(tide_gate_baseline_read(path, &out->tree, err));
    bool same = false;
    TIDE_TRY(same_text(&out->base, &out->tree, &same, err));
    out->has_tree = !same;
    return TIDE_OK;
}

static tide_status load(const cli_check_options *o, const tide_gate_config *config, cli_check_baseline *out,
                        tide_error *err) {
    const char *path = path_of(o, config, &out->is_wanted);
    if (!out->is_wanted && o->base_ref == NULL) return TIDE_OK;
    if (path == NULL) {
        const tide_status st =
            TIDE_FAIL(err, TIDE_ERR_INCOMPARABLE, "no baseline is named: there is nothing to compare with");
        const char *file = tide_gate_config_path(config);
        if (file[0] != '\0')
            tide_error_hint(err, "%s: baseline = \"tidemark-baseline.json\", or baseline = false for budgets alone",
                            file);
        else
            tide_error_hint(err,
                            "--baseline FILE (a plan of 'tidemark plan FILE -o plan.json' will do), or --no-baseline");
        return st;
    }
    out->is_wanted = true;
    if (o->base_ref != NULL) return load_of_ref(path, o->base_ref, out, err);
    // The configuration names a baseline file; what the command line names may be anything that can be measured.
    const bool is_any = o->baseline != NULL && tide_gate_config_path(config)[0] == '\0';
    return is_any ? read_any(path, config, out, err) : tide_gate_baseline_read(path, &out->base, err);
}

tide_status cli_check_baseline_load(const cli_check_options *o, const tide_gate_config *config, cli_check_baseline *out,
                                    tide_error *err) {
    *out = (cli_check_baseline){0};
    tide_status st = load(o, config, out, err);
    if (st != TIDE_OK) cli_check_baseline_deinit(out);
    // Whatever is wrong with it, nothing was compared.
    if (st == TIDE_OK || st == TIDE_ERR_NOMEM) return st;
    if (err != NULL) err->status = TIDE_ERR_INCOMPARABLE;
    return TIDE_ERR_INCOMPARABLE;
}

void cli_check_baseline_deinit(cli_check_baseline *b) {
    tide_gate_baseline_deinit(&b->base);
    tide_gate_baseline_deinit(&b->tree);
    *b = (cli_check_baseline){0};
}

// ---- update ----

static const char *who(const cli_check_options *o) {
    const char *const said[] = {o->by, getenv("GIT_AUTHOR_NAME"), getenv("USER")};
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        if (said[i] != NULL && said[i][0] != '\0') return said[i];
    }
    return "unknown";
}

/// The file as it is, or one with nothing in it where there is none.
static tide_status read_or_begin(const char *path, tide_gate_baseline *b, tide_error *err) {
    *b = (tide_gate_baseline){0};
    if (access(path, F_OK) == 0) {
        const tide_status st = tide_gate_baseline_read(path, b, err);
        if (st != TIDE_OK) tide_error_hint(err, "it is left alone: name another file, or take it away first");
        return st;
    }
    b->path = tide_host_strdup(path);
    return b->path != NULL ? TIDE_OK : TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the name of '%s'", path);
}

static tide_status write_baseline(const char *path, const tide_gate_baseline *b, tide_error *err) {
    tide_text text = {0};
    tide_status st = tide_gate_baseline_print(b, &text, err);
    if (st == TIDE_OK) st = tide_write_file(path, tide_text_str(&text), text.len, err);
    tide_text_deinit(&text);
    return st;
}

static void say(const char *path, const tide_gate_baseline *b, bool changed) {
    char clean[4096];
    cli_clean(path, clean, sizeof clean);
    if (!changed) {
        printf("%s: %zu case%s, all as they are; left alone\n", clean, b->cases.n, b->cases.n == 1 ? "" : "s");
        return;
    }
    const tide_gate_update *last = &b->updates[b->n_updates - 1];
    printf("%s: %zu case%s, of which changed: %zu\n", clean, b->cases.n, b->cases.n == 1 ? "" : "s", last->n_changed);
    for (size_t i = 0; i < last->n_changed; i++) printf("  %s\n", cli_clean(last->changed[i], clean, sizeof clean));
    char by[256];
    printf("%s %s: %s\n", last->date, cli_clean(last->by, by, sizeof by), cli_clean(last->reason, clean, sizeof clean));
}

int cli_check_baseline_update(const cli_check_options *o, const tide_gate_config *config,
                              const tide_gate_cases *cases) {
    bool wanted;
    const char *path = path_of(o, config, &wanted);
    tide_error err = TIDE_ERROR_INIT;
    char date[16];
    const time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc) == NULL || strftime(date, sizeof date, "%Y-%m-%d", &utc) == 0) date[0] = '\0';
    const tide_gate_update_info info = {.date = date, .by = who(o), .reason = o->reason};
    tide_gate_baseline b;
    bool changed = false;
    tide_status st = read_or_begin(path, &b, &err);
    if (st == TIDE_OK) st = tide_gate_baseline_update(&b, cases, &info, &changed, &err);
    const bool is_new = access(path, F_OK) != 0;
    if (st == TIDE_OK && (changed || is_new)) st = write_baseline(path, &b, &err);
    if (st == TIDE_OK) say(path, &b, changed);
    tide_gate_baseline_deinit(&b);
    if (st == TIDE_OK) return CLI_EXIT_OK;
    cli_print_error(&err);
    return cli_exit_code(st);
}
