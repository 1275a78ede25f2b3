/* make_dialog.c - writes the dialogs of a small town's helper

       make_dialog FOLDER

   The helper of Alderbridge finds restaurants and books trains. The dialogs are in the format of
   the dialog bAbI tasks. What the helper says follows from what was said so far, and often from
   what was said long ago: the guest gives the details in any order, changes his mind, digresses,
   comes back, and signs with the name he gave at the door. The rows that a search returns are drawn
   anew each time, so that they have to be read: a model cannot know them by heart.

   Reading order: the world, the state of a dialog, the small exchanges, the two errands, the files.

   Licence: MIT-0 or public domain, as you like. */

#include "generate.h"

/* ---- The world ------------------------------------------------------------------------------- */

enum topic { RESTAURANT, TRAIN, TOPICS };
enum { FOOD, AREA, PRICE, SLOTS };                       /* what a restaurant search needs */
enum { PLACE, DAY, PART_OF_DAY };                        /* what a train search needs */
enum { ANYWHERE = 3, UNKNOWN = -1 };                     /* a value of AREA; of any slot */

/* A value of a slot: its name in a search, alone ("in the north"), as an adjective before the noun
   and as a clause after it. An empty adjective: there is none. */
struct value {
    const char *name;
    const char *alone;
    const char *before;
    const char *after;
};

struct slot {
    const char *question;
    const char *choices;
    int count;
    struct value values[6];
};

#define CUISINE(name) \
    { name, "3:" name "|2:" name " food|something " name, name, \
      "{that serves|with|for} " name " food" }
#define PART_OF_TOWN(name) \
    { name, "{2:in|somewhere in} the " name " {|of town}", "", \
      "in the " name "|in the " name " {of|part of} town" }
#define TOWN(name) { name, "to " name, "", "to " name }
#define WHEN(name, words) { name, words, "", words }

static const struct slot slots[TOPICS][SLOTS] = {
    [RESTAURANT] = {
        { "What kind of food would you like ?",
          "There is italian , indian , thai and seafood .", 4,
          { CUISINE("italian"), CUISINE("indian"), CUISINE("thai"),
            { "seafood", "5:seafood|fish|something from the sea", "seafood",
              "{that serves|with} {good|fresh|} {seafood|fish}" } } },
        { "In which part of town ?",
          "There are places in the north , in the centre and in the south .", 4,
          { PART_OF_TOWN("north"), PART_OF_TOWN("centre"), PART_OF_TOWN("south"),
            { "anywhere", "anywhere|it does not matter|i do not mind", "",
              "anywhere in town|in any part of town" } } },
        { "In which price range ?",
          "You can choose cheap or expensive .", 2,
          { { "cheap", "2:cheap|something cheap", "cheap",
              "2:in the cheap price range|that does not cost much" },
            { "expensive", "2:expensive|something {fancy|expensive}",
              "2:expensive|fancy", "in the expensive price range" } } },
    },
    [TRAIN] = {
        { "Where would you like to go ?",
          "There are trains to Bath , Dover , Oxford and York .", 4,
          { TOWN("bath"), TOWN("dover"), TOWN("oxford"), TOWN("york") } },
        { "On which day ?",
          "You can travel today , tomorrow or on sunday .", 3,
          { WHEN("today", "5:today|this very day"), WHEN("tomorrow", "tomorrow"),
            WHEN("sunday", "on sunday") } },
        { "At what time of day ?",
          "There are trains in the morning , in the afternoon and in the evening .", 3,
          { WHEN("morning", "5:in the morning|before lunch"),
            WHEN("afternoon", "5:in the afternoon|after lunch"),
            WHEN("evening", "5:in the evening|late in the day") } },
    },
};

enum { RESTAURANTS = 16, GUESTS = 6 };

struct restaurant {
    const char *name, *phone, *address;
    int where[SLOTS];
};

static const struct restaurant restaurants[RESTAURANTS] = {
    { "bella_luna",     "555-0112", "12_mill_lane",     { 0, 0, 0 } },
    { "little_venice",  "555-0143", "3_bridge_street",  { 0, 0, 0 } },
    { "casa_verde",     "555-0178", "40_garden_row",    { 0, 2, 0 } },
    { "olive_grove",    "555-0121", "7_market_square",  { 0, 1, 1 } },
    { "golden_tiger",   "555-0165", "21_station_road",  { 1, 1, 0 } },
    { "spice_route",    "555-0134", "9_market_square",  { 1, 1, 0 } },
    { "saffron_house",  "555-0187", "15_harbour_walk",  { 1, 2, 0 } },
    { "royal_garden",   "555-0156", "2_castle_street",  { 1, 1, 1 } },
    { "blue_lotus",     "555-0119", "31_river_street",  { 2, 2, 1 } },
    { "lemon_tree",     "555-0192", "5_harbour_walk",   { 2, 2, 1 } },
    { "jade_palace",    "555-0147", "18_north_gate",    { 2, 0, 0 } },
    { "orchid_room",    "555-0103", "6_castle_street",  { 2, 1, 1 } },
    { "harbour_light",  "555-0159", "1_harbour_walk",   { 3, 2, 0 } },
    { "silver_fish",    "555-0115", "22_harbour_walk",  { 3, 2, 0 } },
    { "old_anchor",     "555-0196", "8_river_street",   { 3, 0, 1 } },
    { "captains_table", "555-0162", "19_river_street",  { 3, 2, 1 } },
};

static const char *const guests[GUESTS] = {
    "anna", "ben", "clara", "david", "emma", "felix",
};

static const char *const departures[3][3] = {
    { "07:15", "08:40", "10:30" },
    { "12:50", "14:20", "16:10" },
    { "18:25", "19:45", "20:55" },
};

/* Remarks that have one answer, whatever went before. */
static const struct { const char *remark, *reply; } small_talk[] = {
    { "how are you {|today}|how do you do|are you well",
      "I am very well , thank you . How can I help ?" },
    { "are you {human|a robot|a person|real}|am i talking to a {human|machine}",
      "I am a small program that lives in the town hall ." },
    { "{what is|tell me|may i ask} your name|what should i call you|who are you",
      "My name is Alder ." },
    { "{what|it is} {a lovely day|nice weather}|it is {raining|cold} {today|again}",
      "The weather in Alderbridge changes every hour ." },
    { "tell me a joke|do you know {a joke|any jokes}|make me laugh",
      "Why are fish so clever ? Because they live in schools ." },
    { "you are {very|so|really} {kind|helpful|nice|clever}|i like {you|talking to you}",
      "That is very kind of you ." },
    { "what can you do|how can you help me|what are you good at|help",
      "I can find a restaurant or book a train for you ." },
    { "{i need|can you find me|do you know|what about} {a hotel|a taxi|a museum|a cinema}",
      "Sorry , I only know restaurants and trains ." },
};
enum { SMALL_TALKS = sizeof small_talk / sizeof small_talk[0] };

/* ---- A dialog -------------------------------------------------------------------------------- */

/* The distinct responses, in the order in which they were first said. */
struct candidates {
    char *text[512];
    int count;
};

struct dialog {
    struct speaker guest;            /* $n stands for a name, $v for a value */
    struct output *file;
    struct candidates *candidates;
    int line;
    struct text heard;               /* what the guest says in this turn */
    char reply[128];                 /* what the helper said last */

    const char *name;                /* of the guest; NULL until he gives it */
    int goal[TOPICS][SLOTS];         /* what the guest will have in the end */
    int thought[TOPICS][SLOTS];      /* what he asks for at first */
    int wish[TOPICS][SLOTS];         /* what the helper has understood so far */
    int started[TOPICS];             /* errands that were mentioned */
    int pending[TOPICS];             /* errands that are still to be done */

    int found[RESTAURANTS];          /* what the search returned, the shortest wait first */
    int wait[RESTAURANTS];           /* in minutes, of each of them */
    int found_count, offered;
    const char *departs;
    int platform, fare;
};

static int chance(struct dialog *d, int percent)
{
    return rng_percent(&d->guest.rng, percent);
}

static int draw(struct dialog *d, int n)
{
    return rng_below(&d->guest.rng, n);
}

static void candidates_add(struct candidates *candidates, const char *response)
{
    char *copy;

    for (int i = 0; i < candidates->count; i++) {
        if (strcmp(candidates->text[i], response) == 0) return;
    }
    if (candidates->count == 512) fail(EXIT_BAD_DATA, "more than 512 candidates");
    copy = malloc(strlen(response) + 1);
    if (copy == NULL) fail(EXIT_DISK, "out of memory");
    candidates->text[candidates->count++] = strcpy(copy, response);
}

/* The guest goes on speaking. */
static void hear(struct dialog *d, const char *pattern)
{
    if (d->heard.length > 0) text_add(&d->heard, ' ');
    say(&d->heard, &d->guest, pattern);
}

/* The helper answers, which completes the turn. */
static void answer(struct dialog *d, const char *format, ...)
{
    char reply[sizeof d->reply];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(reply, sizeof reply, format, arguments);
    va_end(arguments);
    strcpy(d->reply, reply);         /* not at once: the reply may be an argument */
    candidates_add(d->candidates, reply);
    text_trim(&d->heard);
    fprintf(d->file->file, "%d %s\t%s\n", ++d->line, d->heard.bytes, reply);
    text_clear(&d->heard);
}

/* A row that the search returned. */
static void row(struct dialog *d, const char *format, ...)
{
    va_list arguments;

    fprintf(d->file->file, "%d ", ++d->line);
    va_start(arguments, format);
    vfprintf(d->file->file, format, arguments);
    va_end(arguments);
    fputc('\n', d->file->file);
}

static const struct value *value_of(enum topic topic, int slot, int value)
{
    return &slots[topic][slot].values[value];
}

static const struct value *wished(const struct dialog *d, enum topic topic, int slot)
{
    return value_of(topic, slot, d->wish[topic][slot]);
}

/* The first slot that is still to be asked for, or SLOTS. */
static int missing_slot(const struct dialog *d, enum topic topic)
{
    int slot = 0;

    while (slot < SLOTS && d->wish[topic][slot] != UNKNOWN) slot++;
    return slot;
}

/* The helper asks for what is missing, and searches once nothing is. */
static void answer_next(struct dialog *d, enum topic topic)
{
    int slot = missing_slot(d, topic);

    if (slot < SLOTS) {
        answer(d, "%s", slots[topic][slot].question);
    } else {
        answer(d, "api_call %s %s %s %s", topic == RESTAURANT ? "restaurant" : "train",
               wished(d, topic, 0)->name, wished(d, topic, 1)->name, wished(d, topic, 2)->name);
    }
}

/* ---- Small exchanges ------------------------------------------------------------------------- */

static void chat(struct dialog *d)
{
    int i = draw(d, SMALL_TALKS);

    hear(d, small_talk[i].remark);
    answer(d, "%s", small_talk[i].reply);
}

static void mumble(struct dialog *d)
{
    hear(d, "{uh|um|mm|er|hmm} {uh|the|i|well|could} {um|uh|you know|er|the {noise|thing}}");
    answer(d, "Sorry , I did not understand . Could you please repeat that ?");
}

static void ask_to_repeat(struct dialog *d)
{
    hear(d, "sorry {what did you say|i did not hear you}|could you {repeat that|say that again}|"
            "pardon|what was that|come again");
    answer(d, "%s", d->reply);
}

static void ask_own_name(struct dialog *d)
{
    hear(d, "what is my name|do you {remember|still know} my name|who am i");
    if (d->name != NULL) answer(d, "Your name is %s .", d->name);
    else answer(d, "You have not told me your name yet .");
}

static void give_name(struct dialog *d)
{
    d->name = d->guest.word['n' - 'a'];
    hear(d, "{3:my name is|2:i am|this is|you can call me} $n");
}

/* Something that does not answer the question the helper just asked. */
static void digress(struct dialog *d)
{
    int kind = draw(d, 100);

    if (kind < 40) {
        chat(d);
    } else if (kind < 55) {
        mumble(d);
    } else if (kind < 75) {
        ask_to_repeat(d);
    } else if (kind < 88 || d->name != NULL) {
        ask_own_name(d);
    } else {
        hear(d, "by the way");
        give_name(d);
        answer(d, "Nice to meet you , %s .", d->name);
    }
}

static void thank(struct dialog *d)
{
    hear(d, "thanks|thank you {|very much|so much}|great thanks|that is {great|perfect}|lovely");
    answer(d, "You are welcome . Is there anything else ?");
}

/* ---- Asking for an errand -------------------------------------------------------------------- */

static int starts_with_vowel(const char *word)
{
    return strchr("aeiou", word[0]) != NULL;
}

/* "an expensive thai restaurant in the centre": some slots are adjectives, the others follow in any
   order. given[slot] says which ones the guest mentions. */
static void describe(struct dialog *d, enum topic topic, const int *given)
{
    static const int adjectives[] = { PRICE, FOOD };
    const int *thought = d->thought[topic];
    int order[SLOTS] = { 0, 1, 2 };
    int used[SLOTS] = { 0 };
    struct text noun = { "", 0 };

    for (int i = 0; topic == RESTAURANT && i < 2; i++) {
        int slot = adjectives[i];

        if (!given[slot] || chance(d, 35)) continue;
        say(&noun, &d->guest, value_of(topic, slot, thought[slot])->before);
        text_add(&noun, ' ');
        used[slot] = 1;
    }
    say(&noun, &d->guest, topic == RESTAURANT ? "5:restaurant|place to eat"
                                              : "5:train|train ticket");
    hear(d, starts_with_vowel(noun.bytes) ? "an" : "a");
    hear(d, noun.bytes);
    rng_shuffle(&d->guest.rng, order, SLOTS);
    for (int i = 0; i < SLOTS; i++) {
        if (given[order[i]] && !used[order[i]]) {
            hear(d, value_of(topic, order[i], thought[order[i]])->after);
        }
    }
}

/* The opening sentence of an errand, with some of the details. */
static void request(struct dialog *d, enum topic topic)
{
    int forgotten = draw(d, SLOTS);      /* nobody thinks of everything at once */
    int given[SLOTS];

    for (int slot = 0; slot < SLOTS; slot++) {
        given[slot] = slot != forgotten && chance(d, 50);
        if (given[slot]) d->wish[topic][slot] = d->thought[topic][slot];
    }
    hear(d, "3:i am looking for|3:i want|3:i need|i would like|can you find me|find me");
    describe(d, topic, given);
    hear(d, "3:|please");
    answer_next(d, topic);
}

/* The guest corrects one detail. */
static void correct(struct dialog *d, enum topic topic, int slot)
{
    d->wish[topic][slot] = d->goal[topic][slot];
    d->guest.word['v' - 'a'] = wished(d, topic, slot)->alone;
    hear(d, "{3:actually|sorry|no wait|oh} {3:make it $v|i meant $v|$v instead|"
            "i changed my mind rather $v}");
}

/* A slot where the helper has understood what the guest no longer wants, or SLOTS. */
static int wrong_slot(const struct dialog *d, enum topic topic)
{
    const int *wish = d->wish[topic];
    int slot = 0;

    while (slot < SLOTS && (wish[slot] == UNKNOWN || wish[slot] == d->goal[topic][slot])) slot++;
    return slot;
}

static void restaurant_goal(struct dialog *d, int *goal)
{
    memcpy(goal, restaurants[draw(d, RESTAURANTS)].where, SLOTS * sizeof *goal);
    if (chance(d, 25)) goal[AREA] = ANYWHERE;
}

static void train_goal(struct dialog *d, int *goal)
{
    for (int slot = 0; slot < SLOTS; slot++) goal[slot] = draw(d, slots[TRAIN][slot].count);
}

/* At first the guest asks for the goal, or for the goal with one detail that he will change. */
static void start_errand(struct dialog *d, enum topic topic)
{
    int *goal = d->goal[topic], *thought = d->thought[topic];
    int slot = draw(d, SLOTS);

    if (topic == RESTAURANT) restaurant_goal(d, goal);
    else train_goal(d, goal);
    memcpy(thought, goal, sizeof d->thought[topic]);
    if (!(topic == RESTAURANT && slot == AREA && goal[slot] == ANYWHERE) && chance(d, 50)) {
        thought[slot] = draw(d, slots[topic][slot].count);
    }
    d->started[topic] = 1;
    request(d, topic);
}

static void return_to_errand(struct dialog *d, enum topic topic)
{
    hear(d, "{2:now|good now|thank you and now|no wait} back to the");
    hear(d, topic == RESTAURANT ? "3:restaurant|place to eat" : "3:train|train ticket");
    answer_next(d, topic);
}

static void finish_errand(struct dialog *d, enum topic topic);

/* The guest leaves one errand for another, which he may leave as well, and comes back to it. */
static void detour(struct dialog *d, enum topic topic)
{
    enum topic other = topic == RESTAURANT ? TRAIN : RESTAURANT;

    hear(d, "wait first|before that|one moment first");
    start_errand(d, other);
    if (chance(d, 50)) finish_errand(d, other);
    return_to_errand(d, topic);
}

/* Between the helper's question and the answer. */
static void interrupt(struct dialog *d, enum topic topic, int slot)
{
    enum topic other = topic == RESTAURANT ? TRAIN : RESTAURANT;

    if (d->pending[other] && !d->started[other] && chance(d, 35)) {
        detour(d, topic);
    } else if (chance(d, 8)) {
        hear(d, "what {can i choose from|are the choices|choices are there}");
        answer(d, "%s", slots[topic][slot].choices);
    }
    while (chance(d, 16)) digress(d);
}

/* Answers the helper's questions until nothing is missing. */
static void fill_slots(struct dialog *d, enum topic topic)
{
    int slot, wrong;

    while ((slot = missing_slot(d, topic)) < SLOTS) {
        interrupt(d, topic, slot);
        wrong = wrong_slot(d, topic);
        d->wish[topic][slot] = d->thought[topic][slot];
        d->guest.word['v' - 'a'] = wished(d, topic, slot)->alone;
        hear(d, "4:$v|2:$v please|i would say $v|maybe $v");
        if (wrong < SLOTS && chance(d, 50)) {
            hear(d, "and");
            correct(d, topic, wrong);
        }
        answer_next(d, topic);
    }
}

/* ---- The restaurant -------------------------------------------------------------------------- */

static int matches(const struct restaurant *restaurant, const int *wish)
{
    for (int slot = 0; slot < SLOTS; slot++) {
        int anywhere = slot == AREA && wish[slot] == ANYWHERE;

        if (!anywhere && restaurant->where[slot] != wish[slot]) return 0;
    }
    return 1;
}

/* Notes a restaurant that has a table, in its place by waiting time. */
static void find(struct dialog *d, int restaurant, int minutes)
{
    int i = d->found_count++;

    for (; i > 0 && d->wait[i - 1] > minutes; i--) {
        d->found[i] = d->found[i - 1];
        d->wait[i] = d->wait[i - 1];
    }
    d->found[i] = restaurant;
    d->wait[i] = minutes;
}

/* Returns the rows of the restaurants that have a table tonight; each time others may be full. The
   one with the shortest wait will be offered first, wherever its rows are. */
static void search_restaurants(struct dialog *d)
{
    int minutes[] = { 5, 10, 20, 40 };
    int last = UNKNOWN;

    d->found_count = d->offered = 0;
    rng_shuffle(&d->guest.rng, minutes, 4);
    for (int i = 0; i < RESTAURANTS; i++) {
        if (matches(&restaurants[i], d->wish[RESTAURANT])) last = i;
    }
    for (int i = 0; i <= last && d->found_count < 2; i++) {
        const struct restaurant *r = &restaurants[i];

        if (!matches(r, d->wish[RESTAURANT])) continue;
        if (chance(d, 50) && (i < last || d->found_count > 0)) continue;
        row(d, "%s R_phone %s", r->name, r->phone);
        row(d, "%s R_address %s", r->name, r->address);
        row(d, "%s R_wait %d", r->name, minutes[d->found_count]);
        find(d, i, minutes[d->found_count]);
    }
    if (d->found_count == 0) row(d, "api_call no result");
}

static void answer_offer(struct dialog *d)
{
    if (d->offered < d->found_count) {
        answer(d, "How about %s ?", restaurants[d->found[d->offered]].name);
    } else if (d->found_count > 0) {
        answer(d, "Sorry , there is no other .");
        d->offered--;
    } else {
        answer(d, "Sorry , there is no such restaurant . What should I change ?");
    }
}

/* One question about the restaurant that was offered last. */
static void ask_restaurant(struct dialog *d)
{
    const struct restaurant *r = &restaurants[d->found[d->offered]];
    int kind = draw(d, 100);

    if (kind < 40) {
        hear(d, "{what is|can i have|could you give me|and} {the|their} {phone|telephone} number");
        answer(d, "The phone number of %s is %s .", r->name, r->phone);
    } else if (kind < 80) {
        hear(d, "{what is|can i have|could you give me|and} {the|their} address");
        answer(d, "The address of %s is %s .", r->name, r->address);
    } else {
        hear(d, "how much {is it|does it cost}|what does it cost|and the price");
        answer(d, "The prices there are %s .", wished(d, RESTAURANT, PRICE)->name);
    }
}

static void choose_restaurant(struct dialog *d)
{
    while (chance(d, 40) && d->offered < d->found_count) {
        if (chance(d, 40)) ask_restaurant(d);
        hear(d, "is there anything else|something else please|do you have another one|"
                "no not that one|what else is there|i do not like that one");
        d->offered++;
        answer_offer(d);
        if (strncmp(d->reply, "Sorry", 5) == 0) break;
    }
    while (chance(d, 40)) ask_restaurant(d);
}

/* ---- The train ------------------------------------------------------------------------------- */

/* There is a train for what the guest really wants, and often none for his first thought. */
static void search_trains(struct dialog *d, int certain)
{
    const char *to = wished(d, TRAIN, PLACE)->name;

    d->departs = NULL;
    if (!certain && chance(d, 75)) {
        row(d, "api_call no result");
        return;
    }
    d->departs = departures[d->wish[TRAIN][PART_OF_DAY]][draw(d, 3)];
    d->platform = 1 + draw(d, 4);
    d->fare = 12 + 6 * draw(d, 4);
    row(d, "%s_train R_departs %s", to, d->departs);
    row(d, "%s_train R_platform %d", to, d->platform);
    row(d, "%s_train R_ticket %d", to, d->fare);
}

static void answer_train(struct dialog *d)
{
    if (d->departs != NULL) answer(d, "There is one at %s . Shall I book it ?", d->departs);
    else answer(d, "Sorry , there is no such train . What should I change ?");
}

/* One question about the train that was found last. */
static void ask_train(struct dialog *d)
{
    int kind = draw(d, 100);

    if (kind < 40) {
        hear(d, "which platform {|is it}|what is the platform|where does it leave from");
        answer(d, "It leaves from platform %d .", d->platform);
    } else if (kind < 75) {
        hear(d, "how much {is it|does it cost}|what does it cost|and the price");
        answer(d, "A ticket costs %d pounds .", d->fare);
    } else {
        hear(d, "when {does it leave|is that} again|what was the time {|again}");
        answer(d, "It leaves at %s .", d->departs);
    }
}

/* ---- An errand, from the request to the booking ---------------------------------------------- */

/* The helper needs a name to book; one that was given long ago will do. */
static void book(struct dialog *d, enum topic topic)
{
    hear(d, "2:yes {|please}|yes {book it|do that}|sounds good|that one is fine|i will take it");
    if (d->name == NULL) {
        answer(d, "What is your name please ?");
        if (chance(d, 15)) chat(d);
        if (chance(d, 60)) give_name(d);
        else hear(d, "3:$n|it is $n");
        d->name = d->guest.word['n' - 'a'];
    }
    answer(d, "Done . I booked a %s for %s .", topic == RESTAURANT ? "table" : "seat",
           d->name);
}

static void decline(struct dialog *d)
{
    hear(d, "no {|thank you}|not {now|today}|no i will think about it|better not");
    answer(d, "All right . Is there anything else ?");
}

static void search(struct dialog *d, enum topic topic, int certain)
{
    if (topic == RESTAURANT) search_restaurants(d);
    else search_trains(d, certain);
    hear(d, "<SILENCE>");
    if (topic == RESTAURANT) answer_offer(d);
    else answer_train(d);
}

static void finish_errand(struct dialog *d, enum topic topic)
{
    int wrong;

    fill_slots(d, topic);
    while ((wrong = wrong_slot(d, topic)) < SLOTS) {
        search(d, topic, 0);
        correct(d, topic, wrong);
        answer_next(d, topic);
    }
    search(d, topic, 1);
    if (topic == RESTAURANT) choose_restaurant(d);
    while (topic == TRAIN && chance(d, 60)) ask_train(d);
    if (chance(d, 8)) digress(d);
    if (chance(d, 85)) book(d, topic);
    else decline(d);
    d->pending[topic] = 0;
}

/* ---- A whole dialog -------------------------------------------------------------------------- */

/* The guest may greet, say who he is, talk about the weather, or come straight to the point. */
static void greet(struct dialog *d)
{
    int kind = draw(d, 100);

    if (kind < 25) {
        hear(d, "{hello|hi|good {morning|evening}|hey} {|there}");
        answer(d, "Welcome to Alderbridge , how can I help ?");
    } else if (kind < 40) {
        hear(d, "<SILENCE>");
        answer(d, "Welcome to Alderbridge , how can I help ?");
    } else if (kind < 65) {
        hear(d, "hello|hi|good {morning|evening}");
        give_name(d);
        answer(d, "Hello %s , how can I help ?", d->name);
    } else if (kind < 85) {
        hear(d, "hello|hi|good {morning|evening}");        /* and in the same breath the request */
        if (chance(d, 60)) {
            give_name(d);
            hear(d, "and");
        }
    }
    if (kind < 65 && chance(d, 20)) chat(d);
}

/* Questions about an errand long done. */
static void recall(struct dialog *d, enum topic first)
{
    if (first == RESTAURANT) {
        const struct restaurant *r = &restaurants[d->found[d->offered]];

        hear(d, "what was the");
        if (chance(d, 50)) {
            hear(d, "{phone|telephone} number of the {restaurant|place} {|again}");
            answer(d, "The phone number of %s is %s .", r->name, r->phone);
        } else {
            hear(d, "address of the {restaurant|place} {|again}");
            answer(d, "The address of %s is %s .", r->name, r->address);
        }
    } else if (chance(d, 50)) {
        hear(d, "{which|what} platform was {my|the} train {|again}");
        answer(d, "It leaves from platform %d .", d->platform);
    } else {
        hear(d, "{when|what time} was {my|the} train {|again}");
        answer(d, "It leaves at %s .", d->departs);
    }
}

static void part(struct dialog *d)
{
    hear(d, "goodbye|bye {|bye}|no {goodbye|that is all}|that is all {|thank you}");
    if (d->name != NULL) answer(d, "Goodbye %s , have a nice day .", d->name);
    else answer(d, "Goodbye , have a nice day .");
}

/* One or two errands, in this order or with one inside the other; and some only look around. */
static void converse(struct dialog *d)
{
    enum topic first = chance(d, 50) ? RESTAURANT : TRAIN;
    enum topic second = first == RESTAURANT ? TRAIN : RESTAURANT;

    d->guest.word['n' - 'a'] = guests[draw(d, GUESTS)];
    d->pending[first] = 1;
    d->pending[second] = chance(d, 35);
    greet(d);
    start_errand(d, first);
    if (chance(d, 94)) {
        finish_errand(d, first);
        if (chance(d, 20)) thank(d);
        if (d->started[second] && d->pending[second]) {
            return_to_errand(d, second);
            finish_errand(d, second);
        } else if (d->pending[second]) {
            hear(d, "and now|also|then|and");
            start_errand(d, second);
            finish_errand(d, second);
        }
        if (chance(d, 15)) recall(d, first);
    }
    if (chance(d, 10)) digress(d);
    if (chance(d, 8)) ask_own_name(d);
    part(d);
}

/* ---- The files ------------------------------------------------------------------------------- */

static void write_dialogs(const char *folder, const char *name, int count, uint64_t seed,
                          struct candidates *candidates)
{
    struct rng rng = { seed };
    struct output output;

    output_open_in(&output, folder, name);
    for (int i = 0; i < count; i++) {
        struct dialog d = { .file = &output, .candidates = candidates };

        d.guest.rng.state = rng_next(&rng);
        memset(d.wish, UNKNOWN, sizeof d.wish);          /* every byte of -1 is the same */
        converse(&d);
        fputc('\n', output.file);
    }
    output_close(&output, 1);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* In alphabetical order: the place in the list tells nothing. */
static void write_candidates(const char *folder, const char *name, struct candidates *candidates)
{
    struct output output;

    qsort(candidates->text, (size_t)candidates->count, sizeof candidates->text[0], compare_texts);
    output_open_in(&output, folder, name);
    for (int i = 0; i < candidates->count; i++) {
        fprintf(output.file, "1 %s\n", candidates->text[i]);
        free(candidates->text[i]);
    }
    output_close(&output, 1);
}

int main(int argc, char **argv)
{
    static struct candidates candidates;

    if (argc != 2) fail(EXIT_USAGE, "usage: make_dialog FOLDER");
    write_dialogs(argv[1], "dialog-train.txt", 285, 1, &candidates);
    write_dialogs(argv[1], "dialog-dev.txt", 60, 2, &candidates);
    write_dialogs(argv[1], "dialog-test.txt", 60, 3, &candidates);
    write_candidates(argv[1], "dialog-candidates.txt", &candidates);
    return 0;
}
