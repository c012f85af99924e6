// SPDX-License-Identifier: MIT
//
// The table of handles: an open hash table from address to sort. A handle that was destroyed stays known as such until
// its address is used again, so that a use after destroy is told from a number that never was a handle.
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include "tests/cuda/driver/sim.h"

static struct entry {
    const void *handle;
    sim_sort sort;
    bool live;
} * table;
static size_t n_used, cap;
static _Atomic uint64_t n_misuses;
static uint64_t last_id;
static sim_object *first[SIM_SORTS];

static const char *const sort_names[SIM_SORTS] = {"context", "stream", "event",   "graph",  "graph_exec", "node",
                                                  "pool",    "module", "library", "kernel", "function",   "physical"};

uint64_t sim_next_id(void) { return ++last_id; }

static struct entry *slot_of(struct entry *in, size_t n, const void *handle) {
    size_t i = (size_t)(((uintptr_t)handle >> 4) * 0x9e3779b97f4a7c15ULL >> 20) & (n - 1);
    while (in[i].handle != NULL && in[i].handle != handle) i = (i + 1) & (n - 1);
    return &in[i];
}

static void grow(void) {
    const size_t n = cap == 0 ? 1024 : 2 * cap;
    struct entry *larger = sim_new(n * sizeof *larger);
    for (size_t i = 0; i < cap; i++)
        if (table[i].handle != NULL) *slot_of(larger, n, table[i].handle) = table[i];
    free(table);
    table = larger;
    cap = n;
}

void sim_object_add(sim_object *object, sim_sort sort) {
    if (4 * (n_used + 1) > 3 * cap) grow();
    struct entry *slot = slot_of(table, cap, object);
    if (slot->handle == NULL) n_used++;
    *slot = (struct entry){object, sort, true};
    object->sort = sort;
    if (object->id == 0) object->id = sim_next_id();
    object->prev = NULL;
    object->next = first[sort];
    if (object->next != NULL) object->next->prev = object;
    first[sort] = object;
}

void sim_object_remove(sim_object *object) {
    slot_of(table, cap, object)->live = false;
    if (object->next != NULL) object->next->prev = object->prev;
    if (object->prev != NULL)
        object->prev->next = object->next;
    else
        first[object->sort] = object->next;
}

void *sim_object_find(const void *handle, sim_sort sort) {
    if (handle == NULL || cap == 0) return NULL;
    const struct entry *slot = slot_of(table, cap, handle);
    return slot->live && slot->sort == sort ? (void *)(uintptr_t)handle : NULL;
}

void sim_misused(const char *fmt, ...) {
    atomic_fetch_add(&n_misuses, 1);
    char text[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    fprintf(stderr, "tidesim: misuse: %s\n", text);
}

void *sim_object_of(const void *handle, sim_sort sort) {
    void *object = sim_object_find(handle, sort);
    if (object != NULL) return object;
    const struct entry *slot = cap != 0 && handle != NULL ? slot_of(table, cap, handle) : NULL;
    if (slot == NULL || slot->handle == NULL)
        sim_misused("%p is no %s", handle, sort_names[sort]);
    else if (slot->live)
        sim_misused("%p is a %s and no %s", handle, sort_names[slot->sort], sort_names[sort]);
    else
        sim_misused("%s %p is used after it was destroyed", sort_names[slot->sort], handle);
    return NULL;
}

SIM_API uint64_t tidesim_misuse(void) { return atomic_load(&n_misuses); }
void sim_misuse_reset(void) { atomic_store(&n_misuses, 0); }

uint64_t sim_objects_each(sim_sort sort, void (*each)(sim_object *, void *), void *user) {
    uint64_t n = 0;
    for (sim_object *object = first[sort], *next; object != NULL; object = next, n++) {
        next = object->next;
        if (each != NULL) each(object, user);
    }
    return n;
}

const char *sim_sort_name(sim_sort sort) { return sort_names[sort]; }
