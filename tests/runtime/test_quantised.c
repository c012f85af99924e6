// SPDX-License-Identifier: MIT
//
// Operators that read and write quantised tensors, held against the literal reading of the same graph, where float
// tensors stand between them: the same bits. Scales are powers of two and sums small, so that no sum is rounded and the
// order in which a kernel adds up makes no difference: what differs then is a fault of a tile. With poison around
// everything, planned with aliases and naive, and what is predicted of the Workspace is what is measured.
#include "core/base/text.h"
#include "core/graph/import.h"
#include "rt_util.h"

typedef struct graph_case {
    const char *name;
    int opset;
    const char *inputs; ///< of the graph, as JSON with ' for "
    const char *weights;
    const char *nodes;
    const char *outputs;
    size_t n_left;     ///< QuantizeLinear and DequantizeLinear that stay
    size_t n_steps;    ///< of the program
    bool keeps_floats; ///< it makes float tensors between operators all the same
} graph_case;

// What all cases may use: x -> xq, of scale 1/8 and zero point 3 (uint8); scales and zero points.
#define SCALES                                                                                                         \
    "{'name':'s8','dtype':'float32','shape':[],'fill':0.125},{'name':'s4','dtype':'float32','shape':[],'fill':0.25},"  \
    "{'name':'s1','dtype':'float32','shape':[1],'fill':1},{'name':'s16','dtype':'float32','shape':[],'fill':16},"      \
    "{'name':'z3','dtype':'uint8','shape':[],'fill':3},{'name':'z7','dtype':'uint8','shape':[],'fill':7},"             \
    "{'name':'i0','dtype':'int8','shape':[1],'fill':0},{'name':'i5','dtype':'int8','shape':[1],'fill':-5},"            \
    "{'name':'z32','dtype':'int32','shape':[],'fill':0}"
#define WEIGHT(name, shape) ",{'name':'" name "','dtype':'int8','shape':[" shape "],'random':{'low':-9,'high':9}}"
#define BIAS(name, n) ",{'name':'" name "','dtype':'int32','shape':[" n "],'random':{'low':-99,'high':99}}"
#define X(shape) "{'name':'x','dtype':'float32','shape':[" shape "]}"
#define Q(in, scale, zero, out)                                                                                        \
    "{'op':'QuantizeLinear','inputs':['" in "','" scale "','" zero "'],'outputs':['" out "']}"
#define DQ(in, scale, zero, out)                                                                                       \
    "{'op':'DequantizeLinear','inputs':['" in "','" scale "','" zero "'],'outputs':['" out "']}"
#define DQ_AXIS(in, scale, zero, axis, out)                                                                            \
    "{'op':'DequantizeLinear','inputs':['" in "','" scale "','" zero "'],'outputs':['" out "'],'attrs':{'axis':" axis  \
    "}}"
#define OP(op, inputs, outputs) "{'op':'" op "','inputs':[" inputs "],'outputs':[" outputs "]}"
#define OP_WITH(op, inputs, outputs, attributes)                                                                       \
    "{'op':'" op "','inputs':[" inputs "],'outputs':[" outputs "],'attrs':{" attributes "}}"
#define IN Q("x", "s8", "z3", "xq") "," DQ("xq", "s8", "z3", "xf") ","
#define OUT "," Q("y", "s4", "i0", "yq") "," DQ("yq", "s4", "i0", "out")
#define OUT_WIDE "," Q("y", "s16", "i5", "yq") "," DQ("yq", "s16", "i5", "out")

static const graph_case cases[] = {
    {"conv in strips, weights by filter, bias, Relu", 13, X("2,8,40,37"),
     SCALES WEIGHT("w", "40,8,3,3")
         BIAS("b", "40") ",{'name':'ws','dtype':'float32','shape':[40],'fill':0.25}"
                         ",{'name':'wz','dtype':'int8','shape':[40],'random':{'low':-3,'high':3}}",
     IN DQ_AXIS("w", "ws", "wz", "0", "wf") "," DQ("b", "s8", "z32", "bf") "," OP_WITH(
         "Conv", "'xf','wf','bf'", "'c'", "'pads':[1,1,1,1],'kernel_shape':[3,3]") "," OP("Relu", "'c'", "'y'")
         OUT_WIDE,
     "'out'", 2, 3, false},
    {"conv with strides, dilations, padding of its own, in one tile of filters", 13, X("1,3,50,41"),
     SCALES WEIGHT("w", "8,3,3,2"),
     IN DQ("w", "s1", "i5", "wf") "," OP_WITH("Conv", "'xf','wf'", "'y'",
                                              "'auto_pad':'SAME_UPPER','strides':[2,3],'dilations':[1,2]") OUT_WIDE,
     "'out'", 2, 3, false},
    {"conv 1 by 1, more filters than a tile", 13, X("1,70,9,11"), SCALES WEIGHT("w", "300,70,1,1"),
     IN DQ("w", "s1", "i0", "wf") "," OP("Conv", "'xf','wf'", "'y'") OUT_WIDE, "'out'", 2, 3, false},
    {"conv by channel", 13, X("2,5,60,61"), SCALES WEIGHT("w", "10,1,3,3") BIAS("b", "10"),
     IN DQ("w", "s1", "i0", "wf") "," DQ("b", "s8", "z32", "bf") "," OP_WITH("Conv", "'xf','wf','bf'", "'y'",
                                                                             "'group':5,'pads':[1,1,1,1]") OUT_WIDE,
     "'out'", 2, 3, false},
    {"conv by channel, large planes", 13, X("1,2,190,191"), SCALES WEIGHT("w", "2,1,5,5"),
     IN DQ("w", "s1", "i0", "wf") "," OP_WITH("Conv", "'xf','wf'", "'y'", "'group':2,'pads':[2,2,2,2],'strides':[2,2]")
         OUT_WIDE,
     "'out'", 2, 3, false},
    {"conv in groups", 13, X("1,12,70,31"), SCALES WEIGHT("w", "8,3,3,3"),
     IN DQ("w", "s1", "i0", "wf") "," OP_WITH("Conv", "'xf','wf'", "'y'", "'group':4,'pads':[0,1,1,0]") OUT_WIDE,
     "'out'", 2, 3, false},
    {"conv of one axis", 13, X("1,6,9001"), SCALES WEIGHT("w", "4,6,5"),
     IN DQ("w", "s1", "i0", "wf") "," OP_WITH("Conv", "'xf','wf'", "'y'", "'pads':[2,2],'strides':[2]") OUT_WIDE,
     "'out'", 2, 3, false},
    {"conv of three axes", 13, X("1,2,13,14,15"), SCALES WEIGHT("w", "4,2,3,3,3"),
     IN DQ("w", "s1", "i0", "wf") "," OP_WITH("Conv", "'xf','wf'", "'y'", "'pads':[1,1,1,1,1,1]") OUT_WIDE, "'out'", 2,
     3, false},
    {"conv of real numbers, quantised behind", 13, X("1,4,33,33"),
     SCALES ",{'name':'wf','dtype':'float32','shape':[4,4,1,1],'fill':0.5}",
     OP("Floor", "'x'", "'xf'") "," OP("Conv", "'xf','wf'", "'y'") OUT, "'out'", 1, 3, true},
    {"matmul, weights by column", 13, X("3,17,300"),
     SCALES WEIGHT("w", "300,210") ",{'name':'ws','dtype':'float32','shape':[210],'fill':0.5}"
                                   ",{'name':'wz','dtype':'int8','shape':[210],'random':{'low':-3,'high':3}}",
     IN DQ_AXIS("w", "ws", "wz", "1", "wf") "," OP("MatMul", "'xf','wf'", "'y'") OUT_WIDE, "'out'", 2, 3, false},
    {"matmul of two, by matrix, one broadcast", 13, X("2,3,70,20"), SCALES,
     IN OP_WITH("Transpose", "'xf'", "'t'", "'perm':[0,1,3,2]") "," OP("MatMul", "'xf','t'", "'y'") OUT_WIDE, "'out'",
     2, 4, false},
    {"gemm, transposed weights, bias", 13, X("70,130"), SCALES WEIGHT("w", "150,130") BIAS("b", "150"),
     IN DQ("w", "s1", "i0", "wf") "," DQ("b", "s8", "z32", "bf") "," OP_WITH("Gemm", "'xf','wf','bf'", "'y'",
                                                                             "'transB':1") OUT_WIDE,
     "'out'", 2, 3, false},
    {"gemm, transposed input, a column as C", 13, X("90,200"), SCALES WEIGHT("w", "90,170") BIAS("b", "200,1"),
     IN DQ("w", "s1", "i0", "wf") "," DQ("b", "s8", "z32", "bf") "," OP_WITH(
         "Gemm", "'xf','wf','bf'", "'y'", "'transA':1,'alpha':0.5,'beta':2.0") OUT_WIDE,
     "'out'", 2, 3, false},
    {"add, channels broadcast, weights quantised", 13, X("2,65,9,9"), SCALES WEIGHT("w", "65,1,1"),
     IN DQ("w", "s8", "i5", "wf") "," OP("Add", "'xf','wf'", "'y'") OUT, "'out'", 2, 3, false},
    {"add of itself, mul by a number, sum of three", 13, X("3,1111"),
     SCALES ",{'name':'two','dtype':'float32','shape':[],'fill':2}",
     IN OP("Add", "'xf','xf'", "'a'") "," Q("a", "s8", "i0", "aq") "," DQ("aq", "s8", "i0", "af") "," OP(
         "Mul", "'af','two'",
         "'m'") "," Q("m", "s4", "i0", "mq") "," DQ("mq", "s4", "i0", "mf") "," OP("Sum", "'af','mf','xf'", "'y'") OUT,
     "'out'", 2, 5, false},
    {"one number by another", 13, X("2,3000"), SCALES,
     IN OP("Sigmoid", "'xf'", "'a'") "," Q("a", "s8", "i0", "aq") "," DQ("aq", "s8", "i0", "af") "," OP(
         "Relu", "'af'", "'r'") "," Q("r", "s8", "i5", "rq") "," DQ("rq", "s8", "i5", "rf") "," OP("Tanh", "'rf'",
                                                                                                   "'out'"),
     "'out'", 1, 4, false},
    {"pools", 13, X("2,7,31,30"), SCALES,
     IN OP_WITH("MaxPool", "'xf'", "'m'", "'kernel_shape':[3,3],'pads':[1,1,1,1],'strides':[2,2]") "," Q(
         "m", "s8", "z3", "mq") "," DQ("mq", "s8", "z3",
                                       "mf") "," OP_WITH("AveragePool", "'mf'", "'a'",
                                                         "'kernel_shape':[2,2],'count_include_pad':1,'pads':[1,1,0,"
                                                         "0]") "," Q("a", "s8", "z7",
                                                                     "aq") "," DQ("aq", "s8", "z7",
                                                                                  "af") "," OP("GlobalAveragePool",
                                                                                               "'af'", "'y'") OUT,
     "'out'", 2, 5, false},
    {"softmax of rows and of columns", 13, X("5,13,31"),
     SCALES ",{'name':'tiny','dtype':'float32','shape':[],'fill':0.00390625}",
     IN OP_WITH("Softmax", "'xf'", "'a'", "'axis':1") "," Q("a", "tiny", "i0", "aq") "," DQ(
         "aq", "tiny", "i0", "af") "," OP("Softmax", "'af'", "'b'") "," Q("b", "tiny", "i0", "bq") "," DQ("bq", "tiny",
                                                                                                          "i0", "out"),
     "'out'", 2, 4, false},
    {"what moves, in a row", 13, X("2,6,8,8"),
     SCALES ",{'name':'flat','dtype':'int64','shape':[2],'values':[2,-1]}"
            ",{'name':'ends','dtype':'int64','shape':[1],'values':[5]},{'name':'zero','dtype':'int64','shape':[1],'"
            "values':[0]}"
            ",{'name':'first','dtype':'int64','shape':[1],'values':[1]}",
     IN OP_WITH("Transpose", "'xf'", "'t'", "'perm':[0,2,3,1]") "," Q("t", "s8", "z3", "tq") "," DQ(
         "tq", "s8", "z3", "tf") "," OP("Slice", "'tf','zero','ends','first'",
                                        "'l'") "," OP("Reshape", "'tf','flat'",
                                                      "'r'") "," OP("Relu", "'r'", "'out'") "," OP("Neg", "'l'",
                                                                                                   "'other'"),
     "'out','other'", 1, 6, false},
    {"behind a real operator", 13, X("2,6,8,8"), SCALES,
     OP("Exp", "'x'", "'e'") "," OP_WITH("Transpose", "'e'", "'y'", "'perm':[0,2,3,1]") OUT, "'out'", 1, 3, false},
    {"split and join again, as they were", 13, X("4,12"), SCALES,
     IN OP_WITH("Split", "'xf'", "'a','b','c'", "'axis':1") "," OP_WITH(
         "Concat", "'c','a','b'", "'j'",
         "'axis':1") "," Q("j", "s8", "z3", "jq") "," DQ("jq", "s8", "z3", "jf") "," OP("Relu", "'jf'", "'out'"),
     "'out'", 1, 4, false},
    {"joined out of different scales, one real", 13, X("4,50"), SCALES,
     IN OP("Add", "'xf','xf'", "'a'") "," Q("a", "s4", "i5", "aq") "," DQ("aq", "s4", "i5", "af") "," OP(
         "Exp", "'x'", "'e'") "," OP_WITH("Concat", "'xf','af','e'", "'y'", "'axis':1") OUT,
     "'out'", 2, 7, false},
    {"a table that is looked up", 13, "{'name':'x','dtype':'float32','shape':[3]}", SCALES WEIGHT("w", "40,16"),
     DQ("w", "s8", "i0", "wf") "," OP("Abs", "'x'", "'a'") "," OP_WITH("Cast", "'a'", "'at'", "'to':7") "," OP(
         "Gather", "'wf','at'", "'g'") "," OP("Abs", "'g'", "'out'"),
     "'out'", 0, 4, true},
    {"the nearest, deeper, wider", 13, X("1,8,5,6"),
     SCALES ",{'name':'by','dtype':'float32','shape':[4],'values':[1,1,2,3]}"
            ",{'name':'none','dtype':'float32','shape':[0],'values':[]}",
     IN OP_WITH("Resize", "'xf','none','by'", "'r'", "'mode':'nearest'") "," OP_WITH(
         "DepthToSpace", "'r'", "'d'", "'blocksize':2") "," OP("Relu", "'d'", "'y'") OUT,
     "'out'", 2, 5, false},
    {"several readers: two that take it, one that does not, and an output", 13, X("3,40"), SCALES,
     IN OP("Relu", "'xf'", "'a'") "," Q("a", "s8", "i0", "aq") "," OP("Add", "'xf','xf'",
                                                                      "'y'") "," OP("ReduceSum", "'xf'", "'r'") OUT,
     "'out','aq','r','yq'", 3, 6, true},
    {"a result with several readers stays real", 13, X("3,40"), SCALES,
     IN OP("Add", "'xf','xf'", "'y'") "," OP("Exp", "'y'", "'e'") OUT, "'out','e'", 3, 5, true},
    {"quantised again otherwise, and as it was", 13, X("3,40"), SCALES,
     IN Q("xf", "s4", "i5", "a") "," DQ("a", "s4", "i5", "af") "," Q("af", "s4", "i5", "b") "," DQ(
         "b", "s4", "i5", "bf") "," OP("Neg", "'bf'", "'y'") OUT,
     "'out'", 2, 4, false},
    {"the same, and its result is asked for", 13, X("3,40"), SCALES, IN Q("xf", "s8", "z3", "again"), "'again'", 1, 2,
     false},
    {"dequantised and quantised, nothing between", 13, X("3,40"), SCALES, IN OP("Identity", "'xf'", "'out'"), "'out'",
     2, 3, false},
    {"no elements", 13, X("0,4"), SCALES, IN OP("Relu", "'xf'", "'y'") OUT, "'out'", 4, 5, true},
    {"scalars", 13, X(""), SCALES,
     IN OP("Add", "'xf','xf'", "'a'") "," Q("a", "s8", "z3", "aq") "," DQ("aq", "s8", "z3", "af") "," OP("Relu", "'af'",
                                                                                                         "'y'") OUT,
     "'out'", 2, 4, false},
    {"blocks stay", 21, X("4,8"),
     SCALES WEIGHT("w", "8,16") ",{'name':'ws','dtype':'float32','shape':[2,16],'fill':0.5}",
     IN OP_WITH("DequantizeLinear", "'w','ws'", "'wf'", "'axis':0,'block_size':4") "," OP("MatMul", "'xf','wf'",
                                                                                          "'out'"),
     "'out'", 1, 2, false},
    {"weights behind a fused normalisation are real", 13, X("1,4,6,6"),
     SCALES WEIGHT("w", "64,4,1,1") ",{'name':'one','dtype':'float32','shape':[64],'fill':1},{'name':'nil','dtype':'"
                                    "float32','shape':[64],'fill':0}",
     IN DQ("w", "s1", "i0", "wf") "," OP("Conv", "'xf','wf'", "'c'") "," OP("BatchNormalization",
                                                                            "'c','one','nil','nil','one'", "'y'") OUT,
     "'out'", 2, 3, false},
    {"of 16 bits", 21, X("3,40"),
     SCALES ",{'name':'z','dtype':'uint16','shape':[],'fill':30000}"
            ",{'name':'w','dtype':'int16','shape':[40,6],'random':{'low':-900,'high':900}}"
            ",{'name':'ws','dtype':'float32','shape':[6],'fill':2},{'name':'wz','dtype':'int16','shape':[6],'random':{'"
            "low':-300,'high':300}}",
     Q("x", "s8", "z", "xq") "," DQ("xq", "s8", "z", "xf") "," DQ_AXIS("w", "ws", "wz", "1", "wf") "," OP(
         "MatMul", "'xf','wf'",
         "'y'") "," Q("y", "s16", "z", "yq") "," DQ("yq", "s16", "z", "yf") "," OP("Relu", "'yf'",
                                                                                   "'r'") "," Q("r", "s16", "z", "out"),
     "'out'", 1, 3, false},
    {"zeros around, and others", 13, X("1,2,5,5"),
     SCALES
     ",{'name':'by','dtype':'int64','shape':[8],'values':[0,0,1,2,0,1,0,1]}"
     ",{'name':'nil','dtype':'float32','shape':[],'fill':0},{'name':'six','dtype':'float32','shape':[],'fill':6}",
     IN OP("Pad", "'xf','by','nil'", "'a'") "," OP("Pad", "'xf','by'", "'b'") "," OP_WITH(
         "Pad", "'xf','by'", "'c'", "'mode':'edge'") "," OP("Pad", "'xf','by','six'",
                                                            "'d'") "," OP("Sum", "'a','b','c','d'", "'y'") OUT,
     "'out'", 3, 8, true},
    {"weights that are moved first", 13, X("5,30"), SCALES WEIGHT("w", "20,30"),
     IN DQ("w", "s1", "i0", "wf") "," OP_WITH("Transpose", "'wf'", "'t'", "'perm':[1,0]") "," OP("MatMul", "'xf','t'",
                                                                                                 "'y'") OUT_WIDE,
     "'out'", 2, 3, false},
};

static tide_program *build_case(const graph_case *c, bool literal) {
    tide_error err = TIDE_ERROR_INIT;
    tide_text text = {0};
    tide_text_addf(&text,
                   "{'schema':'tidemark.graph','version':1,'opset':%d,'inputs':[%s],'initializers':[%s],'nodes':[%s],"
                   "'outputs':[%s]}",
                   c->opset, c->inputs, c->weights, c->nodes, c->outputs);
    assert_false(text.failed);
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] == '\'') text.data[i] = '"';
    tide_graph *g;
    assert_tide_ok(tide_graph_from_json(text.data, text.len, c->name, &g, &err), &err);
    tide_text_deinit(&text);
    const tide_program_options opt = {.no_qdq = literal};
    tide_program *p;
    assert_tide_ok(tide_program_build(g, &opt, &p, &err), &err);
    return p;
}

/// The bytes of all outputs, of one mode; the Workspace took what was predicted, and a second run took nothing.
static char *run_one(tide_program *p, tide_run_mode mode, size_t *n) {
    rt_rig rig;
    rt_rig_open(&rig);
    tide_memory_plan *m = rt_plan_aliased(p, "greedy_by_size", RT_ALL_ALIASES, NULL);
    tide_inference_plan *ip = rt_inference(&rig, p, m);
    tide_context *c = rt_context(ip, mode, TIDE_FILL_POISON);
    rt_feed(c, p, &rig, 11);
    rt_run(c);
    const uint64_t once = rt_n_allocs(&rig);
    rt_run(c);
    if (mode == TIDE_RUN_PLANNED) assert_int_equal(rt_n_allocs(&rig), once);
    assert_int_equal(rt_peak(&rig, TIDE_KIND_WORKSPACE), mode == TIDE_RUN_PLANNED
                                                             ? tide_memory_plan_predicted(m, TIDE_KIND_WORKSPACE)
                                                             : m->naive_peak_bytes);
    char *bytes = rt_output_bytes(c, n);
    tide_context_destroy(c);
    tide_inference_plan_unref(ip);
    tide_memory_plan_destroy(m);
    rt_rig_close(&rig);
    return bytes;
}

static size_t n_floats(const tide_program *p) {
    size_t n = 0;
    for (size_t i = 0; i < p->n_steps; i++) {
        const tide_node *node = p->steps[i].kernel.node;
        const tide_value *v = &p->graph->values[node->outputs[0]];
        n += v->dtype == TIDE_F32 && !v->is_output;
    }
    return n;
}

static void the_same_bits_as_the_literal_reading(void **state) {
    (void)state;
    size_t n_bad = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const graph_case *c = &cases[i];
        tide_program *literal = build_case(c, true), *quantised = build_case(c, false);
        size_t n_want, n;
        char *want = run_one(literal, TIDE_RUN_PLANNED, &n_want);
        for (int mode = 0; mode < 2; mode++) {
            char *got = run_one(quantised, mode == 0 ? TIDE_RUN_NAIVE : TIDE_RUN_PLANNED, &n);
            if (n != n_want || memcmp(got, want, n) != 0) {
                print_message("%s: other bits, mode %d\n", c->name, mode);
                n_bad++;
            }
            tide_host_free(got);
        }
        if (quantised->quantised.n_left != c->n_left || quantised->n_steps != c->n_steps ||
            c->keeps_floats != (n_floats(quantised) > 0)) {
            print_message("%s: %zu left, %zu steps, %zu float tensors\n", c->name, quantised->quantised.n_left,
                          quantised->n_steps, n_floats(quantised));
            n_bad++;
        }
        tide_host_free(want);
        tide_program_unref(literal);
        tide_program_unref(quantised);
    }
    assert_int_equal(n_bad, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(the_same_bits_as_the_literal_reading),
    };
    return cmocka_run_group_tests_name("quantised", tests, NULL, NULL);
}
