/* @@DATA: data sets and their readers. */

#include "test.h"

/* --- helpers ---------------------------------------------------------------------------------*/

static carnn_source source_of_text(const char *name, const char *text) {
    return test_source(name, text, strlen(text));
}

static carnn_status read_data(carnn_dataset **data, const char *task, const carnn_source *sources,
                              size_t count, const carnn_source *candidates,
                              const carnn_allocator *a, carnn_error *error) {
    carnn_dataset_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.task = task;
    desc.sources = sources;
    desc.source_count = count;
    desc.candidates = candidates;
    desc.allocator = a;
    memset(error, 0, sizeof *error);
    return carnn_dataset_load(data, &desc, error);
}

/* Loads one text called "data" that has to be right. */
static carnn_dataset *load_text(const char *task, const char *text, const char *candidates) {
    carnn_source source = source_of_text("data", text);
    carnn_source list = source_of_text("list", candidates ? candidates : "");
    carnn_dataset *data;
    carnn_error error;
    CHECK_INT(read_data(&data, task, &source, 1, candidates ? &list : NULL, NULL, &error),
              CARNN_OK);
    CHECK_TEXT(error.message, "");
    return data;
}

static const char *text_at(const carnn_dataset *data, size_t i) { return carnn__text(data, i).at; }

/* What has to be true of every data set. Returns the number of things that are not. */
static int broken_texts(const carnn_dataset *d) {
    int broken = d->text_at[0] != 0;
    for (size_t i = 0; i < d->text_count; i++) {
        carnn__span text = carnn__text(d, i);
        broken += d->text_at[i + 1] <= d->text_at[i] || text.at[text.length] != 0 ||
                  carnn__trim(text).length != text.length;
    }
    return broken;
}

/* Items have texts of their roles, and those of a group are consecutive. */
static int broken_items(const carnn_dataset *d, size_t roles) {
    int broken = d->group_count > 0 && d->item_count > 0 && d->items[0].group >= d->group_count;
    for (size_t i = 0; i < d->member_count; i++)
        broken += d->members[i].text >= d->text_count || d->members[i].role >= roles;
    for (size_t i = 0; i < d->item_count; i++) {
        const carnn__item *x = &d->items[i];
        broken += !x->count || x->first + x->count > d->member_count || x->group >= d->group_count;
        broken += i && (x->group < x[-1].group || x->first < x[-1].first);
        broken += x->target >= d->text_count && x->target != CARNN__NO_INDEX;
    }
    return broken;
}

/* Choices are distinct texts, which are shown as they were written. */
static int broken_choices(const carnn_dataset *d) {
    int broken = 0;
    for (size_t i = 0; i < d->choice_count; i++) {
        carnn__span shown = {NULL, 0}, text = carnn__text(d, d->choices[i]);
        shown.at = d->shown + d->shown_at[i];
        shown.length = d->shown_at[i + 1] - d->shown_at[i] - 1;
        shown = carnn__trim(shown);
        broken += shown.length != text.length || memcmp(shown.at, text.at, text.length) != 0;
    }
    return broken;
}

/* The last text of a turn is the user's, and the reply follows. */
static int broken_dialogs(const carnn_dataset *d) {
    int broken = 0;
    for (size_t i = 0; i < d->item_count; i++) {
        const carnn__member *m = carnn__members(d, &d->items[i]) + d->items[i].count - 1;
        broken += m->role != CARNN_USER || d->items[i].target == CARNN__NO_INDEX ||
                  m + 1 >= d->members + d->member_count || m[1].role != CARNN_SYSTEM;
    }
    return broken;
}

static int broken(const carnn_dataset *d) {
    int count = broken_texts(d) + broken_choices(d);
    if (strcmp(d->task, "dialog") == 0) return count + broken_items(d, 3) + broken_dialogs(d);
    if (strcmp(d->task, "lm") == 0) return count + broken_items(d, 1);
    for (size_t i = 0; i < d->item_count; i++)
        count += d->items[i].count != 2 || (d->items[i].value != 0 && d->items[i].value != 1 &&
                                                d->items[i].value != -1);
    return count + broken_items(d, 2);
}

/* A bad input and what is to be said of it. */
typedef struct bad_sample {
    const char *text, *candidates;
    carnn_status status;
    size_t line;
    const char *message;
} bad_sample;

static void test_bad(const char *task, const bad_sample *bad, size_t count) {
    for (size_t i = 0; i < count; i++) {
        carnn_source source = source_of_text("f.txt", bad[i].text);
        carnn_source list = source_of_text("c.txt", bad[i].candidates ? bad[i].candidates : "");
        carnn_dataset *data = (carnn_dataset *)&source;
        carnn_error error;
        CHECK_INT(read_data(&data, task, &source, 1, bad[i].candidates ? &list : NULL, NULL,
                            &error),
                  bad[i].status);
        CHECK(data == NULL);
        CHECK_INT(error.code, bad[i].status);
        CHECK_INT(error.line, bad[i].line);
        CHECK_TEXT(error.message, bad[i].message);
    }
}

/* --- dialog ----------------------------------------------------------------------------------*/

static const char *two_dialogs = "1 <SILENCE>\tHello !\n"
                                 "2 cheap food please\tapi_call cheap\r\n"
                                 "3 the_fork R_price cheap\n"
                                 "4 <SILENCE>\tHow about the_fork ?\n"
                                 "\n"
                                 "\r\n"
                                 "1 the_fork R_price cheap\n"
                                 "2 thanks\t you are welcome \n"
                                 "1 just a fact\n"
                                 "7 hi\tHello !";

/* The first member of a group? */
static int begins_group(const carnn_dataset *d, size_t member) {
    for (size_t i = 0; i < d->item_count; i++)
        if (d->items[i].first == member && (!i || d->items[i].group != d->items[i - 1].group))
            return 1;
    return 0;
}

/* "speaker text|" for each line of a data set; a bar in front of each dialog. */
static const char *spell(const carnn_dataset *d, char *out) {
    char *end = out;
    for (size_t i = 0; i < d->member_count; i++) {
        if (begins_group(d, i)) end += sprintf(end, "||");
        end += sprintf(end, "%c %s|", "usf"[d->members[i].role], text_at(d, d->members[i].text));
    }
    return out;
}

/* The text of the last member of an item, and what is right. */
static const char *asked(const carnn_dataset *d, size_t i) {
    return carnn_dataset_text(d, i, carnn_dataset_text_count(d, i) - 1);
}

static size_t choice_of(const carnn_dataset *d, size_t item) {
    size_t i = 0;
    while (i < d->choice_count && d->choices[i] != d->items[item].target) i++;
    return i;
}

static void test_dialog(void) {
    static const struct {
        uint32_t dialog, texts, choice, line;
        const char *user, *response;
    } turn[] = {{0, 1, 0, 1, "<SILENCE>", "Hello !"},
                {0, 3, 1, 2, "cheap food please", "api_call cheap"},
                {0, 6, 2, 4, "<SILENCE>", "How about the_fork ?"},
                {1, 2, 3, 8, "thanks", "you are welcome"},
                {2, 2, 0, 10, "hi", "Hello !"}};
    carnn_dataset *d = load_text("dialog", two_dialogs, NULL);
    char out[1000];
    CHECK_TEXT(spell(d, out), "||u <SILENCE>|s Hello !|u cheap food please|s api_call cheap|"
                              "f the_fork R_price cheap|u <SILENCE>|s How about the_fork ?|"
                              "||f the_fork R_price cheap|u thanks|s you are welcome|"
                              "||f just a fact|u hi|s Hello !|");
    CHECK_INT(carnn_dataset_examples(d), 5);
    for (size_t i = 0; i < 5; i++) {
        CHECK_INT(d->items[i].group, turn[i].dialog);
        CHECK_INT(carnn_dataset_text_count(d, i), turn[i].texts);
        CHECK_TEXT(asked(d, i), turn[i].user);
        CHECK_INT(choice_of(d, i), turn[i].choice);
        CHECK_INT(d->items[i].line, turn[i].line);
        CHECK_TEXT(carnn_dataset_target(d, i), turn[i].response);
    }
    CHECK(carnn_dataset_target(d, 5) == NULL);
    CHECK(carnn_dataset_text(d, 0, 1) == NULL);
    CHECK_INT(carnn_dataset_groups(d), 3);
    CHECK_INT(d->choice_count, 4);
    CHECK_TEXT(d->shown + d->shown_at[3], " you are welcome ");
    CHECK_INT(d->text_count, 10);
    CHECK_INT(broken(d), 0);
    carnn_dataset_free(d);
}

static void test_dialog_boundaries(void) {
    static const struct {
        const char *text, *lines;
    } sample[] = {
        {"1 a\tb\n2 c\td\n2 e\tf\n1 g\th\n", "||u a|s b|u c|s d|u e|s f|||u g|s h|"},
        {"5 a\tb\n4 c\td\n9 e\tf\n", "||u a|s b|||u c|s d|u e|s f|"},
        {"0 a\tb\n0 c\td\n1 e\tf\n0 g\th\n", "||u a|s b|u c|s d|u e|s f|||u g|s h|"},
        {"\n\n \t \n3 a\tb\n\n\n\n4 c\td\n\n", "||u a|s b|||u c|s d|"},
        {"1 a\tb\n1 c\td", "||u a|s b|||u c|s d|"},
        {"1 \tb\n2\tc\n3  x \t y \n", "||u |s b|u |s c|u x|s y|"},
        {"\xEF\xBB\xBF" "1 a\tb", "||u a|s b|"},
        {"0001 a\tb\n4294967295 c\td\n", "||u a|s b|u c|s d|"},
        {"1 a\tb\tspoken\n2 c\td\t \n3 e\tf\t\n", "||u a|s spoken|u c|s d|u e|s f|"},
        {"1 \tclass\tspoken\n2 a\tb\n", "||u |s spoken|u a|s b|"}, /* a user who says nothing */
    };
    char out[1000];
    for (size_t i = 0; i < sizeof sample / sizeof *sample; i++) {
        carnn_dataset *d = load_text("dialog", sample[i].text, NULL);
        CHECK_TEXT(spell(d, out), sample[i].lines);
        CHECK_INT(broken(d), 0);
        carnn_dataset_free(d);
    }
}

/* Where numbers may be missing, all lines of a dialog have one or none has. */
static void test_dialog_lenient(void) {
    static const struct {
        const char *text, *lines;
    } sample[] = {
        {"a\tb\n6 people\tc\n2 nights\t\n\n2 c\td\n1 e\t\n",
         "||u a|s b|u 6 people|s c|u 2 nights|s |||u c|s d|||u e|s |"},
        {"3 a\tb\nc\td\n4 e\t\n", "||u a|s b|u c|s d|u e|s |"},
        {"a\tb\n2 a fact\n1 c\t\n", "||u a|s b|f 2 a fact|u 1 c|s |"},
    };
    char out[1000];
    for (size_t i = 0; i < sizeof sample / sizeof *sample; i++) {
        carnn_dataset *d = test_data("dialog", sample[i].text, strlen(sample[i].text), 0, 1);
        CHECK_TEXT(spell(d, out), sample[i].lines);
        CHECK(!carnn_dataset_target(d, d->item_count - 1));
        CHECK_INT(d->choice_count, d->item_count - 1 - !i); /* no reply is none to choose */
        carnn_dataset_free(d);
    }
}

static void test_dialog_three_columns(void) {
    carnn_dataset *d = load_text("dialog", "1 hi\tgreet <name>\thello jack\n2 bye\tend\n", NULL);
    CHECK_INT(d->choice_count, 2);
    CHECK_TEXT(carnn_dataset_target(d, 0), "greet <name>");
    CHECK_TEXT(text_at(d, d->members[1].text), "hello jack");
    CHECK_TEXT(d->shown + d->shown_at[0], "greet <name>");
    CHECK_TEXT(text_at(d, d->members[3].text), "end");
    carnn_dataset_free(d);
}

static void test_dialog_candidates(void) {
    static const char *const shown[] = {" you are welcome", "Hello !", "42", "2 more", "plain",
                                        "x\ty "};
    carnn_dataset *d = load_text("dialog", two_dialogs,
                                 "1  you are welcome\r\n1 Hello !\n\n1 Hello ! \n42\n1 2 more\n"
                                 "plain\n12 you are welcome\n7\tx\ty ");
    CHECK_INT(d->choice_count, 6);
    for (size_t i = 0; i < 6; i++) CHECK_TEXT(d->shown + d->shown_at[i], shown[i]);
    CHECK_INT(choice_of(d, 0), 1);
    CHECK_INT(choice_of(d, 1), d->choice_count);
    CHECK_INT(choice_of(d, 3), 0);
    CHECK_INT(broken(d), 0);
    carnn_dataset_free(d);
    static const struct {
        const char *list, *second;
    } sample[] = {{"\nhello\n20 minutes\n", "20 minutes"}, /* no line has a number */
                  {" hello\n20 minutes\n", "20 minutes"},
                  {"\n1 hello\n20 minutes\n", "minutes"}};
    for (size_t i = 0; i < sizeof sample / sizeof *sample; i++) {
        d = load_text("dialog", "1 a\t20 minutes\n", sample[i].list);
        CHECK_INT(d->choice_count, 2);
        CHECK_TEXT(d->shown + d->shown_at[1], sample[i].second);
        CHECK_INT(choice_of(d, 0), i < 2 ? 1 : 2);
        carnn_dataset_free(d);
    }
}

/* Is every response a candidate? */
static carnn_status check_responses(const carnn_dataset *d, carnn_error *error) {
    size_t *times = (size_t *)calloc(d->text_count, sizeof *times);
    carnn_status status = carnn__dialog_check_responses(d, times, error);
    free(times);
    return status;
}

static void test_dialog_check_candidates(void) {
    carnn_source sources[2], list = source_of_text("list", "1 b\n1 d\n");
    carnn_dataset *d;
    carnn_error error;
    sources[0] = source_of_text("one", "1 a\tb\n2 a\td\n");
    sources[1] = source_of_text("two", "\n1 a\t b \n\n2 a\td \x01\n");
    CHECK_INT(read_data(&d, "dialog", sources, 2, &list, NULL, &error), CARNN_OK);
    CHECK_INT(d->group_count, 3);
    CHECK_INT(check_responses(d, NULL), CARNN_ERR_DATA);
    CHECK_INT(check_responses(d, &error), CARNN_ERR_DATA);
    CHECK_INT(error.line, 4);
    CHECK_TEXT(error.message,
               "two:4: expected one of the 2 candidates as response, found \"d \\x01\"");
    carnn_dataset_free(d);
    CHECK_INT(read_data(&d, "dialog", sources, 1, &list, NULL, &error), CARNN_OK);
    CHECK_INT(check_responses(d, &error), CARNN_OK);
    carnn_dataset_free(d);
    d = test_data("dialog", "1 a\t\n2 b\td\n", 11, 0, 1); /* replies may be missing */
    CHECK_INT(check_responses(d, &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message,
               "data:1: expected one of the 1 candidates as response, found nothing");
    carnn_dataset_free(d);
}

static void test_dialog_errors(void) {
    static const bad_sample bad[] = {
        {"", NULL, CARNN_ERR_DATA, 1,
         "f.txt:1: expected a turn (number, user, tab, response), found an empty file"},
        {" \n\r\n", NULL, CARNN_ERR_DATA, 1,
         "f.txt:1: expected a turn (number, user, tab, response), found none"},
        {"1 a\tb\nabc\n", NULL, CARNN_ERR_DATA, 2,
         "f.txt:2: expected a line number, found \"abc\""},
        {"1 a\tb\n\n 2 c\td\n", NULL, CARNN_ERR_DATA, 3,
         "f.txt:3: expected a line number, found \" 2 c\\td\""},
        {"12abc\td", NULL, CARNN_ERR_DATA, 1,
         "f.txt:1: expected a line number, found \"12abc\\td\""},
        {"-1 a\tb", NULL, CARNN_ERR_DATA, 1, "f.txt:1: expected a line number, found \"-1 a\\tb\""},
        {"4294967296 a\tb", NULL, CARNN_ERR_DATA, 1,
         "f.txt:1: expected a line number below 4294967296, found \"4294967296 a\\tb\""},
        {"99999999999999999999999999999999999999999999999 a\tb", NULL, CARNN_ERR_DATA, 1,
         "f.txt:1: expected a line number below 4294967296, found "
         "\"9999999999999999999999999999999999999999...\""},
        {"1 a\tb\n2 c\t \n", NULL, CARNN_ERR_DATA, 2,
         "f.txt:2: expected a response after the tab, found nothing"},
        {"1 a\t\tb\n", NULL, CARNN_ERR_DATA, 1,
         "f.txt:1: expected a response after the tab, found nothing"},
        {"1 a\tb\tc\td\n", NULL, CARNN_ERR_DATA, 1,
         "f.txt:1: expected at most three columns, found \"1 a\\tb\\tc\\td\""},
        {"1 a\tb\n2 \n", NULL, CARNN_ERR_DATA, 2,
         "f.txt:2: expected words after the line number, found nothing"},
        {"1", NULL, CARNN_ERR_DATA, 1,
         "f.txt:1: expected words after the line number, found nothing"},
        {"1 fact\n2 fact\n\n1 fact\n", NULL, CARNN_ERR_DATA, 2,
         "f.txt:2: expected a tab between user and response, or a turn that follows the fact, "
         "found neither"},
        {"1 a\tb\n2 a b\n1 a\tb\n", NULL, CARNN_ERR_DATA, 2,
         "f.txt:2: expected a tab between user and response, or a turn that follows the fact, "
         "found neither"},
        {"1 a b\n2 c d", NULL, CARNN_ERR_DATA, 2,
         "f.txt:2: expected a tab between user and response, or a turn that follows the fact, "
         "found neither"},
        {"1 a\tb\n", " \n\n", CARNN_ERR_DATA, 1,
         "c.txt:1: expected candidates, one a line, found none"},
        {"1 a\tb\n", "1 b\n2  \n", CARNN_ERR_DATA, 2,
         "c.txt:2: expected a candidate after the number, found nothing"},
    };
    test_bad("dialog", bad, sizeof bad / sizeof *bad);
}

static void test_arguments(void) {
    carnn_source source = source_of_text("data", two_dialogs), none = {NULL, NULL, 0};
    carnn_source missing = {"no/such/file", NULL, 0};
    carnn_dataset *d;
    carnn_dataset_desc desc;
    carnn_model_desc model;
    carnn_error error;
    CHECK_INT(read_data(&d, "dialogue", &source, 1, NULL, NULL, &error), CARNN_ERR_ARGUMENT);
    CHECK_INT(read_data(&d, NULL, &source, 1, NULL, NULL, &error), CARNN_ERR_ARGUMENT);
    CHECK_INT(read_data(&d, "dialog", NULL, 1, NULL, NULL, &error), CARNN_ERR_ARGUMENT);
    CHECK_INT(read_data(&d, "dialog", &source, 0, NULL, NULL, &error), CARNN_ERR_ARGUMENT);
    CHECK_INT(read_data(&d, "dialog", &none, 1, NULL, NULL, &error), CARNN_ERR_ARGUMENT);
    CHECK_INT(carnn_dataset_load(&d, NULL, NULL), CARNN_ERR_ARGUMENT);
    memset(&model, 0, sizeof model);
    test_describe(&desc, "dialog", &source);
    desc.model = &model; /* of no task yet */
    CHECK_INT(carnn_dataset_load(&d, &desc, &error), CARNN_OK);
    carnn_dataset_free(d);
    model.task = "signal";
    CHECK_INT(carnn_dataset_load(&d, &desc, &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message,
               "a data set of the task dialog is not for a model of the task signal");
    CHECK_INT(read_data(&d, "dialog", &missing, 1, NULL, NULL, &error), CARNN_ERR_IO);
    CHECK_TEXT(error.message, "no/such/file: No such file or directory");
    CHECK_INT(read_data(&d, "dialog", &source, 1, &missing, NULL, &error), CARNN_ERR_IO);
    CHECK(d == NULL);
    missing.name = ""; /* as of a setting that was left open */
    CHECK_INT(read_data(&d, "dialog", &missing, 1, NULL, NULL, &error), CARNN_ERR_IO);
    CHECK_TEXT(error.message, "\"\": No such file or directory");
    carnn_dataset_free(NULL);
    CHECK_INT(carnn_dataset_examples(NULL), 0);
}

/* --- lm --------------------------------------------------------------------------------------*/

static const char *sentences = "=== 1\n"
                               "A|Okay.|fo_o_fw_\"_by_bc\r\n"
                               "B|Don't you -- uh, like 80's rock'n'ROLL (it's' o'5)?!|qy^d\n"
                               "\n"
                               "the cat  sat .\tcause\timplicit\tmore\n"
                               "\tcause\n"
                               "  \t \n"
                               "no label\n"
                               "= heading =\n"
                               "== again\n"
                               "none of them\tnone\nminus\t-1\nempty\t\n"
                               "x | y | z\tother\n"
                               "a|b|c|d\n"
                               " = Wiki heading = \n"
                               "y = x\n"
                               " = x\n"
                               " =\n"
                               "\t= x =\n"
                               "||sd";

/* "text/label|" for each sentence; a bar in front of each document. */
static const char *spell_sentences(const carnn_dataset *d, char *out) {
    char *end = out;
    for (size_t i = 0; i < d->item_count; i++) {
        const char *label = carnn_dataset_target(d, i);
        if (d->items[i].count == 1) end += sprintf(end, "||"); /* no sentence before it */
        end += sprintf(end, "%s/%s|", asked(d, i), label ? label : "");
    }
    return out;
}

static void test_sentences(void) {
    carnn_dataset *d = load_text("lm", sentences, NULL);
    char out[1000];
    CHECK_TEXT(spell_sentences(d, out),
               "||okay ./fo_o_fw_\"_by_bc|don't you uh , like 80's rock'n roll it's o 5 ? !/qy^d|"
               "||the cat  sat ./cause|/cause|"
               "||no label/|"
               "||none of them/|minus/|empty/|x | y | z/other|a|b|c|d/|"
               "||y = x/|= x/|=/|/= x =|/sd|");
    CHECK_INT(d->choice_count, 6);
    CHECK_INT(d->spoken, 1);
    CHECK_INT(carnn_dataset_examples(d), 15);
    CHECK_INT(broken(d), 0);
    carnn_dataset_free(d);
    d = load_text("lm", " aer banknote <unk> N \n pierre \n", NULL);
    CHECK_TEXT(spell_sentences(d, out), "||aer banknote <unk> N/|pierre/|");
    CHECK_INT(d->spoken, 0);
    carnn_dataset_free(d);
    d = load_text("lm", "A|Okay.|x\nokay\n", NULL);
    CHECK_INT(d->spoken, 1);
    carnn_dataset_free(d);
}

static void test_sentences_errors(void) {
    static const bad_sample bad[] = {
        {"", NULL, CARNN_ERR_DATA, 1, "f.txt:1: expected a sentence, found an empty file"},
        {"=== 1\n\n= 2\n", NULL, CARNN_ERR_DATA, 1,
         "f.txt:1: expected a sentence, found none"},
    };
    test_bad("lm", bad, sizeof bad / sizeof *bad);
}

static void test_sentences_of_two_sources(void) {
    carnn_source sources[2];
    carnn_dataset *d;
    carnn_error error;
    char out[100];
    sources[0] = source_of_text("one", "a\tx\nb\n");
    sources[1] = source_of_text("two", "c\tx\n");
    CHECK_INT(read_data(&d, "lm", sources, 2, NULL, NULL, &error), CARNN_OK);
    CHECK_TEXT(spell_sentences(d, out), "||a/x|b/|||c/x|");
    CHECK_TEXT(carnn__dataset_origin(d, 1), "one");
    CHECK_TEXT(carnn__dataset_origin(d, 2), "two");
    carnn_dataset_free(d);
}

/* --- answer ----------------------------------------------------------------------------------*/

/* "question/answer/label|" for each pair; a bar in front of each question. */
static const char *spell_pairs(const carnn_dataset *d, char *out) {
    char *end = out;
    for (size_t i = 0; i < d->item_count; i++) {
        if (!i || d->items[i].group != d->items[i - 1].group) end += sprintf(end, "||");
        end += sprintf(end, "%s/%s/%.0f|", carnn_dataset_text(d, i, 0), asked(d, i),
                       (double)d->items[i].value);
    }
    return out;
}

static const char *numbered_pairs = "1\t0\twho ?\tthe cat .\n"
                                    "1\t1\twho ?\tthe dog .\r\n"
                                    "\n"
                                    "2\t1.0\twho ?\tmice\n"
                                    "2\t0\twhy ?\tthe cat .";

static void test_pairs(void) {
    static const struct {
        const char *text, *pairs;
    } sample[] = {
        {"q1\ta1\t0\nq1\ta2\t1\nq2\ta1\t1\nq1\ta1\t0\n", "||q1/a1/0|q1/a2/1|||q2/a1/1|||q1/a1/0|"},
        {"QuestionID\tQuestion\tDocumentID\tDocumentTitle\tSentenceID\tSentence\tLabel\r\n"
         "Q1\tq\tD\tT\tS\ta\t0\r\nQ2\tq\tD\tT\tS\tb\t1\r\n", "||q/a/0|||q/b/1|"},
        {"\xEF\xBB\xBFlabel\tanswer\tQUESTION\n1\ta\tq\n1\tb\tq\n", "||q/a/1|q/b/1|"},
        {"Question\tAnswer\tLabel\tx\nq\ta\t0\t\n", "||q/a/0|"},
        {"Question\tAnswer\tLabel\tSentence\nq\ta\t0\tb\n", "||q/a/0|"}, /* the first */
        {"\t1\tq\ta\n \t0\tr\tb\n\t1\tr\tc\n", "||q/a/1|||r/b/0|r/c/1|"}, /* no numbers */
    };
    char out[1000];
    carnn_dataset *d;
    for (size_t i = 0; i < sizeof sample / sizeof *sample; i++) {
        d = load_text("answer", sample[i].text, NULL);
        CHECK_TEXT(spell_pairs(d, out), sample[i].pairs);
        CHECK_INT(broken(d), 0);
        carnn_dataset_free(d);
    }
    d = load_text("answer", numbered_pairs, NULL);
    CHECK_TEXT(spell_pairs(d, out),
               "||who ?/the cat ./0|who ?/the dog ./1|||who ?/mice/1|why ?/the cat ./0|");
    CHECK_INT(d->text_count, 5);
    CHECK_INT(carnn_dataset_examples(d), 4);
    carnn_dataset_free(d);
}

static void test_pairs_errors(void) {
    static const bad_sample bad[] = {
        {"", NULL, CARNN_ERR_DATA, 1,
         "f.txt:1: expected a question with an answer and a label, found an empty file"},
        {"Question\tAnswer\tLabel\n", NULL, CARNN_ERR_DATA, 1,
         "f.txt:1: expected a question with an answer and a label, found none"},
        {"Question\tText\tLabel\n", NULL, CARNN_ERR_DATA, 1,
         "f.txt:1: expected columns Question, Sentence or Answer, and Label, found "
         "\"Question\\tText\\tLabel\""},
        {"q\ta\n", NULL, CARNN_ERR_DATA, 1,
         "f.txt:1: expected tabs between three columns (question, answer, label) or four (number, "
         "label, question, answer), found \"q\\ta\""},
        {"q\ta\t0\nq\ta\tb\t1\n", NULL, CARNN_ERR_DATA, 2,
         "f.txt:2: expected 3 columns with tabs between them, found \"q\\ta\\tb\\t1\""},
        {"q\ta\t0\nq\ta\tyes\n", NULL, CARNN_ERR_DATA, 2,
         "f.txt:2: expected the label 0 or 1, found \"yes\""},
        {"q\ta\t2\n", NULL, CARNN_ERR_DATA, 1, "f.txt:1: expected the label 0 or 1, found \"2\""},
        {"q\ta\t\n", NULL, CARNN_ERR_DATA, 1, "f.txt:1: expected the label 0 or 1, found nothing"},
        {"q\ta\t0\nq\t \t0\n", NULL, CARNN_ERR_DATA, 2,
         "f.txt:2: expected an answer of 1 to 512 words, found nothing"},
        {"1\t0\t\ta\n", NULL, CARNN_ERR_DATA, 1,
         "f.txt:1: expected a question of 1 to 512 words, found nothing"},
    };
    test_bad("answer", bad, sizeof bad / sizeof *bad);
}

/* What is only to be predicted is an example as soon as it has a tab. */
static void test_pairs_lenient(void) {
    static const struct {
        const char *text, *pairs;
    } sample[] = {
        {"a\tb\n\t\n \n\nc\td\n", "||a/b/-1|||//-1|||c/d/-1|"},
        {"\t\t\n\t\t\n", "||//-1|//-1|"},
        {"Answer\tQuestion\nx\t\ny\n", "||/x/-1|/y/-1|"}, /* y has no second column at all */
        {"q\ta\tmaybe\n", "||q/a/-1|"},
        {"q\ta\t2\nq\tb\t1\nq\tc\t0\n", "||q/a/-1|q/b/1|q/c/0|"}, /* labels may be there */
        {"1\t\tq\ta\n", "||q/a/-1|"},
    };
    char out[200];
    for (size_t i = 0; i < sizeof sample / sizeof *sample; i++) {
        carnn_dataset *d = test_data("answer", sample[i].text, strlen(sample[i].text), 0, 1);
        CHECK_TEXT(spell_pairs(d, out), sample[i].pairs);
        CHECK_INT(broken(d), 0);
        carnn_dataset_free(d);
    }
    for (size_t i = 0; i < 2; i++) { /* a column that has a name is none of sentences */
        carnn_source source = source_of_text("f.txt", i ? "Question\tLabel\nq\t0\n"
                                                        : "Question\tQuestionID\nq\t0\n");
        carnn_dataset_desc desc;
        carnn_dataset *d;
        carnn_error error;
        test_describe(&desc, "answer", &source);
        desc.lenient = 1;
        CHECK_INT(carnn_dataset_load(&d, &desc, &error), CARNN_ERR_DATA);
        CHECK(strstr(error.message, "f.txt:1: expected columns Question, Sentence") != NULL);
    }
}

/* CSV under another name is not answered a line as a pair; of training data errors say the same. */
static void test_csv_by_another_name(void) {
    static const struct {
        const char *task, *text, *first; /* first NULL: it is refused */
    } sample[] = {{"answer", "id,question,answer\n1,a,b\n", NULL},
                  {"pair", "sentence1;sentence2\na;b\n", NULL},
                  {"answer", "question,why\ta,b\n", "question,why"}, /* texts of any words */
                  {"pair", "sentence1,why\ta,b\n", "sentence1,why"}};
    for (size_t i = 0; i < CARNN__COUNT(sample); i++) {
        carnn_source source = source_of_text("f.txt", sample[i].text);
        carnn_dataset_desc desc;
        carnn_dataset *d;
        carnn_error error;
        test_describe(&desc, sample[i].task, &source);
        for (desc.lenient = sample[i].first != NULL; desc.lenient < 2; desc.lenient++) {
            CHECK_INT(carnn_dataset_load(&d, &desc, &error),
                      sample[i].first ? CARNN_OK : CARNN_ERR_DATA);
            if (sample[i].first) CHECK_TEXT(carnn_dataset_text(d, 0, 0), sample[i].first);
            else CHECK(strstr(error.message,
                              "f.txt:1: expected tabs between columns (CSV is read from "
                              "files whose names end in .csv), found") != NULL);
            carnn_dataset_free(d);
        }
    }
}

/* A row of CSV with a column too many is not answered from the wrong columns. */
static void test_csv_shifted(void) {
    static const struct {
        const char *task, *text, *columns; /* columns NULL: it is read */
    } sample[] = {
        {"answer", "Question,Answer\nq,a\nq,a,b\n", "2"}, {"answer", "q,a\nq,a,b\n", "2"},
        {"answer", "Answer,Question\na,q,,\na\n", NULL}, {"answer", "q,a\nq,\"a,b\"\n", NULL},
        {"pair", "id,first,second\n1,a,b\n2,c,d,e\n", "3"}, {"pair", "a,b\nc, d,e\n", "2"},
        {"pair", "x,a,b\n\ny,c, d,e\n", "3"}, {"pair", "x,a,b\n,c,d\ny,c\n", NULL},
    };
    for (size_t i = 0; i < sizeof sample / sizeof *sample; i++) {
        carnn_source source = source_of_text("f.csv", sample[i].text);
        carnn_dataset_desc desc;
        carnn_dataset *d;
        carnn_error error;
        char expected[40];
        test_describe(&desc, sample[i].task, &source);
        desc.lenient = 1;
        CHECK_INT(carnn_dataset_load(&d, &desc, &error),
                  sample[i].columns ? CARNN_ERR_DATA : CARNN_OK);
        carnn_dataset_free(d);
        if (!sample[i].columns) continue;
        snprintf(expected, sizeof expected, ": expected %s columns (here with", sample[i].columns);
        CHECK(strncmp(error.message, "f.csv:", 6) == 0 && strstr(error.message, expected) != NULL);
    }
}

/* A file whose lines end in CR alone is no single line; one may end a file. */
static void test_returns(void) {
    static const char *const text[] = {"x\ta b\ry\tc d\r", "x\ta b\r", "x\ta\rb\ny\tc\r"};
    for (size_t i = 0; i < 3; i++) {
        carnn_source source = source_of_text("f.txt", text[i]);
        carnn_dataset_desc desc;
        carnn_dataset *d;
        carnn_error error;
        test_describe(&desc, "classify", &source);
        CHECK_INT(carnn_dataset_load(&d, &desc, &error), i ? CARNN_OK : CARNN_ERR_DATA);
        if (!i)
            CHECK_TEXT(error.message, "f.txt: lines end in CR alone, expected LF; tr '\\r' '\\n' "
                                      "converts it");
        else CHECK_TEXT(carnn_dataset_text(d, 0, 0), i == 1 ? "a b" : "a\rb");
        carnn_dataset_free(d);
    }
}

/* The line of each example, behind names of columns and blank lines. */
static void test_lines_of(void) {
    carnn_dataset *d = test_data("classify", "\nlabel\ttext\nx\ta\n\ny\tb\n", 21, 0, 0);
    CHECK_INT(carnn_dataset_line(d, 0), 3);
    CHECK_INT(carnn_dataset_line(d, 1), 5);
    CHECK_INT(carnn_dataset_line(d, 2), 0);
    CHECK_INT(carnn_dataset_line(NULL, 0), 0);
    carnn_dataset_free(d);
}

/* However long the name of a file is, an error has its reason. */
static void test_pairs_long_name(void) {
    char name[1000];
    carnn_source source;
    carnn_dataset_desc desc;
    carnn_dataset *d;
    carnn_error error;
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = 0;
    source = source_of_text(name, "q\ta\t0\n");
    test_describe(&desc, "answer", &source);
    desc.clean = 1;
    CHECK_INT(carnn_dataset_load(&d, &desc, &error), CARNN_ERR_DATA);
    CHECK(strstr(error.message, "xxx: every question lacks a right or a wrong answer") != NULL);
}

/* The test writes the four files into the folder that it runs in. */
static void test_pairs_folder(void) {
    static const char *const files[] = {"a.toks", "b.toks", "sim.txt", "id.txt"};
    static const char *const texts[] = {"q one\nq one\nq one\n", "a\nc\nb\r\n", "0\n1\n0\n",
                                        "1.1\n1.1\n1.2\n"};
    carnn_source source = test_source(".", NULL, 0);
    carnn_dataset *d;
    carnn_error error;
    char out[200];
    for (size_t i = 0; i < 4; i++) test_write(files[i], texts[i], strlen(texts[i]));
    CHECK_INT(read_data(&d, "answer", &source, 1, NULL, NULL, &error), CARNN_OK);
    CHECK_TEXT(spell_pairs(d, out), "||q one/a/0|q one/c/1|||q one/b/0|");
    CHECK_INT(broken(d), 0);
    carnn_dataset_free(d);
    remove("id.txt");
    CHECK_INT(read_data(&d, "answer", &source, 1, NULL, NULL, &error), CARNN_OK);
    CHECK_TEXT(spell_pairs(d, out), "||q one/a/0|q one/c/1|q one/b/0|");
    carnn_dataset_free(d);
    test_write("b.toks", "a\n \nb\n", 6);
    CHECK_INT(read_data(&d, "answer", &source, 1, NULL, NULL, &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message, "./b.toks:2: expected an answer of 1 to 512 words, found nothing");
    test_write("b.toks", "a\n", 2);
    CHECK_INT(read_data(&d, "answer", &source, 1, NULL, NULL, &error), CARNN_ERR_DATA);
    CHECK_TEXT(error.message,
               "./b.toks:2: expected a line as in the files beside it, found the end");
    test_write("sim.txt", "0\n", 2); /* the first file that ends is named */
    CHECK_INT(read_data(&d, "answer", &source, 1, NULL, NULL, &error), CARNN_ERR_DATA);
    CHECK(strncmp(error.message, "./b.toks:2: ", 12) == 0);
    test_write("id.txt", "\x1F\x8B", 2); /* there, but not to be read */
    CHECK_INT(read_data(&d, "answer", &source, 1, NULL, NULL, &error), CARNN_ERR_DATA);
    CHECK(strncmp(error.message, "./id.txt: ", 10) == 0);
    remove("id.txt");
    test_write("a.toks", "\x1F\x8B", 2);
    CHECK_INT(read_data(&d, "answer", &source, 1, NULL, NULL, &error), CARNN_ERR_DATA);
    CHECK(strncmp(error.message, "./a.toks: ", 10) == 0);
    test_write("a.toks", texts[0], strlen(texts[0]));
    remove("sim.txt");
    CHECK_INT(read_data(&d, "answer", &source, 1, NULL, NULL, &error), CARNN_ERR_IO);
    CHECK_TEXT(error.message, "./sim.txt: No such file or directory");
    remove("a.toks");
    remove("b.toks");
    CHECK_INT(read_data(&d, "answer", &source, 1, NULL, NULL, &error), CARNN_ERR_IO);
#if defined(_WIN32)
    CHECK_TEXT(error.message, ".: Permission denied");
#else
    CHECK_TEXT(error.message, ".: Is a directory");
#endif
}

/* A folder without labels, to be predicted; its alignments lie beside it, as "..align". */
static void test_pairs_folder_lenient(void) {
    carnn_source source = test_source("./", NULL, 0);
    carnn_dataset_desc desc;
    carnn_model_desc model;
    carnn_dataset *d;
    carnn_error error;
    char out[200];
    test_describe(&desc, "answer", &source);
    memset(&model, 0, sizeof model);
    model.task = desc.task;
    CHECK_INT(carnn_set(&model, NULL, "alignment", "file", &error), CARNN_OK);
    desc.model = &model;
    desc.lenient = 1;
    test_write("a.toks", "q one\nq two\n", 12);
    test_write("b.toks", "a\nc\n", 4);
    test_write("..align", "\n1-0\n", 5);
    CHECK_INT(carnn_dataset_load(&d, &desc, &error), CARNN_OK);
    CHECK_TEXT(spell_pairs(d, out), "||q one/a/-1|||q two/c/-1|");
    CHECK_INT(d->items[1].line, 2);
    carnn_dataset_free(d);
    test_write("b.toks", "a\rc\r", 4); /* no single line, which would be one pair */
    CHECK_INT(carnn_dataset_load(&d, &desc, &error), CARNN_ERR_DATA);
    CHECK(strstr(error.message, "/b.toks: lines end in CR alone") != NULL);
    remove("a.toks");
    remove("b.toks");
    remove("..align");
}

/* --- sizes -----------------------------------------------------------------------------------*/

/* `count` times `piece`, after `head`. */
static char *repeat(const char *head, const char *piece, size_t length, size_t count,
                    size_t *size) {
    size_t start = strlen(head);
    char *bytes = (char *)malloc(start + length * count + 1);
    memcpy(bytes, head, start);
    for (size_t i = 0; i < count; i++) memcpy(bytes + start + i * length, piece, length);
    *size = start + length * count;
    bytes[*size] = 0;
    return bytes;
}

/* Loads a large input; anything that is not linear in its size would show here as a hang. */
static carnn_status load_large(const char *head, const char *piece, size_t length, size_t count,
                               size_t *examples, carnn_error *error) {
    size_t size;
    char *bytes = repeat(head, piece, length, count, &size);
    carnn_source source = test_source("large", bytes, size);
    carnn_dataset *d;
    carnn_status status = read_data(&d, "dialog", &source, 1, NULL, NULL, error);
    *examples = carnn_dataset_examples(d);
    carnn_dataset_free(d);
    free(bytes);
    return status;
}

static void test_large(void) {
    carnn_error error;
    size_t examples;
    CHECK_INT(load_large("1 a\t", "long ", 5, 2000000, &examples, &error), CARNN_OK);
    CHECK_INT(load_large("1 a\tb\n2 ", "\0", 1, 5000000, &examples, &error), CARNN_OK);
    CHECK_INT(load_large("1 a\tb\n2 c\td", "\0", 1, 5000000, &examples, &error), CARNN_OK);
    CHECK_INT(load_large("1 a\tb\n", "\n", 1, 5000000, &examples, &error), CARNN_OK);
    CHECK_INT(load_large("1 a\tb", " ", 1, 5000000, &examples, &error), CARNN_OK);
    CHECK_INT(load_large("1 a", "\t", 1, 5000000, &examples, &error), CARNN_ERR_DATA);
    CHECK_INT(load_large("", "9", 1, 5000000, &examples, &error), CARNN_ERR_DATA);
    CHECK_INT(load_large("", "1 a\tb\n", 6, 400000, &examples, &error), CARNN_OK);
    CHECK_INT(examples, 400000);
    CHECK_INT(load_large("", "1 a\tb\n", 6, 500001, &examples, &error), CARNN_ERR_DATA);
    CHECK_INT(error.line, 499997);
    CHECK_TEXT(error.message,
               "large:499997: expected no more than 999992 lines in one data set");
}

/* --- memory that runs out --------------------------------------------------------------------*/

/* Loads with every allocation failing once; returns how many there are. */
static long load_failing(const char *task, const carnn_source *sources, size_t count,
                         const carnn_source *candidates) {
    carnn_status status = CARNN_ERR_MEMORY;
    long n;
    for (n = 1; status && n < 1000; n++) {
        test_memory memory = {0, 0, 0};
        carnn_allocator a = test_allocator(&memory);
        carnn_dataset *d;
        carnn_error error;
        memory.fail_at = n;
        status = read_data(&d, task, sources, count, candidates, &a, &error);
        CHECK(!status || (status == CARNN_ERR_MEMORY && !d && error.code == status));
        carnn_dataset_free(d);
        CHECK_INT(memory.blocks, 0);
    }
    CHECK_INT(status, CARNN_OK);
    CHECK(carnn__landing_here == NULL);
    return n;
}

static void test_failing_dialog(void) {
    static const char *temporary = "test_data.tmp";
    carnn_source sources[2], list = source_of_text("list", "1 b\n1 d\n");
    FILE *file = fopen(temporary, "wb");
    CHECK(file && fputs(two_dialogs, file) >= 0);
    if (file) fclose(file);
    sources[0] = source_of_text("data", two_dialogs);
    sources[1] = test_source(temporary, NULL, 0);
    CHECK(load_failing("dialog", sources, 2, &list) > 20);
    CHECK(load_failing("dialog", sources, 2, NULL) > 20);
    remove(temporary);
}

static void test_failing_readers(void) {
    carnn_source source = source_of_text("data", sentences);
    CHECK(load_failing("lm", &source, 1, NULL) > 20);
    source = source_of_text("data", numbered_pairs);
    CHECK(load_failing("answer", &source, 1, NULL) > 20);
    source = source_of_text("pairs.csv", "yes,\"a, b\",c\nno,c,\"a\"\n");
    CHECK(load_failing("pair", &source, 1, NULL) > 20);
}

/* --- threads ---------------------------------------------------------------------------------*/

static void load_in_thread(void *job, size_t piece, size_t worker) {
    size_t *texts = (size_t *)job;
    carnn_source source = source_of_text("data", piece % 2 ? sentences : two_dialogs);
    carnn_dataset *d;
    carnn_error error;
    (void)worker;
    texts[piece] = 0;
    if (read_data(&d, piece % 2 ? "lm" : "dialog", &source, 1, NULL, NULL, &error)) return;
    texts[piece] = d->text_count;
    carnn_dataset_free(d);
}

static void test_threads(void) {
    size_t texts[200], wrong = 0;
    carnn__pool *pool;
    CHECK_INT(carnn__pool_create(&pool, 4, carnn__allocator(NULL)), CARNN_OK);
    carnn__parallel(pool, 200, load_in_thread, texts);
    carnn__pool_free(pool);
    for (size_t i = 0; i < 200; i++) wrong += texts[i] == 0 || texts[i] != texts[i % 2];
    CHECK_INT(wrong, 0);
}

/* --- noise -----------------------------------------------------------------------------------*/

/* Changes a few bytes of a text: overwritten, cut out, doubled. Returns the new length. */
static size_t mutate(char *out, const char *text, size_t length, uint64_t round) {
    static const char likely[] = "\n\r\t 01239.,|=\"\0\xEF\xBB\xBF";
    uint64_t changes = 1 + carnn__random(round, 0) % 4;
    memcpy(out, text, length);
    for (uint64_t c = 0; c < changes && length; c++) {
        uint64_t r = carnn__random(round, c + 1);
        size_t at = (size_t)(r >> 32) % length, piece = (size_t)(r >> 16) % 40;
        piece = carnn__min(piece, length - at);
        switch (r % 4) {
        case 0: out[at] = likely[(r >> 8) % sizeof likely]; break;
        case 1: out[at] = (char)(r >> 8); break;
        case 2:
            memmove(out + at, out + at + piece, length - at - piece);
            length -= piece;
            break;
        default:
            memmove(out + at + piece, out + at, length - at);
            length += piece;
        }
    }
    return length;
}

/* Whatever the bytes, a load ends well or with a message, and leaks nothing. */
static void fuzz(const char *task, const char *text, const char *candidates, uint64_t rounds) {
    char *bytes = (char *)malloc(strlen(text) + 200);
    unsigned long good = 0, wrong = 0;
    for (uint64_t round = 0; round < rounds; round++) {
        size_t length = mutate(bytes, text, strlen(text), round);
        char *exact = (char *)malloc(length + !length); /* so that ASan sees a byte too many */
        carnn_source source = test_source("noise", exact, length);
        carnn_source list = source_of_text("list", candidates ? candidates : "");
        test_memory memory = {0, 0, 0};
        carnn_allocator a = test_allocator(&memory);
        carnn_dataset *d;
        carnn_error error;
        carnn_status status;
        memcpy(exact, bytes, length);
        status = read_data(&d, task, &source, 1, candidates ? &list : NULL, &a, &error);
        good += !status;
        if (!status) wrong += broken(d) != 0;
        else wrong += status != CARNN_ERR_DATA || d || strncmp(error.message, "noise:", 6) != 0;
        carnn_dataset_free(d);
        wrong += memory.blocks != 0;
        free(exact);
    }
    free(bytes);
    CHECK_INT(wrong, 0);
    CHECK(good > rounds / 20);
}

/* --- the published files ---------------------------------------------------------------------*/

/* How many different words the texts have whose numbers begin at `text`, `step` bytes apart. */
static size_t vocabulary_size(const carnn_dataset *d, carnn__tokenizer kind, const uint32_t *text,
                              size_t count, size_t step) {
    carnn_allocator a = carnn__allocator(NULL);
    carnn__vocabulary v;
    carnn__names words;
    carnn__vocabulary_open(&v, NULL, NULL, 0, NULL);
    for (size_t i = 0; i < count; i++) {
        uint32_t number;
        carnn__span s;
        memcpy(&number, (const char *)text + i * step, sizeof number);
        s = carnn__text(d, number);
        carnn__vocabulary_add(&v, kind, s, 1);
    }
    CHECK_INT(carnn__vocabulary_close(&v, 1, &words), CARNN_OK);
    count = words.count;
    carnn__names_free(&words, &a);
    return count - 1; /* <unk> */
}

static size_t word_count(const carnn_dataset *d, carnn__tokenizer kind, uint32_t text) {
    carnn__span s = carnn__text(d, text);
    carnn__words w = carnn__words_of(kind, s);
    size_t count = 0;
    while (carnn__next_word(&w)) count++;
    return count;
}

/* The counts that another program gives. */
static void test_babi_files(void) {
    static const char *const lists[] = {"babi-dialog/dialog-babi-candidates.txt",
                                        "babi-dialog/dialog-babi-task6-dstc2-candidates.txt"};
    static const struct {
        const char *file;
        size_t dialogs, turns, facts, silent, responses, candidates, words;
    } set[] = {
        {"babi-dialog/dialog-babi-task6-dstc2-trn.txt", 1618, 14404, 68821 + 258, 3882, 1766, 2407,
         1016},
        {"babi-dialog/dialog-babi-task6-dstc2-dev.txt", 500, 4159, 23795 + 163, 1294, 974, 2407,
         808},
        {"babi-dialog/dialog-babi-task5-full-dialogs-trn.txt", 1000, 18340, 23625, 0, 0, 4212, 0},
    };
    char path[256], list_path[256];
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
        carnn_source source, list;
        carnn_dataset *d;
        carnn_error error;
        size_t facts = 0, silent = 0;
        if (!test_published(path, set[i].file)) continue;
        test_published(list_path, lists[set[i].candidates == 2407]);
        source = test_source(path, NULL, 0);
        list = test_source(list_path, NULL, 0);
        CHECK_INT(read_data(&d, "dialog", &source, 1, NULL, NULL, &error), CARNN_OK);
        if (set[i].responses) CHECK_INT(d->choice_count, set[i].responses);
        carnn_dataset_free(d);
        CHECK_INT(read_data(&d, "dialog", &source, 1, &list, NULL, &error), CARNN_OK);
        CHECK_INT(d->group_count, set[i].dialogs);
        CHECK_INT(d->item_count, set[i].turns);
        for (size_t k = 0; k < d->member_count; k++) {
            facts += d->members[k].role == CARNN_FACT;
            silent += d->members[k].role == CARNN_USER &&
                      strcmp(text_at(d, d->members[k].text), "<SILENCE>") == 0;
        }
        CHECK_INT(facts, set[i].facts);
        if (set[i].silent) CHECK_INT(silent, set[i].silent);
        CHECK_INT(d->choice_count, set[i].candidates);
        if (set[i].words) { /* of lines and candidates; counted by another program */
            uint32_t *all = (uint32_t *)malloc(d->text_count * sizeof *all);
            for (uint32_t k = 0; k < d->text_count; k++) all[k] = k;
            CHECK_INT(vocabulary_size(d, CARNN__WORDS, all, d->text_count, sizeof *all),
                      set[i].words);
            free(all);
        }
        CHECK_INT(check_responses(d, &error), CARNN_OK);
        CHECK_INT(broken(d), 0);
        carnn_dataset_free(d);
    }
}

/* The counts that the README of each set gives. */
static void test_lm_files(void) {
    static const struct {
        const char *file;
        size_t documents, sentences, words, types, labels, labelled;
    } set[] = {
        {"swda/swda-train.txt", 1115, 192390, 1763256, 19503, 41, 192390},
        {"swda/swda-dev.txt", 21, 3272, 30909, 2532, 35, 3272},
        {"gdtb/gdtb-train.txt", 177, 10224, 177410, 0, 5, 3721},
        {"gdtb/gdtb-dev.txt", 30, 1575, 28119, 0, 5, 610},
        {"ptb/ptb.train.txt", 1, 42068, 887521, 9999 - 1 /* <unk> */, 0, 0},
        {"ptb/ptb.valid.txt", 1, 3370, 70390, 6021 - 1, 0, 0},
    };
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
        carnn_source source;
        carnn_dataset *d;
        carnn_error error;
        char path[256];
        size_t words = 0, labelled = 0;
        if (!test_published(path, set[i].file)) continue;
        source = test_source(path, NULL, 0);
        CHECK_INT(read_data(&d, "lm", &source, 1, NULL, NULL, &error), CARNN_OK);
        CHECK_INT(d->group_count, set[i].documents);
        CHECK_INT(d->item_count, set[i].sentences);
        CHECK_INT(d->choice_count, set[i].labels);
        CHECK_INT(d->spoken, i < 2);
        for (size_t k = 0; k < d->item_count; k++) {
            words += word_count(d, CARNN__SPACES, d->members[k].text);
            labelled += d->items[k].target != CARNN__NO_INDEX;
        }
        CHECK_INT(d->member_count, d->item_count);
        CHECK_INT(words, set[i].words);
        CHECK_INT(labelled, set[i].labelled);
        if (set[i].types)
            CHECK_INT(vocabulary_size(d, CARNN__SPACES, &d->members[0].text, d->member_count,
                                      sizeof *d->members), set[i].types);
        CHECK_INT(broken(d), 0);
        carnn_dataset_free(d);
    }
}

static void test_answer_files(void) {
    static const struct {
        const char *file, *folder;
        size_t questions, pairs, right;
        int odd; /* texts with a word that CARNN__TOKENS would split; -1: not tokenised */
    } set[] = {
        {"trecqa/clean-dev.tsv", NULL, 65, 1117, 205, 0},
        {"trecqa/raw-dev.tsv", NULL, 81, 1148, 222, 0},
        {"trecqa/original/clean-dev/a.toks", "/a.toks", 65, 1117, 205, 0},
        {"trecqa/original/raw-dev/a.toks", "/a.toks", 81, 1148, 222, 0},
        {"trecqa/train.tsv.gz", NULL, 93, 4718, 348, 0},
        {"trecqa/train-all.tsv.gz", NULL, 1229, 53417, 6403, 1},
        {"wikiqa/WikiQA-dev.tsv", NULL, 296, 2733, 140, -1},
        {"wikiqa/WikiQA-dev.txt.gz", NULL, 296, 2733, 140, -1},
        {"wikiqa/WikiQA-train.txt.gz", NULL, 2118, 20360, 1040, -1},
    };
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
        carnn_source source;
        carnn_dataset *d;
        carnn_error error;
        char path[256];
        size_t right = 0, odd = 0;
        if (!test_published(path, set[i].file)) continue;
        if (set[i].folder) path[strlen(path) - strlen(set[i].folder)] = 0;
        source = test_source(path, NULL, 0);
        if (read_data(&d, "answer", &source, 1, NULL, NULL, &error)) {
            CHECK((error.code == CARNN_ERR_IO || error.code == CARNN_ERR_DATA) &&
                  strstr(error.message, "gzip") != NULL);
            printf("left out: %s\n", error.message);
            continue;
        }
        CHECK_INT(d->group_count, set[i].questions);
        CHECK_INT(d->item_count, set[i].pairs);
        for (size_t k = 0; k < d->item_count; k++) right += d->items[k].value > 0.0f;
        CHECK_INT(right, set[i].right);
        for (uint32_t k = 0; set[i].odd >= 0 && k < d->text_count; k++)
            odd += word_count(d, CARNN__TOKENS, k) != word_count(d, CARNN__SPACES, k);
        if (set[i].odd >= 0) CHECK_INT(odd, set[i].odd);
        CHECK_INT(broken(d), 0);
        carnn_dataset_free(d);
    }
}

/* --- rows of numbers, by a reader of this test ------------------------------------------------ */

/* class<TAB>columns<TAB>number number ...: an item of rows. */
static carnn_status row_line(carnn__parser *p, carnn__record *r) {
    static float x[16];
    carnn__span rest = p->lines.line, columns, word;
    uint64_t whole;
    double number;
    size_t n = 0;
    carnn__cut(&rest, '\t', &r->target);
    carnn__cut(&rest, '\t', &columns);
    if (!carnn__whole(columns, &whole)) return carnn__unexpected(p, "columns", columns);
    while (rest.length && n < 16) {
        carnn__cut(&rest, ' ', &word);
        if (!carnn__number(word, &number)) return carnn__unexpected(p, "a number", word);
        x[n++] = (float)number;
    }
    word.at = (const char *)x;
    word.length = n * sizeof *x;
    r->begins = r->example = 1;
    r->columns = (size_t)whole;
    carnn__record_text(r, 0, word);
    return CARNN_OK;
}

static const carnn__reader row_reader = {row_line, "rows", 0, NULL, ""};

/* Reads rows for the task classify, whose own reader knows words only. */
static carnn_status read_rows(carnn_dataset **data, const char *text, carnn_error *error) {
    carnn_source source = source_of_text("rows", text);
    carnn_dataset_desc desc;
    carnn__reading r;
    memset(&desc, 0, sizeof desc);
    memset(&r, 0, sizeof r);
    desc.sources = &source;
    desc.source_count = 1;
    r.desc = &desc;
    r.reader = &row_reader;
    r.allocator = carnn__allocator(NULL);
    r.error = error;
    r.draft.task = "classify";
    return carnn__reading_run(data, &r, carnn__reading_all);
}

static void check_row_data(const carnn_dataset *d, size_t items, size_t rows) {
    CHECK_INT(d->columns, 2);
    CHECK_INT(d->item_count, items);
    CHECK_INT(d->row_texts, items);
    CHECK_INT(d->row_at[items], rows);
    CHECK(carnn_dataset_text(d, 0, 0) == NULL);
    CHECK_TEXT(carnn_dataset_target(d, 0), "up");
}

/* They are read, kept in a part of the data, and learnt from: a class by the order of two rows. */
static void test_number_rows(void) {
    static const uint32_t half[] = {0, 1, 1, 0};
    carnn_dataset *data, *part;
    carnn_model_desc desc;
    carnn_train_desc training;
    carnn_model *model;
    const carnn_model *const *models = (const carnn_model *const *)&model;
    carnn_scores scores;
    carnn_error error;
    CHECK_INT(read_rows(&data, "up\t2\t0 1 1 0\ndown\t2\t1 0 0 1\nup\t2\t0 1 0 1 1 0\n"
                               "down\t2\t1 0 1 0 0 1\n", &error), CARNN_OK);
    check_row_data(data, 4, 10);
    CHECK_INT(data->members[data->items[2].first].text, 2);
    CHECK_NEAR(data->numbers[2 * data->row_at[2] + 5], 0.0, 0.0);
    CHECK_INT(carnn__dataset_subset(&part, data, half, 0, &error), CARNN_OK);
    check_row_data(part, 2, 5);
    CHECK_INT(part->members[part->items[1].first].text, 1);
    CHECK_NEAR(part->numbers[2 * part->row_at[1] + 5], 1.0, 0.0);
    memset(&desc, 0, sizeof desc);
    memset(&training, 0, sizeof training);
    desc.task = "classify";
    desc.embedding = 3;
    CHECK_INT(carnn_model_create(&model, &desc, data, &error), CARNN_ERR_ARGUMENT);
    CHECK_TEXT(error.message,
               "the data set has rows of 2 numbers, the model reads rows of 3 (embedding)");
    desc.embedding = 2;
    desc.hidden = 8;
    training.epochs = 60;
    training.batch = 4;
    training.lr = 0.02;
    training.threads = 1;
    CHECK_INT(carnn_model_create(&model, &desc, data, &error), CARNN_OK);
    CHECK_INT(carnn_train(model, data, NULL, &training, &error), CARNN_OK);
    CHECK_INT(carnn_test(models, 1, data, 1, &scores, &error), CARNN_OK);
    CHECK_NEAR(scores.metric[0].value, 1.0, 0.0);
    CHECK_INT(carnn_test(models, 1, part, 1, &scores, &error), CARNN_OK);
    CHECK_INT(scores.examples, 2);
    CHECK_NEAR(scores.metric[0].value, 1.0, 0.0);
    carnn_model_free(model);
    carnn_dataset_free(part);
    carnn_dataset_free(data);
    CHECK_INT(read_rows(&data, "up\t2\t0 1\nup\t3\t0 1 2\n", &error), CARNN_ERR_DATA);
    CHECK(data == NULL);
    CHECK_TEXT(error.message,
               "rows:2: expected rows as long as those before, found another number of columns");
}

int main(void) {
    test_dialog();
    test_dialog_boundaries();
    test_dialog_lenient();
    test_dialog_three_columns();
    test_dialog_candidates();
    test_dialog_check_candidates();
    test_dialog_errors();
    test_arguments();
    test_sentences();
    test_sentences_errors();
    test_sentences_of_two_sources();
    test_pairs();
    test_pairs_errors();
    test_pairs_lenient();
    test_csv_by_another_name();
    test_csv_shifted();
    test_returns();
    test_lines_of();
    test_pairs_long_name();
    test_pairs_folder();
    test_pairs_folder_lenient();
    test_large();
    test_failing_dialog();
    test_failing_readers();
    test_threads();
    fuzz("dialog", two_dialogs, NULL, 4000);
    fuzz("dialog", two_dialogs, "1 Hello !\n1  you are welcome", 1000);
    fuzz("lm", sentences, NULL, 3000);
    fuzz("answer", numbered_pairs, NULL, 3000);
    test_babi_files();
    test_lm_files();
    test_answer_files();
    test_number_rows();
    return test_end();
}
