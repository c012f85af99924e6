// SPDX-License-Identifier: MIT
//
// cuGetProcAddress and the texts of errors.
//
// Measured: a name with a suffix ("cuMemAlloc_v2") and an unknown one give CUDA_SUCCESS, no function and
// CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND; a version that is older than the function
// CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT. GUESS: what a version before the oldest form here gets (a real
// driver still has forms of 2.0). cuda.h: the base name with a version gives the newest form that was there
// in that version; CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM gives the _ptsz or _ptds form where there is one.
#include "tests/cuda/driver/sim.h"

// The newest form up to the version. `any`: some form was found, of whatever version.
static const sim_row *find(const char *symbol, int version, bool per_thread, bool *any) {
    const sim_row *best = NULL;
    for (int i = 0; i < sim_n_rows; i++) {
        const sim_row *row = &sim_rows[i];
        if (strcmp(row->base, symbol) != 0 || (row->needs & SIM_PER_THREAD && !per_thread)) continue;
        *any = true;
        if (row->version > version || row->version > sim.version) continue;
        const bool is_pt = row->needs & SIM_PER_THREAD, best_pt = best != NULL && best->needs & SIM_PER_THREAD;
        if (best == NULL || is_pt > best_pt || (is_pt == best_pt && row->version >= best->version)) best = row;
    }
    return best;
}

static CUresult look_up(const char *symbol, void **pfn, int version, cuuint64_t flags,
                        CUdriverProcAddressQueryResult *status) {
    const cuuint64_t known = CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    if (symbol == NULL || pfn == NULL || flags & ~known || flags == known) return CUDA_ERROR_INVALID_VALUE;
    bool any = false;
    const sim_row *row = find(symbol, version, flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &any);
    *pfn = NULL;
    if (row != NULL) memcpy(pfn, &row->fn, sizeof *pfn);
    if (status != NULL)
        *status = row != NULL ? CU_GET_PROC_ADDRESS_SUCCESS
                  : any       ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                              : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    // cuda.h: without a status to say it in, CUDA_ERROR_NOT_FOUND.
    return row != NULL || status != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

SIM_ENTRY(cuGetProcAddress, (const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags),
          (symbol, pfn, cudaVersion, flags)) {
    return look_up(symbol, pfn, cudaVersion, flags, NULL);
}

SIM_ENTRY(cuGetProcAddress_v2,
          (const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
           CUdriverProcAddressQueryResult *symbolStatus),
          (symbol, pfn, cudaVersion, flags, symbolStatus)) {
    return look_up(symbol, pfn, cudaVersion, flags, symbolStatus);
}

static const struct error_text {
    CUresult code;
    const char *name, *text;
} errors[] = {
#define E(name, text) {name, #name, text},
#include "tests/cuda/driver/sim_errors.h"
#undef E
};

static const struct error_text *text_of(CUresult code) {
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code) return &errors[i];
    return NULL;
}

SIM_ENTRY(cuGetErrorName, (CUresult error, const char **pStr), (error, pStr)) {
    const struct error_text *found = text_of(error);
    if (pStr == NULL) return CUDA_ERROR_INVALID_VALUE;
    *pStr = found != NULL ? found->name : NULL;
    return found != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_ENTRY(cuGetErrorString, (CUresult error, const char **pStr), (error, pStr)) {
    const struct error_text *found = text_of(error);
    if (pStr == NULL) return CUDA_ERROR_INVALID_VALUE;
    *pStr = found != NULL ? found->text : NULL;
    return found != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
