/* Ensembles: the mean and the vote by hand, the greedy choice of members on constructed models, one
   file for all, sessions and batches, explanations, what cannot be averaged, damaged files. */

#include "test.h"

#define ENSEMBLE_MODELS 3

static const struct {
    const char *task, *data, *options;
} ensemble_cases[] = {
    {"dialog", "1 hi\thello\n2 some food\tapi\n3 no\tbye\n\n1 food\tapi\n2 hi\thello\n", ""},
    {"classify", "x\ta b c\ny\tb b\nz\tc a a b\nx\ta\n", "cell=gru"},
    {"pair", "x\ta b\tb a\ny\tb\tc c\nx\tc a\tb\n", "cell=lstm"},
    {"pair", "1\ta b\tb a\n2.5\tb\tc c\n5\tc a\tb\n", "target=relatedness"},
    {"answer", "a b\tb a\t1\na b\tc\t0\nc\tb\t0\nc\tc a\t1\n", ""},
    {"cloze", "1 A b C\n2 c A\n3 XXXXX d\tA\t\tA|C|D\n\n1 e B A\n2 f XXXXX\tB\t\tA|B\n", ""},
    {"cloze", "1 A b C\n2 c A\n3 XXXXX d\tA\t\tA|C|D\n", "model=attentive anonymous=0"},
};

/* Three models with random weights, of unlike sizes and vocabularies where the task allows it. */
static void ensemble_models(carnn_model **models, const char *task, const char *options,
                            const carnn_dataset *data) {
    size_t m, i;
    for (m = 0; m < ENSEMBLE_MODELS; m++) {
        carnn_model_desc desc;
        carnn_error error;
        memset(&desc, 0, sizeof desc);
        desc.task = task;
        desc.seed = m + 1;
        desc.hidden = strcmp(task, "answer") ? (int64_t)(4 + m) : 4;
        if (strcmp(task, "dialog")) desc.embedding = 5;
        CHECK_INT(carnn__set_all(&desc, NULL, 0, options, &error), CARNN_OK);
        CHECK_INT(carnn_model_create(&models[m], &desc, data, &error), CARNN_OK);
        for (i = 0; i < models[m]->params.trained; i++)
            if (models[m]->params.value[i] != 0.0f) models[m]->params.value[i] *= 3.0f;
    }
}

static void ensemble_free(carnn_model **models) {
    size_t m;
    for (m = 0; m < ENSEMBLE_MODELS; m++) carnn_model_free(models[m]);
}

static carnn_dataset *ensemble_data(const char *task, const char *options, const char *bytes) {
    carnn_dataset *data = NULL;
    carnn_error error;
    CHECK_INT(test_linked(&data, task, options, test_source("data", bytes, strlen(bytes)), NULL,
                          &error), CARNN_OK);
    return data;
}

static carnn_model *ensemble_made(carnn_model **models, size_t count,
                                  const carnn_ensemble_desc *desc) {
    carnn_model *e = NULL;
    carnn_error error;
    memset(&error, 0, sizeof error);
    CHECK_INT(carnn_model_ensemble(&e, (const carnn_model *const *)models, count, desc, &error),
              CARNN_OK);
    CHECK_TEXT(error.message, "");
    return e;
}

static carnn_model *ensemble_of(carnn_model **models, size_t count, carnn_ensemble_rule rule) {
    carnn_ensemble_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.rule = rule;
    return ensemble_made(models, count, &desc);
}

/* The greedy one, whose members' numbers go to `chosen`. */
static carnn_ensemble_desc ensemble_choosing(const carnn_dataset *valid, size_t *chosen) {
    carnn_ensemble_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.valid = valid;
    desc.greedy = 1;
    desc.threads = 1;
    desc.chosen = chosen;
    return desc;
}

/* Probabilities of all choices of an example, or the score in p[0]; returns how many. */
static size_t ensemble_says(const carnn_model *model, const carnn_dataset *data, size_t example,
                            double *p) {
    carnn_session *session;
    carnn_prediction told;
    carnn_error error;
    size_t i, n;
    CHECK_INT(carnn_session_open(&session, model, NULL, &error), CARNN_OK);
    CHECK_INT(carnn_session_example(session, data, example, 64, &told, &error), CARNN_OK);
    p[0] = told.score;
    n = told.kind == CARNN_PREDICTS_CHOICES ? told.count : 1;
    for (i = 0; i < told.count; i++) p[told.choice[i]] = told.probability[i];
    carnn_session_free(session);
    return n;
}

typedef struct ensemble_told {
    const carnn_model *model;
    const carnn_dataset *data;
    size_t seen;
} ensemble_told;

/* What a batch says is what a session says, bit by bit. */
static void ensemble_compare(const carnn_prediction *told, void *user) {
    ensemble_told *t = (ensemble_told *)user;
    double p[64];
    size_t i;
    ensemble_says(t->model, t->data, told->example, p);
    if (told->kind == CARNN_PREDICTS_SCORE) CHECK(told->score == p[0]);
    for (i = 0; i < told->count; i++) CHECK(told->probability[i] == p[told->choice[i]]);
    t->seen++;
}

/* The mean of what three sessions say, and of what they vote for, summed up in doubles. */
static void ensemble_by_hand(size_t number) {
    const char *task = ensemble_cases[number].task, *options = ensemble_cases[number].options;
    carnn_dataset *data = ensemble_data(task, options, ensemble_cases[number].data);
    carnn_model *models[ENSEMBLE_MODELS], *e, *v = NULL;
    size_t examples = carnn_dataset_examples(data), i, m, k, n = 0, parameters = 0;
    int chooses = number < 3 || number > 4;
    double right = 0.0;
    ensemble_told told;
    carnn_predict_desc desc;
    ensemble_models(models, task, options, data);
    for (m = 0; m < ENSEMBLE_MODELS; m++) parameters += carnn_model_parameters(models[m]);
    e = ensemble_of(models, ENSEMBLE_MODELS, CARNN_ENSEMBLE_MEAN);
    if (chooses) v = ensemble_of(models, ENSEMBLE_MODELS, CARNN_ENSEMBLE_VOTE);
    CHECK_INT(carnn_model_parameters(e), parameters);
    for (i = 0; i < examples; i++) {
        double own[64], found[64], sum[64] = {0.0}, votes[64] = {0.0};
        size_t best = 0, target;
        for (m = 0; m < ENSEMBLE_MODELS; m++) {
            n = ensemble_says(models[m], data, i, own);
            for (k = best = 0; k < n; k++) {
                sum[k] += own[k] / ENSEMBLE_MODELS;
                if (own[k] > own[best]) best = k;
            }
            votes[best] += 1.0;
        }
        CHECK_INT(ensemble_says(e, data, i, found), n);
        for (k = best = 0; k < n; k++) {
            CHECK_NEAR(found[k], sum[k], 2e-6 * (1.0 + fabs(sum[k])));
            if (sum[k] > sum[best]) best = k;
        }
        for (target = 0; chooses && target < n; target++) {
            const char *name = carnn_dataset_target(data, i);
            const char *all;
            carnn__words w;
            size_t at = 0;
            if (strcmp(task, "cloze")) {
                if (!strcmp(carnn_model_choice(e, target), name)) break;
                continue;
            }
            all = carnn_dataset_text(data, i, carnn_dataset_text_count(data, i) - 1);
            w = carnn__words_of(CARNN__CANDIDATES, carnn__span_of(all));
            while (carnn__next_word(&w) && at++ < target) continue;
            if (!strncmp(w.word.at, name, w.word.length)) break;
        }
        right += best == target;
        if (!chooses) continue;
        ensemble_says(v, data, i, found);
        for (k = 0; k < n; k++)
            CHECK_NEAR(found[k], (votes[k] + sum[k]) / (ENSEMBLE_MODELS + 1.0), 2e-6);
    }
    if (chooses) CHECK_NEAR(test_scores(e, data).metric[0].value, right / (double)examples, 1e-9);
    memset(&desc, 0, sizeof desc);
    desc.threads = 1;
    desc.top = 64;
    desc.example = ensemble_compare;
    desc.user = &told;
    for (m = 0; m < 2; m++) {
        told.model = m ? v : e;
        told.data = data;
        told.seen = 0;
        if (told.model) CHECK_INT(carnn_predict(told.model, data, &desc, NULL), CARNN_OK);
        if (told.model) CHECK_INT(told.seen, examples);
    }
    carnn_model_free(e);
    carnn_model_free(v);
    ensemble_free(models);
    carnn_dataset_free(data);
}

/* A model with itself is the model, where no probability is too small for a float. */
static void ensemble_of_one(size_t number) {
    const char *task = ensemble_cases[number].task, *options = ensemble_cases[number].options;
    carnn_dataset *data = ensemble_data(task, options, ensemble_cases[number].data);
    carnn_model *models[ENSEMBLE_MODELS], *twice[2], *e;
    carnn_scores one, both;
    size_t i;
    ensemble_models(models, task, options, data);
    for (i = 0; i < models[1]->params.trained; i++) models[1]->params.value[i] /= 3.0f;
    twice[0] = twice[1] = models[1];
    e = ensemble_of(twice, 2, CARNN_ENSEMBLE_MEAN);
    one = test_scores(models[1], data);
    both = test_scores(e, data);
    CHECK_NEAR(both.loss, one.loss, 1e-6 * one.loss);
    CHECK_NEAR(both.metric[0].value, one.metric[0].value, 1e-5);
    carnn_model_free(e);
    ensemble_free(models);
    carnn_dataset_free(data);
}

/* Replies that are no candidates have no loss, also where all are such. */
static void ensemble_unknown_replies(void) {
    static const char *const texts[] = {"1 a\tb\n2 c\tnew\n", "1 a\tnew\n2 c\tnewer\n"};
    carnn_dataset *data = test_data("dialog", "1 a\tb\n2 c\td\n", 12, 0, 0), *other;
    carnn_model *model = test_model("dialog", "hidden=5 embedding=5", NULL, data);
    carnn_model *twice[2], *e;
    carnn_scores one, both;
    size_t i;
    twice[0] = twice[1] = model;
    e = ensemble_of(twice, 2, CARNN_ENSEMBLE_MEAN);
    for (i = 0; i < 2; i++) {
        other = test_data("dialog", texts[i], strlen(texts[i]), 0, 0);
        one = test_scores(model, other);
        both = test_scores(e, other);
        CHECK(i ? one.loss == 0.0 : one.loss > 0.0);
        CHECK_NEAR(both.loss, one.loss, 1e-6);
        CHECK_INT(one.unanswerable, i + 1);
        CHECK_INT(both.unanswerable, i + 1);
        carnn_dataset_free(other);
    }
    carnn_model_free(e);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Of a language model the probability of each word is averaged. An empty sentence is one word, its
   end, so that exp(-score) is its probability. */
static void ensemble_of_words(void) {
    static const char text[] = "a b a\n\n\t\nb a\n=\na\n";
    carnn_dataset *data = test_data("lm", text, sizeof text - 1, 0, 1);
    carnn_model *models[ENSEMBLE_MODELS], *e;
    carnn_session *session, *own[ENSEMBLE_MODELS];
    carnn_explanation explained;
    carnn_prediction p;
    carnn_sampling how;
    carnn_text empty = {"", 0}, words = {"a b a b", 7};
    carnn_error error;
    ensemble_told told;
    carnn_predict_desc desc;
    double mean = 0.0;
    size_t m;
    ensemble_models(models, "lm", "min_count=1 hidden=4", data);
    e = ensemble_of(models, ENSEMBLE_MODELS, CARNN_ENSEMBLE_MEAN);
    CHECK_INT(carnn_session_open(&session, e, NULL, &error), CARNN_OK);
    for (m = 0; m < ENSEMBLE_MODELS; m++)
        CHECK_INT(carnn_session_open(&own[m], models[m], NULL, &error), CARNN_OK);
    for (m = 0; m < ENSEMBLE_MODELS; m++) { /* behind the context of another sentence */
        CHECK_INT(carnn_session_predict(own[m], &words, 1, 1, &p, &error), CARNN_OK);
        CHECK_INT(carnn_session_predict(own[m], &empty, 1, 1, &p, &error), CARNN_OK);
        mean += exp(-p.score) / ENSEMBLE_MODELS;
        carnn_session_free(own[m]);
    }
    CHECK_INT(carnn_session_predict(session, &words, 1, 1, &p, &error), CARNN_OK);
    CHECK_INT(carnn_session_predict(session, &empty, 1, 1, &p, &error), CARNN_OK);
    CHECK_INT(p.tokens, 1);
    CHECK_NEAR(exp(-p.score), mean, 1e-6);
    CHECK_INT(carnn_session_explain(session, 0, NULL, &explained, &error), CARNN_ERR_ARGUMENT);
    CHECK(strstr(error.message, "does not explain") != NULL);
    memset(&how, 0, sizeof how);
    CHECK_INT(carnn_session_generate(session, &how, "", 0, NULL, 0, &error), CARNN_ERR_ARGUMENT);
    CHECK(strstr(error.message, "does not generate") != NULL);
    carnn_session_free(session);
    memset(&desc, 0, sizeof desc);
    memset(&told, 0, sizeof told);
    told.model = e;
    told.data = data;
    desc.threads = 1;
    desc.example = ensemble_compare;
    desc.user = &told;
    CHECK_INT(carnn_predict(e, data, &desc, &error), CARNN_OK);
    CHECK_INT(told.seen, carnn_dataset_examples(data));
    carnn_model_free(e);
    ensemble_free(models);
    carnn_dataset_free(data);
}

/* Models that choose a class for each row do not vote with one that chooses for all rows. */
static void ensemble_of_rows(void) {
    static const char rows[] = "a,1\nb,2\na,3\n";
    const carnn_model *pair[2];
    carnn_model *models[2], *e = NULL;
    carnn_dataset *data;
    carnn_source source = test_source("rows", rows, sizeof rows - 1);
    carnn_ensemble_desc desc;
    carnn_scores scores[3];
    carnn_error error;
    size_t i;
    memset(&desc, 0, sizeof desc);
    CHECK_INT(test_linked(&data, "signal", "columns=1", source, NULL, &error), CARNN_OK);
    for (i = 0; i < 2; i++)
        pair[i] = models[i] = test_model("signal", i ? "columns=1 embedding=1 target_kind=steps"
                                                     : "columns=1 embedding=1", NULL, data);
    for (i = 0; i < 2; i++) {
        pair[0] = models[i];
        pair[1] = models[!i];
        CHECK_INT(carnn_model_ensemble(&e, pair, 2, &desc, &error), CARNN_ERR_ARGUMENT);
        CHECK_TEXT(error.message, "model 1 and model 2 cannot be averaged: they were not made with "
                   "the same --target_kind");
        CHECK_INT(carnn_test(pair, 2, data, 1, scores, &error), CARNN_ERR_ARGUMENT);
    }
    for (i = 0; i < 2; i++) carnn_model_free(models[i]);
    carnn_dataset_free(data);
}

/* Members read the pieces of a text together, so these are to be of the same words and length. */
static void ensemble_of_pieces(void) {
    static const char text[] = "a b a\nb a\n";
    static const char *const others[][2] = {
        {"chunk=3", "chunk"}, {"chunk=2 lower=1", "lower"}, {"chunk=2 unit=char", "unit"}};
    carnn_dataset *data = test_data("lm", text, sizeof text - 1, 0, 1);
    carnn_dataset *letters = test_data("lm", "ab\n", 3, 0, 1); /* the same list of words */
    carnn_model *e = NULL;
    const carnn_model *pair[2];
    carnn_ensemble_desc desc;
    carnn_error error;
    char options[120];
    size_t i;
    memset(&desc, 0, sizeof desc);
    for (i = 0; i < sizeof others / sizeof *others; i++) {
        carnn_model *models[2];
        carnn_scores scores[3];
        snprintf(options, sizeof options, "min_count=1 %s", others[i][0]);
        pair[0] = models[0] = test_model("lm", "min_count=1 chunk=2", NULL, data);
        pair[1] = models[1] = test_model("lm", options, NULL, i == 2 ? letters : data);
        snprintf(options, sizeof options, "model 1 and model 2 cannot be averaged: they were not "
                 "made with the same --%s", others[i][1]);
        CHECK_INT(carnn_model_ensemble(&e, pair, 2, &desc, &error), CARNN_ERR_ARGUMENT);
        CHECK_TEXT(error.message, options);
        CHECK_INT(carnn_test(pair, 2, data, 1, scores, &error), CARNN_ERR_ARGUMENT);
        carnn_model_free(models[0]);
        carnn_model_free(models[1]);
    }
    carnn_dataset_free(letters);
    carnn_dataset_free(data);
}

/* --- the greedy choice ------------------------------------------------------------------------ */

/* A model that gives every text the same probabilities: all weights zero but the last bias. */
static carnn_model *ensemble_constant(const carnn_dataset *data, const char *task,
                                      const double *p, size_t first, size_t count) {
    carnn_model_desc desc;
    carnn_model *model = NULL;
    carnn_error error;
    float *bias;
    size_t i;
    memset(&desc, 0, sizeof desc);
    desc.task = task;
    desc.hidden = desc.embedding = 3;
    desc.min_count = 1;
    CHECK_INT(carnn_model_create(&model, &desc, data, &error), CARNN_OK);
    memset(model->params.value, 0, model->params.size * sizeof(float));
    bias = carnn__named(&model->params, "output.bias");
    for (i = 0; i < first; i++) bias[i] = -60.0f;
    for (i = 0; i < count; i++) bias[first + i] = (float)log(p[i]);
    return model;
}

/* 3 texts of class a, 2 of b, 5 of c. A and D say a, B says b, but A and B together say c. */
static void ensemble_greedy(void) {
    static const char text[] = "a\t1\na\t2\na\t3\nb\t4\nb\t5\nc\t6\nc\t7\nc\t8\nc\t9\nc\t0\n";
    static const double says[4][3] = {
        {0.10, 0.50, 0.40}, {0.50, 0.10, 0.40}, {0.90, 0.05, 0.05}, {0.3, 0.4, 0.3}};
    carnn_dataset *data = test_read("classify", text);
    carnn_model *models[4], *e = NULL;
    size_t chosen[4] = {9, 9, 9, 9}, m;
    carnn_ensemble_desc desc;
    carnn_error error;
    for (m = 0; m < 4; m++) models[m] = ensemble_constant(data, "classify", says[m], 0, 3);
    desc = ensemble_choosing(data, chosen);
    e = ensemble_made(models, 4, &desc);
    CHECK_INT(carnn_model_member(e, 1) != NULL, 1);
    CHECK(carnn_model_member(e, 2) == NULL); /* 2 is no better than 1, 3 no better than both */
    CHECK_INT(chosen[0], 1);
    CHECK_INT(chosen[1], 0);
    CHECK_NEAR(carnn_model_scores(e)->metric[0].value, 0.5, 1e-12);
    CHECK_NEAR(carnn_model_scores(e)->loss, -log(0.3) * 0.5 - log(0.4) * 0.5, 1e-5);
    carnn_model_free(e);
    desc.greedy = 0;
    desc.share = 0.7; /* int(0.7 * 4) = 2: of equal ones the first */
    e = ensemble_made(models, 4, &desc);
    CHECK_INT(chosen[0], 1);
    CHECK_INT(chosen[1], 2);
    CHECK(carnn_model_member(e, 2) == NULL);
    carnn_model_free(e);
    desc.share = 0.01;
    e = ensemble_made(models, 4, &desc);
    CHECK(carnn_model_member(e, 1) == NULL);
    carnn_model_free(e);
    desc.valid = NULL;
    CHECK_INT(carnn_model_ensemble(&e, (const carnn_model *const *)models, 4, &desc, &error),
              CARNN_ERR_ARGUMENT);
    CHECK(e == NULL);
    for (m = 0; m < 4; m++) carnn_model_free(models[m]);
    carnn_dataset_free(data);
}

/* Of several models each is scored by itself beside their vote, batch after batch: macro F1 counts
   the texts of each, and an ensemble among them keeps its rule. */
static void ensemble_many_batches(void) {
    static const double says[3][2] = {{0.1, 0.9}, {0.6, 0.4}, {0.9, 0.1}};
    char text[100 * 5 + 1];
    const carnn_model *tested[50];
    carnn_model *models[3], *most[3], *e;
    carnn_dataset *data, *few;
    carnn_ensemble_desc desc;
    carnn_scores s[4];
    size_t i;
    for (i = 0; i < 100; i++) sprintf(text + 5 * i, "%c\tw \n", i < 70 ? 'a' : 'b');
    data = test_read("classify", text);
    for (i = 0; i < 3; i++)
        tested[i] = models[i] = ensemble_constant(data, "classify", says[i], 0, 2);
    CHECK_INT(carnn_test(tested, 3, data, 1, s, NULL), CARNN_OK);
    for (i = 0; i < 4; i++) { /* the first says b, the others and the vote a */
        CHECK_NEAR(test_metric(&s[i], "accuracy"), i ? 0.7 : 0.3, 1e-12);
        CHECK_NEAR(test_metric(&s[i], "macro_f1"), i ? 70.0 / 170.0 : 30.0 / 130.0, 1e-12);
    }
    few = test_data("classify", "a\tw z\n", 6, 0, 0);
    CHECK_INT(carnn_test(tested, 3, few, 1, s, NULL), CARNN_OK);
    for (i = 0; i < 4; i++) CHECK_NEAR(s[i].unknown, 0.5, 1e-12);
    for (i = 0; i < 50; i++) tested[i] = models[0];
    desc = ensemble_choosing(few, NULL);
    desc.greedy = 0;
    desc.share = 0.58; /* times 50 is below 29, as a double */
    CHECK_INT(carnn_model_ensemble(&e, tested, 50, &desc, NULL), CARNN_OK);
    CHECK_INT(e->member_count, 29);
    carnn_model_free(e);
    carnn_dataset_free(few);
    most[0] = models[0]; /* their mean would say b */
    most[1] = most[2] = models[1];
    tested[0] = e = ensemble_of(most, 3, CARNN_ENSEMBLE_VOTE);
    CHECK_INT(carnn_test(tested, 2, data, 1, s, NULL), CARNN_OK);
    CHECK_NEAR(test_metric(&s[0], "accuracy"), 0.7, 1e-12);
    carnn_model_free(e);
    for (i = 0; i < 3; i++) carnn_model_free(models[i]);
    carnn_dataset_free(data);
}

/* Perplexity is better where it is lower: the second model, with which the first makes it worse. */
static void ensemble_lower(void) {
    static const char text[] = "a a a a\na a\n";
    static const double says[2][2] = {{0.9, 0.1}, {0.25, 0.75}}; /* of </s> and a */
    carnn_dataset *data = test_read("lm", text);
    carnn_model *models[2], *e = NULL;
    size_t chosen[2] = {9, 9}, m, i;
    carnn_ensemble_desc desc;
    for (m = 0; m < 2; m++) {
        float *bias;
        models[m] = ensemble_constant(data, "lm", says[m], 0, 0);
        bias = carnn__named(&models[m]->params, "output.bias");
        for (i = 0; i < models[m]->words.count; i++) bias[i] = -60.0f;
        bias[carnn__names_find(&models[m]->words, carnn__span_of("</s>"))] = (float)log(says[m][0]);
        bias[carnn__names_find(&models[m]->words, carnn__span_of("a"))] = (float)log(says[m][1]);
    }
    desc = ensemble_choosing(data, chosen);
    e = ensemble_made(models, 2, &desc);
    CHECK_INT(chosen[0], 1);
    CHECK(carnn_model_member(e, 1) == NULL);
    CHECK_NEAR(carnn_model_scores(e)->metric[0].value,
               exp(-(6.0 * log(0.75) + 2.0 * log(0.25)) / 8.0), 1e-4);
    carnn_model_free(e);
    desc.greedy = 0;
    e = ensemble_made(models, 2, &desc);
    CHECK_NEAR(carnn_model_scores(e)->metric[0].value,
               exp(-(6.0 * log(0.425) + 2.0 * log(0.575)) / 8.0), 1e-4);
    carnn_model_free(e);
    for (m = 0; m < 2; m++) carnn_model_free(models[m]);
    carnn_dataset_free(data);
}

/* --- explanations ----------------------------------------------------------------------------- */

/* Each number is the mean of the members'; what they add up to is the mean of the members' sums. */
static void ensemble_explains(size_t number) {
    const char *task = ensemble_cases[number].task, *options = ensemble_cases[number].options;
    carnn_dataset *data = ensemble_data(task, options, ensemble_cases[number].data);
    carnn_model *models[ENSEMBLE_MODELS], *e;
    carnn_session *session[ENSEMBLE_MODELS + 1];
    carnn_contribution part[ENSEMBLE_MODELS + 1][64];
    carnn_explanation x[ENSEMBLE_MODELS + 1];
    carnn_prediction p;
    carnn_error error;
    double sum = 0.0, probability = 0.0, rest = 0.0;
    size_t m, r, chosen = 0;
    ensemble_models(models, task, options, data);
    e = ensemble_of(models, ENSEMBLE_MODELS, CARNN_ENSEMBLE_MEAN);
    for (m = ENSEMBLE_MODELS + 1; m-- > 0;) { /* the ensemble first: it says what to explain */
        CHECK_INT(carnn_session_open(&session[m], m < ENSEMBLE_MODELS ? models[m] : e, NULL,
                                     &error), CARNN_OK);
        CHECK_INT(carnn_session_example(session[m], data, 0, 1, &p, &error), CARNN_OK);
        if (p.count && m == ENSEMBLE_MODELS) chosen = p.choice[0], probability = p.probability[0];
        if (p.count) carnn__net_of(&session[m]->work)->best[0] = chosen;
        CHECK_INT(carnn_session_explain(session[m], 64, part[m], &x[m], &error), CARNN_OK);
    }
    CHECK_INT(x[ENSEMBLE_MODELS].count, x[0].count);
    for (r = 0; r < x[0].count; r++) {
        double score = 0.0, attention = 0.0, share = 0.0;
        for (m = 0; m < ENSEMBLE_MODELS; m++) {
            score += part[m][r].score / ENSEMBLE_MODELS;
            attention += part[m][r].attention / ENSEMBLE_MODELS;
            share += part[m][r].share / ENSEMBLE_MODELS;
        }
        CHECK_NEAR(part[ENSEMBLE_MODELS][r].score, score, 1e-9);
        CHECK_NEAR(part[ENSEMBLE_MODELS][r].attention, attention, 1e-9);
        CHECK_NEAR(part[ENSEMBLE_MODELS][r].share, share, 1e-9);
        sum += part[ENSEMBLE_MODELS][r].score;
    }
    CHECK_INT(x[ENSEMBLE_MODELS].exact, x[0].exact);
    for (m = 0; m < ENSEMBLE_MODELS; m++) rest += x[m].rest / ENSEMBLE_MODELS;
    CHECK_NEAR(x[ENSEMBLE_MODELS].rest, strcmp(task, "cloze") ? rest : 0.0, 1e-6);
    if (!strcmp(task, "cloze") && !*options) CHECK(sum > 0.0 && sum <= probability + 1e-6);
    for (m = 0; m <= ENSEMBLE_MODELS; m++) carnn_session_free(session[m]);
    carnn_model_free(e);
    ensemble_free(models);
    carnn_dataset_free(data);
}

/* Scores of a vote add up to a mean: the explanation says so, however much is asked for. */
static void ensemble_explains_vote(void) {
    const char *task = ensemble_cases[0].task, *options = ensemble_cases[0].options;
    carnn_dataset *data = ensemble_data(task, options, ensemble_cases[0].data);
    carnn_model *models[ENSEMBLE_MODELS], *e;
    carnn_session *session;
    carnn_contribution part[64];
    carnn_explanation all, none;
    carnn_prediction p;
    carnn_error error;
    ensemble_models(models, task, options, data);
    e = ensemble_of(models, ENSEMBLE_MODELS, CARNN_ENSEMBLE_VOTE);
    CHECK_INT(carnn_session_open(&session, e, NULL, &error), CARNN_OK);
    CHECK_INT(carnn_session_example(session, data, 0, 1, &p, &error), CARNN_OK);
    CHECK_INT(carnn_session_explain(session, 64, part, &all, &error), CARNN_OK);
    CHECK(all.count > 0 && part[0].has & CARNN_HAS_SCORE && !all.exact);
    CHECK_INT(carnn_session_explain(session, 0, NULL, &none, &error), CARNN_OK);
    CHECK_INT(none.exact, 0);
    CHECK_INT(none.count, all.count);
    CHECK_NEAR(none.rest, all.rest, 1e-9);
    carnn_session_free(session);
    carnn_model_free(e);
    ensemble_free(models);
    carnn_dataset_free(data);
}

/* So it is where a text has no words, and so there is no score at all. */
static void ensemble_explains_empty_text(void) {
    const carnn_text texts[] = {{"", 0}, {"XXXXX e b", 9}, {"a|b", 3}};
    carnn_dataset *data = ensemble_data("cloze", "", carnn__task_named("cloze")->sample);
    carnn_ensemble_rule rule;
    carnn_model *models[ENSEMBLE_MODELS], *e;
    carnn_session *session;
    carnn_explanation x;
    carnn_prediction p;
    carnn_error error;
    int vote;
    ensemble_models(models, "cloze", "hidden=5 embedding=5", data);
    for (vote = 0; vote < 2; vote++) {
        rule = vote ? CARNN_ENSEMBLE_VOTE : CARNN_ENSEMBLE_MEAN;
        e = ensemble_of(models, ENSEMBLE_MODELS, rule);
        CHECK_INT(carnn_session_open(&session, e, NULL, &error), CARNN_OK);
        CHECK_INT(carnn_session_predict(session, texts, 3, 1, &p, &error), CARNN_OK);
        CHECK_INT(carnn_session_explain(session, 0, NULL, &x, &error), CARNN_OK);
        CHECK_INT(x.count, 0);
        CHECK_INT(p.probability[0] > 0.1, vote);
        CHECK_INT(x.exact, !vote);
        carnn_session_free(session);
        carnn_model_free(e);
    }
    ensemble_free(models);
    carnn_dataset_free(data);
}

/* An ensemble has 64 models at most. */
static void ensemble_largest(void) {
    static const double p[] = {0.25, 0.5, 0.25};
    carnn_dataset *data = ensemble_data("classify", "", "a\tx\nb\tx\nc\tx\n");
    carnn_model *model = ensemble_constant(data, "classify", p, 0, 3), *e, *again;
    const carnn_model *all[65];
    carnn_ensemble_desc desc;
    carnn_error error;
    size_t i;
    memset(&desc, 0, sizeof desc);
    for (i = 0; i < 65; i++) all[i] = model;
    CHECK_INT(carnn_model_ensemble(&e, all, 65, &desc, &error), CARNN_ERR_ARGUMENT);
    CHECK(!e);
    CHECK_INT(carnn_model_ensemble(&e, all, CARNN_MEMBERS_MAX, &desc, &error), CARNN_OK);
    again = test_reload(e);
    CHECK(carnn_model_member(again, 63) && !carnn_model_member(again, 64));
    CHECK_NEAR(test_scores(again, data).loss, -log(0.25) * 2.0 / 3.0 - log(0.5) / 3.0, 1e-5);
    carnn_model_free(again);
    carnn_model_free(e);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* It is exact only where all members are, in any order. */
static void ensemble_explains_unlike(void) {
    const char *task = ensemble_cases[0].task;
    carnn_dataset *data = ensemble_data(task, "", ensemble_cases[0].data);
    static const char *const cells[] = {"icarnn", "ncarnn", "lstm"};
    carnn_model *models[3], *pair[2], *e;
    carnn_session *session;
    carnn_contribution part[64];
    carnn_explanation x;
    carnn_prediction p;
    size_t i, k;
    for (i = 0; i < 3; i++) {
        char options[64];
        snprintf(options, sizeof options, "hidden=5 embedding=5 hops=0 cell=%s", cells[i]);
        models[i] = test_model(task, options, NULL, data);
    }
    for (i = 0; i < 3; i++)
        for (k = 0; k < 3; k++) {
            pair[0] = models[i];
            pair[1] = models[k];
            e = ensemble_of(pair, 2, CARNN_ENSEMBLE_MEAN);
            CHECK_INT(carnn_session_open(&session, e, NULL, NULL), CARNN_OK);
            CHECK_INT(carnn_session_example(session, data, 1, 1, &p, NULL), CARNN_OK);
            CHECK_INT(carnn_session_explain(session, 64, part, &x, NULL), CARNN_OK);
            CHECK_INT(x.exact, i < 2 && k < 2);
            carnn_session_free(session);
            carnn_model_free(e);
        }
    for (i = 0; i < 3; i++) carnn_model_free(models[i]);
    carnn_dataset_free(data);
}

/* Of gated hops attention alone can be told, of others scores, too: there is no mean of these. */
static void ensemble_explains_nothing(void) {
    const char *task = ensemble_cases[0].task;
    carnn_dataset *data = ensemble_data(task, "", ensemble_cases[0].data);
    carnn_model *pair[2], *e;
    carnn_session *session;
    carnn_contribution part[64];
    carnn_explanation x;
    carnn_prediction p;
    carnn_error error;
    pair[0] = test_model(task, "hidden=5 embedding=5 hops=1", NULL, data);
    pair[1] = test_model(task, "hidden=5 embedding=5 hops=1 gated=1", NULL, data);
    e = ensemble_of(pair, 2, CARNN_ENSEMBLE_MEAN);
    CHECK_INT(carnn_session_open(&session, e, NULL, NULL), CARNN_OK);
    CHECK_INT(carnn_session_example(session, data, 1, 1, &p, NULL), CARNN_OK);
    CHECK_INT(carnn_session_explain(session, 64, part, &x, &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message, "members 1 and 2 of the ensemble explain different things: each does "
               "by itself");
    CHECK_INT(x.count, 0);
    carnn_session_free(session);
    carnn_model_free(e);
    carnn_model_free(pair[0]);
    carnn_model_free(pair[1]);
    carnn_dataset_free(data);
}

/* An ensemble compares candidates where one of its members does, whichever that is. */
static void ensemble_compares(void) {
    carnn_dataset *data = ensemble_data("answer", "", ensemble_cases[4].data);
    carnn_model *pair[2], *e;
    carnn_session *session;
    size_t i;
    for (i = 0; i < 3; i++) {
        pair[0] = test_model("answer", i == 1 ? "" : "redundancy=0 place=0", NULL, data);
        pair[1] = test_model("answer", i == 2 ? "" : "redundancy=0 place=0", NULL, data);
        e = ensemble_of(pair, 2, CARNN_ENSEMBLE_MEAN);
        CHECK_INT(carnn_session_open(&session, e, NULL, NULL), CARNN_OK);
        CHECK_INT(carnn_session_compares(session), i > 0);
        carnn_session_free(session);
        carnn_model_free(e);
        carnn_model_free(pair[0]);
        carnn_model_free(pair[1]);
    }
    carnn_dataset_free(data);
}

/* An ensemble is made with the allocator of the first model, and leaves nothing behind where that
   has no more. */
static void ensemble_allocates(void) {
    test_memory memory = {0, 0, 0};
    carnn_allocator a = test_allocator(&memory);
    carnn_dataset *data = ensemble_data("classify", "", ensemble_cases[1].data);
    carnn_model *e;
    const carnn_model *both[2];
    carnn_model_desc desc;
    carnn_ensemble_desc how = ensemble_choosing(data, NULL);
    carnn_status status = CARNN_ERR_MEMORY;
    carnn_error error;
    long blocks;
    size_t i;
    memset(&desc, 0, sizeof desc);
    desc.task = "classify";
    desc.hidden = desc.embedding = 4;
    for (i = 0; i < 2; i++) {
        carnn_model *model = NULL;
        desc.allocator = i ? NULL : &a;
        CHECK_INT(carnn_model_create(&model, &desc, data, &error), CARNN_OK);
        both[i] = model;
    }
    blocks = memory.blocks;
    for (; status && memory.fail_at < 1000; memory.fail_at++) {
        memory.calls = 0;
        status = carnn_model_ensemble(&e, both, 2, &how, &error);
        if (!memory.fail_at) { /* none fails */
            CHECK_INT(status, CARNN_OK);
            CHECK(memory.blocks > blocks);
            carnn_model_free(e);
            status = CARNN_ERR_MEMORY;
        } else if (status) {
            CHECK_INT(status, CARNN_ERR_MEMORY);
            CHECK(!e);
        }
        if (status) CHECK_INT(memory.blocks, blocks);
    }
    CHECK(!status && memory.fail_at > 20);
    carnn_model_free(e);
    for (i = 0; i < 2; i++) carnn_model_free((carnn_model *)(uintptr_t)both[i]);
    CHECK_INT(memory.blocks, 0);
    carnn_dataset_free(data);
}

/* In the caller's memory the sessions of all members are opened without the allocator. Where one
   reads texts that no memory can hold, the sum of all sizes does not wrap. */
static void ensemble_opens_in_own_memory(void) {
    test_memory memory = {0, 0, 0};
    carnn_allocator a = test_allocator(&memory);
    carnn_dataset *data = ensemble_data("classify", "", ensemble_cases[1].data);
    carnn_model *models[ENSEMBLE_MODELS], *e;
    carnn_session *session = NULL;
    carnn_session_desc desc = {0, 0, NULL};
    carnn_error error;
    size_t size, m;
    long calls;
    ensemble_models(models, "classify", "", data);
    models[0]->allocator = a; /* the ensemble gets it */
    e = ensemble_of(models, ENSEMBLE_MODELS, CARNN_ENSEMBLE_MEAN);
    models[0]->allocator = models[1]->allocator;
    size = carnn_session_size(e, NULL);
    for (m = 0; m < ENSEMBLE_MODELS; m++)
        CHECK(carnn_session_size(carnn_model_member(e, m), NULL) < size);
    desc.memory = carnn__alloc_aligned(&models[0]->allocator, size, 1);
    calls = memory.calls;
    CHECK(calls > 0);
    memory.fail_at = calls + 1;
    CHECK_INT(carnn_session_open(&session, e, &desc, &error), CARNN_OK);
    CHECK_INT(memory.calls, calls);
    for (m = 0; session && m < ENSEMBLE_MODELS; m++) {
        const char *at = (const char *)session->member[m], *end = (const char *)desc.memory + size;
        CHECK(at >= (const char *)desc.memory && at < end);
    }
    carnn_session_free(session);
    memory.fail_at = 0;
    e->members[0]->desc.option[CARNN__CLASSIFY_MAX_WORDS] = (double)(SIZE_MAX / 4 + 1);
    e->desc = e->members[0]->desc;
    CHECK(carnn_session_size(e, NULL) > SIZE_MAX / 2);
    CHECK_INT(carnn_session_open(&session, e, NULL, &error), CARNN_ERR_MEMORY);
    CHECK(!session);
    carnn__free_aligned(&models[0]->allocator, desc.memory);
    carnn_model_free(e);
    CHECK_INT(memory.blocks, 0);
    ensemble_free(models);
    carnn_dataset_free(data);
}

/* A chat with an ensemble hears and says the same to all members. */
static void ensemble_chats(void) {
    static const char text[] = "1 hi\thello\n2 some food\tapi\n3 no\tbye\n";
    carnn_dataset *data = test_read("dialog", text);
    carnn_model *models[ENSEMBLE_MODELS], *e;
    carnn_session *session, *own[ENSEMBLE_MODELS];
    carnn_error error;
    static const char *const said[] = {"hi", "some food", "no", "food"};
    carnn_session_desc desc = {0, 0, NULL};
    size_t m, turn, k, L = 3;
    ensemble_models(models, "dialog", "", data);
    e = ensemble_of(models, ENSEMBLE_MODELS, CARNN_ENSEMBLE_MEAN);
    desc.memory = carnn__alloc_aligned(&e->allocator, carnn_session_size(e, NULL), 1);
    CHECK_INT(carnn_session_open(&session, e, &desc, &error), CARNN_OK);
    for (m = 0; m < ENSEMBLE_MODELS; m++)
        CHECK_INT(carnn_session_open(&own[m], models[m], NULL, &error), CARNN_OK);
    for (turn = 0; turn < 4; turn++) {
        carnn_text user;
        double sum[3] = {0.0};
        const char *reply;
        carnn_prediction p;
        user.at = said[turn];
        user.length = strlen(user.at);
        for (m = 0; m < ENSEMBLE_MODELS; m++) {
            CHECK_INT(carnn_session_predict(own[m], &user, 1, L, &p, &error), CARNN_OK);
            for (k = 0; k < p.count; k++) sum[p.choice[k]] += p.probability[k];
        }
        for (k = m = 0; k < L; k++)
            if (sum[k] > sum[m]) m = k;
        CHECK_INT(carnn_session_reply(session, user.at, user.length, &reply, &error), CARNN_OK);
        CHECK_TEXT(reply, carnn_model_choice(e, m));
        for (m = 0; m < ENSEMBLE_MODELS; m++) {
            CHECK_INT(carnn_session_hear(own[m], CARNN_USER, user.at, user.length, &error), 0);
            CHECK_INT(carnn_session_hear(own[m], CARNN_SYSTEM, reply, strlen(reply), &error), 0);
        }
    }
    for (m = 0; m < ENSEMBLE_MODELS; m++) carnn_session_free(own[m]);
    carnn_session_free(session);
    carnn__free_aligned(&e->allocator, desc.memory);
    carnn_model_free(e);
    ensemble_free(models);
    carnn_dataset_free(data);
}

/* --- what cannot be averaged ------------------------------------------------------------------ */

static void ensemble_refuses(const carnn_model *a, const carnn_model *b, carnn_ensemble_rule rule,
                             const char *message) {
    const carnn_model *both[2];
    carnn_model *e = NULL;
    carnn_ensemble_desc desc;
    carnn_error error;
    both[0] = a;
    both[1] = b;
    memset(&desc, 0, sizeof desc);
    desc.rule = rule;
    CHECK_INT(carnn_model_ensemble(&e, both, 2, &desc, &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message, message);
    CHECK(!e);
}

static void ensemble_refused(void) {
    carnn_model *m[7][ENSEMBLE_MODELS], *e, *other;
    carnn_dataset *data[7], *more = ensemble_data("dialog", "", "1 hi\tyes\n2 hello\tapi\n");
    carnn_dataset *grades = ensemble_data("pair", "target=relatedness grades=7", "6\ta\tb\n");
    carnn_ensemble_desc desc;
    carnn_train_desc training;
    carnn_model_desc model;
    carnn_error error;
    size_t i;
    for (i = 0; i < 7; i++) {
        const char *task = ensemble_cases[i].task, *options = ensemble_cases[i].options;
        data[i] = ensemble_data(task, options, ensemble_cases[i].data);
        ensemble_models(m[i], task, options, data[i]);
    }
    ensemble_refuses(m[0][0], m[1][0], CARNN_ENSEMBLE_MEAN,
                     "model 1 and model 2 cannot be averaged: their tasks are dialog and classify");
    ensemble_refuses(m[4][0], m[4][1], CARNN_ENSEMBLE_VOTE,
                     "models of the task answer cannot vote: they do not choose; take the mean");
    ensemble_refuses(m[0][0], m[0][1], (carnn_ensemble_rule)2, "there is no rule 2");
    e = ensemble_of(m[0], ENSEMBLE_MODELS, CARNN_ENSEMBLE_MEAN);
    ensemble_refuses(m[0][0], e, CARNN_ENSEMBLE_MEAN,
                     "model 2 is an ensemble itself: name its members");
    memset(&training, 0, sizeof training);
    CHECK_INT(carnn_train(e, data[0], NULL, &training, &error), CARNN_ERR_ARGUMENT);
    memset(&model, 0, sizeof model);
    model.task = "dialog";
    model.from = e;
    CHECK_INT(carnn_model_create(&other, &model, data[0], &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message,
               "the model to go on from is an ensemble: expected one of its members");
    model.from = NULL;
    carnn_model_free(e);
    CHECK_INT(carnn_model_create(&other, &model, more, &error), CARNN_OK);
    ensemble_refuses(m[0][0], other, CARNN_ENSEMBLE_MEAN,
                     "model 1 and model 2 cannot be averaged: their candidates or classes differ, "
                     "or stand in another order");
    carnn_model_free(other);
    model.task = "pair";
    CHECK_INT(carnn__set_all(&model, &training, 0, "target=relatedness grades=7", &error), 0);
    CHECK_INT(carnn_model_create(&other, &model, grades, &error), CARNN_OK);
    ensemble_refuses(m[3][0], other, CARNN_ENSEMBLE_MEAN,
                     "model 1 and model 2 cannot be averaged: their predictions are of another "
                     "kind or number");
    carnn_model_free(other);
    memset(&desc, 0, sizeof desc);
    CHECK_INT(carnn_model_ensemble(&e, NULL, 0, &desc, &error), CARNN_ERR_ARGUMENT);
    desc.share = 2.0;
    for (i = 0; i < 2; i++, desc.valid = data[0]) { /* without and with validation data */
        CHECK_INT(carnn_model_ensemble(&e, (const carnn_model *const *)m[0], 2, &desc, &error),
                  CARNN_ERR_ARGUMENT);
        CHECK_TEXT(error.message, "a share of models is from 0 to 1, found 2");
    }
    desc.share = 1.0;
    desc.valid = NULL;
    CHECK_INT(carnn_model_ensemble(&e, (const carnn_model *const *)m[0], 2, &desc, &error),
              CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message, "members are chosen by their scores on validation data: there are "
                              "none");
    for (i = 0; i < 7; i++) {
        ensemble_free(m[i]);
        carnn_dataset_free(data[i]);
    }
    carnn_dataset_free(more);
    carnn_dataset_free(grades);
}

/* The model with bytes of its own, as if it were read from the file `name`. */
static carnn_model *ensemble_named(const carnn_model *model, const char *name, void **bytes) {
    carnn_source source = {name, NULL, carnn_model_size(model)};
    carnn_model *loaded = NULL;
    source.bytes = *bytes = malloc(source.size);
    CHECK_INT(carnn_model_write(model, *bytes, source.size, NULL), CARNN_OK);
    CHECK_INT(carnn_model_load(&loaded, &source, NULL, NULL), CARNN_OK);
    return loaded;
}

/* Errors name files, whatever the order of the members, also where they are in one file. */
static void ensemble_names(carnn_model *const models[2], const carnn_dataset *data) {
    static const char *const names[] = {"short.gguf", "long.gguf"};
    void *bytes[3];
    carnn_model *named[2], *e, *file;
    const carnn_model *one;
    carnn_scores scores[3];
    carnn_error error;
    char message[200];
    size_t i, k;
    for (i = 0; i < 2; i++) {
        for (k = 0; k < 2; k++)
            named[k] = ensemble_named(models[k != i], names[k != i], &bytes[k]);
        snprintf(message, sizeof message, "%s and %s cannot be averaged: they read texts up to "
                 "different lengths", names[i], names[!i]);
        one = e = ensemble_of(named, 2, CARNN_ENSEMBLE_MEAN);
        CHECK_INT(carnn_test(&one, 1, data, 1, scores, &error), CARNN_ERR_ARGUMENT);
        CHECK_TEXT(error.message, message);
        CHECK_INT(carnn_test((const carnn_model *const *)named, 2, data, 1, scores, &error),
                  CARNN_ERR_ARGUMENT);
        CHECK_TEXT(error.message, message);
        one = file = ensemble_named(e, "both.gguf", &bytes[2]);
        CHECK_INT(carnn_test(&one, 1, data, 1, scores, &error), CARNN_ERR_ARGUMENT);
        CHECK_TEXT(error.message, "member 1 of both.gguf and member 2 of both.gguf cannot be "
                   "averaged: they read texts up to different lengths");
        ensemble_refuses(named[0], file, CARNN_ENSEMBLE_MEAN,
                         "both.gguf is an ensemble itself: name its members");
        carnn_model_free(e);
        carnn_model_free(file);
        for (k = 0; k < 2; k++) carnn_model_free(named[k]);
        for (k = 0; k < 3; k++) free(bytes[k]);
    }
}

/* Texts read up to different lengths make different batches, which cannot be averaged. */
static void ensemble_lengths(void) {
    static char text[1 << 18];
    carnn_model *models[2], *e;
    const carnn_model *one;
    carnn_dataset *data, *few;
    carnn_model_desc model;
    carnn_scores scores;
    carnn_error error;
    size_t i, j, at = 0;
    for (i = 0; i < 300; i++) {
        at += (size_t)sprintf(text + at, "%c\t", i % 2 ? 'x' : 'y');
        for (j = 0; j < 300; j++) at += (size_t)sprintf(text + at, "w ");
        at += (size_t)sprintf(text + at, "\n");
    }
    data = test_data("classify", text, at, 0, 0);
    few = test_data("classify", "x\tw w w w w w w\ny\tw\n", 20, 0, 0);
    for (i = 0; i < 2; i++) {
        memset(&model, 0, sizeof model);
        model.task = "classify";
        model.hidden = model.embedding = 2;
        CHECK_INT(carnn__set_all(&model, NULL, 0, i ? "max_words=300" : "max_words=5", &error), 0);
        CHECK_INT(carnn_model_create(&models[i], &model, data, &error), CARNN_OK);
    }
    one = e = ensemble_of(models, 2, CARNN_ENSEMBLE_MEAN);
    CHECK_INT(carnn_test(&one, 1, few, 1, &scores, &error), CARNN_OK); /* one batch for both */
    CHECK_INT(carnn_test(&one, 1, data, 1, &scores, &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message, "model 1 and model 2 cannot be averaged: they read texts up to "
                              "different lengths");
    carnn_model_free(e);
    ensemble_names(models, data);
    for (i = 0; i < 2; i++) carnn_model_free(models[i]);
    carnn_dataset_free(few);
    carnn_dataset_free(data);
}

/* Also where members are sorted by their scores, and the one that reads alignments has the
   worst. */
static void ensemble_reader_leads(carnn_model *reader, carnn_model *better,
                                  const carnn_dataset *data) {
    const carnn_model *both[2];
    carnn_ensemble_desc desc;
    carnn_train_desc train = test_training(60, 2, 0.02, 0.0);
    carnn_model *e = NULL;
    carnn_error error;
    size_t chosen[2];
    test_weight(reader, "output.bias")[0] = 100.0f; /* says x, always */
    CHECK_INT(carnn_train(better, data, NULL, &train, &error), CARNN_OK);
    CHECK(test_scores(better, data).metric[0].value > test_scores(reader, data).metric[0].value);
    both[0] = reader;
    both[1] = better;
    memset(&desc, 0, sizeof desc);
    desc.valid = data;
    desc.share = 1.0;
    desc.chosen = chosen;
    CHECK_INT(carnn_model_ensemble(&e, both, 2, &desc, &error), CARNN_OK);
    CHECK(e && !chosen[0] && chosen[1] == 1);
    carnn_model_free(e);
}

/* All members read what the first one does. */
static void ensemble_readers(void) {
    static const char *const options[] = {"columns=1 embedding=1", "columns=2 embedding=2"};
    carnn_source text = test_source("f", "x\ta b\tb a\ny\tb\tc c\n", 18);
    carnn_source links = test_source("f.align", "0-1\n0-0\n", 8);
    carnn_dataset *data[2], *pairs = NULL;
    carnn_model *rows[2], *aligned[2];
    carnn_error error;
    size_t i;
    CHECK_INT(test_linked(&pairs, "pair", "alignment=file", text, &links, &error), CARNN_OK);
    for (i = 0; i < 2; i++) {
        data[i] = ensemble_data("signal", options[i], "x\t1\t2\ny\t3\t4\n");
        rows[i] = test_model("signal", options[i], NULL, data[i]);
        aligned[i] = test_model("pair", i ? "alignment=file" : "alignment=none", NULL, pairs);
    }
    for (i = 0; i < 2; i++)
        ensemble_refuses(rows[i], rows[!i], CARNN_ENSEMBLE_MEAN,
                         "model 1 and model 2 cannot be averaged: they read rows of other numbers");
    ensemble_refuses(aligned[0], aligned[1], CARNN_ENSEMBLE_MEAN,
                     "model 1 and model 2 cannot be averaged: only the latter reads alignments");
    ensemble_reader_leads(aligned[1], aligned[0], pairs);
    for (i = 0; i < 2; i++) {
        carnn_model_free(rows[i]);
        carnn_model_free(aligned[i]);
        carnn_dataset_free(data[i]);
    }
    carnn_dataset_free(pairs);
}

/* --- files ------------------------------------------------------------------------------------ */

typedef struct ensemble_image {
    unsigned char *bytes; /* aligned, with room for 64 more */
    size_t size;
} ensemble_image;

static carnn_status ensemble_load(carnn_model **model, const void *bytes, size_t size,
                                  const carnn_allocator *a, carnn_error *error) {
    carnn_source source = test_source("image", bytes, size);
    return carnn_model_load(model, &source, a, error);
}

/* Whatever is loaded can be asked. */
static void ensemble_try(ensemble_image i) {
    carnn_model *model = NULL;
    carnn_session *session;
    carnn_error error;
    const char *reply;
    if (ensemble_load(&model, i.bytes, i.size, NULL, &error)) {
        CHECK(!model && error.message[0]);
        return;
    }
    if (!carnn_session_open(&session, model, NULL, &error)) {
        CHECK_INT(carnn_session_reply(session, "food", 4, &reply, &error), CARNN_OK);
        carnn_session_free(session);
    }
    carnn_model_free(model);
}

/* The same scores from memory that is aligned, from memory that is not, and from the disk; one
   message each for what may be wrong; no byte may be lost or changed. */
static void ensemble_files(void) {
    static const unsigned char value[] = {0x00, 0x03, 0xFF};
    const char *task = ensemble_cases[0].task;
    carnn_dataset *data = ensemble_data(task, "", ensemble_cases[0].data);
    carnn_model *models[ENSEMBLE_MODELS], *e, *again = NULL;
    carnn_scores whole, other;
    ensemble_image i;
    carnn_source file = {"ensemble.gguf", NULL, 0};
    carnn_error error;
    carnn_session *session = NULL;
    size_t at, bad = 0, v, head, sum;
    test_memory memory = {0, 0, 0};
    carnn_allocator a = test_allocator(&memory);
    ensemble_models(models, task, "", data);
    e = ensemble_of(models, 2, CARNN_ENSEMBLE_VOTE);
    whole = test_scores(e, data);
    i.size = carnn_model_size(e);
    i.bytes = (unsigned char *)carnn__alloc_aligned(&e->allocator, i.size + 64, 1);
    memset(i.bytes, 0, i.size + 64);
    CHECK_INT(carnn_model_write(e, i.bytes, i.size, &error), CARNN_OK);
    CHECK_INT(carnn_model_save(e, file.name, &error), CARNN_OK);
    for (at = 0; at < 3; at++) {
        memmove(i.bytes + 4 * (at == 1), i.bytes, i.size);
        CHECK_INT(at == 2 ? carnn_model_load(&again, &file, NULL, &error)
                          : ensemble_load(&again, i.bytes + 4 * at, i.size, NULL, &error), 0);
        other = test_scores(again, data);
        CHECK(other.loss == whole.loss && other.metric[0].value == whole.metric[0].value);
        CHECK_INT(carnn_model_rule(again), CARNN_ENSEMBLE_VOTE);
        CHECK_INT(carnn_model_size(again), i.size);
        CHECK(carnn_model_tensor(again, 0).name == NULL);
        CHECK_TEXT(carnn_model_tensor(carnn_model_member(again, 1), 0).name,
                   carnn_model_tensor(models[1], 0).name);
        carnn_model_free(again);
        if (at == 1) memmove(i.bytes, i.bytes + 4, i.size);
    }
    remove(file.name);
    for (at = 0; at < i.size; at++) {
        bad += ensemble_load(&again, i.bytes, at, NULL, &error) != CARNN_ERR_MODEL;
        i.bytes[at] ^= 0x10;
        bad += ensemble_load(&again, i.bytes, i.size, NULL, &error) != CARNN_ERR_MODEL;
        i.bytes[at] ^= 0x10;
    }
    CHECK_INT(bad, 0);
    head = i.size - 4 * (models[0]->params.size + models[1]->params.size);
    for (sum = 0; memcmp(i.bytes + sum, "carnn.checksum", 14);) sum++;
    for (at = 0; at < head; at += TEST_SANITIZED ? 5 : 1) {
        unsigned char was = i.bytes[at];
        for (v = 0; v < sizeof value && (at < sum || at >= sum + 26); v++) { /* key, type, number */
            i.bytes[at] = value[v];
            test_seal(i.bytes, i.size);
            ensemble_try(i);
        }
        i.bytes[at] = was;
    }
    test_seal(i.bytes, i.size);
    for (memory.fail_at = 1;; memory.fail_at++) { /* memory that runs out */
        carnn_status status;
        memory.calls = 0;
        status = ensemble_load(&again, i.bytes + 0, i.size, &a, &error);
        if (!status) break;
        CHECK_INT(status, CARNN_ERR_MEMORY);
        CHECK_INT(memory.blocks, 0);
    }
    CHECK(memory.fail_at > 6);
    for (memory.fail_at = 1;; memory.fail_at++) {
        carnn_status status;
        memory.calls = 0;
        status = carnn_session_open(&session, again, NULL, &error);
        if (!status) break;
        CHECK_INT(status, CARNN_ERR_MEMORY);
    }
    CHECK(memory.calls < memory.fail_at); /* it opens only where nothing has failed */
    carnn_session_free(session);
    carnn_model_free(again);
    CHECK_INT(memory.blocks, 0);
    carnn__free_aligned(&e->allocator, i.bytes);
    carnn_model_free(e);
    ensemble_free(models);
    carnn_dataset_free(data);
}

/* Rows one at a time: the mean of what the members say after each. */
static void ensemble_streams(void) {
    static const char text[] = "x\t0.5\t-1\t2\t0.25\ny\t-0.5\t1\t1\t3\n";
    static const float rows[3][2] = {{0.5f, 1.5f}, {-2.0f, 0.25f}, {1.0f, 3.0f}};
    carnn_dataset *data = ensemble_data("signal", "columns=2", text);
    carnn_model *models[ENSEMBLE_MODELS], *e;
    carnn_session *session[ENSEMBLE_MODELS + 1];
    carnn_error error;
    size_t m, t, k;
    ensemble_models(models, "signal", "columns=2 embedding=2", data);
    e = ensemble_of(models, ENSEMBLE_MODELS, CARNN_ENSEMBLE_MEAN);
    for (m = 0; m <= ENSEMBLE_MODELS; m++)
        CHECK_INT(carnn_session_open(&session[m], m ? models[m - 1] : e, NULL, &error), CARNN_OK);
    for (t = 0; t < 3; t++) {
        double mean[2] = {0.0}, found[2] = {0.0};
        for (m = 0; m <= ENSEMBLE_MODELS; m++) {
            carnn_prediction p;
            CHECK_INT(carnn_session_row(session[m], rows[t], 2, 2, &p, &error), CARNN_OK);
            CHECK_INT(p.count, 2);
            for (k = 0; k < 2; k++)
                if (m) mean[p.choice[k]] += p.probability[k] / ENSEMBLE_MODELS;
                else found[p.choice[k]] = p.probability[k];
        }
        CHECK_NEAR(found[0], mean[0], 1e-6);
        CHECK_NEAR(found[1], mean[1], 1e-6);
    }
    for (m = 0; m <= ENSEMBLE_MODELS; m++) carnn_session_free(session[m]);
    carnn_model_free(e);
    ensemble_free(models);
    carnn_dataset_free(data);
}

/* Models that tell a class for each row, and models that have a graph: the ensemble shares it. */
static void ensemble_made_of(const char *task, const char *options, const char *text) {
    carnn_dataset *data = ensemble_data(task, options, text);
    carnn_model *models[ENSEMBLE_MODELS], *e;
    double mean = 0.0;
    size_t m;
    ensemble_models(models, task, options, data);
    e = ensemble_of(models, ENSEMBLE_MODELS, CARNN_ENSEMBLE_MEAN);
    for (m = 0; m < ENSEMBLE_MODELS; m++)
        mean += test_scores(models[m], data).loss / ENSEMBLE_MODELS;
    CHECK(test_scores(e, data).loss < mean); /* Jensen's inequality */
    carnn_model_free(e);
    ensemble_free(models);
    carnn_dataset_free(data);
}

int main(void) {
    size_t i;
    for (i = 0; i < sizeof ensemble_cases / sizeof *ensemble_cases; i++) {
        ensemble_by_hand(i);
        ensemble_of_one(i);
    }
    ensemble_unknown_replies();
    ensemble_of_words();
    ensemble_of_pieces();
    ensemble_of_rows();
    ensemble_greedy();
    ensemble_many_batches();
    ensemble_lower();
    ensemble_explains(0);
    ensemble_explains_vote();
    ensemble_explains_empty_text();
    ensemble_explains_unlike();
    ensemble_explains_nothing();
    ensemble_compares();
    ensemble_largest();
    ensemble_allocates();
    ensemble_explains(5);
    ensemble_explains(6);
    ensemble_explains(3);
    ensemble_explains(4);
    ensemble_made_of("signal", "columns=1 embedding=1 target_kind=steps",
                     "a b a\t1\t2\t3\nb a b\t3\t-1\t2\n");
    ensemble_made_of("classify", "encoder=graph graph=st cell=rnn", ensemble_cases[1].data);
    ensemble_opens_in_own_memory();
    ensemble_chats();
    ensemble_streams();
    ensemble_refused();
    ensemble_lengths();
    ensemble_readers();
    ensemble_files();
    return test_end();
}
