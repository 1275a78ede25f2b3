/* Trains a dialog model on the sample data, keeps it in a file and asks it something.
   In the top folder: `make build/train` compiles it (and so for the other examples); or
   mkdir -p build && cc -std=c99 -O2 -o build/train examples/train.c -lm -lpthread
   Run from the top folder: build/train [model file] */
#define CARNN_IMPLEMENTATION
#include "../carnn.h"

static int show(const carnn_progress *p, void *user) {
    (void)user;
    if (p->epoch_ended)
        printf("epoch %2d  loss %.3f  accuracy %.3f\n", (int)p->epoch, p->loss,
               p->scores ? p->scores->metric[0].value : 0.0); /* NULL: nothing to validate on */
    return 0; /* anything else stops the training */
}

/* Reads one data set of the task dialog. */
static carnn_status load(carnn_dataset **data, const char *file, carnn_error *error) {
    static const carnn_source candidates = {"data/dialog-candidates.txt", NULL, 0};
    carnn_source source = {NULL, NULL, 0};
    carnn_dataset_desc desc = {0};
    source.name = file;
    desc.task = "dialog";
    desc.sources = &source;
    desc.source_count = 1;
    desc.candidates = &candidates;
    return carnn_dataset_load(data, &desc, error);
}

int main(int argc, char **argv) {
    const char *file = argc > 1 ? argv[1] : "build/example.gguf";
    const char *question = "hello, i want to go to the station", *reply;
    carnn_model_desc desc = {.task = "dialog", .cell = "icarnn", .hidden = 64, .seed = 1};
    carnn_train_desc training = {.epochs = 4, .threads = 2, .progress = show};
    carnn_dataset *train = NULL, *valid = NULL;
    carnn_model *model = NULL;
    carnn_session *session = NULL;
    carnn_error error = {CARNN_OK, 0, ""};

    if (load(&train, "data/dialog-train.txt", &error) ||
        load(&valid, "data/dialog-dev.txt", &error) ||
        carnn_model_create(&model, &desc, train, &error) ||
        carnn_train(model, train, valid, &training, &error) ||
        carnn_model_save(model, file, &error) ||
        carnn_session_open(&session, model, NULL, &error) ||
        carnn_session_reply(session, question, strlen(question), &reply, &error))
        fprintf(stderr, "%s\n", error.message);
    else
        printf("you: %s\nbot: %s\n", question, reply);
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(valid);
    carnn_dataset_free(train);
    return error.code ? 1 : 0;
}
