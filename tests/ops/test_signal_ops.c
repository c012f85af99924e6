// SPDX-License-Identifier: MIT
//
// TopK, Fourier transforms, windows, mel weights, n-grams, optimisers, MaxPool's places and MaxUnpool,
// MeanVarianceNormalization and BatchNormalization in training, against plain calculations of their own and at their
// edges.
#include "tests/ops/data_case.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

static const float *floats_of(const op_case *c, size_t i) { return tide_tensor_const_data(case_out(c, i)->constant); }

static void run_case(op_case *c, size_t n_out) {
    assert_tide_ok(case_try(c, n_out), &c->err);
    for (size_t i = 0; i < n_out; i++) assert_non_null(case_out(c, i)->constant);
}

static void assert_near(const op_case *c, size_t i, const double *want, int64_t n, double tolerance) {
    const float *got = floats_of(c, i);
    assert_int_equal(tide_op_numel(&case_out(c, i)->shape), n);
    for (int64_t k = 0; k < n; k++)
        if (!(fabs((double)got[k] - want[k]) <= tolerance))
            fail_msg("%s: output %zu element %lld is %.9g, want %.9g", c->op, i, (long long)k, (double)got[k], want[k]);
}

static void draw(float *x, int64_t n, uint64_t seed) {
    tide_rng rng = {seed};
    for (int64_t i = 0; i < n; i++) x[i] = (float)(tide_rng_f64(&rng) * 2 - 1);
}

static void case_floats(op_case *c, const char *name, size_t n, const float *v) {
    tide_attr *a = case_attr(c, name, TIDE_ATTR_FLOATS);
    a->n = n;
    a->floats = tide_host_calloc(n + 1, sizeof *a->floats);
    assert_non_null(a->floats);
    memcpy(a->floats, v, n * sizeof *v);
}

// ---- TopK ----

/// One line of n floats: the best k by looking k times for the best that is left.
static void best_of(const float *x, int64_t n, int64_t step, int64_t k, bool largest, int64_t *best) {
    bool taken[64] = {false};
    for (int64_t r = 0; r < k; r++) {
        best[r] = -1;
        for (int64_t i = 0; i < n; i++) {
            if (taken[i]) continue;
            const float v = x[i * step], w = best[r] >= 0 ? x[best[r] * step] : 0;
            const bool above = isnan(v) ? !isnan(w) : v > w, below = isnan(w) ? !isnan(v) : v < w;
            if (best[r] < 0 || (largest ? above : below)) best[r] = i;
        }
        taken[best[r]] = true;
    }
}

static void test_top_k(void **state) {
    (void)state;
    float x[2 * 40 * 3];
    tide_rng rng = {7};
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        x[i] = i % 17 == 3 ? NAN : (float)tide_rng_below(&rng, 12); // many alike
    for (int64_t k = 0; k <= 40; k += k < 4 ? 1 : 9) {
        for (int largest = 0; largest < 2; largest++) {
            op_case c = case_begin("TopK", 11);
            case_in(&c, TIDE_F32, DIMS(2, 40, 3), x);
            case_in(&c, TIDE_I64, DIMS(1), &k);
            case_int(&c, "axis", 1);
            case_int(&c, "largest", largest);
            run_case(&c, 2);
            assert_int_equal(case_out(&c, 1)->shape.dims[1], k);
            const float *values = floats_of(&c, 0);
            const int64_t *indices = tide_tensor_const_data(case_out(&c, 1)->constant);
            for (int64_t line = 0; line < 6; line++) {
                int64_t best[64];
                const int64_t from = line / 3 * 120 + line % 3, to = line / 3 * k * 3 + line % 3;
                best_of(x + from, 40, 3, k, largest != 0, best);
                for (int64_t r = 0; r < k; r++) {
                    assert_int_equal(indices[to + r * 3], best[r]);
                    assert_memory_equal(&values[to + r * 3], &x[from + best[r] * 3], sizeof(float));
                }
            }
            case_end(&c);
        }
    }
}

static void test_top_k_at_its_edges(void **state) {
    (void)state;
    static const int64_t big[] = {INT64_MAX - 1, INT64_MAX, INT64_MIN, INT64_MAX - 2}; // one double for three of them
    op_case c = case_begin("TopK", 11);
    case_in(&c, TIDE_I64, DIMS(4), big);
    case_in(&c, TIDE_I64, DIMS(1), &(int64_t){3});
    case_want(&c, TIDE_I64, DIMS(3), (const int64_t[]){INT64_MAX, INT64_MAX - 1, INT64_MAX - 2});
    c = case_begin("TopK", 1);
    case_in(&c, TIDE_U8, DIMS(2, 3), (const uint8_t[]){3, 255, 0, 7, 7, 9});
    case_int(&c, "k", 2);
    case_want(&c, TIDE_U8, DIMS(2, 2), (const uint8_t[]){255, 3, 9, 7});
    c = case_begin("TopK", 10);
    case_in(&c, TIDE_F32, DIMS(0, 3), NULL);
    case_in(&c, TIDE_I64, DIMS(1), &(int64_t){2});
    case_want(&c, TIDE_F32, DIMS(0, 2), NULL);
    static const int64_t wrong[] = {4, -1};
    for (int i = 0; i < 2; i++) {
        c = case_begin("TopK", 11);
        case_in(&c, TIDE_F32, DIMS(3), (const float[]){1, 2, 3});
        case_in(&c, TIDE_I64, DIMS(1), &wrong[i]);
        case_refused(&c, TIDE_ERR_BAD_INPUT, i == 0 ? "K is 4 of the 3" : "K is -1");
    }
    c = case_begin("TopK", 11);
    case_in(&c, TIDE_F32, DIMS(3), (const float[]){1, 2, 3});
    case_in(&c, TIDE_I64, DIMS(0), NULL);
    case_refused(&c, TIDE_ERR_BAD_INPUT, "K has no element");
}

// ---- Fourier ----

/// out [n_out, 2] = the transform of n complex numbers, term by term.
static void transform(const double *in, int64_t n, bool inverse, int64_t n_out, double *out) {
    for (int64_t k = 0; k < n_out; k++) {
        double re = 0, im = 0;
        for (int64_t i = 0; i < n; i++) {
            const double angle = (inverse ? 2 : -2) * pi * (double)(i * k % n) / (double)n;
            re += in[2 * i] * cos(angle) - in[2 * i + 1] * sin(angle);
            im += in[2 * i] * sin(angle) + in[2 * i + 1] * cos(angle);
        }
        out[2 * k] = inverse ? re / (double)n : re;
        out[2 * k + 1] = inverse ? im / (double)n : im;
    }
}

static void run_dft(int64_t n, int64_t length, int64_t parts, bool inverse, bool onesided) {
    float x[128];
    double in[256] = {0}, want[256];
    draw(x, n * parts, (uint64_t)(n * 100 + length));
    for (int64_t i = 0; i < n && i < length; i++) {
        in[2 * i] = (double)x[i * parts];
        in[2 * i + 1] = parts == 2 ? (double)x[i * parts + 1] : 0;
    }
    const int64_t n_out = onesided ? length / 2 + 1 : length;
    transform(in, length, inverse, n_out, want);
    op_case c = case_begin("DFT", 17);
    case_in(&c, TIDE_F32, DIMS(1, n, parts), x);
    if (length != n) case_in(&c, TIDE_I64, DIMS0, &length);
    case_int(&c, "inverse", inverse);
    case_int(&c, "onesided", onesided);
    run_case(&c, 1);
    assert_near(&c, 0, want, 2 * n_out, 1e-5);
    case_end(&c);
}

static void test_dft_of_every_length(void **state) {
    (void)state;
    for (int64_t n = 1; n <= 60; n++) {
        run_dft(n, n, 1, false, false);
        run_dft(n, n, 1, false, true);
        run_dft(n, n, 2, n % 2 == 1, false);
        run_dft(n, n + 3, 2, true, false);            // filled
        if (n > 4) run_dft(n, n - 3, 1, false, true); // cut
    }
}

static void test_dft_along_an_axis(void **state) {
    (void)state;
    float x[2 * 5 * 3];
    double want[2 * 5 * 3 * 2];
    draw(x, 30, 1);
    for (int64_t line = 0; line < 6; line++) {
        double in[10] = {0}, out[10];
        for (int64_t i = 0; i < 5; i++) in[2 * i] = (double)x[line / 3 * 15 + i * 3 + line % 3];
        transform(in, 5, false, 5, out);
        for (int64_t i = 0; i < 5; i++)
            memcpy(&want[(line / 3 * 15 + i * 3 + line % 3) * 2], &out[2 * i], 2 * sizeof *out);
    }
    op_case c = case_begin("DFT", 20);
    case_in(&c, TIDE_F32, DIMS(2, 5, 3, 1), x);
    case_omit(&c);
    case_in(&c, TIDE_I64, DIMS0, &(int64_t){-3});
    run_case(&c, 1);
    assert_near(&c, 0, want, 60, 1e-5);
    case_end(&c);
}

static void test_dft_refuses(void **state) {
    (void)state;
    static const struct {
        int64_t parts, axis, length, inverse, onesided;
        tide_status want;
        const char *says;
    } rows[] = {
        {3, 1, 4, 0, 0, TIDE_ERR_BAD_INPUT, "must be 1 (real) or 2"},
        {1, 2, 4, 0, 0, TIDE_ERR_BAD_INPUT, "not the last"},
        {1, 5, 4, 0, 0, TIDE_ERR_BAD_INPUT, "axis 5"},
        {1, 1, 0, 0, 0, TIDE_ERR_BAD_INPUT, "dft_length is 0"},
        {2, 1, 4, 0, 1, TIDE_ERR_BAD_INPUT, "real input"},
        {1, 1, 4, 1, 1, TIDE_ERR_NOT_IMPLEMENTED, "together"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        op_case c = case_begin("DFT", 17);
        case_in(&c, TIDE_F32, DIMS(1, 4, rows[i].parts), (const float[12]){0});
        case_in(&c, TIDE_I64, DIMS0, &rows[i].length);
        case_int(&c, "axis", rows[i].axis);
        case_int(&c, "inverse", rows[i].inverse);
        case_int(&c, "onesided", rows[i].onesided);
        case_refused(&c, rows[i].want, rows[i].says);
    }
    op_case c = case_begin("DFT", 17);
    case_in(&c, TIDE_F32, DIMS(0, 4, 1), NULL);
    case_want(&c, TIDE_F32, DIMS(0, 4, 2), NULL);
    c = case_begin("DFT", 17);
    case_in(&c, TIDE_F32, DIMS(2, 0, 1), NULL);
    case_want(&c, TIDE_F32, DIMS(2, 0, 2), NULL);
}

static void test_stft(void **state) {
    (void)state;
    float x[2 * 23], window[6];
    draw(x, 46, 3);
    draw(window, 6, 4);
    for (int onesided = 0; onesided < 2; onesided++) {
        enum { STEP = 4, FRAME = 6, FRAMES = (23 - FRAME) / STEP + 1 };
        const int64_t bins = onesided ? FRAME / 2 + 1 : FRAME;
        double want[2 * FRAMES * FRAME * 2];
        for (int64_t t = 0; t < 2 * FRAMES; t++) {
            double in[2 * FRAME] = {0};
            for (int64_t i = 0; i < FRAME; i++)
                in[2 * i] = (double)x[t / FRAMES * 23 + t % FRAMES * STEP + i] * (double)window[i];
            transform(in, FRAME, false, bins, want + t * bins * 2);
        }
        op_case c = case_begin("STFT", 17);
        case_in(&c, TIDE_F32, DIMS(2, 23, 1), x);
        case_in(&c, TIDE_I64, DIMS0, &(int64_t){STEP});
        case_in(&c, TIDE_F32, DIMS(FRAME), window);
        case_int(&c, "onesided", onesided);
        run_case(&c, 1);
        assert_near(&c, 0, want, 2 * FRAMES * bins * 2, 1e-5);
        case_end(&c);
    }
    op_case c = case_begin("STFT", 17);
    case_in(&c, TIDE_F32, DIMS(2, 23), x);
    case_in(&c, TIDE_I64, DIMS0, &(int64_t){4});
    case_refused(&c, TIDE_ERR_BAD_INPUT, "neither window nor frame_length");
    c = case_begin("STFT", 17);
    case_in(&c, TIDE_F32, DIMS(2, 23), x);
    case_in(&c, TIDE_I64, DIMS0, &(int64_t){4});
    case_omit(&c);
    case_in(&c, TIDE_I64, DIMS0, &(int64_t){24});
    case_refused(&c, TIDE_ERR_BAD_INPUT, "frames of 24 in a signal of 23");
    c = case_begin("STFT", 17);
    case_in(&c, TIDE_F32, DIMS(2, 23), x);
    case_in(&c, TIDE_I64, DIMS0, &(int64_t){0});
    case_in(&c, TIDE_F32, DIMS(6), window);
    case_refused(&c, TIDE_ERR_BAD_INPUT, "frame_step is 0");
}

// ---- windows, mel weights ----

static double window_at(const char *op, double turn) {
    if (op[1] == 'a' && op[2] == 'n') return pow(sin(pi * turn), 2);
    if (op[1] == 'a') return 25.0 / 46 - 21.0 / 46 * cos(2 * pi * turn);
    return 0.42 - 0.5 * cos(2 * pi * turn) + 0.08 * cos(4 * pi * turn);
}

static void test_windows(void **state) {
    (void)state;
    static const char *const ops[] = {"HannWindow", "HammingWindow", "BlackmanWindow"};
    for (int r = 0; r < 3 * 2 * 9; r++) {
        const int64_t size = r / 6, periodic = r / 3 % 2;
        double want[8];
        for (int64_t i = 0; i < size; i++)
            want[i] =
                size == 1 && !periodic ? 1 : window_at(ops[r % 3], (double)i / (double)(periodic ? size : size - 1));
        op_case c = case_begin(ops[r % 3], 17);
        case_in(&c, TIDE_I64, DIMS0, &size);
        case_int(&c, "periodic", periodic);
        run_case(&c, 1);
        assert_near(&c, 0, want, size, 1e-6);
        case_end(&c);
    }
    op_case c = case_begin("HannWindow", 17);
    case_in(&c, TIDE_I32, DIMS(1), &(int32_t){4});
    case_int(&c, "output_datatype", TIDE_F64);
    run_case(&c, 1);
    assert_int_equal(case_out(&c, 0)->dtype, TIDE_F64);
    case_end(&c);
    c = case_begin("HannWindow", 17);
    case_in(&c, TIDE_I64, DIMS0, &(int64_t){-1});
    case_refused(&c, TIDE_ERR_BAD_INPUT, "size is -1");
    c = case_begin("HannWindow", 17);
    case_in(&c, TIDE_I64, DIMS0, &(int64_t){3});
    case_int(&c, "output_datatype", 8);
    case_refused(&c, TIDE_ERR_NOT_IMPLEMENTED, "output_datatype 8");
}

static op_case mel_of(int64_t bins, int64_t length, int64_t rate, float low, float high) {
    op_case c = case_begin("MelWeightMatrix", 17);
    case_in(&c, TIDE_I64, DIMS0, &bins);
    case_in(&c, TIDE_I64, DIMS0, &length);
    case_in(&c, TIDE_I64, DIMS0, &rate);
    case_in(&c, TIDE_F32, DIMS0, &low);
    case_in(&c, TIDE_F32, DIMS0, &high);
    return c;
}

static void test_mel_weights(void **state) {
    (void)state;
    enum { BINS = 7, LENGTH = 90, ROWS = LENGTH / 2 + 1 };
    double want[ROWS * BINS] = {0};
    int corner[BINS + 2];
    const double low = 2595 * log10(1 + 100.0 / 700), high = 2595 * log10(1 + 3000.0 / 700);
    for (int i = 0; i < BINS + 2; i++) {
        const double hertz = 700 * (pow(10, (low + i * (high - low) / (BINS + 2)) / 2595) - 1);
        corner[i] = (int)floor((LENGTH + 1) * hertz / 8000);
    }
    for (int b = 0; b < BINS; b++) { // up to the corner in the middle, and down from it
        const int first = corner[b], centre = corner[b + 1], last = corner[b + 2];
        for (int j = first; j < centre; j++) want[j * BINS + b] = (double)(j - first) / (centre - first);
        want[centre * BINS + b] = 1;
        for (int j = centre; j < last; j++) want[j * BINS + b] = (double)(last - j) / (last - centre);
    }
    op_case c = mel_of(BINS, LENGTH, 8000, 100, 3000);
    run_case(&c, 1);
    assert_int_equal(case_out(&c, 0)->shape.dims[0], ROWS);
    assert_near(&c, 0, want, ROWS * BINS, 1e-6);
    case_end(&c);
    c = mel_of(0, LENGTH, 8000, 100, 3000);
    case_want(&c, TIDE_F32, DIMS(ROWS, 0), NULL);
    c = mel_of(BINS, LENGTH, 0, 100, 3000);
    case_refused(&c, TIDE_ERR_RUNTIME, "sample_rate is 0");
    c = mel_of(-1, LENGTH, 8000, 100, 3000);
    case_refused(&c, TIDE_ERR_BAD_INPUT, "num_mel_bins is -1");
}

// ---- n-grams ----

static const int64_t pool[] = {2, 3, 5, 4, 5, 6, 7, 8, 6, 7}; // [2] [3] [5] [4], [5 6] [7 8] [6 7]

static op_case grams(const char *mode, int64_t shortest, int64_t longest, int64_t skipped) {
    op_case c = case_begin("TfIdfVectorizer", 9);
    case_string(&c, "mode", mode);
    case_int(&c, "min_gram_length", shortest);
    case_int(&c, "max_gram_length", longest);
    case_int(&c, "max_skip_count", skipped);
    case_ints(&c, "pool_int64s", 10, pool);
    case_ints(&c, "ngram_counts", DIMS(0, 4));
    case_ints(&c, "ngram_indexes", DIMS(0, 1, 2, 3, 4, 5, 6));
    return c;
}

static void test_ngrams(void **state) {
    (void)state;
    static const int32_t rows[] = {1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8};
    static const int64_t row[] = {2, 5, 7, 5, 6, 5, 6};
    op_case c = grams("TF", 2, 2, 0);
    case_in(&c, TIDE_I32, DIMS(2, 6), rows);
    case_want(&c, TIDE_F32, DIMS(2, 7), (const float[]){0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1});
    c = grams("TF", 1, 2, 5);
    case_in(&c, TIDE_I64, DIMS(7), row);
    // [5] three times, once each, not again for what is skipped; [5 6] twice side by side, and with 2, 2 and 4 between
    case_want(&c, TIDE_F32, DIMS(7), (const float[]){1, 0, 3, 0, 5, 0, 0});
    c = grams("IDF", 1, 2, 0);
    case_floats(&c, "weights", 7, (const float[]){0.5f, 1, 2, 3, 4, 5, 6});
    case_in(&c, TIDE_I64, DIMS(7), row);
    case_want(&c, TIDE_F32, DIMS(7), (const float[]){0.5f, 0, 2, 0, 4, 0, 0});
    c = grams("TFIDF", 1, 2, 0);
    case_floats(&c, "weights", 7, (const float[]){0.5f, 1, 2, 3, 4, 5, 6});
    case_in(&c, TIDE_I64, DIMS(7), row);
    case_want(&c, TIDE_F32, DIMS(7), (const float[]){0.5f, 0, 6, 0, 8, 0, 0});
    c = grams("TF", 1, 2, INT64_MAX); // no longer than the row is
    case_in(&c, TIDE_I64, DIMS(0), NULL);
    case_want(&c, TIDE_F32, DIMS(7), (const float[7]){0});
    c = grams("TF", 1, 3, 0);
    case_in(&c, TIDE_I64, DIMS(7), row);
    case_refused(&c, TIDE_ERR_BAD_INPUT, "n-grams of up to 2");
    c = grams("TF", 0, 2, 0);
    case_in(&c, TIDE_I64, DIMS(7), row);
    case_refused(&c, TIDE_ERR_BAD_INPUT, "n-grams of 0 to 2");
    c = grams("NONE", 1, 2, 0);
    case_in(&c, TIDE_I64, DIMS(7), row);
    case_refused(&c, TIDE_ERR_BAD_INPUT, "mode is 'NONE'");
    c = grams("TF", 1, 2, 0);
    case_floats(&c, "weights", 2, (const float[]){1, 1});
    case_in(&c, TIDE_I64, DIMS(7), row);
    case_refused(&c, TIDE_ERR_BAD_INPUT, "2 weights for 7");
}

// ---- optimisers ----

static op_case step_of(const char *op, float rate, int64_t t) {
    op_case c = case_begin(op, 1);
    c.domain = "ai.onnx.preview.training";
    case_in(&c, TIDE_F32, DIMS0, &rate);
    case_in(&c, TIDE_I64, DIMS0, &t);
    return c;
}

typedef enum kind { ADAGRAD, ADAM, MOMENTUM, NESTEROV } kind;

/// One element: x and its states a, b become the new ones. The settings are those of set_numbers.
static void step_by_hand(kind k, double *x, double g, double *a, double *b) {
    const double rate = 0.1;
    g += 0.5 * *x;
    if (k == ADAGRAD) {
        *a += g * g;
        *x -= rate / (1 + 3 * 0.25) * g / (sqrt(*a) + 0.125);
    } else if (k == ADAM) {
        *a = 0.75 * *a + 0.25 * g;
        *b = 0.5 * *b + 0.5 * g * g;
        *x -= rate * sqrt(1 - pow(0.5, 3)) / (1 - pow(0.75, 3)) * *a / (sqrt(*b) + 0.125);
    } else {
        *a = 0.75 * *a + 0.5 * g;
        *x -= rate * (k == MOMENTUM ? *a : g + 0.75 * *a);
    }
}

static void set_numbers(op_case *c, kind k) {
    case_float(c, "norm_coefficient", 0.5f);
    if (k == ADAGRAD) case_float(c, "decay_factor", 0.25f);
    if (k == ADAGRAD || k == ADAM) case_float(c, "epsilon", 0.125f);
    if (k == ADAGRAD) return;
    case_float(c, "alpha", 0.75f);
    case_float(c, "beta", 0.5f);
    if (k != ADAM) case_string(c, "mode", k == NESTEROV ? "nesterov" : "standard");
}

/// Tensors of two elements and of one; of Adam, which would need more inputs than a case has, one of three.
static void test_optimisers(void **state) {
    (void)state;
    static const char *const ops[] = {"Adagrad", "Adam", "Momentum", "Momentum"};
    static const float x[] = {1, -2, 0.5f}, g[] = {0.25f, -1, 2}, a[] = {0.5f, 4, 1}, b[] = {0.125f, 2, 3};
    static const float *const inputs[] = {x, g, a, b};
    for (int k = ADAGRAD; k <= NESTEROV; k++) {
        double want[3][3];
        for (int i = 0; i < 3; i++) {
            for (int list = 0; list < 3; list++) want[list][i] = (double)inputs[list == 0 ? 0 : list + 1][i];
            step_by_hand((kind)k, &want[0][i], (double)g[i], &want[1][i], &want[2][i]);
        }
        op_case c = step_of(ops[k], 0.1f, 3);
        for (int list = 0; list < (k == ADAM ? 4 : 3); list++) {
            case_in(&c, TIDE_F32, DIMS(k == ADAM ? 3 : 2), inputs[list]);
            if (k != ADAM) case_in(&c, TIDE_F32, DIMS(1), inputs[list] + 2);
        }
        set_numbers(&c, (kind)k);
        run_case(&c, k == ADAM ? 3 : 4);
        for (size_t i = 0; i < c.n_out; i++) {
            if (k == ADAM)
                assert_near(&c, i, want[i], 3, 1e-6);
            else
                assert_near(&c, i, want[i / 2] + (i % 2 == 0 ? 0 : 2), i % 2 == 0 ? 2 : 1, 1e-6);
        }
        case_end(&c);
    }
}

static void test_optimisers_refuse(void **state) {
    (void)state;
    static const float x[] = {1, 2};
    op_case c = step_of("Momentum", 0.1f, 0);
    for (int i = 0; i < 4; i++) case_in(&c, TIDE_F32, DIMS(1), x);
    assert_tide_status(case_try(&c, 2), TIDE_ERR_BAD_INPUT);
    assert_text_has(c.err.msg, "none of so many lists");
    case_end(&c);
    c = step_of("Momentum", 0.1f, 0);
    case_in(&c, TIDE_F32, DIMS(2), x);
    case_in(&c, TIDE_F32, DIMS(1), x);
    case_in(&c, TIDE_F32, DIMS(2), x);
    assert_tide_status(case_try(&c, 2), TIDE_ERR_BAD_INPUT);
    assert_text_has(c.err.msg, "is [1], must be [2]");
    case_end(&c);
}

// ---- MaxPool's places, MaxUnpool ----

static void test_places_of_the_largest(void **state) {
    (void)state;
    // 5 is there twice: the first counts.
    static const float x[] = {1, 5, 5, 0, 2, 3, 9, 8, 4, 4, 4, 4, 0, 0, 7, 0};
    static const int64_t by_row[] = {1, 6, 8, 14}, by_column[] = {4, 9, 2, 11};
    for (int columns = 0; columns < 2; columns++) {
        op_case c = case_begin("MaxPool", 12);
        case_in(&c, TIDE_F32, DIMS(1, 1, 4, 4), x);
        case_ints(&c, "kernel_shape", DIMS(2, 2));
        case_ints(&c, "strides", DIMS(2, 2));
        case_int(&c, "storage_order", columns);
        run_case(&c, 2);
        assert_near(&c, 0, (const double[]){5, 9, 4, 7}, 4, 0);
        assert_memory_equal(tide_tensor_const_data(case_out(&c, 1)->constant), columns ? by_column : by_row,
                            sizeof by_row);
        case_end(&c);
    }
    op_case c = case_begin("MaxPool", 12); // the second plane goes on behind the first; padding has no place
    case_in(&c, TIDE_U8, DIMS(2, 1, 3), (const uint8_t[]){3, 1, 2, 0, 0, 9});
    case_ints(&c, "kernel_shape", DIMS(2));
    case_ints(&c, "pads", DIMS(1, 0));
    run_case(&c, 2);
    assert_memory_equal(tide_tensor_const_data(case_out(&c, 1)->constant), ((const int64_t[]){0, 0, 2, 3, 3, 5}), 48);
    case_end(&c);
    c = case_begin("MaxPool", 12);
    case_in(&c, TIDE_F32, DIMS(0, 1, 3), NULL);
    case_ints(&c, "kernel_shape", DIMS(2));
    run_case(&c, 2);
    case_end(&c);
}

static op_case unpool(const int64_t *places) {
    op_case c = case_begin("MaxUnpool", 11);
    case_in(&c, TIDE_F32, DIMS(1, 1, 1, 2), (const float[]){5, 7});
    case_in(&c, TIDE_I64, DIMS(1, 1, 1, 2), places);
    case_ints(&c, "kernel_shape", DIMS(2, 2));
    case_ints(&c, "strides", DIMS(2, 2));
    return c;
}

static void test_unpool(void **state) {
    (void)state;
    static const int64_t places[] = {5, 2}, outside[] = {8, 0};
    op_case c = unpool(places);
    case_want(&c, TIDE_F32, DIMS(1, 1, 2, 4), (const float[]){0, 0, 7, 0, 0, 5, 0, 0});
    c = unpool(places); // a wider output: elements keep their row and column
    case_in(&c, TIDE_I64, DIMS(4), (const int64_t[]){1, 1, 3, 5});
    case_want(&c, TIDE_F32, DIMS(1, 1, 3, 5), (const float[]){0, 0, 7, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0});
    c = unpool(places);
    case_in(&c, TIDE_I64, DIMS(4), (const int64_t[]){1, 1, 2, 3});
    case_refused(&c, TIDE_ERR_BAD_INPUT, "output_shape does not hold [1x1x2x4]");
    c = unpool(outside);
    case_refused(&c, TIDE_ERR_RUNTIME, "I[0] is 8 of 8");
}

// ---- normalisation over a batch ----

static void test_mean_variance(void **state) {
    (void)state;
    float x[2 * 3 * 4];
    double want[24];
    draw(x, 24, 9);
    for (int64_t channel = 0; channel < 3; channel++) {
        double mean = 0, square = 0;
        for (int64_t i = 0; i < 8; i++) mean += (double)x[i / 4 * 12 + channel * 4 + i % 4] / 8;
        for (int64_t i = 0; i < 8; i++) square += pow((double)x[i / 4 * 12 + channel * 4 + i % 4] - mean, 2) / 8;
        for (int64_t i = 0; i < 8; i++) {
            const int64_t at = i / 4 * 12 + channel * 4 + i % 4;
            want[at] = ((double)x[at] - mean) / (sqrt(square) + 1e-9);
        }
    }
    op_case c = case_begin("MeanVarianceNormalization", 13);
    case_in(&c, TIDE_F32, DIMS(2, 3, 2, 2), x); // without axes: 0, 2, 3
    run_case(&c, 1);
    assert_near(&c, 0, want, 24, 1e-5);
    case_end(&c);
    c = case_begin("MeanVarianceNormalization", 13);
    case_in(&c, TIDE_F32, DIMS(2, 3, 4), x);
    case_ints(&c, "axes", DIMS(-1, 0));
    run_case(&c, 1);
    assert_near(&c, 0, want, 24, 1e-5);
    case_end(&c);
    c = case_begin("MeanVarianceNormalization", 13);
    case_in(&c, TIDE_F32, DIMS(2, 3, 4), x);
    case_refused(&c, TIDE_ERR_BAD_INPUT, "axis 3");
    c = case_begin("MeanVarianceNormalization", 13);
    case_in(&c, TIDE_F32, DIMS(2, 0, 4, 1), NULL);
    case_want(&c, TIDE_F32, DIMS(2, 0, 4, 1), NULL);
}

static void test_batch_norm_in_training(void **state) {
    (void)state;
    float x[24], scale[3], bias[3], mean[3], variance[3];
    double want[24], want_mean[3], want_variance[3];
    draw(x, 24, 11);
    draw(scale, 3, 12);
    draw(bias, 3, 13);
    draw(mean, 3, 14);
    draw(variance, 3, 15);
    for (int64_t ch = 0; ch < 3; ch++) {
        double m = 0, v = 0;
        for (int64_t i = 0; i < 8; i++) m += (double)x[i / 4 * 12 + ch * 4 + i % 4] / 8;
        for (int64_t i = 0; i < 8; i++) v += pow((double)x[i / 4 * 12 + ch * 4 + i % 4] - m, 2) / 8;
        for (int64_t i = 0; i < 8; i++) {
            const int64_t at = i / 4 * 12 + ch * 4 + i % 4;
            want[at] = ((double)x[at] - m) / sqrt(v + 0.5) * (double)scale[ch] + (double)bias[ch];
        }
        want_mean[ch] = 0.25 * (double)mean[ch] + 0.75 * m;
        want_variance[ch] = 0.25 * (double)variance[ch] + 0.75 * v;
    }
    op_case c = case_begin("BatchNormalization", 15);
    case_in(&c, TIDE_F32, DIMS(2, 3, 4), x);
    case_in(&c, TIDE_F32, DIMS(3), scale);
    case_in(&c, TIDE_F32, DIMS(3), bias);
    case_in(&c, TIDE_F32, DIMS(3), mean);
    case_in(&c, TIDE_F32, DIMS(3), variance);
    case_int(&c, "training_mode", 1);
    case_float(&c, "momentum", 0.25f);
    case_float(&c, "epsilon", 0.5f);
    run_case(&c, 3);
    assert_near(&c, 0, want, 24, 1e-5);
    assert_near(&c, 1, want_mean, 3, 1e-6);
    assert_near(&c, 2, want_variance, 3, 1e-6);
    case_end(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_top_k),
        tide_unit_test(test_top_k_at_its_edges),
        tide_unit_test(test_dft_of_every_length),
        tide_unit_test(test_dft_along_an_axis),
        tide_unit_test(test_dft_refuses),
        tide_unit_test(test_stft),
        tide_unit_test(test_windows),
        tide_unit_test(test_mel_weights),
        tide_unit_test(test_ngrams),
        tide_unit_test(test_optimisers),
        tide_unit_test(test_optimisers_refuse),
        tide_unit_test(test_places_of_the_largest),
        tide_unit_test(test_unpool),
        tide_unit_test(test_mean_variance),
        tide_unit_test(test_batch_norm_in_training),
    };
    return cmocka_run_group_tests_name("signals, training, places", tests, NULL, NULL);
}
