// SPDX-License-Identifier: MIT
//
// Settings of a gate as planning takes them, and as the words that a baseline keeps.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/measure_internal.h"
#include "core/base/host_alloc.h"
#include "core/ops/ops.h"

// ---- to planning ----

static tide_status add_shape(cli_shapes *shapes, const char *text, tide_error *err) {
    const char *eq = strrchr(text, '=');
    tide_shape shape;
    if (eq == NULL || eq == text)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "shape '%s' is not of the form NAME=1x3x224x224", text);
    TIDE_TRY(tide_shape_parse(eq + 1, &shape, err));
    char *name = tide_host_strndup(text, (size_t)(eq - text));
    if (name == NULL || tide_host_grow(&shapes->items, &shapes->cap, shapes->n + 1, sizeof *shapes->items) != TIDE_OK ||
        tide_host_grow(&shapes->names, &shapes->cap_names, shapes->n + 1, sizeof *shapes->names) != TIDE_OK) {
        tide_host_free(name);
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for shape '%s'", text);
    }
    shapes->names[shapes->n] = name;
    shapes->items[shapes->n++] = (tide_shape_binding){.name = name, .shape = shape};
    return TIDE_OK;
}

static uint64_t node_limit(const tide_gate_plan_settings *s) {
    return s->node_limit != 0 ? s->node_limit : CLI_MEASURE_NODE_LIMIT;
}

tide_status cli__measure_planning(const tide_gate_plan_settings *s, cli_planning *out, tide_error *err) {
    *out = (cli_planning){.strategy = s->strategy,
                          .no_fuse = s->no_fuse,
                          .recompute_share = s->recompute_share,
                          .align_bytes = s->align_bytes,
                          .seed = s->seed,
                          .node_limit = node_limit(s), // and no time limit: the same plan every time
                          .n_threads = 1,
                          .extents = s->extents,
                          .n_extents = s->n_extents,
                          .input_dir = s->input_dir};
    for (int p = 0; p < TIDE_N_PASSES; p++) out->no_pass[p] = (s->no_passes >> p & 1) != 0;
    const tide_strategy *strategy;
    tide_status st = cli_strategy(out, &strategy, err);
    for (size_t i = 0; st == TIDE_OK && i < s->n_shapes; i++) st = add_shape(&out->shapes, s->shapes[i], err);
    if (st != TIDE_OK) cli_planning_deinit(out);
    return st;
}

// ---- into words ----

static tide_status put(tide_gate_case *c, tide_error *err, const char *key, const char *fmt, ...) TIDE_PRINTF(4, 5);
static tide_status put(tide_gate_case *c, tide_error *err, const char *key, const char *fmt, ...) {
    char value[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(value, sizeof value, fmt, ap);
    va_end(ap);
    return tide_gate_case_set(c, key, value, err);
}

static tide_status put_passes(tide_gate_case *c, const tide_gate_plan_settings *s, tide_error *err) {
    tide_text list = {0};
    for (int p = 0; p < TIDE_N_PASSES; p++) {
        const bool is_on = (s->no_passes >> p & 1) == 0 && (p != TIDE_PASS_RECOMPUTE || s->recompute_share > 0);
        if (is_on) tide_text_addf(&list, "%s%s", list.len > 0 ? " " : "", tide_pass_name((tide_pass)p));
    }
    const tide_status st = list.failed ? TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the names of passes")
                                       : tide_gate_case_set(c, "passes", list.len > 0 ? list.data : "none", err);
    tide_text_deinit(&list);
    return st;
}

/// What kernels size their scratch by (tide_gate_setting_is_of_machine).
static tide_status put_machine(tide_gate_case *c, tide_error *err) {
    char caches[256], library[64];
    TIDE_TRY(put(c, err, "caches", "%s", tide_ops_caches(caches, sizeof caches)));
    TIDE_TRY(put(c, err, "instructions", "%s", tide_ops_instructions()));
    TIDE_TRY(put(c, err, "library", "%s", tide_ops_library(library, sizeof library)));
    return put(c, err, "threads", "%u", (unsigned)tide_ops_threads()); // of a kernel: its scratch grows with them
}

static tide_status put_run(tide_gate_case *c, const tide_gate_plan_settings *s, tide_error *err) {
    TIDE_TRY(put(c, err, "runs", "%" PRIu64, cli_measure_runs(s)));
    TIDE_TRY(put(c, err, "contexts", "%" PRIu64, cli_measure_contexts(s)));
    TIDE_TRY(put(c, err, "allocator", "%s", s->allocator != NULL ? s->allocator : "cpu"));
    return s->limit_bytes > 0 ? put(c, err, "limit", "%" PRIu64, s->limit_bytes) : TIDE_OK;
}

tide_status cli__measure_put_settings(tide_gate_case *c, const tide_gate_plan_settings *s, tide_error *err) {
    TIDE_TRY(put(c, err, "fuse", "%s", s->no_fuse ? "off" : "on"));
    TIDE_TRY(put_passes(c, s, err));
    if (s->recompute_share > 0) TIDE_TRY(put(c, err, "recompute", "%.6g %%", s->recompute_share * 100));
    TIDE_TRY(put(c, err, "seed", "%" PRIu64, s->seed));
    TIDE_TRY(put(c, err, "node_limit", "%" PRIu64, node_limit(s)));
    TIDE_TRY(put_machine(c, err));
    return s->run ? put_run(c, s, err) : TIDE_OK;
}

static void add_signature(tide_text *t, const tide_graph *g, const uint32_t *values, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const tide_value *v = &g->values[values[i]];
        tide_text_addf(t, "%s%s %s", i > 0 ? ", " : "", v->name, tide_dtype_name(v->dtype));
    }
}

tide_status cli__measure_put_graph(tide_gate_case *c, const tide_graph *g, tide_error *err) {
    tide_text signature = {0}, inputs = {0};
    add_signature(&signature, g, g->inputs, g->n_inputs);
    tide_text_add(&signature, " -> ");
    add_signature(&signature, g, g->outputs, g->n_outputs);
    for (size_t i = 0; i < g->n_inputs; i++) {
        const tide_value *v = &g->values[g->inputs[i]];
        char shape[256];
        cli_shape_text(&v->shape, shape, sizeof shape);
        tide_text_addf(&inputs, "%s%s%s%s", i > 0 ? ", " : "", v->name, shape[0] != '\0' ? " " : "", shape);
    }
    tide_host_free(c->signature);
    tide_host_free(c->inputs);
    c->signature = tide_host_strdup(tide_text_str(&signature));
    c->inputs = tide_host_strdup(tide_text_str(&inputs));
    const bool good = !signature.failed && !inputs.failed && c->signature != NULL && c->inputs != NULL;
    tide_text_deinit(&signature);
    tide_text_deinit(&inputs);
    return good ? TIDE_OK : TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the inputs of '%s'", g->name);
}
