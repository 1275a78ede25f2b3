/* Cross-validation: parts of data sets, which group is in which fold, what a fold's model has seen,
   and the numbers that are told of all folds. */

#include "test.h"

/* --- parts of a data set ---------------------------------------------------------------------- */

static int same_text(const carnn_dataset *a, uint32_t i, const carnn_dataset *b, uint32_t j) {
    if (i == CARNN__NO_INDEX || j == CARNN__NO_INDEX) return i == j;
    return i == j && !strcmp(carnn__text(a, i).at, carnn__text(b, j).at);
}

/* The same data set, but for the lines of the file. */
static void check_same(const carnn_dataset *a, const carnn_dataset *b) {
    size_t i, same = 1;
    CHECK_INT(a->text_count, b->text_count);
    CHECK_INT(a->member_count, b->member_count);
    CHECK_INT(a->item_count, b->item_count);
    CHECK_INT(a->group_count, b->group_count);
    CHECK_INT(a->choice_count, b->choice_count);
    CHECK_INT(a->spoken, b->spoken);
    if (a->member_count != b->member_count || a->item_count != b->item_count ||
        a->choice_count != b->choice_count)
        return;
    for (i = 0; i < a->member_count; i++)
        same &= same_text(a, a->members[i].text, b, b->members[i].text) &&
                a->members[i].role == b->members[i].role;
    for (i = 0; i < a->item_count; i++) {
        const carnn__item *x = &a->items[i], *y = &b->items[i];
        same &= x->first == y->first && x->count == y->count && x->group == y->group &&
                same_text(a, x->target, b, y->target) && !(fabsf(x->value - y->value) > 0.0f) &&
                !strcmp(carnn__dataset_origin(a, i), carnn__dataset_origin(b, i));
    }
    for (i = 0; i < a->choice_count; i++)
        same &= same_text(a, a->choices[i], b, b->choices[i]) &&
                !strcmp(a->shown + a->shown_at[i], b->shown + b->shown_at[i]);
    CHECK(same);
}

/* Groups as they stand in a file, those whose number is `wanted`, or all (-1). */
static carnn_dataset *load_groups(const char *task, const char *const *group,
                                  const uint32_t *number, long wanted) {
    char text[4096] = "";
    size_t i;
    for (i = 0; group[i]; i++)
        if (wanted < 0 || (long)number[i] == wanted) strcat(text, group[i]);
    return test_read(task, text);
}

static void check_subset(const char *task, const char *const *group, const uint32_t *number) {
    carnn_dataset *all = load_groups(task, group, number, -1);
    uint32_t which;
    for (which = 0; which < 2; which++) {
        carnn_dataset *loaded = load_groups(task, group, number, (long)which), *subset;
        CHECK_INT(carnn__dataset_subset(&subset, all, number, which, NULL), CARNN_OK);
        check_same(loaded, subset);
        carnn_dataset_free(loaded);
        carnn_dataset_free(subset);
    }
    carnn_dataset_free(all);
}

static const char *const labelled[] = {
    "x\ta b a b\n", "y\tb a c c d\n", "x\tb a\n", "z\td b a\n", "y\ta c b b c\n", "x\tb a e\n",
    "y\tc c\n",     "x\tb b a\n",     "y\tc d c\n", "x\ta\n",   "y\td c c\n",     "x\ta b\n", NULL};
static const char *const fold_pairs[] = {
    "a b\tb a\t1\na b\te\t0\na b\tc e b\t0\n", "d c\td\t1\nd c\ta d b\t0\n",
    "b b\tb\t0\nb b\ta b\t1\n", "c\tc a\t1\nc\te e\t0\n", NULL};

static const char *const documents[] = {
    "a b c\tq\nb b\ts\nc\tq\n\n", "d a\tq\n\n", "a e\tnone\nb a d\tq\n\n", "e e\ts\nb\tt\n\n",
    "a c\tt\nd b a\tq\n\n", NULL};
static const char *const transcripts[] = {
    "A|Okay.|x\nB|So, what?|y\n\n", "A|Yes!|x\n\n", NULL};
static const char *const fold_dialogs[] = {
    "1 the fact\n2 hi\thello\n3 more \tbye\n\n", "1 hi\tno\tin other words\n2 why\tbye\n\n",
    "1 bye\tbye\n2 hi\thello\n\n", "1 who\tno\n\n", "1 a last fact\n2 hi\tno\n3 end\tbye\n\n",
    NULL};

/* A list of candidates is that of a part of the dialogs, too; its texts are "hello" and "no".
   Without one a part has its own replies. */
static void test_subset_of_dialogs(void) {
    static const uint32_t number[] = {1, 0, 0, 1, 0};
    static const char list[] = "hello\nno\n";
    carnn_source candidates = test_source("list", list, strlen(list)), source;
    carnn_dataset *all, *subset;
    carnn_dataset_desc desc;
    char text[1024] = "";
    size_t i;
    for (i = 0; fold_dialogs[i]; i++) strcat(text, fold_dialogs[i]);
    source = test_source("dialogs", text, strlen(text));
    test_describe(&desc, "dialog", &source);
    desc.candidates = &candidates;
    CHECK_INT(carnn_dataset_load(&all, &desc, NULL), CARNN_OK);
    CHECK_INT(carnn__dataset_subset(&subset, all, number, 1, NULL), CARNN_OK);
    CHECK_INT(carnn_dataset_groups(subset), 2);
    CHECK_INT(carnn_dataset_examples(subset), 3);
    CHECK_INT(subset->member_count, 7);
    CHECK_INT(carnn_dataset_text_count(subset, 1), 4);
    CHECK_TEXT(carnn_dataset_text(subset, 1, 0), "the fact");
    CHECK_TEXT(carnn_dataset_text(subset, 1, 3), "more");
    CHECK_TEXT(carnn_dataset_target(subset, 2), "no");
    CHECK_INT(subset->choice_count, all->choice_count);
    CHECK(!memcmp(subset->shown, all->shown, all->shown_at[all->choice_count]));
    CHECK_INT(subset->text_count, 7); /* two candidates, five other texts */
    carnn_dataset_free(subset);
    carnn_dataset_free(all);
    check_subset("dialog", fold_dialogs, number);
}

static void test_subsets(void) {
    static const uint32_t number[] = {1, 0, 0, 1, 0, 1, 1, 1, 0, 0, 1, 0};
    check_subset("classify", labelled, number);
    check_subset("answer", fold_pairs, number);
    check_subset("lm", documents, number);
    check_subset("lm", transcripts, number);
    test_subset_of_dialogs();
}

/* A file with a group that has no item that is kept, between others. */
static void test_left_out(void) {
    static const char text[] = "n\tn\t0\na\tb\t1\na\tc\t0\nm\tm\t0\nd\te\t1\nd\tf\t0\no\to\t0\n";
    static const uint32_t number[] = {0, 1};
    carnn_dataset *all = test_data("answer", text, sizeof text - 1, 1, 0), *subset, *both;
    carnn_source sources[2];
    carnn_dataset_desc desc;
    CHECK_INT(carnn_dataset_left_out(all), 3);
    sources[0] = sources[1] = test_source("data", text, sizeof text - 1);
    memset(&desc, 0, sizeof desc);
    desc.task = "answer";
    desc.sources = sources;
    desc.source_count = 2;
    desc.clean = 1;
    CHECK_INT(carnn_dataset_load(&both, &desc, NULL), CARNN_OK);
    CHECK_INT(carnn_dataset_left_out(both), 6);
    CHECK_INT(carnn_dataset_groups(both), 4);
    carnn_dataset_free(both);
    CHECK_INT(carnn_dataset_examples(subset = test_data("answer", "", 0, 1, 1)), 0);
    carnn_dataset_free(subset);
    CHECK_INT(carnn__dataset_subset(&subset, all, number, 1, NULL), CARNN_OK);
    CHECK_INT(carnn_dataset_groups(subset), 1);
    CHECK_INT(carnn_dataset_examples(subset), 2);
    CHECK_INT(subset->text_count, 3);
    CHECK_TEXT(carnn_dataset_text(subset, 0, 0), "d");
    CHECK_INT(subset->items[0].line, 5); /* for errors */
    carnn_dataset_free(subset);
    CHECK_INT(carnn__dataset_subset(&subset, all, number, 0, NULL), CARNN_OK);
    CHECK_INT(subset->text_count, 3); /* without the group behind it, which is left out */
    carnn_dataset_free(subset);
    carnn_dataset_free(all);
}

/* What the sum of a data set for checkpoints is of. */
static void test_fold_fingerprint(void) {
    carnn_dataset *data = load_groups("classify", labelled, NULL, -1);
    uint64_t sum = carnn__fingerprint(data);
    size_t fields = offsetof(carnn__item, line);
    CHECK(sum != 0);
    memset((char *)data->items + fields, 0xAA, sizeof(carnn__item) - fields); /* and padding */
    CHECK(carnn__fingerprint(data) == sum);
#define CHANGES(place)                                                                             \
    (place)++;                                                                                     \
    CHECK(carnn__fingerprint(data) != sum);                                                        \
    (place)--;                                                                                     \
    CHECK(carnn__fingerprint(data) == sum)
    CHANGES(data->items[3].first);
    CHANGES(data->items[3].count);
    CHANGES(data->items[3].group);
    CHANGES(data->items[3].target);
    CHANGES(data->items[3].value);
    CHANGES(data->members[1].role);
    CHANGES(data->members[1].text);
    CHANGES(data->choices[1]);
    CHANGES(data->shown[2]);
    CHANGES(data->bytes[4]);
    CHANGES(data->spoken);
#undef CHANGES
    carnn_dataset_free(data);
}

/* --- which group is in which fold ------------------------------------------------------------- */

#define GROUPS 23

static void check_parts(size_t count, uint64_t seed) {
    static uint32_t fold[GROUPS], part[GROUPS], order[GROUPS];
    carnn_folds_desc desc;
    carnn__cross_validation v;
    size_t scored[GROUPS] = {0}, i, f;
    memset(&desc, 0, sizeof desc);
    memset(&v, 0, sizeof v);
    desc.count = (int64_t)count;
    v.desc = &desc;
    v.model.seed = seed;
    v.groups = GROUPS;
    v.fold = fold;
    v.part = part;
    v.order = order;
    CHECK_INT(carnn__cross_draw(&v), CARNN_OK);
    CHECK_INT(v.count, count);
    CHECK_INT(carnn__cross_check(&v), CARNN_OK);
    for (f = 0; f < count; f++) {
        size_t size[3] = {0};
        carnn__cross_part(&v, f);
        for (i = 0; i < GROUPS; i++) {
            size[part[i]]++;
            scored[i] += part[i] == CARNN__FOLD_TESTS;
        }
        CHECK(size[CARNN__FOLD_TESTS] == GROUPS / count ||
              size[CARNN__FOLD_TESTS] == GROUPS / count + 1);
        CHECK_INT(size[CARNN__FOLD_VALIDATES],
                  carnn__max((GROUPS - size[CARNN__FOLD_TESTS]) / 10, 1));
    }
    for (i = 0; i < GROUPS; i++) CHECK_INT(scored[i], 1);
}

/* Groups are dealt by the model's seed. */
static void check_dealt(void) {
    static uint32_t fold[3][GROUPS], order[GROUPS];
    carnn_folds_desc desc;
    size_t i;
    memset(&desc, 0, sizeof desc);
    desc.count = 5;
    for (i = 0; i < 3; i++) {
        carnn__cross_validation v;
        memset(&v, 0, sizeof v);
        v.desc = &desc;
        v.model.seed = i < 2 ? 1 : 2;
        v.groups = GROUPS;
        v.fold = fold[i];
        v.order = order;
        CHECK_INT(carnn__cross_draw(&v), CARNN_OK);
    }
    CHECK(!memcmp(fold[0], fold[1], sizeof *fold));
    CHECK(memcmp(fold[0], fold[2], sizeof *fold) != 0);
}

/* --- all folds -------------------------------------------------------------------------------- */

typedef struct folds_seen {
    size_t folds, epochs, count; /* count: as it was told */
    carnn_scores scores[16];
} folds_seen;

static void see_fold(size_t number, size_t count, const carnn_scores *scores, void *user) {
    folds_seen *s = (folds_seen *)user;
    CHECK_INT(number, s->folds);
    CHECK(count <= 16 && number < count);
    CHECK(!number || count == s->count);
    s->count = count;
    s->scores[s->folds++] = *scores;
}

static int see_epoch(const carnn_progress *p, void *user) {
    if (p->epoch_ended) ((folds_seen *)user)->epochs++;
    return 0;
}

static int stop_training(const carnn_progress *p, void *user) {
    (void)p;
    (void)user;
    return 1;
}

static carnn_model_desc fold_desc(const char *task) {
    carnn_model_desc m;
    memset(&m, 0, sizeof m);
    m.task = task;
    m.hidden = 6;
    if (strcmp(task, "signal")) m.embedding = strcmp(task, "dialog") ? 5 : 6; /* else its columns */
    m.seed = 7;
    return m;
}

static carnn_train_desc short_training(folds_seen *s, int64_t threads) {
    carnn_train_desc t;
    memset(&t, 0, sizeof t);
    t.epochs = 3;
    t.batch = 2;
    t.lr = 0.02;
    t.threads = threads;
    t.progress = see_epoch;
    t.user = s;
    return t;
}

/* Cross-validation of a small model: `by` are lines, or NULL. */
static carnn_status cross(const carnn_dataset *data, int64_t count, const char *by, int64_t threads,
                          folds_seen *s, carnn_scores *mean, carnn_scores *deviation,
                          carnn_error *error) {
    carnn_source source = test_source("folds.txt", by, by ? strlen(by) : 0);
    carnn_folds_desc folds;
    carnn_model_desc model = fold_desc(data->task);
    carnn_train_desc train = short_training(s, threads);
    memset(&folds, 0, sizeof folds);
    memset(s, 0, sizeof *s);
    memset(error, 0, sizeof *error);
    folds.count = count;
    folds.by = by ? &source : NULL;
    folds.fold = see_fold;
    folds.user = s;
    return carnn_cross_validate(&model, &train, data, &folds, mean, deviation, error);
}

/* Mean and deviation by their definitions, of the loss (name NULL) or of a metric, over the folds
   that have it; returns how many. */
static size_t check_mean(const folds_seen *s, double mean, double deviation, const char *name) {
    double sum = 0.0, squares = 0.0, x[16];
    size_t i, k, n = 0;
    for (i = 0; i < s->folds; i++) {
        if (!name) x[n++] = s->scores[i].loss;
        for (k = 0; name && k < s->scores[i].count; k++)
            if (!strcmp(s->scores[i].metric[k].name, name)) x[n++] = s->scores[i].metric[k].value;
    }
    for (i = 0; i < n; i++) sum += x[i];
    for (i = 0; i < n; i++) squares += pow(x[i] - sum / (double)n, 2.0);
    CHECK_NEAR(mean, sum / (double)n, 1e-12);
    if (n > 1) CHECK_NEAR(deviation, sqrt(squares / (double)(n - 1)), 1e-12);
    else CHECK(deviation != deviation);
    return n;
}

static void check_task(const char *task, const char *const *group, int64_t count) {
    carnn_dataset *data = load_groups(task, group, NULL, -1);
    carnn_scores mean, deviation, again, unused;
    static folds_seen s;
    carnn_error error;
    double seconds = 0.0;
    size_t i, k, examples = 0, tokens = 0;
    CHECK_INT(cross(data, count, NULL, 1, &s, &mean, &deviation, &error), CARNN_OK);
    CHECK_INT(s.folds, count);
    CHECK_INT(s.count, count);
    CHECK_INT(s.epochs, 3 * count);
    for (i = 0; i < s.folds; i++) {
        examples += s.scores[i].examples;
        tokens += s.scores[i].tokens;
        seconds += s.scores[i].seconds;
        for (k = 0; k < s.scores[i].count; k++)
            CHECK(carnn__cross_number(&mean, s.scores[i].metric[k].name) != NULL);
    }
    CHECK_INT(mean.tokens, tokens);
    CHECK_NEAR(mean.seconds, seconds, 1e-9);
    CHECK_INT(examples, carnn_dataset_examples(data));
    CHECK_INT(mean.examples, examples);
    CHECK_INT(check_mean(&s, mean.loss, deviation.loss, NULL), count);
    for (i = 0; i < mean.count; i++) {
        size_t n = check_mean(&s, mean.metric[i].value, deviation.metric[i].value,
                              mean.metric[i].name);
        CHECK(n == s.folds || (!strcmp(mean.metric[i].name, "label_accuracy") && n));
        CHECK_TEXT(mean.metric[i].name, deviation.metric[i].name);
    }
    CHECK_INT(cross(data, count, NULL, 2, &s, &again, &unused, &error), CARNN_OK);
    CHECK(!memcmp(&mean.loss, &again.loss, sizeof mean.loss));
    CHECK(!memcmp(&deviation.loss, &unused.loss, sizeof mean.loss));
    carnn_dataset_free(data);
}

/* A fold's model is one that is trained by hand on a file of the fold's training lines, with the
   epoch chosen on a file of its validation lines. */
static void test_by_hand(void) {
    static const char by[] = "one\ntwo\none\ntwo\ntwo\none\none\ntwo\none\ntwo\none\ntwo\n";
    static const uint32_t fold[] = {0, 1, 0, 1, 1, 0, 0, 1, 0, 1, 0, 1};
    carnn_dataset *data = load_groups("classify", labelled, NULL, -1), *part[3];
    carnn_model_desc desc = fold_desc("classify");
    carnn_train_desc train;
    carnn_scores mean, deviation;
    static folds_seen s, unused;
    carnn_error error;
    uint32_t role[12], order[12], i;
    size_t f, n;
    CHECK_INT(cross(data, 0, by, 1, &s, &mean, &deviation, &error), CARNN_OK);
    CHECK_INT(s.folds, 2);
    train = short_training(&unused, 1);
    for (f = 0; f < 2; f++) {
        carnn_model *model;
        for (n = 0, i = 0; i < 12; i++) {
            role[i] = fold[i] == f ? CARNN__FOLD_TESTS : CARNN__FOLD_TRAINS;
            if (fold[i] != f) order[n++] = i;
        }
        carnn__shuffle(carnn__stream(7 ^ CARNN__FOLD_STREAM, f + 1), order, n);
        role[order[0]] = CARNN__FOLD_VALIDATES;
        for (i = 0; i < 3; i++) part[i] = load_groups("classify", labelled, role, (long)i);
        CHECK_INT(carnn_model_create(&model, &desc, part[0], &error), CARNN_OK);
        CHECK_INT(carnn_train(model, part[0], part[1], &train, &error), CARNN_OK);
        CHECK(test_scores(model, part[2]).loss == s.scores[f].loss); /* bit by bit */
        carnn_model_free(model);
        for (i = 0; i < 3; i++) carnn_dataset_free(part[i]);
    }
    carnn_dataset_free(data);
}

/* All of a class are in one fold: its model cannot know it. */
static void test_unknown_class(void) {
    static const char by[] = "0\n0\n0\nz\n0\n0\n0\n0\n0\n0\n0\n0\n";
    carnn_dataset *data = load_groups("classify", labelled, NULL, -1);
    carnn_scores mean, deviation;
    static folds_seen s;
    carnn_error error;
    CHECK_INT(cross(data, 0, by, 1, &s, &mean, &deviation, &error), CARNN_ERR_ARGUMENT);
    CHECK(strstr(error.message, "fold 1 leaves 1 group") != NULL);
    CHECK_INT(cross(data, 0, "z\n0\n0\n0\n0\n0\n0\n0\n0\n0\n0\n0\n", 1, &s, &mean, &deviation,
                    &error), CARNN_ERR_ARGUMENT);
    CHECK(strstr(error.message, "fold 2 leaves 1 group") != NULL);
    CHECK_INT(s.folds, 0); /* none was trained in vain */
    CHECK_INT(cross(data, 0, "0\n0\n0\nz\n1\n1\n1\n0\n0\n0\n0\n0\n", 1, &s, &mean, &deviation,
                    &error), CARNN_OK);
    CHECK_INT(s.folds, 3); /* in the order of their names */
    CHECK_INT(s.scores[0].examples, 8);
    CHECK_INT(s.scores[1].examples, 1);
    CHECK_INT(s.scores[2].examples, 3);
    CHECK_NEAR(s.scores[1].metric[0].value, 0.0, 0.0);
    CHECK_INT(s.scores[1].unanswerable, 1);
    CHECK_INT(mean.unanswerable, s.scores[0].unanswerable + 1 + s.scores[2].unanswerable);
    CHECK_INT(deviation.unanswerable, 0);
    CHECK_NEAR(mean.loss, (s.scores[0].loss + s.scores[2].loss) / 2.0, 1e-12); /* one has none */
    CHECK_NEAR(deviation.loss, fabs(s.scores[0].loss - s.scores[2].loss) / sqrt(2.0), 1e-12);
    CHECK_NEAR(mean.unknown,
               (s.scores[0].unknown + s.scores[1].unknown + s.scores[2].unknown) / 3.0,
               1e-12);
    carnn_dataset_free(data);
    data = test_read("pair", "x\ta\tb\nx\tb\tc\ny\tc\ta\ny\td\te\n"); /* pairs need two classes */
    CHECK_INT(cross(data, 0, "1\n1\n2\n2\n", 1, &s, &mean, &deviation, &error), CARNN_ERR_DATA);
    CHECK(strstr(error.message, "expected a second class to the end, found \"y\" (fold 1)"));
    carnn_dataset_free(data);
}

/* Three folds, of which the first does not have the metric: the mean is that of the others. */
static void first_fold_lacks(const char *metric, const char *task, const char *text,
                             const char *groups, folds_seen *s, carnn_scores *mean) {
    carnn_dataset *data = test_read(task, text);
    carnn_scores deviation;
    carnn_error error;
    CHECK_INT(cross(data, 0, groups, 1, s, mean, &deviation, &error), CARNN_OK);
    CHECK_INT(s->folds, 3);
    CHECK_NEAR(test_metric(&s->scores[0], metric), -1.0, 0.0);
    CHECK(test_metric(&s->scores[1], metric) >= 0.0 && test_metric(&s->scores[2], metric) >= 0.0);
    CHECK_NEAR(test_metric(mean, metric), (test_metric(&s->scores[1], metric) +
                                           test_metric(&s->scores[2], metric)) / 2.0, 1e-12);
    carnn_dataset_free(data);
}

static void test_labels_of_some_folds(void) {
    static folds_seen s;
    carnn_scores mean;
    first_fold_lacks("label_accuracy", "lm", "a b\nb\n=\na\tx\nb a\ty\n=\nb\ty\na\tx\n"
                     "=\na b\tx\nb\ty\n=\nb a\ty\na\tx\n", "0\n1\n2\n1\n2\n", &s, &mean);
}

/* Without a right sentence there are no metrics, which are not 0 for the mean. */
static void test_folds_without_answers(void) {
    static folds_seen s;
    carnn_scores mean;
    first_fold_lacks("map", "answer", "a\tb\t0\na\tc\t0\n" "b\ta b\t1\nb\tc\t0\n"
                     "c\tb c\t0\nc\ta\t1\n" "d\td\t1\nd\tc\t0\n", "0\n1\n2\n1\n", &s, &mean);
    CHECK_INT(s.scores[0].count, 0);
    CHECK(test_metric(&s.scores[1], "map") > 0.0 && test_metric(&s.scores[2], "map") > 0.0);
    CHECK_INT(mean.unanswerable, 2);
}

/* Nor is the accuracy of rows without a class, of which none is scored. */
static void test_folds_without_classes(void) {
    static folds_seen s;
    carnn_scores mean;
    first_fold_lacks("accuracy", "signal", "- -\t1\t2\n" "x y\t3\t4\n" "y y\t0\t2\n" "x x\t3\t4\n"
                     "y x\t0\t2\n", "0\n1\n2\n1\n2\n", &s, &mean);
    CHECK_INT(s.scores[0].examples, 0);
}

/* Folds go on from a model: its task and its seed are theirs. */
static void test_folds_from(void) {
    carnn_dataset *data = load_groups("classify", labelled, NULL, -1);
    carnn_model *base = test_model("classify", "cell=gru", NULL, data);
    carnn_model_desc model;
    carnn_train_desc train = short_training(NULL, 1);
    carnn_folds_desc folds;
    carnn_scores mean[2], deviation;
    carnn_error error;
    int i;
    train.progress = NULL;
    memset(&folds, 0, sizeof folds);
    folds.count = 3;
    base->desc.seed = 5;
    for (i = 0; i < 2; i++) {
        memset(&model, 0, sizeof model);
        model.from = base;
        if (i) model.seed = 5, model.task = "classify";
        CHECK_INT(carnn_cross_validate(&model, &train, data, &folds, &mean[i], &deviation, &error),
                  CARNN_OK);
    }
    CHECK(mean[0].loss == mean[1].loss);
    model.task = "dialog";
    CHECK_INT(carnn_cross_validate(&model, &train, data, &folds, mean, &deviation, &error),
              CARNN_ERR_ARGUMENT);
    carnn_model_free(base);
    carnn_dataset_free(data);
}

/* Groups without an example, such as a fact at the end of a file, are in no fold. */
static void test_folds_of_facts(void) {
    static const char text[] = "1 hi\thello\n2 no\tbye\n\n1 ann likes tea\n";
    carnn_source source[4];
    carnn_dataset_desc desc;
    carnn_dataset *data;
    carnn_scores mean, deviation;
    static folds_seen s;
    carnn_error error;
    size_t i;
    for (i = 0; i < 4; i++) source[i] = test_source("facts.txt", text, sizeof text - 1);
    memset(&desc, 0, sizeof desc);
    desc.task = "dialog";
    desc.sources = source;
    desc.source_count = 4;
    CHECK_INT(carnn_dataset_load(&data, &desc, &error), CARNN_OK);
    CHECK_INT(carnn_dataset_groups(data), 8);
    CHECK_INT(cross(data, 4, NULL, 1, &s, &mean, &deviation, &error), CARNN_OK);
    CHECK_INT(mean.examples, 8);
    CHECK_INT(cross(data, 5, NULL, 1, &s, &mean, &deviation, &error), CARNN_ERR_ARGUMENT);
    CHECK(strstr(error.message, "from 2 to 4 folds") != NULL);
    CHECK_INT(cross(data, 0, "a\nz\nb\nz\nc\nz\nd\nz\n", 1, &s, &mean, &deviation, &error),
              CARNN_OK);
    CHECK_INT(mean.examples, 8);
    CHECK_INT(s.folds, 4); /* z is the name of no fold */
    carnn_dataset_free(data);
}

/* One row of all has a target that is no whole number: all folds learn numbers, also those that do
   not have it. */
static void test_kind_of_all(void) {
    static const char *const rows[] = {"1\t0.5\n", "2\t1\n", "1\t0.1\n", "2.5\t2\n", "2\t1.1\n",
                                       "1\t0.3\n", "2\t0.9\n", "1\t0.2\n", NULL};
    carnn_dataset *data = load_groups("signal", rows, NULL, -1);
    carnn_scores mean, deviation;
    static folds_seen s;
    carnn_error error;
    size_t i;
    CHECK_INT(cross(data, 4, NULL, 1, &s, &mean, &deviation, &error), CARNN_OK);
    for (i = 0; i < s.folds; i++) CHECK_TEXT(s.scores[i].metric[0].name, "mse");
    CHECK_INT(check_mean(&s, mean.metric[0].value, deviation.metric[0].value, "mse"), 4);
    carnn_dataset_free(data);
}

/* --- errors ----------------------------------------------------------------------------------- */

static void check_error(const carnn_dataset *data, int64_t count, const char *by,
                        carnn_status status, const char *words) {
    carnn_scores mean, deviation;
    static folds_seen s;
    carnn_error error;
    CHECK_INT(cross(data, count, by, 1, &s, &mean, &deviation, &error), status);
    if (test_fails(strstr(error.message, words) != NULL, words, __FILE__, __LINE__))
        printf(" is not in \"%s\"\n", error.message);
    CHECK_INT(s.folds, 0);
}

static void test_errors(void) {
    static const uint32_t first[] = {0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    carnn_dataset *data = load_groups("answer", fold_pairs, NULL, -1);
    carnn_dataset *one = load_groups("answer", fold_pairs, first, 0);
    carnn_dataset *nothing = test_data("answer", "", 0, 0, 1);
    carnn_model_desc model = fold_desc("answer");
    carnn_train_desc train = short_training(NULL, 1);
    carnn_folds_desc folds;
    carnn_source missing = test_source("no/such/file", NULL, 0);
    carnn_scores mean, deviation;
    carnn_error error;
    check_error(one, 2, NULL, CARNN_ERR_ARGUMENT, "three groups of data or more");
    carnn_dataset_free(one);
    check_error(nothing, 0, "", CARNN_ERR_DATA, "two folds or more, found 0");
    carnn_dataset_free(nothing);
    check_error(data, 0, NULL, CARNN_ERR_ARGUMENT, "from 2 to 4 folds");
    check_error(data, 1, NULL, CARNN_ERR_ARGUMENT, "found 1");
    check_error(data, 5, NULL, CARNN_ERR_ARGUMENT, "found 5");
    check_error(data, 0, "a\nb\na\n", CARNN_ERR_DATA, "folds.txt: expected 4 lines");
    check_error(data, 0, "a\nb\na\nb\na\n", CARNN_ERR_DATA, "found 5");
    check_error(data, 0, "", CARNN_ERR_DATA, "found 0");
    check_error(data, 0, "a\na\n a \na", CARNN_ERR_DATA, "two folds or more, found 1");
    check_error(data, 0, "a\n\nb\nb\n", CARNN_ERR_DATA, "folds.txt:2: expected the name of a fold");
    memset(&folds, 0, sizeof folds);
    folds.by = &missing;
    CHECK_INT(carnn_cross_validate(&model, &train, data, &folds, &mean, &deviation, &error),
              CARNN_ERR_IO);
    folds.by = NULL;
    folds.count = 2;
    train.progress = stop_training;
    mean.examples = deviation.examples = 7;
    CHECK_INT(carnn_cross_validate(&model, &train, data, &folds, &mean, &deviation, &error),
              CARNN_ERR_STOPPED);
    CHECK(mean.examples == 7 && deviation.examples == 7); /* are set by a success alone */
    train.checkpoint = "a";
    CHECK_INT(carnn_cross_validate(&model, &train, data, &folds, &mean, &deviation, &error),
              CARNN_ERR_ARGUMENT);
    train.checkpoint = NULL;
    train.resume = 1;
    CHECK_INT(carnn_cross_validate(&model, &train, data, &folds, &mean, &deviation, &error),
              CARNN_ERR_ARGUMENT);
    train.resume = 0;
    model.task = "classify";
    CHECK_INT(carnn_cross_validate(&model, &train, data, &folds, &mean, &deviation, &error),
              CARNN_ERR_ARGUMENT);
    carnn_dataset_free(data);
}

/* Every allocation may fail. */
static void test_memory_of_folds(void) {
    static const char text[] = "x\ta b\ny\tb a c\nx\tb a\nz\td b\n";
    test_memory memory = {0, 0, 0};
    carnn_allocator a = test_allocator(&memory);
    carnn_source source = test_source("data", text, sizeof text - 1);
    carnn_source by = test_source("by", "a\nb\na\nb\n", 8);
    carnn_dataset_desc desc;
    carnn_dataset *data;
    carnn_model_desc model = fold_desc("classify");
    carnn_train_desc train;
    carnn_folds_desc folds;
    carnn_scores mean, deviation;
    carnn_status status = CARNN_ERR_MEMORY;
    long fail;
    memset(&train, 0, sizeof train);
    memset(&desc, 0, sizeof desc);
    memset(&folds, 0, sizeof folds);
    desc.task = "classify";
    desc.sources = &source;
    desc.source_count = 1;
    desc.allocator = model.allocator = &a;
    train.epochs = train.threads = 1;
    folds.by = &by;
    CHECK_INT(carnn_dataset_load(&data, &desc, NULL), CARNN_OK);
    for (fail = 1; status == CARNN_ERR_MEMORY; fail += TEST_SANITIZED ? 3 : 1) {
        long blocks = memory.blocks;
        memory.calls = 0;
        memory.fail_at = fail;
        status = carnn_cross_validate(&model, &train, data, &folds, &mean, &deviation, NULL);
        if (test_fails(memory.blocks == blocks, "blocks are freed", __FILE__, __LINE__)) break;
    }
    CHECK_INT(status, CARNN_OK);
    CHECK(fail > 100);
    memory.fail_at = 0;
    carnn_dataset_free(data);
    CHECK_INT(memory.blocks, 0);
}

int main(void) {
    size_t count;
    test_subsets();
    test_left_out();
    test_fold_fingerprint();
    for (count = 2; count <= GROUPS; count += 3) check_parts(count, count);
    check_dealt();
    check_task("classify", labelled, 4);
    check_task("answer", fold_pairs, 2);
    check_task("lm", documents, 5);
    check_task("dialog", fold_dialogs, 3);
    test_by_hand();
    test_unknown_class();
    test_labels_of_some_folds();
    test_folds_without_answers();
    test_folds_without_classes();
    test_folds_from();
    test_folds_of_facts();
    test_kind_of_all();
    test_errors();
    test_memory_of_folds();
    return test_end();
}
