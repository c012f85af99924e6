// SPDX-License-Identifier: MIT
//
// Reader of the `tidemark.plan` document. Trusts nothing: what can be computed from the tensors is computed again and
// must agree, and the plan goes through the verifier before it is returned. Keys it does not know are passed over.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "planner/lifetimes_json.h"
#include "planner/plan.h"
#include "planner/plan_json.h"

typedef struct reader {
    tide_json_reader json;
    json_t *root; // owned
    json_t *plan; // borrowed: the chosen entry of plans[]
    size_t plan_i;
    tide_lifetimes lifetimes; // owned until the plan has a copy
    tide_strmap names;        // tensor name -> index
} reader;

/// A fault at `key` of the object being read.
#define BAD(r, key, ...) TIDE_JSON_BAD(&(r)->json, key, __VA_ARGS__)

/// Messages point into plans[i] from here on.
static void at_plan(reader *r) { snprintf(r->json.at, sizeof r->json.at, "plans[%zu]", r->plan_i); }

/// The entry of `strategy`, or the first one.
static tide_status choose_plan(reader *r, const char *strategy) {
    json_t *plans;
    TIDE_TRY(tide_json_get_list(&r->json, r->root, "plans", &plans));
    if (json_array_size(plans) == 0) return BAD(r, "plans", "the document has no plan");
    tide_text there = {0};
    for (size_t i = 0; i < json_array_size(plans); i++) {
        const char *name = NULL;
        tide_status st = tide_json_enter(&r->json, plans, "plans", i, &r->plan);
        if (st == TIDE_OK) st = tide_json_get_text(&r->json, r->plan, "strategy", &name);
        if (st != TIDE_OK || strategy == NULL || strcmp(name, strategy) == 0) {
            r->plan_i = i;
            tide_text_deinit(&there);
            return st;
        }
        tide_text_addf(&there, "%s%s", i > 0 ? ", " : "", name);
    }
    r->json.at[0] = '\0';
    const tide_status st = tide_json_fault_at(
        &r->json, "plans",
        TIDE_FAIL(r->json.err, TIDE_ERR_NOT_FOUND, "the document has no plan of strategy '%s'", strategy));
    tide_error_note(r->json.err, "it has %s", tide_text_str(&there));
    tide_text_deinit(&there);
    return st;
}

// ---- places ----

static tide_status read_place(reader *r, const json_t *t, tide_memory_plan *plan, size_t i) {
    json_t *places;
    TIDE_TRY(tide_json_get_list(&r->json, t, "places", &places));
    const json_t *place = json_array_get(places, r->plan_i);
    if (!json_is_object(place))
        return BAD(r, "places", "tensor '%s' has no place for plans[%zu]", plan->lifetimes.items[i].name, r->plan_i);
    tide_json_go_into(&r->json, "places[%zu]", r->plan_i); // the next tensor is entered anew
    const json_t *offset = json_object_get(place, "offset");
    if (offset != NULL && !json_is_null(offset))
        TIDE_TRY(tide_json_get_bytes(&r->json, place, "offset", &plan->offsets[i]));
    const json_t *pool = json_object_get(place, "pool");
    if (pool == NULL || json_is_null(pool)) return TIDE_OK;
    if (!json_is_integer(pool) || json_integer_value(pool) < TIDE_NO_POOL || json_integer_value(pool) > INT32_MAX)
        return BAD(r, "pool", "the pool of tensor '%s' is no pool number", plan->lifetimes.items[i].name);
    plan->pools[i] = (int32_t)json_integer_value(pool);
    return TIDE_OK;
}

static tide_status read_places(reader *r, const json_t *tensors, tide_memory_plan *plan) {
    for (size_t i = 0; i < json_array_size(tensors); i++) {
        json_t *t;
        TIDE_TRY(tide_json_enter(&r->json, tensors, "tensors", i, &t));
        TIDE_TRY(read_place(r, t, plan, i));
    }
    return TIDE_OK;
}

/// Where aliases are follows from where their roots are: what the document says must be the same.
static tide_status check_aliases(reader *r, const tide_memory_plan *plan) {
    const tide_lifetimes *lt = &plan->lifetimes;
    for (uint32_t i = 0; i < lt->n; i++) {
        uint64_t at, is;
        if (lt->items[i].alias == TIDE_ALIAS_NONE || plan->offsets[i] == TIDE_NO_OFFSET) continue;
        const uint32_t root = tide_lifetimes_root(lt, i, &at);
        if (plan->offsets[root] != TIDE_NO_OFFSET && tide_add_u64(plan->offsets[root], at, &is) &&
            is == plan->offsets[i])
            continue;
        snprintf(r->json.at, sizeof r->json.at, "tensors[%" PRIu32 "]", i);
        return BAD(r, "places", "tensor '%s' lies in '%s', but not where that one has its bytes", lt->items[i].name,
                   lt->items[root].name);
    }
    return TIDE_OK;
}

// ---- pools ----

static tide_status check_members(reader *r, const json_t *members, const tide_memory_plan *plan, size_t p) {
    for (size_t k = 0; k < json_array_size(members); k++) {
        const char *name = json_string_value(json_array_get(members, k));
        uint64_t i;
        if (name == NULL) return BAD(r, "members", "members[%zu] is no string", k);
        if (!tide_strmap_get(&r->names, name, &i)) return BAD(r, "members", "there is no tensor '%s'", name);
        if (plan->pools[i] < 0 || (size_t)plan->pools[i] != p)
            return BAD(r, "members", "tensor '%s' is a member of pool %zu and has pool %d as its place", name, p,
                       plan->pools[i]);
    }
    return TIDE_OK;
}

static tide_status read_pool(reader *r, const json_t *pool, size_t p, tide_memory_plan *plan) {
    json_t *members;
    int64_t id, buffer = 0;
    TIDE_TRY(tide_json_get_count(&r->json, pool, "id", &id));
    if ((uint64_t)id != p) return BAD(r, "id", "pool %zu has the id %" PRId64 ": ids count from 0", p, id);
    TIDE_TRY(tide_json_get_bytes(&r->json, pool, "size_bytes", &plan->pool_list[p].size_bytes));
    TIDE_TRY(tide_json_get_bytes(&r->json, pool, "offset_bytes", &plan->pool_list[p].offset_bytes));
    if (tide_json_has(pool, "buffer")) TIDE_TRY(tide_json_get_count(&r->json, pool, "buffer", &buffer));
    if ((uint64_t)buffer >= plan->n_buffers)
        return BAD(r, "buffer", "pool %zu lies in buffer %" PRId64 " of %zu", p, buffer, plan->n_buffers);
    plan->pool_list[p].buffer = (uint32_t)buffer;
    TIDE_TRY(tide_json_get_list(&r->json, pool, "members", &members));
    TIDE_TRY(check_members(r, members, plan, p));
    plan->pool_list[p].n_members = json_array_size(members);
    return TIDE_OK;
}

/// After the places, which the members must agree with.
static tide_status read_pools(reader *r, tide_memory_plan *plan) {
    json_t *pools, *pool;
    at_plan(r);
    TIDE_TRY(tide_json_get_list(&r->json, r->plan, "pools", &pools));
    const size_t n = json_array_size(pools);
    TIDE_TRY(TIDE_NEW(&plan->pool_list, n, r->json.err, "to read %s", r->json.path));
    char at[48];
    snprintf(at, sizeof at, "plans[%zu].pools", r->plan_i);
    for (size_t p = 0; p < n; p++) {
        TIDE_TRY(tide_json_enter(&r->json, pools, at, p, &pool));
        TIDE_TRY(read_pool(r, pool, p, plan));
        plan->n_pools = p + 1;
    }
    return TIDE_OK;
}

// ---- buffers ----

/// A figure that the document states must be the one its tensors have.
static tide_status check_total(reader *r, const json_t *object, const char *key, uint64_t is) {
    if (!tide_json_has(object, key)) return TIDE_OK;
    uint64_t given;
    TIDE_TRY(tide_json_get_bytes(&r->json, object, key, &given));
    if (given == is) return TIDE_OK;
    return BAD(r, key, "'%s' is %" PRIu64 ", but the tensors give %" PRIu64, key, given, is);
}

/// A proof by search cannot be repeated here: it is accepted where it contradicts no other figure. Every other proof is
/// computed again and must be the same.
static tide_status read_proof(reader *r, const json_t *buffer, tide_plan_buffer *b) {
    const char *word;
    tide_proof proof;
    if (!tide_json_has(buffer, "proof")) return check_total(r, buffer, "proved_bytes", b->proved_bytes);
    TIDE_TRY(tide_json_get_text(&r->json, buffer, "proof", &word));
    TIDE_TRY(tide_json_as_bad_input(&r->json, "proof", tide_proof_parse(word, &proof, r->json.err)));
    if (proof != TIDE_PROOF_SEARCH) {
        if (proof != b->proof)
            return BAD(r, "proof", "'proof' is '%s', but the tensors give '%s'", word, tide_proof_name(b->proof));
        return check_total(r, buffer, "proved_bytes", b->proved_bytes);
    }
    uint64_t proved;
    TIDE_TRY(tide_json_get_bytes(&r->json, buffer, "proved_bytes", &proved));
    if (proved < b->proved_bytes || proved > b->bytes)
        return BAD(r, "proved_bytes",
                   "a search proved %" PRIu64 " bytes, but the tensors prove %" PRIu64 " and the plan has %" PRIu64,
                   proved, b->proved_bytes, b->bytes);
    b->proved_bytes = proved;
    b->proof = TIDE_PROOF_SEARCH;
    return TIDE_OK;
}

static tide_status read_buffer(reader *r, const json_t *buffer, tide_plan_buffer *b) {
    char device[16];
    const char *word;
    TIDE_TRY(tide_json_get_text(&r->json, buffer, "device", &word));
    if (strcmp(word, tide_device_format(b->device, device, sizeof device)) != 0)
        return BAD(r, "device", "the buffer is on '%.32s', but the tensors give %s", word, device);
    TIDE_TRY(tide_json_get_text(&r->json, buffer, "kind", &word));
    if (strcmp(word, tide_memory_kind_name(b->kind)) != 0)
        return BAD(r, "kind", "the buffer is of kind '%.32s', but the tensors give %s", word,
                   tide_memory_kind_name(b->kind));
    TIDE_TRY(tide_json_get_bytes(&r->json, buffer, "bytes", &b->bytes));
    TIDE_TRY(check_total(r, buffer, "naive_bytes", b->naive_bytes));
    TIDE_TRY(check_total(r, buffer, "naive_peak_bytes", b->naive_peak_bytes));
    TIDE_TRY(check_total(r, buffer, "lower_bound_bytes", b->lower_bound_bytes));
    TIDE_TRY(check_total(r, buffer, "align_bytes", b->align_bytes));
    return read_proof(r, buffer, b);
}

/// A document without buffers is from a version that had only one: its bytes are the plan's. Where the tensors need
/// several, each ends where its last tensor ends.
static void guess_buffers(const tide_memory_plan *plan, uint64_t bytes) {
    if (plan->n_buffers == 1) {
        plan->buffers[0].bytes = bytes;
        return;
    }
    for (size_t i = 0; i < plan->lifetimes.n; i++) {
        const tide_lifetime *item = &plan->lifetimes.items[i];
        uint64_t end;
        if (plan->offsets[i] == TIDE_NO_OFFSET ||
            !tide_add_u64(plan->offsets[i], tide_lifetime_aligned_bytes(item), &end) || end > INT64_MAX)
            continue; // the verifier will find it
        for (size_t b = 0; b < plan->n_buffers; b++) {
            tide_plan_buffer *buffer = &plan->buffers[b];
            if (buffer->kind == item->kind && tide_device_equal(buffer->device, item->device) && end > buffer->bytes)
                buffer->bytes = end;
        }
    }
}

static tide_status read_buffers(reader *r, tide_memory_plan *plan) {
    uint64_t bytes;
    at_plan(r);
    TIDE_TRY(tide_json_get_bytes(&r->json, r->plan, "bytes", &bytes));
    if (!tide_json_has(r->plan, "buffers")) {
        guess_buffers(plan, bytes);
        return TIDE_OK;
    }
    json_t *buffers, *buffer;
    TIDE_TRY(tide_json_get_list(&r->json, r->plan, "buffers", &buffers));
    if (json_array_size(buffers) != plan->n_buffers)
        return BAD(r, "buffers", "%zu buffers are listed, but the tensors need %zu", json_array_size(buffers),
                   plan->n_buffers);
    char at[48];
    snprintf(at, sizeof at, "plans[%zu].buffers", r->plan_i);
    for (size_t b = 0; b < plan->n_buffers; b++) {
        TIDE_TRY(tide_json_enter(&r->json, buffers, at, b, &buffer));
        TIDE_TRY(read_buffer(r, buffer, &plan->buffers[b]));
    }
    at_plan(r);
    return TIDE_OK;
}

// ---- the plan ----

static tide_status read_form(reader *r, tide_plan_form *out) {
    const char *form;
    TIDE_TRY(tide_json_get_text(&r->json, r->plan, "form", &form));
    if (strcmp(form, TIDE_PLAN_FORM_POOLS) == 0) {
        *out = TIDE_PLAN_POOLS;
    } else if (strcmp(form, TIDE_PLAN_FORM_OFFSETS) == 0) {
        *out = TIDE_PLAN_OFFSETS;
    } else {
        return BAD(r, "form", "'form' is '%.64s': want '%s' or '%s'", form, TIDE_PLAN_FORM_POOLS,
                   TIDE_PLAN_FORM_OFFSETS);
    }
    return TIDE_OK;
}

/// All figures that follow from the tensors and their places.
static tide_status settle(reader *r, tide_memory_plan *plan) {
    at_plan(r);
    TIDE_TRY(tide_json_as_bad_input(&r->json, "", tide__plan_settle(plan, r->json.err)));
    TIDE_TRY(read_buffers(r, plan));
    if (plan->form == TIDE_PLAN_POOLS) TIDE_TRY(read_pools(r, plan));
    TIDE_TRY(check_aliases(r, plan));
    at_plan(r);
    TIDE_TRY(tide_json_as_bad_input(&r->json, "", tide__plan_close(plan, r->json.err)));
    TIDE_TRY(check_total(r, r->plan, "bytes", plan->bytes));
    TIDE_TRY(check_total(r, r->plan, "naive_bytes", plan->naive_bytes));
    TIDE_TRY(check_total(r, r->plan, "naive_peak_bytes", plan->naive_peak_bytes));
    TIDE_TRY(check_total(r, r->plan, "lower_bound_bytes", plan->lower_bound_bytes));
    return check_total(r, r->plan, "proved_bytes", plan->proved_bytes);
}

static tide_status fill_plan(reader *r, const json_t *tensors, tide_memory_plan *plan) {
    TIDE_TRY(read_places(r, tensors, plan));
    TIDE_TRY(settle(r, plan));
    if (tide_json_has(r->plan, "time_ns")) TIDE_TRY(tide_json_get_bytes(&r->json, r->plan, "time_ns", &plan->time_ns));
    TIDE_TRY(tide_json_as_bad_input(&r->json, "", tide_plan_verify(plan, NULL, r->json.err)));
    plan->verified = true;
    return TIDE_OK;
}

static tide_status read_document(reader *r, const char *strategy, tide_memory_plan **out) {
    TIDE_TRY(choose_plan(r, strategy));
    const char *name;
    tide_plan_form form = TIDE_PLAN_OFFSETS;
    TIDE_TRY(tide_json_get_text(&r->json, r->plan, "strategy", &name));
    TIDE_TRY(read_form(r, &form));
    TIDE_TRY(tide__lifetimes_json_read(&r->json, r->root, &r->lifetimes, &r->names));
    tide_memory_plan *plan;
    TIDE_TRY(tide__plan_new(&r->lifetimes, name, form, &plan, r->json.err));
    const tide_status st = fill_plan(r, json_object_get(r->root, "tensors"), plan);
    if (st != TIDE_OK) {
        tide_memory_plan_destroy(plan);
        return st;
    }
    *out = plan;
    return TIDE_OK;
}

tide_status tide_plan_from_json(const char *data, size_t len, const char *path, const char *strategy,
                                tide_memory_plan **out, tide_error *err) {
    reader r = {.json = {.path = path, .err = err}};
    tide_status st = tide_json_parse_schema(&r.json, data, len, TIDE_PLAN_SCHEMA, TIDE_PLAN_SCHEMA_VERSION, &r.root);
    if (st == TIDE_OK) st = read_document(&r, strategy, out);
    json_decref(r.root);
    tide_lifetimes_deinit(&r.lifetimes);
    tide_strmap_deinit(&r.names);
    return st;
}
