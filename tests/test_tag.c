/* A task of a program's own, that of examples/tagger.c: it has what the library's tasks have, and
   predicts part by part. */

#define CARNN_EXTRA_HEADS(X) X(tag_task)
#include "test.h"

#pragma push_macro("main") /* one program of all tests gives it another name, too */
#undef main
#define main tag_main
#include "../examples/tagger.c"
#pragma pop_macro("main")

enum { TAG_MOST = 2000 };

typedef struct tagged { /* every label of every sentence that was predicted */
    size_t count, sentences;
    size_t example[TAG_MOST], part[TAG_MOST], parts[TAG_MOST], choice[TAG_MOST][2];
    double probability[TAG_MOST][2];
} tagged;

static void tag_keep(const carnn_prediction *p, void *user) {
    tagged *all = (tagged *)user;
    size_t i = all->count++, j;
    CHECK(i < TAG_MOST && p->kind == CARNN_PREDICTS_CHOICES);
    CHECK_INT(p->count, p->parts ? 2 : 0);
    all->sentences += !p->part;
    all->example[i] = p->example;
    all->part[i] = p->part;
    all->parts[i] = p->parts;
    for (j = 0; j < p->count; j++) {
        all->choice[i][j] = p->choice[j];
        all->probability[i][j] = p->probability[j];
    }
}

/* A model with random weights, large enough for labels that differ. */
static carnn_model *tag_model(const char *cell, const carnn_allocator *allocator) {
    carnn_dataset *data = test_data("tag", tag_task.sample, strlen(tag_task.sample), 0, 0);
    carnn_model_desc desc;
    carnn_model *model = NULL;
    size_t i;
    memset(&desc, 0, sizeof desc);
    desc.task = "tag";
    desc.cell = cell;
    desc.layers = 2;
    desc.allocator = allocator;
    CHECK_INT(carnn_model_create(&model, &desc, data, NULL), CARNN_OK);
    for (i = 0; i < model->params.size; i++) model->params.value[i] *= 3.0f;
    carnn_dataset_free(data);
    return model;
}

static void tag_predict(const carnn_model *model, const carnn_dataset *data, int64_t threads,
                        tagged *all) {
    carnn_predict_desc desc;
    memset(&desc, 0, sizeof desc);
    memset(all, 0, sizeof *all);
    desc.threads = threads;
    desc.top = 2;
    desc.example = tag_keep;
    desc.user = all;
    CHECK_INT(carnn_predict(model, data, &desc, NULL), CARNN_OK);
}

/* The first part has been predicted; keeps it and the others, the last one first. */
static void tag_keep_parts(carnn_session *session, carnn_prediction p, size_t example,
                           tagged *all) {
    carnn_prediction last;
    size_t i, parts = p.parts;
    carnn_error error;
    if (parts) CHECK_INT(carnn_session_part(session, parts - 1, &last, &error), CARNN_OK);
    for (i = 0; i < carnn__max(parts, 1); i++) {
        if (parts) CHECK_INT(carnn_session_part(session, i, &p, &error), CARNN_OK);
        CHECK_INT(p.part, i);
        p.example = example;
        tag_keep(&p, all);
    }
    CHECK_INT(carnn_session_part(session, parts, &p, &error), CARNN_ERR_ARGUMENT);
    CHECK(strstr(error.message, "no part") != NULL);
    CHECK_INT(carnn_session_part(session, SIZE_MAX, &p, NULL), CARNN_ERR_ARGUMENT);
}

/* Sentences alone, with labels that are right, wrong or too few, without words, with words that
   nobody knows, and one that is longer than a session reads. */
static char *tag_odd_text(void) {
    char *text = (char *)malloc(8192);
    size_t at = (size_t)sprintf(text, "the dog runs\nthe dog runs\tD N V\na  cat\tD\n"
                                      "zz \377 qq\tx y z\n \t \nruns\t\n  the cat  \n\n");
    int i;
    for (i = 0; i < 600; i++) at += (size_t)sprintf(text + at, "%s ", i % 3 ? "the" : "cat");
    sprintf(text + at, "\nruns\tV\n");
    return text;
}

/* Batches, examples, lines and texts are predicted alike, bit by bit. */
static void tag_same_as_session(const char *cell) {
    char *text = tag_odd_text();
    const char *line = text;
    carnn_dataset *data = test_data("tag", text, strlen(text), 0, 1);
    carnn_model *model = tag_model(cell, NULL);
    carnn_session *session = NULL;
    carnn_prediction p;
    tagged *all = (tagged *)calloc(3, sizeof *all), *found = all + 1, *read = all + 2;
    size_t i, examples = 0, length;
    int64_t threads;
    int is;
    CHECK_INT(carnn_dataset_examples(data), 9);
    tag_predict(model, data, 1, all);
    CHECK_INT(all->sentences, 9);
    CHECK_INT(all->count, 3 + 3 + 2 + 3 + 1 + 1 + 2 + CARNN__SENTENCE_WORDS + 1);
    for (threads = 2; threads <= 3; threads++) {
        tag_predict(model, data, threads, found);
        CHECK(!memcmp(all, found, sizeof *all));
    }
    CHECK_INT(carnn_session_open(&session, model, NULL, NULL), CARNN_OK);
    CHECK_INT(carnn_session_part(session, 0, &p, NULL), CARNN_ERR_ARGUMENT);
    memset(found, 0, sizeof *found);
    for (i = 0; i < 9; i++) {
        CHECK_INT(carnn_session_example(session, data, i, 2, &p, NULL), CARNN_OK);
        CHECK_INT(p.example, i);
        tag_keep_parts(session, p, i, found);
    }
    CHECK(!memcmp(all, found, sizeof *all));
    carnn_session_reset(session);
    CHECK_INT(carnn_session_part(session, 0, &p, NULL), CARNN_ERR_ARGUMENT);
    memset(found, 0, sizeof *found);
    for (i = 1; *line; i++, line += length + 1) {
        carnn_text words = {line, strcspn(line, "\t\n")};
        length = strcspn(line, "\n");
        CHECK_INT(carnn_session_line(session, line, length, i, 2, &is, &p, NULL), CARNN_OK);
        CHECK_INT(is, length > 0);
        if (!is) continue;
        tag_keep_parts(session, p, examples, found);
        CHECK_INT(carnn_session_predict(session, &words, 1, 2, &p, NULL), CARNN_OK);
        tag_keep_parts(session, p, examples++, read);
    }
    CHECK(!memcmp(all, found, sizeof *all));
    CHECK(!memcmp(all, read, sizeof *all));
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
    free(all);
    free(text);
}

/* An example of labelled data has its labels as a text, which sessions do not read; labels count as
   targets of scores, and where there are none the sentence does not count. */
static void tag_labels(void) {
    static const char rows[] = "the dog runs\tD N V\nruns\na cat\tD X\n";
    carnn_dataset *data = test_data("tag", rows, strlen(rows), 0, 0);
    carnn_model *model = tag_model(NULL, NULL);
    carnn_session *session = NULL;
    carnn_prediction p;
    carnn_error error;
    carnn_scores s = test_scores(model, data);
    carnn_dataset *bad = NULL;
    carnn_source source = test_source("bad", "a cat\tD N\nthe dog\tD\n", 22);
    carnn_dataset_desc desc;
    tagged *all = (tagged *)calloc(1, sizeof *all);
    double right = 0.0;
    size_t i;
    static const char *const label[] = {"D", "N", "V", NULL, "D", "X"};
    CHECK_INT(model->choices.count, 3);
    CHECK_INT(carnn_dataset_text_count(data, 0), 2);
    CHECK_TEXT(carnn_dataset_text(data, 0, 0), "the dog runs");
    CHECK_TEXT(carnn_dataset_text(data, 0, 1), "D N V");
    CHECK_INT(carnn_dataset_text_count(data, 1), 1);
    CHECK(carnn_dataset_target(data, 0) == NULL);
    tag_predict(model, data, 1, all);
    CHECK_INT(all->count, 6);
    for (i = 0; i < 6; i++)
        right += label[i] && !strcmp(label[i], carnn_model_choice(model, all->choice[i][0]));
    CHECK_NEAR(s.metric[0].value * (double)s.examples, right, 1e-9);
    CHECK_INT(carnn_session_open(&session, model, NULL, NULL), CARNN_OK);
    for (i = 0; i < 3; i++) {
        static const size_t words[] = {3, 1, 2}, first[] = {0, 3, 4};
        CHECK_INT(carnn_session_example(session, data, i, 1, &p, &error), CARNN_OK);
        CHECK_INT(p.parts, words[i]);
        CHECK(p.probability[0] == all->probability[first[i]][0]);
    }
    carnn_session_free(session);
    test_describe(&desc, "tag", &source);
    CHECK_INT(carnn_dataset_load(&bad, &desc, &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message, "bad:2: expected a label for each word, found \"D\"");
    carnn_model_free(model);
    carnn_dataset_free(data);
    free(all);
}

/* Training learns the sample, for any number of threads the same; a file has all of the model. */
static void tag_trains(void) {
    carnn_dataset *data = test_data("tag", tag_task.sample, strlen(tag_task.sample), 0, 0);
    tagged *all = (tagged *)calloc(2, sizeof *all);
    carnn_model *model[2] = {NULL, NULL}, *again = NULL;
    carnn_model_desc desc;
    carnn_train_desc train;
    carnn_source file = test_source("tag.gguf", NULL, 0);
    int i;
    memset(&desc, 0, sizeof desc);
    desc.task = "tag";
    for (i = 0; i < 2; i++) {
        memset(&train, 0, sizeof train);
        train.threads = i + 1;
        CHECK_INT(carnn_model_create(&model[i], &desc, data, NULL), CARNN_OK);
        CHECK_INT(carnn_train(model[i], data, NULL, &train, NULL), CARNN_OK);
    }
    CHECK(!memcmp(model[0]->params.value, model[1]->params.value,
                  model[0]->params.size * sizeof(float)));
    CHECK_NEAR(test_scores(model[0], data).metric[0].value, 1.0, 0.0);
    CHECK_INT(carnn_model_save(model[0], "tag.gguf", NULL), CARNN_OK);
    CHECK_INT(carnn_model_load(&again, &file, NULL, NULL), CARNN_OK);
    CHECK_TEXT(carnn_model_describe(again)->task, "tag");
    CHECK_TEXT(carnn_model_choice(again, 0), carnn_model_choice(model[0], 0));
    tag_predict(model[0], data, 1, &all[0]);
    tag_predict(again, data, 1, &all[1]);
    CHECK(!memcmp(&all[0], &all[1], sizeof *all));
    remove("tag.gguf");
    carnn_model_free(model[0]);
    carnn_model_free(model[1]);
    carnn_model_free(again);
    carnn_dataset_free(data);
    free(all);
}

/* The members of an ensemble are averaged in every part, in a session as in a batch. */
static void tag_ensemble(void) {
    carnn_dataset *data = test_data("tag", tag_task.sample, strlen(tag_task.sample), 0, 0);
    carnn_model *model[2] = {tag_model("gru", NULL), tag_model("icarnn", NULL)}, *both = NULL;
    tagged *all = (tagged *)calloc(3, sizeof *all), *read = all + 1, *first = all + 2;
    carnn_session *session = NULL;
    carnn_ensemble_desc desc;
    carnn_prediction p;
    size_t i;
    memset(&desc, 0, sizeof desc);
    CHECK_INT(carnn_model_ensemble(&both, (const carnn_model *const *)model, 2, &desc, NULL),
              CARNN_OK);
    tag_predict(both, data, 1, all);
    tag_predict(model[0], data, 1, first);
    CHECK(memcmp(all->probability, first->probability, sizeof all->probability) != 0);
    CHECK_INT(carnn_session_open(&session, both, NULL, NULL), CARNN_OK);
    for (i = 0; i < carnn_dataset_examples(data); i++) {
        CHECK_INT(carnn_session_example(session, data, i, 2, &p, NULL), CARNN_OK);
        tag_keep_parts(session, p, i, read);
    }
    CHECK(!memcmp(all, read, sizeof *all));
    carnn_session_free(session);
    carnn_model_free(both);
    for (i = 0; i < 2; i++) carnn_model_free(model[i]);
    carnn_dataset_free(data);
    free(all);
}

/* A model that goes on has its labels first. Of a long sentence as many labels are read as
   words. */
static void tag_goes_on(void) {
    char *text = (char *)malloc(4096), *at = text;
    carnn_model *model = tag_model(NULL, NULL), *next = NULL;
    carnn_model_desc desc;
    carnn_dataset *data;
    test_work w;
    int i;
    for (i = 0; i < 1200; i++) at += sprintf(at, "%s%s", i % 600 ? " " : i ? "\t" : "", "a");
    at += sprintf(at, "\nthe cat\tX N\n");
    data = test_data("tag", text, (size_t)(at - text), 0, 0);
    memset(&desc, 0, sizeof desc);
    desc.from = model;
    CHECK_INT(carnn_model_create(&next, &desc, data, NULL), CARNN_OK);
    CHECK_INT(carnn_model_choice_count(next), carnn_model_choice_count(model) + 2); /* a, X */
    for (i = 0; i < 3; i++)
        CHECK_TEXT(carnn_model_choice(next, (size_t)i), carnn_model_choice(model, (size_t)i));
    test_work_open(&w, next, data, 1);
    test_work_begin(&w);
    for (i = 0; i < 2; i++)
        CHECK_INT(carnn__member_tokens(&w.work, (size_t)i).length, CARNN__SENTENCE_WORDS);
    test_work_close(&w);
    carnn_model_free(next);
    carnn_model_free(model);
    carnn_dataset_free(data);
    free(text);
}

/* What the task does not do is said. */
static void tag_refuses(void) {
    carnn_model *model = tag_model(NULL, NULL);
    carnn_session *session = NULL;
    carnn_text two[2] = {{"a", 1}, {"b", 1}};
    carnn_prediction p;
    carnn_error error;
    CHECK_INT(carnn_session_open(&session, model, NULL, NULL), CARNN_OK);
    CHECK_INT(carnn_session_predict(session, two, 2, 1, &p, &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message, "the task tag predicts from 1 text, not 2");
    CHECK_INT(carnn_session_hear(session, CARNN_USER, "a", 1, &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message, "a model of the task tag cannot hear; it can predict");
    carnn_session_free(session);
    carnn_model_free(model);
}

/* Choices that a model file would not have are refused before a model is trained. */
static void tag_needs_key(void) {
    carnn__task task = tag_task;
    carnn_dataset *data = test_data("tag", tag_task.sample, strlen(tag_task.sample), 0, 0);
    carnn_error error;
    int named;
    for (named = 0; named < 2; named++) {
        carnn_model fresh;
        memset(&fresh, 0, sizeof fresh);
        fresh.allocator = carnn__allocator(NULL);
        fresh.desc.task = "tag";
        fresh.task = &task;
        task.choices_key = named ? tag_task.choices_key : NULL;
        CHECK_INT(carnn_defaults(&fresh.desc, NULL, NULL), CARNN_OK);
        CHECK_INT(carnn__model_build(&fresh, data, &error),
                  named ? CARNN_OK : CARNN_ERR_ARGUMENT);
        CHECK_INT(fresh.choices.count, 3);
        carnn__names_free(&fresh.words, &fresh.allocator);
        carnn__names_free(&fresh.choices, &fresh.allocator);
    }
    CHECK_TEXT(error.message, "the task tag has choices, but no choices_key for model files");
    carnn_dataset_free(data);
}

int main(void) {
    CHECK_INT(tag_main(), 0); /* tests/examples.sh reads what it prints */
    tag_same_as_session("gru");
    tag_same_as_session("icarnn");
    tag_labels();
    tag_trains();
    tag_ensemble();
    tag_goes_on();
    tag_refuses();
    tag_needs_key();
    return test_end();
}
