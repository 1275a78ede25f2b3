/* RCRN as an encoder: its listener against the equations and the golden value, the whole encoder by
   plain loops in doubles, dropout masks, states step by step, files, sessions, threads and SIMD
   paths. */

#include "test.h"

/* --- the listener ----------------------------------------------------------------------------- */

enum { RCRN_ROWS = 11, RCRN_COLUMNS = 37 }; /* two whole vectors and a tail */
static const uint32_t rcrn_length[] = {2, 5, 0, 3, 1};

typedef struct rcrn_listened {
    float s[3][RCRN_ROWS * RCRN_COLUMNS], first[5 * RCRN_COLUMNS], dout[RCRN_ROWS * RCRN_COLUMNS];
    float c[RCRN_ROWS * RCRN_COLUMNS], out[RCRN_ROWS * RCRN_COLUMNS];
    float ds[3][RCRN_ROWS * RCRN_COLUMNS], dc[5 * RCRN_COLUMNS];
    uint32_t reversed[RCRN_ROWS];
    carnn__packed packed;
    carnn__listener l;
} rcrn_listened;

static void rcrn_draw(float *x, size_t count, uint64_t key) {
    size_t i;
    for (i = 0; i < count; i++) x[i] = 4.0f * carnn__uniform(key, i) - 2.0f;
}

static void rcrn_listen_open(rcrn_listened *x, int raw, int backward_reads, int has_first) {
    size_t i;
    memset(x, 0, sizeof *x);
    test_pack(&x->packed, rcrn_length, 5);
    carnn__reverse_index(&x->packed, x->reversed);
    x->l.seq = &x->packed;
    x->l.h = RCRN_COLUMNS;
    x->l.raw = raw;
    if (backward_reads) x->l.reversed = x->reversed;
    if (has_first) x->l.c0 = x->first;
    for (i = 0; i < 3; i++) {
        rcrn_draw(x->s[i], RCRN_ROWS * RCRN_COLUMNS, 1 + i);
        x->l.s[i] = x->s[i];
        x->l.ds[i] = x->ds[i];
    }
    rcrn_draw(x->first, 5 * RCRN_COLUMNS, 5);
    rcrn_draw(x->dout, RCRN_ROWS * RCRN_COLUMNS, 6);
    x->l.c = x->c;
    x->l.out = x->out;
    x->l.dout = x->dout;
    x->l.dc = x->dc;
}

/* sum of dout * h in doubles; compares h with what the kernel found, where `worst` is there. */
static double rcrn_listen_loss(const rcrn_listened *x, double *worst) {
    double loss = 0.0;
    size_t b, t, j;
    for (b = 0; b < 5; b++)
        for (j = 0; j < RCRN_COLUMNS; j++) {
            double c = x->l.c0 ? (double)x->first[b * RCRN_COLUMNS + j] : 0.0;
            for (t = 0; t < carnn__rank_length(&x->packed, b); t++) {
                size_t row = x->packed.start[t] + b, at = row * RCRN_COLUMNS + j;
                size_t in = (x->l.reversed ? x->reversed[row] : row) * RCRN_COLUMNS + j;
                double F = test_sigmoid((double)x->s[0][in]), O = (double)x->s[1][in], h;
                if (!x->l.raw) O = test_sigmoid(O);
                c = F * c + (1.0 - F) * (double)x->s[2][in];
                h = O * c;
                loss += h * (double)x->dout[at];
                if (worst) *worst = test_worse(fabs(h - (double)x->out[at]), *worst);
            }
        }
    return loss;
}

/* Values and derivatives, of both directions and kinds of output gates; the same bits where threads
   share the columns. */
static void rcrn_listener(carnn__engine *e) {
    static rcrn_listened x, y;
    int variant;
    for (variant = 0; variant < 8; variant++) {
        double worst = 0.0, slopes = 0.0;
        size_t i, k;
        rcrn_listen_open(&x, variant & 1, variant & 2, variant & 4);
        e->k->listen(&x.l, 0, RCRN_COLUMNS);
        e->k->listen_back(&x.l, 0, RCRN_COLUMNS);
        rcrn_listen_open(&y, variant & 1, variant & 2, variant & 4);
        for (i = 0; i < 3; i++) {
            size_t from = 16 * (2 - i), to = carnn__min(from + 16, RCRN_COLUMNS);
            e->k->listen(&y.l, from, to);
            e->k->listen_back(&y.l, from, to);
        }
        CHECK(!memcmp(x.out, y.out, sizeof x.out) && !memcmp(x.ds, y.ds, sizeof x.ds));
        rcrn_listen_loss(&x, &worst);
        CHECK_NEAR(worst, 0.0, 2e-6);
        for (k = 0; k < 3; k++)
            for (i = 0; i < RCRN_ROWS * RCRN_COLUMNS; i += 3) {
                const float step = 1.0f / 64.0f;
                float was = x.s[k][i];
                double up, down;
                x.s[k][i] = was + step;
                up = rcrn_listen_loss(&x, NULL);
                x.s[k][i] = was - step;
                down = rcrn_listen_loss(&x, NULL);
                x.s[k][i] = was;
                slopes = test_worse(fabs((up - down) / (2.0 * (double)step) - (double)x.ds[k][i]),
                                    slopes);
            }
        CHECK_NEAR(slopes, 0.0, 1e-4);
        free(x.packed.length);
        free(y.packed.length);
    }
}

/* From another program: element k of s_i is sin(0.7 k + 1.3 (39 + i) + 0.1) / 2, i = 1, 2, 3. And
   gates that are shut: h = O * s3. */
static void rcrn_golden(carnn__engine *e) {
    static const double last[] = {0.113723641, 0.074133138, 0.026018951};
    static const uint32_t length[] = {3};
    float s[3][9], c[9], out[9];
    size_t i, k;
    carnn__packed packed;
    carnn__listener l;
    memset(&l, 0, sizeof l);
    test_pack(&packed, length, 1);
    for (i = 0; i < 3; i++)
        for (k = 0; k < 9; k++)
            s[i][k] = (float)(0.5 * sin(0.7 * (double)k + 1.3 * (double)(40 + i) + 0.1));
    l.seq = &packed;
    l.h = 3;
    for (i = 0; i < 3; i++) l.s[i] = s[i];
    l.c = c;
    l.out = out;
    e->k->listen(&l, 0, 3);
    for (i = 0; i < 3; i++) CHECK_NEAR(out[6 + i], last[i], 1e-7);
    for (k = 0; k < 9; k++) s[0][k] = -1e4f;
    e->k->listen(&l, 0, 3);
    for (k = 0; k < 9; k++)
        CHECK_NEAR(out[k], test_sigmoid((double)s[1][k]) * (double)s[2][k], 1e-6);
    free(packed.length);
}

/* --- models ----------------------------------------------------------------------------------- */

static const char rcrn_texts[] =
    "x\te b e b\ny\tb e c c d\nx\tc e\ny\td b e\ny\te c b b c\nx\tc e\nz\td d c\nz\t\nx\te e e\n";

/* A small model whose encoder is RCRN unless `options` say another, with no weight 0 or small. */
static carnn_model *rcrn_model(const char *task, const char *options, const char *simd,
                               const carnn_dataset *data) {
    char all[128];
    carnn_model *model;
    size_t i;
    snprintf(all, sizeof all, "encoder=rcrn %s", options);
    model = test_model(task, all, simd, data);
    for (i = 0; i < model->params.size; i++)
        model->params.value[i] += carnn__uniform(9, i) - 0.5f;
    return model;
}

static carnn_status rcrn_fit(carnn_model *model, const carnn_dataset *data, int64_t threads) {
    carnn_train_desc train = test_training(3, 4, 0.0, 0.2);
    carnn_error error;
    train.threads = threads;
    return carnn_train(model, data, data, &train, &error);
}

/* A batch of all texts of a classifier, which it returns; at work until test_work_close(). */
static carnn__classify *rcrn_open(test_work *w, const carnn_model *model,
                                  const carnn_dataset *data, float *g, uint64_t key) {
    test_work_open(w, model, data, 1);
    w->work.g = g;
    w->work.dropout = 0.5;
    CHECK_INT(test_work_run(w, key), 1);
    return (carnn__classify *)w->work.state;
}

/* --- the encoder by plain loops in doubles ---------------------------------------------------- */

enum { RCRN_WORDS = 8, RCRN_WIDE = 16 };
typedef double rcrn_states[RCRN_WORDS][RCRN_WIDE];

typedef struct rcrn_reader { /* one RNN in one direction */
    const carnn_model *model;
    const char *cell;
    size_t in, h, d;
    const double *c; /* (d) */
    char prefix[96];
    size_t skip;
    const double *old; /* (h) the state so many steps before, or NULL */
} rcrn_reader;

static double rcrn_weight(const rcrn_reader *r, const char *name, size_t at) {
    const carnn__store *store = &r->model->params;
    char whole[128];
    size_t i;
    snprintf(whole, sizeof whole, "%s.%s", r->prefix, name);
    for (i = 0; i < store->count; i++)
        if (!strcmp(store->item[i].name, whole))
            return (double)store->value[store->item[i].offset + at];
    printf("no weight %s\n", whole);
    return NAN;
}

static double rcrn_product(const rcrn_reader *r, const char *name, size_t row, const double *x,
                           size_t n) {
    double sum = 0.0;
    size_t j;
    for (j = 0; j < n; j++) sum += rcrn_weight(r, name, row * n + j) * x[j];
    return sum;
}

/* What gate g of unit i reads of x, h and c. */
static double rcrn_gate(const rcrn_reader *r, size_t g, size_t i, const double *x,
                        const double *h) {
    size_t row = g * r->h + i;
    double a = rcrn_product(r, "input.weight", row, x, r->in) + rcrn_weight(r, "bias", row);
    if (h) a += rcrn_product(r, "recurrent.weight", row, h, r->h);
    if (h && r->old) a += rcrn_product(r, "skip.weight", row, r->old, r->h);
    if (h && !strcmp(r->cell, "gru-after")) a += rcrn_weight(r, "recurrent.bias", row);
    if (r->d) a += rcrn_product(r, "context.weight", row, r->c, r->d);
    return a;
}

static void rcrn_step(const rcrn_reader *r, const double *x, double *h, double *memory) {
    double next[RCRN_WIDE], reset[RCRN_WIDE];
    size_t i;
    for (i = 0; i < r->h && !strcmp(r->cell, "gru"); i++)
        reset[i] = test_sigmoid(rcrn_gate(r, 1, i, x, h)) * h[i];
    for (i = 0; i < r->h; i++) {
        if (!strcmp(r->cell, "lstm")) {
            memory[i] = test_sigmoid(rcrn_gate(r, 0, i, x, h)) * tanh(rcrn_gate(r, 3, i, x, h)) +
                        test_sigmoid(rcrn_gate(r, 1, i, x, h)) * memory[i];
            next[i] = test_sigmoid(rcrn_gate(r, 2, i, x, h)) * tanh(memory[i]);
        } else if (!strncmp(r->cell, "gru", 3)) {
            double u = test_sigmoid(rcrn_gate(r, 0, i, x, h)), z;
            if (!r->cell[3]) {
                z = tanh(rcrn_gate(r, 2, i, x, reset));
            } else {
                double q = test_sigmoid(rcrn_gate(r, 1, i, x, h)), a = rcrn_gate(r, 2, i, x, NULL);
                z = tanh(a + q * (rcrn_gate(r, 2, i, x, h) - a));
            }
            next[i] = u * z + (1.0 - u) * h[i];
        } else { /* icarnn, scarnn */
            double u = test_sigmoid(rcrn_gate(r, 0, i, x, NULL)), k = x[i];
            double f = test_sigmoid(rcrn_gate(r, 1, i, x, NULL));
            size_t row = 2 * r->h + i;
            if (*r->cell == 'i')
                k = rcrn_product(r, "input.weight", row, x, r->in) + rcrn_weight(r, "bias", row);
            next[i] = u * f * k + (1.0 - u) * h[i];
        }
    }
    memcpy(h, next, r->h * sizeof *h);
}

/* A base over n words: its states in direction `i` become columns of s. */
static void rcrn_base(rcrn_reader *r, const char *name, size_t i, size_t directions, size_t n,
                      rcrn_states x, rcrn_states s) {
    double h[RCRN_WIDE] = {0}, memory[RCRN_WIDE] = {0};
    size_t t, j;
    snprintf(r->prefix, sizeof r->prefix, "%s%s", name,
             directions == 1 ? "" : i ? ".backward" : ".forward");
    for (t = 0; t < n; t++) {
        size_t word = i ? n - 1 - t : t;
        r->old = r->skip && t >= r->skip ? s[i ? word + r->skip : word - r->skip] + i * r->h : NULL;
        rcrn_step(r, x[word], h, memory);
        for (j = 0; j < r->h; j++) s[word][i * r->h + j] = h[j];
    }
}

/* A layer: x (n, in) becomes y (n, directions h). */
static void rcrn_layer(rcrn_reader *r, size_t layer, size_t directions, int raw, size_t n,
                       rcrn_states x) {
    static const char *const base[] = {"forget", "output", "listener"};
    static rcrn_states s[3];
    char number[12] = "", name[64];
    double projected[RCRN_WIDE], c = 0.0;
    size_t b, i, t, j;
    if (layer) snprintf(number, sizeof number, ".%u", (unsigned)layer + 1);
    if (!strcmp(r->cell, "scarnn") && r->in != r->h) {
        snprintf(name, sizeof name, "cell%s", number);
        snprintf(r->prefix, sizeof r->prefix, "%s", name);
        for (t = 0; t < n; t++) {
            for (j = 0; j < r->h; j++) projected[j] = rcrn_product(r, "project", j, x[t], r->in);
            memcpy(x[t], projected, r->h * sizeof(double));
        }
        r->in = r->h;
    }
    for (b = 0; b < 3; b++)
        for (i = 0; i < directions; i++) {
            snprintf(name, sizeof name, "cell%s.%s", number, base[b]);
            rcrn_base(r, name, i, directions, n, x, s[b]);
        }
    for (j = 0; j < directions * r->h; j++)
        for (t = 0, c = 0.0; t < n; t++) {
            double F = test_sigmoid(s[0][t][j]);
            c = F * c + (1.0 - F) * s[2][t][j];
            x[t][j] = (raw ? s[1][t][j] : test_sigmoid(s[1][t][j])) * c;
        }
    r->in = directions * r->h;
}

/* The context of a text: its position encoding, divided by the number of its words. */
static void rcrn_context(rcrn_states x, size_t n, size_t D, double *c) {
    size_t k, j;
    for (k = 0; k < D; k++)
        for (c[k] = 0.0, j = 1; j <= n; j++)
            c[k] += x[j - 1][k] / (double)n *
                    ((1.0 - (double)j / (double)n) -
                     (double)(k + 1) / (double)D * (1.0 - 2.0 * (double)j / (double)n));
}

static void rcrn_by_loops(const char *options, size_t directions, size_t layers, int raw) {
    carnn_dataset *data = test_data("classify", rcrn_texts, strlen(rcrn_texts), 0, 0);
    carnn_model *model = rcrn_model("classify", options, NULL, data);
    size_t e = (size_t)model->desc.embedding, D = directions * (size_t)model->desc.hidden;
    const carnn__texts *t;
    const carnn__mat *y;
    double worst = 0.0, c[RCRN_WIDE];
    static rcrn_states x;
    carnn__classify *head;
    test_work w;
    size_t i, l, r, j, n;
    head = rcrn_open(&w, model, data, NULL, 0);
    t = &head->net.texts;
    y = carnn__rnn_output(&head->layers.rnn);
    CHECK_INT(y->columns, D);
    CHECK_INT(t->packed.sequences, 8); /* equal texts are read once */
    for (i = 0; i < t->texts; i++) {
        rcrn_reader one = {model, model->desc.cell, e, (size_t)model->desc.hidden, 0, c, "", 0,
                           NULL};
        one.skip = (size_t)model->desc.option[CARNN__CLASSIFY_ENCODER + CARNN__ENCODER_SKIP];
        n = t->at[i + 1] - t->at[i];
        for (r = 0; r < n; r++)
            for (j = 0; j < e; j++)
                x[r][j] = (double)head->words.y.x[t->ids[t->at[i] + r] * e + j];
        if (carnn__own_context(model, CARNN__CLASSIFY_CONTEXT, 1)) {
            one.d = e;
            rcrn_context(x, n, e, c);
        }
        for (l = 0; l < layers; l++) rcrn_layer(&one, l, directions, raw, n, x);
        for (r = 0; r < n; r++)
            for (j = 0; j < D; j++)
                worst = test_worse(fabs(x[r][j] - (double)y->x[(t->at[i] + r) * D + j]), worst);
    }
    CHECK_NEAR(worst, 0.0, 2e-6);
    test_work_close(&w);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

static void rcrn_numbers(void) {
    rcrn_by_loops("", 2, 1, 0);
    rcrn_by_loops("directions=1 layers=2 raw_output_gate=1", 1, 2, 1);
    rcrn_by_loops("cell=gru layers=2", 2, 2, 0);
    rcrn_by_loops("cell=gru-after raw_output_gate=1", 2, 1, 1);
    rcrn_by_loops("cell=icarnn", 2, 1, 0);
    rcrn_by_loops("cell=icarnn context=none layers=3", 2, 3, 0);
    rcrn_by_loops("cell=scarnn layers=2", 2, 2, 0);
    rcrn_by_loops("cell=scarnn hidden=5 directions=1", 1, 1, 0);
    rcrn_by_loops("cell=lstm skip=2 layers=2", 2, 2, 0);
    rcrn_by_loops("cell=gru skip=3", 2, 1, 0);
    rcrn_by_loops("cell=gru-after skip=2 directions=1", 1, 1, 0);
}

/* An LSTM's RCRN of 1,024 units over 1,024 inputs: 3 RNNs, 2 directions, 4 gates, each with
   1,024 * (1,024 + 1,024 + 1) weights. */
static void rcrn_parameters(void) {
    static carnn__param param[CARNN__PARAMS_MAX];
    static carnn__rnn rnn;
    carnn__store store;
    carnn__plan p = {&store, NULL, NULL, NULL};
    carnn__rnn_shape shape = carnn__plain_shape(CARNN__CELL_lstm, 1024, 1024);
    size_t i, sum = 0;
    shape.directions = 2;
    shape.rcrn = 1;
    carnn__store_open(&store, param, CARNN__PARAMS_MAX);
    carnn__rnn_plan(&p, &rnn, "cell", shape, 1, 1, 1);
    for (i = 0; i < store.count; i++) sum += store.item[i].rows * store.item[i].columns;
    CHECK_INT(sum, 50356224);
    CHECK_TEXT(store.item[0].name, "cell.forget.forward.input.weight");
}

/* --- dropout ---------------------------------------------------------------------------------- */

/* Each base reads the inputs under a mask of its own, which the next call draws again. */
static void rcrn_masks(void) {
    carnn_dataset *data = test_data("classify", rcrn_texts, strlen(rcrn_texts), 0, 0);
    carnn_model *model = rcrn_model("classify", "layers=2", NULL, data);
    float *g = (float *)carnn__alloc_aligned(&model->allocator, model->params.size, sizeof *g);
    unsigned char dropped[3][2][256];
    size_t l, b, i, pass, count[2], differ;
    carnn__classify *head;
    test_work w;
    memset(g, 0, model->params.size * sizeof *g);
    head = rcrn_open(&w, model, data, g, 7);
    for (pass = 0; pass < 2; pass++)
        for (l = 0; l < 2; l++)
            for (b = 0; b < 3; b++) {
                carnn__rnn_input x = carnn__texts_read(&head->net.texts, &head->words.y, NULL);
                carnn__rnn_input in = carnn__rnn_below(&head->layers.rnn, l, &x);
                const carnn__mat *m =
                    carnn__rnn_masked(&w.work, &head->layers.rnn, l, b, &in, 7);
                count[l] = carnn__min(256, in.inputs * in.x->columns);
                for (i = 0; i < count[l]; i++) {
                    int zero = m->x[i] == 0.0f;
                    CHECK(zero || m->x[i] == 2.0f * in.x->x[i]);
                    if (pass) CHECK_INT(dropped[b][l][i], zero);
                    dropped[b][l][i] = (unsigned char)zero;
                }
            }
    for (l = 0; l < 2; l++)
        for (b = 0; b < 3; b++) {
            for (differ = i = 0; i < count[l]; i++)
                differ += dropped[b][l][i] != dropped[(b + 1) % 3][l][i];
            CHECK(differ > count[l] / 5 && differ < count[l] - count[l] / 5);
        }
    test_work_close(&w);
    carnn__free_aligned(&model->allocator, g);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* --- states that go on from one call to the next ---------------------------------------------- */

static void rcrn_stepwise(const char *options) {
    carnn_dataset *data = test_data("classify", "x\te b e c d\n", 12, 0, 0);
    carnn_model *model = rcrn_model("classify", options, NULL, data);
    static const uint32_t length[] = {1};
    size_t word, i, e = (size_t)model->desc.embedding, h;
    float whole[5 * RCRN_WIDE], state[3 * 16 * RCRN_WIDE] = {0};
    const carnn__mat *y;
    carnn__packed one;
    carnn__mat x = {NULL, NULL, 0};
    carnn__classify *head;
    test_work w;
    head = rcrn_open(&w, model, data, NULL, 0);
    y = carnn__rnn_output(&head->layers.rnn);
    h = y->columns;
    memcpy(whole, y->x, 5 * h * sizeof(float));
    test_pack(&one, length, 1);
    x.columns = e;
    for (word = 0; word < 5; word++) {
        carnn__rnn_input in = {&one, {NULL, NULL}, NULL, NULL, 1, NULL, NULL, 0, NULL, NULL};
        x.x = head->words.y.x + head->net.texts.ids[word] * e;
        in.x = &x;
        in.state = in.next = state;
        carnn__rnn_forward(&w.work, &head->layers.rnn, in, 0);
        for (i = 0; i < h; i++) CHECK(y->x[i] == whole[word * h + i]);
    }
    free(one.length);
    test_work_close(&w);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* A language model's greedy words are the likeliest ones of the words before them. */
static void rcrn_generates(void) {
    static const char text[] = "a b c a b\nb c a\nc a b c\na b\n";
    carnn_dataset *data = test_data("lm", text, strlen(text), 0, 0);
    carnn_model *model = rcrn_model("lm", "cell=lstm layers=2 min_count=1", NULL, data);
    carnn_sampling how;
    carnn_session *session;
    carnn_prediction p;
    carnn_explanation e;
    carnn_contribution parts[16];
    carnn_error error;
    char written[128] = "", *end;
    size_t words;
    memset(&how, 0, sizeof how);
    how.temperature = CARNN_NONE;
    how.words = 6;
    CHECK_INT(carnn_session_open(&session, model, NULL, &error), 0);
    CHECK_INT(carnn_session_generate(session, &how, "a", 1, written, sizeof written, &error), 0);
    for (words = 0, end = strchr(written, ' '); end && words < 3; words++) {
        carnn_text before;
        size_t length = strcspn(end + 1, " ");
        before.at = written;
        before.length = (size_t)(end - written);
        carnn_session_reset(session);
        CHECK_INT(carnn_session_predict(session, &before, 1, 1, &p, &error), 0);
        CHECK_INT(carnn_session_explain(session, 16, parts, &e, &error), 0);
        CHECK_INT(e.exact, 0);
        CHECK(strlen(e.of) == length && !memcmp(e.of, end + 1, length));
        end = end[1 + length] ? end + 1 + length : NULL;
    }
    CHECK(words > 0);
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* --- files, sessions, threads, SIMD paths ----------------------------------------------------- */

/* The bytes of a model that was trained. */
static void *rcrn_bytes(const char *task, const char *text, const char *options, const char *simd,
                        int64_t threads, size_t *size) {
    carnn_dataset *data = test_data(task, text, strlen(text), 0, 0);
    carnn_model *model = rcrn_model(task, options, simd, data);
    carnn_error error;
    void *bytes;
    CHECK_INT(rcrn_fit(model, data, threads), CARNN_OK);
    *size = carnn_model_size(model);
    bytes = malloc(*size);
    CHECK_INT(carnn_model_write(model, bytes, *size, &error), CARNN_OK);
    carnn_model_free(model);
    carnn_dataset_free(data);
    return bytes;
}

/* Threads and SIMD paths change no bit; a file keeps the encoder; sessions say what batches say. */
static void rcrn_everywhere(const char *task, const char *text, const char *options) {
    carnn_dataset *data = test_data(task, text, strlen(text), 0, 0);
    char value[16];
    carnn_model *model;
    carnn_session *session;
    carnn_prediction p;
    carnn_error error;
    carnn_source source;
    test_answers told;
    size_t size, other, i, found = 0;
    void *bytes = rcrn_bytes(task, text, options, NULL, 1, &size), *same;
    same = rcrn_bytes(task, text, options, NULL, 3, &other);
    CHECK(size == other && !memcmp(bytes, same, size));
    free(same);
    same = rcrn_bytes(task, text, options, "portable", 2, &other);
    CHECK(size == other && !memcmp(bytes, same, size));
    free(same);
    source = test_source("model", bytes, size);
    CHECK_INT(carnn_model_load(&model, &source, NULL, &error), CARNN_OK);
    for (i = 0; carnn_option_at(task, i); i++) {
        const carnn_option *o = carnn_option_at(task, i);
        carnn_option_get(o, carnn_model_describe(model), carnn_model_training(model), value,
                         sizeof value);
        found += !strcmp(o->name, "encoder") && !strcmp(value, "rcrn");
        found += !strcmp(o->name, "raw_output_gate") && !strcmp(value, "1");
    }
    CHECK_INT(found, 2);
    told = test_predict_all(model, data, 1);
    CHECK_INT(carnn_session_open(&session, model, NULL, &error), 0);
    for (i = 0; i < told.count; i++) {
        CHECK_INT(carnn_session_example(session, data, i, 1, &p, &error), 0);
        CHECK(test_value(&p) == told.value[i]);
    }
    CHECK(told.count > 5);
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
    free(bytes);
}

/* The shares of an answer model's words by their definition: what the listener of the last layer
   hears at each of them, times the gates from there to the end. */
static void rcrn_explains(const char *text, const char *options) {
    carnn_dataset *data = test_data("answer", text, strlen(text), 0, 0);
    carnn_model *model = rcrn_model("answer", options, NULL, data);
    const carnn__answer *m;
    double share[16] = {0}, squares = 0.0;
    carnn_contribution parts[16];
    carnn_explanation e;
    carnn_session *session;
    carnn_prediction p;
    carnn_error error;
    size_t i, j, t, u, n;
    CHECK_INT(carnn_session_open(&session, model, NULL, &error), 0);
    CHECK_INT(carnn_session_example(session, data, 0, 1, &p, &error), 0);
    CHECK_INT(carnn_session_explain(session, 16, parts, &e, &error), 0);
    CHECK_INT(e.exact, 1);
    CHECK_NEAR(e.rest, 0.0, 1e-5);
    m = (const carnn__answer *)session->work.state;
    n = m->two.net.texts.at[1];
    for (i = 0; i < 2; i++) { /* columns of either direction, words of the first text */
        const carnn__rnn *rnn = &m->two.layers.rnn;
        const carnn__listener *l = &rnn->layer[rnn->layers - 1].listener[i];
        const carnn__mat *y = carnn__rnn_output(rnn);
        for (j = 0; j < l->h; j++) {
            double last = (double)y->x[(n - 1) * y->columns + i * l->h + j], O, heard;
            for (t = 0; t < n; t++) {
                size_t row = m->two.net.texts.row[t], end = m->two.net.texts.row[n - 1];
                if (i) row = l->reversed[row], end = l->reversed[end];
                O = (double)l->s[1][end * l->h + j];
                heard = l->raw ? O : test_sigmoid(O);
                heard *= (1.0 - test_sigmoid((double)l->s[0][row * l->h + j])) *
                         (double)l->s[2][row * l->h + j];
                for (u = t + 1; u < n; u++) {
                    row = m->two.net.texts.row[u];
                    if (i) row = l->reversed[row];
                    heard *= test_sigmoid((double)l->s[0][row * l->h + j]);
                }
                share[t] += heard * last;
            }
            squares += last * last;
        }
    }
    for (t = 0; t < n; t++) CHECK_NEAR(parts[t].share, share[t] / squares, 1e-5);
    carnn_session_explain(session, 0, NULL, &e, &error); /* the rest is the same */
    CHECK_NEAR(e.rest, 0.0, 1e-5);
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* --- errors and defaults ---------------------------------------------------------------------- */

static void rcrn_errors(void) {
    carnn_dataset *data = test_data("classify", rcrn_texts, strlen(rcrn_texts), 0, 0);
    carnn_model_desc desc;
    carnn_model *model;
    carnn_error error;
    memset(&desc, 0, sizeof desc);
    desc.task = "classify";
    CHECK_INT(carnn_set(&desc, NULL, "encoder", "rcnn", &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message, "unknown encoder \"rcnn\" (rnn, rcrn, graph)");
    CHECK_INT(carnn_set(&desc, NULL, "raw_output_gate", "2", &error), CARNN_ERR_ARGUMENT);
    CHECK_INT(carnn_set(&desc, NULL, "context", "text", &error), 0);
    CHECK_INT(carnn_model_create(&model, &desc, data, &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message, "context is text, which the cell lstm does not read");
    CHECK_INT(carnn__set_all(&desc, NULL, 0, "context=none cell=icarnn skip=2", &error), 0);
    CHECK_INT(carnn_model_create(&model, &desc, data, &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message, "no gate of the cell icarnn reads a state, as skip connections need");
    memset(&desc, 0, sizeof desc);
    desc.task = "dialog";
    CHECK_INT(carnn_set(&desc, NULL, "encoder", "rcrn", &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message, "the task dialog has no option \"encoder\"");
    carnn_dataset_free(data);
    data = test_data("classify", rcrn_texts, strlen(rcrn_texts), 0, 0);
    model = rcrn_model("classify", "cell=scarnn", NULL, data);
    CHECK(carnn__own_context(model, CARNN__CLASSIFY_CONTEXT, 1));
    carnn_model_free(model);
    model = rcrn_model("classify", "cell=scarnn encoder=rnn layers=2", NULL, data);
    CHECK(!carnn__own_context(model, CARNN__CLASSIFY_CONTEXT, 1));
    CHECK_INT(rcrn_fit(model, data, 1), CARNN_OK);
    carnn_model_free(model);
    model = rcrn_model("classify", "layers=8 cell=gru-after", NULL, data);
    CHECK(model->params.count <= CARNN__PARAMS_MAX);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* The last states of a text are those of its listeners at the last word, in both directions. */
static void rcrn_last_states(const char *pairs) {
    carnn_dataset *data = test_data("answer", pairs, strlen(pairs), 0, 0);
    carnn_model *model = test_model("answer", "model=siamese encoder=rcrn overlap=0", NULL, data);
    const carnn__two *two;
    const carnn__mat *x, *v;
    carnn_session *session = NULL;
    carnn_prediction p;
    carnn_error error;
    size_t text;
    CHECK_INT(carnn_session_open(&session, model, NULL, &error), CARNN_OK);
    CHECK_INT(carnn_session_example(session, data, 2, 1, &p, &error), CARNN_OK);
    two = (const carnn__two *)session->work.state;
    x = carnn__rnn_output(&two->layers.rnn);
    v = &two->layers.pool.y;
    for (text = 0; text < 2; text++) {
        const float *last = x->x + (two->net.texts.at[text + 1] - 1) * x->columns;
        CHECK(!memcmp(v->x + text * v->columns, last, v->columns * sizeof *last));
    }
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

int main(void) {
    static const char pairs[] = "a b\tb a\t1\na b\te\t0\na b\tc e b\t0\nd c\td\t1\nd c\ta d b\t0\n"
                                "d\te d\t1\nd\ta\t0\n";
    carnn__engine engine;
    carnn_error error;
    CHECK_INT(carnn__engine_open(&engine, NULL, 1, carnn__allocator(NULL), &error), 0);
    rcrn_listener(&engine);
    rcrn_golden(&engine);
    carnn__engine_close(&engine);
    rcrn_numbers();
    rcrn_parameters();
    rcrn_masks();
    rcrn_stepwise("directions=1");
    rcrn_stepwise("directions=1 layers=3 cell=ran raw_output_gate=1");
    rcrn_stepwise("directions=1 layers=2 cell=gru skip=3");
    rcrn_stepwise("directions=1 encoder=rnn cell=mi-lstm skip=2");
    rcrn_generates();
    rcrn_everywhere("classify", rcrn_texts, "layers=2 raw_output_gate=1");
    rcrn_everywhere("classify", rcrn_texts, "cell=icarnn raw_output_gate=1");
    rcrn_everywhere("answer", pairs, "cell=gru raw_output_gate=1");
    rcrn_everywhere("answer", pairs, "cell=lstm skip=2 raw_output_gate=1");
    rcrn_everywhere("answer", pairs, "cell=icarnn raw_output_gate=1 overlap=0");
    rcrn_explains(pairs, "cell=icarnn overlap=0");
    rcrn_explains(pairs, "cell=lstm layers=2 raw_output_gate=1 overlap=0");
    rcrn_last_states(pairs);
    rcrn_errors();
    return test_end();
}
