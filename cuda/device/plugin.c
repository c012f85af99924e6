// SPDX-License-Identifier: MIT
//
// The plug-in's door: its table of devices, opening and closing it, and the one symbol that it exports.
#include "cuda/device/cuda_device.h"

#include "core/base/host_alloc.h"
#include "core/base/log.h"
#include "cuda/device/cuda_host.h"

cuda_device *cuda_at(void *self, int32_t index) {
    cuda_state *state = self;
    return index >= 0 && index < state->count ? &state->devices[index] : NULL;
}

static int32_t count(void *self) { return ((const cuda_state *)self)->count; }

const tide_device_ops cuda_ops = {
    .abi = TIDE_DEVICE_ABI,
    .name = "cuda",
    .count = count,
    .mem_alloc = cuda_mem_alloc,
    .mem_free = cuda_mem_free,
    .pinned_alloc = cuda_pinned_alloc,
    .pinned_free = cuda_pinned_free,
    .copy = cuda_copy,
    .fill = cuda_fill,
    .call = cuda_call,
    .stream_create = cuda_stream_create,
    .stream_destroy = cuda_stream_destroy,
    .stream_sync = cuda_stream_sync,
    .stream_wait_event = cuda_stream_wait_event,
    .event_create = cuda_event_create,
    .event_destroy = cuda_event_destroy,
    .event_record = cuda_event_record,
    .event_query = cuda_event_query,
    .event_sync = cuda_event_sync,
    .capture_begin = cuda_capture_begin,
    .capture_end = cuda_capture_end,
    .capture_launch = cuda_capture_launch,
    .capture_destroy = cuda_capture_destroy,
    .facts = cuda_facts,
    .memory_info = cuda_memory_info,
    .pool_alloc = cuda_pool_alloc,
    .pool_free = cuda_pool_free,
    .pool_keep = cuda_pool_keep,
    .pool_trim = cuda_pool_trim,
    .pool_stats = cuda_pool_stats,
    .vm_reserve = cuda_vm_reserve,
    .vm_release = cuda_vm_release,
    .vm_map = cuda_vm_map,
    .vm_unmap = cuda_vm_unmap,
    .pattern_fill = cuda_pattern_fill,
    .pattern_check = cuda_pattern_check,
};

// ---- closing ----

/// Streams, events and captures that are left end with the context, if nothing else in the process holds it.
static void close_device(cuda_device *d) {
    const size_t n_left = d->streams.map.n + d->events.map.n + d->captures.map.n + d->moved_to.map.n;
    if (n_left > 0)
        tide_log(TIDE_LOG_WARN, "cuda:%d: %zu streams, events, captures or blocks were not given back", (int)d->index,
                 n_left);
    if (d->pool != NULL) CUDA_GIVE_BACK(d, "cuMemPoolDestroy", d->cu->MemPoolDestroy(d->pool));
    if (atomic_load(&d->context) != NULL)
        CUDA_GIVE_BACK(d, "cuDevicePrimaryCtxRelease", d->cu->DevicePrimaryCtxRelease(d->handle));
    pthread_cond_destroy(&d->moved);
    pthread_mutex_destroy(&d->lock);
    pthread_mutex_destroy(&d->making);
}

static void close_all(void *self) {
    cuda_state *state = self;
    if (state->library != NULL)
        CUDA_GIVE_BACK(&state->devices[0], "cuLibraryUnload", state->cu.LibraryUnload(state->library));
    for (int32_t i = 0; i < state->count; i++) close_device(&state->devices[i]);
    pthread_mutex_destroy(&state->making);
    tide_host_free(state->devices);
    tide_host_free(state);
}

// ---- opening ----

static tide_status open_device(cuda_state *state, int32_t index, tide_error *err) {
    cuda_device *d = &state->devices[index];
    d->state = state;
    d->cu = &state->cu;
    d->index = index;
    const CUresult result = state->cu.DeviceGet(&d->handle, index);
    if (result != CUDA_SUCCESS) return cuda_failed(result, index, err, "cuDeviceGet");
    TIDE_TRY(cuda_read_facts(d, err));
    pthread_mutex_init(&d->making, NULL);
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->moved, NULL);
    state->count = index + 1;
    return TIDE_OK;
}

/// On failure close_all gives back what there is by then.
static tide_status open_all(cuda_state *state, tide_error *err) {
    int n = 0;
    TIDE_TRY(cuda_driver_open(&state->cu, err));
    const CUresult result = state->cu.DeviceGetCount(&n);
    if (result != CUDA_SUCCESS) return cuda_failed(result, -1, err, "cuDeviceGetCount");
    if (n <= 0) return TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED, "the NVIDIA driver counts no device");
    state->devices = tide_host_calloc((size_t)n, sizeof *state->devices);
    if (state->devices == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no host memory for %d devices of cuda", n);
    for (int32_t i = 0; i < n; i++) TIDE_TRY(open_device(state, i, err));
    return TIDE_OK;
}

static tide_status open_plugin(const tide_device_plugin_host *host, const tide_device_ops **ops, void **self,
                               tide_error *err) {
    if (host->abi != TIDE_DEVICE_PLUGIN_ABI) {
        return TIDE_FAIL(err, TIDE_ERR_INVALID,
                         "the CUDA plug-in is of another version of tidemark: its ABI is %d, the program's %u",
                         TIDE_DEVICE_PLUGIN_ABI, (unsigned)host->abi);
    }
    cuda_host_set(host);
    cuda_state *state = tide_host_calloc(1, sizeof *state);
    if (state == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no host memory for the devices of cuda");
    pthread_mutex_init(&state->making, NULL);
    const tide_status st = open_all(state, err);
    if (st != TIDE_OK) {
        close_all(state);
        return st;
    }
    *ops = &cuda_ops;
    *self = state;
    return TIDE_OK;
}

static const tide_device_plugin plugin = {.abi = TIDE_DEVICE_PLUGIN_ABI, .open = open_plugin, .close = close_all};

const tide_device_plugin *tidemark_device_plugin(void);
__attribute__((visibility("default"))) const tide_device_plugin *tidemark_device_plugin(void) { return &plugin; }
