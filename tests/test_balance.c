/* What only the training of dialogs does: replies that are frequent count for less, and words of
   the candidates are dropped. */

#include "test.h"

/* Replies of three words each, one of which nobody says. */
static const char balance_dialogs[] =
    "1 hi\thello to you\n2 some food\twhat of thai\n3 thai please\thello to you\n\n"
    "1 hi\thello to you\n2 bye\tsee you soon\n";
static const char balance_candidates[] =
    "1 see you soon\n1 what of thai\n1 hello to you\n1 what of greek\n";

enum { BALANCE_TURNS = 5, BALANCE_CHOICES = 4, BALANCE_WORDS = 3 * BALANCE_CHOICES };
static const double balance_often[BALANCE_CHOICES] = {1.0, 1.0, 3.0, 0.0};

static carnn_dataset *balance_data(void) {
    return test_dialogs(test_source("dialogs", balance_dialogs, sizeof balance_dialogs - 1),
                        test_source("candidates", balance_candidates,
                                    sizeof balance_candidates - 1));
}

/* The loss of a batch as training sees it, the words of the candidates as it reads them, and its
   gradient, both unless NULL. */
static double balance_loss(carnn_model *model, const carnn_dataset *data, uint64_t key,
                           uint32_t words[BALANCE_WORDS], float *gradient) {
    float *g = (float *)calloc(model->params.size, sizeof(float));
    const carnn__dialog *m;
    double loss;
    test_work w;
    test_work_open(&w, model, data, 1);
    w.work.g = g;
    w.work.batch = 100;
    CHECK_INT(test_work_begin(&w), 1);
    carnn__net_batch(&w.work, 0, key, &w.tally);
    m = (const carnn__dialog *)w.work.state;
    CHECK_INT(m->read.choices.at[BALANCE_CHOICES], BALANCE_WORDS);
    if (words) memcpy(words, m->read.choices.ids, BALANCE_WORDS * sizeof *words);
    if (gradient) memcpy(gradient, g, model->params.size * sizeof(float));
    loss = w.tally.loss;
    test_work_close(&w);
    free(g);
    return loss;
}

/* The same by a session. */
static double balance_expected(const carnn_model *model, const carnn_dataset *data,
                               double balance) {
    carnn_session *s;
    carnn_prediction p;
    double loss = 0.0;
    size_t i;
    CHECK_INT(carnn_session_open(&s, model, NULL, NULL), CARNN_OK);
    for (i = 0; i < data->item_count; i++) {
        const carnn__item *x = &data->items[i];
        carnn__span said = carnn__text(data, data->members[x->first + x->count - 1].text);
        carnn__span reply = carnn__text(data, x->target);
        carnn_text user = {said.at, said.length};
        test_hear_history(s, data, i);
        CHECK_INT(carnn_session_predict(s, &user, 1, BALANCE_CHOICES, &p, NULL), CARNN_OK);
        CHECK_INT(p.count, BALANCE_CHOICES);
        loss += test_balanced_loss(&p, carnn__names_find(&model->choices, reply),
                                   balance_often, balance);
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
    size_t c, i;
    for (c = 0; c < CARNN__COUNT(cases); c++) {
        carnn_model *model = test_model("dialog", cases[c].options, NULL, data);
        for (i = 0; i < model->params.size; i++) model->params.value[i] *= 4.0f;
        CHECK_NEAR(balance_loss(model, data, 0, NULL, NULL),
                   balance_expected(model, data, cases[c].balance), 1e-4);
        carnn_model_free(model);
    }
    carnn_dataset_free(data);
}

/* Where all words are dropped, candidates of equal length are alike, also by who has said them. */
static void balance_all_dropped(void) {
    carnn_dataset *data = balance_data();
    carnn_model *model = test_model("dialog", "hidden=8 embedding=8 word_dropout=1 balance=0", NULL,
                                    data);
    test_random_match(model);
    CHECK_NEAR(balance_loss(model, data, 1, NULL, NULL),
               BALANCE_TURNS * log((double)BALANCE_CHOICES), 1e-5);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Each word is dropped with the probability 0.25, anew for each step; without a step none is. */
static void balance_drops(void) {
    carnn_dataset *data = balance_data();
    carnn_model *model = test_model("dialog", "hidden=8 embedding=8 word_dropout=0.25", NULL, data);
    uint32_t words[BALANCE_WORDS], whole[BALANCE_WORDS];
    size_t key, i, dropped = 0, times[BALANCE_WORDS] = {0};
    double loss = balance_loss(model, data, 1, words, NULL);
    CHECK(balance_loss(model, data, 1, whole, NULL) == loss);
    CHECK(!memcmp(words, whole, sizeof words));
    balance_loss(model, data, 0, whole, NULL);
    for (key = 1; key <= 400; key++) {
        balance_loss(model, data, key, words, NULL);
        for (i = 0; i < BALANCE_WORDS; i++) {
            CHECK(whole[i] && (words[i] == 0 || words[i] == whole[i]));
            times[i] += !words[i];
        }
    }
    for (i = 0; i < BALANCE_WORDS; i++) {
        CHECK_NEAR((double)times[i] / 400.0, 0.25, 0.09);
        dropped += times[i];
    }
    CHECK_NEAR((double)dropped / (400.0 * (double)BALANCE_WORDS), 0.25, 0.025);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* The gradient of a step with dropped words against central differences. */
static void balance_derivative(void) {
    carnn_dataset *data = balance_data();
    carnn_model *model = test_model("dialog", "hidden=8 embedding=8 word_dropout=0.5", NULL, data);
    float *gradient = (float *)calloc(model->params.size, sizeof(float));
    const double h = 0.01;
    size_t at, side;
    for (at = 0; at < model->params.size; at++) model->params.value[at] *= 2.0f;
    test_random_match(model);
    balance_loss(model, data, 5, NULL, gradient);
    for (at = 0; at < model->params.size; at++) {
        float was = model->params.value[at];
        double loss[2];
        for (side = 0; side < 2; side++) {
            model->params.value[at] = was + (side ? 1.0f : -1.0f) * (float)h;
            loss[side] = balance_loss(model, data, 5, NULL, NULL) / BALANCE_TURNS;
        }
        model->params.value[at] = was;
        CHECK_NEAR((double)gradient[at], (loss[1] - loss[0]) / (2.0 * h),
                   3e-4 + 0.01 * fabs((double)gradient[at]));
    }
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
