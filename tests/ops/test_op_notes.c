// SPDX-License-Identifier: MIT
//
// What tide_op_note says of each row of the table (`tidemark operators` prints it) is held against what the row does:
// operands are drawn until inference, preparation and a run have accepted them, or a budget is spent, for each type.
#include "one_op.h"

enum { N_TRIALS = 8000, ROOM = 8192 };

typedef union room {
    double align;
    unsigned char bytes[ROOM];
} room;

static room data[ONE_MAX], results[ONE_MAX];

static const tide_dtype dtypes[] = {TIDE_F32, TIDE_F64, TIDE_F16, TIDE_BF16, TIDE_I8,  TIDE_I16, TIDE_I32,
                                    TIDE_I64, TIDE_U8,  TIDE_U16, TIDE_U32,  TIDE_U64, TIDE_BOOL};
enum { N_DTYPES = sizeof dtypes / sizeof dtypes[0] };

/// Attributes without which an operator takes nothing, as "name=3 name=TEXT name=[1,2] name=0.5".
static const struct {
    const char *name, *attrs;
} needed[] = {
    {"MaxPool", "kernel_shape=[2,2]"},
    {"AveragePool", "kernel_shape=[2,2]"},
    {"MaxUnpool", "kernel_shape=[2,2]"},
    {"LRN", "size=3"},
    {"Einsum", "equation=ij->ji"},
    {"Cast", "to=1"},
    {"DepthToSpace", "blocksize=2"},
    {"SpaceToDepth", "blocksize=2"},
    {"Attention", "num_heads=1"},
    {"MultiHeadAttention", "num_heads=1"},
    {"GroupNormalization", "num_groups=1"},
    {"BitShift", "direction=LEFT"},
    {"MaxRoiPool", "pooled_shape=[1,1]"},
    {"Mod", "fmod=1"},
    {"TopK", "k=1"},
    {"MeanVarianceNormalization", "axes=[0,1]"},
    {"TfIdfVectorizer",
     "mode=TF min_gram_length=1 max_gram_length=1 pool_int64s=[1,2] ngram_counts=[0,2] ngram_indexes=[0,1]"},
};

static void add_attr(one_op *o, const char *text, size_t len) {
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)len, text);
    char *v = strchr(word, '='), *const name = word;
    *v++ = '\0';
    if (*v == '[')
        one_ints(o, name, 2, (int64_t[]){v[1] - '0', v[3] - '0'});
    else if (*v >= '0' && *v <= '9')
        one_int(o, name, *v - '0');
    else
        one_attr(o, name, TIDE_ATTR_STRING)->s = tide_host_strdup(v);
}

static void add_attrs(one_op *o, const char *text) {
    for (size_t n; *text != '\0'; text += n + (text[n] == ' ' ? 1 : 0)) add_attr(o, text, n = strcspn(text, " "));
}

static tide_shape draw_shape(tide_rng *rng, const one_op *o, size_t i) {
    static const char *const shapes[] = {"1",       "2",       "3",       "4",       "2x3",   "3x3",
                                         "1x3",     "2x2",     "1x2x3",   "1x3x4",   "2x2x2", "1x4x4x4",
                                         "1x1x4x4", "1x4x2x2", "4x4x2x2", "4x4x1x1", "2x4"};
    if (i > 0 && tide_rng_below(rng, 3) == 0) return o->in[0].shape;
    if (tide_rng_below(rng, 8) == 0) return (tide_shape){.rank = 0};
    return one_shape(shapes[tide_rng_below(rng, sizeof shapes / sizeof shapes[0])]);
}

static void draw(one_op *o, size_t i, tide_dtype dtype, tide_rng *rng) {
    one_in(o, i, dtype, draw_shape(rng, o, i), data[i].bytes);
    const int64_t n = tide_op_numel(&o->in[i].shape), most = (int64_t)tide_rng_below(rng, 4);
    for (int64_t k = 0; k < n; k++)
        tide_data_store_f64(dtype, data[i].bytes, k,
                            (double)(most > 2 ? most - 2 : (int64_t)tide_rng_below(rng, (uint64_t)most + 1)));
}

/// Prepare and run; false where one of them refuses.
static bool runs(one_op *o) {
    const tide_op_def *def = o->node.def;
    tide_kernel k = {.def = def, .node = &o->node};
    tide_operand out[ONE_MAX];
    memcpy(out, o->out, sizeof out);
    const tide_prepare x = {&o->node, o->in, o->node.n_inputs, out, o->node.n_outputs};
    if (def->prepare != NULL && def->prepare(&x, &k, &o->err) != TIDE_OK) return false;
    void *exec = NULL, *work = NULL;
    bool ok = def->exec_create == NULL || def->exec_create(&k, &exec, &o->err) == TIDE_OK;
    if (k.workspace_bytes > 0 && posix_memalign(&work, 64, k.workspace_bytes) != 0) fail_msg("no memory");
    for (size_t i = 0; i < o->node.n_outputs; i++) o->out[i].data = results[i].bytes;
    const tide_kernel_args args = {o->in, o->node.n_inputs, o->out, o->node.n_outputs, exec, work};
    ok = ok && def->run(&k, &args, &o->err) == TIDE_OK;
    free(work);
    if (def->exec_destroy != NULL && exec != NULL) def->exec_destroy(&k, exec);
    if (def->destroy != NULL) def->destroy(&k);
    return ok;
}

static bool fits(const one_op *o) {
    for (size_t i = 0; i < o->node.n_outputs; i++)
        if (o->out[i].size_bytes > ROOM) return false;
    return true;
}

/// Whether a draw with input `typed` of `dtype` is accepted.
static bool try_once(const tide_op_def *def, size_t typed, tide_dtype dtype, tide_rng *rng) {
    one_op o;
    const size_t least = def->min_inputs, most = def->max_inputs != 0 ? def->max_inputs : least > 3 ? least : 3;
    const size_t n_in = least + tide_rng_below(rng, most - least + 1);
    one_begin_in(&o, def->domain, def->name,
                 def->until != 0   ? def->until
                 : def->since < 13 ? 13
                                   : def->since,
                 n_in, def->min_outputs);
    for (size_t k = 0; k < sizeof needed / sizeof needed[0]; k++)
        if (strcmp(needed[k].name, def->name) == 0) add_attrs(&o, needed[k].attrs);
    for (size_t i = 0; i < n_in; i++) {
        static const tide_dtype others[] = {TIDE_I64, TIDE_I64, TIDE_I32, TIDE_F32, TIDE_BOOL, TIDE_U8};
        const bool same = i == typed || tide_rng_below(rng, 2) == 0;
        draw(&o, i, same ? dtype : others[tide_rng_below(rng, 6)], rng);
        if (i >= def->min_inputs && i != typed && tide_rng_below(rng, 4) == 0) o.in[i] = (tide_operand){0};
    }
    const bool ok = typed < n_in && one_infer(&o) == TIDE_OK && fits(&o) && runs(&o);
    one_end(&o);
    return ok;
}

static uint32_t bit(tide_dtype dtype) { return 1u << dtype; }

/// The types that some draw was accepted with. What is promised is looked for much longer.
static uint32_t found_types(const tide_op_note *note, uint64_t seed) {
    uint32_t found = 0;
    for (size_t d = 0; d < N_DTYPES && note->def->run != NULL; d++) {
        tide_rng rng = {seed * 100 + d};
        const int n = (note->types & bit(dtypes[d])) != 0 ? N_TRIALS : N_TRIALS / 50;
        for (int t = 0; t < n && (found & bit(dtypes[d])) == 0; t++)
            if (try_once(note->def, note->typed_input, dtypes[d], &rng)) found |= bit(dtypes[d]);
    }
    return found;
}

/// Rows whose operands must fit together in ways that no draw finds: what is found is promised, and no more is said.
static bool is_too_rare(const char *name) {
    static const char *const rare[] = {"BatchNormalization",
                                       "InstanceNormalization",
                                       "Unsqueeze",
                                       "Concat",
                                       "RNN",
                                       "GRU",
                                       "LSTM",
                                       "NonMaxSuppression",
                                       "RoiAlign",
                                       "MaxRoiPool",
                                       "QLinearConv",
                                       "QLinearMatMul",
                                       "EmbedLayerNormalization",
                                       "RotaryEmbedding",
                                       "Opaque",
                                       "Range",
                                       "Adagrad",
                                       "Adam",
                                       "Momentum",
                                       "MelWeightMatrix",
                                       "STFT"};
    for (size_t i = 0; i < sizeof rare / sizeof rare[0]; i++)
        if (strcmp(rare[i], name) == 0) return true;
    return false;
}

static void test_types_are_those_that_run(void **state) {
    (void)state;
    const tide_op_def *const *table;
    const size_t n = tide_op_table(&table);
    for (size_t r = 0; r < n; r++) {
        if ((table[r]->flags & TIDE_OP_CONTROL) != 0) continue; // its body has the types
        const tide_op_note *note = tide_op_note_of(table[r]);
        if (note == NULL) fail_msg("%s has no note: core/ops/op_notes.c", table[r]->name);
        const uint32_t found = found_types(note, r);
        if (found != note->types && !(is_too_rare(table[r]->name) && (found & ~note->types) == 0))
            fail_msg("%s (opset %d): op_notes.c says types %#x, it takes %#x", table[r]->name, table[r]->since,
                     note->types, found);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {tide_unit_test(test_types_are_those_that_run)};
    return cmocka_run_group_tests_name("notes of operators", tests, NULL, NULL);
}
