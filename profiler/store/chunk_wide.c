// SPDX-License-Identifier: MIT
//
// Events to bytes, an event at once, for processors with AVX-512 (VBMI2: Ice Lake, Zen 4 and later). The eight numbers
// of an event lie side by side in one register, as many bytes of each as it needs are marked, and one instruction packs
// them:
//
//     number   | time            | block           | requested  ...
//     bytes    | 2d 0 0 0 0 0 0 0 | 8e 1f 0 0 0 0 0 0 | ...
//     marked   | 1  0 0 0 0 0 0 0 | 1  1  0 0 0 0 0 0 | ...
//     packed   | 2d 8e 1f ...
//
// Byte for byte what chunk.c makes; see there and chunk.h.
#include "profiler/store/chunk_internal.h"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))

#include <immintrin.h>
#include <stddef.h>

#define WIDE                                                                                                           \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512cd,avx512dq,avx512vbmi,avx512vbmi2,bmi,bmi2,lzcnt,"         \
                          "popcnt")))

/// Places in the register.
enum { TIME, BLOCK, REQUESTED, RESERVED, ADDRESS, TAG, SCOPE, THREAD };

// From t_ns on an event has its numbers side by side, in this order.
_Static_assert(offsetof(tide__event, t_ns) == 8 && offsetof(tide__event, block_id) == 16 &&
                   offsetof(tide__event, requested_bytes) == 24 && offsetof(tide__event, reserved_bytes) == 32 &&
                   offsetof(tide__event, address) == 40 && offsetof(tide__event, thread) == 60 &&
                   offsetof(tide__event, scope_id) == 64 && offsetof(tide__event, tag_id) == 68 &&
                   offsetof(tide__event, allocator_id) == 72 && offsetof(tide__event, device) == 76 &&
                   offsetof(tide__event, op) == 78 && offsetof(tide__event, kind) == 79,
               "numbers_of takes them from there");

bool tide__chunk_can_wide(void) {
    return __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512vbmi") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("bmi2");
}

WIDE static inline __m512i numbers_of(const tide__event *e) {
    const __m512i wanted = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 0, 14, 0, 13, 0);
    return _mm512_maskz_permutexvar_epi32(0x57ff, wanted, _mm512_loadu_si512(&e->t_ns));
}

/// Allocator, device, operation and kind.
WIDE static inline uint64_t names_of(const tide__event *e) {
    uint64_t v;
    memcpy(&v, &e->allocator_id, sizeof v);
    return v;
}

/// Number of bytes by what is needed: of wide numbers (0 to 8) and, from place 9 on, of narrow ones (0 to 4).
#define LENGTHS 0, 1, 2, 3, 4, 5, 6, 8, 8, 0, 1, 2, 4, 4, 0, 0
#define CODES 0, 1, 2, 3, 4, 5, 6, 7, 7, 0, 1, 2, 3, 3, 0, 0
#define FOUR_TIMES(...) __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__

WIDE static inline uint8_t *put_event(tide__chunk_encoder *c, uint8_t *p, const tide__event *e, size_t back) {
    static const uint8_t lengths[64] = {FOUR_TIMES(LENGTHS)}, codes[64] = {FOUR_TIMES(CODES)};
    const tide__event *before = c->before, *base = back != 0 ? e - back : c->of_class[tide__chunk_class(e->op)];
    const __m512i now = numbers_of(e), of_base = numbers_of(base);
    // What each number is counted from.
    __m512i from = _mm512_mask_mov_epi64(of_base, 1 << TIME | 1 << SCOPE | 1 << THREAD, numbers_of(before));
    const uint64_t block = tide__chunk_predicted(e->op, back != 0, base, c->last_alloc);
    const uint64_t reserved = tide__chunk_rounded_up((uint64_t)e->requested_bytes, c->reserved_shift);
    from = _mm512_mask_set1_epi64(from, 1 << BLOCK, (long long)block);
    from = _mm512_mask_set1_epi64(from, 1 << RESERVED, (long long)reserved);
    from = _mm512_mask_set1_epi64(from, 1 << REQUESTED, 0);
    const __m512i shifts = _mm512_maskz_set1_epi64(1 << ADDRESS, c->address_shift);
    const __m512i far = _mm512_srav_epi64(_mm512_sub_epi64(now, from), shifts);
    __m512i v = _mm512_mask_xor_epi64(far, 0xff & ~(1 << TIME | 1 << REQUESTED), _mm512_slli_epi64(far, 1),
                                      _mm512_srai_epi64(far, 63));
    // Requested bytes that are those of the base are left out; others take a byte at least.
    const __mmask8 resized = _mm512_mask_cmpneq_epi64_mask(1 << REQUESTED, now, of_base);
    v = _mm512_mask_mov_epi64(v, (__mmask8)(1 << REQUESTED & ~resized), _mm512_setzero_si512());
    __m512i n = _mm512_srli_epi64(_mm512_sub_epi64(_mm512_set1_epi64(71), _mm512_lzcnt_epi64(v)), 3);
    n = _mm512_mask_max_epu64(n, resized, n, _mm512_set1_epi64(1));
    n = _mm512_mask_add_epi64(n, 1 << TAG | 1 << SCOPE | 1 << THREAD, n, _mm512_set1_epi64(9));
    const __m512i places =
        _mm512_setr_epi64(TIDE__CHUNK_TIME_AT, TIDE__CHUNK_BLOCK_AT, TIDE__CHUNK_REQUESTED_AT, TIDE__CHUNK_RESERVED_AT,
                          TIDE__CHUNK_ADDRESS_AT, TIDE__CHUNK_TAG_AT, TIDE__CHUNK_SCOPE_AT, TIDE__CHUNK_THREAD_AT);
    const __m512i code = _mm512_sllv_epi64(_mm512_shuffle_epi8(_mm512_loadu_si512(codes), n), places);
    // The number of bytes in each byte of its number, against 0 to 7.
    const __m512i length = _mm512_shuffle_epi8(_mm512_shuffle_epi8(_mm512_loadu_si512(lengths), n),
                                               _mm512_set4_epi32(0x08080808, 0x08080808, 0, 0));
    const __mmask64 marked = _mm512_cmplt_epu8_mask(_mm512_set1_epi64(0x0706050403020100), length);

    const unsigned n_back = (unsigned)(back > 0) + (unsigned)(back > 0xff);
    uint32_t head = e->op | n_back << TIDE__CHUNK_BASE_AT | (uint32_t)_mm512_reduce_or_epi64(code);
    uint8_t *const at = p;
    tide__put_le64(at + 4, back);
    p += 4 + n_back;
    _mm512_storeu_si512(p, _mm512_maskz_compress_epi8(marked, v));
    p += __builtin_popcountll(marked);
    const uint64_t other = names_of(e) ^ names_of(base);
    if (__builtin_expect(
            (other << 16 | (uint64_t)(e->stream ^ base->stream) | (uint32_t)(e->run_id ^ before->run_id)) != 0, 0)) {
        head |= TIDE__CHUNK_HAS_OTHERS;
        p = tide__chunk_put_others(p, e, base, before);
    } else {
        const unsigned other_kind = other >> 56 != 0;
        p[0] = TIDE__CHUNK_OTHER_KIND;
        p[1] = e->kind;
        p += 2 * other_kind;
        head |= other_kind * TIDE__CHUNK_HAS_OTHERS;
    }
    memcpy(at, &head, sizeof head);
    c->last_alloc = e->op == TIDE_MEM_ALLOC ? (uint64_t)e->block_id : c->last_alloc;
    c->before = c->of_class[tide__chunk_class(e->op)] = e;
    return p;
}

WIDE uint8_t *tide__chunk_put_wide(tide__chunk_encoder *c, uint8_t *p, const tide__event *events, size_t n) {
    uint16_t seen[1 << TIDE__CHUNK_SEEN_BITS] = {0}; // index + 1 of the last event of a block
    for (size_t i = 0; i < n; i++) p = put_event(c, p, &events[i], tide__chunk_back(events, i, seen));
    return p;
}

#else

bool tide__chunk_can_wide(void) { return false; }
uint8_t *tide__chunk_put_wide(tide__chunk_encoder *c, uint8_t *p, const tide__event *events, size_t n) {
    return tide__chunk_put_plain(c, p, events, n);
}

#endif
