// SPDX-License-Identifier: MIT
//
// From a sequence that is to run to a program that runs it, if the lower bound with the real alias passes falls: the
// model that chose the sequence rounds a little differently (pass_order_model.h). See pass_recompute.h.
#include "core/base/host_alloc.h"
#include "planner/passes/alias_passes.h"
#include "planner/passes/pass_recompute.h"

/// Names of steps and of nodes that run twice, as a plan file has them.
typedef struct script {
    char **names; ///< [n], owned
    size_t n;
    char **twice; ///< [n_twice], borrowed from the graph
    size_t n_twice;
} script;

static void script_deinit(script *c) {
    for (size_t i = 0; c->names != NULL && i < c->n; i++) tide_host_free(c->names[i]);
    tide_host_free(c->names);
    tide_host_free(c->twice);
}

/// `steps` NULL: all as they stand.
static tide_status write_script(const tide_program *p, const uint32_t *steps, size_t n, script *out, tide_error *err) {
    bool *seen = tide_host_calloc(p->n_steps + 1, sizeof *seen);
    out->names = tide_host_calloc(n + 1, sizeof *out->names);
    out->twice = tide_host_calloc(n + 1, sizeof *out->twice);
    bool ok = seen != NULL && out->names != NULL && out->twice != NULL;
    for (size_t i = 0; ok && i < n; i++) {
        const uint32_t step = steps != NULL ? steps[i] : (uint32_t)i;
        const tide_node *node = &p->graph->nodes[p->steps[step].node];
        tide_text name = {0};
        tide_text_addf(&name, seen[step] ? "%s.again" : "%s", node->name);
        ok = !name.failed;
        out->names[out->n++] = name.data;
        if (seen[step]) out->twice[out->n_twice++] = node->name;
        seen[step] = true;
    }
    tide_host_free(seen);
    return ok ? TIDE_OK : TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the names of %zu steps", n);
}

static tide_status lower_bound(const tide_program *p, const tide_pass_options *opt, uint64_t *bytes, tide_error *err) {
    tide_lifetimes lt;
    TIDE_TRY(tide__alias_passes_run(p, opt, NULL, &lt, NULL, bytes, err));
    tide_lifetimes_deinit(&lt);
    return TIDE_OK;
}

/// *done: the lower bound has fallen; else the program is as it was.
static tide_status apply(tide_program *p, const tide_pass_options *opt, const script *was, const script *will,
                         bool *done, tide_error *err) {
    uint64_t before, after;
    TIDE_TRY(lower_bound(p, opt, &before, err));
    TIDE_TRY(tide_program_follow(p, will->names, will->n, will->twice, will->n_twice, err));
    const tide_status st = lower_bound(p, opt, &after, err);
    *done = st == TIDE_OK && after < before;
    if (*done) return TIDE_OK;
    TIDE_TRY(tide_program_follow(p, was->names, was->n, NULL, 0, st == TIDE_OK ? err : NULL));
    return st;
}

tide_status tide__sequence_apply(tide_program *program, const tide_pass_options *opt, const tide__sequence *s,
                                 bool *done, tide_error *err) {
    script was = {0}, will = {0};
    *done = false;
    tide_status st = write_script(program, NULL, program->n_steps, &was, err);
    if (st == TIDE_OK) st = write_script(program, s->steps, s->n, &will, err);
    if (st == TIDE_OK) st = apply(program, opt, &was, &will, done, err);
    script_deinit(&was);
    script_deinit(&will);
    return st;
}
