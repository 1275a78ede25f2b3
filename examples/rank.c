/* Ranks sentences, a line each of standard input, as answers to a question, and tells which words
   of the best one weighed most. Without a model file of that name it trains a small one on the
   sample questions before. Run: build/rank MODEL QUESTION < sentences */
#define CARNN_IMPLEMENTATION
#include "../carnn.h"

enum { SENTENCES = 1000, BYTES = 1024, WORDS = 1024 };

static char sentence[SENTENCES][BYTES];

static carnn_status train(carnn_model **model, const char *name, carnn_error *error) {
    carnn_source file = {"data/answer-train.tsv", NULL, 0};
    carnn_dataset *data = NULL;
    carnn_dataset_desc what = {0};
    carnn_model_desc desc = {0};
    carnn_train_desc how = {0};
    carnn_status status;
    what.task = desc.task = "answer";
    what.sources = &file;
    what.source_count = 1;
    desc.hidden = 16;
    how.epochs = 2;
    status = carnn_dataset_load(&data, &what, error);
    if (!status) status = carnn_model_create(model, &desc, data, error);
    if (!status) status = carnn_train(*model, data, NULL, &how, error);
    if (!status) status = carnn_model_save(*model, name, error);
    carnn_dataset_free(data);
    return status;
}

/* How well a sentence answers the question. */
static carnn_status match(carnn_session *session, const char *question, const char *answer,
                          double *score, carnn_error *error) {
    carnn_text pair[2] = {{NULL, 0}, {NULL, 0}};
    carnn_prediction p;
    pair[0].at = question, pair[0].length = strlen(question);
    pair[1].at = answer, pair[1].length = strlen(answer);
    if (!carnn_session_predict(session, pair, 2, 0, &p, error)) *score = p.score;
    return error->code;
}

/* The words of the last sentence and their weights. */
static carnn_status explain(carnn_session *session, carnn_error *error) {
    static carnn_contribution word[WORDS];
    carnn_explanation e;
    size_t i;
    if (carnn_session_explain(session, WORDS, word, &e, error)) return error->code;
    for (i = 0; i < e.count && i < WORDS; i++)
        if (!strcmp(word[i].role, "sentence"))
            printf("%8.4f  %s\n", word[i].attention, word[i].text);
    return CARNN_OK;
}

int main(int argc, char **argv) {
    carnn_source file = {NULL, NULL, 0};
    carnn_model *model = NULL;
    carnn_session *session = NULL;
    carnn_error error = {CARNN_OK, 0, ""};
    double score = 0.0, best_score = -1e30;
    size_t count = 0, best = 0, i;
    FILE *there;

    if (argc != 3) {
        fprintf(stderr, "usage: %s MODEL QUESTION < sentences\n", argv[0]);
        return 2;
    }
    file.name = argv[1];
    there = fopen(argv[1], "rb");
    if (there) fclose(there);
    if (there) carnn_model_load(&model, &file, NULL, &error);
    else train(&model, argv[1], &error);
    if (!error.code) carnn_session_open(&session, model, NULL, &error);
    while (!error.code && count < SENTENCES && fgets(sentence[count], BYTES, stdin)) {
        sentence[count][strcspn(sentence[count], "\r\n")] = '\0';
        carnn_session_candidate(session, sentence[count], strlen(sentence[count]), &error);
        count++;
    }
    for (i = 0; !error.code && i < count; i++) {
        if (match(session, argv[2], sentence[i], &score, &error)) break;
        printf("%+.4f  %s\n", score, sentence[i]);
        if (score > best_score) best_score = score, best = i;
    }
    if (!error.code && count) {
        printf("best: %s\n", sentence[best]);
        if (!match(session, argv[2], sentence[best], &score, &error)) explain(session, &error);
    }
    if (error.code) fprintf(stderr, "%s\n", error.message);
    carnn_session_free(session);
    carnn_model_free(model);
    return error.code ? 1 : 0;
}
