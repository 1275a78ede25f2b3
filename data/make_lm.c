/* make_lm.c - writes small talk for language models that look at the sentence before

       make_lm FOLDER

   Each document is a conversation of two people, one sentence a line with its dialog act behind a
   tab; a line that starts with '=' comes before it. A conversation is a chain of exchanges: a
   question and its answer, an opinion and whether the other shares it, a request, thanks. What is
   said next takes up the thing, the place or the quality of the sentence before. A model that sees
   one sentence at a time cannot guess these words, a model with context can.

   Licence: MIT-0 or public domain, as you like. */

#include "generate.h"

/* ---- What people talk about ------------------------------------------------------------------ */

enum { TOPICS = 8, QUALITIES = 3 };

/* Patterns for the words of a topic; a quality comes with its opposite. */
static const struct topic {
    const char *things, *verbs, *places, *people;
    const char *qualities[QUALITIES][2];
} topics[TOPICS] = {
    { "piano|guitar|violin|flute|trumpet|cello|drum|harp", "played|tuned|repaired|sold",
      "at the music school|in the concert hall|in the studio|at the church",
      "the teacher|the conductor|the singer|my cousin",
      { { "loud", "soft" }, { "simple", "difficult" }, { "wonderful", "awful" } } },
    { "soup|bread|pie|salad|stew|cake|curry|omelette", "cooked|tasted|made|ordered",
      "in the kitchen|at the cafe|at the market|in the canteen",
      "the cook|the baker|the waiter|my aunt",
      { { "salty", "bland" }, { "hot", "cold" }, { "sweet", "sour" } } },
    { "rose|tulip|herb|cherry|daisy|fern|lily|cactus", "planted|watered|trimmed|moved",
      "behind the shed|near the pond|by the fence|in the greenhouse",
      "the gardener|the florist|my neighbour|our uncle",
      { { "tall", "short" }, { "green", "dry" }, { "healthy", "sick" } } },
    { "ball|racket|helmet|bicycle|skateboard|kayak|sledge|canoe", "tested|cleaned|rented|painted",
      "in the stadium|at the pool|on the track|in the gym",
      "the coach|the referee|our captain|my sister",
      { { "comfortable", "clumsy" }, { "fast", "slow" }, { "sturdy", "fragile" } } },
    { "ticket|suitcase|map|passport|tent|backpack|compass|lantern",
      "packed|bought|inspected|carried",
      "at the station|in the harbour|at the airport|on the ferry",
      "the driver|the pilot|the guide|the sailor",
      { { "cheap", "expensive" }, { "large", "small" }, { "handy", "awkward" } } },
    { "dog|cat|rabbit|parrot|hamster|pony|goose|turtle", "fed|washed|found|trained",
      "in the barn|under the table|in the basket|at the farm",
      "the vet|the farmer|the shepherd|my nephew",
      { { "clever", "silly" }, { "lazy", "lively" }, { "clean", "dirty" } } },
    { "novel|film|play|poem|story|comic|diary|article", "finished|borrowed|reviewed|copied",
      "in the library|at the cinema|on the shelf|in the theatre",
      "the author|the actor|the critic|my grandmother",
      { { "funny", "sad" }, { "long", "brief" }, { "famous", "unknown" } } },
    { "laptop|printer|desk|invoice|contract|schedule|projector|folder",
      "checked|returned|misplaced|replaced",
      "in the office|on the second floor|at the front desk|in the archive",
      "the boss|the secretary|the intern|my colleague",
      { { "useful", "useless" }, { "heavy", "light" }, { "modern", "outdated" } } },
};

static const char times[] = "today|yesterday|this morning|last week|on monday|on friday|at noon";
static const char days[] = "tomorrow|tonight|next week|on tuesday|on sunday|after lunch";
static const char numbers[] = "two|three|four|five|six|ten|twelve|twenty";
static const char colours[] = "red|blue|yellow|white|black|brown";

/* ---- What they say --------------------------------------------------------------------------- */

enum { LINES = 3 };

/* An exchange: who speaks alternates. The letters stand for
       $o thing     $v did to it    $p where    $w who     $t when, in the past
       $a quality   $b its opposite $d when, to come       $n number    $c colour */
struct line {
    const char *act, *pattern;
};

static const struct exchange {
    int weight;
    struct line lines[LINES];
} exchanges[] = {
    { 6, { { "wh-question", "where is the $o {|now}|where did you leave the $o" },
           { "wh-answer", "{it|the $o} is $p|i left {it|the $o} $p|you will find the $o $p" },
           { "acknowledge", "$p {|of course}|oh $p i see" } } },
    { 6, { { "wh-question", "who $v the $o|do you know who $v the $o" },
           { "wh-answer", "$w $v {it|the $o}|it was $w who $v the $o|i think $w did" },
           { "wh-question", "when did $w do that" } } },
    { 5, { { "wh-question", "when was the $o $v|what day was it that you $v the $o" },
           { "wh-answer", "it was $t|i $v the $o $t|$t {|i believe}" } } },
    { 5, { { "wh-question", "how many {people|friends} saw the $o" },
           { "wh-answer", "$n {people|friends} {|saw it}|only $n {|i think}|about $n" },
           { "acknowledge", "$n {|really}|only $n" } } },
    { 4, { { "wh-question", "what colour {is|was} the $o|which colour do you want for the $o" },
           { "wh-answer", "{it is|it was} $c|$c {|of course}|$c i {think|guess}" } } },
    { 5, { { "yes-no-question", "is the $o {really|very|still} $a|do you find the $o $a" },
           { "yes", "yes {the $o|it} is {very|quite|really} $a|yes very $a" },
           { "agree", "i thought so {too|as well}" } } },
    { 5, { { "yes-no-question", "is the $o {really|very|still} $a|do you find the $o $a" },
           { "no", "no {the $o|it} is {rather|quite} $b|no not $a at all it is $b" },
           { "acknowledge", "oh {$b|is it $b} {|that is a pity}" } } },
    { 3, { { "yes-no-question", "have you $v the $o {|yet}" },
           { "yes", "yes {i have|we did} $t|yes $t $p" } } },
    { 3, { { "yes-no-question", "have you $v the $o {|yet}" },
           { "no", "no {not yet|i have not} but $w has|no $w $v the $o" } } },
    { 2, { { "yes-no-question", "did you hear that $w $v the $o" },
           { "yes", "yes {i heard it|somebody told me} $t|yes $w told me $p" } } },
    { 2, { { "yes-no-question", "did you hear that $w $v the $o" },
           { "no", "no nobody told me {about the $o|about $w}|no when did $w do that" } } },
    { 6, { { "opinion", "i {think|guess} the $o {is|was} {too|so|very} $a" },
           { "agree", "{yes|right|exactly|true} {too|so|very} $a|i agree it {is|was} very $a" },
           { "opinion", "and the one of $w is even more $a" } } },
    { 6, { { "opinion", "i {think|guess} the $o {is|was} {too|so|very} $a" },
           { "disagree", "{really|oh no|not at all} i find it {rather|quite} $b|to me it is $b" },
           { "wh-question", "$b {|really} why do you say that" } } },
    { 6, { { "statement", "i $v the $o $t|$w $v the $o $p|we $v the $o $p $t" },
           { "wh-question", "what {kind of|sort of} $o {was it|is that}|and how was the $o" },
           { "wh-answer", "{a|it was a} {very|quite} $a one|quite $a {|i would say}" } } },
    { 5, { { "statement", "$w {lost|sold|forgot} the $o $t|somebody stole the $o {$t|from $w}" },
           { "acknowledge", "oh dear {the $o|poor $w}|what a pity {about the $o|for $w}" },
           { "statement", "{but|well} $w {has|found} another $o" } } },
    { 5, { { "request", "{could you|can you|please} bring the $o $d|will you lend me the $o $d" },
           { "accept", "{sure|of course|gladly} {you can have it|i will bring it} $d" },
           { "thank", "{thank you|thanks} {so much|a lot} $d is {fine|perfect}" } } },
    { 4, { { "request", "{could you|can you|please} bring the $o $d|will you lend me the $o $d" },
           { "refuse", "sorry {i am|we are} away $d|i am afraid $w needs the $o $d" } } },
    { 4, { { "thank", "{thank you|thanks} for the $o|thanks for showing me the $o" },
           { "welcome", "{you are welcome|my pleasure} {i hope you like it|enjoy the $o}" } } },
    { 4, { { "apologise", "{sorry|excuse me} {i forgot|i am late with} the $o" },
           { "forgive", "{never mind|no problem} {$d is fine|bring the $o $d}" } } },
    { 4, { { "suggest", "let us {look at|talk about|go and see} the $o $d|how about the $o $d" },
           { "accept", "{good idea|fine|all right} {$d|$d then|let us meet $p}" },
           { "acknowledge", "{good|great} $d {then|it is}" } } },
};

enum { EXCHANGES = sizeof exchanges / sizeof exchanges[0] };

static const struct exchange greeting = {
    1, { { "greet", "{hello|hi|good morning|good evening} {|there|my friend}" },
         { "greet", "{hello|hi} {|nice to see you} {|how are you}|good to see you" },
         { "statement", "{i am|we are} {fine|well|tired|busy} {today|as always}" } },
};

static const struct exchange parting = {
    1, { { "bye", "{well|so} {i have to go|it is late|i must leave} {now|goodbye}" },
         { "bye", "see you {$d|soon}|{bye|goodbye} {|and thanks for the talk}" } },
};

/* ---- A conversation -------------------------------------------------------------------------- */

struct conversation {
    struct speaker speaker;
    struct output *output;
    struct text thing, verb, place, person, time, day, number, colour;
};

static void write_line(struct conversation *c, const struct line *line)
{
    struct text text = { "", 0 };

    say(&text, &c->speaker, line->pattern);
    text_trim(&text);
    fprintf(c->output->file, "%s\t%s\n", text.bytes, line->act);
}

/* The thing stays for a while; all the rest changes with every exchange. */
static void bind_words(struct conversation *c, const struct topic *topic, int new_thing)
{
    struct speaker *speaker = &c->speaker;
    int quality = rng_below(&speaker->rng, QUALITIES), side = rng_below(&speaker->rng, 2);

    if (new_thing) bind(speaker, 'o', &c->thing, topic->things);
    bind(speaker, 'v', &c->verb, topic->verbs);
    bind(speaker, 'p', &c->place, topic->places);
    bind(speaker, 'w', &c->person, topic->people);
    bind(speaker, 't', &c->time, times);
    bind(speaker, 'd', &c->day, days);
    bind(speaker, 'n', &c->number, numbers);
    bind(speaker, 'c', &c->colour, colours);
    speaker->word['a' - 'a'] = topic->qualities[quality][side];
    speaker->word['b' - 'a'] = topic->qualities[quality][1 - side];
}

/* The third line of an exchange is often left out. */
static void write_exchange(struct conversation *c, const struct exchange *exchange)
{
    int lines = exchange->lines[2].act != NULL && rng_percent(&c->speaker.rng, 60) ? 3 : 2;

    for (int i = 0; i < lines; i++) write_line(c, &exchange->lines[i]);
}

static const struct exchange *draw_exchange(struct rng *rng)
{
    const struct exchange *drawn = exchanges;
    int total = 0;

    for (int i = 0; i < EXCHANGES; i++) {
        total += exchanges[i].weight;
        if (rng_below(rng, total) < exchanges[i].weight) drawn = &exchanges[i];
    }
    return drawn;
}

static void converse(struct conversation *c)
{
    struct rng *rng = &c->speaker.rng;
    const struct topic *topic = &topics[rng_below(rng, TOPICS)];
    int exchange_count = 3 + rng_below(rng, 5);

    bind_words(c, topic, 1);
    if (rng_percent(rng, 70)) write_exchange(c, &greeting);
    for (int i = 0; i < exchange_count; i++) {
        int new_topic = i > 0 && rng_percent(rng, 15);

        if (new_topic) topic = &topics[rng_below(rng, TOPICS)];
        bind_words(c, topic, new_topic || rng_percent(rng, 40));
        write_exchange(c, draw_exchange(rng));
    }
    if (rng_percent(rng, 70)) write_exchange(c, &parting);
}

static void write_conversations(const char *folder, const char *name, int count, uint64_t seed)
{
    struct rng rng = { seed };
    struct output output;

    output_open_in(&output, folder, name);
    for (int i = 1; i <= count; i++) {
        struct conversation c = { .output = &output };

        c.speaker.rng.state = rng_next(&rng);
        fprintf(output.file, "= conversation %d\n", i);
        converse(&c);
    }
    output_close(&output, 1);
}

int main(int argc, char **argv)
{
    if (argc != 2) fail(EXIT_USAGE, "usage: make_lm FOLDER");
    write_conversations(argv[1], "lm-train.txt", 400, 11);
    write_conversations(argv[1], "lm-dev.txt", 60, 12);
    write_conversations(argv[1], "lm-test.txt", 60, 13);
    return 0;
}
