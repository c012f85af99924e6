// SPDX-License-Identifier: MIT
//
// Changes of a file that are no accident: what a reader of a database follows, counts with, or trusts.
#ifndef TIDE_TESTS_PROFILER_FILE_DAMAGE_H
#define TIDE_TESTS_PROFILER_FILE_DAMAGE_H

#include <stdint.h>
#include <string.h>

#include "core/base/text.h"

enum { PAGE = 8192 };

static inline void put_u32(char *data, size_t at, uint32_t v) {
    for (int i = 3; i >= 0; i--, v >>= 8) data[at + (size_t)i] = (char)v;
}

/// One change of `data`, which may become shorter.
static inline void mutate(tide_rng *rng, char *data, size_t *len) {
    static const uint64_t numbers[] = {0,         1,          2,          0x7f,       0x80,       0xff,
                                       0xffff,    0x7fffffff, 0x80000000, 0xffffffff, UINT64_MAX, (uint64_t)INT64_MAX,
                                       1ULL << 40};
    const size_t n = *len;
    if (n < 64) return;
    size_t at = (size_t)tide_rng_below(rng, n);
    const size_t page = at / PAGE * PAGE;
    uint64_t v = numbers[tide_rng_below(rng, sizeof numbers / sizeof numbers[0])];
    switch (tide_rng_below(rng, 12)) {
    case 0: // a byte anywhere
    case 1:
        data[at] = (char)tide_rng_u64(rng);
        break;
    case 2: // the head of the file
        data[tide_rng_below(rng, 100)] = (char)tide_rng_u64(rng);
        break;
    case 3: // the head of a page, or its list of cells
        at = page + (size_t)tide_rng_below(rng, 40);
        if (at < n) data[at] = (char)tide_rng_u64(rng);
        break;
    case 4: // a page that leads to another one
        at = page + 8 + (size_t)tide_rng_below(rng, PAGE - 12) / 4 * 4;
        if (at + 4 <= n) put_u32(data, at, 1 + (uint32_t)tide_rng_below(rng, n / PAGE + 2));
        break;
    case 5: // one page as another
        at = (size_t)tide_rng_below(rng, n / PAGE + 1) * PAGE;
        if (at + PAGE <= n && page + PAGE <= n) memmove(data + at, data + page, PAGE);
        break;
    case 6: // nothing
        memset(data + at, 0, n - at < 200 ? n - at : (size_t)tide_rng_below(rng, 200));
        break;
    case 7: // cut
        if (tide_rng_below(rng, 4) == 0) *len = at;
        break;
    case 8: // a large number, of this machine's order
        at = at / 8 * 8;
        if (at + 8 <= n) memcpy(data + at, &v, 8);
        break;
    case 9: // the same near the begin, where files keep their heads
        at = (size_t)tide_rng_below(rng, n < 4096 ? n : 4096) / 4 * 4;
        if (at + 4 <= n) memcpy(data + at, &v, 4);
        break;
    case 10: // one bit
        data[at] = (char)(data[at] ^ (1 << tide_rng_below(rng, 8)));
        break;
    default: // an interval of something else
        for (size_t i = 0; i < 60 && at + i < n; i++) data[at + i] = (char)tide_rng_u64(rng);
    }
}

#endif
