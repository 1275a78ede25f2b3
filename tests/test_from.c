/* Going on from a model: what a new one takes over, and what it refuses. */

#include "test.h"

static carnn_model *from_model(const char *task, const char *text, const carnn_model *from) {
    carnn_dataset *data = test_data(task, text, strlen(text), 0, 0);
    carnn_model_desc desc;
    carnn_model *model = NULL;
    carnn_error error;
    memset(&desc, 0, sizeof desc);
    memset(&error, 0, sizeof error);
    desc.task = task;
    desc.from = from;
    if (!from) desc.hidden = 7;
    carnn_model_create(&model, &desc, data, &error);
    CHECK_TEXT(error.message, "");
    carnn_dataset_free(data);
    return model;
}

/* Names come first, in their order. */
static void test_first_names(const carnn__names *all, const carnn__names *first) {
    size_t i;
    CHECK(all->count >= first->count);
    for (i = 0; i < carnn__min(first->count, all->count); i++)
        CHECK_TEXT(carnn__names_get(all, i), carnn__names_get(first, i));
}

static void test_first_rows(const carnn_model *model, const carnn_model *old) {
    size_t i, j;
    CHECK_INT(model->params.count, old->params.count);
    for (i = 0; i < old->params.count; i++) {
        carnn_tensor to = carnn_model_tensor(model, i), from = carnn_model_tensor(old, i);
        size_t known = from.rows * from.columns, random = 0;
        CHECK_TEXT(to.name, from.name);
        CHECK(!memcmp(to.value, from.value, known * sizeof(float)));
        for (j = known; j < to.rows * to.columns; j++) random += to.value[j] != 0.0f;
        CHECK(to.rows == from.rows || random || strstr(to.name, "bias") || /* begin at zero */
              strstr(to.name, "ngrams") || strstr(to.name, "asked") || strstr(to.name, "match"));
    }
}

/* With the same data nothing changes; with other words each array has its old rows first. */
static void from_every_task(void) {
    size_t t, j;
    for (t = 0; t < CARNN__COUNT(carnn__tasks); t++) {
        const carnn__task *task = carnn__tasks[t];
        char other[2048];
        carnn_model *old = from_model(task->name, task->sample, NULL), *same, *grown;
        carnn_dataset *data = test_data(task->name, task->sample, strlen(task->sample), 0, 0);
        carnn_scores before, after;
        CHECK(strlen(task->sample) < sizeof other);
        for (j = 0; j <= strlen(task->sample); j++)
            other[j] = strchr("bg", task->sample[j]) && task->sample[j] ? 'w' : task->sample[j];
        for (j = 0; j < old->params.size; j++) old->params.value[j] += 0.125f;
        before = test_scores(old, data);
        same = from_model(task->name, task->sample, old);
        after = test_scores(same, data);
        CHECK_INT(same->words.count, old->words.count);
        CHECK_INT(same->desc.hidden, 7);
        CHECK(before.loss == after.loss);
        CHECK(before.metric[0].value == after.metric[0].value);
        grown = from_model(task->name, other, old);
        CHECK(grown->words.count > old->words.count || data->columns); /* rows have no words */
        test_first_names(&grown->words, &old->words);
        test_first_names(&grown->choices, &old->choices);
        test_first_rows(grown, old);
        carnn_dataset_free(data);
        carnn_model_free(grown);
        carnn_model_free(same);
        carnn_model_free(old);
    }
}

/* What n-grams say of the classes goes on where there is a new class. */
static void from_new_class(void) {
    static const char two[] = "x\ta b c\ny\tb d\n", three[] = "x\ta b\nz\tb q\ny\td c\n";
    carnn_dataset *data = test_data("classify", two, strlen(two), 0, 0);
    carnn_model *old = test_model("classify", "hidden=7 ngrams=2", NULL, data), *grown;
    carnn_tensor to;
    size_t j;
    for (j = 0; j < old->params.size; j++) old->params.value[j] += 0.125f;
    grown = from_model("classify", three, old);
    CHECK_INT(carnn_model_choice_count(grown), 3);
    CHECK_TEXT(carnn_model_choice(grown, 2), "z");
    test_first_rows(grown, old);
    to = carnn_model_tensor(grown, grown->params.count - 1);
    CHECK_TEXT(to.name, "ngrams.weight");
    CHECK(to.value[2 * to.columns - 1] == 0.125f && to.value[2 * to.columns] == 0.0f);
    carnn_model_free(grown);
    carnn_model_free(old);
    carnn_dataset_free(data);
}

/* Options that say how files are read are those of the old model, too, unless they are chosen. */
static void from_reads(void) {
    static const char text[] = "A:b how far\nA:c how long\nA:b how near\n";
    carnn_source source = test_source("data", text, strlen(text));
    carnn_model *old, *model = NULL;
    carnn_dataset *data = NULL;
    carnn_dataset_desc what;
    carnn_model_desc desc;
    int going_on;
    for (going_on = 0; going_on < 2; going_on++) {
        memset(&what, 0, sizeof what);
        memset(&desc, 0, sizeof desc);
        what.task = desc.task = "classify";
        what.sources = &source;
        what.source_count = 1;
        what.model = &desc;
        desc.hidden = 4;
        desc.from = going_on ? model : NULL;
        if (!going_on) CHECK_INT(carnn_set(&desc, NULL, "fine", "1", NULL), CARNN_OK);
        CHECK_INT(carnn_dataset_load(&data, &what, NULL), CARNN_OK);
        old = model;
        CHECK_INT(carnn_model_create(&model, &desc, data, NULL), CARNN_OK);
        CHECK_INT(carnn_model_choice_count(model), 2);
        CHECK_TEXT(carnn_model_choice(model, 1), "A:c");
        carnn_dataset_free(data);
        if (going_on) carnn_model_free(old);
    }
    CHECK_INT(carnn_set(&desc, NULL, "fine", "0", NULL), CARNN_OK);
    desc.from = model;
    CHECK_INT(carnn_dataset_load(&data, &what, NULL), CARNN_OK);
    CHECK_TEXT(carnn_dataset_target(data, 0), "A");
    carnn_dataset_free(data);
    carnn_model_free(model);
}

/* A model of characters with blanks between them goes on with those that have none, one that tells
   labels with data without any; but none of words with characters, or the other way round. */
static void from_lm_data(void) {
    carnn_model *old = from_model("lm", "a\tx\nb\ty\na\tx\n", NULL), *next;
    carnn_dataset *spaced = test_data("lm", "a b _\nb a\n", 10, 0, 0);
    carnn_model_desc desc;
    carnn_error error;
    next = from_model("lm", "b a\n", old);
    CHECK_INT(carnn_model_choice_count(next), 2);
    carnn_model_free(next);
    carnn_model_free(old);
    old = test_model("lm", "unit=char min_count=1", NULL, spaced);
    CHECK_INT(carnn__chosen(old, CARNN__LM_UNIT), CARNN__LM_SPACED);
    next = from_model("lm", "ab\nba\n", old);
    CHECK_INT(carnn__chosen(next, CARNN__LM_UNIT), CARNN__LM_SPACED);
    carnn_model_free(next);
    memset(&desc, 0, sizeof desc);
    desc.task = "lm";
    desc.from = old;
    CHECK_INT(carnn_set(&desc, NULL, "unit", "word", NULL), CARNN_OK);
    CHECK_INT(carnn_model_create(&next, &desc, spaced, &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message,
               "unit: the model to go on from reads characters, of which one of words has no use");
    carnn_model_free(old);
    desc.from = old = from_model("lm", "a b\nb a\n", NULL);
    CHECK_INT(carnn_set(&desc, NULL, "unit", "char", NULL), CARNN_OK);
    CHECK_INT(carnn_model_create(&next, &desc, spaced, &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message,
               "unit: the model to go on from reads words, of which one of characters has no use");
    carnn_model_free(old);
    carnn_dataset_free(spaced);
}

/* A chat keeps room for the longest history that either training had. */
static void from_history(void) {
    carnn_model *old = from_model("dialog", "1 a\tb\n2 c\td\n3 a\tb\n", NULL);
    carnn_model *next = from_model("dialog", "1 a\tb\n", old);
    carnn_model *longer = from_model("dialog", "1 a\tb\n2 c\td\n3 a\tb\n4 c\td\n", old);
    CHECK_INT(old->history, 5); /* $start and two turns */
    CHECK_INT(next->history, 5);
    CHECK_INT(longer->history, 7);
    carnn_model_free(longer);
    carnn_model_free(next);
    carnn_model_free(old);
}

/* Replies are the same without blanks at their ends, whichever list has them. */
static void from_blanks(const char *old_list, const char *list) {
    static const char text[] = "1 hi\thello\n2 bye\tgood bye\n";
    carnn_dataset *old_data = test_dialogs(test_source("t", text, strlen(text)),
                                           test_source("c", old_list, strlen(old_list)));
    carnn_dataset *data = test_dialogs(test_source("t", text, strlen(text)),
                                       test_source("c", list, strlen(list)));
    carnn_model *old = test_model("dialog", "hidden=8 embedding=8", NULL, old_data), *model = NULL;
    carnn_train_desc train = test_training(2, 2, 0.0, 0.0);
    carnn_model_desc desc;
    carnn_error error;
    memset(&desc, 0, sizeof desc);
    memset(&error, 0, sizeof error);
    desc.task = "dialog";
    desc.from = old;
    CHECK_INT(carnn_model_create(&model, &desc, data, &error), CARNN_OK);
    CHECK_INT(carnn_model_choice_count(model), 2);
    CHECK_INT(carnn_train(model, data, NULL, &train, &error), CARNN_OK);
    CHECK_TEXT(error.message, "");
    carnn_model_free(model);
    carnn_model_free(old);
    carnn_dataset_free(data);
    carnn_dataset_free(old_data);
}

/* Words that `vocab` has cut off do not come back, and a larger one has room for more of them. */
static void from_vocab(void) {
    static const char text[] = "a a a a b b b c c d e\n";
    static const char *const vocab[] = {"vocab=2", "vocab=2", "vocab=3"};
    carnn_dataset *data = test_data("lm", text, strlen(text), 0, 0);
    carnn_model *model = NULL, *old;
    size_t i;
    for (i = 0; i < CARNN__COUNT(vocab); i++) {
        carnn_model_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.task = "lm";
        desc.from = old = model;
        if (!old) desc.hidden = 4;
        CHECK_INT(carnn__set_all(&desc, NULL, 0, vocab[i], NULL), CARNN_OK);
        if (!old) CHECK_INT(carnn__set_all(&desc, NULL, 0, "min_count=1 lower=1", NULL), CARNN_OK);
        else CHECK_INT(carnn__set_all(&desc, NULL, 0, "lower=0", NULL), CARNN_OK);
        CHECK_INT(carnn_model_create(&model, &desc, data, NULL), CARNN_OK);
        CHECK_INT(model->words.count, i < 2 ? 3 + 2 : 3 + 3); /* <unk>, <s>, </s> */
        CHECK_INT(carnn__names_find(&model->words, carnn__span_of("c")) != CARNN__NO_INDEX, i == 2);
        CHECK_INT(carnn__option(model, CARNN__LM_LOWER) > 0.0, !old); /* said otherwise */
        carnn_model_free(old);
    }
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Words that only vectors had do not count: there is room for as many of new data. */
static void from_vectors_and_vocab(void) {
    static const char text[] = "It rained . We read . It rained . We read .\n";
    static const char other[] = "It snowed . We read . It snowed . We slept .\n";
    carnn_source vectors = test_source("v", "sun 1 2\nmoon 2 1\nstar 1 1\n", 26);
    carnn_dataset *data = test_data("skip-thought", text, sizeof text - 1, 0, 0);
    carnn_dataset *more = test_data("skip-thought", other, sizeof other - 1, 0, 0);
    carnn_model *old = NULL, *model = NULL;
    carnn_model_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.task = "skip-thought";
    desc.hidden = 4;
    desc.vectors = &vectors;
    desc.vector_count = 1;
    CHECK_INT(carnn__set_all(&desc, NULL, 0, "vocab=6 min_count=1", NULL), CARNN_OK);
    CHECK_INT(carnn_model_create(&old, &desc, data, NULL), CARNN_OK);
    CHECK(carnn__names_find(&old->words, carnn__span_of("moon")) != CARNN__NO_INDEX);
    memset(&desc, 0, sizeof desc);
    desc.task = "skip-thought";
    desc.from = old;
    CHECK_INT(carnn_model_create(&model, &desc, more, NULL), CARNN_OK);
    CHECK(carnn__names_find(&model->words, carnn__span_of("snowed")) != CARNN__NO_INDEX);
    carnn_model_free(model);
    carnn_model_free(old);
    carnn_dataset_free(data);
    carnn_dataset_free(more);
}

/* Another network, or another task, is refused, and what memory was taken is given back. */
static void from_refused(void) {
    static const char text[] = "x\ta b c\ny\tb d\n", lm[] = "a b c\nb d\n";
    static const char *const options[] = {"hidden=8", "layers=2", "cell=gru", "embedding=9",
                                          "pooling=max,mean", "skip=0", "ngrams=0"};
    carnn_dataset *data = test_data("classify", text, strlen(text), 0, 0);
    carnn_model *old = test_model("classify", "hidden=7 skip=2 ngrams=2", NULL, data);
    carnn_model *model = NULL;
    carnn_dataset *sentences = test_data("lm", lm, strlen(lm), 0, 0);
    carnn_model_desc desc;
    carnn_error error;
    test_memory memory = {0, 0, 0};
    carnn_allocator a = test_allocator(&memory);
    size_t i;
    for (i = 0; i < CARNN__COUNT(options); i++) {
        memset(&desc, 0, sizeof desc);
        desc.task = "classify";
        desc.from = old;
        desc.allocator = &a;
        CHECK_INT(carnn__set_all(&desc, NULL, 0, options[i], &error), CARNN_OK);
        CHECK_INT(carnn_model_create(&model, &desc, data, &error), CARNN_ERR_ARGUMENT);
        CHECK(strstr(error.message, "the model to go on from"));
        CHECK(!model && !memory.blocks);
    }
    memset(&desc, 0, sizeof desc);
    desc.task = "lm";
    desc.from = old;
    CHECK_INT(carnn_model_create(&model, &desc, sentences, &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message, "the model to go on from is of the task classify, not lm");
    for (memory.fail_at = 1;; memory.fail_at++) {
        carnn_status status;
        memory.calls = 0;
        desc.task = "classify";
        desc.allocator = &a;
        status = carnn_model_create(&model, &desc, data, &error);
        carnn_model_free(model);
        CHECK_INT(memory.blocks, 0);
        if (!status) break;
        CHECK_INT(status, CARNN_ERR_MEMORY);
    }
    carnn_dataset_free(sentences);
    carnn_dataset_free(data);
    carnn_model_free(old);
}

int main(void) {
    from_every_task();
    from_new_class();
    from_reads();
    from_lm_data();
    from_history();
    from_blanks("1 hello \n1 good bye\n", "1 hello\n1 good bye\n");
    from_blanks("1 hello\n1 good bye\n", "1 hello\n1 good bye \n");
    from_vocab();
    from_vectors_and_vocab();
    from_refused();
    return test_end();
}
