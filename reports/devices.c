// SPDX-License-Identifier: MIT
//
// Devices of a report: where their bytes are over time, and who had them when most was in use. See gather.h.
#include "core/base/host_alloc.h"
#include "reports/gather.h"

static const char *words_of(tide_device_part_of of) {
    static const char *const words[] = {[TIDE_DEVICE_ALLOCATOR] = "allocator",
                                        [TIDE_DEVICE_API] = "outside, by function",
                                        [TIDE_DEVICE_LIBRARY] = "outside, by library"};
    return words[of];
}

static tide_status add_parts(tide_report_side *s, size_t lane, tide_moment at, tide_error *err) {
    tide_device_part *parts;
    size_t n;
    TIDE_TRY(tide_device_parts(&s->device_memory, lane, at, &parts, &n, err));
    const tide_status st = TIDE_GROW(&s->device_parts, &s->cap_device_parts, s->n_device_parts + n, err, "for devices");
    for (size_t i = 0; st == TIDE_OK && i < n; i++)
        s->device_parts[s->n_device_parts++] =
            (tide_report_device_part){.device = s->device_memory.lanes[lane].device,
                                      .of = words_of(parts[i].of),
                                      .name = parts[i].name[0] != '\0' ? parts[i].name : "(not known)",
                                      .bytes = parts[i].bytes};
    tide_host_free(parts);
    return st;
}

static tide_status add_device(tide_report_side *s, size_t i, tide_error *err) {
    const tide_subject_facts *f = s->facts;
    const tide_device_lane *lane = &s->device_memory.lanes[i];
    tide_moment at;
    const tide_device_figures peak = tide_device_peak(lane, f->begin, f->end, &at);
    s->devices[i] = (tide_device_row){lane->device, at.t, peak};
    if (f->end > f->begin)
        tide_device_columns(lane, f->begin, f->end, TIDE_REPORT_POOL_COLUMNS,
                            &s->device_columns[i * TIDE_REPORT_POOL_COLUMNS]);
    return add_parts(s, i, at, err);
}

tide_status tide_report_find_devices(tide_report_side *s, tide_error *err) {
    TIDE_TRY(tide_device_memory_make(tide_subject_trace(s->subject), NULL, &s->device_memory, err));
    const size_t n = s->device_memory.n;
    if (n == 0) return TIDE_OK;
    TIDE_TRY(TIDE_NEW(&s->devices, n, err, "for devices"));
    TIDE_TRY(TIDE_NEW(&s->device_columns, n * TIDE_REPORT_POOL_COLUMNS, err, "for devices"));
    for (size_t i = 0; i < n; i++) TIDE_TRY(add_device(s, i, err));
    return TIDE_OK;
}

void tide_report_devices_deinit(tide_report_side *s) {
    tide_device_memory_deinit(&s->device_memory);
    tide_host_free(s->device_columns);
    tide_host_free(s->devices);
    tide_host_free(s->device_parts);
}
