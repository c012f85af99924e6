// SPDX-License-Identifier: MIT
//
// lifetimes_json: reader and writer of a table of lifetimes in JSON. See lifetimes_json.h. The writer puts one tensor
// on a line, so that `diff` shows what changed; keys keep their order, and those that say nothing new are left out.
#include "planner/lifetimes_json.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/base/utf8.h"
#include "planner/planner.h"

// ---- reader ----

#define BAD TIDE_JSON_BAD

// ---- names ----

/// A list of strings under `key` of the document; absent: none. *n counts what is there also on failure.
static tide_status read_names(tide_json_reader *r, const json_t *root, const char *key, char ***out, size_t *n_out) {
    r->at[0] = '\0';
    if (!tide_json_has(root, key)) return TIDE_OK;
    json_t *list;
    TIDE_TRY(tide_json_get_list(r, root, key, &list));
    const size_t n = json_array_size(list);
    if (n == 0) return TIDE_OK;
    *out = tide_host_calloc(n, sizeof **out);
    if (*out == NULL) return TIDE_NO_MEMORY(r->err, "to read %s", r->path);
    for (size_t i = 0; i < n; i++) {
        const char *name = json_string_value(json_array_get(list, i));
        if (name == NULL) return BAD(r, key, "%s[%zu] is no string", key, i);
        (*out)[i] = tide_host_strdup(name);
        if ((*out)[i] == NULL) return TIDE_NO_MEMORY(r->err, "to read %s", r->path);
        *n_out = i + 1;
    }
    return TIDE_OK;
}

/// What does not follow from the tensors of what a plan's document says of the process; absent: not known.
static tide_status read_process(tide_json_reader *r, const json_t *root, tide_process_facts *out) {
    json_t *process;
    if (!tide_json_has(root, "process")) return TIDE_OK;
    TIDE_TRY(tide_json_get_object(r, root, "process", &process));
    tide_json_go_into(r, "process");
    TIDE_TRY(tide_json_get_bytes(r, process, "program_bytes", &out->program_bytes));
    TIDE_TRY(tide_json_get_bytes(r, process, "own_bytes", &out->own_bytes));
    TIDE_TRY(tide_json_get_bytes(r, process, "constants_bytes", &out->constants_bytes));
    TIDE_TRY(tide_json_get_bytes(r, process, "mapped_bytes", &out->mapped_bytes));
    r->at[0] = '\0';
    return TIDE_OK;
}

static tide_status read_region(tide_json_reader *r, const json_t *entry, tide_plan_region *out) {
    const char *word;
    TIDE_TRY(tide_json_get_text(r, entry, "kind", &word));
    if (!tide_body_kind_parse(word, &out->kind))
        return BAD(r, "kind", "'%s' is no kind of a region: then, else, loop or scan", word);
    TIDE_TRY(tide_json_get_count(r, entry, "open", &out->open_step));
    TIDE_TRY(tide_json_get_count(r, entry, "begin", &out->begin_step));
    return tide_json_get_count(r, entry, "end", &out->end_step);
}

static tide_status read_regions(tide_json_reader *r, const json_t *root, tide_lifetimes *lt) {
    const json_t *list = json_object_get(root, "regions");
    if (list == NULL) return TIDE_OK;
    if (!json_is_array(list)) return BAD(r, "regions", "'regions' is no list");
    const size_t n = json_array_size(list);
    TIDE_TRY(TIDE_NEW(&lt->regions, n + 1, r->err, "to read %s", r->path));
    for (size_t i = 0; i < n; i++) {
        const json_t *entry = json_array_get(list, i);
        if (!json_is_object(entry)) return BAD(r, "regions", "regions[%zu] is no object", i);
        tide_json_go_into(r, "regions[%zu]", i);
        TIDE_TRY(read_region(r, entry, &lt->regions[i]));
        lt->n_regions = i + 1;
        r->at[0] = '\0';
    }
    return TIDE_OK;
}

static tide_status read_head(tide_json_reader *r, const json_t *root, tide_lifetimes *lt) {
    const char *model = "";
    r->at[0] = '\0';
    if (tide_json_has(root, "model")) TIDE_TRY(tide_json_get_text(r, root, "model", &model));
    lt->model = tide_host_strdup(model);
    if (lt->model == NULL) return TIDE_NO_MEMORY(r->err, "to read %s", r->path);
    TIDE_TRY(read_process(r, root, &lt->process));
    if (tide_json_has(root, "given_plan_bytes"))
        TIDE_TRY(tide_json_get_bytes(r, root, "given_plan_bytes", &lt->given_plan_bytes));
    TIDE_TRY(read_names(r, root, "points", &lt->point_names, &lt->n_points));
    TIDE_TRY(read_names(r, root, "order", &lt->step_names, &lt->n_step_names));
    TIDE_TRY(read_names(r, root, "dynamic", &lt->dynamic, &lt->n_dynamic));
    TIDE_TRY(read_regions(r, root, lt));
    return read_names(r, root, "recomputed", &lt->recomputed, &lt->n_recomputed);
}

/// Regions lie inside the steps, and each behind the step that opens it.
static tide_status check_regions(tide_json_reader *r, const tide_lifetimes *lt) {
    for (size_t i = 0; i < lt->n_regions; i++) {
        const tide_plan_region *x = &lt->regions[i];
        if (x->open_step < x->begin_step && x->begin_step < x->end_step && x->end_step <= lt->n_steps) continue;
        return BAD(r, "regions",
                   "regions[%zu] is opened by step %" PRId64 " and has steps %" PRId64 " to %" PRId64 " of %" PRId64, i,
                   x->open_step, x->begin_step, x->end_step, lt->n_steps);
    }
    return TIDE_OK;
}

/// After the tensors, which have raised n_steps as far as they reach.
static tide_status read_n_steps(tide_json_reader *r, const json_t *root, tide_lifetimes *lt) {
    r->at[0] = '\0';
    if (tide_json_has(root, "n_steps")) {
        int64_t n_steps;
        TIDE_TRY(tide_json_get_count(r, root, "n_steps", &n_steps));
        if (n_steps < lt->n_steps)
            return BAD(r, "n_steps", "'n_steps' is %" PRId64 ", but a tensor lives until step %" PRId64, n_steps,
                       lt->n_steps);
        lt->n_steps = n_steps;
    }
    if (lt->n_step_names != 0 && (uint64_t)lt->n_steps != lt->n_step_names)
        return BAD(r, "order", "'order' names %zu steps of %" PRId64, lt->n_step_names, lt->n_steps);
    return check_regions(r, lt);
}

// ---- one tensor ----

static tide_status read_words(tide_json_reader *r, const json_t *t, tide_lifetime *item) {
    const char *word;
    TIDE_TRY(tide_json_get_flag(r, t, "persistent", &item->persistent));
    TIDE_TRY(tide_json_get_flag(r, t, "unrounded", &item->unrounded));
    item->kind = item->persistent ? TIDE_KIND_DEFAULT : TIDE_KIND_WORKSPACE;
    if (tide_json_has(t, "kind")) {
        TIDE_TRY(tide_json_get_text(r, t, "kind", &word));
        TIDE_TRY(tide_json_as_bad_input(r, "kind", tide_memory_kind_parse(word, &item->kind, r->err)));
    }
    if (tide_json_has(t, "role")) {
        TIDE_TRY(tide_json_get_text(r, t, "role", &word));
        TIDE_TRY(tide_json_as_bad_input(r, "role", tide_role_parse(word, &item->role, r->err)));
    }
    item->device = TIDE_CPU;
    if (tide_json_has(t, "device")) {
        TIDE_TRY(tide_json_get_text(r, t, "device", &word));
        TIDE_TRY(tide_json_as_bad_input(r, "device", tide_device_parse(word, &item->device, r->err)));
    }
    return tide_json_as_bad_input(r, "kind", tide_memory_kind_check(item->kind, item->device, r->err));
}

/// Absent or null: TIDE_NO_INDEX.
static tide_status read_index(tide_json_reader *r, const json_t *object, const char *key, uint32_t *out) {
    *out = TIDE_NO_INDEX;
    const json_t *v = json_object_get(object, key);
    if (v == NULL || json_is_null(v)) return TIDE_OK;
    int64_t index;
    TIDE_TRY(tide_json_get_count(r, object, key, &index));
    if (index >= TIDE_NO_INDEX) return BAD(r, key, "'%s' is %" PRId64 ": no such index", key, index);
    *out = (uint32_t)index;
    return TIDE_OK;
}

static tide_status read_numbers(tide_json_reader *r, const json_t *t, tide_lifetime *item) {
    TIDE_TRY(tide_json_get_bytes(r, t, "size_bytes", &item->size_bytes));
    TIDE_TRY(tide_json_get_count(r, t, "begin", &item->begin_step));
    TIDE_TRY(tide_json_get_count(r, t, "end", &item->end_step));
    if (tide_json_has(t, "align_bytes")) TIDE_TRY(tide_json_get_bytes(r, t, "align_bytes", &item->align_bytes));
    TIDE_TRY(read_index(r, t, "node", &item->node));
    TIDE_TRY(read_index(r, t, "port", &item->port));
    TIDE_TRY(read_index(r, t, "value", &item->value));
    if (tide_json_has(t, "apart")) {
        int64_t set;
        TIDE_TRY(tide_json_get_count(r, t, "apart", &set));
        if (set < 1 || set > UINT32_MAX)
            return BAD(r, "apart", "'apart' is %" PRId64 ": sets have numbers from 1 to %" PRIu32, set, UINT32_MAX);
        item->apart_set = (uint32_t)set;
    }
    if (!tide_json_has(t, "fixed_offset")) return TIDE_OK;
    item->fixed = true;
    return tide_json_get_bytes(r, t, "fixed_offset", &item->fixed_offset_bytes);
}

static tide_status read_gaps(tide_json_reader *r, const json_t *t, tide_lifetime *item) {
    if (!tide_json_has(t, "gaps")) return TIDE_OK;
    json_t *gaps;
    TIDE_TRY(tide_json_get_list(r, t, "gaps", &gaps));
    const size_t n = json_array_size(gaps);
    if (n == 0) return TIDE_OK;
    if (n > UINT32_MAX) return BAD(r, "gaps", "%zu gaps are more than a tensor can have", n);
    TIDE_TRY(TIDE_NEW(&item->gaps, n, r->err, "to read %s", r->path));
    item->n_gaps = (uint32_t)n;
    for (size_t k = 0; k < n; k++) {
        const json_t *gap = json_array_get(gaps, k);
        tide_gap *out = &item->gaps[k];
        if (!json_is_object(gap)) return BAD(r, "gaps", "gaps[%zu] is no object", k);
        const size_t outer = tide_json_go_into(r, "gaps[%zu]", k);
        TIDE_TRY(tide_json_get_count(r, gap, "begin", &out->begin_step));
        TIDE_TRY(tide_json_get_count(r, gap, "end", &out->end_step));
        if (tide_json_has(gap, "lo")) TIDE_TRY(tide_json_get_bytes(r, gap, "lo", &out->lo_bytes));
        if (tide_json_has(gap, "hi")) TIDE_TRY(tide_json_get_bytes(r, gap, "hi", &out->hi_bytes));
        r->at[outer] = '\0';
    }
    return TIDE_OK;
}

static tide_status read_points(tide_json_reader *r, const json_t *t, size_t n_points, tide_lifetime *item) {
    if (!tide_json_has(t, "point_bytes")) return TIDE_OK;
    json_t *list;
    TIDE_TRY(tide_json_get_list(r, t, "point_bytes", &list));
    if (json_array_size(list) != n_points || n_points == 0)
        return BAD(r, "point_bytes", "'point_bytes' has %zu sizes, 'points' names %zu", json_array_size(list),
                   n_points);
    TIDE_TRY(TIDE_NEW(&item->point_bytes, n_points, r->err, "to read %s", r->path));
    uint64_t largest = 0;
    for (size_t k = 0; k < n_points; k++) {
        const json_t *v = json_array_get(list, k);
        if (!json_is_integer(v) || json_integer_value(v) < 0)
            return BAD(r, "point_bytes", "point_bytes[%zu] is no size", k);
        item->point_bytes[k] = (uint64_t)json_integer_value(v);
        if (item->point_bytes[k] > largest) largest = item->point_bytes[k];
    }
    if (largest == item->size_bytes) return TIDE_OK;
    return BAD(r, "point_bytes", "'size_bytes' is %" PRIu64 ", but the largest of its points takes %" PRIu64,
               item->size_bytes, largest);
}

static tide_status read_bound(tide_json_reader *r, const json_t *t, tide_lifetime *item) {
    const char *bound;
    if (!tide_json_has(t, "bound")) return TIDE_OK;
    TIDE_TRY(tide_json_get_text(r, t, "bound", &bound));
    item->bound = tide_host_strdup(bound);
    return item->bound != NULL ? TIDE_OK : TIDE_NO_MEMORY(r->err, "to read %s", r->path);
}

static tide_status read_keys(tide_json_reader *r, const json_t *t, size_t n_points, tide_lifetime *item) {
    TIDE_TRY(read_numbers(r, t, item));
    TIDE_TRY(read_words(r, t, item));
    TIDE_TRY(read_gaps(r, t, item));
    TIDE_TRY(read_bound(r, t, item));
    return read_points(r, t, n_points, item);
}

static tide_status read_tensor(tide_json_reader *r, const json_t *t, tide_lifetimes *lt, tide_strmap *names) {
    tide_lifetime item = {.align_bytes = 1};
    const char *name;
    TIDE_TRY(tide_json_get_text(r, t, "name", &name));
    item.name = tide_host_strdup(name);
    if (item.name == NULL) return TIDE_NO_MEMORY(r->err, "to read %s", r->path);
    tide_status st = read_keys(r, t, lt->n_points, &item);
    uint64_t other;
    if (st == TIDE_OK && tide_strmap_get(names, name, &other))
        st = BAD(r, "name", "tensor '%s' is there twice: tensors[%" PRIu64 "] has the name too", name, other);
    if (st == TIDE_OK) st = tide_json_as_bad_input(r, "", tide_lifetimes_add(lt, &item, r->err));
    if (st == TIDE_OK && tide_strmap_put(names, name, lt->n - 1) != TIDE_OK)
        st = TIDE_NO_MEMORY(r->err, "to read %s", r->path);
    tide_host_free(item.name);
    tide_host_free(item.gaps);
    tide_host_free(item.point_bytes);
    tide_host_free(item.bound);
    return st;
}

// ---- aliases, once all tensors are there ----

static tide_status read_alias(tide_json_reader *r, const json_t *t, uint32_t i, tide_lifetimes *lt,
                              const tide_strmap *names) {
    if (!tide_json_has(t, "alias")) return TIDE_OK;
    json_t *alias;
    const char *of, *word;
    tide_alias_kind kind = TIDE_ALIAS_GIVEN;
    uint64_t target, offset = 0;
    TIDE_TRY(tide_json_get_object(r, t, "alias", &alias));
    const size_t outer = tide_json_go_into(r, "alias");
    TIDE_TRY(tide_json_get_text(r, alias, "of", &of));
    if (tide_json_has(alias, "offset")) TIDE_TRY(tide_json_get_bytes(r, alias, "offset", &offset));
    if (tide_json_has(alias, "kind")) {
        TIDE_TRY(tide_json_get_text(r, alias, "kind", &word));
        TIDE_TRY(tide_json_as_bad_input(r, "kind", tide_alias_kind_parse(word, &kind, r->err)));
    }
    if (!tide_strmap_get(names, of, &target)) return BAD(r, "of", "there is no tensor '%s' to lie in", of);
    r->at[outer] = '\0';
    return tide_json_as_bad_input(r, "alias", tide_lifetimes_alias(lt, i, kind, (uint32_t)target, offset, r->err));
}

tide_status tide__lifetimes_json_read(tide_json_reader *r, const json_t *root, tide_lifetimes *out,
                                      tide_strmap *names) {
    TIDE_TRY(read_head(r, root, out));
    json_t *tensors, *t;
    r->at[0] = '\0';
    TIDE_TRY(tide_json_get_list(r, root, "tensors", &tensors));
    const size_t n = json_array_size(tensors);
    if (n >= TIDE_NO_INDEX) return BAD(r, "tensors", "%zu tensors are more than can be numbered", n);
    for (size_t i = 0; i < n; i++) {
        TIDE_TRY(tide_json_enter(r, tensors, "tensors", i, &t));
        TIDE_TRY(read_tensor(r, t, out, names));
    }
    for (size_t i = 0; i < n; i++) {
        TIDE_TRY(tide_json_enter(r, tensors, "tensors", i, &t));
        TIDE_TRY(read_alias(r, t, (uint32_t)i, out, names));
    }
    return read_n_steps(r, root, out);
}

tide_status tide_lifetimes_from_json(const char *data, size_t len, const char *path, tide_lifetimes *out,
                                     tide_error *err) {
    tide_json_reader r = {.path = path, .err = err};
    json_t *root;
    tide_lifetimes lt = {0};
    tide_strmap names = {0};
    tide_status st = tide_json_parse_schema(&r, data, len, TIDE_LIFETIMES_SCHEMA, TIDE_LIFETIMES_SCHEMA_VERSION, &root);
    if (st == TIDE_OK) st = tide__lifetimes_json_read(&r, root, &lt, &names);
    if (st == TIDE_OK) {
        *out = lt;
    } else {
        tide_lifetimes_deinit(&lt);
    }
    tide_strmap_deinit(&names);
    json_decref(root);
    return st;
}

// ---- writer ----

// ---- names ----

/// On one line, for lists that are short; an empty one is left out.
static void add_short_list(tide_json_out *j, const char *key, char *const *names, size_t n) {
    if (n == 0) return;
    tide_json_open_flat(j, key, '[');
    for (size_t i = 0; i < n; i++) tide_json_text(j, NULL, names[i]);
    tide_json_close(j, ']');
}

static void add_regions(tide_json_out *j, const tide_lifetimes *lt) {
    if (lt->n_regions == 0) return;
    tide_json_open(j, "regions", '[');
    for (size_t i = 0; i < lt->n_regions; i++) {
        tide_json_open_flat(j, NULL, '{');
        tide_json_text(j, "kind", tide_plan_region_name(&lt->regions[i]));
        tide_json_i64(j, "open", lt->regions[i].open_step);
        tide_json_i64(j, "begin", lt->regions[i].begin_step);
        tide_json_i64(j, "end", lt->regions[i].end_step);
        tide_json_close(j, '}');
    }
    tide_json_close(j, ']');
}

void tide__lifetimes_json_add_names(tide_json_out *j, const tide_lifetimes *lt) {
    if (lt->given_plan_bytes > 0) tide_json_u64(j, "given_plan_bytes", lt->given_plan_bytes);
    add_short_list(j, "points", lt->point_names, lt->n_points);
    add_short_list(j, "recomputed", lt->recomputed, lt->n_recomputed);
    add_short_list(j, "dynamic", lt->dynamic, lt->n_dynamic);
    add_regions(j, lt);
    tide_json_open(j, "order", '[');
    for (size_t i = 0; i < lt->n_step_names; i++) tide_json_text(j, NULL, lt->step_names[i]);
    tide_json_close(j, ']');
}

// ---- tensors ----

static void add_index(tide_json_out *j, const char *key, uint32_t index) {
    tide_json_u64_if(j, key, index != TIDE_NO_INDEX, index);
}

static void add_gaps(tide_json_out *j, const tide_lifetime *item) {
    if (item->n_gaps == 0) return;
    tide_json_open(j, "gaps", '[');
    for (uint32_t k = 0; k < item->n_gaps; k++) {
        const tide_gap *gap = &item->gaps[k];
        tide_json_open(j, NULL, '{');
        tide_json_i64(j, "begin", gap->begin_step);
        tide_json_i64(j, "end", gap->end_step);
        if (gap->hi_bytes > 0) {
            tide_json_u64(j, "lo", gap->lo_bytes);
            tide_json_u64(j, "hi", gap->hi_bytes);
        }
        tide_json_close(j, '}');
    }
    tide_json_close(j, ']');
}

static void add_point_bytes(tide_json_out *j, const tide_lifetimes *lt, const tide_lifetime *item) {
    if (item->point_bytes == NULL || lt->n_points == 0) return;
    tide_json_open(j, "point_bytes", '[');
    for (size_t k = 0; k < lt->n_points; k++) tide_json_u64(j, NULL, item->point_bytes[k]);
    tide_json_close(j, ']');
}

static void add_alias(tide_json_out *j, const tide_lifetimes *lt, const tide_lifetime *item) {
    if (item->alias == TIDE_ALIAS_NONE) return;
    tide_json_open(j, "alias", '{');
    tide_json_text(j, "kind", tide_alias_kind_name(item->alias));
    tide_json_text(j, "of", lt->items[item->alias_of].name);
    tide_json_u64(j, "offset", item->alias_offset_bytes);
    tide_json_close(j, '}');
}

void tide__lifetimes_json_add_tensor(tide_json_out *j, const tide_lifetimes *lt, size_t i, uint64_t fixed_offset) {
    const tide_lifetime *item = &lt->items[i];
    char device[16];
    tide_json_text(j, "name", item->name);
    tide_json_u64(j, "size_bytes", item->size_bytes);
    tide_json_i64(j, "begin", item->begin_step);
    tide_json_i64(j, "end", item->end_step);
    tide_json_i64(j, "birth", item->begin_step);
    tide_json_i64(j, "death", item->end_step - 1);
    tide_json_text(j, "kind", tide_memory_kind_name(item->kind));
    tide_json_bool(j, "persistent", item->persistent);
    tide_json_text(j, "role", tide_role_name(item->role));
    tide_json_text(j, "device", tide_device_format(item->device, device, sizeof device));
    tide_json_u64(j, "align_bytes", item->align_bytes);
    tide_json_u64(j, "aligned_bytes", tide_lifetime_aligned_bytes(item));
    add_index(j, "node", item->node);
    add_index(j, "port", item->port);
    add_index(j, "value", item->value);
    add_alias(j, lt, item);
    add_gaps(j, item);
    if (fixed_offset != TIDE_NO_OFFSET) tide_json_u64(j, "fixed_offset", fixed_offset);
    if (item->apart_set != 0) tide_json_u64(j, "apart", item->apart_set);
    if (item->unrounded) tide_json_bool(j, "unrounded", true);
    add_point_bytes(j, lt, item);
    if (item->bound != NULL) tide_json_text(j, "bound", item->bound);
}

// ---- the document ----

/// An alias has no place of its own, so that nothing can be fixed about it.
static uint64_t fixed_offset_of(const tide_lifetimes *lt, const tide_memory_plan *plan, size_t i) {
    if (lt->items[i].alias != TIDE_ALIAS_NONE) return TIDE_NO_OFFSET;
    if (plan != NULL) return plan->offsets[i];
    return lt->items[i].fixed ? lt->items[i].fixed_offset_bytes : TIDE_NO_OFFSET;
}

tide_status tide_lifetimes_to_json(const tide_lifetimes *lt, const tide_memory_plan *plan, tide_text *out,
                                   tide_error *err) {
    tide_text own = {0};
    tide_json_out doc = {.out = &own, .indent = true}, *const j = &doc;
    tide_json_open(j, NULL, '{');
    tide_json_text(j, "schema", TIDE_LIFETIMES_SCHEMA);
    tide_json_i64(j, "version", TIDE_LIFETIMES_SCHEMA_VERSION);
    tide_json_text(j, "model", lt->model != NULL ? lt->model : "");
    tide_json_i64(j, "n_steps", lt->n_steps);
    tide__lifetimes_json_add_names(j, lt);
    tide_json_open(j, "tensors", '[');
    for (size_t i = 0; i < lt->n; i++) {
        tide_json_open_flat(j, NULL, '{');
        tide__lifetimes_json_add_tensor(j, lt, i, fixed_offset_of(lt, plan, i));
        tide_json_close(j, '}');
    }
    tide_json_close(j, ']');
    tide_json_close(j, '}');
    tide_text_add(&own, "\n");
    if (!own.failed) tide_text_add_n(out, own.data, own.len);
    const bool failed = own.failed || out->failed;
    tide_text_deinit(&own);
    return failed ? TIDE_NO_MEMORY(err, "for a document of %zu lifetimes", lt->n) : TIDE_OK;
}
