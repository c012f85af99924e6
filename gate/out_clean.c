// SPDX-License-Identifier: MIT
//
// Foreign text made showable, and the escapes of each format. See out_internal.h.
#include <stdio.h>
#include <string.h>

#include "core/base/utf8.h"
#include "gate/out_internal.h"

static void add_char(tide_text *out, const char *at, size_t n, uint32_t cp) {
    if (cp == '\n' || cp == '\r' || cp == '\t')
        tide_text_add(out, cp == '\n' ? "\\n" : cp == '\r' ? "\\r" : "\\t");
    else if (cp == TIDE_UTF8_BAD)
        tide_text_addf(out, "\\x%02x", (unsigned char)at[0]);
    else if (tide_utf8_is_control(cp))
        tide_text_addf(out, "\\x%02x", (unsigned)cp);
    else if (tide_utf8_is_unsafe(cp))
        tide_text_addf(out, cp > 0xFFFF ? "\\U%08x" : "\\u%04x", (unsigned)cp);
    else
        tide_text_add_n(out, at, n);
}

void tide__gate_clean(tide_text *out, const char *text, size_t max_chars) {
    size_t total = 0;
    uint32_t cp;
    for (const char *p = text; *p != '\0'; total++) p += tide_utf8_decode(p, &cp);
    const bool cut = total > max_chars;
    const size_t head = cut ? max_chars - max_chars / 3 : total, tail = cut ? max_chars / 3 : 0;
    size_t i = 0;
    for (const char *p = text; *p != '\0'; i++) {
        const size_t n = tide_utf8_decode(p, &cp);
        if (cut && i == head) tide_text_addf(out, "…(%zu more)…", total - head - tail);
        if (i < head || i >= total - tail) add_char(out, p, n, cp);
        p += n;
    }
}

/// `plain` with every occurrence of `what` replaced.
static void add_replaced(tide_text *out, const char *plain, const char *what, const char *with) {
    for (const char *at; (at = strstr(plain, what)) != NULL; plain = at + strlen(what)) {
        tide_text_add_n(out, plain, (size_t)(at - plain));
        tide_text_add(out, with);
    }
    tide_text_add(out, plain);
}

// "###" leaves one '#' beside the replacement, which is none of a pair any more.
void tide__gate_for_log(tide_text *out, const char *plain) { add_replaced(out, plain, "##", "#\\x23"); }

void tide__gate_for_sarif(tide_text *out, const char *plain) { add_replaced(out, plain, "](", "]\\x28"); }

/// `plain` with each byte of `bytes` replaced by the text at the same place.
static void add_mapped(tide_text *out, const char *plain, const char *bytes, const char *const *texts) {
    for (;;) {
        const size_t n = strcspn(plain, bytes);
        tide_text_add_n(out, plain, n);
        if (plain[n] == '\0') return;
        tide_text_add(out, texts[strchr(bytes, plain[n]) - bytes]);
        plain += n + 1;
    }
}

void tide__gate_for_xml(tide_text *out, const char *plain) {
    static const char *const references[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    add_mapped(out, plain, "&<>\"'", references);
}

void tide__gate_for_code(tide_text *out, const char *plain) {
    static const char *const shown[] = {"\\x60", "\\x7c"};
    add_mapped(out, plain, "`|", shown);
}

void tide__gate_for_command(tide_text *out, const char *plain, bool is_property) {
    static const char *const escapes[] = {"%25", "%0D", "%0A", "%3A", "%2C"};
    tide_text log = {0};
    tide__gate_for_log(&log, plain);
    add_mapped(out, tide_text_str(&log), is_property ? "%\r\n:," : "%\r\n", escapes);
    if (log.failed) out->failed = true;
    tide_text_deinit(&log);
}

void tide__gate_for_uri(tide_text *out, const char *path) {
    static const char kept[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
    if (path[0] == '/') tide_text_add(out, "file://");
    for (; *path != '\0'; path++) {
        if (strchr(kept, *path) != NULL)
            tide_text_add_n(out, path, 1);
        else
            tide_text_addf(out, "%%%02X", (unsigned char)*path);
    }
}

void tide__gate_flush(tide_text *out, tide_text *plain, void (*escape)(tide_text *, const char *)) {
    escape(out, tide_text_str(plain));
    if (plain->failed) out->failed = true;
    tide_text_deinit(plain);
    *plain = (tide_text){0};
}
