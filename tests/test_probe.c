/* What a training tells of states: against a plain loop in double precision whose derivatives are
   central differences, against the same network as a graph, and trainings that are not changed; and
   the options of an encoder that say what its weights begin with. */

#include "test.h"

enum { PROBE_H = 6, PROBE_E = 5, PROBE_CHUNK = 12, PROBE_MOST = 64 };

/* Texts of 20 and 27 characters with their ends: chunks of 12, 8, 12, 12 and 3. */
static const char probe_text[] = "the cat\na _ cat\nsat\n\n  a dog ran \nto the hat\na cat\n";
static const size_t probe_length[] = {12, 8, 12, 12, 3};

static int probe_keep(const carnn_progress *p, void *user) {
    CHECK(!p->probe == !p->epoch_ended);
    if (p->probe) *(carnn_probe *)user = *p->probe;
    return 0;
}

/* One epoch, whose last weights the model keeps: those that are probed, without the dropout and the
   smoothing of the training. */
static carnn_train_desc probe_training(const carnn_model *model) {
    carnn_train_desc train = test_training(2, 2, 0.05, 0.2); /* steps follow a probe */
    train.average = CARNN_NONE;
    /* numbers have none */
    if (strcmp(model->desc.task, "signal") || model->choices.count) train.smoothing = 0.1;
    return train;
}

static carnn_probe probe_train(carnn_model *model, const carnn_dataset *data, int64_t threads) {
    carnn_train_desc train = probe_training(model);
    carnn_probe probe;
    carnn_error error;
    memset(&probe, 0, sizeof probe);
    train.threads = threads;
    train.probe = 1;
    train.progress = probe_keep;
    train.user = &probe;
    if (carnn_train(model, data, NULL, &train, &error)) printf("%s\n", error.message);
    CHECK(!model->training.probe);
    return probe;
}

/* --- a plain RNN ------------------------------------------------------------------------------ */

typedef struct probe_chunk { /* what is read, the target of the last step, the states h_0 .. h_n */
    uint32_t ids[PROBE_CHUNK + 1];
    size_t n;
    double h[PROBE_CHUNK + 1][PROBE_H];
} probe_chunk;

/* Steps `from` .. n from h_from on: the loss of the last one. */
static double probe_loss(const carnn_model *m, probe_chunk *c, size_t from) {
    const float *U = test_weight(m, "output.weight"), *bias = test_weight(m, "output.bias");
    const float *Wx = test_weight(m, "cell.input.weight"), *b = test_weight(m, "cell.bias");
    const float *Wh = test_weight(m, "cell.recurrent.weight");
    double sum = 0.0, target = 0.0;
    size_t t, i, j;
    for (t = from; t < c->n; t++) {
        const float *x = test_weight(m, "word.weight") + c->ids[t] * PROBE_E;
        for (i = 0; i < PROBE_H; i++) {
            double a = (double)b[i];
            for (j = 0; j < PROBE_E; j++) a += (double)Wx[i * PROBE_E + j] * (double)x[j];
            for (j = 0; j < PROBE_H; j++) a += (double)Wh[i * PROBE_H + j] * c->h[t][j];
            c->h[t + 1][i] = tanh(a);
        }
    }
    for (i = 0; i < m->words.count; i++) {
        double z = (double)bias[i];
        for (j = 0; j < PROBE_H; j++) z += (double)U[i * PROBE_H + j] * c->h[c->n][j];
        sum += exp(z);
        if (i == c->ids[c->n]) target = z;
    }
    return log(sum) - target;
}

/* log |dC/dh_t| */
static double probe_norm(const carnn_model *m, const probe_chunk *c, size_t t) {
    double squares = 0.0;
    size_t j;
    for (j = 0; j < PROBE_H; j++) {
        probe_chunk more = *c, less = *c;
        double d;
        more.h[t][j] += 1e-4;
        less.h[t][j] -= 1e-4;
        d = (probe_loss(m, &more, t) - probe_loss(m, &less, t)) / 2e-4;
        squares += d * d;
    }
    return 0.5 * log(squares);
}

/* The chunks of probe_text; a chunk is followed by what begins the next one. */
static void probe_chunks(const carnn_model *m, probe_chunk chunk[5]) {
    const char *at = probe_text, *stop;
    uint32_t ids[PROBE_MOST], *end = ids;
    size_t i, k;
    memset(chunk, 0, 5 * sizeof *chunk);
    for (; *at; at = stop + 1) {
        carnn_text line = {at, 0};
        stop = strchr(at, '\n');
        line.length = (size_t)(stop - at);
        line = carnn__trim(line);
        end += carnn__tokenize(&m->words, CARNN__CHARACTERS, line, end, 32);
        if (line.length) *end++ = 2; /* </s> */
    }
    CHECK_INT(end - ids, 47);
    for (end = ids, i = 0; i < 5; i++, end += chunk[i - 1].n) {
        chunk[i].n = probe_length[i];
        for (k = 0; k <= chunk[i].n; k++)
            chunk[i].ids[k] = k ? end[k - 1] : end > ids ? end[-1] : 1;
        if (i == 2) *chunk[i].ids = 1; /* <s> of the second document */
    }
}

static void probe_plain(void) {
    carnn_dataset *data = test_read("lm", probe_text);
    carnn_model *model = test_model("lm", "unit=char min_count=1 cell=rnn chunk=12", NULL, data);
    carnn_probe probe = probe_train(model, data, 1);
    probe_chunk chunk[5];
    double loss = 0.0, norm[CARNN_PROBE_STEPS] = {0}, share[CARNN_PROBE_BINS] = {0}, all = 0.0;
    size_t texts[CARNN_PROBE_STEPS] = {0}, i, k, t;
    probe_chunks(model, chunk);
    for (i = 0; i < 5; i++) {
        loss += probe_loss(model, &chunk[i], 0) / 5.0;
        for (k = 0; k < CARNN_PROBE_STEPS; k++) {
            if (probe.step[k] > chunk[i].n) continue;
            norm[k] += probe_norm(model, &chunk[i], probe.step[k]);
            texts[k]++;
        }
        for (t = 1; t <= chunk[i].n; t++)
            for (k = 0; k < PROBE_H; k++)
                share[(size_t)floor(10.0 * (chunk[i].h[t][k] + 1.0))] += 1.0 / 47.0 / PROBE_H;
    }
    CHECK_INT(probe.units, PROBE_H);
    CHECK_INT(probe.step[0], 1);
    CHECK_INT(probe.step[1], 5);
    CHECK_INT(probe.step[2], 10);
    CHECK_NEAR(probe.loss, loss, 1e-5);
    for (k = 0; k < CARNN_PROBE_STEPS; k++) {
        CHECK_INT(probe.texts[k], texts[k]);
        CHECK_NEAR(probe.log_norm[k], norm[k] / (double)texts[k], 1e-4);
    }
    for (k = 0; k < CARNN_PROBE_BINS; k++) {
        CHECK_NEAR(probe.share[k], share[k], 1e-9);
        all += probe.share[k];
    }
    CHECK_NEAR(all, 1.0, 1e-9);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* --- the same network as a graph -------------------------------------------------------------- */

static void probe_copy(carnn_model *to, const char *name, const carnn_model *from,
                       const char *as, size_t count) {
    memcpy(test_weight(to, name), test_weight(from, as),
           count * sizeof(float));
}

static void probe_graph(void) {
    carnn_dataset *data = test_read("lm", probe_text);
    carnn_model *rnn = test_model("lm", "unit=char min_count=1 cell=rnn chunk=12", NULL, data);
    carnn_model *graph = test_model(
        "lm", "unit=char min_count=1 cell=rnn chunk=12 encoder=graph graph=sh", NULL, data);
    carnn_probe a, b;
    size_t V = rnn->words.count, k;
    probe_copy(graph, "word.weight", rnn, "word.weight", V * PROBE_E);
    probe_copy(graph, "output.weight", rnn, "output.weight", V * PROBE_H);
    probe_copy(graph, "cell.edge.1.weight", rnn, "cell.input.weight", PROBE_H * PROBE_E);
    probe_copy(graph, "cell.edge.2.weight", rnn, "cell.recurrent.weight", PROBE_H * PROBE_H);
    a = probe_train(rnn, data, 1);
    b = probe_train(graph, data, 1);
    CHECK_NEAR(a.loss, b.loss, 1e-5);
    for (k = 0; k < CARNN_PROBE_STEPS; k++) CHECK_NEAR(a.log_norm[k], b.log_norm[k], 1e-4);
    CHECK(!memcmp(a.share, b.share, sizeof a.share));
    carnn_model_free(rnn);
    carnn_model_free(graph);
    carnn_dataset_free(data);
}

/* --- every task that has probes --------------------------------------------------------------- */

/* The same probe on all threads and SIMD paths; a training with it gives the same bytes. */
static void probe_alike(const char *task, const char *text, const char *options, double loss) {
    carnn_dataset *data = test_read(task, text);
    carnn_model *plain = test_model(task, options, NULL, data), *model;
    carnn_train_desc train = probe_training(plain);
    carnn_probe first, probe;
    size_t i, k;
    CHECK_INT(carnn_train(plain, data, NULL, &train, NULL), CARNN_OK);
    memset(&first, 0, sizeof first);
    for (i = 0; i < 2 || carnn_simd_name(i - 2); i++) {
        model = test_model(task, options, i < 2 ? NULL : carnn_simd_name(i - 2), data);
        probe = probe_train(model, data, i < 2 ? (int64_t)i + 1 : 1);
        if (!i) first = probe;
        CHECK(!memcmp(&first, &probe, sizeof probe));
        CHECK(!memcmp(model->params.value, plain->params.value,
                      plain->params.size * sizeof(float)));
        if (!i && loss > 0.0) CHECK_NEAR(probe.loss, test_scores(model, data).loss, loss);
        carnn_model_free(model);
    }
    CHECK_INT(first.units, 6);
    for (k = 0; k < CARNN_PROBE_STEPS; k++)
        CHECK(first.texts[k] ? first.log_norm[k] < 3.0 : first.log_norm[k] != first.log_norm[k]);
    CHECK(first.texts[0] > 0);
    if (loss > 0.0) CHECK_INT(first.texts[0], data->item_count); /* each once, in any directions */
    carnn_model_free(plain);
    carnn_dataset_free(data);
}

/* --- the range of the first input weights ----------------------------------------------------- */

static void probe_range(const char *options, const char *name) {
    carnn_dataset *data = test_read("lm", probe_text);
    carnn_model *plain, *wide, *again;
    const float *w, *glorot;
    char all[120];
    size_t i, k;
    snprintf(all, sizeof all, "min_count=1 %s", options);
    plain = test_model("lm", all, NULL, data);
    strcat(all, " input_range=0.6");
    wide = test_model("lm", all, NULL, data);
    glorot = test_weight(plain, name);
    w = test_weight(wide, name);
    for (i = 0; i < PROBE_H * PROBE_E; i++) {
        CHECK(fabsf(w[i]) <= 0.6f);
        /* another range of the same numbers */
        CHECK_NEAR(w[i] * glorot[0], glorot[i] * w[0], 1e-6);
    }
    CHECK(w[0] != glorot[0]);
    for (k = 0; k < plain->params.count; k++) { /* nothing else changes */
        const carnn__param *p = &plain->params.item[k];
        if (!strstr(p->name, "input.weight") && strcmp(p->name, name))
            CHECK(!memcmp(plain->params.value + p->offset, wide->params.value + p->offset,
                          p->rows * p->columns * sizeof(float)));
    }
    again = test_reload(wide);
    CHECK_NEAR(again->desc.option[CARNN__LM_ENCODER + CARNN__ENCODER_RANGE], 0.6, 0.0);
    carnn_model_free(again);
    carnn_model_free(plain);
    carnn_model_free(wide);
    carnn_dataset_free(data);
}

/* --- units that begin to remember 1 to T steps: the biases with these names begin otherwise --- */

static void probe_memory(const char *options, const char *const *names) {
    carnn_dataset *data = test_read("lm", probe_text);
    carnn_model *plain, *none, *model, *again;
    char all[120];
    size_t found = 0, count = 0, i, k;
    while (names[count]) count++;
    snprintf(all, sizeof all, "min_count=1 %s", options);
    plain = test_model("lm", all, NULL, data);
    strcat(all, " memory=0");
    none = test_model("lm", all, NULL, data);
    all[strlen(all) - 1] = 0;
    strcat(all, "11");
    model = test_model("lm", all, NULL, data);
    CHECK(!memcmp(none->params.value, plain->params.value, plain->params.size * sizeof(float)));
    for (k = 0; k < plain->params.count; k++) {
        const carnn__param *p = &plain->params.item[k];
        const float *w = model->params.value + p->offset, *old = plain->params.value + p->offset;
        int is_one = 0;
        for (i = 0; i < count; i++) is_one |= !strcmp(p->name, names[i]);
        found += (size_t)is_one;
        for (i = 0; is_one && i < PROBE_H; i++) CHECK_NEAR(w[i], -log(1.0 + 2.0 * (double)i), 1e-6);
        for (i = 2 * PROBE_H; is_one && i < p->columns; i++) /* other gates */
            CHECK(w[i] == old[i]);
        if (!is_one) CHECK(!memcmp(w, old, p->rows * p->columns * sizeof(float)));
    }
    CHECK_INT(found, count);
    again = test_reload(model);
    CHECK_NEAR(again->desc.option[CARNN__LM_ENCODER + CARNN__ENCODER_MEMORY], 11.0, 0.0);
    carnn_model_free(again);
    carnn_model_free(model);
    carnn_model_free(none);
    carnn_model_free(plain);
    carnn_dataset_free(data);
}

/* A model that has no gates for it is not made. */
static void probe_memory_refused(const char *options, const char *why) {
    carnn_dataset *data = test_read("lm", probe_text);
    carnn_error error = test_refused("lm", options, data);
    CHECK_TEXT(error.message, why);
    carnn_dataset_free(data);
}

/* Texts whose class the model does not know have no loss: they do not count in its mean, nor in
   that of the gradients. */
static void probe_unknown(void) {
    static const char *const valid[] = {"x\ta b a\ny\tb a b\n",
                                        "x\ta b a\nq\tb b b\ny\tb a b\nq\ta\n"};
    carnn_dataset *data = test_read("classify", "x\ta b a b\ny\tb a b b a\n"), *more;
    carnn_probe probe[2];
    carnn_error error;
    size_t i;
    memset(probe, 0, sizeof probe);
    for (i = 0; i < 2; i++) {
        carnn_model *model = test_model("classify", "min_count=1", NULL, data);
        carnn_train_desc train = probe_training(model);
        more = test_read("classify", valid[i]);
        train.probe = 1;
        train.progress = probe_keep;
        train.user = &probe[i];
        CHECK_INT(carnn_train(model, data, more, &train, &error), CARNN_OK);
        carnn_model_free(model);
        carnn_dataset_free(more);
    }
    CHECK_NEAR(probe[1].loss, probe[0].loss, 1e-6);
    CHECK_NEAR(probe[1].log_norm[0], probe[0].log_norm[0], 1e-6);
    CHECK_INT(probe[1].texts[0], 2);
    carnn_dataset_free(data);
}

static void probe_refused(const char *task, const char *options) {
    carnn_dataset *data = test_data(task, carnn__task_named(task)->sample,
                                    strlen(carnn__task_named(task)->sample), 0, 0);
    carnn_train_desc train = test_training(1, 2, 0.05, 0.0);
    carnn_model *model = test_model(task, options, NULL, data);
    carnn_error error;
    train.probe = 1;
    CHECK_INT(carnn_train(model, data, NULL, &train, &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message, "a probe is of the tasks lm, classify and signal with the encoder "
                              "rnn or graph");
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Of more texts than are probed the first half is too short for step 5: so is half of those. */
static void probe_even(void) {
    char text[128 * 16];
    carnn_dataset *data;
    carnn_model *model;
    size_t at = 0, i;
    for (i = 0; i < 128; i++)
        at += (size_t)sprintf(text + at, "%c\t%s\n", i % 2 ? 'x' : 'y',
                              i < 64 ? "b" : "b c b c b c");
    data = test_read("classify", text);
    model = test_model("classify", "min_count=1 cell=rnn", NULL, data);
    CHECK_INT(probe_train(model, data, 1).texts[1], 32);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

int main(void) {
    static const char rows[] = "1,.5,-1,2,.25\n2,1,1\n1,0,.5,-.5,2,3,1\n3,-1,-2,0,1\n";
    static const char texts[] = "x\ta b c d e f\ny\tb a\nx\tc\ny\td e f a b c d e f a b c\n";
    const char *const *cell;
    static const char *const cells[] = {"ncarnn", "icarnn", "scarnn", "lstm", "gru", "gru-after",
                                        "ran", "ran-tanh", "mi-rnn", "mi-lstm", "mi-gru",
                                        "lin-mi-rnn", NULL};
    char options[80];
    probe_plain();
    probe_graph();
    probe_unknown();
    probe_even();
    for (cell = cells; *cell; cell++) {
        snprintf(options, sizeof options, "unit=char min_count=1 chunk=12 cell=%s layers=2", *cell);
        probe_alike("lm", probe_text, options, 0.0);
    }
    probe_alike("lm", probe_text, "min_count=1 cell=ncarnn", 0.0);
    probe_alike("lm", "a b a\tx\nb a c\ty\n", "min_count=1 cell=icarnn label_weight=0.5", 0.0);
    probe_alike("classify", texts, "min_count=1 cell=icarnn directions=2", 1e-5);
    probe_alike("classify", texts, "min_count=1 cell=lstm encoder=graph graph=td", 1e-5);
    probe_alike("signal", rows, "columns=1 embedding=1 cell=icarnn layers=2", 1e-5);
    probe_alike("signal", rows, "columns=1 embedding=1 cell=gru pooling=mean target_kind=number",
                1e-5);
    probe_alike("signal", "1 2 2,.5,1,2\n2 1,0,1\n",
                "columns=1 embedding=1 cell=lstm target_kind=steps", 0.0);
    probe_range("cell=mi-rnn", "cell.input.weight");
    probe_range("cell=lstm encoder=rcrn", "cell.forget.input.weight");
    probe_range("cell=rnn encoder=graph graph=fig4.3a:3", "cell.edge.1.weight");
    {
        static const char *const one[] = {"cell.bias", NULL};
        static const char *const layers[] = {"cell.bias", "cell.2.bias", NULL};
        static const char *const bases[] = {"cell.forget.bias", "cell.output.bias",
                                            "cell.listener.bias", NULL};
        probe_memory("cell=icarnn", one);
        probe_memory("cell=lstm layers=2", layers);
        probe_memory("cell=mi-gru encoder=rcrn", bases);
    }
    probe_memory_refused("cell=rnn memory=3",
                         "memory: the cell rnn has no gate that keeps a state");
    probe_memory_refused("cell=lstm encoder=graph graph=td memory=3",
                         "memory: a graph has no gate that keeps a state");
    probe_refused("dialog", "embedding=6");
    probe_refused("pair", "");
    probe_refused("classify", "encoder=rcrn");
    return test_end();
}
