/* Dialogs with a CARNN, hops of attention, memory networks and query reduction: replies and
   explanations against plain loops, training with any number of threads and on all SIMD paths, what
   only the age of an utterance tells, and hops over the states of a cell. */

#include "test.h"

enum { HOPS_D = 8, HOPS_LINES = 100, HOPS_WORDS = 16 };
enum { HOPS_PLAIN, HOPS_GATED, HOPS_REDUCE, HOPS_CELL }; /* kinds of networks */
#define HOPS_CANDIDATE 99u /* in the place of a role */

/* A dialog of more lines than there are ages, and a short one. */
static carnn_dataset *hops_data(void) {
    char text[8192];
    size_t n = 0, i;
    n += (size_t)sprintf(text + n, "1 hello you\tgood morning\n");
    for (i = 0; i < 70; i++) n += (size_t)sprintf(text + n, "2 oak%zu R_rating %zu\n", i % 9, i);
    n += (size_t)sprintf(text + n, "3 a good one please\toak1 is nice\n4 thanks\tgoodbye you\n\n"
                                   "1 goodbye\tgoodbye you\n2 please\tgood morning\n");
    return test_data("dialog", text, n, 0, 0);
}

/* The position encoding of a text, as its speaker has said it, or as a candidate. */
static void hops_encode(const carnn_model *model, carnn__span text, uint32_t role, double *e) {
    const float *word = test_weight(model, "word.weight");
    uint32_t ids[HOPS_WORDS];
    size_t J, j, k;
    if (role == HOPS_CANDIDATE)
        J = carnn__tokenize(&model->words, CARNN__WORDS, text, ids, HOPS_WORDS);
    else J = carnn__history_tokens(model, text, role, ids, HOPS_WORDS);
    for (k = 0; k < HOPS_D; k++) {
        e[k] = 0.0;
        for (j = 0; j < J; j++) {
            double place = (double)(j + 1) / (double)J, ramp = (double)(k + 1) / HOPS_D;
            e[k] += ((1.0 - place) - ramp * (1.0 - 2.0 * place)) *
                    (double)word[ids[j] * HOPS_D + k];
        }
    }
}

static void hops_candidate(const carnn_model *model, size_t choice, double *y) {
    const char *name = carnn__names_get(&model->choices, choice);
    carnn__span text = {name, strlen(name)};
    hops_encode(model, text, HOPS_CANDIDATE, y);
}

typedef struct hops_plain {
    size_t lines;
    double memory[HOPS_LINES][HOPS_D], al[HOPS_LINES]; /* of the last hop */
    double u[HOPS_D];                        /* in the end o */
    /* of query reduction: what each line is asked, candidates, states, gates a, r, r' */
    double asked[HOPS_LINES][HOPS_D], k[HOPS_LINES][HOPS_D], f[HOPS_LINES][HOPS_D];
    double b[HOPS_LINES][HOPS_D], gate[HOPS_LINES][3];
} hops_plain;

/* Hop k from 1; hop 0: u becomes what is read (Tran et al. 2018, Eq. 8). */
static void hops_hop(const carnn_model *model, hops_plain *x, size_t k, int gated) {
    double r[HOPS_D] = {0.0}, next[HOPS_D], sum = 0.0;
    size_t i, j;
    char name[48];
    for (i = 0; i < x->lines; i++) {
        for (x->al[i] = 0.0, j = 0; j < HOPS_D; j++) x->al[i] += x->memory[i][j] * x->u[j];
        sum += x->al[i] = exp(x->al[i]);
    }
    for (i = 0; i < x->lines; i++)
        for (x->al[i] /= sum, j = 0; j < HOPS_D; j++) r[j] += x->al[i] * x->memory[i][j];
    for (j = 0; j < HOPS_D; j++) {
        if (!k) {
            next[j] = r[j];
        } else if (gated) {
            double g;
            sprintf(name, "hops.%zu.gate.weight", k);
            g = test_row_times(test_weight(model, name), j, HOPS_D, x->u);
            sprintf(name, "hops.%zu.gate.bias", k);
            g = test_sigmoid(g + (double)test_weight(model, name)[j]);
            next[j] = g * r[j] + (1.0 - g) * x->u[j];
        } else {
            next[j] = test_row_times(test_weight(model, "hops.weight"), j, HOPS_D, x->u) + r[j];
        }
    }
    memcpy(x->u, next, sizeof next);
}

/* Adds to each e_m, in x->memory, the state h_m of an nCARNN, iCARNN or sCARNN whose context is u
   (Tran et al. 2018, Eq. 3, 5, 6). */
static void hops_cell(const carnn_model *model, hops_plain *x) {
    const char kind = *model->desc.cell;
    const float *W = test_weight(model, "cell.input.weight"), *b = test_weight(model, "cell.bias");
    const float *C = test_weight(model, "cell.context.weight");
    const float *U = kind == 'n' ? test_weight(model, "cell.recurrent.weight") : NULL;
    double h[HOPS_D] = {0.0}, next[HOPS_D];
    size_t m, g, i;
    for (m = 0; m < x->lines; m++) {
        const double *e = x->memory[m];
        for (i = 0; i < HOPS_D; i++) {
            double gate[2], k = e[i];
            for (g = 0; g < 2; g++) {
                size_t row = g * HOPS_D + i;
                gate[g] = (double)b[row] + test_row_times(W, row, HOPS_D, e) +
                          test_row_times(C, row, HOPS_D, x->u);
                gate[g] = test_sigmoid(gate[g] + (U ? test_row_times(U, row, HOPS_D, h) : 0.0));
            }
            if (kind != 's')
                k = (double)b[2 * HOPS_D + i] + test_row_times(W, 2 * HOPS_D + i, HOPS_D, e);
            next[i] = gate[0] * (gate[1] * k) + (1.0 - gate[0]) * h[i];
        }
        memcpy(h, next, sizeof h);
        for (i = 0; i < HOPS_D; i++) x->memory[m][i] += h[i];
    }
}

/* Candidates and gates of a line. */
static void hops_reduce_line(const carnn_model *model, hops_plain *x, size_t i) {
    const float *bias = test_weight(model, "reduce.bias");
    const float *more = test_weight(model, "reduce.gate.bias");
    const float *Q = test_weight(model, "reduce.query"), *M = test_weight(model, "reduce.memory");
    const float *gate = test_weight(model, "reduce.gate.weight");
    double both[HOPS_D];
    size_t j;
    for (j = 0; j < HOPS_D; j++) {
        x->k[i][j] = tanh(test_row_times(Q, j, HOPS_D, x->asked[i]) +
                          test_row_times(M, j, HOPS_D, x->memory[i]) + (double)bias[j]);
        both[j] = x->asked[i][j] * x->memory[i][j];
    }
    for (j = 0; j < 3; j++)
        x->gate[i][j] = test_sigmoid(test_row_times(gate, j, HOPS_D, both) + (double)more[j]);
}

/* A layer: sums over the lines before and behind each line instead of a recurrence. */
static void hops_reduce_layer(const carnn_model *model, hops_plain *x, int last) {
    size_t i, j, from;
    for (i = 0; i < x->lines; i++) hops_reduce_line(model, x, i);
    for (i = 0; i < x->lines; i++)
        for (j = 0; j < HOPS_D; j++) {
            double left = 1.0;
            x->f[i][j] = x->b[i][j] = 0.0;
            for (from = i + 1; from-- > 0; left *= 1.0 - x->gate[from][0])
                x->f[i][j] += left * x->gate[from][0] * (last ? 1.0 : x->gate[from][1]) *
                              x->k[from][j];
            for (left = 1.0, from = i; from < x->lines; left *= 1.0 - x->gate[from++][0])
                x->b[i][j] += left * x->gate[from][0] * x->gate[from][2] * x->k[from][j];
        }
    for (i = 0; i < x->lines; i++)
        for (j = 0; j < HOPS_D; j++) x->asked[i][j] = x->f[i][j] + x->b[i][j];
}

static void hops_reduce(const carnn_model *model, hops_plain *x, size_t layers) {
    double left = 1.0;
    size_t i, l;
    for (i = 0; i < x->lines; i++) memcpy(x->asked[i], x->u, sizeof x->u);
    for (l = 1; l <= layers; l++) hops_reduce_layer(model, x, l == layers);
    memcpy(x->u, x->f[x->lines - 1], sizeof x->u);
    for (i = x->lines; i-- > 0; left *= 1.0 - x->gate[i][0]) x->al[i] = left * x->gate[i][0];
}

static void hops_run(const carnn_model *model, const carnn_dataset *data, size_t item, size_t hops,
                     int kind, hops_plain *x) {
    const carnn__item *of = &data->items[item];
    const carnn__member *member = data->members + of->first;
    const float *age = kind >= HOPS_REDUCE ? NULL : test_weight(model, "hops.ages");
    const carnn__span none = {"", 0};
    size_t i, j, k;
    /* $start is read, too; the user's latest utterance by a cell alone */
    x->lines = kind == HOPS_CELL ? of->count + 1 : of->count;
    hops_encode(model, none, CARNN__START_ROLE, x->memory[0]);
    for (i = 1; i < x->lines; i++)
        hops_encode(model, carnn__text(data, member[i - 1].text), member[i - 1].role,
                    x->memory[i]);
    for (i = 0; age && i < x->lines; i++)
        for (k = x->lines - 1 - i, k = k < 63 ? k : 63, j = 0; j < HOPS_D; j++)
            x->memory[i][j] += (double)age[k * HOPS_D + j];
    hops_encode(model, carnn__text(data, member[of->count - 1].text), CARNN_USER, x->u);
    if (kind == HOPS_CELL) hops_cell(model, x);
    if (kind == HOPS_REDUCE) hops_reduce(model, x, hops);
    else if (!hops) hops_hop(model, x, 0, 0);
    else for (k = 1; k <= hops; k++) hops_hop(model, x, k, kind == HOPS_GATED);
}

/* Of one hop each utterance has al (e + T) . y. */
static void hops_explained(const carnn_model *model, const carnn_dataset *data, size_t item,
                           const hops_plain *x, const carnn_contribution *part, size_t choice) {
    double y[HOPS_D], score;
    size_t i, j;
    CHECK_INT(x->lines, data->items[item].count);
    hops_candidate(model, choice, y);
    for (i = 0; i < x->lines; i++) {
        for (score = 0.0, j = 0; j < HOPS_D; j++) score += x->al[i] * x->memory[i][j] * y[j];
        CHECK_NEAR(part[i].score, score, 1e-4);
    }
}

static void test_hops(const char *options, size_t hops, int kind) {
    carnn_dataset *data = hops_data();
    carnn_model *model = test_model("dialog", options, NULL, data);
    carnn_session *session = NULL;
    carnn_prediction p;
    carnn_contribution part[HOPS_LINES];
    carnn_explanation told;
    carnn_error error;
    size_t i, j, item, L;
    double loss = 0.0, sum;
    static hops_plain x;
    for (i = 0; i < model->params.size; i++) model->params.value[i] *= 4.0f;
    for (i = 0; kind == HOPS_CELL && i < 2 * HOPS_D; i++) /* of gates; that of k stays 0 */
        test_weight(model, "cell.bias")[i] = carnn__uniform(9, i) - 0.5f;
    L = model->choices.count;
    CHECK_INT(L, 3);
    CHECK_INT(carnn_session_open(&session, model, NULL, &error), CARNN_OK);
    for (item = 0; item < data->item_count; item++) {
        double z[3], all = 0.0;
        hops_run(model, data, item, hops, kind, &x);
        for (i = 0; i < L; i++) {
            double y[HOPS_D];
            hops_candidate(model, i, y);
            for (z[i] = 0.0, j = 0; j < HOPS_D; j++) z[i] += x.u[j] * y[j];
            all += exp(z[i]);
        }
        CHECK_INT(carnn_session_example(session, data, item, L, &p, &error), CARNN_OK);
        CHECK_INT(p.count, L);
        for (i = 0; i < L; i++)
            CHECK_NEAR(p.probability[i], exp(z[p.choice[i]]) / all, 2e-5);
        CHECK_INT(carnn_session_explain(session, HOPS_LINES, part, &told, &error), CARNN_OK);
        CHECK_INT(told.count, x.lines);
        CHECK_INT(told.exact, kind != HOPS_GATED);
        sum = told.rest;
        for (i = 0; i < told.count; i++) {
            CHECK_INT(part[i].has, kind == HOPS_GATED ? CARNN_HAS_ATTENTION
                                                      : CARNN_HAS_ATTENTION | CARNN_HAS_SCORE);
            CHECK_NEAR(part[i].attention, x.al[i], 2e-5);
            sum += part[i].score;
        }
        CHECK_NEAR(sum, z[p.choice[0]], 1e-4 * (1.0 + fabs(z[p.choice[0]])));
        if (hops == 1 && kind == HOPS_PLAIN)
            hops_explained(model, data, item, &x, part, p.choice[0]);
        i = carnn__names_find(&model->choices, carnn__target(data, item));
        loss -= log(exp(z[i]) / all);
    }
    CHECK_NEAR(test_scores(model, data).loss, loss / (double)data->item_count, 1e-4);
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* What was said first decides, which only T or the cell tells. */
static void test_hops_learn(const char *options, int64_t epochs) {
    static const char text[] = "1 red\tgo on\n2 blue\tgo on\n3 which\tred it is\n\n"
                               "1 blue\tgo on\n2 red\tgo on\n3 which\tblue it is\n";
    carnn_dataset *data = test_data("dialog", text, sizeof text - 1, 0, 0);
    carnn_model *model = test_trains_alike("dialog", options, data,
                                           test_training(epochs, 2, 0.01, 0.0));
    CHECK_NEAR(test_metric(&model->scores, "accuracy"), 1.0, 0.0);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* The prediction of an item and its parts, which add up to the logit o . y. */
static void hops_told(const carnn_model *model, const carnn_dataset *data, size_t item, double *p,
                      carnn_contribution *out) {
    carnn_session *session = NULL;
    carnn_explanation told;
    carnn_prediction said;
    carnn_error error;
    double sum, y[HOPS_D];
    size_t i;
    CHECK_INT(carnn_session_open(&session, model, NULL, &error), CARNN_OK);
    CHECK_INT(carnn_session_example(session, data, item, 3, &said, &error), CARNN_OK);
    hops_candidate(model, said.choice[0], y);
    for (i = 0; i < said.count; i++) p[said.choice[i]] = said.probability[i];
    CHECK_INT(carnn_session_explain(session, HOPS_LINES, out, &told, &error), CARNN_OK);
    CHECK_INT(told.exact, 1);
    for (sum = told.rest, i = 0; i < told.count; i++) sum += out[i].score;
    for (i = 0; i < HOPS_D; i++)
        sum -= y[i] * (double)((carnn__dialog *)session->work.state)->o.x[i];
    CHECK_NEAR(sum, 0.0, 2e-5);
    carnn_session_free(session);
}

/* Over the states of a cell: one hop whose H is 0 is Eq. 8; of two hops the parts add up, too. */
static void test_hops_of_cell(const char *cell) {
    char options[80];
    carnn_dataset *data = hops_data();
    carnn_model *model[3];
    carnn_contribution part[2][HOPS_LINES];
    double p[2][3];
    size_t i, j, item;
    for (i = 0; i < 3; i++) {
        snprintf(options, sizeof options, "hidden=8 embedding=8 cell=%s hops=%zu", cell, i);
        model[i] = test_model("dialog", options, NULL, data);
        for (j = 0; j < model[i]->params.count; j++) {
            const carnn__param *of = &model[i]->params.item[j];
            float *w = test_weight(model[i], of->name);
            size_t n = of->rows * of->columns, k;
            if (i == 1 && !strcmp(of->name, "hops.weight")) memset(w, 0, n * sizeof *w);
            else if (i == 1) memcpy(w, test_weight(model[0], of->name), n * sizeof *w);
            else for (k = 0; k < n; k++) w[k] *= 3.0f;
        }
    }
    for (item = 0; item < data->item_count; item++) {
        hops_told(model[2], data, item, p[0], part[0]);
        for (i = 0; i < 2; i++) hops_told(model[i], data, item, p[i], part[i]);
        for (i = 0; i < 3; i++) CHECK_NEAR(p[0][i], p[1][i], 1e-6);
        for (i = 0; i < data->items[item].count; i++)
            CHECK_NEAR(part[0][i].score, part[1][i].score, 1e-5);
    }
    for (i = 0; i < 3; i++) carnn_model_free(model[i]);
    carnn_dataset_free(data);
}

/* A session says what scoring does, also of facts that have been told and of parts of a history. */
static void test_hops_session(const char *options) {
    carnn_dataset *data = hops_data();
    carnn_model *model = test_model("dialog", options, NULL, data);
    carnn_session *session = NULL;
    carnn_prediction p;
    carnn_error error;
    test_answers all;
    size_t i;
    for (i = 0; i < model->params.size; i++) model->params.value[i] *= 4.0f;
    all = test_predict_all(model, data, 1);
    CHECK_INT(carnn_session_open(&session, model, NULL, &error), CARNN_OK);
    for (i = 0; i < data->item_count; i++) {
        const carnn__item *x = &data->items[i];
        carnn__span user = carnn__text(data, data->members[x->first + x->count - 1].text);
        carnn_text said;
        said.at = user.at;
        said.length = user.length;
        test_hear_history(session, data, i);
        CHECK_INT(carnn_session_predict(session, &said, 1, 1, &p, &error), CARNN_OK);
        CHECK_INT(p.choice[0], all.choice[i]);
        CHECK(p.probability[0] == all.value[i]);
    }
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* A file may say that a model with query reduction has hops: it explains as if it had none. */
static void test_hops_of_file(carnn_dataset *data) {
    carnn_model *model = test_model("dialog", "hidden=8 embedding=8 reduce=2", NULL, data), *again;
    carnn_session *session[2];
    carnn_contribution out[2][HOPS_LINES];
    carnn_explanation told[2];
    carnn_prediction p[2];
    size_t i, j;
    model->desc.option[CARNN__DIALOG_HOPS] = 2;
    model->desc.option[CARNN__DIALOG_GATED] = 1;
    model->desc.option[CARNN__DIALOG_HISTORY] = model->desc.option[CARNN__DIALOG_KB_ROWS] = 0;
    again = test_reload(model);
    model->desc.option[CARNN__DIALOG_HOPS] = model->desc.option[CARNN__DIALOG_GATED] = CARNN_NONE;
    model->desc.option[CARNN__DIALOG_HISTORY] = CARNN_NONE;
    model->desc.option[CARNN__DIALOG_KB_ROWS] = CARNN_NONE;
    CHECK(carnn_model_describe(again)->option[CARNN__DIALOG_HOPS] > 0.0);
    CHECK(test_scores(again, data).loss == test_scores(model, data).loss);
    for (i = 0; i < 2; i++) {
        CHECK_INT(carnn_session_open(&session[i], i ? again : model, NULL, NULL), CARNN_OK);
        CHECK_INT(carnn_session_example(session[i], data, carnn_dataset_examples(data) - 1, 1,
                                        &p[i], NULL), CARNN_OK);
        CHECK_INT(carnn_session_explain(session[i], HOPS_LINES, out[i], &told[i], NULL), CARNN_OK);
    }
    CHECK(p[0].probability[0] == p[1].probability[0] && told[0].rest == told[1].rest);
    CHECK_INT(told[1].count, told[0].count);
    CHECK_INT(told[1].exact, told[0].exact);
    for (j = 0; j < told[0].count && j < HOPS_LINES; j++)
        CHECK(out[0][j].has == out[1][j].has && out[0][j].score == out[1][j].score &&
              out[0][j].attention == out[1][j].attention);
    for (i = 0; i < 2; i++) carnn_session_free(session[i]);
    carnn_model_free(again);
    carnn_model_free(model);
}

int main(void) {
    carnn_dataset *data = hops_data();
    test_hops("hidden=8 embedding=8 told=0 hops=0 cell=ncarnn", 0, HOPS_CELL);
    test_hops("hidden=8 embedding=8 told=0 hops=0 cell=icarnn", 0, HOPS_CELL);
    test_hops("hidden=8 embedding=8 told=0 hops=0 cell=scarnn", 0, HOPS_CELL);
    test_hops("hidden=8 embedding=8 told=0 hops=2 cell=icarnn", 2, HOPS_CELL);
    test_hops("hidden=8 embedding=8 told=0 hops=1 ages=1", 1, HOPS_PLAIN);
    test_hops("hidden=8 embedding=8 told=0 hops=3 ages=1", 3, HOPS_PLAIN);
    test_hops("hidden=8 embedding=8 told=0 hops=2 ages=1 gated=1", 2, HOPS_GATED);
    test_hops("hidden=8 embedding=8 told=0 reduce=1", 1, HOPS_REDUCE);
    test_hops("hidden=8 embedding=8 told=0 reduce=3", 3, HOPS_REDUCE);
    test_hops_learn("hidden=20 embedding=20 hops=2 ages=1", 60);
    test_hops_learn("hidden=20 embedding=20 hops=2 ages=1 gated=1", 60);
    test_hops_learn("hidden=20 embedding=20 hops=2 cell=ncarnn", 300);
    test_hops_learn("hidden=20 embedding=20 reduce=2", 500);
    test_hops_session("hidden=8 embedding=8 hops=2");
    test_hops_session("hidden=8 embedding=8 hops=2 ages=1 history=9 kb_rows=3");
    test_hops_session("hidden=8 embedding=8 hops=3 ages=1 gated=1 history=5");
    test_hops_session("hidden=8 embedding=8 reduce=2");
    test_hops_session("hidden=8 embedding=8 reduce=3 history=5 kb_rows=3");
    test_hops_of_cell("icarnn");
    test_hops_of_cell("ncarnn");
    CHECK(strstr(test_refused("dialog", "embedding=6 gated=1 hops=0", data).message,
                 "for models with hops"));
    CHECK(strstr(test_refused("dialog", "embedding=6 ages=1 hops=0", data).message,
                 "for models with hops"));
    CHECK(strstr(test_refused("dialog", "embedding=6 reduce=2 hops=2", data).message, "reduce"));
    CHECK(strstr(test_refused("dialog", "embedding=6 reduce=2 cell=lstm", data).message, "reduce"));
    test_hops_of_file(data);
    carnn_dataset_free(data);
    return test_end();
}
