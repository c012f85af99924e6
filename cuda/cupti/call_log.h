// SPDX-License-Identifier: MIT
//
// call_log: the last calls of the driver that took or gave memory, by correlation id. The activity records of MEMORY2
// carry the id of the call that they tell of (measured), so a record finds its call at once.
//
//     entry [id & mask]:  id, alloc or free, where, from when to when
//
// With the lock of the recorder held.
#ifndef TIDE_CUDA_CUPTI_CALL_LOG_H
#define TIDE_CUDA_CUPTI_CALL_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tide__cupti_logged {
    uint64_t address, bytes; ///< of the range that it is about; 0, 0: anywhere (arrays have no address)
    uint64_t enter_ns, exit_ns;
    uint32_t correlation; ///< 0: no call
    uint16_t n_records;   ///< that were found to tell of it
    bool is_alloc;
    bool has_ended; ///< exit_ns is there
    bool failed;
} tide__cupti_logged;

typedef struct tide__cupti_call_log {
    tide__cupti_logged *calls; ///< [TIDE__CUPTI_LOG_CALLS] pages of the system; NULL: none
} tide__cupti_call_log;

enum { TIDE__CUPTI_LOG_CALLS = 1 << 17 };

/// False: no memory; then nothing is compared.
bool tide__cupti_log_init(tide__cupti_call_log *log);
void tide__cupti_log_clear(tide__cupti_call_log *log);
/// Notes the call, in place of an older one. NULL: no log.
tide__cupti_logged *tide__cupti_log_put(tide__cupti_call_log *log, const tide__cupti_logged *call);
/// The entry where the call would be: of this call (same correlation id), of an older one (not noted yet) or of a newer
/// one (overwritten). NULL: no log.
tide__cupti_logged *tide__cupti_log_at(const tide__cupti_call_log *log, uint32_t correlation);

#endif
