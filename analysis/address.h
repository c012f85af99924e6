// SPDX-License-Identifier: MIT
//
// address: who lies at an address at a moment, of the data and not of a picture.
#ifndef TIDE_ANALYSIS_ADDRESS_H
#define TIDE_ANALYSIS_ADDRESS_H

#include "analysis/subject.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tide_address_is {
    TIDE_ADDRESS_HELD,    ///< a block or a tensor lies there
    TIDE_ADDRESS_UNUSED,  ///< it lies in a plan's buffer, where no tensor is then
    TIDE_ADDRESS_FREE,    ///< it lies in a segment of an allocator, where no block is then
    TIDE_ADDRESS_NOWHERE, ///< it lies in no memory that is known
} tide_address_is;

typedef struct tide_address {
    tide_address_is is;
    uint32_t item;      ///< that holds it; TIDE_NO_ITEM: none, or items are not loaded
    const char *name;   ///< its name; of free bytes the allocator; "" none. Borrowed from the subject
    const char *inside; ///< the smallest tensor that shares these bytes of it (a part of a Concat, a view); NULL: none
    uint64_t bytes;     ///< of the item, the buffer or the segment; 0: not known
} tide_address;

/**
 * Of a plan an address is an offset in its buffer (of several buffers the largest tensor that lies there counts). Of a
 * run it is an address as its blocks have them, also inside a plan's buffer; a number that is no such address is looked
 * for as an offset in the buffer.
 *
 * Costs a live set. Of a trace of at most TIDE_SUBJECT_EXECUTION_EVENTS events segments are looked at where nothing
 * lies; of a larger one free bytes of a segment are NOWHERE.
 */
tide_status tide_subject_at_address(tide_subject *s, tide_moment at, uint64_t address, tide_address *out,
                                    tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
