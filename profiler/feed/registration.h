// SPDX-License-Identifier: MIT
//
// registration: what a recorded process tells of itself, as bytes in the log of its feed: its runs with their plans,
// its facts. The process writes no file but its feed; who drains that makes rows of them. One description of the bytes
// serves both ways (tide__code_...). Private to profiler/.
//
//     text      number: its length + 1, 0: NULL; then the bytes, without a zero
//     number    seven bits a byte, the lowest first; the last byte is below 128
//     run       begin_ns, five texts, contexts, whether there is a plan; then the plan
//     fact      key, value
#ifndef TIDE_PROFILER_FEED_REGISTRATION_H
#define TIDE_PROFILER_FEED_REGISTRATION_H

#include "core/base/text.h"
#include "tidemark/record.h"

/// Puts numbers and texts, or takes them.
typedef struct tide__codec {
    tide_text *out;          ///< they are put there; NULL: they are taken
    const uint8_t *at, *end; ///< what is left to take
    bool is_bad;             ///< taken: it ends too early, or holds what cannot be; put: no plan holds that
    bool is_too_large;       ///< put: a number passes 2^63 - 1, which no trace can hold
    bool has_no_memory;      ///< for a text that was to be taken
} tide__codec;

/// Bytes of a plan's tensor at least, so that a count can be believed before there is memory for it.
enum { TIDE__LEAST_TENSOR_BYTES = 16 };

void tide__code_u64(tide__codec *c, uint64_t *v);
/// At most 2^63 - 1.
void tide__code_size(tide__codec *c, uint64_t *v);
/// Counts from 0; taken, it is no larger than what is left has room for, `least` bytes each.
void tide__code_count(tide__codec *c, size_t *n, size_t least);
/// A text that is taken is owned by who takes it (tide_host_free).
void tide__code_text(tide__codec *c, char **text);
/// What all of a run has, and all of a plan that is no list.
void tide__code_run(tide__codec *c, tide_run_info *info, int64_t *begin_ns, bool *has_plan);
void tide__code_plan_head(tide__codec *c, tide_memory_plan *p);
void tide__code_buffer(tide__codec *c, tide_plan_buffer *b);
void tide__code_pool(tide__codec *c, tide_plan_pool *pool);
void tide__code_region(tide__codec *c, tide_plan_region *x);
/// Without its gaps, its sizes at points and its name.
void tide__code_lifetime(tide__codec *c, tide_lifetime *item);
void tide__code_gap(tide__codec *c, tide_gap *gap);
/// Where it lies.
void tide__code_place(tide__codec *c, uint64_t *offset, int32_t *pool);

/// A run as bytes, behind what is in `out`. TIDE_ERR_OVERFLOW when a number of the plan passes 2^63 - 1;
/// TIDE_ERR_INVALID for what no plan holds; TIDE_ERR_NOMEM. O(plan).
tide_status tide__registration_put_run(tide_text *out, const tide_run_info *info, const tide_memory_plan *plan,
                                       int64_t begin_ns, tide_error *err) TIDE_NODISCARD;
/// The same of a fact. TIDE_ERR_NOMEM.
tide_status tide__registration_put_fact(tide_text *out, const char *key, const char *value,
                                        tide_error *err) TIDE_NODISCARD;

/// A run that was taken out of bytes; owns all of it.
typedef struct tide__run_taken {
    tide_run_info info;
    int64_t begin_ns;
    tide_memory_plan *plan; ///< NULL: none
} tide__run_taken;
/// Trusts nothing: every number, length and nesting is checked before it is used. TIDE_ERR_BAD_INPUT; TIDE_ERR_NOMEM.
/// *out is made by success alone: tide__run_taken_deinit. O(bytes).
tide_status tide__registration_take_run(const void *bytes, size_t n, tide__run_taken *out) TIDE_NODISCARD;
/// The same without its plan, which may be anything: what is left of a run whose plan no trace can hold.
tide_status tide__registration_take_head(const void *bytes, size_t n, tide__run_taken *out) TIDE_NODISCARD;
void tide__run_taken_deinit(tide__run_taken *run);
/// *key and *value are owned (tide_host_free). TIDE_ERR_BAD_INPUT, also for a key of the recorder's own;
/// TIDE_ERR_NOMEM.
tide_status tide__registration_take_fact(const void *bytes, size_t n, char **key, char **value) TIDE_NODISCARD;

/// Whether the recorder itself writes that key of table meta.
bool tide__is_own_key(const char *key);

#endif
