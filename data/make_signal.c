/* make_signal.c - writes sequences of rows of numbers, each with what is right of it

       make_signal FOLDER                 gestures: signal-train.tsv, -dev, -test
       make_signal FOLDER adding T N      the adding problem over T rows: adding-train.tsv, ...
       make_signal FOLDER copying T N     the copying problem over T + 20 rows

   A line is what is right, then the numbers of all rows, with tabs between them. N lines are for
   training, a tenth of that for dev and for test.

   A gesture is a hand that is tracked: a row has the two coordinates of its velocity. It rests,
   draws a figure at some speed, with a tremor, and rests again. Two of the figures, circle and
   clockwise, have the same velocities in another order.

   Adding (Hochreiter and Schmidhuber 1997): a row has a number between 0 and 1 and a mark, which is
   1 in one row of each half; the sum of the two marked numbers is to be told. Copying (the same):
   ten symbols out of eight, T - 1 blanks, a signal, ten blanks during which the symbols are to be told;
   a row has a 1 in the column of its symbol, and a line a class for each row.

   Licence: MIT-0 or public domain, as you like. */

#include "generate.h"

enum { TRAIN = 300, DEV = 80, TEST = 80, SYMBOLS = 8, RECALLED = 10 };

/* ---- Gestures -------------------------------------------------------------------------------- */

/* Velocities in hundredths, in the eight directions of the compass from east, against the clock. */
static const int compass[8][2] = {
    { 100, 0 }, { 71, 71 }, { 0, 100 }, { -71, 71 },
    { -100, 0 }, { -71, -71 }, { 0, -100 }, { 71, -71 },
};

struct figure {
    const char *name;
    int strokes, turn;    /* directions, and from one to the next; 0: those below */
    int direction[8];
};

static const struct figure figures[] = {
    { "circle", 8, 1, { 0 } }, { "clockwise", 8, 7, { 0 } }, { "swipe", 4, 0, { 0, 0, 0, 0 } },
    { "wave", 4, 0, { 0, 4, 0, 4 } }, { "tick", 4, 0, { 7, 1, 1, 1 } },
    { "cross", 4, 0, { 7, 7, 2, 5 } },
};

enum { FIGURES = sizeof figures / sizeof figures[0] };

static void write_row(FILE *file, struct rng *rng, const int velocity[2], int speed)
{
    for (int i = 0; i < 2; i++) {
        int x = velocity[i] * speed / 100 + rng_below(rng, 121) - 60;
        fprintf(file, "\t%s%d.%02d", x < 0 ? "-" : "", abs(x) / 100, abs(x) % 100);
    }
}

static void write_rest(FILE *file, struct rng *rng)
{
    static const int still[2] = { 0, 0 };
    for (int rows = 1 + rng_below(rng, 6); rows > 0; rows--) write_row(file, rng, still, 0);
}

static void write_gesture(struct rng *rng, FILE *file)
{
    const struct figure *figure = &figures[rng_below(rng, FIGURES)];
    int speed = 60 + rng_below(rng, 90), start = figure->turn ? rng_below(rng, 8) : 0;

    fputs(figure->name, file);
    write_rest(file, rng);
    for (int i = 0; i < figure->strokes; i++) {
        int direction = figure->turn ? (start + i * figure->turn) % 8 : figure->direction[i];
        int rows = (figure->turn ? 1 : 2) + rng_below(rng, 3);
        while (rows-- > 0) write_row(file, rng, compass[direction], speed);
    }
    write_rest(file, rng);
    fputc('\n', file);
}

/* ---- Adding and copying ---------------------------------------------------------------------- */

static void write_adding(struct rng *rng, FILE *file, int rows)
{
    int first = rng_below(rng, rows / 2), second = rows / 2 + rng_below(rng, rows - rows / 2);
    struct rng numbers = *rng;
    int sum = 0;

    for (int i = 0; i < rows; i++) {
        int x = rng_below(rng, 10000);
        if (i == first || i == second) sum += x;
    }
    fprintf(file, "%d.%04d", sum / 10000, sum % 10000);
    for (int i = 0; i < rows; i++)
        fprintf(file, "\t0.%04d\t%d", rng_below(&numbers, 10000), i == first || i == second);
    fputc('\n', file);
}

static void write_copying(struct rng *rng, FILE *file, int blanks)
{
    int symbol[RECALLED], rows = blanks + 2 * RECALLED;

    for (int i = 0; i < RECALLED; i++) symbol[i] = 1 + rng_below(rng, SYMBOLS);
    for (int i = 0; i < rows; i++) {
        int told = i < rows - RECALLED ? 0 : symbol[i - (rows - RECALLED)];
        fprintf(file, "%s%d", i ? " " : "", told);
    }
    for (int i = 0; i < rows; i++) {
        int shown = i < RECALLED ? symbol[i] : i == rows - RECALLED - 1 ? SYMBOLS + 1 : 0;
        for (int j = 0; j < SYMBOLS + 2; j++) fprintf(file, "\t%d", j == shown);
    }
    fputc('\n', file);
}

/* ---- Files ----------------------------------------------------------------------------------- */

static void write_lines(const char *folder, const char *problem, const char *part, int rows,
                        int count, uint64_t seed)
{
    struct rng rng = { seed };
    struct output output;
    char name[64];

    snprintf(name, sizeof name, "%s-%s.tsv", problem, part);
    output_open_in(&output, folder, name);
    for (int i = 0; i < count; i++) {
        if (problem[0] == 's') write_gesture(&rng, output.file);
        else if (problem[0] == 'a') write_adding(&rng, output.file, rows);
        else write_copying(&rng, output.file, rows);
    }
    output_close(&output, 1);
}

/* 0: the text is no whole number, or is too large. */
static int whole(const char *text)
{
    char *end;
    long number = strtol(text, &end, 10);

    return *end == '\0' && number > 0 && number <= 100000000 ? (int)number : 0;
}

int main(int argc, char **argv)
{
    int sample = argc == 2, rows = 0, count = 0;
    const char *problem = sample ? "signal" : argc == 5 ? argv[2] : "";

    if (argc == 5) rows = whole(argv[3]), count = whole(argv[4]);
    if (!sample && ((strcmp(problem, "adding") != 0 && strcmp(problem, "copying") != 0) ||
                    rows < 2 || count < 10)) {
        fail(EXIT_USAGE, "usage: make_signal FOLDER [adding|copying ROWS LINES]");
    }
    write_lines(argv[1], problem, "train", rows, sample ? TRAIN : count, 51);
    write_lines(argv[1], problem, "dev", rows, sample ? DEV : count / 10, 52);
    write_lines(argv[1], problem, "test", rows, sample ? TEST : count / 10, 53);
    return 0;
}
