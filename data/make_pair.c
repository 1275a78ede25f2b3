/* make_pair.c - writes pairs of sentences about a day in Alderbridge, with what one says of the other

       make_pair FOLDER

   A sentence says who does what to which thing and where. The second one of a pair says the same in
   other words or less of it (ENTAILMENT), that it is not so (CONTRADICTION), or something that may
   be or not (NEUTRAL), which can be more than the first one says. The grade of relatedness, from 1
   to 5, counts what both have in common. Files have the columns of SICK.

   Licence: MIT-0 or public domain, as you like. */

#include "generate.h"

enum { TRAIN = 1200, DEV = 250, TEST = 250 };
enum { WHO, DEED, THING, PLACE, SLOTS };
enum { SAME, WIDER, NARROWER, OTHER }; /* what a slot of the second sentence is to the first one's */

/* A word, a wider one (a place has none: it is left out instead), and of deeds the opposite. */
struct word {
    const char *name, *wider, *opposite;
};

static const struct word words[SLOTS][8] = {
    { { "boy", "child", 0 }, { "girl", "child", 0 }, { "baker", "person", 0 },
      { "teacher", "person", 0 }, { "farmer", "person", 0 }, { "dog", "animal", 0 },
      { "goat", "animal", 0 }, { "sailor", "person", 0 } },
    { { "carrying", "moving", "dropping" }, { "pulling", "moving", "pushing" },
      { "washing", "cleaning", "soiling" }, { "wiping", "cleaning", "staining" },
      { "finding", "noticing", "losing" }, { "lifting", "moving", "lowering" },
      { "watching", "noticing", "ignoring" }, { "hiding", "keeping", "showing" } },
    { { "apple", "fruit", 0 }, { "pear", "fruit", 0 }, { "kite", "toy", 0 }, { "ball", "toy", 0 },
      { "hammer", "tool", 0 }, { "spade", "tool", 0 }, { "drum", "instrument", 0 },
      { "flute", "instrument", 0 } },
    { { "near the mill", 0, 0 }, { "on the bridge", 0, 0 }, { "by the harbour", 0, 0 },
      { "in the meadow", 0, 0 }, { "in the library", 0, 0 }, { "in the kitchen", 0, 0 },
      { "at the market", 0, 0 }, { "in the school", 0, 0 } },
};

static void print_sentence(FILE *file, struct rng *rng, const char *const *slot, int denied)
{
    const char *article = strchr("aeiou", slot[THING][0]) ? "an" : "a";
    const char *who = strchr("aeiou", slot[WHO][0]) ? "an" : "a";
    int passive = rng_percent(rng, 25);

    if (denied && rng_percent(rng, 50)) {
        fprintf(file, "no %s is %s %s %s", slot[WHO], slot[DEED], article, slot[THING]);
    } else if (!denied && passive) {
        fprintf(file, "%s %s is touched by %s %s that is %s it", article, slot[THING], who,
                slot[WHO], slot[DEED]);
    } else {
        fprintf(file, "%s %s is %s%s %s %s", who, slot[WHO], denied ? "not " : "", slot[DEED],
                article, slot[THING]);
    }
    if (slot[PLACE] != NULL) fprintf(file, " %s", slot[PLACE]);
}

static void write_pair(struct rng *rng, FILE *file, int number)
{
    const char *slot[2][SLOTS];
    int target = rng_below(rng, 3), changes = rng_below(rng, 3), wide = rng_percent(rng, 30);
    double common = 0.0;

    for (int i = 0; i < SLOTS; i++) {
        const struct word *word = &words[i][rng_below(rng, 8)];
        int change = SAME;

        if (target == 0 && rng_percent(rng, 35)) change = WIDER;
        if (target == 1 && i == DEED && changes == 0) change = OTHER; /* the opposite */
        if (target == 1 && i != DEED && rng_percent(rng, 10)) change = WIDER;
        if (target == 2) change = wide ? NARROWER : rng_percent(rng, 55) ? OTHER : SAME;
        if (target == 2 && i == THING && !wide) change = OTHER;
        slot[0][i] = slot[1][i] = word->name;
        if (change == WIDER) slot[1][i] = i == PLACE ? NULL : word->wider;
        if (change == NARROWER) slot[0][i] = i == PLACE ? NULL : word->wider;
        if (change == OTHER && target == 1) slot[1][i] = word->opposite;
        if (change == OTHER && target == 2) slot[1][i] = words[i][rng_below(rng, 8)].name;
        common += slot[0][i] == slot[1][i] ? 1.0 : change == OTHER && target == 2 ? 0.0 : 0.7;
    }
    if (target == 2 && common > 3.9) slot[1][THING] = "lamp";
    fprintf(file, "%d\t", number);
    print_sentence(file, rng, slot[0], 0);
    fputc('\t', file);
    print_sentence(file, rng, slot[1], target == 1 && changes > 0);
    fprintf(file, "\t%.1f\t%s\n", 1.0 + common - (target == 1 ? 0.8 : 0.0),
            target == 0 ? "ENTAILMENT" : target == 1 ? "CONTRADICTION" : "NEUTRAL");
}

static void write_pairs(const char *folder, const char *name, int count, uint64_t seed)
{
    struct rng rng = { .state = seed };
    struct output output;

    output_open_in(&output, folder, name);
    fprintf(output.file,
            "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n");
    for (int i = 1; i <= count; i++) write_pair(&rng, output.file, i);
    output_close(&output, 1);
}

int main(int argc, char **argv)
{
    if (argc != 2) fail(EXIT_USAGE, "usage: make_pair FOLDER");
    write_pairs(argv[1], "pair-train.tsv", TRAIN, 41);
    write_pairs(argv[1], "pair-dev.tsv", DEV, 42);
    write_pairs(argv[1], "pair-test.tsv", TEST, 43);
    return 0;
}
