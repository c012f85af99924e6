// SPDX-License-Identifier: MIT
//
// grab: a library for tests/preload/calls.c, built twice: the function that allocates has another name in each.
#include <stdlib.h>

void grab(size_t n);

/// Behind grab, in a section that comes later.
static __attribute__((noinline, section(".text.z"))) void GRAB(size_t n) {
    void *block = malloc(n);
    __asm__ volatile("" : : "r"(block) : "memory");
}

void grab(size_t n) {
    GRAB(n);
    __asm__ volatile("" : : : "memory");
}
