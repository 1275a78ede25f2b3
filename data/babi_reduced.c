/* babi_reduced.c - reduces the answers of the dialog bAbI task 6 to templates

       babi_reduced [--merge] KB CANDIDATES FOLDER FILE...

   In "Babi reduced" a system learns which kind of answer comes next, not which restaurant it names:
   "prezzo serves italian food" and "cocum serves indian food" are both "<name> serves <food> food".
   The set itself was never published; this program makes one like it from the published files. KB
   is the knowledge base, CANDIDATES the list of answers, each FILE holds dialogs. Into FOLDER go

       candidates.txt            the distinct templates, in the order in which they first appear
       the base name of FILE     where the turn "N user<TAB>answer" has become
                                 "N user<TAB>template<TAB>answer"

   The template is what is to be predicted, the third column is what is said in the history, to the
   letter. All other lines stay as they are, but lines always end in LF. Counts go to standard
   error. The rule, by which 2407 answers become 78 templates:

       1. Trim, lower-case, make one space of many.
       2. "api_call ..." becomes "api_call".
       3. "X_phone", "X_address" and "X_post_code" become slots: "<phone>" and so on.
       4. Names of restaurants become "<name>", the longest first. The verb "ask" is none.
       5. Cuisines become "<food>".
       6. Areas become "<loc>", prices "<price>", written-out post codes and streets slots.
       7. Drop the punctuation.

   Of a written-out address the number and the street become the slot and the district stays, so
   that three templates begin with "the address of <name> is <address>". With --merge they are one,
   which leaves 76. The words behind the slots come from KB, from the facts of every FILE, from
   the arguments of the api_calls in FILEs and CANDIDATES, and from a short list below.

   Either all the files are written or none. Exit codes: 0 done, 1 disk or memory, 2 usage, 3 files
   that cannot be read or are not what is described here.

   Licence: MIT-0 or public domain, as you like. */

#include "generate.h"

/* ---- Bytes and spans ------------------------------------------------------------------------- */

/* A part of a text that belongs to somebody else. */
struct span {
    const char *at;
    size_t length;
};

static void *resize(void *old, size_t count, size_t size)
{
    void *bytes = count > SIZE_MAX / size ? NULL : realloc(old, count * size);

    if (bytes == NULL) fail(EXIT_DISK, "out of memory");
    return bytes;
}

static int is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Bytes above 127 are letters of other alphabets. */
static int is_word(char c)
{
    return (lower(c) >= 'a' && lower(c) <= 'z') || is_digit(c) || c == '_' || (c & 0x80) != 0;
}

static int span_is(struct span span, const char *text)
{
    return span.length == strlen(text) && memcmp(span.at, text, span.length) == 0;
}

static struct span skip(struct span span, size_t bytes)
{
    return (struct span){ span.at + bytes, span.length - bytes };
}

static struct span skip_blanks(struct span span)
{
    while (span.length > 0 && is_blank(*span.at)) span = skip(span, 1);
    return span;
}

/* Takes the first word off the front; it is empty where there is none. */
static struct span take_word(struct span *rest)
{
    struct span word = *rest = skip_blanks(*rest);

    while (rest->length > 0 && !is_blank(*rest->at)) *rest = skip(*rest, 1);
    word.length -= rest->length;
    return word;
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* A file in memory, read line by line, more than once. */
struct source {
    const char *path;
    char *bytes;
    size_t length;
    size_t next;                                         /* where the next line begins */
    size_t line;                                         /* the number of the line last read */
};

static void source_load(struct source *source, const char *path)
{
    FILE *file = fopen(path, "rb");
    size_t room = 0, got;

    if (file == NULL) fail(EXIT_BAD_DATA, "%s: cannot be read: %s", path, strerror(errno));
    *source = (struct source){ .path = path };
    do {
        if (source->length == room) {
            room = 2 * room + 65536;
            source->bytes = resize(source->bytes, room, 1);
        }
        got = fread(source->bytes + source->length, 1, room - source->length, file);
        source->length += got;
    } while (got > 0);
    if (ferror(file)) fail(EXIT_BAD_DATA, "%s: cannot be read: %s", path, strerror(errno));
    fclose(file);
}

static void source_rewind(struct source *source)
{
    source->next = 0;
    source->line = 0;
}

static void expected(const struct source *source, const char *what, struct span found)
{
    char shown[41];
    size_t n = 0;

    if (found.length == 0) {
        fail(EXIT_BAD_DATA, "%s:%zu: expected %s, found nothing", source->path, source->line, what);
    }
    while (n < found.length && n + 1 < sizeof shown) {
        shown[n] = found.at[n] >= ' ' && found.at[n] <= '~' ? found.at[n] : '?';
        n++;
    }
    shown[n] = '\0';
    fail(EXIT_BAD_DATA, "%s:%zu: expected %s, found \"%s%s\"", source->path, source->line, what,
         shown, n < found.length ? "..." : "");
}

/* The next line without its end; 0 after the last one. */
static int source_next(struct source *source, struct span *line)
{
    size_t left = source->length - source->next;
    const char *start = source->bytes + source->next;
    const char *end = memchr(start, '\n', left);

    if (left == 0) return 0;
    line->at = start;
    line->length = end != NULL ? (size_t)(end - start) : left;
    source->next += line->length + (end != NULL);
    source->line++;
    if (line->length > 0 && line->at[line->length - 1] == '\r') line->length--;
    if (memchr(line->at, '\0', line->length) != NULL) {
        fail(EXIT_BAD_DATA, "%s:%zu: expected text, found a NUL byte", source->path, source->line);
    }
    return 1;
}

/* Takes the line number and the one space after it off the front. A tab stays: it ends the empty
   words of a user who says nothing. */
static void take_number(const struct source *source, struct span *rest)
{
    struct span line = *rest;

    while (rest->length > 0 && is_digit(*rest->at)) *rest = skip(*rest, 1);
    if (rest->length == line.length || rest->length == 0 || !is_blank(*rest->at)) {
        expected(source, "a line number and a space", line);
    }
    if (*rest->at == ' ') *rest = skip(*rest, 1);
}

enum kind { EMPTY, TURN, FACT };

/* A line of a dialog. A turn has a head (all before the tab) and a response, a fact the rest. */
struct line {
    enum kind kind;
    struct span whole;
    struct span head, response;
    struct span name, attribute, value;
};

/* "name R_attribute value". A search without results is written "api_call no result". */
static void read_fact(const struct source *source, struct line *line, struct span rest,
                      const char *what)
{
    struct span fact = rest;

    line->kind = FACT;
    line->name = take_word(&rest);
    line->attribute = take_word(&rest);
    line->value = take_word(&rest);
    if (line->value.length == 0 || skip_blanks(rest).length > 0) expected(source, what, fact);
    if (line->attribute.length > 2 && memcmp(line->attribute.at, "R_", 2) == 0) return;
    if (span_is(line->name, "api_call") && span_is(line->attribute, "no")
        && span_is(line->value, "result")) return;
    expected(source, what, fact);
}

static void read_turn(const struct source *source, struct line *line, const char *tab)
{
    line->kind = TURN;
    line->head = line->response = line->whole;
    line->head.length = (size_t)(tab - line->whole.at);
    line->response = skip(line->whole, line->head.length + 1);
    if (memchr(line->response.at, '\t', line->response.length) != NULL) {
        expected(source, "one tab in a turn", line->whole);
    }
    if (skip_blanks(line->response).length == 0) {
        expected(source, "an answer after the tab", skip_blanks(line->response));
    }
}

static int read_line(struct source *source, struct line *line)
{
    struct span rest;
    const char *tab;

    if (!source_next(source, &line->whole)) return 0;
    rest = line->whole;
    if (skip_blanks(rest).length == 0) {
        line->kind = EMPTY;
        return 1;
    }
    take_number(source, &rest);
    tab = memchr(rest.at, '\t', rest.length);
    if (tab != NULL) {
        read_turn(source, line, tab);
    } else {
        read_fact(source, line, rest,
                  "a tab after the user's words, or \"name R_attribute value\"");
    }
    return 1;
}

/* The next candidate without its number; 0 after the last one. */
static int read_candidate(struct source *source, struct span *candidate)
{
    do {
        if (!source_next(source, candidate)) return 0;
    } while (skip_blanks(*candidate).length == 0);
    take_number(source, candidate);
    return 1;
}

/* ---- The words behind the slots -------------------------------------------------------------- */

/* In the order in which the rule goes through them. In a text that is being reduced, a slot is one
   byte of its number; no other bytes below 32 are left by then. */
enum slot { PHONE = 1, ADDRESS, POST_CODE, NAME, FOOD, LOC, PRICE, SLOTS };

/* How a slot is written, the attribute whose values it stands for, and how a placeholder ends. */
static const struct {
    const char *token;
    const char *attribute;
    const char *suffix;
} slots[SLOTS] = {
    [PHONE] = { "<phone>", "R_phone", "_phone" },
    [ADDRESS] = { "<address>", "R_address", "_address" },
    [POST_CODE] = { "<post_code>", "R_post_code", "_post_code" },
    [NAME] = { "<name>", "", "" },
    [FOOD] = { "<food>", "R_cuisine", "" },
    [LOC] = { "<loc>", "R_location", "" },
    [PRICE] = { "<price>", "R_price", "" },
};

/* What is said, but occurs in no fact and no api_call. */
static const struct {
    enum slot slot;
    const char *words;
} unlisted[] = {
    { NAME, "the_cow_pizza_kitchen_and_bar" },
    { NAME, "the_good_luck_chinese_food_takeaway" },
    { NAME, "the_river_bar_steakhouse_and_grill" },
    { NAME, "nandos_city_centre" },
    { FOOD, "modern_european" },
    { FOOD, "barbeque" },
    { FOOD, "crossover" },
    { FOOD, "panasian" },
    { FOOD, "the_americas" },
    { FOOD, "middle_eastern" },
    { FOOD, "northern_european" },
};

struct phrase {
    enum slot slot;
    struct span words;
};

/* Once they are sorted, those of a slot are from first[slot] to before first[slot + 1]. */
struct phrases {
    struct phrase *list;
    size_t count;
    size_t room;
    size_t first[SLOTS + 1];
};

static void phrases_add(struct phrases *phrases, enum slot slot, struct span words)
{
    if (phrases->count == phrases->room) {
        phrases->room = 2 * phrases->room + 1024;
        phrases->list = resize(phrases->list, phrases->room, sizeof phrases->list[0]);
    }
    phrases->list[phrases->count++] = (struct phrase){ slot, words };
}

static void add_fact(struct phrases *phrases, const struct line *fact)
{
    if (span_is(fact->name, "api_call")) return;
    phrases_add(phrases, NAME, fact->name);
    for (enum slot slot = PHONE; slot < SLOTS; slot++) {
        if (span_is(fact->attribute, slots[slot].attribute)) {
            phrases_add(phrases, slot, fact->value);
        }
    }
}

/* "api_call cuisine area price", where what the user left open reads R_cuisine and so on. */
static void add_api_call(struct phrases *phrases, const struct source *source, struct span response)
{
    struct span rest = response;

    if (!span_is(take_word(&rest), "api_call")) return;
    for (enum slot slot = FOOD; slot <= PRICE; slot++) {
        struct span word = take_word(&rest);

        if (word.length == 0) expected(source, "an api_call with three arguments", response);
        if (!span_is(word, slots[slot].attribute)) phrases_add(phrases, slot, word);
    }
    if (skip_blanks(rest).length > 0) expected(source, "an api_call of three arguments", response);
}

/* Names are written "pizza_hut", "pizza hut" and "Pizza Hut". */
static char folded(char c)
{
    return c == ' ' ? '_' : lower(c);
}

/* By slot, the longest first, and then in any order that brings equal ones together. */
static int compare_phrases(const void *left, const void *right)
{
    const struct phrase *a = left, *b = right;

    if (a->slot != b->slot) return a->slot < b->slot ? -1 : 1;
    if (a->words.length != b->words.length) return a->words.length > b->words.length ? -1 : 1;
    for (size_t i = 0; i < a->words.length; i++) {
        char x = folded(a->words.at[i]), y = folded(b->words.at[i]);

        if (x != y) return x < y ? -1 : 1;
    }
    return 0;
}

/* Most phrases were found hundreds of times; each is kept once. */
static void phrases_sort(struct phrases *phrases)
{
    size_t kept = 0;
    int slot = 0;

    qsort(phrases->list, phrases->count, sizeof phrases->list[0], compare_phrases);
    for (size_t i = 0; i < phrases->count; i++) {
        const struct phrase *phrase = &phrases->list[i];

        if (kept > 0 && compare_phrases(&phrases->list[kept - 1], phrase) == 0) continue;
        while (slot <= (int)phrase->slot) phrases->first[slot++] = kept;
        phrases->list[kept++] = *phrase;
    }
    while (slot <= SLOTS) phrases->first[slot++] = kept;
    phrases->count = kept;
}

/* ---- From an answer to its template ---------------------------------------------------------- */

/* How many bytes at `at`, where a word begins, stand for the slot; 0: none. */
typedef size_t matcher(const struct phrases *phrases, enum slot slot, const char *at);

static int matches(const char *at, struct span words)
{
    for (size_t i = 0; i < words.length; i++) {
        if (folded(at[i]) != folded(words.at[i])) return 0;
    }
    return !is_word(at[words.length]);
}

/* There is a restaurant "ask", and "you can ask for restaurants". */
static int is_verb(const char *at)
{
    return strncmp(at, "ask for", 7) == 0 && !is_word(at[7]);
}

static size_t match_phrase(const struct phrases *phrases, enum slot slot, const char *at)
{
    if (slot == NAME && is_verb(at)) return 0;
    for (size_t i = phrases->first[slot]; i < phrases->first[slot + 1]; i++) {
        if (matches(at, phrases->list[i].words)) return phrases->list[i].words.length;
    }
    return 0;
}

/* A placeholder such as "prezzo_phone". */
static size_t match_suffix(const struct phrases *phrases, enum slot slot, const char *at)
{
    const char *suffix = slots[slot].suffix;
    size_t length = 0, tail = strlen(suffix);

    (void)phrases;
    while (is_word(at[length])) length++;
    return length > tail && memcmp(at + length - tail, suffix, tail) == 0 ? length : 0;
}

/* A post code the way it is spelt out: "c.b 2, 1 d.p". */
static size_t match_post_code(const struct phrases *phrases, enum slot slot, const char *at)
{
    const char *pattern = "a.a 0, 0 a.a";
    size_t i = 0;

    (void)phrases;
    (void)slot;
    for (; pattern[i] != '\0'; i++) {
        char kind = at[i] >= 'a' && at[i] <= 'z' ? 'a' : is_digit(at[i]) ? '0' : at[i];

        if (kind != pattern[i]) return 0;
    }
    return is_word(at[i]) ? 0 : i;
}

/* A number, a word, and "street" or "road". */
static size_t match_street(const struct phrases *phrases, enum slot slot, const char *at)
{
    static const char *const kinds[] = { " street", " road" };
    size_t number = 0, end;

    (void)phrases;
    (void)slot;
    while (is_digit(at[number])) number++;
    if (number == 0 || at[number] != ' ') return 0;
    end = number + 1;
    while (is_word(at[end])) end++;
    if (end == number + 1) return 0;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        size_t length = strlen(kinds[i]);

        if (strncmp(at + end, kinds[i], length) == 0 && !is_word(at[end + length])) {
            return end + length;
        }
    }
    return 0;
}

/* Puts the slot wherever it matches. */
static void replace(char *text, enum slot slot, matcher *match, const struct phrases *phrases)
{
    const char *from = text;
    char *to = text;
    int inside = 0;                                      /* inside a word: none begins here */

    while (*from != '\0') {
        size_t length = inside ? 0 : match(phrases, slot, from);

        inside = length == 0 && is_word(*from);
        *to++ = length > 0 ? (char)slot : *from;
        from += length > 0 ? length : 1;
    }
    *to = '\0';
}

/* Appends c at `to` to the text that begins at `text`; a blank only between two other things. */
static char *append(const char *text, char *to, char c)
{
    if (c == ' ' && (to == text || to[-1] == ' ')) return to;
    *to = c;
    return to + 1;
}

static void finish(const char *text, char *to)
{
    if (to > text && to[-1] == ' ') to--;
    *to = '\0';
}

/* Step 1. Control bytes count as blanks, which makes them free to stand for slots. */
static char *normalised(struct span response)
{
    char *text = resize(NULL, response.length + 1, 1);
    char *to = text;

    for (size_t i = 0; i < response.length; i++) {
        char c = response.at[i];

        to = append(text, to, (unsigned char)c < ' ' ? ' ' : lower(c));
    }
    finish(text, to);
    return text;
}

static void cut_api_call(char *text)
{
    size_t length = strlen("api_call");

    if (strncmp(text, "api_call", length) == 0 && !is_word(text[length])) text[length] = '\0';
}

/* One template for all written-out addresses, whatever the district. */
static void merge_addresses(char *text)
{
    char start[32];
    int length = snprintf(start, sizeof start, "the address of %c is %c", NAME, ADDRESS);

    if (strncmp(text, start, (size_t)length) == 0) text[length] = '\0';
}

static void drop_punctuation(char *text)
{
    char *to = text;

    for (const char *from = text; *from != '\0'; from++) {
        int slot = *from > 0 && *from < SLOTS;

        if (slot || *from == ' ' || is_word(*from)) to = append(text, to, *from);
    }
    finish(text, to);
}

/* The text with its slots written out, as a new one. */
static char *spelt_out(const char *text)
{
    size_t longest = strlen(slots[POST_CODE].token);
    char *result = resize(NULL, strlen(text) + 1, longest);
    char *to = result;

    for (; *text != '\0'; text++) {
        if (*text > 0 && *text < SLOTS) {
            size_t length = strlen(slots[(int)*text].token);

            memcpy(to, slots[(int)*text].token, length);
            to += length;
        } else {
            *to++ = *text;
        }
    }
    *to = '\0';
    return result;
}

/* The rule, step by step. The template is the caller's to free. */
static char *reduce(const struct phrases *phrases, struct span response, int merge)
{
    char *text = normalised(response);
    char *result;

    cut_api_call(text);
    for (enum slot slot = PHONE; slot <= POST_CODE; slot++) {
        replace(text, slot, match_phrase, phrases);
        replace(text, slot, match_suffix, phrases);
    }
    for (enum slot slot = NAME; slot <= PRICE; slot++) replace(text, slot, match_phrase, phrases);
    replace(text, POST_CODE, match_post_code, phrases);
    replace(text, ADDRESS, match_street, phrases);
    if (merge) merge_addresses(text);
    drop_punctuation(text);
    result = spelt_out(text);
    free(text);
    return result;
}

/* ---- The templates --------------------------------------------------------------------------- */

struct template {
    char *text;
    size_t here;                                         /* how often in the file at hand */
    size_t total;                                        /* how often in all files */
};

struct templates {
    struct template *list;
    size_t count;
    size_t room;
};

/* Its place, or `count` if it is none of them. */
static size_t templates_find(const struct templates *templates, const char *text)
{
    size_t i = 0;

    while (i < templates->count && strcmp(templates->list[i].text, text) != 0) i++;
    return i;
}

/* Keeps the text, or frees it if it is there already. */
static void templates_add(struct templates *templates, char *text)
{
    if (templates_find(templates, text) < templates->count) {
        free(text);
        return;
    }
    if (templates->count == templates->room) {
        templates->room = 2 * templates->room + 128;
        templates->list = resize(templates->list, templates->room, sizeof templates->list[0]);
    }
    templates->list[templates->count++] = (struct template){ .text = text };
}

/* ---- The conversion -------------------------------------------------------------------------- */

struct job {
    int merge;
    const char *folder;
    struct source kb, candidates;
    struct source files[MAX_OUTPUTS - 1];
    int file_count;
    struct phrases phrases;
    struct templates templates;
    struct output outputs[MAX_OUTPUTS];                  /* the candidates, then the files */
};

static void collect_kb(struct job *job)
{
    struct line line;

    while (source_next(&job->kb, &line.whole)) {
        struct span rest = line.whole;

        if (skip_blanks(rest).length == 0) continue;
        take_number(&job->kb, &rest);
        read_fact(&job->kb, &line, rest, "\"name R_attribute value\"");
        add_fact(&job->phrases, &line);
    }
}

static void collect_file(struct job *job, struct source *source)
{
    struct line line;

    while (read_line(source, &line)) {
        if (line.kind == FACT) add_fact(&job->phrases, &line);
        if (line.kind == TURN) add_api_call(&job->phrases, source, line.response);
    }
    source_rewind(source);
}

static void collect_phrases(struct job *job)
{
    struct span candidate;

    for (size_t i = 0; i < sizeof unlisted / sizeof unlisted[0]; i++) {
        struct span words = { unlisted[i].words, strlen(unlisted[i].words) };

        phrases_add(&job->phrases, unlisted[i].slot, words);
    }
    collect_kb(job);
    while (read_candidate(&job->candidates, &candidate)) {
        add_api_call(&job->phrases, &job->candidates, candidate);
    }
    source_rewind(&job->candidates);
    for (int i = 0; i < job->file_count; i++) collect_file(job, &job->files[i]);
    phrases_sort(&job->phrases);
}

static char *template_of(const struct job *job, const struct source *source, struct span response)
{
    char *text = reduce(&job->phrases, response, job->merge);

    if (*text == '\0') expected(source, "an answer with a letter or a digit", response);
    return text;
}

static void make_templates(struct job *job)
{
    struct source *source = &job->candidates;
    struct span candidate;
    size_t count = 0;

    for (; read_candidate(source, &candidate); count++) {
        templates_add(&job->templates, template_of(job, source, candidate));
    }
    if (count == 0) expected(source, "a candidate", (struct span){ NULL, 0 });
    fprintf(stderr, "%s: %zu candidates, %zu templates\n", source->path, count,
            job->templates.count);
}

static void write_span(FILE *file, struct span span)
{
    fwrite(span.at, 1, span.length, file);
}

static void write_turn(struct job *job, const struct source *source, const struct line *turn,
                       FILE *file)
{
    char *text = template_of(job, source, turn->response);
    size_t number = templates_find(&job->templates, text);

    if (number == job->templates.count) {
        expected(source, "an answer with a template of the candidates", turn->response);
    }
    job->templates.list[number].here++;
    write_span(file, turn->head);
    fprintf(file, "\t%s\t", text);
    write_span(file, turn->response);
    free(text);
}

/* What was counted in a file, which is then added to the totals. */
static void report_file(struct job *job, const struct source *source)
{
    size_t turns = 0, occur = 0, most = 0;

    for (size_t i = 0; i < job->templates.count; i++) {
        struct template *template = &job->templates.list[i];

        turns += template->here;
        occur += template->here > 0;
        if (template->here > job->templates.list[most].here) most = i;
    }
    if (turns == 0) expected(source, "a turn", (struct span){ NULL, 0 });
    fprintf(stderr, "%s: %zu turns, %zu templates occur, most often (%.1f %%): %s\n", source->path,
            turns, occur, 100.0 * (double)job->templates.list[most].here / (double)turns,
            job->templates.list[most].text);
    for (size_t i = 0; i < job->templates.count; i++) {
        job->templates.list[i].total += job->templates.list[i].here;
        job->templates.list[i].here = 0;
    }
}

static void report_all(const struct job *job)
{
    size_t occur = 0, twice = 0, ten_times = 0;

    for (size_t i = 0; i < job->templates.count; i++) {
        occur += job->templates.list[i].total >= 1;
        twice += job->templates.list[i].total >= 2;
        ten_times += job->templates.list[i].total >= 10;
    }
    fprintf(stderr, "all files: %zu templates occur, %zu at least twice, %zu at least ten times\n",
            occur, twice, ten_times);
}

static void write_file(struct job *job, struct source *source, FILE *file)
{
    struct line line;

    while (read_line(source, &line)) {
        if (line.kind == TURN) {
            write_turn(job, source, &line, file);
        } else {
            write_span(file, line.whole);
        }
        fputc('\n', file);
    }
    report_file(job, source);
}

/* An output with the bytes of an input that has not been converted is that input: whoever names its
   own folder, however he spells it, keeps his data. */
static void spare_input(const struct source *input, const char *path)
{
    struct source old;
    FILE *file = fopen(path, "rb");

    if (file == NULL) return;
    fclose(file);
    source_load(&old, path);
    if (old.length == input->length && memcmp(old.bytes, input->bytes, old.length) == 0) {
        fail(EXIT_USAGE, "%s: would be written over what is read; take another FOLDER", path);
    }
    free(old.bytes);
}

static void open_output(struct job *job, int number, const char *name, const struct source *input)
{
    struct output *output = &job->outputs[number];

    output_open_in(output, job->folder, name);
    spare_input(input, output->path);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

static void write_all(struct job *job)
{
    open_output(job, 0, "candidates.txt", &job->candidates);
    for (size_t i = 0; i < job->templates.count; i++) {
        fprintf(job->outputs[0].file, "1 %s\n", job->templates.list[i].text);
    }
    for (int i = 0; i < job->file_count; i++) {
        open_output(job, i + 1, base_name(job->files[i].path), &job->files[i]);
        write_file(job, &job->files[i], job->outputs[i + 1].file);
    }
    output_close(job->outputs, job->file_count + 1);
}

static void job_free(struct job *job)
{
    free(job->kb.bytes);
    free(job->candidates.bytes);
    for (int i = 0; i < job->file_count; i++) free(job->files[i].bytes);
    free(job->phrases.list);
    for (size_t i = 0; i < job->templates.count; i++) free(job->templates.list[i].text);
    free(job->templates.list);
}

int main(int argc, char **argv)
{
    static const char usage[] = "usage: babi_reduced [--merge] KB CANDIDATES FOLDER FILE...";
    static struct job job;

    job.merge = argc > 1 && strcmp(argv[1], "--merge") == 0;
    argv += 1 + job.merge;
    argc -= 1 + job.merge;
    if (argc == 1 && strcmp(argv[0], "--help") == 0) return puts(usage) < 0;
    if (argc < 4 || argv[0][0] == '-') fail(EXIT_USAGE, "%s", usage);
    job.folder = argv[2];
    job.file_count = argc - 3;
    if (job.file_count >= MAX_OUTPUTS) {
        fail(EXIT_USAGE, "expected at most %d FILEs, found %d", MAX_OUTPUTS - 1, job.file_count);
    }
    source_load(&job.kb, argv[0]);
    source_load(&job.candidates, argv[1]);
    for (int i = 0; i < job.file_count; i++) source_load(&job.files[i], argv[i + 3]);
    collect_phrases(&job);
    make_templates(&job);
    write_all(&job);
    report_all(&job);
    job_free(&job);
    return 0;
}
