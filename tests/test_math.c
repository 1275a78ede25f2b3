/* exp, sigmoid, tanh over all floats, softmax and the loops over arrays: right, and the same bits
   on every path. With TEST_EVERY_FLOAT in the environment every float is visited, not every
   25013th. */

#include "test.h"

static const carnn__kernels *path[4];
static size_t paths;

static float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static double true_sigmoid(double x) { return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)); }

/* The distance of a float from the true value in units of the last place of a float there. */
static double ulps(float found, double want) {
    int exponent;
    if (want != want) return found != found ? 0 : 1e9;
    if (fabs(want) >= 0x1p128 - 0x1p103)
        return (double)found == (want > 0 ? INFINITY : -INFINITY) ? 0 : 1e9;
    if (found != found || fabsf(found) > FLT_MAX) return 1e9;
    frexp(want, &exponent);
    return fabs((double)found - want) / ldexp(1, exponent - 24 > -149 ? exponent - 24 : -149);
}

typedef void (*array_fn)(const float *, float *, size_t);

#define BLOCK 1000 /* not a multiple of 16 */

static array_fn function_of(const carnn__kernels *k, int which) {
    return which == 0 ? k->exp_n : which == 1 ? k->sigmoid_n : k->tanh_n;
}

/* One function on every `step`th float: the error of the first path, equality of the others. */
static void check_function(int which, uint32_t step) {
    static const char *const names[] = {"exp", "sigmoid", "tanh"};
    static float x[BLOCK], y[BLOCK], z[BLOCK];
    double worst = 0;
    float at = 0;
    uint64_t bits = 0;
    while (bits <= UINT32_MAX) {
        size_t i, p;
        for (i = 0; i < BLOCK; i++, bits += step) x[i] = float_of((uint32_t)bits);
        function_of(path[0], which)(x, y, BLOCK);
        for (i = 0; i < BLOCK; i++) {
            double v = (double)x[i];
            double error = ulps(y[i], which == 0 ? exp(v) : which == 1 ? true_sigmoid(v) : tanh(v));
            if (error > worst) worst = error, at = x[i];
        }
        for (p = 1; p < paths; p++) {
            int same = 1;
            function_of(path[p], which)(x, z, BLOCK);
            for (i = 0; i < BLOCK; i++) /* NaNs may differ in their payload */
                if (memcmp(&y[i], &z[i], sizeof *y) && !(y[i] != y[i] && z[i] != z[i])) same = 0;
            if (!same) CHECK(0 && "all paths give the same bits");
        }
    }
    printf("%s: at most %.2f ulp, at %.9g\n", names[which], worst, (double)at);
    CHECK(worst <= 4);
}

static void check_exact(void) {
    static const float x[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 200, -200};
    static const float e[] = {1, 1, INFINITY, 0, NAN, INFINITY, 0};
    static const float s[] = {0.5f, 0.5f, 1, 0, NAN, 1, 0};
    static const float t[] = {0.0f, -0.0f, 1, -1, NAN, 1, -1};
    float y[7];
    size_t p, i;
    for (p = 0; p < paths; p++) {
        path[p]->exp_n(x, y, 7);
        for (i = 0; i < 7; i++) CHECK(y[i] == e[i] || (y[i] != y[i] && e[i] != e[i]));
        path[p]->sigmoid_n(x, y, 7);
        for (i = 0; i < 7; i++) CHECK(y[i] == s[i] || (y[i] != y[i] && s[i] != s[i]));
        path[p]->tanh_n(x, y, 7);
        for (i = 0; i < 7; i++) CHECK(y[i] == t[i] || (y[i] != y[i] && t[i] != t[i]));
        CHECK(signbit(y[1]));
    }
}

static void draw_array(float *x, size_t n, float scale) {
    static uint64_t at;
    size_t i;
    for (i = 0; i < n; i++) x[i] = (carnn__uniform(3, at++) * 2 - 1) * scale;
}

static void check_softmax(void) {
    size_t n, p, i;
    for (n = 1; n < 100; n += 1 + n / 20) {
        float x[100], y[100], first[100], lse, first_lse = 0;
        double sum = 0;
        draw_array(x, n, n % 3 ? 5.0f : 200.0f);
        for (i = 0; i < n; i++) sum += exp((double)x[i]);
        for (p = 0; p < paths; p++) {
            memcpy(y, x, n * sizeof *x);
            lse = path[p]->softmax(y, n);
            if (!p) memcpy(first, y, n * sizeof *y), first_lse = lse;
            CHECK(!memcmp(first, y, n * sizeof *y) && !memcmp(&lse, &first_lse, sizeof lse));
        }
        CHECK_NEAR(first_lse, log(sum), 1e-6 * (1 + fabs(log(sum))));
        for (i = 0; i < n; i++) CHECK_NEAR(first[i], exp((double)x[i]) / sum, 3e-6);
    }
    for (p = 0; p < paths; p++) {
        float far[3] = {-1e30f, 3e38f, -INFINITY}, bad[20] = {0};
        CHECK(path[p]->softmax(far, 3) == 3e38f && far[0] == 0 && far[1] == 1 && far[2] == 0);
        bad[17] = NAN;
        path[p]->softmax(bad, 20);
        CHECK(bad[0] != bad[0]);
    }
}

/* Sums and updates against plain loops; bits against the first path. */
static void check_arrays(void) {
    size_t n, p, i;
    for (n = 0; n < 200; n += 1 + n / 10) {
        float x[200], y[200], w[3 * 200], first[3 * 200];
        double dot = 0, squares = 0, sum = 0;
        float results[3] = {0}, first_results[3] = {0};
        draw_array(x, n, 1);
        draw_array(y, n, 1);
        for (i = 0; i < n; i++)
            dot += (double)x[i] * y[i], squares += (double)x[i] * x[i], sum += x[i];
        for (p = 0; p < paths; p++) {
            const carnn__kernels *k = path[p];
            for (i = 0; i < 3; i++) memcpy(w + i * n, y, n * sizeof *y);
            k->scale(w, 0.3f, n);
            k->add(x, w + n, n);
            k->moving_average(x, w + 2 * n, 0.2f, n);
            results[0] = k->dot(x, y, n);
            results[1] = k->row_sum(x, n);
            results[2] = (float)k->sum_squares(x, n);
            if (!p) memcpy(first, w, sizeof w), memcpy(first_results, results, sizeof results);
            CHECK(!memcmp(first, w, 3 * n * sizeof *w));
            CHECK(!memcmp(first_results, results, sizeof results));
        }
        CHECK_NEAR(results[0], dot, 1e-5);
        CHECK_NEAR(results[1], sum, 1e-5);
        CHECK_NEAR(results[2], squares, 1e-5 * (1 + squares));
        for (i = 0; i < n; i++) {
            float scaled = y[i] * 0.3f, added = y[i] + x[i];
            CHECK(scaled == w[i] && added == w[n + i]);
            CHECK_NEAR(w[2 * n + i], 0.8 * (double)y[i] + 0.2 * (double)x[i], 1e-6);
        }
    }
}

/* The first row of the largest or smallest number of each column, of the numbers that a plain loop
   could see otherwise, too: equal ones, zeros of both signs, NaN. */
static void check_choose_rows(void) {
    static const float drawn[] = {-2, -1, -0.0f, 0, 1, 1, NAN};
    const size_t from = 70000; /* as a bit pattern no normal float */
    float x[9 * 40], sign;
    uint32_t where[41];
    size_t rows, n, p, r, j, best, wrong = 0, draw = 0;
    for (rows = 1; rows <= 9; rows++)
        for (n = 1; n <= 40; n++)
            for (sign = -1; sign <= 1; sign += 2) {
                for (r = 0; r < rows * n; r++) x[r] = drawn[carnn__random(9, draw++) % 7];
                for (p = 0; p < paths; p++) {
                    where[n] = 7;
                    path[p]->choose_rows(x, rows, n, from, sign, where);
                    wrong += where[n] != 7;
                    for (j = 0; j < n; j++) {
                        for (best = 0, r = 1; r < rows; r++)
                            if (sign > 0 ? x[r * n + j] > x[best * n + j]
                                         : x[r * n + j] < x[best * n + j])
                                best = r;
                        wrong += where[j] != from + best;
                    }
                }
            }
    CHECK_INT(wrong, 0);
}

int main(void) {
    uint32_t step = getenv("TEST_EVERY_FLOAT") ? 1 : 25013;
    int which;
    while ((path[paths] = carnn__simd_number(paths)) != NULL) paths++;
    for (which = 0; which < 3; which++) check_function(which, step);
    check_exact();
    check_softmax();
    check_arrays();
    check_choose_rows();
    return test_end();
}
