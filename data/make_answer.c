/* make_answer.c - writes questions with candidate sentences, of which one or two answer them

       make_answer FOLDER

   An invented country has people and towns, and five facts about each of them. A question asks for
   one fact; the candidates are sentences that tell

       this fact             in one or two wordings: these are right
       other facts           about the same person or town
       the same kind of fact about somebody else or somewhere else
       anything else

   Counting common words goes only half of the way: every sentence about the right person shares the
   name, and the wording of a fact need not share anything with the wording of the question. The
   facts are one country for the three files, but no two questions ask for the same fact.

   Licence: MIT-0 or public domain, as you like. */

#include "generate.h"

/* ---- The relations --------------------------------------------------------------------------- */

enum { PEOPLE = 60, TOWNS = 24, SUBJECTS = PEOPLE + TOWNS, FACTS = 5 };
enum { QUESTIONS = FACTS * SUBJECTS, TRAIN = 300, DEV = 60 };        /* the rest is for test */

/* Ways to ask for a fact and to tell it: $x is the person or town, $v the fact. */
struct relation {
    const char *question, *sentence;
};

static const struct relation of_people[FACTS] = {
    { "where was $x born|in which town was $x born|what is the birthplace of $x|"
      "where did $x come into the world",
      "$x was born in $v|$x is a native of $v|$x first saw the light of day in $v|"
      "the family of $x lived in $v when the child arrived|$v is the birthplace of $x|"
      "$v remembers $x as a child of the town" },
    { "where does $x live {|now}|in which town does $x live|where is the home of $x|"
      "where would you find $x at home",
      "$x has lived in $v for {|twenty} years|$x settled in $v {|with a large dog}|"
      "the house of $x stands in $v|$x moved to $v and stayed {|there}|"
      "$x calls $v home|the neighbours of $x in $v are friendly" },
    { "which instrument does $x play|what does $x play|what kind of musician is $x|"
      "on which instrument does $x give concerts",
      "$x is a gifted $v player|$x plays the $v|$x has a $v and a great talent|"
      "the $v is what $x practises every day|nobody masters the $v like $x|"
      "when $x takes the $v everybody listens" },
    { "who is {the husband or wife of|married to} $x|whom did $x marry|"
      "with whom does $x share a household",
      "$x and $v are a couple with two children|$x married $v {|in spring}|"
      "$v became the spouse of $x|the wedding of $x and $v was a great feast|"
      "$x shares life with $v|$x exchanged rings with $v" },
    { "what did $x write|which book is by $x|what is the title of the novel by $x|"
      "of which book is $x the author",
      "$x is the author of $v|$v came from the pen of $x|the novel $v made $x famous|"
      "$x published $v {|after ten years of work}|readers love $x for $v|"
      "$x finished $v on a rainy evening" },
};

static const struct relation of_towns[FACTS] = {
    { "which river flows through $x|on which river is $x|what is the river of $x called|"
      "which water passes $x",
      "$x lies on the banks of the $v|the $v winds through $x|boats on the $v land at $x|"
      "the old bridge of $x crosses the $v|the $v runs {quietly|fast} past the walls of $x|"
      "children in $x swim in the $v" },
    { "how many people live in $x|what is the population of $x|how big is $x|"
      "how many inhabitants does $x have",
      "$x has $v inhabitants|$v people call $x their home|$x is a place of $v souls|"
      "at the last count $x had $v residents|the register of $x lists $v citizens|"
      "with $v heads $x is neither large nor small" },
    { "who is the mayor of $x|who governs $x|who leads the town of $x|"
      "who is the head of the council of $x",
      "$v is the mayor of $x|$v was elected to lead $x|the town hall of $x is run by $v|"
      "the people of $x chose $v for the highest office|"
      "in $x all letters to the council go to $v|$v rules $x with a gentle hand" },
    { "when was $x founded|in what year did $x begin|how old is the town of $x|"
      "since when does $x exist",
      "$x was founded in $v|the first houses of $x were built in $v|"
      "the history of $x begins in $v|settlers came to $x in $v|$x goes back to the year $v|"
      "a stone in $x bears the number $v as the year of its birth" },
    { "what is $x known for|what does $x make|what do visitors buy in $x|"
      "which goods come from $x",
      "$x is famous for its $v|the $v of $x are sold everywhere|craftsmen in $x make fine $v|"
      "nobody leaves $x without some $v|the trade of $x is in $v|$v from $x are the best" },
};

/* What may surround a sentence, so that its length tells nothing. */
static const char before[] =
    "12:|as everybody knows ,|according to the newspaper|it is said that|as far as we know ,";
static const char after[] =
    "12:|, they say|, which surprised many people|, to the joy of all friends|"
    ", as the old books tell|, and that is well known";

/* ---- The words for names and facts ----------------------------------------------------------- */

static const char *const first_names[] = {
    "ada", "boris", "celia", "dario", "edith", "frank", "gilda", "hugo", "ida", "jonas",
};

static const char *const last_names[] = {
    "amsel", "birk", "corvo", "dunn", "elster", "falk", "grund", "holm", "ibis", "jansen", "kolb",
    "lark", "mott", "nord", "olm", "pardo", "quist", "rudd", "stork", "thorn",
};

static const char *const town_names[TOWNS] = {
    "ashmere",  "brackwell", "cranford", "duskley",  "elmstead", "fernham",  "goldbury", "hartsea",
    "inglewood", "jessop",   "kestral",  "longmoor", "marlow",   "northey",  "oakhurst", "pennick",
    "quarley",  "ravenby",   "saltmere", "thornbury", "upwell",  "violet",   "westerby", "yarrow",
};

static const char *const rivers[] = {
    "alba", "brisk", "calder", "darrow", "esk", "fenn", "gale", "hollin", "isen", "lune",
};

static const char *const instruments[] = {
    "cello", "harp", "flute", "trumpet", "violin", "piano", "oboe", "drum", "lute", "organ",
};

static const char *const goods[] = {
    "clocks", "carpets", "cheeses", "candles", "kites", "knives", "baskets", "bells", "hats",
    "pots",
};

static const char title_pattern[] =
    "the {silver|last|broken|wooden|distant|hidden} {lamp|bridge|winter|garden|letter|island}";

/* ---- The country ----------------------------------------------------------------------------- */

/* People come first, then towns. */
struct subject {
    char name[32];
    const char *facts[FACTS];
    struct text title;               /* a book; its author keeps it */
    char inhabitants[16], year[16];  /* a town keeps these */
};

struct country {
    struct speaker speaker;
    struct subject subjects[SUBJECTS];
};

#define DRAW(rng, list) list[rng_below(rng, (int)(sizeof list / sizeof list[0]))]

/* Three people in a row have one last name, but no two have both names in common. */
static void name_people(struct country *country)
{
    for (int i = 0; i < PEOPLE; i++) {
        sprintf(country->subjects[i].name, "%s %s", first_names[(i + i / 30) % 10],
                last_names[i / 3]);
    }
}

static void draw_people(struct country *country)
{
    struct rng *rng = &country->speaker.rng;

    for (int i = 0; i < PEOPLE; i++) {
        struct subject *person = &country->subjects[i];

        say(&person->title, &country->speaker, title_pattern);
        person->facts[0] = DRAW(rng, town_names);
        do person->facts[1] = DRAW(rng, town_names);     /* everybody has moved */
        while (person->facts[1] == person->facts[0]);
        person->facts[2] = DRAW(rng, instruments);
        person->facts[3] = country->subjects[(i + PEOPLE / 2) % PEOPLE].name;
        person->facts[4] = person->title.bytes;
    }
}

static void draw_towns(struct country *country)
{
    struct rng *rng = &country->speaker.rng;

    for (int i = 0; i < TOWNS; i++) {
        struct subject *town = &country->subjects[PEOPLE + i];

        sprintf(town->name, "%s", town_names[i]);
        sprintf(town->inhabitants, "%d", 100 * (10 + rng_below(rng, 90)));
        sprintf(town->year, "%d", 1000 + rng_below(rng, 800));
        town->facts[0] = DRAW(rng, rivers);
        town->facts[1] = town->inhabitants;
        town->facts[2] = country->subjects[rng_below(rng, PEOPLE)].name;
        town->facts[3] = town->year;
        town->facts[4] = DRAW(rng, goods);
    }
}

/* ---- Questions and candidates ---------------------------------------------------------------- */

static const struct relation *relation_of(int subject, int fact)
{
    return subject < PEOPLE ? &of_people[fact] : &of_towns[fact];
}

/* A question or a sentence about a fact. */
static void phrase(struct country *country, struct text *text, int subject, int fact,
                   const char *pattern)
{
    country->speaker.word['x' - 'a'] = country->subjects[subject].name;
    country->speaker.word['v' - 'a'] = country->subjects[subject].facts[fact];
    say(text, &country->speaker, pattern);
    text_add(text, ' ');
}

enum { CANDIDATES = 10 };

struct candidates {
    struct text sentence[CANDIDATES];
    int label[CANDIDATES];
    int count;
};

/* Adds a sentence; one that is there already is left out. */
static void add_candidate(struct country *country, struct candidates *candidates, int subject,
                          int fact, int label)
{
    struct text *text = &candidates->sentence[candidates->count];

    text_clear(text);
    say(text, &country->speaker, before);
    text_add(text, ' ');
    phrase(country, text, subject, fact, relation_of(subject, fact)->sentence);
    say(text, &country->speaker, after);
    text_add(text, ' ');
    text_add(text, '.');
    for (int i = 0; i < candidates->count; i++) {
        if (strcmp(candidates->sentence[i].bytes, text->bytes) == 0) return;
    }
    candidates->label[candidates->count++] = label;
}

/* Somebody else if the subject is a person, another town if it is one. */
static int another(struct rng *rng, int subject)
{
    int first = subject < PEOPLE ? 0 : PEOPLE, count = subject < PEOPLE ? PEOPLE : TOWNS;

    return first + (subject - first + 1 + rng_below(rng, count - 1)) % count;
}

/* A fact about somebody else, unless it is one about the subject too, as a marriage may be. */
static void add_elsewhere(struct country *country, struct candidates *candidates, int subject,
                          int other, int fact)
{
    const char *asked = country->subjects[subject].name;

    if (other == subject || strcmp(country->subjects[other].facts[fact], asked) == 0) return;
    add_candidate(country, candidates, other, fact, 0);
}

static void draw_candidates(struct country *country, struct candidates *candidates, int subject,
                            int fact)
{
    struct rng *rng = &country->speaker.rng;
    int right = 1 + rng_percent(rng, 35), same = 2 + rng_below(rng, 2);
    int elsewhere = 2 + rng_below(rng, 2), unrelated = rng_below(rng, 3);

    candidates->count = 0;
    for (int i = 0; i < right; i++) add_candidate(country, candidates, subject, fact, 1);
    for (int i = 0; i < same; i++) {
        int other_fact = (fact + 1 + rng_below(rng, FACTS - 1)) % FACTS;

        add_candidate(country, candidates, subject, other_fact, 0);
    }
    for (int i = 0; i < elsewhere; i++) {
        add_elsewhere(country, candidates, subject, another(rng, subject), fact);
    }
    for (int i = 0; i < unrelated; i++) {
        int stranger = rng_below(rng, SUBJECTS);

        add_elsewhere(country, candidates, subject, stranger, rng_below(rng, FACTS));
    }
}

/* One group of lines; the order of the candidates tells nothing. */
static void write_question(struct country *country, FILE *file, int number, int id)
{
    int subject = id / FACTS, fact = id % FACTS, order[CANDIDATES];
    struct candidates candidates;
    struct text question = { "", 0 };

    phrase(country, &question, subject, fact, relation_of(subject, fact)->question);
    text_add(&question, '?');
    draw_candidates(country, &candidates, subject, fact);
    for (int i = 0; i < candidates.count; i++) order[i] = i;
    rng_shuffle(&country->speaker.rng, order, candidates.count);
    for (int i = 0; i < candidates.count; i++) {
        fprintf(file, "Q%d\t%s\t%s\t%d\n", number, question.bytes,
                candidates.sentence[order[i]].bytes, candidates.label[order[i]]);
    }
}

static void write_questions(struct country *country, const char *folder, const char *name,
                            const int *ids, int count)
{
    struct output output;

    output_open_in(&output, folder, name);
    fprintf(output.file, "QuestionID\tQuestion\tSentence\tLabel\n");
    for (int i = 0; i < count; i++) write_question(country, output.file, i + 1, ids[i]);
    output_close(&output, 1);
}

int main(int argc, char **argv)
{
    static struct country country;
    int ids[QUESTIONS];

    if (argc != 2) fail(EXIT_USAGE, "usage: make_answer FOLDER");
    country.speaker.rng.state = 21;
    name_people(&country);
    draw_people(&country);
    draw_towns(&country);
    for (int i = 0; i < QUESTIONS; i++) ids[i] = i;
    rng_shuffle(&country.speaker.rng, ids, QUESTIONS);
    write_questions(&country, argv[1], "answer-train.tsv", ids, TRAIN);
    write_questions(&country, argv[1], "answer-dev.tsv", ids + TRAIN, DEV);
    write_questions(&country, argv[1], "answer-test.tsv", ids + TRAIN + DEV,
                    QUESTIONS - TRAIN - DEV);
    return 0;
}
