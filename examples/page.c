/* A bot in a web page that needs no server: examples/page.html lets one choose a model file, talks,
   and draws what each utterance contributed to a reply. With Emscripten:

     emcc -O3 -msimd128 -s SINGLE_FILE=1 -s ALLOW_MEMORY_GROWTH=1 -s INVOKE_RUN=0 \
         -s EXPORTED_FUNCTIONS=_bot_room,_bot_open,_bot_say,_bot_forget,_main \
         -s EXPORTED_RUNTIME_METHODS=ccall,HEAPU8 examples/page.c -o build/page.js
     cp examples/page.html build

   Without -msimd128 browsers older than 2023 can run it, too, in half again the time.

   Run: build/page MODEL < utterances    prints what the page would get. */
#define CARNN_NO_TEXT    /* neither training nor data sets: needs nothing but this header */
#define CARNN_NO_THREADS /* a page has one */
#define CARNN_TASKS(X) X(dialog)
#define CARNN_IMPLEMENTATION
#include "../carnn.h"

static char *memory; /* of the model file, whose weights are used in place */
static carnn_model *model;
static carnn_session *session;
static carnn_error error;

/* Memory for a model file of so many bytes, aligned to 64 as models in place have to be; NULL:
   there is none. The model before is gone. */
char *bot_room(size_t size) {
    carnn_session_free(session);
    carnn_model_free(model);
    free(memory);
    session = NULL;
    model = NULL;
    memory = (char *)malloc(size + 64);
    return memory ? memory + (64 - (uintptr_t)memory % 64) % 64 : NULL;
}

/* Opens the model whose bytes are in the room. "", or why it cannot be opened. */
const char *bot_open(const char *bytes, size_t size) {
    carnn_source file = {"the file", bytes, size};
    if (carnn_model_load(&model, &file, NULL, &error) ||
        carnn_session_open(&session, model, NULL, &error))
        return error.message;
    return "";
}

/* The reply; then, a line each, what the utterances contributed to its score, the latest last:
   score, tab, who, tab, text. */
const char *bot_say(const char *said) {
    static char answer[65536];
    static carnn_contribution part[1024];
    carnn_explanation e;
    const char *reply;
    size_t at, i;
    if (!session) return "There is no model.";
    if (carnn_session_reply(session, said, strlen(said), &reply, &error)) return error.message;
    at = (size_t)snprintf(answer, sizeof answer, "%s", reply);
    if (carnn_session_explain(session, 1024, part, &e, &error)) return answer;
    for (i = 0; i < e.count && i < 1024 && at < sizeof answer; i++)
        at += (size_t)snprintf(answer + at, sizeof answer - at, "\n%+.4f\t%s\t%s", part[i].score,
                               part[i].role, part[i].text);
    return answer;
}

/* Begins a new dialog. */
void bot_forget(void) {
    if (session) carnn_session_reset(session);
}

int main(int argc, char **argv) {
    static char line[4096];
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    long size = file && !fseek(file, 0, SEEK_END) ? ftell(file) : -1;
    char *bytes = size >= 0 ? bot_room((size_t)size) : NULL;
    const char *wrong = "usage: page MODEL < utterances";
    if (bytes && !fseek(file, 0, SEEK_SET) && fread(bytes, 1, (size_t)size, file) == (size_t)size)
        wrong = bot_open(bytes, (size_t)size);
    if (file) fclose(file);
    if (*wrong) return fprintf(stderr, "%s\n", wrong), 1;
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\r\n")] = 0;
        if (*line) puts(bot_say(line));
        else bot_forget();
    }
    bot_room(0);
    free(memory);
    return 0;
}
