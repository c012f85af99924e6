// SPDX-License-Identifier: MIT
//
// dnnl_guard: see dnnl_guard.h. It is C++ because exceptions are caught here.
#include "core/ops/dnnl_guard.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <exception>
#include <execinfo.h>
#include <new>
#include <pthread.h>
#include <string_view>
#include <sys/mman.h>

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

#define XX(name, params, args)                                                                                         \
    dnnl_status_t tide__dnnl_##name params {                                                                           \
        const running mark(is_run(#name));                                                                             \
        return guarded([&] { return dnnl_##name args; });                                                              \
    }
TIDE__DNNL_GUARDED(XX)
#undef XX

void tide__omp_set(void (*set)(int), int n) {
    const inside mark;
    set(n);
}

int tide__omp_get(int (*get)(void)) {
    const inside mark;
    return get();
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
