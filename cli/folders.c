// SPDX-License-Identifier: MIT
//
// Making folders. See folders.h.
#include "cli/folders.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "core/base/host_alloc.h"
#include "core/base/output.h"
#include "core/base/text.h"

static bool is_folder(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/// `path` is ours to change; it is as before at the end.
static tide_status make_each(char *path, unsigned mode, tide_error *err) {
    for (char *at = path + (*path == '/');; at++) {
        if (*at != '/' && *at != '\0') continue;
        const char here = *at;
        *at = '\0';
        // A folder above may be one where nothing can be made: it is there, and that is enough.
        const bool good = mkdir(path, mode) == 0 || is_folder(path);
        const int why = errno == EEXIST ? ENOTDIR : errno;
        if (!good) return tide_output_failed("make the folder", path, why, err);
        *at = here;
        if (here == '\0') return TIDE_OK;
        while (at[1] == '/') at++;
        if (at[1] == '\0') return TIDE_OK;
    }
}

tide_status cli_make_folders(const char *path, unsigned mode, tide_error *err) {
    char *copy;
    TIDE_TRY(TIDE_COPY_TEXT(&copy, path, err, "for the name of a folder"));
    const tide_status st =
        copy[0] == '\0' ? tide_output_failed("make the folder", path, ENOENT, err) : make_each(copy, mode, err);
    tide_host_free(copy);
    return st;
}

tide_status cli_make_fresh_folder(const char *name, char **out, tide_error *err) {
    const char *base = getenv("TMPDIR");
    tide_text path = {0};
    tide_text_addf(&path, "%s/%s-XXXXXX", base != NULL && *base != '\0' ? base : "/tmp", name);
    tide_status st = path.failed ? TIDE_NO_MEMORY(err, "for the name of a folder") : TIDE_OK;
    if (st == TIDE_OK && mkdtemp(path.data) == NULL) st = tide_output_failed("make the folder", path.data, errno, err);
    if (st == TIDE_OK) st = TIDE_COPY_TEXT(out, path.data, err, "for the name of a folder");
    tide_text_deinit(&path);
    return st;
}
