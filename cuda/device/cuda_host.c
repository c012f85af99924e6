// SPDX-License-Identifier: MIT
//
// Functions of core/base and core/device that must be one in the process, handed on to the program. What is linked into
// the plug-in from those floors (status, map, id_table) calls these under their own names.
#include "cuda/device/cuda_host.h"

#include <stdio.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/device/backend.h"

static const tide_device_plugin_host *host;

void cuda_host_set(const tide_device_plugin_host *given) { host = given; }

uint64_t tide_device_new_id(void) { return host->new_id(); }
void *tide_host_calloc(size_t n, size_t size_bytes) { return host->calloc(n, size_bytes); }
void *tide_host_realloc(void *ptr, size_t size_bytes) { return host->realloc(ptr, size_bytes); }
void tide_host_free(void *ptr) { host->free(ptr); }

char *tide_host_strdup(const char *text) {
    const size_t n = strlen(text) + 1;
    char *copy = host->calloc(n, 1);
    if (copy != NULL) memcpy(copy, text, n);
    return copy;
}

void tide_log(tide_log_level level, const char *fmt, ...) {
    char line[600];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    host->log(level, line);
}
