// SPDX-License-Identifier: MIT
//
// What the ledger keeps of a live block, and its table of texts, each once (ledger_texts.c), which does not lock: the
// ledger does. Included by the ledger's files only.
#ifndef TIDE_CORE_MEMORY_LEDGER_INTERNAL_H
#define TIDE_CORE_MEMORY_LEDGER_INTERNAL_H

#include "core/memory/ledger.h"

// ---- texts ----

/// Number of a text: 0 is no text at all, 1 stands for one that found no memory.
typedef uint32_t tide__text_id;

typedef struct tide__ledger_text {
    char *text; ///< owned; never moves
    uint64_t hash;
} tide__ledger_text;

/// Zero-initialise.
typedef struct tide__ledger_texts {
    tide__ledger_text *items; ///< [n]; the text with number i + 2
    size_t n, cap;
    tide__text_id *slots; ///< [n_slots], open addressing; 0: free
    size_t n_slots;       ///< 0 or a power of two, more than n
} tide__ledger_texts;

/// The number of `text`, which is copied when it is new. Never fails: without memory it is 1.
tide__text_id tide__ledger_text_put(tide__ledger_texts *t, const char *text);
/// NULL for 0.
const char *tide__ledger_text_get(const tide__ledger_texts *t, tide__text_id id);
void tide__ledger_texts_deinit(tide__ledger_texts *t);

// ---- live blocks: an id map of these ----

/// 64 bytes.
typedef struct tide__ledger_entry {
    uint64_t id; ///< of the block
    uint64_t requested_bytes, reserved_bytes;
    uint64_t t_ns;
    uint64_t address;
    tide__text_id tag, op, allocator;
    int32_t device_index;
    uint8_t device_type, kind;
    bool pending; ///< free requested, not completed
} tide__ledger_entry;

// ---- the report ----

/// What would have been met at most, from the allocator's own numbers; see tide_oom_report.
uint64_t tide__oom_would_fit(const tide_allocator_stats *s, uint64_t asked_bytes, uint64_t align_bytes);

#endif
