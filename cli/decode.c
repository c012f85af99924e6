// SPDX-License-Identifier: MIT
//
// A decoder step run token by token: the names of its inputs and outputs, the run, and how a run is shown. See
// decode.h.
//
//     pages (KVCache)  --gather-->  staging (HostPinned)  --spread-->  cache.X (Default)  --step-->  new.X (Default)
//           ^                            one token behind the others  <--collect--------------------------+
//           +----------- append ---------+
//
// The kernels take each cache as one row-major tensor, so every step puts the pages together again. That costs a copy
// of the cache per token: this demonstrates memory, not speed.
#include "cli/decode.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "core/base/checked.h"
#include "core/base/hash.h"
#include "core/base/host_alloc.h"
#include "core/memory/allocators/allocators.h"

/// One pair cache.X, new.X. Both have the extents outer x (T or 1) x inner.
typedef struct decode_pair {
    size_t input, output; ///< indices in the graph's lists
    size_t n_outer;
    size_t inner_bytes;  ///< of one token in one outer row
    size_t offset_bytes; ///< in the bytes of one token
} decode_pair;

/// What a decoder step is made of.
typedef struct decode_names {
    size_t token, position; ///< inputs
    size_t next;            ///< output
    decode_pair *pairs;     ///< [n_pairs], owned, in order of the inputs
    size_t n_pairs;
    size_t token_bytes; ///< one token of all pairs
    size_t max_tokens;  ///< T
} decode_names;

static void names_deinit(decode_names *names) {
    tide_host_free(names->pairs);
    *names = (decode_names){0};
}

static const char cache_prefix[] = "cache.", new_prefix[] = "new.";

static const tide_value *value_at(const tide_graph *g, const uint32_t *list, size_t i) { return &g->values[list[i]]; }

/// Index in a list of values; `n` when none has the name.
static size_t find(const tide_graph *g, const uint32_t *list, size_t n, const char *name) {
    size_t i = 0;
    while (i < n && strcmp(value_at(g, list, i)->name, name) != 0) i++;
    return i;
}

static tide_status refuse(const tide_graph *g, tide_error *err, const char *what, const char *name) {
    const tide_status st =
        TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "'%s' is no decoder step: it has no %s '%s'", g->name, what, name);
    tide_error_hint(err, "inputs token, position, cache.X and outputs next, new.X: docs/graph-text.md");
    return st;
}

static const char *type_of(const tide_value *v, char *buf, size_t buf_bytes) {
    char shape[192];
    snprintf(buf, buf_bytes, "%s %s", tide_dtype_name(v->dtype), tide_shape_format(&v->shape, shape, sizeof shape));
    return buf;
}

// ---- token, position, next ----

/// What is fed again has its size before any step.
static tide_status must_have_size(const tide_graph *g, size_t output, tide_error *err) {
    const tide_value *v = value_at(g, g->outputs, output);
    if (!v->is_dynamic) return TIDE_OK;
    return TIDE_FAIL(
        err, TIDE_ERR_BAD_INPUT,
        "'%s' is no decoder step: output '%s' is sized while running, and what is fed to the next step has "
        "one size",
        g->name, v->name);
}

static tide_status check_token(const tide_graph *g, decode_names *names, tide_error *err) {
    names->token = find(g, g->inputs, g->n_inputs, "token");
    if (names->token == g->n_inputs) return refuse(g, err, "input", "token");
    names->next = find(g, g->outputs, g->n_outputs, "next");
    if (names->next == g->n_outputs) return refuse(g, err, "output", "next");
    TIDE_TRY(must_have_size(g, names->next, err));
    const tide_value *token = value_at(g, g->inputs, names->token), *next = value_at(g, g->outputs, names->next);
    if (token->dtype == next->dtype && tide_shape_equal(&token->shape, &next->shape)) return TIDE_OK;
    char a[224], b[224];
    return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT,
                     "'%s' is no decoder step: output 'next' is %s and cannot be fed to input 'token', %s", g->name,
                     type_of(next, a, sizeof a), type_of(token, b, sizeof b));
}

static tide_status check_position(const tide_graph *g, decode_names *names, tide_error *err) {
    names->position = find(g, g->inputs, g->n_inputs, "position");
    if (names->position == g->n_inputs) return refuse(g, err, "input", "position");
    const tide_value *v = value_at(g, g->inputs, names->position);
    size_t bytes = 0;
    TIDE_TRY(tide_shape_bytes(&v->shape, v->dtype, &bytes, err));
    if (v->dtype == TIDE_I64 && bytes == sizeof(int64_t)) return TIDE_OK;
    char type[224];
    return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "'%s' is no decoder step: input 'position' is %s, want one int64",
                     g->name, type_of(v, type, sizeof type));
}

// ---- pairs ----

/// The axis in which `cache` has T and `fresh` has 1, all else being equal; -1: there is none.
static int32_t token_axis(const tide_shape *cache, const tide_shape *fresh) {
    int32_t axis = -1;
    if (cache->rank != fresh->rank) return -1;
    for (int32_t d = 0; d < cache->rank; d++) {
        if (cache->dims[d] == fresh->dims[d]) continue;
        if (axis >= 0 || fresh->dims[d] != 1) return -1;
        axis = d;
    }
    return axis;
}

static tide_status measure_pair(const tide_graph *g, decode_names *names, decode_pair *p, tide_error *err) {
    const tide_value *cache = value_at(g, g->inputs, p->input), *fresh = value_at(g, g->outputs, p->output);
    TIDE_TRY(must_have_size(g, p->output, err));
    const int32_t axis = token_axis(&cache->shape, &fresh->shape);
    size_t bytes;
    TIDE_TRY(tide_shape_bytes(&fresh->shape, fresh->dtype, &bytes, err));
    if (cache->dtype != fresh->dtype || axis < 0 || bytes == 0) {
        char a[224], b[224];
        return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT,
                         "'%s' is no decoder step: '%s' is %s and '%s' is %s; they may differ in one extent only, in "
                         "which one token has 1",
                         g->name, cache->name, type_of(cache, a, sizeof a), fresh->name, type_of(fresh, b, sizeof b));
    }
    const size_t max_tokens = (size_t)cache->shape.dims[axis];
    if (names->max_tokens != 0 && names->max_tokens != max_tokens)
        return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "'%s' is no decoder step: '%s' holds %zu tokens, another cache %zu",
                         g->name, cache->name, max_tokens, names->max_tokens);
    names->max_tokens = max_tokens;
    p->n_outer = 1;
    for (int32_t d = 0; d < axis; d++) p->n_outer *= (size_t)cache->shape.dims[d]; // its bytes fit, so do these
    p->inner_bytes = bytes / p->n_outer;
    p->offset_bytes = names->token_bytes;
    if (!tide_add_size(names->token_bytes, bytes, &names->token_bytes))
        return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "the caches of one token have too many bytes");
    return TIDE_OK;
}

static tide_status add_pair(const tide_graph *g, size_t input, decode_names *names, tide_error *err) {
    const char *stem = value_at(g, g->inputs, input)->name + sizeof cache_prefix - 1;
    tide_text fresh = {0};
    tide_text_addf(&fresh, "%s%s", new_prefix, stem);
    if (fresh.failed) {
        tide_text_deinit(&fresh);
        return TIDE_NO_MEMORY(err, "for a name");
    }
    decode_pair *p = &names->pairs[names->n_pairs];
    *p = (decode_pair){.input = input, .output = find(g, g->outputs, g->n_outputs, tide_text_str(&fresh))};
    const tide_status st =
        p->output < g->n_outputs ? measure_pair(g, names, p, err) : refuse(g, err, "output", tide_text_str(&fresh));
    tide_text_deinit(&fresh);
    if (st == TIDE_OK) names->n_pairs++;
    return st;
}

static tide_status find_pairs(const tide_graph *g, decode_names *names, tide_error *err) {
    TIDE_TRY(TIDE_NEW(&names->pairs, g->n_inputs + 1, err, "for %zu inputs", g->n_inputs));
    for (size_t i = 0; i < g->n_inputs; i++) {
        if (i == names->token || i == names->position) continue;
        const char *name = value_at(g, g->inputs, i)->name;
        if (strncmp(name, cache_prefix, sizeof cache_prefix - 1) == 0) {
            TIDE_TRY(add_pair(g, i, names, err));
            continue;
        }
        return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "'%s' is no decoder step: nothing feeds its input '%s'", g->name,
                         name);
    }
    return names->n_pairs > 0 ? TIDE_OK : refuse(g, err, "input", "cache.X");
}

/// Refuses an output new.X without an input cache.X, because its keys and values would never be read.
static tide_status check_leftovers(const tide_graph *g, const decode_names *names, tide_error *err) {
    for (size_t i = 0; i < g->n_outputs; i++) {
        const char *name = value_at(g, g->outputs, i)->name;
        if (strncmp(name, new_prefix, sizeof new_prefix - 1) != 0) continue;
        bool paired = false;
        for (size_t k = 0; k < names->n_pairs; k++) paired |= names->pairs[k].output == i;
        if (!paired)
            return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "'%s' is no decoder step: output '%s' has no input '%s%s'",
                             g->name, name, cache_prefix, name + sizeof new_prefix - 1);
    }
    return TIDE_OK;
}

/// Reads the convention off a graph whose shapes are known. TIDE_ERR_BAD_INPUT names what is missing, what has the
/// wrong type or shape, or which input would get no value.
static tide_status read_names(const tide_graph *g, decode_names *out, tide_error *err) {
    *out = (decode_names){0};
    tide_status st = check_token(g, out, err);
    if (st == TIDE_OK) st = check_position(g, out, err);
    if (st == TIDE_OK) st = find_pairs(g, out, err);
    if (st == TIDE_OK) st = check_leftovers(g, out, err);
    if (st != TIDE_OK) names_deinit(out);
    return st;
}

// ---- what a run takes ----

// One page per slab, so that taken memory is what is counted, and a limit ends the run at the first page that does
// not fit.
enum { PAGES_PER_SLAB = 1 };

typedef struct job {
    cli_session *s;
    const cli_decode_spec *spec;
    const cli_session_spec *run; // spec->run
    const tide_graph *g;
    decode_names names;
    tide_inference_plan *plan;
    tide_context *context;
    tide_tensor **inputs; // [g->n_inputs], Default
    tide_tensor *staging; // HostPinned: all tokens of the cache, one behind the other
    tide_kv_cache *cache;
    tide_kv_sequence sequence;
    uint64_t *times; // [n_tokens]
    cli_session_mark mark;
} job;

// ---- what it takes ----

/// Pages of whole tokens over slabs of a plain allocator, which is what a limit is put around; what is observed is each
/// page. They become the session's allocator for keys and values, as a serving program would have it.
static tide_status make_pages(job *j, size_t page_bytes, tide_error *err) {
    tide_allocator *plain = NULL, *limited = NULL, *paged = NULL;
    TIDE_TRY(tide_allocator_create_by_name(j->spec->allocator, &plain, err));
    tide_status st = cli_session_within_limit(j->s, plain, &limited, err);
    tide_allocator_unref(plain);
    if (st != TIDE_OK) return st;
    st = tide_paged_create(limited, page_bytes, PAGES_PER_SLAB, &paged, err);
    tide_allocator_unref(limited);
    if (st != TIDE_OK) return st;
    st = cli_session_serve(j->s, TIDE_KIND_KV_CACHE, paged, err);
    tide_allocator_unref(paged);
    return st;
}

static tide_status make_cache(job *j, tide_error *err) {
    size_t tokens;
    uint64_t page_bytes;
    if (!tide_mul_size(j->names.token_bytes, j->spec->page_tokens, &tokens) ||
        !tide_align_up(tokens, tide_memory_kind_alignment(TIDE_KIND_KV_CACHE, j->run->device), &page_bytes))
        return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "a page of %zu tokens of %zu B has too many bytes",
                         j->spec->page_tokens, j->names.token_bytes);
    TIDE_TRY(make_pages(j, (size_t)page_bytes, err));
    tide_allocator *pages;
    TIDE_TRY(tide_registry_acquire(cli_session_registry(j->s), j->run->device, TIDE_KIND_KV_CACHE, &pages, err));
    const tide_kv_cache_options opt = {
        .token_bytes = j->names.token_bytes, .tokens_per_page = j->spec->page_tokens, .tag = "kv page"};
    tide_status st = tide_kv_cache_create(pages, &opt, &j->cache, err);
    tide_allocator_unref(pages);
    return st == TIDE_OK ? tide_kv_cache_add(j->cache, &j->sequence, err) : st;
}

static tide_status make_tensor(job *j, const tide_value *v, tide_memory_kind kind, tide_tensor **out, tide_error *err) {
    const tide_tensor_spec spec = {.dtype = v->dtype,
                                   .shape = v->shape,
                                   .device = j->run->device,
                                   .kind = kind,
                                   .registry = cli_session_registry(j->s),
                                   .tag = v->name};
    TIDE_TRY(tide_tensor_create(&spec, out, err));
    void *data;
    TIDE_TRY(tide_tensor_write(*out, &data, err));
    // Places without a token are masked: they are multiplied by 0, so they must not hold NaN or infinities.
    if (data != NULL) memset(data, 0, tide_tensor_size_bytes(*out));
    return TIDE_OK;
}

/// The first token: 0, or numbers of the seed where a token is no integer.
static tide_status draw_token(job *j, tide_error *err) {
    tide_tensor *t = j->inputs[j->names.token];
    void *data;
    TIDE_TRY(tide_tensor_write(t, &data, err));
    tide_rng rng = {j->run->seed};
    const size_t n = tide_tensor_size_bytes(t);
    if (tide_tensor_dtype(t) == TIDE_F32) {
        for (size_t i = 0; i < n / sizeof(float); i++) ((float *)data)[i] = (float)tide_rng_f64(&rng);
    } else if (tide_tensor_dtype(t) == TIDE_F64) {
        for (size_t i = 0; i < n / sizeof(double); i++) ((double *)data)[i] = tide_rng_f64(&rng);
    }
    return TIDE_OK;
}

static tide_status make_inputs(job *j, tide_error *err) {
    TIDE_TRY(TIDE_NEW(&j->inputs, j->g->n_inputs + 1, err, "for %zu inputs", j->g->n_inputs));
    for (size_t i = 0; i < j->g->n_inputs; i++)
        TIDE_TRY(make_tensor(j, &j->g->values[j->g->inputs[i]], TIDE_KIND_DEFAULT, &j->inputs[i], err));
    TIDE_TRY(draw_token(j, err));
    size_t bytes;
    if (!tide_mul_size(j->names.max_tokens, j->names.token_bytes, &bytes) || bytes > INT64_MAX)
        return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "%zu tokens of %zu B have too many bytes", j->names.max_tokens,
                         j->names.token_bytes);
    char name[] = "kv staging";
    const int64_t dim = (int64_t)bytes;
    const tide_value staging = {.name = name, .dtype = TIDE_U8, .shape = tide_shape_make(1, &dim)};
    return make_tensor(j, &staging, TIDE_KIND_HOST_PINNED, &j->staging, err);
}

static tide_status make_all(job *j, tide_error *err) {
    TIDE_TRY(TIDE_NEW(&j->times, j->spec->n_tokens, err, "for %zu steps", j->spec->n_tokens));
    cli_session_begin(j->s, j->run, &j->mark);
    const tide_inference_plan_options plan_opt = {
        .device = j->run->device, .registry = cli_session_registry(j->s), .memory_plan = j->run->plan};
    TIDE_TRY(tide_inference_plan_create(j->run->program, &plan_opt, &j->plan, err));
    TIDE_TRY(make_inputs(j, err));
    TIDE_TRY(make_cache(j, err));
    const tide_context_options opt = {
        .mode = j->run->mode, .fill = j->run->fill, .observer = cli_session_observer(j->s)};
    TIDE_TRY(tide_context_create(j->plan, &opt, &j->context, err));
    return tide_context_set_inputs(j->context, j->inputs, j->g->n_inputs, err);
}

static void drop_all(job *j) {
    tide_context_destroy(j->context);
    tide_kv_cache_destroy(j->cache);
    tide_tensor_unref(j->staging);
    for (size_t i = 0; j->inputs != NULL && i < j->g->n_inputs; i++) tide_tensor_unref(j->inputs[i]);
    tide_host_free(j->inputs);
    tide_inference_plan_unref(j->plan);
    tide_host_free(j->times);
    names_deinit(&j->names);
}

// ---- one step ----

/// Copies pages -> staging -> the inputs cache.X. The bytes after token n are 0 from the beginning.
static tide_status assemble(job *j, size_t n, tide_error *err) {
    if (n == 0) return TIDE_OK;
    void *staging;
    TIDE_TRY(tide_tensor_write(j->staging, &staging, err));
    TIDE_TRY(tide_kv_cache_gather(j->cache, j->sequence, 0, n, staging, err));
    for (size_t k = 0; k < j->names.n_pairs; k++) {
        const decode_pair *p = &j->names.pairs[k];
        void *to;
        TIDE_TRY(tide_tensor_write(j->inputs[p->input], &to, err));
        for (size_t t = 0; t < n; t++) {
            const char *from = (const char *)staging + t * j->names.token_bytes + p->offset_bytes;
            for (size_t o = 0; o < p->n_outer; o++)
                memcpy((char *)to + (o * j->names.max_tokens + t) * p->inner_bytes, from + o * p->inner_bytes,
                       p->inner_bytes);
        }
    }
    return TIDE_OK;
}

/// Copies the outputs new.X -> staging, after the tokens that are there -> pages.
static tide_status append(job *j, size_t n, tide_error *err) {
    void *staging;
    TIDE_TRY(tide_tensor_write(j->staging, &staging, err));
    char *token = (char *)staging + n * j->names.token_bytes;
    for (size_t k = 0; k < j->names.n_pairs; k++) {
        const decode_pair *p = &j->names.pairs[k];
        const void *from;
        TIDE_TRY(tide_tensor_read(tide_context_output(j->context, p->output), &from, err));
        memcpy(token + p->offset_bytes, from, p->n_outer * p->inner_bytes);
    }
    return tide_kv_cache_append(j->cache, j->sequence, token, 1, err);
}

static tide_status feed_back(job *j, tide_error *err) {
    const void *from;
    void *to;
    TIDE_TRY(tide_tensor_read(tide_context_output(j->context, j->names.next), &from, err));
    TIDE_TRY(tide_tensor_write(j->inputs[j->names.token], &to, err));
    if (to != NULL) memcpy(to, from, tide_tensor_size_bytes(j->inputs[j->names.token]));
    return TIDE_OK;
}

static tide_status hash_outputs(const job *j, uint64_t *hash, tide_error *err) {
    for (size_t i = 0; i < j->g->n_outputs; i++) {
        const tide_tensor *t = tide_context_output(j->context, i);
        const void *data;
        TIDE_TRY(tide_tensor_read(t, &data, err));
        *hash = tide_hash_bytes(*hash, data, tide_tensor_size_bytes(t));
    }
    return TIDE_OK;
}

static tide_status set_position(job *j, size_t n, tide_error *err) {
    void *data;
    TIDE_TRY(tide_tensor_write(j->inputs[j->names.position], &data, err));
    *(int64_t *)data = (int64_t)n;
    return TIDE_OK;
}

static tide_status step(job *j, size_t n, cli_decode_result *out, tide_error *err) {
    TIDE_TRY(assemble(j, n, err));
    TIDE_TRY(set_position(j, n, err));
    const uint64_t begin = tide_now_ns();
    TIDE_TRY(tide_context_run(j->context, err));
    j->times[n] = tide_now_ns() - begin;
    TIDE_TRY(append(j, n, err));
    TIDE_TRY(hash_outputs(j, &out->hash, err));
    TIDE_TRY(feed_back(j, err));
    if (out->has_tokens) {
        const void *data;
        TIDE_TRY(tide_tensor_read(j->inputs[j->names.token], &data, err));
        out->steps[n].token = *(const int64_t *)data;
    }
    tide_kv_cache_get_stats(j->cache, &out->steps[n].kv);
    return TIDE_OK;
}

/// Block allocations so far, without pages of the cache, which are expected during the run.
static uint64_t allocations(job *j) {
    cli_session_result r = {0};
    cli_session_read(j->s, &r);
    uint64_t n = 0;
    for (int k = 0; k < TIDE_N_KINDS; k++) n += k == TIDE_KIND_KV_CACHE ? 0 : r.kinds[k].n_allocs;
    return n;
}

static int by_time(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static tide_status run_steps(job *j, cli_decode_result *out, tide_error *err) {
    const tide_tensor *token = j->inputs[j->names.token];
    out->has_tokens = tide_tensor_dtype(token) == TIDE_I64 && tide_tensor_size_bytes(token) == sizeof(int64_t);
    const uint64_t begin = tide_now_ns();
    uint64_t mark = 0;
    for (size_t n = 0; n < j->spec->n_tokens; n++) {
        const tide_status st = step(j, n, out, err);
        if (st != TIDE_OK) {
            tide_error_prefix(err, "token %zu of %zu", n + 1, j->spec->n_tokens);
            return st;
        }
        if (n == 0) mark = allocations(j);
        if (n == 0 && j->spec->n_tokens > 1) cli_session_mark_warm(j->s);
        out->n_steps = n + 1;
    }
    out->total_ns = tide_now_ns() - begin;
    out->session.warm_allocations = allocations(j) - mark;
    qsort(j->times, out->n_steps, sizeof *j->times, by_time);
    out->session.time_min_ns = j->times[0];
    out->session.time_median_ns = j->times[out->n_steps / 2];
    out->session.time_max_ns = j->times[out->n_steps - 1];
    return tide_kv_cache_check(j->cache, err);
}

// ---- all steps ----

static tide_status check_request(const job *j, tide_error *err) {
    if (j->spec->n_tokens <= j->names.max_tokens) return TIDE_OK;
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_INVALID, "'%s': %zu tokens do not fit its cache of %zu", j->g->name,
                                     j->spec->n_tokens, j->names.max_tokens);
    tide_error_hint(err, "--decode %zu at most", j->names.max_tokens);
    return st;
}

static tide_status decode(job *j, cli_decode_result *out, tide_error *err) {
    TIDE_TRY(read_names(j->g, &j->names, err));
    TIDE_TRY(check_request(j, err));
    out->max_tokens = j->names.max_tokens;
    out->token_bytes = j->names.token_bytes;
    out->page_tokens = j->spec->page_tokens;
    TIDE_TRY(TIDE_NEW(&out->steps, j->spec->n_tokens, err, "for %zu steps", j->spec->n_tokens));
    TIDE_TRY(make_all(j, err));
    TIDE_TRY(run_steps(j, out, err));
    return cli_bounded_add(&out->session.bounded, j->context, err);
}

tide_status cli_decode_run(cli_session *s, const cli_decode_spec *spec, cli_decode_result *out, tide_error *err) {
    *out = (cli_decode_result){.hash = TIDE_HASH_START};
    job j = {.s = s, .spec = spec, .run = spec->run, .g = spec->run->program->graph};
    tide_status st = decode(&j, out, err);
    drop_all(&j);
    cli_session_finish(s, &j.mark, &out->session);
    if (st != TIDE_OK) cli_decode_result_deinit(out);
    return st;
}

void cli_decode_result_deinit(cli_decode_result *r) {
    tide_host_free(r->steps);
    *r = (cli_decode_result){0};
}

// ---- views ----

static double tokens_per_s(const cli_decode_result *r) {
    return r->total_ns > 0 ? (double)r->n_steps * 1e9 / (double)r->total_ns : 0.0;
}

void cli_decode_print(const cli_decode_result *r) {
    char a[24], b[24], c[24];
    const tide_kv_cache_stats *last = &r->steps[r->n_steps - 1].kv;
    printf("cache: %zu tokens of at most %zu, %s each; a page is %zu token%s, %s\n\n", r->n_steps, r->max_tokens,
           tide_format_bytes(r->token_bytes, a, sizeof a), r->page_tokens, r->page_tokens == 1 ? "" : "s",
           tide_format_bytes(last->page_bytes, b, sizeof b));
    printf("%8s %7s %14s %14s %14s\n", "tokens", "pages", "taken", "used", "waste");
    for (size_t i = 0; i < r->n_steps; i++) {
        const tide_kv_cache_stats *kv = &r->steps[i].kv;
        // A line where a page was taken, and one for the end.
        if (i > 0 && i + 1 < r->n_steps && kv->n_pages == r->steps[i - 1].kv.n_pages) continue;
        printf("%8zu %7zu %14s %14s %14s\n", i + 1, kv->n_pages, tide_format_bytes(kv->taken_bytes, a, sizeof a),
               tide_format_bytes(kv->used_bytes, b, sizeof b), tide_format_bytes(kv->waste_bytes, c, sizeof c));
    }
    printf("\n%.0f tokens per second, the cache put together anew for each (for information)\n", tokens_per_s(r));
}

static void add_step(tide_json_out *j, const cli_decode_result *r, size_t i) {
    const cli_decode_step *s = &r->steps[i];
    tide_json_open(j, NULL, '{');
    if (r->has_tokens)
        tide_json_i64(j, "token", s->token);
    else
        tide_json_null(j, "token");
    tide_json_u64(j, "tokens", i + 1);
    tide_json_u64(j, "pages", s->kv.n_pages);
    tide_json_u64(j, "taken_bytes", s->kv.taken_bytes);
    tide_json_u64(j, "used_bytes", s->kv.used_bytes);
    tide_json_u64(j, "waste_bytes", s->kv.waste_bytes);
    tide_json_close(j, '}');
}

void cli_json_decode(tide_json_out *j, const char *key, const cli_decode_result *r) {
    char hash[24];
    snprintf(hash, sizeof hash, "%016" PRIx64, r->hash);
    tide_json_open(j, key, '{');
    tide_json_u64(j, "max_tokens", r->max_tokens);
    tide_json_u64(j, "page_tokens", r->page_tokens);
    tide_json_u64(j, "page_bytes", r->steps[r->n_steps - 1].kv.page_bytes);
    tide_json_u64(j, "token_bytes", r->token_bytes);
    tide_json_number(j, "tokens_per_s", tokens_per_s(r), 12);
    tide_json_text(j, "outputs_hash", hash);
    tide_json_open(j, "steps", '[');
    for (size_t i = 0; i < r->n_steps; i++) add_step(j, r, i);
    tide_json_close(j, ']');
    tide_json_close(j, '}');
}
