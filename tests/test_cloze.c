/* Cloze questions: the format and its errors, the two readers by plain loops in doubles, unusual
   data, sessions and batches, explanations, threads and SIMD paths that change nothing. */

#include "test.h"

/* --- data ------------------------------------------------------------------------------------- */

static carnn_status cloze_load(carnn_dataset **data, const char *bytes, size_t size, int lenient,
                               carnn_error *error) {
    carnn_source source = test_source("f.txt", bytes, size);
    carnn_dataset_desc desc;
    test_describe(&desc, "cloze", &source);
    desc.lenient = lenient;
    return carnn_dataset_load(data, &desc, error);
}

/* All examples as "answer=text|...|candidates", or the error. */
static const char *cloze_read(const char *bytes, int lenient) {
    static char all[1024];
    carnn_dataset *data;
    carnn_error error;
    size_t i, j, at = 0;
    all[0] = 0;
    if (cloze_load(&data, bytes, strlen(bytes), lenient, &error)) {
        CHECK_INT(error.code, CARNN_ERR_DATA);
        snprintf(all, sizeof all, "%s", error.message);
        return all;
    }
    for (i = 0; i < carnn_dataset_examples(data); i++) {
        const char *target = carnn_dataset_target(data, i);
        at += (size_t)snprintf(all + at, sizeof all - at, "%s=", target ? target : "?");
        for (j = 0; j < carnn_dataset_text_count(data, i); j++)
            at += (size_t)snprintf(all + at, sizeof all - at, "%s%s", j ? "/" : "",
                                   carnn_dataset_text(data, i, j));
        at += (size_t)snprintf(all + at, sizeof all - at, "\n");
    }
    carnn_dataset_free(data);
    return all;
}

static void cloze_formats(void) {
    CHECK_TEXT(cloze_read("1 A b\n2 c\n3 XXXXX d\tA\t\tA|B\n\n\n1 e A\n2 f XXXXX\te\te|A\n", 0),
               "A=A b/c/XXXXX d/A|B\ne=e A/f XXXXX/e|A\n");
    CHECK_TEXT(cloze_read("1 A b \r\n2 XXXXX\tA\t\tA | B\r\n1 B\r\n2 XXXXX\tB\t\tA|B", 0),
               "A=A b/XXXXX/A | B\nB=B/XXXXX/A|B\n");
    CHECK_TEXT(cloze_read("1 12 b\n2 c\n3 XXXXX d\t12\t\t12|13\n", 0),
               "12=12 b/c/XXXXX d/12|13\n"); /* only the first number is that of the line */
}

/* What is only to be predicted needs no answer, no numbers, no text. */
static void cloze_lenient(void) {
    CHECK_TEXT(cloze_read("1 A b\n2 c XXXXX\t\t\tA|B\n", 1), "?=A b/c XXXXX/A|B\n");
    CHECK_TEXT(cloze_read("A b\nc XXXXX\tB\t\tA|B\n", 1), "B=A b/c XXXXX/A|B\n");
    CHECK_TEXT(cloze_read("XXXXX\tA|B\n", 1), "?=/XXXXX/A|B\n");
    CHECK_TEXT(cloze_read("1 a\n2 b\n1 c\n2 d\tA|B\n\n1 e\n", 1), "?=c/d/A|B\n");
    CHECK_TEXT(cloze_read("1 a\n2 d\tC\tA|B|A\n", 1), "?=a/d/A|B|A\n");
    CHECK_TEXT(cloze_read("a\n12 b\n3 XXXXX\t12|13\n", 1), "?=a/12 b/3 XXXXX/12|13\n");
    CHECK_TEXT(cloze_read("a\n\nb\nXXXXX\tb|c\n", 1), "?=b/XXXXX/b|c\n");
    CHECK_TEXT(cloze_read("0 a\n1 b\n2 XXXXX\ta|b\n", 1), "?=a/b/XXXXX/a|b\n");
    CHECK_TEXT(cloze_read("\t\n", 1), "?=//\n");
    CHECK_TEXT(cloze_read("", 1), "");
}

static void cloze_errors(void) {
    CHECK_TEXT(cloze_read("1 A b\nc\n", 0), "f.txt:2: expected line number 2, found \"c\"");
    CHECK_TEXT(cloze_read("1 A b\n3 c\n", 0), "f.txt:2: expected line number 2, found \"3 c\"");
    CHECK_TEXT(cloze_read("2 A b\n", 0), "f.txt:1: expected line number 1, found \"2 A b\"");
    CHECK_TEXT(cloze_read("1 A\n1 B\n", 0), "f.txt:2: expected line number 2, found \"1 B\"");
    CHECK_TEXT(cloze_read("1 A b\n\n", 0),
               "f.txt:2: expected the next sentence or a question, found nothing");
    CHECK_TEXT(cloze_read("1 XXXXX\tA\t\tA\n", 0),
               "f.txt:1: expected sentences before a question, found \"XXXXX\"");
    CHECK_TEXT(cloze_read("1 A\n2 XXXXXs\tA\t\tA\n", 0),
               "f.txt:2: expected a question with the word XXXXX, found \"XXXXXs\"");
    CHECK_TEXT(cloze_read("1 A\n2 XXXXX\tA\n", 0),
               "f.txt:2: expected a question, its answer and candidates with tabs between them, "
               "found \"2 XXXXX\\tA\"");
    CHECK_TEXT(cloze_read("1 A\n2 XXXXX\tA\t\tA|B|A\n", 0),
               "f.txt:2: expected each candidate once, found \"A\"");
    CHECK_TEXT(cloze_read("1 A\n2 XXXXX\tA\t\t|\n", 0),
               "f.txt:2: expected 1 to 640 candidates with | between them, found \"|\"");
    CHECK_TEXT(cloze_read("1 A\n2 XXXXX\tC\t\tA|B\n", 0),
               "f.txt:2: expected an answer that is one of the candidates, found \"C\"");
    CHECK_TEXT(cloze_read("1 a\n2 XXXXX\tA\t\tA|B\n", 0),
               "f.txt:2: expected a candidate that is a word of the text, found \"A|B\"");
    CHECK_TEXT(cloze_read("1 A\n2 XXXXX\t1\t\t1|B\n", 0), /* numbers of lines are no words */
               "f.txt:2: expected a candidate that is a word of the text, found \"1|B\"");
    CHECK(strstr(cloze_read("1 A\n", 0), ":1: expected a question with its text, found none"));
    CHECK_TEXT(cloze_read("", 0),
               "f.txt:1: expected a question with its text, found an empty file");
}

/* A text of so many words A, then a question of so many. */
static char *cloze_long(size_t words, size_t asked) {
    char *bytes = (char *)malloc(8 * (words + asked) + 64), *at = bytes;
    size_t i;
    for (i = 0; i < words; i++) at += sprintf(at, i ? " A" : "1 A");
    at += sprintf(at, "\n2 XXXXX");
    for (i = 1; i < asked; i++) at += sprintf(at, " B");
    sprintf(at, "\tA\t\tA|B\n");
    return bytes;
}

static void cloze_too_long(void) {
    char *bytes = cloze_long(2049, 1), expected[] = "f.txt:1: expected no more than 2048 words ";
    CHECK(!strncmp(cloze_read(bytes, 0), expected, sizeof expected - 1));
    free(bytes);
    bytes = cloze_long(100000, 1);
    CHECK(!strncmp(cloze_read(bytes, 0), expected, sizeof expected - 1));
    free(bytes);
    bytes = cloze_long(5, 513);
    CHECK(strstr(cloze_read(bytes, 0), ":2: expected no more than 512 words in a q") != NULL);
    free(bytes);
}

/* A list of so many candidates that comparing all of them would take hours. */
static void cloze_many_candidates(void) {
    char *bytes = (char *)malloc(9 * 1000000 + 64), *at = bytes;
    size_t i;
    at += sprintf(at, "1 A\n2 XXXXX\tA\t\tA");
    for (i = 0; i < 1000000; i++) at += sprintf(at, "|c%zu", i);
    sprintf(at, "\n");
    CHECK(strstr(cloze_read(bytes, 0), "f.txt:2: expected 1 to 640 candidates") != NULL);
    free(bytes);
}

/* --- models ----------------------------------------------------------------------------------- */

static const char cloze_stories[] =
    "1 a Ann b c d .\n2 Bob d e Ann .\n3 Cid b c e\n4 XXXXX e b\tAnn\t\tAnn|Bob|Cid|Dan\n\n"
    "1 e Dan c b\n2 Bob c d\n3 c XXXXX e Bob\tDan\t\tBob|Dan|Eve\n\n"
    "1 Eve b d\n2 e Ann b Eve\n3 d XXXXX\tEve\t\tAnn|Cid|Eve\n\n"
    "1 a Bob\n2 XXXXX\tAnn\t\tBob|Ann\n";

/* Words and candidates that no model knows, long texts, none, equal scores. */
static const char cloze_asked[] =
    "1 a Zoe b Yan Zoe\n2 Yan XXXXX\t\t\tYan|Zoe|Xi\n\n1 q\n2 r\n3 XXXXX\tB|A\n\nXXXXX a\tBob|Ann\n"
    "\t\n1 Bob Ann\n2 XXXXX\t\t\tAnn\n3 Ann XXXXX\t\t\tBob|Ann\n";

static carnn_status cloze_fit(carnn_model *model, const carnn_dataset *data, int64_t epochs) {
    carnn_train_desc train = test_training(epochs, 3, 0.02, 0.1);
    carnn_error error;
    return carnn_train(model, data, data, &train, &error);
}

/* --- both readers by plain loops in doubles, from the states of the recurrent layers ---------- */

enum { CLOZE_D = 12, CLOZE_E = 5, CLOZE_H = 6 };

/* Softmax of e (n) in place. */
static void cloze_softmax(double *e, size_t n) {
    double sum = 0.0;
    size_t i;
    for (i = 0; i < n; i++) sum += exp(e[i]);
    for (i = 0; i < n; i++) e[i] = exp(e[i]) / sum;
}

/* A question by itself is normalised by the population, which weight decay leaves as it was. */
static void cloze_population_stays(void) {
    carnn_dataset *data = test_read("cloze", cloze_stories);
    carnn_model *model = test_model("cloze", "model=attentive anonymous=0 cell=lstm "
                                             "normalise=everywhere", NULL, data);
    carnn_train_desc train = test_training(2, 1, 0.02, 0.0);
    carnn_error error;
    const carnn__param *p;
    size_t i, k, seen = 0;
    train.weight_decay = 10.0;
    CHECK_INT(carnn_train(model, data, NULL, &train, &error), CARNN_OK);
    for (i = 0; i < model->params.count; i++) {
        p = &model->params.item[i];
        if (strcmp(p->name, "hidden.weight.norm.variance") &&
            strcmp(p->name, "hidden.other.norm.variance"))
            continue;
        for (k = 0; k < p->columns; k++) CHECK_NEAR(model->params.value[p->offset + k], 1.0, 0.0);
        seen++;
    }
    CHECK_INT(seen, 2);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Column k of a term that is normalised by the population, where the model normalises it. */
static double cloze_normal(const carnn_model *model, const char *term, size_t k, double v) {
    char name[64];
    double of[3];
    size_t i;
    static const char *const part[] = {"gain", "mean", "variance"};
    if (carnn__chosen(model, CARNN__CLOZE_NORMALISE) != CARNN__CLOZE_EVERYWHERE) return v;
    for (i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s.norm.%s", term, part[i]);
        of[i] = (double)test_weight(model, name)[k];
    }
    return of[0] * (v - of[1]) / sqrt(of[2] + 1e-5);
}

/* The weights s (n) of the words with the states f (n, D) for the question's g. */
static void cloze_attention(const carnn_model *model, const float *f, size_t n, const float *g,
                            double *s) {
    int attentive = carnn__chosen(model, CARNN__CLOZE_MODEL) == 1;
    size_t i, j, k;
    for (i = 0; i < n; i++) {
        s[i] = 0.0;
        for (j = 0; !attentive && j < CLOZE_D; j++)
            s[i] += (double)f[i * CLOZE_D + j] * (double)g[j];
        for (k = 0; attentive && k < CLOZE_H; k++) {
            double a = 0.0, b = 0.0;
            for (j = 0; j < CLOZE_D; j++) {
                a += (double)test_weight(model, "attend.weight")[k * CLOZE_D + j] *
                     (double)f[i * CLOZE_D + j];
                b += (double)test_weight(model, "attend.other")[k * CLOZE_D + j] * (double)g[j];
            }
            a = cloze_normal(model, "attend.weight", k, a) +
                cloze_normal(model, "attend.other", k, b);
            s[i] += (double)test_weight(model, "attend.vector")[k] * tanh(a);
        }
    }
    cloze_softmax(s, n);
}

/* The vector tanh(W [r; g]) of the attentive reader; normalised, r and g have weights each. */
static void cloze_top(const carnn_model *model, const float *f, size_t n, const float *g,
                      const double *s, double *top) {
    int split = carnn__chosen(model, CARNN__CLOZE_NORMALISE) == CARNN__CLOZE_EVERYWHERE;
    const float *W = test_weight(model, "hidden.weight");
    const float *V = split ? test_weight(model, "hidden.other") : W + CLOZE_D;
    size_t i, j, k, stride = split ? CLOZE_D : 2 * CLOZE_D;
    for (k = 0; k < CLOZE_E; k++) {
        double a = 0.0, b = 0.0;
        for (j = 0; j < CLOZE_D; j++) {
            double r = 0.0;
            for (i = 0; i < n; i++) r += s[i] * (double)f[i * CLOZE_D + j];
            a += (double)W[k * stride + j] * r;
            b += (double)V[k * stride + j] * (double)g[j];
        }
        top[k] = tanh(cloze_normal(model, "hidden.weight", k, a) +
                      cloze_normal(model, "hidden.other", k, b));
    }
}

/* The vector sum_i s_i E d_i of the words of a text, all of them known. */
static void cloze_blend(const carnn_model *model, const char *text, const double *s, double *top) {
    carnn__words w = carnn__words_of(CARNN__SPACES, carnn__span_of(text));
    size_t i, k;
    memset(top, 0, CLOZE_E * sizeof *top);
    for (i = 0; carnn__next_word(&w); i++) {
        size_t row = carnn__names_find(&model->words, w.word);
        for (k = 0; k < CLOZE_E; k++)
            top[k] += s[i] * (double)test_weight(model, "word.weight")[row * CLOZE_E + k];
    }
}

/* The candidates' logits: log P of the pointer, E_c . top of the two other readers. */
static void cloze_logits(const carnn_model *model, const char *example, const float *f, size_t n,
                         const float *g, const char *const *candidate, size_t count, double *z) {
    int sums = carnn__chosen(model, CARNN__CLOZE_MODEL) == CARNN__CLOZE_SUM;
    int anonymous = carnn__option(model, CARNN__CLOZE_ANONYMOUS) > 0.0;
    const float *E = test_weight(model, "word.weight");
    carnn__words w = carnn__words_of(CARNN__SPACES, carnn__span_of(example));
    double s[32], top[CLOZE_E];
    size_t i, j;
    cloze_attention(model, f, n, g, s);
    if (carnn__chosen(model, CARNN__CLOZE_MODEL) == CARNN__CLOZE_WEIGHTED)
        cloze_blend(model, example, s, top);
    else if (!sums) cloze_top(model, f, n, g, s, top);
    for (j = 0; j < count; j++) z[j] = 0.0;
    for (i = 0; sums && carnn__next_word(&w); i++)
        for (j = 0; j < count; j++)
            if (carnn__is(candidate[j], w.word, 0)) z[j] += s[i];
    for (j = 0; j < count; j++) {
        size_t row = anonymous ? 16 + j
                               : carnn__names_find(&model->words, carnn__span_of(candidate[j]));
        if (sums) z[j] = log(z[j]);
        for (i = 0; !sums && i < CLOZE_E; i++)
            z[j] += (double)E[row * CLOZE_E + i] * top[i];
    }
}

static void cloze_by_loops(const char *options) {
    static const char *const text[] = {"a Ann b c d . Bob d e Ann . Cid b c e", "e Dan c b Bob c d",
                                       "Eve b d e Ann b Eve"};
    static const char *const candidate[][4] = {{"Ann", "Bob", "Cid"}, {"Bob", "Dan"},
                                               {"Ann", NULL, "Eve"}};
    static const size_t answer[] = {0, 1, 2};
    carnn_dataset *data = test_read("cloze", cloze_stories);
    carnn_model *model = test_model("cloze", options, NULL, data);
    int sums = carnn__chosen(model, CARNN__CLOZE_MODEL) == CARNN__CLOZE_SUM;
    const carnn__cloze *m;
    test_work w;
    double worst = 0.0, loss = 0.0;
    size_t i, j;
    CHECK_INT(cloze_fit(model, data, 3), CARNN_OK);
    test_work_open(&w, model, data, 1);
    CHECK_INT(test_work_run(&w, 0), 1);
    m = (const carnn__cloze *)w.work.state;
    CHECK_INT(m->net.texts.texts, 4);
    for (i = 0; i < 3; i++) {
        size_t at = m->net.texts.at[i], n = m->net.texts.at[i + 1] - at, count = 0;
        const carnn__mat *x = carnn__rnn_output(&m->reader[0].rnn);
        const carnn__mat *q = carnn__rnn_output(&m->reader[1].rnn);
        float g[CLOZE_D]; /* fw of the last word, bw of the first */
        double z[4];
        memcpy(g, q->x + (m->question.at[i + 1] - 1) * CLOZE_D, CLOZE_H * sizeof(float));
        memcpy(g + CLOZE_H, q->x + m->question.at[i] * CLOZE_D + CLOZE_H, CLOZE_H * sizeof(float));
        for (count = 0; count < 4 && (candidate[i][count] || count == 1); count++) {}
        for (j = 0; j < count; j++) {
            const char *const *one = &candidate[i][j];
            double all[4];
            if (!*one) continue; /* not in the text */
            if (!sums && carnn__option(model, CARNN__CLOZE_ANONYMOUS) > 0.0) {
                const char *names[4] = {"", "", "", ""};
                names[j] = *one;
                cloze_logits(model, text[i], x->x + at * CLOZE_D, n, g, names, j + 1, all);
                z[j] = all[j];
            } else {
                cloze_logits(model, text[i], x->x + at * CLOZE_D, n, g, one, 1, &z[j]);
            }
            worst = test_worse(
                fabs(z[j] - (double)m->candidates.z.x[i * CARNN__CLOZE_CANDIDATES + j]), worst);
        }
        loss -= z[answer[i]];
    }
    CHECK_NEAR(worst, 0.0, 1e-5);
    if (sums) CHECK_NEAR(w.tally.loss, loss, 1e-5); /* the fourth has no answer to learn */
    test_work_close(&w);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* In training each item draws what its candidates are read as; unknown words are read as <unk> to
   <unk.15>. */
static void cloze_reads_names(void) {
    carnn_dataset *data = test_read("cloze", cloze_stories);
    carnn_model *model = test_model("cloze", "anonymous=1", NULL, data);
    uint32_t known = (uint32_t)model->words.count, i;
    uint32_t Ann = carnn__hashed_word(model, carnn__span_of("Ann"));
    uint32_t Bob = carnn__hashed_word(model, carnn__span_of("Bob"));
    size_t differ = 0;
    uint64_t key;
    carnn__cloze *m;
    test_work w;
    test_work_open(&w, model, data, 1);
    CHECK_INT(test_work_begin(&w), 1);
    m = (carnn__cloze *)w.work.state;
    for (key = 1; key <= 20; key++) { /* the first candidates of two items */
        carnn__net_batch(&w.work, 0, key, &w.tally);
        differ += carnn__name_read(&m->net.texts, &m->entities, 0, Ann) !=
                  carnn__name_read(&m->net.texts, &m->entities, 1, Bob);
    }
    CHECK(differ > 10);
    for (i = 0; i < 16; i++)
        CHECK_INT(carnn__name_read(&m->net.texts, &m->entities, 0, known + i), i);
    test_work_close(&w);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* The attention to an answer may be too small for a float: loss and gradients are still those of
   doubles, by words of which the others are ahead by `gap`. */
static void cloze_far(double gap, int places) {
    static const char data_text[] = "1 a b c a d\n2 a XXXXX e b\ta\t\tb|a|z|d\n";
    carnn_dataset *data = test_read("cloze", data_text);
    carnn_model *model = test_model("cloze", "anonymous=0", NULL, data);
    test_work w;
    carnn__cloze *m;
    const carnn__mat *s;
    double e[5], all = 0.0, right = 0.0, worst = 0.0;
    float *g = (float *)calloc(model->params.size, sizeof(float));
    size_t r;
    test_work_open(&w, model, data, 1);
    w.work.g = g;
    test_work_run(&w, 0);
    m = (carnn__cloze *)w.work.state;
    s = &m->s;
    for (r = 0; r < 5; r++) {
        int answer = r == 0 || r == 3;
        s->x[r] = (float)((answer && (places == 2 || !r) ? 0.0 : gap) + 0.1 * (double)r);
        e[r] = (double)s->x[r];
        all += exp(e[r] - gap);
        if (answer) right += exp(e[r]);
    }
    carnn__pointer_forward(&w.work, &m->candidates, &m->net.texts, s);
    CHECK_NEAR(carnn__pointer_loss(&w.work, &m->candidates, &m->net.texts),
               log(all) + gap - log(right), 1e-4);
    CHECK(m->candidates.z.x[1] > m->candidates.z.x[2]); /* z is nowhere */
    carnn__pointer_backward(&m->candidates, &m->net.texts, s);
    for (r = 0; r < 5; r++) {
        double share = r == 0 || r == 3 ? exp(e[r]) / right : 0.0;
        worst = test_worse(fabs((double)s->d[r] - exp(e[r] - gap) / all + share), worst);
    }
    CHECK_NEAR(worst, 0.0, 1e-5 + 1e-7 * gap); /* a float has log P */
    test_work_close(&w);
    free(g);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

static void cloze_numbers(void) {
    cloze_far(0.0, 2);
    cloze_far(20.0, 2);
    cloze_far(80.0, 2);
    cloze_far(87.0, 2);
    cloze_far(110.0, 2);
    cloze_far(110.0, 1);
    cloze_far(300.0, 2);

    cloze_by_loops("anonymous=0");
    cloze_by_loops("anonymous=1 cell=icarnn");
    cloze_by_loops("anonymous=0 cell=lstm layers=2");
    cloze_by_loops("anonymous=0 model=attentive");
    cloze_by_loops("anonymous=1 model=attentive cell=ran");
    cloze_by_loops("anonymous=0 model=attentive cell=mi-lstm normalise=everywhere");
    cloze_by_loops("anonymous=0 model=weighted");
}

/* --- unusual data ----------------------------------------------------------------------------- */

/* Words that no model knows are told of a vote, too; a file keeps how many answers have no loss. */
static void cloze_tells_unknown(carnn_model *model, const carnn_dataset *data,
                                const carnn_dataset *asked) {
    const carnn_model *models[2];
    carnn_train_desc train = test_training(1, 4, 0.001, 0.0);
    carnn_scores scores[3];
    carnn_model *loaded;
    models[0] = models[1] = model;
    CHECK_INT(carnn_test(models, 2, asked, 1, scores, NULL), CARNN_OK);
    CHECK(scores[0].unknown > 0.2 && scores[2].unknown == scores[0].unknown);
    CHECK_INT(carnn_train(model, data, data, &train, NULL), CARNN_OK);
    CHECK_INT(carnn_model_scores(model)->unanswerable, 1);
    loaded = test_reload(model);
    CHECK_INT(carnn_model_scores(loaded)->unanswerable, 1);
    carnn_model_free(loaded);
}

/* A candidate that is not in the text has no probability, of equal ones the first is told; names
   that no model knows are told apart. */
static void cloze_choices(void) {
    carnn_dataset *data = test_read("cloze", cloze_stories);
    carnn_dataset *asked = test_data("cloze", cloze_asked, strlen(cloze_asked), 0, 1);
    carnn_dataset *nowhere = test_data("cloze", "a b\nXXXXX\tBob\t\tBob|Ann\n", 23, 0, 1);
    carnn_model *model = test_model("cloze", "anonymous=0", NULL, data);
    const carnn_model *models[2];
    carnn_scores scores[3];
    test_answers all = test_predict_all(model, asked, 1);
    size_t i;
    CHECK_INT(all.count, 6);
    CHECK(!strcmp(all.text[0], "Yan") || !strcmp(all.text[0], "Zoe"));
    CHECK_NEAR(all.value[0], 0.4, 0.05); /* Zoe in two places of five, where all are nearly equal */
    CHECK_TEXT(all.text[1], "B");
    CHECK_TEXT(all.text[2], "Bob");
    CHECK_NEAR(all.value[2], 0.0, 0.0);
    CHECK_TEXT(all.text[3], "");
    CHECK_TEXT(all.text[4], "Ann");
    CHECK_NEAR(all.value[4], 0.5, 0.05); /* one of two words, whatever the candidates are */
    CHECK_INT(test_scores(model, data).examples, 4);
    CHECK_NEAR(test_scores(model, data).unknown, 0.0, 0.0);
    CHECK(test_scores(model, asked).unknown > 0.2); /* names that no model knows */
    models[0] = models[1] = model;
    CHECK_INT(carnn_test(models, 2, data, 1, scores, NULL), CARNN_OK);
    for (i = 0; i < 9; i++) /* the answer of the last is nowhere, nor among the best 2 or 5 */
        CHECK(scores[i / 3].metric[i % 3].value <= 0.75); /* also of a vote */
    for (i = 0; i < 3; i++) /* of 2 to 4 candidates all are among the best 5, the last ones, too */
        CHECK_NEAR(scores[i].metric[2].value, 0.75, 1e-12);
    CHECK_INT(scores[2].unanswerable, 1);
    CHECK_INT(test_scores(model, nowhere).metric[0].value, 0);
    cloze_tells_unknown(model, data, asked);
    carnn_model_free(model);
    carnn_dataset_free(nowhere);
    carnn_dataset_free(asked);
    carnn_dataset_free(data);
}

/* Of a list that is too long the first 640 candidates are read: an answer behind them is no answer
   that the model could give. */
static void cloze_long_list(void) {
    static const char *const model_of[] = {"", "model=attentive", "model=weighted"};
    static char bytes[8192];
    carnn_dataset *data = test_read("cloze", cloze_stories), *asked;
    size_t i, n;
    n = (size_t)snprintf(bytes, sizeof bytes, "1 c1 c699 c2\n2 XXXXX\tc699\t\tc0");
    for (i = 1; i < 700; i++)
        n += (size_t)snprintf(bytes + n, sizeof bytes - n, "|c%u", (unsigned)i);
    asked = test_data("cloze", bytes, n, 0, 1);
    for (i = 0; i < 3; i++) {
        carnn_model *model = test_model("cloze", model_of[i], NULL, data);
        test_answers all = test_predict_all(model, asked, 1);
        CHECK_INT(all.count, 1);
        CHECK(strcmp(all.text[0], "c699") != 0);
        CHECK_NEAR(test_scores(model, asked).metric[0].value, 0.0, 0.0);
        CHECK_NEAR(test_scores(model, asked).loss, 0.0, 0.0); /* none is known */
        carnn_model_free(model);
    }
    carnn_dataset_free(asked);
    carnn_dataset_free(data);
}

/* Only the beginning of a long text is read, the same one in sessions and in batches, of one line
   and of three that are too long together. */
static void cloze_cut(void) {
    carnn_dataset *data = test_read("cloze", cloze_stories), *asked;
    carnn_model *model = test_model("cloze", "", NULL, data);
    char *bytes = cloze_long(3000, 700), *end;
    carnn_prediction p;
    carnn_session *session;
    carnn_error error;
    test_answers all[2];
    size_t i;
    CHECK_INT(carnn_session_open(&session, model, NULL, &error), CARNN_OK);
    for (i = 0; i < 2; i++) {
        asked = test_data("cloze", bytes, strlen(bytes), 0, 1);
        all[i] = test_predict_all(model, asked, 1);
        CHECK_INT(carnn_session_example(session, asked, 0, 1, &p, &error), CARNN_OK);
        CHECK(p.probability[0] == all[i].value[0]);
        carnn_dataset_free(asked);
        end = strchr(bytes, '\n');
        memcpy(bytes + 2001, "\n2 A", 4); /* in the place of two words */
        memcpy(bytes + 4001, "\n3 A", 4);
        end[1] = '4';
    }
    CHECK(all[0].value[0] == all[1].value[0]);
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
    free(bytes);
}

/* Of a long question the first 512 words are read, and all of them. */
static void cloze_cut_question(void) {
    static const size_t words[] = {511, 512, 513, 700};
    carnn_dataset *data = test_read("cloze", cloze_stories);
    carnn_model *model = test_model("cloze", "", NULL, data);
    char bytes[2 * 700 + 64];
    double value[4];
    size_t i, k;
    for (i = 0; i < 4; i++) {
        size_t n = (size_t)snprintf(bytes, sizeof bytes, "1 Ann b Bob c\n2 XXXXX");
        for (k = 1; k < words[i]; k++)
            n += (size_t)snprintf(bytes + n, sizeof bytes - n, " %s", k < 511 ? "b" : "e");
        snprintf(bytes + n, sizeof bytes - n, "\tAnn\t\tAnn|Bob\n");
        {
            carnn_dataset *asked = test_data("cloze", bytes, strlen(bytes), 0, 1);
            test_answers all = test_predict_all(model, asked, 1);
            value[i] = all.value[0];
            carnn_dataset_free(asked);
        }
    }
    CHECK(value[0] != value[1]);
    CHECK(value[2] == value[1] && value[3] == value[1]);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* A question whose answer is nowhere has no part in the loss, nor in the gradient of its mean. */
static void cloze_mean(const char *options) {
    static const char known[] = "1 a Ann b c\n2 XXXXX e b\tAnn\t\tAnn|Bob\n\n1 Eve b d\n"
                                "2 d XXXXX\tEve\t\tAnn|Eve\n";
    char all[256];
    carnn_dataset *data[2];
    carnn_model *model;
    float *g[2];
    double loss[2], worst = 0.0;
    size_t i;
    snprintf(all, sizeof all, "%s\n1 a Bob\n2 XXXXX\tCid\t\tBob|Ann\n", known);
    data[0] = test_read("cloze", known);
    data[1] = test_data("cloze", all, strlen(all), 0, 1);
    model = test_model("cloze", options, NULL, data[0]);
    for (i = 0; i < 2; i++) {
        test_work w;
        g[i] = test_floats(model->params.size);
        test_work_open(&w, model, data[i], 1);
        w.work.g = g[i];
        CHECK_INT(test_work_run(&w, 0), 1);
        loss[i] = w.tally.loss;
        test_work_close(&w);
    }
    CHECK_NEAR(loss[1], loss[0], 1e-5);
    CHECK_NEAR(test_scores(model, data[1]).loss, test_scores(model, data[0]).loss, 1e-5);
    for (i = 0; i < model->params.size; i++)
        worst = test_worse(fabs((double)g[1][i] - (double)g[0][i]), worst);
    CHECK_NEAR(worst, 0.0, 1e-6);
    for (i = 0; i < 2; i++) test_drop(g[i]);
    for (i = 0; i < 2; i++) carnn_dataset_free(data[i]);
    carnn_model_free(model);
}

/* --- sessions, explanations, threads, SIMD paths, files --------------------------------------- */

static void cloze_same(const carnn_prediction *p, const test_answers *all, size_t i) {
    char text[16];
    carnn_prediction_text(NULL, p, 0, text, sizeof text);
    CHECK_TEXT(text, all->text[i]);
    CHECK(test_value(p) == all->value[i]);
}

/* Sessions predict what batches do, from lines, examples and texts, bit by bit. */
static void cloze_sessions(const char *options) {
    carnn_dataset *data = test_read("cloze", cloze_stories);
    carnn_dataset *asked = test_data("cloze", cloze_asked, strlen(cloze_asked), 0, 1);
    carnn_model *model = test_model("cloze", options, NULL, data);
    carnn_text texts[3] = {{"a Zoe b Yan Zoe", 15}, {"Yan XXXXX", 9}, {"Yan|Zoe|Xi", 10}};
    const char *line;
    carnn_prediction p;
    carnn_session *session;
    carnn_error error;
    test_answers all;
    size_t i, number = 0;
    int found;
    CHECK_INT(cloze_fit(model, data, 5), CARNN_OK);
    all = test_predict_all(model, asked, 1);
    CHECK_INT(carnn_session_open(&session, model, NULL, &error), CARNN_OK);
    for (i = 0, line = cloze_asked; *line; line += strcspn(line, "\n") + 1) {
        CHECK_INT(carnn_session_line(session, line, strcspn(line, "\n"), ++number, 1, &found, &p,
                                     &error), CARNN_OK);
        if (found) cloze_same(&p, &all, i++);
    }
    CHECK_INT(i, all.count);
    for (i = 0; i < all.count; i++) {
        CHECK_INT(carnn_session_example(session, asked, i, 3, &p, &error), CARNN_OK);
        cloze_same(&p, &all, i);
        CHECK_INT(p.example, i);
    }
    for (i = 0; i < 2; i++) { /* the second text does not follow the first one */
        CHECK_INT(carnn_session_predict(session, texts, 3, 2, &p, &error), CARNN_OK);
        cloze_same(&p, &all, 0);
        CHECK_INT(p.count, 2);
    }
    CHECK_INT(carnn_session_predict(session, texts, 2, 1, &p, &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message, "the task cloze predicts from 3 texts, not 2");
    CHECK_INT(carnn_session_hear(session, CARNN_USER, "a", 1, &error), CARNN_ERR_ARGUMENT);
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(asked);
    carnn_dataset_free(data);
}

/* Where the attention is on other words alone every P rounds to 0. What scores count as right is
   predicted all the same, also by a vote. */
static void cloze_elsewhere(void) {
    carnn_dataset *data = test_read("cloze", cloze_stories);
    size_t seed, i, j, none = 0;
    for (seed = 1; seed <= 20; seed++) {
        carnn_ensemble_desc desc = {CARNN_ENSEMBLE_VOTE, NULL, 0.0, 0, 1, NULL};
        carnn_model *model[2];
        char options[64];
        snprintf(options, sizeof options, "cell=lin-rnn seed=%zu", seed);
        model[0] = test_model("cloze", options, NULL, data);
        for (i = 0; i < model[0]->params.size; i++) model[0]->params.value[i] *= 6.0f;
        CHECK_INT(carnn_model_ensemble(&model[1], (const carnn_model *const *)model, 1, &desc,
                                       NULL), CARNN_OK);
        for (i = 0; i < 2; i++) {
            test_answers all = test_predict_all(model[i], data, 1);
            double right = 0.0;
            for (j = 0; j < all.count; j++) {
                right += !strcmp(all.text[j], carnn_dataset_target(data, j));
                none += !(all.value[j] > 0.0);
            }
            CHECK_NEAR(test_scores(model[0], data).metric[0].value, right / (double)all.count, 0.0);
        }
        for (i = 0; i < 2; i++) carnn_model_free(model[i]);
    }
    CHECK(none > 0);
    carnn_dataset_free(data);
}

/* The words' attention is 1 in all; that of the answer's places is P(answer). */
static void cloze_explains(void) {
    carnn_dataset *data = test_read("cloze", cloze_stories);
    carnn_model *model = test_model("cloze", "", NULL, data);
    carnn_contribution part[32];
    carnn_explanation e;
    carnn_prediction p;
    carnn_session *session;
    carnn_error error;
    double sum = 0.0, score = 0.0;
    size_t i, item, behind = 0;
    int found;
    CHECK_INT(cloze_fit(model, data, 5), CARNN_OK);
    CHECK_INT(carnn_session_open(&session, model, NULL, &error), CARNN_OK);
    CHECK_INT(carnn_session_example(session, data, 0, 4, &p, &error), CARNN_OK);
    CHECK_INT(carnn_session_explain(session, 32, part, &e, &error), CARNN_OK);
    CHECK_INT(e.count, 15);
    CHECK_INT(e.exact, 1);
    CHECK_TEXT(part[1].text, "Ann");
    CHECK_TEXT(part[1].role, "text");
    for (i = 0; i < e.count; i++) {
        sum += part[i].attention;
        score += part[i].score;
        CHECK(part[i].score == (strcmp(part[i].text, e.of) ? 0.0 : part[i].attention));
    }
    CHECK_NEAR(sum, 1.0, 1e-6);
    CHECK_NEAR(score, p.probability[0], 1e-6);
    CHECK_INT(carnn_session_explain(session, 1, part, &e, &error), CARNN_OK);
    CHECK_INT(e.count, 15);
    for (item = 0; item < data->item_count; item++) { /* whichever candidate it is */
        CHECK_INT(carnn_session_example(session, data, item, 1, &p, &error), CARNN_OK);
        CHECK_INT(carnn_session_explain(session, 32, part, &e, &error), CARNN_OK);
        for (i = 0; i < e.count; i++)
            CHECK(part[i].score == (strcmp(part[i].text, e.of) ? 0.0 : part[i].attention));
        behind += p.choice[0] > 0;
    }
    CHECK(behind > 0);
    CHECK_INT(carnn_session_line(session, "1 Dan and Eve", 13, 1, 1, &found, &p, &error), CARNN_OK);
    CHECK_INT(carnn_session_explain(session, 32, part, &e, &error), CARNN_OK);
    CHECK_INT(e.count, 0); /* the words that are kept are another text's */
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Of a reader that is no sum words have attention alone, and the rest is the answer's logit. */
static void cloze_explains_no_sum(const char *options) {
    carnn_dataset *data = test_read("cloze", cloze_stories);
    carnn_model *model = test_model("cloze", options, NULL, data);
    const carnn__cloze *m;
    carnn_contribution part[32];
    carnn_explanation e;
    carnn_prediction p;
    carnn_session *session;
    carnn_text none[3] = {{"Ann Bob", 7}, {"XXXXX Bob", 9}, {"", 0}};
    double sum = 0.0;
    size_t i;
    CHECK_INT(carnn_session_open(&session, model, NULL, NULL), CARNN_OK);
    CHECK_INT(carnn_session_example(session, data, 0, 4, &p, NULL), CARNN_OK);
    CHECK_INT(carnn_session_explain(session, 32, part, &e, NULL), CARNN_OK);
    m = (const carnn__cloze *)session->work.state;
    CHECK_INT(e.exact, 0);
    for (i = 0; i < e.count; i++) {
        CHECK_INT(part[i].has, CARNN_HAS_ATTENTION);
        sum += part[i].attention;
    }
    CHECK_NEAR(sum, 1.0, 1e-5);
    CHECK_NEAR(e.rest, m->candidates.z.x[p.choice[0]], 0.0);
    CHECK_INT(carnn_session_predict(session, none, 3, 1, &p, NULL), CARNN_OK); /* no candidates */
    CHECK_INT(p.count, 0);
    CHECK_INT(carnn_session_explain(session, 32, part, &e, NULL), CARNN_OK);
    CHECK_INT(e.count, 2);
    CHECK(!e.of || !*e.of); /* not what was predicted before */
    CHECK_NEAR(e.rest, 0.0, 0.0);
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

static void cloze_same_bytes(const char *options) {
    carnn_dataset *data = test_read("cloze", cloze_stories);
    carnn_model_free(test_trains_alike("cloze", options, data, test_training(3, 3, 0.02, 0.1)));
    carnn_dataset_free(data);
}

/* A file keeps the model and its options; several models vote. */
static void cloze_kept(void) {
    carnn_dataset *data = test_read("cloze", cloze_stories);
    carnn_model *model = test_model("cloze", "model=attentive anonymous=0", NULL, data), *again;
    const carnn_model *both[2];
    carnn_scores scores[3];
    carnn_error error;
    CHECK_INT(cloze_fit(model, data, 2), CARNN_OK);
    again = test_reload(model);
    CHECK_INT(carnn__chosen(again, CARNN__CLOZE_MODEL), 1);
    both[0] = model;
    both[1] = again;
    CHECK_INT(carnn_test(both, 2, data, 1, scores, &error), CARNN_OK);
    CHECK(scores[0].loss == scores[1].loss);
    CHECK_NEAR(scores[2].loss, scores[0].loss, 1e-5);
    CHECK(scores[2].metric[0].value == scores[0].metric[0].value);
    carnn_model_free(again);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Of six choices, from the best to the worst, and one that is none: how many are among the best. */
static void cloze_counts_top(void) {
    static const float z[] = {6.0f, 5.0f, 4.0f, 4.0f, 2.0f, 1.0f};
    double top[2] = {0.0, 0.0};
    size_t right;
    for (right = 0; right < 7; right++) carnn__count_top(z, 6, 0, right, top);
    CHECK(top[0] == 2.0 && top[1] == 5.0);
}

/* --- CNN and Daily Mail ----------------------------------------------------------------------- */

static const char cloze_news[] =
    "[[http://news/1]]\n\n@entity7 met @entity2 in @entity11 , and @entity7 's dog\n\n"
    "a dog saw @placeholder in @entity11\n\n@entity2\n\n@entity2:Ann\n@entity7:Bob Dale\n"
    "@entity9:Nobody\n@entity11:Rome\n";

/* A file with this text, read as one of these; the same form as of cloze_read(). */
static const char *cloze_news_read(const char *text, int lenient) {
    static char all[1024];
    carnn_source source = {"news.question", NULL, 0};
    carnn_dataset_desc desc;
    carnn_dataset *data;
    carnn_error error;
    const char *target;
    test_write(source.name, text, strlen(text));
    test_describe(&desc, "cloze", &source);
    desc.lenient = lenient;
    if (carnn_dataset_load(&data, &desc, &error)) {
        CHECK_INT(error.code, CARNN_ERR_DATA);
        snprintf(all, sizeof all, "%s", error.message);
    } else {
        CHECK_INT(carnn_dataset_examples(data), 1);
        target = carnn_dataset_target(data, 0);
        snprintf(all, sizeof all, "%s=%s/%s/%s", target ? target : "?",
                 carnn_dataset_text(data, 0, 0), carnn_dataset_text(data, 0, 1),
                 carnn_dataset_text(data, 0, 2));
        carnn_dataset_free(data);
    }
    remove(source.name);
    return all;
}

/* The text of the file with one part changed, or cut before it where `to` is NULL. */
static const char *cloze_news_with(const char *part, const char *to) {
    static char text[1024];
    const char *at = strstr(cloze_news, part);
    int length = (int)(at - cloze_news);
    CHECK(at != NULL);
    snprintf(text, sizeof text, "%.*s%s%s", length, cloze_news, to ? to : "",
             to ? at + strlen(part) : "");
    return cloze_news_read(text, 0);
}

#define QUOTE "\xE2\x80\x99" /* also an apostrophe */
#define DASH "\xE2\x80\x94"
#define ELLIPSIS "\xE2\x80\xA6"

/* Prose as words: marks, 's and the like and dashes by themselves, typographic ones as those of
   ASCII; a period stays with a short abbreviation inside a line. What does not fit is counted;
   twice the length is always enough. */
static void cloze_prose(void) {
    static const struct {
        const char *text, *words;
    } set[] = {{"", ""}, {" \r\n\t\n", ""}, {"\xEF\xBB\xBFHi", "Hi"}, {"--", "--"},
               {"Hi\n\xEF\xBB\xBFHo \n\xEF\xBB\xBF", "Hi Ho"},
               {"Mr. Lee's dog.", "Mr. Lee 's dog ."}, {"by Mr.\nLee", "by Mr . Lee"},
               {"Capt. Lee, Sgt. Tom", "Capt . Lee , Sgt. Tom"},
               {"No.\r\nWe'll  go", "No . We 'll go"}, {"mr. Smith. ran", "mr . Smith . ran"},
               {"saw Tom. ", "saw Tom ."}, {"saw Tom.\t\nHe", "saw Tom . He"},
               {"a---b --c d- e", "a -- b -- c d- e"}, {"(\"it's\")...", "( \" it 's \" ) . . ."},
               {"'tis 's 'd", "' tis ' s ' d"},
               {"\xE2\x80\x9CO" QUOTE "Hara" QUOTE "s, \xE2\x80\x98" "dad" QUOTE ".\xE2\x80\x9D",
                "\" O'Hara 's , ' dad ' . \""},
               {"Lee" DASH "who" DASH DASH "ran-" DASH, "Lee -- who -- ran --"},
               {"so" ELLIPSIS " I" QUOTE "\xE2\x80", "so . I'\xE2\x80"}};
    char words[64], random[16];
    size_t i, k, size, n;
    for (i = 0; i < sizeof set / sizeof *set; i++) {
        n = carnn_prose(set[i].text, strlen(set[i].text), words, sizeof words);
        CHECK_INT(n, strlen(set[i].words));
        CHECK_TEXT(words, set[i].words);
        for (size = 0; size <= n; size++) {
            memset(words, '#', sizeof words);
            CHECK_INT(carnn_prose(set[i].text, strlen(set[i].text), words, size), n);
            CHECK(words[size] == '#' && !memcmp(words, set[i].words, size ? size - 1 : 0));
            if (size) CHECK(!words[size - 1]);
        }
    }
    CHECK_INT(carnn_prose("a\0b", 3, words, sizeof words), 3);
    CHECK_TEXT(words, "a?b");
    for (i = 0; i < 500; i++) {
        for (k = 0; k < sizeof random; k++)
            random[k] = (" \n'-.,sAm\xC3\xA9\0" QUOTE DASH ELLIPSIS)[carnn__random(i, k) % 21];
        n = carnn_prose(random, i % sizeof random, words, sizeof words);
        CHECK(n <= 2 * (i % sizeof random) && strlen(words) == n && !strstr(words, "  "));
    }
}

/* Names have a capital inside a sentence; at its beginning where neither the text nor the model has
   the word with a small letter. */
static void cloze_names(void) {
    static const char seen[] = "1 we saw bike a\n2 XXXXX b\ta\t\ta|b\n";
    static const char text[] = "Mona saw Felix . There was Mona ! We met I. Old Anna-Lee there \" "
                               "\xC3\x89va Felix ` Bike The the";
    carnn_dataset *data = test_read("cloze", seen);
    carnn_model *model = test_model("cloze", "", NULL, data);
    char names[sizeof text], longer[2 * 2048 + 4];
    size_t i, n;
    CHECK_INT(carnn_prose_names(model, text, names, sizeof names), 27);
    CHECK_TEXT(names, "Mona|Felix|Old|Anna-Lee|The");
    CHECK_INT(carnn_prose_names(model, "", names, sizeof names), 0);
    CHECK_TEXT(names, "");
    for (i = 0; i < 2; i++) { /* of a long text as much as models read */
        for (n = 0; n < 2047 + i; n++) memcpy(longer + 2 * n, "x ", 2);
        strcpy(longer + 2 * n, "Ann");
        CHECK_INT(carnn_prose_names(NULL, longer, names, sizeof names), i ? 0 : 3);
    }
    CHECK_INT(carnn_prose_names(NULL, "Ann is Tom", names, sizeof names), 7);
    CHECK_TEXT(names, "Ann|Tom");
    memset(names, '#', sizeof names);
    CHECK(carnn_prose_names(model, text, names, 7) >= 27);
    CHECK(!memcmp(names, "Mona|F\0#", 8));
    for (i = 0; i < 9; i++) /* the part of a name that has room is no name */
        CHECK(carnn_prose_names(NULL, "so Tom-Ann and Tom", i ? names : NULL, i) == 11);
    CHECK_TEXT(names, "Tom-Ann");
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* A passage of so many words, asked about by a question of so many. */
static const char *cloze_news_long(size_t words, size_t asked) {
    char *text = (char *)malloc(2 * (words + asked) + 100), *at = text;
    const char *read;
    at += sprintf(at, "u\n\n@entity1");
    while (--words) at += sprintf(at, " b");
    at += sprintf(at, "\n\n@placeholder");
    while (--asked) at += sprintf(at, " b");
    sprintf(at, "\n\n@entity1\n\n@entity1:A\n");
    read = cloze_news_read(text, 0);
    free(text);
    return read;
}

static void cloze_news_too_long(void) {
    CHECK(!strncmp(cloze_news_long(2048, 512), "@entity1=@entity1 b b", 21));
    CHECK(strstr(cloze_news_long(2049, 1), ": expected no more than 2048 words before") != NULL);
    CHECK(strstr(cloze_news_long(1, 513), ": expected no more than 512 words in a q") != NULL);
}

static void cloze_news_files(void) {
    static const struct {
        const char *part, *becomes, *message; /* as of cloze_news_with; without the file's name */
    } bad[] = {
        {"@entity7 met", NULL, "3: expected a passage, found the end"},
        {"a dog saw", NULL, "5: expected a question with the word @placeholder, found the end"},
        {"@entity2\n\n", NULL, "7: expected an answer such as @entity3, found the end"},
        {"@entity2:Ann", NULL, "9: expected an entity such as @entity3:Name, found the end"},
        {"@placeholder", "XXXXX",
         "5: expected a question with the word @placeholder, found \"a dog saw XXXXX in "
         "@entity11\""},
        {"@entity7 met", "@entity met",
         "3: expected an entity such as @entity3, found \"@entity\""},
        {"@entity2:Ann", "@entity2",
         "9: expected an entity such as @entity3:Name, found \"@entity2\""},
        {"@entity2\n\n", "@entity\n\n",
         "7: expected an answer such as @entity3, found \"@entity\""},
        {"@entity2\n\n", "", "7: expected an answer such as @entity3, found \"@entity2:Ann\""},
        {"@entity2\n\n", "@entity5\n\n",
         "12: expected a line for the entity that is the answer, found \"@entity5\""},
        {"@entity2\n\n", "@entity2\n@entity3\n\n", "8: expected an empty line, found \"@entity3\""},
        {"@entity9:Nobody", "@entity2:Ann", "12: expected each candidate once, found \"@entity2\""},
        {"@entity9:Nobody\n", "\n", "12: expected the end of the file, found \"@entity11:Rome\""}};
    char message[200];
    size_t i;
    CHECK_TEXT(cloze_news_read(cloze_news, 0),
               "@entity2=@entity7 met @entity2 in @entity11 , and @entity7 's dog/a dog saw "
               "@placeholder in @entity11/@entity2|@entity7|@entity11|");
    CHECK_TEXT(cloze_news_read("u\r\n\r\n@entity1\r\n\r\n@placeholder\r\n\r\n@entity1\r\n\r\n"
                               "@entity1:A", 0), "@entity1=@entity1/@placeholder/@entity1|");
    CHECK_TEXT(cloze_news_read("u\n\n@entity1\n\n@placeholder\n\n@entity1:A\n", 1),
               "?=@entity1/@placeholder/@entity1|"); /* without an answer */
    CHECK_TEXT(cloze_news_read("u\n\n@entity1 b\n@entity2's c\n\n@placeholder\n\n@entity1\n\n"
                               "@entity1:A\n@entity2:B\n", 0),
               "@entity1=@entity1 b\n@entity2's c/@placeholder/@entity1|"); /* a word is one */
    CHECK_TEXT(cloze_news_read("", 0), "news.question:1: expected an address, found the end");
    CHECK_TEXT(cloze_news_read("u\n\n@entity1 b\n\n@placeholder @entity2\n\n@entity1\n\n"
                               "@entity1:A\n@entity2:B\n", 0),
               "@entity1=@entity1 b/@placeholder @entity2/@entity1|"); /* of the passage alone */
    CHECK_TEXT(cloze_news_read("u\n\nnobody\n\n@placeholder\n\n@entity1\n\n@entity1:A\n", 0),
               "news.question:9: expected a candidate that is a word of the text, found "
               "\"@entity1|\"");
    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(message, sizeof message, "news.question:%s", bad[i].message);
        CHECK_TEXT(cloze_news_with(bad[i].part, bad[i].becomes), message);
    }
}

/* The files of a folder, by name: nothing of a file is left in the next one. The test writes them
   into the folder that it runs in. */
static void cloze_news_folder(void) {
    static const char *const names[] = {"b.question", "a.question", "c.question.txt"};
    static const char *const entities[] = {"@entity2", "@entity1", "@entity3"};
    static const char *const candidates[] = {"@entity1|", "@entity2|"};
    carnn_source source = test_source(".", NULL, 0);
    carnn_dataset_desc desc;
    carnn_dataset *data;
    carnn_error error;
    size_t i, k;
    for (i = 0; i < 3; i++) {
        FILE *file = fopen(names[i], "wb");
        CHECK(file != NULL);
        if (!file) return;
        fprintf(file, "u\n\n%s", entities[i]);
        for (k = 0; k < 1500; k++) fputs(" b", file); /* both are longer than one may be */
        fprintf(file, "\n\n@placeholder\n\n%s\n\n@entity1:A\n@entity2:B\n", entities[i]);
        fclose(file);
    }
    test_describe(&desc, "cloze", &source);
    CHECK_INT(carnn_dataset_load(&data, &desc, &error), CARNN_OK);
    CHECK_INT(carnn_dataset_examples(data), 2);
    CHECK_TEXT(carnn_dataset_format(data), "question files (CNN, Daily Mail)");
    for (i = 0; i < carnn_dataset_examples(data); i++) {
        CHECK_TEXT(carnn_dataset_target(data, i), entities[1 - i]);
        CHECK_TEXT(carnn_dataset_text(data, i, 2), candidates[i]);
        CHECK(strstr(carnn__dataset_origin(data, i), names[1 - i]) != NULL);
        CHECK_INT(carnn_dataset_line(data, i), 5); /* of the question */
    }
    carnn_dataset_free(data);
    for (i = 0; i < 3; i++) remove(names[i]);
}

/* In training the entities of the vocabulary change places, all of them and in the same way in all
   texts of a batch; elsewhere they stay. Training and scores are the same every time. */
static void cloze_news_entities(void) {
    carnn_source source = {"news.question", NULL, 0};
    carnn_dataset_desc desc;
    carnn_dataset *data = NULL;
    carnn_model *model, *again;
    carnn_error error;
    carnn__cloze *m;
    size_t i, k, moved = 0;
    test_work w;
    test_write(source.name, cloze_news, sizeof cloze_news - 1);
    test_describe(&desc, "cloze", &source);
    CHECK_INT(carnn_dataset_load(&data, &desc, &error), CARNN_OK);
    remove(source.name);
    model = test_model("cloze", "", NULL, data);
    test_work_open(&w, model, data, 1);
    CHECK_INT(test_work_begin(&w), 1);
    m = (carnn__cloze *)w.work.state;
    CHECK_INT(m->entities.count, 3); /* the fourth one is in no text */
    for (k = 0; k < 20; k++) {
        unsigned seen = 0;
        m->net.key = k;
        for (i = 0; i < model->words.count; i++) {
            uint32_t read = carnn__cloze_read(&m->net.texts, 0, (uint32_t)i);
            int is_one = strncmp(carnn_model_word(model, i), "@entity", 7) == 0;
            CHECK_INT(strncmp(carnn_model_word(model, read), "@entity", 7) == 0, is_one);
            if (!k || !is_one) CHECK_INT(read, i);
            if (!is_one) continue;
            seen |= 1u << m->entities.number[read];
            moved += read != i;
        }
        CHECK_INT(seen, 7);
    }
    CHECK(moved > 20);
    test_work_close(&w);
    again = test_model("cloze", "", NULL, data);
    CHECK_INT(cloze_fit(model, data, 3), CARNN_OK);
    CHECK_INT(cloze_fit(again, data, 3), CARNN_OK);
    CHECK(!memcmp(model->params.value, again->params.value, model->params.size * sizeof(float)));
    CHECK(test_scores(model, data).loss == test_scores(again, data).loss);
    carnn_model_free(model);
    carnn_model_free(again);
    carnn_dataset_free(data);
}

/* Questions without answers make no model. */
static void cloze_unanswered(void) {
    static const char text[] = "1 a b\n2 XXXXX\t\t\ta|b\n\n1 a c\n2 b XXXXX\n";
    carnn_dataset *data = test_data("cloze", text, strlen(text), 0, 1);
    carnn_error error = test_not_made("cloze", "", data, CARNN_ERR_DATA);
    CHECK_TEXT(error.message, "a cloze model needs questions with answers");
    carnn_dataset_free(data);
}

int main(void) {
    cloze_unanswered();
    cloze_counts_top();
    cloze_news_files();
    cloze_news_folder();
    cloze_news_too_long();
    cloze_prose();
    cloze_names();
    cloze_news_entities();
    cloze_formats();
    cloze_lenient();
    cloze_errors();
    cloze_too_long();
    cloze_many_candidates();
    cloze_numbers();
    cloze_choices();
    cloze_long_list();
    cloze_cut();
    cloze_cut_question();
    cloze_mean("anonymous=0");
    cloze_mean("anonymous=0 model=attentive");
    cloze_sessions("layers=2");
    cloze_sessions("model=attentive anonymous=0 cell=icarnn");
    cloze_sessions("model=weighted");
    cloze_reads_names();
    cloze_elsewhere();
    cloze_explains();
    cloze_explains_no_sum("model=attentive anonymous=0");
    cloze_explains_no_sum("model=weighted anonymous=0");
    cloze_same_bytes("layers=2 encoder=rcrn");
    cloze_same_bytes("model=attentive anonymous=0 cell=lstm normalise=everywhere");
    cloze_population_stays();
    cloze_same_bytes("model=weighted");
    cloze_kept();
    return test_end();
}
