// SPDX-License-Identifier: MIT
//
// Libraries, modules, kernels and launches. What an image holds is not read: a kernel is found by its name in the table
// of those that the host's compiler compiled (sim_kernels.h). Host functions are here as well.
#include "tests/cuda/driver/sim_launch.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/cuda/driver/sim.h"

typedef struct sim_image {
    sim_object object; ///< a library or a module
    sim_ctx *ctx;      ///< modules
} sim_image;

/// A CUkernel or a CUfunction.
typedef struct sim_code {
    sim_object object;
    sim_image *image;
    const tide_host_kernel *kernel;
} sim_code;

// What cuda.h allows as an image: a fat binary, a cubin (an ELF file) or PTX (a text).
static bool is_image(const void *image) {
    uint32_t word;
    memcpy(&word, image, sizeof word);
    const uint32_t fatbin = 0xba55ed50U, fatbin_wrapper = 0x466243b1U;
    return word == fatbin || word == fatbin_wrapper || memcmp(image, "\177ELF", 4) == 0 ||
           memcmp(image, "//", 2) == 0 || memcmp(image, ".ver", 4) == 0;
}

static sim_image *image_new(sim_sort sort, sim_ctx *ctx) {
    sim_image *image = SIM_NEW(sim_image);
    image->ctx = ctx;
    sim_object_add(&image->object, sort);
    return image;
}

static void code_delete_of(sim_object *object, void *user) {
    if (((sim_code *)object)->image != user) return;
    sim_object_remove(object);
    free(object);
}

static void image_delete(sim_image *image) {
    sim_objects_each(SIM_KERNEL, code_delete_of, image);
    sim_objects_each(SIM_FUNCTION, code_delete_of, image);
    sim_object_remove(&image->object);
    free(image);
}

static void module_delete_of(sim_object *object, void *user) {
    if (((sim_image *)object)->ctx == user) image_delete((sim_image *)object);
}

void sim_modules_of_ctx_free(sim_ctx *ctx) { sim_objects_each(SIM_MODULE, module_delete_of, ctx); }

struct wanted {
    const sim_image *image;
    const char *name;
    sim_code *found;
};

static void find_code(sim_object *object, void *user) {
    struct wanted *wanted = user;
    sim_code *code = (sim_code *)object;
    if (code->image == wanted->image && strcmp(code->kernel->name, wanted->name) == 0) wanted->found = code;
}

// The same handle each time that it is asked for.
static CUresult code_get(sim_sort sort, sim_image *image, const char *name, sim_code **out) {
    if (name == NULL) return CUDA_ERROR_INVALID_VALUE;
    struct wanted wanted = {image, name, NULL};
    sim_objects_each(sort, find_code, &wanted);
    if (wanted.found == NULL) {
        const tide_host_kernel *kernel = sim_kernel_find(name);
        if (kernel == NULL) return CUDA_ERROR_NOT_FOUND;
        wanted.found = SIM_NEW(sim_code);
        wanted.found->image = image;
        wanted.found->kernel = kernel;
        sim_object_add(&wanted.found->object, sort);
    }
    *out = wanted.found;
    return CUDA_SUCCESS;
}

static CUresult library_new(CUlibrary *library, const void *code) {
    if (library == NULL || code == NULL) return CUDA_ERROR_INVALID_VALUE;
    if (!is_image(code)) return CUDA_ERROR_INVALID_IMAGE;
    *library = (CUlibrary)image_new(SIM_LIBRARY, NULL);
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuLibraryLoadData,
          (CUlibrary * library, const void *code, CUjit_option *jitOptions, void **jitOptionsValues,
           unsigned int numJitOptions, CUlibraryOption *libraryOptions, void **libraryOptionValues,
           unsigned int numLibraryOptions),
          (library, code, jitOptions, jitOptionsValues, numJitOptions, libraryOptions, libraryOptionValues,
           numLibraryOptions)) {
    return library_new(library, code);
}

SIM_ENTRY(cuLibraryLoadFromFile,
          (CUlibrary * library, const char *fileName, CUjit_option *jitOptions, void **jitOptionsValues,
           unsigned int numJitOptions, CUlibraryOption *libraryOptions, void **libraryOptionValues,
           unsigned int numLibraryOptions),
          (library, fileName, jitOptions, jitOptionsValues, numJitOptions, libraryOptions, libraryOptionValues,
           numLibraryOptions)) {
    if (fileName == NULL) return CUDA_ERROR_INVALID_VALUE;
    char head[8] = {0};
    const int fd = open(fileName, O_RDONLY | O_CLOEXEC);
    const bool was_read = fd >= 0 && read(fd, head, sizeof head) == (ssize_t)sizeof head;
    if (fd >= 0) close(fd);
    if (fd < 0) return CUDA_ERROR_FILE_NOT_FOUND;
    return was_read ? library_new(library, head) : CUDA_ERROR_INVALID_IMAGE;
}

SIM_ENTRY(cuLibraryUnload, (CUlibrary library), (library)) {
    sim_image *image = sim_object_of(library, SIM_LIBRARY);
    if (image == NULL) return CUDA_ERROR_INVALID_HANDLE;
    image_delete(image);
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuLibraryGetKernel, (CUkernel * pKernel, CUlibrary library, const char *name), (pKernel, library, name)) {
    sim_image *image = sim_object_of(library, SIM_LIBRARY);
    if (image == NULL) return CUDA_ERROR_INVALID_HANDLE;
    if (pKernel == NULL) return CUDA_ERROR_INVALID_VALUE;
    sim_code *code;
    SIM_TRY(code_get(SIM_KERNEL, image, name, &code));
    *pKernel = (CUkernel)code;
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuKernelGetFunction, (CUfunction * pFunc, CUkernel kernel), (pFunc, kernel)) {
    const sim_code *code = sim_object_of(kernel, SIM_KERNEL);
    if (code == NULL) return CUDA_ERROR_INVALID_HANDLE;
    if (pFunc == NULL) return CUDA_ERROR_INVALID_VALUE;
    sim_code *function;
    SIM_TRY(code_get(SIM_FUNCTION, code->image, code->kernel->name, &function));
    *pFunc = (CUfunction)function;
    return CUDA_SUCCESS;
}

// cuda.h, cuLaunchKernel: "f can also be a CUkernel cast to CUfunction".
static const sim_code *code_of(const void *handle) {
    const sim_code *code = sim_object_find(handle, SIM_KERNEL);
    return code != NULL ? code : sim_object_of(handle, SIM_FUNCTION);
}

static CUresult name_of(const char **name, const void *handle) {
    const sim_code *code = code_of(handle);
    if (code == NULL) return CUDA_ERROR_INVALID_HANDLE;
    if (name == NULL) return CUDA_ERROR_INVALID_VALUE;
    *name = code->kernel->name;
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuKernelGetName, (const char **name, CUkernel hfunc), (name, hfunc)) { return name_of(name, hfunc); }

SIM_ENTRY(cuFuncGetName, (const char **name, CUfunction hfunc), (name, hfunc)) { return name_of(name, hfunc); }

static CUresult module_new(sim_call *call, CUmodule *module, const void *image) {
    if (module == NULL || image == NULL) return CUDA_ERROR_INVALID_VALUE;
    if (!is_image(image)) return CUDA_ERROR_INVALID_IMAGE;
    *module = (CUmodule)image_new(SIM_MODULE, call->ctx);
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuModuleLoadData, (CUmodule * module, const void *image), (module, image)) {
    return module_new(call, module, image);
}

SIM_ENTRY(cuModuleLoadDataEx,
          (CUmodule * module, const void *image, unsigned int numOptions, CUjit_option *options, void **optionValues),
          (module, image, numOptions, options, optionValues)) {
    return module_new(call, module, image);
}

SIM_ENTRY(cuModuleLoadFatBinary, (CUmodule * module, const void *fatCubin), (module, fatCubin)) {
    return module_new(call, module, fatCubin);
}

SIM_ENTRY(cuModuleGetFunction, (CUfunction * hfunc, CUmodule hmod, const char *name), (hfunc, hmod, name)) {
    sim_image *image = sim_object_of(hmod, SIM_MODULE);
    if (image == NULL) return CUDA_ERROR_INVALID_HANDLE;
    if (hfunc == NULL) return CUDA_ERROR_INVALID_VALUE;
    sim_code *code;
    SIM_TRY(code_get(SIM_FUNCTION, image, name, &code));
    *hfunc = (CUfunction)code;
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuModuleUnload, (CUmodule hmod), (hmod)) {
    sim_image *image = sim_object_of(hmod, SIM_MODULE);
    if (image == NULL) return CUDA_ERROR_INVALID_HANDLE;
    image_delete(image);
    return CUDA_SUCCESS;
}

// Launches.

static bool grid_is_good(const CUlaunchConfig *at) {
    const uint64_t threads = (uint64_t)at->blockDimX * at->blockDimY * at->blockDimZ;
    return at->gridDimX != 0 && at->gridDimY != 0 && at->gridDimZ != 0 && threads != 0 && threads <= 1024 &&
           at->blockDimX <= 1024 && at->blockDimY <= 1024 && at->blockDimZ <= 64 && at->gridDimX <= 2147483647U &&
           at->gridDimY <= 65535U && at->gridDimZ <= 65535U;
}

// Arguments come as pointers (kernelParams) or as one buffer (extra: pointer, size, end).
static CUresult copy_args(sim_work *work, void **kernel_params, void **extra) {
    const tide_host_kernel *kernel = work->kernel;
    if (kernel->n_params > 0 && (kernel_params != NULL) == (extra != NULL)) return CUDA_ERROR_INVALID_VALUE;
    work->args = sim_new(sim_args_bytes(kernel));
    const char *buffer = NULL;
    for (size_t i = 0; extra != NULL && extra[i] != CU_LAUNCH_PARAM_END; i += 2)
        if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = extra[i + 1];
    void *params[TIDE_HOST_MAX_PARAMS];
    sim_args_spread(kernel, work->args, params);
    for (uint32_t i = 0, at = 0; i < kernel->n_params; at += kernel->param_bytes[i++]) {
        const uint32_t align = kernel->param_bytes[i] > 8 ? 8 : kernel->param_bytes[i];
        at = (at + align - 1) / align * align;
        memcpy(params[i], kernel_params != NULL ? kernel_params[i] : buffer + at, kernel->param_bytes[i]);
    }
    return CUDA_SUCCESS;
}

static CUresult launch(sim_call *call, const CUlaunchConfig *at, CUfunction f, void **kernel_params, void **extra) {
    const sim_code *code = code_of(f);
    CUresult why;
    sim_stream *stream = code != NULL ? sim_stream_of(call, at->hStream, &why) : NULL;
    if (stream == NULL) return CUDA_ERROR_INVALID_HANDLE;
    if (!grid_is_good(at)) return CUDA_ERROR_INVALID_VALUE;
    // GUESS: the error; cuda.h does not say it of launches, the programming guide says that such a launch fails.
    if (stream->ctx != call->ctx) {
        sim_misused("a kernel is launched into a stream of another context");
        return CUDA_ERROR_INVALID_HANDLE;
    }
    sim_work work = {.sort = SIM_WORK_KERNEL,
                     .kernel = code->kernel,
                     .grid = {at->gridDimX, at->gridDimY, at->gridDimZ},
                     .block = {at->blockDimX, at->blockDimY, at->blockDimZ},
                     .shared_bytes = at->sharedMemBytes};
    const CUresult got = copy_args(&work, kernel_params, extra);
    return got == CUDA_SUCCESS ? sim_submit(call, stream, work, NULL) : got;
}

SIM_ENTRY_PT(cuLaunchKernel, _ptsz,
             (CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ, unsigned int blockDimX,
              unsigned int blockDimY, unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
              void **kernelParams, void **extra),
             (f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes, hStream, kernelParams,
              extra)) {
    const CUlaunchConfig at = {.gridDimX = gridDimX,
                               .gridDimY = gridDimY,
                               .gridDimZ = gridDimZ,
                               .blockDimX = blockDimX,
                               .blockDimY = blockDimY,
                               .blockDimZ = blockDimZ,
                               .sharedMemBytes = sharedMemBytes,
                               .hStream = hStream};
    return launch(call, &at, f, kernelParams, extra);
}

SIM_ENTRY_PT(cuLaunchKernelEx, _ptsz, (const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra),
             (config, f, kernelParams, extra)) {
    if (config == NULL) return CUDA_ERROR_INVALID_VALUE;
    return config->numAttrs != 0 ? CUDA_ERROR_NOT_SUPPORTED : launch(call, config, f, kernelParams, extra);
}

// Host functions.

SIM_ENTRY_PT(cuLaunchHostFunc, _ptsz, (CUstream hStream, CUhostFn fn, void *userData), (hStream, fn, userData)) {
    CUresult why;
    sim_stream *stream = sim_stream_of(call, hStream, &why);
    if (stream == NULL) return why;
    if (fn == NULL) return CUDA_ERROR_INVALID_VALUE;
    return sim_submit(call, stream, (sim_work){.sort = SIM_WORK_HOST, .host_fn = fn, .user = userData}, NULL);
}

// cuda.h, cuStreamAddCallback: not for captures.
SIM_ENTRY_PT(cuStreamAddCallback, _ptsz,
             (CUstream hStream, CUstreamCallback callback, void *userData, unsigned int flags),
             (hStream, callback, userData, flags)) {
    CUresult why;
    sim_stream *stream = sim_stream_of(call, hStream, &why);
    if (stream == NULL) return why;
    if (callback == NULL || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture != NULL) return sim_capture_break(stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    const sim_work work = {.sort = SIM_WORK_HOST, .callback = callback, .callback_stream = hStream, .user = userData};
    return sim_submit(call, stream, work, NULL);
}
