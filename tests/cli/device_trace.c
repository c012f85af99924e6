// SPDX-License-Identifier: MIT
//
// Traces with devices, for device_memory.py and for looking at:
//
//     device_trace program TRACE    a training program with libraries beside its allocator
//     device_trace blind TRACE      the same, and the driver was never asked
//     device_trace SEED TRACE       two devices at random
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/status.h"
#include "tests/analysis/device_events.h"

static tide_status record(const char *path, const char *what, tide_error *err) {
    tide_recorder *recorder = NULL;
    device_events d = {.now_ns = 1000 * DEVICE_MS};
    const tide_recorder_options opt = {.now = device_now, .now_ctx = &d};
    TIDE_TRY(tide_recorder_open(path, &opt, &recorder, err));
    d.to = tide_recorder_observer(recorder);
    if (what[0] == 'p' || what[0] == 'b')
        device_program(&d, what[0] == 'p');
    else
        device_at_random(&d, strtoull(what, NULL, 10), 600);
    return tide_recorder_close(recorder, err);
}

int main(int argc, char **argv) {
    tide_error err = TIDE_ERROR_INIT;
    if (argc != 3) return 2;
    if (record(argv[2], argv[1], &err) == TIDE_OK) return 0;
    fprintf(stderr, "%s\n", err.msg);
    return 1;
}
