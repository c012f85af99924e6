// SPDX-License-Identifier: MIT
//
// Stacks of PyTorch: one tree of them, and its branches as scopes. See torch_stacks.h.
#include "profiler/import/torch_stacks.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"

// ---- the tree ----

static uint64_t mix(uint64_t a, uint64_t b) {
    const uint64_t h = (a * UINT64_C(0x9E3779B97F4A7C15) ^ b) * UINT64_C(0xD1B54A32D192ED03);
    return h ^ h >> 31;
}
static uint64_t node_hash(const void *rows, uint32_t i) {
    const tide__torch_node *n = &((const tide__torch_node *)rows)[i];
    return mix(n->parent, n->frame);
}
static bool is_node(const void *rows, uint32_t i, const void *key) {
    const tide__torch_node *n = &((const tide__torch_node *)rows)[i], *wanted = key;
    return n->parent == wanted->parent && n->frame == wanted->frame;
}
static uint64_t frame_hash(const void *rows, uint32_t i) {
    const tide__torch_frame *f = &((const tide__torch_frame *)rows)[i];
    return mix(mix(f->function, f->file), (uint64_t)f->line);
}
static bool is_frame(const void *rows, uint32_t i, const void *key) {
    const tide__torch_frame *f = &((const tide__torch_frame *)rows)[i], *wanted = key;
    return f->function == wanted->function && f->file == wanted->file && f->line == wanted->line;
}

static tide_status put_node(tide__torch_tree *k, tide__torch_snapshot *s, uint32_t parent, uint32_t frame,
                            uint32_t *out, tide_error *err) {
    const tide__torch_node node = {parent, frame};
    *out = tide_index_find(&k->by_node, mix(parent, frame), s->nodes, is_node, &node);
    if (*out != TIDE_INDEX_NONE) return TIDE_OK;
    if (s->n_nodes >= UINT32_MAX / 2)
        return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot read '%s': its stacks have more than 2^31 frames", k->path);
    TIDE_TRY(TIDE_GROW(&s->nodes, &k->cap_nodes, s->n_nodes + 1, err, "for the stacks of '%s'", k->path));
    s->nodes[s->n_nodes] = node;
    if (tide_index_put(&k->by_node, (uint32_t)s->n_nodes, s->nodes, node_hash) != TIDE_OK)
        return TIDE_NO_MEMORY(err, "for the stacks of '%s'", k->path);
    *out = (uint32_t)s->n_nodes++;
    return TIDE_OK;
}

/// A stack that was there before: most of a file's are.
typedef struct known_stack {
    uint64_t key; // hash of its frames
    uint64_t node;
} known_stack;

static uint64_t stack_hash(const uint32_t *frames, size_t n) {
    uint64_t h = n;
    for (size_t i = 0; i < n; i++) h = mix(h, frames[i]);
    return h | 1; // no entry has a key of 0
}

/// Whether the frames from `node` outwards are these.
static bool is_stack(const tide__torch_snapshot *s, uint32_t node, const uint32_t *frames, size_t n) {
    for (size_t i = 0; i < n; i++, node = s->nodes[node].parent)
        if (node == 0 || s->nodes[node].frame != frames[i]) return false;
    return node == 0;
}

tide_status tide__torch_tree_init(tide__torch_tree *k, tide__torch_snapshot *s, const char *path, tide_error *err) {
    uint32_t none;
    *k = (tide__torch_tree){.path = path, .stacks = TIDE_MAP(known_stack)};
    TIDE_TRY(put_node(k, s, UINT32_MAX, UINT32_MAX, &none, err));
    TIDE_ASSERT(none == 0);
    return TIDE_OK;
}

tide_status tide__torch_tree_frame(tide__torch_tree *k, tide__torch_snapshot *s, const tide__torch_frame *f,
                                   uint32_t *out, tide_error *err) {
    const uint64_t hash = mix(mix(f->function, f->file), (uint64_t)f->line);
    *out = tide_index_find(&k->by_frame, hash, s->frames, is_frame, f);
    if (*out != TIDE_INDEX_NONE) return TIDE_OK;
    if (s->n_frames >= UINT32_MAX / 2)
        return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot read '%s': it has more than 2^31 frames", k->path);
    TIDE_TRY(TIDE_GROW(&s->frames, &k->cap_frames, s->n_frames + 1, err, "for the frames of '%s'", k->path));
    s->frames[s->n_frames] = *f;
    if (tide_index_put(&k->by_frame, (uint32_t)s->n_frames, s->frames, frame_hash) != TIDE_OK)
        return TIDE_NO_MEMORY(err, "for the frames of '%s'", k->path);
    *out = (uint32_t)s->n_frames++;
    return TIDE_OK;
}

tide_status tide__torch_tree_stack(tide__torch_tree *k, tide__torch_snapshot *s, const uint32_t *frames, size_t n,
                                   uint32_t *out, tide_error *err) {
    known_stack fresh = {.key = stack_hash(frames, n)};
    const known_stack *seen = tide_map_find(&k->stacks, fresh.key);
    while (seen != NULL && !is_stack(s, (uint32_t)seen->node, frames, n)) seen = tide_map_next(&k->stacks, seen);
    *out = seen != NULL ? (uint32_t)seen->node : 0;
    if (seen != NULL) return TIDE_OK;
    for (size_t i = n; i-- > 0;) TIDE_TRY(put_node(k, s, *out, frames[i], out, err));
    fresh.node = *out;
    TIDE_ASSERT(is_stack(s, *out, frames, n));
    return tide_map_put(&k->stacks, &fresh) ? TIDE_OK : TIDE_NO_MEMORY(err, "for the stacks of '%s'", k->path);
}

size_t tide__torch_tree_bytes(const tide__torch_tree *k) {
    return k->cap_frames * sizeof(tide__torch_frame) + k->cap_nodes * sizeof(tide__torch_node) +
           (k->by_frame.cap + k->by_node.cap) * sizeof *k->by_frame.slots + k->stacks.cap * k->stacks.entry_bytes;
}

void tide__torch_tree_deinit(tide__torch_tree *k) {
    tide_index_deinit(&k->by_frame);
    tide_index_deinit(&k->by_node);
    tide_map_deinit(&k->stacks);
}

// ---- as scopes ----

static tide_status no_memory(tide_error *err) { return TIDE_NO_MEMORY(err, "for the stacks of a snapshot"); }

tide_status tide__torch_stacks_init(tide__torch_stacks *k, const tide__torch_snapshot *s, tide__names *names,
                                    tide_error *err) {
    *k = (tide__torch_stacks){.s = s, .names = names};
    TIDE_TRY(TIDE_NEW(&k->scope_of, s->n_nodes, err, "for the stacks of a snapshot"));
    TIDE_TRY(TIDE_NEW(&k->block_scope, s->n_nodes, err, "for the stacks of a snapshot"));
    return TIDE_NEW(&k->block_name, s->n_nodes, err, "for the stacks of a snapshot");
}

void tide__torch_stacks_deinit(tide__torch_stacks *k) {
    tide_host_free(k->scope_of);
    tide_host_free(k->block_scope);
    tide_host_free(k->block_name);
    tide_text_deinit(&k->text);
    *k = (tide__torch_stacks){0};
}

// ---- frames ----

static const tide__torch_frame *frame_of(const tide__torch_stacks *k, uint32_t node) {
    return &k->s->frames[k->s->nodes[node].frame];
}
static const char *function_of(const tide__torch_stacks *k, uint32_t node) {
    return k->s->texts[frame_of(k, node)->function];
}
static const char *file_of(const tide__torch_stacks *k, uint32_t node) { return k->s->texts[frame_of(k, node)->file]; }

/// A line of Python: of a file of that name, or of one that has none ("<string>", "<frozen ...>").
static bool is_python(const tide__torch_stacks *k, uint32_t node) {
    const char *file = file_of(k, node);
    const size_t n = strlen(file);
    return file[0] == '<' || (n > 3 && strcmp(file + n - 3, ".py") == 0);
}

/// Python that comes with PyTorch or with Python itself.
static bool is_library(const char *file) {
    if (file[0] == '<') return true;
    if (strstr(file, "-packages/torch/") != NULL || strncmp(file, "torch/", 6) == 0) return true;
    return strstr(file, "/lib/python") != NULL && strstr(file, "-packages/") == NULL;
}

static const char *base_name(const char *file) {
    const char *slash = strrchr(file, '/');
    return slash != NULL ? slash + 1 : file;
}

static tide_status put_text(tide__torch_stacks *k, int64_t *id, tide_error *err) {
    if (k->text.failed || tide__names_text(k->names, tide_text_str(&k->text), id) != TIDE_OK) return no_memory(err);
    return TIDE_OK;
}

/// "FUNCTION @ FILE:LINE", or the function alone where the file is not known.
static tide_status frame_name(tide__torch_stacks *k, uint32_t node, int64_t *id, tide_error *err) {
    const tide__torch_frame *f = frame_of(k, node);
    const char *file = file_of(k, node);
    k->text.len = 0;
    tide_text_add(&k->text, function_of(k, node)[0] != '\0' ? function_of(k, node) : "?");
    if (file[0] != '\0' && strcmp(file, "??") != 0) tide_text_addf(&k->text, " @ %s:%" PRId64, file, f->line);
    return put_text(k, id, err);
}

static tide_status put_scope(tide__torch_stacks *k, const tide__scope_row *row, int32_t *out, tide_error *err) {
    int64_t id = 0;
    if (tide__names_scope_row(k->names, row, &id) != TIDE_OK) return no_memory(err);
    if (id > INT32_MAX) return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "its stacks have more than 2^31 frames");
    *out = (int32_t)id;
    return TIDE_OK;
}

/// The scope of a frame, and those of its callers: they have smaller numbers, so the missing ones are made upwards.
static tide_status scope_of_frame(tide__torch_stacks *k, uint32_t node, tide_error *err) {
    while (k->scope_of[node] == 0) {
        uint32_t first = node; // the outermost that has none yet
        for (uint32_t up = k->s->nodes[node].parent; up != 0 && k->scope_of[up] == 0; up = k->s->nodes[up].parent)
            first = up;
        const uint32_t parent = k->s->nodes[first].parent;
        TIDE_ASSERT(parent < first && (parent == 0 || k->scope_of[parent] != 0));
        tide__scope_row row = {
            .parent_id = parent != 0 ? k->scope_of[parent] : 0, .kind = TIDE_SCOPE_FRAME, .step = -1};
        TIDE_TRY(frame_name(k, first, &row.name_id, err));
        TIDE_TRY(put_scope(k, &row, &k->scope_of[first], err));
    }
    return TIDE_OK;
}

/// What only takes the stack, or the memory: the same below every stack.
static bool is_taking(const char *function) {
    return strstr(function, "torch::unwind") != NULL || strstr(function, "CapturedTraceback") != NULL ||
           strstr(function, "gather_with_cpp") != NULL || strstr(function, "CUDACachingAllocator") != NULL;
}

// ---- what the frames say ----

typedef struct story {
    uint32_t op;       // node of the operator that Python, or the backward pass, called; 0: none is known
    uint32_t user;     // innermost line of Python that is not a library's
    uint32_t python;   // innermost line of Python
    uint32_t backward; // of a step of the backward pass
} story;

#define OPS "at::_ops::"
#define GENERATED "torch::autograd::generated::"

static story read_story(const tide__torch_stacks *k, uint32_t node) {
    story y = {0};
    for (; node != 0; node = k->s->nodes[node].parent) {
        const char *function = function_of(k, node);
        if (is_python(k, node)) {
            if (y.python == 0) y.python = node;
            if (y.user == 0 && !is_library(file_of(k, node))) y.user = node;
            continue;
        }
        if (y.python != 0) continue; // below a line of Python: what called it
        if (strncmp(function, OPS, sizeof OPS - 1) == 0) y.op = node;
        if (y.backward == 0 && strncmp(function, GENERATED, sizeof GENERATED - 1) == 0) y.backward = node;
    }
    return y;
}

/// "aten::bmm" of "at::_ops::bmm::call(...)", "BmmBackward0" of "torch::autograd::generated::BmmBackward0::apply(...)".
static tide_status cut_name(tide__torch_stacks *k, const char *prefix, const char *at, int64_t *id, tide_error *err) {
    k->text.len = 0;
    tide_text_add(&k->text, prefix);
    tide_text_add_n(&k->text, at, strcspn(at, ":("));
    return put_text(k, id, err);
}

static tide_status find_name(tide__torch_stacks *k, const story *y, uint32_t node, int64_t *id, tide_error *err) {
    const uint32_t line = y->user != 0 ? y->user : y->python;
    if (line != 0) {
        k->text.len = 0;
        tide_text_addf(&k->text, "%s %s:%" PRId64, function_of(k, line), base_name(file_of(k, line)),
                       frame_of(k, line)->line);
        return put_text(k, id, err);
    }
    if (y->backward != 0) return cut_name(k, "", function_of(k, y->backward) + sizeof GENERATED - 1, id, err);
    if (y->op != 0) return cut_name(k, "aten::", function_of(k, y->op) + sizeof OPS - 1, id, err);
    return frame_name(k, node, id, err);
}

tide_status tide__torch_stacks_of(tide__torch_stacks *k, uint32_t node, int32_t *scope, int32_t *name,
                                  tide_error *err) {
    while (node != 0 && k->s->nodes[node].parent != 0 && is_taking(function_of(k, node)))
        node = k->s->nodes[node].parent;
    *scope = k->block_scope[node];
    *name = k->block_name[node];
    if (node == 0 || *scope != 0) return TIDE_OK;
    const story y = read_story(k, node);
    int64_t id;
    TIDE_TRY(scope_of_frame(k, node, err));
    *scope = k->scope_of[node];
    if (y.op != 0) {
        tide__scope_row row = {.parent_id = *scope, .kind = TIDE_SCOPE_OPERATOR, .step = -1};
        TIDE_TRY(cut_name(k, "aten::", function_of(k, y.op) + sizeof OPS - 1, &row.name_id, err));
        TIDE_TRY(put_scope(k, &row, scope, err));
    }
    TIDE_TRY(find_name(k, &y, node, &id, err));
    if (id > INT32_MAX) return no_memory(err);
    *name = (int32_t)id;
    k->block_scope[node] = *scope;
    k->block_name[node] = *name;
    return TIDE_OK;
}
