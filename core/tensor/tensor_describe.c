// SPDX-License-Identifier: MIT
//
// A tensor and its storage as text, for people who look for a mistake (S28-1). See tensor.h.
#include <inttypes.h>

#include "core/tensor/tensor_internal.h"

static void add_strides(const tide_tensor *t, tide_text *out) {
    tide_text_add(out, "[");
    for (int32_t i = 0; i < t->layout.shape.rank; i++)
        tide_text_addf(out, "%s%" PRId64, i > 0 ? "," : "", t->layout.strides[i]);
    tide_text_add(out, "]");
}

static const char *form(const tide__layout *l) {
    if (!l->known) return "shape not known yet";
    if (l->contiguous) return "contiguous";
    return l->overlaps ? "strided, elements share bytes" : "strided";
}

void tide_tensor_describe(const tide_tensor *t, tide_text *out) {
    char shape[192], device[32];
    tide_text_addf(out, "tensor %s %s strides ", tide_dtype_name(t->dtype),
                   tide_shape_format(&t->layout.shape, shape, sizeof shape));
    add_strides(t, out);
    tide_text_addf(
        out, " offset %zu B, size %zu B of capacity %zu B, alignment %zu B, %s, %s, references %" PRIu32 "\n",
        t->offset_bytes, t->layout.size_bytes, tide_tensor_capacity_bytes(t),
        t->storage.block != NULL ? t->storage.block->align_bytes : (size_t)0,
        tide_device_format(t->storage.device, device, sizeof device), form(&t->layout), tide_tensor_use_count(t));
    if (t->has_storage)
        tide_storage_describe(&t->storage, out);
    else
        tide_text_addf(out, "no storage, device %s", device);
    if (out->len > 0 && out->data[out->len - 1] != '\n') tide_text_add(out, "\n");
}
