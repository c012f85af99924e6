// SPDX-License-Identifier: MIT
//
// Events of the Trace Event Format. See chrome_pen.h.
#include "reports/chrome_pen.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"

enum { PIECE = 1 << 20 }; // bytes that are written at once

/// Write what there is. The text keeps its memory.
static void put(tide__chrome *c) {
    if (c->st == TIDE_OK && c->text.failed) c->st = TIDE_NO_MEMORY(c->err, "for an event");
    if (c->st == TIDE_OK && c->text.len > 0) c->st = tide_output_put(c->out, c->text.data, c->text.len, c->err);
    c->text.len = 0;
}

void tide__chrome_begin(tide__chrome *c, tide_output *out, tide_error *err) {
    *c = (tide__chrome){.out = out, .err = err};
    c->json = (tide_json_out){.out = &c->text, .indent = true};
    tide_json_open(&c->json, NULL, '{');
    tide_json_text(&c->json, "displayTimeUnit", "ns");
    tide_json_open(&c->json, "traceEvents", '[');
}

void tide__chrome_open(tide__chrome *c, const char *ph, const char *name, const char *cat, tide__chrome_place at) {
    char us[32];
    tide_json_out *j = &c->json;
    TIDE_ASSERT(j->depth == 2); // the event before it was closed
    tide_json_open_flat(j, NULL, '{');
    tide_json_text(j, "ph", ph);
    tide_json_text(j, "name", name[0] != '\0' ? name : "(no name)");
    if (cat != NULL) tide_json_text(j, "cat", cat[0] != '\0' ? cat : "(no name)");
    tide_json_u64(j, "pid", at.process);
    tide_json_u64(j, "tid", at.thread);
    if (ph[0] == 'M') return; // it holds for all time
    snprintf(us, sizeof us, "%" PRIu64 ".%03" PRIu64, at.t_ns / 1000, at.t_ns % 1000);
    tide_json_raw(j, "ts", us);
}

void tide__chrome_id(tide__chrome *c, char sort, uint64_t number) {
    char id[32];
    snprintf(id, sizeof id, "%c%" PRIu64, sort, number);
    tide_json_text(&c->json, "id", id);
}

void tide__chrome_args(tide__chrome *c) { tide_json_open(&c->json, "args", '{'); }

void tide__chrome_close(tide__chrome *c) {
    TIDE_ASSERT(c->json.depth == 3 || c->json.depth == 4); // an event, perhaps in its arguments
    if (c->json.depth > 3) tide_json_close(&c->json, '}');
    tide_json_close(&c->json, '}');
    if (c->text.len >= PIECE) put(c);
}

void tide__chrome_name(tide__chrome *c, uint32_t process, uint32_t thread, const char *name) {
    tide__chrome_open(c, "M", thread == 0 ? "process_name" : "thread_name", NULL,
                      (tide__chrome_place){process, thread, 0});
    tide__chrome_args(c);
    tide_json_text(&c->json, "name", name);
    tide__chrome_close(c);
}

tide_status tide__chrome_end(tide__chrome *c) {
    while (c->json.depth > 0) tide_json_close(&c->json, c->json.depth == 2 ? ']' : '}');
    tide_text_add(&c->text, "\n");
    put(c);
    tide_text_deinit(&c->text);
    return c->st;
}
