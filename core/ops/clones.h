// SPDX-License-Identifier: MIT
//
// clones: a loop in several kinds of instructions, of which the loader chooses what the processor has. Products and
// sums are not joined in any of them (-ffp-contract=off), so that all give the same bits.
#ifndef TIDE_CORE_OPS_CLONES_H
#define TIDE_CORE_OPS_CLONES_H

/// Before a static function whose loops shall run in vectors of eight where the processor has AVX2. Nothing under
/// sanitizers, whose own functions are not ready when the loader chooses.
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) &&                           \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TIDE_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define TIDE_CLONES
#endif

#endif
