/* Tells gestures while they are made: a row is the velocity of a hand, and after each row a session
   says what it looks like so far, in the same few KiB and time however long a gesture goes on. The
   model is trained on gestures that the program makes up. Run: build/gesture */
#define CARNN_IMPLEMENTATION
#include "../carnn.h"

enum { GESTURES = 3, EXAMPLES = 300, ROWS = 24, BYTES = 40 };

static const char *const names[GESTURES] = {"circle", "wave", "lift"};
static uint32_t chance = 1;

static float tremor(void) { /* -0.4 to 0.4 */
    chance = chance * 1664525u + 1013904223u;
    return (float)(chance >> 8) / 16777216.0f * 0.8f - 0.4f;
}

/* Row t of a gesture: the hand rests for four rows first. */
static void move(int gesture, int t, float row[2]) {
    float angle = 0.4f * (float)t;
    row[0] = t < 4 || gesture == 2 ? 0.0f : gesture == 0 ? cosf(angle) : t / 4 % 2 ? 1.0f : -1.0f;
    row[1] = t < 4 || gesture == 1 ? 0.0f : gesture == 0 ? sinf(angle) : 1.0f;
    row[0] += tremor();
    row[1] += tremor();
}

/* A data set from memory: lines with the name of a gesture and all its numbers; some end early. */
static carnn_status learn(carnn_model **model, carnn_error *error) {
    static char text[EXAMPLES * (ROWS + 1) * BYTES];
    carnn_source source = {"gestures", text, 0};
    carnn_model_desc desc = {.task = "signal", .hidden = 32};
    carnn_dataset_desc what = {.task = "signal", .sources = &source, .source_count = 1,
                               .model = &desc};
    carnn_dataset *data = NULL;
    carnn_status status;
    for (int i = 0; i < EXAMPLES; i++) {
        source.size += (size_t)sprintf(text + source.size, "%s", names[i % GESTURES]);
        for (int t = 0; t < ROWS - i % 17; t++) {
            float row[2];
            move(i % GESTURES, t, row);
            source.size += (size_t)sprintf(text + source.size, " %.3f %.3f", (double)row[0],
                                           (double)row[1]);
        }
        text[source.size++] = '\n';
    }
    status = carnn_set(&desc, NULL, "columns", "2", error);
    if (!status) status = carnn_dataset_load(&data, &what, error);
    if (!status) status = carnn_model_create(model, &desc, data, error);
    if (!status) status = carnn_train(*model, data, NULL, &(carnn_train_desc){0}, error);
    carnn_dataset_free(data);
    return status;
}

/* How many new gestures are told rightly at their end; prints each row that changes what is
   told. */
static carnn_status tell(const carnn_model *model, carnn_session *session, int *right,
                         carnn_error *error) {
    for (int gesture = 0; gesture < GESTURES; gesture++) {
        size_t told = GESTURES;
        carnn_session_reset(session); /* another sequence begins */
        for (int t = 0; t < ROWS; t++) {
            carnn_prediction p;
            float row[2];
            move(gesture, t, row);
            if (carnn_session_row(session, row, 2, 1, &p, error)) return error->code;
            if (p.choice[0] != told)
                printf("row %2d  %-6s  %.2f\n", t, carnn_model_choice(model, p.choice[0]),
                       p.probability[0]);
            told = p.choice[0];
        }
        *right += !strcmp(carnn_model_choice(model, told), names[gesture]);
    }
    return CARNN_OK;
}

int main(void) {
    carnn_model *model = NULL;
    carnn_session *session = NULL;
    carnn_error error = {CARNN_OK, 0, ""};
    int right = 0;
    if (learn(&model, &error) || carnn_session_open(&session, model, NULL, &error) ||
        tell(model, session, &right, &error))
        fprintf(stderr, "%s\n", error.message);
    else
        printf("%d of %d gestures told, %zu bytes a session\n", right, GESTURES,
               carnn_session_size(model, NULL));
    carnn_session_free(session);
    carnn_model_free(model);
    return right < GESTURES;
}
