/* The command line of carnn.h: `carnn help` says what it does.

   Options, data formats, predictions and explanations come from the library: here tasks have names
   only in messages, and in commands that are for one task alone. Results go to standard output,
   everything else to standard error. Exit codes: 0 done, 1 failure at run time, 2 usage, 3 bad
   data, 4 bad model file, 5 diverged, 130 interrupted. */

#ifdef _WIN32
#define __USE_MINGW_ANSI_STDIO 1 /* %zu */
#else
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64 /* large files and inodes on 32-bit machines */
#define _DARWIN_C_SOURCE
#endif

#define CARNN_IMPLEMENTATION
#include "carnn.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#ifdef _WIN32
#include <io.h>
#else
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>
#endif

enum { DONE = 0, FAILED = 1, USAGE = 2, BAD_DATA = 3, BAD_MODEL = 4, DIVERGED = 5,
       INTERRUPTED = 130 };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ==== Errors and memory ====================================================================== */
/* Prints "carnn: ..." and ends the program with `code`, unless that is DONE. As in the messages of
   the library, no control character of a name or of data reaches the terminal. */
static void say(int code, const char *format, ...) {
    char text[4096], *c;
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    for (c = text; *c; c++)
        if (iscntrl((unsigned char)*c)) *c = '?';
    fprintf(stderr, "carnn: %s\n", text);
    if (code) exit(code);
}

static carnn_error error; /* the last one of the library */
static int exit_code;     /* of a program that runs to its end */

/* Writes options as they are typed: in the library they are fields. What is quoted stays. */
static void name_options(char *message) {
    const char *quoted = message + strcspn(message, "\"");
    const carnn_option *o;
    size_t task, i;
    char *at, *end;
    for (task = 0; carnn_task_name(task); task++)
        for (i = 0; (o = carnn_option_at(carnn_task_name(task), i)) != NULL; i++)
            for (at = message; (at = strstr(at, o->name)) != NULL && at < quoted; at = end) {
                end = at + strlen(o->name);
                for (; at < end && strchr(" ,:)", *end); at++) /* else it is of a file's name */
                    if (*at == '_') *at = '-';
            }
}

/* Prints the last error and returns its exit code. */
static int failed(void) {
    static const int codes[] = {DONE,     FAILED,    USAGE,    FAILED,
                                BAD_DATA, BAD_MODEL, DIVERGED, INTERRUPTED};
    if (error.code == CARNN_ERR_ARGUMENT) name_options(error.message);
    say(DONE, "%s", error.message);
    return codes[-(int)error.code];
}

/* Ends the program where a call of the library has failed. */
static void check(carnn_status status) { if (status) exit(failed()); }

/* Ends the program where what it has printed cannot be written: the disk may be full. */
static void flush_output(int code) {
    if (fflush(stdout) || ferror(stdout)) say(code, "cannot write to standard output");
}

/* Memory, without which the program ends. */
static void *resize(void *block, size_t count, size_t size) {
    void *larger = count < SIZE_MAX / size ? realloc(block, count * size) : NULL;
    if (!larger) say(FAILED, "out of memory");
    return larger;
}

/* Makes room for one more than `count` in an array. */
static void *grow(void *array, size_t count, size_t *room, size_t size) {
    if (count < *room) return array;
    *room = 2 * *room + 64;
    return resize(array, *room, size);
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }
static size_t most(size_t a, size_t b) { return a > b ? a : b; }
static int is_finite(double x) { return x - x == 0.0; } /* isfinite() of MinGW warns of a float */

/* Prints "1 word", "2 words", and what comes behind it. */
static void print_count(FILE *to, size_t count, const char *nouns, const char *behind) {
    fprintf(to, "%zu %.*s%s", count, (int)strlen(nouns) - (count == 1), nouns, behind);
}

typedef struct line { /* of a file, or a text that grows */
    char *text; /* ends with a NUL, without the line's end */
    size_t length, room;
    size_t number; /* from 1 */
} line;

/* Adds what printf() would print. */
static void add_text(line *l, const char *format, ...) {
    va_list values;
    size_t length;
    va_start(values, format);
    length = (size_t)vsnprintf(NULL, 0, format, values);
    va_end(values);
    while (l->length + length >= l->room) l->text = (char *)grow(l->text, l->room, &l->room, 1);
    va_start(values, format);
    vsnprintf(l->text + l->length, length + 1, format, values);
    va_end(values);
    l->length += length;
}

/* ==== Arguments ============================================================================== */
typedef struct list {
    const char **item;
    size_t count, room;
} list;

static void add_item(list *l, const char *item) {
    l->item = (const char **)grow(l->item, l->count, &l->room, sizeof *l->item);
    l->item[l->count++] = item;
}

typedef struct numbers {
    double *item;
    size_t count, room;
} numbers;

static void add_number(numbers *n, double item) {
    n->item = (double *)grow(n->item, n->count, &n->room, sizeof *n->item);
    n->item[n->count++] = item;
}

static struct arguments { /* what the command line says */
    const char *task, *out, *candidates, *log, *simd, *folds_by, *prompt, *question, *qrels, *run;
    const char *from, *unsure, *ensemble, *text, *group, *target, *permutation, *probe, *asked;
    const char *shell;
    double share;
    list train, valid, test, data, vectors, labels, files; /* files: what is no option */
    list typed; /* files of data, in the order in which they are named */
    list own; /* options of single tasks: name, value, name, value, ... */
    int64_t top, example, sentences, stride, folds;
    int json, quiet, resume, explain, help, man, counts, clean, color, report, stream, quantise;
    carnn_sampling sampling;
    carnn_model_desc model;
    carnn_train_desc training;
} arg;

typedef struct command {
    const char *name, *files, *help, *examples;
    unsigned bit; /* in flag.commands */
    void (*run)(void);
    size_t least, most; /* files */
} command;

static const char *command_names(unsigned bits);

enum { /* which commands an option belongs to */
    TRAIN = 1, TEST = 2, PREDICT = 4, CHAT = 8, EXPLAIN = 16, INFO = 32, GRADCHECK = 64,
    BENCH = 128, GENERATE = 256, RANK = 512, PLOT = 1024, DEPTH = 2048, ASK = 4096, CLOZE = 8192,
    HELP = 16384, VERSION = 32768, ALL = 65535,
    READS_IMAGES = TRAIN | TEST | PREDICT
};

typedef struct flag {
    const char *name, *value, *help; /* the word for its value tells the kind: read_flag() */
    unsigned commands;
    size_t offset; /* in struct arguments */
} flag;

/* The options that are not the library's own (those are in carnn_option_at()). The help of one that
   only some tasks have begins with their names and a colon: own_help(). */
#define AT(field) offsetof(struct arguments, field)
static const flag flags[] = {
    {"task", "NAME", "what to learn", TRAIN, AT(task)},
    {"train", "FILE...", "training data; several files: repeat the option", TRAIN, AT(train)},
    {"valid", "FILE...", "validation data: it chooses the epoch to keep", TRAIN, AT(valid)},
    {"ensemble", "RULE", "together they are one: vote, of the choices; mean, of the probabilities; "
     "or greedy, the mean of those that together score best on --valid", TEST, AT(ensemble)},
    {"valid", "FILE...", "data that the members are chosen on", TEST, AT(valid)},
    {"share", "X", "of the models only the best part by --valid, such as 0.7", TEST, AT(share)},
    {"test", "FILE...", "data to score the finished model on; answer, classify, pair: with "
     "--vectors its words are known", TRAIN, AT(test)},
    {"candidates", "FILE", "dialog: texts to choose from [those of --train]", TRAIN,
     AT(candidates)},
    {"unsure", "TEXT", "dialog: the reply where it has none [it always has]", TRAIN, AT(unsure)},
    {"vectors", "FILE...", "word vectors: GloVe, word2vec, .vec, gzip", TRAIN, AT(vectors)},
    {"out", "FILE", "the model file to write", TRAIN, AT(out)},
    {"quantise", NULL, "round weights to 8 bits first", TEST, AT(quantise)},
    {"out", "FILE", "keep the ensemble, in a model file with all members; or with --quantise the "
     "model, a large one in a quarter of its size", TEST, AT(out)},
    {"from", "FILE", "a model to go on from, with new data; words are added", TRAIN, AT(from)},
    {"out", "FILE", "write an SVG picture there instead of text", PLOT, AT(out)},
    {"out", "FILE", "draw the graph and its unfolding over time there, SVG", DEPTH, AT(out)},
    {"folds", "K", "cross-validation over K parts of --train instead", TRAIN, AT(folds)},
    {"folds-by", "FILE", "the same; a line of FILE names a group's fold", TRAIN, AT(folds_by)},
    {"data", "FILE...", "data; - is standard input", TEST | PREDICT | EXPLAIN | RANK, AT(data)},
    {"target", "COLUMN", "of tables: what is right, if it is called otherwise than in training",
     TEST | PREDICT, AT(target)},
    {"group", "COLUMN", "of tables: the same of their sequences", TEST | PREDICT, AT(group)},
    {"labels", "FILE...", "signal: the classes of images, a file for each", READS_IMAGES,
     AT(labels)},
    {"permutation", "FILE", "signal: the order of the pixels of images, a number a line",
     READS_IMAGES, AT(permutation)},
    {"stream", NULL, "answer each line at once: a row from the rows so far, a sentence by itself",
     PREDICT, AT(stream)},
    {"clean", NULL, "answer: score no questions without a right or a wrong sentence", TRAIN | TEST,
     AT(clean)},
    {"report", NULL, "scores of every class, and what is confused", TEST, AT(report)},
    {"qrels", "FILE", "write labels of a ranking as trec_eval reads them", TEST, AT(qrels)},
    {"run", "FILE", "write scores of a ranking as trec_eval reads them", TEST, AT(run)},
    {"question", "TEXT", "what the sentences are to answer", RANK, AT(question)},
    {"text", "FILE", "what the questions are about", ASK, AT(text)},
    {"top", "K", "print the best K with probabilities or scores", PREDICT | RANK | ASK, AT(top)},
    {"color", NULL, "colours also where the output is no terminal", EXPLAIN | ASK, AT(color)},
    {"example", "N", "explain only the N-th example [all]", EXPLAIN, AT(example)},
    {"counts", NULL, "more metrics: the best 2 and 5 of dialog and cloze, more perplexities", TEST,
     AT(counts)},
    {"sentences", "N", "sentences to generate [10]", GENERATE, AT(sentences)},
    {"words", "N", "words of a sentence at most, or characters of --unit char, up to a million "
     "[100]", GENERATE, AT(sampling.words)},
    {"sentences", "N", "sentences of a text [20]", CLOZE, AT(sentences)},
    {"stride", "N", "sentences from the beginning of one text to the next [1]", CLOZE, AT(stride)},
    {"asked", "FILE", "words to ask for, one a line [the book's names]", CLOZE, AT(asked)},
    {"prompt", "TEXT", "words that the first sentence begins with", GENERATE, AT(prompt)},
    {"temperature", "X", "0: the most probable word [1]", GENERATE, AT(sampling.temperature)},
    {"top-k", "K", "among the K most probable words [all]", GENERATE, AT(sampling.top_k)},
    {"top-p", "X", "among words of probability X together [all]", GENERATE, AT(sampling.top_p)},
    {"explain", NULL, "show what each utterance added to the score", CHAT, AT(explain)},
    {"explain", NULL, "show where it looked, as on a terminal", ASK, AT(explain)},
    {"resume", NULL, "go on from the checkpoint beside --out FILE", TRAIN, AT(resume)},
    {"log", "FILE", "write one JSON line per epoch", TRAIN, AT(log)},
    {"probe", "FILE", "lm, classify, signal: write one JSON line per epoch: log |dC/dh_t| for t = "
     "1, 5, 10 (C: loss of a text's last step), and how the values of h are spread", TRAIN,
     AT(probe)},
    {"json", NULL, "print one JSON object", TRAIN | TEST | INFO | BENCH | DEPTH, AT(json)},
    {"quiet", NULL, "no progress", TRAIN, AT(quiet)},
    {"simd", "NAME", "instruction set [$CARNN_SIMD or the best here]", TRAIN | BENCH, AT(simd)},
    {"man", NULL, "print a man page: the help of all commands", HELP, AT(man)},
    {"complete", "SHELL", "print a completion script for bash, zsh or fish", HELP, AT(shell)},
    {"help", NULL, "this text", ALL, AT(help)},
};

static unsigned option_commands(const carnn_option *o) {
    if (!strcmp(o->name, "threads")) return TRAIN | TEST | PREDICT | BENCH;
    return strcmp(o->name, "seed") ? TRAIN : TRAIN | GRADCHECK | GENERATE | CLOZE;
}

#define NO_LIMIT "no limit"

static const char *option_text(const carnn_option *o, const carnn_model_desc *model,
                               const carnn_train_desc *training) {
    static char text[CARNN_TEXT_MAX];
    carnn_option_get(o, model, training, text, sizeof text);
    return o->none == 1 && o->kind == CARNN_OPTION_INTEGER && !strcmp(text, "0") ? NO_LIMIT : text;
}

#define LONGEST_NAME 40

/* A name of the library as an option is typed: with - for _. */
static const char *dashed(const char *name) {
    static char text[LONGEST_NAME + 1];
    char *at = text;
    snprintf(text, sizeof text, "%s", name);
    while ((at = strchr(at, '_')) != NULL) *at = '-';
    return text;
}

/* The Levenshtein distance of a word, whatever the case of its letters, and a name. */
static size_t edits(const char *word, const char *name) {
    size_t row[LONGEST_NAME + 1], j, length = strlen(name), above, diagonal;
    for (j = 0; j <= length; j++) row[j] = j;
    for (; *word; word++)
        for (diagonal = row[0]++, j = 1; j <= length; j++, diagonal = above) {
            above = row[j];
            row[j] = least(diagonal + (tolower((unsigned char)*word) != name[j - 1]),
                           least(above, row[j - 1]) + 1);
        }
    return row[length];
}

typedef struct guess { /* of what a word was meant to be */
    const char *word;
    char best[LONGEST_NAME + 1]; /* "" while no name is near */
    size_t distance;             /* names that are farther away are no guess */
    char names[512];             /* all that there are */
} guess;

static guess guess_for(const char *word) {
    return (guess){.word = word, .distance = least(strlen(word), LONGEST_NAME) / 3 + 2};
}

/* Do the names have this one already? A command and a task may share it. */
static int is_among(const char *names, const char *name) {
    size_t length = strlen(name);
    for (; *names; names += strcspn(names, ","), names += strspn(names, ", "))
        if (strcspn(names, ",") == length && !strncmp(names, name, length)) return 1;
    return 0;
}

/* Is `name` the word itself? Else it may be the best guess. */
static int is_word(guess *g, const char *name) {
    char word[LONGEST_NAME + 1];
    size_t length = strlen(g->word), used = strlen(g->names), same = 0, distance;
    snprintf(word, sizeof word, "%s", dashed(g->word));
    name = dashed(name);
    distance = edits(word, name);
    while (word[same] && word[same] == name[same]) same++;
    if (same >= 5) distance = least(distance, 3);    /* --batch-size */
    if (length >= 2 && same == length) distance = 0; /* the start of a name */
    if (distance < g->distance) strcpy(g->best, name);
    g->distance = least(distance, g->distance);
    if (!is_among(g->names, name))
        snprintf(g->names + used, sizeof g->names - used, "%s%s", used ? ", " : "", name);
    return !strcmp(word, name);
}

/* Which it is, from 1, of the names that `name` counts, such as carnn_task_name; 0: none. */
static size_t which_of(guess *g, const char *(*name)(size_t number)) {
    size_t i, found = 0;
    for (i = 0; name(i); i++)
        if (is_word(g, name(i))) found = i + 1;
    return found;
}

static void unknown(const char *what, const guess *g) {
    say(USAGE, "unknown %s \"%s\"%s%s%s (%s)", what, g->word, *g->best ? "; did you mean \"" : "",
        g->best, *g->best ? "\"?" : "", g->names);
}

/* Which it is of these names, from 0; ends the program where it is none. */
static size_t number_named(const char *what, const char *word, const char *(*name)(size_t number)) {
    guess g = guess_for(word);
    size_t which = which_of(&g, name);
    if (!which) unknown(what, &g);
    return which - 1;
}

static size_t task_number(const char *name) { return number_named("task", name, carnn_task_name); }

/* ==== All options, of the library and of this program ======================================== */
typedef struct entry { /* an option of some commands */
    char name[LONGEST_NAME + 1];
    const char *value, *help; /* value: as in struct flag */
    unsigned commands;
    list words; /* that the value can be */
} entry;

static entry *entries;
static size_t entry_count, entry_room;

/* Adds an option of these commands: one that any of them has by this name becomes that of all. To
   other commands the same name means something else. */
static entry *add_entry(const char *name, const char *value, const char *text, unsigned bits) {
    size_t i = 0;
    while (i < entry_count &&
           (strcmp(entries[i].name, dashed(name)) || !(entries[i].commands & bits))) i++;
    if (i == entry_count) {
        entries = (entry *)grow(entries, entry_count++, &entry_room, sizeof *entries);
        entries[i] = (entry){.value = value, .help = text};
        strcpy(entries[i].name, dashed(name));
    }
    entries[i].commands |= bits;
    return &entries[i];
}

static void add_once(list *l, const char *item) {
    size_t i;
    for (i = 0; i < l->count; i++)
        if (!strcmp(l->item[i], item)) return;
    add_item(l, item);
}

static list *task_words(void) { return &add_entry("task", NULL, NULL, TRAIN)->words; }

static void add_entries(void) {
    const char *task, *word;
    const carnn_option *o;
    size_t i, k, t;
    for (i = 0; i < COUNT(flags); i++)
        add_entry(flags[i].name, flags[i].value, flags[i].help, flags[i].commands);
    for (t = 0; (task = carnn_task_name(t)) != NULL; t++) {
        add_once(task_words(), task);
        for (i = 0; (o = carnn_option_at(task, i)) != NULL; i++) {
            entry *e = add_entry(o->name, "N", o->help, option_commands(o));
            for (k = 0; (word = carnn_option_choice(o, k)) != NULL; k++) add_once(&e->words, word);
        }
    }
}

/* ==== Reading the arguments ================================================================== */
static void read_flag(const flag *f, const char *value) {
    void *field = (char *)&arg + f->offset;
    const char *kind = f->value ? f->value : "";
    int whole = !strcmp(kind, "K") || !strcmp(kind, "N");
    if (!*kind) *(int *)field = 1;
    else if (!strncmp(kind, "FILE", 4) && !*value) /* such as "$FORGOTTEN" */
        say(USAGE, "--%s: expected the name of a file, found \"\"", f->name);
    else if (!strcmp(kind, "FILE...")) {
        add_item((list *)field, value);
        if (field != &arg.vectors && field != &arg.labels) add_item(&arg.typed, value);
    } else if (whole || !strcmp(kind, "X")) {
        char *end;
        double number = strtod(value, &end), low = whole ? 1.0 : 0.0, high = 1e15;
        if (end == value || *end || strpbrk(value, "xX \t") || !(number >= low && number <= high) ||
            (whole && number != floor(number)))
            say(USAGE, "--%s: expected a %snumber from %g to %g, found \"%s\"", f->name,
                whole ? "whole " : "", low, high, value);
        if (whole) *(int64_t *)field = (int64_t)number;
        else *(double *)field = number == 0.0 ? CARNN_NONE : number;
    } else if (!strcmp(kind, "COLUMN") && strlen(value) >= CARNN_TEXT_MAX) /* else it is cut */
        say(USAGE, "--%s: a text of more than %d bytes", f->name, CARNN_TEXT_MAX - 1);
    else *(const char **)field = value;
}

static void set_option(const carnn_option *o, const char *value) {
    guess g = guess_for(value);
    size_t i;
    if (!carnn_option_set(o, &arg.model, &arg.training, value, &error)) return;
    if (o->kind != CARNN_OPTION_NAME) /* the message begins with its name */
        say(USAGE, "--%s%s", dashed(o->name), error.message + strlen(o->name));
    for (i = 0; carnn_option_choice(o, i); i++) is_word(&g, carnn_option_choice(o, i));
    unknown(dashed(o->name), &g);
}

/* The commands that have this option. */
static unsigned commands_with(const char *word) {
    unsigned bits = 0;
    size_t i;
    for (add_entries(), i = 0; i < entry_count; i++)
        if (!strcmp(entries[i].name, dashed(word))) bits |= entries[i].commands;
    return bits;
}

/* Sets the options of the task, which is known now. */
static void set_own_options(void) {
    const char *task;
    size_t i, t;
    for (i = 0; i < arg.own.count; i += 2) {
        const char *name = arg.own.item[i];
        const carnn_option *o = carnn_option_named(arg.task, name);
        guess tasks = guess_for("");
        for (t = 0; (task = carnn_task_name(t)) != NULL; t++)
            if (carnn_option_named(task, name)) is_word(&tasks, task);
        if (o) set_option(o, arg.own.item[i + 1]);
        else say(USAGE, "--%s is an option of the task%s %s, not of %s", dashed(name),
                 strchr(tasks.names, ',') ? "s" : "", tasks.names, arg.task);
    }
}

/* Is it 0 or 1? Such an option may stand without its value before another one or at the end: --fine
   is --fine 1. */
static int is_switch(const carnn_option *o) {
    return o->kind == CARNN_OPTION_INTEGER && o->low == 0.0 && o->high == 1.0;
}

/* One option with its dashes; moves `*at` on where the value is the next argument. */
static void read_option(const command *c, int count, char **argument, int *at) {
    const char *typed = argument[*at], *name = typed + 1 + (typed[1] == '-'), *task, *value = "";
    const char *next = *at + 1 < count ? argument[*at + 1] : "--"; /* begins so: no value */
    size_t i, t, length = strcspn(name, "=");
    char word[LONGEST_NAME + 1];
    const flag *f = NULL;
    const carnn_option *o = NULL, *own;
    unsigned others;
    guess g;
    snprintf(word, sizeof word, "%.*s", (int)least(length, LONGEST_NAME), name);
    g = guess_for(strcmp(word, "h") ? word : "help");
    for (i = 0; i < COUNT(flags); i++)
        if ((flags[i].commands & c->bit) && is_word(&g, flags[i].name)) f = &flags[i];
    for (t = 0; !o && (task = carnn_task_name(t)) != NULL; t++)
        for (i = 0; (own = carnn_option_at(task, i)) != NULL; i++)
            if ((option_commands(own) & c->bit) && is_word(&g, own->name)) o = own;
    if (!f && !o && (others = commands_with(word)) != 0)
        say(USAGE, "--%s is an option of %s, not of %s", dashed(word), command_names(others),
            c->name);
    if (!f && !o)
        say(USAGE, "unknown option %.*s%s%s%s", (int)(name - typed) + (int)length, typed,
            *g.best ? "; did you mean --" : "", g.best, *g.best ? "?" : "");
    if (f && !f->value && name[length]) say(USAGE, "--%s takes no value", f->name);
    if (name[length]) value = name + length + 1;
    else if (!f && is_switch(o) && *next == '-' && !(next[1] >= '0' && next[1] <= '9')) value = "1";
    else if (!f || f->value) {
        if (!strncmp(next, "--", 2)) say(USAGE, "--%s needs a value", word);
        value = next;
        ++*at;
    }
    if (f) read_flag(f, value);
    else if (o->place != CARNN_OPTION_OF_TASK) set_option(o, value);
    else add_item(&arg.own, o->name), add_item(&arg.own, value);
}

static void read_arguments(const command *c, int count, char **argument) {
    int at, only_files = 0;
    for (at = 2; at < count; at++) {
        const char *word = argument[at];
        if (!only_files && !strcmp(word, "--")) only_files = 1;
        else if (!*word) say(USAGE, "%s: expected no empty argument", c->name);
        else if (only_files || *word != '-' || !word[1]) add_item(&arg.files, word);
        else read_option(c, count, argument, &at);
    }
    if (arg.help) return;
    if (arg.files.count < c->least)
        say(USAGE, "%s: what to work on is missing: carnn %s %s", c->name, c->name, c->files);
    if (arg.files.count > c->most && c->most > 1)
        say(USAGE, "%s: expected at most %zu files, found %zu", c->name, c->most, arg.files.count);
    if (arg.files.count > c->most)
        say(USAGE, "%s: \"%s\" is one too many%s", c->name, arg.files.item[c->most],
            c->bit == TRAIN ? "; each file has its option: --train A --train B"
            : c->bit & commands_with("data") ? "; data are given by --data FILE"
                                             : "; options begin with --");
    if (arg.labels.count > most(arg.typed.count, 1)) /* 1: standard input */
        say(USAGE, "--labels: expected a file for each file of images, found more");
    if (arg.simd && *arg.simd) number_named("simd", arg.simd, carnn_simd_name);
}

/* ==== Characters, JSON ======================================================================= */
/* Bytes of a well-formed UTF-8 sequence at `text`, 0 if there is none. */
static size_t utf8(const char *text) {
    const unsigned char *s = (const unsigned char *)text;
    size_t i, length = s[0] < 0x80 ? 1 : s[0] < 0xC2 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3
                       : s[0] < 0xF5 ? 4 : 0;
    for (i = 1; i < length; i++)
        if ((s[i] & 0xC0) != 0x80) return 0;
    if (length == 3 && ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F))) return 0;
    if (length == 4 && ((s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F))) return 0;
    return length;
}

static size_t characters(const char *text) {
    size_t count = 0;
    for (; *text; text += most(utf8(text), 1)) count++;
    return count;
}

/* Prints the first `width` characters of a text, a shorter one with blanks on its left or right. */
static void print_cut(const char *text, int width, int on_left) {
    const char *end = text;
    for (; *end && width; width--) end += most(utf8(end), 1);
    printf("%*s%.*s%*s", on_left ? width : 0, "", (int)(end - text), text, on_left ? 0 : width, "");
}

/* `special`, control characters and bad bytes are added by `escape`, as numbers. */
static void add_escaped(line *to, const char *text, const char *special, const char *escape) {
    size_t length;
    for (; *text; text += most(length, 1)) {
        unsigned char first = (unsigned char)*text;
        length = utf8(text);
        if (length && first >= 0x20 && !strchr(special, first))
            add_text(to, "%.*s", (int)length, text);
        else if (length && (first >= 0x20 || *escape != '&')) add_text(to, escape, first);
        else add_text(to, escape, 0xFFFDu); /* no character, or none of XML */
    }
}

static void json_metrics(FILE *to, const carnn_scores *s, const char *suffix);

/* Writes the format with ' as a quotation mark, %s as a JSON string (of NULL null), %z as a size_t,
   %g as a double: all digits of a whole number, null for what is not finite; %m as the metrics of
   carnn_scores. Between a value that ended the last format and what this one begins with stands a
   comma. */
static void json(FILE *to, const char *format, ...) {
    static line quoted;
    static int ended;
    va_list values;
    va_start(values, format);
    if (ended && strchr("'{[%", *format)) fputs(", ", to);
    for (; *format; format++) {
        ended = strchr("%}]", *format) != NULL;
        if (*format != '%') fputc(*format == '\'' ? '"' : *format, to);
        else if (*++format == 'z') fprintf(to, "%zu", va_arg(values, size_t));
        else if (*format == 'm') {
            ended = 0; /* in the format a comma stands before it, if any */
            json_metrics(to, va_arg(values, const carnn_scores *), "");
        } else if (*format == 'g') {
            double number = va_arg(values, double);
            int whole = fabs(number) < 1e16 && number == floor(number);
            if (is_finite(number)) fprintf(to, whole ? "%.0f" : "%.9g", number);
            else fputs("null", to);
        } else {
            const char *text = va_arg(values, const char *);
            quoted.length = 0;
            if (text) add_escaped(&quoted, text, "\"\\", "\\u%04x");
            if (text) fprintf(to, "\"%s\"", quoted.length ? quoted.text : "");
            else fputs("null", to);
        }
    }
    va_end(values);
}

/* NaN where no target has a loss. A standard deviation has no examples, but metrics. */
static double loss_of(const carnn_scores *s) {
    int none = s->examples ? s->unanswerable >= s->examples : !s->count;
    return none ? NAN : s->loss;
}

/* The loss and the metrics of the task, by name with a suffix. */
static void json_metrics(FILE *to, const carnn_scores *s, const char *suffix) {
    char name[LONGEST_NAME + 1];
    size_t i;
    if (s->tokens && !*suffix) json(to, "'tokens': %z", s->tokens);
    for (i = 0; i <= s->count; i++) {
        snprintf(name, sizeof name, "%s%s", i ? s->metric[i - 1].name : "loss", suffix);
        json(to, "%s: %g", name, i ? s->metric[i - 1].value : loss_of(s));
    }
}

/* The numbers and names of a description; null where there is no limit. */
static void json_options(const carnn_model_desc *model, const carnn_train_desc *training) {
    const carnn_option *o;
    size_t i;
    for (i = 0; (o = carnn_option_at(model->task, i)) != NULL; i++) {
        const char *text;
        if ((o->place == CARNN_OPTION_OF_TRAINING) != (training != NULL)) continue;
        text = option_text(o, model, training);
        json(stdout, "%s: ", o->name);
        if (o->kind >= CARNN_OPTION_NAME) json(stdout, "%s", text);
        else json(stdout, "%g", strcmp(text, NO_LIMIT) ? strtod(text, NULL) : NAN);
    }
}

/* ==== Terminal and machine =================================================================== */
/* Columns of a line that does not wrap; the most memory so far in MiB, 0: not known. */
#ifdef _WIN32
static int is_terminal(FILE *stream) { return _isatty(_fileno(stream)); }
static size_t terminal_width(void) { return 79; }
static double peak_memory(void) { return 0.0; }
#else
static int is_terminal(FILE *stream) { return isatty(fileno(stream)); }
static size_t terminal_width(void) {
    struct winsize size;
    int known = !ioctl(STDERR_FILENO, TIOCGWINSZ, &size) && size.ws_col > 20;
    return known ? size.ws_col - 1u : 79;
}
static double peak_memory(void) {
    struct rusage used;
    if (getrusage(RUSAGE_SELF, &used)) return 0.0;
#ifdef __APPLE__
    used.ru_maxrss /= 1024;
#endif
    return (double)used.ru_maxrss / 1024.0;
}
#endif

/* Neither colours nor carriage returns, as no-color.org has it. */
static int is_plain(void) { return getenv("NO_COLOR") && *getenv("NO_COLOR"); }

/* "45 s", "3 min 20 s", "2 h 05 min" */
static const char *duration(double seconds) {
    static char text[32];
    unsigned long s = seconds > 0.0 && seconds < 1e9 ? (unsigned long)(seconds + 0.5) : 0;
    if (s < 60) snprintf(text, sizeof text, "%lu s", s);
    else if (s < 3600) snprintf(text, sizeof text, "%lu min %02lu s", s / 60, s % 60);
    else snprintf(text, sizeof text, "%lu h %02lu min", s / 3600, s / 60 % 60);
    return text;
}

static volatile sig_atomic_t interrupted, can_stop;

static void await_interrupt(int number);

/* The first interrupt asks a training to stop, a later one (or the first elsewhere) ends at once.
   What comes within a second is the same one: timeout signals the process, then its group. */
static void on_interrupt(int number) {
    static time_t first;
    time_t now = time(NULL);
    if (!can_stop || (interrupted && now - first > 1)) _Exit(INTERRUPTED);
    if (!interrupted) first = now;
    interrupted = 1;
    await_interrupt(number); /* where the system has forgotten the handler: Windows */
}

/* signal() of -std=c99 is that of System V: a second one kills before the handler is set again. */
static void await_interrupt(int number) {
#ifdef _WIN32
    signal(number, on_interrupt);
#else
    struct sigaction action = {0};
    action.sa_handler = on_interrupt;
    action.sa_flags = SA_RESTART;
    sigaction(number, &action, NULL);
#endif
}

/* An interrupt waits while a file is written: nothing of it is left half written. */
static void begin_writing(void) { can_stop = 1; }

static void end_writing(void) {
    can_stop = 0;
    if (interrupted) exit(INTERRUPTED);
}

/* ==== Models, data, files ==================================================================== */
/* What is worked on. It lives as long as the program, which leaves it to the system to free it. */
#define MODELS 64 /* that are tested together at most; so many runs, or graphs, are read together */
static carnn_model *models[MODELS + 2]; /* behind them their ensemble, if there is one, and NULL */
static carnn_model *model;              /* the first one */
static carnn_dataset *data;

static carnn_model *load_file(const char *name) {
    carnn_source source = {.name = name};
    carnn_model *loaded;
    check(carnn_model_load(&loaded, &source, NULL, &error));
    return loaded;
}

static void load_model(size_t number) {
    models[number] = load_file(arg.files.item[number]);
    model = models[0];
}

static const char *task_of(const carnn_model *m) { return carnn_model_describe(m)->task; }

#define STANDARD_INPUT "standard input"

/* What messages call a file. */
static const char *called(const char *name) { return strcmp(name, "-") ? name : STANDARD_INPUT; }

/* Files that are one data set: "dev.txt", "dev.txt and 1 more". */
static const char *called_all(const list *names) {
    static line text;
    text.length = 0;
    add_text(&text, "%s", called(*names->item));
    if (names->count > 1) add_text(&text, " and %zu more", names->count - 1);
    return text.text;
}

static int is_file(const char *name) {
    struct stat found;
    return !stat(name, &found) && S_ISREG(found.st_mode);
}

/* The name of a file, or of a folder without slashes at its end, with something behind it. */
static char *beside(const char *name, const char *ending) {
    size_t length = strlen(name);
    char *text = (char *)resize(NULL, length + strlen(ending) + 1, 1);
    while (length > 1 && name[length - 1] == '/') length--;
    memcpy(text, name, length);
    strcpy(text + length, ending);
    return text;
}

/* The folder that a file is in. */
static char *folder_of(const char *name) {
    const char *end = strrchr(name, '/');
    char *folder = beside(end ? name : ".", "");
    if (end) folder[end - name + (end == name)] = '\0';
    return folder;
}

/* Do both name one file? One that is not there yet is the same if its folder and name are. */
static int is_same_file(const char *a, const char *b) {
#ifdef _WIN32
    char x[_MAX_PATH], y[_MAX_PATH];
    return _fullpath(x, a, sizeof x) && _fullpath(y, b, sizeof y) && !_stricmp(x, y);
#else
    struct stat x, y;
    const char *at = strrchr(a, '/'), *bt = strrchr(b, '/');
    char *one, *other;
    int same;
    if (!stat(a, &x))
        return (S_ISREG(x.st_mode) || S_ISDIR(x.st_mode)) && !stat(b, &y) &&
               x.st_dev == y.st_dev && x.st_ino == y.st_ino;
    one = folder_of(a);
    other = folder_of(b);
    same = !strcmp(at ? at + 1 : a, bt ? bt + 1 : b) && /* of "." the folder is "." */
           (!strcmp(one, other) || is_same_file(one, other));
    free(one);
    free(other);
    return same;
#endif
}

/* Adds what the system calls a file, or one beside it, if one is named. */
static void add_path(list *paths, const char *name, const char *ending) {
    if (name) add_item(paths, beside(strcmp(name, "-") ? name : "/dev/stdin", ending));
}

/* No file may be written that is read, is in a folder of data or that another option writes. */
static void check_files(void) {
    const struct { const char *option, *name; } outputs[] = {
        {"out", arg.out}, {"log", arg.log}, {"probe", arg.probe}, {"qrels", arg.qrels},
        {"run", arg.run}};
    const char *one[] = {arg.candidates, arg.folds_by, arg.from, arg.permutation};
    const list *many[] = {&arg.typed, &arg.files, &arg.vectors, &arg.labels};
    list paths = {NULL, 0, 0}; /* those that are written first */
    size_t i, k, written;
    add_path(&paths, arg.training.checkpoint, "");
    for (i = 0; i < COUNT(outputs); i++) {
        const char *option = outputs[i].option, *name = outputs[i].name;
        if (name && !strcmp(name, "-"))
            say(USAGE, "--%s: expected the name of a file to write, found \"-\"", option);
        add_path(&paths, name, "");
    }
    written = paths.count;
    for (i = 0; i < COUNT(one); i++) add_path(&paths, one[i], "");
    for (i = 0; i < COUNT(many); i++)
        for (k = 0; k < many[i]->count; k++) {
            add_path(&paths, many[i]->item[k], "");
            if (!i) add_path(&paths, many[i]->item[k], ".align"); /* beside data */
        }
    for (i = 0; i < arg.own.count; i += 2)
        if (!strcmp(arg.own.item[i], "graph")) add_path(&paths, arg.own.item[i + 1], "");
    for (i = 0; i < written; i++) {
        const char *path = paths.item[i];
        char *folder = folder_of(path);
        for (k = i + 1; k < paths.count; k++) {
            int same = is_same_file(path, paths.item[k]);
            if (same && !strcmp(path, paths.item[k]))
                say(USAGE, "%s is to be written, and is named once more", path);
            if (same) say(USAGE, "%s and %s are the same file", path, paths.item[k]);
            if (k >= written && is_same_file(folder, paths.item[k]))
                say(USAGE, "%s is in the folder %s, which is read", path, paths.item[k]);
        }
        free(folder);
    }
    while (paths.count) free((void *)paths.item[--paths.count]);
    free((void *)paths.item);
}

/* Refuses what begins as no text does, such as /dev/zero, which has no end. */
static void check_plain(const line *l) {
    carnn_source source = {STANDARD_INPUT, l->text, l->length};
    char *text;
    size_t length;
    check(carnn_file_read(&source, &text, &length, &error));
    free(text);
}

/* All of standard input. */
static carnn_source read_input(void) {
    static line all;
    if (all.number++) say(USAGE, "standard input can be read only once");
    while (!feof(stdin) && !ferror(stdin)) {
        size_t before = all.length;
        all.text = (char *)grow(all.text, all.length, &all.room, 1);
        all.length += fread(all.text + all.length, 1, all.room - all.length, stdin);
        if (!before) check_plain(&all);
    }
    if (ferror(stdin)) say(FAILED, STANDARD_INPUT ": %s", strerror(errno));
    return (carnn_source){STANDARD_INPUT, all.text, all.length};
}

/* Files as the library takes them. Standard input is read here: a socket has no name to open. */
static carnn_source *open_sources(const list *names) {
    carnn_source *sources = (carnn_source *)resize(NULL, names->count + 1, sizeof *sources);
    size_t i;
    for (i = 0; i < names->count; i++)
        sources[i] = strcmp(names->item[i], "-") ? (carnn_source){.name = names->item[i]}
                                                 : read_input();
    return sources;
}

/* One file; NULL where none is named. */
static carnn_source *open_source(const char *name) {
    list names = {.item = &name, .count = 1};
    return name ? open_sources(&names) : NULL;
}

/* All of a file, which cut_line() takes apart. */
static line read_text(const char *name) {
    line all = {NULL, 0, 0, 0};
    carnn_source *source = open_source(name);
    check(carnn_file_read(source, &all.text, &all.length, &error));
    free(source);
    return all;
}

/* Ends a line that has been found: it is counted, without what Windows puts at its end, and without
   a byte order mark of UTF-8, which begins each of several files that have been joined. */
static void end_line(line *l) {
    if (l->length && l->text[l->length - 1] == '\r') l->length--;
    if (l->length >= 3 && !memcmp(l->text, "\xEF\xBB\xBF", 3))
        memmove(l->text, l->text + 3, l->length -= 3);
    l->text[l->length] = '\0';
    l->number++;
}

static int is_blank(const line *l) { return strspn(l->text, " \t") == l->length; }

/* Moves on to the next line, and takes it from the front of a text; 0: there is none. */
static int cut_line(line *text, line *l) {
    char *end = text->length ? (char *)memchr(text->text, '\n', text->length) : NULL;
    size_t cut = end ? (size_t)(end - text->text) + 1 : text->length;
    if (!cut) return 0;
    l->text = text->text;
    l->length = cut - (end != NULL);
    end_line(l);
    text->text += cut;
    text->length -= cut;
    return 1;
}

static int has_option(const carnn_model *m, const char *name, const char *value) {
    const carnn_option *o = carnn_option_named(task_of(m), name);
    return o && !strcmp(option_text(o, carnn_model_describe(m), NULL), value);
}

/* What the words of the model are. */
static const char *words_called(const carnn_model *m) {
    int whole = !has_option(m, "unit", "char") && !has_option(m, "unit", "spaced");
    return whole ? "words" : "characters";
}

/* What the data of a task look like. */
static const char *data_of(const char *task) { return carnn_task_data(task_number(task)); }

/* The description of the model, which says how files are read: of several that of the first one
   that reads alignments, else of the first one. */
static const carnn_model_desc *reads_as(void) {
    static carnn_model_desc desc;
    size_t i = 0;
    if (!model) return &arg.model;
    while (models[i] && !has_option(models[i], "alignment", "file")) i++;
    desc = *carnn_model_describe(models[i] ? models[i] : model);
    if (arg.target) snprintf(desc.target, sizeof desc.target, "%s", arg.target);
    if (arg.group) snprintf(desc.group, sizeof desc.group, "%s", arg.group);
    return &desc;
}

/* The labels of these files: of all that are named, the first has the first of --labels. */
static list labels_of(const list *names) {
    list own = {NULL, 0, 0};
    size_t i, k;
    for (i = 0; i < names->count; i++)
        for (k = 0; k < least(arg.typed.count, arg.labels.count); k++)
            if (arg.typed.item[k] == names->item[i]) add_item(&own, arg.labels.item[k]);
    return own;
}

/* Says so where one of the first thousand examples has a text that is not UTF-8: its letters are
   then no letters. */
static void warn_of_bytes(const carnn_dataset *set, const list *files) {
    size_t i, k, count = least(carnn_dataset_examples(set), 1000);
    for (i = 0; i < count; i++)
        for (k = 0; k < carnn_dataset_text_count(set, i); k++) {
            const char *text = carnn_dataset_text(set, i, k);
            while (*text && utf8(text)) text += utf8(text);
            if (!*text) continue;
            say(DONE, "%s: example %zu is not UTF-8; iconv -f WINDOWS-1252 -t UTF-8 may convert it",
                called_all(files), i + 1);
            return;
        }
}

/* Says so where the text of every example is as many columns: a table whose first line does not say
   which of them is meant. A comma of a text in CSV makes a column, too, but not as many in all. */
static void warn_of_columns(const carnn_dataset *set, const list *files) {
    size_t i, columns, found = 0, count = least(carnn_dataset_examples(set), 1000);
    for (i = 0; i < count; i++) {
        const char *text = carnn_dataset_text(set, i, 0);
        for (columns = 1; (text = strchr(text, '\t')) != NULL; text++) columns++;
        if (columns == 1 || (i && columns != found)) return;
        found = columns;
    }
    if (count > 1)
        say(DONE, "%s: the text of every example is %zu columns; a first line that calls one label "
            "and one text says which are read", called_all(files), found);
}

/* One file or several as one data set; NULL where there is none. */
static carnn_dataset *load_data(const list *names, const char *candidates, int clean, int lenient) {
    static carnn_source *order; /* of all images the same */
    const carnn_model_desc *form = reads_as();
    list own = labels_of(names);
    carnn_source *sources = open_sources(names), *choices = open_source(candidates);
    carnn_source *labels = open_sources(&own);
    carnn_images_desc images = {own.count ? labels : NULL, own.count, NULL};
    carnn_dataset_desc desc = {.task = form->task, .sources = sources, .source_count = names->count,
                               .candidates = choices, .clean = clean, .lenient = lenient,
                               .model = form, .images = &images};
    carnn_dataset *loaded = NULL;
    if (!order) order = open_source(arg.permutation);
    images.permutation = order;
    if (names->count && carnn_dataset_load(&loaded, &desc, &error)) {
        int code = failed();
        if (code == BAD_DATA)
            say(DONE, "the %s %s, whose data are %s", model ? "model is of the task" : "task is",
                form->task, data_of(form->task));
        exit(code);
    }
    if (loaded) warn_of_bytes(loaded, names);
    if (loaded && !strcmp(form->task, "classify")) warn_of_columns(loaded, names);
    if (loaded && carnn_dataset_format(loaded) && !arg.quiet)
        fprintf(stderr, "%s: read as %s\n", called(*names->item), carnn_dataset_format(loaded));
    if (loaded && carnn_dataset_left_out(loaded))
        fprintf(stderr, "%s: groups left out, without a right or a wrong item: %zu\n",
                called_all(names), carnn_dataset_left_out(loaded));
    free(labels);
    free(own.item);
    free(choices);
    free(sources);
    return loaded;
}

/* Writes a file at once: it takes the place of an old one when all of it is written. */
static void write_result(const line *text, const char *name) {
    if (!name) return;
    begin_writing();
    check(carnn_file_write(name, text->length ? text->text : "", text->length, &error));
    end_writing();
}

/* Reads the next line of standard input, whatever bytes are in it; 0 at its end. It has a limit, as
   input without an end may have no lines. */
static int next_line(line *l) {
    int c = getchar();
    if (c == EOF && ferror(stdin)) say(FAILED, STANDARD_INPUT ": %s", strerror(errno));
    if (c == EOF) return 0;
    for (l->length = 0;; c = getchar()) {
        l->text = (char *)grow(l->text, l->length, &l->room, 1);
        if (c == EOF || c == '\n') break;
        if (l->length == (size_t)1 << 24)
            say(BAD_DATA, STANDARD_INPUT ":%zu: expected a line of at most 16 MiB", l->number + 1);
        l->text[l->length++] = (char)c;
    }
    if (!l->number) check_plain(l);
    end_line(l);
    return 1;
}

/* "0.5012"; "5.0e-05", of which four decimals would leave nothing; "1.2346e+20". */
static const char *decimal(double value) {
    static char text[32];
    double size = fabs(value);
    const char *format = size >= 1e15 ? "%.4e" : size < 0.001 && size > 0.0 ? "%.1e" : "%.4f";
    snprintf(text, sizeof text, format, value);
    return text;
}

/* "accuracy 0.8123  loss 0.5012"; with --counts the secondary ones, too; or "nothing scored". */
static void print_metrics(const carnn_scores *s) {
    const char *gap = "";
    size_t i;
    for (i = 0; i < s->count; i++) {
        if ((s->metric[i].secondary && !arg.counts) || !is_finite(s->metric[i].value)) continue;
        printf("%s%s %s", gap, s->metric[i].name, decimal(s->metric[i].value));
        gap = "  ";
    }
    if (is_finite(loss_of(s))) printf("%sloss %s", gap, decimal(loss_of(s)));
    else if (!*gap) printf("nothing scored");
}

/* Says what makes scores of a model on these files doubtful; of several models which one it is. */
static void warn_of(const carnn_scores *s, const carnn_model *m, const list *files) {
    const char *file = called_all(files), *to = "";
    size_t i;
    for (i = 0; arg.files.count > 1 && i < arg.files.count; i++)
        if (models[i] == m) to = arg.files.item[i];
    if (s->unknown > 0.3)
        say(DONE, "%s: %.0f %% of the %s are unknown%s%s, is this the right file?", file,
            100.0 * s->unknown, words_called(m), *to ? " to " : "", to);
    if (s->unanswerable >= s->examples)
        say(DONE, "%s: nothing is scored: the model knows no target, the texts do not have them, "
            "or no sentence is right", file);
    else if (10 * s->unanswerable >= s->examples && s->unanswerable)
        say(DONE, "%s: %zu of %zu targets are not in the loss, as the model does not know them or "
            "their texts do not have them", file, s->unanswerable, s->examples);
}

#define BLANKS " \t\r\n\v\f"

/* Which choice of a model is called so, of `length` bytes; their count where none is. Choices have
   blanks as written, targets none at their ends. */
static size_t choice_named(const carnn_model *m, const char *target, size_t length) {
    size_t i, count = carnn_model_choice_count(m);
    for (i = 0; i < count; i++) {
        const char *name = carnn_model_choice(m, i);
        name += strspn(name, BLANKS);
        if (!strncmp(name, target, length) && !name[length + strspn(name + length, BLANKS)]) break;
    }
    return i;
}

static int is_choice(const char *target) {
    return choice_named(model, target, strlen(target)) < carnn_model_choice_count(model);
}

/* Says so where the first example of a file of classes is the only one of its class: it may be a
   line that names columns. own: the model's classes are those of the file; else the model does not
   know this class, but that of the second example. */
static void warn_of_names(const carnn_dataset *set, const char *file, int own) {
    const char *first = carnn_dataset_target(set, 0), *next = carnn_dataset_target(set, 1);
    size_t i = 1, count = carnn_dataset_examples(set);
    int pair = !strcmp(task_of(model), "pair");
    if (!first || (!pair && strcmp(task_of(model), "classify"))) return;
    if (carnn_dataset_line(set, 0) > 1) return; /* the names before it were known */
    if (!own && (!next || !is_choice(next) || is_choice(first))) return;
    for (; i < count; i++)
        if ((next = carnn_dataset_target(set, i)) != NULL && !strcmp(first, next)) return;
    say(DONE, "%s: only the first example has the class %s; does its line name columns? They are "
        "called label and %s", called(file), first, pair ? "sentence1, sentence2" : "text");
}

/* Says so where groups have fewer than two sentences each on average: of a question whose lines do
   not stand together each sentence is ranked by itself, and so first; skip-thought learns from
   neighbours. */
static void warn_of_groups(const carnn_dataset *set, const list *files) {
    size_t examples = carnn_dataset_examples(set), groups = carnn_dataset_groups(set);
    int answer = !strcmp(task_of(model), "answer");
    if ((!answer && strcmp(task_of(model), "skip-thought")) || examples >= 2 * groups) return;
    say(DONE, "%s: sentences: %zu, %s: %zu; %s", called_all(files), examples,
        answer ? "questions" : "documents", groups,
        answer ? "do the lines of a question stand together?" : "each empty line ends a document");
}

/* What may be wrong with data that are to be scored. */
static void warn_of_data(const carnn_dataset *set, const list *files) {
    warn_of_names(set, *files->item, 0);
    warn_of_groups(set, files);
}

/* Has nobody said what this option of the task is? */
static int left_open(const char *name) {
    char text[CARNN_TEXT_MAX];
    const carnn_option *o = carnn_option_named(arg.task, name);
    return !arg.from && !strcmp(carnn_option_get(o, &arg.model, NULL, text, sizeof text), "0");
}

/* Says so where each line of a table is read as a sequence of single numbers, though nobody has
   asked for that. */
static void warn_of_table(void) {
    size_t names = carnn_model_word_count(model) - 1; /* without <unk> */
    if (*arg.model.target && !*arg.model.group && names > 1 && left_open("columns"))
        say(DONE, "%s: each line is read as a sequence of %zu rows of one number; --columns %zu "
            "makes it one row", called_all(&arg.train), names, names);
}

/* ==== train ================================================================================== */
static struct { /* the training */
    const carnn_dataset *valid, *test; /* NULL: none */
    carnn_scores tested;
    FILE *log, *probe;      /* of epochs, of probes; NULL: none */
    double seconds, before; /* of this run, of the folds before */
    int64_t epochs;         /* that have ended */
    size_t fold;            /* of a cross-validation, from 1 */
    carnn_scores *of_fold;  /* for --json, of those that have ended */
    size_t shown;           /* length of the line of progress that is to be overwritten */
    int begun;              /* there has been a report */
} job;

/* A run that was killed, or met a full disk, may have left a line without its end. In a pipe, or an
   empty file, there is no last byte to go to. */
static void end_last_line(const char *name, FILE *log) {
    FILE *written = fopen(name, "rb");
    if (written && !fseek(written, -1, SEEK_END) && getc(written) != '\n') fputc('\n', log);
    if (written) fclose(written);
}

/* With the first report: what is refused before leaves the log of the last run as it is. A resumed
   run goes on in that log; if the last run was killed, some epochs may be logged once more. */
static FILE *open_log(const char *name) {
    FILE *log = name ? fopen(name, arg.resume ? "a" : "w") : NULL;
    if (name && !log) say(FAILED, "%s: cannot be written: %s", name, strerror(errno));
    if (log && arg.resume) end_last_line(name, log);
    return log;
}

/* Could a new log be written? One that is there may be in a folder that takes no more files. */
static void check_log(const char *name) {
    if (name && !is_file(name)) check(carnn_file_check(name, &error));
}

/* Also tells of a write that failed before, whose reason errno no longer has. */
static void close_log(FILE *log, const char *name) {
    int lost = log && ferror(log);
    if (log && (fclose(log) || lost))
        say(FAILED, "%s: cannot be written: %s", name,
            lost ? "a part is lost, the disk may be full" : strerror(errno));
}

static void begin_log_line(FILE *log, const carnn_progress *p, double loss) {
    json(log, "{");
    if (job.fold) json(log, "'fold': %z", job.fold);
    json(log, "'epoch': %g, 'loss': %g", (double)p->epoch, loss);
}

static void log_epoch(const carnn_progress *p) {
    FILE *f = job.log;
    begin_log_line(f, p, p->loss);
    if (p->scores) json(f, "'valid': {%m}", p->scores);
    json(f, "'best_epoch': %g, 'lr': %g, 'gradient_norm': %g, 'rate': %g, 'seconds': %g, "
         "'memory_mib': %g}\n", (double)p->best_epoch, p->lr, p->gradient_norm, p->rate, p->seconds,
         peak_memory());
    fflush(f);
}

static void log_probe(const carnn_progress *p) {
    FILE *f = job.probe;
    char name[LONGEST_NAME];
    size_t i;
    begin_log_line(f, p, p->probe->loss);
    json(f, "'states': {");
    for (i = 0; i < CARNN_PROBE_STEPS; i++) {
        snprintf(name, sizeof name, "log_norm_%zu", p->probe->step[i]);
        json(f, "%s: %g", name, p->probe->log_norm[i]);
    }
    json(f, "}, 'activations': {");
    for (i = 0; i < CARNN_PROBE_BINS; i++) { /* from where */
        snprintf(name, sizeof name, "%g", -1.0 + 2.0 / CARNN_PROBE_BINS * (double)i);
        json(f, "%s: %g", name, p->probe->share[i]);
    }
    json(f, "}}\n");
    fflush(f);
}

/* A line of progress; `live`: over the last one. */
static void show_progress(const carnn_progress *p, int live) {
    static line text;
    size_t length;
    text.length = 0;
    if (job.fold) add_text(&text, "fold %zu  ", job.fold);
    add_text(&text, "epoch %lld/%lld %3.0f%%  loss %s", (long long)p->epoch, (long long)p->epochs,
             100.0 * p->done, decimal(p->loss));
    if (p->scores && p->scores->count)
        add_text(&text, "  %s %s", p->scores->metric[0].name, decimal(p->scores->metric[0].value));
    if (p->best && p->best->count && (job.valid || job.fold))
        add_text(&text, "  best %s (%lld)", decimal(p->best->metric[0].value),
                 (long long)p->best_epoch);
    add_text(&text, "  %s left  %.0f/s  lr %.3g  |g| %.3g  %.0f MiB",
             duration(p->seconds_left), p->rate, p->lr, p->gradient_norm, peak_memory());
    /* a line that wraps cannot be overwritten: a narrow one does without the last fields */
    for (length = text.length; live && length > terminal_width();)
        for (length--; length && text.text[length] != ' ';) length--;
    fprintf(stderr, "%s%.*s%*s%s", live ? "\r" : "", (int)length, text.text,
            (int)(job.shown - least(job.shown, length)), "", p->epoch_ended ? "\n" : "");
    fflush(stderr);
    job.shown = p->epoch_ended ? 0 : length;
}

/* What is printed next is below the line of progress. */
static void end_progress(void) {
    if (job.shown) fputc('\n', stderr);
    job.shown = 0;
}

static int on_progress(const carnn_progress *p, void *user) {
    int live = is_terminal(stderr) && !is_plain();
    (void)user;
    if (!job.begun++) job.log = open_log(arg.log), job.probe = open_log(arg.probe);
    job.seconds = p->seconds;
    job.epochs = p->epoch - !p->epoch_ended;
    if (job.log && p->epoch_ended) log_epoch(p);
    if (job.probe && p->probe) log_probe(p);
    if (!arg.quiet && (live || p->epoch_ended)) show_progress(p, live);
    return interrupted;
}

/* Finds what is wrong before hours of work are lost. */
static void check_training(int folds) {
    if (arg.from) arg.model.from = load_file(arg.from);
    if (arg.from && !arg.task) arg.task = task_of(arg.model.from);
    if (!arg.task) say(USAGE, "train: --task is missing, the name of what to learn (carnn help "
            "lists tasks)");
    arg.model.task = arg.task = carnn_task_name(task_number(arg.task));
    set_own_options();
    if (!arg.train.count) say(USAGE, "train: --train FILE is missing, the training data");
    if (folds && (arg.out || arg.resume || arg.valid.count || arg.test.count))
        say(USAGE, "train: --out, --resume, --valid and --test do not go with --folds");
    if (folds && arg.training.max_time > 0.0)
        say(USAGE, "train: --max-time ends a training; --folds has several");
    if (arg.folds && arg.folds_by)
        say(USAGE, "train: --folds-by names the folds; --folds counts them: give one of them");
    if (arg.clean && !folds && !arg.valid.count && !arg.test.count)
        say(USAGE, "train: --clean is for what is scored: --valid, --test, --folds");
    if (!folds && !arg.out) say(USAGE, "train: --out FILE is missing, the model file to write");
    if (arg.training.patience > 0 && !arg.valid.count && !folds)
        say(USAGE, "train: --patience needs --valid, whose score it waits for");
    if (arg.model.vector_words > 0 && !arg.vectors.count && !arg.from)
        say(USAGE, "train: --vector-words needs --vectors, which have these words");
    if (arg.out) check(carnn_file_check(arg.out, &error));
    check_log(arg.log);
    check_log(arg.probe);
}

static void print_start(void) {
    size_t own, found = carnn_model_vectors_found(model, &own);
    print_count(stderr, carnn_dataset_examples(data), "examples", ", ");
    if (!strcmp(arg.task, "signal"))
        fprintf(stderr, "numbers in a row: %lld, ",
                (long long)carnn_model_describe(model)->embedding);
    else print_count(stderr, carnn_model_word_count(model), words_called(model), ", ");
    if (arg.vectors.count) fprintf(stderr, "vectors of %zu of %zu in the data, ", found, own);
    if (has_option(model, "target-kind", "number")) fprintf(stderr, "targets are numbers, ");
    else print_count(stderr, carnn_model_choice_count(model), "choices", ", ");
    fprintf(stderr, "%zu parameters; %s, threads: %zu\n%s", carnn_model_parameters(model),
            carnn_simd_used(arg.simd, NULL), carnn_thread_count(arg.training.threads),
            job.valid || !arg.out ? "" : "no --valid: the last epoch is kept, not the best one\n");
}

/* Says what looks as if a file had another form than was meant, or the wrong words. */
static void warn_of_training(void) {
    size_t examples = carnn_dataset_examples(data), classes = carnn_model_choice_count(model);
    size_t words, found = carnn_model_vectors_found(model, &words), i, k;
    if (strcmp(arg.task, "dialog") && (classes == 1 || (classes > 2 && 2 * classes > examples)))
        say(DONE, "%s: examples: %zu, classes: %zu; is it as expected? (%s)",
            called_all(&arg.train), examples, classes, data_of(arg.task));
    else warn_of_names(data, *arg.train.item, 1);
    warn_of_groups(data, &arg.train);
    if (!strcmp(arg.task, "signal")) warn_of_table();
    if (job.valid) warn_of_data(job.valid, &arg.valid);
    if (job.test) warn_of_data(job.test, &arg.test);
    for (i = 0; i < arg.train.count; i++)
        for (k = 0; k < arg.valid.count; k++)
            if (is_same_file(arg.train.item[i], arg.valid.item[k]))
                say(DONE, "%s is --train and --valid: its scores say nothing of other data",
                    arg.train.item[i]);
    if (arg.vectors.count && 10 * found < 3 * words)
        say(DONE, "%s: of %zu %s of the data %zu have a vector, is this the right file?",
            called_all(&arg.vectors), words, words_called(model), found);
    if (arg.out && carnn_file_check(arg.training.checkpoint, &error))
        say(DONE, "%s; so --resume cannot go on if this training is interrupted", error.message);
    else if (arg.out && !arg.resume && is_file(arg.training.checkpoint))
        say(DONE, "%s will be overwritten; --resume would go on with the training that was stopped",
            arg.training.checkpoint);
}

/* Trains, and saves whatever weights are worth it: those of the best epoch, also where the
   training was interrupted or met NaN. */
static int run_training(void) {
    carnn_status status = carnn_train(model, data, job.valid, &arg.training, &error);
    const carnn_train_desc *used = carnn_model_training(model);
    int64_t best = carnn_model_best_epoch(model), patience = job.valid ? used->patience : 0;
    int patient = patience > 0 && job.epochs - best >= patience, result;
    int done = patient || job.epochs >= used->epochs; /* nothing is left for --resume */
    int kept = status == CARNN_OK || status == CARNN_ERR_STOPPED; /* in the checkpoint */
    end_progress();
    result = kept ? DONE : failed();
    if (status == CARNN_ERR_IO && best && done) status = CARNN_OK, result = DONE; /* not needed */
    if (best && carnn_model_save(model, arg.out, &error)) {
        result = failed();
        if (kept) say(result, "%s has all of it: once %s can be written, the same command with "
                      "--resume writes it", arg.training.checkpoint, arg.out);
        return result;
    }
    if (best && (status || interrupted))
        say(DONE, "%s has the weights of epoch %lld", arg.out, (long long)best);
    if (result) return result;
    if (!done && (status || (job.begun && arg.training.max_time > 0.0))) /* else none was left */
        say(DONE, "%s; the same command with --resume goes on",
            status ? "interrupted" : "the time is over");
    else if (kept || (is_file(arg.training.checkpoint) &&
                      !carnn_file_check(arg.training.checkpoint, &error)))
        remove(arg.training.checkpoint); /* also an earlier one that could not be replaced */
    if (done && interrupted) say(DONE, "interrupted when it was done: --resume has nothing to do");
    return interrupted ? INTERRUPTED : DONE;
}

static void print_training(void) {
    printf("model  %s: %zu parameters, epoch %lld, %s\n%s  ", arg.out,
           carnn_model_parameters(model), (long long)carnn_model_best_epoch(model),
           duration(job.seconds), job.valid ? "valid" : "train");
    print_metrics(carnn_model_scores(model));
    if (job.test) printf("\ntest   "), print_metrics(&job.tested);
    printf("\n");
}

/* Of a training, or with its standard deviation of a cross-validation, which has no model file. */
static void json_training(const carnn_scores *s, const carnn_scores *sd) {
    const carnn_model_desc *d = carnn_model_describe(model);
    size_t i;
    json(stdout, "{'task': %s, 'cell': %s, 'parameters': %z, 'seed': %g, 'examples': %z, "
         "'seconds': %g, 'memory_mib': %g, %m", d->task, d->cell, carnn_model_parameters(model),
         (double)d->seed, carnn_dataset_examples(data), job.before + job.seconds, peak_memory(), s);
    if (sd) {
        json(stdout, "'folds': %z", job.fold - 1);
        json_metrics(stdout, sd, "_sd");
        json(stdout, "'each': [");
        for (i = 0; i + 1 < job.fold; i++)
            json(stdout, "{'examples': %z, %m}", job.of_fold[i].examples, &job.of_fold[i]);
        json(stdout, "]");
    } else json(stdout, "'best_epoch': %g, 'scored_on': %s, 'file': %s",
                (double)carnn_model_best_epoch(model), job.valid ? "valid" : "train", arg.out);
    if (job.test) json(stdout, "'test': {'examples': %z, %m}", job.tested.examples, &job.tested);
    json(stdout, "}\n");
}

/* Scores the finished model on --test, too. */
static void tell_training(void) {
    const carnn_model *const *trained = (const carnn_model *const *)&model;
    if (job.valid) warn_of(carnn_model_scores(model), model, &arg.valid);
    if (job.test) {
        check(carnn_test(trained, 1, job.test, arg.training.threads, &job.tested, &error));
        warn_of(&job.tested, model, &arg.test);
    }
    if (arg.json) json_training(carnn_model_scores(model), NULL);
    else print_training();
}

static void on_fold(size_t number, size_t count, const carnn_scores *s, void *user) {
    (void)user;
    end_progress();
    job.fold = number + 2;
    job.before += job.seconds;
    job.seconds = 0.0;
    if (arg.json) {
        job.of_fold = (carnn_scores *)resize(job.of_fold, count, sizeof *s);
        job.of_fold[number] = *s;
        return;
    }
    printf("fold %zu of %zu  ", number + 1, count), print_metrics(s);
    printf("  (");
    print_count(stdout, s->examples, "examples", ")\n");
    flush_output(FAILED);
}

/* The model is not trained: it tells what those of the folds have in common. */
static void cross_validate(void) {
    static carnn_folds_desc folds = {.fold = on_fold};
    carnn_scores mean, sd;
    carnn_status status;
    folds.count = arg.folds;
    folds.by = open_source(arg.folds_by);
    job.fold = 1;
    status = carnn_cross_validate(&arg.model, &arg.training, data, &folds, &mean, &sd, &error);
    end_progress();
    check(status);
    if (arg.json) json_training(&mean, &sd);
    else {
        printf("mean  "), print_metrics(&mean);
        printf("\nsd    "), print_metrics(&sd);
        printf("\n");
    }
}

static void train(void) {
    const carnn_dataset *known[2];
    int folds = arg.folds || arg.folds_by;
#ifdef SIGPIPE
    if (!folds) signal(SIGPIPE, SIG_IGN); /* progress that nobody reads ends no training */
#endif
    check_training(folds);
    data = load_data(&arg.train, arg.candidates, folds && arg.clean, 0);
    known[0] = job.valid = load_data(&arg.valid, NULL, arg.clean, 0);
    known[1] = job.test = load_data(&arg.test, NULL, arg.clean, 0);
    arg.model.simd = arg.simd;
    arg.model.unsure = arg.unsure;
    arg.model.vectors = arg.vectors.count ? open_sources(&arg.vectors) : NULL;
    arg.model.vector_count = arg.vectors.count;
    arg.model.known = known;
    arg.model.known_count = COUNT(known);
    check(carnn_model_create(&model, &arg.model, data, &error));
    arg.training.resume = arg.resume;
    arg.training.probe = arg.probe != NULL;
    arg.training.progress = on_progress;
    if (!arg.quiet) print_start();
    warn_of_training();
    can_stop = 1;
    if (folds) cross_validate();
    else exit_code = run_training();
    can_stop = 0; /* scoring does not ask for interrupts */
    if (!exit_code && !folds) tell_training();
    close_log(job.log, arg.log);
    close_log(job.probe, arg.probe);
}

/* ==== test =================================================================================== */
typedef struct taken { /* how often a class was taken for which */
    size_t right, chosen, times;
} taken;

typedef struct report { /* what a model chose */
    const carnn_model *model;
    size_t classes; /* choices of the model, and one more for targets that are none of them */
    int steps;      /* a class for each row */
    const char *step; /* in the target: the class of the latest row, then those behind it */
    taken *pair;    /* (count) by the right class, then by the chosen one */
    size_t count, room;
} report;

static struct { /* what is scored */
    carnn_scores scores[MODELS + 1]; /* of the models, then of their vote */
    numbers parts[MODELS + 1];       /* likewise, what each score is the mean of */
    numbers weights[MODELS + 1];     /* of these parts */
    struct report report[MODELS + 1];
    line qrels, run;                 /* the files of these options */
    size_t voices;                   /* what is scored: the models, and their vote, if any */
    size_t chosen[MODELS];           /* the members of the ensemble */
} tested;

static void on_part(size_t number, double value, double weight, void *user) {
    (void)user;
    add_number(&tested.parts[number], value);
    add_number(&tested.weights[number], weight);
}

/* The files of a ranking have one score for each item: of several models that of their vote. */
static void on_ranked(const carnn_ranked *r, void *user) {
    size_t group = r->group + 1, member = r->member + 1;
    (void)user;
    if (r->model + 1 != tested.voices) return;
    add_text(&tested.qrels, "%zu 0 %zu-%zu %d\n", group, group, member, r->label);
    add_text(&tested.run, "%zu Q0 %zu-%zu 0 %.9g carnn\n", group, group, member, r->score);
}

/* The probability that model i and the first differ as much by chance; NaN where there is nothing
   to compare, or their scores are means of different things: of words and characters, of sentences
   and chunks. */
static double significance(size_t i) {
    const numbers *w = tested.weights, *p = tested.parts;
    size_t bytes = w->count * sizeof *w->item;
    if (!bytes || w[i].count != w->count || memcmp(w[i].item, w->item, bytes)) return NAN;
    return carnn_significance(w->count, p->item, p[i].item, w->item, 1);
}

static const char *class_name(const report *r, size_t number) {
    return number + 1 < r->classes ? carnn_model_choice(r->model, number) : "(unknown)";
}

static void on_choice(const carnn_prediction *p, void *user) {
    report *r = (report *)user;
    const char *target = carnn_dataset_target(data, p->example);
    size_t length;
    if (!target || p->kind != CARNN_PREDICTS_CHOICES || !p->count || p->candidate) return;
    if (r->steps) { /* a class for each row, "-" where there is nothing to score */
        const char *blank = p->part ? strchr(r->step, ' ') : NULL; /* one is that of all */
        if (!p->part) r->step = target;
        if (blank) r->step = blank + strspn(blank, " ");
        target = r->step;
        length = strcspn(target, " ");
        if (length == 1 && *target == '-') return;
    } else length = strlen(target);
    r->pair = (taken *)grow(r->pair, r->count, &r->room, sizeof *r->pair);
    r->pair[r->count++] = (taken){choice_named(r->model, target, length), p->choice[0], 1};
}

static int by_classes(const void *one, const void *two) {
    const taken *a = (const taken *)one, *b = (const taken *)two;
    size_t x = a->right == b->right ? a->chosen : a->right;
    size_t y = a->right == b->right ? b->chosen : b->right;
    return (x > y) - (x < y);
}

#define MATRIX 20 /* classes of a confusion matrix at most, and lines of confused pairs */

/* The most frequent first: each that is found is printed and forgotten. */
static void print_confused(const report *r) {
    size_t i, k;
    printf("\ntimes  right -> predicted\n");
    for (k = 0; k < MATRIX; k++) {
        taken none = {0, 0, 0}, *best = &none;
        for (i = 0; i < r->count; i++)
            if (r->pair[i].right != r->pair[i].chosen && r->pair[i].times > best->times)
                best = &r->pair[i];
        if (!best->times) return;
        printf("%5zu  %s -> %s\n", best->times, class_name(r, best->right),
               class_name(r, best->chosen));
        best->times = 0;
    }
}

static void print_matrix(const report *r, const size_t *shown, size_t count) {
    size_t i, j;
    printf("\n%-20s", "right \\ predicted");
    for (j = 0; j < count; j++) putchar(' '), print_cut(class_name(r, shown[j]), 8, 1);
    for (i = 0; i < count; i++) {
        putchar('\n');
        print_cut(class_name(r, shown[i]), 20, 0);
        for (j = 0; j < count; j++) {
            taken key = {shown[i], shown[j], 0}, *found = (taken *)bsearch(
                &key, r->pair, r->count, sizeof key, by_classes);
            printf(" %8zu", found ? found->times : 0);
        }
    }
    printf("\n");
}

/* A class, which is `chosen` so often; from pair[at] on stands what it is taken for. Returns where
   the next class begins. */
static size_t print_class(const report *r, size_t number, size_t chosen, size_t at) {
    const char *name = class_name(r, number);
    size_t both = 0, right = 0, end;
    double precision, recall, f1;
    for (end = at; end < r->count && r->pair[end].right == number; end++) {
        right += r->pair[end].times;
        if (r->pair[end].chosen == number) both = r->pair[end].times;
    }
    precision = (double)both / fmax((double)chosen, 1.0);
    recall = (double)both / fmax((double)right, 1.0);
    f1 = 2.0 * (double)both / (double)(right + chosen);
    if (arg.json) {
        json(stdout, "{'class': %s, 'count': %z, 'precision': %g, 'recall': %g, 'f1': %g, "
             "'predicted': {", name, right, precision, recall, f1);
        for (; at < end; at++)
            json(stdout, "%s: %z", class_name(r, r->pair[at].chosen), r->pair[at].times);
        json(stdout, "}}");
    } else printf("%9.4f  %6.4f  %6.4f  %6zu  %s\n", precision, recall, f1, right, name);
    return end;
}

/* The classes that are right or predicted somewhere, and what is taken for what. */
static void print_report(const report *r) {
    size_t i, at = 0, count = 0, n = r->classes, shown[MATRIX];
    size_t *chosen = (size_t *)resize(NULL, n, sizeof *chosen);
    memset(chosen, 0, n * sizeof *chosen);
    for (i = 0; i < r->count; i++) chosen[r->pair[i].chosen] += r->pair[i].times;
    if (arg.json) json(stdout, "'classes': [");
    else printf("\nprecision  recall      f1   count  class\n");
    for (i = 0; i < n; i++) {
        if (!chosen[i] && (at == r->count || r->pair[at].right != i)) continue;
        if (count++ < MATRIX) shown[count - 1] = i;
        at = print_class(r, i, chosen[i], at);
    }
    free(chosen);
    if (arg.json) json(stdout, "]");
    else if (count > MATRIX) print_confused(r);
    else print_matrix(r, shown, count);
}

static void make_report(report *r, const carnn_model *m) {
    carnn_predict_desc desc = {arg.training.threads, 1, on_choice, r};
    size_t i, n = 0;
    *r = (report){.model = m, .classes = carnn_model_choice_count(m) + 1,
                  .steps = has_option(m, "target-kind", "steps")};
    check(carnn_predict(m, data, &desc, &error));
    if (!r->count)
        say(USAGE, "test: --report needs a model that chooses, and targets; this one is of the "
            "task %s", task_of(m));
    qsort(r->pair, r->count, sizeof *r->pair, by_classes);
    for (i = 0; i < r->count; i++) /* each pair of classes once */
        if (n && !by_classes(&r->pair[n - 1], &r->pair[i])) r->pair[n - 1].times++;
        else r->pair[n++] = r->pair[i];
    r->count = n;
}

/* What a line of scores is of: a model, or all of them together. */
static const char *scored_name(size_t number) {
    if (number < arg.files.count) return arg.files.item[number];
    return arg.ensemble ? arg.ensemble : "vote";
}

/* Model i of those that a line of scores is of: the models of a vote, the members of an ensemble,
   or one model; NULL past the last. */
static const carnn_model *scored_model(size_t number, size_t i) {
    const carnn_model *m = models[number], *member = m ? carnn_model_member(m, i) : models[i];
    return member || i ? member : m;
}

/* Of a model, or of several: then what these share, and their parameters together. */
static void json_score(size_t number) {
    size_t i, parameters = 0;
    const carnn_scores *s = &tested.scores[number];
    const carnn_model *m = scored_model(number, 0);
    const carnn_model_desc *d = carnn_model_describe(m);
    const char *cell = d->cell;
    double seed = (double)d->seed;
    for (i = 0; (m = scored_model(number, i)) != NULL; i++) {
        d = carnn_model_describe(m);
        parameters += carnn_model_parameters(m);
        if (strcmp(d->cell, cell)) cell = "mixed";
        if ((double)d->seed != seed) seed = NAN;
    }
    json(stdout, "{'task': %s, 'cell': %s, 'parameters': %z, 'seed': %g, 'examples': %z, "
         "'seconds': %g, %m", d->task, cell, parameters, seed, s->examples, s->seconds, s);
    i = carnn_dataset_left_out(data);
    if (i) json(stdout, "'left_out': %z", i);
    if (number) json(stdout, "'p_value': %g", significance(number));
    if (number < arg.files.count) json(stdout, "'file': %s", arg.files.item[number]);
    else if (arg.ensemble) {
        json(stdout, "'rule': %s, 'members': [", arg.ensemble);
        for (i = 0; carnn_model_member(models[number], i); i++)
            json(stdout, "%s", arg.files.item[tested.chosen[i]]);
        json(stdout, "]");
    }
    if (models[number] && arg.report) print_report(&tested.report[number]);
    json(stdout, "}");
}

static void json_test(void) {
    size_t i;
    if (tested.voices > 1) json(stdout, "{'models': [");
    for (i = 0; i < tested.voices; i++) {
        if (i == arg.files.count) json(stdout, "], %s: ", arg.ensemble ? "ensemble" : "vote");
        json_score(i);
    }
    if (tested.voices > 1) json(stdout, tested.voices == arg.files.count ? "]}" : "}");
    json(stdout, "\n");
}

/* A line for each model; p is by paired bootstrap. */
static void print_test(void) {
    const carnn_scores *s = tested.scores;
    size_t i, width = 0;
    for (i = 0; i < tested.voices; i++) width = most(width, characters(scored_name(i)));
    for (i = 0; i < tested.voices; i++, s++) {
        double p = i ? significance(i) : NAN;
        print_cut(scored_name(i), (int)width, 0);
        printf("  ");
        print_metrics(s);
        printf("  (");
        print_count(stdout, s->examples, "examples", ", ");
        printf("%.2f s", s->seconds);
        if (is_finite(p)) printf(", p %.4f against the first", p);
        printf(")\n");
    }
    for (i = 0; models[i] && arg.report; i++) {
        if (models[1]) printf("\n%s\n", scored_name(i));
        print_report(&tested.report[i]);
    }
}

static void check_test(void) {
    guess g = guess_for(arg.ensemble ? arg.ensemble : "");
    int vote = is_word(&g, "vote"), mean = is_word(&g, "mean"), greedy = is_word(&g, "greedy");
    if (!arg.ensemble && (arg.valid.count || arg.share != 0.0))
        say(USAGE, "test: --valid and --share go with --ensemble");
    if (arg.out && !arg.ensemble && (!arg.quantise || arg.files.count > 1))
        say(USAGE, "test: --out goes with --ensemble, or with --quantise and one model");
    if (arg.out) check(carnn_file_check(arg.out, &error));
    if (!arg.ensemble) return;
    if (arg.share < 0.0 || arg.share > 1.0)
        say(USAGE, "test: --share: expected a number above 0, up to 1");
    if (!vote && !mean && !greedy) unknown("rule", &g);
    if ((greedy || arg.share > 0.0) && !arg.valid.count)
        say(USAGE, "test: --valid FILE is missing, what the members are chosen on");
}

/* Makes the ensemble of all models, as one more of them, and says which it has chosen. */
static void make_ensemble(void) {
    carnn_dataset *valid = load_data(&arg.valid, NULL, arg.clean, 0);
    carnn_ensemble_desc desc = {.valid = valid, .share = arg.share,
                                .threads = arg.training.threads, .chosen = tested.chosen};
    carnn_model **made = &models[arg.files.count];
    const carnn_scores *scores;
    size_t i;
    if (!strcmp(arg.ensemble, "vote")) desc.rule = CARNN_ENSEMBLE_VOTE;
    desc.greedy = !strcmp(arg.ensemble, "greedy");
    check(carnn_model_ensemble(made, (const carnn_model *const *)models, arg.files.count, &desc,
                               &error));
    carnn_dataset_free(valid);
    if (!valid) return;
    scores = carnn_model_scores(*made);
    fprintf(stderr, "%s on %s: ", arg.ensemble, called_all(&arg.valid));
    if (scores->count)
        fprintf(stderr, "%s %s, ", scores->metric->name, decimal(scores->metric->value));
    fprintf(stderr, "members:");
    for (i = 0; carnn_model_member(*made, i); i++)
        fprintf(stderr, " %s", arg.files.item[tested.chosen[i]]);
    fputc('\n', stderr);
}

/* Models that differ in what they choose among cannot vote. They are scored all the same. */
static void score_models(carnn_test_desc *desc) {
    const carnn_model *const *all = (const carnn_model *const *)models;
    size_t count = arg.ensemble ? tested.voices : arg.files.count;
    carnn_status status = carnn_test_parts(all, count, data, desc, tested.scores, &error);
    if (status == CARNN_ERR_ARGUMENT && arg.files.count > 1 && !desc->alone && !desc->ranked) {
        carnn_error why = error;
        desc->alone = 1;
        status = carnn_test_parts(all, count, data, desc, tested.scores, &error);
        tested.voices = arg.files.count;
        name_options(why.message);
        if (!status) say(DONE, "no vote: %s", why.message);
    }
    check(status);
}

static void test(void) {
    carnn_test_desc desc = {.threads = arg.training.threads,
                            .part = arg.files.count > 1 || arg.ensemble ? on_part : NULL,
                            .ranked = arg.qrels || arg.run ? on_ranked : NULL,
                            .alone = arg.ensemble != NULL};
    size_t i, least_known = 0;
    if (!arg.data.count) say(USAGE, "test: --data FILE is missing, what to score on");
    if (arg.qrels) check(carnn_file_check(arg.qrels, &error));
    if (arg.run) check(carnn_file_check(arg.run, &error));
    check_test();
    tested.voices = arg.files.count + (arg.files.count > 1 || arg.ensemble);
    for (i = 0; i < arg.files.count; i++) {
        load_model(i);
        if (strcmp(task_of(models[i]), task_of(model)))
            say(USAGE, "test: %s is a model of another task", arg.files.item[i]);
        if (arg.quantise) check(carnn_model_quantise(models[i], &error));
    }
    if (arg.ensemble) make_ensemble();
    data = load_data(&arg.data, NULL, arg.clean, 0);
    warn_of_data(data, &arg.data);
    score_models(&desc);
    for (i = 1; i < arg.files.count; i++)
        if (tested.scores[i].unknown > tested.scores[least_known].unknown) least_known = i;
    warn_of(&tested.scores[least_known], models[least_known], &arg.data);
    if (desc.ranked && !tested.run.length)
        say(USAGE, "test: --qrels and --run are for tasks that rank; %s does not", task_of(model));
    for (i = 0; i < tested.scores->count && !tested.scores->metric[i].secondary;) i++;
    if (arg.counts && i == tested.scores->count)
        say(USAGE, "test: --counts: the metrics of %s have no other counts", task_of(model));
    for (i = 0; models[i] && arg.report; i++) make_report(&tested.report[i], models[i]);
    write_result(&tested.qrels, arg.qrels);
    write_result(&tested.run, arg.run);
    begin_writing();
    if (arg.out)
        check(carnn_model_save(models[arg.ensemble ? arg.files.count : 0], arg.out, &error));
    end_writing();
    (arg.json ? json_test : print_test)();
}

/* ==== predict, explain, chat, rank, generate ================================================= */
static carnn_session *session;
static line input;
static size_t predicted; /* examples so far */

static carnn_text text_of(const char *s) { return (carnn_text){s, strlen(s)}; }

/* Opens a session that reads as much as scoring does, so that the answers are the same; without
   --data it is for standard input. task: the one that the model must have, or NULL. */
static void open_session(const char *task) {
    carnn_session_desc desc = {.utterances = SIZE_MAX};
    if (!arg.data.count) add_item(&arg.data, "-"), add_item(&arg.typed, *arg.data.item);
    load_model(0);
    if (task && strcmp(task, task_of(model)))
        say(USAGE, "%s is a model of the task %s, expected one of the task %s", *arg.files.item,
            task_of(model), task);
    check(carnn_session_open(&session, model, &desc, &error));
}

/* Does somebody type the lines and read the answers? */
static int is_talk(void) { return is_terminal(stdin) && is_terminal(stdout); }

/* Reads the next line of standard input, where all before it has been answered; 0 at its end. A NUL
   is a blank, as in the library, and ends no line. */
static int next_said(void) {
    size_t i;
    int found;
    if (is_talk()) fputs("> ", stdout);
    flush_output(FAILED);
    found = next_line(&input);
    if (!found && is_talk()) putchar('\n');
    for (i = 0; found && i < input.length; i++)
        if (!input.text[i]) input.text[i] = ' ';
    return found;
}

/* As the library writes a prediction, until the next call. */
static const char *prediction_text(const carnn_prediction *p, size_t top) {
    static char *text;
    static size_t room;
    size_t length;
    while ((length = carnn_prediction_text(model, p, top, text, room)) >= room)
        text = (char *)resize(text, room = length + 1, 1);
    return text;
}

/* Writes the line of one example; its parts come one after the other. Whole lines are flushed:
   somebody may wait for them, and a full disk is noticed by the first. */
static void on_prediction(const carnn_prediction *p, void *user) {
    int ends = p->part + 1 >= p->parts;
    (void)user;
    if (arg.top && p->kind != CARNN_PREDICTS_CHOICES)
        say(USAGE, "--top is for models that choose; this one of the task %s does not",
            task_of(model));
    if (p->parts) fputs(prediction_text(p, (size_t)arg.top), stdout);
    putchar(ends ? '\n' : ' ');
    if (ends) flush_output(FAILED);
    predicted += !p->part;
}

/* Is what stands first in every line, or in a column, read as a class, though no class of the model
   is called so? */
static int lacks_classes(void) {
    int rows = carnn_session_columns(session) > 0;
    size_t i, examples = carnn_dataset_examples(data);
    for (i = 0; i < examples; i++) {
        const char *target = carnn_dataset_target(data, i);
        if (!target || (rows && strchr(target, ' ')) || is_choice(target)) return 0;
    }
    return examples && carnn_model_choice_count(model);
}

/* Answers each line of standard input before the next one: somebody may wait for it. */
static void predict_lines(void) {
    carnn_prediction p;
    size_t i;
    int found;
    while (next_line(&input)) {
        check(carnn_session_line(session, input.text, input.length, input.number, (size_t)arg.top,
                                 &found, &p, &error));
        if (found) on_prediction(&p, NULL);
        for (i = 1; found && i < p.parts; i++) {
            check(carnn_session_part(session, i, &p, &error));
            on_prediction(&p, NULL);
        }
    }
}

/* There are data, but no example in them. */
static void say_empty(int code, const char *verb) {
    const char *task = task_of(model);
    say(code, "nothing to %s: no line is an example of %s, whose data are %s%s", verb, task,
        data_of(task), strcmp(task, "dialog") ? "" : "; a user's line ends with its tab");
}

/* Files are predicted in batches. A sequence of rows, and the sentences of a question, are read to
   the end on standard input, too, unless --stream asks for answers to single lines. */
static void predict(void) {
    carnn_predict_desc desc = {arg.training.threads, (size_t)arg.top, on_prediction, NULL};
    int files, waits, whole; /* whole: all is read before the first answer */
    open_session(NULL);
    files = arg.data.count > 1 || strcmp(*arg.data.item, "-");
    waits = carnn_session_columns(session) > 0 || carnn_session_compares(session);
    whole = files || (waits && !arg.stream);
    if (!whole && (arg.target || arg.group || arg.labels.count || arg.permutation))
        say(USAGE, "--target, --group, --labels and --permutation are for --data: here each line "
            "is answered by itself");
    if (arg.stream && files) say(USAGE, "--stream is for standard input, not for --data");
    if (arg.stream && !waits)
        say(USAGE, "--stream: this model answers each line at once without it");
    if (whole) {
        data = load_data(&arg.data, NULL, 0, 1);
        if (carnn_session_columns(session) && !*reads_as()->target && !*reads_as()->group &&
            !arg.labels.count && lacks_classes())
            say(DONE, "no line begins with a class that the model knows: a line whose class is not "
                "known begins with its tab or comma");
        if ((!strcmp(task_of(model), "classify") || !strcmp(task_of(model), "pair")) &&
            lacks_classes())
            say(DONE, "%s: no example has a class that the model knows; is another column taken "
                "for the class?", called_all(&arg.data));
        warn_of_names(data, *arg.data.item, 0);
        check(carnn_predict(model, data, &desc, &error));
    } else predict_lines();
    if (!predicted) say_empty(DONE, "answer");
}

/* The numbers of a row of an explanation in the columns that are `shown`, or their titles (part
   NULL). The first one is signed, and where the row has none there are blanks:

          score  attention
        +1.3397     0.0000  user  i need a bike for two days
        -0.2808             rest

   There is room for two: a table looks the same whether the example has a context or not. */
static void print_numbers(unsigned shown, const carnn_contribution *part) {
    static const unsigned bit[] = {CARNN_HAS_SCORE, CARNN_HAS_SHARE, CARNN_HAS_ATTENTION};
    static const char *const title[] = {"score", "share", "attention"};
    double number[] = {0.0, 0.0, 0.0};
    size_t i, n = 0;
    if (part) number[0] = part->score, number[1] = part->share, number[2] = part->attention;
    for (i = 0; i < COUNT(bit); i++) {
        if (!(shown & bit[i])) continue;
        if (part && part->has & bit[i]) printf(n++ ? "  %9.4f" : "%+10.4f", number[i]);
        else printf(n++ ? "  %9s" : "%10s", part ? "" : title[i]);
    }
    if (part) printf(n < 2 ? "  %9s  " : "%s  ", "");
    else putchar('\n');
}

static int is_colored(void) { return !is_plain() && (arg.color || is_terminal(stdout)); }

/* From dark blue to yellow: where a number is between the lowest and the highest of its kind. */
static void begin_color(double number, double low, double high) {
    static const int colors[] = {17, 18, 24, 30, 36, 42, 78, 114, 150, 186, 222, 228};
    double last = COUNT(colors) - 1.0, level = last * (number - low) / fmax(high - low, 1e-9) + 0.5;
    size_t color = (size_t)fmin(fmax(level, 0.0), last);
    printf("\033[48;5;%d;38;5;%dm", colors[color], color > COUNT(colors) / 2 - 1 ? 16 : 231);
}

/* How much a part counts: its score or, where it has none, its attention. */
static double part_weight(const carnn_contribution *part) {
    return part->has & CARNN_HAS_SCORE ? fabs(part->score) : part->attention;
}

/* Is a part not among the `rows` that count most, of equal ones the first, or is its attention
   below the lowest to show? */
static int is_left_out(const carnn_contribution *c, const carnn_contribution *part, size_t count,
                       size_t rows, double lowest) {
    size_t i, before = 0;
    for (i = 0; rows < count && i < count; i++) {
        double more = part_weight(&part[i]) - part_weight(c);
        before += more > 0.0 || (more >= 0.0 && &part[i] < c);
    }
    return before >= rows || c->attention < lowest;
}

/* The parts of the last answer, to be freed. */
static carnn_contribution *explained(carnn_explanation *e) {
    carnn_contribution *part;
    check(carnn_session_explain(session, 0, NULL, e, &error));
    part = (carnn_contribution *)resize(NULL, e->count + 1, sizeof *part);
    check(carnn_session_explain(session, e->count, part, e, &error));
    return part;
}

/* Says why the numbers of parts make no answer; told: any part has one that is not 0. */
static void print_inexact(int told) {
    if (!told) puts("what this model says is no sum of what its parts add: all is in the rest");
    else if (carnn_model_rule(model) == CARNN_ENSEMBLE_VOTE)
        puts("not exact: the models vote, and the numbers are means of theirs");
    else printf("not exact for the cell %s: each number is what its step has by itself, the rest "
                "what no step accounts for\n", carnn_model_describe(model)->cell);
}

/* What each part contributed to the last answer; the rest has those that are left out, too. `of`:
   what to call that which is explained, or NULL. Returns the parts, to be freed. */
static carnn_contribution *print_parts(const char *of, size_t rows, double lowest) {
    carnn_explanation e;
    carnn_contribution *part = explained(&e), *c;
    carnn_contribution rest = {NULL, NULL, CARNN_HAS_SCORE, e.rest, 0.0, 0.0}, sum;
    double low = 1.0, high = 0.0;
    size_t i, width = 0;
    unsigned has = 0, shown;
    int told = 0; /* by any part */
    for (i = 0; i < e.count; i++) {
        has |= part[i].has;
        told |= fabs(part[i].score) + fabs(part[i].share) > 0.0;
        width = most(width, strlen(part[i].role));
        if (part[i].has & CARNN_HAS_ATTENTION) low = fmin(low, part[i].attention);
        high = fmax(high, part[i].attention);
    }
    if (has & CARNN_HAS_SHARE && !(has & CARNN_HAS_SCORE)) rest.has = CARNN_HAS_SHARE;
    shown = has | rest.has; /* parts may have attention alone, but the rest needs its column */
    sum = rest;
    if (of) printf("%s: %s\n", of, e.of);
    print_numbers(shown, NULL);
    for (c = part; c < part + e.count; c++) {
        int color = is_colored() && (c->has & CARNN_HAS_ATTENTION);
        sum.score += c->score;
        if (is_left_out(c, part, e.count, rows, lowest)) {
            rest.score += c->score;
            continue;
        }
        print_numbers(shown, c);
        printf("%-*s  ", (int)width, c->role);
        if (color) begin_color(c->attention, low, high);
        printf("%s%s\n", c->text, color ? "\033[0m" : "");
    }
    rest.share = rest.score;
    print_numbers(shown, &rest);
    puts("rest");
    if (rest.has == CARNN_HAS_SCORE) print_numbers(shown, &sum), puts("sum");
    if (!e.exact) print_inexact(told);
    return part;
}

/* An alignment, row by row. In colour its columns have the first letters of their words; without it
   there are numbers only, for programs. */
static void print_alignment(int of_second, const carnn_contribution *word) {
    size_t rows, others, i, k;
    const float *E = carnn_session_alignment(session, of_second, &rows, &others);
    const carnn_contribution *column = of_second ? word : word + rows;
    double low = 1.0, high = 0.0;
    if (!E || !rows || !others) return;
    if (of_second) word += others;
    for (i = 0; i < rows * others; i++) low = fmin(low, E[i]), high = fmax(high, E[i]);
    printf("alignment of the words of the %s%s", word->role, is_colored() ? "\n" : "");
    for (i = 0; is_colored() && i < others; i++) print_cut(column[i].text, 4, 0), putchar(' ');
    for (i = 0; i < rows; i++) {
        putchar('\n');
        for (k = 0; k < others; k++, E++) {
            if (is_colored()) begin_color((double)*E, low, high);
            printf("%.2f ", (double)*E);
        }
        printf("%s %s", is_colored() ? "\033[0m" : "", word[i].text);
    }
    putchar('\n');
}

/* Where texts are scored together all are shown, elsewhere the last: the table has the others. */
static void explain_example(size_t number, int follows) {
    carnn_prediction p;
    carnn_contribution *part;
    size_t texts = carnn_dataset_text_count(data, number), i;
    check((follows ? carnn_session_next_example : carnn_session_example)(session, data, number, 1,
                                                                         &p, &error));
    printf("example %zu: ", number + 1);
    if (p.candidate) texts--; /* the list of candidates */
    for (i = p.kind == CARNN_PREDICTS_SCORE || !texts ? 0 : texts - 1; i < texts; i++)
        puts(carnn_dataset_text(data, number, i));
    if (p.kind == CARNN_PREDICTS_SCORE) printf("score %s\n", prediction_text(&p, 0));
    if (p.kind == CARNN_PREDICTS_CHOICES && p.count)
        printf("answer: %s (probability %.4f)\n", prediction_text(&p, 0), *p.probability);
    part = print_parts(p.kind == CARNN_PREDICTS_LIKELIHOOD ? "next word" : NULL, (size_t)-1,
                       p.candidate ? 0.005 : 0.0);
    print_alignment(0, part);
    print_alignment(1, part);
    putchar('\n');
    free(part);
}

static void explain(void) {
    size_t count, first = arg.example ? (size_t)arg.example - 1 : 0, i;
    carnn_explanation e;
    carnn_prediction p;
    open_session(NULL);
    check(carnn_session_explain(session, 0, NULL, &e, &error)); /* not every model can */
    data = load_data(&arg.data, NULL, 0, 1);
    count = carnn_dataset_examples(data);
    if (!count) say_empty(BAD_DATA, "explain");
    if (first >= count) say(BAD_DATA, "%s: has only %zu example%s", called_all(&arg.data), count,
                            count == 1 ? "" : "s");
    check(carnn_session_example(session, data, first, 1, &p, &error));
    free(explained(&e)); /* not every ensemble can */
    if (arg.example) count = first + 1;
    for (i = first; i < count; i++) explain_example(i, i > first);
}

static void chat(void) {
    const char *reply;
    size_t tabs = 0;
    open_session("dialog");
    if (is_talk())
        fputs("Say something; an empty line begins a new dialog, Ctrl-D ends.\n", stderr);
    while (next_said()) {
        if (arg.explain && !is_talk()) printf("> %s\n", input.text);
        if (!input.length) carnn_session_reset(session);
        else if (*input.text == '\t')
            check(carnn_session_hear(session, CARNN_FACT, input.text + 1, input.length - 1,
                                     &error));
        else {
            if (strchr(input.text, '\t') && !tabs++)
                say(DONE, STANDARD_INPUT ":%zu: has a tab; each line is taken for what the user "
                    "says (data are for predict)", input.number);
            check(carnn_session_reply(session, input.text, input.length, &reply, &error));
            puts(reply);
            if (arg.explain) free(print_parts(NULL, 3, 0.0)), putchar('\n');
        }
    }
}

typedef struct sentence {
    double score;
    carnn_text text;
} sentence;

/* The best first, of equal ones the first of the file. */
static int by_score(const void *a_, const void *b_) {
    const sentence *a = (const sentence *)a_, *b = (const sentence *)b_;
    if (a->score > b->score || a->score < b->score) return a->score > b->score ? -1 : 1;
    return a->text.at < b->text.at ? -1 : 1;
}

static void rank(void) {
    static sentence *sentences;
    size_t i, count = 0, room = 0, tabs = 0;
    carnn_text pair[2];
    carnn_prediction p;
    line text;
    if (!arg.question) say(USAGE, "rank: --question TEXT is missing");
    if (arg.data.count > 1) say(USAGE, "rank: one --data is all that can be read here");
    open_session("answer");
    text = read_text(*arg.data.item);
    pair[0] = text_of(arg.question);
    while (cut_line(&text, &input)) {
        if (is_blank(&input)) continue; /* no sentence */
        tabs += !count && strchr(input.text, '\t');
        if (carnn_session_compares(session))
            check(carnn_session_candidate(session, input.text, input.length, &error));
        sentences = (sentence *)grow(sentences, count, &room, sizeof *sentences);
        sentences[count++] = (sentence){0.0, {input.text, input.length}};
    }
    for (i = 0; i < count; i++) {
        pair[1] = sentences[i].text;
        check(carnn_session_predict(session, pair, 2, 1, &p, &error));
        sentences[i].score = p.score;
    }
    if (!count || tabs)
        say(DONE, "%s: %s", called(*arg.data.item),
            tabs ? "has tabs; each line is taken for one sentence" : "has no sentences to rank");
    if (count) qsort(sentences, count, sizeof *sentences, by_score);
    for (i = 0; i < count && (!arg.top || i < (size_t)arg.top); i++) {
        printf("%.9g\t", sentences[i].score);
        fwrite(sentences[i].text.at, 1, sentences[i].text.length, stdout);
        putchar('\n');
    }
}

static void generate(void) {
    const char *prompt = arg.prompt ? arg.prompt : "";
    size_t i, room, words, longest = 0, sentences = arg.sentences ? (size_t)arg.sentences : 10;
    static char *text;
    open_session("lm");
    arg.sampling.seed = arg.model.seed ? arg.model.seed : 1;
    if (!arg.sampling.words) arg.sampling.words = 100;
    if (arg.sampling.top_p < 0.0 || arg.sampling.top_p > 1.0) /* 0 is CARNN_NONE */
        say(USAGE, "generate: --top-p: expected a number above 0, up to 1");
    if (arg.sampling.words > CARNN_SAMPLING_WORDS)
        say(USAGE, "generate: --words: expected up to %d", CARNN_SAMPLING_WORDS);
    words = strlen(prompt) + (size_t)arg.sampling.words; /* a prompt has no more words than bytes */
    for (i = 0; i < carnn_model_word_count(model); i++)
        longest = most(longest, strlen(carnn_model_word(model, i)));
    room = words < SIZE_MAX / 2 / (longest + 1) ? words * (longest + 1) + 1 : SIZE_MAX / 2;
    text = (char *)resize(NULL, room, 1);
    for (i = 0; i < sentences; i++, prompt = "") {
        check(carnn_session_generate(session, &arg.sampling, prompt, strlen(prompt), text, room,
                                     &error));
        puts(text);
        flush_output(FAILED);
        if (*prompt && strstr(text, carnn_model_word(model, 0))) /* which is never drawn */
            say(DONE, "generate: %s stands for %s of --prompt that the model does not know",
                carnn_model_word(model, 0), words_called(model));
    }
}

static void cloze(void) {
    carnn_source *sources = open_sources(&arg.files), *asked = open_source(arg.asked);
    carnn_book_desc desc = {.sources = sources, .source_count = arg.files.count,
                            .sentences = arg.sentences, .stride = arg.stride,
                            .seed = (uint64_t)arg.model.seed, .asked = asked};
    const char *question;
    carnn_book *book;
    struct stat found;
    size_t i, questions = 0;
    for (i = 0; i < arg.files.count; i++) /* before anything is printed */
        if (strcmp(arg.files.item[i], "-") && stat(arg.files.item[i], &found))
            say(FAILED, "%s: %s", arg.files.item[i], strerror(errno));
    check(carnn_book_open(&book, &desc, &error));
    do {
        check(carnn_book_question(book, &question, &error));
        if (question) fputs(question, stdout), questions++;
    } while (question);
    if (!questions)
        say(BAD_DATA, "%s: expected %s that are said twice within %.0f sentences, of 2,048 words "
            "at most, found none (--sentences)", called_all(&arg.files),
            arg.asked ? "words of --asked"
                      : "names (words with a capital within sentences, three times or more)",
            (double)(arg.sentences ? arg.sentences : 20) + 1.0);
    carnn_book_free(book);
    free(asked);
    free(sources);
}

/* ==== ask ==================================================================================== */
/* A text as words with blanks between them. */
static char *words_of(const char *text, size_t length) {
    size_t size = 2 * length + 1;
    char *words = (char *)resize(NULL, size, 1);
    carnn_prose(text, length, words, size);
    return words;
}

/* Where the model looked: the sentences with some attention, and what the places of the answer add
   up to. */
static void print_attention(const carnn_prediction *p) {
    carnn_explanation e;
    carnn_contribution *part = explained(&e);
    size_t i, k, end, places = 0;
    double sum = 0.0, high = 0.0;
    for (i = 0; i < e.count; i++) high = fmax(high, part[i].attention);
    for (i = 0; i < e.count; i = end) {
        double here = 0.0;
        for (end = i; end < e.count;) {
            here += part[end].attention;
            sum += part[end].score;
            places += part[end].score > 0.0;
            if (strchr(".?!", *part[end++].text)) break;
        }
        if (here < 0.02) continue;
        printf("%7.4f ", here);
        for (k = i; k < end; k++) {
            int marked = part[k].attention >= 0.005;
            putchar(' ');
            if (marked && is_colored()) begin_color(part[k].attention, 0.0, high);
            fputs(part[k].text, stdout);
            if (marked && is_colored()) fputs("\033[0m", stdout);
            else if (marked) printf("[%.3f]", part[k].attention);
        }
        putchar('\n');
    }
    if (e.exact && p->count)
        printf("%7.4f  is what %s has in %zu place%s: the answer's probability is exactly this "
               "sum\n", sum, e.of, places, places == 1 ? "" : "s");
    else if (p->count)
        printf("attention says where it looked; of this model the answer is no sum of it\n");
    free(part);
}

/* Answers a line: a question with XXXXX, and maybe candidates behind a tab. */
static void answer_question(const char *text, const char *names, int shown) {
    const char *own = strrchr(input.text, '\t');
    int asks_own = own && own[1 + strspn(own + 1, " |")]; /* it has candidates of its own */
    char *question = words_of(input.text, strcspn(input.text, "\t"));
    carnn_text texts[] = {text_of(text), text_of(question), text_of(asks_own ? own + 1 : names)};
    carnn_prediction p;
    if (strstr(question, "XXXXX")) {
        check(carnn_session_predict(session, texts, 3, most((size_t)arg.top, 1), &p, &error));
        on_prediction(&p, NULL);
        if (!p.count || !(p.probability[0] > 0.0f))
            say(DONE, STANDARD_INPUT ":%zu: %s", input.number,
                p.count ? "the text has none of the candidates"
                        : "the text has no names; candidates can be written behind a tab");
        else if (shown) print_attention(&p);
    } else {
        say(DONE, STANDARD_INPUT ":%zu: expected a question with XXXXX for the word that is "
            "missing", input.number);
        if (!shown) putchar('\n');
    }
    free(question);
}

static void ask(void) {
    int shown = arg.explain || is_terminal(stdout);
    char *text, *names, *at;
    size_t words = 1;
    line all;
    if (!arg.text || !strcmp(arg.text, "-"))
        say(USAGE, "ask: --text %s what the questions are about; they come from standard input",
            arg.text ? "- is not a file," : "FILE is missing,");
    open_session("cloze");
    all = read_text(arg.text);
    text = words_of(all.text, all.length);
    if (!*text) say(BAD_DATA, "%s: expected a text, found no word", arg.text);
    names = (char *)resize(NULL, strlen(text) + 1, 1);
    carnn_prose_names(model, text, names, strlen(text) + 1);
    for (at = text; *at; at++) words += *at == ' ';
    if (is_talk()) fprintf(stderr, "%zu words; ask with XXXXX for the word that is missing, Ctrl-D "
                           "ends. Names: %s\n", words, *names ? names : "none");
    while (next_said())
        if (!is_blank(&input)) answer_question(text, names, shown);
    free(names);
    free(text);
    free(all.text);
}

/* ==== info =================================================================================== */
static const char *rule_of_model(void) {
    return carnn_model_rule(model) == CARNN_ENSEMBLE_VOTE ? "vote" : "mean";
}

static void json_info(void) {
    const carnn_model_desc *d = carnn_model_describe(model);
    const carnn_scores *s = carnn_model_scores(model);
    const carnn_model *member;
    carnn_tensor t;
    size_t i;
    json(stdout, "{'file': %s, 'bytes': %z, 'task': %s, 'words': %z, 'choices': %z, "
         "'parameters': %z, 'session': %z", *arg.files.item, carnn_model_size(model), d->task,
         carnn_model_word_count(model), carnn_model_choice_count(model),
         carnn_model_parameters(model), carnn_session_size(model, NULL));
    for (i = 0; (member = carnn_model_member(model, i)) != NULL; i++) {
        if (!i) json(stdout, "'ensemble': %s, 'members': [", rule_of_model());
        json(stdout, "{");
        json_options(carnn_model_describe(member), NULL);
        json(stdout, "'parameters': %z, 'scores': {%m}}", carnn_model_parameters(member),
             carnn_model_scores(member));
    }
    if (i) json(stdout, "]");
    if (d->unsure) json(stdout, "'unsure': %s", d->unsure);
    json_options(d, NULL);
    json(stdout, "'training': {");
    json_options(d, carnn_model_training(model));
    json(stdout, "}, 'best_epoch': %g, 'scores': {'examples': %z, %m}, 'tensors': [",
         (double)carnn_model_best_epoch(model), s->examples, s);
    for (i = 0; (t = carnn_model_tensor(model, i)).name != NULL; i++)
        json(stdout, "{'name': %s, 'rows': %z, 'columns': %z, 'bits': %z}", t.name, t.rows,
             t.columns, (size_t)t.bits);
    json(stdout, "]}\n");
}

#define FIELD "%-16s" /* of all that is shown the name, such as raw_output_gate */

static void print_members(void) {
    const carnn_model *m;
    size_t i;
    for (i = 0; (m = carnn_model_member(model, i)) != NULL; i++) {
        const carnn_model_desc *d = carnn_model_describe(m);
        if (!i) printf(FIELD "%s\n", "ensemble", rule_of_model());
        printf("member %-9zu%s, hidden %lld, seed %llu, %zu parameters, ", i, d->cell,
               (long long)d->hidden, (unsigned long long)d->seed, carnn_model_parameters(m));
        print_metrics(carnn_model_scores(m));
        printf("\n");
    }
}

static void print_info(void) {
    const carnn_model_desc *d = carnn_model_describe(model);
    const carnn_train_desc *trained = carnn_model_training(model);
    const carnn_scores *s = carnn_model_scores(model);
    const carnn_option *o;
    carnn_tensor t;
    size_t i;
    printf(FIELD "%s (%zu bytes, GGUF 3)\n", "file", *arg.files.item, carnn_model_size(model));
    printf(FIELD "%s\n", "task", d->task);
    print_members();
    for (i = 0; !carnn_model_member(model, 0) && (o = carnn_option_at(d->task, i)) != NULL; i++) {
        const char *text = option_text(o, d, trained);
        if (o->kind >= CARNN_OPTION_NAME && !*text) continue;
        if (o->place != CARNN_OPTION_OF_TRAINING || (trained->optimizer && strcmp(text, "0")))
            printf(FIELD "%s\n", o->name, text);
    }
    if (d->unsure) printf(FIELD "%s\n", "unsure", d->unsure);
    printf(FIELD "%zu\n", "parameters", carnn_model_parameters(model));
    printf(FIELD "%zu\n", words_called(model), carnn_model_word_count(model));
    printf(FIELD "%zu\n", "choices", carnn_model_choice_count(model));
    printf(FIELD "%zu bytes\n", "session", carnn_session_size(model, NULL));
    if (s->count) {
        printf(FIELD, "scores");
        if (carnn_model_best_epoch(model))
            printf("epoch %lld: ", (long long)carnn_model_best_epoch(model));
        print_metrics(s);
        printf(" on ");
        print_count(stdout, s->examples, "examples", "\n");
    }
    for (i = 0; (t = carnn_model_tensor(model, i)).name != NULL; i++)
        printf(FIELD "%s (%zu, %zu)%s\n", i ? "" : "tensors", t.name, t.rows, t.columns,
               t.bits == 8 ? ", 8 bits" : "");
}

static void info(void) {
    load_model(0);
    (arg.json ? json_info : print_info)();
}

/* ==== Pictures =============================================================================== */
enum { MARGIN = 64, HEAD = 40, LEGEND = 22 /* from one line to the next */ };

static line picture; /* what is drawn into, in SVG */

/* Adds the format with ' as a quotation mark, %s as text of XML, %d as an int, %g as a coordinate,
   %n as a number, however small. */
static void svg(const char *format, ...) {
    va_list values;
    va_start(values, format);
    for (; *format; format++)
        if (*format != '%') add_text(&picture, "%c", *format == '\'' ? '"' : *format);
        else if (*++format == 'd') add_text(&picture, "%d", va_arg(values, int));
        else if (strchr("gn", *format))
            add_text(&picture, *format == 'g' ? "%.1f" : "%.6g", va_arg(values, double));
        else add_escaped(&picture, va_arg(values, const char *), "<>&", "&#%d;");
    va_end(values);
}

static void begin_picture(int width, int height) {
    svg("<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' font-family='sans-serif' "
        "font-size='12'>\n<rect width='%s' height='%s' fill='white'/>\n", width, height, "100%",
        "100%");
}

static void end_picture(void) {
    size_t length = strlen(arg.out);
    svg("</svg>\n");
    write_result(&picture, arg.out);
    if (length < 4 || strcmp(arg.out + length - 4, ".svg"))
        say(DONE, "%s is a picture in the format SVG, whatever its name ends in", arg.out);
}

/* ==== plot =================================================================================== */
/* What of an epoch is read: a number of the line's object, or of the object `within` it. Those from
   TRAIN_LOSS on are curves; all of one name are in one panel. */
enum {
    EPOCH, BEST_EPOCH, TRAIN_LOSS, VALID_LOSS, SCORE, NORM_1, NORM_5, NORM_10, ACTIVATIONS, LOGGED
};
static const struct {
    const char *within, *name; /* name NULL: the first metric, which chooses the best epoch */
} logged[LOGGED] = {{"", "epoch"}, {"", "best_epoch"}, {"", "loss"}, {"valid", "loss"},
                    {"valid", NULL}, {"states", "log_norm_1"}, {"states", "log_norm_5"},
                    {"states", "log_norm_10"}, {"activations", "activations"}};

typedef struct point { double epoch, value; } point;

typedef struct curve {
    const char *name;
    struct point *point;
    size_t count, room;
} curve;

typedef struct history { /* a run or a fold of it, as `train --log` wrote it */
    const char *file;
    size_t fold;     /* from 1; 0: it has none */
    char metric[32]; /* "" while there is none */
    double best;     /* the epoch with the best one */
    struct curve curve[LOGGED];
} history;

static const char *logged_name(const history *h, size_t number) {
    return logged[number].name ? logged[number].name : h->metric;
}

/* A run that was resumed may write an epoch again: then the later line counts. */
static void add_point(curve *c, double epoch, double value) {
    while (c->count && c->point[c->count - 1].epoch >= epoch) c->count--;
    if (!is_finite(value)) return;
    c->point = (point *)grow(c->point, c->count, &c->room, sizeof *c->point);
    c->point[c->count++] = (point){epoch, value};
}

/* Reads a line: an object of numbers, strings and objects of them; 0: it is none. */
static int read_epoch(history *h, double *e, const char *s) {
    char key[sizeof h->metric], within[sizeof h->metric] = "", *end;
    size_t i;
    if (*s++ != '{') return 0;
    for (;;) {
        double number = NAN; /* also where it cannot be drawn */
        int length = 0;
        sscanf(s, " \"%31[^\"]\" : %n", key, &length);
        if (!length) return 0;
        s += length;
        if (*s == '{' && !*within) {
            strcpy(within, key);
            s++;
            continue;
        }
        if (*s == '"') {
            for (s++; *s && *s != '"'; s++) s += *s == '\\' && s[1];
            if (!*s++) return 0;
        } else if (!strncmp(s, "null", 4)) s += 4;
        else {
            number = strtod(s, &end);
            if (end == s || !is_finite(number)) return 0;
            if (fabs(number) >= 1e30) number = NAN;
            s = end;
        }
        if (!*h->metric && !strcmp(within, "valid") && strcmp(key, "loss") && strcmp(key, "tokens"))
            strcpy(h->metric, key);
        if (!strcmp(within, "activations")) { /* a share, of a bin of [-1, 1) that begins here */
            double begins = atof(key);
            if (!(fabs(begins) <= 1.0)) return 0;
            add_point(&h->curve[ACTIVATIONS], begins + 1.0 / CARNN_PROBE_BINS, number);
        }
        for (i = 0; i < LOGGED; i++)
            if (!strcmp(within, logged[i].within) && !strcmp(key, logged_name(h, i))) e[i] = number;
        s += strspn(s, " \t");
        if (*within && *s == '}') *within = '\0', s += 1 + strspn(s + 1, " \t");
        if (*s == '}') return !s[1 + strspn(s + 1, " \t")];
        if (*s++ != ',') return 0;
    }
}

/* Does the line end before its object does? A run that was killed may have left such a line, or one
   that met a full disk. */
static int is_cut_off(const char *s) {
    int open = 0;
    if (*s != '{') return 0;
    for (; *s; s++) open += (*s == '{') - (*s == '}');
    return open > 0;
}

#define LINE_MOST 65536 /* bytes: sscanf() looks for the end of the line at every key */

/* Reads a file to runs[*count] and on: a run, or its folds one after the other. */
static void read_histories(history runs[MODELS], size_t *count, const char *file) {
    const char *name = called(file);
    line all = read_text(file), rest = all, l = {NULL, 0, 0, 0};
    history *h = NULL;
    size_t i;
    while (cut_line(&rest, &l)) {
        double e[LOGGED];
        size_t fold = 0;
        if (is_cut_off(l.text)) {
            say(DONE, "%s:%zu: the line is cut off, and left out", name, l.number);
            continue;
        }
        sscanf(l.text, " {\"fold\" : %zu", &fold);
        if (!h || h->fold != fold) {
            if (*count == MODELS)
                say(USAGE, "%s:%zu: %d runs and folds can be drawn together, not more", name,
                    l.number, MODELS);
            h = &runs[(*count)++];
            *h = (history){.file = name, .fold = fold, .best = NAN};
        }
        for (i = 0; i < LOGGED; i++) e[i] = NAN;
        if (l.length > LINE_MOST || !read_epoch(h, e, l.text) || !is_finite(e[TRAIN_LOSS]) ||
            !(e[EPOCH] >= 1.0 && e[EPOCH] <= 1e15) || /* it could not be drawn */
            fold > 1000000000)                        /* "-1" is read as SIZE_MAX */
            say(BAD_DATA, "%s:%zu: expected an object with \"epoch\" and \"loss\", as train --log "
                "writes it", name, l.number);
        if (is_finite(e[BEST_EPOCH])) h->best = e[BEST_EPOCH];
        for (i = TRAIN_LOSS; i < ACTIVATIONS; i++) add_point(&h->curve[i], e[EPOCH], e[i]);
        for (i = 0; i < LOGGED; i++) h->curve[i].name = logged_name(h, i);
    }
    if (!h) say(BAD_DATA, "%s:1: expected an epoch, found %s", name,
                l.number ? "none" : "an empty file");
    free(all.text);
}

/* "fold 1, perplexity 3.4448 at epoch 20": the best score, or the last loss. */
static const char *summary(const history *h) {
    static line text;
    const curve *score = &h->curve[SCORE], *loss = &h->curve[TRAIN_LOSS];
    const point *p = &loss->point[loss->count - 1];
    const char *name = "loss";
    size_t i;
    for (i = 0; i < score->count; i++)
        if (score->point[i].epoch == h->best) name = h->metric, p = &score->point[i];
    text.length = 0;
    if (h->fold) add_text(&text, "fold %zu, ", h->fold);
    add_text(&text, "%s %s at epoch %.0f", name, decimal(p->value), p->epoch);
    return text.text;
}

typedef struct panel { /* a diagram of the curves of one name */
    const char *name;
    double left, right, bottom, top; /* epochs and values at its edges */
    double across, up;               /* from one mark on the axis to the next */
} panel;

static const char *axis_of(const panel *p) {
    return strcmp(p->name, logged[ACTIVATIONS].name) ? "epoch" : "value";
}

/* Where a point is, as a part of the panel from the left, or from the top. */
static double x_of(const panel *p, double x) { return (x - p->left) / (p->right - p->left); }
static double y_of(const panel *p, double y) { return (p->top - y) / (p->top - p->bottom); }

/* 1, 2 or 5 times a power of 10, of which about five make the range. */
static double mark_step(double range) {
    double power = pow(10.0, floor(log10(range / 5.0))), times = range / 5.0 / power;
    return power * (times <= 1.0 ? 1.0 : times <= 2.0 ? 2.0 : times <= 5.0 ? 5.0 : 10.0);
}

/* What a mark reads: what rounding leaves of 0 is 0. */
static double mark_value(const panel *p, double mark) {
    return fabs(mark) < 0.5 * p->up ? 0.0 : mark;
}

/* A panel around all that it shows, so high that its marks differ in six digits; 0: that is
   nothing. */
static int make_panel(panel *p, const char *name, const history *h, size_t runs) {
    size_t i, k;
    *p = (panel){name, INFINITY, -INFINITY, INFINITY, -INFINITY, 0.0, 0.0};
    for (i = 0; i < LOGGED * runs; i++) {
        const curve *c = &h[i / LOGGED].curve[i % LOGGED];
        for (k = 0; k < c->count && !strcmp(c->name, name); k++) {
            p->left = fmin(p->left, c->point[k].epoch);
            p->right = fmax(p->right, c->point[k].epoch);
            p->bottom = fmin(p->bottom, c->point[k].value);
            p->top = fmax(p->top, c->point[k].value);
        }
    }
    if (p->left > p->right) return 0;
    p->right = fmax(p->right, p->left + 1.0);
    p->across = fmax(mark_step(p->right - p->left), 1.0);
    p->up = mark_step(fmax(p->top - p->bottom, 5e-5 * fmax(fabs(p->top), 0.02)));
    p->bottom = p->up * floor(p->bottom / p->up);
    p->top = fmax(p->up * ceil(p->top / p->up), p->bottom + p->up);
    return 1;
}

enum { ROWS = 16, COLUMNS = 64 };

static size_t row_of(const panel *p, double y) { return (size_t)((ROWS - 1) * y_of(p, y) + 0.5); }

/* A letter on the straight line through the points of a curve; several make a star. */
static void text_curve(char field[ROWS][COLUMNS], const panel *p, const curve *c, char letter) {
    double last = COLUMNS - 1, column;
    size_t i;
    for (i = 0; i < c->count && !strcmp(c->name, p->name); i++) {
        const point *to = &c->point[i], *from = i ? to - 1 : to;
        column = ceil(last * x_of(p, from->epoch));
        for (; column <= last * x_of(p, to->epoch); column++) {
            double epoch = p->left + (p->right - p->left) * column / last;
            double share = i ? (epoch - from->epoch) / (to->epoch - from->epoch) : 0.0;
            double value = from->value + share * (to->value - from->value);
            char *at = &field[row_of(p, value)][(size_t)column];
            *at = *at == ' ' || *at == letter ? letter : '*';
        }
    }
}

/* One run is the letter a, the next b; capitals are scores and losses of the validation set. */
static void text_panel(const panel *p, const history *h, size_t runs) {
    char field[ROWS][COLUMNS], label[ROWS][16] = {""};
    size_t i, k;
    double mark;
    memset(field, ' ', sizeof field);
    for (i = 0; i < runs; i++)
        for (k = 0; k < LOGGED; k++)
            text_curve(field, p, &h[i].curve[k], (char)((*logged[k].within ? 'A' : 'a') + i % 26));
    for (mark = p->bottom; mark < p->top + 0.5 * p->up; mark += p->up)
        snprintf(label[row_of(p, mark)], sizeof *label, "%.6g", mark_value(p, mark));
    printf("%s\n", p->name);
    for (i = 0; i < ROWS; i++) printf("%10s |%.*s\n", label[i], COLUMNS, field[i]);
    memset(field, '-', sizeof field);
    printf("%10s +%.*s\n", "", COLUMNS, field[0]);
    printf("%13.0f%*.0f %s\n\n", p->left, COLUMNS - 1, p->right, axis_of(p));
}

enum { WIDE = 380, HIGH = 260, FOOT = 64 }; /* of a panel; they stand side by side */

static const char svg_color[8][8] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                     "#e69f00", "#56b4e9", "#000000", "#999999"};

static void svg_axes(const panel *p) {
    double mark;
    svg("<text y='-12' font-weight='bold'>%s</text>\n<path d='M0 0v%dh%d' stroke='#333' "
        "fill='none'/>\n<text x='%d' y='%d' text-anchor='end'>%s</text>\n", p->name, HIGH, WIDE,
        WIDE, HIGH + 36, axis_of(p));
    for (mark = p->bottom; mark < p->top + 0.5 * p->up; mark += p->up)
        svg("<path d='M0.0 %gh%d' stroke='#ddd'/><text x='-8.0' y='%g' text-anchor='end'>%n</text>"
            "\n", HIGH * y_of(p, mark), WIDE, HIGH * y_of(p, mark) + 4.0, mark_value(p, mark));
    mark = p->across * ceil(p->left / p->across) + 0.0; /* + 0: no -0 is shown */
    for (; mark <= p->right; mark += p->across)
        svg("<path d='M%g %gv5' stroke='#ddd'/><text x='%g' y='%g' text-anchor='middle'>%n</text>"
            "\n", WIDE * x_of(p, mark), (double)HIGH, WIDE * x_of(p, mark), HIGH + 20.0, mark);
}

/* A dot for each point, as a curve may be one; that of the epoch `best` is larger. */
static void svg_curve(const panel *p, const curve *c, double best, const char *color,
                      const char *style) {
    const point *at;
    if (!c->count || strcmp(c->name, p->name)) return;
    svg("<polyline fill='none' stroke='%s' stroke-width='2'%s points='", color, style);
    for (at = c->point; at < c->point + c->count; at++)
        svg("%g,%g ", WIDE * x_of(p, at->epoch), HIGH * y_of(p, at->value));
    svg("'/>\n");
    for (at = c->point; at < c->point + c->count; at++)
        svg("<circle cx='%g' cy='%g' r='%d' fill='%s'/>\n", WIDE * x_of(p, at->epoch),
            HIGH * y_of(p, at->value), at->epoch == best ? 5 : 2, color);
}

static void svg_panels(const panel *p, size_t panels, const history *h, size_t runs) {
    size_t i, r, k;
    int below = HEAD + HIGH + FOOT;
    begin_picture((int)panels * (MARGIN + WIDE) + MARGIN / 2, below + (int)(runs + 1) * LEGEND);
    for (i = 0; i < panels; i++, p++) {
        svg("<g transform='translate(%d,%d)'>\n", (int)i * (MARGIN + WIDE) + MARGIN, HEAD);
        svg_axes(p);
        for (r = 0; r < runs; r++)
            for (k = 0; k < LOGGED; k++)
                svg_curve(p, &h[r].curve[k], k == SCORE ? h[r].best : NAN, svg_color[r % 8],
                          *logged[k].within ? "" : " stroke-dasharray=\"5 3\"");
        svg("</g>\n");
    }
    for (r = 0; r < runs; r++, below += LEGEND)
        svg("<path d='M%d %dh24' stroke='%s' stroke-width='3'/><text x='%d' y='%d'>%s: %s</text>\n",
            MARGIN, below, svg_color[r % 8], MARGIN + 32, below + 4, h[r].file, summary(&h[r]));
    svg("<text x='%d' y='%d' fill='#666'>dashed: training, solid: validation, dot: best</text>\n",
        MARGIN, below + 4);
    end_picture();
}

static void plot(void) {
    static history h[MODELS];
    panel p[MODELS + LOGGED];
    size_t i, k, runs = 0, panels = 0;
    for (i = 0; i < arg.files.count; i++) read_histories(h, &runs, arg.files.item[i]);
    for (i = 0; i < LOGGED * runs; i++) {
        const char *name = h[i / LOGGED].curve[i % LOGGED].name;
        for (k = 0; k < panels && strcmp(p[k].name, name);) k++;
        if (k == panels) panels += (size_t)make_panel(p + panels, name, h, runs);
    }
    if (arg.out) svg_panels(p, panels, h, runs);
    for (i = 0; i < panels && !arg.out; i++) text_panel(&p[i], h, runs);
    for (i = 0; i < runs && !arg.out; i++)
        printf("  %c  %s: %s\n", (char)('a' + i % 26), h[i].file, summary(&h[i]));
    if (!arg.out) printf("  small letters: training, capitals: validation, *: several\n");
}

/* ==== gradcheck, bench ======================================================================= */
static const char *only_name(void) { return arg.files.count ? *arg.files.item : NULL; }

static int check_row(const carnn_check *c, void *user) {
    *(int *)user += !c->passed;
    printf("%-6s  %-24s %6zu derivatives  error %.2e  limit %.0e  %s%s\n", c->group, c->name,
           c->numbers, c->error, c->limit, c->passed ? "ok" : "WRONG: ", c->passed ? "" : c->worst);
    flush_output(FAILED);
    return 0;
}

/* Ends the program where no row has the name, and says which one may be meant: a group of rows, of
   which NULL is behind the last, a cell or a task. */
static void check_name(carnn_status status, const char *const *group) {
    if (status == CARNN_ERR_ARGUMENT && only_name()) {
        guess g = guess_for(only_name());
        int known = 0;
        while (*group) known |= is_word(&g, *group++);
        known |= which_of(&g, carnn_cell_name) || which_of(&g, carnn_task_name);
        if (!known && *g.best) unknown("name", &g);
    }
    check(status);
}

static void gradcheck(void) {
    static const char *const groups[] = {"cell", "part", "head", NULL};
    int wrong = 0;
    check_name(carnn_gradcheck(only_name(), arg.model.seed ? arg.model.seed : 1, check_row, &wrong,
                               &error), groups);
    printf(wrong ? "%d wrong\n" : "all right\n", wrong);
    if (wrong) exit_code = FAILED;
}

static int bench_row(const carnn_measure *m, void *user) {
    size_t *rows = (size_t *)user;
    if (arg.json) {
        if (!(*rows)++)
            json(stdout, "{'version': %s, 'simd': %s, 'threads': %z, 'rows': [", CARNN_VERSION,
                 m->simd, m->threads);
        json(stdout, "{'group': %s, 'name': %s, 'unit': %s, 'value': %g", m->group, m->name,
             m->unit, m->value);
        if (m->share > 0.0) json(stdout, "'share': %g", m->share);
        json(stdout, "}");
        return 0;
    }
    printf("%-7s %-36s %10.4g %-12s", m->group, m->name, m->value, m->unit);
    if (m->share > 0.0) printf("%4.0f%%", 100.0 * m->share);
    putchar('\n');
    flush_output(FAILED);
    return 0;
}

static void bench(void) {
    static const char *const groups[] = {"peak", "kernel", "cell", "encoder", "task", NULL};
    size_t rows = 0;
    carnn_status status;
    if (!carnn_simd_used(arg.simd, &error)) exit(failed()); /* or check_name blames the row */
    status = carnn_bench(only_name(), arg.simd, arg.training.threads, bench_row, &rows, &error);
    if (rows) json(stdout, "]}\n");
    check_name(status, groups);
}

/* ==== depth ================================================================================== */
static const struct {
    const char *name, *title, *color; /* nearly the colours of the thesis */
} measures[] = {
    {"recurrent_depth", "recurrent depth", "#d55e00"},
    {"feedforward_depth", "feedforward depth", "#f0c000"},
    {"skip_coefficient", "skip coefficient", "#0072b2"},
};

static const carnn_graph_value *measured(const carnn_graph_measures *m, size_t number) {
    const carnn_graph_value *values[] = {&m->recurrent_depth, &m->feedforward_depth,
                                         &m->skip_coefficient};
    return values[number];
}

/* "3/2", "2", "none" */
static const char *fraction(const carnn_graph_value *v) {
    static char text[48];
    const char *format = v->denominator > 1 ? "%lld/%lld" : v->denominator ? "%lld" : "none";
    snprintf(text, sizeof text, format, (long long)v->numerator, (long long)v->denominator);
    return text;
}

static void print_measure(const carnn_graph *g, size_t number, const carnn_graph_value *v) {
    size_t size = carnn_graph_path(g, v, NULL, 0) + 1;
    char *path = (char *)resize(NULL, size, 1);
    carnn_graph_path(g, v, path, size);
    if (!arg.json) printf("  %-17s  %-5s  ", measures[number].title, fraction(v));
    if (arg.json && v->denominator)
        json(stdout, "%s: {'numerator': %g, 'denominator': %g, 'length': %z, 'delay': %g, "
             "'path': %s}", measures[number].name, (double)v->numerator, (double)v->denominator,
             v->length, (double)v->delay, path);
    else if (arg.json) json(stdout, "%s: %s", measures[number].name, (char *)NULL);
    else if (v->denominator)
        printf("length %zu, delay %lld: %s\n", v->length, (long long)v->delay, path);
    else puts("no path from an input to an output");
    free(path);
}

/* What a graph is and its measures, of one that is bidirectional for both directions. */
static void print_graph(const carnn_graph *g, const char *name) {
    static const char *const directions[] = {"forward", "backward"};
    size_t nodes = 0, edges = 0, i;
    int both = carnn_graph_measure(g, 0) && carnn_graph_measure(g, 1), backward;
    while (carnn_graph_node_at(g, nodes)) nodes++;
    while (carnn_graph_edge_at(g, edges)) edges++;
    if (arg.json)
        json(stdout, "{'graph': %s, 'directions': %z, 'period': %g, 'nodes': %z, 'edges': %z, "
             "'measures': [", name, (size_t)both + 1, (double)carnn_graph_period(g), nodes, edges);
    else printf("%s: valid, %s, period %lld, %zu nodes, %zu edges\n", name,
                both ? "bidirectional" : "unidirectional", (long long)carnn_graph_period(g), nodes,
                edges);
    for (backward = 0; backward < 2; backward++) {
        const carnn_graph_measures *m = carnn_graph_measure(g, backward);
        if (!m) continue;
        if (arg.json) json(stdout, "{'direction': %s", directions[backward]);
        else if (both || backward) printf(" %s in time:\n", directions[backward]);
        for (i = 0; i < COUNT(measures); i++) print_measure(g, i, measured(m, i));
        if (arg.json) json(stdout, "}");
    }
    if (arg.json) json(stdout, "]}");
}

/* A picture: a column for every time step, a row for every layer within one. */
enum { STEP = 72, RADIUS = 13, FEWEST = 5, MOST = 24 /* steps */ };

static struct { /* what is drawn */
    const carnn_graph *graph;
    size_t nodes, edges, rows, slots, steps; /* slots: nodes beside each other in a row of a step */
    int64_t period;
    size_t *row, *slot;                      /* (nodes); row 0 is the lowest */
    double left;                             /* of the part that is being drawn */
} drawn;

static const carnn_graph_node *node(size_t i) { return carnn_graph_node_at(drawn.graph, i); }
static const carnn_graph_edge *edge(size_t i) { return carnn_graph_edge_at(drawn.graph, i); }
static int64_t start_of(size_t number) { return node(edge(number)->from)->time; }

/* Edges within a step lead upwards: a valid graph has no cycle of them. */
static void place_nodes(void) {
    size_t v, u, i, largest = (size_t)drawn.period;
    int changed = 1;
    drawn.row = (size_t *)resize(NULL, 2 * drawn.nodes, sizeof *drawn.row);
    drawn.slot = drawn.row + drawn.nodes;
    for (v = 0; v < drawn.nodes; v++) drawn.row[v] = node(v)->kind != CARNN_NODE_IN;
    while (changed)
        for (changed = 0, i = 0; i < drawn.edges; i++) {
            size_t *from = &drawn.row[edge(i)->from], *to = &drawn.row[edge(i)->to];
            if (edge(i)->delay || *to > *from) continue;
            *to = *from + 1;
            changed = 1;
        }
    for (i = 0; i < drawn.edges; i++) largest = most(largest, (size_t)llabs(edge(i)->delay));
    drawn.steps = least(MOST, most(FEWEST, largest + 2));
    for (v = 0; v < drawn.nodes; v++) {
        for (drawn.slot[v] = u = 0; u < v; u++)
            drawn.slot[v] += drawn.row[u] == drawn.row[v] && node(u)->time == node(v)->time;
        drawn.slots = most(drawn.slots, drawn.slot[v] + 1);
        drawn.rows = most(drawn.rows, drawn.row[v] + 1);
    }
}

static double node_x(size_t v, int64_t t) {
    return drawn.left + STEP * ((double)t * (double)drawn.slots + (double)drawn.slot[v] + 0.5);
}
static double node_y(size_t v) {
    return HEAD + STEP * ((double)(drawn.rows - drawn.row[v]) - 0.5);
}

static void draw_node(size_t v, int64_t t) {
    static const char *const shapes[] = {"M-12 -12h24v24h-24z", "M-13 0a13 13 0 1 1 0 .01z",
                                         "M0 -15l15 15l-15 15l-15 -15z"};
    svg("<g transform='translate(%g,%g)'><path d='%s' fill='white' stroke='#333'/><text y='4' "
        "text-anchor='middle'>%s</text></g>\n", node_x(v, t), node_y(v), shapes[node(v)->kind],
        node(v)->name);
}

/* An edge that starts at time t, straight between neighbours; `folded` to the time of its node, and
   with its delay, if that is not 0. Edges between the same nodes are bent more and more. */
static void draw_edge(size_t number, int64_t t, int folded, const char *style) {
    const carnn_graph_edge *e = edge(number);
    double x = node_x(e->from, t), y = node_y(e->from), bend = 0.0, over = 0.0;
    double right = node_x(e->to, folded ? node(e->to)->time : t + e->delay) - x;
    double down = node_y(e->to) - y, length = hypot(right, down), from, to;
    double mx, my; /* from (x, y) to the point that bends the edge, then to the text */
    size_t i;
    for (i = 0; folded && i < number; i++) over += edge(i)->from == e->from && edge(i)->to == e->to;
    if (length < 1.0) { /* from a node to itself */
        over = 30.0 + 20.0 * over;
        svg("<path d='M%g %gc%g %g %g %g 0 14' %s/>", x + 11.0, y - 7.0, over, -0.5 * over, over,
            14.0 + 0.5 * over, style);
        mx = 20.0 + 0.75 * over, my = 4.0;
    } else {
        if (folded ? e->delay || over > 0.0 || length > 1.5 * STEP
                   : length > 1.5 * STEP * (double)drawn.slots)
            bend = fmin(0.2 * length, 0.7 * STEP) + 14.0 * over;
        mx = 0.5 * right - bend * down / length;
        my = 0.5 * down + bend * right / length;
        from = RADIUS / hypot(mx, my);
        to = (RADIUS + 2) / hypot(mx - right, my - down);
        svg("<path d='M%g %gQ%g %g %g %g' %s/>", x + from * mx, y + from * my, x + mx, y + my,
            x + right + to * (mx - right), y + down + to * (my - down), style);
        mx += (0.5 * bend - 9.0) * down / length; /* beside the curve */
        my += (9.0 - 0.5 * bend) * right / length + 4.0;
    }
    if (folded && e->delay && strstr(style, "marker"))
        svg("<text x='%g' y='%g' text-anchor='middle'>%d</text>", x + mx, y + my, (int)e->delay);
    svg("\n");
}

/* Draws what attains a value from time t on, a cycle as long as it stays within the picture (style
   NULL: nothing), and returns the number of edges that are in it. */
static size_t draw_walk(const carnn_graph_value *v, int64_t t, int cycle, const char *style) {
    size_t i;
    for (i = 0; cycle || i < v->length; i++) {
        size_t number = v->edge[i % v->length];
        int64_t end = t + edge(number)->delay;
        if (end < 0 || end >= (int64_t)drawn.steps) break;
        if (style) draw_edge(number, t, 0, style);
        t = end;
    }
    return i;
}

/* What attains a value; in the unfolding from where on most of it has room in the picture. */
static void draw_value(const carnn_graph_value *v, size_t number, int folded) {
    int64_t t, best = 0;
    int cycle = number != 1;
    size_t i, longest = 0;
    char style[96];
    snprintf(style, sizeof style, "fill=\"none\" stroke=\"%s\" stroke-width=\"%d\" opacity=\"0.5\"",
             measures[number].color, 12 - 3 * (int)number);
    for (i = 0; folded && i < v->length; i++) draw_edge(v->edge[i], start_of(v->edge[i]), 1, style);
    if (folded || !v->length) return;
    for (t = start_of(*v->edge); t < (int64_t)drawn.steps; t += drawn.period)
        if (draw_walk(v, t, cycle, NULL) > longest) longest = draw_walk(v, best = t, cycle, NULL);
    if (longest) draw_walk(v, best, cycle, style);
}

/* The graph, or its unfolding: what attains the measures below, then edges, then nodes. */
static void draw_part(int folded) {
    static const char plain[] = "fill=\"none\" stroke=\"#333\" marker-end=\"url(#arrow)\"";
    int64_t t, end, last = folded ? drawn.period : (int64_t)drawn.steps;
    size_t i;
    for (i = 0; i < 2 * COUNT(measures); i++) {
        const carnn_graph_measures *m = carnn_graph_measure(drawn.graph, i % 2);
        if (m) draw_value(measured(m, i / 2), i / 2, folded);
    }
    for (i = 0; i < drawn.edges; i++)
        for (t = start_of(i); t < last; t += drawn.period) {
            end = t + edge(i)->delay;
            if (folded || (end >= 0 && end < last)) draw_edge(i, t, folded, plain);
        }
    for (i = 0; i < drawn.nodes; i++)
        for (t = node(i)->time; t < last; t += drawn.period) draw_node(i, t);
}

static void draw_graph(const carnn_graph *g, const char *name) {
    const carnn_graph_measures *m;
    int folded, below;
    size_t i, k;
    drawn.graph = g;
    drawn.period = carnn_graph_period(g);
    while (node(drawn.nodes)) drawn.nodes++;
    while (edge(drawn.edges)) drawn.edges++;
    place_nodes();
    folded = STEP * (int)drawn.slots * (int)drawn.period + MARGIN;
    below = HEAD + STEP * (int)drawn.rows + LEGEND;
    begin_picture(folded + MARGIN + STEP * (int)(drawn.slots * drawn.steps), below + 3 * LEGEND);
    svg("<defs><marker id='arrow' refX='6' refY='4' markerWidth='8' markerHeight='8' "
        "orient='auto'><path d='M0 1L7 4L0 7z' fill='#333'/></marker></defs>\n"
        "<text x='16' y='24' font-weight='bold'>%s</text>\n", name);
    drawn.left = MARGIN / 2;
    draw_part(1);
    drawn.left += folded;
    draw_part(0);
    for (k = 0; k < COUNT(measures); k++, below += LEGEND) {
        svg("<path d='M16 %dh24' stroke='%s' stroke-width='%d' opacity='0.5'/><text x='48' y='%d'>"
            "%s", below, measures[k].color, 12 - 3 * (int)k, below + 4, measures[k].title);
        for (i = 0; i < 2; i++)
            if ((m = carnn_graph_measure(g, (int)i)) != NULL) svg(" %s", fraction(measured(m, k)));
        svg("</text>\n");
    }
    end_picture();
    free(drawn.row);
}

/* All graphs are read before any is printed: one that is not valid leaves no half of a result. */
static void depth(void) {
    static carnn_graph *graph[MODELS];
    carnn_source *sources = open_sources(&arg.files);
    size_t i;
    for (i = 0; i < arg.files.count; i++)
        check(carnn_graph_load(&graph[i], &sources[i], NULL, &error));
    if (arg.out && (arg.files.count > 1 || carnn_graph_period(*graph) > MOST))
        say(USAGE, "depth: --out draws one graph, with a period of at most %d", MOST);
    if (arg.out) draw_graph(*graph, sources->name);
    if (arg.json) json(stdout, "{'graphs': [");
    for (i = 0; i < arg.files.count; i++) print_graph(graph[i], sources[i].name);
    if (arg.json) json(stdout, "]}\n");
    free(sources);
}

/* ==== Commands and help ====================================================================== */
static void version(void) {
    const char *simd = carnn_simd_used(NULL, &error);
    if (!simd) exit(failed());
    printf("carnn %s (%s)\n", CARNN_VERSION, simd);
}

static void help(void);

static const command commands[] = {
    {"train", "--task NAME --train FILE --out MODEL [options]", "trains a model, keeps its best",
     "  carnn train --task dialog --train train.txt --valid dev.txt --out bot.gguf\n"
     "  carnn train --task classify --train train.txt --folds 10 --json\n"
     "\nCtrl-C ends a training and saves it; the same command with --resume goes on.\n",
     TRAIN, train, 0, 0},
    {"test", "MODEL... --data FILE [options]", "scores models; several: each one, then their vote",
     "  carnn test seed1.gguf seed2.gguf --data test.txt --json\n"
     "  carnn test seed?.gguf --data test.txt --ensemble greedy --valid dev.txt --out all.gguf\n"
     "\nWithout --ensemble the vote is, in dialog, for the reply that most models choose, "
     "elsewhere the\nmean of what the models say. p is the probability that means over dialogs, "
     "questions,\nsentences or examples differ by chance as much from those of the first model "
     "(paired bootstrap).\n",
     TEST, test, 1, MODELS},
    {"predict", "MODEL [--data FILE] [options]", "writes one line per example: what the model says",
     "  carnn predict bot.gguf --top 3 < test.txt\n"
     "  (echo predicted; carnn predict c.gguf --data table.tsv) | paste table.tsv -\n"
     "\nData are as for train, but what is right may be missing. A first line that names columns\n"
     "is no example, nor is an empty line of a table.\n", PREDICT, predict, 1, 1},
    {"chat", "MODEL [--explain]", "talks with a dialog model; an empty line begins a new dialog",
     "  echo 'i want cheap thai food' | carnn chat bot.gguf --explain\n"
     "\nEvery line is what the user says; but one that begins with a tab is a fact, such as the "
     "bot\nasks for by api_call, \"<tab>lemon_tree R_wait 40\". It is told without an answer, "
     "which a line\n<SILENCE> asks for then.\n", CHAT, chat, 1, 1},
    {"explain", "MODEL [--data FILE] [options]",
     "shows what words or utterances contribute to an output",
     "  carnn explain bot.gguf --data test.txt --example 4\n", EXPLAIN, explain, 1, 1},
    {"ask", "MODEL --text FILE [options] [< QUESTIONS]",
     "answers questions that leave out a word of a text (task cloze)",
     "  echo 'they thanked XXXXX for the book .' | carnn ask cloze.gguf --text story.txt\n"
     "\nA line of standard input is a question with XXXXX for the word that is missing. It is one\n"
     "of the names of the text, or one of what stands behind a tab: c1|c2|c3.\n", ASK, ask, 1, 1},
    {"cloze", "BOOK... [options]", "makes questions that leave out a word of a text from books",
     "  carnn cloze --sentences 8 alice.txt > questions.txt\n"
     "\nA book is a file with a sentence a line. Where a sentence has a name of the N before it,\n"
     "it becomes a question for this name, with up to ten candidates.\n",
     CLOZE, cloze, 1, SIZE_MAX},
    {"rank", "MODEL --question TEXT [--data FILE] [--top K]",
     "sorts sentences, the best answer first (task answer)",
     "  carnn rank qa.gguf --question 'who wrote faust ?' --data books.txt\n"
     "\nData are sentences, one a line.\n", RANK, rank, 1, 1},
    {"generate", "MODEL [options]", "samples text from a model of the task lm, a sentence a line",
     "  carnn generate lm.gguf --prompt 'i think' --top-p 0.9\n", GENERATE, generate, 1, 1},
    {"info", "MODEL [--json]", "says what is in a model file",
     "  carnn info bot.gguf\n", INFO, info, 1, 1},
    {"plot", "RUN.jsonl... [--out FILE.svg]", "draws what train --log or --probe wrote",
     "  carnn plot icarnn.jsonl lstm.jsonl --out runs.svg\n"
     "\nThe folds of a cross-validation are runs of their own.\n", PLOT, plot, 1, MODELS},
    {"depth", "GRAPH... [--out FILE.svg] [--json]",
     "measures how deep the graph of a recurrent network is",
     "  carnn depth sh st bu td\n  carnn depth td --out td.svg\n"
     "  carnn depth grid:2x3 fig4.3a:17 fig4.3b:4:17 graph.txt\n"
     "\nA graph is a file with lines \"period M\", \"node NAME in|hidden|out TIME\" and\n"
     "\"edge FROM TO DELAY\", or one of these names: sh, st, bu, td, grid:RxF (of recurrent\n"
     "depth R and feedforward depth F), fig4.3a:K and fig4.3b:N:K (with skips of K steps).\n",
     DEPTH, depth, 1, MODELS},
    {"gradcheck", "[NAME] [--seed N]",
     "compares all derivatives, or those of NAME, with differences",
     "  carnn gradcheck icarnn\n", GRADCHECK, gradcheck, 0, 1},
    {"bench", "[NAME] [options]", "measures kernels, cells and whole tasks on this machine",
     "  carnn bench cell --threads 1\n"
     "\nThe last column is the share of the peak of this machine that bounds the row: of its\n"
     "multiply-adds, or of its memory. It can be above 100 % where operations run beside\n"
     "multiply-adds (exp), or where what counts as memory lies in a cache (adam).\n", BENCH, bench,
     0, 1},
    {"help", "[NAME] [options]", "lists commands, or says all about a command, a task or \"cells\"",
     "  carnn help train\n  carnn help dialog\n  carnn help cells\n", HELP, help, 0, 1},
    {"version", "[options]", "says which carnn this is, and the instruction set in use",
     "  carnn version\n", VERSION, version, 0, 0},
};

/* "train, test" */
static const char *command_names(unsigned bits) {
    static line names;
    size_t i;
    names.length = 0;
    for (i = 0; i < COUNT(commands); i++)
        if (bits & commands[i].bit)
            add_text(&names, names.length ? ", %s" : "%s", commands[i].name);
    return names.text;
}

static int is_man; /* help is printed as a man page */

/* Text as troff reads it. */
static void put_roff(const char *text) {
    int starts = 1; /* a line, where . and ' would begin a macro */
    for (; *text; starts = *text++ == '\n') {
        if (starts && strchr(".'", *text)) fputs("\\&", stdout);
        printf(*text == '-' ? "\\-" : *text == '\\' ? "\\e" : "%c", *text);
    }
}

/* Behind `head`, words of a text from column 24 on, in lines that end before column 80. */
static void print_help(const char *head, const char *text) {
    int length, at;
    if (is_man) {
        fputs(*head ? ".TP\n.B " : ".br", stdout);
        put_roff(head + strspn(head, " "));
        putchar('\n');
        put_roff(text);
        puts("");
        return;
    }
    for (at = printf("%-24s", head); *text; text += length + (text[length] == ' ')) {
        length = (int)strcspn(text, " ");
        if (at + length > 78) at = printf("\n%24s", "") - 1;
        at += printf("%s%.*s", at > 24 ? " " : "", length, text);
    }
    puts("");
}

static void print_option(const char *name, const char *value, const char *text) {
    char head[2 * LONGEST_NAME];
    snprintf(head, sizeof head, "  --%s%s%s", dashed(name), value ? " " : "", value ? value : "");
    print_help(head, text);
}

/* " [default, task its own default]": those that differ from the first are named. */
static void add_default(line *text, const carnn_option *o, const char *only) {
    char first[CARNN_TEXT_MAX] = "";
    const char *task, *own;
    size_t i;
    for (i = 0; (task = carnn_task_name(i)) != NULL; i++) {
        carnn_model_desc m = {.task = task};
        carnn_train_desc training = {.epochs = 0};
        if ((only && strcmp(only, task)) || !carnn_option_applies(task, o)) continue;
        if (carnn_defaults(&m, &training, NULL)) continue;
        own = option_text(o, &m, &training);
        if (!*own || !strcmp(own, first)) continue;
        if (*first) add_text(text, ", %s %s", task, own);
        else add_text(text, " [%s", strcpy(first, own));
    }
    if (*first) add_text(text, "]");
}

/* The options of a place, with a title; those that all tasks have, or those of one. */
static void print_options(const char *title, const char *task, unsigned bit,
                          carnn_option_place place) {
    static line text;
    const carnn_option *o;
    size_t i, k;
    for (i = 0; (o = carnn_option_at(task, i)) != NULL; i++) {
        if (o->place != place || !(option_commands(o) & bit)) continue;
        if (task && !carnn_option_applies(task, o)) continue;
        if (title) printf(is_man ? ".SS %s\n" : "\n%s:\n", title);
        title = NULL;
        text.length = 0;
        add_text(&text, "%s", o->help);
        add_default(&text, o, task);
        print_option(o->name, o->kind >= CARNN_OPTION_NAME ? "NAME" : is_switch(o) ? "[N]" : "N",
                     text.text);
        text.length = 0;
        for (k = 0; carnn_option_choice(o, k); k++)
            add_text(&text, k ? ", %s" : "%s", carnn_option_choice(o, k));
        if (k) print_help("", text.text);
    }
}

/* A task with its data and its own options. */
static void print_task(size_t number) {
    const char *task = carnn_task_name(number);
    printf(is_man ? ".SS task %s: %s\n" : "\ntask %s: %s\n", task, carnn_task_title(number));
    print_help("  data:", carnn_task_data(number));
    print_options(NULL, task, TRAIN, CARNN_OPTION_OF_TASK);
}

/* What the help of an option says, behind the names of the tasks that have it; NULL where they are
   other tasks, or all. */
static const char *own_help(const flag *f, const char *task) {
    char names[LONGEST_NAME + 1];
    size_t length = strcspn(f->help, ":");
    snprintf(names, sizeof names, "%.*s", (int)least(length, LONGEST_NAME), f->help);
    return is_among(names, task) ? f->help + length + strlen(": ") : NULL;
}

/* All that can be said of the training of one task. */
static void help_task(size_t number) {
    const char *task = carnn_task_name(number), *text;
    size_t i;
    printf("usage: carnn train --task %s --train FILE --out MODEL [options]\n", task);
    print_task(number);
    for (i = 0; i < COUNT(flags); i++)
        if ((flags[i].commands & TRAIN) && (text = own_help(&flags[i], task)) != NULL)
            print_option(flags[i].name, flags[i].value, text);
    print_options("model", task, TRAIN, CARNN_OPTION_OF_MODEL);
    print_options("training", task, TRAIN, CARNN_OPTION_OF_TRAINING);
    printf("\nexamples:\n  carnn train --task %s --train train.txt --valid dev.txt --out m.gguf\n",
           task);
    puts("\nOptions for files and folds: carnn help train. What cells are: carnn help cells.");
}

static void help_command(const command *c) {
    int trains = c->bit == TRAIN; /* else they are options like others, of no model or training */
    size_t i;
    if (is_man) printf(".SH carnn %s\n.B carnn %s\n", c->name, c->name), put_roff(c->files);
    else printf("usage: carnn %s %s", c->name, c->files);
    printf(is_man ? "\n.PP\n%s.\n" : "\n\n%s.\n\noptions:\n", c->help);
    for (i = 0; i < COUNT(flags); i++)
        if (flags[i].commands & c->bit) print_option(flags[i].name, flags[i].value, flags[i].help);
    print_options(trains ? "model" : NULL, NULL, c->bit, CARNN_OPTION_OF_MODEL);
    print_options(trains ? "training" : NULL, NULL, c->bit, CARNN_OPTION_OF_TRAINING);
    for (i = 0; trains && carnn_task_name(i); i++) print_task(i);
    fputs(is_man ? ".SS examples\n.nf\n" : "\nexamples:\n", stdout);
    if (is_man) put_roff(c->examples), puts(".fi");
    else fputs(c->examples, stdout);
}

/* All of help for man. */
static void man_page(void) {
    size_t i;
    is_man = 1;
    printf(".TH CARNN 1 \"\" \"carnn %s\"\n", CARNN_VERSION);
    puts(".SH NAME\ncarnn \\- context-dependent additive recurrent networks\n"
         ".SH SYNOPSIS\n.B carnn\nCOMMAND [options] [files]");
    for (i = 0; i < COUNT(commands); i++) help_command(&commands[i]);
    puts(".SH ENVIRONMENT\n.TP\n.B CARNN_SIMD\nThe instruction set, where --simd names none.\n"
         ".TP\n.B NO_COLOR\nNeither colours nor lines that are overwritten, if it is set.\n"
         ".SH FILES\n.TP\n.I MODEL.resume\nThe checkpoint of a training that has not ended.\n"
         ".SH EXIT STATUS\n0 done, 1 failure at run time, 2 usage, 3 bad data, 4 bad model file, "
         "5 diverged, 130 interrupted");
}

/* ==== Completion in shells =================================================================== */
static void put_words(const list *l, const char *end) {
    size_t i;
    for (i = 0; i < l->count; i++) printf("%s ", l->item[i]);
    fputs(end, stdout);
}

/* A word of a shell: a word with what it means behind a colon, or one of both alone. */
static void put_quoted(const char *dashes, const char *word, const char *text) {
    printf(" '%s%s%s", dashes, word, *word && *text ? ":" : "");
    for (; *text; text++) printf(*text == '\'' ? "'\\''" : "%c", *text);
    putchar('\'');
}

static void put_commands(int explained) {
    size_t i;
    for (i = 0; i < COUNT(commands); i++)
        put_quoted("", commands[i].name, explained ? commands[i].help : "");
    putchar(' ');
}

/* What bash and zsh complete, by "number of the word:command:word before". */
static void put_cases(int zsh) {
    size_t i, k;
    printf("1:*) list=("), put_commands(zsh), puts(") ;;");
    for (i = 0; i < entry_count; i++)
        if (entries[i].value)
            printf("*:--%s) list=(", entries[i].name), put_words(&entries[i].words, ") ;;\n");
    for (i = 0; i < COUNT(commands); i++) {
        printf("*:%s:*) list=(", commands[i].name);
        if (commands[i].bit == HELP) put_commands(zsh), put_words(task_words(), "cells ");
        for (k = 0; k < entry_count; k++)
            if (entries[k].commands & commands[i].bit)
                put_quoted("--", entries[k].name, zsh ? entries[k].help : "");
        puts(") ;;");
    }
}

static void put_fish(void) {
    size_t i, k;
    printf("complete -c carnn -n '__fish_seen_subcommand_from help' -xa \"");
    put_commands(0), put_words(task_words(), "cells \"\n");
    for (i = 0; i < COUNT(commands); i++) {
        printf("complete -c carnn -n __fish_use_subcommand -xa %s -d", commands[i].name);
        put_quoted("", "", commands[i].help);
        for (k = 0; k < entry_count; k++) {
            const entry *e = &entries[k];
            if (!(e->commands & commands[i].bit)) continue;
            printf("\ncomplete -c carnn -n '__fish_seen_subcommand_from %s' -l %s%s",
                   commands[i].name, e->name, !e->value ? "" : e->words.count ? " -xa '" : " -r");
            put_words(&e->words, e->words.count ? "' -d" : " -d");
            put_quoted("", "", e->help);
        }
        puts("");
    }
}

static void complete(const char *shell) {
    guess g = guess_for(shell);
    int bash = is_word(&g, "bash"), zsh = is_word(&g, "zsh"), fish = is_word(&g, "fish");
    if (!bash && !zsh && !fish) unknown("shell", &g);
    add_entries();
    if (fish) {
        put_fish();
        return;
    }
    /* --cell=icarnn is three words of bash and one of zsh */
    puts(bash ? "_carnn() {\nlocal list=() at=$COMP_CWORD\n"
                "local word=${COMP_WORDS[at]#=} before=${COMP_WORDS[at-1]}\n"
                "[[ $before != = ]] || before=${COMP_WORDS[at-2]}\n"
                "case $at:${COMP_WORDS[1]}:$before in"
              : "#compdef carnn\nlocal -a list\n"
                "local word=${words[CURRENT]} before=${words[CURRENT-1]}\n"
                "if [[ $word == --*=* ]]; then\n"
                "before=${word%%=*} word=${word#*=}\ncompset -P 1 '*='\nfi\n"
                "case $((CURRENT-1)):${words[2]}:$before in");
    put_cases(zsh);
    /* options are offered for what begins like one: else a file may be meant */
    puts(bash ? "esac\n[[ $word == -* ]] || list=(\"${list[@]/#-*}\")\n"
                "COMPREPLY=($(compgen -W \"${list[*]}\" -- \"$word\"))\n}\n"
                "complete -o default -F _carnn carnn"
              : "esac\n[[ $word == -* ]] || list=(${list:#-*})\n_describe carnn list || _files");
}

static void list_commands(FILE *to) {
    size_t i;
    fprintf(to, "carnn %s: context-dependent additive recurrent networks\n\n"
            "usage: carnn COMMAND [options] [files]\n\ncommands:\n", CARNN_VERSION);
    for (i = 0; i < COUNT(commands); i++)
        fprintf(to, "  %-11s%s\n", commands[i].name, commands[i].help);
    fprintf(to, "\ntasks:\n");
    for (i = 0; carnn_task_name(i); i++)
        fprintf(to, "  %-14s%s\n", carnn_task_name(i), carnn_task_title(i));
    fprintf(to, "\nexamples:\n"
            "  carnn train --task dialog --train train.txt --valid dev.txt --out bot.gguf\n"
            "  carnn test bot.gguf --data test.txt\n  carnn chat bot.gguf\n");
}

static const char *command_name(size_t number) {
    return number < COUNT(commands) ? commands[number].name : NULL;
}

static void help(void) {
    guess g = guess_for(arg.files.count ? *arg.files.item : "");
    size_t i, c = which_of(&g, command_name), task = which_of(&g, carnn_task_name);
    if ((int)arg.files.count + arg.man + (arg.shell != NULL) > 1)
        say(USAGE, "help: expected one of NAME, --man and --complete SHELL");
    if (arg.man) man_page();
    else if (arg.shell) complete(arg.shell);
    else if (!arg.files.count) list_commands(stdout);
    else if (is_word(&g, "cells"))
        for (i = 0; carnn_cell_name(i); i++)
            printf("  %-15s%s\n", carnn_cell_name(i), carnn_cell_title(i));
    else if (!c && !task) unknown("command", &g);
    else {
        if (c) help_command(&commands[c - 1]);
        if (c && task) putchar('\n'); /* a name of both */
        if (task) help_task(task - 1);
    }
}

static void run(int count, char **argument) {
    const char *word = count > 1 ? argument[1] : "", *name = word + strspn(word, "-");
    const command *c;
    if (count < 2) list_commands(stderr), exit(USAGE);
    if (*word == '-' && (!strcmp(name, "h") || !strcmp(name, "help"))) word = "help";
    else if (*word == '-' && !strcmp(name, "version")) word = name;
    c = &commands[number_named("command", word, command_name)];
    read_arguments(c, count, argument);
    if (arg.out && c->bit == TRAIN) arg.training.checkpoint = beside(arg.out, ".resume");
    if (!arg.help) check_files(), c->run();
    else if (arg.task) help_task(task_number(arg.task));
    else help_command(c);
}

int main(int count, char **argument) {
#ifndef _WIN32
    FILE *spare;
    if (signal(SIGHUP, SIG_IGN) != SIG_IGN) await_interrupt(SIGHUP); /* else nohup has asked */
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error of writing */
    signal(SIGCHLD, SIG_DFL); /* else the exit code of gzip is lost */
    /* no file is to get the number of a standard stream that is closed */
    while ((spare = fopen("/dev/null", "r")) != NULL && fileno(spare) <= 2) continue;
    if (spare) fclose(spare);
#endif
    await_interrupt(SIGINT);
    await_interrupt(SIGTERM);
    run(count, argument);
    flush_output(exit_code ? exit_code : FAILED);
    return exit_code;
}
