/* The benchmark: what can be asked for, and that a row is a sensible number. Its values are the
   machine's; here only quick rows are run. */

#include "test.h"

typedef struct counted_rows {
    size_t rows, stop_after;
    int sane; /* all rows: names that go with the numbers */
    char name[80], group[16]; /* of the last one */
    double share;
} counted_rows;

static int count_row(const carnn_measure *m, void *user) {
    counted_rows *c = (counted_rows *)user;
    c->rows++;
    snprintf(c->name, sizeof c->name, "%s", m->name);
    snprintf(c->group, sizeof c->group, "%s", m->group);
    c->share = m->share;
    c->sane = c->sane && m->group && *m->group && m->name && *m->name && m->unit && *m->unit &&
              m->value > 0.0 && m->value < 1e12 && m->share >= 0.0 && m->share < 100.0;
    return c->rows == c->stop_after;
}

static carnn_status bench(const char *only, const char *simd, int64_t threads, size_t stop_after,
                          counted_rows *c, carnn_error *error) {
    memset(c, 0, sizeof *c);
    memset(error, 0, sizeof *error);
    c->sane = 1;
    c->stop_after = stop_after;
    return carnn_bench(only, simd, threads, count_row, c, error);
}

/* One row by a part of its name. */
static void check_row(const char *only, const char *group) {
    counted_rows c;
    carnn_error error;
    CHECK_INT(bench(only, NULL, 1, 0, &c, &error), CARNN_OK);
    CHECK_INT(c.rows, 1);
    CHECK(c.sane);
    CHECK_TEXT(c.group, group);
    CHECK(strstr(c.name, only) != NULL);
    if (!strcmp(group, "kernel") || !strcmp(group, "cell")) CHECK(c.share > 0.0);
}

/* The value is the median of the samples, of which three are enough when it is time. */
static void check_samples(void) {
    static const double sample[] = {5.0, 1.0, 3.0, 2.0}, median[] = {5.0, 5.0, 3.0, 3.0};
    static carnn__bench b;
    size_t i;
    for (i = 0; i < 4; i++) {
        carnn__bench_sample(&b, sample[i]);
        CHECK_NEAR(b.value, median[i], 0.0);
        CHECK_INT(carnn__bench_enough(&b, 2.0 * CARNN__BENCH_SECONDS), i >= 2);
        CHECK(!carnn__bench_enough(&b, 0.5 * CARNN__BENCH_SECONDS));
    }
    CHECK(b.sample[0] == 1.0 && b.sample[1] == 2.0 && b.sample[3] == 5.0);
    b.samples = CARNN__BENCH_SAMPLES;
    CHECK(carnn__bench_enough(&b, 0.0));
}

static size_t timed_calls;
static double timed_seconds; /* how long a call lasts */

static void timed_call(carnn__bench *b) {
    double from = carnn__clock();
    (void)b;
    while (carnn__clock() < from + timed_seconds) continue;
    timed_calls++;
}

/* The value is the time of one call, however many a sample has; the first does not count. */
static void check_time(double seconds, size_t most_repeats) {
    static carnn__bench b;
    b.samples = timed_calls = 0;
    timed_seconds = seconds;
    carnn__bench_time(&b, timed_call);
    CHECK(b.value >= 0.999 * seconds);
    CHECK_INT((timed_calls - 1) % b.samples, 0);
    CHECK(timed_calls > b.samples && timed_calls <= 1 + most_repeats * b.samples);
}

/* Bytes are counted as they are asked for, and when they are given back. */
static void check_bytes(void) {
    static carnn__bench b;
    char *x = (char *)carnn__bench_alloc(100, &b), *y;
    if (!x) abort();
    x[39] = 7;
    x = (char *)carnn__bench_realloc(x, 40, &b);
    y = (char *)carnn__bench_realloc(NULL, 50, &b);
    if (!x || !y) abort();
    CHECK_INT(x[39], 7);
    CHECK_INT(b.live, 90);
    CHECK_INT(b.most, 100);
    carnn__bench_free(y, &b);
    CHECK_INT(b.live, 40);
    carnn__bench_free(x, &b);
    CHECK_INT(b.live, 0);
}

/* What can be asked for without running it: every row, by its whole name. */
static void check_names(void) {
    carnn__bench_row row, other;
    size_t i, j, cells = 0, encoders = 0, trained = 0, tasks = 0;
    for (i = 0; carnn__bench_row_at(i, &row); i++) {
        CHECK(!strcmp(row.group, "peak") || !strcmp(row.group, "kernel") ||
              !strcmp(row.group, "cell") || !strcmp(row.group, "encoder") ||
              !strcmp(row.group, "task"));
        for (j = 0; j < i && carnn__bench_row_at(j, &other); j++)
            CHECK(strcmp(row.name, other.name) != 0);
        cells += row.open == carnn__bench_cell;
        trained += row.open == carnn__bench_training && !row.n[2];
        encoders += row.open == carnn__bench_encoder;
    }
    for (j = 0; carnn_task_name(j); j++) {
        const carnn__task_bench *bench_of = carnn__task_at(j)->bench;
        if (bench_of) tasks += (size_t)((bench_of->hidden[0] > 0) + (bench_of->hidden[1] > 0));
    }
    CHECK(tasks >= 4); /* a program's own task need not have one */
    CHECK_INT(cells, 3 * CARNN__CELL_COUNT);
    CHECK_INT(trained, tasks);
    CHECK_INT(encoders, 3);
}

/* The text of a benchmark fits into its memory, and is a data set. */
static void check_texts(void) {
    const carnn__task *task;
    size_t i;
    for (i = 0; (task = carnn__task_at(i)) != NULL; i++) {
        carnn__bench_text text = {NULL, 0};
        carnn_dataset *data;
        if (!task->bench) continue;
        text.at = (char *)malloc(CARNN__BENCH_TEXT);
        if (!text.at) abort();
        carnn__bench_data(&text, task->bench, 0);
        CHECK(text.length > 1000 && text.length < CARNN__BENCH_TEXT - 1);
        data = test_data(task->name, text.at, text.length, 0, 0);
        CHECK(carnn_dataset_examples(data) >= 60); /* of cloze, which have 500 words each */
        carnn_dataset_free(data);
        free(text.at);
    }
}

static void check_selection(void) {
    counted_rows c;
    carnn_error error;
    CHECK_INT(bench("no such row", NULL, 1, 0, &c, &error), CARNN_ERR_ARGUMENT);
    CHECK_INT(c.rows, 0);
    CHECK(strstr(error.message, "no such row") != NULL);
    CHECK_INT(bench("exp", "no such path", 1, 0, &c, &error), CARNN_ERR_ARGUMENT);
    CHECK_INT(bench("peak", NULL, 1, 1, &c, &error), CARNN_ERR_STOPPED);
    CHECK_INT(c.rows, 1);
    CHECK_TEXT(c.name, "multiply-add");
    CHECK(c.share > 0.0 && c.share <= 1.0); /* the median of the runs, of the best one */
    CHECK_INT(bench("64 x 200 x 200", NULL, 2, 0, &c, &error), CARNN_OK); /* its three forms */
    CHECK_INT(c.rows, 3);
    CHECK(c.sane);
}

int main(void) {
    counted_rows c;
    carnn_error error;
    size_t i;
    check_names();
    check_samples();
    check_time(0.001, 5);
    check_time(0.006, 1);
    check_bytes();
    check_texts();
    check_selection();
    check_row("read 1 MiB", "peak");
    check_row("exp", "kernel");
    check_row("softmax", "kernel");
    check_row("icarnn C", "cell");
    check_row("gru-after C", "cell");
    check_row("rcrn 200, memory", "encoder");
    check_row("dialog 128, training", "task");
    check_row("dialog 128, one answer", "task");
    check_row("dialog 128, memory", "task");
    check_row("lm 200, training", "task");
    check_row("dialog 128, predicting", "task");
    check_row("answer 150, training", "task");
    check_row("answer 150, scoring", "task");
    check_row("answer 150, one prediction", "task");
    check_row("classify 128, predicting", "task");
    check_row("classify 128, memory", "task");
    for (i = 0; carnn_simd_name(i); i++) {
        CHECK_INT(bench("sigmoid", carnn_simd_name(i), 1, 0, &c, &error), CARNN_OK);
        CHECK(c.sane);
    }
    return test_end();
}
