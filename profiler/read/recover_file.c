// SPDX-License-Identifier: MIT
//
// Which file a damaged trace is read from. See recover.h. The trace itself is never written to: what must be changed is
// changed in a copy.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/host_alloc.h"
#include "core/base/output.h"
#include "profiler/read/recover.h"

enum { PAGE_BYTES = 8192, COPY_BYTES = 1 << 20, MAX_SCHEMA_PAGES = 64 };

// ---- copies ----

static tide_status copy_failed(const char *to, int why, tide_error *err) {
    return tide_output_failed("write", to, why, err);
}

/// Bytes [begin, end) at the same place.
static int copy_range(int from, int to, off_t begin, off_t end, char *buffer) {
    while (begin < end) {
        const size_t want = end - begin < COPY_BYTES ? (size_t)(end - begin) : COPY_BYTES;
        const ssize_t n = pread(from, buffer, want, begin);
        if (n < 0) return errno;
        if (n == 0) return 0; // cut while it was read
        for (ssize_t done = 0; done < n;) {
            const ssize_t k = pwrite(to, buffer + done, (size_t)(n - done), begin + done);
            if (k < 0) return errno;
            done += k;
        }
        begin += n;
    }
    return 0;
}

/// A file may claim to be larger than the disk: where nothing was written, nothing is copied.
static int copy_open(int from, int to) {
    struct stat info;
    if (fstat(from, &info) != 0) return errno;
    if (ftruncate(to, info.st_size) != 0) return errno;
    char *buffer = tide_host_alloc(COPY_BYTES);
    if (buffer == NULL) return ENOMEM;
    int why = 0;
    for (off_t at = 0; why == 0 && at < info.st_size;) {
        off_t begin = lseek(from, at, SEEK_DATA), end;
        if (begin < 0 && errno == ENXIO) break;
        if (begin < 0) begin = at; // a file system without holes
        end = lseek(from, begin, SEEK_HOLE);
        if (end <= begin) end = info.st_size;
        why = copy_range(from, to, begin, end, buffer);
        at = end;
    }
    tide_host_free(buffer);
    return why;
}

tide_status tide__copy_file(const char *from, const char *to, tide_error *err) {
    const int in = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (in < 0) return TIDE_FAIL(err, TIDE_ERR_IO, "cannot open '%s': %s", from, strerror(errno));
    const int out = open(to, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int why = out < 0 ? errno : copy_open(in, out);
    close(in);
    if (out >= 0 && close(out) != 0 && why == 0) why = errno;
    if (why == 0) return TIDE_OK;
    if (out >= 0) unlink(to);
    return why == ENOMEM ? TIDE_NO_MEMORY(err, "to copy '%s'", from) : copy_failed(to, why, err);
}

static char *joined(const char *a, const char *b) {
    tide_text name = {0};
    tide_text_addf(&name, "%s%s", a, b);
    if (!name.failed) return name.data;
    tide_text_deinit(&name);
    return NULL;
}

// ---- logs ----

/// SQLite applies the log beside the copy, as far as that is whole.
static void apply_log(const char *file) {
    char *name = tide__sql_file_name(file);
    sqlite3 *db = NULL;
    if (name != NULL && sqlite3_open_v2(name, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK) {
        sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
        sqlite3_exec(db, "SELECT 1 FROM sqlite_schema", NULL, NULL, NULL);
        sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    }
    sqlite3_close(db);
    tide_host_free(name);
}

/// Copy the log that ends in `ending`, when there is one. *has: there is.
static tide_status copy_log(const char *path, const char *copy, const char *ending, bool *has, tide_error *err) {
    char *from = joined(path, ending), *to = joined(copy, ending);
    tide_status st = from != NULL && to != NULL ? TIDE_OK : TIDE_NO_MEMORY(err, "to recover '%s'", path);
    struct stat info;
    const bool is_there = st == TIDE_OK && stat(from, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0;
    if (is_there) st = tide__copy_file(from, to, err);
    *has = *has || is_there;
    tide_host_free(from);
    tide_host_free(to);
    return st;
}

static bool has_log(const char *path, const char *ending) {
    char *name = joined(path, ending);
    struct stat info;
    const bool has = name == NULL || (stat(name, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0);
    tide_host_free(name);
    return has; // without memory: look again where that is an error
}

// ---- which file is read ----

static tide_status make_copy(tide__readable *p, const char *path, const char *beside, tide_error *err) {
    char *name = joined(beside, p->file != NULL ? ".copy-2" : ".copy");
    if (name == NULL) return TIDE_NO_MEMORY(err, "to recover '%s'", path);
    const tide_status st = tide__copy_file(p->file != NULL ? p->file : path, name, err);
    if (st != TIDE_OK) {
        tide_host_free(name);
        return st;
    }
    tide__readable_close(p);
    p->file = name;
    p->is_copy = true;
    return TIDE_OK;
}

static tide_status check_regular(const char *path, tide_error *err) {
    struct stat info;
    if (stat(path, &info) != 0) return TIDE_FAIL(err, TIDE_ERR_IO, "cannot open '%s': %s", path, strerror(errno));
    if (S_ISREG(info.st_mode)) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_IO, "cannot open '%s': it is %s", path,
                     S_ISDIR(info.st_mode) ? "a directory" : "not a regular file");
}

tide_status tide__readable_open(tide__readable *p, const char *path, const char *beside, tide_error *err) {
    *p = (tide__readable){0};
    TIDE_TRY(check_regular(path, err));
    if (!has_log(path, "-wal") && !has_log(path, "-journal"))
        return TIDE_COPY_TEXT(&p->file, path, err, "to recover '%s'", path);
    TIDE_TRY(make_copy(p, path, beside, err));
    bool has = false;
    tide_status st = copy_log(path, p->file, "-wal", &has, err);
    // A journal that names a further file would have SQLite take that away.
    if (st == TIDE_OK && !tide__sql_journal_names_file(path)) st = copy_log(path, p->file, "-journal", &has, err);
    if (st == TIDE_OK && has) apply_log(p->file);
    if (st != TIDE_OK) tide__readable_close(p);
    return st;
}

void tide__readable_close(tide__readable *p) {
    if (p->is_copy) tide__new_trace_remove(p->file);
    tide_host_free(p->file);
    *p = (tide__readable){0};
}

// ---- the first pages ----
//
//     page 1   head of the file (100 bytes), then the root of the list of tables: its pages are the same in every
//     page k   trace of one version, since the tables are always made in the same order

typedef struct repair {
    int from, to; // an empty trace, the copy
    uint8_t page[PAGE_BYTES];
    uint32_t pages[MAX_SCHEMA_PAGES];
    size_t n_pages;
} repair;

static uint32_t big_endian(const uint8_t *p, int n) {
    uint32_t v = 0;
    for (int i = 0; i < n; i++) v = v << 8 | p[i];
    return v;
}

static void put_big_endian(uint8_t *p, uint32_t v) {
    for (int i = 3; i >= 0; i--, v >>= 8) p[i] = (uint8_t)v;
}

static bool read_page(repair *m, uint32_t number) {
    return number > 0 && pread(m->from, m->page, PAGE_BYTES, (off_t)(number - 1) * PAGE_BYTES) == PAGE_BYTES;
}

/// Pages of the list of tables of an empty trace, the root first. The list is two levels deep at most.
static bool find_schema_pages(repair *m) {
    enum { INTERIOR = 5, LEAF = 13, FILE_HEAD = 100, LEAF_HEAD = 8, INTERIOR_HEAD = 12 };
    if (!read_page(m, 1)) return false;
    const uint8_t *head = m->page + FILE_HEAD;
    m->pages[m->n_pages++] = 1;
    if (head[0] == LEAF) return true;
    const size_t n = big_endian(head + 3, 2);
    if (head[0] != INTERIOR || n + 2 > MAX_SCHEMA_PAGES) return false;
    for (size_t i = 0; i < n; i++) {
        const size_t at = big_endian(head + INTERIOR_HEAD + 2 * i, 2);
        if (at + 4 > PAGE_BYTES) return false;
        m->pages[m->n_pages++] = big_endian(m->page + at, 4);
    }
    m->pages[m->n_pages++] = big_endian(head + LEAF_HEAD, 4);
    return true;
}

/// Source: https://www.sqlite.org/fileformat2.html, 1.3: 18 and 19 journal modes, 24 change counter, 28 pages, 32 and
/// 36 free pages, 92 the counter for which the number of pages holds.
static void repair_head(repair *m, uint64_t file_bytes) {
    m->page[18] = m->page[19] = 1; // no log
    put_big_endian(m->page + 28, (uint32_t)(file_bytes / PAGE_BYTES));
    put_big_endian(m->page + 32, 0);
    put_big_endian(m->page + 36, 0);
    memcpy(m->page + 92, m->page + 24, 4);
}

static int copy_schema_pages(repair *m, uint64_t file_bytes) {
    if (!find_schema_pages(m)) return EINVAL;
    for (size_t i = 0; i < m->n_pages; i++) {
        if (!read_page(m, m->pages[i])) return EINVAL;
        if (i == 0) repair_head(m, file_bytes);
        errno = EIO;
        if (pwrite(m->to, m->page, PAGE_BYTES, (off_t)(m->pages[i] - 1) * PAGE_BYTES) != PAGE_BYTES) return errno;
    }
    return 0;
}

static tide_status repair_copy(const char *copy, const char *empty, const char *path, tide_error *err) {
    repair *m;
    TIDE_TRY(TIDE_NEW(&m, 1, err, "to recover '%s'", path));
    m->from = open(empty, O_RDONLY | O_CLOEXEC);
    m->to = open(copy, O_RDWR | O_CLOEXEC);
    struct stat info;
    int why = m->from < 0 || m->to < 0 || fstat(m->to, &info) != 0 ? errno : 0;
    if (why == 0) why = copy_schema_pages(m, (uint64_t)info.st_size);
    if (m->from >= 0) close(m->from);
    if (m->to >= 0) close(m->to);
    tide_host_free(m);
    return why == 0 ? TIDE_OK : copy_failed(copy, why, err);
}

tide_status tide__readable_repair(tide__readable *p, const char *path, const char *beside, tide_error *err) {
    if (!p->is_copy) TIDE_TRY(make_copy(p, path, beside, err));
    char *empty = joined(beside, ".empty");
    if (empty == NULL) return TIDE_NO_MEMORY(err, "to recover '%s'", path);
    tide_status st = tide__store_fill(empty, path, err);
    if (st == TIDE_OK) st = repair_copy(p->file, empty, path, err);
    tide__new_trace_remove(empty);
    tide_host_free(empty);
    return st;
}
