// SPDX-License-Identifier: MIT
//
// Contents of replayed blocks: a pattern of words that a seed decides, on the CPU by plain stores, on a device by its
// own pattern_fill and pattern_check. See replay.h.
#include <string.h>

#include "cli/replay.h"
#include "core/device/backend.h"

tide_status cli_replay_pattern_open(tide_device device, cli_replay_pattern *out, tide_error *err) {
    *out = (cli_replay_pattern){.device = device};
    if (device.type == TIDE_DEVICE_CPU) return TIDE_OK;
    void *self = NULL, *room = NULL;
    char name[32];
    const tide_device_ops *ops = tide_device_find(device, &self);
    if (ops == NULL || ops->pattern_fill == NULL || ops->pinned_alloc == NULL) {
        TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED, "contents cannot be checked on %s",
                  tide_device_format(device, name, sizeof name));
        tide_error_note(err, "the device has no calls that fill memory with a pattern and compare it");
        tide_error_hint(err, "replay without --check, or on another device");
        return TIDE_ERR_NOT_IMPLEMENTED;
    }
    TIDE_TRY(ops->pinned_alloc(self, device.index, sizeof *out->n_wrong, sizeof *out->n_wrong, &room, err));
    out->n_wrong = room;
    return TIDE_OK;
}

void cli_replay_pattern_close(cli_replay_pattern *p) {
    void *self = NULL;
    const tide_device_ops *ops = tide_device_find(p->device, &self);
    if (p->n_wrong != NULL && ops != NULL) ops->pinned_free(self, p->device.index, p->n_wrong);
    p->n_wrong = NULL;
}

/// Word `i` of a pattern (splitmix64).
static uint64_t word_at(uint64_t seed, uint64_t i) {
    uint64_t x = seed + (i + 1) * UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

static void fill_host(void *data, size_t size_bytes, uint64_t seed) {
    for (size_t at = 0; at < size_bytes; at += 8) {
        const uint64_t word = word_at(seed, at / 8);
        memcpy((char *)data + at, &word, size_bytes - at < 8 ? size_bytes - at : 8);
    }
}

static uint64_t wrong_in(const unsigned char *at, uint64_t word, size_t n) {
    unsigned char want[8];
    uint64_t n_wrong = 0;
    memcpy(want, &word, sizeof want);
    for (size_t i = 0; i < n; i++) n_wrong += at[i] != want[i];
    return n_wrong;
}

static uint64_t check_host(const void *data, size_t size_bytes, uint64_t seed) {
    const unsigned char *bytes = data;
    uint64_t n_wrong = 0;
    for (size_t at = 0; at < size_bytes; at += 8)
        n_wrong += wrong_in(bytes + at, word_at(seed, at / 8), size_bytes - at < 8 ? size_bytes - at : 8);
    return n_wrong;
}

tide_status cli_replay_pattern_fill(const cli_replay_pattern *p, tide_stream_id stream, void *data, size_t size_bytes,
                                    uint64_t seed, tide_error *err) {
    void *self = NULL;
    if (p->n_wrong != NULL)
        return tide_device_find(p->device, &self)
            ->pattern_fill(self, p->device.index, stream, data, size_bytes, seed, err);
    fill_host(data, size_bytes, seed);
    return TIDE_OK;
}

tide_status cli_replay_pattern_check(const cli_replay_pattern *p, tide_stream_id stream, const void *data,
                                     size_t size_bytes, uint64_t seed, uint64_t *n_wrong, tide_error *err) {
    void *self = NULL;
    if (p->n_wrong == NULL) {
        *n_wrong = check_host(data, size_bytes, seed);
        return TIDE_OK;
    }
    const tide_device_ops *ops = tide_device_find(p->device, &self);
    *p->n_wrong = 0;
    TIDE_TRY(ops->pattern_check(self, p->device.index, stream, data, size_bytes, seed, p->n_wrong, err));
    TIDE_TRY(tide_stream_sync(p->device, stream, err));
    *n_wrong = *p->n_wrong;
    return TIDE_OK;
}
