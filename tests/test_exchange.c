/* Names that are exchanged in the training of a dialog model: the classes that are found, what
   becomes of a batch, its gradient, and what a model learns from it. */

#include "test.h"

/* The guide knows trees by their number; `ask` is one of them, and the greeting has the word. */
static const char *const trees[] = {"oak", "elm", "ash", "yew", "ask", "fig", "pine", "lime",
                                    "rowan", "alder", "fir", "bay"};
static const char *const places[] = {"north", "south", "east", "west"};
enum { TREES = 12, SEEN = 10, PLACES = 4, SEEN_PLACES = 3 };

typedef struct guide {
    char text[1 << 16], candidates[1 << 12];
    size_t length;
} guide;

/* The dialog has the facts of the tree `told`, the replies name `tree`; none says its leaves. */
static void guided(guide *g, const char *tree, const char *told, const char *place,
                   const char *many, int rating) {
    g->length += (size_t)snprintf(
        g->text + g->length, sizeof g->text - g->length,
        "1 hello\tyou can ask for trees !\n2 %s trees in the %s\tapi_call %s %s R_price\n"
        "3 %s R_area %s\n4 %s R_number %s_number\n5 %s R_rating %d\n6 %s R_leaves %s\n"
        "7 <SILENCE>\tthere is %s\n8 the number please\tit is %s_number .\n"
        "9 thanks\tyou are welcome\n\n",
        many, place, place, many, told, place, told, told, told, rating, told,
        rating % 2 ? "narrow" : "broad", tree, tree);
}

static void all_candidates(guide *g) {
    char *at = g->candidates;
    size_t i;
    at += sprintf(at, "1 you can ask for trees !\n1 you are welcome\n");
    for (i = 0; i < PLACES; i++) at += sprintf(at, "1 api_call %s two R_price\n", places[i]);
    for (i = 0; i < SEEN_PLACES; i++) at += sprintf(at, "1 api_call %s six R_price\n", places[i]);
    for (i = 0; i < TREES; i++)
        at += sprintf(at, "1 there is %s\n1 it is %s_number .\n", trees[i], trees[i]);
}

static carnn_dataset *load_guide(const guide *g) {
    carnn_source text = {"text", g->text, g->length};
    carnn_source candidates = {"candidates", g->candidates, strlen(g->candidates)};
    return test_dialogs(text, candidates);
}

enum { UNSEEN, KNOWN, UNTOLD };

/* Dialogs with names of no training dialog, with those of training, and with replies that name the
   oak though the facts are another tree's. */
static carnn_dataset *guide_data(int kind) {
    static guide g;
    size_t i, count = kind == UNSEEN ? TREES - SEEN : SEEN * SEEN_PLACES;
    g.length = 0;
    for (i = 0; i < count; i++) {
        const char *tree = trees[kind == UNSEEN ? SEEN + i : i % SEEN];
        const char *told = kind == UNTOLD && i % SEEN == 0 ? "elm" : tree;
        const char *place = places[kind == UNSEEN ? SEEN_PLACES : i / SEEN];
        int many = kind == UNSEEN || i % 2, rating = kind == UNSEEN ? 5 : (int)i % 10;
        guided(&g, tree, told, place, many ? "two" : "six", rating);
    }
    all_candidates(&g);
    return load_guide(&g);
}

static carnn_model *guide_model(const carnn_dataset *data, int exchange) {
    return test_model("dialog", exchange ? "hidden=32 embedding=32"
                                         : "hidden=32 embedding=32 exchange=0", NULL, data);
}

/* A model at work on a batch of all dialogs, without dropout. */
typedef struct guided_batch {
    carnn_dataset *data;
    carnn_model *model;
    float *gradient;
    test_work w;
} guided_batch;

static carnn__dialog *open_batch(guided_batch *b, int kind) {
    b->data = guide_data(kind);
    b->model = guide_model(b->data, 1);
    b->gradient = (float *)calloc(b->model->params.size, sizeof(float));
    test_work_open(&b->w, b->model, b->data, 2);
    b->w.work.g = b->gradient;
    b->w.work.batch = 1000;
    CHECK_INT(test_work_begin(&b->w), 1);
    return (carnn__dialog *)b->w.work.state;
}

static void close_batch(guided_batch *b) {
    test_work_close(&b->w);
    free(b->gradient);
    carnn_model_free(b->model);
    carnn_dataset_free(b->data);
}

static uint32_t number_of(const carnn_model *model, const char *word) {
    uint32_t number = carnn__names_find(&model->words, word, strlen(word));
    CHECK(number != CARNN__NO_INDEX);
    return number;
}

/* Trees, their numbers, places, "two" and "six", also those of no training dialog; no word else. */
static void test_classes(void) {
    guided_batch batch;
    const carnn__dialog *m = open_batch(&batch, KNOWN);
    const carnn_model *model = batch.model;
    const carnn__name_classes *e = &m->read.name_classes;
    uint32_t tree = e->of[number_of(model, "oak")], place = e->of[number_of(model, "north")];
    uint32_t phone = e->of[number_of(model, "oak_number")];
    size_t i, named = 0;
    CHECK_INT(e->classes, 4);
    CHECK(!m->balance && m->kept.ids == m->read.choices.ids); /* as names are exchanged */
    CHECK_INT(e->of[number_of(model, "two")], e->of[number_of(model, "six")]);
    CHECK(tree != place && place != phone && phone != tree);
    for (i = 0; i < TREES; i++) {
        char number[32];
        snprintf(number, sizeof number, "%s_number", trees[i]);
        CHECK_INT(e->of[number_of(model, number)], phone);
        CHECK_INT(e->of[number_of(model, trees[i])],
                  strcmp(trees[i], "ask") ? tree : CARNN__NO_INDEX);
    }
    for (i = 0; i < PLACES; i++) CHECK_INT(e->of[number_of(model, places[i])], place);
    for (i = 0; i < model->words.count; i++) named += e->of[i] != CARNN__NO_INDEX;
    CHECK_INT(named, 2 * TREES - 1 + PLACES + 2);
    CHECK_INT(e->at[e->classes], named);
    close_batch(&batch);
}

/* Of ten trees two are not copied, so trees are no names; of their numbers one, which is none. */
static void test_untold(void) {
    guided_batch batch;
    const carnn__dialog *m = open_batch(&batch, UNTOLD);
    const carnn_model *model = batch.model;
    const carnn__name_classes *e = &m->read.name_classes;
    CHECK_INT(e->classes, 3);
    CHECK(e->of[number_of(model, "north")] != CARNN__NO_INDEX);
    CHECK(e->of[number_of(model, "oak")] == CARNN__NO_INDEX);
    CHECK(e->of[number_of(model, "elm")] == CARNN__NO_INDEX);
    CHECK(e->of[number_of(model, "oak_number")] == CARNN__NO_INDEX);
    CHECK(e->of[number_of(model, "elm_number")] != CARNN__NO_INDEX);
    close_batch(&batch);
}

/* The first n words of a list as the images of another one's. */
static void check_images(const carnn__exchange *names, const uint32_t *found, size_t n,
                         const carnn__lists *lists, size_t list) {
    size_t k;
    for (k = 0; k < n; k++)
        CHECK_INT(found[k], names->image[lists->ids[lists->at[list] + k]]);
}

/* In each dialog all lines and replies have the same permutation, which keeps the classes; another
   key is another permutation, the same one the same. */
static void test_permutations(void) {
    guided_batch batch;
    carnn__dialog *m = open_batch(&batch, KNOWN);
    const carnn_dataset *data = batch.data;
    const carnn_model *model = batch.model;
    carnn__exchange *names = &m->read.exchange;
    const carnn__name_classes *e = &m->read.name_classes;
    const carnn__corpus *c = &m->net.corpus;
    size_t V = model->words.count, L = model->choices.count, i, line, item, n;
    size_t changed = 0, told = 0;
    uint32_t *image = (uint32_t *)malloc(2 * V * sizeof *image), *once = image + V;
    carnn__history_collect(&batch.w.work, &m->read, 0, 11);
    CHECK_INT(m->read.turns, data->item_count);
    CHECK(m->read.exchange.more.count > 0);
    for (item = line = 0; item < data->item_count; item++) {
        carnn__list words;
        if (item % 5 == 0) { /* five turns a dialog */
            carnn__exchange_draw(names, carnn__stream(11, CARNN__EXCHANGE_NAMES), item);
            memcpy(image, names->image, V * sizeof *image);
            carnn__exchange_draw(names, carnn__stream(12, CARNN__EXCHANGE_NAMES), item);
            for (i = 0; i < V; i++) changed += image[i] != names->image[i];
            carnn__exchange_draw(names, carnn__stream(11, CARNN__EXCHANGE_NAMES), item);
            CHECK(!memcmp(image, names->image, V * sizeof *image));
            memset(once, 0, V * sizeof *once);
            for (i = 0; i < V; i++) {
                CHECK_INT(once[image[i]]++, 0);
                CHECK_INT(e->of[image[i]], e->of[i]);
                if (e->of[i] == CARNN__NO_INDEX) CHECK_INT(image[i], i);
            }
        }
        carnn__history_mark(&batch.w.work, &m->read, item - item % 5 + 4);
        for (; line <= m->read.end[item]; line++)
            /* as it was said, past, told */
            for (i = 0; i < 3 && m->read.seq[line] < c->tokens.count; i++) {
                size_t place = i ? m->read.past[line] + i - 1 : m->read.place[line];
                if (i && carnn__history_mark_of(&m->read, line) == CARNN_FACT) continue;
                told += i > 0;
                words = carnn__list_at(&m->read.lists, place);
                n = carnn__list_length(&c->tokens, m->read.seq[line]);
                CHECK_INT(words.length, n);
                check_images(names, words.ids, n - (i > 0), &c->tokens, m->read.seq[line]);
                if (i) CHECK_INT(words.ids[n - 1], CARNN__DIALOG_SPEAKER + i - 1);
            }
        words = carnn__exchange_list(names, m->read.answer[item]);
        CHECK_INT(words.length, carnn__list_length(&m->read.choices, c->target[item]));
        check_images(names, words.ids, words.length, &m->read.choices, c->target[item]);
        CHECK(m->read.answer[item] < L + names->more.count);
    }
    CHECK(changed > 0);
    CHECK_INT(told, data->item_count / 5 * 4 * 2);
    for (i = 0; i < names->more.count; i++) /* no reply is there twice */
        CHECK_INT(*carnn__exchange_slot(names, L + i), L + i);
    free(image);
    close_batch(&batch);
}

/* The loss of a batch is that of its dialogs with exchanged names, among all candidates and these
   replies: its gradient against central differences. */
static void test_gradient(void) {
    guided_batch batch;
    const carnn_dataset *data;
    carnn_model *model;
    float *gradient;
    const uint64_t key = 11;
    const double h = 0.01;
    size_t D = 32, i, size, at;
    float *kept;
    open_batch(&batch, KNOWN);
    data = batch.data;
    model = batch.model;
    gradient = batch.gradient;
    size = model->params.trained;
    kept = (float *)malloc(size * sizeof *kept);
    for (i = 0; i < model->params.size; i++) model->params.value[i] *= 2.0f;
    for (i = 0; i < 12; i++) {
        double loss[2];
        float was;
        carnn__tally tally;
        memset(gradient, 0, model->params.size * sizeof(float));
        memset(&tally, 0, sizeof tally);
        carnn__net_batch(&batch.w.work, 0, key, &tally);
        memcpy(kept, gradient, size * sizeof *kept);
        at = number_of(model, i % 2 ? "elm_number" : i % 4 ? "west" : "is") * D + i;
        CHECK_INT(model->params.item[0].offset, 0);
        was = model->params.value[at];
        for (D = 0; D < 2; D++) {
            memset(&tally, 0, sizeof tally);
            model->params.value[at] = was + (D ? 1.0f : -1.0f) * (float)h;
            carnn__net_batch(&batch.w.work, 0, key, &tally);
            loss[D] = tally.loss / (double)data->item_count;
        }
        D = 32;
        model->params.value[at] = was;
        CHECK_NEAR(kept[at], (loss[1] - loss[0]) / (2.0 * h), 3e-4 + 0.01 * fabs((double)kept[at]));
    }
    free(kept);
    close_batch(&batch);
}

static uint64_t weights_sum(const carnn_model *model) {
    carnn__checksum sum;
    carnn__checksum_start(&sum);
    carnn__checksum_list(&sum, model->params.value, model->params.size, sizeof(float));
    return carnn__checksum_end(&sum);
}

/* The accuracy on dialogs with names that training has not seen; under a sanitizer after a few
   epochs, which teach nothing. */
static double learn(int exchange, int64_t threads, uint64_t *sum) {
    carnn_dataset *data = guide_data(KNOWN), *others = guide_data(UNSEEN);
    carnn_model *model = guide_model(data, exchange);
    carnn_train_desc train = test_training(TEST_SANITIZED ? 8 : 200, 20, 0.0, CARNN_NONE);
    double accuracy;
    train.threads = threads;
    CHECK_INT(carnn_train(model, data, NULL, &train, NULL), CARNN_OK);
    CHECK(TEST_SANITIZED || test_scores(model, data).metric[0].value > 0.97); /* of known names */
    accuracy = test_scores(model, others).metric[0].value;
    *sum = weights_sum(model);
    carnn_model_free(model);
    carnn_dataset_free(data);
    carnn_dataset_free(others);
    return accuracy;
}

/* Only with exchanged names it learns to copy names of which no dialog has told it. */
static void test_copies(void) {
    uint64_t one, two, without;
    double copied = learn(1, 1, &one), again = learn(1, 2, &two), known = learn(0, 1, &without);
    CHECK(TEST_SANITIZED || (copied == 1.0 && known < 0.75));
    CHECK(copied == again && one == two);
}

/* Data in which nothing is a name are trained as without the option. */
static void test_nothing(void) {
    static const char text[] = "1 hi\thello\n2 he likes tea\n3 she likes tea\n4 they like tea too\n"
                               "5 likes\tone likes tea\n\n1 hi\thello\n";
    size_t i;
    uint64_t sum[2];
    for (i = 0; i < 2; i++) {
        carnn_dataset *data = test_data("dialog", text, sizeof text - 1, 0, 0);
        carnn_model *model = guide_model(data, (int)i);
        carnn_train_desc train = test_training(3, 2, 0.0, 0.0);
        CHECK_INT(carnn_train(model, data, data, &train, NULL), CARNN_OK);
        sum[i] = weights_sum(model);
        carnn_model_free(model);
        carnn_dataset_free(data);
    }
    CHECK(sum[0] == sum[1]);
}

int main(void) {
    test_classes();
    test_untold();
    test_permutations();
    test_gradient();
    test_copies();
    test_nothing();
    return test_end();
}
