/* Predictions in batches: bit by bit those of a session that goes through the same examples, in
   their order, for any number of threads, whatever the examples hold. */

#include "test.h"

#define PREDICT_MOST 1024
#define PREDICT_TOP 3
#define PREDICT_TIMES 30 /* the texts are repeated, so that there are several batches */

/* What was told of each example. */
typedef struct predictions {
    size_t count, disordered;
    double score[PREDICT_MOST], probability[PREDICT_MOST][PREDICT_TOP];
    size_t tokens[PREDICT_MOST], choice[PREDICT_MOST][PREDICT_TOP];
} predictions;

static void keep_prediction(const carnn_prediction *p, void *user) {
    predictions *all = (predictions *)user;
    size_t i = all->count++, j;
    all->disordered += p->example != i;
    all->score[i] = p->score;
    all->tokens[i] = p->tokens;
    for (j = 0; j < p->count; j++) {
        all->choice[i][j] = p->choice[j];
        all->probability[i][j] = p->probability[j];
    }
}

/* The odd examples, many times over. */
static carnn_dataset *odd_data(const char *task, const char *text) {
    size_t size = strlen(text), i;
    char *all = (char *)malloc(PREDICT_TIMES * size);
    carnn_dataset *data;
    for (i = 0; i < PREDICT_TIMES; i++) memcpy(all + i * size, text, size);
    data = test_data(task, all, PREDICT_TIMES * size, 0, 1);
    free(all);
    return data;
}

/* A model with random weights, large enough for answers that differ. */
static carnn_model *odd_model(const char *task, const char *cell, const carnn_allocator *allocator,
                              const char *text) {
    carnn_dataset *data = test_data(task, text, strlen(text), 0, 0);
    carnn_model_desc desc;
    carnn_model *model = NULL;
    size_t i;
    memset(&desc, 0, sizeof desc);
    desc.task = task;
    desc.cell = cell;
    desc.hidden = 20;
    if (!strcmp(task, "dialog")) desc.option[CARNN__DIALOG_HISTORY] = 3;
    desc.min_count = 1;
    desc.seed = 4;
    desc.allocator = allocator;
    CHECK(!carnn_model_create(&model, &desc, data, NULL));
    for (i = 0; i < model->params.size; i++) model->params.value[i] *= 3.0f;
    carnn_dataset_free(data);
    return model;
}

/* --- what a session says --------------------------------------------------------------------- */

/* Example by example. */
static void session_examples(carnn_session *s, const carnn_dataset *data, predictions *all) {
    size_t i;
    for (i = 0; i < data->item_count; i++) {
        carnn_prediction p;
        CHECK(!carnn_session_example(s, data, i, PREDICT_TOP, &p, NULL));
        keep_prediction(&p, all);
    }
}

/* Line by line of the same text. */
static void session_lines(carnn_session *s, const char *text, predictions *all) {
    size_t number, i, length;
    for (i = 0; i < PREDICT_TIMES; i++) {
        const char *at = text;
        for (number = 1; *at; number++, at += length + (at[length] == '\n')) {
            carnn_prediction p;
            int found;
            length = strcspn(at, "\n");
            CHECK(!carnn_session_line(s, at, length, number, PREDICT_TOP, &found, &p, NULL));
            if (!found) continue;
            p.example = all->count;
            keep_prediction(&p, all);
        }
    }
}

/* text: what the data repeats, which the session also reads line by line; or NULL. */
static void test_same_as_session(carnn_model *model, const carnn_dataset *data, const char *text) {
    predictions *expected = (predictions *)calloc(2, sizeof *expected), *found = expected + 1;
    carnn_predict_desc desc = {0, PREDICT_TOP, keep_prediction, NULL};
    carnn_session *session = NULL;
    CHECK(data->item_count <= PREDICT_MOST);
    CHECK(!carnn_session_open(&session, model, NULL, NULL));
    session_examples(session, data, expected);
    CHECK_INT(expected->count, data->item_count);
    if (text) {
        session_lines(session, text, found);
        CHECK(!memcmp(found, expected, sizeof *found));
    }
    desc.user = found;
    for (desc.threads = 1; desc.threads <= 3; desc.threads++) {
        memset(found, 0, sizeof *found);
        CHECK(!carnn_predict(model, data, &desc, NULL));
        CHECK(!memcmp(found, expected, sizeof *found));
    }
    carnn_session_free(session);
    free(expected);
}

/* --- the tasks ------------------------------------------------------------------------------- */

static const char known_dialogs[] =
    "1 hello there\tgood morning !\n2 cheap food in the north\tapi_call cheap north\n"
    "3 oak R_rating 3\n4 elm R_rating 9\n5 <SILENCE>\telm is nice\n6 bye\tyou are welcome\n";

/* 8 turns in 4 dialogs. */
static const char odd_dialogs[] =
    "1 hello\tgood morning !\n2 cheap food\tapi_call cheap\n3 oak R_rating 3\n4\n4 \t\n"
    "no number\tx\n  \n9 zzz qqq\telm\telm is nice\n5 hello there\t\n\t\n"
    "1 bye\tone\ttwo\tthree\n\n";

static void predict_dialogs(void) {
    carnn_dataset *data = odd_data("dialog", odd_dialogs);
    size_t cell;
    CHECK_INT(data->item_count, 8 * PREDICT_TIMES);
    CHECK_INT(data->group_count, 4 * PREDICT_TIMES);
    for (cell = 0; carnn_cell_name(cell); cell++) {
        carnn_model *model = odd_model("dialog", carnn_cell_name(cell), NULL, known_dialogs);
        test_same_as_session(model, data, odd_dialogs);
        carnn_model_free(model);
    }
    carnn_dataset_free(data);
}

/* A candidate of more words than an utterance has counts with its first ones, everywhere. */
static void predict_long_candidate(void) {
    static char text[16384];
    size_t i, at = (size_t)sprintf(text, "1 hello\tgood morning !\n2 bye\t");
    carnn_dataset *data;
    carnn_model *model;
    for (i = 0; i < 1500; i++) at += (size_t)sprintf(text + at, i < 1200 ? "red " : "blue ");
    sprintf(text + at, "\n3 hello\tbye\n");
    data = odd_data("dialog", "1 hello\tx\n2 bye\tx\n");
    model = odd_model("dialog", "icarnn", NULL, text);
    test_same_as_session(model, data, NULL);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

static void predict_sentences(void) {
    static char odd[4096] = "do you have a cat\tquestion\nyes i have two\tanswer\n\nzz qq\n= x\n";
    size_t i, at = strlen(odd);
    carnn_dataset *data;
    carnn_model *model;
    for (i = 0; i < CARNN__LM_STEPS; i++) at += (size_t)sprintf(odd + at, "%s ", i % 3 ? "i" : "a");
    at += (size_t)sprintf(odd + at, "\n");
    for (i = 0; i < 2 * CARNN__LM_STEPS + 5; i++) at += (size_t)sprintf(odd + at, "cat ");
    sprintf(odd + at, "\nyes\n");
    data = odd_data("lm", odd);
    CHECK_INT(data->item_count, 6 * PREDICT_TIMES);
    model = odd_model("lm", "ncarnn", NULL, "do you have a cat\nyes i have two\nno cat\n");
    test_same_as_session(model, data, odd);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

static const char known_pairs[] =
    "who sings ?\tann sings well .\t1\nwho sings ?\tit rained .\t0\nwho left ?\tbob left .\t1\n";

static void predict_pairs(void) {
    static const char odd[] = "who sings ?\tit rained\t\nwho sings ?\tann\t7\nonly a question\n"
                              "\tonly an answer\t1\nzz \377\tqq\tx\nwho\tbob left early\t0\t0\n";
    carnn_dataset *data = odd_data("answer", odd);
    size_t i;
    CHECK_INT(data->item_count, 6 * PREDICT_TIMES);
    for (i = 0; i < 2; i++) {
        carnn_model *model = odd_model("answer", i ? "lstm" : "scarnn", NULL, known_pairs);
        test_same_as_session(model, data, NULL);
        memset(test_weight(model, "output.shares") + 13, 0, 2 * sizeof(float));
        /* topic and place: lines by themselves have none */
        test_same_as_session(model, data, odd);
        carnn_model_free(model);
    }
    carnn_dataset_free(data);
}

/* Texts alone, some without words, one longer than is read; then with classes, some not known. */
static void predict_classes(void) {
    static const char known[] = "x\ta b a b\ny\tb a c c d\nz\td b a\ny\ta c b b c\n";
    static char alone[4096] = "a b c\n\nzz qq \377\n  \nd\n";
    static const char classes[] = "x\ta b\nq\tb c\n\ty\nz\t\n\t\ny\td d d\tb\n";
    size_t i, at = strlen(alone);
    for (i = 0; i < 700; i++) at += (size_t)sprintf(alone + at, "%s ", i % 3 ? "a" : "c");
    sprintf(alone + at, "\n");
    for (i = 0; i < 4; i++) {
        const char *text = i % 2 ? classes : alone;
        carnn_dataset *data = odd_data("classify", text);
        carnn_model *model = odd_model("classify", i / 2 ? "gru" : "icarnn", NULL, known);
        CHECK_INT(data->item_count, 6 * PREDICT_TIMES);
        test_same_as_session(model, data, text);
        carnn_model_free(model);
        carnn_dataset_free(data);
    }
}

/* Nothing to predict is told of nobody; another task's examples are refused. */
static void predict_nothing(void) {
    carnn_predict_desc desc = {1, 0, keep_prediction, NULL};
    carnn_dataset *facts = test_data("dialog", "1 a fact\n", 9, 0, 1);
    carnn_dataset *empty = test_data("answer", "", 0, 0, 1);
    carnn_model *model = odd_model("dialog", NULL, NULL, known_dialogs);
    carnn_scores scores;
    const carnn_model *models = model;
    CHECK_INT(facts->item_count, 0);
    CHECK_INT(empty->item_count, 0);
    CHECK_INT(carnn_predict(model, facts, &desc, NULL), CARNN_OK);
    CHECK_INT(carnn_predict(model, empty, &desc, NULL), CARNN_ERR_ARGUMENT);
    CHECK_INT(carnn_test(&models, 1, facts, 1, &scores, NULL), CARNN_ERR_DATA);
    carnn_model_free(model);
    carnn_dataset_free(facts);
    carnn_dataset_free(empty);
}

static void predict_memory(void) {
    test_memory memory;
    carnn_allocator allocator = test_allocator(&memory);
    carnn_dataset *data = odd_data("dialog", odd_dialogs);
    predictions *all = (predictions *)calloc(1, sizeof *all);
    carnn_predict_desc desc = {2, 1, keep_prediction, all};
    carnn_model *model;
    carnn_status status = CARNN_ERR_MEMORY;
    long blocks, at;
    memset(&memory, 0, sizeof memory);
    model = odd_model("dialog", NULL, &allocator, known_dialogs);
    blocks = memory.blocks;
    for (at = 1; status == CARNN_ERR_MEMORY; at++) {
        memory.calls = 0;
        memory.fail_at = at;
        status = carnn_predict(model, data, &desc, NULL);
        CHECK_INT(memory.blocks, blocks);
    }
    CHECK_INT(status, CARNN_OK);
    CHECK_INT(all->count, data->item_count);
    carnn_model_free(model);
    carnn_dataset_free(data);
    free(all);
}

int main(void) {
    predict_dialogs();
    predict_long_candidate();
    predict_sentences();
    predict_pairs();
    predict_classes();
    predict_nothing();
    predict_memory();
    return test_end();
}
