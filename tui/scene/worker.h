// SPDX-License-Identifier: MIT
//
// worker: one thread with a queue of requests, for what takes longer than a key may: tables of millions of blocks,
// sorting them, pools, plans. It has subjects of its own. A newer request of the same slot replaces the older one,
// which is cancelled.
#ifndef TIDE_TUI_WORKER_H
#define TIDE_TUI_WORKER_H

#include "analysis/subject.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TIDE_TUI_MAX_REQUESTS = 27, TIDE_TUI_WAIT_MS = 5 };

typedef struct tide_tui_worker tide_tui_worker;

/// A request. `run` is called on the worker thread; what it makes goes into `ctx`, which belongs to the worker from
/// submit until take or cancel.
typedef struct tide_tui_request {
    int slot;     ///< sort of request, 0 to TIDE_TUI_MAX_REQUESTS - 1
    uint64_t key; ///< of this request: what the result depends on
    tide_status (*run)(void *ctx, tide_subject *a, tide_subject *b, const tide_progress *progress, tide_error *err);
    void (*release)(void *ctx);
    void *ctx;
    uint64_t wait_until_ns; ///< (tide_now_ns) how long the caller waits for a quick result; 0: TIDE_TUI_WAIT_MS
} tide_tui_request;

/// The thread gets an `a` and a `b` (may be NULL) of its own, as tide_subject_again makes them. A trace is opened by
/// the thread itself, with what a finished one shares with the caller's; if that fails, every result says why. The
/// descriptor of tide_tui_worker_wake_fd becomes readable when a result is there or progress was made.
tide_status tide_tui_worker_start(const tide_subject *a, const tide_subject *b, tide_tui_worker **out,
                                  tide_error *err) TIDE_NODISCARD;
/// Cancels the request that runs, and waits until the thread has ended. Takes NULL.
void tide_tui_worker_stop(tide_tui_worker *w);
int tide_tui_worker_wake_fd(const tide_tui_worker *w);
/// The descriptor is not readable afterwards.
void tide_tui_worker_drain_wake(tide_tui_worker *w);
/// Add a request to the queue; another one of its slot is cancelled and released. Takes request->ctx also on failure.
/// Waits a few milliseconds, so that a quick result is in the same frame.
tide_status tide_tui_worker_submit(tide_tui_worker *w, const tide_tui_request *request, tide_error *err) TIDE_NODISCARD;
/// The result of a slot, if it is there for this key: *ctx belongs to the caller again, *status and `err` are what run
/// returned.
bool tide_tui_worker_take(tide_tui_worker *w, int slot, uint64_t key, void **ctx, tide_status *status, tide_error *err);
/// Progress of a slot in words, "" when it has no request.
void tide_tui_worker_progress(tide_tui_worker *w, int slot, char *buf, size_t buf_bytes);
/// Whether a request of this slot and key waits or runs.
bool tide_tui_worker_is_busy(tide_tui_worker *w, int slot, uint64_t key);
void tide_tui_worker_cancel(tide_tui_worker *w, int slot);
/// Replace the subjects (after a refresh, or with another B). Cancels all requests.
tide_status tide_tui_worker_set_subjects(tide_tui_worker *w, const tide_subject *a, const tide_subject *b,
                                         tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
