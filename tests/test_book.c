/* Cloze questions about books: a case by hand, what a name is, which candidates a question has, and
   memory that runs out. */

#include "test.h"

/* All questions of a book, one behind the other, or the error. */
static const char *book_all(carnn_book_desc desc, const char *text) {
    static char all[1 << 16];
    carnn_source source = test_source("f.txt", text, strlen(text));
    const char *question;
    carnn_book *book;
    carnn_error error;
    size_t at = 0;
    if (!desc.sources) desc.sources = &source;
    if (!desc.source_count) desc.source_count = 1;
    all[0] = 0;
    if (carnn_book_open(&book, &desc, &error)) {
        CHECK(!book);
        return strcpy(all, error.message);
    }
    for (;;) {
        carnn_status status = carnn_book_question(book, &question, &error);
        if (status) {
            CHECK(!question && !carnn_book_question(book, &question, NULL) && !question);
            strcpy(all + at, error.message);
        }
        if (!question) break;
        at += (size_t)snprintf(all + at, sizeof all - at, "%s", question);
        CHECK(at < sizeof all);
    }
    carnn_book_free(book);
    return all;
}

static carnn_book_desc book_of(int64_t sentences, int64_t stride, uint64_t seed) {
    carnn_book_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.sentences = sentences;
    desc.stride = stride;
    desc.seed = seed;
    return desc;
}

static const char *const book_mole =
    "Then came Mrs. Rat, and \"where,\" said she, \"is Mole's hat?\"\r\n\n"
    "\"Here is Toad--and Mole!\" said Rat.\n"
    "But Toad had gone, and Mole with Toad; the toad-hole was shut.\n"
    "So Mole and Rat and old Toad slept.";

static void book_by_hand(void) {
#define BOOK_TEXT                                                                                  \
    "1 Then came Mrs. Rat , and \" where , \" said she , \" is Mole 's hat ? \"\n"                 \
    "2 \" Here is Toad -- and Mole ! \" said Rat .\n"                                              \
    "3 But Toad had gone , and Mole with Toad ; the toad-hole was shut .\n"
    static const char *const three =
        BOOK_TEXT "4 So XXXXX and Rat and old Toad slept .\tMole\t\tMole|Rat|Toad\n\n"
        BOOK_TEXT "4 So Mole and XXXXX and old Toad slept .\tRat\t\tMole|Rat|Toad\n\n"
        BOOK_TEXT "4 So Mole and Rat and old XXXXX slept .\tToad\t\tMole|Rat|Toad\n\n";
    static const char *const asked =
        BOOK_TEXT "4 So Mole and Rat and old XXXXX slept .\tToad\t\tToad|hat\n\n";
    carnn_book_desc desc = book_of(3, 0, 0);
    carnn_source list = test_source("list", "hat \r\n\nToad\nbadger", 18);
    CHECK_TEXT(book_all(desc, book_mole), three);
    desc.asked = &list;
    CHECK_TEXT(book_all(desc, book_mole), asked);
    CHECK_TEXT(book_all(book_of(4, 0, 0), book_mole), "");
    CHECK_TEXT(book_all(book_of(INT64_MAX, INT64_MAX, 1), book_mole), "");
    CHECK_TEXT(book_all(book_of(0, 0, 0), book_mole), "");
    desc.asked = NULL;
    desc.sentences = 2; /* "But .." has Toad twice, Mole once */
    desc.stride = 2;
    CHECK(strstr(book_all(desc, book_mole), "3 But Toad had gone , and XXXXX with Toad ;"));
    CHECK(!strstr(book_all(desc, book_mole), "slept"));
}

/* Which of the words are names: of each there are as many questions as it has later sentences. */
static int book_names(const char *text, const char *word) {
    char answer[80];
    snprintf(answer, sizeof answer, "\t%s\t\t", word);
    return strstr(book_all(book_of(1, 1, 1), text), answer) != NULL;
}

static void book_what_a_name_is(void) {
    static const struct {
        const char *sentence, *word; /* said three times */
        int is_name;
    } set[] = {{"we saw Ann .", "Ann", 1},     {"we saw Ann-Lee .", "Ann-Lee", 1},
               {"so , Ann came", "Ann", 1},    {"Ann came", "Ann", 0},
               {"\" Ann came", "Ann", 0},      {"we saw A .", "A", 0},
               {"we saw USA .", "USA", 0},     {"we saw R2 .", "R2", 0},
               {"we saw Zo\xC3\xAB .", "Zo\xC3\xAB", 1},
               {"we saw \xC3\x89va .", "\xC3\x89va", 0},
               {"we saw Will ,", "Will", 1},   {"we will see Will ,", "Will", 0},
               {"we|saw|Ann|", "Ann", 1}};
    carnn_source source = test_source("f.txt", "we saw\0Ann\nwe saw\0Ann\nwe saw\0Ann\n", 33);
    carnn_book_desc desc = book_of(1, 1, 1);
    char text[1024];
    size_t i;
    desc.sources = &source;
    desc.source_count = 1;
    CHECK(strstr(book_all(desc, ""), "\tAnn\t\t") != NULL); /* a NUL is a blank */
    for (i = 0; i < sizeof set / sizeof *set; i++) {
        const char *s = set[i].sentence;
        snprintf(text, sizeof text, "%s\n%s\n%s\n", s, s, s);
        CHECK_INT(book_names(text, set[i].word), set[i].is_name);
    }
    CHECK(!book_names("we saw Ann .\nwe saw Ann .\n", "Ann"));
    memset(text, 0, sizeof text); /* ten capitals for one small letter */
    for (i = 0; i < 9; i++) strcat(text, "we saw Will ,\n");
    strcat(text, "we will\n");
    CHECK(!book_names(text, "Will"));
    strcat(text, "we saw Will ,\n");
    CHECK(book_names(text, "Will"));
    for (i = 59; i < 62; i++) {
        char name[80];
        memset(name, 'a', i);
        name[0] = 'A';
        name[i] = 0;
        snprintf(text, sizeof text, "so %s\nso %s\nso %s\n", name, name, name);
        CHECK_INT(book_names(text, name), i <= 60);
    }
}

/* A book of `sentences` with one to four of `names` names each. */
static const char *book_random(uint64_t key, size_t sentences, size_t names) {
    static char text[1 << 14];
    size_t i, j, at = 0;
    for (i = 0; i < sentences; i++) {
        at += (size_t)snprintf(text + at, sizeof text - at, "then");
        for (j = 0; j <= carnn__random(key, 9 * i) % 4; j++)
            at += (size_t)snprintf(text + at, sizeof text - at, " came N%c",
                                   (char)('a' + carnn__random(key, 9 * i + j + 1) % names));
        at += (size_t)snprintf(text + at, sizeof text - at, "\n");
    }
    return text;
}

/* How often `word` is among the words of [from, to). */
static int book_times(const char *from, const char *to, const char *word, size_t length) {
    int times = 0;
    for (; (from = strstr(from, word)) != NULL && from < to; from += length)
        times += from[length] < '0' && from[-1] < '0'; /* blanks, tabs, ends of lines */
    return times;
}

/* A question by itself: the answer was hidden once and stands in the text; of the text's names all
   are candidates, or ten of them. */
static void book_question_is_right(const char *begin, size_t sentences, size_t names) {
    const char *end = strstr(begin, "\n\n"), *hidden = strstr(begin, "XXXXX"), *asked = hidden;
    const char *again = strstr(hidden + 1, "XXXXX");
    const char *answer = strchr(hidden, '\t') + 1, *list = strchr(answer, '\t') + 2, *c;
    size_t length = (size_t)(list - 2 - answer), count = 0, near = 0, kept = 0, i;
    char word[3] = "Na", number[32], before[3] = "";
    while (asked > begin && asked[-1] != '\n') asked--;
    CHECK_INT(strtol(asked, NULL, 10), (long)sentences + 1);
    snprintf(word, sizeof word, "%.*s", (int)length, answer);
    CHECK(book_times(begin, asked, word, 2) > 0 && !book_times(asked, answer - 1, word, 2));
    CHECK(hidden < answer && (!again || again > end));
    for (i = 1; i <= sentences; i++) {
        snprintf(number, sizeof number, "%zu then", i);
        CHECK(strstr(begin, number) < asked);
    }
    for (c = list; c < end; c += 3, count++) { /* each once, in order */
        CHECK(strncmp(before, c, 2) < 0 && (c[2] == '|' || c + 2 == end));
        snprintf(before, sizeof before, "%.2s", c);
    }
    for (i = 0; i < names; i++) {
        int of_list;
        word[1] = (char)('a' + i);
        of_list = strncmp(word, list, 2) == 0 ||
                  (strstr(list, word) && strstr(list, word) < end);
        if (!book_times(begin, answer - 1, word, 2) && strncmp(word, answer, 2)) continue;
        near++;
        kept += (size_t)of_list;
    }
    CHECK_INT(kept, near < 10 ? near : 10);
    CHECK_INT(count, names < 10 ? names : 10);
}

static void book_candidates(void) {
    size_t names, sentences;
    for (names = 4; names <= 24; names += 4)
        for (sentences = 1; sentences <= 9; sentences += 4) {
            const char *text = book_random(names, 120, names), *q, *all;
            carnn_source questions;
            carnn_dataset *data;
            int count = 0;
            all = book_all(book_of((int64_t)sentences, 3, names), text);
            for (q = all; *q; q = strstr(q, "\n\n") + 2, count++)
                book_question_is_right(q, sentences, names);
            CHECK(count > 4);
            questions = test_source("q.txt", all, strlen(all));
            data = test_data("cloze", (const char *)questions.bytes, questions.size, 0, 0);
            CHECK_INT(carnn_dataset_examples(data), count);
            carnn_dataset_free(data);
        }
}

/* The same seed, the same questions; 0 is 1. Two sources have the questions of both. */
static void book_seeds(void) {
    static char first[1 << 16];
    const char *text = book_random(1, 60, 24);
    carnn_source two[2];
    carnn_book_desc desc = book_of(3, 1, 5);
    size_t length = strlen(strcpy(first, book_all(desc, text)));
    CHECK_TEXT(book_all(desc, text), first);
    desc.seed = 6;
    CHECK(strcmp(book_all(desc, text), first) != 0 && strlen(book_all(desc, text)) == length);
    strcpy(first, book_all(book_of(3, 1, 0), text));
    CHECK_TEXT(book_all(book_of(3, 1, 1), text), first);
    strcpy(first, book_all(book_of(0, 0, 1), text)); /* 20 sentences, from each one on */
    CHECK(strstr(first, "\n21 ") && !strstr(first, "\n22 "));
    CHECK_TEXT(book_all(book_of(20, 1, 1), text), first);
    two[0] = two[1] = test_source("f.txt", text, strlen(text));
    two[1].size /= 2;
    desc = book_of(3, 20, 1);
    desc.sources = two;
    desc.source_count = 2;
    strcpy(first, book_all(book_of(3, 20, 1), text));
    CHECK(strlen(book_all(desc, text)) > strlen(first));
    CHECK(!strncmp(book_all(desc, text), first, strlen(first)));
}

/* A sentence of so many words, Ann among them. */
static size_t book_sentence(char *to, size_t words) {
    size_t at = (size_t)sprintf(to, "saw Ann"), k;
    for (k = 2; k < words; k++) at += (size_t)sprintf(to + at, " a");
    return at + (size_t)sprintf(to + at, "\n");
}

/* A question has 512 words at most, and the text before it 2048: others are left out. */
static void book_too_long(void) {
    static const size_t words[][2] = {{2048, 512}, {2049, 2}, {2, 513}, {2, 2}};
    static char text[16384];
    size_t i, at;
    for (i = 0; i < 4; i++) {
        at = book_sentence(text, words[i][0]);
        at += book_sentence(text + at, words[i][1]);
        book_sentence(text + at, 2);
        CHECK_INT(strstr(book_all(book_of(1, 9, 1), text), "\tAnn\t\t") != NULL, i == 0 || i == 3);
    }
}

/* A text with more names than are looked at: candidates are of the first ones. */
static void book_many_names(void) {
    static char text[8192], list[8192];
    carnn_book_desc desc = book_of(1, 1, 1);
    carnn_source asked;
    size_t at = 0, i, many = CARNN__BOOK_NAMES + 50;
    for (i = 0; i < many; i++) at += (size_t)sprintf(text + at, "n%zu ", i);
    for (i = 0; i < at; i++) list[i] = text[i] == ' ' ? '\n' : text[i];
    sprintf(text + at, "\nn%zu\n", many - 1);
    asked = test_source("list", list, at);
    desc.asked = &asked;
    for (desc.seed = 1; desc.seed < 20; desc.seed++) {
        const char *candidate = strstr(book_all(desc, text), "\t\t");
        CHECK(candidate != NULL);
        for (i = 0; candidate && i < CARNN__BOOK_CANDIDATES; i++) {
            size_t number = (size_t)atoi(strchr(candidate, 'n') + 1);
            CHECK(number < CARNN__BOOK_NAMES || number == many - 1);
            candidate = strchr(candidate, 'n') + 1;
        }
    }
}

static void book_errors(void) {
    carnn_source none = test_source("empty.txt", " \n\n|\n", 5), list = none, absent = none;
    carnn_book_desc desc = book_of(1, 1, 1);
    CHECK_TEXT(book_all(desc, ""), "f.txt:1: expected sentences, one a line, found none");
    desc.sources = &none;
    CHECK_TEXT(book_all(desc, ""), "empty.txt:3: expected sentences, one a line, found none");
    desc.sources = NULL;
    desc.asked = &list;
    list.size = 3;
    CHECK_TEXT(book_all(desc, "a"), "empty.txt:2: expected words, one a line, found none");
    list = test_source("list", "Toad\nthe hat\n", 13);
    CHECK_TEXT(book_all(desc, "a"), "list:2: expected one word, found \"the hat\"");
    list = test_source("list", "Toad\rhat\r", 9);
    CHECK(strstr(book_all(desc, "a"), "list: lines end in CR alone") != NULL);
    CHECK(strstr(book_all(book_of(1, 1, 1), "So Toad\rAnd Toad\r"),
                 "f.txt: lines end in CR alone") != NULL);
    absent.name = "no-such-file";
    absent.bytes = NULL;
    desc.asked = &absent;
    CHECK(!strncmp(book_all(desc, "a"), "no-such-file: ", 14));
    desc = book_of(-1, 1, 1);
    CHECK(strstr(book_all(desc, "a"), "no negative numbers of sentences"));
    desc = book_of(1, -1, 1);
    CHECK(strstr(book_all(desc, "a"), "no negative numbers of sentences"));
}

/* Every allocation fails once: an error, nothing left behind, and no more questions. */
static void book_without_memory(void) {
    carnn_source sources[2], list = test_source("list", "Toad\nhat", 8);
    carnn_book_desc desc = book_of(3, 1, 1);
    carnn_status status = CARNN_ERR_MEMORY;
    test_memory memory;
    carnn_allocator a = test_allocator(&memory);
    long n;
    sources[0] = sources[1] = test_source("f.txt", book_mole, strlen(book_mole));
    desc.sources = sources;
    desc.source_count = 2;
    desc.allocator = &a;
    desc.asked = &list;
    for (n = 1; status && n < 1000; n++) {
        const char *question = "";
        carnn_book *book;
        carnn_error error;
        memset(&memory, 0, sizeof memory);
        memory.fail_at = n;
        status = carnn_book_open(&book, &desc, &error);
        while (!status && question) status = carnn_book_question(book, &question, &error);
        CHECK(!status || (status == CARNN_ERR_MEMORY && error.code == status));
        if (status && book)
            CHECK(!carnn_book_question(book, &question, &error) && !question);
        carnn_book_free(book);
        CHECK_INT(memory.blocks, 0);
    }
    CHECK_INT(status, CARNN_OK);
    CHECK(n > 20);
    carnn_book_free(NULL);
}

int main(void) {
    book_by_hand();
    book_what_a_name_is();
    book_candidates();
    book_seeds();
    book_errors();
    book_too_long();
    book_many_names();
    book_without_memory();
    return test_end();
}
