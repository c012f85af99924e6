// SPDX-License-Identifier: MIT
//
// One operator run as the runtime would run it. See nn_case.h.
#include "tests/ops/nn_case.h"

#include <math.h>
#include <pthread.h>

enum { ALIGN = 64, GUARD = 64, POISON = 0xFF, GUARD_BYTE = 0x5A };

static void *checked(void *p) {
    assert_non_null(p);
    return p;
}

// ---- building ----

static void fill_random(tide_operand *o, uint64_t seed) {
    tide_rng rng = {seed};
    const int64_t n = tide_op_numel(&o->shape);
    for (int64_t i = 0; i < n; i++) {
        const double r = tide_rng_f64(&rng) * 2 - 1;
        if (o->dtype == TIDE_F32)
            ((float *)o->data)[i] = (float)r;
        else if (o->dtype == TIDE_I8 || o->dtype == TIDE_U8)
            ((uint8_t *)o->data)[i] = (uint8_t)tide_rng_below(&rng, 256);
        else if (o->dtype == TIDE_BOOL)
            ((uint8_t *)o->data)[i] = r > -0.4;
        else if (o->dtype == TIDE_I32)
            ((int32_t *)o->data)[i] = (int32_t)(r * 1000);
        else if (o->dtype == TIDE_I64)
            ((int64_t *)o->data)[i] = (int64_t)(r * 1000);
        else
            fail_msg("no fill for %s", tide_dtype_name(o->dtype));
    }
}

static void parse_operand(const char *text, tide_operand *o, size_t i) {
    static const struct {
        const char *prefix;
        tide_dtype dtype;
    } types[] = {{"f32:", TIDE_F32}, {"u8:", TIDE_U8},   {"i8:", TIDE_I8},
                 {"i32:", TIDE_I32}, {"i64:", TIDE_I64}, {"b:", TIDE_BOOL}};
    memset(o, 0, sizeof *o);
    if (strcmp(text, "-") == 0) return;
    o->dtype = TIDE_F32;
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        const size_t n = strlen(types[t].prefix);
        if (strncmp(text, types[t].prefix, n) != 0) continue;
        o->dtype = types[t].dtype;
        text += n;
        break;
    }
    tide_error err = TIDE_ERROR_INIT;
    // "[]" is a scalar: an empty word cannot be written between spaces.
    assert_tide_ok(tide_shape_parse(strcmp(text, "[]") == 0 ? "" : text, &o->shape, &err), &err);
    assert_tide_ok(tide_shape_bytes(&o->shape, o->dtype, &o->size_bytes, &err), &err);
    o->data = checked(tide_host_alloc(o->size_bytes));
    fill_random(o, 1000 + i);
}

static void add_attr(nn_case *c, char *text) {
    char *eq = strchr(text, '=');
    assert_non_null(eq);
    *eq = '\0';
    const char *v = eq + 1;
    char *end;
    tide_attr a = {.name = checked(tide_host_strdup(text))};
    if (*v == '[') {
        int64_t list[16];
        for (v++; *v != ']' && *v != '\0'; v = *end == ',' ? end + 1 : end) list[a.n++] = strtoll(v, &end, 10);
        a.type = TIDE_ATTR_INTS;
        a.ints = checked(tide_host_calloc(a.n + 1, sizeof *a.ints));
        memcpy(a.ints, list, a.n * sizeof *list);
    } else if (strchr("-0123456789", *v) == NULL) {
        a.type = TIDE_ATTR_STRING;
        a.s = checked(tide_host_strdup(v));
    } else if (strchr(v, '.') != NULL) {
        a.type = TIDE_ATTR_FLOAT;
        a.f = strtof(v, NULL);
    } else {
        a.type = TIDE_ATTR_INT;
        a.i = strtoll(v, NULL, 10);
    }
    assert_tide_ok(tide_graph_add_attr(c->g, 0, &a, &c->err), &c->err);
}

// Call `each` for every word of `text`.
static void words(nn_case *c, const char *text, void (*each)(nn_case *, char *)) {
    char word[128];
    while (*text != '\0') {
        const size_t n = strcspn(text, " ");
        assert_true(n < sizeof word);
        memcpy(word, text, n);
        word[n] = '\0';
        if (n > 0) each(c, word);
        text += n + (text[n] == ' ' ? 1 : 0);
    }
}

static void add_input(nn_case *c, char *text) {
    assert_true(c->n_in < NN_MAX);
    parse_operand(text, &c->in[c->n_in], c->n_in);
    c->n_in++;
}

void nn_make(nn_case *c, const char *op, int opset, const char *in, const char *attrs, size_t n_out) {
    memset(c, 0, sizeof *c);
    assert_tide_ok(tide_graph_create("case", "", &c->g, &c->err), &c->err);
    words(c, in, add_input);
    uint32_t ins[NN_MAX], outs[NN_MAX], node;
    char name[32], domain[32] = "";
    const char *dot = strrchr(op, '.');
    if (dot != NULL) snprintf(domain, sizeof domain, "%.*s", (int)(dot - op), op);
    if (dot != NULL) op = dot + 1;
    for (size_t i = 0; i < c->n_in; i++) {
        snprintf(name, sizeof name, "in%zu", i);
        ins[i] = TIDE_NO_VALUE;
        if (!tide_operand_present(&c->in[i])) continue;
        assert_tide_ok(tide_graph_add_value(c->g, name, &ins[i], &c->err), &c->err);
        assert_tide_ok(tide_graph_add_input(c->g, ins[i], &c->err), &c->err);
    }
    for (c->n_out = 0; c->n_out < n_out; c->n_out++) {
        snprintf(name, sizeof name, "out%zu", c->n_out);
        assert_tide_ok(tide_graph_add_value(c->g, name, &outs[c->n_out], &c->err), &c->err);
    }
    assert_tide_ok(tide_graph_add_node(c->g, "it", op, domain, opset, ins, c->n_in, outs, n_out, &node, &c->err),
                   &c->err);
    words(c, attrs, add_attr);
    c->node = &c->g->nodes[0];
}

void nn_done(nn_case *c) {
    for (size_t i = 0; i < c->n_in; i++) tide_host_free(c->in[i].data);
    for (size_t i = 0; i < c->n_out; i++) tide_host_free(c->out[i].data);
    tide_graph_destroy(c->g);
}

// ---- running ----

static void without_data(const tide_operand *from, size_t n, tide_operand *to) {
    for (size_t i = 0; i < n; i++) {
        to[i] = from[i];
        to[i].data = NULL;
    }
}

tide_status nn_infer(nn_case *c) {
    TIDE_TRY(tide_ops_resolve(c->g, &c->err));
    tide_operand in[NN_MAX];
    without_data(c->in, c->n_in, in);
    TIDE_TRY(c->node->def->infer(
        &(tide_infer){.node = c->node, .in = in, .n_in = c->n_in, .out = c->out, .n_out = c->n_out}, &c->err));
    for (size_t i = 0; i < c->n_out; i++)
        TIDE_TRY(tide_shape_bytes(&c->out[i].shape, c->out[i].dtype, &c->out[i].size_bytes, &c->err));
    return TIDE_OK;
}

// A buffer at an odd multiple of 64 bytes (or an even one), poisoned, with a guard behind it.
typedef struct buffer {
    unsigned char *base, *data;
    size_t bytes;
} buffer;

static buffer buffer_make(size_t bytes, bool odd) {
    buffer b = {.bytes = bytes};
    b.base = checked(tide_host_alloc(bytes + GUARD + 3 * ALIGN));
    uintptr_t at = ((uintptr_t)b.base + 2 * ALIGN - 1) & ~(uintptr_t)(2 * ALIGN - 1);
    b.data = b.base + (at - (uintptr_t)b.base) + (odd ? ALIGN : 0);
    memset(b.data, POISON, bytes);
    memset(b.data + bytes, GUARD_BYTE, GUARD);
    return b;
}

static void buffer_drop(buffer *b) {
    for (size_t i = 0; i < GUARD; i++)
        if (b->data[b->bytes + i] != GUARD_BYTE) fail_msg("a byte behind a buffer of %zu was overwritten", b->bytes);
    tide_host_free(b->base);
}

typedef struct run_place {
    buffer in[NN_MAX], out[NN_MAX], work;
    tide_operand in_ops[NN_MAX], out_ops[NN_MAX];
} run_place;

static void place_make(const nn_case *c, const tide_kernel *k, bool odd, bool in_place, run_place *p) {
    for (size_t i = 0; i < c->n_in; i++) {
        p->in[i] = buffer_make(c->in[i].size_bytes, odd);
        if (c->in[i].size_bytes > 0) memcpy(p->in[i].data, c->in[i].data, c->in[i].size_bytes);
        p->in_ops[i] = c->in[i];
        p->in_ops[i].data = c->in[i].size_bytes > 0 ? p->in[i].data : NULL;
    }
    for (size_t i = 0; i < c->n_out; i++) {
        p->out[i] = buffer_make(c->out[i].size_bytes, odd);
        p->out_ops[i] = c->out[i];
        p->out_ops[i].data = c->out[i].size_bytes > 0 ? p->out[i].data : NULL;
    }
    if (in_place) p->out_ops[0].data = p->in_ops[0].data;
    p->work = buffer_make(k->workspace_bytes, odd);
}

static void place_drop(const nn_case *c, run_place *p) {
    for (size_t i = 0; i < c->n_in; i++) buffer_drop(&p->in[i]);
    for (size_t i = 0; i < c->n_out; i++) buffer_drop(&p->out[i]);
    buffer_drop(&p->work);
}

static tide_status place_run(const nn_case *c, const tide_kernel *k, void *exec, run_place *p, tide_error *err) {
    const tide_kernel_args args = {p->in_ops, c->n_in, p->out_ops,
                                   c->n_out,  exec,    k->workspace_bytes > 0 ? p->work.data : NULL};
    return k->def->run(k, &args, err);
}

static void assert_same_bytes(const nn_case *c, const run_place *p, const char *when) {
    for (size_t i = 0; i < c->n_out; i++)
        if (c->out[i].size_bytes > 0 && memcmp(c->out[i].data, p->out_ops[i].data, c->out[i].size_bytes) != 0)
            fail_msg("%s: output %zu differs %s", c->node->op_type, i, when);
}

static void assert_inputs_untouched(const nn_case *c, const run_place *p) {
    for (size_t i = 0; i < c->n_in; i++)
        if (c->in[i].size_bytes > 0 && memcmp(c->in[i].data, p->in[i].data, c->in[i].size_bytes) != 0)
            fail_msg("%s: input %zu was written to", c->node->op_type, i);
}

static void prepare(nn_case *c, tide_kernel *k) {
    assert_tide_ok(nn_infer(c), &c->err);
    *k = (tide_kernel){.def = c->node->def, .node = c->node};
    tide_operand in[NN_MAX];
    without_data(c->in, c->n_in, in);
    if (k->def->prepare != NULL)
        assert_tide_ok(k->def->prepare(&(tide_prepare){c->node, in, c->n_in, c->out, c->n_out}, k, &c->err), &c->err);
    c->workspace_bytes = k->workspace_bytes;
}

static void *exec_make(nn_case *c, const tide_kernel *k) {
    void *exec = NULL;
    if (k->def->exec_create != NULL) assert_tide_ok(k->def->exec_create(k, &exec, &c->err), &c->err);
    return exec;
}

static void exec_drop(const tide_kernel *k, void *exec) {
    if (k->def->exec_destroy != NULL) k->def->exec_destroy(k, exec);
}

static bool may_run_in_place(nn_case *c) {
    const tide_infer x = {.node = c->node, .in = c->in, .n_in = c->n_in, .out = c->out, .n_out = c->n_out};
    return tide_op_may_overwrite(c->node->def, &x, 0);
}

void nn_run(nn_case *c) {
    tide_kernel k;
    prepare(c, &k);
    void *exec[2] = {exec_make(c, &k), exec_make(c, &k)};
    for (int turn = 0; turn < 4; turn++) {
        const bool in_place = turn == 3;
        if (in_place && !may_run_in_place(c)) continue;
        run_place p;
        place_make(c, &k, turn % 2 == 1, in_place, &p);
        assert_tide_ok(place_run(c, &k, exec[turn % 2], &p, &c->err), &c->err);
        if (turn == 0) {
            for (size_t i = 0; i < c->n_out; i++) {
                c->out[i].data = checked(tide_host_alloc(c->out[i].size_bytes));
                memcpy(c->out[i].data, p.out[i].data, c->out[i].size_bytes);
            }
        }
        assert_same_bytes(c, &p, in_place ? "in place" : "on a second run");
        if (!in_place) assert_inputs_untouched(c, &p);
        place_drop(c, &p);
    }
    exec_drop(&k, exec[0]);
    exec_drop(&k, exec[1]);
    if (k.def->destroy != NULL) k.def->destroy(&k);
}

// ---- threads ----

typedef struct worker {
    const nn_case *c;
    const tide_kernel *k;
    void *exec;
    run_place place;
    tide_error err;
    int n_bad;
} worker;

static void *work(void *arg) {
    worker *w = arg;
    for (int i = 0; i < 50; i++) {
        if (place_run(w->c, w->k, w->exec, &w->place, &w->err) != TIDE_OK ||
            memcmp(w->c->out[0].data, w->place.out_ops[0].data, w->c->out[0].size_bytes) != 0)
            w->n_bad++;
    }
    return NULL;
}

void nn_run_threads(nn_case *c) {
    tide_kernel k;
    void *first[NN_MAX];
    for (size_t i = 0; i < c->n_out; i++) first[i] = c->out[i].data; // infer clears nothing but may not keep data
    prepare(c, &k);
    for (size_t i = 0; i < c->n_out; i++) c->out[i].data = first[i];
    worker w[2];
    pthread_t id[2];
    for (int i = 0; i < 2; i++) {
        w[i] = (worker){.c = c, .k = &k, .exec = exec_make(c, &k)};
        place_make(c, &k, i == 1, false, &w[i].place);
    }
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&id[i], NULL, work, &w[i]), 0);
    for (int i = 0; i < 2; i++) pthread_join(id[i], NULL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(w[i].n_bad, 0);
        place_drop(c, &w[i].place);
        exec_drop(&k, w[i].exec);
    }
    if (k.def->destroy != NULL) k.def->destroy(&k);
}

// ---- looking ----

void nn_assert_shape(const nn_case *c, size_t i, const char *want) {
    tide_error err = TIDE_ERROR_INIT;
    tide_shape s;
    assert_tide_ok(tide_shape_parse(want, &s, &err), &err);
    char got[192];
    if (!tide_shape_equal(&s, &c->out[i].shape))
        fail_msg("%s: output %zu is %s, want [%s]", c->node->op_type, i,
                 tide_shape_format(&c->out[i].shape, got, sizeof got), want);
}

void nn_assert_close(const nn_case *c, size_t i, const double *want, double rel, double abs) {
    const int64_t n = tide_op_numel(&c->out[i].shape);
    const float *got = c->out[i].data;
    for (int64_t e = 0; e < n; e++)
        if (!(fabs((double)got[e] - want[e]) <= abs + rel * fabs(want[e])))
            fail_msg("%s: output %zu element %lld is %.9g, want %.9g", c->node->op_type, i, (long long)e,
                     (double)got[e], want[e]);
}
