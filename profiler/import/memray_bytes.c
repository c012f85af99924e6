// SPDX-License-Identifier: MIT
//
// The bytes of memray's captures. See memray.h.
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "profiler/import/memray.h"

enum { BLOCK_BYTES = 1 << 16, MAX_TEXT = 1 << 22, MAX_DATA = 1 << 24 };

static bool refill(tide__memray_bytes *b) {
    if (b->block == NULL) b->block = tide_host_alloc(BLOCK_BYTES);
    b->no_memory = b->block == NULL;
    b->at = 0;
    b->n = b->no_memory ? 0 : fread(b->block, 1, BLOCK_BYTES, b->in->file);
    b->has_ended = b->n == 0;
    return b->n > 0;
}

bool tide__memray_byte(tide__memray_bytes *b, unsigned char *out) {
    *out = 0;
    if (b->zeros > 0) {
        b->zeros--;
    } else {
        if (b->at == b->n && !refill(b)) return false;
        *out = b->block[b->at++];
        uint64_t behind = 0; // further zeros
        while (*out == 0) {
            while (b->at < b->n && b->block[b->at] == 0) b->at++, behind++;
            if (b->at < b->n) break;
            if (!refill(b)) return false; // nothing but zeros up to the end
        }
        b->zeros = behind;
    }
    b->position++;
    return true;
}

bool tide__memray_fixed(tide__memray_bytes *b, size_t n, uint64_t *out) {
    *out = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char c;
        if (!tide__memray_byte(b, &c)) return false;
        *out |= (uint64_t)c << 8 * i;
    }
    return true;
}

bool tide__memray_varint(tide__memray_bytes *b, uint64_t *out) {
    *out = 0;
    for (unsigned shift = 0;; shift += 7) {
        unsigned char c;
        if (!tide__memray_byte(b, &c)) return false;
        if (shift == 63 && c > 1) {
            b->fault = "a number of more than 64 bits";
            return false;
        }
        *out |= (uint64_t)(c & 0x7f) << shift;
        if (c < 0x80) return true;
    }
}

bool tide__memray_signed(tide__memray_bytes *b, int64_t *out) {
    uint64_t v;
    if (!tide__memray_varint(b, &v)) return false;
    *out = (int64_t)(v >> 1 ^ (~(v & 1) + 1));
    return true;
}

bool tide__memray_delta(tide__memray_bytes *b, uint64_t *last) {
    int64_t d;
    if (!tide__memray_signed(b, &d)) return false;
    *last += (uint64_t)d;
    return true;
}

static bool make_room(tide__memray_bytes *b, size_t n) {
    b->no_memory = tide_host_grow(&b->text, &b->cap_text, n, 1) != TIDE_OK;
    return !b->no_memory;
}

bool tide__memray_text(tide__memray_bytes *b, bool behind) {
    if (!behind) b->n_text = 0;
    for (size_t n = 0; n < MAX_TEXT; n++) {
        unsigned char c;
        if (!tide__memray_byte(b, &c) || !make_room(b, b->n_text + 1)) return false;
        b->text[b->n_text++] = (char)c;
        if (c == 0) return true;
    }
    b->fault = "a text of more than 4 MiB";
    return false;
}

bool tide__memray_data(tide__memray_bytes *b, uint64_t n) {
    if (n > MAX_DATA) {
        b->fault = "a table of more than 16 MiB";
        return false;
    }
    if (!make_room(b, b->n_text + 1)) return false;
    for (uint64_t i = 0; i < n; i++) {
        unsigned char c;
        if (!tide__memray_byte(b, &c) || !make_room(b, b->n_text + 1)) return false;
        b->text[b->n_text++] = (char)c;
    }
    return true;
}

tide_status tide__memray_bad(const tide__memray_bytes *b, tide_error *err, const char *what) {
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot read '%s': %s", b->path, what);
    tide_error_where(err, "%s: byte %" PRIu64 "%s", b->path, b->position,
                     b->in->packed != NULL ? " of what is packed in it" : "");
    return st;
}

tide_status tide__memray_stopped(tide__memray_bytes *b, tide_error *err) {
    if (b->no_memory) return TIDE_NO_MEMORY(err, "to read '%s'", b->path);
    if (b->fault != NULL) return tide__memray_bad(b, err, b->fault);
    if (ferror(b->in->file)) return TIDE_FAIL(err, TIDE_ERR_IO, "cannot read '%s': %s", b->path, strerror(errno));
    return TIDE_OK;
}

void tide__memray_bytes_deinit(tide__memray_bytes *b) {
    tide_host_free(b->block);
    tide_host_free(b->text);
}
