/* Memory, random numbers and the thread pool. Run it under ThreadSanitizer too. */

#include "test.h"

static void check_status(void) {
    carnn_error error;
    CHECK_TEXT(carnn_status_text(CARNN_OK), "done");
    CHECK(carnn_status_text((carnn_status)77) != NULL);
    CHECK(carnn__fail(&error, CARNN_ERR_DATA, 3, "%s:%d", "file", 3) == CARNN_ERR_DATA);
    CHECK(error.code == CARNN_ERR_DATA && error.line == 3);
    CHECK_TEXT(error.message, "file:3");
    carnn__fail(&error, CARNN_ERR_IO, 0, "a\33b\x7F \xC2\x80 \xC2\x9B \xC3\x9B \xC2\xA0 \xC2");
    CHECK_TEXT(error.message, "a?b? ?? ?? \xC3\x9B \xC2\xA0 \xC2"); /* U+00DB, U+00A0 stay */
    CHECK(carnn__fail(NULL, CARNN_ERR_IO, 0, "nobody reads this") == CARNN_ERR_IO);
}

static void check_memory(void) {
    test_memory memory = {0, 0, 0};
    carnn_allocator a = {test_alloc, test_realloc, test_free, NULL};
    float *block;
    size_t size;
    a.user = &memory;
    for (size = 0; size < 300; size += 7) {
        block = (float *)carnn__alloc_aligned(&a, size, sizeof *block);
        CHECK(block && (uintptr_t)block % CARNN__ALIGN == 0);
        memset(block, 1, size * sizeof *block);
        carnn__free_aligned(&a, block);
    }
    CHECK(carnn__alloc_aligned(&a, SIZE_MAX / 2, 8) == NULL);
    CHECK(carnn__times(SIZE_MAX, 2) == SIZE_MAX && carnn__times(3, 5) == 15);
    CHECK(carnn__times(7, 0) == 0 && carnn__times(0, SIZE_MAX) == 0);
    carnn__free_aligned(&a, NULL);
    memory.fail_at = memory.calls + 1;
    CHECK(carnn__alloc_aligned(&a, 1, 1) == NULL);
    CHECK_INT(memory.blocks, 0);
}

/* Nothing gets past the end of an arena that was asked for more than there is. */
static void check_full_arena(void) {
    static char memory[1024];
    carnn__arena arena = {memory, sizeof memory, 0, 0};
    CHECK(carnn__take(&arena, SIZE_MAX, 1) == NULL);
    CHECK(carnn__take(&arena, 0, 8) == NULL);
    CHECK(carnn__take(&arena, 100, 1) == NULL);
    CHECK(carnn__floats(&arena, SIZE_MAX / 2, 3) == NULL);
    CHECK(arena.peak > SIZE_MAX / 2);
}

static void check_arena(void) {
    static char memory[1024 + CARNN__ALIGN];
    carnn__arena plan = {NULL, 0, 0, 0}, arena;
    float *a, *b;
    size_t mark;
    CHECK(carnn__floats(&plan, 3, 5) == NULL);
    mark = plan.used;
    carnn__floats(&plan, 100, 1);
    plan.used = mark;
    carnn__floats(&plan, 1, 1);
    CHECK_INT(plan.peak, 64 + 448);
    arena = plan;
    arena.base = memory + (CARNN__ALIGN - (uintptr_t)memory % CARNN__ALIGN) % CARNN__ALIGN;
    arena.size = plan.peak;
    arena.used = arena.peak = 0;
    a = carnn__floats(&arena, 3, 5);
    b = carnn__floats(&arena, 100, 1);
    CHECK(a && b && b - a == 16);
    CHECK(carnn__floats(&arena, 1, 100) == NULL);
    CHECK(arena.peak > arena.size);
    carnn__floats(&plan, SIZE_MAX / 2, 3);
    carnn__floats(&plan, 1, 1);
    CHECK(plan.peak > SIZE_MAX / 2);
}

static void check_random(void) {
    uint32_t items[100], seen[100] = {0}, i;
    double sum = 0, squares = 0, uniform = 0;
    uint64_t key = carnn__stream(1, 2);
    CHECK(carnn__random(key, 0) == carnn__random(key, 0));
    CHECK(carnn__random(key, 0) != carnn__random(key, 1));
    CHECK(carnn__random(key, 0) != carnn__random(carnn__stream(1, 3), 0));
    for (i = 0; i < 100000; i++) {
        float u = carnn__uniform(key, i), n = carnn__normal(key, i);
        if (!(u >= 0 && u < 1)) CHECK(0 && "uniform lies in [0, 1)");
        uniform += (double)u;
        sum += (double)n;
        squares += (double)n * (double)n;
    }
    CHECK_NEAR(uniform / 1e5, 0.5, 0.005);
    CHECK_NEAR(sum / 1e5, 0, 0.02);
    CHECK_NEAR(squares / 1e5, 1, 0.02);
    for (i = 0; i < 100; i++) items[i] = i;
    carnn__shuffle(key, items, 100);
    for (i = 0; i < 100; i++) seen[items[i]]++;
    for (i = 0; i < 100; i++) CHECK(seen[i] == 1);
}

/* -std=c99 hides the monotonic clock; what counts is the time that passes, not that of the work,
   nor the time of day. */
static void check_clock(void) {
    double start = carnn__clock();
    sleep(1);
    CHECK_NEAR(carnn__clock() - start, 1.5, 0.6);
#if defined(__linux__)
    CHECK(start < 1e9); /* seconds since the machine started, not since 1970 */
#endif
    CHECK(carnn__processors() >= 1);
}

typedef struct job {
    unsigned char times[257];
    unsigned long long work[16]; /* one sum per worker: nobody else touches it */
} job;

static void piece_of(void *data, size_t piece, size_t worker) {
    job *j = (job *)data;
    size_t i;
    j->times[piece]++;
    for (i = 0; i < (piece % 7) * 300; i++) j->work[worker] += i * piece;
}

/* Each piece runs exactly once, whatever the number of threads and pieces, job after job. */
static void check_pool(void) {
    size_t threads, round, i;
    for (threads = 1; threads <= 5; threads++) {
        carnn__pool *pool;
        CHECK(!carnn__pool_create(&pool, threads, carnn__allocator(NULL)));
        CHECK((pool == NULL) == (carnn__pool_threads(pool) == 1));
        CHECK(carnn__pool_threads(pool) <= threads);
        for (round = 0; round < 400; round++) {
            static job j;
            size_t count = (round * 37) % 258, wrong = 0;
            memset(&j, 0, sizeof j);
            carnn__parallel(pool, count, piece_of, &j);
            for (i = 0; i < 257; i++) wrong += j.times[i] != (i < count);
            CHECK_INT(wrong, 0);
        }
        carnn__pool_free(pool);
    }
}

#ifndef CARNN_NO_THREADS

/* The pool looks 30 ms after it has looked last, whatever the clock says: have threads been
   preempted often since? */
static void see_preempted(carnn__pool *pool, int preempted) {
    carnn__pool_look(pool, pool->watched + 0.03, pool->preemptions + (preempted ? 1000000 : 0));
}

/* Beside a busy process one thread less works each time, and comes back; one always works. */
static void check_pool_busy(void) {
    carnn__pool *pool;
    double looked;
    size_t left, round, i;
    if (carnn__pool_create(&pool, 3, carnn__allocator(NULL)) || carnn__pool_threads(pool) < 3) {
        CHECK(0 && "three threads");
        return;
    }
    for (left = 2; left > 0; left--) {
        see_preempted(pool, 1);
        CHECK_INT(carnn__pool_active(pool), left);
        CHECK(fabs(pool->held_until - pool->watched - pool->hold) < 1e-6);
        looked = pool->watched;
        pool->watched = NAN; /* no time has passed since: no change while jobs run */
        for (round = 0; round < 100; round++) {
            static job j;
            size_t wrong = 0;
            memset(&j, 0, sizeof j);
            carnn__parallel(pool, 257, piece_of, &j);
            for (i = 0; i < 257; i++) wrong += j.times[i] != 1;
            for (i = left; i < 3; i++) wrong += j.work[i] != 0;
            CHECK_INT(wrong, 0);
        }
        pool->watched = looked;
    }
    pool->held_until += 1e6;
    see_preempted(pool, 1);
    see_preempted(pool, 0);
    CHECK_INT(carnn__pool_active(pool), 1);
    for (left = 2; left <= 3; left++) {
        pool->held_until = pool->watched - 1.0;
        see_preempted(pool, 0);
        CHECK_INT(carnn__pool_active(pool), left);
    }
    pool->hold = 0.25;
    pool->held_until = pool->watched;
    see_preempted(pool, 1); /* soon again: longer */
    CHECK(pool->hold == 0.5);
    pool->held_until = pool->watched - 1.0;
    see_preempted(pool, 1);
    CHECK(pool->hold == CARNN__HOLD);
    carnn__pool_free(pool);
}

static void check_pool_memory(void) {
    test_memory memory = {0, 1, 0};
    carnn_allocator a = {test_alloc, test_realloc, test_free, NULL};
    carnn__pool *pool;
    a.user = &memory;
    CHECK(carnn__pool_create(&pool, 3, a) == CARNN_ERR_MEMORY && pool == NULL);
    CHECK(!carnn__pool_create(&pool, 3, a));
    carnn__pool_free(pool);
    CHECK_INT(memory.blocks, 0);
}

#endif

static void check_sizes(void) {
    CHECK(carnn__parts(0, 4) == 0 && carnn__parts(1, 4) == 1 && carnn__parts(4, 4) == 1);
    CHECK(carnn__parts(5, 4) == 2 && carnn__parts(SIZE_MAX, 64) == SIZE_MAX / 64 + 1);
    CHECK(carnn__part(10, 3, 2) == 4 && carnn__part(12, 3, 2) == 4 && carnn__part(1, 3, 8) == 8);
}

int main(void) {
    check_status();
    check_sizes();
    check_memory();
    check_full_arena();
    check_arena();
    check_random();
    check_clock();
    check_pool();
#ifndef CARNN_NO_THREADS
    check_pool_busy();
    check_pool_memory();
#endif
    return test_end();
}
