/* Multigraph RNNs: stacked RNNs and skip connections as graphs, values and gradients of any graph
   by plain recursion in doubles, states that go on, files, threads, SIMD paths, bad graphs. */

#include "test.h"

static const char multigraph_texts[] =
    "x\te b e b\ny\tb e c c d\nx\tc e\ny\td b e\ny\te c b b c\nx\tc e\nz\td d c\nz\t\nx\te e e\n";

/* Delays of 2 and 3, parallel edges, inputs of earlier steps, and an output that is a sum. */
static const char multigraph_file[] = "# c reads a before b does\n"
                                      "node x in\nnode a hidden\nnode b hidden\nnode c hidden\n"
                                      "node z in\nnode y out\n"
                                      "edge x a 0\nedge c b 0\nedge a c 0\nedge a a 3\nedge b a 1\n"
                                      "edge b a 2\nedge x b 2\nedge z c 0\nedge z c 1\n"
                                      "edge b y 0\nedge a y 2\nedge x y 1\n";
static const char multigraph_name[] = "multigraph.txt";

static carnn_model *multigraph_model(const char *options, const carnn_dataset *data) {
    carnn_model *model = test_model("classify", options, NULL, data);
    size_t i;
    for (i = 0; i < model->params.size; i++)
        model->params.value[i] += carnn__uniform(9, i) - 0.5f;
    return model;
}

/* A network at work with gradients, its encoder having run forward and backward. */
typedef struct multigraph_run {
    test_work w;
    carnn__classify *head;
    const carnn__texts *t;
    const carnn__mat *y; /* (R, D) */
    float *g;
} multigraph_run;

/* The gradient at row r, column j of the encoder's output. */
static float multigraph_slope(size_t r, size_t j) {
    return carnn__uniform(11, 64 * r + j) - 0.5f;
}

static void multigraph_open(multigraph_run *x, const carnn_model *model,
                            const carnn_dataset *data) {
    carnn__rnn_input in;
    size_t i, r, D;
    test_work_open(&x->w, model, data, 1);
    x->g = (float *)calloc(model->params.size, sizeof(float));
    x->w.work.g = x->g;
    CHECK_INT(test_work_run(&x->w, 0), 1);
    x->head = (carnn__classify *)x->w.work.state;
    x->t = &x->head->net.texts;
    x->y = carnn__rnn_output(&x->head->layers.rnn);
    D = x->y->columns;
    in = carnn__texts_read(x->t, &x->head->words.y, NULL);
    carnn__rnn_forward(&x->w.work, &x->head->layers.rnn, in, 0); /* which clears what is added to */
    memset(x->g, 0, model->params.size * sizeof(float));
    memset(x->head->words.y.d, 0, x->t->inputs * x->head->words.y.columns * sizeof(float));
    for (r = 0; r < x->t->at[x->t->texts]; r++)
        for (i = 0; i < D; i++) x->y->d[r * D + i] = multigraph_slope(r, i);
    carnn__rnn_backward(&x->w.work, &x->head->layers.rnn, in, 0);
}

static void multigraph_close(multigraph_run *x) {
    test_work_close(&x->w);
    free(x->g);
}

/* --- graphs that are something else, too ------------------------------------------------------ */

/* Weights and gradients of a stack of RNNs and of the graph that it is: pairs of names. */
static void multigraph_is(const char *stack, const char *graph, const char *const (*names)[2]) {
    carnn_dataset *data = test_data("classify", multigraph_texts, strlen(multigraph_texts), 0, 0);
    carnn_model *a = multigraph_model(stack, data), *b = multigraph_model(graph, data);
    multigraph_run x, y;
    double worst = 0.0, slopes = 0.0;
    size_t i, j, count = 0;
    for (i = 0; i < b->params.count; i++) {
        const char *from = b->params.item[i].name;
        const carnn__param *p = &b->params.item[i];
        for (j = 0; names[j][0]; j++)
            if (!strcmp(names[j][1], from)) from = names[j][0], count++;
        memcpy(b->params.value + p->offset, test_weight(a, from),
               p->rows * p->columns * sizeof(float));
    }
    for (j = 0; names[j][0]; j++) {}
    CHECK_INT(count, j); /* and there are no others */
    CHECK_INT(carnn_model_parameters(a), carnn_model_parameters(b));
    multigraph_open(&x, a, data);
    multigraph_open(&y, b, data);
    for (i = 0; i < x.t->at[x.t->texts] * x.y->columns; i++)
        worst = test_worse(fabs((double)x.y->x[i] - (double)y.y->x[i]), worst);
    CHECK(i > 100);
    CHECK_NEAR(worst, 0.0, 5e-7);
    for (j = 0; names[j][0]; j++) {
        const float *dx = x.g + (test_weight(a, names[j][0]) - a->params.value);
        const float *dy = y.g + (test_weight(b, names[j][1]) - b->params.value);
        size_t size = 0;
        for (i = 0; i < a->params.count; i++)
            if (!strcmp(a->params.item[i].name, names[j][0]))
                size = a->params.item[i].rows * a->params.item[i].columns;
        CHECK(size >= 6);
        for (i = 0; i < size; i++)
            slopes = test_worse(fabs((double)dx[i] - (double)dy[i]), slopes);
    }
    CHECK_NEAR(slopes, 0.0, 5e-6);
    multigraph_close(&x);
    multigraph_close(&y);
    carnn_model_free(a);
    carnn_model_free(b);
    carnn_dataset_free(data);
}

static void multigraph_stacks(void) {
    static const char *const sh[][2] = {
        {"cell.input.weight", "cell.edge.1.weight"}, {"cell.bias", "cell.node.2.bias"},
        {"cell.recurrent.weight", "cell.edge.2.weight"}, {NULL, NULL}};
    static const char *const st[][2] = {
        {"cell.input.weight", "cell.edge.1.weight"}, {"cell.bias", "cell.node.2.bias"},
        {"cell.recurrent.weight", "cell.edge.4.weight"},
        {"cell.2.input.weight", "cell.edge.2.weight"}, {"cell.2.bias", "cell.node.3.bias"},
        {"cell.2.recurrent.weight", "cell.edge.5.weight"}, {NULL, NULL}, {NULL, NULL}};
    static const char *const skips[][2] = {
        {"cell.input.weight", "cell.edge.1.weight"}, {"cell.bias", "cell.node.2.bias"},
        {"cell.recurrent.weight", "cell.edge.4.weight"},
        {"cell.skip.weight", "cell.edge.6.weight"},
        {"cell.2.input.weight", "cell.edge.2.weight"}, {"cell.2.bias", "cell.node.3.bias"},
        {"cell.2.recurrent.weight", "cell.edge.5.weight"},
        {"cell.2.skip.weight", "cell.edge.7.weight"}, {NULL, NULL}};
    static const char *const both[][2] = {
        {"cell.forward.input.weight", "cell.forward.edge.1.weight"},
        {"cell.forward.bias", "cell.forward.node.2.bias"},
        {"cell.forward.recurrent.weight", "cell.forward.edge.2.weight"},
        {"cell.backward.input.weight", "cell.backward.edge.1.weight"},
        {"cell.backward.bias", "cell.backward.node.2.bias"},
        {"cell.backward.recurrent.weight", "cell.backward.edge.2.weight"}, {NULL, NULL}};
    multigraph_is("directions=1 cell=rnn", "directions=1 cell=rnn encoder=graph graph=sh", sh);
    multigraph_is("directions=1 cell=lstm", "directions=1 cell=lstm encoder=graph graph=sh", sh);
    multigraph_is("directions=2 cell=lstm", "directions=2 cell=lstm encoder=graph graph=sh", both);
    multigraph_is("directions=1 cell=rnn layers=2",
                  "directions=1 cell=rnn encoder=graph graph=st", st);
    multigraph_is("directions=1 cell=lstm layers=2",
                  "directions=1 cell=lstm encoder=graph graph=st", st);
    multigraph_is("directions=1 cell=rnn layers=2 skip=3",
                  "directions=1 cell=rnn encoder=graph graph=fig4.3b:4:3", skips);
    multigraph_is("directions=1 cell=lstm layers=2 skip=2",
                  "directions=1 cell=lstm encoder=graph graph=fig4.3b:4:2", skips);
}

/* --- any graph by recursion ------------------------------------------------------------------- */

enum { MULTIGRAPH_STEPS = 8, MULTIGRAPH_NODES = 16, MULTIGRAPH_WIDE = 16 };

typedef struct multigraph_truth {
    const carnn_model *model;
    const carnn_graph *graph;
    const double *w; /* laid out like the model's weights */
    const char *prefix;
    size_t e, h, gates, steps;
    const double (*x)[MULTIGRAPH_WIDE]; /* by step */
    int known[MULTIGRAPH_NODES][MULTIGRAPH_STEPS];
    double val[MULTIGRAPH_NODES][MULTIGRAPH_STEPS][MULTIGRAPH_WIDE];
    double c[MULTIGRAPH_NODES][MULTIGRAPH_STEPS][MULTIGRAPH_WIDE];
} multigraph_truth;

static const double *multigraph_weight(const multigraph_truth *m, const char *kind, size_t number,
                                       const char *what) {
    char name[64];
    snprintf(name, sizeof name, "%s.%s.%u.%s", m->prefix, kind, (unsigned)number + 1, what);
    return m->w + (test_weight(m->model, name) - m->model->params.value);
}

/* The value of node v at step t, as Def. 4.2.2.1 says. */
static const double *multigraph_value(multigraph_truth *m, size_t v, size_t t) {
    const carnn_graph_node *node = carnn_graph_node_at(m->graph, v);
    size_t width = node->kind == CARNN_NODE_OUT ? m->h : m->gates * m->h, i, j, k, edges = 0;
    const carnn_graph_edge *e, *lone = NULL;
    double a[4 * MULTIGRAPH_WIDE], *val = m->val[v][t];
    if (node->kind == CARNN_NODE_IN) return m->x[t];
    if (m->known[v][t]) return val;
    m->known[v][t] = 1;
    for (k = 0; (e = carnn_graph_edge_at(m->graph, k)) != NULL; k++)
        if (e->to == v) lone = e, edges++;
    if (node->kind == CARNN_NODE_OUT && edges == 1 && !lone->delay &&
        carnn_graph_node_at(m->graph, lone->from)->kind == CARNN_NODE_HIDDEN)
        return (const double *)memcpy(val, multigraph_value(m, lone->from, t),
                                      sizeof m->val[v][t]);
    memcpy(a, multigraph_weight(m, "node", v, "bias"), width * sizeof *a);
    for (k = 0; (e = carnn_graph_edge_at(m->graph, k)) != NULL; k++) {
        const double *u, *U;
        size_t in = m->h;
        if (e->to != v || (size_t)e->delay > t) continue;
        if (carnn_graph_node_at(m->graph, e->from)->kind == CARNN_NODE_IN) in = m->e;
        u = multigraph_value(m, e->from, t - (size_t)e->delay);
        U = multigraph_weight(m, "edge", k, "weight");
        for (i = 0; i < width; i++)
            for (j = 0; j < in; j++) a[i] += U[i * in + j] * u[j];
    }
    for (i = 0; i < m->h; i++) {
        if (node->kind == CARNN_NODE_OUT) {
            val[i] = a[i];
        } else if (m->gates == 1) {
            val[i] = tanh(a[i]);
        } else {
            double old = 0.0;
            if (t) multigraph_value(m, v, t - 1), old = m->c[v][t - 1][i];
            m->c[v][t][i] = test_sigmoid(a[i]) * tanh(a[3 * m->h + i]) +
                            test_sigmoid(a[m->h + i]) * old;
            val[i] = test_sigmoid(a[2 * m->h + i]) * tanh(m->c[v][t][i]);
        }
    }
    return val;
}

/* sum of slope * output over all texts; compares the output where `worst` is there. */
static double multigraph_loss(const multigraph_run *x, const carnn_model *model, const double *w,
                              const double *inputs, double *worst) {
    static multigraph_truth m;
    static const char *const names[] = {"cell.forward", "cell.backward"};
    double read[MULTIGRAPH_STEPS][MULTIGRAPH_WIDE], loss = 0.0;
    size_t s, i, t, j, n, y = 0, D = x->y->columns;
    for (s = 0; s < x->t->texts; s++)
        for (i = 0; i < x->head->layers.rnn.directions; i++) {
            memset(&m, 0, sizeof m);
            m.model = model;
            m.graph = model->graph;
            m.w = w;
            m.prefix = x->head->layers.rnn.directions > 1 ? names[i] : "cell";
            m.e = (size_t)model->desc.embedding;
            m.h = (size_t)model->desc.hidden;
            m.gates = strcmp(model->desc.cell, "rnn") ? 4 : 1;
            m.x = (const double (*)[MULTIGRAPH_WIDE])read;
            n = x->t->at[s + 1] - x->t->at[s];
            for (t = 0; t < n; t++)
                for (j = 0; j < m.e; j++)
                    read[t][j] = inputs[x->t->ids[x->t->at[s] + (i ? n - 1 - t : t)] * m.e + j];
            while (carnn_graph_node_at(m.graph, y)->kind != CARNN_NODE_OUT) y++;
            for (t = 0; t < n; t++) {
                size_t row = x->t->at[s] + (i ? n - 1 - t : t);
                const double *value = multigraph_value(&m, y, t);
                for (j = 0; j < m.h; j++) {
                    size_t column = i * m.h + j;
                    loss += value[j] * (double)multigraph_slope(row, column);
                    if (worst)
                        *worst = test_worse(fabs(value[j] - (double)x->y->x[row * D + column]),
                                            *worst);
                }
            }
        }
    return loss;
}

/* The derivative with respect to one number. */
static double multigraph_difference(const multigraph_run *x, const carnn_model *model, double *w,
                                    double *inputs, double *at) {
    const double step = 1e-4, was = *at;
    double up, down;
    *at = was + step;
    up = multigraph_loss(x, model, w, inputs, NULL);
    *at = was - step;
    down = multigraph_loss(x, model, w, inputs, NULL);
    *at = was;
    return (up - down) / (2.0 * step);
}

static void multigraph_by_recursion(const char *options) {
    carnn_dataset *data = test_data("classify", multigraph_texts, strlen(multigraph_texts), 0, 0);
    carnn_model *model = multigraph_model(options, data);
    size_t size = model->params.size, i, j, inputs, checked = 0;
    double *w = (double *)calloc(size, sizeof *w), *x, worst = 0.0, slopes = 0.0;
    multigraph_run run;
    multigraph_open(&run, model, data);
    inputs = run.t->inputs * run.head->words.y.columns;
    x = (double *)calloc(inputs, sizeof *x);
    for (i = 0; i < size; i++) w[i] = (double)model->params.value[i];
    for (i = 0; i < inputs; i++) x[i] = (double)run.head->words.y.x[i];
    multigraph_loss(&run, model, w, x, &worst);
    CHECK_NEAR(worst, 0.0, 2e-6);
    for (i = 0; i < model->params.count; i++) {
        const carnn__param *p = &model->params.item[i];
        if (strncmp(p->name, "cell.", 5)) continue;
        for (j = 0; j < p->rows * p->columns; j += 1 + p->rows * p->columns / 12, checked++)
            slopes = test_worse(fabs(multigraph_difference(&run, model, w, x, w + p->offset + j) -
                                     (double)run.g[p->offset + j]), slopes);
    }
    CHECK(checked > 20);
    CHECK_NEAR(slopes, 0.0, 1e-5);
    for (slopes = 0.0, i = 0; i < inputs; i += 2)
        slopes = test_worse(fabs(multigraph_difference(&run, model, w, x, x + i) -
                                 (double)run.head->words.y.d[i]), slopes);
    CHECK_NEAR(slopes, 0.0, 1e-5);
    free(w);
    free(x);
    multigraph_close(&run);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

static void multigraph_numbers(void) {
    static const char *const graphs[] = {"sh", "bu", "td", "grid:2x3", "grid:3x4", "fig4.3a:2",
                                         "fig4.3b:3:2", multigraph_name};
    static const char hidden[] = "node x in\nnode a hidden\nnode y out\nedge x a 0\nedge a a 1\n";
    static const char *const lone[] = {"edge a y 1\n", "edge x y 0\n"}; /* it has a matrix */
    char options[128];
    size_t i, k;
    for (i = 0; i < CARNN__COUNT(graphs); i++)
        for (k = 0; k < 2; k++) {
            snprintf(options, sizeof options, "encoder=graph graph=%s directions=%u cell=%s",
                     graphs[i], (unsigned)(1 + (i + k) % 2), k ? "lstm" : "rnn");
            multigraph_by_recursion(options);
        }
    multigraph_by_recursion("encoder=graph graph=multigraph.txt directions=2 cell=rnn");
    for (i = 0; i < CARNN__COUNT(lone); i++) {
        snprintf(options, sizeof options, "%s%s", hidden, lone[i]);
        test_write("multigraph-lone.txt", options, strlen(options));
        multigraph_by_recursion("encoder=graph graph=multigraph-lone.txt directions=1 cell=rnn");
    }
    remove("multigraph-lone.txt");
}

/* --- states that go on ------------------------------------------------------------------------ */

/* Two texts read in pieces of 1, 2, .. words give the states of the whole, bit for bit. */
static void multigraph_stepwise(const char *options, size_t words) {
    enum { TEXTS = 2, WORDS = 6 };
    carnn_dataset *data = test_data("classify", "x\te b e c d b\ny\tc d d b e c\n", 28, 0, 0);
    carnn_model *model = multigraph_model(options, data);
    size_t n, at, t, b, i, h;
    uint32_t length[TEXTS], index[TEXTS * WORDS];
    float whole[TEXTS * WORDS * MULTIGRAPH_WIDE], *state;
    carnn__packed packed;
    const carnn__mat *y;
    multigraph_run run;
    multigraph_open(&run, model, data);
    CHECK_INT(run.t->texts, TEXTS);
    y = run.y;
    h = y->columns;
    memcpy(whole, y->x, TEXTS * WORDS * h * sizeof(float));
    state = (float *)calloc(run.head->layers.rnn.layers * TEXTS * h *
                                carnn__rnn_state_count(&run.head->layers.rnn), sizeof(float));
    for (at = 0; at < WORDS; at += n) {
        carnn__rnn_input in = {&packed, {index, NULL}, NULL, &run.head->words.y, run.t->inputs,
                               NULL, NULL, 0, state, state};
        n = carnn__min(words, WORDS - at);
        for (b = 0; b < TEXTS; b++) length[b] = (uint32_t)n;
        test_pack(&packed, length, TEXTS);
        for (t = 0; t < n; t++)
            for (b = 0; b < TEXTS; b++) index[TEXTS * t + b] = run.t->ids[WORDS * b + at + t];
        carnn__rnn_forward(&run.w.work, &run.head->layers.rnn, in, 0);
        for (t = 0; t < n; t++)
            for (b = 0; b < TEXTS; b++)
                for (i = 0; i < h; i++)
                    CHECK(y->x[(TEXTS * t + b) * h + i] == whole[(WORDS * b + at + t) * h + i]);
        free(packed.length);
    }
    free(state);
    multigraph_close(&run);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* --- files, threads, SIMD paths --------------------------------------------------------------- */

/* A model needs the file of its graph no more; one that goes on from it has the graph, too. */
static void multigraph_kept(void) {
    carnn_dataset *data = test_data("classify", multigraph_texts, strlen(multigraph_texts), 0, 0);
    carnn_model *model = multigraph_model("encoder=graph cell=lstm graph=multigraph.txt", data);
    carnn_model *again, *next;
    carnn_model_desc desc;
    carnn_error error;
    test_answers told, then;
    char *bytes[2];
    size_t i, size = carnn_model_size(model);
    remove(multigraph_name);
    again = test_reload(model);
    CHECK_TEXT(carnn_model_describe(again)->graph, multigraph_name);
    CHECK_INT(carnn_model_size(again), size);
    for (i = 0; i < 2; i++) {
        bytes[i] = (char *)malloc(size);
        CHECK_INT(carnn_model_write(i ? again : model, bytes[i], size, &error), 0);
    }
    CHECK(!memcmp(bytes[0], bytes[1], size));
    told = test_predict_all(model, data, 1);
    then = test_predict_all(again, data, 1);
    then.model = told.model;
    CHECK(!memcmp(&told, &then, sizeof told) && told.count > 5);
    memset(&desc, 0, sizeof desc);
    desc.from = again;
    CHECK_INT(carnn_model_create(&next, &desc, data, &error), 0);
    carnn_model_free(again);
    then = test_predict_all(next, data, 1);
    then.model = told.model;
    CHECK(!memcmp(&told, &then, sizeof told));
    desc.from = next;
    desc.task = "classify";
    CHECK_INT(carnn_set(&desc, NULL, "graph", "td", &error), 0);
    CHECK_INT(carnn_model_create(&again, &desc, data, &error), CARNN_ERR_ARGUMENT);
    CHECK(strstr(error.message, "another network") || strstr(error.message, "an option makes it"));
    for (i = 0; i < 2; i++) free(bytes[i]);
    carnn_model_free(next);
    carnn_model_free(model);
    carnn_dataset_free(data);
    test_write(multigraph_name, multigraph_file, strlen(multigraph_file));
}

/* Nothing is known of what a word adds to such states; and a language model goes on with them. */
static void multigraph_sessions(void) {
    static const char text[] = "a b c a b\nb c a\nc a b c\na b\n";
    static const char pairs[] = "a b\tb a\t1\na b\te\t0\nd c\ta d b\t1\nd\ta\t0\n";
    carnn_dataset *data = test_data("answer", pairs, strlen(pairs), 0, 0);
    carnn_model *model = test_model("answer", "overlap=0 encoder=graph cell=lstm "
                                    "graph=multigraph.txt", NULL, data);
    carnn_contribution parts[16];
    carnn_explanation e;
    carnn_session *session;
    carnn_prediction p;
    carnn_sampling how;
    carnn_error error;
    char written[128] = "";
    size_t i;
    CHECK_INT(carnn_session_open(&session, model, NULL, &error), 0);
    CHECK_INT(carnn_session_example(session, data, 0, 1, &p, &error), 0);
    CHECK_INT(carnn_session_explain(session, 16, parts, &e, &error), 0);
    CHECK(!e.exact && e.rest > 0.0 && e.count == 4);
    for (i = 0; i < e.count; i++) CHECK_NEAR(parts[i].share, 0.0, 0.0);
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
    data = test_data("lm", text, strlen(text), 0, 0);
    model = test_model("lm", "encoder=graph cell=lstm graph=multigraph.txt min_count=1", NULL,
                       data);
    memset(&how, 0, sizeof how);
    how.words = 6;
    CHECK_INT(carnn_session_open(&session, model, NULL, &error), 0);
    CHECK_INT(carnn_session_generate(session, &how, "a", 1, written, sizeof written, &error), 0);
    CHECK(*written == 'a');
    CHECK_INT(carnn_session_explain(session, 16, parts, &e, &error), 0);
    CHECK(!e.exact);
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

static void multigraph_everywhere(void) {
    carnn_dataset *data = test_data("classify", multigraph_texts, strlen(multigraph_texts), 0, 0);
    carnn_train_desc train = test_training(3, 4, 0.0, 0.2);
    carnn_model_free(test_trains_alike("classify", "encoder=graph graph=multigraph.txt hidden=37 "
                                     "cell=lstm", data, train));
    carnn_model_free(test_trains_alike("classify", "encoder=graph graph=td hidden=32 cell=rnn "
                                     "layers=2", data, train));
    carnn_dataset_free(data);
}

/* --- bad input -------------------------------------------------------------------------------- */

static void multigraph_fails(const char *options, const char *file, const char *message) {
    carnn_dataset *data = test_data("classify", multigraph_texts, strlen(multigraph_texts), 0, 0);
    carnn_model_desc desc;
    carnn_model *model = NULL;
    carnn_error error;
    memset(&desc, 0, sizeof desc);
    desc.task = "classify";
    if (file) test_write("bad-graph.txt", file, strlen(file));
    CHECK_INT(carnn__set_all(&desc, NULL, 0, options, &error), 0);
    CHECK(carnn_model_create(&model, &desc, data, &error) != CARNN_OK && !model);
    if (!strstr(error.message, message)) printf("%s: %s\n", options, error.message);
    CHECK(strstr(error.message, message) != NULL);
    remove("bad-graph.txt");
    carnn_dataset_free(data);
}

/* A file of a graph; those that begin with an edge have nodes x, a, b, y and x - a, b - y. */
static void multigraph_bad(const char *text, const char *message) {
    char file[256];
    snprintf(file, sizeof file, "%s%s", strncmp(text, "edge", 4) ? "" :
             "node x in\nnode a hidden\nnode b hidden\nnode y out\nedge x a 0\nedge b y 0\n", text);
    multigraph_fails("encoder=graph cell=rnn graph=bad-graph.txt", file, message);
}

static void multigraph_errors(void) {
    char name[CARNN_TEXT_MAX + 1];
    carnn_model_desc desc;
    carnn_error error;
    multigraph_bad("edge a b 0\nedge b a 0\n", "no closed walk of delay 0");
    multigraph_bad("edge a a 1\n", "bad-graph.txt:3: expected edges to and from");
    multigraph_bad("edge a c 0\n", "bad-graph.txt:7: expected the name of a node");
    multigraph_bad("edge a b 0\nedge b a -1\n", "no delays but 0 to 10000 (1 others)");
    multigraph_bad("edge a b 0\nedge a a 10001\n", "no delays but 0 to 10000 (1 others)");
    multigraph_bad("edge a b 0\nedge a a 1\nnode z out\nedge a z 0\n", "one output (2)");
    multigraph_bad("node x in\nnode a hidden\nnode y out\nedge x a 0\nedge a a 1\n",
                   "an edge to it (0)");
    multigraph_bad("period 2\nnode x in\nnode a hidden\nnode y out\nedge x a 0\n"
                   "edge a y 0\nedge a a 2\n", "period 1 (found 2)");
    multigraph_fails("encoder=graph cell=rnn graph=grid:100x2", NULL, "at most 64 nodes (102)");
    multigraph_fails("encoder=graph cell=rnn graph=tf", NULL, "not a graph known by name: sh, st");
    multigraph_fails("encoder=graph cell=rnn graph=./no/such", NULL, "./no/such");
    multigraph_fails("encoder=graph cell=gru graph=td", NULL, "of the cell rnn or lstm, not gru");
    multigraph_fails("encoder=graph cell=rnn", NULL, "the encoder graph and the option graph");
    multigraph_fails("encoder=rnn graph=td", NULL, "the encoder graph and the option graph");
    multigraph_fails("encoder=graph cell=rnn graph=td skip=2", NULL, "skip is 0");
    memset(&desc, 0, sizeof desc);
    memset(name, 'a', sizeof name);
    name[CARNN_TEXT_MAX] = 0;
    desc.task = "lm";
    CHECK_INT(carnn_set(&desc, NULL, "graph", name, &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message, "graph: a text of more than 255 bytes");
    CHECK_INT(carnn_set(&desc, NULL, "graph", name + 1, &error), 0);
    desc.task = "dialog";
    CHECK_INT(carnn_set(&desc, NULL, "graph", "td", &error), CARNN_ERR_ARGUMENT);
}

/* The largest of the initial weights (40, 40), as a part of Glorot's bound. */
static double multigraph_begins(const carnn_model *model, const char *name) {
    const float *U = test_weight(model, name);
    double most = 0.0;
    size_t i;
    for (i = 0; i < 1600; i++) most = fmax(most, fabs((double)U[i]));
    return most / sqrt(6.0 / 80.0);
}

/* Edges that meet in a node share the range, but for those of long delays. */
static void multigraph_initial(void) {
    static const struct {
        const char *options, *weight;
        double part;
    } is[] = {{"encoder=graph graph=sh", "cell.edge.2.weight", 1.0},
              {"encoder=graph graph=td", "cell.edge.2.weight", 0.5},
              {"encoder=graph graph=td", "cell.edge.4.weight", 0.5},
              {"encoder=graph graph=td", "cell.edge.5.weight", 0.5},
              {"encoder=graph graph=td", "cell.edge.6.weight", 0.5},
              {"encoder=graph graph=multigraph.txt", "cell.edge.4.weight", 1.0},
              {"encoder=graph graph=multigraph.txt", "cell.edge.5.weight", 1.0 / 3.0},
              {"encoder=rnn skip=3", "cell.recurrent.weight", 0.5},
              {"encoder=rnn skip=3", "cell.skip.weight", 1.0},
              {"encoder=rnn", "cell.recurrent.weight", 1.0}};
    carnn_dataset *data = test_data("classify", multigraph_texts, strlen(multigraph_texts), 0, 0);
    char options[96];
    size_t i;
    for (i = 0; i < CARNN__COUNT(is); i++) {
        carnn_model *model;
        snprintf(options, sizeof options, "cell=rnn directions=1 hidden=40 %s", is[i].options);
        model = test_model("classify", options, NULL, data);
        CHECK_NEAR(multigraph_begins(model, is[i].weight), is[i].part, 0.01 * is[i].part);
        carnn_model_free(model);
    }
    carnn_dataset_free(data);
}

int main(void) {
    size_t i;
    test_write(multigraph_name, multigraph_file, strlen(multigraph_file));
    multigraph_stacks();
    multigraph_numbers();
    for (i = 1; i <= 6; i++) {
        multigraph_stepwise("directions=1 encoder=graph cell=lstm graph=multigraph.txt", i);
        multigraph_stepwise("directions=1 encoder=graph cell=rnn graph=fig4.3b:3:3 layers=2", i);
    }
    multigraph_initial();
    multigraph_kept();
    multigraph_everywhere();
    multigraph_sessions();
    multigraph_errors();
    remove(multigraph_name);
    return test_end();
}
