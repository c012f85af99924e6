// SPDX-License-Identifier: MIT
//
// pickle_out: Python's pickle format, written straight into a text, value by value, of protocol 4. What is written once
// can be kept by a number and put again for two to five bytes, so that what a million rows have in common is there
// once; texts are kept by themselves:
//
//     {"addr": 4096, "frames": [...]}      }(  X addr  MEMOIZE 0   M 4096   X frames  MEMOIZE 1   ](...e MEMOIZE 2  u
//     the same again                       }(  BINGET 0            M 4096   BINGET 1              BINGET 2          u
//
// No opcode that calls or imports anything, and none that PyTorch's viewer of memory snapshots does not read. Items of
// a list come in thousands, as picklers write them.
#ifndef TIDE_CORE_BASE_PICKLE_OUT_H
#define TIDE_CORE_BASE_PICKLE_OUT_H

#include "core/base/map.h"
#include "core/base/text.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TIDE_PICKLE_MAX_DEPTH = 15 }; ///< of what is written

/// Zero-initialise with `out`. What stands open takes values: of a dict a key, then what it has.
typedef struct tide_pickle_out {
    tide_text *out; ///< borrowed; it may be emptied between two calls; `failed`: memory ran out
    int depth;
    struct tide_pickle_open {
        bool is_dict;
        uint64_t n; ///< values in it
    } open[TIDE_PICKLE_MAX_DEPTH + 1];
    uint32_t n_kept;
    tide_strmap texts; ///< numbers of those that were written
} tide_pickle_out;

/// A word that the caller writes often, with room for its number: {"addr", 0}.
typedef struct tide_pickle_word {
    const char *text;
    uint32_t number; ///< + 1; 0: not written yet
} tide_pickle_word;

void tide_pickle_begin(tide_pickle_out *p);
/// Behind the one value. The text is whole then, unless it says that memory ran out.
void tide_pickle_end(tide_pickle_out *p);
void tide_pickle_deinit(tide_pickle_out *p);

void tide_pickle_list(tide_pickle_out *p);
/// At most a thousand pairs.
void tide_pickle_dict(tide_pickle_out *p);
/// What was opened last is whole.
void tide_pickle_close(tide_pickle_out *p);

void tide_pickle_u64(tide_pickle_out *p, uint64_t value);
void tide_pickle_i64(tide_pickle_out *p, int64_t value);
void tide_pickle_real(tide_pickle_out *p, double value);
void tide_pickle_bool(tide_pickle_out *p, bool value);
/// A tuple of two.
void tide_pickle_pair(tide_pickle_out *p, uint32_t a, uint32_t b);
/// Kept, and put again where it was written before. Bytes that are no UTF-8 become U+FFFD: a pickle holds none.
void tide_pickle_text(tide_pickle_out *p, const char *text);
void tide_pickle_put_word(tide_pickle_out *p, tide_pickle_word *word);

/// Keep what was closed last: its number.
uint32_t tide_pickle_keep(tide_pickle_out *p);
/// Put what was kept under this number.
void tide_pickle_again(tide_pickle_out *p, uint32_t number);

#ifdef __cplusplus
}
#endif
#endif
