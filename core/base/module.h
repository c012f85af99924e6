// SPDX-License-Identifier: MIT
//
// module: the one way in which the program finds and opens a part of itself that lies in a file of its own (a plug-in),
// so that the program links neither MPI nor CUDA.
//
// Where a file is looked for, in this order: where the module's environment variable says, and then nowhere else;
// beside the program; ../lib/tidemark, seen from the program's folder; the folder that the build was configured for.
// Never in the current folder, nor where LD_LIBRARY_PATH leads.
#ifndef TIDE_CORE_BASE_MODULE_H
#define TIDE_CORE_BASE_MODULE_H

#include "core/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_module {
    const char *file;     ///< "libtidemark-cuda.so"
    const char *variable; ///< of the environment; what it holds is the path of another file, with a folder in it
    const char *symbol;   ///< the one that it exports
    bool global;          ///< its libraries look for names among each other's at run time (RTLD_GLOBAL)
} tide_module;

/// The path of the module's file, into `path`. @return TIDE_ERR_NOT_FOUND with the folders in the note,
/// TIDE_ERR_INVALID when the variable names no file that is there
tide_status tide_module_find(const tide_module *m, char *path, size_t path_bytes, tide_error *err) TIDE_NODISCARD;

/**
 * Open the module, or find it open: it stays so for as long as the process lives.
 *
 * @param entry  out: the symbol's address
 * @return as tide_module_find; TIDE_ERR_BACKEND when the loader refuses it (its words are the note), or it has no such
 *         symbol
 */
tide_status tide_module_open(const tide_module *m, void **entry, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
