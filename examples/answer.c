/* Loads a model and answers standard input line by line. The session lives in memory that this
   program owns: after it is open nothing is allocated. Run: build/answer MODEL < utterances */
#define CARNN_IMPLEMENTATION
#include "../carnn.h"

int main(int argc, char **argv) {
    static char line[4096];
    carnn_source file = {NULL, NULL, 0};
    carnn_model *model = NULL;
    carnn_session *session = NULL;
    carnn_error error = {CARNN_OK, 0, ""};
    carnn_session_desc desc = {0};
    char *block = NULL;
    const char *reply;

    if (argc != 2) {
        fprintf(stderr, "usage: %s MODEL < utterances\n", argv[0]);
        return 2;
    }
    file.name = argv[1];
    if (!carnn_model_load(&model, &file, NULL, &error)) {
        block = (char *)malloc(carnn_session_size(model, &desc) + 64);
        if (block) {
            desc.memory = block + (64 - (uintptr_t)block % 64) % 64; /* has to be aligned to 64 */
            carnn_session_open(&session, model, &desc, &error);
        } else {
            error.code = CARNN_ERR_MEMORY;
            strcpy(error.message, "out of memory");
        }
    }
    while (session && !error.code && fgets(line, sizeof line, stdin)) {
        size_t length = strcspn(line, "\r\n");
        if (!length) carnn_session_reset(session); /* an empty line begins a new dialog */
        else if (!carnn_session_reply(session, line, length, &reply, &error)) puts(reply);
    }
    if (error.code) fprintf(stderr, "%s\n", error.message);
    carnn_session_free(session);
    free(block);
    carnn_model_free(model);
    return error.code ? 1 : 0;
}
