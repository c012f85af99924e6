// SPDX-License-Identifier: MIT
//
// Address ranges that the driver knows, in two sorted lists: reservations, and all that may lie inside them or
// elsewhere (allocations, mappings, pinned host memory). And the calls of the system that make address space and
// memory.
//
// Memory of a device is real memory of this process, at its own address: kernels and copies touch it directly, and
// sanitizers see what they touch. What a device gives is only counted (MAP_NORESERVE), so it may be larger than the
// host.
#include <stdio.h>
#include <sys/mman.h>

#include "tests/cuda/driver/sim.h"
#include "tests/cuda/driver/sim_sanitizers.h"

#if SIM_ASAN
#include <sanitizer/asan_interface.h>
#endif

typedef struct range_list {
    sim_range **items;
    size_t n, cap;
} range_list;

static range_list reservations, ranges;

static range_list *list_of(const sim_range *range) { return range->kind == TIDESIM_RESERVED ? &reservations : &ranges; }

// Index of the first range that begins above the address.
static size_t first_above(const range_list *list, uint64_t address) {
    size_t low = 0, high = list->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (list->items[middle]->address > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

void sim_range_add(sim_range *range) {
    range_list *list = list_of(range);
    if (list->n == list->cap) {
        list->cap = list->cap == 0 ? 256 : 2 * list->cap;
        list->items = realloc(list->items, list->cap * sizeof(sim_range *));
        if (list->items == NULL) abort();
    }
    const size_t i = first_above(list, range->address);
    memmove(&list->items[i + 1], &list->items[i], (list->n - i) * sizeof(sim_range *));
    list->items[i] = range;
    list->n++;
    range->id = sim_next_id();
}

void sim_range_remove(sim_range *range) {
    range_list *list = list_of(range);
    size_t i = first_above(list, range->address);
    while (i-- > 0 && list->items[i] != range) {
    }
    memmove(&list->items[i], &list->items[i + 1], (list->n - i - 1) * sizeof(sim_range *));
    list->n--;
}

static sim_range *at(const range_list *list, uint64_t address) {
    const size_t i = first_above(list, address);
    if (i == 0) return NULL;
    sim_range *range = list->items[i - 1];
    const uint64_t span = range->bytes > 0 ? range->bytes : 1;
    return address - range->address < span ? range : NULL;
}

sim_range *sim_range_at(uint64_t address) {
    sim_range *range = at(&ranges, address);
    return range != NULL ? range : at(&reservations, address);
}

sim_range *sim_reservation_at(uint64_t address) { return at(&reservations, address); }

sim_range *sim_range_holding(uint64_t address, uint64_t bytes) {
    sim_range *range = at(&ranges, address);
    if (range == NULL || bytes > range->bytes - (address - range->address)) return NULL;
    return range;
}

// `each` may remove the range that it is given, and no other.
void sim_ranges_each(bool (*each)(sim_range *, void *), void *user) {
    for (size_t k = 0; k < 2; k++) {
        range_list *list = k == 0 ? &ranges : &reservations;
        for (size_t i = 0; i < list->n;) {
            const sim_range *range = list->items[i];
            if (!each(list->items[i], user)) return;
            if (i < list->n && list->items[i] == range) i++;
        }
    }
}

uint64_t sim_n_ranges(void) { return ranges.n + reservations.n; }

bool sim_memory_is_device(uint64_t address, bool *pinned, uint32_t *device) {
    const sim_range *range = at(&ranges, address);
    *pinned = range != NULL;
    if (range == NULL) return false;
    if (range->device != NULL) *device = (uint32_t)range->device->ordinal;
    return range->kind != TIDESIM_PINNED && range->kind != TIDESIM_REGISTERED;
}

// A copy may go over several mappings of one reservation that lie side by side.
bool sim_memory_check(uint64_t address, uint64_t bytes, bool must_be_known) {
    uint64_t done = 0;
    while (done < bytes) {
        const sim_range *range = at(&ranges, address + done);
        if (range == NULL || range->released)
            return done == 0 && range == NULL && !must_be_known && at(&reservations, address) == NULL;
        if (range->kind == TIDESIM_MAPPED && !range->readable) return false;
        const uint64_t left = range->bytes - (address + done - range->address);
        if (left >= bytes - done) return true;
        if (range->kind != TIDESIM_MAPPED) return false;
        done += left;
    }
    return true;
}

uint64_t sim_map_reserve(uint64_t bytes, uint64_t align, uint64_t want) {
    const uint64_t page = 4096;
    if (bytes > (uint64_t)1 << 46) return 0;
    if (want != 0 && want % align == 0) {
        void *exact = mmap((void *)(uintptr_t)want, bytes, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        if (exact != MAP_FAILED) {
            if ((uint64_t)(uintptr_t)exact == want) return want;
            munmap(exact, bytes);
        }
    }
    const uint64_t more = align > page ? align : 0, all = bytes + more;
    void *map = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) return 0;
    const uint64_t begin = (uint64_t)(uintptr_t)map, address = sim_round_up(begin, align > page ? align : page);
    const uint64_t end = sim_round_up(address + bytes, page);
    if (address > begin) munmap(map, address - begin);
    if (begin + all > end) munmap((void *)(uintptr_t)end, begin + all - end);
    return address;
}

bool sim_map_open(uint64_t address, uint64_t bytes) {
    return mprotect((void *)(uintptr_t)address, bytes, PROT_READ | PROT_WRITE) == 0;
}

void sim_map_close(uint64_t address, uint64_t bytes) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    if (mmap((void *)(uintptr_t)address, bytes, PROT_NONE, flags, -1, 0) == MAP_FAILED) abort();
}

void sim_map_free(uint64_t address, uint64_t bytes) { munmap((void *)(uintptr_t)address, bytes); }

#if SIM_ASAN
void sim_poison(uint64_t address, uint64_t bytes) { __asan_poison_memory_region((void *)(uintptr_t)address, bytes); }
void sim_unpoison(uint64_t address, uint64_t bytes) {
    __asan_unpoison_memory_region((void *)(uintptr_t)address, bytes);
}
#else
void sim_poison(uint64_t address, uint64_t bytes) { (void)address, (void)bytes; }
void sim_unpoison(uint64_t address, uint64_t bytes) { (void)address, (void)bytes; }
#endif
