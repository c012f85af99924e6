// SPDX-License-Identifier: MIT
//
// dnnl_guard: see dnnl_guard.h. It is C++ because exceptions are caught here.
#include "core/ops/dnnl_guard.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <exception>
#include <execinfo.h>
#include <new>
#include <oneapi/dnnl/dnnl_debug.h>
#include <pthread.h>
#include <string_view>
#include <sys/mman.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/ops/ops.h"

namespace {

thread_local int depth;    // how many guarded calls this thread is in
thread_local bool ran_out; // an allocation failed in the one that it is in now
std::atomic<void (*)()> last_words{nullptr};
std::terminate_handler other_terminate;

void speak() {
    if (void (*words)() = last_words.load()) words();
}

/// libgomp ends the process by exit(1), from inside a guarded call.
void at_exit() {
    if (depth > 0) speak();
}

/// An exception inside a function that may not throw, or an object half made that cannot be destroyed.
void at_terminate() {
    if (depth > 0 && ran_out) speak();
    if (other_terminate != nullptr) other_terminate();
    std::abort();
}

/// operator new has failed.
void at_no_memory() {
    ran_out = depth > 0;
    throw std::bad_alloc();
}

struct inside {
    inside() {
        if (depth++ == 0) ran_out = false;
    }
    ~inside() { depth--; }
    inside(const inside &) = delete;
    inside &operator=(const inside &) = delete;
};

template <class call> dnnl_status_t guarded(call f) noexcept {
    const inside mark;
    try {
        return f();
    } catch (const std::bad_alloc &) {
        return dnnl_out_of_memory;
    } catch (...) {
        return dnnl_runtime_error;
    }
}

// ---- the library ----

#define XX(name, ...) decltype(&dnnl_##name) name;
#define YY(result, name, ...) decltype(&dnnl_##name) name;
struct functions {
    TIDE__DNNL_GUARDED(XX)
    TIDE__DNNL_READ(YY)
} dnnl;
#undef YY
#undef XX
void (*omp_set)(int);
int (*omp_get)();
std::atomic<bool> is_open{false};
pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

template <class fn> bool find(void *library, const char *name, fn *out) {
    *out = reinterpret_cast<fn>(dlsym(library, name));
    return *out != nullptr;
}

/// @return the name of the first function that it lacks; NULL: it has all
const char *find_all(void *library) {
#define XX(name, ...)                                                                                                  \
    if (!find(library, "dnnl_" #name, &dnnl.name)) return "dnnl_" #name;
#define YY(result, name, ...) XX(name)
    TIDE__DNNL_GUARDED(XX)
    TIDE__DNNL_READ(YY)
#undef YY
#undef XX
    return nullptr;
}

/// Whether there is no room in the process for a library of this size: a limit on addresses (ulimit -v).
bool has_no_room() {
    constexpr std::size_t bytes = 128u << 20; // twice the addresses that oneDNN 2.6 and its own libraries take
    void *const room = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) return true;
    munmap(room, bytes);
    return false;
}

/// Whether memory has run out. The loader's own words do not always say it: "failed to map segment".
bool is_out_of_memory(const char *reason) {
    return ran_out || std::strstr(reason, std::strerror(ENOMEM)) != nullptr ||
           std::strstr(reason, "out of memory") != nullptr || has_no_room();
}

/// The loader's reason as an error. `missing`: a function that the library lacks; NULL: it was not opened.
tide_status refuse(tide_error *err, const char *missing, const char *reason) {
    if (is_out_of_memory(reason)) return TIDE_NO_MEMORY(err, "to open oneDNN (%s)", TIDE_DNNL_SONAME);
    const tide_status st = missing == nullptr
                               ? TIDE_FAIL(err, TIDE_ERR_BACKEND, "oneDNN (%s) cannot be opened", TIDE_DNNL_SONAME)
                               : TIDE_FAIL(err, TIDE_ERR_BACKEND, "oneDNN (%s) has no %s", TIDE_DNNL_SONAME, missing);
    tide_error_note(err, "%s", reason);
    tide_error_hint(err, "kernels need the library that the program was built with (Debian: libdnnl2)");
    return st;
}

void *open_guarded() {
    const inside mark;
    return dlopen(TIDE_DNNL_SONAME, RTLD_NOW | RTLD_LOCAL);
}

/// With `opening` held.
tide_status open_library(tide_error *err) {
    void *const library = open_guarded();
    const char *missing = library != nullptr ? find_all(library) : nullptr;
    if (library == nullptr || missing != nullptr) {
        char reason[256]; // the loader's own text lives until it is next asked for anything
        const char *said = dlerror();
        std::snprintf(reason, sizeof reason, "%s", said != nullptr ? said : "the loader does not say why");
        return refuse(err, missing, reason);
    }
    // OpenMP comes with the library and is no dependency of ours.
    if (!find(library, "omp_set_num_threads", &omp_set) || !find(library, "omp_get_max_threads", &omp_get)) {
        omp_set = nullptr;
        omp_get = nullptr;
    }
    is_open.store(true, std::memory_order_release);
    return TIDE_OK;
}

// ---- what a primitive takes while it runs ----
//
// oneDNN allocates in every execution: its list of arguments, room for matrices that it unfolds and packs, given back
// before it returns. What a thread's primitives give back is kept for the next ones, so that a warm run asks the system
// for nothing:
//
//     malloc in execute   one is kept that is large enough -> that one     else -> malloc of the C library, and noted
//     free in execute     noted -> kept                                    else -> free of the C library
//     anywhere else       the C library's
//
// What an execution does not give back is no longer ours when it ends. What is chosen depends on the sizes that were
// asked for and not on addresses, so that every run of a program is the same. A thread gives back what it has kept when
// it ends, or when memory runs out.

enum { MAX_NOTED = 128 };

struct noted_block {
    void *at;
    size_t bytes, align; // as asked
    bool is_kept;        // else the execution has it
};

struct noted_blocks {
    noted_block list[MAX_NOTED];
    int n;
};

thread_local noted_blocks noted;
thread_local bool is_running; // a primitive, in this thread
thread_local bool gives_back; // the thread ends: nothing is kept any more
pthread_key_t at_thread_end;
pthread_once_t key_once = PTHREAD_ONCE_INIT;
bool has_key;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr bool is_run(const char *name) { return std::string_view(name) == "primitive_execute"; }
#else
constexpr bool is_run(const char *) { return false; }
#endif

void give_back(void *p);

/// Gives back all that this thread keeps. @return whether there was anything
bool drop() {
    bool any = false;
    for (int i = noted.n - 1; i >= 0; i--) {
        if (!noted.list[i].is_kept) continue;
        give_back(noted.list[i].at);
        noted.list[i] = noted.list[--noted.n];
        any = true;
    }
    return any;
}

void end_thread(void *) {
    gives_back = true;
    (void)drop();
}

void make_key() { has_key = pthread_key_create(&at_thread_end, end_thread) == 0; }

/// The smallest that is kept and large enough; NULL: none is, or no primitive runs.
[[maybe_unused]] void *take(size_t align, size_t bytes) {
    if (__builtin_expect(!is_running, 1)) return nullptr;
    noted_block *best = nullptr;
    for (int i = 0; i < noted.n; i++) {
        noted_block *b = &noted.list[i];
        // One that is far too large is left for what needs it.
        const bool fits = b->is_kept && b->align == align && b->bytes >= bytes && b->bytes / 2 <= bytes + 256;
        if (fits && (best == nullptr || b->bytes < best->bytes)) best = b;
    }
    if (best == nullptr) return nullptr;
    best->is_kept = false;
    return best->at;
}

/// A block that the C library gave to an execution.
[[maybe_unused]] void note(void *at, size_t align, size_t bytes) {
    if (__builtin_expect(!is_running, 1) || at == nullptr) return;
    if (noted.n == MAX_NOTED && !drop()) return; // what other programs have left makes room
    noted.list[noted.n++] = {at, bytes, align, false};
}

/// @return false: the block is to be freed
[[maybe_unused]] bool keep(const void *at) {
    if (__builtin_expect(!is_running, 1)) return false;
    for (int i = noted.n - 1; i >= 0; i--) {
        if (noted.list[i].at == at && !noted.list[i].is_kept) return noted.list[i].is_kept = true;
    }
    return false;
}

/// What an execution still has when it ends is for good.
void forget_rest() {
    for (int i = noted.n - 1; i >= 0; i--) {
        if (!noted.list[i].is_kept) noted.list[i] = noted.list[--noted.n];
    }
}

/// Around an execution.
struct running {
    const bool was = is_running;
    explicit running(bool runs) {
        if (!runs || gives_back) return;
        if (noted.n == 0) { // perhaps the first time in this thread
            pthread_once(&key_once, make_key);
            if (!has_key || pthread_setspecific(at_thread_end, &noted) != 0) return;
        }
        is_running = true;
    }
    ~running() {
        if (is_running && !was) forget_rest();
        is_running = was;
    }
    running(const running &) = delete;
    running &operator=(const running &) = delete;
};

/// The next definition: the C library's, or that of an allocator that was preloaded.
template <class fn> fn next_of(std::atomic<fn> &found, const char *name) {
    fn f = found.load(std::memory_order_relaxed);
    if (f != nullptr) return f;
    f = reinterpret_cast<fn>(dlsym(RTLD_NEXT, name));
    found.store(f, std::memory_order_relaxed);
    return f;
}

void give_back(void *p) {
    static std::atomic<void (*)(void *)> found{nullptr};
    const auto next = next_of(found, "free");
    if (next != nullptr) next(p);
}

} // namespace

extern "C" {

tide_status tide__dnnl_open(tide_error *err) {
    if (is_open.load(std::memory_order_acquire)) return TIDE_OK;
    pthread_mutex_lock(&opening);
    const tide_status st = is_open.load() ? TIDE_OK : open_library(err);
    pthread_mutex_unlock(&opening);
    return st;
}

#define XX(name, params, args)                                                                                         \
    dnnl_status_t tide__dnnl_##name params {                                                                           \
        TIDE_ASSERT(is_open.load());                                                                                   \
        const running mark(is_run(#name));                                                                             \
        return guarded([&] { return dnnl.name args; });                                                                \
    }
TIDE__DNNL_GUARDED(XX)
#undef XX
#define XX(result, name, params, args)                                                                                 \
    result tide__dnnl_##name params { return dnnl.name args; }
TIDE__DNNL_READ(XX)
#undef XX

bool tide__omp_set(int n) {
    if (omp_set == nullptr) return false;
    const inside mark;
    omp_set(n);
    return true;
}

bool tide__omp_get(int *out) {
    if (omp_get == nullptr) return false;
    const inside mark;
    *out = omp_get();
    return true;
}

bool tide_ops_on_last_words(void (*words)(void)) {
    if (last_words.exchange(words) != nullptr) return true;
    other_terminate = std::set_terminate(at_terminate);
    std::set_new_handler(at_no_memory);
    // An exception that passes pthread_once has the C library open libgcc_s, and without memory it aborts there. Asking
    // for a stack does that now.
    void *frame;
    (void)backtrace(&frame, 1);
    return std::atexit(at_exit) == 0;
}

// oneDNN takes its objects from posix_memalign and builds them at whatever comes back, NULL too; the room for the code
// that it generates comes from mmap, and it writes there whatever that said. Inside a guarded call these two throw
// instead; everywhere else they are the C library's. Sanitizers bring their own, and end the process.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Under names of their own here, for the C library's headers promise that they throw nothing.
int tide__posix_memalign(void **out, size_t align, size_t bytes) __asm__("posix_memalign");
int tide__posix_memalign(void **out, size_t align, size_t bytes) {
    static std::atomic<int (*)(void **, size_t, size_t)> found{nullptr};
    void *const kept = take(align, bytes);
    if (kept != nullptr) {
        *out = kept;
        return 0;
    }
    const auto next = next_of(found, "posix_memalign");
    int failed = next != nullptr ? next(out, align, bytes) : ENOMEM;
    if (failed == ENOMEM && next != nullptr && drop()) failed = next(out, align, bytes);
    if (failed == ENOMEM && depth > 0) at_no_memory();
    if (failed == 0) note(*out, align, bytes);
    return failed;
}

void *tide__malloc(size_t bytes) __asm__("malloc");
void *tide__malloc(size_t bytes) {
    static std::atomic<void *(*)(size_t)> found{nullptr};
    void *p = take(alignof(std::max_align_t), bytes);
    if (p != nullptr) return p;
    const auto next = next_of(found, "malloc");
    if (next == nullptr) return nullptr;
    p = next(bytes);
    if (p == nullptr && drop()) p = next(bytes);
    note(p, alignof(std::max_align_t), bytes);
    return p;
}

void tide__free(void *p) __asm__("free");
void tide__free(void *p) {
    if (!keep(p)) give_back(p);
}

void *tide__mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset) __asm__("mmap");
void *tide__mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset) {
    static std::atomic<void *(*)(void *, size_t, int, int, int, off_t)> found{nullptr};
    const auto next = next_of(found, "mmap");
    void *const made = next != nullptr ? next(at, bytes, protection, flags, fd, offset) : MAP_FAILED;
    if (made == MAP_FAILED && depth > 0) at_no_memory();
    return made;
}
#endif

} // extern "C"

// What a primitive takes by `new` is taken from the same place.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void *operator new(std::size_t bytes) {
    for (;;) {
        void *const p = tide__malloc(bytes > 0 ? bytes : 1);
        if (p != nullptr) return p;
        const std::new_handler handler = std::get_new_handler();
        if (handler == nullptr) throw std::bad_alloc();
        handler();
    }
}
void *operator new[](std::size_t bytes) { return operator new(bytes); }
void operator delete(void *p) noexcept { tide__free(p); }
void operator delete[](void *p) noexcept { tide__free(p); }
void operator delete(void *p, std::size_t) noexcept { tide__free(p); }
void operator delete[](void *p, std::size_t) noexcept { tide__free(p); }
#endif
