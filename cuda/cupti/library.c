// SPDX-License-Identifier: MIT
//
// Finding libcupti. See library.h.
#include "cuda/cupti/library.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OLDEST = 130000 }; // cuptiSubscribe_v2 is of CUDA 13.0

/// Folders to look into, relative to the one where a loaded CUDA library lies: pip's packages have one folder for each
/// library (nvidia/cu13/lib, nvidia/cuda_cupti/lib).
static const char *const beside[] = {"", "/../../cuda_cupti/lib", "/../extras/CUPTI/lib64"};
static const char *const usual[] = {
#ifdef TIDE_CUPTI_TOOLKIT_DIR
    TIDE_CUPTI_TOOLKIT_DIR,
#endif
    "/usr/local/cuda/lib64",    "/usr/local/cuda/targets/x86_64-linux/lib", "/usr/local/cuda/extras/CUPTI/lib64",
    "/usr/local/cuda-13/lib64",
};

static void *open_in(const char *folder, const char *more) {
    char path[4096];
    const int n = snprintf(path, sizeof path, "%s%s/%s", folder, more, TIDE__CUPTI_SONAME);
    return n > 0 && n < (int)sizeof path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

typedef struct neighbour {
    char folder[4096];
} neighbour;

/// Notes the folder of the first loaded library of CUDA's toolkit; the driver's own lie elsewhere.
static int note_neighbour(struct dl_phdr_info *info, size_t size, void *ctx) {
    (void)size;
    static const char *const names[] = {"/libcudart.so", "/libcublas.so", "/libcublasLt.so", "/libcudnn.so"};
    neighbour *out = ctx;
    for (size_t i = 0; info->dlpi_name != NULL && i < sizeof names / sizeof names[0]; i++) {
        const char *at = strstr(info->dlpi_name, names[i]);
        const size_t n = at != NULL ? (size_t)(at - info->dlpi_name) : 0;
        if (n == 0 || n >= sizeof out->folder) continue;
        memcpy(out->folder, info->dlpi_name, n);
        out->folder[n] = '\0';
        return 1;
    }
    return 0;
}

static void *find(void) {
    void *handle = dlopen(TIDE__CUPTI_SONAME, RTLD_NOW | RTLD_NOLOAD | RTLD_LOCAL);
    const char *named = getenv("TIDEMARK_CUPTI");
    if (handle == NULL && named != NULL && named[0] == '/') handle = dlopen(named, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) handle = dlopen(TIDE__CUPTI_SONAME, RTLD_NOW | RTLD_LOCAL);
    neighbour by = {0};
    if (handle == NULL && dl_iterate_phdr(note_neighbour, &by) != 0)
        for (size_t i = 0; handle == NULL && i < sizeof beside / sizeof beside[0]; i++)
            handle = open_in(by.folder, beside[i]);
    for (size_t i = 0; handle == NULL && i < sizeof usual / sizeof usual[0]; i++) handle = open_in(usual[i], "");
    return handle;
}

/// The address of a function; NULL and the name of it in *missing where there is none.
static void *entry(void *handle, const char *name, const char **missing) {
    void *fn = dlsym(handle, name);
    if (fn == NULL && *missing == NULL) *missing = name;
    return fn;
}

tide_status tide__cupti_library_open(tide__cupti_library *out, tide_error *err) {
    tide__cupti_library lib = {.handle = find()};
    if (lib.handle == NULL) {
        const tide_status st = TIDE_FAIL(err, TIDE_ERR_NOT_FOUND,
                                         "cannot record CUDA memory: " TIDE__CUPTI_SONAME
                                         " is neither loaded, nor in the library path, nor in /usr/local/cuda");
        tide_error_hint(err, "it is in the CUDA Toolkit 13 and in PyTorch's packages; LD_LIBRARY_PATH or "
                             "TIDEMARK_CUPTI=/path/to/" TIDE__CUPTI_SONAME " says where");
        return st;
    }
    const char *missing = NULL;
#define XX(name) *(void **)(void *)&lib.name = entry(lib.handle, #name, &missing);
    TIDE__CUPTI_CALLS(XX)
#undef XX
    uint32_t version = 0;
    if (lib.cuptiGetVersion != NULL) (void)lib.cuptiGetVersion(&version);
    if (missing != NULL || version < OLDEST)
        return TIDE_FAIL(err, TIDE_ERR_BACKEND,
                         "cannot record CUDA memory: " TIDE__CUPTI_SONAME " is of version %u and %s%s; CUDA 13.0 or "
                         "newer is needed",
                         version, missing != NULL ? "has no " : "too old", missing != NULL ? missing : "");
    *out = lib;
    return TIDE_OK;
}

const char *tide__cupti_result(const tide__cupti_library *lib, CUptiResult result) {
    const char *text = NULL;
    if (lib->cuptiGetResultString == NULL || lib->cuptiGetResultString(result, &text) != CUPTI_SUCCESS || text == NULL)
        return "an unknown result";
    return text;
}
