// SPDX-License-Identifier: MIT
//
// Runs and facts as bytes: what each consists of, and the way in. See registration.h; the way out is in
// registration_take.c.
#include "profiler/feed/registration.h"

#include <stdint.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/device/device.h"
#include "core/memory/kind.h"

// ---- numbers and texts ----

static void put_number(tide_text *out, uint64_t v) {
    char bytes[10];
    size_t n = 0;
    for (; v >= 0x80; v >>= 7) bytes[n++] = (char)(v | 0x80);
    bytes[n++] = (char)v;
    tide_text_add_n(out, bytes, n);
}

static uint64_t take_number(tide__codec *c) {
    uint64_t v = 0;
    for (int shift = 0; shift < 64 && c->at < c->end; shift += 7) {
        const uint8_t byte = *c->at++;
        if (shift == 63 && byte > 1) break;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return v;
    }
    c->is_bad = true;
    c->at = c->end;
    return 0;
}

void tide__code_u64(tide__codec *c, uint64_t *v) {
    if (c->out != NULL)
        put_number(c->out, *v);
    else
        *v = take_number(c);
}

void tide__code_size(tide__codec *c, uint64_t *v) {
    tide__code_u64(c, v);
    if (*v <= INT64_MAX) return;
    if (c->out != NULL)
        c->is_too_large = true;
    else
        c->is_bad = true;
}

/// One of 0 ... n - 1.
static int code_choice(tide__codec *c, int v, int n) {
    uint64_t number = (unsigned)v;
    tide__code_u64(c, &number);
    if (number < (unsigned)n) return (int)number;
    c->is_bad = true;
    return 0;
}

/// A step, or another number that is not negative.
static void code_step(tide__codec *c, int64_t *v) {
    uint64_t number = (uint64_t)*v;
    if (c->out != NULL && *v < 0) c->is_bad = true;
    tide__code_u64(c, &number);
    if (c->out == NULL && number > INT64_MAX) c->is_bad = true;
    *v = (int64_t)(number & INT64_MAX);
}

/// TIDE_NO_INDEX is the shortest.
static void code_index(tide__codec *c, uint32_t *v) {
    uint64_t number = (uint64_t)(uint32_t)(*v + 1);
    tide__code_u64(c, &number);
    if (number > UINT32_MAX) c->is_bad = true;
    *v = (uint32_t)number - 1;
}

static void code_u32(tide__codec *c, uint32_t *v) {
    uint64_t number = *v;
    tide__code_u64(c, &number);
    if (number > UINT32_MAX) c->is_bad = true;
    *v = (uint32_t)number;
}

void tide__code_count(tide__codec *c, size_t *n, size_t least) {
    uint64_t number = *n;
    tide__code_u64(c, &number);
    if (c->out == NULL && number > (uint64_t)(c->end - c->at) / least) {
        c->is_bad = true;
        number = 0;
    }
    *n = (size_t)number;
}

void tide__code_text(tide__codec *c, char **text) {
    if (c->out != NULL) {
        const size_t len = *text != NULL ? strlen(*text) : 0;
        put_number(c->out, *text != NULL ? (uint64_t)len + 1 : 0);
        tide_text_add_n(c->out, *text != NULL ? *text : "", len);
        return;
    }
    *text = NULL;
    const uint64_t n = take_number(c);
    if (n == 0) return;
    if (n - 1 > (uint64_t)(c->end - c->at) || memchr(c->at, '\0', (size_t)(n - 1)) != NULL) {
        c->is_bad = true;
        return;
    }
    *text = tide_host_strndup((const char *)c->at, (size_t)(n - 1));
    if (*text == NULL) c->has_no_memory = true;
    c->at += n - 1;
}

// ---- what a run and a plan consist of ----

static void code_kind(tide__codec *c, tide_memory_kind *kind) {
    *kind = (tide_memory_kind)code_choice(c, (int)*kind, TIDE_N_KINDS);
}

static void code_device(tide__codec *c, tide_device *device) {
    device->type = (tide_device_type)code_choice(c, (int)device->type, TIDE_MAX_DEVICE_TYPES);
    device->index = code_choice(c, device->index, INT32_MAX);
}

/// For a writer, which changes no text that it is given.
static void code_const_text(tide__codec *c, const char **text) {
    char *plain = (char *)(uintptr_t)*text;
    tide__code_text(c, &plain);
    *text = plain;
}

void tide__code_run(tide__codec *c, tide_run_info *info, int64_t *begin_ns, bool *has_plan) {
    code_step(c, begin_ns);
    code_const_text(c, &info->model);
    code_const_text(c, &info->source);
    code_const_text(c, &info->mode);
    code_const_text(c, &info->strategy);
    code_const_text(c, &info->device);
    code_u32(c, &info->n_contexts);
    *has_plan = code_choice(c, *has_plan, 2) != 0;
}

void tide__code_plan_head(tide__codec *c, tide_memory_plan *p) {
    tide_lifetimes *lt = &p->lifetimes;
    tide__code_text(c, &p->strategy);
    p->form = code_choice(c, p->form == TIDE_PLAN_OFFSETS, 2) != 0 ? TIDE_PLAN_OFFSETS : TIDE_PLAN_POOLS;
    tide__code_text(c, &lt->model);
    uint64_t *const sizes[] = {&p->align_bytes,       &p->bytes,        &p->naive_bytes, &p->naive_peak_bytes,
                               &p->lower_bound_bytes, &p->proved_bytes, &p->time_ns};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) tide__code_size(c, sizes[i]);
    p->proven = code_choice(c, p->proven, 2) != 0;
    p->verified = code_choice(c, p->verified, 2) != 0;
    code_step(c, &lt->n_steps);
    tide__code_size(c, &lt->given_plan_bytes);
    tide_process_facts *f = &lt->process;
    tide__code_size(c, &f->program_bytes);
    tide__code_size(c, &f->own_bytes);
    tide__code_size(c, &f->constants_bytes);
    tide__code_size(c, &f->mapped_bytes);
}

void tide__code_buffer(tide__codec *c, tide_plan_buffer *b) {
    code_device(c, &b->device);
    code_kind(c, &b->kind);
    uint64_t *const sizes[] = {&b->align_bytes,       &b->bytes,       &b->naive_bytes, &b->naive_peak_bytes,
                               &b->lower_bound_bytes, &b->proved_bytes};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) tide__code_size(c, sizes[i]);
#define XX(name, text) +1
    b->proof = (tide_proof)code_choice(c, (int)b->proof, TIDE_PROOF_MAP(XX));
#undef XX
}

void tide__code_pool(tide__codec *c, tide_plan_pool *pool) {
    uint64_t n = pool->n_members;
    tide__code_size(c, &pool->size_bytes);
    tide__code_size(c, &pool->offset_bytes);
    tide__code_size(c, &n);
    code_u32(c, &pool->buffer);
    pool->n_members = (size_t)n;
}

void tide__code_region(tide__codec *c, tide_plan_region *x) {
    x->kind = (tide_body_kind)code_choice(c, (int)x->kind, TIDE_BODY_SCAN + 1);
    code_step(c, &x->open_step);
    code_step(c, &x->begin_step);
    code_step(c, &x->end_step);
}

static void code_alias(tide__codec *c, tide_lifetime *item) {
#define XX(name, text) +1
    item->alias = (tide_alias_kind)code_choice(c, (int)item->alias, TIDE_ALIAS_MAP(XX));
#undef XX
    if (item->alias == TIDE_ALIAS_NONE) return;
    code_u32(c, &item->alias_of);
    tide__code_size(c, &item->alias_offset_bytes);
}

void tide__code_lifetime(tide__codec *c, tide_lifetime *item) {
    tide__code_size(c, &item->size_bytes);
    tide__code_size(c, &item->align_bytes);
    code_step(c, &item->begin_step);
    code_step(c, &item->end_step);
    code_kind(c, &item->kind);
    code_device(c, &item->device);
#define XX(name, value, text) +1
    item->role = (tide_role)code_choice(c, (int)item->role, TIDE_ROLE_MAP(XX));
#undef XX
    const int flags = code_choice(c, item->persistent | item->unrounded << 1 | item->fixed << 2, 8);
    item->persistent = (flags & 1) != 0;
    item->unrounded = (flags & 2) != 0;
    item->fixed = (flags & 4) != 0;
    code_index(c, &item->node);
    code_index(c, &item->port);
    code_index(c, &item->value);
    if (item->fixed) tide__code_size(c, &item->fixed_offset_bytes);
    code_u32(c, &item->apart_set);
    code_alias(c, item);
    code_u32(c, &item->n_gaps);
    tide__code_text(c, &item->bound);
}

void tide__code_gap(tide__codec *c, tide_gap *gap) {
    code_step(c, &gap->begin_step);
    code_step(c, &gap->end_step);
    tide__code_size(c, &gap->lo_bytes);
    tide__code_size(c, &gap->hi_bytes);
}

void tide__code_place(tide__codec *c, uint64_t *offset, int32_t *pool) {
    uint64_t next = *offset + 1; // TIDE_NO_OFFSET is 0
    uint32_t index = (uint32_t)*pool;
    tide__code_size(c, &next);
    code_index(c, &index);
    if (c->out == NULL && index != (uint32_t)TIDE_NO_POOL && index > INT32_MAX) c->is_bad = true;
    *offset = next - 1;
    *pool = (int32_t)index;
}

// ---- the way in ----

static void put_texts(tide__codec *c, char **texts, size_t n) {
    tide__code_count(c, &n, 1);
    for (size_t i = 0; i < n; i++) tide__code_text(c, &texts[i]);
}

static void put_tensor(tide__codec *c, const tide_memory_plan *p, size_t i) {
    tide_lifetime item = p->lifetimes.items[i];
    tide__code_text(c, &item.name);
    tide__code_lifetime(c, &item);
    for (uint32_t k = 0; k < item.n_gaps; k++) {
        tide_gap gap = item.gaps[k];
        tide__code_gap(c, &gap);
    }
    uint64_t n = item.point_bytes != NULL ? p->lifetimes.n_points : 0;
    tide__code_u64(c, &n);
    for (size_t k = 0; k < n; k++) {
        uint64_t bytes = item.point_bytes[k];
        tide__code_size(c, &bytes);
    }
    uint64_t offset = p->offsets[i];
    int32_t pool = p->pools[i];
    tide__code_place(c, &offset, &pool);
}

static void put_plan(tide__codec *c, const tide_memory_plan *p) {
    const tide_lifetimes *lt = &p->lifetimes;
    tide_memory_plan head = *p; // the codec changes nothing that it puts; a copy says so to the compiler
    size_t n_buffers = p->n_buffers, n_pools = p->n_pools, n_regions = lt->n_regions, n = lt->n;
    tide__code_plan_head(c, &head);
    put_texts(c, lt->point_names, lt->n_points);
    put_texts(c, lt->step_names, lt->n_step_names);
    put_texts(c, lt->recomputed, lt->n_recomputed);
    put_texts(c, lt->dynamic, lt->n_dynamic);
    tide__code_count(c, &n_buffers, 1);
    for (size_t i = 0; i < n_buffers; i++) {
        tide_plan_buffer b = p->buffers[i];
        tide__code_buffer(c, &b);
    }
    tide__code_count(c, &n_pools, 1);
    for (size_t i = 0; i < n_pools; i++) {
        tide_plan_pool pool = p->pool_list[i];
        tide__code_pool(c, &pool);
    }
    tide__code_count(c, &n_regions, 1);
    for (size_t i = 0; i < n_regions; i++) {
        tide_plan_region x = lt->regions[i];
        tide__code_region(c, &x);
    }
    tide__code_count(c, &n, TIDE__LEAST_TENSOR_BYTES);
    for (size_t i = 0; i < n; i++) put_tensor(c, p, i);
}

tide_status tide__registration_put_run(tide_text *out, const tide_run_info *info, const tide_memory_plan *plan,
                                       int64_t begin_ns, tide_error *err) {
    tide__codec c = {.out = out};
    tide_run_info copy = *info;
    bool has_plan = plan != NULL;
    tide__code_run(&c, &copy, &begin_ns, &has_plan);
    if (plan != NULL) put_plan(&c, plan);
    const char *model = info->model != NULL ? info->model : "";
    if (out->failed) return TIDE_NO_MEMORY(err, "for a run of '%s'", model);
    if (c.is_too_large)
        return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "cannot record the plan of '%s': a number of it passes 2^63 - 1",
                         model);
    if (c.is_bad) return TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot record a run of '%s': its plan is none", model);
    return TIDE_OK;
}

tide_status tide__registration_put_fact(tide_text *out, const char *key, const char *value, tide_error *err) {
    tide__codec c = {.out = out};
    code_const_text(&c, &key);
    code_const_text(&c, &value);
    return out->failed ? TIDE_NO_MEMORY(err, "for '%s'", key) : TIDE_OK;
}

bool tide__is_own_key(const char *key) {
    static const char *const own[] = {
        "schema",          "version",          "created_by",     "created_utc", "clock",  "state",   "reason",
        "n_events",        "first_kept_event", "n_scope_events", "n_blocks",    "n_runs", "n_names", "n_scopes",
        "requested_bytes", "freed_bytes",      "n_orphan_frees", "n_problems",  "n_late", "n_lost",  "totals",
        "feed_bytes",      "blocked_ns",       "own_peak_bytes", "left_bytes",
    };
    if (strncmp(key, "process_end.", 12) == 0) return true;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (strcmp(key, own[i]) == 0) return true;
    return false;
}
