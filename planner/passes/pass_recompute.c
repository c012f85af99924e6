// SPDX-License-Identifier: MIT
//
// recompute: which steps run twice, so that a tensor need not be kept across the peak. See passes.h.
//
//     while the peak falls, or fewer steps stand at it:
//         of all that could be repeated to take bytes from the first step at the peak, try the most promising ones;
//         take the one that saves most bytes per work
//     undo what came after the last fall, and every repetition without which the peak is the same
//     apply it; where the lower bound with the real alias passes does not fall (S23-10), undo it
//
// Trials are counted by pass_order_model.h on a sequence of steps, without touching the program: no kernel is prepared.
//
// Sources: Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost" (drop and compute again); Kirisame et al.
// 2021, "Dynamic Tensor Rematerialization" (bytes per work as the measure); here ahead of time, each candidate measured
// by what it does to the peak.
#include "planner/passes/pass_recompute.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "planner/passes/pass_alias.h"
#include "planner/passes/pass_order_model.h"

// ---- the work of the steps ----

static tide_operand operand_of(const tide_graph *g, uint32_t value_i) {
    tide_operand o = {.dtype = TIDE_DTYPE_UNDEFINED};
    if (value_i == TIDE_NO_VALUE) return o;
    const tide_value *v = &g->values[value_i];
    const void *data = NULL;
    if (v->dtype == TIDE_DTYPE_UNDEFINED || !v->has_shape || !tide_shape_known(&v->shape)) return o;
    o.dtype = v->dtype;
    o.shape = v->shape;
    if (tide_shape_bytes(&o.shape, o.dtype, &o.size_bytes, NULL) != TIDE_OK)
        return (tide_operand){.dtype = TIDE_DTYPE_UNDEFINED};
    if (v->constant != NULL && tide_tensor_read(v->constant, &data, NULL) == TIDE_OK) o.data = (void *)(uintptr_t)data;
    return o;
}

static double work_of(const tide_infer *x, bool views_are_free) {
    const tide_op_def *def = x->node->def;
    if (def != NULL && def->work != NULL) return def->work(x);
    if (def != NULL && views_are_free && tide_op_alias_of(def, x, 0, 0).kind == TIDE_OP_ALIAS_VIEW) return 0;
    double elements = 0;
    for (size_t k = 0; k < x->n_out; k++) {
        if (!tide_operand_present(&x->out[k])) continue;
        const size_t n_elements = x->out[k].size_bytes / tide_dtype_size(x->out[k].dtype);
        elements += (double)n_elements;
    }
    return elements;
}

tide_status tide__program_work(const tide_program *program, const tide_pass_options *opt, double *per_step,
                               double *total, tide_error *err) {
    const tide_graph *g = program->graph;
    double sum = 0;
    for (size_t step = 0; step < program->n_steps; step++) {
        const tide_node *n = &g->nodes[program->steps[step].node];
        tide_operand *in;
        TIDE_TRY(TIDE_NEW(&in, n->n_inputs + n->n_outputs + 1, err, "for the work of node '%s'", n->name));
        tide_operand *out = in + n->n_inputs;
        for (size_t k = 0; k < n->n_inputs; k++) in[k] = operand_of(g, n->inputs[k]);
        for (size_t k = 0; k < n->n_outputs; k++) out[k] = operand_of(g, n->outputs[k]);
        const tide_infer x = {.node = n, .in = in, .n_in = n->n_inputs, .out = out, .n_out = n->n_outputs};
        const double work = tide_node_is_dynamic(g, n) ? 0 : work_of(&x, !opt->off[TIDE_PASS_VIEWS]);
        tide_host_free(in);
        if (per_step != NULL) per_step[step] = work;
        sum += work;
    }
    if (total != NULL) *total = sum;
    return TIDE_OK;
}

// ---- what could be repeated ----
//
//     position      peak          before
//     t made        |  t waits    t again | reader of t
//     ----o---------#-------------o-------o-------->      t need not be alive at the peak; its inputs must be there
//                                                         again, or be made again too

/// The tensor to be made again rather than kept: which steps run a second time, right before which position.
typedef struct repetition {
    uint32_t at[4]; ///< positions of their first runs, rising
    size_t n;
    uint32_t before;
    uint64_t bytes; ///< of the tensor, which need not be kept across the peak then
    double work;
} repetition;

enum { MAX_CHAIN = 3 };

/// Readers of each tensor around the peak.
typedef struct reads {
    uint32_t next; ///< the first behind the peak; TIDE_NO_INDEX
    uint32_t last; ///< of all; 0 with none
    bool at_peak;
} reads;

typedef struct lister {
    const tide__order_facts *f;
    const uint32_t *sequence;
    uint32_t peak;
    const bool *is_able;
    const double *work;
    reads *of;           ///< [n_tensors]
    tide__table read_by; ///< tensors, by step
} lister;

static void note_reads(const lister *l) {
    for (size_t t = 0; t < l->f->n_tensors; t++) l->of[t] = (reads){.next = TIDE_NO_INDEX};
    for (size_t i = 0; i < l->f->reads.n; i++) {
        const uint32_t at = l->f->reads.list[i].step;
        reads *r = &l->of[l->f->reads.list[i].other];
        if (at > l->peak && at < r->next) r->next = at;
        if (at > r->last) r->last = at;
        if (at == l->peak) r->at_peak = true;
    }
}

static bool add_step(const lister *l, repetition *r, uint32_t at) {
    for (size_t i = 0; i < r->n; i++) {
        if (r->at[i] == at) return true;
    }
    if (r->n == sizeof r->at / sizeof r->at[0] || !l->is_able[l->sequence[at]]) return false;
    size_t i = r->n++;
    for (; i > 0 && r->at[i - 1] > at; i--) r->at[i] = r->at[i - 1];
    r->at[i] = at;
    r->work += l->work[l->sequence[at]];
    return true;
}

/// Run the step at `at` again and, down to `depth` makers, those whose results are gone by then. What cannot be made
/// again is kept instead: the trial shows what that costs.
static bool collect(const lister *l, repetition *r, uint32_t at, int depth) {
    if (!add_step(l, r, at)) return false;
    const tide__span span = tide__table_span(&l->read_by, at);
    for (uint32_t i = 0; i < span.n && depth > 1; i++) {
        const uint32_t t = l->read_by.items[span.first + i];
        if (l->of[t].last >= r->before) continue;
        (void)collect(l, r, l->f->tensors[t].maker, depth - 1);
    }
    return true;
}

static int most_for_least(const void *a, const void *b) {
    const repetition *x = a, *y = b;
    const double x_rate = (double)x->bytes / (x->work + 1), y_rate = (double)y->bytes / (y->work + 1);
    if (x_rate != y_rate) return x_rate > y_rate ? -1 : 1;
    if (x->at[0] != y->at[0]) return x->at[0] < y->at[0] ? -1 : 1;
    if (x->n != y->n) return x->n < y->n ? -1 : 1;
    return (x->before > y->before) - (x->before < y->before);
}

static bool is_candidate(const lister *l, uint32_t t) {
    const tide__fact_tensor *x = &l->f->tensors[t];
    return x->maker < l->peak && !l->of[t].at_peak && l->of[t].next != TIDE_NO_INDEX;
}

/// All chains of all candidates; `all` has room for them.
static size_t list_all(const lister *l, repetition *all) {
    size_t n = 0;
    for (uint32_t t = 0; t < l->f->n_tensors; t++) {
        if (!is_candidate(l, t)) continue;
        size_t n_before = 0;
        for (int depth = 1; depth <= MAX_CHAIN; depth++) {
            repetition r = {.before = l->of[t].next, .bytes = l->f->tensors[t].size_bytes};
            if (!collect(l, &r, l->f->tensors[t].maker, depth) || r.n == n_before) break;
            n_before = r.n;
            all[n++] = r;
        }
    }
    qsort(all, n, sizeof *all, most_for_least);
    return n;
}

/**
 * What could be repeated to take bytes from position `peak`: tensors that are alive there, not touched there, and read
 * later, each made again from what is alive by then, with up to two makers of its inputs.
 *
 * @param is_able  [program->n_steps] whether a step may run a second time
 * @param out      the caller's array, room for `max`; *n: how many there are, most bytes per work first
 */
static tide_status list_repeats(const tide__order_facts *f, const uint32_t *sequence, uint32_t peak,
                                const bool *is_able, const double *work, repetition *out, size_t max, size_t *n,
                                tide_error *err) {
    lister l = {.f = f, .sequence = sequence, .peak = peak, .is_able = is_able, .work = work};
    l.of = tide_host_calloc(f->n_tensors + 1, sizeof *l.of);
    repetition *all = tide_host_calloc(f->n_tensors + 1, MAX_CHAIN * sizeof *all);
    tide_status st = TIDE_OK;
    if (l.of != NULL && all != NULL && tide__table_make(&l.read_by, f->reads.list, f->reads.n, f->n_steps, true)) {
        note_reads(&l);
        const size_t n_all = list_all(&l, all);
        *n = n_all < max ? n_all : max;
        for (size_t i = 0; i < *n; i++) out[i] = all[i];
    } else {
        st = TIDE_NO_MEMORY(err, "to choose what is computed twice");
    }
    tide__table_deinit(&l.read_by);
    tide_host_free(l.of);
    tide_host_free(all);
    return st;
}

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

static const tide_node *node_of(const recompute *x, uint32_t step) {
    return &x->program->graph->nodes[x->program->steps[step].node];
}

// ---- sequences ----

/// What running a sequence costs, as pass_order_model.h counts it.
typedef struct trial_cost {
    uint64_t peak_bytes;
    size_t n_peaks;    ///< steps that cost as much
    size_t first_peak; ///< the first of them
} trial_cost;

static inline bool is_better_trial(const trial_cost *a, const trial_cost *b) {
    return a->peak_bytes < b->peak_bytes || (a->peak_bytes == b->peak_bytes && a->n_peaks < b->n_peaks);
}

/// A program with some steps run twice, as a sequence of its steps.
typedef struct sequence {
    uint32_t *steps; ///< [n], owned
    size_t n;
    double extra_work;
} sequence;

static void sequence_deinit(sequence *s) {
    tide_host_free(s->steps);
    *s = (sequence){0};
}

static tide_status measure(const tide__order_facts *f, trial_cost *out, tide_error *err) {
    tide__order_model m;
    TIDE_TRY(tide__order_model_make(f, false, &m, err));
    uint32_t *order = tide_host_calloc(f->n_steps + 1, sizeof *order);
    uint64_t *transients = tide_host_calloc(f->n_steps + 1, sizeof *transients);
    tide_status st =
        order != NULL && transients != NULL ? TIDE_OK : TIDE_NO_MEMORY(err, "to try %zu steps", f->n_steps);
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

/// @param facts  out, may be NULL: of the sequence; tide__order_facts_deinit
static tide_status try_sequence(const tide__fact_source *source, const sequence *s, trial_cost *out,
                                tide__order_facts *facts, tide_error *err) {
    tide__order_facts f;
    *out = (trial_cost){0};
    TIDE_TRY(tide__order_facts_of(source, s->steps, s->n, &f, err));
    const tide_status st = measure(&f, out, err);
    if (st == TIDE_OK && facts != NULL)
        *facts = f;
    else
        tide__order_facts_deinit(&f);
    return st;
}

static tide_status copy_sequence(const recompute *x, const sequence *s, size_t n_more, sequence *out, tide_error *err) {
    *out = (sequence){.n = s->n, .extra_work = s->extra_work};
    TIDE_TRY(
        TIDE_NEW(&out->steps, s->n + n_more + 1, err, "to compute anything of '%s' twice", x->program->graph->name));
    if (s->n > 0) memcpy(out->steps, s->steps, s->n * sizeof *out->steps);
    return TIDE_OK;
}

/// `s` with the steps of `r` run again.
static tide_status repeat(const recompute *x, const sequence *s, const repetition *r, sequence *out, tide_error *err) {
    TIDE_TRY(copy_sequence(x, s, r->n, out, err));
    memmove(out->steps + r->before + r->n, out->steps + r->before, (s->n - r->before) * sizeof *out->steps);
    for (size_t i = 0; i < r->n; i++) out->steps[r->before + i] = s->steps[r->at[i]];
    out->n += r->n;
    out->extra_work += r->work;
    return TIDE_OK;
}

/// Position of the second run of a step; s->n when it runs once.
static size_t second_run(const sequence *s, uint32_t step) {
    size_t n_seen = 0, at = 0;
    for (; at < s->n; at++) {
        if (s->steps[at] == step && ++n_seen == 2) break;
    }
    return at;
}

// ---- choosing ----

/// Bytes saved per work; where the peak stays and fewer steps stand at it, less than any byte.
static double worth(const trial_cost *before, const trial_cost *after, double work) {
    if (after->peak_bytes < before->peak_bytes) return (double)(before->peak_bytes - after->peak_bytes) / (work + 1);
    return (double)(before->n_peaks - after->n_peaks) * 1e-30 / (work + 1);
}

typedef struct best {
    sequence sequence;
    trial_cost trial;
    repetition repeat;
    double worth; ///< 0: none yet
} best;

/// Whether one more trial of `s` is within the limits; counts it.
static bool may_try(recompute *x, const sequence *s) {
    if (x->n_trials == MAX_TRIALS || x->n_steps_tried + s->n > MAX_STEPS_TRIED) {
        x->is_cut = true;
        return false;
    }
    x->n_trials++;
    x->n_steps_tried += s->n;
    return true;
}

static tide_status try_one(recompute *x, const sequence *s, const trial_cost *now, const repetition *r, best *b,
                           tide_error *err) {
    if (s->extra_work + r->work > x->allowed_work || !may_try(x, s)) return TIDE_OK;
    sequence with;
    trial_cost t;
    TIDE_TRY(repeat(x, s, r, &with, err));
    const tide_status st = try_sequence(x->source, &with, &t, NULL, err);
    if (st == TIDE_OK && is_better_trial(&t, now) && worth(now, &t, r->work) > b->worth) {
        sequence_deinit(&b->sequence);
        *b = (best){with, t, *r, worth(now, &t, r->work)};
        return TIDE_OK;
    }
    sequence_deinit(&with);
    return st;
}

/// The best repeat that takes bytes from the first step at the peak.
static tide_status choose(recompute *x, const sequence *s, const trial_cost *now, const tide__order_facts *f, best *b,
                          tide_error *err) {
    repetition list[MAX_CANDIDATES];
    size_t n = 0;
    TIDE_TRY(list_repeats(f, s->steps, (uint32_t)now->first_peak, x->is_able, x->work, list, MAX_CANDIDATES, &n, err));
    for (size_t i = 0; i < n; i++) TIDE_TRY(try_one(x, s, now, &list[i], b, err));
    return TIDE_OK;
}

/// One round. *done: no repetition helps.
static tide_status go_on(recompute *x, sequence *s, trial_cost *now, bool *done, tide_error *err) {
    tide__order_facts f;
    best b = {0};
    TIDE_TRY(try_sequence(x->source, s, now, &f, err));
    const tide_status st = choose(x, s, now, &f, &b, err);
    tide__order_facts_deinit(&f);
    *done = b.worth == 0;
    if (st != TIDE_OK || *done) {
        sequence_deinit(&b.sequence);
        return st;
    }
    for (size_t i = 0; i < b.repeat.n; i++) x->is_able[s->steps[b.repeat.at[i]]] = false;
    sequence_deinit(s);
    TIDE_ASSERT(b.sequence.extra_work <= x->allowed_work);
    *s = b.sequence;
    *now = b.trial;
    return TIDE_OK;
}

/// From the program's own sequence in `out` to the one with the smallest peak found.
static tide_status search(recompute *x, sequence *out, trial_cost *out_trial, tide_error *err) {
    sequence s;
    TIDE_TRY(copy_sequence(x, out, 0, &s, err));
    tide_status st = try_sequence(x->source, &s, out_trial, NULL, err);
    for (bool done = false; st == TIDE_OK && !done;) {
        trial_cost now;
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
static bool may_drop(recompute *x, const sequence *s) {
    if (x->n_steps_dropped + s->n > MAX_STEPS_TRIED) {
        x->is_cut = true;
        return false;
    }
    x->n_steps_dropped += s->n;
    return true;
}

/// Drop the second run of `step` if the peak is no larger without it.
static tide_status drop_if_idle(recompute *x, sequence *s, uint32_t step, const trial_cost *t, bool *dropped,
                                tide_error *err) {
    const size_t at = second_run(s, step);
    if (at == s->n || !may_drop(x, s)) return TIDE_OK;
    sequence without;
    trial_cost trial;
    TIDE_TRY(copy_sequence(x, s, 0, &without, err));
    memmove(without.steps + at, without.steps + at + 1, (s->n - at - 1) * sizeof *without.steps);
    without.n--;
    without.extra_work -= x->work[step];
    const tide_status st = try_sequence(x->source, &without, &trial, NULL, err);
    if (st == TIDE_OK && trial.peak_bytes <= t->peak_bytes) {
        sequence_deinit(s);
        *s = without;
        *dropped = true;
    } else {
        sequence_deinit(&without);
    }
    return st;
}

/// The latest first, then those that it was made of. Repeated while one is dropped, as another may be idle without it.
static tide_status drop_idle(recompute *x, sequence *s, const trial_cost *t, tide_error *err) {
    uint8_t *n_runs;
    TIDE_TRY(
        TIDE_NEW(&n_runs, x->program->n_steps + 1, err, "to compute anything of '%s' twice", x->program->graph->name));
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

// ---- which steps may run twice ----

static bool makes_output(const tide_graph *g, const tide_node *n) {
    for (size_t i = 0; i < n->n_outputs; i++) {
        const tide_value *v = n->outputs[i] != TIDE_NO_VALUE ? &g->values[n->outputs[i]] : NULL;
        if (v != NULL && (v->is_output || v->is_dynamic)) return true;
    }
    return false;
}

/// What runs twice already does not run a third time.
static tide_status rule_out_twins(recompute *x, tide_error *err) {
    const tide_program *p = x->program;
    if (p->n_twins == 0) return TIDE_OK;
    bool *is_twin;
    TIDE_TRY(TIDE_NEW(&is_twin, p->graph->n_nodes + 1, err, "to compute anything of '%s' twice", p->graph->name));
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
        if (tide_strmap_put(&count, node_of(x, i)->name, n + 1) != TIDE_OK)
            st = TIDE_NO_MEMORY(err, "to compute anything of '%s' twice", p->graph->name);
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

// ---- from a sequence to a program that runs it ----
//
// Only if the lower bound with the real alias passes falls: the model that chose the sequence rounds a little
// differently (pass_order_model.h).

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
    return ok ? TIDE_OK : TIDE_NO_MEMORY(err, "for the names of %zu steps", n);
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

/// Make the program run the sequence; *done: its lower bound has fallen. Else it is as it was.
static tide_status apply_sequence(tide_program *program, const tide_pass_options *opt, const sequence *s, bool *done,
                                  tide_error *err) {
    script was = {0}, will = {0};
    *done = false;
    tide_status st = write_script(program, NULL, program->n_steps, &was, err);
    if (st == TIDE_OK) st = write_script(program, s->steps, s->n, &will, err);
    if (st == TIDE_OK) st = apply(program, opt, &was, &will, done, err);
    script_deinit(&was);
    script_deinit(&will);
    return st;
}

// ---- entry points ----

static tide_status prepare(recompute *x, double share, tide_error *err) {
    const size_t n = x->program->n_steps;
    x->is_able = tide_host_calloc(n + 1, sizeof *x->is_able);
    x->work = tide_host_calloc(n + 1, sizeof *x->work);
    if (x->is_able == NULL || x->work == NULL)
        return TIDE_NO_MEMORY(err, "to compute anything of '%s' twice", x->program->graph->name);
    double total;
    TIDE_TRY(tide__program_work(x->program, x->source->opt, x->work, &total, err));
    x->allowed_work = share * total;
    return fill_able(x, err);
}

/// What is to run, from the steps as they stand.
static tide_status find(recompute *x, sequence *s, tide_error *err) {
    const size_t n = x->program->n_steps;
    TIDE_TRY(TIDE_NEW(&s->steps, n + 1, err, "to compute anything of '%s' twice", x->program->graph->name));
    for (uint32_t i = 0; i < n; i++) s->steps[s->n++] = i;
    TIDE_TRY(prepare(x, x->source->opt->recompute_share, err));
    trial_cost t;
    TIDE_TRY(search(x, s, &t, err));
    return s->n > n ? drop_idle(x, s, &t, err) : TIDE_OK;
}

static tide_status run(tide_program *program, recompute *x, size_t *n, double *extra_work, tide_error *err) {
    sequence s = {0};
    bool done = false;
    const size_t n_given = program->n_steps;
    tide_status st = find(x, &s, err);
    if (st == TIDE_OK && s.n > n_given) st = apply_sequence(program, x->source->opt, &s, &done, err);
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
