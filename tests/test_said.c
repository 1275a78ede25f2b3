/* Candidates by who has said their words: scores against strings, sessions and explanations. */

#include "test.h"

static const char talk[] =
    "1 hello\tgood morning !\n2 oak R_rating 3\n3 elm R_rating 9\n4 oak R_area north\n"
    "5 an oak\telm is nice\n6 <SILENCE>\toak is nice , very nice\n7 north ?\tfir is north\n\n"
    "1 elm and fir\tgood elm !\n2 fir R_rating 9\n3 zzz R_rating 3\n4 zzz\toak is nice\n"
    "5 hello\tfir is north\n";

/* Candidates have a word more often than there are candidates. */
static const char often[] = "1 hello\tyes yes yes\n2 yes\tyes yes no\n\n1 zzz\tyes yes yes\n";

/* 1: a line has the word; both are words between blanks. */
static int said_has(carnn__span line, carnn__span word) {
    carnn__words w = carnn__words_of(CARNN__SPACES, line);
    while (carnn__next_word(&w))
        if (carnn__same(w.word, word)) return 1;
    return 0;
}

/* Who has said a word by an item: 0 nobody, 1 the user, else 2 the system, else 3 one of the facts,
   of which the first `rows` in a row count. */
static size_t said_by(const carnn_dataset *data, size_t item, carnn__span word, size_t rows) {
    const carnn__item *x = &data->items[item];
    size_t i, by = 0, row = 0;
    for (i = x->first; i < x->first + x->count; i++) {
        size_t role = data->members[i].role;
        row = role == CARNN_FACT ? row + 1 : 0;
        if (row <= rows && said_has(carnn__text(data, data->members[i].text), word) &&
            (!by || role + 1 < by))
            by = role + 1;
    }
    return by;
}

/* log(L / n) / 10, where the candidates have the word n times. */
static double said_rarity(const carnn_model *model, carnn__span word) {
    size_t L = model->choices.count, n = 0, l;
    for (l = 0; l < L; l++) {
        carnn__words w = carnn__words_of(CARNN__SPACES,
                                         carnn__span_of(carnn_model_choice(model, l)));
        while (carnn__next_word(&w)) n += (size_t)carnn__same(w.word, word);
    }
    return log((double)L / (double)n) / 10.0;
}

/* The sums of M and S over the words of a candidate; o: the state, NULL: S does not count. */
static double said_score(const carnn_model *model, const carnn_dataset *data, size_t item,
                         const char *candidate, size_t rows, const float *o) {
    const float *M = carnn__named(&model->params, "reply.match");
    const float *S = o ? carnn__named(&model->params, "reply.speaker") : NULL;
    carnn__words w = carnn__words_of(CARNN__SPACES, carnn__span_of(candidate));
    size_t D = (size_t)model->desc.hidden, j;
    double sum = 0.0;
    while (carnn__next_word(&w)) {
        size_t word = carnn__names_find(&model->words, w.word);
        size_t by = said_by(data, item, w.word, rows);
        sum += (double)M[4 * word + by];
        for (j = 0; S && j < D; j++)
            sum += said_rarity(model, w.word) * (double)o[j] * (double)S[by * D + j];
    }
    return sum;
}

/* The session hears what was said before an item, and answers it. */
static void said_ask(carnn_session *s, const carnn_dataset *data, size_t item) {
    const carnn__item *x = &data->items[item];
    carnn_prediction p;
    size_t i;
    carnn_session_reset(s);
    for (i = x->first; i < x->first + x->count; i++) {
        carnn__span text = carnn__text(data, data->members[i].text);
        carnn_text user;
        user.at = text.at;
        user.length = text.length;
        if (i + 1 < x->first + x->count)
            CHECK(!carnn_session_hear(s, (carnn_speaker)data->members[i].role, text.at, text.length,
                                      NULL));
        else
            CHECK(!carnn_session_predict(s, &user, 1, 1, &p, NULL));
    }
}

/* What is explained adds up to the logit of the reply, and is the same with no room to spare. */
static void said_adds_up(carnn_session *s) {
    const float *z = ((const carnn__dialog *)s->work.state)->z;
    carnn_contribution part[16], exact[16];
    carnn_explanation e;
    double sum, all = 1.0;
    size_t i;
    CHECK(!carnn_session_explain(s, 16, part, &e, NULL));
    CHECK(!carnn_session_explain(s, e.count, exact, &e, NULL));
    for (i = 0; i < e.count; i++) CHECK(exact[i].score == part[i].score);
    for (sum = e.rest, i = 0; i < e.count; i++) {
        sum += part[i].score;
        all += fabs(part[i].score);
    }
    CHECK_NEAR(sum, z[carnn__net_of(&s->work)->best[0]], 1e-5 * all);
}

/* The logits of an item with M and S, less those without, are the sums over strings; how much of
   the history is read otherwise does not matter. */
static void said_adds(const char *text, const char *options, size_t rows) {
    carnn_dataset *data = test_data("dialog", text, strlen(text), 0, 0);
    carnn_model *model = test_model("dialog", options, NULL, data);
    const carnn__dialog *m, *without;
    carnn_session *s = NULL, *plain = NULL;
    size_t size = model->params.size * sizeof(float), item, l;
    float *value = model->params.value;
    float *zeros = (float *)malloc(size), *kept = (float *)malloc(size);
    memcpy(zeros, value, size);
    test_random_match(model);
    CHECK(memcmp(zeros, value, size) != 0);
    memcpy(kept, value, size);
    CHECK(!carnn_session_open(&s, model, NULL, NULL));
    memcpy(value, zeros, size);
    CHECK(!carnn_session_open(&plain, model, NULL, NULL));
    m = (const carnn__dialog *)s->work.state;
    without = (const carnn__dialog *)plain->work.state;
    for (item = 0; item < data->item_count; item++) {
        said_ask(plain, data, item);
        memcpy(value, kept, size);
        said_ask(s, data, item);
        said_adds_up(s);
        for (l = 0; l < model->choices.count; l++)
            CHECK_NEAR(m->z[l] - without->z[l],
                       said_score(model, data, item, carnn_model_choice(model, l), rows,
                                  carnn__match_has_speakers(model) ? m->o.x : NULL), 1e-4);
        memcpy(value, zeros, size);
    }
    free(zeros);
    free(kept);
    carnn_session_free(s);
    carnn_session_free(plain);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* What is explained adds up with weights of 8 bits, too, which S has, while M has floats. */
static void said_rounded(const char *options) {
    carnn_dataset *data = test_data("dialog", talk, sizeof talk - 1, 0, 0);
    carnn_model *model = test_model("dialog", options, NULL, data);
    carnn_session *s = NULL;
    size_t item;
    test_random_match(model);
    CHECK(!carnn_model_quantise(model, NULL));
    CHECK(!carnn_session_open(&s, model, NULL, NULL));
    CHECK(carnn__weights(&s->work, ((carnn__dialog *)s->work.state)->match.speaker).q != NULL);
    for (item = 0; item < data->item_count; item++) {
        said_ask(s, data, item);
        said_adds_up(s);
    }
    carnn_session_free(s);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* With no other weights: each word of the reply counts for the utterance in which the speaker who
   matters has first said it, in the rest where nobody has or that is forgotten. */
static void said_explains(const char *options) {
    carnn_dataset *data = test_data("dialog", talk, sizeof talk - 1, 0, 0);
    carnn_model *model = test_model("dialog", options, NULL, data);
    const float *M = carnn__named(&model->params, "reply.match");
    carnn_session *s = NULL;
    size_t item, i, told = 0;
    memset(model->params.value, 0, model->params.size * sizeof(float));
    test_random_match(model);
    CHECK(!carnn_session_open(&s, model, NULL, NULL));
    for (item = 0; item < data->item_count; item++) {
        const carnn__item *x = &data->items[item];
        double part[16] = {0.0}, rest = 0.0;
        carnn_contribution out[16];
        carnn_explanation e;
        carnn__words w;
        size_t before; /* lines that are forgotten; $start is no line */
        said_ask(s, data, item);
        CHECK(!carnn_session_explain(s, 16, out, &e, NULL));
        before = x->count + 1 - e.count;
        for (w = carnn__words_of(CARNN__SPACES, carnn__span_of(e.of)); carnn__next_word(&w);) {
            const float *of = M + 4 * carnn__names_find(&model->words, w.word);
            size_t by = said_by(data, item, w.word, SIZE_MAX);
            rest += (double)of[0];
            for (i = 0; by && i < x->count; i++)
                if (data->members[x->first + i].role == by - 1 &&
                    said_has(carnn__text(data, data->members[x->first + i].text), w.word)) break;
            if (by && i + 1 >= before) part[i + 1 - before] += (double)(of[by] - of[0]);
            else if (by) rest += (double)(of[by] - of[0]);
        }
        for (i = 0; i < e.count; i++) CHECK_NEAR(out[i].score, part[i], 1e-5);
        for (i = 0; i < e.count; i++) told += part[i] != 0.0;
        CHECK_NEAR(e.rest, rest, 1e-5);
    }
    CHECK(told > 0);
    carnn_session_free(s);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

enum { SAID_DIALOGS = 3, SAID_TURNS = 50 };

/* Long dialogs, of which one batch takes several chunks: two words of eight from the user, who says
   some again that the system has said, and two of the system's. */
static carnn_dataset *said_long_data(void) {
    char text[SAID_DIALOGS * SAID_TURNS * 32];
    size_t size = 0, i, k;
    for (i = 0; i < SAID_DIALOGS * SAID_TURNS; i++) {
        size_t turn = i % SAID_TURNS, word[3];
        for (k = 0; k < 3; k++) word[k] = (size_t)(carnn__random(3, 3 * i + k) % (2 + turn / 6));
        size += (size_t)sprintf(text + size, "%s%zu a%zu b%zu\ta%zu b%zu\n", turn || !i ? "" : "\n",
                                turn + 1, word[0], word[1], word[2], turn % 3);
    }
    return test_data("dialog", text, size, 0, 0);
}

/* Adds the loss of an item to *loss and its gradient in M to g, by strings. */
static void said_loss(const carnn_model *model, const carnn_dataset *data, size_t item,
                      double *loss, double *g) {
    size_t L = model->choices.count, answer, l;
    double z[64] = {0.0}, all = 0.0;
    CHECK(L > 10 && L <= 64);
    answer = carnn__names_find(&model->choices, carnn__text(data, data->items[item].target));
    for (l = 0; l < L; l++) {
        z[l] = said_score(model, data, item, carnn_model_choice(model, l), SIZE_MAX, NULL);
        all += exp(z[l]);
    }
    *loss += log(all) - z[answer];
    for (l = 0; l < L; l++) {
        carnn__words w = carnn__words_of(CARNN__SPACES,
                                         carnn__span_of(carnn_model_choice(model, l)));
        while (carnn__next_word(&w))
            g[4 * carnn__names_find(&model->words, w.word) +
              said_by(data, item, w.word, SIZE_MAX)] += exp(z[l]) / all - (l == answer);
    }
}

/* The loss of one batch of all turns, of several chunks; g NULL: no gradient is asked for. */
static double said_batch(const carnn_model *model, const carnn_dataset *data, float *g) {
    test_work w;
    double loss;
    test_work_open(&w, model, data, 2);
    w.work.g = g;
    w.work.batch = SAID_DIALOGS * SAID_TURNS;
    CHECK_INT(test_work_run(&w, 0), 1);
    loss = w.tally.loss / (SAID_DIALOGS * SAID_TURNS);
    test_work_close(&w);
    return loss;
}

/* With no other weights the logits are what M has in them: the loss of a batch and its gradient. */
static void said_long(void) {
    carnn_dataset *data = said_long_data();
    carnn_model *model = test_model(
        "dialog", "hidden=8 embedding=8 exchange=0 balance=0 word_dropout=0", NULL, data);
    const size_t turns = SAID_DIALOGS * SAID_TURNS;
    size_t at, i;
    double expected[128] = {0.0}, loss = 0.0;
    float *g = (float *)calloc(model->params.size, sizeof(float));
    CHECK(model->words.count <= 32);
    memset(model->params.value, 0, model->params.size * sizeof(float));
    test_random_match(model);
    for (i = 0; i < turns; i++) said_loss(model, data, i, &loss, expected);
    loss /= (double)turns;
    CHECK_NEAR(said_batch(model, data, g), loss, 1e-4 * loss);
    at = (size_t)(carnn__named(&model->params, "reply.match") - model->params.value);
    for (i = 0; i < 4 * model->words.count; i++)
        CHECK_NEAR(g[at + i], expected[i] / (double)turns, 1e-5);
    free(g);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* The gradient in S of such a batch, in which nothing is said by facts. */
static void said_long_slope(void) {
    carnn_dataset *data = said_long_data();
    carnn_model *model = test_model(
        "dialog", "hidden=8 embedding=8 exchange=0 balance=0 word_dropout=0", NULL, data);
    float *g = (float *)calloc(model->params.size, sizeof(float)), *S, *gS;
    size_t i;
    test_random_match(model);
    S = carnn__named(&model->params, "reply.speaker");
    gS = g + (S - model->params.value);
    said_batch(model, data, g);
    for (i = 0; i < 32; i++) {
        float at = S[i];
        double slope;
        S[i] = at + 0.25f;
        slope = said_batch(model, data, NULL);
        S[i] = at - 0.25f;
        slope = 2.0 * (slope - said_batch(model, data, NULL));
        S[i] = at;
        CHECK_NEAR(gS[i], slope, 1e-5 + 0.01 * fabs(slope));
        CHECK((slope != 0.0) == (i / 8 != 1 + CARNN_FACT));
    }
    free(g);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Replies name the tree that the user has named: that a tree has been named by the user counts for
   such a reply, that nobody has named it counts against it. */
static void said_learns(void) {
    static const char *const tree[] = {"oak", "elm", "ash", "yew", "fir", "bay"};
    static char text[1 << 14], all[256];
    carnn_source source = {"trees", text, 0}, candidates = {"candidates", all, 0};
    carnn_train_desc train = test_training(60, 20, 0.0, CARNN_NONE);
    carnn_dataset *data;
    carnn_model *model;
    size_t i;
    for (i = 0; i < 64; i++)
        source.size += (size_t)snprintf(text + source.size, sizeof text - source.size,
                                        "1 a %s\tyes\n2 which one\tthe %s\n\n",
                                        tree[i % 4], tree[i % 4]);
    for (i = 0; i < 6; i++)
        candidates.size += (size_t)sprintf(all + candidates.size, "1 the %s\n", tree[i]);
    candidates.size += (size_t)sprintf(all + candidates.size, "1 yes\n");
    data = test_dialogs(source, candidates);
    model = test_model("dialog", "hidden=8 embedding=8 exchange=0", NULL, data);
    CHECK(!carnn_train(model, data, NULL, &train, NULL));
    for (i = 0; i < 4 && !TEST_SANITIZED; i++) {
        const float *M = carnn__named(&model->params, "reply.match");
        const float *word = M + 4 * carnn__names_find(&model->words, carnn__span_of(tree[i]));
        CHECK(word[1] > 0.1f && word[0] < -0.1f);
    }
    carnn_model_free(model);
    carnn_dataset_free(data);
}

int main(void) {
    said_adds(talk, "hidden=24 embedding=24", SIZE_MAX);
    said_adds(often, "hidden=24 embedding=24", SIZE_MAX);
    said_adds(talk, "hidden=24 embedding=24 kb_rows=1 cell=lstm", 1);
    said_adds(talk, "hidden=24 embedding=24 history=1 cell=ncarnn hops=0", SIZE_MAX);
    said_adds(talk, "hidden=24 embedding=24 hops=2 ages=1", SIZE_MAX);
    said_adds(talk, "hidden=24 embedding=24 reduce=2", SIZE_MAX);
    said_adds(talk, "hidden=24 embedding=24 match=1", SIZE_MAX);
    said_rounded("hidden=40 embedding=40");
    said_rounded("hidden=40 embedding=40 hops=2 gated=1 history=2");
    said_rounded("hidden=40 embedding=40 reduce=2");
    said_explains("hidden=8 embedding=8");
    said_explains("hidden=8 embedding=8 history=1");
    said_explains("hidden=8 embedding=8 hops=2 cell=ncarnn history=4");
    said_long();
    said_long_slope();
    said_learns();
    return test_end();
}
