// SPDX-License-Identifier: MIT
//
// Call stacks of a trace: scopes of kind frame, from the outermost in, with the operator that asked below them. See
// moments.h for what they are grouped by. By module and category a program's own words come first: the regions that a
// block lies in, as PyTorch programs under `tidemark record --torch` tell of them.
//
//     "forward @ /home/ann/model.py:199"      function, file, line
//     "at::native::bmm(at::Tensor const&)"    the function alone
//     "get @ /src/a.c:8 [sort]"               the same of native code, with its library
//     "memcpy [libc.so.6]"
//     "libc.so.6+0x97d1e"                     file and address: nothing else is known
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/base/map.h"
#include "profiler/calls.h"
#include "profiler/read/moments_internal.h"
#include "profiler/read/trace_internal.h"

/// A frame's name in its parts, which lie in the name.
typedef struct frame {
    const char *function, *file, *line, *library; // [n_...]; file, library NULL: not known
    size_t n_function, n_file, n_line, n_library;
} frame;

/// "[sort]" at the end of a name; compilers put "[clone .cold]" behind functions. `end`: behind what is left of it.
static void take_library(frame *f, const char *name, const char **end) {
    const size_t n = strlen(name);
    const char *open = n > 0 && name[n - 1] == ']' ? name + n - 1 : NULL, *plus = NULL;
    while (open != NULL && open > name && !(open[0] == '[' && open[-1] == ' ')) open--;
    if (open != NULL && open > name && strncmp(open, "[clone ", 7) != 0) {
        f->library = open + 1;
        f->n_library = (size_t)(name + n - 1 - f->library);
        *end = open - 1;
        return;
    }
    for (const char *at = name; (at = strstr(at, "+0x")) != NULL; at++) plus = at;
    if (plus == NULL || plus[3] == '\0' || strspn(plus + 3, "0123456789abcdef") != strlen(plus + 3)) return;
    f->library = name;
    f->n_library = (size_t)(plus - name);
}

static frame frame_of(const char *name) {
    frame f = {.function = name};
    const char *end = name + strlen(name), *at = strstr(name, " @ ");
    take_library(&f, name, &end);
    f.n_function = (size_t)(end - name);
    const char *colon = at != NULL && at < end ? memrchr(at, ':', (size_t)(end - at)) : NULL;
    if (colon == NULL) return f;
    f.n_function = (size_t)(at - name);
    f.file = at + 3;
    f.n_file = (size_t)(colon - f.file);
    f.line = colon + 1;
    f.n_line = (size_t)(end - f.line);
    return f;
}

static bool is_function(const frame *f, const char *name) {
    return strlen(name) == f->n_function && memcmp(name, f->function, f->n_function) == 0;
}
static bool function_has(const frame *f, const char *part) {
    const char *at = strstr(f->function, part);
    return at != NULL && at < f->function + f->n_function;
}
/// `part` in the file's path; NULL: it is not there.
static const char *in_file(const frame *f, const char *part) {
    const char *at = f->file != NULL ? strstr(f->file, part) : NULL;
    return at != NULL && at + strlen(part) <= f->file + f->n_file ? at : NULL;
}

/// "<string>" and the like count too: Python has no other file for them.
static bool is_python(const frame *f) {
    if (f->file == NULL || f->n_file == 0) return false;
    return f->file[0] == '<' || (f->n_file > 3 && memcmp(f->file + f->n_file - 3, ".py", 3) == 0);
}
/// The package that a file of Python comes with; NULL: the program's own. *n its length.
static const char *library_of(const frame *f, size_t *n) {
    const char *at = in_file(f, "-packages/");
    if (at != NULL) {
        at += strlen("-packages/");
        *n = strcspn(at, "/");
        if (at + *n > f->file + f->n_file) *n = (size_t)(f->file + f->n_file - at);
        return at;
    }
    static const char standard[] = "python";
    *n = sizeof standard - 1;
    return f->file[0] == '<' || in_file(f, "/lib/python") != NULL ? standard : NULL;
}

static const char *base_of(const frame *f, size_t *n) {
    const char *base = f->file;
    for (const char *c = f->file; c < f->file + f->n_file; c++)
        if (*c == '/') base = c + 1;
    *n = (size_t)(f->file + f->n_file - base);
    return base;
}

// ---- the stack of a block ----

/// The next frame outwards from scope `id`; 0: none. A walk outwards ends: tide__trace_names_load sees to it.
static uint32_t next_frame(const tide_trace *t, uint32_t id, frame *out) {
    while (id > 0 && id < t->names.n_scopes && !t->names.scopes[id].is_frame) {
        id = t->names.scopes[id].parent;
    }
    if (id == 0 || id >= t->names.n_scopes) return 0;
    *out = frame_of(tide__trace_text(t, t->names.scopes[id].name_id));
    return id;
}
#define EACH_FRAME(t, scope, id, f)                                                                                    \
    for (uint32_t id = next_frame((t), (scope), &(f)); id != 0;                                                        \
         id = next_frame((t), (t)->names.scopes[id].parent, &(f)))

/// Whether the function does nothing but allocate: who asked is the one that called it.
static bool is_allocator(const frame *f) {
    static const char name[] = "operator new";
    return f->n_function > sizeof name - 1 && strncmp(f->function, name, sizeof name - 1) == 0 &&
           (f->function[sizeof name - 1] == '(' || f->function[sizeof name - 1] == '[');
}

/// The frame that stands for the stack: the innermost line of Python of the program, else of a library, else the
/// innermost frame, but operator new where another one called it.
static frame leading(const tide_trace *t, uint32_t scope) {
    frame f, first = {0}, python = {0};
    size_t n;
    EACH_FRAME(t, scope, id, f) {
        if (first.function == NULL || is_allocator(&first)) first = f;
        if (!is_python(&f)) continue;
        if (python.function == NULL) python = f;
        if (library_of(&f, &n) == NULL) return f;
    }
    return python.function != NULL ? python : first;
}

// ---- modules ----

enum { MAX_MODULES = 64 };

/// The innermost calls of forward(), the innermost first. @return how many
static size_t forward_calls(const tide_trace *t, uint32_t scope, frame calls[MAX_MODULES]) {
    frame f;
    size_t n = 0, n_library;
    EACH_FRAME(t, scope, id, f) {
        if (!is_python(&f) || !is_function(&f, "forward") || library_of(&f, &n_library) != NULL) continue;
        if (n == MAX_MODULES) break;
        calls[n++] = f;
    }
    return n;
}

/// The next region outwards from scope `id`; 0: none.
static uint32_t next_region(const tide_trace *t, uint32_t id) {
    while (id > 0 && id < t->names.n_scopes && !t->names.scopes[id].is_region) id = t->names.scopes[id].parent;
    return id < t->names.n_scopes ? id : 0;
}

/// What stands for a block without a stack: of modules, where the program tells of regions alone, that it lies in none.
static const char *no_stack(const tide_trace *t, tide_group_by by) {
    return by == TIDE_BY_MODULE && t != NULL && t->names.has_regions && !t->names.has_frames ? "(outside all regions)"
                                                                                             : "(no stack)";
}

static const char *region_name(const tide_trace *t, uint32_t id) {
    return tide__trace_text(t, t->names.scopes[id].name_id);
}

/// What stands for a stack that no line of Python is in.
static void add_outside(const frame *f, tide_text *key) {
    if (f->library != NULL)
        tide_text_add_n(key, f->library, f->n_library);
    else if (f->function != NULL && f->function[0] == '[') // what stands in place of a call
        tide_text_add_n(key, f->function, f->n_function);
    else
        tide_text_add(key, f->function != NULL ? "(outside Python)" : "(no stack)");
}

static void add_no_module(const tide_trace *t, uint32_t scope, tide_text *key) {
    const frame f = leading(t, scope);
    if (f.function == NULL || !is_python(&f)) {
        add_outside(&f, key);
        return;
    }
    size_t n_base;
    const char *base = base_of(&f, &n_base);
    tide_text_add_n(key, f.function, f.n_function);
    tide_text_add(key, " ");
    tide_text_add_n(key, base, n_base);
}

/// The calls of forward() from the outermost in; the file where it changes. `ends` (may be NULL): where in the key each
/// of them ends. @return their number, at least 1
static size_t module_key(const tide_trace *t, uint32_t scope, tide_text *key, size_t *ends) {
    frame calls[MAX_MODULES];
    const size_t n = forward_calls(t, scope, calls);
    if (n == 0) add_no_module(t, scope, key);
    if (n == 0 && ends != NULL) ends[0] = key->len;
    for (size_t i = n; i-- > 0;) {
        const bool is_same = i + 1 < n && calls[i].n_file == calls[i + 1].n_file &&
                             memcmp(calls[i].file, calls[i + 1].file, calls[i].n_file) == 0;
        size_t n_base;
        const char *base = base_of(&calls[i], &n_base);
        if (i + 1 < n) tide_text_add(key, " > ");
        if (!is_same) tide_text_add_n(key, base, n_base);
        if (!is_same) tide_text_add(key, ":");
        tide_text_add_n(key, calls[i].line, calls[i].n_line);
        if (ends != NULL) ends[n - 1 - i] = key->len;
    }
    return n > 0 ? n : 1;
}

// ---- lines ----

enum { MAX_LINES = 128 };

static void add_line(const frame *f, tide_text *key) {
    size_t n;
    const char *base = base_of(f, &n);
    tide_text_add_n(key, f->function, f->n_function);
    tide_text_add(key, " ");
    tide_text_add_n(key, base, n);
    tide_text_addf(key, ":%.*s; ", (int)f->n_line, f->line);
}

#define GENERATED "torch::autograd::generated::"

/// A step of the backward pass that no line of Python called: "BmmBackward0; ".
static void add_backward(const tide_trace *t, uint32_t scope, tide_text *key) {
    frame f;
    EACH_FRAME(t, scope, id, f) {
        if (strncmp(f.function, GENERATED, sizeof GENERATED - 1) != 0) continue;
        const char *name = f.function + sizeof GENERATED - 1;
        tide_text_add_n(key, name, strcspn(name, ":("));
        tide_text_add(key, "; ");
        return;
    }
}

/// The operator, or the innermost function.
static void add_operator(const tide_trace *t, uint32_t scope, tide_text *key) {
    frame f = {0};
    if (!t->names.scopes[scope].is_frame) {
        tide_text_add(key, tide__trace_text(t, t->names.scopes[scope].name_id));
    } else if (next_frame(t, scope, &f) != 0) {
        tide_text_add_n(key, f.function, f.n_function);
    }
}

static void lines_key(const tide_trace *t, uint32_t scope, tide_text *key) {
    frame f, lines[MAX_LINES];
    size_t n = 0, n_program = 0, n_library;
    EACH_FRAME(t, scope, id, f) n_program += is_python(&f) && library_of(&f, &n_library) == NULL;
    EACH_FRAME(t, scope, id, f) {
        if (n == MAX_LINES) break;
        if (is_python(&f) && (n_program == 0 || library_of(&f, &n_library) == NULL)) lines[n++] = f;
    }
    if (n < n_program) tide_text_add(key, "...; ");
    for (size_t i = n; i-- > 0;) add_line(&lines[i], key);
    if (n == 0) add_backward(t, scope, key);
    add_operator(t, scope, key);
}

// ---- categories ----

/// By how regions of PyTorch programs are called (preload/python); NULL: that says nothing.
static const char *category_of_region(const char *name) {
    static const struct {
        const char *ending, *category;
    } table[] = {{", forward", "activations"}, {", backward", "gradients"}, {"optimizer step", "optimizer"}};
    const size_t n = strlen(name);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const size_t n_ending = strlen(table[i].ending);
        if (n >= n_ending && strcmp(name + n - n_ending, table[i].ending) == 0) return table[i].category;
    }
    return NULL;
}

/// What functions of PyTorch and of optimizers are called in all of its versions; a guess for any other program.
static const char *category_of(const tide_trace *t, uint32_t scope) {
    bool any = false, workspace = false, backward = false, optimizer = false, forward = false, weights = false;
    const uint32_t region = next_region(t, scope);
    const char *told = region != 0 ? category_of_region(region_name(t, region)) : NULL;
    frame f;
    if (told != NULL) return told;
    EACH_FRAME(t, scope, id, f) {
        any = true;
        workspace = workspace || function_has(&f, "Workspace") || function_has(&f, "CUDABlasHandle");
        backward = backward || function_has(&f, "torch::autograd::Engine::") || is_function(&f, "backward");
        optimizer = optimizer || (is_python(&f) && in_file(&f, "optim") != NULL && is_function(&f, "step"));
        forward = forward || is_function(&f, "forward");
        weights = weights || is_function(&f, "__init__") || is_function(&f, "_apply") ||
                  is_function(&f, "load_state_dict") || is_function(&f, "reset_parameters");
    }
    if (!any) return "(no stack)";
    if (workspace) return "workspace";
    if (backward) return "gradients";
    if (optimizer) return "optimizer";
    if (forward) return "activations";
    return weights ? "weights" : "other";
}

// ---- keys ----

static void add_library(const frame *f, tide_text *key) {
    size_t n;
    const char *library = is_python(f) ? library_of(f, &n) : NULL;
    if (library != NULL) {
        tide_text_add_n(key, library, n);
    } else if (is_python(f)) {
        tide_text_add(key, "the program");
    } else {
        add_outside(f, key);
    }
}

static void add_function(const frame *f, tide_text *key) {
    size_t n;
    tide_text_add_n(key, f->function, f->n_function);
    if (!is_python(f)) return;
    const char *base = base_of(f, &n);
    tide_text_add(key, " ");
    tide_text_add_n(key, base, n);
}

static void add_frame(const frame *f, tide_group_by by, tide_text *key) {
    switch (by) {
    case TIDE_BY_FILE:
        tide_text_add_n(key, f->file != NULL ? f->file : "(no file)",
                        f->file != NULL ? f->n_file : strlen("(no file)"));
        break;
    case TIDE_BY_LIBRARY:
        add_library(f, key);
        break;
    default:
        add_function(f, key);
        break;
    }
}

void tide__stack_key(const tide_trace *t, uint32_t scope_id, tide_group_by by, tide_text *key) {
    const bool is_there = t != NULL && scope_id != 0, is_told = is_there && next_region(t, scope_id) != 0;
    const frame f = is_there ? leading(t, scope_id) : (frame){0};
    if (f.function == NULL && !(is_told && (by == TIDE_BY_MODULE || by == TIDE_BY_CATEGORY))) {
        tide_text_add(key, no_stack(t, by));
        return;
    }
    switch (by) {
    case TIDE_BY_MODULE:
        if (is_told)
            tide_text_add(key, region_name(t, next_region(t, scope_id)));
        else
            (void)module_key(t, scope_id, key, NULL);
        break;
    case TIDE_BY_STACK:
        lines_key(t, scope_id, key);
        break;
    case TIDE_BY_CATEGORY:
        tide_text_add(key, category_of(t, scope_id));
        break;
    default:
        add_frame(&f, by, key);
        break;
    }
}

tide_call_rank tide_call_rank_of(const tide_call *c) {
    const frame f = frame_of(c->name);
    size_t n;
    if (!c->is_frame || !is_python(&f)) return TIDE_CALL_OTHER;
    return library_of(&f, &n) != NULL ? TIDE_CALL_LIBRARY : TIDE_CALL_PROGRAM;
}

// ---- what each holds with all that it called ----
//
//     main > forward > forward > bmm   4 MiB      main 7, forward 4: it lies in itself, which counts once
//     main > step                      3 MiB      step 3, bmm 4

typedef struct summing {
    tide_group *groups; ///< [n], the caller's: grown here
    size_t n, cap;
    tide_strmap by_key; ///< place of each
    tide_text key;      ///< room
} summing;

/// The group of s->key, made where it is new.
static tide_status group_of_key(summing *s, uint32_t *out) {
    uint64_t i;
    if (s->key.failed) return TIDE_ERR_NOMEM;
    if (tide_strmap_get(&s->by_key, tide_text_str(&s->key), &i)) {
        *out = (uint32_t)i;
        return TIDE_OK;
    }
    TIDE_TRY(tide_host_grow(&s->groups, &s->cap, s->n + 1, sizeof *s->groups));
    TIDE_TRY(tide_strmap_put(&s->by_key, tide_text_str(&s->key), s->n));
    char *copy = tide_host_strdup(tide_text_str(&s->key));
    if (copy == NULL) return TIDE_ERR_NOMEM;
    *out = (uint32_t)s->n;
    s->groups[s->n++] = (tide_group){.key = copy};
    return TIDE_OK;
}

static tide_status add_to_key(summing *s, uint64_t n_blocks, uint64_t bytes) {
    uint32_t at;
    TIDE_TRY(group_of_key(s, &at));
    s->groups[at].with_blocks += n_blocks;
    s->groups[at].with_bytes += bytes;
    return TIDE_OK;
}

// ---- by frames ----

/// Of each call its group; of an operator none.
static tide_status groups_of_calls(summing *s, const tide_calls *c, tide_group_by by, uint32_t *group_of) {
    for (size_t i = 1; i < c->n; i++) {
        if (!c->calls[i].is_frame) continue;
        s->key.len = 0;
        const frame f = frame_of(c->calls[i].name);
        add_frame(&f, by, &s->key);
        TIDE_TRY(group_of_key(s, &group_of[i]));
    }
    return TIDE_OK;
}

/// `entered` [s->n]: how many calls of a group the walk is in.
static void leave_to(const tide_calls *c, const uint32_t *group_of, uint32_t from, uint32_t to, uint32_t *entered) {
    for (uint32_t i = from; i != to; i = c->calls[i].parent)
        if (c->calls[i].is_frame) {
            TIDE_ASSERT(entered[group_of[i]] > 0);
            entered[group_of[i]]--;
        }
}

static void sum_frames(summing *s, const tide_calls *c, const uint32_t *group_of, uint32_t *entered) {
    uint32_t last = 0;
    for (uint32_t i = tide_calls_next(c, 0); i != 0; i = tide_calls_next(c, i)) {
        const tide_call *call = &c->calls[i];
        leave_to(c, group_of, last, call->parent, entered);
        last = i;
        if (!call->is_frame || entered[group_of[i]]++ > 0) continue;
        s->groups[group_of[i]].with_blocks += call->n_blocks;
        s->groups[group_of[i]].with_bytes += call->bytes;
    }
}

static tide_status add_frames(summing *s, const tide_calls *c, tide_group_by by) {
    uint32_t *group_of = tide_host_calloc(c->n, sizeof *group_of), *entered = NULL;
    tide_status st = group_of != NULL ? groups_of_calls(s, c, by, group_of) : TIDE_ERR_NOMEM;
    if (st == TIDE_OK && (entered = tide_host_calloc(s->n + 1, sizeof *entered)) == NULL) st = TIDE_ERR_NOMEM;
    if (st == TIDE_OK) sum_frames(s, c, group_of, entered);
    tide_host_free(group_of);
    tide_host_free(entered);
    return st;
}

// ---- by modules ----

/// Blocks of a set that have one scope.
typedef struct scope_sum {
    uint64_t key; ///< the scope + 1
    uint64_t n_blocks, bytes;
} scope_sum;

static tide_status sum_scopes(const tide_live_set *set, tide_map *sums) {
    for (size_t i = 0; i < set->n; i++) {
        const tide_live *item = &set->items[i];
        const uint64_t key = (set->trace != NULL && !item->in_buffer ? (uint64_t)item->scope_id : 0) + 1;
        scope_sum *known = tide_map_find(sums, key);
        if (known != NULL) {
            known->n_blocks++;
            known->bytes += item->requested_bytes;
        } else if (!tide_map_put(sums, &(scope_sum){key, 1, item->requested_bytes})) {
            return TIDE_ERR_NOMEM;
        }
    }
    return TIDE_OK;
}

/// Each region that a block lies in, of one name once: a module that calls itself.
static tide_status add_regions(summing *s, const tide_trace *t, uint32_t scope, const scope_sum *of) {
    for (uint32_t id = next_region(t, scope); id != 0; id = next_region(t, t->names.scopes[id].parent)) {
        uint32_t inner = next_region(t, scope);
        while (inner != id && t->names.scopes[inner].name_id != t->names.scopes[id].name_id)
            inner = next_region(t, t->names.scopes[inner].parent);
        if (inner != id) continue;
        s->key.len = 0;
        tide_text_add(&s->key, region_name(t, id));
        TIDE_TRY(add_to_key(s, of->n_blocks, of->bytes));
    }
    return TIDE_OK;
}

/// Each module holds what the modules in it do: "a > b > c" counts in "a", "a > b" and itself.
static tide_status add_modules_of(summing *s, const tide_trace *t, uint32_t scope, const scope_sum *of) {
    size_t ends[MAX_MODULES];
    s->key.len = 0;
    if (t == NULL || scope == 0 || (next_region(t, scope) == 0 && leading(t, scope).function == NULL)) {
        tide_text_add(&s->key, no_stack(t, TIDE_BY_MODULE));
        return add_to_key(s, of->n_blocks, of->bytes);
    }
    if (next_region(t, scope) != 0) return add_regions(s, t, scope, of);
    for (size_t k = module_key(t, scope, &s->key, ends); k-- > 0;) {
        if (s->key.failed) return TIDE_ERR_NOMEM;
        s->key.len = ends[k];
        s->key.data[ends[k]] = '\0';
        TIDE_TRY(add_to_key(s, of->n_blocks, of->bytes));
    }
    return TIDE_OK;
}

static tide_status add_modules(summing *s, const tide_live_set *set) {
    tide_map sums = TIDE_MAP(scope_sum);
    tide_status st = sum_scopes(set, &sums);
    for (size_t i = 0; st == TIDE_OK && i < sums.cap; i++) {
        const scope_sum *one = tide_map_at(&sums, i);
        if (one != NULL) st = add_modules_of(s, set->trace, (uint32_t)(one->key - 1), one);
    }
    tide_map_deinit(&sums);
    return st;
}

// ---- all of them ----

static tide_status sum_calls(summing *s, const tide_live_set *set, tide_group_by by, tide_error *err) {
    tide_calls calls = {0};
    TIDE_TRY(tide_live_set_calls(set, &calls, err));
    tide_status st = TIDE_OK;
    if (calls.untold_blocks > 0) {
        s->key.len = 0;
        tide_text_add(&s->key, "(no stack)");
        st = add_to_key(s, calls.untold_blocks, calls.untold_bytes);
    }
    if (st == TIDE_OK) st = add_frames(s, &calls, by);
    tide_calls_deinit(&calls);
    return st;
}

static tide_status sum(summing *s, const tide_live_set *set, tide_group_by by, tide_error *err) {
    for (size_t i = 0; i < s->n; i++) TIDE_TRY(tide_strmap_put(&s->by_key, s->groups[i].key, i));
    return by == TIDE_BY_MODULE ? add_modules(s, set) : sum_calls(s, set, by, err);
}

/// Lines of Python say more than what carried them out.
static bool is_python_file(const char *key) {
    const size_t n = strlen(key);
    return n > 3 && strcmp(key + n - 3, ".py") == 0;
}

static int by_callees(const void *a, const void *b) {
    const tide_group *x = a, *y = b;
    if (x->with_bytes != y->with_bytes) return x->with_bytes > y->with_bytes ? -1 : 1;
    if (x->requested_bytes != y->requested_bytes) return x->requested_bytes > y->requested_bytes ? -1 : 1;
    if (x->with_blocks != y->with_blocks) return x->with_blocks > y->with_blocks ? -1 : 1;
    if (is_python_file(x->key) != is_python_file(y->key)) return is_python_file(x->key) ? -1 : 1;
    return strcmp(x->key, y->key);
}

void tide_groups_sort_by_callees(tide_group *groups, size_t n) {
    if (n > 1) qsort(groups, n, sizeof *groups, by_callees);
}

tide_status tide__groups_add_callees(const tide_live_set *s, tide_group_by by, tide_group **groups, size_t *n,
                                     tide_error *err) {
    summing sums = {.groups = *groups, .n = *n, .cap = *n};
    const size_t n_own = *n;
    const tide_status st = sum(&sums, s, by, err);
    tide_strmap_deinit(&sums.by_key);
    tide_text_deinit(&sums.key);
    *groups = sums.groups;
    *n = sums.n;
    if (st != TIDE_OK) return TIDE_NO_MEMORY(err, "to group blocks");
    tide_groups_sort_by_callees(sums.groups + n_own, sums.n - n_own);
    return TIDE_OK;
}
