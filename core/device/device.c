// SPDX-License-Identifier: MIT
//
// Names of devices, and which of them this build can run on. See device.h.
#include "core/device/device.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

char *tide_device_format(tide_device device, char *buf, size_t buf_bytes) {
    switch (device.type) {
    case TIDE_DEVICE_CPU:
        snprintf(buf, buf_bytes, "cpu");
        return buf;
    case TIDE_DEVICE_CUDA:
        snprintf(buf, buf_bytes, "cuda:%" PRId32, device.index);
        return buf;
    }
    snprintf(buf, buf_bytes, "device ?");
    return buf;
}

/// One to three decimal digits and nothing else; -1 otherwise.
static int32_t parse_index(const char *text) {
    int32_t index = 0;
    size_t n = 0;
    for (; text[n] >= '0' && text[n] <= '9' && n < 3; n++) index = index * 10 + (text[n] - '0');
    return n > 0 && text[n] == '\0' ? index : -1;
}

tide_status tide_device_parse(const char *text, tide_device *out, tide_error *err) {
    tide_device device = TIDE_CPU;
    bool good = strcmp(text, "cpu") == 0;
    if (strncmp(text, "cuda", 4) == 0) {
        device.type = TIDE_DEVICE_CUDA;
        device.index = text[4] == ':' ? parse_index(text + 5) : 0;
        good = (text[4] == '\0' || text[4] == ':') && device.index >= 0;
    }
    if (!good) {
        const tide_status st = TIDE_FAIL(err, TIDE_ERR_INVALID, "'%s' is not a device", text);
        tide_error_hint(err, "write cpu, cuda or cuda:1");
        return st;
    }
    *out = device;
    return TIDE_OK;
}

tide_status tide_device_require(tide_device device, tide_error *err) {
    char name[16];
    tide_device_format(device, name, sizeof name);
    switch (device.type) {
    case TIDE_DEVICE_CPU:
        if (device.index == 0) return TIDE_OK;
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "there is one CPU device, number %" PRId32 " was asked for",
                         device.index);
    case TIDE_DEVICE_CUDA: {
        const tide_status st = TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED, "device %s is not available", name);
        tide_error_note(err, "this build has no CUDA plug-in");
        tide_error_hint(err, "run on the CPU: --device cpu");
        return st;
    }
    }
    return TIDE_FAIL(err, TIDE_ERR_INVALID, "device type %d is unknown", (int)device.type);
}
