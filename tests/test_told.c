/* Facts that a dialog has told: which utterance tells which fact, what that changes in sessions and
   batches, models that do not know of it, and what a model learns from it. */

#include "test.h"

static const char known[] =
    "1 hello\tgood morning !\n2 oak R_rating 3\n3 elm R_rating 9\n4 elm R_area north side\n"
    "5 elm R_phone 12\n6 <SILENCE>\telm is nice\n7 another\toak is nice\n8 elm R_rating 9\n"
    "9 the phone\there it is\n10 rather not\telm , then\n11 bye\tyou are welcome\n\n"
    "1 hello\toak is nice\n2 oak R_rating 3\n3 zzz R_rating 9\n4 another\tgood morning !\n"
    "5 oak R_address 12 b old river road behind our north gate 9 8 7 6\n6 oak closed\n"
    "7 oak R_address 12 b old river road behind our north gate 9 8 7 6 5\n"
    "8 bye\tsorry\tzzz and oak\n9 bye\tyou are welcome\n10 bye\tsorry\n";

/* The marks of facts by dialog, line, of which the first is <start>, and the line after which they
   hold. What is named before the fact, in another dialog or by the user, is not told, nor is a fact
   of two words or of more than fifteen. */
enum { LINES = 17 };
static const struct {
    size_t dialog, line, from;
    uint32_t mark;
} marks[] = {{0, 4, 8, CARNN_SYSTEM}, {0, 5, 8, CARNN_SYSTEM}, {0, 6, 8, CARNN_SYSTEM},
             {0, 3, 10, CARNN_SYSTEM}, {0, 4, 10, CARNN_USER}, {0, 5, 10, CARNN_USER},
             {0, 6, 10, CARNN_USER}, {0, 3, 15, CARNN_USER}, {0, 4, 15, CARNN_SYSTEM},
             {0, 5, 15, CARNN_SYSTEM}, {0, 6, 15, CARNN_SYSTEM}, {0, 11, 15, CARNN_SYSTEM},
             {1, 3, 11, CARNN_SYSTEM}, {1, 4, 11, CARNN_SYSTEM}, {1, 7, 11, CARNN_SYSTEM}};

/* The mark of a line before the line `end`, or else its role. */
static uint32_t told_mark(size_t dialog, size_t line, size_t end, uint32_t role) {
    size_t i;
    for (i = 0; i < sizeof marks / sizeof *marks; i++)
        if (marks[i].dialog == dialog && marks[i].line == line && marks[i].from < end)
            role = marks[i].mark;
    return role;
}

static carnn_model *told_known_model(const carnn_dataset *data, const char *options) {
    carnn_model *model = test_model("dialog", options, NULL, data);
    size_t i;
    for (i = 0; i < model->params.size; i++) model->params.value[i] *= 2.0f;
    if (model->desc.option[CARNN__DIALOG_MATCH] > 0.0) test_random_match(model);
    return model;
}

static carnn_dataset *told_known_data(void) {
    return test_data("dialog", known, sizeof known - 1, 0, 0);
}

static void told_marks(void) {
    carnn_dataset *data = told_known_data();
    carnn_model *model = told_known_model(data, "hidden=8 embedding=8");
    carnn__dialog *m;
    size_t pass, turn, item, i;
    test_work w;
    test_work_open(&w, model, data, 1);
    CHECK_INT(test_work_begin(&w), 1);
    m = (carnn__dialog *)w.work.state;
    CHECK(!m->logits.x); /* nobody reads them */
    for (pass = 0; pass < 2; pass++) /* in order, and from the end */
        for (turn = 0; turn < data->item_count; turn++) {
            size_t dialog, start = 0;
            item = pass ? data->item_count - 1 - turn : turn;
            dialog = data->items[item].group;
            for (i = 0; i < item; i++)
                if (data->items[i].group != dialog) start = m->read.end[i] + 1;
            carnn__history_mark(&w.work, &m->read, item);
            for (i = start; i < m->read.end[item]; i++)
                CHECK_INT(carnn__history_mark_of(&m->read, i),
                          told_mark(dialog, i - start, m->read.end[item] - start, CARNN_FACT));
        }
    CHECK(data->items[data->item_count - 1].group > 0);
    test_work_close(&w);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

static void told_hear(carnn_session *session, uint32_t speaker, const char *text) {
    CHECK(!carnn_session_hear(session, (carnn_speaker)speaker, text, strlen(text), NULL));
}

/* What a session says to an item, and how it explains that. by_hand: a fact with a mark by then is
   heard from that speaker instead. */
static carnn_explanation told_ask(carnn_session *s, const carnn_dataset *data, size_t item,
                                  int by_hand, carnn_prediction *p,
                                  carnn_contribution part[LINES]) {
    const carnn__item *x = &data->items[item];
    carnn_explanation e;
    carnn_text user = {NULL, 0};
    size_t line;
    carnn_session_reset(s);
    for (line = 1; line <= x->count; line++) {
        const carnn__member *member = &data->members[x->first + line - 1];
        carnn__span text = carnn__text(data, member->text);
        user.at = text.at;
        user.length = text.length;
        if (line < x->count)
            told_hear(s, by_hand ? told_mark(x->group, line, x->count, member->role)
                                 : member->role, text.at);
    }
    CHECK(!carnn_session_predict(s, &user, 1, SIZE_MAX, p, NULL));
    CHECK(!carnn_session_explain(s, LINES, part, &e, NULL));
    return e;
}

/* A told fact is for the model what the system has said in its place, a past one what the user
   has. */
static void told_same_as_by_hand(void) {
    carnn_dataset *data = told_known_data();
    size_t cell, item, i;
    for (cell = 0; carnn_cell_name(cell); cell++) {
        carnn_model *model, *without;
        carnn_session *s = NULL, *t = NULL;
        size_t others = 0;
        char options[96];
        snprintf(options, sizeof options, "hidden=24 embedding=24 match=0 cell=%s",
                 carnn_cell_name(cell));
        model = told_known_model(data, options);
        strcat(options, " told=0");
        without = told_known_model(data, options);
        CHECK(!carnn_session_open(&s, model, NULL, NULL));
        CHECK(!carnn_session_open(&t, without, NULL, NULL));
        for (item = 0; item < data->item_count; item++) {
            carnn_contribution one[LINES], two[LINES];
            carnn_prediction p, q;
            carnn_explanation e = told_ask(s, data, item, 0, &p, one);
            carnn_explanation f = told_ask(t, data, item, 1, &q, two);
            CHECK_INT(e.count, data->items[item].count + 1);
            CHECK_INT(f.count, e.count);
            CHECK(e.rest == f.rest);
            for (i = 0; i < e.count; i++)
                CHECK(one[i].score == two[i].score && one[i].attention == two[i].attention);
            CHECK_INT(p.count, q.count);
            CHECK(!memcmp(p.probability, q.probability, p.count * sizeof *p.probability));
            told_ask(t, data, item, 0, &q, two);
            others += memcmp(p.probability, q.probability, p.count * sizeof *p.probability) != 0;
        }
        if (strncmp(carnn_cell_name(cell), "lin-", 4)) /* which gives all to one reply */
            CHECK_INT(others, 6); /* the last four items and the last two */
        carnn_session_free(s);
        carnn_session_free(t);
        carnn_model_free(model);
        carnn_model_free(without);
    }
    carnn_dataset_free(data);
}

typedef struct answers {
    const carnn_dataset *data;
    carnn_session *session;
} answers;

static void told_check_answer(const carnn_prediction *p, void *user) {
    const answers *a = (const answers *)user;
    carnn_prediction q;
    CHECK(!carnn_session_example(a->session, a->data, p->example, SIZE_MAX, &q, NULL));
    CHECK_INT(p->count, q.count);
    CHECK(!memcmp(p->probability, q.probability, p->count * sizeof *p->probability));
}

/* Batches say what sessions say, also where facts or the beginning of a dialog are forgotten. */
static void told_same_as_session(void) {
    static const char *const options[] = {
        "hidden=24 embedding=24", "hidden=24 embedding=24 cell=ncarnn kb_rows=1",
        "hidden=24 embedding=24 cell=lstm history=6", "hidden=24 embedding=24 history=11",
        "hidden=24 embedding=24 history=7", /* "oak is nice" finds its fact as many lines before */
        "hidden=24 embedding=24 history=8 kb_rows=2"};
    carnn_dataset *data = told_known_data();
    size_t i;
    for (i = 0; i < sizeof options / sizeof *options; i++) {
        carnn_model *model = told_known_model(data, options[i]);
        answers a = {data, NULL};
        carnn_predict_desc desc = {0, SIZE_MAX, told_check_answer, &a};
        CHECK(!carnn_session_open(&a.session, model, NULL, NULL));
        for (desc.threads = 1; desc.threads <= 2; desc.threads++)
            CHECK(!carnn_predict(model, data, &desc, NULL));
        carnn_session_free(a.session);
        carnn_model_free(model);
    }
    carnn_dataset_free(data);
}

/* As the histories of a long dialog, which are worked on in several chunks. */
static void told_long_dialog(void) {
    enum { TURNS = 100 };
    char text[TURNS * 32];
    carnn_dataset *data;
    carnn_model *model;
    answers a = {NULL, NULL};
    carnn_predict_desc desc = {0, SIZE_MAX, told_check_answer, &a};
    size_t i, at = 0;
    for (i = 0; i < TURNS; i++)
        at += (size_t)sprintf(text + at, "%zu ask%zu %zu\tanswer%zu\n", i + 1, i % 7, i, i % 5);
    a.data = data = test_data("dialog", text, at, 0, 0);
    model = test_model("dialog", "hidden=8 embedding=8", NULL, data);
    test_random_match(model);
    CHECK(!carnn_session_open(&a.session, model, NULL, NULL));
    CHECK(!carnn_predict(model, data, &desc, NULL));
    carnn_session_free(a.session);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* A chat that predicts in every turn says the same as one that has only heard what was said: facts
   whose marks have changed since the last prediction are read anew. */
static void told_turn_by_turn(void) {
    static const char *const options[] = {"hidden=24 embedding=24",
                                          "hidden=24 embedding=24 reduce=2"};
    carnn_dataset *data = told_known_data();
    size_t k, item, line = 0;
    for (k = 0; k < CARNN__COUNT(options); k++) {
        carnn_model *model = told_known_model(data, options[k]);
        answers a = {data, NULL};
        carnn_session *s;
        carnn_prediction p;
        CHECK(!carnn_session_open(&a.session, model, NULL, NULL));
        CHECK(!carnn_session_open(&s, model, NULL, NULL));
        for (item = 0; item < data->item_count; item++) {
            const carnn__item *x = &data->items[item];
            carnn_text user;
            if (!item || x->group != x[-1].group) {
                carnn_session_reset(s);
                line = x->first;
            }
            for (; line + 1 < x->first + x->count; line++)
                told_hear(s, data->members[line].role,
                          carnn__text(data, data->members[line].text).at);
            user = carnn__text(data, data->members[line].text);
            CHECK(!carnn_session_predict(s, &user, 1, SIZE_MAX, &p, NULL));
            p.example = item;
            told_check_answer(&p, &a);
        }
        carnn_session_free(s);
        carnn_session_free(a.session);
        carnn_model_free(model);
    }
    carnn_dataset_free(data);
}

/* A reply that tells a fact is explained with the fact as the reply has read it. */
static void told_reply_tells(void) {
    static const char text[] = "1 hello\toak , perhaps\n2 oak R_rating 3\n3 bye\toak is nice\n";
    carnn_dataset *data = test_data("dialog", text, sizeof text - 1, 0, 0);
    carnn_model *model = told_known_model(data, "hidden=24 embedding=24");
    carnn_session_desc desc = {LINES, 0, NULL}; /* more than the data have */
    carnn_session *s = NULL;
    carnn_text user = {"hello", 5};
    carnn_contribution one[LINES], two[LINES];
    carnn_explanation e, f;
    carnn_prediction p;
    const char *reply;
    size_t turn, i;
    CHECK(!carnn_session_open(&s, model, &desc, NULL));
    told_hear(s, CARNN_FACT, "qqq R_rating 3");
    told_hear(s, CARNN_FACT, "oak R_rating 3");
    told_hear(s, CARNN_SYSTEM, "www"); /* unknown, as is qqq */
    for (turn = 0; turn < 3; turn++) {
        const carnn__dialog *m = (const carnn__dialog *)s->work.state;
        CHECK(!carnn_session_predict(s, &user, 1, 1, &p, NULL));
        CHECK_INT(m->said[1].mark, m->read.fact[1].mark);
        CHECK_INT(m->said[2].mark, m->read.fact[2].mark);
        CHECK(!carnn_session_explain(s, LINES, one, &e, NULL));
        CHECK(!carnn_session_reply(s, "hello", 5, &reply, NULL));
        CHECK_INT(m->said[2].mark != m->read.fact[2].mark, turn == 0);
        CHECK_INT(m->said[1].mark, m->read.fact[1].mark);
        CHECK(!carnn_session_explain(s, LINES, two, &f, NULL));
        CHECK_INT(e.count, 5 + 2 * turn);
        CHECK_INT(f.count, e.count);
        for (i = 0; i < e.count; i++) CHECK(one[i].score == two[i].score);
    }
    carnn_session_free(s);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* A prediction leaves what is told as it was, in a session of any room: what has been asked before
   the system names a subject does not count. */
static void told_after_prediction(void) {
    carnn_dataset *data = told_known_data();
    carnn_model *model = told_known_model(data, "hidden=8 embedding=8 match=0");
    size_t room, asked, k;
    for (room = 3; room < 8; room++) {
        carnn_session_desc desc = {room, 0, NULL};
        carnn_text user = {"bye", 3};
        double first[2];
        for (asked = 0; asked < 2; asked++) {
            carnn_session *s = NULL;
            carnn_prediction p;
            CHECK(!carnn_session_open(&s, model, &desc, NULL));
            told_hear(s, CARNN_FACT, "elm R_rating 9");
            told_hear(s, CARNN_USER, "hello");
            told_hear(s, CARNN_FACT, "oak R_rating 3");
            for (k = 0; k + 3 < room; k++) told_hear(s, CARNN_USER, "hello");
            told_hear(s, CARNN_SYSTEM, "oak is nice");
            if (asked) CHECK(!carnn_session_predict(s, &user, 1, 1, &p, NULL));
            told_hear(s, CARNN_SYSTEM, "elm is nice");
            CHECK(!carnn_session_predict(s, &user, 1, SIZE_MAX, &p, NULL));
            first[asked] = (double)p.probability[0];
            carnn_session_free(s);
        }
        CHECK(first[0] == first[1]);
    }
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* --- models that do not know of it ----------------------------------------------------------- */

/* Of a file without the option, which is off, no fact is told, also when training goes on. */
static void told_older_file(void) {
    carnn_dataset *data = told_known_data();
    carnn_model *model = told_known_model(data, "hidden=8 embedding=8"), *loaded, *next = NULL;
    carnn_model_desc desc;
    CHECK(carnn__option(model, CARNN__DIALOG_TOLD) == 1.0);
    loaded = test_reload(model);
    CHECK(carnn__option(loaded, CARNN__DIALOG_TOLD) == 1.0);
    loaded->desc.option[CARNN__DIALOG_TOLD] = 0.0; /* as of a file that does not have it */
    memset(&desc, 0, sizeof desc);
    desc.from = loaded;
    CHECK(!carnn_model_create(&next, &desc, data, NULL));
    CHECK(carnn__option(next, CARNN__DIALOG_TOLD) < 0.0);
    carnn_model_free(next);
    desc.option[CARNN__DIALOG_TOLD] = 1.0;
    CHECK(!carnn_model_create(&next, &desc, data, NULL));
    CHECK(carnn__option(next, CARNN__DIALOG_TOLD) == 1.0);
    carnn_model_free(next);
    carnn_model_free(loaded);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* --- what is learned from it ----------------------------------------------------------------- */

/* Three trees of a dialog, which are offered the best first and each once; those with the numbers
   `from` and more. */
static carnn_dataset *told_dialogs(size_t from, size_t trees, size_t dialogs) {
    static const char *const tree[] = {"oak", "elm", "ash", "yew", "fir", "bay", "box", "may"};
    static char text[1 << 16];
    carnn_source source = {"offers", text, 0}, candidates = {"candidates", NULL, 0};
    char all[512];
    size_t i, j;
    for (i = 0; i < dialogs; i++) {
        uint32_t pick[8], rating[9], best[3];
        for (j = 0; j < 9; j++) rating[j] = (uint32_t)j + 1;
        for (j = 0; j < 8; j++) pick[j] = (uint32_t)(from + j % trees);
        carnn__shuffle(2 * i, pick, trees);
        carnn__shuffle(2 * i + 1, rating, 5);
        for (j = 0; j < 3; j++) {
            size_t rank = 0, k;
            for (k = 0; k < 3; k++) rank += rating[k] > rating[j];
            best[rank] = pick[j];
        }
        source.size += (size_t)snprintf(text + source.size, sizeof text - source.size,
            "1 hello\tgood morning !\n2 %s R_rating %u\n3 %s R_rating %u\n4 %s R_rating %u\n"
            "5 a tree\tthere is %s\n6 another\tthere is %s\n7 another\tthere is %s\n\n",
            tree[pick[0]], rating[0], tree[pick[1]], rating[1], tree[pick[2]], rating[2],
            tree[best[0]], tree[best[1]], tree[best[2]]);
    }
    for (i = 0, candidates.bytes = all; i < 8; i++)
        candidates.size += (size_t)sprintf(all + candidates.size, "1 there is %s\n", tree[i]);
    candidates.size += (size_t)sprintf(all + candidates.size, "1 good morning !\n");
    return test_dialogs(source, candidates);
}

/* The accuracy on dialogs with trees that training has not seen; under a sanitizer after a few
   epochs, which teach nothing. */
static double told_learn(const char *options, int64_t threads, carnn_model **model) {
    carnn_dataset *data = told_dialogs(0, 5, 200), *others = told_dialogs(5, 3, 40);
    carnn_train_desc train = test_training(TEST_SANITIZED ? 4 : 60, 20, 0.0, CARNN_NONE);
    double accuracy;
    train.threads = threads;
    *model = test_model("dialog", options, NULL, data);
    CHECK(!carnn_train(*model, data, NULL, &train, NULL));
    accuracy = test_scores(*model, others).metric[0].value;
    carnn_dataset_free(data);
    carnn_dataset_free(others);
    return accuracy;
}

/* Which of the facts have been told decides which one is next; one reading cannot tell by
   itself. */
static void told_offers(void) {
    carnn_model *one, *two, *without;
    double told = told_learn("hidden=32 embedding=32", 1, &one);
    double again = told_learn("hidden=32 embedding=32", 2, &two);
    double untold = told_learn("hidden=32 embedding=32 told=0 hops=0 match=0", 1, &without);
    CHECK(TEST_SANITIZED || (told == 1.0 && untold < 0.85));
    CHECK(told == again);
    CHECK(!memcmp(one->params.value, two->params.value, one->params.size * sizeof(float)));
    carnn_model_free(one);
    carnn_model_free(two);
    carnn_model_free(without);
}

int main(void) {
    told_marks();
    told_same_as_by_hand();
    told_same_as_session();
    told_long_dialog();
    told_turn_by_turn();
    told_reply_tells();
    told_after_prediction();
    told_older_file();
    told_offers();
    return test_end();
}
