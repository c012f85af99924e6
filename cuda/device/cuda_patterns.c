// SPDX-License-Identifier: MIT
//
// Contents of device memory by two kernels (cuda/kernels/kernels.cu), whose image lies in the plug-in. It is loaded
// with the first call and serves all devices.
#include <inttypes.h>

#include "cuda/device/cuda_device.h"
#include "cuda/kernels/image.h"

enum { BLOCK_THREADS = 256, MOST_BLOCKS = 4096 };

/// The making lock is held.
static CUresult load_locked(cuda_state *state, const char **what) {
    CUlibrary library = NULL;
    *what = "cuLibraryLoadData";
    CUresult result = state->cu.LibraryLoadData(&library, tide_cuda_image, NULL, NULL, 0, NULL, NULL, 0);
    if (result != CUDA_SUCCESS) return result;
    *what = "cuLibraryGetKernel";
    result = state->cu.LibraryGetKernel(&state->fill, library, "tide_pattern_fill");
    if (result == CUDA_SUCCESS) result = state->cu.LibraryGetKernel(&state->check, library, "tide_pattern_check");
    if (result == CUDA_SUCCESS)
        state->library = library;
    else
        CUDA_GIVE_BACK(&state->devices[0], "cuLibraryUnload", state->cu.LibraryUnload(library));
    return result;
}

static tide_status load(const cuda_device *d, tide_error *err) {
    cuda_state *state = d->state;
    const char *what = "";
    pthread_mutex_lock(&state->making);
    const CUresult result = state->library != NULL ? CUDA_SUCCESS : load_locked(state, &what);
    pthread_mutex_unlock(&state->making);
    return result == CUDA_SUCCESS ? TIDE_OK : cuda_failed(result, d->index, err, "%s", what);
}

/// Blocks for so many bytes: a thread has a word at the least, and takes more when there are more than the grid has.
static unsigned blocks_for(uint64_t size_bytes) {
    const uint64_t blocks = (size_bytes + 4 * BLOCK_THREADS - 1) / (4 * BLOCK_THREADS);
    return blocks < MOST_BLOCKS ? (unsigned)blocks : MOST_BLOCKS;
}

typedef struct pattern_args {
    uint64_t address, size_bytes, seed;
    uint64_t n_wrong; ///< address of the counter; 0: fill
} pattern_args;

static tide_status put_pattern(cuda_device *d, CUstream handle, void *args, tide_error *err) {
    pattern_args *p = args;
    TIDE_TRY(load(d, err));
    if (p->size_bytes == 0) return TIDE_OK;
    void *params[] = {&p->address, &p->size_bytes, &p->seed, &p->n_wrong};
    const CUkernel kernel = p->n_wrong != 0 ? d->state->check : d->state->fill;
    // "f can also be a CUkernel cast to CUfunction" (cuda.h, cuLaunchKernel).
    CUDA_TRY(d,
             d->cu->LaunchKernel((CUfunction)kernel, blocks_for(p->size_bytes), 1, 1, BLOCK_THREADS, 1, 1, 0, handle,
                                 params, NULL),
             err, "cuLaunchKernel of %s over %" PRIu64 " B",
             p->n_wrong != 0 ? "tide_pattern_check" : "tide_pattern_fill", p->size_bytes);
    return TIDE_OK;
}

static tide_status pattern(void *self, int32_t index, tide_stream_id stream, pattern_args *p, tide_error *err) {
    if (p->address == 0 && p->size_bytes > 0)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "a pattern of %" PRIu64 " bytes has no address", p->size_bytes);
    return cuda_on_stream(cuda_at(self, index), stream, CUDA_USE_WORK, NULL, put_pattern, p, err);
}

tide_status cuda_pattern_fill(void *self, int32_t index, tide_stream_id stream, void *dst, size_t size_bytes,
                              uint64_t seed, tide_error *err) {
    pattern_args p = {.address = (uintptr_t)dst, .size_bytes = size_bytes, .seed = seed};
    return pattern(self, index, stream, &p, err);
}

tide_status cuda_pattern_check(void *self, int32_t index, tide_stream_id stream, const void *src, size_t size_bytes,
                               uint64_t seed, uint64_t *n_wrong, tide_error *err) {
    pattern_args p = {.address = (uintptr_t)src, .size_bytes = size_bytes, .seed = seed, .n_wrong = (uintptr_t)n_wrong};
    if (n_wrong == NULL || (uintptr_t)n_wrong % sizeof *n_wrong != 0)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "the counter of a check at %p is no aligned word", (void *)n_wrong);
    return pattern(self, index, stream, &p, err);
}
