// SPDX-License-Identifier: MIT
//
// Random small graphs of views, slices, splits, concatenations and elementwise operators, planned with the alias
// passes: whatever lies on whatever, a planned run gives the bits of the naive one, under poison and zero, with every
// strategy that packs.
#include "core/runtime/runtime_internal.h"
#include "rt_util.h"

enum { MAX_VALUES = 40, N_GRAPHS = 1000 };

typedef struct value {
    char name[8];
    int64_t dims[3];
    bool used;
} value;

typedef struct builder {
    tide_graph *g;
    tide_rng rng;
    value values[MAX_VALUES];
    size_t n, n_nodes, n_constants;
} builder;

static size_t pick(builder *b, size_t n) { return (size_t)tide_rng_below(&b->rng, n); }

static value *add_value(builder *b, int64_t d0, int64_t d1, int64_t d2) {
    value *v = &b->values[b->n];
    *v = (value){.dims = {d0, d1, d2}};
    snprintf(v->name, sizeof v->name, "v%zu", b->n++);
    return v;
}

static bool alike(const value *a, const value *b) { return memcmp(a->dims, b->dims, sizeof a->dims) == 0; }

/// Any value, the latest more often than the rest; graph inputs too.
static value *any(builder *b) {
    const size_t back = pick(b, 3) == 0 ? b->n : b->n < 4 ? b->n : 4;
    value *v = &b->values[b->n - 1 - pick(b, back)];
    v->used = true;
    return v;
}

/// Another one of the same shape, or the same.
static value *any_like(builder *b, const value *a) {
    for (size_t tries = 0; tries < 12; tries++) {
        value *v = &b->values[pick(b, b->n)];
        if (!alike(a, v)) continue;
        v->used = true;
        return v;
    }
    return (value *)(uintptr_t)a;
}

static const char *node_name(builder *b, char buf[16]) {
    snprintf(buf, 16, "n%zu", b->n_nodes++);
    return buf;
}

/// Names with commas between them.
static void join(char *out, size_t out_bytes, const char *a, const char *b) {
    snprintf(out + strlen(out), out_bytes - strlen(out), "%s%s%s", out[0] != '\0' ? "," : "", a, b);
}

static const char *constant(builder *b, const int64_t *data, size_t n, char name[16]) {
    snprintf(name, 16, "k%zu", b->n_constants++);
    rt_weight_i64(b->g, name, data, n);
    return name;
}

static void unary(builder *b) {
    static const char *const ops[] = {"Relu", "Tanh", "Sigmoid", "Neg", "Softmax", "Identity"};
    char name[16];
    const value *x = any(b);
    const value *y = add_value(b, x->dims[0], x->dims[1], x->dims[2]);
    rt_node(b->g, ops[pick(b, 6)], node_name(b, name), x->name, y->name);
}

static void binary(builder *b) {
    static const char *const ops[] = {"Add", "Mul", "Sub", "Max"};
    char name[16], in[64] = "";
    const value *x = any(b), *y = any_like(b, x);
    join(in, sizeof in, pick(b, 2) != 0 ? x->name : y->name, "");
    join(in, sizeof in, y->name, "");
    const value *z = add_value(b, x->dims[0], x->dims[1], x->dims[2]);
    rt_node(b->g, ops[pick(b, 4)], node_name(b, name), in, z->name);
}

static void sum(builder *b) {
    char name[16], in[64] = "";
    const value *x = any(b);
    for (size_t i = 0; i < 3; i++) join(in, sizeof in, any_like(b, x)->name, "");
    const value *z = add_value(b, x->dims[0], x->dims[1], x->dims[2]);
    rt_node(b->g, "Sum", node_name(b, name), in, z->name);
}

static void concat(builder *b) {
    char name[16], in[64] = "";
    const value *x = any(b);
    const size_t axis = pick(b, 3), n = 2 + pick(b, 2);
    int64_t dims[3] = {x->dims[0], x->dims[1], x->dims[2]};
    const size_t at = pick(b, n);
    dims[axis] = 0;
    for (size_t i = 0; i < n; i++) {
        const value *y = x;
        for (size_t tries = 0; i != at && tries < 8; tries++) {
            const value *c = &b->values[pick(b, b->n)];
            bool fits = true;
            for (size_t d = 0; d < 3; d++) fits = fits && (d == axis || c->dims[d] == x->dims[d]);
            if (fits) y = c;
        }
        b->values[y - b->values].used = true;
        dims[axis] += y->dims[axis];
        join(in, sizeof in, y->name, "");
    }
    if (dims[0] * dims[1] * dims[2] > 2048) return;
    const value *z = add_value(b, dims[0], dims[1], dims[2]);
    const uint32_t node = rt_node(b->g, "Concat", node_name(b, name), in, z->name);
    rt_attr_int(b->g, node, "axis", (int64_t)axis);
}

static void split(builder *b) {
    char name[16], k[16], in[64] = "", out[64] = "";
    const value *x = any(b);
    const size_t axis = pick(b, 3);
    if (x->dims[axis] < 2) return;
    const int64_t first = 1 + (int64_t)pick(b, (size_t)x->dims[axis] - 1), parts[2] = {first, x->dims[axis] - first};
    int64_t dims[3] = {x->dims[0], x->dims[1], x->dims[2]};
    join(in, sizeof in, x->name, "");
    join(in, sizeof in, constant(b, parts, 2, k), "");
    for (size_t i = 0; i < 2; i++) {
        dims[axis] = parts[i];
        join(out, sizeof out, add_value(b, dims[0], dims[1], dims[2])->name, "");
    }
    const uint32_t node = rt_node(b->g, "Split", node_name(b, name), in, out);
    rt_attr_int(b->g, node, "axis", (int64_t)axis);
}

static void slice(builder *b) {
    char name[16], k[16], in[64] = "";
    const value *x = any(b);
    const int64_t axis = (int64_t)pick(b, 3), extent = x->dims[axis];
    const int64_t from = (int64_t)pick(b, (size_t)extent), to = from + 1 + (int64_t)pick(b, (size_t)(extent - from));
    int64_t dims[3] = {x->dims[0], x->dims[1], x->dims[2]};
    dims[axis] = to - from;
    join(in, sizeof in, x->name, "");
    join(in, sizeof in, constant(b, &from, 1, k), "");
    join(in, sizeof in, constant(b, &to, 1, k), "");
    join(in, sizeof in, constant(b, &axis, 1, k), "");
    const value *y = add_value(b, dims[0], dims[1], dims[2]);
    rt_node(b->g, "Slice", node_name(b, name), in, y->name);
}

static void gather(builder *b) {
    char name[16], k[16], in[64] = "";
    const value *x = any(b);
    const int64_t axis = (int64_t)pick(b, 2), extent = x->dims[axis];
    int64_t rows[3];
    const size_t n = 1 + pick(b, extent < 3 ? (size_t)extent : 3), first = pick(b, (size_t)extent - n + 1);
    for (size_t i = 0; i < n; i++) rows[i] = (int64_t)(first + i);
    if (pick(b, 4) == 0) rows[0] = extent - 1;
    int64_t dims[3] = {x->dims[0], x->dims[1], x->dims[2]};
    dims[axis] = (int64_t)n;
    join(in, sizeof in, x->name, "");
    join(in, sizeof in, constant(b, rows, n, k), "");
    const value *y = add_value(b, dims[0], dims[1], dims[2]);
    const uint32_t node = rt_node(b->g, "Gather", node_name(b, name), in, y->name);
    rt_attr_int(b->g, node, "axis", axis);
}

static void reshape(builder *b) {
    char name[16], k[16], in[64] = "";
    const value *x = any(b);
    const int64_t n = x->dims[0] * x->dims[1] * x->dims[2];
    int64_t dims[3] = {1, n / x->dims[2], x->dims[2]};
    if (pick(b, 3) == 0 && n % 32 == 0) dims[1] = n / 32, dims[2] = 32;
    if (pick(b, 4) == 0) dims[0] = dims[1], dims[1] = 1;
    join(in, sizeof in, x->name, "");
    join(in, sizeof in, constant(b, dims, 3, k), "");
    const value *y = add_value(b, dims[0], dims[1], dims[2]);
    rt_node(b->g, "Reshape", node_name(b, name), in, y->name);
}

static void transpose(builder *b) {
    static const int64_t perms[][3] = {{1, 0, 2}, {0, 2, 1}, {2, 1, 0}};
    char name[16];
    const value *x = any(b);
    const int64_t *perm = perms[pick(b, 3)];
    const value *y = add_value(b, x->dims[perm[0]], x->dims[perm[1]], x->dims[perm[2]]);
    const uint32_t node = rt_node(b->g, "Transpose", node_name(b, name), x->name, y->name);
    rt_attr_ints(b->g, node, "perm", perm, 3);
}

static void scatter(builder *b) {
    char name[16], k[16], in[64] = "";
    const value *x = any(b);
    const int64_t row = (int64_t)pick(b, (size_t)x->dims[0]);
    // An update of one row with a value of that shape, which may be a view of the data.
    const value like = {.dims = {1, x->dims[1], x->dims[2]}};
    const value *u = any_like(b, &like);
    if (u == &like) return;
    snprintf(k, sizeof k, "k%zu", b->n_constants);
    rt_weight_i64(b->g, k, &row, 1);
    b->n_constants++;
    char shaped[24];
    snprintf(shaped, sizeof shaped, "%s_i", k);
    const int64_t dims[2] = {1, 1};
    char dk[16], din[64] = "";
    join(din, sizeof din, k, "");
    join(din, sizeof din, constant(b, dims, 2, dk), "");
    rt_node(b->g, "Reshape", node_name(b, name), din, shaped);
    join(in, sizeof in, x->name, "");
    join(in, sizeof in, shaped, "");
    join(in, sizeof in, u->name, "");
    const value *y = add_value(b, x->dims[0], x->dims[1], x->dims[2]);
    rt_node(b->g, "ScatterND", node_name(b, name), in, y->name);
}

/// Rows of 16 floats are 64 B: most stretches lie where an alias may; those of 5 floats do not.
static tide_graph *random_graph(uint64_t seed) {
    static void (*const ops[])(builder *) = {unary, unary, binary, binary, sum,     concat,  concat,    concat,
                                             split, split, slice,  gather, reshape, reshape, transpose, scatter};
    builder b = {.g = rt_graph("random"), .rng = {seed}};
    const char *shapes[] = {"1x4x16", "1x2x16", "2x3x16", "1x6x5"};
    const size_t n_inputs = 1 + pick(&b, 2);
    for (size_t i = 0; i < n_inputs; i++) {
        const size_t s = i == 0 ? pick(&b, 4) : 0;
        tide_shape shape;
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(tide_shape_parse(shapes[s], &shape, &err), &err);
        const value *v = add_value(&b, shape.dims[0], shape.dims[1], shape.dims[2]);
        rt_input(b.g, v->name, shapes[s]);
        // What is fed has memory of its own: the play begins behind it.
        const value *y = add_value(&b, shape.dims[0], shape.dims[1], shape.dims[2]);
        char name[16];
        rt_node(b.g, "Tanh", node_name(&b, name), v->name, y->name);
        b.values[0].used = true;
    }
    const size_t n_steps = 6 + pick(&b, 16);
    for (size_t i = 0; i < n_steps && b.n + 2 < MAX_VALUES; i++) ops[pick(&b, sizeof ops / sizeof *ops)](&b);
    for (size_t i = 2 * n_inputs; i < b.n; i++) {
        if (!b.values[i].used || pick(&b, 12) == 0) rt_output(b.g, b.values[i].name); // early ones too
    }
    if (b.n == 2 * n_inputs) rt_output(b.g, b.values[1].name);
    return b.g;
}

static size_t n_found[TIDE_N_PASSES], n_persistent;

/// No byte of what is fed, asked for or constant is a byte of the buffer, and nothing of it lies in anything.
static void check_persistent(const tide_program *p, const tide_memory_plan *m, const tide_context *c) {
    const char *const base = tide_context_buffer(c);
    for (uint32_t i = 0; i < m->lifetimes.n; i++) {
        const tide_lifetime *lt = &m->lifetimes.items[i];
        const tide_value *v = lt->value != TIDE_NO_INDEX ? &p->graph->values[lt->value] : NULL;
        const bool must = v != NULL && (v->is_input || v->is_output || v->constant != NULL);
        assert_int_equal(lt->persistent, must);
        assert_int_equal(m->offsets[i] == TIDE_NO_OFFSET, must);
        assert_false(!must && m->lifetimes.items[tide_lifetimes_root(&m->lifetimes, i, NULL)].persistent);
        if (!must || base == NULL || v->constant != NULL) continue;
        const char *at = tide_tensor_const_data(tide_context_value(c, lt->value));
        assert_true(at + lt->size_bytes <= base || base + m->bytes <= at);
        n_persistent++;
    }
}

static void compare(rt_rig *rig, tide_program *p, const tide_memory_plan *m, tide_fill fill, uint64_t seed) {
    tide_inference_plan *ip = rt_inference(rig, p, m);
    tide_context *naive = rt_context(ip, TIDE_RUN_NAIVE, fill), *planned = rt_context(ip, TIDE_RUN_PLANNED, fill);
    for (uint64_t turn = 0; turn < 2; turn++) {
        rt_feed(naive, p, rig, seed + turn);
        rt_feed(planned, p, rig, seed + turn);
        rt_run(naive);
        rt_run(planned);
        rt_assert_same_outputs(naive, planned);
        check_persistent(p, m, planned);
    }
    tide_context_destroy(naive);
    tide_context_destroy(planned);
    tide_inference_plan_unref(ip);
}

static void count(const tide_memory_plan *m) {
    for (size_t i = 0; i < m->lifetimes.n; i++) {
        switch (m->lifetimes.items[i].alias) {
        case TIDE_ALIAS_VIEW:
            n_found[TIDE_PASS_VIEWS]++;
            break;
        case TIDE_ALIAS_SLICE:
            n_found[TIDE_PASS_SLICES]++;
            break;
        case TIDE_ALIAS_IN_PLACE:
            n_found[TIDE_PASS_IN_PLACE]++;
            break;
        case TIDE_ALIAS_PART:
            n_found[TIDE_PASS_PARTS]++;
            break;
        default:
            break;
        }
    }
}

static uint64_t bound_after_passes(tide_program *p) {
    tide_pass_options opt = {.align_bytes = TIDE_DEFAULT_ALIGN};
    opt.off[TIDE_PASS_ORDER] = true; // which would change the program
    tide_pass_report report;
    tide_lifetimes lt;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_passes_run(p, &opt, &lt, &report, &err), &err);
    tide_lifetimes_deinit(&lt);
    return report.final_bytes;
}

// S23-6 with it: in the plans of all these graphs nothing persistent shares a byte with an intermediate.
static void test_planned_runs_are_the_naive_ones_X6_X8(void **state) {
    (void)state;
    static const char *const strategies[] = {"search", "greedy_color", "linear_scan", "greedy_by_breadth"};
    uint64_t saved = 0, bytes = 0;
    for (uint64_t seed = 0; seed < N_GRAPHS; seed++) {
        rt_rig rig;
        rt_rig_open(&rig);
        tide_program *p = rt_build(random_graph(seed));
        // All passes for the most part, any set of them for the rest.
        const unsigned passes = seed % 3 != 0 ? RT_ALL_ALIASES : (unsigned)(seed / 3) % 16 & RT_ALL_ALIASES;
        tide_memory_plan *m = rt_plan_aliased(p, strategies[seed % 4], passes, NULL);
        tide_memory_plan *bare = rt_plan(p, "greedy_by_size");
        assert_int_equal(m->naive_peak_bytes, bare->naive_peak_bytes);
        // Each pass alone may need a little more, when something lies askew; all of them together undo what does.
        const uint64_t bound = bound_after_passes(p);
        if (bound > bare->lower_bound_bytes) fail_msg("graph %llu needs more", (unsigned long long)seed);
        saved += bare->lower_bound_bytes - bound;
        bytes += bare->lower_bound_bytes;
        count(m);
        compare(&rig, p, m, seed % 2 != 0 ? TIDE_FILL_POISON : TIDE_FILL_ZERO, seed);
        tide_memory_plan_destroy(bare);
        tide_memory_plan_destroy(m);
        tide_program_unref(p);
        rt_rig_close(&rig);
    }
    print_message("%d graphs: views %zu, slices %zu, in place %zu, parts %zu; lower bounds together %.1f %% smaller\n",
                  N_GRAPHS, n_found[TIDE_PASS_VIEWS], n_found[TIDE_PASS_SLICES], n_found[TIDE_PASS_IN_PLACE],
                  n_found[TIDE_PASS_PARTS], 100.0 * (double)saved / (double)bytes);
    for (int pass = TIDE_PASS_VIEWS; pass <= TIDE_PASS_PARTS; pass++) assert_true(n_found[pass] > 100);
    assert_true(n_persistent > 4000);
}

// ---- invalid plans ----

/// Two entries with places that are needed at the same time; they may be the same where there are no two.
static void pick_two(const tide_memory_plan *m, tide_rng *rng, size_t *i, size_t *j) {
    for (size_t tries = 0; tries < 100; tries++) {
        *i = (size_t)tide_rng_below(rng, m->lifetimes.n);
        *j = (size_t)tide_rng_below(rng, m->lifetimes.n);
        const tide_lifetime *a = &m->lifetimes.items[*i], *b = &m->lifetimes.items[*j];
        if (*i != *j && m->offsets[*i] != TIDE_NO_OFFSET && m->offsets[*j] != TIDE_NO_OFFSET &&
            a->begin_step < b->end_step && b->begin_step < a->end_step)
            return;
    }
    *i = *j = 0;
}

/// Lay one entry on another that lives with it, said or not. @return false: there are no two
static bool spoil(tide_memory_plan *m, tide_rng *rng) {
    size_t i, j;
    pick_two(m, rng, &i, &j);
    if (i == j) return false;
    tide_lifetime *lt = &m->lifetimes.items[i];
    const uint64_t room = m->lifetimes.items[j].size_bytes / 64 + 1, at = 64 * tide_rng_below(rng, room);
    const bool front = tide_rng_below(rng, 2) == 0;
    // Inside an alias it would have to be said of the root, or there might be a ring.
    const bool said = m->lifetimes.items[j].alias == TIDE_ALIAS_NONE && tide_rng_below(rng, 2) != 0;
    lt->alias = said ? TIDE_ALIAS_GIVEN : TIDE_ALIAS_NONE;
    lt->alias_of = (uint32_t)j;
    lt->alias_offset_bytes = front ? 0 : at;
    lt->align_bytes = 64;
    m->offsets[i] = m->offsets[j] + lt->alias_offset_bytes;
    return true;
}

/// Whatever a plan says: it is refused, or gives the naive run's bits, and touches nothing that it does not own.
static void test_spoilt_plans_are_refused_or_right(void **state) {
    (void)state;
    enum { N_SPOILT_GRAPHS = 200, N_TRIES = 20 };
    size_t n_refused = 0, n_right = 0;
    for (uint64_t seed = 0; seed < N_SPOILT_GRAPHS; seed++) {
        rt_rig rig;
        rt_rig_open(&rig);
        tide_rng rng = {seed};
        tide_program *p = rt_build(random_graph(seed));
        tide_memory_plan *m = rt_plan_aliased(p, "greedy_by_size", seed % 2 != 0 ? RT_ALL_ALIASES : 0, NULL);
        for (size_t k = 0; k < N_TRIES; k++) {
            tide_error err = TIDE_ERROR_INIT;
            tide_memory_plan *bad;
            tide_inference_plan *ip;
            assert_tide_ok(tide_memory_plan_copy(m, &bad, &err), &err);
            const tide_inference_plan_options opt = {.device = TIDE_CPU, .registry = rig.registry, .memory_plan = bad};
            if (spoil(bad, &rng)) {
                const tide_status st = tide_inference_plan_create(p, &opt, &ip, &err);
                if (st == TIDE_OK) {
                    tide_inference_plan_unref(ip);
                    compare(&rig, p, bad, TIDE_FILL_POISON, seed);
                    n_right++;
                } else {
                    assert_true(st == TIDE_ERR_RUNTIME || st == TIDE_ERR_NO_SPACE);
                    n_refused++;
                }
            }
            tide_memory_plan_destroy(bad);
        }
        tide_memory_plan_destroy(m);
        tide_program_unref(p);
        rt_rig_close(&rig);
    }
    print_message("%zu spoilt plans refused, %zu right all the same\n", n_refused, n_right);
    assert_true(n_refused > 500 && n_right > 50);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_planned_runs_are_the_naive_ones_X6_X8),
        tide_unit_test(test_spoilt_plans_are_refused_or_right),
    };
    return tide_registry_default() == NULL ? 1 : cmocka_run_group_tests_name("alias_graphs", tests, NULL, NULL);
}
