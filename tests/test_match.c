/* Answer selection by the similarity of two texts (CA-RNN, attentive pooling, cosine): scores and
   losses by plain loops in double precision, alignments, threads and SIMD paths that change
   nothing, sessions and what they explain, descriptions that are refused. */

#include "test.h"

static const char ranker_pairs[] =
    "who saw the cat and the dog ?\tthe dog saw the cat .\t1\n"
    "who saw the cat and the dog ?\tthe bird sang\t0\n"
    "who saw the cat and the dog ?\ta Cat is not the dog the dog is it ?\t0\n"
    "where is the bird\tin the tree\t1\n"
    "where is the bird\ta dog\t0\n"
    "where is the bird\tthe bird is there\t1\n"
    "why\tthe tree\t0\n"
    "why\tnobody knows why\t1\n";

enum { RANKER_E = 5, RANKER_H = 6, RANKER_D = 12, RANKER_WORDS = 16, RANKER_PAIRS = 8 };

/* Two links of the second word of the first sentence, two of the fourth word of the question. */
static const char ranker_links[] =
    "6-1 1-2 3-4 3-1\n\n3-1   6-7\n2-1\n3-1\n2-0 3-1 1-2 0-3\n\n0-2\n";

static carnn_dataset *ranker_data(void) {
    return test_read("answer", ranker_pairs);
}

/* The same pairs with these alignments. */
static carnn_status ranker_linked(carnn_dataset **data, const char *links, carnn_error *error) {
    carnn_source source = {"pairs.tsv", ranker_pairs, strlen(ranker_pairs)};
    carnn_source alignments = {"pairs.tsv.align", links, links ? strlen(links) : 0};
    return test_linked(data, "answer", "model=ca alignment=file", source,
                       links ? &alignments : NULL, error);
}

static carnn_train_desc ranker_training(int64_t epochs) {
    return test_training(epochs, 4, 0.02, 0.0);
}

/* A small model that has been trained a little, so that no weight is 0. */
static carnn_model *ranker_model(const char *options, const carnn_dataset *data, int64_t epochs) {
    carnn_model *model = test_model("answer", options, NULL, data);
    carnn_train_desc train = ranker_training(epochs);
    carnn_error error;
    CHECK_INT(carnn_train(model, data, data, &train, &error), CARNN_OK);
    return model;
}

static void ranker_keep(const carnn_ranked *pair, void *user) {
    double **next = (double **)user;
    *(*next)++ = pair->score;
}

static carnn_scores ranker_scores(const carnn_model *model, const carnn_dataset *data,
                                  double *score) {
    carnn_test_desc asked;
    carnn_scores scores;
    carnn_error error;
    memset(&asked, 0, sizeof asked);
    asked.threads = 1;
    asked.ranked = ranker_keep;
    asked.user = &score;
    CHECK_INT(carnn_test_parts(&model, 1, data, &asked, &scores, &error), CARNN_OK);
    return scores;
}

/* --- the models by plain loops ---------------------------------------------------------------- */

static const float *ranker_weight(const carnn_model *model, const char *a, const char *b) {
    char name[64];
    snprintf(name, sizeof name, "%s%s", a, b);
    return test_weight(model, name);
}

typedef struct ranker_text {
    size_t n;
    uint32_t id[RANKER_WORDS];
    int with[RANKER_WORDS]; /* the word of the other text, or -1 */
    double s[RANKER_WORDS][RANKER_D], v[RANKER_D];
    double w[RANKER_WORDS]; /* of a weighted sum; zeros where v is a maximum */
} ranker_text;

/* x: the text that is read first, with states and v; NULL: there are no gates. */
static void ranker_read(const carnn_model *model, ranker_text *y, const ranker_text *x, int back) {
    const char *cell = back ? "cell.backward." : "cell.forward.";
    const char *gate = back ? "align.backward." : "align.forward.";
    const float *W = ranker_weight(model, cell, "input.weight");
    const float *U = ranker_weight(model, cell, "recurrent.weight");
    const float *b = ranker_weight(model, cell, "bias");
    const float *table = ranker_weight(model, "word.", "weight");
    const float *P = ranker_weight(model, "word.", "project");
    const float *p = ranker_weight(model, "word.", "bias");
    double h[RANKER_H] = {0}, c[RANKER_H] = {0}, k[RANKER_H], in[RANKER_H], word[RANKER_E], a[4];
    size_t t, i, j, g, H = RANKER_H, from = back ? H : 0;
    for (t = 0; t < y->n; t++) {
        i = back ? y->n - 1 - t : t;
        for (j = 0; j < RANKER_E; j++) word[j] = (double)table[y->id[i] * RANKER_E + j];
        for (j = 0; j < H; j++) in[j] = test_row_times(P, j, RANKER_E, word) + (double)p[j];
        for (j = 0; j < H; j++) {
            for (g = 0; g < 4; g++)
                a[g] = test_row_times(W, g * H + j, H, in) + test_row_times(U, g * H + j, H, h) +
                       (double)b[g * H + j];
            c[j] = test_sigmoid(a[0]) * tanh(a[3]) + test_sigmoid(a[1]) * c[j];
            k[j] = test_sigmoid(a[2]) * tanh(c[j]);
        }
        for (j = 0; j < H; j++) {
            h[j] = k[j];
            if (!x || y->with[i] < 0) continue;
            a[0] = test_row_times(ranker_weight(model, gate, "context"), j, 2 * H, x->v);
            a[0] += test_row_times(ranker_weight(model, gate, "weight"), j, H, k);
            a[0] = test_sigmoid(a[0] + (double)ranker_weight(model, gate, "bias")[j]);
            h[j] = a[0] * x->s[y->with[i]][from + j] + (1.0 - a[0]) * k[j];
        }
        memcpy(y->s[i] + from, h, sizeof h);
    }
}

static void ranker_max(ranker_text *y) {
    size_t i, j;
    for (j = 0; j < RANKER_D; j++)
        for (y->v[j] = y->s[0][j], i = 1; i < y->n; i++) y->v[j] = fmax(y->v[j], y->s[i][j]);
}

/* Line `pair` of ranker_links, by its definition: the first link of a word counts. */
static void ranker_file(size_t pair, ranker_text *y, int of_second) {
    const char *line = ranker_links;
    int i, j, n, k;
    for (k = 0; k < (int)y->n; k++) y->with[k] = -1;
    while (pair--) line = strchr(line, '\n') + 1;
    for (; *line && *line != '\n'; line += n) {
        n = 1;
        if (*line == ' ') continue;
        CHECK_INT(sscanf(line, "%d-%d%n", &i, &j, &n), 2);
        k = of_second ? j : i;
        if (y->with[k] < 0) y->with[k] = of_second ? i : j;
    }
}

static void ranker_align(const carnn_model *model, ranker_text *y, ranker_text *x) {
    int i, j, used[RANKER_WORDS] = {0};
    for (j = 0; j < (int)y->n; j++) {
        y->with[j] = -1;
        for (i = 0; i < (int)x->n; i++) {
            const char *a = carnn__names_get(&model->words, y->id[j]);
            const char *b = carnn__names_get(&model->words, x->id[i]);
            int most = model->desc.option[CARNN__TWO_OVERLAP] > 0
                           ? (int)model->desc.option[CARNN__TWO_OVERLAP] : 64;
            if (used[i] || strncmp(a, b, (size_t)most)) continue;
            if (y->with[j] < 0 || abs(i - j) < abs(y->with[j] - j)) y->with[j] = i;
        }
        if (y->with[j] >= 0) used[y->with[j]] = 1;
    }
}

static void ranker_weighted(ranker_text *y, const double *logit) {
    double sum = 0.0;
    size_t i, j;
    for (i = 0; i < y->n; i++) sum += exp(logit[i]);
    for (i = 0; i < y->n; i++) y->w[i] = exp(logit[i]) / sum;
    for (j = 0; j < RANKER_D; j++)
        for (y->v[j] = 0.0, i = 0; i < y->n; i++) y->v[j] += y->w[i] * y->s[i][j];
}

/* Tan et al. 2015 for the words of y, x asking. */
static void ranker_attend(const carnn_model *model, ranker_text *y, const ranker_text *x) {
    const float *W1 = ranker_weight(model, "attend.", "weight");
    const float *W2 = ranker_weight(model, "attend.", "other");
    double logit[RANKER_WORDS];
    size_t i, j;
    for (i = 0; i < y->n; i++)
        for (logit[i] = 0.0, j = 0; j < RANKER_H; j++)
            logit[i] += (double)ranker_weight(model, "attend.", "vector")[j] *
                        tanh(test_row_times(W1, j, RANKER_D, y->s[i]) +
                             test_row_times(W2, j, RANKER_D, x->v));
    ranker_weighted(y, logit);
}

static void ranker_attentive(const carnn_model *model, ranker_text *q, ranker_text *a) {
    const float *U = ranker_weight(model, "attend.", "weight");
    double row[RANKER_WORDS], column[RANKER_WORDS];
    size_t i, j, k;
    for (i = 0; i < q->n; i++) row[i] = -2.0;
    for (j = 0; j < a->n; j++) column[j] = -2.0;
    for (i = 0; i < q->n; i++)
        for (j = 0; j < a->n; j++) {
            double G = 0.0;
            for (k = 0; k < RANKER_D; k++)
                G += test_row_times(U, k, RANKER_D, q->s[i]) * a->s[j][k];
            row[i] = fmax(row[i], tanh(G));
            column[j] = fmax(column[j], tanh(G));
        }
    ranker_weighted(q, row);
    ranker_weighted(a, column);
}

static double ranker_plain(const carnn_model *model, ranker_text *text, size_t pair) {
    size_t kind = carnn__chosen(model, CARNN__ANSWER_MODEL), j;
    size_t first = kind == CARNN__ANSWER_AP ? 0 : carnn__chosen(model, CARNN__TWO_DIRECTION);
    size_t alignment = carnn__chosen(model, CARNN__TWO_ALIGNMENT);
    int aligns = kind == CARNN__ANSWER_CA && alignment != CARNN__ALIGN_NONE, back;
    ranker_text *x = &text[first], *y = &text[!first];
    double sum = 0.0, xx = 0.0, yy = 0.0, apart = 0.0;
    for (back = 0; back < 2; back++) ranker_read(model, x, NULL, back);
    ranker_max(x);
    if (alignment == CARNN__ALIGN_FILE) ranker_file(pair, y, !first);
    else ranker_align(model, y, x);
    for (back = 0; back < 2; back++) ranker_read(model, y, aligns ? x : NULL, back);
    ranker_max(y);
    if (kind == CARNN__ANSWER_AP) ranker_attentive(model, &text[0], &text[1]);
    else if (carnn__chosen(model, CARNN__TWO_POOLING) == 1) ranker_attend(model, y, x);
    for (j = 0; j < RANKER_D; j++) {
        sum += x->v[j] * y->v[j];
        xx += x->v[j] * x->v[j];
        yy += y->v[j] * y->v[j];
        apart += fabs(x->v[j] - y->v[j]);
    }
    return kind == CARNN__ANSWER_CA ? -apart : sum / sqrt(xx * yy);
}

/* The loss of all pairs in groups of 3, 3 and 2. */
static double ranker_loss(const carnn_model *model, const double *z) {
    static const size_t at[] = {0, 3, 6, 8};
    static const int right[] = {1, 0, 0, 1, 0, 1, 0, 1};
    size_t loss = carnn__chosen(model, CARNN__ANSWER_LOSS), g, i, j;
    double sum = 0.0, count = 0.0;
    for (g = 0; g < 3; g++)
        for (i = at[g]; i < at[g + 1]; i++) {
            double mean = 0.0, most = 0.0, wrong = 0.0;
            if (loss == CARNN__ANSWER_PAIR) sum -= right[i] ? z[i] : log(1.0 - exp(z[i]));
            count += loss == CARNN__ANSWER_PAIR || right[i];
            for (j = at[g]; j < at[g + 1] && right[i] && loss != CARNN__ANSWER_PAIR; j++)
                if (!right[j]) {
                    double term = fmax(0.0, 0.1 - z[i] + z[j]);
                    mean += term;
                    most = fmax(most, term);
                    wrong += 1.0;
                }
            if (wrong > 0.0) sum += loss == CARNN__ANSWER_HARDEST ? most : mean / wrong;
        }
    return sum / count;
}

/* What words have to do with each other: of ap tanh(q U a), else the cosine of their states. */
static void ranker_heat(const carnn_model *model, const carnn_dataset *data, size_t pair,
                        ranker_text *text) {
    int ap = carnn__chosen(model, CARNN__ANSWER_MODEL) == CARNN__ANSWER_AP;
    carnn_session *session = NULL;
    carnn_prediction p;
    const float *heat;
    size_t rows, columns, r, c, k;
    CHECK_INT(carnn_session_open(&session, model, NULL, NULL), CARNN_OK);
    CHECK_INT(carnn_session_example(session, data, pair, 1, &p, NULL), CARNN_OK);
    heat = carnn_session_alignment(session, 0, &rows, &columns);
    CHECK_INT(rows, text[0].n);
    CHECK_INT(columns, text[1].n);
    for (r = 0; r < rows; r++)
        for (c = 0; c < columns; c++) {
            double G = 0.0, dot = 0.0, x = 0.0, y = 0.0;
            for (k = 0; k < RANKER_D; k++) {
                const double *q = text[0].s[r], *a = text[1].s[c];
                dot += q[k] * a[k];
                x += q[k] * q[k];
                y += a[k] * a[k];
                if (ap)
                    G += test_row_times(test_weight(model, "attend.weight"), k, RANKER_D, q) * a[k];
            }
            CHECK_NEAR(heat[r * columns + c], ap ? tanh(G) : dot / sqrt(x * y), 2e-5);
        }
    carnn_session_free(session);
}

/* What word i is of the vector v of its text: what it adds to v . v, as a weighted state, or by the
   columns whose maximum it has. */
static double ranker_share(const ranker_text *y, size_t i) {
    double own = 0.0, all = 0.0;
    size_t j, r;
    for (j = 0; j < RANKER_D; j++) {
        all += y->v[j] * y->v[j];
        for (r = 0; r < y->n && y->s[r][j] < y->v[j];) r++; /* of a maximum */
        if (*y->w > 0.0) own += y->w[i] * y->s[i][j] * y->v[j];
        else own += r == i ? y->v[j] * y->v[j] : 0.0;
    }
    return own / all;
}

/* The weights and shares of all words, those of the question first. */
static void ranker_explained(const carnn_model *model, const carnn_dataset *data, size_t pair,
                             const ranker_text *text) {
    carnn_session *session = NULL;
    carnn_contribution part[2 * RANKER_WORDS];
    carnn_explanation e;
    carnn_prediction p;
    size_t i;
    CHECK_INT(carnn_session_open(&session, model, NULL, NULL), CARNN_OK);
    CHECK_INT(carnn_session_example(session, data, pair, 1, &p, NULL), CARNN_OK);
    CHECK_INT(carnn_session_explain(session, 2 * RANKER_WORDS, part, &e, NULL), CARNN_OK);
    CHECK_INT(e.count, text[0].n + text[1].n);
    for (i = 0; i < e.count; i++) {
        const ranker_text *y = &text[i >= text->n];
        size_t word = i < text->n ? i : i - text->n;
        CHECK_NEAR(part[i].share, ranker_share(y, word), 2e-5);
        CHECK_NEAR(part[i].attention, y->w[word], 2e-5);
    }
    carnn_session_free(session);
}

static void test_ranker_scores(const char *options) {
    carnn_dataset *data = ranker_data();
    carnn_model *model;
    carnn_error error;
    double score[RANKER_PAIRS];
    carnn_scores s;
    size_t i, j;
    if (strstr(options, "file")) {
        carnn_dataset_free(data);
        CHECK_INT(ranker_linked(&data, ranker_links, &error), CARNN_OK);
    }
    model = ranker_model(options, data, 3);
    s = ranker_scores(model, data, score);
    for (i = 0; i < RANKER_PAIRS; i++) {
        ranker_text text[2];
        for (j = 0; j < 2; j++) {
            uint32_t number = carnn__members(data, &data->items[i])[j].text;
            memset(&text[j], 0, sizeof text[j]);
            text[j].n = carnn__tokens(model, carnn__text(data, number), 0, text[j].id,
                                      RANKER_WORDS);
        }
        CHECK_NEAR(score[i], ranker_plain(model, text, i), 2e-5);
        ranker_heat(model, data, i, text);
        ranker_explained(model, data, i, text);
    }
    if (carnn__chosen(model, CARNN__ANSWER_LOSS) != CARNN__ANSWER_RANK)
        CHECK_NEAR(s.loss, ranker_loss(model, score), 2e-5);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* --- alignment -------------------------------------------------------------------------------- */

/* The words of the first pair and of the third, aligned by hand. */
static void test_ranker_alignment(void) {
    static const int first[] = {2, 6, 1, 5, 3, -1}; /* of "the dog saw the cat ." */
    /*  who saw the cat and the dog ?  /  a Cat is not the dog the dog is it ? */
    static const int third[] = {-1, 3, -1, -1, 5, 6, 2, -1, -1, -1, 7};
    carnn_dataset *data = ranker_data();
    carnn_model *model = ranker_model("model=ca", data, 1);
    carnn_session *session = NULL;
    const carnn__answer *m;
    carnn_prediction p;
    carnn_error error;
    size_t i;
    CHECK_INT(carnn_session_open(&session, model, NULL, &error), CARNN_OK);
    m = (const carnn__answer *)session->work.state;
    CHECK_INT(carnn_session_example(session, data, 0, 1, &p, &error), CARNN_OK);
    for (i = 0; i < 6; i++) CHECK_INT((int32_t)m->two.aligned.with[8 + i], first[i]);
    CHECK_INT(carnn_session_example(session, data, 2, 1, &p, &error), CARNN_OK);
    for (i = 0; i < 11; i++) CHECK_INT((int32_t)m->two.aligned.with[8 + i], third[i]);
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Where no word is aligned, gates change nothing. */
static void test_ranker_no_alignment(void) {
    carnn_dataset *data = ranker_data();
    carnn_model *gated = ranker_model("model=ca", data, 2);
    carnn_model *plain = ranker_model("model=ca alignment=none", data, 1);
    carnn_session *session[2] = {NULL, NULL};
    carnn_text texts[2] = {{"who saw it", 10}, {"the tree", 8}};
    carnn_prediction p[2];
    carnn_error error;
    size_t i, j;
    for (i = 0; i < plain->params.count; i++) {
        const carnn__param *to = &plain->params.item[i];
        const float *from = ranker_weight(gated, to->name, "");
        for (j = 0; j < to->rows * to->columns; j++) plain->params.value[to->offset + j] = from[j];
    }
    for (i = 0; i < 2; i++) {
        CHECK_INT(carnn_session_open(&session[i], i ? plain : gated, NULL, &error), CARNN_OK);
        CHECK_INT(carnn_session_predict(session[i], texts, 2, 1, &p[i], &error), CARNN_OK);
    }
    CHECK(p[0].score == p[1].score);
    texts[1].at = "the cat saw";
    texts[1].length = 11;
    for (i = 0; i < 2; i++)
        CHECK_INT(carnn_session_predict(session[i], texts, 2, 1, &p[i], &error), CARNN_OK);
    CHECK(p[0].score != p[1].score);
    for (i = 0; i < 2; i++) carnn_session_free(session[i]);
    carnn_model_free(gated);
    carnn_model_free(plain);
    carnn_dataset_free(data);
}

/* Alignments that do not fit their pairs name their line. */
static void test_ranker_bad_links(void) {
    static const struct {
        const char *links, *message;
    } bad[] = {
        {"6-1\n\n8-1\n", "pairs.tsv.align:3: expected i-j, word i of 8 and j of 11 from 0 on, "
                          "found \"8-1\""},
        {"0-6\n", "pairs.tsv.align:1: expected i-j, word i of 8 and j of 6 from 0 on, found "
                  "\"0-6\""},
        {"0-5 1\n", "pairs.tsv.align:1: expected i-j, word i of 8 and j of 6 from 0 on, found "
                    "\"1\""},
        {"0-\n", "pairs.tsv.align:1: expected i-j, word i of 8 and j of 6 from 0 on, found \"0-\""},
        {"-1\n", "pairs.tsv.align:1: expected i-j, word i of 8 and j of 6 from 0 on, found \"-1\""},
        {"0-99999999999\n", "pairs.tsv.align:1: expected i-j, word i of 8 and j of 6 from 0 on, "
                            "found \"0-99999999999\""},
        {"65536-0\n", "pairs.tsv.align:1: expected i-j, word i of 8 and j of 6 from 0 on, found "
                      "\"65536-0\""},
        {"1-1-1\n", "pairs.tsv.align:1: expected i-j, word i of 8 and j of 6 from 0 on, found "
                    "\"1-1-1\""},
        {"\n\n\n", "pairs.tsv.align:4: expected a line for every example, found the end"},
        {"", "pairs.tsv.align:1: expected a line for every example, found the end"},
        {"\n\n\n\n\n\n\n\n\n", "pairs.tsv.align:9: expected the end, as there are no more "
                                "examples, found another line"},
        {NULL, "pairs.tsv: alignments lie in a file beside the data, which is no file"}};
    char many[4 * 520];
    carnn_dataset *data = NULL;
    carnn_error error;
    size_t i;
    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(ranker_linked(&data, bad[i].links, &error) != CARNN_OK);
        CHECK(!data);
        CHECK_TEXT(error.message, bad[i].message);
    }
    CHECK_INT(ranker_linked(&data, "\n\n\n\n\n\r\n\n0-2", &error), CARNN_OK);
    carnn_dataset_free(data);
    for (i = 0; i < 513; i++) memcpy(many + 4 * i, "0-0 ", 4);
    many[4 * i] = 0;
    CHECK(ranker_linked(&data, many, &error) != CARNN_OK);
    CHECK_TEXT(error.message, "pairs.tsv.align:1: expected no more than 512 pairs of words, found "
                              "\"0-0\"");
    memcpy(many + 4 * 512, "\n\n\n\n\n\n\n\n", 9);
    CHECK_INT(ranker_linked(&data, many, &error), CARNN_OK);
    carnn_dataset_free(data);
}

/* A data set with alignments: what sessions, other models, folds and checkpoints make of it. */
static void test_ranker_linked(void) {
    carnn_dataset *data = NULL, *other = NULL, *plain = ranker_data(), *part = NULL;
    carnn_model *model, *overlap = ranker_model("model=ca", plain, 1);
    carnn_session *session = NULL;
    carnn_prediction p;
    carnn_error error;
    carnn_scores s;
    double score[RANKER_PAIRS];
    const float *idf;
    uint32_t fold[3] = {0, 1, 0};
    carnn_text text[3] = {{"why", 3}, {"nobody knows why", 16}, {"0-2", 3}};
    size_t i;
    int found;
    CHECK_INT(ranker_linked(&data, ranker_links, &error), CARNN_OK);
    CHECK_INT(ranker_linked(&other, "\n\n\n\n\n\n\n\n", &error), CARNN_OK);
    CHECK(carnn__fingerprint(data) != carnn__fingerprint(other));
    CHECK(carnn__fingerprint(data) != carnn__fingerprint(plain));
    CHECK_INT(carnn_dataset_text_count(data, 7), 2);
    CHECK(!carnn_dataset_text(data, 7, 2));
    model = ranker_model("model=ca alignment=file", data, 3);
    CHECK_INT(carnn__names_find(&model->words, carnn__span_of("0-2")), CARNN__NO_INDEX);
    idf = carnn__named(&model->params, "word.idf"); /* of words alone; 1 of unknown ones */
    CHECK_INT(model->words.count, overlap->words.count);
    CHECK(!memcmp(idf, carnn__named(&overlap->params, "word.idf"),
                  model->words.count * sizeof *idf));
    for (i = 0; i < CARNN__UNKNOWN; i++) CHECK_NEAR(idf[i], 1.0, 0.0);
    ranker_scores(model, data, score);
    CHECK_INT(carnn_session_open(&session, model, NULL, &error), CARNN_OK);
    for (i = RANKER_PAIRS; i-- > 0;) {
        CHECK_INT(carnn_session_example(session, data, i, 1, &p, &error), CARNN_OK);
        CHECK(p.score == score[i]);
    }
    CHECK_INT(carnn_session_predict(session, text, 3, 1, &p, &error), CARNN_OK);
    CHECK(p.score == score[7]);
    text[2].at = "0-3";
    CHECK_INT(carnn_session_predict(session, text, 3, 1, &p, &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message, "expected i-j, word i of 1 and j of 3 from 0 on in an alignment");
    CHECK_INT(carnn_session_predict(session, text, 2, 1, &p, &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message, "the model reads alignments: expected a text \"0-0 1-2\" behind the "
                              "others, or a file of data with FILE.align");
    CHECK_INT(carnn_session_line(session, "why\tthe tree", 12, 1, 1, &found, &p, &error),
              CARNN_ERR_ARGUMENT);
    CHECK_INT(found, 0);
    carnn_session_free(session);
    CHECK_INT(carnn_test((const carnn_model *const *)&model, 1, plain, 1, &s, &error),
              CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message,
               "the model reads alignments, the data set has been loaded without them");
    CHECK_INT(carnn_test((const carnn_model *const *)&overlap, 1, data, 1, &s, &error), CARNN_OK);
    CHECK_INT(carnn_session_open(&session, overlap, NULL, &error), CARNN_OK); /* it reads none */
    CHECK_INT(carnn_session_example(session, data, 7, 1, &p, &error), CARNN_OK);
    CHECK_INT(carnn__dataset_subset(&part, data, fold, 0, &error), CARNN_OK);
    CHECK_INT(carnn_dataset_examples(part), 5);
    ranker_scores(model, part, score);
    CHECK_INT(carnn_session_example(session, part, 4, 1, &p, &error), CARNN_OK);
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_model_free(overlap);
    carnn_dataset_free(part);
    carnn_dataset_free(plain);
    carnn_dataset_free(other);
    carnn_dataset_free(data);
}

/* The links of overlap, given as a file, make the same model but for its options. */
static void test_ranker_file_as_overlap(void) {
    static const char links[] =
        "2-0 6-1 1-2 5-3 3-4\n2-0\n3-1 5-4 6-5 2-6 7-10\n2-1\n\n2-0 3-1 1-2\n\n0-2\n";
    carnn_dataset *data = NULL, *plain = ranker_data();
    carnn_model *model[2];
    carnn_error error;
    double score[2][RANKER_PAIRS];
    size_t i;
    CHECK_INT(ranker_linked(&data, links, &error), CARNN_OK);
    model[0] = ranker_model("model=ca", plain, 3);
    model[1] = ranker_model("model=ca alignment=file", data, 3);
    ranker_scores(model[0], plain, score[0]);
    ranker_scores(model[1], data, score[1]);
    for (i = 0; i < RANKER_PAIRS; i++) CHECK(score[0][i] == score[1][i]);
    for (i = 0; i < 2; i++) carnn_model_free(model[i]);
    carnn_dataset_free(data);
    carnn_dataset_free(plain);
}

/* --- whatever runs it ------------------------------------------------------------------------- */

/* Whatever runs it makes the same model; learning ranks the pairs. */
static void test_ranker_same_bytes(const char *options) {
    carnn_dataset *data = ranker_data();
    carnn_model *model = test_trains_alike("answer", options, data, ranker_training(60));
    double score[RANKER_PAIRS];
    CHECK_NEAR(ranker_scores(model, data, score).metric[0].value, 1.0, 1e-9);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* A session scores as a test does; the shares of the words of a text are 1 in all. */
static void test_ranker_session(const char *options, int weighs_question, int weighs_sentence) {
    carnn_dataset *data = ranker_data();
    carnn_model *model = ranker_model(options, data, 2);
    carnn_session *session = NULL;
    carnn_contribution part[32];
    carnn_explanation e;
    carnn_prediction p;
    carnn_error error;
    carnn_text none[2] = {{"", 0}, {"", 0}};
    double score[RANKER_PAIRS], share[2] = {0, 0}, weight[2] = {0, 0};
    size_t i, rows, columns;
    const float *heat;
    float most, last;
    ranker_scores(model, data, score);
    CHECK_INT(carnn_session_open(&session, model, NULL, &error), CARNN_OK);
    for (i = RANKER_PAIRS; i-- > 0;) {
        CHECK_INT(carnn_session_example(session, data, i, 1, &p, &error), CARNN_OK);
        CHECK(p.score == score[i]);
    }
    CHECK_INT(carnn_session_explain(session, 32, part, &e, &error), CARNN_OK);
    CHECK_INT(e.count, 8 + 6);
    CHECK_INT(e.exact, 1);
    for (i = 0; i < e.count; i++) {
        int weighs = i < 8 ? weighs_question : weighs_sentence;
        CHECK_INT(part[i].has, CARNN_HAS_SHARE | (weighs ? CARNN_HAS_ATTENTION : 0));
        share[i >= 8] += part[i].share;
        weight[i >= 8] += part[i].attention;
    }
    CHECK_TEXT(part[9].text, "dog");
    for (i = 0; i < 2; i++) CHECK_NEAR(share[i], 1.0, 1e-5);
    CHECK_NEAR(weight[0], weighs_question, 1e-5);
    CHECK_NEAR(weight[1], weighs_sentence, 1e-5);
    heat = carnn_session_alignment(session, 0, &rows, &columns);
    CHECK_INT(rows, 8);
    CHECK_INT(columns, 6);
    for (most = -2.0f, i = 0; i < 48; i++) most = heat[i] > most ? heat[i] : most;
    CHECK(most > -1.0f && most <= 1.00001f);
    last = heat[3 * 6 + 2];
    heat = carnn_session_alignment(session, 1, &rows, &columns);
    CHECK_INT(rows, 6);
    CHECK_INT(columns, 8);
    CHECK_NEAR(heat[2 * 8 + 3], last, 1e-6);
    for (i = 0; i < 4; i++) { /* texts without words */
        none[0].length = i & 1;
        none[1].length = i >> 1;
        none[0].at = none[1].at = "a";
        CHECK_INT(carnn_session_predict(session, none, 2, 1, &p, &error), CARNN_OK);
        CHECK(isfinite(p.score));
        CHECK_INT(carnn_session_explain(session, 32, part, &e, &error), CARNN_OK);
    }
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Also of vectors whose squares are no normal floats the shares of a text are 1 in all. */
static void test_ranker_small_vectors(void) {
    carnn_dataset *data = ranker_data();
    carnn_model *model = test_model("answer", "model=cosine cell=rnn", NULL, data);
    carnn_session *session = NULL;
    carnn_contribution part[32];
    carnn_explanation e;
    carnn_prediction p;
    carnn_error error;
    double sum;
    size_t i, w, words;
    for (w = 0; w < model->params.trained; w++) model->params.value[w] *= 1e-11f;
    CHECK_INT(carnn_session_open(&session, model, NULL, &error), CARNN_OK);
    for (i = 0; i < RANKER_PAIRS; i++) {
        CHECK_INT(carnn_session_example(session, data, i, 1, &p, &error), CARNN_OK);
        CHECK_INT(carnn_session_explain(session, 32, part, &e, &error), CARNN_OK);
        for (sum = e.rest, words = 0; words < e.count; words++) sum += part[words].share;
        CHECK_NEAR(sum, 2.0, 1e-5);
    }
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Wrong answers are drawn where there are more than six: the mean is over six of these. */
static void test_ranker_negatives(void) {
    char text[400] = "q r\tx\t1\n";
    carnn_dataset *data;
    carnn_model *model;
    double score[16], odd, other, drawn;
    carnn_scores s;
    size_t w;
    int i;
    for (i = 0; i < 12; i++) sprintf(text + strlen(text), "q r\t%s\t0\n", i ? "w" : "q r");
    data = test_read("answer", text);
    model = test_model("answer", "model=cosine", NULL, data);
    for (w = 0; w < model->params.trained; w++) model->params.value[w] *= 4.0f; /* unlike texts */
    s = ranker_scores(model, data, score);
    odd = CARNN__HINGE_MARGIN - score[0] + score[1]; /* the term of the one that is not like all */
    other = CARNN__HINGE_MARGIN - score[0] + score[2];
    CHECK(odd > 0.0 && other > 0.0 && fabs(odd - other) > 0.01);
    drawn = 6.0 * (s.loss - other) / (odd - other); /* how often that is: of all twelve 0.5 */
    CHECK_NEAR(drawn, floor(drawn + 0.5), 1e-3);
    CHECK(drawn > -0.5 && drawn < 6.5);
    CHECK_INT(s.examples, 13);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

static void test_ranker_refused(void) {
    carnn_dataset *data = ranker_data();
    carnn_model *model = NULL;
    carnn_model_desc desc;
    carnn_error error;
    memset(&desc, 0, sizeof desc);
    desc.task = "answer";
    CHECK_INT(carnn__set_all(&desc, NULL, 0, "model=ca encoder=rcrn hidden=4", &error), CARNN_OK);
    CHECK_INT(carnn_model_create(&model, &desc, data, &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message,
               "aligned words mix the states of one RNN: encoder rnn, or alignment none");
    CHECK_INT(carnn__set_all(&desc, NULL, 0, "encoder=rnn normalise=batch", &error), CARNN_OK);
    CHECK_INT(carnn_model_create(&model, &desc, data, &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message,
               "aligned words mix the states of one RNN: normalise none, or alignment none");
    CHECK_INT(carnn_set(&desc, NULL, "alignment", "none", &error), CARNN_OK);
    CHECK_INT(carnn_model_create(&model, &desc, data, &error), CARNN_OK);
    carnn_model_free(model);
    CHECK_INT(carnn__set_all(&desc, NULL, 0, "model=iwan alignment=file", &error), CARNN_OK);
    CHECK_INT(carnn_model_create(&model, &desc, data, &error), CARNN_ERR_ARGUMENT);
    CHECK_INT(carnn_set(&desc, NULL, "alignment", "semantic", &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message, "unknown alignment \"semantic\" (overlap, none, file)");
    carnn_dataset_free(data);
}

int main(void) {
    test_ranker_scores("model=ca");
    test_ranker_scores("model=ca direction=a2q");
    test_ranker_scores("model=ca pooling=attention");
    test_ranker_scores("model=ca pooling=attention direction=a2q loss=rank");
    test_ranker_scores("model=ca alignment=none");
    test_ranker_scores("model=ca alignment=none pooling=attention");
    test_ranker_scores("model=ap");
    test_ranker_scores("model=ap loss=hardest");
    test_ranker_scores("model=cosine");
    test_ranker_scores("model=cosine pooling=attention loss=hinge");
    test_ranker_scores("model=ca alignment=file");
    test_ranker_scores("model=ca alignment=file direction=a2q pooling=attention loss=rank");
    test_ranker_bad_links();
    test_ranker_linked();
    test_ranker_file_as_overlap();
    test_ranker_alignment();
    test_ranker_no_alignment();
    test_ranker_same_bytes("model=ca loss=rank");
    test_ranker_same_bytes("model=ca pooling=attention cell=gru loss=hinge");
    test_ranker_same_bytes("model=ca cell=scarnn layers=2 loss=rank");
    test_ranker_same_bytes("model=ap");
    test_ranker_same_bytes("model=cosine");
    test_ranker_session("model=ca", 0, 0);
    test_ranker_session("model=ca pooling=attention", 0, 1);
    test_ranker_session("model=ap", 1, 1);
    test_ranker_session("model=cosine", 0, 0);
    test_ranker_small_vectors();
    test_ranker_negatives();
    test_ranker_refused();
    return test_end();
}
