// SPDX-License-Identifier: MIT
//
// How far two tensors are apart. See compare.h.
#include "core/tensor/compare.h"

#include <math.h>
#include <string.h>

#include "core/tensor/half.h"

/// Element `i` as a number; every dtype fits a double closely enough for a tolerance.
static double element(const void *data, tide_dtype dtype, int64_t i) {
    switch (dtype) {
    case TIDE_F32:
        return ((const float *)data)[i];
    case TIDE_F64:
        return ((const double *)data)[i];
    case TIDE_I8:
        return ((const int8_t *)data)[i];
    case TIDE_U8:
    case TIDE_BOOL:
        return ((const uint8_t *)data)[i];
    case TIDE_I16:
        return ((const int16_t *)data)[i];
    case TIDE_U16:
        return ((const uint16_t *)data)[i];
    case TIDE_I32:
        return ((const int32_t *)data)[i];
    case TIDE_U32:
        return ((const uint32_t *)data)[i];
    case TIDE_I64:
        return (double)((const int64_t *)data)[i];
    case TIDE_U64:
        return (double)((const uint64_t *)data)[i];
    case TIDE_F16:
        return (double)tide_f16_to_f32(((const uint16_t *)data)[i]);
    case TIDE_BF16:
        return (double)tide_bf16_to_f32(((const uint16_t *)data)[i]);
    case TIDE_DTYPE_UNDEFINED:
        break;
    }
    return NAN;
}

static void compare_element(tide_tensor_diff *d, int64_t i, double got, double want, double rtol, double atol) {
    if (got == want || (isnan(got) && isnan(want))) return;
    const double apart = fabs(got - want);
    if (apart > d->max_abs || isnan(apart)) d->max_abs = apart;
    if (want != 0.0 && (apart / fabs(want) > d->max_rel || isnan(apart))) d->max_rel = apart / fabs(want);
    // A tolerance relative to infinity would accept anything; NaN fails the comparison by itself.
    if (isfinite(want) && apart <= atol + rtol * fabs(want)) return;
    if (d->n_failed++ == 0) d->first_failed = i;
}

static bool is_readable(const tide_tensor *t, const void *data) {
    return data != NULL && tide_tensor_is_contiguous(t) && tide_tensor_device(t).type == TIDE_DEVICE_CPU;
}

tide_status tide_tensor_compare(const tide_tensor *got, const tide_tensor *want, double rtol, double atol,
                                tide_tensor_diff *out, tide_error *err) {
    const tide_dtype dtype = tide_tensor_dtype(got);
    if (dtype != tide_tensor_dtype(want) || !tide_shape_equal(tide_tensor_shape(got), tide_tensor_shape(want))) {
        char a[192], b[192];
        return TIDE_FAIL(err, TIDE_ERR_INCOMPARABLE, "%s%s is not comparable with %s%s", tide_dtype_name(dtype),
                         tide_shape_format(tide_tensor_shape(got), a, sizeof a),
                         tide_dtype_name(tide_tensor_dtype(want)),
                         tide_shape_format(tide_tensor_shape(want), b, sizeof b));
    }
    int64_t n;
    TIDE_TRY(tide_shape_numel(tide_tensor_shape(got), &n, err));
    const void *a, *b;
    TIDE_TRY(tide_tensor_read(got, &a, err));
    TIDE_TRY(tide_tensor_read(want, &b, err));
    if (n > 0 && (!is_readable(got, a) || !is_readable(want, b)))
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "only contiguous tensors with memory of the CPU can be compared");
    tide_tensor_diff d = {.first_failed = -1, .bitwise_equal = true};
    if (n > 0) d.bitwise_equal = memcmp(a, b, tide_tensor_size_bytes(got)) == 0;
    if (!d.bitwise_equal) {
        for (int64_t i = 0; i < n; i++) compare_element(&d, i, element(a, dtype, i), element(b, dtype, i), rtol, atol);
    }
    d.pass = d.n_failed == 0;
    *out = d;
    return TIDE_OK;
}
