// SPDX-License-Identifier: MIT
//
// Golden files: what a test makes is compared with a file of the project, byte for byte; with TIDE_UPDATE_GOLDEN=1 in
// the environment the file is recorded anew instead.
#ifndef TIDE_TESTS_GOLDEN_H
#define TIDE_TESTS_GOLDEN_H

#include "tests/tide_test.h"

#include "core/base/output.h"
#include "core/base/text.h"

/// `below` is the file's path below the project's root.
static inline void compare_with_golden(const char *below, const tide_text *got) {
    char path[512];
    tide_source_path(below, path, sizeof path);
    tide_error err = TIDE_ERROR_INIT;
    if (getenv("TIDE_UPDATE_GOLDEN") != NULL) {
        assert_tide_ok(tide_write_file(path, got->data, got->len, &err), &err);
        return;
    }
    char *want = NULL;
    size_t len = 0;
    assert_tide_ok(tide_read_file(path, 0, &want, &len, &err), &err);
    if (len != got->len || memcmp(want, got->data, len) != 0)
        fail_msg("%s differs.\n--- golden\n%s--- got\n%s", below, want, got->data);
    tide_host_free(want);
}

#endif
