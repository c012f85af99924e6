// SPDX-License-Identifier: MIT
//
// What a decode run is shown as. See decode.h.
#include <inttypes.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/decode.h"

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

static json_t *step_json(const cli_decode_result *r, size_t i) {
    const cli_decode_step *s = &r->steps[i];
    json_t *row = json_object();
    json_object_set_new(row, "token", r->has_tokens ? json_integer(s->token) : json_null());
    json_object_set_new(row, "tokens", json_integer((json_int_t)(i + 1)));
    json_object_set_new(row, "pages", json_integer((json_int_t)s->kv.n_pages));
    json_object_set_new(row, "taken_bytes", cli_json_bytes(s->kv.taken_bytes));
    json_object_set_new(row, "used_bytes", cli_json_bytes(s->kv.used_bytes));
    json_object_set_new(row, "waste_bytes", cli_json_bytes(s->kv.waste_bytes));
    return row;
}

json_t *cli_decode_json(const cli_decode_result *r) {
    char hash[24];
    snprintf(hash, sizeof hash, "%016" PRIx64, r->hash);
    json_t *doc = json_object();
    json_object_set_new(doc, "max_tokens", json_integer((json_int_t)r->max_tokens));
    json_object_set_new(doc, "page_tokens", json_integer((json_int_t)r->page_tokens));
    json_object_set_new(doc, "page_bytes", cli_json_bytes(r->steps[r->n_steps - 1].kv.page_bytes));
    json_object_set_new(doc, "token_bytes", cli_json_bytes(r->token_bytes));
    json_object_set_new(doc, "tokens_per_s", cli_json_real(tokens_per_s(r)));
    json_object_set_new(doc, "outputs_hash", json_string(hash));
    json_t *steps = json_array();
    for (size_t i = 0; i < r->n_steps; i++) json_array_append_new(steps, step_json(r, i));
    json_object_set_new(doc, "steps", steps);
    return doc;
}
