// SPDX-License-Identifier: MIT
//
// The line of an instruction of Python. Three forms of the table there are:
//
//     3.11 on     entries: a byte 1cccclll (code, units of two bytes less one), then what the code wants, in bytes
//     below
//                 128: the line by which it goes on (codes 13, 14: a number; 10 to 12: by code - 10; else by none)
//     3.10        pairs: bytes of code, lines by which they go on (-128: none)
//     before      pairs: bytes of code before which, lines by which it goes on
//
// Python describes them in Objects/locations.md and Objects/lnotab_notes.txt.
#include "profiler/import/memray.h"

enum { V3_10 = 0x030A0000, V3_11 = 0x030B0000 };

/// Six bits a byte, the lowest first, the sign in the lowest bit; ends in front of the next entry at the latest.
static int64_t signed_number(const unsigned char *table, size_t n, size_t *at) {
    uint64_t v = 0;
    for (unsigned shift = 0; *at < n && table[*at] < 128 && shift < 30; shift += 6) {
        const unsigned char c = table[(*at)++];
        v |= (uint64_t)(c & 63) << shift;
        if ((c & 64) == 0) break;
    }
    return (v & 1) != 0 ? -(int64_t)(v >> 1) : (int64_t)(v >> 1);
}

static int64_t line_3_11(const unsigned char *table, size_t n, int64_t line, int64_t unit) {
    enum { NO_COLUMNS = 13, LONG = 14, NO_LINE = 15 };
    int64_t end = 0;
    for (size_t at = 0; at < n && table[at] >= 128;) {
        const unsigned code = table[at] >> 3 & 15;
        end += (table[at++] & 7) + 1;
        if (code == NO_COLUMNS || code == LONG)
            line += signed_number(table, n, &at);
        else if (code >= 10 && code != NO_LINE)
            line += code - 10;
        if (unit < end) return code == NO_LINE ? 0 : line;
        while (at < n && table[at] < 128) at++;
    }
    return 0;
}

static int64_t line_3_10(const unsigned char *table, size_t n, int64_t line, int64_t byte) {
    int64_t end = 0;
    for (size_t at = 0; at + 1 < n; at += 2) {
        const signed char by = (signed char)table[at + 1];
        end += table[at];
        if (by != -128) line += by;
        if (byte < end) return by == -128 ? 0 : line;
    }
    return 0;
}

static int64_t line_before(const unsigned char *table, size_t n, int64_t line, int64_t byte) {
    int64_t begin = 0;
    for (size_t at = 0; at + 1 < n; at += 2) {
        begin += table[at];
        if (byte < begin) break;
        line += (signed char)table[at + 1];
    }
    return line;
}

int64_t tide__python_line(uint32_t version, const unsigned char *table, size_t n, int64_t first_line, int32_t offset) {
    if (n == 0 || offset < 0) return 0;
    const int64_t line = version >= V3_11   ? line_3_11(table, n, first_line, offset / 2)
                         : version >= V3_10 ? line_3_10(table, n, first_line, 2 * (int64_t)offset)
                                            : line_before(table, n, first_line, offset);
    return line > 0 && line <= INT32_MAX ? line : 0;
}
