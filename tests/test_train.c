/* @@TRAIN and the dialog head: what training learns, that nothing but the seed decides what comes
   out, that a stopped run goes on as if it had not been stopped, and what happens when time, memory
   or the numbers run out. */

#include "test.h"

#define CHECKPOINT "test_train.resume"
#define MODEL_FILE "test_train.gguf"

/* --- a small world ---------------------------------------------------------------------------- */

static const char dialogs[] =
    "1 hi\thello what can i do for you\n2 thai food please\twhere should it be\n"
    "3 in the north\tapi_call thai north\n4 thai_house R_phone 12\n5 thai_house R_area north\n"
    "6 <SILENCE>\thow about thai_house\n7 the phone number\there it is\n\n"
    "1 hi\thello what can i do for you\n2 indian food please\twhere should it be\n"
    "3 in the south\tapi_call indian south\n4 spice R_phone 7\n5 spice R_area south\n"
    "6 <SILENCE>\thow about spice\n7 no\tis there anything else\n8 bye\tyou are welcome\n\n"
    "1 good day\thello what can i do for you\n2 in the south\twhat kind of food\n"
    "3 thai\tapi_call thai south\n4 <SILENCE>\tthere is none\n5 bye\tyou are welcome\n\n"
    "1 good day\thello what can i do for you\n2 in the north\twhat kind of food\n"
    "3 indian\tapi_call indian north\n4 <SILENCE>\tthere is none\n5 thanks\tyou are welcome\n\n"
    "1 hi\thello what can i do for you\n2 thanks\tyou are welcome\n";

/* Nearly the same, for validation. */
static const char others[] =
    "1 hi\thello what can i do for you\n2 indian food\twhere should it be\n"
    "3 in the north\tapi_call indian north\n4 spice R_area north\n5 <SILENCE>\thow about spice\n"
    "6 thanks\tyou are welcome\n\n"
    "1 good day\thello what can i do for you\n2 thai in the north\tapi_call thai north\n"
    "3 <SILENCE>\tthere is none\n4 the phone number\there it is\n5 no\tis there anything else\n";

static carnn_dataset *load_dialog_text(const char *text) {
    return test_read("dialog", text);
}

static carnn_model_desc model_desc(const char *cell, int64_t hidden) {
    carnn_model_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.task = "dialog";
    desc.cell = cell;
    desc.hidden = hidden;
    desc.seed = 3;
    return desc;
}

static carnn_model *new_model(const char *cell, int64_t hidden, const carnn_dataset *data) {
    carnn_model_desc desc = model_desc(cell, hidden);
    carnn_model *model = NULL;
    CHECK_INT(carnn_model_create(&model, &desc, data, NULL), CARNN_OK);
    return model;
}

static carnn_train_desc train_desc(int64_t epochs) {
    carnn_train_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.epochs = epochs;
    desc.batch = 5;
    desc.lr = 0.01;
    desc.dropout = 0.2;
    desc.smoothing = 0.05;
    desc.weight_decay = 0.01;
    desc.average = 0.6;
    desc.lr_decay = 0.95;
    desc.patience = CARNN_NONE;
    desc.threads = 1;
    return desc;
}

/* A fingerprint of the model's file. */
static uint64_t model_digest(const carnn_model *model) {
    size_t size = carnn_model_size(model), i;
    unsigned char *bytes = (unsigned char *)malloc(size);
    uint64_t sum = size;
    if (!bytes) abort();
    CHECK_INT(carnn_model_write(model, bytes, size, NULL), CARNN_OK);
    for (i = 0; i < size; i++) sum = (sum ^ bytes[i]) * 0x100000001B3u;
    free(bytes);
    return sum;
}

static double accuracy(const carnn_model *model, const carnn_dataset *data) {
    carnn_scores scores = test_scores(model, data);
    CHECK_TEXT(scores.metric[0].name, "accuracy");
    return scores.metric[0].value;
}

static int all_finite(const carnn_model *model) {
    size_t i;
    for (i = 0; i < model->params.size; i++)
        if (!(fabsf(model->params.value[i]) <= FLT_MAX)) return 0;
    return 1;
}

/* --- learning --------------------------------------------------------------------------------- */

/* Every cell can learn the dialogs by heart, and says so itself. */
static void test_learns(void) {
    carnn_dataset *data = load_dialog_text(dialogs);
    size_t i;
    CHECK_INT(carnn_dataset_examples(data), 23);
    for (i = 0; carnn_cell_name(i); i++) {
        carnn_train_desc train = train_desc(TEST_SANITIZED ? 5 : 150);
        carnn_model *model = new_model(carnn_cell_name(i), 24, data);
        double before = accuracy(model, data);
        train.dropout = train.smoothing = train.weight_decay = CARNN_NONE;
        train.lr = strncmp(carnn_cell_name(i), "lin-", 4) ? 0.02 : 0.005; /* they have no bounds */
        train.lr_decay = 1.0;
        train.patience = 40;
        CHECK_INT(carnn_train(model, data, data, &train, NULL), CARNN_OK);
        if (!TEST_SANITIZED && test_fails(accuracy(model, data) == 1.0 && before < 0.5,
                                          "learnt by heart", __FILE__, __LINE__))
            printf(": not with %s: %g, at first %g\n", carnn_cell_name(i), accuracy(model, data),
                   before);
        CHECK_NEAR(carnn_model_scores(model)->metric[0].value, accuracy(model, data), 0.0);
        CHECK_INT(carnn_model_training(model)->epochs, train.epochs);
        carnn_model_free(model);
    }
    carnn_dataset_free(data);
}

/* The weights after 1, 2, .. steps, averaged here, against a training that averages them. */
static void test_average(void) {
    enum { TIMES = 4 };
    carnn_dataset *data = load_dialog_text(dialogs);
    carnn_train_desc train = train_desc(0);
    double *average = NULL;
    size_t i, step;
    train.batch = 1000; /* an epoch is a step */
    train.lr_end = 1.0;
    for (step = 0; step <= TIMES; step++) {
        carnn_model *model = new_model("icarnn", 6, data);
        const float *w = model->params.value;
        size_t n = model->params.trained;
        double start = (1.0 + (double)step) / (10.0 + (double)step);
        double keep = start < 0.3 ? start : 0.3;
        if (!average) average = (double *)calloc(n, sizeof *average);
        train.epochs = (int64_t)step;
        train.average = CARNN_NONE;
        if (step) CHECK_INT(carnn_train(model, data, NULL, &train, NULL), CARNN_OK);
        for (i = 0; i < n; i++)
            average[i] = step ? keep * average[i] + (1.0 - keep) * (double)w[i] : (double)w[i];
        carnn_model_free(model);
    }
    train.average = 0.3;
    for (step = 0; step < 2; step++) { /* without validation, and as the best of the epochs */
        carnn_model *model = new_model("icarnn", 6, data);
        double worst = 0.0;
        CHECK_INT(carnn_train(model, data, step ? data : NULL, &train, NULL), CARNN_OK);
        for (i = 0; i < model->params.trained; i++)
            worst = test_worse(worst, fabs(average[i] - (double)model->params.value[i]));
        if (!step || model->best_epoch == TIMES) CHECK_NEAR(worst, 0.0, 1e-6);
        carnn_model_free(model);
    }
    free(average);
    carnn_dataset_free(data);
}

/* --- the same bytes --------------------------------------------------------------------------- */

static uint64_t trained_digest(const char *cell, const char *simd, int64_t threads, uint64_t seed,
                               const carnn_dataset *data, const carnn_dataset *valid) {
    carnn_model_desc desc = model_desc(cell, 144); /* enough to be shared among threads */
    carnn_train_desc train = train_desc(2);
    carnn_model *model = NULL;
    uint64_t sum;
    desc.simd = simd;
    desc.seed = seed;
    train.batch = 100;
    train.threads = threads;
    CHECK_INT(carnn_model_create(&model, &desc, data, NULL), CARNN_OK);
    CHECK_INT(carnn_train(model, data, valid, &train, NULL), CARNN_OK);
    sum = model_digest(model);
    carnn_model_free(model);
    return sum;
}

static void test_same_bytes(void) {
    static const char *const cells[] = {"icarnn", "ncarnn", "gru"};
    carnn_dataset *data = load_dialog_text(dialogs), *valid = load_dialog_text(others);
    size_t i, path;
    int64_t threads;
    for (i = 0; i < (TEST_SANITIZED ? 1 : 3); i++) {
        uint64_t first = trained_digest(cells[i], NULL, 1, 3, data, valid);
        const char *name;
        CHECK(first != trained_digest(cells[i], NULL, 1, 4, data, valid));
        for (path = 0; (name = carnn_simd_name(path)) != NULL; path++)
            for (threads = 1; threads <= (path ? 2 : 3); threads++)
                CHECK(first == trained_digest(cells[i], name, threads, 3, data, valid));
    }
    carnn_dataset_free(data);
    carnn_dataset_free(valid);
}

/* The path asked for is the path taken, and an unknown one is refused. */
static void test_simd_choice(void) {
    carnn_dataset *data = load_dialog_text(dialogs);
    carnn_model_desc desc = model_desc("icarnn", 8);
    carnn_model *model = NULL;
    carnn_error error;
    desc.simd = "portable";
    CHECK_INT(carnn_model_create(&model, &desc, data, &error), CARNN_OK);
    CHECK_TEXT(carnn_model_describe(model)->simd, "portable");
    carnn_model_free(model);
    desc.simd = "abacus";
    CHECK_INT(carnn_model_create(&model, &desc, data, &error), CARNN_ERR_ARGUMENT);
    CHECK(strstr(error.message, "\"abacus\"") != NULL);
    CHECK(model == NULL);
    carnn_dataset_free(data);
}

/* Where denormal numbers are taken for 0 training would give other weights; a model can be used. */
static void test_denormals(void) {
#if defined(__x86_64__)
    carnn_dataset *data = load_dialog_text(dialogs);
    carnn_model_desc desc = model_desc("icarnn", 8);
    carnn_train_desc train = train_desc(1);
    carnn_model *model = NULL;
    carnn_session *session = NULL;
    carnn_error error;
    unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040); /* flush to zero, denormals are zero */
    CHECK_INT(carnn_model_create(&model, &desc, data, NULL), CARNN_OK);
    CHECK_INT(carnn_train(model, data, NULL, &train, &error), CARNN_ERR_ARGUMENT);
    CHECK(strstr(error.message, "takes denormal numbers for 0") != NULL);
    CHECK_INT(carnn_session_open(&session, model, NULL, NULL), CARNN_OK);
    _mm_setcsr(before);
    CHECK_INT(carnn_train(model, data, NULL, &train, &error), CARNN_OK);
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
#endif
}

/* --- stopping and going on -------------------------------------------------------------------- */

typedef struct script {
    int64_t stop_epoch; /* 0: never */
    int in_the_middle;  /* of it, else at its end */
    int stopped_inside; /* it was */
} script;

static void wait_a_little(void) {
    double start = carnn__clock();
    while (carnn__clock() - start < 0.12) continue;
}

/* What is reported follows from how far the training is: the learning rate, half a cosine from lr
   to lr_end, times lr_decay after every epoch; the time so far, however often it was saved; and the
   time that is left. Inside an epoch there is no report within 0.1 seconds of the one before. */
typedef struct reports {
    carnn_train_desc train;
    double started, last; /* learning rate */
    size_t inside;        /* epochs */
    double seconds;       /* of the report before */
} reports;

static int watch_reports(const carnn_progress *p, void *user) {
    reports *r = (reports *)user;
    double all = (double)r->train.epochs, whole = (double)(p->epoch - !p->epoch_ended);
    double done = whole + (p->epoch_ended ? 0.0 : p->done);
    double end = r->train.lr_end > 0.0 ? r->train.lr_end : 0.0;
    r->last = r->train.lr * (end + (1.0 - end) * (0.5 + 0.5 * cos(CARNN__PI * done / all))) *
              pow(r->train.lr_decay, (double)(p->epoch - 1));
    CHECK_NEAR(p->lr, r->last, 1e-12);
    CHECK_INT(p->epochs, r->train.epochs);
    CHECK(p->epoch_ended || p->seconds - r->seconds > 0.0999);
    r->seconds = p->seconds;
    CHECK(p->seconds > 0.0 && p->seconds <= carnn__clock() - r->started);
    CHECK_NEAR(p->seconds_left, p->seconds * (all - done) / done, 1e-6);
    CHECK(p->epoch_ended ? p->done == 1.0 : p->done > 0.0 && p->done < 1.0);
    CHECK(!p->scores == !p->epoch_ended && !p->best == (p->epoch == 1 && !p->epoch_ended));
    r->inside += !p->epoch_ended;
    if (p->epoch == 2) wait_a_little();
    return 0;
}

static void test_reports(void) {
    static const double ends[] = {CARNN_NONE, 0.1, 1.0}, decay[] = {1.0, 0.5, 0.9};
    carnn_dataset *data = load_dialog_text(dialogs);
    const carnn_train_desc *used;
    size_t i;
    test_seconds_between_saves = 0.0;
    for (i = 0; i < 3; i++) {
        carnn_model *model = new_model("icarnn", 8, data);
        reports r = {train_desc(8), 0.0, 0.0, 0, -1.0};
        r.train.lr_end = ends[i];
        r.train.lr_decay = decay[i];
        r.train.checkpoint = CHECKPOINT;
        r.train.progress = watch_reports;
        r.train.user = &r;
        r.started = carnn__clock();
        CHECK_INT(carnn_train(model, data, data, &r.train, NULL), CARNN_OK);
        used = carnn_model_training(model); /* without what is the caller's */
        CHECK(!used->checkpoint && !used->progress && !used->user);
        CHECK_NEAR(r.last, r.train.lr * fmax(ends[i], 0.0) * pow(decay[i], 7.0), 1e-12);
        CHECK(r.inside > 0);
        carnn_model_free(model);
    }
    test_seconds_between_saves = 10.0;
    remove(CHECKPOINT);
    carnn_dataset_free(data);
}

/* Of each epoch but the first, how long it is at most by how long it is by its rate. */
typedef struct rates {
    double size, loss; /* what the rate counts in an epoch; of every example */
    double began, least;
} rates;

static int watch_rate(const carnn_progress *p, void *user) {
    rates *r = (rates *)user;
    double elapsed = carnn__clock() - r->began;
    CHECK_NEAR(p->loss, r->loss, 1e-6);
    if (!p->epoch_ended) return 0;
    if (p->epoch > 1) {
        CHECK(p->rate * elapsed >= 0.999 * r->size);
        r->least = fmin(r->least, p->rate * elapsed / r->size);
    }
    r->began = carnn__clock();
    return 0;
}

/* The loss so far is a mean, here of what all examples have with weights that are 0; the rate
   counts examples, of language models words. */
static void test_rate(const char *task, const char *line, double size, double classes) {
    char text[1024] = "";
    carnn_dataset *data;
    carnn_model *model;
    carnn_train_desc train = test_training(20, 1, 1e-30, CARNN_NONE);
    rates r = {0.0, 0.0, 0.0, 1e9};
    size_t i;
    for (i = 0; i < 20; i++) sprintf(text + strlen(text), line, "xy"[i % 2]);
    data = test_read(task, text);
    model = test_model(task, "cell=lstm", NULL, data);
    memset(model->params.value, 0, model->params.size * sizeof(float));
    r.size = 20.0 * size;
    r.loss = log(classes);
    train.weight_decay = CARNN_NONE;
    train.progress = watch_rate;
    train.user = &r;
    CHECK_INT(carnn_train(model, data, NULL, &train, NULL), CARNN_OK);
    CHECK(r.least < 3.0); /* of 19 epochs */
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Reports come every tenth of a second: before the epoch that is to be stopped in the middle, the
   callback takes so long that the next step brings one. */
static int play(const carnn_progress *progress, void *user) {
    script *s = (script *)user;
    if (progress->epoch_ended) {
        if (s->in_the_middle && progress->epoch == s->stop_epoch - 1) wait_a_little();
        return !s->in_the_middle && progress->epoch == s->stop_epoch;
    }
    if (!s->in_the_middle || progress->epoch != s->stop_epoch) return 0;
    return s->stopped_inside = progress->done > 0.0 && progress->done < 1.0;
}

/* Trains with an interruption, if the script has one, and goes on with a new model. */
static uint64_t interrupted(script s, carnn_train_desc train, const carnn_dataset *data,
                            const carnn_dataset *valid) {
    carnn_model *model = new_model("ncarnn", 12, data);
    uint64_t sum;
    train.progress = play;
    train.user = &s;
    train.checkpoint = s.stop_epoch ? CHECKPOINT : NULL;
    remove(CHECKPOINT);
    CHECK_INT(carnn_train(model, data, valid, &train, NULL),
              s.stop_epoch ? CARNN_ERR_STOPPED : CARNN_OK);
    if (s.stop_epoch) {
        carnn_error error = {CARNN_OK, 0, ""};
        CHECK_INT(s.stopped_inside, s.in_the_middle);
        carnn_model_free(model);
        model = new_model("ncarnn", 12, data);
        train.progress = NULL;
        train.resume = 1;
        train.threads = 2; /* which may differ */
        CHECK_INT(carnn_train(model, data, valid, &train, &error), CARNN_OK);
        CHECK_TEXT(error.message, "");
    }
    remove(CHECKPOINT);
    sum = model_digest(model);
    carnn_model_free(model);
    return sum;
}

typedef struct stopping {
    carnn_model *model;
    float weight; /* the first one after the first epoch */
} stopping;

static int stop_in_the_second(const carnn_progress *progress, void *user) {
    stopping *s = (stopping *)user;
    if (progress->epoch == 1 && progress->epoch_ended) {
        s->weight = *s->model->params.value;
        wait_a_little();
    }
    return progress->epoch > 1;
}

static int stop_in_the_first(const carnn_progress *progress, void *user) {
    stopping *s = (stopping *)user;
    CHECK(!progress->epoch_ended);
    s->weight = *s->model->params.value;
    return 1;
}

/* Without validation a model that is stopped within an epoch has the weights of the one before; in
   the first one those at which it was stopped. */
static void test_stopped(void) {
    carnn_dataset *data = load_dialog_text(dialogs);
    stopping s = {new_model("icarnn", 8, data), 0.0f};
    carnn_train_desc train = train_desc(8);
    float first = *s.model->params.value;
    train.average = CARNN_NONE;
    train.progress = stop_in_the_first;
    train.user = &s;
    CHECK_INT(carnn_train(s.model, data, data, &train, NULL), CARNN_ERR_STOPPED);
    CHECK_INT(carnn_model_best_epoch(s.model), 0);
    CHECK(*s.model->params.value == s.weight && s.weight != first);
    train.progress = stop_in_the_second;
    train.user = &s;
    CHECK_INT(carnn_train(s.model, data, NULL, &train, NULL), CARNN_ERR_STOPPED);
    CHECK_INT(carnn_model_best_epoch(s.model), 1);
    CHECK(*s.model->params.value == s.weight);
    carnn_model_free(s.model);
    carnn_dataset_free(data);
}

static void test_resume(void) {
    static const script stops[] = {{1, 1, 0}, {3, 1, 0}, {1, 0, 0}, {3, 0, 0}, {5, 0, 0}};
    static const script never = {0, 0, 0};
    carnn_dataset *data = load_dialog_text(dialogs), *valid = load_dialog_text(others);
    size_t i, validated, optimizer;
    for (validated = 0; validated < 2; validated++) {
        carnn_train_desc train = train_desc(5);
        uint64_t whole = interrupted(never, train, data, validated ? valid : NULL);
        for (i = 0; i < sizeof stops / sizeof *stops; i++)
            CHECK(whole == interrupted(stops[i], train, data, validated ? valid : NULL));
    }
    for (optimizer = 0; carnn_optimizer_name(optimizer); optimizer++) {
        carnn_train_desc train = train_desc(3);
        train.optimizer = carnn_optimizer_name(optimizer);
        CHECK(interrupted(never, train, data, valid) == interrupted(stops[2], train, data, valid));
    }
    carnn_dataset_free(data);
    carnn_dataset_free(valid);
}

/* Keeps the checkpoint that was written in the middle of the third epoch. */
static int keep_checkpoint(const carnn_progress *progress, void *user) {
    int *kept = (int *)user;
    if (progress->epoch_ended && progress->epoch == 2) wait_a_little();
    if (!progress->epoch_ended && progress->epoch == 3 && !*kept)
        *kept = rename(CHECKPOINT, CHECKPOINT ".kept") == 0;
    return 0;
}

/* A run that was killed goes on from the checkpoint that was the last in time. */
static void test_resume_after_kill(void) {
    script never = {0, 0, 0};
    carnn_dataset *data = load_dialog_text(dialogs);
    carnn_train_desc train = train_desc(4);
    uint64_t whole = interrupted(never, train, data, data);
    int run, kept = 0;
    test_seconds_between_saves = 0.0;
    for (run = 0; run < 2; run++) {
        carnn_model *model = new_model("ncarnn", 12, data);
        train.progress = run ? NULL : keep_checkpoint;
        train.user = &kept;
        train.checkpoint = run ? CHECKPOINT ".kept" : CHECKPOINT;
        train.resume = run;
        CHECK_INT(carnn_train(model, data, data, &train, NULL), CARNN_OK);
        CHECK(model_digest(model) == whole);
        CHECK_INT(kept, 1);
        carnn_model_free(model);
    }
    test_seconds_between_saves = 10.0;
    remove(CHECKPOINT);
    remove(CHECKPOINT ".kept");
    carnn_dataset_free(data);
}

/* Keeps the checkpoint that was written after the last step of the first epoch. */
static int keep_last_step(const carnn_progress *progress, void *user) {
    if (!progress->epoch_ended) return 0;
    *(double *)user = progress->gradient_norm;
    rename(CHECKPOINT, CHECKPOINT ".kept"); /* of the run that is killed */
    return 1;
}

/* A run that was killed while an epoch was scored goes on without a step of that epoch: it tells
   the gradient that the epoch ended with. */
static void test_resume_behind_the_last_step(void) {
    carnn_dataset *data = load_dialog_text(dialogs);
    carnn_train_desc train = train_desc(2);
    double norm[2] = {0.0, 0.0};
    int run;
    test_seconds_between_saves = -1.0; /* after every step */
    for (run = 0; run < 2; run++) {
        carnn_model *model = new_model("icarnn", 8, data);
        train.progress = keep_last_step;
        train.user = &norm[run];
        train.checkpoint = run ? CHECKPOINT ".kept" : CHECKPOINT;
        train.resume = run;
        CHECK_INT(carnn_train(model, data, data, &train, NULL), CARNN_ERR_STOPPED);
        CHECK_INT(model->best_epoch, 1);
        carnn_model_free(model);
    }
    CHECK(norm[0] > 0.0 && norm[1] == norm[0]);
    test_seconds_between_saves = 10.0;
    remove(CHECKPOINT);
    remove(CHECKPOINT ".kept");
    carnn_dataset_free(data);
}

static int nothing_saved(const carnn_progress *progress, void *user) {
    FILE *file = fopen(CHECKPOINT, "rb");
    double *seconds = (double *)user;
    CHECK(!file);
    if (file) fclose(file);
    if (progress->epoch_ended && progress->epoch == 1) wait_a_little();
    if (progress->epoch == 2) *seconds = progress->seconds;
    return progress->epoch == 2;
}

static int keep_first_seconds(const carnn_progress *progress, void *user) {
    if (!(*(double *)user > 0.0)) *(double *)user = progress->seconds;
    return 0;
}

/* Within ten seconds nothing is saved but what a stop leaves; the time before it counts. */
static void test_saved_seconds(void) {
    carnn_dataset *data = load_dialog_text(dialogs);
    carnn_train_desc train = train_desc(3);
    carnn_model *model = new_model("icarnn", 8, data);
    double before = 0.0, after = 0.0;
    remove(CHECKPOINT);
    train.checkpoint = CHECKPOINT;
    train.progress = nothing_saved;
    train.user = &before;
    CHECK_INT(carnn_train(model, data, NULL, &train, NULL), CARNN_ERR_STOPPED);
    train.progress = keep_first_seconds;
    train.user = &after;
    train.resume = 1;
    CHECK_INT(carnn_train(model, data, NULL, &train, NULL), CARNN_OK);
    CHECK(before >= 0.12 && after >= before);
    remove(CHECKPOINT);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* A run that is stopped at the very moment when its patience is over has nothing left to do. */
static void test_resume_without_patience(void) {
    script never = {0, 0, 0}, stop = {2, 0, 0};
    carnn_dataset *data = load_dialog_text(dialogs);
    carnn_train_desc train = train_desc(9);
    train.lr = 1e-9; /* no epoch is better than the first */
    train.patience = 1;
    CHECK(interrupted(never, train, data, data) == interrupted(stop, train, data, data));
    carnn_dataset_free(data);
}

/* What tells a data set apart: its texts, who says them in which order, what is right, candidates,
   and that lines are turns of speakers. */
static void test_fingerprints(void) {
    static const char *const texts[][3] = { /* candidates of the last two, which are not replies */
        {"lm", "a\nb\na\n", NULL}, {"lm", "a\nb\nb\n", NULL}, {"lm", "a\nc\na\n", NULL},
        {"lm", "a\tx\nb\ty\n", NULL}, {"lm", "a\ty\nb\tx\n", NULL},
        {"lm", "S|a|x\nS|b|y\n", NULL}, {"dialog", "1 a\tb\n", "1 b\n1 a\n"},
        {"dialog", "1 a\tb\n", "1 b\n"}};
    enum { SETS = CARNN__COUNT(texts) };
    uint64_t sum[SETS];
    size_t i, j, k;
    for (i = 0; i < SETS; i++)
        for (k = 0; k < 2; k++) {
            const char *text = texts[i][1], *candidates = texts[i][2];
            carnn_dataset *data =
                candidates ? test_dialogs(test_source("text", text, strlen(text)),
                                          test_source("candidates", candidates,
                                                      strlen(candidates)))
                           : test_data(texts[i][0], text, strlen(text), 0, 0);
            if (k) CHECK(carnn__fingerprint(data) == sum[i]); /* read again */
            else sum[i] = carnn__fingerprint(data);
            for (j = 0; j < i; j++) CHECK(sum[j] != sum[i]);
            carnn_dataset_free(data);
        }
}

static void test_resume_refused(void) {
    carnn_dataset *data = load_dialog_text(dialogs);
    carnn_model *model = new_model("icarnn", 8, data);
    carnn_train_desc train = train_desc(2);
    carnn_error error = {CARNN_OK, 0, ""};
    train.resume = 1;
    CHECK_INT(carnn_train(model, data, NULL, &train, &error), CARNN_ERR_ARGUMENT);
    train.checkpoint = CHECKPOINT;
    remove(CHECKPOINT);
    CHECK_INT(carnn_train(model, data, NULL, &train, &error), CARNN_ERR_IO);
    train.resume = 0;
    CHECK_INT(carnn_train(model, data, NULL, &train, &error), CARNN_OK);
    train.resume = 1;
    train.lr = 0.02;
    CHECK_INT(carnn_train(model, data, NULL, &train, &error), CARNN_ERR_MODEL);
    CHECK(strstr(error.message, "lr") != NULL);
    remove(CHECKPOINT);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* --- the best epoch --------------------------------------------------------------------------- */

typedef struct history {
    int64_t epochs, best_epoch;
    double best, loss; /* of the best epoch */
} history;

static int watch(const carnn_progress *progress, void *user) {
    history *h = (history *)user;
    if (!progress->epoch_ended) return 0;
    h->epochs = progress->epoch;
    if (!h->best_epoch || progress->scores->metric[0].value > h->best) {
        h->best = progress->scores->metric[0].value;
        h->loss = progress->scores->loss;
        h->best_epoch = progress->epoch;
    }
    CHECK_INT(progress->best_epoch, h->best_epoch);
    CHECK_NEAR(progress->best->metric[0].value, h->best, 0.0);
    return 0;
}

/* A checkpoint that is further than an epoch has batches: the epoch is over. */
static void test_resume_behind_the_end(void) {
    static const char name[] = "carnn.checkpoint.batch";
    carnn_dataset *data = load_dialog_text(dialogs);
    carnn_model *model = new_model("icarnn", 4, data);
    carnn_train_desc train = train_desc(1);
    static unsigned char bytes[1 << 16];
    size_t size = 0, i;
    FILE *f;
    train.checkpoint = CHECKPOINT;
    CHECK_INT(carnn_train(model, data, NULL, &train, NULL), CARNN_OK);
    if ((f = fopen(CHECKPOINT, "rb")) != NULL) {
        size = fread(bytes, 1, sizeof bytes, f);
        fclose(f);
    }
    for (i = 0; i + sizeof name < size && memcmp(bytes + i, name, sizeof name - 1);) i++;
    CHECK(i + sizeof name < size && size < sizeof bytes);
    bytes[i + sizeof name - 1 + 4] = 99; /* behind the type */
    test_seal(bytes, size);
    test_write(CHECKPOINT, bytes, size);
    train.epochs = 3;
    train.resume = 1;
    CHECK_INT(carnn_train(model, data, NULL, &train, NULL), CARNN_OK);
    CHECK_INT(model->best_epoch, 3);
    remove(CHECKPOINT);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

static void test_early_stopping(void) {
    carnn_dataset *data = load_dialog_text(dialogs), *valid = load_dialog_text(others);
    carnn_train_desc train = train_desc(200);
    carnn_model *model = new_model("icarnn", 12, data);
    const carnn_model *models[1];
    carnn_scores scores;
    int round;
    models[0] = model;
    train.patience = 4;
    train.progress = watch;
    for (round = 0; round < 2; round++) { /* the second training is one of its own */
        history h = {0, 0, 0.0, 0.0};
        train.user = &h;
        CHECK_INT(carnn_train(model, data, valid, &train, NULL), CARNN_OK);
        CHECK_INT(h.epochs, h.best_epoch + 4);
        CHECK_INT(carnn_model_best_epoch(model), h.best_epoch);
        CHECK_INT(carnn_test(models, 1, valid, 1, &scores, NULL), CARNN_OK);
        CHECK_NEAR(scores.metric[0].value, h.best, 0.0);
        CHECK_NEAR(scores.loss, h.loss, 0.0); /* the weights are those of that epoch */
    }
    carnn_model_free(model);
    carnn_dataset_free(data);
    carnn_dataset_free(valid);
}

/* Trains a new language model by plain SGD, a sentence a step; `again`: once more, from the first
   epoch on. */
static carnn_model *plain_steps(const carnn_dataset *data, int64_t epochs, double dropout,
                                int again) {
    carnn_model *model = test_model("lm", "context=none min_count=1", NULL, data);
    carnn_train_desc train = test_training(epochs, 1, 0.1, dropout);
    train.optimizer = "sgd";
    train.lr_end = train.lr_decay = 1.0;
    train.clip = train.weight_decay = train.average = CARNN_NONE;
    CHECK_INT(carnn_train(model, data, NULL, &train, NULL), CARNN_OK);
    if (again) CHECK_INT(carnn_train(model, data, NULL, &train, NULL), CARNN_OK);
    return model;
}

/* Two epochs have their steps in other orders, which the first one alone, run twice, has not; and
   what is dropped changes what is learnt. */
static void test_steps_differ(void) {
    carnn_dataset *data = test_read("lm", "a b c\nb d\nc a d a\nd d b\na c\nb b\n");
    carnn_model *two = plain_steps(data, 2, CARNN_NONE, 0);
    carnn_model *other[2];
    size_t i;
    other[0] = plain_steps(data, 1, CARNN_NONE, 1);
    other[1] = plain_steps(data, 2, 0.5, 0);
    for (i = 0; i < 2; i++) {
        CHECK(memcmp(two->params.value, other[i]->params.value,
                     two->params.size * sizeof(float)) != 0);
        carnn_model_free(other[i]);
    }
    carnn_model_free(two);
    carnn_dataset_free(data);
}

/* --- when things run out ---------------------------------------------------------------------- */

static void test_divergence(void) {
    carnn_dataset *data = load_dialog_text(dialogs);
    int validated;
    for (validated = 0; validated < 2; validated++) {
        carnn_model *model = new_model("rnn", 12, data);
        carnn_train_desc train = train_desc(40);
        carnn_error error = {CARNN_OK, 0, ""};
        double good;
        train.dropout = CARNN_NONE;
        CHECK_INT(carnn_train(model, data, data, &train, NULL), CARNN_OK);
        good = accuracy(model, data);
        train.optimizer = "sgd";
        train.lr = 1e6;
        train.lr_end = train.lr_decay = 1.0;
        train.clip = CARNN_NONE;
        train.weight_decay = 1e3; /* turns the weights round and makes them longer in each step */
        CHECK_INT(carnn_train(model, data, validated ? data : NULL, &train, &error),
                  CARNN_ERR_DIVERGED);
        CHECK_INT(error.code, CARNN_ERR_DIVERGED);
        CHECK(strstr(error.message, "step ") != NULL);
        CHECK(strstr(error.message, "word.weight") || strstr(error.message, "cell."));
        CHECK(all_finite(model));
        CHECK_NEAR(accuracy(model, data), good, 0.0);
        carnn_model_free(model);
    }
    carnn_dataset_free(data);
}

/* A loss that was as large at the beginning is no explosion: long vectors of words make it so. */
static void test_large_loss(void) {
    carnn_dataset *data = load_dialog_text(dialogs);
    carnn_model *model = new_model("icarnn", 12, data);
    carnn_train_desc train = train_desc(2);
    carnn_error error = {CARNN_OK, 0, ""};
    float *words = test_weight(model, "word.weight");
    size_t i;
    for (i = 0; i < model->words.count * (size_t)model->desc.embedding; i++) words[i] *= 100.0f;
    train.lr = 1e-6;
    CHECK_INT(carnn_train(model, data, NULL, &train, &error), CARNN_OK);
    CHECK(carnn_model_scores(model)->loss > 2.0 * log((double)model->choices.count) + 4.0);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* A loss far above the first one ends the training, which leaves the weights of the last epoch that
   was better. */
static void test_explosion(void) {
    static const double lr[] = {0.002, 30.0};
    carnn_dataset *data = load_dialog_text(dialogs);
    size_t i;
    for (i = 0; i < CARNN__COUNT(lr); i++) {
        carnn_model *model = new_model("icarnn", 12, data);
        carnn_train_desc train = train_desc(3);
        carnn_error error = {CARNN_OK, 0, ""};
        float first = carnn_model_tensor(model, 0).value[0];
        train.lr = lr[i];
        CHECK_INT(carnn_train(model, data, NULL, &train, &error),
                  i ? CARNN_ERR_DIVERGED : CARNN_OK);
        CHECK_INT(carnn_model_best_epoch(model), i ? 0 : 3);
        if (i) CHECK(strstr(error.message, "the loss is ") != NULL);
        if (i) CHECK(strstr(error.message, "try --lr 0.0") != NULL);
        if (i) CHECK(carnn_model_tensor(model, 0).value[0] == first);
        carnn_model_free(model);
    }
    carnn_dataset_free(data);
}

static void test_max_time(void) {
    carnn_dataset *data = load_dialog_text(dialogs);
    carnn_model *model = new_model("icarnn", 12, data);
    carnn_train_desc train = train_desc(100000000);
    double start = carnn__clock();
    train.max_time = 0.2;
    CHECK_INT(carnn_train(model, data, data, &train, NULL), CARNN_OK);
    CHECK_NEAR(carnn__clock() - start, 1.2, 1.0);
    CHECK(carnn_model_best_epoch(model) > 0);
    CHECK_NEAR(accuracy(model, data), carnn_model_scores(model)->metric[0].value, 0.0);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

static int count_ended(const carnn_progress *progress, void *user) {
    *(int64_t *)user += progress->epoch_ended;
    return 0;
}

/* A training whose runs end after a step each, then one to the end; only epochs that are over are
   reported as ended. Returns how many runs it took, `most` or fewer, until the last epoch was
   scored. */
static size_t train_step_by_step(carnn_model *model, const carnn_dataset *data,
                                 carnn_train_desc train, size_t most) {
    size_t runs = 0;
    int64_t ended = 0;
    train.progress = count_ended;
    train.user = &ended;
    train.checkpoint = CHECKPOINT;
    train.max_time = 1e-9;
    for (; carnn_model_best_epoch(model) < train.epochs && runs < most; runs++) {
        CHECK_INT(carnn_train(model, data, data, &train, NULL), CARNN_OK);
        train.resume = 1;
    }
    train.max_time = 0.0;
    CHECK_INT(carnn_train(model, data, data, &train, NULL), CARNN_OK);
    CHECK_INT(ended, train.epochs);
    remove(CHECKPOINT);
    return runs;
}

/* A run that the clock stops after every step comes to the same end. */
static void test_max_time_and_resume(void) {
    script never = {0, 0, 0};
    carnn_dataset *data = load_dialog_text(dialogs);
    carnn_train_desc train = train_desc(2);
    uint64_t whole = interrupted(never, train, data, data);
    carnn_model *model = new_model("ncarnn", 12, data);
    CHECK(train_step_by_step(model, data, train, 20) > 4);
    CHECK(model_digest(model) == whole);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* An outlier early in an epoch makes its loss so far large, which is no divergence: where the time
   is over there, training goes on like one that is not stopped. */
static void test_stopped_after_an_outlier(void) {
    char text[1024];
    size_t i, n = 0;
    carnn_dataset *data;
    carnn_train_desc train = train_desc(4);
    carnn_model *model[2];
    train.smoothing = CARNN_NONE; /* numbers have no cross entropy */
    for (i = 0; i < 40; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s\t0.%zu\n", i == 9 ? "900.5" : "0.5",
                              i + 10);
    data = test_data("signal", text, n, 0, 0);
    for (i = 0; i < 2; i++)
        model[i] = test_model("signal", "hidden=4 embedding=1 columns=1 layers=1", NULL, data);
    train.batch = 1;
    CHECK_INT(carnn_train(model[0], data, data, &train, NULL), CARNN_OK);
    CHECK(train_step_by_step(model[1], data, train, 200) > 100);
    CHECK(model_digest(model[1]) == model_digest(model[0]));
    for (i = 0; i < 2; i++) carnn_model_free(model[i]);
    carnn_dataset_free(data);
}

/* The caller's name of the optimiser need not live on. */
static void test_own_optimizer(void) {
    char name[] = "sgd";
    carnn_dataset *data = load_dialog_text(dialogs);
    carnn_model *model = new_model("icarnn", 8, data);
    carnn_train_desc train = train_desc(1);
    train.optimizer = name;
    CHECK_INT(carnn_train(model, data, NULL, &train, NULL), CARNN_OK);
    memset(name, 'x', sizeof name - 1);
    CHECK_TEXT(carnn_model_training(model)->optimizer, "sgd");
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* The same lines as one dialog are other data. */
static void test_fingerprint(void) {
    carnn_dataset *two = load_dialog_text("1 a\tb\n\n2 c\td\n");
    carnn_dataset *one = load_dialog_text("1 a\tb\n2 c\td\n");
    CHECK_INT(two->group_count, 2);
    CHECK(carnn__fingerprint(one) != carnn__fingerprint(two));
    carnn_dataset_free(one);
    carnn_dataset_free(two);
}

/* Resuming is refused where only two answers were swapped, in what is learnt or in what validates:
   no text is another, and no list of them. */
static void test_resume_with_other_answers(void) {
    carnn_dataset *data = load_dialog_text("1 a\tx\n2 b\tx\n3 a\ty\n4 b\ty\n");
    carnn_dataset *swapped = load_dialog_text("1 a\tx\n2 b\ty\n3 a\tx\n4 b\ty\n");
    carnn_model *model = new_model("icarnn", 8, data);
    carnn_train_desc train = train_desc(2);
    carnn_error error;
    train.checkpoint = CHECKPOINT;
    CHECK_INT(carnn_train(model, data, data, &train, &error), CARNN_OK);
    train.resume = 1;
    CHECK_INT(carnn_train(model, swapped, data, &train, &error), CARNN_ERR_MODEL);
    CHECK(strstr(error.message, "checkpoint of a training with other training data") != NULL);
    CHECK_INT(carnn_train(model, data, swapped, &train, &error), CARNN_ERR_MODEL);
    CHECK(strstr(error.message, "checkpoint of a training with other validation data") != NULL);
    CHECK_INT(carnn_train(model, data, data, &train, &error), CARNN_OK);
    remove(CHECKPOINT);
    carnn_model_free(model);
    carnn_dataset_free(data);
    carnn_dataset_free(swapped);
}

/* The same for labels of pairs, which are numbers. */
static void test_fingerprint_of_labels(void) {
    static const char *const text[] = {
        "QuestionID\tQuestion\tSentence\tLabel\nQ1\tq\ta\t1\nQ1\tq\tb\t0\n",
        "QuestionID\tQuestion\tSentence\tLabel\nQ1\tq\ta\t0\nQ1\tq\tb\t1\n"};
    uint64_t sum[2];
    size_t i;
    for (i = 0; i < 2; i++) {
        carnn_source source = {"pairs", text[i], strlen(text[i])};
        carnn_dataset_desc desc;
        carnn_dataset *data = NULL;
        test_describe(&desc, "answer", &source);
        CHECK_INT(carnn_dataset_load(&data, &desc, NULL), CARNN_OK);
        sum[i] = carnn__fingerprint(data);
        carnn_dataset_free(data);
    }
    CHECK(sum[0] != sum[1]);
}

#if defined(__linux__)

static int stop_after_epoch(const carnn_progress *progress, void *user) {
    (void)user;
    return progress->epoch_ended;
}

/* Where a checkpoint cannot be written the training ends as it would without one, and says so. */
static void test_checkpoint_not_written(void) {
    carnn_dataset *data = load_dialog_text(dialogs), *valid = load_dialog_text(others);
    int validated;
    for (validated = 0; validated < 2; validated++) {
        carnn_train_desc train = train_desc(5);
        carnn_model *kept = new_model("icarnn", 8, data), *model = new_model("icarnn", 8, data);
        carnn_error error;
        CHECK_INT(carnn_train(kept, data, validated ? valid : NULL, &train, NULL), CARNN_OK);
        train.checkpoint = "/dev/full";
        CHECK_INT(carnn_train(model, data, validated ? valid : NULL, &train, &error), CARNN_ERR_IO);
        CHECK(strstr(error.message, "/dev/full: cannot be written") != NULL);
        CHECK(model_digest(model) == model_digest(kept));
        train.progress = stop_after_epoch; /* what it has lost matters more than the stop */
        CHECK_INT(carnn_train(model, data, validated ? valid : NULL, &train, &error), CARNN_ERR_IO);
        CHECK_INT(carnn_model_best_epoch(model), 1);
        carnn_model_free(model);
        carnn_model_free(kept);
    }
    carnn_dataset_free(data);
    carnn_dataset_free(valid);
}

#endif

/* Nor does it lose the training where there is no memory for the checkpoint's names. */
static void test_checkpoint_without_memory(void) {
    carnn_dataset *data = load_dialog_text(dialogs);
    carnn_model_desc desc = model_desc("icarnn", 8);
    carnn_train_desc train = train_desc(2);
    test_memory memory = {0, 0, 0};
    carnn_allocator a = test_allocator(&memory);
    uint64_t kept = 0;
    long calls = 0;
    int fails;
    desc.allocator = &a;
    train.checkpoint = CHECKPOINT;
    for (fails = 0; fails < 2; fails++) { /* the last allocation is for names */
        carnn_model *model = NULL;
        carnn_error error;
        memory.calls = 0;
        memory.fail_at = fails ? calls : 0;
        CHECK_INT(carnn_model_create(&model, &desc, data, NULL), CARNN_OK);
        if (!fails) {
            CHECK_INT(carnn_train(model, data, NULL, &train, NULL), CARNN_OK);
            kept = model_digest(model);
            calls = memory.calls;
        } else {
            CHECK_INT(carnn_train(model, data, NULL, &train, &error), CARNN_ERR_IO);
            CHECK(strstr(error.message, CHECKPOINT ": cannot be written: out of memory") != NULL);
            CHECK(model_digest(model) == kept);
        }
        remove(CHECKPOINT);
        memory.fail_at = 0;
        carnn_model_free(model);
        CHECK_INT(memory.blocks, 0);
    }
    carnn_dataset_free(data);
}

typedef struct calls {
    const test_memory *memory;
    long after_first;
} calls;

static int count_calls(const carnn_progress *progress, void *user) {
    calls *c = (calls *)user;
    if (progress->epoch_ended && progress->epoch == 1) c->after_first = c->memory->calls;
    if (progress->epoch > 1) CHECK_INT(c->memory->calls, c->after_first);
    return 0;
}

static void test_no_allocation(void) {
    test_memory memory = {0, 0, 0};
    carnn_allocator a = test_allocator(&memory);
    carnn_dataset *data = load_dialog_text(dialogs);
    carnn_model_desc desc = model_desc("gru", 12);
    carnn_train_desc train = train_desc(5);
    carnn_model *model = NULL;
    calls c;
    c.memory = &memory;
    c.after_first = 0;
    desc.allocator = &a;
    train.progress = count_calls;
    train.user = &c;
    train.threads = 2;
    CHECK_INT(carnn_model_create(&model, &desc, data, NULL), CARNN_OK);
    CHECK_INT(carnn_train(model, data, data, &train, NULL), CARNN_OK);
    CHECK(c.after_first > 0);
    carnn_model_free(model);
    CHECK_INT(memory.blocks, 0);
    carnn_dataset_free(data);
}

/* Everything that a program does with a model, in memory that may run out; the first status that
   is not CARNN_OK. */
static carnn_status whole_life(const carnn_allocator *a) {
    static const carnn_source file = {MODEL_FILE, NULL, 0}, text = {"text", dialogs, 0};
    carnn_source source = text;
    carnn_model_desc desc = model_desc("lstm", 4);
    carnn_train_desc train = train_desc(2);
    carnn_dataset_desc data_desc;
    carnn_dataset *data = NULL;
    carnn_model *models[2] = {NULL, NULL};
    const carnn_model *both[2];
    carnn_scores scores[3];
    carnn_error error;
    carnn_status status;
    memset(&data_desc, 0, sizeof data_desc);
    source.size = sizeof dialogs - 1;
    data_desc.task = "dialog";
    data_desc.sources = &source;
    data_desc.source_count = 1;
    desc.allocator = data_desc.allocator = a;
    train.checkpoint = CHECKPOINT;
    train.threads = 2;
    status = carnn_dataset_load(&data, &data_desc, &error);
    if (!status) status = carnn_model_create(&models[0], &desc, data, &error);
    if (!status) status = carnn_train(models[0], data, data, &train, &error);
    train.resume = 1;
    train.epochs = 3;
    if (!status) status = carnn_train(models[0], data, data, &train, &error);
    if (!status) status = carnn_model_save(models[0], MODEL_FILE, &error);
    if (!status) status = carnn_model_load(&models[1], &file, a, &error);
    both[0] = models[0];
    both[1] = models[1];
    if (!status) status = carnn_test(both, 2, data, 2, scores, &error);
    if (status) CHECK_INT(error.code, status);
    carnn_model_free(models[0]);
    carnn_model_free(models[1]);
    carnn_dataset_free(data);
    return status;
}

static void test_out_of_memory(void) {
    carnn_status status = CARNN_ERR_MEMORY;
    long fail_at;
    for (fail_at = 1; status && fail_at < 2000; fail_at++) {
        test_memory memory = {0, 0, 0};
        carnn_allocator a = test_allocator(&memory);
        memory.fail_at = fail_at;
        status = whole_life(&a);
        if (test_fails(memory.blocks == 0 && (!status || status == CARNN_ERR_MEMORY ||
                                              status == CARNN_ERR_IO), /* of a checkpoint */
                       "out of memory", __FILE__, __LINE__))
            printf(" at call %ld: %ld blocks left, status %d\n", fail_at, memory.blocks, status);
    }
    CHECK_INT(status, CARNN_OK);
    CHECK(fail_at > 50);
    remove(CHECKPOINT);
    remove(MODEL_FILE);
}

/* --- votes ------------------------------------------------------------------------------------
   A model (Eq. 8) whose only question has the probabilities that we want for its answers x, y and
   z. Its cell says nothing (all weights zero), so the history <start>, "question" is summed up as
   o = al e, e = enc("question $user") and al = exp(e.e) / (1 + exp(e.e)), where e is half the
   vector of "question" (Sukhbaatar's l is 1/2 for the first of two words, and $user is zero). */

static void set_word(carnn_model *model, const char *word, float value) {
    size_t D = (size_t)model->desc.hidden;
    uint32_t i = carnn__names_find(&model->words, carnn__span_of(word));
    CHECK(i != CARNN__NO_INDEX);
    if (i != CARNN__NO_INDEX)
        carnn__named(&model->params, "word.weight")[i * D + D - 1] = value;
}

static carnn_model *model_that_says(const carnn_dataset *data, double x, double y, double z) {
    carnn_model_desc desc = model_desc("icarnn", 4);
    carnn_model *model = NULL;
    double o = 2.0 * exp(4.0) / (1.0 + exp(4.0));
    desc.option[CARNN__DIALOG_HOPS] = CARNN_NONE;
    CHECK_INT(carnn_model_create(&model, &desc, data, NULL), CARNN_OK);
    memset(model->params.value, 0, model->params.size * sizeof(float));
    set_word(model, "question", 4.0f);
    set_word(model, "x", (float)(log(x) / o));
    set_word(model, "y", (float)(log(y) / o));
    set_word(model, "z", (float)(log(z) / o));
    return model;
}

/* The vote of three models that give x, y, z these probabilities, where y is right. */
static carnn_scores vote(const double p[3][3]) {
    static const char text[] = "1 question\ty\n";
    static const carnn_source candidates = {"candidates", "1 x\n1 y\n1 z\n", 12};
    carnn_source source = {"dialogs", text, sizeof text - 1};
    carnn_dataset *data = test_dialogs(source, candidates);
    const carnn_model *models[3];
    carnn_scores scores[4];
    size_t m;
    memset(scores, 0, sizeof scores);
    for (m = 0; m < 3; m++) models[m] = model_that_says(data, p[m][0], p[m][1], p[m][2]);
    CHECK_INT(carnn_test(models, 3, data, 1, scores, NULL), CARNN_OK);
    for (m = 0; m < 3; m++) {
        CHECK_INT(scores[m].examples, 1);
        CHECK_NEAR(scores[m].loss, -log(p[m][1]), 1e-5);
        CHECK_NEAR(scores[m].metric[0].value, p[m][1] > p[m][0] && p[m][1] > p[m][2], 0.0);
        carnn_model_free((carnn_model *)models[m]);
    }
    carnn_dataset_free(data);
    return scores[3];
}

static void test_votes(void) {
    /* one vote each: y has the largest sum, 1.1 */
    static const double tie[3][3] = {{0.5, 0.3, 0.2}, {0.4, 0.5, 0.1}, {0.1, 0.3, 0.6}};
    /* one vote each: x has the largest sum */
    static const double lost[3][3] = {{0.8, 0.1, 0.1}, {0.4, 0.5, 0.1}, {0.3, 0.3, 0.4}};
    /* two weak votes for y against a strong one for z */
    static const double majority[3][3] = {{0.33, 0.34, 0.33}, {0.01, 0.01, 0.98},
                                          {0.33, 0.34, 0.33}};
    carnn_scores scores = vote(tie);
    CHECK_INT(scores.examples, 1);
    CHECK_INT(scores.count, 4);
    CHECK_NEAR(scores.metric[0].value, 1.0, 0.0);
    CHECK_NEAR(scores.metric[1].value, 1.0, 0.0);
    CHECK_NEAR(scores.metric[2].value, 1.0, 0.0);
    /* (votes + mean) / (members + 1) */
    CHECK_NEAR(scores.loss, -log((1.0 + 1.1 / 3.0) / 4.0), 1e-5);
    CHECK_NEAR(vote(lost).metric[0].value, 0.0, 0.0);
    scores = vote(majority);
    CHECK_NEAR(scores.metric[0].value, 1.0, 0.0);
    CHECK_NEAR(scores.loss, -log((2.0 + 0.69 / 3.0) / 4.0), 1e-5);
}

static void count_part(size_t model, double value, double weight, void *user) {
    (void)value;
    CHECK(weight > 0.0);
    ((size_t *)user)[model]++;
}

/* A batch of a dialog in which nobody answers has no part, neither of a model nor of the vote. */
static void test_vote_parts(void) {
    static char text[40000];
    carnn_source source = {"dialogs", text, 0};
    carnn_dataset_desc read;
    carnn_dataset *data = NULL;
    carnn_model *models[2];
    carnn_test_desc desc;
    carnn_scores scores[3];
    size_t parts[3] = {0, 0, 0}, at = 0, i;
    for (i = 0; i < 64; i++) at += (size_t)sprintf(text + at, "1 hi\tyes\n\n");
    for (i = 1; i <= 800; i++) at += (size_t)sprintf(text + at, "%u oak R_rating %u\n", (unsigned)i,
                                                     (unsigned)i);
    for (i = 0; i < 10; i++) at += (size_t)sprintf(text + at, "\n1 bye\tno\n");
    test_describe(&read, "dialog", &source);
    read.lenient = 1; /* facts that no turn follows */
    source.size = at;
    CHECK_INT(carnn_dataset_load(&data, &read, NULL), CARNN_OK);
    for (i = 0; i < 2; i++) models[i] = new_model("icarnn", 4, data);
    memset(&desc, 0, sizeof desc);
    desc.threads = 1;
    desc.part = count_part;
    desc.user = parts;
    CHECK_INT(carnn_test_parts((const carnn_model *const *)models, 2, data, &desc, scores, NULL),
              CARNN_OK);
    CHECK_INT(parts[0], 74);
    CHECK_INT(parts[1], 74);
    CHECK_INT(parts[2], 74);
    for (i = 0; i < 2; i++) carnn_model_free(models[i]);
    carnn_dataset_free(data);
}

static void wait_in_part(size_t model, double value, double weight, void *user) {
    double start = carnn__clock();
    (void)model, (void)value, (void)weight;
    if (*(double *)user <= 0.0) wait_a_little();
    *(double *)user += carnn__clock() - start;
}

/* The seconds of each score: no less than what a callback takes in one of the models, which are
   scored together, and no more than the call. */
static void test_seconds(void) {
    carnn_dataset *data = load_dialog_text(dialogs);
    carnn_model *models[2];
    carnn_test_desc desc;
    carnn_scores scores[3];
    double waited = 0.0, start;
    size_t i;
    for (i = 0; i < 2; i++) models[i] = new_model("icarnn", 4, data);
    memset(&desc, 0, sizeof desc);
    desc.threads = 1;
    desc.part = wait_in_part;
    desc.user = &waited;
    memset(scores, 0, sizeof scores);
    start = carnn__clock();
    CHECK_INT(carnn_test_parts((const carnn_model *const *)models, 2, data, &desc, scores, NULL),
              CARNN_OK);
    start = carnn__clock() - start;
    CHECK(waited > 0.119);
    for (i = 0; i < 3; i++) CHECK(scores[i].seconds >= waited && scores[i].seconds <= start);
    for (i = 0; i < 2; i++) carnn_model_free(models[i]);
    carnn_dataset_free(data);
}

static void test_votes_refused(void) {
    carnn_dataset *data = load_dialog_text(dialogs), *valid = load_dialog_text(others);
    carnn_model *a = new_model("icarnn", 8, data), *b = new_model("icarnn", 8, valid);
    const carnn_model *models[2];
    carnn_scores scores[3];
    carnn_error error;
    models[0] = a;
    models[1] = b;
    CHECK_INT(carnn_test(models, 2, data, 1, scores, &error), CARNN_ERR_ARGUMENT);
    CHECK_INT(carnn_test(models, 0, data, 1, scores, &error), CARNN_ERR_ARGUMENT);
    carnn_model_free(a);
    carnn_model_free(b);
    carnn_dataset_free(data);
    carnn_dataset_free(valid);
}

/* --- real data -------------------------------------------------------------------------------- */

static carnn_dataset *load_published(const char *name) {
    char path[2][256];
    if (!test_published(path[0], name) ||
        !test_published(path[1], "babi-dialog/dialog-babi-task6-dstc2-candidates.txt"))
        return NULL;
    return test_dialogs(test_source(path[0], NULL, 0), test_source(path[1], NULL, 0));
}

/* Dialogs of people with a restaurant system (DSTC2 as bAbI task 6), 2 epochs. The most frequent
   answer alone is right in 9 % of the turns. */
static void test_real_data(void) {
    carnn_dataset *train = load_published("babi-dialog/dialog-babi-task6-dstc2-trn.txt");
    carnn_dataset *dev = load_published("babi-dialog/dialog-babi-task6-dstc2-dev.txt");
    if (train && dev) {
        carnn_model *model = new_model("icarnn", 32, train);
        carnn_train_desc desc = train_desc(2);
        double start = carnn__clock();
        desc.batch = 0;
        desc.threads = 2;
        desc.smoothing = desc.weight_decay = CARNN_NONE;
        CHECK_INT(carnn_train(model, train, dev, &desc, NULL), CARNN_OK);
        printf("task 6 after 2 epochs with 32 units: %.1f %% in %.1f s\n",
               100.0 * carnn_model_scores(model)->metric[0].value, carnn__clock() - start);
        CHECK(carnn_model_scores(model)->metric[0].value > 0.30);
        carnn_model_free(model);
    }
    carnn_dataset_free(train);
    carnn_dataset_free(dev);
}

/* A training that does not begin leaves all that is known of a model as it was. */
static void test_not_begun(void) {
    static const char of_another[] = "the data set is of the task lm, the model of the task dialog";
    carnn_dataset *data = load_dialog_text(dialogs), *other = test_data("lm", "a\n", 2, 0, 0);
    carnn_dataset *nothing;
    carnn_model *model = new_model("icarnn", 8, data);
    carnn_train_desc train = train_desc(2);
    carnn_error error;
    carnn_scores scores;
    CHECK_INT(carnn_train(model, data, data, &train, &error), CARNN_OK);
    scores = *carnn_model_scores(model);
    CHECK(scores.examples > 0 && carnn_model_best_epoch(model) > 0);
    nothing = test_data("dialog", "", 0, 0, 1);
    CHECK_INT(carnn_train(model, data, nothing, &train, &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message, "there is no example to validate on");
    CHECK_INT(carnn_train(model, nothing, NULL, &train, &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message, "there is no example to train on");
    CHECK_INT(carnn_train(model, other, data, &train, &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message, of_another);
    CHECK_INT(carnn_train(model, data, other, &train, &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message, of_another);
    train.epochs = 7;
    train.resume = 1;
    train.checkpoint = "no-such-file.resume";
    CHECK_INT(carnn_train(model, data, data, &train, &error), CARNN_ERR_IO);
    train.resume = 0;
    train.checkpoint = NULL;
    train.probe = 1; /* dialogs have none */
    CHECK_INT(carnn_train(model, data, data, &train, &error), CARNN_ERR_ARGUMENT);
    CHECK(carnn_model_best_epoch(model) > 0);
    CHECK(!memcmp(&scores, carnn_model_scores(model), sizeof scores));
    CHECK_INT(carnn_model_training(model)->epochs, 2);
    carnn_dataset_free(nothing);
    carnn_dataset_free(other);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

static int keep_norm(const carnn_progress *p, void *user) {
    *(double *)user = p->gradient_norm;
    return 0;
}

/* One step of plain SGD on a copy of `base`: change (trained) is what it does to the weights.
   Returns the norm of the gradient that is reported. */
static double one_step(const carnn_model *base, const char *text, double clip, double decay,
                       double smoothing, float *change) {
    carnn_dataset *data = test_read("classify", text);
    carnn_model *model = test_reload(base);
    carnn_train_desc train = test_training(1, 1000, 0.1, CARNN_NONE);
    double norm = 0.0;
    size_t i;
    train.optimizer = "sgd";
    train.lr_end = train.lr_decay = 1.0;
    train.average = CARNN_NONE;
    train.clip = clip;
    train.weight_decay = decay;
    train.smoothing = smoothing;
    train.progress = keep_norm;
    train.user = &norm;
    CHECK_INT(carnn_train(model, data, NULL, &train, NULL), CARNN_OK);
    for (i = 0; i < model->params.trained; i++)
        change[i] = model->params.value[i] - base->params.value[i];
    carnn_model_free(model);
    carnn_dataset_free(data);
    return norm;
}

/* A step of SGD is -lr g: clipping scales it, decay adds -lr decay w, and the gradient of a
   smoothed loss is a mean of those of both classes. */
static void test_one_step(void) {
    static const char text[] = "x\ta b\ny\tb c\nx\ta\n", flipped[] = "y\ta b\nx\tb c\ny\ta\n";
    carnn_dataset *data = test_read("classify", text);
    carnn_model *base = test_model("classify", "cell=icarnn vector_words=0", NULL, data);
    size_t n = base->params.trained, i;
    float *d = (float *)malloc(n * sizeof(float)), *e = (float *)malloc(n * sizeof(float));
    float *f = (float *)malloc(n * sizeof(float));
    double norm, squares = 0.0;
    norm = one_step(base, text, CARNN_NONE, CARNN_NONE, CARNN_NONE, d);
    for (i = 0; i < n; i++) squares += (double)d[i] * (double)d[i];
    CHECK(norm > 0.0);
    CHECK_NEAR(sqrt(squares) / 0.1, norm, 1e-4 * norm);
    CHECK_NEAR(one_step(base, text, norm / 4.0, CARNN_NONE, CARNN_NONE, e), norm, 1e-6 * norm);
    for (i = 0; i < n; i++) CHECK_NEAR(e[i], d[i] / 4.0f, 1e-6);
    one_step(base, text, CARNN_NONE, 0.1, CARNN_NONE, e);
    for (i = 0; i < n; i++)
        CHECK_NEAR(e[i], (double)d[i] - 0.1 * 0.1 * (double)base->params.value[i], 1e-6);
    one_step(base, flipped, CARNN_NONE, CARNN_NONE, CARNN_NONE, f);
    one_step(base, text, CARNN_NONE, CARNN_NONE, 0.3, e);
    for (i = 0; i < n; i++) CHECK_NEAR(e[i], 0.85 * (double)d[i] + 0.15 * (double)f[i], 1e-6);
    free(d);
    free(e);
    free(f);
    carnn_model_free(base);
    carnn_dataset_free(data);
}

/* The options of a task: names of their own, with defaults that they would take themselves. */
static void test_options(void) {
    const carnn_option *o;
    size_t i, j, t;
    for (t = 0; carnn_task_name(t); t++) {
        carnn_model_desc model, again;
        carnn_train_desc train, train_again;
        memset(&model, 0, sizeof model);
        memset(&again, 0, sizeof again);
        memset(&train, 0, sizeof train);
        memset(&train_again, 0, sizeof train_again);
        model.task = again.task = carnn_task_name(t);
        CHECK_INT(carnn_defaults(&model, &train, NULL), CARNN_OK);
        for (i = 0; (o = carnn_option_at(model.task, i)) != NULL; i++) {
            char text[64], copy[64];
            for (j = 0; j < i; j++) CHECK(strcmp(carnn_option_at(model.task, j)->name, o->name));
            carnn_option_get(o, &model, &train, text, sizeof text);
            if (!strcmp(text, "0") && !o->none && (o->low > 0.0 || o->high <= 0.0)) continue;
            if (!*text) continue; /* a name that is not chosen */
            CHECK_INT(carnn_option_set(o, &again, &train_again, text, NULL), CARNN_OK);
            CHECK_TEXT(carnn_option_get(o, &again, &train_again, copy, sizeof copy), text);
        }
    }
}

int main(void) {
    test_options();
    test_learns();
    test_average();
    test_reports();
    test_rate("classify", "%c\ta b\n", 1.0, 2.0);
    test_rate("lm", "%c a b c d e f g h\n", 10.0, 13.0);
    test_stopped();
    test_not_begun();
    test_one_step();
    test_same_bytes();
    test_simd_choice();
    test_denormals();
    test_resume();
    test_resume_after_kill();
    test_resume_behind_the_last_step();
    test_resume_without_patience();
    test_saved_seconds();
    test_fingerprints();
    test_resume_refused();
    test_resume_behind_the_end();
    test_early_stopping();
    test_steps_differ();
    test_divergence();
    test_large_loss();
    test_explosion();
    test_max_time();
    test_max_time_and_resume();
    test_stopped_after_an_outlier();
    test_own_optimizer();
    test_fingerprint();
    test_resume_with_other_answers();
    test_fingerprint_of_labels();
#if defined(__linux__)
    test_checkpoint_not_written();
#endif
    test_checkpoint_without_memory();
    test_vote_parts();
    test_no_allocation();
    test_out_of_memory();
    test_votes();
    test_seconds();
    test_votes_refused();
    test_real_data();
    return test_end();
}
