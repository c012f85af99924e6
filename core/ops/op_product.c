// SPDX-License-Identifier: MIT
//
// How two operands make a product of matrices: vectors, batches that broadcast. See op_util.h.
#include "core/ops/op_util.h"

static tide_shape batch_of(const tide_shape *s) {
    tide_shape r = {.rank = s->rank > 2 ? s->rank - 2 : 0};
    for (int32_t i = 0; i < r.rank; i++) r.dims[i] = s->dims[i];
    return r;
}

static tide_shape lead_with_ones(const tide_shape *s, int32_t rank) {
    tide_shape r = {.rank = rank};
    for (int32_t i = 0; i < rank; i++) r.dims[i] = i < rank - s->rank ? 1 : s->dims[i - (rank - s->rank)];
    return r;
}

tide_status tide_op_product(const tide_node *node, const tide_shape *a, const tide_shape *b, tide_product *p,
                            tide_error *err) {
    p->a_vector = a->rank == 1;
    p->b_vector = b->rank == 1;
    p->m = p->a_vector ? 1 : a->dims[a->rank - 2];
    p->k = a->dims[a->rank - 1];
    p->n = p->b_vector ? 1 : b->dims[b->rank - 1];
    const int64_t b_k = b->dims[p->b_vector ? 0 : b->rank - 2];
    if (p->k != b_k) {
        char as[192], bs[192];
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "A is %s, B is %s: the inner extents must be equal",
                            tide_shape_format(a, as, sizeof as), tide_shape_format(b, bs, sizeof bs));
    }
    const tide_shape ab = batch_of(a), bb = batch_of(b);
    TIDE_TRY(tide_op_broadcast(node, &ab, &bb, &p->out, err));
    p->a = lead_with_ones(&ab, p->out.rank);
    p->b = lead_with_ones(&bb, p->out.rank);
    return TIDE_OK;
}

tide_status tide_op_set_product(const tide_infer *x, tide_dtype dtype, const tide_product *p, tide_error *err) {
    tide_shape s = p->out;
    if (!p->a_vector) s.dims[s.rank++] = p->m;
    if (!p->b_vector) s.dims[s.rank++] = p->n;
    return tide_op_set_out(x, 0, dtype, s.rank, s.dims, err);
}
