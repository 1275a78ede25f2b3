/* Two threads answer at the same time from one const model, each in a session of its own.
   Run: build/threads MODEL */
#define CARNN_IMPLEMENTATION
#include "../carnn.h"

typedef struct job {
    const carnn_model *model;
    const char *question;
    const char *answer;
    carnn_error error;
} job;

static void *work(void *argument) {
    job *j = (job *)argument;
    carnn_session *session;
    if (!carnn_session_open(&session, j->model, NULL, &j->error)) {
        carnn_session_reply(session, j->question, strlen(j->question), &j->answer, &j->error);
        carnn_session_free(session); /* the answer belongs to the model */
    }
    return NULL;
}

int main(int argc, char **argv) {
    carnn_source file = {NULL, NULL, 0};
    carnn_model *model = NULL;
    carnn_error error = {CARNN_OK, 0, ""};
    job jobs[2] = {{NULL, "hello", NULL, {CARNN_OK, 0, ""}},
                   {NULL, "thank you", NULL, {CARNN_OK, 0, ""}}};
    pthread_t threads[2];
    int i, failed = 0;

    if (argc != 2) {
        fprintf(stderr, "usage: %s MODEL\n", argv[0]);
        return 2;
    }
    file.name = argv[1];
    if (carnn_model_load(&model, &file, NULL, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    for (i = 0; i < 2; i++) {
        jobs[i].model = model;
        if (pthread_create(&threads[i], NULL, work, &jobs[i])) {
            fprintf(stderr, "no thread could be started\n");
            return 1; /* ends the other one, too */
        }
    }
    for (i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        failed |= jobs[i].error.code != CARNN_OK;
        printf("%s -> %s\n", jobs[i].question, jobs[i].error.code ? jobs[i].error.message
                                                                  : jobs[i].answer);
    }
    carnn_model_free(model);
    return failed;
}
