// SPDX-License-Identifier: MIT
//
// Text: a string that grows, byte counts for people, and reading of files (writing: output.h).
#ifndef TIDE_CORE_BASE_TEXT_H
#define TIDE_CORE_BASE_TEXT_H

#include <stdint.h>

#include "core/base/assert.h"
#include "core/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A string that grows. Zero-initialise, then append; a failed append sets `failed` and later ones do nothing, so
/// that a writer may check once at its end. `data` is always NUL-terminated once anything was appended.
typedef struct tide_text {
    char *data; ///< owned; NULL while empty
    size_t len;
    size_t cap;
    bool failed; ///< an append ran out of memory: the content is cut
} tide_text;

void tide_text_add(tide_text *t, const char *text);
void tide_text_add_n(tide_text *t, const char *bytes, size_t n);
void tide_text_addf(tide_text *t, const char *fmt, ...) TIDE_PRINTF(2, 3);
void tide_text_deinit(tide_text *t);
/// The string, never NULL ("" while empty); borrowed until the next append.
const char *tide_text_str(const tide_text *t);

/// "512 B", "1.50 KiB", "3.25 MiB", "2.00 GiB" into `buf`; returns `buf`. 24 bytes always suffice.
char *tide_format_bytes(uint64_t bytes, char *buf, size_t buf_bytes);
/// "512 ns", "12.3 us", "4.506 ms", "1.5 s" into `buf`, rounded to four digits (seconds: five); returns `buf`. `us` is
/// how microseconds are written: "us", or with the Greek letter. 24 bytes suffice.
char *tide_format_ns(uint64_t ns, const char *us, char *buf, size_t buf_bytes);
/// The same of a moment among others that are at most `span_ns` apart: with as many digits more as are needed to show a
/// thousandth of that. 32 bytes suffice.
char *tide_format_moment_ns(uint64_t ns, uint64_t span_ns, const char *us, char *buf, size_t buf_bytes);
/**
 * Read a size as people write it: "4096", "64KiB", "1.5 GiB", "10MB" (K/M/G/T: decimal with B, binary with iB;
 * a bare K/M/G/T is binary). Exact up to 2^64 - 1, in every locale; a part of a byte is rounded to the nearest.
 *
 * @return TIDE_OK; TIDE_ERR_INVALID for anything else, negative or not fitting into 64 bits
 */
tide_status tide_parse_bytes(const char *text, uint64_t *out, tide_error *err) TIDE_NODISCARD;

/**
 * Read a whole file ("-" is standard input) into host memory, NUL-terminated one byte past `len`.
 *
 * @param max_bytes  refuse anything longer; 0: no limit
 * @param data  out, owned by the caller (tide_host_free)
 * @return TIDE_OK; TIDE_ERR_IO with the path and the system's words; TIDE_ERR_NOMEM; TIDE_ERR_BAD_INPUT if longer
 */
tide_status tide_read_file(const char *path, size_t max_bytes, char **data, size_t *len,
                           tide_error *err) TIDE_NODISCARD;

/// Nanoseconds of CLOCK_MONOTONIC.
uint64_t tide_now_ns(void);
/// The name of a file without folders and ending, owned: "net" of "a/net.v2.csv" is "net.v2". NULL: no memory.
char *tide_path_stem(const char *path);

/// A small, seeded generator (splitmix64) for tests, fills and initialisers: same seed, same numbers, everywhere.
typedef struct tide_rng {
    uint64_t state;
} tide_rng;
static inline uint64_t tide_rng_u64(tide_rng *rng) {
    uint64_t z = (rng->state += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}
/// Uniform in [0, 1).
static inline double tide_rng_f64(tide_rng *rng) { return (double)(tide_rng_u64(rng) >> 11) * 0x1.0p-53; }
/// Uniform in [0, n); n > 0.
static inline uint64_t tide_rng_below(tide_rng *rng, uint64_t n) {
    TIDE_ASSERT(n > 0);
    return tide_rng_u64(rng) % n;
}

#ifdef __cplusplus
}
#endif
#endif
