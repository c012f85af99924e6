// SPDX-License-Identifier: MIT
//
// HannWindow, HammingWindow and BlackmanWindow: `size` numbers, where a + b cos(2 pi i / n) + c cos(4 pi i / n), with n
// one less where they are symmetric and not periodic. One number alone, symmetric, is 1.
#include <inttypes.h>
#include <math.h>

#include "core/ops/data_util.h"
#include "core/ops/op_list.h"
#include "core/ops/op_util.h"

typedef struct cosines {
    double a, b, c;
} cosines;

static tide_status infer(const tide_infer *x, tide_error *err) {
    const int64_t type = tide_node_attr_int(x->node, "output_datatype", TIDE_F32);
    int64_t size;
    size_t n;
    if (type <= 0 || type >= TIDE_DTYPE_LIMIT || type == TIDE_BOOL || tide_dtype_size((tide_dtype)type) == 0)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_NOT_IMPLEMENTED, "output_datatype %" PRId64 " is not served", type);
    TIDE_TRY(tide_op_read_ints(x->node, &x->in[0], "size", 1, &size, &n, err));
    if (n != 1 || size < 0)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "size is %" PRId64 ", must be one number, 0 or more",
                            n == 1 ? size : 0);
    return tide_op_set_out(x, 0, (tide_dtype)type, 1, &size, err);
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    (void)err;
    const cosines *f = k->def->family;
    const int64_t size = args->out[0].shape.dims[0];
    const int64_t n = tide_node_attr_int(k->node, "periodic", 1) != 0 ? size : size - 1;
    for (int64_t i = 0; i < size; i++) {
        const double angle = 2 * 3.14159265358979323846 * (double)i / (double)n;
        const double v = f->a + f->b * cos(angle) + f->c * cos(2 * angle);
        tide_data_store_f64(args->out[0].dtype, args->out[0].data, i, n == 0 ? 1 : v);
    }
    return TIDE_OK;
}

#define ROW(row, name_, ...)                                                                                           \
    static const cosines row##_family = {__VA_ARGS__};                                                                 \
    const tide_op_def tide_op_##row = {.name = name_,                                                                  \
                                       .domain = "",                                                                   \
                                       .since = 17,                                                                    \
                                       .attrs =                                                                        \
                                           TIDE_ATTRS(TIDE_ATTR(INT, "output_datatype"), TIDE_ATTR(INT, "periodic")),  \
                                       .min_inputs = 1,                                                                \
                                       .max_inputs = 1,                                                                \
                                       .min_outputs = 1,                                                               \
                                       .max_outputs = 1,                                                               \
                                       .family = &row##_family,                                                        \
                                       .infer = infer,                                                                 \
                                       .run = run};
ROW(hann_window, "HannWindow", 0.5, -0.5, 0)
ROW(hamming_window, "HammingWindow", 25.0 / 46, -21.0 / 46, 0)
ROW(blackman_window, "BlackmanWindow", 0.42, -0.5, 0.08)
