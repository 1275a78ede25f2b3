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

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* --- memory that runs out --------------------------------------------------------------------
   An allocator that counts blocks and fails at its `fail_at`th call (0: never). A test runs its
   subject for fail_at = 1, 2, ... until it succeeds, and expects `blocks` to be 0 each time. Its
   functions fit the members of carnn_allocator; `user` is the test_memory. */

typedef struct test_memory {
    long calls, fail_at;
    long blocks; /* live ones */
} test_memory;

static inline void *test_realloc(void *block, size_t bytes, void *user) {
    test_memory *memory = (test_memory *)user;
    void *result = NULL;
    if (++memory->calls != memory->fail_at) result = realloc(block, bytes);
    if (result && !block) memory->blocks++;
    return result;
}

static inline void *test_alloc(size_t bytes, void *user) {
    return test_realloc(NULL, bytes, user);
}

static inline void test_free(void *block, void *user) {
    test_memory *memory = (test_memory *)user;
    if (block) memory->blocks--;
    free(block);
}

static inline carnn_allocator test_allocator(test_memory *memory) {
    carnn_allocator a = {test_alloc, test_realloc, test_free, NULL};
    a.user = memory;
    return a;
}

/* --- helpers ---------------------------------------------------------------------------------- */

/* The larger error; not a number is the largest of all. */
static inline double test_worse(double a, double b) { return a != a || b <= a ? a : b; }

static inline carnn_source test_source(const char *name, const void *bytes, size_t size) {
    carnn_source source = {NULL, NULL, 0};
    source.name = name;
    source.bytes = bytes;
    source.size = size;
    return source;
}

/* A data set of `size` bytes; `clean` and `lenient` as in its description. */
static inline carnn_dataset *test_data(const char *task, const char *bytes, size_t size, int clean,
                                       int lenient) {
    carnn_source source = test_source("data", bytes, size);
    carnn_dataset_desc desc;
    carnn_dataset *data = NULL;
    carnn_error error;
    memset(&desc, 0, sizeof desc);
    desc.task = task;
    desc.sources = &source;
    desc.source_count = 1;
    desc.clean = clean;
    desc.lenient = lenient;
    CHECK_INT(carnn_dataset_load(&data, &desc, &error), CARNN_OK);
    return data;
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
