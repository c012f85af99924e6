// SPDX-License-Identifier: MIT
//
// From points to cases. See sweep_cases.h.
#include "cli/sweep_cases.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "analysis/sweep.h"
#include "core/base/host_alloc.h"
#include "core/base/json.h"
#include "planner/planner.h"

static tide_gate_value exact(uint64_t u) { return (tide_gate_value){.known = true, .u = u}; }
static tide_gate_value share(double real) { return (tide_gate_value){.known = true, .real = real}; }

static void put_figures(const tide_sweep_point *p, tide_gate_case *c) {
    c->metrics[TIDE_GATE_PLANNED] = exact(p->planned_bytes);
    c->metrics[TIDE_GATE_TOTAL] = exact(p->total_bytes);
    if (p->process_bytes > 0) c->metrics[TIDE_GATE_PROCESS] = exact(p->process_bytes);
    c->metrics[TIDE_GATE_NAIVE] = exact(p->naive_bytes);
    c->metrics[TIDE_GATE_LOWER_BOUND] = exact(p->lower_bound_bytes);
    c->metrics[TIDE_GATE_PLAN_TIME] = exact(p->plan_time_ns);
    if (p->naive_bytes > 0) c->metrics[TIDE_GATE_SAVING] = share(1 - (double)p->planned_bytes / (double)p->naive_bytes);
    if (p->proved_bytes > 0) c->metrics[TIDE_GATE_GAP] = share((double)p->planned_bytes / (double)p->proved_bytes - 1);
    if (!p->measured) return;
    c->metrics[TIDE_GATE_PEAK] = exact(p->measured_peak_bytes);
    c->metrics[TIDE_GATE_TIME] = exact(p->time_ns);
}

static char *key_of(const tide_sweep_point *p) {
    tide_text key = {0};
    tide_text_addf(&key, "%s [%s%sstrategy=%s", p->model, p->sizes, p->sizes[0] != '\0' ? ", " : "", p->strategy);
    if (p->align_bytes != TIDE_DEFAULT_ALIGN) tide_text_addf(&key, ", align=%" PRIu64, p->align_bytes);
    tide_text_add(&key, "]");
    if (!key.failed) return key.data; // moved out
    tide_text_deinit(&key);
    return NULL;
}

static tide_status fill(const tide_sweep_point *p, tide_gate_case *c, tide_error *err) {
    char align[24];
    c->key = key_of(p);
    c->model = tide_host_strdup(p->model);
    c->signature = tide_host_strdup("");
    c->inputs = tide_host_strdup(p->sizes);
    c->peak_step = tide_host_strdup("");
    if (c->key == NULL || c->model == NULL || c->signature == NULL || c->inputs == NULL || c->peak_step == NULL)
        return TIDE_NO_MEMORY(err, "for a case");
    TIDE_TRY(tide_gate_case_set(c, "strategy", p->strategy, err));
    snprintf(align, sizeof align, "%" PRIu64, p->align_bytes);
    TIDE_TRY(tide_gate_case_set(c, "align", align, err));
    if (p->error == NULL) {
        put_figures(p, c);
        return TIDE_OK;
    }
    return TIDE_COPY_TEXT(&c->error, p->error, err, "for a case");
}

static tide_status add(const tide_sweep_point *p, tide_gate_cases *out, tide_error *err) {
    tide_gate_case c = {0};
    const tide_status st = fill(p, &c, err);
    if (st == TIDE_OK) return tide_gate_cases_add(out, &c, err);
    tide_gate_case_deinit(&c);
    return st;
}

tide_status cli_sweep_cases_read(const char *path, tide_gate_cases *out, tide_error *err) {
    tide_json_reader r = {.path = path, .err = err};
    tide_sweep sweep = {0};
    json_t *doc;
    TIDE_TRY(tide_json_read_file(&r, 0, &doc));
    tide_status st = tide_sweep_of_json(doc, path, &sweep, err);
    json_decref(doc);
    for (size_t i = 0; i < sweep.n && st == TIDE_OK; i++) st = add(&sweep.points[i], out, err);
    tide_sweep_deinit(&sweep);
    return st;
}

/// "schema" is the first key of every document, so its beginning is enough.
bool cli_sweep_cases_is(const char *path) {
    char head[256];
    if (strcmp(path, "-") == 0) return false;        // can be read only once
    const int fd = open(path, O_RDONLY | O_CLOEXEC); // and no stream: that takes memory
    if (fd < 0) return false;
    const ssize_t n = pread(fd, head, sizeof head - 1, 0);
    close(fd);
    head[n > 0 ? n : 0] = '\0';
    const char *at = strstr(head, "\"schema\"");
    if (at == NULL || head[strspn(head, " \t\r\n\xEF\xBB\xBF")] != '{') return false;
    at += strlen("\"schema\"");
    at += strspn(at, " \t\r\n:");
    return strncmp(at, "\"tidemark.sweep\"", strlen("\"tidemark.sweep\"")) == 0;
}
