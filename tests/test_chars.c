/* Language models of characters, and texts in chunks whose states go on: against a plain loop in
   double precision, against the text in one piece, sentence by sentence in a session. */

#include "test.h"

/* Two documents; characters of one, two, three and four bytes, and two bytes that are none. */
static const char chars_text[] = "the cat\n\xC3\xA4 \xE2\x82\xAC\xF0\x9F\x90\xB1 \xFF\xC3\nsat\n\n"
                                 "  a dog ran \nto the hat\na cat\n";

static carnn_dataset *chars_data(const char *text) {
    return test_read("lm", text);
}

static carnn_model *chars_model(const char *options, const carnn_dataset *data) {
    char all[200];
    snprintf(all, sizeof all, "unit=char min_count=1 %s", options);
    return test_model("lm", all, NULL, data);
}

/* --- what a character is ---------------------------------------------------------------------- */

static void chars_units(void) {
    static const char *const expected[] = {"\xC3\xA4", " ", "\xE2\x82\xAC", "\xF0\x9F\x90\xB1", " ",
                                           "\xFF",     "\xC3"};
    const carnn__span text = {chars_text + 8, 14};
    carnn__words w = carnn__words_of(CARNN__CHARACTERS, text);
    carnn_dataset *data = chars_data(chars_text), *spaced, *near, *single;
    carnn_model *model = chars_model("", data);
    size_t i;
    for (i = 0; carnn__next_word(&w) && i < CARNN__COUNT(expected); i++) {
        CHECK_INT(w.word.length, strlen(expected[i]));
        CHECK(!memcmp(w.word.at, expected[i], w.word.length));
    }
    CHECK_INT(i, CARNN__COUNT(expected));
    w = carnn__words_of(CARNN__CHARACTERS, carnn__span_of("\xE2\x82")); /* cut off */
    CHECK(carnn__next_word(&w) && w.word.length == 1 && *w.word.at == '\xE2');
    CHECK(carnn__next_word(&w) && w.word.length == 1 && *w.word.at == '\x82');
    CHECK(!carnn__next_word(&w));
    CHECK_INT(carnn__character("\xF8\x80\x80\x80", 4), 1); /* begins no character */
    /* t h e ' ' c a, those of the second line, s d o g r n */
    CHECK_INT(carnn_model_word_count(model), 3 + 6 + 5 + 6);
    CHECK_INT(test_scores(model, data).tokens, 8 + 8 + 4 + 10 + 11 + 6);
    carnn_model_free(model);
    spaced = chars_data("t h e _ \xC3\xA4\n c a t\na\n");
    model = chars_model("", spaced);
    CHECK_INT(carnn_model_word_count(model), 3 + 7);
    CHECK_INT(test_scores(model, spaced).tokens, 6 + 4 + 2);
    CHECK(test_metric(carnn_model_scores(model), "bpc") < 0.0); /* not trained */
    carnn_model_free(model);
    near = chars_data("t h e\nca t\n"); /* blanks of its own */
    model = chars_model("", near);
    CHECK_INT(test_scores(model, near).tokens, 6 + 5);
    carnn_model_free(model);
    carnn_dataset_free(near);
    single = chars_data("a\nb\n"); /* a character each says nothing of blanks */
    near = chars_data("a b\n");
    model = chars_model("", single);
    CHECK_INT(test_scores(model, near).tokens, 4);
    carnn_model_free(model);
    carnn_dataset_free(single);
    model = chars_model("lower=1", data);
    CHECK_INT(carnn__names_find(&model->words, carnn__span_of("T")), CARNN__NO_INDEX);
    carnn_model_free(model);
    carnn_dataset_free(data);
    carnn_dataset_free(spaced);
    carnn_dataset_free(near);
}

/* --- the plain loop --------------------------------------------------------------------------- */

typedef struct chars_plain {
    const carnn_model *model;
    double h[8];
} chars_plain;

/* One step of an RNN that reads `id`: -log P(next). */
static double chars_step(chars_plain *p, uint32_t id, uint32_t next) {
    const carnn_model *m = p->model;
    const float *x = test_weight(m, "word.weight") + id * 5, *U = test_weight(m, "output.weight");
    const float *Wx = test_weight(m, "cell.input.weight"), *b = test_weight(m, "cell.bias");
    const float *Wh = test_weight(m, "cell.recurrent.weight"), *c = test_weight(m, "output.bias");
    double h[6], sum = 0.0, chosen = 0.0;
    size_t i, j;
    for (i = 0; i < 6; i++) {
        double a = (double)b[i];
        for (j = 0; j < 5; j++) a += (double)Wx[i * 5 + j] * (double)x[j];
        for (j = 0; j < 6; j++) a += (double)Wh[i * 6 + j] * p->h[j];
        h[i] = tanh(a);
    }
    memcpy(p->h, h, sizeof h);
    for (i = 0; i < m->words.count; i++) {
        double z = (double)c[i];
        for (j = 0; j < 6; j++) z += (double)U[i * 6 + j] * h[j];
        sum += exp(z);
        if (i == next) chosen = z;
    }
    return log(sum) - chosen;
}

/* All of chars_text; states of 0 at the start of a document and every `chunk` characters. */
static double chars_loop(const carnn_model *model, size_t chunk) {
    chars_plain p;
    const char *at = chars_text, *stop;
    uint32_t ids[32], id = 1;
    carnn_text line;
    size_t n, i, step = 0;
    double sum = 0.0;
    memset(&p, 0, sizeof p);
    p.model = model;
    for (; *at; at = stop + 1) {
        stop = strchr(at, '\n');
        line.at = at;
        line.length = (size_t)(stop - at);
        line = carnn__trim(line);
        n = carnn__tokenize(&model->words, CARNN__CHARACTERS, line, ids, 32);
        if (!n) { /* a document ends */
            memset(p.h, 0, sizeof p.h);
            step = 0;
            id = 1;
            continue;
        }
        for (ids[n] = 2, i = 0; i <= n; id = ids[i++], step++) {
            if (step % chunk == 0 && step) memset(p.h, 0, sizeof p.h);
            sum += chars_step(&p, id, ids[i]);
        }
    }
    return sum;
}

static void chars_loss(void) {
    static const double chunks[] = {1, 3, 7, 20, 4096};
    carnn_dataset *data = chars_data(chars_text);
    carnn_model *model = chars_model("cell=rnn", data);
    const carnn_model *pair[2];
    carnn_scores s, both[3];
    double bits = chars_loop(model, 1000) / 47.0 / log(2.0);
    size_t i;
    for (i = 0; i < CARNN__COUNT(chunks); i++) {
        model->desc.option[CARNN__LM_CHUNKS] = chunks[i];
        s = test_scores(model, data);
        CHECK_INT(s.examples, 6);
        CHECK_INT(s.tokens, 47);
        CHECK_NEAR(test_metric(&s, "bpc"), bits, 1e-5);
        CHECK_NEAR(test_metric(&s, "bpc"), log(test_metric(&s, "perplexity")) / log(2.0), 1e-9);
        CHECK_NEAR(test_metric(&s, "bpc_chunked"),
                   chars_loop(model, (size_t)chunks[i]) / 47.0 / log(2.0), 1e-5);
    }
    CHECK_NEAR(test_metric(&s, "bpc_chunked"), test_metric(&s, "bpc"), 0.0);
    CHECK_NEAR(test_metric(&s, "label_accuracy"), -1.0, 0.0);
    model->desc.option[CARNN__LM_CHUNKS] = CARNN_NONE; /* sentence by sentence */
    s = test_scores(model, data);
    CHECK(test_metric(&s, "bpc") > 0.0);
    CHECK_NEAR(test_metric(&s, "bpc_chunked"), -1.0, 0.0);
    model->desc.option[CARNN__LM_CHUNKS] = 3;
    pair[0] = pair[1] = model; /* there is no vote on it */
    CHECK_INT(carnn_test(pair, 2, data, 1, both, NULL), CARNN_OK);
    CHECK_NEAR(test_metric(&both[2], "bpc"), bits, 1e-5);
    CHECK_NEAR(test_metric(&both[2], "bpc_chunked"), -1.0, 0.0);
    carnn_model_free(model);
    model = test_model("lm", "chunk=3 min_count=1", NULL, data); /* words have neither */
    s = test_scores(model, data);
    CHECK_NEAR(test_metric(&s, "bpc"), -1.0, 0.0);
    CHECK_NEAR(test_metric(&s, "bpc_chunked"), -1.0, 0.0);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* --- every cell: chunks, one piece, a session ------------------------------------------------- */

typedef struct chars_told {
    double score[8];
    size_t tokens[8], count;
} chars_told;

static void on_chars(const carnn_prediction *p, void *user) {
    chars_told *told = (chars_told *)user;
    CHECK_INT(p->example, told->count);
    told->score[told->count] = p->score;
    told->tokens[told->count++] = p->tokens;
}

static chars_told chars_predict(const carnn_model *model, const carnn_dataset *data) {
    chars_told told;
    carnn_predict_desc how;
    memset(&told, 0, sizeof told);
    memset(&how, 0, sizeof how);
    how.threads = 1;
    how.example = on_chars;
    how.user = &told;
    CHECK_INT(carnn_predict(model, data, &how, NULL), CARNN_OK);
    CHECK_INT(told.count, 6);
    return told;
}

static void chars_session(const carnn_model *model, const chars_told *told) {
    static const char *const line[] = {"the cat", "\xC3\xA4 \xE2\x82\xAC\xF0\x9F\x90\xB1 \xFF\xC3",
                                       "sat", NULL, " a dog ran ", "to the hat", "a cat"};
    carnn_session *s = NULL;
    size_t i, j = 0;
    CHECK_INT(carnn_session_open(&s, model, NULL, NULL), CARNN_OK);
    for (i = 0; i < CARNN__COUNT(line); i++) {
        carnn_text text = {line[i], line[i] ? strlen(line[i]) : 0};
        carnn_prediction p;
        if (!line[i]) {
            carnn_session_reset(s);
            continue;
        }
        CHECK_INT(carnn_session_predict(s, &text, 1, 0, &p, NULL), CARNN_OK);
        CHECK_INT(p.tokens, told->tokens[j]);
        CHECK_NEAR(p.score, told->score[j], 1e-4);
        j++;
    }
    carnn_session_free(s);
}

/* `same`: what a word is normalised by does not depend on its place in a chunk. */
static void chars_whole(const char *options, int same) {
    static const double chunks[] = {4096, 4, 5};
    carnn_dataset *data = chars_data(chars_text);
    carnn_model *model = chars_model(options, data);
    carnn_train_desc train = test_training(2, 2, 0.01, 0.0);
    chars_told told[3];
    size_t i, j;
    CHECK_INT(carnn_train(model, data, data, &train, NULL), CARNN_OK);
    for (i = 0; i < 3; i++) {
        model->desc.option[CARNN__LM_CHUNKS] = chunks[i];
        told[i] = chars_predict(model, data);
        for (j = 0; j < told[0].count; j++) {
            CHECK_INT(told[i].tokens[j], told[0].tokens[j]);
            if (same) CHECK_NEAR(told[i].score[j], told[0].score[j], 1e-4);
        }
        chars_session(model, &told[i]);
    }
    if (!same) CHECK(fabs(told[0].score[1] - told[1].score[1]) > 1e-4);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* --- rows of a batch -------------------------------------------------------------------------- */

/* Each row has a run of chunks one after the other, the rows one after the other all of them. */
static void chars_places(void) {
    size_t P, R, i;
    for (P = 1; P < 40; P++)
        for (R = 1; R <= P; R++) {
            size_t next = 0, seen[40] = {0};
            for (i = 0; i < P; i++) {
                size_t place = carnn__row_place(i, P, R);
                CHECK(place < P && !seen[place]++);
                CHECK(!i || place == next + R || place == carnn__row_place(i - 1, P, R) % R + 1);
                next = place;
            }
            CHECK_INT(carnn__row_place(0, P, R), 0);
        }
}

/* Central differences of the loss of each batch, whose states before it are given; rows differ in
   length where documents end. */
static void chars_gradient(const char *options) {
    carnn_dataset *data = chars_data(chars_text);
    carnn_model *model = chars_model(options, data);
    const carnn__store *store = &model->params;
    float *g = (float *)calloc(store->size, 2 * sizeof(float)), *w = store->value;
    float *own = g + store->size;
    size_t batches, b, i, k;
    test_work run;
    test_work_open(&run, model, data, 1);
    run.work.g = g;
    run.work.batch = 3;
    batches = test_work_begin(&run);
    CHECK(batches >= 4);
    for (b = 0; b < batches; b++) {
        carnn__tally t;
        memset(g, 0, store->size * sizeof(float));
        memset(&t, 0, sizeof t);
        carnn__net_batch(&run.work, b, 0, &t);
        memcpy(own, g, store->size * sizeof(float)); /* more is added to g */
        for (i = 0; i < store->count; i++)
            for (k = 0; k < 3; k++) {
                const carnn__param *p = &store->item[i];
                size_t n = p->offset + carnn__random(i, k) % (p->rows * p->columns);
                const double step = 1.0 / 64.0;
                double loss[2], found;
                float before = w[n];
                int up;
                for (up = 0; up < 2; up++) {
                    w[n] = before + (float)(up ? step : -step);
                    memset(&t, 0, sizeof t);
                    carnn__net_batch(&run.work, b, 0, &t);
                    loss[up] = t.loss / (double)t.tokens;
                }
                w[n] = before;
                found = (loss[1] - loss[0]) / (2.0 * step);
                CHECK_NEAR((double)own[n], found, 2e-4 + 2e-2 * fabs(found));
            }
        carnn__net_batch(&run.work, b, 0, &t); /* leaves the states that these weights make */
    }
    free(g);
    test_work_close(&run);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* States do go on: with the same weights, the second chunk of each row costs something else. */
static void chars_carried(void) {
    carnn_dataset *data = chars_data(chars_text);
    carnn_model *model = chars_model("cell=lstm chunk=4", data);
    test_work run;
    carnn__tally t, again, fresh, first;
    size_t i;
    test_work_open(&run, model, data, 1);
    run.work.g = (float *)calloc(model->params.size, sizeof(float));
    run.work.batch = 3;
    CHECK_INT(test_work_begin(&run), 4); /* 5 and 7 chunks in three rows */
    memset(&first, 0, sizeof first);
    carnn__net_batch(&run.work, 0, 0, &first);
    memset(&t, 0, sizeof t);
    carnn__net_batch(&run.work, 1, 0, &t);
    memset(&again, 0, sizeof again);
    carnn__net_batch(&run.work, 1, 0, &again);
    CHECK(t.loss == again.loss);
    for (i = 0; i < carnn__corpus_of(&run.work)->carried_count; i++)
        carnn__corpus_of(&run.work)->carried[i] = 0.0f;
    memset(&fresh, 0, sizeof fresh);
    carnn__net_batch(&run.work, 1, 0, &fresh);
    CHECK(fresh.loss != t.loss);
    memset(&again, 0, sizeof again); /* as an epoch begins, in the midst of texts, too */
    carnn__net_batch(&run.work, 0, 0, &again);
    CHECK(again.loss == first.loss);
    free(run.work.g);
    test_work_close(&run);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Documents of 3, 2 and 2 chunks of 8, each a row: the chunks of all rows one after the other cost
   what the documents cost as wholes. */
static void chars_rows(const char *options) {
    static const char text[] = "the cat sat on the hat\n\nthe hat is on\n\na dog ran home\n";
    carnn_dataset *data = chars_data(text);
    carnn_model *model = chars_model(options, data);
    carnn_scores s;
    test_work run;
    carnn__tally t;
    size_t b, batches;
    for (b = 0; b < model->params.size; b++) model->params.value[b] *= 3.0f; /* states matter */
    s = test_scores(model, data);
    test_work_open(&run, model, data, 1);
    run.work.g = (float *)calloc(model->params.size, sizeof(float));
    run.work.batch = 3;
    batches = test_work_begin(&run);
    memset(&t, 0, sizeof t);
    for (b = 0; b < batches; b++) carnn__net_batch(&run.work, b, 0, &t);
    CHECK_INT(batches, 3);
    CHECK_INT(t.tokens, s.tokens);
    CHECK_NEAR(t.loss / (double)t.tokens, s.loss, 1e-5);
    free(run.work.g);
    test_work_close(&run);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* --- training --------------------------------------------------------------------------------- */

/* The same bytes with any threads and instructions, and where each step is a run of its own. */
static void chars_same_bytes(const char *options) {
    carnn_dataset *data = chars_data(chars_text);
    carnn_model *model[4];
    carnn_error error;
    size_t i, steps = 0;
    for (i = 0; i < 4; i++) {
        carnn_train_desc train = test_training(3, 2, 0.01, 0.2);
        train.threads = i == 1 ? 3 : 1;
        model[i] = chars_model(options, data);
        model[i]->desc.simd = i == 2 ? "portable" : model[0]->desc.simd;
        if (i == 3) train.checkpoint = "test_chars.resume", train.max_time = 1e-9;
        do {
            CHECK_INT(carnn_train(model[i], data, NULL, &train, &error), CARNN_OK);
            train.resume = i == 3;
        } while (i == 3 && ++steps < 3 * 6);
        CHECK(!memcmp(model[i]->params.value, model[0]->params.value,
                      model[0]->params.size * sizeof(float)));
    }
    remove("test_chars.resume");
    for (i = 0; i < 4; i++) carnn_model_free(model[i]);
    carnn_dataset_free(data);
}

typedef struct chars_memory {
    test_memory memory; /* first: it is the user of test_realloc and test_free */
    int fill;           /* each byte of a new block */
} chars_memory;

static void *chars_alloc(size_t bytes, void *user) {
    void *block = test_alloc(bytes, user);
    return block ? memset(block, ((chars_memory *)user)->fill, bytes) : NULL;
}

/* The value of a key of 8 bytes, behind its type, becomes 0. */
static void chars_forget(char *bytes, size_t size, const char *key) {
    size_t at = 0, length = strlen(key);
    while (at + length + 12 < size && memcmp(bytes + at, key, length)) at++;
    CHECK(!memcmp(bytes + at, key, length));
    memset(bytes + at + length + 4, 0, 8);
}

/* What memory held before, numbers or NaN, is not in a checkpoint, also of cells without a c. */
static void chars_filled(const char *options) {
    carnn_dataset *data = chars_data(chars_text);
    carnn_allocator standard = carnn__allocator(NULL);
    void *bytes[2];
    size_t size[2], i;
    int stop = 1;
    for (i = 0; i < 2; i++) {
        chars_memory filled;
        carnn_allocator allocator = {chars_alloc, test_realloc, test_free, NULL};
        carnn_train_desc train = test_training(3, 2, 0.01, 0.0);
        carnn_model_desc desc;
        carnn_model *model = NULL;
        carnn_error error;
        memset(&filled, 0, sizeof filled);
        filled.fill = i ? 0xFF : 0;
        allocator.user = &filled;
        memset(&desc, 0, sizeof desc);
        desc.task = "lm";
        desc.hidden = desc.embedding = 5;
        desc.allocator = &allocator;
        CHECK_INT(carnn__set_all(&desc, NULL, 0, options, &error), CARNN_OK);
        CHECK_INT(carnn_model_create(&model, &desc, data, &error), CARNN_OK);
        train.checkpoint = "test_chars.filled";
        train.progress = test_stop;
        train.user = &stop;
        CHECK_INT(carnn_train(model, data, data, &train, &error), CARNN_ERR_STOPPED);
        CHECK_INT(carnn__read_file(train.checkpoint, &standard, &bytes[i], &size[i], &error),
                  CARNN_OK);
        CHECK(size[i] > 0);
        chars_forget((char *)bytes[i], size[i], "carnn.checkpoint.seconds");
        chars_forget((char *)bytes[i], size[i], "carnn.checksum");
        train.progress = NULL;
        train.resume = 1;
        CHECK_INT(carnn_train(model, data, data, &train, &error), CARNN_OK);
        carnn_model_free(model);
        CHECK_INT(filled.memory.blocks, 0);
    }
    CHECK(size[0] == size[1] && !memcmp(bytes[0], bytes[1], size[0]));
    for (i = 0; i < 2; i++) carnn__free_aligned(&standard, bytes[i]);
    remove("test_chars.filled");
    carnn_dataset_free(data);
}

/* A line is written character by character, and what was read before it has its part in it. */
static void chars_generate(void) {
    carnn_dataset *data = chars_data("abcdefg hij\nabcdefg hij\nabcdefg hij\n");
    carnn_model *model = chars_model("cell=lstm hidden=20 chunk=6", data);
    carnn_train_desc train = test_training(150, 1, 0.01, 0.0);
    carnn_session *s = NULL;
    carnn_sampling how;
    char text[2][40], tiny[4];
    carnn_text line = {"abcdefg hij", 11};
    carnn_prediction p;
    carnn_contribution part[32];
    carnn_explanation e;
    test_answers all;
    size_t i;
    CHECK_INT(carnn_train(model, data, data, &train, NULL), CARNN_OK);
    CHECK(test_metric(carnn_model_scores(model), "bpc") < 0.3);
    CHECK_INT(carnn_session_open(&s, model, NULL, NULL), CARNN_OK);
    all = test_predict_all(model, data, 1);
    for (i = 0; i < 3; i++) { /* after all that comes before it, not one line */
        CHECK_INT(carnn_session_example(s, data, i, 0, &p, NULL), CARNN_OK);
        CHECK(test_value(&p) == all.value[i]);
    }
    carnn_session_reset(s);
    memset(&how, 0, sizeof how);
    how.top_p = 1.5;
    CHECK_INT(carnn_session_generate(s, &how, "", 0, tiny, sizeof tiny, NULL), CARNN_ERR_ARGUMENT);
    how.top_p = 0.0;
    how.temperature = -0.5;
    CHECK_INT(carnn_session_generate(s, &how, "", 0, tiny, sizeof tiny, NULL), CARNN_ERR_ARGUMENT);
    CHECK_INT(carnn_session_generate(s, NULL, "", 0, tiny, sizeof tiny, NULL), CARNN_OK);
    carnn_session_reset(s);
    how.temperature = CARNN_NONE;
    for (i = 0; i < 2; i++)
        CHECK_INT(carnn_session_generate(s, &how, i ? "" : "ab", i ? 0 : 2, text[i], 40, NULL), 0);
    CHECK_TEXT(text[0], "abcdefg hij");
    CHECK_TEXT(text[1], "abcdefg hij");
    CHECK_INT(carnn_session_generate(s, &how, "", 0, tiny, sizeof tiny, NULL), 0);
    CHECK_TEXT(tiny, "abc");
    how.words = 5;
    carnn_session_reset(s);
    CHECK_INT(carnn_session_generate(s, &how, "", 0, text[0], 40, NULL), 0);
    CHECK_TEXT(text[0], "abcde");
    carnn_session_reset(s);
    CHECK_INT(carnn_session_predict(s, &line, 1, 0, &p, NULL), CARNN_OK);
    CHECK_INT(p.tokens, 12);
    CHECK_NEAR(p.score, 0.0, 5.0);
    CHECK_INT(carnn_session_explain(s, 32, part, &e, NULL), CARNN_OK);
    CHECK_INT(e.count, 6); /* of the last chunk */
    CHECK_INT(e.exact, 0);
    CHECK_TEXT(part[2].text, " ");
    carnn_session_free(s);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* The state before the chunk has its part in the logit, too: that is what is left of it. */
static void chars_explain(void) {
    carnn_dataset *data = chars_data(chars_text);
    carnn_model *model = chars_model("cell=scarnn chunk=5", data);
    carnn_session *s = NULL;
    carnn_text line = {"to the hat", 10};
    carnn_prediction p;
    carnn_contribution part[32];
    carnn_explanation e;
    double sum;
    size_t i, best;
    CHECK_INT(carnn_session_open(&s, model, NULL, NULL), CARNN_OK);
    CHECK_INT(carnn_session_predict(s, &line, 1, 0, &p, NULL), CARNN_OK);
    CHECK_INT(carnn_session_explain(s, 32, part, &e, NULL), CARNN_OK);
    CHECK_INT(e.exact, 1);
    CHECK_INT(e.count, 1); /* 11 targets in chunks of 5 */
    CHECK_TEXT(part[0].role, "word");
    for (i = 0, sum = e.rest; i < e.count; i++) sum += part[i].score;
    best = carnn__names_find(&model->words, carnn__span_of(e.of));
    CHECK_NEAR(sum, ((const carnn__lm *)s->work.state)->output.z[best], 1e-4);
    carnn_session_free(s);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Bars are characters as others are where the data are read for the model, in a session, too. */
static void chars_bars(void) {
    static const char line[] = "A|It's so|x";
    carnn_dataset *data;
    carnn_model *model;
    carnn_error error;
    carnn_session *s = NULL;
    carnn_prediction p;
    carnn_scores batch;
    int found;
    CHECK_INT(test_linked(&data, "lm", "unit=char", test_source("data", line, 11), NULL, &error),
              CARNN_OK);
    CHECK_TEXT(carnn_dataset_text(data, 0, 0), line);
    CHECK(!carnn_dataset_target(data, 0));
    model = chars_model("", data);
    CHECK_INT(carnn_model_word_count(model), 3 + 9); /* A | I t ' s ' ' o x */
    batch = test_scores(model, data);
    CHECK_INT(batch.tokens, 11 + 1);
    CHECK_INT(carnn_session_open(&s, model, NULL, NULL), CARNN_OK);
    CHECK_INT(carnn_session_line(s, line, 11, 1, 0, &found, &p, NULL), CARNN_OK);
    CHECK_INT(p.tokens, 11 + 1);
    CHECK_NEAR(p.score, batch.loss * 12, 1e-5);
    carnn_session_free(s);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* A model that goes on from another one has its characters, the blank among them, and its loss. */
static void chars_from(void) {
    carnn_dataset *data = chars_data(chars_text), *more = test_data("lm", "z\0 t\n", 5, 0, 0);
    carnn_model *model = chars_model("cell=gru chunk=5", data), *again = test_reload(model), *next;
    carnn_model_desc desc;
    carnn_error error;
    memset(&desc, 0, sizeof desc);
    desc.from = again;
    CHECK_INT(carnn_model_create(&next, &desc, data, &error), CARNN_OK);
    CHECK_INT(carnn_model_word_count(next), carnn_model_word_count(model));
    CHECK_INT(carnn__names_find(&next->words, carnn__span_of(" ")),
              carnn__names_find(&model->words, carnn__span_of(" ")));
    CHECK(test_scores(next, data).loss == test_scores(model, data).loss);
    carnn_model_free(next);
    CHECK_INT(carnn_model_create(&next, &desc, more, &error), CARNN_OK);
    CHECK_INT(carnn_model_word_count(next), carnn_model_word_count(model) + 2); /* z and NUL */
    carnn_model_free(next);
    carnn_model_free(model);
    carnn_model_free(again);
    carnn_dataset_free(data);
    carnn_dataset_free(more);
}

static void chars_refused(void) {
    carnn_dataset *data = chars_data(chars_text), *spoken = chars_data("A|Yes .|aa\nB|No .|bb\n");
    carnn_model *model = NULL;
    carnn_model_desc desc;
    carnn_error error;
    memset(&desc, 0, sizeof desc);
    desc.task = "lm";
    CHECK_INT(carnn_set(&desc, NULL, "chunk", "-1", &error), CARNN_ERR_ARGUMENT);
    CHECK_INT(carnn_set(&desc, NULL, "unit", "letter", &error), CARNN_ERR_ARGUMENT);
    CHECK_INT(carnn_set(&desc, NULL, "unit", "char", &error), CARNN_OK);
    CHECK_INT(carnn_model_create(&model, &desc, spoken, &error), CARNN_ERR_ARGUMENT);
    CHECK(strstr(error.message, "speaker|text|act") != NULL);
    CHECK_TEXT(test_refused("lm", "unit=spaced", data).message,
               "--unit spaced: expected blanks between characters in the data");
    CHECK_TEXT(test_refused("lm", "label_weight=0.5", data).message,
               "label_weight: the data have no labels");
    CHECK_INT(carnn_set(&desc, NULL, "context", "previous", &error), CARNN_OK);
    CHECK_INT(carnn_model_create(&model, &desc, data, &error), CARNN_ERR_ARGUMENT);
    CHECK(strstr(error.message, "--context") != NULL);
    CHECK_INT(carnn_set(&desc, NULL, "chunk", "0", &error), CARNN_OK); /* sentences have one */
    CHECK_INT(carnn_model_create(&model, &desc, data, &error), CARNN_OK);
    carnn_model_free(model);
    carnn_dataset_free(data);
    carnn_dataset_free(spoken);
}

int main(void) {
    static const char delays[] = "node x in\nnode a hidden\nnode y out\nedge x a 0\nedge x a 1\n"
                                 "edge a a 1\nedge a a 3\nedge x a 3\nedge x y 2\nedge a y 0\n";
    static const char *const rows[] = {
        "chunk=8 cell=lstm", "chunk=8 cell=gru skip=2", "chunk=8 cell=icarnn encoder=rcrn",
        "chunk=8 cell=rnn encoder=graph graph=chars.graph",
        "chunk=8 cell=lstm encoder=graph graph=chars.graph layers=2"};
    static const char *const whole[] = {
        "cell=rnn skip=3", "cell=lstm layers=2", "cell=mi-lstm", "cell=gru skip=2", "cell=icarnn",
        "cell=carnn-high", "cell=ran", "cell=icarnn encoder=rcrn layers=2",
        "cell=rnn encoder=graph graph=td", "cell=lstm encoder=graph graph=fig4.3b:4:3 layers=2"};
    size_t i;
    chars_units();
    chars_loss();
    for (i = 0; i < CARNN__COUNT(whole); i++) chars_whole(whole[i], 1);
    chars_whole("cell=lstm normalise=batch", 0);
    chars_whole("cell=lstm embedding=6 tied=1", 1);
    chars_places();
    chars_gradient("cell=rnn skip=3 chunk=2 layers=2");
    chars_gradient("cell=mi-lstm chunk=4");
    chars_gradient("cell=lstm encoder=graph graph=td chunk=3");
    chars_gradient("cell=icarnn encoder=rcrn chunk=4");
    chars_carried();
    test_write("chars.graph", delays, strlen(delays));
    for (i = 0; i < CARNN__COUNT(rows); i++) chars_rows(rows[i]);
    chars_gradient("cell=lstm encoder=graph graph=chars.graph chunk=3");
    chars_filled("unit=char min_count=1 cell=lstm encoder=graph graph=chars.graph chunk=3");
    remove("chars.graph");
    chars_same_bytes("cell=lstm chunk=4 skip=2");
    chars_same_bytes("cell=rnn encoder=graph graph=td chunk=4");
    chars_filled("unit=char min_count=1 cell=gru chunk=3");
    chars_filled("unit=char min_count=1 cell=rnn encoder=graph graph=td chunk=3");
    chars_filled("unit=char min_count=1 cell=icarnn encoder=rcrn chunk=3");
    chars_generate();
    chars_explain();
    chars_bars();
    chars_from();
    chars_refused();
    return test_end();
}
