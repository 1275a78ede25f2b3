/* A task of one's own: a label for every word of a sentence (tagging).

     x_1 .. x_n = [fw; bw](E w_1 .. E w_n)     P(label of word i) = softmax(W x_i + b)

   carnn.h does not have this task. The entry below adds it, with a reader, a sample and the
   gradients; training with early stopping, checkpoints, model files, sessions and the gradient
   check come with the header.

       cc examples/tagger.c -I. -lm -lpthread -o tagger && ./tagger */

#define CARNN_EXTRA_HEADS(X) X(tag_task)
#define CARNN_IMPLEMENTATION
#include "carnn.h"

#include <stdio.h>

/* --- reader: words<TAB>labels, as many; without a tab words alone ----------------------------- */

static carnn_status tag_line(carnn__parser *p, carnn__record *r) {
    carnn__span labels = p->lines.line, words, word;
    long more = 0;
    if (!carnn__says_something(p)) return CARNN_OK;
    r->begins = r->example = 1;
    r->own = 1;
    if (carnn__cut(&labels, '\t', &words)) {
        carnn__span w = words, l = labels;
        do more += carnn__cut(&w, ' ', &word) != 0;
        while (w.length);
        do more -= carnn__cut(&l, ' ', &word) != 0;
        while (l.length);
        if (more) return carnn__unexpected(p, "a label for each word", labels);
        r->own = 2;
    }
    carnn__record_text(r, 0, words);
    if (r->own == 2) carnn__record_text(r, 1, labels);
    return CARNN_OK;
}

static const carnn__reader tag_reader = {tag_line, "a sentence", 0, 0, NULL,
                                         "words<TAB>labels, with blanks between them"};
static const carnn__role tag_roles[] = {
    {"word", CARNN__SPACES, 0}, {"label", CARNN__SPACES, 1}, {NULL, CARNN__SPACES, 0}};

/* --- the head ------------------------------------------------------------------------------------ */

typedef struct tag_head {
    carnn__net net; /* first, in every head */
    carnn__embed words;
    carnn__rnn encoder;
    carnn__linear output;
    size_t *first;    /* (B + 1) the first word of each sentence */
    uint32_t *target; /* (R) */
} tag_head;

static void tag_defaults(carnn_model_desc *model, carnn_train_desc *train) {
    if (!model->cell) model->cell = "gru";
    if (!model->hidden) model->hidden = 24;
    if (!model->embedding) model->embedding = 24;
    if (!model->layers) model->layers = 1;
    if (!model->min_count) model->min_count = 1;
    if (!train->epochs) train->epochs = 30;
    if (!train->batch) train->batch = 4;
    if (train->lr == 0.0) train->lr = 0.01;
}

static void tag_parts(carnn__plan *p, void *state) {
    tag_head *m = (tag_head *)state;
    const carnn_model_desc *d = &p->model->desc;
    carnn__texts *t = &m->net.texts;
    size_t h = (size_t)d->hidden;
    carnn__rnn_shape s = {carnn__cell_number(d->cell), (size_t)d->layers, 2, (size_t)d->embedding,
                          h, 0};
    carnn__texts_plan(p, t, 1, 1, NULL);
    m->words.table = carnn__declare_words(p);
    carnn__embed_plan(p, &m->words, t, 0);
    carnn__rnn_plan(p, &m->encoder, "cell", s, t->most_inputs, t->most_rows, t->most_texts);
    carnn__linear_plan(p, &m->output, "output", "weight", t->most_rows, 2 * h,
                       p->model->choices.count, 1, CARNN__LOGITS);
    if (!p->arena) return;
    m->first = (size_t *)carnn__take(p->arena, t->most_items + 1, sizeof(size_t));
    m->target = (uint32_t *)carnn__take(p->arena, t->most_rows, sizeof(uint32_t));
}

static void tag_forward(carnn__work *work, uint64_t key) {
    tag_head *m = (tag_head *)work->state;
    const carnn__texts *t = &m->net.texts;
    const carnn__corpus *c = &m->net.corpus;
    size_t b, i;
    for (b = 0; b <= t->count; b++) m->first[b] = t->at[b]; /* one text an item */
    for (b = 0; b < t->count; b++) {
        const carnn__item *x = &work->data->items[t->item[b]];
        const uint32_t *label = x->count > 1 ? c->tokens.ids + c->tokens.at[c->list[x->first + 1]]
                                             : NULL;
        for (i = t->at[b]; i < t->at[b + 1]; i++)
            m->target[i] = label ? label[i - t->at[b]] : CARNN__NOWHERE;
    }
    carnn__embed_forward(work, &m->words, t);
    carnn__rnn_forward(work, &m->encoder, carnn__texts_read(t, &m->words.y, NULL), key);
    carnn__linear_forward(work, &m->output, carnn__rnn_output(&m->encoder), carnn__texts_rows(t));
}

static void tag_backward(carnn__work *work, uint64_t key) {
    tag_head *m = (tag_head *)work->state;
    const carnn__texts *t = &m->net.texts;
    carnn__linear_backward(work, &m->output, carnn__rnn_output(&m->encoder), carnn__texts_rows(t));
    carnn__rnn_backward(work, &m->encoder, carnn__texts_read(t, &m->words.y, NULL), key);
    carnn__embed_backward(work, &m->words, t);
}

static carnn__logits tag_output(const carnn__work *work) {
    const tag_head *m = (const tag_head *)work->state;
    const carnn__texts *t = &m->net.texts;
    carnn__logits o = {CARNN__OUTPUT_SOFTMAX, &m->output.y, carnn__texts_rows(t), m->first,
                       t->item, t->count, m->target};
    return o;
}

static const char tag_sample[] = "the dog runs\tD N V\na cat sees the dog\tD N V D N\nruns\tV\n"
                                 "the cat\tD N\na dog sees a cat\tD N V D N\nthe dog sees\tD N V\n";
static const char *const tag_variants[] = {"hidden=19 embedding=17 cell=lstm layers=2",
                                           "hidden=19 embedding=17", NULL};

const carnn__task tag_task = {
    "tag", "a label for every word", &tag_reader, tag_roles, NULL, tag_defaults, "carnn.labels",
    NULL, 0, carnn__net_build, NULL, sizeof(tag_head), tag_parts, NULL, NULL,
    {1, {4096, 0}, 0}, NULL, NULL, tag_forward, tag_output, NULL, tag_backward, NULL, NULL,
    {{"accuracy", 0, 0}, {NULL, 0, 0}}, NULL, NULL, &carnn__net_session, NULL,
    tag_sample, tag_variants, NULL};

/* --- a program -------------------------------------------------------------------------------------- */

static int checked(const carnn_check *check, void *user) {
    printf("gradients of %s: %s\n", check->name, check->passed ? "right" : "wrong");
    *(int *)user |= !check->passed;
    return 0;
}

int main(void) {
    carnn_source source = {"sample", tag_sample, sizeof tag_sample - 1};
    carnn_dataset_desc data_desc = {0};
    carnn_model_desc desc = {0};
    carnn_train_desc training = {0};
    carnn_text text = {"a dog runs", 10};
    carnn_dataset *data;
    carnn_model *model;
    carnn_session *session;
    carnn_prediction p;
    carnn_error error;
    char label[64];
    size_t i;
    int wrong = 0;
    data_desc.task = desc.task = "tag";
    data_desc.sources = &source;
    data_desc.source_count = 1;
    if (carnn_gradcheck("tag", 1, checked, &wrong, &error) ||
        carnn_dataset_load(&data, &data_desc, &error) ||
        carnn_model_create(&model, &desc, data, &error) ||
        carnn_train(model, data, NULL, &training, &error) ||
        carnn_session_open(&session, model, NULL, &error) ||
        carnn_session_predict(session, &text, 1, 1, &p, &error)) {
        puts(error.message);
        return 1;
    }
    for (i = 0; i < p.parts && !carnn_session_part(session, i, &p, &error); i++) {
        carnn_prediction_text(model, &p, 0, label, sizeof label);
        printf("%s ", label);
    }
    printf("for \"%s\"\n", text.at);
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
    return wrong;
}
