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

static carnn_status no_language_model(carnn_error *error) {
    strcpy(error->message, "expected a model of the task lm");
    return error->code = CARNN_ERR_ARGUMENT;
}

/* The perplexity of each sentence: of its words and its end. */
static carnn_status score(carnn_session *session, carnn_error *error) {
    char line[BYTES];
    carnn_prediction p;
    while (fgets(line, BYTES, stdin)) {
        carnn_text sentence = {line, strcspn(line, "\r\n")};
        line[sentence.length] = '\0';
        if (!sentence.length) carnn_session_reset(session);
        else if (carnn_session_predict(session, &sentence, 1, 0, &p, error)) return error->code;
        else if (p.kind != CARNN_PREDICTS_LIKELIHOOD) return no_language_model(error);
        else printf("%8.2f  %s\n", exp(p.score / (double)p.tokens), line);
    }
    return CARNN_OK;
}

static carnn_status generate(carnn_session *session, uint64_t seed, carnn_error *error) {
    char text[BYTES];
    carnn_sampling how = {0};
    int i;
    how.temperature = 0.8;
    how.seed = seed;
    for (i = 0; i < SAID; i++) {
        if (carnn_session_generate(session, &how, "", 0, text, sizeof text, error))
            return error->code;
        printf("says: %s\n", text);
    }
    return CARNN_OK;
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
    if (error.code || carnn_session_open(&session, model, NULL, &error) ||
        score(session, &error) ||
        generate(session, argc == 3 ? strtoull(argv[2], NULL, 10) : 1, &error))
        fprintf(stderr, "%s\n", error.message);
    carnn_session_free(session);
    carnn_model_free(model);
    return error.code ? 1 : 0;
}
