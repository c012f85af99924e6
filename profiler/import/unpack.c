// SPDX-License-Identifier: MIT
//
// Packed files as streams of the C library. See unpack.h.
//
//     file --fread--> bytes [at, n) --zstd, zlib or lz4--> the buffer of the stream
#include "profiler/import/unpack.h"

#include <errno.h>
#include <inttypes.h>
#include <lz4frame.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"

enum { PACKED_BYTES = 1 << 17, STREAM_BYTES = 1 << 16 };

typedef enum packing { NOT_PACKED, ZSTD, GZIP, LZ4 } packing;

typedef struct tide__packed {
    tide__unpack *owner;
    FILE *in;
    packing packing;
    ZSTD_DStream *zstd; // each for its own packing alone
    z_stream gzip;
    LZ4F_dctx *lz4;
    uint64_t n_before; // bytes of the file before `bytes`
    size_t n, at;
    bool is_between; // frames: here the file may end
    const char *fault;
    char *stream; // the buffer of owner->file
    unsigned char bytes[PACKED_BYTES];
} packed;

/// More bytes of the file. False: there are none; errno is 0 at its end.
static bool refill(packed *p) {
    p->n_before += p->n;
    p->at = 0;
    errno = 0;
    p->n = fread(p->bytes, 1, sizeof p->bytes, p->in);
    return p->n > 0;
}

/// Unpacks into `room`. @return bytes; 0: it needs more of the file
static size_t step_zstd(packed *p, char *room, size_t bytes) {
    ZSTD_inBuffer in = {.src = p->bytes, .size = p->n, .pos = p->at};
    ZSTD_outBuffer out = {.dst = room, .size = bytes};
    const size_t left = ZSTD_decompressStream(p->zstd, &out, &in);
    if (ZSTD_isError(left)) p->fault = ZSTD_getErrorName(left);
    TIDE_ASSERT(in.pos >= p->at && in.pos <= p->n && out.pos <= bytes);
    p->at = in.pos;
    p->is_between = left == 0;
    return out.pos;
}

static size_t step_gzip(packed *p, char *room, size_t bytes) {
    if (p->is_between) inflateReset(&p->gzip); // the next member
    p->gzip.next_in = p->bytes + p->at;
    p->gzip.avail_in = (unsigned)(p->n - p->at);
    p->gzip.next_out = (unsigned char *)room;
    p->gzip.avail_out = (unsigned)bytes;
    const int done = inflate(&p->gzip, Z_NO_FLUSH);
    TIDE_ASSERT(p->gzip.avail_in <= p->n - p->at && p->gzip.avail_out <= bytes);
    p->at = p->n - p->gzip.avail_in;
    p->is_between = done == Z_STREAM_END;
    if (done != Z_OK && done != Z_STREAM_END && done != Z_BUF_ERROR)
        p->fault = p->gzip.msg != NULL ? p->gzip.msg : "no memory, or no such data";
    return bytes - p->gzip.avail_out;
}

static size_t step_lz4(packed *p, char *room, size_t bytes) {
    size_t n_in = p->n - p->at, n_out = bytes;
    const size_t left = LZ4F_decompress(p->lz4, room, &n_out, p->bytes + p->at, &n_in, NULL);
    if (LZ4F_isError(left)) {
        p->fault = LZ4F_getErrorName(left);
        return 0;
    }
    TIDE_ASSERT(n_in <= p->n - p->at && n_out <= bytes);
    p->at += n_in;
    p->is_between = left == 0;
    return n_out;
}

static size_t step(packed *p, char *room, size_t bytes) {
    switch (p->packing) {
    case ZSTD:
        return step_zstd(p, room, bytes);
    case LZ4:
        return step_lz4(p, room, bytes);
    default:
        return step_gzip(p, room, bytes);
    }
}

/// The stream's reader.
static ssize_t read_packed(void *cookie, char *room, size_t bytes) {
    packed *p = cookie;
    if (bytes > UINT32_MAX) bytes = UINT32_MAX;
    size_t done = 0;
    while (done == 0 && p->fault == NULL) {
        const size_t was = p->at;
        // What the library still has inside comes without another byte, so it is asked before the file.
        if (p->at < p->n || !p->is_between) done = step(p, room, bytes);
        if (done == 0 && p->at < p->n && p->at == was && p->fault == NULL) p->fault = "it goes nowhere";
        if (done > 0 || p->fault != NULL || p->at < p->n || refill(p)) continue;
        if (errno != 0) return -1;
        p->owner->is_cut = !p->is_between;
        return 0;
    }
    if (p->fault != NULL && done == 0) errno = EBADMSG;
    return p->fault != NULL && done == 0 ? -1 : (ssize_t)done;
}

/// How a file is packed, by its first `n` bytes, at most four. Frames that hold no data are of zstd and of lz4.
static packing packing_of(const unsigned char *head, size_t n) {
    static const unsigned char zstd[] = {0x28, 0xB5, 0x2F, 0xFD}, lz4[] = {0x04, 0x22, 0x4D, 0x18};
    if (n >= 2 && head[0] == 0x1F && head[1] == 0x8B) return GZIP;
    if (n < sizeof zstd) return NOT_PACKED;
    if (memcmp(head, lz4, sizeof lz4) == 0) return LZ4;
    const bool is_skipped = (head[0] & 0xF0) == 0x50 && head[1] == 0x2A && head[2] == 0x4D && head[3] == 0x18;
    return is_skipped || memcmp(head, zstd, sizeof zstd) == 0 ? ZSTD : NOT_PACKED;
}

static void packed_free(packed *p) {
    if (p == NULL) return;
    if (p->zstd != NULL) ZSTD_freeDStream(p->zstd);
    if (p->lz4 != NULL) LZ4F_freeDecompressionContext(p->lz4);
    if (p->packing == GZIP) inflateEnd(&p->gzip);
    if (p->in != NULL) fclose(p->in);
    tide_host_free(p->stream);
    tide_host_free(p);
}

/// False: no memory.
static bool make_ready(packed *p) {
    enum { GZIP_ALONE = 16 + MAX_WBITS };
    switch (p->packing) {
    case ZSTD:
        return (p->zstd = ZSTD_createDStream()) != NULL;
    case LZ4:
        return !LZ4F_isError(LZ4F_createDecompressionContext(&p->lz4, LZ4F_VERSION));
    default:
        return inflateInit2(&p->gzip, GZIP_ALONE) == Z_OK;
    }
}

/// Takes `in` over, with what was read of it.
static tide_status open_packed(tide__unpack *u, FILE *in, const unsigned char *head, size_t n, tide_error *err) {
    packed *p;
    TIDE_TRY(TIDE_NEW(&p, 1, err, "to read '%s'", u->path));
    p->owner = u;
    p->n = n;
    memcpy(p->bytes, head, n);
    p->stream = tide_host_alloc(STREAM_BYTES);
    p->packing = packing_of(head, n);
    if (make_ready(p) && p->stream != NULL) u->file = fopencookie(p, "r", (cookie_io_functions_t){.read = read_packed});
    if (u->file == NULL) {
        packed_free(p);
        return TIDE_NO_MEMORY(err, "to read '%s'", u->path);
    }
    setvbuf(u->file, p->stream, _IOFBF, STREAM_BYTES);
    p->in = in;
    u->packed = p;
    return TIDE_OK;
}

tide_status tide__unpack_open(const char *path, tide__unpack *out, tide_error *err) {
    unsigned char head[4];
    *out = (tide__unpack){.path = path};
    FILE *in = fopen(path, "re");
    if (in == NULL)
        return TIDE_FAIL(err, tide_status_of_errno(errno, TIDE_ERR_IO), "cannot open '%s': %s", path, strerror(errno));
    const size_t n = fread(head, 1, sizeof head, in);
    if (packing_of(head, n) != NOT_PACKED) {
        const tide_status st = open_packed(out, in, head, n, err);
        if (st != TIDE_OK) fclose(in);
        return st;
    }
    rewind(in); // an error of reading is met again
    out->file = in;
    return TIDE_OK;
}

tide_status tide__unpack_fault(const tide__unpack *u, tide_status st, tide_error *err) {
    if (st == TIDE_OK || u->packed == NULL || u->packed->fault == NULL) return st;
    static const char *const names[] = {[ZSTD] = "zstd", [GZIP] = "gzip", [LZ4] = "lz4"};
    const packed *p = u->packed;
    st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot read '%s': what is packed in it (%s) is damaged: %s", u->path,
                   names[p->packing], p->fault);
    tide_error_where(err, "%s: byte %" PRIu64, u->path, p->n_before + p->at);
    return st;
}

void tide__unpack_close(tide__unpack *u) {
    if (u->file != NULL) fclose(u->file);
    packed_free(u->packed);
    *u = (tide__unpack){0};
}
