/* @@TEXT: tokenisers, lists of names, vocabularies, reading files, lines, word vectors. */

#include "test.h"

#include <locale.h>
#include <signal.h>

static carnn__span span(const char *at, size_t length) {
    carnn__span s = {at, length};
    return s;
}

/* --- tokenisers ------------------------------------------------------------------------------*/

/* The words of a text, folded as the tokeniser says, each with a bar behind it. */
static void words_of(carnn__tokenizer kind, const char *text, size_t length, char *out) {
    carnn__words w = carnn__words_of(kind, span(text, length));
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
         "hello|,|welcome|to|cambridge|restaurant|system|.|"},
        {CARNN__WORDS, "<SILENCE>", "silence|"},
        {CARNN__WORDS, "a an the A An THE tHe", ""},
        {CARNN__WORDS, "theatre another ana _a the_ an1", "theatre|another|ana|_a|the_|an1|"},
        {CARNN__WORDS, "api_call R_cuisine west moderate", "api_call|r_cuisine|west|moderate|"},
        {CARNN__WORDS, "it's 9.50, isn't it?!", "it|s|9|.|50|,|isn|t|it|?|!|"},
        {CARNN__WORDS, "Z\xC3\xBCrich \xC3\x84RGER", "z\xC3\xBCrich|\xC3\x84rger|"},
        {CARNN__WORDS, "don\xE2\x80\x99t \xE2\x80\x9Cso\xE2\x80\x9D a\xE2\x80\x94no\xE2\x80\xA6",
         "don|t|so|no|"},
        {CARNN__WORDS, "\xE2\x82\xAC 9 x\xE2\x80\x8Cy", /* joiners (U+200C) are within words */
         "\xE2\x82\xAC|9|x\xE2\x80\x8Cy|"},
        {CARNN__WORDS, "x\xE2\x80", "x\xE2\x80|"},
        {CARNN__WORDS, "", ""},
        {CARNN__WORDS, " .,;:-!?()[]{}@#$%^&*+=/\\|<>'\"`~\t\r\n\x01\x7F", ".|,|;|!|?|"},
        {CARNN__WORDS, "AZaz09_ @[`{", "azaz09_|"},
        {CARNN__SPACES, "  The cat\t<unk> 's N.Y. \r\n", "The|cat|<unk>|'s|N.Y.|"},
        {CARNN__SPACES, "a the \xC3\x84", "a|the|\xC3\x84|"},
        {CARNN__SPACES, " \t ", ""},
        {CARNN__LOWER, "The cat's N.Y.", "the|cat's|n.y.|"},
        {CARNN__TOKENS, "How are tissues joined together?", "how|are|tissues|joined|together|?|"},
        {CARNN__TOKENS, "who 's <num> -lrb- u.s. mr. x -rrb- `` so '' n't ... -- 1,000 .05 .",
         "who|'s|<num>|-lrb-|u.s.|mr.|x|-rrb-|``|so|''|n't|...|--|1,000|.05|.|"},
        {CARNN__TOKENS, "\"Wait... (yes), e.g. U.N.\" He said so.",
         "\"|wait|...|(|yes|)|,|e.g.|u.n.|\"|he|said|so|.|"},
        {CARNN__TOKENS, "?!!. ..a.b.. the U.S.", "?|!!|.|..a.b|..|the|u.s.|"},
        {CARNN__TOKENS, "a..,..,b ..,..,. ,.,", "a..,..,b|..|,|..|,|.|,|.|,|"},
        {CARNN__TOKENS, "(etc.). As (here). mr.) 5.). \"Dr.\". (U.S.). (so).",
         "(|etc.|)|.|as|(|here|)|.|mr.|)|5.|)|.|\"|dr.|\"|.|(|u.s.|)|.|(|so|)|.|"},
        {CARNN__TOKENS, "", ""},
        {CARNN__SPOKEN, "Uh, I don't, I -- [laughter] THINK so.",
         "uh|,|i|don't|,|i|laughter|think|so|.|"},
        {CARNN__SPOKEN, "'cause rock'n'roll o' 90's 4x4's'", "cause|rock'n|roll|o|90's|4x4's|"},
        {CARNN__SPOKEN, "it's9 a_b x'9 y'' \xC3\x84n?!..;:", "it's|9|a|b|x|9|y|n|?|!|.|.|"},
        {CARNN__SPOKEN, "<>'\"-/ \t'", ""},
        {CARNN__SPOKEN, "I'", "i|"},
        {CARNN__SPOKEN, "", ""},
        {CARNN__CANDIDATES, " a|B  c | |\td\t||", "a|B  c|d|"},
    };
    char out[256];
    for (size_t i = 0; i < sizeof sample / sizeof *sample; i++) {
        words_of(sample[i].kind, sample[i].text, strlen(sample[i].text), out);
        CHECK_TEXT(out, sample[i].words);
    }
    words_of(CARNN__WORDS, "x\0Y z", 5, out);
    CHECK_TEXT(out, "x|y|z|");
    words_of(CARNN__SPOKEN, "I\0'm it's", 8, out);
    CHECK_TEXT(out, "i|m|it|"); /* the text ends at the apostrophe */
    words_of(CARNN__WORDS, "whole", 3, out);
    CHECK_TEXT(out, "who|");
    words_of(CARNN__WORDS, NULL, 0, out);
    CHECK_TEXT(out, "");
}

static int in_range(int c, int first, int last) { return c >= first && c <= last; }

/* The rule of MemN2N once more, in the way of a student: copy words into a buffer, then look. */
static void slow_words(const char *text, size_t length, char *out) {
    char word[1024];
    size_t used = 0;
    *out = 0;
    for (size_t i = 0; i <= length; i++) {
        unsigned char byte = i < length ? (unsigned char)text[i] : ' ';
        if (i + 2 < length && byte == 0xE2 && (unsigned char)text[i + 1] == 0x80 &&
            in_range((unsigned char)text[i + 2], 0x90, 0xBF)) { /* U+2010 to U+203F */
            byte = ' ';
            i += 2;
        }
        if (byte >= 'A' && byte <= 'Z') byte = (unsigned char)(byte - 'A' + 'a');
        if (byte >= 128 || (byte && strchr("abcdefghijklmnopqrstuvwxyz0123456789_", byte))) {
            word[used++] = (char)byte;
        } else if (used) {
            word[used] = 0;
            used = 0;
            if (strcmp(word, "a") && strcmp(word, "an") && strcmp(word, "the"))
                out += sprintf(out, "%s|", word);
        }
        if (byte && strchr(".,;?!", byte)) out += sprintf(out, "%c|", byte);
    }
}

static int is_letter(int c) { return in_range(c, 'a', 'z') || in_range(c, 'A', 'Z'); }

/* What [A-Za-z0-9]+(?:'[A-Za-z]+)?|[.,?!] matches, one byte after the other: `state` is 0 outside
   of a word, 1 in its first part, 2 in the part behind the apostrophe. */
static void slow_spoken(const char *text, size_t length, char *out) {
    int state = 0;
    for (size_t i = 0; i <= length; i++) {
        int c = i < length ? (unsigned char)text[i] : 0, next = i + 1 < length ? text[i + 1] : 0;
        int alike = is_letter(c) || in_range(c, '0', '9');
        if (state == 1 && c == '\'' && is_letter(next)) {
            state = 2;
            *out++ = '\'';
            continue;
        }
        if (state && !(state == 1 ? alike : is_letter(c))) {
            *out++ = '|';
            state = 0;
        }
        if (alike) {
            *out++ = (char)(in_range(c, 'A', 'Z') ? c + 'a' - 'A' : c);
            if (!state) state = 1;
        } else if (c == '.' || c == ',' || c == '?' || c == '!') {
            out += sprintf(out, "%c|", c);
        }
    }
    *out = 0;
}

static void test_tokenizer_on_noise(void) {
    static const char alphabet[] = "aAnNtThHe_09zZ .,!<>\t\x80\x80\x99\xE2\xE2\xFF''";
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
        words_of(CARNN__SPOKEN, text, length, fast);
        slow_spoken(text, length, slow);
        differ += strcmp(fast, slow) != 0;
    }
    CHECK_INT(differ, 0);
}

/* Anything that is not linear in the length would show here as a hang. */
static void test_long_texts(void) {
    static const char *const pieces[] = {"a", "!?", ".?", "..a", "a.", "..,", "A an ", "a'",
                                         "\xC3\xA4.\0"};
    enum { LENGTH = 3000000 };
    char *text = (char *)malloc(LENGTH);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        size_t piece = i < 8 ? strlen(pieces[i]) : 4;
        for (size_t k = 0; k < LENGTH; k++) text[k] = pieces[i][k % piece];
        for (int kind = CARNN__WORDS; kind <= CARNN__SPOKEN; kind++) {
            carnn__words w = carnn__words_of((carnn__tokenizer)kind, span(text, LENGTH));
            size_t bytes = 0;
            while (carnn__next_word(&w)) bytes += w.word.length;
            CHECK(bytes <= LENGTH);
        }
    }
    free(text);
}

/* --- names -----------------------------------------------------------------------------------*/

static carnn_status build_names(carnn__names *n, const carnn_allocator *a, const char *const *s,
                                const size_t *length, size_t count, carnn_error *error) {
    carnn__span list[256];
    for (size_t i = 0; i < count && i < 256; i++) list[i] = span(s[i], length[i]);
    return carnn__names_build(n, a, list, count, error);
}

static void test_names(void) {
    static const char *const s[] = {"<unk>", "", "two words", "a\0b", "a\0c", "A"};
    static const size_t length[] = {5, 0, 9, 3, 3, 1};
    test_memory memory = {0, 0, 0};
    carnn_allocator a = test_allocator(&memory);
    carnn_error error;
    carnn__names n;
    CHECK_INT(build_names(&n, &a, s, length, 6, &error), CARNN_OK);
    CHECK_INT(n.count, 6);
    for (size_t i = 0; i < 6; i++) {
        CHECK_INT(carnn__names_find(&n, span(s[i], length[i])), i);
        CHECK_INT(carnn__name(&n, i).length, length[i]);
        CHECK(memcmp(carnn__names_get(&n, i), s[i], length[i] + 1) == 0);
    }
    CHECK_INT(carnn__names_find(&n, carnn__span_of("a")), CARNN__NO_INDEX);
    CHECK_INT(carnn__names_find(&n, span("a\0d", 3)), CARNN__NO_INDEX);
    CHECK_INT(carnn__names_find_folded(&n, carnn__span_of("<UNK>"), 1), 0);
    CHECK_INT(carnn__names_find_folded(&n, carnn__span_of("TWO words"), 1), 2);
    CHECK_INT(carnn__names_find(&n, carnn__span_of("TWO words")), CARNN__NO_INDEX);
    carnn__names_free(&n, &a);
    CHECK_INT(carnn__names_find(&n, carnn__span_of("a")), CARNN__NO_INDEX);
    CHECK_INT(build_names(&n, &a, NULL, NULL, 0, &error), CARNN_OK);
    CHECK_INT(carnn__names_find(&n, carnn__span_of("")), CARNN__NO_INDEX);
    carnn__names_free(&n, &a);
    CHECK_INT(memory.blocks, 0);
}

static void test_names_not_distinct(void) {
    static const char *const s[] = {"x", "y", "x"};
    static const size_t length[] = {1, 1, 1};
    test_memory memory = {0, 0, 0};
    carnn_allocator a = test_allocator(&memory);
    carnn_error error;
    carnn__names n;
    CHECK_INT(build_names(&n, &a, s, length, 3, &error), CARNN_ERR_MODEL);
    CHECK_INT(error.code, CARNN_ERR_MODEL);
    CHECK_INT(build_names(&n, &a, s, length, 3, NULL), CARNN_ERR_MODEL);
    CHECK_INT(carnn__names_build(&n, &a, NULL, CARNN__NO_INDEX, &error), CARNN_ERR_MODEL);
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
        g->wrong += carnn__names_add(&g->grown, span(name, length), 0) != i % g->count;
    }
    return CARNN_OK;
}

static carnn_status drop_grown(void *job) {
    carnn__names_drop(&((grow_job *)job)->grown);
    return CARNN_OK;
}

static void test_names_grow(void) {
    test_memory memory = {0, 0, 0};
    carnn_allocator a = test_allocator(&memory);
    char name[32];
    grow_job job;
    int wrong = 0;
    memset(&job, 0, sizeof job);
    job.count = 20000;
    CHECK_INT(carnn__build(&a, grow, &job, NULL), CARNN_OK);
    CHECK_INT(job.wrong, 0);
    for (size_t i = 0; i < 2 * job.count; i++) {
        size_t length = number_name(name, i);
        uint32_t found = carnn__names_find(&job.grown, span(name, length));
        wrong += found != (i < job.count ? i : CARNN__NO_INDEX);
        if (i < job.count)
            wrong += carnn__name(&job.grown, i).length != length ||
                     memcmp(carnn__names_get(&job.grown, i), name, length + 1) != 0;
    }
    CHECK_INT(wrong, 0);
    CHECK_INT(job.grown.count, job.count);
    carnn__build(&a, drop_grown, &job, NULL);
    CHECK_INT(memory.blocks, 0);
}

/* All 256 strings of eight pieces, one of each pair, have the same FNV-1a. In 512 slots they must
   not lie in one run for all that: even runs half as long do not come about by chance. */
static void test_names_of_one_hash(void) {
    static const char *const pieces[8][2] = {
        {"_dh<X#)n`CXd'P37", "Zd*Do#p-nE0`Zs))"}, {"O1Ifz3IYnS7U,ty_", "D7Ib/3B``M/ykMc]"},
        {")@3av'#F_F#NYyrn", ",@3{5g*I!D+JRHLh"}, {":(9_@2E^dE(tWPAj", "'(Y5_2N_nC0hTqGt"},
        {")X+M86-]eDQ9zZIA", "&X+{u6$^+J9%7}WC"}, {"!)5*521}`z.!Od7p", "^+]^h2V<&TVeBc1r"},
        {"OU4p!'uE*q3LI:'u", "J[*Hd',FXW[HtI)w"}, {"]$%W7[,g)<<{8Y/V", "Z$9aJ+#&+b$_}z9P"}};
    static char text[256][8 * 16 + 1];
    const char *s[256];
    size_t length[256], run = 0, longest = 0;
    carnn_allocator a = carnn__allocator(NULL);
    carnn__names n;
    for (size_t i = 0; i < 256; i++) {
        for (size_t k = 0; k < 8; k++) memcpy(text[i] + 16 * k, pieces[k][i >> k & 1], 16);
        s[i] = text[i];
        length[i] = 8 * 16;
        CHECK(carnn__hash(span(s[i], length[i]), 0) == carnn__hash(span(s[0], length[0]), 0));
    }
    CHECK_INT(build_names(&n, &a, s, length, 256, NULL), CARNN_OK);
    CHECK_INT(n.slots, 512);
    for (size_t i = 0; i < n.slots; i++) {
        run = n.slot[i] == CARNN__NO_INDEX ? 0 : run + 1;
        longest = carnn__max(longest, run);
    }
    CHECK(longest < 128);
    for (size_t i = 0; i < 256; i++) CHECK_INT(carnn__names_find(&n, span(s[i], length[i])), i);
    carnn__names_free(&n, &a);
}

/* --- vocabulary ------------------------------------------------------------------------------*/

static carnn_status make_vocabulary(carnn__names *words, const carnn_allocator *a,
                                    carnn_error *error) {
    static const char *const reserved[] = {"$u", "$r"};
    static const char *const text[] = {"The cat sat .", "a CAT ran", "dog, dog!", "<unk> $u sat"};
    carnn__vocabulary v;
    carnn__vocabulary_open(&v, a, reserved, 2, error);
    for (size_t i = 0; i < 4; i++)
        carnn__vocabulary_add(&v, CARNN__WORDS, carnn__span_of(text[i]), 1 + (i == 1));
    return carnn__vocabulary_close(&v, 2, words);
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
    CHECK_INT(carnn__tokenize(&words, CARNN__WORDS, carnn__span_of("The DOG saw a cat ?"), ids, 4),
              4);
    CHECK_INT(ids[0], 6);
    CHECK_INT(ids[1], 0);
    CHECK_INT(ids[2], 3);
    CHECK_INT(ids[3], 0);
    ids[1] = 9;
    CHECK_INT(carnn__tokenize(&words, CARNN__WORDS, carnn__span_of("sat sat sat"), ids, 1), 3);
    CHECK_INT(ids[0], 4);
    CHECK_INT(ids[1], 9);
    CHECK_INT(carnn__tokenize(&words, CARNN__WORDS, carnn__span_of(" - "), NULL, 0), 0);
    CHECK_INT(carnn__tokenize(&words, CARNN__SPACES, carnn__span_of("$r Cat cat"), ids, 4), 3);
    CHECK_INT(ids[0], 2);
    CHECK_INT(ids[1], 0);
    carnn__names_free(&words, &a);
}

/* Of equally frequent words the earlier ones are kept. */
static void test_vocabulary_limit(void) {
    static const struct {
        size_t most, min_count;
        const char *words;
    } sample[] = {
        {0, 1, "<unk> $ b c a d e "}, {9, 1, "<unk> $ b c a d e "}, {5, 0, "<unk> $ b c a d e "},
        {4, 1, "<unk> $ b c a d "},   {3, 1, "<unk> $ b c a "},     {2, 1, "<unk> $ b a "},
        {1, 1, "<unk> $ a "},         {4, 2, "<unk> $ b c a d "},   {4, 3, "<unk> $ a "},
        {2, 4, "<unk> $ "},
    };
    static const char *const reserved[] = {"$"};
    carnn_allocator a = carnn__allocator(NULL);
    for (size_t i = 0; i < sizeof sample / sizeof *sample; i++) {
        carnn__vocabulary v;
        carnn__names words;
        char out[64] = "";
        carnn__vocabulary_open(&v, NULL, reserved, 1, NULL);
        carnn__vocabulary_add(&v, CARNN__SPACES, carnn__span_of("b c a c d d e a b a $ $ <unk>"),
                              1);
        v.most = sample[i].most;
        CHECK_INT(carnn__vocabulary_close(&v, sample[i].min_count, &words), CARNN_OK);
        for (size_t k = 0; k < words.count; k++) {
            strcat(out, carnn__names_get(&words, k));
            strcat(out, " ");
        }
        CHECK_TEXT(out, sample[i].words);
        carnn__names_free(&words, &a);
    }
}

/* A word may have occurred more often than 32 bits can say. */
static void test_vocabulary_often(void) {
    carnn_allocator a = carnn__allocator(NULL);
    carnn__vocabulary v;
    carnn__names words;
    carnn__vocabulary_open(&v, NULL, NULL, 0, NULL);
    carnn__vocabulary_add(&v, CARNN__SPACES, carnn__span_of("a b b"), 1);
    if (SIZE_MAX > UINT32_MAX)
        carnn__vocabulary_add(&v, CARNN__SPACES, carnn__span_of("a"), UINT32_MAX);
    v.most = 1;
    CHECK_INT(carnn__vocabulary_close(&v, 1, &words), CARNN_OK);
    CHECK_TEXT(carnn__names_get(&words, 1), SIZE_MAX > UINT32_MAX ? "a" : "b");
    carnn__names_free(&words, &a);
}

/* One word more than there may be; texts behind it do not hide the error. */
static void test_vocabulary_full(void) {
    size_t i, width = 7, size = width * CARNN__COUNT_LIMIT;
    char *text = (char *)malloc(size + 1);
    carnn__vocabulary v;
    carnn__names words;
    carnn_error error;
    for (i = 0; i < size; i += width) sprintf(text + i, "%06zx ", i / width);
    carnn__vocabulary_open(&v, NULL, NULL, 0, &error);
    carnn__vocabulary_add(&v, CARNN__SPACES, span(text, size - width), 1);
    CHECK_INT(v.status, CARNN_OK);
    carnn__vocabulary_add(&v, CARNN__SPACES, span(text, size), 1);
    carnn__vocabulary_add(&v, CARNN__SPACES, carnn__span_of(""), 1);
    CHECK_INT(carnn__vocabulary_close(&v, 1, &words), CARNN_ERR_DATA);
    CHECK_TEXT(error.message, "more than 1000000 different words");
    free(text);
}

/* A list of labels is a vocabulary that is not opened: it has no <unk>, and may be empty. */
static void test_vocabulary_of_labels(void) {
    static const char *const expected[] = {"O", "B-loc", "<unk>", "o"};
    test_memory memory = {0, 0, 0};
    carnn_allocator a = test_allocator(&memory);
    for (int empty = 0; empty < 2; empty++) {
        carnn__vocabulary v;
        carnn__names labels;
        carnn__vocabulary_init(&v, &a, NULL);
        if (!empty)
            carnn__vocabulary_add(&v, CARNN__SPACES, carnn__span_of("O O B-loc <unk> o O"), 1);
        CHECK_INT(carnn__vocabulary_close(&v, 1, &labels), CARNN_OK);
        CHECK_INT(labels.count, empty ? 0 : 4);
        for (size_t i = 0; i < labels.count; i++) {
            CHECK_TEXT(carnn__names_get(&labels, i), expected[i]);
            CHECK_INT(carnn__names_find(&labels, carnn__span_of(expected[i])), i);
        }
        CHECK_INT(labels.at[labels.count], empty ? 0 : 16); /* bytes, in one piece */
        CHECK_INT(carnn__names_find(&labels, carnn__span_of("I-loc")), CARNN__NO_INDEX);
        carnn__names_free(&labels, &a);
    }
    CHECK_INT(memory.blocks, 0);
}

/* --- input and lines -------------------------------------------------------------------------*/

static const char *temporary = "test_text.tmp";

static void test_input(void) {
    static const size_t sizes[] = {0, 1, CARNN__FIRST_READ - 1, CARNN__FIRST_READ,
                                   CARNN__FIRST_READ + 1, 300000};
    test_memory memory = {0, 0, 0};
    carnn_allocator a = test_allocator(&memory);
    carnn_source source = test_source(temporary, NULL, 0);
    char *bytes = (char *)malloc(300000);
    carnn_error error;
    carnn__input in;
    for (size_t i = 0; i < 300000; i++) bytes[i] = (char)carnn__random(7, i);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        test_write(temporary, bytes, sizes[i]);
        CHECK_INT(carnn__input_open(&in, &source, SIZE_MAX, &a, &error), CARNN_OK);
        CHECK_INT(in.lines.rest.length, sizes[i]);
        CHECK(memcmp(in.lines.rest.at, bytes, in.lines.rest.length) == 0);
        carnn__input_close(&in);
    }
    source = test_source(NULL, bytes, 10);
    CHECK_INT(carnn__input_open(&in, &source, SIZE_MAX, &a, &error), CARNN_OK);
    CHECK(in.lines.rest.at == bytes && in.lines.rest.length == 10 && !in.buffer);
    CHECK_TEXT(in.lines.name, "(memory)");
    carnn__input_close(&in);
    CHECK_INT(memory.blocks, 0);
    remove(temporary);
    free(bytes);
}

static void test_input_errors(void) {
    carnn_allocator a = carnn__allocator(NULL);
    carnn_source missing = test_source("no/such/file", NULL, 0), folder = test_source(".", NULL, 0);
    carnn_source nothing = test_source(NULL, NULL, 0);
    char name[3000];
    carnn_source endless = test_source(name, NULL, 0);
    carnn_error error;
    carnn__input in;
    CHECK_INT(carnn__input_open(&in, &missing, SIZE_MAX, &a, &error), CARNN_ERR_IO);
    CHECK_TEXT(error.message, "no/such/file: No such file or directory");
    CHECK_INT(carnn__input_open(&in, &folder, SIZE_MAX, &a, &error), CARNN_ERR_IO);
    CHECK(strncmp(error.message, ".: ", 3) == 0 && strlen(error.message) > 3);
    CHECK_INT(carnn__input_open(&in, &nothing, SIZE_MAX, &a, &error), CARNN_ERR_ARGUMENT);
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = 0;
    CHECK_INT(carnn__input_open(&in, &endless, SIZE_MAX, &a, &error), CARNN_ERR_IO);
    CHECK(strstr(error.message, "xxx: ") != NULL);
    memset(name, 0, sizeof name); /* as /dev/zero begins */
    nothing = test_source("zeros", name, 8);
    CHECK_INT(carnn__input_open(&in, &nothing, SIZE_MAX, &a, &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message, "zeros: begins with NUL bytes, expected data");
    nothing.size = 7;
    CHECK_INT(carnn__input_open(&in, &nothing, SIZE_MAX, &a, &error), CARNN_OK);
    carnn__input_close(&in);
    for (size_t i = 0; i < 4; i++) { /* UTF-16 without a mark; two that are not */
        nothing = test_source("wide", i == 2 ? "a\0b\0c\0d" "e" : i == 3 ? "a\0b\0\0\0d\0"
                                      : i ? "\0a\0 \0c\0d" : "a\0 \0c\0d\0", 8);
        CHECK_INT(carnn__input_open(&in, &nothing, SIZE_MAX, &a, &error),
                  i < 2 ? CARNN_ERR_DATA : CARNN_OK);
        if (i < 2) CHECK(strstr(error.message, "wide: is UTF-16, expected UTF-8") != NULL);
        else carnn__input_close(&in);
    }
}

static void test_lines(void) {
    static const struct {
        const char *text, *lines;
    } sample[] = {
        {"", ""},       {"a", "a|"},          {"a\n", "a|"},           {"a\r\nb", "a|b|"},
        {"\n", "|"},    {"a\n\nb\r\n", "a||b|"}, {"a\rb\r\r\n", "a\rb\r|"}, {"\r", "|"},
        {"\xEF\xBB\xBF" "a\n\xEF\xBB\xBF" "b\nc\xEF\xBB\xBF", "a|b|c\xEF\xBB\xBF|"},
        {"\xEF\xBB", "\xEF\xBB|"}, {"a\n\xEF\xBB\xBF\r\n\xEF\xBB\xBF", "a|||"},
    };
    for (size_t i = 0; i < sizeof sample / sizeof *sample; i++) {
        carnn_source source = test_source("s", sample[i].text, strlen(sample[i].text));
        carnn_allocator a = carnn__allocator(NULL);
        char out[64] = "";
        carnn__input in;
        carnn__lines l;
        size_t count = 0;
        carnn__input_open(&in, &source, SIZE_MAX, &a, NULL);
        for (l = in.lines; carnn__next_line(&l); count++) {
            strncat(out, l.line.at, l.line.length);
            strcat(out, "|");
        }
        CHECK_TEXT(out, sample[i].lines);
        CHECK_INT(l.number, count);
        carnn__input_close(&in);
    }
}

static void test_pieces(void) {
    carnn_error error;
    char shown[4 * CARNN__SHOWN + 8], name[172];
    carnn__span s = {" \t a b\r ", 8}, part;
    size_t i;
    s = carnn__trim(s);
    CHECK(s.length == 3 && memcmp(s.at, "a b", 3) == 0);
    CHECK_INT(carnn__cut(&s, ' ', &part), 1);
    CHECK(part.length == 1 && *part.at == 'a' && s.length == 1 && *s.at == 'b');
    CHECK_INT(carnn__cut(&s, ' ', &part), 0);
    CHECK(part.length == 1 && *part.at == 'b' && s.length == 0);
    CHECK_INT(carnn__cut(&s, ' ', &part), 0);
    CHECK_INT(part.length, 0);
    CHECK_TEXT(carnn__show(shown, part), "nothing");
    CHECK_INT(carnn__io_error(&error, "\033[2J\xC3\xBC\n", "\x7F"), CARNN_ERR_IO);
    CHECK_TEXT(error.message, "?[2J\xC3\xBC?: ?");
    part.at = "tab\t nul\0\x7F\xFC \"q\"";
    part.length = 15;
    CHECK_TEXT(carnn__show(shown, part), "\"tab\\t nul\\x00\\x7f\\xfc \"q\"\"");
    part.at = "St\xC3\xB6rung \xC2\xB0 \xE2\x80\x9E \xF0\x9F\x98\xA1 \xC2\x9B \xC0\xAF \xC3";
    part.length = strlen(part.at);
    CHECK_TEXT(carnn__show(shown, part), "\"St\xC3\xB6rung \xC2\xB0 \xE2\x80\x9E \xF0\x9F\x98\xA1"
                                         " \\xc2\\x9b \\xc0\\xaf \\xc3\"");
    part.at = "\xE0\x9F\xBF \xE0\xA0\x80 \xED\x9F\xBF \xED\xA0\x80 \xF0\x8F\xBF\xBF "
              "\xF0\x90\x80\x80 \xF4\x8F\xBF\xBF \xF4\x90\x80\x80"; /* at the limits of UTF-8 */
    part.length = strlen(part.at);
    CHECK_TEXT(carnn__show(shown, part),
               "\"\\xe0\\x9f\\xbf \xE0\xA0\x80 \xED\x9F\xBF \\xed\\xa0\\x80 \\xf0\\x8f\\xbf\\xbf "
               "\xF0\x90\x80\x80 \xF4\x8F\xBF\xBF \\xf4\\x90\\x80\\x80\"");
    part.at = "012345678901234567890123456789012345678\xC3\xB6"; /* no half of a character */
    part.length = 41;
    CHECK_TEXT(carnn__show(shown, part), "\"012345678901234567890123456789012345678...\"");
    part.at = "0123456789012345678901234567890123456789";
    part.length = 40;
    CHECK_TEXT(carnn__show(shown, part), "\"0123456789012345678901234567890123456789\"");
    part.at = "0123456789012345678901234567890123456789+";
    part.length = 41;
    CHECK_TEXT(carnn__show(shown, part), "\"0123456789012345678901234567890123456789...\"");
    part.at = "\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1";
    CHECK_INT(strlen(carnn__show(shown, part)), 4 * 40 + 5);
    for (i = 0; i < sizeof name; i++) name[i] = "\xC3\xBC"[i % 2]; /* characters of two bytes */
    strcpy(name + 170, "x");
    CHECK(carnn__name_end(name) == name + 12); /* 160 bytes would begin inside the sixth */
    name[160] = 0;
    CHECK(carnn__name_end(name) == name);
}

/* --- packed files ----------------------------------------------------------------------------*/

/* "1 hi\thello\n" 1000 times, by gzip -9n. */
static const unsigned char packed[] = {
    0x1F, 0x8B, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xED, 0xC6, 0xB1, 0x09,
    0x00, 0x20, 0x0C, 0x00, 0xB0, 0xD9, 0x5E, 0xE1, 0x0B, 0x3D, 0xAA, 0x50, 0xA1, 0xE0,
    0xFF, 0x9B, 0x6F, 0x38, 0x24, 0x53, 0x72, 0xF7, 0x59, 0x5D, 0x33, 0x37, 0x52, 0x55,
    0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55,
    0x55, 0x55, 0x55, 0x55, 0x55, 0xF5, 0xD7, 0x3E, 0xE6, 0xE2, 0x2F, 0x58, 0xF8, 0x2A,
    0x00, 0x00};

static int gzip_at_hand(void) {
#ifndef __EMSCRIPTEN__ /* which starts no programs */
    if (system("gzip --version >/dev/null 2>&1") == 0) return 1;
#endif
    printf("left out: gzip is not at hand\n");
    return 0;
}

static void test_packed_files(void) {
    test_memory memory = {0, 0, 0};
    carnn_allocator a = test_allocator(&memory);
    carnn_source source = test_source(temporary, NULL, 0);
    unsigned char more[sizeof packed + 3]; /* bytes behind the end, of which gzip warns */
    carnn_error error;
    carnn__input in;
    source.bytes = packed;
    source.size = sizeof packed;
    CHECK_INT(carnn__input_open(&in, &source, SIZE_MAX, &a, &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message, "test_text.tmp: is packed; unpack it first with gzip -d");
    source.bytes = NULL;
    if (!gzip_at_hand()) return;
    test_write(temporary, packed, sizeof packed);
    CHECK_INT(carnn__input_open(&in, &source, SIZE_MAX, &a, &error), CARNN_OK);
    CHECK_INT(in.lines.rest.length, 11000);
    CHECK(memcmp(in.lines.rest.at, "1 hi\thello\n1 hi\t", 16) == 0);
    CHECK(in.lines.rest.at[10999] == '\n');
    carnn__input_close(&in);
    memcpy(more, packed, sizeof packed);
    memcpy(more + sizeof packed, "xyz", 3);
    test_write(temporary, more, sizeof more);
    CHECK_INT(carnn__input_open(&in, &source, SIZE_MAX, &a, &error), CARNN_OK);
    CHECK_INT(in.lines.rest.length, 11000);
    carnn__input_close(&in);
    test_write(temporary, packed, sizeof packed - 10);
    CHECK_INT(carnn__input_open(&in, &source, SIZE_MAX, &a, &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message,
               "test_text.tmp: gzip cannot unpack it: it is damaged, or a part cannot be read");
#ifdef SIGCHLD
    signal(SIGCHLD, SIG_IGN); /* then nobody can tell */
    CHECK_INT(carnn__input_open(&in, &source, SIZE_MAX, &a, &error), CARNN_ERR_IO);
    signal(SIGCHLD, SIG_DFL);
    CHECK(strstr(error.message, "test_text.tmp: gzip's exit code is lost") != NULL);
#endif
    CHECK_INT(memory.blocks, 0);
    remove(temporary);
}

/* What a program gets of a source: text that a NUL follows, in memory of malloc's. */
static void test_read_files(void) {
    carnn_source source = test_source("bytes", "\xEF\xBB\xBF" "a\r\n\0b", 8);
    carnn_error error;
    char *text;
    size_t length;
    CHECK_INT(carnn_file_read(&source, &text, &length, &error), CARNN_OK);
    CHECK(length == 5 && !memcmp(text, "a\r\n\0b", 6));
    free(text);
    source.size = 0;
    CHECK_INT(carnn_file_read(&source, &text, &length, &error), CARNN_OK);
    CHECK(length == 0 && text && !*text);
    free(text);
    source = test_source("no-such-file", NULL, 0);
    CHECK_INT(carnn_file_read(&source, &text, &length, &error), CARNN_ERR_IO);
    CHECK(!text && !length && strstr(error.message, "no-such-file: ") == error.message);
    if (!gzip_at_hand()) return;
    test_write(temporary, packed, sizeof packed);
    source.name = temporary;
    CHECK_INT(carnn_file_read(&source, &text, &length, &error), CARNN_OK);
    CHECK(length == 11000 && strlen(text) == length);
    free(text);
    remove(temporary);
}

/* A name that a shell would take apart, and a reader that stops before the end. */
static void test_packed_name(void) {
    static const char *odd = "-test '$(exit)\" `x`;&.tmp";
    carnn_allocator a = carnn__allocator(NULL);
    carnn_source source = test_source(odd, NULL, 0);
    carnn__input in;
    if (!gzip_at_hand()) return;
    test_write(odd, packed, sizeof packed);
    CHECK_INT(carnn__input_open(&in, &source, 0, &a, NULL), CARNN_OK);
    CHECK(in.lines.rest.length >= 2 && memcmp(in.lines.rest.at, "1 ", 2) == 0);
    carnn__input_close(&in);
#ifdef CARNN__GZIP
    CHECK(waitpid(-1, NULL, WNOHANG) == -1); /* no process is left */
#endif
    remove(odd);
}

/* A pipe cannot be read twice; our standard input can by its name, where it is a file. */
static void test_packed_input(void) {
    static const char *fifo = "test_text.fifo";
    carnn_allocator a = carnn__allocator(NULL);
    carnn_source pipe_source = test_source(fifo, NULL, 0);
    carnn_source standard = test_source("/dev/stdin", NULL, 0);
    carnn_error error;
    carnn__input in;
    if (!gzip_at_hand()) return;
    test_write(temporary, packed, sizeof packed);
    if (system("mkfifo test_text.fifo && (cat test_text.tmp >test_text.fifo &)") == 0) {
        CHECK_INT(carnn__input_open(&in, &pipe_source, SIZE_MAX, &a, &error), CARNN_ERR_DATA);
        CHECK_TEXT(error.message, "test_text.fifo: is packed; unpack it first with gzip -d");
        remove(fifo);
    }
    if (freopen(temporary, "rb", stdin)) {
        CHECK_INT(carnn__input_open(&in, &standard, SIZE_MAX, &a, &error), CARNN_OK);
        CHECK_INT(in.lines.rest.length, 11000);
        carnn__input_close(&in);
    }
    remove(temporary);
}

/* --- numbers ---------------------------------------------------------------------------------*/

static int read_number(const char *text, double *number) {
    carnn__span s = {NULL, 0};
    s.at = text;
    s.length = strlen(text);
    return carnn__number(s, number);
}

static void test_numbers(void) {
    static const char *const good[] = {
        "0", "-0", "1", "+1", "0.418", "-0.00066023", "1.", ".5", "-.5e3", "1e-7", "1E+3", "12e0",
        "3.4028234e38", "1e39", "-1e39", "1e-45", "1e-60", "123456789012345678901234567890",
        "0e999999999999", "0.000000000000000000000000000000000000000000001", "-7.1e-46",
        "0.1234567890123456789012345678901234567890", "9007199254740993", "1e22", "1e23", "-1e-23",
        "1.7976931348623157e308", "4.9e-324", "1e-400", "0.0000000000000000000001e22"};
    static const char *const bad[] = {"", "-", ".", "-.", "e5", "1e", "1e+", "1.2.3", "1 ", " 1",
                                      "0x10", "nan", "inf", "1.8e308", "-1e309", "1e400", "1,5",
                                      "--1", "1e5.5", "1e--5", "1e+-5", "1e999999999999999999999",
                                      "1e18446744073709551617"}; /* 2^64 + 1 */
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        double number = 77;
        CHECK_INT(read_number(good[i], &number), 1);
        CHECK_NEAR(number, strtod(good[i], NULL), 0);
        CHECK_INT(signbit(number) != 0, *good[i] == '-');
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        double number;
        CHECK_INT(read_number(bad[i], &number), 0);
    }
}

/* In a locale of this name the number is the one that the C library reads in "C", and is written as
   it is there. */
static int as_in_c(const char *text, const char *locale) {
    double number = 77, expected = strtod(text, NULL);
    char written[CARNN__NUMBER_SIZE], in_c[CARNN__NUMBER_SIZE];
    float single = strtof(text, NULL);
    int good;
    setlocale(LC_NUMERIC, locale);
    good = read_number(text, &number) && number == expected;
    carnn__number_text(written, 9, expected);
    setlocale(LC_NUMERIC, "C");
    sprintf(in_c, "%.9g", expected);
    good = good && !strcmp(written, in_c);
    return good && (strlen(text) > 15 || (float)number == single);
}

/* Numbers as files of word vectors have them, and any double with 17 to 19 digits. */
static void numbers_are_nearest(const char *locale) {
    int wrong = 0;
    for (uint64_t i = 0; i < 20000; i++) {
        char text[64];
        uint64_t bits = carnn__random(4, i);
        double value = ((double)carnn__random(3, i) / 1.8e19 - 0.5) * pow(10, (double)(i % 12) - 6);
        sprintf(text, i % 2 ? "%.6g" : "%.9f", value);
        wrong += !as_in_c(text, locale);
        memcpy(&value, &bits, sizeof value);
        if (!(fabs(value) <= 1e308)) continue;
        sprintf(text, i % 3 == 0 ? "%.16e" : i % 3 == 1 ? "%.17e" : "%.18e", value);
        wrong += strtod(text, NULL) != value || !as_in_c(text, locale);
    }
    CHECK_INT(wrong, 0);
}

/* A number has a decimal point also where the host's locale has a decimal comma. */
static void test_numbers_in_locales(void) {
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "fr_FR.utf8",
                                        "de_DE", "fr_FR", "German_Germany.1252"};
    int commas = 0;
    numbers_are_nearest("C");
    for (size_t i = 0; !commas && i < sizeof names / sizeof *names; i++) {
        double number;
        commas = setlocale(LC_NUMERIC, names[i]) && strtod("0,5", NULL) == 0.5;
        CHECK_INT(read_number("0.5", &number), 1);
        CHECK_NEAR(number, 0.5, 0);
        CHECK_INT(read_number("0,5", &number), 0);
        setlocale(LC_NUMERIC, "C");
        if (commas) numbers_are_nearest(names[i]);
    }
    if (!commas) printf("left out: no locale with a decimal comma is installed\n");
}

/* Zeros behind and before the digit that counts, and an exponent that makes up for them. */
static void test_long_numbers(void) {
    enum { ZEROS = 1500 };
    char text[ZEROS + 10];
    for (int small = 0; small < 2; small++) {
        carnn__span s = {text, 0};
        double number = 77;
        s.length = (size_t)sprintf(text, small ? "0.%0*de%d" : "1%0*de-%d", ZEROS, small, ZEROS);
        CHECK_INT(carnn__number(s, &number), 1);
        CHECK_NEAR(number, 1, 1e-12);
    }
}

/* --- word vectors ----------------------------------------------------------------------------*/

static carnn__names some_words(void) {
    static const char *const s[] = {"<unk>", "cat", "dog", "new york", "1900", "bird"};
    static const size_t length[] = {5, 3, 3, 8, 4, 4};
    carnn__names words;
    carnn_allocator a = carnn__allocator(NULL);
    CHECK_INT(build_names(&words, &a, s, length, 6, NULL), CARNN_OK);
    return words;
}

/* Reads vectors of some_words from a text; the caller frees them. */
static carnn_status read_vectors(carnn__vectors *v, const void *bytes, size_t size,
                                 carnn_error *error) {
    carnn__names words = some_words();
    carnn_allocator a = carnn__allocator(NULL);
    carnn_source source = test_source("v.txt", bytes, size);
    carnn_status status = carnn__vectors_read(v, &source, &words, &a, error);
    carnn__names_free(&words, &a);
    return status;
}

/* The same from a file of this name, which is read in pieces. */
static carnn_status read_vectors_file(carnn__vectors *v, const void *bytes, size_t size,
                                      carnn_error *error) {
    carnn_status status;
    test_write("v.txt", bytes, size);
    status = read_vectors(v, NULL, 0, error);
    remove("v.txt");
    return status;
}

/* "number number|" for each word that has a vector, "-|" for one that has none. */
static const char *spell_vectors(const carnn__vectors *v, char *out) {
    char *end = out;
    for (size_t i = 0; i < 6; i++) {
        for (size_t k = 0; v->has[i] && k < v->dimension; k++)
            end += sprintf(end, k ? " %g" : "%g", v->value[i * v->dimension + k]);
        end += sprintf(end, v->has[i] ? "|" : "-|");
    }
    return out;
}

static void test_vectors_text(void) {
    static const char *const glove = "-|1 2|0.5 -0.25|3 4|5 6|-|";
    static const struct {
        const char *text, *vectors;
    } sample[] = {
        {"the 9 9\ncat 1 2\ndog .5 -2.5e-1\nnew york 3 4\n1900 5 6\n", glove},
        {"cat 1 2 \r\n\r\ndog 0.5 -.25\t\r\nnew york  3 4\r\n1900\t5\t6", glove},
        {"4 2\ncat 1 2\ndog 0.5 -0.25\nnew york 3 4\n1900  5 6\n", glove},
        {"1 2\r\nnew y\xC3\xB6rk 1 2\r\n", "-|-|-|-|-|-|"},
        {"40 2\r\ncat 1 2 \r\ndog 0.5 -0.25 \r\nnew york 3 4 \r\n1900 5 6 \r\n", glove},
        {"1900 5 6\ncat 1 2\ncat 7 7\ndog 0.5 -0.25\n. . . 8 8\nnew york 3 4\n", glove},
        {"new york 3 4\ncat 1 2\n\n 8 8\ndog 0.5 -0.25\n1900 5 6\n", glove},
        {"bird 7", "-|-|-|-|-|7|"},
        {"<unk> 1 2 3\nbird 0 0 0", "1 2 3|-|-|-|-|0 0 0|"},
        {"the 1e30 2\ncat 1e6 -1000000", "-|1e+06 -1e+06|-|-|-|-|"},
    };
    carnn_allocator a = carnn__allocator(NULL);
    for (size_t i = 0; i < sizeof sample / sizeof *sample; i++) {
        carnn__vectors v;
        carnn_error error = {CARNN_OK, 0, ""};
        char out[200] = "";
        memset(&v, 0, sizeof v);
        CHECK_INT(read_vectors(&v, sample[i].text, strlen(sample[i].text), &error), CARNN_OK);
        CHECK_TEXT(error.message, "");
        if (v.has) CHECK_TEXT(spell_vectors(&v, out), sample[i].vectors);
        carnn__vectors_free(&v, &a);
    }
}

/* Other words are taken, too, but not those that no text has as one word. */
static void test_vectors_more(void) {
    static const char *text = "cat 1 2\n 8 8\nthe 3 4\nred 1 2\nwell-known 5 6\n'_x 7 8\nRed 1 3\n"
                              "% 1 4\n, 1 5\nmr. 1 6\nu.s. 1 7\n(no 1 8\nno. 1 9\nthat. 1 1\n"
                              "... 2 1\n.5 2 2\na_b 2 3\n\xC3\xA9t\xC3\xA9 2 4\n";
    static const struct {
        carnn__tokenizer kind;
        const char *more;
    } sample[] = {
        {CARNN__WORDS, "red , a_b \xC3\xA9t\xC3\xA9 "},
        {CARNN__TOKENS, "the red well-known '_x % , mr. u.s. no. that. ... .5 a_b "
                        "\xC3\xA9t\xC3\xA9 "},
        {CARNN__SPACES, "the red well-known '_x Red % , mr. u.s. (no no. that. ... .5 a_b "
                        "\xC3\xA9t\xC3\xA9 "},
    };
    carnn_allocator a = carnn__allocator(NULL);
    for (size_t i = 0; i < sizeof sample / sizeof *sample; i++) {
        carnn__vectors v;
        char out[200] = "";
        memset(&v, 0, sizeof v);
        v.most = 30;
        v.kind = sample[i].kind;
        CHECK_INT(read_vectors(&v, text, strlen(text), NULL), CARNN_OK);
        for (size_t k = 0; k < v.more.count; k++)
            strcat(strcat(out, carnn__names_get(&v.more, k)), " ");
        CHECK_TEXT(out, sample[i].more);
        carnn__vectors_free(&v, &a);
    }
}

static void test_vectors_errors(void) {
    static const struct {
        const char *text, *message;
    } sample[] = {
        {"", "v.txt:1: expected a word and up to 65536 numbers, found nothing"},
        {"cat dog\n", "v.txt:1: expected a word and up to 65536 numbers, found \"cat dog\""},
        {"3 0\n", "v.txt:1: expected a word and up to 65536 numbers, found \"3 0\""},
        {"3 65537\n", "v.txt:1: expected a word and up to 65536 numbers, found \"3 65537\""},
        {"3 0\ncat 1 2\n", "v.txt:1: expected a word and up to 65536 numbers, found \"3 0\""},
        {"1 70000\ncat 1 2\n",
         "v.txt:1: expected a word and up to 65536 numbers, found \"1 70000\""},
        {"0 2\ncat 1 2\ndog 1\n", "v.txt:3: expected a word and 2 numbers, found \"dog 1\""},
        {"3 2\n", "v.txt:1: expected word vectors, found none"},
        {"the 1 2\ncat 1\n", "v.txt:2: expected a word and 2 numbers, found \"cat 1\""},
        {"the 1 2\nx 1\n", "v.txt:2: expected a word and 2 numbers, found \"x 1\""},
        {"the 1 2\nx 1 2 3\n", "v.txt:2: expected a word and 2 numbers, found \"x 1 2 3\""},
        {"2 2\nthe 1 2\nx 1 2 3\n", "v.txt:3: expected a word and 2 numbers, found \"x 1 2 3\""},
        {"2 2\nthe 1.0 2 3\n\xC3\xA4 1 2 3\n", /* printable where floats would be */
         "v.txt:2: expected a word and 2 numbers, found \"the 1.0 2 3\""},
        {"2 3\nthe 1 2\n", "v.txt:2: expected a word and 3 numbers, found \"the 1 2\""},
        {"the 1 2\ncat 1 x\n", "v.txt:2: expected a number from -1e6 to 1e6, found \"x\""},
        {"the 1 2\ncat nan 2\n", "v.txt:2: expected a number from -1e6 to 1e6, found \"nan\""},
        {"the 1 2\ncat 1 1e99\n", "v.txt:2: expected a number from -1e6 to 1e6, found \"1e99\""},
        {"cat 1 1e38\n", "v.txt:1: expected a number from -1e6 to 1e6, found \"1e38\""},
        {"cat -1000000.1 2\n",
         "v.txt:1: expected a number from -1e6 to 1e6, found \"-1000000.1\""},
        {"the 1 2\ncat 1 1e999\n", "v.txt:2: expected a number from -1e6 to 1e6, found \"1e999\""},
        {"1 2\ncat 1,5 2\n", "v.txt:2: expected a number from -1e6 to 1e6, found \"1,5\""},
        {"the 1 2\ncat  1\n", "v.txt:2: expected a word and 2 numbers, found \"cat  1\""},
    };
    carnn_allocator a = carnn__allocator(NULL);
    for (size_t i = 0; i < sizeof sample / sizeof *sample; i++) {
        carnn__vectors v;
        carnn_error error;
        for (int file = 0; file < 2; file++) {
            memset(&v, 0, sizeof v);
            CHECK_INT((file ? read_vectors_file : read_vectors)(
                          &v, sample[i].text, strlen(sample[i].text), &error), CARNN_ERR_DATA);
            CHECK_TEXT(error.message, sample[i].message);
            carnn__vectors_free(&v, &a);
        }
    }
}

/* Of a file that cannot be one of vectors no more is read than says so. */
static void test_vectors_limit(void) {
    carnn_source source = test_source(temporary, NULL, 0);
    test_memory memory = {0, 0, 0};
    carnn_allocator a = test_allocator(&memory), standard = carnn__allocator(NULL);
    char *bytes = (char *)calloc(200000, 1);
    carnn__names words = some_words();
    carnn__vectors v;
    carnn_error error;
    memset(&v, 0, sizeof v);
    strcpy(bytes, "1 4294967295\n");
    test_write(temporary, bytes, 200000);
    CHECK_INT(carnn__vectors_read(&v, &source, &words, &a, &error), CARNN_ERR_DATA);
    CHECK_INT(memory.calls, 2); /* 8 bytes, 16 */
    carnn__vectors_free(&v, &a);
    strcpy(bytes, "2 1\ncat \x01");
    memset(bytes + 12, 'x', CARNN__VECTOR_WORD_MAX);
    strcpy(bytes + 12 + CARNN__VECTOR_WORD_MAX, " ");
    CHECK_INT(read_vectors(&v, bytes, 200000, &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message, "v.txt: expected 2 vectors of 1 floats, found no word in number 2");
    carnn__vectors_free(&v, &a);
    carnn__names_free(&words, &standard);
    remove(temporary);
    free(bytes);
}

/* word2vec's binary form of cat (1, 2, .1), dog (-1, 0, .5) and zebra (0, 0, 0). */
static size_t binary_vectors(char *out, const char *counts, int newlines) {
    static const unsigned char floats[3][12] = {
        {0, 0, 0x80, 0x3F, 0, 0, 0, 0x40, 0xCD, 0xCC, 0xCC, 0x3D},
        {0, 0, 0x80, 0xBF, 0, 0, 0, 0, 0, 0, 0, 0x3F},
        {0}};
    static const char *const words[] = {"cat ", "dog ", "zebra "};
    char *end = out + sprintf(out, "%s\n", counts);
    for (size_t i = 0; i < 3; i++) {
        end += sprintf(end, "%s", words[i]);
        memcpy(end, floats[i], 12);
        end += 12;
        if (newlines) *end++ = '\n';
    }
    return (size_t)(end - out);
}

static void test_vectors_binary(void) {
    static const char *message =
        "v.txt: expected 3 vectors of 3 floats, found the end of the file in number 3";
    carnn_allocator a = carnn__allocator(NULL);
    char bytes[200], out[200];
    for (int newlines = 0; newlines < 2; newlines++) {
        size_t size = binary_vectors(bytes, "3 3", newlines), whole = size - (size_t)newlines;
        carnn__vectors v;
        carnn_error error;
        memset(&v, 0, sizeof v);
        CHECK_INT(read_vectors(&v, bytes, size, &error), CARNN_OK);
        CHECK_INT(v.found, 2);
        CHECK_TEXT(spell_vectors(&v, out), "-|1 2 0.1|-1 0 0.5|-|-|-|");
        carnn__vectors_free(&v, &a);
        CHECK_INT(read_vectors(&v, bytes, whole - 1, &error), CARNN_ERR_DATA);
        CHECK_TEXT(error.message, message);
        carnn__vectors_free(&v, &a);
        CHECK_INT(read_vectors(&v, bytes, whole - 15, &error), CARNN_ERR_DATA);
        CHECK_TEXT(error.message, message);
        carnn__vectors_free(&v, &a);
    }
}

/* Bytes of floats look like anything, and like the end of a line. */
static void test_vectors_binary_newline(void) {
    carnn_allocator a = carnn__allocator(NULL);
    for (size_t at = 0; at < 12; at++) {
        char bytes[200];
        const unsigned char *cat = (const unsigned char *)bytes + 4 + 4;
        float expected[3]; /* little-endian in the file, whatever the machine is */
        size_t size = binary_vectors(bytes, "3 3", 1), i;
        carnn__vectors v;
        memset(&v, 0, sizeof v);
        bytes[4 + 4 + at] = '\n';
        for (i = 0; i < 3; i++, cat += 4) {
            uint32_t bits = cat[0] + 256u * (cat[1] + 256u * (cat[2] + 256u * cat[3]));
            memcpy(expected + i, &bits, 4);
        }
        CHECK_INT(read_vectors(&v, bytes, size, NULL), CARNN_OK);
        CHECK_INT(v.found, 2);
        CHECK(v.value && !memcmp(v.value + 3, expected, 12) && v.value[2 * 3] == -1);
        carnn__vectors_free(&v, &a);
    }
}

/* Damage: NaN, infinity, 1e38, -1000000.06; but only in a vector that is read. */
static void test_vectors_binary_range(void) {
    static const char *const floats[] = {"\0\0\xC0\x7F", "\0\0\x80\xFF", "\x99\x76\x96\x7E",
                                         "\x01\x24\x74\xC9"};
    carnn_allocator a = carnn__allocator(NULL);
    for (int i = 0; i < 12; i++) {
        char bytes[200];
        size_t size = binary_vectors(bytes, "3 3", 0);
        carnn__vectors v;
        carnn_error error;
        memset(&v, 0, sizeof v);
        memcpy(bytes + 4 + 4 + 4 + i / 4 * 16 + (i >= 8 ? 2 : 0), floats[i % 4], 4);
        CHECK_INT(read_vectors(&v, bytes, size, &error), i < 8 ? CARNN_ERR_DATA : CARNN_OK);
        if (i < 8)
            CHECK_TEXT(error.message, i < 4 ? "v.txt: expected 3 vectors of 3 floats, found a "
                                              "float that is not from -1e6 to 1e6 in number 1"
                                            : "v.txt: expected 3 vectors of 3 floats, found a "
                                              "float that is not from -1e6 to 1e6 in number 2");
        carnn__vectors_free(&v, &a);
    }
}

/* Of two files the first one goes first, and both have to agree on the dimension. */
static void test_vectors_of_two_files(void) {
    static const char *first = "cat 1 2\n", *second = "dog 3 4\ncat 5 6\n", *third = "bird 1 2 3\n";
    static const char *none = "0 2\n";
    carnn_allocator a = carnn__allocator(NULL);
    carnn__vectors v;
    carnn_error error;
    char out[200];
    memset(&v, 0, sizeof v);
    CHECK_INT(read_vectors(&v, first, strlen(first), &error), CARNN_OK);
    CHECK_INT(read_vectors(&v, second, strlen(second), &error), CARNN_OK);
    CHECK_TEXT(spell_vectors(&v, out), "-|1 2|3 4|-|-|-|");
    CHECK_INT(read_vectors(&v, third, strlen(third), &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message,
               "v.txt:1: expected vectors of 2 numbers as before, found 3 numbers");
    CHECK_INT(read_vectors(&v, none, strlen(none), &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message, "v.txt:1: expected word vectors, found none");
    carnn__vectors_free(&v, &a);
}

/* From a file in pieces: lines that lie across the ends of the buffer. */
static void test_vectors_large(void) {
    size_t lines = 3000, dimension = 40;
    char *text = (char *)malloc(lines * dimension * 8 + lines * 20), *end = text;
    carnn_source source = test_source(temporary, NULL, 0);
    carnn__names words = some_words();
    test_memory memory = {0, 0, 0};
    carnn_allocator a = test_allocator(&memory), standard = carnn__allocator(NULL);
    carnn__vectors v;
    carnn_error error;
    int wrong = 0;
    for (size_t i = 0; i < lines; i++) {
        end += i + 2 < lines ? sprintf(end, "word%zu", i) : sprintf(end, i % 2 ? "bird" : "cat");
        for (size_t k = 0; k < dimension; k++) end += sprintf(end, " %.3f", (double)(i + k) / 8);
        *end++ = '\n';
    }
    test_write(temporary, text, (size_t)(end - text));
    memset(&v, 0, sizeof v);
    CHECK_INT(carnn__vectors_read(&v, &source, &words, &a, &error), CARNN_OK);
    CHECK_INT(v.found, 2);
    CHECK_INT(v.dimension, dimension);
    for (size_t k = 0; k < dimension; k++)
        wrong += v.value[5 * dimension + k] != (float)(lines - 1 + k) / 8 ||
                 v.value[dimension + k] != (float)(lines - 2 + k) / 8 || v.value[k] != 0;
    CHECK_INT(wrong, 0);
    carnn__vectors_free(&v, &a);
    CHECK_INT(memory.blocks, 0);
    carnn__names_free(&words, &standard);
    remove(temporary);
    free(text);
}

/* Whatever the bytes, a read ends well or with a message, and from a file with the same. */
static void test_vectors_on_noise(void) {
    static const char *const seeds[] = {"the 9 9\ncat 1 2\ndog .5 -2.5e-1\nnew york 3 4\n",
                                        "2 3\ncat 1 2 3\ndog 4 5 6\n"};
    carnn_allocator a = carnn__allocator(NULL);
    int wrong = 0, good = 0;
    size_t others = 0;
    for (uint64_t round = 0; round < 3000; round++) {
        char bytes[200], *exact;
        size_t size = round % 3 < 2 ? strlen(strcpy(bytes, seeds[round % 3]))
                                    : binary_vectors(bytes, "3 3", 1);
        carnn__vectors v, w;
        carnn_error error = {CARNN_OK, 0, ""}, again = error;
        carnn_status status;
        for (uint64_t c = 0; c < 1 + round % 4; c++) {
            uint64_t r = carnn__random(round, c);
            bytes[(r >> 20) % size] = r % 2 ? (char)(r >> 8) : " \n.0123456789e-"[(r >> 8) % 15];
        }
        if (round % 5 == 0) size = carnn__random(round, 99) % size;
        exact = (char *)malloc(size + !size);
        memcpy(exact, bytes, size);
        memset(&v, 0, sizeof v);
        memset(&w, 0, sizeof w);
        v.most = w.most = round % 4;
        status = read_vectors(&v, exact, size, &error);
        wrong += read_vectors_file(&w, exact, size, &again) != status || v.found != w.found ||
                 v.more.count != w.more.count || v.more.count > v.most ||
                 strcmp(error.message, again.message) != 0;
        others += v.more.count;
        good += !status;
        wrong += status ? status != CARNN_ERR_DATA || strncmp(error.message, "v.txt:", 6) != 0
                        : v.found > 6;
        carnn__vectors_free(&v, &a);
        carnn__vectors_free(&w, &a);
        free(exact);
    }
    CHECK_INT(wrong, 0);
    CHECK(good > 200 && good < 3000);
    CHECK(others > 100);
}

static void test_vectors_files(void) {
    static const char *const s[] = {"<unk>", "the", "glacier", "<num>", "no such word"};
    static const size_t length[] = {5, 3, 7, 5, 12};
    carnn_allocator a = carnn__allocator(NULL);
    carnn_error error;
    carnn__names words;
    carnn__vectors v;
    char path[256];
    memset(&v, 0, sizeof v);
    if (!test_published(path, "embeddings/glove.6B.50d.subset.txt.gz")) return;
    if (!gzip_at_hand()) return;
    CHECK_INT(build_names(&words, &a, s, length, 5, NULL), CARNN_OK);
    for (int induced = 0; induced < 2; induced++) {
        carnn_source source = test_source(path, NULL, 0);
        if (induced) strcpy(strrchr(path, '/'), "/induced.50d.txt.gz");
        CHECK_INT(carnn__vectors_read(&v, &source, &words, &a, &error), CARNN_OK);
        CHECK_INT(v.dimension, 50);
        CHECK(v.has[1] && !v.has[4]);
        CHECK_NEAR(v.value[50], 0.418f, 0);
        CHECK_NEAR(v.value[99], -0.78581f, 0);
        CHECK_INT(v.has[3], induced);
    }
    carnn__vectors_free(&v, &a);
    carnn__names_free(&words, &a);
}

/* --- memory that runs out --------------------------------------------------------------------*/

static void test_failing_vocabulary(void) {
    carnn_status status = CARNN_ERR_MEMORY;
    long n;
    for (n = 1; status && n < 1000; n++) {
        test_memory memory = {0, 0, 0};
        carnn_allocator a = test_allocator(&memory);
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

static void test_failing_others(void) {
    static const char *const s[] = {"x", "y"};
    static const size_t length[] = {1, 1};
    carnn_source source = test_source(temporary, NULL, 0);
    carnn_source vectors = test_source(NULL, "x 1 2\n", 6);
    char *bytes = (char *)malloc(200000);
    carnn_status status = CARNN_ERR_MEMORY;
    memset(bytes, 'x', 200000);
    test_write(temporary, bytes, 200000);
    free(bytes);
    for (long n = 1; status && n < 100; n++) {
        test_memory memory = {0, 0, 0};
        carnn_allocator a = test_allocator(&memory);
        carnn__names names;
        carnn__input in;
        memory.fail_at = n;
        status = build_names(&names, &a, s, length, 2, NULL);
        if (!status) {
            carnn__vectors v;
            memset(&v, 0, sizeof v);
            status = carnn__vectors_read(&v, &vectors, &names, &a, NULL);
            carnn__vectors_free(&v, &a);
            carnn__names_free(&names, &a);
        }
        if (!status) status = carnn__input_open(&in, &source, SIZE_MAX, &a, NULL);
        if (!status) carnn__input_close(&in);
        CHECK(!status || status == CARNN_ERR_MEMORY);
        CHECK_INT(memory.blocks, 0);
    }
    CHECK_INT(status, CARNN_OK);
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
    test_long_texts();
    test_names();
    test_names_not_distinct();
    test_names_grow();
    test_names_of_one_hash();
    test_vocabulary();
    test_vocabulary_limit();
    test_vocabulary_often();
    if (!TEST_SANITIZED) test_vocabulary_full();
    test_vocabulary_of_labels();
    test_input();
    test_input_errors();
    test_lines();
    test_pieces();
    test_packed_files();
    test_read_files();
    test_packed_name();
    test_packed_input();
    test_numbers();
    test_numbers_in_locales();
    test_long_numbers();
    test_vectors_text();
    test_vectors_more();
    test_vectors_errors();
    test_vectors_limit();
    test_vectors_binary();
    test_vectors_binary_newline();
    test_vectors_binary_range();
    test_vectors_of_two_files();
    test_vectors_large();
    test_vectors_on_noise();
    test_vectors_files();
    test_failing_vocabulary();
    test_failing_others();
    test_stb_ds_of_the_host();
    return test_end();
}
