/* A bot for a microcontroller. The model is a constant of the program, whose weights, of 8 bits,
   are used where they are, in flash; all else lies in one block of memory. No heap, no files, no
   threads: for a Cortex-M the code of the library has some 100 KB, and the memory below is enough.

     ./carnn train --task dialog --train data/bike.txt --hidden 32 --lr 0.02 --epochs 60 \
         --out build/floats.gguf
     ./carnn test build/floats.gguf --data data/bike.txt --quantise --out build/device.gguf
     od -An -v -tx1 build/device.gguf | sed 's/ *\([0-9a-f][0-9a-f]\)/0x\1,/g' > build/device.inc

   Run: build/device < utterances    (`make build/device` does the above first; `make portability`
   runs it on a Cortex-M7) */
#define CARNN_NO_STDIO
#define CARNN_NO_TEXT
#define CARNN_NO_THREADS
#define CARNN_TASKS(X) X(dialog)
#define CARNN_IMPLEMENTATION
#include "../carnn.h"

static const unsigned char model_file[]
#ifdef __GNUC__
    __attribute__((aligned(64))) /* else the weights are copied */
#endif
    = {
#include "../build/device.inc"
};

static union {
    long double aligned; /* as malloc's blocks are */
    unsigned char byte[56 * 1024];
} memory;
static size_t used;

/* Nothing is given back: all is taken when the program begins. */
static void *take(size_t bytes, void *user) {
    void *block = memory.byte + used;
    (void)user;
    bytes = (bytes + 15) / 16 * 16;
    if (bytes > sizeof memory - used) return NULL;
    used += bytes;
    return block;
}

static void *take_again(void *block, size_t bytes, void *user) {
    void *more = take(bytes, user);
    if (block && more) memmove(more, block, bytes);
    return more;
}

static void keep(void *block, void *user) { (void)block, (void)user; }

int main(void) {
    static char line[256];
    carnn_source file = {"model", model_file, sizeof model_file};
    carnn_allocator allocator = {take, take_again, keep, NULL};
    carnn_error error = {CARNN_OK, 0, ""};
    carnn_model *model = NULL;
    carnn_session *session = NULL;
    const char *reply;

    if (carnn_model_load(&model, &file, &allocator, &error) ||
        carnn_session_open(&session, model, NULL, &error))
        return puts(error.message), 1;
    while (fgets(line, sizeof line, stdin)) { /* of a board: its serial line */
        size_t length = strcspn(line, "\r\n");
        if (!length) carnn_session_reset(session);
        else if (!carnn_session_reply(session, line, length, &reply, &error)) puts(reply);
    }
    if (error.code) puts(error.message);
    printf("%lu of %lu bytes used\n", (unsigned long)used, (unsigned long)sizeof memory);
    return error.code ? 1 : 0;
}
