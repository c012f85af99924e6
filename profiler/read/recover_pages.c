// SPDX-License-Identifier: MIT
//
// Events out of single pages of a file: those that cannot be reached from the root of their table. See recover.h.
//
//     page of a table:  [13][..][n cells: 2][..][..] [cell pointers: 2 each] ... free ... [cells]
//     cell:             [bytes of the record: varint][row number: varint][record, or its begin][next page: 4]
//     record:           [bytes of the header: varint][type of each column: varint ...][columns ...]
//
// Source: https://www.sqlite.org/fileformat2.html, 1.6 and 2.1. A row is recognised by its columns: 15 integers are an
// event, three integers and a blob that ends in its own checksum a chunk. Nothing else in a trace looks like that.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "core/base/host_alloc.h"
#include "profiler/read/recover.h"
#include "profiler/store/chunk.h"

enum {
    PAGE_BYTES = 8192, ///< of every trace, unless a program rewrote the file
    LEAF_PAGE = 13,
    PAGE_HEAD = 8,
    N_CHUNK_COLUMNS = 5,
};

typedef struct page_reader {
    tide__holes *h;
    int fd;
    size_t page_bytes;
    uint64_t n_pages;
    uint8_t *page;       ///< [page_bytes]
    uint8_t *record;     ///< [TIDE__CHUNK_MAX_BYTES + 64] of a chunk that goes over several pages
    tide__event *events; ///< [TIDE__CHUNK_MAX_EVENTS]
} page_reader;

static uint32_t big_endian(const uint8_t *p, int n) {
    uint32_t v = 0;
    for (int i = 0; i < n; i++) v = v << 8 | p[i];
    return v;
}

/// At most 9 bytes, the last one whole. @return bytes taken; 0: it does not end before `end`
static size_t varint(const uint8_t *p, const uint8_t *end, uint64_t *out) {
    uint64_t v = 0;
    for (size_t i = 0; i < 9; i++) {
        if (p + i >= end) return 0;
        if (i == 8) {
            *out = v << 8 | p[i];
            return 9;
        }
        v = v << 7 | (p[i] & 0x7f);
        if ((p[i] & 0x80) == 0) {
            *out = v;
            return i + 1;
        }
    }
    return 0;
}

// ---- records ----

typedef struct column {
    uint64_t type; ///< 0 NULL; 1 to 6, 8, 9 integers; 12 and more: a blob or a text
    const uint8_t *bytes;
    size_t n_bytes;
} column;

static bool type_bytes(uint64_t type, uint64_t *n) {
    static const uint8_t of_integers[] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0};
    if (type < sizeof of_integers) *n = of_integers[type];
    if (type >= 12) *n = (type - 12) / 2;
    return type < sizeof of_integers || type >= 12;
}

/// Columns of the record [at, end). @return their number; 0: it is none, or has more than `max`
static size_t split_record(const uint8_t *at, const uint8_t *end, column *columns, size_t max) {
    uint64_t head_bytes;
    const size_t taken = varint(at, end, &head_bytes);
    if (taken == 0 || head_bytes < taken || head_bytes > (uint64_t)(end - at)) return 0;
    const uint8_t *type = at + taken, *head_end = at + head_bytes, *body = head_end;
    size_t n = 0;
    while (type < head_end) {
        column *c = &columns[n];
        uint64_t n_bytes = 0;
        if (n == max) return 0;
        const size_t k = varint(type, head_end, &c->type);
        if (k == 0 || !type_bytes(c->type, &n_bytes) || n_bytes > (uint64_t)(end - body)) return 0;
        c->bytes = body;
        c->n_bytes = (size_t)n_bytes;
        body += n_bytes;
        type += k;
        n++;
    }
    return n;
}

static bool integer_of(const column *c, int64_t *out) {
    if (c->type == 8 || c->type == 9) {
        *out = (int64_t)c->type - 8;
        return true;
    }
    if (c->type < 1 || c->type > 6) return false;
    uint64_t v = (c->bytes[0] & 0x80) != 0 ? UINT64_MAX : 0; // the sign goes on to the left
    for (size_t i = 0; i < c->n_bytes; i++) v = v << 8 | c->bytes[i];
    memcpy(out, &v, sizeof *out);
    return true;
}

static bool event_of(const column *c, int64_t id, tide__event *e) {
    int64_t values[TIDE__N_EVENT_COLUMNS] = {id};
    bool is_null[TIDE__N_EVENT_COLUMNS] = {false};
    if (c[0].type != 0) return false; // the row's number stands for it
    for (int i = 1; i < TIDE__N_EVENT_COLUMNS; i++) {
        is_null[i] = c[i].type == 0;
        if (!is_null[i] && !integer_of(&c[i], &values[i])) return false;
    }
    return tide__damaged_event_of(values, is_null, e);
}

// ---- cells ----

/// Bytes of a record of `n` that lie on its own page.
static size_t local_bytes(const page_reader *r, uint64_t n) {
    const uint64_t usable = r->page_bytes, max = usable - 35;
    if (n <= max) return (size_t)n;
    const uint64_t min = (usable - 12) * 32 / 255 - 23;
    const uint64_t k = min + (n - min) % (usable - 4);
    return (size_t)(k <= max ? k : min);
}

/// The whole of a record that goes on in other pages: `n` bytes, of which `local` are at `at`. False: the chain breaks.
static bool gather(page_reader *r, const uint8_t *at, size_t local, uint64_t n) {
    if (n > TIDE__CHUNK_MAX_BYTES + 64) return false;
    memcpy(r->record, at, local);
    uint32_t next = big_endian(at + local, 4);
    for (size_t have = local; have < n;) {
        uint8_t head[4];
        const size_t room = r->page_bytes - sizeof head, take = n - have < room ? (size_t)(n - have) : room;
        const off_t offset = (off_t)((uint64_t)(next - 1) * r->page_bytes);
        if (next == 0 || next > r->n_pages || pread(r->fd, head, sizeof head, offset) != (ssize_t)sizeof head ||
            pread(r->fd, r->record + have, take, offset + (off_t)sizeof head) != (ssize_t)take)
            return false;
        have += take;
        next = big_endian(head, 4);
    }
    return true;
}

static tide_status take_chunk(page_reader *r, const column *c, int64_t first, tide_error *err) {
    size_t n;
    if (c[4].type < 12 || c[4].type % 2 != 0 || !tide__chunk_decode(c[4].bytes, c[4].n_bytes, r->events, &n))
        return TIDE_OK;
    if (n == 0 || r->events[0].id != first) return TIDE_OK;
    for (size_t i = 0; i < n; i++) TIDE_TRY(tide__holes_offer(r->h, &r->events[i], err));
    return TIDE_OK;
}

/// `room`: bytes of the page that no cell before it had.
static tide_status take_cell(page_reader *r, size_t offset, size_t *room, tide_error *err) {
    const uint8_t *end = r->page + r->page_bytes, *at = r->page + offset;
    uint64_t n_bytes, row;
    size_t k = varint(at, end, &n_bytes);
    if (k == 0) return TIDE_OK;
    at += k;
    k = varint(at, end, &row);
    if (k == 0 || row == 0 || row > TIDE__MAX_EVENT) return TIDE_OK;
    at += k;
    const size_t local = local_bytes(r, n_bytes);
    const bool is_whole = local == n_bytes;
    if (local + (is_whole ? 0 : 4) > (size_t)(end - at) || local > *room) return TIDE_OK;
    *room -= local; // cells that lie in each other would make a long work of a small file
    column columns[TIDE__N_EVENT_COLUMNS];
    if (is_whole) {
        const size_t n = split_record(at, at + local, columns, TIDE__N_EVENT_COLUMNS);
        tide__event e;
        if (n == TIDE__N_EVENT_COLUMNS && event_of(columns, (int64_t)row, &e)) return tide__holes_offer(r->h, &e, err);
        return n == N_CHUNK_COLUMNS ? take_chunk(r, columns, (int64_t)row, err) : TIDE_OK;
    }
    if (!tide__holes_meet(r->h, (int64_t)row, (int64_t)row + TIDE__CHUNK_MAX_EVENTS - 1) ||
        !gather(r, at, local, n_bytes))
        return TIDE_OK;
    const size_t n = split_record(r->record, r->record + n_bytes, columns, TIDE__N_EVENT_COLUMNS);
    return n == N_CHUNK_COLUMNS ? take_chunk(r, columns, (int64_t)row, err) : TIDE_OK;
}

// ---- pages ----

static tide_status take_page(page_reader *r, tide_error *err) {
    if (r->page[0] != LEAF_PAGE) return TIDE_OK;
    const size_t n_cells = big_endian(r->page + 3, 2);
    size_t room = r->page_bytes;
    for (size_t i = 0; i < n_cells && PAGE_HEAD + 2 * i + 2 <= r->page_bytes; i++) {
        const size_t offset = big_endian(r->page + PAGE_HEAD + 2 * i, 2);
        if (offset >= PAGE_HEAD && offset < r->page_bytes) TIDE_TRY(take_cell(r, offset, &room, err));
    }
    return TIDE_OK;
}

static tide_status take_pages(page_reader *r, tide_error *err) {
    off_t data = 0;                             // where something was written, at or behind the page
    for (uint64_t i = 1; i < r->n_pages; i++) { // the first one has the list of tables
        off_t offset = (off_t)(i * r->page_bytes);
        if (data < offset + (off_t)r->page_bytes) data = lseek(r->fd, offset, SEEK_DATA);
        if (data < 0 && errno == ENXIO) break;
        if (data < 0) data = offset; // a file system that cannot say
        if (data >= offset + (off_t)r->page_bytes) {
            i = (uint64_t)data / r->page_bytes;
            offset = (off_t)(i * r->page_bytes);
        }
        if (pread(r->fd, r->page, r->page_bytes, offset) != (ssize_t)r->page_bytes) continue;
        TIDE_TRY(take_page(r, err));
        if (r->h->one_is_enough && r->h->n_found > 0) break;
    }
    return TIDE_OK;
}

static size_t page_bytes_of(int fd) {
    uint8_t head[18];
    if (pread(fd, head, sizeof head, 0) != (ssize_t)sizeof head) return PAGE_BYTES;
    const uint32_t n = big_endian(head + 16, 2) == 1 ? 65536 : big_endian(head + 16, 2);
    return n >= 512 && (n & (n - 1)) == 0 && memcmp(head, "SQLite format 3", 16) == 0 ? n : PAGE_BYTES;
}

tide_status tide__recover_pages(tide__holes *h, const char *file, tide_error *err) {
    if (h->n_missing == 0) return TIDE_OK;
    page_reader r = {.h = h, .fd = open(file, O_RDONLY | O_CLOEXEC)};
    if (r.fd < 0) return TIDE_FAIL(err, TIDE_ERR_IO, "cannot read '%s': %s", h->in->path, strerror(errno));
    r.page_bytes = page_bytes_of(r.fd);
    const off_t size = lseek(r.fd, 0, SEEK_END);
    r.n_pages = size > 0 ? (uint64_t)size / r.page_bytes : 0;
    r.page = tide_host_alloc(r.page_bytes);
    r.record = tide_host_alloc(TIDE__CHUNK_MAX_BYTES + 64);
    r.events = tide_host_calloc(TIDE__CHUNK_MAX_EVENTS, sizeof *r.events);
    const bool good = r.page != NULL && r.record != NULL && r.events != NULL;
    const tide_status st = good ? take_pages(&r, err) : TIDE_NO_MEMORY(err, "to recover '%s'", h->in->path);
    tide_host_free(r.page);
    tide_host_free(r.record);
    tide_host_free(r.events);
    close(r.fd);
    return st;
}
