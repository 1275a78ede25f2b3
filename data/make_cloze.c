/* make_cloze.c - writes stories from a village, each with a question that leaves a name out

       make_cloze FOLDER

   In a story everybody brings a thing to some place, and asks for the thing of somebody else. The
   question tells of one thing that XXXXX has brought, or has asked for. So every name stands beside
   two things, and every thing beside two names. A third of the names of dev and test are not in
   train: where a name stands says who is meant, not the name.

   Licence: MIT-0 or public domain, as you like. */

#include "generate.h"

enum { PEOPLE = 36, KNOWN = 24, THINGS = 12, CAST = 4, CANDIDATES = 6, SENTENCES = 2 * CAST };
enum { TRAIN = 1000, DEV = 150, TEST = 150 };

static const char *const people[PEOPLE] = {
    "Ada", "Bruno", "Clara", "Dorin", "Edith", "Felix", "Greta", "Hugo", "Irma", "Jonas", "Karla",
    "Leo", "Mona", "Nils", "Olga", "Piet", "Quinn", "Rosa", "Sten", "Tilda", "Ulrich", "Vera",
    "Walt", "Yara", /* in dev and test only: */ "Anton", "Berta", "Cyril", "Dora", "Emil", "Frida",
    "Georg", "Hilda", "Ivo", "Jutta", "Kuno", "Lotte",
};

static const char *const things[THINGS] = {
    "lamp", "kettle", "ladder", "basket", "drum", "map", "rope", "cake", "book", "cloak", "saw",
    "bell",
};

static const char brought[] =
    "$n {brought|carried|took} the $t to the $p|the $t came to the $p with $n|"
    "on $d $n {brought|carried} the $t";
static const char wanted[] =
    "$n {asked for|looked for|wanted to see} the $t|on $d $n {asked for|looked for} the $t|"
    "where is the $t , asked $n";
static const char brought_asked[] =
    "in the end XXXXX , who had brought the $t , went home|"
    "it was XXXXX who carried the $t|they thanked XXXXX for the $t that stood there";
static const char wanted_asked[] =
    "in the end XXXXX , who had asked for the $t , went home|"
    "it was XXXXX who looked for the $t|they laughed at XXXXX , who wanted the $t";
static const char days[] = "monday|tuesday|wednesday|thursday|friday|saturday|sunday";
static const char places[] = "mill|harbour|bridge|school|market|old well|barn|inn";

struct writer {
    struct speaker speaker;
    struct text word[26];
};

/* A pattern about a person and a thing; a line number in front, nothing behind. */
static void write_sentence(struct writer *writer, FILE *file, int number, const char *pattern,
                           int person, int thing)
{
    struct text text = { "", 0 };

    bind(&writer->speaker, 'd', &writer->word['d' - 'a'], days);
    bind(&writer->speaker, 'p', &writer->word['p' - 'a'], places);
    bind(&writer->speaker, 'n', &writer->word['n' - 'a'], people[person]);
    bind(&writer->speaker, 't', &writer->word['t' - 'a'], things[thing]);
    say(&text, &writer->speaker, pattern);
    text_trim(&text);
    fprintf(file, "%d %s .", number, text.bytes);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(people[*(const int *)a], people[*(const int *)b]);
}

/* The first CAST people are in the story; person i brings thing i and asks for thing i + 1. */
static void write_story(struct writer *writer, FILE *file, int names)
{
    struct rng *rng = &writer->speaker.rng;
    int person[PEOPLE], thing[THINGS], order[SENTENCES];
    int who = rng_below(rng, CAST), asks = rng_percent(rng, 50), answer, number = 1;

    for (int i = 0; i < names; i++) person[i] = i;
    for (int i = 0; i < THINGS; i++) thing[i] = i;
    for (int i = 0; i < SENTENCES; i++) order[i] = i;
    rng_shuffle(rng, person, names);
    rng_shuffle(rng, thing, THINGS);
    rng_shuffle(rng, order, SENTENCES);
    for (int i = 0; i < SENTENCES; i++) {
        int kind = order[i] / CAST, one = order[i] % CAST;

        write_sentence(writer, file, number++, kind ? wanted : brought, person[one],
                       thing[(one + kind) % CAST]);
        fputc('\n', file);
    }
    answer = person[who];
    write_sentence(writer, file, number, asks ? wanted_asked : brought_asked, answer,
                   thing[(who + asks) % CAST]);
    fprintf(file, "\t%s\t\t", people[answer]);
    qsort(person, CANDIDATES, sizeof *person, by_name);
    for (int i = 0; i < CANDIDATES; i++) fprintf(file, "%s%s", i ? "|" : "", people[person[i]]);
    fputs("\n\n", file);
}

static void write_stories(const char *folder, const char *name, int count, int names, uint64_t seed)
{
    struct writer writer = { .speaker.rng.state = seed };
    struct output output;

    output_open_in(&output, folder, name);
    for (int i = 0; i < count; i++) write_story(&writer, output.file, names);
    output_close(&output, 1);
}

int main(int argc, char **argv)
{
    if (argc != 2) fail(EXIT_USAGE, "usage: make_cloze FOLDER");
    write_stories(argv[1], "cloze-train.txt", TRAIN, KNOWN, 41);
    write_stories(argv[1], "cloze-dev.txt", DEV, PEOPLE, 42);
    write_stories(argv[1], "cloze-test.txt", TEST, PEOPLE, 43);
    return 0;
}
