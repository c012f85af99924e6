// SPDX-License-Identifier: MIT
//
// Reader of the `tidemark.plan` document. Trusts nothing: what can be computed from the tensors is computed again and
// must agree, and the plan goes through the verifier before anybody gets it. Keys it does not know are passed over.
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "planner/plan_internal.h"
#include "planner/plan_json.h"

typedef struct reader {
    const char *path; // of the document, for messages
    tide_error *err;
    char at[64];  // the object being read: "tensors[3]"; "" for the document
    json_t *root; // owned
    json_t *plan; // borrowed: the chosen entry of plans[]
    size_t plan_i;
    tide_lifetimes lifetimes; // owned until the plan has a copy
    tide_strmap names;        // tensor name -> index
} reader;

/// A fault at `key` of the object being read.
#define BAD(r, key, ...) bad_at((r), (key), TIDE_FAIL((r)->err, TIDE_ERR_BAD_INPUT, __VA_ARGS__))

static tide_status bad_at(reader *r, const char *key, tide_status st) {
    const char *dot = r->at[0] != '\0' && key[0] != '\0' ? "." : "";
    tide_error_where(r->err, "%s: %s%s%s", r->path, r->at, dot, key);
    return st;
}

static tide_status no_memory(reader *r) { return TIDE_FAIL(r->err, TIDE_ERR_NOMEM, "no memory to read %s", r->path); }

// ---- single keys ----

static const char *type_name(const json_t *v) {
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a number with a fraction";
    case JSON_TRUE:
    case JSON_FALSE:
        return "true or false";
    default:
        return "null";
    }
}

static tide_status get(reader *r, const json_t *object, const char *key, json_type type, const char *want,
                       json_t **out) {
    json_t *v = *out = json_object_get(object, key);
    if (v == NULL) return BAD(r, key, "the key '%s' is missing", key);
    if (json_typeof(v) != type) return BAD(r, key, "'%s' is %s: want %s", key, type_name(v), want);
    return TIDE_OK;
}

static tide_status get_string(reader *r, const json_t *object, const char *key, const char **out) {
    json_t *v = NULL;
    TIDE_TRY(get(r, object, key, JSON_STRING, "a string", &v));
    *out = json_string_value(v);
    return TIDE_OK;
}

static tide_status get_count(reader *r, const json_t *object, const char *key, int64_t *out) {
    json_t *v = NULL;
    TIDE_TRY(get(r, object, key, JSON_INTEGER, "an integer", &v));
    if (json_integer_value(v) < 0)
        return BAD(r, key, "'%s' is %" JSON_INTEGER_FORMAT ": want 0 or more", key, json_integer_value(v));
    *out = json_integer_value(v);
    return TIDE_OK;
}

static tide_status get_bytes(reader *r, const json_t *object, const char *key, uint64_t *out) {
    int64_t v = 0;
    TIDE_TRY(get_count(r, object, key, &v));
    *out = (uint64_t)v;
    return TIDE_OK;
}

static tide_status get_list(reader *r, const json_t *object, const char *key, json_t **out) {
    return get(r, object, key, JSON_ARRAY, "a list", out);
}

/// Absent or null: TIDE_NO_INDEX.
static tide_status get_index(reader *r, const json_t *object, const char *key, uint32_t *out) {
    *out = TIDE_NO_INDEX;
    const json_t *v = json_object_get(object, key);
    if (v == NULL || json_is_null(v)) return TIDE_OK;
    int64_t index;
    TIDE_TRY(get_count(r, object, key, &index));
    if (index >= TIDE_NO_INDEX) return BAD(r, key, "'%s' is %" PRId64 ": no such index", key, index);
    *out = (uint32_t)index;
    return TIDE_OK;
}

/// The i-th element of list `name`, which must be an object; messages point into it from here on.
static tide_status enter(reader *r, const json_t *list, const char *name, size_t i, json_t **out) {
    snprintf(r->at, sizeof r->at, "%s[%zu]", name, i);
    json_t *v = json_array_get(list, i);
    if (!json_is_object(v)) return BAD(r, "", "%s is %s: want an object", r->at, type_name(v));
    *out = v;
    return TIDE_OK;
}

// ---- the document ----

static tide_status parse(reader *r, const char *data, size_t len) {
    json_error_t e;
    r->root = json_loadb(data, len, JSON_REJECT_DUPLICATES, &e);
    if (r->root != NULL) return TIDE_OK;
    if (json_error_code(&e) == json_error_out_of_memory) return no_memory(r);
    const tide_status st = TIDE_FAIL(r->err, TIDE_ERR_BAD_INPUT, "not a JSON document: %s", e.text);
    tide_error_where(r->err, "%s:%d:%d", r->path, e.line, e.column);
    return st;
}

static tide_status check_schema(reader *r) {
    if (!json_is_object(r->root)) return BAD(r, "", "the document is %s: want an object", type_name(r->root));
    const char *schema;
    TIDE_TRY(get_string(r, r->root, "schema", &schema));
    if (strcmp(schema, TIDE_PLAN_SCHEMA) != 0)
        return BAD(r, "schema", "the document is a '%.64s': want '%s'", schema, TIDE_PLAN_SCHEMA);
    int64_t version;
    TIDE_TRY(get_count(r, r->root, "version", &version));
    if (version != TIDE_PLAN_SCHEMA_VERSION)
        return BAD(r, "version", "version %" PRId64 " of '%s' is not known here: want %d", version, schema,
                   TIDE_PLAN_SCHEMA_VERSION);
    return TIDE_OK;
}

/// The entry of `strategy`, or the first one.
static tide_status choose_plan(reader *r, const char *strategy) {
    json_t *plans;
    TIDE_TRY(get_list(r, r->root, "plans", &plans));
    if (json_array_size(plans) == 0) return BAD(r, "plans", "the document has no plan");
    tide_text there = {0};
    for (size_t i = 0; i < json_array_size(plans); i++) {
        const char *name = NULL;
        tide_status st = enter(r, plans, "plans", i, &r->plan);
        if (st == TIDE_OK) st = get_string(r, r->plan, "strategy", &name);
        if (st != TIDE_OK || strategy == NULL || strcmp(name, strategy) == 0) {
            r->plan_i = i;
            tide_text_deinit(&there);
            return st;
        }
        tide_text_addf(&there, "%s%s", i > 0 ? ", " : "", name);
    }
    r->at[0] = '\0';
    const tide_status st = bad_at(
        r, "plans", TIDE_FAIL(r->err, TIDE_ERR_NOT_FOUND, "the document has no plan of strategy '%s'", strategy));
    tide_error_note(r->err, "it has %s", tide_text_str(&there));
    tide_text_deinit(&there);
    return st;
}

static tide_status read_head(reader *r) {
    r->at[0] = '\0';
    const char *model = "";
    if (json_object_get(r->root, "model") != NULL) TIDE_TRY(get_string(r, r->root, "model", &model));
    r->lifetimes.model = tide_host_strdup(model);
    return r->lifetimes.model != NULL ? TIDE_OK : no_memory(r);
}

static tide_status read_order(reader *r) {
    r->at[0] = '\0';
    if (json_object_get(r->root, "order") == NULL) return TIDE_OK;
    json_t *order;
    TIDE_TRY(get_list(r, r->root, "order", &order));
    const size_t n = json_array_size(order);
    if (n == 0) return TIDE_OK;
    r->lifetimes.step_names = tide_host_calloc(n, sizeof *r->lifetimes.step_names);
    if (r->lifetimes.step_names == NULL) return no_memory(r);
    for (size_t i = 0; i < n; i++) {
        const char *name = json_string_value(json_array_get(order, i));
        if (name == NULL) return BAD(r, "order", "order[%zu] is no string", i);
        r->lifetimes.step_names[i] = tide_host_strdup(name);
        if (r->lifetimes.step_names[i] == NULL) return no_memory(r);
        r->lifetimes.n_step_names = i + 1;
    }
    return TIDE_OK;
}

/// After the tensors, which have raised n_steps as far as they reach.
static tide_status read_n_steps(reader *r) {
    r->at[0] = '\0';
    tide_lifetimes *lt = &r->lifetimes;
    if (json_object_get(r->root, "n_steps") != NULL) {
        int64_t n_steps;
        TIDE_TRY(get_count(r, r->root, "n_steps", &n_steps));
        if (n_steps < lt->n_steps)
            return BAD(r, "n_steps", "'n_steps' is %" PRId64 ", but a tensor lives until step %" PRId64, n_steps,
                       lt->n_steps);
        lt->n_steps = n_steps;
    }
    if (lt->n_step_names != 0 && (uint64_t)lt->n_steps != lt->n_step_names)
        return BAD(r, "order", "'order' names %zu steps of %" PRId64, lt->n_step_names, lt->n_steps);
    return TIDE_OK;
}

// ---- tensors ----

/// What the core or the verifier refuses is the document's fault here: the same words as an input error at `key`.
static tide_status as_bad_input(reader *r, const char *key, tide_status st) {
    if (st == TIDE_OK || st == TIDE_ERR_NOMEM) return st;
    if (r->err != NULL) r->err->status = TIDE_ERR_BAD_INPUT;
    return bad_at(r, key, TIDE_ERR_BAD_INPUT);
}

static tide_status read_words(reader *r, const json_t *t, tide_lifetime *item) {
    const char *word;
    if (json_object_get(t, "persistent") != NULL) {
        const json_t *v = json_object_get(t, "persistent");
        if (!json_is_boolean(v)) return BAD(r, "persistent", "'persistent' is %s: want true or false", type_name(v));
        item->persistent = json_is_true(v);
    }
    item->kind = item->persistent ? TIDE_KIND_DEFAULT : TIDE_KIND_WORKSPACE;
    if (json_object_get(t, "kind") != NULL) {
        TIDE_TRY(get_string(r, t, "kind", &word));
        TIDE_TRY(as_bad_input(r, "kind", tide_memory_kind_parse(word, &item->kind, r->err)));
    }
    if (json_object_get(t, "role") != NULL) {
        TIDE_TRY(get_string(r, t, "role", &word));
        TIDE_TRY(as_bad_input(r, "role", tide_role_parse(word, &item->role, r->err)));
    }
    item->device = TIDE_CPU;
    if (json_object_get(t, "device") != NULL) {
        TIDE_TRY(get_string(r, t, "device", &word));
        TIDE_TRY(as_bad_input(r, "device", tide_device_parse(word, &item->device, r->err)));
    }
    return as_bad_input(r, "kind", tide_memory_kind_check(item->kind, item->device, r->err));
}

static tide_status read_tensor(reader *r, const json_t *t) {
    tide_lifetime item = {.align_bytes = 1};
    const char *name;
    TIDE_TRY(get_string(r, t, "name", &name));
    char *copy = tide_host_strdup(name);
    if (copy == NULL) return no_memory(r);
    item.name = copy;
    tide_status st = get_bytes(r, t, "size_bytes", &item.size_bytes);
    if (st == TIDE_OK) st = get_count(r, t, "begin", &item.begin_step);
    if (st == TIDE_OK) st = get_count(r, t, "end", &item.end_step);
    if (st == TIDE_OK && json_object_get(t, "align_bytes") != NULL)
        st = get_bytes(r, t, "align_bytes", &item.align_bytes);
    if (st == TIDE_OK) st = read_words(r, t, &item);
    if (st == TIDE_OK) st = get_index(r, t, "node", &item.node);
    if (st == TIDE_OK) st = get_index(r, t, "port", &item.port);
    if (st == TIDE_OK) st = get_index(r, t, "value", &item.value);
    uint64_t other;
    if (st == TIDE_OK && tide_strmap_get(&r->names, name, &other))
        st = BAD(r, "name", "tensor '%s' is there twice: tensors[%" PRIu64 "] has the name too", name, other);
    if (st == TIDE_OK) st = as_bad_input(r, "", tide_lifetimes_add(&r->lifetimes, &item, r->err));
    if (st == TIDE_OK && tide_strmap_put(&r->names, name, r->lifetimes.n - 1) != TIDE_OK) st = no_memory(r);
    tide_host_free(copy);
    return st;
}

static tide_status read_tensors(reader *r, const json_t *tensors) {
    for (size_t i = 0; i < json_array_size(tensors); i++) {
        json_t *t;
        TIDE_TRY(enter(r, tensors, "tensors", i, &t));
        TIDE_TRY(read_tensor(r, t));
    }
    return TIDE_OK;
}

// ---- places ----

static tide_status read_place(reader *r, const json_t *t, tide_memory_plan *plan, size_t i) {
    json_t *places;
    TIDE_TRY(get_list(r, t, "places", &places));
    const json_t *place = json_array_get(places, r->plan_i);
    if (!json_is_object(place))
        return BAD(r, "places", "tensor '%s' has no place for plans[%zu]", plan->lifetimes.items[i].name, r->plan_i);
    const json_t *offset = json_object_get(place, "offset");
    if (offset != NULL && !json_is_null(offset)) TIDE_TRY(get_bytes(r, place, "offset", &plan->offsets[i]));
    const json_t *pool = json_object_get(place, "pool");
    if (pool == NULL || json_is_null(pool)) return TIDE_OK;
    if (!json_is_integer(pool) || json_integer_value(pool) < TIDE_NO_POOL || json_integer_value(pool) > INT32_MAX)
        return BAD(r, "places", "the pool of tensor '%s' is no pool number", plan->lifetimes.items[i].name);
    plan->pools[i] = (int32_t)json_integer_value(pool);
    return TIDE_OK;
}

static tide_status read_places(reader *r, const json_t *tensors, tide_memory_plan *plan) {
    for (size_t i = 0; i < json_array_size(tensors); i++) {
        json_t *t;
        TIDE_TRY(enter(r, tensors, "tensors", i, &t));
        TIDE_TRY(read_place(r, t, plan, i));
    }
    return TIDE_OK;
}

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

/// After the places, which the members must agree with.
static tide_status read_pools(reader *r, tide_memory_plan *plan) {
    json_t *pools;
    snprintf(r->at, sizeof r->at, "plans[%zu]", r->plan_i);
    TIDE_TRY(get_list(r, r->plan, "pools", &pools));
    const size_t n = json_array_size(pools);
    plan->pool_list = tide_host_calloc(n, sizeof *plan->pool_list);
    if (plan->pool_list == NULL) return no_memory(r);
    for (size_t p = 0; p < n; p++) {
        json_t *pool, *members;
        TIDE_TRY(enter(r, pools, "plans[].pools", p, &pool));
        int64_t id;
        TIDE_TRY(get_count(r, pool, "id", &id));
        if ((uint64_t)id != p) return BAD(r, "id", "pool %zu has the id %" PRId64 ": ids count from 0", p, id);
        TIDE_TRY(get_bytes(r, pool, "size_bytes", &plan->pool_list[p].size_bytes));
        TIDE_TRY(get_bytes(r, pool, "offset_bytes", &plan->pool_list[p].offset_bytes));
        TIDE_TRY(get_list(r, pool, "members", &members));
        TIDE_TRY(check_members(r, members, plan, p));
        plan->pool_list[p].n_members = json_array_size(members);
        plan->n_pools = p + 1;
    }
    return TIDE_OK;
}

// ---- the plan ----

/// A total that the document states must be the one its tensors have.
static tide_status check_total(reader *r, const char *key, uint64_t is) {
    if (json_object_get(r->plan, key) == NULL) return TIDE_OK;
    uint64_t said;
    TIDE_TRY(get_bytes(r, r->plan, key, &said));
    if (said == is) return TIDE_OK;
    return BAD(r, key, "'%s' is %" PRIu64 ", but the tensors give %" PRIu64, key, said, is);
}

static tide_status read_form(reader *r, tide_plan_form *out) {
    const char *form;
    TIDE_TRY(get_string(r, r->plan, "form", &form));
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

static tide_status fill_plan(reader *r, const json_t *tensors, tide_memory_plan *plan) {
    TIDE_TRY(read_places(r, tensors, plan));
    if (plan->form == TIDE_PLAN_POOLS) TIDE_TRY(read_pools(r, plan));
    snprintf(r->at, sizeof r->at, "plans[%zu]", r->plan_i);
    TIDE_TRY(get_bytes(r, r->plan, "bytes", &plan->bytes));
    if (json_object_get(r->plan, "time_ns") != NULL) TIDE_TRY(get_bytes(r, r->plan, "time_ns", &plan->time_ns));
    TIDE_TRY(as_bad_input(r, "", tide__plan_settle(plan, r->err)));
    TIDE_TRY(check_total(r, "naive_bytes", plan->naive_bytes));
    TIDE_TRY(check_total(r, "lower_bound_bytes", plan->lower_bound_bytes));
    plan->proven = plan->bytes == plan->lower_bound_bytes;
    TIDE_TRY(as_bad_input(r, "", tide_plan_verify(plan, NULL, r->err)));
    plan->verified = true;
    return TIDE_OK;
}

static tide_status read_document(reader *r, const char *strategy, tide_memory_plan **out) {
    TIDE_TRY(check_schema(r));
    TIDE_TRY(choose_plan(r, strategy));
    const char *name;
    tide_plan_form form = TIDE_PLAN_OFFSETS;
    TIDE_TRY(get_string(r, r->plan, "strategy", &name));
    TIDE_TRY(read_form(r, &form));
    TIDE_TRY(read_head(r));
    TIDE_TRY(read_order(r));
    json_t *tensors;
    r->at[0] = '\0';
    TIDE_TRY(get_list(r, r->root, "tensors", &tensors));
    TIDE_TRY(read_tensors(r, tensors));
    TIDE_TRY(read_n_steps(r));
    tide_memory_plan *plan;
    TIDE_TRY(tide__plan_new(&r->lifetimes, name, form, &plan, r->err));
    const tide_status st = fill_plan(r, tensors, plan);
    if (st != TIDE_OK) {
        tide_memory_plan_destroy(plan);
        return st;
    }
    *out = plan;
    return TIDE_OK;
}

tide_status tide_plan_from_json(const char *data, size_t len, const char *path, const char *strategy,
                                tide_memory_plan **out, tide_error *err) {
    reader r = {.path = path, .err = err};
    tide_status st = parse(&r, data, len);
    if (st == TIDE_OK) st = read_document(&r, strategy, out);
    json_decref(r.root);
    tide_lifetimes_deinit(&r.lifetimes);
    tide_strmap_deinit(&r.names);
    return st;
}
