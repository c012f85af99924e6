// SPDX-License-Identifier: MIT
//
// A TensorFlow Lite model as a list of lifetimes, as TensorFlow Lite Micro counts them (micro_allocation_info.cc of
// tflite-micro): a step for each operator in the order of the file, the operators of a subgraph that one calls (If,
// While, …) behind it. A tensor lives from the operator that makes it to the last one that reads it; inputs from the
// first step on, outputs to the last. While a subgraph runs, what its caller reads and makes stays.
//
//     step       0        1       2          3          4        5
//     operator   CONV_2D  IF      then/ADD   else/MUL   RELU     …
//     of CONV_2D ├─────────────────────────────┤                   read by IF: until both bodies are done
//     of IF               ├────────────────────────────┤           made by IF, read by RELU
//
// The items are the tensors of the file in its order, all of them (tflm wants it so): one that no operator touches, and
// one whose bytes another weight has already, has 0 bytes. What the file says is read by tflite_read.c.
#include <inttypes.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/base/log.h"
#include "planner/formats/tflite.h"

enum {
    ALIGN = 16,     ///< of TensorFlow Lite Micro (MicroArenaBufferAlignment); --align 64 is that of TensorFlow Lite
    MAX_DEPTH = 64, ///< of subgraphs that call each other
};

// ---- lifetimes ----

static void make(tide__tfl_tensor *x, int64_t step) {
    if (x->first == TIDE__TFL_NO_STEP) x->first = step;
    if (x->last < step) x->last = step;
}

static void make_all(tide__tfl *r, tide__tfl_graph *g, const tide__fb_vector *v, int64_t step) {
    for (size_t i = 0; i < v->n; i++) {
        const int32_t k = tide__fb_i32_at(&r->fb, v, i);
        if (k >= 0) make(&g->tensors[k], step);
    }
}

/// What an operator reads and none before it makes is there from the first step on, as in TensorFlow Lite Micro: so are
/// the scratch tensors of models for Ethos-U.
static void make_reads(tide__tfl *r, tide__tfl_graph *g, const tide__tfl_op *o) {
    for (size_t i = 0; i < o->inputs.n; i++) {
        const int32_t k = tide__fb_i32_at(&r->fb, &o->inputs, i);
        if (k < 0) continue;
        tide__tfl_tensor *x = &g->tensors[k];
        if (x->first != TIDE__TFL_NO_STEP || x->is_constant || x->is_variable || x->bytes == 0) continue;
        r->n_unmade++;
        make(x, 0);
    }
}

static tide_status add_step(tide__tfl *r, const tide__tfl_graph *g, size_t i, int64_t *step) {
    tide_text text = {0};
    char *name;
    tide_text_addf(&text, "%s%s.%zu", g->name, r->codes[g->ops[i].code].name, i);
    const tide_status st = text.failed
                               ? TIDE_NO_MEMORY(r->err, "to read %s", r->list.path)
                               : TIDE_COPY_TEXT(&name, tide_text_str(&text), r->err, "to read %s", r->list.path);
    tide_text_deinit(&text);
    TIDE_TRY(st);
    *step = (int64_t)r->list.lt->n_step_names;
    return tide__list_add_step(&r->list, name);
}

static tide_status walk(tide__tfl *r, size_t graph_i, int depth);

/// The region that body `i` of an operator begins, where the list has a word for it; *out SIZE_MAX: none. A body
/// without a step is none. Its steps are set when they are walked.
static tide_status note_region(tide__tfl *r, const tide__tfl_op *o, unsigned i, int64_t open, size_t *out) {
    const uint32_t builtin = r->codes[o->code].builtin;
    const bool is_loop = builtin == TIDE__TFL_WHILE || builtin == TIDE__TFL_STABLEHLO_WHILE;
    *out = SIZE_MAX;
    if (builtin != TIDE__TFL_IF && !(is_loop && i == 0)) return TIDE_OK;
    bool has_steps = r->subgraphs[o->bodies[i]].n_ops > 0;
    if (is_loop) has_steps = has_steps || r->subgraphs[o->bodies[1]].n_ops > 0; // condition and body are one
    if (!has_steps) return TIDE_OK;
    *out = r->list.lt->n_regions;
    const tide_plan_region region = {.kind = is_loop  ? TIDE_BODY_LOOP
                                             : i == 0 ? TIDE_BODY_THEN
                                                      : TIDE_BODY_ELSE,
                                     .open_step = open};
    return tide__list_add_region(&r->list, &region);
}

static tide_status walk_bodies(tide__tfl *r, const tide__tfl_op *o, int64_t open, int depth) {
    tide_lifetimes *lt = r->list.lt;
    size_t regions[TIDE__TFL_MAX_BODIES];
    for (unsigned i = 0; i < o->n_bodies; i++) TIDE_TRY(tide__tfl_read_graph(r, o->bodies[i]));
    for (unsigned i = 0; i < o->n_bodies; i++) TIDE_TRY(note_region(r, o, i, open, &regions[i]));
    for (unsigned i = 0; i < o->n_bodies; i++) {
        const int64_t begin = (int64_t)lt->n_step_names;
        TIDE_TRY(walk(r, o->bodies[i], depth + 1));
        const int64_t end = (int64_t)lt->n_step_names;
        if (regions[i] != SIZE_MAX) lt->regions[regions[i]].begin_step = begin;
        if (regions[i] != SIZE_MAX) lt->regions[regions[i]].end_step = end;
        const bool is_in_loop = i == 1 && regions[0] != SIZE_MAX && lt->regions[regions[0]].kind == TIDE_BODY_LOOP;
        if (is_in_loop) lt->regions[regions[0]].end_step = end;
    }
    return TIDE_OK;
}

static tide_status walk_op(tide__tfl *r, tide__tfl_graph *g, size_t i, int depth) {
    const tide__tfl_op *o = &g->ops[i];
    int64_t step;
    TIDE_TRY(tide__fb_spend(&r->fb, o->inputs.at, o->inputs.n + o->outputs.n + o->intermediates.n));
    TIDE_TRY(add_step(r, g, i, &step));
    make_reads(r, g, o);
    make_all(r, g, &o->outputs, step);
    make_all(r, g, &o->intermediates, step);
    TIDE_TRY(walk_bodies(r, o, step, depth));
    const int64_t last = (int64_t)r->list.lt->n_step_names - 1;
    make_all(r, g, &o->inputs, last);
    make_all(r, g, &o->outputs, last);
    make_all(r, g, &o->intermediates, last);
    return TIDE_OK;
}

/// The steps of a subgraph, behind those that there are. Its operands are looked at once more each time it is called.
static tide_status walk(tide__tfl *r, size_t graph_i, int depth) {
    tide__tfl_graph *g = &r->subgraphs[graph_i];
    if (g->is_open) return TIDE__TFL_BAD(r, "subgraph %zu calls itself", graph_i);
    if (depth > MAX_DEPTH) return TIDE__TFL_BAD(r, "more than %d subgraphs call each other", (int)MAX_DEPTH);
    g->is_open = g->is_walked = true;
    const int64_t before = (int64_t)r->list.lt->n_step_names;
    make_all(r, g, &g->inputs, g->n_ops > 0 || before == 0 ? before : before - 1);
    for (size_t i = 0; i < g->n_ops; i++) TIDE_TRY(walk_op(r, g, i, depth));
    const int64_t after = (int64_t)r->list.lt->n_step_names;
    make_all(r, g, &g->outputs, after > 0 ? after - 1 : 0);
    g->is_open = false;
    return TIDE_OK;
}

// ---- items ----

/// Where the file's own plan has the item that was added last.
static tide_status note_own(tide__tfl *r, const tide__tfl_tensor *x) {
    r->n_planned++;
    if (x->own_offset == TIDE__TFL_NO_OFFSET) return TIDE_OK;
    TIDE_TRY(TIDE_GROW(&r->own, &r->cap_own, r->n_own + 1, r->err, "to read %s", r->list.path));
    r->own[r->n_own++] =
        (tide__own_place){.item = (uint32_t)(r->list.lt->n - 1), .offset = (uint64_t)x->own_offset, .bytes = x->bytes};
    return TIDE_OK;
}

static tide_status add_weight(tide__tfl *r, tide__tfl_tensor *x, tide_lifetime *item) {
    item->kind = TIDE_KIND_PERSISTENT;
    item->role = TIDE_ROLE_WEIGHT;
    item->persistent = item->unrounded = true;
    if (x->buffer != 0 && r->seen[x->buffer]) {
        item->size_bytes = 0;
        r->n_shared++;
    }
    if (x->buffer != 0) r->seen[x->buffer] = true;
    return tide__list_add_item(&r->list, item);
}

static tide_status add_tensor(tide__tfl *r, tide__tfl_tensor *x) {
    tide_lifetimes *lt = r->list.lt;
    tide_lifetime item = tide_lifetime_make(x->name, x->bytes, ALIGN, 0, lt->n_steps);
    item.role = x->role;
    if (x->is_constant) return add_weight(r, x, &item);
    if (x->first == TIDE__TFL_NO_STEP && !x->is_variable) item.size_bytes = 0;
    if (x->is_unsized && x->first != TIDE__TFL_NO_STEP) {
        char *name = x->name;
        x->name = NULL; // moved
        return tide__list_add_dynamic(&r->list, name);
    }
    if (item.size_bytes == 0 || (x->is_variable && x->own_offset == TIDE__TFL_NO_OFFSET)) {
        item.persistent = true;
        item.kind = TIDE_KIND_PERSISTENT;
        return tide__list_add_item(&r->list, &item);
    }
    if (!x->is_variable) {
        item.begin_step = x->first;
        item.end_step = x->last + 1;
    }
    TIDE_ASSERT(item.begin_step >= 0 && item.begin_step < item.end_step && item.end_step <= lt->n_steps);
    TIDE_TRY(tide__list_add_item(&r->list, &item));
    return note_own(r, x);
}

static void give_roles(tide__tfl *r, tide__tfl_graph *g) {
    for (size_t i = 0; i < g->inputs.n; i++) g->tensors[tide__fb_i32_at(&r->fb, &g->inputs, i)].role = TIDE_ROLE_INPUT;
    for (size_t i = 0; i < g->outputs.n; i++)
        g->tensors[tide__fb_i32_at(&r->fb, &g->outputs, i)].role = TIDE_ROLE_OUTPUT;
}

static tide_status add_items(tide__tfl *r) {
    size_t n_left_out = 0;
    give_roles(r, &r->subgraphs[0]);
    for (size_t i = 0; i < r->subgraph_list.n; i++) {
        tide__tfl_graph *g = &r->subgraphs[i];
        if (!g->is_walked) {
            n_left_out++;
            continue;
        }
        for (size_t k = 0; k < g->n_tensors; k++) TIDE_TRY(add_tensor(r, &g->tensors[k]));
    }
    if (n_left_out > 0)
        tide_log(TIDE_LOG_INFO, "'%s': %zu of %zu subgraphs are not called by the first one and left out", r->list.path,
                 n_left_out, r->subgraph_list.n);
    if (r->n_signature > 0)
        tide_log(TIDE_LOG_INFO,
                 "'%s': %zu tensors have an open extent (-1 in shape_signature); they count as `shape` says",
                 r->list.path, r->n_signature);
    if (r->n_unmade > 0)
        tide_log(TIDE_LOG_INFO,
                 "'%s': %zu tensors are read and made by no step before; they count from the first step on",
                 r->list.path, r->n_unmade);
    if (r->n_shared > 0)
        tide_log(TIDE_LOG_INFO, "'%s': %zu weights have the bytes of another one and count as 0", r->list.path,
                 r->n_shared);
    return TIDE_OK;
}

static tide_status use_own_plan(tide__tfl *r) {
    size_t n_apart;
    if (!r->has_plan || r->n_own == 0) return TIDE_OK;
    uint64_t bytes = 0;
    for (size_t i = 0; i < r->n_own; i++) {
        uint64_t end = r->own[i].offset + r->own[i].bytes; // 2^31 and 2^60 at most
        if (!tide_align_up(end, ALIGN, &end)) return TIDE__TFL_BAD(r, "the file's own plan is too large");
        if (end > bytes) bytes = end;
    }
    TIDE_TRY(tide__own_places_alias(r->list.lt, r->own, r->n_own, &n_apart, r->err));
    if (n_apart > 0)
        tide_log(TIDE_LOG_INFO,
                 "'%s': %zu tensors overlap another one in part in the file's own plan; they are kept apart",
                 r->list.path, n_apart);
    if (r->n_own == r->n_planned)
        r->list.lt->given_plan_bytes = bytes;
    else
        tide_log(TIDE_LOG_INFO,
                 "'%s': the file's own plan has no place for %zu of %zu tensors: what it needs is not known",
                 r->list.path, r->n_planned - r->n_own, r->n_planned);
    return TIDE_OK;
}

// ---- entry point ----

static tide_status read_model(tide__tfl *r) {
    TIDE_TRY(tide__tfl_read(r));
    TIDE_TRY(walk(r, 0, 0));
    if (r->list.lt->n_steps == 0) r->list.lt->n_steps = 1; // what persists lives somewhere
    TIDE_TRY(add_items(r));
    return use_own_plan(r);
}

tide_status tide__list_tflite(const char *data, size_t len, const char *path, tide_lifetimes *out, tide_error *err) {
    tide__tfl r = {.fb = {.data = (const unsigned char *)data, .len = len, .path = path, .err = err},
                   .list = {.lt = out, .path = path, .err = err},
                   .err = err};
    const tide_status st = read_model(&r);
    tide__tfl_deinit(&r);
    return st;
}
