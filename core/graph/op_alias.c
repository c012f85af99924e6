// SPDX-License-Identifier: MIT
//
// Questions to an operator's row about memory: may an operand lie inside another one, may the output overwrite an
// input. Asked by the planner's alias passes and, of every plan again, by the runtime. See op_def.h.
#include "core/graph/op_def.h"

/// Bytes of an operand as its dtype and shape say: 0 where it is absent, unknown or without elements.
static uint64_t bytes_of(const tide_operand *o) {
    size_t bytes;
    if (!tide_operand_present(o) || !tide_shape_known(&o->shape)) return 0;
    return tide_shape_bytes(&o->shape, o->dtype, &bytes, NULL) == TIDE_OK ? bytes : 0;
}

static const tide_op_alias none = {TIDE_OP_ALIAS_NONE, 0};

tide_op_alias tide_op_alias_of(const tide_op_def *def, const tide_infer *x, size_t in_i, size_t out_i) {
    if (in_i >= x->n_in || out_i >= x->n_out) return none;
    const uint64_t in = bytes_of(&x->in[in_i]), out = bytes_of(&x->out[out_i]);
    if (in == 0 || out == 0) return none;
    tide_op_alias a = none;
    if (def->alias != NULL)
        a = def->alias(x, in_i, out_i);
    else if ((def->flags & TIDE_OP_VIEW) != 0 && in_i == 0 && out_i == 0)
        a.kind = TIDE_OP_ALIAS_VIEW;
    // Whatever a row says: a stretch ends inside its whole.
    switch (a.kind) {
    case TIDE_OP_ALIAS_VIEW:
        return in == out && a.offset_bytes == 0 ? a : none;
    case TIDE_OP_ALIAS_PART:
        return in <= out && a.offset_bytes <= out - in ? a : none;
    case TIDE_OP_ALIAS_SLICE:
        return out <= in && a.offset_bytes <= in - out ? a : none;
    case TIDE_OP_ALIAS_NEXT: // no operator's
    case TIDE_OP_ALIAS_NONE:
        break;
    }
    return none;
}

bool tide_op_may_overwrite(const tide_op_def *def, const tide_infer *x, size_t in_i) {
    if (in_i >= 32 || in_i >= x->n_in || x->n_out == 0 || (def->inplace_inputs >> in_i & 1u) == 0) return false;
    const tide_operand *in = &x->in[in_i], *out = &x->out[0];
    const uint64_t bytes = bytes_of(in);
    if (bytes == 0 || bytes_of(out) == 0) return false;
    if (def->overwrites != NULL) return bytes_of(out) <= bytes && def->overwrites(x, in_i);
    // Of the same bytes, two floats that are compared with eight others and the eight bools that come of it are too:
    // element by element they are not, and the last bools would be made of the first.
    return bytes == bytes_of(out) && tide_dtype_size(in->dtype) == tide_dtype_size(out->dtype);
}
