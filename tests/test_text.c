/* @@TEXT: tokenisers, lists of names, vocabularies, reading files, lines. */

#define CARNN_IMPLEMENTATION
#include "../carnn.h"
#include "test.h"

static carnn_allocator allocator_of(test_memory *memory) {
    carnn_allocator a = {test_alloc, test_realloc, test_free, NULL};
    a.user = memory;
    return a;
}

/* --- tokenisers ------------------------------------------------------------------------------*/

/* The words of a text, folded as the tokeniser says, each with a bar behind it. */
static void words_of(carnn__tokenizer kind, const char *text, size_t length, char *out) {
    carnn__words w = carnn__words_of(kind, text, length);
    while (carnn__next_word(&w)) {
        for (size_t i = 0; i < w.word.length; i++)
            *out++ = (char)carnn__folded(w.word.at[i], carnn__folds(kind));
        *out++ = '|';
    }
    *out = 0;
}

static void test_tokenizers(void) {
    static const struct {
        carnn__tokenizer kind;
        const char *text, *words;
    } sample[] = {
        {CARNN__WORDS, "Hello , welcome to the Cambridge restaurant system .",
         "hello|welcome|to|cambridge|restaurant|system|"},
        {CARNN__WORDS, "<SILENCE>", "silence|"},
        {CARNN__WORDS, "a an the A An THE tHe", ""},
        {CARNN__WORDS, "theatre another ana _a the_ an1", "theatre|another|ana|_a|the_|an1|"},
        {CARNN__WORDS, "api_call R_cuisine west moderate", "api_call|r_cuisine|west|moderate|"},
        {CARNN__WORDS, "it's 9.50, isn't it?!", "it|s|9|50|isn|t|it|"},
        {CARNN__WORDS, "Z\xC3\xBCrich \xC3\x84RGER", "z\xC3\xBCrich|\xC3\x84rger|"},
        {CARNN__WORDS, "", ""},
        {CARNN__WORDS, " .,;:-!?()[]{}@#$%^&*+=/\\|<>'\"`~\t\r\n\x01\x7F", ""},
        {CARNN__WORDS, "AZaz09_ @[`{", "azaz09_|"},
        {CARNN__SPACES, "  The cat\t<unk> 's N.Y. \r\n", "The|cat|<unk>|'s|N.Y.|"},
        {CARNN__SPACES, "a the \xC3\x84", "a|the|\xC3\x84|"},
        {CARNN__SPACES, " \t ", ""},
    };
    char out[256];
    for (size_t i = 0; i < sizeof sample / sizeof *sample; i++) {
        words_of(sample[i].kind, sample[i].text, strlen(sample[i].text), out);
        CHECK_TEXT(out, sample[i].words);
    }
    words_of(CARNN__WORDS, "x\0Y z", 5, out);
    CHECK_TEXT(out, "x|y|z|");
    words_of(CARNN__WORDS, "whole", 3, out);
    CHECK_TEXT(out, "who|");
    words_of(CARNN__WORDS, NULL, 0, out);
    CHECK_TEXT(out, "");
}

/* The rule of MemN2N once more, in the way of a student: copy words into a buffer, then look. */
static void slow_words(const char *text, size_t length, char *out) {
    char word[1024];
    size_t used = 0;
    *out = 0;
    for (size_t i = 0; i <= length; i++) {
        unsigned char byte = i < length ? (unsigned char)text[i] : ' ';
        if (byte >= 'A' && byte <= 'Z') byte = (unsigned char)(byte - 'A' + 'a');
        if (byte >= 128 || (byte && strchr("abcdefghijklmnopqrstuvwxyz0123456789_", byte))) {
            word[used++] = (char)byte;
        } else if (used) {
            word[used] = 0;
            used = 0;
            if (strcmp(word, "a") && strcmp(word, "an") && strcmp(word, "the"))
                out += sprintf(out, "%s|", word);
        }
    }
}

static void test_tokenizer_on_noise(void) {
    static const char alphabet[] = "aAnNtThHeE_09zZ .,!<>\t\x80\xFF";
    char text[300], fast[1000], slow[1000];
    int differ = 0;
    for (uint64_t round = 0; round < 3000; round++) {
        size_t length = carnn__random(round, 0) % sizeof text;
        for (size_t i = 0; i < length; i++) {
            uint64_t r = carnn__random(round, i + 1);
            text[i] = round % 3 ? alphabet[r % sizeof alphabet] : (char)(r >> 8);
        }
        words_of(CARNN__WORDS, text, length, fast);
        slow_words(text, length, slow);
        differ += strcmp(fast, slow) != 0;
    }
    CHECK_INT(differ, 0);
}

/* --- names -----------------------------------------------------------------------------------*/

static void test_names(void) {
    static const char *const s[] = {"<unk>", "", "two words", "a\0b", "a\0c", "A"};
    static const size_t length[] = {5, 0, 9, 3, 3, 1};
    test_memory memory = {0, 0, 0};
    carnn_allocator a = allocator_of(&memory);
    carnn_error error;
    carnn__names n;
    CHECK_INT(carnn__names_build(&n, &a, s, length, 6, &error), CARNN_OK);
    CHECK_INT(n.count, 6);
    for (size_t i = 0; i < 6; i++) {
        CHECK_INT(carnn__names_find(&n, s[i], length[i]), i);
        CHECK_INT(carnn__names_length(&n, i), length[i]);
        CHECK(memcmp(carnn__names_get(&n, i), s[i], length[i] + 1) == 0);
    }
    CHECK_INT(carnn__names_find(&n, "a", 1), CARNN__NOWHERE);
    CHECK_INT(carnn__names_find(&n, "a\0d", 3), CARNN__NOWHERE);
    CHECK_INT(carnn__names_find_folded(&n, "<UNK>", 5, 1), 0);
    CHECK_INT(carnn__names_find_folded(&n, "TWO words", 9, 1), 2);
    CHECK_INT(carnn__names_find(&n, "TWO words", 9), CARNN__NOWHERE);
    carnn__names_free(&n, &a);
    CHECK_INT(carnn__names_find(&n, "a", 1), CARNN__NOWHERE);
    CHECK_INT(carnn__names_build(&n, &a, NULL, NULL, 0, &error), CARNN_OK);
    CHECK_INT(carnn__names_find(&n, "", 0), CARNN__NOWHERE);
    carnn__names_free(&n, &a);
    CHECK_INT(memory.blocks, 0);
}

static void test_names_not_distinct(void) {
    static const char *const s[] = {"x", "y", "x"};
    static const size_t length[] = {1, 1, 1};
    test_memory memory = {0, 0, 0};
    carnn_allocator a = allocator_of(&memory);
    carnn_error error;
    carnn__names n;
    CHECK_INT(carnn__names_build(&n, &a, s, length, 3, &error), CARNN_ERR_MODEL);
    CHECK_INT(error.code, CARNN_ERR_MODEL);
    CHECK_INT(carnn__names_build(&n, &a, s, length, 3, NULL), CARNN_ERR_MODEL);
    CHECK_INT(carnn__names_build(&n, &a, s, length, CARNN__NOWHERE, &error), CARNN_ERR_MODEL);
    CHECK_INT(memory.blocks, 0);
}

typedef struct grow_job {
    carnn__names grown;
    size_t count;
    int wrong;
} grow_job;

static size_t number_name(char *out, size_t i) {
    return (size_t)sprintf(out, "%zx", i * 2654435761u);
}

static carnn_status grow(void *job) {
    grow_job *g = (grow_job *)job;
    char name[32];
    for (size_t i = 0; i < 2 * g->count; i++) { /* the second half adds nothing */
        size_t length = number_name(name, i % g->count);
        g->wrong += carnn__names_add(&g->grown, name, length, 0) != i % g->count;
    }
    return CARNN_OK;
}

static carnn_status drop(void *job) {
    carnn__names_drop(&((grow_job *)job)->grown);
    return CARNN_OK;
}

static void test_names_grow(void) {
    test_memory memory = {0, 0, 0};
    carnn_allocator a = allocator_of(&memory);
    char name[32];
    carnn__names n;
    grow_job job;
    int wrong = 0;
    memset(&job, 0, sizeof job);
    job.count = 20000;
    CHECK_INT(carnn__build(&a, grow, &job, NULL), CARNN_OK);
    CHECK_INT(job.wrong, 0);
    CHECK_INT(carnn__names_freeze(&n, &a, &job.grown, NULL), CARNN_OK);
    carnn__build(&a, drop, &job, NULL);
    for (size_t i = 0; i < 2 * job.count; i++) {
        uint32_t found = carnn__names_find(&n, name, number_name(name, i));
        wrong += found != (i < job.count ? i : CARNN__NOWHERE);
    }
    CHECK_INT(wrong, 0);
    CHECK_INT(n.count, job.count);
    carnn__names_free(&n, &a);
    CHECK_INT(memory.blocks, 0);
}

/* --- vocabulary ------------------------------------------------------------------------------*/

static carnn_status make_vocabulary(carnn__names *words, const carnn_allocator *a,
                                    carnn_error *error) {
    static const char *const reserved[] = {"$u", "$r"};
    static const char *const text[] = {"The cat sat .", "a CAT ran", "dog, dog!", "<unk> $u sat"};
    carnn__vocabulary v;
    carnn_status status = carnn__vocabulary_open(&v, a, reserved, 2, error);
    for (size_t i = 0; !status && i < 4; i++)
        status = carnn__vocabulary_add(&v, CARNN__WORDS, text[i], strlen(text[i]), 1 + (i == 1),
                                       error);
    if (!status) return carnn__vocabulary_close(&v, 2, words, error);
    carnn__vocabulary_free(&v);
    return status;
}

static void test_vocabulary(void) {
    /* cat 3 times, sat 2, ran 2 (its text counts twice), dog 2, unk 1, u 1; min_count is 2 */
    static const char *const expected[] = {"<unk>", "$u", "$r", "cat", "sat", "ran", "dog"};
    carnn_allocator a = carnn__allocator(NULL);
    uint32_t ids[4] = {9, 9, 9, 9};
    carnn__names words;
    CHECK_INT(make_vocabulary(&words, NULL, NULL), CARNN_OK);
    CHECK_INT(words.count, 7);
    for (size_t i = 0; i < words.count; i++) CHECK_TEXT(carnn__names_get(&words, i), expected[i]);
    CHECK_INT(carnn__encode(&words, CARNN__WORDS, "The DOG saw a cat ?", 19, ids, 4), 3);
    CHECK_INT(ids[0], 6);
    CHECK_INT(ids[1], 0);
    CHECK_INT(ids[2], 3);
    CHECK_INT(ids[3], 9);
    ids[1] = 9;
    CHECK_INT(carnn__encode(&words, CARNN__WORDS, "sat sat sat", 11, ids, 1), 3);
    CHECK_INT(ids[0], 4);
    CHECK_INT(ids[1], 9);
    CHECK_INT(carnn__encode(&words, CARNN__WORDS, " . ", 3, NULL, 0), 0);
    CHECK_INT(carnn__encode(&words, CARNN__SPACES, "$r Cat cat", 10, ids, 4), 3);
    CHECK_INT(ids[0], 2);
    CHECK_INT(ids[1], 0);
    carnn__names_free(&words, &a);
}

/* --- input and lines -------------------------------------------------------------------------*/

static const char *temporary = "test_text.tmp";

static void write_file(const char *name, const void *bytes, size_t size) {
    FILE *file = fopen(name, "wb");
    CHECK(file && fwrite(bytes, 1, size, file) == size);
    if (file) fclose(file);
}

static carnn_source source_of(const char *name, const void *bytes, size_t size) {
    carnn_source source = {NULL, NULL, 0};
    source.name = name;
    source.bytes = bytes;
    source.size = size;
    return source;
}

static void test_input(void) {
    static const size_t sizes[] = {0, 1, CARNN__FIRST_READ - 1, CARNN__FIRST_READ,
                                   CARNN__FIRST_READ + 1, 300000};
    test_memory memory = {0, 0, 0};
    carnn_allocator a = allocator_of(&memory);
    carnn_source source = source_of(temporary, NULL, 0);
    char *bytes = (char *)malloc(300000);
    carnn_error error;
    carnn__input in;
    for (size_t i = 0; i < 300000; i++) bytes[i] = (char)carnn__random(7, i);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        write_file(temporary, bytes, sizes[i]);
        CHECK_INT(carnn__input_open(&in, &source, &a, &error), CARNN_OK);
        CHECK_INT(in.size, sizes[i]);
        CHECK(memcmp(in.bytes, bytes, in.size) == 0);
        carnn__input_close(&in, &a);
    }
    source = source_of(NULL, bytes, 10);
    CHECK_INT(carnn__input_open(&in, &source, &a, &error), CARNN_OK);
    CHECK(in.bytes == bytes && in.size == 10 && !in.own);
    CHECK_TEXT(in.name, "(memory)");
    carnn__input_close(&in, &a);
    CHECK_INT(memory.blocks, 0);
    remove(temporary);
    free(bytes);
}

static void test_input_errors(void) {
    carnn_allocator a = carnn__allocator(NULL);
    carnn_source missing = source_of("no/such/file", NULL, 0), folder = source_of(".", NULL, 0);
    carnn_source nothing = source_of(NULL, NULL, 0);
    char name[3000];
    carnn_source endless = source_of(name, NULL, 0);
    carnn_error error;
    carnn__input in;
    CHECK_INT(carnn__input_open(&in, &missing, &a, &error), CARNN_ERR_IO);
    CHECK_TEXT(error.message, "no/such/file: No such file or directory");
    CHECK_INT(carnn__input_open(&in, &folder, &a, &error), CARNN_ERR_IO);
    CHECK(strncmp(error.message, ".: ", 3) == 0 && strlen(error.message) > 3);
    CHECK_INT(carnn__input_open(&in, &nothing, &a, &error), CARNN_ERR_ARGUMENT);
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = 0;
    CHECK_INT(carnn__input_open(&in, &endless, &a, &error), CARNN_ERR_IO);
    CHECK(strstr(error.message, "xxx: ") != NULL);
}

static void test_lines(void) {
    static const struct {
        const char *text, *lines;
    } sample[] = {
        {"", ""},       {"a", "a|"},          {"a\n", "a|"},           {"a\r\nb", "a|b|"},
        {"\n", "|"},    {"a\n\nb\r\n", "a||b|"}, {"a\rb\r\r\n", "a\rb\r|"}, {"\r", "|"},
        {"\xEF\xBB\xBF" "a\n\xEF\xBB\xBF" "b", "a|\xEF\xBB\xBF" "b|"},  {"\xEF\xBB", "\xEF\xBB|"},
    };
    for (size_t i = 0; i < sizeof sample / sizeof *sample; i++) {
        carnn_source source = source_of("s", sample[i].text, strlen(sample[i].text));
        carnn_allocator a = carnn__allocator(NULL);
        char out[64] = "";
        carnn__input in;
        carnn__lines l;
        size_t count = 0;
        carnn__input_open(&in, &source, &a, NULL);
        for (l = carnn__lines_of(&in); carnn__next_line(&l); count++) {
            strncat(out, l.line.at, l.line.length);
            strcat(out, "|");
        }
        CHECK_TEXT(out, sample[i].lines);
        CHECK_INT(l.number, count);
        carnn__input_close(&in, &a);
    }
}

static void test_pieces(void) {
    char shown[4 * CARNN__SHOWN + 8];
    carnn__span s = {" \t a b\r ", 8}, part;
    s = carnn__trim(s);
    CHECK(s.length == 3 && memcmp(s.at, "a b", 3) == 0);
    CHECK_INT(carnn__cut(&s, ' ', &part), 1);
    CHECK(part.length == 1 && *part.at == 'a' && s.length == 1 && *s.at == 'b');
    CHECK_INT(carnn__cut(&s, ' ', &part), 0);
    CHECK(part.length == 1 && *part.at == 'b' && s.length == 0);
    CHECK_INT(carnn__cut(&s, ' ', &part), 0);
    CHECK_INT(part.length, 0);
    CHECK_TEXT(carnn__show(shown, part), "nothing");
    part.at = "tab\t nul\0 \xC3\xBC \"q\"";
    part.length = 16;
    CHECK_TEXT(carnn__show(shown, part), "\"tab\\t nul\\x00 \\xc3\\xbc \"q\"\"");
    part.at = "0123456789012345678901234567890123456789";
    part.length = 40;
    CHECK_TEXT(carnn__show(shown, part), "\"0123456789012345678901234567890123456789\"");
    part.at = "0123456789012345678901234567890123456789+";
    part.length = 41;
    CHECK_TEXT(carnn__show(shown, part), "\"0123456789012345678901234567890123456789...\"");
    part.at = "\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1";
    CHECK_INT(strlen(carnn__show(shown, part)), 4 * 40 + 5);
}

/* --- memory that runs out --------------------------------------------------------------------*/

static void test_failing_vocabulary(void) {
    carnn_status status = CARNN_ERR_MEMORY;
    long n;
    for (n = 1; status && n < 1000; n++) {
        test_memory memory = {0, 0, 0};
        carnn_allocator a = allocator_of(&memory);
        carnn_error error = {CARNN_OK, 0, ""};
        carnn__names words;
        memory.fail_at = n;
        status = make_vocabulary(&words, &a, &error);
        CHECK(!status || (status == CARNN_ERR_MEMORY && error.code == CARNN_ERR_MEMORY));
        if (!status) carnn__names_free(&words, &a);
        CHECK_INT(memory.blocks, 0);
    }
    CHECK(n > 8);
    CHECK_INT(status, CARNN_OK);
    CHECK(carnn__landing_here == NULL);
}

static void test_failing_names_and_input(void) {
    static const char *const s[] = {"x", "y"};
    static const size_t length[] = {1, 1};
    carnn_source source = source_of(temporary, NULL, 0);
    char *bytes = (char *)calloc(200000, 1);
    carnn_status status = CARNN_ERR_MEMORY;
    write_file(temporary, bytes, 200000);
    free(bytes);
    for (long n = 1; status; n++) {
        test_memory memory = {0, 0, 0};
        carnn_allocator a = allocator_of(&memory);
        carnn__names names;
        carnn__input in;
        memory.fail_at = n;
        status = carnn__names_build(&names, &a, s, length, 2, NULL);
        if (!status) {
            carnn__names_free(&names, &a);
            status = carnn__input_open(&in, &source, &a, NULL);
        }
        if (!status) carnn__input_close(&in, &a);
        CHECK(!status || status == CARNN_ERR_MEMORY);
        CHECK_INT(memory.blocks, 0);
    }
    remove(temporary);
}

/* The host program may use our copy of stb_ds outside of the library: that memory is malloc's. */
static void test_stb_ds_of_the_host(void) {
    int *list = NULL;
    for (int i = 0; i < 100; i++) stbds_arrput(list, i);
    CHECK_INT(list[99], 99);
    stbds_arrfree(list);
}

int main(void) {
    test_tokenizers();
    test_tokenizer_on_noise();
    test_names();
    test_names_not_distinct();
    test_names_grow();
    test_vocabulary();
    test_input();
    test_input_errors();
    test_lines();
    test_pieces();
    test_failing_vocabulary();
    test_failing_names_and_input();
    test_stb_ds_of_the_host();
    return test_end();
}
