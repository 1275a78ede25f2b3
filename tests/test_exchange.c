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

static carnn__dialog *open_data(guided_batch *b, carnn_dataset *data, carnn_model *model) {
    b->data = data;
    b->model = model;
    b->gradient = (float *)calloc(b->model->params.size, sizeof(float));
    test_work_open(&b->w, b->model, b->data, 2);
    b->w.work.g = b->gradient;
    b->w.work.batch = 1000;
    CHECK_INT(test_work_begin(&b->w), 1);
    return (carnn__dialog *)b->w.work.state;
}

static carnn__dialog *open_batch(guided_batch *b, int kind) {
    carnn_dataset *data = guide_data(kind);
    return open_data(b, data, guide_model(data, 1));
}

static void close_batch(guided_batch *b) {
    test_work_close(&b->w);
    free(b->gradient);
    carnn_model_free(b->model);
    carnn_dataset_free(b->data);
}

static uint32_t number_of(const carnn_model *model, const char *word) {
    uint32_t number = carnn__names_find(&model->words, carnn__span_of(word));
    CHECK(number != CARNN__NO_INDEX);
    return number;
}

/* Trees, their numbers, places, "two" and "six", also those of no training dialog; no word else. */
static void test_classes(void) {
    guided_batch batch;
    const carnn__dialog *m = open_batch(&batch, KNOWN);
    const carnn_model *model = batch.model;
    const carnn__name_classes *e = &m->read.exchange.names;
    uint32_t tree = e->of[number_of(model, "oak")], place = e->of[number_of(model, "north")];
    uint32_t phone = e->of[number_of(model, "oak_number")];
    size_t i, named = 0;
    CHECK_INT(e->classes, 4);
    CHECK(!m->balance && m->word_dropout == 0.0f); /* as names are exchanged */
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
    const carnn__name_classes *e = &m->read.exchange.names;
    CHECK_INT(e->classes, 3);
    CHECK(e->of[number_of(model, "north")] != CARNN__NO_INDEX);
    CHECK(e->of[number_of(model, "oak")] == CARNN__NO_INDEX);
    CHECK(e->of[number_of(model, "elm")] == CARNN__NO_INDEX);
    CHECK(e->of[number_of(model, "oak_number")] == CARNN__NO_INDEX);
    CHECK(e->of[number_of(model, "elm_number")] != CARNN__NO_INDEX);
    close_batch(&batch);
}

/* A dialog with the facts "it RELATION word", whose replies "TEMPLATE word" are candidates. */
static void told_words(guide *g, const char *relation, const char *template, const char *words) {
    carnn__words w = carnn__words_of(CARNN__SPACES, carnn__span_of(words)), again = w;
    char *at = g->text + g->length, *candidate = g->candidates + strlen(g->candidates);
    int line = 1;
    while (carnn__next_word(&w))
        at += sprintf(at, "%d it %s %.*s\n", line++, relation, (int)w.word.length, w.word.at);
    while (carnn__next_word(&again)) {
        int n = (int)again.word.length;
        at += sprintf(at, "%d hm\t%s%.*s\n", line++, template, n, again.word.at);
        candidate += sprintf(candidate, "1 %s%.*s\n", template, n, again.word.at);
    }
    g->length = (size_t)(at + sprintf(at, "\n") - g->text);
}

static void also(guide *g, const char *text, const char *candidates) {
    g->length += (size_t)sprintf(g->text + g->length, "%s", text);
    strcat(g->candidates, candidates);
}

/* The class of all words of a text; CARNN__NO_INDEX: that of none. */
static uint32_t class_of_words(const guided_batch *b, const char *words) {
    const carnn__name_classes *e = &((const carnn__dialog *)b->w.work.state)->read.exchange.names;
    carnn__words w = carnn__words_of(CARNN__SPACES, carnn__span_of(words));
    uint32_t first = 0, of;
    size_t n = 0;
    for (; carnn__next_word(&w); n++) {
        char word[32];
        snprintf(word, sizeof word, "%.*s", (int)w.word.length, w.word.at);
        of = e->of[number_of(b->model, word)];
        if (!n) first = of;
        if (of != first) printf("%s: ", word);
        CHECK_INT(of, first);
    }
    return first;
}

/* Rare words of candidates are <unk>, which is no name, whatever stands in its place elsewhere. */
static void test_unknown_word(void) {
    static guide g;
    guided_batch b;
    carnn_dataset *data;
    carnn__dialog *m;
    told_words(&g, "r_area", "tell ", "north south east");
    told_words(&g, "r_area", "tell ", "north south east");
    also(&g, "", "1 tell zork\n");
    data = load_guide(&g);
    m = open_data(&b, data, test_model("dialog", "hidden=8 embedding=8 min_count=2", NULL, data));
    CHECK_INT(carnn__names_find(&b.model->words, carnn__span_of("zork")), CARNN__NO_INDEX);
    CHECK(class_of_words(&b, "north south east") != CARNN__NO_INDEX);
    CHECK_INT(m->read.exchange.names.of[0], CARNN__NO_INDEX);
    close_batch(&b);
}

/* What is a name, and which names are of one class: rule by rule. */
static void test_rules(void) {
    static const char call[] = "api_call f f f f f f f f f f f f f f";
    static guide g;
    guided_batch b;
    carnn_model *model = NULL;
    carnn_model_desc desc;
    carnn_error error;
    uint32_t red, north;
    char text[512], candidates[256];
    carnn__dialog *m;
    const carnn__name_classes *e;
    size_t i, k, differ = 0;
    g.length = 0;
    *g.candidates = 0;
    for (i = 0; i < 2; i++) { /* rarer words are unknown */
        *g.candidates = 0;
        also(&g, "1 he likes it\thello\n\n", "1 hello\n");
        told_words(&g, "r_color", "paint ", "red blue green violet amber 7");
        told_words(&g, "r_place", "go ", "north south west violet amber");
        told_words(&g, "r_half", "half ", "half1 half2 half3 half4");
        told_words(&g, "r_other", "other ", "half3 half4 other1 other2");
        told_words(&g, "r_few", "few ", "half1 few1");
        told_words(&g, "likes", "have ", "tea jam");
        told_words(&g, "r_one", "one ", "solo");
        told_words(&g, "r_say", "", "yes no");
        told_words(&g, "r_d", "take ", "dome dune");
        told_words(&g, "r_e", "take ", "edge east");
        told_words(&g, "r_size", "wide ", "foot yard");
        told_words(&g, "r_many", "tell ", "m1 m2");
        told_words(&g, "r_late", "late ", "late1 late2");
        also(&g, "1 hm\tlate late2\n\n", ""); /* which the dialog before has said last */
        /* one of twelve names, whose replies come too early in one of fourteen */
        told_words(&g, "r_most", "most ", "n1 n2 n3 n4 n5 n6 n7 n8 n9 n10 n11 n12");
        also(&g, "1 it r_most n1\n", "");
        for (k = 0; k < 12; k++) also(&g, "2 hm\tmost n1\n", "");
        also(&g, "\n1 hm\tmost n1\n\n", "");
        /* facts of four words; a relation as an object, a call among facts; names of which nobody
           speaks */
        also(&g, "1 it r_owns car now\n2 it r_owns cart now\n3 hm\ta car\n4 hm\ta cart\n\n",
             "1 a car\n1 a cart\n");
        also(&g, "1 it r_size r_size\n2 api_call zza apple\n3 api_call zza berry\n"
                 "4 it r_many m3\n5 it r_many m4\n6 it r_many m5\n7 it r_many m6\n"
                 "8 it r_many m7\n9 it r_many m8\n10 it r_many m9\n11 it r_many m10\n"
                 "12 it r_many m11\n13 hm\teat apple\n14 hm\teat berry\n\n"
                 "1 hm\ttell m2\n\n",
             "1 wide r_size\n1 eat apple\n1 eat berry\n1 tell m3\n1 tell m4\n1 tell m5\n"
             "1 tell m6\n1 tell m7\n1 tell m8\n1 tell m9\n1 tell m10\n1 tell m11\n"
             "1 it is red\n1 want red now\n1 live in north now\n1 it is north\n");
        snprintf(text, sizeof text, "1 f left1 over1\t%s left1 over1\n2 f left2 over2\t%s left2 "
                                    "over2\n\n", call, call);
        snprintf(candidates, sizeof candidates, "1 %s left1 over1\n1 %s left2 over2\n", call,
                 call);
        also(&g, text, candidates);
    }
    also(&g, "1 it r_color rare\n2 hm\tpaint scarce\n\n", "1 paint scarce\n");
    memset(&desc, 0, sizeof desc);
    desc.task = "dialog";
    desc.hidden = 8;
    desc.min_count = 2;
    desc.unsure = "what ?";
    b.data = load_guide(&g);
    CHECK_INT(carnn_model_create(&model, &desc, b.data, &error), CARNN_OK);
    CHECK(carnn__names_find(&model->words, carnn__span_of("scarce")) == CARNN__NO_INDEX);
    m = open_data(&b, b.data, model);
    e = &m->read.exchange.names;
    red = class_of_words(&b, "red blue green");
    north = class_of_words(&b, "north south west");
    CHECK(red != CARNN__NO_INDEX && north != CARNN__NO_INDEX && red != north);
    CHECK(class_of_words(&b, "half1 half2 half3 half4 other1 other2 few1") != CARNN__NO_INDEX);
    CHECK(class_of_words(&b, "dome dune edge east") != CARNN__NO_INDEX); /* share their place */
    CHECK(class_of_words(&b, "yes no") != CARNN__NO_INDEX);
    CHECK(class_of_words(&b, "foot yard") != CARNN__NO_INDEX);
    CHECK(class_of_words(&b, "left1 left2") != CARNN__NO_INDEX);
    CHECK(class_of_words(&b, "n2 n3 n12") != CARNN__NO_INDEX);
    CHECK_INT(class_of_words(&b, "violet amber tea jam car cart now solo apple berry r_size f zza "
                                 "n1 m1 m2 m3 m11 late1 late2 over1 over2 7 $unsure <unk>"),
              CARNN__NO_INDEX);
    for (i = 0; i < 20; i++) { /* where the first of three names comes: each class by itself */
        carnn__exchange_draw(&m->read.exchange, i, 0);
        for (k = 0; k < 3; k++)
            differ += (m->read.exchange.drawn[e->at[red] + k] == e->name[e->at[red]]) !=
                      (m->read.exchange.drawn[e->at[north] + k] == e->name[e->at[north]]);
    }
    CHECK(differ > 0);
    close_batch(&b);
}

/* Objects of as many relations as there are columns are names. */
static void test_many_relations(void) {
    enum { RELATIONS = CARNN__NAME_COLUMNS - CARNN__CALL_SLOTS };
    static guide g;
    guided_batch b;
    carnn_dataset *data;
    char relation[16], words[32];
    int i;
    for (i = 0; i <= RELATIONS; i++) {
        snprintf(relation, sizeof relation, "r_%d", i);
        snprintf(words, sizeof words, "a%d b%d", i, i);
        told_words(&g, relation, "say ", words);
    }
    data = load_guide(&g);
    open_data(&b, data, guide_model(data, 1));
    for (i = 0; i <= RELATIONS; i++) {
        snprintf(words, sizeof words, "a%d b%d", i, i);
        CHECK_INT(class_of_words(&b, words), i < RELATIONS ? 0 : CARNN__NO_INDEX);
    }
    close_batch(&b);
}

/* Where candidates name classes of replies, the words that the system says tell the names: without
   them no reply has any. They count where the dialog goes on (1) and where it ends (2). */
static void test_classes_of_replies(void) {
    size_t spoken, i;
    for (spoken = 0; spoken < 3; spoken++) {
        char text[4096];
        size_t size = 0;
        guided_batch b;
        carnn_dataset *data;
        const carnn__dialog *m;
        for (i = 0; i < 16; i++) {
            const char *tree = trees[i % 8], *place = places[i % 4];
            size += (size_t)sprintf(text + size, "1 %s R_place %s\n2 where is it\t<place>", tree,
                                    place);
            if (spoken) size += (size_t)sprintf(text + size, "\t%s is in the %s", tree, place);
            if (spoken < 2) size += (size_t)sprintf(text + size, "\n3 thanks\t<welcome>");
            size += (size_t)sprintf(text + size, "\n\n");
        }
        data = test_data("dialog", text, size, 0, 0);
        m = open_data(&b, data, guide_model(data, 1));
        CHECK_INT(m->read.exchange.names.classes, spoken ? 2 : 0);
        close_batch(&b);
    }
}

/* Data of another origin, with a reply that is no candidate. */
static void test_other_replies(void) {
    static const char text[] = "1 hello\tnobody knows oak\n2 hello\tthere is elm\n";
    guided_batch b;
    carnn_dataset *known = guide_data(KNOWN);
    carnn__dialog *m = open_data(&b, test_data("dialog", text, sizeof text - 1, 0, 0),
                                 guide_model(known, 1));
    carnn__history_collect(&b.w.work, &m->read, 0, 11);
    CHECK_INT(m->read.turns, 2);
    CHECK(m->read.answer[0] == CARNN__NO_INDEX && m->read.answer[1] < b.model->choices.count);
    close_batch(&b);
    carnn_dataset_free(known);
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
    const carnn__name_classes *e = &m->read.exchange.names;
    const carnn__corpus *c = &m->net.corpus;
    size_t V = model->words.count, L = model->choices.count, i, line, item, n;
    size_t changed = 0, told = 0;
    uint32_t *image = (uint32_t *)malloc(2 * V * sizeof *image), *once = image + V;
    carnn__history_collect(&batch.w.work, &m->read, 0, 11);
    CHECK_INT(m->read.turns, data->item_count);
    CHECK(m->read.choices.count > L);
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
            for (i = 0; i < CARNN__MARKS && m->read.seq[line] < c->tokens.count; i++) {
                size_t marked = i != CARNN__SAID;
                if (marked && carnn__history_mark_of(&m->read, line) == CARNN__SAID) continue;
                told += marked;
                words = carnn__list_at(&m->read.lists, m->read.place[line][i]);
                n = carnn__list_length(&c->tokens, m->read.seq[line]);
                CHECK_INT(words.length, n);
                check_images(names, words.ids, n - marked, &c->tokens, m->read.seq[line]);
                if (marked) CHECK_INT(words.ids[n - 1], CARNN__DIALOG_SPEAKER + i);
            }
        words = carnn__list_at(names->choices, m->read.answer[item]);
        CHECK_INT(words.length, carnn__list_length(&m->read.candidates, c->target[item]));
        check_images(names, words.ids, words.length, &m->read.candidates, c->target[item]);
        CHECK(m->read.answer[item] < names->choices->count);
    }
    CHECK(changed > 0);
    CHECK_INT(told, data->item_count / 5 * 4 * 2);
    for (i = L; i < names->choices->count; i++) /* no reply is there twice */
        CHECK_INT(*carnn__exchange_slot(names, i), i);
    carnn__exchange_draw(names, 11, 0); /* the next dialog has another permutation */
    memcpy(image, names->image, V * sizeof *image);
    carnn__exchange_draw(names, 11, 5);
    CHECK(memcmp(image, names->image, V * sizeof *image) != 0);
    carnn__history_collect(&batch.w.work, &m->read, 0, 12); /* the batch before is forgotten */
    for (i = n = 0; i < names->slots; i++) {
        if (names->slot[i] == CARNN__NO_INDEX) continue;
        CHECK(names->slot[i] < names->choices->count);
        n++;
    }
    CHECK_INT(n, names->choices->count);
    free(image);
    close_batch(&batch);
}

/* Where names are exchanged utterances have no dropout, the summary of a history has. */
static void test_no_dropout(void) {
    guided_batch batch;
    carnn__dialog *m = open_batch(&batch, KNOWN);
    float *e, *o;
    size_t bytes, rows = CARNN__DIALOG_CHUNK / 2 * 32 * sizeof(float);
    memset(&batch.w.tally, 0, sizeof batch.w.tally);
    carnn__net_batch(&batch.w.work, 0, 11, &batch.w.tally);
    bytes = m->read.lists.count * 32 * sizeof(float);
    e = (float *)malloc(bytes);
    o = (float *)malloc(rows);
    memcpy(e, m->e.x, bytes);
    memcpy(o, m->o.x, rows);
    batch.w.work.dropout = 0.5;
    carnn__net_batch(&batch.w.work, 0, 11, &batch.w.tally);
    CHECK(!memcmp(e, m->e.x, bytes));
    CHECK(memcmp(o, m->o.x, rows) != 0);
    free(e);
    free(o);
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
    /* match 2 copies names without an exchange, too */
    const char *options = "hidden=32 embedding=32 exchange=0 match=1";
    carnn_model *model = exchange ? guide_model(data, 1)
                                  : test_model("dialog", options, NULL, data);
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

/* Without match 2 only exchanged names teach it to copy those of which no dialog has told it. */
static void test_copies(void) {
    uint64_t one, two, without;
    double copied = learn(1, 1, &one), again = learn(1, 2, &two), known = learn(0, 1, &without);
    CHECK(TEST_SANITIZED || (copied == 1.0 && known < 0.75));
    CHECK(copied == again && one == two);
}

/* Vectors of the speakers are not learnt from exchanged names, but otherwise. */
static void test_speakers(void) {
    size_t i, k;
    for (k = 0; k < 2; k++) {
        carnn_dataset *data = guide_data(KNOWN);
        carnn_model *model = guide_model(data, (int)k);
        carnn_train_desc train = test_training(1, 20, 0.0, CARNN_NONE);
        const float *S = carnn__named(&model->params, "reply.speaker");
        size_t learnt = 0;
        CHECK_INT(carnn_train(model, data, NULL, &train, NULL), CARNN_OK);
        for (i = 0; i < 4 * 32; i++) learnt += S[i] != 0.0f;
        CHECK_INT(learnt, k ? 0 : 4 * 32);
        carnn_model_free(model);
        carnn_dataset_free(data);
    }
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
    test_unknown_word();
    test_rules();
    test_many_relations();
    test_classes_of_replies();
    test_other_replies();
    test_permutations();
    test_no_dropout();
    test_gradient();
    test_copies();
    test_speakers();
    test_nothing();
    return test_end();
}
