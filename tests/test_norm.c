/* Batch normalisation of recurrent cells: against its equations, written down again as plain loops
   in double precision and differentiated by differences; the averages that training keeps; that
   what a model says does not depend on the batch; the same bits whatever runs the arithmetic. */

#include "test.h"

/* --- a cell over a packed batch --------------------------------------------------------------- */

enum { BN_E = 5, BN_H = 19, BN_B = 10, BN_T = 7, BN_INPUTS = 8, BN_KNOWN = 4 };

/* Step 3 has three of nine rows, step 5 two, step 6 one. */
static const uint32_t bn_length[BN_B] = {3, 7, 5, 0, 6, 1, 1, 2, 1, 1};

typedef struct bn_subject {
    carnn__store store;
    carnn__param param[CARNN__CELL_PARAMS];
    carnn__cell cell;
    carnn__cell_run run;
    carnn__packed seq;
    uint32_t index[32];
    float *w, *g, *x, *dx, *h0, *c0, *weight; /* inputs, initial states, weights of the loss */
    int trains;
    double new_mean[BN_T][9 * BN_H], new_variance[BN_T][9 * BN_H]; /* by the equations */
    double out[32][BN_H];
} bn_subject;

static float *bn_floats(size_t count, uint64_t key, float size) {
    float *x = test_floats(count);
    test_draw(x, count, key, size);
    return x;
}

static void bn_open(bn_subject *s, size_t kind, size_t skip, int trains) {
    size_t i, t;
    float *piece;
    memset(s, 0, sizeof *s);
    s->trains = trains;
    test_pack(&s->seq, bn_length, BN_B);
    for (i = 0; i < s->seq.rows; i++) s->index[i] = (uint32_t)(i * 5 % BN_INPUTS);
    carnn__store_open(&s->store, s->param, CARNN__CELL_PARAMS);
    carnn__cell_declare(&s->cell, &s->store, "", kind, BN_E, BN_H, 0);
    carnn__cell_declare_skip(&s->cell, &s->store, "", skip);
    carnn__cell_declare_norm(&s->cell, &s->store, "");
    s->w = s->store.value = bn_floats(s->store.size, 1, 0.5f);
    s->g = test_floats(s->store.size);
    s->x = bn_floats(BN_INPUTS * BN_E, 2, 1.0f);
    s->dx = test_floats(BN_INPUTS * BN_E);
    s->h0 = bn_floats(BN_B * BN_H, 3, 1.0f);
    s->c0 = bn_floats(BN_B * BN_H, 4, 1.0f);
    s->weight = bn_floats(32 * BN_H, 5, 1.0f);
    piece = carnn__param_in(&s->store, s->w, s->cell.norm + CARNN__NORM_VARIANCE);
    for (i = 0; i < s->store.item[s->cell.norm + CARNN__NORM_VARIANCE].rows *
                        s->store.item[s->cell.norm + CARNN__NORM_VARIANCE].columns; i++)
        piece[i] = 0.6f + piece[i];
    piece = carnn__param_in(&s->store, s->w, s->cell.norm + CARNN__NORM_BATCHES);
    for (t = 0; t < CARNN__NORM_STEPS; t++) piece[t] = t < BN_KNOWN ? (float)(40 - 12 * t) : 0.0f;
}

static void bn_close(bn_subject *s) {
    float **all[] = {&s->w, &s->g, &s->x, &s->dx, &s->h0, &s->c0, &s->weight};
    size_t i;
    for (i = 0; i < CARNN__COUNT(all); i++) test_drop(*all[i]);
    free(s->seq.length);
}

/* --- the equations ---------------------------------------------------------------------------- */

/* Normalises column `at` of the term in v (rows, columns), all rows of step t. */
static void bn_term(bn_subject *s, const double *w, size_t t, size_t first, size_t columns,
                    const double *shift, double *v) {
    const carnn__param *p = &s->store.item[s->cell.norm];
    size_t n = s->seq.start[t + 1] - s->seq.start[t], j, b, W = p->columns;
    size_t slot = t < BN_KNOWN ? t : BN_KNOWN - 1;
    const double *gain = w + p[0].offset, *means = w + p[1].offset, *variances = w + p[2].offset;
    for (j = 0; j < columns; j++) {
        double mean = 0.0, variance = 0.0, rate;
        for (b = 0; b < n; b++) mean += v[b * columns + j] / (double)n;
        for (b = 0; b < n; b++) variance += pow(v[b * columns + j] - mean, 2.0) / (double)n;
        rate = 1.0 / (w[p[3].offset + t] + 1.0);
        if (rate < 0.05) rate = 0.05;
        s->new_mean[t][first + j] = (1.0 - rate) * means[t * W + first + j] + rate * mean;
        s->new_variance[t][first + j] =
            (1.0 - rate) * variances[t * W + first + j] + rate * variance;
        if (!s->trains || t > 4) { /* fewer rows than a quarter of those of step 0 */
            mean = means[slot * W + first + j];
            variance = variances[slot * W + first + j];
        }
        for (b = 0; b < n; b++)
            v[b * columns + j] = gain[first + j] * (v[b * columns + j] - mean) /
                                     sqrt(variance + 1e-5) + (shift ? shift[j] : 0.0);
    }
}

static double bn_gate(const bn_subject *s, const double *w, size_t g, size_t j, double m,
                      double n) {
    const double *a = w + s->store.item[s->cell.alpha].offset + g * BN_H + j;
    if (!carnn__cells[s->cell.kind].vectors) return m + n;
    return a[0] * m * n + w[s->store.item[s->cell.alpha + 1].offset + g * BN_H + j] * n +
           w[s->store.item[s->cell.alpha + 2].offset + g * BN_H + j] * m +
           w[s->store.item[s->cell.bias].offset + g * BN_H + j];
}

static double bn_dot(const double *a, const double *b, size_t n) {
    double sum = 0.0;
    while (n-- > 0) sum += a[n] * b[n];
    return sum;
}

/* The loss of weights, inputs and initial states, which lie behind one another. */
static double bn_loss(bn_subject *s, const double *all) {
    const carnn__cell_kind *k = &carnn__cells[s->cell.kind];
    const double *w = all, *x = w + s->store.size, *h = x + BN_INPUTS * BN_E, *c = h + BN_B * BN_H;
    const double *wx = w + s->store.item[s->cell.input].offset;
    const double *wh = w + s->store.item[s->cell.recurrent].offset;
    const double *wk = s->cell.skip ? w + s->store.item[s->cell.skip_weight].offset : NULL;
    const double *bias = k->vectors ? NULL : w + s->store.item[s->cell.bias].offset;
    static double m[BN_B * 4 * BN_H], n[BN_B * 4 * BN_H], y[BN_B * BN_H], state[BN_B * BN_H];
    size_t t, b, g, j, G = k->gates, lstm = k->flags & CARNN__HAS_CELL_STATE;
    double loss = 0.0, a[4];
    memcpy(state, c, sizeof state);
    for (t = 0; t < s->seq.steps; t++) {
        size_t row = s->seq.start[t], live = s->seq.start[t + 1] - row;
        for (b = 0; b < live; b++)
            for (g = 0; g < G * BN_H; g++) {
                const double *before = t ? s->out[s->seq.start[t - 1] + b] : h + b * BN_H;
                m[b * G * BN_H + g] = bn_dot(wx + g * BN_E, x + s->index[row + b] * BN_E, BN_E);
                n[b * G * BN_H + g] = bn_dot(wh + g * BN_H, before, BN_H);
                if (wk && t >= s->cell.skip)
                    n[b * G * BN_H + g] +=
                        bn_dot(wk + g * BN_H, s->out[s->seq.start[t - s->cell.skip] + b], BN_H);
            }
        bn_term(s, w, t, 0, G * BN_H, bias, m);
        bn_term(s, w, t, G * BN_H, G * BN_H, NULL, n);
        for (b = 0; b < live; b++)
            for (j = 0; j < BN_H; j++) {
                for (g = 0; g < G; g++)
                    a[g] = bn_gate(s, w, g, j, m[(b * G + g) * BN_H + j],
                                   n[(b * G + g) * BN_H + j]);
                if (!lstm) s->out[row + b][j] = tanh(a[0]);
                else y[b * BN_H + j] = state[b * BN_H + j] =
                    test_sigmoid(a[0]) * tanh(a[3]) + test_sigmoid(a[1]) * state[b * BN_H + j];
                if (lstm) s->out[row + b][j] = test_sigmoid(a[2]);
            }
        if (lstm)
            bn_term(s, w, t, 2 * G * BN_H, BN_H,
                    w + s->store.item[s->cell.norm + CARNN__NORM_SHIFT].offset, y);
        for (b = 0; b < live; b++)
            for (j = 0; j < BN_H; j++) {
                if (lstm) s->out[row + b][j] *= tanh(y[b * BN_H + j]);
                loss += (double)s->weight[(row + b) * BN_H + j] * s->out[row + b][j];
            }
    }
    return loss;
}

/* --- our code against them -------------------------------------------------------------------- */

static void *bn_run(bn_subject *s, carnn__engine *e) {
    carnn__arena arena = {NULL, 0, 0, 0};
    int pass;
    for (pass = 0; pass < 2; pass++) {
        carnn__cell_plan(&s->run, &s->cell, &s->store, s->trains ? s->g : NULL, &arena, BN_INPUTS,
                         s->seq.rows, BN_B, NULL);
        if (pass) break;
        carnn__arena_open(&arena, &e->allocator, NULL);
        memset(arena.base, 0xFF, arena.size); /* NaN: nothing may be read that was not written */
    }
    memset(s->g, 0, s->store.size * sizeof(float));
    memset(s->dx, 0, BN_INPUTS * BN_E * sizeof(float));
    carnn__cell_ready(&s->run, e);
    carnn__cell_project(&s->run, e, s->x, 0, BN_INPUTS);
    carnn__cell_forward(&s->run, e, &s->seq, s->index, s->h0, s->c0);
    if (s->trains) {
        float *dout = test_floats(s->seq.rows * BN_H); /* skip connections add to it */
        memcpy(dout, s->weight, s->seq.rows * BN_H * sizeof *dout);
        carnn__cell_backward(&s->run, e, dout, s->dx);
        test_drop(dout);
        carnn__cell_project_back(&s->run, e, s->dx);
    }
    return arena.base;
}

static void bn_widen(double *to, const float *from, size_t count) {
    while (count-- > 0) to[count] = (double)from[count];
}

/* The derivative along `count` numbers from `first` on, against differences of the equations. */
static double bn_slopes(bn_subject *s, double *all, size_t first, const float *gradient,
                        size_t count) {
    double worst = 0.0, size = 0.0;
    size_t i;
    for (i = 0; i < count; i++) size += (double)gradient[i] * (double)gradient[i];
    size = sqrt(size / (double)carnn__max(count, 1)) + 1e-2;
    for (i = 0; i < count; i += TEST_SANITIZED ? 31 : 1) {
        double keep = all[first + i], step = 1e-6, slope;
        all[first + i] = keep + step;
        slope = bn_loss(s, all);
        all[first + i] = keep - step;
        slope = (slope - bn_loss(s, all)) / (2.0 * step);
        all[first + i] = keep;
        worst = test_worse(fabs(slope - (double)gradient[i]) / size, worst);
    }
    return worst;
}

static void bn_cell(size_t kind, size_t skip, int trains) {
    static bn_subject s;
    carnn__engine e;
    size_t x, h, c, i, j, t;
    double *all, worst = 0.0;
    void *memory;
    bn_open(&s, kind, skip, trains);
    carnn__engine_open(&e, NULL, 1, carnn__allocator(NULL), NULL);
    x = s.store.size;
    h = x + BN_INPUTS * BN_E;
    c = h + BN_B * BN_H;
    all = (double *)calloc(c + BN_B * BN_H, sizeof *all);
    bn_widen(all, s.w, s.store.size);
    bn_widen(all + x, s.x, BN_INPUTS * BN_E);
    bn_widen(all + h, s.h0, BN_B * BN_H);
    bn_widen(all + c, s.c0, BN_B * BN_H);
    memory = bn_run(&s, &e);
    bn_loss(&s, all);
    for (i = 0; i < s.seq.rows; i++)
        for (j = 0; j < BN_H; j++)
            worst = test_worse(fabs(s.out[i][j] - (double)s.run.scan.out[i * BN_H + j]), worst);
    CHECK_NEAR(worst, 0.0, 2e-5);
    for (t = 0, worst = 0.0; trains && t < BN_T; t++) {
        const carnn__param *p = &s.store.item[s.cell.norm];
        const float *mean = s.run.norm.population.now[0] + t * p->columns;
        const float *variance = s.run.norm.population.now[1] + t * p->columns;
        int moves = t <= 4;
        CHECK_NEAR(s.run.norm.population.now[2][t], (double)s.w[p[3].offset + t] + moves, 0.0);
        for (j = 0; j < p->columns; j++) {
            if (!moves) CHECK(mean[j] == s.w[p[1].offset + t * p->columns + j]);
            if (!moves) continue;
            worst = test_worse(fabs((double)mean[j] - s.new_mean[t][j]), worst);
            worst = test_worse(fabs((double)variance[j] - s.new_variance[t][j]), worst);
        }
    }
    CHECK_NEAR(worst, 0.0, 2e-5);
    for (i = 0, worst = 0.0; trains && i < s.store.count; i++) {
        const carnn__param *p = &s.store.item[i];
        for (j = 0; p->statistic && j < p->rows * p->columns; j++)
            CHECK(s.g[p->offset + j] == 0.0f);
        if (!p->statistic)
            worst = test_worse(
                bn_slopes(&s, all, p->offset, s.g + p->offset, p->rows * p->columns), worst);
    }
    if (trains) {
        worst = test_worse(bn_slopes(&s, all, x, s.dx, BN_INPUTS * BN_E), worst);
        worst = test_worse(bn_slopes(&s, all, h, s.run.scan.dh, BN_B * BN_H), worst);
    }
    if (trains && s.run.scan.dc)
        worst = test_worse(bn_slopes(&s, all, c, s.run.scan.dc, BN_B * BN_H), worst);
    if (test_fails(worst < 1e-3, "gradients", __FILE__, __LINE__))
        printf(" of %s, skip %zu: error %g\n", carnn__cells[kind].name, skip, worst);
    free(all);
    test_drop(memory);
    carnn__engine_close(&e);
    bn_close(&s);
}

static void bn_cells(void) {
    static const size_t kind[] = {CARNN__CELL_rnn, CARNN__CELL_lstm, CARNN__CELL_mi_rnn,
                                  CARNN__CELL_mi_lstm};
    size_t i;
    for (i = 0; i < CARNN__COUNT(kind); i++) {
        bn_cell(kind[i], 0, 0);
        bn_cell(kind[i], 0, 1);
    }
    bn_cell(CARNN__CELL_lstm, 2, 1);
    bn_cell(CARNN__CELL_mi_rnn, 3, 0);
}

/* A step in training uses its own rows if there are two, and one for every four sequences. */
static void bn_own(void) {
    static const struct {
        size_t sequences, rows;
        int own;
    } steps[] = {{1, 1, 0}, {2, 1, 0}, {2, 2, 1}, {4, 1, 0}, {8, 2, 1}, {9, 2, 0}, {9, 3, 1}};
    size_t i;
    for (i = 0; i < CARNN__COUNT(steps); i++) {
        size_t start[3] = {0};
        carnn__packed seq = {0};
        carnn__cell_run run;
        float g = 0.0f;
        start[1] = steps[i].sequences;
        start[2] = start[1] + steps[i].rows;
        seq.start = start;
        memset(&run, 0, sizeof run);
        run.scan.seq = &seq;
        CHECK_INT(carnn__norm_own(&run, 1), 0);
        run.g = &g;
        CHECK_INT(carnn__norm_own(&run, 1), steps[i].own);
    }
}

/* Columns 0, 2, .. are constant: equal in all rows, though the sum of these is rounded, or of a
   variance of 0 in the population. What is left of them is the shift, and no gradient. */
static void bn_constant(const char *simd, int own) {
    enum { ROWS = 7, W = 19 };
    float v[ROWS * W], y[ROWS * W], d[ROWS * W], gain[W], shift[W], mean[W], variance[W];
    float new_mean[W], new_variance[W], dgain[W] = {0}, dshift[W] = {0};
    carnn__norm s = {0};
    carnn__engine e;
    size_t i, j;
    test_draw(v, ROWS * W, 1, 1.0f);
    test_draw(d, ROWS * W, 2, 1.0f);
    test_draw(gain, W, 3, 1.0f);
    test_draw(shift, W, 4, 1.0f);
    test_draw(mean, W, 5, 1.0f);
    for (j = 0; j < W; j++) variance[j] = own || j % 2 ? 1.0f : 0.0f;
    for (i = 0; own && i < ROWS; i++)
        for (j = 0; j < W; j += 2) v[i * W + j] = 0.1f * (float)(j + 1);
    s.rows = ROWS;
    s.columns = s.stride = W;
    s.v = v;
    s.gain = gain;
    s.shift = shift;
    s.mean = mean;
    s.variance = variance;
    s.own = own;
    s.rate = 1.0f;
    s.y = y;
    s.d = d;
    s.dgain = dgain;
    s.dshift = dshift;
    CHECK_INT(carnn__engine_open(&e, simd, 1, carnn__allocator(NULL), NULL), CARNN_OK);
    e.k->norm_back(&s, 0, W);
    s.new_mean = own ? new_mean : NULL;
    s.new_variance = new_variance;
    e.k->norm(&s, 0, W);
    for (j = 0; j < W; j++) {
        if (own) CHECK((new_variance[j] == 0.0f) == !(j % 2));
        for (i = 0; i < ROWS; i++) {
            CHECK((y[i * W + j] == shift[j]) == !(j % 2));
            CHECK((d[i * W + j] == 0.0f) == !(j % 2));
        }
        CHECK((dgain[j] == 0.0f) == !(j % 2));
        CHECK(dshift[j] != 0.0f);
    }
    carnn__engine_close(&e);
}

/* --- models ----------------------------------------------------------------------------------- */

enum { BN_TEXTS = 40, BN_WORDS = 12 };

/* Texts of 1 to 9 words out of 12, no two alike; the class is whether b is there. */
static carnn_dataset *bn_data(size_t texts) {
    static char text[BN_TEXTS * 64];
    size_t i, j, at = 0;
    for (i = 0; i < texts; i++) {
        size_t n = i % 9 + 1, has = 0, from = at;
        at += 2;
        for (j = 0; j < n; j++) {
            size_t word = (size_t)(carnn__random(i + 1, j) % BN_WORDS);
            has |= word == 0;
            text[at++] = (char)('b' + word);
            text[at++] = ' ';
        }
        text[at - 1] = '\n';
        text[from] = has ? 'y' : 'n';
        text[from + 1] = '\t';
    }
    return test_data("classify", text, at, 0, 0);
}

static carnn_train_desc bn_training(int64_t epochs) {
    carnn_train_desc train = test_training(epochs, BN_TEXTS, 0.02, 0.2);
    train.weight_decay = 0.5;
    train.average = 0.9;
    return train;
}

static carnn_model *bn_trained(const char *options, const carnn_dataset *data,
                               const carnn_train_desc *train) {
    carnn_model *model = test_model("classify", options, NULL, data);
    carnn_error error;
    if (carnn_train(model, data, data, train, &error)) printf("%s\n", error.message);
    return model;
}

/* Neither decay nor the moving average changes what has been counted: all nine steps in each of six
   batches but those that fewer than ten of the 40 texts have (the sixth is the last with more). */
static void bn_batches(void) {
    carnn_dataset *data = bn_data(BN_TEXTS);
    carnn_train_desc train = bn_training(6);
    carnn_model *model = bn_trained("cell=lstm normalise=batch", data, &train), *again;
    const float *batches = test_weight(model, "cell.backward.norm.batches");
    carnn_source file = {"test_norm.gguf", NULL, 0};
    test_answers before, after;
    size_t t, best = (size_t)model->best_epoch;
    for (t = 0; t < CARNN__NORM_STEPS; t++)
        CHECK_NEAR(batches[t], (9 - t) * BN_TEXTS / 9 + (t < 4) >= 10 && t < 9 ? best : 0, 0.0);
    CHECK_INT(carnn_model_save(model, "test_norm.gguf", NULL), CARNN_OK);
    CHECK_INT(carnn_model_load(&again, &file, NULL, NULL), CARNN_OK);
    CHECK(!memcmp(model->params.value, again->params.value,
                  model->params.size * sizeof(float)));
    before = test_predict_all(model, data, 1);
    after = test_predict_all(again, data, 2);
    CHECK(!memcmp(&before, &after, sizeof before));
    remove("test_norm.gguf");
    carnn_model_free(again);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* While no weight changes, the population is the batch: that of Wx x by loops over the texts. */
static void bn_population(void) {
    carnn_dataset *data = bn_data(BN_TEXTS);
    carnn_train_desc train = test_training(3, BN_TEXTS, 1e-30, CARNN_NONE);
    carnn_model *model;
    const float *mean, *variance, *E, *wx;
    size_t t, j, i, k, W = 9 * 6, e = 5;
    double worst = 0.0;
    train.average = train.weight_decay = CARNN_NONE;
    model = bn_trained("cell=lstm normalise=batch directions=1", data, &train);
    mean = test_weight(model, "cell.norm.mean");
    variance = test_weight(model, "cell.norm.variance");
    E = test_weight(model, "word.weight");
    wx = test_weight(model, "cell.input.weight");
    for (t = 0; t < 5; t++)
        for (j = 0; j < 4 * 6; j++) {
            double sum = 0.0, squares = 0.0, n = 0.0, v;
            for (i = 0; i < data->item_count; i++) {
                carnn__span text = carnn__text(data, data->members[data->items[i].first].text);
                if (text.length < 2 * t + 1) continue;
                for (k = 0, v = 0.0; k < e; k++) {
                    const carnn__span letter = {text.at + 2 * t, 1};
                    uint32_t id = carnn__names_find(&model->words, letter);
                    if (id == CARNN__NO_INDEX) id = 0; /* too rare */
                    v += (double)wx[j * e + k] * (double)E[id * e + k];
                }
                sum += v;
                squares += v * v;
                n += 1.0;
            }
            sum /= n;
            worst = test_worse(fabs(sum - (double)mean[t * W + j]), worst);
            worst = test_worse(
                fabs(squares / n - sum * sum - (double)variance[t * W + j]), worst);
        }
    CHECK_NEAR(worst, 0.0, 2e-6);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Sequences that begin alike, with 40 rows of 0, and whose class is the sign of the sum of the ten
   rows behind: what all have in common grows neither in gradients nor in predictions. */
static void bn_begin_alike(const char *options) {
    enum { SEQUENCES = 97, ALIKE = 40, ROWS = 10 }; /* the last batch has a single one */
    static char text[SEQUENCES * (ALIKE + ROWS + 1) * 8];
    carnn_train_desc train = test_training(4, 16, 0.01, CARNN_NONE);
    carnn_dataset *data;
    carnn_model *model;
    carnn_scores scores;
    carnn_error error;
    size_t i, j, at = 0;
    for (i = 0; i < SEQUENCES; i++) {
        at += (size_t)snprintf(text + at, sizeof text - at, "%c", "-+"[i % 2]);
        for (j = 0; j < ALIKE; j++) at += (size_t)snprintf(text + at, sizeof text - at, "\t0");
        for (; j < ALIKE + ROWS; j++)
            at += (size_t)snprintf(text + at, sizeof text - at, "\t%.3f",
                                   2.0 * (double)carnn__uniform(i + 1, j) - (i % 2 ? 0.5 : 1.5));
        at += (size_t)snprintf(text + at, sizeof text - at, "\n");
    }
    data = test_data("signal", text, at, 0, 0);
    model = test_model("signal", options, NULL, data);
    if (test_fails(!carnn_train(model, data, data, &train, &error), options, __FILE__, __LINE__))
        printf(": %s\n", error.message);
    scores = test_scores(model, data);
    CHECK(test_metric(&scores, "accuracy") > 0.9);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* A text by itself and among others; word by word and at once. */
static void bn_alone(const char *options) {
    static const uint32_t length[] = {1};
    carnn_dataset *data = bn_data(BN_TEXTS), *one;
    carnn_train_desc train = bn_training(5);
    carnn_model *model = bn_trained(options, data, &train);
    test_answers all = test_predict_all(model, data, 1);
    size_t i;
    float whole[16 * 64], state[16 * 64] = {0};
    carnn__packed step;
    carnn__mat x = {NULL, NULL, 5}, *y;
    carnn__classify *head;
    test_work w;
    for (i = 0; i < BN_TEXTS; i += 13) {
        carnn__span text = carnn__text(data, data->members[data->items[i].first].text);
        char line[64];
        int n = snprintf(line, sizeof line, "y\t%.*s\n", (int)text.length, text.at);
        test_answers alone;
        one = test_data("classify", line, (size_t)n, 0, 0);
        alone = test_predict_all(model, one, 1);
        CHECK_NEAR(alone.value[0], all.value[i], 1e-6);
        if (i == 26) { /* nine words */
            test_work_open(&w, model, one, 1);
            CHECK_INT(test_work_run(&w, 0), 1);
            head = (carnn__classify *)w.work.state;
            y = &head->layers.rnn.layer[head->layers.rnn.layers - 1].y;
            CHECK_INT(head->net.texts.at[1], 9);
            memcpy(whole, y->x, 9 * y->columns * sizeof(float));
            test_pack(&step, length, 1);
            for (n = 0; n < 9 && head->layers.rnn.directions == 1; n++) {
                carnn__rnn_input in = {&step, {NULL, NULL}, NULL, &x, 1, NULL, NULL, 0, NULL,
                                       NULL};
                x.x = head->words.y.x + head->net.texts.ids[n] * 5;
                in.state = in.next = state;
                head->layers.rnn.before = (size_t)n;
                carnn__rnn_forward(&w.work, &head->layers.rnn, in, 0);
                CHECK(!memcmp(y->x, whole + (size_t)n * y->columns, y->columns * sizeof(float)));
            }
            free(step.length);
            test_work_close(&w);
        }
        carnn_dataset_free(one);
    }
    carnn_model_free(model);
    carnn_dataset_free(data);
}

static void bn_resume(void) {
    carnn_dataset *data = bn_data(BN_TEXTS);
    carnn_train_desc train = bn_training(4);
    carnn_model *model[3];
    size_t i;
    train.batch = 16;
    for (i = 0; i < 3; i++)
        model[i] = test_model("classify", "cell=mi-lstm normalise=batch", NULL, data);
    test_resumed(model[0], model[1], model[2], data, train, "test_norm.resume");
    for (i = 0; i < 3; i++) carnn_model_free(model[i]);
    carnn_dataset_free(data);
}

/* The loss of a batch in training along a random direction of all weights. */
static double bn_along(carnn_model *model, const carnn_dataset *data, float *g, double step,
                       const float *start) {
    double loss;
    test_work w;
    size_t i;
    for (i = 0; i < model->params.trained; i++)
        model->params.value[i] =
            start[i] + (float)step * (2.0f * carnn__uniform(99, i) - 1.0f);
    for (i = 0; i < model->params.count; i++)
        if (model->params.item[i].statistic)
            memcpy(model->params.value + model->params.item[i].offset,
                   start + model->params.item[i].offset,
                   model->params.item[i].rows * model->params.item[i].columns * sizeof(float));
    memset(g, 0, model->params.size * sizeof *g);
    test_work_open(&w, model, data, 1);
    w.work.g = g;
    w.work.batch = BN_TEXTS;
    CHECK_INT(test_work_run(&w, 0), 1);
    loss = w.tally.loss / BN_TEXTS;
    test_work_close(&w);
    return loss;
}

/* Questions, each with a text of its own and the answer b. */
static carnn_dataset *bn_questions(void) {
    char text[BN_TEXTS * 64];
    size_t i, j, at = 0;
    for (i = 0; i < BN_TEXTS; i++) {
        at += (size_t)snprintf(text + at, sizeof text - at, "1 b");
        for (j = 0; j < i % 9; j++)
            at += (size_t)snprintf(text + at, sizeof text - at, " %c",
                                   'c' + (int)(carnn__random(i + 1, j) % BN_WORDS));
        at += (size_t)snprintf(text + at, sizeof text - at, "\n2 %c XXXXX %c\tb\t\tb|c|d\n\n",
                               'c' + (int)(i % 7), 'c' + (int)(i % 5));
    }
    return test_data("cloze", text, at, 0, 0);
}

static void bn_direction(const char *task, const char *options) {
    carnn_dataset *data = strcmp(task, "cloze") ? bn_data(BN_TEXTS) : bn_questions();
    carnn_model *model = test_model(task, options, NULL, data);
    size_t size = model->params.size, i;
    float *g = test_floats(size), *start = test_floats(size);
    double along = 0.0, slope[3], step = 1e-3, error = 1.0;
    memcpy(start, model->params.value, size * sizeof *start);
    for (i = 0; i < 3; i++, step *= 0.3) /* a shorter one: less curved, but a difference of less */
        slope[i] = (8.0 * (bn_along(model, data, g, step, start) -
                           bn_along(model, data, g, -step, start)) -
                    bn_along(model, data, g, 2.0 * step, start) +
                    bn_along(model, data, g, -2.0 * step, start)) / (12.0 * step);
    bn_along(model, data, g, 0.0, start);
    for (i = 0; i < model->params.trained; i++)
        along += (double)g[i] * (double)(2.0f * carnn__uniform(99, i) - 1.0f);
    CHECK(fabs(along) > 0.002);
    for (i = 0; i < 3; i++) error = fmin(error, fabs(slope[i] / along - 1.0));
    CHECK_NEAR(error, 0.0, 0.01);
    test_drop(g);
    test_drop(start);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

static void bn_refused(const char *task, const char *options, const char *why) {
    static const char pairs[] = "a b\tb\t1\na b\tc\t0\n", texts[] = "x\ta b\ny\tb\n";
    static const char cloze[] = "1 a b\n2 a XXXXX\tb\t\ta|b\n";
    const char *text = !strcmp(task, "answer") ? pairs : !strcmp(task, "cloze") ? cloze : texts;
    carnn_dataset *data = test_data(task, text, strlen(text), 0, 0);
    carnn_error error = test_refused(task, options, data);
    CHECK(strstr(error.message, why) != NULL);
    carnn_dataset_free(data);
}

int main(void) {
    carnn_dataset *data = bn_data(BN_TEXTS);
    size_t i;
    bn_cells();
    bn_own();
    for (i = 0; carnn_simd_name(i); i++) {
        bn_constant(carnn_simd_name(i), 0);
        bn_constant(carnn_simd_name(i), 1);
    }
    bn_batches();
    bn_population();
    bn_begin_alike("cell=lstm normalise=batch columns=1 embedding=1 hidden=16 layers=1");
    bn_begin_alike("cell=mi-rnn normalise=batch columns=1 embedding=1 hidden=16 layers=1");
    bn_alone("cell=lstm normalise=batch directions=1");
    bn_alone("cell=mi-lstm normalise=batch directions=1 layers=2 skip=2");
    bn_alone("cell=rnn normalise=batch encoder=rcrn");
    bn_resume();
    bn_direction("classify", "cell=lstm normalise=batch layers=2");
    bn_direction("classify", "cell=mi-lstm normalise=batch encoder=rcrn");
    bn_direction("cloze", "cell=lstm model=attentive normalise=everywhere");
    carnn_model_free(test_trains_alike("classify", "cell=lstm normalise=batch hidden=130", data,
                                       bn_training(2)));
    if (!TEST_SANITIZED)
        carnn_model_free(test_trains_alike("classify", "cell=mi-rnn normalise=batch hidden=520",
                                           data, bn_training(1)));
    bn_refused("classify", "cell=gru normalise=batch", "mi-lstm, found gru");
    bn_refused("answer", "cell=lstm model=ca normalise=batch", "alignment none");
    bn_refused("classify", "cell=lstm skip=1", "expected 2 or more");
    bn_refused("classify", "cell=lstm normalise=everywhere", "unknown normalise \"everywhere\"");
    bn_refused("cloze", "cell=lstm normalise=everywhere", "for the model attentive");
    carnn_dataset_free(data);
    return test_end();
}
