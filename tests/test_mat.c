/* Products: right against plain loops, and the same bits on every path. */

#include "test.h"

#define PATHS 3

/* Every path, alone and with three threads, then on borrowed memory of the smallest size. */
static carnn__engine engines[PATHS * 3];
static size_t engine_count;

static uint64_t draw_at;
static size_t below(size_t end) { return (size_t)(carnn__random(7, draw_at++) % end); }

static float *at_random(size_t count) {
    float *x = (float *)malloc((count + 1) * sizeof *x);
    size_t i;
    for (i = 0; x && i < count; i++) x[i] = carnn__uniform(9, draw_at++) * 2 - 1;
    return x;
}

typedef struct shape {
    int form;
    size_t m, n, k, lda, ldb, ldc;
    int with_bias;
} shape;

/* The largest difference from sums in double, as a share of what rounding may do. */
static double error_of(const shape *s, const float *a, const float *b, const float *bias,
                       const float *before, const float *c) {
    double worst = 0;
    size_t i, j, p;
    for (i = 0; i < s->m; i++)
        for (j = 0; j < s->n; j++) {
            double sum = s->form & CARNN__ADD ? before[i * s->ldc + j] : bias ? bias[j] : 0;
            double size = fabs(sum), error;
            for (p = 0; p < s->k; p++) {
                double x = s->form & CARNN__TN ? a[p * s->lda + i] : a[i * s->lda + p];
                double y = s->form & CARNN__NT ? b[j * s->ldb + p] : b[p * s->ldb + j];
                sum += x * y;
                size += fabs(x * y);
            }
            error = fabs(c[i * s->ldc + j] - sum) / (size * 6e-8 * (double)(s->k + 1) + 1e-30);
            if (!(error <= worst)) worst = error;
        }
    return worst;
}

/* One product on all engines, packed and not, all rows together and each alone. */
static void check_shape(const shape *s) {
    size_t a_size = s->lda * (s->form & CARNN__TN ? s->k : s->m);
    size_t b_size = s->ldb * (s->form & CARNN__NT ? s->n : s->k);
    size_t c_size = s->ldc * s->m, e, i, bytes = c_size * sizeof(float);
    float *a = at_random(a_size), *b = at_random(b_size), *bias = at_random(s->n);
    float *before = at_random(c_size), *first = at_random(c_size), *c = at_random(c_size);
    const float *start = s->with_bias ? bias : NULL;
    memcpy(first, before, bytes);
    carnn__matmul(&engines[0], s->form, s->m, s->n, s->k, a, s->lda, b, s->ldb, start, first,
                  s->ldc);
    CHECK(error_of(s, a, b, start, before, first) <= 1);
    for (i = 0; i < c_size; i++) /* nothing beside the columns of C was touched */
        if (i % s->ldc >= s->n && first[i] != before[i]) CHECK(0 && "C stays within its columns");
    for (e = 0; e < engine_count; e++) {
        memcpy(c, before, bytes);
        carnn__matmul(&engines[e], s->form, s->m, s->n, s->k, a, s->lda, b, s->ldb, start, c,
                      s->ldc);
        CHECK(!memcmp(c, first, bytes));
        if (!(s->form & CARNN__TN)) {
            size_t size = carnn__packed_size(s->n, s->k);
            float *packed = (float *)malloc((size + 1) * sizeof(float));
            carnn__pack(&engines[e], s->form & CARNN__NT, s->n, s->k,
                        carnn__floats_of(b, s->ldb), packed);
            memcpy(c, before, bytes);
            carnn__matmul(&engines[e], CARNN__PACKED | (s->form & CARNN__ADD), s->m, s->n, s->k, a,
                          s->lda, packed, 0, start, c, s->ldc);
            CHECK(!memcmp(c, first, bytes));
            free(packed);
        }
        memcpy(c, before, bytes);
        for (i = 0; i < s->m; i++)
            carnn__matmul(&engines[e], s->form, 1, s->n, s->k,
                          s->form & CARNN__TN ? a + i : a + i * s->lda, s->lda, b, s->ldb, start,
                          c + i * s->ldc, s->ldc);
        CHECK(!memcmp(c, first, bytes));
    }
    free(a), free(b), free(bias), free(before), free(first), free(c);
}

static void check_products(void) {
    static const int forms[] = {CARNN__NN, CARNN__NT, CARNN__TN};
    static const size_t edges[] = {0, 1, 2, 15, 16, 17, 31, 47, 48, 49, 64, 95, 97, 144, 255, 257};
    int trial;
    for (trial = 0; trial < (TEST_SANITIZED ? 60 : 300); trial++) {
        shape s = {0};
        s.form = forms[trial % 3];
        s.m = trial % 4 == 3 ? edges[below(CARNN__COUNT(edges))] : below(40);
        s.n = trial % 4 == 2 ? edges[below(CARNN__COUNT(edges))] : below(130);
        s.k = trial % 4 == 1 ? edges[below(CARNN__COUNT(edges))] : below(70);
        if (trial % 10 == 9) s.k = 200 + below(400); /* several blocks of k */
        if (trial % 5 < 2)
            s.form |= CARNN__ADD;
        else
            s.with_bias = trial % 5 == 3;
        s.lda = (s.form & CARNN__TN ? s.m : s.k) + below(3);
        s.ldb = (s.form & CARNN__NT ? s.k : s.n) + below(3);
        s.ldc = s.n + below(3) + !s.n;
        check_shape(&s);
    }
}

/* A B that is packed in two parts has the bits of one that is packed at once. */
static void check_packed_parts(void) {
    const size_t n = 230, k = 70, size = carnn__packed_size(n, k), bytes = size * sizeof(float);
    float *b = at_random(n * k), *whole = at_random(size), *parts = at_random(size);
    size_t e;
    int form;
    for (e = 0; e < engine_count; e++)
        for (form = CARNN__NN; form <= CARNN__NT; form++) {
            size_t cut = 2 * engines[e].k->tile_columns, ldb = form ? k : n;
            const float *rest = b + cut * (form ? ldb : 1);
            carnn__pack(&engines[e], form, n, k, carnn__floats_of(b, ldb), whole);
            memset(parts, 0, bytes);
            carnn__pack_part(&engines[e], form, n, k, 0, cut, carnn__floats_of(b, ldb), parts);
            carnn__pack_part(&engines[e], form, n, k, cut, n, carnn__floats_of(rest, ldb), parts);
            CHECK(!memcmp(parts, whole, bytes));
        }
    free(b), free(whole), free(parts);
}

/* Up to nine rows times a B stored (n, k): whole registers of its rows and what is left, k a
   multiple of eight, of four or not, rows of B that lie a page apart, and rows of A with them. */
static void check_few_rows(void) {
    static const size_t sizes[][4] = {{50, 40, 40, 40},       {33, 30, 35, 30},
                                      {50, 43, 43, 43},       {20, 5, 5, 5},
                                      {70, 301, 301, 302},    {20, 3, 4, 3},
                                      {100, 64, 512, 64},     {40, 513, 1024, 513},
                                      {21, 516, 1024, 516},   {24, 1024, 1024, 1024},
                                      {37, 1100, 2048, 2048}};
    size_t m, i;
    for (m = 1; m <= CARNN__DOTS_MOST + 1; m++)
        for (i = 0; i < CARNN__COUNT(sizes); i++) {
            shape s = {CARNN__NT, 0, 0, 0, 0, 0, 0, 0};
            s.form |= m % 2 ? CARNN__ADD : 0;
            s.m = m;
            s.n = sizes[i][0];
            s.k = sizes[i][1];
            s.ldb = sizes[i][2];
            s.lda = sizes[i][3];
            s.ldc = s.n + 1;
            s.with_bias = m % 4 == 2;
            check_shape(&s);
        }
}

/* A B that is read once for every eight rows of A is transposed once where there are more of them:
   where its rows are short, or lie half a page apart. */
static void check_few_most(void) {
    static const size_t sizes[][3] = {{512, 512, 0},  {1024, 1024, 0}, {1536, 1536, 0},
                                      {510, 510, 40}, {508, 520, 40},  {130, 130, 40},
                                      {126, 126, 16}, {50, 52, 16},    {3, 3, 0}};
    size_t e, i;
    for (e = 0; e < engine_count; e++)
        for (i = 0; i < CARNN__COUNT(sizes); i++) {
            const size_t most = engines[e].k->dots_rows;
            carnn__product x;
            memset(&x, 0, sizeof x);
            x.e = &engines[e];
            x.n = 50;
            x.k = sizes[i][0];
            x.b = carnn__floats_of(NULL, sizes[i][1]);
            CHECK_INT(carnn__few(&x),
                      sizes[i][2] ? carnn__min(most, sizes[i][2]) : CARNN__DOTS_MOST);
        }
}

/* Large enough for several blocks of rows and for threads. */
static void check_large(void) {
    static const shape shapes[] = {{CARNN__NN, 530, 101, 300, 300, 103, 101, 1},
                                   {CARNN__NT | CARNN__ADD, 70, 500, 513, 514, 513, 500, 0},
                                   {CARNN__TN, 700, 210, 33, 700, 210, 211, 0},
                                   {CARNN__TN | CARNN__ADD, 130, 420, 801, 130, 421, 420, 0},
                                   {CARNN__NN, 101, 290, 900, 903, 290, 290, 1},
                                   {CARNN__NT, 2, 61, 512, 512, 512, 61, 1}, /* rows 2 KiB apart */
                                   {CARNN__NT | CARNN__ADD, 1, 59, 340, 340, 340, 59, 0},
                                   {CARNN__NT, 17, 30, 2950, 2950, 2951, 31, 1}, /* pieces of
                                                                                    few rows */
                                   {CARNN__NN, 3, 1003, 300, 300, 1003, 1003, 0}};
    size_t i;
    for (i = 0; i < CARNN__COUNT(shapes); i++) check_shape(&shapes[i]);
}

/* NaN and infinity go where the equations send them, and nowhere else. */
static void check_special(void) {
    float a[2 * 3] = {1, 2, 3, 4, 5, 6}, b[3 * 2] = {1, 2, 3, 4, 5, 6}, c[4];
    size_t e;
    for (e = 0; e < engine_count; e++) {
        a[1] = INFINITY;
        b[5] = NAN;
        carnn__matmul(&engines[e], CARNN__NN, 2, 2, 3, a, 3, b, 2, NULL, c, 2);
        CHECK(c[0] == INFINITY && c[1] != c[1] && c[2] == 49 && c[3] != c[3]);
    }
}

static void check_column_sums(void) {
    size_t trial, e, i, j;
    for (trial = 0; trial < 40; trial++) { /* the first two are large enough for threads */
        size_t rows = trial < 2 ? 300 : below(50), columns = trial < 2 ? 250 : below(300);
        size_t ldx = columns + below(3);
        float *x = at_random(rows * ldx), *start = at_random(columns), *want = at_random(columns);
        float *out = at_random(columns);
        for (j = 0; j < columns; j++) {
            want[j] = start[j];
            for (i = 0; i < rows; i++) want[j] += x[i * ldx + j];
        }
        for (e = 0; e < engine_count; e++) {
            memcpy(out, start, columns * sizeof *out);
            carnn__column_sums(&engines[e], rows, columns, x, ldx, out);
            CHECK(!memcmp(out, want, columns * sizeof *out));
        }
        free(x), free(start), free(want), free(out);
    }
}

/* Every element of a range is visited once, by whatever pieces. */
static void mark(const void *job, size_t from, size_t to) {
    unsigned char *const *seen = (unsigned char *const *)job;
    for (; from < to; from++) (*seen)[from]++;
}

static void check_split(void) {
    unsigned char seen[1000], *marks = seen;
    size_t trial, e, i;
    for (trial = 0; trial < 50; trial++)
        for (e = 0; e < engine_count; e++) {
            size_t count = below(1000), wrong = 0;
            memset(seen, 0, sizeof seen);
            carnn__split(&engines[e], mark, &marks, count, 1 + below(20), below(2) * 1000000);
            for (i = 0; i < sizeof seen; i++) wrong += seen[i] != (i < count);
            CHECK(!wrong);
        }
}

int main(void) {
    static float panel[PATHS][16 * 48];
    carnn_allocator standard = carnn__allocator(NULL);
    carnn_error error;
    carnn__engine none;
    size_t i, opened;
    for (i = 0; i < PATHS && carnn_simd_name(i); i++) {
        CHECK(!carnn__engine_open(&engines[engine_count++], carnn_simd_name(i), 1, standard, NULL));
        CHECK(!carnn__engine_open(&engines[engine_count++], carnn_simd_name(i), 3, standard, NULL));
    }
    opened = engine_count;
    for (i = 0; i < PATHS && carnn_simd_name(i); i++) {
        const carnn__kernels *k = carnn__simd_number(i);
        CHECK(k->tile_columns <= 48);
        carnn__engine_borrow(&engines[engine_count++], k, panel[i], 16 * k->tile_columns);
    }
    CHECK(carnn__engine_open(&none, "abacus", 1, standard, &error) == CARNN_ERR_ARGUMENT);
    CHECK(strstr(error.message, "abacus") != NULL);
    check_products();
    check_packed_parts();
    check_few_rows();
    check_few_most();
    check_large();
    check_special();
    check_column_sums();
    check_split();
    for (i = 0; i < opened; i++) carnn__engine_close(&engines[i]);
    return test_end();
}
