/* Tests of the task signal: readers, the network by plain loops, standardisation, sessions that
   read row after row, and the same bytes everywhere. */

#include "test.h"

/* --- data ------------------------------------------------------------------------------------- */

typedef struct signal_rows { /* how they are read */
    const char *group, *target; /* of a table; or NULL */
    carnn_images_desc images;
    const char *inputs;         /* of a table; or NULL */
} signal_rows;

/* Describes data of `count` sources and the model that says how they are read. */
static void signal_describe(carnn_dataset_desc *desc, const carnn_source *sources, size_t count,
                            carnn_model_desc *model, const signal_rows *rows) {
    test_describe(desc, "signal", sources);
    desc->source_count = count;
    memset(model, 0, sizeof *model);
    model->task = desc->task;
    desc->model = model;
    desc->images = rows ? &rows->images : NULL;
    if (rows && rows->group) strcpy(model->group, rows->group);
    if (rows && rows->target) strcpy(model->target, rows->target);
    if (rows && rows->inputs) strcpy(model->inputs, rows->inputs);
}

static carnn_status signal_load(carnn_dataset **data, carnn_source source, const char *columns,
                                const signal_rows *rows, int lenient, carnn_error *error) {
    carnn_dataset_desc desc;
    carnn_model_desc model;
    signal_describe(&desc, &source, 1, &model, rows);
    CHECK_INT(carnn_set(&model, NULL, "columns", columns, error), CARNN_OK);
    desc.lenient = lenient;
    return carnn_dataset_load(data, &desc, error);
}

static carnn_dataset *signal_text(const char *text, const char *columns,
                                  const signal_rows *rows) {
    carnn_dataset *data = NULL;
    carnn_error error;
    int failed = signal_load(&data, test_source("s", text, strlen(text)), columns, rows, 0, &error);
    CHECK_INT(failed, CARNN_OK);
    if (failed) puts(error.message);
    return data;
}

/* Item i has these rows, in order, and this target. */
static void signal_item(const carnn_dataset *d, size_t i, const char *target, size_t rows,
                        const float *numbers) {
    size_t text = d->members[d->items[i].first].text, j;
    CHECK_TEXT(carnn_dataset_target(d, i), target);
    CHECK_INT(d->row_at[text + 1] - d->row_at[text], rows);
    for (j = 0; j < rows * d->columns; j++)
        CHECK_NEAR(carnn__number_at(d, d->row_at[text] * d->columns + j), numbers[j], 1e-7);
}

static void signal_lines(void) {
    static const float x[] = {0.5f, -1.0f, 200.0f, 0.25f};
    static const char *const text[] = {
        "left hand\t.5\t-1\t2e2\t0.25\r\n\nup\t0.5\t-1\n", "left hand,.5,-1,2E+2,0.25\nup,.5,-1,\n",
        "\"left hand\" .5  -1 200 .25 \nup\t.5 -1\n", "left hand; .5; -1;\"200\";.25\nup;.5;-1\n"};
    size_t i;
    for (i = 0; i < 4; i++) {
        carnn_dataset *d = signal_text(text[i], "2", NULL);
        CHECK_INT(carnn_dataset_examples(d), 2);
        CHECK_INT(d->columns, 2);
        signal_item(d, 0, "left hand", 2, x);
        signal_item(d, 1, "up", 1, x);
        carnn_dataset_free(d);
        /* to be predicted: a tab is an example, unless commas separate */
        d = test_data("signal", i % 2 ? "up,1\n\t\nup,2\n" : "up\t1\n\t\nup\t2\n", 12, 0, 1);
        CHECK_INT(carnn_dataset_examples(d), i % 2 ? 2 : 3);
        carnn_dataset_free(d);
    }
}

/* UCR fills up the lines of shorter sequences with NaN, which is no number elsewhere. */
static void signal_filled_up(void) {
    static const float x[] = {0.5f, -1.0f, 200.0f, 0.25f};
    carnn_dataset *d =
        signal_text("NaN\t.5\t-1\t200\t.25\nup\t.5\t-1\tNaN\tNaN\n", "2", NULL);
    if (!d) return;
    signal_item(d, 0, "NaN", 2, x);
    signal_item(d, 1, "up", 1, x);
    carnn_dataset_free(d);
}

/* A target that is no number, or too large a one, has none. */
static void signal_targets(void) {
    carnn_dataset *d = signal_text("-2.5\t1\n1e31\t1\na\t1\n", "1", NULL);
    CHECK_NEAR(d->items[0].value, -2.5, 0.0);
    CHECK(isnan(d->items[1].value) && isnan(d->items[2].value));
    carnn_dataset_free(d);
}

/* Rows to be predicted have no text at all, and so the sum over the data ends where it begins. */
static void signal_without_targets(void) {
    const char *text = "\t.5\t-1\n\t2\t1\n";
    carnn_dataset *first = NULL, *second = NULL;
    carnn_source source = test_source("s", text, strlen(text));
    CHECK_INT(signal_load(&first, source, "2", NULL, 1, NULL), CARNN_OK);
    CHECK_INT(signal_load(&second, source, "2", NULL, 1, NULL), CARNN_OK);
    CHECK_INT(first->text_count, 0);
    CHECK_INT(first->text_at[0], 0);
    CHECK(carnn__fingerprint(first) == carnn__fingerprint(second));
    carnn_dataset_free(first);
    carnn_dataset_free(second);
}

static void signal_tables(void) {
    static const char text[] =
        "day,x,\"kind\",y\n1,0.5,a,-1\n\n1,200,a,.25\n\n2,.5,\"b, c\",-1\n\n";
    static const float x[] = {0.5f, -1.0f, 200.0f, 0.25f};
    signal_rows rows = {"day", "kind", {NULL, 0, NULL}, NULL};
    carnn_dataset *d = signal_text(text, "1", &rows);
    CHECK_INT(d->item_count, 2);
    signal_item(d, 0, "a", 2, x);
    signal_item(d, 1, "b, c", 1, x);
    CHECK_INT(d->items[0].line, 2); /* its first row, for errors */
    CHECK_INT(d->items[1].line, 6);
    carnn_dataset_free(d);
    rows.group = NULL; /* a line is a sequence, and the day a number */
    d = signal_text(text, "3", &rows);
    CHECK_INT(d->item_count, 3);
    CHECK_INT(d->row_texts, 3);
    CHECK_NEAR(d->numbers[3], 1.0, 0.0);
    CHECK_NEAR(d->numbers[4], 200.0, 0.0);
    carnn_dataset_free(d);
}

/* Inputs that are named are read in the order of their names, from any table that has them; other
   columns need not be numbers. */
static void signal_inputs(void) {
    static const char *const text[] = {"day,y,note,x,kind\n1,-1,\"a, b\",0.5,a\n1,.25,-,200,a\n",
                                       "kind;x;day;y\na;.5;1;-1\na;200;1;.25\n"};
    static const float x[] = {0.5f, -1.0f, 200.0f, 0.25f}, days[] = {1.0f, -1.0f, 1.0f, 0.25f};
    signal_rows rows = {"day", "kind", {NULL, 0, NULL}, "x, y"};
    carnn_source two[2];
    carnn_dataset_desc desc;
    carnn_model_desc model;
    carnn_dataset *d;
    carnn_error error;
    size_t i;
    for (i = 0; i < 2; i++) two[i] = test_source("t", text[i], strlen(text[i]));
    signal_describe(&desc, two, 2, &model, &rows);
    CHECK_INT(carnn_dataset_load(&d, &desc, &error), CARNN_OK);
    CHECK_INT(d->item_count, 2);
    for (i = 0; i < 2; i++) signal_item(d, i, "a", 2, x);
    CHECK_INT(d->named, 2);
    CHECK_TEXT(d->column_names, "x");
    carnn_dataset_free(d);
    rows.inputs = "day,y"; /* also what tells sequences apart */
    d = signal_text(text[0], "1", &rows);
    signal_item(d, 0, "a", 2, days);
    carnn_dataset_free(d);
    rows.inputs = "x,z";
    CHECK_INT(signal_load(&d, two[1], "1", &rows, 0, &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message, "t:1: expected a column \"z\", found \"kind;x;day;y\"");
    rows.inputs = "note";
    CHECK_INT(signal_load(&d, two[0], "1", &rows, 0, &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message, "t:2: expected a number in column 3, found \"a, b\"");
    rows.inputs = "x,kind";
    CHECK_INT(signal_load(&d, two[0], "1", &rows, 0, &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message, "t:1: expected inputs other than the target, found \"kind\"");
    rows.inputs = "x,y,x";
    CHECK_INT(signal_load(&d, two[0], "1", &rows, 0, &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message, "t:1: expected each of the inputs once, found \"x\"");
    for (i = 0; i < 3; i++) { /* of two columns of a name, the target would be read as an input */
        carnn_source twice = test_source("t", "x,x,day,kind,kind,y,y,t\n", 24);
        rows.inputs = i == 0 ? "day,y" : "day";
        rows.target = i == 1 ? "kind" : "t";
        rows.group = i == 2 ? "x" : NULL;
        CHECK_INT(signal_load(&d, twice, "1", &rows, 0, &error), CARNN_ERR_DATA);
        CHECK(strstr(error.message, "t:1: expected one column of this name, not two, found \"") &&
              error.message[strlen(error.message) - 2] == "ydx"[i]);
    }
}

/* Rows whose target is not known may be in the group of one whose is. */
static void signal_partly_known(void) {
    static const char *const text[] = {"g,x,t\n1,2,a\n1,3,\n", "g,x,t\n1,2,\n1,3,a\n1,4,\n",
                                       "g,x,t\n1,2,\n1,3,\n", "g,x,t\n1,2,\n1,3,a\n1,4,b\n"};
    signal_rows rows = {"g", "t", {NULL, 0, NULL}, NULL};
    carnn_dataset *d;
    carnn_error error;
    size_t i;
    for (i = 0; i < 3; i++) {
        CHECK_INT(signal_load(&d, test_source("s", text[i], strlen(text[i])), "1", &rows, 1,
                              &error),
                  CARNN_OK);
        CHECK_INT(carnn_dataset_examples(d), 1);
        if (i < 2) CHECK_TEXT(carnn_dataset_target(d, 0), "a");
        else CHECK(!carnn_dataset_target(d, 0));
        carnn_dataset_free(d);
    }
    CHECK_INT(signal_load(&d, test_source("s", text[3], strlen(text[3])), "1", &rows, 1, &error),
              CARNN_ERR_DATA);
    CHECK_TEXT(error.message,
               "s:4: expected the same target in all rows of a group (with target_kind steps one "
               "without blanks for each), found \"b\"");
}

/* Loads a table with a class for each row of a group. */
static carnn_status signal_table_steps(carnn_dataset **data, const char *text, int lenient,
                                       carnn_error *error) {
    signal_rows rows = {"g", "t", {NULL, 0, NULL}, NULL};
    carnn_source source = test_source("s", text, strlen(text));
    carnn_dataset_desc desc;
    carnn_model_desc model;
    signal_describe(&desc, &source, 1, &model, &rows);
    CHECK_INT(carnn_set(&model, NULL, "target_kind", "steps", error), CARNN_OK);
    desc.lenient = lenient;
    return carnn_dataset_load(data, &desc, error);
}

/* They are what a line with a class for each row says; where they need not be known, some may not
   be. */
static void signal_table_of_steps(void) {
    static const char text[] = "g;x;t\n1;2;a\n1;3;b\n1;5;a\n2;4;-\n2;6;b\n3;1;c\n";
    static const float x[] = {2.0f, 3.0f, 5.0f}, y[] = {4.0f, 6.0f}, z[] = {1.0f};
    carnn_dataset *d;
    carnn_model_desc desc = {.task = "signal", .hidden = 4, .group = "g", .target = "t"};
    carnn_model *model;
    carnn_error error;
    CHECK_INT(signal_table_steps(&d, text, 0, &error), CARNN_OK);
    CHECK_INT(carnn_dataset_examples(d), 3);
    signal_item(d, 0, "a b a", 3, x);
    signal_item(d, 1, "- b", 2, y);
    signal_item(d, 2, "c", 1, z);
    CHECK_INT(carnn_set(&desc, NULL, "target_kind", "steps", &error), CARNN_OK);
    CHECK_INT(carnn_model_create(&model, &desc, d, &error), CARNN_OK);
    CHECK_INT(carnn_model_choice_count(model), 3);
    CHECK_INT(test_scores(model, d).examples, 5);
    carnn_model_free(model);
    carnn_dataset_free(d);
    CHECK_INT(signal_table_steps(&d, "g;x;t\n1;2;a\n1;3;b c\n", 0, &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message,
               "s:3: expected a class without blanks for each row, found \"b c\"");
    CHECK_INT(signal_table_steps(&d, "g;x;t\n1;2;a\n1;3;\n", 0, &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message, "s:3: expected a class without blanks for each row, found nothing");
    CHECK_INT(signal_table_steps(&d, "g;x;t\n1;2;\n1;3;b c\n1;5;a\n", 1, &error), CARNN_OK);
    signal_item(d, 0, "- - a", 3, x);
    carnn_dataset_free(d);
    /* what each row may say, too, are all the classes of its sequence */
    CHECK_INT(signal_table_steps(&d, "g;x;t\n1;2;a b\n1;3;a b\n2;4;c\n", 0, &error), CARNN_OK);
    signal_item(d, 0, "a b", 2, x);
    CHECK_TEXT(carnn_dataset_target(d, 1), "c");
    carnn_dataset_free(d);
    CHECK_INT(signal_table_steps(&d, "g;x;t\n1;2;a b\n1;3;b\n", 0, &error), CARNN_ERR_DATA);
    CHECK(strstr(error.message, "s:3: expected the same target in all rows of a group") != NULL);
    CHECK_INT(signal_table_steps(&d, "g;x\n1;2\n1;3\n", 1, &error), CARNN_OK);
    CHECK(carnn_dataset_examples(d) == 1 && !carnn_dataset_target(d, 0));
    carnn_dataset_free(d);
}

/* What stands in quotation marks is a field; with such marks in it, it is what it is. */
static void signal_quoted(void) {
    static const char text[] = "\" x\",\"the, kind\"\n\" 1 \",\"a \"\"b\"\"\"\n2,\"a \"\"c\"\"\"\n"
                               "3, \"a\" \n4,\"a\"b\n5,\"a\n";
    static const char *const right[] = {"\"a \"\"b\"\"\"", "\"a \"\"c\"\"\"", "\"a\"", "\"a\"b",
                                        "\"a"};
    signal_rows rows = {NULL, "the, kind", {NULL, 0, NULL}, NULL};
    carnn_dataset *d = signal_text(text, "1", &rows);
    size_t i;
    CHECK_INT(d->item_count, 5);
    for (i = 0; i < 5; i++) {
        CHECK_TEXT(carnn_dataset_target(d, i), right[i]);
        CHECK_NEAR(d->numbers[i], (double)(i + 1), 0.0);
    }
    carnn_dataset_free(d);
}

/* Tables have the columns of the first one, and those of the model. */
static void signal_columns(void) {
    static const char *const text[] = {
        "kind,x,the y\na,1,2\nb,2,0\n", "x,kind,the y\n1,a,0\n", "the y,x,kind\n1,2,a\n",
        "x,kind\n1,a\n", "kind,x,the y,z\na,1,2,3\n", "x,the y\n1,2\n", "kind,x,x\na,1,2\n"};
    static const char *const message[] = {
        "", "", "s:1: expected the column \"x\", as in the first table, found \"the y\"",
        "s:1: expected the column \"the y\", as in the first table, found \"kind\"",
        "s:1: expected no more columns than the first table has, found \"z\"", "",
        "s:1: expected the column \"the y\", as in the first table, found \"x\""};
    static const char *const refused[] = {
        "", "", "s: expected \"x\" as number 1 of the columns of numbers, as model was trained "
                "with, found \"the y\"",
        "s: expected 2 columns of numbers, as model was trained with, found 1",
        "s: expected 2 columns of numbers, as model was trained with, found 3", "",
        "s: expected \"the y\" as number 2 of the columns of numbers, as model was trained "
        "with, found \"x\""};
    signal_rows rows = {NULL, "kind", {NULL, 0, NULL}, NULL};
    carnn_dataset *first = signal_text(text[0], "1", &rows), *twins, *data, *part;
    static const uint32_t number[2] = {0, 0};
    carnn_model *model = test_model("signal", "columns=1 embedding=1 target=kind", NULL, first);
    carnn_model *loaded = test_reload(model), *other;
    carnn_source two[2];
    carnn_dataset_desc desc;
    carnn_model_desc next;
    carnn_scores scores;
    carnn_error error;
    size_t i;
    CHECK_INT(carnn_model_word_count(loaded), 3);
    CHECK_TEXT(carnn_model_word(loaded, 2), "the y");
    CHECK_TEXT(carnn_model_describe(loaded)->target, "kind");
    CHECK_TEXT(carnn_model_describe(loaded)->group, "");
    memset(&next, 0, sizeof next);
    next.from = loaded;
    CHECK_INT(carnn_model_create(&other, &next, first, &error), CARNN_OK);
    CHECK_TEXT(carnn_model_describe(other)->target, "kind");
    CHECK_INT(carnn_model_word_count(other), 3);
    CHECK_TEXT(carnn_model_word(other, 2), "the y");
    carnn_model_free(other);
    memset(&desc, 0, sizeof desc);
    desc.task = "signal";
    desc.sources = two;
    desc.source_count = 2;
    desc.model = carnn_model_describe(loaded); /* which names the column of targets */
    desc.lenient = 1;
    two[0] = test_source("f", text[0], strlen(text[0]));
    for (i = 0; i < sizeof text / sizeof *text; i++) {
        two[1] = test_source("s", text[i], strlen(text[i]));
        error.message[0] = 0;
        CHECK_INT(carnn_dataset_load(&data, &desc, &error), *message[i] ? CARNN_ERR_DATA : 0);
        CHECK_TEXT(error.message, message[i]);
        carnn_dataset_free(data);
        if (i == 5) continue; /* nothing is known of what is right */
        data = signal_text(text[i], "1", &rows);
        CHECK_INT(carnn__dataset_subset(&part, data, number, 0, NULL), CARNN_OK); /* as in a fold */
        CHECK_INT(carnn_test((const carnn_model *const *)&loaded, 1, part, 1, &scores, &error),
                  *refused[i] ? CARNN_ERR_DATA : 0);
        carnn_dataset_free(part);
        error.message[0] = 0;
        CHECK_INT(carnn_test((const carnn_model *const *)&loaded, 1, data, 1, &scores, &error),
                  *refused[i] ? CARNN_ERR_DATA : 0);
        CHECK_TEXT(error.message, refused[i]);
        carnn_dataset_free(data);
    }
    twins = signal_text(text[6], "1", &rows); /* names that are the same are not kept */
    other = test_model("signal", "columns=1 embedding=1", NULL, twins);
    CHECK_INT(carnn_model_word_count(other), 1);
    CHECK_INT(carnn_test((const carnn_model *const *)&other, 1, first, 1, &scores, &error), 0);
    carnn_model_free(other);
    carnn_model_free(loaded);
    carnn_model_free(model);
    carnn_dataset_free(twins);
    carnn_dataset_free(first);
}

/* Two images of 2 x 3 pixels, and their labels. */
static const unsigned char signal_images[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3,
                                              0, 51, 10, 255, 1, 2, 3, 4, 5, 6, 7, 8};
static const unsigned char signal_labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 7, 255};

static void signal_pictures(void) {
    static const float x[] = {0.0f, 0.2f, 10 / 255.0f, 1.0f, 1 / 255.0f, 2 / 255.0f};
    static const float mixed[] = {2 / 255.0f, 0.0f, 0.2f, 10 / 255.0f, 1.0f, 1 / 255.0f};
    carnn_source images = test_source("i", signal_images, sizeof signal_images);
    carnn_source labels = test_source("l", signal_labels, sizeof signal_labels);
    carnn_source order = test_source("o", "5\n0\n\n1\n2\n3\n4\n", 13);
    signal_rows rows = {NULL, NULL, {&labels, 1, NULL}, NULL};
    carnn_dataset *d;
    carnn_error error;
    CHECK_INT(signal_load(&d, images, "3", &rows, 0, &error), CARNN_OK);
    CHECK(d->has_pixels && d->columns == 3 && d->item_count == 2);
    signal_item(d, 0, "7", 2, x);
    CHECK_TEXT(carnn_dataset_target(d, 1), "255");
    CHECK(d->items[0].line == 1 && d->items[1].line == 2);
    carnn_dataset_free(d);
    rows.images.permutation = &order;
    CHECK_INT(signal_load(&d, images, "1", &rows, 0, &error), CARNN_OK);
    signal_item(d, 0, "7", 6, mixed);
    carnn_dataset_free(d);
    rows.images.label_count = 0;
    CHECK_INT(signal_load(&d, images, "1", &rows, 1, &error), CARNN_OK);
    CHECK(d->item_count == 2 && !carnn_dataset_target(d, 0));
    carnn_dataset_free(d);
    CHECK_INT(signal_load(&d, images, "1", NULL, 1, &error), CARNN_OK); /* to be predicted */
    CHECK(d->item_count == 2 && !carnn_dataset_target(d, 0));
    carnn_dataset_free(d);
}

/* Two sources: rows of floats do not go with rows of pixels, but two tables may have groups of the
   same name, and all images are read in the same order. */
static carnn_status signal_two(carnn_dataset **d, carnn_source first, carnn_source second,
                               const signal_rows *rows, carnn_error *error) {
    carnn_source sources[2];
    carnn_dataset_desc desc;
    carnn_model_desc model;
    sources[0] = first;
    sources[1] = second;
    signal_describe(&desc, sources, 2, &model, rows);
    desc.lenient = !rows;
    return carnn_dataset_load(d, &desc, error);
}

static void signal_sources(void) {
    carnn_source images = test_source("i", signal_images, sizeof signal_images);
    carnn_source line = test_source("s", "a\t1\n", 4);
    carnn_source table = test_source("t", "day,x,kind\n1,2,a\n1,3,a\n", 23);
    carnn_source order = test_source("o", "5\n0\n1\n2\n3\n4\n", 12), labels[2];
    signal_rows rows = {"day", "kind", {NULL, 0, NULL}, NULL};
    signal_rows ordered = {NULL, NULL, {labels, 2, &order}, NULL};
    carnn_dataset *d;
    carnn_error error;
    CHECK_INT(signal_two(&d, images, line, NULL, &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message,
               "s:1: expected rows as long as those before, found another kind of numbers");
    CHECK_INT(signal_two(&d, table, table, &rows, &error), CARNN_OK);
    CHECK_INT(carnn_dataset_groups(d), 2);
    CHECK_INT(d->named, 1); /* x */
    carnn_dataset_free(d);
    labels[0] = labels[1] = test_source("l", signal_labels, sizeof signal_labels);
    CHECK_INT(signal_two(&d, images, images, &ordered, &error), CARNN_OK);
    CHECK_INT(d->item_count, 4);
    carnn_dataset_free(d);
}

static void signal_errors(void) {
    static const struct {
        const char *text, *columns;
        int table; /* 1: with groups, 2: without */
        const char *message;
    } bad[] = {
        {"", "1", 0, "s:1: expected a target and numbers, found an empty file"},
        {"a\t1\nb\t1\tx\n", "1", 0, "s:2: expected a number in column 3, found \"x\""},
        {"a\t1\nb\t\t1\n", "1", 0, "s:2: expected a number in column 2, found nothing"},
        {"a\tNaN\n", "1", 0, "s:1: expected a number in column 2, found \"NaN\""},
        {"a;1;-1.234,5\n", "1", 0,
         "s:1: expected a number with a point, not a comma, in column 3, found \"-1.234,5\""},
        {"a;1,2,3\n", "1", 0, "s:1: expected a number in column 2, found \"1,2,3\""},
        {"a\tNaN\t1\n", "1", 0, "s:1: expected a number in column 2, found \"NaN\""},
        {"a\tNaN\tNaN\n", "1", 0, "s:1: expected a number in column 2, found \"NaN\""},
        {"a\t1\tNaN\n", "2", 0, "s:1: expected rows of 2 numbers, found 1 number"},
        {"kind,x,y\na,1,NaN\n", "1", 2, "s:2: expected a number in column 3, found \"NaN\""},
        {"a\t1e31\n", "1", 0,
         "s:1: expected a number from -1e30 to 1e30 in column 2, found \"1e31\""},
        {"a\tinf\n", "1", 0, "s:1: expected a number in column 2, found \"inf\""},
        {"a\t1\t2\nb\t1\t2\t3\n", "2", 0, "s:2: expected rows of 2 numbers, found 3 numbers"},
        {"a\t1\n", "2", 0, "s:1: expected rows of 2 numbers, found 1 number"},
        {"a\t1\nb\n", "1", 0, "s:2: expected rows of 1 number, found none"},
        {"\t1\n", "1", 0, "s:1: expected a target, found nothing"},
        {"day,x\n1,2\n", "1", 1, "s:1: expected a column \"kind\", found \"day,x\""},
        {"x,kind\n2,a\n", "1", 1, "s:1: expected a column \"day\", found \"x,kind\""},
        {"day,kind\n1,a\n", "1", 1, "s:1: expected columns of numbers, too, found \"day,kind\""},
        {"day,x,kind\n", "1", 1, "s:1: expected a target and numbers, found none"},
        {"day,x,hour,kind\n1,1,1,a\n1,1,2,a\n2,1,3,b\n2,1,4,c\n", "1", 1,
         "s:5: expected the same target in all rows of a group (with target_kind steps one "
         "without blanks for each), found \"c\""},
        {"day,x,kind\n1,2,a\n1,3\n", "1", 1,
         "s:3: expected 3 columns, as in the first line, found \"1,3\""},
        {"day,x,kind\n1,2,a,4\n", "1", 1,
         "s:2: expected 3 columns, as in the first line, found \"1,2,a,4\""},
        {"day,x,kind\n1,2,a\n1,?,a\n", "1", 1, "s:3: expected a number in column 2, found \"?\""},
        {"day,x,kind\n1,2,a\n1,3,b\n", "1", 1,
         "s:3: expected the same target in all rows of a group (with target_kind steps one "
         "without blanks for each), found \"b\""},
        {"day,x,kind\n1,2,a\n2,3,a\n1,2,a\n", "1", 1,
         "s:4: expected the rows of a group one after the other, found \"1\""},
        {"day,x,kind\n1,2,\n", "1", 1, "s:2: expected a target, found nothing"},
        {"day,x,kind\n1,2,\n1,3,\n\n", "1", 1, "s:2: expected a target, found nothing"},
        {"x,y,kind\n1,2,a\n", "3", 2, "s:2: expected rows of 3 numbers, found 2 numbers"}};
    signal_rows grouped = {"day", "kind", {NULL, 0, NULL}, NULL};
    signal_rows single = {NULL, "kind", {NULL, 0, NULL}, NULL};
    signal_rows nameless = {"day", NULL, {NULL, 0, NULL}, NULL};
    signal_rows same = {"day", "day", {NULL, 0, NULL}, NULL};
    carnn_dataset *d;
    carnn_error error;
    size_t i;
    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        const signal_rows *rows = bad[i].table == 1 ? &grouped : bad[i].table ? &single : NULL;
        carnn_source source = test_source("s", bad[i].text, strlen(bad[i].text));
        CHECK_INT(signal_load(&d, source, bad[i].columns, rows, 0, &error), CARNN_ERR_DATA);
        CHECK_TEXT(error.message, bad[i].message);
        CHECK(!d);
    }
    CHECK_INT(signal_load(&d, test_source("s", "day,x\n1,2\n", 10), "1", &nameless, 0, &error),
              CARNN_ERR_DATA);
    CHECK_TEXT(error.message, "s:1: expected the name of the column of targets (--target), "
                              "found \"day,x\"");
    CHECK_INT(signal_load(&d, test_source("s", "day,x\n1,2\n", 10), "1", &same, 0, &error),
              CARNN_ERR_DATA);
    CHECK_TEXT(error.message, "s:1: expected two columns for group and target, found \"day,x\"");
    CHECK_INT(signal_load(&d, test_source("s", "day,x,kind\n", 11), "1", &grouped, 1, &error),
              CARNN_OK); /* to be predicted: no rows are no error */
    CHECK_INT(carnn_dataset_examples(d), 0);
    carnn_dataset_free(d);
}

/* Files of images that are cut off, or of another kind. */
static void signal_bad_images(void) {
    unsigned char bytes[sizeof signal_images], marks[sizeof signal_labels];
    unsigned char longer[sizeof signal_images + 1];
    carnn_source source = test_source("i", bytes, sizeof bytes);
    carnn_source labels = test_source("l", marks, sizeof marks);
    carnn_source order = test_source("o", "0\n1\n2\n2\n4\n5\n", 12);
    signal_rows rows = {NULL, NULL, {&labels, 1, NULL}, NULL};
    carnn_dataset *d;
    carnn_error error;
    size_t i;
    memcpy(bytes, signal_images, sizeof bytes);
    memcpy(marks, signal_labels, sizeof marks);
    for (i = 1; i < sizeof bytes; i++) {
        source.size = i;
        CHECK_INT(signal_load(&d, source, "1", &rows, 0, &error), CARNN_ERR_DATA);
    }
    source.size = sizeof bytes;
    for (i = 1; i < sizeof marks; i++) {
        labels.size = i;
        CHECK_INT(signal_load(&d, source, "1", &rows, 0, &error), CARNN_ERR_DATA);
    }
    CHECK_TEXT(error.message,
               "l:1: expected 2 labels, one for each image (idx1-ubyte), found other bytes");
    labels.size = sizeof marks;
    marks[3] = 3;
    CHECK_INT(signal_load(&d, source, "1", &rows, 0, &error), CARNN_ERR_DATA);
    marks[3] = signal_labels[3];
    marks[7] = 3; /* labels, although two are there */
    CHECK_INT(signal_load(&d, source, "1", &rows, 0, &error), CARNN_ERR_DATA);
    marks[7] = signal_labels[7];
    memcpy(longer, bytes, sizeof bytes);
    longer[sizeof bytes] = 0;
    CHECK_INT(signal_load(&d, test_source("i", longer, sizeof longer), "1", &rows, 0, &error),
              CARNN_ERR_DATA);
    CHECK_TEXT(error.message, "i:1: expected 2 images of 6 pixels, found 13 bytes");
    CHECK_INT(signal_load(&d, source, "4", &rows, 0, &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message, "i:1: expected rows of 4 numbers, found 2 images of 6 pixels");
    CHECK_INT(signal_load(&d, source, "1", NULL, 0, &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message,
               "i:1: expected a file of labels beside the images (--labels), found none");
    rows.images.permutation = &order;
    CHECK_INT(signal_load(&d, source, "1", &rows, 0, &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message,
               "o:4: expected the number of a pixel, from 0, each once, found \"2\"");
    order.size = 6;
    CHECK_INT(signal_load(&d, source, "1", &rows, 0, &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message,
               "o:3: expected as many numbers as an image has pixels, found fewer");
    order.size = 0;
    CHECK_INT(signal_load(&d, source, "1", &rows, 0, &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message,
               "o:1: expected as many numbers as an image has pixels, found fewer");
    rows.group = "day";
    CHECK_INT(signal_load(&d, source, "1", &rows, 0, &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message, "i:1: expected a table, as its columns are named, found images");
    rows.group = NULL;
    CHECK_INT(signal_load(&d, test_source("s", "a\t1\n", 4), "1", &rows, 0, &error),
              CARNN_ERR_DATA);
    CHECK_TEXT(error.message, "s:1: expected images (idx3-ubyte), found \"a\\t1\"");
    rows.images.permutation = NULL;
    bytes[7] = 0;
    CHECK_INT(signal_load(&d, source, "1", &rows, 0, &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message,
               "i:1: expected images of one pixel or more, found 0 images of 6 pixels");
    bytes[7] = 2;
    for (i = 4; i < 16; i++) { /* sizes up to 2^32 */
        bytes[i] = 255;
        CHECK_INT(signal_load(&d, source, "1", &rows, 0, &error), CARNN_ERR_DATA);
        bytes[i] = signal_images[i];
    }
    bytes[3] = 1;
    CHECK_INT(signal_load(&d, source, "1", &rows, 0, &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message, "i:1: expected images (idx3-ubyte) or text, found other bytes");
}

/* Memory that runs out while groups are read leaves nothing behind. */
static void signal_without_memory(void) {
    static const char text[] = "day,x,kind\n1,2,a\n1,3,a\n2,4,b\n";
    signal_rows rows = {"day", "kind", {NULL, 0, NULL}, NULL};
    carnn_source source = test_source("s", text, sizeof text - 1);
    carnn_dataset_desc desc;
    carnn_model_desc model;
    carnn_status status = CARNN_ERR_MEMORY;
    test_memory memory;
    carnn_allocator a = test_allocator(&memory);
    carnn_error error;
    long at;
    signal_describe(&desc, &source, 1, &model, &rows);
    desc.allocator = &a;
    for (at = 1; status; at++) {
        carnn_dataset *d;
        memset(&memory, 0, sizeof memory);
        memory.fail_at = at;
        status = carnn_dataset_load(&d, &desc, &error);
        CHECK(status == CARNN_OK || status == CARNN_ERR_MEMORY);
        carnn_dataset_free(d);
        CHECK_INT(memory.blocks, 0);
    }
    CHECK(at > 10);
}

/* A sequence of very many rows, and one more than there may be (CARNN__COUNT_LIMIT). */
static void signal_many_rows(void) {
    size_t n = TEST_SANITIZED ? 100000 : 900000, i;
    char *text = (char *)malloc(2 * CARNN__COUNT_LIMIT + 16);
    carnn_dataset *d;
    carnn_error error;
    text[0] = 'a';
    for (i = 0; i < n; i++) memcpy(text + 1 + 2 * i, i % 3 ? "\t1" : "\t2", 2);
    CHECK_INT(signal_load(&d, test_source("s", text, 2 * n + 1), "1", NULL, 0, &error), CARNN_OK);
    CHECK_INT(d->row_at[1], n);
    CHECK_NEAR(d->numbers[n - 1], (n - 1) % 3 ? 1.0 : 2.0, 0.0);
    carnn_dataset_free(d);
    n = CARNN__COUNT_LIMIT;
    for (i = 0; i < n; i++) memcpy(text + 1 + 2 * i, "\t1", 2);
    memcpy(text + 1 + 2 * n, "\nb\t1", 4);
    CHECK_INT(signal_load(&d, test_source("s", text, 2 * n + 5), "1", NULL, 0, &error),
              CARNN_ERR_DATA);
    CHECK_TEXT(error.message, "s:2: expected no more than 999992 lines in one data set");
    free(text);
}

/* --- models ----------------------------------------------------------------------------------- */

static carnn_model *signal_model(const char *options, const carnn_dataset *data) {
    carnn_model_desc desc;
    carnn_model *model = NULL;
    carnn_error error;
    memset(&desc, 0, sizeof desc);
    desc.task = "signal";
    desc.hidden = 19;
    CHECK_INT(carnn__set_all(&desc, NULL, 0, options, &error), CARNN_OK);
    CHECK_INT(carnn_model_create(&model, &desc, data, &error), CARNN_OK);
    return model;
}

static carnn_status signal_fit(carnn_model *model, const carnn_dataset *data, int64_t epochs) {
    carnn_train_desc train = test_training(epochs, 3, 0.01, 0.1);
    carnn_error error;
    train.threads = 1;
    return carnn_train(model, data, data, &train, &error);
}

static const char signal_gestures[] =
    "a,.5,-1,2,.25,3,1\nb,1,7\na,0,.5,-.5,2,3,1,8,1\nc,-1,-2,0,1\nb,2,1,0,3,.5,.5\na,4,1\n";
static const char signal_numbers[] =
    "1.5,.5,-1,2,.25,3,1\n-2,1,7\n8,0,.5,-.5,2,3,1,8,1\n3,-1,-2,0,1\n4,2,1,0,3,.5,.5\n1,4,1\n";
static const char signal_steps[] =
    "x y x,.5,-1,2,.25,3,1\ny,1,7\ny y x x,0,.5,-.5,2,3,1,8,1\nx z,-1,-2,0,1\ny,2,1\n";

/* A row whose class is - is no class, is not scored and teaches nothing: what is learnt from all
   rows but some is what the other rows teach. */
static void signal_unscored(void) {
    static const char *const text[] = {"x y x,.5,-1,2\ny y x x,0,.5,-.5,2\n",
                                       "- y x,.5,-1,2\n- - - -,0,.5,-.5,2\n",
                                       "x - -,.5,-1,2\ny y x x,0,.5,-.5,2\n"};
    carnn_dataset *data[3];
    carnn_model *model;
    carnn_scores s[3];
    test_work w[3];
    size_t i, k;
    for (i = 0; i < 3; i++) data[i] = signal_text(text[i], "1", NULL);
    model = signal_model("target_kind=steps", data[2]);
    CHECK_INT(carnn_model_choice_count(model), 2);
    CHECK_INT(signal_fit(model, data[0], 1), CARNN_OK);
    for (i = 0; i < 3; i++) {
        s[i] = test_scores(model, data[i]);
        test_work_open(&w[i], model, data[i], 1);
        w[i].work.g = (float *)carnn__alloc_aligned(&model->allocator, model->params.size, 4);
        memset(w[i].work.g, 0, model->params.size * sizeof(float));
        CHECK_INT(test_work_run(&w[i], 0), 1);
    }
    CHECK_INT(s[0].examples, 7);
    CHECK_INT(s[1].examples, 2);
    CHECK_INT(s[2].examples, 5);
    CHECK_NEAR(7.0 * s[0].loss, 2.0 * s[1].loss + 5.0 * s[2].loss, 1e-5);
    CHECK_NEAR(7.0 * s[0].metric[0].value,
               2.0 * s[1].metric[0].value + 5.0 * s[2].metric[0].value, 1e-9);
    for (k = 0; k < model->params.trained; k++) /* gradients of means */
        CHECK_NEAR(7.0f * w[0].work.g[k], 2.0f * w[1].work.g[k] + 5.0f * w[2].work.g[k], 1e-5);
    for (i = 0; i < 3; i++) {
        carnn__free_aligned(&model->allocator, w[i].work.g);
        test_work_close(&w[i]);
        carnn_dataset_free(data[i]);
    }
    carnn_model_free(model);
}

/* One word is the class of all rows. A model that goes on has its classes first, new ones
   behind. */
static void signal_steps_go_on(void) {
    carnn_dataset *data = signal_text("x y x,.5,-1,2\ny y x,0,.5,-.5\n", "1", NULL);
    carnn_dataset *other = signal_text("z,.5,-1,2\ny x,0,.5\n", "1", NULL);
    carnn_dataset *each = signal_text("z z z,.5,-1,2\ny x,0,.5\n", "1", NULL);
    carnn_model *model = signal_model("target_kind=steps", data), *next = NULL;
    carnn_model_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.from = model;
    CHECK_INT(carnn_model_create(&next, &desc, other, NULL), CARNN_OK);
    CHECK_INT(carnn_model_choice_count(next), 3);
    CHECK_TEXT(carnn_model_choice(next, 0), carnn_model_choice(model, 0));
    CHECK_TEXT(carnn_model_choice(next, 1), carnn_model_choice(model, 1));
    CHECK_TEXT(carnn_model_choice(next, 2), "z");
    CHECK_INT(test_scores(next, other).examples, 5);
    CHECK(test_scores(next, other).loss == test_scores(next, each).loss);
    carnn_model_free(next);
    carnn_model_free(model);
    carnn_dataset_free(each);
    carnn_dataset_free(other);
    carnn_dataset_free(data);
}

/* A target that is not of the kind of the others is refused, unless all are taken as names. */
static void signal_odd_target(const char *text, const char *wanted, const char *odd) {
    carnn_dataset *data = signal_text(text, "1", NULL);
    carnn_model_desc desc;
    carnn_model *model;
    carnn_error error;
    memset(&desc, 0, sizeof desc);
    desc.task = "signal";
    CHECK_INT(carnn_model_create(&model, &desc, data, &error), CARNN_ERR_DATA);
    CHECK(strstr(error.message, wanted) != NULL);
    CHECK(strstr(error.message, odd) != NULL);
    model = signal_model("target_kind=class", data);
    CHECK_INT(carnn_model_choice_count(model), 5);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* In training half of what the output reads is dropped: of the vector of each sequence, or of the
   states of each row. */
static void signal_drops(const char *text, const char *options) {
    carnn_dataset *data = signal_text(text, "2", NULL);
    carnn_model *model = signal_model(options, data);
    float *g = (float *)calloc(model->params.size, sizeof *g);
    const carnn__mat *x[2];
    test_work w[2];
    size_t i, rows, count, dropped = 0;
    for (i = 0; i < 2; i++) {
        test_work_open(&w[i], model, data, 1);
        w[i].work.g = g;
        w[i].work.dropout = 0.5;
        CHECK_INT(test_work_run(&w[i], i), 1); /* key 0: no dropout */
        x[i] = carnn__signal_features((const carnn__signal *)w[i].work.state, &rows);
    }
    count = rows * x[0]->columns;
    for (i = 0; i < count; i++) {
        dropped += x[1]->x[i] == 0.0f;
        CHECK(x[1]->x[i] == 0.0f || x[1]->x[i] == 2.0f * x[0]->x[i]);
    }
    CHECK(4 * dropped > count && 4 * dropped < 3 * count);
    for (i = 0; i < 2; i++) test_work_close(&w[i]);
    free(g);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* What is told follows from the data, unless an option says it. */
static void signal_kinds(void) {
    static char same[6 * 50000 + 1];
    static const struct {
        const char *text, *columns, *options;
        size_t kind, choices;
    } set[] = {{signal_gestures, "2", "", CARNN__SIGNAL_CLASS, 3},
               {signal_numbers, "2", "", CARNN__SIGNAL_NUMBER, 0},
               {signal_numbers, "2", "target_kind=class", CARNN__SIGNAL_CLASS, 6},
               {signal_steps, "2", "", CARNN__SIGNAL_STEPS, 3},
               {"1,1\n2,1\n30,1\n", "1", "", CARNN__SIGNAL_CLASS, 3},
               {"9000000,1\n9000001.5,1\n", "1", "", CARNN__SIGNAL_NUMBER, 0}, /* whole as floats */
               {"1,1\n2,1\n30,1\n", "1", "target_kind=number", CARNN__SIGNAL_NUMBER, 0}};
    carnn_model_desc desc;
    carnn_model *model, *other;
    carnn_dataset *data;
    carnn_error error;
    size_t i;
    for (i = 0; i < sizeof set / sizeof *set; i++) {
        data = signal_text(set[i].text, set[i].columns, NULL);
        model = signal_model(set[i].options, data);
        CHECK_INT(carnn__chosen(model, CARNN__SIGNAL_KIND), set[i].kind);
        CHECK_INT(carnn_model_choice_count(model), set[i].choices);
        CHECK_INT(signal_fit(model, data, 2), CARNN_OK);
        CHECK_TEXT(test_scores(model, data).metric[0].name,
                   set[i].kind == CARNN__SIGNAL_NUMBER ? "mse" : "accuracy");
        carnn_model_free(model);
        carnn_dataset_free(data);
    }
    signal_odd_target("0.5,1\n2,1\nNA,1\n1.5,1\nNB,1\n",
                      ":3: expected a number, as other targets are", "\"NA\"");
    /* one lacks the class of its last row */
    signal_odd_target("x y\t1\t2\nx\t1\ny\t2\t1\ny x\t2\t1\nx x\t1\t1\n",
                      ":3: expected a class for each row, as other targets are", "\"y\"");
    /* all are numbers, as some spreadsheets write them, unless they are said to be names */
    signal_odd_target("3;1\n1,5;2\n-1.234,5;1\n4;1\n,5;2\n", ":2: expected a number with a point, "
                      "not a comma, as the target (target_kind class takes them as names)",
                      "\"1,5\"");
    data = signal_text("3;1\n1,5;2\n", "1", NULL);
    model = signal_model("target_kind=class", data);
    CHECK_INT(carnn_model_choice_count(model), 2);
    carnn_model_free(model);
    carnn_dataset_free(data);
    data = signal_text("3;1\n1,5;2\nx;1\n", "1", NULL);
    model = signal_model("", data);
    CHECK_INT(carnn_model_choice_count(model), 3);
    carnn_model_free(model);
    carnn_dataset_free(data);
    /* most are names of classes */
    data = signal_text("hands up\t1\t2\nx\t1\ny\t2\t1\nx\t2\t1\n", "1", NULL);
    model = signal_model("", data);
    CHECK_INT(carnn__chosen(model, CARNN__SIGNAL_KIND), CARNN__SIGNAL_CLASS);
    carnn_model_free(model);
    carnn_dataset_free(data);
    data = signal_text("0.5 1.5\t1\t2\n0.5\t1\n1.5 0.5\t2\t1\n", "1", NULL); /* labels of rows */
    model = signal_model("", data);
    CHECK_INT(carnn__chosen(model, CARNN__SIGNAL_KIND), CARNN__SIGNAL_STEPS);
    carnn_model_free(model);
    carnn_dataset_free(data);
    data = signal_text("0.1,1\n0.1,2\n0.1,1\n0.1,1\n0.1,1\n0.1,1\n", "1", NULL); /* all the same */
    model = signal_model("target_kind=number", data);
    CHECK_NEAR(*test_weight(model, "target.deviation"), 1.0, 0.0);
    carnn_model_free(model);
    carnn_dataset_free(data);
    for (i = 0; i + 6 < sizeof same; i += 6) memcpy(same + i, "0.1,7\n", 6);
    data = signal_text(same, "1", NULL); /* whose sum is rounded very often */
    model = signal_model("target_kind=number", data);
    CHECK_NEAR(*test_weight(model, "target.deviation"), 1.0, 0.0);
    CHECK_NEAR(*test_weight(model, "input.scale"), 1.0, 0.0);
    carnn_model_free(model);
    carnn_dataset_free(data);
    /* times, all alike but not the same */
    data = signal_text("1700000000,1\n1700000128,2\n", "1", NULL);
    model = signal_model("target_kind=number", data);
    CHECK_NEAR(*test_weight(model, "target.deviation"), 64.0, 0.0);
    carnn_model_free(model);
    carnn_dataset_free(data);
    data = signal_text("2,1\n1,2\n", "1", NULL); /* the first is the largest */
    model = signal_model("target_kind=number", data);
    CHECK_NEAR(*test_weight(model, "target.deviation"), 0.5, 0.0);
    carnn_model_free(model);
    carnn_dataset_free(data);
    data = signal_text("0,1\n1e-35,2\n", "1", NULL); /* nothing can be divided by the deviation */
    model = signal_model("target_kind=number", data);
    CHECK_NEAR(*test_weight(model, "target.deviation"), 1.0, 0.0);
    carnn_model_free(model);
    carnn_dataset_free(data);
    data = signal_text("1,1,2\n2,3,4\n", "2", NULL);
    model = signal_model("target_kind=number", data);
    carnn_dataset_free(data);
    data = signal_text(signal_gestures, "2", NULL); /* words are no numbers, nor classes of rows */
    memset(&desc, 0, sizeof desc);
    desc.task = "signal";
    CHECK_INT(carnn_set(&desc, NULL, "target_kind", "number", &error), CARNN_OK);
    desc.from = model; /* or without */
    CHECK_INT(carnn_model_create(&other, &desc, data, &error), CARNN_ERR_DATA);
    desc.from = NULL;
    CHECK_INT(carnn_model_create(&other, &desc, data, &error), CARNN_ERR_DATA);
    CHECK(strstr(error.message, "1: expected a number as the target, found \"") != NULL);
    CHECK_INT(signal_fit(model, data, 1), CARNN_ERR_DATA);
    CHECK_INT(test_predict_all(model, data, 1).count, data->item_count); /* they are not read */
    carnn_model_free(model);
    memset(&desc, 0, sizeof desc);
    desc.task = "signal";
    desc.embedding = 3;
    CHECK_INT(carnn_model_create(&model, &desc, data, &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message,
               "the data set has rows of 2 numbers, the model reads rows of 3 (embedding)");
    desc.embedding = 2; /* it has no effect, but is no error either */
    CHECK_INT(carnn_model_create(&model, &desc, data, &error), CARNN_OK);
    carnn_model_free(model);
    CHECK_INT(carnn_set(&desc, NULL, "columns", "3", &error), CARNN_OK);
    CHECK_INT(carnn_model_create(&model, &desc, data, &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message, "columns is 3, but the rows of the data have 2 numbers");
    carnn_dataset_free(data);
}

/* The whole network of one layer of an iCARNN (Tran et al. 2018, Eq. 5) whose last state is
   read, from the numbers of the data set: z of item i. */
static double signal_by_loops(const carnn_model *model, const carnn_dataset *d, size_t i,
                              size_t k) {
    const float *W = test_weight(model, "cell.input.weight");
    const float *b = test_weight(model, "cell.bias");
    const float *V = test_weight(model, "output.weight");
    const float *a = test_weight(model, "output.bias");
    size_t C = d->columns, h = (size_t)model->desc.hidden;
    size_t text = d->members[d->items[i].first].text;
    size_t n = d->row_at[d->row_texts], j, g, t, c;
    double z = (double)a[k];
    for (j = 0; j < h; j++) {
        double state = 0.0, gate[3];
        for (t = d->row_at[text]; t < d->row_at[text + 1]; t++) {
            for (g = 0; g < 3; g++) {
                gate[g] = (double)b[g * h + j];
                for (c = 0; c < C; c++) {
                    double mean = 0.0, variance = 0.0;
                    size_t r;
                    for (r = 0; r < n; r++) mean += (double)d->numbers[r * C + c] / (double)n;
                    for (r = 0; r < n; r++)
                        variance += pow((double)d->numbers[r * C + c] - mean, 2.0) / (double)n;
                    gate[g] += (double)W[(g * h + j) * C + c] *
                               ((double)d->numbers[t * C + c] - mean) / sqrt(variance);
                }
            }
            gate[0] = test_sigmoid(gate[0]);
            state = gate[0] * test_sigmoid(gate[1]) * gate[2] + (1.0 - gate[0]) * state;
        }
        z += (double)V[k * h + j] * state;
    }
    return z;
}

static void signal_network(void) {
    carnn_dataset *data = signal_text(signal_gestures, "2", NULL);
    carnn_model *model = signal_model("layers=1", data);
    test_answers all;
    double mean = 0.0, variance = 0.0, squares = 0.0;
    size_t i, k;
    CHECK_INT(signal_fit(model, data, 3), CARNN_OK);
    all = test_predict_all(model, data, 1);
    CHECK_INT(all.count, 6);
    for (i = 0; i < 6; i++) {
        double sum = 0.0, best = signal_by_loops(model, data, i, all.choice[i]);
        for (k = 0; k < 3; k++) sum += exp(signal_by_loops(model, data, i, k));
        CHECK_NEAR(all.value[i], exp(best) / sum, 1e-5);
    }
    carnn_model_free(model);
    carnn_dataset_free(data);
    data = signal_text(signal_numbers, "2", NULL);
    model = signal_model("layers=1", data);
    CHECK_INT(signal_fit(model, data, 3), CARNN_OK);
    all = test_predict_all(model, data, 1);
    for (i = 0; i < 6; i++) mean += (double)data->items[i].value / 6.0;
    for (i = 0; i < 6; i++) variance += pow((double)data->items[i].value - mean, 2.0) / 6.0;
    for (i = 0; i < 6; i++) {
        CHECK_NEAR(all.value[i], mean + sqrt(variance) * signal_by_loops(model, data, i, 0), 1e-4);
        squares += pow(all.value[i] - (double)data->items[i].value, 2.0) / 6.0;
    }
    CHECK_NEAR(test_scores(model, data).metric[0].value, squares, 1e-6 * squares);
    CHECK_NEAR(test_scores(model, data).loss, squares / variance, 1e-5);
    CHECK(test_scores(model, data).metric[0].lower_is_better);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Pixels are used as the same floats would be: bit by bit the same model. */
static void signal_pixels(void) {
    carnn_source images = test_source("i", signal_images, sizeof signal_images);
    carnn_source labels = test_source("l", signal_labels, sizeof signal_labels);
    signal_rows rows = {NULL, NULL, {&labels, 1, NULL}, NULL};
    carnn_dataset *d[2];
    carnn_model *model[2];
    char text[256] = "";
    carnn_error error;
    size_t i, j, n = 0;
    CHECK_INT(signal_load(&d[0], images, "3", &rows, 0, &error), CARNN_OK);
    for (i = 0; i < 2; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "%s", i ? "\n255" : "7");
        for (j = 0; j < 6; j++)
            n += (size_t)snprintf(text + n, sizeof text - n, ",%.9g",
                                  (double)((float)d[0]->pixels[6 * i + j] / 255.0f));
    }
    d[1] = signal_text(text, "3", NULL);
    for (i = 0; i < 2; i++) {
        model[i] = signal_model("", d[i]);
        CHECK_INT(signal_fit(model[i], d[i], 5), CARNN_OK);
    }
    CHECK(!memcmp(model[0]->params.value, model[1]->params.value,
                  model[0]->params.size * sizeof(float)));
    for (i = 0; i < 2; i++) {
        carnn_model_free(model[i]);
        carnn_dataset_free(d[i]);
    }
}

/* --- streams ---------------------------------------------------------------------------------- */

/* After the rows of an item a session tells what the batch tells, bit by bit; of steps after every
   row. A session after an error, or after another sequence, begins anew with a reset. */
static void signal_stream(const char *text, const char *options) {
    carnn_dataset *data = signal_text(text, "2", NULL);
    carnn_model *model = signal_model(options, data);
    carnn_session *session;
    carnn_prediction p;
    carnn_error error;
    test_answers all;
    size_t i, r, part = 0;
    int steps = carnn__signal_is(model, CARNN__SIGNAL_STEPS);
    CHECK_INT(signal_fit(model, data, 2), CARNN_OK);
    all = test_predict_all(model, data, 2);
    CHECK_INT(carnn_session_open(&session, model, NULL, &error), CARNN_OK);
    CHECK_INT(carnn_session_columns(session), 2);
    for (i = 0; i < data->item_count; i++) {
        size_t at = data->members[data->items[i].first].text;
        for (r = data->row_at[at]; r < data->row_at[at + 1]; r++) {
            CHECK_INT(carnn_session_row(session, data->numbers + 2 * r, 2, 1, &p, &error), 0);
            if (!steps && r + 1 < data->row_at[at + 1]) continue;
            if (p.kind == CARNN_PREDICTS_SCORE) CHECK(p.score == all.value[part]);
            else CHECK(p.choice[0] == all.choice[part] && p.probability[0] == all.value[part]);
            part++;
        }
        carnn_session_reset(session);
    }
    CHECK_INT(part, all.count);
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

static void signal_streams(void) {
    signal_stream(signal_gestures, "");
    signal_stream(signal_gestures, "layers=1 pooling=mean");
    signal_stream(signal_gestures, "cell=lstm layers=3 pooling=max,mean,min,last");
    signal_stream(signal_gestures, "cell=gru encoder=rcrn layers=2 pooling=min");
    signal_stream(signal_gestures, "cell=scarnn");
    signal_stream(signal_numbers, "cell=ncarnn pooling=max");
    signal_stream(signal_numbers, "cell=mi-lstm");
    signal_stream(signal_steps, "cell=gru-after");
    signal_stream(signal_gestures, "cell=lstm normalise=batch");
    signal_stream(signal_gestures, "cell=mi-rnn layers=3 normalise=batch");
}

/* What sessions refuse. */
static void signal_refused(void) {
    static const char bikes[] = "1 hello\tHello !\n";
    carnn_dataset *data = signal_text(signal_gestures, "2", NULL);
    carnn_dataset *words = test_data("dialog", bikes, sizeof bikes - 1, 0, 0);
    static const float row[] = {1.0f, 2.0f, 3.0f};
    float odd[] = {1.0f, (float)NAN}, large[] = {1e30f, 0.0f};
    carnn_model_desc desc;
    carnn_model *model;
    carnn_session *session;
    carnn_prediction p;
    carnn_text text = {"1 2", 3};
    carnn_error error;
    int found;
    model = signal_model("directions=2", data);
    CHECK_INT(carnn_session_open(&session, model, NULL, &error), CARNN_OK);
    CHECK_INT(carnn_session_row(session, row, 2, 1, &p, &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message, "rows can be read one at a time by models with directions 1 and "
                              "context none; this one has directions 2");
    carnn_session_free(session);
    carnn_model_free(model);
    model = signal_model("context=rows", data);
    CHECK_INT(carnn_session_open(&session, model, NULL, &error), CARNN_OK);
    CHECK_INT(carnn_session_row(session, row, 2, 1, &p, &error), CARNN_ERR_ARGUMENT);
    carnn_session_free(session);
    carnn_model_free(model);
    model = signal_model("", data);
    CHECK_INT(carnn_session_open(&session, model, NULL, &error), CARNN_OK);
    CHECK_INT(carnn_session_row(session, row, 3, 1, &p, &error), CARNN_ERR_ARGUMENT);
    CHECK_INT(carnn_session_row(session, odd, 2, 1, &p, &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message, "expected a number from -1e30 to 1e30 in column 2, found nan");
    large[1] = -1.1e30f; /* as in files: what is larger leaves states that are no numbers */
    CHECK_INT(carnn_session_row(session, large, 2, 1, &p, &error), CARNN_ERR_ARGUMENT);
    large[1] = 1e30f;
    CHECK_INT(carnn_session_row(session, large, 2, 1, &p, &error), CARNN_OK);
    CHECK(p.probability[0] <= 1.0);
    carnn_session_reset(session);
    CHECK_INT(carnn_session_predict(session, &text, 1, 1, &p, &error), CARNN_ERR_ARGUMENT);
    CHECK_INT(carnn_session_line(session, "1, 2", 4, 1, 1, &found, &p, &error), CARNN_OK);
    CHECK(found);
    CHECK_INT(carnn_session_line(session, "  ", 2, 2, 1, &found, &p, &error), CARNN_OK);
    CHECK(!found);
    CHECK_INT(carnn_session_line(session, NULL, 0, 2, 1, &found, &p, &error), CARNN_OK);
    CHECK(!found);
    CHECK_INT(carnn_session_line(session, "1 2 3", 5, 3, 1, &found, &p, &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message, "standard input:3: expected a row of 2 numbers, found \"1 2 3\"");
    CHECK_INT(carnn_session_line(session, "1", 1, 4, 1, &found, &p, &error), CARNN_ERR_DATA);
    CHECK_INT(carnn_session_line(session, "1 x", 3, 5, 1, &found, &p, &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message, "standard input:5: expected a number in column 2, found \"x\"");
    carnn_session_free(session);
    carnn_model_free(model);
    memset(&desc, 0, sizeof desc);
    CHECK_INT(carnn_model_create(&model, &desc, words, &error), CARNN_OK);
    CHECK_INT(carnn_session_open(&session, model, NULL, &error), CARNN_OK);
    CHECK_INT(carnn_session_columns(session), 0);
    CHECK_INT(carnn_session_row(session, row, 2, 1, &p, &error), CARNN_ERR_ARGUMENT);
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(words);
    carnn_dataset_free(data);
}

/* A stream is a few KiB in the caller's memory, and a row takes none. */
static void signal_memory(void) {
    static float row[16];
    char line[128] = "a", other[128] = "b";
    carnn_dataset *data;
    carnn_model *model;
    carnn_session *session;
    carnn_session_desc desc = {0, 0, NULL};
    carnn_prediction p;
    carnn_error error;
    char *block;
    size_t i, size;
    for (i = 0; i < 16; i++) strcat(line, ",1.5"), strcat(other, ",2");
    strcat(strcat(line, "\n"), other);
    data = signal_text(line, "16", NULL);
    model = signal_model("hidden=64 layers=1", data);
    size = carnn_session_size(model, NULL);
    CHECK(size <= 8192);
    block = (char *)carnn__alloc_aligned(&model->allocator, size + 64, 1);
    memset(block + size, 77, 64);
    desc.memory = block;
    CHECK_INT(carnn_session_open(&session, model, &desc, &error), CARNN_OK);
    for (i = 0; i < 1000; i++)
        CHECK_INT(carnn_session_row(session, row, 16, 1, &p, &error), CARNN_OK);
    for (i = size; i < size + 64; i++) CHECK_INT(block[i], 77);
    carnn__free_aligned(&model->allocator, block);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* --- the same everywhere ---------------------------------------------------------------------- */

static void signal_same_bytes(const char *text, const char *options) {
    carnn_dataset *data = signal_text(text, "2", NULL);
    carnn_model_free(test_trains_alike("signal", options, data, test_training(3, 3, 0.01, 0.1)));
    carnn_dataset_free(data);
}

/* A model keeps what is told, the columns, and the means of its training. */
static void signal_kept(void) {
    carnn_dataset *data = signal_text(signal_numbers, "2", NULL);
    carnn_model *model = signal_model("", data), *again;
    CHECK_INT(signal_fit(model, data, 2), CARNN_OK);
    again = test_reload(model);
    CHECK_TEXT(carnn_model_scores(again)->metric[0].name, "mse");
    CHECK(test_scores(again, data).loss == test_scores(model, data).loss);
    carnn_model_free(again);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Of the last epochs the best one is kept, which has the lowest error; folds are whole groups. */
static void signal_best(void) {
    carnn_dataset *data = signal_text(signal_numbers, "2", NULL);
    carnn_model *model = signal_model("hidden=32", data);
    carnn_scores mean, sd;
    carnn_train_desc train;
    carnn_folds_desc folds;
    carnn_error error;
    memset(&train, 0, sizeof train);
    memset(&folds, 0, sizeof folds);
    CHECK_INT(signal_fit(model, data, 40), CARNN_OK);
    CHECK_NEAR(carnn_model_scores(model)->metric[0].value, 0.0, 1.0);
    train.epochs = 2;
    folds.count = 3;
    CHECK_INT(carnn_cross_validate(carnn_model_describe(model), &train, data, &folds, &mean, &sd,
                                   &error), CARNN_OK);
    CHECK_INT(mean.examples, 6);
    CHECK_TEXT(mean.metric[0].name, "mse");
    carnn_model_free(model);
    carnn_dataset_free(data);
}

int main(void) {
    signal_lines();
    signal_tables();
    signal_filled_up();
    signal_targets();
    signal_without_targets();
    signal_columns();
    signal_inputs();
    signal_partly_known();
    signal_table_of_steps();
    signal_quoted();
    signal_pictures();
    signal_sources();
    signal_errors();
    signal_bad_images();
    signal_without_memory();
    signal_many_rows();
    signal_unscored();
    signal_steps_go_on();
    signal_drops(signal_gestures, "hidden=64 layers=1 pooling=max,mean");
    signal_drops(signal_steps, "hidden=64 layers=1 target_kind=steps");
    signal_drops(signal_steps, "hidden=64 layers=1 target_kind=steps cell=lstm encoder=rcrn");
    signal_kinds();
    signal_network();
    signal_pixels();
    signal_streams();
    signal_refused();
    signal_memory();
    signal_same_bytes(signal_gestures, "hidden=19 embedding=2 cell=icarnn pooling=max,mean");
    signal_same_bytes(signal_numbers, "hidden=19 embedding=2 cell=lstm directions=2");
    signal_same_bytes(signal_steps, "hidden=19 embedding=2 cell=gru");
    signal_kept();
    signal_best();
    return test_end();
}
