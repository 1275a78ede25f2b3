/* @@DEPLOY: sessions of dialog models: the same answers as scoring gives, explanations that add up,
   memory, long dialogs. */

#include "test.h"

static const char session_text[] =
    "1 hello there\tgood morning !\n2 cheap food in the north\tapi_call cheap north\n"
    "3 oak R_rating 3\n4 elm R_rating 9\n5 ash R_rating 5\n6 <SILENCE>\telm is nice\n"
    "7 the phone number please\there it is\n8 bye\tyou are welcome\n\n"
    "1 hello\tgood morning !\n2 <SILENCE>\twhat do you want ?\n3 dear food in the south\t"
    "api_call dear south\n4 yew R_rating 1\n5 <SILENCE>\tyew is nice\n6 thanks\tyou are welcome\n";

static carnn_dataset *load_dialogs(void) {
    return test_data("dialog", session_text, sizeof session_text - 1, 0, 0);
}

/* A model with random weights, large enough for answers that differ. */
static carnn_model *chat_model(const carnn_dataset *data, const char *cell, int64_t kb_rows,
                               int64_t history, const carnn_allocator *allocator) {
    carnn_model_desc desc;
    carnn_model *model = NULL;
    size_t i;
    memset(&desc, 0, sizeof desc);
    desc.task = "dialog";
    desc.cell = cell;
    desc.hidden = 24;
    desc.kb_rows = kb_rows;
    desc.history = history;
    desc.seed = 5;
    desc.allocator = allocator;
    CHECK(!carnn_model_create(&model, &desc, data, NULL));
    for (i = 0; i < model->params.size; i++) model->params.value[i] *= 3.0f;
    return model;
}

/* Goes through the data set as a user of sessions would; returns how many answers are right. */
static size_t answer_all(carnn_session *session, const carnn_dataset *data) {
    size_t i, line = 0, right = 0, best;
    for (i = 0; i < data->turn_count; i++) {
        const carnn__turn *turn = &data->turns[i];
        carnn__span user = carnn__text(data, data->lines[turn->line].text);
        carnn__span gold = carnn__text(data, turn->response);
        if (!i || turn->dialog != data->turns[i - 1].dialog) {
            carnn_session_reset(session);
            line = data->dialog_start[turn->dialog];
        }
        for (; line < turn->line; line++) {
            carnn__span said = carnn__text(data, data->lines[line].text);
            carnn_session_hear(session, (carnn_speaker)data->lines[line].speaker, said.at,
                               said.length);
        }
        CHECK_INT(carnn_session_rank(session, user.at, user.length, 1, &best, NULL), 1);
        right += !strcmp(carnn_model_candidate(session->model, best), gold.at);
    }
    return right;
}

static void test_same_as_scoring(void) {
    static const int64_t limits[][2] = {{0, 0}, {1, 0}, {CARNN_NONE, 3}};
    carnn_dataset *data = load_dialogs();
    size_t cell, i;
    for (cell = 0; carnn_cell_name(cell); cell++)
        for (i = 0; i < 3; i++) {
            carnn_model *model = chat_model(data, carnn_cell_name(cell), limits[i][0], limits[i][1],
                                            NULL);
            const carnn_model *models = model;
            carnn_session *session = NULL;
            carnn_scores scores[2];
            CHECK(!carnn_test(&models, 1, data, 1, scores, NULL));
            CHECK(!carnn_session_open(&session, model, NULL, NULL));
            CHECK_INT(answer_all(session, data),
                      (size_t)(scores[0].metric[0].value * (double)data->turn_count + 0.5));
            carnn_session_free(session);
            carnn_model_free(model);
        }
    carnn_dataset_free(data);
}

/* Eq. 4 and 7: what the utterances add, and the rest, is the logit o . y of the answer. */
static void test_explanations_add_up(void) {
    carnn_dataset *data = load_dialogs();
    size_t cell, i, j;
    for (cell = 0; carnn_cell_name(cell); cell++) {
        carnn_model *model = chat_model(data, carnn_cell_name(cell), 0, 0, NULL);
        carnn_session *session = NULL;
        carnn_contribution part[16];
        double rest, sum, attention = 0.0, logit = 0.0, size = 0.0;
        CHECK(!carnn_session_open(&session, model, NULL, NULL));
        for (i = 0; i < model->params.item[model->cells[0].bias].columns; i++)
            carnn__piece(&model->params, model->params.value, model->cells[0].bias)[i] =
                carnn__uniform(9, i) - 0.5f; /* biases that matter */
        carnn_session_hear(session, CARNN_FACT, "oak R_rating 3", 14);
        carnn_session_reply(session, "hello there", 11);
        carnn_session_reply(session, "cheap food in the south", 23);
        CHECK_INT(carnn_session_explain(session, 16, part, &rest), 5);
        for (i = 0, sum = rest; i < 5; i++) {
            sum += part[i].score;
            attention += part[i].attention;
        }
        for (j = 0; j < 24; j++) {
            double product = (double)session->o[j] * (double)session->some[j];
            logit += product;
            size += fabs(product);
        }
        CHECK_NEAR(sum, logit, 1e-5 * size);
        CHECK_NEAR(attention, 1.0, 1e-5);
        CHECK_TEXT(part[1].text, "oak R_rating 3");
        CHECK_TEXT(part[4].text, "cheap food in the south");
        CHECK_INT(part[1].speaker, CARNN_FACT);
        carnn_session_free(session);
        carnn_model_free(model);
    }
    carnn_dataset_free(data);
}

/* What was ranked for is not a part of the history: the next thing heard takes its place, and there
   is nothing to explain any more. A speaker that is none of the three is not heard. */
static void test_explain_after_hearing(void) {
    carnn_dataset *data = load_dialogs();
    carnn_model *model = chat_model(data, "icarnn", 0, 0, NULL);
    carnn_session *session = NULL;
    carnn_contribution part[16];
    double rest;
    CHECK(!carnn_session_open(&session, model, NULL, NULL));
    carnn_session_hear(session, (carnn_speaker)7, "hello there", 11);
    carnn_session_hear(session, (carnn_speaker)-1, "hello there", 11);
    carnn_session_rank(session, "hello there", 11, 0, NULL, NULL);
    CHECK_INT(carnn_session_explain(session, 16, part, &rest), 2); /* $start, too */
    carnn_session_hear(session, CARNN_USER, "bye", 3);
    CHECK_INT(carnn_session_explain(session, 16, part, &rest), 0);
    carnn_session_reply(session, "hello there", 11);
    carnn_session_hear(session, CARNN_USER, "bye", 3);
    CHECK_INT(carnn_session_explain(session, 16, part, &rest), 3);
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* A session in memory of the caller allocates nothing, whatever it hears. */
static void test_own_memory(void) {
    test_memory memory;
    carnn_allocator allocator = {test_alloc, test_realloc, test_free, NULL};
    carnn_dataset *data = load_dialogs();
    carnn_model *model;
    carnn_session *session = NULL;
    char *block, *aligned, *long_text = (char *)malloc(1000000);
    long calls;
    size_t i;
    memset(&memory, 0, sizeof memory);
    allocator.user = &memory;
    model = chat_model(data, "icarnn", 0, 0, &allocator);
    block = (char *)malloc(carnn_session_size(model) + 64);
    aligned = block + (64 - (uintptr_t)block % 64) % 64;
    memset(aligned, 0xA5, carnn_session_size(model));
    calls = memory.calls;
    CHECK(!carnn_session_open(&session, model, aligned, NULL));
    for (i = 0; i < 1000000; i++) long_text[i] = i % 7 ? (char)('a' + i % 26) : ' ';
    CHECK(carnn_session_reply(session, "hello", 5) != NULL);
    CHECK(carnn_session_reply(session, long_text, 1000000) != NULL);
    CHECK(carnn_session_reply(session, "a\0b", 3) != NULL);
    CHECK(carnn_session_reply(session, NULL, 0) != NULL);
    for (i = 0; i < 3000; i++) carnn_session_hear(session, CARNN_FACT, "oak R_rating 3", 14);
    CHECK(carnn_session_reply(session, "hello", 5) != NULL);
    CHECK_INT(memory.calls, calls);
    carnn_session_free(session); /* gives nothing back that is not its own */
    carnn_model_free(model);
    CHECK_INT(memory.blocks, 0);
    free(block);
    free(long_text);
    carnn_dataset_free(data);
}

/* Ranks are in order, probabilities add up to 1, ranking changes no history, a reset forgets. */
static void test_ranking(void) {
    carnn_dataset *data = load_dialogs();
    carnn_model *model = chat_model(data, "ncarnn", 0, 0, NULL);
    carnn_session *session = NULL;
    size_t candidate[64], i, L = carnn_model_candidate_count(model);
    double probability[64], again[64], sum = 0.0;
    CHECK(!carnn_session_open(&session, model, NULL, NULL));
    CHECK_INT(carnn_session_rank(session, "hello", 5, 64, candidate, probability), L);
    for (i = 0; i < L; i++) {
        sum += probability[i];
        CHECK(!i || probability[i] <= probability[i - 1]);
    }
    CHECK_NEAR(sum, 1.0, 1e-5);
    carnn_session_rank(session, "hello", 5, 64, NULL, again);
    CHECK(!memcmp(probability, again, L * sizeof *again));
    CHECK_TEXT(carnn_session_reply(session, "hello", 5),
               carnn_model_candidate(model, candidate[0]));
    carnn_session_rank(session, "hello", 5, 64, NULL, again);
    CHECK(memcmp(probability, again, L * sizeof *again) != 0);
    carnn_session_reset(session);
    carnn_session_rank(session, "hello", 5, 64, NULL, again);
    CHECK(!memcmp(probability, again, L * sizeof *again));
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

int main(void) {
    test_same_as_scoring();
    test_explanations_add_up();
    test_explain_after_hearing();
    test_own_memory();
    test_ranking();
    return test_end();
}
