// SPDX-License-Identifier: MIT
//
// worker: one thread for what takes longer than a key may: tables of millions of blocks, sorting them, pools, plans.
// It has subjects of its own. A newer question of the same sort replaces an older one, which is cancelled.
#ifndef TIDE_TUI_WORKER_H
#define TIDE_TUI_WORKER_H

#include "analysis/subject.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TIDE_TUI_MAX_JOBS = 16, TIDE_TUI_PATIENCE_MS = 5 };

typedef struct tide_tui_worker tide_tui_worker;

/// A question. `run` is called on the worker's thread; what it makes goes into `ctx`, which is the asker's until it is
/// handed over and again after take or cancel.
typedef struct tide_tui_job {
    int slot;     ///< sort of question, 0 … TIDE_TUI_MAX_JOBS - 1
    uint64_t key; ///< of this one: which state it is the answer for
    tide_status (*run)(void *ctx, tide_subject *a, tide_subject *b, const tide_progress *progress, tide_error *err);
    void (*release)(void *ctx);
    void *ctx;
    uint64_t until_ns; ///< (tide_now_ns) how long the asker waits for what may be quick; 0: TIDE_TUI_PATIENCE_MS
} tide_tui_job;

/// The thread gets an `a` and a `b` (may be NULL) of its own, as tide_subject_again makes them; a trace it opens
/// itself, and says in every answer why it could not. `wake_fd` of the worker becomes readable when an answer has come
/// or progress was made.
tide_status tide_tui_worker_start(const tide_subject *a, const tide_subject *b, tide_tui_worker **out,
                                  tide_error *err) TIDE_NODISCARD;
/// Cancels what runs, joins.
void tide_tui_worker_stop(tide_tui_worker *w);
int tide_tui_worker_wake_fd(const tide_tui_worker *w);
void tide_tui_worker_drain_wake(tide_tui_worker *w);
/// Hand over a question; one of the same slot that was not taken is cancelled and released. Takes job->ctx also on
/// failure. Waits a little, so that what is quick is in the same frame.
tide_status tide_tui_worker_ask(tide_tui_worker *w, const tide_tui_job *job, tide_error *err) TIDE_NODISCARD;
/// The answer of a slot, if it is there for this key: *ctx is the caller's again, *status and `err` what run returned.
bool tide_tui_worker_take(tide_tui_worker *w, int slot, uint64_t key, void **ctx, tide_status *status, tide_error *err);
/// Progress of a slot in words, "" when nothing is done for it.
void tide_tui_worker_progress(tide_tui_worker *w, int slot, char *buf, size_t buf_bytes);
/// Whether a question of this slot and key is waiting or being worked on.
bool tide_tui_worker_is_busy(tide_tui_worker *w, int slot, uint64_t key);
void tide_tui_worker_cancel(tide_tui_worker *w, int slot);
/// Replace the subjects (a refresh, another B). Cancels everything.
tide_status tide_tui_worker_renew(tide_tui_worker *w, const tide_subject *a, const tide_subject *b,
                                  tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
