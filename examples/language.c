/* Scores sentences, a line each of standard input, by how well they go on from the one before (an
   empty line begins a new text), then says a few sentences that go on from the last. Without a
   model file of that name it trains a small one on the sample conversations before.
   Run: build/language MODEL [SEED] < sentences */
#define CARNN_IMPLEMENTATION
#include "../carnn.h"

enum { BYTES = 1024, SAID = 3 };

static carnn_status train(carnn_model **model, const char *name, carnn_error *error) {
    carnn_source file = {"data/lm-train.txt", NULL, 0};
    carnn_dataset *data = NULL;
    carnn_dataset_desc what = {0};
    carnn_model_desc desc = {0};
    carnn_train_desc how = {0};
    carnn_status status;
    what.task = desc.task = "lm";
    what.sources = &file;
    what.source_count = 1;
    desc.cell = "icarnn";
    desc.hidden = desc.embedding = 32;
    how.epochs = 4;
    status = carnn_dataset_load(&data, &what, error);
    if (!status) status = carnn_model_create(model, &desc, data, error);
    if (!status) status = carnn_train(*model, data, NULL, &how, error);
    if (!status) status = carnn_model_save(*model, name, error);
    carnn_dataset_free(data);
    return status;
}

/* The perplexity of each sentence: of its words and its end. */
static void score(carnn_session *session) {
    char line[BYTES];
    double nll;
    while (fgets(line, BYTES, stdin)) {
        size_t tokens, length = strcspn(line, "\r\n");
        line[length] = '\0';
        if (!length) carnn_session_reset(session);
        if (!length) continue;
        tokens = carnn_session_score(session, line, length, &nll);
        printf("%8.2f  %s\n", exp(nll / (double)tokens), line);
    }
}

static void generate(carnn_session *session, uint64_t seed) {
    char text[BYTES];
    carnn_sampling how = {0};
    int i;
    how.temperature = 0.8;
    how.seed = seed;
    for (i = 0; i < SAID; i++) {
        carnn_session_generate(session, &how, "", 0, text, sizeof text);
        printf("says: %s\n", text);
    }
}

int main(int argc, char **argv) {
    carnn_source file = {NULL, NULL, 0};
    carnn_model *model = NULL;
    carnn_session *session = NULL;
    carnn_error error = {CARNN_OK, 0, ""};
    FILE *there;

    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: %s MODEL [SEED] < sentences\n", argv[0]);
        return 2;
    }
    file.name = argv[1];
    there = fopen(argv[1], "rb");
    if (there) fclose(there);
    if (there) carnn_model_load(&model, &file, NULL, &error);
    else train(&model, argv[1], &error);
    if (!error.code) carnn_session_open(&session, model, NULL, &error);
    if (error.code) fprintf(stderr, "%s\n", error.message);
    if (session) {
        score(session);
        generate(session, argc == 3 ? strtoull(argv[2], NULL, 10) : 1);
    }
    carnn_session_free(session);
    carnn_model_free(model);
    return error.code ? 1 : 0;
}
