// SPDX-License-Identifier: MIT
//
// What the program and the recorder of CUDA memory (libtidemark-cupti.so, cuda/cupti) agree on. The library is opened,
// not linked; its symbol `tidemark_cupti_plugin` is the table below. Inside a foreign program it is started by the
// driver instead, through its other symbol, InitializeInjection (docs/trace-format.md, "Traces of CUDA programs").
#ifndef TIDE_CORE_DEVICE_CUPTI_PLUGIN_H
#define TIDE_CORE_DEVICE_CUPTI_PLUGIN_H

#include "core/base/status.h"
#include "tidemark/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TIDE_CUPTI_ABI = 1 };
#define TIDE_CUPTI_LIBRARY "libtidemark-cupti.so"
#define TIDE_CUPTI_SYMBOL "tidemark_cupti_plugin"

/// What the recorder asks the process that it records in; the library has copies of its own of all of these, which
/// count apart.
typedef struct tide_cupti_host {
    uint32_t abi;                     ///< TIDE_CUPTI_ABI
    uint64_t (*new_block_id)(void);   ///< tide_block_new_id
    uint32_t (*thread_id)(void);      ///< tide_thread_id
    const tide_scope *(*scope)(void); ///< tide_scope_current
    bool (*is_own_call)(void);        ///< tide_device_is_own_call
} tide_cupti_host;

/// How a recording went. Each line: a field, its key in table meta, what it counts.
#define TIDE_CUPTI_COUNT_MAP(XX)                                                                                       \
    XX(calls, "calls of the driver that were looked at")                                                               \
    XX(allocs, "blocks that became live")                                                                              \
    XX(frees, "blocks that ended")                                                                                     \
    XX(failed_frees, "frees that failed: the block was announced again")                                               \
    XX(unknown_frees, "frees of what was never seen to be allocated")                                                  \
    XX(captured, "allocations and frees that a capture took up instead")                                               \
    XX(replaced, "blocks whose address was given again before their free had returned")                                \
    XX(records, "activity records of memory")                                                                          \
    XX(no_records, "records that nothing could be made of")                                                            \
    XX(matched, "records that a call of the driver explains")                                                          \
    XX(duplicates, "records that tell the same call once more (a second context)")                                     \
    XX(outside, "of the matched ones, those whose time lies outside of the call")                                      \
    XX(unchecked, "records that came too late to be compared with their call")                                         \
    XX(unmatched, "records that no call explains: they are in the trace, with the tag `unmatched`")                    \
    XX(dropped, "records that CUPTI dropped")                                                                          \
    XX(refused_buffers, "buffers that CUPTI asked for and did not get")                                                \
    XX(samples, "samples of the devices' memory")                                                                      \
    XX(no_room, "events that there was no memory to note")                                                             \
    XX(own_calls, "calls of tidemark's own allocators, which are in the trace by themselves")                          \
    XX(own_bytes, "bytes that those hold now")                                                                         \
    XX(own_peak_bytes, "the most that they held")                                                                      \
    XX(errors, "calls of CUPTI that failed")                                                                           \
    XX(flush_hung, "1: the last flush did not return in time")

typedef struct tide_cupti_counts {
#define XX(field, what) uint64_t field;
    TIDE_CUPTI_COUNT_MAP(XX)
#undef XX
} tide_cupti_counts;

typedef struct tide_cupti_plugin {
    uint32_t abi; ///< TIDE_CUPTI_ABI
    /**
     * Begin to record this process. Before the first call of CUDA.
     *
     * @param observer  copied; what it points to must live until `stop` has returned
     * @param host      borrowed; must live until then, too
     * @return TIDE_ERR_NOT_FOUND (no libcupti, no driver), TIDE_ERR_BUSY (another tool has subscribed: who),
     *         TIDE_ERR_EXISTS (it records already), TIDE_ERR_BACKEND (what CUPTI says)
     */
    tide_status (*start)(const tide_observer *observer, const tide_cupti_host *host, tide_error *err);
    /// Take the last records and end. No callback follows. Nothing when it does not record.
    void (*stop)(tide_cupti_counts *counts);
    /// The counts as they are now.
    void (*count)(tide_cupti_counts *counts);
} tide_cupti_plugin;

#ifdef __cplusplus
}
#endif
#endif
