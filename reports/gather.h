// SPDX-License-Identifier: MIT
//
// gather: all data of a report, computed once, so that all formats show the same numbers.
#ifndef TIDE_REPORTS_GATHER_H
#define TIDE_REPORTS_GATHER_H

#include "analysis/compare.h"
#include "analysis/device_memory.h"
#include "analysis/lanes.h"
#include "analysis/pools.h"
#include "analysis/space.h"
#include "planner/process_need.h"
#include "profiler/executions.h"
#include "profiler/moments.h"
#include "reports/reports.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    TIDE_REPORT_COLUMNS = 1000,        ///< of a trace's curve
    TIDE_REPORT_MAX_POINTS = 4000,     ///< up to so many steps the curve of a plan is written point by point
    TIDE_REPORT_MAX_LIVE = 200000,     ///< items that the page's script knows: the largest
    TIDE_REPORT_MAX_POOLS = 12,        ///< pools of the page over time: the first of the table
    TIDE_REPORT_POOL_COLUMNS = 160,    ///< of each pool over time
    TIDE_REPORT_MAX_EXECUTIONS = 2000, ///< beyond these the page knows none
    TIDE_REPORT_MAX_ROOMS = 5000,      ///< segments that the page's script knows; of more it knows none
    TIDE_REPORT_MAX_STILL = 240,       ///< bars and rows of the page that stand without a script: the largest
};

/// What a step makes and frees, and the highest of the curve while it runs.
typedef struct tide_report_step {
    const char *name;
    char *body; ///< owned: the bodies of If, Loop and Scan that it lies in; NULL: none
    int64_t begin;
    uint64_t makes_bytes, frees_bytes, live_bytes;
} tide_report_step;

/// Weights that are alive at the peak, as one row: where they are more than half of it, they would hide the rest, if
/// there is any.
typedef struct tide_report_weights {
    size_t n;
    uint64_t bytes; ///< their part of the peak
    uint64_t size_bytes, reserved_bytes;
    int64_t begin, end; ///< of all of them together
    bool folded;        ///< the page opens with them as one row
} tide_report_weights;

/// Tensors of a planned run that are the same in its executions.
typedef struct tide_report_repeats {
    uint32_t *tensors; ///< [n] items of the first of these executions
    size_t n;          ///< 0: nothing is repeated
    bool *is_repeated; ///< [executions] whether it has exactly these tensors, from step to step
} tide_report_repeats;

/// Memory of a pool. Addresses of a trace, or of a plan bytes from the begin of its buffer.
typedef struct tide_report_room {
    size_t pool; ///< its place in `pools`
    uint64_t base, bytes;
    int64_t begin, end; ///< end INT64_MAX: it was kept
    const char *why;    ///< name of the block that it was taken for; "" not known
} tide_report_room;
/// A block of a trace that tensors of a plan lie in, cut to the axis.
typedef struct tide_report_buffer {
    const char *name;
    tide_memory_kind kind;
    uint64_t place, size_bytes, reserved_bytes;
    int64_t begin, end;
    bool open; ///< it lives on at the end
} tide_report_buffer;

/// Who has bytes of a device when most of it is in use; names are borrowed.
typedef struct tide_report_device_part {
    const char *device, *of, *name;
    uint64_t bytes;
} tide_report_device_part;

/// When a pool was fragmented most, and whose blocks split it then.
typedef struct tide_report_worst {
    bool is_known;
    tide_pool_worst worst;
    tide_pool_splits splits;
} tide_report_worst;

typedef struct tide_report_side {
    tide_subject *subject;
    const tide_subject_facts *facts;
    const tide_items *items;
    uint64_t *min, *max; ///< [n_columns] of the curve, over the whole axis
    uint64_t *predicted; ///< [n_columns] highest prediction of the plan, beside a trace; NULL: none
    uint64_t *reserved;  ///< [n_columns] most that was taken from the system; NULL: not known
    size_t n_columns;
    bool steps_are_columns;                ///< of a plan: a column is a step
    tide_explanation why;                  ///< at the peak; of a planned run where most of its buffer is in use
    tide_pools pools;                      ///< at the peak
    tide_pool_history history;             ///< of the pools, over the whole axis
    tide_report_worst *worst;              ///< [pools.n]
    tide_device_memory device_memory;      ///< of a trace: all devices but the CPU
    tide_device_figures *device_columns;   ///< [devices][TIDE_REPORT_POOL_COLUMNS]
    tide_device_row *devices;              ///< [device_memory.n]
    tide_report_device_part *device_parts; ///< [n_device_parts]
    size_t n_device_parts, cap_device_parts;
    tide_group *stacks; ///< [n_stacks] of a trace with call stacks: what is live at the peak, by stack; owned
    size_t n_stacks;
    tide_group *functions; ///< [n_functions] the same by function; owned
    size_t n_functions;
    const tide_report_settings *settings; ///< NULL: none are known
    tide_lanes lanes;                     ///< of a trace of several processes; no rows: of another
    tide_leaks leaks;                     ///< of a trace
    tide_space space;                     ///< no regions: nothing has a place
    tide_report_step *steps;              ///< [n_steps]
    size_t n_steps;
    tide_report_weights weights;
    uint32_t *largest; ///< [n_largest] items that the page shows without a script: the first n_alive are alive at the
                       ///< peak (without folded weights) by size; then what is not alive by begin, then folded weights
    size_t n_largest, n_alive, n_not_alive;
    uint64_t rest_bytes; ///< of all others
    uint32_t *live;      ///< [n_live] those that the page's script knows, the same way; NULL: all of them
    size_t n_live;
    uint64_t live_rest_bytes; ///< of all others
    tide_report_repeats repeats;
    tide_execution_sum *sums; ///< [executions] what each comes to; NULL: there are none, or too many
    tide_report_room *rooms;  ///< [n_rooms]
    size_t n_rooms;
    tide_report_buffer *buffers; ///< [n_buffers]
    size_t n_buffers;
    bool knows_reserved;       ///< of a trace: what was taken from the system was recorded
    uint64_t reserved_bytes;   ///< of a trace: its peak; without knows_reserved that of what blocks hold
    tide_moment reserved_at;   ///< and where that is
    bool knows_process;        ///< of a plan that is a model's, or of a run by one
    tide_process_need process; ///< with knows_process: with all contexts of the run
    uint64_t needs_bytes; ///< to run: the process, with what was recorded where that is more; else buffers and what
                          ///< persists (plan), the peak, reserved if known (trace)
} tide_report_side;

typedef struct tide_report {
    tide_report_side a, b;
    bool has_b;
    tide_diff diff; ///< with has_b
    tide_report_options opt;
} tide_report;

tide_status tide_report_gather(tide_subject *a, tide_subject *b, const tide_report_options *opt, tide_report *out,
                               tide_error *err) TIDE_NODISCARD;
void tide_report_deinit(tide_report *r);
/// Of the capacity: what is left for tensors, which the curve shows, beside the program; 0: nothing, or there is none.
uint64_t tide_report_left_for_tensors(const tide_report *r, const tide_report_side *s);
/// Chooses what is drawn and listed: `weights`, `largest`, `live` of a side whose `why` is known. TIDE_ERR_NOMEM.
tide_status tide_report_choose(tide_report_side *s, tide_error *err) TIDE_NODISCARD;

/// Finds `repeats` of a side whose `live` is known. TIDE_ERR_NOMEM.
tide_status tide_report_find_repeats(tide_report_side *s, tide_error *err) TIDE_NODISCARD;
void tide_report_repeats_deinit(tide_report_side *s);
bool tide_report_is_repeated(const tide_report_side *s, uint32_t item);
/// Finds where the bytes of devices are: `device_memory` and what follows it. TIDE_ERR_NOMEM, and the errors of reading
/// a trace.
tide_status tide_report_find_devices(tide_report_side *s, tide_error *err) TIDE_NODISCARD;
void tide_report_devices_deinit(tide_report_side *s);
/// Whether it is the group of blocks that tell no call stack.
bool tide_report_is_no_stack(const tide_group *g);
/// Finds `stacks` and `functions` of a side whose `why` is known. TIDE_ERR_NOMEM, and the errors of reading a trace.
tide_status tide_report_find_stacks(tide_report_side *s, tide_error *err) TIDE_NODISCARD;
void tide_report_stacks_deinit(tide_report_side *s);
/// Finds `rooms` and `buffers` of a side whose pools are known. TIDE_ERR_NOMEM, and the errors of reading a trace.
tide_status tide_report_find_rooms(tide_report_side *s, tide_error *err) TIDE_NODISCARD;
/// Whether it went through the whole program, so that its steps are those of the subject, one by one.
bool tide_report_has_all_steps(const tide_subject_facts *f, const tide_execution *e);

/// Whether it is one of the weights that the page opens with as one row.
bool tide_report_is_folded(const tide_report_side *s, uint32_t item);
/// Where an item stands among those that the page's script knows; SIZE_MAX: it is too small to be there.
size_t tide_report_live_index(const tide_report_side *s, uint32_t item);
/// (plan - bound) / bound; false: not known.
bool tide_report_gap(const tide_subject_facts *f, double *out);
/// 1 - plan / naive; false: not known.
bool tide_report_saving(const tide_subject_facts *f, double *out);
/// A moment relative to the begin of the axis.
uint64_t tide_report_time(const tide_subject_facts *f, int64_t t);
/// "12" or "1.5 ms", relative; "step 12" with `words`.
char *tide_report_format_time(const tide_subject_facts *f, int64_t t, bool words, char *buf, size_t buf_bytes);
/// The last part of the path, and "" for none: no path of this machine is in a report.
const char *tide_report_source(const tide_subject_facts *f);

#ifdef __cplusplus
}
#endif
#endif
