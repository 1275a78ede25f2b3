/* Language models: losses by plain loops, perplexity by hand, labels, sessions, the same bytes
   everywhere, bad input. */

#include "test.h"

static const char lm_text[] =
    "the cat sat\tx\nthe dog sat\ty\na cat ran\n=\nthe dog ran\tx\na dog sat\ty\nthe cat ran\tx\n";

static carnn_dataset *lm_data(const char *bytes) {
    return test_read("lm", bytes);
}

static carnn_model *lm_model(const char *cell, const char *context, const carnn_dataset *data) {
    carnn_model *model = NULL;
    carnn_model_desc desc;
    carnn_error error;
    memset(&desc, 0, sizeof desc);
    desc.task = "lm";
    desc.cell = cell;
    desc.hidden = 19;
    desc.embedding = 13;
    desc.layers = 2;
    desc.min_count = 1;
    if (context) carnn_set(&desc, NULL, "context", context, &error);
    if (carnn_model_create(&model, &desc, data, &error)) printf("%s\n", error.message);
    return model;
}

static carnn_status lm_fit(carnn_model *model, const carnn_dataset *data, int64_t threads,
                        int64_t epochs, double lr) {
    carnn_train_desc train = test_training(epochs, 2, lr, 0.0);
    carnn_error error;
    train.threads = threads;
    return carnn_train(model, data, data, &train, &error);
}

/* What a session makes of a sentence: -log P, and its words go to *tokens. */
static double lm_score(carnn_session *session, const char *text, size_t length, size_t *tokens) {
    carnn_text one = {NULL, 0};
    carnn_prediction p;
    one.at = text;
    one.length = length;
    CHECK_INT(carnn_session_predict(session, &one, 1, 0, &p, NULL), CARNN_OK);
    CHECK_INT(p.kind, CARNN_PREDICTS_LIKELIHOOD);
    *tokens = p.tokens;
    return p.score;
}

/* The value of an option of the task as text. */
static const char *lm_option(const carnn_model *model, const char *name) {
    static char text[32];
    carnn_train_desc unused;
    memset(&unused, 0, sizeof unused);
    return carnn_option_get(carnn_option_named("lm", name), &model->desc, &unused, text,
                            sizeof text);
}

/* Writes a sentence; returns its length. */
static size_t lm_generate(carnn_session *session, const carnn_sampling *how, const char *prompt,
                          char *text, size_t size) {
    CHECK_INT(carnn_session_generate(session, how, prompt, strlen(prompt), text, size, NULL),
              CARNN_OK);
    return size ? strlen(text) : 0;
}

/* Upper case folded: in data, and in what a session reads. */
static void test_lower(void) {
    carnn_dataset *data = lm_data("The Cat sat\nthe cat SAT\n");
    carnn_model *model = NULL;
    carnn_model_desc desc;
    carnn_session *session = NULL;
    double lower;
    size_t tokens;
    memset(&desc, 0, sizeof desc);
    desc.task = "lm";
    desc.hidden = 5;
    CHECK_INT(carnn_set(&desc, NULL, "lower", "1", NULL), CARNN_OK);
    desc.min_count = 1;
    CHECK_INT(carnn_model_create(&model, &desc, data, NULL), CARNN_OK);
    CHECK_INT(carnn_model_word_count(model), 6); /* <unk> <s> </s> the cat sat */
    CHECK_INT(carnn_session_open(&session, model, NULL, NULL), CARNN_OK);
    lower = lm_score(session, "the cat", 7, &tokens);
    CHECK_INT(tokens, 3);
    carnn_session_reset(session);
    CHECK_NEAR(lm_score(session, "THE cAt", 7, &tokens), lower, 0.0);
    CHECK_INT(tokens, 3);
    carnn_session_reset(session);
    CHECK(lm_score(session, "th\xC3\x84 cat", 8, &tokens) != lower);
    CHECK_INT(tokens, 3);
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Where lower is better, too, the best epoch is one of this training, not of the one before. The
   loss of an epoch that is one step is that of the weights before it, on its sentences alone. */
static void test_lm_epochs(void) {
    carnn_dataset *data = lm_data("a b\nb a\na\n");
    carnn_model *model = lm_model("icarnn", "none", data);
    carnn_train_desc train = test_training(3, 4, 0.01, CARNN_NONE);
    double before;
    carnn_error error;
    train.lr_end = train.lr_decay = 1.0; /* the same steps, however many epochs */
    for (; train.epochs > 0; train.epochs--) {
        CHECK_INT(carnn_train(model, data, data, &train, &error), CARNN_OK);
        CHECK_INT(carnn_model_best_epoch(model), train.epochs);
    }
    for (; train.epochs < 4; train.epochs++) {
        before = test_scores(model, data).loss;
        carnn_model_free(model);
        model = lm_model("icarnn", "none", data);
        if (!train.epochs) continue;
        CHECK_INT(carnn_train(model, data, NULL, &train, &error), CARNN_OK);
        if (train.epochs > 1) CHECK_NEAR(carnn_model_scores(model)->loss, before, 1e-6);
        CHECK_INT(carnn_model_scores(model)->examples, 3);
    }
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* How often a sentence of one word at most has a word. */
static double lm_drawn(carnn_session *session, double temperature) {
    carnn_sampling how;
    char text[16];
    int i, words = 0;
    memset(&how, 0, sizeof how);
    how.words = 1;
    how.seed = 5;
    how.temperature = temperature;
    for (i = 0; i < 4000; i++) words += lm_generate(session, &how, "", text, sizeof text) > 0;
    return words / 4000.0;
}

/* A word of the data that only looks like <unk> is known like any other. */
static void test_words_like_unk(void) {
    carnn_dataset *train = lm_data("a <unknown> a\n"), *data = lm_data("a <unknown>\n<unk> z\n");
    carnn_model *model = lm_model("icarnn", "none", train);
    carnn_train_desc how = test_training(1, 2, 0.01, 0.0);
    CHECK_NEAR(test_scores(model, train).unknown, 0.0, 0.0);
    CHECK_NEAR(test_scores(model, data).unknown, 0.5, 1e-12);
    CHECK_INT(carnn_train(model, train, data, &how, NULL), CARNN_OK);
    CHECK_NEAR(carnn_model_scores(model)->unknown, 0.5, 1e-12);
    carnn_model_free(model);
    carnn_dataset_free(train);
    carnn_dataset_free(data);
}

/* A model without weights but for the output's bias knows only how frequent words are. With
   P(a) = 1/2, P(</s>) = 1/4, P(<unk>) = P(<s>) = 1/8 the sentences "a a" and "z" (unknown) cost

     "a a": ln 2 + ln 2 + ln 4 = 4 ln 2 on 3 tokens;  "z": ln 8 + ln 4 = 5 ln 2 on 2 tokens

   n + 1: 9/5 ln 2; n + 2: 9/7 ln 2; macro: (4/3 + 5/2) / 2 ln 2; without </s>: (9 - 4) / 3 ln 2. */
static void test_counts(void) {
    carnn_dataset *train = lm_data("a a\na\n"), *data = lm_data("a a\nz\n"), *longer;
    carnn_model *model = lm_model("icarnn", "none", train);
    float *w = model->params.value, *bias = test_weight(model, "output.bias");
    carnn_session *session = NULL;
    carnn_sampling how;
    char text[16], many[2 * 300 + 4];
    carnn_scores s;
    size_t i;
    CHECK_INT(model->words.count, 4);
    memset(w, 0, model->params.size * sizeof(float));
    bias[0] = bias[1] = (float)log(0.125);
    bias[2] = (float)log(0.25);
    bias[3] = (float)log(0.5);
    s = test_scores(model, data);
    CHECK_INT(s.tokens, 5);
    CHECK_INT(s.examples, 2);
    CHECK_NEAR(s.unknown, 1.0 / 3.0, 1e-12);
    CHECK_NEAR(s.loss, 9.0 / 5.0 * log(2.0), 1e-6);
    CHECK_NEAR(test_metric(&s, "perplexity"), pow(2.0, 9.0 / 5.0), 1e-5);
    CHECK_NEAR(test_metric(&s, "perplexity_n2"), pow(2.0, 9.0 / 7.0), 1e-5);
    CHECK_NEAR(test_metric(&s, "perplexity_macro"), pow(2.0, 23.0 / 12.0), 1e-5);
    CHECK_NEAR(test_metric(&s, "perplexity_words"), pow(2.0, 5.0 / 3.0), 1e-5);
    CHECK_NEAR(test_metric(&s, "label_accuracy"), -1.0, 0.0);
    /* 300 times a, in two pieces: 302 ln 2 on 301 tokens, the last of which is </s> */
    for (i = 0; i < 300; i++) memcpy(many + 2 * i, "a ", 2);
    strcpy(many + 600, "\nz\n");
    longer = lm_data(many);
    s = test_scores(model, longer);
    CHECK_INT(s.tokens, 303);
    CHECK_NEAR(test_metric(&s, "perplexity_macro"), pow(2.0, (302.0 / 301.0 + 2.5) / 2.0), 1e-5);
    CHECK_NEAR(test_metric(&s, "perplexity_words"), pow(2.0, 303.0 / 301.0), 1e-5);
    bias[0] = 9.0f; /* <unk> is the most probable word, and is never drawn */
    memset(&how, 0, sizeof how);
    how.temperature = CARNN_NONE;
    how.words = 3;
    CHECK_INT(carnn_session_open(&session, model, NULL, NULL), CARNN_OK);
    lm_generate(session, &how, "", text, sizeof text);
    CHECK_TEXT(text, "a a a");
    CHECK_NEAR(lm_drawn(session, 0.0), 2.0 / 3.0, 0.03); /* a is twice as probable as </s> */
    CHECK_NEAR(lm_drawn(session, 0.5), 0.8, 0.03);
    CHECK_NEAR(lm_drawn(session, 2.0), sqrt(2.0) / (1.0 + sqrt(2.0)), 0.03);
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(longer);
    carnn_dataset_free(train);
    carnn_dataset_free(data);
}

/* A model without weights but for the output's bias, with P(a) = 1/2, P(b) = 0.3, P(c) = P(</s>) =
   0.1. */
static carnn_model *lm_dice(void) {
    static const char *const word[] = {"a", "b", "c", "</s>"};
    static const double p[] = {0.5, 0.3, 0.1, 0.1};
    carnn_dataset *data = lm_data("a b c\n");
    carnn_model *model = lm_model("icarnn", "none", data);
    float *bias = test_weight(model, "output.bias");
    size_t i;
    memset(model->params.value, 0, model->params.size * sizeof(float));
    for (i = 0; i < model->words.count; i++) bias[i] = -60.0f;
    for (i = 0; i < 4; i++)
        bias[carnn__names_find(&model->words, carnn__span_of(word[i]))] = (float)log(p[i]);
    carnn_dataset_free(data);
    return model;
}

/* How often the words a, b and c are in what is drawn. */
static void lm_draws(carnn_session *session, int64_t top_k, double top_p, double share[3]) {
    static char text[4001];
    carnn_sampling how;
    size_t i, n, all = 0, sentence;
    memset(&how, 0, sizeof how);
    how.top_k = top_k;
    how.top_p = top_p;
    how.words = 2000;
    memset(share, 0, 3 * sizeof *share);
    for (sentence = 0; sentence < (top_k || top_p > 0.0 ? 1 : 300); sentence++)
        for (n = lm_generate(session, &how, "", text, sizeof text), i = 0; i < n; i += 2, all++)
            share[text[i] - 'a'] += 1.0;
    for (i = 0; i < 3; i++) share[i] /= (double)all;
}

/* Only the most probable words, by number or by their probability together, are drawn, as often as
   they are probable; 100 words where nothing is said. */
static void test_draws(void) {
    static const struct {
        int64_t top_k;
        double top_p, share[3];
    } cases[] = {{0, 0.0, {5.0 / 9.0, 3.0 / 9.0, 1.0 / 9.0}}, {2, 0.0, {0.625, 0.375, 0.0}},
                 {0, 0.75, {0.625, 0.375, 0.0}}, {0, 0.45, {1.0, 0.0, 0.0}},
                 {1, 0.75, {1.0, 0.0, 0.0}}};
    carnn_model *model = lm_dice();
    carnn_session *session = NULL;
    carnn_sampling how;
    char text[3][256];
    double share[3];
    size_t i, k;
    CHECK_INT(carnn_session_open(&session, model, NULL, NULL), CARNN_OK);
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        lm_draws(session, cases[i].top_k, cases[i].top_p, share);
        for (k = 0; k < 3; k++)
            if (cases[i].share[k] > 0.0 && cases[i].share[k] < 1.0)
                CHECK_NEAR(share[k], cases[i].share[k], 0.05);
            else CHECK_NEAR(share[k], cases[i].share[k], 0.0);
    }
    carnn_session_free(session);
    memset(&how, 0, sizeof how);
    how.top_k = 2;
    how.seed = 9;
    CHECK_INT(carnn_session_open(&session, model, NULL, NULL), CARNN_OK);
    for (i = 0; i < 3; i++) { /* other words, also after a reset; the same in a new session */
        CHECK_INT(lm_generate(session, &how, "", text[i], sizeof *text), 2 * 100 - 1);
        if (!i) carnn_session_reset(session);
        if (i != 1) continue;
        carnn_session_free(session);
        CHECK_INT(carnn_session_open(&session, model, NULL, NULL), CARNN_OK);
    }
    CHECK(strcmp(text[0], text[1]) != 0);
    CHECK_TEXT(text[2], text[0]);
    carnn_session_free(session);
    carnn_model_free(model);
}

/* What has been written is the context of the next sentence, as if it had been read, and so is what
   it leaves of states where the text is in chunks. */
static void test_written_context(const char *options) {
    carnn_dataset *data = lm_data(lm_text);
    carnn_model *model = test_model("lm", options, NULL, data);
    carnn_session *session = NULL;
    carnn_sampling how;
    char text[200];
    double score[3];
    size_t i, tokens;
    CHECK_INT(lm_fit(model, data, 1, 20, 0.02), CARNN_OK);
    memset(&how, 0, sizeof how);
    how.temperature = CARNN_NONE;
    how.words = 3;
    CHECK_INT(carnn_session_open(&session, model, NULL, NULL), CARNN_OK);
    for (i = 0; i < 6; i++) {
        carnn_session_reset(session);
        if (i >= 3) lm_score(session, "a", 1, &tokens); /* in the midst of a chunk */
        if (i % 3 == 0) lm_generate(session, &how, "the dog", text, sizeof text);
        if (i % 3 == 1) lm_score(session, text, strlen(text), &tokens);
        score[i % 3] = lm_score(session, "a cat ran", 9, &tokens);
        if (i % 3 < 2) continue;
        CHECK_NEAR(score[0], score[1], 1e-9 * score[1]);
        CHECK(fabs(score[0] - score[2]) > 1e-4);
    }
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Examples one after the other are what each is by itself. */
static void test_next_example(const char *options) {
    carnn_dataset *data = lm_data(lm_text);
    carnn_model *model = test_model("lm", options, NULL, data);
    carnn_session *one = NULL, *next = NULL;
    carnn_prediction p, q;
    carnn_contribution part[2][64];
    carnn_explanation e, f;
    size_t i, k;
    CHECK_INT(lm_fit(model, data, 1, 2, 0.02), CARNN_OK);
    CHECK_INT(carnn_session_open(&one, model, NULL, NULL), CARNN_OK);
    CHECK_INT(carnn_session_open(&next, model, NULL, NULL), CARNN_OK);
    for (i = 0; i < carnn_dataset_examples(data); i++) {
        CHECK_INT(carnn_session_example(one, data, i, 1, &p, NULL), CARNN_OK);
        CHECK_INT(carnn_session_next_example(next, data, i, 1, &q, NULL), CARNN_OK);
        CHECK(p.score == q.score && p.tokens == q.tokens && p.example == q.example);
        CHECK_INT(carnn_session_explain(one, 64, part[0], &e, NULL), CARNN_OK);
        CHECK_INT(carnn_session_explain(next, 64, part[1], &f, NULL), CARNN_OK);
        CHECK(e.count == f.count && e.rest == f.rest && e.of == f.of);
        for (k = 0; k < carnn__min(e.count, 64); k++)
            CHECK(part[0][k].score == part[1][k].score && part[0][k].share == part[1][k].share);
    }
    carnn_session_free(one);
    carnn_session_free(next);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* --- the equations ---------------------------------------------------------------------------- */

enum { LM_H = 6, LM_E = 5 }; /* of test_model */

/* A step of the nCARNN `name` over a word (Tran et al. 2018, Eq. 3); c NULL: without a context. */
static void lm_step(const carnn_model *model, const char *name, uint32_t word, const double *c,
                    double h[LM_H]) {
    const float *E_w = test_weight(model, "word.weight") + word * LM_E, *W, *U, *b, *C = NULL;
    double x[LM_E], next[LM_H];
    char of[64];
    size_t i, g;
    snprintf(of, sizeof of, "%s.input.weight", name);
    W = test_weight(model, of);
    snprintf(of, sizeof of, "%s.recurrent.weight", name);
    U = test_weight(model, of);
    snprintf(of, sizeof of, "%s.bias", name);
    b = test_weight(model, of);
    snprintf(of, sizeof of, "%s.context.weight", name);
    if (c) C = test_weight(model, of);
    for (i = 0; i < LM_E; i++) x[i] = (double)E_w[i];
    for (i = 0; i < LM_H; i++) {
        double a[3]; /* u, f, k */
        for (g = 0; g < 3; g++) {
            size_t row = g * LM_H + i;
            a[g] = (double)b[row] + test_row_times(W, row, LM_E, x);
            if (g < 2) a[g] += test_row_times(U, row, LM_H, h);
            if (g < 2 && c) a[g] += test_row_times(C, row, LM_H, c);
        }
        a[0] = test_sigmoid(a[0]);
        next[i] = a[0] * (test_sigmoid(a[1]) * a[2]) + (1.0 - a[0]) * h[i];
    }
    memcpy(h, next, sizeof next);
}

/* -log of the softmax of W x + b at `target`; W and b are `name`.weight and .bias. */
static double lm_softmax(const carnn_model *model, const char *name, const double *x,
                         size_t target) {
    char of[64];
    const float *W, *b;
    double sum = 0.0, chosen = 0.0;
    size_t i, n = strcmp(name, "label") ? model->words.count : model->choices.count;
    snprintf(of, sizeof of, "%s.weight", name);
    W = test_weight(model, of);
    snprintf(of, sizeof of, "%s.bias", name);
    b = test_weight(model, of);
    for (i = 0; i < n; i++) {
        double z = (double)b[i] + test_row_times(W, i, LM_H, x);
        sum += exp(z);
        if (i == target) chosen = z;
    }
    return log(sum) - chosen;
}

/* L_w and L_l of a sentence, given the one before it (NULL: there is none) and the label that its
   context tells (NULL: none). Returns its words, </s> among them. */
static size_t lm_sentence(const carnn_model *model, const char *text, const char *before,
                          const char *label, double *words, double *labels) {
    double c[LM_H] = {0.0}, h[LM_H] = {0.0};
    uint32_t ids[16];
    size_t n, i;
    if (before) {
        n = carnn__tokenize(&model->words, CARNN__SPACES, carnn__span_of(before), ids, 15);
        ids[n++] = CARNN__RUNNING_END;
        for (i = 0; i < n; i++) lm_step(model, "context", ids[i], NULL, c);
    } else {
        for (i = 0; i < LM_H; i++) c[i] = (double)test_weight(model, "context.start")[i];
    }
    n = carnn__tokenize(&model->words, CARNN__SPACES, carnn__span_of(text), ids, 15);
    ids[n++] = CARNN__RUNNING_END;
    for (i = 0; i < n; i++) {
        lm_step(model, "cell", i ? ids[i - 1] : CARNN__RUNNING_BEGIN, c, h);
        *words += lm_softmax(model, "output", h, ids[i]);
    }
    if (label)
        *labels += lm_softmax(model, "label", c,
                              carnn__names_find(&model->choices, carnn__span_of(label)));
    return n;
}

/* The losses of words alone and, in training, with those of labels (Tran et al. 2018, Eq. 11 to
   13). */
static void test_lm_equations(int previous) {
    static const struct {
        const char *text, *label; /* text NULL: a document ends */
    } row[] = {{"the cat sat", "x"}, {"the dog sat", "y"}, {"a cat ran", NULL}, {NULL, NULL},
               {"the dog ran", "x"}, {"a dog sat", "y"}, {"the cat ran", "x"}}; /* lm_text */
    carnn_dataset *data = lm_data(lm_text);
    const char *options = previous ? "cell=ncarnn label_weight=0.3 label_row=previous"
                                   : "cell=ncarnn label_weight=0.3 label_row=own";
    carnn_model *model = test_model("lm", options, NULL, data);
    double words = 0.0, labels = 0.0, known = 0.0;
    size_t i, n = 0;
    test_work w;
    float *g;
    for (i = 0; i < model->params.size; i++)
        model->params.value[i] += carnn__uniform(9, i) - 0.5f;
    for (i = 0; i < sizeof row / sizeof *row; i++) {
        const char *before = i ? row[i - 1].text : NULL;
        const char *label = !before ? NULL : previous ? row[i - 1].label : row[i].label;
        if (!row[i].text) continue;
        n += lm_sentence(model, row[i].text, before, label, &words, &labels);
        known += label != NULL;
    }
    words /= (double)n;
    CHECK_NEAR(known, previous ? 4.0 : 3.0, 0.0);
    CHECK_NEAR(test_scores(model, data).loss, words, 1e-6);
    g = (float *)carnn__alloc_aligned(&model->allocator, model->params.size, sizeof *g);
    memset(g, 0, model->params.size * sizeof *g);
    test_work_open(&w, model, data, 1);
    w.work.g = g;
    CHECK_INT(test_work_run(&w, 0), 1);
    CHECK_NEAR(w.tally.loss / (double)n, 0.7 * words + 0.3 * labels / known, 1e-6);
    test_work_close(&w);
    carnn__free_aligned(&model->allocator, g);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Of the sentences that are not the first of a document, four have a label before them, and of
   their own; unlabelled and unknown ones: the one is left out, the other is told wrongly. */
static void test_labels(void) {
    static const char rows[] = "a\tx\nb\ty\na\nb\tnew\na\tx\n";
    carnn_dataset *data = lm_data(lm_text), *odd = lm_data(rows);
    carnn_model *model = lm_model("ncarnn", NULL, data);
    carnn_scores s;
    char many[700];
    size_t i;
    CHECK_INT(model->choices.count, 2);
    CHECK_TEXT(lm_option(model, "label_row"), "own");
    CHECK_TEXT(lm_option(model, "label_weight"), "0.1");
    model->desc.option[CARNN__LM_LABEL_WEIGHT] = 0.5; /* a few rows are to be learnt by heart */
    CHECK_INT(lm_fit(model, data, 1, 40, 0.02), CARNN_OK);
    s = test_scores(model, data);
    CHECK(test_metric(&s, "label_accuracy") >= 0.99);
    CHECK(test_metric(&s, "perplexity") < 4.0);
    memset(test_weight(model, "label.weight"), 0, 2 * 19 * sizeof(float)); /* it always says x */
    test_weight(model, "label.bias")[0] = 9.0f;
    test_weight(model, "label.bias")[1] = 0.0f;
    s = test_scores(model, odd); /* of y, (none), new and x one of three is right */
    CHECK_NEAR(test_metric(&s, "label_accuracy"), 1.0 / 3.0, 1e-12);
    carnn_dataset_free(odd);
    for (i = 0; i < 300; i++) memcpy(many + 6 + 2 * i, "a ", 2); /* in pieces, one label */
    memcpy(many, "a\tx\nb ", 6);
    strcpy(many + 606, "\tx\nb\ty\n");
    odd = lm_data(many);
    s = test_scores(model, odd);
    CHECK_NEAR(test_metric(&s, "label_accuracy"), 0.5, 1e-12);
    carnn_model_free(model);
    model = lm_model("ncarnn", NULL, data);
    /* words have no part in the loss: nothing is learnt of them */
    model->desc.option[CARNN__LM_LABEL_WEIGHT] = 1.0;
    CHECK_INT(lm_fit(model, data, 1, 3, 0.02), CARNN_OK);
    for (i = 0; i < model->words.count; i++)
        CHECK(test_weight(model, "output.bias")[i] == 0.0f);
    carnn_model_free(model);
    model = lm_model("ncarnn", "none", data);
    CHECK_INT(model->choices.count, 0); /* nothing to tell them from */
    carnn_model_free(model);
    carnn_dataset_free(data);
    carnn_dataset_free(odd);
    data = lm_data("a b\nb a\n");
    model = lm_model("ncarnn", NULL, data);
    model->desc.option[CARNN__LM_LABEL_ROW] = 0.0; /* as in a file that says nothing of it */
    s = test_scores(model, data);
    CHECK(isfinite(test_metric(&s, "perplexity")));
    carnn_model_free(model);
    carnn_dataset_free(data);
    data = lm_data("=== 1\nA|Well, it's Fine.|sd\nB|Yes.|aa\n");
    model = lm_model("icarnn", NULL, data);
    CHECK_TEXT(lm_option(model, "label_row"), "previous");
    CHECK(carnn__names_find(&model->words, carnn__span_of("it's")) != CARNN__NO_INDEX);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* A session reads what a test reads, for every cell, also in a long sentence; a reset begins a
   document. */
static void test_lm_session(const char *cell, const char *context) {
    static char longer[2 * 700 + 4];
    carnn_dataset *data = lm_data(lm_text), *one;
    carnn_model *model = lm_model(cell, context, data);
    carnn_session *session = NULL;
    carnn_error error;
    double sum = 0.0;
    size_t i, tokens = 0, more;
    carnn_scores s;
    for (i = 0; i < 700; i++) memcpy(longer + 2 * i, i % 3 ? "a " : "b ", 2);
    memcpy(longer + 1400, "\na\n", 4);
    CHECK_INT(lm_fit(model, data, 1, 2, 0.02), CARNN_OK);
    one = lm_data(longer);
    s = test_scores(model, one);
    CHECK_INT(carnn_session_open(&session, model, NULL, &error), CARNN_OK);
    for (i = 0; i < 2; i++) {
        carnn_session_reset(session);
        sum = lm_score(session, longer, 1400, &tokens);
        sum += lm_score(session, "a", 1, &more);
        tokens += more;
    }
    CHECK_INT(tokens, 703);
    CHECK_INT(s.tokens, 703);
    if (strncmp(cell, "lin-", 4) || isfinite(sum)) /* 700 steps without bounds may be too many */
        CHECK(sum == s.loss * 703.0 || fabs(sum - s.loss * 703.0) < 1e-9 * sum);
    else CHECK(!isfinite(s.loss));
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
    carnn_dataset_free(one);
}

typedef struct lm_told { /* what carnn_predict tells is what a session says */
    carnn_session *session;
    const carnn_dataset *data;
    size_t count;
} lm_told;

static void on_likelihood(const carnn_prediction *p, void *user) {
    lm_told *told = (lm_told *)user;
    const char *text = carnn_dataset_text(
        told->data, p->example, carnn_dataset_text_count(told->data, p->example) - 1);
    carnn_prediction alone;
    size_t tokens;
    CHECK_INT(p->example, told->count++);
    CHECK_INT(carnn_session_example(told->session, told->data, p->example, 0, &alone, NULL),
              CARNN_OK);
    CHECK(alone.score == p->score);
    CHECK_INT(alone.tokens, p->tokens);
    if (carnn_dataset_text_count(told->data, p->example) > 1) return;
    carnn_session_reset(told->session); /* the first of a document */
    CHECK(lm_score(told->session, text, strlen(text), &tokens) == p->score);
    CHECK_INT(tokens, p->tokens);
}

static void test_lm_predict(const char *cell, const char *context) {
    static char longer[sizeof lm_text + 3 * 600];
    carnn_dataset *data;
    carnn_predict_desc how;
    carnn_model *model;
    lm_told told;
    size_t i;
    memset(&how, 0, sizeof how);
    memset(&told, 0, sizeof told);
    for (i = 0; i < 600; i++) memcpy(longer + 2 * i, i % 7 ? "a " : "b ", 2);
    longer[1200] = '\n';
    memcpy(longer + 1201, lm_text, sizeof lm_text);
    data = lm_data(longer);
    model = lm_model(cell, context, data);
    CHECK_INT(lm_fit(model, data, 1, 1, 0.02), CARNN_OK);
    CHECK_INT(carnn_session_open(&told.session, model, NULL, NULL), CARNN_OK);
    told.data = data;
    how.threads = 1;
    how.example = on_likelihood;
    how.user = &told;
    CHECK_INT(carnn_predict(model, data, &how, NULL), CARNN_OK);
    CHECK_INT(told.count, carnn_dataset_examples(data));
    carnn_session_free(told.session);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* What words add to a logit is all of it; shares in the context come to nearly one. */
static void test_lm_explain(void) {
    carnn_dataset *data = lm_data(lm_text);
    carnn_model *model = lm_model("scarnn", NULL, data);
    carnn_session *session = NULL;
    carnn_contribution part[32];
    carnn_explanation e;
    carnn_error error;
    double sum, shares = 0.0;
    size_t i, tokens;
    CHECK_INT(lm_fit(model, data, 1, 5, 0.02), CARNN_OK);
    test_weight(model, "output.bias")[CARNN__RUNNING_BEGIN] = 50.0f; /* is no word to come */
    CHECK_INT(carnn_session_open(&session, model, NULL, &error), CARNN_OK);
    CHECK_INT(carnn_session_explain(session, 32, part, &e, NULL), CARNN_OK);
    CHECK_INT(e.count, 0);
    lm_score(session, "the cat sat", 11, &tokens);
    lm_score(session, "a dog", 5, &tokens);
    CHECK_INT(carnn_session_explain(session, 32, part, &e, NULL), CARNN_OK);
    CHECK_INT(e.count, 4 + 3);
    CHECK_INT(e.exact, 1);
    CHECK_TEXT(part[0].text, "the");
    CHECK_TEXT(part[0].role, "before");
    CHECK_INT(part[0].has, CARNN_HAS_SHARE);
    CHECK_TEXT(part[6].text, "dog");
    CHECK_TEXT(part[6].role, "word");
    CHECK_INT(part[6].has, CARNN_HAS_SCORE);
    for (i = 0, sum = e.rest; i < e.count; i++) sum += part[i].score;
    for (i = 0; i < e.count; i++) shares += part[i].share;
    CHECK(shares > 0.5 && shares < 1.0);
    i = carnn__names_find(&model->words, carnn__span_of(e.of));
    CHECK(i != CARNN__RUNNING_BEGIN);
    CHECK_NEAR(sum, ((const carnn__lm *)session->work.state)->output.z[i], 1e-4);
    /* the bias belongs to no word: exact shares leave only that */
    CHECK_NEAR(e.rest, test_weight(model, "output.bias")[i], 1e-4);
    memset(part, 0, sizeof part);
    CHECK_INT(carnn_session_explain(session, 5, part, &e, NULL), CARNN_OK); /* room for fewer */
    CHECK_INT(e.count, 4 + 3);
    CHECK_TEXT(part[4].text, "<s>");
    CHECK(part[5].text == NULL);
    carnn_session_free(session);
    memset(model->params.value, 0, model->params.size * sizeof(float)); /* nothing has a share */
    CHECK_INT(carnn_session_open(&session, model, NULL, NULL), CARNN_OK);
    lm_score(session, "the cat sat", 11, &tokens);
    lm_score(session, "a dog", 5, &tokens);
    CHECK_INT(carnn_session_explain(session, 32, part, &e, NULL), CARNN_OK);
    for (i = 0; i < e.count; i++) CHECK_NEAR(part[i].share, 0.0, 0.0);
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Words of another size than the states are projected, by weights with this name in model files. */
static void test_lm_projection(void) {
    carnn_dataset *data = lm_data(lm_text);
    carnn_model *model = lm_model("scarnn", NULL, data);
    carnn_tensor P = carnn_model_tensor(model, 0);
    size_t i;
    for (i = 1; P.name && strcmp(P.name, "word.project") != 0; i++)
        P = carnn_model_tensor(model, i);
    CHECK(P.name != NULL);
    CHECK_INT(P.rows, 19);
    CHECK_INT(P.columns, 13);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Of a long sentence each piece of 256 words is a sentence of its own, behind the one before. */
static void test_lm_explain_pieces(void) {
    static char text[2 * 300];
    static carnn_contribution part[600];
    carnn_dataset *data = lm_data(lm_text);
    carnn_model *model = lm_model("scarnn", "previous", data);
    carnn_session *session = NULL;
    carnn_explanation e;
    size_t i, tokens;
    for (i = 0; i < 300; i++) memcpy(text + 2 * i, i == 255 ? "x " : "a ", 2);
    CHECK_INT(carnn_session_open(&session, model, NULL, NULL), CARNN_OK);
    lm_score(session, text, sizeof text, &tokens);
    CHECK_INT(tokens, 301);
    CHECK_INT(carnn_session_explain(session, 600, part, &e, NULL), CARNN_OK);
    CHECK_INT(e.count, 256 + 45);
    CHECK_TEXT(part[255].role, "before");
    CHECK_TEXT(part[255].text, "<unk>"); /* its last word is x */
    CHECK_TEXT(part[256].role, "word");
    CHECK_TEXT(part[257].text, "a");
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Where the context is a learned vector the sentence before is not explained. */
static void test_lm_explain_no_context(void) {
    carnn_dataset *data = lm_data(lm_text);
    carnn_model *model = test_model(
        "lm", "cell=scarnn context=none hidden=5 embedding=5 min_count=1", NULL, data);
    carnn_session *session = NULL;
    carnn_contribution part[32];
    carnn_explanation e;
    size_t tokens;
    CHECK_INT(carnn_session_open(&session, model, NULL, NULL), CARNN_OK);
    lm_score(session, "the cat sat", 11, &tokens);
    lm_score(session, "a dog", 5, &tokens);
    CHECK_INT(carnn_session_explain(session, 32, part, &e, NULL), CARNN_OK);
    CHECK_INT(e.count, 3);
    CHECK_TEXT(part[0].role, "word");
    CHECK_TEXT(part[2].text, "dog");
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Of equal words the first are kept. */
static void test_truncate(void) {
    static const float p[] = {0.2f, 0.3f, 0.2f, 0.2f, 0.1f};
    static const struct {
        size_t most;
        double mass;
        const char *kept;
    } cases[] = {{3, 0.0, "11100"}, {0, 0.6, "11100"}, {0, 0.25, "01000"}, {1, 0.9, "01000"},
                 {4, 2.0, "11110"}, {0, 2.0, "11111"}, {9, 0.0, "11111"}};
    size_t i, j;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        float q[5];
        uint32_t heap[5];
        memcpy(q, p, sizeof q);
        carnn__sample_truncate(q, heap, 5, cases[i].most, cases[i].mass);
        for (j = 0; j < 5; j++) CHECK(q[j] == (cases[i].kept[j] == '1' ? p[j] : 0.0f));
    }
}

static void test_generate(void) {
    carnn_dataset *data = lm_data(lm_text);
    carnn_model *model = lm_model("lstm", "previous", data);
    carnn_session *session = NULL;
    carnn_sampling how;
    carnn_error error;
    const char *reply;
    char a[200], b[200], tiny[6];
    size_t size;
    memset(&how, 0, sizeof how);
    CHECK_INT(lm_fit(model, data, 1, 60, 0.02), CARNN_OK);
    CHECK_INT(carnn_session_open(&session, model, NULL, &error), CARNN_OK);
    how.temperature = CARNN_NONE;
    CHECK(lm_generate(session, &how, "the dog", a, sizeof a) > 7);
    CHECK(!strncmp(a, "the dog ", 8));
    carnn_session_reset(session);
    how.temperature = 0.0;
    how.top_k = 1; /* the same as none */
    lm_generate(session, &how, "the dog", b, sizeof b);
    CHECK_TEXT(b, a);
    carnn_session_reset(session);
    how.top_k = 0;
    how.top_p = 1e-6;
    lm_generate(session, &how, "the dog", b, sizeof b);
    CHECK_TEXT(b, a);
    carnn_session_reset(session);
    how.top_p = 0.0;
    how.temperature = 1e-40; /* logits over it are no floats */
    lm_generate(session, &how, "the dog", b, sizeof b);
    CHECK_TEXT(b, a);
    CHECK(lm_generate(session, &how, "dog the a cat", tiny, sizeof tiny) == 3);
    CHECK_TEXT(tiny, "dog"); /* no word behind one that does not fit */
    for (size = 5; size <= 14; size++) { /* as many words of the prompt as there is room for */
        lm_generate(session, &how, "dog the a cat", a, size);
        CHECK_TEXT(a, size < 8 ? "dog" : size < 10 ? "dog the" : size < 14 ? "dog the a"
                                                                           : "dog the a cat");
    }
    lm_generate(session, &how, "a </s> cat", a, sizeof a); /* in a prompt it is a word */
    CHECK(!strncmp(a, "a </s> cat", 10));
    lm_generate(session, &how, "", tiny, 0);
    how.words = 3;
    how.top_p = 0.0;
    how.temperature = 5.0;
    lm_generate(session, &how, "", a, sizeof a);
    CHECK(strlen(a) < 20);
    how.words = 1000001;
    CHECK_INT(carnn_session_generate(session, &how, "", 0, a, sizeof a, &error),
              CARNN_ERR_ARGUMENT);
    CHECK_INT(carnn_session_reply(session, "a", 1, &reply, &error), CARNN_ERR_ARGUMENT);
    CHECK(strstr(error.message, "generate") != NULL); /* what it does instead */
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* The same bytes with one thread and three, with and without SIMD, and after a file. */
static void test_lm_same_bytes(void) {
    carnn_dataset *data = lm_data(lm_text);
    const char *best = carnn_simd_name(0);
    unsigned char *file[3];
    size_t size[3], i;
    carnn_error error;
    for (i = 0; i < 3; i++) {
        carnn_model *model = lm_model("ncarnn", NULL, data);
        model->desc.simd = i == 2 ? "portable" : best;
        CHECK_INT(lm_fit(model, data, i == 1 ? 3 : 1, 3, 0.01), CARNN_OK);
        size[i] = carnn_model_size(model);
        file[i] = (unsigned char *)carnn__alloc_aligned(&model->allocator, size[i], 1);
        CHECK_INT(carnn_model_write(model, file[i], size[i], &error), CARNN_OK);
        CHECK_INT(size[i], size[0]);
        CHECK(!memcmp(file[i], file[0], size[0]));
        carnn_model_free(model);
    }
    {
        carnn_source source = {"memory", NULL, 0};
        carnn_model *model = NULL;
        carnn_scores s;
        source.bytes = file[0];
        source.size = size[0];
        CHECK_INT(carnn_model_load(&model, &source, NULL, &error), CARNN_OK);
        s = test_scores(model, data);
        CHECK(s.loss == carnn_model_scores(model)->loss);
        CHECK_INT(model->choices.count, 2);
        carnn_model_free(model);
    }
    for (i = 0; i < 3; i++) {
        carnn_allocator a = carnn__allocator(NULL);
        carnn__free_aligned(&a, file[i]);
    }
    carnn_dataset_free(data);
}

/* A model whose labels are told by biases alone. */
static carnn_model *label_model(const carnn_dataset *data, float x, float y) {
    carnn_model *model = lm_model("ncarnn", NULL, data);
    memset(test_weight(model, "label.weight"), 0, 2 * 19 * sizeof(float));
    test_weight(model, "label.bias")[0] = x;
    test_weight(model, "label.bias")[1] = y;
    return model;
}

/* The vote on labels is by the mean of the probabilities, not of the logits: x has 0.73, 0.73 and
   0.05. Where members tell other labels there is none. Of three labels two are y. */
static void test_label_votes(void) {
    carnn_dataset *data = lm_data("a\tx\nb\ty\nb\ty\na\tx\n"), *other = lm_data("a\tz\nb\ty\n");
    carnn_model *model[3], *apart = label_model(other, 0.0f, 0.0f);
    carnn_dataset *empty = lm_data("\tx\n\ty\n");
    const carnn_model *members[3];
    carnn_scores s[4];
    size_t i;
    for (i = 0; i < 3; i++) model[i] = label_model(data, i < 2 ? 1.0f : 0.0f, i < 2 ? 0.0f : 3.0f);
    for (i = 0; i < 3; i++) members[i] = model[i];
    CHECK_INT(carnn_test(members, 3, data, 1, s, NULL), CARNN_OK);
    CHECK_NEAR(test_metric(&s[0], "label_accuracy"), 1.0 / 3.0, 1e-12);
    CHECK_NEAR(test_metric(&s[2], "label_accuracy"), 2.0 / 3.0, 1e-12);
    CHECK_NEAR(test_metric(&s[3], "label_accuracy"), 1.0 / 3.0, 1e-12);
    CHECK_INT(carnn_test(members + 1, 2, data, 1, s, NULL), CARNN_OK);
    CHECK_NEAR(test_metric(&s[2], "label_accuracy"), 2.0 / 3.0, 1e-12);
    members[1] = apart;
    CHECK_INT(carnn_test(members, 2, data, 1, s, NULL), CARNN_OK);
    CHECK_NEAR(test_metric(&s[2], "label_accuracy"), -1.0, 0.0);
    members[1] = model[1]; /* the same labels, but those of the sentence before */
    model[1]->desc.option[CARNN__LM_LABEL_ROW] = 1 + CARNN__LM_LABEL_PREVIOUS;
    CHECK_INT(carnn_test(members, 2, data, 1, s, NULL), CARNN_OK);
    CHECK_NEAR(test_metric(&s[2], "label_accuracy"), -1.0, 0.0);
    s[0] = test_scores(model[0], empty);
    CHECK_INT(s[0].tokens, 2);
    CHECK_NEAR(test_metric(&s[0], "perplexity_words"), 1.0, 0.0); /* there are none */
    for (i = 0; i < 3; i++) carnn_model_free(model[i]);
    carnn_model_free(apart);
    carnn_dataset_free(empty);
    carnn_dataset_free(data);
    carnn_dataset_free(other);
}

/* The loss of a batch in training; its gradient. */
static double label_step(const carnn_model *model, const carnn_dataset *data, float *g) {
    test_work w;
    test_work_open(&w, model, data, 1);
    w.work.g = g;
    test_work_run(&w, 0);
    test_work_close(&w);
    return w.tally.loss;
}

/* A label that the model does not know is learnt as little as one that is not there. */
static void test_unknown_label(void) {
    carnn_dataset *data = lm_data("a\tx\nb\ty\na\tx\n");
    carnn_dataset *unknown = lm_data("a\tx\nb\tnew\na\ty\n"), *none = lm_data("a\tx\nb\na\ty\n");
    carnn_model *model = label_model(data, 1.0f, 0.0f);
    float *g[2];
    size_t i;
    for (i = 0; i < 2; i++) g[i] = test_floats(model->params.size);
    CHECK_NEAR(label_step(model, unknown, g[0]), label_step(model, none, g[1]), 0.0);
    CHECK(!memcmp(g[0], g[1], model->params.size * sizeof(float)));
    for (i = 0; i < 2; i++) test_drop(g[i]);
    carnn_model_free(model);
    carnn_dataset_free(none);
    carnn_dataset_free(unknown);
    carnn_dataset_free(data);
}

/* A training that was stopped goes on to the same weights. */
static void test_lm_resume(void) {
    carnn_dataset *data = lm_data(lm_text);
    carnn_model *whole = lm_model("icarnn", NULL, data), *cut = lm_model("icarnn", NULL, data);
    test_resumed(whole, cut, cut, data, test_training(5, 2, 0.0, 0.0), "test_lm.resume");
    carnn_model_free(whole);
    carnn_model_free(cut);
    carnn_dataset_free(data);
}

/* Text of one word of a megabyte, of 100,000 words in a sentence, and of bytes that are no UTF-8:
   all of them are read, trained on and scored. */
static void test_odd_texts(void) {
    enum { WORD = 1 << 20, WORDS = TEST_SANITIZED ? 10000 : 100000 };
    char *bytes = (char *)malloc(2 * WORDS + WORD + 64);
    size_t i, at = 0;
    carnn_dataset *data;
    carnn_model *model;
    carnn_session *session = NULL;
    carnn_error error;
    carnn_scores s;
    size_t tokens;
    for (i = 0; i < WORD; i++) bytes[at++] = 'w';
    memcpy(bytes + at, " a\n\xff\xfe a \xc3\n", 10);
    at += 10;
    for (i = 0; i < WORDS; i++, at += 2) memcpy(bytes + at, i % 5 ? "a " : "b ", 2);
    data = test_data("lm", bytes, at, 0, 0);
    model = lm_model("ncarnn", NULL, data);
    CHECK_INT(carnn_dataset_examples(data), 3);
    CHECK_INT(lm_fit(model, data, 1, 1, 0.001), CARNN_OK);
    s = test_scores(model, data);
    CHECK_INT(s.tokens, 3 + 4 + WORDS + 1);
    CHECK(test_metric(&s, "perplexity") > 1.0 && test_metric(&s, "perplexity") < 100.0);
    CHECK_INT(carnn_session_open(&session, model, NULL, &error), CARNN_OK);
    lm_score(session, bytes, at, &tokens);
    CHECK_INT(tokens, 5 + WORDS + 1);
    CHECK(lm_score(session, NULL, 0, &tokens) > 0.0);
    CHECK_INT(tokens, 1);
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
    free(bytes);
}

/* A byte order mark, lines of speakers, sentences without words, documents without sentences, words
   that look like our own: a session counts and scores as a test does. */
static void test_odd_rows(void) {
    static const char rows[] = "\xEF\xBB\xBF=\n\n=== empty\n= again\n\xEF\xBB\xBF" "A|Well, it's "
                               "Fine.|sd\nB|--|x\nno speaker | here\n\n\tx\n</s> <unk> <s> N\n"
                               "= end\n=\n";
    static const char *const line[] = {"\xEF\xBB\xBF=", "\xEF\xBB\xBF" "A|Well, it's Fine.|sd",
                                       "B|--|x",
                                       "no speaker | here", "", "\tx", "</s> <unk> <s> N"};
    carnn_dataset *data = lm_data(rows);
    carnn_model *model = lm_model("icarnn", NULL, data);
    carnn_session *session = NULL;
    carnn_scores s;
    carnn_prediction p;
    double sum = 0.0;
    size_t i, tokens = 0;
    int found;
    CHECK_INT(carnn_dataset_examples(data), 5);
    CHECK_INT(model->words.count, 3 + 5 + 4 + 1); /* <unk> <s> </s>; well , it's fine . */
    CHECK_INT(lm_fit(model, data, 1, 2, 0.01), CARNN_OK);
    s = test_scores(model, data);
    CHECK_INT(s.tokens, 6 + 1 + 5 + 1 + 5);
    CHECK_INT(carnn_session_open(&session, model, NULL, NULL), CARNN_OK);
    for (i = 0; i < CARNN__COUNT(line); i++) {
        CHECK_INT(carnn_session_line(session, line[i], strlen(line[i]), i + 1, 0, &found, &p, NULL),
                  CARNN_OK);
        CHECK_INT(found, i && *line[i]);
        if (found) tokens += p.tokens, sum += p.score;
    }
    CHECK_INT(tokens, s.tokens);
    CHECK_NEAR(sum, s.loss * (double)s.tokens, 1e-9 * sum);
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Word vectors are where the embeddings begin, and say how large they are. */
static void test_lm_vectors(void) {
    static const char text[] = "dog 1 2 3\nzebra 4 5 6\ncat -1 0.5 0\n";
    carnn_dataset *data = lm_data(lm_text);
    carnn_source vectors = test_source("vectors", text, sizeof text - 1);
    carnn_model *model = NULL;
    carnn_model_desc desc;
    carnn_error error;
    const float *w;
    memset(&desc, 0, sizeof desc);
    desc.task = "lm";
    desc.hidden = 5;
    desc.min_count = 1;
    desc.vectors = &vectors;
    desc.vector_count = 1;
    CHECK_INT(carnn_model_create(&model, &desc, data, &error), CARNN_OK);
    CHECK_INT(carnn_model_describe(model)->embedding, 3);
    w = carnn_model_tensor(model, 0).value +
        3 * carnn__names_find(&model->words, carnn__span_of("cat"));
    CHECK(w[0] == -1.0f && w[1] == 0.5f && w[2] == 0.0f);
    CHECK(carnn__names_find(&model->words, carnn__span_of("zebra")) == CARNN__NO_INDEX);
    carnn_model_free(model);
    model = NULL;
    CHECK_INT(carnn_set(&desc, NULL, "tied", "1", NULL), CARNN_OK);
    CHECK_INT(carnn_model_create(&model, &desc, data, &error), CARNN_ERR_ARGUMENT);
    CHECK(strstr(error.message, "same size") != NULL);
    CHECK(model == NULL);
    carnn_dataset_free(data);
}

typedef struct accident { /* what happens to a matrix after the second epoch */
    carnn_model *model;
    const char *matrix;
    float factor; /* 0: the training is stopped instead */
} accident;

static int on_accident(const carnn_progress *p, void *user) {
    const accident *a = (const accident *)user;
    carnn_tensor t;
    size_t i, j;
    if (!p->epoch_ended || p->epoch != 2) return 0;
    if (a->factor == 0.0f) return 1;
    for (i = 0; (t = carnn_model_tensor(a->model, i)).name; i++)
        for (j = 0; !strcmp(t.name, a->matrix) && j < t.rows * t.columns; j++)
            a->model->params.value[a->model->params.item[i].offset + j] *= a->factor;
    return 0;
}

/* A training that meets NaN or an infinity says where and when, and leaves
   the weights of the epoch that was best: those that it has when it is stopped there. */
static void test_lm_diverged(void) {
    static const float how[] = {0.0f, NAN, INFINITY};
    carnn_dataset *data = lm_data(lm_text);
    carnn_model *stopped = NULL;
    size_t i, j;
    for (i = 0; i < CARNN__COUNT(how); i++) {
        carnn_model *model = lm_model("icarnn", NULL, data);
        accident a = {NULL, "output.weight", 0.0f};
        carnn_train_desc train;
        carnn_error error;
        int named = 0;
        a.model = model;
        a.factor = how[i];
        memset(&train, 0, sizeof train);
        train.epochs = 5;
        train.threads = 1;
        train.progress = on_accident;
        train.user = &a;
        CHECK_INT(carnn_train(model, data, data, &train, &error),
                  i ? CARNN_ERR_DIVERGED : CARNN_ERR_STOPPED);
        CHECK_INT(carnn_model_best_epoch(model), 2);
        if (!i) {
            stopped = model;
            continue;
        }
        for (j = 0; carnn_model_tensor(model, j).name; j++)
            named |= strstr(error.message, carnn_model_tensor(model, j).name) != NULL;
        CHECK(named);
        CHECK(strstr(error.message, "is not finite") != NULL);
        CHECK(strstr(error.message, "epoch 3, step 3: the gradient of ") != NULL);
        CHECK(!memcmp(model->params.value, stopped->params.value,
                      model->params.size * sizeof(float)));
        carnn_model_free(model);
    }
    carnn_model_free(stopped);
    carnn_dataset_free(data);
}

/* What is refused, in words. */
static void test_lm_errors(void) {
    carnn_dataset *data = lm_data(lm_text), *none = NULL;
    carnn_dataset_desc desc;
    carnn_source source = {"empty.txt", "", 0};
    carnn_model_desc odd;
    carnn_model *model = lm_model("ncarnn", NULL, data), *refused = NULL;
    carnn_train_desc train;
    carnn_error error;
    test_describe(&desc, "lm", &source);
    CHECK_INT(carnn_dataset_load(&none, &desc, &error), CARNN_ERR_DATA);
    CHECK(strstr(error.message, "empty.txt:1: expected a sentence") != NULL);
    memset(&odd, 0, sizeof odd);
    odd.task = "lm";
    CHECK_INT(carnn_set(&odd, NULL, "tied", "1", NULL), CARNN_OK);
    odd.hidden = 8;
    odd.embedding = 4;
    CHECK_INT(carnn_model_create(&refused, &odd, data, &error), CARNN_ERR_ARGUMENT);
    CHECK(strstr(error.message, "same size") != NULL);
    CHECK_INT(carnn_set(&odd, NULL, "context", "next", &error), CARNN_ERR_ARGUMENT);
    memset(&train, 0, sizeof train);
    train.epochs = 50;
    train.lr = 1e5;
    train.optimizer = "sgd";
    train.clip = CARNN_NONE;
    CHECK_INT(carnn_train(model, data, data, &train, &error), CARNN_ERR_DIVERGED);
    CHECK(strstr(error.message, "step") != NULL);
    CHECK(carnn__not_finite(&model->params, model->params.value, model->params.size) == NULL);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

int main(void) {
    size_t i;
    test_lm_epochs();
    test_words_like_unk();
    test_counts();
    test_lm_equations(0);
    test_lm_equations(1);
    test_draws();
    test_written_context("cell=lstm context=previous");
    test_written_context("cell=ncarnn context=previous");
    test_written_context("cell=lstm chunk=50");
    test_written_context("cell=rnn chunk=4 skip=3");
    test_next_example("cell=icarnn chunk=3");
    test_next_example("cell=lstm chunk=50 layers=2");
    test_next_example("cell=ncarnn");
    test_written_context("cell=rnn chunk=4 normalise=batch");
    test_unknown_label();
    test_lower();
    test_labels();
    for (i = 0; carnn_cell_name(i); i++) {
        test_lm_session(carnn_cell_name(i), "previous");
        test_lm_session(carnn_cell_name(i), "none");
    }
    test_lm_predict("ncarnn", NULL);
    test_lm_predict("gru", "previous");
    test_lm_predict("lstm", "none");
    test_lm_projection();
    test_lm_explain();
    test_lm_explain_pieces();
    test_lm_explain_no_context();
    test_truncate();
    test_generate();
    test_lm_same_bytes();
    test_label_votes();
    test_lm_resume();
    test_odd_texts();
    test_odd_rows();
    test_lm_vectors();
    test_lm_diverged();
    test_lm_errors();
    return test_end();
}
