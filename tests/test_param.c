/* @@PARAM: the layout of the store, what initialisers draw, and the optimisers against their
   definitions in double precision. */

#include "test.h"

/* --- the store -------------------------------------------------------------------------------- */

static void declare_some(carnn__store *store, carnn__param param[6]) {
    carnn__store_open(store, param, 6);
    carnn__declare(store, "", "word.weight", 5, 3, 0, CARNN__INIT_NORMAL, 0.1f);
    carnn__declare(store, "cell", "input.weight", 300, 200, 100, CARNN__INIT_UNIFORM, 0.0f);
    carnn__declare(store, "cell", "bias", 1, 16, 1, CARNN__INIT_ZERO, 0.0f);
    carnn__declare(store, "head", "bias", 1, 17, 1, CARNN__INIT_ZERO, 1.5f);
    store->item[3].set_from = 2;
    store->item[3].set_count = 5;
    carnn__declare(store, "head", "weight", 300, 200, 0, CARNN__INIT_UNIFORM, 0.0f);
    carnn__declare(store, "head", "other", 500, 100, 0, CARNN__INIT_NORMAL, 0.25f);
}

static void test_store_layout(void) {
    carnn_allocator a = carnn__allocator(NULL);
    carnn__store store;
    carnn__param param[6];
    size_t i, j, end = 0;
    declare_some(&store, param);
    CHECK_INT(store.count, 6);
    CHECK_TEXT(store.item[0].name, "word.weight");
    CHECK_TEXT(store.item[1].name, "cell.input.weight");
    CHECK_INT(carnn__store_alloc(&store, &a, NULL), CARNN_OK);
    carnn__store_init(&store, 1);
    CHECK_INT((uintptr_t)store.value % CARNN__ALIGN, 0);
    for (i = 0; i < store.count; i++) {
        size_t next = i + 1 < store.count ? store.item[i + 1].offset : store.size;
        CHECK_INT(store.item[i].offset % 16, 0);
        CHECK_INT(store.item[i].offset, end);
        end = store.item[i].offset + store.item[i].rows * store.item[i].columns;
        for (j = end; j < next; j++) CHECK(store.value[j] == 0.0f); /* padding */
        end = next;
    }
    CHECK(carnn__param_in(&store, store.value, 3) == store.value + store.item[3].offset);
    carnn__free_aligned(&a, store.value);
}

/* A store counts what it has no room for, and keeps it nowhere; then it takes as much room, but not
   for too many matrices. */
static void test_store_counts(void) {
    carnn_allocator a = carnn__allocator(NULL);
    carnn_error error;
    carnn__store store;
    carnn__param param[3], untouched;
    int i, pass;
    memset(param, 7, sizeof param);
    untouched = param[2];
    carnn__store_open(&store, param, 2);
    for (i = 0; i < CARNN__PARAMS_MAX + 5; i++)
        CHECK_INT(carnn__declare(&store, "p", "weight", 2, 2, 0, CARNN__INIT_ZERO, 0.0f), i);
    CHECK_INT(store.count, CARNN__PARAMS_MAX + 5);
    CHECK(!memcmp(&param[2], &untouched, sizeof untouched));
    CHECK_INT(carnn__store_table(&store, &a, &error), CARNN_ERR_ARGUMENT);
    CHECK(store.item == param);
    carnn__store_open(&store, NULL, 0);
    for (pass = 0; pass < 2; pass++) {
        for (i = 0; i < 5; i++)
            carnn__declare(&store, "p", "weight", 2, (size_t)i, 0, CARNN__INIT_ZERO, 0.0f);
        CHECK_INT(store.count, 5);
        if (!pass) CHECK_INT(carnn__store_table(&store, &a, &error), CARNN_OK);
    }
    CHECK_INT(store.room, 5);
    for (i = 0; i < 5; i++) CHECK_INT(store.item[i].columns, i);
    carnn__free(&a, store.item);
}

/* A store that no memory could hold stays too large, whatever else is declared. */
static void test_store_too_large(void) {
    static const size_t rows[] = {SIZE_MAX / 4 - 3, SIZE_MAX / 4 * 3, 16, SIZE_MAX};
    carnn_allocator a = carnn__allocator(NULL);
    carnn__store store;
    size_t first, i, least = 0;
    for (first = 0; first < 4; first++) {
        carnn__store_open(&store, NULL, 0);
        for (i = 0; i < 9; i++, least = store.size) {
            carnn__declare(&store, "", "weight", rows[(first + i) % 4], 1, 0, CARNN__INIT_ZERO,
                           0.0f);
            CHECK(store.size % 16 == 0 && store.size >= (i ? least : 16));
        }
        CHECK_INT(carnn__store_alloc(&store, &a, NULL), CARNN_ERR_MEMORY);
    }
}

/* Weights that have become blocks take less room; those that are not trained still lie behind the
   others and are not counted as trained. */
static void test_store_lay_out(void) {
    static const size_t floats[] = {64, 64, 16, 64};
    carnn__store store;
    carnn__param param[4];
    size_t i, at = 0, blocks = 2 * CARNN__Q8_BYTES / sizeof(float); /* of (2, 32) */
    carnn__store_open(&store, param, 4);
    carnn__declare(&store, "", "a", 2, 32, 0, CARNN__INIT_UNIFORM, 0.0f);
    carnn__declare(&store, "", "b", 2, 32, 0, CARNN__INIT_UNIFORM, 0.0f);
    carnn__declare(&store, "", "c", 1, 5, 0, CARNN__INIT_ZERO, 0.0f);
    store.fixed = 1;
    carnn__declare(&store, "", "d", 2, 32, 0, CARNN__INIT_UNIFORM, 0.0f);
    CHECK_INT(store.trained, 144);
    CHECK_INT(store.size, 208);
    param[1].quantised = param[3].quantised = 1;
    carnn__store_lay_out(&store);
    for (i = 0; i < 4; i++) {
        CHECK_INT(store.item[i].offset, at);
        if (i == 3) CHECK_INT(store.trained, at);
        at += carnn__round_up(param[i].quantised ? blocks : floats[i], 16);
    }
    CHECK_INT(store.size, at);
}

/* --- initialisers ----------------------------------------------------------------------------- */

typedef struct moments {
    double mean, deviation, low, high;
} moments;

static moments moments_of(const carnn__store *store, size_t number) {
    const float *w = carnn__param_in(store, store->value, number);
    size_t i, count = store->item[number].rows * store->item[number].columns;
    moments m = {0.0, 0.0, 1e30, -1e30};
    for (i = 0; i < count; i++) {
        m.mean += (double)w[i] / (double)count;
        m.low = fmin(m.low, (double)w[i]);
        m.high = fmax(m.high, (double)w[i]);
    }
    for (i = 0; i < count; i++)
        m.deviation += ((double)w[i] - m.mean) * ((double)w[i] - m.mean) / (double)count;
    m.deviation = sqrt(m.deviation);
    return m;
}

/* Uniform in +-range: every bound is nearly reached, none is passed. */
static void check_uniform(const carnn__store *store, size_t number, double range) {
    moments m = moments_of(store, number);
    CHECK(m.low >= -range * 1.000001 && m.high <= range * 1.000001);
    CHECK(m.low < -0.999 * range && m.high > 0.999 * range);
    CHECK_NEAR(m.mean, 0.0, 0.015 * range);
    CHECK_NEAR(m.deviation, range / sqrt(3.0), 0.01 * range);
}

static void test_initialisers(void) {
    carnn_allocator a = carnn__allocator(NULL);
    carnn__store store, again;
    carnn__param param[2][6];
    moments m;
    declare_some(&store, param[0]);
    declare_some(&again, param[1]);
    CHECK_INT(carnn__store_alloc(&store, &a, NULL), CARNN_OK);
    CHECK_INT(carnn__store_alloc(&again, &a, NULL), CARNN_OK);
    carnn__store_init(&store, 5);
    carnn__store_init(&again, 5);
    CHECK(!memcmp(store.value, again.value, store.size * sizeof(float)));
    carnn__store_init(&again, 6);
    CHECK(store.value[0] != again.value[0]);
    check_uniform(&store, 1, sqrt(6.0 / (100 + 200))); /* three gates of 100 rows each */
    check_uniform(&store, 4, sqrt(6.0 / (300 + 200)));
    CHECK(carnn__param_in(&store, store.value, 1)[0] != carnn__param_in(&store, store.value, 4)[0]);
    store.item[4].scale = 0.2f;
    carnn__store_init(&store, 5);
    check_uniform(&store, 4, 0.2);
    m = moments_of(&store, 2);
    CHECK(m.low == 0.0 && m.high == 0.0);
    m = moments_of(&store, 3);
    CHECK(m.low == 0.0 && m.high == 1.5);
    CHECK_NEAR(m.mean, 1.5 * 5.0 / 17.0, 1e-6);
    m = moments_of(&store, 5);
    CHECK_NEAR(m.mean, 0.0, 0.005);
    CHECK_NEAR(m.deviation, 0.25, 0.0025);
    CHECK(m.high > 0.25 * 3.5 && m.high <= 0.25 * 6.0);
    carnn__free_aligned(&a, store.value);
    carnn__free_aligned(&a, again.value);
}

/* --- optimisers ------------------------------------------------------------------------------- */

#define SIZE 48 /* floats in the arrays of the tests, 37 of them in use */
#define USED 37

/* One step of one weight, by the definitions: Duchi et al. 2011, Tieleman and Hinton 2012, Zeiler
   2012, Kingma and Ba 2015; decay of Loshchilov and Hutter 2019. */
static void definition(const char *name, double g, double *w, double *m, double *s, int t,
                       double lr, double decay) {
    *w -= lr * decay * *w;
    if (!strcmp(name, "sgd")) {
        *w -= lr * g;
    } else if (!strcmp(name, "adagrad")) {
        *s += g * g;
        *w -= lr * g / (sqrt(*s) + 1e-8);
    } else if (!strcmp(name, "rmsprop")) {
        *s = 0.9 * *s + 0.1 * g * g;
        *w -= lr * g / (sqrt(*s) + 1e-8);
    } else if (!strcmp(name, "adadelta")) {
        double d;
        *s = 0.95 * *s + 0.05 * g * g;
        d = sqrt(*m + 1e-6) / sqrt(*s + 1e-6) * g;
        *m = 0.95 * *m + 0.05 * d * d;
        *w -= lr * d;
    } else if (!strcmp(name, "adam")) {
        *m = 0.9 * *m + 0.1 * g;
        *s = 0.999 * *s + 0.001 * g * g;
        *w -= lr * (*m / (1.0 - pow(0.9, t))) / (sqrt(*s / (1.0 - pow(0.999, t))) + 1e-8);
    } else {
        printf("no definition of the optimiser \"%s\"\n", name);
        test_failed++;
    }
}

typedef struct arrays {
    float *w, *g;
} arrays;

/* Weights, and gradients that differ from step to step in sign and size; some are zero. */
static arrays arrays_open(size_t size) {
    carnn_allocator a = carnn__allocator(NULL);
    arrays x;
    size_t i;
    x.w = (float *)carnn__alloc_aligned(&a, size, sizeof(float));
    x.g = (float *)carnn__alloc_aligned(&a, size, sizeof(float));
    if (!x.w || !x.g) abort();
    for (i = 0; i < size; i++) x.w[i] = i < USED ? 2.0f * carnn__uniform(1, i) - 1.0f : 0.0f;
    return x;
}

static void arrays_close(arrays *x) {
    carnn_allocator a = carnn__allocator(NULL);
    carnn__free_aligned(&a, x->w);
    carnn__free_aligned(&a, x->g);
}

static void draw_gradient(float *g, uint64_t step) {
    static const float sizes[] = {0.001f, 0.01f, 0.1f, 1.0f, 10.0f};
    size_t i;
    for (i = 0; i < SIZE; i++) {
        g[i] = sizes[i % 5] * (2.0f * carnn__uniform(100 + step, i) - 1.0f);
        if (i >= USED || i % 7 == 3) g[i] = 0.0f;
    }
}

static double norm_of(const float *x, size_t count) {
    double sum = 0.0;
    size_t i;
    for (i = 0; i < count; i++) sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

/* 12 steps with weight decay; clipping bites in those where the gradient is tenfold. */
static void test_steps(carnn__engine *e) {
    size_t number, i;
    for (number = 0; carnn_optimizer_name(number); number++) {
        double w[SIZE], m[SIZE] = {0}, s[SIZE] = {0}, worst = 0.0;
        const double lr = 0.05, decay = 0.1, clip = 40.0;
        carnn_allocator a = carnn__allocator(NULL);
        carnn__optimizer o;
        arrays x = arrays_open(SIZE);
        int t, clipped = 0;
        CHECK_INT(carnn__optimizer_open(&o, number, SIZE, &a, NULL), CARNN_OK);
        for (i = 0; i < SIZE; i++) w[i] = (double)x.w[i];
        for (t = 1; t <= 12; t++) {
            double norm, factor;
            draw_gradient(x.g, (uint64_t)t);
            for (i = 0; i < SIZE; i++) x.g[i] *= t % 3 ? 1.0f : 10.0f;
            norm = norm_of(x.g, SIZE);
            factor = norm > clip ? clip / norm : 1.0;
            clipped += norm > clip;
            for (i = 0; i < SIZE; i++)
                definition(carnn_optimizer_name(number), factor * (double)x.g[i], &w[i], &m[i],
                           &s[i], t, lr, decay);
            CHECK_NEAR(carnn__optimizer_step(&o, e, x.w, x.g, lr, clip, decay), norm, norm * 1e-6);
            CHECK(norm_of(x.g, SIZE) == 0.0); /* zeros for the next step */
        }
        for (i = 0; i < SIZE; i++) worst = fmax(worst, fabs(w[i] - (double)x.w[i]));
        CHECK_INT(clipped, 4);
        CHECK_NEAR(worst, 0.0, 3e-6);
        for (i = 0; i < SIZE; i++) CHECK(x.w[i] - x.w[i] == 0.0f); /* fmax would hide a NaN */
        for (i = USED; i < SIZE; i++) CHECK(x.w[i] == 0.0f); /* padding stays */
        carnn__optimizer_close(&o, &a);
        arrays_close(&x);
    }
}

/* Weights as they were: no clipping where the bound is 0 or not reached. A gradient whose squares
   no float can hold is clipped like any other. */
static void test_clipping(carnn__engine *e) {
    static const double clips[] = {0.0, 0.5, 1e9, 0.5};
    size_t n, i;
    for (n = 0; n < 4; n++) {
        carnn_allocator a = carnn__allocator(NULL);
        carnn__optimizer o;
        arrays x = arrays_open(SIZE), before = arrays_open(SIZE);
        double norm;
        CHECK_INT(carnn__optimizer_open(&o, 0, SIZE, &a, NULL), CARNN_OK);
        draw_gradient(x.g, 1);
        for (i = 0; i < SIZE; i++) x.g[i] *= n == 3 ? 1e25f : 1.0f;
        norm = norm_of(x.g, SIZE);
        CHECK(norm > 1.0);
        CHECK_NEAR(carnn__optimizer_step(&o, e, x.w, x.g, 1.0, clips[n], 0.0), norm, 1e-6 * norm);
        for (i = 0; i < SIZE; i++) before.w[i] -= x.w[i];
        CHECK_NEAR(norm_of(before.w, SIZE), n % 2 ? 0.5 : norm, 1e-6);
        carnn__optimizer_close(&o, &a);
        arrays_close(&x);
        arrays_close(&before);
    }
}

/* A gradient whose squares would fill moments with infinity changes nothing, unless it is clipped;
   without moments it is a step like any other. */
static void test_large_gradient(carnn__engine *e) {
    size_t number, step;
    for (number = 0; carnn_optimizer_name(number); number++) {
        carnn_allocator a = carnn__allocator(NULL);
        carnn__optimizer o;
        arrays x = arrays_open(SIZE), y = arrays_open(SIZE);
        CHECK_INT(carnn__optimizer_open(&o, number, SIZE, &a, NULL), CARNN_OK);
        draw_gradient(x.g, 1);
        x.g[3] = 1e21f;
        CHECK(isinf(carnn__optimizer_step(&o, e, x.w, x.g, 0.01, 0.0, 0.0)) == (number > 0));
        CHECK(!memcmp(x.w, y.w, SIZE * sizeof(float)) == (number > 0));
        x.g[3] = 1e21f;
        CHECK_NEAR(carnn__optimizer_step(&o, e, x.w, x.g, 0.01, 1.0, 0.0), 1e21, 1e15);
        memcpy(y.w, x.w, SIZE * sizeof(float));
        for (step = 0; step < 5; step++) {
            x.g[3] = 1.0f;
            carnn__optimizer_step(&o, e, x.w, x.g, 0.01, 0.0, 0.0);
        }
        CHECK((x.w[3] < y.w[3]) == (number > 0)); /* it still moves, unless it is at 1e19 */
        carnn__optimizer_close(&o, &a);
        arrays_close(&x);
        arrays_close(&y);
    }
}

/* Moments that nothing feeds are 0 before they are denormal. */
static void test_fading(carnn__engine *e) {
    size_t number, step, i, m;
    for (number = 0; carnn_optimizer_name(number); number++) {
        carnn_allocator a = carnn__allocator(NULL);
        carnn__optimizer o;
        arrays x = arrays_open(SIZE);
        int denormal = 0;
        CHECK_INT(carnn__optimizer_open(&o, number, SIZE, &a, NULL), CARNN_OK);
        draw_gradient(x.g, 1);
        for (step = 0; step < 1500; step++) {
            carnn__optimizer_step(&o, e, x.w, x.g, 0.01, 0.0, 0.0);
            for (m = 0; m < 2; m++)
                for (i = 0; o.moment[m] && i < SIZE; i++)
                    denormal |= o.moment[m][i] != 0.0f && fabsf(o.moment[m][i]) < FLT_MIN;
        }
        CHECK(!denormal);
        for (i = 0; i < SIZE; i++) CHECK(x.w[i] - x.w[i] == 0.0f); /* no NaN of a norm of 0 */
        carnn__optimizer_close(&o, &a);
        arrays_close(&x);
    }
}

/* A gradient that is not finite changes nothing, and the next good one acts as the first. */
static void test_not_finite(carnn__engine *e) {
    static const size_t places[] = {0, 15, 16, SIZE - 1};
    float bad[3];
    size_t number, p, b;
    bad[0] = NAN;
    bad[1] = INFINITY;
    bad[2] = -INFINITY;
    for (number = 0; carnn_optimizer_name(number); number++) {
        carnn_allocator a = carnn__allocator(NULL);
        carnn__optimizer o, fresh;
        arrays x = arrays_open(SIZE), y = arrays_open(SIZE);
        CHECK_INT(carnn__optimizer_open(&o, number, SIZE, &a, NULL), CARNN_OK);
        CHECK_INT(carnn__optimizer_open(&fresh, number, SIZE, &a, NULL), CARNN_OK);
        for (p = 0; p < 4; p++)
            for (b = 0; b < 3; b++) {
                draw_gradient(x.g, 1);
                x.g[places[p]] = bad[b];
                CHECK(!(carnn__optimizer_step(&o, e, x.w, x.g, 0.1, 1.0, 0.1) <= DBL_MAX));
                CHECK(!memcmp(x.w, y.w, SIZE * sizeof(float)));
            }
        draw_gradient(x.g, 1);
        draw_gradient(y.g, 1);
        carnn__optimizer_step(&o, e, x.w, x.g, 0.1, 1.0, 0.1);
        carnn__optimizer_step(&fresh, e, y.w, y.g, 0.1, 1.0, 0.1);
        CHECK(!memcmp(x.w, y.w, SIZE * sizeof(float)));
        carnn__optimizer_close(&o, &a);
        carnn__optimizer_close(&fresh, &a);
        arrays_close(&x);
        arrays_close(&y);
    }
}

/* Norms of arrays of several pieces, also of numbers whose squares are too large for a float. */
static void test_norm(carnn__engine *e) {
    static const size_t sizes[] = {16, CARNN__FLAT_PIECE, CARNN__FLAT_PIECE + 16,
                                   5 * CARNN__FLAT_PIECE + 48};
    size_t n, i, place;
    for (n = 0; n < 4; n++) {
        arrays x = arrays_open(sizes[n]);
        double *partial = (double *)calloc(carnn__flat_pieces(sizes[n]), sizeof *partial);
        if (!partial) abort();
        for (i = 0; i < sizes[n]; i++) x.g[i] = carnn__uniform(3, i) - 0.25f;
        CHECK_NEAR(carnn__flat_norm(e, x.g, sizes[n], partial) / norm_of(x.g, sizes[n]), 1.0, 1e-6);
        for (place = 0; place < sizes[n]; place += sizes[n] / 7 + 1) {
            float before = x.g[place];
            x.g[place] = NAN;
            CHECK(isnan(carnn__flat_norm(e, x.g, sizes[n], partial)));
            x.g[place] = INFINITY;
            CHECK(isinf(carnn__flat_norm(e, x.g, sizes[n], partial)));
            x.g[place] = 1e20f;
            CHECK_NEAR(carnn__flat_norm(e, x.g, sizes[n], partial), 1e20, 1e14);
            x.g[place] = 1e19f;
            CHECK_NEAR(carnn__flat_norm(e, x.g, sizes[n], partial), 1e19, 1e13);
            x.g[place] = before;
        }
        for (i = 0; i < sizes[n]; i++) x.g[i] = 1e-15f;
        CHECK_NEAR(carnn__flat_norm(e, x.g, sizes[n], partial) * 1e15, sqrt((double)sizes[n]),
                   1e-5 * sqrt((double)sizes[n]));
        free(partial);
        arrays_close(&x);
    }
}

/* The same bits for every path and number of threads. */
static void test_same_step_bits(void) {
    size_t size = 6 * CARNN__FLAT_PIECE + 16, number, path, threads, i, step;
    const char *name;
    for (number = 0; carnn_optimizer_name(number); number++) {
        arrays first = arrays_open(size);
        int filled = 0;
        for (path = 0; (name = carnn_simd_name(path)) != NULL; path++)
            for (threads = 1; threads <= 3; threads++) {
                carnn_allocator a = carnn__allocator(NULL);
                carnn__optimizer o;
                carnn__engine e;
                arrays x = arrays_open(size);
                CHECK_INT(carnn__engine_open(&e, name, threads, a, NULL), CARNN_OK);
                CHECK_INT(carnn__optimizer_open(&o, number, size, &a, NULL), CARNN_OK);
                for (step = 0; step < 2; step++) {
                    for (i = 0; i < size; i++) x.g[i] = carnn__uniform(3 + step, i) - 0.5f;
                    carnn__optimizer_step(&o, &e, x.w, x.g, 0.1, step ? 0.0 : 1.0, 0.01);
                }
                if (!filled++) memcpy(first.w, x.w, size * sizeof(float));
                CHECK(!memcmp(first.w, x.w, size * sizeof(float)));
                carnn__optimizer_close(&o, &a);
                carnn__engine_close(&e);
                arrays_close(&x);
            }
        arrays_close(&first);
    }
}

static void test_store_out_of_memory(void) {
    size_t number;
    for (number = 0; carnn_optimizer_name(number); number++) {
        carnn_status status = CARNN_ERR_MEMORY;
        long fail_at;
        for (fail_at = 1; status && fail_at < 9; fail_at++) {
            test_memory memory = {0, 0, 0};
            carnn_allocator a = {test_alloc, test_realloc, test_free, NULL};
            carnn__optimizer o;
            a.user = &memory;
            memory.fail_at = fail_at;
            status = carnn__optimizer_open(&o, number, SIZE, &a, NULL);
            if (!status) carnn__optimizer_close(&o, &a);
            CHECK_INT(memory.blocks, 0);
        }
        CHECK_INT(status, CARNN_OK);
    }
}

int main(void) {
    carnn__engine e;
    CHECK_INT(carnn__engine_open(&e, NULL, 1, carnn__allocator(NULL), NULL), CARNN_OK);
    test_store_layout();
    test_store_counts();
    test_store_too_large();
    test_store_lay_out();
    test_initialisers();
    test_steps(&e);
    test_clipping(&e);
    test_large_gradient(&e);
    test_fading(&e);
    test_not_finite(&e);
    test_norm(&e);
    test_same_step_bits();
    test_store_out_of_memory();
    carnn__engine_close(&e);
    return test_end();
}
