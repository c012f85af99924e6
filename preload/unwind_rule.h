// SPDX-License-Identifier: MIT
//
// unwind_rule: where the caller's registers are, as .eh_frame says of an instruction. See unwind.h.
#ifndef TIDE_PRELOAD_UNWIND_RULE_H
#define TIDE_PRELOAD_UNWIND_RULE_H

#include <stdint.h>

/// Where the frame begins: behind the return address.
typedef enum preload_rule_kind {
    PRELOAD_RULE_SP = 1, ///< at the stack pointer + offset
    PRELOAD_RULE_FP,     ///< at the frame pointer + offset
    PRELOAD_RULE_AT_FP,  ///< where the word at the frame pointer + offset says
    PRELOAD_RULE_SIGNAL, ///< it is none: the kernel called
    PRELOAD_RULE_CHAIN,  ///< nothing is known: the frame pointer may tell
    PRELOAD_RULE_END,    ///< nothing called
    PRELOAD_RULE_NONE,   ///< in a way that is not kept here
} preload_rule_kind;

/// Where the caller's frame pointer is.
typedef enum preload_fp_kind {
    PRELOAD_FP_SAME,  ///< it is the frame pointer
    PRELOAD_FP_BELOW, ///< at the frame's begin + 8 * fp_words
    PRELOAD_FP_AT_FP, ///< at the frame pointer + 8 * fp_words
} preload_fp_kind;

/// One word.
typedef struct preload_rule {
    int32_t offset;
    int16_t fp_words;
    uint8_t kind, fp_kind;
} preload_rule;

/// Of an address in an instruction that calls, or that was interrupted. Any time, any thread.
preload_rule preload_find_rule(uint64_t address);

#endif
