// SPDX-License-Identifier: MIT
//
// The types of attributes, by their names. See attr_types.h.
#include "core/ops/attr_types.h"

#include <string.h>

#include "core/base/status.h"

/// A name means one type in all operators that are served, but for those with an operator beside them.
static const struct {
    const char *op; ///< NULL: all
    tide_attr_type type;
    const char *names; ///< with a blank before and behind each
} known[] = {
    {NULL, TIDE_ATTR_INT,
     " align_corners allowzero antialias axis batch_axis batch_dims block_size blocksize broadcast ceil_mode"
     " center_point_box count_include_pad detect_negative detect_positive dtype end exclude_outside exclusive fmod "
     "group"
     " hidden_size ignore_index input_forget is_test k keepdims layout linear_before_reset noop_with_empty_axes"
     " num_outputs output_dtype output_height output_width reverse sampling_ratio select_last_index size sorted spatial"
     " start stash_type storage_order time_axis to training_mode transA transB upper "},
    {NULL, TIDE_ATTR_FLOAT,
     " alpha beta bias clip cubic_coeff_a epsilon extrapolation_value gamma lambd max min momentum ratio"
     " spatial_scale "},
    {NULL, TIDE_ATTR_STRING,
     " approximate auto_pad coordinate_transformation_mode direction equation keep_aspect_ratio_policy mode "
     "nearest_mode"
     " padding_mode reduction "},
    {NULL, TIDE_ATTR_INTS,
     " axes dilations ends kernel_shape output_padding output_shape pads perm pooled_shape split starts strides "},
    {NULL, TIDE_ATTR_FLOATS, " activation_alpha activation_beta scales "},
    {NULL, TIDE_ATTR_STRINGS, " activations "},
    {"Pad", TIDE_ATTR_FLOAT, " value "},
    {"ConstantOfShape", TIDE_ATTR_TENSOR, " value "},
};

static const char *const type_names[] = {
    [TIDE_ATTR_INT] = "an integer",
    [TIDE_ATTR_FLOAT] = "a number",
    [TIDE_ATTR_STRING] = "a string",
    [TIDE_ATTR_INTS] = "a list of integers",
    [TIDE_ATTR_FLOATS] = "a list of numbers",
    [TIDE_ATTR_TENSOR] = "a tensor",
    [TIDE_ATTR_STRINGS] = "a list of strings",
};

static bool has_name(const char *names, const char *name) {
    char word[64];
    const int n = snprintf(word, sizeof word, " %s ", name);
    return n > 0 && (size_t)n < sizeof word && strstr(names, word) != NULL;
}

/// Graph text writes 2.0 as 2, and an empty list of anything as [].
static bool serves(const tide_attr *a, tide_attr_type want) {
    const bool is_list = a->type == TIDE_ATTR_INTS || a->type == TIDE_ATTR_FLOATS || a->type == TIDE_ATTR_STRINGS;
    const bool wants_list = want == TIDE_ATTR_INTS || want == TIDE_ATTR_FLOATS || want == TIDE_ATTR_STRINGS;
    if (a->type == want || (is_list && wants_list && a->n == 0)) return true;
    if (want == TIDE_ATTR_FLOAT) return a->type == TIDE_ATTR_INT;
    return want == TIDE_ATTR_FLOATS && a->floats != NULL;
}

static tide_status check(const tide_node *n, const tide_attr *a, tide_error *err) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].op != NULL && strcmp(known[i].op, n->op_type) != 0) continue;
        if (!has_name(known[i].names, a->name)) continue;
        if (serves(a, known[i].type)) return TIDE_OK;
        return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "%s '%s': attribute '%s' is %s, must be %s", n->op_type, n->name,
                         a->name, type_names[a->type], type_names[known[i].type]);
    }
    return TIDE_OK;
}

tide_status tide_op_check_attrs(const tide_node *n, tide_error *err) {
    if (n->domain[0] != '\0') return TIDE_OK;
    for (size_t i = 0; i < n->n_attrs; i++) TIDE_TRY(check(n, &n->attrs[i], err));
    return TIDE_OK;
}
