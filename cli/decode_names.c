// SPDX-License-Identifier: MIT
//
// What a decoder step calls its inputs and outputs. See decode.h.
#include <inttypes.h>
#include <string.h>

#include "cli/decode.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"

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

// ---- the three single ones ----

static tide_status check_token(const tide_graph *g, cli_decode_names *names, tide_error *err) {
    names->token = find(g, g->inputs, g->n_inputs, "token");
    if (names->token == g->n_inputs) return refuse(g, err, "input", "token");
    names->next = find(g, g->outputs, g->n_outputs, "next");
    if (names->next == g->n_outputs) return refuse(g, err, "output", "next");
    const tide_value *token = value_at(g, g->inputs, names->token), *next = value_at(g, g->outputs, names->next);
    if (token->dtype == next->dtype && tide_shape_equal(&token->shape, &next->shape)) return TIDE_OK;
    char a[224], b[224];
    return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT,
                     "'%s' is no decoder step: output 'next' is %s and cannot be fed to input 'token', %s", g->name,
                     type_of(next, a, sizeof a), type_of(token, b, sizeof b));
}

static tide_status check_position(const tide_graph *g, cli_decode_names *names, tide_error *err) {
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

static tide_status measure_pair(const tide_graph *g, cli_decode_names *names, cli_decode_pair *p, tide_error *err) {
    const tide_value *cache = value_at(g, g->inputs, p->input), *fresh = value_at(g, g->outputs, p->output);
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

static tide_status add_pair(const tide_graph *g, size_t input, cli_decode_names *names, tide_error *err) {
    const char *stem = value_at(g, g->inputs, input)->name + sizeof cache_prefix - 1;
    tide_text fresh = {0};
    tide_text_addf(&fresh, "%s%s", new_prefix, stem);
    if (fresh.failed) {
        tide_text_deinit(&fresh);
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for a name");
    }
    cli_decode_pair *p = &names->pairs[names->n_pairs];
    *p = (cli_decode_pair){.input = input, .output = find(g, g->outputs, g->n_outputs, tide_text_str(&fresh))};
    const tide_status st =
        p->output < g->n_outputs ? measure_pair(g, names, p, err) : refuse(g, err, "output", tide_text_str(&fresh));
    tide_text_deinit(&fresh);
    if (st == TIDE_OK) names->n_pairs++;
    return st;
}

static tide_status find_pairs(const tide_graph *g, cli_decode_names *names, tide_error *err) {
    names->pairs = tide_host_calloc(g->n_inputs + 1, sizeof *names->pairs);
    if (names->pairs == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for %zu inputs", g->n_inputs);
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

/// Keys and values that nobody would ever read again are a slip of the pen.
static tide_status check_leftovers(const tide_graph *g, const cli_decode_names *names, tide_error *err) {
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

tide_status cli_decode_names_of(const tide_graph *g, cli_decode_names *out, tide_error *err) {
    *out = (cli_decode_names){0};
    tide_status st = check_token(g, out, err);
    if (st == TIDE_OK) st = check_position(g, out, err);
    if (st == TIDE_OK) st = find_pairs(g, out, err);
    if (st == TIDE_OK) st = check_leftovers(g, out, err);
    if (st != TIDE_OK) cli_decode_names_deinit(out);
    return st;
}

void cli_decode_names_deinit(cli_decode_names *names) {
    tide_host_free(names->pairs);
    *names = (cli_decode_names){0};
}
