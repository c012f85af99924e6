// SPDX-License-Identifier: MIT
//
// The functions of tidemark/record.h in libtidemark-record.so: they hand over to the recorder in libtidemark-trace.so,
// which is opened by the first program that opens a trace. So a program that could record links libc alone, and while
// it does not record it has no thread, no file and no library more than before.
//
//     program -> libtidemark-record.so -> (dlopen, at tide_recorder_open) -> libtidemark-trace.so -> SQLite, Zstandard
//
// The archive libtidemark.a has the recorder itself.
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "tidemark/record.h"
#include "tidemark/version.h"

/// result, name, parameters, arguments: what is handed over once a recorder is open
#define HANDED_OVER(XX)                                                                                                \
    XX(tide_status, tide_recorder_close, (tide_recorder * r, tide_error * err), (r, err))                              \
    XX(tide_status, tide_recorder_flush, (tide_recorder * r, tide_error * err), (r, err))                              \
    XX(tide_status, tide_recorder_begin_run,                                                                           \
       (tide_recorder * r, const tide_run_info *info, const tide_memory_plan *plan, int64_t *run_id, tide_error *err), \
       (r, info, plan, run_id, err))                                                                                   \
    XX(tide_status, tide_recorder_end_run, (tide_recorder * r, tide_error * err), (r, err))                            \
    XX(tide_status, tide_recorder_put_meta, (tide_recorder * r, const char *key, const char *value, tide_error *err),  \
       (r, key, value, err))

/// The same without a result; `r` may be NULL
#define TOLD(XX)                                                                                                       \
    XX(tide_recorder_abandon, (tide_recorder * r), (r))                                                                \
    XX(tide_recorder_alloc,                                                                                            \
       (tide_recorder * r, tide_memory_kind kind, const void *address, uint64_t bytes, const char *tag),               \
       (r, kind, (const void *)(uintptr_t)address, bytes, tag))                                                        \
    XX(tide_recorder_free, (tide_recorder * r, const void *address), (r, address))                                     \
    XX(tide_recorder_tell, (tide_recorder * r, tide_memory_op op, tide_memory_event * e), (r, op, e))                  \
    XX(tide_recorder_enter, (tide_recorder * r, tide_scope * scope), (r, scope))                                       \
    XX(tide_recorder_leave, (tide_recorder * r, tide_scope * scope), (r, scope))                                       \
    XX(tide_recorder_mark, (tide_recorder * r, const char *name), (r, name))

static struct engine {
    tide_status (*tide_recorder_open)(const char *path, const tide_recorder_options *opt, tide_recorder **out,
                                      tide_error *err);
    tide_observer (*tide_recorder_observer)(tide_recorder *r);
    void (*tide_recorder_get_stats)(const tide_recorder *r, tide_recorder_stats *out);
    void (*tide_collector_hook)(int argc, char **argv);
    void (*tide_set_messages)(tide_message_fn fn, void *ctx);
#define XX(result, name, parameters, arguments) result(*name) parameters;
    HANDED_OVER(XX)
#undef XX
#define XX(name, parameters, arguments) void(*name) parameters;
    TOLD(XX)
#undef XX
} engine; ///< complete before the first recorder is handed out, and never changed then

static atomic_bool has_hook;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
// With the lock:
static bool is_loaded;
static bool has_messages; ///< the program has said where they go
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

static const char *find_all(void *library, struct engine *e) {
#define FIND(name)                                                                                                     \
    if (!find(library, #name, &e->name)) return #name;
#define XX(result, name, parameters, arguments) FIND(name)
    HANDED_OVER(XX)
#undef XX
#define XX(name, parameters, arguments) FIND(name)
    TOLD(XX)
#undef XX
    FIND(tide_recorder_open)
    FIND(tide_recorder_observer)
    FIND(tide_recorder_get_stats)
    FIND(tide_collector_hook)
    FIND(tide_set_messages)
    return NULL;
#undef FIND
}

static tide_status other_version(void *library, tide_error *err) {
    const char *(*version)(void) = NULL;
    const char *theirs = find(library, "tide_version", &version) ? version() : "?";
    if (strcmp(theirs, TIDE_VERSION) == 0) return TIDE_OK;
    const tide_status st =
        TIDE_FAIL(err, TIDE_ERR_BACKEND, "cannot record: %s is version %s, not %s", FILE_NAME, theirs, TIDE_VERSION);
    tide_error_hint(err, "both come with one installation; another copy of the library was found first");
    return st;
}

static tide_status look_into(void *library, tide_error *err) {
    TIDE_TRY(other_version(library, err));
    struct engine found = {0};
    const char *missing = find_all(library, &found);
    if (missing != NULL) return TIDE_FAIL(err, TIDE_ERR_BACKEND, "cannot record: %s has no %s", FILE_NAME, missing);
    engine = found;
    if (has_messages) engine.tide_set_messages(message_fn, message_ctx);
    if (atomic_load(&has_hook)) engine.tide_collector_hook(0, NULL);
    return TIDE_OK;
}

/// With the lock.
static tide_status load(tide_error *err) {
    if (is_loaded) return TIDE_OK;
    // Beside this library (its run path), else where the loader looks. It stays open: its threads run in it.
    void *library = dlopen(FILE_NAME, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == NULL) {
        const char *reason = dlerror();
        const tide_status st = TIDE_FAIL(err, TIDE_ERR_BACKEND, "cannot record: %s cannot be opened", FILE_NAME);
        tide_error_note(err, "%s", reason != NULL ? reason : "the loader does not say why");
        tide_error_hint(err, "it is installed beside libtidemark-record.so; it needs SQLite and Zstandard");
        return st;
    }
    const tide_status st = look_into(library, err);
    is_loaded = st == TIDE_OK;
    return st;
}

static tide_status need_engine(tide_error *err) {
    pthread_mutex_lock(&lock);
    const tide_status st = load(err);
    pthread_mutex_unlock(&lock);
    return st;
}

tide_status tide_recorder_open(const char *path, const tide_recorder_options *opt, tide_recorder **out,
                               tide_error *err) {
    TIDE_TRY(need_engine(err));
    return engine.tide_recorder_open(path, opt, out, err);
}

#define XX(result, name, parameters, arguments)                                                                        \
    result name parameters { return engine.name arguments; }
HANDED_OVER(XX)
#undef XX

#define XX(name, parameters, arguments)                                                                                \
    void name parameters {                                                                                             \
        if (r != NULL) engine.name arguments;                                                                          \
    }
TOLD(XX)
#undef XX

static void hear_nothing(void *self, const tide_memory_event *event) { (void)self, (void)event; }

tide_observer tide_recorder_observer(tide_recorder *r) {
    if (r == NULL) return (tide_observer){.on_memory = hear_nothing, .no_time = true};
    return engine.tide_recorder_observer(r);
}

void tide_recorder_get_stats(const tide_recorder *r, tide_recorder_stats *out) {
    engine.tide_recorder_get_stats(r, out);
}

void tide_set_messages(tide_message_fn fn, void *ctx) {
    tide__log_set_messages(fn, ctx);
    pthread_mutex_lock(&lock);
    has_messages = true;
    message_fn = fn;
    message_ctx = ctx;
    if (is_loaded) engine.tide_set_messages(fn, ctx);
    pthread_mutex_unlock(&lock);
}

void tide_collector_hook(int argc, char **argv) {
    atomic_store(&has_hook, true);
    // Started again as its own collector, as by recorder_drain.c: then the library is needed at once. Where it is
    // missing the program says so and goes no further, since it was not started to do its own work.
    if (argc < 4 || strcmp(argv[1], "collect") != 0 || strcmp(argv[3], "--ready-fd") != 0) return;
    tide_error err = TIDE_ERROR_INIT;
    if (need_engine(&err) != TIDE_OK) {
        fprintf(stderr, "tidemark: %s (%s)\n", err.msg, err.note);
        exit(1);
    }
    engine.tide_collector_hook(argc, argv);
}
