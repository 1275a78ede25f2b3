/* Graphs of recurrent networks: the worked values of the thesis, random graphs against their
   unfolding over time, the four conditions, limits and bad input. */

#include "test.h"

static carnn_graph *graph_of(const char *name, const char *text) {
    carnn_source source = test_source(name, text, text ? strlen(text) : 0);
    carnn_graph *g;
    carnn_error error = {CARNN_OK, 0, ""};
    carnn_status status = carnn_graph_load(&g, &source, NULL, &error);
    CHECK_TEXT(status ? error.message : "", "");
    return g;
}

static void check_value(const carnn_graph_value *v, long long numerator, long long denominator,
                        const char *what, int line) {
    test_int(v->numerator, numerator, what, __FILE__, line);
    test_int(v->denominator, denominator, what, __FILE__, line);
}

#define VALUE(value, numerator, denominator)                                                       \
    check_value(&(value), numerator, denominator, #value, __LINE__)

/* --- worked values ---------------------------------------------------------------------------- */

static const char period_2[] = "period 2 # figure 4.1 a\n"
                               "node x0 in 0\nnode p hidden 0\nnode a hidden 0\nnode y0 out 0\n"
                               "node x1 in 1\nnode b hidden 1\nnode c hidden 1\nnode y1 out 1\n\n"
                               "edge x0 p 0\nedge p a 0\nedge a a 2\nedge a b 1\nedge x1 b 0\n"
                               "edge b c 0\nedge c a 1\r\nedge a y0 0\nedge c y1 0";

static void check_thesis(const char *name, int depth, int feedforward, int skip, int under) {
    carnn_graph *g = graph_of(name, NULL);
    const carnn_graph_measures *m = carnn_graph_measure(g, 0);
    CHECK(!carnn_graph_measure(g, 1));
    CHECK_INT(carnn_graph_period(g), 1);
    VALUE(m->recurrent_depth, depth, 1);
    VALUE(m->feedforward_depth, feedforward, 1);
    VALUE(m->skip_coefficient, skip, under);
    carnn_graph_free(g);
}

static void thesis(void) {
    char name[32];
    int r, f, k;
    check_thesis("sh", 1, 2, 1, 1);
    check_thesis("st", 1, 3, 1, 1);
    check_thesis("bu", 1, 3, 1, 1);
    check_thesis("td", 2, 3, 1, 1);
    for (k = 1; k <= 1000000; k *= 10) {
        snprintf(name, sizeof name, "fig4.3a:%d", k);
        check_thesis(name, 1, 2, k, 1);
    }
    for (k = 3; k <= 21; k++) {
        snprintf(name, sizeof name, "fig4.3b:1:%d", k);
        check_thesis(name, 1, 3, 1, 1);
        snprintf(name, sizeof name, "fig4.3b:2:%d", k);
        check_thesis(name, 1, 3, 1, 1);
        snprintf(name, sizeof name, "fig4.3b:3:%d", k);
        check_thesis(name, 1, 3, k % 2 ? k : k / 2, k % 2 ? 2 : 1);
        snprintf(name, sizeof name, "fig4.3b:4:%d", k);
        check_thesis(name, 1, 3, k, 1);
    }
    for (r = 1; r <= 4; r++)
        for (f = 2; f <= 5; f++) { /* a node before the loop of R nodes feeds itself: s = 1 */
            snprintf(name, sizeof name, "grid:%dx%d", r, f);
            check_thesis(name, r, f, 1, f - 1 > r ? 1 : r);
        }
    check_thesis("grid:1000x1000", 1000, 1000, 1, 1000);
    check_thesis("grid:1x1000", 1, 1000, 1, 1);
}

/* Its text as it is printed, and where a buffer is too small. */
static void check_path(const carnn_graph *g, const carnn_graph_value *v, const char *expected) {
    char text[80];
    size_t size, length = strlen(expected);
    CHECK_INT(carnn_graph_path(g, v, NULL, 0), length);
    for (size = 1; size < sizeof text; size++) {
        memset(text, '?', sizeof text);
        CHECK_INT(carnn_graph_path(g, v, text, size), length);
        CHECK(!memcmp(text, expected, size <= length ? size - 1 : length));
        CHECK(!text[size <= length ? size - 1 : length]);
    }
}

#define PLAIN "node x in\nnode a hidden\nnode y out\n"

static void worked(void) {
    carnn_graph *g = graph_of("period-2", period_2);
    const carnn_graph_measures *m = carnn_graph_measure(g, 0);
    thesis();
    VALUE(m->recurrent_depth, 3, 2);
    VALUE(m->feedforward_depth, 7, 2);
    VALUE(m->skip_coefficient, 2, 1);
    CHECK_INT(m->recurrent_depth.length, 3);
    CHECK_INT(m->recurrent_depth.delay, 2);
    check_path(g, &m->feedforward_depth, "x0 -0-> p -0-> a -1-> b -0-> c -0-> y1");
    check_path(g, &m->skip_coefficient, "a -2-> a");
    CHECK_INT(carnn_graph_period(g), 2);
    CHECK_TEXT(carnn_graph_node_at(g, 6)->name, "c");
    CHECK_INT(carnn_graph_node_at(g, 6)->time, 1);
    CHECK_INT(carnn_graph_node_at(g, 7)->kind, CARNN_NODE_OUT);
    CHECK(!carnn_graph_node_at(g, 8));
    CHECK_INT(carnn_graph_edge_at(g, 2)->delay, 2);
    CHECK_INT(carnn_graph_edge_at(g, 8)->line, 19);
    CHECK(!carnn_graph_edge_at(g, 9));
    carnn_graph_free(g);
    g = graph_of("two outputs",
                 PLAIN "node z out\nedge x a 0\nedge a z 0\nedge a y 0\nedge a a 1\n");
    check_path(g, &carnn_graph_measure(g, 0)->feedforward_depth, "x -0-> a -0-> y"); /* the first */
    carnn_graph_free(g);
    carnn_graph_free(NULL);
}

/* --- the unfolding ---------------------------------------------------------------------------- */

enum { NODES = 8, EDGES = 12, REACH = 24, WINDOW = 4 * REACH + 1, START = 2 * REACH, SUMS = 700,
       NO_PATH = -1 };

typedef struct reference {
    int n, e, period;
    int kind[NODES], time[NODES], from[EDGES], to[EDGES], delay[EDGES];
    int left_out[NODES]; /* of a direction */
    int far[WINDOW][NODES], near[WINDOW][NODES]; /* longest and shortest path from one node at
                                                    START: those of REACH steps are exact */
} reference;

/* Paths over the unfolded graph, whose nodes are (t, v) with t = time of v, modulo the period. */
static void unfold(reference *r, int root) {
    int t, v, i, start = START - START % r->period + r->time[root], changed = 1;
    for (t = 0; t < WINDOW; t++)
        for (v = 0; v < NODES; v++) r->far[t][v] = r->near[t][v] = NO_PATH;
    r->far[start][root] = r->near[start][root] = 0;
    while (changed)
        for (changed = 0, t = 0; t < WINDOW; t++)
            for (i = 0; i < r->e; i++) {
                int u = r->from[i], to = t + r->delay[i];
                v = r->to[i];
                if (r->left_out[u] || r->left_out[v] || to < 0 || to >= WINDOW) continue;
                if (r->far[t][u] == NO_PATH) continue;
                if ((t - r->time[u]) % r->period || (to - r->time[v]) % r->period) CHECK(0);
                if (r->far[to][v] < r->far[t][u] + 1) {
                    r->far[to][v] = r->far[t][u] + 1;
                    changed = 1;
                }
                if (r->near[to][v] == NO_PATH || r->near[to][v] > r->near[t][u] + 1) {
                    r->near[to][v] = r->near[t][u] + 1;
                    changed = 1;
                }
            }
}

/* Does a walk from v return with that sum of delays (sign 0: of 0, else of that sign)? */
static int returns(const reference *r, int v, int sign) {
    static char seen[2 * SUMS + 1][NODES];
    static int queue[(2 * SUMS + 1) * NODES][2];
    int head, tail = 1, i;
    memset(seen, 0, sizeof seen);
    queue[0][0] = v;
    queue[0][1] = 0;
    for (head = 0; head < tail; head++)
        for (i = 0; i < r->e; i++) {
            int to = r->to[i], sum = queue[head][1] + r->delay[i];
            if (r->from[i] != queue[head][0] || sum > SUMS || sum < -SUMS) continue;
            if (to == v && (sign ? sum * sign > 0 : !sum)) return 1;
            if (seen[sum + SUMS][to]++) continue;
            queue[tail][0] = to;
            queue[tail++][1] = sum;
        }
    return 0;
}

/* The condition that does not hold, 0: the graph is valid. */
static int violated(const reference *r) {
    int i, v, cycles = 0, seen[3] = {0, 0, 0};
    for (i = 0; i < r->e; i++)
        if ((r->delay[i] - r->time[r->to[i]] + r->time[r->from[i]]) % r->period) return 1;
    for (v = 0; v < r->n; v++)
        if (returns(r, v, 0)) return 3;
    for (v = 0; v < r->n; v++) cycles |= returns(r, v, 1) || returns(r, v, -1);
    if (!cycles) return 2;
    for (v = 0; v < r->n; v++) {
        int in = 0, out = 0;
        for (i = 0; i < r->e; i++) in += r->to[i] == v, out += r->from[i] == v;
        seen[r->kind[v]] = 1;
        if (r->kind[v] == 0 ? in : r->kind[v] == 2 ? out : !in || !out) return 4;
    }
    return seen[0] && seen[1] && seen[2] ? 0 : 4;
}

/* Is a / b less than c / d, or 0 / 0 and nothing yet? */
static void larger(long long best[2], long long numerator, long long denominator) {
    if (best[1] && best[0] * denominator >= numerator * best[1]) return;
    best[0] = numerator;
    best[1] = denominator;
}

static void check_fraction(const carnn_graph_value *v, const long long expected[2]) {
    CHECK(v->numerator * expected[1] == expected[0] * v->denominator);
    CHECK((v->denominator > 0) == (expected[1] > 0));
}

/* Edges follow each other, from a node to itself, or from an input to an output. */
static void check_walk(const carnn_graph *g, const carnn_graph_value *v, int cycle) {
    const carnn_graph_edge *first, *last;
    long long delay = 0;
    size_t i;
    if (!v->length) return;
    for (i = 0; i < v->length; i++) {
        const carnn_graph_edge *e = carnn_graph_edge_at(g, v->edge[i]);
        CHECK(!i || carnn_graph_edge_at(g, v->edge[i - 1])->to == e->from);
        delay += e->delay;
    }
    first = carnn_graph_edge_at(g, v->edge[0]);
    last = carnn_graph_edge_at(g, v->edge[v->length - 1]);
    CHECK_INT(v->delay, delay);
    CHECK(cycle ? first->from == last->to
                : carnn_graph_node_at(g, first->from)->kind == CARNN_NODE_IN &&
                      carnn_graph_node_at(g, last->to)->kind == CARNN_NODE_OUT);
}

static void check_direction(reference *r, const carnn_graph *g, int backward) {
    const carnn_graph_measures *m = carnn_graph_measure(g, backward);
    long long depth[2] = {0, 0}, feedforward[2] = {0, 0}, skip[2] = {0, 0};
    int sign = backward ? -1 : 1, v, u, pass, n;
    for (v = 0; v < r->n; v++) r->left_out[v] = returns(r, v, -sign);
    for (pass = 0; pass < 2; pass++)
        for (v = 0; v < r->n; v++) {
            if (r->left_out[v]) continue;
            unfold(r, v);
            for (n = -REACH; n <= REACH; n++)
                for (u = 0; u < r->n; u++) {
                    int t = START - START % r->period + r->time[v] + sign * n, far = r->far[t][u];
                    if (far == NO_PATH) continue;
                    if (!pass && u == v && n) larger(depth, far, n);
                    if (!pass && u == v && n) larger(skip, n, r->near[t][u]);
                    if (pass && r->kind[v] == 0 && r->kind[u] == 2 && depth[1])
                        larger(feedforward, far * depth[1] - n * depth[0], depth[1]);
                }
        }
    CHECK((m != NULL) == (depth[1] > 0));
    if (!m) return;
    check_fraction(&m->recurrent_depth, depth);
    check_fraction(&m->skip_coefficient, skip);
    check_fraction(&m->feedforward_depth, feedforward);
    check_walk(g, &m->recurrent_depth, 1);
    check_walk(g, &m->skip_coefficient, 1);
    check_walk(g, &m->feedforward_depth, 0);
    CHECK(m->recurrent_depth.length * (size_t)m->recurrent_depth.denominator ==
          (size_t)(m->recurrent_depth.numerator * sign * m->recurrent_depth.delay));
    CHECK(m->skip_coefficient.length * (size_t)m->skip_coefficient.numerator ==
          (size_t)(m->skip_coefficient.denominator * sign * m->skip_coefficient.delay));
    CHECK(!m->feedforward_depth.length ||
          m->feedforward_depth.numerator * m->recurrent_depth.denominator ==
              m->feedforward_depth.denominator *
                  ((int64_t)m->feedforward_depth.length * m->recurrent_depth.denominator -
                   sign * m->feedforward_depth.delay * m->recurrent_depth.numerator));
}

static int draw(uint64_t *key, int count) {
    return (int)(carnn__random(++*key, 1) % (uint64_t)count);
}

/* Mostly valid: what is drawn is wrong now and then. Delays are at most 3 beyond a multiple of a
   period, so that paths without repetition stay within REACH steps. */
static void random_graph(reference *r, uint64_t *key) {
    int i, odd = draw(key, 4) == 0, way = draw(key, 3); /* 0: forward, 1: backward, 2: both */
    r->period = 1 + draw(key, 3);
    r->n = 3 + draw(key, NODES - 2);
    r->e = r->n - 1 + draw(key, EDGES - r->n + 2);
    for (i = 0; i < r->n; i++) {
        r->kind[i] = i == 0 ? 0 : i == r->n - 1 ? 2 : draw(key, 12) ? 1 : 2 * draw(key, 2);
        r->time[i] = draw(key, r->period);
    }
    for (i = 0; i < r->e; i++) {
        int u = odd ? draw(key, r->n) : draw(key, r->n - 1), k = draw(key, 4) / 2, v;
        v = odd ? draw(key, r->n) : 1 + draw(key, r->n - 1);
        if (!odd && i < r->n - 1) u = i, v = i + 1; /* a chain, so that few nodes are alone */
        r->from[i] = u;
        r->to[i] = v;
        r->delay[i] = (r->time[v] - r->time[u] + r->period) % r->period;
        if (v <= u || k) r->delay[i] += (v <= u ? 1 : k) * r->period;
        if (way == 1 || (way == 2 && v < (r->n + u % 2) / 2)) r->delay[i] -= 2 * r->period;
        if (r->delay[i] > 3) r->delay[i] -= r->period;
        if (r->delay[i] < -3) r->delay[i] += r->period;
        if (odd && !draw(key, 12)) r->delay[i]++;
    }
}

static carnn_status load_reference(const reference *r, carnn_graph **g, carnn_error *error) {
    static const char *const kinds[] = {"in", "hidden", "out"};
    char text[1024];
    carnn_source source;
    int at = snprintf(text, sizeof text, "period %d\n", r->period), i;
    for (i = 0; i < r->n; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "node %c %s %d\n", 'a' + i,
                       kinds[r->kind[i]], r->time[i]);
    for (i = 0; i < r->e; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "edge %c %c %d\n", 'a' + r->from[i],
                       'a' + r->to[i], r->delay[i]);
    source = test_source("random", text, (size_t)at);
    return carnn_graph_load(g, &source, NULL, error);
}

static void unfolded(void) {
    static reference r;
    uint64_t key = 20261122;
    int rounds = TEST_SANITIZED ? 2400 : 6000, i, seen[6] = {0, 0, 0, 0, 0, 0};
    for (i = 0; i < rounds; i++) {
        carnn_graph *g;
        carnn_error error = {CARNN_OK, 0, ""};
        char expected[32];
        int condition;
        random_graph(&r, &key);
        memset(r.left_out, 0, sizeof r.left_out);
        condition = violated(&r);
        seen[condition]++;
        snprintf(expected, sizeof expected, "(condition %d)", condition);
        if (load_reference(&r, &g, &error) == CARNN_OK) {
            CHECK_INT(condition, 0);
            if (condition) continue;
            check_direction(&r, g, 0);
            check_direction(&r, g, 1);
            seen[5] += carnn_graph_measure(g, 0) && carnn_graph_measure(g, 1);
        } else {
            CHECK(condition && strstr(error.message, expected));
            CHECK(!g);
        }
        carnn_graph_free(g);
    }
    for (i = 0; i < 6; i++) CHECK(seen[i] > 0); /* valid, each condition, both ways */
}

/* Longest paths of 1 to 4 steps from time 0 on that the text of 4.3.1 gives for figure 4.1 a. */
static void unfolded_figure(void) {
    static const reference figure = {8, 9, 2,
                                     {0, 1, 1, 2, 0, 1, 1, 2},
                                     {0, 0, 0, 0, 1, 1, 1, 1},
                                     {0, 1, 2, 2, 4, 5, 6, 2, 6},
                                     {1, 2, 2, 5, 5, 6, 2, 3, 7},
                                     {0, 0, 2, 1, 0, 0, 1, 0, 0},
                                     {0}, {{0}}, {{0}}};
    static const int longest[] = {5, 6, 8, 9};
    static reference r;
    int n, u, v;
    r = figure;
    for (n = 1; n <= 4; n++) {
        int best = 0;
        for (u = 0; u < 4; u++) {
            unfold(&r, u);
            for (v = 0; v < 8; v++)
                if (r.far[START + n][v] > best) best = r.far[START + n][v];
        }
        CHECK_INT(best, longest[n - 1]);
    }
}

/* --- bad input and limits --------------------------------------------------------------------- */

static void check_message(const char *text, size_t line, const char *message) {
    carnn_source source = test_source("g.txt", text, strlen(text));
    carnn_graph *g;
    carnn_error error = {CARNN_OK, 0, ""};
    CHECK_INT(carnn_graph_load(&g, &source, NULL, &error), CARNN_ERR_DATA);
    CHECK_INT(carnn_graph_load(&g, &source, NULL, NULL), CARNN_ERR_DATA);
    CHECK(!g);
    CHECK_INT(error.line, line);
    CHECK_TEXT(error.message, message);
}

static void bad_input(void) {
    check_message("", 1, "g.txt:1: expected a directed cycle (condition 2), found none");
    check_message("node x in\rnode a hidden\r", 0, "g.txt: lines end in CR alone, expected LF; "
                "tr '\\r' '\\n' converts it");
    check_message(PLAIN "edge x a 0\nedge a y 0\n", 5,
                "g.txt:5: expected a directed cycle (condition 2), found none");
    check_message("period 2\n" PLAIN "edge x a 0\nedge a y 0\nedge a a 3\n", 7,
                "g.txt:7: expected a delay of 0 modulo 2 (condition 1), found 3");
    check_message("period 3\nnode x in\nnode a hidden 2\nnode b hidden\nedge a b -1", 5,
                "g.txt:5: expected a delay of 1 modulo 3 (condition 1), found -1");
    check_message(PLAIN "edge x a 0\nedge a y 0\nedge a a 0\n", 6,
                "g.txt:6: expected no closed walk of delay 0 (condition 3), found a -0-> a");
    check_message(PLAIN "node b hidden\nedge x a 0\nedge a y 0\nedge a b 1\nedge b a -1\n", 7,
                "g.txt:7: expected no closed walk of delay 0 (condition 3), found "
                "a -1-> b --1-> a");
    check_message(PLAIN "edge x a 0\nedge a y 0\nedge a a 2\nedge a a -3\n", 7,
                "g.txt:7: expected no closed walk of delay 0 (condition 3), found "
                "a --3-> a and a -2-> a");
    check_message(PLAIN "node b hidden\nedge x a 0\nedge a y 0\nedge a a -1\nedge a b 0\n"
                "edge b a 0\n", 8,
                "g.txt:8: expected no closed walk of delay 0 (condition 3), found "
                "a -0-> b -0-> a");
    check_message(PLAIN "node z hidden\nedge x a 0\nedge a y 0\nedge a a 1\n", 4,
                "g.txt:4: expected edges to and from a hidden node (condition 4), found none to z");
    check_message(PLAIN "node z hidden\nedge x a 0\nedge a y 0\nedge a a 1\nedge a z 0\n", 4,
                "g.txt:4: expected edges to and from a hidden node (condition 4), found none from "
                "z");
    check_message(PLAIN "edge x a 0\nedge a y 0\nedge a a 1\nedge a x 1\n", 1,
                "g.txt:1: expected no edge to an input (condition 4), found one to x");
    check_message(PLAIN "edge x a 0\nedge a y 0\nedge a a 1\nedge y a 1\n", 3,
                "g.txt:3: expected no edge from an output (condition 4), found one from y");
    check_message("node x in\nnode a hidden\nedge x a 0\nedge a a 1\n", 4,
                "g.txt:4: expected an output (condition 4), found none");
    check_message("node y out\nnode a hidden\nedge a y 0\nedge a a 1\n", 4,
                "g.txt:4: expected an input (condition 4), found none");
    check_message("nodes a in\n", 1, "g.txt:1: expected period (once, before all nodes), node or "
                                   "edge, found \"nodes\"");
    check_message("node a in\nperiod 2\n", 2, "g.txt:2: expected period (once, before all nodes), "
                                            "node or edge, found \"period\"");
    check_message("period 1\nperiod 2\n", 2, "g.txt:2: expected period (once, before all nodes), "
                  "node or edge, found \"period\"");
    check_message("period 3\nperiod 2\n", 2, "g.txt:2: expected period (once, before all nodes), "
                                           "node or edge, found \"period\"");
    check_message("period\n", 1,
                  "g.txt:1: expected a whole number from 1 to 1000000, found nothing");
    check_message("period 0\n", 1,
                  "g.txt:1: expected a whole number from 1 to 1000000, found \"0\"");
    check_message("period 2 2\n", 1, "g.txt:1: expected the end of the line, found \"2\"");
    check_message("node\n", 1, "g.txt:1: expected a name of at most 40 printable bytes, found "
                             "nothing");
    check_message("node a\x01 in\n", 1, "g.txt:1: expected a name of at most 40 printable bytes, "
                                      "found \"a\\x01\"");
    check_message("node a\x7F in\n", 1, "g.txt:1: expected a name of at most 40 printable bytes, "
                                      "found \"a\\x7f\"");
    check_message("node a12345678901234567890123456789012345678" "9 in\n", 1,
                "g.txt:1: expected a directed cycle (condition 2), found none");
    check_message("node a12345678901234567890123456789012345678" "90 in\n", 1,
                "g.txt:1: expected a name of at most 40 printable bytes, found "
                "\"a123456789012345678901234567890123456789...\"");
    check_message("node a\n", 1, "g.txt:1: expected in, hidden or out, found nothing");
    check_message("node a input\n", 1, "g.txt:1: expected in, hidden or out, found \"input\"");
    check_message("node a in 1\n", 1, "g.txt:1: expected a whole number from 0 to 0, found \"1\"");
    check_message("node a in 0 0\n", 1, "g.txt:1: expected the end of the line, found \"0\"");
    check_message("node a in\n# a\n\nnode a out\n", 4,
                "g.txt:4: expected a name that no node above has, found \"a\"");
    check_message("edge\n", 1, "g.txt:1: expected the name of a node above, found nothing");
    check_message("node a in\nedge a b 0\n", 2,
                "g.txt:2: expected the name of a node above, found \"b\"");
    check_message(PLAIN "edge x a # 0\n", 4,
                "g.txt:4: expected a whole number from -1000000 to 1000000, found nothing");
    check_message(PLAIN "edge x a 1.5\n", 4,
                "g.txt:4: expected a whole number from -1000000 to 1000000, found \"1.5\"");
    check_message(PLAIN "edge x a 99999999999999999999999999\n", 4,
                "g.txt:4: expected a whole number from -1000000 to 1000000, found "
                "\"99999999999999999999999999\"");
    check_message(PLAIN "edge x a -1000001\n", 4,
                "g.txt:4: expected a whole number from -1000000 to 1000000, found \"-1000001\"");
    check_message(PLAIN "edge x a 0 0 0 0\n", 4, "g.txt:4: expected the end of the line, found "
                                               "\"0\"");
}

static void bad_names(void) {
    static const char *const names[] = {
        "", "s", "shh", "sh:1", "td ", "grid", "grid:", "grid:2", "grid:2x", "grid:x2", "grid:0x2",
        "grid:2x1", "grid:1001x2", "grid:2x1001", "grid:2x3x4", "grid:-1x3", "grid:2X3",
        "fig4.3a", "fig4.3a:", "fig4.3a:0", "fig4.3a:1000001", "fig4.3a:1 ", "fig4.3b:0:3",
        "fig4.3b:5:3", "fig4.3b:3", "fig4.3b:3:", "fig4.3b:3:99999999999999999999", NULL};
    carnn_graph *g;
    carnn_error error;
    size_t i;
    for (i = 0; names[i]; i++) {
        carnn_source source = test_source(names[i], NULL, 0);
        CHECK_INT(carnn_graph_load(&g, &source, NULL, &error), CARNN_ERR_IO);
        CHECK(!g && strstr(error.message, "known by name: sh, st, bu, td, grid:RxF"));
        CHECK_INT(carnn_graph_load(&g, &source, NULL, NULL), CARNN_ERR_IO);
    }
    {
        carnn_source source = test_source(NULL, NULL, 0);
        CHECK_INT(carnn_graph_load(&g, &source, NULL, &error), CARNN_ERR_ARGUMENT);
    }
}

/* A ring of `nodes` hidden nodes with chords, up to `edges`; all delays are `delay`, but that of
   the last edge of the ring is 1 less. */
static char *ring(size_t nodes, size_t edges, long delay, size_t *size) {
    char *text = (char *)malloc(64 * (nodes + edges + 4));
    size_t i, at = 0;
    at += (size_t)sprintf(text, "node x in\nnode y out\n");
    for (i = 0; i < nodes; i++) at += (size_t)sprintf(text + at, "node h%zu hidden\n", i);
    at += (size_t)sprintf(text + at, "edge x h0 0\nedge h%zu y 0\n", nodes - 1);
    for (i = 0; i + 2 < edges; i++)
        at += (size_t)sprintf(text + at, "edge h%zu h%zu %ld\n", i % nodes,
                              (i + 1 + i / nodes * 7) % nodes, delay - (i == nodes - 1));
    *size = at;
    return text;
}

static void check_ring(size_t nodes, size_t edges, long delay, carnn_status expected,
                       const char *message) {
    size_t size;
    char *text = ring(nodes, edges, delay, &size);
    carnn_source source = test_source("ring", text, size);
    carnn_graph *g = NULL;
    carnn_error error = {CARNN_OK, 0, ""};
    CHECK_INT(carnn_graph_load(&g, &source, NULL, &error), expected);
    CHECK_TEXT(error.message, message);
    if (g) {
        const carnn_graph_measures *m = carnn_graph_measure(g, delay < 0);
        check_walk(g, &m->recurrent_depth, 1);
        check_walk(g, &m->skip_coefficient, 1);
        check_walk(g, &m->feedforward_depth, 0);
        CHECK(m->recurrent_depth.numerator > 0 && m->skip_coefficient.numerator > 0);
        if (edges == nodes + 2) { /* one cycle, whose mean delay cannot be reduced */
            long long sum = (long long)nodes * delay - 1;
            VALUE(m->recurrent_depth, (long long)nodes, sum < 0 ? -sum : sum);
            VALUE(m->skip_coefficient, sum < 0 ? -sum : sum, (long long)nodes);
        }
    }
    carnn_graph_free(g);
    free(text);
}

static void graph_limits(void) {
    check_ring(1022, 8192, 1, CARNN_OK, "");
    check_ring(1022, 1024, 1000000, CARNN_OK, "");
    check_ring(1022, 1024, -999999, CARNN_OK, "");
    check_ring(1022, 8192, 1000000, CARNN_OK, "");
    check_ring(1023, 1025, 1, CARNN_ERR_DATA, "ring:1025: expected at most 1024 nodes, found one "
                                              "more");
    check_ring(1022, 8193, 1, CARNN_ERR_DATA, "ring:9217: expected at most 8192 edges, found one "
                                              "more");
    check_ring(1022, 1024, 1000001, CARNN_ERR_DATA,
               "ring:1027: expected a whole number from -1000000 to 1000000, found \"1000001\"");
}

/* Both directions: the forward and the backward layer are measured each by itself; a path through
   both would have no largest length. */
static void bidirectional(void) {
    carnn_graph *g = graph_of("two", PLAIN "node b hidden\nnode c hidden\nedge x a 0\nedge a a 1\n"
                                     "edge a y 0\nedge x b 0\nedge b c 0\nedge c b -2\nedge c y 0\n"
                                     "edge a b 0\n");
    const carnn_graph_measures *m = carnn_graph_measure(g, 0);
    VALUE(m->recurrent_depth, 1, 1);
    VALUE(m->feedforward_depth, 2, 1);
    VALUE(m->skip_coefficient, 1, 1);
    m = carnn_graph_measure(g, 1);
    VALUE(m->recurrent_depth, 1, 1);
    VALUE(m->feedforward_depth, 3, 1);
    VALUE(m->skip_coefficient, 1, 1);
    CHECK_INT(m->recurrent_depth.delay, -2);
    carnn_graph_free(g);
    g = graph_of("apart", PLAIN "node b hidden\nedge x b 0\nedge b b 1\nedge a a 3\nedge a y 0\n");
    m = carnn_graph_measure(g, 0);
    VALUE(m->recurrent_depth, 1, 1);
    VALUE(m->feedforward_depth, 0, 0);
    VALUE(m->skip_coefficient, 3, 1);
    CHECK_INT(m->feedforward_depth.length, 0);
    carnn_graph_free(g);
}

/* Bytes changed, lost and doubled: an error or a graph, and nothing is left. */
static void damaged(void) {
    uint64_t key = 7;
    char text[2 * sizeof period_2];
    int round, i;
    for (round = 0; round < (TEST_SANITIZED ? 2000 : 20000); round++) {
        size_t size = sizeof period_2 - 1, cut;
        carnn_source source;
        carnn_graph *g;
        carnn_error error;
        memcpy(text, period_2, sizeof period_2);
        for (i = draw(&key, 4); i >= 0; i--)
            text[draw(&key, (int)size)] = draw(&key, 3) ? period_2[draw(&key, (int)size)]
                                                         : (char)draw(&key, 256);
        cut = (size_t)draw(&key, (int)size);
        if (!draw(&key, 3)) memcpy(text + size, text + cut, size - cut), size += size - cut;
        if (!draw(&key, 5)) size = cut;
        source = test_source("damaged", text, size);
        if (carnn_graph_load(&g, &source, NULL, &error)) CHECK(!g && strlen(error.message) > 10);
        carnn_graph_free(g);
    }
}

static void graph_memory(void) {
    carnn_source source = test_source("memory.txt", NULL, 0);
    carnn_status status = CARNN_ERR_MEMORY;
    test_memory memory = {0, 0, 0};
    carnn_allocator a = test_allocator(&memory);
    carnn_graph *g;
    carnn_error error;
    test_write("memory.txt", period_2, sizeof period_2 - 1);
    while (status && memory.fail_at < 20) {
        memory.calls = 0;
        memory.fail_at++;
        status = carnn_graph_load(&g, &source, &a, &error);
        CHECK(!status || status == CARNN_ERR_MEMORY);
        carnn_graph_free(g);
        CHECK_INT(memory.blocks, 0);
    }
    CHECK_INT(status, CARNN_OK);
    CHECK(memory.fail_at > 3);
    remove("memory.txt");
}

int main(void) {
    worked();
    unfolded();
    unfolded_figure();
    bidirectional();
    bad_input();
    bad_names();
    graph_limits();
    damaged();
    graph_memory();
    return test_end();
}
