/* @@SEQ and @@PART: packing, position encoder, rows by index, dropout, attention and cross entropy
   against their definitions in double precision. */

#include "test.h"

static carnn__engine engine; /* the best path, one thread */

static float *floats_of(size_t count, uint64_t key) {
    float *x = test_floats(count);
    if (key) test_draw(x, count, key, 1.0f);
    return x;
}

/* --- packing ---------------------------------------------------------------------------------- */

/* Every sequence has a rank, longer ones first, equal ones in their order; the rows of the steps
   stand one after the other. */
static void check_packing(const uint32_t *length, size_t count) {
    size_t longest = 0, rows = 0, i, t;
    carnn__packed p;
    int sorted = 1, steps = 1, ranked = 1;
    for (i = 0; i < count; i++) {
        longest = carnn__max(longest, length[i]);
        rows += length[i];
    }
    test_pack(&p, length, count);
    CHECK_INT(p.sequences, count);
    CHECK_INT(p.steps, longest);
    CHECK_INT(p.rows, rows);
    CHECK(p.start[0] == 0 && p.start[longest] == rows);
    for (i = 0; i + 1 < count; i++) {
        uint32_t a = length[p.order[i]], b = length[p.order[i + 1]];
        sorted &= a > b || (a == b && p.order[i] < p.order[i + 1]);
    }
    for (t = 0; t < longest; t++) { /* those that have a step t are the first ranks */
        size_t live = p.start[t + 1] - p.start[t];
        steps &= live > 0 && live <= count && length[p.order[live - 1]] > t &&
                 (live == count || length[p.order[live]] <= t);
    }
    CHECK(sorted);
    CHECK(steps);
    for (i = 0; i < count; i++) ranked &= p.order[p.rank[i]] == i;
    CHECK(ranked);
    free(p.length);
}

static void test_packing(void) {
    static const uint32_t some[] = {3, 1, 2}, equal[] = {4, 4, 4, 4}, none[] = {0, 0, 0};
    static const uint32_t mixed[] = {0, 7, 0, 7, 1, 0, 2}, one[] = {1}, huge[] = {2, 100000, 0};
    uint32_t *many = (uint32_t *)malloc(100000 * sizeof *many), reversed[6];
    size_t i;
    carnn__packed p;
    if (!many) abort();
    check_packing(some, 3);
    check_packing(equal, 4);
    check_packing(none, 3);
    check_packing(none, 0);
    check_packing(mixed, 7);
    check_packing(one, 1);
    check_packing(huge, 3);
    for (i = 0; i < 100000; i++) many[i] = (uint32_t)(carnn__random(1, i) % 50);
    check_packing(many, 100000);
    test_pack(&p, some, 3); /* the picture in @@SEQ */
    CHECK(p.order[0] == 0 && p.order[1] == 2 && p.order[2] == 1);
    CHECK(p.start[0] == 0 && p.start[1] == 3 && p.start[2] == 5 && p.start[3] == 6);
    carnn__reverse_index(&p, reversed);
    CHECK(reversed[0] == 5 && reversed[3] == 3 && reversed[5] == 0); /* a2, a1, a0 */
    CHECK(reversed[1] == 4 && reversed[4] == 1);                     /* c1, c0 */
    CHECK(reversed[2] == 2);                                         /* b0 */
    CHECK(carnn__rank_length(&p, 0) == 3 && carnn__rank_length(&p, 2) == 1);
    free(p.length);
    free(many);
}

/* --- position encoder ------------------------------------------------------------------------- */

static carnn__encoding encoder(size_t texts, size_t D, const uint32_t *which, const uint32_t *ids,
                               const size_t *at) {
    carnn__encoding e;
    memset(&e, 0, sizeof e);
    e.texts = texts;
    e.D = D;
    e.which = which;
    e.ids = ids;
    e.at = at;
    return e;
}

/* l_kj of Sukhbaatar et al. 2015, for a text of J words. */
static double position(size_t k, size_t j, size_t J, size_t D) {
    double of_words = (double)j / (double)J;
    return (1.0 - of_words) - (double)k / (double)D * (1.0 - 2.0 * of_words);
}

/* From another program: element k of the words (3 x 4) is sin(0.7 k + 1.3 * 70 + 0.1) / 2. */
static void test_encoder_golden(void) {
    static const double want[] = {0.010308800, -0.076279537, -0.196375105, -0.310123671};
    static const uint32_t ids[] = {0, 1, 2};
    static const size_t at[] = {0, 3};
    carnn__encoding e = encoder(1, 4, NULL, ids, at);
    float table[12], ramp[4], out[4];
    size_t k;
    for (k = 0; k < 12; k++) table[k] = (float)(0.5 * sin(0.7 * (double)k + 1.3 * 70.0 + 0.1));
    carnn__position_ramp(ramp, 4);
    e.ramp = ramp;
    e.table = carnn__floats_of(table, 4);
    e.out = out;
    carnn__encode_texts(&engine, &e);
    for (k = 0; k < 4; k++) CHECK_NEAR(out[k], want[k], 1e-7);
}

#define WORDS 80 /* several of each share */

/* Texts of 0, 1, 2, 5 and 70 words; rows name texts again and again. */
static void test_encoder(void) {
    static const size_t at[] = {0, 0, 1, 3, 8, 78}, sizes[] = {1, 5, 16, 33, 100};
    static const uint32_t which[] = {3, 1, 0, 2, 4, 3, 0};
    uint32_t ids[78];
    size_t n, i, j, k;
    for (i = 0; i < 78; i++) ids[i] = (uint32_t)(carnn__random(5, i) % WORDS);
    for (n = 0; n < 5; n++) {
        size_t D = sizes[n];
        float *table = floats_of(WORDS * D, 1), *out = floats_of(7 * D, 2), *ramp = floats_of(D, 0);
        float *dtable = floats_of(WORDS * D, 3), *dout = floats_of(7 * D, 4);
        double *want = (double *)calloc(WORDS * D, sizeof *want), worst = 0.0, one = 0.0;
        carnn__encoding e = encoder(7, D, which, ids, at);
        if (!want) abort();
        e.ramp = ramp;
        e.table = carnn__floats_of(table, D);
        e.out = out;
        e.dtable = dtable;
        e.dout = dout;
        carnn__position_ramp(ramp, D);
        for (i = 0; i < WORDS * D; i++) want[i] = (double)dtable[i]; /* what was there stays */
        carnn__encode_texts(&engine, &e);
        carnn__encode_texts_back(&engine, &e);
        for (i = 0; i < 7; i++)
            for (k = 1; k <= D; k++) {
                size_t first = at[which[i]], J = at[which[i] + 1] - first;
                double sum = 0.0;
                for (j = 1; j <= J; j++) {
                    size_t place = ids[first + j - 1] * D + k - 1;
                    sum += position(k, j, J, D) * (double)table[place];
                    want[place] += position(k, j, J, D) * (double)dout[i * D + k - 1];
                }
                worst = test_worse(worst, fabs(sum - (double)out[i * D + k - 1]));
                if (!J) CHECK(out[i * D + k - 1] == 0.0f);
                if (J == 1) /* enc[k] = k/D w[k] */
                    one = test_worse(one, fabs((double)out[i * D + k - 1] -
                                               (double)k / (double)D *
                                              (double)table[ids[first] * D + k - 1]));
            }
        CHECK_NEAR(worst, 0.0, 1e-5);
        CHECK_NEAR(one, 0.0, 1e-7);
        for (worst = 0.0, i = 0; i < WORDS * D; i++)
            worst = test_worse(worst, fabs(want[i] - (double)dtable[i]));
        CHECK_NEAR(worst, 0.0, 1e-5);
        free(want);
        test_drop(table);
        test_drop(out);
        test_drop(ramp);
        test_drop(dtable);
        test_drop(dout);
    }
}

/* --- rows by index ---------------------------------------------------------------------------- */

static void test_rows(void) {
    static const uint32_t index[] = {2, 0, 2, 2, 1};
    static const size_t sizes[] = {1, 16, 37};
    size_t n, i, j;
    for (n = 0; n < 3; n++) {
        size_t D = sizes[n];
        float *from = floats_of(5 * D, 1), *to = floats_of(4 * D, 2);
        float *gathered = floats_of(5 * D, 0);
        carnn__scatter s;
        double worst = 0.0;
        carnn__matrix_rows(gathered, carnn__floats_of(from, D), index, 5);
        for (i = 0; i < 5; i++)
            CHECK(!memcmp(gathered + i * D, from + index[i] * D, D * sizeof(float)));
        s.rows = 5;
        s.columns = D;
        s.index = index;
        s.from = from;
        s.to = to;
        engine.k->scatter_add(&s, 0, D / 2); /* as two threads do it */
        engine.k->scatter_add(&s, D / 2, D);
        for (i = 0; i < 4; i++)
            for (j = 0; j < D; j++) {
                double want = 2.0 * (double)carnn__uniform(2, i * D + j) - 1.0;
                size_t r;
                for (r = 0; r < 5; r++)
                    if (index[r] == i) want += (double)from[r * D + j];
                worst = test_worse(worst, fabs(want - (double)to[i * D + j]));
            }
        CHECK_NEAR(worst, 0.0, 1e-6);
        test_drop(from);
        test_drop(to);
        test_drop(gathered);
    }
}

/* --- attention -------------------------------------------------------------------------------- */

#define SEQUENCES 4
#define ROWS 9 /* lengths 3, 5, 0, 1 */
#define STEPS 5

typedef struct attention {
    carnn__packed seq;
    carnn__attention a;
} attention;

static const uint32_t attention_lengths[SEQUENCES] = {3, 5, 0, 1};
static const uint32_t attention_index[ROWS] = {0, 3, 1, 0, 2, 2, 3, 1, 1};

static void attention_open(attention *x, size_t D, int shared) {
    carnn__attention *a = &x->a;
    memset(x, 0, sizeof *x);
    test_pack(&x->seq, attention_lengths, SEQUENCES);
    a->seq = &x->seq;
    a->D = D;
    a->index = shared ? attention_index : NULL;
    a->h = floats_of(ROWS * D, 1);
    a->e = floats_of(ROWS * D, 2);
    a->c = floats_of(SEQUENCES * D, 3);
    a->dout = floats_of(SEQUENCES * D, 4);
    a->dc = floats_of(SEQUENCES * D, 0);
    a->dh = floats_of(ROWS * D, 5);
    a->out = floats_of(SEQUENCES * D, 6);
    a->weight = floats_of(SEQUENCES * STEPS, 7);
    a->dweight = floats_of(SEQUENCES * STEPS, 8);
}

static void attention_close(attention *x) {
    carnn__attention *a = &x->a;
    free(x->seq.length);
    test_drop((float *)a->h);
    test_drop((float *)a->e);
    test_drop((float *)a->c);
    test_drop((float *)a->dout);
    test_drop(a->dc);
    test_drop(a->dh);
    test_drop(a->out);
    test_drop(a->weight);
    test_drop(a->dweight);
}

static double residual(const carnn__attention *a, size_t row, size_t i) {
    size_t input = a->index ? a->index[row] : row;
    return (double)a->h[row * a->D + i] + (double)a->e[input * a->D + i];
}

/* Eq. 8 for the sequence of rank b: its weights, its o, and sum_i go_i o_i. */
static double attention_definition(const attention *x, size_t b, double *weight, double *o) {
    const carnn__attention *a = &x->a;
    double top = -1e300, sum = 0.0, loss = 0.0;
    size_t M = 0, t, i;
    while (M < x->seq.steps && b < x->seq.start[M + 1] - x->seq.start[M]) M++;
    for (t = 0; t < M; t++) {
        weight[t] = 0.0;
        for (i = 0; i < a->D; i++)
            weight[t] += residual(a, x->seq.start[t] + b, i) * (double)a->c[b * a->D + i];
        top = fmax(top, weight[t]);
    }
    for (t = 0; t < M; t++) sum += weight[t] = exp(weight[t] - top);
    for (t = 0; t < M; t++) weight[t] /= sum;
    for (i = 0; i < a->D; i++) {
        o[i] = 0.0;
        for (t = 0; t < M; t++) o[i] += weight[t] * residual(a, x->seq.start[t] + b, i);
        loss += o[i] * (double)a->dout[b * a->D + i];
    }
    return loss;
}

static double attention_loss(const attention *x) {
    double weight[STEPS], o[64], sum = 0.0;
    size_t b;
    for (b = 0; b < SEQUENCES; b++) sum += attention_definition(x, b, weight, o);
    return sum;
}

/* Error of gradients against central differences of the definition. */
static double attention_slopes(const attention *x, const float *at, const float *gradient,
                               size_t count) {
    float *value = (float *)at;
    double worst = 0.0;
    size_t i;
    for (i = 0; i < count; i++) {
        float before = value[i], up = before + 0x1p-10f, down = before - 0x1p-10f;
        double slope;
        value[i] = up;
        slope = attention_loss(x);
        value[i] = down;
        slope = (slope - attention_loss(x)) / ((double)up - (double)down);
        value[i] = before;
        worst = test_worse(worst, fabs(slope - (double)gradient[i]));
    }
    return worst;
}

static void test_attention(void) {
    static const size_t sizes[] = {1, 7, 16, 33};
    size_t n, b, t, i;
    int shared;
    for (n = 0; n < 4; n++)
        for (shared = 0; shared < 2; shared++) {
            size_t D = sizes[n];
            double weight[STEPS], o[64], worst = 0.0;
            attention x;
            attention_open(&x, D, shared);
            engine.k->attend(&x.a, 0, SEQUENCES);
            engine.k->attend_back(&x.a, 0, SEQUENCES);
            for (b = 0; b < SEQUENCES; b++) {
                attention_definition(&x, b, weight, o);
                for (t = 0; t < attention_lengths[x.seq.order[b]]; t++)
                    worst = test_worse(worst, fabs(weight[t] - (double)x.a.weight[b * STEPS + t]));
                for (i = 0; i < D; i++)
                    worst = test_worse(worst, fabs(o[i] - (double)x.a.out[b * D + i]));
            }
            CHECK_NEAR(worst, 0.0, 5e-6);
            CHECK_NEAR(attention_slopes(&x, x.a.h, x.a.dh, ROWS * D), 0.0, 3e-5);
            CHECK_NEAR(attention_slopes(&x, x.a.c, x.a.dc, SEQUENCES * D), 0.0, 3e-5);
            attention_close(&x);
        }
}

/* Scores of thousands: one utterance takes all the weight, and nothing overflows. */
static void test_attention_extremes(void) {
    attention x;
    size_t i, t;
    attention_open(&x, 7, 0);
    for (i = 0; i < SEQUENCES * 7; i++) ((float *)x.a.c)[i] = 1e4f;
    engine.k->attend(&x.a, 0, SEQUENCES);
    engine.k->attend_back(&x.a, 0, SEQUENCES);
    for (i = 0; i < SEQUENCES; i++) {
        double sum = 0.0;
        size_t length = attention_lengths[x.seq.order[i]];
        for (t = 0; t < length; t++) sum += (double)x.a.weight[i * STEPS + t];
        CHECK_NEAR(sum, length ? 1.0 : 0.0, 1e-6);
    }
    for (i = 0; i < ROWS * 7; i++) CHECK(x.a.dh[i] - x.a.dh[i] == 0.0f);
    for (i = 0; i < 7; i++) CHECK(x.a.out[3 * 7 + i] == 0.0f); /* nothing was said */
    for (i = 0; i < 7; i++) CHECK(x.a.dc[3 * 7 + i] == 0.0f);
    attention_close(&x);
}

/* --- cross entropy ---------------------------------------------------------------------------- */

static float entropy(float *z, size_t columns, uint32_t target, float scale, float smoothing) {
    float loss = -1.0f;
    carnn__cross_entropy x = {columns, z, &target, 1, scale, smoothing, &loss};
    engine.k->cross_entropy(&x, 0, 1);
    return loss;
}

/* -sum_j q_j log p_j with q = (1 - s) onehot + s / columns; its gradient is p - q. */
static void check_entropy(size_t columns, uint32_t target, float smoothing, float size) {
    float *z = floats_of(columns, 11);
    double *p = (double *)malloc(columns * sizeof *p), top = -1e300, sum = 0.0, loss = 0.0;
    double worst = 0.0, s = (double)smoothing;
    size_t j;
    float found;
    if (!p) abort();
    for (j = 0; j < columns; j++) z[j] *= size;
    for (j = 0; j < columns; j++) top = fmax(top, (double)z[j]);
    for (j = 0; j < columns; j++) sum += exp((double)z[j] - top);
    for (j = 0; j < columns; j++) {
        double log_p = (double)z[j] - top - log(sum), q = s / (double)columns;
        if (j == target) q += 1.0 - s;
        if (q > 0.0) loss -= q * log_p;
        p[j] = 0.5 * (exp(log_p) - q);
    }
    found = entropy(z, columns, target, 0.5f, smoothing);
    for (j = 0; j < columns; j++) worst = test_worse(worst, fabs(p[j] - (double)z[j]));
    CHECK_NEAR(found, loss, 3e-6 * (1.0 + fabs(loss) + (double)size));
    CHECK_NEAR(worst, 0.0, 1e-6);
    free(p);
    test_drop(z);
}

static void test_cross_entropy(void) {
    static const size_t columns[] = {1, 2, 15, 16, 17, 33, 1000, 100000};
    static const float sizes[] = {1.0f, 30.0f, 1e4f};
    float z[20], huge[3] = {3e38f, -3e38f, 0.0f}, twice[3] = {3e38f, 3e38f, 0.0f};
    size_t n, i;
    for (n = 0; n < 8; n++)
        for (i = 0; i < 3; i++) {
            check_entropy(columns[n], 0, 0.0f, sizes[i]);
            check_entropy(columns[n], (uint32_t)columns[n] - 1, 0.1f, sizes[i]);
            check_entropy(columns[n], (uint32_t)(columns[n] / 2), 0.9f, sizes[i]);
        }
    for (i = 0; i < 20; i++) z[i] = 5.0f;
    CHECK_NEAR(entropy(z, 20, 7, 1.0f, 0.0f), log(20.0), 1e-6); /* all the same */
    for (i = 0; i < 20; i++) z[i] = 5.0f;
    CHECK(entropy(z, 20, CARNN__NO_INDEX, 1.0f, 0.3f) == 0.0f);
    for (i = 0; i < 20; i++) CHECK(z[i] == 0.0f);
    z[3] = 5.0f;
    CHECK(entropy(z, 20, CARNN__UNSCORED, 1.0f, 0.3f) == 0.0f);
    CHECK(z[3] == 0.0f);
    CHECK(entropy(twice, 3, 0, 1.0f, 0.0f) == 0.0f); /* their sum overflows */
    CHECK(entropy(huge, 3, 0, 1.0f, 0.0f) == 0.0f);
    for (i = 0; i < 3; i++) CHECK(huge[i] == 0.0f);
    z[0] = NAN;
    CHECK(isnan(entropy(z, 20, 1, 1.0f, 0.0f))); /* it must not be hidden */
    CHECK(isnan(z[1]));
}

/* --- dropout ---------------------------------------------------------------------------------- */

#define DROPPED 100003 /* not a multiple of anything */

static void ones(float *x) {
    size_t i;
    for (i = 0; i < DROPPED; i++) x[i] = 1.0f;
}

static void test_dropout(void) {
    static const double rates[] = {0.1, 0.3, 0.5, 0.9};
    float *x = floats_of(DROPPED, 1), *y = floats_of(DROPPED, 2);
    size_t n, i;
    for (n = 0; n < 4; n++) {
        double p = rates[n], sigma = sqrt(p * (1.0 - p) / DROPPED);
        size_t zeros = 0, pairs = 0, other = 0, elsewhere = 0;
        ones(x);
        carnn__dropout(&engine, x, DROPPED, p, 5);
        for (i = 0; i < DROPPED; i++) {
            uint64_t drawn = carnn__random(5, i / 4) >> 16 * (i % 4) & 0xFFFF;
            elsewhere += (x[i] == 0.0f) != (((double)drawn + 0.5) / 65536.0 < p);
            zeros += x[i] == 0.0f;
            other += x[i] != 0.0f && x[i] != (float)(1.0 / (1.0 - p));
            pairs += i && x[i] == 0.0f && x[i - 1] == 0.0f;
        }
        CHECK_INT(other, 0);
        CHECK_INT(elsewhere, 0); /* four values share a random number */
        CHECK_NEAR((double)zeros / DROPPED, p, 4.0 * sigma);
        CHECK_NEAR((double)pairs / DROPPED, p * p, 0.01); /* neighbours do not know each other */
        ones(y);
        carnn__dropout(&engine, y, DROPPED, p, 5); /* the same mask for the gradient */
        CHECK(!memcmp(x, y, DROPPED * sizeof(float)));
        ones(y);
        carnn__dropout(&engine, y, 1001, p, 5); /* a place's number depends on nothing else */
        CHECK(!memcmp(x, y, 1001 * sizeof(float)));
        CHECK(y[1001] == 1.0f);
        ones(y);
        carnn__dropout(&engine, y, DROPPED, p, 6);
        CHECK(memcmp(x, y, DROPPED * sizeof(float)) != 0);
    }
    ones(x);
    ones(y);
    carnn__dropout(&engine, x, DROPPED, 0.0, 5);
    CHECK(!memcmp(x, y, DROPPED * sizeof(float)));
    carnn__dropout(&engine, x, 0, 0.5, 5);
    CHECK(x[0] == 1.0f);
    test_drop(x);
    test_drop(y);
}

/* --- the same bits ---------------------------------------------------------------------------- */

#define LARGE 200 /* columns: enough work for several threads */

/* Everything above once, into `out`; returns how many floats that are. */
static size_t all_parts(carnn__engine *e, float *out) {
    uint32_t ids[600], target[64];
    size_t at[121], i, used = 0;
    float *table = floats_of(50 * LARGE, 1), *ramp = floats_of(LARGE, 0);
    carnn__encoding x = encoder(120, LARGE, NULL, ids, at);
    carnn__cross_entropy entropies;
    attention a;
    for (i = 0; i < 600; i++) ids[i] = (uint32_t)(carnn__random(5, i) % 50);
    for (i = 0; i <= 120; i++) at[i] = i * 5;
    for (i = 0; i < 64; i++) target[i] = (uint32_t)i;
    carnn__position_ramp(ramp, LARGE);
    x.ramp = ramp;
    x.table = carnn__floats_of(table, LARGE);
    x.out = out;
    carnn__encode_texts(e, &x);
    carnn__dropout(e, out, 120 * LARGE, 0.4, 9);
    used += 120 * LARGE;
    x.dout = out;
    x.dtable = out + used;
    memset(x.dtable, 0, 50 * LARGE * sizeof(float));
    carnn__encode_texts_back(e, &x);
    carnn__scatter_rows(e, x.dtable, out, ids, 120, LARGE);
    used += 50 * LARGE;
    memcpy(out + used, out, 64 * LARGE * sizeof(float));
    entropies.columns = LARGE;
    entropies.learns = 1;
    entropies.z = out + used;
    entropies.target = target;
    entropies.scale = 0.1f;
    entropies.smoothing = 0.2f;
    used += 64 * LARGE;
    entropies.loss = out + used;
    carnn__split(e, e->k->cross_entropy, &entropies, 64, 1, 1000000);
    used += 64;
    attention_open(&a, 45, 1);
    carnn__split(e, e->k->attend, &a.a, SEQUENCES, 1, 1000000);
    carnn__split(e, e->k->attend_back, &a.a, SEQUENCES, 1, 1000000);
    memcpy(out + used, a.a.dh, ROWS * 45 * sizeof(float));
    memcpy(out + used + ROWS * 45, a.a.dc, SEQUENCES * 45 * sizeof(float));
    attention_close(&a);
    test_drop(table);
    test_drop(ramp);
    return used + (ROWS + SEQUENCES) * 45;
}

static void test_same_part_bits(void) {
    float *first = floats_of(50000, 0), *found = floats_of(50000, 0);
    size_t path, threads, used = all_parts(&engine, first);
    const char *name;
    CHECK(used > 40000 && used <= 50000);
    for (path = 0; (name = carnn_simd_name(path)) != NULL; path++)
        for (threads = 1; threads <= 3; threads++) {
            carnn__engine e;
            CHECK_INT(carnn__engine_open(&e, name, threads, carnn__allocator(NULL), NULL),
                      CARNN_OK);
            all_parts(&e, found);
            CHECK(!memcmp(first, found, used * sizeof(float)));
            carnn__engine_close(&e);
        }
    test_drop(first);
    test_drop(found);
}

/* Two sequences, of 2 and 3 steps: rows 0 2 4 are the longer one, rows 1 3 the shorter. */
static void test_reverse_index(void) {
    static const uint32_t length[2] = {2, 3}, mirror[5] = {4, 3, 2, 1, 0};
    uint32_t reversed[5];
    size_t row;
    carnn__packed p;
    test_pack(&p, length, 2);
    carnn__reverse_index(&p, reversed);
    for (row = 0; row < 5; row++) CHECK_INT(reversed[row], mirror[row]);
    free(p.length);
}

/* Words that are aligned with the zero vector, and with one so short that its square counts as the
   constant 1e-12. */
static void test_short_alignment(void) {
    static const float x[6] = {1.0f, 2.0f, 3.0f, 1.0f, 2.0f, 3.0f}, weight[2] = {0.5f, 2.0f};
    static const float a[6] = {0.0f, 0.0f, 0.0f, 1e-7f, -2e-7f, 3e-7f};
    static const float df[6] = {0.3f, -0.7f, 0.2f, 0.1f, 0.5f, -0.4f};
    float share[2], f[6], dx[6], da[6], dweight[2];
    carnn__compose c = {2, 3, 1, x, a, weight, share, f, df, dx, da, dweight};
    size_t i, j;
    engine.k->compose(&c);
    engine.k->compose_back(&c);
    for (i = 0; i < 2; i++) {
        double s = 0.0, a_t = 0.0, x_o = 0.0, w = (double)weight[i];
        for (j = 3 * i; j < 3 * i + 3; j++) {
            s += (double)x[j] * (double)a[j] / 1e-12;
            a_t += (double)a[j] * ((double)df[j % 3] - (double)df[3 + j % 3]);
            x_o += (double)x[j] * (double)df[3 + j % 3];
        }
        CHECK_NEAR(share[i], s, 1e-6 * fabs(s));
        CHECK_NEAR(dweight[i], s * a_t + x_o, 1e-6);
        for (j = 3 * i; j < 3 * i + 3; j++) {
            double o = (double)df[3 + j % 3], t = (double)df[j % 3] - o;
            double slope = w * (s * t + a_t / 1e-12 * (double)x[j]);
            CHECK_NEAR(dx[j], w * (o + a_t / 1e-12 * (double)a[j]), 1e-6);
            CHECK_NEAR(da[j], slope, 1e-6 * fabs(slope));
        }
    }
}

/* A vector is as like itself as can be, however long it is; what is 0, or so short that its square
   is no normal float, is like nothing. */
static void test_cosine_extremes(void) {
    static const float sizes[] = {1e-15f, 1e-11f, 3e-12f, 1.0f, 1e10f, 1e15f};
    float x[3], d[3];
    size_t i, j;
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (j = 0; j < 3; j++) x[j] = sizes[i] * (float)(j + 1), d[j] = 0.0f;
        CHECK_NEAR(carnn__cosine(engine.k, 3, x, x), 1.0, 1e-6);
        carnn__cosine_back(engine.k, 3, x, x, sizes[i], d, d);
        for (j = 0; j < 3; j++) CHECK_NEAR(d[j], 0.0, 1e-6);
    }
    for (j = 0; j < 3; j++) x[j] = 0.5f, d[j] = j ? 0.0f : 3e-23f;
    CHECK(carnn__cosine(engine.k, 3, x, d) == 0.0f);
    carnn__cosine_back(engine.k, 3, x, d, 1.0f, x, d);
    CHECK(x[0] == 0.5f && x[2] == 0.5f && d[0] == 3e-23f && d[2] == 0.0f);
    memset(x, 0, sizeof x);
    CHECK(carnn__cosine(engine.k, 3, x, d) == 0.0f);
}

int main(void) {
    test_reverse_index();
    CHECK_INT(carnn__engine_open(&engine, NULL, 1, carnn__allocator(NULL), NULL), CARNN_OK);
    test_packing();
    test_encoder_golden();
    test_encoder();
    test_rows();
    test_attention();
    test_attention_extremes();
    test_short_alignment();
    test_cosine_extremes();
    test_cross_entropy();
    test_dropout();
    test_same_part_bits();
    carnn__engine_close(&engine);
    return test_end();
}
