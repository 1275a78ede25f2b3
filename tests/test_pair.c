/* Pairs of sentences: the formats of files, the network and its losses by plain loops in doubles,
   metrics by their definitions, bad data, sessions and batches, votes, files. */

#include "test.h"

/* --- data ------------------------------------------------------------------------------------- */

static carnn_status pair_load(carnn_dataset **data, const char *bytes, int grades, int lenient,
                              carnn_error *error) {
    carnn_source source = test_source("f.txt", bytes, strlen(bytes));
    carnn_dataset_desc desc;
    carnn_model_desc model;
    memset(&desc, 0, sizeof desc);
    memset(&model, 0, sizeof model);
    model.task = desc.task = "pair";
    CHECK_INT(carnn_set(&model, NULL, "target", grades ? "relatedness" : "class", error), 0);
    desc.model = grades ? &model : NULL;
    desc.sources = &source;
    desc.source_count = 1;
    desc.lenient = lenient;
    return carnn_dataset_load(data, &desc, error);
}

static carnn_dataset *pair_data(const char *bytes, int grades, int lenient) {
    carnn_dataset *data = NULL;
    carnn_error error;
    if (pair_load(&data, bytes, grades, lenient, &error)) printf("%s\n", error.message);
    CHECK(data != NULL);
    return data;
}

/* All examples as "class or grade|first|second", a line each. */
static const char *pair_read(const char *bytes, int grades, int lenient) {
    carnn_dataset *data;
    carnn_error error;
    pair_load(&data, bytes, grades, lenient, &error);
    return test_spell(data, 2, grades > 0, &error);
}

static const char pair_sick[] =
    "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    "1\tA boy runs\tA child runs\t4.5\tENTAILMENT\n7\tIt rains\tA dog sits\t1\tNEUTRAL\n";

static void pair_formats(void) {
    CHECK_TEXT(pair_read("yes\ta b\tc\nno way\tA\t\"d\"\r\n\r\nyes\t e \tf g", 0, 0),
               "yes|a b|c\nno way|A|\"d\"\nyes|e|f g\n");
    CHECK_TEXT(pair_read(pair_sick, 0, 0),
               "ENTAILMENT|A boy runs|A child runs\nNEUTRAL|It rains|A dog sits\n");
    CHECK_TEXT(pair_read(pair_sick, 1, 0), "4.5|A boy runs|A child runs\n1|It rains|A dog sits\n");
    CHECK_TEXT(pair_read("\xEF\xBB\xBFQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n"
                         "1\t70\t71\tHe said \"no\".\tHe refused.\r\n0\t1\t2\ta\tb\r\n", 0, 0),
               "1|He said \"no\".|He refused.\n0|a|b\n");
    CHECK_TEXT(pair_read("sentence_A\tsentence_B\tentailment_label\na\tb\tx\n", 0, 0), "x|a|b\n");
    CHECK_TEXT(pair_read("gold_label\tsentence1\tsentence2\nx\ta\tb\n", 0, 0), "x|a|b\n");
    CHECK_TEXT(pair_read("id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n0\t1\t2\ta\tb\t1\n",
                         0, 0), "1|a|b\n");
    CHECK_TEXT(pair_read("5\ta\tb\n2.25\tc\td\n", 1, 0), "5|a|b\n2.25|c|d\n");
    CHECK_TEXT(pair_read("label\tfirst\tsecond\n3\ta\tb\n", 1, 0), "3|a|b\n");
    CHECK_TEXT(pair_read("1\t2\t3\t4\t5\t6\t7\t8\t9\t10\t11\t12\t13\t14\t15\tfirst\tsecond\tlabel\n"
                         "\t\t\t\t\t\t\t\t\t\t\t\t\t\t\ta\tb\tx\n", 0, 0), "x|a|b\n");
}

static void pair_lenient(void) {
    CHECK_TEXT(pair_read("a\tb\nx\tc\td\ne\n\n\tf\n\t\n", 0, 1), "?|a|b\nx|c|d\n?|e|\n?||f\n?||\n");
    CHECK_TEXT(pair_read("9\tc\td\n", 1, 1), "0|c|d\n");
    CHECK_TEXT(pair_read("sentence_B\tsentence_A\nc\td\n", 0, 1), "?|d|c\n");
    CHECK_TEXT(pair_read("", 0, 1), "");
}

static void pair_errors(void) {
    char line[8 * CARNN__SENTENCE_WORDS], message[256];
    size_t i, at;
    CHECK_TEXT(pair_read("", 0, 0),
               "f.txt:1: expected a class or grade with two sentences, found an empty file");
    CHECK_TEXT(pair_read("x\ta\tb\nx\ta\n", 0, 0),
               "f.txt:2: expected three columns (label, first, second), found \"x\\ta\"");
    CHECK_TEXT(pair_read("x\ta\tb\tc\n", 0, 0),
               "f.txt:1: expected three columns (label, first, second), found \"x\\ta\\tb\\tc\"");
    CHECK_TEXT(pair_read("\n\t a\tb\n", 0, 0), "f.txt:2: expected a class, found nothing");
    CHECK_TEXT(pair_read("x\ta\tb\ny\t\tb\n", 0, 0),
               "f.txt:2: expected a first sentence of 1 to 512 words, found nothing");
    CHECK_TEXT(pair_read("x\ta\t \n", 0, 0),
               "f.txt:1: expected a second sentence of 1 to 512 words, found nothing");
    CHECK_TEXT(pair_read("4\ta\tb\n5.1\ta\tb\n", 1, 0),
               "f.txt:2: expected a grade from 1 to 5, found \"5.1\"");
    CHECK_TEXT(pair_read("0.9\ta\tb\n", 1, 0),
               "f.txt:1: expected a grade from 1 to 5, found \"0.9\"");
    CHECK_TEXT(pair_read("nan\ta\tb\n", 1, 0),
               "f.txt:1: expected a grade from 1 to 5, found \"nan\"");
    CHECK_TEXT(pair_read("sentence_A\tsentence_B\na\tb\n", 0, 0),
               "f.txt:1: expected a column \"label\", found \"sentence_A\\tsentence_B\"");
    CHECK_TEXT(pair_read("first\tsecond\na\tb\n", 1, 0),
               "f.txt:1: expected a column \"score\", found \"first\\tsecond\"");
    CHECK_TEXT(pair_read("Quality\t#1 String\t#2 String\n1\ta\tb\n1\ta\n", 0, 0),
               "f.txt:3: expected 3 columns with tabs between them, found \"1\\ta\"");
    /* names of columns that do not name all three; a class that is there again is none */
    CHECK_TEXT(pair_read("claim1\tclaim2\tlabel\na\tb\tx\n", 0, 0),
               "f.txt:1: expected columns \"label\", \"sentence1\" and \"sentence2\", found "
               "\"claim1\\tclaim2\\tlabel\"");
    CHECK(strstr(pair_read("\nlabel\tclaim1\tclaim2\nx\ta\tb\n", 0, 0), "f.txt:2: expected "
                 "columns \"label\", \"sentence1\" and") != NULL);
    CHECK(strstr(pair_read("target\tpremise\tclaim\nx\ta\tb\n", 0, 0), "f.txt:1: expected columns "
                 "\"label\", \"sentence1\" and") != NULL);
    CHECK(strstr(pair_read("target\tclaim\thypothesis\nx\ta\tb\n", 0, 0), "f.txt:1: expected "
                 "columns \"label\", \"sentence1\" and") != NULL);
    CHECK_TEXT(pair_read("x\tfirst\tb\ny\ta\tb\nx\tc\td\n", 0, 0), "x|first|b\ny|a|b\nx|c|d\n");
    CHECK_TEXT(pair_read("x\tfirst\tb\ny\ta\tb\n", 0, 1), "x|first|b\ny|a|b\n");
    CHECK_TEXT(pair_read("x\tlabel\tclass\ny\ta\tb\nx\tc\td\n", 0, 0),
               "x|label|class\ny|a|b\nx|c|d\n");
    CHECK_TEXT(pair_read("x\tlabel\tclass\n", 0, 0), "x|label|class\n");
    CHECK_TEXT(pair_read("5\tscore\tgrade\n4\ta\tb\n", 1, 0), "5|score|grade\n4|a|b\n");
    at = (size_t)snprintf(line, sizeof line, "x\t");
    for (i = 0; i <= CARNN__SENTENCE_WORDS; i++)
        at += (size_t)snprintf(line + at, sizeof line - at, "a ");
    snprintf(line + at, sizeof line - at, "\tb\n");
    snprintf(message, sizeof message, "%s", pair_read(line, 0, 0));
    message[57] = 0;
    CHECK_TEXT(message, "f.txt:1: expected a first sentence of 1 to 512 words, fou");
}

/* --- models ----------------------------------------------------------------------------------- */

static const char pair_letters[] =
    "1\ta b a\tb a\n2\ta c c d\te\n1\tb\tb a d\n2\td b a\td a\n2\ta c b\tc d\n1\tb a\ta\n"
    "2\tc\te e a\n1\ta b c d e\te d c b a\n1\td\td\n";

static carnn_status pair_fit(carnn_model *model, const carnn_dataset *data,
                             const carnn_dataset *valid, int64_t epochs, carnn_error *error) {
    carnn_train_desc train = test_training(epochs, 4, 0.02, 0.0);
    return carnn_train(model, data, valid, &train, error);
}

/* --- the network by plain loops in doubles ---------------------------------------------------- */

enum { PAIR_WIDE = 128 };

/* y = W x + b of the layer `name`. */
static void pair_linear(const carnn_model *model, const char *weight, const char *bias,
                        const double *x, size_t in, double *y, size_t out) {
    const float *W = test_weight(model, weight), *b = test_weight(model, bias);
    size_t i, j;
    for (i = 0; i < out; i++) {
        y[i] = (double)b[i];
        for (j = 0; j < in; j++) y[i] += (double)W[i * in + j] * x[j];
    }
}

/* Two highway layers on x (h). */
static void pair_highways(const carnn_model *model, const char *name, double *x, size_t h) {
    char weight[64], bias[64];
    double t[PAIR_WIDE], y[PAIR_WIDE];
    size_t l, i;
    for (l = 1; l <= 2; l++) {
        snprintf(weight, sizeof weight, "%s.%u.gate.weight", name, (unsigned)l);
        snprintf(bias, sizeof bias, "%s.%u.gate.bias", name, (unsigned)l);
        pair_linear(model, weight, bias, x, h, t, h);
        snprintf(weight, sizeof weight, "%s.%u.weight", name, (unsigned)l);
        snprintf(bias, sizeof bias, "%s.%u.bias", name, (unsigned)l);
        pair_linear(model, weight, bias, x, h, y, h);
        for (i = 0; i < h; i++) {
            double gate = 1.0 / (1.0 + exp(1.0 - t[i]));
            x[i] = gate * fmax(y[i], 0.0) + (1.0 - gate) * x[i];
        }
    }
}

/* A text as the sum of its words by additive attention, which the maximum of the other one asks. */
static void pair_weighted(const carnn_model *model, const carnn__pair *m, size_t s, double *v) {
    const carnn__mat *x = carnn__two_states(&m->two);
    const float *W1 = test_weight(model, "attend.weight"), *W2 = test_weight(model, "attend.other");
    const size_t *at = m->two.net.texts.at;
    size_t D = x->columns, h = D / 2, i, j, r;
    double most[PAIR_WIDE], sum = 0.0;
    for (j = 0; j < D; j++) {
        most[j] = -1e30;
        for (r = at[s ^ 1]; r < at[(s ^ 1) + 1]; r++)
            most[j] = fmax(most[j], (double)x->x[r * D + j]);
        v[j] = 0.0;
    }
    for (r = at[s]; r < at[s + 1]; r++) {
        double logit = 0.0;
        for (i = 0; i < h; i++) {
            double a = 0.0;
            for (j = 0; j < D; j++)
                a += (double)W1[i * D + j] * (double)x->x[r * D + j] +
                     (double)W2[i * D + j] * most[j];
            logit += (double)test_weight(model, "attend.vector")[i] * tanh(a);
        }
        sum += exp(logit);
        for (j = 0; j < D; j++) v[j] += exp(logit) * (double)x->x[r * D + j];
    }
    for (j = 0; j < D; j++) v[j] /= sum;
}

/* The largest and the mean state of every column of text s. */
static void pair_pooled(const carnn__pair *m, size_t s, double *v) {
    const carnn__mat *x = carnn__two_states(&m->two);
    const size_t *at = m->two.net.texts.at;
    size_t D = x->columns, j, r, n = at[s + 1] - at[s];
    for (j = 0; j < D; j++) {
        v[j] = -1e30;
        v[D + j] = 0.0;
        for (r = at[s]; r < at[s + 1]; r++) {
            v[j] = fmax(v[j], (double)x->x[r * D + j]);
            v[D + j] += (double)x->x[r * D + j] / (double)n;
        }
    }
}

/* What the encoder reads of input i: word and flag. */
static void pair_input(const carnn_model *model, const carnn__pair *m, size_t i, double *u) {
    size_t h = (size_t)model->desc.hidden, e = (size_t)model->desc.embedding, j;
    size_t word = m->two.net.texts.input[i] / 2, flag = m->two.net.texts.input[i] % 2;
    int told = model->desc.option[CARNN__TWO_OVERLAP] > 0.0;
    double x[PAIR_WIDE];
    for (j = 0; j < e; j++) x[j] = (double)test_weight(model, "word.weight")[word * e + j];
    if (told) {
        x[e] = (double)flag;
        x[e + 1] = flag ? (double)test_weight(model, "word.idf")[word] : 0.0;
    }
    pair_linear(model, "word.project", "word.bias", x, told ? e + 2 : e, u, h);
    pair_highways(model, "below", u, h);
}

/* Probabilities of the choices for encodings a and b (s). */
static void pair_told(const carnn_model *model, const double *a, const double *b, size_t s,
                      size_t K, double *q) {
    size_t h = (size_t)model->desc.hidden, j;
    double f[PAIR_WIDE], y[PAIR_WIDE], D = 0.0, sum = 0.0, S;
    if (model->desc.option[CARNN__PAIR_MODEL] == 2.0) { /* the definition of the distribution */
        for (j = 0; j < s; j++) D += 8.0 / (double)s * fabs(a[j] - b[j]);
        S = fmin(exp(-D), 1.0 - 1e-7); /* of equal sentences */
        for (j = 0; j < K; j++)
            q[j] = tgamma((double)K) / tgamma((double)j + 1.0) / tgamma((double)(K - j)) *
                   pow(S, (double)j) * pow(1.0 - S, (double)(K - 1 - j));
        return;
    }
    for (j = 0; j < s; j++) {
        f[j] = a[j];
        f[s + j] = b[j];
        f[2 * s + j] = a[j] * b[j];
        f[3 * s + j] = a[j] - b[j];
    }
    pair_linear(model, "join.weight", "join.bias", f, 4 * s, y, h);
    pair_highways(model, "above", y, h);
    pair_linear(model, "output.weight", "output.bias", y, h, q, K);
    for (j = 0; j < K; j++) sum += exp(q[j]);
    for (j = 0; j < K; j++) q[j] = exp(q[j]) / sum;
}

/* Every number of a batch; the loss, with the target's distribution by its definition. */
static void pair_by_loops(const char *options, int grades) {
    carnn_dataset *data = pair_data(pair_letters, grades, 0);
    carnn_model *model = test_model("pair", options, NULL, data);
    size_t K = grades ? (size_t)model->desc.option[CARNN__PAIR_GRADES] : model->choices.count;
    int attends = carnn__chosen(model, CARNN__TWO_POOLING) == 1;
    size_t first = carnn__chosen(model, CARNN__TWO_DIRECTION) == 1; /* which is read first */
    size_t h = (size_t)model->desc.hidden, s = (attends ? 2 : 4) * h, i, j;
    double worst = 0.0, loss = 0.0;
    carnn_error error;
    const carnn__pair *m;
    test_work w;
    CHECK_INT(pair_fit(model, data, data, 2, &error), CARNN_OK); /* biases that are not 0 */
    test_work_open(&w, model, data, 1);
    CHECK_INT(test_work_run(&w, 0), 1);
    m = (const carnn__pair *)w.work.state;
    CHECK_INT(m->two.net.texts.count, data->item_count);
    for (i = 0; i < m->two.net.texts.inputs; i++) {
        double u[PAIR_WIDE];
        pair_input(model, m, i, u);
        for (j = 0; j < h; j++)
            worst = test_worse(fabs(u[j] - (double)carnn__two_inputs(&m->two)->x[i * h + j]),
                               worst);
    }
    for (i = 0; i < data->item_count; i++) {
        double a[PAIR_WIDE], b[PAIR_WIDE], q[8], sum = 0.0, y = (double)data->items[i].value;
        const float *z = carnn__pair_output(&w.work).z->x + i * K;
        pair_pooled(m, 2 * i, a);
        pair_pooled(m, 2 * i + 1, b);
        if (attends) pair_weighted(model, m, 2 * i + !first, first ? a : b);
        pair_told(model, a, b, s, K, q);
        for (j = 0; j < K; j++) sum += exp((double)z[j]);
        for (j = 0; j < K; j++)
            worst = test_worse(fabs(q[j] - exp((double)z[j]) / sum), worst);
        for (j = 0; grades && j < K; j++) {
            double low = floor(y), at = (double)j + 1.0;
            double p_j = at == low ? low + 1.0 - y : at == low + 1.0 ? y - low : 0.0;
            if (p_j > 0.0) loss += p_j * log(p_j / q[j]);
        }
        if (!grades) loss -= log(q[m->two.net.target[i]]);
    }
    CHECK_NEAR(worst, 0.0, 2e-5);
    CHECK_NEAR(w.tally.loss / loss, 1.0, 1e-4);
    test_work_close(&w);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

static void pair_numbers(void) {
    pair_by_loops("", 0);
    pair_by_loops("cell=lstm overlap=0", 0);
    pair_by_loops("cell=gru model=manhattan", 0);
    pair_by_loops("cell=scarnn target=relatedness", 1);
    pair_by_loops("model=manhattan target=relatedness grades=4 overlap=0 layers=2", 1);
    pair_by_loops("pooling=attention", 0);
    pair_by_loops("alignment=overlap", 0);
    pair_by_loops("alignment=overlap pooling=attention direction=r2l overlap=0", 0);
    pair_by_loops("alignment=overlap cell=gru model=manhattan target=relatedness layers=2", 1);
}

/* --- metrics by their definitions ------------------------------------------------------------- */

static double pair_mean(const double *x, size_t n) {
    double sum = 0.0;
    size_t i;
    for (i = 0; i < n; i++) sum += x[i];
    return sum / (double)n;
}

static double pair_pearson(const double *x, const double *y, size_t n) {
    double mx = pair_mean(x, n), my = pair_mean(y, n), xx = 0.0, yy = 0.0, xy = 0.0;
    size_t i;
    for (i = 0; i < n; i++) {
        xx += (x[i] - mx) * (x[i] - mx);
        yy += (y[i] - my) * (y[i] - my);
        xy += (x[i] - mx) * (y[i] - my);
    }
    return xy / sqrt(xx) / sqrt(yy);
}

/* How many are smaller, and half of those that are equal. */
static void pair_ranks(const double *x, size_t n, double *rank) {
    size_t i, j;
    for (i = 0; i < n; i++)
        for (rank[i] = 0.5, j = 0; j < n; j++)
            rank[i] += x[j] < x[i] ? 1.0 : x[j] == x[i] ? 0.5 : 0.0;
}

static void pair_grade_metrics(void) {
    static const char grades[] =
        "4.5\ta b\tb a\n1\tc\td e\n4.5\ta\ta\n3.2\tb c d\tb e\n2\ta d\tc\n5\te e\te\n3.2\tb\td b\n"
        "1\ta b\tb a\n4.5\ta\ta\n";
    static const float x[] = {3.0f, 1.0f, 3.0f, 2.0f, -7.0f, 3.0f};
    carnn_dataset *data = pair_data(grades, 1, 0);
    carnn_model *model = test_model("pair", "target=relatedness", NULL, data);
    test_answers a;
    carnn_scores scores;
    carnn_error error;
    double y[64], rank[2][64], squares = 0.0;
    uint32_t order[6];
    size_t i;
    CHECK_INT(pair_fit(model, data, data, 3, &error), CARNN_OK);
    a = test_predict_all(model, data, 1);
    CHECK_INT(a.count, 9);
    for (i = 0; i < a.count; i++) {
        CHECK(a.value[i] >= 1.0 && a.value[i] <= 5.0);
        y[i] = (double)data->items[i].value;
        squares += (a.value[i] - y[i]) * (a.value[i] - y[i]);
        a.value[i] = (double)(float)a.value[i];
    }
    scores = test_scores(model, data);
    CHECK_INT(scores.count, 3);
    CHECK_TEXT(scores.metric[0].name, "pearson");
    CHECK_TEXT(scores.metric[1].name, "spearman");
    CHECK_TEXT(scores.metric[2].name, "mse");
    CHECK(scores.metric[2].lower_is_better && !scores.metric[0].lower_is_better);
    CHECK_NEAR(scores.metric[0].value, pair_pearson(a.value, y, 9), 1e-6);
    pair_ranks(a.value, 9, rank[0]);
    pair_ranks(y, 9, rank[1]);
    CHECK_NEAR(scores.metric[1].value, pair_pearson(rank[0], rank[1], 9), 1e-9);
    CHECK_NEAR(scores.metric[2].value, squares / 9.0, 1e-6);
    carnn__rank_numbers(x, 6, order, rank[0]);
    for (i = 0; i < 6; i++) y[i] = (double)x[i];
    pair_ranks(y, 6, rank[1]);
    for (i = 0; i < 6; i++) CHECK_NEAR(rank[0][i], rank[1][i], 0.0);
    CHECK_NEAR(rank[0][0], 5.0, 0.0);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Accuracy, and F1 of the class whose name comes last, whatever class is met first. */
static void pair_class_metrics(const char *letters) {
    carnn_dataset *data = pair_data(letters, 0, 0);
    carnn_model *model = test_model("pair", "cell=lstm", NULL, data);
    carnn_scores scores;
    carnn_error error;
    test_answers a;
    size_t i, right = 0, both = 0, told = 0, there = 0;
    CHECK_INT(pair_fit(model, data, data, 1, &error), CARNN_OK);
    a = test_predict_all(model, data, 1);
    for (i = 0; i < a.count; i++) {
        const char *name = carnn_model_choice(model, a.choice[i]);
        const char *target = carnn_dataset_target(data, i);
        right += !strcmp(name, target);
        both += !strcmp(name, "2") && !strcmp(target, "2");
        told += !strcmp(name, "2");
        there += !strcmp(target, "2");
    }
    scores = test_scores(model, data);
    CHECK_INT(scores.count, 2);
    CHECK_TEXT(scores.metric[1].name, "f1");
    CHECK_NEAR(scores.metric[0].value, (double)right / (double)a.count, 1e-12);
    CHECK_NEAR(scores.metric[1].value, 2.0 * (double)both / (double)(told + there), 1e-12);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* A model that always says one class, of data that have both or the first alone: F1 is 0 where the
   last class is neither said nor there. */
static void pair_one_answer(void) {
    carnn_dataset *data = pair_data("1\ta\tb\n2\tb\tc\n1\tc\tb\n", 0, 0);
    carnn_dataset *first = pair_data("1\ta\tb\n", 0, 0);
    carnn_model *model = test_model("pair", "", NULL, data);
    float *bias = test_weight(model, "output.bias");
    bias[1] = 100.0f;
    CHECK_NEAR(test_scores(model, data).metric[1].value, 2.0 * 1 / (3 + 1), 1e-12);
    bias[1] = -100.0f;
    CHECK_NEAR(test_scores(model, data).metric[1].value, 0.0, 0.0);
    CHECK_NEAR(test_scores(model, first).metric[1].value, 0.0, 0.0);
    CHECK_NEAR(test_scores(model, first).metric[0].value, 1.0, 0.0);
    carnn_model_free(model);
    carnn_dataset_free(first);
    carnn_dataset_free(data);
}

/* One answer for all: a correlation is 0, not NaN. Three classes: there is no F1. */
static void pair_flat_metrics(void) {
    carnn_dataset *data = pair_data("3\ta\tb\n3\tc\tb\n", 1, 0);
    carnn_model *model = test_model("pair", "target=relatedness", NULL, data);
    carnn_scores scores = test_scores(model, data);
    CHECK_NEAR(scores.metric[0].value, 0.0, 0.0);
    CHECK_NEAR(scores.metric[1].value, 0.0, 0.0);
    carnn_model_free(model);
    carnn_dataset_free(data);
    data = pair_data("x\ta\tb\ny\tc\tb\nz\tc\tb\n", 0, 0);
    model = test_model("pair", "", NULL, data);
    scores = test_scores(model, data);
    CHECK_INT(scores.count, 1);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* --- what a model refuses --------------------------------------------------------------------- */

static void pair_refused(void) {
    static const char one[] = "x\ta\tb\nx\tc\td\n", three[] = "x\ta\tb\ny\ta\tc\nz\tb\ta\n";
    carnn_dataset *data = pair_data(pair_letters, 0, 0), *other = pair_data(three, 0, 0), *ones;
    carnn_model *model = test_model("pair", "", NULL, data), *none;
    const carnn_model *all[1];
    carnn_model_desc desc;
    carnn_scores scores;
    carnn_error error;
    all[0] = model;
    CHECK_INT(carnn_test(all, 1, other, 1, &scores, &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message, "f.txt:1: expected a class that the model knows, found \"x\"");
    CHECK_INT(error.line, 1);
    CHECK_INT(pair_fit(model, data, other, 1, &error), CARNN_ERR_DATA);
    CHECK_INT(test_predict_all(model, other, 1).count, 3); /* to be predicted all the same */
    ones = pair_data(one, 0, 0);
    memset(&desc, 0, sizeof desc);
    desc.task = "pair";
    CHECK_INT(carnn_model_create(&none, &desc, ones, &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message, "f.txt:2: expected a second class to the end, found \"x\"");
    carnn_dataset_free(ones);
    ones = pair_data("a\tb\n", 0, 1);
    CHECK_INT(carnn_model_create(&none, &desc, ones, &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message, "f.txt:1: expected two classes, found nothing");
    carnn_dataset_free(ones);
    CHECK_INT(carnn_set(&desc, NULL, "model", "manhattan", &error), CARNN_OK);
    CHECK_INT(carnn_model_create(&none, &desc, other, &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message, "a pair model needs grades or two classes, found 3 classes");
    carnn_model_free(model);
    /* classes, where the model tells grades */
    model = test_model("pair", "target=relatedness", NULL, data);
    CHECK_INT(pair_fit(model, data, NULL, 1, &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message, "f.txt:1: expected a grade that the model knows, found \"1\"");
    carnn_model_free(model);
    carnn_dataset_free(other);
    /* a grade that is above those of the model; no pairs at all */
    other = pair_data("5\ta\tb\n1\tc\tb\n", 1, 0);
    model = test_model("pair", "target=relatedness grades=4", NULL, data);
    all[0] = model;
    CHECK_INT(carnn_test(all, 1, other, 1, &scores, &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message, "f.txt:1: expected a grade that the model knows, found \"5\"");
    CHECK_INT(error.line, 1);
    carnn_model_free(model);
    model = test_model("pair", "", NULL, data); /* of classes, where the data have grades */
    all[0] = model;
    CHECK_INT(carnn_test(all, 1, other, 1, &scores, &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message, "f.txt:1: expected a class that the model knows, found \"5\"");
    carnn_model_free(model);
    carnn_dataset_free(other);
    other = pair_data("\n", 0, 1);
    memset(&desc, 0, sizeof desc);
    desc.task = "pair";
    CHECK_INT(carnn_model_create(&none, &desc, other, &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message,
               "a pair model needs grades or two classes or more, found 0 classes");
    carnn_dataset_free(other);
    carnn_dataset_free(data);
}

/* --- sessions, threads, SIMD paths, votes, files ---------------------------------------------- */

static void pair_sessions(const char *options, int grades) {
    static const char texts[] = "a b a\tb a\na b a\tc\n" /* have the same first text */
                                "\t\nq\tb\nc\nz z z z\ta b c d e a b c d e\n";
    carnn_dataset *data = pair_data(pair_letters, grades, 0);
    carnn_dataset *asked = pair_data(texts, grades, 1);
    carnn_model *model = test_model("pair", options, NULL, data);
    const char *line = texts;
    carnn_contribution part[8];
    carnn_explanation e;
    carnn_prediction p;
    carnn_session *session;
    carnn_error error;
    test_answers all;
    const float *heat;
    size_t i, k, rows, columns;
    int found;
    CHECK_INT(pair_fit(model, data, data, 5, &error), CARNN_OK);
    all = test_predict_all(model, asked, 1);
    CHECK_INT(all.count, 6);
    CHECK_INT(carnn_session_open(&session, model, NULL, &error), CARNN_OK);
    for (i = 0; i < all.count; i++, line += strcspn(line, "\n") + 1) {
        size_t length = strcspn(line, "\n"), first = carnn__min(strcspn(line, "\t"), length);
        carnn_text text[2];
        text[0].at = line;
        text[0].length = first;
        text[1].at = line + carnn__min(first + 1, length);
        text[1].length = length - carnn__min(first + 1, length);
        CHECK_INT(carnn_session_line(session, line, length, i + 1, 1, &found, &p, &error), 0);
        CHECK(found && test_value(&p) == all.value[i]);
        CHECK_INT(carnn_session_predict(session, text, 2, 1, &p, &error), CARNN_OK);
        CHECK(test_value(&p) == all.value[i]);
        CHECK(all.value[i] == all.value[i]);
        CHECK_INT(carnn_session_example(session, asked, i, 1, &p, &error), CARNN_OK);
        CHECK(test_value(&p) == all.value[i]);
        if (i) continue;
        CHECK_INT(carnn_session_explain(session, 8, part, &e, &error), CARNN_OK);
        CHECK(e.count == 5 && !strcmp(part[3].text, "b") && !strcmp(part[3].role, "second"));
        heat = carnn_session_alignment(session, 1, &rows, &columns);
        CHECK_INT(heat != NULL, strstr(options, "alignment") != NULL);
        if (!heat) {
            double sum = e.rest; /* shares and the rest are 1 for each text */
            for (k = 0; k < 5; k++) sum += part[k].share;
            CHECK_NEAR(sum, 2.0, 1e-5);
            CHECK_INT(e.exact, carnn__cell_is_additive(carnn__cell_number(model->desc.cell)));
            continue;
        }
        CHECK(e.exact && rows == 2 && columns == 3);
        CHECK_NEAR(part[0].share + part[1].share + part[2].share, 1.0, 1e-5);
        CHECK_NEAR(part[3].share + part[4].share, 1.0, 1e-5);
    }
    CHECK_INT(carnn_session_predict(session, NULL, 1, 1, &p, &error), CARNN_ERR_ARGUMENT);
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(asked);
    carnn_dataset_free(data);
}

static void pair_same_bytes(const char *options, int grades) {
    carnn_dataset *data = pair_data(pair_letters, grades, 0);
    carnn_model_free(test_trains_alike("pair", options, data, test_training(3, 4, 0.02, 0.0)));
    carnn_dataset_free(data);
}

/* Alignments from a file: a line of names at the front of the data has none. Two pairs whose words
   are the same differ by what is aligned, in the direction that reads it. */
static void pair_linked(void) {
    static const char text[] = "sentence_A\tsentence_B\tentailment_judgment\n"
                               "a b c\tc d\tx\n\na b c\tc d\ty\na e\te\tx\n";
    carnn_source source, links;
    carnn_dataset_desc desc;
    carnn_model_desc model_desc;
    carnn_dataset *data = NULL, *bad = NULL;
    carnn_model *model = NULL;
    carnn_train_desc train;
    carnn_session *session;
    carnn_prediction p;
    carnn_error error;
    test_answers all;
    size_t i;
    memset(&desc, 0, sizeof desc);
    memset(&model_desc, 0, sizeof model_desc);
    memset(&train, 0, sizeof train);
    source = test_source("f.txt", text, strlen(text));
    links = test_source("f.align", "2-0 0-1\n1-0\n1-0\n", 16);
    desc.task = model_desc.task = "pair";
    desc.sources = &source;
    desc.source_count = 1;
    desc.model = &model_desc;
    desc.alignments = &links;
    model_desc.hidden = model_desc.embedding = 5;
    CHECK_INT(carnn__set_all(&model_desc, NULL, 0, "alignment=file", &error), CARNN_OK);
    CHECK_INT(carnn_dataset_load(&data, &desc, &error), CARNN_OK);
    links = test_source("f.align", "2-0\n1-0\n1-1\n", 12);
    CHECK_INT(carnn_dataset_load(&bad, &desc, &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message,
               "f.align:3: expected i-j, word i of 2 and j of 1 from 0 on, found \"1-1\"");
    CHECK_INT(error.line, 3);
    CHECK_INT(carnn_model_create(&model, &model_desc, data, &error), CARNN_OK);
    CHECK_TEXT(carnn_model_describe(model)->cell, "lstm");
    CHECK_INT(carnn_train(model, data, data, &train, &error), CARNN_OK);
    all = test_predict_all(model, data, 1);
    CHECK(all.value[0] != all.value[1]);
    carnn_model_free(model);
    model = test_model("pair", "", NULL, data); /* does not read what is aligned */
    all = test_predict_all(model, data, 1);
    CHECK_INT(carnn_session_open(&session, model, NULL, &error), CARNN_OK);
    for (i = 0; i < 3; i++) {
        CHECK_INT(carnn_session_example(session, data, i, 1, &p, &error), CARNN_OK);
        CHECK(p.probability[0] == all.value[i]);
    }
    carnn_session_free(session);
    carnn_model_free(model);
    model = NULL;
    CHECK_INT(carnn__set_all(&model_desc, NULL, 0, "encoder=rcrn", &error), CARNN_OK);
    CHECK_INT(carnn_model_create(&model, &model_desc, data, &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message,
               "aligned words mix the states of one RNN: encoder rnn, or alignment none");
    carnn_dataset_free(data);
}

/* A session for short texts reads all links of a pair that has more of them than words. */
static void pair_many_links(void) {
    static const char text[] = "x\ta b\tb a\ny\tc d\te a\n", linked[] = "0-0 1-0 1-1\n0-0\n";
    carnn_source source = test_source("f.txt", text, strlen(text));
    carnn_source links = test_source("f.align", linked, strlen(linked));
    carnn_dataset_desc desc;
    carnn_model_desc model_desc;
    carnn_session_desc session_desc;
    carnn_dataset *data = NULL;
    carnn_model *model = NULL;
    carnn_session *session = NULL;
    carnn_prediction p;
    carnn_error error;
    memset(&desc, 0, sizeof desc);
    memset(&model_desc, 0, sizeof model_desc);
    memset(&session_desc, 0, sizeof session_desc);
    desc.task = model_desc.task = "pair";
    desc.sources = &source;
    desc.source_count = 1;
    desc.model = &model_desc;
    desc.alignments = &links;
    session_desc.words = 2;
    CHECK_INT(carnn__set_all(&model_desc, NULL, 0, "hidden=8 alignment=file overlap=0", &error),
              CARNN_OK);
    CHECK_INT(carnn_dataset_load(&data, &desc, &error), CARNN_OK);
    CHECK_INT(carnn_model_create(&model, &model_desc, data, &error), CARNN_OK);
    CHECK_INT(carnn_session_open(&session, model, &session_desc, &error), CARNN_OK);
    CHECK_INT(carnn_session_example(session, data, 0, 1, &p, &error), CARNN_OK);
    CHECK(p.probability[0] == test_predict_all(model, data, 1).value[0]);
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* The vote on grades tells the mean of the models' grades. A file keeps scores by their names. */
static void pair_kept(void) {
    carnn_dataset *data = pair_data("4\ta b\tb\n1.5\tc\td\n3\ta d\td b\n", 1, 0);
    carnn_model *model[2], *again;
    const carnn_model *all[2];
    carnn_scores scores[3];
    test_answers a[2];
    carnn_error error;
    double squares = 0.0, y;
    size_t i;
    for (i = 0; i < 2; i++) {
        all[i] = model[i] = test_model("pair", i ? "target=relatedness model=manhattan"
                                         : "target=relatedness", NULL, data);
        CHECK_INT(pair_fit(model[i], data, data, 2, &error), CARNN_OK);
        a[i] = test_predict_all(model[i], data, 1);
    }
    CHECK_INT(carnn_test(all, 2, data, 1, scores, &error), CARNN_OK);
    for (i = 0; i < 3; i++) {
        y = 0.5 * (a[0].value[i] + a[1].value[i]) - (double)data->items[i].value;
        squares += y * y / 3.0;
    }
    CHECK_NEAR(scores[2].metric[2].value, squares, 1e-5);
    again = test_reload(model[0]);
    CHECK_INT(carnn_model_scores(again)->count, 3);
    CHECK_TEXT(carnn_model_scores(again)->metric[0].name, "pearson");
    CHECK(carnn_model_scores(again)->metric[2].value == scores[0].metric[2].value);
    CHECK(test_predict_all(again, data, 1).value[1] == a[0].value[1]);
    carnn_model_free(again);
    carnn_model_free(model[0]);
    carnn_model_free(model[1]);
    carnn_dataset_free(data);
}

int main(void) {
    pair_formats();
    pair_lenient();
    pair_errors();
    pair_numbers();
    pair_grade_metrics();
    pair_class_metrics(pair_letters);
    pair_class_metrics(pair_letters + 12); /* the other class comes first */
    pair_one_answer();
    pair_flat_metrics();
    pair_refused();
    pair_sessions("", 0);
    pair_sessions("cell=gru model=manhattan overlap=0", 0);
    pair_sessions("cell=scarnn target=relatedness", 1);
    pair_sessions("cell=ncarnn model=manhattan layers=2 target=relatedness", 1);
    pair_sessions("alignment=overlap", 0);
    pair_sessions("alignment=overlap direction=r2l pooling=attention overlap=0", 0);
    pair_sessions("alignment=overlap model=manhattan target=relatedness cell=gru", 1);
    pair_linked();
    pair_many_links();
    pair_same_bytes("", 0);
    pair_same_bytes("alignment=overlap pooling=attention", 0);
    pair_same_bytes("alignment=overlap model=manhattan target=relatedness layers=2", 1);
    pair_same_bytes("target=relatedness model=manhattan", 1);
    pair_kept();
    return test_end();
}
