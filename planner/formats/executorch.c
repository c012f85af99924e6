// SPDX-License-Identifier: MIT
//
// An ExecuTorch program as a list of lifetimes: a step for each instruction of the method `forward` (or of the first
// one), a tensor lives from the first instruction that names it to the last, inputs from the first step on, outputs to
// the last. What the file says of places is its own plan (exir/memory_planning.py): of it stay the bytes it needs, and
// which tensors lie in each other.
//
//     instruction   KernelCall(aten::add.out)   DelegateCall(XnnpackBackend)   MoveCall   JumpFalseCall   FreeCall
//     names         [a, b, alpha, out, out]     [inputs …, outputs …]          from, to   condition       value
//
// The emitter (exir/emit/_emitter.py) puts what a call makes last, and leaves out a view that lies where its base
// does. So a tensor that an instruction reads and none has written is one of three: a view, where the last one at its
// place is as large and of its type; a state that stays from one run to the next, where nothing else ever lies in its
// bytes; else scratch of that instruction. Values are described by executorch_values.c.
//
// Field numbers are those of schema/program.fbs, identifier ET12.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/base/log.h"
#include "planner/formats/executorch.h"

enum { METHOD_NAME = 0, METHOD_INPUTS = 3, METHOD_OUTPUTS, METHOD_CHAINS, METHOD_OPERATORS, METHOD_DELEGATES };
enum { OPERATOR_NAME = 0, OPERATOR_OVERLOAD, DELEGATE_ID = 0 };
enum { CHAIN_INSTRUCTIONS = 2, INSTRUCTION_TYPE = 0, INSTRUCTION_ARGS };
enum { KERNEL = 1, DELEGATE, MOVE, JUMP_FALSE, FREE };

enum {
    ALIGN = 16,      ///< of exir (MemoryPlanningPass, alignment)
    MAX_LOOPS = 256, ///< jumps backwards that are followed
};

// ---- which value an instruction names ----

/// A mention of a value by an instruction.
static void mention(tide__et *r, uint32_t i, int64_t step, tide__et_use use) {
    // A view without a place of its own lies in its base.
    for (int hops = 0; r->values[i].view_of != TIDE__ET_NONE && hops < 64; hops++) i = r->values[i].view_of;
    tide__et_value *v = &r->values[i];
    if (v->first < 0) {
        v->first = step;
        v->first_use = use;
    }
    if (v->last < step) v->last = step;
}

static tide_status check_index(tide__et *r, int32_t i, const char *what) {
    if (i >= 0 && (size_t)i < r->n_values) return TIDE_OK;
    return TIDE__ET_BAD(r, "%s is value %" PRId32 " of %zu", what, i, r->n_values);
}

/// A list of tensors stands for its members.
static tide_status mention_all(tide__et *r, int32_t i, int64_t step, tide__et_use use) {
    TIDE_TRY(check_index(r, i, "an argument of an instruction"));
    mention(r, (uint32_t)i, step, use);
    const tide__fb_vector *members = &r->values[i].members;
    TIDE_TRY(tide__fb_spend(&r->fb, members->at, members->n));
    for (size_t k = 0; k < members->n; k++) {
        const int32_t m = tide__fb_i32_at(&r->fb, members, k);
        if (m == -1) continue; // None in a list of optional tensors
        TIDE_TRY(check_index(r, m, "a member of a list"));
        mention(r, (uint32_t)m, step, use);
    }
    return TIDE_OK;
}

/// What a call makes is its last argument; what it changes in place, it reads too. The outputs of a delegate are the
/// last ones: how many they are is not in the file.
static tide_status mention_args(tide__et *r, const tide__fb_vector *args, int64_t step, tide__et_use last,
                                tide__et_use others) {
    if (args->n == 0) return TIDE_OK;
    TIDE_TRY(mention_all(r, tide__fb_i32_at(&r->fb, args, args->n - 1), step, last));
    for (size_t k = 0; k + 1 < args->n; k++) TIDE_TRY(mention_all(r, tide__fb_i32_at(&r->fb, args, k), step, others));
    return TIDE_OK;
}

/// `executorch_prim::et_view` [base, size, out]: `out` without a place of its own gets that of its base.
static tide_status note_view(tide__et *r, const char *op, const tide__fb_vector *args) {
    if (strncmp(op, "executorch_prim::et_view", strlen("executorch_prim::et_view")) != 0 || args->n != 3)
        return TIDE_OK;
    const int32_t base = tide__fb_i32_at(&r->fb, args, 0), out = tide__fb_i32_at(&r->fb, args, 2);
    TIDE_TRY(check_index(r, base, "the base of a view"));
    TIDE_TRY(check_index(r, out, "a view"));
    tide__et_value *v = &r->values[out];
    if (v->is_planned || v->role == TIDE_ROLE_INPUT || v->view_of != TIDE__ET_NONE || v->first >= 0 || base == out)
        return TIDE_OK;
    uint32_t root = (uint32_t)base;
    for (int hops = 0; r->values[root].view_of != TIDE__ET_NONE; hops++) {
        root = r->values[root].view_of;
        if (root == (uint32_t)out || hops == 64) return TIDE__ET_BAD(r, "views lie in each other in a circle");
    }
    v->view_of = root;
    v->is_view = true;
    if (v->role == TIDE_ROLE_OUTPUT) r->values[root].last = INT64_MAX; // until the end, cut there
    return TIDE_OK;
}

// ---- instructions ----

typedef struct jump {
    int64_t to, from; // a loop: steps to … from
} jump;

typedef struct code {
    tide__fb_vector operators, delegates;
    jump *loops; // [n_loops]
    size_t n_loops, cap_loops;
} code;

static void code_deinit(code *c) { tide_host_free(c->loops); }

/// PyTorch's operators that work in place end with `_`.
static tide_status operator_name(tide__et *r, const code *c, uint32_t i, tide_text *out, bool *is_in_place) {
    tide__fb_table t;
    tide__fb_text name, overload;
    if (i >= c->operators.n)
        return TIDE__ET_BAD(r, "an instruction calls operator %" PRIu32 " of %zu", i, c->operators.n);
    TIDE_TRY(tide__fb_table_at(&r->fb, &c->operators, i, &t));
    TIDE_TRY(tide__fb_string(&r->fb, &t, OPERATOR_NAME, &name));
    TIDE_TRY(tide__fb_string(&r->fb, &t, OPERATOR_OVERLOAD, &overload));
    *is_in_place = name.len > 0 && name.data[name.len - 1] == '_';
    if (name.len > 0) tide_text_add_n(out, name.data, name.len);
    if (overload.len > 0) tide_text_add(out, ".");
    if (overload.len > 0) tide_text_add_n(out, overload.data, overload.len);
    return TIDE_OK;
}

static tide_status delegate_name(tide__et *r, const code *c, uint32_t i, tide_text *out) {
    tide__fb_table t;
    tide__fb_text id;
    if (i >= c->delegates.n)
        return TIDE__ET_BAD(r, "an instruction calls delegate %" PRIu32 " of %zu", i, c->delegates.n);
    TIDE_TRY(tide__fb_table_at(&r->fb, &c->delegates, i, &t));
    TIDE_TRY(tide__fb_string(&r->fb, &t, DELEGATE_ID, &id));
    if (id.len > 0) tide_text_add_n(out, id.data, id.len);
    return TIDE_OK;
}

/// A kernel or a delegate: field 0 says which, field 1 with which values.
static tide_status read_call(tide__et *r, const code *c, uint8_t type, const tide__fb_table *args, int64_t step,
                             tide_text *name) {
    tide__fb_vector list;
    uint32_t i;
    TIDE_TRY(tide__fb_u32(&r->fb, args, 0, 0, &i));
    TIDE_TRY(tide__fb_list(&r->fb, args, 1, 4, &list));
    bool is_in_place = false;
    TIDE_TRY(type == KERNEL ? operator_name(r, c, i, name, &is_in_place) : delegate_name(r, c, i, name));
    if (type == KERNEL) TIDE_TRY(note_view(r, tide_text_str(name), &list));
    if (type == DELEGATE) return mention_args(r, &list, step, TIDE__ET_WRITES, TIDE__ET_MAY_WRITE);
    return mention_args(r, &list, step, is_in_place ? TIDE__ET_READS : TIDE__ET_WRITES, TIDE__ET_READS);
}

/// The moved value is the same bytes under another number: both are one from then on.
static tide_status read_move(tide__et *r, const tide__fb_table *args, int64_t step) {
    int32_t from, to;
    TIDE_TRY(tide__fb_i32(&r->fb, args, 0, 0, &from));
    TIDE_TRY(tide__fb_i32(&r->fb, args, 1, 0, &to));
    TIDE_TRY(mention_all(r, from, step, TIDE__ET_READS));
    TIDE_TRY(mention_all(r, to, step, TIDE__ET_WRITES));
    return tide__et_unite(r, (uint32_t)from, (uint32_t)to);
}

static tide_status read_jump(tide__et *r, code *c, const tide__fb_table *args, int64_t chain_begin, size_t n,
                             int64_t step) {
    int32_t condition, to;
    TIDE_TRY(tide__fb_i32(&r->fb, args, 0, 0, &condition));
    TIDE_TRY(tide__fb_i32(&r->fb, args, 1, 0, &to));
    TIDE_TRY(mention_all(r, condition, step, TIDE__ET_READS));
    if (to < 0 || (size_t)to > n) return TIDE__ET_BAD(r, "a jump to instruction %" PRId32 " of %zu", to, n);
    if (chain_begin + to > step) return TIDE_OK;
    if (c->n_loops == MAX_LOOPS) return TIDE__ET_BAD(r, "more than %d jumps backwards are not read", (int)MAX_LOOPS);
    TIDE_TRY(TIDE_GROW(&c->loops, &c->cap_loops, c->n_loops + 1, r->err, "to read %s", r->list.path));
    c->loops[c->n_loops++] = (jump){chain_begin + to, step};
    return TIDE_OK;
}

static tide_status read_args(tide__et *r, code *c, uint8_t type, const tide__fb_table *args, int64_t chain_begin,
                             size_t n, int64_t step, tide_text *name) {
    int32_t value;
    switch (type) {
    case KERNEL:
    case DELEGATE:
        return read_call(r, c, type, args, step, name);
    case MOVE:
        tide_text_add(name, "move");
        return read_move(r, args, step);
    case JUMP_FALSE:
        tide_text_add(name, "jump");
        return read_jump(r, c, args, chain_begin, n, step);
    case FREE:
        tide_text_add(name, "free");
        TIDE_TRY(tide__fb_i32(&r->fb, args, 0, 0, &value));
        return mention_all(r, value, step, TIDE__ET_READS);
    default:
        return TIDE__ET_BAD(r, "an instruction is of type %u, which is not in the schema", (unsigned)type);
    }
}

static tide_status read_instruction(tide__et *r, code *c, const tide__fb_vector *list, size_t i, int64_t chain_begin) {
    tide__fb_table t, args;
    uint8_t type;
    char *copy;
    tide_text name = {0};
    const int64_t step = chain_begin + (int64_t)i;
    TIDE_TRY(tide__fb_table_at(&r->fb, list, i, &t));
    TIDE_TRY(tide__fb_u8(&r->fb, &t, INSTRUCTION_TYPE, 0, &type));
    TIDE_TRY(tide__fb_child(&r->fb, &t, INSTRUCTION_ARGS, &args));
    tide_status st = read_args(r, c, type, &args, chain_begin, list->n, step, &name);
    tide_text_addf(&name, ".%" PRId64, step);
    if (st == TIDE_OK && name.failed) st = TIDE_NO_MEMORY(r->err, "to read %s", r->list.path);
    if (st == TIDE_OK) st = TIDE_COPY_TEXT(&copy, tide_text_str(&name), r->err, "to read %s", r->list.path);
    if (st == TIDE_OK) st = tide__list_add_step(&r->list, copy);
    tide_text_deinit(&name);
    return st;
}

static tide_status read_chains(tide__et *r, code *c) {
    tide__fb_vector chains, list;
    tide__fb_table chain;
    TIDE_TRY(tide__fb_list(&r->fb, &r->method, METHOD_CHAINS, 4, &chains));
    TIDE_TRY(tide__fb_list(&r->fb, &r->method, METHOD_OPERATORS, 4, &c->operators));
    TIDE_TRY(tide__fb_list(&r->fb, &r->method, METHOD_DELEGATES, 4, &c->delegates));
    for (size_t k = 0; k < chains.n; k++) {
        const int64_t begin = (int64_t)r->list.lt->n_step_names;
        TIDE_TRY(tide__fb_table_at(&r->fb, &chains, k, &chain));
        TIDE_TRY(tide__fb_list(&r->fb, &chain, CHAIN_INSTRUCTIONS, 4, &list));
        for (size_t i = 0; i < list.n; i++) TIDE_TRY(read_instruction(r, c, &list, i, begin));
    }
    return TIDE_OK;
}

// ---- lifetimes ----

/// What a loop needs from outside, or hands from one round to the next, is needed until its last round is done. What
/// an instruction of the loop makes anew in each round is not.
static void stretch_over_loops(tide__et *r, const code *c) {
    bool changed = c->n_loops > 0;
    for (int rounds = 0; changed && rounds < 8; rounds++) {
        changed = false;
        for (size_t k = 0; k < c->n_loops; k++) {
            const jump loop = c->loops[k];
            for (size_t i = 0; i < r->n_values; i++) {
                tide__et_value *v = &r->values[i];
                if (v->first < 0 || v->last < loop.to || v->first > loop.from) continue;
                if (v->first >= loop.to && v->first_use == TIDE__ET_WRITES) continue;
                changed = changed || v->last < loop.from || v->first > loop.to;
                if (v->last < loop.from) v->last = loop.from;
                if (v->first > loop.to) v->first = loop.to;
            }
        }
    }
}

/// By place, then by birth.
static int compare_places(const void *a, const void *b) {
    const tide__et_value *x = *(tide__et_value *const *)a, *y = *(tide__et_value *const *)b;
    if (x->memory != y->memory) return x->memory < y->memory ? -1 : 1;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    return (x > y) - (x < y);
}

/// A view has the bytes of its base, as many of one type.
static bool is_view_of(const tide__et_value *v, const tide__et_value *base) {
    return base->memory == v->memory && base->offset == v->offset && base->bytes == v->bytes && base->type == v->type;
}

/// One of `sorted` [n] that is read and was not written: a view of what was there, which stays until then. Or, where
/// nothing else ever lies in its bytes, a state. Or scratch of the one that names it.
///
/// @param reach  the end of all before it, of the same memory
static void settle(tide__et_value *const *sorted, size_t n, size_t i, uint64_t reach) {
    tide__et_value *v = sorted[i], *base = i > 0 ? sorted[i - 1] : NULL;
    if (base != NULL && is_view_of(v, base) && !v->is_state) {
        if (base->last < v->first) base->last = v->first;
        return;
    }
    const bool is_next_apart =
        i + 1 == n || sorted[i + 1]->memory != v->memory || sorted[i + 1]->offset >= v->offset + v->bytes;
    const bool is_alone = reach <= v->offset && is_next_apart;
    if (!v->is_state && (v->first_use == TIDE__ET_MAY_WRITE || !is_alone)) return;
    v->is_state = true;
    v->first = 0;
    v->last = INT64_MAX;
}

static tide_status find_views(tide__et *r) {
    tide__et_value **sorted;
    size_t n = 0;
    uint64_t reach = 0;
    TIDE_TRY(TIDE_NEW(&sorted, r->n_values + 1, r->err, "to read %s", r->list.path));
    for (size_t i = 0; i < r->n_values; i++) {
        tide__et_value *v = &r->values[i];
        if (v->is_planned && v->first >= 0 && v->bytes > 0) sorted[n++] = v;
    }
    qsort(sorted, n, sizeof(tide__et_value *), compare_places);
    for (size_t i = 0; i < n; i++) {
        const tide__et_value *v = sorted[i];
        if (i > 0 && sorted[i - 1]->memory != v->memory) reach = 0;
        if (v->first_use != TIDE__ET_WRITES || v->is_state) settle(sorted, n, i, reach);
        if (reach < v->offset + v->bytes) reach = v->offset + v->bytes;
    }
    tide_host_free(sorted);
    return TIDE_OK;
}

static tide_status mark_ends(tide__et *r, unsigned slot, tide_role role) {
    tide__fb_vector list;
    TIDE_TRY(tide__fb_list(&r->fb, &r->method, slot, 4, &list));
    for (size_t k = 0; k < list.n; k++) {
        const int32_t i = tide__fb_i32_at(&r->fb, &list, k);
        TIDE_TRY(check_index(r, i, "an input or output of the method"));
        tide__et_value *v = &r->values[i];
        if (role == TIDE_ROLE_INPUT) mention(r, (uint32_t)i, 0, TIDE__ET_WRITES);
        if (role == TIDE_ROLE_OUTPUT) v->is_output = true;
        if (v->role == TIDE_ROLE_INTERMEDIATE) v->role = role;
    }
    return TIDE_OK;
}

/// Outputs and states live to the end, and so does what a view of them lies in.
static void end_lives(tide__et *r) {
    const int64_t last = r->list.lt->n_steps - 1;
    for (size_t i = 0; i < r->n_values; i++) {
        tide__et_value *v = &r->values[i];
        if (v->is_output && v->first < 0) v->first = 0;
        if (v->is_output || v->last > last) v->last = last;
        TIDE_ASSERT(v->first <= v->last);
    }
    tide__et_end_united(r);
}

static tide_status read_lives(tide__et *r) {
    code c = {0};
    TIDE_TRY(mark_ends(r, METHOD_INPUTS, TIDE_ROLE_INPUT));
    TIDE_TRY(mark_ends(r, METHOD_OUTPUTS, TIDE_ROLE_OUTPUT));
    tide_status st = read_chains(r, &c);
    if (r->list.lt->n_steps == 0) r->list.lt->n_steps = 1; // what persists lives somewhere
    if (st == TIDE_OK) {
        stretch_over_loops(r, &c);
        end_lives(r);
        st = find_views(r);
        end_lives(r);
    }
    code_deinit(&c);
    return st;
}

// ---- items ----

static tide_status add_item(tide__et *r, size_t i, tide_lifetime *item) {
    tide__et_value *v = &r->values[i];
    tide_text text = {0};
    char *name = NULL;
    if (v->name.len > 0)
        tide_text_add_n(&text, v->name.data, v->name.len);
    else
        tide_text_addf(&text, "value %zu", i);
    tide_status st = text.failed ? TIDE_NO_MEMORY(r->err, "to read %s", r->list.path)
                                 : tide__list_unique(&r->list, tide_text_str(&text), &name);
    tide_text_deinit(&text);
    TIDE_TRY(st);
    if (item == NULL) return tide__list_add_dynamic(&r->list, name);
    item->name = name;
    st = tide__list_add_item(&r->list, item);
    tide_host_free(name);
    return st;
}

static tide_status add_planned(tide__et *r, size_t i) {
    const tide__et_value *v = &r->values[i];
    tide_lifetime item = tide_lifetime_make("", v->bytes, ALIGN, v->first, v->last + 1);
    item.role = v->role;
    item.device = v->device;
    TIDE_TRY(add_item(r, i, &item));
    TIDE_TRY(TIDE_GROW(&r->own, &r->cap_own, r->n_own + 1, r->err, "to read %s", r->list.path));
    r->own[r->n_own++] = (tide__own_place){
        .item = (uint32_t)(r->list.lt->n - 1), .memory = v->memory, .offset = v->offset, .bytes = v->bytes};
    return TIDE_OK;
}

/// Memory of its own: weights, and inputs and outputs that the caller brings.
static tide_status add_persistent(tide__et *r, size_t i) {
    const tide__et_value *v = &r->values[i];
    tide_lifetime item = tide_lifetime_make("", v->bytes, ALIGN, 0, r->list.lt->n_steps);
    item.persistent = true;
    item.role = v->is_constant ? TIDE_ROLE_WEIGHT : v->role;
    item.kind = v->is_constant ? TIDE_KIND_PERSISTENT : TIDE_KIND_DEFAULT;
    item.unrounded = v->is_constant;
    return add_item(r, i, &item);
}

static tide_status add_value(tide__et *r, size_t i, size_t *n_unnamed) {
    const tide__et_value *v = &r->values[i];
    if (!v->is_tensor || v->is_view) return TIDE_OK;
    if (v->is_constant) return add_persistent(r, i);
    if (v->is_planned && v->first < 0) {
        ++*n_unnamed;
        return TIDE_OK;
    }
    if (v->is_planned) return add_planned(r, i);
    if (v->is_unbound) return add_item(r, i, NULL);
    if (v->role != TIDE_ROLE_INTERMEDIATE) return add_persistent(r, i);
    if (v->first < 0 || v->bytes == 0) return TIDE_OK;
    return add_item(r, i, NULL); // its memory comes while running
}

static tide_status add_items(tide__et *r) {
    size_t n_unnamed = 0, n_apart;
    for (size_t i = 0; i < r->n_values; i++) TIDE_TRY(add_value(r, i, &n_unnamed));
    if (n_unnamed > 0)
        tide_log(TIDE_LOG_INFO, "'%s': %zu planned tensors that no instruction names are left out", r->list.path,
                 n_unnamed);
    TIDE_TRY(tide__own_places_alias(r->list.lt, r->own, r->n_own, &n_apart, r->err));
    if (n_apart > 0)
        tide_log(TIDE_LOG_INFO,
                 "'%s': %zu tensors overlap another one in part in the file's own plan; they are kept apart",
                 r->list.path, n_apart);
    return TIDE_OK;
}

// ---- entry point ----

static tide_status choose_method(tide__et *r, const tide__fb_vector *methods) {
    if (methods->n == 0) return TIDE__ET_BAD(r, "the program has no method");
    for (size_t i = 0; i < methods->n; i++) {
        tide__fb_table t;
        tide__fb_text name;
        TIDE_TRY(tide__fb_table_at(&r->fb, methods, i, &t));
        TIDE_TRY(tide__fb_string(&r->fb, &t, METHOD_NAME, &name));
        const bool is_forward = name.len == 7 && memcmp(name.data, "forward", 7) == 0;
        if (i > 0 && !is_forward) continue;
        r->method = t;
        r->method_name = name;
        if (is_forward) break;
    }
    if (methods->n > 1)
        tide_log(TIDE_LOG_INFO, "'%s': method '%.*s' of %zu is planned, the others are left out", r->list.path,
                 (int)(r->method_name.len < 100 ? r->method_name.len : 100),
                 r->method_name.data != NULL ? r->method_name.data : "", methods->n);
    return TIDE_OK;
}

static tide_status read_program(tide__et *r) {
    tide__fb_vector methods;
    TIDE_TRY(tide__et_open(r, &methods));
    TIDE_TRY(choose_method(r, &methods));
    TIDE_TRY(tide__et_read_values(r));
    TIDE_TRY(read_lives(r));
    TIDE_TRY(add_items(r));
    r->list.lt->given_plan_bytes = r->own_bytes;
    return TIDE_OK;
}

tide_status tide__list_executorch(const char *data, size_t len, const char *path, tide_lifetimes *out,
                                  tide_error *err) {
    tide__et r = {.fb = {.data = (const unsigned char *)data, .len = len, .path = path, .err = err},
                  .list = {.lt = out, .path = path, .err = err},
                  .err = err};
    const tide_status st = read_program(&r);
    tide__et_deinit(&r);
    return st;
}
