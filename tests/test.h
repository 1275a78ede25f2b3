/* A small harness for the test programs. Each is one C99 file:

       #define CARNN_IMPLEMENTATION
       #include "../carnn.h"
       #include "test.h"

       int main(void) {
           CHECK(1 + 1 == 2);
           return test_end();
       }

   A check that fails prints file, line and what was found, and the program goes on. The last line
   says `N passed, N failed`; the exit code is 1 if any failed. */

#ifndef TEST_H
#define TEST_H

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

#endif
