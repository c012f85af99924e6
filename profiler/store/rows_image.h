// SPDX-License-Identifier: MIT
//
// rows_image: rows as pages of an SQLite database in memory, made by hand. INSERT INTO main.t SELECT * FROM image.t
// then moves whole records: no column is computed, converted, checked and encoded one by one, which is two thirds of
// what a row takes. The format is the public one of SQLite's files (sqlite.org/fileformat2.html). Private to
// profiler/store/.
//
//     page 1            page 2: the table's root     pages 3, 4, ...
//     [ head, schema ]  [ -> 3 | -> 4 | ... ]        [ record record ... ] [ record record ... ]
//
// The schema is attached once and its pages are written anew for each batch. SQLite maps them, it does not copy them:
// that is tried out at open. Should it nevertheless have kept one of an earlier batch, it meets numbers that are in the
// table, and the INSERT fails.
#ifndef TIDE_PROFILER_STORE_ROWS_IMAGE_H
#define TIDE_PROFILER_STORE_ROWS_IMAGE_H

#include <string.h>

#include "profiler/store/sql.h"

enum {
    TIDE__IMAGE_ROWS = 4096,  ///< of a batch
    TIDE__RECORD_BYTES = 192, ///< room for a record of up to 18 columns, and for a write beyond its end
};

/// A record in the making: the values of a row behind its number, which SQLite keeps outside as the row's key.
typedef struct tide__record {
    uint8_t *type, *data;
    uint8_t bytes[TIDE__RECORD_BYTES];
} tide__record;

/// `n_columns` < 127: all of the table, the key among them; it comes first and takes no room.
static inline void tide__record_begin(tide__record *r, int n_columns) {
    r->bytes[0] = (uint8_t)(n_columns + 1); // of the head
    r->bytes[1] = 0;
    r->type = &r->bytes[2];
    r->data = &r->bytes[n_columns + 1];
}
static inline void tide__record_null(tide__record *r) { *r->type++ = 0; }
/// In as few bytes as it needs: 0, 1, 2, 3, 4, 6 or 8.
static inline void tide__record_int(tide__record *r, int64_t value) {
    if ((uint64_t)value <= 1) {
        *r->type++ = (uint8_t)(8 + value);
        return;
    }
    static const uint8_t types[8] = {1, 2, 3, 4, 5, 5, 6, 6}, lengths[8] = {1, 2, 3, 4, 6, 6, 8, 8};
    const uint64_t magnitude = (uint64_t)(value ^ (value >> 63));
    const unsigned n_bits = magnitude != 0 ? 65 - (unsigned)__builtin_clzll(magnitude) : 1; // with the sign
    const unsigned i = (n_bits - 1) / 8, length = lengths[i];
    const uint64_t shifted = (uint64_t)value << (64 - 8 * length);
    *r->type++ = types[i];
    uint8_t *out = r->data;
    // Byte by byte for the compiler, which makes one swap and one store of it.
    out[0] = (uint8_t)(shifted >> 56);
    out[1] = (uint8_t)(shifted >> 48);
    out[2] = (uint8_t)(shifted >> 40);
    out[3] = (uint8_t)(shifted >> 32);
    out[4] = (uint8_t)(shifted >> 24);
    out[5] = (uint8_t)(shifted >> 16);
    out[6] = (uint8_t)(shifted >> 8);
    out[7] = (uint8_t)shifted;
    r->data = out + length;
}

typedef struct tide__rows_image tide__rows_image;

/// For rows of `table`, which is one of schema.h, in schema main of `s`. `s` is borrowed until close. Where this
/// SQLite, or this connection, cannot have it: an error, and nothing is changed.
tide_status tide__rows_image_open(const tide__sql *s, const char *table, tide__rows_image **out,
                                  tide_error *err) TIDE_NODISCARD;
/// Takes NULL.
void tide__rows_image_close(tide__rows_image *image);
/// A new batch.
void tide__rows_image_clear(tide__rows_image *image);
/// One row more; at most TIDE__IMAGE_ROWS of a batch.
void tide__rows_image_add(tide__rows_image *image, int64_t id, const tide__record *r);
/// The batch (not an empty one) into the table. @return SQLite's code: SQLITE_CONSTRAINT when one of the numbers is in
/// the table, which is as it was then
int tide__rows_image_insert(tide__rows_image *image);

#endif
