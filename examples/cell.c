/* A recurrent cell of one's own, the minimal gated unit: its functions are in mgu.h, its entry in
   the table is here. Checks its derivatives, then trains a language model with it that has to
   remember the first word of a sentence until the last, where that word comes again.
   Run: build/cell */
#define CARNN_EXTRA_CELL_FILE "examples/mgu.h"
#define CARNN_EXTRA_CELLS(X)                                                                       \
    X(mgu, mgu, "mgu", "minimal gated unit", 2, 2, 0, 2, 0, 3, 0, 0.0f, 0, 0.0f, 0.0f,             \
      CARNN__TWO_STAGES | CARNN__UPDATE_GATE)
#define CARNN_IMPLEMENTATION
#include "../carnn.h"

enum { SENTENCES = 400, BYTES = 40 * SENTENCES };

static const char *const colour[] = {"red", "green", "blue", "white"};

static int show_check(const carnn_check *check, void *user) {
    (void)user;
    printf("%s: %d derivatives, largest error %.1e, limit %.1e: %s\n", check->name,
           (int)check->numbers, check->error, check->limit, check->passed ? "right" : "wrong");
    return !check->passed;
}

/* "blue and red and white is blue": the colours between say nothing. */
static size_t write_sentences(char *text) {
    size_t length = 0, i;
    unsigned draw = 1;
    for (i = 0; i < SENTENCES; i++) {
        const char *first = colour[i % 4];
        draw = draw * 1664525u + 1013904223u;
        length += (size_t)sprintf(text + length, "%s and %s and %s is %s\n", first,
                                  colour[draw >> 30], colour[draw >> 28 & 3], first);
    }
    return length;
}

static carnn_status train(carnn_model **model, carnn_error *error) {
    static char text[BYTES];
    carnn_source source = {"sentences", NULL, 0};
    carnn_dataset *data = NULL;
    carnn_dataset_desc what = {0};
    carnn_model_desc desc = {0};
    carnn_train_desc how = {0};
    carnn_status status;
    source.bytes = text;
    source.size = write_sentences(text);
    what.task = desc.task = "lm";
    what.sources = &source;
    what.source_count = 1;
    desc.cell = "mgu";
    desc.hidden = desc.embedding = 32;
    how.epochs = 20;
    how.batch = 16;
    how.lr = 0.01;
    how.dropout = CARNN_NONE;
    status = carnn_dataset_load(&data, &what, error);
    if (!status) status = carnn_model_create(model, &desc, data, error);
    if (!status) status = carnn_train(*model, data, NULL, &how, error);
    carnn_dataset_free(data);
    return status;
}

/* How many of the beginnings the model ends with their first word: of all four words that one
   makes the sentence likeliest. */
static int remembered(carnn_session *session) {
    int first, last, best, right = 0;
    for (first = 0; first < 4; first++) {
        double least = 1e30; /* of -log P */
        for (best = last = 0; last < 4; last++) {
            char line[100];
            carnn_text text = {line, 0};
            carnn_prediction p;
            text.length = (size_t)sprintf(line, "%s and %s and green is %s", colour[first],
                                          colour[3 - first], colour[last]);
            carnn_session_reset(session);
            if (carnn_session_predict(session, &text, 1, 0, &p, NULL) || p.score >= least) continue;
            least = p.score;
            best = last;
        }
        printf("%s and %s and green is %s\n", colour[first], colour[3 - first], colour[best]);
        right += best == first;
    }
    return right;
}

int main(void) {
    carnn_model *model = NULL;
    carnn_session *session = NULL;
    carnn_error error = {CARNN_OK, 0, ""};
    int right = 0;
    if (carnn_gradcheck("mgu", 1, show_check, NULL, &error) || train(&model, &error) ||
        carnn_session_open(&session, model, NULL, &error)) {
        fprintf(stderr, "%s\n", error.message);
    } else {
        right = remembered(session);
        printf("%d of 4 first words remembered\n", right);
    }
    carnn_session_free(session);
    carnn_model_free(model);
    return right == 4 ? 0 : 1;
}
