/* A task of one's own: a label for every word of a sentence.

     x_1 .. x_n = [fw; bw](E w_1 .. E w_n)     P(label of word i) = softmax(W x_i + b)

   `tag_task` adds it to the library's tasks: training, model files, predictions, sessions and the
   gradient check work with it. Trains on six sentences and labels a seventh. Run: build/tagger */
#define CARNN_EXTRA_HEADS(X) X(tag_task)
#define CARNN_IMPLEMENTATION
#include "../carnn.h"

/* --- data: "words<TAB>labels", as many labels as words, or words alone ------------------------ */

enum { TAG_WORDS, TAG_LABELS }; /* the roles of an example's texts */
static const carnn__role tag_roles[] = {
    {"words", CARNN__SPACES, 0},
    {"labels", CARNN__SPACES, CARNN__LABELS},
    {NULL, CARNN__SPACES, 0}};

/* What a lenient parser reads is only to be labelled: it needs no labels. */
static carnn_status tag_line(carnn__parser *p, carnn__record *r) {
    carnn__span labels = p->lines.line, words;
    int labelled = carnn__cut(&labels, '\t', &words) && !p->lenient;
    if (!carnn__says_something(p)) return CARNN_OK;
    if (labelled &&
        carnn__count_words(CARNN__SPACES, words) != carnn__count_words(CARNN__SPACES, labels))
        return carnn__unexpected(p, "a label for each word", labels);
    r->begins = r->example = 1;
    carnn__record_text(r, TAG_WORDS, words);
    if (labelled) carnn__record_text(r, TAG_LABELS, labels);
    return CARNN_OK;
}

/* --- the head: a list of parts, forward, backward --------------------------------------------- */

typedef struct tag_head {
    carnn__net net; /* what every head begins with: the batch at hand */
    carnn__embed words;
    carnn__rnn encoder;
    carnn__linear output;
    uint32_t *target; /* (R) the label of each word of the batch */
} tag_head;

static void tag_parts(carnn__plan *p, void *state) {
    tag_head *m = (tag_head *)state;
    const carnn_model_desc *d = &p->model->desc;
    carnn__texts *t = &m->net.texts;
    carnn__rnn_shape shape = {.cell = carnn__cell_number(d->cell), .directions = 2,
                              .layers = (size_t)d->layers, .in = (size_t)d->embedding,
                              .h = (size_t)d->hidden};
    carnn__texts_plan(p, t, 1u << TAG_WORDS, 1, NULL); /* equal sentences are read once */
    m->words.table = carnn__declare_words(p, 0.1f);
    carnn__embed_plan(p, &m->words, t, 0);
    carnn__rnn_plan(p, &m->encoder, "cell", shape, t->most_inputs, t->most_rows, t->most_texts);
    carnn__linear_plan(p, &m->output, "output", "weight", t->most_rows, 2 * shape.h,
                       p->model->choices.count, 1, CARNN__LOGITS);
    m->target = carnn__indices(p->arena, t->most_rows);
}

static void tag_forward(carnn__work *work, uint64_t key) {
    tag_head *m = (tag_head *)work->state;
    const carnn__texts *t = &m->net.texts;
    const carnn__corpus *c = &m->net.corpus;
    size_t b, i;
    for (b = 0; b < t->count; b++) { /* item b has one text, with rows at[b] .. at[b + 1] - 1 */
        const carnn__item *x = &work->data->items[t->item[b]];
        size_t label = x->count > TAG_LABELS ? c->tokens.at[c->list[x->first + TAG_LABELS]] : 0;
        for (i = t->at[b]; i < t->at[b + 1]; i++)
            m->target[i] = x->count > TAG_LABELS ? c->tokens.ids[label++] : CARNN__NO_INDEX;
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

static carnn__logits tag_output(const carnn__work *work) { /* one decision a word */
    const tag_head *m = (const tag_head *)work->state;
    const carnn__texts *t = &m->net.texts;
    return (carnn__logits){CARNN__OUTPUT_SOFTMAX, &m->output.y, carnn__texts_rows(t), t->at,
                           t->item, t->count, m->target};
}

const carnn__task tag_task = {
    .name = "tag", .title = "label every word", .roles = tag_roles,
    .reader = &(carnn__reader){tag_line, "a sentence", .help = "words<TAB>labels, a line each"},
    .defaults = "cell=gru hidden=24 epochs=60 batch=2", .choices_key = "carnn.labels",
    .build = carnn__net_build, .state = sizeof(tag_head), .parts = tag_parts,
    .limits = {.piece = 1, .size = {4096, 0}}, .forward = tag_forward, .output = tag_output,
    .backward = tag_backward, .metric = {{"accuracy", 0, 0, 0}},
    .session = &carnn__net_session,
    .sample = "the dog runs\tD N V\na cat sees the dog\tD N V D N\nruns\tV\nthe cat\tD N\n"
              "a dog sees a cat\tD N V D N\nthe dog sees\tD N V\n",
    .variants = (const char *const[]){"layers=2", "cell=icarnn", NULL}};

/* --- the program ------------------------------------------------------------------------------ */

static int show_check(const carnn_check *check, void *user) {
    (void)user;
    printf("derivatives of %s: %s\n", check->name, check->passed ? "right" : "wrong");
    return !check->passed;
}

int main(void) {
    carnn_source source = {"sentences", tag_task.sample, strlen(tag_task.sample)};
    carnn_dataset_desc what = {.task = "tag", .sources = &source, .source_count = 1};
    carnn_model_desc desc = {.task = "tag"};
    carnn_dataset *data = NULL;
    carnn_model *model = NULL;
    carnn_session *session = NULL;
    carnn_prediction p;
    carnn_error error = {CARNN_OK, 0, ""};
    size_t i;

    if (carnn_gradcheck("tag", 1, show_check, NULL, &error) ||
        carnn_dataset_load(&data, &what, &error) ||
        carnn_model_create(&model, &desc, data, &error) ||
        carnn_train(model, data, NULL, &(carnn_train_desc){0}, &error) ||
        carnn_session_open(&session, model, NULL, &error) ||
        carnn_session_predict(session, &(carnn_text){"a dog runs", 10}, 1, 1, &p, &error))
        fprintf(stderr, "%s\n", error.message);
    for (i = 0; !error.code && i < p.parts && !carnn_session_part(session, i, &p, &error); i++)
        printf("%s%s", i ? " " : "labels: ", carnn_model_choice(model, p.choice[0]));
    puts("");
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
    return error.code != CARNN_OK;
}
