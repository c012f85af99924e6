// SPDX-License-Identifier: MIT
//
// operators: new and delete in their forms, and one that throws. See any_program.py.
#include <cstdint>
#include <cstdio>
#include <new>

namespace {
constexpr std::size_t mark = 1000003;
struct alignas(64) wide {
    char bytes[mark / 64 * 64 + 64];
};
} // namespace

int main() {
    char *volatile one = new char[mark];
    delete[] one;
    void *volatile plain = ::operator new(mark + 1);
    ::operator delete(plain);
    void *volatile sized = ::operator new(mark + 2);
    ::operator delete(sized, mark + 2);
    wide *volatile aligned = new wide;
    delete aligned;
    void *volatile quiet = ::operator new(mark + 3, std::nothrow);
    ::operator delete(quiet, std::nothrow);
    volatile std::size_t too_much = SIZE_MAX / 4;
    try {
        void *volatile none = ::operator new(too_much);
        ::operator delete(none);
        return 1;
    } catch (const std::bad_alloc &) {
    }
    return ::operator new(too_much, std::nothrow) == nullptr ? 0 : 2;
}
