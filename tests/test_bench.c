/* The benchmark: what can be asked for, and that a row is a sensible number. Its values are the
   machine's; here only quick rows are run. */

#include "test.h"

typedef struct counted_rows {
    size_t rows, stop_after;
    int sane; /* all rows: names that go with the numbers */
    carnn_measure last;
} counted_rows;

static int count_row(const carnn_measure *m, void *user) {
    counted_rows *c = (counted_rows *)user;
    c->rows++;
    c->last = *m;
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
    CHECK_TEXT(c.last.group, group);
    CHECK(strstr(c.last.name, only) != NULL);
}

/* What can be asked for without running it: every row of the table, by its whole name. */
static void check_names(void) {
    size_t i, j, cells = 0;
    for (i = 0; i < CARNN__COUNT(carnn__bench_rows); i++) {
        const carnn__bench_row *row = &carnn__bench_rows[i];
        CHECK(!strcmp(row->group, "peak") || !strcmp(row->group, "kernel") ||
              !strcmp(row->group, "cell") || !strcmp(row->group, "task"));
        for (j = 0; j < i; j++) CHECK(strcmp(row->name, carnn__bench_rows[j].name) != 0);
        cells += row->run == carnn__bench_cell;
    }
    CHECK_INT(cells, 3 * CARNN__CELL_COUNT);
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
    CHECK_TEXT(c.last.name, "multiply-add");
    CHECK_NEAR(c.last.share, 1.0, 0.0);
    CHECK_INT(bench("64 x 200 x 200", NULL, 2, 0, &c, &error), CARNN_OK); /* its three forms */
    CHECK_INT(c.rows, 3);
    CHECK(c.sane);
}

int main(void) {
    counted_rows c;
    carnn_error error;
    size_t i;
    check_names();
    check_selection();
    check_row("exp", "kernel");
    check_row("softmax", "kernel");
    check_row("icarnn C", "cell");
    check_row("gru-after C", "cell");
    check_row("dialog 128, training", "task");
    check_row("dialog 128, one answer", "task");
    check_row("dialog 128, memory", "task");
    check_row("lm 200, training", "task");
    check_row("dialog 128, predicting", "task");
    check_row("answer 150, training", "task");
    check_row("answer 150, scoring", "task");
    for (i = 0; carnn_simd_name(i); i++) {
        CHECK_INT(bench("sigmoid", carnn_simd_name(i), 1, 0, &c, &error), CARNN_OK);
        CHECK(c.sane);
    }
    return test_end();
}
