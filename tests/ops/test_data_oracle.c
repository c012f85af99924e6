// SPDX-License-Identifier: MIT
//
// Data movement, broadcasting and reductions on random shapes, against oracles that compute every element on its own
// from its index: no strides, no merged loops, no tiles. A failing round prints its seed.
#include "tests/ops/data_case.h"

#include <math.h>

enum { N_ROUNDS = 400, MAX_EXTENT = 6, MAX_ELEMENTS = 60000 };

static uint64_t seed_of_round;
static tide_rng rng;

static int64_t below(int64_t n) { return (int64_t)tide_rng_below(&rng, (uint64_t)n); }
static int64_t between(int64_t lo, int64_t hi) { return lo + below(hi - lo + 1); }

static void begin_round(int round) {
    seed_of_round = 1000 + (uint64_t)round;
    rng.state = seed_of_round;
}

/// Some rounds have long axes, so that tiles and blocks are filled and have rests.
static tide_shape random_shape(int32_t rank) {
    tide_shape s = {.rank = rank};
    for (int32_t d = 0; d < rank; d++) s.dims[d] = between(1, rank <= 3 && below(3) == 0 ? 35 : MAX_EXTENT);
    return s;
}

/// A tensor under test with its elements as numbers: integers, so that every comparison is exact.
typedef struct filled {
    tide_dtype dtype;
    tide_shape shape;
    int64_t n;
    int8_t *v; ///< [n], owned
    void *raw; ///< [n] elements of dtype, owned
} filled;

static filled fill(tide_dtype dtype, tide_shape shape) {
    filled f = {.dtype = dtype, .shape = shape, .n = tide_op_numel(&shape)};
    assert_true(f.n <= MAX_ELEMENTS);
    f.v = tide_host_alloc((size_t)f.n + 1);
    f.raw = tide_host_calloc((size_t)f.n + 1, tide_dtype_size(dtype));
    assert_true(f.v != NULL && f.raw != NULL);
    for (int64_t i = 0; i < f.n; i++) {
        f.v[i] = (int8_t)(dtype == TIDE_BOOL ? below(2) : between(-9, 9));
        tide_data_store_f64(dtype, f.raw, i, f.v[i]);
    }
    return f;
}

static void drop(filled *f) {
    tide_host_free(f->v);
    tide_host_free(f->raw);
}

static void feed(op_case *c, const filled *f) { case_in(c, f->dtype, f->shape.rank, f->shape.dims, f->raw); }
static void feed_i64(op_case *c, int64_t n, const int64_t *v) { case_in(c, TIDE_I64, 1, &n, v); }

static tide_dtype random_dtype(void) {
    static const tide_dtype all[] = {TIDE_I8, TIDE_I16, TIDE_F32, TIDE_I64, TIDE_F64, TIDE_F16};
    return all[below(6)];
}

static void unflatten(int64_t flat, const tide_shape *s, int64_t *index) {
    for (int32_t d = s->rank - 1; d >= 0; d--) {
        index[d] = flat % s->dims[d];
        flat /= s->dims[d];
    }
}

static int64_t flatten(const tide_shape *s, const int64_t *index) {
    int64_t flat = 0;
    for (int32_t d = 0; d < s->rank; d++) flat = flat * s->dims[d] + index[d];
    return flat;
}

/// What `in` holds at an index of the shape it broadcasts to.
static double broadcast_at(const filled *in, const tide_shape *out, const int64_t *index) {
    int64_t own[TIDE_MAX_RANK];
    for (int32_t d = 0; d < in->shape.rank; d++) {
        const int64_t i = index[d + out->rank - in->shape.rank];
        own[d] = in->shape.dims[d] == 1 ? 0 : i;
    }
    return in->v[flatten(&in->shape, own)];
}

/// The oracle: the number that belongs at `index` of the output.
typedef double (*oracle_fn)(const void *ctx, const tide_shape *out, const int64_t *index);

static void check(op_case *c, const tide_shape *want_shape, oracle_fn oracle, const void *ctx) {
    if (case_try(c, 1) != TIDE_OK) fail_msg("%s, seed %llu: %s", c->op, (unsigned long long)seed_of_round, c->err.msg);
    const tide_value *const out = case_out(c, 0);
    char a[192], b[192];
    if (!tide_shape_equal(&out->shape, want_shape))
        fail_msg("%s, seed %llu: shape %s instead of %s", c->op, (unsigned long long)seed_of_round,
                 tide_shape_format(&out->shape, a, sizeof a), tide_shape_format(want_shape, b, sizeof b));
    for (int64_t i = 0; i < tide_op_numel(want_shape); i++) {
        int64_t index[TIDE_MAX_RANK];
        unflatten(i, want_shape, index);
        const double want = oracle(ctx, want_shape, index);
        const double got = tide_data_load_f64(out->dtype, tide_tensor_const_data(out->constant), i);
        if (got != want)
            fail_msg("%s, seed %llu: element %lld of %s is %g instead of %g", c->op, (unsigned long long)seed_of_round,
                     (long long)i, tide_shape_format(want_shape, a, sizeof a), got, want);
    }
    case_end(c);
}

// ---- Transpose ----

typedef struct permuted {
    filled in;
    int64_t perm[TIDE_MAX_RANK];
} permuted;

static double transposed_at(const void *ctx, const tide_shape *out, const int64_t *index) {
    const permuted *const p = ctx;
    int64_t own[TIDE_MAX_RANK];
    for (int32_t d = 0; d < out->rank; d++) own[p->perm[d]] = index[d];
    return p->in.v[flatten(&p->in.shape, own)];
}

static void test_transpose(void **state) {
    (void)state;
    for (int round = 0; round < N_ROUNDS; round++) {
        begin_round(round);
        const int32_t rank = (int32_t)between(1, 5);
        permuted p = {.in = fill(random_dtype(), random_shape(rank))};
        for (int32_t d = 0; d < rank; d++) {
            const int64_t at = below(d + 1);
            p.perm[d] = p.perm[at];
            p.perm[at] = d;
        }
        tide_shape out = {.rank = rank};
        for (int32_t d = 0; d < rank; d++) out.dims[d] = p.in.shape.dims[p.perm[d]];
        op_case c = case_begin("Transpose", 13);
        feed(&c, &p.in);
        case_ints(&c, "perm", rank, p.perm);
        check(&c, &out, transposed_at, &p);
        drop(&p.in);
    }
}

// ---- Slice: Python's own rule, walked step by step; but ONNX walks back from an element in any case ----

typedef struct sliced {
    filled in;
    int64_t picked[TIDE_MAX_RANK][64]; ///< input index of each output index
} sliced;

static int64_t python_slice(int64_t start, int64_t stop, int64_t step, int64_t n, int64_t *picked) {
    const int64_t lo = step > 0 ? 0 : -1, hi = step > 0 ? n : n - 1;
    if (start < 0) start += n;
    if (stop < 0) stop += n;
    start = start < lo ? lo : start > hi ? hi : start;
    if (start < 0 && n > 0) start = 0;
    stop = stop < lo ? lo : stop > hi ? hi : stop;
    int64_t count = 0;
    for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step) picked[count++] = i;
    return count;
}

static double sliced_at(const void *ctx, const tide_shape *out, const int64_t *index) {
    const sliced *const s = ctx;
    int64_t own[TIDE_MAX_RANK];
    for (int32_t d = 0; d < out->rank; d++) own[d] = s->picked[d][index[d]];
    return s->in.v[flatten(&s->in.shape, own)];
}

static void test_slice(void **state) {
    (void)state;
    static sliced s;
    for (int round = 0; round < N_ROUNDS; round++) {
        begin_round(round);
        const int32_t rank = (int32_t)between(1, 4);
        s.in = fill(random_dtype(), random_shape(rank));
        int64_t starts[4], ends[4], axes[4], steps[4];
        tide_shape out = {.rank = rank};
        for (int32_t d = 0; d < rank; d++) {
            starts[d] = between(-40, 40);
            ends[d] = between(-40, 40);
            steps[d] = between(1, 3) * (below(2) == 0 ? 1 : -1);
            axes[d] = below(2) == 0 ? d : d - rank;
            out.dims[d] = python_slice(starts[d], ends[d], steps[d], s.in.shape.dims[d], s.picked[d]);
        }
        op_case c = case_begin("Slice", 13);
        feed(&c, &s.in);
        feed_i64(&c, rank, starts);
        feed_i64(&c, rank, ends);
        feed_i64(&c, rank, axes);
        feed_i64(&c, rank, steps);
        check(&c, &out, sliced_at, &s);
        drop(&s.in);
    }
}

// ---- broadcasting: Sub, Where, Expand ----

typedef struct operands {
    filled in[3];
} operands;

/// A shape that broadcasts to `out`: leading axes left off, some extents 1.
static tide_shape narrower(const tide_shape *out) {
    tide_shape s = {.rank = (int32_t)between(0, out->rank)};
    for (int32_t d = 0; d < s.rank; d++) s.dims[d] = below(3) == 0 ? 1 : out->dims[d + out->rank - s.rank];
    return s;
}

static double sub_at(const void *ctx, const tide_shape *out, const int64_t *index) {
    const operands *const o = ctx;
    return broadcast_at(&o->in[0], out, index) - broadcast_at(&o->in[1], out, index);
}

static double where_at(const void *ctx, const tide_shape *out, const int64_t *index) {
    const operands *const o = ctx;
    return broadcast_at(&o->in[broadcast_at(&o->in[0], out, index) != 0 ? 1 : 2], out, index);
}

static double sum_at(const void *ctx, const tide_shape *out, const int64_t *index) {
    const operands *const o = ctx;
    double sum = 0;
    for (int i = 0; i < 3; i++) sum += broadcast_at(&o->in[i], out, index);
    return sum;
}

static double expand_at(const void *ctx, const tide_shape *out, const int64_t *index) {
    return broadcast_at(ctx, out, index);
}

static void test_broadcasting(void **state) {
    (void)state;
    for (int round = 0; round < N_ROUNDS; round++) {
        begin_round(round);
        const tide_shape out = random_shape((int32_t)between(1, 5));
        const tide_dtype dtype = random_dtype();
        const bool whole_first = below(2) == 0;
        operands o = {
            .in = {fill(dtype, whole_first ? out : narrower(&out)), fill(dtype, whole_first ? narrower(&out) : out)}};
        op_case c = case_begin("Sub", 14);
        feed(&c, &o.in[0]);
        feed(&c, &o.in[1]);
        check(&c, &out, sub_at, &o);

        o.in[2] = o.in[1];
        o.in[1] = o.in[0];
        o.in[0] = fill(TIDE_BOOL, narrower(&out));
        c = case_begin("Where", 16);
        for (int i = 0; i < 3; i++) feed(&c, &o.in[i]);
        check(&c, &out, where_at, &o);
        drop(&o.in[0]);
        drop(&o.in[1]);
        drop(&o.in[2]);

        for (int i = 0; i < 3; i++) o.in[i] = fill(TIDE_F32, i == 1 ? out : narrower(&out));
        c = case_begin("Sum", 13);
        for (int i = 0; i < 3; i++) feed(&c, &o.in[i]);
        check(&c, &out, sum_at, &o);
        c = case_begin("Expand", 13);
        feed(&c, &o.in[0]);
        feed_i64(&c, out.rank, out.dims);
        check(&c, &out, expand_at, &o.in[0]);
        for (int i = 0; i < 3; i++) drop(&o.in[i]);
    }
}

// ---- Tile, Pad, Concat, Gather ----

static double tiled_at(const void *ctx, const tide_shape *out, const int64_t *index) {
    const filled *const in = ctx;
    int64_t own[TIDE_MAX_RANK];
    for (int32_t d = 0; d < out->rank; d++) own[d] = index[d] % in->shape.dims[d];
    return in->v[flatten(&in->shape, own)];
}

static void test_tile(void **state) {
    (void)state;
    for (int round = 0; round < N_ROUNDS; round++) {
        begin_round(round);
        tide_shape out = {.rank = (int32_t)between(1, 4)};
        filled in = fill(random_dtype(), random_shape(out.rank));
        int64_t repeats[4];
        for (int32_t d = 0; d < out.rank; d++) out.dims[d] = (repeats[d] = between(0, 3)) * in.shape.dims[d];
        op_case c = case_begin("Tile", 13);
        feed(&c, &in);
        feed_i64(&c, out.rank, repeats);
        check(&c, &out, tiled_at, &in);
        drop(&in);
    }
}

typedef struct padded {
    filled in;
    const char *mode;
    int64_t begin[4];
} padded;

/// One step at a time: a walker that turns round at the ends, stands still there, or jumps.
static int64_t walk_to(const char *mode, int64_t i, int64_t n) {
    if (n == 1) return 0;
    int64_t at = 0, direction = i < 0 ? -1 : 1;
    for (int64_t left = i < 0 ? -i : i; left > 0; left--) {
        at += direction;
        if (at >= 0 && at < n) continue;
        if (strcmp(mode, "edge") == 0) {
            at -= direction;
        } else if (strcmp(mode, "wrap") == 0) {
            at -= direction * n;
        } else {
            direction = -direction;
            at += 2 * direction;
        }
    }
    return at;
}

static double padded_at(const void *ctx, const tide_shape *out, const int64_t *index) {
    const padded *const p = ctx;
    int64_t own[TIDE_MAX_RANK];
    for (int32_t d = 0; d < out->rank; d++) {
        own[d] = index[d] - p->begin[d];
        const bool outside = own[d] < 0 || own[d] >= p->in.shape.dims[d];
        if (outside && strcmp(p->mode, "constant") == 0) return 7;
        if (outside) own[d] = walk_to(p->mode, own[d], p->in.shape.dims[d]);
    }
    return p->in.v[flatten(&p->in.shape, own)];
}

static void test_pad(void **state) {
    (void)state;
    static const char *const modes[] = {"constant", "reflect", "edge", "wrap"};
    for (int round = 0; round < N_ROUNDS; round++) {
        begin_round(round);
        tide_shape out = {.rank = (int32_t)between(1, 4)};
        padded p = {.in = fill(random_dtype(), random_shape(out.rank)), .mode = modes[below(4)]};
        const bool constant = strcmp(p.mode, "constant") == 0;
        int64_t pads[8];
        for (int32_t d = 0; d < out.rank; d++) {
            const int64_t least = constant ? -p.in.shape.dims[d] / 2 : 0;
            pads[d] = p.begin[d] = between(least, 4);
            pads[d + out.rank] = between(least, 4);
            out.dims[d] = p.in.shape.dims[d] + pads[d] + pads[d + out.rank];
        }
        int64_t seven[1] = {0};
        tide_data_store_f64(p.in.dtype, seven, 0, 7);
        op_case c = case_begin("Pad", 19);
        feed(&c, &p.in);
        feed_i64(&c, 2 * out.rank, pads);
        case_in(&c, p.in.dtype, DIMS0, seven);
        case_string(&c, "mode", p.mode);
        check(&c, &out, padded_at, &p);
        drop(&p.in);
    }
}

typedef struct joined {
    filled in[3];
    int32_t axis;
} joined;

static double joined_at(const void *ctx, const tide_shape *out, const int64_t *index) {
    const joined *const j = ctx;
    int64_t own[TIDE_MAX_RANK];
    for (int32_t d = 0; d < out->rank; d++) own[d] = index[d];
    int i = 0;
    for (; own[j->axis] >= j->in[i].shape.dims[j->axis]; i++) own[j->axis] -= j->in[i].shape.dims[j->axis];
    return j->in[i].v[flatten(&j->in[i].shape, own)];
}

static void test_concat(void **state) {
    (void)state;
    for (int round = 0; round < N_ROUNDS; round++) {
        begin_round(round);
        tide_shape out = random_shape((int32_t)between(1, 4));
        const tide_dtype dtype = random_dtype();
        joined j = {.axis = (int32_t)below(out.rank)};
        int64_t sum = 0;
        op_case c = case_begin("Concat", 13);
        for (int i = 0; i < 3; i++) {
            tide_shape part = out;
            sum += part.dims[j.axis] = between(0, 4);
            j.in[i] = fill(dtype, part);
            feed(&c, &j.in[i]);
        }
        out.dims[j.axis] = sum;
        case_int(&c, "axis", j.axis - (below(2) == 0 ? 0 : out.rank));
        check(&c, &out, joined_at, &j);
        for (int i = 0; i < 3; i++) drop(&j.in[i]);
    }
}

typedef struct gathered {
    filled in;
    filled indices; ///< as int64
    int32_t axis;
} gathered;

static double gathered_at(const void *ctx, const tide_shape *out, const int64_t *index) {
    const gathered *const g = ctx;
    int64_t own[TIDE_MAX_RANK], at[TIDE_MAX_RANK];
    (void)out;
    for (int32_t d = 0; d < g->indices.shape.rank; d++) at[d] = index[g->axis + d];
    for (int32_t d = 0; d < g->in.shape.rank; d++)
        own[d] = d < g->axis ? index[d] : d > g->axis ? index[d + g->indices.shape.rank - 1] : 0;
    const int64_t picked = g->indices.v[flatten(&g->indices.shape, at)];
    own[g->axis] = picked < 0 ? picked + g->in.shape.dims[g->axis] : picked;
    return g->in.v[flatten(&g->in.shape, own)];
}

static void test_gather(void **state) {
    (void)state;
    for (int round = 0; round < N_ROUNDS; round++) {
        begin_round(round);
        gathered g = {.in = fill(random_dtype(), random_shape((int32_t)between(1, 3)))};
        g.axis = (int32_t)below(g.in.shape.rank);
        tide_shape at = {.rank = (int32_t)between(0, 2)};
        for (int32_t d = 0; d < at.rank; d++) at.dims[d] = between(0, 4);
        g.indices = fill(TIDE_I64, at);
        const int64_t extent = g.in.shape.dims[g.axis];
        for (int64_t i = 0; i < g.indices.n; i++) {
            g.indices.v[i] = (int8_t)between(-extent, extent - 1);
            tide_data_store_f64(TIDE_I64, g.indices.raw, i, g.indices.v[i]);
        }
        tide_shape out = {.rank = 0};
        for (int32_t d = 0; d < g.axis; d++) out.dims[out.rank++] = g.in.shape.dims[d];
        for (int32_t d = 0; d < at.rank; d++) out.dims[out.rank++] = at.dims[d];
        for (int32_t d = g.axis + 1; d < g.in.shape.rank; d++) out.dims[out.rank++] = g.in.shape.dims[d];
        op_case c = case_begin("Gather", 13);
        feed(&c, &g.in);
        feed(&c, &g.indices);
        case_int(&c, "axis", g.axis);
        check(&c, &out, gathered_at, &g);
        drop(&g.in);
        drop(&g.indices);
    }
}

// ---- Reduce and ArgMax ----

typedef struct reduced {
    filled in;
    bool go[TIDE_MAX_RANK];
    bool keep;
    int what; ///< 0 sum, 1 max, 2 sum of absolute values, 3 mean of floats
} reduced;

static double reduced_at(const void *ctx, const tide_shape *out, const int64_t *index) {
    const reduced *const r = ctx;
    (void)out;
    double sum = 0, max = -INFINITY, l1 = 0, n = 0;
    for (int64_t i = 0; i < r->in.n; i++) {
        int64_t own[TIDE_MAX_RANK];
        unflatten(i, &r->in.shape, own);
        bool mine = true;
        for (int32_t d = 0, to = 0; d < r->in.shape.rank; d++) {
            if (!r->go[d]) mine = mine && own[d] == index[to];
            if (!r->go[d] || r->keep) to++;
        }
        if (!mine) continue;
        const double v = r->in.v[i];
        sum += v;
        l1 += fabs(v);
        max = fmax(max, v);
        n++;
    }
    return r->what == 0 ? sum : r->what == 1 ? max : r->what == 2 ? l1 : (double)(float)(sum / n);
}

static void test_reduce(void **state) {
    (void)state;
    static const char *const names[] = {"ReduceSum", "ReduceMax", "ReduceL1", "ReduceMean"};
    for (int round = 0; round < N_ROUNDS; round++) {
        begin_round(round);
        reduced r = {.what = (int)below(4), .keep = below(2) == 0};
        tide_shape shape = random_shape((int32_t)between(1, 4));
        while (tide_op_numel(&shape) > 600) shape = random_shape(shape.rank);
        if (below(4) == 0) shape = (tide_shape){.rank = 2, .dims = {between(1, 3), between(60, 140)}}; // fills blocks
        r.in = fill(r.what == 3 ? TIDE_F32 : below(2) == 0 ? TIDE_I64 : TIDE_F32, shape);
        int64_t axes[TIDE_MAX_RANK];
        int64_t n = 0;
        tide_shape out = {.rank = 0};
        for (int32_t d = 0; d < shape.rank; d++) {
            r.go[d] = below(2) == 0;
            if (r.go[d]) axes[n++] = d;
            if (!r.go[d] || r.keep) out.dims[out.rank++] = r.go[d] ? 1 : shape.dims[d];
        }
        op_case c = case_begin(names[r.what], 18);
        feed(&c, &r.in);
        feed_i64(&c, n, axes);
        case_int(&c, "keepdims", r.keep);
        case_int(&c, "noop_with_empty_axes", 1);
        check(&c, &out, reduced_at, &r);
        drop(&r.in);
    }
}

typedef struct searched {
    filled in;
    int32_t axis;
    bool last;
} searched;

static double searched_at(const void *ctx, const tide_shape *out, const int64_t *index) {
    const searched *const s = ctx;
    int64_t own[TIDE_MAX_RANK], found = -1;
    double best = 0;
    for (int32_t d = 0; d < out->rank; d++) own[d] = index[d];
    for (own[s->axis] = 0; own[s->axis] < s->in.shape.dims[s->axis]; own[s->axis]++) {
        const double v = s->in.v[flatten(&s->in.shape, own)];
        if (found >= 0 && (s->last ? v < best : v <= best)) continue;
        best = v;
        found = own[s->axis];
    }
    return (double)found;
}

static void test_arg_max(void **state) {
    (void)state;
    for (int round = 0; round < N_ROUNDS; round++) {
        begin_round(round);
        tide_shape out = random_shape((int32_t)between(1, 4));
        if (below(4) == 0) out = (tide_shape){.rank = 2, .dims = {between(1, 3), between(60, 140)}};
        searched s = {.in = fill(random_dtype(), out), .axis = (int32_t)below(out.rank), .last = below(2) == 0};
        out.dims[s.axis] = 1;
        op_case c = case_begin("ArgMax", 13);
        feed(&c, &s.in);
        case_int(&c, "axis", s.axis);
        case_int(&c, "select_last_index", s.last);
        check(&c, &out, searched_at, &s);
        drop(&s.in);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_transpose), tide_unit_test(test_slice),  tide_unit_test(test_broadcasting),
        tide_unit_test(test_tile),      tide_unit_test(test_pad),    tide_unit_test(test_concat),
        tide_unit_test(test_gather),    tide_unit_test(test_reduce), tide_unit_test(test_arg_max),
    };
    return cmocka_run_group_tests_name("data_oracle", tests, NULL, NULL);
}
