// SPDX-License-Identifier: MIT
//
// Names of devices, and which of them this process can run on. See device.h.
#include "core/device/device.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/device/device_internal.h"

char *tide_device_format(tide_device device, char *buf, size_t buf_bytes) {
    const char *name = tide__device_type_name(device.type);
    if (name == NULL) {
        snprintf(buf, buf_bytes, "device ?");
    } else if (device.type == TIDE_DEVICE_CPU && device.index == 0) {
        snprintf(buf, buf_bytes, "cpu");
    } else {
        snprintf(buf, buf_bytes, "%s:%" PRId32, name, device.index);
    }
    return buf;
}

/// One to three decimal digits and nothing else; -1 otherwise.
static int32_t parse_index(const char *text) {
    int32_t index = 0;
    size_t n = 0;
    for (; text[n] >= '0' && text[n] <= '9' && n < 3; n++) index = index * 10 + (text[n] - '0');
    return n > 0 && text[n] == '\0' ? index : -1;
}

/// "write cpu, cuda or cuda:1", and the names of the other types there are.
static void hint_names(tide_error *err) {
    char names[192] = "";
    size_t len = 0;
    for (int t = TIDE_DEVICE_FIRST_EXTRA; t < TIDE_MAX_DEVICE_TYPES && len < sizeof names; t++) {
        void *self;
        if (tide_device_find((tide_device){(tide_device_type)t, 0}, &self) == NULL) continue;
        len += (size_t)snprintf(names + len, sizeof names - len, ", %s", tide__device_type_name((tide_device_type)t));
    }
    tide_error_hint(err, "write cpu, cuda or cuda:1%s", names);
}

tide_status tide_device_parse(const char *text, tide_device *out, tide_error *err) {
    tide_device device = TIDE_CPU;
    const size_t n = strcspn(text, ":");
    bool good = tide__device_type_named(text, n, &device.type);
    if (good && text[n] == ':') {
        device.index = parse_index(text + n + 1);
        good = device.type != TIDE_DEVICE_CPU && device.index >= 0;
    }
    if (!good) {
        const tide_status st = TIDE_FAIL(err, TIDE_ERR_INVALID, "'%s' is not a device", text);
        hint_names(err);
        return st;
    }
    *out = device;
    return TIDE_OK;
}

static tide_status not_available(tide_device device, tide_error *err) {
    char name[32];
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED, "device %s is not available",
                                     tide_device_format(device, name, sizeof name));
    if (device.type == TIDE_DEVICE_CUDA) {
        tide_error_note(err, "no CUDA plug-in is loaded");
    } else {
        tide_error_note(err, "its backend was unregistered");
    }
    tide_error_hint(err, "run on the CPU: --device cpu");
    return st;
}

tide_status tide_device_require(tide_device device, tide_error *err) {
    const char *name = tide__device_type_name(device.type);
    if (name == NULL) return TIDE_FAIL(err, TIDE_ERR_INVALID, "device type %d is unknown", (int)device.type);
    void *self;
    const tide_device_ops *ops = tide_device_find(device, &self);
    if (ops == NULL) return not_available(device, err);
    const int32_t count = ops->count(self);
    if (device.index >= 0 && device.index < count) return TIDE_OK;
    if (count == 1) {
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "there is one %s device, number 0; number %" PRId32 " was asked for",
                         name, device.index);
    }
    return TIDE_FAIL(err, TIDE_ERR_INVALID, "there are %" PRId32 " %s devices; number %" PRId32 " was asked for", count,
                     name, device.index);
}
