/* Public functions with zeros, NULL and numbers that make no sense, for every task: an error
   with a message where something is wrong, an answer where nothing is, and never a crash. */

#include "test.h"

#define FAILS(call)                                                                                \
    do {                                                                                           \
        memset(&error, 0, sizeof error);                                                           \
        CHECK_INT(call, CARNN_ERR_ARGUMENT);                                                       \
        CHECK(error.code == CARNN_ERR_ARGUMENT && *error.message);                                 \
    } while (0)
#define WORKS(call) CHECK_INT(call, CARNN_OK)

/* --- models and data of every task, from the samples of the table ----------------------------- */

static carnn_dataset *odd_sample(const char *task, int lenient) {
    const char *sample;
    size_t t = 0;
    while (strcmp(carnn_task_name(t), task)) t++;
    sample = carnn__task_at(t)->sample;
    return test_data(task, sample, strlen(sample), 0, lenient);
}

static carnn_model *odd_small(const char *task, const carnn_dataset *data) {
    carnn_model_desc desc;
    carnn_model *model = NULL;
    memset(&desc, 0, sizeof desc);
    desc.task = task;
    desc.hidden = 5;
    WORKS(carnn_model_create(&model, &desc, data, NULL));
    return model;
}

/* --- tables ----------------------------------------------------------------------------------- */

/* Numbers that are no choice, in every option of a task. */
static void odd_choices(void) {
    static const double number[] = {99.0, 1e300, -3.0, 0.5};
    const carnn_option *o;
    const char *task;
    size_t t, i, k;
    for (t = 0; (task = carnn_task_name(t)) != NULL; t++)
        for (i = 0; (o = carnn_option_at(task, i)) != NULL; i++)
            for (k = 0; k < 4 && o->place == CARNN_OPTION_OF_TASK; k++) {
                carnn_model_desc model;
                carnn_error error;
                char text[32];
                if (o->kind != CARNN_OPTION_NAME) continue;
                memset(&model, 0, sizeof model);
                model.task = task;
                model.option[o->offset] = number[k];
                FAILS(carnn_defaults(&model, NULL, &error));
                CHECK(strstr(error.message, o->name) != NULL);
                CHECK_TEXT(carnn_option_get(o, &model, NULL, text, sizeof text), "");
            }
}

/* A number is written with as many digits as it needs, what is off as 0; half a choice is none. */
static void odd_digits(void) {
    static const char *const numbers[] = {"0.1", "0.30000000000000004", "12345.678901234567"};
    const carnn_option *lr = carnn_option_named("pair", "lr");
    carnn_model_desc model;
    carnn_train_desc train;
    carnn_error error;
    char text[64];
    size_t i;
    memset(&model, 0, sizeof model);
    memset(&train, 0, sizeof train);
    model.task = "pair";
    for (i = 0; i < CARNN__COUNT(numbers); i++) {
        WORKS(carnn_option_set(lr, &model, &train, numbers[i], NULL));
        CHECK_TEXT(carnn_option_get(lr, &model, &train, text, sizeof text), numbers[i]);
    }
    WORKS(carnn_set(&model, &train, "clip", "0", NULL));
    CHECK_NEAR(train.clip, CARNN_NONE, 0.0);
    CHECK_TEXT(carnn_option_get(carnn_option_named("pair", "clip"), &model, &train, text,
                                sizeof text), "0");
    model.option[carnn_option_named("pair", "pooling")->offset] = 1.5;
    FAILS(carnn_defaults(&model, NULL, &error));
}

/* What carnn_defaults has filled in is no wish of the caller's, nor is a model's own
   description. */
static void odd_filled(void) {
    static const char *const models[] = {"iwan", "siamese", "ca", "ap", "cosine"};
    const char *task;
    size_t t, i, k;
    for (t = 0; (task = carnn_task_name(t)) != NULL; t++)
        for (i = 0; i < (strcmp(task, "answer") ? 1 : 5); i++) {
            carnn_dataset *data = odd_sample(task, 0);
            carnn_model *model = NULL;
            carnn_model_desc desc;
            carnn_error error;
            memset(&desc, 0, sizeof desc);
            desc.task = task;
            if (strcmp(task, "signal")) desc.hidden = desc.embedding = 4;
            if (!strcmp(task, "answer"))
                WORKS(carnn_set(&desc, NULL, "model", models[i], &error));
            WORKS(carnn_defaults(&desc, NULL, &error));
            for (k = 0; k < 2; k++) {
                if (!strcmp(task, "signal")) desc.embedding = (int64_t)data->columns;
                CHECK_INT(carnn_model_create(&model, &desc, data, &error), CARNN_OK);
                desc = *carnn_model_describe(model);
                desc.task = task;
                carnn_model_free(model);
            }
            carnn_dataset_free(data);
        }
}

/* Options that have no effect in a task are refused, also where the description is filled in by
   hand. */
static void odd_foreign(void) {
    const char *task;
    size_t t;
    for (t = 0; (task = carnn_task_name(t)) != NULL; t++) {
        carnn_dataset *data = odd_sample(task, 0);
        carnn_model_desc desc;
        carnn_model *model = NULL;
        carnn_error error;
        memset(&desc, 0, sizeof desc);
        desc.task = task;
        desc.vector_words = 7;
        if (!carnn_option_applies(task, carnn_option_named(task, "vector_words"))) {
            CHECK_INT(carnn_model_create(&model, &desc, data, &error), CARNN_ERR_ARGUMENT);
            CHECK(!model && !strncmp(error.message, "vector_words", 12));
            CHECK(strstr(error.message, task) != NULL);
        }
        carnn_dataset_free(data);
    }
    CHECK(carnn_option_applies("pair", carnn_option_named("pair", "vector_words")));
    CHECK(!carnn_option_applies("dialog", carnn_option_named("dialog", "vector_words")));
    CHECK(!carnn_option_applies("signal", carnn_option_named("signal", "min_count")));
    CHECK(carnn_option_applies("lm", carnn_option_named("lm", "min_count")));
    CHECK(carnn_option_applies(NULL, carnn_option_named("lm", "min_count")));
}

/* Names of a list may stand in any order. */
static void odd_lists(void) {
    static const char *const good[] = {"max,mean", "mean,max", " mean, max"};
    static const char *const bad[] = {"mean,mux", "mean,", ",mean", "", "maxmean", "mean max"};
    carnn_model_desc model;
    carnn_error error;
    char text[CARNN_TEXT_MAX];
    size_t i;
    memset(&model, 0, sizeof model);
    model.task = "signal";
    for (i = 0; i < CARNN__COUNT(good); i++) {
        WORKS(carnn_set(&model, NULL, "pooling", good[i], &error));
        CHECK_TEXT(carnn_option_get(carnn_option_named("signal", "pooling"), &model, NULL, text,
                                    sizeof text), "max,mean");
    }
    WORKS(carnn_set(&model, NULL, "pooling", "last,min,mean,max", &error));
    CHECK_TEXT(carnn_option_get(carnn_option_named("signal", "pooling"), &model, NULL, text,
                                sizeof text), "max,mean,min,last");
    for (i = 0; i < CARNN__COUNT(bad); i++)
        FAILS(carnn_set(&model, NULL, "pooling", bad[i], &error));
}

/* Numbers beyond the range of an option are refused with its name and the range. */
static void odd_ranges(void) {
    const carnn_option *o;
    carnn_model_desc model;
    carnn_train_desc train;
    const char *task;
    carnn_error error;
    char text[64];
    size_t t, i, k;
    memset(&model, 0, sizeof model);
    memset(&train, 0, sizeof train);
    for (t = 0; (task = carnn_task_name(t)) != NULL; t++)
        for (i = 0; (o = carnn_option_at(task, i)) != NULL; i++)
            for (k = 0; k < 2 && o->kind < CARNN_OPTION_NAME; k++) {
                snprintf(text, sizeof text, "%.17g", k ? 2.0 * o->high + 1.0 : o->low - 1.0);
                FAILS(carnn_option_set(o, &model, &train, text, &error));
                CHECK(!strncmp(error.message, o->name, strlen(o->name)));
                CHECK(strstr(error.message, " from ") != NULL);
                snprintf(text, sizeof text, "%.17g", k ? o->high : o->low);
                WORKS(carnn_option_set(o, &model, &train, text, NULL));
            }
    for (t = 0; (task = carnn_task_name(t)) != NULL; t++) /* of a name it is told what it may be */
        for (i = 0; (o = carnn_option_at(task, i)) != NULL; i++) {
            const char *name;
            if (o->kind != CARNN_OPTION_NAME) continue;
            FAILS(carnn_option_set(o, &model, &train, "no such", &error));
            CHECK(strstr(error.message, o->name) != NULL);
            for (k = 0; (name = carnn_option_choice(o, k)) != NULL; k++)
                CHECK(strstr(error.message, name) != NULL);
            CHECK(error.message[strlen(error.message) - 1] == ')');
        }
    WORKS(carnn_set(&model, &train, "lr-decay", "0.5", NULL)); /* - and _ are the same */
    CHECK(train.lr_decay == 0.5);
    memset(&model, 0, sizeof model);
    model.seed = 9007199254740994u; /* 2^53 + 2 */
    FAILS(carnn_defaults(&model, NULL, &error));
    CHECK_TEXT(error.message, "seed: expected a whole number from 1 to 9007199254740991, found "
                              "\"9007199254740994\"");
    model.seed = 9007199254740993u; /* no double: it would become another seed */
    FAILS(carnn_defaults(&model, NULL, &error));
    FAILS(carnn_set(&model, &train, "seed", "9007199254740993", &error));
    memset(&model, 0, sizeof model);
    model.task = "dialog";
    for (i = 0; (o = carnn_option_at(model.task, i)) != NULL; i++) { /* set without carnn_set */
        if (o->place != CARNN_OPTION_OF_TASK || o->kind != CARNN_OPTION_INTEGER) continue;
        model.option[o->offset] = o->low + 0.25;
        FAILS(carnn_defaults(&model, NULL, &error));
        CHECK(strstr(error.message, ": expected a whole number from ") != NULL);
        CHECK(strstr(error.message, ".25\"") != NULL);
        model.option[o->offset] = 0.0;
    }
    memset(&model, 0, sizeof model);
    memset(&train, 0, sizeof train);
    train.optimizer = "adamw";
    FAILS(carnn_defaults(&model, &train, &error));
    CHECK_TEXT(error.message,
               "unknown optimizer \"adamw\" (sgd, adagrad, rmsprop, adadelta, adam)");
    model.task = "dialogs";
    FAILS(carnn_defaults(&model, NULL, &error));
    CHECK(strstr(error.message, "unknown task \"dialogs\" (dialog, lm, answer, classify, pair, "
                                "cloze, signal, skip-thought") != NULL);
}

/* A data set is read as its model's options say: those that no model can have are refused. */
static void odd_data_options(void) {
    static const double bad[] = {0.5, -1.0, -7.0, 1e300, NAN, INFINITY};
    const carnn_option *o = carnn_option_named("signal", "columns");
    carnn_dataset *data;
    carnn_dataset_desc desc;
    carnn_model_desc model;
    carnn_source source = {NULL, "u\t1\t2\n", 6};
    carnn_error error;
    size_t i;
    memset(&desc, 0, sizeof desc);
    memset(&model, 0, sizeof model);
    desc.task = "signal";
    desc.sources = &source;
    desc.source_count = 1;
    desc.model = &model;
    for (i = 0; i < CARNN__COUNT(bad); i++) {
        model.option[o->offset] = bad[i];
        FAILS(carnn_dataset_load(&data, &desc, &error));
        CHECK(data == NULL);
        CHECK(strstr(error.message, "columns: expected a whole number from 1 to 65536") != NULL);
    }
    model.option[o->offset] = 2.0;
    WORKS(carnn_dataset_load(&data, &desc, &error));
    carnn_dataset_free(data);
    desc.task = "signals";
    FAILS(carnn_dataset_load(&data, &desc, &error));
    CHECK(strstr(error.message, "unknown task \"signals\" (dialog, lm, ") != NULL);
}

static void odd_tables(void) {
    const carnn_option *o = carnn_option_at(NULL, 0);
    carnn_model_desc model;
    carnn_train_desc train;
    carnn_error error;
    char text[4];
    size_t i, shared = 0;
    CHECK(carnn_status_text((carnn_status)77) != NULL);
    while (carnn_option_at(NULL, shared)) shared++;
    CHECK(carnn_option_at("no such task", shared) == NULL); /* it has none of its own */
    CHECK(carnn_option_at("lm", shared)->place == CARNN_OPTION_OF_TASK);
    for (i = 0; i < shared; i++) CHECK(carnn_option_at("lm", i) == carnn_option_at(NULL, i));
    CHECK(carnn_option_at(NULL, SIZE_MAX) == NULL && carnn_option_at("lm", SIZE_MAX) == NULL);
    for (i = 0; (o = carnn_option_at("lm", i)) != NULL; i++)
        CHECK(carnn_option_named("lm", o->name) == o);
    CHECK(!strcmp(carnn_option_named(NULL, "lr-decay")->name, "lr_decay"));
    CHECK(carnn_option_named("lm", "tied") && !carnn_option_named(NULL, "tied"));
    CHECK(!carnn_option_named("lm", "lr_dec") && !carnn_option_named("lm", "lr_decays"));
    CHECK(carnn_cell_name(SIZE_MAX) == NULL && carnn_cell_title(SIZE_MAX) == NULL);
    CHECK(carnn_task_name(SIZE_MAX) == NULL && carnn_task_title(SIZE_MAX) == NULL);
    CHECK(carnn_task_data(SIZE_MAX) == NULL && carnn_optimizer_name(SIZE_MAX) == NULL);
    CHECK(carnn_simd_name(SIZE_MAX) == NULL);
    CHECK(!strcmp(carnn_simd_used(carnn_simd_name(0), NULL), carnn_simd_name(0)));
    CHECK(carnn_simd_used("no such path", &error) == NULL && strstr(error.message, "no such path"));
    memset(&model, 0, sizeof model);
    memset(&train, 0, sizeof train);
    for (i = 0; (o = carnn_option_at(NULL, i)) != NULL; i++) {
        CHECK(carnn_option_choice(o, SIZE_MAX) == NULL);
        FAILS(carnn_option_set(o, &model, &train, "", &error));
        FAILS(carnn_option_set(o, &model, &train, "no such value", &error));
        carnn_option_get(o, &model, &train, text, sizeof text); /* too little room: cut off */
        CHECK(strlen(text) < sizeof text);
    }
    odd_choices();
    odd_ranges();
    odd_data_options();
    odd_lists();
    odd_foreign();
    odd_filled();
#ifndef CARNN_NO_THREADS
    CHECK_INT(carnn_thread_count(3), 3);
    CHECK_INT(carnn_thread_count(5000), 1024);
    CHECK_INT(carnn_thread_count(((int64_t)1 << 32) + 1), 1024); /* above a size_t of 32 bits */
    CHECK(carnn_thread_count(0) >= 1 && carnn_thread_count(0) <= 1024);
#endif
    model.task = "lm";
    WORKS(carnn_defaults(&model, NULL, &error)); /* there may be no training */
    FAILS(carnn_set(&model, &train, "seed", "0", &error)); /* it would be the default, 1 */
    FAILS(carnn_set(&model, &train, "no such option", "1", &error));
    FAILS(carnn_set(&model, NULL, "epochs", "1", &error)); /* nowhere to set it */
    model.task = "no such task";
    FAILS(carnn_set(&model, &train, "fine", "1", &error));
    FAILS(carnn_defaults(&model, &train, &error));
    model.task = NULL;
    WORKS(carnn_defaults(&model, &train, NULL));
    CHECK_TEXT(model.task, carnn_task_name(0));
}

/* --- data sets and models --------------------------------------------------------------------- */

static void odd_data_sets(const char *task) {
    carnn_source nothing, empty = test_source("empty", "", 0);
    carnn_dataset_desc desc;
    carnn_dataset *data = NULL;
    carnn_error error;
    size_t n;
    memset(&nothing, 0, sizeof nothing);
    memset(&desc, 0, sizeof desc);
    FAILS(carnn_dataset_load(&data, NULL, &error));
    FAILS(carnn_dataset_load(&data, &desc, &error));
    desc.task = task;
    desc.source_count = 1;
    FAILS(carnn_dataset_load(&data, &desc, &error));
    desc.sources = &nothing;
    *error.message = '\0';
    CHECK(carnn_dataset_load(&data, &desc, &error) != CARNN_OK && *error.message);
    desc.sources = &empty;
    CHECK_INT(carnn_dataset_load(&data, &desc, NULL), CARNN_ERR_DATA);
    CHECK(data == NULL);
    desc.lenient = 1;
    WORKS(carnn_dataset_load(&data, &desc, NULL));
    CHECK_INT(carnn_dataset_examples(data) + carnn_dataset_groups(data), 0);
    CHECK_INT(carnn_dataset_text_count(data, 0), 0);
    CHECK(carnn_dataset_text(data, 0, 0) == NULL && carnn_dataset_target(data, 0) == NULL);
    carnn_dataset_free(data);
    data = odd_sample(task, 0);
    n = carnn_dataset_examples(data);
    CHECK_INT(carnn_dataset_text_count(data, n), 0);
    CHECK(carnn_dataset_text(data, 0, SIZE_MAX) == NULL);
    if (data->columns) CHECK_INT(carnn_dataset_text_count(data, 0), 0); /* rows are no texts */
    else CHECK(carnn_dataset_text_count(data, 0) > 0);
    CHECK(carnn_dataset_text(data, n, 0) == NULL && carnn_dataset_target(data, SIZE_MAX) == NULL);
    carnn_dataset_free(data);
    CHECK_INT(carnn_dataset_examples(NULL) + carnn_dataset_groups(NULL), 0);
    CHECK(carnn_dataset_left_out(NULL) == 0 && carnn_dataset_format(NULL) == NULL);
    carnn_dataset_free(NULL);
}

static void odd_models(const char *task, const carnn_dataset *data, carnn_model *model) {
    carnn_source nothing, empty = test_source("empty", "", 0), bad = test_source("bad", "GGUF", 4);
    carnn_model_desc desc;
    carnn_model *got = NULL;
    carnn_tensor tensor = carnn_model_tensor(model, SIZE_MAX);
    carnn_error error;
    char byte = 'x';
    size_t i, parameters = 0;
    memset(&desc, 0, sizeof desc);
    desc.task = "no such task";
    FAILS(carnn_model_create(&got, &desc, data, &error));
    desc.task = !strcmp(task, "lm") ? "answer" : "lm";
    FAILS(carnn_model_create(&got, &desc, data, &error)); /* the data is another task's */
    desc.task = task;
    desc.cell = "a cell with a name as long as this, which nobody would give to it, would they?";
    FAILS(carnn_model_create(&got, &desc, data, &error));
    desc.cell = NULL;
    desc.hidden = -1;
    FAILS(carnn_model_create(&got, &desc, data, &error));
    desc.hidden = INT64_MAX;
    FAILS(carnn_model_create(&got, &desc, data, &error));
    desc.hidden = 0;
    desc.simd = "no such path";
    FAILS(carnn_model_create(&got, &desc, data, &error));
    CHECK(got == NULL);
    carnn_model_free(NULL);
    memset(&nothing, 0, sizeof nothing);
    FAILS(carnn_model_load(&got, &nothing, NULL, &error));
    CHECK_INT(carnn_model_load(&got, &empty, NULL, NULL), CARNN_ERR_MODEL);
    CHECK_INT(carnn_model_load(&got, &bad, NULL, NULL), CARNN_ERR_MODEL);
    CHECK(got == NULL);
    CHECK(carnn_model_save(model, "", &error) != CARNN_OK && *error.message);
    CHECK(carnn_model_write(model, NULL, 0, NULL) != CARNN_OK);
    CHECK(carnn_model_write(model, &byte, 1, &error) != CARNN_OK && byte == 'x');
    CHECK(carnn_file_check("", &error) != CARNN_OK);
    CHECK(tensor.name == NULL && carnn_model_tensor(model, 0).name != NULL);
    CHECK(carnn_model_word(model, SIZE_MAX) == NULL);
    CHECK(carnn_model_choice(model, carnn_model_choice_count(model)) == NULL);
    CHECK_INT(carnn_model_best_epoch(model), 0);
    CHECK_INT(carnn_model_training(model)->epochs, 0);
    CHECK_INT(carnn_model_scores(model)->examples, 0);
    for (i = 0; (tensor = carnn_model_tensor(model, i)).name; i++)
        parameters += tensor.rows * tensor.columns;
    CHECK_INT(carnn_model_parameters(model), parameters);
}

/* --- training, tests and predictions ---------------------------------------------------------- */

static void odd_training(const carnn_dataset *data, carnn_model *model) {
    carnn_train_desc desc;
    carnn_error error;
    memset(&desc, 0, sizeof desc);
    desc.epochs = -1;
    FAILS(carnn_train(model, data, NULL, &desc, &error));
    desc.epochs = 1;
    desc.optimizer = "no such optimiser";
    FAILS(carnn_train(model, data, NULL, &desc, &error));
    desc.optimizer = NULL;
    desc.lr = -1.0;
    FAILS(carnn_train(model, data, NULL, &desc, &error));
    desc.lr = 0.0;
    desc.dropout = 1.5;
    FAILS(carnn_train(model, data, NULL, &desc, &error));
    desc.dropout = 0.0;
    desc.resume = 1;
    FAILS(carnn_train(model, data, NULL, &desc, &error));
    desc.resume = 0;
    desc.threads = -5;
    FAILS(carnn_train(model, data, NULL, &desc, &error));
    desc.threads = 1;
    WORKS(carnn_train(model, data, data, &desc, NULL));
}

static void odd_told(const carnn_prediction *p, void *user) {
    *(size_t *)user += p->part == 0;
}

/* sum[m] adds up values and weights of model m, or of the vote. */
static void odd_part(size_t model, double value, double weight, void *user) {
    double (*sum)[2] = (double (*)[2])user;
    sum[model][0] += value;
    sum[model][1] += weight;
}

/* The first metric is the mean of what it is told part by part, of lm exp of that. */
static void odd_parts(const carnn_model *const two[2], const carnn_dataset *data) {
    double sum[3][2] = {{0.0, 0.0}, {0.0, 0.0}, {0.0, 0.0}};
    carnn_test_desc how;
    carnn_scores scores[3];
    size_t m;
    memset(&how, 0, sizeof how);
    how.part = odd_part;
    how.user = sum;
    WORKS(carnn_test_parts(two, 2, data, &how, scores, NULL));
    for (m = 0; m < 3; m++) {
        double mean = sum[m][0] / sum[m][1];
        if (!strcmp(scores[m].metric[0].name, "perplexity")) mean = exp(mean);
        CHECK_NEAR(scores[m].metric[0].value, mean, 1e-9 * (1.0 + fabs(mean)));
    }
    how.alone = 1; /* no vote */
    scores[2].examples = 77;
    WORKS(carnn_test_parts(two, 2, data, &how, scores, NULL));
    CHECK_INT(scores[2].examples, 77);
}

static void odd_tests(const char *task, const carnn_dataset *data, const carnn_model *model) {
    carnn_dataset *other = odd_sample(!strcmp(task, "lm") ? "answer" : "lm", 0);
    const carnn_model *two[2] = {NULL, NULL};
    carnn_test_desc how;
    carnn_predict_desc desc;
    carnn_scores scores[3];
    carnn_error error;
    size_t told = 0;
    two[0] = two[1] = model;
    memset(&how, 0, sizeof how);
    memset(&desc, 0, sizeof desc);
    FAILS(carnn_test(two, 0, data, 1, scores, &error));
    FAILS(carnn_test(two, 2, other, 1, scores, &error));
    WORKS(carnn_test(two, 2, data, 1, scores, NULL));
    WORKS(carnn_test(two, 1, data, 1, NULL, NULL));
    WORKS(carnn_test_parts(two, 1, data, &how, scores, NULL));
    odd_parts(two, data);
    FAILS(carnn_predict(model, data, &desc, &error)); /* nobody to tell */
    desc.example = odd_told;
    desc.user = &told;
    FAILS(carnn_predict(model, other, &desc, &error));
    CHECK_INT(told, 0);
    desc.top = SIZE_MAX;
    WORKS(carnn_predict(model, data, &desc, NULL));
    CHECK_INT(told, carnn_dataset_examples(data));
    carnn_dataset_free(other);
}

/* --- sessions --------------------------------------------------------------------------------- */

/* Calls that only some tasks have: in the others an error that says what there is instead. */
static void odd_calls(carnn_session *s, const carnn__session_kind *kind) {
    carnn_contribution part[4];
    carnn_explanation e;
    carnn_sampling how;
    carnn_prediction p;
    const char *reply = NULL;
    carnn_error error;
    char text[8] = "xxxxxxx";
    size_t rows = 1, columns = 1, i;
    memset(&how, 0, sizeof how);
    if (kind->listens == CARNN__TALKS) {
        WORKS(carnn_session_hear(s, CARNN_USER, NULL, 0, NULL));
        FAILS(carnn_session_hear(s, (carnn_speaker)77, "x", 1, &error));
        FAILS(carnn_session_hear(s, (carnn_speaker)-1, "x", 1, &error));
        WORKS(carnn_session_reply(s, NULL, 0, &reply, NULL));
        CHECK(reply && *reply);
    } else {
        FAILS(carnn_session_hear(s, CARNN_USER, "x", 1, &error));
        CHECK(strstr(error.message, kind->calls) != NULL);
        FAILS(carnn_session_reply(s, "x", 1, &reply, &error));
        CHECK(strstr(error.message, kind->calls) != NULL);
        CHECK_TEXT(reply, "");
    }
    if (kind->listens == CARNN__COMPARES) {
        WORKS(carnn_session_candidate(s, NULL, 0, NULL));
        WORKS(carnn_session_candidate(s, "\0\xff", 2, NULL));
    } else {
        FAILS(carnn_session_candidate(s, "x", 1, &error));
        CHECK(strstr(error.message, kind->calls) != NULL);
        CHECK(!carnn_session_compares(s));
    }
    if (kind->generate) {
        static const carnn_sampling wrong[] = {
            {-0.5, 0, 0.0, 1, 0}, {NAN, 0, 0.0, 1, 0},  {INFINITY, 0, 0.0, 1, 0},
            {0.0, -3, 0.0, 1, 0}, {0.0, 0, 2.0, 1, 0},  {0.0, 0, -0.1, 1, 0},
            {0.0, 0, NAN, 1, 0},  {0.0, 0, 0.0, 1, -9}};
        WORKS(carnn_session_generate(s, &how, NULL, 0, text, sizeof text, NULL));
        WORKS(carnn_session_generate(s, NULL, NULL, 0, text, sizeof text, NULL));
        WORKS(carnn_session_generate(s, &how, "a", 1, NULL, 0, NULL));
        for (i = 0; i < sizeof wrong / sizeof *wrong; i++)
            FAILS(carnn_session_generate(s, &wrong[i], "", 0, text, sizeof text, &error));
        how.temperature = 1e-300, how.top_k = INT64_MAX, how.top_p = 1.0, how.words = 9;
        WORKS(carnn_session_generate(s, &how, "", 0, text, sizeof text, NULL));
        how.temperature = 1e300, how.top_k = 1, how.top_p = 1e-300;
        WORKS(carnn_session_generate(s, &how, "", 0, text, 1, NULL));
        CHECK_TEXT(text, "");
    } else {
        FAILS(carnn_session_generate(s, &how, "", 0, text, sizeof text, &error));
        CHECK(strstr(error.message, kind->calls) != NULL);
        CHECK_TEXT(text, "");
    }
    carnn_session_reset(s); /* nothing to explain */
    if (kind->explain) {
        WORKS(carnn_session_explain(s, 4, part, &e, NULL));
        CHECK_INT(e.count, 0);
    } else {
        FAILS(carnn_session_explain(s, 4, part, &e, &error));
        CHECK(strstr(error.message, kind->calls) != NULL);
    }
    FAILS(carnn_session_part(s, 0, &p, &error));
    CHECK(carnn_session_alignment(s, 0, &rows, &columns) == NULL && !rows && !columns);
}

/* Rows that are none; what was read before is not forgotten. */
static void odd_rows(carnn_session *s, const carnn_dataset *data) {
    static const char *const lines[] = {"a", "\377\t\376", "1 2 3 4 5 6 7 8 9", "1e999", "nan",
                                        "1 a\tb"};
    float row[64] = {0};
    size_t columns = carnn_session_columns(s), i;
    carnn_prediction p, again;
    carnn_error error;
    int found = 7;
    CHECK(columns > 0 && columns < 64);
    WORKS(carnn_session_row(s, row, columns, SIZE_MAX, &p, NULL));
    carnn_session_reset(s);
    FAILS(carnn_session_row(s, row, 0, 1, &again, &error));
    FAILS(carnn_session_row(s, row, columns + 1, 1, &again, &error));
    row[columns - 1] = NAN;
    FAILS(carnn_session_row(s, row, columns, 1, &again, &error));
    row[columns - 1] = INFINITY;
    FAILS(carnn_session_row(s, row, columns, 1, &again, &error));
    row[columns - 1] = 0.0f;
    for (i = 0; i < CARNN__COUNT(lines); i++) {
        CHECK_INT(carnn_session_line(s, lines[i], strlen(lines[i]), i, 0, &found, &again, &error),
                  CARNN_ERR_DATA);
        CHECK_INT(found, 0);
    }
    WORKS(carnn_session_row(s, row, columns, SIZE_MAX, &again, NULL));
    CHECK_INT(again.count, p.count);
    for (i = 0; i < p.count; i++) CHECK(again.probability[i] == p.probability[i]);
    FAILS(carnn_session_example(s, data, 0, 1, &p, &error));
}

/* Examples without words and with bytes that are no text; lines of all kinds. */
static void odd_examples(carnn_session *s, const carnn__session_kind *kind,
                         const carnn_dataset *data) {
    static const char *const lines[] = {"", " ", "\t", "\t\t\t\t\t\t", "1", "1 ", "a", "\377\t\376",
                                        "=", "1 a\tb", "a\tb\t1"};
    carnn_text texts[4] = {{NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}};
    carnn_prediction p;
    carnn_explanation e;
    carnn_contribution part[2];
    carnn_error error;
    char text[64];
    size_t i, length;
    int found = 7;
    FAILS(carnn_session_predict(s, texts, 0, 1, &p, &error));
    FAILS(carnn_session_predict(s, NULL, kind->texts + 1, 1, &p, &error));
    WORKS(carnn_session_predict(s, texts, kind->texts, SIZE_MAX, &p, NULL));
    CHECK(p.count <= carnn_model_choice_count(s->model));
    length = carnn_prediction_text(s->model, &p, SIZE_MAX, NULL, 0);
    CHECK_INT(carnn_prediction_text(s->model, &p, SIZE_MAX, text, 2), length);
    CHECK(strlen(text) < 2);
    if (kind->explain) WORKS(carnn_session_explain(s, 0, NULL, &e, NULL));
    if (kind->explain) WORKS(carnn_session_explain(s, 2, part, &e, NULL));
    for (i = 0; i < kind->texts; i++) texts[i].at = "\0\377 \n\t", texts[i].length = 5;
    WORKS(carnn_session_predict(s, texts, kind->texts, 0, &p, NULL));
    for (i = 0; i < 2 * CARNN__COUNT(lines); i++) {
        const char *line = lines[i % CARNN__COUNT(lines)];
        if (i == CARNN__COUNT(lines)) carnn_session_reset(s);
        WORKS(carnn_session_line(s, line, strlen(line), i, 0, &found, &p, NULL));
        CHECK(found == 0 || found == 1);
    }
    WORKS(carnn_session_line(s, NULL, 0, 0, 0, &found, &p, NULL));
    FAILS(carnn_session_example(s, data, carnn_dataset_examples(data), 1, &p, &error));
    FAILS(carnn_session_example(s, data, SIZE_MAX, 1, &p, &error));
    WORKS(carnn_session_example(s, data, 0, SIZE_MAX, &p, NULL));
}

static void odd_sessions(const char *task, const carnn_dataset *data, const carnn_model *model) {
    carnn_dataset *other = odd_sample(!strcmp(task, "lm") ? "answer" : "lm", 0);
    const carnn__session_kind *kind = model->task->session;
    carnn_session *s = NULL;
    carnn_prediction p;
    carnn_error error;
    WORKS(carnn_session_open(&s, model, NULL, NULL));
    odd_calls(s, kind);
    if (kind->row) odd_rows(s, data);
    else odd_examples(s, kind, data);
    odd_calls(s, kind);
    FAILS(carnn_session_example(s, other, 0, 1, &p, &error));
    carnn_session_free(s);
    carnn_session_free(NULL);
    carnn_dataset_free(other);
}

/* --- calls that succeed ----------------------------------------------------------------------- */

static carnn_error odd_before, odd_after;

/* A call that succeeds leaves the error as it was. */
#define LEAVES(call)                                                                               \
    do {                                                                                           \
        CHECK_INT(call, CARNN_OK);                                                                 \
        CHECK(!memcmp(&odd_before, &odd_after, sizeof odd_after));                                 \
    } while (0)

static void odd_ignore(const carnn_prediction *p, void *user) {
    (void)p;
    (void)user;
}

static void odd_good_sessions(const carnn_model *model, const carnn_dataset *data) {
    carnn_error *error = &odd_after;
    carnn_session *s = NULL;
    carnn_prediction p;
    const float row[64] = {0.0f};
    size_t i, columns;
    int found;
    LEAVES(carnn_session_open(&s, model, NULL, error));
    columns = carnn_session_columns(s);
    if (columns) LEAVES(carnn_session_row(s, row, columns, 1, &p, error));
    for (i = 0; !columns && i < carnn_dataset_examples(data); i++)
        LEAVES(carnn_session_example(s, data, i, 1, &p, error));
    LEAVES(carnn_session_line(s, "", 0, 1, 1, &found, &p, error));
    carnn_session_free(s);
}

static void odd_good_calls(const char *task) {
    static const char file[] = "test_odd.gguf", kept[] = "test_odd.resume";
    carnn_error *error = &odd_after;
    const char *sample = carnn__task_named(task)->sample;
    carnn_source source = test_source("sample", sample, strlen(sample)), saved = {file, NULL, 0};
    carnn_dataset_desc read;
    carnn_model_desc desc;
    carnn_train_desc train = test_training(2, 2, 0.01, 0.0);
    carnn_ensemble_desc how;
    carnn_predict_desc predict = {1, 1, odd_ignore, NULL};
    carnn_dataset *data = NULL;
    carnn_model *model[2] = {NULL, NULL}, *both = NULL;
    const carnn_model *const *two = (const carnn_model *const *)model;
    carnn_scores scores[3];
    memset(&odd_before, 'x', sizeof odd_before);
    odd_before.code = CARNN_ERR_IO;
    odd_after = odd_before;
    memset(&desc, 0, sizeof desc);
    memset(&how, 0, sizeof how);
    desc.task = task;
    desc.hidden = 5;
    test_describe(&read, task, &source);
    LEAVES(carnn_dataset_load(&data, &read, error));
    LEAVES(carnn_model_create(&model[0], &desc, data, error));
    train.checkpoint = kept;
    LEAVES(carnn_train(model[0], data, data, &train, error));
    train.epochs = 3;
    train.resume = 1;
    LEAVES(carnn_train(model[0], data, data, &train, error));
    LEAVES(carnn_file_check(file, error));
    LEAVES(carnn_model_save(model[0], file, error));
    LEAVES(carnn_model_load(&model[1], &saved, NULL, error));
    how.valid = data;
    how.greedy = 1;
    LEAVES(carnn_test(two, 2, data, 1, scores, error));
    LEAVES(carnn_model_ensemble(&both, two, 2, &how, error));
    LEAVES(carnn_model_quantise(model[1], error));
    LEAVES(carnn_predict(both, data, &predict, error));
    odd_good_sessions(both, data);
    odd_good_sessions(model[1], data);
    LEAVES(carnn_set(&desc, &train, "lr", "0.5", error));
    LEAVES(carnn_defaults(&desc, &train, error));
    remove(file);
    remove(kept);
    carnn_model_free(both);
    carnn_model_free(model[0]);
    carnn_model_free(model[1]);
    carnn_dataset_free(data);
}

/* Is the word, which is to be there twice, known? */
static int odd_knows(const char *task, const char *text, const char *word) {
    carnn_dataset *data = test_data(task, text, strlen(text), 0, 0);
    carnn_model *model = test_model(task, "hidden=5 min_count=2", NULL, data);
    int knows = carnn__names_find(&model->words, carnn__span_of(word)) != CARNN__NO_INDEX;
    carnn_model_free(model);
    carnn_dataset_free(data);
    return knows;
}

/* Equal texts count once, but in dialog and lm. */
static void odd_equal_texts(void) {
    CHECK(!odd_knows("classify", "x\tcat\ny\tcat\n", "cat"));
    CHECK(odd_knows("classify", "x\tcat\ny\tcat a\n", "cat"));
    CHECK(!odd_knows("answer", "cat\ta\t1\ncat\tb\t0\n", "cat"));
    CHECK(odd_knows("answer", "cat\ta\t1\ncat\tb\t0\na\tcat b\t0\n", "cat"));
    CHECK(!odd_knows("pair", "x\tcat\ta\ny\tcat\tb\n", "cat"));
    CHECK(odd_knows("dialog", "1 cat\ta\n2 cat\tb\n", "cat"));
    CHECK(odd_knows("lm", "cat\ncat\n", "cat"));
    CHECK(!odd_knows("lm", "cat\ndog\n", "cat"));
}

/* --- the rest --------------------------------------------------------------------------------- */

static int odd_check_row(const carnn_check *check, void *user) {
    (void)check;
    ++*(int *)user;
    return 1;
}

static int odd_bench_row(const carnn_measure *measure, void *user) {
    (void)measure;
    ++*(int *)user;
    return 1;
}

static void odd_numbers(void) {
    float A[4] = {1, 1, 1, 1}, Z[4] = {1, 2, 3, 4}, y[4] = {0, 0, 0, 0};
    double one = 1.0, two = 2.0, zero = 0.0;
    carnn_error error;
    int rows = 0;
    WORKS(carnn_recurrence(0, 0, NULL, NULL, NULL, NULL, 1, NULL));
    WORKS(carnn_recurrence(0, 4, A, Z, NULL, y, 1, NULL));
    WORKS(carnn_recurrence(4, 1, A, Z, NULL, y, -1, NULL));
    CHECK(y[0] == 1.0f && y[3] == 10.0f);
    WORKS(carnn_recurrence(4, 1, A, Z, NULL, y, 100, NULL));
    CHECK(y[3] == 10.0f);
    WORKS(carnn_recurrence_backward(0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1, NULL));
    CHECK_NEAR(carnn_significance(0, NULL, NULL, NULL, 1), 1.0, 0.0);
    CHECK_NEAR(carnn_significance(1, &one, &two, &zero, 1), 1.0, 0.0);
    FAILS(carnn_gradcheck("no such name", 1, odd_check_row, &rows, &error));
    FAILS(carnn_bench("no such name", NULL, 1, odd_bench_row, &rows, &error));
    CHECK_INT(rows, 0);
}

int main(void) {
    const char *task;
    size_t t;
    odd_tables();
    odd_digits();
    for (t = 0; (task = carnn_task_name(t)) != NULL; t++) {
        carnn_dataset *data = odd_sample(task, 0);
        carnn_model *model = odd_small(task, data);
        odd_data_sets(task);
        odd_models(task, data, model);
        odd_sessions(task, data, model);
        odd_training(data, model);
        odd_tests(task, data, model);
        odd_sessions(task, data, model);
        odd_good_calls(task);
        carnn_model_free(model);
        carnn_dataset_free(data);
    }
    odd_equal_texts();
    odd_numbers();
    return test_end();
}
