// SPDX-License-Identifier: MIT
//
// Names of status codes, and filling the error context. See status.h.
#include "core/base/status.h"

#include <stdio.h>
#include <string.h>

#include "core/base/assert.h"

const char *tide_status_name(tide_status st) {
    switch (st) {
#define XX(name, value, text)                                                                                          \
    case TIDE_##name:                                                                                                  \
        return #name;
        TIDE_STATUS_MAP(XX)
#undef XX
    }
    return "ERR_?";
}

const char *tide_status_text(tide_status st) {
    switch (st) {
#define XX(name, value, text)                                                                                          \
    case TIDE_##name:                                                                                                  \
        return text;
        TIDE_STATUS_MAP(XX)
#undef XX
    }
    return "status outside the list";
}

tide_status tide_fail_at(tide_error *err, tide_status st, const char *file, int line, const char *fmt, ...) {
    TIDE_ASSERT(st != TIDE_OK);
    if (err == NULL) return st;
    tide_error fresh = {.status = st, .file = file, .line = line};
    va_list ap;
    va_start(ap, fmt);
    // Formatted into `fresh`, so that an argument may point into *err itself.
    vsnprintf(fresh.msg, sizeof fresh.msg, fmt, ap);
    va_end(ap);
    *err = fresh;
    return st;
}

void tide_error_where(tide_error *err, const char *fmt, ...) {
    if (err == NULL) return;
    char text[sizeof err->where];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    memcpy(err->where, text, sizeof text);
}

void tide_error_note(tide_error *err, const char *fmt, ...) {
    if (err == NULL) return;
    char text[sizeof err->note];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    memcpy(err->note, text, sizeof text);
}

void tide_error_hint(tide_error *err, const char *fmt, ...) {
    if (err == NULL) return;
    char text[sizeof err->hint];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    memcpy(err->hint, text, sizeof text);
}

void tide_error_prefix(tide_error *err, const char *fmt, ...) {
    if (err == NULL) return;
    char prefix[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(prefix, sizeof prefix, fmt, ap);
    va_end(ap);
    char text[sizeof err->msg + sizeof prefix + 2];
    snprintf(text, sizeof text, "%s: %s", prefix, err->msg);
    text[sizeof err->msg - 1] = '\0';
    memcpy(err->msg, text, sizeof err->msg);
}

void tide_error_clear(tide_error *err) {
    if (err != NULL) *err = (tide_error)TIDE_ERROR_INIT;
}
