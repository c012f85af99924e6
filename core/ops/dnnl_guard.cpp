// SPDX-License-Identifier: MIT
//
// dnnl_guard: see dnnl_guard.h. It is C++ because exceptions are caught here.
#include "core/ops/dnnl_guard.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <dlfcn.h>
#include <exception>
#include <execinfo.h>
#include <new>
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

/// The next definition: the C library's, or that of an allocator that was preloaded.
template <class fn> fn next_of(std::atomic<fn> &found, const char *name) {
    fn f = found.load(std::memory_order_relaxed);
    if (f != nullptr) return f;
    f = reinterpret_cast<fn>(dlsym(RTLD_NEXT, name));
    found.store(f, std::memory_order_relaxed);
    return f;
}

} // namespace

extern "C" {

#define XX(name, params, args)                                                                                         \
    dnnl_status_t tide__dnnl_##name params {                                                                           \
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
    const auto next = next_of(found, "posix_memalign");
    const int failed = next != nullptr ? next(out, align, bytes) : ENOMEM;
    if (failed == ENOMEM && depth > 0) at_no_memory();
    return failed;
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
