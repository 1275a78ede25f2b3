/* @@CELL and @@CHECK: every cell of the table against its equations, written down again here as
   plain loops in double precision; the golden values of the papers' cells; identities; the same
   bits whatever runs the arithmetic. */

#include "test.h"

/* --- a cell and all that it works on ---------------------------------------------------------- */

typedef struct subject {
    size_t e, h, d, sequences, rows, inputs;
    uint32_t *index;
    carnn__packed seq;
    carnn__store store;
    carnn__param param[CARNN__CELL_PARAMS];
    carnn__cell cell;
    carnn__cell_run run;
    float *w, *g;         /* laid out like the store */
    float *x, *dx;        /* (inputs, e) */
    float *c, *dc;        /* (sequences, d) */
    float *h0, *c0, *out; /* initial states; weights of the loss sum_i out_i h_i */
    void *memory;         /* of the run */
    int no_dx;            /* the gradient of the inputs is not asked for */
    int gathers;          /* all that reaches a state is left in `out` */
    const carnn__cell_kind *kind; /* in the place of the table's for products; or NULL */
} subject;

/* Inputs and weights at random. `shared` inputs: the rows read these in turn; 0: one for each. */
static void subject_open(subject *s, size_t kind, size_t e, size_t h, size_t d,
                         const uint32_t *length, size_t sequences, size_t shared) {
    size_t i;
    memset(s, 0, sizeof *s);
    if (carnn__cells[kind].flags & CARNN__INPUT_IS_CANDIDATE) e = h;
    test_pack(&s->seq, length, sequences);
    s->e = e;
    s->h = h;
    s->d = d;
    s->sequences = sequences;
    s->rows = s->seq.rows;
    s->inputs = shared ? shared : s->rows;
    if (shared) s->index = (uint32_t *)calloc(s->rows + 1, sizeof *s->index);
    for (i = 0; shared && i < s->rows; i++) s->index[i] = (uint32_t)(i * 5 % shared);
    carnn__store_open(&s->store, s->param, CARNN__CELL_PARAMS);
    carnn__cell_declare(&s->cell, &s->store, "", kind, e, h, d);
    s->w = s->store.value = test_floats(s->store.size);
    s->g = test_floats(s->store.size);
    for (i = 0; i < s->store.count; i++)
        test_draw(carnn__param_in(&s->store, s->w, i),
                  s->store.item[i].rows * s->store.item[i].columns, 100 + i,
                  1.5f / sqrtf((float)s->store.item[i].columns + 1.0f));
    for (i = 0; i < carnn__cells[kind].vectors; i++)
        test_draw(carnn__param_in(&s->store, s->w, s->cell.alpha + i), carnn__cells[kind].gates * h,
                  200 + i, 1.0f);
    test_draw(s->x = test_floats(s->inputs * e), s->inputs * e, 1, 1.0f);
    test_draw(s->c = test_floats(sequences * d), sequences * d, 2, 1.0f);
    test_draw(s->h0 = test_floats(sequences * h), sequences * h, 3, 1.0f);
    test_draw(s->c0 = test_floats(sequences * h), sequences * h, 4, 1.0f);
    test_draw(s->out = test_floats(s->rows * h), s->rows * h, 5, 1.0f);
    s->dx = test_floats(s->inputs * e);
    s->dc = test_floats(sequences * d);
}

static void subject_close(subject *s) {
    float *all[9];
    size_t i;
    all[0] = s->w;
    all[1] = s->g;
    all[2] = s->x;
    all[3] = s->dx;
    all[4] = s->c;
    all[5] = s->dc;
    all[6] = s->h0;
    all[7] = s->c0;
    all[8] = s->out;
    for (i = 0; i < 9; i++) test_drop(all[i]);
    test_drop(s->memory);
    free(s->seq.length);
    free(s->index);
}

/* Forward and backward with our code. */
static void subject_run(subject *s, carnn__engine *e) {
    carnn__arena arena = {NULL, 0, 0, 0};
    int pass;
    test_drop(s->memory);
    for (pass = 0; pass < 2; pass++) {
        carnn__cell_plan(&s->run, &s->cell, &s->store, s->g, &arena, s->inputs, s->rows,
                         s->sequences, NULL);
        if (pass) break;
        s->memory = test_aligned(arena.peak);
        memset(s->memory, 0xFF, arena.peak); /* NaN: nothing may be read that was not written */
        arena.base = (char *)s->memory;
        arena.size = arena.peak;
        arena.used = 0;
    }
    memset(s->g, 0, s->store.size * sizeof(float));
    memset(s->dx, 0, s->inputs * s->e * sizeof(float));
    memset(s->dc, 0, s->sequences * s->d * sizeof(float));
    s->run.gathers = s->gathers;
    if (s->kind) s->run.kind = s->kind;
    carnn__cell_ready(&s->run, e);
    carnn__cell_project(&s->run, e, s->x, 0, s->inputs);
    carnn__cell_context(&s->run, e, s->c, s->sequences);
    carnn__cell_forward(&s->run, e, &s->seq, s->index, s->h0, s->c0);
    carnn__cell_backward(&s->run, e, s->out, s->no_dx ? NULL : s->dx);
    carnn__cell_context_back(&s->run, e, s->dc);
    carnn__cell_project_back(&s->run, e, s->no_dx ? NULL : s->dx);
}

/* --- the equations ---------------------------------------------------------------------------- */

#define MOST 64 /* hidden units */

/* One unit of one step: (W x)_i etc. of gate g. */
typedef struct terms {
    const subject *s;
    const double *x, *c, *h;
    size_t i;
} terms;

static const float *weights(const subject *s, size_t number) {
    return s->w + s->store.item[number].offset;
}
static double X(const terms *t, size_t g) {
    return test_row_times(weights(t->s, t->s->cell.input), g * t->s->h + t->i, t->s->e, t->x);
}
static double B(const terms *t, size_t g) {
    return (double)weights(t->s, t->s->cell.bias)[g * t->s->h + t->i];
}
static double C(const terms *t, size_t g) {
    return test_row_times(weights(t->s, t->s->cell.context), g * t->s->h + t->i, t->s->d, t->c);
}
static double H(const terms *t, size_t g) {
    return test_row_times(weights(t->s, t->s->cell.recurrent), g * t->s->h + t->i, t->s->h, t->h);
}

/* Number i (alpha, beta1, beta2) of the vectors of gate g. */
static double vector(const terms *t, size_t i, size_t g) {
    return (double)weights(t->s, t->s->cell.alpha + i)[g * t->s->h + t->i];
}

/* The sum of the projections m = X and n, or their multiplicative integration, maybe simple. */
static double together(const terms *t, size_t g, double n) {
    double m = X(t, g), b = B(t, g);
    size_t vectors = carnn__cells[t->s->cell.kind].vectors;
    if (!vectors) return m + n + b;
    if (vectors == 1) return m * n + b;
    return vector(t, 0, g) * m * n + vector(t, 1, g) * n + vector(t, 2, g) * m + b;
}
static double XHB(const terms *t, size_t g) { return together(t, g, H(t, g)); }

/* h = (1 - u) h' + u f k */
static double additive(double u, double f, double k, double before) {
    return u * (f * k) + (1.0 - u) * before;
}

/* Reset before the product: the candidate of a unit needs the reset gates of all. */
static double gru_candidate(const terms *t) {
    double reset[MOST];
    terms all = *t;
    for (all.i = 0; all.i < t->s->h; all.i++)
        reset[all.i] = test_sigmoid(XHB(&all, 1)) * t->h[all.i];
    return tanh(together(t, 2, test_row_times(weights(t->s, t->s->cell.recurrent),
                                              2 * t->s->h + t->i, t->s->h, reset)));
}

/* The new state of unit i; *state is its c. */
static double unit(const char *cell, const terms *t, double *state) {
    double before = t->h[t->i];
    if (!strncmp(cell, "lin-", 4)) return XHB(t, 0);
    if (!strncmp(cell, "mi-", 3)) cell += 3; /* together() differs */
    if (!strncmp(cell, "rnn", 3)) return tanh(XHB(t, 0));
    if (!strcmp(cell, "lstm") || !strcmp(cell, "carnn-high")) {
        int high = cell[0] == 'c';
        double i = test_sigmoid(XHB(t, 0) + (high ? C(t, 0) : 0.0));
        double f = test_sigmoid(XHB(t, 1) + (high ? C(t, 1) : 0.0));
        double o = test_sigmoid(XHB(t, 2) + (high ? C(t, 2) : 0.0));
        *state = i * tanh(XHB(t, 3)) + f * *state;
        return o * tanh(*state);
    }
    if (!strcmp(cell, "gru"))
        return additive(test_sigmoid(XHB(t, 0)), 1.0, gru_candidate(t), before);
    if (!strcmp(cell, "gru-after")) {
        const float *b = weights(t->s, t->s->cell.recurrent_bias);
        size_t h = t->s->h;
        double u = test_sigmoid(XHB(t, 0) + (double)b[t->i]);
        double r = test_sigmoid(XHB(t, 1) + (double)b[h + t->i]);
        double z = tanh(X(t, 2) + B(t, 2) + r * (H(t, 2) + (double)b[2 * h + t->i]));
        return additive(u, 1.0, z, before);
    }
    if (!strncmp(cell, "ran", 3)) {
        double c = test_sigmoid(XHB(t, 0)) * X(t, 2) +
                   test_sigmoid(XHB(t, 1)) * (cell[3] ? *state : before);
        *state = c;
        return cell[3] ? tanh(c) : c;
    }
    if (!strcmp(cell, "ncarnn"))
        return additive(test_sigmoid(XHB(t, 0) + C(t, 0)), test_sigmoid(XHB(t, 1) + C(t, 1)),
                        X(t, 2) + B(t, 2), before);
    if (!strcmp(cell, "ncarnn-free"))
        return additive(test_sigmoid(XHB(t, 0)), test_sigmoid(XHB(t, 1)), X(t, 2) + B(t, 2),
                        before);
    if (!strcmp(cell, "icarnn"))
        return additive(test_sigmoid(X(t, 0) + B(t, 0) + C(t, 0)),
                        test_sigmoid(X(t, 1) + B(t, 1) + C(t, 1)), X(t, 2) + B(t, 2), before);
    if (!strcmp(cell, "scarnn"))
        return additive(test_sigmoid(X(t, 0) + B(t, 0) + C(t, 0)),
                        test_sigmoid(X(t, 1) + B(t, 1) + C(t, 1)), t->x[t->i], before);
    if (!strcmp(cell, "carnn-low"))
        return additive(test_sigmoid(X(t, 0) + B(t, 0) + C(t, 0)), 1.0, t->x[t->i], before);
    return NAN;
}

static void doubles(double *to, const float *from, size_t count) {
    size_t i;
    for (i = 0; i < count; i++) to[i] = (double)from[i];
}

/* The states of the sequence of rank b, each row at the place where it is packed; returns its part
   of the loss. */
static double equations(const subject *s, size_t b, double *states) {
    const char *cell = carnn__cells[s->cell.kind].name;
    double x[MOST], c[MOST], h[MOST], state[MOST], loss = 0.0;
    terms t;
    size_t step, i;
    doubles(c, s->c + b * s->d, s->d);
    doubles(h, s->h0 + b * s->h, s->h);
    doubles(state, s->c0 + b * s->h, s->h);
    t.s = s;
    t.x = x;
    t.c = c;
    t.h = h;
    for (step = 0; step < s->seq.steps && b < s->seq.start[step + 1] - s->seq.start[step]; step++) {
        size_t row = s->seq.start[step] + b;
        double next[MOST];
        doubles(x, s->x + (s->index ? s->index[row] : row) * s->e, s->e);
        for (t.i = 0; t.i < s->h; t.i++) next[t.i] = unit(cell, &t, &state[t.i]);
        for (i = 0; i < s->h; i++) {
            h[i] = next[i];
            loss += h[i] * (double)s->out[row * s->h + i];
            if (states) states[row * s->h + i] = h[i];
        }
    }
    return loss;
}

static double equations_loss(const subject *s) {
    double sum = 0.0;
    size_t b;
    for (b = 0; b < s->sequences; b++) sum += equations(s, b, NULL);
    return sum;
}

/* --- our code against the equations ----------------------------------------------------------- */

/* The largest error of the states, relative to the largest of them where that is above 1. */
static double state_error(const subject *s) {
    double *states = (double *)calloc(s->rows * s->h + 1, sizeof *states), worst = 0.0, size = 1.0;
    size_t b, i;
    if (!states) abort();
    for (b = 0; b < s->sequences; b++) equations(s, b, states);
    for (i = 0; i < s->rows * s->h; i++) {
        worst = test_worse(worst, fabs((double)s->run.scan.out[i] - states[i]));
        size = fmax(size, fabs(states[i]));
    }
    worst /= size;
    free(states);
    return worst;
}

/* The largest error of a gradient, relative to its largest value, in a few places: against central
   differences of the equations, whose own error is below 1e-5 (floats are moved in doubles' steps
   that floats can take). */
static double gradient_error(const subject *s, float *x, const float *gradient, size_t count) {
    double worst = 0.0, size = 1e-3;
    size_t i, samples = carnn__min(count, 7);
    for (i = 0; i < count; i++) size = fmax(size, fabs((double)gradient[i]));
    for (i = 0; i < samples; i++) {
        size_t place = samples < count ? (size_t)(carnn__random(77, i) % count) : i;
        float before = x[place], up = before + 0x1p-10f, down = before - 0x1p-10f;
        double slope;
        x[place] = up;
        slope = equations_loss(s);
        x[place] = down;
        slope = (slope - equations_loss(s)) / ((double)up - (double)down);
        x[place] = before;
        worst = test_worse(worst, fabs(slope - (double)gradient[place]) / size);
    }
    return worst;
}

static double all_gradients_error(subject *s) {
    double worst = gradient_error(s, s->x, s->dx, s->inputs * s->e);
    size_t i, states = s->sequences * s->h;
    for (i = 0; i < s->store.count; i++) {
        const carnn__param *p = &s->store.item[i];
        worst = test_worse(worst, gradient_error(s, s->w + p->offset, s->g + p->offset,
                                                 p->rows * p->columns));
    }
    if (s->cell.d) worst = test_worse(worst, gradient_error(s, s->c, s->dc, s->sequences * s->d));
    worst = test_worse(worst, gradient_error(s, s->h0, s->run.scan.dh, states));
    if (carnn__cells[s->cell.kind].flags & CARNN__HAS_CELL_STATE)
        worst = test_worse(worst, gradient_error(s, s->c0, s->run.scan.dc, states));
    return worst;
}

static void test_equations(carnn__engine *e) {
    static const uint32_t length[] = {2, 5, 0, 3, 5, 1};
    static const size_t hidden[] = {1, 7, 16, 33}, shared[] = {0, 3, 0, 5};
    size_t kind, i;
    for (kind = 0; kind < CARNN__CELL_COUNT; kind++)
        for (i = 0; i < 4; i++) {
            subject s;
            subject_open(&s, kind, hidden[i] / 2 + 3, hidden[i], 4, length, 6, shared[i]);
            subject_run(&s, e);
            if (test_fails(state_error(&s) < 3e-6 && all_gradients_error(&s) < 2e-5,
                           "cell against its equations", __FILE__, __LINE__))
                printf(": %s with %zu units: states are off by %g, gradients by %g\n",
                       carnn__cells[kind].name, hidden[i], state_error(&s),
                       all_gradients_error(&s));
            subject_close(&s);
        }
}

/* The bias of the recurrent products in a cell with two of them, of which the table has none: the
   second product has its own part of it. A GRU that adds its bias there again is one with twice the
   bias, whose gradient is half of what the two places bring. */
static void test_bias_of_two_products(carnn__engine *e) {
    static const uint32_t length[] = {4, 2, 5};
    carnn__cell_kind kind = carnn__cells[CARNN__CELL_gru];
    subject s;
    float *b, *db;
    size_t i;
    kind.recurrent_bias = 1;
    subject_open(&s, CARNN__CELL_gru, 9, 19, 4, length, 3, 0);
    s.kind = &kind;
    s.cell.recurrent_bias = s.cell.bias;
    subject_run(&s, e);
    b = carnn__param_in(&s.store, s.w, s.cell.bias);
    db = carnn__param_in(&s.store, s.g, s.cell.bias);
    for (i = 0; i < kind.gates * s.h; i++) {
        b[i] *= 2.0f;
        db[i] /= 2.0f;
    }
    CHECK(state_error(&s) < 3e-6);
    CHECK(all_gradients_error(&s) < 2e-5);
    subject_close(&s);
}

/* Inputs that are data: without dx every other gradient stays the same. */
static void test_without_dx(carnn__engine *e) {
    static const uint32_t length[] = {4, 2, 5};
    size_t kind, i;
    for (kind = 0; kind < CARNN__CELL_COUNT; kind++)
        for (i = 0; i < 2; i++) {
            subject s;
            size_t bytes;
            float *g, *dc, *dh;
            subject_open(&s, kind, 9, 19, 4, length, 3, i ? 3 : 0);
            subject_run(&s, e);
            bytes = s.store.size * sizeof(float);
            g = test_floats(s.store.size);
            dc = test_floats(3 * s.d);
            dh = test_floats(3 * s.h);
            memcpy(g, s.g, bytes);
            memcpy(dc, s.dc, 3 * s.d * sizeof(float));
            memcpy(dh, s.run.scan.dh, 3 * s.h * sizeof(float));
            s.no_dx = 1;
            subject_run(&s, e);
            CHECK(!memcmp(g, s.g, bytes));
            CHECK(!memcmp(dc, s.dc, 3 * s.d * sizeof(float)));
            CHECK(!memcmp(dh, s.run.scan.dh, 3 * s.h * sizeof(float)));
            for (bytes = 0; bytes < s.inputs * s.e && s.dx[bytes] == 0.0f; bytes++) continue;
            CHECK_INT(bytes, s.inputs * s.e);
            test_drop(g);
            test_drop(dc);
            test_drop(dh);
            subject_close(&s);
        }
}

/* All that reaches a state is what its own loss gives it, and the gradient of the initial state of
   the steps behind it. No other number changes. */
static void test_gathered(carnn__engine *e) {
    enum { T = 6, B = 2, H = 19 };
    static const uint32_t length[] = {T, T};
    size_t kind, t, i, n;
    for (kind = 0; kind < CARNN__CELL_COUNT; kind++) {
        const size_t tape = carnn__cells[kind].tape;
        subject s, plain;
        subject_open(&plain, kind, 9, H, 4, length, B, 0);
        subject_run(&plain, e);
        subject_open(&s, kind, 9, H, 4, length, B, 0);
        s.gathers = 1;
        subject_run(&s, e);
        CHECK(!memcmp(s.g, plain.g, s.store.size * sizeof(float)));
        CHECK(!memcmp(s.dx, plain.dx, s.inputs * s.e * sizeof(float)));
        for (t = 0; t < T; t++) {
            uint32_t behind[] = {(uint32_t)(T - 1 - t), (uint32_t)(T - 1 - t)};
            subject tail;
            double worst = 0.0;
            n = (t + 1) * B;
            subject_open(&tail, kind, 9, H, 4, behind, B, 0);
            memcpy(tail.x, s.x + n * s.e, tail.rows * s.e * sizeof(float));
            memcpy(tail.out, plain.out + n * H, tail.rows * H * sizeof(float));
            memcpy(tail.h0, s.run.scan.out + (n - B) * H, B * H * sizeof(float));
            for (i = 0; tape && i < B; i++)
                memcpy(tail.c0 + i * H, s.run.scan.tape + ((n - B + i + 1) * tape - 1) * H,
                       H * sizeof(float));
            subject_run(&tail, e);
            for (i = 0; i < B * H; i++)
                worst = fmax(worst, fabs((double)(s.out[(n - B) * H + i] - tail.run.scan.dh[i] -
                                                  plain.out[(n - B) * H + i])));
            CHECK(worst < 1e-5);
            subject_close(&tail);
        }
        subject_close(&s);
        subject_close(&plain);
    }
}

/* --- golden values ----------------------------------------------------------------------------
   From another program, in doubles: element k of tensor number i is sin(0.7 k + 1.3 i + 0.1) / 2.
   W of gate q is tensor 20 + 3 q, U 21 + 3 q, b 22 + 3 q, but of the CARNNs. */

typedef struct golden {
    const char *cell;
    int input[4], bias[4], context[2], recurrent[4]; /* tensor numbers of the gates in our order */
    double h3[3];
    int with_dx;
    double dx[2]; /* at (step 1, 0) and (step 3, 1) of the loss sum(h_3) */
    float vectors[3]; /* what alpha, beta1, beta2 of all gates are */
} golden;

static const golden goldens[] = {
    {"ncarnn", {3, 6, 8}, {4, 7, 9}, {2, 5}, {10, 11},
     {-0.053572572, -0.046591830, 0.082822546}, 1, {0.0008980, -0.0678853}, {0}},
    {"icarnn", {3, 6, 8}, {4, 7, 9}, {2, 5}, {0},
     {-0.053136629, -0.052924618, 0.081268530}, 1, {-0.0028645, -0.0716028}, {0}},
    {"scarnn", {3, 6}, {4, 7}, {2, 5}, {0},
     {-0.071535359, -0.054293318, -0.036088048}, 1, {0.0541816, 0.2133017}, {0}},
    {"carnn-low", {3}, {4}, {2}, {0}, {-0.171249093, -0.053668735, -0.123331447}, 0, {0, 0}, {0}},
    {"ncarnn-free", {3, 6, 8}, {4, 7, 9}, {0}, {10, 11},
     {-0.050561811, -0.062285108, 0.089281086}, 0, {0, 0}, {0}},
    {"lstm", {20, 23, 26, 29}, {22, 25, 28, 31}, {0}, {21, 24, 27, 30},
     {0.052205996, -0.050107814, -0.079649691}, 0, {0, 0}, {0}},
    {"rnn", {20}, {22}, {0}, {21}, {-0.459929157, -0.012566250, -0.562206006}, 0, {0, 0}, {0}},
    {"gru", {20, 23, 26}, {22, 25, 28}, {0}, {21, 24, 27},
     {-0.306942627, 0.017855114, -0.117283926}, 0, {0, 0}, {0}},
    {"gru-after", {20, 23, 26}, {22, 25, 28}, {0}, {21, 24, 27},
     {-0.299095383, 0.006340663, -0.121578815}, 0, {0, 0}, {0}},
    {"ran", {20, 23, 26}, {22, 25}, {0}, {21, 24},
     {0.017343739, 0.146286211, -0.133668798}, 0, {0, 0}, {0}},
    {"ran-tanh", {20, 23, 26}, {22, 25}, {0}, {21, 24},
     {0.017363584, 0.145199583, -0.132899989}, 0, {0, 0}, {0}},
    {"mi-rnn", {20}, {22}, {0}, {21}, /* as mi-rnn-simple */
     {-0.193682979, -0.341532207, -0.520981364}, 0, {0, 0}, {1.0f, 0.0f, 0.0f}},
    {"mi-rnn-simple", {20}, {22}, {0}, {21},
     {-0.193682979, -0.341532207, -0.520981364}, 0, {0, 0}, {0}},
    {"mi-rnn", {20}, {22}, {0}, {21},
     {-0.476527211, -0.074921305, -0.604370556}, 0, {0, 0}, {2.0f, 0.5f, 0.5f}},
    {"mi-rnn", {20}, {22}, {0}, {21}, /* as rnn */
     {-0.459929157, -0.012566250, -0.562206006}, 0, {0, 0}, {0.0f, 1.0f, 1.0f}},
    {"mi-lstm", {20, 23, 26, 29}, {22, 25, 28, 31}, {0}, {21, 24, 27, 30},
     {0.056640859, -0.045919528, -0.117188051}, 0, {0, 0}, {1.0f, 0.5f, 0.5f}},
    {"mi-lstm", {20, 23, 26, 29}, {22, 25, 28, 31}, {0}, {21, 24, 27, 30}, /* as lstm */
     {0.052205996, -0.050107814, -0.079649691}, 0, {0, 0}, {0.0f, 1.0f, 1.0f}},
    {"mi-gru", {20, 23, 26}, {22, 25, 28}, {0}, {21, 24, 27},
     {-0.307362991, 0.032884429, -0.095696631}, 0, {0, 0}, {1.0f, 1.0f, 1.0f}},
    {"mi-gru", {20, 23, 26}, {22, 25, 28}, {0}, {21, 24, 27}, /* as gru */
     {-0.306942627, 0.017855114, -0.117283926}, 0, {0, 0}, {0.0f, 1.0f, 1.0f}},
};

static void fill_golden(float *to, int number, size_t count) {
    size_t k;
    for (k = 0; k < count; k++)
        to[k] = (float)(0.5 * sin(0.7 * (double)k + 1.3 * number + 0.1));
}

/* The gates of one stacked matrix. */
static void fill_gates(float *to, const int *numbers, size_t gates, size_t size) {
    size_t g;
    for (g = 0; g < gates; g++) fill_golden(to + g * size, numbers[g], size);
}

static void check_golden(carnn__engine *e, const golden *want) {
    static const uint32_t length[] = {3};
    size_t kind = carnn__cell_number(want->cell), i, j;
    const carnn__cell_kind *k = &carnn__cells[kind];
    subject s;
    subject_open(&s, kind, 3, 3, 2, length, 1, 0);
    memset(s.w, 0, s.store.size * sizeof(float));
    fill_gates(s.w + s.store.item[s.cell.input].offset, want->input, k->gates, 9);
    fill_gates(s.w + s.store.item[s.cell.bias].offset, want->bias, k->bias_gates, 3);
    if (k->context_gates)
        fill_gates(s.w + s.store.item[s.cell.context].offset, want->context, k->context_gates, 6);
    if (k->recurrent_gates)
        fill_gates(s.w + s.store.item[s.cell.recurrent].offset, want->recurrent,
                   k->recurrent_gates, 9);
    for (i = 0; i + 1 < k->vectors; i++)
        for (j = 0; j < 3 * k->gates; j++)
            carnn__param_in(&s.store, s.w, s.cell.alpha + i)[j] = want->vectors[i];
    fill_golden(s.x, 0, 9);
    fill_golden(s.c, 1, 2);
    memset(s.h0, 0, 3 * sizeof(float));
    memset(s.c0, 0, 3 * sizeof(float));
    for (j = 0; j < 9; j++) s.out[j] = j < 6 ? 0.0f : 1.0f;
    subject_run(&s, e);
    for (j = 0; j < 3; j++) CHECK_NEAR(s.run.scan.out[6 + j], want->h3[j], 2e-7);
    if (want->with_dx) {
        CHECK_NEAR(s.dx[0], want->dx[0], 2e-7);
        CHECK_NEAR(s.dx[7], want->dx[1], 2e-7);
    }
    subject_close(&s);
}

static void test_golden(carnn__engine *e) {
    size_t kind, i, found, all = 0;
    for (kind = 0; kind < CARNN__CELL_COUNT; kind++) {
        for (i = found = 0; i < sizeof goldens / sizeof *goldens; i++)
            if (!strcmp(goldens[i].cell, carnn__cells[kind].name)) {
                check_golden(e, &goldens[i]);
                found++;
            }
        if (!found) printf("no golden values here for the cell %s\n", carnn__cells[kind].name);
        all += found;
    }
    CHECK_INT(all, sizeof goldens / sizeof *goldens);
}

/* The vectors start where the paper starts them: text8 with MI-RNN and MI-LSTM, skip-thoughts. */
static void test_initial_vectors(void) {
    static const struct {
        const char *cell;
        float alpha, beta;
    } want[] = {{"mi-rnn", 2.0f, 0.5f}, {"mi-lstm", 1.0f, 0.5f}, {"mi-gru", 1.0f, 1.0f}};
    static const uint32_t length[] = {1};
    size_t i, n, j;
    for (i = 0; i < sizeof want / sizeof *want; i++) {
        subject s;
        subject_open(&s, carnn__cell_number(want[i].cell), 3, 5, 0, length, 1, 0);
        carnn__store_init(&s.store, 1);
        for (j = 0; j < 5 * carnn__cells[s.cell.kind].gates; j++) {
            for (n = 0; n < 3; n++)
                CHECK_NEAR(carnn__param_in(&s.store, s.w, s.cell.alpha + n)[j],
                           n ? want[i].beta : want[i].alpha, 0.0);
            CHECK_NEAR(carnn__param_in(&s.store, s.w, s.cell.bias)[j], 0.0, 0.0);
        }
        subject_close(&s);
    }
}

/* Units that begin to remember 1, 3, .., 11 steps keep 1/2, 3/4, .., 11/12 of a state in a step,
   where nothing but the biases is not 0. */
static void test_remembered(carnn__engine *e) {
    static const double kept[] = {1 / 2.0, 3 / 4.0, 5 / 6.0, 7 / 8.0, 9 / 10.0, 11 / 12.0};
    static const uint32_t length[] = {1};
    size_t kind, i, cells = 0;
    for (kind = 0; kind < CARNN__CELL_COUNT; kind++) {
        const carnn__cell_kind *k = &carnn__cells[kind];
        const float *before, *after;
        subject s;
        if (!carnn__cell_keeps(kind)) continue;
        subject_open(&s, kind, 6, 6, 3, length, 1, 0);
        carnn__cell_remember(&s.cell, &s.store, 11.0f);
        carnn__store_init(&s.store, 1);
        for (i = 0; i < s.store.count; i++)
            if (i != s.cell.bias)
                memset(carnn__param_in(&s.store, s.w, i), 0,
                       s.store.item[i].rows * s.store.item[i].columns * sizeof(float));
        memset(s.x, 0, s.e * sizeof(float));
        subject_run(&s, e);
        before = k->flags & CARNN__HAS_CELL_STATE ? s.c0 : s.h0;
        after = k->flags & CARNN__HAS_CELL_STATE ? s.run.scan.tape + (k->tape - 1) * s.h
                                                 : s.run.scan.out;
        for (i = 0; i < s.h; i++) CHECK_NEAR(after[i], kept[i] * before[i], 1e-6);
        for (i = 0; k->flags & CARNN__FORGET_GATE && i < s.h; i++) /* i + f = 1 */
            CHECK_NEAR(carnn__param_in(&s.store, s.w, s.cell.bias)[i],
                       -carnn__param_in(&s.store, s.w, s.cell.bias)[s.h + i], 0.0);
        cells++;
        subject_close(&s);
    }
    CHECK_INT(cells, 13); /* all but the RNNs */
}

/* The time constant of a single unit is 1, and only the biases of gates that keep or let in begin
   otherwise than without it. */
static void test_remembered_elsewhere(void) {
    static const uint32_t length[] = {1};
    size_t kind, h, i, number;
    for (kind = 0; kind < CARNN__CELL_COUNT; kind++)
        for (h = 1; h <= 3; h += 2) {
            size_t changed = carnn__cells[kind].flags & CARNN__FORGET_GATE ? 2 * h : h;
            subject plain, s;
            if (!carnn__cell_keeps(kind)) continue;
            subject_open(&plain, kind, h, h, 2, length, 1, 0);
            subject_open(&s, kind, h, h, 2, length, 1, 0);
            carnn__cell_remember(&s.cell, &s.store, 9.0f);
            plain.store.value = plain.w;
            carnn__store_init(&plain.store, 1);
            carnn__store_init(&s.store, 1);
            for (number = 0; number < s.store.count; number++) {
                const float *was = carnn__param_in(&s.store, plain.w, number);
                const float *is = carnn__param_in(&s.store, s.w, number);
                size_t count = s.store.item[number].rows * s.store.item[number].columns;
                for (i = 0; i < count; i++)
                    if (number != s.cell.bias || i >= changed) CHECK(is[i] == was[i]);
                    else if (h == 1) CHECK_NEAR(is[i], 0.0, 0.0);
            }
            subject_close(&plain);
            subject_close(&s);
        }
}

/* Skip connections of 2 steps (Zhang 2019, section 4.4.4) on the same RNN: U_2 = 60. */
static void test_golden_skip(carnn__engine *e) {
    static const uint32_t length[] = {3};
    static const double h3[3] = {-0.182637985, 0.155954648, -0.807573940};
    const golden *want = goldens;
    size_t j;
    subject s;
    while (strcmp(want->cell, "rnn")) want++;
    subject_open(&s, CARNN__CELL_rnn, 3, 3, 0, length, 1, 0);
    carnn__cell_declare_skip(&s.cell, &s.store, "", 2);
    test_drop(s.w);
    test_drop(s.g);
    s.w = s.store.value = test_floats(s.store.size);
    s.g = test_floats(s.store.size);
    fill_golden(carnn__param_in(&s.store, s.w, s.cell.input), want->input[0], 9);
    fill_golden(carnn__param_in(&s.store, s.w, s.cell.bias), want->bias[0], 3);
    fill_golden(carnn__param_in(&s.store, s.w, s.cell.recurrent), want->recurrent[0], 9);
    fill_golden(carnn__param_in(&s.store, s.w, s.cell.skip_weight), 60, 9);
    fill_golden(s.x, 0, 9);
    memset(s.h0, 0, 3 * sizeof(float));
    subject_run(&s, e);
    for (j = 0; j < 3; j++) CHECK_NEAR(s.run.scan.out[6 + j], h3[j], 2e-7);
    subject_close(&s);
}

/* The form with two biases, tanh((W x + beta1) * (U h' + beta2) + b') (Zhang 2019, Eq. 6.3), is
   mi-rnn with alpha = 1 and b = b' + beta1 * beta2. */
static void test_two_biases(carnn__engine *e) {
    enum { T = 5, N = 19 };
    static const uint32_t length[] = {T};
    double x[MOST], h[MOST], next[MOST], worst = 0.0;
    float *beta1, *beta2, *alpha, *b, b_[N];
    size_t t, i;
    subject s;
    terms of = {&s, x, NULL, h, 0};
    subject_open(&s, CARNN__CELL_mi_rnn, 7, N, 0, length, 1, 0);
    alpha = carnn__param_in(&s.store, s.w, s.cell.alpha);
    beta1 = carnn__param_in(&s.store, s.w, s.cell.alpha + 1);
    beta2 = carnn__param_in(&s.store, s.w, s.cell.alpha + 2);
    b = carnn__param_in(&s.store, s.w, s.cell.bias);
    for (i = 0; i < N; i++) {
        alpha[i] = 1.0f;
        b_[i] = b[i];
        b[i] += beta1[i] * beta2[i];
    }
    subject_run(&s, e);
    doubles(h, s.h0, N);
    for (t = 0; t < T; t++) {
        doubles(x, s.x + t * s.e, s.e);
        for (of.i = 0; of.i < N; of.i++)
            next[of.i] = tanh((X(&of, 0) + (double)beta1[of.i]) *
                              (H(&of, 0) + (double)beta2[of.i]) + (double)b_[of.i]);
        for (i = 0; i < N; i++) {
            h[i] = next[i];
            worst = test_worse(worst, fabs(h[i] - (double)s.run.scan.out[t * N + i]));
        }
    }
    CHECK_NEAR(worst, 0.0, 3e-6);
    subject_close(&s);
}

/* CA-RNN on the same LSTM: H_X = 50 (4), W_H = 51, W_h = 52, b = 53, h^x = 54 (a row a step); steps
   1 and 3 are aligned. */
static void test_golden_gate(carnn__engine *e) {
    static const uint32_t length[] = {3};
    static const double h3[3] = {-0.161161232, -0.086081295, 0.147593048};
    const golden *want = goldens;
    size_t step[] = {0, 1, 1, 2}, i, j;
    uint32_t row[] = {0, 2}, pair[] = {0, 0};
    float H[4], W_H[12], W_h[9], a[3], x[9], k[6], g[6];
    carnn__state_gate gate;
    subject s;
    while (strcmp(want->cell, "lstm")) want++;
    subject_open(&s, CARNN__CELL_lstm, 3, 3, 0, length, 1, 0);
    fill_gates(s.w + s.store.item[s.cell.input].offset, want->input, 4, 9);
    fill_gates(s.w + s.store.item[s.cell.bias].offset, want->bias, 4, 3);
    fill_gates(s.w + s.store.item[s.cell.recurrent].offset, want->recurrent, 4, 9);
    fill_golden(s.x, 0, 9);
    fill_golden(H, 50, 4);
    fill_golden(W_H, 51, 12);
    fill_golden(W_h, 52, 9);
    fill_golden(a, 53, 3);
    fill_golden(x, 54, 9);
    for (i = 0; i < 3; i++)
        for (j = 0; j < 4; j++) a[i] += W_H[i * 4 + j] * H[j];
    memset(s.h0, 0, 3 * sizeof(float));
    memset(s.c0, 0, 3 * sizeof(float));
    subject_run(&s, e);
    memset(&gate, 0, sizeof gate);
    gate.count = 2;
    gate.step = step;
    gate.row = gate.other = row;
    gate.pair = pair;
    gate.a = a;
    gate.w = carnn__floats_of(W_h, 3);
    gate.x = x;
    gate.stride = 3;
    gate.k = k;
    gate.g = g;
    s.run.gate = &gate;
    carnn__cell_forward(&s.run, e, &s.seq, s.index, s.h0, s.c0);
    for (j = 0; j < 3; j++) CHECK_NEAR(s.run.scan.out[6 + j], h3[j], 2e-7);
    subject_close(&s);
}

/* An LSTM with skip connections has about as many weights as a larger one without, in the adding
   problem of Zhang 2019, section 4.4.4: two inputs, 90 and 128 units. */
static void test_skip_parameters(void) {
    static const struct {
        size_t h, k, count;
    } want[] = {{128, 0, 67072}, {90, 30, 65880}};
    size_t i, j;
    for (i = 0; i < 2; i++) {
        carnn__store store;
        carnn__param param[CARNN__CELL_PARAMS];
        carnn__cell cell;
        size_t count = 0;
        carnn__store_open(&store, param, CARNN__CELL_PARAMS);
        carnn__cell_declare(&cell, &store, "", CARNN__CELL_lstm, 2, want[i].h, 0);
        carnn__cell_declare_skip(&cell, &store, "", want[i].k);
        for (j = 0; j < store.count; j++) count += store.item[j].rows * store.item[j].columns;
        CHECK_INT(count, want[i].count);
    }
}

static void test_parameter_counts(void) {
    static const struct {
        const char *cell;
        size_t count;
    } want[] = {{"ncarnn", 7343104},      {"icarnn", 5245952},    {"scarnn", 4196352},
                {"carnn-low", 2098176},   {"carnn-high", 11538432}, {"ncarnn-free", 5245952},
                {"lstm", 8392704},        {"gru", 6294528},       {"gru-after", 6297600},
                {"ran", 5244928},         {"ran-tanh", 5244928},  {"rnn", 2098176},
                {"mi-rnn", 2101248},      {"mi-lstm", 8404992},   {"mi-gru", 6303744},
                {"mi-rnn-simple", 2098176}};
    size_t i, j;
    for (i = 0; i < sizeof want / sizeof *want; i++) {
        carnn__store store;
        carnn__param param[CARNN__CELL_PARAMS];
        carnn__cell cell;
        size_t count = 0;
        CHECK(carnn__cell_number(want[i].cell) < CARNN__CELL_COUNT);
        carnn__store_open(&store, param, CARNN__CELL_PARAMS);
        carnn__cell_declare(&cell, &store, "", carnn__cell_number(want[i].cell), 1024, 1024, 1024);
        for (j = 0; j < store.count; j++) count += store.item[j].rows * store.item[j].columns;
        CHECK_INT(count, want[i].count);
    }
}

/* --- identities ------------------------------------------------------------------------------- */

/* A state of an additive cell is a weighted sum of what it has read: with the steps h = A h' + w k,
   h_T = sum_i (prod_{j > i} A_j) w_i k_i + (prod A) h_0 (Tran et al. 2018, Eq. 4 for nCARNN and
   iCARNN, Eq. 7 for sCARNN; RAN likewise). The bias that is in k is that of its gate. */
static void test_weighted_sums(carnn__engine *e) {
    static const char *const cells[] = {"ncarnn", "icarnn", "scarnn", "carnn-low", "ncarnn-free",
                                        "ran"};
    static const uint32_t length[] = {6, 4};
    size_t n, b, i, t, kind, additive = 0;
    for (kind = 0; kind < CARNN__CELL_COUNT; kind++) {
        const carnn__cell_kind *k = &carnn__cells[kind];
        double worst = 0.0, A, w, z, bias;
        subject s;
        subject_open(&s, kind, 5, 18, 3, length, 2, 0);
        subject_run(&s, e);
        for (n = 0; n < sizeof cells / sizeof *cells && strcmp(cells[n], k->name); n++) continue;
        if (kind <= CARNN__CELL_mi_rnn_simple) /* the last of the header's own */
            CHECK_INT(carnn__cell_additive_step(&s.run, 0, 0, 0, 0, &w, &A, &z, &bias),
                      n < sizeof cells / sizeof *cells);
        for (b = 0; b < 2 && k->flags & CARNN__ADDITIVE; b++)
            for (i = 0; i < s.h; i++) {
                double sum = 0.0, after = 1.0;
                for (t = length[b]; t-- > 0;) {
                    size_t row = s.seq.start[t] + b;
                    additive += (size_t)carnn__cell_additive_step(&s.run, b, row, row, i, &w, &A,
                                                                  &z, &bias);
                    sum += after * w * z;
                    after *= A;
                    CHECK_NEAR(bias,
                               k->bias_gates < 3
                                   ? 0.0
                                   : (double)s.w[s.store.item[s.cell.bias].offset + 2 * s.h + i],
                               0.0);
                }
                sum += after * (double)s.h0[b * s.h + i];
                t = (s.seq.start[length[b] - 1] + b) * s.h + i;
                worst = test_worse(worst, fabs(sum - (double)s.run.scan.out[t]));
            }
        CHECK_NEAR(worst, 0.0, 1e-6);
        subject_close(&s);
    }
    CHECK(additive >= 6 * 10 * 18);
}

/* With both gates at 1 nothing of the past is left and nothing of the candidate is lost. */
static void test_open_gates(carnn__engine *e) {
    static const uint32_t length[] = {4};
    subject s;
    size_t i;
    subject_open(&s, CARNN__CELL_icarnn, 5, 17, 3, length, 1, 0);
    for (i = 0; i < 2 * s.h; i++) s.w[s.store.item[s.cell.bias].offset + i] = 1000.0f;
    subject_run(&s, e);
    for (i = 0; i < s.h; i++)
        CHECK(s.run.scan.out[3 * s.h + i] == s.run.scan.px[(3 * 3 + 2) * s.h + i]);
    subject_close(&s);
}

static void test_without_context(carnn__engine *e) {
    static const uint32_t length[] = {4, 2};
    subject with, without;
    size_t i;
    subject_open(&with, CARNN__CELL_ncarnn, 5, 17, 3, length, 2, 0);
    subject_open(&without, CARNN__CELL_ncarnn_free, 5, 17, 3, length, 2, 0);
    for (i = 0; i < 2 * 17 * 3; i++) with.w[with.store.item[with.cell.context].offset + i] = 0.0f;
    memcpy(without.w + without.store.item[without.cell.recurrent].offset,
           with.w + with.store.item[with.cell.recurrent].offset, 2 * 17 * 17 * sizeof(float));
    subject_run(&with, e);
    subject_run(&without, e);
    CHECK(!memcmp(with.run.scan.out, without.run.scan.out, with.rows * 17 * sizeof(float)));
    subject_close(&with);
    subject_close(&without);
}

/* Update gates near 1: a product of the decays underflows after some 20 steps, and whoever divides
   by it has lost. */
static void test_long_sequences(carnn__engine *e) {
    static const uint32_t length[] = {500, 201};
    static const float bias[] = {-3.0f, 0.0f, 5.0f};
    size_t kind, n, i;
    for (kind = 0; kind < CARNN__CELL_COUNT; kind++)
        for (n = 0; n < 3; n++) {
            subject s;
            subject_open(&s, kind, 3, 5, 3, length, 2, 0);
            for (i = 0; i < s.h; i++) s.w[s.store.item[s.cell.bias].offset + i] = bias[n];
            subject_run(&s, e);
            CHECK_NEAR(state_error(&s), 0.0, 2e-5);
            for (i = 0; i < s.inputs * s.e && s.dx[i] - s.dx[i] == 0.0f; i++) continue;
            CHECK_INT(i, s.inputs * s.e);
            subject_close(&s);
        }
}

static size_t subnormal(const float *x, size_t count) {
    size_t i, found = 0;
    for (i = 0; i < count; i++) found += fpclassify(x[i]) == FP_SUBNORMAL;
    return found;
}

/* A gradient that vanishes on its way back from the last step, through small weights or through
   gates that are shut, leaves no denormal numbers. */
static void test_vanishing(carnn__engine *e) {
    static const uint32_t length[] = {600};
    static const float scale[] = {0.3f, 30.0f};
    size_t kind, n, i;
    for (kind = 0; kind < CARNN__CELL_COUNT; kind++)
        for (n = 0; n < 2; n++) {
            const carnn__cell_kind *k = &carnn__cells[kind];
            subject s;
            subject_open(&s, kind, 3, 5, 3, length, 1, 0);
            for (i = 0; i < s.store.size; i++) s.w[i] *= scale[n];
            memset(s.out, 0, (s.rows - 1) * s.h * sizeof(float));
            subject_run(&s, e);
            CHECK_INT(subnormal(s.run.scan.dpx, s.rows * k->gates * s.h), 0);
            CHECK_INT(subnormal(s.run.scan.dph, s.rows * k->recurrent_gates * s.h), 0);
            CHECK(n || s.run.scan.dpx[0] == 0.0f);
            CHECK(n || s.run.scan.dpx[(s.rows - 1) * k->gates * s.h] != 0.0f);
            subject_close(&s);
        }
}

/* --- the same bits ---------------------------------------------------------------------------- */

static uint64_t digest_floats(uint64_t sum, const float *x, size_t count) {
    size_t i;
    for (i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        sum = carnn__mix(sum ^ bits);
    }
    return sum;
}

static uint64_t subject_digest(const subject *s) {
    uint64_t sum = digest_floats(1, s->run.scan.out, s->rows * s->h);
    sum = digest_floats(sum, s->g, s->store.size);
    sum = digest_floats(sum, s->dx, s->inputs * s->e);
    sum = digest_floats(sum, s->dc, s->sequences * s->d);
    sum = digest_floats(sum, s->out, s->rows * s->h);
    return digest_floats(sum, s->run.scan.dh, s->sequences * s->h);
}

static void same_cell_bits(size_t kind, size_t h, const uint32_t *length, size_t sequences,
                           size_t shared) {
    uint64_t first = 0;
    subject s;
    size_t path, threads;
    const char *name;
    subject_open(&s, kind, 67, h, 67, length, sequences, shared);
    s.gathers = !shared;
    for (path = 0; (name = carnn_simd_name(path)) != NULL; path++)
        for (threads = 1; threads <= (path ? 1 : 3); threads++) {
            carnn__engine e;
            CHECK_INT(carnn__engine_open(&e, name, threads, carnn__allocator(NULL), NULL),
                      CARNN_OK);
            test_draw(s.out, s.rows * h, 5, 1.0f);
            subject_run(&s, &e);
            if (!first) first = subject_digest(&s);
            if (test_fails(subject_digest(&s) == first, "same bits", __FILE__, __LINE__))
                printf(": not so for %s, path %s, %zu threads\n", carnn__cells[kind].name, name,
                       threads);
            carnn__engine_close(&e);
        }
    subject_close(&s);
}

/* Large enough for threads, which share the columns of a step where sequences share their inputs,
   else bands of sequences; with tails. */
static void test_same_cell_bits(void) {
    uint32_t few[70], many[70];
    size_t kind, i;
    for (i = 0; i < 70; i++) few[i] = i < 6 ? 3 : 1, many[i] = 1 + (uint32_t)(i * i % 7);
    for (kind = 0; kind < CARNN__CELL_COUNT; kind++) {
        same_cell_bits(kind, TEST_SANITIZED && kind ? 33 : 241, few, 70, 40);
        if (!TEST_SANITIZED || carnn__cells[kind].flags & CARNN__TWO_STAGES)
            same_cell_bits(kind, 97, many, 70, 0);
    }
}

/* Every sequence is in one band, and none but a single long sequence has more than twice its share
   of the work. */
static void test_bands(void) {
    static const uint32_t length[] = {40, 30, 9, 9, 8, 8, 7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1};
    size_t count, number, i;
    carnn__packed seq;
    test_pack(&seq, length, 20);
    for (count = 1; count <= 20; count++) {
        carnn__scan s = {0};
        size_t end = 0;
        for (number = 0; number < count; number++) {
            size_t rows = 0;
            carnn__band(&seq, count, number, &s);
            CHECK_INT(s.first, end);
            end = s.end;
            for (i = s.first; i < s.end; i++) rows += length[i];
            CHECK(s.end == s.first + 1 ||
                  (rows && rows + 4 * length[s.first] <= 2 * (160 + 4 * 40) / count));
        }
        CHECK_INT(end, 20);
    }
    free(seq.length);
}

/* --- the gradient check itself ---------------------------------------------------------------- */

static int count_rows(const carnn_check *check, void *user) {
    size_t *rows = (size_t *)user;
    if (test_fails(check->passed && check->error <= check->limit && check->numbers > 0,
                   "gradient check", __FILE__, __LINE__))
        printf(": %s %s is off by %g: %s\n", check->group, check->name, check->error, check->worst);
    ++*rows;
    return 0;
}

static int stop_at_once(const carnn_check *check, void *user) {
    (void)check;
    (void)user;
    return 1;
}

static size_t checked_rows(const char *only, uint64_t seed) {
    size_t rows = 0;
    CHECK_INT(carnn_gradcheck(only, seed, count_rows, &rows, NULL), CARNN_OK);
    return rows;
}

static int note_check(const carnn_check *check, void *user) {
    *(carnn_check *)user = *check;
    return 0;
}

static carnn_check check_of(const char *only, uint64_t seed) {
    carnn_check check;
    memset(&check, 0, sizeof check);
    CHECK_INT(carnn_gradcheck(only, seed, note_check, &check, NULL), CARNN_OK);
    return check;
}

static int spoil; /* how spoilt_loss is wrong */

/* The loss of an LSTM with one wrong derivative, with none for an array, or all too large. */
static double spoilt_loss(carnn__subject *s) {
    double loss = carnn__check_cell_loss(s);
    carnn__checked *a = &s->array[0];
    size_t i;
    if (spoil == 1) a->gradient[a->count - 1] *= 1.5f;
    if (spoil == 2) memset(a->gradient, 0, a->count * sizeof(float));
    if (spoil == 3) a->gradient[7] = NAN;
    for (i = 0; spoil == 4 && i < a->count; i++) a->gradient[i] *= 1.02f;
    return loss;
}

/* The arrays of an LSTM, and one without effect. */
static void carve_unused(carnn__subject *s) {
    carnn__check_cell_carve(s);
    carnn__check_array(s, "unused", 1, 3);
}

/* What the check says of an LSTM when it is spoilt in that way; 5: it has an array without
   effect. */
static carnn_check spoilt_check(carnn__engine *e, int how) {
    static carnn__subject s;
    carnn_check check;
    memset(&s, 0, sizeof s);
    memset(&check, 0, sizeof check);
    spoil = how;
    s.engine = e;
    s.number = CARNN__CELL_lstm;
    CHECK_INT(carnn__check_cell_open(&s), CARNN_OK);
    s.loss = spoilt_loss;
    if (how == 5) s.carve = carve_unused;
    s.check = &check;
    CHECK_INT(carnn__check_subject(&s), CARNN_OK);
    carnn__check_close(&s);
    return check;
}

static void test_gradcheck(carnn__engine *e) {
    carnn_error error;
    size_t group, i, all = 0;
    unsigned long row = 0, column = 0;
    CHECK_INT(checked_rows("icarnn", 2), 1);
    if (!TEST_SANITIZED) {
        CHECK_INT(checked_rows("cell", 3), CARNN__CELL_COUNT);
        for (group = 0; group < CARNN__COUNT(carnn__check_groups); group++)
            for (i = 0; carnn__check_groups[group].name(i); i++) all++;
        CHECK_INT(checked_rows(NULL, 1), all);
    }
    CHECK_INT(carnn_gradcheck(NULL, 1, stop_at_once, NULL, &error), CARNN_ERR_STOPPED);
    CHECK_INT(carnn_gradcheck("icarn", 1, stop_at_once, NULL, &error), CARNN_ERR_ARGUMENT);
    CHECK(strstr(error.message, "\"icarn\"") != NULL);
    /* parts have arrays of their own: two of 19 numbers, one of 76 */
    CHECK_INT(check_of("cosine", 1).numbers, 2 * carnn__min(19, CARNN__CHECK_SAMPLES));
    CHECK_INT(check_of("cross entropy", 1).numbers, CARNN__CHECK_SAMPLES);
    CHECK(check_of("cosine", 1).error == check_of("cosine", 1).error);
    CHECK(check_of("cosine", 1).error != check_of("cosine", 2).error);
    CHECK(spoilt_check(e, 0).error <= CARNN__CHECK_LIMIT);
    CHECK(spoilt_check(e, 1).error > 2 * CARNN__CHECK_LIMIT);
    CHECK(spoilt_check(e, 2).error >= 1.0);
    CHECK(!(spoilt_check(e, 3).error <= CARNN__CHECK_LIMIT));
    CHECK(spoilt_check(e, 4).error > 2 * CARNN__CHECK_LIMIT);
    CHECK(spoilt_check(e, 5).error <= CARNN__CHECK_LIMIT);
    CHECK(!strncmp(spoilt_check(e, 2).worst, "input.weight ", 13));
    CHECK(strstr(spoilt_check(e, 2).worst, ": derivative 0, difference ") != NULL);
    CHECK(!strncmp(spoilt_check(e, 3).worst, "input.weight all at once: ", 26));
    if (TEST_SANITIZED) return; /* too few numbers are moved alone */
    CHECK_INT(sscanf(spoilt_check(e, 2).worst, "input.weight (%lu, %lu)", &row, &column), 2);
    CHECK(row < 4 * CARNN__CHECK_H && column < CARNN__CHECK_E);
}

/* --- the linear recurrence by itself, in blocks, against a plain loop in double --------------- */

/* The same fed in two parts, and in place. y, dA, dZ, dfirst: of one call, with gradients G that
   follow from them: dZ_t = G_t + A_{t+1} dZ_{t+1}. */
static void recurrence_in_two(size_t T, size_t C, const float *A, const float *y,
                              const float *first, const float *dA, const float *dZ,
                              const float *dfirst) {
    size_t n = T * C, cut = T / 2, at = cut * C, i, j;
    float *z = (float *)malloc(n * 4), *g = (float *)malloc(n * 4), *d = (float *)malloc(n * 4);
    float between[40], begin[40];
    double worst = 0.0;
    for (i = 0; i < n; i++) {
        z[i] = y[i] - A[i] * (i < C ? first[i] : y[i - C]);
        g[i] = dZ[i] - (i + C < n ? A[i + C] * dZ[i + C] : 0.0f);
    }
    CHECK(!carnn_recurrence(cut, C, A, z, first, z, 1, NULL));
    CHECK(!carnn_recurrence(T - cut, C, A + at, z + at, z + at - C, z + at, 1, NULL));
    for (i = 0; i < n; i++) worst = fmax(worst, fabs((double)z[i] - (double)y[i]));
    CHECK(worst < 1e-5);
    CHECK(!carnn_recurrence_backward(T - cut, C, A + at, y + at, y + at - C, g + at, d + at, g + at,
                                     between, 1, NULL));
    for (j = 0; j < C; j++) g[at - C + j] += between[j];
    CHECK(!carnn_recurrence_backward(cut, C, A, y, first, g, d, g, begin, 1, NULL));
    for (worst = 0.0, i = 0; i < n; i++) {
        worst = fmax(worst, fabs((double)g[i] - (double)dZ[i]));
        worst = fmax(worst, fabs((double)d[i] - (double)dA[i]));
    }
    for (j = 0; j < C; j++) worst = fmax(worst, fabs((double)begin[j] - (double)dfirst[j]));
    CHECK(worst < 2e-5);
    free(z);
    free(g);
    free(d);
}

static void test_recurrence_of(size_t T, size_t C, int with_first) {
    size_t n = T * C, i, t, j;
    float *A = (float *)malloc(n * 4 + 4), *Z = (float *)malloc(n * 4 + 4);
    float *y = (float *)malloc(n * 4 + 4), *again = (float *)malloc(n * 4 + 4);
    float *dA = (float *)malloc(n * 4 + 4), *dZ = (float *)malloc(n * 4 + 4);
    float first[40], dfirst[40];
    double state[40], worst = 0.0;
    for (i = 0; i < n; i++) {
        A[i] = carnn__uniform(T, i);
        Z[i] = carnn__uniform(T + 1, i) - 0.5f;
    }
    for (j = 0; j < C; j++) state[j] = first[j] = with_first ? carnn__uniform(T + 2, j) : 0.0f;
    CHECK(!carnn_recurrence(T, C, A, Z, with_first ? first : NULL, y, 1, NULL));
    for (t = 0; t < T; t++)
        for (j = 0; j < C; j++) {
            state[j] = (double)A[t * C + j] * state[j] + (double)Z[t * C + j];
            worst = fmax(worst, fabs(state[j] - (double)y[t * C + j]));
        }
    CHECK(worst < 1e-5);
    CHECK(!carnn_recurrence(T, C, A, Z, with_first ? first : NULL, again, 3, NULL));
    CHECK(!memcmp(y, again, n * 4));
    CHECK(!carnn_recurrence_backward(T, C, A, y, with_first ? first : NULL, Z, dA, dZ, dfirst, 2,
                                     NULL));
    for (j = 0; j < C; j++) state[j] = 0.0;
    for (worst = 0.0, t = T; t-- > 0;)
        for (j = 0; j < C; j++) {
            double before = t ? (double)y[(t - 1) * C + j] : (double)first[j];
            double next = t + 1 < T ? (double)A[(t + 1) * C + j] : 0.0;
            state[j] = (double)Z[t * C + j] + next * state[j];
            worst = fmax(worst, fabs(state[j] - (double)dZ[t * C + j]));
            worst = fmax(worst, fabs(state[j] * before - (double)dA[t * C + j]));
            if (!t) worst = fmax(worst, fabs(state[j] * (double)A[j] - (double)dfirst[j]));
        }
    CHECK(worst < 2e-5);
    if (T > 2 && with_first) recurrence_in_two(T, C, A, y, first, dA, dZ, dfirst);
    free(A);
    free(Z);
    free(y);
    free(again);
    free(dA);
    free(dZ);
}

/* Factors whose product over a block is no float, while every state is one. */
static void test_recurrence_of_large_factors(float factor, float input, size_t T) {
    float A[200], Z[200], y[200], G[200] = {1.0f}, dA[200];
    double state = 0.0;
    for (size_t t = 0; t < T; t++) {
        A[t] = factor;
        Z[t] = input;
    }
    CHECK(!carnn_recurrence(T, 1, A, Z, NULL, y, 1, NULL));
    for (size_t t = 0; t < T; t++) {
        state = (double)factor * state + (double)input;
        CHECK(fabs((double)y[t] - state) <= 1e-4 * state);
    }
    CHECK(!carnn_recurrence_backward(T, 1, A, y, NULL, G, dA, Z, NULL, 1, NULL));
    for (size_t t = 0; t < T; t++) CHECK_NEAR(Z[t], t ? 0.0 : 1.0, 0.0);
}

/* A large state that goes through a block whose product of factors is hardly a float, or is 0, and
   such a gradient. */
static void test_recurrence_of_small_factors(float factor) {
    float A[400], Z[400] = {1e36f, 1e36f}, y[400], G[400] = {0.0f}, dA[400], dZ[400];
    double state = 0.0;
    for (size_t i = 0; i < 400; i++) A[i] = i / 2 < 64 || i / 2 >= 128 ? 1.0f : factor;
    CHECK(!carnn_recurrence(200, 2, A, Z, NULL, y, 1, NULL));
    for (size_t t = 0; t < 200; t++) {
        state = (double)A[2 * t] * state + (double)Z[2 * t];
        for (size_t j = 0; j < 2; j++)
            CHECK(fabs((double)y[2 * t + j] - state) <= 1e-5 * state);
    }
    G[398] = G[399] = 1e36f;
    CHECK(!carnn_recurrence_backward(200, 2, A, y, NULL, G, dA, dZ, NULL, 1, NULL));
    for (size_t t = 200; t-- > 0;) {
        state = t == 199 ? 1e36 : (double)A[2 * t + 2] * state;
        for (size_t j = 0; j < 2; j++)
            CHECK(fabs((double)dZ[2 * t + j] - state) <= 1e-5 * state);
    }
}

/* What has no steps changes no state before them. */
static void test_recurrence_of_nothing(void) {
    float nothing[1] = {0.0f}, dfirst[3] = {1.0f, 2.0f, 3.0f};
    CHECK(!carnn_recurrence(0, 3, nothing, nothing, NULL, nothing, 1, NULL));
    CHECK(!carnn_recurrence_backward(0, 3, nothing, nothing, NULL, nothing, nothing, nothing,
                                     dfirst, 1, NULL));
    CHECK(dfirst[0] == 0.0f && dfirst[1] == 0.0f && dfirst[2] == 0.0f);
}

static void test_recurrence(void) {
    const char *name;
    test_recurrence_of_nothing();
    for (size_t path = 0; (name = carnn_simd_name(path)) != NULL; path++) {
        setenv("CARNN_SIMD", name, 1);
        test_recurrence_of_small_factors(0.2f);
        test_recurrence_of_small_factors(0.17f);
        test_recurrence_of_large_factors(4.0f, 0.0f, 200);
        test_recurrence_of_large_factors(4.1f, 1e-37f, 100);
        test_recurrence_of_large_factors(4.1f, 1e-20f, 63);
        for (size_t T = 1; T <= 200; T++) test_recurrence_of(T, 1 + T % 33, T % 2 == 0);
        test_recurrence_of(20000, 17, 1);
    }
    unsetenv("CARNN_SIMD");
}

int main(void) {
    test_recurrence();
    carnn__engine e;
    CHECK_INT(carnn__engine_open(&e, NULL, 1, carnn__allocator(NULL), NULL), CARNN_OK);
    test_golden(&e);
    test_golden_skip(&e);
    test_two_biases(&e);
    test_golden_gate(&e);
    test_initial_vectors();
    test_remembered(&e);
    test_remembered_elsewhere();
    test_parameter_counts();
    test_skip_parameters();
    test_equations(&e);
    test_bias_of_two_products(&e);
    test_without_dx(&e);
    test_gathered(&e);
    test_weighted_sums(&e);
    test_open_gates(&e);
    test_without_context(&e);
    test_long_sequences(&e);
    test_vanishing(&e);
    test_bands();
    test_same_cell_bits();
    test_gradcheck(&e);
    carnn__engine_close(&e);
    return test_end();
}
