// SPDX-License-Identifier: MIT
//
// Finding and opening modules. See module.h.
#include "core/base/module.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef TIDE_LIBDIR
#define TIDE_LIBDIR "lib/tidemark" // where modules are installed, seen from the prefix or absolute
#endif

/// The folder of the program, without a slash at its end; "" for "/". False: the system does not say.
static bool own_folder(char *out, size_t out_bytes) {
    const ssize_t n = readlink("/proc/self/exe", out, out_bytes - 1);
    if (n <= 0) return false;
    out[n] = '\0';
    char *slash = strrchr(out, '/');
    if (slash != NULL) *slash = '\0';
    return slash != NULL;
}

/// The file that the variable names; NULL when it names none.
static const char *given_path(const tide_module *m) {
    const char *given = getenv(m->variable);
    return given != NULL && given[0] != '\0' ? given : NULL;
}

static tide_status find_given(const tide_module *m, const char *given, char *path, size_t path_bytes, tide_error *err) {
    if (strchr(given, '/') == NULL)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "$%s is '%s': a path with a folder in it is wanted", m->variable,
                         given);
    if (access(given, F_OK) != 0)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "%s is not there, where $%s says", given, m->variable);
    if ((size_t)snprintf(path, path_bytes, "%s", given) >= path_bytes)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "$%s is longer than a path can be", m->variable);
    return TIDE_OK;
}

/// Makes the path of a file, and says whether it is there.
static bool is_at(const char *folder, const char *below, const char *file, char *path, size_t path_bytes) {
    const int n = snprintf(path, path_bytes, "%s%s/%s", folder, below, file);
    return n > 0 && (size_t)n < path_bytes && access(path, F_OK) == 0;
}

tide_status tide_module_find(const tide_module *m, char *path, size_t path_bytes, tide_error *err) {
    const char *given = given_path(m);
    if (given != NULL) return find_given(m, given, path, path_bytes, err);
    char self[PATH_MAX];
    const bool has_self = own_folder(self, sizeof self);
    const bool is_absolute = TIDE_LIBDIR[0] == '/';
    const bool is_there = (has_self && (is_at(self, "", m->file, path, path_bytes) ||
                                        is_at(self, "/../lib/tidemark", m->file, path, path_bytes))) ||
                          (is_absolute && is_at(TIDE_LIBDIR, "", m->file, path, path_bytes)) ||
                          (!is_absolute && has_self && is_at(self, "/../" TIDE_LIBDIR, m->file, path, path_bytes));
    if (is_there) return TIDE_OK;
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "%s is not there", m->file);
    tide_error_note(err, "it was looked for beside the program, in ../lib/tidemark and in %s", TIDE_LIBDIR);
    tide_error_hint(err, "$%s can name the file", m->variable);
    return st;
}

tide_status tide_module_open(const tide_module *m, void **entry, tide_error *err) {
    char path[PATH_MAX];
    TIDE_TRY(tide_module_find(m, path, sizeof path, err));
    void *opened = dlopen(path, RTLD_NOW | (m->global ? RTLD_GLOBAL : RTLD_LOCAL));
    if (opened == NULL) {
        const char *reason = dlerror();
        const tide_status st = TIDE_FAIL(err, TIDE_ERR_BACKEND, "%s cannot be opened", path);
        tide_error_note(err, "%s", reason != NULL ? reason : "the loader does not say why");
        return st;
    }
    *entry = dlsym(opened, m->symbol);
    if (*entry != NULL) return TIDE_OK;
    dlclose(opened);
    return TIDE_FAIL(err, TIDE_ERR_BACKEND, "%s is no plug-in of tidemark: it has no %s", path, m->symbol);
}
