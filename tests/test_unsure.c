/* Dialog models that say where they have no answer: the turns that are made for it in training,
   what a model learns from them, sessions, model files, and what is refused. */

#include "test.h"

static const char dontknow[] = "I do not know .";

/* Dialogs of three turns about the same few things in other words. */
static carnn_dataset *unsure_dialogs(size_t count) {
    static const char *const things[] = {"bike", "boat", "car", "cart"};
    static const char *const asks[] = {"i want a %s please", "a %s for me", "give me one %s now"};
    char *text = (char *)malloc(count * 160);
    carnn_dataset *data;
    size_t i, at = 0;
    for (i = 0; i < count; i++) {
        at += (size_t)sprintf(text + at, "1 hello\tHello !\n2 ");
        at += (size_t)sprintf(text + at, asks[i % 3], things[i % 4]);
        at += (size_t)sprintf(text + at, "\tTake the %s .\n3 thank you\tYou are welcome .\n\n",
                              things[i % 4]);
    }
    data = test_data("dialog", text, at, 0, 0);
    free(text);
    return data;
}

static carnn_dataset *unsure_data(void) { return unsure_dialogs(12); }

static carnn_status unsure_create(carnn_model **model, const char *task, const char *unsure,
                                  const carnn_model *from, const carnn_dataset *data,
                                  carnn_error *error) {
    carnn_model_desc desc;
    memset(&desc, 0, sizeof desc);
    memset(error, 0, sizeof *error);
    desc.task = task;
    desc.from = from;
    desc.hidden = from ? 0 : 24;
    desc.unsure = unsure;
    return carnn_model_create(model, &desc, data, error);
}

static carnn_model *unsure_model(const carnn_dataset *data) {
    carnn_model *model = NULL;
    carnn_error error;
    CHECK_INT(unsure_create(&model, "dialog", dontknow, NULL, data, &error), CARNN_OK);
    return model;
}

/* -log P of reply `target` to the words `ids` in training, after what the dialog of the example has
   said. */
static double unsure_loss(carnn_session *s, const carnn_dataset *data, const double *often,
                          size_t example, const uint32_t *ids, size_t n, size_t target) {
    const carnn_model *model = s->model;
    char text[512] = "";
    carnn_text said = {text, 0};
    carnn_prediction p;
    size_t i;
    test_hear_history(s, data, example);
    for (i = 0; i < n; i++) { /* <unk> would be three words */
        strcat(text, ids[i] ? carnn__names_get(&model->words, ids[i]) : "zzz");
        strcat(text, " ");
    }
    said.length = strlen(text);
    CHECK_INT(carnn_session_predict(s, &said, 1, model->choices.count, &p, NULL), CARNN_OK);
    return test_balanced_loss(&p, target, often, 0.4);
}

/* The words of the turns without a meaning. */
static const uint32_t *unsure_words(const carnn__dialog *m) {
    return m->read.lists.ids + m->read.lists.at[m->read.lists.count - m->read.odd];
}

/* A batch of training has one more turn for three, drawn by its key, whose words mean nothing; its
   loss is the sum of what sessions say of each turn after its own history. */
static void unsure_turns(void) {
    enum { KEYS = TEST_SANITIZED ? 20 : 100 }; /* some add two turns of one dialog in a row */
    carnn_dataset *data = unsure_data();
    carnn_model *model = unsure_model(data);
    float *gradient = (float *)calloc(model->params.size, sizeof(float));
    size_t turns = data->item_count, all = 0, unknown = 0, words = 0, key, i, k;
    uint32_t once[64];
    double often[64] = {0};
    carnn_session *session;
    carnn_scores scores;
    test_work w;
    carnn__dialog *m;
    CHECK(model->choices.count < 64);
    model->desc.option[CARNN__DIALOG_WORD_DROPOUT] = CARNN_NONE;
    for (i = 0; i < model->params.size; i++) model->params.value[i] *= 3.0f;
    test_random_match(model);
    CHECK_INT(carnn_session_open(&session, model, NULL, NULL), CARNN_OK);
    test_work_open(&w, model, data, 2);
    w.work.g = gradient;
    w.work.batch = 1000;
    CHECK_INT(test_work_begin(&w), 1);
    m = (carnn__dialog *)w.work.state;
    for (i = 0; i < turns; i++) often[m->net.corpus.target[i]] += 1.0;
    often[model->unsure] = (double)turns / 3.0;
    for (key = 1; key <= KEYS; key++) {
        const carnn__corpus *c = &m->net.corpus;
        double loss = 0.0;
        memset(&w.tally, 0, sizeof w.tally);
        carnn__net_batch(&w.work, 0, key, &w.tally);
        CHECK_INT(m->read.turns, turns + m->read.odd);
        CHECK_INT(w.tally.examples, turns);
        all += m->read.odd;
        for (i = 0; i < m->read.turns; i++) {
            size_t item = m->read.turn[i], list = m->read.seq[m->read.end[item]];
            const carnn__lists *lists = i < turns ? &c->tokens : &m->read.lists;
            const uint32_t *ids;
            size_t n;
            CHECK_INT(m->read.answer[i], i >= turns ? model->unsure : c->target[item]);
            if (i >= turns) list = m->read.latest[i];
            ids = lists->ids + lists->at[list];
            n = carnn__list_length(lists, list);
            CHECK_INT(ids[n - 1], CARNN__DIALOG_SPEAKER + CARNN_USER);
            for (k = 0; i >= turns && k + 1 < n; k++, words++) {
                CHECK(!ids[k] || (ids[k] > 4 && ids[k] < model->words.count - 1));
                unknown += !ids[k];
            }
            CHECK(n >= 2 && n <= 10);
            loss += unsure_loss(session, data, often, item, ids, n - 1, m->read.answer[i]);
        }
        CHECK_NEAR(w.tally.loss, loss, 1e-3);
        carnn__score(model->task, &w.tally, 0.0, &scores); /* odd turns have a loss alone */
        CHECK_NEAR(scores.loss, w.tally.loss / (double)m->read.turns, 1e-12);
        CHECK_INT(scores.unanswerable, 0);
        if (key == 1) memcpy(once, unsure_words(m), sizeof once);
        CHECK_INT(!memcmp(once, unsure_words(m), sizeof once), key == 1);
    }
    carnn__net_batch(&w.work, 0, 1, &w.tally); /* the same key, the same turns */
    CHECK(!memcmp(once, unsure_words(m), 10 * sizeof *once));
    CHECK_NEAR((double)all / (double)(KEYS * turns), 1.0 / 3.0, 0.01);
    CHECK_NEAR((double)unknown / (double)words, 0.65, 0.1);
    carnn_session_free(session);
    test_work_close(&w);
    free(gradient);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Where there are many turns, five of eight that are added are words of users alone. */
static void unsure_known_words(void) {
    carnn_dataset *data = unsure_dialogs(400);
    carnn_model *model = unsure_model(data);
    float *gradient = (float *)calloc(model->params.size, sizeof(float));
    unsigned char said[64] = {0};
    size_t all = 0, known = 0, key, i, k;
    test_work w;
    CHECK(model->words.count <= sizeof said);
    test_work_open(&w, model, data, 1);
    w.work.g = gradient;
    w.work.batch = 100;
    CHECK(test_work_begin(&w) > 0);
    for (key = 1; key <= 20; key++) {
        const carnn__history *h = &((const carnn__dialog *)w.work.state)->read;
        const carnn__lists *lists = &carnn__corpus_of(&w.work)->tokens;
        carnn__net_batch(&w.work, 0, key, &w.tally);
        for (i = 0; i < data->item_count; i++)
            for (k = lists->at[h->seq[h->end[i]]]; k < lists->at[h->seq[h->end[i]] + 1]; k++)
                said[lists->ids[k]] = 1;
        for (i = h->lists.count - h->odd; i < h->lists.count; i++) {
            for (k = h->lists.at[i]; k < h->lists.at[i + 1] && said[h->lists.ids[k]];) k++;
            known += k == h->lists.at[i + 1] && k - h->lists.at[i] > CARNN__ODD_KNOWN;
        }
        all += h->odd;
    }
    CHECK(all > 300);
    CHECK_NEAR((double)known / (double)all, 0.625, 0.05);
    test_work_close(&w);
    free(gradient);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Words are drawn from the facts, too, which are counted, but not their last word, the speaker's; a
   user who says nothing has none. */
static void unsure_facts(void) {
    static const char text[] = "1 hello\thi\n2 shop r_opens early\n3 shop r_closes late\n"
                               "4 \tgo to the shop\n";
    carnn_dataset *data = test_data("dialog", text, sizeof text - 1, 0, 0);
    carnn_model *model = unsure_model(data);
    float *gradient = (float *)calloc(model->params.size, sizeof(float));
    size_t drawn[32] = {0}, key, i, k;
    const carnn__history *h;
    test_work w;
    CHECK(model->words.count <= CARNN__COUNT(drawn));
    test_work_open(&w, model, data, 1);
    w.work.g = gradient;
    CHECK_INT(test_work_begin(&w), 1);
    h = &((const carnn__dialog *)w.work.state)->read;
    CHECK_INT(h->told_count, 2);
    for (key = 1; key <= 300; key++) {
        carnn__net_batch(&w.work, 0, key, &w.tally);
        for (i = h->lists.count - h->odd; i < h->lists.count; i++)
            for (k = h->lists.at[i]; k + 1 < h->lists.at[i + 1]; k++) drawn[h->lists.ids[k]]++;
    }
    for (i = 1; i <= CARNN__DIALOG_SPEAKER + CARNN_FACT; i++) CHECK_INT(drawn[i], 0);
    for (i = 0; i < 5; i++) {
        static const char *const words[] = {"shop", "r_opens", "early", "r_closes", "late"};
        CHECK(drawn[carnn__names_find(&model->words, carnn__span_of(words[i]))] > 0);
    }
    test_work_close(&w);
    free(gradient);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* The gradient of a batch with such turns against central differences: of <unk>, of the candidate's
   own word, of a speaker. */
static void unsure_derivative(void) {
    carnn_dataset *data = unsure_data();
    carnn_model *model = unsure_model(data);
    float *gradient = (float *)calloc(model->params.size, sizeof(float));
    const size_t word[] = {0, model->words.count - 1, 2};
    const double h = 0.01;
    size_t i, side;
    test_work w;
    CHECK_TEXT(carnn_model_word(model, word[1]), "$unsure");
    test_work_open(&w, model, data, 1);
    w.work.g = gradient;
    w.work.batch = 1000;
    CHECK_INT(test_work_begin(&w), 1);
    for (i = 0; i < model->params.size; i++) model->params.value[i] *= 2.0f;
    for (i = 0; i < 12; i++) {
        const carnn__dialog *m = (const carnn__dialog *)w.work.state;
        size_t at = word[i % 3] * 24 + i;
        float was = model->params.value[at];
        double loss[2], found;
        carnn__tally tally;
        memset(gradient, 0, model->params.size * sizeof(float));
        carnn__net_batch(&w.work, 0, 7, &w.tally);
        found = (double)gradient[at];
        CHECK_INT(model->params.item[0].offset, 0);
        for (side = 0; side < 2; side++) {
            memset(&tally, 0, sizeof tally);
            model->params.value[at] = was + (side ? 1.0f : -1.0f) * (float)h;
            carnn__net_batch(&w.work, 0, 7, &tally);
            loss[side] = tally.loss / (double)m->read.turns;
        }
        model->params.value[at] = was;
        CHECK(found != 0.0);
        CHECK_NEAR(found, (loss[1] - loss[0]) / (2.0 * h), 3e-4 + 0.01 * fabs(found));
    }
    test_work_close(&w);
    free(gradient);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

static carnn_prediction unsure_ask(carnn_session *s, const char *text) {
    carnn_text said = {text, strlen(text)};
    carnn_prediction p;
    CHECK_INT(carnn_session_predict(s, &said, 1, 1, &p, NULL), CARNN_OK);
    return p;
}

static const char *unsure_reply(carnn_session *s, const char *text) {
    const char *reply = NULL;
    CHECK_INT(carnn_session_reply(s, text, strlen(text), &reply, NULL), CARNN_OK);
    return reply;
}

/* A trained model answers what it has learnt and declines the rest, of which it remembers
   nothing. */
static void unsure_check_declines(const carnn_model *model) {
    static const char *const odd[] = {"can they pay by card ?", "asdf", "what is a meaning of life",
                                      "who won", "thank heaven for small mercies today"};
    carnn_session *session;
    carnn_explanation e;
    carnn_prediction p;
    double before;
    size_t i;
    CHECK_INT(carnn_session_open(&session, model, NULL, NULL), CARNN_OK);
    CHECK_TEXT(unsure_reply(session, "hello"), "Hello !");
    p = unsure_ask(session, "i want a boat please");
    CHECK_INT(p.unsure, 0);
    before = p.probability[0];
    for (i = 0; i < CARNN__COUNT(odd); i++) {
        p = unsure_ask(session, odd[i]);
        CHECK_INT(p.unsure, 1);
        CHECK_INT(p.choice[0], model->unsure);
        CHECK_TEXT(unsure_reply(session, odd[i]), dontknow);
        CHECK_INT(carnn_session_explain(session, 0, NULL, &e, NULL), CARNN_OK);
        CHECK_TEXT(e.of, dontknow);
    }
    CHECK(unsure_ask(session, "i want a boat please").probability[0] == before);
    CHECK_TEXT(unsure_reply(session, "i want a boat please"), "Take the boat .");
    CHECK(unsure_ask(session, "i want a boat please").probability[0] != before);
    carnn_session_free(session);
}

/* The text is wrong where something else is right, and right where the data has it. */
static void unsure_check_scores(const carnn_model *model) {
    static const char text[] = "1 hello\tHello !\n2 asdf qwer\tI do not know .\n\n"
                               "1 qwer asdf\tHello !\n";
    carnn_dataset *data = test_data("dialog", text, sizeof text - 1, 0, 0);
    const carnn_model *two[2];
    carnn_scores scores[3];
    carnn_error error;
    size_t i;
    two[0] = two[1] = model;
    CHECK_INT(carnn_test(two, 2, data, 1, scores, &error), CARNN_OK);
    for (i = 0; i < 3; i++) {
        CHECK_INT(scores[i].count, 5);
        CHECK_TEXT(scores[i].metric[4].name, "declined");
        CHECK_NEAR(scores[i].metric[0].value, 2.0 / 3.0, 1e-12);
        CHECK_NEAR(scores[i].metric[4].value, 2.0 / 3.0, 1e-12);
    }
    carnn_dataset_free(data);
}

/* The same weights with any number of threads; and from a file. */
static void unsure_learns(void) {
    carnn_dataset *data = unsure_data();
    carnn_model *model = NULL, *next, *again;
    carnn_train_desc train = test_training(60, 4, 0.0, CARNN_NONE);
    carnn_scores scores;
    carnn_error error;
    int64_t threads;
    for (threads = 1; threads < 4; threads++) {
        next = unsure_model(data);
        train.threads = threads;
        CHECK_INT(carnn_train(next, data, NULL, &train, &error), CARNN_OK);
        CHECK_TEXT(next->scores.metric[2].name, "accuracy_top2"); /* odd turns are not counted */
        CHECK_NEAR(next->scores.metric[2].value, 1.0, 0.0);
        CHECK_NEAR(next->scores.metric[4].value, 0.0, 0.0);
        if (!model) {
            model = next;
            continue;
        }
        CHECK(!memcmp(model->params.value, next->params.value,
                      model->params.size * sizeof(float)));
        carnn_model_free(next);
    }
    unsure_check_declines(model);
    unsure_check_scores(model);
    scores = test_scores(model, data);
    CHECK_INT(scores.count, 5);
    CHECK_NEAR(scores.metric[0].value, 1.0, 0.0);
    CHECK_TEXT(scores.metric[4].name, "declined");
    CHECK_NEAR(scores.metric[4].value, 0.0, 0.0);
    again = test_reload(model);
    CHECK_TEXT(again->desc.unsure, dontknow);
    CHECK_INT(again->unsure, model->unsure);
    unsure_check_declines(again);
    carnn_model_free(again);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Going on from a model: it keeps its text, and may get one if it has none. */
static void unsure_goes_on(void) {
    static const char more[] = "1 what now\tSit down .\n";
    carnn_dataset *data = unsure_data(), *other = test_data("dialog", more, sizeof more - 1, 0, 0);
    carnn_model *old = unsure_model(data), *plain = NULL, *next = NULL;
    carnn_error error;
    CHECK_INT(unsure_create(&next, "dialog", NULL, old, other, &error), CARNN_OK);
    CHECK_TEXT(next->desc.unsure, dontknow);
    CHECK_INT(next->unsure, old->unsure);
    CHECK_INT(next->choices.count, old->choices.count + 1);
    CHECK(next->desc.unsure != old->desc.unsure);
    carnn_model_free(next);
    CHECK_INT(unsure_create(&next, "dialog", "Pardon ?", old, other, &error), CARNN_ERR_ARGUMENT);
    CHECK(strstr(error.message, "the model to go on from says \"I do not know .\"") != NULL);
    CHECK_INT(unsure_create(&plain, "dialog", NULL, NULL, data, &error), CARNN_OK);
    CHECK_INT(plain->unsure, CARNN__NO_INDEX);
    CHECK_INT(test_scores(plain, data).count, 4);
    CHECK_INT(unsure_create(&next, "dialog", "Hello !", plain, other, &error), CARNN_ERR_ARGUMENT);
    CHECK(strstr(error.message, "is one of the candidates") != NULL);
    CHECK_INT(unsure_create(&next, "dialog", dontknow, plain, other, &error), CARNN_OK);
    CHECK_INT(next->unsure, next->choices.count - 1);
    carnn_model_free(next);
    carnn_model_free(plain);
    carnn_model_free(old);
    carnn_dataset_free(other);
    carnn_dataset_free(data);
}

static void unsure_refused(void) {
    static const char *const bad[] = {"", "  ", "a\tb", "a\nb", " a", "a ", "Hello !"};
    carnn_dataset *data = unsure_data(), *lines = test_data("lm", "a b\nc d\n", 8, 0, 0);
    carnn_model *model;
    carnn_error error;
    size_t i;
    for (i = 0; i < CARNN__COUNT(bad); i++) {
        CHECK_INT(unsure_create(&model, "dialog", bad[i], NULL, data, &error), CARNN_ERR_ARGUMENT);
        CHECK(!model && strstr(error.message, i < 6 ? "expected a line" : "one of the candidates"));
    }
    CHECK_INT(unsure_create(&model, "lm", dontknow, NULL, lines, &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message, "unsure: a model of the task lm does not reply");
    carnn_dataset_free(lines);
    carnn_dataset_free(data);
}

/* A file that names a choice which is not there, or a model without the candidate's word. */
static void unsure_damaged(void) {
    carnn_dataset *data = unsure_data();
    carnn_model *model = unsure_model(data), *again = NULL;
    size_t size, i;
    unsigned char *bytes;
    carnn_source source;
    carnn_error error;
    for (i = 0; i < 2; i++) {
        uint32_t unsure = model->unsure;
        if (i) model->words.bytes[model->words.at[model->words.count - 1]] = '%';
        else model->unsure = (uint32_t)model->choices.count;
        size = carnn_model_size(model);
        bytes = (unsigned char *)malloc(size);
        source = test_source("model", bytes, size);
        CHECK_INT(carnn_model_write(model, bytes, size, &error), CARNN_OK);
        CHECK_INT(carnn_model_load(&again, &source, NULL, &error), CARNN_ERR_MODEL);
        CHECK(!again &&
              strstr(error.message, i ? "unsure" : "carnn.unsure is none of the choices"));
        free(bytes);
        model->unsure = unsure;
    }
    carnn_model_free(model);
    carnn_dataset_free(data);
}

int main(void) {
    unsure_turns();
    unsure_known_words();
    unsure_facts();
    unsure_derivative();
    unsure_learns();
    unsure_goes_on();
    unsure_refused();
    unsure_damaged();
    return test_end();
}
