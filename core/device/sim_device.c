// SPDX-License-Identifier: MIT
//
// The simulated device: ranges of addresses, given out one behind the other and never twice. See sim_device.h.
//
//     0            2^48                                          2^62                      2^64
//     | recorded   | range | range | range |  next ->             | recorded of other      |
//     | addresses  |  2 MiB steps          |                      | devices                |
//
// A range that was reserved (vm_reserve) is a place alone; what is mapped in it counts as memory.
#include "core/device/sim_device.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/base/map.h"
#include "core/base/text.h"

#define FIRST_ADDRESS (UINT64_C(1) << 48)
#define END_ADDRESS (UINT64_C(1) << 62)
enum { STEP_BYTES = 2 << 20 };

typedef struct sim_range {
    uint64_t key; ///< first: address
    uint64_t bytes;
} sim_range;

static struct {
    pthread_mutex_t lock;
    tide_map ranges; ///< sim_range: what mem_alloc gave
    uint64_t next;   ///< address that was never given
    uint64_t total_bytes, used_bytes;
    _Atomic int type; ///< 0: not registered
} sim = {.lock = PTHREAD_MUTEX_INITIALIZER, .ranges = TIDE_MAP(sim_range), .next = FIRST_ADDRESS};

static int32_t sim_count(void *self) {
    (void)self;
    return 1;
}

// ---- memory; the lock is held in what begins with "locked" ----

static tide_status locked_count(uint64_t size_bytes, tide_error *err) {
    char asked[24], used[24], total[24];
    const uint64_t left = sim.total_bytes > sim.used_bytes ? sim.total_bytes - sim.used_bytes : 0;
    if (sim.total_bytes == 0 || size_bytes <= left) {
        sim.used_bytes += size_bytes;
        return TIDE_OK;
    }
    return TIDE_FAIL(err, TIDE_ERR_NOMEM, "the simulated device is out of memory: %s asked for, %s of %s are taken",
                     tide_format_bytes(size_bytes, asked, sizeof asked),
                     tide_format_bytes(sim.used_bytes, used, sizeof used),
                     tide_format_bytes(sim.total_bytes, total, sizeof total));
}

/// Numbers that nothing had before; a multiple of `align_bytes`.
static tide_status locked_place(uint64_t size_bytes, uint64_t align_bytes, uint64_t *out, tide_error *err) {
    uint64_t at, end;
    const uint64_t align = align_bytes > STEP_BYTES ? align_bytes : STEP_BYTES;
    const bool is_there = tide_align_up(sim.next, align, &at) && tide_align_up(size_bytes, STEP_BYTES, &end) &&
                          at < END_ADDRESS && end <= END_ADDRESS - at;
    if (!is_there) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "the simulated device has no addresses left");
    sim.next = at + end;
    *out = at;
    return TIDE_OK;
}

static tide_status locked_take(uint64_t address, uint64_t size_bytes, tide_error *err) {
    TIDE_TRY(locked_count(size_bytes, err));
    if (tide_map_put(&sim.ranges, &(sim_range){.key = address, .bytes = size_bytes})) return TIDE_OK;
    sim.used_bytes -= size_bytes;
    return TIDE_NO_MEMORY(err, "for a range of the simulated device");
}

static tide_status sim_mem_alloc(void *self, int32_t index, size_t size_bytes, size_t align_bytes, void **out,
                                 tide_error *err) {
    (void)self;
    (void)index;
    uint64_t at = 0;
    pthread_mutex_lock(&sim.lock);
    tide_status st = locked_place(size_bytes, align_bytes, &at, err);
    if (st == TIDE_OK) st = locked_take(at, size_bytes, err);
    pthread_mutex_unlock(&sim.lock);
    if (st == TIDE_OK) *out = (void *)(uintptr_t)at;
    return st;
}

static void sim_mem_free(void *self, int32_t index, void *ptr) {
    (void)self;
    (void)index;
    if (ptr == NULL) return;
    pthread_mutex_lock(&sim.lock);
    sim_range *r = tide_map_find(&sim.ranges, (uintptr_t)ptr);
    if (r != NULL) {
        TIDE_ASSERT(sim.used_bytes >= r->bytes);
        sim.used_bytes -= r->bytes;
        tide_map_take(&sim.ranges, r);
    }
    if (sim.ranges.n == 0) tide_map_deinit(&sim.ranges);
    pthread_mutex_unlock(&sim.lock);
}

tide_status tide_sim_device_take_at(void *address, size_t size_bytes, tide_error *err) {
    const uint64_t at = (uintptr_t)address;
    const bool is_low = at > 0 && at < FIRST_ADDRESS && size_bytes <= FIRST_ADDRESS - at;
    const bool is_high = at >= END_ADDRESS && size_bytes <= UINT64_MAX - at;
    if (!is_low && !is_high)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "the simulated device gives out the addresses at %p itself", address);
    pthread_mutex_lock(&sim.lock);
    const tide_status st =
        tide_map_find(&sim.ranges, at) != NULL
            ? TIDE_FAIL(err, TIDE_ERR_INVALID, "a range of the simulated device begins at %p", address)
            : locked_take(at, size_bytes, err);
    pthread_mutex_unlock(&sim.lock);
    return st;
}

// ---- addresses first, memory later ----

static tide_status sim_vm_reserve(void *self, int32_t index, size_t size_bytes, void **out, tide_error *err) {
    (void)self;
    (void)index;
    uint64_t at = 0;
    pthread_mutex_lock(&sim.lock);
    const tide_status st = locked_place(size_bytes, STEP_BYTES, &at, err);
    pthread_mutex_unlock(&sim.lock);
    if (st == TIDE_OK) *out = (void *)(uintptr_t)at;
    return st;
}

static void sim_vm_release(void *self, int32_t index, void *base, size_t size_bytes) {
    (void)self;
    (void)index;
    (void)base;
    (void)size_bytes;
}

static tide_status sim_vm_map(void *self, int32_t index, void *at, size_t size_bytes, tide_error *err) {
    (void)self;
    (void)index;
    (void)at;
    pthread_mutex_lock(&sim.lock);
    const tide_status st = locked_count(size_bytes, err);
    pthread_mutex_unlock(&sim.lock);
    return st;
}

static void sim_vm_unmap(void *self, int32_t index, void *at, size_t size_bytes) {
    (void)self;
    (void)index;
    (void)at;
    pthread_mutex_lock(&sim.lock);
    TIDE_ASSERT(sim.used_bytes >= size_bytes);
    sim.used_bytes -= size_bytes;
    pthread_mutex_unlock(&sim.lock);
}

// ---- work: there are no bytes, and nothing is ever under way ----

static tide_status no_bytes(tide_error *err) {
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED, "the simulated device has addresses and no bytes");
    tide_error_hint(err, "it is for tidemark replay alone, without --check");
    return st;
}

static tide_status sim_copy(void *self, int32_t index, tide_stream_id stream, tide_copy_direction direction, void *dst,
                            const void *src, size_t size_bytes, tide_error *err) {
    (void)self;
    (void)index;
    (void)stream;
    (void)direction;
    (void)dst;
    (void)src;
    (void)size_bytes;
    return no_bytes(err);
}

static tide_status sim_fill(void *self, int32_t index, tide_stream_id stream, void *dst, unsigned char byte,
                            size_t size_bytes, tide_error *err) {
    (void)self;
    (void)index;
    (void)stream;
    (void)dst;
    (void)byte;
    (void)size_bytes;
    return no_bytes(err);
}

static tide_status sim_call(void *self, int32_t index, tide_stream_id stream, void (*fn)(void *arg), void *arg,
                            tide_error *err) {
    (void)self;
    (void)index;
    (void)stream;
    (void)err;
    fn(arg);
    return TIDE_OK;
}

static tide_status sim_new_id(void *self, int32_t index, uint64_t *out, tide_error *err) {
    (void)self;
    (void)index;
    (void)err;
    *out = tide_device_new_id();
    return TIDE_OK;
}

static void sim_forget_id(void *self, int32_t index, uint64_t id) {
    (void)self;
    (void)index;
    (void)id;
}

static tide_status sim_sync(void *self, int32_t index, uint64_t id, tide_error *err) {
    (void)self;
    (void)index;
    (void)id;
    (void)err;
    return TIDE_OK;
}

static tide_status sim_order(void *self, int32_t index, uint64_t first, uint64_t second, tide_error *err) {
    (void)self;
    (void)index;
    (void)first;
    (void)second;
    (void)err;
    return TIDE_OK;
}

static tide_status sim_event_query(void *self, int32_t index, tide_event_id event, bool *done, tide_error *err) {
    (void)self;
    (void)index;
    (void)event;
    (void)err;
    *done = true;
    return TIDE_OK;
}

// ---- what there is ----

static tide_status sim_facts(void *self, int32_t index, tide_device_facts *out, tide_error *err) {
    (void)self;
    (void)index;
    (void)err;
    *out = (tide_device_facts){.name = "simulated", .map_step_bytes = STEP_BYTES};
    out->total_bytes = tide_sim_device_bytes();
    return TIDE_OK;
}

static const tide_device_ops sim_ops = {.abi = TIDE_DEVICE_ABI,
                                        .name = "sim",
                                        .count = sim_count,
                                        .mem_alloc = sim_mem_alloc,
                                        .mem_free = sim_mem_free,
                                        .copy = sim_copy,
                                        .fill = sim_fill,
                                        .call = sim_call,
                                        .stream_create = sim_new_id,
                                        .stream_destroy = sim_forget_id,
                                        .stream_sync = sim_sync,
                                        .stream_wait_event = sim_order,
                                        .event_create = sim_new_id,
                                        .event_destroy = sim_forget_id,
                                        .event_record = sim_order,
                                        .event_query = sim_event_query,
                                        .event_sync = sim_sync,
                                        .facts = sim_facts,
                                        .vm_reserve = sim_vm_reserve,
                                        .vm_release = sim_vm_release,
                                        .vm_map = sim_vm_map,
                                        .vm_unmap = sim_vm_unmap};

tide_status tide_sim_device_open(tide_device *out, tide_error *err) {
    static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
    tide_device_type type = TIDE_DEVICE_CPU;
    tide_status st = TIDE_OK;
    pthread_mutex_lock(&opening);
    if (atomic_load(&sim.type) == 0) {
        st = tide_device_register(&sim_ops, NULL, &type, err);
        if (st == TIDE_OK) atomic_store(&sim.type, (int)type);
    }
    pthread_mutex_unlock(&opening);
    if (st == TIDE_OK) *out = (tide_device){.type = (tide_device_type)atomic_load(&sim.type)};
    return st;
}

bool tide_sim_device_is(tide_device device) {
    return device.type != TIDE_DEVICE_CPU && (int)device.type == atomic_load(&sim.type);
}

tide_status tide_sim_device_parse(const char *text, tide_device *out, tide_error *err) {
    tide_device opened;
    if (strncmp(text, "sim", 3) == 0 && (text[3] == '\0' || text[3] == ':'))
        TIDE_TRY(tide_sim_device_open(&opened, err));
    return tide_device_parse(text, out, err);
}

void tide_sim_device_set_bytes(uint64_t total_bytes) {
    pthread_mutex_lock(&sim.lock);
    sim.total_bytes = total_bytes;
    pthread_mutex_unlock(&sim.lock);
}

uint64_t tide_sim_device_bytes(void) {
    pthread_mutex_lock(&sim.lock);
    const uint64_t total = sim.total_bytes;
    pthread_mutex_unlock(&sim.lock);
    return total;
}
