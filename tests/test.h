/* A small harness for the tests. A file test_xxx.c tests a part of the header and is a program:

       #include "test.h"

       int main(void) {
           CHECK(1 + 1 == 2);
           return test_end();
       }

   A check that fails prints file, line and what was found, and the program goes on. The last line
   says `N passed, N failed`; the exit code is 1 if any failed.

   Compiling the header takes longer than most tests run, so `make test` makes one program of all
   files (tests/gather.sh), where `build/tests xxx` runs the main function of test_xxx.c. Names of
   files' own functions must differ for that. */

#ifndef TEST_H
#define TEST_H

/* Under a sanitizer loops take ten to fifty times as long. There it is enough that each line runs
   with each kind of input; how often and how large is for the programs as they are. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_SANITIZED 1
#define CARNN__CHECK_SAMPLES 3
#else
#define TEST_SANITIZED 0
#endif

#define CARNN_IMPLEMENTATION
#define CARNN__COUNT_LIMIT 1000000 /* so that the limit can be reached */
#define CARNN__FIRST_READ 8        /* so that buffers have to move what is in them */
#define CARNN__SECONDS_BETWEEN_SAVES test_seconds_between_saves
static double test_seconds_between_saves = 10.0;
#include "../carnn.h"

#if defined(_WIN32) /* words that windows.h takes away, and a function of POSIX */
#undef CONST
#undef far
#undef near
#undef small
#define sleep(seconds) Sleep(1000 * (seconds))
#define unsetenv(name) _putenv_s(name, "")
#define setenv(name, value, replace) _putenv_s(name, value)
#else
extern int setenv(const char *, const char *, int); /* hidden by -std=c99 */
extern int unsetenv(const char *);
#endif

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <xmmintrin.h> /* the header has it where it has SIMD */
#endif

static unsigned long test_passed, test_failed;

/* Counts a check; returns whether it failed, after the head of the message for that. */
static inline int test_fails(int passed, const char *what, const char *file, int line) {
    if (passed) test_passed++;
    else test_failed++;
    if (!passed) printf("%s:%d: %s", file, line, what);
    return !passed;
}

static inline void test_true(int passed, const char *what, const char *file, int line) {
    if (test_fails(passed, what, file, line)) printf(" is not so\n");
}

static inline void test_int(long long found, long long expected, const char *what,
                            const char *file, int line) {
    if (test_fails(found == expected, what, file, line))
        printf(" is %lld, expected %lld\n", found, expected);
}

static inline void test_text(const char *found, const char *expected, const char *what,
                             const char *file, int line) {
    int same = found && expected ? strcmp(found, expected) == 0 : found == expected;
    if (test_fails(same, what, file, line))
        printf(" is \"%s\", expected \"%s\"\n", found ? found : "(null)",
               expected ? expected : "(null)");
}

/* Also fails where one of the numbers is not a number. */
static inline void test_near(double found, double expected, double tolerance, const char *what,
                             const char *file, int line) {
    if (test_fails(fabs(found - expected) <= tolerance, what, file, line))
        printf(" is %.9g, expected %.9g within %g\n", found, expected, tolerance);
}

#define CHECK(condition) test_true((condition) ? 1 : 0, #condition, __FILE__, __LINE__)
#define CHECK_INT(found, expected)                                                                 \
    test_int((long long)(found), (long long)(expected), #found, __FILE__, __LINE__)
#define CHECK_TEXT(found, expected) test_text(found, expected, #found, __FILE__, __LINE__)
#define CHECK_NEAR(found, expected, tolerance)                                                     \
    test_near((double)(found), (double)(expected), (double)(tolerance), #found, __FILE__, __LINE__)

/* The last statement of main: `return test_end();` */
static inline int test_end(void) {
    printf("%lu passed, %lu failed\n", test_passed, test_failed);
    return test_failed ? 1 : 0;
}

/* Packs sequences of these lengths, in memory that free(p->length) gives back. */
static inline void test_pack(carnn__packed *p, const uint32_t *length, size_t count) {
    carnn__arena arena = {NULL, 0, 0, 0};
    size_t longest = 0, i;
    for (i = 0; i < count; i++) longest = carnn__max(longest, length[i]);
    carnn__packed_plan(&arena, p, count, longest);
    arena.base = (char *)malloc(arena.peak);
    if (!arena.base) abort();
    arena.size = arena.peak;
    arena.used = 0;
    carnn__packed_plan(&arena, p, count, longest);
    if (count) memcpy(p->length, length, count * sizeof *length);
    carnn__pack_sequences(p, count);
}

/* Is this the thread that has asked first? None that the library starts is. */
static inline int test_own_thread(void) {
#if !defined(CARNN_NO_THREADS) && !defined(_WIN32)
    static pthread_t first;
    static int known;
    if (!known) first = pthread_self();
    known = 1;
    return pthread_equal(first, pthread_self()) != 0;
#else
    return 1;
#endif
}

/* --- memory that runs out --------------------------------------------------------------------
   An allocator that counts blocks and fails at its `fail_at`th call (0: never). A test runs its
   subject for fail_at = 1, 2, ... until it succeeds, and expects `blocks` to be 0 each time. Its
   functions fit the members of carnn_allocator; `user` is the test_memory. Nobody asks it for 0
   bytes, frees NULL, or calls it in another thread. */

typedef struct test_memory {
    long calls, fail_at;
    long blocks; /* live ones */
} test_memory;

static inline void *test_realloc(void *block, size_t bytes, void *user) {
    test_memory *memory = (test_memory *)user;
    void *result = NULL;
    int fair = bytes && test_own_thread();
    if (!fair) CHECK(fair);
    if (++memory->calls != memory->fail_at) result = realloc(block, bytes);
    if (result && !block) memory->blocks++;
    return result;
}

static inline void *test_alloc(size_t bytes, void *user) {
    return test_realloc(NULL, bytes, user);
}

static inline void test_free(void *block, void *user) {
    test_memory *memory = (test_memory *)user;
    int fair = block && test_own_thread();
    if (!fair) CHECK(fair);
    if (block) memory->blocks--;
    free(block);
}

static inline carnn_allocator test_allocator(test_memory *memory) {
    carnn_allocator a = {test_alloc, test_realloc, test_free, NULL};
    a.user = memory;
    return a;
}

/* --- helpers ---------------------------------------------------------------------------------- */

/* Row `row` of W, a matrix of so many columns, times x. */
static inline double test_row_times(const float *W, size_t row, size_t columns, const double *x) {
    double sum = 0.0;
    size_t j;
    for (j = 0; j < columns; j++) sum += (double)W[row * columns + j] * x[j];
    return sum;
}

/* Memory as aligned as the library's arrays are. */
static inline void *test_aligned(size_t bytes) {
    carnn_allocator a = carnn__allocator(NULL);
    void *block = carnn__alloc_aligned(&a, bytes, 1);
    if (!block) abort();
    return block;
}

/* So many zeros, as aligned. */
static inline float *test_floats(size_t count) {
    float *x = (float *)test_aligned((count + 1) * sizeof *x);
    memset(x, 0, (count + 1) * sizeof *x);
    return x;
}

/* Gives one of them back. */
static inline void test_drop(void *block) {
    carnn_allocator a = carnn__allocator(NULL);
    carnn__free_aligned(&a, block);
}

/* Numbers from -size to size. */
static inline void test_draw(float *x, size_t count, uint64_t key, float size) {
    size_t i;
    for (i = 0; i < count; i++) x[i] = size * (2.0f * carnn__uniform(key, i) - 1.0f);
}

static inline double test_sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

/* The larger error; not a number is the largest of all. */
static inline double test_worse(double a, double b) { return a != a || b <= a ? a : b; }

static inline carnn_source test_source(const char *name, const void *bytes, size_t size) {
    carnn_source source = {NULL, NULL, 0};
    source.name = name;
    source.bytes = bytes;
    source.size = size;
    return source;
}

/* Describes a data set of one source. */
static inline void test_describe(carnn_dataset_desc *desc, const char *task,
                                 const carnn_source *source) {
    memset(desc, 0, sizeof *desc);
    desc->task = task;
    desc->sources = source;
    desc->source_count = 1;
}

/* A data set of `size` bytes; `clean` and `lenient` as in its description. */
static inline carnn_dataset *test_data(const char *task, const char *bytes, size_t size, int clean,
                                       int lenient) {
    carnn_source source = test_source("data", bytes, size);
    carnn_dataset_desc desc;
    carnn_dataset *data = NULL;
    carnn_error error;
    test_describe(&desc, task, &source);
    desc.clean = clean;
    desc.lenient = lenient;
    CHECK_INT(carnn_dataset_load(&data, &desc, &error), CARNN_OK);
    return data;
}

/* That of a text, all of which has to be right. */
static inline carnn_dataset *test_read(const char *task, const char *text) {
    return test_data(task, text, strlen(text), 0, 0);
}

/* A data set of dialogs that has to be right. */
static inline carnn_dataset *test_dialogs(carnn_source dialogs, carnn_source candidates) {
    carnn_dataset_desc desc;
    carnn_dataset *data = NULL;
    carnn_error error;
    test_describe(&desc, "dialog", &dialogs);
    desc.candidates = &candidates;
    CHECK_INT(carnn_dataset_load(&data, &desc, &error), CARNN_OK);
    return data;
}

/* Reads data as a model with `options` does; links: the alignments of its items, or NULL. */
static inline carnn_status test_linked(carnn_dataset **data, const char *task, const char *options,
                                       carnn_source text, const carnn_source *links,
                                       carnn_error *error) {
    carnn_dataset_desc desc;
    carnn_model_desc model;
    memset(&desc, 0, sizeof desc);
    memset(&model, 0, sizeof model);
    desc.task = model.task = task;
    desc.sources = &text;
    desc.source_count = 1;
    desc.model = &model;
    desc.alignments = links;
    CHECK_INT(carnn__set_all(&model, NULL, 0, options, error), CARNN_OK);
    return carnn_dataset_load(data, &desc, error);
}

/* A session hears, from its beginning, what comes before the user's words of an item. */
static inline void test_hear_history(carnn_session *s, const carnn_dataset *data, size_t item) {
    const carnn__item *x = &data->items[item];
    size_t line;
    carnn_session_reset(s);
    for (line = x->first; line + 1 < x->first + x->count; line++) {
        carnn__span said = carnn__text(data, data->members[line].text);
        CHECK_INT(carnn_session_hear(s, (carnn_speaker)data->members[line].role, said.at,
                                     said.length, NULL), CARNN_OK);
    }
}

/* -log P of a reply as training has it, from a session's prediction of all candidates: l, which is
   the reply in often[l] turns, with (often[l] + 0.001)^balance of its weight. */
static inline double test_balanced_loss(const carnn_prediction *p, size_t reply,
                                        const double *often, double balance) {
    double right = NAN, sum = 0.0;
    size_t i;
    for (i = 0; i < p->count; i++) {
        double weight = p->probability[i] * pow(often[p->choice[i]] + 0.001, balance);
        if (p->choice[i] == reply) right = weight;
        sum += weight;
    }
    return -log(right / sum);
}

static inline void test_write(const char *name, const void *bytes, size_t size) {
    FILE *file = fopen(name, "wb");
    CHECK(file && fwrite(bytes, 1, size, file) == size);
    if (file) fclose(file);
}

static inline carnn_scores test_scores(const carnn_model *model, const carnn_dataset *data) {
    carnn_scores scores;
    carnn_error error;
    memset(&scores, 0, sizeof scores);
    CHECK_INT(carnn_test(&model, 1, data, 1, &scores, &error), CARNN_OK);
    return scores;
}

/* The metric of this name; -1: there is none. */
static inline double test_metric(const carnn_scores *s, const char *name) {
    size_t i;
    for (i = 0; i < s->count; i++)
        if (!strcmp(s->metric[i].name, name)) return s->metric[i].value;
    return -1.0;
}

/* Makes the checksum of a model file right again, as an attacker would. */
static inline void test_seal(unsigned char *bytes, size_t size) {
    size_t at = 0;
    carnn__checksum all;
    while (memcmp(bytes + at, "carnn.checksum", 14)) at++;
    memset(bytes + at + 18, 0, 8);
    carnn__checksum_start(&all);
    carnn__checksum_add(&all, bytes, size);
    carnn__set64(bytes + at + 18, carnn__checksum_end(&all));
}

/* Options of `train` as most tests want them. */
static inline carnn_train_desc test_training(int64_t epochs, int64_t batch, double lr,
                                             double dropout) {
    carnn_train_desc train;
    memset(&train, 0, sizeof train);
    train.epochs = epochs;
    train.batch = batch;
    train.lr = lr;
    train.dropout = dropout;
    train.threads = 1;
    return train;
}

/* Gives a dialog model weights of who has said words, which begin at zero. */
static inline void test_random_match(carnn_model *model) {
    float *M = carnn__named(&model->params, "reply.match");
    float *S;
    size_t i;
    for (i = 0; i < CARNN__SPEAKERS * model->words.count; i++) M[i] = carnn__uniform(7, i) - 0.5f;
    if (!carnn__match_has_speakers(model)) return;
    S = carnn__named(&model->params, "reply.speaker");
    for (i = 0; i < CARNN__SPEAKERS * (size_t)model->desc.hidden; i++)
        S[i] = carnn__uniform(9, i) - 0.5f;
}

/* A small model with `options`, names and values; simd NULL: the best path. */
static inline carnn_model *test_model(const char *task, const char *options, const char *simd,
                                      const carnn_dataset *data) {
    carnn_model *model = NULL;
    carnn_model_desc desc;
    carnn_error error;
    memset(&desc, 0, sizeof desc);
    desc.task = task;
    desc.hidden = 6;
    desc.embedding = 5;
    desc.simd = simd;
    CHECK_INT(carnn__set_all(&desc, NULL, 0, options, &error), CARNN_OK);
    if (carnn_model_create(&model, &desc, data, &error)) printf("%s\n", error.message);
    return model;
}

/* The error of a model that cannot be made of these options and data, which is of the status
   `expected`. */
static inline carnn_error test_not_made(const char *task, const char *options,
                                        const carnn_dataset *data, carnn_status expected) {
    carnn_model *model = NULL;
    carnn_model_desc desc;
    carnn_error error;
    carnn_status status;
    memset(&desc, 0, sizeof desc);
    desc.task = task;
    desc.hidden = 6;
    status = carnn__set_all(&desc, NULL, 0, options, &error);
    if (!status) status = carnn_model_create(&model, &desc, data, &error);
    CHECK_INT(status, expected);
    return error;
}

/* That of one whose options are refused. */
static inline carnn_error test_refused(const char *task, const char *options,
                                       const carnn_dataset *data) {
    return test_not_made(task, options, data, CARNN_ERR_ARGUMENT);
}

/* The values of the parameter `name`. */
static inline float *test_weight(const carnn_model *model, const char *name) {
    size_t i = 0;
    while (i < model->params.count && strcmp(model->params.item[i].name, name)) i++;
    if (i < model->params.count) return carnn__param_in(&model->params, model->params.value, i);
    printf("no weight %s\n", name);
    return NULL;
}

/* Stops a training when its second epoch has ended, where the int at `user` is not 0. */
static inline int test_stop(const carnn_progress *p, void *user) {
    return *(int *)user && p->epoch_ended && p->epoch == 2;
}

/* A training in one go, and one that was stopped and goes on from its file, have the same weights.
   The models are new and alike; `rest` may be `parts`. */
static inline void test_resumed(carnn_model *whole, carnn_model *parts, carnn_model *rest,
                                const carnn_dataset *data, carnn_train_desc train,
                                const char *file) {
    carnn_error error;
    int stop = 0;
    train.checkpoint = file;
    train.progress = test_stop;
    train.user = &stop;
    CHECK_INT(carnn_train(whole, data, data, &train, &error), CARNN_OK);
    stop = 1;
    CHECK_INT(carnn_train(parts, data, data, &train, &error), CARNN_ERR_STOPPED);
    stop = 0;
    train.resume = 1;
    CHECK_INT(carnn_train(rest, data, data, &train, &error), CARNN_OK);
    CHECK(!memcmp(whole->params.value, rest->params.value, whole->params.size * sizeof(float)));
    remove(file);
}

/* The model that a file of this one holds. */
static inline carnn_model *test_reload(const carnn_model *model) {
    size_t size = carnn_model_size(model);
    char *block = (char *)malloc(size + 1);
    char *bytes = block + ((uintptr_t)block % 64 == 0); /* aligned, it would be used in place */
    carnn_source source = test_source("model", bytes, size);
    carnn_model *again = NULL;
    carnn_error error;
    CHECK_INT(carnn_model_write(model, bytes, size, &error), CARNN_OK);
    CHECK_INT(carnn_model_load(&again, &source, NULL, &error), CARNN_OK);
    free(block);
    return again;
}

/* A model is made, trained, scored and opened, until no allocation fails: before that each one
   does, nothing leaks, and the error says what it is. Returns how many there are. */
static inline long test_life_in_memory(carnn_model_desc desc, const carnn_dataset *data,
                                       carnn_train_desc train) {
    test_memory memory;
    carnn_allocator allocator = test_allocator(&memory);
    carnn_status status = CARNN_ERR_MEMORY;
    carnn_error error;
    long fail_at;
    desc.allocator = &allocator;
    for (fail_at = 1; status; fail_at++) {
        carnn_model *model = NULL;
        carnn_session *session = NULL;
        carnn_scores scores;
        memset(&memory, 0, sizeof memory);
        memory.fail_at = fail_at;
        status = carnn_model_create(&model, &desc, data, &error);
        if (!status) status = carnn_train(model, data, data, &train, &error);
        if (!status)
            status = carnn_test((const carnn_model *const *)&model, 1, data, 1, &scores, &error);
        if (!status) status = carnn_session_open(&session, model, NULL, &error);
        if (status) CHECK_INT(status, CARNN_ERR_MEMORY);
        carnn_session_free(session);
        carnn_model_free(model);
        CHECK_INT(memory.blocks, 0);
        if (status && status != CARNN_ERR_MEMORY) break;
    }
    return fail_at;
}

/* --- a network at work, so that what is between input and output can be seen ------------------ */

typedef struct test_work {
    carnn__engine engine;
    carnn__arena arena;
    carnn__work work; /* may be changed before test_work_run(); `state` is the head */
    carnn__tally tally;
} test_work;

static inline void test_work_open(test_work *w, const carnn_model *model,
                                  const carnn_dataset *data, size_t threads) {
    carnn_error error;
    memset(w, 0, sizeof *w);
    CHECK_INT(carnn__engine_open(&w->engine, model->desc.simd, threads, model->allocator, &error),
              CARNN_OK);
    w->work = carnn__scoring_work(model, data, &w->engine);
}

/* Takes the memory; returns the number of batches. */
static inline size_t test_work_begin(test_work *w) {
    carnn_error error;
    CHECK_INT(carnn__net_open(&w->work, &error), CARNN_OK);
    carnn__net_carve(&w->work, &w->arena);
    w->arena.size = w->arena.peak;
    w->arena.base = (char *)carnn__alloc_aligned(&w->work.allocator, w->arena.size, 1);
    w->arena.used = 0;
    carnn__net_carve(&w->work, &w->arena);
    return carnn__corpus_of(&w->work)->batches;
}

/* Runs all batches, whose number it returns; `key` draws dropout. */
static inline size_t test_work_run(test_work *w, uint64_t key) {
    size_t i, batches = test_work_begin(w);
    for (i = 0; i < batches; i++) carnn__net_batch(&w->work, i, key, &w->tally);
    return batches;
}

static inline void test_work_close(test_work *w) {
    carnn_allocator a = w->work.allocator;
    carnn__net_close(&w->work);
    carnn__free_aligned(&a, w->arena.base);
    carnn__engine_close(&w->engine);
}

/* --- predictions ------------------------------------------------------------------------------ */

typedef struct test_answers { /* the best one of every example, or of every part of one */
    const carnn_model *model; /* while it predicts */
    size_t kind, examples, count, choice[64];
    double value[64]; /* its probability, 0 where there is no choice; or the score */
    char text[64][16];
} test_answers;

static inline double test_value(const carnn_prediction *p) {
    if (p->kind == CARNN_PREDICTS_SCORE) return p->score;
    return p->count ? p->probability[0] : 0.0;
}

static inline void test_keep_answer(const carnn_prediction *p, void *user) {
    test_answers *a = (test_answers *)user;
    a->examples += p->part == 0;
    CHECK_INT(p->example + 1, a->examples);
    CHECK(test_own_thread());
    if (a->count) CHECK_INT(p->kind, a->kind);
    a->kind = (size_t)p->kind;
    if (a->count == 64) return;
    a->choice[a->count] = p->count ? p->choice[0] : 0;
    a->value[a->count] = test_value(p);
    carnn_prediction_text(a->model, p, 0, a->text[a->count++], sizeof *a->text);
}

static inline test_answers test_predict_all(const carnn_model *model, const carnn_dataset *data,
                                            int64_t threads) {
    test_answers all;
    carnn_predict_desc desc;
    carnn_error error;
    memset(&all, 0, sizeof all);
    memset(&desc, 0, sizeof desc);
    all.model = model;
    desc.threads = threads;
    desc.example = test_keep_answer;
    desc.user = &all;
    CHECK_INT(carnn_predict(model, data, &desc, &error), CARNN_OK);
    all.model = NULL;
    return all;
}

/* Trains and predicts with 1, 2 and 3 threads and on all SIMD paths: the same bytes. Returns the
   first model. */
static inline carnn_model *test_trains_alike(const char *task, const char *options,
                                             const carnn_dataset *data, carnn_train_desc train) {
    test_answers first, other;
    carnn_model *model = NULL;
    carnn_error error;
    size_t i;
    for (i = 0; i < 3 || carnn_simd_name(i - 3); i++) {
        const char *simd = i < 3 ? NULL : carnn_simd_name(i - 3);
        carnn_model *next = test_model(task, options, simd, data);
        train.threads = i < 3 ? (int64_t)i + 1 : 1;
        CHECK_INT(carnn_train(next, data, data, &train, &error), CARNN_OK);
        other = test_predict_all(next, data, train.threads);
        if (!i) {
            model = next;
            first = other;
            continue;
        }
        CHECK_INT(next->params.size, model->params.size);
        CHECK(!memcmp(next->params.value, model->params.value,
                      model->params.size * sizeof(float)));
        CHECK(!memcmp(&first, &other, sizeof first));
        carnn_model_free(next);
    }
    return model;
}

/* The examples of a data set as "target|text|text", a line each, without the target where that is
   a value; frees the data. Where there are none, because they could not be read, the error. */
static inline const char *test_spell(carnn_dataset *data, size_t texts, int values,
                                     const carnn_error *error) {
    static char all[1024];
    size_t i, k, at = 0;
    all[0] = 0;
    if (!data) snprintf(all, sizeof all, "%s", error->message);
    for (i = 0; data && i < carnn_dataset_examples(data); i++) {
        const char *target = carnn_dataset_target(data, i);
        CHECK_INT(carnn_dataset_text_count(data, i), texts);
        if (values) at += (size_t)snprintf(all + at, sizeof all - at, "%g",
                                           (double)data->items[i].value);
        else at += (size_t)snprintf(all + at, sizeof all - at, "%s", target ? target : "?");
        for (k = 0; k < texts; k++)
            at += (size_t)snprintf(all + at, sizeof all - at, "|%s",
                                   carnn_dataset_text(data, i, k));
        at += (size_t)snprintf(all + at, sizeof all - at, "\n");
    }
    carnn_dataset_free(data);
    return all;
}

/* The path of a published data set; 0 and a word about it where it is not at hand. */
static inline int test_published(char path[256], const char *name) {
    const char *folder = getenv("CARNN_DATA");
    FILE *file;
    snprintf(path, 256, "%s/%s", folder ? folder : "../shared/data", name);
    file = fopen(path, "rb");
    if (file) fclose(file);
    else printf("left out: %s is not at hand (CARNN_DATA)\n", name);
    return file != NULL;
}

#endif
