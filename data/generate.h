/* generate.h - what the generators of this folder share

   Random numbers that are the same everywhere, phrases with alternatives, and files that appear
   whole or not at all. A program that cannot go on says why and exits; unfinished files go with it.

   Licence: MIT-0 or public domain, as you like. */

#ifndef GENERATE_H
#define GENERATE_H

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_DISK = 1, EXIT_USAGE = 2, EXIT_BAD_DATA = 3 };

/* ---- Files that appear whole or not at all --------------------------------------------------- */

enum { PATH_BYTES = 1024, MAX_OUTPUTS = 16 };

/* Lines are written to "NAME.tmp", which takes the real name only when everything is on disk. */
struct output {
    FILE *file;
    char path[PATH_BYTES];
    char temporary[PATH_BYTES + 8];
};

/* The unfinished files, so that `fail` can remove them. */
static struct output *unfinished[MAX_OUTPUTS];

static inline void fail(int code, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    for (int i = 0; i < MAX_OUTPUTS; i++) {
        if (unfinished[i] == NULL) continue;
        if (unfinished[i]->file != NULL) fclose(unfinished[i]->file);
        remove(unfinished[i]->temporary);
    }
    exit(code);
}

static inline void output_open(struct output *output, const char *path)
{
    size_t length = strlen(path);
    int i = 0;

    if (length >= sizeof output->path) fail(EXIT_USAGE, "%s: the name is too long", path);
    if (strncmp(path, "/dev/", 5) == 0) {                /* renaming would replace the device */
        fail(EXIT_USAGE, "%s: expected the name of an ordinary file", path);
    }
    memcpy(output->path, path, length + 1);
    memcpy(output->temporary, path, length);
    memcpy(output->temporary + length, ".tmp", sizeof ".tmp");
    for (; i < MAX_OUTPUTS && unfinished[i] != NULL; i++) {
        if (strcmp(unfinished[i]->path, path) == 0) fail(EXIT_USAGE, "%s: named twice", path);
    }
    if (i == MAX_OUTPUTS) fail(EXIT_USAGE, "%s: more than %d files at once", path, MAX_OUTPUTS);
    output->file = fopen(output->temporary, "wb");       /* binary: the same bytes everywhere */
    if (output->file == NULL) fail(EXIT_DISK, "%s: %s", output->temporary, strerror(errno));
    unfinished[i] = output;
}

static inline void output_open_in(struct output *output, const char *folder, const char *name)
{
    char path[2 * PATH_BYTES];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    output_open(output, path);
}

/* The outputs take their names only when all of them are on disk. */
static inline void output_close(struct output *outputs, int count)
{
    for (int i = 0; i < count; i++) {
        FILE *file = outputs[i].file;
        int broken = fflush(file) != 0 || ferror(file);

        outputs[i].file = NULL;
        if (fclose(file) != 0 || broken) {
            fail(EXIT_DISK, "%s: cannot write: %s", outputs[i].path, strerror(errno));
        }
    }
    for (int i = 0; i < count; i++) {
        struct output *output = &outputs[i];

        if (rename(output->temporary, output->path) != 0) {
            remove(output->path);                        /* some systems do not replace a file */
            if (rename(output->temporary, output->path) != 0) {
                fail(EXIT_DISK, "%s: cannot rename: %s", output->temporary, strerror(errno));
            }
        }
        for (int j = 0; j < MAX_OUTPUTS; j++) {
            if (unfinished[j] == output) unfinished[j] = NULL;
        }
    }
}

/* ---- Random numbers -------------------------------------------------------------------------- */

/* splitmix64: a counter, well stirred. */
struct rng {
    uint64_t state;
};

static inline uint64_t rng_next(struct rng *rng)
{
    uint64_t z = rng->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* A number from 0 to n - 1. */
static inline int rng_below(struct rng *rng, int n)
{
    return (int)(((rng_next(rng) >> 33) * (uint64_t)n) >> 31);
}

static inline int rng_percent(struct rng *rng, int chance)
{
    return rng_below(rng, 100) < chance;
}

static inline void rng_shuffle(struct rng *rng, int *items, int n)
{
    for (int i = n - 1; i > 0; i--) {
        int j = rng_below(rng, i + 1);
        int item = items[i];

        items[i] = items[j];
        items[j] = item;
    }
}

/* ---- Phrases --------------------------------------------------------------------------------- */

/* One line of text in the making. Spaces never double, so an empty alternative leaves no gap. */
struct text {
    char bytes[768];
    size_t length;
};

static inline void text_add(struct text *text, char c)
{
    if (c == ' ' && (text->length == 0 || text->bytes[text->length - 1] == ' ')) return;
    if (text->length + 1 >= sizeof text->bytes) fail(EXIT_BAD_DATA, "a phrase is too long");
    text->bytes[text->length++] = c;
    text->bytes[text->length] = '\0';
}

static inline void text_clear(struct text *text)
{
    text->length = 0;
    text->bytes[0] = '\0';
}

static inline void text_trim(struct text *text)
{
    while (text->length > 0 && text->bytes[text->length - 1] == ' ') text->length--;
    text->bytes[text->length] = '\0';
}

/* Who speaks: a source of chance, and the words that `$a` to `$z` stand for at the moment. */
struct speaker {
    struct rng rng;
    const char *word[26];
};

/* The '|' or '}' that ends the alternative at p. */
static inline const char *alternative_end(const char *p)
{
    for (int depth = 0; *p != '\0' && (depth > 0 || (*p != '|' && *p != '}')); p++) {
        depth += (*p == '{') - (*p == '}');
    }
    return p;
}

/* Reads the weight "3:" before an alternative; without one an alternative weighs 1. */
static inline int alternative_weight(const char **p)
{
    const char *q = *p;
    int weight = 0;

    while (*q >= '0' && *q <= '9') weight = 10 * weight + (*q++ - '0');
    if (q == *p || *q != ':') return 1;
    *p = q + 1;
    return weight;
}

/* Chooses among the alternatives that begin at p; [*from, *to) is the chosen one. Returns what
   follows the closing bracket. */
static inline const char *choose(struct rng *rng, const char *p, const char **from, const char **to)
{
    int total = 0;

    for (;;) {
        int weight = alternative_weight(&p);
        const char *end = alternative_end(p);

        total += weight;
        if (rng_below(rng, total) < weight) {            /* so each wins with weight / total */
            *from = p;
            *to = end;
        }
        if (*end != '|') return end + (*end == '}');
        p = end + 1;
    }
}

/* Appends one alternative of a pattern. "a|3:b c|" is "a", or "b c" (three times as often), or
   nothing; "{...}" is a pattern inside a pattern, `$n` the pattern that n stands for. */
static inline const char *say(struct text *text, struct speaker *speaker, const char *pattern)
{
    const char *p = pattern, *end = pattern;
    const char *rest = choose(&speaker->rng, pattern, &p, &end);

    while (p < end) {
        if (*p == '{') {
            p = say(text, speaker, p + 1);
        } else if (*p == '$') {
            say(text, speaker, speaker->word[p[1] - 'a']);
            p += 2;
        } else {
            text_add(text, *p++);
        }
    }
    return rest;
}

/* Makes `$letter` stand for one alternative of the pattern, which the text keeps. */
static inline void bind(struct speaker *speaker, char letter, struct text *text,
                        const char *pattern)
{
    text_clear(text);
    say(text, speaker, pattern);
    text_trim(text);
    speaker->word[letter - 'a'] = text->bytes;
}

#endif
