// SPDX-License-Identifier: MIT
//
// A plan as a C header for firmware: how large each arena must be, and where each tensor lies in it. It stands alone,
// in C99 and C++. Names of tensors are foreign text: in identifiers all but letters and digits becomes '_', in comments
// nothing of them ends the comment, in strings what is not plain ASCII is escaped.
//
//     LENET5_ARENA_BYTES                           of one buffer; of several: LENET5_ARENA_CPU_WORKSPACE_BYTES, …
//     LENET5_TENSOR_CONV1_OUT_OFFSET, …_BYTES      from the start of its arena
//     lenet5_tensors[LENET5_N_TENSORS]             the same as a table, with first and last step
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/base/map.h"
#include "core/base/utf8.h"
#include "planner/planner.h"

typedef struct header {
    const tide_memory_plan *plan;
    tide_text *out;
    char *upper, *lower; ///< of the prefix, owned
    tide_strmap taken;   ///< identifiers -> how often they were asked for
    bool is_wide;        ///< some number needs 64 bits
} header;

// ---- names ----

/// Letters, digits and single '_' between them: a part of an identifier; `other` where nothing is left.
static void add_identifier(tide_text *out, const char *text, const char *other) {
    const size_t before = out->len;
    bool gap = false;
    for (; *text != '\0'; text++) {
        const unsigned char c = (unsigned char)*text;
        const bool is_plain = c < 0x80 && isalnum(c);
        if (is_plain && gap && out->len > before) tide_text_add(out, "_");
        gap = !is_plain;
        const char upper = (char)toupper(c);
        if (is_plain) tide_text_add_n(out, &upper, 1);
    }
    if (out->len == before) tide_text_add(out, other);
}

/// Like `text`, or with a number behind it where that was given before. `text` is gone then.
static tide_status make_unique(header *h, tide_text *text, tide_error *err) {
    uint64_t n = 0;
    const size_t len = text->len;
    tide_text key = {0};
    tide_text_add(&key, tide_text_str(text));
    tide_strmap_get(&h->taken, tide_text_str(&key), &n);
    tide_status st = tide_strmap_put(&h->taken, tide_text_str(&key), n + 1);
    for (uint64_t k = n + 1; n > 0 && st == TIDE_OK && !text->failed; k++) {
        text->len = len;
        tide_text_addf(text, "_%" PRIu64, k);
        if (tide_strmap_get(&h->taken, tide_text_str(text), NULL)) continue;
        st = tide_strmap_put(&h->taken, tide_text_str(text), 1);
        if (st == TIDE_OK) st = tide_strmap_put(&h->taken, tide_text_str(&key), k);
        break;
    }
    const bool failed = st != TIDE_OK || key.failed || text->failed;
    tide_text_deinit(&key);
    return failed ? TIDE_NO_MEMORY(err, "for the names of a header") : TIDE_OK;
}

static char *copy_as(const char *text, int (*change)(int)) {
    char *copy = tide_host_strdup(text);
    for (char *c = copy; copy != NULL && *c != '\0'; c++) *c = (char)change((unsigned char)*c);
    return copy;
}

/// The prefix as it was given, or of the model's name.
static tide_status make_prefix(header *h, const char *given, tide_error *err) {
    const char *model = h->plan->lifetimes.model;
    tide_text text = {0};
    if (given != NULL) {
        tide_text_add(&text, given);
    } else {
        add_identifier(&text, model != NULL ? model : "", "MODEL");
        if (isdigit((unsigned char)tide_text_str(&text)[0])) {
            tide_text_deinit(&text);
            tide_text_add(&text, "M_");
            add_identifier(&text, model, "");
        }
    }
    h->upper = copy_as(tide_text_str(&text), toupper);
    h->lower = copy_as(tide_text_str(&text), tolower);
    const bool failed = text.failed || h->upper == NULL || h->lower == NULL;
    tide_text_deinit(&text);
    return failed ? TIDE_NO_MEMORY(err, "for the names of a header") : TIDE_OK;
}

/// Inside a comment: nothing of it ends the comment or begins another one.
static void add_comment(tide_text *out, const char *text) {
    tide_text clean = {0};
    tide_utf8_add_clean(&clean, text);
    const char *at = tide_text_str(&clean);
    for (char before = ' '; *at != '\0'; before = *at++) {
        const bool turns = (before == '*' && *at == '/') || (before == '/' && *at == '*');
        if (turns) tide_text_add(out, " ");
        tide_text_add_n(out, at, 1);
    }
    // The comment goes on with a blank: a name that ends with '*' or '\' changes nothing.
    out->failed |= clean.failed;
    tide_text_deinit(&clean);
}

/// As it stands in a string or between '': what is not plain ASCII by its three octal digits, '?' too, which may begin
/// a trigraph.
static void add_character(tide_text *out, char character) {
    const unsigned char c = (unsigned char)character;
    if (strchr("\"'\\?", c) != NULL)
        tide_text_addf(out, "\\%c", c);
    else if (c < 0x20 || c >= 0x7f)
        tide_text_addf(out, "\\%03o", c);
    else
        tide_text_add_n(out, &character, 1);
}

static void add_string(tide_text *out, const char *text) {
    tide_text_add(out, "\"");
    for (; *text != '\0'; text++) add_character(out, *text);
    tide_text_add(out, "\"");
}

/// More than every C99 compiler takes as one string (C99, 5.2.4.1).
static bool is_long(const char *name) { return strlen(name) > 4095; }

// ---- what is listed ----

static bool is_listed(const tide_memory_plan *plan, size_t i) { return plan->offsets[i] != TIDE_NO_OFFSET; }

static size_t count_listed(const tide_memory_plan *plan) {
    size_t n = 0;
    for (size_t i = 0; i < plan->lifetimes.n; i++) n += is_listed(plan, i);
    return n;
}

/// Whether a number of the header passes 32 bits: no offset or size is larger than its buffer.
static bool needs_64_bits(const tide_memory_plan *plan) {
    bool wide = false;
    for (size_t b = 0; b < plan->n_buffers; b++) wide |= plan->buffers[b].bytes > UINT32_MAX;
    for (size_t i = 0; i < plan->lifetimes.n; i++) {
        const tide_lifetime *item = &plan->lifetimes.items[i];
        if (!is_listed(plan, i)) continue;
        wide |= item->end_step > UINT32_MAX;
    }
    return wide;
}

/// Index of the arena that a tensor lies in; 0 for one without bytes whose buffer is none.
static size_t arena_of(const tide_memory_plan *plan, const tide_lifetime *item) {
    const tide_plan_buffer *buffer = tide_memory_plan_buffer(plan, item->device, item->kind);
    return buffer != NULL ? (size_t)(buffer - plan->buffers) : 0;
}

static const char *suffix(const header *h) { return h->is_wide ? "ull" : "u"; }

// ---- parts of the header ----

static void add_head(const header *h) {
    const tide_memory_plan *plan = h->plan;
    const size_t n_apart = plan->lifetimes.n - count_listed(plan);
    tide_text *out = h->out;
    tide_text_add(out, "/* Where the tensors of ");
    add_comment(out, plan->lifetimes.model != NULL ? plan->lifetimes.model : "a list");
    tide_text_add(out, " lie, planned by tidemark (");
    add_comment(out, plan->strategy != NULL ? plan->strategy : "");
    tide_text_add(
        out, "). Sizes and offsets are in bytes, an offset\n"
             "   counts from the start of its arena; a tensor keeps its bytes from its first to its last step, both\n"
             "   included. */\n");
    if (n_apart > 0)
        tide_text_addf(
            out, "/* Not listed: %zu that live%s all the time outside of every arena (inputs, outputs, weights). */\n",
            n_apart, n_apart == 1 ? "s" : "");
    if (plan->lifetimes.n_dynamic > 0)
        tide_text_addf(out, "/* Not listed: %zu sized while running, whose memory comes on top. */\n",
                       plan->lifetimes.n_dynamic);
    tide_text_addf(out, "#ifndef %s_MEMORY_PLAN_H\n#define %s_MEMORY_PLAN_H\n\n#include <stdint.h>\n\n", h->upper,
                   h->upper);
}

static tide_status add_arenas(header *h, tide_error *err) {
    const tide_memory_plan *plan = h->plan;
    tide_text_addf(h->out, "#define %s_N_ARENAS %zuu\n", h->upper, plan->n_buffers > 0 ? plan->n_buffers : 1);
    if (plan->n_buffers <= 1) {
        const uint64_t bytes = plan->n_buffers > 0 ? plan->buffers[0].bytes : 0;
        const uint64_t align = plan->n_buffers > 0 ? plan->buffers[0].align_bytes : 1;
        tide_text_addf(h->out, "#define %s_ARENA_BYTES %" PRIu64 "%s\n#define %s_ARENA_ALIGN %" PRIu64 "%s\n", h->upper,
                       bytes, suffix(h), h->upper, align, suffix(h));
    }
    for (size_t b = 0; plan->n_buffers > 1 && b < plan->n_buffers; b++) {
        const tide_plan_buffer *buffer = &plan->buffers[b];
        char device[32], text[96];
        tide_text name = {0};
        snprintf(text, sizeof text, "%s %s", tide_device_format(buffer->device, device, sizeof device),
                 tide_memory_kind_name(buffer->kind));
        tide_text_addf(&name, "%s_ARENA_", h->upper);
        add_identifier(&name, text, "X");
        const tide_status st = make_unique(h, &name, err);
        const char *id = tide_text_str(&name);
        tide_text_addf(h->out, "#define %s %zuu /* its index: %s */\n", id, b, text);
        tide_text_addf(h->out, "#define %s_BYTES %" PRIu64 "%s\n#define %s_ALIGN %" PRIu64 "%s\n", id, buffer->bytes,
                       suffix(h), id, buffer->align_bytes, suffix(h));
        tide_text_deinit(&name);
        TIDE_TRY(st);
    }
    tide_text_add(h->out, "\n");
    return TIDE_OK;
}

static tide_status add_macros(header *h, tide_error *err) {
    const tide_memory_plan *plan = h->plan;
    for (size_t i = 0; i < plan->lifetimes.n; i++) {
        const tide_lifetime *item = &plan->lifetimes.items[i];
        if (!is_listed(plan, i)) continue;
        char other[24];
        tide_text name = {0};
        snprintf(other, sizeof other, "NO%zu", i);
        add_identifier(&name, item->name, other);
        const tide_status st = make_unique(h, &name, err);
        const char *id = tide_text_str(&name);
        tide_text_addf(h->out, "#define %s_TENSOR_%s_OFFSET %" PRIu64 "%s /* ", h->upper, id, plan->offsets[i],
                       suffix(h));
        add_comment(h->out, item->name);
        tide_text_addf(h->out, " */\n#define %s_TENSOR_%s_BYTES %" PRIu64 "%s\n", h->upper, id, item->size_bytes,
                       suffix(h));
        tide_text_deinit(&name);
        TIDE_TRY(st);
    }
    return TIDE_OK;
}

/// A name that is too long for a string is an array of characters.
static void add_long_names(const header *h) {
    for (size_t i = 0; i < h->plan->lifetimes.n; i++) {
        const char *name = h->plan->lifetimes.items[i].name;
        if (!is_listed(h->plan, i) || !is_long(name)) continue;
        tide_text_addf(h->out, "\nstatic const char %s_name_%zu[] = {", h->lower, i);
        for (size_t k = 0; name[k] != '\0'; k++) {
            tide_text_add(h->out, k % 16 == 0 ? "\n    '" : " '");
            add_character(h->out, name[k]);
            tide_text_add(h->out, "',");
        }
        tide_text_add(h->out, " 0};\n");
    }
}

static void add_rows(const header *h) {
    const tide_memory_plan *plan = h->plan;
    for (size_t i = 0; i < plan->lifetimes.n; i++) {
        const tide_lifetime *item = &plan->lifetimes.items[i];
        if (!is_listed(plan, i)) continue;
        tide_text_add(h->out, "    {");
        if (is_long(item->name))
            tide_text_addf(h->out, "%s_name_%zu", h->lower, i);
        else
            add_string(h->out, item->name);
        tide_text_addf(h->out, ", %zuu, %" PRIu64 "%s, %" PRIu64 "%s, %" PRId64 "%s, %" PRId64 "%s},\n",
                       arena_of(plan, item), plan->offsets[i], suffix(h), item->size_bytes, suffix(h), item->begin_step,
                       suffix(h), item->end_step - 1, suffix(h));
    }
}

/// Without a tensor there is no table: C has no array of nothing.
static void add_table(const header *h) {
    const size_t n = count_listed(h->plan);
    const char *type = h->is_wide ? "uint64_t" : "uint32_t";
    tide_text_addf(h->out, "\n#define %s_N_TENSORS %zuu\n\n", h->upper, n);
    tide_text_addf(h->out,
                   "typedef struct %s_tensor {\n    const char *name;\n    uint32_t arena; /* index */\n"
                   "    %s offset, bytes;\n    %s first_step, last_step;\n} %s_tensor;\n",
                   h->lower, type, type, h->lower);
    if (n == 0) return;
    add_long_names(h);
    tide_text_addf(h->out,
                   "\n#if defined(__GNUC__)\n__attribute__((unused))\n#endif\n"
                   "static const %s_tensor %s_tensors[%s_N_TENSORS] = {\n",
                   h->lower, h->lower, h->upper);
    add_rows(h);
    tide_text_add(h->out, "};\n");
}

static tide_status add_all(header *h, const char *prefix, tide_error *err) {
    TIDE_TRY(make_prefix(h, prefix, err));
    add_head(h);
    TIDE_TRY(add_arenas(h, err));
    TIDE_TRY(add_macros(h, err));
    add_table(h);
    tide_text_addf(h->out, "\n#endif\n");
    return h->out->failed ? TIDE_NO_MEMORY(err, "for a header") : TIDE_OK;
}

tide_status tide_plan_to_c_header(const tide_memory_plan *plan, const char *prefix, tide_text *out, tide_error *err) {
    tide_text own = {0};
    header h = {.plan = plan, .out = &own, .is_wide = needs_64_bits(plan)};
    tide_status st = add_all(&h, prefix, err);
    if (st == TIDE_OK) tide_text_add_n(out, own.data, own.len);
    if (st == TIDE_OK && out->failed) st = TIDE_NO_MEMORY(err, "for a header");
    tide_strmap_deinit(&h.taken);
    tide_host_free(h.upper);
    tide_host_free(h.lower);
    tide_text_deinit(&own);
    return st;
}

bool tide_c_prefix_is_good(const char *prefix) {
    const size_t len = strlen(prefix);
    if (len == 0 || !isalpha((unsigned char)prefix[0]) || prefix[len - 1] == '_') return false;
    for (const char *c = prefix; *c != '\0'; c++) {
        const unsigned char u = (unsigned char)*c;
        if (u >= 0x80 || (!isalnum(u) && u != '_')) return false;
    }
    return strstr(prefix, "__") == NULL;
}
