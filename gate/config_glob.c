// SPDX-License-Identifier: MIT
//
// Files that a pattern names, below the folder of the configuration. See config_internal.h.
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/text.h"
#include "gate/config_internal.h"

enum {
    MAX_PATTERN_BYTES = 4096,
    MAX_STARS = 16, // each further star multiplies the time that a match may take
};

// ---- paths ----

tide_status tide__gate_clean_path(const tide__gate_reader *r, const char *path, const char **clean) {
    char *out = tide_gate_arena_text(r->arena, path, strlen(path));
    if (out == NULL) return TIDE__GATE_NO_MEMORY(r);
    size_t n = 0;
    for (const char *p = path; *p != '\0';) {
        const bool is_part_start = n == 0 || out[n - 1] == '/';
        if (is_part_start && p[0] == '.' && p[1] == '/')
            p += 2;
        else if (*p == '/' && is_part_start && p != path) // "a//b", ".//b"; but "/b" is absolute
            p++;
        else
            out[n++] = *p++;
    }
    out[n] = '\0';
    *clean = out;
    return TIDE_OK;
}

tide_status tide__gate_join(const tide__gate_reader *r, const char *path, const char **joined) {
    const size_t n = path[0] == '/' ? 0 : strlen(r->folder);
    char *out = tide_gate_arena_take(r->arena, n + strlen(path) + 1);
    if (out == NULL) return TIDE__GATE_NO_MEMORY(r);
    memcpy(out, r->folder, n);
    memcpy(out + n, path, strlen(path));
    *joined = out;
    return TIDE_OK;
}

// ---- patterns ----

static bool has_wildcards(const char *text) { return strpbrk(text, "*?[") != NULL; }

static bool is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool is_there(const char *path) {
    struct stat info;
    return stat(path, &info) == 0;
}

tide_status tide__gate_pattern_check(const tide__gate_reader *r, const tide_gate_node *n, const char *pattern) {
    size_t stars = 0;
    for (const char *p = pattern; *p != '\0'; p++) stars += *p == '*';
    if (strstr(pattern, "**") != NULL) {
        const tide_status st = tide__gate_bad(r, n, "'%.128s': '**' is not known here", pattern);
        tide_error_hint(r->err, "'*' stands for one folder or file name: models/*/*.onnx");
        return st;
    }
    if (strlen(pattern) > MAX_PATTERN_BYTES || stars > MAX_STARS)
        return tide__gate_bad(r, n, "'%.64s…' is too long for a pattern, or has more than %d stars", pattern,
                              MAX_STARS);
    return TIDE_OK;
}

/// Appends the folder, with its special characters escaped, and the pattern.
static void make_whole(const tide__gate_reader *r, const char *pattern, tide_text *out) {
    for (const char *p = pattern[0] != '/' ? r->folder : ""; *p != '\0'; p++) {
        if (strchr("*?[\\", *p) != NULL) tide_text_add(out, "\\");
        tide_text_add_n(out, p, 1);
    }
    tide_text_add(out, pattern);
}

/// A folder that cannot be read is an error: its files would silently not be measured.
static int stop_at(const char *path, int why) {
    (void)path;
    return why != ENOENT && why != ENOTDIR;
}

static int by_bytes(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static tide_status keep_found(const tide__gate_reader *r, const char *pattern, glob_t *found, const char *const **out,
                              size_t *n_out) {
    const size_t skip = pattern[0] != '/' ? strlen(r->folder) : 0;
    const char **kept = tide_gate_arena_take(r->arena, (found->gl_pathc + 1) * sizeof *kept);
    if (kept == NULL) return TIDE__GATE_NO_MEMORY(r);
    size_t n_kept = 0;
    if (found->gl_pathc > 0) qsort(found->gl_pathv, found->gl_pathc, sizeof *found->gl_pathv, by_bytes);
    for (size_t i = 0; i < found->gl_pathc; i++) {
        if (is_folder(found->gl_pathv[i])) continue;
        TIDE_TRY(tide__gate_keep(r, found->gl_pathv[i] + skip, &kept[n_kept++]));
    }
    *out = kept;
    *n_out = n_kept;
    return TIDE_OK;
}

static tide_status find(const tide__gate_reader *r, const tide_gate_node *n, const char *pattern,
                        const char *const **out, size_t *n_out) {
    tide_text whole = {0};
    make_whole(r, pattern, &whole);
    glob_t found = {0};
    const int code = whole.failed ? GLOB_NOSPACE : glob(whole.data, GLOB_NOSORT, stop_at, &found);
    tide_status st;
    if (code == GLOB_NOSPACE)
        st = TIDE__GATE_NO_MEMORY(r);
    else if (code == GLOB_ABORTED)
        st = tide__gate_bad(r, n, "'%.200s': cannot read a folder: %s", pattern, strerror(errno));
    else
        st = keep_found(r, pattern, &found, out, n_out);
    globfree(&found);
    tide_text_deinit(&whole);
    return st;
}

tide_status tide__gate_glob(const tide__gate_reader *r, const tide_gate_node *n, const char *pattern,
                            const char *const **out, size_t *n_out) {
    const char *clean, *whole;
    TIDE_TRY(tide__gate_clean_path(r, pattern, &clean));
    TIDE_TRY(tide__gate_join(r, clean, &whole));
    if (is_folder(whole)) {
        const tide_status st = tide__gate_bad(r, n, "'%.256s' is a folder", clean);
        tide_error_hint(r->err, "name the files in it: \"%.128s/*.onnx\"", clean);
        return st;
    }
    if (has_wildcards(clean) && !is_there(whole)) {
        TIDE_TRY(tide__gate_pattern_check(r, n, clean));
        return find(r, n, clean, out, n_out);
    }
    const char **kept = tide_gate_arena_take(r->arena, sizeof *kept);
    if (kept == NULL) return TIDE__GATE_NO_MEMORY(r);
    kept[0] = clean;
    *out = kept;
    *n_out = 1;
    return TIDE_OK;
}
