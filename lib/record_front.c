// SPDX-License-Identifier: MIT
//
// What libtidemark-record.so has instead of a drain: it opens libtidemark-trace.so when one is needed in this process.
// So a program that could record links libc alone; where a collector in another process drains, it opens nothing more
// to record, and no database.
//
//     recorder -> feed                                                          -> a collector's process
//     recorder -> feed -> (dlopen, when a drain is needed here) -> libtidemark-trace.so -> SQLite, Zstandard
//
// The archive libtidemark.a has the drain itself.
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "core/base/log.h"
#include "profiler/recorder_engine.h"
#include "tidemark/version.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
// With the lock:
static const tide__engine *engine;                          ///< NULL: not yet
static void (*set_messages)(tide_message_fn fn, void *ctx); ///< of that library
static bool has_messages;                                   ///< the program has said where they go
static tide_message_fn message_fn;
static void *message_ctx;

#define FILE_NAME "libtidemark-trace.so." TEXT_OF(TIDE_ABI)
#define TEXT_OF(x) TEXT_OF_2(x)
#define TEXT_OF_2(x) #x

/// A function of the library; POSIX has it that a pointer to one comes as void *.
static bool find(void *library, const char *name, void *function) {
    void *address = dlsym(library, name);
    memcpy(function, &address, sizeof address);
    return address != NULL;
}

static tide_status check_version(void *library, tide_error *err) {
    const char *(*version)(void) = NULL;
    const char *theirs = find(library, "tide_version", &version) ? version() : "?";
    if (strcmp(theirs, TIDE_VERSION) == 0) return TIDE_OK;
    const tide_status st =
        TIDE_FAIL(err, TIDE_ERR_BACKEND, "cannot record: %s is version %s, not %s", FILE_NAME, theirs, TIDE_VERSION);
    tide_error_hint(err, "both come with one installation; another copy of the library was found first");
    return st;
}

/// With the lock.
static tide_status look_into(void *library, tide_error *err) {
    const void *(*table)(void) = NULL;
    TIDE_TRY(check_version(library, err));
    if (!find(library, "tide_recorder_engine", &table) || !find(library, "tide_set_messages", &set_messages))
        return TIDE_FAIL(err, TIDE_ERR_BACKEND, "cannot record: %s has no drain", FILE_NAME);
    engine = table();
    if (has_messages) set_messages(message_fn, message_ctx);
    return TIDE_OK;
}

/// With the lock.
static tide_status load(tide_error *err) {
    if (engine != NULL) return TIDE_OK;
    // Beside this library (its run path), else where the loader looks. It stays open: its threads run in it.
    void *library = dlopen(FILE_NAME, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library != NULL) return look_into(library, err);
    const char *reason = dlerror();
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_BACKEND, "cannot record: %s cannot be opened", FILE_NAME);
    tide_error_note(err, "%s", reason != NULL ? reason : "the loader does not say why");
    tide_error_hint(err,
                    "it is installed beside libtidemark-record.so, and needs SQLite and Zstandard; or record into a "
                    "collector (tidemark record), where it is not needed");
    return st;
}

tide_status tide__engine_get(const tide__engine **out, tide_error *err) {
    pthread_mutex_lock(&lock);
    const tide_status st = load(err);
    if (st == TIDE_OK) *out = engine;
    pthread_mutex_unlock(&lock);
    return st;
}

void tide_set_messages(tide_message_fn fn, void *ctx) {
    tide__log_set_messages(fn, ctx);
    pthread_mutex_lock(&lock);
    has_messages = true;
    message_fn = fn;
    message_ctx = ctx;
    if (engine != NULL) set_messages(fn, ctx);
    pthread_mutex_unlock(&lock);
}
