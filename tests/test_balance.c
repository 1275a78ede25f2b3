/* What only the training of dialogs does: replies that are frequent count for less, and words of the
   candidates are dropped. */

#include "test.h"

/* Replies of three words each, one of which nobody says. */
static const char balance_dialogs[] =
    "1 hi\thello to you\n2 some food\twhat of thai\n3 thai please\thello to you\n\n"
    "1 hi\thello to you\n2 bye\tsee you soon\n";
static const char balance_candidates[] =
    "1 see you soon\n1 what of thai\n1 hello to you\n1 what of greek\n";

enum { BALANCE_TURNS = 5, BALANCE_CHOICES = 4 };
static const double balance_often[BALANCE_CHOICES] = {1.0, 1.0, 3.0, 0.0};

static carnn_dataset *balance_data(void) {
    carnn_dataset_desc desc;
    carnn_source source = test_source("dialogs", balance_dialogs, sizeof balance_dialogs - 1);
    carnn_source candidates = test_source("candidates", balance_candidates,
                                          sizeof balance_candidates - 1);
    carnn_dataset *data = NULL;
    memset(&desc, 0, sizeof desc);
    desc.task = "dialog";
    desc.sources = &source;
    desc.source_count = 1;
    desc.candidates = &candidates;
    CHECK_INT(carnn_dataset_load(&data, &desc, NULL), CARNN_OK);
    return data;
}

/* The loss of a batch as training sees it, and the words of the candidates as it reads them. */
static double balance_loss(carnn_model *model, const carnn_dataset *data, uint64_t key,
                           uint32_t *words, size_t count) {
    float *gradient = (float *)calloc(model->params.size, sizeof(float));
    const carnn__dialog *m;
    double loss;
    test_work w;
    test_work_open(&w, model, data, 1);
    w.work.g = gradient;
    w.work.batch = 100;
    CHECK_INT(test_work_begin(&w), 1);
    carnn__net_batch(&w.work, 0, key, &w.tally);
    m = (const carnn__dialog *)w.work.state;
    CHECK_INT(m->kept.at[BALANCE_CHOICES], count);
    memcpy(words, m->kept.ids, count * sizeof *words);
    loss = w.tally.loss;
    test_work_close(&w);
    free(gradient);
    return loss;
}

/* -log P of reply `right`, by a session's probabilities: candidate l with (n_l + 0.001)^balance of
   its weight. */
static double balance_turn(carnn_session *s, carnn_text said, carnn__span right, double balance) {
    carnn_prediction p;
    double of_right = NAN, sum = 0.0;
    size_t k;
    CHECK_INT(carnn_session_predict(s, &said, 1, BALANCE_CHOICES, &p, NULL), CARNN_OK);
    CHECK_INT(p.count, BALANCE_CHOICES);
    for (k = 0; k < p.count; k++) {
        const char *reply = carnn_model_choice(s->model, p.choice[k]);
        double weight = p.probability[k] * pow(balance_often[p.choice[k]] + 0.001, balance);
        sum += weight;
        if (strlen(reply) == right.length && !memcmp(reply, right.at, right.length))
            of_right = weight;
    }
    return -log(of_right / sum);
}

static double balance_expected(const carnn_model *model, const carnn_dataset *data,
                               double balance) {
    carnn_session *s;
    double loss = 0.0;
    size_t i, line;
    CHECK_INT(carnn_session_open(&s, model, NULL, NULL), CARNN_OK);
    for (i = 0; i < data->item_count; i++) {
        const carnn__item *x = &data->items[i];
        carnn__span said = carnn__text(data, data->members[x->first + x->count - 1].text);
        carnn_text user = {said.at, said.length};
        carnn_session_reset(s);
        for (line = x->first; line + 1 < x->first + x->count; line++) {
            carnn__span span = carnn__text(data, data->members[line].text);
            CHECK_INT(carnn_session_hear(s, (carnn_speaker)data->members[line].role, span.at,
                                         span.length, NULL), CARNN_OK);
        }
        loss += balance_turn(s, user, carnn__text(data, x->target), balance);
    }
    carnn_session_free(s);
    return loss;
}

static void balance_losses(void) {
    static const struct {
        const char *options;
        double balance;
    } cases[] = {{"hidden=8 embedding=8 word_dropout=0", 0.4},
                 {"hidden=8 embedding=8 word_dropout=0 balance=0", 0.0},
                 {"hidden=8 embedding=8 word_dropout=0 balance=1", 1.0}};
    carnn_dataset *data = balance_data();
    uint32_t words[3 * BALANCE_CHOICES];
    size_t c, i;
    for (c = 0; c < CARNN__COUNT(cases); c++) {
        carnn_model *model = test_model("dialog", cases[c].options, NULL, data);
        for (i = 0; i < model->params.size; i++) model->params.value[i] *= 4.0f;
        CHECK_NEAR(balance_loss(model, data, 0, words, CARNN__COUNT(words)),
                   balance_expected(model, data, cases[c].balance), 1e-4);
        carnn_model_free(model);
    }
    carnn_dataset_free(data);
}

/* Where all words are dropped, candidates of equal length are alike. */
static void balance_all_dropped(void) {
    carnn_dataset *data = balance_data();
    carnn_model *model = test_model("dialog", "hidden=8 embedding=8 word_dropout=1 balance=0", NULL,
                                    data);
    uint32_t words[3 * BALANCE_CHOICES];
    CHECK_NEAR(balance_loss(model, data, 1, words, CARNN__COUNT(words)),
               BALANCE_TURNS * log((double)BALANCE_CHOICES), 1e-5);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Each word is dropped with the probability 0.25, anew for each step; without a step none is. */
static void balance_drops(void) {
    carnn_dataset *data = balance_data();
    carnn_model *model = test_model("dialog", "hidden=8 embedding=8 word_dropout=0.25", NULL, data);
    uint32_t words[3 * BALANCE_CHOICES], whole[3 * BALANCE_CHOICES];
    size_t key, i, dropped = 0, times[3 * BALANCE_CHOICES] = {0};
    double loss = balance_loss(model, data, 1, words, CARNN__COUNT(words));
    CHECK(balance_loss(model, data, 1, whole, CARNN__COUNT(whole)) == loss);
    CHECK(!memcmp(words, whole, sizeof words));
    balance_loss(model, data, 0, whole, CARNN__COUNT(whole));
    for (key = 1; key <= 400; key++) {
        balance_loss(model, data, key, words, CARNN__COUNT(words));
        for (i = 0; i < CARNN__COUNT(words); i++) {
            CHECK(whole[i] && (words[i] == 0 || words[i] == whole[i]));
            times[i] += !words[i];
        }
    }
    for (i = 0; i < CARNN__COUNT(words); i++) {
        CHECK_NEAR((double)times[i] / 400.0, 0.25, 0.09);
        dropped += times[i];
    }
    CHECK_NEAR((double)dropped / (400.0 * (double)CARNN__COUNT(words)), 0.25, 0.025);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* The gradient of a step with dropped words against central differences: of the unknown word, of
   others. */
static void balance_derivative(void) {
    carnn_dataset *data = balance_data();
    carnn_model *model = test_model("dialog", "hidden=8 embedding=8 word_dropout=0.5", NULL, data);
    float *gradient = (float *)calloc(model->params.size, sizeof(float));
    uint32_t words[3 * BALANCE_CHOICES];
    const double h = 0.01;
    size_t at, side;
    test_work w;
    for (at = 0; at < model->params.size; at++) model->params.value[at] *= 2.0f;
    test_work_open(&w, model, data, 1);
    w.work.g = gradient;
    w.work.batch = 100;
    CHECK_INT(test_work_begin(&w), 1);
    carnn__net_batch(&w.work, 0, 5, &w.tally);
    CHECK_INT(model->params.item[0].offset, 0);
    for (at = 0; at < 8 * model->words.count; at++) {
        float was = model->params.value[at];
        double loss[2];
        for (side = 0; side < 2; side++) {
            model->params.value[at] = was + (side ? 1.0f : -1.0f) * (float)h;
            loss[side] = balance_loss(model, data, 5, words, CARNN__COUNT(words)) / BALANCE_TURNS;
        }
        model->params.value[at] = was;
        CHECK_NEAR((double)gradient[at], (loss[1] - loss[0]) / (2.0 * h),
                   3e-4 + 0.01 * fabs((double)gradient[at]));
    }
    test_work_close(&w);
    free(gradient);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

int main(void) {
    balance_losses();
    balance_all_dropped();
    balance_drops();
    balance_derivative();
    return test_end();
}
