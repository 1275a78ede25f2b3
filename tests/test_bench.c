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
    check_texts();
    check_selection();
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
