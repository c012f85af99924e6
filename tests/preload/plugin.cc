// SPDX-License-Identifier: MIT
//
// plugin: new and delete in a library that brings the C++ library to a program that does not have it. See
// any_program.py.
#include <new>

namespace {
constexpr std::size_t mark = 1000003;
}

extern "C" int work() {
    char *volatile one = new char[mark];
    delete[] one;
    void *volatile sized = ::operator new(mark + 2);
    ::operator delete(sized, mark + 2);
    void *volatile aligned = ::operator new(mark + 4, std::align_val_t(64));
    ::operator delete(aligned, std::align_val_t(64));
    return 0;
}
