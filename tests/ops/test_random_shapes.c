// SPDX-License-Identifier: MIT
//
// Every row of the operator table on operands and attributes that are drawn, most of which make no sense: inference
// says so and names the node, or its answer can be counted; on small ones, empty ones among them, the kernel runs too,
// in memory of exactly the size that it was told. What is read or written beside it, and numbers that wrap, are seen by
// the sanitizers.
#include "one_op.h"

enum { N_LARGE = 400, N_SMALL = 400, N_FORMS = 20000, MOST_BYTES = 1 << 16 };

static const char *const names[] = {"axis",
                                    "axes",
                                    "kernel_shape",
                                    "strides",
                                    "pads",
                                    "dilations",
                                    "group",
                                    "perm",
                                    "to",
                                    "num_heads",
                                    "q_num_heads",
                                    "kv_num_heads",
                                    "hidden_size",
                                    "blocksize",
                                    "k",
                                    "size",
                                    "batch_dims",
                                    "output_shape",
                                    "split",
                                    "qkv_hidden_sizes",
                                    "interleaved",
                                    "rotary_embedding_dim",
                                    "pooled_shape",
                                    "keepdims",
                                    "is_causal",
                                    "unidirectional",
                                    "onesided",
                                    "inverse",
                                    "storage_order",
                                    "transA",
                                    "transB",
                                    "transBatchA",
                                    "qk_matmul_output_mode",
                                    "training_mode",
                                    "min_gram_length",
                                    "max_gram_length",
                                    "ngram_counts",
                                    "ngram_indexes",
                                    "pool_int64s",
                                    "ceil_mode",
                                    "starts",
                                    "ends",
                                    "repeats",
                                    "output_datatype",
                                    "num_outputs"};
static const tide_dtype dtypes[] = {TIDE_F32, TIDE_F32,  TIDE_F32, TIDE_I64, TIDE_I64,
                                    TIDE_I32, TIDE_BOOL, TIDE_U8,  TIDE_F16};

static int64_t draw_number(tide_rng *rng, bool large) {
    static const int64_t few[] = {0, 1, 1, 2, 2, 3, 4, -1};
    static const int64_t many[] = {
        0,         1,         2,  3, 5, INT64_C(1) << 31, (INT64_C(1) << 32) + 1, INT64_C(1) << 40, INT64_C(1) << 62,
        INT64_MAX, INT64_MIN, -1, -2};
    return large ? many[tide_rng_below(rng, sizeof many / sizeof *many)]
                 : few[tide_rng_below(rng, sizeof few / sizeof *few)];
}

static void draw_attributes(one_op *o, tide_rng *rng, bool large) {
    const uint64_t n = tide_rng_below(rng, 5);
    for (uint64_t i = 0; i < n; i++) {
        const char *name = names[tide_rng_below(rng, sizeof names / sizeof *names)];
        int64_t list[6];
        for (int k = 0; k < 6; k++) list[k] = draw_number(rng, large);
        if (tide_node_attr(&o->node, name) != NULL) continue;
        if (tide_rng_below(rng, 2) == 0)
            one_int(o, name, list[0]);
        else
            one_ints(o, name, tide_rng_below(rng, 7), list);
    }
}

/// A shape that an operand can have: its bytes fit, and so would those of the extents that are not 0.
static tide_shape draw_shape(tide_rng *rng, bool large) {
    tide_shape s = {.rank = (int32_t)tide_rng_below(rng, 6)};
    int64_t n = 1;
    for (int32_t d = 0; d < s.rank; d++) {
        int64_t extent = draw_number(rng, large && tide_rng_below(rng, 3) == 0);
        if (extent < 0 || (extent > 0 && n > INT64_MAX / 16 / extent)) extent = 1;
        s.dims[d] = extent;
        n *= extent > 0 ? extent : 1;
    }
    return s;
}

/// The operand has content where it is small; in exactly its bytes.
static void draw_input(one_op *o, size_t i, tide_rng *rng, bool large) {
    const bool as_first = i > 0 && tide_rng_below(rng, 3) == 0;
    const tide_dtype dtype = dtypes[tide_rng_below(rng, sizeof dtypes / sizeof *dtypes)];
    one_in(o, i, as_first && tide_operand_present(&o->in[0]) ? o->in[0].dtype : dtype,
           as_first ? o->in[0].shape : draw_shape(rng, large), NULL);
    if (o->in[i].size_bytes > MOST_BYTES || (large && tide_rng_below(rng, 2) == 0)) return;
    o->in[i].data = malloc(o->in[i].size_bytes + (o->in[i].size_bytes == 0));
    assert_non_null(o->in[i].data);
    const int64_t n = tide_op_numel(&o->in[i].shape);
    for (int64_t k = 0; k < n; k++) {
        const int64_t v = draw_number(rng, large);
        tide_data_store_f64(o->in[i].dtype, o->in[i].data, k,
                            o->in[i].dtype == TIDE_BOOL ? (double)(v & 1) : (double)v);
    }
}

static bool all_have_content(const one_op *o) {
    for (size_t i = 0; i < o->node.n_inputs; i++)
        if (tide_operand_present(&o->in[i]) && o->in[i].data == NULL) return false;
    return true;
}

static void assert_named(const one_op *o, const char *when) {
    if (strstr(o->err.msg, "the_node") == NULL)
        fail_msg("%s (%s) does not name the node: %s", o->node.op_type, when, o->err.msg);
}

static void free_outputs(one_op *o) {
    for (size_t i = 0; i < o->node.n_outputs; i++) free(o->out[i].data);
}

/// Prepare and run, in memory of exactly the right size.
static void run_exactly(one_op *o) {
    const tide_op_def *def = o->node.def;
    tide_kernel k = {.def = def, .node = &o->node};
    const tide_prepare x = {&o->node, o->in, o->node.n_inputs, o->out, o->node.n_outputs};
    if (def->prepare != NULL && def->prepare(&x, &k, &o->err) != TIDE_OK) {
        assert_named(o, "prepare");
        return;
    }
    void *exec = NULL, *work = NULL;
    if (def->exec_create != NULL) assert_tide_ok(def->exec_create(&k, &exec, &o->err), &o->err);
    if (k.workspace_bytes > 0 && posix_memalign(&work, 64, k.workspace_bytes) != 0) fail_msg("no memory");
    for (size_t i = 0; i < o->node.n_outputs; i++)
        if (o->out[i].size_bytes > 0) assert_non_null(o->out[i].data = malloc(o->out[i].size_bytes));
    const tide_kernel_args args = {o->in, o->node.n_inputs, o->out, o->node.n_outputs, exec, work};
    if (def->run(&k, &args, &o->err) != TIDE_OK) assert_named(o, "run");
    free_outputs(o);
    free(work);
    if (def->exec_destroy != NULL && exec != NULL) def->exec_destroy(&k, exec);
    if (def->destroy != NULL) def->destroy(&k);
}

static bool outputs_are_small(one_op *o) {
    for (size_t i = 0; i < o->node.n_outputs; i++)
        if (o->out[i].size_bytes > MOST_BYTES) return false;
    return true;
}

static void try_draw(const tide_op_def *def, tide_rng *rng, bool large) {
    one_op o;
    const size_t most = def->max_inputs != 0 ? def->max_inputs : def->min_inputs + 3;
    const size_t n_in = def->min_inputs + tide_rng_below(rng, most - def->min_inputs + 1);
    const size_t most_out = def->max_outputs != 0 ? def->max_outputs : def->min_outputs + 3;
    const size_t n_out = def->min_outputs + tide_rng_below(rng, most_out - def->min_outputs + 1);
    one_begin_in(&o, def->domain, def->name,
                 def->until != 0   ? def->until
                 : def->since < 13 ? 13
                                   : def->since,
                 n_in, n_out);
    draw_attributes(&o, rng, large);
    for (size_t i = 0; i < n_in; i++) {
        draw_input(&o, i, rng, large);
        if (i >= def->min_inputs && tide_rng_below(rng, 4) == 0) {
            free(o.in[i].data);
            o.in[i] = (tide_operand){0};
        }
    }
    if (one_infer(&o) != TIDE_OK)
        assert_named(&o, "infer");
    else if (!large && def->run != NULL && all_have_content(&o) && outputs_are_small(&o))
        run_exactly(&o);
    for (size_t i = 0; i < n_in; i++) free(o.in[i].data);
    one_end(&o);
}

static void test_whatever_is_asked(void **state) {
    (void)state;
    const tide_op_def *const *table;
    const size_t n = tide_op_table(&table);
    for (size_t r = 0; r < n; r++) {
        tide_rng rng = {r};
        for (int t = 0; t < N_LARGE; t++) try_draw(table[r], &rng, true);
        for (int t = 0; t < N_SMALL; t++) try_draw(table[r], &rng, false);
    }
}

// ---- shapes that fit together, of extents that may be anything ----

/// An upper-case letter is an extent; the same letter is the same extent. "i64:" and so on is the type.
static const struct {
    const char *domain, *op;
    int opset;
    const char *in, *attrs;
} forms[] = {
    {"", "Attention", 24, "BxHxSxD BxHxTxD BxHxTxE", ""},
    {"", "Attention", 24, "BxHxSxD BxKxTxD BxKxTxE - BxKxPxD BxKxPxE", "is_causal=1"},
    {"", "Attention", 24, "BxSxD BxTxD BxTxE", "q_num_heads=1 kv_num_heads=1"},
    {"", "Attention", 24, "BxSxD BxTxE BxTxE", "q_num_heads=H kv_num_heads=K"},
    {"", "Attention", 24, "BxHxSxD BxHxTxD BxHxTxE SxM", ""},
    {"com.microsoft", "Attention", 1, "BxSxI IxC C", "num_heads=1"},
    {"com.microsoft", "Attention", 1, "BxSxI IxC C - 2xBxHxPxD", "num_heads=H"},
    {"com.microsoft", "Attention", 1, "BxSxI IxC", "num_heads=1 qkv_hidden_sizes=[D,D,E]"},
    {"com.microsoft", "SkipLayerNormalization", 1, "BxSxI BxSxI I I I", ""},
    {"com.microsoft", "SkipLayerNormalization", 1, "BxSxI SxI I", ""},
    {"com.microsoft", "EmbedLayerNormalization", 1, "i32:BxS - WxI PxI - I I", ""},
    {"com.microsoft", "FastGelu", 1, "BxSxI I", ""},
    {"com.microsoft", "FusedMatMul", 1, "BxSxI BxIxC", ""},
    {"com.microsoft", "FusedMatMul", 1, "SxBxI IxBxC", "transBatchA=1 transBatchB=1"},
    {"", "RMSNormalization", 23, "BxSxI SxI", "axis=1"},
    {"", "RotaryEmbedding", 23, "BxSxI BxSxC BxSxC", "num_heads=H"},
    {"", "RotaryEmbedding", 23, "BxHxSxI PxC PxC i64:BxS", ""},
    {"", "TensorScatter", 24, "BxHxTxD BxHxSxD i64:B", ""},
    {"", "DFT", 17, "BxSx1", ""},
    {"", "DFT", 17, "BxSx2", "inverse=1"},
    {"", "MaxPool", 12, "BxCxSxI", "kernel_shape=[K,K] pads=[P,P,P,P]"},
    {"", "MaxUnpool", 11, "BxCxSxI i64:BxCxSxI", "kernel_shape=[K,K] strides=[T,T] pads=[P,P,P,P]"},
    {"", "MeanVarianceNormalization", 13, "BxCxSxI", ""},
    {"", "TopK", 1, "BxSxI", "k=K"},
    {"", "BatchNormalization", 15, "BxCxS C C C C", "training_mode=1"},
    {"ai.onnx.preview.training", "Momentum", 1, "1 i64:1 BxS BxS BxS", ""},
};

/// The number that a word begins with, or that its letter stands for. @return what is behind it
static const char *read_number(const char *text, const int64_t *letters, int64_t *out) {
    char *end;
    if (*text >= 'A' && *text <= 'Z') {
        *out = letters[*text - 'A'];
        return text + 1;
    }
    *out = strtoll(text, &end, 10);
    return end;
}

/// @return false: no operand can have that many elements
static bool form_input(one_op *o, size_t i, const char *text, const int64_t *letters) {
    tide_shape s = {0};
    tide_dtype dtype = TIDE_F32;
    if (*text == '-') return true;
    if (*text == 'i') dtype = text[1] == '3' ? TIDE_I32 : TIDE_I64;
    if (*text == 'i') text += 4;
    for (int64_t n = 1; *text != ' ' && *text != '\0'; text += *text == 'x') {
        text = read_number(text, letters, &s.dims[s.rank]);
        const int64_t extent = s.dims[s.rank++];
        if (extent < 0 || (extent > 0 && n > INT64_MAX / 16 / extent)) return false;
        n *= extent > 0 ? extent : 1;
    }
    one_in(o, i, dtype, s, NULL);
    return true;
}

static void form_attribute(one_op *o, const char *text, const int64_t *letters) {
    char name[32];
    const size_t n = strcspn(text, "=");
    int64_t list[4];
    size_t count = 0;
    snprintf(name, sizeof name, "%.*s", (int)n, text);
    const bool is_list = text[n + 1] == '[';
    for (text += n + 1 + is_list; *text != ' ' && *text != ']' && *text != '\0'; text += *text == ',')
        text = read_number(text, letters, &list[count++]);
    if (is_list)
        one_ints(o, name, count, list);
    else
        one_int(o, name, list[0]);
}

static const char *next_word(const char *text) {
    text += strcspn(text, " ");
    return text + (*text == ' ');
}

static void try_form(size_t f, tide_rng *rng) {
    int64_t letters[26];
    size_t n_in = 0;
    bool fits = true;
    one_op o;
    for (int i = 0; i < 26; i++) letters[i] = draw_number(rng, tide_rng_below(rng, 3) == 0);
    for (const char *w = forms[f].in; *w != '\0'; w = next_word(w)) n_in++;
    one_begin_in(&o, forms[f].domain, forms[f].op, forms[f].opset, n_in, 1);
    if (strcmp(forms[f].op, "Momentum") == 0) o.node.n_outputs = 2;
    n_in = 0;
    for (const char *w = forms[f].in; *w != '\0'; w = next_word(w)) fits = form_input(&o, n_in++, w, letters) && fits;
    for (const char *w = forms[f].attrs; *w != '\0'; w = next_word(w)) form_attribute(&o, w, letters);
    const tide_op_def *def = o.node.def;
    if (fits && one_infer(&o) != TIDE_OK) {
        assert_named(&o, "infer");
    } else if (fits) {
        tide_infer x = one_facts(&o);
        tide_kernel k = {.def = def, .node = &o.node};
        const tide_prepare p = {&o.node, o.in, n_in, o.out, o.node.n_outputs};
        if (def->work != NULL) assert_true(def->work(&x) >= 0);
        if (def->prepare != NULL && def->prepare(&p, &k, &o.err) != TIDE_OK) assert_named(&o, "prepare");
        if (def->destroy != NULL) def->destroy(&k);
    }
    one_end(&o);
}

static void test_shapes_that_fit_together(void **state) {
    (void)state;
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        tide_rng rng = {f};
        for (int t = 0; t < N_FORMS; t++) try_form(f, &rng);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_whatever_is_asked),
        tide_unit_test(test_shapes_that_fit_together),
    };
    return cmocka_run_group_tests_name("random shapes", tests, NULL, NULL);
}
