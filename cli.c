/* The command line of carnn.h: `carnn help` says what it does.

   Results go to standard output, everything else to standard error. Exit codes: 0 done, 1 failure
   at run time, 2 usage, 3 bad data, 4 bad model file, 5 diverged, 130 interrupted. */

#ifndef _WIN32
#define _POSIX_C_SOURCE 200809L
#define _DARWIN_C_SOURCE
#endif

#define CARNN_IMPLEMENTATION
#include "carnn.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#include <io.h>
#else
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>
#endif

enum { DONE = 0, FAILED = 1, USAGE = 2, BAD_DATA = 3, BAD_MODEL = 4, DIVERGED = 5,
       INTERRUPTED = 130 };

/* ==== Arguments ============================================================================== */

typedef struct list {
    const char **item; /* room for as many as there are arguments */
    size_t count;
} list;

typedef struct arguments {
    const char *task, *valid, *test, *out, *candidates, *log, *simd;
    list train, data, vectors, files; /* files: what is no option */
    const char *prompt, *question, *qrels, *run;
    int64_t top, example, sentences;
    int json, quiet, resume, explain, help, counts, clean, color;
    carnn_sampling sampling;
    carnn_model_desc model;
    carnn_train_desc training;
} arguments;

typedef struct command {
    const char *name, *files, *help;
    const char *more; /* for its own help */
    unsigned bit;     /* in flag.commands */
    int (*run)(arguments *a);
    size_t least, most; /* files */
} command;

enum { /* which commands an option belongs to */
    TRAIN = 1, TEST = 2, PREDICT = 4, CHAT = 8, EXPLAIN = 16, INFO = 32, GRADCHECK = 64,
    BENCH = 128, GENERATE = 256, RANK = 512, PLOT = 1024, ALL = 2047
};

typedef enum kind { SWITCH, WORD, WORDS, NUMBER, REAL } kind;

typedef struct flag {
    const char *name, *value, *help;
    kind kind;
    unsigned commands;
    size_t offset; /* in arguments */
} flag;

/* The options that are not the library's own (those are in carnn_options()). */
static const flag flags[] = {
    {"task", "NAME", "what to learn", WORD, TRAIN, offsetof(arguments, task)},
    {"train", "FILE", "training data; several files: repeat the option", WORDS, TRAIN,
     offsetof(arguments, train)},
    {"valid", "FILE", "validation data: chooses the epoch whose weights are kept", WORD, TRAIN,
     offsetof(arguments, valid)},
    {"test", "FILE", "data to score the finished model on", WORD, TRAIN,
     offsetof(arguments, test)},
    {"candidates", "FILE", "dialog: replies to choose from [those of the training data]", WORD,
     TRAIN, offsetof(arguments, candidates)},
    {"vectors", "FILE", "word vectors to start from: GloVe, word2vec, .vec, gzip", WORDS, TRAIN,
     offsetof(arguments, vectors)},
    {"out", "FILE", "the model file to write", WORD, TRAIN, offsetof(arguments, out)},
    {"out", "FILE", "write an SVG picture there instead of text", WORD, PLOT,
     offsetof(arguments, out)},
    {"data", "FILE", "data to work on; - is standard input", WORDS,
     TEST | PREDICT | EXPLAIN | RANK, offsetof(arguments, data)},
    {"clean", NULL, "answer: without questions that have no right or no wrong answer", SWITCH,
     TRAIN | TEST, offsetof(arguments, clean)},
    {"qrels", "FILE", "answer: write the labels as trec_eval reads them", WORD, TEST,
     offsetof(arguments, qrels)},
    {"run", "FILE", "answer: write the scores as trec_eval reads them", WORD, TEST,
     offsetof(arguments, run)},
    {"question", "TEXT", "what the sentences are to answer", WORD, RANK,
     offsetof(arguments, question)},
    {"top", "K", "print the K best answers with their probabilities or scores", NUMBER,
     PREDICT | RANK, offsetof(arguments, top)},
    {"color", NULL, "answer: alignments as a heat map", SWITCH, EXPLAIN,
     offsetof(arguments, color)},
    {"example", "N", "explain only the N-th example [all]", NUMBER, EXPLAIN,
     offsetof(arguments, example)},
    {"counts", NULL, "lm: perplexity by three other counts, too", SWITCH, TEST,
     offsetof(arguments, counts)},
    {"sentences", "N", "sentences to generate [10]", NUMBER, GENERATE,
     offsetof(arguments, sentences)},
    {"words", "N", "words of a sentence at most [100]", NUMBER, GENERATE,
     offsetof(arguments, sampling.words)},
    {"prompt", "TEXT", "words that the first sentence begins with", WORD, GENERATE,
     offsetof(arguments, prompt)},
    {"temperature", "X", "below 1: more probable words; 0: always the most probable [1]", REAL,
     GENERATE, offsetof(arguments, sampling.temperature)},
    {"top-k", "K", "only among the K most probable words [all]", NUMBER, GENERATE,
     offsetof(arguments, sampling.top_k)},
    {"top-p", "P", "only among the most probable words that have probability P together [all]",
     REAL, GENERATE, offsetof(arguments, sampling.top_p)},
    {"explain", NULL, "show what each utterance added to the score of an answer", SWITCH, CHAT,
     offsetof(arguments, explain)},
    {"resume", NULL, "go on from the checkpoint FILE.resume beside --out FILE", SWITCH, TRAIN,
     offsetof(arguments, resume)},
    {"log", "FILE", "write one JSON line per epoch", WORD, TRAIN, offsetof(arguments, log)},
    {"json", NULL, "print the result as one JSON object", SWITCH, TRAIN | TEST | INFO | BENCH,
     offsetof(arguments, json)},
    {"quiet", NULL, "no progress", SWITCH, TRAIN, offsetof(arguments, quiet)},
    {"simd", "NAME", "instruction set [$CARNN_SIMD or the best here]", WORD, TRAIN | BENCH,
     offsetof(arguments, simd)},
    {"help", NULL, "this text", SWITCH, ALL, offsetof(arguments, help)},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static unsigned option_commands(const carnn_option *o) {
    if (!strcmp(o->name, "threads")) return TRAIN | TEST | PREDICT | BENCH;
    return strcmp(o->name, "seed") ? TRAIN : TRAIN | GRADCHECK | GENERATE;
}

#define OPTION_TEXT 64
#define NO_LIMIT "no limit"

static int option_serves(const carnn_option *o, const char *task) {
    return !o->task || !strcmp(o->task, task);
}

/* The value of an option, as it could be typed. */
static const char *option_text(const carnn_option *o, const carnn_model_desc *model,
                               const carnn_train_desc *training, char text[OPTION_TEXT]) {
    const char *base = o->of_training ? (const char *)training : (const char *)model;
    const void *value = base + o->offset;
    double number;
    if (o->kind == CARNN_OPTION_NAME) {
        const char *name = *(const char *const *)value;
        snprintf(text, OPTION_TEXT, "%s", name ? name : "");
        return text;
    }
    number = o->kind == CARNN_OPTION_NUMBER ? *(const double *)value
                                            : (double)*(const int64_t *)value;
    if (number == CARNN_NONE) number = 0.0;
    snprintf(text, OPTION_TEXT, "%.10g", number);
    if (number == 0.0 && o->none && o->kind == CARNN_OPTION_INTEGER) strcpy(text, NO_LIMIT);
    return text;
}

/* Prints "carnn: ..." and returns the exit code for wrong usage. */
static int usage(const char *format, ...) {
    va_list values;
    va_start(values, format);
    fputs("carnn: ", stderr);
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    va_end(values);
    return USAGE;
}

static int no_memory(void) {
    fputs("carnn: out of memory\n", stderr);
    return FAILED;
}

/* A file that could not be opened or read, by errno. */
static int not_read(const char *name) {
    fprintf(stderr, "carnn: %s: %s\n", name, strerror(errno));
    return FAILED;
}

static int not_written(const char *name, const char *reason) {
    fprintf(stderr, "carnn: %s: cannot be written: %s\n", name, reason);
    return FAILED;
}

/* Prints an error of the library and returns its exit code. */
static int failed(const carnn_error *error) {
    fprintf(stderr, "carnn: %s\n", error->message);
    switch (error->code) {
    case CARNN_ERR_ARGUMENT: return USAGE;
    case CARNN_ERR_DATA: return BAD_DATA;
    case CARNN_ERR_MODEL: return BAD_MODEL;
    case CARNN_ERR_DIVERGED: return DIVERGED;
    case CARNN_ERR_STOPPED: return INTERRUPTED;
    default: return FAILED;
    }
}

/* ==== "Did you mean" ========================================================================= */

/* Options may be spelt with - or _. */
static char plain(char c) { return c == '_' ? '-' : c; }

static int same_name(const char *a, const char *b) {
    while (*a && plain(*a) == plain(*b)) a++, b++;
    return plain(*a) == plain(*b);
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

#define LONGEST_NAME 40

/* Letters to insert, delete, replace or swap with their neighbour until `a` is `b`. */
static size_t edits(const char *a, const char *b) {
    size_t rows[3][LONGEST_NAME + 1], i, j, n = strlen(a), m = strlen(b);
    size_t *above2 = rows[0], *above = rows[1], *row = rows[2], *spare;
    if (n > LONGEST_NAME || m > LONGEST_NAME) return LONGEST_NAME;
    for (j = 0; j <= m; j++) above[j] = j;
    for (i = 1; i <= n; i++) {
        row[0] = i;
        for (j = 1; j <= m; j++) {
            row[j] = above[j - 1] + (plain(a[i - 1]) != plain(b[j - 1]));
            row[j] = least(row[j], least(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], above2[j - 2] + 1);
        }
        spare = above2, above2 = above, above = row, row = spare;
    }
    return above[m];
}

typedef struct guess {
    const char *word, *best;
    size_t distance; /* names that are farther away than this are no guess */
} guess;

static guess guess_for(const char *word) {
    guess g = {word, NULL, 0};
    g.distance = strlen(word) / 3 + 2;
    return g;
}

static void consider(guess *g, const char *name) {
    size_t length = strlen(g->word), distance = edits(g->word, name);
    if (length >= 2 && !strncmp(name, g->word, length)) distance = 1; /* the start of a name */
    if (distance >= g->distance) return;
    g->distance = distance;
    g->best = name;
}

static guess guess_name(const char *word, const char *(*lister)(size_t number)) {
    guess g = guess_for(word);
    size_t i;
    for (i = 0; lister(i); i++) consider(&g, lister(i));
    return g;
}

static int unknown(const char *what, guess g, const char *dashes) {
    if (g.best && *dashes) { /* an option, as it is to be typed */
        char name[LONGEST_NAME + 1];
        size_t i = 0;
        for (; g.best[i]; i++) name[i] = plain(g.best[i]);
        name[i] = '\0';
        return usage("unknown %s --%s; did you mean --%s?", what, g.word, name);
    }
    if (g.best) return usage("unknown %s \"%s\"; did you mean \"%s\"?", what, g.word, g.best);
    return usage("unknown %s %s%s%s", what, *dashes ? dashes : "\"", g.word,
                 *dashes ? "" : "\"");
}

/* ==== Reading the arguments ================================================================== */

static int set_number(const char *name, const char *text, int64_t *number) {
    char *end;
    errno = 0;
    *number = (int64_t)strtoll(text, &end, 10);
    if (end == text || *end || errno || *number < 1)
        return usage("--%s: expected a whole number from 1 on, found \"%s\"", name, text);
    return DONE;
}

/* A number from 0 on; 0 is a choice. */
static int set_real(const char *name, const char *text, double *number) {
    char *end;
    *number = strtod(text, &end);
    if (end == text || *end || !(*number >= 0.0 && *number <= 1e6))
        return usage("--%s: expected a number from 0 on, found \"%s\"", name, text);
    if (*number == 0.0) *number = CARNN_NONE;
    return DONE;
}

static int set_flag(const flag *f, arguments *a, const char *value) {
    char *field = (char *)a + f->offset;
    list *words = (list *)(void *)field;
    switch (f->kind) {
    case SWITCH: *(int *)(void *)field = 1; return DONE;
    case WORD: *(const char **)(void *)field = value; return DONE;
    case WORDS: words->item[words->count++] = value; return DONE;
    case REAL: return set_real(f->name, value, (double *)(void *)field);
    default: return set_number(f->name, value, (int64_t *)(void *)field);
    }
}

static int set_option(const carnn_option *o, arguments *a, const char *value) {
    carnn_error error;
    guess g;
    size_t i;
    if (!carnn_option_set(o, &a->model, &a->training, value, &error)) return DONE;
    if (o->kind != CARNN_OPTION_NAME) return failed(&error);
    g = guess_for(value);
    for (i = 0; carnn_option_choice(o, i); i++) consider(&g, carnn_option_choice(o, i));
    return unknown(o->name, g, "");
}

/* One option with its dashes; moves `*at` on where the value is the next argument. */
static int read_option(arguments *a, unsigned bit, int count, char **argument, int *at) {
    const char *name = argument[*at] + 1, *value, *equals;
    char word[LONGEST_NAME + 1];
    const flag *f = NULL;
    size_t i, options, length;
    const carnn_option *o = carnn_options(&options), *found = NULL;
    guess g;
    name += *name == '-';
    equals = strchr(name, '=');
    length = equals ? (size_t)(equals - name) : strlen(name);
    if (length > LONGEST_NAME) return usage("unknown option %s", argument[*at]);
    memcpy(word, name, length);
    word[length] = '\0';
    if (!strcmp(word, "h")) strcpy(word, "help");
    g = guess_for(word);
    for (i = 0; i < COUNT(flags); i++) {
        if (!(flags[i].commands & bit)) continue;
        if (same_name(word, flags[i].name)) f = &flags[i];
        consider(&g, flags[i].name);
    }
    for (i = 0; i < options; i++) {
        if (!(option_commands(o + i) & bit)) continue;
        if (same_name(word, o[i].name)) found = o + i;
        consider(&g, o[i].name);
    }
    if (!f && !found) return unknown("option", g, "--");
    if (f && f->kind == SWITCH)
        return equals ? usage("--%s takes no value", f->name) : set_flag(f, a, NULL);
    value = equals ? equals + 1 : *at + 1 < count ? argument[++*at] : NULL;
    if (!value || (!equals && !strncmp(value, "--", 2))) return usage("--%s needs a value", word);
    return f ? set_flag(f, a, value) : set_option(found, a, value);
}

static int read_arguments(arguments *a, const command *c, int count, char **argument) {
    int at, only_files = 0, result = DONE;
    for (at = 2; at < count && !result; at++) {
        const char *word = argument[at];
        if (!only_files && !strcmp(word, "--")) only_files = 1;
        else if (!only_files && word[0] == '-' && word[1])
            result = read_option(a, c->bit, count, argument, &at);
        else a->files.item[a->files.count++] = word;
    }
    if (result || a->help) return result;
    if (a->files.count < c->least)
        return usage("%s: what to work on is missing: carnn %s %s", c->name, c->name, c->files);
    if (a->files.count > c->most)
        return usage("%s: \"%s\" is one file too many; options begin with --", c->name,
                     a->files.item[c->most]);
    return DONE;
}

/* ==== JSON =================================================================================== */

typedef struct json {
    FILE *to;
    int items; /* in what is open: commas stand between them */
} json;

/* Bytes of a well-formed UTF-8 sequence at `s`, 0 if there is none. */
static size_t utf8(const unsigned char *s) {
    size_t i, length = s[0] < 0x80 ? 1 : s[0] < 0xC2 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3
                       : s[0] < 0xF5 ? 4 : 0;
    for (i = 1; i < length; i++)
        if ((s[i] & 0xC0) != 0x80) return 0;
    if (length == 3 && ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F))) return 0;
    if (length == 4 && ((s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F))) return 0;
    return length;
}

static void json_string(FILE *to, const char *text) {
    const unsigned char *s = (const unsigned char *)text;
    fputc('"', to);
    while (*s) {
        size_t length = utf8(s);
        if (!length) fputs("\\ufffd", to);
        else if (*s == '"' || *s == '\\') fprintf(to, "\\%c", *s);
        else if (*s < 0x20) fprintf(to, "\\u%04x", (unsigned)*s);
        else fwrite(s, 1, length, to);
        s += length ? length : 1;
    }
    fputc('"', to);
}

static void json_key(json *j, const char *key) {
    if (j->items++) fputs(", ", j->to);
    if (!key) return;
    json_string(j->to, key);
    fputs(": ", j->to);
}

static void json_open(json *j, const char *key, char bracket) {
    json_key(j, key);
    fputc(bracket, j->to);
    j->items = 0;
}

static void json_close(json *j, char bracket) {
    fputc(bracket, j->to);
    j->items = 1;
}

static void json_text(json *j, const char *key, const char *text) {
    json_key(j, key);
    if (text) json_string(j->to, text);
    else fputs("null", j->to);
}

static void json_whole(json *j, const char *key, uint64_t number) {
    json_key(j, key);
    fprintf(j->to, "%llu", (unsigned long long)number);
}

static void json_number(json *j, const char *key, double number) {
    json_key(j, key);
    if (isfinite(number)) fprintf(j->to, "%.9g", number);
    else fputs("null", j->to);
}

/* The loss and the metrics of the task, by name. */
static void json_metrics(json *j, const carnn_scores *s) {
    size_t i;
    if (s->tokens) json_whole(j, "tokens", s->tokens);
    json_number(j, "loss", s->loss);
    for (i = 0; i < s->count; i++) json_number(j, s->metric[i].name, s->metric[i].value);
}

static void json_model(json *j, const carnn_model *model) {
    const carnn_model_desc *d = carnn_model_describe(model);
    json_text(j, "task", d->task);
    json_text(j, "cell", d->cell);
    json_whole(j, "parameters", carnn_model_parameters(model));
    json_whole(j, "seed", d->seed);
}

/* The numbers and names of a description; null where there is no limit. */
static void json_options(json *j, const carnn_model_desc *model, const carnn_train_desc *training,
                         int of_training) {
    size_t i, count;
    const carnn_option *o = carnn_options(&count);
    char text[OPTION_TEXT];
    for (i = 0; i < count; i++, o++) {
        if (o->of_training != of_training || !option_serves(o, model->task) ||
            !strcmp(o->name, "seed") || !strcmp(o->name, "cell"))
            continue;
        option_text(o, model, training, text);
        if (o->kind == CARNN_OPTION_NAME) {
            json_text(j, o->name, text);
        } else {
            json_key(j, o->name);
            fputs(strcmp(text, NO_LIMIT) ? text : "null", j->to);
        }
    }
}

/* ==== Terminal and machine =================================================================== */

static int is_terminal(FILE *stream) {
#ifdef _WIN32
    return _isatty(_fileno(stream));
#else
    return isatty(fileno(stream));
#endif
}

/* Columns that a line on the terminal may have without wrapping. */
static size_t terminal_width(void) {
#if !defined(_WIN32) && defined(TIOCGWINSZ)
    struct winsize size;
    if (!ioctl(STDERR_FILENO, TIOCGWINSZ, &size) && size.ws_col > 20) return size.ws_col - 1u;
#endif
    return 79;
}

/* The most memory that the program has had, in MiB; 0 where the system does not say. */
static double peak_memory(void) {
#if defined(_WIN32)
    return 0.0;
#else
    struct rusage used;
    if (getrusage(RUSAGE_SELF, &used)) return 0.0;
#if defined(__APPLE__)
    return (double)used.ru_maxrss / (1024.0 * 1024.0);
#else
    return (double)used.ru_maxrss / 1024.0;
#endif
#endif
}

/* How many processors the system has online; 1 where it does not say. */
static uint64_t processors(void) {
#if defined(_WIN32)
    SYSTEM_INFO system;
    GetSystemInfo(&system);
    return system.dwNumberOfProcessors;
#else
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? (uint64_t)count : 1;
#endif
}

/* The instruction set that is used where `asked` is that of --simd: it comes before $CARNN_SIMD,
   and both before the best one. */
static const char *simd_used(const char *asked) {
    const char *name;
    size_t i;
    if (!asked) asked = getenv("CARNN_SIMD");
    for (i = 0; asked && (name = carnn_simd_name(i)) != NULL; i++)
        if (!strcmp(name, asked)) return name;
    return carnn_simd_name(0);
}

/* "45 s", "3 min 20 s", "2 h 05 min" */
static const char *duration(double seconds, char text[32]) {
    unsigned long s = seconds > 0.0 && seconds < 1e9 ? (unsigned long)(seconds + 0.5) : 0;
    if (s < 60) snprintf(text, 32, "%lu s", s);
    else if (s < 3600) snprintf(text, 32, "%lu min %02lu s", s / 60, s % 60);
    else snprintf(text, 32, "%lu h %02lu min", s / 3600, s / 60 % 60);
    return text;
}

static volatile sig_atomic_t interrupted, can_stop;

/* The first interrupt asks a training to stop, the second (or the first elsewhere) ends at once. */
static void on_interrupt(int number) {
    if (!can_stop || interrupted) _Exit(INTERRUPTED);
    interrupted = 1;
    signal(number, on_interrupt);
}

/* Results may be on their way to a full disk. */
static int finish(int result) {
    if (fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "carnn: cannot write to standard output\n");
        return result ? result : FAILED;
    }
    return result;
}

/* ==== Models and data ======================================================================== */

static int load_model(carnn_model **model, const char *name) {
    carnn_source source = {NULL, NULL, 0};
    carnn_error error;
    source.name = name;
    return carnn_model_load(model, &source, NULL, &error) ? failed(&error) : DONE;
}

#define STANDARD_INPUT "/dev/stdin" /* what errors call it */

/* Standard input as a whole. Where it is a socket it cannot be opened by a name. */
static int read_input(carnn_source *source) {
    char *bytes = NULL;
    size_t room = 0;
    source->name = STANDARD_INPUT;
    for (;;) {
        if (source->size == room) {
            char *larger = (char *)realloc(bytes, room = room ? 2 * room : 65536);
            if (!larger) return no_memory();
            source->bytes = bytes = larger;
        }
        source->size += fread(bytes + source->size, 1, room - source->size, stdin);
        if (ferror(stdin)) return not_read(STANDARD_INPUT);
        if (feof(stdin)) return DONE;
    }
}

/* Files as the library takes them, with room for one more; close_sources() also after a failure. */
static int open_sources(carnn_source **sources, const list *names) {
    carnn_source *source = (carnn_source *)calloc(names->count + 1, sizeof *source);
    int result = source ? DONE : no_memory();
    size_t i;
    for (i = 0; !result && i < names->count; i++) {
        source[i].name = names->item[i];
        if (!strcmp(names->item[i], "-")) result = read_input(&source[i]);
    }
    *sources = source;
    return result;
}

static void close_sources(carnn_source *source, size_t count) {
    size_t i;
    for (i = 0; source && i < count; i++) free((void *)(uintptr_t)source[i].bytes);
    free(source);
}

/* One file or several as one data set. */
static int load_data(carnn_dataset **data, const char *task, const list *names,
                     const char *candidates, int clean, int lenient) {
    carnn_source *source;
    carnn_dataset_desc desc;
    carnn_error error;
    int result = open_sources(&source, names);
    memset(&desc, 0, sizeof desc);
    desc.task = task;
    desc.sources = source;
    desc.source_count = names->count;
    desc.clean = clean;
    desc.lenient = lenient;
    if (!result && candidates) {
        source[names->count].name = candidates;
        desc.candidates = source + names->count;
    }
    if (!result && carnn_dataset_load(data, &desc, &error)) result = failed(&error);
    if (!result && carnn_dataset_left_out(*data))
        fprintf(stderr, "%s: %zu questions without a right or a wrong answer are left out\n",
                names->item[0], carnn_dataset_left_out(*data));
    close_sources(source, names->count);
    return result;
}

static int load_one(carnn_dataset **data, const char *task, const char *name, int clean) {
    list names;
    names.item = &name;
    names.count = 1;
    return load_data(data, task, &names, NULL, clean, 0);
}

static int open_result(FILE **file, const char *name, const char *mode) {
    if (!name || (*file = fopen(name, mode)) != NULL) return DONE;
    return not_written(name, strerror(errno));
}

/* The reason why a write before failed is no longer known here. */
static int close_result(FILE *file, const char *name, int result) {
    int lost = file && ferror(file);
    if (!file || (!fclose(file) && !lost)) return result;
    not_written(name, lost ? "a part is lost, the disk may be full" : strerror(errno));
    return result ? result : FAILED;
}

static int print_counts; /* --counts */

/* "accuracy 0.8123  loss 0.5012"; perplexities by other counts only where they are asked for. */
static void print_metrics(FILE *to, const carnn_scores *s) {
    size_t i;
    for (i = 0; i < s->count; i++)
        if (print_counts || strncmp(s->metric[i].name, "perplexity_", 11))
            fprintf(to, "%s %.4f  ", s->metric[i].name, s->metric[i].value);
    fprintf(to, "loss %.4f", s->loss);
}

/* ==== train ================================================================================== */

typedef struct watch { /* of a training */
    int live;          /* the line on the terminal is overwritten */
    int quiet;
    size_t shown;      /* its length */
    FILE *log;
    double seconds;    /* so far */
    int64_t epochs;    /* that have ended */
} watch;

static void log_epoch(FILE *to, const carnn_progress *p) {
    json j = {NULL, 0};
    j.to = to;
    json_open(&j, NULL, '{');
    json_whole(&j, "epoch", (uint64_t)p->epoch);
    json_number(&j, "loss", p->loss);
    if (p->scores) {
        json_open(&j, "valid", '{');
        json_metrics(&j, p->scores);
        json_close(&j, '}');
    }
    if (p->best) json_whole(&j, "best_epoch", (uint64_t)p->best_epoch);
    json_number(&j, "lr", p->lr);
    json_number(&j, "gradient_norm", p->gradient_norm);
    json_number(&j, "rate", p->rate);
    json_number(&j, "seconds", p->seconds);
    json_number(&j, "memory_mib", peak_memory());
    json_close(&j, '}');
    fputc('\n', to);
    fflush(to);
}

static int on_progress(const carnn_progress *p, void *user) {
    watch *w = (watch *)user;
    char line[512], left[32];
    size_t at;
#define ADD(...) at += (size_t)snprintf(line + at, sizeof line - at, __VA_ARGS__)
    w->seconds = p->seconds;
    w->epochs = p->epoch - !p->epoch_ended;
    if (w->log && p->epoch_ended) log_epoch(w->log, p);
    if (w->quiet || (!w->live && !p->epoch_ended)) return interrupted;
    at = 0;
    ADD("epoch %lld/%lld %3.0f%%  loss %.4f", (long long)p->epoch, (long long)p->epochs,
        100.0 * p->done, p->loss);
    if (p->scores) ADD("  %.32s %.4f", p->scores->metric[0].name, p->scores->metric[0].value);
    if (p->best) ADD("  best %.4f (%lld)", p->best->metric[0].value, (long long)p->best_epoch);
    ADD("  %.0f/s  %s left", p->rate, duration(p->seconds_left, left));
    ADD("  lr %.3g  |g| %.3g  %.0f MiB", p->lr, p->gradient_norm, peak_memory());
#undef ADD
    if (!w->live) {
        fprintf(stderr, "%s\n", line);
        return interrupted;
    }
    at = p->epoch_ended ? at : least(at, terminal_width());
    fprintf(stderr, "\r%.*s%*s", (int)at, line, (int)(w->shown > at ? w->shown - at : 0), "");
    if (p->epoch_ended) fputc('\n', stderr);
    fflush(stderr);
    w->shown = p->epoch_ended ? 0 : at;
    return interrupted;
}

typedef struct train_job { /* what `carnn train` holds */
    arguments *a;
    carnn_dataset *train, *valid, *test;
    carnn_model *model;
    char *checkpoint;
    carnn_scores tested;
    watch watch;
} train_job;

/* What can be found wrong before hours of work is. */
static int check_training(train_job *t) {
    arguments *a = t->a;
    carnn_model_desc model = a->model;
    carnn_train_desc desc = a->training;
    carnn_error error;
    size_t i;
    if (!a->task) return usage("train: --task is missing, the name of what to learn");
    for (i = 0; carnn_task_name(i) && strcmp(carnn_task_name(i), a->task);) i++;
    if (!carnn_task_name(i)) return unknown("task", guess_name(a->task, carnn_task_name), "");
    if (!a->train.count) return usage("train: --train FILE is missing, the training data");
    if (!a->out) return usage("train: --out FILE is missing, the model file to write");
    model.task = a->task;
    if (carnn_defaults(&model, &desc, &error)) return failed(&error);
    if (carnn_file_check(a->out, &error)) return failed(&error);
    t->checkpoint = (char *)malloc(strlen(a->out) + sizeof ".resume");
    if (!t->checkpoint) return no_memory();
    sprintf(t->checkpoint, "%s.resume", a->out);
    return DONE;
}

static int create_model(train_job *t) {
    arguments *a = t->a;
    carnn_source *vectors;
    const carnn_dataset *known[2];
    carnn_error error;
    int result = open_sources(&vectors, &a->vectors);
    known[0] = t->valid;
    known[1] = t->test;
    a->model.task = a->task;
    a->model.simd = a->simd;
    a->model.vectors = a->vectors.count ? vectors : NULL;
    a->model.vector_count = a->vectors.count;
    a->model.known = known;
    a->model.known_count = 2;
    if (!result && carnn_model_create(&t->model, &a->model, t->train, &error))
        result = failed(&error);
    close_sources(vectors, a->vectors.count);
    return result;
}

/* The log comes last: where something else is wrong, that of the run before is left as it is. */
static int prepare_training(train_job *t) {
    arguments *a = t->a;
    int result = load_data(&t->train, a->task, &a->train, a->candidates, 0, 0);
    if (!result && a->valid) result = load_one(&t->valid, a->task, a->valid, a->clean);
    if (!result && a->test) result = load_one(&t->test, a->task, a->test, a->clean);
    if (!result) result = create_model(t);
    if (!result) result = open_result(&t->watch.log, a->log, a->resume ? "a" : "w");
    a->training.checkpoint = t->checkpoint;
    a->training.resume = a->resume;
    a->training.progress = on_progress;
    a->training.user = &t->watch;
    t->watch.quiet = a->quiet;
    t->watch.live = is_terminal(stderr) && !getenv("NO_COLOR");
    return result;
}

/* Not ended by an interrupt or by --max-time: there is nothing to resume. */
static int is_complete(const train_job *t) {
    const carnn_train_desc *used = carnn_model_training(t->model);
    int64_t waited = t->watch.epochs - carnn_model_best_epoch(t->model);
    return t->watch.epochs >= used->epochs ||
           (t->valid && used->patience > 0 && waited >= used->patience);
}

/* Trains, and saves whatever weights are worth it: those of the best epoch, also where the
   training was interrupted or met NaN. */
static int run_training(train_job *t) {
    carnn_error error;
    carnn_status status;
    long long best;
    int result;
    status = carnn_train(t->model, t->train, t->valid, &t->a->training, &error);
    if (t->watch.shown) fputc('\n', stderr);
    best = (long long)carnn_model_best_epoch(t->model);
    result = status == CARNN_OK || status == CARNN_ERR_STOPPED ? DONE : failed(&error);
    if (result && (result != DIVERGED || !best)) return result;
    if (best && carnn_model_save(t->model, t->a->out, &error)) return failed(&error);
    if (best && status)
        fprintf(stderr, "carnn: %s has the weights of epoch %lld\n", t->a->out, best);
    if (result == DONE && is_complete(t)) remove(t->checkpoint);
    else if (result == DONE)
        fprintf(stderr, "carnn: %s; the same command with --resume goes on\n",
                status ? "interrupted" : "the time is over");
    return result ? result : interrupted ? INTERRUPTED : DONE;
}

static void print_training(const train_job *t, double seconds) {
    const carnn_model *m = t->model;
    char time[32];
    printf("model  %s: %zu parameters, epoch %lld, %s\n", t->a->out, carnn_model_parameters(m),
           (long long)carnn_model_best_epoch(m), duration(seconds, time));
    printf("%s  ", t->valid ? "valid" : "train");
    print_metrics(stdout, carnn_model_scores(m));
    if (t->test) {
        printf("\ntest   ");
        print_metrics(stdout, &t->tested);
    }
    printf("\n");
}

static void json_training(const train_job *t, double seconds) {
    json j = {NULL, 0};
    j.to = stdout;
    json_open(&j, NULL, '{');
    json_model(&j, t->model);
    json_whole(&j, "examples", carnn_dataset_examples(t->train));
    json_number(&j, "seconds", seconds);
    json_whole(&j, "best_epoch", (uint64_t)carnn_model_best_epoch(t->model));
    json_metrics(&j, carnn_model_scores(t->model));
    if (t->test) {
        json_open(&j, "test", '{');
        json_whole(&j, "examples", t->tested.examples);
        json_metrics(&j, &t->tested);
        json_close(&j, '}');
    }
    json_number(&j, "memory_mib", peak_memory());
    json_text(&j, "file", t->a->out);
    json_close(&j, '}');
    printf("\n");
}

static int train(arguments *a) {
    train_job t;
    int result;
    memset(&t, 0, sizeof t);
    t.a = a;
    result = check_training(&t);
    if (!result) result = prepare_training(&t);
    can_stop = 1;
    if (!result) result = run_training(&t);
    can_stop = 0; /* scoring does not ask for interrupts */
    if (!result && t.test) {
        const carnn_model *model = t.model;
        carnn_error error;
        if (carnn_test(&model, 1, t.test, a->training.threads, &t.tested, &error))
            result = failed(&error);
    }
    if (!result) (a->json ? json_training : print_training)(&t, t.watch.seconds);
    result = close_result(t.watch.log, a->log, result);
    carnn_model_free(t.model);
    carnn_dataset_free(t.train);
    carnn_dataset_free(t.valid);
    carnn_dataset_free(t.test);
    free(t.checkpoint);
    return result;
}

/* ==== test =================================================================================== */

typedef struct parts { /* what the score of a model is the mean of */
    double *value, *weight;
    size_t count, room;
} parts;

typedef struct test_job { /* what `carnn test` holds */
    arguments *a;
    carnn_model **model;
    carnn_dataset *data;
    carnn_scores *scores; /* of the models, then of their vote */
    parts *parts;         /* likewise */
    FILE *qrels, *run;
    size_t voices;        /* of the models, and of the vote of several */
    int no_memory;
} test_job;

static void on_part(size_t model, double value, double weight, void *user) {
    test_job *t = (test_job *)user;
    parts *p = &t->parts[model];
    if (p->count == p->room) {
        size_t room = p->room ? 2 * p->room : 256;
        double *larger = (double *)realloc(p->value, room * sizeof *larger);
        if (larger) p->value = larger;
        t->no_memory |= !larger;
        larger = (double *)realloc(p->weight, room * sizeof *larger);
        if (larger) p->weight = larger;
        t->no_memory |= !larger;
        if (t->no_memory) return;
        p->room = room;
    }
    p->value[p->count] = value;
    p->weight[p->count++] = weight;
}

/* Questions are numbered as they come, and so are the sentences of each; of several models the vote
   is written. */
static void on_pair(const carnn_pair_score *p, void *user) {
    test_job *t = (test_job *)user;
    size_t question = p->question + 1, sentence = p->sentence + 1;
    if (p->model + 1 != t->voices) return;
    if (t->qrels) fprintf(t->qrels, "%zu 0 %zu-%zu %d\n", question, question, sentence, p->label);
    if (t->run)
        fprintf(t->run, "%zu Q0 %zu-%zu 0 %.9g carnn\n", question, question, sentence, p->score);
}

/* The probability that model i and the first differ as much by chance. */
static double significance(const test_job *t, size_t i) {
    const parts *first = &t->parts[0], *other = &t->parts[i];
    return carnn_significance(first->count, first->value, other->value, first->weight, 1);
}

/* The scores of a model, or of the vote of several: then what the models share, and their
   parameters together. */
static void json_score(json *j, const char *key, const test_job *t, size_t from, size_t count,
                       const char *file) {
    const carnn_model_desc *first = carnn_model_describe(t->model[from]);
    size_t i, parameters = 0, number = key ? count : from;
    int one_cell = 1, one_seed = 1;
    for (i = from; i < from + count; i++) {
        parameters += carnn_model_parameters(t->model[i]);
        one_cell &= !strcmp(carnn_model_describe(t->model[i])->cell, first->cell);
        one_seed &= carnn_model_describe(t->model[i])->seed == first->seed;
    }
    json_open(j, key, '{');
    json_text(j, "task", first->task);
    json_text(j, "cell", one_cell ? first->cell : "mixed");
    json_whole(j, "parameters", parameters);
    if (one_seed) json_whole(j, "seed", first->seed);
    else json_text(j, "seed", NULL);
    json_whole(j, "examples", t->scores[number].examples);
    json_number(j, "seconds", t->scores[number].seconds);
    json_metrics(j, &t->scores[number]);
    if (carnn_dataset_left_out(t->data))
        json_whole(j, "left_out", carnn_dataset_left_out(t->data));
    if (number) json_number(j, "p_value", significance(t, number));
    if (file) json_text(j, "file", file);
    json_close(j, '}');
}

static void json_test(const test_job *t) {
    const list *files = &t->a->files;
    size_t i, count = files->count;
    json j = {NULL, 0};
    j.to = stdout;
    if (count > 1) {
        json_open(&j, NULL, '{');
        json_open(&j, "models", '[');
    }
    for (i = 0; i < count; i++) json_score(&j, NULL, t, i, 1, files->item[i]);
    if (count > 1) {
        json_close(&j, ']');
        json_score(&j, "vote", t, 0, count, NULL);
        json_close(&j, '}');
    }
    printf("\n");
}

/* A line for each model; p is by paired bootstrap. */
static void print_test(const test_job *t) {
    const list *files = &t->a->files;
    const carnn_scores *s = t->scores;
    size_t i, width = 4;
    for (i = 0; i < files->count; i++)
        if (strlen(files->item[i]) > width) width = strlen(files->item[i]);
    for (i = 0; i < t->voices; i++) {
        printf("%-*s  ", (int)width, i < files->count ? files->item[i] : "vote");
        print_metrics(stdout, s + i);
        printf("  (%zu examples, %.2f s", s[i].examples, s[i].seconds);
        if (i) printf(", p %.4f against the first", significance(t, i));
        printf(")\n");
    }
}

/* Loads the models and scores them. */
static int test_models(test_job *t) {
    arguments *a = t->a;
    carnn_test_desc desc;
    carnn_error error;
    const char *task = NULL;
    size_t i;
    int result = DONE;
    for (i = 0; i < a->files.count && !result; i++) {
        result = load_model(&t->model[i], a->files.item[i]);
        if (result) continue;
        if (task && strcmp(task, carnn_model_describe(t->model[i])->task))
            result = usage("test: %s is a model of another task", a->files.item[i]);
        task = carnn_model_describe(t->model[i])->task;
    }
    if (!result && (a->qrels || a->run) && strcmp(task, "answer"))
        result = usage("test: --qrels and --run are for answer models");
    if (!result) result = load_data(&t->data, task, &a->data, NULL, a->clean, 0);
    if (!result) result = open_result(&t->qrels, a->qrels, "w");
    if (!result) result = open_result(&t->run, a->run, "w");
    memset(&desc, 0, sizeof desc);
    desc.threads = a->training.threads;
    if (a->files.count > 1) desc.part = on_part;
    if (t->qrels || t->run) desc.pair = on_pair;
    desc.user = t;
    if (!result && carnn_test_parts((const carnn_model *const *)t->model, a->files.count, t->data,
                                    &desc, t->scores, &error))
        result = failed(&error);
    result = close_result(t->qrels, a->qrels, result);
    result = close_result(t->run, a->run, result);
    return t->no_memory ? no_memory() : result;
}

static int test(arguments *a) {
    test_job t;
    size_t i, count = a->files.count;
    int result = FAILED;
    memset(&t, 0, sizeof t);
    t.a = a;
    t.voices = count + (count > 1);
    t.model = (carnn_model **)calloc(count, sizeof *t.model);
    t.scores = (carnn_scores *)calloc(t.voices, sizeof *t.scores);
    t.parts = (parts *)calloc(t.voices, sizeof *t.parts);
    print_counts = a->counts;
    if (!t.model || !t.scores || !t.parts) no_memory();
    else if (!a->data.count) result = usage("test: --data FILE is missing, what to score on");
    else result = test_models(&t);
    if (!result) (a->json ? json_test : print_test)(&t);
    for (i = 0; t.model && i < count; i++) carnn_model_free(t.model[i]);
    for (i = 0; t.parts && i < t.voices; i++) {
        free(t.parts[i].value);
        free(t.parts[i].weight);
    }
    carnn_dataset_free(t.data);
    free(t.model);
    free(t.scores);
    free(t.parts);
    return result;
}

/* ==== Examples, line by line ================================================================= */

typedef struct line {
    char *text; /* ends with a NUL, without the line's end */
    size_t length, room;
    size_t number; /* from 1 */
} line;

enum { LINE_READ, LINE_END, LINE_NO_MEMORY };

/* The next line, however long and whatever bytes are in it. */
static int next_line(FILE *in, line *l) {
    int c = getc(in), any = c != EOF;
    for (l->length = 0; c != EOF && c != '\n'; c = getc(in)) {
        if (l->length + 2 > l->room) {
            size_t room = l->room ? 2 * l->room : 256;
            char *text = (char *)realloc(l->text, room);
            if (!text) return LINE_NO_MEMORY;
            l->text = text;
            l->room = room;
        }
        l->text[l->length++] = (char)c;
    }
    if (!any) return LINE_END;
    if (l->length && l->text[l->length - 1] == '\r') l->length--;
    if (!l->number++ && l->length >= 3 && !memcmp(l->text, "\xEF\xBB\xBF", 3)) /* UTF-8 */
        memmove(l->text, l->text + 3, l->length -= 3);
    if (l->room) l->text[l->length] = '\0';
    return LINE_READ;
}

static int is_blank(const char *text, size_t length) {
    size_t i = 0;
    while (i < length && strchr(" \t\v\f\r", text[i]) && text[i]) i++;
    return i == length;
}

typedef struct talk { /* a session on a stream of dialogs */
    arguments *a;
    carnn_model *model;
    carnn_session *session;
    FILE *in, *questions; /* questions: of a folder of pairs, else NULL */
    line line, asked;     /* the line at hand of each */
    int result;           /* not DONE: a failure ends the talk */
    int done;             /* nothing more is to be read */
    size_t examples;
    size_t *best; /* (top) */
    double *probability;
    const char *question; /* of the pair at hand */
    size_t question_length;
} talk;

/* Moves on to the next line of the data; 0 where the talk ends. */
static int more_lines(talk *t) {
    int state = t->done || t->result ? LINE_END : next_line(t->in, &t->line);
    if (state == LINE_NO_MEMORY) t->result = no_memory();
    if (state == LINE_END && !t->result && ferror(t->in))
        t->result = not_read(t->in == stdin ? STANDARD_INPUT : t->a->data.item[0]);
    return state == LINE_READ;
}

/* A tab by itself says something: it is an example of empty texts. */
static int says_nothing(const line *l) {
    return !l->length || (is_blank(l->text, l->length) && !memchr(l->text, '\t', l->length));
}

/* Moves `*text` behind the number of a line and its blank; -1 if there is no number. */
static int64_t line_number(const char **text, const char *end) {
    const char *s = *text;
    int64_t number = 0;
    for (; s < end && *s >= '0' && *s <= '9'; s++)
        if (number <= UINT32_MAX) number = number * 10 + (*s - '0');
    if (s == *text || (s < end && *s != ' ' && *s != '\t')) return -1;
    *text = s + (s < end && *s == ' ');
    return number <= UINT32_MAX ? number : (int64_t)UINT32_MAX + 1;
}

/* Where the column at `text` ends: at the next tab, or with the line. */
static const char *column_end(const char *text, const char *end) {
    const char *tab = (const char *)memchr(text, '\t', (size_t)(end - text));
    return tab ? tab : end;
}

/* What was said in the columns from `text` on: the second one, if it is not blank, or the first;
   it ends at `*end`. */
static const char *said(const char *text, const char **end) {
    const char *first_end = column_end(text, *end), *second = first_end + (first_end < *end);
    *end = column_end(second, *end);
    if (!is_blank(second, (size_t)(*end - second))) return second;
    *end = first_end;
    return text;
}

/* Works on a turn before the session hears what was really answered; on a sentence; on the sentence
   of a pair. */
typedef void (*on_turn)(talk *t, const char *user, size_t length);

/* `N user<TAB>response` is a turn, a line without a tab a fact; an empty line, a number less than
   the one before, or a second 1, begins a dialog. Of three columns the last is what was said. */
static void follow_dialogs(talk *t, on_turn turn) {
    int64_t before = 0, number;
    while (more_lines(t)) {
        const char *text = t->line.length ? t->line.text : "", *end = text + t->line.length, *tab;
        int blank = says_nothing(&t->line);
        number = blank ? 0 : line_number(&text, end);
        if (blank || (number >= 0 && number < before) || (number == 1 && before == 1))
            carnn_session_reset(t->session);
        if (number >= 0) before = number;
        if (blank) continue;
        tab = (const char *)memchr(text, '\t', (size_t)(end - text));
        if (!tab) {
            carnn_session_hear(t->session, CARNN_FACT, text, (size_t)(end - text));
            continue;
        }
        t->examples++;
        turn(t, text, (size_t)(tab - text));
        carnn_session_hear(t->session, CARNN_USER, text, (size_t)(tab - text));
        text = said(tab + 1, &end);
        carnn_session_hear(t->session, CARNN_SYSTEM, text, (size_t)(end - text));
    }
}

/* The columns of pairs: those that a first line names, or those of the formats without one; without
   labels question and sentence are enough. */
typedef struct columns {
    size_t question, sentence;
} columns;

/* Column `number` of a line; empty where there is none. */
static const char *column(const line *l, size_t number, size_t *length) {
    const char *at = l->length ? l->text : "", *end = at + l->length, *stop = column_end(at, end);
    for (; number && stop < end; number--) {
        at = stop + 1;
        stop = column_end(at, end);
    }
    *length = number ? 0 : (size_t)(stop - at);
    return at;
}

/* Blanks around the word do not count. */
static int is_word(const char *text, size_t length, const char *word) {
    size_t i;
    while (length && is_blank(text + length - 1, 1)) length--;
    for (; length && is_blank(text, 1); length--) text++;
    for (i = 0; i < length && word[i]; i++)
        if ((text[i] | 32) != word[i]) return 0;
    return i == length && !word[i];
}

/* Finds the columns in the first line; returns whether that only names them. */
static int find_columns(const line *l, columns *c) {
    size_t i, count = 1, length;
    int named = 0;
    for (i = 0; i < l->length; i++) count += l->text[i] == '\t';
    c->question = count == 4 ? 2 : 0;
    c->sentence = count;
    for (i = 0; i < count; i++) {
        const char *name = column(l, i, &length);
        if (is_word(name, length, "question")) c->question = i, named = 1;
        if (is_word(name, length, "sentence") || is_word(name, length, "answer")) c->sentence = i;
    }
    if (!named || c->sentence == count) c->sentence = c->question + 1;
    return named;
}

/* Pair by pair. */
static void follow_pairs(talk *t, on_turn pair) {
    columns c = {0, 1};
    int first = 1;
    while (more_lines(t)) {
        const char *sentence;
        size_t length;
        if (says_nothing(&t->line)) continue;
        if (first && find_columns(&t->line, &c)) {
            first = 0;
            continue;
        }
        first = 0;
        t->examples++;
        t->question = column(&t->line, c.question, &t->question_length);
        sentence = column(&t->line, c.sentence, &length);
        pair(t, sentence, length);
    }
}

/* A file of a folder; NULL where there is none. */
static FILE *open_within(const char *folder, const char *name) {
    size_t room = strlen(folder) + strlen(name) + 2;
    char *path = (char *)malloc(room);
    FILE *file;
    if (!path) return NULL;
    snprintf(path, room, "%s/%s", folder, name);
    file = fopen(path, "rb");
    free(path);
    return file;
}

/* Is the data a folder? Then its questions are read from a.toks and its sentences from b.toks. */
static int open_folder(talk *t) {
    const char *folder = t->in == stdin ? NULL : t->a->data.item[0];
    t->questions = folder ? open_within(folder, "a.toks") : NULL;
    if (!t->questions) return 0;
    fclose(t->in);
    t->in = open_within(folder, "b.toks");
    if (t->in) return 1;
    fprintf(stderr, "carnn: %s/b.toks: %s\n", folder, strerror(errno));
    t->result = FAILED;
    return 1;
}

/* Moves on to the next question and its sentence; 0 where the talk ends. */
static int more_pairs(talk *t) {
    int sentence = more_lines(t), state;
    if (t->done || t->result) return 0;
    state = next_line(t->questions, &t->asked);
    if (state == LINE_NO_MEMORY) t->result = no_memory();
    else if (sentence != (state == LINE_READ)) {
        fprintf(stderr, "carnn: %s/%s:%zu: expected a line as in the file beside it, found the "
                "end\n", t->a->data.item[0], sentence ? "a.toks" : "b.toks",
                (sentence ? t->asked.number : t->line.number) + 1);
        t->result = BAD_DATA;
    }
    return sentence && !t->result;
}

/* Pair by pair, likewise. */
static void follow_folder(talk *t, on_turn pair) {
    while (more_pairs(t)) {
        t->examples++;
        t->question = t->asked.length ? t->asked.text : "";
        t->question_length = t->asked.length;
        pair(t, t->line.length ? t->line.text : "", t->line.length);
    }
}

/* Opens a model of one of the `tasks`, and the data. */
static int open_talk(talk *t, arguments *a, const char *tasks) {
    carnn_error error;
    const char *task;
    size_t top = a->top > 0 ? (size_t)a->top : 1;
    int result = load_model(&t->model, a->files.item[0]);
    t->a = a;
    t->in = stdin;
    if (result) return result;
    task = carnn_model_describe(t->model)->task;
    if (!strstr(tasks, task)) return usage("%s: a model of the task %s cannot do that",
                                           a->files.item[0], task);
    if (top > carnn_model_candidate_count(t->model)) top = carnn_model_candidate_count(t->model);
    a->top = a->top ? (int64_t)top : 0;
    t->best = (size_t *)calloc(top + 1, sizeof *t->best);
    t->probability = (double *)calloc(top + 1, sizeof *t->probability);
    if (!t->best || !t->probability) return no_memory();
    if (a->data.count > 1) return usage("one --data is all that can be read here");
    if (a->data.count && strcmp(a->data.item[0], "-")) t->in = fopen(a->data.item[0], "rb");
    if (!t->in) return not_read(a->data.item[0]);
    return carnn_session_open(&t->session, t->model, NULL, &error) ? failed(&error) : DONE;
}

static int close_talk(talk *t, int result) {
    if (t->in && t->in != stdin) fclose(t->in);
    if (t->questions) fclose(t->questions);
    carnn_session_free(t->session);
    carnn_model_free(t->model);
    free(t->line.text);
    free(t->asked.text);
    free(t->best);
    free(t->probability);
    return result;
}

/* ==== predict, explain, chat ================================================================= */

static int is_lm(const talk *t) {
    return !strcmp(carnn_model_describe(t->model)->task, "lm");
}

static int is_answer(const talk *t) {
    return !strcmp(carnn_model_describe(t->model)->task, "answer");
}

/* The line of one example. */
static void print_prediction(const carnn_prediction *p, void *user) {
    const talk *t = (const talk *)user;
    size_t i;
    if (is_answer(t)) printf("%.9g", p->score);
    if (is_lm(t)) printf("%.9g\t%zu", p->score, p->tokens);
    for (i = 0; i < p->count; i++) {
        if (i) putchar('\t');
        if (t->a->top) printf("%.6g\t", p->probability[i]);
        fputs(carnn_model_candidate(t->model, p->candidate[i]), stdout);
    }
    putchar('\n');
}

/* The same where an answer is waited for. */
static void print_at_once(talk *t, double score, size_t tokens, size_t count) {
    carnn_prediction p = {0, count, t->best, t->probability, score, tokens};
    print_prediction(&p, t);
    fflush(stdout);
}

static void predict_turn(talk *t, const char *user, size_t length) {
    size_t top = t->a->top ? (size_t)t->a->top : 1;
    print_at_once(t, 0.0, 0, carnn_session_rank(t->session, user, length, top, t->best,
                                                t->probability));
}

/* Sentence by sentence; an empty line, or one that begins with "=", ends a document. */
static void follow_sentences(talk *t, on_turn sentence) {
    while (more_lines(t)) {
        const char *text = t->line.length ? t->line.text : "";
        if (is_blank(text, t->line.length) || *text == '=') {
            carnn_session_reset(t->session);
            continue;
        }
        t->examples++;
        sentence(t, text, t->line.length);
    }
}

static void predict_sentence(talk *t, const char *text, size_t length) {
    double nll;
    size_t tokens = carnn_session_score(t->session, text, length, &nll);
    print_at_once(t, nll, tokens, 0);
}

static double match(talk *t, const char *sentence, size_t length) {
    return carnn_session_match(t->session, t->question, t->question_length, sentence, length);
}

static void predict_pair(talk *t, const char *sentence, size_t length) {
    print_at_once(t, match(t, sentence, length), 0, 0);
}

/* Opens model and data and does what belongs to the task with each example. */
static int follow_examples(talk *t, arguments *a, on_turn turn, on_turn sentence, on_turn pair) {
    int result;
    memset(t, 0, sizeof *t);
    result = open_talk(t, a, "dialog lm answer");
    if (result) return result;
    if (is_lm(t)) follow_sentences(t, sentence);
    else if (!is_answer(t)) follow_dialogs(t, turn);
    else if (open_folder(t)) follow_folder(t, pair);
    else follow_pairs(t, pair);
    return t->result;
}

/* A file is read as a whole and predicted in batches. */
static int predict_file(talk *t, arguments *a) {
    carnn_dataset *data = NULL;
    carnn_predict_desc desc;
    carnn_error error;
    int result;
    memset(t, 0, sizeof *t);
    memset(&desc, 0, sizeof desc);
    t->a = a;
    result = load_model(&t->model, a->files.item[0]);
    if (!result)
        result = load_data(&data, carnn_model_describe(t->model)->task, &a->data, NULL, 0, 1);
    desc.threads = a->training.threads;
    desc.top = (size_t)a->top;
    desc.example = print_prediction;
    desc.user = t;
    if (!result && carnn_predict(t->model, data, &desc, &error)) result = failed(&error);
    t->examples = carnn_dataset_examples(data);
    carnn_dataset_free(data);
    return result;
}

static int predict(arguments *a) {
    talk t;
    int file = a->data.count && strcmp(a->data.item[0], "-");
    int result = file ? predict_file(&t, a)
                      : follow_examples(&t, a, predict_turn, predict_sentence, predict_pair);
    if (!result && !t.examples && !is_lm(&t) && !is_answer(&t))
        fputs("carnn: nothing to answer: no line is `N user<TAB>response`\n", stderr);
    return close_talk(&t, result);
}

/* Is the example at hand to be explained? After the one that --example names nothing is. */
static int is_asked_for(talk *t) {
    size_t only = (size_t)t->a->example;
    t->done = only == t->examples;
    return !only || t->done;
}

/* What the last answer is explained by, `*count` parts, to be freed; NULL: out of memory, which
   ends the talk. */
static carnn_contribution *explanation(talk *t, size_t *count, double *rest) {
    carnn_contribution *part;
    *count = carnn_session_explain(t->session, 0, NULL, rest);
    part = (carnn_contribution *)calloc(*count + 1, sizeof *part);
    if (part) carnn_session_explain(t->session, *count, part, rest);
    else t->result = no_memory();
    return part;
}

/* How many of the parts are larger than part i. */
static size_t larger_parts(const carnn_contribution *part, size_t count, size_t i) {
    size_t j, larger = 0;
    for (j = 0; j < count; j++) larger += fabs(part[j].score) > fabs(part[i].score);
    return larger;
}

/* What each utterance added to the score of the last answer: the `most` that added or took most. */
static void show_contributions(talk *t, size_t most) {
    static const char *const who[] = {"user", "bot", "fact"};
    double rest, sum;
    size_t i, count;
    carnn_contribution *part = explanation(t, &count, &rest);
    if (!part) return;
    printf("%10s  %9s\n", "score", "attention");
    for (i = 0, sum = rest; i < count; i++) {
        sum += part[i].score;
        if (larger_parts(part, count, i) < most)
            printf("%+10.4f  %9.4f  %-4s  %s\n", part[i].score, part[i].attention,
                   who[part[i].speaker], part[i].text);
        else rest += part[i].score;
    }
    printf("%+10.4f  %9s  rest\n%+10.4f  %9s  sum\n\n", rest, "", sum, "");
    free(part);
}

static void explain_turn(talk *t, const char *user, size_t length) {
    if (!is_asked_for(t)) return;
    carnn_session_rank(t->session, user, length, 1, t->best, t->probability);
    printf("example %zu: %.*s\nanswer: %s (probability %.4f)\n", t->examples, (int)length, user,
           carnn_model_candidate(t->model, t->best[0]), t->probability[0]);
    show_contributions(t, (size_t)-1);
    fflush(stdout);
}

/* The words of the sentence before with their shares in the context, then those of this one with
   what they add to the logit of the most probable next word. */
static void explain_sentence(talk *t, const char *text, size_t length) {
    carnn_contribution *part;
    size_t i, count;
    double rest, sum;
    carnn_session_score(t->session, text, length, NULL);
    if (!is_asked_for(t)) return;
    part = explanation(t, &count, &rest);
    if (!part) return;
    printf("example %zu: %.*s\nnext word: %s\n%10s  %9s\n", t->examples, (int)length, text,
           carnn_session_next_word(t->session), "score", "context");
    for (i = 0, sum = rest; i < count; i++) {
        if (part[i].speaker == CARNN_FACT)
            printf("%10s  %9.4f  %s\n", "", part[i].attention, part[i].text);
        else
            printf("%+10.4f  %9s  %s\n", part[i].score, "", part[i].text);
        sum += part[i].score;
    }
    printf("%+10.4f  %9s  rest\n%+10.4f  %9s  sum\n\n", rest, "", sum, "");
    fflush(stdout);
    free(part);
}

/* An alignment, row by row: numbers, or with `color` fields that are the lighter the larger. */
static void show_alignment(talk *t, int of_sentence, const carnn_contribution *word, size_t first) {
    size_t rows, others, i, j;
    const float *E = carnn_session_alignment(t->session, of_sentence, &rows, &others);
    if (!E) return;
    printf("alignment of the words of the %s\n", of_sentence ? "sentence" : "question");
    for (i = 0; i < rows; i++) {
        for (j = 0; j < others; j++) {
            double share = (double)E[i * others + j];
            if (t->a->color) printf("\033[48;5;%dm  ", 232 + (int)(23.0 * share + 0.5));
            else printf("%.2f ", share);
        }
        printf("%s%s\n", t->a->color ? "\033[0m " : " ", word[first + i].text);
    }
}

/* Weights and shares of the words of both sentences, then the alignments. */
static void explain_pair(talk *t, const char *sentence, size_t length) {
    carnn_contribution *part;
    size_t i, count, questions = 0;
    double rest, score;
    if (!is_asked_for(t)) return;
    score = match(t, sentence, length);
    part = explanation(t, &count, &rest);
    if (!part) return;
    printf("example %zu: %.*s\nsentence: %.*s\nscore %.9g\n%10s  %9s\n", t->examples,
           (int)t->question_length, t->question, (int)length, sentence, score, "share", "weight");
    for (i = 0; i < count; i++) {
        questions += part[i].speaker == CARNN_USER;
        printf("%+10.4f  %9.4f  %-8s  ", part[i].score, part[i].attention,
               part[i].speaker == CARNN_USER ? "question" : "sentence");
        if (t->a->color)
            printf("\033[48;5;%dm%s\033[0m\n", 232 + (int)(23.0 * part[i].attention + 0.5),
                   part[i].text);
        else puts(part[i].text);
    }
    printf("%+10.4f  %9s  rest\n", rest, "");
    show_alignment(t, 0, part, 0);
    show_alignment(t, 1, part, questions);
    putchar('\n');
    fflush(stdout);
    free(part);
}

static int explain(arguments *a) {
    talk t;
    int result = follow_examples(&t, a, explain_turn, explain_sentence, explain_pair);
    if (!result && (!t.examples || (size_t)a->example > t.examples)) {
        fprintf(stderr, "carnn: the data has only %zu examples\n", t.examples);
        result = BAD_DATA;
    }
    return close_talk(&t, result);
}

#define CHAT_PARTS 3 /* utterances that an explanation in a chat shows */

static int chat(arguments *a) {
    talk t;
    int result, prompt = is_terminal(stdin) && is_terminal(stdout);
    memset(&t, 0, sizeof t);
    result = open_talk(&t, a, "dialog");
    if (!result && prompt)
        fputs("Say something; an empty line begins a new dialog, Ctrl-D ends.\n", stderr);
    while (!result) {
        if (prompt) fputs("> ", stdout);
        fflush(stdout);
        if (!more_lines(&t)) break;
        if (a->explain && !prompt) printf("> %.*s\n", (int)t.line.length, t.line.text);
        if (t.line.length) {
            puts(carnn_session_reply(t.session, t.line.text, t.line.length));
            if (a->explain) show_contributions(&t, CHAT_PARTS);
        } else carnn_session_reset(t.session);
    }
    if (!result && prompt) putchar('\n');
    return close_talk(&t, result ? result : t.result);
}

/* ==== rank =================================================================================== */

typedef struct ranked {
    double score;
    size_t number;
    char *sentence;
} ranked;

static int by_score(const void *a_, const void *b_) {
    const ranked *a = (const ranked *)a_, *b = (const ranked *)b_;
    if (a->score > b->score || a->score < b->score) return a->score > b->score ? -1 : 1;
    return a->number < b->number ? -1 : 1;
}

/* Scores the sentences of the input, a line each. */
static int score_sentences(talk *t, ranked **sentences, size_t *count) {
    size_t room = 0;
    while (more_lines(t)) {
        ranked *r;
        if (*count == room) {
            room = room ? 2 * room : 64;
            r = (ranked *)realloc(*sentences, room * sizeof *r);
            if (!r) return no_memory();
            *sentences = r;
        }
        r = *sentences + *count;
        r->sentence = (char *)malloc(t->line.length + 1);
        if (!r->sentence) return no_memory();
        if (t->line.length) memcpy(r->sentence, t->line.text, t->line.length);
        r->sentence[t->line.length] = '\0';
        r->number = (*count)++;
        r->score = match(t, r->sentence, t->line.length);
    }
    return t->result;
}

static int rank(arguments *a) {
    talk t;
    ranked *sentences = NULL;
    size_t i, count = 0, top = a->top ? (size_t)a->top : (size_t)-1;
    int result;
    memset(&t, 0, sizeof t);
    if (!a->question) return usage("rank: --question TEXT is missing");
    result = open_talk(&t, a, "answer");
    t.question = a->question;
    t.question_length = strlen(a->question);
    if (!result) result = score_sentences(&t, &sentences, &count);
    if (!result && count) qsort(sentences, count, sizeof *sentences, by_score);
    for (i = 0; !result && i < count && i < top; i++)
        printf("%.9g\t%s\n", sentences[i].score, sentences[i].sentence);
    for (i = 0; i < count; i++) free(sentences[i].sentence);
    free(sentences);
    return close_talk(&t, result);
}

/* ==== generate =============================================================================== */

/* Bytes of any sentence that begins with the prompt, which has no more words than bytes. */
static size_t sentence_room(const carnn_model *m, const char *prompt, int64_t words) {
    size_t i, longest = 1, most = strlen(prompt) + (size_t)words;
    for (i = 0; i < carnn_model_word_count(m); i++) {
        size_t length = strlen(carnn_model_word(m, i)) + 1; /* with the blank before it */
        if (length > longest) longest = length;
    }
    return most < SIZE_MAX / 2 / longest ? most * longest + 1 : SIZE_MAX / 2;
}

static int generate(arguments *a) {
    talk t;
    char *text = NULL;
    const char *prompt = a->prompt ? a->prompt : "";
    int64_t i, sentences = a->sentences ? a->sentences : 10;
    size_t room = 0;
    int result;
    memset(&t, 0, sizeof t);
    a->sampling.seed = a->model.seed ? a->model.seed : 1;
    if (!a->sampling.words) a->sampling.words = 100;
    result = open_talk(&t, a, "lm");
    if (!result) {
        room = sentence_room(t.model, prompt, a->sampling.words);
        text = (char *)malloc(room);
        if (!text) result = no_memory();
    }
    for (i = 0; !result && i < sentences; i++, prompt = "") {
        carnn_session_generate(t.session, &a->sampling, prompt, strlen(prompt), text, room);
        puts(text);
        fflush(stdout);
    }
    free(text);
    return close_talk(&t, result);
}

/* ==== info =================================================================================== */

static void json_info(const carnn_model *m, const char *file) {
    const carnn_model_desc *d = carnn_model_describe(m);
    json j = {NULL, 0};
    size_t i;
    j.to = stdout;
    json_open(&j, NULL, '{');
    json_text(&j, "file", file);
    json_whole(&j, "bytes", carnn_model_size(m));
    json_model(&j, m);
    json_whole(&j, "words", carnn_model_word_count(m));
    json_whole(&j, "candidates", carnn_model_candidate_count(m));
    json_options(&j, d, NULL, 0);
    json_open(&j, "training", '{');
    json_options(&j, d, carnn_model_training(m), 1);
    json_close(&j, '}');
    json_whole(&j, "best_epoch", (uint64_t)carnn_model_best_epoch(m));
    json_open(&j, "scores", '{');
    json_whole(&j, "examples", carnn_model_scores(m)->examples);
    json_metrics(&j, carnn_model_scores(m));
    json_close(&j, '}');
    json_open(&j, "tensors", '[');
    for (i = 0; carnn_model_tensor(m, i).name; i++) {
        carnn_tensor t = carnn_model_tensor(m, i);
        json_open(&j, NULL, '{');
        json_text(&j, "name", t.name);
        json_whole(&j, "rows", t.rows);
        json_whole(&j, "columns", t.columns);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
    printf("\n");
}

static void print_info(const carnn_model *m, const char *file) {
    const carnn_model_desc *d = carnn_model_describe(m);
    const carnn_train_desc *trained = carnn_model_training(m);
    const carnn_scores *s = carnn_model_scores(m);
    size_t i, count;
    const carnn_option *o = carnn_options(&count);
    char text[OPTION_TEXT];
    printf("%-14s%s (%zu bytes, GGUF 3)\n", "file", file, carnn_model_size(m));
    printf("%-14s%s\n", "task", d->task);
    for (i = 0; i < count; i++, o++)
        if (option_serves(o, d->task) &&
            (!o->of_training ||
             (trained->optimizer && strcmp(option_text(o, d, trained, text), "0"))))
            printf("%-14s%s\n", o->name, option_text(o, d, trained, text));
    printf("%-14s%zu\n%-14s%zu\n%-14s%zu\n", "parameters", carnn_model_parameters(m), "words",
           carnn_model_word_count(m), "candidates", carnn_model_candidate_count(m));
    if (s->count) {
        printf("%-14sepoch %lld: ", "scores", (long long)carnn_model_best_epoch(m));
        print_metrics(stdout, s);
        printf(" on %zu examples\n", s->examples);
    }
    for (i = 0; carnn_model_tensor(m, i).name; i++) {
        carnn_tensor t = carnn_model_tensor(m, i);
        printf("%-14s%s (%zu, %zu)\n", i ? "" : "tensors", t.name, t.rows, t.columns);
    }
}

static int info(arguments *a) {
    carnn_model *model = NULL;
    int result = load_model(&model, a->files.item[0]);
    if (!result) (a->json ? json_info : print_info)(model, a->files.item[0]);
    carnn_model_free(model);
    return result;
}

/* ==== plot =================================================================================== */

enum { TRAIN_LOSS, VALID_LOSS, SCORE, CURVES };

typedef struct logged { /* an epoch */
    double epoch, value[CURVES]; /* NAN: there is none */
} logged;

typedef struct history { /* a run, as `train --log` wrote it */
    const char *file;
    char metric[32]; /* the name of the scores, "" while there are none */
    double best;     /* the epoch with the best one */
    logged *epoch;
    size_t count, room;
} history;

static const char *skip_blanks(const char *s) {
    while (*s == ' ' || *s == '\t') s++;
    return s;
}

/* A JSON string as it is written, shortened to `size` bytes with the NUL; NULL: there is none. */
static const char *read_string(const char *s, char *text, size_t size) {
    size_t length = 0;
    if (*s++ != '"') return NULL;
    for (; *s && *s != '"'; s++) {
        if (*s == '\\' && s[1]) s++;
        if (length + 1 < size) text[length++] = *s;
    }
    text[length] = '\0';
    return *s ? s + 1 : NULL;
}

/* A JSON number or null; what cannot be drawn is NAN. */
static const char *read_number(const char *s, double *number) {
    char *end;
    *number = NAN;
    if (!strncmp(s, "null", 4)) return s + 4;
    if ((*s < '0' || *s > '9') && *s != '-') return NULL;
    *number = strtod(s, &end);
    if (!(fabs(*number) < 1e30)) *number = NAN;
    return end > s ? end : NULL;
}

/* Of several metrics of the validation set the first is the one that chooses the best epoch. */
static void keep_number(history *h, logged *e, const char *within, const char *key,
                        double number) {
    int valid = !strcmp(within, "valid");
    if (*within && !valid) return;
    if (!strcmp(key, "loss")) e->value[valid ? VALID_LOSS : TRAIN_LOSS] = number;
    else if (!valid && !strcmp(key, "epoch")) e->epoch = number;
    else if (!valid && !strcmp(key, "best_epoch")) h->best = number;
    else if (valid && strcmp(key, "tokens")) {
        if (!*h->metric) snprintf(h->metric, sizeof h->metric, "%s", key);
        if (!strcmp(h->metric, key)) e->value[SCORE] = number;
    }
}

/* A JSON object of numbers, strings and, at the top (`within` is ""), objects of them; NULL: there
   is none. */
static const char *read_object(const char *s, const char *within, history *h, logged *e) {
    char key[sizeof h->metric], text[1];
    double number;
    if (*s != '{') return NULL;
    if (*skip_blanks(s + 1) == '}') return skip_blanks(s + 1) + 1;
    do {
        s = read_string(skip_blanks(s + 1), key, sizeof key);
        if (!s || *(s = skip_blanks(s)) != ':') return NULL;
        s = skip_blanks(s + 1);
        if (*s == '{' && !*within) s = read_object(s, key, h, e);
        else if (*s == '"') s = read_string(s, text, sizeof text);
        else if ((s = read_number(s, &number)) != NULL) keep_number(h, e, within, key, number);
        if (s) s = skip_blanks(s);
    } while (s && *s == ',');
    return s && *s == '}' ? s + 1 : NULL;
}

/* A run that was resumed may write an epoch again: then the later line counts. */
static int add_epoch(history *h, const logged *e) {
    while (h->count && h->epoch[h->count - 1].epoch >= e->epoch) h->count--;
    if (h->count == h->room) {
        size_t room = h->room ? 2 * h->room : 64;
        logged *larger = (logged *)realloc(h->epoch, room * sizeof *larger);
        if (!larger) return no_memory();
        h->epoch = larger;
        h->room = room;
    }
    h->epoch[h->count++] = *e;
    return DONE;
}

#define LAST_EPOCH 1e15 /* up to there an axis can step from epoch to epoch */

static int read_history(history *h, FILE *in, line *l) {
    int state = LINE_READ, result = DONE;
    while (!result && (state = next_line(in, l)) == LINE_READ) {
        logged e = {NAN, {NAN, NAN, NAN}};
        const char *end = read_object(l->length ? l->text : "", "", h, &e);
        if (end && !*skip_blanks(end) && e.epoch >= 1.0 && e.epoch <= LAST_EPOCH &&
            !isnan(e.value[TRAIN_LOSS])) {
            result = add_epoch(h, &e);
            continue;
        }
        fprintf(stderr, "carnn: %s:%zu: expected an object with \"epoch\" and \"loss\", as train "
                "--log writes it\n", h->file, l->number);
        return BAD_DATA;
    }
    if (state == LINE_NO_MEMORY) return no_memory();
    if (result || h->count || ferror(in)) return result;
    fprintf(stderr, "carnn: %s:1: expected an epoch, found an empty file\n", h->file);
    return BAD_DATA;
}

static int open_history(history *h, const char *file) {
    FILE *in = fopen(file, "rb");
    line l = {NULL, 0, 0, 0};
    int result;
    h->file = file;
    h->best = NAN;
    result = in ? read_history(h, in, &l) : FAILED;
    if (!in || ferror(in)) result = not_read(file);
    if (in) fclose(in);
    free(l.text);
    return result;
}

/* "perplexity 3.4448 at epoch 20": the best score, or the last loss. */
static void summary(const history *h, char text[96]) {
    size_t i;
    snprintf(text, 96, "loss %.4f at epoch %.0f", h->epoch[h->count - 1].value[TRAIN_LOSS],
             h->epoch[h->count - 1].epoch);
    for (i = 0; i < h->count; i++)
        if (h->epoch[i].epoch == h->best && !isnan(h->epoch[i].value[SCORE]))
            snprintf(text, 96, "%s %.4f at epoch %.0f", h->metric, h->epoch[i].value[SCORE],
                     h->best);
}

typedef struct panel { /* a diagram: the losses, or the scores of one name */
    const char *name;
    double left, right, bottom, top; /* epochs and values at its edges */
    double across, up;               /* from one mark on the axis to the next */
} panel;

typedef struct picture {
    history *run;
    size_t runs;
    panel *panel; /* (runs + 1) */
    size_t panels;
} picture;

static int shows(const panel *p, const history *h, int curve) {
    return !strcmp(p->name, curve == SCORE ? h->metric : "loss");
}

/* 1, 2 or 5 times a power of 10, of which about five make the range. */
static double mark_step(double range) {
    double power = pow(10.0, floor(log10(range / 5.0))), times = range / 5.0 / power;
    return power * (times <= 1.0 ? 1.0 : times <= 2.0 ? 2.0 : times <= 5.0 ? 5.0 : 10.0);
}

/* Adds a panel around all that it shows, if there is something. */
static void add_panel(picture *v, const char *name) {
    panel *p = &v->panel[v->panels];
    size_t r, i;
    int curve;
    p->name = name;
    p->left = p->bottom = INFINITY;
    p->right = p->top = -INFINITY;
    for (r = 0; r < v->runs; r++)
        for (curve = 0; curve < CURVES; curve++)
            for (i = 0; i < v->run[r].count && shows(p, &v->run[r], curve); i++) {
                const logged *e = &v->run[r].epoch[i];
                if (isnan(e->value[curve])) continue;
                p->left = fmin(p->left, e->epoch);
                p->right = fmax(p->right, e->epoch);
                p->bottom = fmin(p->bottom, e->value[curve]);
                p->top = fmax(p->top, e->value[curve]);
            }
    if (p->left > p->right) return;
    p->right = fmax(p->right, p->left + 1.0);
    p->across = fmax(mark_step(p->right - p->left), 1.0);
    p->up = mark_step(fmax(p->top - p->bottom, 1e-6 * fmax(fabs(p->top), 1.0)));
    p->bottom = p->up * floor(p->bottom / p->up);
    p->top = fmax(p->up * ceil(p->top / p->up), p->bottom + p->up);
    v->panels++;
}

static void add_panels(picture *v) {
    size_t r, i;
    add_panel(v, "loss");
    for (r = 0; r < v->runs; r++) {
        for (i = 0; i < v->panels && strcmp(v->panel[i].name, v->run[r].metric);) i++;
        if (i == v->panels && *v->run[r].metric) add_panel(v, v->run[r].metric);
    }
}

/* The curve at an epoch, between those that were logged on a line; NAN outside. */
static double value_at(const history *h, int curve, double epoch) {
    const logged *before = NULL, *e = h->epoch, *end = e + h->count;
    for (; e < end; e++) {
        double share;
        if (isnan(e->value[curve])) continue;
        if (e->epoch <= epoch) before = e;
        if (e->epoch < epoch) continue;
        if (!before || before == e) return before ? e->value[curve] : NAN;
        share = (epoch - before->epoch) / (e->epoch - before->epoch);
        return before->value[curve] + share * (e->value[curve] - before->value[curve]);
    }
    return NAN;
}

enum { ROWS = 16, COLUMNS = 64 };

static size_t row_of(const panel *p, double value) {
    return (size_t)((ROWS - 1) * (p->top - value) / (p->top - p->bottom) + 0.5);
}

/* One run is the letter a, the next b; capitals are scores and losses of the validation set. */
static void text_panel(const picture *v, const panel *p) {
    char field[ROWS][COLUMNS + 1];
    size_t r, i;
    double mark;
    int curve;
    memset(field, ' ', sizeof field);
    for (r = 0; r < v->runs; r++)
        for (curve = 0; curve < CURVES; curve++)
            for (i = 0; i < COLUMNS && shows(p, &v->run[r], curve); i++) {
                double epoch = p->left + (p->right - p->left) * (double)i / (COLUMNS - 1);
                double value = value_at(&v->run[r], curve, epoch);
                char letter = (char)((curve == TRAIN_LOSS ? 'a' : 'A') + r % 26);
                char *at = isnan(value) ? NULL : &field[row_of(p, value)][i];
                if (at) *at = *at == ' ' || *at == letter ? letter : '*';
            }
    printf("%s\n", p->name);
    for (i = 0; i < ROWS; i++) {
        char label[16] = "";
        for (mark = p->bottom; mark < p->top + 0.5 * p->up; mark += p->up)
            if (row_of(p, mark) == i) snprintf(label, sizeof label, "%.6g", mark);
        printf("%10s |%.*s\n", label, COLUMNS, field[i]);
    }
    printf("%10s +", "");
    for (i = 0; i < COLUMNS; i++) putchar('-');
    printf("\n%13.0f%*.0f epoch\n\n", p->left, COLUMNS - 1, p->right);
}

static void text_picture(const picture *v) {
    char text[96];
    size_t i;
    for (i = 0; i < v->panels; i++) text_panel(v, &v->panel[i]);
    for (i = 0; i < v->runs; i++) {
        summary(&v->run[i], text);
        printf("  %c  %s: %s\n", (char)('a' + i % 26), v->run[i].file, text);
    }
    printf("  small letters: training, capitals: validation, *: several\n");
}

/* Points of an SVG picture: the panels stand side by side, the names of the runs below. */
enum { MARGIN = 64, HEAD = 40, WIDE = 380, HIGH = 260, FOOT = 64, LEGEND = 22 };

static const char *svg_color(size_t run) {
    static const char *const color[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                        "#e69f00", "#56b4e9", "#000000", "#999999"};
    return color[run % COUNT(color)];
}

static void svg_escaped(FILE *to, const char *text) {
    const unsigned char *s = (const unsigned char *)text;
    for (; *s; s++) {
        size_t length = utf8(s);
        if (!length || *s < 0x20) fputs("&#xfffd;", to);
        else if (strchr("<>&", *s)) fprintf(to, "&#%d;", *s);
        else fwrite(s, 1, length, to);
        if (length) s += length - 1;
    }
}

static double svg_x(const panel *p, double epoch) {
    return WIDE * (epoch - p->left) / (p->right - p->left);
}

static double svg_y(const panel *p, double value) {
    return HIGH * (p->top - value) / (p->top - p->bottom);
}

static void svg_axes(FILE *to, const panel *p) {
    double mark;
    fprintf(to, "<text x=\"0\" y=\"-12\" font-weight=\"bold\">");
    svg_escaped(to, p->name);
    fprintf(to, "</text>\n");
    for (mark = p->bottom; mark < p->top + 0.5 * p->up; mark += p->up)
        fprintf(to, "<path d=\"M0 %.1fh%d\" stroke=\"#ddd\"/>"
                "<text x=\"-8\" y=\"%.1f\" text-anchor=\"end\">%.6g</text>\n", svg_y(p, mark), WIDE,
                svg_y(p, mark) + 4.0, mark);
    for (mark = p->across * ceil(p->left / p->across); mark <= p->right; mark += p->across)
        fprintf(to, "<path d=\"M%.1f %dv5\" stroke=\"#333\"/>"
                "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.6g</text>\n", svg_x(p, mark),
                HIGH, svg_x(p, mark), HIGH + 20, mark);
    fprintf(to, "<path d=\"M0 0v%dh%d\" stroke=\"#333\" fill=\"none\"/>"
            "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">epoch</text>\n", HIGH, WIDE, WIDE,
            HIGH + 36);
}

static void svg_curve(FILE *to, const panel *p, const history *h, int curve, const char *color) {
    size_t i;
    fprintf(to, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s points=\"", color,
            curve == TRAIN_LOSS ? " stroke-dasharray=\"5 3\"" : "");
    for (i = 0; i < h->count; i++)
        if (!isnan(h->epoch[i].value[curve]))
            fprintf(to, "%.1f,%.1f ", svg_x(p, h->epoch[i].epoch),
                    svg_y(p, h->epoch[i].value[curve]));
    fprintf(to, "\"/>\n");
    for (i = 0; i < h->count; i++) /* a curve may be one point */
        if (!isnan(h->epoch[i].value[curve]))
            fprintf(to, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\" fill=\"%s\"/>\n",
                    svg_x(p, h->epoch[i].epoch), svg_y(p, h->epoch[i].value[curve]),
                    curve == SCORE && h->epoch[i].epoch == h->best ? 5 : 2, color);
}

static void svg_picture(FILE *to, const picture *v) {
    size_t i, r, width = v->panels * (MARGIN + WIDE) + MARGIN / 2;
    size_t below = HEAD + HIGH + FOOT, height = below + (v->runs + 1) * LEGEND;
    char text[96];
    int curve;
    fprintf(to, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%zu\" height=\"%zu\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n", width, height);
    for (i = 0; i < v->panels; i++) {
        const panel *p = &v->panel[i];
        fprintf(to, "<g transform=\"translate(%zu,%d)\">\n", i * (MARGIN + WIDE) + MARGIN, HEAD);
        svg_axes(to, p);
        for (r = 0; r < v->runs; r++)
            for (curve = 0; curve < CURVES; curve++)
                if (shows(p, &v->run[r], curve))
                    svg_curve(to, p, &v->run[r], curve, svg_color(r));
        fprintf(to, "</g>\n");
    }
    for (r = 0; r < v->runs; r++) {
        summary(&v->run[r], text);
        fprintf(to, "<path d=\"M%d %zuh24\" stroke=\"%s\" stroke-width=\"3\"/>"
                "<text x=\"%d\" y=\"%zu\">", MARGIN, below + r * LEGEND, svg_color(r), MARGIN + 32,
                below + r * LEGEND + 4);
        svg_escaped(to, v->run[r].file);
        fprintf(to, ": %s</text>\n", text);
    }
    fprintf(to, "<text x=\"%d\" y=\"%zu\" fill=\"#666\">dashed: training, solid: validation, dot: "
            "best</text>\n</svg>\n", MARGIN, below + v->runs * LEGEND + 4);
}

static int plot(arguments *a) {
    picture v;
    FILE *to = NULL;
    size_t i;
    int result = DONE;
    memset(&v, 0, sizeof v);
    v.runs = a->files.count;
    v.run = (history *)calloc(v.runs, sizeof *v.run);
    v.panel = (panel *)calloc(v.runs + 1, sizeof *v.panel);
    if (!v.run || !v.panel) result = no_memory();
    for (i = 0; !result && i < v.runs; i++) result = open_history(&v.run[i], a->files.item[i]);
    if (!result) add_panels(&v);
    if (!result) result = open_result(&to, a->out, "w");
    if (!result && to) svg_picture(to, &v);
    if (!result && !to) text_picture(&v);
    result = close_result(to, a->out, result);
    for (i = 0; v.run && i < v.runs; i++) free(v.run[i].epoch);
    free(v.run);
    free(v.panel);
    return result;
}

/* ==== gradcheck, bench ======================================================================= */

static int check_row(const carnn_check *c, void *user) {
    int *wrong = (int *)user;
    *wrong += !c->passed;
    printf("%-6s  %-24s %6zu derivatives  error %.2e  limit %.0e  %s\n", c->group, c->name,
           c->numbers, c->error, c->limit, c->passed ? "ok" : "WRONG");
    fflush(stdout);
    return 0;
}

static int gradcheck(arguments *a) {
    carnn_error error;
    int wrong = 0;
    if (carnn_gradcheck(a->files.count ? a->files.item[0] : NULL, a->model.seed, check_row, &wrong,
                        &error))
        return failed(&error);
    printf(wrong ? "%d wrong\n" : "all right\n", wrong);
    return wrong ? FAILED : DONE;
}

typedef struct bench_job { /* what `carnn bench` holds */
    const arguments *a;
    json j; /* to: NULL before the first row */
} bench_job;

static void json_bench(bench_job *b) {
    int64_t threads = b->a->training.threads;
    b->j.to = stdout;
    json_open(&b->j, NULL, '{');
    json_text(&b->j, "version", CARNN_VERSION);
    json_text(&b->j, "simd", simd_used(b->a->simd));
    json_whole(&b->j, "threads", threads ? (uint64_t)threads : processors());
    json_open(&b->j, "rows", '[');
}

static void json_measure(json *j, const carnn_measure *m) {
    json_open(j, NULL, '{');
    json_text(j, "group", m->group);
    json_text(j, "name", m->name);
    json_text(j, "unit", m->unit);
    json_number(j, "value", m->value);
    if (m->share > 0.0) json_number(j, "share", m->share);
    json_close(j, '}');
}

static int bench_row(const carnn_measure *m, void *user) {
    bench_job *b = (bench_job *)user;
    if (b->a->json) {
        if (!b->j.to) json_bench(b);
        json_measure(&b->j, m);
        return 0;
    }
    printf("%-7s %-36s %10.4g %-12s", m->group, m->name, m->value, m->unit);
    if (m->share > 0.0) printf("%4.0f%%", 100.0 * m->share);
    printf("\n");
    fflush(stdout);
    return 0;
}

static int bench(arguments *a) {
    carnn_error error;
    bench_job b = {NULL, {NULL, 0}};
    int result = DONE;
    b.a = a;
    if (carnn_bench(a->files.count ? a->files.item[0] : NULL, a->simd, a->training.threads,
                    bench_row, &b, &error))
        result = failed(&error);
    if (b.j.to) {
        json_close(&b.j, ']');
        json_close(&b.j, '}');
        printf("\n");
    }
    return result;
}

/* ==== Commands =============================================================================== */

#define ANY_NUMBER ((size_t)-1)

static const command commands[] = {
    {"train", "--task NAME --train FILE --out MODEL [options]",
     "trains a model; keeps the weights with the best validation score",
     "examples:\n"
     "  carnn train --task dialog --train train.txt --valid dev.txt --out bot.gguf\n"
     "  carnn train --task dialog --train train.txt --out bot.gguf --cell lstm --lr 0.002 --json\n"
     "\nCtrl-C ends a training and saves it; the same command with --resume goes on.\n",
     TRAIN, train, 0, 0},
    {"test", "MODEL... --data FILE [options]",
     "scores models; of several: each one, then their vote",
     "examples:\n"
     "  carnn test bot.gguf --data test.txt\n"
     "  carnn test seed1.gguf seed2.gguf seed3.gguf --data test.txt --json\n",
     TEST, test, 1, ANY_NUMBER},
    {"predict", "MODEL [--data FILE] [options]",
     "writes one line per example: the answer that the model chooses",
     "examples:\n"
     "  carnn predict bot.gguf --data test.txt\n"
     "  carnn predict bot.gguf --top 3 < test.txt\n",
     PREDICT, predict, 1, 1},
    {"chat", "MODEL", "talks; an empty line begins a new dialog",
     "examples:\n"
     "  carnn chat bot.gguf\n"
     "  echo 'i want cheap thai food' | carnn chat bot.gguf --explain\n",
     CHAT, chat, 1, 1},
    {"explain", "MODEL [--data FILE] [--example N]",
     "shows how much each earlier utterance contributed to an answer",
     "examples:\n"
     "  carnn explain bot.gguf --data test.txt --example 4\n",
     EXPLAIN, explain, 1, 1},
    {"rank", "MODEL --question TEXT [--data FILE]",
     "ranks sentences, a line each, by how well they answer a question",
     "examples:\n"
     "  carnn rank qa.gguf --question 'who wrote faust ?' --data sentences.txt --top 3\n",
     RANK, rank, 1, 1},
    {"generate", "MODEL [options]", "samples text from a language model, a sentence a line",
     "examples:\n"
     "  carnn generate lm.gguf --sentences 5 --temperature 0.8\n"
     "  carnn generate lm.gguf --prompt 'i think' --top-p 0.9 --seed 7\n",
     GENERATE, generate, 1, 1},
    {"info", "MODEL [--json]", "says what is in a model file",
     "examples:\n"
     "  carnn info bot.gguf\n",
     INFO, info, 1, 1},
    {"plot", "RUN.jsonl... [--out FILE.svg]",
     "draws the losses and scores of trainings, as their --log has them",
     "examples:\n"
     "  carnn train --task lm --train train.txt --valid dev.txt --out lm.gguf --log run.jsonl\n"
     "  carnn plot run.jsonl\n"
     "  carnn plot icarnn.jsonl lstm.jsonl --out runs.svg\n",
     PLOT, plot, 1, ANY_NUMBER},
    {"gradcheck", "[NAME]", "compares all derivatives, or those of NAME, with differences",
     "examples:\n"
     "  carnn gradcheck\n"
     "  carnn gradcheck icarnn\n",
     GRADCHECK, gradcheck, 0, 1},
    {"bench", "[NAME] [options]", "measures kernels, cells and whole tasks on this machine",
     "examples:\n"
     "  carnn bench\n"
     "  carnn bench cell --threads 1\n",
     BENCH, bench, 0, 1},
    {NULL, NULL, NULL, NULL, 0, NULL, 0, 0},
};

/* ==== Help =================================================================================== */

static void print_name(const char *name, const char *value) {
    char text[64];
    size_t i;
    snprintf(text, sizeof text, "--%s %s", name, value ? value : "");
    for (i = 0; i < strlen(name); i++) text[i + 2] = plain(text[i + 2]);
    printf("  %-22s", text);
}

static void print_names(const char *title, const char *(*lister)(size_t number)) {
    size_t i;
    printf("\n%s:", title);
    for (i = 0; lister(i); i++) printf("%s %s", i ? "," : "", lister(i));
    printf("\n");
}

#define TASKS 16

/* [default, task its own default]: those that differ from the first are named. */
static void print_default(const carnn_option *o, const carnn_model_desc *model,
                          const carnn_train_desc *training) {
    char first[OPTION_TEXT] = "", text[OPTION_TEXT];
    const char *task;
    size_t i;
    for (i = 0; i < TASKS && (task = carnn_task_name(i)) != NULL; i++) {
        if (!option_serves(o, task)) continue;
        option_text(o, &model[i], &training[i], text);
        if (!*text || !strcmp(text, first)) continue;
        printf(*first ? ", %s %s" : " [%s%s", *first ? task : "", text);
        if (!*first) memcpy(first, text, sizeof text);
    }
    puts(*first ? "]" : "");
}

static void print_options(unsigned bit, int of_training) {
    carnn_model_desc model[TASKS];
    carnn_train_desc training[TASKS];
    size_t i, count;
    const carnn_option *o = carnn_options(&count);
    int title = 0;
    memset(model, 0, sizeof model);
    memset(training, 0, sizeof training);
    for (i = 0; i < TASKS && carnn_task_name(i); i++) {
        model[i].task = carnn_task_name(i);
        carnn_defaults(&model[i], &training[i], NULL);
    }
    for (i = 0; i < count; i++) {
        if (o[i].of_training != of_training || !(option_commands(o + i) & bit)) continue;
        if (!title++) printf("\n%s:\n", of_training ? "training" : "model");
        print_name(o[i].name, o[i].kind == CARNN_OPTION_NAME ? "NAME" : "N");
        if (o[i].task) printf("%s: ", o[i].task);
        fputs(o[i].help, stdout);
        print_default(o + i, model, training);
    }
}

static int help_command(const command *c) {
    unsigned bit = c->bit;
    size_t i;
    printf("usage: carnn %s %s\n\n%s.\n\noptions:\n", c->name, c->files, c->help);
    for (i = 0; i < COUNT(flags); i++)
        if (flags[i].commands & bit) {
            print_name(flags[i].name, flags[i].value);
            printf("%s\n", flags[i].help);
        }
    print_options(bit, 0);
    print_options(bit, 1);
    if (bit & TRAIN) {
        print_names("tasks", carnn_task_name);
        print_names("cells", carnn_cell_name);
        print_names("optimizers", carnn_optimizer_name);
    }
    printf("\n%s", c->more);
    return DONE;
}

static int help(FILE *to) {
    const command *c;
    fprintf(to, "carnn %s: context-dependent additive recurrent networks\n\n"
            "usage: carnn COMMAND [options] [files]\n\ncommands:\n", CARNN_VERSION);
    for (c = commands; c->name; c++) fprintf(to, "  %-11s%s\n", c->name, c->help);
    fprintf(to, "  %-11s%s\n", "help", "this text, or with the name of a command, all about it");
    fprintf(to, "\nexamples:\n"
            "  carnn train --task dialog --train train.txt --valid dev.txt --out bot.gguf\n"
            "  carnn test bot.gguf --data test.txt\n"
            "  carnn chat bot.gguf\n");
    return DONE;
}

/* ==== Start ================================================================================ */

static int unknown_command(const char *word) {
    const command *c;
    guess g = guess_for(word);
    for (c = commands; c->name; c++) consider(&g, c->name);
    return unknown("command", g, "");
}

static const command *find_command(const char *word) {
    const command *c = commands;
    while (c->name && strcmp(c->name, word)) c++;
    return c->name ? c : NULL;
}

static int run(int count, char **argument) {
    const command *c;
    arguments a;
    int result;
    const char *word = count > 1 ? argument[1] : "";
    int asks = !strcmp(word, "help") || !strcmp(word, "--help") || !strcmp(word, "-h");
    if (count < 2) return help(stderr), USAGE;
    if (asks && count == 2) return help(stdout);
    if (!strcmp(word, "--version") || !strcmp(word, "version")) {
        printf("carnn %s (%s)\n", CARNN_VERSION, simd_used(NULL));
        return DONE;
    }
    if (asks) word = argument[2];
    if ((c = find_command(word)) == NULL) return unknown_command(word);
    if (asks) return help_command(c);
    memset(&a, 0, sizeof a);
    a.files.item = (const char **)calloc(4 * (size_t)count, sizeof *a.files.item);
    if (!a.files.item) return no_memory();
    a.train.item = a.files.item + count;
    a.data.item = a.train.item + count;
    a.vectors.item = a.data.item + count;
    result = read_arguments(&a, c, count, argument);
    if (!result) result = a.help ? help_command(c) : c->run(&a);
    free((void *)a.files.item);
    return result;
}

int main(int count, char **argument) {
    signal(SIGINT, on_interrupt);
    return finish(run(count, argument));
}
