/* book_cloze.c - cloze questions about plain text, in the format of the Children's Book Test

       book_cloze [--sentences N] [--stride N] [--seed N] [--words LIST] OUTPUT BOOK...

   A book has a sentence a line; empty lines do not count. N sentences [20] are a text, the next one
   is a question if a name of the text stands in it once, which XXXXX then replaces; each of its
   names makes a question. The text then moves on by `stride` sentences [1]. There are ten
   candidates: the answer, then names of the text and the question, then others of the book, drawn
   by `seed` [1]; they stand in alphabetical order.

   A name is a word that has a capital in the middle of a sentence three times or more in the book,
   and begins with a small letter at most a tenth as often. With --words the words of LIST, one a
   line, are asked for instead (common nouns, for example). Words are those of carnn_prose.

   Licence: MIT-0 or public domain, as you like. */

#include "generate.h"

/* One thread, portable C: the header is wanted for its words alone, and compiles quickly so. */
#define CARNN_IMPLEMENTATION
#define CARNN_NO_TRAIN
#define CARNN_NO_THREADS
#define CARNN_NO_SIMD
#include "../carnn.h"

enum { CANDIDATES = 10, LONGEST_WORD = 60, MAX_NAMES = 400 };

struct word {
    char *bytes;
    int capital, small;              /* how often, in the middle of sentences */
    int is_name;
};

struct sentence {
    int first, count;                /* in `tokens` */
};

/* All of a book; lists grow by doubling. */
static struct word *words;
static int *tokens, *slots;
static struct sentence *sentences;
static int word_count, token_count, sentence_count, slot_count;
static int book_names[MAX_NAMES], name_count;

static void *grow(void *list, int count, size_t size)
{
    if (count & (count - 1)) return list;                /* grows at 0, 1, 2, 4, ... */
    list = realloc(list, (count ? 2 * (size_t)count : 1) * size);
    if (list == NULL) fail(EXIT_DISK, "out of memory");
    return list;
}

/* ---- Words ----------------------------------------------------------------------------------- */

static uint32_t hash_of(const char *s, int length)
{
    uint32_t hash = 2166136261u;

    for (int i = 0; i < length; i++) hash = (hash ^ (unsigned char)s[i]) * 16777619u;
    return hash;
}

static int *slot_of(const char *s, int length)
{
    uint32_t at = hash_of(s, length);

    for (;; at++) {
        int *slot = &slots[at & (uint32_t)(slot_count - 1)];

        if (*slot < 0) return slot;
        if (strncmp(words[*slot].bytes, s, (size_t)length) == 0 && !words[*slot].bytes[length]) {
            return slot;
        }
    }
}

static void rehash(void)
{
    slot_count = slot_count ? 2 * slot_count : 1024;
    slots = realloc(slots, (size_t)slot_count * sizeof *slots);
    if (slots == NULL) fail(EXIT_DISK, "out of memory");
    for (int i = 0; i < slot_count; i++) slots[i] = -1;
    for (int i = 0; i < word_count; i++) {
        *slot_of(words[i].bytes, (int)strlen(words[i].bytes)) = i;
    }
}

static int word_number(const char *s, int length)
{
    int *slot;

    if (2 * word_count >= slot_count) rehash();
    slot = slot_of(s, length);
    if (*slot < 0) {
        struct word word = { malloc((size_t)length + 1), 0, 0, 0 };

        if (word.bytes == NULL) fail(EXIT_DISK, "out of memory");
        memcpy(word.bytes, s, (size_t)length);
        word.bytes[length] = '\0';
        words = grow(words, word_count, sizeof *words);
        *slot = word_count;
        words[word_count++] = word;
    }
    return *slot;
}

static int is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char)c >= 0x80;
}

static int is_capital(char c)
{
    return c >= 'A' && c <= 'Z';
}

/* ---- Sentences ------------------------------------------------------------------------------- */

/* Splits a line into words. A bar, which stands between candidates, and a NUL separate words. */
static void add_sentence(char *line, int length)
{
    struct sentence empty = { token_count, 0 };
    size_t size = 2 * (size_t)length + 1;
    char *prose = malloc(size);

    if (prose == NULL) fail(EXIT_DISK, "out of memory");
    for (int i = 0; i < length; i++) {
        if (line[i] == '|' || line[i] == '\0') line[i] = ' ';
    }
    carnn_prose(line, (size_t)length, prose, size);
    sentences = grow(sentences, sentence_count, sizeof *sentences);
    sentences[sentence_count++] = empty;
    for (char *word = strtok(prose, " "); word != NULL; word = strtok(NULL, " ")) {
        tokens = grow(tokens, token_count, sizeof *tokens);
        tokens[token_count++] = word_number(word, (int)strlen(word));
        sentences[sentence_count - 1].count++;
    }
    if (sentences[sentence_count - 1].count == 0) sentence_count--;
    free(prose);
}

static void read_book(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *line = NULL;
    int length = 0, c;

    if (file == NULL) fail(EXIT_DISK, "%s: %s", path, strerror(errno));
    while ((c = getc(file)) != EOF || length > 0) {
        if (c == EOF || c == '\n') {
            add_sentence(line, length);
            length = 0;
        } else if (c != '\r') {
            line = grow(line, length, 1);
            line[length++] = (char)c;
        }
    }
    if (ferror(file)) fail(EXIT_DISK, "%s: cannot read", path);
    fclose(file);
    free(line);
    if (sentence_count == 0) fail(EXIT_BAD_DATA, "%s: expected sentences, found none", path);
}

static void forget_book(void)
{
    for (int i = 0; i < word_count; i++) free(words[i].bytes);
    for (int i = 0; i < slot_count; i++) slots[i] = -1;
    word_count = token_count = sentence_count = 0;
}

/* ---- Names ----------------------------------------------------------------------------------- */

/* Is token i of a sentence in its middle: does a word or a comma stand before it? */
static int in_middle(const struct sentence *s, int i)
{
    const char *before = i > 0 ? words[tokens[s->first + i - 1]].bytes : ".";

    return is_letter(*before) || strcmp(before, ",") == 0;
}

/* Marks the words of the list that the book has. */
static void find_listed(const char *path)
{
    FILE *file = fopen(path, "rb");
    char line[LONGEST_WORD + 2];

    if (file == NULL) fail(EXIT_DISK, "%s: %s", path, strerror(errno));
    while (fgets(line, sizeof line, file) != NULL) {
        int length = (int)strcspn(line, "\r\n"), *slot = slot_of(line, length);

        if (*slot >= 0) words[*slot].is_name = 1;
    }
    if (ferror(file)) fail(EXIT_DISK, "%s: cannot read", path);
    fclose(file);
}

static void find_names(void)
{
    int known = word_count;

    for (int k = 0; k < sentence_count; k++) {
        for (int i = 0; i < sentences[k].count; i++) {
            struct word *word = &words[tokens[sentences[k].first + i]];

            if (in_middle(&sentences[k], i)) word->capital += is_capital(*word->bytes);
            word->small += !is_capital(*word->bytes);
        }
    }
    for (int i = 0; i < known; i++) {
        char small[LONGEST_WORD + 1];
        int length = (int)strlen(words[i].bytes), letters = 0, *slot;

        for (int j = 0; j < length; j++) {
            letters += is_letter(words[i].bytes[j]) || words[i].bytes[j] == '-';
        }
        if (length < 2 || length > LONGEST_WORD || letters < length || words[i].capital < 3) {
            continue;
        }
        memcpy(small, words[i].bytes, (size_t)length + 1);
        small[0] = (char)(small[0] - 'A' + 'a');
        slot = slot_of(small, length);
        words[i].is_name = is_capital(small[1]) == 0 &&
                           (*slot < 0 || 10 * words[*slot].small <= words[i].capital);
    }
}

/* Adds the names of sentences [from, to) that are not there yet. */
static int add_names(int *names, int count, int from, int to)
{
    int first = sentences[from].first;
    int end = to < sentence_count ? sentences[to].first : token_count;

    for (int i = first; i < end && count < MAX_NAMES; i++) {
        int j = 0;

        while (j < count && names[j] != tokens[i]) j++;
        if (j == count && words[tokens[i]].is_name) names[count++] = tokens[i];
    }
    return count;
}

/* ---- Questions ------------------------------------------------------------------------------- */

static int occurrences(int from, int to, int word)
{
    int end = to < sentence_count ? sentences[to].first : token_count, count = 0;

    for (int i = sentences[from].first; i < end; i++) count += tokens[i] == word;
    return count;
}

static void write_line(FILE *file, int number, const struct sentence *s, int hidden)
{
    fprintf(file, "%d", number);
    for (int i = 0; i < s->count; i++) {
        int token = tokens[s->first + i];

        fprintf(file, " %s", token == hidden ? "XXXXX" : words[token].bytes);
    }
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(words[*(const int *)a].bytes, words[*(const int *)b].bytes);
}

/* Mixes names [from, to), of which no more are kept than there are candidates: how many names. */
static int keep_some(struct rng *rng, int *names, int from, int to)
{
    if (from < CANDIDATES) rng_shuffle(rng, names + from, to - from);
    return to < CANDIDATES ? to : CANDIDATES;
}

static void write_question(FILE *file, struct rng *rng, int first, int length, int answer)
{
    int names[2 * MAX_NAMES], near, all, count;

    names[0] = answer;
    near = all = add_names(names, 1, first, first + length + 1);
    for (int i = 0; i < name_count; i++) {
        int j = 0;

        while (j < near && names[j] != book_names[i]) j++;
        if (j == near) names[all++] = book_names[i];
    }
    count = keep_some(rng, names, 1, near);
    if (near < CANDIDATES) count = keep_some(rng, names, near, all);
    for (int i = 0; i < length; i++) {
        write_line(file, i + 1, &sentences[first + i], -1);
        fputc('\n', file);
    }
    write_line(file, length + 1, &sentences[first + length], answer);
    fprintf(file, "\t%s\t\t", words[answer].bytes);
    qsort(names, (size_t)count, sizeof *names, by_bytes);
    for (int i = 0; i < count; i++) fprintf(file, "%s%s", i ? "|" : "", words[names[i]].bytes);
    fputs("\n\n", file);
}

static void write_questions(FILE *file, struct rng *rng, int length, int stride)
{
    for (int k = 0; k + length < sentence_count; k += stride) {
        int asked = k + length, names[MAX_NAMES], count = add_names(names, 0, asked, asked + 1);

        for (int i = 0; i < count; i++) {
            if (occurrences(asked, asked + 1, names[i]) != 1) continue;
            if (occurrences(k, asked, names[i]) == 0) continue;
            write_question(file, rng, k, length, names[i]);
        }
    }
}

int main(int argc, char **argv)
{
    int number[3] = { 20, 1, 1 }, i = 1;
    static const char *const option[3] = { "--sentences", "--stride", "--seed" };
    const char *list = NULL;
    struct output output;
    struct rng rng;

    for (; i + 1 < argc && strncmp(argv[i], "--", 2) == 0; i += 2) {
        char *end;
        int which = 0;

        if (strcmp(argv[i], "--words") == 0) {
            list = argv[i + 1];
            continue;
        }
        while (which < 3 && strcmp(argv[i], option[which]) != 0) which++;
        if (which == 3) fail(EXIT_USAGE, "unknown option %s", argv[i]);
        number[which] = (int)strtol(argv[i + 1], &end, 10);
        if (*end != '\0' || number[which] < (which < 2) || number[which] > 1000) {
            fail(EXIT_USAGE, "%s: expected a number up to 1000, found %s", argv[i], argv[i + 1]);
        }
    }
    if (argc - i < 2) {
        fail(EXIT_USAGE,
             "usage: book_cloze [--sentences N] [--stride N] [--seed N] [--words LIST] OUTPUT "
             "BOOK...");
    }
    rng.state = (uint64_t)number[2];
    output_open(&output, argv[i++]);
    for (; i < argc; i++) {
        read_book(argv[i]);
        if (list != NULL) find_listed(list);
        else find_names();
        name_count = add_names(book_names, 0, 0, sentence_count);
        write_questions(output.file, &rng, number[0], number[1]);
        forget_book();
    }
    output_close(&output, 1);
    free(words);
    free(tokens);
    free(slots);
    free(sentences);
    return 0;
}
