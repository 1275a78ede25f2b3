/* make_classify.c - writes letters to the town hall of Alderbridge, each with what it is about

       make_classify FOLDER

   A letter is one sentence or two. Many mention a second matter beside the one that they are about,
   as something that is settled or not meant ("i do not write about the noise ..."), before it or
   after it. So the words of a letter alone do not tell its class: two letters of the same words can
   be about different things.

   Licence: MIT-0 or public domain, as you like. */

#include "generate.h"

enum { CLASSES = 6, TRAIN = 1200, DEV = 250, TEST = 250 };

/* A matter: `full` is a sentence about it, `brief` follows "about". */
struct matter {
    const char *name, *full, *brief;
};

static const struct matter matters[CLASSES] = {
    { "repair",
      "the $o {in front of|behind|near} the $p {is broken|does not work|has come loose}|"
      "somebody should mend the $o {at|near} the $p|since $d the $o at the $p has been out of order|"
      "please send a workman to the $p , the $o needs mending|i nearly fell over the $o at the $p",
      "the broken $o {at|near} the $p|a repair of the $o|the $o that came loose on $d" },
    { "lost",
      "i {lost|left} my $t {at|near} the $p {on $d|}|has anybody found a $t {at the $p|}|"
      "my $t has been missing since $d|on $d a $t was in my bag , and in the evening it was gone|"
      "i found a $t {at|behind} the $p and would like to hand it in",
      "the $t that i lost on $d|a missing $t|the $t that somebody found {at the $p|}" },
    { "permit",
      "{may i|am i allowed to} $w {at|near} the $p {on $d|}|which form do i need to $w|"
      "i ask for leave to $w {near|behind} the $p|what does a licence to $w cost|"
      "my neighbour says that nobody may $w near the $p , is that so",
      "leave to $w {near the $p|}|the licence to $w|the form that one needs to $w" },
    { "noise",
      "the $n {at|near} the $p keeps us awake|every $d the $n {at|near} the $p is louder|"
      "nobody can sleep because of the $n|is the $n at the $p really needed before sunrise|"
      "since $d we hear nothing but the $n",
      "the $n {at|near} the $p|how loud the $n is|the $n that wakes us every $d" },
    { "event",
      "when does the $f {at the $p|} begin|is there still a seat for the $f on $d|"
      "we would like to help with the $f {on $d|at the $p|}|will the $f be moved if it rains|"
      "who sings at the $f {on $d|} this year",
      "the $f {on $d|at the $p}|tickets for the $f|the hour at which the $f begins" },
    { "thanks",
      "thank you for $h {last $d|}|{all of us|we} were glad about $h|"
      "{i|we} send you a cake because of $h|it was kind of you to think of $h|"
      "please tell your people how much we liked $h",
      "how glad we were about $h|my thanks for $h|the cake that we sent because of $h" },
};

static const char *const words[26] = {
    ['d' - 'a'] = "monday|tuesday|wednesday|thursday|friday|saturday|sunday",
    ['f' - 'a'] = "harvest fair|boat race|spring concert|lantern walk|chess day|book market",
    ['h' - 'a'] = "the new benches|the quick help|the flowers by the road|the warm meals|"
                  "the clean paths|the kind letter",
    ['n' - 'a'] = "hammering|barking|brass band|saw mill|night traffic|music",
    ['o' - 'a'] = "street lamp|gate|pump|hand rail|paving stone|letter box|drain",
    ['p' - 'a'] = "library|bridge|harbour|school|mill|station|old well|market hall",
    ['t' - 'a'] = "umbrella|red scarf|watch|set of keys|purse|flute|left shoe",
    ['w' - 'a'] = "sell honey|light a fire|moor a boat|keep bees|hang a sign|fell a tree",
};

/* Around $x, the matter that the letter is about, and $y, the one that it is not about. */
static const char meant[] = "5:$x|i write about $z|my letter is about $z|what i ask about is $z";
static const char unmeant_first[] =
    "i do not write about $y|this is not about $y|you have answered me about $y|"
    "never mind $y|others will write to you about $y|no more words about $y";
static const char unmeant_last[] =
    "i know that you have heard enough about $y|i do not ask about $y|"
    "and i say nothing about $y|$y can wait|but that has nothing to do with $y|"
    "forget what i wrote about $y";
static const char opening[] = "6:|dear town hall ,|good morning ,|to whom it may concern :|hello ,";
static const char closing[] = "8:.|. yours , a neighbour|. many greetings|. please answer soon";

struct writer {
    struct speaker speaker;
    struct text word[26]; /* what $a to $z stand for */
};

/* Makes `$letter` stand for a pattern whose words are drawn anew. */
static void bind_clause(struct writer *writer, char letter, const char *pattern)
{
    for (int i = 0; i < 26; i++) {
        if (words[i] == NULL) continue;
        bind(&writer->speaker, (char)('a' + i), &writer->word[i], words[i]);
    }
    bind(&writer->speaker, letter, &writer->word[letter - 'a'], pattern);
}

static void add_clause(struct writer *writer, struct text *text, const char *pattern)
{
    say(text, &writer->speaker, pattern);
    text_add(text, ' ');
}

static void write_letter(struct writer *writer, FILE *file)
{
    struct rng *rng = &writer->speaker.rng;
    int about = rng_below(rng, CLASSES), place = rng_below(rng, 3);
    int other = (about + 1 + rng_below(rng, CLASSES - 1)) % CLASSES;
    struct text text = { "", 0 };

    bind_clause(writer, 'x', matters[about].full);
    bind_clause(writer, 'z', matters[about].brief);
    bind_clause(writer, 'y', matters[other].brief);
    add_clause(writer, &text, opening);
    if (place == 1) {
        add_clause(writer, &text, unmeant_first);
        add_clause(writer, &text, ",|.");
    }
    add_clause(writer, &text, meant);
    if (place == 2) {
        add_clause(writer, &text, ",|.");
        add_clause(writer, &text, unmeant_last);
    }
    add_clause(writer, &text, closing);
    text_trim(&text);
    fprintf(file, "%s\t%s\n", matters[about].name, text.bytes);
}

static void write_letters(const char *folder, const char *name, int count, uint64_t seed)
{
    struct writer writer = { .speaker.rng.state = seed };
    struct output output;

    output_open_in(&output, folder, name);
    for (int i = 0; i < count; i++) write_letter(&writer, output.file);
    output_close(&output, 1);
}

int main(int argc, char **argv)
{
    if (argc != 2) fail(EXIT_USAGE, "usage: make_classify FOLDER");
    write_letters(argv[1], "classify-train.tsv", TRAIN, 31);
    write_letters(argv[1], "classify-dev.tsv", DEV, 32);
    write_letters(argv[1], "classify-test.tsv", TEST, 33);
    return 0;
}
