/* A custom allocator: everything that a model needs comes out of one fixed block, and running out
   of it is an error code like any other. Run: build/allocator MODEL */
#define CARNN_IMPLEMENTATION
#include "../carnn.h"

typedef struct pool { /* hands out memory from the front and takes none back */
    char *base;
    size_t size, used;
} pool;

/* Each block has 16 bytes in front of it, which hold its size. */
static void *take(size_t bytes, void *user) {
    pool *p = (pool *)user;
    size_t start = (p->used + 15) / 16 * 16;
    if (start + 16 > p->size || bytes > p->size - start - 16) return NULL;
    p->used = start + 16 + bytes;
    memcpy(p->base + start, &bytes, sizeof bytes);
    return p->base + start + 16;
}

static void *grow(void *block, size_t bytes, void *user) {
    void *larger = take(bytes, user);
    size_t old;
    if (larger && block) {
        memcpy(&old, (char *)block - 16, sizeof old);
        memcpy(larger, block, old < bytes ? old : bytes);
    }
    return larger;
}

static void drop(void *block, void *user) {
    (void)block;
    (void)user;
}

int main(int argc, char **argv) {
    static union {
        long double aligned; /* as malloc's blocks are */
        char byte[64 << 20];
    } block;
    pool p = {block.byte, sizeof block, 0};
    carnn_allocator allocator = {take, grow, drop, NULL};
    carnn_source file = {NULL, NULL, 0};
    carnn_model *model = NULL;
    carnn_session *session = NULL;
    const char *reply = NULL;
    carnn_error error = {CARNN_OK, 0, ""};

    if (argc != 2) {
        fprintf(stderr, "usage: %s MODEL\n", argv[0]);
        return 2;
    }
    allocator.user = &p;
    file.name = argv[1];
    if (carnn_model_load(&model, &file, &allocator, &error) ||
        carnn_session_open(&session, model, NULL, &error) ||
        carnn_session_reply(session, "hello", 5, &reply, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    printf("%s\n%zu bytes of %zu used\n", reply, p.used, p.size);
    return 0;
}
