// SPDX-License-Identifier: MIT
//
// Opening the driver, and its errors in words. See driver.h.
#include "cuda/driver/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

// A driver of CUDA 13 runs what was built with any toolkit 13.x that asks for nothing newer.
enum { NEEDED_VERSION = CUDA_VERSION / 1000 * 1000 };

/// What is called before it is known whether the driver is new enough. Asked for by the version that brought them.
static struct {
    __typeof__(cuGetProcAddress) *get_address;
    __typeof__(cuInit) *init;
    __typeof__(cuDriverGetVersion) *get_version;
    __typeof__(cuGetErrorName) *error_name;
    __typeof__(cuGetErrorString) *error_text;
} first;

// ---- errors ----

tide_status cuda_status(CUresult result) {
    switch (result) {
    case CUDA_SUCCESS:
        return TIDE_OK;
    case CUDA_ERROR_OUT_OF_MEMORY:
        return TIDE_ERR_NOMEM;
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_HANDLE:
        return TIDE_ERR_INVALID;
    case CUDA_ERROR_NOT_SUPPORTED:
        return TIDE_ERR_NOT_IMPLEMENTED;
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
    case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
    case CUDA_ERROR_STREAM_CAPTURE_IMPLICIT:
    case CUDA_ERROR_CAPTURED_EVENT:
        return TIDE_ERR_BUSY;
    default:
        return TIDE_ERR_BACKEND;
    }
}

/// Name and text of a result; what a driver does not know (it is older than the error) stays without.
static void words_of(CUresult result, const char **name, const char **text) {
    *name = *text = NULL;
    if (first.error_name == NULL || first.error_name(result, name) != CUDA_SUCCESS) *name = NULL;
    if (first.error_text == NULL || first.error_text(result, text) != CUDA_SUCCESS) *text = NULL;
    if (*name == NULL) *name = "error";
}

tide_status cuda_failed(CUresult result, int32_t index, tide_error *err, const char *fmt, ...) {
    const tide_status st = cuda_status(result);
    char call[256], device[24] = "";
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(call, sizeof call, fmt, ap);
    va_end(ap);
    const char *name, *text;
    words_of(result, &name, &text);
    if (index >= 0) snprintf(device, sizeof device, "cuda:%d: ", (int)index);
    TIDE_FAIL(err, st, "%s%s: %s (%d)%s%s", device, call, name, (int)result, text != NULL ? ": " : "",
              text != NULL ? text : "");
    if (result == CUDA_ERROR_NOT_INITIALIZED || result == CUDA_ERROR_DEINITIALIZED)
        tide_error_note(err, "a CUDA driver works neither in a child after fork nor at the end of a process");
    return st;
}

// ---- what is missing, in words ----

static tide_status no_library(const char *reason, tide_error *err) {
    TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED, "there is no NVIDIA driver (libcuda.so.1)");
    tide_error_note(err, "%s", reason != NULL ? reason : "the loader does not say why");
    tide_error_hint(err, "it comes with the GPU's driver, R580 or newer; a container must be started with the GPUs");
    return TIDE_ERR_NOT_IMPLEMENTED;
}

static tide_status is_stub(tide_error *err) {
    Dl_info where = {0};
    void *address;
    *(__typeof__(first.get_address) *)&address = first.get_address;
    const bool known = dladdr(address, &where) != 0 && where.dli_fname != NULL;
    TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED, "libcuda.so.1 is the stub of the CUDA toolkit and no driver");
    tide_error_note(err, "it was found at %s", known ? where.dli_fname : "a place that the loader does not name");
    tide_error_hint(err, "take the toolkit's folder of stubs off the library path (LD_LIBRARY_PATH)");
    return TIDE_ERR_NOT_IMPLEMENTED;
}

/// @param version  0: it is not known
static tide_status too_old(int version, tide_error *err) {
    char serves[32] = "it has no cuGetProcAddress_v2";
    if (version > 0) snprintf(serves, sizeof serves, "it serves CUDA %d.%d", version / 1000, version % 1000 / 10);
    TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED, "the NVIDIA driver is too old for CUDA %d: %s", NEEDED_VERSION / 1000,
              serves);
    tide_error_hint(err, "a driver R580 or newer is needed");
    return TIDE_ERR_NOT_IMPLEMENTED;
}

static tide_status no_device(tide_error *err) {
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED, "the NVIDIA driver finds no device");
    if (visible != NULL) tide_error_note(err, "CUDA_VISIBLE_DEVICES is '%s'", visible);
    return TIDE_ERR_NOT_IMPLEMENTED;
}

static tide_status init_failed(CUresult result, tide_error *err) {
    if (result == CUDA_ERROR_STUB_LIBRARY) return is_stub(err);
    if (result == CUDA_ERROR_NO_DEVICE) return no_device(err);
    const tide_status st = cuda_failed(result, -1, err, "the NVIDIA driver does not start: cuInit");
    if (result == CUDA_ERROR_SYSTEM_NOT_READY) {
        tide_error_hint(err, "on machines with NVSwitch the fabric manager must run");
    } else if (result == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH) {
        tide_error_hint(err,
                        "the library is of another version than the driver in the kernel: load that anew, or reboot");
    } else {
        return st;
    }
    if (err != NULL) err->status = TIDE_ERR_NOT_IMPLEMENTED;
    return TIDE_ERR_NOT_IMPLEMENTED;
}

// ---- opening ----

/// The address of a call, for `version`; NULL with *result when it is not there.
static void *address_of(const char *name, int version, CUresult *result) {
    void *found = NULL;
    *result = first.get_address(name, &found, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, NULL);
    return *result == CUDA_SUCCESS ? found : NULL;
}

static tide_status find_library(tide_error *err) {
    if (first.get_address != NULL) return TIDE_OK;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return no_library(dlerror(), err);
    *(void **)&first.get_address = dlsym(library, "cuGetProcAddress_v2");
    return first.get_address != NULL ? TIDE_OK : too_old(0, err);
}

/// A call in the form that it had by `version`; one that the driver does not have is NULL.
static tide_status find_call(const char *name, int version, void *out, tide_error *err) {
    CUresult result;
    void *found = address_of(name, version, &result);
    if (result == CUDA_ERROR_STUB_LIBRARY) return is_stub(err);
    if (result != CUDA_SUCCESS) return cuda_failed(result, -1, err, "cuGetProcAddress of %s", name);
    *(void **)out = found;
    return TIDE_OK;
}

static tide_status find_first(tide_error *err) {
    TIDE_TRY(find_call("cuGetErrorName", 6000, &first.error_name, err));
    TIDE_TRY(find_call("cuGetErrorString", 6000, &first.error_text, err));
    TIDE_TRY(find_call("cuDriverGetVersion", 2020, &first.get_version, err));
    TIDE_TRY(find_call("cuInit", 2000, &first.init, err));
    if (first.init != NULL && first.get_version != NULL) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_BACKEND, "the NVIDIA driver does not know cuInit and cuDriverGetVersion");
}

static tide_status start(int *version, tide_error *err) {
    const CUresult asked = first.get_version(version);
    if (asked == CUDA_ERROR_STUB_LIBRARY) return is_stub(err);
    if (asked != CUDA_SUCCESS) return cuda_failed(asked, -1, err, "cuDriverGetVersion");
    if (*version < NEEDED_VERSION) return too_old(*version, err);
    const CUresult result = first.init(0);
    return result == CUDA_SUCCESS ? TIDE_OK : init_failed(result, err);
}

static tide_status find_entry(const char *name, void *out, tide_error *err) {
    TIDE_TRY(find_call(name, CUDA_VERSION, out, err));
    return *(void **)out != NULL ? TIDE_OK : TIDE_FAIL(err, TIDE_ERR_BACKEND, "the NVIDIA driver has no %s", name);
}

tide_status cuda_driver_open(cuda_driver *out, tide_error *err) {
    *out = (cuda_driver){0};
    TIDE_TRY(find_library(err));
    TIDE_TRY(find_first(err));
    TIDE_TRY(start(&out->version, err));
#define XX(name) TIDE_TRY(find_entry("cu" #name, &out->name, err));
#include "cuda/driver/entries.h"
#undef XX
    return TIDE_OK;
}
