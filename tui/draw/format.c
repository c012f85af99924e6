// SPDX-License-Identifier: MIT
//
// Moments, amounts and shares in words. See format.h.
#include "tui/draw/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tui/state/axis.h"
#include "tui/state/keys.h"

// ---- moments ----

char *tide_tui_when(const tide_subject_facts *f, int64_t t, char *buf, size_t buf_bytes) {
    char word[TIDE_TUI_WORD];
    tide_tui_format_time(f, t, word, sizeof word);
    snprintf(buf, buf_bytes, "%s%s", f->axis == TIDE_AXIS_STEPS ? "step " : "", word);
    return buf;
}

const char *tide_tui_step_name(const tide_subject_facts *f, int64_t t) { return tide_subject_step_name_at(f, t); }

static char *when_with(const tide_subject_facts *f, int64_t t, const char *name, char *buf, size_t buf_bytes) {
    char word[TIDE_TUI_WORD], body[TIDE_TUI_WORD];
    tide_tui_when(f, t, word, sizeof word);
    if (name[0] != '\0') {
        tide_subject_body_at(f, t, body, sizeof body);
        snprintf(buf, buf_bytes, "%s (%s%s%s)", word, name, body[0] != '\0' ? ", " : "", body);
    } else {
        snprintf(buf, buf_bytes, "%s", word);
    }
    return buf;
}

char *tide_tui_when_named(const tide_subject_facts *f, int64_t t, char *buf, size_t buf_bytes) {
    return when_with(f, t, tide_tui_step_name(f, t), buf, buf_bytes);
}

char *tide_tui_when_in_step(const tide_subject_facts *f, int64_t t, char *buf, size_t buf_bytes) {
    return when_with(f, t, tide_subject_step_words(f, t), buf, buf_bytes);
}

// ---- amounts ----

char *tide_tui_bytes(uint64_t bytes, char *buf, size_t buf_bytes) {
    if (bytes == TIDE_UNKNOWN_BYTES) {
        snprintf(buf, buf_bytes, "unknown");
        return buf;
    }
    return tide_format_bytes(bytes, buf, buf_bytes);
}

char *tide_tui_exact(uint64_t n, char *buf, size_t buf_bytes) {
    char digits[24];
    const int len = snprintf(digits, sizeof digits, "%" PRIu64, n);
    size_t at = 0;
    for (int i = 0; i < len && at + 2 < buf_bytes; i++) {
        if (i > 0 && (len - i) % 3 == 0) buf[at++] = ',';
        buf[at++] = digits[i];
    }
    buf[at] = '\0';
    return buf;
}

char *tide_tui_change(uint64_t a, uint64_t b, char *buf, size_t buf_bytes) {
    char size[TIDE_TUI_WORD];
    if (a == TIDE_UNKNOWN_BYTES || b == TIDE_UNKNOWN_BYTES) {
        snprintf(buf, buf_bytes, "unknown");
        return buf;
    }
    snprintf(buf, buf_bytes, "%s%s",
             b > a   ? "+"
             : b < a ? "-"
                     : "",
             tide_format_bytes(b > a ? b - a : a - b, size, sizeof size));
    return buf;
}

char *tide_tui_percent(uint64_t part, uint64_t whole, char *buf, size_t buf_bytes) {
    if (whole == 0) {
        snprintf(buf, buf_bytes, "-");
    } else {
        snprintf(buf, buf_bytes, "%.1f %%", 100.0 * (double)part / (double)whole);
    }
    return buf;
}

char *tide_tui_change_percent(uint64_t a, uint64_t b, char *buf, size_t buf_bytes) {
    buf[0] = '\0';
    if (a == 0 || a == TIDE_UNKNOWN_BYTES || b == TIDE_UNKNOWN_BYTES) return buf;
    const double share = 100.0 * ((double)b - (double)a) / (double)a;
    snprintf(buf, buf_bytes, "%+.1f %%", a == b ? 0.0 : share);
    return buf;
}

int tide_tui_share_of(uint64_t part, uint64_t whole, int w) {
    if (whole == 0 || part == 0 || w <= 0) return 0;
    const int cells = (int)((double)part / (double)whole * (double)w + 0.5);
    return cells < 1 ? 1 : cells > w ? w : cells;
}

// ---- names ----

const char *tide_tui_item_word(const tide_subject_facts *f, size_t n) {
    if (f->is_trace) return n == 1 ? "block" : "blocks";
    return n == 1 ? "tensor" : "tensors";
}

const char *tide_tui_named(const char *name) { return name != NULL && name[0] != '\0' ? name : "(unnamed)"; }

const char *tide_tui_item_name(const tide_tui_scene *s, uint32_t item, char *buf, size_t buf_bytes) {
    const tide_items *items = s->state->a != NULL ? tide_subject_items(s->state->a) : NULL;
    if (items != NULL && item < items->n) return tide_tui_named(tide_items_site(items, item)->name);
    snprintf(buf, buf_bytes, "item %" PRIu32, item);
    return buf;
}

char *tide_tui_key_of(tide_tui_action action, char *buf, size_t buf_bytes) {
    const tide_tui_binding *b = tide_tui_binding_of(action);
    buf[0] = '\0';
    if (b == NULL || b->keys[0] == 0) return buf;
    return tide_tui_key_label(b->keys[0], buf, buf_bytes);
}

static bool is_one_of_several(const tide_pools *pools, size_t row) {
    for (size_t i = 0; i < pools->n; i++)
        if (i != row && pools->items[i].context == pools->items[row].context &&
            strcmp(pools->items[i].name, pools->items[row].name) == 0)
            return true;
    return false;
}

void tide_tui_say_pool(const tide_tui_scene *s, size_t row, char *buf, size_t buf_bytes) {
    const tide_pool *p = &s->pools->items[row];
    const bool several = is_one_of_several(s->pools, row);
    char context[24] = "";
    if (p->context > 0) snprintf(context, sizeof context, " #%" PRIu32, p->context);
    snprintf(buf, buf_bytes, "%s%s%s%s", tide_tui_named(p->name), context, several ? " " : "",
             several ? tide_memory_kind_name(p->kind) : "");
}
