/* Text classification: the formats of files, the network by plain loops in doubles, unusual data,
   sessions and batches, threads and SIMD paths that change nothing. */

#include "test.h"

/* --- data ------------------------------------------------------------------------------------- */

static carnn_status classify_load_named(carnn_dataset **data, const char *name, const char *bytes,
                                        int fine, int lenient, carnn_error *error) {
    carnn_source source = test_source(name, bytes, strlen(bytes));
    carnn_dataset_desc desc;
    carnn_model_desc model;
    memset(&desc, 0, sizeof desc);
    memset(&model, 0, sizeof model);
    model.task = desc.task = "classify";
    CHECK_INT(carnn_set(&model, NULL, "fine", fine ? "1" : "0", error), CARNN_OK);
    desc.model = fine ? &model : NULL;
    desc.sources = &source;
    desc.source_count = 1;
    desc.lenient = lenient;
    return carnn_dataset_load(data, &desc, error);
}

static carnn_status classify_load(carnn_dataset **data, const char *bytes, int fine, int lenient,
                                  carnn_error *error) {
    return classify_load_named(data, "f.txt", bytes, fine, lenient, error);
}

/* All examples of a file with this name as "class|text", a line each. */
static const char *classify_named(const char *name, const char *bytes, int fine, int lenient) {
    carnn_dataset *data;
    carnn_error error;
    classify_load_named(&data, name, bytes, fine, lenient, &error);
    return test_spell(data, 1, 0, &error);
}

static const char *classify_read(const char *bytes, int fine, int lenient) {
    return classify_named("f.txt", bytes, fine, lenient);
}

static void classify_formats(void) {
    static const char trec[] = "DESC:manner How did it begin ?\nHUM:ind Who sang : us ?\n";
    CHECK_TEXT(classify_read("x\ta b\n\r\ny z\tc\td\r\nx\t\n", 0, 0), "x|a b\ny z|c\td\nx|\n");
    CHECK_TEXT(classify_read("__label__x a b\n__label__yes\n__label__x\tc", 0, 0),
               "x|a b\nyes|\nx|c\n");
    CHECK_TEXT(classify_read(trec, 0, 0), "DESC|How did it begin ?\nHUM|Who sang : us ?\n");
    CHECK_TEXT(classify_read(trec, 1, 0),
               "DESC:manner|How did it begin ?\nHUM:ind|Who sang : us ?\n");
    CHECK_TEXT(classify_read("\n4 a b\n0 5 men\n3\n", 0, 0), "4|a b\n0|5 men\n3|\n");
    CHECK_TEXT(classify_read("A:b\tc d\n4 e\tf\n", 1, 0), "A:b|c d\n4 e|f\n");
    CHECK_TEXT(classify_read("\xEF\xBB\xBF" "4 a", 0, 0), "4|a\n");
    CHECK_TEXT(classify_read("  __label__x a b\n\t__label__y c\n", 0, 0), "x|a b\ny|c\n");
}

/* Examples that are only to be predicted. */
static void classify_lenient(void) {
    /* a first line names the column of the texts, without one of classes */
    CHECK_TEXT(classify_read("index\tSentence\n0\ta b\n\n1\tc\n", 0, 1), "?|a b\n?|c\n");
    CHECK_TEXT(classify_read("text\tid\tnote\na b\t0\n\n", 0, 1), "?|a b\n");
    CHECK_TEXT(classify_read("text\na b\n\nc\td\n", 0, 1), "?|a b\n?|\n?|c\td\n");
    CHECK_TEXT(classify_read("text\ta b\nform\tc\n", 0, 1), "text|a b\nform|c\n");
    CHECK_TEXT(classify_read("text\ta\nform\tc\ntext\tb\n", 0, 1), "text|a\nform|c\ntext|b\n");
    CHECK_TEXT(classify_read("text\n", 0, 1), "?|text\n");
    CHECK_TEXT(classify_read("form\ttext\n\ta b\nform\tc\n", 0, 0),
               "f.txt:2: expected a class, found \"\\ta b\"");
    CHECK_TEXT(classify_read("4 a b\n2 c\n", 0, 1), "4|a b\n2|c\n");
    CHECK_TEXT(classify_read("4 men in a boat\n\nIt rains.\n3 of them\n", 0, 1),
               "?|4 men in a boat\n?|\n?|It rains.\n?|3 of them\n");
    CHECK_TEXT(classify_read("\nNB:this is a text\nit is\ta text\n", 0, 1),
               "?|\n?|NB:this is a text\n?|it is\ta text\n");
    CHECK_TEXT(classify_read("\n\n", 0, 1), "?|\n?|\n");
    CHECK_TEXT(classify_read("x\ta\n\ny c\n\td\n\t\n", 0, 1), "x|a\n?|y c\n?|d\n?|\n");
    CHECK_TEXT(classify_read("A:b c\nB:a d", 0, 1), "A|c\nB|d\n");
    CHECK_TEXT(classify_read("__label__x a\nb c\n", 0, 1), "x|a\n?|b c\n");
    CHECK_TEXT(classify_read(" __label__x a\n\t__label__y b\n c\n", 0, 1), "x|a\ny|b\n?|c\n");
    CHECK_TEXT(classify_read("__label__x __label__y b\n", 0, 1), "x|__label__y b\n");
    CHECK_TEXT(classify_read("\n", 0, 1), "?|\n");
    CHECK_TEXT(classify_read(" 4 a\n\n x\n", 0, 1), "?|4 a\n?|\n?|x\n");
    CHECK_TEXT(classify_read(" 4 a\n", 0, 1), "?|4 a\n");
    CHECK_TEXT(classify_read("4 a b\n\n2 c\n", 0, 1), "4|a b\n2|c\n");
    CHECK_TEXT(classify_read("(3 a)\n\t", 0, 1), "3|a\n?|\n");
    CHECK_TEXT(classify_read("", 0, 1), "");
    CHECK_TEXT(classify_read("words, text\nid,text\n", 0, 1), "?|words, text\n?|id,text\n");
}

/* CSV that is not read as such would be a text a line; prose, as just above, has blanks behind its
   commas. */
static void classify_csv_by_another_name(void) {
    static const struct {
        const char *text;
        int lenient;
        const char *place, *found;
    } sample[] = {
        {"id,label,Text\n1,x,\"a\nb\"\n", 1, "f.txt:1", "id,label,Text"},
        {"\"id\";\"text\"\n1;a\n", 1, "f.txt:1", "\"id\";\"text\""},
        {"\n\nid,text\n", 1, "f.txt:3", "id,text"},
        {"\nlabel,text\nx,a\n", 0, "f.txt:2", "label,text"},
    };
    char message[160];
    size_t i;
    for (i = 0; i < CARNN__COUNT(sample); i++) {
        snprintf(message, sizeof message, "%s: expected tabs between columns (CSV is read from "
                 "files whose names end in .csv), found \"%s\"", sample[i].place, sample[i].found);
        CHECK_TEXT(classify_read(sample[i].text, 0, sample[i].lenient), message);
    }
}

/* A first line that names one of the columns that are wanted is no example. */
static void classify_half_named(void) {
    static const struct {
        const char *text, *examples; /* NULL: it is refused */
        const char *wanted;
    } sample[] = {
        {"category\ttext\nx\ta b\n", NULL, "\"label\" or \"class\""},
        {"\nSentence\ttopic\na b\tx\n", NULL, "\"label\" or \"class\""},
        {"id\tcategory\ttext\n1\tx\ta\n", NULL, "\"label\" or \"class\""},
        {"label\treview\nx\ta b\n", NULL, "\"text\" or \"sentence\""},
        {"id\tmy review\tclass\n1\ta b\tx\n", NULL, "\"text\" or \"sentence\""},
        {"x\ttext\ny\ta\nx\tb\n", "x|text\ny|a\nx|b\n", NULL}, /* the class is there again */
        {"x\ta\tlabel\ny\ta\nx\tb\n", "x|a\tlabel\ny|a\nx|b\n", NULL},
        {"text\ta b\nx\tc\n", "text|a b\nx|c\n", NULL}, /* two words */
        {"x\ttext\n", "x|text\n", NULL}, /* the only line */
    };
    char message[160];
    size_t i;
    for (i = 0; i < CARNN__COUNT(sample); i++) {
        const char *read = classify_read(sample[i].text, 0, 0);
        if (sample[i].examples) CHECK_TEXT(read, sample[i].examples);
        else {
            snprintf(message, sizeof message, "f.txt:%d: expected a column %s, too, found ",
                     1 + (*sample[i].text == '\n'), sample[i].wanted);
            CHECK(strncmp(read, message, strlen(message)) == 0);
        }
    }
    CHECK_TEXT(classify_named("f.csv", "review,label\n\"a, b\",x\n", 0, 0),
               "f.csv:1: expected a column \"text\" or \"sentence\", too, found "
               "\"review\\tlabel\"");
}

/* Rows of CSV as RFC 4180 has them, and what spreadsheets make of these. */
static void classify_csv(void) {
    int lenient;
    static const char rows[] = "x,a b\r\n\"y \"\"z\"\"\",\"c, \"\"d\"\"\"\r\nx,\n";
    CHECK_TEXT(classify_named("f.csv", rows, 0, 0), "x|a b\ny \"z\"|c, \"d\"\nx|\n");
    CHECK_TEXT(classify_named("a/F.CSV", rows, 0, 0), "x|a b\ny \"z\"|c, \"d\"\nx|\n");
    CHECK_TEXT(classify_named("f.csv.gz", rows, 0, 0), "x|a b\ny \"z\"|c, \"d\"\nx|\n");
    CHECK_TEXT(classify_named(".csv", "x,a", 0, 0), "x|a\n");
    CHECK_TEXT(classify_named("csv", "x,a\ty,b\n", 0, 0), "x,a|y,b\n");
    CHECK_TEXT(classify_named("F.CSV.GZ", "x,a\n", 0, 0), "x|a\n");
    CHECK_TEXT(classify_named("f.csv", "x 5\" y;a,b\nz;\"c\"\n", 0, 0), "x 5\" y|a,b\nz|c\n");
    CHECK_TEXT(classify_named("f.csv", " \"x \"\";\";a,b\n", 0, 0), "x \";|a,b\n");
    CHECK_TEXT(classify_named("f.csv.bz2", "x,a\ty,b\n", 0, 0), "x,a|y,b\n");
    /* no byte is lost within quotation marks, but tabs and line breaks are blanks */
    CHECK_TEXT(classify_named("f.csv", "text,n,label\n\"a\nb\tc\r\n,d;\",1,x\n e\tf ,2,y\n",
                              0, 0),
               "x|a b c  ,d;\ny|e f\n");
    /* a comma in a text without quotation marks: before a class it would be the class's */
    for (lenient = 0; lenient < 2; lenient++) { /* so it is not answered either */
        CHECK_TEXT(classify_named("f.csv", "text,label\nb,x\na, b,y\n", 0, lenient),
                   "f.csv:3: expected 2 columns (here with tabs; a comma in one needs quotation "
                   "marks), found \"a\\t b\\ty\"");
        CHECK_TEXT(classify_named("f.csv", "label,text,n\nx,b,1\ny,a, b,2\n", 0, lenient),
                   "f.csv:3: expected 3 columns (here with tabs; a comma in one needs quotation "
                   "marks), found \"y\\ta\\t b\\t2\"");
    }
    CHECK_TEXT(classify_named("f.csv", "text,n\nb,1, ,\n\nc\n", 0, 1), "?|b\n?|c\n");
    CHECK_TEXT(classify_named("f.csv", "text,label\nb,x,\n a,y, ,\n", 0, 0), "x|b\ny|a\n");
    CHECK_TEXT(classify_named("f.csv", "label,text\nx,b\ny,a, b\n", 0, 0), "x|b\ny|a\t b\n");
    CHECK_TEXT(classify_named("f", "text\tlabel\nb\tx\na\tb\ty\n", 0, 0),
               "f:3: expected text<TAB>class, found \"a\\tb\\ty\"");
    CHECK_TEXT(classify_named("f.csv", "x,\"\"\ny,\"\"\"\"\nx, \"a,b\" c\ny,d \"e\"\n", 0, 0),
               "x|\ny|\"\nx|a,b c\ny|d \"e\"\n");
    /* the first row has the separator */
    CHECK_TEXT(classify_named("f.csv", "label;text\nx;a, b\ny;\"c; d\"\n", 0, 0),
               "x|a, b\ny|c; d\n");
    CHECK_TEXT(classify_named("f.csv", "\n \r\n\"label\";text\nx;a, b\n", 0, 0), "x|a, b\n");
    CHECK_TEXT(classify_named("f.csv", "\"a;b\",c;d\nx,y;z\n", 0, 0), "a;b|c;d\nx|y;z\n");
    /* which some spreadsheets say in a row of its own */
    for (lenient = 0; lenient < 2; lenient++) {
        CHECK_TEXT(classify_named("f.csv", "\xEF\xBB\xBFsep=;\r\nlabel;text\r\nx;a, b\r\n", 0,
                                  lenient), "x|a, b\n");
        CHECK_TEXT(classify_named("f.csv", "sep=,\nx,a;b\n", 0, lenient), "x|a;b\n");
        CHECK_TEXT(classify_named("f.csv", "sep=\t\r\nlabel\ttext\r\nx\ta;b\r\n", 0, lenient),
                   "x|a;b\n");
    }
    CHECK_TEXT(classify_named("f.csv", "sep=;\ntext\na, b\n\n", 0, 1), "?|a, b\n?|\n");
    CHECK_TEXT(classify_named("f.csv", "sep=;\na, b\n", 0, 1), "?|a, b\n");
    CHECK_TEXT(classify_named("f.csv", "sep=;\r\nx;\"a\"\n;b\n", 0, 0),
               "f.csv:3: expected a class, found \"\\tb\"");
    CHECK_TEXT(classify_named("f.csv", "sep=;\nx;a\ny;\"b\n", 0, 0),
               "f.csv:3: expected a quotation mark that ends the field, found none to the end");
    /* other programs write \" for "": rows would run into each other */
    CHECK_TEXT(classify_named("f.csv", "sep=;\nx;a\ny;\"a \\\"b; c\\\" d\"\n", 0, 0),
               "f.csv:3: expected two quotation marks for one in a field (sed 's/\\\\\"/\"\"/g' "
               "makes them), found a backslash and one");
    CHECK_TEXT(classify_named("f.csv", "x,\"a\\\"\ny,\"b\\\" ,\n\"z\\\",\\\"c \\\"\nw,\"\\\"",
                              0, 0),
               "x|a\\\ny|b\\\nz\\|\\\"c \\\"\nw|\\\n");
    CHECK_TEXT(classify_named("f.csv", "sep=;x\ny;a\n", 0, 0), "sep=|x\ny|a\n");
    CHECK_TEXT(classify_named("f.csv", "sep=;\rx\ny;a\n", 0, 0), "sep=|x\ny|a\n"); /* one row */
    for (lenient = 0; lenient < 4; lenient++)
        CHECK_TEXT(classify_named("f.csv", lenient / 2 ? "sep=;" : "sep=;\r\n", 0, lenient % 2),
                   lenient % 2 ? "" : "f.csv:1: expected a class and a text, found none");
    CHECK_TEXT(classify_named("f.csv", "x\ta,\"b\"\ny\tc\n", 0, 0), "x|a,\"b\"\ny|c\n");
    CHECK_TEXT(classify_named("f.csv", "text\n\"a, b\"\n\nc\n", 0, 1), "?|a, b\n?|\n?|c\n");
    CHECK_TEXT(classify_named("f.csv", "text\na;b\n", 0, 1), "?|a;b\n");
    CHECK_TEXT(classify_named("f.csv", "text,id\na b,1\n", 0, 1), "?|a b\n");
    CHECK_TEXT(classify_named("f.tsv", "text\tid\na b\t1\n", 0, 1), "?|a b\n");
    CHECK_TEXT(classify_named("f.tsv", "\n \nlabel\ttext\nx\ta\n", 0, 1), "x|a\n");
    CHECK_TEXT(classify_named("f.tsv", "\n \nx\ta\n", 0, 1), "x|a\n");
    CHECK_TEXT(classify_named("f.csv", "\"x\ny\";a, b\n", 0, 0), "x y|a, b\n");
    CHECK_TEXT(classify_named("f.csv", "\xEF\xBB\xBF\"x\",a\n\xEF\xBB\xBF\"y\","
                              "\"b\n\xEF\xBB\xBF\"\n", 0, 0), /* of files that were joined */
               "x|a\ny|b \xEF\xBB\xBF\n");
    /* of which the first ones were empty, or had a blank row */
    CHECK_TEXT(classify_named("f.csv", "\xEF\xBB\xBF\xEF\xBB\xBF\xEF\xBB\xBF\"x,y\";a\n", 0, 0),
               "x,y|a\n");
    CHECK_TEXT(classify_named("f.csv", "\xEF\xBB\xBF\n\xEF\xBB\xBF\"x,y\";a\n", 0, 0), "x,y|a\n");
    CHECK_TEXT(classify_named("f.csv", "\n\xEF\xBB\xBF\nx;a, b\n", 0, 0), "x|a, b\n");
    CHECK_TEXT(classify_named("f.csv", "\xEF\xBB\xBF\xEF\xBB\xBFsep=;\r\nx;a, b\n", 0, 0),
               "x|a, b\n");
    CHECK_TEXT(classify_named("f.csv", "x,a\n\ny,\"b\"\"\n\nz,c\n", 0, 0),
               "f.csv:3: expected a quotation mark that ends the field, found none to the end");
    CHECK_TEXT(classify_named("f.csv", "x,a\n\"\n\",b\n,c\n", 0, 0),
               "f.csv:2: expected a class, found \" \\tb\"");
    CHECK_TEXT(classify_named("f.csv", "", 0, 0),
               "f.csv:1: expected a class and a text, found an empty file");
}

/* SST's trees; with `phrases` every node that has not been an example is one. */
static void classify_trees(void) {
    static const char trees[] = "(3 (2 It) (4 (2 's) (4 good)))\n"
                                "(1 (2 It) (0 (1 bad) (0 -LRB-)))\n(2 (2 3) (5 It))\n"
                                "(4 (2 3) (5 It))\n"; /* a whole one is always an example */
    static char all[256];
    carnn_source source = test_source("f.txt", trees, strlen(trees));
    carnn_dataset_desc desc;
    carnn_model_desc model;
    carnn_dataset *data;
    carnn_error error;
    size_t i, at = 0;
    CHECK_TEXT(classify_read(trees, 0, 0), "3|It 's good\n1|It bad -LRB-\n2|3 It\n4|3 It\n");
    CHECK_TEXT(classify_read(trees, 0, 1), "3|It 's good\n1|It bad -LRB-\n2|3 It\n4|3 It\n");
    CHECK_TEXT(classify_read(" (3  a)  \r\n", 0, 0), "3|a\n");
    CHECK_TEXT(classify_read("(3 a) b\n", 0, 1), "?|(3 a) b\n");
    CHECK_TEXT(classify_read("(3 a)\n(3 (2 b)\n", 0, 0),
               "f.txt:2: expected a tree with a digit at every node, found \"(3 (2 b)\"");
    CHECK_TEXT(classify_read("(3 a)\n(3 b))\n", 0, 0),
               "f.txt:2: expected a tree with a digit at every node, found \"(3 b))\"");
    CHECK_TEXT(classify_read("(3 a)\n(3 (b))\n", 0, 0),
               "f.txt:2: expected a tree with a digit at every node, found \"(3 (b))\"");
    CHECK_TEXT(classify_read("(3 a)\n(33 b)\n", 0, 0),
               "f.txt:2: expected a tree with a digit at every node, found \"(33 b)\"");
    CHECK_TEXT(classify_read("(3 a)\n(\n", 0, 0),
               "f.txt:2: expected a tree with a digit at every node, found \"(\"");
    test_describe(&desc, "classify", &source);
    memset(&model, 0, sizeof model);
    model.task = desc.task;
    CHECK_INT(carnn_set(&model, NULL, "phrases", "1", &error), CARNN_OK);
    desc.model = &model;
    CHECK_INT(carnn_dataset_load(&data, &desc, &error), CARNN_OK);
    for (i = 0; i < carnn_dataset_examples(data); i++)
        at += (size_t)snprintf(all + at, sizeof all - at, "%s|%s\n", carnn_dataset_target(data, i),
                               carnn_dataset_text(data, i, 0));
    CHECK_TEXT(all, "3|It 's good\n2|It\n4|'s good\n2|'s\n4|good\n"
                    "1|It bad -LRB-\n0|bad -LRB-\n1|bad\n0|-LRB-\n2|3 It\n2|3\n4|3 It\n");
    CHECK_INT(carnn_dataset_examples(data), 12); /* "3", which names a class, too */
    CHECK_INT(carnn_dataset_groups(data), 4); /* trees: a fold has all phrases of one, or none */
    CHECK(data->items[4].group == 0 && data->items[8].group == 1 && data->items[9].group == 2);
    CHECK_INT(data->choice_count, 5); /* that of a phrase that has been is none */
    carnn_dataset_free(data);
    desc.lenient = 1; /* what is to be predicted are lines */
    CHECK_INT(carnn_dataset_load(&data, &desc, &error), CARNN_OK);
    CHECK_INT(carnn_dataset_examples(data), 4);
    carnn_dataset_free(data);
    for (i = 0; i < CARNN__CLASS_LOOKED_AT; i++) memcpy(all + 6 * i, "(3 a)\n", 6);
    strcpy(all + 6 * i, "b (c) d\n"); /* behind so many trees, a text */
    CHECK(strstr(classify_read(all, 0, 1), "\n?|b (c) d\n") != NULL);
}

/* So many empty lines: looking for the first text from each of them would take hours. */
static void classify_blank_lines(void) {
    const size_t size = 900000;
    char *bytes = (char *)malloc(size);
    carnn_source source = test_source("f.txt", bytes, size);
    carnn_dataset_desc desc;
    carnn_dataset *data;
    carnn_error error;
    memset(bytes, '\n', size);
    test_describe(&desc, "classify", &source);
    CHECK_INT(carnn_dataset_load(&data, &desc, &error), CARNN_ERR_DATA);
    CHECK(strstr(error.message, "expected a class and a text") != NULL);
    desc.lenient = 1;
    CHECK_INT(carnn_dataset_load(&data, &desc, &error), CARNN_OK);
    CHECK_INT(carnn_dataset_examples(data), size);
    carnn_dataset_free(data);
    memcpy(bytes + size - 6, "x\ta b\n", 6);
    desc.lenient = 0;
    CHECK_INT(carnn_dataset_load(&data, &desc, &error), CARNN_OK);
    CHECK_INT(carnn_dataset_examples(data), 1);
    carnn_dataset_free(data);
    free(bytes);
}

static void classify_errors(void) {
    CHECK_TEXT(classify_read("", 0, 0),
               "f.txt:1: expected a class and a text, found an empty file");
    CHECK_TEXT(classify_read("I like it\n", 0, 0),
               "f.txt:1: expected class<TAB>text, __label__class text, COARSE:fine text or a "
               "digit, a blank and a text, found \"I like it\"");
    CHECK_TEXT(classify_read("x\ta\nb c\n", 0, 0),
               "f.txt:2: expected class<TAB>text, found \"b c\"");
    CHECK_TEXT(classify_read("x\ta\n\n \tb c\n", 0, 0),
               "f.txt:3: expected a class, found \" \\tb c\"");
    CHECK_TEXT(classify_read("__label__x a\nx\tb\n", 0, 0),
               "f.txt:2: expected __label__class text, found \"x\\tb\"");
    CHECK_TEXT(classify_read("__label__x a\n__label__ b\n", 0, 0),
               "f.txt:2: expected a class, found \"__label__ b\"");
    CHECK_TEXT(classify_read("__label__x a\n__label__x __label__y b\n", 0, 0),
               "f.txt:2: expected one label, found \"__label__x __label__y b\"");
    CHECK_TEXT(classify_read("__label__x a\n__label__x  __label__y b\n", 0, 0),
               "f.txt:2: expected one label, found \"__label__x  __label__y b\"");
    CHECK_TEXT(classify_read("__label__x a\n__label__x b __label__y\n", 0, 0),
               "f.txt:2: expected one label, found \"__label__x b __label__y\"");
    CHECK_TEXT(classify_read("A:b c\nA: d\n", 0, 0),
               "f.txt:2: expected COARSE:fine text, found \"A: d\"");
    CHECK_TEXT(classify_read("A:b c\n:b d\n", 0, 0),
               "f.txt:2: expected COARSE:fine text, found \":b d\"");
    CHECK_TEXT(classify_read("A:b c\na:b d\n", 0, 0),
               "f.txt:2: expected COARSE:fine text, found \"a:b d\"");
    CHECK_TEXT(classify_read("4 a\n12 b\n", 0, 0),
               "f.txt:2: expected a digit, a blank and a text, found \"12 b\"");
}

/* What a file was read as; two sources may differ. */
static void classify_sources(void) {
    carnn_source sources[2];
    carnn_dataset_desc desc;
    carnn_dataset *data;
    carnn_error error;
    sources[0] = test_source("a", "NUM:date When ?\n", 16);
    sources[1] = test_source("b", "DESC\tWhy ?\n", 11);
    memset(&desc, 0, sizeof desc);
    desc.task = "classify";
    desc.sources = sources;
    desc.source_count = 2;
    CHECK_INT(carnn_dataset_load(&data, &desc, &error), CARNN_OK);
    CHECK_TEXT(carnn_dataset_format(data), "COARSE:fine text");
    CHECK_TEXT(carnn_dataset_target(data, 0), "NUM");
    CHECK_TEXT(carnn_dataset_target(data, 1), "DESC");
    CHECK_INT(carnn_dataset_groups(data), 2);
    carnn_dataset_free(data);
    sources[0] = test_source("a", "\n", 1);
    desc.source_count = 1;
    desc.lenient = 1;
    CHECK_INT(carnn_dataset_load(&data, &desc, &error), CARNN_OK);
    CHECK(!carnn_dataset_format(data)); /* it may be anything */
    carnn_dataset_free(data);
    desc.source_count = 2;
    CHECK_INT(carnn_dataset_load(&data, &desc, &error), CARNN_OK);
    CHECK_TEXT(carnn_dataset_format(data), "class<TAB>text"); /* the second one tells */
    carnn_dataset_free(data);
}

/* --- models ----------------------------------------------------------------------------------- */

static const char classify_letters[] =
    "x\ta b a b\ny\tb a c c d\nx\tc a\ny\td b a\ny\ta c b b c\nx\tb a\nz\td d c\nz\t\nx\ta a a\n";

static carnn_status classify_fit(carnn_model *model, const carnn_dataset *data, int64_t epochs) {
    carnn_train_desc train = test_training(epochs, 4, 0.02, 0.1);
    carnn_error error;
    return carnn_train(model, data, data, &train, &error);
}

/* --- the network behind the recurrent layer, by plain loops in doubles ------------------------ */

enum { CLASSIFY_WIDE = 64 };

/* Column j of the words' states x (n, D), pooled. */
static double classify_pooled(const float *x, size_t n, size_t D, size_t j, const char *kind,
                              size_t directions) {
    double y = n ? (double)x[j] : 0.0, sum = 0.0;
    size_t r;
    if (!n) return 0.0;
    if (!strcmp(kind, "last"))
        return (double)x[(directions > 1 && j >= D / 2 ? 0 : n - 1) * D + j];
    for (r = 0; r < n; r++) {
        double value = (double)x[r * D + j];
        sum += value;
        if (!strcmp(kind, "max") ? value > y : value < y) y = value;
    }
    return strcmp(kind, "mean") ? y : sum / (double)n;
}

/* The logits of a text from its words' states. */
static void classify_logits(const carnn_model *model, const float *x, size_t n, size_t directions,
                            double *logit) {
    const char *pooling = carnn__poolings[carnn__chosen(model, CARNN__CLASSIFY_POOLING)];
    const float *W1 = test_weight(model, "hidden.weight");
    const float *b1 = test_weight(model, "hidden.bias");
    const float *W2 = test_weight(model, "output.weight");
    const float *b2 = test_weight(model, "output.bias");
    size_t h = (size_t)model->desc.hidden, D = directions * h, V = 0, i, j;
    double v[CLASSIFY_WIDE], y[CLASSIFY_WIDE];
    const char *kind = pooling;
    while (*kind) { /* names with commas between them */
        char one[8];
        size_t length = strcspn(kind, ",");
        snprintf(one, sizeof one, "%.*s", (int)length, kind);
        for (j = 0; j < D; j++) v[V++] = classify_pooled(x, n, D, j, one, directions);
        kind += length + (kind[length] == ',');
    }
    for (i = 0; i < h; i++) {
        y[i] = (double)b1[i];
        for (j = 0; j < V; j++) y[i] += (double)W1[i * V + j] * v[j];
        if (y[i] < 0.0) y[i] = 0.0;
    }
    for (i = 0; i < model->choices.count; i++) {
        logit[i] = (double)b2[i];
        for (j = 0; j < h; j++) logit[i] += (double)W2[i * h + j] * y[j];
    }
}

/* Makes the logits the mean of what they are and of those by the text's n-grams. */
static void classify_with_ngrams(const carnn_model *model, const uint32_t *word, size_t n,
                                 size_t longest, double *logit) {
    const float *U = test_weight(model, "ngrams.weight");
    double sum[3] = {0.0, 0.0, 0.0};
    size_t count = 0, length, i, j;
    for (length = 1; length <= longest; length++)
        for (i = 0; i + length <= n; i++, count++) {
            uint64_t hash = 0;
            for (j = 0; j < length; j++) hash = carnn__stream(hash, word[i + j]);
            for (j = 0; j < 3; j++) sum[j] += (double)U[j * 262144 + hash % 262144];
        }
    for (j = 0; j < 3; j++)
        logit[j] = 0.5 * (logit[j] + (count ? 5.0 * sum[j] / sqrt((double)count) : 0.0));
}

/* Compares a batch of all texts. */
static void classify_by_loops(const char *options, size_t directions) {
    const char *ngrams = strstr(options, "ngrams=");
    carnn_dataset *data = test_data("classify", classify_letters, strlen(classify_letters), 0, 0);
    carnn_model *model = test_model("classify", options, NULL, data);
    const carnn__mat *x;
    const carnn__classify *m;
    test_work w;
    double worst = 0.0;
    size_t i, j;
    CHECK_INT(classify_fit(model, data, 2), CARNN_OK); /* biases that are not 0 */
    test_work_open(&w, model, data, 1);
    CHECK_INT(test_work_run(&w, 0), 1);
    m = (const carnn__classify *)w.work.state;
    x = carnn__rnn_output(&m->layers.rnn);
    CHECK_INT(m->net.texts.count, data->item_count);
    for (i = 0; i < data->item_count; i++) {
        size_t at = m->net.texts.at[i], n = m->net.texts.at[i + 1] - at;
        double logit[3];
        classify_logits(model, x->x + at * x->columns, n, directions, logit);
        if (ngrams) {
            uint32_t word[8];
            for (j = 0; j < n; j++) word[j] = m->net.texts.input[m->net.texts.ids[at + j]] / 2;
            classify_with_ngrams(model, word, n, (size_t)(ngrams[7] - '0'), logit);
        }
        for (j = 0; j < 3; j++)
            worst = test_worse(fabs(logit[j] - (double)m->z.x[i * 3 + j]), worst);
    }
    CHECK_NEAR(worst, 0.0, 1e-5);
    test_work_close(&w);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

static void classify_numbers(void) {
    classify_by_loops("pooling=max", 2);
    classify_by_loops("pooling=mean cell=gru", 2);
    classify_by_loops("pooling=min cell=ran directions=1", 1);
    classify_by_loops("pooling=last cell=icarnn layers=2", 2);
    classify_by_loops("pooling=last directions=1", 1);
    classify_by_loops("pooling=max,mean,min", 2);
    classify_by_loops("pooling=mean,last", 2);
    classify_by_loops("pooling=max,mean,min,last directions=1", 1);
    classify_by_loops("pooling=max ngrams=1", 2);
    classify_by_loops("pooling=mean,last ngrams=3", 2);
}

/* Outside of training the loss is that of the probabilities, also with n-grams. In training, where
   weights change, there is no macro F1. */
static void classify_scored_loss(void) {
    static const char text[] = "x\ta b\ny\tb c\nx\tc\ny\ta a b\n";
    carnn_dataset *data = test_data("classify", text, strlen(text), 0, 0);
    carnn_model *model = test_model("classify", "ngrams=2", NULL, data);
    float *gradient = (float *)calloc(model->params.size, sizeof *gradient);
    carnn_session *session = NULL;
    double loss = 0.0;
    size_t i, k;
    test_work w;
    for (i = 0; i < model->params.size; i++) model->params.value[i] += 0.05f * (float)(i % 7);
    CHECK_INT(carnn_session_open(&session, model, NULL, NULL), CARNN_OK);
    for (i = 0; i < 4; i++) {
        carnn_prediction p;
        CHECK_INT(carnn_session_example(session, data, i, 2, &p, NULL), CARNN_OK);
        for (k = 0; k < p.count; k++)
            if (!strcmp(carnn_model_choice(model, p.choice[k]), carnn_dataset_target(data, i)))
                loss -= log(p.probability[k]);
    }
    CHECK_NEAR(test_scores(model, data).loss, loss / 4.0, 1e-5);
    test_work_open(&w, model, data, 1);
    w.work.g = gradient;
    test_work_run(&w, 0);
    CHECK(w.tally.sum[1] != w.tally.sum[1]);
    test_work_close(&w);
    carnn_session_free(session);
    free(gradient);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* --- unusual data ----------------------------------------------------------------------------- */

/* One class; then also a second one, only in the data that is scored: it is never right. */
static void classify_one_class(void) {
    static const char ones[] = "x\ta b\nx\t\nx\tc\n", others[] = "x\ta\nw\tb\nx\tq\nx\t\n";
    carnn_dataset *data = test_data("classify", ones, strlen(ones), 0, 0);
    carnn_dataset *other = test_data("classify", others, strlen(others), 0, 0);
    carnn_model *model = test_model("classify", "", NULL, data);
    carnn_scores scores;
    carnn_train_desc train;
    carnn_error error;
    test_work w;
    CHECK_INT(carnn_model_choice_count(model), 1);
    memset(&train, 0, sizeof train);
    train.epochs = 2;
    train.threads = 1;
    CHECK_INT(carnn_train(model, data, other, &train, &error), CARNN_OK);
    scores = test_scores(model, other);
    CHECK_TEXT(scores.metric[0].name, "accuracy");
    CHECK_NEAR(scores.metric[0].value, 0.75, 1e-12);
    CHECK_TEXT(scores.metric[1].name, "macro_f1");
    CHECK_NEAR(scores.metric[1].value, (2.0 * 3 / (4 + 3) + 0.0) / 2.0, 1e-12); /* w: none right */
    CHECK_INT(scores.examples, 4);
    test_work_open(&w, model, other, 1);
    w.work.batch = 1; /* the texts of all batches count together */
    CHECK_INT(test_work_run(&w, 0), 4);
    CHECK_NEAR(w.tally.sum[1] / 4.0, scores.metric[1].value, 1e-12);
    test_work_close(&w);
    carnn_model_free(model);
    carnn_dataset_free(other);
    carnn_dataset_free(data);
}

/* A class that is predicted where no text is of it counts in macro F1, with 0. */
static void classify_predicted_only(void) {
    static const char letters[] = "x\ta\ny\tb\nz\tc\n", others[] = "x\ta\nx\ta\nx\tc\n";
    carnn_dataset *data = test_data("classify", letters, strlen(letters), 0, 0);
    carnn_dataset *other = test_data("classify", others, strlen(others), 0, 0);
    carnn_model *model = test_model("classify", "", NULL, data);
    carnn_train_desc train = test_training(100, 3, 0.05, CARNN_NONE);
    carnn_scores scores;
    CHECK_INT(carnn_train(model, data, data, &train, NULL), CARNN_OK);
    CHECK_NEAR(test_metric(&model->scores, "macro_f1"), 1.0, 1e-12);
    scores = test_scores(model, other);
    CHECK_NEAR(test_metric(&scores, "macro_f1"), (2.0 * 2 / (2 + 3) + 0.0) / 2.0, 1e-12);
    carnn_model_free(model);
    carnn_dataset_free(other);
    carnn_dataset_free(data);
}

/* A file without a class cannot make a model; the first example of a model's file can be empty. */
static void classify_unlabelled(void) {
    carnn_dataset *data = test_data("classify", "a b\n\n", 5, 0, 1);
    carnn_error error = test_refused("classify", "", data);
    CHECK_TEXT(error.message, "a classify model needs training data with classes");
    carnn_dataset_free(data);
}

/* --- sessions, threads, SIMD paths, files ----------------------------------------------------- */

/* Sessions predict what batches do, from texts, lines and examples, bit by bit. */
static void classify_sessions(void) {
    static const char texts[] = "a b a b d d\n\nd c q\nzz\na a a a a a a a a b c d a\n3 b c\n";
    carnn_dataset *data = test_data("classify", classify_letters, strlen(classify_letters), 0, 0);
    carnn_dataset *asked = test_data("classify", texts, strlen(texts), 0, 1);
    carnn_model *model = test_model("classify", "max_words=7 layers=2 ngrams=2", NULL, data);
    carnn_prediction p;
    carnn_session *session;
    carnn_error error;
    test_answers all;
    const char *line = texts;
    size_t i;
    int found;
    CHECK_INT(classify_fit(model, data, 10), CARNN_OK);
    all = test_predict_all(model, asked, 1);
    CHECK_INT(all.count, 6);
    CHECK_INT(all.kind, CARNN_PREDICTS_CHOICES);
    CHECK_INT(carnn_session_open(&session, model, NULL, &error), CARNN_OK);
    for (i = 0; i < all.count; i++) {
        size_t length = strcspn(line, "\n");
        carnn_text text;
        text.at = line;
        text.length = length;
        CHECK_INT(carnn_session_line(session, line, length, i + 1, 1, &found, &p, &error), 0);
        CHECK(found && p.choice[0] == all.choice[i] && p.probability[0] == all.value[i]);
        CHECK_INT(carnn_session_predict(session, &text, 1, 1, &p, &error), CARNN_OK);
        CHECK(p.choice[0] == all.choice[i] && p.probability[0] == all.value[i]);
        line += length + 1;
    }
    for (i = 0; i < all.count; i++) {
        CHECK_INT(carnn_session_example(session, asked, i, 3, &p, &error), CARNN_OK);
        CHECK(p.count == 3 && p.example == i && p.probability[0] == all.value[i]);
        CHECK_NEAR(p.probability[0] + p.probability[1] + p.probability[2], 1.0, 1e-6);
    }
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(asked);
    carnn_dataset_free(data);
}

/* A session reads a tree's leaves, of a long tree the first ones. */
static void classify_tree_session(void) {
    static const char letters[] = "(1 (2 a) (1 b))\n(2 c)\n", tree[] = "(2 (1 b) (0 (1 c) (1 a)))";
    static char large[3 * CARNN__TREE_BYTES];
    carnn_dataset *data = test_data("classify", letters, strlen(letters), 0, 0);
    carnn_model *model = test_model("classify", "", NULL, data);
    carnn_session *session;
    carnn_prediction p;
    carnn_error error;
    carnn_text words = {"b c a", 5};
    double probability;
    size_t i;
    int found;
    CHECK_INT(carnn_session_open(&session, model, NULL, &error), CARNN_OK);
    CHECK_INT(carnn_session_predict(session, &words, 1, 1, &p, &error), CARNN_OK);
    probability = p.probability[0];
    CHECK_INT(carnn_session_line(session, tree, strlen(tree), 1, 1, &found, &p, &error), 0);
    CHECK(found && p.probability[0] == probability);
    for (i = 0; i + 5 < sizeof large; i += 5) memcpy(large + i, i ? "(1 c)" : "(2 b ", 5);
    large[i++] = ')';
    CHECK_INT(carnn_session_line(session, large, i, 2, 1, &found, &p, &error), 0);
    CHECK(found && p.count == 1);
    probability = p.probability[0];
    words.at = large; /* the leaves: more than the model reads, so cut off alike */
    for (i = 0; i < 2000; i++) memcpy(large + 2 * i, i ? " c" : " b", 2);
    words.length = 4000;
    CHECK_INT(carnn_session_predict(session, &words, 1, 1, &p, &error), CARNN_OK);
    CHECK(p.probability[0] == probability);
    carnn_session_free(session);
    carnn_model_free(model);
    model = test_model("classify", "max_words=30000", NULL, data); /* leaves that it would read */
    CHECK_INT(carnn_session_open(&session, model, NULL, &error), CARNN_OK);
    for (i = 0; i + 5 < sizeof large; i += 5) memcpy(large + i, i ? "(1 c)" : "(2 b ", 5);
    large[i++] = ')';
    CHECK_INT(carnn_session_line(session, large, i, 2, 1, &found, &p, &error), CARNN_ERR_DATA);
    CHECK(strstr(error.message,
                 ":2: expected leaves of less than 16384 bytes, found \"(2 b (1 c)"));
    carnn_session_free(session);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

static void classify_same_bytes(void) {
    carnn_dataset *data = test_data("classify", classify_letters, strlen(classify_letters), 0, 0);
    carnn_model_free(test_trains_alike("classify", "pooling=max,mean,min layers=2", data,
                                     test_training(3, 4, 0.02, 0.1)));
    carnn_dataset_free(data);
}

/* A model keeps `fine`, by which the data that it is scored on is read. */
static void classify_kept(void) {
    static const char trec[] = "A:x a b\nB:x b b\nA:y c a\nB:z d a\nA:x b b\n";
    carnn_dataset *data;
    carnn_model *model, *again;
    carnn_error error;
    CHECK_INT(classify_load(&data, trec, 1, 0, &error), CARNN_OK);
    model = test_model("classify", "fine=1", NULL, data);
    CHECK_INT(carnn_model_choice_count(model), 4);
    CHECK_TEXT(carnn_model_choice(model, 2), "A:y");
    CHECK_INT(classify_fit(model, data, 1), CARNN_OK);
    again = test_reload(model);
    CHECK(carnn_model_describe(again)->option[CARNN__CLASSIFY_FINE] > 0.0);
    CHECK(test_scores(again, data).loss == test_scores(model, data).loss);
    carnn_model_free(again);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

int main(void) {
    classify_formats();
    classify_lenient();
    classify_csv_by_another_name();
    classify_half_named();
    classify_csv();
    classify_trees();
    classify_errors();
    classify_blank_lines();
    classify_sources();
    classify_numbers();
    classify_scored_loss();
    classify_one_class();
    classify_predicted_only();
    classify_unlabelled();
    classify_sessions();
    classify_tree_session();
    classify_same_bytes();
    classify_kept();
    return test_end();
}
