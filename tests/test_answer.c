/* Answer selection: scores by plain loops, AP and RR by hand, batches and threads that change
   nothing, vectors, resumed trainings, bad input, memory that runs out. */

#include "test.h"

static const char pairs[] =
    "who saw the cat ?\tthe dog saw the cat .\t1\n"
    "who saw the cat ?\tthe bird sang\t0\n"
    "who saw the cat ?\ta cat is not a dog , is it ?\t0\n"
    "where is the bird\tin 1 tree\t1\n"
    "where is the bird\ta dog\t0\n"
    "where is the bird\tthe bird is there\t1\n"
    "why\tthe tree\t0\n"
    "why\tnobody knows\t1\n";

/* The last word of a question and the first of its sentence stand side by side there, too; letters
   of several bytes; words that occur once, which are unknown with min_count=2. */
static const char odd_pairs[] =
    "x b\tc d b c\t1\nx b\tb d\t0\n"
    "\xC3\xA4\xC3\xA4\xC3\xA4x d\t\xC3\xA4\xC3\xA4\xC3\xB6x b\t0\n"
    "\xC3\xA4\xC3\xA4\xC3\xA4x d\t\xC3\xA4\xC3\xA4\xC3\xB6x c\t1\n"
    "zebra b\tyak gnu c\t1\nzebra b\tlion x\t0\n"
    "c d\tc\t1\nc d\tx\t0\n";

static carnn_dataset *answer_data(const char *bytes) {
    return test_read("answer", bytes);
}

/* As test_training(), but the best epoch is not kept and no weight decays. */
static carnn_train_desc answer_training(int64_t epochs, double lr) {
    carnn_train_desc train = test_training(epochs, 4, lr, 0.0);
    train.patience = CARNN_NONE;
    train.weight_decay = CARNN_NONE;
    return train;
}

static carnn_status answer_fit(carnn_model *model, const carnn_dataset *data, int64_t epochs,
                               double lr) {
    carnn_train_desc train = answer_training(epochs, lr);
    carnn_error error;
    return carnn_train(model, data, data, &train, &error);
}

static void keep_score(const carnn_ranked *pair, void *user) {
    float **next = (float **)user;
    *(*next)++ = (float)pair->score;
}

/* The scores of all pairs, as a batch of `batch` pairs at least makes them. */
static void score_pairs(const carnn_model *model, const carnn_dataset *data, size_t batch,
                        size_t threads, float *score) {
    carnn_test_desc asked;
    test_work w;
    memset(&asked, 0, sizeof asked);
    asked.ranked = keep_score;
    asked.user = &score;
    test_work_open(&w, model, data, threads);
    w.work.batch = batch;
    w.work.test = &asked;
    test_work_run(&w, 0);
    CHECK_INT(w.tally.examples, data->item_count);
    test_work_close(&w);
}

/* --- the model by plain loops in doubles ------------------------------------------------------ */

enum { E = 5, WIDTH = 6, D = 2 * WIDTH, LONGEST = 16 };

typedef struct sentence {
    size_t n;
    uint32_t id[LONGEST];
    double x[LONGEST][WIDTH], s[LONGEST][D]; /* inputs, states */
} sentence;

/* The bytes of the first n letters of a word. */
static size_t letter_bytes(const char *word, double n) {
    size_t at = 0;
    for (; n > 0.0 && word[at]; n -= 1.0) at += carnn__character(word + at, strlen(word + at));
    return at;
}

/* Do two words begin with the same letters? */
static unsigned same_word(const carnn_model *model, uint32_t a, uint32_t b) {
    const char *x = carnn__names_get(&model->words, a), *y = carnn__names_get(&model->words, b);
    size_t bytes = letter_bytes(x, model->desc.option[CARNN__TWO_OVERLAP]);
    if (a < CARNN__UNKNOWN || b < CARNN__UNKNOWN) return a == b;
    return bytes == letter_bytes(y, model->desc.option[CARNN__TWO_OVERLAP]) &&
           !memcmp(x, y, bytes);
}

/* The inputs of a sentence beside another one. */
static void plain_inputs(const carnn_model *model, sentence *s, const sentence *other) {
    const float *table = test_weight(model, "word.weight"), *P = test_weight(model, "word.project");
    const float *b = test_weight(model, "word.bias"), *idf = test_weight(model, "word.idf");
    size_t more = model->desc.option[CARNN__TWO_OVERLAP] > 0 ? 2 : 0, i, j, k;
    for (i = 0; i < s->n; i++) {
        double word[E + 2], both = 0.0;
        for (j = 0; j < E; j++) word[j] = (double)table[s->id[i] * E + j];
        for (k = 0; k < other->n; k++)
            if (same_word(model, other->id[k], s->id[i])) both = 1.0;
        word[E] = both;
        word[E + 1] = both * (double)idf[s->id[i]];
        for (j = 0; j < WIDTH; j++)
            s->x[i][j] = test_row_times(P, j, E + more, word) + (double)b[j];
    }
}

/* iCARNN in one direction, with the position encoding of the other sentence as context. */
static void plain_states(const carnn_model *model, sentence *s, const sentence *other,
                         int backwards) {
    char name[64];
    const float *W, *U, *b;
    double c[WIDTH], h[WIDTH];
    size_t i, j, k, t;
#define OF(what) (snprintf(name, sizeof name, "cell.%s.%s", backwards ? "backward" : "forward", \
                           what), test_weight(model, name))
    W = OF("input.weight");
    b = OF("bias");
    U = OF("context.weight");
#undef OF
    for (k = 0; k < WIDTH; k++) {
        c[k] = h[k] = 0.0;
        for (j = 1; j <= other->n; j++) {
            double place = (double)j / (double)other->n;
            c[k] += ((1.0 - place) - (double)(k + 1) / WIDTH * (1.0 - 2.0 * place)) *
                    other->x[j - 1][k] / (double)other->n;
        }
    }
    for (t = 0; t < s->n; t++) {
        double next[WIDTH];
        i = backwards ? s->n - 1 - t : t;
        for (j = 0; j < WIDTH; j++) {
            double u = test_sigmoid(test_row_times(W, j, WIDTH, s->x[i]) + (double)b[j] +
                                    test_row_times(U, j, WIDTH, c));
            double f = test_sigmoid(test_row_times(W, WIDTH + j, WIDTH, s->x[i]) +
                                    (double)b[WIDTH + j] + test_row_times(U, WIDTH + j, WIDTH, c));
            double z = test_row_times(W, 2 * WIDTH + j, WIDTH, s->x[i]) + (double)b[2 * WIDTH + j];
            next[j] = u * f * z + (1.0 - u) * h[j];
        }
        for (j = 0; j < WIDTH; j++) s->s[i][(backwards ? WIDTH : 0) + j] = h[j] = next[j];
    }
}

static double dot(const double *x, const double *y) {
    double sum = 0.0;
    size_t j;
    for (j = 0; j < D; j++) sum += x[j] * y[j];
    return sum;
}

/* f of a sentence (2 D, direct D). */
static void plain_sum(const carnn_model *model, const sentence *s, const sentence *other,
                      double *f) {
    const float *W1 = test_weight(model, "attend.weight"), *W2 = test_weight(model, "attend.other");
    const float *v = test_weight(model, "attend.vector");
    int direct = carnn__chosen(model, CARNN__ANSWER_DECOMPOSITION) == 1;
    double a[LONGEST][D], w[LONGEST], mean[D], all = 0.0;
    size_t i, j, k;
    memset(mean, 0, sizeof mean);
    memset(a, 0, sizeof a);
    for (i = 0; i < other->n; i++)
        for (j = 0; j < D; j++) mean[j] += other->s[i][j] / (double)other->n;
    for (i = 0; i < s->n; i++) {
        double p[LONGEST], sum = 0.0, key[D];
        for (j = 0; j < other->n; j++) sum += p[j] = exp(dot(s->s[i], other->s[j]));
        for (j = 0; j < other->n; j++)
            for (k = 0; k < D; k++) a[i][k] += p[j] / sum * other->s[j][k];
        memcpy(key, s->s[i], sizeof key);
        if (carnn__chosen(model, CARNN__ANSWER_WEIGHTING) == 1)
            for (k = 0; k < D; k++) {
                if (k < WIDTH && i) key[k] -= s->s[i - 1][k];
                if (k >= WIDTH && i + 1 < s->n) key[k] -= s->s[i + 1][k];
            }
        for (w[i] = 0.0, k = 0; k < WIDTH; k++)
            w[i] += (double)v[k] *
                    tanh(test_row_times(W1, k, D, key) + test_row_times(W2, k, D, mean));
        all += w[i] = exp(w[i]);
    }
    memset(f, 0, 2 * D * sizeof *f);
    for (i = 0; i < s->n; i++)
        for (k = 0; k < D; k++) {
            double share = direct ? 1.0 : dot(s->s[i], a[i]) / dot(a[i], a[i]);
            if (!direct) f[k] += w[i] / all * share * a[i][k];
            f[(direct ? 0 : D) + k] += w[i] / all * (s->s[i][k] - share * a[i][k]);
        }
}

/* How similar two words are, from their vectors where these are not trained. */
static double plain_similar(const carnn_model *model, uint32_t a, uint32_t b) {
    size_t k;
    const float *v = test_weight(model, "word.weight");
    double ab = 0.0, aa = 0.0, bb = 0.0;
    if (same_word(model, a, b)) return 1.0;
    if (carnn__option(model, CARNN__TWO_TUNE) > 0.0) return 0.0;
    for (k = 0; k < E; k++) {
        double x = (double)v[a * E + k], y = (double)v[b * E + k];
        ab += x * y;
        aa += x * x;
        bb += y * y;
    }
    return fmax(0.0, 2.0 * ab / sqrt(aa * bb) - 1.0);
}

/* Twenty times the shares of the question's words that are in the answer, by number and by the cube
   of the idf: the very words, those that count as the same, by similarity, and before the same. */
static void plain_overlap(const carnn_model *model, const sentence *q, const sentence *a,
                          double share[8]) {
    const float *idf = test_weight(model, "word.idf");
    double sum = 0.0;
    size_t i, j, k;
    memset(share, 0, 8 * sizeof(double));
    for (i = 0; i < q->n; i++) {
        double found[4] = {0.0, 0.0, 0.0, 0.0}, rare = pow((double)idf[q->id[i]], 3.0);
        double two = i + 1 < q->n ? (rare + pow((double)idf[q->id[i + 1]], 3.0)) / 2.0 : 0.0;
        for (j = 0; j < a->n; j++) {
            unsigned same = same_word(model, a->id[j], q->id[i]);
            if (a->id[j] == q->id[i]) found[0] = 1.0;
            if (same) found[1] = 1.0;
            found[2] = fmax(found[2], plain_similar(model, q->id[i], a->id[j]));
            if (same && i + 1 < q->n && j + 1 < a->n &&
                same_word(model, a->id[j + 1], q->id[i + 1])) found[3] = 1.0;
        }
        sum += rare;
        for (k = 0; k < 4; k++) {
            share[2 * k] += found[k] * 20.0 / (double)q->n;
            share[2 * k + 1] += found[k] * 20.0 * (k == 3 ? two : rare);
        }
    }
    for (k = 1; k < 8; k += 2) share[k] /= sum;
}

/* Is w one of the words of the sentence, or one that counts as the same? */
static int has_word(const carnn_model *model, const sentence *s, uint32_t w, int very) {
    size_t i;
    for (i = 0; i < s->n; i++)
        if (very ? s->id[i] == w : same_word(model, s->id[i], w)) return 1;
    return 0;
}

/* Twenty times the largest and the mean support that a sentence's words have by `n` others. */
static void plain_redundancy(const carnn_model *model, const sentence *q, const sentence *a,
                             const sentence *others, size_t n, double share[2]) {
    const float *idf = test_weight(model, "word.idf");
    double all = 0.0;
    size_t i, j, k;
    share[0] = share[1] = 0.0;
    for (i = 0; i < a->n; i++) {
        double with = 0.0, sum = 0.0, rare = pow((double)idf[a->id[i]], 3.0);
        for (j = 0; j < i && a->id[j] != a->id[i];) j++;
        if (j < i || has_word(model, q, a->id[i], 0)) continue;
        for (k = 0; k < n; k++) {
            double both = 0.0, asked = 0.0, power;
            if (others[k].n == a->n && !memcmp(others[k].id, a->id, a->n * sizeof *a->id)) continue;
            for (j = 0; j < q->n; j++) {
                double of_word = pow((double)idf[q->id[j]], 3.0);
                asked += of_word;
                if (has_word(model, &others[k], q->id[j], 0)) both += of_word;
            }
            power = pow(1.0 + both / asked, 8.0);
            sum += power;
            if (has_word(model, &others[k], a->id[i], 1)) with += power;
        }
        if (sum > 0.0) share[0] = fmax(share[0], 20.0 * rare * with / sum);
        if (sum > 0.0) share[1] += 20.0 * rare * with / sum;
        all += rare;
    }
    if (all > 0.0) share[1] /= all;
}

/* Minus ten times the logarithm of a sentence's place among the n of its question. */
static double plain_place(const sentence *a, const sentence *group, size_t n) {
    double place = 1.0;
    while (n-- && (group->n != a->n || memcmp(group->id, a->id, a->n * sizeof *a->id)))
        place += 1.0, group++;
    return -10.0 * log(fmin(place, 10.0));
}

/* Twenty times the part of the question, by idf^3, that the sentence and the first one have. */
static double plain_topic(const carnn_model *model, const sentence *q, const sentence *a,
                          const sentence *first) {
    const float *idf = test_weight(model, "word.idf");
    double both = 0.0, all = 0.0;
    size_t i;
    for (i = 0; i < q->n; i++) {
        double rare = pow((double)idf[q->id[i]], 3.0);
        all += rare;
        if (has_word(model, a, q->id[i], 0) || has_word(model, first, q->id[i], 0)) both += rare;
    }
    return 20.0 * both / all;
}

/* Ten times the logarithm of a sentence's length, where 20 words are none; a tenth of its square;
   twenty if a word begins with a digit. */
static void plain_traits(const carnn_model *model, const sentence *a, double trait[3]) {
    size_t i;
    trait[0] = 10.0 * log((double)(a->n + 1) / 21.0);
    trait[1] = trait[0] * trait[0] / 10.0;
    trait[2] = 0.0;
    for (i = 0; i < a->n; i++)
        if (strchr("0123456789", carnn__name(&model->words, a->id[i]).at[0])) trait[2] = 20.0;
}

/* The sentences of a question are `group` (n). */
static double plain_score(const carnn_model *model, sentence *q, sentence *a,
                          const sentence *group, size_t n) {
    const float *out = test_weight(model, "output.weight");
    double f[4 * D], share[15], score = 0.0;
    size_t i, j, F = carnn__chosen(model, CARNN__ANSWER_DECOMPOSITION) == 1 ? D : 2 * D;
    int backwards;
    plain_inputs(model, q, a);
    plain_inputs(model, a, q);
    for (backwards = 0; backwards < 2; backwards++) {
        plain_states(model, q, a, backwards);
        plain_states(model, a, q, backwards);
    }
    if (carnn__chosen(model, CARNN__ANSWER_MODEL) == 1) {
        for (j = 0; j < D; j++) {
            f[j] = j < WIDTH ? q->s[q->n - 1][j] : q->s[0][j];
            f[D + j] = j < WIDTH ? a->s[a->n - 1][j] : a->s[0][j];
        }
        score = (double)out[0] * dot(f, f + D) / sqrt(dot(f, f) * dot(f + D, f + D));
    } else {
        plain_sum(model, q, a, f);
        plain_sum(model, a, q, f + F);
        for (j = 0; j < WIDTH; j++)
            score += (double)out[j] *
                     tanh(test_row_times(test_weight(model, "hidden.weight"), j, 2 * F, f) +
                          (double)test_weight(model, "hidden.bias")[j]);
    }
    if (model->desc.option[CARNN__TWO_OVERLAP] > 0) {
        size_t count = 8, trait_at;
        plain_overlap(model, q, a, share);
        if (model->desc.option[CARNN__ANSWER_REDUNDANCY] > 0.0) {
            plain_redundancy(model, q, a, group, n, share + 8);
            count += 2;
        }
        trait_at = count;
        if (model->desc.option[CARNN__ANSWER_TRAITS] > 0.0) {
            plain_traits(model, a, share + count);
            count += 3;
        }
        if (model->desc.option[CARNN__ANSWER_PLACE] > 0.0) {
            share[count++] = plain_topic(model, q, a, group);
            share[count++] = plain_place(a, group, n);
        }
        score += test_row_times(test_weight(model, "output.shares"), 0, count, share);
        for (i = 0; model->desc.option[CARNN__ANSWER_TRAITS] > 0.0 && i < q->n; i++)
            score += test_row_times(test_weight(model, "output.asked"), q->id[i], count - trait_at,
                                    share + trait_at);
    }
    if (carnn__chosen(model, CARNN__ANSWER_LOSS) != 1)
        score += (double)*test_weight(model, "output.bias");
    return score;
}

static sentence plain_sentence(const carnn_model *model, const carnn_dataset *data, size_t text) {
    sentence s;
    memset(&s, 0, sizeof s);
    s.n = carnn__tokens(model, carnn__text(data, text), 0, s.id, LONGEST);
    return s;
}

static sentence plain_text(const carnn_model *model, const carnn_dataset *data, size_t item,
                           size_t role) {
    return plain_sentence(model, data, carnn__members(data, &data->items[item])[role].text);
}

static void test_answer_scores(const char *text, const char *options) {
    carnn_dataset *data = answer_data(text);
    carnn_model *model = test_model("answer", options, NULL, data);
    float score[8];
    size_t i, k;
    CHECK_INT(data->item_count, 8);
    CHECK_INT(answer_fit(model, data, 3, 0.05), CARNN_OK); /* biases that are not 0 */
    score_pairs(model, data, 64, 1, score);
    for (i = 0; i < 8; i++) {
        sentence q = plain_text(model, data, i, 0), a = plain_text(model, data, i, 1), group[8];
        size_t n = 0;
        for (k = 0; k < 8; k++)
            if (data->items[k].group == data->items[i].group)
                group[n++] = plain_text(model, data, k, 1);
        CHECK_NEAR(score[i], plain_score(model, &q, &a, group, n), 2e-5);
    }
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* --- the rank loss of questions that are several batches -------------------------------------- */

#define MANY 200 /* sentences of the first question; three pieces and a bit */

/* Questions with `MANY` sentences, of which `right` ones are right, and with three. */
static carnn_dataset *many_sentences(size_t right) {
    static char text[MANY * 64];
    size_t i, n = 0;
    for (i = 0; i < MANY; i++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "who saw the cat\tw%zu saw w%zu , cat\t%d\n", i % 17, i % 23,
                              i % (MANY / right) == 3);
    snprintf(text + n, sizeof text - n, "why\tw1 w2\t0\nwhy\tw3\t1\nwhy\tw1\t0\n");
    return answer_data(text);
}

/* The mean loss over the two questions by a plain softmax in doubles. */
static double plain_rank_loss(const carnn_model *model, const carnn_dataset *data) {
    float score[MANY + 3];
    double loss = 0.0;
    size_t from, end, i;
    score_pairs(model, data, 64, 1, score);
    for (from = 0, end = MANY; from < MANY + 3; from = end, end += 3) {
        double sum = 0.0, right = 0.0, of_right = 0.0;
        for (i = from; i < end; i++) {
            sum += exp((double)score[i]);
            if (data->items[i].value <= 0.0f) continue;
            right += 1.0;
            of_right += (double)score[i];
        }
        loss += log(sum) - of_right / right;
    }
    return loss / 2.0;
}

/* The gradient of a step over both questions; returns the loss. */
static double rank_step(const carnn_model *model, const carnn_dataset *data, size_t batch,
                        double dropout, float *gradient, size_t *steps) {
    test_work w;
    size_t batches, at;
    memset(gradient, 0, model->params.size * sizeof(float));
    test_work_open(&w, model, data, 2);
    w.work.g = gradient;
    w.work.batch = batch;
    w.work.dropout = dropout;
    batches = test_work_begin(&w);
    for (at = *steps = 0; at < batches; ++*steps)
        at = carnn__net_step(&w.work, at, batches, dropout > 0.0 ? 7 : 0, &w.tally);
    CHECK_INT(at, batches);
    CHECK_INT(w.tally.examples, MANY + 3);
    CHECK_NEAR(w.tally.sum[CARNN__RANKS_LOSSES], 2.0, 0.0);
    test_work_close(&w);
    return w.tally.loss / 2.0;
}

/* Loss and gradient of a softmax over 200 sentences; in one step with another question, then, in
   smaller batches, by itself. */
static void test_rank_loss(size_t right) {
    static const char *const moved[] = {"output.weight", "hidden.weight", "word.project"};
    carnn_dataset *data = many_sentences(right);
    carnn_model *model = test_model("answer", "cell=icarnn", NULL, data);
    float *g = (float *)malloc(2 * model->params.size * sizeof *g), *once = g + model->params.size;
    const double h = 0.02;
    size_t steps, i, k;
    carnn_scores scores = test_scores(model, data);
    double plain = plain_rank_loss(model, data);
    CHECK_NEAR(rank_step(model, data, 1000, 0.0, g, &steps), plain, 1e-6);
    CHECK_INT(steps, 1);
    CHECK_NEAR(scores.loss, plain, 1e-6);
    for (i = 0; i < 3; i++) {
        float *w = test_weight(model, moved[i]);
        size_t at = (size_t)(w - model->params.value);
        for (k = 0; k < 6; k++) {
            float was = w[k];
            double up, down;
            w[k] = was + (float)h;
            up = plain_rank_loss(model, data);
            w[k] = was - (float)h;
            down = plain_rank_loss(model, data);
            w[k] = was;
            CHECK_NEAR(g[at + k], (up - down) / (2.0 * h), 2e-4);
        }
    }
    rank_step(model, data, 4, 0.0, once, &steps);
    CHECK_INT(steps, 2);
    for (i = 0; i < model->params.trained; i++) /* each question is a step: twice the mean */
        CHECK_NEAR(once[i], 2.0 * g[i], 1e-5);
    rank_step(model, data, 64, 0.0, once, &steps); /* the other question is in the last batch */
    CHECK_INT(steps, 1);
    for (i = 0; i < model->params.trained; i++) CHECK_NEAR(once[i], g[i], 1e-5);
    CHECK(rank_step(model, data, 4, 0.5, once, &steps) > 0.0);
    free(g);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* In training smoothing gives each of the n sentences of a question a / n of the target. */
static void test_rank_smoothing(void) {
    const double a = 0.3;
    carnn_dataset *data = answer_data(pairs);
    carnn_model *model = test_model("answer", "cell=icarnn", NULL, data);
    float score[8], *g = test_floats(model->params.size);
    double expected = 0.0;
    size_t from, end, i;
    test_work w;
    score_pairs(model, data, 64, 1, score);
    for (from = 0; from < 8; from = end) {
        double sum = 0.0, right = 0.0, n;
        for (end = from; end < 8 && data->items[end].group == data->items[from].group; end++) {
            sum += exp((double)score[end]);
            right += data->items[end].value > 0.0f;
        }
        n = (double)(end - from);
        for (i = from; i < end; i++) {
            double y = data->items[i].value > 0.0f ? (1.0 - a) / right : 0.0;
            expected += (y + a / n) * (log(sum) - (double)score[i]);
        }
    }
    test_work_open(&w, model, data, 1);
    w.work.g = g;
    w.work.smoothing = a;
    CHECK_INT(test_work_run(&w, 0), 1);
    CHECK_NEAR(w.tally.loss, expected, 1e-5);
    test_work_close(&w);
    test_drop(g);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* --- metrics ---------------------------------------------------------------------------------- */

/* A siamese model whose cosine and bias count nothing scores by the share of the question's words
   in the answer. */
static carnn_model *overlap_model(const carnn_dataset *data) {
    carnn_model *model = test_model("answer", "model=siamese loss=pair", NULL, data);
    float *share = test_weight(model, "output.shares");
    *test_weight(model, "output.weight") = 0.0f;
    memset(share, 0, 15 * sizeof *share);
    share[0] = 0.05f;
    return model;
}

static void check_metrics(const char *text, int clean, double map, double mrr, size_t left_out) {
    carnn_dataset *data = test_data("answer", text, strlen(text), clean, 0);
    carnn_dataset *known = answer_data("a b c d\tx\t1\na b c d\ty\t0\n");
    carnn_model *model = overlap_model(known);
    carnn_scores s = test_scores(model, data);
    CHECK_TEXT(s.metric[0].name, "map");
    CHECK_TEXT(s.metric[1].name, "mrr");
    CHECK_NEAR(s.metric[0].value, map, 1e-12);
    CHECK_NEAR(s.metric[1].value, mrr, 1e-12);
    CHECK_INT(carnn_dataset_left_out(data), left_out);
    CHECK_INT(s.examples, data->item_count);
    carnn_model_free(model);
    carnn_dataset_free(known);
    carnn_dataset_free(data);
}

/* Scores are quarters of "a b c d". */
static void test_metrics(void) {
    static const char plain[] = "a b c d\ta b c d\t0\na b c d\ta b c\t1\na b c d\tx\t0\n"
                                "a b c d\ta\t1\n"; /* ranks 2 and 3 */
    static const char tied[] = "a b c d\ta b\t1\na b c d\ta c\t0\na b c d\tc d\t0\na b c d\td\t1\n"
                               "a b c d\tb x\t0\n";
    static const char all_right[] = "a b\tx\t1\na b\ty\t1\n";
    static const char mixed[] = "1\t1\ta b\ta\n1\t0\ta b\tb a\n" /* AP = RR = 1/2 */
                                "2\t0\ta b\ta\n2\t0\ta b\tx\n"   /* no right answer */
                                "3\t1\ta b\ta\n3\t1\ta b\tx\n"   /* only right ones: 1 */
                                "4\t1\ta b\tb a\n4\t0\ta b\ty\n"; /* 1 */
    check_metrics(plain, 0, (1.0 / 2.0 + 2.0 / 3.0) / 2.0, 1.0 / 2.0, 0);
    check_metrics(tied, 0, (1.0 / 3.0 + 2.0 / 5.0) / 2.0, 1.0 / 3.0, 0); /* wrong ones first */
    check_metrics(all_right, 0, 1.0, 1.0, 0);
    check_metrics(mixed, 0, (0.5 + 1.0 + 1.0) / 3.0, (0.5 + 1.0 + 1.0) / 3.0, 0);
    check_metrics(mixed, 1, (0.5 + 1.0) / 2.0, (0.5 + 1.0) / 2.0, 2);
}

/* Beside another model, whose vote it leads, a model scores as it does alone. */
static void test_company(const carnn_model *model, const carnn_dataset *data, double map) {
    const carnn_model *both[2];
    carnn_scores s[3];
    carnn_error error;
    carnn_model *other = test_model("answer", "", NULL, data);
    both[0] = model;
    both[1] = other;
    CHECK_INT(carnn_test(both, 2, data, 1, s, &error), CARNN_OK);
    CHECK(s[0].metric[0].value == map);
    carnn_model_free(other);
}

typedef struct ranked_votes {
    const carnn_dataset *data;
    size_t told[3];
    double score[3][8];
} ranked_votes;

static void on_ranked_vote(const carnn_ranked *pair, void *user) {
    ranked_votes *r = (ranked_votes *)user;
    size_t i = r->told[pair->model]++;
    CHECK(pair->model < 3 && i < 8);
    CHECK_INT(pair->group, r->data->items[i].group);
    CHECK_INT(pair->label, r->data->items[i].value > 0.0f);
    r->score[pair->model][i] = pair->score;
}

/* Of several models each pair is told of each, and of their vote, whose score is the mean. */
static void test_ranked_votes(void) {
    ranked_votes r;
    carnn_model *model[2];
    carnn_test_desc desc;
    carnn_scores s[3];
    float score[2][8];
    size_t i, m;
    memset(&r, 0, sizeof r);
    memset(&desc, 0, sizeof desc);
    r.data = answer_data(pairs);
    for (m = 0; m < 2; m++) {
        model[m] = test_model("answer", m ? "cell=gru" : "model=cosine", NULL, r.data);
        score_pairs(model[m], r.data, 64, 1, score[m]);
    }
    desc.threads = 1;
    desc.ranked = on_ranked_vote;
    desc.user = &r;
    CHECK_INT(carnn_test_parts((const carnn_model *const *)model, 2, r.data, &desc, s, NULL),
              CARNN_OK);
    for (m = 0; m < 3; m++) CHECK_INT(r.told[m], 8);
    for (i = 0; i < 8; i++) {
        for (m = 0; m < 2; m++) CHECK_NEAR(r.score[m][i], score[m][i], 0.0);
        CHECK_NEAR(r.score[2][i], ((double)score[0][i] + (double)score[1][i]) / 2.0, 1e-6);
    }
    for (m = 0; m < 2; m++) carnn_model_free(model[m]);
    carnn_dataset_free((carnn_dataset *)(uintptr_t)r.data);
}

/* Groups that are left out have words that a model of the data knows. */
static void test_words_of_left_out(void) {
    static const char text[] = "a b\tc\t1\na b\td\t0\nwho e\tf\t0\nwho g\th\t1\n";
    static const char *const words[] = {"a", "d", "who", "e", "f", "g", "h"};
    carnn_dataset *data = test_data("answer", text, sizeof text - 1, 1, 0);
    carnn_model *model = test_model("answer", "min_count=1", NULL, data);
    size_t i;
    CHECK_INT(carnn_dataset_left_out(data), 2);
    CHECK_INT(carnn_dataset_examples(data), 2);
    for (i = 0; i < sizeof words / sizeof *words; i++)
        CHECK(carnn__names_find(&model->words, carnn__span_of(words[i])) != CARNN__NO_INDEX);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* A question of 1,000 answers is worked on in pieces and ranked as a whole: against counting. */
static void test_long_question(void) {
    enum { ANSWERS = 1000 };
    char *text = (char *)malloc(ANSWERS * 24), *at = text;
    carnn_dataset *data;
    carnn_model *model;
    carnn_scores s;
    double ap = 0.0;
    size_t i, j, right = 0;
    for (i = 0; i < ANSWERS; i++)
        at += sprintf(at, "a b c d\t%.*s\t%d\n", (int)(1 + 2 * (i * 7 % 4)), "a b c d",
                      i * i % 7 == 1);
    data = test_data("answer", text, (size_t)(at - text), 0, 0);
    model = overlap_model(data);
    s = test_scores(model, data);
    for (i = 0; i < ANSWERS; i++) {
        size_t rank = 1, above = 1, score = i * 7 % 4;
        if (i * i % 7 != 1) continue;
        for (j = 0; j < ANSWERS; j++) {
            int other = j * j % 7 == 1;
            size_t its = j * 7 % 4;
            int before = its > score || (its == score && (other ? j < i : 1));
            rank += (size_t)(before && j != i);
            above += (size_t)(before && j != i && other);
        }
        ap += (double)above / (double)rank;
        right++;
    }
    CHECK_NEAR(s.metric[0].value, ap / (double)right, 1e-12);
    CHECK_INT(s.examples, ANSWERS);
    test_company(model, data, s.metric[0].value);
    carnn_model_free(model);
    carnn_dataset_free(data);
    free(text);
}

/* Sentences of one question, n of m words each (the question, too), then one of another wording of
   it, which an own column says is the same: where their pieces end. */
static void check_answer_pieces(size_t n, size_t m, size_t most) {
    char *text = (char *)malloc((n + 2) * (4 * m + 32)), *at = text;
    carnn_dataset *data;
    carnn_model *model;
    carnn__corpus *c;
    test_work w;
    size_t i, j;
    at += sprintf(at, "QuestionID\tQuestion\tSentence\tLabel\n");
    for (i = 0; i <= n; i++) {
        at += sprintf(at, "7\t%s", i < n ? "a" : "b");
        for (j = 1; j < m; j++) at += sprintf(at, " a");
        at += sprintf(at, "\tx");
        for (j = 1; j < m; j++) at += sprintf(at, " a");
        at += sprintf(at, "\t%d\n", i == 1);
    }
    data = test_data("answer", text, (size_t)(at - text), 0, 0);
    model = overlap_model(data);
    CHECK_INT(data->item_count, n + 1);
    CHECK_INT(data->group_count, 1);
    test_work_open(&w, model, data, 1);
    test_work_begin(&w);
    c = carnn__corpus_of(&w.work);
    CHECK_INT(c->piece_count, (n + most - 1) / most + 1);
    for (i = 0; i < c->piece_count; i++) {
        size_t first = i + 1 < c->piece_count ? i * most : n, left = n + 1 - first;
        CHECK_INT(c->pieces[i].first, first);
        CHECK_INT(c->pieces[i].count, first == n ? 1 : left - 1 < most ? left - 1 : most);
        CHECK_INT(c->pieces[i].continues, i > 0);
        CHECK_INT(c->pieces[i].size[0], 2 * m * c->pieces[i].count);
        CHECK_INT(c->pieces[i].size[1], 2 * m * m * c->pieces[i].count);
    }
    test_work_close(&w);
    carnn_model_free(model);
    carnn_dataset_free(data);
    free(text);
}

/* A piece has so many sentences, words, or entries of alignment matrices at most. */
static void test_answer_pieces(void) {
    check_answer_pieces(150, 3, 64);
    check_answer_pieces(70, 30, 3072 / (2 * 30));
    check_answer_pieces(30, 100, (1 << 18) / (2 * 100 * 100));
}

/* --- sameness --------------------------------------------------------------------------------- */

/* How pairs are put together in batches changes no score. */
static void test_answer_batches(const char *options) {
    carnn_dataset *data = answer_data(pairs);
    carnn_model *model = test_model("answer", options, NULL, data);
    float one[8], all[8], threads[8];
    score_pairs(model, data, 1, 1, one);
    score_pairs(model, data, 64, 1, all);
    score_pairs(model, data, 64, 3, threads);
    CHECK(!memcmp(one, all, sizeof one));
    CHECK(!memcmp(one, threads, sizeof one));
    carnn_model_free(model);
    carnn_dataset_free(data);
}

static void test_answer_same_bytes(const char *options) {
    carnn_dataset *data = answer_data(pairs);
    carnn_model_free(test_trains_alike("answer", options, data, answer_training(3, 0.01)));
    carnn_dataset_free(data);
}

/* A training that was stopped goes on to the same weights, but not with other vectors. */
static void test_answer_resume(void) {
    static const char vectors[] = "cat 1 2 3 4 5\ndog 2 1 0 1 -1\n", odd[] = "cat 1 2 3 4 6\n";
    carnn_source source = {"vectors", NULL, 0};
    carnn_dataset *data = answer_data(pairs);
    carnn_model *model[3];
    carnn_model_desc desc;
    carnn_train_desc train = answer_training(4, 0.01);
    carnn_error error;
    int stop = 0;
    size_t i;
    memset(&desc, 0, sizeof desc);
    desc.task = "answer";
    desc.hidden = 6;
    desc.vectors = &source;
    desc.vector_count = 1;
    train.checkpoint = "test_answer.resume";
    train.progress = test_stop;
    train.user = &stop;
    for (i = 0; i < 3; i++) {
        source.bytes = i == 2 ? odd : vectors;
        source.size = strlen((const char *)source.bytes);
        CHECK_INT(carnn_model_create(&model[i], &desc, data, &error), CARNN_OK);
        CHECK_INT(model[i]->desc.embedding, 5); /* found in the file */
    }
    CHECK_INT(carnn_train(model[0], data, data, &train, &error), CARNN_OK);
    stop = 1;
    CHECK_INT(carnn_train(model[1], data, data, &train, &error), CARNN_ERR_STOPPED);
    stop = 0;
    train.resume = 1;
    CHECK_INT(carnn_train(model[2], data, data, &train, &error), CARNN_ERR_MODEL);
    CHECK(strstr(error.message, "other word vectors") != NULL);
    CHECK_INT(carnn_train(model[1], data, data, &train, &error), CARNN_OK);
    CHECK(!memcmp(model[0]->params.value, model[1]->params.value,
                  model[0]->params.size * sizeof(float)));
    remove("test_answer.resume");
    for (i = 0; i < 3; i++) carnn_model_free(model[i]);
    carnn_dataset_free(data);
}

typedef struct losses {
    double value[4];
    size_t count;
} losses;

static int keep_loss(const carnn_progress *p, void *user) {
    losses *l = (losses *)user;
    if (p->epoch_ended) l->value[l->count++] = p->loss;
    return 0;
}

/* To score a validation set in between changes nothing of what is learnt, and the score that is
   told of the model is its score. */
static void test_answer_validation(const char *options) {
    static const char others[] = "is it the tree\tthe cat is in it .\t1\n"
                                 "is it the tree\ta bird\t0\n"
                                 "why\tnobody saw the dog\t0\nwhy\tthe bird sang there\t1\n";
    carnn_dataset *data = answer_data(pairs), *valid = answer_data(others);
    losses all[2];
    carnn_scores s;
    size_t i;
    memset(all, 0, sizeof all);
    for (i = 0; i < 2; i++) {
        carnn_model *model = test_model("answer", options, NULL, data);
        carnn_train_desc train = answer_training(4, 0.01);
        train.progress = keep_loss;
        train.user = &all[i];
        CHECK_INT(carnn_train(model, data, i ? valid : NULL, &train, NULL), CARNN_OK);
        s = test_scores(model, valid);
        if (i) CHECK_NEAR(s.metric[0].value, carnn_model_scores(model)->metric[0].value, 0.0);
        carnn_model_free(model);
    }
    CHECK_INT(all[0].count, 4);
    CHECK(!memcmp(&all[0], &all[1], sizeof *all));
    carnn_dataset_free(data);
    carnn_dataset_free(valid);
}

/* A file may say nothing of an option that is a choice: training leaves the description alone. */
static void test_description_stays(void) {
    carnn_dataset *data = answer_data(pairs);
    carnn_model *model = test_model("answer", "overlap=0", NULL, data);
    model->desc.option[CARNN__TWO_OVERLAP] = 0;
    CHECK_INT(answer_fit(model, data, 1, 0.01), CARNN_OK);
    CHECK_INT(model->desc.option[CARNN__TWO_OVERLAP], 0);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* --- word vectors ----------------------------------------------------------------------------- */

/* Vectors stay as they are unless they are tuned; words of other data are known where they are
   asked for; unknown words share a few vectors by their hash. */
static void test_vectors(int tuned) {
    static const char vectors[] = "cat 1 2 3 4 5\nzebra 5 4 3 2 1\nunicorn 1 1 1 1 1\n";
    carnn_source source = {"vectors", NULL, 0};
    carnn_dataset *data = answer_data(pairs), *valid = answer_data("who is\ta zebra\t1\n");
    const carnn_dataset *known[2] = {NULL, NULL};
    carnn_model *model = NULL;
    carnn_model_desc desc;
    carnn_error error;
    carnn__span lion = {"lion", 4};
    const float *cat;
    double moved = 0.0;
    size_t i;
    memset(&desc, 0, sizeof desc);
    source.bytes = vectors;
    source.size = strlen(vectors);
    desc.task = "answer";
    desc.hidden = 6;
    desc.vectors = &source;
    desc.vector_count = 1;
    desc.option[CARNN__TWO_TUNE] = tuned;
    desc.known = known;
    desc.known_count = 2;
    desc.vector_words = CARNN_NONE;
    known[1] = valid;
    CHECK_INT(carnn_model_create(&model, &desc, data, &error), CARNN_OK);
    CHECK(carnn__names_find(&model->words, carnn__span_of("zebra")) != CARNN__NO_INDEX);
    CHECK(carnn__names_find(&model->words, carnn__span_of("unicorn")) == CARNN__NO_INDEX);
    CHECK(carnn__two_word(model, lion) < CARNN__UNKNOWN);
    CHECK_INT(answer_fit(model, data, 2, 0.01), CARNN_OK);
    cat = test_weight(model, "word.weight") +
          carnn__names_find(&model->words, carnn__span_of("cat")) * 5;
    for (i = 0; i < 5; i++) moved = fmax(moved, fabs((double)cat[i] - (double)(i + 1)));
    CHECK(tuned ? moved > 1e-4 && moved < 0.5 : moved == 0.0);
    cat = test_weight(model, "word.weight") +
          carnn__names_find(&model->words, carnn__span_of("zebra")) * 5;
    CHECK_NEAR(cat[0], 5.0, 0.0); /* never met in training */
    carnn_model_free(model);
    carnn_dataset_free(data);
    carnn_dataset_free(valid);
}

/* --- what can go wrong ------------------------------------------------------------------------ */

static void test_answer_errors(void) {
    static char longest[2 * 10000 + 64];
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"q\ta\n", "pairs:1: expected tabs between three columns"},
        {"q\ta\t1\nq\tb\n", "pairs:2: expected 3 columns"},
        {"q\ta\t1\nq\tb\t2\n", "pairs:2: expected the label 0 or 1, found \"2\""},
        {"q\ta\t1\nq\t\t0\n", "pairs:2: expected an answer of 1 to 512 words, found nothing"},
        {longest, "pairs:2: expected an answer of 1 to 512 words, found \"w w"},
        {"", "pairs:1: expected a question with an answer"},
    };
    carnn_dataset *data = NULL;
    carnn_dataset_desc desc;
    carnn_source source = {"pairs", NULL, 0};
    carnn_error error;
    size_t i;
    strcpy(longest, "q\ta\t1\nq\t");
    for (i = 0; i < 10000; i++) strcpy(longest + 8 + 2 * i, "w ");
    strcat(longest, "\t0\n");
    test_describe(&desc, "answer", &source);
    for (i = 0; i < CARNN__COUNT(bad); i++) {
        source.bytes = bad[i].text;
        source.size = strlen(bad[i].text);
        CHECK_INT(carnn_dataset_load(&data, &desc, &error), CARNN_ERR_DATA);
        if (strncmp(error.message, bad[i].message, strlen(bad[i].message)))
            CHECK_TEXT(error.message, bad[i].message);
    }
    desc.clean = 1;
    source.bytes = "q\ta\t1\n";
    source.size = 6;
    CHECK_INT(carnn_dataset_load(&data, &desc, &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message, "pairs: every question lacks a right or a wrong answer");
}

/* Descriptions that are refused. */
static void test_descriptions(void) {
    static const char vectors[] = "cat 1 2 3\n";
    carnn_source source = {"vectors", vectors, sizeof vectors - 1};
    carnn_dataset *data = answer_data(pairs);
    carnn_model *model = NULL;
    carnn_model_desc desc;
    carnn_error error;
    memset(&desc, 0, sizeof desc);
    desc.task = "answer";
    CHECK_INT(carnn_set(&desc, NULL, "model", "duo", &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message, "unknown model \"duo\" (iwan, siamese, ca, ap, cosine)");
    CHECK_INT(carnn_set(&desc, NULL, "tied", "1", &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message, "the task answer has no option \"tied\"");
    desc.option[CARNN__TWO_TUNE] = 2.0;
    CHECK_INT(carnn_model_create(&model, &desc, data, &error), CARNN_ERR_ARGUMENT);
    desc.option[CARNN__TWO_TUNE] = 0.0;
    desc.embedding = 4;
    desc.vectors = &source;
    desc.vector_count = 1;
    CHECK_INT(carnn_model_create(&model, &desc, data, &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message, "vectors: the vectors have 3 numbers, the embedding has 4");
    carnn_dataset_free(data);
    data = answer_data("q\ta\t0\nq\tb\t0\n");
    memset(&desc, 0, sizeof desc);
    desc.task = "answer";
    CHECK_INT(carnn_model_create(&model, &desc, data, &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message, "an answer model needs training data with right sentences");
    carnn_dataset_free(data);
    data = answer_data("q\ta\t1\nq\tb\t1\n");
    CHECK_INT(carnn_model_create(&model, &desc, data, &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message, "an answer model needs training data with wrong sentences, too");
    carnn_dataset_free(data);
}

/* Units of a model that reads shares begin to remember 1 to 20 words, if a gate of theirs can. */
static void check_default_memory(const char *options, const char *cell, double expected) {
    carnn_model_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.task = "answer";
    desc.cell = cell;
    CHECK_INT(carnn__set_all(&desc, NULL, 0, options, NULL), CARNN_OK);
    CHECK_INT(carnn_defaults(&desc, NULL, NULL), CARNN_OK);
    CHECK_NEAR(desc.option[CARNN__TWO_ENCODER + CARNN__ENCODER_MEMORY], expected, 0.0);
}

static void test_default_memory(void) {
    check_default_memory("", NULL, 20.0);
    check_default_memory("", "lstm", 20.0);
    check_default_memory("model=siamese", NULL, 20.0);
    check_default_memory("encoder=rcrn", NULL, 20.0);
    check_default_memory("memory=0", NULL, CARNN_NONE);
    check_default_memory("", "rnn", 0.0);
    check_default_memory("encoder=graph", "lstm", 0.0);
    check_default_memory("model=ca", NULL, 0.0);
    check_default_memory("", "none of ours", 0.0); /* refused when a model is made */
}

/* What others tell is only there beside the shares of the question, which the output of iwan and
   siamese reads. */
static void test_default_others(void) {
    static const char *const options[] = {"", "overlap=0", "model=ca", "model=cosine overlap=2"};
    static const double expected[] = {1, CARNN_NONE, CARNN_NONE, CARNN_NONE};
    size_t i;
    for (i = 0; i < CARNN__COUNT(options); i++) {
        carnn_model_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.task = "answer";
        CHECK_INT(carnn__set_all(&desc, NULL, 0, options[i], NULL), CARNN_OK);
        CHECK_INT(carnn_defaults(&desc, NULL, NULL), CARNN_OK);
        CHECK_NEAR(desc.option[CARNN__ANSWER_REDUNDANCY], expected[i], 0.0);
        CHECK_NEAR(desc.option[CARNN__ANSWER_PLACE], expected[i], 0.0);
        CHECK_NEAR(desc.option[CARNN__ANSWER_TRAITS], expected[i], 0.0);
    }
}

/* Pooling, alignment and direction are those of the models that have them. */
static void test_default_alignment(void) {
    static const char *const models[] = {"iwan", "siamese", "ca", "ap", "cosine"};
    static const double expected[5][3] = {{0, 0, 0}, {0, 0, 0}, {1, 1, 1}, {0, 0, 0}, {1, 0, 1}};
    size_t i;
    for (i = 0; i < CARNN__COUNT(models); i++) {
        carnn_model_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.task = "answer";
        CHECK_INT(carnn_set(&desc, NULL, "model", models[i], NULL), CARNN_OK);
        CHECK_INT(carnn_defaults(&desc, NULL, NULL), CARNN_OK);
        CHECK_NEAR(desc.option[CARNN__TWO_POOLING], expected[i][0], 0.0);
        CHECK_NEAR(desc.option[CARNN__TWO_ALIGNMENT], expected[i][1], 0.0);
        CHECK_NEAR(desc.option[CARNN__TWO_DIRECTION], expected[i][2], 0.0);
    }
}

/* A hinge draws other wrong sentences in every step. */
static void test_hinge_draws(void) {
    enum { WRONG = 30 };
    char text[16 * (WRONG + 1)], *at = text;
    carnn_dataset *data;
    carnn_model *model;
    double loss[3];
    size_t i;
    for (i = 0; i <= WRONG; i++) at += sprintf(at, "a\tb c%zu\t%d\n", i, !i);
    data = answer_data(text);
    model = test_model("answer", "model=cosine loss=hinge", NULL, data);
    for (i = 0; i < 3; i++) {
        test_work w;
        test_work_open(&w, model, data, 1);
        test_work_run(&w, 1 + i % 2);
        loss[i] = w.tally.loss;
        test_work_close(&w);
    }
    CHECK(loss[0] != loss[1]);
    CHECK(loss[0] == loss[2]); /* the same step */
    carnn_model_free(model);
    carnn_dataset_free(data);
}

static void test_memory_runs_out(void) {
    static const char vectors[] = "cat 1 2 3 4 5\nunicorn 5 4 3 2 1\n";
    carnn_source source = {"vectors", vectors, sizeof vectors - 1};
    carnn_dataset *data = answer_data(pairs);
    carnn_model_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.task = "answer";
    desc.hidden = 6;
    desc.vectors = &source;
    desc.vector_count = 1;
    CHECK(test_life_in_memory(desc, data, answer_training(1, 0.01)) > 40);
    carnn_dataset_free(data);
}

static void test_answer_learns(const char *options) {
    carnn_dataset *data = answer_data(pairs);
    carnn_model *model = test_model("answer", options, NULL, data);
    carnn_train_desc train = answer_training(60, 0.02);
    carnn_scores s;
    carnn_error error;
    train.dropout = CARNN_NONE;
    CHECK_INT(carnn_train(model, data, data, &train, &error), CARNN_OK);
    s = test_scores(model, data);
    CHECK_NEAR(s.metric[0].value, 1.0, 1e-9);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* --- sessions --------------------------------------------------------------------------------- */

/* The score of a pair by a session. */
static double match(carnn_session *session, const char *question, size_t question_length,
                    const char *sentence, size_t sentence_length) {
    carnn_text texts[2];
    carnn_prediction p;
    carnn_error error;
    texts[0].at = question;
    texts[0].length = question_length;
    texts[1].at = sentence;
    texts[1].length = sentence_length;
    CHECK_INT(carnn_session_predict(session, texts, 2, 1, &p, &error), CARNN_OK);
    CHECK_INT(p.kind, CARNN_PREDICTS_SCORE);
    return p.score;
}

/* Tells a session the sentences of a question, the last one first if their place says nothing. */
static void tell_group(carnn_session *session, const carnn_dataset *data, uint32_t group) {
    int backwards = !(session->model->desc.option[CARNN__ANSWER_PLACE] > 0.0);
    carnn_error error;
    size_t i;
    for (i = 0; i < data->item_count; i++) {
        const carnn__item *x = &data->items[backwards ? data->item_count - 1 - i : i];
        carnn__span a = carnn__text(data, carnn__members(data, x)[1].text);
        if (x->group == group)
            CHECK_INT(carnn_session_candidate(session, a.at, a.length, &error), CARNN_OK);
    }
}

/* A session scores a pair as a test does, bit by bit, after any other pair; what additive cells
   explain is all of their last states, what shares explain and the rest are the score, and rows of
   alignments are 1 in all. */
static void test_answer_session(const char *options, int additive) {
    carnn_dataset *data = answer_data(pairs);
    carnn_model *model = test_model("answer", options, NULL, data);
    carnn_session *session = NULL;
    carnn_contribution part[32];
    carnn_explanation e;
    carnn_prediction p;
    carnn_error error;
    const char *reply;
    float score[8];
    double sum, share[2] = {0.0, 0.0}, weights[2] = {0.0, 0.0}, added = 0.0;
    size_t i, j, rows, columns;
    const float *aligned;
    int words, shares = model->desc.option[CARNN__TWO_OVERLAP] > 0;
    CHECK_INT(answer_fit(model, data, 2, 0.02), CARNN_OK);
    score_pairs(model, data, 64, 1, score);
    CHECK_INT(carnn_session_open(&session, model, NULL, &error), CARNN_OK);
    CHECK_INT(carnn_session_explain(session, 32, part, &e, &error), CARNN_OK);
    CHECK_INT(e.count, 0);
    CHECK(carnn_session_alignment(session, 0, &rows, &columns) == NULL);
    for (i = 8; i-- > 0;) {
        carnn__span q = carnn__text(data, carnn__members(data, &data->items[i])[0].text);
        carnn__span a = carnn__text(data, carnn__members(data, &data->items[i])[1].text);
        if (i == 7 || data->items[i].group != data->items[i + 1].group) {
            carnn_session_reset(session);
            tell_group(session, data, data->items[i].group);
        }
        CHECK((float)match(session, q.at, q.length, a.at, a.length) == score[i]);
    }
    CHECK_INT(carnn_session_explain(session, 32, part, &e, &error), CARNN_OK); /* of pair 0 */
    CHECK_INT(e.count, 5 + 6);
    CHECK_INT(e.exact, additive || shares);
    CHECK_TEXT(part[4].text, "?");
    CHECK_TEXT(part[4].role, "question");
    CHECK_TEXT(part[6].text, "dog");
    CHECK_TEXT(part[6].role, "sentence");
    words = carnn__chosen(model, CARNN__ANSWER_MODEL) != 1;
    for (i = 0; i < e.count; i++) {
        CHECK_INT(part[i].has, CARNN_HAS_SHARE | (words ? CARNN_HAS_ATTENTION : 0) |
                                   (shares ? CARNN_HAS_SCORE : 0));
        share[i >= 5] += part[i].share;
        weights[i >= 5] += part[i].attention;
        added += part[i].score;
    }
    if (shares) CHECK_NEAR(added + e.rest, score[0], 1e-5 * (1.0 + fabs((double)score[0])));
    else if (additive) CHECK_NEAR(share[0] + share[1] + e.rest, 2.0, 1e-5);
    else CHECK_NEAR(e.rest, 2.0, 0.0);
    CHECK(!additive || fabs(share[0]) > 1e-3);
    for (i = 0; i < 2; i++) CHECK_NEAR(weights[i], (double)words, 1e-5);
    for (i = 0; i < 2 && words; i++) {
        aligned = carnn_session_alignment(session, (int)i, &rows, &columns);
        CHECK_INT(rows, i ? 6 : 5);
        CHECK_INT(columns, i ? 5 : 6);
        for (sum = 0.0, j = 0; j < columns; j++) sum += (double)aligned[(rows - 1) * columns + j];
        CHECK_NEAR(sum, 1.0, 1e-5);
    }
    CHECK(isfinite(match(session, "", 0, NULL, 0))); /* no words at all */
    CHECK(match(session, "a cat. \t", 8, "why the dog?\n", 13) ==
          match(session, "a cat.", 6, "why the dog?", 12));
    CHECK(isfinite(match(session, "cat", 3, "\0\xff", 2)));
    for (i = 8; i-- > 0;) { /* of the data set, and line by line */
        CHECK_INT(carnn_session_example(session, data, i, 1, &p, &error), CARNN_OK);
        CHECK((float)p.score == score[i]);
    }
    CHECK_INT(carnn_session_line(session, "who saw the cat ?\tthe bird sang", 31, 1, 1, &words, &p,
                                 &error), CARNN_OK);
    CHECK(words && (float)p.score == score[1]);
    CHECK_INT(carnn_session_reply(session, "a", 1, &reply, &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message, "a model of the task answer cannot reply; it can predict, compare "
                              "candidates and explain"); /* of other tasks */
    CHECK_TEXT(reply, "");
    CHECK_INT(carnn_session_hear(session, CARNN_USER, "a", 1, &error), CARNN_ERR_ARGUMENT);
    carnn_session_reset(session);
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* A model whose score is the largest support of a word by other sentences, and four times the mean.
   All words have the idf 1 here. */
static carnn_model *redundancy_model(const carnn_dataset *data) {
    carnn_model *model = overlap_model(data);
    float *share = test_weight(model, "output.shares");
    float *idf = test_weight(model, "word.idf");
    size_t i;
    share[0] = 0.0f;
    share[8] = 1.0f;
    share[9] = 4.0f;
    for (i = 0; i < model->words.count; i++) idf[i] = 1.0f;
    return model;
}

/* Of many sentences, or of long ones, the first are read: sessions read as many as scoring does.
   Each has a word of its own and x, the first ones have w0 to w9, the others w10. */
static void test_redundancy_limits(size_t sentences, size_t words, size_t read) {
    size_t size = sentences * (2 * words + 24), n = 0, i, k;
    char *text = (char *)malloc(size);
    float *score = (float *)malloc(sentences * sizeof *score);
    carnn_dataset *data;
    carnn_model *model;
    carnn_session *session = NULL;
    carnn_prediction p;
    carnn_error error;
    double with_w0;
    for (i = 0; i < sentences; i++) {
        n += (size_t)sprintf(text + n, "a\tw%zu v%zu", i < read ? i % 10 : 10, i);
        for (k = 2; k < words; k++) n += (size_t)sprintf(text + n, " x");
        n += (size_t)sprintf(text + n, "\t%d\n", i % 7 == 3);
    }
    data = answer_data(text);
    model = redundancy_model(data);
    score_pairs(model, data, 64, 1, score);
    with_w0 = ((double)((read + 9) / 10) - 1.0) / ((double)read - 1.0);
    CHECK_NEAR(score[0], 20.0 * (1.0 + 4.0 * (1.0 + with_w0) / 3.0), 1e-3);
    CHECK_NEAR(score[sentences - 1], 20.0 * (1.0 + 4.0 * (1.0 + 0.0) / 3.0), 1e-4);
    CHECK_INT(carnn_session_open(&session, model, NULL, &error), CARNN_OK);
    for (i = 0; i < sentences; i += sentences / 5) {
        CHECK_INT(carnn_session_example(session, data, i, 1, &p, &error), CARNN_OK);
        CHECK((float)p.score == score[i]);
    }
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
    free(score);
    free(text);
}

/* A session hears a sentence: `first`, then x until it has so many words. */
static void hear_words(carnn_session *session, const char *first, size_t words) {
    static char text[2 * CARNN__SENTENCE_WORDS + 8];
    size_t i, n = strlen(first);
    memcpy(text, first, n);
    for (i = 1; i < words; i++, n += 2) memcpy(text + n, " x", 2);
    CHECK_INT(carnn_session_candidate(session, text, n, NULL), CARNN_OK);
}

/* Sentences are kept as long as all have had room, also empty ones, and each time anew; of a long
   one the words that the session reads. */
static void test_redundancy_room(void) {
    carnn_dataset *data = answer_data("a\ty v\t1\na\tx w\t0\n");
    carnn_model *model = redundancy_model(data);
    carnn_session_desc four = {0, 4, NULL};
    carnn_session *session = NULL;
    double supported;
    size_t i, round;
    CHECK_INT(carnn_session_open(&session, model, NULL, NULL), CARNN_OK);
    hear_words(session, "x", CARNN__SENTENCE_WORDS);
    for (round = 0; round < 2; round++) {
        carnn_session_reset(session);
        for (i = 0; i < 64; i++) hear_words(session, i < 63 ? "x" : "y", CARNN__SENTENCE_WORDS);
        supported = match(session, "a", 1, "y", 1);
        CHECK_NEAR(supported, 20.0 * 5.0 / 64.0, 1e-4);
        hear_words(session, "", 1);
        CHECK(match(session, "a", 1, "y", 1) == supported);
    }
    carnn_session_reset(session);
    for (i = 0; i < 63; i++) hear_words(session, "x", CARNN__SENTENCE_WORDS);
    hear_words(session, "x", CARNN__SENTENCE_WORDS - 2);
    hear_words(session, "y", 3); /* there is room for two words */
    hear_words(session, "v", 1);
    CHECK(match(session, "a", 1, "y q", 3) == 0.0 && match(session, "a", 1, "v q", 3) == 0.0);
    carnn_session_reset(session);
    for (i = 0; i < 63; i++) hear_words(session, "x", CARNN__SENTENCE_WORDS);
    hear_words(session, "x", CARNN__SENTENCE_WORDS - 2);
    hear_words(session, "y", 2);
    CHECK_NEAR(match(session, "a", 1, "y", 1), 20.0 * 5.0 / 65.0, 1e-4);
    carnn_session_free(session);
    CHECK_INT(carnn_session_open(&session, model, &four, NULL), CARNN_OK);
    hear_words(session, "y", 6);
    CHECK(match(session, "a", 1, "y x x x x x", 11) == 0.0); /* by itself */
    CHECK_NEAR(match(session, "a", 1, "y x x", 5), 20.0 * 5.0, 1e-4);
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* By hand. */
static void test_redundancy(void) {
    static const char text[] =
        "a b\tx y\t1\na b\ta x z\t0\na b\ta b y\t0\na b\tz\t0\na b\tz\t0\nc\tx\t1\n";
    /* (1 + o)^8 of the sentences: 1, 1.5^8, 2^8, 1, 1, and of the last question 1 */
    const double one = 1.0, half = 25.62890625, whole = 256.0;
    const double x = half / (half + whole + 2.0 * one), y = whole / (half + whole + 2.0 * one);
    const double x_of_2 = one / (3.0 * one + whole), z_of_2 = 2.0 * one / (3.0 * one + whole);
    const double y_of_3 = one / (3.0 * one + half), z_of_4 = half / (one + half + whole);
    const double expected[6] = {20.0 * (y + 4.0 * (x + y) / 2.0),
                                20.0 * (z_of_2 + 4.0 * (x_of_2 + z_of_2) / 2.0),
                                20.0 * (y_of_3 + 4.0 * y_of_3), 20.0 * 5.0 * z_of_4,
                                20.0 * 5.0 * z_of_4, 0.0};
    carnn_dataset *data = answer_data(text);
    carnn_model *model = redundancy_model(data);
    carnn_session *session = NULL;
    carnn_contribution part[4];
    carnn_explanation e;
    carnn_prediction p;
    carnn_error error;
    float score[6];
    int found;
    size_t i;
    score_pairs(model, data, 2, 1, score);
    for (i = 0; i < 6; i++) CHECK_NEAR(score[i], expected[i], 1e-4);
    CHECK_INT(carnn_session_open(&session, model, NULL, &error), CARNN_OK);
    CHECK_INT(carnn_session_compares(session), 1);
    CHECK_INT(carnn_session_example(session, data, 0, 1, &p, &error), CARNN_OK);
    CHECK_INT(carnn_session_explain(session, 4, part, &e, &error), CARNN_OK);
    CHECK_NEAR(part[0].score, 0.0, 0.0);
    CHECK_NEAR(part[1].score, 0.0, 0.0);
    CHECK_NEAR(part[2].score, 20.0 * 4.0 * x / 2.0, 1e-5);
    CHECK_NEAR(part[3].score, 20.0 * (y + 4.0 * y / 2.0), 1e-5);
    CHECK_NEAR(e.rest, 0.0, 0.0);
    part[3].score = 77.0;
    CHECK_INT(carnn_session_explain(session, 3, part, &e, &error), CARNN_OK);
    CHECK_NEAR(part[2].score, 20.0 * 4.0 * x / 2.0, 1e-5);
    CHECK_NEAR(part[3].score, 77.0, 0.0); /* there was no room for it */
    CHECK_INT(carnn_session_candidate(session, "x", 1, &error), CARNN_OK);
    CHECK_INT(carnn_session_explain(session, 4, part, &e, &error), CARNN_OK);
    CHECK_INT(e.count, 0); /* the score is that of before */
    carnn_session_reset(session);
    CHECK(match(session, "a b", 3, "x y", 3) == 0.0); /* nothing else is known */
    for (i = 0; i < 3000; i++) /* more than a session reads */
        CHECK_INT(carnn_session_candidate(session, "a b y", 5, &error), CARNN_OK);
    CHECK_NEAR(match(session, "a b", 3, "x y", 3), 20.0 * (1.0 + 4.0 / 2.0), 1e-4);
    CHECK_INT(CARNN__OTHERS, 1024); /* which test_redundancy_limits() tries */
    CHECK_INT(CARNN__OTHER_WORDS, 32768);
    CHECK(match(session, "y", 1, "x y", 3) == 0.0); /* x is in no other sentence */
    CHECK_INT(carnn_session_line(session, "a b\tx y", 7, 1, 1, &found, &p, &error), CARNN_OK);
    CHECK(found && fabs(p.score - 20.0 * (1.0 + 4.0 / 2.0)) < 1e-4); /* it forgets nothing */
    CHECK_NEAR(match(session, "a b", 3, "a b y", 5), 0.0, 0.0); /* by itself */
    CHECK_NEAR(match(session, "", 0, "x y", 3), 20.0 * (1.0 + 4.0 / 2.0), 1e-4); /* all are alike */
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* A model whose score is the place in column `last` of the shares, in batches and sessions: copies
   have that of the first of them, a sentence that a session has not heard is behind the others.
   Nothing of it is due to words. */
static void test_place(const char *options, size_t last) {
    static const char text[] =
        "a b\tx y\t1\na b\tz\t0\na b\tx y\t0\na b\tb\t0\nc\tb\t1\nc\tx\t0\n";
    static const double place[6] = {1, 2, 1, 4, 1, 2};
    carnn_dataset *data = answer_data(text);
    carnn_model *model = test_model("answer", options, NULL, data);
    float *share = test_weight(model, "output.shares"), score[6];
    carnn_session *session = NULL;
    carnn_contribution part[3];
    carnn_explanation e;
    carnn_prediction p;
    size_t i;
    *test_weight(model, "output.weight") = 0.0f;
    memset(share, 0, last * sizeof *share);
    share[last] = 0.5f;
    score_pairs(model, data, 2, 1, score);
    CHECK_INT(carnn_session_open(&session, model, NULL, NULL), CARNN_OK);
    CHECK_INT(carnn_session_compares(session), 1);
    for (i = 0; i < 6; i++) {
        CHECK_NEAR(score[i], -5.0 * log(place[i]), 1e-5);
        CHECK_INT(carnn_session_example(session, data, i, 1, &p, NULL), CARNN_OK);
        CHECK((float)p.score == score[i]);
    }
    CHECK_INT(carnn_session_explain(session, 3, part, &e, NULL), CARNN_OK);
    CHECK_INT(e.count, 2);
    CHECK_NEAR(part[0].score, 0.0, 0.0);
    CHECK_NEAR(part[1].score, 0.0, 0.0);
    CHECK_NEAR(e.rest, p.score, 1e-6);
    CHECK_INT(e.exact, 1);
    CHECK_NEAR(match(session, "c", 1, "new", 3), -5.0 * log(3.0), 1e-5);
    for (i = 3; i < 12; i++) CHECK_INT(carnn_session_candidate(session, "z", 1, NULL), CARNN_OK);
    CHECK_INT(carnn_session_candidate(session, "y", 1, NULL), CARNN_OK);
    CHECK_NEAR(match(session, "c", 1, "y", 1), -5.0 * log(10.0), 1e-5); /* the twelfth */
    CHECK_NEAR(match(session, "c", 1, "z", 1), -5.0 * log(3.0), 1e-5);
    carnn_session_reset(session);
    CHECK_NEAR(match(session, "c", 1, "new", 3), 0.0, 1e-9); /* the first, as far as is known */
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Numbers begin with a digit, or are the mark for one. */
static void test_number_words(void) {
    static const char *const word[] = {"0", "9th", "<num>", "/", ":", "a1", "<nun>", "<num", ""};
    size_t i;
    for (i = 0; i < CARNN__COUNT(word); i++)
        CHECK_INT(carnn__is_number(carnn__span_of(word[i])), i < 3);
}

/* What traits and the topic add, by hand, with weights of the question's words: a weighs numbers,
   b the topic, both the length. A sentence that says no number, or nothing, has no such trait. */
static void test_traits(void) {
    static const char text[] = "a b\tb x 2nd\t1\na b\ta\t0\nb c\tx 3 <num>\t1\nb c\tc y\t0\n";
    carnn_dataset *data = answer_data(text);
    carnn_model *model = test_model("answer", "model=siamese loss=pair", NULL, data);
    float *share = test_weight(model, "output.shares");
    float *asked = test_weight(model, "output.asked"), *idf = test_weight(model, "word.idf");
    uint32_t a = carnn__names_find(&model->words, carnn__span_of("a"));
    uint32_t b = carnn__names_find(&model->words, carnn__span_of("b"));
    carnn_session *session = NULL;
    carnn_contribution part[5];
    carnn_explanation e;
    float score[4];
    double l = 10.0 * log(4.0 / 21.0);
    size_t i;
    *test_weight(model, "output.weight") = 0.0f;
    memset(share, 0, 15 * sizeof *share);
    share[10] = 0.5f;
    for (i = 0; i < model->words.count; i++) idf[i] = 1.0f;
    asked[5 * a + 2] = 3.0f;
    asked[5 * b + 3] = 0.25f;
    asked[5 * a + 0] = asked[5 * b + 0] = 0.25f;
    asked[5 * b + 1] = -1.0f;
    score_pairs(model, data, 64, 1, score);
    CHECK_NEAR(score[0], l - l * l / 10.0 + 3.0 * 20.0 + 0.25 * 20.0 / 2.0, 1e-4);
    CHECK_NEAR(score[2], 0.75 * l - l * l / 10.0, 1e-4);
    l = 10.0 * log(2.0 / 21.0);
    CHECK_NEAR(score[1], l - l * l / 10.0 + 0.25 * 20.0, 1e-4); /* b is in the first sentence */
    l = 10.0 * log(3.0 / 21.0);
    CHECK_NEAR(score[3], 0.75 * l - l * l / 10.0 + 0.25 * 20.0 / 2.0, 1e-4);
    CHECK_INT(carnn_session_open(&session, model, NULL, NULL), CARNN_OK);
    CHECK_NEAR(match(session, "a", 1, "<num> x", 7), 0.75 * l + 3.0 * 20.0, 1e-4);
    CHECK_NEAR(match(session, "a", 1, "<unk.1> x", 9), 0.75 * l, 1e-4);
    CHECK_NEAR(match(session, "b", 1, "b x", 3), 0.75 * l - l * l / 10.0 + 0.25 * 20.0, 1e-4);
    CHECK_INT(carnn_session_explain(session, 5, part, &e, NULL), CARNN_OK);
    for (i = 0; i < e.count; i++) CHECK_NEAR(part[i].score, 0.0, 0.0);
    CHECK_NEAR(e.rest, 0.75 * l - l * l / 10.0 + 0.25 * 20.0, 1e-4);
    l = 10.0 * log(1.0 / 21.0);
    CHECK_NEAR(match(session, "new", 3, "", 0), 0.5 * l, 1e-4);
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Of a very long sentence the first words are read. */
static void test_long_sentence(void) {
    static char text[2 * CARNN__SENTENCE_WORDS + 20];
    carnn_dataset *data = answer_data(pairs);
    carnn_model *model = overlap_model(data);
    carnn__span all = {text, sizeof text};
    size_t i;
    for (i = 0; i < sizeof text; i++) text[i] = i % 2 ? ' ' : 'a';
    CHECK_INT(carnn__tokens(model, all, 1, NULL, 0), CARNN__SENTENCE_WORDS);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* What each word adds to the score by common words, by hand: the shares have the weights 1 to 8,
   a has the idf 0.5, which is 0.125 cubed, b has 1. b and a are neighbours in both texts. */
static void test_overlap_explained(void) {
    static const double added[5] = {9 * 20.0 / 3 + 12 * 0.125 * 16,
                                    16 * 20.0 / 3 + 12 * 16 + 8 * 1.125 / 2 * 16,
                                    9 * 20.0 / 3 + 12 * 0.125 * 16, 0.0, 0.0};
    carnn_dataset *data = answer_data("a b a\tb a\t1\na b a\tc\t0\n");
    carnn_model *model = overlap_model(data);
    float *share = test_weight(model, "output.shares");
    float *idf = test_weight(model, "word.idf");
    carnn_session *session = NULL;
    carnn_contribution part[6];
    carnn_explanation e;
    carnn_prediction p;
    carnn_error error;
    size_t i;
    for (i = 0; i < 8; i++) share[i] = (float)(i + 1);
    for (i = 0; i < model->words.count; i++) idf[i] = 1.0f;
    idf[carnn__names_find(&model->words, carnn__span_of("a"))] = 0.5f;
    CHECK_INT(carnn_session_open(&session, model, NULL, &error), CARNN_OK);
    CHECK_NEAR(match(session, "a b a", 5, "b a", 3), 2 * added[0] + added[1], 1e-3);
    CHECK_INT(carnn_session_explain(session, 5, part, &e, &error), CARNN_OK);
    CHECK_INT(e.count, 5);
    for (i = 0; i < 5; i++) CHECK_NEAR(part[i].score, added[i], 1e-4);
    CHECK_NEAR(e.rest, 0.0, 1e-4);
    CHECK_INT(carnn_session_explain(session, 2, part, &e, &error), CARNN_OK);
    CHECK_NEAR(part[1].score, added[1], 1e-4); /* the first words alone */
    part[5].has = 0;
    CHECK_INT(carnn_session_explain(session, 6, part, &e, &error), CARNN_OK);
    CHECK_INT(part[5].has, 0); /* there are five */
    CHECK_INT(carnn_session_part(session, 0, &p, &error), CARNN_OK); /* the score is as it was */
    CHECK_NEAR(p.score, 2 * added[0] + added[1], 1e-3);
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* The loss is one mean over questions, however many sentences are in the batch of each: the first
   question alone fills one. */
static void test_answer_mean_loss(void) {
    enum { LONG = 60, SHORT = 30, PAIRS = LONG + 2 * SHORT };
    char text[PAIRS * 40] = "";
    float score[PAIRS];
    double sum = 0.0, all = 0.0;
    carnn_dataset *data;
    carnn_model *model;
    size_t i, at = 0;
    for (i = 0; i < PAIRS; i++) {
        size_t question = i < LONG ? 0 : 1 + (i - LONG) / 2;
        at += (size_t)snprintf(text + at, sizeof text - at, "is it %u\tthe cat %u\t%d\n",
                               (unsigned)question, (unsigned)(i % 7), i < LONG ? !i : (int)(i % 2));
    }
    data = answer_data(text);
    model = test_model("answer", "cell=icarnn", NULL, data);
    score_pairs(model, data, 64, 1, score);
    for (i = 0; i < PAIRS; i++) {
        all += exp((double)score[i]);
        if (i + 1 < LONG || (i >= LONG && i % 2 == 0)) continue;
        sum += log(all) - (double)score[i < LONG ? 0 : i];
        all = 0.0;
    }
    CHECK_NEAR(test_scores(model, data).loss, sum / (1 + SHORT), 1e-5);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Items of one class alone have the weight 1; pairs have no loss where one of the two is
   missing. */
static void test_one_class(void) {
    static const char wrong[] = "a b\tb c\t0\na b\td\t0\n";
    static const char mixed[] = "a\tb\t1\na\tc\t1\nb c\tc d\t0\nb c\ta\t1\n"
                                "d\ta\t0\nd\tb\t0\nd\tc\t0\nd\td\t0\n";
    carnn_dataset *data = answer_data(mixed), *one = answer_data(wrong);
    carnn_model *model = test_model("answer", "cell=icarnn loss=pair", NULL, data);
    float score[8];
    score_pairs(model, one, 64, 1, score);
    CHECK_NEAR(test_scores(model, one).loss,
               (log(1.0 + exp((double)score[0])) + log(1.0 + exp((double)score[1]))) / 2.0, 1e-5);
    carnn_model_free(model);
    carnn_dataset_free(one);
    model = test_model("answer", "model=cosine", NULL, data);
    score_pairs(model, data, 64, 1, score);
    CHECK_NEAR(test_scores(model, data).loss,
               fmax(0.0, 0.1 - (double)score[3] + (double)score[2]), 1e-5);
    CHECK(test_scores(model, data).loss > 0.0);
    CHECK_INT(answer_fit(model, data, 2, 0.01), CARNN_OK);
    CHECK(isfinite(model->params.value[0]));
    carnn_model_free(model);
    model = test_model("answer", "cell=icarnn", NULL, data); /* nor have ranks */
    score_pairs(model, data, 64, 1, score);
    CHECK_NEAR(test_scores(model, data).loss,
               log(1.0 + exp((double)score[2] - (double)score[3])), 1e-5);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* --- parts and significance ------------------------------------------------------------------- */

typedef struct told {
    double value[8], weight[8], score[8];
    size_t parts, pairs, right;
} told;

static void on_part(size_t model, double value, double weight, void *user) {
    told *t = (told *)user;
    CHECK_INT(model, 0);
    t->value[t->parts] = value;
    t->weight[t->parts++] = weight;
}

static void on_ranked(const carnn_ranked *pair, void *user) {
    told *t = (told *)user;
    t->right += (size_t)pair->label;
    CHECK_INT(pair->group, t->pairs < 3 ? 0 : t->pairs < 6 ? 1 : 2);
    CHECK_INT(pair->member, t->pairs % 3);
    t->score[t->pairs++] = pair->score;
}

/* Four parts drawn from four, with weights: all 256 draws, each as likely as another. */
static void significance_by_all_draws(void) {
    static const double none[4] = {0.0, 0.0, 0.0, 0.0}, b[4] = {2.0, 1.0, -1.0, 1.0};
    static const double weight[4] = {1.0, 4.0, 2.0, 1.0};
    double found = 3.0 / 8.0, extreme = 0.0;
    int draw, part;
    for (draw = 0; draw < 256; draw++) {
        double sum = 0.0, weights = 0.0;
        for (part = 0; part < 4; part++) {
            sum += b[draw >> 2 * part & 3];
            weights += weight[draw >> 2 * part & 3];
        }
        extreme += fabs(sum / weights - found) >= found - 1e-12;
    }
    CHECK_NEAR(carnn_significance(4, none, b, weight, 1), extreme / 256.0, 0.02);
}

/* Whole differences, which are added up as bytes, have the p of the same ones in another unit. */
static void significance_of_whole(void) {
    double a[2][50], b[2][50], one[50], few[50];
    size_t i, round;
    for (round = 0; round < 20; round++) {
        for (i = 0; i < 50; i++) {
            b[0][i] = (double)(carnn__random(round, i) % 3);
            a[0][i] = (double)(carnn__random(round + 100, i) % 3);
            a[1][i] = a[0][i] / 2.0;
            b[1][i] = b[0][i] / 2.0;
            one[i] = 1.0;
            few[i] = 0.25;
        }
        CHECK(carnn_significance(50, a[0], b[0], one, round) ==
              carnn_significance(50, a[1], b[1], one, round));
        CHECK(carnn_significance(50, a[0], b[0], one, round) ==
              carnn_significance(50, a[0], b[0], few, round));
        a[0][0] = -1e300; /* no byte */
        CHECK(carnn_significance(50, a[0], b[0], one, round) > 0.3);
    }
}

/* A test tells of every question and pair. Differences that are as likely as a coin's sides have a
   large p, the same difference everywhere has the smallest one, which is 1 / 10001. */
static void test_parts(void) {
    static const double a[6] = {0.1, 0.9, 0.5, 0.3, 0.7, 0.2}, one[6] = {1, 1, 1, 1, 1, 1};
    static const double odd[6] = {0.9, 0.1, 0.5, 0.3, 0.7, 0.3};
    double better[6], small[2][6];
    carnn_dataset *data = answer_data(pairs);
    carnn_model *model = test_model("answer", "", NULL, data);
    carnn_test_desc desc;
    carnn_scores s;
    carnn_error error;
    float score[8];
    told t;
    size_t i;
    memset(&t, 0, sizeof t);
    memset(&desc, 0, sizeof desc);
    desc.threads = 1;
    desc.part = on_part;
    desc.ranked = on_ranked;
    desc.user = &t;
    CHECK_INT(carnn_test_parts((const carnn_model *const *)&model, 1, data, &desc, &s, &error), 0);
    score_pairs(model, data, 64, 1, score);
    CHECK_INT(t.parts, 3);
    CHECK_INT(t.pairs, 8);
    CHECK_INT(t.right, 4);
    CHECK_NEAR((t.value[0] + t.value[1] + t.value[2]) / 3.0, s.metric[0].value, 1e-12);
    for (i = 0; i < 8; i++) CHECK((float)t.score[i] == score[i]);
    for (i = 0; i < 6; i++) better[i] = a[i] + 0.05;
    CHECK_NEAR(carnn_significance(6, a, better, one, 1), 1.0 / 10001.0, 1e-12);
    CHECK(carnn_significance(6, a, odd, one, 1) > 0.8);
    CHECK(carnn_significance(6, a, odd, one, 1) != carnn_significance(6, a, odd, one, 2));
    for (i = 0; i < 6; i++) { /* in another unit */
        small[0][i] = 1e-14 * a[i];
        small[1][i] = 1e-14 * better[i];
    }
    CHECK_NEAR(carnn_significance(6, small[0], small[1], one, 1), 1.0 / 10001.0, 1e-12);
    CHECK_NEAR(carnn_significance(6, a, a, one, 1), 1.0, 1e-12);
    CHECK_NEAR(carnn_significance(0, a, a, one, 1), 1.0, 1e-12);
    CHECK_NEAR(carnn_significance(1, a, better, one, 1), 1.0, 1e-12); /* nothing to draw from */
    significance_by_all_draws();
    significance_of_whole();
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Sentences without a label are only to be predicted: they are no wrong ones. */
static void answer_unlabelled(void) {
    static const char text[] = "who ?\tthe cat\t1\nwho ?\ta dog\t\nwho ?\tmice\tx\n";
    carnn_dataset *data = answer_data(pairs);
    carnn_dataset *some = test_data("answer", text, strlen(text), 0, 1);
    carnn_model *model = test_model("answer", "", NULL, data);
    const carnn_model *models = model;
    carnn_train_desc train = answer_training(1, 0.01);
    carnn_scores scores;
    carnn_error error;
    CHECK_INT(carnn_test(&models, 1, some, 1, &scores, &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message, "data:2: expected the label 0 or 1, found nothing");
    CHECK_INT(carnn_train(model, some, NULL, &train, &error), CARNN_ERR_DATA);
    CHECK_INT(carnn_train(model, data, some, &train, &error), CARNN_ERR_DATA);
    carnn_model_free(model);
    carnn_dataset_free(some);
    carnn_dataset_free(data);
}

int main(void) {
    size_t i;
    answer_unlabelled();
    test_answer_scores(pairs, "cell=icarnn");
    test_answer_scores(pairs, "cell=icarnn decomposition=direct loss=pair");
    test_answer_scores(pairs, "cell=icarnn weighting=skip overlap=0");
    test_answer_scores(pairs, "cell=icarnn model=siamese");
    test_answer_scores(pairs, "cell=icarnn overlap=1");
    test_answer_scores(pairs, "cell=icarnn redundancy=0");
    test_answer_scores(pairs, "cell=icarnn place=0");
    test_answer_scores(pairs, "cell=icarnn redundancy=0 place=0");
    test_answer_scores(pairs, "cell=icarnn traits=0");
    test_answer_scores(pairs, "cell=icarnn redundancy=0 place=0 traits=0");
    test_answer_scores(odd_pairs, "cell=icarnn overlap=3 min_count=2");
    test_answer_scores(odd_pairs, "cell=icarnn overlap=3 min_count=1");
    test_redundancy();
    test_place("model=siamese loss=pair", 14);
    test_place("model=siamese loss=pair redundancy=0", 12);
    test_place("model=siamese loss=pair redundancy=0 traits=0", 9);
    test_number_words();
    test_traits();
    test_redundancy_room();
    test_long_sentence();
    test_overlap_explained();
    test_redundancy_limits(1100, 3, CARNN__OTHERS);
    test_redundancy_limits(900, 40, CARNN__OTHER_WORDS / 40);
    test_answer_scores(pairs, "cell=icarnn tune_vectors=0"); /* similar words have shares */
    test_rank_loss(1);
    test_rank_loss(5);
    test_rank_smoothing();
    test_metrics();
    test_answer_mean_loss();
    test_one_class();
    test_long_question();
    test_ranked_votes();
    test_words_of_left_out();
    test_answer_pieces();
    for (i = 0; carnn_cell_name(i); i++) {
        char options[64];
        snprintf(options, sizeof options, "cell=%s", carnn_cell_name(i));
        test_answer_batches(options);
        snprintf(options, sizeof options, "cell=%s overlap=0", carnn_cell_name(i));
        test_answer_batches(options);
        test_answer_learns(options);
        test_answer_session(options, carnn__cells[i].context_gates ? i != CARNN__CELL_carnn_high
                                                            : i == CARNN__CELL_ncarnn_free ||
                                                                  i == CARNN__CELL_ran);
    }
    test_answer_session("cell=icarnn model=siamese", 1);
    test_answer_session("cell=icarnn model=siamese place=0", 1);
    test_answer_session("cell=lstm", 0); /* equal texts whose words have other flags */
    test_parts();
    test_answer_same_bytes("cell=icarnn");
    test_answer_same_bytes("cell=lstm overlap=0 loss=pair");
    test_answer_same_bytes("cell=scarnn model=siamese");
    test_answer_resume();
    test_answer_validation("cell=icarnn");
    test_answer_validation("cell=lstm loss=pair overlap=0");
    test_description_stays();
    test_vectors(0);
    test_vectors(1);
    test_answer_errors();
    test_descriptions();
    test_default_memory();
    test_default_others();
    test_default_alignment();
    test_hinge_draws();
    test_memory_runs_out();
    return test_end();
}
