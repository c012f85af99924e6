// SPDX-License-Identifier: MIT
//
// The outputs of `tidemark check`. If one cannot be written, the others are written all the same.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/check.h"
#include "cli/table.h"
#include "core/base/host_alloc.h"
#include "core/base/output.h"
#include "reports/reports.h"

enum { N_OUTPUTS = 5 };

/// An output file.
typedef struct output {
    const char *option, *path; // path NULL: not wanted
} output;

/// JSON comes last because it contains the exit code, which is 8 if another output failed.
static void list_outputs(const cli_check_options *o, output out[N_OUTPUTS]) {
    out[0] = (output){"--markdown", o->markdown};
    out[1] = (output){"--junit", o->junit};
    out[2] = (output){"--sarif", o->sarif};
    out[3] = (output){"--report", o->report};
    out[4] = (output){"--write-json", o->write_json};
}

// ---- before anything is read ----

static bool is_same(const char *a, const char *b) {
    if (a == NULL || b == NULL || strcmp(a, "-") == 0 || strcmp(b, "-") == 0) return false;
    return strcmp(a, b) == 0 || cli_same_file(a, b);
}

/// Devices and pipes can be written to twice.
static bool is_plain(const char *path) { return strncmp(path, "/dev/", 5) != 0 && strncmp(path, "/proc/", 6) != 0; }

static bool would_replace(const cli_command *cmd, const output *o, const char *read) {
    if (!is_same(o->path, read)) return false;
    char clean[1024];
    cli_usage(cmd, "%s: '%s' is read here; it would be replaced", o->option, cli_clean(o->path, clean, sizeof clean));
    return true;
}

bool cli_check_outputs_differ(const cli_command *cmd, const cli_check_options *o, const tide_gate_config *config) {
    output out[N_OUTPUTS];
    list_outputs(o, out);
    bool wanted;
    size_t n;
    const tide_gate_target *targets = tide_gate_config_targets(config, &n);
    for (size_t i = 0; i < N_OUTPUTS; i++) {
        if (out[i].path == NULL || strcmp(out[i].path, "-") == 0 || !is_plain(out[i].path)) continue;
        if (would_replace(cmd, &out[i], tide_gate_config_path(config)) || would_replace(cmd, &out[i], o->baseline) ||
            would_replace(cmd, &out[i], tide_gate_config_baseline(config, &wanted)))
            return false;
        for (size_t k = 0; k < n; k++) {
            if (would_replace(cmd, &out[i], targets[k].path)) return false;
        }
        for (size_t k = 0; k < i; k++) {
            if (out[k].path == NULL || !is_same(out[i].path, out[k].path)) continue;
            cli_usage(cmd, "%s and %s are to be written to the same file", out[k].option, out[i].option);
            return false;
        }
    }
    return true;
}

// ---- writing ----

/// Exit codes, of each output and of all together: the first that is not CLI_EXIT_OK counts.
static int failed_memory(tide_error *err) {
    TIDE_NO_MEMORY(err, "for an output");
    return cli_fail(err);
}

static int first(int code, int next) { return code != CLI_EXIT_OK ? code : next; }

static void render(const output *o, const tide_gate_result *r, const tide_gate_output_options *opt, tide_text *out) {
    if (strcmp(o->option, "--markdown") == 0)
        tide_gate_print_markdown(r, opt, out);
    else if (strcmp(o->option, "--junit") == 0)
        tide_gate_print_junit(r, out);
    else if (strcmp(o->option, "--sarif") == 0)
        tide_gate_print_sarif(r, out);
    else if (strcmp(o->option, "--report") == 0)
        tide_gate_print_html(r, opt, out);
    else
        tide_gate_print_json(r, out);
}

static int write_one(const output *o, const tide_gate_result *r, const tide_gate_output_options *opt) {
    tide_error err = TIDE_ERROR_INIT;
    tide_text text = {0};
    int code = CLI_EXIT_OK;
    render(o, r, opt, &text);
    if (text.failed)
        code = failed_memory(&err);
    else if (tide_write_file(o->path, tide_text_str(&text), text.len, &err) != TIDE_OK)
        code = cli_fail(&err);
    tide_text_deinit(&text);
    return code;
}

/// Appends: several steps of a job share the file, and a cut summary is worse than none.
static int append(const char *path, const char *data, size_t len) {
    tide_error err = TIDE_ERROR_INIT;
    if (tide_append_file(path, data, len, &err) == TIDE_OK) return CLI_EXIT_OK;
    tide_error_hint(&err, "it is what $GITHUB_STEP_SUMMARY names; --no-summary leaves it alone");
    return cli_fail(&err);
}

static int write_summary(const cli_check_options *o, const tide_gate_result *r, const tide_gate_output_options *opt) {
    const char *path = getenv("GITHUB_STEP_SUMMARY");
    if (o->no_summary || path == NULL || path[0] == '\0') return CLI_EXIT_OK;
    tide_error err = TIDE_ERROR_INIT;
    tide_text text = {0};
    tide_gate_print_markdown(r, opt, &text);
    const int code = text.failed ? failed_memory(&err) : append(path, tide_text_str(&text), text.len);
    tide_text_deinit(&text);
    return code;
}

/// Workflow commands go to standard output, or to stderr if standard output holds a JSON document.
static int write_annotations(const cli_check_options *o, const tide_gate_result *r) {
    if (!o->annotations) return CLI_EXIT_OK;
    tide_error err = TIDE_ERROR_INIT;
    tide_text text = {0};
    tide_gate_print_annotations(r, &text);
    const int code = text.failed ? failed_memory(&err) : CLI_EXIT_OK;
    if (code == CLI_EXIT_OK) fputs(tide_text_str(&text), o->json ? stderr : stdout);
    tide_text_deinit(&text);
    return code;
}

/// Predicted and measured bytes of each kind, for the cases that were run.
static void add_predictions(const tide_gate_result *r, tide_text *out) {
    bool any = false;
    for (size_t i = 0; i < r->n; i++) {
        const tide_gate_case *c = r->cases[i].current;
        if (c == NULL || !c->metrics[TIDE_GATE_PEAK].known) continue;
        char key[256];
        if (!any) tide_text_add(out, "\npredicted and measured, bytes\n");
        any = true;
        tide_text_addf(out, "  case %s\n", cli_clean(c->key, key, sizeof key)); // a name begins no line
        for (int k = 0; k < TIDE_N_KINDS; k++) {
            const tide_gate_value p = c->kinds[TIDE_GATE_PREDICTED][k], m = c->kinds[TIDE_GATE_KIND_PEAK][k];
            if (!p.known || !m.known || (p.u == 0 && m.u == 0)) continue;
            tide_text_addf(out, "    %-13s %14" PRIu64 " %14" PRIu64 " %+11" PRId64 "\n",
                           tide_memory_kind_name((tide_memory_kind)k), p.u, m.u, (int64_t)(p.u - m.u));
        }
    }
}

/// `has_page`: the page of --report was written.
static int print_result(const cli_check_options *o, const tide_gate_result *r, const tide_gate_output_options *opt,
                        bool has_page) {
    char path[1024];
    tide_error err = TIDE_ERROR_INIT;
    tide_text text = {0};
    if (o->json) {
        tide_gate_print_json(r, &text);
        return cli_document_print(&text);
    }
    tide_gate_print_text(r, opt, &text);
    if (o->verbose) add_predictions(r, &text);
    if (has_page) tide_text_addf(&text, "\nreport: %s\n", cli_clean(o->report, path, sizeof path));
    const int code = text.failed ? failed_memory(&err) : CLI_EXIT_OK;
    if (code == CLI_EXIT_OK) fputs(tide_text_str(&text), stdout);
    tide_text_deinit(&text);
    return code;
}

int cli_check_write(const cli_check_options *o, tide_gate_result *r) {
    tide_text style = {0}, script = {0};
    if (o->report != NULL) tide_report_style(&style);
    if (o->report != NULL) tide_report_sorting(&script);
    const tide_gate_output_options opt = {
        .verbose = o->verbose, .style = tide_text_str(&style), .script = tide_text_str(&script)};
    output out[N_OUTPUTS];
    list_outputs(o, out);
    bool has_page = false;
    int code = write_summary(o, r, &opt);
    for (size_t i = 0; i < N_OUTPUTS; i++) {
        if (code != CLI_EXIT_OK) r->exit_code = code;
        if (out[i].path == NULL) continue;
        const int written = write_one(&out[i], r, &opt);
        has_page |= written == CLI_EXIT_OK && out[i].path == o->report;
        code = first(code, written);
    }
    if (style.failed || script.failed) {
        tide_error err = TIDE_ERROR_INIT;
        code = first(code, failed_memory(&err));
    }
    if (code != CLI_EXIT_OK) r->exit_code = code;
    code = first(code, print_result(o, r, &opt, has_page));
    code = first(code, write_annotations(o, r));
    tide_text_deinit(&style);
    tide_text_deinit(&script);
    if (code != CLI_EXIT_OK) r->exit_code = code;
    return r->exit_code;
}
