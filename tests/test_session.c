/* Sessions of dialog models: the same answers as scoring gives, explanations that add up,
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
static carnn_model *chat_model(const carnn_dataset *data, const char *cell, double kb_rows,
                               double history, const carnn_allocator *allocator) {
    carnn_model_desc desc;
    carnn_model *model = NULL;
    size_t i;
    memset(&desc, 0, sizeof desc);
    desc.task = "dialog";
    desc.cell = cell;
    desc.hidden = 24;
    desc.option[CARNN__DIALOG_KB_ROWS] = kb_rows;
    desc.option[CARNN__DIALOG_HISTORY] = history;
    desc.seed = 5;
    desc.allocator = allocator;
    CHECK(!carnn_model_create(&model, &desc, data, NULL));
    for (i = 0; i < model->params.size; i++) model->params.value[i] *= 3.0f;
    test_random_match(model);
    return model;
}

/* What a session says to the user's words, all choices of the model at most. */
static carnn_prediction predict(carnn_session *session, const char *user, size_t length) {
    carnn_text text = {user, length};
    carnn_prediction p;
    CHECK(!carnn_session_predict(session, &text, 1, SIZE_MAX, &p, NULL));
    return p;
}

static const char *reply(carnn_session *session, const char *user, size_t length) {
    const char *said = NULL;
    CHECK(!carnn_session_reply(session, user, length, &said, NULL));
    return said;
}

static void hear(carnn_session *session, carnn_speaker speaker, const char *text) {
    CHECK(!carnn_session_hear(session, speaker, text, strlen(text), NULL));
}

/* Goes through the data set as a user of sessions would; returns how many answers are right. */
static size_t answer_all(carnn_session *session, const carnn_dataset *data) {
    size_t i, line, right = 0;
    for (i = 0; i < data->item_count; i++) {
        const carnn__item *x = &data->items[i];
        carnn__span user = carnn__text(data, data->members[x->first + x->count - 1].text);
        carnn_prediction p;
        carnn_session_reset(session);
        for (line = x->first; line + 1 < x->first + x->count; line++)
            hear(session, (carnn_speaker)data->members[line].role,
                 carnn__text(data, data->members[line].text).at);
        p = predict(session, user.at, user.length);
        right += !strcmp(carnn_model_choice(session->model, p.choice[0]),
                         carnn_dataset_target(data, i));
    }
    return right;
}

static void test_same_as_scoring(void) {
    static const double limits[][2] = {{0, 0}, {1, 0}, {CARNN_NONE, 3}};
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
                      (size_t)(scores[0].metric[0].value * (double)data->item_count + 0.5));
            carnn_session_free(session);
            carnn_model_free(model);
        }
    carnn_dataset_free(data);
}

/* Eq. 4 and 7: what the utterances add, and the rest, is the logit o . y of the answer. */
static void test_explanations_add_up(void) {
    carnn_dataset *data = load_dialogs();
    size_t cell, i;
    for (cell = 0; carnn_cell_name(cell); cell++) {
        carnn_model *model = chat_model(data, carnn_cell_name(cell), 0, 0, NULL);
        carnn_session *session = NULL;
        carnn_contribution part[16];
        carnn_explanation e;
        const carnn__dialog *m;
        double sum, attention = 0.0, size;
        float *bias = carnn__named(&model->params, "cell.bias");
        CHECK(!carnn_session_open(&session, model, NULL, NULL));
        m = (const carnn__dialog *)session->work.state;
        for (i = 0; i < model->params.item[m->cell.bias].columns; i++)
            bias[i] = carnn__uniform(9, i) - 0.5f; /* biases that matter */
        hear(session, CARNN_FACT, "oak R_rating 3");
        reply(session, "hello there", 11);
        reply(session, "cheap food in the south", 23);
        CHECK(!carnn_session_explain(session, 16, part, &e, NULL));
        CHECK_INT(e.count, 5);
        CHECK_INT(e.exact, carnn__cell_is_additive(cell));
        CHECK_TEXT(e.of, carnn_model_choice(model, carnn__net_of(&session->work)->best[0]));
        for (i = 0, sum = e.rest, size = fabs(sum); i < 5; i++) {
            sum += part[i].score;
            size += fabs(part[i].score);
            attention += part[i].attention;
        }
        CHECK_NEAR(sum, m->z[carnn__net_of(&session->work)->best[0]], 1e-5 * size);
        CHECK_NEAR(attention, 1.0, 1e-5);
        CHECK_TEXT(part[1].text, "oak R_rating 3");
        CHECK_TEXT(part[4].text, "cheap food in the south");
        CHECK_TEXT(part[1].role, "fact");
        CHECK_TEXT(part[3].role, "bot");
        CHECK_TEXT(part[4].role, "user");
        carnn_session_free(session);
        carnn_model_free(model);
    }
    carnn_dataset_free(data);
}

static size_t explained(carnn_session *session) {
    carnn_contribution part[16];
    carnn_explanation e;
    CHECK(!carnn_session_explain(session, 16, part, &e, NULL));
    return e.count;
}

/* A prediction or a reply is explained until something else is heard. A fact that is skipped is not
   heard, and a speaker that is none of the three is refused. */
static void test_explain_after_hearing(void) {
    carnn_dataset *data = load_dialogs();
    carnn_model *model = chat_model(data, "icarnn", 1, 0, NULL);
    carnn_session *session = NULL;
    CHECK(!carnn_session_open(&session, model, NULL, NULL));
    CHECK_INT(explained(session), 0);
    CHECK_INT(carnn_session_hear(session, (carnn_speaker)7, "hello", 5, NULL), CARNN_ERR_ARGUMENT);
    CHECK_INT(carnn_session_hear(session, (carnn_speaker)-1, "hello", 5, NULL),
              CARNN_ERR_ARGUMENT);
    hear(session, CARNN_FACT, "oak R_rating 3");
    predict(session, "hello there", 11);
    CHECK_INT(explained(session), 3); /* $start, too */
    hear(session, CARNN_FACT, "elm R_rating 9");
    CHECK_INT(explained(session), 3);
    hear(session, CARNN_USER, "bye");
    CHECK_INT(explained(session), 0);
    reply(session, "hello there", 11);
    CHECK_INT(explained(session), 4);
    hear(session, CARNN_USER, "bye");
    CHECK_INT(explained(session), 0);
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
    carnn_session_desc desc = {SIZE_MAX, 0, NULL};
    char *block, *long_text = (char *)malloc(1000000);
    long calls;
    size_t i;
    memset(&memory, 0, sizeof memory);
    allocator.user = &memory;
    model = chat_model(data, "icarnn", 0, 0, &allocator);
    block = (char *)malloc(carnn_session_size(model, &desc) + 64);
    desc.memory = block + (64 - (uintptr_t)block % 64) % 64;
    memset(desc.memory, 0xA5, carnn_session_size(model, &desc));
    desc.memory = (char *)desc.memory + 16;
    CHECK_INT(carnn_session_open(&session, model, &desc, NULL), CARNN_ERR_ARGUMENT);
    desc.memory = (char *)desc.memory - 16;
    memory.fail_at = memory.calls + 1;
    CHECK_INT(carnn_session_size(model, &desc), 0); /* it allocates while it counts */
    memory.fail_at = 0;
    calls = memory.calls;
    CHECK(!carnn_session_open(&session, model, &desc, NULL));
    for (i = 0; i < 1000000; i++) long_text[i] = i % 7 ? (char)('a' + i % 26) : ' ';
    CHECK(reply(session, "hello", 5) != NULL);
    CHECK(reply(session, long_text, 1000000) != NULL);
    CHECK(reply(session, "a\0b", 3) != NULL);
    CHECK(reply(session, NULL, 0) != NULL);
    for (i = 0; i < 3000; i++) hear(session, CARNN_FACT, "oak R_rating 3");
    CHECK(reply(session, "hello", 5) != NULL);
    CHECK_INT(memory.calls, calls);
    { /* the history has only the latest utterances, <start> is forgotten */
        const carnn__dialog *m = (const carnn__dialog *)session->work.state;
        CHECK_INT(m->packed.rows, CARNN__HISTORY_LINES + 1);
        CHECK_TEXT(m->said[m->index[0]].text, "oak R_rating 3");
    }
    carnn_session_free(session); /* gives nothing back that is not its own */
    carnn_model_free(model);
    CHECK_INT(memory.blocks, 0);
    free(block);
    free(long_text);
    carnn_dataset_free(data);
}

/* Where a session cannot be opened *session is NULL, whatever it was. */
static void test_not_opened(void) {
    test_memory memory;
    carnn_allocator allocator = test_allocator(&memory);
    carnn_dataset *data = load_dialogs();
    carnn_model *model;
    carnn_session *const before = (carnn_session *)(void *)&memory;
    carnn_session *session = before;
    carnn_session_desc desc = {0, 0, NULL};
    const carnn__task *dialog;
    carnn__task silent;
    carnn_error error;
    memset(&memory, 0, sizeof memory);
    model = chat_model(data, "icarnn", 0, 0, &allocator);
    desc.memory = (char *)model->params.value + 4; /* aligned to 4 bytes: nothing is written */
    CHECK_INT(carnn_session_open(&session, model, &desc, &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message, "the memory of a session is not aligned to 64 bytes");
    CHECK(!session);
    for (memory.fail_at = 1; memory.fail_at <= 2; memory.fail_at++) { /* counted, then taken */
        memory.calls = 0;
        session = before;
        CHECK_INT(carnn_session_open(&session, model, NULL, &error), CARNN_ERR_MEMORY);
        CHECK(!session);
    }
    memory.fail_at = 0;
    dialog = model->task;
    silent = *dialog;
    silent.session = NULL;
    model->task = &silent;
    session = before;
    CHECK_INT(carnn_session_open(&session, model, NULL, &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message, "the task dialog has no sessions");
    CHECK(!session);
    CHECK_INT(carnn_session_size(model, NULL), 0);
    model->task = dialog;
    model->desc.simd = "none";
    session = before;
    CHECK_INT(carnn_session_open(&session, model, NULL, &error), CARNN_ERR_ARGUMENT);
    CHECK(!session);
    model->desc.simd = NULL;
    carnn_model_free(model);
    CHECK_INT(memory.blocks, 0);
    carnn_dataset_free(data);
}

/* A session that keeps so many utterances says what a model does that reads no more, bit by bit,
   however long the dialog is. */
static void test_capacity(void) {
    static const size_t kept[] = {1, 2, 3, 8};
    static const char *const said[] = {"hello there", "dear food in the south", "what ?", "bye"};
    carnn_dataset *data = load_dialogs();
    size_t i, k, turn, L;
    for (k = 0; k < 4; k++) {
        carnn_session_desc desc = {kept[k], 0, NULL};
        carnn_model *model[2];
        carnn_session *session[2];
        for (i = 0; i < 2; i++) {
            model[i] = chat_model(data, "icarnn", 0, i ? (double)kept[k] : 0, NULL);
            CHECK(!carnn_session_open(&session[i], model[i], i ? NULL : &desc, NULL));
        }
        L = carnn_model_choice_count(model[0]);
        for (turn = 0; turn < 30; turn++) {
            const char *user = said[turn % 4];
            carnn_prediction p = predict(session[0], user, strlen(user));
            CHECK(!memcmp(p.probability, predict(session[1], user, strlen(user)).probability,
                          L * sizeof *p.probability));
            CHECK_INT(explained(session[0]), carnn__min(2 * turn + 1 + turn / 3, kept[k]) + 1);
            for (i = 0; i < 2; i++) {
                reply(session[i], user, strlen(user));
                if (turn % 3 == 2) hear(session[i], CARNN_FACT, "oak R_rating 3");
            }
        }
        for (i = 0; i < 2; i++) {
            carnn_session_free(session[i]);
            carnn_model_free(model[i]);
        }
    }
    carnn_dataset_free(data);
}

static size_t room_for(const carnn_model *model, size_t utterances, size_t words) {
    carnn_session_desc desc = {utterances, words, NULL};
    return carnn_session_size(model, &desc);
}

/* Unless it is told otherwise, a session has room for the longest history of the training data,
   which the model file knows: here <start>, three facts and four turns before "bye". */
static void test_trained_capacity(void) {
    carnn_dataset *data = load_dialogs();
    carnn_model *model = chat_model(data, "icarnn", 0, 0, NULL), *loaded;
    carnn_model *rows = chat_model(data, "icarnn", 1, 0, NULL);
    carnn_source file = {"model", NULL, 0};
    void *bytes;
    int old;
    CHECK_INT(carnn_session_size(model, NULL), room_for(model, 12, 0));
    CHECK_INT(carnn_session_size(rows, NULL), room_for(rows, 10, 0));
    CHECK(room_for(model, 8, 0) < room_for(model, 12, 0));
    CHECK(room_for(model, 1023, 0) < room_for(model, 1024, 0));
    CHECK_INT(room_for(model, SIZE_MAX, 0), room_for(model, 1024, 0));
    for (old = 0; old < 2; old++) { /* an old file does not have the number */
        if (old) model->history = 0;
        file.size = carnn_model_size(model);
        file.bytes = bytes = malloc(file.size);
        CHECK(!carnn_model_write(model, bytes, file.size, NULL));
        CHECK(!carnn_model_load(&loaded, &file, NULL, NULL));
        CHECK_INT(carnn_session_size(loaded, NULL), room_for(model, old ? 1024 : 12, 0));
        carnn_model_free(loaded);
        free(bytes);
    }
    carnn_model_free(model);
    carnn_model_free(rows);
    carnn_dataset_free(data);
}

/* A bot of the default size that keeps eight utterances needs less than 149 KB, with the widest
   vectors: 117 with others. */
static void test_small_session(void) {
    carnn_dataset *data = load_dialogs();
    carnn_model_desc desc;
    carnn_model *model;
    memset(&desc, 0, sizeof desc);
    desc.task = "dialog";
    CHECK(!carnn_model_create(&model, &desc, data, NULL));
    CHECK(room_for(model, 8, 0) <= 149 * 1024);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* A session that reads five words of a text says of a longer one what it says of the first five. */
static void test_words(void) {
    /* Distinct words fill a text of the most words that a session reads. */
    static char text[1 << 14] = "s\ta man eats\ta man is eating\n"
                                "n\tthe dog that we saw runs\tthe sun shines on us all\ns\t";
    static const carnn_text longer[] = {{"a man eats the dog that runs", 28},
                                        {"the sun is on us all we saw", 27}};
    static const carnn_text first[] = {{"a man eats the dog", 18}, {"the sun is on us", 16}};
    size_t length = strlen(text), i;
    carnn_dataset *data;
    carnn_session_desc desc = {0, 5, NULL};
    carnn_model_desc of;
    carnn_model *model;
    carnn_session *few, *all;
    carnn_prediction p, whole;
    double probability[2];
    memset(&of, 0, sizeof of);
    of.task = "pair";
    of.hidden = 20;
    for (i = 0; i < 1024; i++)
        length += (size_t)sprintf(text + length, "%cw%zu", i == 512 ? '\t' : ' ', i);
    data = test_data("pair", text, length, 0, 0);
    CHECK(!carnn_model_create(&model, &of, data, NULL));
    CHECK(room_for(model, 0, 5) * 8 < carnn_session_size(model, NULL));
    CHECK_INT(room_for(model, 0, SIZE_MAX), carnn_session_size(model, NULL));
    CHECK(!carnn_session_open(&few, model, &desc, NULL));
    CHECK(!carnn_session_open(&all, model, NULL, NULL));
    CHECK(!carnn_session_predict(few, longer, 2, 2, &p, NULL));
    memcpy(probability, p.probability, sizeof probability);
    CHECK(!carnn_session_predict(all, longer, 2, 2, &whole, NULL));
    CHECK(memcmp(probability, whole.probability, sizeof probability) != 0);
    CHECK(!carnn_session_predict(all, first, 2, 2, &whole, NULL));
    CHECK(!memcmp(probability, whole.probability, sizeof probability));
    carnn_session_free(few);
    carnn_session_free(all);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Of what a user says the first 1,023 words are read. */
static void test_long_utterance(void) {
    static char text[8 * 1024];
    carnn_dataset *data = load_dialogs();
    carnn_model *model = chat_model(data, "icarnn", 0, 0, NULL);
    carnn_session *session = NULL;
    double probability[3];
    size_t i, k;
    for (i = 0; i < model->params.size; i++) model->params.value[i] *= 0.03f; /* of a sum */
    CHECK(!carnn_session_open(&session, model, NULL, NULL));
    for (i = 0; i < 3; i++) { /* "north" in the place of "food" as word 1,023, then 1,024 */
        char *at = text;
        for (k = 1; k <= 1024; k++)
            at += sprintf(at, "%s ", i && k == 1022 + i ? "north" : "food");
        probability[i] = *predict(session, text, (size_t)(at - text)).probability;
    }
    CHECK(probability[0] != probability[1]);
    CHECK(probability[0] == probability[2]);
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Ranks are in order, probabilities add up to 1, ranking changes no history, a reset forgets. */
static void test_ranking(void) {
    carnn_dataset *data = load_dialogs();
    carnn_model *model = chat_model(data, "ncarnn", 0, 0, NULL);
    carnn_session *session = NULL;
    size_t best, i, L = carnn_model_choice_count(model);
    double probability[64], sum = 0.0;
    carnn_prediction p;
    CHECK(!carnn_session_open(&session, model, NULL, NULL));
    p = predict(session, "hello", 5);
    CHECK_INT(p.count, L);
    best = p.choice[0];
    for (i = 0; i < L; i++) {
        sum += probability[i] = p.probability[i];
        CHECK(!i || probability[i] <= probability[i - 1]);
    }
    CHECK_NEAR(sum, 1.0, 1e-5);
    CHECK(!memcmp(probability, predict(session, "hello", 5).probability, L * sizeof sum));
    CHECK_TEXT(reply(session, "hello", 5), carnn_model_choice(model, best));
    CHECK(memcmp(probability, predict(session, "hello", 5).probability, L * sizeof sum) != 0);
    carnn_session_reset(session);
    CHECK(!memcmp(probability, predict(session, "hello", 5).probability, L * sizeof sum));
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* The loss is the mean of the turns whose reply is a candidate; the others are wrong anyway. */
static void test_replies_that_are_no_candidates(void) {
    static const char text[] = "1 hello there\tgood morning !\n2 bye\tnever said\n";
    carnn_dataset *data = load_dialogs();
    carnn_dataset *other = test_data("dialog", text, sizeof text - 1, 0, 0);
    carnn_model *model = chat_model(data, "icarnn", 0, 0, NULL);
    const carnn_model *models = model;
    carnn_session *session = NULL;
    carnn_scores scores;
    carnn_prediction p;
    double loss = 0.0;
    size_t i;
    CHECK(!carnn_test(&models, 1, other, 1, &scores, NULL));
    CHECK(!carnn_session_open(&session, model, NULL, NULL));
    p = predict(session, "hello there", 11);
    for (i = 0; i < p.count; i++)
        if (!strcmp(carnn_model_choice(model, p.choice[i]), "good morning !"))
            loss = -log(p.probability[i]);
    CHECK(loss > 0.0);
    CHECK_NEAR(scores.loss, loss, 1e-5);
    CHECK_NEAR(scores.metric[0].value,
               strcmp(carnn_model_choice(model, p.choice[0]), "good morning !") ? 0.0 : 0.5, 1e-12);
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
    carnn_dataset_free(other);
}

/* What is kept of a text for explanations ends with a whole character. */
static void test_kept_text(void) {
    carnn__span text = {"a\xC3\xA9\xC3\xA9", 5};
    char kept[8];
    carnn__keep_text(kept, 8, text);
    CHECK_TEXT(kept, "a\xC3\xA9\xC3\xA9");
    carnn__keep_text(kept, 5, text);
    CHECK_TEXT(kept, "a\xC3\xA9");
    carnn__keep_text(kept, 3, text);
    CHECK_TEXT(kept, "a");
    text.length = 3;
    carnn__keep_text(kept, 4, text);
    CHECK_TEXT(kept, "a\xC3\xA9");
}

/* Tasks whose predictions have no parts to ask for again, and one that reads rows, not texts. */
static void session_parts(void) {
    static const struct {
        const char *task, *options, *text, *message;
    } set[] = {{"dialog", "embedding=6", "1 a\tb\n1 c\td\n", "the last prediction has no part 0"},
               {"lm", "", "a b c\na c\n", "the last prediction has no part 0"},
               {"signal", "embedding=1", "a\t1\t2\nb\t2\t1\n",
                "a model of the task signal cannot predict from texts; it can read rows"}};
    size_t i;
    for (i = 0; i < CARNN__COUNT(set); i++) {
        carnn_dataset *data = test_data(set[i].task, set[i].text, strlen(set[i].text), 0, 0);
        carnn_model *model = test_model(set[i].task, set[i].options, NULL, data);
        carnn_text text = {"a", 1};
        carnn_session *session = NULL;
        carnn_prediction p;
        carnn_error error;
        CHECK_INT(carnn_session_open(&session, model, NULL, &error), CARNN_OK);
        CHECK_INT(carnn_session_predict(session, &text, 1, 1, &p, &error),
                  i < 2 ? CARNN_OK : CARNN_ERR_ARGUMENT);
        if (i < 2) CHECK_INT(carnn_session_part(session, 0, &p, &error), CARNN_ERR_ARGUMENT);
        CHECK_TEXT(error.message, set[i].message);
        carnn_session_free(session);
        carnn_model_free(model);
        carnn_dataset_free(data);
    }
}

/* Lines of a dialog are predicted from and heard at once; what was predicted can be explained. */
static void test_explained_lines(void) {
    static const char *const lines[] = {
        "1 hello\t", "2 cheap food in the north\tapi_call cheap north", "3 oak R_rating 3",
        "4 <SILENCE>\t"};
    static const size_t parts[] = {2, 4, 0, 7};
    carnn_dataset *data = load_dialogs();
    carnn_model *model = chat_model(data, "icarnn", 0, 0, NULL);
    carnn_session *s = NULL;
    carnn_contribution part[16];
    carnn_explanation e;
    carnn_prediction p;
    size_t line, i;
    int found;
    CHECK(!carnn_session_open(&s, model, NULL, NULL));
    for (line = 0; line < CARNN__COUNT(lines); line++) {
        const carnn__dialog *m = (const carnn__dialog *)s->work.state;
        double sum;
        CHECK(!carnn_session_line(s, lines[line], strlen(lines[line]), line + 1, 1, &found, &p,
                                  NULL));
        CHECK(!carnn_session_explain(s, CARNN__COUNT(part), part, &e, NULL));
        CHECK_INT(found, line != 2);
        CHECK_INT(e.count, parts[line]);
        for (sum = e.rest, i = 0; i < e.count; i++) sum += part[i].score;
        if (found) CHECK_NEAR(sum, m->z[p.choice[0]], 1e-4);
    }
    carnn_session_free(s);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

int main(void) {
    session_parts();
    test_explained_lines();
    test_kept_text();
    test_same_as_scoring();
    test_explanations_add_up();
    test_explain_after_hearing();
    test_own_memory();
    test_not_opened();
    test_capacity();
    test_trained_capacity();
    test_small_session();
    test_words();
    test_long_utterance();
    test_ranking();
    test_replies_that_are_no_candidates();
    return test_end();
}
