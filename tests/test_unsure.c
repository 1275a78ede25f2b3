/* Dialog models that say where they have no answer: the turns that are made for it in training, what
   a model learns from them, sessions, model files, and what is refused. */

#include "test.h"

static const char dontknow[] = "I do not know .";

/* Twelve dialogs of three turns about the same few things in other words. */
static carnn_dataset *unsure_data(void) {
    static const char *const things[] = {"bike", "boat", "car", "cart"};
    static const char *const asks[] = {"i want a %s please", "a %s for me", "give me one %s now"};
    char text[4096];
    size_t i, at = 0;
    for (i = 0; i < 12; i++) {
        at += (size_t)sprintf(text + at, "1 hello\tHello !\n2 ");
        at += (size_t)sprintf(text + at, asks[i % 3], things[i % 4]);
        at += (size_t)sprintf(text + at, "\tTake the %s .\n3 thank you\tYou are welcome .\n\n",
                              things[i % 4]);
    }
    return test_data("dialog", text, at, 0, 0);
}

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

/* -log P of reply `target` to the words `ids`, after what the dialog of the example has said. */
static double unsure_loss(carnn_session *s, const carnn_dataset *data, size_t example,
                          const uint32_t *ids, size_t n, size_t target) {
    const carnn_model *model = s->model;
    const carnn__item *x = &data->items[example];
    char text[512] = "";
    carnn_text said = {text, 0};
    carnn_prediction p;
    size_t line, i, count = model->choices.count;
    for (line = x->first; line < x->first + x->count - 1; line++) {
        carnn__span before = carnn__text(data, data->members[line].text);
        CHECK_INT(carnn_session_hear(s, (carnn_speaker)data->members[line].role, before.at,
                                     before.length, NULL), CARNN_OK);
    }
    for (i = 0; i < n; i++) { /* <unk> would be three words */
        strcat(text, ids[i] ? carnn__names_get(&model->words, ids[i]) : "zzz");
        strcat(text, " ");
    }
    said.length = strlen(text);
    CHECK_INT(carnn_session_predict(s, &said, 1, count, &p, NULL), CARNN_OK);
    for (i = 0; i < p.count; i++)
        if (p.choice[i] == target) return -log(p.probability[i]);
    return NAN;
}

/* A batch of training has about one turn in eight without a meaning, drawn by its key; its loss is
   the sum of what sessions say of each turn after its own history, which nothing has changed. */
static void test_turns(void) {
    carnn_dataset *data = unsure_data();
    carnn_model *model = unsure_model(data);
    float *gradient = (float *)calloc(model->params.size, sizeof(float));
    size_t turns = data->item_count, odd, all = 0, unknown = 0, words = 0, key, i, k;
    carnn_session *session;
    test_work w;
    carnn__dialog *m;
    uint32_t *once = (uint32_t *)malloc(turns * sizeof *once);
    for (i = 0; i < model->params.size; i++) model->params.value[i] *= 3.0f;
    CHECK_INT(carnn_session_open(&session, model, NULL, NULL), CARNN_OK);
    test_work_open(&w, model, data, 2);
    w.work.g = gradient;
    w.work.batch = 1000;
    CHECK_INT(test_work_begin(&w), 1);
    m = (carnn__dialog *)w.work.state;
    for (key = 1; key <= 20; key++) {
        double loss = 0.0;
        odd = 0;
        memset(&w.tally, 0, sizeof w.tally);
        carnn__net_batch(&w.work, 0, key, &w.tally);
        CHECK_INT(m->turns, turns);
        for (i = 0; i < turns; i++) {
            const carnn__corpus *c = &m->net.corpus;
            size_t item = m->turn[i], list = m->seq[m->end[item]];
            const uint32_t *ids = c->tokens.ids + c->tokens.at[list];
            size_t n = carnn__list_length(&c->tokens, list);
            if (m->latest[i] >= m->inputs) {
                list = m->latest[i] - m->inputs;
                ids = m->odd.ids + m->odd.at[list];
                n = carnn__list_length(&m->odd, list);
                CHECK_INT(list, odd++);
                CHECK_INT(m->answer[i], model->unsure);
                CHECK(n >= 2 && n <= 10);
                for (k = 0; k + 1 < n; k++, words++) unknown += ids[k] == 0;
                for (k = 0; k + 1 < n; k++) CHECK(ids[k] < model->words.count);
            } else {
                CHECK_INT(m->latest[i], m->place[m->end[item]]);
            }
            CHECK_INT(ids[n - 1], CARNN__DIALOG_SPEAKER + CARNN_USER);
            carnn_session_reset(session);
            loss += unsure_loss(session, data, item, ids, n - 1, m->answer[i]);
        }
        CHECK_NEAR(w.tally.loss, loss, 1e-3);
        if (key == 1) memcpy(once, m->latest, turns * sizeof *once);
        CHECK_INT(!memcmp(once, m->latest, turns * sizeof *once), key == 1);
        CHECK_INT(odd, m->odd.count);
        all += odd;
    }
    carnn__net_batch(&w.work, 0, 1, &w.tally); /* the same key, the same turns */
    CHECK(!memcmp(once, m->latest, turns * sizeof *once));
    CHECK_NEAR((double)all / (double)(20 * turns), 0.125, 0.03);
    CHECK_NEAR((double)unknown / (double)words, 0.65, 0.1);
    carnn_session_free(session);
    test_work_close(&w);
    free(once);
    free(gradient);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

int main(void) {
    test_turns();
    return test_end();
}
