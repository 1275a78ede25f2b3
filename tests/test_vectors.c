/* Words that only the word vectors have: which are known, that they are read as other words are,
   that they are not trained, kept, and what is refused. */

#include "test.h"

static const char vectors_file[] =
    "cat 1 2 3 4 5\nruns 2 1 0 1 -1\nMoon 1 1 1 1 1\nfar away 1 1 1 1 1\nmy 0 0 1 0 0\n"
    "unicorn 5 4 3 2 1\nunicorn 7 7 7 7 7\nmore 1 -1 1 -1 1\nzebra 3 1 4 1 5\n";

static const struct {
    const char *task, *options, *data, *others; /* others: of words that training does not have */
} vectors_tasks[] = {
    {"classify", "cell=lstm", "x\tmy cat runs\ny\tcat\nx\truns my\ny\tmore cat\n",
     "x\tmy unicorn runs\ny\tzebra cat\n"},
    {"pair", "cell=icarnn", "x\tmy cat\tcat runs\ny\truns\tmy cat\nx\tcat\tmore\n",
     "x\tmy unicorn\tunicorn\ny\tzebra\tunicorn runs\n"},
    {"answer", "cell=scarnn", "my cat\tcat runs\t1\nmy cat\tmore runs\t0\n",
     "unicorn runs\tmy unicorn\t1\nunicorn runs\tzebra\t0\n"},
    {"answer", "cell=icarnn tune_vectors=1", "my cat\tcat runs\t1\nmy cat\tmore runs\t0\n",
     "unicorn runs\tmy unicorn\t1\nunicorn runs\tzebra\t0\n"},
    {"answer", "model=ca", "my cat\tcat runs\t1\nmy cat\tmore runs\t0\n",
     "unicorn runs\tmy unicorn\t1\nunicorn runs\tzebra\t0\n"}};

/* A model of a task of the table; known: whose words it knows besides; most: how many words of the
   vectors, CARNN_NONE: none. */
static carnn_model *vectors_model(size_t t, const carnn_dataset *known, int64_t most,
                                  const carnn_model *from) {
    carnn_source source = test_source("vectors", vectors_file, sizeof vectors_file - 1);
    carnn_dataset *data = test_read(vectors_tasks[t].task, vectors_tasks[t].data);
    carnn_allocator a = carnn__allocator(NULL);
    carnn_model *model = NULL;
    carnn_model_desc desc;
    carnn_error error;
    memset(&desc, 0, sizeof desc);
    desc.task = vectors_tasks[t].task;
    desc.allocator = &a;
    desc.hidden = 6;
    desc.vectors = &source;
    desc.vector_count = 1;
    desc.vector_words = most;
    desc.known = &known;
    desc.known_count = 1;
    desc.from = from;
    CHECK_INT(carnn__set_all(&desc, NULL, 0, vectors_tasks[t].options, &error), CARNN_OK);
    if (carnn_model_create(&model, &desc, data, &error)) printf("%s\n", error.message);
    carnn_dataset_free(data);
    return model;
}

static int vectors_knows(const carnn_model *model, const char *word) {
    return carnn__names_find(&model->words, carnn__span_of(word)) != CARNN__NO_INDEX;
}

static double vectors_first(const carnn_model *model, const char *word) {
    uint32_t number = carnn__names_find(&model->words, carnn__span_of(word));
    return (double)*carnn__word_vector(model, number);
}

static void vectors_fit(carnn_model *model, size_t t, double weight_decay) {
    carnn_dataset *data = test_read(vectors_tasks[t].task, vectors_tasks[t].data);
    carnn_train_desc train = test_training(3, 2, 0.01, CARNN_NONE);
    train.weight_decay = weight_decay;
    CHECK_INT(carnn_train(model, data, NULL, &train, NULL), CARNN_OK);
    carnn_dataset_free(data);
}

/* The first words that a text can have, one each; they come behind those of the data. */
static void vectors_which(void) {
    static const struct {
        int64_t most;
        int unicorn, zebra;
    } cases[] = {{0, 1, 1}, {CARNN_NONE, 0, 0}, {1, 1, 0}, {2, 1, 1}};
    size_t t, c;
    for (t = 0; t < CARNN__COUNT(vectors_tasks); t++)
        for (c = 0; c < CARNN__COUNT(cases); c++) {
            carnn_model *model = vectors_model(t, NULL, cases[c].most, NULL);
            size_t V = model->words.count;
            CHECK_INT(vectors_knows(model, "unicorn"), cases[c].unicorn);
            CHECK_INT(vectors_knows(model, "zebra"), cases[c].zebra);
            CHECK(vectors_knows(model, "more"));
            CHECK(!vectors_knows(model, "Moon") && !vectors_knows(model, "moon"));
            CHECK(!vectors_knows(model, "far away"));
            CHECK_INT(model->vector_words, cases[c].unicorn + cases[c].zebra);
            if (cases[c].zebra) CHECK_TEXT(carnn_model_word(model, V - 1), "zebra");
            if (cases[c].unicorn) CHECK_NEAR(vectors_first(model, "unicorn"), 5.0, 0.0);
            CHECK_NEAR(vectors_first(model, "cat"), 1.0, 0.0);
            carnn_model_free(model);
        }
}

/* Words of known data sets are those of the model where there are word vectors, however rare. */
static void vectors_of_known(void) {
    carnn_source source = test_source("vectors", vectors_file, sizeof vectors_file - 1);
    carnn_dataset *data = test_read("classify", vectors_tasks[0].data);
    const carnn_dataset *others = test_read("classify", vectors_tasks[0].others);
    size_t count;
    for (count = 0; count < 2; count++) {
        carnn_model *model = NULL;
        carnn_model_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.task = "classify";
        desc.hidden = 6;
        desc.min_count = 2;
        desc.vectors = &source;
        desc.vector_count = count;
        desc.known = &others;
        desc.known_count = 1;
        if (count) desc.vector_words = CARNN_NONE;
        CHECK_INT(carnn_model_create(&model, &desc, data, NULL), CARNN_OK);
        CHECK(vectors_knows(model, "cat") && !vectors_knows(model, "more")); /* once in the data */
        CHECK_INT(vectors_knows(model, "zebra"), count);
        CHECK_INT(vectors_knows(model, "unicorn"), count);
        carnn_model_free(model);
    }
    carnn_dataset_free((carnn_dataset *)(uintptr_t)others);
    carnn_dataset_free(data);
}

/* The random vector of <unk>, which has none in the file, becomes as long as those of the words of
   the data: 68 is the sum of the squares of my, cat, runs and more, 0.1 what it was drawn with. */
static void vectors_scale(void) {
    carnn_dataset *data = test_read("classify", vectors_tasks[0].data);
    carnn_model *model = vectors_model(0, NULL, 0, NULL);
    carnn_model *plain = test_model("classify", "cell=lstm hidden=6 embedding=5", NULL, data);
    const float *random = carnn__word_vector(plain, 0);
    size_t j;
    CHECK_INT(model->words.count - model->vector_words, plain->words.count);
    for (j = 0; j < 5; j++)
        CHECK_NEAR(carnn__word_vector(model, 0)[j], sqrt(68.0 / 20.0) / 0.1 * (double)random[j],
                   1e-5);
    carnn_model_free(plain);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* A word of the vectors is read as one that the model knows from a data set, before training and
   after it, and stays as it is. Without it the words of these texts are unknown. */
static void vectors_are_read(size_t t) {
    carnn_dataset *others = test_read(vectors_tasks[t].task, vectors_tasks[t].others);
    carnn_model *known = vectors_model(t, others, CARNN_NONE, NULL), *again;
    carnn_model *model = vectors_model(t, NULL, 0, NULL);
    carnn_model *without = vectors_model(t, NULL, CARNN_NONE, NULL);
    CHECK(test_scores(model, others).loss == test_scores(known, others).loss);
    CHECK(test_scores(model, others).unknown == 0.0);
    CHECK(test_scores(without, others).unknown > 0.0);
    CHECK(test_scores(model, others).loss != test_scores(without, others).loss);
    vectors_fit(known, t, CARNN_NONE);
    vectors_fit(model, t, CARNN_NONE);
    CHECK_NEAR(test_scores(model, others).loss, test_scores(known, others).loss, 1e-5);
    CHECK_NEAR(vectors_first(model, "unicorn"), 5.0, 0.0);
    CHECK_NEAR(vectors_first(model, "zebra"), 3.0, 0.0);
    again = test_reload(model);
    CHECK_INT(again->vector_words, 2);
    CHECK(test_scores(again, others).loss == test_scores(model, others).loss);
    carnn_model_free(again);
    carnn_model_free(without);
    carnn_model_free(model);
    carnn_model_free(known);
    carnn_dataset_free(others);
}

/* A model that goes on knows the words with their vectors, also without the file. */
static void vectors_go_on(size_t t) {
    carnn_dataset *others = test_read(vectors_tasks[t].task, vectors_tasks[t].others);
    carnn_model *model = vectors_model(t, NULL, 1, NULL), *next = NULL;
    const carnn_model_desc *told;
    carnn_model_desc desc;
    carnn_error error;
    vectors_fit(model, t, 0.1);
    memset(&desc, 0, sizeof desc);
    desc.from = model;
    CHECK_INT(carnn_model_create(&next, &desc, others, &error), CARNN_OK);
    CHECK_INT(next->vector_words, 0);
    CHECK(vectors_knows(next, "unicorn") && vectors_knows(next, "zebra"));
    CHECK_NEAR(vectors_first(next, "unicorn"), 5.0, 0.0);
    CHECK(vectors_first(next, "cat") == vectors_first(model, "cat"));
    carnn_model_free(next);
    desc.task = vectors_tasks[t].task; /* also where a program has asked for the defaults before */
    desc.hidden = 6;
    CHECK_INT(carnn__set_all(&desc, NULL, 0, vectors_tasks[t].options, &error), CARNN_OK);
    CHECK_INT(carnn_defaults(&desc, NULL, &error), CARNN_OK);
    CHECK_INT(desc.vector_words, 100000);
    desc.embedding = 5;
    CHECK_INT(carnn_model_create(&next, &desc, others, &error), CARNN_OK);
    carnn_model_free(next);
    next = vectors_model(t, NULL, 2, model);
    CHECK_INT(next->vector_words, 1);
    told = carnn_model_describe(next); /* what was for its making alone is not kept */
    CHECK(!told->vectors && !told->known && !told->from && !told->allocator);
    CHECK_INT(told->vector_count + told->known_count, 0);
    CHECK_NEAR(vectors_first(next, "unicorn"), 5.0, 0.0);
    CHECK_NEAR(vectors_first(next, "zebra"), 3.0, 0.0);
    carnn_model_free(next);
    carnn_model_free(model);
    carnn_dataset_free(others);
}

/* More words than the vocabulary has: the rows grow with them. */
static void vectors_grow(void) {
    enum { VECTORS_WORDS = 5000, VECTORS_OF_DATA = 4 };
    static const char *const s[VECTORS_OF_DATA] = {"<unk>", "w7", "w70", "w701"};
    carnn_allocator a = carnn__allocator(NULL);
    carnn__span span[VECTORS_OF_DATA];
    carnn__names words;
    carnn__vectors v;
    carnn_source source;
    char *text = (char *)malloc(VECTORS_WORDS * 40), *end = text;
    size_t i, wrong = 0;
    for (i = 0; i < VECTORS_OF_DATA; i++) {
        span[i].at = s[i];
        span[i].length = strlen(s[i]);
    }
    for (i = 0; i < VECTORS_WORDS; i++) end += sprintf(end, "w%zu %zu.5 -%zu\n", i, i, i);
    source = test_source("vectors", text, (size_t)(end - text));
    CHECK_INT(carnn__names_build(&words, &a, span, VECTORS_OF_DATA, NULL), CARNN_OK);
    memset(&v, 0, sizeof v);
    v.most = VECTORS_WORDS;
    v.kind = CARNN__TOKENS;
    CHECK_INT(carnn__vectors_read(&v, &source, &words, &a, NULL), CARNN_OK);
    CHECK_INT(v.found, VECTORS_OF_DATA - 1);
    CHECK_INT(v.more.count, VECTORS_WORDS - (VECTORS_OF_DATA - 1));
    for (i = 0; i < v.more.count; i++) {
        size_t row = VECTORS_OF_DATA + i;
        const float *x = v.value + 2 * row;
        double number = atof(carnn__names_get(&v.more, i) + 1);
        wrong += (double)x[0] != number + 0.5 || (double)x[1] != -number || !v.has[row];
    }
    CHECK_INT(wrong, 0);
    CHECK(v.value[2 * 2] == 70.5f && v.value[2 * 2 + 1] == -70.0f && !v.has[0]);
    carnn__vectors_free(&v, &a);
    carnn__names_free(&words, &a);
    free(text);
}

/* A task whose words are also its outputs has none; and files whose numbers cannot be. */
static void vectors_refused(void) {
    static const unsigned char number[] = {1, 3, 100, 255};
    static const char key[] = "carnn.words_of_vectors";
    carnn_model *model = vectors_model(0, NULL, 0, NULL), *loaded = NULL, *lm = NULL;
    carnn_source source = test_source("vectors", vectors_file, sizeof vectors_file - 1);
    carnn_dataset *data = test_read("lm", "my cat runs\nmy cat\n"), *other;
    carnn_model_desc desc;
    carnn_error error;
    size_t size = carnn_model_size(model), at, i;
    unsigned char *bytes = (unsigned char *)malloc(size);
    CHECK_INT(carnn_model_write(model, bytes, size, NULL), CARNN_OK);
    for (at = 0; at < size && memcmp(bytes + at, key, sizeof key - 1);) at++;
    CHECK_INT(bytes[at + sizeof key - 1 + 4], 2);
    for (i = 0; i < sizeof number; i++) {
        carnn_source file = test_source("model", bytes, size);
        bytes[at + sizeof key - 1 + 4] = number[i];
        test_seal(bytes, size);
        CHECK(carnn_model_load(&loaded, &file, NULL, &error) && !loaded);
        CHECK(error.message[0] != '\0');
    }
    memset(&desc, 0, sizeof desc);
    desc.task = "lm";
    desc.hidden = 6;
    desc.vectors = &source;
    desc.vector_count = 1;
    CHECK_INT(carnn_model_create(&lm, &desc, data, &error), CARNN_OK);
    CHECK_INT(lm->vector_words, 0);
    carnn_model_free(lm);
    desc.vector_words = 2;
    CHECK_INT(carnn_model_create(&lm, &desc, data, &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message, "vector_words has no effect in the task lm");
    desc.vector_words = 0;
    desc.embedding = 9;
    source.name = NULL;
    CHECK_INT(carnn_model_create(&lm, &desc, data, &error), CARNN_ERR_ARGUMENT);
    CHECK(!strncmp(error.message, "(memory): the vectors have ", 27));
    other = test_read("dialog", "1 hi\thello\n");
    desc.known = (const carnn_dataset *const *)&other;
    desc.known_count = 1;
    CHECK_INT(carnn_model_create(&lm, &desc, data, &error), CARNN_ERR_ARGUMENT);
    carnn_dataset_free(other);
    free(bytes);
    carnn_dataset_free(data);
    carnn_model_free(model);
}

int main(void) {
    size_t t;
    vectors_which();
    vectors_of_known();
    vectors_scale();
    for (t = 0; t < CARNN__COUNT(vectors_tasks); t++) {
        vectors_are_read(t);
        vectors_go_on(t);
    }
    vectors_grow();
    vectors_refused();
    return test_end();
}
