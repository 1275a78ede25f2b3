/* @@FILE: what is written can be read, is the same when written again, and whatever else the bytes
   are, the reader refuses them with a message. */

#include "test.h"

#define FOLDER_THAT_IS_NOT "no-such-folder/model.gguf"
#define IMAGE_FILE "test_file.gguf"
#define CHECKPOINT_FILE "test_file.resume"
#define LINK_FILE "test_file.link"

#if !defined(_WIN32)
#include <utime.h>
#if defined(__STRICT_ANSI__)
int symlink(const char *target, const char *name);
int lstat(const char *name, struct stat *found);
#ifndef S_IFMT
#define S_IFMT 0170000
#define S_IFLNK 0120000
#endif
#endif
#endif

/* A small model, made anew by every test that changes it. */
static carnn_model *small_model(void) {
    static const char dialogs[] = "1 hi\thello what can i help you with\n"
                                  "2 thai food caf\xE9\tapi_call thai\n"
                                  "3 resto_1 R_rating 5\n"
                                  "4 thanks\tyou are welcome\n"
                                  "\n"
                                  "1 bye\tyou are welcome\n";
    carnn_source source = {"dialogs", dialogs, sizeof dialogs - 1};
    carnn_dataset_desc data;
    carnn_model_desc desc;
    carnn_dataset *dataset = NULL;
    carnn_model *model = NULL;
    carnn_error error;
    memset(&data, 0, sizeof data);
    memset(&desc, 0, sizeof desc);
    data.task = desc.task = "dialog";
    data.sources = &source;
    data.source_count = 1;
    desc.cell = "icarnn";
    desc.hidden = 4;
    desc.embedding = 4;
    desc.seed = 7;
    CHECK_INT(carnn_dataset_load(&dataset, &data, &error), CARNN_OK);
    CHECK_INT(carnn_model_create(&model, &desc, dataset, &error), CARNN_OK);
    carnn_dataset_free(dataset);
    return model;
}

/* The file of a model, in aligned memory with room for `more` bytes behind it. */
typedef struct image {
    unsigned char *bytes;
    size_t size;
} image;

static const carnn_allocator standard = {carnn__default_alloc, carnn__default_realloc,
                                         carnn__default_free, NULL};

static image image_of(const carnn_model *model, size_t more) {
    image result;
    result.size = carnn_model_size(model);
    result.bytes = (unsigned char *)carnn__alloc_aligned(&standard, result.size + more, 1);
    memset(result.bytes, 0, result.size + more);
    CHECK_INT(carnn_model_write(model, result.bytes, result.size, NULL), CARNN_OK);
    return result;
}

static void image_free(image i) { carnn__free_aligned(&standard, i.bytes); }

static carnn_status read_image(carnn_model **model, const void *bytes, size_t size,
                               carnn_error *error) {
    carnn_source source;
    source.name = "image";
    source.bytes = bytes;
    source.size = size;
    return carnn_model_load(model, &source, NULL, error);
}

/* Refused with a message that names the source, and nothing is left behind. */
static int refused(const void *bytes, size_t size, carnn_error *error) {
    carnn_model *model = NULL;
    carnn_status status = read_image(&model, bytes, size, error);
    carnn_model_free(model);
    return status == CARNN_ERR_MODEL && !model && strncmp(error->message, "image: ", 7) == 0;
}

static unsigned char *find(image i, const char *text) {
    size_t at, length = strlen(text);
    for (at = 0; at + length <= i.size; at++)
        if (memcmp(i.bytes + at, text, length) == 0) return i.bytes + at;
    return NULL;
}

static void test_sum(void) {
    static const char *const text[] = {"", "a", "abc", "Nobody inspects the spammish repetition",
                                       "abcdefghijklmnopqrstuvwxyz012345"}; /* one stripe */
    static const uint64_t expected[] = {0xEF46DB3751D8E999u, 0xD24EC4F1A98C6E5Bu,
                                        0x44BC2CF5AD770999u, 0xFBCEA83C8A378BF1u,
                                        0xBF2CD639B4143B80u};
    unsigned char bytes[257];
    carnn__checksum one, many;
    size_t i, from, n;
    for (i = 0; i < CARNN__COUNT(text); i++) {
        carnn__checksum_start(&one);
        carnn__checksum_add(&one, text[i], strlen(text[i]));
        CHECK(carnn__checksum_end(&one) == expected[i]);
    }
    for (i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * 37);
    for (n = 1; n < 70; n++) { /* the same sum in pieces of n bytes */
        carnn__checksum_start(&one);
        carnn__checksum_start(&many);
        carnn__checksum_add(&one, bytes, sizeof bytes);
        for (from = 0; from < sizeof bytes; from += n)
            carnn__checksum_add(&many, bytes + from, carnn__min(n, sizeof bytes - from));
        CHECK(carnn__checksum_end(&one) == carnn__checksum_end(&many));
    }
}

static void check_same_model(const carnn_model *a, const carnn_model *b) {
    const carnn_model_desc *da = carnn_model_describe(a), *db = carnn_model_describe(b);
    size_t i;
    CHECK_TEXT(da->task, db->task);
    CHECK_TEXT(da->cell, db->cell);
    CHECK_INT(da->hidden, db->hidden);
    CHECK_INT(da->seed, db->seed);
    CHECK_INT(carnn_model_word_count(a), carnn_model_word_count(b));
    for (i = 0; i < carnn_model_word_count(a); i++)
        CHECK_TEXT(carnn_model_word(a, i), carnn_model_word(b, i));
    CHECK_INT(carnn_model_choice_count(a), carnn_model_choice_count(b));
    for (i = 0; i < carnn_model_choice_count(a); i++)
        CHECK_TEXT(carnn_model_choice(a, i), carnn_model_choice(b, i));
    for (i = 0; carnn_model_tensor(a, i).name; i++) {
        carnn_tensor x = carnn_model_tensor(a, i), y = carnn_model_tensor(b, i);
        CHECK_TEXT(x.name, y.name);
        CHECK(x.rows == y.rows && x.columns == y.columns &&
              memcmp(x.value, y.value, x.rows * x.columns * sizeof(float)) == 0);
    }
    CHECK(carnn_model_tensor(b, i).name == NULL);
}

/* In place from aligned memory, by a copy from any other, and always the same bytes again. */
static void test_memory_images(void) {
    carnn_model *model = small_model(), *in_place = NULL, *copy = NULL;
    carnn_dataset *data = test_data("dialog", "1 hi\tbye\n", 9, 0, 0);
    image first = image_of(model, 4), second;
    const float *weights;
    carnn_train_desc train;
    carnn_error error;
    CHECK_INT(read_image(&in_place, first.bytes, first.size, NULL), CARNN_OK);
    check_same_model(model, in_place);
    weights = carnn_model_tensor(in_place, 0).value;
    CHECK(!CARNN__LITTLE_ENDIAN || ((const unsigned char *)weights > first.bytes &&
                                    (const unsigned char *)weights < first.bytes + first.size));
    CHECK((uintptr_t)weights % 64 == 0);
    second = image_of(in_place, 0);
    CHECK(first.size == second.size && memcmp(first.bytes, second.bytes, first.size) == 0);
    image_free(second);
    memset(&train, 0, sizeof train);
    train.epochs = train.threads = 1;
    CHECK_INT(carnn_train(in_place, data, NULL, &train, &error),
              CARNN__LITTLE_ENDIAN ? CARNN_ERR_ARGUMENT : CARNN_OK);
    if (CARNN__LITTLE_ENDIAN) CHECK(strstr(error.message, "used in place") != NULL);
    carnn_dataset_free(data);
    carnn_model_free(in_place);
    memmove(first.bytes + 4, first.bytes, first.size);
    CHECK_INT(read_image(&copy, first.bytes + 4, first.size, NULL), CARNN_OK);
    memset(first.bytes, 0xFF, first.size + 4);
    check_same_model(model, copy);
    carnn_model_free(copy);
    CHECK_INT(carnn_model_write(model, first.bytes, 3, NULL), CARNN_ERR_ARGUMENT);
    image_free(first);
    carnn_model_free(model);
}

/* The layout that other programs rely on. */
static void test_file_layout(void) {
    carnn_model *model = small_model();
    image i = image_of(model, 0);
    size_t w;
    CHECK(memcmp(i.bytes, "GGUF\3\0\0\0", 8) == 0);
    CHECK_INT(carnn__get64(i.bytes + 8), model->params.count);
    CHECK_INT(i.size % 64, 0);
    for (w = 0; w < model->params.size; w++) {
        uint32_t bits;
        memcpy(&bits, model->params.value + w, sizeof bits);
        CHECK(carnn__get32(i.bytes + i.size - 4 * (model->params.size - w)) == bits);
    }
    CHECK(find(i, "general.architecture") != NULL);
    CHECK(find(i, "carnn.hidden") != NULL);
    CHECK(find(i, "carnn.threads") == NULL);
    image_free(i);
    carnn_model_free(model);
}

/* Every piece of a file, and every file with one byte changed, is refused. */
static void test_damage(void) {
    carnn_model *model = small_model();
    image i = image_of(model, 64);
    carnn_error error;
    size_t at, bad = 0;
    for (at = 0; at < i.size; at++) bad += !refused(i.bytes, at, &error);
    CHECK_INT(bad, 0);
    for (at = 0; at < i.size; at++) {
        i.bytes[at] ^= 0x10;
        bad += !refused(i.bytes, i.size, &error);
        i.bytes[at] ^= 0x10;
    }
    CHECK_INT(bad, 0);
    for (at = 1; at <= 64; at++) bad += !refused(i.bytes, i.size + at, &error);
    CHECK_INT(bad, 0);
    image_free(i);
    carnn_model_free(model);
}

/* Whatever loads can also be used: it is written, and answers. */
static void try_sealed(image i) {
    carnn_model *model = NULL;
    carnn_session *session = NULL;
    carnn_error error;
    error.message[0] = '\0';
    if (read_image(&model, i.bytes, i.size, &error) == CARNN_OK) {
        image_free(image_of(model, 0));
        if (carnn_session_open(&session, model, NULL, &error) == CARNN_OK) {
            const char *reply = NULL;
            CHECK_INT(carnn_session_reply(session, "thai food", 9, &reply, &error), CARNN_OK);
            CHECK(reply != NULL);
            carnn_session_free(session);
        } else CHECK(error.message[0] != '\0');
    } else CHECK(error.message[0] != '\0');
    carnn_model_free(model);
}

/* The same with a checksum that fits: each byte set to a few values that matter to counts and
   lengths. The sanitizers watch. */
static void test_forgery(void) {
    static const unsigned char value[] = {0x00, 0x02, 0x7F, 0xFF};
    carnn_model *model = small_model();
    image i = image_of(model, 0);
    size_t at, head = i.size - 4 * model->params.size, v;
    size_t sum = (size_t)(find(i, "carnn.checksum") - i.bytes);
    for (at = 0; at < head; at++) {
        unsigned char was = i.bytes[at];
        if (at >= sum && at < sum + 26) continue;
        for (v = 0; v < sizeof value; v++) {
            i.bytes[at] = value[v];
            test_seal(i.bytes, i.size);
            try_sealed(i);
        }
        i.bytes[at] = was;
    }
    image_free(i);
    carnn_model_free(model);
}

/* One change each, sealed, and what the message has to say about it. */
static void refuse(const char *find_text, size_t offset, const char *put, size_t length,
                   const char *message) {
    carnn_model *model = small_model();
    image i = image_of(model, 0);
    carnn_error error;
    unsigned char *at = *find_text ? find(i, find_text) : i.bytes;
    CHECK(at != NULL);
    memcpy(at + offset, put, length);
    test_seal(i.bytes, i.size);
    CHECK(refused(i.bytes, i.size, &error));
    if (!strstr(error.message, message)) CHECK_TEXT(error.message, message);
    image_free(i);
    carnn_model_free(model);
}

static void test_messages(void) {
    refuse("", 0, "GGML", 4, "not a GGUF file");
    refuse("", 4, "\0\0\0\3", 4, "version");
    refuse("", 4, "\2", 1, "version 3");
    refuse("", 16, "\377\377\377\377\377\377\377\377", 8, "keys");
    refuse("general.architecture", 20 + 4 + 8, "llama", 5, "holds \"llama\", expected \"carnn\"");
    refuse("carnn.words", 0, "carnn.wordy", 11, "the key carnn.words is missing");
    refuse("carnn.format", 12 + 4, "\2", 1, "another version");
    refuse("general.alignment", 17 + 4, "\40", 1, "general.alignment is not 64");
    refuse("carnn.hidden", 12, "\12", 1, "the key carnn.hidden has another type");
    refuse("carnn.hidden", 12 + 4, "\0", 1, "hidden");
    refuse("carnn.words", 11, "\11\0\0\0\12\0\0\0\0\0\0\0\0\0\0\40", 16, /* 2^61 u64 */
           "cut off or damaged: more expected at byte ");
    refuse("", 8, "\1", 1, "1 tensors, expected ");
    refuse("", 8, "\1", 1, ": of another version of carnn? Train it again");
    refuse("carnn.task", 10 + 4 + 8, "dialoq", 6, "unknown task \"dialoq\"");
    refuse("carnn.cell", 10 + 4 + 8, "icarnm", 6, "unknown cell \"icarnm\"");
    refuse("carnn.cell", 10 + 4 + 8, "", 1, "unknown cell \"\"");
    refuse("can", 0, "you", 3, "carnn.words: the same string twice");
    refuse("cell.bias", 0, "cell.bics", 9, "expected the weights cell.bias, found \"cell.bics\"");
    refuse("cell.bias", 9 + 4, "\15", 1, "cell.bias: expected 1 by 12 weights, found 1 by 13");
    refuse("cell.bias", 9 + 12, "\1", 1, "cell.bias: type 1, expected F32");
    refuse("cell.bias", 9 + 16, "\1", 1, "cell.bias: misplaced");
}

/* The value of an option of a model, as text. */
static const char *option_text(const carnn_model *model, const char *name, char text[64]) {
    const carnn_option *o;
    size_t i;
    for (i = 0; (o = carnn_option_at(model->desc.task, i)) != NULL; i++)
        if (!strcmp(o->name, name))
            return carnn_option_get(o, &model->desc, &model->training, text, 64);
    return NULL;
}

/* A file that was written before there was an option: the option has its default. */
static void test_option_unknown_then(void) {
    carnn_model *model = small_model(), *loaded = NULL;
    image i = image_of(model, 0);
    carnn_error error;
    char one[64], two[64];
    CHECK(option_text(model, "kb_rows", one) != NULL);
    memcpy(find(i, "carnn.kb_rows"), "carnn.ab_rows", 13);
    test_seal(i.bytes, i.size);
    CHECK_INT(read_image(&loaded, i.bytes, i.size, &error), CARNN_OK);
    CHECK_TEXT(option_text(loaded, "kb_rows", two), one);
    carnn_model_free(loaded);
    image_free(i);
    carnn_model_free(model);
}

/* A model whose graph, with this key, is none: the error names the key. */
static void refuses_graph(const carnn_model *model, const char *key) {
    carnn_error error;
    char expected[80];
    image i = image_of(model, 0);
    memcpy(find(i, key) + strlen(key) + 4 + 8, "???", 3);
    test_seal(i.bytes, i.size);
    CHECK(refused(i.bytes, i.size, &error));
    snprintf(expected, sizeof expected, "image: %s:1: expected ", key);
    CHECK(strstr(error.message, expected) != NULL);
    image_free(i);
}

/* A model without a word, not even <unk>, and one whose graph is none. */
static void test_no_words_no_graph(void) {
    static const char text[] = "x\ta b\ny\tb\nx\tc\n";
    carnn_dataset *data = test_data("classify", text, sizeof text - 1, 0, 0);
    carnn_model *model = test_model("classify", "cell=lstm", NULL, data), *ensemble;
    const carnn_model *twice[2];
    carnn_ensemble_desc mean;
    size_t k, words = model->words.count;
    carnn_error error;
    image i;
    for (k = 0; strcmp(model->params.item[k].name, "word.weight");) k++;
    model->words.count = model->params.item[k].rows = 0;
    i = image_of(model, 0);
    CHECK(refused(i.bytes, i.size, &error));
    CHECK(strstr(error.message, "the vocabulary is empty") != NULL);
    image_free(i);
    model->words.count = words;
    carnn_model_free(model);
    model = test_model("classify", "cell=rnn encoder=graph graph=st", NULL, data);
    refuses_graph(model, "carnn.graph.lines");
    twice[0] = twice[1] = model;
    memset(&mean, 0, sizeof mean);
    CHECK_INT(carnn_model_ensemble(&ensemble, twice, 2, &mean, &error), CARNN_OK);
    refuses_graph(ensemble, "member.1.carnn.graph.lines");
    carnn_model_free(ensemble);
    i = image_of(model, 0);
    *(find(i, "carnn.encoder") + 13 + 4 + 8) = '\0';
    test_seal(i.bytes, i.size);
    CHECK(refused(i.bytes, i.size, &error));
    CHECK(strstr(error.message, "unknown encoder \"\"") != NULL);
    image_free(i);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* A file may say what a new model is refused: an option that has no effect. */
static void test_idle_option(void) {
    static const char text[] = "x\ta b\ny\tb\nx\tc\n";
    carnn_dataset *data = test_data("classify", text, sizeof text - 1, 0, 0);
    carnn_model *model = test_model("classify", "cell=lstm", NULL, data), *loaded;
    const carnn_option *raw = carnn_option_named("classify", "raw_output_gate");
    carnn_model_desc desc;
    carnn_error error;
    memset(&desc, 0, sizeof desc);
    desc.task = "classify";
    desc.option[raw->offset] = 1.0;
    CHECK_INT(carnn_model_create(&loaded, &desc, data, &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message,
               "raw_output_gate has an effect only where encoder is one of these: rcrn");
    model->desc.option[raw->offset] = 1.0;
    loaded = test_reload(model);
    CHECK(loaded && loaded->desc.option[raw->offset] == 1.0);
    carnn_model_free(loaded);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Of a model that has no optimiser nothing was ever trained, whatever else a file says. */
static void test_training_that_never_was(void) {
    carnn_model *model = small_model(), *loaded = NULL;
    image i = image_of(model, 0);
    carnn_error error;
    memset(find(i, "carnn.lr") + 8 + 4, 0xFF, 8); /* NaN */
    test_seal(i.bytes, i.size);
    CHECK_INT(read_image(&loaded, i.bytes, i.size, &error), CARNN_OK);
    CHECK_NEAR(carnn_model_training(loaded)->lr, 0.0, 0.0);
    CHECK_INT(carnn_model_training(loaded)->epochs, 0);
    carnn_model_free(loaded);
    image_free(i);
    model->training = test_training(1, 1, NAN, 0.0); /* one that was */
    model->training.optimizer = "adam";
    i = image_of(model, 0);
    CHECK(refused(i.bytes, i.size, &error));
    CHECK(strstr(error.message, "lr: expected ") != NULL);
    image_free(i);
    carnn_model_free(model);
}

static void test_weights_that_are_no_numbers(void) {
    static const float wrong[] = {INFINITY, -INFINITY, NAN, -NAN};
    carnn_model *model = small_model();
    carnn_error error;
    size_t i;
    for (i = 0; i < 4; i++) {
        image sealed = image_of(model, 0);
        carnn__convert_floats(sealed.bytes + sealed.size - 4 * model->params.size, &wrong[i], 1);
        test_seal(sealed.bytes, sealed.size);
        CHECK(refused(sealed.bytes, sealed.size, &error));
        CHECK(strstr(error.message, "NaN or infinity") != NULL);
        image_free(sealed);
    }
    carnn_model_free(model);
}

/* Each allocation fails once, on loading and on saving. */
static void test_no_memory(void) {
    carnn_model *model = small_model(), *loaded = NULL;
    image i = image_of(model, 0);
    carnn_source source = {"image", NULL, 0};
    carnn_error error;
    carnn_status status = CARNN_ERR_MEMORY;
    test_memory memory = {0, 0, 0};
    carnn_allocator failing = {test_alloc, test_realloc, test_free, &memory};
    source.bytes = i.bytes;
    source.size = i.size;
    while (status == CARNN_ERR_MEMORY && memory.fail_at < 1000) {
        memory.calls = 0;
        memory.fail_at++;
        status = carnn_model_load(&loaded, &source, &failing, &error);
        if (status != CARNN_OK) CHECK_INT(memory.blocks, 0);
    }
    CHECK_INT(status, CARNN_OK);
    CHECK(memory.fail_at > 3);
    for (memory.fail_at = 1, status = CARNN_ERR_MEMORY; status == CARNN_ERR_MEMORY;
         memory.fail_at++) {
        memory.calls = 0;
        status = carnn_model_save(loaded, IMAGE_FILE, &error);
    }
    CHECK_INT(status, CARNN_OK);
    carnn_model_free(loaded);
    source.name = IMAGE_FILE;
    source.bytes = NULL;
    memory.fail_at = 0;
    do {
        memory.calls = 0;
        memory.fail_at++;
        status = carnn_model_load(&loaded, &source, &failing, &error);
    } while (status == CARNN_ERR_MEMORY && !strstr(error.message, "memory reading " IMAGE_FILE));
    CHECK_INT(status, CARNN_ERR_MEMORY);
    CHECK_INT(carnn_file_write(IMAGE_FILE, "1 hello\thi\n", 11, NULL), CARNN_OK);
    memory.calls = 0; /* data are refused before there is memory for them */
    CHECK_INT(carnn_model_load(&loaded, &source, &failing, &error), CARNN_ERR_MODEL);
    CHECK(strstr(error.message, IMAGE_FILE ": not a GGUF file") != NULL);
    CHECK_INT(memory.blocks, 0);
    remove(IMAGE_FILE);
    image_free(i);
    carnn_model_free(model);
}

/* A file on the disk is the image in memory; where it cannot be written the old one stays. */
static void test_disk(void) {
    carnn_model *model = small_model(), *loaded = NULL;
    image expected = image_of(model, 0), found;
    carnn_source source = {IMAGE_FILE, NULL, 0};
    carnn_error error;
    void *block;
    CHECK_INT(carnn_file_check(IMAGE_FILE, &error), CARNN_OK);
    CHECK_INT(carnn_model_load(&loaded, &source, NULL, &error), CARNN_ERR_IO);
    CHECK(strncmp(error.message, IMAGE_FILE ": ", strlen(IMAGE_FILE) + 2) == 0);
    CHECK_INT(carnn_model_save(model, IMAGE_FILE, &error), CARNN_OK);
    CHECK_INT(carnn_model_save(model, IMAGE_FILE, &error), CARNN_OK);
    CHECK_INT(carnn__read_file(IMAGE_FILE, &standard, &block, &found.size, &error), CARNN_OK);
    found.bytes = (unsigned char *)block;
    CHECK(found.size == expected.size && !memcmp(found.bytes, expected.bytes, found.size));
    CHECK_INT(carnn_model_load(&loaded, &source, NULL, &error), CARNN_OK);
    check_same_model(model, loaded);
    carnn_model_free(loaded);
    CHECK_INT(carnn_file_write(IMAGE_FILE, "GGUFa\0b", 7, &error), CARNN_OK);
    CHECK_INT(carnn__read_file(IMAGE_FILE, &standard, &block, &found.size, &error), CARNN_OK);
    CHECK(found.size == 7 && !memcmp(block, "GGUFa\0b", 7));
    carnn__free_aligned(&standard, block);
    CHECK_INT(carnn_file_write(IMAGE_FILE, NULL, 0, &error), CARNN_OK);
    CHECK_INT(carnn_file_write(FOLDER_THAT_IS_NOT, "", 0, &error), CARNN_ERR_IO);
    CHECK_INT(carnn_model_save(model, IMAGE_FILE, &error), CARNN_OK);
    CHECK_INT(carnn_model_save(model, FOLDER_THAT_IS_NOT, &error), CARNN_ERR_IO);
    CHECK(strstr(error.message, FOLDER_THAT_IS_NOT ": cannot be written") != NULL);
    CHECK_INT(carnn_file_check("", &error), CARNN_ERR_IO);
    CHECK_INT(carnn_model_save(model, "", &error), CARNN_ERR_IO);
    CHECK(strstr(error.message, "cannot be written") != NULL);
    CHECK_INT(carnn_file_check(FOLDER_THAT_IS_NOT, &error), CARNN_ERR_IO);
    source.name = ".";
    CHECK_INT(carnn_model_load(&loaded, &source, NULL, &error), CARNN_ERR_IO);
    CHECK_INT(carnn_model_save(model, ".", &error), CARNN_ERR_IO);
#if defined(__linux__)
    CHECK_INT(carnn_model_save(model, "/dev/full", &error), CARNN_ERR_IO);
    CHECK_INT(carnn_model_save(model, "/dev/null", &error), CARNN_OK);
    CHECK(carnn__is_special(carnn__file_mode("/dev/null"))); /* still what it was */
#endif
    remove(IMAGE_FILE);
    image_free(found);
    image_free(expected);
    carnn_model_free(model);
}

static void test_nothing_to_load(void) {
    carnn_source nothing = {NULL, NULL, 0};
    carnn_model *model = NULL;
    carnn_error error;
    CHECK_INT(carnn_model_load(&model, &nothing, NULL, &error), CARNN_ERR_ARGUMENT);
    CHECK(model == NULL && error.message[0]);
}

#if !defined(_WIN32)

static size_t files_with(const char *beginning) { /* names in this folder */
    DIR *folder = opendir(".");
    struct dirent *entry;
    size_t count = 0;
    while (folder && (entry = readdir(folder)) != NULL)
        count += !strncmp(entry->d_name, beginning, strlen(beginning));
    if (folder) closedir(folder);
    return count;
}

/* A link leads to the file that is written, which keeps its permissions. A file that may not be
   written is not replaced either, though its folder would allow it. */
static void test_links_and_permissions(void) {
    carnn_model *model = small_model();
    carnn_error error;
    struct stat found;
    remove(LINK_FILE);
    CHECK_INT(carnn_model_save(model, IMAGE_FILE, &error), CARNN_OK);
    CHECK(symlink(IMAGE_FILE, LINK_FILE) == 0 && chmod(IMAGE_FILE, 0600) == 0);
    CHECK_INT(carnn_file_check(LINK_FILE, &error), CARNN_OK);
    CHECK_INT(carnn_model_save(model, LINK_FILE, &error), CARNN_OK);
    CHECK(lstat(LINK_FILE, &found) == 0 && (found.st_mode & S_IFMT) == S_IFLNK);
    CHECK(lstat(IMAGE_FILE, &found) == 0 && S_ISREG(found.st_mode));
    CHECK_INT(found.st_mode & 0777, 0600);
    CHECK(chmod(IMAGE_FILE, 0400) == 0);
    CHECK_INT(carnn_file_check(LINK_FILE, &error), CARNN_ERR_IO);
    CHECK_INT(carnn_model_save(model, IMAGE_FILE, &error), CARNN_ERR_IO);
    CHECK(strstr(error.message, IMAGE_FILE ": cannot be written") != NULL);
    CHECK_INT(files_with(IMAGE_FILE), 1);
    remove(LINK_FILE);
    remove(IMAGE_FILE);
    carnn_model_free(model);
}

/* What killed processes have left goes, what another one may be writing stays. */
static void test_stale_files(void) {
    static const char *const name[] = {IMAGE_FILE ".0123abcd.tmp", IMAGE_FILE ".0123abce.tmp",
                                       IMAGE_FILE ".0123abcx.tmp", IMAGE_FILE "0.0123abcd.tmp",
                                       IMAGE_FILE "_0123abcd.tmp", IMAGE_FILE ".0123abcd.old"};
    carnn_model *model = small_model();
    struct utimbuf old;
    size_t i;
    old.actime = old.modtime = time(NULL) - 4000;
    for (i = 0; i < 6; i++) {
        FILE *file = fopen(name[i], "wb");
        CHECK(file != NULL);
        if (file) fclose(file);
        if (i != 1) CHECK(utime(name[i], &old) == 0);
    }
    CHECK_INT(carnn_model_save(model, IMAGE_FILE, NULL), CARNN_OK);
    for (i = 0; i < 6; i++) CHECK_INT(remove(name[i]) == 0, i > 0);
    remove(IMAGE_FILE);
    carnn_model_free(model);
}

#endif

/* --- checkpoints --- */

static carnn__checkpoint checkpoint_of(carnn_model *model, float *best) {
    carnn__checkpoint c;
    memset(&c, 0, sizeof c);
    c.model = model;
    carnn__checkpoint_array(&c, "weights", model->params.value, model->params.trained);
    carnn__checkpoint_array(&c, "best", best, model->params.trained);
    carnn__checkpoint_array(&c, "average", NULL, model->params.trained);
    c.same[CARNN__SAME_NAMES] = carnn__names_sum(model);
    c.same[CARNN__SAME_TRAIN] = 10;
    return c;
}

static carnn_status save_checkpoint(const carnn__checkpoint *c, carnn_error *error) {
    return carnn__file_save(carnn__fill_checkpoint, c, CHECKPOINT_FILE, &standard, error);
}

/* A sealed checkpoint of another format. */
static void put_other_format(const char *file) {
    image i;
    void *block;
    FILE *out;
    CHECK_INT(carnn__read_file(file, &standard, &block, &i.size, NULL), CARNN_OK);
    i.bytes = (unsigned char *)block;
    find(i, "carnn.format")[12 + 4] = 1;
    test_seal(i.bytes, i.size);
    out = fopen(file, "wb");
    CHECK(out && fwrite(i.bytes, 1, i.size, out) == i.size);
    if (out) fclose(out);
    image_free(i);
}

static void test_checkpoint(void) {
    carnn_model *model = small_model(), *other = small_model();
    size_t i, size = model->params.size;
    carnn_model_desc desc = *carnn_model_describe(model);
    carnn_train_desc train;
    carnn__checkpoint c, d;
    carnn_error error;
    float *best = (float *)carnn__alloc_aligned(&standard, size, sizeof(float));
    float *other_best = (float *)carnn__alloc_aligned(&standard, size, sizeof(float));
    memset(&train, 0, sizeof train);
    CHECK_INT(carnn_defaults(&desc, &train, &error), CARNN_OK);
    for (i = 0; i < size; i++) best[i] = (float)i, other_best[i] = 0.0f;
    memset(other->params.value, 0, size * sizeof(float));
    carnn__scores_add(&model->scores, &model->task->metric[0]);
    model->scores.metric[0].value = 0.75;
    model->best_epoch = 3;
    model->training = other->training = train;
    c = checkpoint_of(model, best);
    d = checkpoint_of(other, other_best);
    c.step = 123456789012345u;
    c.tally.examples = 17;
    c.tally.loss = 0.1;
    c.tally.sum[CARNN_SCORES_MAX - 1] = 0.2;
    c.seconds = 0.3;
    CHECK_INT(carnn__checkpoint_load(&d, CHECKPOINT_FILE, &error), CARNN_ERR_IO);
    CHECK_INT(save_checkpoint(&c, &error), CARNN_OK);
    CHECK_INT(carnn__checkpoint_load(&d, CHECKPOINT_FILE, &error), CARNN_OK);
    check_same_model(model, other);
    CHECK(d.step == c.step && !memcmp(&d.tally, &c.tally, sizeof c.tally));
    CHECK(d.seconds == c.seconds);
    CHECK(memcmp(best, other_best, size * sizeof(float)) == 0);
    CHECK_INT(other->best_epoch, 3);
    CHECK_NEAR(other->scores.metric[0].value, 0.75, 0);

    d.same[CARNN__SAME_TRAIN] = 11; /* other data */
    d.step = 5;
    CHECK_INT(carnn__checkpoint_load(&d, CHECKPOINT_FILE, &error), CARNN_ERR_MODEL);
    CHECK_TEXT(error.message,
               CHECKPOINT_FILE ": checkpoint of a training with other training data");
    CHECK_INT(d.step, 5);
    d.same[CARNN__SAME_TRAIN] = 10;
    other->training.epochs++; /* a longer training may go on */
    other->training.patience = model->training.patience + 3;
    CHECK_INT(carnn__checkpoint_load(&d, CHECKPOINT_FILE, &error), CARNN_OK);
    other->training.batch++;
    CHECK_INT(carnn__checkpoint_load(&d, CHECKPOINT_FILE, &error), CARNN_ERR_MODEL);
    CHECK(strstr(error.message, "checkpoint of a training with batch = ") != NULL);
    other->training.batch--;
    other->desc.seed++;
    CHECK_INT(carnn__checkpoint_load(&d, CHECKPOINT_FILE, &error), CARNN_ERR_MODEL);
    CHECK(strstr(error.message, "seed = 7, not 8") != NULL);
    other->desc.seed--;
    other->words.bytes[0] ^= 1;
    d.same[CARNN__SAME_NAMES] = carnn__names_sum(other);
    CHECK_INT(carnn__checkpoint_load(&d, CHECKPOINT_FILE, &error), CARNN_ERR_MODEL);
    CHECK(strstr(error.message, "other words, choices or graph") != NULL);

    other->words.bytes[0] ^= 1;
    other->choices.bytes[0] ^= 1;
    CHECK(carnn__names_sum(other) != carnn__names_sum(model));
    other->choices.bytes[0] ^= 1;
    d.same[CARNN__SAME_NAMES] = carnn__names_sum(other);
    CHECK(d.same[CARNN__SAME_NAMES] == carnn__names_sum(model));
    model->best_epoch = -3; /* what a trainer cannot have written */
    CHECK_INT(save_checkpoint(&c, &error), CARNN_OK);
    CHECK_INT(carnn__checkpoint_load(&d, CHECKPOINT_FILE, &error), CARNN_ERR_MODEL);
    model->best_epoch = 3;
    best[1] = NAN;
    CHECK_INT(save_checkpoint(&c, &error), CARNN_OK);
    CHECK_INT(carnn__checkpoint_load(&d, CHECKPOINT_FILE, &error), CARNN_ERR_MODEL);
    CHECK(strstr(error.message, "best holds NaN") != NULL);
    CHECK(other_best[1] == 1.0f); /* nothing of the trainer has changed */
    { /* neither kind of file passes for the other */
        carnn_source source = {CHECKPOINT_FILE, NULL, 0};
        carnn_model *none = NULL;
        CHECK_INT(carnn_model_load(&none, &source, NULL, &error), CARNN_ERR_MODEL);
        CHECK(strstr(error.message, "\"carnn-checkpoint\", expected \"carnn\"") != NULL);
    }
    put_other_format(CHECKPOINT_FILE); /* that of older versions */
    CHECK_INT(carnn__checkpoint_load(&d, CHECKPOINT_FILE, &error), CARNN_ERR_MODEL);
    CHECK(strstr(error.message, "written by another version of carnn (format 1, ") != NULL);
    CHECK(strstr(error.message, "): train anew") != NULL);
    remove(CHECKPOINT_FILE);
    carnn__free_aligned(&standard, best);
    carnn__free_aligned(&standard, other_best);
    carnn_model_free(model);
    carnn_model_free(other);
}

int main(void) {
    test_sum();
    test_memory_images();
    test_file_layout();
    test_damage();
    test_forgery();
    test_messages();
    test_option_unknown_then();
    test_no_words_no_graph();
    test_idle_option();
    test_training_that_never_was();
    test_weights_that_are_no_numbers();
    test_no_memory();
    test_disk();
#if !defined(_WIN32)
    test_links_and_permissions();
    test_stale_files();
#endif
    test_nothing_to_load();
    test_checkpoint();
    return test_end();
}
