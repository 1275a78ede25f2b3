/* Skip-thought vectors: the loss by plain loops in doubles, what a neighbour is, vectors of
   sessions and of batches, words that only word vectors have, the same bytes everywhere. */

#include "test.h"

static const char thought_text[] =
    "the cat sat .\nit was glad .\nthe dog came .\n\na man sat .\nit was a dog .\n\nno .\n";

static carnn_dataset *thought_data(const char *bytes) {
    return test_read("skip-thought", bytes);
}

static carnn_status thought_fit(carnn_model *model, const carnn_dataset *data, int64_t epochs) {
    carnn_train_desc train = test_training(epochs, 2, 0.02, CARNN_NONE);
    carnn_error error;
    return carnn_train(model, data, NULL, &train, &error);
}

/* --- the loss --------------------------------------------------------------------------------- */

enum { UNITS = 6, INPUTS = 5 }; /* of test_model */

/* h = tanh(W x + U h + b) of the cell `name`, for the input [word; v] (v NULL: the word alone). */
static void thought_step(const carnn_model *model, const char *name, uint32_t word, const double *v,
                         double h[UNITS]) {
    char of[3][64];
    const float *x = test_weight(model, "word.weight") + word * INPUTS, *W, *U, *b;
    double next[UNITS];
    size_t i, j, columns = v ? INPUTS + UNITS : INPUTS;
    snprintf(of[0], sizeof of[0], "%s.input.weight", name);
    snprintf(of[1], sizeof of[1], "%s.recurrent.weight", name);
    snprintf(of[2], sizeof of[2], "%s.bias", name);
    W = test_weight(model, of[0]);
    U = test_weight(model, of[1]);
    b = test_weight(model, of[2]);
    for (i = 0; i < UNITS; i++) {
        double sum = (double)b[i] + test_row_times(U, i, UNITS, h);
        for (j = 0; j < columns; j++)
            sum += (double)W[i * columns + j] * (j < INPUTS ? (double)x[j] : v[j - INPUTS]);
        next[i] = tanh(sum);
    }
    memcpy(h, next, sizeof next);
}

static double thought_loss_of(const carnn_model *model, const double h[UNITS], uint32_t word) {
    const float *W = test_weight(model, "output.weight"), *b = test_weight(model, "output.bias");
    double all = 0.0, z = 0.0;
    size_t w, j;
    for (w = 0; w < model->words.count; w++) {
        double sum = (double)b[w];
        for (j = 0; j < UNITS; j++) sum += (double)W[w * UNITS + j] * h[j];
        all += exp(sum);
        if (w == word) z = sum;
    }
    return log(all) - z;
}

/* The numbers of the words of a sentence with <s> and </s>. */
static size_t thought_numbers(const carnn_model *model, const char *text, uint32_t ids[16]) {
    size_t n = 0;
    carnn__words w = carnn__words_of(CARNN__TOKENS, carnn__span_of(text));
    ids[n++] = CARNN__RUNNING_BEGIN;
    while (carnn__next_word(&w)) ids[n++] = carnn__word_number(&model->words, &w);
    ids[n++] = CARNN__RUNNING_END;
    return n;
}

/* Of sentence i the neighbours are i - 1 and i + 1, where these are of its document. */
static void test_thought_loss(void) {
    static const char *const text[] = {"the cat sat .", "it was glad .", "the dog came .",
                                       "a man sat .", "it was a dog .", "no ."};
    static const int document[] = {0, 0, 0, 1, 1, 2};
    carnn_dataset *data = thought_data(thought_text);
    carnn_model *model = test_model("skip-thought", "cell=rnn decoder=rnn", NULL, data);
    double nll[2] = {0.0, 0.0}, v[UNITS], h[UNITS];
    uint32_t ids[16];
    size_t i, k, t, n, words[2] = {0, 0};
    carnn_scores s;
    CHECK_INT(thought_fit(model, data, 3), CARNN_OK);
    for (i = 0; i < 6; i++) {
        memset(v, 0, sizeof v);
        n = thought_numbers(model, text[i], ids);
        for (t = 0; t < n; t++) thought_step(model, "encoder", ids[t], NULL, v);
        for (k = 0; k < 2; k++) {
            size_t other = k ? i - 1 : i + 1;
            if (other > 5 || document[other] != document[i]) continue;
            n = thought_numbers(model, text[other], ids);
            memset(h, 0, sizeof h);
            for (t = 0; t + 1 < n; t++) {
                thought_step(model, k ? "previous" : "next", ids[t], v, h);
                nll[k] += thought_loss_of(model, h, ids[t + 1]);
            }
            words[k] += n - 1;
        }
    }
    s = test_scores(model, data);
    CHECK_INT(s.examples, 6);
    CHECK_INT(s.tokens, (long long)(words[0] + words[1]));
    CHECK_INT(s.tokens, 5 + 5 + 6 + 5 + 5 + 5);
    CHECK_NEAR(s.loss, (nll[0] + nll[1]) / (double)s.tokens, 1e-5);
    CHECK_NEAR(test_metric(&s, "perplexity"), exp(s.loss), 1e-6);
    CHECK_NEAR(test_metric(&s, "perplexity_next"), exp(nll[0] / (double)words[0]), 1e-4);
    CHECK_NEAR(test_metric(&s, "perplexity_previous"), exp(nll[1] / (double)words[1]), 1e-4);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

static int has_no_best(const carnn_progress *progress, void *user) {
    *(int *)user += progress->epoch_ended;
    CHECK(!progress->best);
    return 0;
}

/* Sentences without neighbours have nothing to predict: no epoch is better than another. */
static void test_thought_alone(void) {
    carnn_dataset *data = thought_data("a b\n\nb\n");
    carnn_model *model = test_model("skip-thought", "", NULL, data);
    carnn_train_desc train = test_training(2, 2, 0.02, CARNN_NONE);
    carnn_scores s;
    int ended = 0;
    train.progress = has_no_best;
    train.user = &ended;
    CHECK_INT(carnn_train(model, data, data, &train, NULL), CARNN_OK);
    CHECK_INT(ended, 2);
    CHECK_INT(carnn_model_best_epoch(model), 2); /* the last one is kept */
    s = test_scores(model, data);
    CHECK_INT(s.examples, 2);
    CHECK_INT(s.tokens, 0);
    CHECK_INT(s.unanswerable, 2);
    CHECK_INT(s.count, 0);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

static void test_thought_learns(const char *options) {
    carnn_dataset *data = thought_data("a b\nc d\na b\nc d\n\ne f\ng h\ne f\ng h\n");
    carnn_model *model = test_model("skip-thought", options, NULL, data);
    carnn_scores s;
    CHECK_INT(thought_fit(model, data, 150), CARNN_OK);
    s = test_scores(model, data);
    CHECK(test_metric(&s, "perplexity") < 1.2);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* An ensemble has the mean of its members' probabilities: of a model and itself the same. */
static void test_thought_ensemble(void) {
    carnn_dataset *data = thought_data(thought_text);
    carnn_model *model[2];
    carnn_scores s[3];
    carnn_error error;
    size_t i;
    for (i = 0; i < 2; i++) model[i] = test_model("skip-thought", i ? "seed=2" : "", NULL, data);
    CHECK_INT(carnn_test((const carnn_model *const *)model, 2, data, 1, s, &error), CARNN_OK);
    CHECK(s[2].loss < 0.5 * (s[0].loss + s[1].loss)); /* the logarithm of a mean */
    CHECK(s[2].loss > 0.5 * (s[0].loss + s[1].loss) - log(2.0));
    carnn_model_free(model[1]);
    model[1] = model[0];
    CHECK_INT(carnn_test((const carnn_model *const *)model, 2, data, 1, s, &error), CARNN_OK);
    CHECK_NEAR(s[2].loss, s[0].loss, 1e-6);
    carnn_model_free(model[0]);
    carnn_dataset_free(data);
}

/* --- vectors ---------------------------------------------------------------------------------- */

/* The vector of a sentence, a copy in `to`; returns its columns. */
static size_t thought_vector_of(carnn_session *session, const char *text, float to[32]) {
    carnn_text one = {NULL, 0};
    carnn_prediction p;
    carnn_error error;
    one.at = text;
    one.length = strlen(text);
    CHECK_INT(carnn_session_predict(session, &one, 1, 1, &p, &error), CARNN_OK);
    CHECK_INT(p.kind, CARNN_PREDICTS_VECTOR);
    if (strlen(text) >= 2 * 62) CHECK_INT(p.tokens, 62 + 1); /* no more are read */
    CHECK(p.tokens >= 1 && p.tokens <= CARNN__THOUGHT_WORDS + 1);
    CHECK(p.columns <= 32);
    memcpy(to, p.vector, p.columns * sizeof(float));
    return p.columns;
}

typedef struct thought_told {
    carnn_session *session;
    const carnn_dataset *data;
    size_t count;
} thought_told;

/* A batch has the vectors of a session, bit by bit. */
static void on_vector(const carnn_prediction *p, void *user) {
    static const int tokens[] = {5, 5, 5, 5, 6, 3}; /* with </s> */
    thought_told *told = (thought_told *)user;
    float alone[32];
    CHECK_INT(p->example, told->count++);
    CHECK_INT(p->kind, CARNN_PREDICTS_VECTOR);
    CHECK_INT(p->tokens, tokens[p->example]);
    CHECK_INT(thought_vector_of(told->session, carnn_dataset_text(told->data, p->example, 0),
                                alone),
              p->columns);
    CHECK(!memcmp(alone, p->vector, p->columns * sizeof(float)));
}

static void test_thought_vectors(const char *options, size_t columns) {
    carnn_dataset *data = thought_data(thought_text);
    carnn_model *model = test_model("skip-thought", options, NULL, data);
    carnn_predict_desc how;
    carnn_error error;
    thought_told told;
    float a[32], b[32];
    char longer[2 * 100 + 1];
    size_t i;
    memset(&how, 0, sizeof how);
    memset(&told, 0, sizeof told);
    CHECK_INT(thought_fit(model, data, 2), CARNN_OK);
    CHECK_INT(carnn_session_open(&told.session, model, NULL, &error), CARNN_OK);
    told.data = data;
    how.threads = 2;
    how.example = on_vector;
    how.user = &told;
    CHECK_INT(carnn_predict(model, data, &how, &error), CARNN_OK);
    CHECK_INT(told.count, 6);
    CHECK_INT(thought_vector_of(told.session, "the cat sat .", a), columns);
    thought_vector_of(told.session, "The CAT sat.", b);
    CHECK(!memcmp(a, b, columns * sizeof(float)));
    thought_vector_of(told.session, "the dog sat .", b);
    CHECK(memcmp(a, b, columns * sizeof(float)));
    thought_vector_of(told.session, "", a);
    for (i = 0; i < columns; i++) CHECK(isfinite(a[i]));
    for (i = 0; i < 100; i++) memcpy(longer + 2 * i, i < CARNN__THOUGHT_WORDS ? "a " : "b ", 3);
    thought_vector_of(told.session, longer, a); /* the words behind are not read */
    longer[2 * CARNN__THOUGHT_WORDS] = 0;
    thought_vector_of(told.session, longer, b);
    CHECK(!memcmp(a, b, columns * sizeof(float)));
    longer[2 * CARNN__THOUGHT_WORDS - 2] = 0;
    thought_vector_of(told.session, longer, b);
    CHECK(memcmp(a, b, columns * sizeof(float)));
    carnn_session_free(told.session);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* A prediction as text: its numbers with tabs between them. */
static void test_thought_text(void) {
    static const float vector[] = {0.5f, -2.0f, 1e-3f};
    carnn_dataset *data = thought_data(thought_text);
    carnn_model *model = test_model("skip-thought", "", NULL, data);
    carnn_prediction p;
    char text[32];
    memset(&p, 0, sizeof p);
    p.kind = CARNN_PREDICTS_VECTOR;
    p.vector = vector;
    p.columns = 3;
    CHECK_INT(carnn_prediction_text(model, &p, 0, text, sizeof text), 20);
    CHECK_TEXT(text, "0.5\t-2\t0.00100000005");
    CHECK_INT(carnn_prediction_text(model, &p, 0, text, 7), 20);
    CHECK_TEXT(text, "0.5\t-2");
    CHECK_INT(carnn_prediction_text(model, &p, 0, NULL, 0), 20);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Words that only the word vectors have are read, but neither predicted nor trained. */
static void test_thought_words(void) {
    static const char vectors[] = "cat 1 2 3 4 5\nunicorn 5 4 3 2 1\n";
    carnn_source source = test_source("vectors", vectors, sizeof vectors - 1);
    carnn_dataset *data = thought_data(thought_text);
    carnn_dataset *other = thought_data("the cat sat .\na unicorn .\n");
    carnn_dataset *unknown = thought_data("the cat sat .\na zebra .\n");
    carnn_model *model = NULL;
    carnn_session *session = NULL;
    carnn_model_desc desc;
    carnn_error error;
    float a[32], b[32];
    memset(&desc, 0, sizeof desc);
    desc.task = "skip-thought";
    desc.hidden = 6;
    desc.vectors = &source;
    desc.vector_count = 1;
    CHECK_INT(carnn_model_create(&model, &desc, data, &error), CARNN_OK);
    CHECK_INT(model->desc.embedding, 5);
    CHECK_INT(model->vector_words, 1);
    CHECK_INT(carnn__named(&model->params, "output.bias") != NULL, 1);
    CHECK_INT(thought_fit(model, data, 2), CARNN_OK);
    CHECK_NEAR(test_weight(model, "word.vectors")[0], 5.0, 0.0);
    CHECK_INT(carnn_session_open(&session, model, NULL, &error), CARNN_OK);
    thought_vector_of(session, "a unicorn", a);
    thought_vector_of(session, "a zebra", b);
    CHECK(memcmp(a, b, 6 * sizeof(float)));
    /* as a word to predict it is unknown, like any other; only the vector of its sentence
       differs */
    CHECK_INT(test_scores(model, other).tokens, test_scores(model, unknown).tokens);
    CHECK(test_scores(model, other).loss != test_scores(model, unknown).loss);
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
    carnn_dataset_free(other);
    carnn_dataset_free(unknown);
}

/* --- lines, options --------------------------------------------------------------------------- */

static void test_thought_lines(void) {
    carnn_error error;
    carnn_dataset *data = thought_data(" a\tb | c|d \n\n=x\n");
    CHECK_TEXT(test_spell(data, 1, 0, &error), "?|a\tb | c|d\n?|=x\n");
    data = test_data("skip-thought", "a\n\nb\n", 5, 0, 1);
    CHECK_TEXT(test_spell(data, 1, 0, &error), "?|a\n?|\n?|b\n"); /* an answer for each line */
}

static void test_thought_refuses(void) {
    carnn_dataset *data = thought_data(thought_text);
    carnn_model *model = NULL;
    carnn_model_desc desc;
    carnn_error error;
    memset(&desc, 0, sizeof desc);
    desc.task = "skip-thought";
    desc.cell = "icarnn";
    CHECK_INT(carnn_model_create(&model, &desc, data, &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message, "the cell icarnn reads a context, and a sentence by itself has none: "
                              "it can be the decoder");
    CHECK_INT(carnn_set(&desc, NULL, "decoder", "duo", &error), CARNN_ERR_ARGUMENT);
    CHECK(strstr(error.message, "unknown decoder \"duo\" (rnn, lstm, ") != NULL);
    carnn_dataset_free(data);
}

static void test_thought_memory(void) {
    carnn_dataset *data = thought_data(thought_text);
    carnn_model_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.task = "skip-thought";
    desc.hidden = 6;
    CHECK(test_life_in_memory(desc, data, test_training(1, 2, 0.01, CARNN_NONE)) > 30);
    carnn_dataset_free(data);
}

/* To decoders a word that only the vectors have is an unknown one; it is none to the encoder. */
static void thought_words_of_vectors(void) {
    static const char *const text[] = {"it rained\nmoon moon\n", "it rained\nqqq qqq\n"};
    carnn_source vectors = test_source("v", "sun 1 2\nmoon 2 1\nstar 1 1\n", 26);
    carnn_dataset *data = test_data("skip-thought", "it rained\nwe read\n", 18, 0, 0);
    carnn_model *model = NULL;
    carnn_model_desc desc;
    double next[2], previous[2];
    size_t i;
    memset(&desc, 0, sizeof desc);
    desc.task = "skip-thought";
    desc.hidden = 4;
    desc.vectors = &vectors;
    desc.vector_count = 1;
    CHECK_INT(carnn_model_create(&model, &desc, data, NULL), CARNN_OK);
    CHECK_INT(model->vector_words, 3);
    for (i = 0; i < model->params.size; i++) model->params.value[i] *= 3.0f;
    for (i = 0; i < 2; i++) {
        carnn_dataset *other = test_data("skip-thought", text[i], strlen(text[i]), 0, 0);
        carnn_scores s = test_scores(model, other);
        next[i] = test_metric(&s, "perplexity_next");
        previous[i] = test_metric(&s, "perplexity_previous");
        carnn_dataset_free(other);
    }
    CHECK(next[0] == next[1]);
    CHECK(fabs(previous[0] - previous[1]) > 1e-6);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

int main(void) {
    carnn_dataset *data = thought_data(thought_text);
    carnn_train_desc train = test_training(2, 2, 0.01, 0.2);
    test_thought_loss();
    test_thought_alone();
    test_thought_learns("cell=gru-after");
    test_thought_learns("cell=mi-gru decoder=ncarnn");
    test_thought_ensemble();
    test_thought_vectors("cell=gru-after", 6);
    test_thought_vectors("cell=lstm directions=2 layers=2", 12);
    test_thought_vectors("cell=rnn pooling=max,mean", 12);
    test_thought_text();
    test_thought_words();
    test_thought_lines();
    test_thought_refuses();
    test_thought_memory();
    carnn_model_free(test_trains_alike("skip-thought", "cell=mi-gru decoder=icarnn", data, train));
    carnn_dataset_free(data);
    thought_words_of_vectors();
    return test_end();
}
