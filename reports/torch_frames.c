// SPDX-License-Identifier: MIT
//
// Stacks of a snapshot, each written once. See torch_frames.h.
#include "reports/torch_frames.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"

enum { MAX_SCOPES = 1 << 17 }; // that are remembered: a trace may have millions

static tide_status no_memory(tide_error *err) { return TIDE_NO_MEMORY(err, "for the call stacks of a trace"); }

static uint64_t mix(uint64_t a, uint64_t b) {
    const uint64_t h = (a * UINT64_C(0x9E3779B97F4A7C15) ^ b) * UINT64_C(0xD1B54A32D192ED03);
    return h ^ h >> 31;
}

// ---- frames and nodes, each once ----

static uint64_t frame_hash(const void *rows, uint32_t i) {
    const tide__torch_out_frame *f = &((const tide__torch_out_frame *)rows)[i];
    return mix(mix((uintptr_t)f->name, (uintptr_t)f->file), (uint64_t)f->line);
}
static bool is_frame(const void *rows, uint32_t i, const void *key) {
    const tide__torch_out_frame *f = &((const tide__torch_out_frame *)rows)[i], *wanted = key;
    return f->name == wanted->name && f->file == wanted->file && f->line == wanted->line;
}
static uint64_t node_hash(const void *rows, uint32_t i) {
    const tide__torch_out_node *n = &((const tide__torch_out_node *)rows)[i];
    return mix(n->parent, n->frame);
}
static bool is_node(const void *rows, uint32_t i, const void *key) {
    const tide__torch_out_node *n = &((const tide__torch_out_node *)rows)[i], *wanted = key;
    return n->parent == wanted->parent && n->frame == wanted->frame;
}

static tide_status find_frame(tide__torch_frames *f, const tide__torch_out_frame *wanted, uint32_t *out,
                              tide_error *err) {
    const uint64_t hash = mix(mix((uintptr_t)wanted->name, (uintptr_t)wanted->file), (uint64_t)wanted->line);
    *out = tide_index_find(&f->by_frame, hash, f->frames, is_frame, wanted);
    if (*out != TIDE_INDEX_NONE) return TIDE_OK;
    if (f->n_frames >= UINT32_MAX - 1) return no_memory(err);
    TIDE_TRY(TIDE_GROW(&f->frames, &f->cap_frames, f->n_frames + 1, err, "for the call stacks of a trace"));
    f->frames[f->n_frames] = *wanted;
    *out = (uint32_t)f->n_frames;
    if (tide_index_put(&f->by_frame, *out, f->frames, frame_hash) != TIDE_OK) return no_memory(err);
    f->n_frames++;
    return TIDE_OK;
}

/// The node of `frame` below `*node` becomes *node.
static tide_status step_in(tide__torch_frames *f, const tide__torch_out_frame *frame, uint32_t *node, tide_error *err) {
    tide__torch_out_node wanted = {.parent = *node};
    TIDE_TRY(find_frame(f, frame, &wanted.frame, err));
    *node = tide_index_find(&f->by_node, mix(wanted.parent, wanted.frame), f->nodes, is_node, &wanted);
    if (*node != TIDE_INDEX_NONE) return TIDE_OK;
    if (f->n_nodes >= UINT32_MAX - 1) return no_memory(err);
    TIDE_TRY(TIDE_GROW(&f->nodes, &f->cap_nodes, f->n_nodes + 1, err, "for the call stacks of a trace"));
    f->nodes[f->n_nodes] = wanted;
    *node = (uint32_t)f->n_nodes;
    if (tide_index_put(&f->by_node, *node, f->nodes, node_hash) != TIDE_OK) return no_memory(err);
    f->n_nodes++;
    return TIDE_OK;
}

/// Node 0, which is no stack, is there: no index leads to it.
static tide_status begin(tide__torch_frames *f, tide_error *err) {
    if (f->n_nodes > 0) return TIDE_OK;
    TIDE_TRY(TIDE_GROW(&f->nodes, &f->cap_nodes, 1, err, "for the call stacks of a trace"));
    f->nodes[f->n_nodes++] = (tide__torch_out_node){0};
    return TIDE_OK;
}

// ---- scopes ----

static tide__torch_out_frame frame_of(const tide_trace_scope *s) {
    if (s->is_frame) return (tide__torch_out_frame){.name = s->name};
    // A run's step is its number, and would make a stack of its own for each.
    const bool has_step = s->is_operator && s->step >= 0;
    return (tide__torch_out_frame){.name = s->name, .file = has_step ? "step" : "??", .line = has_step ? s->step : 0};
}

/// The operator that a stack's frames name already: it lies right below the innermost of them.
static bool is_named(const tide__torch_frames *f, const tide_trace_scope *s) {
    return !s->is_frame && s->parent != 0 && tide_trace_scope_at(f->t, s->parent).is_frame;
}

static tide_status node_of(tide__torch_frames *f, uint32_t scope, uint32_t *out, tide_error *err) {
    size_t n = 0;
    uint32_t known = 0;
    for (uint32_t id = scope; id != 0 && known == 0; id = tide_trace_scope_at(f->t, id).parent) {
        const tide__torch_scope_node *seen = tide_map_find(&f->by_scope, id);
        if (seen != NULL) {
            known = (uint32_t)seen->node;
            break;
        }
        TIDE_TRY(TIDE_GROW(&f->chain, &f->cap_chain, n + 1, err, "for the call stacks of a trace"));
        f->chain[n++] = id;
    }
    *out = known;
    while (n > 0) {
        const uint32_t id = f->chain[--n];
        const tide_trace_scope s = tide_trace_scope_at(f->t, id);
        const tide__torch_out_frame frame = frame_of(&s);
        if (!is_named(f, &s)) TIDE_TRY(step_in(f, &frame, out, err));
        if (f->by_scope.n >= MAX_SCOPES) tide_map_deinit(&f->by_scope);
        if (!tide_map_put(&f->by_scope, &(tide__torch_scope_node){.key = id, .node = *out})) return no_memory(err);
    }
    return TIDE_OK;
}

static bool has_stack(const tide__torch_frames *f, uint32_t scope) {
    const tide_trace_scope s = tide_trace_scope_at(f->t, scope);
    return s.is_frame || is_named(f, &s);
}

// ---- written ----

/// Where the file begins in "FUNCTION @ FILE:LINE", behind which a library may stand, and its line; NULL: there is
/// none.
static const char *file_of(const char *name, size_t *n_function, size_t *n_file, int64_t *line) {
    const char *at = NULL, *colon = strrchr(name, ':');
    for (const char *next = strstr(name, " @ "); next != NULL; next = strstr(next + 3, " @ ")) at = next;
    if (at == NULL || colon == NULL || colon < at + 3) return NULL;
    const char *digits = colon + 1 + (colon[1] == '-');
    const size_t n_digits = strspn(digits, "0123456789");
    if (n_digits == 0 || n_digits > 18 || (digits[n_digits] != '\0' && digits[n_digits] != ' ')) return NULL;
    *n_function = (size_t)(at - name);
    *n_file = (size_t)(colon - at) - 3;
    *line = strtoll(colon + 1, NULL, 10);
    return at + 3;
}

static tide_status put_frame(tide__torch_frames *f, tide_pickle_out *p, uint32_t frame, tide_error *err) {
    tide__torch_out_frame *it = &f->frames[frame];
    if (it->number > 0) {
        tide_pickle_again(p, it->number - 1);
        return TIDE_OK;
    }
    tide_text function = {0}, file = {0};
    size_t n_function = strlen(it->name), n_file = 0;
    int64_t line = it->line;
    const char *at = it->file != NULL ? NULL : file_of(it->name, &n_function, &n_file, &line);
    tide_text_add_n(&function, it->name, n_function);
    if (at != NULL)
        tide_text_add_n(&file, at, n_file);
    else
        tide_text_add(&file, it->file != NULL ? it->file : "??"); // as PyTorch says that it is not known
    tide_pickle_dict(p);
    tide_pickle_put_word(p, &f->name);
    tide_pickle_text(p, tide_text_str(&function));
    tide_pickle_put_word(p, &f->filename);
    tide_pickle_text(p, tide_text_str(&file));
    tide_pickle_put_word(p, &f->line);
    tide_pickle_i64(p, line);
    tide_pickle_close(p);
    it->number = tide_pickle_keep(p) + 1;
    const bool failed = function.failed || file.failed;
    tide_text_deinit(&function);
    tide_text_deinit(&file);
    return failed ? no_memory(err) : TIDE_OK;
}

tide_status tide__torch_frames_put(tide__torch_frames *f, tide_pickle_out *p, uint32_t scope, const char *name,
                                   const char *kind, tide_error *err) {
    uint32_t node = 0;
    TIDE_TRY(begin(f, err));
    TIDE_TRY(node_of(f, scope, &node, err));
    if (name != NULL && name[0] != '\0' && !has_stack(f, scope)) {
        const tide__torch_out_frame block = {.name = name, .file = kind};
        TIDE_TRY(step_in(f, &block, &node, err));
    }
    if (f->nodes[node].number > 0) {
        tide_pickle_again(p, f->nodes[node].number - 1);
        return TIDE_OK;
    }
    tide_pickle_list(p);
    for (uint32_t at = node; at != 0; at = f->nodes[at].parent) TIDE_TRY(put_frame(f, p, f->nodes[at].frame, err));
    tide_pickle_close(p);
    f->nodes[node].number = tide_pickle_keep(p) + 1;
    return TIDE_OK;
}

void tide__torch_frames_deinit(tide__torch_frames *f) {
    tide_host_free(f->nodes);
    tide_host_free(f->frames);
    tide_host_free(f->chain);
    tide_index_deinit(&f->by_node);
    tide_index_deinit(&f->by_frame);
    tide_map_deinit(&f->by_scope);
}
