// SPDX-License-Identifier: MIT
//
// Contexts around the calls of the table. The primary context of a device, which the program shares with any other code
// that uses CUDA, is retained with the first call that needs one: it takes some hundred megabytes of the device. It is
// pushed and popped around each call, so that what the calling thread has current stays so.
#include "core/base/assert.h"
#include "core/base/log.h"
#include "cuda/device/cuda_device.h"

static tide_status retain(cuda_device *d, CUcontext *out, tide_error *err) {
    pthread_mutex_lock(&d->making);
    *out = atomic_load(&d->context);
    CUresult result = CUDA_SUCCESS;
    if (*out == NULL) result = d->cu->DevicePrimaryCtxRetain(out, d->handle);
    if (result == CUDA_SUCCESS) atomic_store(&d->context, *out);
    pthread_mutex_unlock(&d->making);
    return result == CUDA_SUCCESS ? TIDE_OK : cuda_failed(result, d->index, err, "cuDevicePrimaryCtxRetain");
}

tide_status cuda_enter(cuda_device *d, tide_error *err) {
    CUcontext context = atomic_load(&d->context);
    if (context == NULL) TIDE_TRY(retain(d, &context, err));
    CUDA_TRY(d, d->cu->CtxPushCurrent(context), err, "cuCtxPushCurrent");
    return TIDE_OK;
}

void cuda_leave(cuda_device *d) {
    CUcontext popped;
    CUDA_GIVE_BACK(d, "cuCtxPopCurrent", d->cu->CtxPopCurrent(&popped));
}

bool cuda_enter_to_give_back(cuda_device *d) {
    tide_error err = TIDE_ERROR_INIT;
    tide_status st = cuda_enter(d, &err);
    if (st == TIDE_ERR_NOMEM) st = cuda_enter(d, &err);
    if (st != TIDE_OK) tide_log(TIDE_LOG_ERROR, "cannot give back: %s", err.msg);
    return st == TIDE_OK;
}

void cuda_gave_back(const cuda_device *d, CUresult result, const char *what) {
    tide_error err = TIDE_ERROR_INIT;
    TIDE_ASSERT(result != CUDA_SUCCESS);
    cuda_failed(result, d->index, &err, "cannot give back: %s", what);
    tide_log(TIDE_LOG_ERROR, "%s", err.msg);
}
