// SPDX-License-Identifier: MIT
//
// recompute: which steps run twice, so that a tensor need not be kept across the peak. See passes.h.
//
//     while the peak falls, or fewer steps stand at it:
//         of all that could be repeated to take bytes from the first step at the peak, try the most promising ones;
//         take the one that saves most bytes per work
//     give up what came after the last fall, and every repeat without which the peak is the same
//     do it; should the lower bound with the real alias passes not fall (S23-10), undo it
//
// Trials are counted by pass_order_model.h on a sequence of steps, without touching the program: no kernel is prepared.
//
// Sources: Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost" (drop and compute again); Kirisame et al.
// 2021, "Dynamic Tensor Rematerialization" (bytes per work as the measure); here ahead of time, each candidate measured
// by what it does to the peak.
#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "planner/passes/pass_order_model.h"
#include "planner/passes/pass_recompute.h"

/// Candidates tried at one peak; trials in all, and steps of all trials: what keeps large programs short.
enum { MAX_CANDIDATES = 32, MAX_TRIALS = 2000, MAX_STEPS_TRIED = 2000000 };

typedef struct recompute {
    const tide__fact_source *source;
    const tide_program *program;
    bool *is_able; ///< [n_steps] may run a second time, and does not yet
    double *work;  ///< [n_steps]
    double allowed_work;
    size_t n_trials, n_steps_tried, n_steps_dropped;
    bool is_cut; ///< the trials ended before the candidates, or before all second runs were tried without
} recompute;

static tide_status no_memory(const tide_program *p, tide_error *err) {
    return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to compute anything of '%s' twice", p->graph->name);
}

static const tide_node *node_of(const recompute *x, uint32_t step) {
    return &x->program->graph->nodes[x->program->steps[step].node];
}

// ---- sequences ----

static void sequence_deinit(tide__sequence *s) {
    tide_host_free(s->steps);
    *s = (tide__sequence){0};
}

static tide_status measure(const tide__order_facts *f, tide__trial *out, tide_error *err) {
    tide__order_model m;
    TIDE_TRY(tide__order_model_make(f, false, &m, err));
    uint32_t *order = tide_host_calloc(f->n_steps + 1, sizeof *order);
    uint64_t *transients = tide_host_calloc(f->n_steps + 1, sizeof *transients);
    tide_status st = order != NULL && transients != NULL
                         ? TIDE_OK
                         : TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to try %zu steps", f->n_steps);
    for (uint32_t i = 0; st == TIDE_OK && i < f->n_steps; i++) order[i] = i;
    if (st == TIDE_OK) st = tide__order_model_peak(&m, order, transients, &out->peak_bytes, err);
    out->n_peaks = 0;
    for (size_t i = f->n_steps; st == TIDE_OK && i-- > 0;) {
        if (transients[i] != out->peak_bytes) continue;
        out->n_peaks++;
        out->first_peak = i;
    }
    tide_host_free(order);
    tide_host_free(transients);
    tide__order_model_deinit(&m);
    return st;
}

tide_status tide__sequence_try(const tide__fact_source *source, const tide__sequence *s, tide__trial *out,
                               tide__order_facts *facts, tide_error *err) {
    tide__order_facts f;
    *out = (tide__trial){0};
    TIDE_TRY(tide__order_facts_of(source, s->steps, s->n, &f, err));
    const tide_status st = measure(&f, out, err);
    if (st == TIDE_OK && facts != NULL)
        *facts = f;
    else
        tide__order_facts_deinit(&f);
    return st;
}

static tide_status copy_sequence(const recompute *x, const tide__sequence *s, size_t n_more, tide__sequence *out,
                                 tide_error *err) {
    *out = (tide__sequence){.n = s->n, .extra_work = s->extra_work};
    out->steps = tide_host_calloc(s->n + n_more + 1, sizeof *out->steps);
    if (out->steps == NULL) return no_memory(x->program, err);
    if (s->n > 0) memcpy(out->steps, s->steps, s->n * sizeof *out->steps);
    return TIDE_OK;
}

/// `s` with the steps of `r` run again.
static tide_status repeat(const recompute *x, const tide__sequence *s, const tide__repeat *r, tide__sequence *out,
                          tide_error *err) {
    TIDE_TRY(copy_sequence(x, s, r->n, out, err));
    memmove(out->steps + r->before + r->n, out->steps + r->before, (s->n - r->before) * sizeof *out->steps);
    for (size_t i = 0; i < r->n; i++) out->steps[r->before + i] = s->steps[r->at[i]];
    out->n += r->n;
    out->extra_work += r->work;
    return TIDE_OK;
}

/// Position of the second run of a step; s->n when it runs once.
static size_t second_run(const tide__sequence *s, uint32_t step) {
    size_t n_seen = 0, at = 0;
    for (; at < s->n; at++) {
        if (s->steps[at] == step && ++n_seen == 2) break;
    }
    return at;
}

// ---- choosing ----

/// Bytes saved per work; where the peak stays and fewer steps stand at it, less than any byte.
static double worth(const tide__trial *before, const tide__trial *after, double work) {
    if (after->peak_bytes < before->peak_bytes) return (double)(before->peak_bytes - after->peak_bytes) / (work + 1);
    return (double)(before->n_peaks - after->n_peaks) * 1e-30 / (work + 1);
}

typedef struct best {
    tide__sequence sequence;
    tide__trial trial;
    tide__repeat repeat;
    double worth; ///< 0: none yet
} best;

/// A trial of `s` more, if there is one left.
static bool may_try(recompute *x, const tide__sequence *s) {
    if (x->n_trials == MAX_TRIALS || x->n_steps_tried + s->n > MAX_STEPS_TRIED) {
        x->is_cut = true;
        return false;
    }
    x->n_trials++;
    x->n_steps_tried += s->n;
    return true;
}

static tide_status try_one(recompute *x, const tide__sequence *s, const tide__trial *now, const tide__repeat *r,
                           best *b, tide_error *err) {
    if (s->extra_work + r->work > x->allowed_work || !may_try(x, s)) return TIDE_OK;
    tide__sequence with;
    tide__trial t;
    TIDE_TRY(repeat(x, s, r, &with, err));
    const tide_status st = tide__sequence_try(x->source, &with, &t, NULL, err);
    if (st == TIDE_OK && tide__trial_is_better(&t, now) && worth(now, &t, r->work) > b->worth) {
        sequence_deinit(&b->sequence);
        *b = (best){with, t, *r, worth(now, &t, r->work)};
        return TIDE_OK;
    }
    sequence_deinit(&with);
    return st;
}

/// The best repeat that takes bytes from the first step at the peak.
static tide_status choose(recompute *x, const tide__sequence *s, const tide__trial *now, const tide__order_facts *f,
                          best *b, tide_error *err) {
    tide__repeat list[MAX_CANDIDATES];
    size_t n;
    TIDE_TRY(
        tide__repeats_list(f, s->steps, (uint32_t)now->first_peak, x->is_able, x->work, list, MAX_CANDIDATES, &n, err));
    for (size_t i = 0; i < n; i++) TIDE_TRY(try_one(x, s, now, &list[i], b, err));
    return TIDE_OK;
}

/// One round. *done: nothing helps any more.
static tide_status go_on(recompute *x, tide__sequence *s, tide__trial *now, bool *done, tide_error *err) {
    tide__order_facts f;
    best b = {0};
    TIDE_TRY(tide__sequence_try(x->source, s, now, &f, err));
    const tide_status st = choose(x, s, now, &f, &b, err);
    tide__order_facts_deinit(&f);
    *done = b.worth == 0;
    if (st != TIDE_OK || *done) {
        sequence_deinit(&b.sequence);
        return st;
    }
    for (size_t i = 0; i < b.repeat.n; i++) x->is_able[s->steps[b.repeat.at[i]]] = false;
    sequence_deinit(s);
    *s = b.sequence;
    *now = b.trial;
    return TIDE_OK;
}

/// From the program's own sequence in `out` to the one with the smallest peak found.
static tide_status search(recompute *x, tide__sequence *out, tide__trial *out_trial, tide_error *err) {
    tide__sequence s;
    TIDE_TRY(copy_sequence(x, out, 0, &s, err));
    tide_status st = tide__sequence_try(x->source, &s, out_trial, NULL, err);
    for (bool done = false; st == TIDE_OK && !done;) {
        tide__trial now;
        st = go_on(x, &s, &now, &done, err);
        if (st != TIDE_OK || done || now.peak_bytes >= out_trial->peak_bytes) continue;
        sequence_deinit(out);
        st = copy_sequence(x, &s, 0, out, err);
        *out_trial = now;
    }
    sequence_deinit(&s);
    return st;
}

/// Trials without a second run have as many steps of their own.
static bool may_drop(recompute *x, const tide__sequence *s) {
    if (x->n_steps_dropped + s->n > MAX_STEPS_TRIED) {
        x->is_cut = true;
        return false;
    }
    x->n_steps_dropped += s->n;
    return true;
}

/// Drop the second run of `step` if the peak is no larger without it.
static tide_status drop_if_idle(recompute *x, tide__sequence *s, uint32_t step, const tide__trial *t, bool *dropped,
                                tide_error *err) {
    const size_t at = second_run(s, step);
    if (at == s->n || !may_drop(x, s)) return TIDE_OK;
    tide__sequence without;
    tide__trial trial;
    TIDE_TRY(copy_sequence(x, s, 0, &without, err));
    memmove(without.steps + at, without.steps + at + 1, (s->n - at - 1) * sizeof *without.steps);
    without.n--;
    without.extra_work -= x->work[step];
    const tide_status st = tide__sequence_try(x->source, &without, &trial, NULL, err);
    if (st == TIDE_OK && trial.peak_bytes <= t->peak_bytes) {
        sequence_deinit(s);
        *s = without;
        *dropped = true;
    } else {
        sequence_deinit(&without);
    }
    return st;
}

/// The latest first, then those that it was made of; again, as long as one goes: another one may be idle without it.
static tide_status drop_idle(recompute *x, tide__sequence *s, const tide__trial *t, tide_error *err) {
    uint8_t *n_runs = tide_host_calloc(x->program->n_steps + 1, sizeof *n_runs);
    if (n_runs == NULL) return no_memory(x->program, err);
    for (size_t at = 0; at < s->n; at++) n_runs[s->steps[at]]++;
    tide_status st = TIDE_OK;
    for (bool dropped = true; dropped && st == TIDE_OK;) {
        dropped = false;
        for (uint32_t step = (uint32_t)x->program->n_steps; step-- > 0 && st == TIDE_OK;) {
            if (n_runs[step] == 2) st = drop_if_idle(x, s, step, t, &dropped, err);
        }
    }
    tide_host_free(n_runs);
    return st;
}

// ---- who may run twice ----

static bool makes_output(const tide_graph *g, const tide_node *n) {
    for (size_t i = 0; i < n->n_outputs; i++) {
        if (n->outputs[i] != TIDE_NO_VALUE && g->values[n->outputs[i]].is_output) return true;
    }
    return false;
}

/// What runs twice already does not run a third time.
static tide_status rule_out_twins(recompute *x, tide_error *err) {
    const tide_program *p = x->program;
    if (p->n_twins == 0) return TIDE_OK;
    bool *is_twin = tide_host_calloc(p->graph->n_nodes + 1, sizeof *is_twin);
    if (is_twin == NULL) return no_memory(p, err);
    for (size_t i = 0; i < p->n_twins; i++) is_twin[p->twins[i].first] = is_twin[p->twins[i].again] = true;
    for (uint32_t k = 0; k < p->n_steps; k++) {
        if (is_twin[p->steps[k].node]) x->is_able[k] = false;
    }
    tide_host_free(is_twin);
    return TIDE_OK;
}

/// As tide_program_repeat asks: the only one of its name, "<name>.again" free, the same result every time.
static tide_status fill_able(recompute *x, tide_error *err) {
    const tide_program *p = x->program;
    tide_strmap count = {0};
    tide_status st = TIDE_OK;
    for (uint32_t i = 0; i < p->n_steps && st == TIDE_OK; i++) {
        uint64_t n = 0;
        (void)tide_strmap_get(&count, node_of(x, i)->name, &n);
        if (tide_strmap_put(&count, node_of(x, i)->name, n + 1) != TIDE_OK) st = no_memory(p, err);
    }
    for (uint32_t i = 0; i < p->n_steps && st == TIDE_OK; i++) {
        const tide_node *n = node_of(x, i);
        uint64_t n_of_name = 0;
        tide_text again = {0};
        tide_text_addf(&again, "%s.again", n->name);
        (void)tide_strmap_get(&count, n->name, &n_of_name);
        x->is_able[i] = n_of_name == 1 && !again.failed && !tide_strmap_get(&count, again.data, NULL) &&
                        !makes_output(p->graph, n) && n->def != NULL && (n->def->flags & TIDE_OP_NO_FOLD) == 0;
        tide_text_deinit(&again);
    }
    tide_strmap_deinit(&count);
    return st == TIDE_OK ? rule_out_twins(x, err) : st;
}

// ---- the whole ----

static tide_status prepare(recompute *x, double share, tide_error *err) {
    const size_t n = x->program->n_steps;
    x->is_able = tide_host_calloc(n + 1, sizeof *x->is_able);
    x->work = tide_host_calloc(n + 1, sizeof *x->work);
    if (x->is_able == NULL || x->work == NULL) return no_memory(x->program, err);
    double total;
    TIDE_TRY(tide__program_work(x->program, x->source->opt, x->work, &total, err));
    x->allowed_work = share * total;
    return fill_able(x, err);
}

/// What is to run, from the steps as they stand.
static tide_status find(recompute *x, tide__sequence *s, tide_error *err) {
    const size_t n = x->program->n_steps;
    s->steps = tide_host_calloc(n + 1, sizeof *s->steps);
    if (s->steps == NULL) return no_memory(x->program, err);
    for (uint32_t i = 0; i < n; i++) s->steps[s->n++] = i;
    TIDE_TRY(prepare(x, x->source->opt->recompute_share, err));
    tide__trial t;
    TIDE_TRY(search(x, s, &t, err));
    return s->n > n ? drop_idle(x, s, &t, err) : TIDE_OK;
}

static tide_status run(tide_program *program, recompute *x, size_t *n, double *extra_work, tide_error *err) {
    tide__sequence s = {0};
    bool done = false;
    const size_t n_given = program->n_steps;
    tide_status st = find(x, &s, err);
    if (st == TIDE_OK && s.n > n_given) st = tide__sequence_apply(program, x->source->opt, &s, &done, err);
    if (done) {
        *n = s.n - n_given;
        *extra_work = s.extra_work;
    }
    sequence_deinit(&s);
    return st;
}

tide_status tide_pass_recompute(tide_program *program, const tide_pass_options *opt, size_t *n, double *extra_work,
                                bool *is_cut, tide_error *err) {
    *n = 0;
    *extra_work = 0;
    *is_cut = false;
    if (!(opt->recompute_share > 0) || program->n_steps == 0) return TIDE_OK;
    tide__fact_source source;
    TIDE_TRY(tide__fact_source_init(&source, program, opt, err));
    recompute x = {.source = &source, .program = program};
    const tide_status st = run(program, &x, n, extra_work, err);
    *is_cut = x.is_cut;
    tide_host_free(x.is_able);
    tide_host_free(x.work);
    tide__fact_source_deinit(&source);
    return st;
}
