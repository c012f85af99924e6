// SPDX-License-Identifier: MIT
//
// bump: a malloc that a signal handler may call: it gives out what follows, and takes nothing back. For tests, by
// $LD_PRELOAD behind the library that is tested: so it is also an allocator that the program brings.
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

void *malloc(size_t bytes);
void *calloc(size_t n, size_t bytes);
void *realloc(void *block, size_t bytes);
void free(void *block);

static _Atomic uintptr_t next;
static _Atomic uintptr_t room;

void *malloc(size_t bytes) {
    const size_t room_bytes = (size_t)1 << 44;
    if (atomic_load(&room) == 0) {
        void *fresh =
            mmap(NULL, room_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        uintptr_t none = 0;
        if (fresh == MAP_FAILED || !atomic_compare_exchange_strong(&room, &none, (uintptr_t)fresh)) return NULL;
    }
    const size_t whole = (bytes + 31) / 16 * 16;
    const uintptr_t at = atomic_fetch_add(&next, whole);
    if (at > room_bytes - whole) return NULL;
    size_t *block = (size_t *)(room + at + 16);
    block[-1] = bytes;
    return block;
}

void *calloc(size_t n, size_t bytes) {
    size_t total;
    return __builtin_mul_overflow(n, bytes, &total) ? NULL : malloc(total); // nothing is given out twice: it is zero
}

void *realloc(void *block, size_t bytes) {
    void *fresh = malloc(bytes);
    if (fresh == NULL || block == NULL) return fresh;
    const size_t old = ((size_t *)block)[-1];
    memcpy(fresh, block, old < bytes ? old : bytes);
    return fresh;
}

void free(void *block) { (void)block; }
