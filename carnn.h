/* carnn.h - context-dependent additive recurrent networks in one C99 file (MIT-0 or public domain)

   Recurrent networks that read a sequence under the control of a context: the CARNN family (Tran et
   al., NAACL 2018) beside LSTM, GRU and RAN, with hand-written backward passes, SIMD kernels chosen
   at run time, training that gives the same bytes for any number of threads, and a dialog model
   that chooses its replies and can say exactly what each earlier utterance contributed.

   DO THIS in ONE C or C++ file, and include the header without the #define anywhere else:

       #define CARNN_IMPLEMENTATION
       #include "carnn.h"

   Link with -lm and -lpthread. That one file needs stb_ds.h (Debian: libstb-dev) on its include
   path.

   A PROGRAM that loads a dialog model and answers:

       carnn_error error;
       carnn_model *model;
       carnn_session *session;
       carnn_source file = {"bot.gguf", NULL, 0};
       const char *reply;
       if (carnn_model_load(&model, &file, NULL, &error) ||
           carnn_session_open(&session, model, NULL, &error) ||
           carnn_session_reply(session, "i want cheap thai food", 22, &reply, &error)) {
           puts(error.message);
           exit(1);
       }
       puts(reply);
       carnn_session_free(session);
       carnn_model_free(model);

   examples/ has complete programs: training, own memory, threads, C++, an own allocator, ranking
   sentences, a language model that scores and generates, a task and a cell of one's own.

   CONTENTS: search for the tag. Each part relies only on those above it.

       (declarations)  what a program can call: read this first
       @@BASE    status, allocator, arena, random numbers, clock, threads
       @@SIMD    one vector of 16 lanes on every machine; the choice of the instruction set
       @@MATH    exp, sigmoid, tanh, softmax
       @@MAT     matrix products
       @@PARAM   the parameter store, optimisers
       @@SEQ     packed batches
       @@CELL    linear recurrence, nCARNN, iCARNN, sCARNN, RAN, RNN, LSTM, GRU, MI
       @@PART    position encoder, attention, cross entropy, dropout, alignment, cosine
       @@TEXT    tokenisers, lists of names, vocabularies, files, word vectors
       @@DATA    data sets of items, from lines to records; the formats
       @@MODEL   a model, the entry of a task, a model at work
       @@BATCH   token lists, pieces, the texts of a batch
       @@NET     the parts of heads: layers, pooling, attention, comparison, losses, ranks
       @@SESSION prediction one example at a time, explanation
       @@HEAD    one part per task: dialog, lm, answer, classify, pair, cloze
       @@TASKS   the table of tasks, options, making a model
       @@FILE    model files and checkpoints
       @@TRAIN   training, scoring, cross-validation
       @@CHECK   the gradient check
       @@BENCH   the benchmark
       @@GRAPH   graphs of recurrent networks: recurrent and feedforward depth, skip coefficient

   A cell is one entry of CARNN__CELLS and its two functions, a task one entry of carnn__tasks:
   help, options, gradient check, benchmark, sessions and model files follow from these tables.

   A TASK OF YOUR OWN needs no change here. Before the implementation, in one file:

       #define CARNN_EXTRA_HEADS(X) X(tag_task)
       #define CARNN_IMPLEMENTATION
       #include "carnn.h"

   and behind it `const carnn__task tag_task = {...};`. Its fields are explained at struct
   carnn__task (@@MODEL), and examples/tagger.c is complete. Training, early stopping, checkpoints,
   model files, sessions, cross-validation and the gradient check then work. It may use:

       reader    a function from a line to a record: carnn__record_text, carnn__cut, carnn__trim,
                 carnn__says_something, carnn__unexpected (@@TEXT, @@DATA); roles with a tokeniser,
                 of which those with `labels` name the model's choices
       options   CARNN__OPTION_WHOLE, _REAL, _CHOICE; read by carnn__option and carnn__chosen; the
                 entry's `defaults` lists values, "cell=gru epochs=60"
       words     carnn__net_build: the vocabulary of all inputs, the choices of all targets
       state     a struct that begins with carnn__net: net.corpus has the tokens and targets of the
                 data set, net.texts the texts of the batch at hand (@@BATCH)
       parts     one function that lists all weights and memory, and runs for either: it calls
                 carnn__texts_plan, then the _plan of each part; carnn__declare for weights of its
                 own; carnn__floats and carnn__take on p->arena (where that is not NULL; they return
                 NULL while memory is counted)
       forward   calls the _forward of each part, then `output` says where the logits are
       backward  the _backward of each part in the reverse order: the gradient of the loss with
                 respect to the logits is in their d; parts add to the d of what they read
       dropout   carnn__drop with the same key and stream in both directions
       loss      softmax cross entropy over the logits, or one of its own
       sample    lines of data for the gradient check, and `variants`, options to check

   Parts (@@NET) and their struct: carnn__embed, carnn__linear, carnn__highway, carnn__rnn (stacks
   of cells and RCRN; carnn__texts_read says what of a batch it reads), carnn__pool_part,
   carnn__additive, carnn__attentive, carnn__aligned, carnn__position, carnn__compare,
   carnn__similarity, carnn__overlap. Every part clears the d of its own output in _forward. These
   names stay within a minor version; everything else that begins with carnn__ is private. A model
   file names its task: only programs that have it can load the model.

   OPTIONS, #defined before the implementation:

       CARNN_API                       linkage of public functions (extern)
       CARNN_STATIC                    all functions static
       CARNN_FILE                      the name of this file, if you have renamed it
       CARNN_NO_STDIO                  no files: models and data from memory only
       CARNN_NO_THREADS                one thread
       CARNN_NO_SIMD                   portable C only
       CARNN_NO_TRAIN                  no training, gradient check, benchmark
       CARNN_NO_TEXT                   no data sets and vocabularies, hence no stb_ds and no
                                       training: what is left loads models and answers
       CARNN_NO_STB_DS_IMPLEMENTATION  the program has stb_ds's implementation elsewhere
       CARNN_EXTRA_HEADS               tasks of your own (above)
       CARNN_EXTRA_CELLS               cells of your own, and the file with their functions
       CARNN_EXTRA_CELL_FILE             (see "a cell of your own" in @@CELL)

   NOT HERE: GPUs, convolutions, transformers, automatic differentiation, half precision.

   CONVENTIONS. Matrices are row-major, weights (out, in); a shape (N, h) is rows, then columns.
   Sequences of a batch are packed (@@SEQ). Backward functions ADD to gradients of weights and of
   shared inputs. Losses are in nats.

   WHO FREES: what a function returns through a ** belongs to the caller and has a _free; strings
   returned belong to the object that was asked.

   THREADS. A const model may be used by any number of threads, each with its own session. A data
   set is read-only once it is loaded.

   ERRORS. Nothing here exits, aborts or prints. A call that can fail returns a carnn_status and
   fills a carnn_error with words: file, line, what was expected, what was found.

   MEMORY. Every object takes an allocator, stb_ds's arrays use it too. Training takes all of its
   memory before the first step; a session is one block whose size is known before.

   SAME BYTES. Every sum has one order: an element of a product adds over k upwards with fused
   multiply-add, a dot product has 16 partial sums, threads share outputs and never a sum; exp, tanh
   and the random numbers are our own. So a seed gives the same model file with AVX-512, AVX2, NEON
   and portable C, with any number of threads. What would break that does not compile: -ffast-math,
   and floats computed as wider numbers (the x87 of 32-bit x86; s390x with -std=c99: build with
   -fexcess-precision=fast). With clang's -ffp-contract=fast, which no macro tells, paths with fused
   multiply-add are refused at run time.

   PAPERS. Tran, Lai, Haffari, Zukerman, Bui, Bui: The Context-dependent Additive Recurrent Neural
   Net, NAACL 2018. Lee, Levy, Zettlemoyer: Recurrent Additive Networks, 2017. Bordes, Boureau,
   Weston: Learning End-to-End Goal-Oriented Dialog, ICLR 2017. Sukhbaatar et al.: End-To-End Memory
   Networks, NIPS 2015. Kadlec, Schmid, Bajgar, Kleindienst: Text Understanding with the Attention
   Sum Reader Network, ACL 2016. Chen, Hu, Huang, He: CA-RNN: Using Context-Aligned Recurrent Neural
   Networks for Modeling Sentence Similarity, AAAI 2018. dos Santos, Tan, Xiang, Zhou: Attentive
   Pooling Networks, 2016. */

#ifndef CARNN_H
#define CARNN_H

#include <stddef.h>
#include <stdint.h>

#define CARNN_VERSION_MAJOR 0
#define CARNN_VERSION_MINOR 1
#define CARNN_VERSION_PATCH 0
#define CARNN_VERSION "0.1.0"

#if defined(CARNN_NO_TEXT) && !defined(CARNN_NO_TRAIN)
#define CARNN_NO_TRAIN /* there is nothing to train on */
#endif

#if !defined(CARNN_API)
#if defined(CARNN_STATIC) && (defined(__GNUC__) || defined(__clang__))
#define CARNN_API static __attribute__((unused))
#elif defined(CARNN_STATIC)
#define CARNN_API static
#else
#define CARNN_API extern
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* --- status and errors ------------------------------------------------------------------------ */

#define CARNN_STATUS_LIST(X)                                                                       \
    X(CARNN_OK, 0, "done")                                                                         \
    X(CARNN_ERR_MEMORY, -1, "out of memory")                                                       \
    X(CARNN_ERR_ARGUMENT, -2, "an argument is out of range or names something unknown")            \
    X(CARNN_ERR_IO, -3, "a file could not be read or written")                                     \
    X(CARNN_ERR_DATA, -4, "a data file does not follow its format")                                \
    X(CARNN_ERR_MODEL, -5, "a model file is damaged, of another version, or does not fit")         \
    X(CARNN_ERR_DIVERGED, -6, "training met NaN, infinity or a loss far above that of the start")  \
    X(CARNN_ERR_STOPPED, -7, "the callback asked to stop")

typedef enum carnn_status {
#define CARNN_STATUS_ENUM(name, value, text) name = value,
    CARNN_STATUS_LIST(CARNN_STATUS_ENUM)
#undef CARNN_STATUS_ENUM
} carnn_status;

typedef struct carnn_error {
    carnn_status code;
    size_t line;       /* line of the data file where the error is, 0 where there is none */
    char message[512]; /* "file:line: expected ..., found ..."; always ends with a NUL */
} carnn_error;

/* A sentence for a status, never NULL. */
CARNN_API const char *carnn_status_text(carnn_status status);

/* --- memory ----------------------------------------------------------------------------------- */

/* NULL stands for malloc, realloc and free. `realloc` with a NULL block allocates; results must be
   aligned as malloc's are. */
typedef struct carnn_allocator {
    void *(*alloc)(size_t bytes, void *user);
    void *(*realloc)(void *block, size_t bytes, void *user);
    void (*free)(void *block, void *user);
    void *user;
} carnn_allocator;

/* --- sources ---------------------------------------------------------------------------------- */

/* A file by name, unpacked where it is packed by gzip and that program is at hand, or bytes. */
typedef struct carnn_source {
    const char *name;  /* file name, or what errors should call the bytes */
    const void *bytes; /* NULL: read the file `name` */
    size_t size;
} carnn_source;

/* --- descriptions ----------------------------------------------------------------------------- */

/* Zero-initialise them: a zero (NULL) field means the documented default, which may depend on the
   task. Where zero itself is a sensible choice, CARNN_NONE asks for it: `.dropout = CARNN_NONE`. */

#define CARNN_NONE (-1)

typedef struct carnn_dataset carnn_dataset;

#define CARNN_OPTIONS_MAX 24 /* options that a task may have for itself */

/* What a model is. All of it but the vectors is kept in the model file. */
typedef struct carnn_model_desc {
    const char *task;  /* "dialog", "lm", "answer", ...; carnn_task_name() lists all */
    const char *cell;  /* "icarnn"; carnn_cell_name() lists all */
    int64_t hidden;    /* size of the hidden state */
    int64_t embedding; /* size of the word embeddings */
    int64_t layers;    /* recurrent layers, one on top of the other */
    int64_t min_count; /* words rarer than this in the training data become <unk> */
    double option[CARNN_OPTIONS_MAX]; /* the task's own options, each at its `offset`; carnn_set()
                          sets them by name */
    const carnn_source *vectors; /* files of word vectors (GloVe, word2vec, .vec) to start from, the
                          first that has a word wins; where `embedding` is 0 it is their size; read
                          when the model is created, not kept in the description */
    size_t vector_count;
    const carnn_dataset *const *known; /* with vectors: data sets whose words the model is to know
                          beside those of the training data: the validation set; entries may be
                          NULL */
    size_t known_count;
    const char *unsure; /* dialog: what the model says where it has no answer, one more candidate; in
                          training a part of the turns has words that mean nothing and this as reply;
                          NULL: it always answers */
    const struct carnn_model *from; /* NULL, or a model to go on from: the new one has its options where
                          they are left open, its words and choices first, in their order, and its
                          weights; needed only while the new model is created */
    uint64_t seed;     /* of the initial weights and of everything random in training; to 2^53 */
    const char *simd;  /* "avx512", "avx2", "neon", "portable"; NULL: $CARNN_SIMD or the best */
    const carnn_allocator *allocator;
} carnn_model_desc;

/* Called after every few batches and after every epoch, with a report that is valid during the call
   only; a result other than 0 writes the checkpoint and stops with CARNN_ERR_STOPPED. */
typedef struct carnn_progress carnn_progress;
typedef int (*carnn_progress_fn)(const carnn_progress *progress, void *user);

/* How a model is trained. */
typedef struct carnn_train_desc {
    int64_t epochs;
    int64_t batch;         /* examples in a minibatch */
    double lr;             /* learning rate */
    double lr_end;         /* part of lr that is left at the end, reached along half a cosine */
    double lr_decay;       /* factor on the learning rate after every epoch */
    const char *optimizer; /* "sgd", "adagrad", "adadelta", "rmsprop", "adam" */
    double dropout;
    double clip;           /* bound on the global norm of the gradient */
    double weight_decay;   /* decoupled: weights shrink by lr * weight_decay a step */
    double smoothing;      /* label smoothing: share of the target's mass spread over all classes */
    double average;        /* what is scored and kept is a moving average of the weights, which
                              keeps this share of itself in a step */
    int64_t patience;      /* epochs without a better validation score before training stops */
    int64_t threads;       /* 0: as many as there are processors */
    double max_time;       /* seconds of this run; 0: no limit */
    const char *checkpoint; /* file for what a resumed run needs, written on a stop, at the end, and
                               between epochs, at most every 10 seconds; NULL: none */
    int64_t resume;        /* not 0: go on from `checkpoint` */
    carnn_progress_fn progress;
    void *user;
} carnn_train_desc;

/* Both descriptions as tables, for command lines, bindings and forms: one entry per number or name
   that a user may choose, with the same names that the model file uses. */
typedef enum carnn_option_kind {
    CARNN_OPTION_INTEGER, CARNN_OPTION_NUMBER, CARNN_OPTION_NAME
} carnn_option_kind;

typedef enum carnn_option_place {
    CARNN_OPTION_OF_MODEL,    /* a field of carnn_model_desc */
    CARNN_OPTION_OF_TRAINING, /* a field of carnn_train_desc */
    CARNN_OPTION_OF_TASK      /* carnn_model_desc.option[number]; of a name 1 + which choice */
} carnn_option_place;

typedef struct carnn_option {
    const char *name;  /* "lr_decay"; a command line may spell it --lr-decay */
    const char *help;
    carnn_option_kind kind;
    carnn_option_place place;
    size_t offset;     /* of the field in bytes; of a task's option its number */
    double low, high;  /* inclusive range of numbers */
    int none;          /* zero is a choice: stored as CARNN_NONE */
    const char *const *choices; /* of a task's names: what it may be, NULL behind the last */
} carnn_option;

/* Option `number` of a task: those that all tasks have (for task NULL these alone), then its own;
   NULL past the last. */
CARNN_API const carnn_option *carnn_option_at(const char *task, size_t number);

/* What an option of the kind NAME may be: NULL past the last, and for the other kinds. */
CARNN_API const char *carnn_option_choice(const carnn_option *option, size_t number);

/* Sets one option from text ("256", "0.5", "icarnn") after checking kind and range. A NAME becomes
   the library's own string: `value` need not live on. CARNN_ERR_ARGUMENT: the message names the
   option and, of a number, the range. */
CARNN_API carnn_status carnn_option_set(const carnn_option *option, carnn_model_desc *model,
                                        carnn_train_desc *train, const char *value,
                                        carnn_error *error);

/* The value of an option as carnn_option_set() would read it, "" where a name is not chosen. */
CARNN_API const char *carnn_option_get(const carnn_option *option, const carnn_model_desc *model,
                                       const carnn_train_desc *train, char *text, size_t size);

/* Sets the option that is called `name` (- and _ are the same) of model->task, of the model or of
   the training. train may be NULL. CARNN_ERR_ARGUMENT: the task has no such option. */
CARNN_API carnn_status carnn_set(carnn_model_desc *model, carnn_train_desc *train, const char *name,
                                 const char *value, carnn_error *error);

/* Fills every zero field with the default of the task (and, for the model, of the cell). */
CARNN_API carnn_status carnn_defaults(carnn_model_desc *model, carnn_train_desc *train,
                                      carnn_error *error);

/* Names in the tables of cells, tasks, optimisers and SIMD paths: NULL past the last. */
CARNN_API const char *carnn_cell_name(size_t number);
CARNN_API const char *carnn_cell_title(size_t number);
CARNN_API const char *carnn_task_name(size_t number);
CARNN_API const char *carnn_task_title(size_t number);
CARNN_API const char *carnn_task_data(size_t number); /* its data formats, for help texts */
CARNN_API const char *carnn_optimizer_name(size_t number);
CARNN_API const char *carnn_simd_name(size_t number); /* those that this machine can run */
CARNN_API size_t carnn_thread_count(int64_t threads); /* that are used; 0: a processor each */

/* --- data sets -------------------------------------------------------------------------------- */

/* A data set is text read from files in one of the published formats; it knows nothing of a
   vocabulary and can be shared between models and threads. */

typedef struct carnn_dataset_desc {
    const char *task;
    const carnn_source *sources; /* read one after the other */
    size_t source_count;
    const carnn_source *candidates; /* one candidate per line, for tasks that choose among texts
                                       (dialog); NULL: the distinct responses of the data */
    int clean;   /* not 0: groups without a right or without a wrong item are left out, in tasks
                    that rank (answer) */
    int lenient; /* not 0: examples that are only to be predicted: responses, labels, words and line
                    numbers may be missing, and so may examples */
    const carnn_allocator *allocator;
    const carnn_model_desc *model; /* the model that the data is for, where options of its task say
                    how files are read (classify: fine); NULL: the defaults */
} carnn_dataset_desc;

/* On an error *dataset is NULL, and the error names source, line and what was expected there. */
CARNN_API carnn_status carnn_dataset_load(carnn_dataset **dataset, const carnn_dataset_desc *desc,
                                          carnn_error *error);
CARNN_API void carnn_dataset_free(carnn_dataset *dataset);
CARNN_API size_t carnn_dataset_examples(const carnn_dataset *dataset);
CARNN_API size_t carnn_dataset_left_out(const carnn_dataset *dataset); /* groups, by `clean` */
CARNN_API size_t carnn_dataset_groups(const carnn_dataset *dataset); /* dialogs, questions, ... */

/* What the first source was read as, "COARSE:fine text": in tasks whose files have several formats
   that their lines tell apart (classify); elsewhere, and where the lines do not tell, NULL. */
CARNN_API const char *carnn_dataset_format(const carnn_dataset *dataset);

/* What an example is: its texts, as read and without blanks at their ends (of dialog all that was
   said before, the user's words last; of lm the sentence, after the one before where there is one),
   and what is right, by name; NULL past the last text, and where nothing is known to be right.
   Strings end with a NUL and belong to the data set. */
CARNN_API size_t carnn_dataset_text_count(const carnn_dataset *dataset, size_t example);
CARNN_API const char *carnn_dataset_text(const carnn_dataset *dataset, size_t example,
                                         size_t number);
CARNN_API const char *carnn_dataset_target(const carnn_dataset *dataset, size_t example);

/* --- models, training and scores -------------------------------------------------------------- */

typedef struct carnn_model carnn_model;

#ifndef CARNN_NO_TEXT
/* A new model with random weights; its vocabulary (and candidates) come from `train`. */
CARNN_API carnn_status carnn_model_create(carnn_model **model, const carnn_model_desc *desc,
                                          const carnn_dataset *train, carnn_error *error);
#endif
CARNN_API void carnn_model_free(carnn_model *model);

#define CARNN_SCORES_MAX 8

/* The scores of a model on a data set: the mean loss in nats and the metrics of the task by name;
   metric[0] is the one that chooses the best epoch. */
typedef struct carnn_scores {
    size_t examples;
    size_t tokens;   /* words scored (language models), 0 elsewhere */
    double loss;
    double seconds;
    double unknown;  /* by carnn_test: part of the data's words that are not in the vocabulary */
    size_t count;
    struct {
        const char *name; /* "accuracy" */
        double value;     /* rates are fractions between 0 and 1 */
        int lower_is_better;
        int secondary;    /* reported where it is asked for: the same by another count */
    } metric[CARNN_SCORES_MAX];
} carnn_scores;

struct carnn_progress {
    int64_t epoch, epochs;     /* from 1 */
    double done;               /* of this epoch, 0 to 1 */
    double loss;               /* mean over this epoch so far */
    double rate;               /* examples a second; of language models, words */
    double lr, gradient_norm;
    double seconds, seconds_left;
    int epoch_ended;           /* 1: this report closes an epoch */
    const carnn_scores *scores; /* on the validation set after this epoch, where it has ended;
                                   NULL elsewhere */
    const carnn_scores *best;   /* so far, without a validation set on the training data; NULL
                                   until an epoch has ended */
    int64_t best_epoch;
};

#ifndef CARNN_NO_TRAIN
/* Trains in place. Afterwards the model holds the weights with the best validation score (the
   last ones where valid is NULL), also after CARNN_ERR_STOPPED and CARNN_ERR_DIVERGED. */
CARNN_API carnn_status carnn_train(carnn_model *model, const carnn_dataset *train,
                                   const carnn_dataset *valid, const carnn_train_desc *desc,
                                   carnn_error *error);

/* Cross-validation over whole groups (dialogs, documents, questions; elsewhere each example is
   one). The weights of the best epoch are chosen on a tenth of each fold's training groups. */
typedef struct carnn_folds_desc {
    int64_t count;          /* folds, from 2 on; not needed where `by` is there */
    const carnn_source *by; /* a line with the name of its fold for every group, in the order of the
                               data; NULL: groups are dealt by chance, drawn by the model's seed */
    /* after each fold (number from 0, of `count`); may be NULL */
    void (*fold)(size_t number, size_t count, const carnn_scores *scores, void *user);
    void *user;
} carnn_folds_desc;

/* A model of its own, with the same seed, is trained for every fold and scored on it: *mean and
   *deviation (that of a sample) of loss and metrics over the folds; examples, tokens and seconds of
   *mean are sums. A target that a fold's training does not have counts as not known. A list of
   candidates is that of the whole data. There are no checkpoints. */
CARNN_API carnn_status carnn_cross_validate(const carnn_model_desc *model,
                                            const carnn_train_desc *train,
                                            const carnn_dataset *data,
                                            const carnn_folds_desc *folds, carnn_scores *mean,
                                            carnn_scores *deviation, carnn_error *error);
#endif

/* Scores each of `count` models; where count > 1, scores[count] is their vote: of dialog by
   plurality, ties by summed probability; of answer by the mean score; elsewhere by the mean of the
   probabilities. */
CARNN_API carnn_status carnn_test(const carnn_model *const *models, size_t count,
                                  const carnn_dataset *data, int64_t threads,
                                  carnn_scores *scores, carnn_error *error);

/* An item of a group (a sentence of a question) as a model has scored it; numbers are from 0. */
typedef struct carnn_ranked {
    size_t model;  /* `count`: their vote */
    size_t group;  /* its number in the data set */
    size_t member; /* its number among those of the group */
    int label;     /* 1: it is right */
    double score;
} carnn_ranked;

/* carnn_test that tells more. What metric[0] is the mean of, sum of values / sum of weights, are
   parts: dialogs (turns answered rightly, turns), questions (average precision, 1), pieces of
   sentences (-log P, words), or examples (rightly classified, 1; of grades, whose metric is no
   mean, squared error, 1). All models have the same parts in the same order. */
typedef struct carnn_test_desc {
    int64_t threads;
    void (*part)(size_t model, double value, double weight, void *user); /* may be NULL */
    void (*ranked)(const carnn_ranked *item, void *user); /* tasks that rank, in order; or NULL */
    void *user;
} carnn_test_desc;

CARNN_API carnn_status carnn_test_parts(const carnn_model *const *models, size_t count,
                                        const carnn_dataset *data, const carnn_test_desc *desc,
                                        carnn_scores *scores, carnn_error *error);

/* Which fields of a prediction are meant. */
typedef enum carnn_prediction_kind {
    CARNN_PREDICTS_CHOICES,    /* the most probable choices (replies, classes, tags) */
    CARNN_PREDICTS_SCORE,      /* a score, higher is better; or a grade */
    CARNN_PREDICTS_LIKELIHOOD  /* -log P of a text, in `score`, and its tokens */
} carnn_prediction_kind;

/* What a model makes of an example, or of one part of it: tasks that label every word of a text
   predict part by part. Belongs to the session, or is valid during the callback only. */
typedef struct carnn_prediction {
    carnn_prediction_kind kind;
    size_t example;            /* its number in the data set, from 0 */
    size_t part, parts;        /* the part's number and how many the example has: 0 and 1 mostly */
    size_t count;              /* of the most probable choices */
    const size_t *choice;      /* (count) numbers for carnn_model_choice, the most probable first */
    const struct carnn_text *candidate; /* cloze: choice i is candidate[i] of the example itself, a
                                  part of the text that was given; elsewhere NULL */
    const double *probability; /* (count) */
    double score;
    size_t tokens;             /* of a likelihood: words, the sentence's end among them */
    int unsure;                /* 1: the most probable choice is `unsure` of the model's description */
} carnn_prediction;

/* Writes a prediction as the task prints it, of choices the first `top` with their probabilities
   (0: the first one alone), and returns its length, both like snprintf. */
CARNN_API size_t carnn_prediction_text(const carnn_model *model, const carnn_prediction *prediction,
                                       size_t top, char *text, size_t size);

typedef struct carnn_predict_desc {
    int64_t threads;
    size_t top; /* how many choices are asked for [1] */
    void (*example)(const carnn_prediction *prediction, void *user); /* in order */
    void *user;
} carnn_predict_desc;

/* Predicts the examples of a data set in batches: the numbers are those of a session, bit by bit,
   at the speed of carnn_test. */
CARNN_API carnn_status carnn_predict(const carnn_model *model, const carnn_dataset *data,
                                     const carnn_predict_desc *desc, carnn_error *error);

/* The probability that the means of two models over the same parts (values a and b, weights) differ
   by chance as much as they do: paired bootstrap, 10,000 samples drawn by `seed`. */
CARNN_API double carnn_significance(size_t parts, const double *a, const double *b,
                                    const double *weight, uint64_t seed);

/* What a model is: the complete descriptions (of the training zeros for a new model), the epoch of
   its weights with the scores, the number of parameters, and the names it knows. */
CARNN_API const carnn_model_desc *carnn_model_describe(const carnn_model *model);
CARNN_API const carnn_train_desc *carnn_model_training(const carnn_model *model);
CARNN_API int64_t carnn_model_best_epoch(const carnn_model *model);
CARNN_API const carnn_scores *carnn_model_scores(const carnn_model *model);
CARNN_API size_t carnn_model_parameters(const carnn_model *model);
CARNN_API size_t carnn_model_word_count(const carnn_model *model);
CARNN_API const char *carnn_model_word(const carnn_model *model, size_t number);
CARNN_API size_t carnn_model_choice_count(const carnn_model *model); /* replies, classes, labels */
CARNN_API const char *carnn_model_choice(const carnn_model *model, size_t number);

/* One named array of weights, by number (name NULL past the last): `rows` by `columns` floats. */
typedef struct carnn_tensor {
    const char *name;
    size_t rows, columns;
    const float *value;
} carnn_tensor;
CARNN_API carnn_tensor carnn_model_tensor(const carnn_model *model, size_t number);

/* --- model files ------------------------------------------------------------------------------ */

/* GGUF version 3: metadata (task, cell, options, seed, scores, vocabulary), aligned float32 tensors
   and a checksum. Writing is atomic: a temporary file is written, synced, renamed. A load from
   memory that is aligned to 64 uses the weights in place: the bytes must outlive the model, which
   cannot be trained. Bytes that are not so aligned are copied. */

CARNN_API carnn_status carnn_model_save(const carnn_model *model, const char *file,
                                        carnn_error *error);
CARNN_API carnn_status carnn_model_load(carnn_model **model, const carnn_source *source,
                                        const carnn_allocator *allocator, carnn_error *error);

/* Bytes of the model's file, and the file itself written into memory of at least that size. */
CARNN_API size_t carnn_model_size(const carnn_model *model);
CARNN_API carnn_status carnn_model_write(const carnn_model *model, void *memory, size_t size,
                                         carnn_error *error);

/* Could `file` be written? Tries with a temporary file beside it. */
CARNN_API carnn_status carnn_file_check(const char *file, carnn_error *error);

/* --- sessions --------------------------------------------------------------------------------- */

/* Prediction. A session belongs to one thread; any number of sessions share one const model. */
typedef struct carnn_session carnn_session;

/* Opens a session in `memory` (carnn_session_size bytes, aligned to 64), or in memory of the
   model's allocator where it is NULL; carnn_session_free gives only the latter back. No other call
   allocates. */
CARNN_API size_t carnn_session_size(const carnn_model *model);
CARNN_API carnn_status carnn_session_open(carnn_session **session, const carnn_model *model,
                                          void *memory, carnn_error *error);
CARNN_API void carnn_session_free(carnn_session *session);

/* Forgets the dialog. */
CARNN_API void carnn_session_reset(carnn_session *session);

typedef struct carnn_text { /* of an example */
    const char *at;         /* any bytes */
    size_t length;
} carnn_text;

/* A call from here on that the model's task does not have returns CARNN_ERR_ARGUMENT, and the
   message says which ones it has.
   Predicts an example from its texts: of dialog the user's words, after what the session has heard,
   which is left as it was; of lm a sentence, whose context is the one before (none after a reset);
   of answer a question and a sentence; of pair two sentences; of classify a text; of cloze a text,
   a question with XXXXX and candidates "c1|c2|...", into which the prediction points. At most `top`
   choices are told. The prediction belongs to the session and lasts until its next call. */
CARNN_API carnn_status carnn_session_predict(carnn_session *session, const carnn_text *texts,
                                             size_t count, size_t top, carnn_prediction *prediction,
                                             carnn_error *error);

/* Another part of the last prediction, of which there are prediction->parts: of tasks that label
   every word of a text. */
CARNN_API carnn_status carnn_session_part(carnn_session *session, size_t part,
                                          carnn_prediction *prediction, carnn_error *error);

#ifndef CARNN_NO_TEXT
/* A line of a data file of the task, of examples that are only to be predicted: what it says is
   heard, and where it is an example *found is 1 and *prediction is what carnn_session_predict would
   say, else *found is 0. Lines come one after the other, as in a file; `number` is the line's, for
   errors. */
CARNN_API carnn_status carnn_session_line(carnn_session *session, const char *line, size_t length,
                                          size_t number, size_t top, int *found,
                                          carnn_prediction *prediction, carnn_error *error);

/* Predicts example `number` of a data set of the task, with all that comes before it. */
CARNN_API carnn_status carnn_session_example(carnn_session *session, const carnn_dataset *data,
                                             size_t number, size_t top,
                                             carnn_prediction *prediction, carnn_error *error);
#endif

typedef enum carnn_speaker { CARNN_USER, CARNN_SYSTEM, CARNN_FACT } carnn_speaker;

/* dialog: adds something said (or a knowledge-base fact) to the history. */
CARNN_API carnn_status carnn_session_hear(carnn_session *session, carnn_speaker speaker,
                                          const char *text, size_t length, carnn_error *error);

/* dialog: answers `user` and adds both to the history, which stays as it was where the model is
   unsure. *reply belongs to the model. */
CARNN_API carnn_status carnn_session_reply(carnn_session *session, const char *user, size_t length,
                                           const char **reply, carnn_error *error);

/* What a part of an example contributed to the last prediction; `has` says which numbers count. */
enum { CARNN_HAS_SCORE = 1, CARNN_HAS_ATTENTION = 2, CARNN_HAS_SHARE = 4 };

typedef struct carnn_contribution {
    const char *role; /* "user", "bot", "fact"; "before", "word"; "question", "sentence"; "text" */
    const char *text; /* as read, ends with a NUL, may be shortened; belongs to the session */
    unsigned has;
    double score;     /* what it adds to the logit of what is explained */
    double attention; /* dialog: alpha of Tran et al. 2018, Eq. 8; answer: the weight of a word,
                         where the model has such weights, 1 in all for each of the two texts;
                         cloze: of a word of the text */
    double share;     /* lm: of a word of the sentence before in the context; answer, pair: of a
                         word in the last states of its text's encoder, or of its state in the
                         vector that is compared (ca, ap, cosine) */
} carnn_contribution;

typedef struct carnn_explanation {
    size_t count;       /* contributions that there are */
    const char *of;     /* what is explained: a reply, the likeliest next word, a class; or NULL */
    double rest;        /* what no contribution accounts for (biases) */
    int exact;          /* 1: scores (shares) and the rest add up exactly, as they do for the
                           additive cells, Eq. 4 and 7; 0: for this cell they are what each step
                           has by itself, or all is left to the rest */
} carnn_explanation;

/* Explains the last prediction or reply, until something else is heard: contributions in reading
   order, at most `count` into out[]. dialog: one for each utterance that was read, to the logit of
   the best reply. lm: the words of the sentence before with their shares in the context, then those
   of the sentence with what they add to the logit of the most probable next word. answer: the words
   of the question and of the sentence; where shares are meant, they and the rest are 1 in all for
   each of the two (*rest has the sum of both). cloze: the words of the text, to the probability of
   the answer, which is exactly the sum of the attention to its places. */
CARNN_API carnn_status carnn_session_explain(carnn_session *session, size_t count,
                                             carnn_contribution *out,
                                             carnn_explanation *explanation, carnn_error *error);

/* How words are drawn. Zero means the default. */
typedef struct carnn_sampling {
    double temperature; /* logits are divided by it [1]; CARNN_NONE: take the most probable word */
    int64_t top_k;      /* only among the most probable so many [all] */
    double top_p;       /* only among the most probable that have this probability together [all] */
    uint64_t seed;
    int64_t words;      /* at most so many are drawn for a sentence [100] */
} carnn_sampling;

/* lm: writes a sentence that begins with the words of `prompt` (may be empty) into text[0 .. size),
   with a NUL; from the first word that does not fit on they are left out. */
CARNN_API carnn_status carnn_session_generate(carnn_session *session, const carnn_sampling *how,
                                              const char *prompt, size_t length, char *text,
                                              size_t size, carnn_error *error);

/* What each word of the first text (of_second 0), or of the second (1), of the last prediction is
   aligned with: (*rows, *columns), a row for each of its words, a column for each of the other's.
   answer: a row is 1 in all in IWAN; of attentive pooling G, of ca and cosine the cosines of the
   words' states. NULL where the model has no alignment. Belongs to the session. */
CARNN_API const float *carnn_session_alignment(const carnn_session *session, int of_second,
                                               size_t *rows, size_t *columns);

/* --- linear recurrence ------------------------------------------------------------------------ */

/* The recurrence of the additive cells by itself, over one sequence of any length:

     y_t = A_t * y_{t-1} + Z_t   elementwise;   backward: D_t = G_t + A_{t+1} * D_{t+1},
     dZ_t = D_t, dA_t = D_t * y_{t-1}, dy0 = A_0 * D_0, where G is the gradient at y.

   All arrays are (steps, columns); y0 and dy0 are (columns) and may be NULL (y0: zeros). y may be
   Z, dZ may be G. A long sequence can be fed in chunks: the last row of y is the y0 of the next. */
CARNN_API carnn_status carnn_recurrence(size_t steps, size_t columns, const float *A,
                                        const float *Z, const float *y0, float *y, int64_t threads,
                                        carnn_error *error);
CARNN_API carnn_status carnn_recurrence_backward(size_t steps, size_t columns, const float *A,
                                                 const float *y, const float *y0, const float *G,
                                                 float *dA, float *dZ, float *dy0,
                                                 int64_t threads, carnn_error *error);

#ifndef CARNN_NO_TEXT

/* --- graphs of recurrent networks ------------------------------------------------------------- */

/* The cyclic graph of a recurrent network and how deep it is (Zhang: Recurrent Neural Models and
   Related Problems in Natural Language Processing, thesis, Montreal 2019, chapter 4). A file has
   lines of these kinds, and comments after #:

     period M                          the graph repeats itself after M time steps [1]
     node NAME in|hidden|out TIME      the time is 0 to M - 1 [0]
     edge FROM TO DELAY                from a node above at time t to one at time t + DELAY

   At most 1,024 nodes, 8,192 edges, names of 40 bytes; periods and delays up to 1,000,000. */
typedef struct carnn_graph carnn_graph;

typedef enum carnn_node_kind { CARNN_NODE_IN, CARNN_NODE_HIDDEN, CARNN_NODE_OUT } carnn_node_kind;

typedef struct carnn_graph_node {
    char name[41];
    carnn_node_kind kind;
    int64_t time;
    size_t line; /* of the file, as in edges; 0 where there is no file */
} carnn_graph_node;

typedef struct carnn_graph_edge {
    size_t from, to; /* numbers of nodes */
    int64_t delay;
    size_t line;
} carnn_graph_edge;

/* A measure as an exact fraction in lowest terms, and the edges, one after the other, of a cycle or
   path that attains it. */
typedef struct carnn_graph_value {
    int64_t numerator, denominator; /* 0 / 0: there is none */
    size_t length;
    int64_t delay;                  /* sum over the edges */
    const uint32_t *edge;           /* (length) numbers of edges */
} carnn_graph_value;

typedef struct carnn_graph_measures {
    carnn_graph_value recurrent_depth;   /* largest length / delay of a cycle */
    carnn_graph_value feedforward_depth; /* largest length - delay * recurrent depth of a path from
                                            an input to an output; 0 / 0: no path leads there */
    carnn_graph_value skip_coefficient;  /* largest delay / length of a cycle */
} carnn_graph_measures;

/* Reads a graph, checks the four conditions of Def. 4.2.1.1 and measures it. A source without bytes
   is a file or the name of a graph of the thesis: sh, st, bu, td (Fig. 4.2a), grid:RxF of recurrent
   depth R and feedforward depth F, fig4.3a:K (sh with a skip of K steps), fig4.3b:N:K (skips of K
   steps in two layers, N = 1 to 4). CARNN_ERR_DATA: the message names the line and, of a graph that
   is not valid, the condition. */
CARNN_API carnn_status carnn_graph_load(carnn_graph **graph, const carnn_source *source,
                                        const carnn_allocator *allocator, carnn_error *error);
CARNN_API void carnn_graph_free(carnn_graph *graph);

/* Measures of a graph whose cycles lead forward in time (backward 0), or back (1: delays count with
   the other sign). Of a bidirectional graph, which has both, each part is measured without the
   cycles of the other. NULL: there are no cycles in this direction. */
CARNN_API const carnn_graph_measures *carnn_graph_measure(const carnn_graph *graph, int backward);

/* Writes "a -0-> b -1-> a", a cycle or path with its delays; returns its length, as snprintf. */
CARNN_API size_t carnn_graph_path(const carnn_graph *graph, const carnn_graph_value *value,
                                  char *text, size_t size);

/* What a graph consists of: NULL past the last node or edge. */
CARNN_API int64_t carnn_graph_period(const carnn_graph *graph);
CARNN_API const carnn_graph_node *carnn_graph_node_at(const carnn_graph *graph, size_t number);
CARNN_API const carnn_graph_edge *carnn_graph_edge_at(const carnn_graph *graph, size_t number);

#endif

#ifndef CARNN_NO_TRAIN

/* --- self-checks and measurements ------------------------------------------------------------- */

/* One call of `row` per line; its result other than 0 stops. */

typedef struct carnn_check { /* one line of the gradient check */
    const char *group;       /* "cell", "part", "head" */
    const char *name;        /* "icarnn" */
    size_t numbers;          /* derivatives compared */
    double error;            /* largest relative error among them */
    double limit;
    int passed;
    char worst[192];         /* where that is: array, entry, both numbers, variant */
} carnn_check;

/* Compares derivatives with central differences: all entries of the tables, or those whose group
   or name is `only`. CARNN_ERR_ARGUMENT where nothing has that name. */
CARNN_API carnn_status carnn_gradcheck(const char *only, uint64_t seed,
                                       int (*row)(const carnn_check *check, void *user),
                                       void *user, carnn_error *error);

typedef struct carnn_measure { /* one line of the benchmark; valid during the callback only */
    const char *group;         /* "peak", "kernel", "cell", "encoder", "task" */
    const char *name;          /* "matmul 32 x 1024 x 1024" */
    const char *unit;          /* "GFLOP/s" */
    double value;              /* median */
    double share;              /* of the measured peak of the machine, 0 where that says nothing */
    const char *simd;          /* the path that was used */
    size_t threads;
} carnn_measure;

/* Measures all rows, or the one whose name is `only`, or those with `only` as group or in the name.
   CARNN_ERR_ARGUMENT where no row has it. */
CARNN_API carnn_status carnn_bench(const char *only, const char *simd, int64_t threads,
                                   int (*row)(const carnn_measure *measure, void *user),
                                   void *user, carnn_error *error);

#endif /* CARNN_NO_TRAIN */

#ifdef __cplusplus
}
#endif

#endif /* CARNN_H */
/* =============================================================================================
   @@BASE   status, allocator, arena, random numbers, clock, threads
   ============================================================================================= */

#ifdef CARNN__IMPLEMENTED /* once in a file is enough, however often it includes this header */
#undef CARNN_IMPLEMENTATION
#endif

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "carnn.h needs IEEE arithmetic: build it without -ffast-math"
#endif

/* What is left out leaves helpers without a caller. */
#if defined(__GNUC__)
#pragma GCC diagnostic push
#endif
#if defined(__GNUC__) && (defined(CARNN_STATIC) || defined(CARNN_NO_TRAIN) ||                      \
                          defined(CARNN_NO_STDIO) || defined(CARNN_NO_THREADS))
#pragma GCC diagnostic ignored "-Wunused-function"
#endif

#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16 /* 16: only half precision is computed wider */
#error "carnn.h needs floats that are computed as floats: on x86, -msse2 -mfpmath=sse; else, \
-fexcess-precision=fast"
#endif

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <sys/time.h>
#include <unistd.h>
#ifndef CARNN_NO_THREADS
#include <pthread.h>
#include <sys/resource.h>
#endif
#endif

#if !defined(CARNN_NO_SIMD) && defined(__GNUC__) && defined(__x86_64__)
#define CARNN__HAS_X86
#if !defined(__clang__) /* gcc's header leaves a variable undefined on purpose */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#elif !defined(CARNN_NO_SIMD) && defined(__GNUC__) && defined(__aarch64__) &&                      \
    defined(__ARM_NEON) && !defined(__AARCH64EB__)
#define CARNN__HAS_NEON
#include <arm_neon.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define CARNN__ALIGN 64 /* bytes: a cache line, and the widest vector */
#define CARNN__COUNT(array) (sizeof(array) / sizeof((array)[0]))

static inline size_t carnn__min(size_t a, size_t b) { return a < b ? a : b; }
static inline size_t carnn__max(size_t a, size_t b) { return a > b ? a : b; }
/* n / size, rounded up. */
static inline size_t carnn__parts(size_t n, size_t size) { return (n + size - 1) / size; }
static inline size_t carnn__round_up(size_t n, size_t to) { return carnn__parts(n, to) * to; }
/* The size, a multiple of `grain`, of each of at most `parts` equal parts of n. */
static inline size_t carnn__part(size_t n, size_t parts, size_t grain) {
    return carnn__round_up(carnn__parts(n, parts), grain);
}

/* --- status ---------------------------------------------------------------------------------- */

CARNN_API const char *carnn_status_text(carnn_status status) {
    switch (status) {
#define CARNN__STATUS_CASE(name, value, text)                                                      \
    case name: return text;
        CARNN_STATUS_LIST(CARNN__STATUS_CASE)
#undef CARNN__STATUS_CASE
    default: return "unknown status";
    }
}

/* Arguments are checked against the format: its place, and that of the first of them. */
#if defined(__MINGW_PRINTF_FORMAT) /* of C99, not of msvcrt.dll, which has no %zu */
#define CARNN__PRINTF(format_at, first) \
    __attribute__((format(__MINGW_PRINTF_FORMAT, format_at, first)))
#elif defined(__GNUC__)
#define CARNN__PRINTF(format_at, first) __attribute__((format(printf, format_at, first)))
#else
#define CARNN__PRINTF(format_at, first)
#endif

/* Fills `error`, which may be NULL, and returns `code`. */
CARNN__PRINTF(4, 5)
static carnn_status carnn__fail(carnn_error *error, carnn_status code, size_t line,
                                const char *format, ...) {
    if (error) {
        va_list arguments;
        error->code = code;
        error->line = line;
        va_start(arguments, format);
        vsnprintf(error->message, sizeof error->message, format, arguments);
        va_end(arguments);
    }
    return code;
}
static carnn_status carnn__out_of_memory(carnn_error *error) {
    return carnn__fail(error, CARNN_ERR_MEMORY, 0, "out of memory");
}

/* --- allocator ------------------------------------------------------------------------------- */

static void *carnn__default_alloc(size_t bytes, void *user) {
    (void)user;
    return malloc(bytes);
}
static void *carnn__default_realloc(void *block, size_t bytes, void *user) {
    (void)user;
    return realloc(block, bytes);
}
static void carnn__default_free(void *block, void *user) {
    (void)user;
    free(block);
}
static carnn_allocator carnn__allocator(const carnn_allocator *chosen) {
    carnn_allocator standard = {carnn__default_alloc, carnn__default_realloc, carnn__default_free,
                                NULL};
    return chosen ? *chosen : standard;
}

/* a b, or SIZE_MAX where that overflows: for sizes that come from files or callers. No allocation
   of SIZE_MAX bytes succeeds. */
static size_t carnn__times(size_t a, size_t b) { return b && a > SIZE_MAX / b ? SIZE_MAX : a * b; }
static void *carnn__alloc(const carnn_allocator *a, size_t count, size_t size) {
    size_t bytes = carnn__times(count, size);
    return bytes > SIZE_MAX / 2 ? NULL : a->alloc(carnn__max(bytes, 1), a->user);
}
static void *carnn__alloc_zero(const carnn_allocator *a, size_t count, size_t size) {
    void *block = carnn__alloc(a, count, size);
    if (block) memset(block, 0, count * size);
    return block;
}
static void carnn__free(const carnn_allocator *a, void *block) {
    if (block) a->free(block, a->user);
}

/* A block aligned to CARNN__ALIGN; the pointer to free is stored in front of it. */
static void *carnn__alloc_aligned(const carnn_allocator *a, size_t count, size_t size) {
    size_t bytes = carnn__times(count, size), more = CARNN__ALIGN + sizeof(void *);
    char *block = (char *)carnn__alloc(a, bytes > SIZE_MAX / 2 ? SIZE_MAX : bytes + more, 1);
    char *aligned;
    if (!block) return NULL;
    aligned = block + sizeof(void *);
    aligned += (CARNN__ALIGN - (uintptr_t)aligned % CARNN__ALIGN) % CARNN__ALIGN;
    memcpy(aligned - sizeof(void *), &block, sizeof block);
    return aligned;
}
static void carnn__free_aligned(const carnn_allocator *a, void *aligned) {
    void *block;
    if (!aligned) return;
    memcpy(&block, (char *)aligned - sizeof(void *), sizeof block);
    a->free(block, a->user);
}

/* --- arena --------------------------------------------------------------------------------------
   One block of memory, allocated from front to back; setting `used` to an earlier value frees all
   that was allocated since. Run on an arena without memory, the same code only counts, and `peak`
   is the size to allocate. */

typedef struct carnn__arena {
    char *base; /* NULL: count only */
    size_t size, used, peak;
} carnn__arena;

/* `count` items of `size` bytes, aligned to a cache line. NULL where the arena only counts or is
   full; `peak` then exceeds `size`, so one check after many calls is enough. */
static void *carnn__take(carnn__arena *arena, size_t count, size_t size) {
    const size_t most = SIZE_MAX / CARNN__ALIGN * CARNN__ALIGN; /* no block is that large */
    size_t bytes = carnn__times(count, size);
    char *block = NULL;
    if (bytes > most - arena->used) {
        arena->used = arena->peak = most;
        return NULL;
    }
    if (arena->base && arena->used + bytes <= arena->size) block = arena->base + arena->used;
    arena->used = carnn__round_up(arena->used + bytes, CARNN__ALIGN);
    arena->peak = carnn__max(arena->peak, arena->used);
    return block;
}
static float *carnn__floats(carnn__arena *arena, size_t rows, size_t columns) {
    return (float *)carnn__take(arena, carnn__times(rows, columns), sizeof(float));
}

/* --- random numbers -----------------------------------------------------------------------------
   Counter based: number i of stream s is a hash of (seed, s, i). There is no state, so any thread
   can produce any part of a stream. The hash is the finaliser of SplitMix64 (Steele, Lea and Flood
   2014), applied three times. */
static inline uint64_t carnn__mix(uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/* The key of a stream: of a parameter's initial values, a step's dropout, a shuffle. */
static inline uint64_t carnn__stream(uint64_t seed, uint64_t stream) {
    return carnn__mix(carnn__mix(seed) ^ stream);
}
static inline uint64_t carnn__random(uint64_t key, uint64_t i) {
    return carnn__mix(key + i * 0xD1342543DE82EF95u);
}

/* Uniform in [0, 1) with 24 bits: every value is a float. */
static inline float carnn__uniform(uint64_t key, uint64_t i) {
    return (float)(carnn__random(key, i) >> 40) * (1.0f / 16777216.0f);
}

/* Nearly normal with mean 0 and variance 1: a sum of twelve uniforms, since the last bit of log and
   cos differs between platforms. */
static inline float carnn__normal(uint64_t key, uint64_t i) {
    float sum = -6.0f;
    uint64_t j;
    for (j = 0; j < 12; j++) sum += carnn__uniform(key, i * 12 + j);
    return sum;
}

/* Fisher-Yates. */
static void carnn__shuffle(uint64_t key, uint32_t *items, size_t count) {
    size_t i;
    for (i = count; i > 1; i--) {
        size_t j = (size_t)(carnn__random(key, i) % i);
        uint32_t swap = items[i - 1];
        items[i - 1] = items[j];
        items[j] = swap;
    }
}

/* --- clock ----------------------------------------------------------------------------------- */

/* Seconds since a fixed but unknown time. */
static double carnn__clock(void) {
#if defined(_WIN32)
    LARGE_INTEGER now, frequency;
    QueryPerformanceCounter(&now);
    QueryPerformanceFrequency(&frequency);
    return (double)now.QuadPart / (double)frequency.QuadPart;
#elif defined(CLOCK_MONOTONIC)
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
#else /* -std=c99 hides the monotonic clock; clock() adds up the time of all threads */
    struct timeval now;
    gettimeofday(&now, NULL);
    return (double)now.tv_sec + 1e-6 * (double)now.tv_usec;
#endif
}

/* --- threads ------------------------------------------------------------------------------------
   A pool runs a job that consists of independent pieces. The caller and the workers claim piece
   after piece from a shared counter, so a worker that is not scheduled delays nothing. Results must
   not depend on the thread: pieces split the OUTPUT of an operation, never a sum. */

typedef void (*carnn__job_fn)(void *job, size_t piece, size_t worker);
typedef struct carnn__pool carnn__pool;

/* The number of processors online; 1 where it is unknown. */
static size_t carnn__processors(void) {
#if defined(_WIN32)
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return carnn__max((size_t)info.dwNumberOfProcessors, 1);
#elif defined(_SC_NPROCESSORS_ONLN)
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? (size_t)count : 1;
#else
    return 1;
#endif
}
/* Bytes of the second-level cache of a processor; 0 where that is unknown. */
static size_t carnn__second_cache(void) {
#if defined(_SC_LEVEL2_CACHE_SIZE)
    long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return bytes > 0 ? (size_t)bytes : 0;
#else
    return 0;
#endif
}
/* 0 threads: one for each processor. */
CARNN_API size_t carnn_thread_count(int64_t threads) {
    return threads > 0 ? (size_t)threads : carnn__processors();
}

#ifdef CARNN_NO_THREADS

#define carnn__get(p) (*(p))
#define carnn__put(p, value) ((void)(*(p) = (value)))
struct carnn__pool { /* there is none: every pool is NULL */
    size_t threads;
    long active;
};

static carnn_status carnn__pool_create(carnn__pool **pool, size_t threads, carnn_allocator a) {
    (void)threads;
    (void)a;
    *pool = NULL;
    return CARNN_OK;
}
static void carnn__pool_free(carnn__pool *pool) { (void)pool; }

#else

/* The interface to the system's threads, for POSIX and for Windows. All atomic operations are
   sequentially consistent; `carnn__cas` returns whether *p was `from`. */
#if defined(_MSC_VER) && !defined(__clang__)
#define carnn__get(p) InterlockedOr((p), 0)
#define carnn__put(p, value) ((void)InterlockedExchange((p), (value)))
#define carnn__add(p, value) (InterlockedExchangeAdd((p), (value)) + (value))
#define carnn__cas(p, from, to) (InterlockedCompareExchange((p), (to), (from)) == (from))
#else
#define carnn__get(p) __atomic_load_n((p), __ATOMIC_SEQ_CST)
#define carnn__put(p, value) __atomic_store_n((p), (value), __ATOMIC_SEQ_CST)
#define carnn__add(p, value) __atomic_add_fetch((p), (value), __ATOMIC_SEQ_CST)
static inline int carnn__cas(volatile long *p, long from, long to) {
    return __atomic_compare_exchange_n(p, &from, to, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
#endif

#if defined(_WIN32)
typedef HANDLE carnn__thread;
typedef CRITICAL_SECTION carnn__mutex;
typedef CONDITION_VARIABLE carnn__condition;
#define carnn__lock(m) EnterCriticalSection(m)
#define carnn__unlock(m) LeaveCriticalSection(m)
#define carnn__sleep(c, m) ((void)SleepConditionVariableCS((c), (m), INFINITE))
#define carnn__wake(c) WakeAllConditionVariable(c)
#define CARNN__THREAD_RESULT DWORD WINAPI
#else
typedef pthread_t carnn__thread;
typedef pthread_mutex_t carnn__mutex;
typedef pthread_cond_t carnn__condition;
#define carnn__lock(m) ((void)pthread_mutex_lock(m))
#define carnn__unlock(m) ((void)pthread_mutex_unlock(m))
#define carnn__sleep(c, m) ((void)pthread_cond_wait((c), (m)))
#define carnn__wake(c) ((void)pthread_cond_broadcast(c))
#define CARNN__THREAD_RESULT void *
#endif

typedef struct carnn__worker {
    carnn__pool *pool;
    size_t number; /* from 1: the caller is worker 0 */
    carnn__thread thread;
} carnn__worker;

/* fn, job and count are written by the caller while `left` is 0 and no piece is in progress, and
   read only after a piece was claimed: `left` and `done` order all accesses to them. */
struct carnn__pool {
    carnn_allocator allocator;
    size_t threads; /* including the caller */
    carnn__worker *workers;
    carnn__mutex mutex;
    carnn__condition work, finished;
    carnn__job_fn fn;
    void *job;
    long count;
    volatile long left;    /* pieces not yet claimed: claiming one is a compare-and-swap */
    volatile long done;    /* pieces finished */
    volatile long asleep;  /* workers that wait for `work` */
    volatile long waiting; /* 1 while the caller waits for `finished` */
    volatile long active;  /* threads that work at present: those whose number is lower */
    long preemptions;      /* those below: of carnn__pool_watch; seen at the time `watched` */
    double watched, hold, held_until; /* seconds */
    volatile long stop;
};

/* Seconds that an idle thread spins before it sleeps, about as long as waking one takes: the steps
   of a recurrence follow each other within microseconds. */
#define CARNN__SPIN 50e-6
static inline void carnn__spin(void) {
#if (defined(__GNUC__) || defined(__clang__)) && (defined(__x86_64__) || defined(__i386__))
    __builtin_ia32_pause();
#elif defined(__GNUC__) && defined(__aarch64__)
    __asm__ __volatile__("yield");
#elif defined(_WIN32)
    YieldProcessor();
#endif
}

/* Spins for at most CARNN__SPIN until *word is at least `least`; returns whether it is. */
static int carnn__pool_spin(volatile long *word, long least) {
    double end = carnn__clock() + CARNN__SPIN;
    do {
        int i;
        for (i = 0; i < 16; i++) {
            if (carnn__get(word) >= least) return 1;
            carnn__spin();
        }
    } while (carnn__clock() < end);
    return 0;
}
static int carnn__pool_works(carnn__pool *pool, size_t worker) {
    return (long)worker < carnn__get(&pool->active);
}
/* Wakes all that sleep on a condition, after a change of the state that they test. They hold the
   lock from the test to the sleep, so none of them can miss this. */
static void carnn__pool_wake(carnn__pool *pool, carnn__condition *condition) {
    carnn__lock(&pool->mutex);
    carnn__wake(condition);
    carnn__unlock(&pool->mutex);
}

/* Claims and runs pieces until none is left or `worker` is no longer active. A value of `left` that
   was read during an earlier job may be valid again: the claim then succeeds, and the fields read
   after it are those of the current job. */
static void carnn__pool_work(carnn__pool *pool, size_t worker) {
    long left = carnn__get(&pool->left);
    while (left > 0 && carnn__pool_works(pool, worker)) {
        if (carnn__cas(&pool->left, left, left - 1)) {
            long count = pool->count;
            pool->fn(pool->job, (size_t)(count - left), worker);
            if (carnn__add(&pool->done, 1) == count && carnn__get(&pool->waiting))
                carnn__pool_wake(pool, &pool->finished);
        }
        left = carnn__get(&pool->left);
    }
}

/* Sleeps until there is a job or `active` changes. The caller tests again. */
static void carnn__worker_sleep(carnn__worker *self) {
    carnn__pool *pool = self->pool;
    int active;
    carnn__lock(&pool->mutex);
    active = carnn__pool_works(pool, self->number);
    if (active) carnn__add(&pool->asleep, 1); /* before `left` is read: see carnn__pool_run */
    if (!carnn__get(&pool->stop) && (!active || !carnn__get(&pool->left)))
        carnn__sleep(&pool->work, &pool->mutex);
    if (active) carnn__add(&pool->asleep, -1);
    carnn__unlock(&pool->mutex);
}

static CARNN__THREAD_RESULT carnn__worker_main(void *data) {
    carnn__worker *self = (carnn__worker *)data;
    carnn__pool *pool = self->pool;
    while (!carnn__get(&pool->stop)) {
        if (carnn__pool_works(pool, self->number) && carnn__pool_spin(&pool->left, 1))
            carnn__pool_work(pool, self->number);
        else
            carnn__worker_sleep(self);
    }
    return 0;
}

#if defined(_WIN32)
static int carnn__thread_start(carnn__worker *w) {
    w->thread = CreateThread(NULL, 0, carnn__worker_main, w, 0, NULL);
    return w->thread != NULL;
}
static void carnn__thread_join(carnn__worker *w) {
    WaitForSingleObject(w->thread, INFINITE);
    CloseHandle(w->thread);
}
static int carnn__pool_locks(carnn__pool *pool) {
    InitializeCriticalSection(&pool->mutex);
    InitializeConditionVariable(&pool->work);
    InitializeConditionVariable(&pool->finished);
    return 1;
}
static void carnn__pool_unlocks(carnn__pool *pool) { DeleteCriticalSection(&pool->mutex); }
#else
static int carnn__thread_start(carnn__worker *w) {
    return !pthread_create(&w->thread, NULL, carnn__worker_main, w);
}
static void carnn__thread_join(carnn__worker *w) { pthread_join(w->thread, NULL); }
static int carnn__pool_locks(carnn__pool *pool) {
    if (pthread_mutex_init(&pool->mutex, NULL)) return 0;
    if (!pthread_cond_init(&pool->work, NULL)) {
        if (!pthread_cond_init(&pool->finished, NULL)) return 1;
        pthread_cond_destroy(&pool->work);
    }
    pthread_mutex_destroy(&pool->mutex);
    return 0;
}
static void carnn__pool_unlocks(carnn__pool *pool) {
    pthread_cond_destroy(&pool->finished);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->mutex);
}
#endif

static void carnn__pool_free(carnn__pool *pool) {
    size_t i;
    if (!pool) return;
    carnn__put(&pool->stop, 1);
    carnn__pool_wake(pool, &pool->work);
    for (i = 1; i < pool->threads; i++) carnn__thread_join(&pool->workers[i - 1]);
    carnn__pool_unlocks(pool);
    carnn__free(&pool->allocator, pool);
}
/* Sets the number of active threads; between jobs only. */
static void carnn__pool_resize(carnn__pool *pool, long active) {
    carnn__put(&pool->active, active);
    carnn__pool_wake(pool, &pool->work);
}

/* Starts threads - 1 workers, or as many as the system allows. *pool is NULL for one thread. */
static carnn_status carnn__pool_create(carnn__pool **pool, size_t threads, carnn_allocator a) {
    carnn__pool *p;
    *pool = NULL;
    threads = carnn__min(threads, 1024);
    if (threads < 2) return CARNN_OK;
    p = (carnn__pool *)carnn__alloc_zero(&a, 1, sizeof *p + (threads - 1) * sizeof *p->workers);
    if (!p) return CARNN_ERR_MEMORY;
    p->allocator = a;
    p->workers = (carnn__worker *)(void *)(p + 1);
    p->active = (long)threads;
    if (!carnn__pool_locks(p)) {
        carnn__free(&a, p);
        return CARNN_ERR_MEMORY;
    }
    for (p->threads = 1; p->threads < threads; p->threads++) {
        carnn__worker *w = &p->workers[p->threads - 1];
        w->pool = p;
        w->number = p->threads;
        if (!carnn__thread_start(w)) break;
    }
    if (p->threads < threads) carnn__pool_resize(p, (long)p->threads);
    *pool = p;
    return CARNN_OK;
}

/* How often threads of this program were preempted so far; 0 where that is unknown. */
static long carnn__preemptions(void) {
#if defined(RUSAGE_SELF)
    struct rusage use;
    return getrusage(RUSAGE_SELF, &use) ? 0 : use.ru_nivcsw;
#else
    return 0;
#endif
}

/* Beside a busy process a worker is preempted for milliseconds, often within a piece that all
   others wait for. Some tens of preemptions per second are usual; hundreds mean that there are more
   threads than processors. The pool then does without one worker for a time, which doubles where
   the same happens again soon. */
#define CARNN__WATCH 0.025       /* seconds between two looks */
#define CARNN__PREEMPTIONS 300.0 /* per second: too many */
#define CARNN__HOLD 0.2          /* seconds without the worker, at first and at most */
#define CARNN__HOLD_MOST 1.6
static void carnn__pool_watch(carnn__pool *pool) {
    double now = carnn__clock(), seconds = now - pool->watched;
    long seen, before = pool->preemptions, active = carnn__get(&pool->active);
    if (seconds < CARNN__WATCH) return;
    seen = carnn__preemptions();
    pool->watched = now;
    pool->preemptions = seen;
    if (active > 1 && seconds < 4.0 * CARNN__WATCH &&
        (double)(seen - before) > CARNN__PREEMPTIONS * seconds) {
        int again = now - pool->held_until < 4.0 * CARNN__WATCH;
        if (!again) pool->hold = CARNN__HOLD;
        else if (pool->hold < CARNN__HOLD_MOST) pool->hold *= 2.0;
        pool->held_until = now + pool->hold;
        carnn__pool_resize(pool, active - 1);
    } else if (active < (long)pool->threads && now > pool->held_until) {
        carnn__pool_resize(pool, active + 1);
    }
}

/* Starts a job, works on it, and waits for the pieces of other threads. */
static void carnn__pool_run(carnn__pool *pool, long count, carnn__job_fn fn, void *job) {
    pool->fn = fn;
    pool->job = job;
    pool->count = count;
    carnn__put(&pool->done, 0);
    carnn__put(&pool->left, count);
    /* A worker increments `asleep` before it reads `left`: either it is seen here, or it sees the
       job. No wake-up is lost. */
    if (carnn__get(&pool->asleep)) carnn__pool_wake(pool, &pool->work);
    carnn__pool_work(pool, 0);
    if (carnn__pool_spin(&pool->done, count)) return;
    carnn__lock(&pool->mutex);
    carnn__put(&pool->waiting, 1);
    while (carnn__get(&pool->done) < count) carnn__sleep(&pool->finished, &pool->mutex);
    carnn__put(&pool->waiting, 0);
    carnn__unlock(&pool->mutex);
}

#endif /* CARNN_NO_THREADS */

static size_t carnn__pool_threads(const carnn__pool *pool) { return pool ? pool->threads : 1; }
/* How many threads would work on a job now. */
static size_t carnn__pool_active(carnn__pool *pool) {
    return pool ? (size_t)carnn__get(&pool->active) : 1;
}

/* Runs fn(job, piece, worker) for every piece in [0, count) and returns when all are done; `worker`
   is less than carnn__pool_threads(pool). With NULL for a pool the calling thread runs all. */
static void carnn__parallel(carnn__pool *pool, size_t count, carnn__job_fn fn, void *job) {
    size_t piece = 0;
#ifdef CARNN_NO_THREADS
    (void)pool;
#else
    if (count > 1 && count <= LONG_MAX && carnn__pool_active(pool) > 1) {
        carnn__pool_run(pool, (long)count, fn, job);
        piece = count;
    }
    if (pool) carnn__pool_watch(pool); /* also where one thread works: all of its jobs are seen */
#endif
    for (; piece < count; piece++) fn(job, piece, 0);
}

#endif /* CARNN_IMPLEMENTATION */
/* --- arguments of kernels -----------------------------------------------------------------------
   Declared here, since the kernels of all parts are compiled first, once per instruction set. */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

/* A kernel that computes the range [from, to) of a job's output. */
typedef void (*carnn__range_fn)(const void *job, size_t from, size_t to);

enum { /* in the order of carnn__optimizers (@@PARAM) */
    CARNN__OPTIMIZER_sgd, CARNN__OPTIMIZER_adagrad, CARNN__OPTIMIZER_rmsprop,
    CARNN__OPTIMIZER_adadelta, CARNN__OPTIMIZER_adam, CARNN__OPTIMIZER_COUNT
};

typedef struct carnn__optimizer_kind {
    const char *name;
    size_t moments;      /* arrays beside the weights */
    double lr, a, b, eps; /* a, b: decay rates; lr: the learning rate unless chosen otherwise */
} carnn__optimizer_kind;

/* One step of an optimiser. */
typedef struct carnn__update {
    size_t number;
    const carnn__optimizer_kind *kind;
    float *w;         /* weights */
    float *g;         /* gradients, same layout; zeros afterwards */
    float *moment[2];
    float clip;       /* factor that brings the gradient to the clipping norm */
    float keep;       /* 1 - lr weight_decay */
    float lr;
    float correct;    /* Adam: 1 / sqrt(1 - b^t) */
} carnn__update;

/* The sequences of a batch without padding (@@SEQ), sorted by descending length: step t is rows
   start[t] .. start[t + 1] - 1, of which the sequence of rank b has row start[t] + b. */
typedef struct carnn__packed {
    size_t sequences;    /* B */
    size_t steps;        /* T: the longest length */
    size_t rows;         /* N: the sum of the lengths */
    const size_t *start; /* (T + 1) */
} carnn__packed;

/* Length of the sequence of rank b: it has a row in each step that more than b sequences reach. */
static inline size_t carnn__rank_length(const carnn__packed *seq, size_t b) {
    size_t t = 0;
    while (t < seq->steps && b < seq->start[t + 1] - seq->start[t]) t++;
    return t;
}

/* Texts to be encoded (@@PART): text i has the words ids[at[i]] .. ids[at[i + 1] - 1]. */
typedef struct carnn__encoder {
    size_t texts, D;
    const uint32_t *which; /* (texts) the text of each row of out; NULL: row i has text i */
    const uint32_t *ids;
    const size_t *at;
    const float *ramp;     /* (D) k/D, k from 1 */
    const float *table;    /* (V, D) word embedding */
    float *out;            /* (texts, D) */
    float *dtable;         /* (V, D) */
    const float *dout;     /* (texts, D) */
} carnn__encoder;

typedef struct carnn__scatter {
    size_t rows, columns;
    const uint32_t *index; /* (rows) */
    const float *from;     /* (rows, columns) */
    float *to;
} carnn__scatter;

/* Attention over packed histories (@@PART); B sequences, N rows, T steps, D columns. */
typedef struct carnn__attention {
    const carnn__packed *seq;
    size_t D;
    const uint32_t *index; /* (N) row of e for each row; NULL: the same */
    const float *h;        /* (N, D) states */
    const float *e;        /* (U, D) inputs */
    const float *c;        /* (B, D) contexts */
    float *weight;         /* (B, T) alpha */
    float *gweight;        /* (B, T) gradient at alpha */
    float *o;              /* (B, D) */
    const float *go;       /* (B, D) gradient at o */
    float *gh;             /* (N, D) gradient at h and at e of each row */
    float *gc;             /* (B, D) gradient at c, added to */
} carnn__attention;

typedef struct carnn__cross_entropy {
    size_t columns;
    float *z;               /* (rows, columns) logits in, gradient out */
    const uint32_t *target; /* (rows) */
    int learns;             /* 0: the loss alone is wanted, and z is scratch */
    float scale;            /* of the gradient */
    float smoothing;        /* label smoothing, 0 to 1 */
    float *loss;            /* (rows) */
} carnn__cross_entropy;

/* The words of a sentence and their alignments, decomposed and summed (@@PART). */
typedef struct carnn__compose {
    size_t rows, D;
    int orthogonal;      /* else direct */
    const float *x, *a;  /* (rows, D) words, and what they are aligned with */
    const float *weight; /* (rows) */
    float *share;        /* (rows) how much of a is in x */
    float *f;            /* (2 D), direct (D) */
    const float *df;     /* its gradient */
    float *dx, *da;      /* (rows, D) */
    float *dweight;      /* (rows) */
} carnn__compose;

#define CARNN__NO_INDEX UINT32_MAX /* of a word, a text, a class, ...: there is none */

/* A linear recurrence over one long sequence, in blocks of steps (@@CELL). */
typedef struct carnn__recurrence {
    size_t steps, columns;
    int reverse;        /* from the last step to the first, with the factor of the step after */
    int carrying;       /* second pass: adds what flows into a block to its steps */
    const float *A, *Z; /* (steps, columns) */
    const float *first; /* (columns) state before the first step; NULL: 0 */
    float *y;           /* (steps, columns) */
    float *end;         /* (blocks, columns) state after a block; second pass: before it */
    float *product;     /* (blocks, columns) of the block's factors */
} carnn__recurrence;
#define CARNN__RECURRENCE_BLOCK 64


/* The listener of an RCRN (@@CELL): N packed rows, B sequences, h columns of one direction. */
typedef struct carnn__listener {
    const carnn__packed *seq;
    size_t h;
    int raw;                  /* the output gate is s2 itself */
    const uint32_t *reversed; /* (N) the row that the bases have for each row; NULL: the same */
    const float *s[3];        /* (N, h) s1, s2, s3 */
    const float *first;       /* (B, h) c before the first step; NULL: 0 */
    float *c, *out;           /* (N, h) */
    float *dout, *ds[3];      /* (N, h) their gradients */
    float *dc;                /* (B, h) gradient that reaches c from the step after */
} carnn__listener;

/* --- cells (@@CELL) -------------------------------------------------------------------------- */

/* The table of cells. It is the one place where a cell is added, which takes

     - an entry here;
     - its functions on sixteen columns of a row (kernels of @@CELL);
     - golden values and equations in tests/test_cell.c (a cell without them is named there and
       checked by its gradients alone);
     - where its states are exact weighted sums of inputs, one of the flags CARNN__ADDITIVE_...

   Options, gradient check, benchmark, model files and explanations follow from the entry:

     id, <functions>_forward and _backward, name, title,
     number of gates projected from the input, of these with a bias, projected from the context,
     projected from the hidden state, 1 if the latter has a bias of its own (else 0),
     arrays of h floats on the tape,
     the gate whose bias does not start at 0, its initial value,
     vectors of each gate beside its bias, 3 (alpha, beta1, beta2: multiplicative integration, which
     replaces the sum of the projections in every gate) or 0, initial value of alpha, of the betas,
     flags

   A number n of gates always means the first n. */
#define CARNN__CELLS(X)                                                                            \
    X(rnn, rnn, "rnn", "vanilla RNN, tanh", 1, 1, 0, 1, 0, 0, 0, 0.0f, 0, 0.0f, 0.0f,              \
      CARNN__TAPE_SUFFICES)                                                                        \
    X(lstm, lstm, "lstm", "LSTM", 4, 4, 0, 4, 0, 5, 1, 1.0f, 0, 0.0f, 0.0f,                        \
      CARNN__HAS_CELL_STATE | CARNN__TAPE_SUFFICES)                                                \
    X(gru, gru, "gru", "GRU, reset before the product", 3, 3, 0, 3, 0, 4, 0, 0.0f, 0, 0.0f, 0.0f,  \
      CARNN__TWO_STAGES | CARNN__TAPE_SUFFICES)                                                    \
    X(gru_after, gru_after, "gru-after", "GRU, reset after the product (two biases)", 3, 3, 0, 3,  \
      1, 4, 0, 0.0f, 0, 0.0f, 0.0f, CARNN__TAPE_SUFFICES)                                          \
    X(ran, ran, "ran", "RAN, identity", 3, 2, 0, 2, 0, 2, 0, 0.0f, 0, 0.0f, 0.0f,                  \
      CARNN__ADDITIVE_FORGET)                                                                      \
    X(ran_tanh, ran, "ran-tanh", "RAN, tanh", 3, 2, 0, 2, 0, 3, 0, 0.0f, 0, 0.0f, 0.0f,            \
      CARNN__HAS_CELL_STATE)                                                                       \
    X(ncarnn, carnn, "ncarnn", "CARNN whose gates read context, state and input", 3, 3, 2, 2, 0,   \
      2, 0, 0.0f, 0, 0.0f, 0.0f, CARNN__ADDITIVE_UPDATE)                                           \
    X(icarnn, carnn, "icarnn", "CARNN whose gates read context and input", 3, 3, 2, 0, 0, 0, 0,    \
      0.0f, 0, 0.0f, 0.0f, CARNN__ADDITIVE_UPDATE)                                                 \
    X(scarnn, carnn, "scarnn", "iCARNN whose candidate is the input itself", 2, 2, 2, 0, 0, 0, 0,  \
      0.0f, 0, 0.0f, 0.0f, CARNN__ADDITIVE_UPDATE | CARNN__INPUT_IS_CANDIDATE)                     \
    X(carnn_low, carnn, "carnn-low", "sCARNN without the forget gate", 1, 1, 1, 0, 0, 0, 0, 0.0f,  \
      0, 0.0f, 0.0f, CARNN__ADDITIVE_UPDATE | CARNN__INPUT_IS_CANDIDATE)                           \
    X(carnn_high, lstm, "carnn-high", "LSTM whose gates read the context too", 4, 4, 3, 4, 0, 5,   \
      1, 1.0f, 0, 0.0f, 0.0f, CARNN__HAS_CELL_STATE)                                               \
    X(ncarnn_free, carnn, "ncarnn-free", "nCARNN without a context", 3, 3, 0, 2, 0, 2, 0, 0.0f,    \
      0, 0.0f, 0.0f, CARNN__ADDITIVE_UPDATE)                                                       \
    X(mi_rnn, rnn, "mi-rnn", "RNN with multiplicative integration", 1, 1, 0, 1, 0, 0, 0, 0.0f, 3,  \
      2.0f, 0.5f, 0)                                                                               \
    X(mi_lstm, lstm, "mi-lstm", "LSTM with multiplicative integration", 4, 4, 0, 4, 0, 5, 0, 0.0f, \
      3, 1.0f, 0.5f, CARNN__HAS_CELL_STATE)                                                        \
    X(mi_gru, gru, "mi-gru", "GRU with multiplicative integration", 3, 3, 0, 3, 0, 4, 0, 0.0f, 3,  \
      1.0f, 1.0f, CARNN__TWO_STAGES)                                                               \
    CARNN_EXTRA_CELLS(X)
#ifndef CARNN_EXTRA_CELLS
#define CARNN_EXTRA_CELLS(X) /* a program's own, see @@CELL */
#endif

enum {
    CARNN__INPUT_IS_CANDIDATE = 1, /* needs inputs of the size of the hidden state */
    CARNN__HAS_CELL_STATE = 2,     /* carries c beside h; c is the last array on the tape */
    CARNN__TWO_STAGES = 4,         /* the last recurrent gate is projected from what stage 0 stores
                                      in `reset` and in the last array of the tape */
    /* h = A * h' + w * k, where k is the last gate or the input itself and no gate is computed from
       k: a weighted sum, which exact explanations need (carnn__cell_additive_step). */
    CARNN__ADDITIVE_UPDATE = 8,  /* gates u, f (f is 1 where there is none): A = 1 - u, w = u * f */
    CARNN__ADDITIVE_FORGET = 16, /* gates i, f: A = f, w = i */
    CARNN__TAPE_SUFFICES = 32    /* backward reads no projections but those on the tape */
};

enum {
#define CARNN__CELL_NUMBER(id, ...) CARNN__CELL_##id,
    CARNN__CELLS(CARNN__CELL_NUMBER)
#undef CARNN__CELL_NUMBER
    CARNN__CELL_COUNT
};

typedef struct carnn__cell_kind {
    const char *name, *title;
    size_t gates, bias_gates, context_gates, recurrent_gates, recurrent_bias, tape;
    size_t open_gate; /* the gate whose bias starts at open_bias, e.g. LSTM's forget gate at 1 */
    float open_bias;
    size_t vectors;
    float alpha, beta; /* initial values */
    size_t flags;
} carnn__cell_kind;

#define CARNN__CELL_ENTRY(id, functions, ...) {__VA_ARGS__},
static const carnn__cell_kind carnn__cells[] = {CARNN__CELLS(CARNN__CELL_ENTRY)};
#undef CARNN__CELL_ENTRY

/* A run of a cell over a packed batch: B sequences, N rows, U distinct inputs, h columns. The gates
   of a row lie side by side: gate g of row r is at (r * gates + g) * h. */
typedef struct carnn__scan {
    const carnn__packed *seq;
    size_t first, end;     /* runs the sequences of ranks [first, end) */
    size_t h;
    int back;              /* backward; else forward */
    int stage;             /* of a step with two products */
    const uint32_t *index; /* (N) which input each row has; NULL: row r has input r */
    const float *x;        /* (U, h) the inputs, for cells whose candidate is the input itself */
    float *px;             /* (U, gates h) input projections with biases */
    float *pc;             /* (B, context gates h) context projections */
    float *ph;             /* (B, recurrent gates h) projections of h_{t-1} at the current step;
                              (N, recurrent gates h) of every row where gates have vectors */
    const float *alpha, *beta1, *beta2, *bias; /* (gates h) where gates have vectors */
    const float *h0, *c0;  /* (B, h) initial states; never NULL: zeros where not given */
    float *tape;           /* (N, tape h) what backward needs of each row */
    float *out;            /* (N, h) hidden states */
    float *reset;          /* (B, h) of a cell with two stages: input of the second product, e.g.
                              r * h_{t-1}; in backward the gradient there */
    /* backward; gradients of inputs and of context projections are added to */
    const float *dout;     /* (N, h) gradient that reaches h_t from outside the recurrence */
    float *dh, *dc;        /* (B, h) gradient that reaches h_t, c_t from the steps after t */
    float *dx;             /* (U, h), or NULL: not wanted */
    float *dpx;            /* (U, gates h) */
    float *dpc;            /* (B, context gates h) */
    float *dph;            /* (N, recurrent gates h) */
    float *dvectors;       /* (B, 4 gates h) of alpha, beta1, beta2, bias, by sequence */
} carnn__scan;

/* Runs steps [t0, t1), backward from the last to the first, columns [from, to). */
typedef void (*carnn__scan_fn)(const carnn__scan *s, size_t t0, size_t t1, size_t from, size_t to);

/* The end of the ranks to run at step t, before the sequences that are shorter. */
static inline size_t carnn__scan_end(const carnn__scan *s, size_t t) {
    size_t live = s->seq->start[t + 1] - s->seq->start[t];
    return carnn__max(carnn__min(s->end, live), s->first);
}

/* What a cell's functions work on: columns j .. j + 15 of one row. Entry i of an array with several
   entries is at array + i h. What a cell does not have is not to be read. */
typedef struct carnn__lanes {
    const carnn__cell_kind *kind;
    size_t h, j;
    int stage;
    /* read only */
    float *x;        /* the input */
    float *px, *pc, *ph;
    float *alpha, *beta1, *beta2, *bias;
    float *before;   /* h', the state one step before */
    float *c_before; /* c' */
    float *dout;     /* of backward alone, like those that begin with d below */
    /* written, the gradients of gates and inputs added to */
    float *tape, *out, *reset;
    float *dh, *dc, *dpx, *dpc, *dph, *dvectors;
    float *dx;       /* NULL: not wanted */
} carnn__lanes;
typedef void (*carnn__lanes_fn)(const carnn__lanes *r);

/* Room for copies of what a row has of each array (CARNN__K(tail)), whatever its cell is. */
#define CARNN__CELL_ROOM(id, functions, name, title, g, gb, gc, gh, gr, tape, gate, open, v, ...)  \
    float id[16 * (2 * (g + gc + gh + (v ? 4 * g : 0)) + tape + 9)];
typedef union carnn__lanes_room {
    CARNN__CELLS(CARNN__CELL_ROOM)
} carnn__lanes_room;
#undef CARNN__CELL_ROOM

#endif

/* =============================================================================================
   @@SIMD   vectors of sixteen floats, and the kernels compiled once per instruction set

   A kernel is written once, in terms of a vector of sixteen floats, and compiled for each
   instruction set: this header includes itself with CARNN__ISA defined, and such a pass consists of
   the kernel sections (#if defined(CARNN__ISA)) alone. The best instruction set of the machine is
   selected when an engine is opened; no compiler flags are needed.

   Every path gives the same bits: a vector has sixteen lanes whatever the width of a register, a
   multiply-add is always fused, and sums over lanes are added in one fixed order.
   ============================================================================================= */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

/* From here to the end of the header a * b + c is rounded twice unless it is written as fma: the
   results must not depend on the compiler's flags. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC push_options
#pragma GCC optimize("fp-contract=off")
/* Passes of -O2 that find nothing in code which is vector operations already. */
#pragma GCC optimize("no-tree-pre", "no-tree-slp-vectorize", "no-thread-jumps")
#elif defined(_MSC_VER)
#pragma fp_contract(off)
#endif

/* Loops over the registers of a tile have constant bounds after inlining; unrolled completely, they
   keep arrays of vectors in registers. */
#if defined(__clang__)
#define CARNN__UNROLL _Pragma("clang loop unroll(full)")
#define CARNN__UNROLL_4 _Pragma("clang loop unroll_count(4)")
#elif defined(__GNUC__)
#define CARNN__UNROLL _Pragma("GCC unroll 16")
#define CARNN__UNROLL_4 _Pragma("GCC unroll 4")
#else
#define CARNN__UNROLL
#define CARNN__UNROLL_4
#endif

#if defined(__GNUC__)
#define CARNN__INLINE inline __attribute__((always_inline)) /* after `static` */
#define CARNN__PREFETCH(address) __builtin_prefetch((address), 1) /* to be written */
#define CARNN__PREFETCH_2(address) __builtin_prefetch((address), 0, 2) /* to level 2, to be read */
#define CARNN__NOINLINE __attribute__((noinline, unused))
#else
#define CARNN__INLINE inline
#define CARNN__NOINLINE inline
#define CARNN__PREFETCH(address) ((void)(address))
#define CARNN__PREFETCH_2(address) ((void)(address))
#endif

#define CARNN__LANES 16

/* One panel of a product: the rows of A against at most tile_columns columns of B. */
typedef struct carnn__panel {
    size_t m, n, k;
    const float *a;         /* (m, k): element (i, p) at a[i * a_row + p * a_column] */
    size_t a_row, a_column;
    const float *b;         /* (k, n), readable up to a multiple of 16 columns */
    size_t b_row;           /* distance of its rows; 0: packed, panel after panel */
    float *copy;            /* the first tile stores a dense copy of its panel here; or NULL */
    const float *start;     /* (n) start value of every row, NULL: zero */
    int add;                /* the start value is what c holds */
    float *c;               /* (m, n) */
    size_t c_row;
    size_t ahead;           /* distance from c to the next tile of C, 0: the rows below */
    int fetch;              /* prefetch a packed b, which lies beyond the second-level cache */
} carnn__panel;

/* The kernels of an instruction set: name, type of the result, arguments. */
#define CARNN__KERNELS(X)                                                                          \
    X(contracts, int, (void))                                                                      \
    /* @@MATH: y = f(x); y may be x */                                                             \
    X(exp_n, void, (const float *x, float *y, size_t n))                                           \
    X(sigmoid_n, void, (const float *x, float *y, size_t n))                                       \
    X(tanh_n, void, (const float *x, float *y, size_t n))                                          \
    /* row = softmax(row); returns log sum_i exp(row[i]) */                                        \
    X(softmax, float, (float *row, size_t n))                                                      \
    /* y *= factor; y += x */                                                                      \
    X(scale, void, (float *y, float factor, size_t n))                                             \
    X(add, void, (const float *x, float *y, size_t n))                                             \
    /* y += share (x - y) */                                                                       \
    X(moving_average, void, (const float *x, float *y, float share, size_t n))                     \
    /* the index of the largest number, the first of equal ones */                                 \
    X(argmax, size_t, (const float *x, size_t n))                                                  \
    X(dot, float, (const float *x, const float *y, size_t n))                                      \
    X(row_sum, float, (const float *x, size_t n))                                                  \
    X(sum_squares, double, (const float *x, size_t n))                                             \
    /* @@MAT */                                                                                    \
    X(panel, void, (const carnn__panel *job))                                                      \
    X(pack_rows, void, (size_t k, size_t n, const float *b, size_t ldb, float *packed))            \
    X(pack_columns, void, (size_t k, size_t n, const float *b, size_t ldb, float *packed))         \
    X(pack_strip, void, (size_t rows, size_t k, const float *a, size_t lda, float *strip))         \
    X(gemv_nt, void,                                                                               \
      (size_t n, size_t k, const float *x, const float *b, size_t ldb, const float *start,         \
       float *y))                                                                                  \
    X(column_sums, void, (size_t rows, size_t columns, const float *x, size_t ldx, float *out))    \
    /* @@PARAM, on a range of weights */                                                           \
    X(optimize, void, (const void *job, size_t from, size_t to))                                   \
    /* @@CELL, on a range of blocks */                                                             \
    X(recur, void, (const void *job, size_t from, size_t to))                                      \
    X(listen, void, (const void *job, size_t from, size_t to))                                     \
    X(listen_back, void, (const void *job, size_t from, size_t to))                                \
    /* @@PART, on a range of their output */                                                       \
    X(encode, void, (const void *job, size_t from, size_t to))                                     \
    X(encode_back, void, (const void *job, size_t from, size_t to))                                \
    X(scatter_add, void, (const void *job, size_t from, size_t to))                                \
    X(attend, void, (const void *job, size_t from, size_t to))                                     \
    X(attend_back, void, (const void *job, size_t from, size_t to))                                \
    X(cross_entropy, void, (const void *job, size_t from, size_t to))                              \
    X(compose, void, (const carnn__compose *job))                                                  \
    X(compose_back, void, (const carnn__compose *job))                                             \
    /* @@BENCH */                                                                                  \
    X(multiply_add, float, (size_t rounds))

typedef struct carnn__kernels {
    const char *name;
    size_t tile_rows, tile_columns; /* of a product that are computed together; columns: of a
                                       panel, a multiple of 16 */
#define CARNN__KERNEL_FIELD(name, result, arguments) result(*name) arguments;
    CARNN__KERNELS(CARNN__KERNEL_FIELD)
#undef CARNN__KERNEL_FIELD
    carnn__scan_fn scan[CARNN__CELL_COUNT][2]; /* @@CELL: forward and backward */
} carnn__kernels;

/* --- the passes ------------------------------------------------------------------------------ */

#ifndef CARNN_FILE
#define CARNN_FILE "carnn.h" /* to be defined where the header has another name */
#endif

#define CARNN__JOIN_(a, b) carnn__##a##_##b
#define CARNN__JOIN(a, b) CARNN__JOIN_(a, b)
#define CARNN__K(name) CARNN__JOIN(name, CARNN__ISA)
#define CARNN__V(name) CARNN__JOIN(v_##name, CARNN__ISA)
#define carnn__v CARNN__K(v)

#if defined(CARNN__HAS_X86)
#if defined(__clang__)
#pragma clang attribute push(                                                                      \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")
#endif
#define CARNN__ISA avx512
#define CARNN__AVX512
#include CARNN_FILE
#undef CARNN__AVX512
#undef CARNN__ISA
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
#define CARNN__ISA avx2
#define CARNN__AVX2
#include CARNN_FILE
#undef CARNN__AVX2
#undef CARNN__ISA
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#elif defined(CARNN__HAS_NEON)
#define CARNN__ISA neon
#define CARNN__NEON
#include CARNN_FILE
#undef CARNN__NEON
#undef CARNN__ISA
#endif

#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__) && !defined(__OPTIMIZE_SIZE__)
/* From here to the end of the header nothing is faster at -O2, for which gcc needs twice as long:
   portable kernels wait for fmaf, the rest for kernels. Without expensive-optimizations gcc would
   leave out vzeroupper, and scalar code after a kernel would run at a sixth of its speed. */
#pragma GCC optimize("O1", "strict-aliasing", "expensive-optimizations", "tree-loop-vectorize")
#endif

/* In plain C an operation is a loop over sixteen lanes. Inlined everywhere, these loops would keep
   the compiler busy for minutes; called, they are as fast, since vectors lie in memory anyway. */
#undef CARNN__INLINE
#undef CARNN__UNROLL
#undef CARNN__UNROLL_4
#define CARNN__INLINE CARNN__NOINLINE
#define CARNN__UNROLL
#define CARNN__UNROLL_4
#define CARNN__ISA portable
#define CARNN__PORTABLE
#include CARNN_FILE
#undef CARNN__PORTABLE
#undef CARNN__ISA

/* --- the choice ------------------------------------------------------------------------------ */

/* Kernels number 0, 1, ... of those that this machine can run, best first; NULL past the last. */
static const carnn__kernels *carnn__simd_number(size_t number) {
    const carnn__kernels *usable[4];
    size_t count = 0;
#if defined(CARNN__HAS_X86)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        usable[count++] = &carnn__kernels_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        usable[count++] = &carnn__kernels_avx2;
#elif defined(CARNN__HAS_NEON)
    usable[count++] = &carnn__kernels_neon;
#endif
    usable[count++] = &carnn__kernels_portable;
    return number < count ? usable[number] : NULL;
}

CARNN_API const char *carnn_simd_name(size_t number) {
    const carnn__kernels *k = carnn__simd_number(number);
    return k ? k->name : NULL;
}

/* The path `name`, where that is NULL the path $CARNN_SIMD, and without either the best; NULL where
   this machine cannot run it. */
static const carnn__kernels *carnn__simd_select(const char *name) {
    const carnn__kernels *k;
    size_t i;
    if (!name) name = getenv("CARNN_SIMD");
    for (i = 0; (k = carnn__simd_number(i)) != NULL; i++)
        if (!name || !*name || !strcmp(name, k->name)) return k;
    return NULL;
}

/* The same, for whoever can report that there is none. */
static carnn_status carnn__simd_open(const carnn__kernels **k, const char *name,
                                     carnn_error *error) {
    *k = carnn__simd_select(name);
    if (!*k)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "simd: \"%.60s\" is no path of this "
                           "machine (the best here is \"%s\")",
                           name ? name : getenv("CARNN_SIMD"), carnn_simd_name(0));
    if ((*k)->contracts())
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "simd: the path %s was compiled with "
                           "-ffp-contract=fast, which gives other numbers", (*k)->name);
    return CARNN_OK;
}

#endif /* CARNN_IMPLEMENTATION */

#if defined(CARNN__ISA)

/* Does the compiler fuse a product and a sum that are written apart? */
static int CARNN__K(contracts)(void) {
    volatile float a = 1.0f + 1.0f / 4096.0f, product = a * a; /* inexact */
    return a * a - product != 0.0f;
}

/* --- the vector ---------------------------------------------------------------------------------
   max(a, b)         a > b ? a : b; where one is NaN the result is b: max(bound, x) keeps NaN
   min(a, b)         a < b ? a : b, likewise
   fma, fnma(a, b, c)  a b + c, c - a b, rounded once
   signed(a, s)      |a| with the sign of s
   if_less(a, b, yes, no)  a < b ? yes : no; `no` where one is NaN
   scale2(v, n)      v 2^n for |v| in [1/4, 4], integral n in [-252, 252]; rounded once
   power2(n)         2^n for integral n in [-126, 127]
   sum, largest      over the lanes; the sum adds lanes i and i + 8, then i + 4, i + 2, i + 1
   loadn, storen     access the first n floats; loadn sets the other lanes to 0
   fill(v, n, w)     the first n lanes of v, the others of w
   transpose(p, ld, out)   of the 16 rows of 16 floats that are ld apart: out[j][i] = p[i ld + j]

   A vector is CARNN__PARTS registers of CARNN__WIDTH floats; `i` is the number of the part in the
   expressions of CARNN__LANEWISE. */

#if defined(CARNN__AVX512)
#define CARNN__PARTS 1
typedef __m512 CARNN__K(part);
#elif defined(CARNN__AVX2)
#define CARNN__PARTS 2
typedef __m256 CARNN__K(part);
#elif defined(CARNN__NEON)
#define CARNN__PARTS 4
typedef float32x4_t CARNN__K(part);
#else
#define CARNN__PARTS 16
typedef float CARNN__K(part);
#endif
#define CARNN__WIDTH (CARNN__LANES / CARNN__PARTS)
typedef struct CARNN__K(parts) {
    CARNN__K(part) x[CARNN__PARTS];
} carnn__v;

/* A statement for each part. With one or two parts `i` is a constant, so that vectors are kept in
   registers without unrolling. */
#if CARNN__PARTS == 1
#define CARNN__EACH(statement) { enum { i = 0 }; statement; }
#elif CARNN__PARTS == 2
#define CARNN__EACH(statement) { enum { i = 0 }; statement; } { enum { i = 1 }; statement; }
#else
#define CARNN__EACH(statement)                                                                     \
    int i;                                                                                         \
    CARNN__UNROLL for (i = 0; i < CARNN__PARTS; i++) { statement; }
#endif
#define CARNN__LANEWISE(name, arguments, value)                                                    \
    static CARNN__INLINE carnn__v CARNN__V(name) arguments {                                       \
        carnn__v v;                                                                                \
        CARNN__EACH(v.x[i] = value)                                                                \
        return v;                                                                                  \
    }
CARNN__LANEWISE(add, (carnn__v a, carnn__v b), a.x[i] + b.x[i])
CARNN__LANEWISE(sub, (carnn__v a, carnn__v b), a.x[i] - b.x[i])
CARNN__LANEWISE(mul, (carnn__v a, carnn__v b), a.x[i] * b.x[i])
CARNN__LANEWISE(div, (carnn__v a, carnn__v b), a.x[i] / b.x[i])

#if defined(CARNN__AVX512) || defined(CARNN__AVX2)

#if defined(CARNN__AVX512)
#define CARNN__X86(name) _mm512_##name##_ps
#define CARNN__LOW(v) _mm512_castps512_ps256(v.x[0])
#define CARNN__HIGH(v) _mm512_extractf32x8_ps(v.x[0], 1)
#define CARNN__BELOW(n) ((__mmask16)((1u << (n)) - 1u)) /* the lanes below n */
CARNN__LANEWISE(load_some, (const float *p, size_t n), _mm512_maskz_loadu_ps(CARNN__BELOW(n), p))
CARNN__LANEWISE(fill_some, (carnn__v a, size_t n, carnn__v w),
                _mm512_mask_blend_ps(CARNN__BELOW(n), w.x[i], a.x[i]))
static CARNN__INLINE void CARNN__V(store_some)(float *p, size_t n, carnn__v a) {
    _mm512_mask_storeu_ps(p, CARNN__BELOW(n), a.x[0]);
}
CARNN__LANEWISE(if_less, (carnn__v a, carnn__v b, carnn__v yes, carnn__v no),
                _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.x[i], b.x[i], _CMP_LT_OQ), no.x[i],
                                     yes.x[i]))
CARNN__LANEWISE(scale2, (carnn__v a, carnn__v n), _mm512_scalef_ps(a.x[i], n.x[i]))
CARNN__LANEWISE(power2, (carnn__v n), _mm512_scalef_ps(_mm512_set1_ps(1.0f), n.x[i]))
CARNN__LANEWISE(signed, (carnn__v a, carnn__v s), /* sign bit ? s : a, bit by bit */
                _mm512_castsi512_ps(_mm512_ternarylogic_epi32(
                    _mm512_set1_epi32(INT32_MIN), _mm512_castps_si512(s.x[i]),
                    _mm512_castps_si512(a.x[i]), 0xCA)))
#else
#define CARNN__X86(name) _mm256_##name##_ps
#define CARNN__LOW(v) v.x[0]
#define CARNN__HIGH(v) v.x[1]
/* All ones in the lanes below n of part i. */
static CARNN__INLINE __m256i CARNN__V(below)(size_t n, int i) {
    __m256i lane = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                                    _mm256_set1_epi32(8 * i));
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane);
}
CARNN__LANEWISE(load_some, (const float *p, size_t n),
                _mm256_maskload_ps(p + 8 * i, CARNN__V(below)(n, i)))
CARNN__LANEWISE(fill_some, (carnn__v a, size_t n, carnn__v w),
                _mm256_blendv_ps(w.x[i], a.x[i], _mm256_castsi256_ps(CARNN__V(below)(n, i))))
static CARNN__INLINE void CARNN__V(store_some)(float *p, size_t n, carnn__v a) {
    CARNN__EACH(_mm256_maskstore_ps(p + 8 * i, CARNN__V(below)(n, i), a.x[i]))
}
CARNN__LANEWISE(if_less, (carnn__v a, carnn__v b, carnn__v yes, carnn__v no),
                _mm256_blendv_ps(no.x[i], yes.x[i], _mm256_cmp_ps(a.x[i], b.x[i], _CMP_LT_OQ)))
CARNN__LANEWISE(signed, (carnn__v a, carnn__v s),
                _mm256_or_ps(_mm256_and_ps(_mm256_set1_ps(-0.0f), s.x[i]),
                             _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.x[i])))
static CARNN__INLINE __m256 CARNN__V(part_power2)(__m256i n) {
    __m256i biased = _mm256_add_epi32(n, _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
}
/* 2^n is applied as two factors, since it may be no normal float itself. */
static CARNN__INLINE __m256 CARNN__V(part_scale2)(__m256 a, __m256 n) {
    __m256i whole = _mm256_cvtps_epi32(n), first = _mm256_srai_epi32(whole, 1);
    return a * CARNN__V(part_power2)(first) *
           CARNN__V(part_power2)(_mm256_sub_epi32(whole, first));
}
CARNN__LANEWISE(power2, (carnn__v n), CARNN__V(part_power2)(_mm256_cvtps_epi32(n.x[i])))
CARNN__LANEWISE(scale2, (carnn__v a, carnn__v n), CARNN__V(part_scale2)(a.x[i], n.x[i]))
#endif
CARNN__LANEWISE(load, (const float *p), CARNN__X86(loadu)(p + i * CARNN__WIDTH))
static CARNN__INLINE void CARNN__V(store)(float *p, carnn__v a) {
    CARNN__EACH(CARNN__X86(storeu)(p + i * CARNN__WIDTH, a.x[i]))
}
CARNN__LANEWISE(set1, (float x), CARNN__X86(set1)(x))
CARNN__LANEWISE(max, (carnn__v a, carnn__v b), CARNN__X86(max)(a.x[i], b.x[i]))
CARNN__LANEWISE(min, (carnn__v a, carnn__v b), CARNN__X86(min)(a.x[i], b.x[i]))
CARNN__LANEWISE(sqrt, (carnn__v a), CARNN__X86(sqrt)(a.x[i]))
CARNN__LANEWISE(abs, (carnn__v a), CARNN__X86(andnot)(CARNN__X86(set1)(-0.0f), a.x[i]))
CARNN__LANEWISE(fma, (carnn__v a, carnn__v b, carnn__v c),
                CARNN__X86(fmadd)(a.x[i], b.x[i], c.x[i]))
CARNN__LANEWISE(fnma, (carnn__v a, carnn__v b, carnn__v c),
                CARNN__X86(fnmadd)(a.x[i], b.x[i], c.x[i]))
#define CARNN__FOLD(name, operation)                                                               \
    static CARNN__INLINE float CARNN__V(name)(carnn__v v) {                                        \
        __m256 a = _mm256_##operation##_ps(CARNN__LOW(v), CARNN__HIGH(v));                         \
        __m128 b = _mm_##operation##_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));   \
        b = _mm_##operation##_ps(b, _mm_movehl_ps(b, b));                                          \
        return _mm_cvtss_f32(_mm_##operation##_ss(b, _mm_movehdup_ps(b)));                         \
    }
CARNN__FOLD(sum, add)
CARNN__FOLD(largest, max)
#else

#if defined(CARNN__NEON)
#define CARNN__CHOOSE(a, b, yes, no) vbslq_f32(vcltq_f32(a, b), yes, no) /* a < b ? yes : no */
CARNN__LANEWISE(load, (const float *p), vld1q_f32(p + 4 * i))
static CARNN__INLINE void CARNN__V(store)(float *p, carnn__v a) {
    CARNN__EACH(vst1q_f32(p + 4 * i, a.x[i]))
}
CARNN__LANEWISE(set1, (float x), vdupq_n_f32(x))
CARNN__LANEWISE(sqrt, (carnn__v a), vsqrtq_f32(a.x[i]))
CARNN__LANEWISE(abs, (carnn__v a), vabsq_f32(a.x[i]))
CARNN__LANEWISE(signed, (carnn__v a, carnn__v s),
                vbslq_f32(vdupq_n_u32(0x80000000u), s.x[i], a.x[i]))
CARNN__LANEWISE(fma, (carnn__v a, carnn__v b, carnn__v c), vfmaq_f32(c.x[i], a.x[i], b.x[i]))
CARNN__LANEWISE(fnma, (carnn__v a, carnn__v b, carnn__v c), vfmsq_f32(c.x[i], a.x[i], b.x[i]))
static CARNN__INLINE float32x4_t CARNN__V(part_power2)(int32x4_t n) {
    return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(n, vdupq_n_s32(127)), 23));
}
static CARNN__INLINE float32x4_t CARNN__V(part_scale2)(float32x4_t a, float32x4_t n) {
    int32x4_t whole = vcvtq_s32_f32(n), first = vshrq_n_s32(whole, 1);
    return a * CARNN__V(part_power2)(first) * CARNN__V(part_power2)(vsubq_s32(whole, first));
}
CARNN__LANEWISE(power2, (carnn__v n), CARNN__V(part_power2)(vcvtq_s32_f32(n.x[i])))
#else
#define CARNN__CHOOSE(a, b, yes, no) ((a) < (b) ? (yes) : (no))
CARNN__LANEWISE(load, (const float *p), p[i])
static CARNN__INLINE void CARNN__V(store)(float *p, carnn__v a) { memcpy(p, a.x, sizeof a.x); }
CARNN__LANEWISE(set1, (float x), x)
CARNN__LANEWISE(sqrt, (carnn__v a), sqrtf(a.x[i]))
CARNN__LANEWISE(abs, (carnn__v a), fabsf(a.x[i]))
CARNN__LANEWISE(signed, (carnn__v a, carnn__v s), copysignf(a.x[i], s.x[i]))
/* A fused multiply-add without the instruction. The product of two floats is exact in a double; the
   sum is rounded to odd (where it is inexact its last bit is set), so that the rounding to float
   gives the result of a single one (Boldo and Melquiond 2008). */
static inline float CARNN__K(fma)(float a, float b, float c) {
#if defined(FP_FAST_FMAF)
    return fmaf(a, b, c);
#else
    double product = (double)a * b, sum = product + c, part = sum - product;
    double error = (product - (sum - part)) + ((double)c - part);
    int64_t bits, step;
    memcpy(&bits, &sum, sizeof bits);
    step = error * sum > 0 ? 1 : -1;
    step = error < 0 || error > 0 ? step : 0;
    bits += step & ((bits & 1) - 1); /* without branches: they are unpredictable */
    memcpy(&sum, &bits, sizeof bits);
    return (float)sum;
#endif
}
CARNN__LANEWISE(fma, (carnn__v a, carnn__v b, carnn__v c), CARNN__K(fma)(a.x[i], b.x[i], c.x[i]))
CARNN__LANEWISE(fnma, (carnn__v a, carnn__v b, carnn__v c),
                CARNN__K(fma)(-a.x[i], b.x[i], c.x[i]))
static inline float CARNN__V(part_power2)(float n) {
    uint32_t bits = (uint32_t)((n > -127 && n < 128 ? (int32_t)n : 0) + 127) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return power;
}
static inline float CARNN__V(part_scale2)(float a, float n) {
    float first = (float)(n > -300 && n < 300 ? (int32_t)n / 2 : 0);
    return a * CARNN__V(part_power2)(first) * CARNN__V(part_power2)(n - first);
}
CARNN__LANEWISE(power2, (carnn__v n), CARNN__V(part_power2)(n.x[i]))
#endif
CARNN__LANEWISE(scale2, (carnn__v a, carnn__v n), CARNN__V(part_scale2)(a.x[i], n.x[i]))
CARNN__LANEWISE(max, (carnn__v a, carnn__v b), CARNN__CHOOSE(b.x[i], a.x[i], a.x[i], b.x[i]))
CARNN__LANEWISE(min, (carnn__v a, carnn__v b), CARNN__CHOOSE(a.x[i], b.x[i], a.x[i], b.x[i]))
CARNN__LANEWISE(if_less, (carnn__v a, carnn__v b, carnn__v yes, carnn__v no),
                CARNN__CHOOSE(a.x[i], b.x[i], yes.x[i], no.x[i]))
static CARNN__INLINE carnn__v CARNN__V(load_some)(const float *p, size_t n) {
    float lane[CARNN__LANES] = {0};
    memcpy(lane, p, n * sizeof *p);
    return CARNN__V(load)(lane);
}
static CARNN__INLINE void CARNN__V(store_some)(float *p, size_t n, carnn__v a) {
    float lane[CARNN__LANES];
    CARNN__V(store)(lane, a);
    memcpy(p, lane, n * sizeof *p);
}
static CARNN__INLINE carnn__v CARNN__V(fill_some)(carnn__v a, size_t n, carnn__v w) {
    float lane[CARNN__LANES];
    CARNN__V(store)(lane, w);
    CARNN__V(store_some)(lane, n, a);
    return CARNN__V(load)(lane);
}
#define CARNN__FOLD(name, value)                                                                   \
    static CARNN__INLINE float CARNN__V(name)(carnn__v v) {                                        \
        float lane[CARNN__LANES];                                                                  \
        int half, i;                                                                               \
        CARNN__V(store)(lane, v);                                                                  \
        for (half = CARNN__LANES / 2; half; half /= 2)                                             \
            for (i = 0; i < half; i++) lane[i] = value;                                            \
        return lane[0];                                                                            \
    }
CARNN__FOLD(sum, lane[i] + lane[i + half])
CARNN__FOLD(largest, lane[i] > lane[i + half] ? lane[i] : lane[i + half])
#endif

static CARNN__INLINE carnn__v CARNN__V(zero)(void) { return CARNN__V(set1)(0.0f); }

/* Where the compiler knows that n is 16 a masked access becomes a plain one. */
#if defined(__GNUC__) && !defined(CARNN__PORTABLE)
#define CARNN__ALL(n) (__builtin_constant_p(n) && (n) == CARNN__LANES)
#else
#define CARNN__ALL(n) ((n) == CARNN__LANES)
#endif
static CARNN__INLINE carnn__v CARNN__V(loadn)(const float *p, size_t n) {
    return CARNN__ALL(n) ? CARNN__V(load)(p) : CARNN__V(load_some)(p, n);
}
static CARNN__INLINE void CARNN__V(storen)(float *p, size_t n, carnn__v a) {
    if (CARNN__ALL(n)) CARNN__V(store)(p, a);
    else CARNN__V(store_some)(p, n, a);
}
static CARNN__INLINE carnn__v CARNN__V(fill)(carnn__v a, size_t n, carnn__v w) {
    return CARNN__ALL(n) ? a : CARNN__V(fill_some)(a, n, w);
}

#if defined(CARNN__AVX512)
/* Four rounds that exchange rows at distance 1, 2, 4 and 8: 64 shuffles, all on one port. Each
   cache line is read once, as a row: where rows are a power of two apart, they evict each other
   from the first-level cache. */
static CARNN__INLINE void CARNN__V(transpose)(const float *p, size_t ld, carnn__v *out) {
    __m512 a[16], b[16];
    int i;
    CARNN__UNROLL for (i = 0; i < 16; i++) a[i] = _mm512_loadu_ps(p + (size_t)i * ld);
    CARNN__UNROLL for (i = 0; i < 16; i += 2) {
        b[i] = _mm512_unpacklo_ps(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_ps(a[i], a[i + 1]);
    }
    CARNN__UNROLL for (i = 0; i < 16; i += 4) { /* a[i + c]: columns c, c + 4, ... of 4 rows */
        a[i] = _mm512_shuffle_ps(b[i], b[i + 2], 0x44);
        a[i + 1] = _mm512_shuffle_ps(b[i], b[i + 2], 0xEE);
        a[i + 2] = _mm512_shuffle_ps(b[i + 1], b[i + 3], 0x44);
        a[i + 3] = _mm512_shuffle_ps(b[i + 1], b[i + 3], 0xEE);
    }
    CARNN__UNROLL for (i = 0; i < 4; i++) { /* from quarters, of 4 rows, to halves, of 8 */
        b[i] = _mm512_shuffle_f32x4(a[i], a[i + 4], 0x88);
        b[i + 4] = _mm512_shuffle_f32x4(a[i], a[i + 4], 0xDD);
        b[i + 8] = _mm512_shuffle_f32x4(a[i + 8], a[i + 12], 0x88);
        b[i + 12] = _mm512_shuffle_f32x4(a[i + 8], a[i + 12], 0xDD);
    }
    CARNN__UNROLL for (i = 0; i < 8; i++) {
        out[i].x[0] = _mm512_shuffle_f32x4(b[i], b[i + 8], 0x88);
        out[i + 8].x[0] = _mm512_shuffle_f32x4(b[i], b[i + 8], 0xDD);
    }
}

#else
/* Four columns, from p on, of CARNN__WIDTH rows: one part of each. */
static CARNN__INLINE void CARNN__V(four_columns)(const float *p, size_t ld, CARNN__K(part) *out) {
#if defined(CARNN__AVX2) /* lane L of a register holds rows 4 L .. 4 L + 3 of a column */
    __m256 t[4], a, b, c, d;
    size_t i;
    CARNN__UNROLL for (i = 0; i < 4; i++)
        t[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p + i * ld)),
                                    _mm_loadu_ps(p + (i + 4) * ld), 1);
    a = _mm256_unpacklo_ps(t[0], t[1]);
    b = _mm256_unpackhi_ps(t[0], t[1]);
    c = _mm256_unpacklo_ps(t[2], t[3]);
    d = _mm256_unpackhi_ps(t[2], t[3]);
    out[0] = _mm256_shuffle_ps(a, c, 0x44);
    out[1] = _mm256_shuffle_ps(a, c, 0xEE);
    out[2] = _mm256_shuffle_ps(b, d, 0x44);
    out[3] = _mm256_shuffle_ps(b, d, 0xEE);
#elif defined(CARNN__NEON)
    float32x4_t r0 = vld1q_f32(p), r1 = vld1q_f32(p + ld);
    float32x4_t r2 = vld1q_f32(p + 2 * ld), r3 = vld1q_f32(p + 3 * ld);
    float32x4_t a = vtrn1q_f32(r0, r1), b = vtrn2q_f32(r0, r1);
    float32x4_t c = vtrn1q_f32(r2, r3), d = vtrn2q_f32(r2, r3);
    out[0] = vcombine_f32(vget_low_f32(a), vget_low_f32(c));
    out[1] = vcombine_f32(vget_low_f32(b), vget_low_f32(d));
    out[2] = vcombine_f32(vget_high_f32(a), vget_high_f32(c));
    out[3] = vcombine_f32(vget_high_f32(b), vget_high_f32(d));
#else
    (void)ld;
    memcpy(out, p, 4 * sizeof *out);
#endif
}
static CARNN__INLINE void CARNN__V(transpose)(const float *p, size_t ld, carnn__v *out) {
    CARNN__K(part) part[4];
    size_t i, j, s;
    CARNN__UNROLL for (i = 0; i < CARNN__PARTS; i++, p += ld * CARNN__WIDTH) {
        for (j = 0; j < 16; j += 4) {
            CARNN__V(four_columns)(p + j, ld, part);
            CARNN__UNROLL for (s = 0; s < 4; s++) out[j + s].x[i] = part[s];
        }
    }
}
#endif

#if defined(CARNN__AVX2)
/* y (8 groups) += b (8 groups, k) x, in the order of k, a multiple of 4. A column of eight rows is
   used as soon as it is transposed, where blocks of sixteen would go through memory; the sums of
   the groups do not wait for each other. */
#define CARNN__DOT_ROWS 8
static CARNN__INLINE void CARNN__V(row_dots)(size_t groups, size_t k, const float *x,
                                                const float *b, size_t ld, float *y) {
    __m256 sum[3], column[4];
    size_t g, i, p;
    CARNN__UNROLL for (g = 0; g < groups; g++) sum[g] = _mm256_loadu_ps(y + 8 * g);
    for (p = 0; p < k; p += 4) {
        CARNN__UNROLL for (g = 0; g < groups; g++) {
            CARNN__V(four_columns)(b + 8 * g * ld + p, ld, column);
            CARNN__UNROLL for (i = 0; i < 4; i++)
                sum[g] = _mm256_fmadd_ps(_mm256_broadcast_ss(x + p + i), column[i], sum[g]);
        }
    }
    CARNN__UNROLL for (g = 0; g < groups; g++) _mm256_storeu_ps(y + 8 * g, sum[g]);
}

#endif

#undef CARNN__PARTS
#undef CARNN__WIDTH
#undef CARNN__EACH
#undef CARNN__LANEWISE
#undef CARNN__X86
#undef CARNN__LOW
#undef CARNN__HIGH
#undef CARNN__BELOW
#undef CARNN__CHOOSE
#undef CARNN__FOLD
#undef CARNN__ALL

#endif /* CARNN__ISA */

/* =============================================================================================
   @@MATH   exp, sigmoid, tanh, softmax and loops over arrays

   With n the integer nearest to x / ln 2 and r = x - n ln 2, |r| <= ln 2 / 2,

       exp(x) = 2^n exp(r),   exp(r) = 1 + r + r^2 q(r)

   where q is the polynomial of degree 4 with the smallest maximal relative error of exp(r), 4.6e-9,
   an eighth of half a unit in the last place: a Remez exchange, in which one coefficient after the
   other was rounded to a float and the others were fitted again. Sigmoid and tanh use it too.
   Errors over all floats are measured in tests/test_math.c.

   In the first-level cache these loops are bound by the two vector ports (a vector takes exp 14
   operations, the sigmoid 19, tanh 18) and reach four fifths of that, the sigmoid three fifths,
   since its division waits; beyond it they are bound by memory.
   ============================================================================================= */

#if defined(CARNN__ISA)

#define CARNN__C(value) CARNN__V(set1)(value)

/* n and r of x, |x| < 2^21. Adding 1.5 * 2^23 rounds to the nearest integer. n ln 2 is subtracted
   in two parts, the first a float, so that r is correct to its last bit. */
static CARNN__INLINE carnn__v CARNN__V(reduce)(carnn__v x, carnn__v *n) {
    carnn__v shift = CARNN__C(12582912.0f);
    *n = CARNN__V(sub)(CARNN__V(fma)(x, CARNN__C(1.44269502f), shift), shift);
    x = CARNN__V(fnma)(*n, CARNN__C(0.693147182f), x);
    return CARNN__V(fnma)(*n, CARNN__C(-1.90465421e-9f), x);
}

/* r q(r): exp(r) = 1 + r + r * (r q(r)). */
static CARNN__INLINE carnn__v CARNN__V(exp_tail)(carnn__v r) {
    carnn__v q = CARNN__V(fma)(CARNN__C(0.00140372256f), r, CARNN__C(0.00837233569f));
    q = CARNN__V(fma)(q, r, CARNN__C(0.0416655503f));
    q = CARNN__V(fma)(q, r, CARNN__C(0.166664883f));
    q = CARNN__V(fma)(q, r, CARNN__C(0.5f));
    return CARNN__V(mul)(q, r);
}

/* exp(x) of x in [-104, 89]. */
static CARNN__INLINE carnn__v CARNN__V(exp_bounded)(carnn__v x) {
    carnn__v n, r = CARNN__V(reduce)(x, &n), one = CARNN__C(1.0f);
    carnn__v p = CARNN__V(fma)(CARNN__V(exp_tail)(r), r, r);
    return CARNN__V(scale2)(CARNN__V(add)(one, p), n);
}

/* At the bounds the result is already infinite or zero; NaN stays NaN. */
static CARNN__INLINE carnn__v CARNN__V(exp)(carnn__v x) {
    x = CARNN__V(min)(CARNN__C(89.0f), x);
    return CARNN__V(exp_bounded)(CARNN__V(max)(CARNN__C(-104.0f), x));
}

/* With e = exp(-|x|), which does not overflow: 1 / (1 + e) for x >= 0, e / (1 + e) for x < 0, so
   that small results are accurate too. */
static CARNN__INLINE carnn__v CARNN__V(sigmoid)(carnn__v x) {
    carnn__v bounded = CARNN__V(max)(CARNN__C(-104.0f), CARNN__V(signed)(x, CARNN__C(-1.0f)));
    carnn__v e = CARNN__V(exp_bounded)(bounded), one = CARNN__C(1.0f);
    return CARNN__V(div)(CARNN__V(if_less)(x, CARNN__V(zero)(), e, one), CARNN__V(add)(one, e));
}

/* tanh |x| = -t / (2 + t) with t = exp(-2 |x|) - 1, computed without cancellation as
   2^n (exp(r) - 1) + (2^n - 1); 1 beyond 10. */
static CARNN__INLINE carnn__v CARNN__V(tanh)(carnn__v x) {
    carnn__v bounded = CARNN__V(min)(CARNN__C(10.0f), CARNN__V(abs)(x));
    carnn__v n, r = CARNN__V(reduce)(CARNN__V(mul)(bounded, CARNN__C(-2.0f)), &n);
    carnn__v power = CARNN__V(power2)(n);
    carnn__v p = CARNN__V(fma)(CARNN__V(exp_tail)(r), r, r);
    carnn__v t = CARNN__V(fma)(power, p, CARNN__V(sub)(power, CARNN__C(1.0f)));
    return CARNN__V(signed)(CARNN__V(div)(t, CARNN__V(add)(t, CARNN__C(2.0f))), x);
}

/* --- arrays ---------------------------------------------------------------------------------- */

/* A statement for every 16 of n numbers and for the rest: m of them from i on. As m = 16 is a
   constant, only the rest is loaded and stored with a mask. */
#define CARNN__LOOP(statement)                                                                     \
    size_t i;                                                                                      \
    for (i = 0; i + CARNN__LANES <= n; i += CARNN__LANES) {                                        \
        enum { m = CARNN__LANES };                                                                 \
        statement;                                                                                 \
    }                                                                                              \
    if (i < n) {                                                                                   \
        const size_t m = n - i;                                                                    \
        statement;                                                                                 \
    }
#define CARNN__X CARNN__V(loadn)(x + i, m)
#define CARNN__Y CARNN__V(loadn)(y + i, m)
#define CARNN__MAP(value) CARNN__LOOP(CARNN__V(storen)(y + i, m, value))

static void CARNN__K(exp_n)(const float *x, float *y, size_t n) {
    CARNN__MAP(CARNN__V(exp)(CARNN__X))
}
static void CARNN__K(sigmoid_n)(const float *x, float *y, size_t n) {
    CARNN__MAP(CARNN__V(sigmoid)(CARNN__X))
}
static void CARNN__K(tanh_n)(const float *x, float *y, size_t n) {
    CARNN__MAP(CARNN__V(tanh)(CARNN__X))
}
static void CARNN__K(scale)(float *y, float factor, size_t n) {
    CARNN__MAP(CARNN__V(mul)(CARNN__Y, CARNN__C(factor)))
}
static void CARNN__K(add)(const float *x, float *y, size_t n) {
    CARNN__MAP(CARNN__V(add)(CARNN__X, CARNN__Y))
}
static void CARNN__K(moving_average)(const float *x, float *y, float share, size_t n) {
    CARNN__MAP(CARNN__V(fma)(CARNN__C(share), CARNN__V(sub)(CARNN__X, CARNN__Y), CARNN__Y))
}

/* Sums over an array: element i is added to partial sum i % 16. */
static float CARNN__K(dot)(const float *x, const float *y, size_t n) {
    carnn__v sum = CARNN__V(zero)();
    CARNN__LOOP(sum = CARNN__V(fma)(CARNN__X, CARNN__Y, sum))
    return CARNN__V(sum)(sum);
}

static float CARNN__K(row_sum)(const float *x, size_t n) {
    carnn__v sum = CARNN__V(zero)();
    CARNN__LOOP(sum = CARNN__V(add)(sum, CARNN__X))
    return CARNN__V(sum)(sum);
}

/* Sums of 4096 are added in a double: a gradient has millions of elements. Bound by memory. */
static double CARNN__K(sum_squares)(const float *x, size_t n) {
    double total = 0;
    size_t i;
    for (i = 0; i < n; i += 4096)
        total += (double)CARNN__K(dot)(x + i, x + i, carnn__min(n - i, 4096));
    return total;
}

static float CARNN__K(maximum)(const float *x, size_t n) {
    carnn__v top = CARNN__C(-INFINITY);
    CARNN__LOOP(top = CARNN__V(max)(CARNN__V(fill)(CARNN__X, m, top), top))
    return CARNN__V(largest)(top);
}

static size_t CARNN__K(argmax)(const float *x, size_t n) {
    float top = CARNN__K(maximum)(x, n);
    size_t i = 0;
    while (i + 256 <= n && CARNN__K(maximum)(x + i, 256) < top) i += 256; /* it is not there */
    for (; i < n; i++)
        if (x[i] >= top) return i;
    return 0; /* all are NaN */
}

/* y = exp(x - top), and the sum of it. */
static CARNN__INLINE float CARNN__K(exp_sum)(const float *x, float top, float *y, size_t n) {
    carnn__v sum = CARNN__V(zero)(), shift = CARNN__C(top), e;
    CARNN__LOOP(e = CARNN__V(exp)(CARNN__V(sub)(CARNN__X, shift)); CARNN__V(storen)(y + i, m, e);
                sum = CARNN__V(add)(sum, CARNN__V(fill)(e, m, CARNN__V(zero)())))
    return CARNN__V(sum)(sum);
}
#undef CARNN__LOOP
#undef CARNN__X
#undef CARNN__Y
#undef CARNN__MAP

/* log x of a positive normal number: x = m 2^e with m in [sqrt 1/2, sqrt 2) and
   log m = 2 artanh((m - 1) / (m + 1)), eleven terms of its series. The last bit of log in C
   libraries differs. */
static double CARNN__K(log)(double x) {
    int exponent, term;
    double m = frexp(x, &exponent), t, square, sum = 0;
    if (!(x > 0) || x > DBL_MAX) return x; /* NaN, infinity; a sum of exp is positive */
    if (m < 0.70710678118654752) {
        m *= 2;
        exponent--;
    }
    t = (m - 1) / (m + 1);
    square = t * t;
    for (term = 21; term >= 1; term -= 2) sum = sum * square + 1.0 / term;
    return 2 * t * sum + exponent * 0.69314718055994531;
}

/* row = exp(row - max), which is softmax(row) / factor; returns log sum_i exp(row[i]). Bound by the
   exponentials. */
static float CARNN__K(softmax_shape)(float *row, size_t n, float *factor) {
    float top = CARNN__K(maximum)(row, n), sum = CARNN__K(exp_sum)(row, top, row, n);
    *factor = 1.0f / sum;
    return (float)(top + CARNN__K(log)((double)sum));
}

static float CARNN__K(softmax)(float *row, size_t n) {
    float factor, lse = CARNN__K(softmax_shape)(row, n, &factor);
    CARNN__K(scale)(row, factor, n);
    return lse;
}

#undef CARNN__C

#endif /* CARNN__ISA */

/* =============================================================================================
   @@MAT   matrix products, and the engine that runs them

   All matrices are row-major. This is the product C = start + A B, bit for bit:

       for (i = 0; i < m; i++)
           for (j = 0; j < n; j++) {
               float sum = start;               // 0, bias[j], or what C holds
               for (p = 0; p < k; p++) sum = fmaf(a[i * lda + p], b[p * ldb + j], sum);
               c[i * ldc + j] = sum;
           }

   That loop is slow, since each multiply-add waits for the one before it and needs two loads. The
   engine computes a tile of C at once, some rows by some vectors of columns, whose sums stay in
   registers and do not depend on each other; every loaded number is used by a whole row or column
   of the tile. Each sum still adds its products in the order of p, and may be stored in C between
   two blocks of p without losing a bit: tiles, blocks, packing and threads do not change the
   result.

   B is read in panels, as wide as a tile and some hundreds of rows deep, so that a panel stays in
   the first-level cache while all tiles of its columns use it. For few rows of A each panel is
   copied (transposed, where B is stored (n, k)) when it is needed. For many rows a block of panels
   is packed into the second-level cache first. A B that was packed before is used in place; where
   it is large the tiles prefetch the next panel.
   ============================================================================================= */

#if defined(CARNN__ISA)

/* A tile needs registers for its sums, a row of the panel and an element of A. Two multiply-add
   units with a latency of four are busy with eight independent sums or more. */
#if defined(CARNN__AVX512)
#define CARNN__TILE_ROWS 8 /* 24 of 32 registers are sums; 11 loads for 24 multiply-adds */
#define CARNN__TILE_VECTORS 3
#define CARNN__TILE_WIDEST 3
#define CARNN__TILE_WIDTHS(X, rows) X(rows, 1) X(rows, 2) X(rows, 3)
#define CARNN__TILES(X)                                                                            \
    CARNN__TILE_WIDTHS(X, 1) CARNN__TILE_WIDTHS(X, 2) CARNN__TILE_WIDTHS(X, 3)                     \
    CARNN__TILE_WIDTHS(X, 4) CARNN__TILE_WIDTHS(X, 5) CARNN__TILE_WIDTHS(X, 6)                     \
    CARNN__TILE_WIDTHS(X, 7) CARNN__TILE_WIDTHS(X, 8)
#elif defined(CARNN__AVX2)
#define CARNN__TILE_ROWS 6 /* 12 of 16 */
#define CARNN__TILE_VECTORS 1
#define CARNN__TILE_WIDEST 4 /* of one row: 8 sums */
#define CARNN__TILES(X)                                                                            \
    X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(5, 1) X(6, 1) X(1, 2) X(2, 2) X(3, 2) X(1, 3) X(1, 4)
#elif defined(CARNN__NEON)
#define CARNN__TILE_ROWS 6 /* 24 of 32 */
#define CARNN__TILE_VECTORS 1
#define CARNN__TILE_WIDEST 2
#define CARNN__TILES(X) X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(5, 1) X(6, 1) X(1, 2) X(2, 2)
#else
#define CARNN__TILE_ROWS 4
#define CARNN__TILE_VECTORS 1
#define CARNN__TILE_WIDEST 1
#define CARNN__TILES(X) X(1, 1) X(2, 1) X(3, 1) X(4, 1)
#endif
#define CARNN__TILE_COLUMNS (CARNN__TILE_VECTORS * CARNN__LANES)

/* The first CARNN__FETCH_TILES tiles prefetch a part each of the next panel, now and then. */
#define CARNN__FETCH_TILES 4
#define CARNN__FETCH_STEPS 32

/* The operands of a tile. */
typedef struct CARNN__K(place) {
    const float *a, *b, *start;
    const float *fetch; /* the part of the next panel to prefetch, or NULL */
    size_t b_row, b_vector, columns;
    float *copy, *c;
} CARNN__K(place);

/* k steps of the sums of a tile. Where A and B are dense the strides are constants after inlining
   (except a_row, of an A in place), and four steps are little else than multiply-adds and their
   loads: that counts where another thread of the same core takes every second cycle. */
static CARNN__INLINE void CARNN__K(steps)(size_t rows, size_t vectors, size_t a_row,
                                          size_t a_column, size_t b_row, size_t b_vector, size_t k,
                                          const float *a, const float *b, float *copy,
                                          const float *fetch,
                                          carnn__v (*sum)[CARNN__TILE_WIDEST]) {
    carnn__v line[CARNN__TILE_WIDEST];
    size_t i, j, p, count;
    for (; k; k -= count) {
        count = fetch && k > CARNN__FETCH_STEPS ? CARNN__FETCH_STEPS : k;
        for (j = 0; fetch && j < count / CARNN__FETCH_TILES * vectors; j++, fetch += CARNN__LANES)
            CARNN__PREFETCH_2(fetch);
        CARNN__UNROLL_4 for (p = 0; p < count; p++) {
            CARNN__UNROLL for (j = 0; j < vectors; j++) line[j] = CARNN__V(load)(b + j * b_vector);
            if (copy) {
                CARNN__UNROLL for (j = 0; j < vectors; j++)
                    CARNN__V(store)(copy + j * CARNN__LANES, line[j]);
                copy += vectors * CARNN__LANES;
            }
            CARNN__UNROLL for (i = 0; i < rows; i++) {
                carnn__v x = CARNN__V(set1)(a[i * a_row]);
                CARNN__UNROLL for (j = 0; j < vectors; j++)
                    sum[i][j] = CARNN__V(fma)(x, line[j], sum[i][j]);
            }
            a += a_column;
            b += b_row;
        }
    }
}

/* Loads and stores the sums of a tile, `rest` (1 to 16) numbers of the last vector of a row. */
static CARNN__INLINE void CARNN__K(tile_load)(size_t rows, size_t vectors, size_t rest,
                                              const float *from, size_t from_row,
                                              carnn__v (*sum)[CARNN__TILE_WIDEST]) {
    size_t i, j;
    CARNN__UNROLL for (i = 0; i < rows; i++, from += from_row) {
        CARNN__UNROLL for (j = 0; j + 1 < vectors; j++)
            sum[i][j] = CARNN__V(load)(from + j * CARNN__LANES);
        sum[i][j] = CARNN__V(loadn)(from + j * CARNN__LANES, rest);
    }
}

static CARNN__INLINE void CARNN__K(tile_store)(size_t rows, size_t vectors, size_t rest, float *to,
                                               size_t to_row,
                                               carnn__v (*sum)[CARNN__TILE_WIDEST]) {
    size_t i, j;
    CARNN__UNROLL for (i = 0; i < rows; i++, to += to_row) {
        CARNN__UNROLL for (j = 0; j + 1 < vectors; j++)
            CARNN__V(store)(to + j * CARNN__LANES, sum[i][j]);
        CARNN__V(storen)(to + j * CARNN__LANES, rest, sum[i][j]);
    }
}

/* One tile: `rows` and `vectors` are constants after inlining. Bound by the multiply-add units
   while the panel is in the first-level cache. */
static CARNN__INLINE void CARNN__K(tile)(size_t rows, size_t vectors, const carnn__panel *job,
                                         const CARNN__K(place) * at) {
    carnn__v sum[CARNN__TILE_ROWS][CARNN__TILE_WIDEST];
    const size_t width = vectors * CARNN__LANES, k = job->k, c_row = job->c_row;
    const size_t rest = at->columns - (width - CARNN__LANES);
    const int tall = 2 * rows > CARNN__TILE_ROWS; /* as is the first of several, which copies */
    const int dense = tall && at->b_row == width && !at->copy;
    const float *from = job->add ? at->c : at->start;
    const size_t from_row = job->add ? c_row : 0;
    const float *ahead = at->c + (job->ahead ? job->ahead : rows * c_row);
    size_t i, j;
    /* the rows of C are far apart: the hardware does not prefetch them */
    CARNN__UNROLL for (i = 0; i < rows; i++, ahead += c_row) {
        CARNN__UNROLL for (j = 0; j < vectors; j++) CARNN__PREFETCH(ahead + j * CARNN__LANES);
    }
    if (!from) {
        CARNN__UNROLL for (i = 0; i < rows; i++) {
            CARNN__UNROLL for (j = 0; j < vectors; j++) sum[i][j] = CARNN__V(zero)();
        }
    } else if (rest == CARNN__LANES) {
        CARNN__K(tile_load)(rows, vectors, CARNN__LANES, from, from_row, sum);
    } else {
        CARNN__K(tile_load)(rows, vectors, rest, from, from_row, sum);
    }
    if (dense && job->a_column == 1)
        CARNN__K(steps)(rows, vectors, job->a_row, 1, width, CARNN__LANES, k, at->a, at->b, NULL,
                        at->fetch, sum);
    else if (dense && job->a_column == CARNN__TILE_ROWS && job->a_row == 1)
        CARNN__K(steps)(rows, vectors, 1, CARNN__TILE_ROWS, width, CARNN__LANES, k, at->a, at->b,
                        NULL, NULL, sum);
    else
        CARNN__K(steps)(rows, vectors, job->a_row, job->a_column, at->b_row, at->b_vector, k,
                        at->a, at->b, tall ? at->copy : NULL, NULL, sum);
    if (rest == CARNN__LANES)
        CARNN__K(tile_store)(rows, vectors, CARNN__LANES, at->c, c_row, sum);
    else
        CARNN__K(tile_store)(rows, vectors, rest, at->c, c_row, sum);
}

/* Separate functions: in a common one the compiler runs out of registers. */
#define CARNN__TILE_FUNCTION(rows, vectors)                                                        \
    static CARNN__NOINLINE void CARNN__K(tile_##rows##_##vectors)(const carnn__panel *job,         \
                                                                  const CARNN__K(place) * at) {    \
        CARNN__K(tile)(rows, vectors, job, at);                                                    \
    }
#define CARNN__TILE_CASE(rows, vectors)                                                            \
    case (rows) * 8 + (vectors): CARNN__K(tile_##rows##_##vectors)(job, at); break;

CARNN__TILES(CARNN__TILE_FUNCTION)
#undef CARNN__TILE_FUNCTION

/* All rows of A times one panel: `tiles` tiles of `least` rows or one more, the first at `at`. */
static CARNN__INLINE void CARNN__K(rows)(const carnn__panel *job, size_t tiles, size_t least,
                                         CARNN__K(place) * at) {
    size_t vectors = carnn__parts(at->columns, CARNN__LANES), t, rows;
    size_t higher = job->m - least * tiles;
    for (t = 1;; t++) {
        rows = least + (t <= higher);
        switch (rows * 8 + vectors) {
            CARNN__TILES(CARNN__TILE_CASE)
        default: break;
        }
        if (t == tiles) return;
        at->a += rows * job->a_row;
        at->c += rows * job->c_row;
        if (at->copy) {
            at->b = job->copy;
            at->b_row = vectors * CARNN__LANES;
            at->copy = NULL;
        }
        if (t == CARNN__FETCH_TILES) at->fetch = NULL;
        if (at->fetch) at->fetch += job->k / CARNN__FETCH_TILES * vectors * CARNN__LANES;
    }
}
#undef CARNN__TILE_CASE

/* Vectors of a tile: of several panels where A has so few rows that the sums of one would wait for
   each other. */
static size_t CARNN__K(abreast)(const carnn__panel *job) {
    if (CARNN__TILE_VECTORS > 1 || job->copy || job->m > 3) return CARNN__TILE_VECTORS;
    if (job->m == 1) return CARNN__TILE_WIDEST;
    return CARNN__TILE_WIDEST == 4 || (CARNN__TILE_WIDEST == 2 && job->m == 2) ? 2 : 1;
}

/* All rows of A times the panels. With many rows nine tenths of the peak and more (matmul 512 x 400
   x 300 of `carnn bench`); with 32 rows, where a panel is copied or transposed for six tiles, two
   thirds to four fifths, packed before more; one row at half the speed at which the cache that
   holds B is read (gemv A B). */
static void CARNN__K(panel)(const carnn__panel *job) {
    CARNN__K(place) at;
    size_t tiles = carnn__parts(job->m, CARNN__TILE_ROWS), least = job->m / tiles;
    size_t step = CARNN__K(abreast)(job) * CARNN__LANES, j;
    for (j = 0; j < job->n; j += step) {
        at.columns = carnn__min(job->n - j, step);
        at.a = job->a;
        at.b = job->b + j * (job->b_row ? 1 : job->k);
        at.b_row = job->b_row;
        at.b_vector = CARNN__LANES;
        if (!at.b_row && CARNN__TILE_VECTORS == 1) { /* each vector is a panel of its own */
            at.b_row = CARNN__LANES;
            at.b_vector = CARNN__LANES * job->k;
        } else if (!at.b_row) {
            at.b_row = carnn__round_up(at.columns, CARNN__LANES);
        }
        at.fetch = job->fetch && job->n - j > step ? at.b + job->k * step : NULL;
        at.start = job->start ? job->start + j : NULL;
        at.copy = job->copy;
        at.c = job->c + j;
        CARNN__K(rows)(job, tiles, least, &at);
    }
}

/* A strip of A: `rows` (at most a tile's) columns of the stored (k, m), column after column of A.
   In place each of the k pieces is in another page, and where the width is a power of two all of
   them compete for a few lines of the cache. Bound by these reads. */
static void CARNN__K(pack_strip)(size_t rows, size_t k, const float *a, size_t lda, float *strip) {
    size_t p;
    for (p = 0; p < k; p++, a += lda, strip += CARNN__TILE_ROWS) {
        CARNN__PREFETCH_2(a + CARNN__LANES); /* for strips to come */
        if (rows == CARNN__TILE_ROWS)
            memcpy(strip, a, CARNN__TILE_ROWS * sizeof *strip);
        else
            memcpy(strip, a, rows * sizeof *strip);
    }
}

/* packed (k, n rounded up to 16) = b (k, n), padded with zeros. Bound by reading b, a cache line
   for each row of a narrow panel. */
static void CARNN__K(pack_rows)(size_t k, size_t n, const float *b, size_t ldb, float *packed) {
    size_t p, j;
    for (p = 0; p < k; p++, b += ldb) {
        for (j = 0; j + CARNN__LANES <= n; j += CARNN__LANES, packed += CARNN__LANES)
            CARNN__V(store)(packed, CARNN__V(load)(b + j));
        if (j < n) {
            CARNN__V(store)(packed, CARNN__V(loadn)(b + j, n - j));
            packed += CARNN__LANES;
        }
    }
}

/* Transposes the block of b (n, k) at row j and column p, with zeros beyond the edge of b. */
static CARNN__NOINLINE void CARNN__K(transpose_edge)(size_t n, size_t k, const float *b, size_t ldb,
                                                     size_t j, size_t p, carnn__v *out) {
    float edge[CARNN__LANES * CARNN__LANES];
    size_t width = carnn__min(k - p, CARNN__LANES), i;
    for (i = 0; i < CARNN__LANES; i++)
        CARNN__V(store)(edge + i * CARNN__LANES,
                        j + i < n ? CARNN__V(loadn)(b + (j + i) * ldb + p, width)
                                  : CARNN__V(zero)());
    CARNN__V(transpose)(edge, CARNN__LANES, out);
}

/* packed (k, n rounded up to 16) = b (n, k) transposed, padded with zeros. Bound by the shuffles,
   which make A B' with few rows slower than A B. */
static void CARNN__K(pack_columns)(size_t k, size_t n, const float *b, size_t ldb, float *packed) {
    size_t width = carnn__round_up(n, CARNN__LANES), p, j, s;
    for (j = 0; j < n; j += CARNN__LANES) {
        for (p = 0; p < k; p += CARNN__LANES) {
            carnn__v block[CARNN__LANES];
            float *to = packed + p * width + j;
            if (n - j >= CARNN__LANES && k - p >= CARNN__LANES) {
                CARNN__V(transpose)(b + j * ldb + p, ldb, block);
                CARNN__UNROLL for (s = 0; s < CARNN__LANES; s++)
                    CARNN__V(store)(to + s * width, block[s]);
            } else {
                CARNN__K(transpose_edge)(n, k, b, ldb, j, p, block);
                for (s = 0; s < CARNN__LANES && s < k - p; s++)
                    CARNN__V(store)(to + s * width, block[s]);
            }
        }
    }
}

/* y (n) = start + b (n, k) x: the product of one row with a B that is stored (n, k). Sixteen rows
   of b at a time are transposed in registers, eight or 24 where the path has row_dots. Bound by the
   shuffles, at a third of the speed at which the cache is read (gemv A B'), or by memory. */
static void CARNN__K(gemv_nt)(size_t n, size_t k, const float *x, const float *b, size_t ldb,
                              const float *start, float *y) {
    size_t j = 0, p, s;
    if (!start) memset(y, 0, n * sizeof *y);
    else if (start != y) memcpy(y, start, n * sizeof *y);
#if defined(CARNN__DOT_ROWS)
    /* Rows that lie a multiple of 2 KiB apart compete for the same few lines of the first-level
       cache, which have room for one group of them. */
    for (; k % 4 == 0 && ldb % 512 && j + 3 * CARNN__DOT_ROWS <= n; j += 3 * CARNN__DOT_ROWS)
        CARNN__V(row_dots)(3, k, x, b + j * ldb, ldb, y + j);
    for (; k % 4 == 0 && j + CARNN__DOT_ROWS <= n; j += CARNN__DOT_ROWS)
        CARNN__V(row_dots)(1, k, x, b + j * ldb, ldb, y + j);
#endif
    for (; j < n; j += CARNN__LANES) {
        size_t width = carnn__min(n - j, CARNN__LANES);
        carnn__v block[CARNN__LANES], sum = CARNN__V(loadn)(y + j, width);
        for (p = 0; p < k; p += CARNN__LANES) {
            if (n - j >= CARNN__LANES && k - p >= CARNN__LANES) {
                CARNN__V(transpose)(b + j * ldb + p, ldb, block);
                CARNN__UNROLL for (s = 0; s < CARNN__LANES; s++)
                    sum = CARNN__V(fma)(CARNN__V(set1)(x[p + s]), block[s], sum);
            } else {
                CARNN__K(transpose_edge)(n, k, b, ldb, j, p, block);
                for (s = 0; s < CARNN__LANES && s < k - p; s++)
                    sum = CARNN__V(fma)(CARNN__V(set1)(x[p + s]), block[s], sum);
            }
        }
        CARNN__V(storen)(y + j, width, sum);
    }
}

/* `vectors` vectors of columns, `width` (1 to 16) numbers of each: the sums stay in registers. */
static CARNN__INLINE void CARNN__K(sum_columns)(size_t rows, size_t vectors, size_t width,
                                                const float *x, size_t ldx, float *out) {
    carnn__v sum[4];
    size_t i, s;
    CARNN__UNROLL for (s = 0; s < vectors; s++)
        sum[s] = CARNN__V(loadn)(out + s * CARNN__LANES, width);
    for (i = 0; i < rows; i++, x += ldx) {
        CARNN__UNROLL for (s = 0; s < vectors; s++)
            sum[s] = CARNN__V(add)(sum[s], CARNN__V(loadn)(x + s * CARNN__LANES, width));
    }
    CARNN__UNROLL for (s = 0; s < vectors; s++)
        CARNN__V(storen)(out + s * CARNN__LANES, width, sum[s]);
}

/* out[j] += sum_i x[i][j], i ascending. Bound by memory, so four whole cache lines of each row are
   read. `carnn bench` measures the peaks of reading with it. */
static void CARNN__K(column_sums)(size_t rows, size_t columns, const float *x, size_t ldx,
                                  float *out) {
    size_t j;
    for (j = 0; j + 4 * CARNN__LANES <= columns; j += 4 * CARNN__LANES)
        CARNN__K(sum_columns)(rows, 4, CARNN__LANES, x + j, ldx, out + j);
    for (; j < columns; j += CARNN__LANES)
        CARNN__K(sum_columns)(rows, 1, carnn__min(columns - j, CARNN__LANES), x + j, ldx, out + j);
}

#endif /* CARNN__ISA */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

enum {
    CARNN__NN = 0,  /* C (m, n) = A (m, k) B (k, n) */
    CARNN__NT = 1,  /* B is stored (n, k) */
    CARNN__TN = 2,  /* A is stored (k, m) */
    CARNN__ADD = 4, /* C += instead of C = */
    CARNN__PACKED = 8 /* B was packed by carnn__pack; ldb is not used */
};

/* Floats of scratch memory of a worker: a panel or a strip of A (48 KiB), and a block of panels
   (3/4 MiB). */
#define CARNN__PANEL_SIZE ((size_t)12288)
#define CARNN__BLOCK_SIZE ((size_t)196608)
#define CARNN__DEPTH_MOST 320 /* rows of a panel: 20 KiB at 16 columns */

/* Kernels, threads, and scratch memory. */
typedef struct carnn__engine {
    const carnn__kernels *k;
    carnn__pool *pool;         /* NULL: the calling thread alone */
    float *scratch;            /* CARNN__PANEL_SIZE floats for each worker */
    float *block;              /* CARNN__BLOCK_SIZE floats for each, behind it; NULL: none */
    size_t block_size;         /* floats in use of a block */
    carnn_allocator allocator; /* of pool and scratch */
} carnn__engine;

/* Rows of a panel where B has k. */
static size_t carnn__depth(const carnn__kernels *kernels, size_t k) {
    size_t most = carnn__min(CARNN__PANEL_SIZE / kernels->tile_columns, CARNN__DEPTH_MOST);
    k = carnn__max(k, 1);
    return carnn__part(k, carnn__parts(k, most), CARNN__LANES);
}

/* An engine of one thread, which is not to be closed, for prediction, where products have few rows;
   scratch (CARNN__PANEL_SIZE). */
static void carnn__engine_borrow(carnn__engine *e, const carnn__kernels *k, float *scratch) {
    memset(e, 0, sizeof *e);
    e->k = k;
    e->block_size = CARNN__BLOCK_SIZE;
    e->scratch = scratch;
}

static void carnn__engine_close(carnn__engine *e) {
    carnn__pool_free(e->pool);
    carnn__free_aligned(&e->allocator, e->scratch);
    memset(e, 0, sizeof *e);
}

static carnn_status carnn__engine_open(carnn__engine *e, const char *simd, size_t threads,
                                       carnn_allocator a, carnn_error *error) {
    size_t cache = carnn__second_cache();
    memset(e, 0, sizeof *e);
    e->allocator = a;
    e->block_size = CARNN__BLOCK_SIZE / 2;
    if (carnn__simd_open(&e->k, simd, error)) return CARNN_ERR_ARGUMENT;
    if (cache) e->block_size = cache / 8 * 5 / sizeof(float); /* the rest is for A and C */
    e->block_size = carnn__min(carnn__max(e->block_size, CARNN__BLOCK_SIZE / 4), CARNN__BLOCK_SIZE);
    if (carnn__pool_create(&e->pool, threads, a)) return carnn__out_of_memory(error);
    threads = carnn__pool_threads(e->pool);
    e->scratch = (float *)carnn__alloc_aligned(
        &a, threads, (CARNN__PANEL_SIZE + CARNN__BLOCK_SIZE) * sizeof(float));
    if (e->scratch) e->block = e->scratch + threads * CARNN__PANEL_SIZE;
    else carnn__engine_close(e);
    return e->scratch ? CARNN_OK : carnn__out_of_memory(error);
}

/* The engine of one worker in a job of carnn__parallel: one thread, its own scratch memory. */
static carnn__engine carnn__engine_of(const carnn__engine *e, size_t worker) {
    carnn__engine own;
    carnn__engine_borrow(&own, e->k, e->scratch + worker * CARNN__PANEL_SIZE);
    return own;
}

/* --- ranges ---------------------------------------------------------------------------------- */

typedef struct carnn__split_job {
    carnn__range_fn fn;
    const void *job;
    size_t count, width;
} carnn__split_job;

static void carnn__split_piece(void *job, size_t piece, size_t worker) {
    const carnn__split_job *s = (const carnn__split_job *)job;
    size_t from = piece * s->width;
    (void)worker;
    s->fn(s->job, from, carnn__min(from + s->width, s->count));
}

/* Loops of fewer elementary operations (some 20 microseconds) run in one thread. */
#define CARNN__SPLIT_FROM 65536

/* Runs fn(job, from, to) on pieces of [0, count) whose widths are multiples of `grain`; `work` is
   the number of elementary operations in all. */
static void carnn__split(carnn__engine *e, carnn__range_fn fn, const void *job, size_t count,
                         size_t grain, size_t work) {
    size_t pieces = 2 * carnn__pool_active(e->pool);
    carnn__split_job s;
    if (!count) return;
    if (pieces == 2 || work < CARNN__SPLIT_FROM) {
        fn(job, 0, count);
        return;
    }
    s.fn = fn;
    s.job = job;
    s.count = count;
    s.width = carnn__part(count, pieces, grain);
    carnn__parallel(e->pool, carnn__parts(count, s.width), carnn__split_piece, &s);
}

/* --- packed matrices ----------------------------------------------------------------------------
   Block after block of carnn__depth rows, in each panel after panel (rows of the block, tile
   columns); the last panel is as narrow as multiples of 16 allow. */

/* Floats of a packed (k, n) matrix. */
static size_t carnn__packed_size(size_t n, size_t k) {
    return carnn__times(carnn__round_up(n, CARNN__LANES), k);
}

typedef struct carnn__product {
    const carnn__engine *e;
    int form;
    size_t m, n, k;
    const float *a, *b, *bias;
    size_t lda, ldb, ldc;
    float *c;
    size_t depth;                      /* rows of a panel */
    size_t piece_m, piece_n, pieces_n; /* rows and columns of a piece, pieces side by side */
} carnn__product;

/* The index of column j in the block of `depth` rows from row p on of a packed matrix. */
static size_t carnn__packed_at(size_t n, size_t depth, size_t p, size_t j) {
    return p * carnn__round_up(n, CARNN__LANES) + depth * j;
}

/* Copies rows p.. of columns j.. of B into a panel. */
static void carnn__pack_panel(const carnn__product *x, size_t p, size_t depth, size_t j,
                              size_t width, float *panel) {
    if (x->form & CARNN__NT)
        x->e->k->pack_columns(depth, width, x->b + j * x->ldb + p, x->ldb, panel);
    else
        x->e->k->pack_rows(depth, width, x->b + p * x->ldb + j, x->ldb, panel);
}

/* Packs columns [from, to) of b, which are columns piece_n + from .. of the packed matrix c. */
static void carnn__pack_range(const void *job, size_t from, size_t to) {
    const carnn__product *x = (const carnn__product *)job;
    size_t columns = x->e->k->tile_columns, p, j;
    for (p = 0; p < x->k; p += x->depth) {
        size_t depth = carnn__min(x->k - p, x->depth);
        for (j = from; j < to; j += columns)
            carnn__pack_panel(x, p, depth, j, carnn__min(to - j, columns),
                              x->c + carnn__packed_at(x->n, depth, p, x->piece_n + j));
    }
}

/* Packs columns [j0, j1) of B (k, n), stored (n, k) where `form` is CARNN__NT; `b` begins at j0, a
   multiple of the width of a panel. */
static void carnn__pack_columns(carnn__engine *e, int form, size_t n, size_t k, size_t j0,
                                size_t j1, const float *b, size_t ldb, float *packed) {
    carnn__product x = {e, form, 0, n, k, NULL, b, NULL, 0, ldb, 0, packed, carnn__depth(e->k, k),
                        0, j0, 0};
    carnn__split(e, carnn__pack_range, &x, j1 - j0, e->k->tile_columns, (j1 - j0) * k);
}

/* Packs all of B. */
static void carnn__pack(carnn__engine *e, int form, size_t n, size_t k, const float *b, size_t ldb,
                        float *packed) {
    carnn__pack_columns(e, form, n, k, 0, n, b, ldb, packed);
}

/* --- products -------------------------------------------------------------------------------- */

/* The panels of the block at row p of B, for rows [i0, i1) and columns [j, j1) of C. */
static carnn__panel carnn__panel_at(const carnn__product *x, size_t i0, size_t i1, size_t j,
                                    size_t j1, size_t p) {
    carnn__panel panel;
    memset(&panel, 0, sizeof panel);
    panel.m = i1 - i0;
    panel.n = j1 - j;
    panel.k = carnn__min(x->k - p, x->depth);
    panel.a_row = x->form & CARNN__TN ? 1 : x->lda;
    panel.a_column = x->form & CARNN__TN ? x->lda : 1;
    panel.a = x->a + i0 * panel.a_row + p * panel.a_column;
    if (x->form & CARNN__PACKED) panel.b = x->b + carnn__packed_at(x->n, panel.k, p, j);
    panel.start = x->bias ? x->bias + j : NULL;
    panel.add = p || (x->form & CARNN__ADD);
    panel.c = x->c + i0 * x->ldc + j;
    panel.c_row = x->ldc;
    return panel;
}

/* A packed matrix of so many floats or more is not in the second-level cache. */
#define CARNN__FAR ((size_t)1 << 20)

/* Few rows: panel by panel. A panel that needs no transposing or padding is copied by the first
   tile that reads it. */
static void carnn__product_panels(const carnn__product *x, size_t i0, size_t i1, size_t j0,
                                  size_t j1, size_t p, size_t worker) {
    const carnn__kernels *k = x->e->k;
    float *scratch = x->e->scratch + worker * CARNN__PANEL_SIZE;
    const int packed = x->form & CARNN__PACKED, dense = !(x->form & (CARNN__PACKED | CARNN__NT));
    size_t width = packed ? j1 - j0 : k->tile_columns, j;
    if (dense && i1 - i0 <= k->tile_rows) /* B is read once */
        width = carnn__max((j1 - j0) / CARNN__LANES, 1) * CARNN__LANES;
    for (j = j0; j < j1; j += width) {
        carnn__panel panel = carnn__panel_at(x, i0, i1, j, carnn__min(j + width, j1), p);
        if (dense && panel.n % CARNN__LANES == 0) {
            panel.b = x->b + p * x->ldb + j;
            panel.b_row = x->ldb;
            if (panel.m > k->tile_rows) panel.copy = scratch;
        } else if (!packed) {
            carnn__pack_panel(x, p, panel.k, j, panel.n, scratch);
            panel.b = scratch;
        }
        panel.fetch = packed && x->n * x->k >= CARNN__FAR && panel.m > k->tile_rows;
        k->panel(&panel);
    }
}

/* Many rows: all panels of the block are packed first, into the second-level cache, and multiplied
   by one strip of A, in the first-level cache, after the other. So C is visited along its rows:
   down its columns every row would be another page. */
static void carnn__product_strips(const carnn__product *x, size_t i0, size_t i1, size_t j0,
                                  size_t j1, size_t p, size_t worker) {
    const carnn__kernels *k = x->e->k;
    float *strip = x->e->scratch + worker * CARNN__PANEL_SIZE;
    float *block = x->e->block + worker * CARNN__BLOCK_SIZE;
    size_t depth = carnn__min(x->k - p, x->depth), i, j;
    for (j = j0; j < j1 && !(x->form & CARNN__PACKED); j += k->tile_columns)
        carnn__pack_panel(x, p, depth, j, carnn__min(j1 - j, k->tile_columns),
                          block + (j - j0) * depth);
    for (i = i0; i < i1; i += k->tile_rows) {
        carnn__panel panel = carnn__panel_at(x, i, carnn__min(i + k->tile_rows, i1), j0, j1, p);
        if (x->form & CARNN__TN) {
            k->pack_strip(panel.m, depth, panel.a, panel.a_column, strip);
            panel.a = strip;
            panel.a_column = k->tile_rows;
        }
        panel.ahead = k->tile_columns;
        if (!panel.b) panel.b = block;
        k->panel(&panel);
    }
}

/* Packing a block of B pays from so many rows and columns of C on. */
#define CARNN__STRIPS_ROWS 96
#define CARNN__STRIPS_COLUMNS 128

static void carnn__product_piece(void *job, size_t piece, size_t worker) {
    const carnn__product *x = (const carnn__product *)job;
    size_t i0 = piece / x->pieces_n * x->piece_m, j0 = piece % x->pieces_n * x->piece_n;
    size_t j1 = carnn__min(j0 + x->piece_n, x->n), i1 = carnn__min(i0 + x->piece_m, x->m), p;
    size_t columns = x->e->k->tile_columns, most, width, end;
    if (x->m == 1 && x->form & CARNN__NT) { /* transposed in registers */
        const float *start = x->form & CARNN__ADD ? x->c + j0 : x->bias ? x->bias + j0 : NULL;
        x->e->k->gemv_nt(j1 - j0, x->k, x->a, x->b + j0 * x->ldb, x->ldb, start, x->c + j0);
        return;
    }
    most = x->e->block_size / x->depth / columns * columns;
    width = carnn__part(j1 - j0, carnn__parts(j1 - j0, most), columns);
    for (; j0 < j1; j0 = end) {
        end = carnn__min(j0 + width, j1);
        p = 0;
        do { /* once where k is 0: C becomes its start value */
            if (x->e->block && i1 - i0 >= CARNN__STRIPS_ROWS && end - j0 >= CARNN__STRIPS_COLUMNS)
                carnn__product_strips(x, i0, i1, j0, end, p, worker);
            else
                carnn__product_panels(x, i0, i1, j0, end, p, worker);
            p += x->depth;
        } while (p < x->k);
    }
}

/* Products of fewer multiply-adds (some 20 microseconds of one core) run in the calling thread:
   waking another one takes as long. */
#define CARNN__PARALLEL_FROM 1500000.0

/* The cost in multiply-adds of pieces of m rows and n columns: those that one of the threads works
   through, and a quarter of one for the wait at the end. Packing a column of B costs as much as 8
   rows, reading a row of A as 4 columns. */
static double carnn__cut_cost(const carnn__product *x, size_t threads, size_t m, size_t n) {
    size_t pieces = carnn__parts(x->m, m) * carnn__parts(x->n, n);
    double turns = (double)carnn__parts(pieces, threads) + 0.25;
    return turns * ((double)m * (double)n + 8.0 * (double)n + 4.0 * (double)m);
}

/* Cuts C into at most eight pieces per thread, at the least cost. */
static void carnn__product_cut(carnn__product *x, size_t threads) {
    const carnn__kernels *k = x->e->k;
    double best = HUGE_VAL;
    size_t rows, pieces;
    for (rows = 1; rows <= 8 * threads; rows *= 2)
        for (pieces = 8 * threads; pieces >= threads && pieces >= rows; pieces /= 2) {
            size_t m = carnn__part(x->m, rows, k->tile_rows);
            size_t n = carnn__part(x->n, pieces / rows, k->tile_columns);
            double cost = carnn__cut_cost(x, threads, m, n);
            if (cost >= best) continue;
            best = cost;
            x->piece_m = m;
            x->piece_n = n;
        }
}

/* C (m, n) = start + A B in the given form; `bias` (n) is the start value of every row, NULL: zero,
   and is not used with CARNN__ADD. */
static void carnn__matmul(carnn__engine *e, int form, size_t m, size_t n, size_t k, const float *a,
                          size_t lda, const float *b, size_t ldb, const float *bias, float *c,
                          size_t ldc) {
    carnn__product x = {e, form, m, n, k, a, b, bias, lda, ldb, ldc, c, carnn__depth(e->k, k),
                        m, n, 0};
    size_t threads = carnn__pool_active(e->pool);
    if (!m || !n) return;
    if (threads > 1 && (double)m * (double)n * (double)k >= CARNN__PARALLEL_FROM)
        carnn__product_cut(&x, threads);
    x.pieces_n = carnn__parts(n, x.piece_n);
    carnn__parallel(e->pool, x.pieces_n * carnn__parts(m, x.piece_m), carnn__product_piece, &x);
}

typedef struct carnn__sums {
    const carnn__kernels *k;
    size_t rows, ldx;
    const float *x;
    float *out;
} carnn__sums;

static void carnn__sums_range(const void *job, size_t from, size_t to) {
    const carnn__sums *s = (const carnn__sums *)job;
    s->k->column_sums(s->rows, to - from, s->x + from, s->ldx, s->out + from);
}

/* out[j] += sum_i x[i][j]; x (rows, columns). */
static void carnn__column_sums(carnn__engine *e, size_t rows, size_t columns, const float *x,
                               size_t ldx, float *out) {
    carnn__sums s = {e->k, rows, ldx, x, out};
    carnn__split(e, carnn__sums_range, &s, columns, 4 * CARNN__LANES, rows * columns);
}

#endif /* CARNN_IMPLEMENTATION */
/* =============================================================================================
   @@PARAM   the parameter store, optimisers

   All weights of a model lie in one float array; a table names the pieces. Gradients and the
   moments of the optimisers are arrays of the same length, so that optimisers, clipping, saving,
   averaging and gradient checks are one loop each.
   ============================================================================================= */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

typedef enum carnn__init {
    CARNN__INIT_ZERO,
    CARNN__INIT_GLOROT, /* uniform in +-sqrt(6 / (rows + columns)), Glorot and Bengio 2010 */
    CARNN__INIT_NORMAL  /* mean 0, standard deviation `scale` */
} carnn__init;

/* One named matrix (rows, columns) of the store; vectors have one row. */
typedef struct carnn__param {
    char name[48]; /* "cell.input.weight" */
    size_t rows, columns;
    size_t offset; /* of the first weight in the arrays, a multiple of 16 floats */
    size_t block;  /* rows that are one matrix to the initialiser: the gates of a stacked matrix */
    carnn__init init;
    float scale;
    size_t open_from, open_count; /* weights that start at `scale`: the bias of a forget gate */
} carnn__param;

#define CARNN__PARAMS_MAX 224

typedef struct carnn__store {
    carnn__param item[CARNN__PARAMS_MAX];
    size_t count;
    size_t size; /* floats in the array, with the padding between pieces (always zero) */
    size_t trained; /* so many of them, from the front, are trained */
    int fixed;      /* what is declared from now on is not trained */
    float *value;
} carnn__store;

/* Declares a matrix and returns its number. A store that is too small shows in `count`, which
   carnn__store_alloc checks. */
static size_t carnn__declare(carnn__store *store, const char *prefix, const char *name,
                             size_t rows, size_t columns, size_t block, carnn__init init,
                             float scale) {
    carnn__param *p = &store->item[carnn__min(store->count, CARNN__PARAMS_MAX - 1)];
    size_t floats = carnn__times(rows, columns), room = SIZE_MAX / sizeof(float) - store->size;
    snprintf(p->name, sizeof p->name, "%s%s%s", prefix, *prefix ? "." : "", name);
    p->rows = rows;
    p->columns = columns;
    p->offset = store->size;
    p->block = block;
    p->init = init;
    p->scale = scale;
    p->open_count = 0;
    store->size += floats < room ? carnn__round_up(floats, CARNN__ALIGN / sizeof(float)) : room;
    if (!store->fixed) store->trained = store->size;
    return store->count++;
}

/* The weights of parameter `number` in an array that is laid out like the store. */
static inline float *carnn__piece(const carnn__store *store, float *array, size_t number) {
    return array + store->item[number].offset;
}

/* The first weights of the matrix of that name, which there is. */
static float *carnn__named(const carnn__store *store, const char *name) {
    size_t i = 0;
    while (strcmp(store->item[i].name, name) != 0) i++;
    return carnn__piece(store, store->value, i);
}

static carnn_status carnn__store_alloc(carnn__store *store, const carnn_allocator *allocator,
                                       carnn_error *error) {
    if (store->count > CARNN__PARAMS_MAX)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "more than %d weight matrices: use fewer "
                           "layers", CARNN__PARAMS_MAX);
    store->value = (float *)carnn__alloc_aligned(allocator, store->size, sizeof(float));
    if (!store->value) return carnn__out_of_memory(error);
    memset(store->value, 0, store->size * sizeof(float));
    return CARNN_OK;
}

/* Draws the initial weights. Each matrix has its own stream, named by its place in the table. */
static void carnn__store_init(carnn__store *store, uint64_t seed) {
    size_t number, i;
    for (number = 0; number < store->count; number++) {
        const carnn__param *p = &store->item[number];
        float *w = carnn__piece(store, store->value, number);
        uint64_t key = carnn__stream(seed, number);
        size_t count = p->rows * p->columns;
        size_t fan = (p->block ? p->block : p->rows) + p->columns;
        float range = (float)sqrt(6.0 / (double)carnn__max(fan, 1));
        for (i = 0; i < count; i++)
            switch (p->init) {
            case CARNN__INIT_GLOROT: w[i] = range * (2.0f * carnn__uniform(key, i) - 1.0f); break;
            case CARNN__INIT_NORMAL: w[i] = p->scale * carnn__normal(key, i); break;
            default: w[i] = 0.0f;
            }
        for (i = p->open_from; i < p->open_from + p->open_count; i++) w[i] = p->scale;
    }
}

#endif

/* --- optimisers ---------------------------------------------------------------------------------
   g is the gradient after clipping, w a weight; a, b are the decay rates:

     sgd       w -= lr g
     adagrad   s += g^2;                            w -= lr g / (sqrt(s) + eps)
     rmsprop   s = a s + (1-a) g^2;                 w -= lr g / (sqrt(s) + eps)
     adadelta  s = a s + (1-a) g^2;                 d = g sqrt(x + eps) / sqrt(s + eps)
               x = a x + (1-a) d^2;                 w -= lr d
     adam      m = a m + (1-a) g; s = b s + (1-b) g^2;
               w -= lr m / (1-a^t) / (sqrt(s / (1-b^t)) + eps)

   Weight decay is decoupled (Loshchilov and Hutter 2019): w shrinks by the factor 1 - lr decay in
   each step, whatever the optimiser. */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

static const carnn__optimizer_kind carnn__optimizers[CARNN__OPTIMIZER_COUNT] = {
    {"sgd", 0, 0.1, 0.0, 0.0, 0.0},
    {"adagrad", 1, 0.01, 0.0, 0.0, 1e-8},
    {"rmsprop", 1, 0.001, 0.9, 0.0, 1e-8},
    {"adadelta", 2, 1.0, 0.95, 0.0, 1e-6},
    {"adam", 2, 0.001, 0.9, 0.999, 1e-8}};

CARNN_API const char *carnn_optimizer_name(size_t number) {
    return number < CARNN__OPTIMIZER_COUNT ? carnn__optimizers[number].name : NULL;
}

#endif

#if defined(CARNN__ISA)

#define load(array) CARNN__V(load)((array) + i)
#define store(array, v) CARNN__V(store)((array) + i, v)
#define every(x) CARNN__V(set1)(x) /* x in every lane */
#define add CARNN__V(add)
#define mul CARNN__V(mul)
#define div CARNN__V(div)
#define root CARNN__V(sqrt)
#define fma CARNN__V(fma)
#define fnma CARNN__V(fnma)

/* Moments of a weight that gets no gradient, such as the vector of a rare word, decay towards zero.
   They become 0 before they are denormal numbers, which processors are slow with. */
static CARNN__INLINE carnn__v CARNN__K(faded)(carnn__v moment) {
    return CARNN__V(if_less)(CARNN__V(abs)(moment), every(1e-30f), CARNN__V(zero)(), moment);
}

/* One pass over memory for weights [from, to): clips, updates the moments, updates and decays the
   weight, and clears the gradient for the next step. Bound by memory: Adam reads four floats for
   each weight and writes them. */
static void CARNN__K(optimize)(const void *job, size_t from, size_t to) {
    const carnn__update *u = (const carnn__update *)job;
    const carnn__optimizer_kind *k = u->kind;
    const carnn__v a = every((float)k->a), a1 = every((float)(1.0 - k->a));
    const carnn__v b = every((float)k->b), b1 = every((float)(1.0 - k->b));
    const carnn__v clip = every(u->clip), keep = every(u->keep), lr = every(u->lr);
    const carnn__v eps = every((float)k->eps), correct = every(u->correct);
    float *const m0 = u->moment[0], *const m1 = u->moment[1];
    const size_t number = u->number;
    size_t i;
    for (i = from; i < to; i += CARNN__LANES) {
        carnn__v g = mul(clip, load(u->g)), w = mul(keep, load(u->w)), d = g, m, s, x;
        switch (number) {
        case CARNN__OPTIMIZER_adagrad:
            s = fma(g, g, load(m0));
            d = div(g, add(root(s), eps));
            store(m0, s);
            break;
        case CARNN__OPTIMIZER_rmsprop:
            s = fma(mul(a1, g), g, mul(a, load(m0)));
            d = div(g, add(root(s), eps));
            store(m0, CARNN__K(faded)(s));
            break;
        case CARNN__OPTIMIZER_adadelta:
            s = fma(mul(a1, g), g, mul(a, load(m0)));
            x = load(m1);
            d = mul(root(div(add(x, eps), add(s, eps))), g);
            x = fma(mul(a1, d), d, mul(a, x));
            store(m0, CARNN__K(faded)(s));
            store(m1, CARNN__K(faded)(x));
            break;
        case CARNN__OPTIMIZER_adam: /* lr and correct hold the corrections by 1-a^t and 1-b^t */
            m = fma(a1, g, mul(a, load(m0)));
            s = fma(mul(b1, g), g, mul(b, load(m1)));
            d = div(m, fma(correct, root(s), eps));
            store(m0, CARNN__K(faded)(m));
            store(m1, CARNN__K(faded)(s));
            break;
        default: break; /* sgd: d = g */
        }
        store(u->g, CARNN__V(zero)());
        store(u->w, fnma(lr, d, w));
    }
}

#undef load
#undef store
#undef every
#undef add
#undef mul
#undef div
#undef root
#undef fma
#undef fnma

#endif

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

/* The gradient's norm is a sum of partial sums over so many floats each, added in order. */
#define CARNN__FLAT_PIECE 16384

typedef struct carnn__optimizer {
    size_t number;    /* in carnn__optimizers */
    size_t size;      /* of the store */
    float *moment[2];
    double *partial;  /* one per CARNN__FLAT_PIECE; the block of memory, with the moments behind */
    double power_a, power_b; /* a^t and b^t after t steps */
} carnn__optimizer;

static void carnn__optimizer_close(carnn__optimizer *o, const carnn_allocator *allocator) {
    carnn__free_aligned(allocator, o->partial);
    memset(o, 0, sizeof *o);
}

static size_t carnn__flat_pieces(size_t size) {
    return carnn__parts(size, CARNN__FLAT_PIECE);
}

static carnn_status carnn__optimizer_open(carnn__optimizer *o, size_t number, size_t size,
                                          const carnn_allocator *allocator, carnn_error *error) {
    size_t i, moments = carnn__optimizers[number].moments;
    size_t partials = carnn__round_up(carnn__flat_pieces(size) * 2, CARNN__ALIGN / sizeof(float));
    float *block = (float *)carnn__alloc_aligned(allocator, partials + moments * size,
                                                 sizeof(float));
    memset(o, 0, sizeof *o);
    if (!block) return carnn__out_of_memory(error);
    memset(block, 0, (partials + moments * size) * sizeof(float));
    o->number = number;
    o->size = size;
    o->power_a = o->power_b = 1.0;
    o->partial = (double *)(void *)block;
    for (i = 0; i < moments; i++) o->moment[i] = block + partials + i * size;
    return CARNN_OK;
}

typedef struct carnn__norm_job {
    const carnn__kernels *k;
    const float *x;
    double *partial;
    size_t size;
} carnn__norm_job;

/* Where squares are too large for a float they are summed up in a double: a gradient that explodes
   is clipped like any other. */
static void carnn__norm_range(const void *job_, size_t from, size_t to) {
    const carnn__norm_job *job = (const carnn__norm_job *)job_;
    size_t piece, i;
    for (piece = from; piece < to; piece++) {
        const float *x = job->x + piece * CARNN__FLAT_PIECE;
        size_t n = carnn__min(CARNN__FLAT_PIECE, job->size - piece * CARNN__FLAT_PIECE);
        double sum = job->k->sum_squares(x, n);
        if (!(sum <= DBL_MAX))
            for (sum = 0.0, i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
        job->partial[piece] = sum;
    }
}

/* Euclidean norm of a flat array: NaN or infinity in it shows in the result. */
static double carnn__flat_norm(carnn__engine *e, const float *x, size_t size, double *partial) {
    carnn__norm_job job = {e->k, x, partial, size};
    double sum = 0.0;
    size_t i;
    carnn__split(e, carnn__norm_range, &job, carnn__flat_pieces(size), 1, size);
    for (i = 0; i < carnn__flat_pieces(size); i++) sum += partial[i];
    return sqrt(sum);
}

/* One step: clips the gradient to the global norm `clip` (0: no clipping) and updates the
   weights; the gradient is zeros afterwards. Returns the norm before clipping; where it is not
   finite nothing is changed. */
static double carnn__optimizer_step(carnn__optimizer *o, carnn__engine *e, float *w, float *g,
                                    double lr, double clip, double weight_decay) {
    const carnn__optimizer_kind *kind = &carnn__optimizers[o->number];
    double norm = carnn__flat_norm(e, g, o->size, o->partial);
    carnn__update u;
    if (!(norm <= DBL_MAX)) return norm;
    o->power_a *= kind->a;
    o->power_b *= kind->b;
    u.number = o->number;
    u.kind = kind;
    u.w = w;
    u.g = g;
    u.moment[0] = o->moment[0];
    u.moment[1] = o->moment[1];
    u.clip = clip > 0.0 && norm > clip ? (float)(clip / norm) : 1.0f;
    u.keep = (float)(1.0 - lr * weight_decay);
    u.lr = (float)lr;
    u.correct = 1.0f;
    if (o->number == CARNN__OPTIMIZER_adam) { /* the corrections of both moments, once */
        u.lr = (float)(lr / (1.0 - o->power_a));
        u.correct = (float)(1.0 / sqrt(1.0 - o->power_b));
    }
    carnn__split(e, e->k->optimize, &u, o->size, 16, o->size);
    return norm;
}

#endif
/* =============================================================================================
   @@SEQ   packed batches: sequences of unequal length without padding

     lengths 3, 1, 2      step 0: a0 c0 b0      rows 0 1 2      (ranks: a, c, b)
     (a, b, c)            step 1: a1 c1         rows 3 4
                          step 2: a2            row  5
   ============================================================================================= */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

/* Packs `count` sequences: order[rank] = sequence, longest first, equal lengths in their order;
   start (longest + 2 entries suffice) gets the rows of the steps. Sequences of length 0 have a
   rank but no row. A counting sort: linear in sequences and steps. */
static void carnn__pack_sequences(carnn__packed *p, const uint32_t *length, size_t count,
                                  uint32_t *order, size_t *start) {
    size_t i, t, longest = 0, live = count, row = 0;
    for (i = 0; i < count; i++) longest = carnn__max(longest, length[i]);
    for (t = 0; t <= longest + 1; t++) start[t] = 0;
    for (i = 0; i < count; i++) start[longest - length[i] + 1]++;
    for (t = 1; t <= longest + 1; t++) start[t] += start[t - 1];
    for (i = 0; i < count; i++) order[start[longest - length[i]]++] = (uint32_t)i;
    for (t = 0; t <= longest; t++) {
        while (live && length[order[live - 1]] <= t) live--; /* those that have no step t */
        start[t] = row;
        row += live;
    }
    p->sequences = count;
    p->steps = longest;
    p->rows = row;
    p->start = start;
}

/* Of every row, the row of the same sequence that the other direction reads at that step. A cell
   that reads backwards is a cell with this as its index. */
static void carnn__reverse_index(const carnn__packed *p, uint32_t *reversed) {
    size_t t, b, length;
    for (b = 0; p->steps && b < p->start[1]; b++) {
        length = carnn__rank_length(p, b);
        for (t = 0; t < length; t++)
            reversed[p->start[t] + b] = (uint32_t)(p->start[length - 1 - t] + b);
    }
}

#endif
/* =============================================================================================
   @@CELL   recurrent cells

   A cell reads rows x_t (e), a context c (d) that is constant over a sequence, and its own last
   state h_{t-1} (h). Its gates lie side by side, so that each of these is ONE product for all:

     px = x Wx^T + b    (input.weight, bias)  for all rows at once, before the loop over time
     pc = c Wc^T        (context.weight)      for all sequences at once
     ph = h_{t-1} Wh^T  (recurrent.weight)    at each step, in cells that read their state

   The rest of a cell is elementwise: two functions on sixteen columns of one row (carnn__lanes).
   `forward` makes h_t from px, pc and ph; `backward` makes dpx, dpc and dph from D, the gradient at
   h_t. The scan at the end of the kernels calls them for all steps, sequences and columns.

   In the equations s is the logistic sigmoid, * is elementwise, x is x_t, h' and c' are the state
   one step before, and a_g is the pre-activation of gate g: the sum of its projections.
   ============================================================================================= */

#if defined(CARNN__ISA)

/* The vector operations of @@SIMD and @@MATH under short names, in this section only. */
#define vec carnn__v
#define load CARNN__V(load)
#define loadn CARNN__V(loadn)
#define store CARNN__V(store)
#define storen CARNN__V(storen)
#define add CARNN__V(add)
#define sub CARNN__V(sub)
#define mul CARNN__V(mul)
#define fma CARNN__V(fma)   /* a b + c */
#define fnma CARNN__V(fnma) /* c - a b */
#define set1 CARNN__V(set1)
#define zero CARNN__V(zero)
#define sigmoid CARNN__V(sigmoid)
#define tanh CARNN__V(tanh)
/* The functions below that every cell uses. */
#define get CARNN__K(cell_get)
#define put CARNN__K(cell_put)
#define add_to CARNN__K(cell_add_to)
#define gate CARNN__K(cell_gate)
#define gate_back CARNN__K(cell_gate_back)
#define reaching CARNN__K(cell_reaching)
#define sigmoid_back CARNN__K(sigmoid_back)
#define tanh_back CARNN__K(tanh_back)

/* Entry `number` of an array of a row, e.g. get(r, r->tape, 2). */
static CARNN__INLINE vec get(const carnn__lanes *r, const float *array, size_t number) {
    return load(array + number * r->h + r->j);
}
static CARNN__INLINE void put(const carnn__lanes *r, float *array, size_t number, vec v) {
    store(array + number * r->h + r->j, v);
}
static CARNN__INLINE void add_to(const carnn__lanes *r, float *array, size_t number, vec v) {
    put(r, array, number, add(get(r, array, number), v));
}

/* --- gates --------------------------------------------------------------------------------------
   a_g is what gate g reads of input, state and context, as the table of cells says: the sum of its
   projections or, in mi-rnn, mi-lstm and mi-gru, their multiplicative integration (Zhang 2019,
   Eq. 6.4). With m = Wx x and n = Wh h' (Wh k in the candidate of mi-gru):

     a = alpha * m * n + beta1 * n + beta2 * m + b

   Backward: dm = da * (alpha * n + beta2)   dn = da * (alpha * m + beta1)
             dalpha = da * m * n   dbeta1 = da * n   dbeta2 = da * m   db = da

   The bias stands outside, so here px is m alone, and ph, the n, is kept for backward. Gradients of
   the vectors are summed over the steps of each sequence, then over sequences, so threads change no
   bit. Every gate reads the input and the state, none the context. alpha = 0, beta1 = beta2 = 1 is
   the sum of the projections; alpha = 1, beta1 = beta2 = 0 the simple form (Eq. 6.2). */

static CARNN__INLINE vec gate(const carnn__lanes *r, size_t g) {
    vec a = get(r, r->px, g), slope;
    if (r->kind->vectors) {
        slope = fma(get(r, r->alpha, g), a, get(r, r->beta1, g));
        a = fma(get(r, r->beta2, g), a, get(r, r->bias, g));
        return fma(slope, get(r, r->ph, g), a);
    }
    if (g < r->kind->recurrent_gates) a = add(a, get(r, r->ph, g));
    if (g < r->kind->context_gates) a = add(a, get(r, r->pc, g));
    return a;
}

static CARNN__INLINE void CARNN__K(integration_back)(const carnn__lanes *r, size_t g, vec da) {
    vec m = get(r, r->px, g), n = get(r, r->ph, g), alpha = get(r, r->alpha, g), dan = mul(da, n);
    size_t gates = r->kind->gates;
    add_to(r, r->dpx, g, mul(da, fma(alpha, n, get(r, r->beta2, g))));
    put(r, r->dph, g, mul(da, fma(alpha, m, get(r, r->beta1, g))));
    add_to(r, r->dvectors, g, mul(dan, m));
    add_to(r, r->dvectors, gates + g, dan);
    add_to(r, r->dvectors, 2 * gates + g, mul(da, m));
    add_to(r, r->dvectors, 3 * gates + g, da);
}

/* Gives its gradient to the same projections. Rows may share an input, steps share a context. */
static CARNN__INLINE void gate_back(const carnn__lanes *r, size_t g, vec da) {
    if (r->kind->vectors) {
        CARNN__K(integration_back)(r, g, da);
        return;
    }
    add_to(r, r->dpx, g, da);
    if (g < r->kind->recurrent_gates) put(r, r->dph, g, da);
    if (g < r->kind->context_gates) add_to(r, r->dpc, g, da);
}

/* D: the gradient that reaches h_t from outside the recurrence and from the step after. */
static CARNN__INLINE vec reaching(const carnn__lanes *r) {
    return add(get(r, r->dout, 0), get(r, r->dh, 0));
}

/* The gradient at a of g = s(a) is g (1 - g) dg, that of z = tanh(a) is (1 - z^2) dz. */
static CARNN__INLINE vec sigmoid_back(vec g, vec dg) {
    return mul(mul(dg, g), sub(set1(1.0f), g));
}
static CARNN__INLINE vec tanh_back(vec z, vec dz) {
    return mul(dz, fnma(z, z, set1(1.0f)));
}

/* --- nCARNN, iCARNN, sCARNN ---------------------------------------------------------------------
   Tran et al. 2018, Eq. 3, 5 and 6:

     u = s(a_u)   f = s(a_f)   h = u * (f * k) + (1 - u) * h'

   nCARNN's gates read c, h' and x, iCARNN's c and x; both have the linear candidate k = W x + b.
   sCARNN is iCARNN with k = x. carnn-low has no f (section 5.1). ncarnn-free reads no c (Eq. 11).

   Backward: du = D * (f * k - h'),  df = D * u * k,  dk = D * u * f,  dh' = D * (1 - u).

   Gates: u, f, k. nCARNN keeps u and f on the tape, since ph is lost after the step. The others
   compute them again in backward, which costs less than memory for them. */

static CARNN__INLINE vec CARNN__K(carnn_f)(const carnn__lanes *r) {
    return r->kind->gates > 1 ? sigmoid(gate(r, 1)) : set1(1.0f);
}

static CARNN__INLINE vec CARNN__K(carnn_k)(const carnn__lanes *r) {
    return r->kind->gates > 2 ? gate(r, 2) : get(r, r->x, 0);
}

static CARNN__INLINE void CARNN__K(carnn_forward)(const carnn__lanes *r) {
    vec u = sigmoid(gate(r, 0)), f = CARNN__K(carnn_f)(r), k = CARNN__K(carnn_k)(r);
    vec A = sub(set1(1.0f), u), Z = mul(mul(u, f), k);
    if (r->kind->tape) {
        put(r, r->tape, 0, u);
        put(r, r->tape, 1, f);
    }
    put(r, r->out, 0, fma(A, get(r, r->before, 0), Z));
}

static CARNN__INLINE void CARNN__K(carnn_backward)(const carnn__lanes *r) {
    vec u = r->kind->tape ? get(r, r->tape, 0) : sigmoid(gate(r, 0));
    vec f = r->kind->tape ? get(r, r->tape, 1) : CARNN__K(carnn_f)(r);
    vec k = CARNN__K(carnn_k)(r), D = reaching(r), uD = mul(u, D);
    gate_back(r, 0, sigmoid_back(u, mul(D, sub(mul(f, k), get(r, r->before, 0)))));
    if (r->kind->gates > 1) gate_back(r, 1, sigmoid_back(f, mul(uD, k)));
    if (r->kind->gates > 2) gate_back(r, 2, mul(uD, f));
    else if (r->dx) add_to(r, r->dx, 0, mul(uD, f));
    put(r, r->dh, 0, mul(sub(set1(1.0f), u), D));
}

/* --- RAN ----------------------------------------------------------------------------------------
   Tran et al. 2018, Eq. 2 (Lee et al. 2017), z without a bias:

     i = s(a_i)   f = s(a_f)   z = Wz x   c = i * z + f * c'   h = c (ran) or tanh(c) (ran-tanh)

   Backward, from the gradient Dc at c: di = Dc * z, df = Dc * c', dz = Dc * i, dc' = Dc * f.
   ran: Dc = D; ran-tanh: Dc = dc + D * (1 - h^2) with dc from the step after.

   Gates: i, f, z. Tape: i, f; ran-tanh: i, f, c. */

static CARNN__INLINE void CARNN__K(ran_forward)(const carnn__lanes *r) {
    size_t with_tanh = r->kind->flags & CARNN__HAS_CELL_STATE;
    vec i = sigmoid(gate(r, 0)), f = sigmoid(gate(r, 1)), z = gate(r, 2);
    vec c = fma(f, get(r, with_tanh ? r->c_before : r->before, 0), mul(i, z));
    put(r, r->tape, 0, i);
    put(r, r->tape, 1, f);
    if (with_tanh) put(r, r->tape, 2, c);
    put(r, r->out, 0, with_tanh ? tanh(c) : c);
}

static CARNN__INLINE void CARNN__K(ran_backward)(const carnn__lanes *r) {
    size_t with_tanh = r->kind->flags & CARNN__HAS_CELL_STATE;
    vec i = get(r, r->tape, 0), f = get(r, r->tape, 1), z = gate(r, 2), Dc = reaching(r);
    if (with_tanh) Dc = add(get(r, r->dc, 0), tanh_back(get(r, r->out, 0), Dc));
    gate_back(r, 0, sigmoid_back(i, mul(Dc, z)));
    gate_back(r, 1, sigmoid_back(f, mul(Dc, get(r, with_tanh ? r->c_before : r->before, 0))));
    gate_back(r, 2, mul(Dc, i));
    if (with_tanh) put(r, r->dh, 0, zero());
    put(r, with_tanh ? r->dc : r->dh, 0, mul(f, Dc));
}

/* --- vanilla RNN and mi-rnn ---------------------------------------------------------------------
   h = tanh(a), in the vanilla RNN a = Wx x + Wh h' + b; backward da = (1 - h^2) * D. No tape. */

static CARNN__INLINE void CARNN__K(rnn_forward)(const carnn__lanes *r) {
    put(r, r->out, 0, tanh(gate(r, 0)));
}

static CARNN__INLINE void CARNN__K(rnn_backward)(const carnn__lanes *r) {
    gate_back(r, 0, tanh_back(get(r, r->out, 0), reaching(r)));
    put(r, r->dh, 0, zero());
}

/* --- LSTM, mi-lstm and carnn-high ---------------------------------------------------------------
   Tran et al. 2018, Eq. 1:

     i = s(a_i)   f = s(a_f)   o = s(a_o)   z = tanh(a_z)   c = i * z + f * c'   h = o * tanh(c)

   In carnn-high i, f and o read the context too (section 5.1, "LSTM with three gates that are
   functions of the context").

   Backward: do = D * tanh(c); the gradient at c is Dc = dc + D * o * (1 - tanh(c)^2) with dc from
   the step after; di = Dc * z, df = Dc * c', dz = Dc * i, dc' = Dc * f.

   Gates: i, f, o, z. Tape: i, f, o, z, c. */

static CARNN__INLINE void CARNN__K(lstm_forward)(const carnn__lanes *r) {
    vec i = sigmoid(gate(r, 0)), f = sigmoid(gate(r, 1)), o = sigmoid(gate(r, 2));
    vec z = tanh(gate(r, 3));
    vec c = fma(f, get(r, r->c_before, 0), mul(i, z));
    put(r, r->tape, 0, i);
    put(r, r->tape, 1, f);
    put(r, r->tape, 2, o);
    put(r, r->tape, 3, z);
    put(r, r->tape, 4, c);
    put(r, r->out, 0, mul(o, tanh(c)));
}

static CARNN__INLINE void CARNN__K(lstm_backward)(const carnn__lanes *r) {
    vec i = get(r, r->tape, 0), f = get(r, r->tape, 1), o = get(r, r->tape, 2);
    vec z = get(r, r->tape, 3), tanh_c = tanh(get(r, r->tape, 4));
    vec D = reaching(r), Dc = add(get(r, r->dc, 0), tanh_back(tanh_c, mul(D, o)));
    gate_back(r, 0, sigmoid_back(i, mul(Dc, z)));
    gate_back(r, 1, sigmoid_back(f, mul(Dc, get(r, r->c_before, 0))));
    gate_back(r, 2, sigmoid_back(o, mul(D, tanh_c)));
    gate_back(r, 3, tanh_back(z, mul(Dc, i)));
    put(r, r->dc, 0, mul(Dc, f));
    put(r, r->dh, 0, zero());
}

/* --- GRU and mi-gru -----------------------------------------------------------------------------
   With the update gate u = s(a_u) and the reset gate q = s(a_q):

     h = (1 - u) * h' + u * z
     gru (Cho et al. 2014):      z = tanh(Wz x + b + Uz k)     k = q * h'
     gru-after (cuDNN, PyTorch): z = tanh(Wz x + b + q * k)    k = Uz h' + b'

   cuDNN and PyTorch exchange u and 1 - u: the weights of u have the other sign.

   Backward: du = D * (z - h'), dz = D * u, dh' = (1 - u) * D and what the products bring;
   gru: dk = Uz^T da_z, dq = dk * h', dh' += dk * q; gru-after: dq = da_z * k, dk = da_z * q.

   Gates: u, q, z. Tape: u, q, z, k. gru needs two products in a step, so its functions run in two
   stages: forward 0, then 1; backward 1, then 0. r->reset passes k forward and dk backward. */

static CARNN__INLINE void CARNN__K(gru_mix)(const carnn__lanes *r, vec u, vec z) {
    vec before = get(r, r->before, 0);
    put(r, r->tape, 2, z);
    put(r, r->out, 0, fma(u, sub(z, before), before));
}

/* Returns da_z; gives u its gradient and leaves (1 - u) * D in dh. */
static CARNN__INLINE vec CARNN__K(gru_mix_back)(const carnn__lanes *r) {
    vec D = reaching(r), u = get(r, r->tape, 0), z = get(r, r->tape, 2);
    gate_back(r, 0, sigmoid_back(u, mul(D, sub(z, get(r, r->before, 0)))));
    put(r, r->dh, 0, fnma(u, D, D));
    return tanh_back(z, mul(D, u));
}

static CARNN__INLINE void CARNN__K(gru_forward)(const carnn__lanes *r) {
    if (r->stage == 0) {
        vec q = sigmoid(gate(r, 1)), k = mul(q, get(r, r->before, 0));
        put(r, r->tape, 0, sigmoid(gate(r, 0)));
        put(r, r->tape, 1, q);
        put(r, r->tape, 3, k);
        put(r, r->reset, 0, k);
    } else {
        CARNN__K(gru_mix)(r, get(r, r->tape, 0), tanh(gate(r, 2)));
    }
}

static CARNN__INLINE void CARNN__K(gru_backward)(const carnn__lanes *r) {
    if (r->stage == 1) {
        gate_back(r, 2, CARNN__K(gru_mix_back)(r));
    } else {
        vec dk = get(r, r->reset, 0), q = get(r, r->tape, 1);
        gate_back(r, 1, sigmoid_back(q, mul(dk, get(r, r->before, 0))));
        put(r, r->dh, 0, fma(dk, q, get(r, r->dh, 0)));
    }
}

static CARNN__INLINE void CARNN__K(gru_after_forward)(const carnn__lanes *r) {
    vec u = sigmoid(gate(r, 0)), q = sigmoid(gate(r, 1)), k = get(r, r->ph, 2);
    put(r, r->tape, 0, u);
    put(r, r->tape, 1, q);
    put(r, r->tape, 3, k);
    CARNN__K(gru_mix)(r, u, tanh(fma(q, k, get(r, r->px, 2))));
}

static CARNN__INLINE void CARNN__K(gru_after_backward)(const carnn__lanes *r) {
    vec da_z = CARNN__K(gru_mix_back)(r), q = get(r, r->tape, 1);
    gate_back(r, 1, sigmoid_back(q, mul(da_z, get(r, r->tape, 3))));
    add_to(r, r->dpx, 2, da_z);
    put(r, r->dph, 2, mul(da_z, q));
}

/* --- a cell of your own -------------------------------------------------------------------------
   A program adds cells to the table without touching this file. Before CARNN_IMPLEMENTATION:

     #define CARNN_EXTRA_CELLS(X) X(mgu, mgu, "mgu", "minimal gated unit", 2, 2, 0, 2, 0, 3, 0, \
                                    0.0f, 0, 0.0f, 0.0f, CARNN__TWO_STAGES)
     #define CARNN_EXTRA_CELL_FILE "examples/mgu.h"

   The entries have the columns of CARNN__CELLS. The file, found from where this header lies or on
   the include path, defines both functions of each, here mgu_forward and mgu_backward; it is
   included here, once for each instruction set, so it has no include guard and no #include. It may
   use, like the cells above:

     vec                            sixteen floats
     add sub mul fma fnma set1 zero sigmoid tanh
     get put add_to                 arrays of the row r (carnn__lanes): r->tape, r->before, ...
     gate(r, g)                     a_g: px + ph + pc, as far as gate g is projected, or their
                                    multiplicative integration
     gate_back(r, g, da)            its gradient, to dpx, dph and dpc
     reaching(r), sigmoid_back(g, dg), tanh_back(z, dz)

   forward writes r->out and its part of the tape; it may run twice on the same columns, so it does
   not change what it reads. backward gives each gate its gradient once, to
   gate_back or to dpx, dph and dpc (dph is written, the others are added to), and replaces r->dh
   (and r->dc) by the gradients at h' (and c') that do not come through the recurrent product; with
   CARNN__INPUT_IS_CANDIDATE it adds to r->dx where that is not NULL. Sequences must not influence
   each other, nor columns but through products. carnn_gradcheck("mgu", ...) checks it all.

   These names are private ones, which other versions may change. A model file names its cell: only
   programs that have it can load the model. */

#if defined(CARNN_EXTRA_CELL_FILE)
#include CARNN_EXTRA_CELL_FILE
#endif

/* --- the linear recurrence by itself ------------------------------------------------------------
   y_t = A_t * y_{t-1} + Z_t over one sequence so long that threads should share its steps, not its
   columns; backward is the same in reverse: see carnn_recurrence. A block's state is linear in the
   one before it, y = product * before + end. So blocks run side by side from 0, the states between
   them follow one from the other, and a second pass adds what flows in. Blocks have a fixed length,
   so threads change no bit. Bound by memory. */

static CARNN__INLINE void CARNN__K(recur_lanes)(const carnn__recurrence *r, size_t block, size_t j,
                                                size_t n) {
    size_t step = block * CARNN__RECURRENCE_BLOCK, C = r->columns;
    size_t stop = step + CARNN__RECURRENCE_BLOCK < r->steps ? step + CARNN__RECURRENCE_BLOCK
                                                           : r->steps;
    vec product = set1(1.0f), y = zero();
    if (r->carrying) y = loadn(r->end + block * C + j, n);
    else if (!block && r->first) y = loadn(r->first + j, n);
    for (; step < stop; step++) {
        size_t row = r->reverse ? r->steps - 1 - step : step;
        vec A = zero();
        if (!r->reverse) A = loadn(r->A + row * C + j, n);
        else if (step) A = loadn(r->A + (row + 1) * C + j, n);
        if (r->carrying) {
            y = mul(A, y);
            storen(r->y + row * C + j, n, add(loadn(r->y + row * C + j, n), y));
        } else {
            product = mul(product, A);
            y = fma(A, y, loadn(r->Z + row * C + j, n));
            storen(r->y + row * C + j, n, y);
        }
    }
    if (r->carrying) return;
    storen(r->end + block * C + j, n, y);
    storen(r->product + block * C + j, n, product);
}

static void CARNN__K(recur)(const void *job, size_t from, size_t to) {
    const carnn__recurrence *r = (const carnn__recurrence *)job;
    size_t block, j;
    for (block = from; block < to; block++) {
        if (r->carrying && !block) continue; /* nothing flows into the first */
        for (j = 0; j + 16 <= r->columns; j += 16) CARNN__K(recur_lanes)(r, block, j, 16);
        if (j < r->columns) CARNN__K(recur_lanes)(r, block, j, r->columns - j);
    }
}

/* --- the listener of an RCRN --------------------------------------------------------------------
   Tay et al. 2018, Eq. 15 and 16, with the sigmoids and the state of the authors' code. It is the
   linear recurrence with the gates computed on the way, so that neither they nor the products of
   the second line are ever stored:

     F = s(s1)   O = s(s2), or s2 where it is raw
     c = F * c' + (1 - F) * s3     h = O * c

   Backward, from the gradient G at h: the one at c is D = G * O + F_{t+1} * D_{t+1};
   ds1 = D * (c' - s3) * F (1 - F), ds2 = G * c * O (1 - O), raw G * c, ds3 = D * (1 - F).

   Columns are independent: threads share blocks of sixteen of them. */

static CARNN__INLINE void CARNN__K(listen_lanes)(const carnn__listener *l, size_t t, size_t b,
                                                 size_t j, size_t n, int back) {
    size_t row = l->seq->start[t] + b, at = row * l->h + j, in = at;
    vec F, O, s2, s3, c, before = zero(), G, D;
    if (l->reversed) in = l->reversed[row] * l->h + j;
    F = sigmoid(loadn(l->s[0] + in, n));
    s2 = loadn(l->s[1] + in, n);
    s3 = loadn(l->s[2] + in, n);
    O = l->raw ? s2 : sigmoid(s2);
    if (t) before = loadn(l->c + (l->seq->start[t - 1] + b) * l->h + j, n);
    else if (l->first) before = loadn(l->first + b * l->h + j, n);
    if (!back) {
        c = fma(F, sub(before, s3), s3);
        storen(l->c + at, n, c);
        storen(l->out + at, n, mul(O, c));
        return;
    }
    c = loadn(l->c + at, n);
    G = loadn(l->dout + at, n);
    D = fma(G, O, loadn(l->dc + b * l->h + j, n));
    storen(l->ds[0] + in, n, sigmoid_back(F, mul(D, sub(before, s3))));
    storen(l->ds[1] + in, n, l->raw ? mul(G, c) : sigmoid_back(O, mul(G, c)));
    storen(l->ds[2] + in, n, fnma(F, D, D));
    storen(l->dc + b * l->h + j, n, mul(F, D));
}

static CARNN__INLINE void CARNN__K(listen_blocks)(const carnn__listener *l, size_t from, size_t to,
                                                  int back) {
    size_t i, b, j, end = 16 * to < l->h ? 16 * to : l->h;
    for (i = 0; i < l->seq->steps; i++) {
        size_t t = back ? l->seq->steps - 1 - i : i;
        for (b = 0; b < l->seq->start[t + 1] - l->seq->start[t]; b++)
            for (j = 16 * from; j < end; j += 16)
                CARNN__K(listen_lanes)(l, t, b, j, end - j < 16 ? end - j : 16, back);
    }
}

static void CARNN__K(listen)(const void *job, size_t from, size_t to) {
    CARNN__K(listen_blocks)((const carnn__listener *)job, from, to, 0);
}

static void CARNN__K(listen_back)(const void *job, size_t from, size_t to) {
    CARNN__K(listen_blocks)((const carnn__listener *)job, from, to, 1);
}

/* --- the scan -----------------------------------------------------------------------------------
   Over steps, sequences and columns: rows stream through the cache in the order in which they lie.
   Bound by the vector unit (two sigmoids a column) as long as the rows of a step stay in the
   second-level cache. The loops are inline functions that get a cell's function and its table entry
   as constants, so each cell has loops of its own in which its function is expanded once. */

/* The row of step t of the sequence of rank b. */
static CARNN__INLINE carnn__lanes CARNN__K(scan_row)(const carnn__scan *s,
                                                     const carnn__cell_kind *k, int back, size_t t,
                                                     size_t b) {
    size_t h = s->h, row = s->seq->start[t] + b, input = s->index ? s->index[row] : row;
    size_t last = t ? s->seq->start[t - 1] + b : 0, has_c = k->flags & CARNN__HAS_CELL_STATE;
    size_t has_x = k->flags & CARNN__INPUT_IS_CANDIDATE;
    carnn__lanes r;
    r.kind = k;
    r.h = h;
    r.j = 0;
    r.stage = s->stage;
    r.x = has_x ? (float *)s->x + input * h : NULL;
    r.px = s->px + input * k->gates * h;
    r.pc = s->pc + b * k->context_gates * h;
    r.ph = s->ph + (k->vectors ? row : b) * k->recurrent_gates * h;
    r.alpha = k->vectors ? (float *)s->alpha : NULL;
    r.beta1 = k->vectors ? (float *)s->beta1 : NULL;
    r.beta2 = k->vectors ? (float *)s->beta2 : NULL;
    r.bias = k->vectors ? (float *)s->bias : NULL;
    r.before = t ? s->out + last * h : (float *)s->h0 + b * h;
    r.c_before = !has_c ? NULL
                 : t    ? s->tape + (last * k->tape + k->tape - 1) * h
                        : (float *)s->c0 + b * h;
    r.tape = s->tape + row * k->tape * h;
    r.out = s->out + row * h;
    r.reset = k->flags & CARNN__TWO_STAGES ? s->reset + b * h : NULL;
    r.dout = back ? (float *)s->dout + row * h : NULL;
    r.dh = back ? s->dh + b * h : NULL;
    r.dc = back && has_c ? s->dc + b * h : NULL;
    r.dx = back && has_x && s->dx ? s->dx + input * h : NULL;
    r.dpx = back ? s->dpx + input * k->gates * h : NULL;
    r.dpc = back ? s->dpc + b * k->context_gates * h : NULL;
    r.dph = back ? s->dph + row * k->recurrent_gates * h : NULL;
    r.dvectors = back && k->vectors ? s->dvectors + b * 4 * k->gates * h : NULL;
    return r;
}

/* The last columns of a row, j .. j + n - 1, may be fewer than sixteen. They are copied into a row
   of sixteen with zeros behind them, `wide`, whose arrays lie in `room`, and what the cell has
   written there is copied back: so a cell knows only whole vectors, and its code is there once. */
typedef struct CARNN__K(tail) {
    size_t h, j, n;
    float *room; /* for the next array; NULL: copies back */
} CARNN__K(tail);

static CARNN__INLINE void CARNN__K(tail_array)(CARNN__K(tail) *a, float *narrow, float **wide,
                                               size_t entries) {
    size_t i;
    if (a->room) *wide = narrow ? a->room : NULL;
    for (i = 0; narrow && i < entries; i++)
        if (!a->room) {
            storen(narrow + i * a->h + a->j, a->n, load(*wide + i * CARNN__LANES));
        } else {
            store(a->room, loadn(narrow + i * a->h + a->j, a->n));
            a->room += CARNN__LANES;
        }
}

/* What forward writes, and what backward writes. */
static CARNN__INLINE void CARNN__K(tail_results)(const carnn__lanes *r, CARNN__K(tail) *a,
                                                 carnn__lanes *wide) {
    const carnn__cell_kind *k = r->kind;
    if (a->room || !r->dout) {
        CARNN__K(tail_array)(a, r->tape, &wide->tape, k->tape);
        CARNN__K(tail_array)(a, r->out, &wide->out, 1);
        CARNN__K(tail_array)(a, r->reset, &wide->reset, 1);
    }
    CARNN__K(tail_array)(a, r->dh, &wide->dh, 1);
    CARNN__K(tail_array)(a, r->dc, &wide->dc, 1);
    CARNN__K(tail_array)(a, r->dx, &wide->dx, 1);
    CARNN__K(tail_array)(a, r->dpx, &wide->dpx, k->gates);
    CARNN__K(tail_array)(a, r->dpc, &wide->dpc, k->context_gates);
    CARNN__K(tail_array)(a, r->dph, &wide->dph, k->recurrent_gates);
    CARNN__K(tail_array)(a, r->dvectors, &wide->dvectors, 4 * k->gates);
}

static CARNN__NOINLINE void CARNN__K(tail_open)(const carnn__lanes *r, size_t j, size_t n,
                                                carnn__lanes *wide, float *room) {
    const carnn__cell_kind *k = r->kind;
    CARNN__K(tail) a = {r->h, j, n, room};
    CARNN__K(tail_results)(r, &a, wide);
    CARNN__K(tail_array)(&a, r->x, &wide->x, 1);
    CARNN__K(tail_array)(&a, r->px, &wide->px, k->gates);
    CARNN__K(tail_array)(&a, r->pc, &wide->pc, k->context_gates);
    CARNN__K(tail_array)(&a, r->ph, &wide->ph, k->recurrent_gates);
    CARNN__K(tail_array)(&a, r->alpha, &wide->alpha, k->gates);
    CARNN__K(tail_array)(&a, r->beta1, &wide->beta1, k->gates);
    CARNN__K(tail_array)(&a, r->beta2, &wide->beta2, k->gates);
    CARNN__K(tail_array)(&a, r->bias, &wide->bias, k->gates);
    CARNN__K(tail_array)(&a, r->before, &wide->before, 1);
    CARNN__K(tail_array)(&a, r->c_before, &wide->c_before, 1);
    CARNN__K(tail_array)(&a, r->dout, &wide->dout, 1);
}

static CARNN__NOINLINE void CARNN__K(tail_close)(const carnn__lanes *r, size_t j, size_t n,
                                                 carnn__lanes *wide) {
    CARNN__K(tail) a = {r->h, j, n, NULL};
    CARNN__K(tail_results)(r, &a, wide);
}

/* Columns [from, to) of the row of step t of the sequence of rank b. The cell is called in one
   place, for the whole vectors and then for the columns that are left: forward for the last sixteen
   columns once more, which changes nothing; backward, which adds, for a copy of the rest. */
static CARNN__INLINE void CARNN__K(scan_columns)(const carnn__scan *s, const carnn__cell_kind *k,
                                                 carnn__lanes_fn cell, int back, size_t t, size_t b,
                                                 size_t from, size_t to) {
    carnn__lanes r = CARNN__K(scan_row)(s, k, back, t, b), row, wide;
    float room[sizeof(carnn__lanes_room) / sizeof(float)];
    size_t rest = (to - from) % CARNN__LANES, end = to - rest;
    int last = 0, copied = back || to - from < CARNN__LANES;
    for (r.j = from;; last = 1) {
        for (; r.j < end; r.j += CARNN__LANES) cell(&r);
        if (last || !rest) break;
        if (!copied) {
            r.j = to - CARNN__LANES;
            end = to;
            continue;
        }
        row = CARNN__K(scan_row)(s, k, back, t, b);
        CARNN__K(tail_open)(&row, end, rest, &wide, room);
        r = wide;
        r.kind = k; /* as before, for the compiler */
        r.h = end = CARNN__LANES;
        r.stage = s->stage;
        r.j = 0;
    }
    if (last && copied) CARNN__K(tail_close)(&row, to - rest, rest, &wide);
}

/* All rows of steps [t0, t1), backward from the last step to the first. */
static CARNN__INLINE void CARNN__K(scan)(const carnn__scan *s, const carnn__cell_kind *k,
                                         carnn__lanes_fn cell, int back, size_t t0, size_t t1,
                                         size_t from, size_t to) {
    size_t i, t, b;
    for (i = t0; i < t1; i++) {
        t = back ? t1 - 1 - (i - t0) : i;
        for (b = s->first; b < carnn__scan_end(s, t); b++)
            CARNN__K(scan_columns)(s, k, cell, back, t, b, from, to);
    }
}

#define CARNN__SCAN(id, functions, ...)                                                            \
    static void CARNN__K(id##_scan)(const carnn__scan *s, size_t t0, size_t t1, size_t from,       \
                                    size_t to) {                                                   \
        CARNN__K(scan)(s, &carnn__cells[CARNN__CELL_##id], CARNN__K(functions##_forward), 0, t0,   \
                       t1, from, to);                                                              \
    }                                                                                              \
    static void CARNN__K(id##_scan_back)(const carnn__scan *s, size_t t0, size_t t1, size_t from,  \
                                         size_t to) {                                              \
        CARNN__K(scan)(s, &carnn__cells[CARNN__CELL_##id], CARNN__K(functions##_backward), 1, t0,  \
                       t1, from, to);                                                              \
    }
CARNN__CELLS(CARNN__SCAN)
#undef CARNN__SCAN

#undef vec
#undef load
#undef loadn
#undef store
#undef storen
#undef add
#undef sub
#undef mul
#undef fma
#undef fnma
#undef set1
#undef zero
#undef sigmoid
#undef tanh
#undef get
#undef put
#undef add_to
#undef gate
#undef gate_back
#undef reaching
#undef sigmoid_back
#undef tanh_back

#endif

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

CARNN_API const char *carnn_cell_name(size_t number) {
    return number < CARNN__CELL_COUNT ? carnn__cells[number].name : NULL;
}

CARNN_API const char *carnn_cell_title(size_t number) {
    return number < CARNN__CELL_COUNT ? carnn__cells[number].title : NULL;
}

/* Number of the cell of that name, CARNN__CELL_COUNT if there is none. */
static size_t carnn__cell_number(const char *name) {
    size_t i = 0;
    while (i < CARNN__CELL_COUNT && strcmp(carnn__cells[i].name, name)) i++;
    return i;
}

/* A cell of a model: its kind, sizes, and where its weights are in the store. */
typedef struct carnn__cell {
    size_t kind; /* in carnn__cells */
    size_t e, h, d; /* sizes of input, hidden state, context (0: none) */
    size_t input, bias, alpha, context, recurrent, recurrent_bias; /* parameter numbers */
    size_t skip, skipping; /* k of a skip connection (0: none), parameter number of its weights */
} carnn__cell;

/* Declares a vector (1, n) that starts at 0 but for `count` of its numbers from `from` on. */
static size_t carnn__cell_vector(carnn__store *store, const char *prefix, const char *name,
                                 size_t n, size_t from, size_t count, float value) {
    size_t number = carnn__declare(store, prefix, name, 1, n, 1, CARNN__INIT_ZERO, value);
    carnn__param *p = &store->item[carnn__min(number, CARNN__PARAMS_MAX - 1)];
    p->open_from = from;
    p->open_count = count;
    return number;
}

/* Declares the weights: (gates h, e), (bias gates h), (context gates h, d), (recurrent gates h, h),
   each gate a matrix of its own to the initialiser; vectors (gates h): beta1, beta2 after alpha. */
static void carnn__cell_declare(carnn__cell *cell, carnn__store *store, const char *prefix,
                                size_t kind, size_t e, size_t h, size_t d) {
    const carnn__cell_kind *k = &carnn__cells[kind];
    const size_t all = k->gates * h;
    cell->kind = kind;
    cell->e = e;
    cell->h = h;
    cell->d = k->context_gates ? d : 0;
    cell->skip = 0;
    cell->input = carnn__declare(store, prefix, "input.weight", all, e, h, CARNN__INIT_GLOROT,
                                 0.0f);
    cell->bias = carnn__cell_vector(store, prefix, "bias", k->bias_gates * h, k->open_gate * h, h,
                                    k->open_bias);
    if (k->vectors) {
        cell->alpha = carnn__cell_vector(store, prefix, "alpha", all, 0, all, k->alpha);
        carnn__cell_vector(store, prefix, "beta1", all, 0, all, k->beta);
        carnn__cell_vector(store, prefix, "beta2", all, 0, all, k->beta);
    }
    if (cell->d)
        cell->context = carnn__declare(store, prefix, "context.weight", k->context_gates * h, d, h,
                                       CARNN__INIT_GLOROT, 0.0f);
    if (k->recurrent_gates)
        cell->recurrent = carnn__declare(store, prefix, "recurrent.weight", k->recurrent_gates * h,
                                         h, h, CARNN__INIT_GLOROT, 0.0f);
    if (k->recurrent_bias)
        cell->recurrent_bias = carnn__declare(store, prefix, "recurrent.bias", 1,
                                              k->recurrent_gates * h, 1, CARNN__INIT_ZERO, 0.0f);
}

/* Skip connections (Zhang 2019, section 4.4.4): the gates that read h_{t-1} read h_{t-k} too,

     a_t = Wx x_t + Wh h_{t-1} + Wk h_{t-k} + b

   so that a signal crosses T steps in T / k of them. Wk (recurrent gates h, h); states before the
   first are zero. Backward: the gradient at h_{t-k} gains Wk^T da_t, dWk += da_t h_{t-k}^T. */
static void carnn__cell_declare_skip(carnn__cell *cell, carnn__store *store, const char *prefix,
                                     size_t k) {
    size_t gates = carnn__cells[cell->kind].recurrent_gates;
    if (k < 2 || !gates) return;
    cell->skip = k;
    cell->skipping = carnn__declare(store, prefix, "skip.weight", gates * cell->h, cell->h,
                                    cell->h, CARNN__INIT_GLOROT, 0.0f);
}

/* --- a cell at work -----------------------------------------------------------------------------
   Inputs are projected once; then any number of packed batches over them, each with its own
   contexts, run forward and backward; then one product takes the gradients of all of them back
   through the input projection. */

/* A recurrent product of a step; a cell with two stages has one for each. */
typedef struct carnn__cell_product {
    size_t first, gates;  /* the gates that it makes */
    float *weight, *back; /* recurrent weights, packed for h' Wh^T and for dph Wh */
    float *skip, *skip_back; /* those of the skip connection */
} carnn__cell_product;

/* States that are mixed with those of another text (Chen et al. 2018, Eq. 2 and 3): where a row is
   aligned with a row x of the other text, its state k = h_t is replaced, before the next step reads
   it, by

     g = s(a + W k)      h = k + g * (x - k)      a: of the sequence, W_H H_X + b in the paper

   Backward, D the gradient at h: da = D * (x - k) * g (1 - g), dx += D * g,
   dk = D * (1 - g) + W^T da. What a step carries beside h stays as it is. */
typedef struct carnn__state_gate {
    size_t count;          /* M: aligned rows, in the order in which they are packed */
    size_t *step;          /* (T + 1) the first one of each step */
    uint32_t *row, *other; /* (M) packed row, row of x */
    uint32_t *pair;        /* (M) row of a */
    const float *a, *w;    /* (B, h), (h, h) */
    const float *x;        /* (R, stride) of which h columns are read */
    float *dx;
    size_t stride;
    float *k, *g, *da, *dk; /* (M, h) */
} carnn__state_gate;

typedef struct carnn__cell_run {
    const carnn__cell *cell;
    const carnn__store *store; /* names; the weights are in w, their gradients in g */
    const float *w;
    float *g;
    carnn__scan scan;
    size_t inputs;      /* U */
    const float *x;     /* (U, e) */
    const float *c;     /* (B, d) */
    const float *zeros; /* (B, h) */
    float *last;        /* (N, h): h_{t-1} of every row, for the gradient of Wh */
    carnn__cell_product product[2];
    size_t products;
    int shares;         /* the memory for the backward pass is that of several runs */
    carnn__state_gate *gate; /* or NULL; set after carnn__cell_plan */
    const float *past;  /* (skip, h): states before the only sequence, the latest last; or NULL */
} carnn__cell_run;

/* Takes the memory for at most U inputs, N rows, B sequences; `g` NULL: forward only. Runs of one
   kind and size may share what they need only during a pass, that of `other` (or NULL): then each
   is projected and run forward, and backward and back through the projection, before the next. */
static void carnn__cell_plan(carnn__cell_run *r, const carnn__cell *cell, const carnn__store *store,
                             const float *w, float *g, carnn__arena *arena, size_t U, size_t N,
                             size_t B, const carnn__cell_run *other) {
    const carnn__cell_kind *k = &carnn__cells[cell->kind];
    size_t h = cell->h, recurrent = k->recurrent_gates, i;
    carnn__scan *s = &r->scan;
    memset(r, 0, sizeof *r);
    r->cell = cell;
    r->store = store;
    r->w = w;
    r->g = g;
    r->zeros = carnn__floats(arena, B, h);
    if (r->zeros) memset((float *)r->zeros, 0, B * h * sizeof(float));
    r->products = !recurrent ? 0 : k->flags & CARNN__TWO_STAGES ? 2 : 1;
    for (i = 0; i < r->products; i++) {
        carnn__cell_product *p = &r->product[i];
        p->first = i ? recurrent - 1 : 0;
        p->gates = i ? 1 : recurrent + 1 - r->products;
        p->weight = carnn__floats(arena, 1, carnn__packed_size(p->gates * h, h));
        if (g) p->back = carnn__floats(arena, 1, carnn__packed_size(h, p->gates * h));
        if (!cell->skip) continue;
        p->skip = carnn__floats(arena, 1, carnn__packed_size(p->gates * h, h));
        if (g) p->skip_back = carnn__floats(arena, 1, carnn__packed_size(h, p->gates * h));
    }
    s->h = h;
    if (other && k->flags & CARNN__TAPE_SUFFICES) s->px = other->scan.px;
    else s->px = carnn__floats(arena, U, k->gates * h);
    s->pc = carnn__floats(arena, B, k->context_gates * h);
    s->ph = carnn__floats(arena, k->vectors ? N : B, recurrent * h);
    s->out = carnn__floats(arena, N, h);
    s->tape = carnn__floats(arena, N, k->tape * h);
    if (k->flags & CARNN__TWO_STAGES) s->reset = carnn__floats(arena, B, h);
    if (!g) return;
    if (other) {
        s->dh = other->scan.dh;
        s->dc = other->scan.dc;
        s->dpx = other->scan.dpx;
        s->dpc = other->scan.dpc;
        s->dph = other->scan.dph;
        s->dvectors = other->scan.dvectors;
        r->last = other->last;
        return;
    }
    s->dh = carnn__floats(arena, B, h);
    if (k->flags & CARNN__HAS_CELL_STATE) s->dc = carnn__floats(arena, B, h);
    s->dpx = carnn__floats(arena, U, k->gates * h);
    s->dpc = carnn__floats(arena, B, k->context_gates * h);
    s->dph = carnn__floats(arena, N, recurrent * h);
    if (k->vectors) s->dvectors = carnn__floats(arena, B, 4 * k->gates * h);
    if (recurrent) r->last = carnn__floats(arena, N, h);
}

static inline const float *carnn__cell_weight(const carnn__cell_run *r, size_t number) {
    return r->w + r->store->item[number].offset;
}

/* Readies the recurrent weights: call it whenever the weights have changed. */
static void carnn__cell_ready(carnn__cell_run *r, carnn__engine *e) {
    size_t h = r->cell->h, i;
    for (i = 0; i < r->products; i++) {
        const carnn__cell_product *p = &r->product[i];
        const float *w = carnn__cell_weight(r, r->cell->recurrent) + p->first * h * h;
        carnn__pack(e, CARNN__NT, p->gates * h, h, w, h, p->weight);
        if (r->g) carnn__pack(e, CARNN__NN, h, p->gates * h, w, h, p->back);
        if (!r->cell->skip) continue;
        w = carnn__cell_weight(r, r->cell->skipping) + p->first * h * h;
        carnn__pack(e, CARNN__NT, p->gates * h, h, w, h, p->skip);
        if (r->g) carnn__pack(e, CARNN__NN, h, p->gates * h, w, h, p->skip_back);
    }
}

/* The gates whose bias is in px. */
static size_t carnn__cell_biased(const carnn__cell_kind *k) {
    return k->vectors ? 0 : k->bias_gates;
}

/* px = x Wx^T + b for the inputs [from, to) of x (U, e); gates without a bias are a product of
   their own. */
static void carnn__cell_project(carnn__cell_run *r, carnn__engine *e, const float *x, size_t from,
                                size_t to) {
    const carnn__cell_kind *k = &carnn__cells[r->cell->kind];
    size_t h = r->cell->h, in = r->cell->e, width = k->gates * h;
    size_t biased = carnn__cell_biased(k) * h;
    const float *wx = carnn__cell_weight(r, r->cell->input);
    float *px = r->scan.px + from * width;
    r->x = r->scan.x = x;
    r->inputs = to;
    x += from * in;
    carnn__matmul(e, CARNN__NT, to - from, biased, in, x, in, wx, in,
                  carnn__cell_weight(r, r->cell->bias), px, width);
    if (biased < width)
        carnn__matmul(e, CARNN__NT, to - from, width - biased, in, x, in, wx + biased * in, in,
                      NULL, px + biased, width);
    if (r->g && !r->shares)
        memset(r->scan.dpx + from * width, 0, (to - from) * width * sizeof(float));
}

/* pc = c Wc^T for the contexts c (B, d) of the sequences, in the order of their ranks; zeros for a
   cell that is declared without one (d is 0). */
static void carnn__cell_context(carnn__cell_run *r, carnn__engine *e, const float *c, size_t B) {
    const carnn__cell_kind *k = &carnn__cells[r->cell->kind];
    size_t d = r->cell->d, width = k->context_gates * r->cell->h;
    r->c = c;
    if (!d) memset(r->scan.pc, 0, B * width * sizeof(float));
    else
        carnn__matmul(e, CARNN__NT, B, width, d, c, d, carnn__cell_weight(r, r->cell->context), d,
                      NULL, r->scan.pc, width);
}

typedef struct carnn__scan_job {
    const carnn__scan *scan;
    carnn__scan_fn fn;
    size_t t0, t1, columns; /* of a piece */
} carnn__scan_job;

static void carnn__scan_piece(void *job_, size_t piece, size_t worker) {
    const carnn__scan_job *job = (const carnn__scan_job *)job_;
    size_t from = piece * job->columns;
    (void)worker;
    job->fn(job->scan, job->t0, job->t1, from, carnn__min(from + job->columns, job->scan->h));
}

/* Steps [t0, t1). Columns are independent of each other in everything elementwise, so threads share
   them; below about 16,000 states waking a thread costs more than it gives. */
static void carnn__scan_steps(const carnn__cell_run *r, carnn__engine *e, size_t t0, size_t t1) {
    const carnn__scan *s = &r->scan;
    size_t threads = carnn__pool_active(e->pool);
    size_t states = (s->seq->start[t1] - s->seq->start[t0]) * s->h;
    carnn__scan_job job = {s, e->k->scan[r->cell->kind][s->back], t0, t1, s->h};
    if (threads > 1 && states >= 16384) job.columns = carnn__part(s->h, threads, CARNN__LANES);
    if (s->h)
        carnn__parallel(e->pool, carnn__parts(s->h, job.columns), carnn__scan_piece, &job);
}

/* The product of a stage of step t. Forward: ph = h' Wh^T (+ b). Backward: dh' += dph Wh. The
   second of two reads the cell's k in `reset`, e.g. r * h', and leaves dk there. */
static void carnn__cell_recur(const carnn__cell_run *r, carnn__engine *e, size_t t) {
    const carnn__scan *s = &r->scan;
    const carnn__cell_product *p = &r->product[s->stage];
    size_t h = s->h, from = s->first, live = carnn__scan_end(s, t) - from;
    const carnn__cell_kind *k = &carnn__cells[r->cell->kind];
    size_t columns = p->gates * h, width = k->recurrent_gates * h;
    if (s->back) {
        carnn__matmul(e, s->stage ? CARNN__PACKED : CARNN__PACKED | CARNN__ADD, live, h, columns,
                      s->dph + (s->seq->start[t] + from) * width + p->first * h, width,
                      p->back, 0, NULL, (s->stage ? s->reset : s->dh) + from * h, h);
    } else {
        const float *state = s->stage ? s->reset : t ? s->out + s->seq->start[t - 1] * h : s->h0;
        const float *bias =
            k->recurrent_bias ? carnn__cell_weight(r, r->cell->recurrent_bias) : NULL;
        size_t row = (k->vectors ? s->seq->start[t] : 0) + from; /* in ph */
        carnn__matmul(e, CARNN__PACKED, live, columns, h, state + from * h, h, p->weight, 0, bias,
                      s->ph + row * width + p->first * h, width);
    }
}

/* The same of the skip connection: ph += h_{t-k} Wk^T, dh_{t-k} += dph Wk. */
static void carnn__cell_skip(const carnn__cell_run *r, carnn__engine *e, size_t t) {
    const carnn__scan *s = &r->scan;
    const carnn__cell_product *p = &r->product[s->stage];
    const carnn__cell_kind *kind = &carnn__cells[r->cell->kind];
    size_t k = r->cell->skip, h = s->h, from = s->first, live = carnn__scan_end(s, t) - from;
    size_t columns = p->gates * h, width = kind->recurrent_gates * h, before;
    if (!k || (t < k && (s->back || !r->past))) return;
    before = t < k ? 0 : (s->seq->start[t - k] + from) * h;
    if (s->back)
        carnn__matmul(e, CARNN__PACKED | CARNN__ADD, live, h, columns,
                      s->dph + (s->seq->start[t] + from) * width + p->first * h, width,
                      p->skip_back, 0, NULL, (float *)s->dout + before, h);
    else
        carnn__matmul(e, CARNN__PACKED | CARNN__ADD, live, columns, h,
                      t < k ? r->past + t * h : s->out + before, h, p->skip, 0, NULL,
                      s->ph + ((kind->vectors ? s->seq->start[t] : 0) + from) * width +
                      p->first * h, width);
}

/* h of the aligned rows of step t. */
static void carnn__gate_mix(const carnn__cell_run *r, size_t t) {
    const carnn__state_gate *m = r->gate;
    size_t h = r->scan.h, i, j;
    for (i = m->step[t]; i < m->step[t + 1]; i++) {
        const float *x = m->x + m->other[i] * m->stride, *k = m->k + i * h, *g = m->g + i * h;
        float *out = r->scan.out + m->row[i] * h;
        for (j = 0; j < h; j++) out[j] = k[j] + g[j] * (x[j] - k[j]);
    }
}

static void carnn__gate_forward(const carnn__cell_run *r, carnn__engine *e, size_t t) {
    const carnn__state_gate *m = r->gate;
    size_t h = r->scan.h, from = m->step[t], n = m->step[t + 1] - from;
    float *k = m->k + from * h, *g = m->g + from * h;
    size_t i;
    for (i = 0; i < n; i++) {
        memcpy(k + i * h, r->scan.out + m->row[from + i] * h, h * sizeof(float));
        memcpy(g + i * h, m->a + m->pair[from + i] * h, h * sizeof(float));
    }
    carnn__matmul(e, CARNN__NT | CARNN__ADD, n, h, h, k, h, m->w, h, NULL, g, h);
    e->k->sigmoid_n(g, g, n * h);
    carnn__gate_mix(r, t);
}

/* Before the cell's backward step, to which it leaves k as the state and dk as all that reaches it;
   carnn__gate_mix after that step restores h. */
static void carnn__gate_backward(const carnn__cell_run *r, carnn__engine *e, size_t t) {
    const carnn__state_gate *m = r->gate;
    const carnn__scan *s = &r->scan;
    size_t h = s->h, from = m->step[t], n = m->step[t + 1] - from, i, j;
    for (i = from; i < from + n; i++) {
        const float *x = m->x + m->other[i] * m->stride, *k = m->k + i * h, *g = m->g + i * h;
        float *dx = m->dx + m->other[i] * m->stride, *da = m->da + i * h, *dk = m->dk + i * h;
        float *dout = (float *)s->dout + m->row[i] * h;
        const float *dh = s->dh + (m->row[i] - s->seq->start[t]) * h;
        for (j = 0; j < h; j++) {
            float D = dout[j] + dh[j];
            da[j] = D * (x[j] - k[j]) * g[j] * (1.0f - g[j]);
            dx[j] += D * g[j];
            dk[j] = D * (1.0f - g[j]);
            dout[j] = 0.0f;
        }
        memcpy(s->out + m->row[i] * h, k, h * sizeof(float));
    }
    carnn__matmul(e, CARNN__NN | CARNN__ADD, n, h, h, m->da + from * h, h, m->w, h, NULL,
                  m->dk + from * h, h);
    for (i = from; i < from + n; i++)
        memcpy(s->dh + (m->row[i] - s->seq->start[t]) * h, m->dk + i * h, h * sizeof(float));
}

/* All steps one by one, backward in the reverse order. */
static void carnn__cell_steps(carnn__cell_run *r, carnn__engine *e) {
    size_t stages = carnn__max(r->products, 1), count = r->scan.seq->steps * stages, i, t;
    for (i = 0; i < count; i++) {
        size_t number = r->scan.back ? count - 1 - i : i;
        int gates = r->gate && (number + 1) % stages == 0, mixes = r->gate && number % stages == 0;
        t = number / stages;
        r->scan.stage = (int)(number % stages);
        if (!r->scan.back && r->products) {
            carnn__cell_recur(r, e, t);
            carnn__cell_skip(r, e, t);
        }
        if (r->scan.back && gates) carnn__gate_backward(r, e, t);
        carnn__scan_steps(r, e, t, t + 1);
        if (r->scan.back && mixes) carnn__gate_mix(r, t);
        if (!r->scan.back && gates) carnn__gate_forward(r, e, t);
        if (r->scan.back && r->products) {
            carnn__cell_recur(r, e, t);
            carnn__cell_skip(r, e, t);
        }
    }
}

/* --- bands: sequences side by side in threads ---------------------------------------------------
   Within a step threads would have to wait for each other after every product. Where the recurrent
   weights are small enough for the cache of each, a thread takes some of the sequences, a band of
   ranks, through all steps instead; but not where sequences share inputs, to whose gradients both
   would add. */

typedef struct carnn__bands {
    const carnn__cell_run *run;
    carnn__engine *e;
    size_t count;
} carnn__bands;

#define CARNN__BAND_WEIGHTS ((size_t)1 << 18) /* at most: 1 MiB, read by each thread every step */
#define CARNN__BAND_SEQUENCES 8 /* at least, on average */
#define CARNN__BAND_STEP 4 /* what reading the weights at a step costs, in rows of a product */

/* The ranks of band `number` of `count`, at most one for each sequence: a band ends where those
   behind it would have less work each. */
static void carnn__band(const carnn__packed *seq, size_t count, size_t number, carnn__scan *s) {
    size_t left = seq->rows, length = seq->steps, more, cost;
    s->end = 0;
    for (more = count; more-- > count - number - 1;) { /* bands to come */
        s->first = s->end;
        cost = CARNN__BAND_STEP * length;
        do {
            cost += length;
            left -= length;
            s->end++;
            while (length && seq->start[length] - seq->start[length - 1] <= s->end) length--;
        } while (seq->sequences - s->end > more &&
                 (!more || cost * more < left + CARNN__BAND_STEP * length));
    }
}

static void carnn__band_run(void *job_, size_t piece, size_t worker) {
    const carnn__bands *job = (const carnn__bands *)job_;
    carnn__engine e = carnn__engine_of(job->e, worker);
    carnn__cell_run run = *job->run;
    carnn__band(run.scan.seq, job->count, piece, &run.scan);
    carnn__cell_steps(&run, &e);
}

/* Takes all sequences through all steps, in bands where that pays. */
static void carnn__cell_scan(carnn__cell_run *r, carnn__engine *e) {
    const carnn__packed *seq = r->scan.seq;
    size_t weights = carnn__cells[r->cell->kind].recurrent_gates * r->scan.h * r->scan.h;
    carnn__bands job = {r, e, 1};
    if (weights <= CARNN__BAND_WEIGHTS && !r->scan.index && !r->gate &&
        (double)weights * (double)seq->rows >= CARNN__PARALLEL_FROM)
        job.count = carnn__min(carnn__pool_active(e->pool),
                               seq->sequences / CARNN__BAND_SEQUENCES);
    if (!r->products && !r->gate) carnn__scan_steps(r, e, 0, seq->steps);
    else if (job.count > 1) carnn__parallel(e->pool, job.count, carnn__band_run, &job);
    else carnn__cell_steps(r, e);
}

/* Runs the packed batch `seq` over the projected inputs: row i has input index[i] (NULL: i).
   h0, c0 (B, h): initial states, NULL: 0. The states are then in r->scan.out (N, h). */
static void carnn__cell_forward(carnn__cell_run *r, carnn__engine *e, const carnn__packed *seq,
                                const uint32_t *index, const float *h0, const float *c0) {
    carnn__scan *s = &r->scan;
    s->seq = seq;
    s->first = 0;
    s->end = seq->sequences;
    s->back = 0;
    s->index = index;
    s->h0 = h0 ? h0 : r->zeros;
    s->c0 = c0 ? c0 : r->zeros;
    if (carnn__cells[r->cell->kind].vectors) {
        s->bias = carnn__cell_weight(r, r->cell->bias);
        s->alpha = carnn__cell_weight(r, r->cell->alpha);
        s->beta1 = carnn__cell_weight(r, r->cell->alpha + 1);
        s->beta2 = carnn__cell_weight(r, r->cell->alpha + 2);
    }
    carnn__cell_scan(r, e);
}

/* Gradient of the recurrent weights: dWh += dph^T H' over all rows, H' the states one step before;
   for the second of two products the k that stand last on the tape. */
static void carnn__cell_recurrent_gradient(carnn__cell_run *r, carnn__engine *e) {
    const carnn__cell_kind *k = &carnn__cells[r->cell->kind];
    const carnn__scan *s = &r->scan;
    const size_t h = s->h, N = s->seq->rows, width = k->recurrent_gates * h, *start = s->seq->start;
    float *dwh = carnn__piece(r->store, r->g, r->cell->recurrent);
    size_t t, i;
    for (t = 0; t < s->seq->steps; t++)
        memcpy(r->last + start[t] * h, t ? s->out + start[t - 1] * h : s->h0,
               (start[t + 1] - start[t]) * h * sizeof(float));
    for (i = 0; i < r->products; i++) {
        const carnn__cell_product *p = &r->product[i];
        carnn__matmul(e, CARNN__TN | CARNN__ADD, p->gates * h, h, N, s->dph + p->first * h, width,
                      i ? s->tape + (k->tape - 1) * h : r->last, i ? k->tape * h : h, NULL,
                      dwh + p->first * h * h, h);
    }
    if (k->recurrent_bias)
        carnn__column_sums(e, N, width, s->dph, width,
                           carnn__piece(r->store, r->g, r->cell->recurrent_bias));
}

static void carnn__cell_skip_gradient(carnn__cell_run *r, carnn__engine *e) {
    const carnn__scan *s = &r->scan;
    const size_t h = s->h, k = r->cell->skip, *start = s->seq->start;
    size_t width = carnn__cells[r->cell->kind].recurrent_gates * h, t;
    if (!k || k >= s->seq->steps) return;
    for (t = k; t < s->seq->steps; t++)
        memcpy(r->last + start[t] * h, s->out + start[t - k] * h,
               (start[t + 1] - start[t]) * h * sizeof(float));
    carnn__matmul(e, CARNN__TN | CARNN__ADD, width, h, s->seq->rows - start[k],
                  s->dph + start[k] * width, width, r->last + start[k] * h, h, NULL,
                  carnn__piece(r->store, r->g, r->cell->skipping), h);
}

/* Gradients of alpha, beta1, beta2 and the bias. */
static void carnn__cell_vectors_gradient(carnn__cell_run *r, carnn__engine *e) {
    size_t n = carnn__cells[r->cell->kind].gates * r->cell->h, i;
    for (i = 0; i < 4; i++)
        carnn__column_sums(e, r->scan.seq->sequences, n, r->scan.dvectors + i * n, 4 * n,
                           carnn__piece(r->store, r->g, i < 3 ? r->cell->alpha + i
                                                              : r->cell->bias));
}

/* Backward over the batch of the last forward. dout (N, h) is the gradient at the states, to which
   skip connections add; dx
   (U, e) is added to by cells whose candidate is the input (NULL: it is not wanted). Afterwards
   r->scan.dh and .dc (B, h) are the gradients of the initial states and .dpc that of the context
   projections; the gradients of the recurrent weights have been added to g. */
static void carnn__cell_backward(carnn__cell_run *r, carnn__engine *e, const float *dout,
                                 float *dx) {
    const carnn__cell_kind *k = &carnn__cells[r->cell->kind];
    carnn__scan *s = &r->scan;
    size_t bytes = s->seq->sequences * s->h * sizeof(float);
    s->back = 1;
    s->dout = dout;
    s->dx = dx;
    memset(s->dh, 0, bytes);
    if (s->dc) memset(s->dc, 0, bytes);
    memset(s->dpc, 0, k->context_gates * bytes);
    if (k->vectors) memset(s->dvectors, 0, 4 * k->gates * bytes);
    if (r->shares) memset(s->dpx, 0, r->inputs * k->gates * s->h * sizeof(float));
    carnn__cell_scan(r, e);
    if (r->products) carnn__cell_recurrent_gradient(r, e);
    carnn__cell_skip_gradient(r, e);
    if (k->vectors) carnn__cell_vectors_gradient(r, e);
}

/* From dpc of the last backward: dc (B, d) += dpc Wc, dWc += dpc^T c. */
static void carnn__cell_context_back(carnn__cell_run *r, carnn__engine *e, float *dc) {
    const carnn__cell_kind *k = &carnn__cells[r->cell->kind];
    size_t d = r->cell->d, width = k->context_gates * r->cell->h, B = r->scan.seq->sequences;
    if (!d) return;
    carnn__matmul(e, CARNN__NN | CARNN__ADD, B, d, width, r->scan.dpc, width,
                  carnn__cell_weight(r, r->cell->context), d, NULL, dc, d);
    carnn__matmul(e, CARNN__TN | CARNN__ADD, width, d, B, r->scan.dpc, width, r->c, d, NULL,
                  carnn__piece(r->store, r->g, r->cell->context), d);
}

/* From dpx of all backwards since carnn__cell_project: dx (U, e) += dpx Wx (NULL: inputs that are
   data need no gradient), dWx += dpx^T x, db += sum of dpx. */
static void carnn__cell_project_back(carnn__cell_run *r, carnn__engine *e, float *dx) {
    const carnn__cell_kind *k = &carnn__cells[r->cell->kind];
    size_t h = r->cell->h, in = r->cell->e, width = k->gates * h, U = r->inputs;
    if (dx)
        carnn__matmul(e, CARNN__NN | CARNN__ADD, U, in, width, r->scan.dpx, width,
                      carnn__cell_weight(r, r->cell->input), in, NULL, dx, in);
    carnn__matmul(e, CARNN__TN | CARNN__ADD, width, in, U, r->scan.dpx, width, r->x, in, NULL,
                  carnn__piece(r->store, r->g, r->cell->input), in);
    carnn__column_sums(e, U, carnn__cell_biased(k) * h, r->scan.dpx, width,
                       carnn__piece(r->store, r->g, r->cell->bias));
}

/* --- exact explanations -------------------------------------------------------------------------
   The state of an additive cell is h_t = A_t * h_{t-1} + w_t * k_t: unrolled, it is a weighted sum
   of the candidates (Tran et al. 2018, Eq. 4 and 7). */

/* Are the states of a cell exact weighted sums of its candidates? */
static int carnn__cell_is_additive(size_t kind) {
    return (carnn__cells[kind].flags & (CARNN__ADDITIVE_UPDATE | CARNN__ADDITIVE_FORGET)) != 0;
}

/* w_t, A_t, k_t and the part of k_t that is a bias, after a forward pass: column j of row t, which
   belongs to the sequence of rank b and has the input `slot`. 0: the cell is not additive. */
static int carnn__cell_additive_step(const carnn__cell_run *r, size_t b, size_t t, size_t slot,
                                     size_t j, double *w, double *A, double *k, double *bias) {
    const carnn__cell_kind *kind = &carnn__cells[r->cell->kind];
    size_t h = r->cell->h, last = (kind->gates - 1) * h + j, i;
    const float *px = r->scan.px + slot * kind->gates * h;
    const float *pc = r->scan.pc + b * kind->context_gates * h;
    const float *tape = r->scan.tape + t * kind->tape * h;
    double g[2] = {1.0, 1.0}; /* gates 0 and 1 */
    if (!carnn__cell_is_additive(r->cell->kind)) return 0;
    for (i = 0; i < 2 && i < kind->gates; i++) /* on the tape where they read the state */
        g[i] = kind->tape ? (double)tape[i * h + j]
                          : 1.0 / (1.0 + exp(-((double)px[i * h + j] + (double)pc[i * h + j])));
    if (kind->flags & CARNN__INPUT_IS_CANDIDATE) {
        *k = (double)r->x[slot * h + j];
        *bias = 0.0;
    } else {
        *k = (double)px[last];
        *bias = kind->bias_gates == kind->gates
                    ? (double)carnn__cell_weight(r, r->cell->bias)[last]
                    : 0.0;
    }
    *w = kind->flags & CARNN__ADDITIVE_FORGET ? g[0] : g[0] * g[1];
    *A = kind->flags & CARNN__ADDITIVE_FORGET ? g[1] : 1.0 - g[0];
    return 1;
}

/* --- the linear recurrence by itself --------------------------------------------------------- */

/* What of the state before a block is left after it. Where the product of its factors is no
   float, the state goes through them one by one. */
static float carnn__recurrence_carried(const carnn__recurrence *r, size_t block, size_t j) {
    size_t C = r->columns, step = block * CARNN__RECURRENCE_BLOCK;
    size_t stop = step + CARNN__RECURRENCE_BLOCK;
    float y = r->end[block * C + j], product = r->product[block * C + j];
    if (fabsf(product) <= FLT_MAX) return product * y;
    for (; step < stop; step++) y *= r->A[(r->reverse ? r->steps - step : step) * C + j];
    return y;
}

static carnn_status carnn__recurrence_run(carnn__recurrence *r, int64_t threads,
                                          carnn_error *error) {
    carnn_allocator a = carnn__allocator(NULL);
    size_t blocks = carnn__parts(r->steps, CARNN__RECURRENCE_BLOCK), b, j;
    size_t C = r->columns, work = carnn__times(r->steps, C);
    carnn__engine e;
    carnn_status status = carnn__engine_open(
        &e, NULL, work < CARNN__SPLIT_FROM ? 1 : carnn_thread_count(threads), a, error);
    if (status) return status;
    r->end = (float *)carnn__alloc_aligned(&a, carnn__times(blocks, C), 2 * sizeof(float));
    if (!r->end) {
        carnn__engine_close(&e);
        return carnn__out_of_memory(error);
    }
    r->product = r->end + blocks * C;
    carnn__split(&e, e.k->recur, r, blocks, 1, work);
    for (b = blocks; b-- > 1;) /* the state before each block; the first has none to carry */
        memcpy(r->end + b * C, r->end + (b - 1) * C, C * sizeof(float));
    for (b = 2; b < blocks; b++)
        for (j = 0; j < C; j++) r->end[b * C + j] += carnn__recurrence_carried(r, b - 1, j);
    r->carrying = 1;
    if (blocks > 1) carnn__split(&e, e.k->recur, r, blocks, 1, work);
    carnn__free_aligned(&a, r->end);
    carnn__engine_close(&e);
    return CARNN_OK;
}

CARNN_API carnn_status carnn_recurrence(size_t steps, size_t columns, const float *A,
                                        const float *Z, const float *y0, float *y, int64_t threads,
                                        carnn_error *error) {
    carnn__recurrence r = {steps, columns, 0, 0, A, Z, y0, y, NULL, NULL};
    return carnn__recurrence_run(&r, threads, error);
}

CARNN_API carnn_status carnn_recurrence_backward(size_t steps, size_t columns, const float *A,
                                                 const float *y, const float *y0, const float *G,
                                                 float *dA, float *dZ, float *dy0,
                                                 int64_t threads, carnn_error *error) {
    carnn__recurrence r = {steps, columns, 1, 0, A, G, NULL, dZ, NULL, NULL};
    size_t t, j;
    carnn_status status = carnn__recurrence_run(&r, threads, error);
    for (t = 0; !status && t < steps; t++)
        for (j = 0; j < columns; j++) {
            float before = t ? y[(t - 1) * columns + j] : y0 ? y0[j] : 0.0f;
            dA[t * columns + j] = dZ[t * columns + j] * before;
        }
    for (j = 0; !status && dy0 && j < columns; j++) dy0[j] = steps ? A[j] * dZ[j] : 0.0f;
    return status;
}

#endif
/* =============================================================================================
   @@PART   the parts between words and loss: embedding and position encoder, rows by index,
            dropout, attention over the history, softmax cross entropy, alignment of sentences and
            decomposition, cosine
   ============================================================================================= */

/* --- position encoder ---------------------------------------------------------------------------
   Sukhbaatar et al. 2015. A text of J words w_1 .. w_J (rows of the embedding, D columns) becomes

     enc[k] = sum_j l_kj w_j[k]      l_kj = (1 - j/J) - (k/D)(1 - 2j/J)      j, k from 1

   which is a_j + b_j k/D with a_j = 1 - j/J and b_j = 2j/J - 1: two weighted sums of the words and
   ONE product with the ramp k/D. Backward: dw_j[k] += l_kj denc[k]. No words: the zero vector. */

#if defined(CARNN__ISA)

/* The vector operations of @@SIMD under short names, in this section only. */
#define vec carnn__v
#define loadn CARNN__V(loadn)
#define storen CARNN__V(storen)
#define add CARNN__V(add)
#define sub CARNN__V(sub)
#define mul CARNN__V(mul)
#define fma CARNN__V(fma) /* a b + c */
#define set1 CARNN__V(set1)
#define zero CARNN__V(zero)

/* Loops over columns take sixteen at a time. Their bodies are functions of the first column j and
   the number n of columns: the constant 16, for plain loads and stores, or the rest of a row. */

/* Columns [j, j + 16 vectors) of a text, n of them in the last vector; `vectors` and mostly n are
   constants. Four vectors share the work for a word, of which the division is most. */
#define CARNN__ENCODE_VECTORS 4

static CARNN__INLINE void CARNN__K(encode_text)(const carnn__encoder *e, size_t i, size_t j,
                                                size_t vectors, size_t n) {
    size_t text = e->which ? e->which[i] : i, first = e->at[text], J = e->at[text + 1] - first;
    size_t w, v;
    vec a[CARNN__ENCODE_VECTORS], b[CARNN__ENCODE_VECTORS];
    CARNN__UNROLL for (v = 0; v < vectors; v++) a[v] = b[v] = zero();
    for (w = 0; w < J; w++) {
        const float *word = e->table + e->ids[first + w] * e->D + j;
        float place = (float)(w + 1) / (float)J;
        vec a_j = set1(1.0f - place), b_j = set1(2.0f * place - 1.0f);
        CARNN__UNROLL for (v = 0; v < vectors; v++) {
            vec x = loadn(word + 16 * v, n);
            a[v] = fma(a_j, x, a[v]);
            b[v] = fma(b_j, x, b[v]);
        }
    }
    CARNN__UNROLL for (v = 0; v < vectors; v++) {
        vec ramp = loadn(e->ramp + j + 16 * v, n);
        storen(e->out + i * e->D + j + 16 * v, n, fma(ramp, b[v], a[v]));
    }
}

/* Texts [from, to). Bound by reading the words from the cache: two multiply-adds a number. */
static void CARNN__K(encode)(const void *job, size_t from, size_t to) {
    const carnn__encoder *e = (const carnn__encoder *)job;
    const size_t D = e->D, together = 16 * CARNN__ENCODE_VECTORS;
    size_t i, j;
    for (i = from; i < to; i++) {
        for (j = 0; j + together <= D; j += together)
            CARNN__K(encode_text)(e, i, j, CARNN__ENCODE_VECTORS, 16);
        for (; j + 16 <= D; j += 16) CARNN__K(encode_text)(e, i, j, 1, 16);
        if (j < D) CARNN__K(encode_text)(e, i, j, 1, D - j);
    }
}
#undef CARNN__ENCODE_VECTORS

/* dw_j += l_j denc, l_j = a_j + b_j k/D. */
static CARNN__INLINE void CARNN__K(encode_back_columns)(const float *ramp, const float *denc,
                                                        float *dword, float place, size_t j,
                                                        size_t n) {
    vec a_j = set1(1.0f - place), b_j = set1(2.0f * place - 1.0f);
    vec l = fma(b_j, loadn(ramp + j, n), a_j);
    storen(dword + j, n, fma(l, loadn(denc + j, n), loadn(dword + j, n)));
}

/* Words are assigned to so many shares by their number modulo it. */
#define CARNN__ENCODE_SHARES 8

/* All texts, but of their words only those of shares [from, to): each row of the table stays in the
   cache of one core and gets its sums in the order of the texts. Bound by reading and writing these
   rows: one multiply-add for each number. */
static void CARNN__K(encode_back)(const void *job, size_t from, size_t to) {
    const carnn__encoder *e = (const carnn__encoder *)job;
    const size_t D = e->D;
    size_t i, w, j;
    for (i = 0; i < e->texts; i++) {
        size_t text = e->which ? e->which[i] : i, first = e->at[text], J = e->at[text + 1] - first;
        const float *denc = e->dout + i * D;
        for (w = 0; w < J; w++) {
            size_t word = e->ids[first + w], share = word % CARNN__ENCODE_SHARES;
            float *dword = e->dtable + word * D, place;
            if (share < from || share >= to) continue;
            place = (float)(w + 1) / (float)J;
            for (j = 0; j + 16 <= D; j += 16)
                CARNN__K(encode_back_columns)(e->ramp, denc, dword, place, j, 16);
            if (j < D) CARNN__K(encode_back_columns)(e->ramp, denc, dword, place, j, D - j);
        }
    }
}

/* --- rows by index ------------------------------------------------------------------------------
   to[index[i]] += from[i], in the order of i, columns [first, last). Bound by memory: two rows are
   read and one is written for an addition. */

static CARNN__INLINE void CARNN__K(add_columns)(const float *from, float *to, size_t j, size_t n) {
    storen(to + j, n, add(loadn(to + j, n), loadn(from + j, n)));
}

static void CARNN__K(scatter_add)(const void *job, size_t first, size_t last) {
    const carnn__scatter *s = (const carnn__scatter *)job;
    size_t i, j;
    for (i = 0; i < s->rows; i++) {
        float *to = s->to + (size_t)s->index[i] * s->columns;
        const float *from = s->from + i * s->columns;
        for (j = first; j + 16 <= last; j += 16) CARNN__K(add_columns)(from, to, j, 16);
        if (j < last) CARNN__K(add_columns)(from, to, j, last - j);
    }
}

/* --- attention over the history -----------------------------------------------------------------
   Tran et al. 2018, Eq. 8: ht_m = h_m + e_m (a residual connection around the cell),
   al = softmax_m(ht_m . c), o = sum_m al_m ht_m. Backward, given do:

     dal_m = do . ht_m      ds_m = al_m (dal_m - sum_m al_m dal_m)
     dht_m = al_m do + ds_m c        dc += sum_m ds_m ht_m        dh_m = de_m = dht_m

   Sequences [b0, b1), independent of each other. Bound by reading h and e, twice in forward (the
   second time from the second-level cache, where a history fits), three times in backward. */

/* The rows of h and e of one sequence at `count` steps from t on. A few steps at a time share what
   they have in common, and their sums do not wait for each other. */
#define CARNN__ATTEND_ROWS 4

typedef struct CARNN__K(attended_steps) {
    size_t count;
    const float *h[CARNN__ATTEND_ROWS], *e[CARNN__ATTEND_ROWS];
} CARNN__K(attended_steps);

static CARNN__INLINE CARNN__K(attended_steps)
    CARNN__K(attended_from)(const carnn__attention *a, size_t b, size_t t, size_t count) {
    CARNN__K(attended_steps) x;
    size_t i;
    memset(&x, 0, sizeof x);
    x.count = count;
    CARNN__UNROLL for (i = 0; i < count; i++) {
        size_t row = a->seq->start[t + i] + b;
        x.h[i] = a->h + row * a->D;
        x.e[i] = a->e + (a->index ? (size_t)a->index[row] : row) * a->D;
    }
    return x;
}

/* ht_i */
static CARNN__INLINE vec CARNN__K(attended)(const CARNN__K(attended_steps) *x, size_t i, size_t j,
                                            size_t n) {
    return add(loadn(x->h[i] + j, n), loadn(x->e[i] + j, n));
}

/* sum[i] += ht_i * v for each of the steps */
static CARNN__INLINE void CARNN__K(attention_dot_columns)(const CARNN__K(attended_steps) *x,
                                                          const float *v, vec *sum, size_t j,
                                                          size_t n) {
    vec y = loadn(v + j, n);
    size_t i;
    CARNN__UNROLL for (i = 0; i < x->count; i++)
        sum[i] = fma(CARNN__K(attended)(x, i, j, n), y, sum[i]);
}

/* out[i] = ht_i . v for `count` steps from t on */
static CARNN__INLINE void CARNN__K(attention_dot)(const carnn__attention *a, size_t b, size_t t,
                                                  size_t count, const float *v, float *out) {
    CARNN__K(attended_steps) x = CARNN__K(attended_from)(a, b, t, count);
    vec sum[CARNN__ATTEND_ROWS];
    size_t i, j;
    CARNN__UNROLL for (i = 0; i < count; i++) sum[i] = zero();
    for (j = 0; j + 16 <= a->D; j += 16) CARNN__K(attention_dot_columns)(&x, v, sum, j, 16);
    if (j < a->D) CARNN__K(attention_dot_columns)(&x, v, sum, j, a->D - j);
    CARNN__UNROLL for (i = 0; i < count; i++) out[i] = CARNN__V(sum)(sum[i]);
}

/* out += sum of scale[i] * ht_i over the steps */
static CARNN__INLINE void CARNN__K(attention_sum_columns)(const CARNN__K(attended_steps) *x,
                                                          const float *scale, float *out, size_t j,
                                                          size_t n) {
    vec o = loadn(out + j, n);
    size_t i;
    CARNN__UNROLL for (i = 0; i < x->count; i++)
        o = fma(set1(scale[i]), CARNN__K(attended)(x, i, j, n), o);
    storen(out + j, n, o);
}

static CARNN__INLINE void CARNN__K(attention_sum)(const carnn__attention *a, size_t b, size_t t,
                                                  size_t count, const float *scale, float *out) {
    CARNN__K(attended_steps) x = CARNN__K(attended_from)(a, b, t, count);
    size_t j;
    for (j = 0; j + 16 <= a->D; j += 16) CARNN__K(attention_sum_columns)(&x, scale, out, j, 16);
    if (j < a->D) CARNN__K(attention_sum_columns)(&x, scale, out, j, a->D - j);
}

/* The same for all M steps of a sequence: out (M) = ht v, and out (D) += scale ht. */
static void CARNN__K(attention_dots)(const carnn__attention *a, size_t b, size_t M, const float *v,
                                     float *out) {
    size_t t;
    for (t = 0; t + CARNN__ATTEND_ROWS <= M; t += CARNN__ATTEND_ROWS)
        CARNN__K(attention_dot)(a, b, t, CARNN__ATTEND_ROWS, v, out + t);
    for (; t < M; t++) CARNN__K(attention_dot)(a, b, t, 1, v, out + t);
}

static void CARNN__K(attention_sums)(const carnn__attention *a, size_t b, size_t M,
                                     const float *scale, float *out) {
    size_t t;
    for (t = 0; t + CARNN__ATTEND_ROWS <= M; t += CARNN__ATTEND_ROWS)
        CARNN__K(attention_sum)(a, b, t, CARNN__ATTEND_ROWS, scale + t, out);
    for (; t < M; t++) CARNN__K(attention_sum)(a, b, t, 1, scale + t, out);
}

/* dht = al do + ds c */
static CARNN__INLINE void CARNN__K(attend_back_columns)(float al, float ds, const float *go,
                                                        const float *c, float *gh, size_t j,
                                                        size_t n) {
    storen(gh + j, n, fma(set1(al), loadn(go + j, n), mul(set1(ds), loadn(c + j, n))));
}

static void CARNN__K(attend)(const void *job, size_t b0, size_t b1) {
    const carnn__attention *a = (const carnn__attention *)job;
    size_t b;
    for (b = b0; b < b1; b++) {
        size_t M = carnn__rank_length(a->seq, b);
        float *weight = a->weight + b * a->seq->steps, *o = a->o + b * a->D;
        CARNN__K(attention_dots)(a, b, M, a->c + b * a->D, weight);
        CARNN__K(softmax)(weight, M);
        memset(o, 0, a->D * sizeof(float));
        CARNN__K(attention_sums)(a, b, M, weight, o);
    }
}

static void CARNN__K(attend_back)(const void *job, size_t b0, size_t b1) {
    const carnn__attention *a = (const carnn__attention *)job;
    size_t b, t, j, D = a->D;
    for (b = b0; b < b1; b++) {
        size_t M = carnn__rank_length(a->seq, b);
        const float *al = a->weight + b * a->seq->steps, *c = a->c + b * D, *go = a->go + b * D;
        float *ds = a->gweight + b * a->seq->steps, mean = 0.0f; /* first dal */
        CARNN__K(attention_dots)(a, b, M, go, ds);
        for (t = 0; t < M; t++) mean += al[t] * ds[t];
        for (t = 0; t < M; t++) ds[t] = al[t] * (ds[t] - mean);
        CARNN__K(attention_sums)(a, b, M, ds, a->gc + b * D);
        for (t = 0; t < M; t++) {
            float *gh = a->gh + (a->seq->start[t] + b) * D;
            for (j = 0; j + 16 <= D; j += 16)
                CARNN__K(attend_back_columns)(al[t], ds[t], go, c, gh, j, 16);
            if (j < D) CARNN__K(attend_back_columns)(al[t], ds[t], go, c, gh, j, D - j);
        }
    }
}

/* --- softmax cross entropy ----------------------------------------------------------------------
   For rows of logits z with one target each: loss = lse(z) - z_target; the gradient
   scale * (softmax(z) - onehot) replaces z, unless only the loss is wanted.
   A row whose target is CARNN__NO_INDEX has no loss and no gradient. Label smoothing s spreads s of
   the target's mass evenly over all columns. Three passes over a row that the cache holds, bound by
   the exponentials of the second. */

/* z = scale (factor z) + off */
static CARNN__INLINE void CARNN__K(cross_entropy_columns)(float *z, float factor, float scale,
                                                          float off, size_t j, size_t n) {
    storen(z + j, n, fma(set1(scale), mul(loadn(z + j, n), set1(factor)), set1(off)));
}

static void CARNN__K(cross_entropy)(const void *job, size_t row0, size_t row1) {
    const carnn__cross_entropy *x = (const carnn__cross_entropy *)job;
    const size_t V = x->columns;
    const float off = -x->scale * x->smoothing / (float)V;
    size_t i, j;
    for (i = row0; i < row1; i++) {
        float *z = x->z + i * V, target, mean = 0.0f, lse, factor;
        if (x->target[i] == CARNN__NO_INDEX) {
            memset(z, 0, V * sizeof(float));
            x->loss[i] = 0.0f;
            continue;
        }
        target = z[x->target[i]];
        if (x->smoothing > 0.0f) mean = CARNN__K(row_sum)(z, V) / (float)V;
        lse = CARNN__K(softmax_shape)(z, V, &factor);
        x->loss[i] = lse - (1.0f - x->smoothing) * target - x->smoothing * mean;
        if (!x->learns) continue;
        for (j = 0; j + 16 <= V; j += 16)
            CARNN__K(cross_entropy_columns)(z, factor, x->scale, off, j, 16);
        if (j < V) CARNN__K(cross_entropy_columns)(z, factor, x->scale, off, j, V - j);
        z[x->target[i]] -= x->scale * (1.0f - x->smoothing);
    }
}

/* --- decomposition ------------------------------------------------------------------------------
   Shen, Yang, Deng 2017. A word x_i and what it is aligned with in the other sentence, a_i, are
   compared by their parallel and orthogonal parts, or directly; the words are summed up:

     s_i = x_i . a_i / a_i . a_i     p_i = s_i a_i     o_i = x_i - p_i     f = sum_i w_i [p_i; o_i]
     direct: s_i = 1                                                       f = sum_i w_i o_i

   Backward, with the halves of df and t = df_p - df_o (direct: t = -df_o, ds_i = 0):

     dw_i = s_i a_i . t + x_i . df_o          ds_i = w_i a_i . t
     dx_i = w_i df_o + ds_i a_i / a_i . a_i
     da_i = w_i s_i t + ds_i (x_i - 2 s_i a_i) / a_i . a_i

   Where a_i is shorter than 1e-6, its square counts as the constant 1e-12. Bound by reading x and a
   twice from the cache. */

#define CARNN__ALIGNED_LEAST 1e-12f

/* f_o += w o, and f_p += w p where f_p is not NULL. */
static CARNN__INLINE void CARNN__K(compose_columns)(const float *x, const float *a, float s,
                                                    float w, float *f_p, float *f_o, size_t j,
                                                    size_t n) {
    vec p = mul(set1(s), loadn(a + j, n)), o = sub(loadn(x + j, n), p);
    storen(f_o + j, n, fma(set1(w), o, loadn(f_o + j, n)));
    if (f_p) storen(f_p + j, n, fma(set1(w), p, loadn(f_p + j, n)));
}

static void CARNN__K(compose)(const carnn__compose *c) {
    const size_t D = c->D;
    float *f_p = c->orthogonal ? c->f : NULL, *f_o = c->f + (c->orthogonal ? D : 0);
    size_t i, j;
    memset(c->f, 0, (c->orthogonal ? 2 : 1) * D * sizeof(float));
    for (i = 0; i < c->rows; i++) {
        const float *x = c->x + i * D, *a = c->a + i * D;
        float s = 1.0f, w = c->weight[i], square;
        if (c->orthogonal) {
            square = CARNN__K(dot)(a, a, D);
            s = CARNN__K(dot)(x, a, D);
            s /= square > CARNN__ALIGNED_LEAST ? square : CARNN__ALIGNED_LEAST;
        }
        c->share[i] = s;
        for (j = 0; j + 16 <= D; j += 16) CARNN__K(compose_columns)(x, a, s, w, f_p, f_o, j, 16);
        if (j < D) CARNN__K(compose_columns)(x, a, s, w, f_p, f_o, j, D - j);
    }
}

/* Word i: dx = w df_o + of_x a and da = of_t t + of_x x + of_a a, columns j .. j + n - 1. */
static CARNN__INLINE void CARNN__K(compose_back_columns)(const carnn__compose *c, size_t i,
                                                         float w, float of_x, float of_a,
                                                         float of_t, size_t j, size_t n) {
    const float *df_p = c->df + j, *df_o = df_p + (c->orthogonal ? c->D : 0);
    size_t at = i * c->D + j;
    vec x = loadn(c->x + at, n), a = loadn(c->a + at, n), o = loadn(df_o, n), da;
    vec t = sub(c->orthogonal ? loadn(df_p, n) : zero(), o);
    storen(c->dx + at, n, fma(set1(of_x), a, mul(set1(w), o)));
    da = fma(set1(of_x), x, mul(set1(of_t), t));
    storen(c->da + at, n, fma(set1(of_a), a, da));
}

static void CARNN__K(compose_back)(const carnn__compose *job) {
    const carnn__compose copy = *job, *c = &copy; /* which no store can change */
    const size_t D = c->D;
    const float *df_o = c->df + (c->orthogonal ? D : 0);
    size_t i, j;
    for (i = 0; i < c->rows; i++) {
        const float *x = c->x + i * D, *a = c->a + i * D;
        float w = c->weight[i], s = c->share[i], ds = 0.0f, of_a = 0.0f, square;
        float a_t = -CARNN__K(dot)(a, df_o, D);
        if (c->orthogonal) {
            a_t += CARNN__K(dot)(a, c->df, D);
            square = CARNN__K(dot)(a, a, D);
            ds = w * a_t / (square > CARNN__ALIGNED_LEAST ? square : CARNN__ALIGNED_LEAST);
            if (square > CARNN__ALIGNED_LEAST) of_a = -2.0f * s * ds;
        }
        c->dweight[i] = s * a_t + CARNN__K(dot)(x, df_o, D);
        for (j = 0; j + 16 <= D; j += 16)
            CARNN__K(compose_back_columns)(c, i, w, ds, of_a, w * s, j, 16);
        if (j < D) CARNN__K(compose_back_columns)(c, i, w, ds, of_a, w * s, j, D - j);
    }
}

#undef vec
#undef loadn
#undef storen
#undef add
#undef sub
#undef mul
#undef fma
#undef set1
#undef zero

#endif

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

/* enc (texts, D) of texts, and backward; see carnn__encoder. */
static void carnn__encode_texts(carnn__engine *e, const carnn__encoder *x) {
    carnn__split(e, e->k->encode, x, x->texts, 1, x->texts * x->D * 8);
}

static void carnn__encode_texts_back(carnn__engine *e, const carnn__encoder *x) {
    carnn__split(e, e->k->encode_back, x, CARNN__ENCODE_SHARES, 1, x->texts * x->D * 8);
}

/* The ramp k/D of the position encoder. */
static void carnn__encoder_ramp(float *ramp, size_t D) {
    size_t k;
    for (k = 0; k < D; k++) ramp[k] = (float)(k + 1) / (float)D;
}

/* to[i] = from[index[i]]. Bound by memory. */
static void carnn__gather_rows(float *to, const float *from, const uint32_t *index, size_t rows,
                               size_t columns) {
    size_t i;
    for (i = 0; i < rows; i++)
        memcpy(to + i * columns, from + (size_t)index[i] * columns, columns * sizeof(float));
}

static void carnn__scatter_rows(carnn__engine *e, float *to, const float *from,
                                const uint32_t *index, size_t rows, size_t columns) {
    carnn__scatter s = {rows, columns, index, from, to};
    carnn__split(e, e->k->scatter_add, &s, columns, 16, rows * columns);
}

/* --- dropout ------------------------------------------------------------------------------------
   Inverted dropout (Srivastava et al. 2014): a value is 0 with probability p, else 1 / (1 - p)
   times itself. The mask is a function of the key and the place, so backward draws the same one
   again and no thread can change it: each random number serves four values, 16 bits for each. */

typedef struct carnn__dropout_job {
    float *x;
    uint64_t key;
    uint64_t limit; /* 16 random bits below it: dropped */
    float scale;
    size_t count;
} carnn__dropout_job;

static void carnn__dropout_range(const void *job_, size_t from, size_t to) {
    const carnn__dropout_job *job = (const carnn__dropout_job *)job_;
    const float factor[2] = {job->scale, 0.0f}; /* a table: no branch could be foreseen */
    size_t i;
    for (i = from; i < to; i++) {
        uint64_t bits = carnn__random(job->key, i);
        size_t lane, first = i * 4, n = carnn__min(4, job->count - first);
        for (lane = 0; lane < n; lane++, bits >>= 16)
            job->x[first + lane] *= factor[(bits & 0xFFFF) < job->limit];
    }
}

/* x (count) in place; used alike on values and on their gradients. */
static void carnn__dropout(carnn__engine *e, float *x, size_t count, double p, uint64_t key) {
    carnn__dropout_job job = {x, key, (uint64_t)(p * 65536.0 + 0.5), (float)(1.0 / (1.0 - p)),
                              count};
    if (p > 0.0) carnn__split(e, carnn__dropout_range, &job, (count + 3) / 4, 16, count * 4);
}

/* --- alignment of two sentences -----------------------------------------------------------------
   Of the words x (m, D) of one sentence, each with a mean of the words y (n, D) of the other:

     E = softmax of the rows of x y'      a = E y
     dE = da y'     dM = E * (dE - rows' sums of E * dE)     dx += dM y     dy += dM' x + E' da */

/* dp (n), the gradient at the probabilities p, becomes that at the logits. */
static void carnn__softmax_back(const carnn__kernels *k, const float *p, float *dp, size_t n) {
    float mean = k->dot(p, dp, n);
    size_t j;
    for (j = 0; j < n; j++) dp[j] = p[j] * (dp[j] - mean);
}

static void carnn__align(carnn__engine *e, size_t m, size_t n, size_t D, const float *x,
                         const float *y, float *E, float *a) {
    size_t i;
    carnn__matmul(e, CARNN__NT, m, n, D, x, D, y, D, NULL, E, n);
    for (i = 0; n && i < m; i++) e->k->softmax(E + i * n, n);
    carnn__matmul(e, CARNN__NN, m, D, n, E, n, y, D, NULL, a, D);
}

/* dE (m, n) is scratch. */
static void carnn__align_back(carnn__engine *e, size_t m, size_t n, size_t D, const float *x,
                              const float *y, const float *E, const float *da, float *dE,
                              float *dx, float *dy) {
    size_t i;
    carnn__matmul(e, CARNN__NT, m, n, D, da, D, y, D, NULL, dE, n);
    for (i = 0; n && i < m; i++) carnn__softmax_back(e->k, E + i * n, dE + i * n, n);
    carnn__matmul(e, CARNN__NN | CARNN__ADD, m, D, n, dE, n, y, D, NULL, dx, D);
    carnn__matmul(e, CARNN__TN | CARNN__ADD, n, D, m, dE, n, x, D, NULL, dy, D);
    carnn__matmul(e, CARNN__TN | CARNN__ADD, n, D, m, E, n, da, D, NULL, dy, D);
}

/* --- cosine -------------------------------------------------------------------------------------
   S = x . y / |x| |y|; dx += dS (y / |x| |y| - S x / |x|^2), and so for y. Where one of them is
   the zero vector S is 0 and does not change. */

static float carnn__cosine(const carnn__kernels *k, size_t D, const float *x, const float *y) {
    float lengths = sqrtf(k->dot(x, x, D)) * sqrtf(k->dot(y, y, D));
    return lengths > 0.0f ? k->dot(x, y, D) / lengths : 0.0f;
}

static void carnn__cosine_back(const carnn__kernels *k, size_t D, const float *x, const float *y,
                               float dS, float *dx, float *dy) {
    float xx = k->dot(x, x, D), yy = k->dot(y, y, D), lengths = sqrtf(xx) * sqrtf(yy), S, both;
    size_t j;
    if (!(lengths > 0.0f)) return;
    S = k->dot(x, y, D) / lengths;
    both = dS / lengths;
    for (j = 0; j < D; j++) {
        dx[j] += both * y[j] - dS * S / xx * x[j];
        dy[j] += both * x[j] - dS * S / yy * y[j];
    }
}

#endif
/* =============================================================================================
   @@TEXT   pieces of text, numbers, tokenisers, lists of names, vocabularies, reading files, word
            vectors
   ============================================================================================= */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

/* --- pieces of text -----------------------------------------------------------------------------
   A text is any bytes, NUL included; a span points into it. Letters and case are ASCII's. */

typedef carnn_text carnn__span;

static inline int carnn__blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\v' || c == '\f';
}

static inline int carnn__digit(char c) { return c >= '0' && c <= '9'; }
static inline int carnn__letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Is `c` one of the characters of `set`? */
static inline int carnn__among(char c, const char *set) { return c && strchr(set, c) != NULL; }

/* The byte `c`, in lower case if `fold` is set. */
static inline unsigned char carnn__folded(char c, int fold) {
    unsigned char byte = (unsigned char)c;
    return (unsigned char)(fold && byte >= 'A' && byte <= 'Z' ? byte + 'a' - 'A' : byte);
}

/* Is `known` equal to `s`, folded if `fold` is set? */
static int carnn__equal(const char *known, const char *s, size_t length, int fold) {
    size_t i;
    for (i = 0; i < length; i++)
        if ((unsigned char)known[i] != carnn__folded(s[i], fold)) return 0;
    return 1;
}

static inline int carnn__is(const char *known, carnn__span s, int fold) {
    return s.length == strlen(known) && carnn__equal(known, s.at, s.length, fold);
}

/* Removes `count` bytes from the front. */
static inline void carnn__skip(carnn__span *s, size_t count) {
    s->at += count;
    s->length -= count;
}

/* Without the blanks at both ends. */
static carnn__span carnn__trim(carnn__span s) {
    while (s.length && carnn__blank(s.at[s.length - 1])) s.length--;
    while (s.length && carnn__blank(*s.at)) carnn__skip(&s, 1);
    return s;
}

/* String i of a list of strings that stand one after the other, each with a NUL behind it. */
static inline carnn__span carnn__string(const char *bytes, const size_t *at, size_t i) {
    carnn__span string = {bytes + at[i], at[i + 1] - at[i] - 1};
    return string;
}

/* Moves the part before the first `separator` from `s` to `part`, and drops the separator. Returns
   0, with all of `s` moved, if there is none. */
static int carnn__cut(carnn__span *s, char separator, carnn__span *part) {
    const char *stop = s->length ? (const char *)memchr(s->at, separator, s->length) : NULL;
    *part = *s;
    if (stop) part->length = (size_t)(stop - s->at);
    carnn__skip(s, part->length + (stop != NULL));
    return stop != NULL;
}

/* --- numbers: not read with strtod, whose decimal point is the locale's ----------------------- */

/* The number of digits at the front of `s`. */
static size_t carnn__digits(carnn__span s) {
    size_t i = 0;
    while (i < s.length && carnn__digit(s.at[i])) i++;
    return i;
}

/* Reads all of `s` as a whole number without a sign; returns 0 if it is not one. A number above
   UINT32_MAX is read as UINT32_MAX + 1. */
static int carnn__whole(carnn__span s, uint64_t *number) {
    size_t i, digits = carnn__digits(s);
    *number = 0;
    for (i = 0; i < digits; i++) {
        *number = *number * 10 + (uint64_t)(s.at[i] - '0');
        if (*number > UINT32_MAX) *number = (uint64_t)UINT32_MAX + 1;
    }
    return digits && digits == s.length;
}

/* Removes a sign from the front; is it a minus? */
static inline int carnn__minus(carnn__span *s) {
    int minus = s->length && *s->at == '-';
    if (minus || (s->length && *s->at == '+')) carnn__skip(s, 1);
    return minus;
}

/* Reads all of `s` as a decimal number, such as -12, .5 or 1e-7; returns 0 if it is not one, or is
   too large for a double. Digits after the first 19, without leading zeros, are dropped: they
   change it by less than one part in 10^18. */
static int carnn__number(carnn__span s, double *number) {
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const int64_t largest = 22;
    const uint64_t exact = (uint64_t)1 << 53, full = 1000000000000000000u;
    uint64_t digits = 0, written;
    int64_t exponent = 0; /* of ten, beside the digits */
    int negative = carnn__minus(&s), seen = 0, point = 0;
    for (; s.length; carnn__skip(&s, 1)) {
        if (carnn__digit(*s.at)) {
            seen = 1;
            if (digits < full) digits = digits * 10 + (uint64_t)(*s.at - '0');
            else exponent++;
            exponent -= point;
        } else if (*s.at == '.' && !point) {
            point = 1;
        } else {
            break;
        }
    }
    if (seen && s.length && (*s.at == 'e' || *s.at == 'E')) {
        int minus;
        carnn__skip(&s, 1);
        minus = carnn__minus(&s);
        if (!carnn__whole(s, &written)) return 0;
        exponent += minus ? -(int64_t)written : (int64_t)written;
        s.length = 0;
    }
    if (!seen || s.length) return 0;
    /* Two factors that doubles hold exactly need one rounding. All others are left to strtod, in a
       form without a decimal point, which is the same in every locale. */
    if (digits <= exact && exponent >= -largest && exponent <= largest) {
        *number = exponent < 0 ? (double)digits / powers[-exponent]
                               : (double)digits * powers[exponent];
    } else {
        char text[48];
        snprintf(text, sizeof text, "%llue%lld", (unsigned long long)digits, (long long)exponent);
        *number = strtod(text, NULL);
    }
    if (negative) *number = -*number;
    return fabs(*number) <= DBL_MAX;
}

/* --- tokenisers ---------------------------------------------------------------------------------
   Find the words of a text one at a time, as spans of it. Where a tokeniser folds upper to lower
   case, that is done when a word is hashed or compared. */

typedef enum carnn__tokenizer {
    CARNN__WORDS,  /* as in MemN2N: runs of [A-Za-z0-9_] and bytes >= 0x80, folded, no articles; and
                      each of . ? ! , ; which may be all that two candidates differ in */
    CARNN__SPACES, /* pieces between blanks */
    CARNN__LOWER,  /* pieces between blanks, folded */
    CARNN__TOKENS, /* the same, and punctuation at their ends is split off; leaves tokenised text
                      as it is */
    CARNN__SPOKEN  /* Switchboard: [A-Za-z0-9]+(?:'[A-Za-z]+)?|[.,?!], folded */
} carnn__tokenizer;

typedef struct carnn__words {
    carnn__tokenizer kind;
    const char *rest, *end; /* the part of the text that is still to be searched */
    const char *stop;       /* CARNN__TOKENS: the end of the piece that `rest` is in */
    int marks;              /* CARNN__TOKENS: the rest of the piece is punctuation */
    carnn__span word;       /* the word that carnn__next_word found */
} carnn__words;

static inline int carnn__folds(carnn__tokenizer kind) { return kind != CARNN__SPACES; }

static carnn__words carnn__words_of(carnn__tokenizer kind, const char *text, size_t length) {
    carnn__words words;
    while (length && carnn__blank(text[length - 1])) length--; /* as readers of data do */
    if (!length) text = "";
    memset(&words, 0, sizeof words);
    words.kind = kind;
    words.rest = words.stop = text;
    words.end = text + length;
    return words;
}

static inline int carnn__mark(char c) { return carnn__among(c, ".,;:?!\"()[]"); }

/* The length of the first word of a piece, `rest` to `stop`: all but the marks at the end, or, if
   only marks are left, a run of one mark ("..."). A single period at the end belongs to an
   abbreviation ("mr.", "u.s."), unless it is the end of the text and the piece has no other.
   `marks` prevents a second search from the end, hence quadratic time. */
static size_t carnn__token_length(carnn__words *w) {
    const char *at = w->rest;
    size_t length = (size_t)(w->stop - at), end = length, run = 1;
    if (!w->marks && (*at == '.' || !carnn__mark(*at))) { /* ".5" begins with a period */
        w->marks = 1;
        while (end && carnn__mark(at[end - 1])) {
            size_t dots = 0;
            while (dots < end && at[end - 1 - dots] == '.') dots++;
            if (dots == 1 && (w->stop < w->end || memchr(at, '.', end - 1))) break;
            end -= carnn__max(dots, 1);
        }
        if (end) return end;
    }
    while (run < length && at[run] == *at) run++;
    return run;
}

/* The length of the word that begins at `rest`, which is before the end; 0 if none does. */
static size_t carnn__word_length(carnn__words *w) {
    const char *at = w->rest;
    int words = w->kind == CARNN__WORDS;
    if (words || w->kind == CARNN__SPOKEN) {
        while (at < w->end && (carnn__letter(*at) || carnn__digit(*at) ||
                               (words && (*at == '_' || (unsigned char)*at >= 0x80))))
            at++;
        if (at == w->rest) {
            at += carnn__among(*at, words ? ".?!,;" : ".,?!");
        } else if (!words && w->end - at >= 2 && *at == '\'' && carnn__letter(at[1])) {
            for (at++; at < w->end && carnn__letter(*at); at++) {}
        }
        return (size_t)(at - w->rest);
    }
    if (at < w->stop) return carnn__token_length(w); /* within a piece of CARNN__TOKENS */
    while (at < w->end && !carnn__blank(*at)) at++;
    if (w->kind != CARNN__TOKENS || at == w->rest) return (size_t)(at - w->rest);
    w->stop = at;
    w->marks = 0;
    return carnn__token_length(w);
}

/* Moves on to the next word, `word`; returns 0 if there is none. */
static int carnn__next_word(carnn__words *w) {
    do {
        w->word.length = 0;
        while (w->rest < w->end && !w->word.length) {
            w->word.at = w->rest;
            w->word.length = carnn__word_length(w);
            w->rest += carnn__max(w->word.length, 1);
        }
    } while (w->kind == CARNN__WORDS && (carnn__is("a", w->word, 1) ||
                                         carnn__is("an", w->word, 1) ||
                                         carnn__is("the", w->word, 1)));
    return w->word.length > 0;
}

/* --- lists of names -----------------------------------------------------------------------------
   Distinct byte strings, numbered in order, with a hash table (open addressing, at most half full).
   A finished list is read-only, so threads may share it. The hash has a random key, so that no file
   can be written whose strings collide; numbers do not depend on it. */

typedef struct carnn__names {
    size_t count;
    char *bytes;    /* string i is at bytes + at[i], and ends with a NUL */
    size_t *at;     /* (count + 1) */
    uint32_t *slot; /* (slots) the number of a string, or CARNN__NO_INDEX */
    size_t slots;   /* a power of two */
    uint64_t key;   /* of the hash */
} carnn__names;

/* Numbers of words, texts, lines and examples have 32 bits. A data set with more is refused. */
#ifndef CARNN__COUNT_LIMIT
#define CARNN__COUNT_LIMIT (CARNN__NO_INDEX - 1)
#endif

static inline const char *carnn__names_get(const carnn__names *n, size_t i) {
    return n->bytes + n->at[i];
}

static inline size_t carnn__names_length(const carnn__names *n, size_t i) {
    return n->at[i + 1] - n->at[i] - 1;
}

/* The slot of `s`, or the free slot where it belongs. The hash takes eight bytes at a time. */
static size_t carnn__names_slot(const carnn__names *n, const char *s, size_t length, int fold) {
    uint64_t hash = n->key ^ length, eight = 0;
    size_t i, slot;
    for (i = 0; i < length; i++) {
        eight = eight << 8 | carnn__folded(s[i], fold);
        if (i % 8 == 7 || i + 1 == length) hash = carnn__mix(hash ^ eight);
    }
    for (slot = (size_t)hash & (n->slots - 1); n->slot[slot] != CARNN__NO_INDEX;
         slot = (slot + 1) & (n->slots - 1)) {
        i = n->slot[slot];
        if (carnn__names_length(n, i) == length &&
            carnn__equal(carnn__names_get(n, i), s, length, fold))
            break;
    }
    return slot;
}

/* The number of `s`, folded if `fold` is set; CARNN__NO_INDEX if the list does not have it. */
static uint32_t carnn__names_find_folded(const carnn__names *n, const char *s, size_t length,
                                         int fold) {
    return n->slots ? n->slot[carnn__names_slot(n, s, length, fold)] : CARNN__NO_INDEX;
}

static uint32_t carnn__names_find(const carnn__names *n, const char *s, size_t length) {
    return carnn__names_find_folded(n, s, length, 0);
}

/* Frees all slots and makes a new key, of the time and the address. */
static void carnn__names_clear(carnn__names *n) {
    double now = carnn__clock();
    uint64_t bits;
    memcpy(&bits, &now, sizeof bits);
    n->key = carnn__stream(bits, (uint64_t)(uintptr_t)n->slot);
    memset(n->slot, 0xFF, n->slots * sizeof *n->slot);
}

/* Appends `s`, folded if `fold` is set, whose slot is free; `bytes` and `at` have room for it. */
static void carnn__names_append(carnn__names *n, size_t slot, const char *s, size_t length,
                                int fold) {
    char *copy = n->bytes + n->at[n->count];
    size_t i;
    for (i = 0; i < length; i++) copy[i] = (char)carnn__folded(s[i], fold);
    copy[length] = 0;
    n->slot[slot] = (uint32_t)n->count++;
    n->at[n->count] = n->at[n->count - 1] + length + 1;
}

static void carnn__names_free(carnn__names *n, const carnn_allocator *a) {
    carnn__free(a, n->bytes);
    carnn__free(a, n->at);
    carnn__free(a, n->slot);
    memset(n, 0, sizeof *n);
}

/* Makes a finished list; CARNN_ERR_MODEL if its strings are not distinct. */
static carnn_status carnn__names_build(carnn__names *n, const carnn_allocator *a,
                                       const carnn__span *s, size_t count, carnn_error *error) {
    carnn_status status = CARNN_OK;
    size_t i, bytes = 0;
    memset(n, 0, sizeof *n);
    if (count > CARNN__COUNT_LIMIT)
        return carnn__fail(error, CARNN_ERR_MODEL, 0, "a list of %zu names is too long", count);
    for (i = 0; i < count; i++) bytes += s[i].length + 1;
    for (n->slots = 2; n->slots / 2 < count; n->slots *= 2) {}
    n->bytes = (char *)carnn__alloc(a, bytes, 1);
    n->at = (size_t *)carnn__alloc_zero(a, count + 1, sizeof *n->at);
    n->slot = (uint32_t *)carnn__alloc(a, n->slots, sizeof *n->slot);
    if (!n->bytes || !n->at || !n->slot) status = carnn__out_of_memory(error);
    else carnn__names_clear(n);
    for (i = 0; !status && i < count; i++) {
        size_t slot = carnn__names_slot(n, s[i].at, s[i].length, 0);
        if (n->slot[slot] == CARNN__NO_INDEX)
            carnn__names_append(n, slot, s[i].at, s[i].length, 0);
        else
            status = carnn__fail(error, CARNN_ERR_MODEL, 0,
                                 "number %zu of a list of names stands there twice", i);
    }
    if (status) carnn__names_free(n, a);
    return status;
}

/* Returns how many words a text has and writes the numbers of the first `max`; 0, <unk>, for a word
   that is not in the list. */
static size_t carnn__tokenize(const carnn__names *words, carnn__tokenizer kind, const char *text,
                              size_t length, uint32_t *ids, size_t max) {
    carnn__words w = carnn__words_of(kind, text, length);
    size_t count;
    for (count = 0; carnn__next_word(&w); count++) {
        uint32_t id;
        if (count >= max) continue;
        id = carnn__names_find_folded(words, w.word.at, w.word.length, carnn__folds(kind));
        ids[count] = id == CARNN__NO_INDEX ? 0 : id;
    }
    return count;
}

/* The end of a file name, short enough for an error message. */
static const char *carnn__name_end(const char *name) {
    size_t length = strlen(name), most = 160;
    return length > most ? name + (length - most) : name;
}

static carnn_status carnn__io_error(carnn_error *error, const char *name, const char *reason) {
    return carnn__fail(error, CARNN_ERR_IO, 0, "%s: %s", carnn__name_end(name), reason);
}

#ifndef CARNN_NO_TEXT

/* --- stb_ds -------------------------------------------------------------------------------------
   Vocabularies and readers grow their lists as arrays of stb_ds, and copy them into blocks of the
   right size when they are complete. Its hash tables are not used: their lookups write and share
   one seed in the process (races between threads), and their string keys end at a NUL.

   stb_ds does not check the result of realloc, so without memory ours jumps back into carnn__build,
   which started the work. The array is then as it was before, and freed by its owner. Outside of
   carnn__build (the host program uses the same copy of stb_ds) memory is malloc's. A host that
   brings its own copy with CARNN_NO_STB_DS_IMPLEMENTATION also brings its own realloc. */

#ifdef __cplusplus
} /* stb_ds.h has templates in C++, which cannot be in extern "C" */
#endif

#include <errno.h>
#include <setjmp.h>

#if !defined(CARNN_NO_STDIO) && (defined(__unix__) || defined(__APPLE__)) &&                       \
    !defined(__EMSCRIPTEN__)
#define CARNN__GZIP /* files can be unpacked by the program gzip */
#include <fcntl.h>
#include <spawn.h>
#include <sys/types.h>
#include <sys/wait.h>
#endif

#if defined(_MSC_VER)
#define CARNN__THREAD_LOCAL __declspec(thread)
#elif defined(__GNUC__)
#define CARNN__THREAD_LOCAL __thread
#else
#define CARNN__THREAD_LOCAL /* then build one data set or vocabulary at a time */
#endif

typedef struct carnn__landing {
    const carnn_allocator *allocator;
    jmp_buf spot;
} carnn__landing;

/* Where this thread's carnn__build waits; NULL outside of it. */
static CARNN__THREAD_LOCAL carnn__landing *carnn__landing_here;

#ifndef CARNN_NO_STB_DS_IMPLEMENTATION
static void *carnn__stb_realloc(void *block, size_t bytes) {
    carnn__landing *landing = carnn__landing_here;
    if (!landing) return realloc(block, bytes);
    block = landing->allocator->realloc(block, bytes, landing->allocator->user);
    if (!block) longjmp(landing->spot, 1);
    return block;
}

static void carnn__stb_free(void *block) {
    carnn__landing *landing = carnn__landing_here;
    if (!landing) free(block);
    else carnn__free(landing->allocator, block);
}

#undef STBDS_REALLOC
#undef STBDS_FREE
#define STBDS_REALLOC(context, block, bytes) carnn__stb_realloc(block, bytes)
#define STBDS_FREE(context, block) carnn__stb_free(block)
#define STB_DS_IMPLEMENTATION
#endif
#ifndef STBDS_NO_SHORT_NAMES
#define STBDS_NO_SHORT_NAMES
#endif

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#endif
#if defined(__has_include)
#if __has_include("stb_ds.h")
#include "stb_ds.h"
#else
#include <stb/stb_ds.h>
#endif
#else
#include "stb_ds.h"
#endif
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
#undef STB_DS_IMPLEMENTATION

#ifdef __cplusplus
extern "C" {
#endif

typedef carnn_status (*carnn__build_fn)(void *job);

/* Runs work(job), which may grow and free arrays of stb_ds, with the memory of `allocator`.
   CARNN_ERR_MEMORY if it runs out: then the arrays are as work left them, and still to be freed. */
static carnn_status carnn__build(const carnn_allocator *allocator, carnn__build_fn work, void *job,
                                 carnn_error *error) {
    carnn__landing landing, *outer = carnn__landing_here;
    carnn_status status;
    landing.allocator = allocator;
    if (setjmp(landing.spot)) {
        carnn__landing_here = outer;
        return carnn__out_of_memory(error);
    }
    carnn__landing_here = &landing;
    status = work(job);
    carnn__landing_here = outer;
    return status;
}

/* A block with a copy of `count` items, NULL without memory. */
static void *carnn__copy(const carnn_allocator *a, const void *items, size_t count, size_t size) {
    void *block = carnn__alloc(a, count, size);
    if (block && count) memcpy(block, items, count * size);
    return block;
}

/* The number of `s` in a list that begins as zeros and grows in carnn__build, so that its arrays
   are stb_ds's. It is added (folded if `fold` is set) if it is new; CARNN__NO_INDEX if the list is
   full. */
static uint32_t carnn__names_add(carnn__names *n, const char *s, size_t length, int fold) {
    size_t slot, i;
    if (n->slots / 2 <= n->count) { /* twice as many slots */
        i = n->slots ? 2 * n->slots : 16;
        stbds_arrsetlen(n->slot, i);
        n->slots = i;
        carnn__names_clear(n);
        for (i = 0; i < n->count; i++) {
            slot = carnn__names_slot(n, carnn__names_get(n, i), carnn__names_length(n, i), 0);
            n->slot[slot] = (uint32_t)i;
        }
    }
    slot = carnn__names_slot(n, s, length, fold);
    if (n->slot[slot] != CARNN__NO_INDEX || n->count >= CARNN__COUNT_LIMIT) return n->slot[slot];
    if (!n->at) stbds_arrput(n->at, 0);
    (void)stbds_arraddnptr(n->bytes, length + 1);
    stbds_arrput(n->at, 0);
    carnn__names_append(n, slot, s, length, fold);
    return n->slot[slot];
}

static void carnn__names_drop(carnn__names *n) {
    stbds_arrfree(n->bytes);
    stbds_arrfree(n->at);
    stbds_arrfree(n->slot);
    memset(n, 0, sizeof *n);
}

/* --- vocabulary ---------------------------------------------------------------------------------
   Counts the words of texts and makes a list of the frequent ones: open it, add texts, close it.
   The result is a finished list of "<unk>", which is number 0, the reserved words (without blanks),
   and the words that occurred often enough, in the order of their first occurrence. A list of
   labels has neither <unk> nor reserved words: it is begun with carnn__vocabulary_init. After an
   error texts are ignored, and closing it returns the error. */

typedef struct carnn__vocabulary {
    carnn_allocator allocator;
    carnn_error *error;
    carnn_status status;
    carnn__names words;  /* growing */
    size_t *times;       /* stb_ds array (words.count): how often each has occurred */
    size_t reserved;     /* the first words, which are kept however rare they are */
    size_t most;         /* the most frequent others are kept, of equals the first; 0: all */
    carnn__words text;   /* that is being added, and how often it occurs */
    size_t text_times;
} carnn__vocabulary;

static void carnn__vocabulary_init(carnn__vocabulary *v, const carnn_allocator *a,
                                   carnn_error *error) {
    memset(v, 0, sizeof *v);
    v->allocator = carnn__allocator(a);
    v->error = error;
}

static carnn_status carnn__vocabulary_count(void *job) {
    carnn__vocabulary *v = (carnn__vocabulary *)job;
    while (carnn__next_word(&v->text)) {
        uint32_t id = carnn__names_add(&v->words, v->text.word.at, v->text.word.length,
                                       carnn__folds(v->text.kind));
        if (id == CARNN__NO_INDEX)
            return carnn__fail(v->error, CARNN_ERR_DATA, 0, "more than %zu different words",
                               (size_t)CARNN__COUNT_LIMIT);
        if (id == stbds_arrlenu(v->times)) stbds_arrput(v->times, 0);
        v->times[id] += v->text_times;
    }
    return CARNN_OK;
}

/* Counts the words of a text that occurs `times` times. */
static void carnn__vocabulary_add(carnn__vocabulary *v, carnn__tokenizer kind, const char *text,
                                  size_t length, size_t times) {
    if (v->status) return;
    v->text = carnn__words_of(kind, text, length);
    v->text_times = times;
    v->status = carnn__build(&v->allocator, carnn__vocabulary_count, v, v->error);
}

static void carnn__vocabulary_open(carnn__vocabulary *v, const carnn_allocator *a,
                                   const char *const *reserved, size_t count, carnn_error *error) {
    size_t i;
    carnn__vocabulary_init(v, a, error);
    carnn__vocabulary_add(v, CARNN__SPACES, "<unk>", 5, 0);
    for (i = 0; i < count; i++)
        carnn__vocabulary_add(v, CARNN__SPACES, reserved[i], strlen(reserved[i]), 0);
    v->reserved = v->words.count;
}

/* Adds names, all of which are kept. */
static void carnn__vocabulary_keep(carnn__vocabulary *v, const carnn__names *names) {
    size_t i;
    for (i = 0; i < names->count; i++) {
        const char *name = carnn__names_get(names, i);
        carnn__vocabulary_add(v, CARNN__SPACES, name, strlen(name), 0);
    }
    v->reserved = v->words.count;
}

static carnn_status carnn__vocabulary_drop(void *job) {
    carnn__vocabulary *v = (carnn__vocabulary *)job;
    carnn__names_drop(&v->words);
    stbds_arrfree(v->times);
    return CARNN_OK;
}

/* What a word is ranked by: how often it occurred, then how early. */
static uint64_t carnn__vocabulary_rank(const carnn__vocabulary *v, size_t i) {
    return (uint64_t)carnn__min(v->times[i], UINT32_MAX) << 32 | (UINT32_MAX - i);
}

static int carnn__falling(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* Makes the list of the words that occurred at least `min_count` times and frees `v`. */
static carnn_status carnn__vocabulary_close(carnn__vocabulary *v, size_t min_count,
                                            carnn__names *words) {
    const carnn_allocator *a = &v->allocator;
    size_t count = v->words.count, others = count - v->reserved, kept = 0, i;
    uint64_t least = 0, *rank = (uint64_t *)carnn__alloc(a, others, sizeof *rank);
    carnn__span *s = (carnn__span *)carnn__alloc(a, count, sizeof *s);
    if (!v->status && !(rank && s)) v->status = carnn__out_of_memory(v->error);
    /* 1. The least rank that is among the `most` highest. */
    if (!v->status && v->most && v->most < others) {
        for (i = 0; i < others; i++) rank[i] = carnn__vocabulary_rank(v, v->reserved + i);
        qsort(rank, others, sizeof *rank, carnn__falling);
        least = rank[v->most - 1];
    }
    /* 2. Keep the reserved words and those that are frequent enough. */
    for (i = 0; !v->status && i < count; i++)
        if (i < v->reserved ||
            (v->times[i] >= min_count && carnn__vocabulary_rank(v, i) >= least))
            s[kept++] = carnn__string(v->words.bytes, v->words.at, i);
    if (!v->status) v->status = carnn__names_build(words, a, s, kept, v->error);
    carnn__free(a, rank);
    carnn__free(a, s);
    carnn__build(a, carnn__vocabulary_drop, v, NULL);
    return v->status;
}

/* --- lines --------------------------------------------------------------------------------------
   The lines of a text one at a time, and errors that name them. Lines end with LF or CR LF. */

typedef struct carnn__lines {
    const char *name; /* of the source, for errors */
    carnn__span rest; /* the lines that follow */
    carnn__span line; /* the line that carnn__next_line found, without its end */
    size_t number;    /* of the line, from 1 */
} carnn__lines;

/* Moves on to the next line; returns 0 if there is none. */
static int carnn__next_line(carnn__lines *l) {
    if (!l->rest.length) return 0;
    carnn__cut(&l->rest, '\n', &l->line);
    if (l->line.length && l->line.at[l->line.length - 1] == '\r') l->line.length--;
    l->number++;
    return 1;
}

#define CARNN__SHOWN 40

/* A text in quotes for an error message: shortened, with escapes for bytes that are not printable
   ASCII. */
static const char *carnn__show(char shown[4 * CARNN__SHOWN + 8], carnn__span text) {
    size_t i, count = carnn__min(text.length, CARNN__SHOWN);
    char *out = shown;
    if (!text.length) return "nothing";
    *out++ = '"';
    for (i = 0; i < count; i++) {
        unsigned char byte = (unsigned char)text.at[i];
        if (byte == '\t') out += snprintf(out, 3, "\\t");
        else if (byte < ' ' || byte > '~') out += snprintf(out, 5, "\\x%02x", byte);
        else *out++ = (char)byte;
    }
    snprintf(out, 6, "%s\"", text.length > count ? "..." : "");
    return shown;
}

/* "f.txt:1: expected a dialog, found an empty file" */
static carnn_status carnn__misread(carnn_error *error, const carnn__lines *l, const char *expected,
                                   const char *found) {
    return carnn__fail(error, CARNN_ERR_DATA, l->number, "%s:%zu: expected %s, found %s",
                       carnn__name_end(l->name), l->number, expected, found);
}

/* "trn.txt:381: expected a line number, found "abc"" */
static carnn_status carnn__expected(carnn_error *error, const carnn__lines *l, const char *what,
                                    carnn__span found) {
    char shown[4 * CARNN__SHOWN + 8];
    return carnn__misread(error, l, what, carnn__show(shown, found));
}

/* --- input --------------------------------------------------------------------------------------
   A source and the bytes of it that are at hand: the caller's, or in a buffer that is filled from a
   file front to end, so that pipes and devices can be read. A reader removes bytes from the front.
   A file that begins like one of gzip is unpacked by the program gzip, which reads the file itself:
   no shell, and no file name on a command line. A pipe cannot be read twice, so packed data from
   one is refused. */

#ifdef CARNN__GZIP
extern char **environ;
#ifndef __cplusplus /* -std=c99 and feature macros may hide it */
FILE *fdopen(int file, const char *mode);
#endif
#endif

typedef struct carnn__input {
    carnn__lines lines; /* the bytes at hand */
    int ended;          /* no more bytes follow */
    char *buffer;       /* NULL: the bytes are the caller's */
    size_t room;
#ifndef CARNN_NO_STDIO
    FILE *file; /* or the output of gzip */
#endif
#ifdef CARNN__GZIP
    pid_t gzip; /* 0: not running */
#endif
} carnn__input;

#ifndef CARNN__FIRST_READ
#define CARNN__FIRST_READ 65536
#endif

static inline int carnn__gzipped(const carnn__input *in) {
    return in->lines.rest.length >= 2 && memcmp(in->lines.rest.at, "\x1F\x8B", 2) == 0;
}

#ifdef CARNN__GZIP
/* Replaces the file by what gzip makes of it: starts gzip with the file as its input, a pipe to us
   as its output, and no messages. */
static carnn_status carnn__gzip_open(carnn__input *in, carnn_error *error) {
    char *const arguments[] = {(char *)"gzip", (char *)"-dc", NULL};
    posix_spawn_file_actions_t actions, *to_do = &actions;
    int ends[2], problem;
    if (pipe(ends)) return carnn__io_error(error, in->lines.name, strerror(errno));
    fcntl(ends[0], F_SETFD, FD_CLOEXEC); /* else gzip would wait for itself */
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    problem = posix_spawn_file_actions_init(to_do);
    if (!problem) {
        /* The file is opened under another number than 0: its name may be that of our input. */
        problem = posix_spawn_file_actions_addopen(to_do, ends[0], in->lines.name, O_RDONLY, 0);
        if (!problem) problem = posix_spawn_file_actions_adddup2(to_do, ends[0], 0);
        if (!problem) problem = posix_spawn_file_actions_adddup2(to_do, ends[1], 1);
        if (!problem)
            problem = posix_spawn_file_actions_addopen(to_do, 2, "/dev/null", O_WRONLY, 0);
        if (!problem) problem = posix_spawnp(&in->gzip, "gzip", to_do, NULL, arguments, environ);
        if (problem) in->gzip = 0;
        posix_spawn_file_actions_destroy(to_do);
    }
    close(ends[1]);
    fclose(in->file);
    in->file = fdopen(ends[0], "rb");
    if (!in->file) {
        if (!problem) problem = errno;
        close(ends[0]);
    }
    if (!problem) return CARNN_OK;
    return carnn__fail(error, CARNN_ERR_IO, 0, "%s: cannot be unpacked, the program gzip: %s",
                       carnn__name_end(in->lines.name), strerror(problem));
}

/* Waits for gzip, whose output has ended or is closed; returns 0 if the file was damaged. */
static int carnn__gzip_wait(carnn__input *in) {
    int code = 0;
    pid_t gzip = in->gzip;
    in->gzip = 0;
    while (gzip && waitpid(gzip, &code, 0) < 0)
        if (errno != EINTR) return 1; /* the host has taken the exit code */
    return WIFEXITED(code) && (WEXITSTATUS(code) == 0 || WEXITSTATUS(code) == 2); /* a warning */
}
#endif

static void carnn__input_close(carnn__input *in, const carnn_allocator *a) {
#ifndef CARNN_NO_STDIO
    if (in->file) fclose(in->file);
#endif
#ifdef CARNN__GZIP
    carnn__gzip_wait(in);
#endif
    carnn__free(a, in->buffer);
    memset(in, 0, sizeof *in);
}

/* Fills the buffer from `end` on with the next bytes of the file. */
static carnn_status carnn__input_read(carnn__input *in, size_t end, carnn_error *error) {
#ifdef CARNN_NO_STDIO
    (void)end;
    return carnn__io_error(error, in->lines.name, "built without files (CARNN_NO_STDIO)");
#else
    size_t got;
    do {
        clearerr(in->file);
        errno = 0;
        got = fread(in->buffer + end, 1, in->room - end, in->file);
    } while (!got && ferror(in->file) && errno == EINTR);
    if (!got && ferror(in->file))
        return carnn__io_error(error, in->lines.name, errno ? strerror(errno) : "cannot be read");
#ifdef CARNN__GZIP
    if (!got && !carnn__gzip_wait(in))
        return carnn__io_error(error, in->lines.name, "gzip cannot unpack it, it is damaged");
#endif
    in->lines.rest.length += got;
    in->ended = !got;
    return CARNN_OK;
#endif
}

/* Reads until `want` bytes are at hand, or all that are left. */
static carnn_status carnn__input_want(carnn__input *in, size_t want, const carnn_allocator *a,
                                      carnn_error *error) {
    while (!in->ended && in->lines.rest.length < want) {
        carnn__span *rest = &in->lines.rest;
        size_t end = in->buffer ? (size_t)(rest->at - in->buffer) + rest->length : 0;
        carnn_status status;
        /* 1. If the buffer is full to its end, move the bytes at hand to its front if that frees
           half of it, and else double it. So a byte is moved a few times at most. */
        if (end == in->room) {
            end = rest->length;
            if (end) memmove(in->buffer, rest->at, end);
            if (end >= in->room - in->room / 2) {
                size_t room = in->room ? 2 * in->room : CARNN__FIRST_READ;
                char *larger = NULL;
                if (room > in->room) larger = (char *)a->realloc(in->buffer, room, a->user);
                if (!larger)
                    return carnn__fail(error, CARNN_ERR_MEMORY, 0, "out of memory reading %s",
                                       carnn__name_end(in->lines.name));
                in->buffer = larger;
                in->room = room;
            }
            rest->at = in->buffer;
        }
        /* 2. Read. */
        status = carnn__input_read(in, end, error);
        if (status) return status;
    }
    return CARNN_OK;
}

/* Opens a source and reads `want` bytes of it, if there are so many, or SIZE_MAX: all. The byte
   order mark of UTF-8 is skipped. After an error nothing has to be closed. */
static carnn_status carnn__input_open(carnn__input *in, const carnn_source *source, size_t want,
                                      const carnn_allocator *a, carnn_error *error) {
    carnn_status status = CARNN_OK;
    memset(in, 0, sizeof *in);
    if (!source->name && !source->bytes)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "a source has neither a name nor bytes");
    in->lines.name = source->name ? source->name : "(memory)";
    in->lines.rest.at = (const char *)source->bytes;
    in->lines.rest.length = source->bytes ? source->size : 0;
    in->ended = source->bytes != NULL;
#ifndef CARNN_NO_STDIO
    if (!in->ended) in->file = fopen(source->name, "rb");
    if (!in->ended && !in->file) status = carnn__io_error(error, source->name, strerror(errno));
#endif
    if (!status) status = carnn__input_want(in, 3, a, error);
#ifdef CARNN__GZIP
    if (!status && in->file && carnn__gzipped(in) && !fseek(in->file, 0, SEEK_END)) {
        in->lines.rest.length = 0;
        in->ended = 0;
        status = carnn__gzip_open(in, error);
        if (!status) status = carnn__input_want(in, 3, a, error);
    }
#endif
    if (!status && carnn__gzipped(in))
        status = carnn__io_error(error, in->lines.name, "is packed; unpack it first with gzip -d");
    if (!status && in->lines.rest.length >= 3 && !memcmp(in->lines.rest.at, "\xEF\xBB\xBF", 3))
        carnn__skip(&in->lines.rest, 3);
    if (!status) status = carnn__input_want(in, want, a, error);
    if (status) carnn__input_close(in, a);
    return status;
}

/* --- word vectors -------------------------------------------------------------------------------
   Reads the vectors of the words of a vocabulary, and skips all others. A number beyond
   +-CARNN__VECTOR_MAX is damage, and would make infinities of the vectors of other words, which
   are scaled to the same length. The file, told by its beginning, may be

       GloVe      word SPACE number SPACE number ... LF; the word may have spaces in it
       word2vec   text, also fastText's .vec: the same after a line "words dimension"
       word2vec   binary: after a line "words dimension", word SPACE and `dimension` floats, little-
                  endian, with or without LF behind them */

#define CARNN__DIMENSION_MAX 65536
#define CARNN__VECTOR_MAX 1e6
#define CARNN__VECTOR_LINE_MAX ((size_t)1 << 24) /* bytes; binary garbage may have no LF at all */

typedef struct carnn__vectors {
    size_t dimension; /* 0 before the first file */
    size_t found;     /* words that have a vector */
    float *value;     /* (words, dimension); zero where none was found */
    char *has;        /* (words) */
    /* while a file is read */
    const carnn__names *words;
    const carnn_allocator *allocator;
    carnn_error *error;
    carnn__input input;
    size_t count;       /* vectors that word2vec's first line promises */
    size_t read;        /* vectors so far */
} carnn__vectors;

static void carnn__vectors_free(carnn__vectors *v, const carnn_allocator *a) {
    carnn__free_aligned(a, v->value);
    carnn__free(a, v->has);
    memset(v, 0, sizeof *v);
}

/* The row to read the vector of `word` into; NULL if the word is unknown, or has a vector. */
static float *carnn__vector_row(carnn__vectors *v, carnn__span word) {
    uint32_t row = carnn__names_find(v->words, word.at, word.length);
    if (row == CARNN__NO_INDEX || v->has[row]) return NULL;
    v->has[row] = 1;
    v->found++;
    return v->value + row * v->dimension;
}

static inline int carnn__gap(char c) { return c == ' ' || c == '\t'; }

/* Removes the last piece of a line, and the gap before it; empty if there is none. */
static carnn__span carnn__last_piece(carnn__span *line) {
    carnn__span last = *line;
    while (line->length && !carnn__gap(line->at[line->length - 1])) line->length--;
    carnn__skip(&last, line->length);
    while (line->length && carnn__gap(line->at[line->length - 1])) line->length--;
    return last;
}

/* Removes the numbers at the end of a line, at most `most`; returns how many. */
static size_t carnn__last_numbers(carnn__span *line, size_t most) {
    size_t count;
    for (count = 0; count < most; count++) {
        carnn__span rest = *line;
        double number;
        if (!carnn__number(carnn__last_piece(&rest), &number)) break;
        *line = rest;
    }
    return count;
}

/* Moves on to the next line; *more is 0 at the end. */
static carnn_status carnn__vector_line(carnn__vectors *v, int *more) {
    carnn__lines *l = &v->input.lines;
    carnn__span rest;
    size_t want = 1;
    int found;
    do {
        carnn_status status = carnn__input_want(&v->input, want, v->allocator, v->error);
        if (status) return status;
        rest = l->rest;
        found = carnn__cut(&rest, '\n', &l->line);
        want = 2 * l->line.length;
    } while (!found && !v->input.ended && l->line.length <= CARNN__VECTOR_LINE_MAX);
    *more = l->rest.length > 0;
    l->rest = rest;
    l->number++;
    while (l->line.length && carnn__blank(l->line.at[l->line.length - 1])) l->line.length--;
    if (found || v->input.ended) return CARNN_OK;
    return carnn__expected(v->error, l, "a word vector of at most 16 MB", l->line);
}

/* Reads the line at hand. */
static carnn_status carnn__vector_text(carnn__vectors *v) {
    const carnn__lines *l = &v->input.lines;
    carnn__span rest = l->line, word = rest;
    size_t i, gaps = 0;
    double number = 0.0;
    int odd = 0;
    char what[64];
    float *row;
    /* 1. The word is what is before the last `dimension` pieces. Nearly always that is the first
       piece, and there is one gap before each of the others, which is fast to see. */
    for (i = 0; i < rest.length; i++) gaps += (size_t)carnn__gap(rest.at[i]);
    if (gaps == v->dimension) {
        for (word.length = 0; !carnn__gap(word.at[word.length]); word.length++) {}
    } else {
        for (i = 0; i < v->dimension; i++) carnn__last_piece(&word);
        rest = word;
        odd = !rest.length || /* too few numbers, or too many */
              (carnn__number(carnn__last_piece(&rest), &number) && rest.length);
    }
    /* 2. The numbers, from the end. */
    rest = l->line;
    carnn__skip(&rest, word.length);
    row = odd ? NULL : carnn__vector_row(v, word);
    for (i = v->dimension; row && i-- > 0;) {
        carnn__span last = carnn__last_piece(&rest);
        odd = odd || !last.length;
        if (!odd && !(carnn__number(last, &number) && fabs(number) <= CARNN__VECTOR_MAX))
            return carnn__expected(v->error, l, "a number from -1e6 to 1e6", last);
        row[i] = (float)number;
    }
    v->read++;
    if (!odd) return CARNN_OK;
    snprintf(what, sizeof what, "a word and %zu numbers", v->dimension);
    return carnn__expected(v->error, l, what, l->line);
}

/* Reads the vector at the front of the input, in binary form, and removes it there. */
static carnn_status carnn__vector_binary(carnn__vectors *v) {
    const size_t longest = 65536, bytes = 4 * v->dimension;
    carnn__span *front = &v->input.lines.rest, rest, word;
    carnn_status status = carnn__input_want(&v->input, longest + bytes, v->allocator, v->error);
    const char *found = NULL; /* instead of a vector */
    float *row;
    size_t i;
    if (status) return status;
    while (front->length && *front->at == '\n') carnn__skip(front, 1); /* of the vector before */
    rest.at = front->at;
    rest.length = carnn__min(front->length, longest);
    if (!carnn__cut(&rest, ' ', &word) && front->length >= longest) found = "no word";
    else if (front->length < word.length + 1 + bytes) found = "the end of the file";
    row = found ? NULL : carnn__vector_row(v, word);
    carnn__skip(front, found ? 0 : word.length + 1);
    for (i = 0; row && i < v->dimension; i++) {
        const unsigned char *b = (const unsigned char *)front->at + 4 * i;
        uint32_t bits = b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
        memcpy(row + i, &bits, sizeof bits);
        if (!(fabs((double)row[i]) <= CARNN__VECTOR_MAX))
            found = "a float that is not from -1e6 to 1e6";
    }
    if (found)
        return carnn__fail(v->error, CARNN_ERR_DATA, 0,
                           "%s: expected %zu vectors of %zu floats, found %s in number %zu",
                           carnn__name_end(v->input.lines.name), v->count, v->dimension, found,
                           v->read + 1);
    carnn__skip(front, bytes);
    v->read++;
    return CARNN_OK;
}

/* After the first line of word2vec: is the first vector binary? It is not if the numbers are there
   as text, or if the bytes that would be floats are printable: text, with a number too many. */
static carnn_status carnn__vector_sniff(carnn__vectors *v, int *binary) {
    size_t i, window = 65536 + 32 * v->dimension;
    carnn_status status = carnn__input_want(&v->input, window, v->allocator, v->error);
    carnn__span rest = v->input.lines.rest, floats, line, word;
    rest.length = carnn__min(rest.length, window);
    floats = rest;
    carnn__cut(&rest, '\n', &line);
    line = carnn__trim(line);
    if (carnn__last_numbers(&line, v->dimension) == v->dimension) return status;
    carnn__cut(&floats, ' ', &word);
    floats.length = carnn__min(floats.length, 4 * v->dimension);
    for (i = 0; i < floats.length; i++) {
        char c = floats.at[i];
        if (!carnn__blank(c) && (c < ' ' || c > '~')) *binary = 1;
    }
    return status;
}

/* Finds the form of the file and the length of its vectors, and takes memory if it is the first
   file. The line at hand is then a vector, or empty. */
static carnn_status carnn__vectors_begin(carnn__vectors *v, int *binary, int *more) {
    carnn__lines *l = &v->input.lines;
    carnn__span line, rest, last;
    size_t words = v->words->count, dimension;
    uint64_t vectors = 0, numbers;
    int counts;
    carnn_status status = carnn__vector_line(v, more);
    if (status) return status;
    /* 1. Two whole numbers are the first line of word2vec; else the line is a vector, and its word
       may look like a number. */
    line = rest = l->line;
    last = carnn__last_piece(&rest);
    counts = carnn__whole(last, &numbers) && carnn__whole(rest, &vectors);
    v->count = counts ? (size_t)vectors : 0;
    dimension = counts ? (size_t)numbers : carnn__last_numbers(&line, CARNN__DIMENSION_MAX + 1);
    if (!counts && dimension && !line.length) dimension--;
    if (!dimension || dimension > CARNN__DIMENSION_MAX)
        return carnn__expected(v->error, l, "a word and up to 65536 numbers", l->line);
    if (v->dimension && v->dimension != dimension)
        return carnn__fail(v->error, CARNN_ERR_DATA, 1,
                           "%s:1: expected vectors of %zu numbers as before, found %zu numbers",
                           carnn__name_end(l->name), v->dimension, dimension);
    /* 2. Memory */
    if (!v->dimension) {
        v->value = (float *)carnn__alloc_aligned(v->allocator, words,
                                                 carnn__times(dimension, sizeof(float)));
        v->has = (char *)carnn__alloc_zero(v->allocator, words, 1);
        if (!v->value || !v->has) return carnn__out_of_memory(v->error);
        memset(v->value, 0, words * dimension * sizeof(float));
        v->dimension = dimension;
    }
    /* 3. Only word2vec's may be binary. */
    if (!counts) return CARNN_OK;
    l->line.length = 0;
    return carnn__vector_sniff(v, binary);
}

/* Reads the vectors of words that have none yet. `v` begins as zeros, and is freed by its owner,
   also after an error. */
static carnn_status carnn__vectors_read(carnn__vectors *v, const carnn_source *source,
                                        const carnn__names *words, const carnn_allocator *a,
                                        carnn_error *error) {
    carnn_status status;
    int binary = 0, more = 1;
    v->words = words;
    v->allocator = a;
    v->error = error;
    v->read = 0;
    status = carnn__input_open(&v->input, source, 0, a, error);
    if (!status) status = carnn__vectors_begin(v, &binary, &more);
    while (!status && binary && v->read < v->count) status = carnn__vector_binary(v);
    while (!status && !binary && more) {
        if (v->input.lines.line.length) status = carnn__vector_text(v);
        if (!status) status = carnn__vector_line(v, &more);
    }
    if (!status && !v->read) {
        v->input.lines.number = 1;
        status = carnn__misread(error, &v->input.lines, "word vectors", "none");
    }
    carnn__input_close(&v->input, a);
    return status;
}

#endif /* CARNN_NO_TEXT */

#endif
/* =============================================================================================
   @@DATA   data sets: texts, items and groups; the formats of their files

   An ITEM is an example: some texts, each in a ROLE (question, sentence, user, ...), what is right
   (a text, or a number), and the GROUP it belongs to (a dialog, a document, a question). Every
   distinct text is kept once, without the blanks at its ends, and has a number. The texts of an
   item are a range of one list of members, and ranges may overlap: turn k of a dialog has all lines
   from the dialog's first on.
   ============================================================================================= */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

/* What a text is in its item; a task lists its roles, the name of the last one is NULL. */
typedef struct carnn__role {
    const char *name;
    carnn__tokenizer tokenizer;
    int labels; /* its words name choices of the model (tags): targets, not inputs */
} carnn__role;

typedef struct carnn__member {
    uint32_t text, role;
} carnn__member;

typedef struct carnn__item {
    size_t first;    /* its texts are members[first] .. members[first + count - 1] */
    uint32_t count;
    uint32_t group;  /* items of a group are consecutive */
    uint32_t target; /* text of what is right: a reply, a class; CARNN__NO_INDEX: not known */
    uint32_t line;   /* of the file it comes from */
    float value;     /* what is right, as a number: 1 for a right answer, 0 for a wrong one */
    uint32_t origin; /* of the file: where its name begins in `origin_names` */
} carnn__item;

struct carnn_dataset {
    carnn_allocator allocator;
    const char *task;
    size_t text_count;   /* text i: bytes + text_at[i], text_at[i + 1] - text_at[i] - 1 long, NUL */
    char *bytes;
    size_t *text_at;
    size_t member_count, item_count, group_count, choice_count;
    carnn__member *members;
    carnn__item *items;
    uint32_t *choices;   /* texts to choose from, in the order in which they first occur */
    size_t *shown_at;    /* (choice_count + 1) where a choice is in `shown`, which has */
    char *shown;         /* them byte for byte, with blanks at their ends, and a NUL behind each */
    size_t columns;      /* members are rows of so many numbers instead of words; 0: of words */
    float *numbers;      /* (rows, columns) */
    size_t row_count;    /* texts of numbers: text i has the rows row_at[i] .. row_at[i + 1] - 1 */
    size_t *row_at;
    char *origin_names;  /* of the files, so that errors can name them later */
    const char *format;  /* see carnn_dataset_format */
    int spoken;          /* lines are turns of speakers, their labels dialog acts */
    size_t groups_left_out;
};

/* All lists of a data set. */
#define CARNN__DATASET_LISTS(X)                                                                    \
    X(char, bytes)                                                                                 \
    X(size_t, text_at)                                                                             \
    X(carnn__member, members)                                                                      \
    X(carnn__item, items)                                                                          \
    X(uint32_t, choices)                                                                           \
    X(size_t, shown_at)                                                                            \
    X(char, shown)                                                                                 \
    X(float, numbers)                                                                              \
    X(size_t, row_at)                                                                              \
    X(char, origin_names)

static inline carnn__span carnn__text(const carnn_dataset *data, size_t i) {
    return carnn__string(data->bytes, data->text_at, i);
}

/* The numbers of text i, as bytes. */
static inline carnn__span carnn__rows(const carnn_dataset *data, size_t i) {
    carnn__span rows = {(const char *)(data->numbers + data->row_at[i] * data->columns),
                        (data->row_at[i + 1] - data->row_at[i]) * data->columns * sizeof(float)};
    return rows;
}

/* The first member of an item, which has `count`. */
static inline const carnn__member *carnn__members(const carnn_dataset *data,
                                                  const carnn__item *item) {
    return data->members + item->first;
}

CARNN_API void carnn_dataset_free(carnn_dataset *dataset) {
    carnn_allocator a;
    if (!dataset) return;
    a = dataset->allocator;
#define CARNN__FREE_LIST(type, list) carnn__free(&a, dataset->list);
    CARNN__DATASET_LISTS(CARNN__FREE_LIST)
#undef CARNN__FREE_LIST
    carnn__free(&a, dataset);
}

CARNN_API size_t carnn_dataset_examples(const carnn_dataset *dataset) {
    return dataset ? dataset->item_count : 0;
}

CARNN_API size_t carnn_dataset_groups(const carnn_dataset *dataset) {
    return dataset ? dataset->group_count : 0;
}

CARNN_API size_t carnn_dataset_left_out(const carnn_dataset *dataset) {
    return dataset ? dataset->groups_left_out : 0;
}

CARNN_API const char *carnn_dataset_format(const carnn_dataset *dataset) {
    return dataset ? dataset->format : NULL;
}

CARNN_API size_t carnn_dataset_text_count(const carnn_dataset *dataset, size_t example) {
    return example < dataset->item_count ? dataset->items[example].count : 0;
}

CARNN_API const char *carnn_dataset_text(const carnn_dataset *dataset, size_t example,
                                         size_t number) {
    if (number >= carnn_dataset_text_count(dataset, example) || dataset->columns) return NULL;
    return carnn__text(dataset, carnn__members(dataset, &dataset->items[example])[number].text).at;
}

CARNN_API const char *carnn_dataset_target(const carnn_dataset *dataset, size_t example) {
    if (example >= dataset->item_count || dataset->items[example].target == CARNN__NO_INDEX)
        return NULL;
    return carnn__text(dataset, dataset->items[example].target).at;
}

/* FNV-1a, whose weak upper bits are then mixed: the same for a word in every process. */
static uint64_t carnn__hash(const char *s, size_t length, int fold) {
    uint64_t hash = 0xCBF29CE484222325u;
    size_t i;
    for (i = 0; i < length; i++) hash = (hash ^ carnn__folded(s[i], fold)) * 0x100000001B3u;
    return carnn__mix(hash);
}

/* --- lists of candidates "c1|c2|..." --------------------------------------------------------- */

/* Takes the next candidate off a list; 0: there is none. */
static int carnn__next_candidate(carnn__span *list, carnn__span *candidate) {
    do {
        if (!list->length) return 0;
        carnn__cut(list, '|', candidate);
        *candidate = carnn__trim(*candidate);
    } while (!candidate->length);
    return 1;
}

typedef struct carnn__reader carnn__reader;

enum { CARNN__CLASS_FINE = 0, CARNN__CLASS_PHRASES = 8 }; /* among the options of classify */

enum { CARNN__PAIR_TARGET, CARNN__PAIR_GRADES }; /* among those of pair */

/* The largest grade; 0: targets are classes. */
static size_t carnn__pair_grades(const double *option) {
    if (!option || option[CARNN__PAIR_TARGET] != 2.0) return 0;
    return option[CARNN__PAIR_GRADES] > 0.0 ? (size_t)option[CARNN__PAIR_GRADES] : 5;
}

/* Words of a question or an answer at most: pairs are compared word by word. */
#define CARNN__SENTENCE_WORDS 512

/* Words of a text and of a question, and candidates of a cloze example at most. */
#define CARNN__CLOZE_WORDS 2048
#define CARNN__CLOZE_QUESTION 512
#define CARNN__CLOZE_CANDIDATES 64

enum { CARNN__CLOZE_TEXT, CARNN__CLOZE_ASKED, CARNN__CLOZE_LIST }; /* its roles */

#ifdef CARNN_NO_TEXT
#define CARNN__TEXT_ONLY(x) NULL

CARNN_API carnn_status carnn_dataset_load(carnn_dataset **dataset, const carnn_dataset_desc *desc,
                                          carnn_error *error) {
    (void)desc;
    *dataset = NULL;
    return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "built without data sets (CARNN_NO_TEXT)");
}

#else
#define CARNN__TEXT_ONLY(x) x

/* --- records ------------------------------------------------------------------------------------
   A format is a function from a line to a record: what the line says, as pieces of it. Data sets
   and sessions that read a file line by line are given records. */

#define CARNN__RECORD_TEXTS 4

typedef struct carnn__record {
    int begins;      /* a group begins with it */
    int example;     /* it is an example; else its texts are only heard before later ones */
    size_t before;   /* so many earlier texts of its group belong to the example, too, at most */
    size_t count;    /* of its texts */
    size_t own;      /* the first so many belong to the example; later ones follow it (a reply) */
    carnn__span text[CARNN__RECORD_TEXTS];
    uint32_t role[CARNN__RECORD_TEXTS];
    size_t columns;  /* its texts are floats: rows of so many numbers; 0: they are words */
    int has_target;
    carnn__span target;
    float value;
    int spoken;      /* its texts are tokenised as those of Switchboard are */
    int tree, once;  /* its text is the leaves of a tree; left out where the text is known */
} carnn__record;

/* A reader's place in a file, and what a format has to remember from line to line. */
typedef struct carnn__parser {
    carnn_error *error;
    carnn__lines lines;  /* its line is what is parsed */
    int lenient;         /* see carnn_dataset_desc */
    int begun;           /* a group is open */
    int64_t last;        /* number of the line before */
    size_t fact;         /* line of the last fact if no turn has followed it, else 0 */
    uint64_t key;        /* hash of what the group before is told by */
    size_t column[5];    /* of tables: which column is which, and how many there are */
    const char *file[2]; /* where texts have files of their own: their names, else NULL */
    int style;           /* of formats with variants: which, from the first lines; 0: not known */
    const char *format;  /* its name, for those who ask */
    size_t at;           /* of lines with several records: where the next one begins; 0: none */
    const double *option; /* the task's, of the model that will read the data; NULL: defaults */
    const char *text;     /* where the text of a cloze example begins in the file */
    size_t words;         /* of it so far */
} carnn__parser;

static carnn_status carnn__unexpected(const carnn__parser *p, const char *what,
                                      carnn__span found) {
    return carnn__expected(p->error, &p->lines, what, found);
}

/* A fact that no turn of its dialog follows is never read: most likely it is a turn whose tab is
   missing. At the end of a file it is passed over, as the file may be a part of another one. */
static carnn_status carnn__read_in_vain(carnn__parser *p) {
    if (!p->fact || p->lenient) return CARNN_OK;
    p->lines.number = p->fact;
    return carnn__misread(p->error, &p->lines, "a tab between user and response, or a turn that "
                          "follows the fact", "neither");
}

/* Is the line at hand not blank? In an example to be predicted a tab counts. */
static int carnn__says_something(const carnn__parser *p) {
    carnn__span line = p->lines.line;
    if (p->lenient && line.length && memchr(line.at, '\t', line.length)) return 1;
    return carnn__trim(line).length > 0;
}

static void carnn__record_text(carnn__record *r, uint32_t role, carnn__span text) {
    r->text[r->count] = text;
    r->role[r->count++] = role;
}

/* --- reading ------------------------------------------------------------------------------------
   A reader works in carnn__build on a draft, a data set whose lists are stb_ds's. They are copied
   when all is well. */

typedef struct carnn__reading {
    const carnn_dataset_desc *desc;
    const carnn__reader *reader;
    carnn_allocator allocator;
    carnn__parser parser;
    carnn_dataset draft, *finished;
    carnn__names texts;   /* becomes bytes, text_at, text_count of the draft */
    uint32_t *listed;     /* (texts.count) number of a text among the choices */
    size_t group_first;   /* first member of the group at hand */
    size_t records;       /* so far */
    int lists;            /* targets become choices */
    uint32_t origin;      /* see carnn__item */
    carnn__input input[4]; /* the source that is being read; the files of a folder */
    char *scratch;         /* a path, or a sentence as words */
    /* a part of another data set instead of sources */
    const carnn_dataset *whole;
    const uint32_t *of_group; /* (groups of `whole`) */
    uint32_t wanted;          /* groups with this number are kept */
} carnn__reading;

/* How the data of a task is read. */
struct carnn__reader {
    carnn_status (*line)(carnn__parser *p, carnn__record *r);
    const char *example; /* what a file has to have, for errors: "a dialog" */
    int candidates;      /* a target is one of a list, which may have a file of its own */
    int cleans;          /* groups without a right or a wrong item can be left out */
    /* a source that is a folder; *found is 0 where it is none; NULL: folders are not read */
    carnn_status (*folder)(carnn__reading *r, const char *name, int *found);
    const char *help;    /* the formats, for help texts */
};

/* The number of a text, trimmed. */
static uint32_t carnn__reading_text(carnn__reading *r, carnn__span s) {
    uint32_t text;
    s = carnn__trim(s);
    text = carnn__names_add(&r->texts, s.at, s.length, 0);
    if (text == stbds_arrlenu(r->listed)) stbds_arrput(r->listed, CARNN__NO_INDEX);
    return text;
}

/* Makes a text a choice if it is none; `shown` is how it was written. */
static void carnn__reading_choice(carnn__reading *r, uint32_t text, carnn__span shown) {
    char *copy;
    if (r->listed[text] != CARNN__NO_INDEX) return;
    r->listed[text] = (uint32_t)stbds_arrlenu(r->draft.choices);
    stbds_arrput(r->draft.choices, text);
    stbds_arrput(r->draft.shown_at, stbds_arrlenu(r->draft.shown));
    copy = stbds_arraddnptr(r->draft.shown, shown.length + 1);
    memcpy(copy, shown.at, shown.length);
    copy[shown.length] = 0;
}

/* An utterance of Switchboard as words in lower case with blanks between them, in scratch. */
static carnn__span carnn__spoken_words(carnn__reading *r, carnn__span text) {
    carnn__words w = carnn__words_of(CARNN__SPOKEN, text.at, text.length);
    carnn__span words;
    size_t i;
    stbds_arrsetlen(r->scratch, 0);
    while (carnn__next_word(&w)) {
        for (i = 0; i < w.word.length; i++)
            stbds_arrput(r->scratch, (char)carnn__folded(w.word.at[i], 1));
        stbds_arrput(r->scratch, ' ');
    }
    words.at = r->scratch;
    words.length = stbds_arrlenu(r->scratch);
    return words;
}

/* Adds rows of numbers as a text: its number. */
static uint32_t carnn__reading_rows(carnn__reading *r, carnn__span numbers) {
    carnn_dataset *d = &r->draft;
    size_t count = numbers.length / sizeof(float);
    if (!d->row_at) stbds_arrput(d->row_at, 0);
    if (count) memcpy(stbds_arraddnptr(d->numbers, count), numbers.at, count * sizeof(float));
    stbds_arrput(d->row_at, stbds_arrlenu(d->numbers) / d->columns);
    return (uint32_t)stbds_arrlenu(d->row_at) - 2;
}

/* Writes the leaves of a tree "(3 (2 It) (4 sings))", blanks between them, to `to`, which has room
   for the tree; returns their length. */
static size_t carnn__leaves(carnn__span tree, char *to) {
    size_t i, n = 0;
    for (i = 0; i < tree.length; i++) {
        char c = tree.at[i];
        if (c == '(') i += 1; /* the label */
        else if (c != ')' && !carnn__gap(c)) to[n++] = c;
        else if (n && to[n - 1] != ' ') to[n++] = ' ';
    }
    return n;
}

/* Adds a record: its target before its texts, as vocabularies depend on the order. */
static carnn_status carnn__reading_record(carnn__reading *r, const carnn__record *record) {
    const size_t most = CARNN__COUNT_LIMIT - 8; /* texts, members and items have 32 bits */
    const carnn__lines *l = &r->parser.lines;
    carnn_dataset *d = &r->draft;
    size_t i, at = stbds_arrlenu(d->members);
    uint32_t target = CARNN__NO_INDEX;
    if (r->texts.count >= most || at >= most || stbds_arrlenu(d->items) >= most)
        return carnn__fail(r->parser.error, CARNN_ERR_DATA, l->number,
                           "%s:%zu: expected no more than %zu lines in one data set",
                           carnn__name_end(l->name), l->number, most);
    r->records++;
    if (record->has_target) {
        target = carnn__reading_text(r, record->target);
        if (r->lists) carnn__reading_choice(r, target, record->target);
    }
    if (!record->count) return CARNN_OK;
    if (at && record->columns != d->columns)
        return carnn__misread(r->parser.error, l, "rows as long as those before",
                              "another number of columns");
    d->columns = record->columns;
    if (record->begins || !d->group_count) {
        r->group_first = at;
        d->group_count++;
    }
    for (i = 0; i < record->count; i++) {
        carnn__span text = record->text[i];
        carnn__member m = {0, record->role[i]};
        size_t known = r->texts.count;
        if (record->spoken) text = carnn__spoken_words(r, text);
        if (record->tree) {
            stbds_arrsetlen(r->scratch, text.length);
            text.length = carnn__leaves(text, r->scratch);
            text.at = r->scratch;
        }
        m.text = record->columns ? carnn__reading_rows(r, text) : carnn__reading_text(r, text);
        if (record->once && m.text < known) return CARNN_OK;
        stbds_arrput(d->members, m);
    }
    d->spoken |= record->spoken;
    if (record->example) {
        size_t earlier = carnn__min(record->before, at - r->group_first);
        uint32_t line = (uint32_t)carnn__min(l->number, UINT32_MAX);
        carnn__item x = {at - earlier, (uint32_t)(earlier + record->own),
                         (uint32_t)(d->group_count - 1), target, line, record->value, r->origin};
        stbds_arrput(d->items, x);
    }
    return CARNN_OK;
}

/* The examples from here on come from the source `name`. */
static void carnn__reading_origin(carnn__reading *r, const char *name) {
    size_t bytes = strlen(name) + 1;
    r->origin = (uint32_t)stbds_arrlenu(r->draft.origin_names);
    memcpy(stbds_arraddnptr(r->draft.origin_names, bytes), name, bytes);
}

/* The name of the source that an example comes from. */
static const char *carnn__dataset_origin(const carnn_dataset *data, size_t example) {
    return data->origin_names + data->items[example].origin;
}

/* "f.txt:3: expected `what`, found" the target of item i. */
static carnn_status carnn__target_fail(const carnn_dataset *data, size_t i, const char *what,
                                       carnn_error *error) {
    char shown[4 * CARNN__SHOWN + 8];
    const carnn__item *x = &data->items[i];
    carnn__span target = {NULL, 0};
    if (x->target != CARNN__NO_INDEX) target = carnn__text(data, x->target);
    return carnn__fail(error, CARNN_ERR_DATA, x->line, "%s:%u: expected %s, found %s",
                       carnn__name_end(carnn__dataset_origin(data, i)), (unsigned)x->line, what,
                       carnn__show(shown, target));
}

/* Leaves out the groups from item `from` on, the first of which is number `group`, that have no
   right or no wrong item. */
static void carnn__reading_clean(carnn_dataset *draft, size_t from, size_t group) {
    size_t n = stbds_arrlenu(draft->items), kept = from, end, i;
    draft->groups_left_out += draft->group_count - group;
    draft->group_count = group;
    for (; from < n; from = end) {
        size_t right = 0;
        for (end = from; end < n && draft->items[end].group == draft->items[from].group; end++)
            right += draft->items[end].value > 0.0f;
        if (!right || right == end - from) continue;
        for (i = from; i < end; i++) {
            draft->items[kept] = draft->items[i];
            draft->items[kept++].group = (uint32_t)draft->group_count;
        }
        draft->group_count++;
        draft->groups_left_out--;
    }
    if (n) stbds_arrsetlen(draft->items, kept);
}

static carnn_status carnn__reading_source(carnn__reading *r, const carnn_source *source) {
    carnn_status status = CARNN_OK;
    carnn_dataset *d = &r->draft;
    size_t items = stbds_arrlenu(d->items), groups = d->group_count, records = r->records;
    int folder = 0;
    carnn_error *error = r->parser.error;
    memset(&r->parser, 0, sizeof r->parser);
    r->parser.error = error;
    r->parser.lenient = r->desc->lenient;
    r->parser.option = r->desc->model ? r->desc->model->option : NULL;
    if (!source->bytes && source->name && r->reader->folder)
        status = r->reader->folder(r, source->name, &folder);
    if (!status && !folder) {
        carnn__input_close(r->input, &r->allocator);
        status = carnn__input_open(r->input, source, SIZE_MAX, &r->allocator, error);
        if (status) return status;
        r->parser.lines = r->input->lines;
        carnn__reading_origin(r, r->parser.lines.name);
        while (!status && (r->parser.at || carnn__next_line(&r->parser.lines))) {
            carnn__record record;
            memset(&record, 0, sizeof record);
            status = r->reader->line(&r->parser, &record);
            if (!status && (record.count || record.has_target))
                status = carnn__reading_record(r, &record);
        }
    }
    if (!status && stbds_arrlenu(d->items) == items) status = carnn__read_in_vain(&r->parser);
    if (status) return status;
    if (!d->format) d->format = r->parser.format;
    if (r->records == records && !r->desc->lenient) {
        r->parser.lines.number = 1;
        return carnn__misread(error, &r->parser.lines, r->reader->example, "an empty file");
    }
    if (r->desc->clean) carnn__reading_clean(d, items, groups);
    if (!r->desc->clean || stbds_arrlenu(d->items) > items) return CARNN_OK;
    return carnn__fail(error, CARNN_ERR_DATA, 0,
                       "%s: every question lacks a right or a wrong answer",
                       carnn__name_end(r->parser.lines.name));
}

/* One candidate a line, after an optional number and one blank; a number alone is a candidate. Of
   two that differ in the blanks at their ends only, the first one counts. */
static carnn_status carnn__candidate_line(carnn__parser *p, carnn__record *r) {
    carnn__span line = p->lines.line;
    size_t digits = carnn__digits(line);
    if (digits && digits < line.length && carnn__blank(line.at[digits]))
        carnn__skip(&line, digits + 1);
    r->target = line;
    r->has_target = carnn__trim(p->lines.line).length > 0;
    if (!r->has_target || carnn__trim(line).length) return CARNN_OK;
    return carnn__unexpected(p, "a candidate after the number", carnn__trim(line));
}

static const carnn__reader carnn__candidate_reader = {
    carnn__candidate_line, "candidates, one a line", 0, 0, NULL, NULL};

static carnn_status carnn__reading_drop(void *job) {
    carnn__reading *r = (carnn__reading *)job;
    size_t i;
    carnn__names_drop(&r->texts);
    stbds_arrfree(r->listed);
    stbds_arrfree(r->scratch);
#define CARNN__DROP_LIST(type, list) stbds_arrfree(r->draft.list);
    CARNN__DATASET_LISTS(CARNN__DROP_LIST)
#undef CARNN__DROP_LIST
    for (i = 0; i < CARNN__COUNT(r->input); i++) carnn__input_close(&r->input[i], &r->allocator);
    return CARNN_OK;
}

/* Copies the draft into a data set with lists of their final size. */
static carnn_status carnn__reading_finish(carnn__reading *r) {
    carnn_dataset *draft = &r->draft, *data;
    int complete = 1;
    stbds_arrput(draft->shown_at, stbds_arrlenu(draft->shown));
    draft->allocator = r->allocator;
    draft->text_count = r->texts.count;
    draft->bytes = r->texts.bytes; /* the draft owns them now */
    draft->text_at = r->texts.at;
    r->texts.bytes = NULL;
    r->texts.at = NULL;
    draft->member_count = stbds_arrlenu(draft->members);
    draft->item_count = stbds_arrlenu(draft->items);
    draft->choice_count = stbds_arrlenu(draft->choices);
    draft->row_count = draft->columns ? stbds_arrlenu(draft->row_at) - 1 : 0;
    data = (carnn_dataset *)carnn__alloc(&r->allocator, 1, sizeof *data);
    if (!data) return carnn__out_of_memory(r->parser.error);
    *data = *draft;
#define CARNN__COPY_LIST(type, list)                                                               \
    data->list = (type *)carnn__copy(&r->allocator, draft->list, stbds_arrlenu(draft->list),       \
                                     sizeof(type));                                                \
    complete &= data->list != NULL;
    CARNN__DATASET_LISTS(CARNN__COPY_LIST)
#undef CARNN__COPY_LIST
    if (complete) r->finished = data;
    else carnn_dataset_free(data);
    return complete ? CARNN_OK : carnn__out_of_memory(r->parser.error);
}

/* Makes a data set of what `read` adds to the draft. */
static carnn_status carnn__reading_run(carnn_dataset **dataset, carnn__reading *r,
                                       carnn__build_fn read) {
    carnn_status status = carnn__build(&r->allocator, read, r, r->parser.error);
    carnn__build(&r->allocator, carnn__reading_drop, r, NULL);
    *dataset = r->finished;
    return status;
}

static carnn_status carnn__reading_all(void *job) {
    carnn__reading *r = (carnn__reading *)job;
    const carnn__reader *reader = r->reader;
    carnn_status status = CARNN_OK;
    size_t i;
    r->lists = 1;
    if (r->desc->candidates) {
        r->reader = &carnn__candidate_reader;
        status = carnn__reading_source(r, r->desc->candidates);
        r->reader = reader;
        r->lists = 0;
    }
    for (i = 0; !status && i < r->desc->source_count; i++)
        status = carnn__reading_source(r, &r->desc->sources[i]);
    if (status) return status;
    if (stbds_arrlenu(r->draft.items) || r->desc->lenient) return carnn__reading_finish(r);
    return carnn__misread(r->parser.error, &r->parser.lines, r->reader->example,
                          "none to the end");
}

/* The reader of a task, and the task's own name; NULL where there is no such task (@@TASKS). */
static const carnn__reader *carnn__reader_of(const char **task);

CARNN_API carnn_status carnn_dataset_load(carnn_dataset **dataset, const carnn_dataset_desc *desc,
                                          carnn_error *error) {
    carnn__reading reading;
    int lists;
    *dataset = NULL;
    if (!desc || !desc->task || !desc->sources || !desc->source_count)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "a data set needs a task and a source");
    memset(&reading, 0, sizeof reading);
    reading.desc = desc;
    reading.draft.task = desc->task;
    reading.reader = carnn__reader_of(&reading.draft.task);
    if (!reading.reader)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "expected a task, found \"%.40s\"",
                           desc->task);
    lists = desc->candidates && !reading.reader->candidates;
    if (lists || (desc->clean && !reading.reader->cleans))
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "the task %s has no %s",
                           reading.draft.task, lists ? "list of candidates" : "groups to clean");
    reading.allocator = carnn__allocator(desc->allocator);
    reading.parser.error = error;
    return carnn__reading_run(dataset, &reading, carnn__reading_all);
}

/* --- dialog -------------------------------------------------------------------------------------
   The dialog bAbI format (Bordes, Boureau and Weston 2017):

       1 hello<TAB>what can I do for you ?     a turn: user, then system
       2 the_fork R_cuisine british            a fact
                                               an empty line ends the dialog, and so does a number
       1 hi<TAB>hello there                    less than the one before, or a second 1

   A third column is what the system said, where the right answer in column 2 is not its words but
   the name of a class of replies: the history then has column 3. */

/* Removes a line number and the blank after it from the front of `s`; 0 if there is none. */
static int carnn__numbered(carnn__span *s, uint64_t *number) {
    carnn__span digits = *s;
    size_t i = digits.length = carnn__digits(*s);
    if (!carnn__whole(digits, number)) return 0;
    if (i < s->length && !carnn__gap(s->at[i])) return 0;
    if (i < s->length && s->at[i] == ' ') i++; /* a tab already ends the user's empty words */
    carnn__skip(s, i);
    return 1;
}

static carnn_status carnn__dialog_line(carnn__parser *p, carnn__record *r) {
    carnn__span line = p->lines.line, user, response, spoken = {NULL, 0};
    uint64_t number;
    int numbered;
    if (!carnn__says_something(p)) {
        p->begun = 0;
        return carnn__read_in_vain(p);
    }
    numbered = carnn__numbered(&line, &number);
    if (!numbered && !p->lenient) return carnn__unexpected(p, "a line number", line);
    if (!p->lenient && number > UINT32_MAX)
        return carnn__unexpected(p, "a line number below 4294967296", p->lines.line);
    r->begins = !p->begun || (numbered && ((int64_t)number < p->last ||
                                           (number == 1 && p->last == 1)));
    if (r->begins && carnn__read_in_vain(p)) return CARNN_ERR_DATA;
    if (r->begins) p->last = 0;
    if (numbered) p->last = (int64_t)number;
    p->begun = 1;
    r->before = SIZE_MAX;
    if (!carnn__cut(&line, '\t', &user)) { /* a fact */
        if (!carnn__trim(user).length && !p->lenient)
            return carnn__unexpected(p, "words after the line number", carnn__trim(user));
        carnn__record_text(r, CARNN_FACT, user);
        p->fact = p->lines.number;
        return CARNN_OK;
    }
    p->fact = 0;
    if (carnn__cut(&line, '\t', &response) && carnn__cut(&line, '\t', &spoken) && !p->lenient)
        return carnn__unexpected(p, "at most three columns", p->lines.line);
    if (!carnn__trim(response).length && !p->lenient)
        return carnn__unexpected(p, "a response after the tab", carnn__trim(response));
    r->example = r->has_target = 1;
    r->own = 1;
    r->target = response;
    carnn__record_text(r, CARNN_USER, user);
    carnn__record_text(r, CARNN_SYSTEM, carnn__trim(spoken).length ? spoken : response);
    return CARNN_OK;
}

static const carnn__reader carnn__dialog_reader = {
    carnn__dialog_line, "a turn (number, user, tab, response)", 1, 0, NULL,
    "lines \"N user<TAB>response\" and facts \"N fact\"; an empty line ends a dialog"};

/* --- sentences ----------------------------------------------------------------------------------
   Text for language models, a sentence a line; an empty line, or one that begins with "=", ends a
   document. Either

       words with blanks between them<TAB>label<TAB>what else there may be

   where all but the words may be missing, or, as in the Switchboard corpus, exactly two bars:

       speaker|What they said, as it is written.|dialog act

   Labels that say that there is none ("-1", "none") are none. */

/* Does the line read speaker|text|act? */
static int carnn__spoken(carnn__span line, carnn__span *text, carnn__span *act) {
    carnn__span speaker;
    return !memchr(line.at, '\t', line.length) && carnn__cut(&line, '|', &speaker) &&
           carnn__cut(&line, '|', text) && !carnn__cut(&line, '|', act);
}

static carnn_status carnn__sentence_line(carnn__parser *p, carnn__record *r) {
    carnn__span rest = p->lines.line, text, label;
    if (!carnn__trim(rest).length || *rest.at == '=') {
        p->begun = 0;
        return CARNN_OK;
    }
    r->spoken = carnn__spoken(rest, &text, &label);
    if (!r->spoken) {
        carnn__cut(&rest, '\t', &text);
        carnn__cut(&rest, '\t', &label);
    }
    label = carnn__trim(label);
    r->has_target = label.length && !carnn__is("-1", label, 0) && !carnn__is("none", label, 0);
    r->target = label;
    r->begins = !p->begun;
    r->example = 1;
    r->before = 1; /* the context */
    r->own = 1;
    p->begun = 1;
    carnn__record_text(r, 0, text);
    return CARNN_OK;
}

static const carnn__reader carnn__sentence_reader = {
    carnn__sentence_line, "a sentence", 0, 0, NULL,
    "a sentence a line, \"words<TAB>label\" or \"speaker|text|act\"; empty lines end documents"};

/* --- pairs --------------------------------------------------------------------------------------
   Questions and candidate answers, a pair a line. Columns lie between tabs: named by a first line
   that has at least "Question", "Sentence" or "Answer", and "Label", maybe "QuestionID"; or else

       question, answer, label      or      number, label, question, answer

   A folder has them as files: a.toks questions, b.toks answers, sim.txt labels, maybe id.txt
   numbers. Consecutive pairs with the same number, or without numbers the same question, are the
   answers to one question. */

/* The fields of a pair. carnn__parser.column has the column of each, SIZE_MAX where there is none,
   and then the number of columns. */
enum {
    CARNN__PAIR_QUESTION,
    CARNN__PAIR_ANSWER,
    CARNN__PAIR_LABEL,
    CARNN__PAIR_NUMBER,
    CARNN__PAIR_FIELDS
};

/* The columns of a file from its first line; *named if that only names them. */
static carnn_status carnn__pair_header(carnn__parser *p, int *named) {
    static const size_t three[5] = {0, 1, 2, SIZE_MAX, 3}, four[5] = {2, 3, 1, 0, 4};
    static const struct {
        const char *name;
        size_t column;
    } names[] = {{"questionid", CARNN__PAIR_NUMBER}, {"question", CARNN__PAIR_QUESTION},
                 {"sentence", CARNN__PAIR_ANSWER}, {"answer", CARNN__PAIR_ANSWER},
                 {"label", CARNN__PAIR_LABEL}};
    carnn__span rest = p->lines.line, field;
    size_t *c = p->column, i, j;
    int more = 1;
    for (i = 0; i < CARNN__PAIR_FIELDS; i++) c[i] = SIZE_MAX;
    for (i = 0; more; i++) {
        more = carnn__cut(&rest, '\t', &field);
        field = carnn__trim(field);
        for (j = 0; j < CARNN__COUNT(names); j++)
            if (carnn__is(names[j].name, field, 1)) c[names[j].column] = i;
    }
    c[CARNN__PAIR_FIELDS] = i;
    *named = c[CARNN__PAIR_QUESTION] != SIZE_MAX;
    if (!*named) {
        if (i != 3 && i != 4 && !p->lenient)
            return carnn__unexpected(p, "tabs between three columns (question, answer, label) "
                                        "or four (number, label, question, answer)", p->lines.line);
        memcpy(c, i == 4 ? four : three, sizeof three);
        return CARNN_OK;
    }
    if (p->lenient && c[CARNN__PAIR_ANSWER] == SIZE_MAX)
        c[CARNN__PAIR_ANSWER] = c[CARNN__PAIR_QUESTION] + 1;
    if (c[CARNN__PAIR_ANSWER] != SIZE_MAX && (c[CARNN__PAIR_LABEL] != SIZE_MAX || p->lenient))
        return CARNN_OK;
    return carnn__unexpected(p, "columns Question, Sentence or Answer, and Label", p->lines.line);
}

/* A question or an answer has words, and not too many. */
static carnn_status carnn__pair_sentence(carnn__parser *p, const char *what, int number,
                                         carnn__span text) {
    carnn__words w = carnn__words_of(CARNN__TOKENS, text.at, text.length);
    char expected[64];
    size_t words = 0;
    if (p->lenient) return CARNN_OK;
    while (words <= CARNN__SENTENCE_WORDS && carnn__next_word(&w)) words++;
    if (words && words <= CARNN__SENTENCE_WORDS) return CARNN_OK;
    snprintf(expected, sizeof expected, "%s of 1 to %d words", what, CARNN__SENTENCE_WORDS);
    if (p->file[number]) p->lines.name = p->file[number];
    return carnn__unexpected(p, expected, carnn__trim(text));
}

static carnn_status carnn__pair_record(carnn__parser *p, const carnn__span *field,
                                       carnn__record *r) {
    carnn__span number = field[CARNN__PAIR_NUMBER], label = field[CARNN__PAIR_LABEL];
    carnn_status status;
    double value = 0.0;
    uint64_t key;
    number = carnn__trim(number.at ? number : field[CARNN__PAIR_QUESTION]);
    key = carnn__hash(number.at, number.length, 0);
    if (!p->lenient && (!carnn__number(carnn__trim(label), &value) || (value != 0 && value != 1)))
        return carnn__unexpected(p, "the label 0 or 1", label);
    r->begins = !p->begun || key != p->key;
    p->begun = 1;
    p->key = key;
    r->example = 1;
    r->own = 2;
    r->value = (float)value;
    carnn__record_text(r, 0, field[CARNN__PAIR_QUESTION]);
    carnn__record_text(r, 1, field[CARNN__PAIR_ANSWER]);
    status = carnn__pair_sentence(p, "a question", 0, r->text[0]);
    return status ? status : carnn__pair_sentence(p, "an answer", 1, r->text[1]);
}

static carnn_status carnn__pair_line(carnn__parser *p, carnn__record *r) {
    carnn__span rest = p->lines.line, cell, field[CARNN__PAIR_FIELDS];
    char what[64];
    size_t i = 0, j;
    int more = 1, named = 0;
    carnn_status status = CARNN_OK;
    if (!carnn__says_something(p)) return CARNN_OK;
    if (!p->column[CARNN__PAIR_FIELDS]) status = carnn__pair_header(p, &named);
    if (status || named) return status;
    memset(field, 0, sizeof field);
    for (; more; i++) {
        more = carnn__cut(&rest, '\t', &cell);
        for (j = 0; j < CARNN__PAIR_FIELDS; j++)
            if (p->column[j] == i) field[j] = cell;
    }
    if (i == p->column[CARNN__PAIR_FIELDS] || p->lenient) return carnn__pair_record(p, field, r);
    i = p->column[CARNN__PAIR_FIELDS];
    snprintf(what, sizeof what, "%zu columns with tabs between them", i);
    return carnn__unexpected(p, what, p->lines.line);
}

/* Is there nothing by this name? A file that cannot be read is there. */
static int carnn__absent(const char *name) {
#ifdef CARNN_NO_STDIO
    (void)name;
    return 1;
#else
    FILE *file = fopen(name, "rb");
    if (file) fclose(file);
    return !file && (errno == ENOENT || errno == ENOTDIR);
#endif
}

/* Opens the files of a folder; *found is 0 where the source is none. */
static carnn_status carnn__folder_open(carnn__reading *r, const char *folder, int *found) {
    static const char *const files[] = {"a.toks", "b.toks", "sim.txt", "id.txt"};
    size_t i, length = strlen(folder) + 9;
    stbds_arrsetlen(r->scratch, CARNN__PAIR_FIELDS * length);
    for (i = 0; i < CARNN__PAIR_FIELDS; i++) {
        char *path = r->scratch + i * length;
        carnn_source source = {path, NULL, 0};
        carnn_status status;
        snprintf(path, length, "%s/%s", folder, files[i]);
        carnn__input_close(&r->input[i], &r->allocator);
        if (i == CARNN__PAIR_QUESTION && carnn__absent(path)) return CARNN_OK;
        if ((i == CARNN__PAIR_NUMBER || (i == CARNN__PAIR_LABEL && r->desc->lenient)) &&
            carnn__absent(path))
            continue;
        status = carnn__input_open(&r->input[i], &source, SIZE_MAX, &r->allocator,
                                   r->parser.error);
        if (status) return status;
    }
    *found = 1;
    return CARNN_OK;
}

/* Line i of each file of a folder is a field of pair i. */
static carnn_status carnn__pair_folder(carnn__reading *r, const char *folder, int *found) {
    carnn_status status = carnn__folder_open(r, folder, found);
    carnn__parser *p = &r->parser;
    carnn__span field[CARNN__PAIR_FIELDS];
    size_t i;
    if (status || !*found) return status;
    carnn__reading_origin(r, folder);
    memset(field, 0, sizeof field);
    for (i = 0; i < 2; i++) p->file[i] = r->input[i].lines.name;
    while (!status) {
        carnn__record record;
        const carnn__lines *ended = NULL; /* the first file that has no more lines */
        int there = 0;
        memset(&record, 0, sizeof record);
        for (i = 0; i < CARNN__PAIR_FIELDS; i++) {
            carnn__lines *l = &r->input[i].lines;
            if (!l->name) continue; /* there is no such file */
            if (carnn__next_line(l)) there = 1;
            else if (!ended) ended = l;
            field[i] = l->line;
            if (i == CARNN__PAIR_ANSWER || i == CARNN__PAIR_LABEL) p->lines = *l;
        }
        if (!there) return CARNN_OK;
        if (ended) {
            p->lines = *ended;
            p->lines.number++;
            return carnn__misread(p->error, &p->lines, "a line as in the files beside it",
                                  "the end");
        }
        status = carnn__pair_record(p, field, &record);
        if (!status) status = carnn__reading_record(r, &record);
    }
    return status;
}

static const carnn__reader carnn__pair_reader = {
    carnn__pair_line, "a question with an answer and a label", 0, 1, carnn__pair_folder,
    "\"question<TAB>answer<TAB>label\", columns named by a first line, or a folder with a.toks, "
    "b.toks, sim.txt"};

/* --- classes ------------------------------------------------------------------------------------
   A text and its class, a line each, in one of these styles:

       class<TAB>text
       __label__class text     fastText; a text with several labels is refused
       COARSE:fine text        TREC; the class is COARSE, with the task's option `fine` all of it
       4 text                  SST: one digit, one blank
       (4 (2 The) (3 film))    SST's trees; with the option `phrases` every other node of a tree is
                               an example, too, unless its text has been one

   The first line that is not blank tells the style. Where classes may be missing it may be a text
   ("3 men in a boat"): TREC or SST are then believed only if the next lines have the style, too. In
   a file of texts alone a blank line is an empty text. */

enum {
    CARNN__CLASS_UNKNOWN,
    CARNN__CLASS_FASTTEXT,
    CARNN__CLASS_TABBED,
    CARNN__CLASS_COARSE,
    CARNN__CLASS_DIGIT,
    CARNN__CLASS_TREE,
    CARNN__CLASS_NONE /* texts without classes */
};

/* By style: what a line has to be, for errors and carnn_dataset_format. */
static const char *const carnn__class_formats[] = {
    "class<TAB>text, __label__class text, COARSE:fine text or a digit, a blank and a text",
    "__label__class text", "class<TAB>text", "COARSE:fine text", "a digit, a blank and a text",
    "a tree with a digit at every node", "a text"};

#define CARNN__CLASS_LOOKED_AT 16 /* lines, where the first one may be a text */

/* The length of the tree that a text begins with; 0: it begins with none. */
static size_t carnn__tree_length(carnn__span s) {
    size_t i, depth = 0;
    for (i = 0; i < s.length; i++) {
        if (s.at[i] == '(') {
            if (i + 3 > s.length || !carnn__digit(s.at[i + 1]) || s.at[i + 2] != ' ') return 0;
            depth++;
        } else if (!depth) {
            return 0;
        } else if (s.at[i] == ')' && !--depth) {
            return i + 1;
        }
    }
    return 0;
}

/* Divides a line of this style into class and text; 0: it is not of this style. */
static int carnn__class_split(const carnn__parser *p, int style, carnn__span line,
                              carnn__span *label, carnn__span *text) {
    static const char mark[] = "__label__";
    const size_t length = sizeof mark - 1;
    size_t colon = 0;
    *text = *label = line;
    label->length = 0;
    if (style == CARNN__CLASS_UNKNOWN || style == CARNN__CLASS_NONE) return 0;
    if (style == CARNN__CLASS_TABBED) return carnn__cut(text, '\t', label);
    if (style == CARNN__CLASS_TREE) {
        *text = carnn__trim(line);
        label->at = text->at + 1;
        label->length = 1;
        return text->length && carnn__tree_length(*text) == text->length;
    }
    while (label->length < line.length && !carnn__gap(line.at[label->length])) label->length++;
    carnn__skip(text, carnn__min(label->length + 1, line.length));
    if (style == CARNN__CLASS_DIGIT) return label->length == 1 && carnn__digit(*label->at);
    if (style == CARNN__CLASS_FASTTEXT) {
        if (label->length < length || memcmp(label->at, mark, length)) return 0;
        carnn__skip(label, length);
        return 1;
    }
    while (colon < label->length && label->at[colon] >= 'A' && label->at[colon] <= 'Z') colon++;
    if (!colon || colon + 1 >= label->length || label->at[colon] != ':') return 0;
    if (!p->option || p->option[CARNN__CLASS_FINE] <= 0.0) label->length = colon;
    return 1;
}

/* Is the line at hand, and where classes may be missing the next ones, too, of this style? */
static int carnn__class_is(const carnn__parser *p, int style) {
    carnn__lines lines = p->lines;
    size_t looked_at = 0;
    size_t most = p->lenient && style > CARNN__CLASS_TABBED ? CARNN__CLASS_LOOKED_AT : 1;
    carnn__span label, text;
    do {
        if (!carnn__trim(lines.line).length) continue;
        if (!carnn__class_split(p, style, lines.line, &label, &text)) return 0;
        looked_at++;
    } while (looked_at < most && carnn__next_line(&lines));
    return looked_at > 0;
}

/* The node of a tree that is next, where all are examples. */
static void carnn__class_node(carnn__parser *p, carnn__record *r, carnn__span *tree) {
    carnn__span node = *tree;
    const char *next;
    if (p->lenient || !p->option || p->option[CARNN__CLASS_PHRASES] <= 0.0) return;
    carnn__skip(&node, p->at);
    next = (const char *)memchr(node.at + 1, '(', node.length - 1);
    r->once = p->at > 0;
    r->target.at = node.at + 1;
    p->at = next ? (size_t)(next - tree->at) : 0;
    node.length = carnn__tree_length(node);
    *tree = node;
}

static carnn_status carnn__class_line(carnn__parser *p, carnn__record *r) {
    carnn__span label, text, other, rest;
    int found;
    if (!p->style) { /* the one that the first lines show */
        p->style = 1;
        while (p->style < CARNN__CLASS_NONE && !carnn__class_is(p, p->style)) p->style++;
        if (p->style == CARNN__CLASS_NONE && !(p->lenient && carnn__trim(p->lines.line).length))
            p->style = CARNN__CLASS_UNKNOWN;
    }
    if (p->style) p->format = carnn__class_formats[p->style];
    if (!carnn__says_something(p) &&
        !(p->lenient && (p->style == CARNN__CLASS_UNKNOWN || p->style == CARNN__CLASS_NONE)))
        return CARNN_OK;
    found = carnn__class_split(p, p->style, p->lines.line, &label, &text);
    if (!p->lenient && (!found || !carnn__trim(label).length))
        return carnn__unexpected(p, carnn__class_formats[p->style], p->lines.line);
    if (!p->lenient && p->style == CARNN__CLASS_FASTTEXT &&
        carnn__class_split(p, p->style, text, &other, &rest))
        return carnn__unexpected(p, "one label", p->lines.line);
    if (found) r->target = carnn__trim(label);
    r->has_target = r->target.length > 0;
    r->begins = r->example = 1;
    r->own = 1;
    r->tree = found && p->style == CARNN__CLASS_TREE;
    if (r->tree) carnn__class_node(p, r, &text);
    carnn__record_text(r, 0, found ? text : p->lines.line);
    return CARNN_OK;
}

static const carnn__reader carnn__class_reader = {
    carnn__class_line, "a class and a text", 0, 0, NULL,
    "\"class<TAB>text\", \"__label__class text\" (fastText), \"COARSE:fine text\" (TREC), "
    "\"4 text\" or a tree (SST), as the first line has it"};

/* --- pairs with a class or a grade ---------------------------------------------------------------
   Two sentences and what the first says of the second, a line each, in columns with tabs between
   them: label, first, second; or else named by a first line as in SICK or MSRP. By the task's
   options the label is a class or a grade. Where labels may be missing, so may their column. */

enum { CARNN__FIRST, CARNN__SECOND, CARNN__LABEL, CARNN__GRADE };

/* Is the first line a list of names? Then the columns are where they say. */
static int carnn__labelled_names(carnn__parser *p, const carnn__span *field, size_t count) {
    static const struct {
        const char *name;
        size_t column;
    } names[] = {{"sentence_a", CARNN__FIRST}, {"sentence_b", CARNN__SECOND},
                 {"entailment_judgment", CARNN__LABEL},
                 {"relatedness_score", CARNN__GRADE}, {"#1 string", CARNN__FIRST},
                 {"#2 string", CARNN__SECOND}, {"quality", CARNN__LABEL}};
    size_t *c = p->column, i, j;
    for (i = 0; i < 4; i++) c[i] = SIZE_MAX;
    for (i = 0; i < count; i++)
        for (j = 0; j < CARNN__COUNT(names); j++)
            if (carnn__is(names[j].name, field[i], 1)) c[names[j].column] = i;
    c[4] = count;
    if (carnn__pair_grades(p->option) && c[CARNN__GRADE] != SIZE_MAX)
        c[CARNN__LABEL] = c[CARNN__GRADE];
    return c[CARNN__FIRST] != SIZE_MAX && c[CARNN__SECOND] != SIZE_MAX;
}

static carnn_status carnn__labelled_target(carnn__parser *p, carnn__record *r, carnn__span target) {
    size_t grades = carnn__pair_grades(p->option);
    char expected[48];
    double value = 0.0;
    snprintf(expected, sizeof expected, grades ? "a grade from 1 to %zu" : "a class", grades);
    if (!grades && target.length) {
        r->has_target = 1;
        r->target = target;
    } else if (grades && carnn__number(target, &value) && value >= 1.0 && value <= (double)grades) {
        r->value = (float)value;
    } else if (!p->lenient) {
        return carnn__unexpected(p, expected, target);
    }
    return CARNN_OK;
}

static carnn_status carnn__labelled_line(carnn__parser *p, carnn__record *r) {
    static const size_t three[5] = {1, 2, 0, SIZE_MAX, 3}, two[5] = {0, 1, SIZE_MAX, SIZE_MAX, 2};
    const size_t *c = p->column;
    carnn__span rest = p->lines.line, field[16];
    carnn_status status;
    size_t n = 0, i;
    int more = 1;
    if (!carnn__says_something(p)) return CARNN_OK;
    memset(field, 0, sizeof field);
    for (; more && n < CARNN__COUNT(field); n++) {
        more = carnn__cut(&rest, '\t', &field[n]);
        field[n] = carnn__trim(field[n]);
    }
    if (!p->begun) {
        p->begun = carnn__labelled_names(p, field, n) ? 2 : 1;
        if (p->begun == 2 && c[CARNN__LABEL] == SIZE_MAX && !p->lenient)
            return carnn__unexpected(p, "a column of labels", p->lines.line);
        if (p->begun == 2) return CARNN_OK;
    }
    if (p->begun == 1) c = n < 3 && p->lenient ? two : three;
    if (!p->lenient && (n != c[4] || more))
        return carnn__unexpected(p, c == three ? "three columns (label, first, second)"
                                               : "as many columns as the first line has",
                                 p->lines.line);
    r->begins = r->example = 1;
    r->own = 2;
    for (i = 0; i < 2; i++) carnn__record_text(r, (uint32_t)i, field[c[i]]);
    status = carnn__pair_sentence(p, "a first sentence", 0, r->text[0]);
    if (!status) status = carnn__pair_sentence(p, "a second sentence", 1, r->text[1]);
    if (status || c[CARNN__LABEL] >= n) return status;
    return carnn__labelled_target(p, r, field[c[CARNN__LABEL]]);
}

static const carnn__reader carnn__labelled_reader = {
    carnn__labelled_line, "a class or grade with two sentences", 0, 0, NULL,
    "\"class<TAB>first<TAB>second\", or columns named by a first line as in SICK and MSRP"};

/* --- cloze --------------------------------------------------------------------------------------
   The format of the Children's Book Test (Hill et al. 2016): a text of numbered sentences, then a
   question in which XXXXX stands for one of the candidates. Words have blanks between them.

       1 sentence
       ...
       20 sentence
       21 question with XXXXX<TAB>answer<TAB><TAB>c1|c2|...|c10

   The text may have any number of sentences; empty lines may follow the question. In examples to be
   predicted the answer may be missing: what then stands between the last tabs are candidates. */

/* The number of a candidate in a list, or CARNN__NO_INDEX. */
static uint32_t carnn__candidate_number(carnn__span list, carnn__span wanted) {
    carnn__span candidate;
    uint32_t i;
    for (i = 0; carnn__next_candidate(&list, &candidate); i++)
        if (candidate.length == wanted.length && !memcmp(candidate.at, wanted.at, wanted.length))
            return i;
    return CARNN__NO_INDEX;
}

/* Is a word of `text` in the list? */
static int carnn__any_candidate(carnn__span text, carnn__span list) {
    carnn__words w = carnn__words_of(CARNN__SPACES, text.at, text.length);
    while (carnn__next_word(&w))
        if (carnn__candidate_number(list, w.word) != CARNN__NO_INDEX) return 1;
    return 0;
}

static carnn_status carnn__cloze_sentence(carnn__parser *p, carnn__span sentence,
                                          carnn__record *r) {
    carnn__words w = carnn__words_of(CARNN__SPACES, sentence.at, sentence.length);
    while (carnn__next_word(&w)) p->words++;
    if (!p->begun) p->text = sentence.at;
    r->begins = !p->begun;
    p->begun = 1;
    carnn__record_text(r, CARNN__CLOZE_TEXT, sentence);
    if (p->lenient || p->words <= CARNN__CLOZE_WORDS) return CARNN_OK;
    return carnn__unexpected(p, "no more than 2048 words before a question",
                             sentence);
}

/* A list is not empty, short enough and without repetitions. */
static carnn_status carnn__cloze_check_list(carnn__parser *p, carnn__span list) {
    carnn__span rest = list, candidate;
    uint32_t count = 0;
    for (; carnn__next_candidate(&rest, &candidate); count++)
        if (carnn__candidate_number(list, candidate) < count)
            return carnn__unexpected(p, "each candidate once", candidate);
    if (count && count <= CARNN__CLOZE_CANDIDATES) return CARNN_OK;
    return carnn__unexpected(p, "1 to 64 candidates with | between "
                                "them", list);
}

/* What is to be learnt or scored is complete, and a word of the text can be the answer. */
static carnn_status carnn__cloze_check(carnn__parser *p, carnn__span question, carnn__span answer,
                                       carnn__span list) {
    carnn__span text = {p->text, 0}, placeholder = {"XXXXX", 5};
    carnn__words w = carnn__words_of(CARNN__SPACES, question.at, question.length);
    size_t words = 0;
    carnn_status status;
    if (!p->begun) return carnn__unexpected(p, "sentences before a question", question);
    if (!carnn__any_candidate(question, placeholder))
        return carnn__unexpected(p, "a question with the word XXXXX", question);
    while (carnn__next_word(&w)) words++;
    if (words > CARNN__CLOZE_QUESTION)
        return carnn__unexpected(p, "no more than 512 words in a "
                                    "question", question);
    status = carnn__cloze_check_list(p, list);
    if (status) return status;
    if (carnn__candidate_number(list, answer) == CARNN__NO_INDEX)
        return carnn__unexpected(p, "an answer that is one of the candidates", answer);
    text.length = (size_t)(p->lines.line.at - text.at);
    if (carnn__any_candidate(text, list)) return CARNN_OK;
    return carnn__unexpected(p, "a candidate that is a word of the text", list);
}

static carnn_status carnn__cloze_question(carnn__parser *p, carnn__span rest, carnn__record *r) {
    carnn__span question, none = {"", 0}, answer = none, list = none, field;
    size_t fields = 0;
    int more = carnn__cut(&rest, '\t', &question);
    uint32_t number;
    while (more) {
        more = carnn__cut(&rest, '\t', &field);
        field = carnn__trim(field);
        if (!field.length) continue;
        if (fields++) answer = list;
        list = field;
    }
    if (!p->lenient && fields != 2)
        return carnn__unexpected(p, "a question, its answer and candidates with tabs between them",
                                 p->lines.line);
    if (!p->lenient && carnn__cloze_check(p, question, answer, list)) return CARNN_ERR_DATA;
    number = carnn__candidate_number(list, answer);
    r->begins = !p->begun;
    r->before = SIZE_MAX;
    r->example = 1;
    r->has_target = number != CARNN__NO_INDEX;
    r->target = answer;
    r->value = r->has_target ? (float)number : -1.0f;
    if (!p->begun) carnn__record_text(r, CARNN__CLOZE_TEXT, none);
    carnn__record_text(r, CARNN__CLOZE_ASKED, question);
    carnn__record_text(r, CARNN__CLOZE_LIST, list);
    r->own = r->count;
    p->begun = 0;
    return CARNN_OK;
}

static carnn_status carnn__cloze_line(carnn__parser *p, carnn__record *r) {
    carnn__span line = p->lines.line;
    int asks = line.length && memchr(line.at, '\t', line.length), numbered;
    uint64_t number = 0;
    if (!p->begun) p->last = 0, p->words = 0;
    if (!carnn__says_something(p)) {
        if (p->begun && !p->lenient)
            return carnn__unexpected(p, "the next sentence or a question", carnn__trim(line));
        p->begun = 0;
        return CARNN_OK;
    }
    numbered = carnn__numbered(&line, &number);
    if (!p->lenient && (!numbered || number != (uint64_t)p->last + 1)) {
        char expected[40];
        snprintf(expected, sizeof expected, "line number %lld", (long long)p->last + 1);
        return carnn__unexpected(p, expected, p->lines.line);
    }
    if (p->lenient && numbered && number == 1 && p->last) p->begun = 0; /* the next text */
    p->last = numbered ? (int64_t)number : p->last + 1;
    return asks ? carnn__cloze_question(p, line, r) : carnn__cloze_sentence(p, line, r);
}

static const carnn__reader carnn__cloze_reader = {
    carnn__cloze_line, "a question with its text", 0, 0, NULL,
    "the Children's Book Test: lines \"N sentence\", then \"N question with "
    "XXXXX<TAB>answer<TAB><TAB>c1|c2|...\""};

/* --- a part of a data set -----------------------------------------------------------------------
   Some of the groups, as if the others had not been in the files: only their own texts make the
   vocabulary of a model, and only their own targets are choices. A list of candidates stays. */

/* A group: items [i, end), and the members up to those of the next group, each as a record. */
static carnn_status carnn__subset_group(carnn__reading *r, size_t i, size_t end) {
    const carnn_dataset *data = r->whole;
    size_t first = data->items[i].first, m;
    size_t last = end < data->item_count ? data->items[end].first : data->member_count;
    const char *origin = carnn__dataset_origin(data, i);
    carnn_status status = CARNN_OK;
    if (origin != r->parser.lines.name) carnn__reading_origin(r, origin);
    r->parser.lines.name = origin;
    for (m = first; !status && m < last; m++) {
        const carnn__item *x = &data->items[i];
        const carnn__member *from = &data->members[m];
        carnn__record record;
        memset(&record, 0, sizeof record);
        record.begins = m == first;
        record.columns = data->columns;
        carnn__record_text(&record, from->role, data->columns ? carnn__rows(data, from->text)
                                                              : carnn__text(data, from->text));
        if (i < end && x->first + x->count == m + 1) { /* it ends with this text */
            record.example = 1;
            record.before = x->count - 1;
            record.own = 1;
            record.has_target = x->target != CARNN__NO_INDEX;
            if (record.has_target) record.target = carnn__text(data, x->target);
            record.value = x->value;
            r->parser.lines.number = x->line;
            i++;
        }
        status = carnn__reading_record(r, &record);
    }
    return status;
}

static carnn_status carnn__subset_all(void *job) {
    carnn__reading *r = (carnn__reading *)job;
    const carnn_dataset *data = r->whole;
    carnn_status status = CARNN_OK;
    size_t i, end;
    for (i = 0; r->reader->candidates && i < data->choice_count; i++) {
        carnn__span shown = carnn__string(data->shown, data->shown_at, i);
        carnn__reading_choice(r, carnn__reading_text(r, shown), shown);
    }
    r->lists = !r->reader->candidates;
    for (i = 0; !status && i < data->item_count; i = end) {
        uint32_t group = data->items[i].group;
        for (end = i; end < data->item_count && data->items[end].group == group;) end++;
        if (r->of_group[group] == r->wanted) status = carnn__subset_group(r, i, end);
    }
    return status ? status : carnn__reading_finish(r);
}

/* The groups g with of_group[g] == wanted. */
static carnn_status carnn__dataset_subset(carnn_dataset **subset, const carnn_dataset *data,
                                          const uint32_t *of_group, uint32_t wanted,
                                          carnn_error *error) {
    carnn__reading r;
    memset(&r, 0, sizeof r);
    r.whole = data;
    r.of_group = of_group;
    r.wanted = wanted;
    r.allocator = data->allocator;
    r.parser.error = error;
    r.draft.task = data->task;
    r.draft.spoken = data->spoken;
    r.reader = carnn__reader_of(&r.draft.task);
    return carnn__reading_run(subset, &r, carnn__subset_all);
}

#endif /* CARNN_NO_TEXT */

#endif
/* =============================================================================================
   @@MODEL   a model, the entry of a task, and a model at work
   ============================================================================================= */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

#define CARNN__LAYERS_MAX 8

typedef struct carnn__task carnn__task;
typedef struct carnn__session_kind carnn__session_kind;

struct carnn_model {
    carnn_allocator allocator;
    carnn_model_desc desc;    /* complete: defaults filled in; names point into our tables */
    carnn_train_desc trained; /* as used; file names and callbacks zeroed */
    const carnn__task *task;
    carnn__store params;
    void *block;              /* aligned memory that holds params.value: the array itself, or the
                                 whole file that was read; NULL: the caller's, read-only */
    carnn__names words;       /* vocabulary: word i has row i of the embedding; 0 is <unk> */
    carnn__names choices;     /* replies byte for byte, classes, labels */
    uint32_t unsure;          /* the one that is desc.unsure, or CARNN__NO_INDEX */
    carnn_scores scores;      /* on the validation set, of the weights that were kept */
    int64_t best_epoch;
};

static carnn_status carnn__same_task(const carnn_model *model, const carnn_dataset *data,
                                     carnn_error *error) {
    if (strcmp(model->desc.task, data->task))
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "the data set is of the task %s, the "
                           "model of the task %s", data->task, model->desc.task);
    if (!data->columns || data->columns == (size_t)model->desc.embedding) return CARNN_OK;
    return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "the data set has rows of %zu numbers, the "
                       "embedding of the model %lld", data->columns,
                       (long long)model->desc.embedding);
}

/* What a run adds up over its batches. */
typedef struct carnn__tally {
    size_t examples, tokens;
    double loss; /* summed */
    double sum[CARNN_SCORES_MAX];
} carnn__tally;

/* What losses and rates are counted in: words, where the task counts them, else examples. */
static size_t carnn__tally_size(const carnn__tally *tally) {
    return tally->tokens ? tally->tokens : tally->examples;
}

/* A model at work on a data set: training, scoring, a session. */
typedef struct carnn__work {
    const carnn_model *model;
    const carnn_dataset *data;
    carnn__engine *engine;
    carnn_allocator allocator;
    const float *w; /* the weights, laid out like the store */
    float *g;       /* their gradients, added to; NULL: scoring only */
    double dropout, smoothing;
    int64_t batch;  /* examples in a batch */
    int voting;     /* keep what the vote needs */
    const carnn_test_desc *asked; /* whom to tell of parts and ranks, or NULL */
    size_t number;  /* the model's, for them; that of a vote is the number of models */
    int as_vote;    /* the logits are those of a vote */
    const carnn_predict_desc *wanted; /* whom to tell of predictions, or NULL */
    void *state;    /* of the head: begins with a carnn__net */
} carnn__work;

static const float *carnn__weight(const carnn__work *work, size_t number) {
    return work->w + work->model->params.item[number].offset;
}

static float *carnn__gradient(const carnn__work *work, size_t number) {
    return work->g + work->model->params.item[number].offset;
}

/* Dropout; backward on the gradient of x, with the same key and stream. Key 0: none. */
static void carnn__drop(const carnn__work *work, float *x, size_t count, uint64_t key,
                        size_t stream) {
    if (key) carnn__dropout(work->engine, x, count, work->dropout, carnn__stream(key, stream));
}

/* The losses of rows of logits z against targets; in training z becomes the gradient, times
   `scale`. */
static void carnn__losses(const carnn__work *work, size_t rows, size_t columns, float *z,
                          const uint32_t *target, float scale, double smoothing, float *loss) {
    carnn__cross_entropy x = {columns, z, target, work->g != NULL, scale, (float)smoothing, loss};
    carnn__split(work->engine, work->engine->k->cross_entropy, &x, rows, 1, rows * columns);
}

static void carnn__tell_part(const carnn__work *work, double value, double weight) {
    if (work->asked && work->asked->part)
        work->asked->part(work->number, value, weight, work->asked->user);
}

/* --- the list of a head's parts -----------------------------------------------------------------
   A head lists its weights and matrices in one function, which runs twice: to declare the weights
   of a model (store is the model's, arena NULL), and to take memory for a model at work (the store
   is scratch, in which the weights get the same numbers again). */

typedef struct carnn__plan {
    carnn__store *store;
    carnn__arena *arena;
    const carnn__work *work; /* NULL where weights are declared */
    const carnn_model *model;
} carnn__plan;

/* Sizes of counts in which batches are bounded: rows, and another count that the task chooses. */
#define CARNN__SIZES 2

typedef struct carnn__limits {
    size_t piece;              /* items of a group that are in one batch at most; SIZE_MAX: all */
    size_t size[CARNN__SIZES]; /* bounds of a batch, which a single item may exceed; 0: none */
    size_t rows_per_example;   /* or size[..] as a multiple of the batch's examples; 0: not so */
} carnn__limits;

typedef struct carnn__metric {
    const char *name;
    int lower_is_better, secondary;
} carnn__metric;

typedef enum carnn__output_kind {
    CARNN__OUTPUT_SOFTMAX, /* one of the choices is right */
    CARNN__OUTPUT_GRADES,  /* a distribution over the grades 1, 2, ..: its mean is told */
    CARNN__OUTPUT_SCORE    /* one number: a score */
} carnn__output_kind;

typedef struct carnn__logits carnn__logits; /* @@NET */

/* --- data of a task's usual size, made of random words, for the benchmark --------------------- */

#ifdef CARNN_NO_TRAIN
#define CARNN__TRAIN_ONLY(x) NULL
#else
#define CARNN__TRAIN_ONLY(x) x
#endif

#define CARNN__BENCH_TEXT ((size_t)1 << 19) /* bytes that a text may have */

typedef struct carnn__bench_text {
    char *at; /* (CARNN__BENCH_TEXT) */
    size_t length;
} carnn__bench_text;

typedef struct carnn__task_bench {
    size_t hidden[2];             /* models with so many units are measured, of the second size also
                                     beside a busy thread, unless it is `other`; 0: none */
    const char *cell, *optimizer; /* NULL: the default */
    int64_t batch;
    const char *unit;             /* of training and predicting: "examples/s" */
    const char *predicting;       /* what rows of predictions are called: "predicting" */
    size_t lines, candidates;     /* of the data set, and of the list that it comes with */
    void (*line)(carnn__bench_text *t, unsigned i); /* writes line i of the data set */
    const char *other;            /* options of models of the second size, "model=ca"; or NULL */
} carnn__task_bench;

CARNN__PRINTF(2, 3)
static void carnn__bench_print(carnn__bench_text *t, const char *format, ...) {
    va_list arguments;
    int length;
    va_start(arguments, format);
    length = vsnprintf(t->at + t->length, CARNN__BENCH_TEXT - t->length, format, arguments);
    va_end(arguments);
    t->length = carnn__min(t->length + (size_t)length, CARNN__BENCH_TEXT - 1);
}

/* Adds text `number` of a stream: some words out of 1,199. */
static void carnn__bench_words(carnn__bench_text *t, uint64_t stream, uint64_t number,
                               uint64_t words) {
    uint64_t key = carnn__stream(stream, number), i;
    for (i = 0; i < words; i++)
        carnn__bench_print(t, "%sw%u", i ? " " : "", (unsigned)(carnn__random(key, i) % 1199));
}

/* The data set of a task, or its list of candidates: texts of stream 2. */
static void carnn__bench_data(carnn__bench_text *t, const carnn__task_bench *bench,
                              int candidates) {
    unsigned i;
    for (i = 0; i < (candidates ? bench->candidates : bench->lines); i++) {
        if (candidates) carnn__bench_words(t, 2, i, 8);
        else bench->line(t, i);
        carnn__bench_print(t, "\n");
    }
}

/* The entry of a task. (*) may be NULL. Adding a task is adding one entry to carnn__tasks. */
struct carnn__task {
    const char *name, *title;
    /* data */
    const carnn__reader *reader;
    const carnn__role *roles;
    /* model */
    const carnn_option *options; /* (*) its own; the name of the last one is NULL */
    const char *defaults;        /* "cell=gru hidden=24": where nothing is chosen; lr is Adam's */
    void (*adapt)(carnn_model_desc *model, carnn_train_desc *train); /* (*) then, what is still 0 */
    const char *choices_key;     /* (*) what its choices are called in a file */
    const char *const *reserved; /* (*) words that are the first ones behind <unk> */
    size_t reserved_count;
    /* words and choices of a new model */
    carnn_status (*build)(carnn_model *model, const carnn_dataset *data, carnn_error *error);
    carnn_status (*check)(const carnn_model *model, carnn_error *error); /* (*) */
    size_t state;                /* bytes of the head's state, which begins with a carnn__net */
    void (*parts)(carnn__plan *p, void *state);
    void (*init)(carnn_model *model, const carnn_dataset *data); /* (*) more than random numbers */
    /* (*) the tokens of a text in a role: their number; writes at most `max`, which may be 0 */
    size_t (*tokens)(const carnn_model *model, carnn__span text, uint32_t role, uint32_t *ids,
                     size_t max);
    /* batches */
    carnn__limits limits;
    void (*measure)(const carnn__work *work, size_t item, size_t size[CARNN__SIZES]); /* (*) rows */
    carnn_status (*pieces)(carnn__work *work, carnn_error *error); /* (*) not items' groups */
    /* a step: forward to logits, loss with the gradient at the logits, backward */
    void (*forward)(carnn__work *work, uint64_t key);
    carnn__logits (*output)(const carnn__work *work);
    double (*loss)(carnn__work *work, carnn__tally *tally); /* (*) and metrics; the sum */
    void (*backward)(carnn__work *work, uint64_t key);
    /* (*) a head with a step of its own has these instead of the four above */
    void (*batch)(carnn__work *work, size_t number, uint64_t key, carnn__tally *tally);
    void (*vote)(carnn__work *const *works, size_t count, size_t number, carnn__tally *tally);
    /* scores and predictions */
    carnn__metric metric[CARNN_SCORES_MAX + 1];
    void (*score)(const carnn__tally *tally, carnn_scores *scores); /* (*) sum[i] / examples */
    const carnn__session_kind *session; /* (*) @@SESSION */
    size_t (*session_words)(const carnn_model *model); /* (*) of a text that a session reads */
    /* checks */
    const char *sample;          /* a small data set */
    const char *const *variants; /* options of the gradient check; NULL behind the last */
    const carnn__task_bench *bench; /* (*) */
};

static const carnn__task *carnn__task_at(size_t number); /* NULL past the last */

/* --- options of a task --------------------------------------------------------------------------
   Entries of a task's table. A number's field is option[number]; a name's is 1 + its place among
   the choices, so that 0 is "not chosen yet" for both. */

#define CARNN__OPTION_WHOLE(name, number, low, high, none, help)                                   \
    {name, help, CARNN_OPTION_INTEGER, CARNN_OPTION_OF_TASK, number, low, high, none, NULL}
#define CARNN__OPTION_REAL(name, number, low, high, none, help)                                    \
    {name, help, CARNN_OPTION_NUMBER, CARNN_OPTION_OF_TASK, number, low, high, none, NULL}
#define CARNN__OPTION_CHOICE(name, number, choices, help)                                          \
    {name, help, CARNN_OPTION_NAME, CARNN_OPTION_OF_TASK, number, 0, 0, 0, choices}
#define CARNN__OPTION_END                                                                          \
    {NULL, NULL, CARNN_OPTION_NUMBER, CARNN_OPTION_OF_TASK, 0, 0, 0, 0, NULL}

static void carnn__option_default(carnn_model_desc *model, size_t number, double value) {
    if (model->option[number] == 0.0) model->option[number] = value;
}

/* Which choice a name's option is, from 0; SIZE_MAX: none. */
static inline size_t carnn__chosen(const carnn_model *model, size_t number) {
    return (size_t)model->desc.option[number] - 1;
}

static inline double carnn__option(const carnn_model *model, size_t number) {
    return model->desc.option[number];
}

#endif
/* =============================================================================================
   @@BATCH   a data set as a model reads it: token lists, targets, batches

   A CORPUS is a data set made ready for a model: the tokens of every distinct (text, role), the
   model's number of every target, and the PIECES that batches are made of. A piece is some
   consecutive items of one group, all of them where they fit; a batch is whole groups as far as
   they fit, shuffled anew for every epoch. TEXTS are the texts of a batch in reading order: text s
   has the rows at[s] .. at[s + 1] - 1. Each distinct word is one INPUT of the batch, looked up and
   projected once; a row of numbers is an input of its own. Only the recurrent layer packs rows by
   time (@@SEQ).
   ============================================================================================= */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

/* --- memory that is freed together ----------------------------------------------------------- */

static void *carnn__own(void **list, const carnn_allocator *a, size_t count, size_t size) {
    void **block = (void **)carnn__alloc(a, carnn__times(count, size) + CARNN__ALIGN, 1);
    if (!block) return NULL;
    *block = *list;
    *list = block;
    return (char *)block + CARNN__ALIGN;
}

static void carnn__disown(void **list, const carnn_allocator *a) {
    void *next;
    for (; *list; *list = next) {
        next = *(void **)*list;
        carnn__free(a, *list);
    }
}

/* --- corpus ---------------------------------------------------------------------------------- */

/* Token lists: list i has ids[at[i]] .. ids[at[i + 1] - 1]. */
typedef struct carnn__lists {
    size_t count;
    uint32_t *ids;
    size_t *at;
} carnn__lists;

static inline size_t carnn__list_length(const carnn__lists *l, size_t i) {
    return l->at[i + 1] - l->at[i];
}

typedef struct carnn__batch_piece {
    size_t first; /* its first item */
    uint32_t count, continues; /* 1: the group of the piece before */
    size_t size[CARNN__SIZES];
} carnn__batch_piece;

typedef struct carnn__corpus {
    void *blocks;          /* carnn__own */
    carnn__lists tokens;   /* of every distinct (text, role); ids NULL: rows of numbers */
    uint32_t *list;        /* (members) token list of each */
    uint32_t *target;      /* (items) choice of the model, or CARNN__NO_INDEX */
    carnn__batch_piece *pieces;
    size_t piece_count;
    uint32_t *order;       /* (groups) the first piece of each, in this epoch */
    uint32_t *queue;       /* (pieces) in this epoch */
    size_t *batch_start;   /* into queue, one more than there are batches */
    size_t most_items, most_texts, most_steps, most_size[CARNN__SIZES]; /* of a batch */
} carnn__corpus;

/* --- the texts of a batch -----------------------------------------------------------------------
   B items, S texts, R rows, U inputs; P sequences, N packed rows. */

typedef struct carnn__texts carnn__texts;

/* 0 or 1: a word of this item with another flag is another input. */
typedef unsigned (*carnn__flag_fn)(const carnn__texts *t, size_t member, uint32_t word);

/* The word of the model that a token of this item is read as. */
typedef uint32_t (*carnn__read_fn)(const carnn__texts *t, size_t item, uint32_t token);

struct carnn__texts {
    const carnn__work *work;
    unsigned roles;             /* those that are read, a bit each */
    int shares;                 /* equal texts share a sequence */
    carnn__flag_fn flag;        /* or NULL */
    size_t joined;              /* the texts of an item are one of at most so many words; 0: no */
    size_t bound;               /* which size of a batch bounds its rows */
    carnn__read_fn read;        /* or NULL */
    size_t most_items, most_texts, most_rows, most_inputs;
    uint32_t *local;            /* (2 V) the input that word v without, with flag is */
    uint32_t *seen;             /* (token lists) the sequence that a list has */
    /* the batch at hand */
    size_t count, texts, inputs; /* B, S, U */
    uint32_t *item;             /* (B) in the data set */
    uint32_t *piece;            /* (B) the piece that each is of */
    uint32_t *list;             /* (S) */
    size_t *at;                 /* (S + 1) */
    uint32_t *input;            /* (U) 2 word + flag; of numbers the row */
    uint32_t *ids;              /* (R) input of each row */
    carnn__packed packed;
    size_t *start;              /* (T + 2) */
    uint32_t *sequence, *first; /* (S) of a text; (P) the first text of a sequence */
    uint32_t *length, *rank, *place; /* (P) rank: sequences by length, place: the reverse */
    uint32_t *reversed;         /* (N) see carnn__reverse_index */
    uint32_t *index[2];         /* (N) input of each packed row, by direction */
    uint32_t *row;              /* (R) packed row of each row */
};

typedef struct carnn__net { /* what the state of every head begins with */
    carnn__corpus corpus;
    carnn__texts texts;    /* of the batch at hand; a head that reads them otherwise has its own */
    int holds;             /* gradient check: the masks of relu and max stay what they were */
    size_t top;            /* so many choices are told of */
    size_t *best;          /* (choices) of a prediction, most probable first */
    double *probability;   /* (choices) */
    /* of tasks whose items have choices of their own */
    size_t columns;        /* of the logits, 0: as many as the model has choices */
    carnn_text *name;      /* (B, columns) the choices of each item; the last has NULL behind it */
    uint64_t key;          /* of the batch at hand, 0: not in training */
    struct carnn__ranks *whole; /* of a loss that is over whole groups; NULL: over pieces */
} carnn__net;

static inline carnn__net *carnn__net_of(const carnn__work *work) {
    return (carnn__net *)work->state;
}

static inline carnn__corpus *carnn__corpus_of(const carnn__work *work) {
    return &carnn__net_of(work)->corpus;
}

#define CARNN__SESSION_WORDS 512 /* of a text that are read, unless the task says otherwise */

static size_t carnn__session_words(const carnn_model *model) {
    return model->task->session_words ? model->task->session_words(model)
                                      : (size_t)CARNN__SESSION_WORDS;
}

/* The tokens of a text in a role; of labels their numbers among the model's choices. Where the task
   does not count them itself, batches read as many as a session has memory for. */
static size_t carnn__tokens(const carnn_model *model, carnn__span text, uint32_t role,
                            uint32_t *ids, size_t max) {
    const carnn__role *r = &model->task->roles[role];
    carnn__words w = carnn__words_of(r->tokenizer, text.at, text.length);
    size_t n, most = carnn__session_words(model);
    if (!r->labels && model->task->tokens) return model->task->tokens(model, text, role, ids, max);
    max = carnn__min(max, most);
    if (!r->labels)
        return carnn__min(most, carnn__tokenize(&model->words, r->tokenizer, text.at, text.length,
                                                ids, max));
    for (n = 0; n < most && carnn__next_word(&w); n++)
        if (n < max) ids[n] = carnn__names_find(&model->choices, w.word.at, w.word.length);
    return n;
}

/* Numbers the distinct pairs of text and role by their first appearance, and tokenises them. */
static carnn_status carnn__corpus_tokens(carnn__work *work, carnn_error *error) {
    carnn__corpus *c = carnn__corpus_of(work);
    const carnn_dataset *data = work->data;
    const carnn_allocator *a = &work->allocator;
    size_t roles = 0, pairs, i, j, at, n = 0;
    uint32_t *number;
    while (work->model->task->roles[roles].name) roles++;
    pairs = data->text_count * roles;
    number = (uint32_t *)carnn__own(&c->blocks, a, pairs, sizeof(uint32_t));
    c->list = (uint32_t *)carnn__own(&c->blocks, a, data->member_count, sizeof(uint32_t));
    c->tokens.at = (size_t *)carnn__own(&c->blocks, a, carnn__min(pairs, data->member_count) + 1,
                                        sizeof(size_t));
    if (!number || !c->list || !c->tokens.at) return carnn__out_of_memory(error);
    for (i = 0; data->columns && i < data->member_count; i++) c->list[i] = data->members[i].text;
    if (data->columns) { /* row r is token r */
        c->tokens.count = data->row_count;
        c->tokens.at = data->row_at;
        return CARNN_OK;
    }
    memset(number, 0xFF, pairs * sizeof(uint32_t));
    for (j = 0; j < 2; j++) { /* count, then write */
        for (at = i = n = 0; i < data->member_count; i++) {
            const carnn__member *m = &data->members[i];
            uint32_t *known = &number[(size_t)m->text * roles + m->role];
            if (*known == CARNN__NO_INDEX) *known = (uint32_t)n;
            c->list[i] = *known;
            if (*known != n) continue; /* has been met before */
            c->tokens.at[n++] = at;
            at += carnn__tokens(work->model, carnn__text(data, m->text), m->role,
                                j ? c->tokens.ids + at : NULL, j ? SIZE_MAX : 0);
        }
        c->tokens.at[n] = at;
        if (!j) c->tokens.ids = (uint32_t *)carnn__own(&c->blocks, a, at, sizeof(uint32_t));
        if (!c->tokens.ids) return carnn__out_of_memory(error);
    }
    c->tokens.count = n;
    return CARNN_OK;
}

/* The choices without blanks at their ends. */
static carnn_status carnn__trimmed(carnn__names *trimmed, const carnn__names *choices,
                                   const carnn_allocator *a, carnn_error *error) {
    carnn__span *s = (carnn__span *)carnn__alloc(a, choices->count, sizeof *s);
    carnn_status status;
    size_t i;
    if (!s) return carnn__out_of_memory(error);
    for (i = 0; i < choices->count; i++)
        s[i] = carnn__trim(carnn__string(choices->bytes, choices->at, i));
    status = carnn__names_build(trimmed, a, s, choices->count, error);
    carnn__free(a, s);
    return status;
}

/* Which choice of the model each item's target is, compared without blanks at the ends. */
static carnn_status carnn__corpus_targets(carnn__work *work, carnn_error *error) {
    carnn__corpus *c = carnn__corpus_of(work);
    const carnn_dataset *data = work->data;
    const carnn__names *choices = &work->model->choices;
    carnn__names trimmed;
    carnn_status status;
    size_t i;
    c->target = (uint32_t *)carnn__own(&c->blocks, &work->allocator, data->item_count,
                                       sizeof(uint32_t));
    if (!c->target) return carnn__out_of_memory(error);
    memset(c->target, 0xFF, data->item_count * sizeof(uint32_t));
    if (!choices->count) return CARNN_OK;
    status = carnn__trimmed(&trimmed, choices, &work->allocator, error);
    if (status) return status;
    for (i = 0; i < data->item_count; i++) {
        carnn__span text;
        if (data->items[i].target == CARNN__NO_INDEX) continue;
        text = carnn__text(data, data->items[i].target);
        c->target[i] = carnn__names_find(&trimmed, text.at, text.length);
    }
    carnn__names_free(&trimmed, &work->allocator);
    return CARNN_OK;
}

/* --- pieces ---------------------------------------------------------------------------------- */

/* The rows of an item's texts: its size, where its task does not measure it. */
static void carnn__item_rows(const carnn__work *work, size_t item, size_t size[CARNN__SIZES]) {
    const carnn__corpus *c = carnn__corpus_of(work);
    const carnn__item *x = &work->data->items[item];
    const carnn__role *roles = work->model->task->roles;
    size_t i;
    size[0] = size[1] = 0;
    for (i = x->first; i < x->first + x->count; i++)
        if (!roles[work->data->members[i].role].labels)
            size[0] += carnn__list_length(&c->tokens, c->list[i]);
}

/* The bound k of a batch; SIZE_MAX where there is none. */
static size_t carnn__limit(const carnn__work *work, size_t k) {
    const carnn__limits *l = &work->model->task->limits;
    if (l->rows_per_example) return carnn__times(l->rows_per_example, (size_t)work->batch);
    return l->size[k] ? l->size[k] : SIZE_MAX;
}

static int carnn__over(const size_t now[CARNN__SIZES], const size_t more[CARNN__SIZES],
                       const size_t most[CARNN__SIZES]) {
    return now[0] + more[0] > most[0] || now[1] + more[1] > most[1];
}

static void carnn__grow(size_t now[CARNN__SIZES], const size_t more[CARNN__SIZES]) {
    now[0] += more[0];
    now[1] += more[1];
}

static carnn_status carnn__corpus_room(carnn__corpus *c, const carnn_allocator *a, size_t pieces,
                                       carnn_error *error) {
    c->pieces = (carnn__batch_piece *)carnn__own(&c->blocks, a, pieces, sizeof *c->pieces);
    c->order = (uint32_t *)carnn__own(&c->blocks, a, pieces, sizeof(uint32_t));
    c->queue = (uint32_t *)carnn__own(&c->blocks, a, pieces, sizeof(uint32_t));
    c->batch_start = (size_t *)carnn__own(&c->blocks, a, pieces + 1, sizeof(size_t));
    if (c->pieces && c->order && c->queue && c->batch_start) return CARNN_OK;
    return carnn__out_of_memory(error);
}

/* Cuts the groups into pieces. The items of a piece have the same first text. */
static carnn_status carnn__corpus_cut(carnn__work *work, carnn_error *error) {
    carnn__corpus *c = carnn__corpus_of(work);
    const carnn_dataset *data = work->data;
    const carnn__task *task = work->model->task;
    size_t most = task->limits.piece, limit[CARNN__SIZES], k, i;
    carnn__batch_piece *now = NULL;
    if (carnn__corpus_room(c, &work->allocator, data->item_count, error))
        return CARNN_ERR_MEMORY;
    for (k = 0; k < CARNN__SIZES; k++)
        limit[k] = most == SIZE_MAX ? SIZE_MAX : carnn__limit(work, k);
    for (i = 0; i < data->item_count; i++) {
        const carnn__item *x = &data->items[i];
        size_t size[CARNN__SIZES];
        int begins = !i || x->group != x[-1].group;
        (task->measure ? task->measure : carnn__item_rows)(work, i, size);
        if (begins || now->count == most || carnn__over(now->size, size, limit) ||
            carnn__members(data, x)->text != carnn__members(data, x - 1)->text) {
            now = &c->pieces[c->piece_count++];
            memset(now, 0, sizeof *now);
            now->first = i;
            now->continues = !begins;
        }
        now->count++;
        carnn__grow(now->size, size);
    }
    return CARNN_OK;
}

/* The largest batch that any order of the pieces can make. */
static void carnn__corpus_most(carnn__work *work) {
    carnn__corpus *c = carnn__corpus_of(work);
    const carnn_dataset *data = work->data;
    size_t total[CARNN__SIZES] = {0}, largest[CARNN__SIZES] = {0}, items = 0, count = 0, i, j, k;
    for (i = 0; i < c->piece_count; i++) {
        carnn__grow(total, c->pieces[i].size);
        count += c->pieces[i].count;
        items = carnn__max(items, c->pieces[i].count);
        for (k = 0; k < CARNN__SIZES; k++)
            largest[k] = carnn__max(largest[k], c->pieces[i].size[k]);
    }
    c->most_items = carnn__min(count, (size_t)work->batch + items);
    for (k = 0; k < CARNN__SIZES; k++) {
        size_t most = carnn__max(carnn__limit(work, k), largest[k]);
        most = carnn__min(most, carnn__times((size_t)work->batch, largest[k]));
        c->most_size[k] = carnn__min(most, total[k]);
    }
    for (i = 0; i < data->item_count; i++) {
        const carnn__item *x = &data->items[i];
        c->most_texts = carnn__max(c->most_texts, x->count);
        for (j = x->first; j < x->first + x->count; j++)
            c->most_steps = carnn__max(c->most_steps, carnn__list_length(&c->tokens, c->list[j]));
    }
    c->most_texts *= c->most_items;
}

/* Makes the batches of an epoch, of groups shuffled by `key` (0: not shuffled), and returns their
   number. A batch ends when it has enough items or the next piece might not fit. */
static size_t carnn__net_batches(carnn__work *work, uint64_t key) {
    carnn__corpus *c = carnn__corpus_of(work);
    size_t i, j, groups = 0, pieces = 0, batches = 0, items = 0, now[CARNN__SIZES] = {0};
    for (i = 0; i < c->piece_count; i++)
        if (!c->pieces[i].continues) c->order[groups++] = (uint32_t)i;
    if (key) carnn__shuffle(key, c->order, groups);
    for (i = 0; i < groups; i++) {
        c->queue[pieces++] = c->order[i];
        for (j = c->order[i] + 1; j < c->piece_count && c->pieces[j].continues; j++)
            c->queue[pieces++] = (uint32_t)j;
    }
    for (i = 0; i < pieces; i++) {
        const carnn__batch_piece *p = &c->pieces[c->queue[i]];
        if (!i || items >= (size_t)work->batch || carnn__over(now, p->size, c->most_size)) {
            c->batch_start[batches++] = i;
            items = now[0] = now[1] = 0;
        }
        items += p->count;
        carnn__grow(now, p->size);
    }
    c->batch_start[batches] = pieces;
    return batches;
}

/* --- collecting a batch ---------------------------------------------------------------------- */

static size_t carnn__texts_rows(const carnn__texts *t) { return t->at[t->texts]; }

static void carnn__take_indices(carnn__arena *arena, uint32_t **const *list, size_t lists,
                                size_t count) {
    size_t i;
    for (i = 0; i < lists; i++) *list[i] = (uint32_t *)carnn__take(arena, count, sizeof(uint32_t));
}

/* Texts in these roles (bits). It comes first in a head's list of parts. */
static void carnn__texts_plan(carnn__plan *p, carnn__texts *t, unsigned roles, int shares,
                              carnn__flag_fn flag) {
    const carnn__corpus *c;
    size_t B, S, R, V;
    uint32_t **of_item[] = {&t->item, &t->piece};
    uint32_t **of_text[] = {&t->list, &t->sequence, &t->first, &t->length, &t->rank, &t->place};
    uint32_t **of_row[] = {&t->ids, &t->reversed, &t->index[0], &t->index[1], &t->row};
    t->roles = roles;
    t->shares = shares;
    t->flag = flag;
    if (!p->arena) return;
    c = carnn__corpus_of(p->work);
    V = p->model->words.count;
    t->work = p->work;
    B = t->most_items = c->most_items;
    S = t->most_texts = t->joined ? B : c->most_texts;
    R = t->most_rows = c->most_size[t->bound];
    t->most_inputs = c->tokens.ids ? carnn__min(R, 2 * V) : R;
    carnn__take_indices(p->arena, of_item, CARNN__COUNT(of_item), B);
    carnn__take_indices(p->arena, of_text, CARNN__COUNT(of_text), S);
    carnn__take_indices(p->arena, of_row, CARNN__COUNT(of_row), R);
    t->at = (size_t *)carnn__take(p->arena, S + 1, sizeof(size_t));
    t->start = (size_t *)carnn__take(p->arena, (t->joined ? R : c->most_steps) + 2, sizeof(size_t));
    t->input = (uint32_t *)carnn__take(p->arena, t->most_inputs, sizeof(uint32_t));
    t->local = (uint32_t *)carnn__take(p->arena, 2 * V, sizeof(uint32_t));
    t->seen = (uint32_t *)carnn__take(p->arena, c->tokens.count, sizeof(uint32_t));
    if (t->local) memset(t->local, 0xFF, 2 * V * sizeof(uint32_t));
    if (t->seen) memset(t->seen, 0xFF, c->tokens.count * sizeof(uint32_t));
}

/* Adds a text of an item to the batch: its distinct words become inputs, rows of numbers all. */
static void carnn__texts_add(carnn__texts *t, size_t item, size_t member) {
    const carnn__corpus *c = carnn__corpus_of(t->work);
    uint32_t list = c->list[member];
    size_t i, s = t->texts - (t->joined > 0), at = t->at[s + (t->joined > 0)];
    if (!(t->roles >> t->work->data->members[member].role & 1)) return;
    for (i = c->tokens.at[list]; i < c->tokens.at[list + 1]; i++) {
        uint32_t input = (uint32_t)i, one_more = CARNN__NO_INDEX, *known = &one_more;
        if (t->joined && at - t->at[s] == t->joined) break;
        if (c->tokens.ids) {
            input = 2 * (t->read ? t->read(t, item, c->tokens.ids[i]) : c->tokens.ids[i]);
            if (t->flag) input += t->flag(t, member, c->tokens.ids[i]);
            known = &t->local[input];
        }
        if (*known == CARNN__NO_INDEX) {
            *known = (uint32_t)t->inputs;
            t->input[t->inputs++] = input;
        }
        t->ids[at++] = *known;
    }
    t->list[s] = list;
    t->at[s + 1] = at;
    t->texts = s + 1;
}

/* Adds item number `item`, of a piece: all of its texts. */
static void carnn__texts_item(carnn__texts *t, size_t item, uint32_t piece) {
    const carnn__item *x = &t->work->data->items[item];
    size_t m;
    if (t->joined) { /* an empty text, to which they are added */
        t->list[t->texts] = 0;
        t->at[t->texts + 1] = t->at[t->texts];
        t->texts++;
    }
    for (m = x->first; m < x->first + x->count; m++) carnn__texts_add(t, item, m);
    t->piece[t->count] = piece;
    t->item[t->count++] = (uint32_t)item;
}

/* A sequence for each text, or for each distinct one. */
static void carnn__texts_pack(carnn__texts *t) {
    size_t P = 0, b, i, r;
    for (i = 0; i < t->texts; i++) {
        uint32_t *seen = &t->seen[t->list[i]];
        if (!t->shares || *seen == CARNN__NO_INDEX) {
            t->first[P] = (uint32_t)i;
            t->length[P] = (uint32_t)(t->at[i + 1] - t->at[i]);
            *seen = (uint32_t)P++;
        }
        t->sequence[i] = *seen;
    }
    for (i = 0; i < t->texts; i++) t->seen[t->list[i]] = CARNN__NO_INDEX;
    carnn__pack_sequences(&t->packed, t->length, P, t->rank, t->start);
    carnn__reverse_index(&t->packed, t->reversed);
    for (b = 0; b < P; b++) t->place[t->rank[b]] = (uint32_t)b;
    for (i = 0; i < t->texts; i++)
        for (r = t->at[i]; r < t->at[i + 1]; r++) {
            size_t row = t->start[r - t->at[i]] + t->place[t->sequence[i]];
            t->row[r] = (uint32_t)row;
            t->index[0][row] = t->index[1][t->reversed[row]] = t->ids[r];
        }
}

/* All items of the batch are there. The table of inputs is cleared now: the next time another model
   may have used the arena, where the list of inputs is. */
static void carnn__texts_complete(carnn__texts *t) {
    size_t i;
    for (i = 0; carnn__corpus_of(t->work)->tokens.ids && i < t->inputs; i++)
        t->local[t->input[i]] = CARNN__NO_INDEX;
    carnn__texts_pack(t);
}

/* Lists the items, texts, inputs and sequences of a batch. */
static void carnn__texts_collect(carnn__texts *t, size_t number) {
    const carnn__corpus *c = carnn__corpus_of(t->work);
    size_t i, j;
    t->count = t->texts = t->inputs = t->at[0] = 0;
    for (i = c->batch_start[number]; i < c->batch_start[number + 1]; i++) {
        const carnn__batch_piece *p = &c->pieces[c->queue[i]];
        for (j = p->first; j < p->first + p->count; j++) carnn__texts_item(t, j, c->queue[i]);
    }
    carnn__texts_complete(t);
}

/* Lists the texts of another role of the same items. */
static void carnn__texts_follow(carnn__texts *t, const carnn__texts *first) {
    size_t b;
    t->count = t->texts = t->inputs = t->at[0] = 0;
    for (b = 0; b < first->count; b++) carnn__texts_item(t, first->item[b], first->piece[b]);
    carnn__texts_complete(t);
}

#endif
/* =============================================================================================
   @@NET   the parts that heads are made of

   Each part is a struct with three functions: _plan declares its weights or takes its memory (see
   carnn__plan), _forward computes its output from its inputs, _backward adds the gradients of its
   inputs and weights. Where the two passes are the same loops, they are one function with the
   argument `backward`. Rows lie in reading order, text by text, except in the recurrent layer.
   ============================================================================================= */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

/* --- matrices -----------------------------------------------------------------------------------
   A matrix and the gradient of the loss with respect to it. The part whose output it is clears the
   gradient in its forward pass; the parts that read it add to it. */

typedef struct carnn__mat {
    float *x, *d; /* d: NULL where nothing is learnt */
    size_t columns;
} carnn__mat;

static carnn__mat carnn__plan_mat(carnn__plan *p, size_t rows, size_t columns) {
    carnn__mat m = {NULL, NULL, 0};
    m.columns = columns;
    if (p->arena) m.x = carnn__floats(p->arena, rows, columns);
    if (p->arena && p->work->g) m.d = carnn__floats(p->arena, rows, columns);
    return m;
}

static void carnn__mat_clear(const carnn__mat *m, size_t rows) {
    if (m->d) memset(m->d, 0, rows * m->columns * sizeof(float));
}

/* --- embedding ----------------------------------------------------------------------------------
   y_i = [E w_i; more] for the inputs of a batch; E (V, e) is the word table, and the head fills the
   columns behind it. Rows of numbers are their own vectors. Backward: dE w_i += dy_i. */

static size_t carnn__declare_words(carnn__plan *p) {
    return carnn__declare(p->store, "word", "weight", p->model->words.count,
                          (size_t)p->model->desc.embedding, 0, CARNN__INIT_NORMAL, 0.1f);
}

typedef struct carnn__embed {
    size_t table, e; /* parameter, from carnn__declare_words; columns of it */
    carnn__mat y;    /* (U, e + more) */
} carnn__embed;

static void carnn__embed_plan(carnn__plan *p, carnn__embed *m, const carnn__texts *t, size_t more) {
    m->e = (size_t)p->model->desc.embedding;
    m->y = carnn__plan_mat(p, t->most_inputs, m->e + more);
}

static void carnn__embed_forward(const carnn__work *work, carnn__embed *m, const carnn__texts *t) {
    const float *table = work->data->columns ? work->data->numbers : carnn__weight(work, m->table);
    size_t i, halve = work->data->columns ? 1 : 2;
    for (i = 0; i < t->inputs; i++)
        memcpy(m->y.x + i * m->y.columns, table + (t->input[i] / halve) * m->e,
               m->e * sizeof(float));
    carnn__mat_clear(&m->y, t->inputs);
}

static void carnn__embed_backward(const carnn__work *work, carnn__embed *m, const carnn__texts *t) {
    size_t i;
    if (work->data->columns) return; /* numbers are not trained, nor is a table that is fixed */
    if (work->model->params.item[m->table].offset >= work->model->params.trained) return;
    for (i = 0; i < t->inputs; i++)
        work->engine->k->add(m->y.d + i * m->y.columns,
                             carnn__gradient(work, m->table) + (size_t)(t->input[i] / 2) * m->e,
                             m->e);
}

/* --- linear layer -------------------------------------------------------------------------------
     y = f(x W^T + b)     f: identity, tanh or relu     W (out, in)  b (out)
   Logits are the identity, and have y.d also where nothing is learnt: their loss works in it.
   Backward: da = f'(a) dy;  dW += da^T x;  db += sum of da over rows;  dx += da W. */

typedef enum carnn__activation {
    CARNN__IDENTITY, CARNN__TANH, CARNN__RELU, CARNN__LOGITS
} carnn__activation;

typedef struct carnn__linear {
    size_t weight, bias;
    int biased;
    carnn__activation f;
    unsigned char *on; /* (rows, out) where relu passes its input on */
    int adds;          /* x W^T is added to what y.x is */
    carnn__mat y;      /* (rows, out) */
} carnn__linear;

static void carnn__linear_plan(carnn__plan *p, carnn__linear *m, const char *name,
                               const char *weight, size_t rows, size_t in, size_t out, int biased,
                               carnn__activation f) {
    m->biased = biased;
    m->f = f;
    m->weight = carnn__declare(p->store, name, weight, out, in, 0, CARNN__INIT_GLOROT, 0.0f);
    if (biased)
        m->bias = carnn__declare(p->store, name, "bias", 1, out, 1, CARNN__INIT_ZERO, 0.0f);
    m->y = carnn__plan_mat(p, rows, out);
    if (p->arena && !p->work->g && f == CARNN__LOGITS) m->y.d = carnn__floats(p->arena, rows, out);
    if (p->arena && f == CARNN__RELU)
        m->on = (unsigned char *)carnn__take(p->arena, rows * out, 1);
}

static void carnn__linear_forward(const carnn__work *work, carnn__linear *m, const carnn__mat *x,
                                  size_t rows) {
    size_t in = x->columns, out = m->y.columns, i;
    carnn__matmul(work->engine, m->adds ? CARNN__NT | CARNN__ADD : CARNN__NT, rows, out, in, x->x,
                  in, carnn__weight(work, m->weight), in,
                  m->biased ? carnn__weight(work, m->bias) : NULL, m->y.x, out);
    if (m->f == CARNN__TANH) work->engine->k->tanh_n(m->y.x, m->y.x, rows * out);
    for (i = 0; m->f == CARNN__RELU && i < rows * out; i++) {
        if (!carnn__net_of(work)->holds) m->on[i] = m->y.x[i] > 0.0f;
        if (!m->on[i]) m->y.x[i] = 0.0f;
    }
    carnn__mat_clear(&m->y, rows);
}

static void carnn__linear_backward(const carnn__work *work, carnn__linear *m, const carnn__mat *x,
                                   size_t rows) {
    size_t in = x->columns, out = m->y.columns, i;
    const float *y = m->y.x;
    float *dy = m->y.d;
    for (i = 0; m->f == CARNN__TANH && i < rows * out; i++) dy[i] *= 1.0f - y[i] * y[i];
    for (i = 0; m->f == CARNN__RELU && i < rows * out; i++) dy[i] = m->on[i] ? dy[i] : 0.0f;
    carnn__matmul(work->engine, CARNN__TN | CARNN__ADD, out, in, rows, dy, out, x->x, in, NULL,
                  carnn__gradient(work, m->weight), in);
    if (m->biased)
        carnn__column_sums(work->engine, rows, out, dy, out, carnn__gradient(work, m->bias));
    if (x->d)
        carnn__matmul(work->engine, CARNN__NN | CARNN__ADD, rows, in, out, dy, out,
                      carnn__weight(work, m->weight), in, NULL, x->d, in);
}

/* --- highway layers -----------------------------------------------------------------------------
   Two of them (Srivastava, Greff and Schmidhuber 2015), which at first pass most of x on:

     y = t * relu(W x + b) + (1 - t) * x     t = sigmoid(V x + a - 1)     x, t, y (rows, h) */

typedef struct carnn__highway {
    carnn__linear gate[2], change[2]; /* outputs t, relu */
    carnn__mat y[2];
} carnn__highway;

static void carnn__highway_plan(carnn__plan *p, carnn__highway *m, const char *name, size_t rows,
                                size_t h) {
    char part[48];
    size_t l;
    for (l = 0; l < 2; l++) {
        snprintf(part, sizeof part, "%s.%u.gate", name, (unsigned)l + 1);
        carnn__linear_plan(p, &m->gate[l], part, "weight", rows, h, h, 1, CARNN__IDENTITY);
        snprintf(part, sizeof part, "%s.%u", name, (unsigned)l + 1);
        carnn__linear_plan(p, &m->change[l], part, "weight", rows, h, h, 1, CARNN__RELU);
        m->y[l] = carnn__plan_mat(p, rows, h);
    }
}

static void carnn__highway_forward(const carnn__work *work, carnn__highway *m, const carnn__mat *x,
                                   size_t rows) {
    size_t l, i, n = rows * x->columns;
    for (l = 0; l < 2; x = &m->y[l++]) {
        float *t = m->gate[l].y.x, *y = m->y[l].x;
        const float *change = m->change[l].y.x;
        carnn__linear_forward(work, &m->gate[l], x, rows);
        carnn__linear_forward(work, &m->change[l], x, rows);
        for (i = 0; i < n; i++) t[i] -= 1.0f;
        work->engine->k->sigmoid_n(t, t, n);
        for (i = 0; i < n; i++) y[i] = x->x[i] + t[i] * (change[i] - x->x[i]);
        carnn__mat_clear(&m->y[l], rows);
    }
}

static void carnn__highway_backward(const carnn__work *work, carnn__highway *m,
                                    const carnn__mat *input, size_t rows) {
    size_t l, i, n = rows * input->columns;
    for (l = 2; l-- > 0;) {
        const carnn__mat *gate = &m->gate[l].y, *change = &m->change[l].y;
        const carnn__mat *x = l ? &m->y[0] : input;
        for (i = 0; i < n; i++) {
            float t = gate->x[i], d = m->y[l].d[i];
            gate->d[i] = d * (change->x[i] - x->x[i]) * t * (1.0f - t);
            change->d[i] = d * t;
            x->d[i] += d * (1.0f - t);
        }
        carnn__linear_backward(work, &m->gate[l], x, rows);
        carnn__linear_backward(work, &m->change[l], x, rows);
    }
}

/* --- context: the position encoding of a text ---------------------------------------------------
   For each sequence of a text of a pair (texts 2 i and 2 i + 1), the position encoding (@@PART) of
   the words of the other text, or of its own; divided by their number: sums of 30 words shut the
   gates of a cell and say little more than how long the text is. */

typedef struct carnn__position {
    int own;         /* of the text itself, which may be any text */
    float *ramp;     /* (D) */
    uint32_t *text;  /* (P) */
    carnn__mat y;    /* (P, D) */
} carnn__position;

static void carnn__position_plan(carnn__plan *p, carnn__position *m, size_t D,
                                 const carnn__texts *t) {
    m->y = carnn__plan_mat(p, t->most_texts, D);
    if (!p->arena) return;
    m->ramp = carnn__floats(p->arena, 1, D);
    m->text = (uint32_t *)carnn__take(p->arena, t->most_texts, sizeof(uint32_t));
    if (m->ramp) carnn__encoder_ramp(m->ramp, D);
}

/* x (U, D): the inputs of the batch. Sums become means, and backward likewise. */
static void carnn__position_run(const carnn__work *work, carnn__position *m, const carnn__texts *t,
                                const carnn__mat *x, int backward) {
    carnn__encoder e = {t->packed.sequences, m->y.columns, m->text, t->ids, t->at, m->ramp,
                        x->x, m->y.x, x->d, m->y.d};
    float *y = backward ? m->y.d : m->y.x;
    size_t b;
    for (b = 0; b < e.texts; b++) m->text[b] = t->first[t->rank[b]] ^ !m->own;
    if (!backward) carnn__encode_texts(work->engine, &e);
    for (b = 0; b < e.texts; b++) {
        size_t n = t->at[m->text[b] + 1] - t->at[m->text[b]];
        if (n) work->engine->k->scale(y + b * m->y.columns, 1.0f / (float)n, m->y.columns);
    }
    if (backward) carnn__encode_texts_back(work->engine, &e);
    else carnn__mat_clear(&m->y, e.texts);
}

/* --- position encoder of token lists ------------------------------------------------------------
   Rows of y (lists, D): enc (@@PART) of the words of a list, whose vectors are in E (V, D). */

typedef struct carnn__list_encoder {
    size_t table; /* parameter */
    float *ramp;  /* (D) */
} carnn__list_encoder;

static void carnn__list_encoder_plan(carnn__plan *p, carnn__list_encoder *m, size_t D) {
    m->table = carnn__declare_words(p);
    m->ramp = p->arena ? carnn__floats(p->arena, 1, D) : NULL;
    if (m->ramp) carnn__encoder_ramp(m->ramp, D);
}

/* Encodes `count` lists, those in `which` or from number `first` on, to the rows of y from `row`
   on; backward from their gradients to that of E. */
static void carnn__encode_lists(const carnn__work *work, const carnn__list_encoder *m,
                                const carnn__lists *lists, size_t first, const uint32_t *which,
                                size_t count, const carnn__mat *y, size_t row, int backward) {
    size_t at = row * y->columns;
    carnn__encoder job = {count, y->columns, which, lists->ids, lists->at + first, m->ramp,
                          carnn__weight(work, m->table), y->x + at,
                          backward ? carnn__gradient(work, m->table) : NULL,
                          backward ? y->d + at : NULL};
    (backward ? carnn__encode_texts_back : carnn__encode_texts)(work->engine, &job);
}

/* --- recurrent encoders -------------------------------------------------------------------------
   Layers of any cell, one on top of the other, each in one direction or both: y_t = [fw_t; bw_t].
   The first layer reads inputs by index, so that a word that occurs often is projected once; the
   others read the rows of the layer below. The last one's output is packed or in reading order.

   A layer of an RCRN (Tay et al. 2018) has three such RNNs, the bases, which read the same inputs:
   s1 and s2 control the forget and the output gate of a listener (@@CELL), s3 is what it hears. It
   goes through all columns of [fw; bw] from the first word to the last.

   Dropout is on what layers read. Each base has a mask of its own. */

#define CARNN__BASES 3

static const char *const carnn__encoders[] = {"rnn", "rcrn", NULL};

/* Options `number` to number + 2 of a task that has an encoder. */
#define CARNN__ENCODER_OPTIONS(number)                                                             \
    CARNN__OPTION_CHOICE("encoder", number, carnn__encoders,                                       \
                         "rnn, or rcrn: two RNNs are the gates of a third"),                       \
        CARNN__OPTION_WHOLE("raw_output_gate", (number) + 1, 0, 1, 0,                              \
                            "1: the output gate of an rcrn is not squashed"),                      \
        CARNN__OPTION_WHOLE("skip", (number) + 2, 0, 10000, 0,                                     \
                            "K: gates also read the state K steps before; 0: none")

typedef struct carnn__rnn_base {
    carnn__cell cell[2]; /* by direction */
    carnn__cell_run run[2];
    float *dout;         /* (N, h) of the direction at hand */
} carnn__rnn_base;

typedef struct carnn__rnn_layer {
    carnn__rnn_base base[CARNN__BASES];
    carnn__listener listener[2]; /* which share all memory but c */
    int projects;
    carnn__linear project; /* (U or N, h) of what is read, for cells whose candidate it is */
    carnn__mat y;          /* (N or R, directions h) */
} carnn__rnn_layer;

typedef struct carnn__rnn {
    size_t bases, layers, directions, h, skip;
    size_t drop_input; /* stream of dropout on the input of the first layer; 0: none */
    size_t drop;       /* of the second one, the output of the first; the others follow */
    int drops_top;     /* dropout on the output of the last layer, too */
    carnn__mat masked; /* of several bases: what one of them reads */
    carnn__rnn_layer layer[CARNN__LAYERS_MAX];
} carnn__rnn;

typedef struct carnn__rnn_shape {
    size_t cell, layers, directions, in, h, d; /* cell: its number; d: of the context */
    int rcrn, raw;                             /* raw: the output gate is s2 itself */
    size_t skip;                               /* k of skip connections; 0: none */
} carnn__rnn_shape;

/* What a model describes, with the options of CARNN__ENCODER_OPTIONS(option). */
static carnn__rnn_shape carnn__encoder_shape(const carnn_model *model, size_t option,
                                             size_t directions, size_t in, size_t d) {
    const carnn_model_desc *desc = &model->desc;
    carnn__rnn_shape s = {carnn__cell_number(desc->cell), (size_t)desc->layers, directions, in,
                          (size_t)desc->hidden, d, carnn__chosen(model, option) == 1,
                          carnn__option(model, option + 1) > 0.0,
                          (size_t)carnn__option(model, option + 2)};
    return s;
}

static int carnn__reads_context(const char *cell) {
    size_t kind = carnn__cell_number(cell);
    return kind < CARNN__CELL_COUNT && carnn__cells[kind].context_gates > 0;
}

/* A packed batch as a recurrent layer reads it. */
typedef struct carnn__rnn_input {
    const carnn__packed *packed;
    const uint32_t *index[2]; /* input of each row by direction; index[0] NULL: row i has input i */
    const uint32_t *reversed; /* see carnn__reverse_index; NULL: read in one direction alone */
    const carnn__mat *x;      /* (U, in) */
    size_t inputs;            /* U */
    const carnn__mat *c;      /* (P, d) contexts by rank; NULL: none */
    const uint32_t *row;      /* (R) packed row of each row of the output; NULL: it is packed */
    size_t rows;              /* R */
    float *state;             /* (layers, carnn__rnn_states, h) before the only sequence, in one
                                 direction, replaced by what is there after it; carnn__rnn_ready was
                                 called before. NULL: zeros */
} carnn__rnn_input;

/* States of a layer: output, memory and what skip connections read of each base, and c of the
   listener. */
static size_t carnn__rnn_states(const carnn__rnn *m) {
    return (2 + m->skip) * m->bases + (m->bases > 1);
}

static void carnn__listener_plan(carnn__plan *p, carnn__rnn_layer *layer, size_t i, size_t h,
                                 size_t N, size_t P) {
    carnn__listener *l = &layer->listener[i];
    size_t b;
    *l = *layer->listener;
    l->h = h;
    l->c = carnn__floats(p->arena, N, h);
    if (!i) l->out = carnn__floats(p->arena, N, h);
    if (!i && p->work->g) l->dout = carnn__floats(p->arena, N, h);
    if (!i && p->work->g) l->dc = carnn__floats(p->arena, P, h);
    layer->base[0].dout = l->out; /* which the backward pass does not need */
    for (b = 0; b < CARNN__BASES; b++) {
        l->s[b] = layer->base[b].run[i].scan.out;
        l->ds[b] = layer->base[b].dout;
    }
}

/* name: of the weights. Behind it stand ".2", ".forget", ".forward" where there are several layers,
   bases, directions. U, N, P: most inputs, packed rows, sequences of a batch. */
static void carnn__rnn_plan(carnn__plan *p, carnn__rnn *m, const char *name, carnn__rnn_shape s,
                            size_t U, size_t N, size_t P) {
    static const char *const base[] = {".forget", ".output", ".listener"};
    static const char *const direction[] = {".forward", ".backward"};
    char prefix[48], number[12] = "";
    size_t l, b, i;
    m->bases = s.rcrn ? CARNN__BASES : 1;
    m->layers = s.layers;
    m->directions = s.directions;
    m->h = s.h;
    m->skip = s.skip;
    if (m->bases > 1 && p->arena && p->work->g)
        m->masked = carnn__plan_mat(
            p, 1, carnn__max(U * s.in, s.layers > 1 ? N * s.directions * s.h : 0));
    for (l = 0; l < s.layers; l++) {
        carnn__rnn_layer *layer = &m->layer[l];
        if (l) snprintf(number, sizeof number, ".%u", (unsigned)l + 1);
        layer->projects = carnn__cells[s.cell].flags & CARNN__INPUT_IS_CANDIDATE && s.in != s.h;
        if (layer->projects) {
            snprintf(prefix, sizeof prefix, "%s%s", name, number);
            carnn__linear_plan(p, &layer->project, prefix, "project", U, s.in, s.h, 0,
                               CARNN__IDENTITY);
            s.in = s.h;
        }
        for (b = 0; b < m->bases; b++)
            for (i = 0; i < s.directions; i++) {
                carnn__rnn_base *one = &layer->base[b];
                snprintf(prefix, sizeof prefix, "%s%s%s%s", name, number, s.rcrn ? base[b] : "",
                         s.directions > 1 ? direction[i] : "");
                carnn__cell_declare(&one->cell[i], p->store, prefix, s.cell, s.in, s.h, s.d);
                carnn__cell_declare_skip(&one->cell[i], p->store, prefix, s.skip);
                if (!p->arena) continue;
                carnn__cell_plan(&one->run[i], &one->cell[i], &p->model->params, p->work->w,
                                 p->work->g, p->arena, U, N, P, b || i ? layer->base->run : NULL);
                one->run[i].shares = m->bases * m->directions > 1;
                if (p->work->g && !i && (b || !s.rcrn))
                    one->dout = carnn__floats(p->arena, N, s.h);
            }
        layer->listener->raw = s.raw;
        for (i = 0; p->arena && s.rcrn && i < s.directions; i++)
            carnn__listener_plan(p, layer, i, s.h, N, P);
        layer->y = carnn__plan_mat(p, N, s.directions * s.h);
        s.in = s.directions * s.h;
        U = N;
    }
}

static const carnn__mat *carnn__rnn_output(const carnn__rnn *m) {
    return &m->layer[m->layers - 1].y;
}

/* Packs the recurrent weights for products: whenever they have changed. */
static void carnn__rnn_ready(const carnn__work *work, carnn__rnn *m) {
    size_t l, b, i;
    for (l = 0; l < m->layers; l++)
        for (b = 0; b < m->bases; b++)
            for (i = 0; i < m->directions; i++)
                carnn__cell_ready(&m->layer[l].base[b].run[i], work->engine);
}

/* What layer l reads: x, or the output of the layer below, which is packed. */
static carnn__rnn_input carnn__rnn_below(const carnn__rnn *m, size_t l, const carnn__rnn_input *x) {
    carnn__rnn_input in = *x;
    if (l) {
        in.x = &m->layer[l - 1].y;
        in.inputs = x->packed->rows;
        in.index[0] = NULL;
        in.index[1] = x->reversed;
    }
    if (l + 1 < m->layers) in.row = NULL;
    if (!in.row) in.rows = x->packed->rows;
    return in;
}

/* Dropout on values, or on their gradient, that base b of layer l reads. */
static void carnn__rnn_drop(const carnn__work *work, const carnn__rnn *m, size_t l, size_t b,
                            float *x, size_t count, uint64_t key) {
    size_t stream = l ? m->drop + l - 1 : m->drop_input;
    if (stream && b) stream = m->drop + CARNN__LAYERS_MAX * b + l;
    if (stream) carnn__drop(work, x, count, key, stream);
}

/* What base b reads: x, or in training a copy of it with the base's own mask. */
static const carnn__mat *carnn__rnn_masked(const carnn__work *work, carnn__rnn *m, size_t l,
                                           size_t b, const carnn__rnn_input *in, uint64_t key) {
    size_t count = in->inputs * in->x->columns;
    if (m->bases == 1 || !key) return in->x;
    m->masked.columns = in->x->columns;
    memcpy(m->masked.x, in->x->x, count * sizeof(float));
    carnn__rnn_drop(work, m, l, b, m->masked.x, count, key);
    return &m->masked;
}

/* One direction of a base. The state of one sequence goes on in `state`, if that is there. */
static void carnn__rnn_run(const carnn__work *work, carnn__cell_run *run,
                           const carnn__rnn_input *in, const float *x, size_t direction,
                           float *state) {
    const carnn__cell_kind *kind = &carnn__cells[run->cell->kind];
    size_t h = run->cell->h, last = in->packed->rows - 1, k = run->cell->skip, i;
    float *past = state ? state + 2 * h : NULL;
    run->past = past;
    carnn__cell_project(run, work->engine, x, 0, in->inputs);
    carnn__cell_context(run, work->engine, in->c ? in->c->x : NULL, in->packed->sequences);
    carnn__cell_forward(run, work->engine, in->packed, in->index[direction], state,
                        state ? state + h : NULL);
    if (!state) return;
    memcpy(state, run->scan.out + last * h, h * sizeof(float));
    for (i = 0; i < k; i++)
        memcpy(past + i * h, last + 1 + i < k ? past + (last + 1 + i) * h
                                              : run->scan.out + (last + 1 + i - k) * h,
               h * sizeof(float));
    if (kind->flags & CARNN__HAS_CELL_STATE) /* it stands last on the tape */
        memcpy(state + h, run->scan.tape + ((last + 1) * kind->tape - 1) * h, h * sizeof(float));
}

/* Listens to the bases, or passes the gradient back to them. */
static void carnn__rnn_listen(const carnn__work *work, const carnn__rnn_input *in,
                              carnn__listener *l, size_t direction, float *state, int backward) {
    const carnn__kernels *k = work->engine->k;
    size_t N = in->packed->rows;
    l->seq = in->packed;
    l->reversed = direction ? in->reversed : NULL;
    l->first = state;
    if (backward) memset(l->dc, 0, in->packed->sequences * l->h * sizeof(float));
    carnn__split(work->engine, backward ? k->listen_back : k->listen, l,
                 carnn__parts(l->h, CARNN__LANES), 1, 16 * N * l->h);
    if (state) memcpy(state, l->c + (N - 1) * l->h, l->h * sizeof(float));
}

/* Columns of direction i between y, whose rows may be in reading order, and the packed rows of the
   base or the listener; backward the gradients of rows that share one are added up. */
static void carnn__rnn_rows(const carnn__work *work, const carnn__rnn *m, carnn__rnn_layer *layer,
                            const carnn__rnn_input *in, size_t i, int backward) {
    const float *out = m->bases > 1 ? layer->listener[i].out : layer->base[0].run[i].scan.out;
    float *dout = m->bases > 1 ? layer->listener[i].dout : layer->base[0].dout;
    size_t h = m->h, r;
    int shared = in->rows != in->packed->rows; /* several rows of the output are one packed row */
    if (backward && shared) memset(dout, 0, in->packed->rows * h * sizeof(float));
    for (r = 0; r < in->rows; r++) {
        size_t row = in->row ? in->row[r] : r, at = (r * m->directions + i) * h;
        if (i && m->bases == 1) row = in->reversed[row]; /* a listener has it in its own order */
        if (!backward) memcpy(layer->y.x + at, out + row * h, h * sizeof(float));
        else if (!shared) memcpy(dout + row * h, layer->y.d + at, h * sizeof(float));
        else work->engine->k->add(layer->y.d + at, dout + row * h, h);
    }
}

static void carnn__rnn_forward(const carnn__work *work, carnn__rnn *m, carnn__rnn_input x,
                               uint64_t key) {
    size_t l, b, i, h = m->h;
    if (!x.state) carnn__rnn_ready(work, m);
    for (l = 0; l < m->layers; l++) {
        carnn__rnn_layer *layer = &m->layer[l];
        carnn__rnn_input in = carnn__rnn_below(m, l, &x);
        float *state = in.state ? in.state + l * carnn__rnn_states(m) * h : NULL;
        if (m->bases == 1)
            carnn__rnn_drop(work, m, l, 0, in.x->x, in.inputs * in.x->columns, key);
        if (layer->projects) {
            carnn__linear_forward(work, &layer->project, in.x, in.inputs);
            in.x = &layer->project.y;
        }
        for (b = 0; b < m->bases; b++) {
            const float *read = carnn__rnn_masked(work, m, l, b, &in, key)->x;
            for (i = 0; i < m->directions; i++)
                carnn__rnn_run(work, &layer->base[b].run[i], &in, read, i,
                               state ? state + (2 + m->skip) * b * h : NULL);
        }
        for (i = 0; i < m->directions; i++) {
            if (m->bases > 1)
                carnn__rnn_listen(work, &in, &layer->listener[i], i,
                                  state ? state + (2 + m->skip) * CARNN__BASES * h : NULL, 0);
            carnn__rnn_rows(work, m, layer, &in, i, 0);
        }
        carnn__mat_clear(&layer->y, in.rows);
        if (l + 1 == m->layers && m->drops_top)
            carnn__drop(work, layer->y.x, in.rows * layer->y.columns, key, m->drop + l);
    }
}

/* Base b of a layer in direction i, from the gradients at its states; in: what the layer reads. */
static void carnn__rnn_base_backward(const carnn__work *work, carnn__rnn *m, size_t l, size_t b,
                                     size_t i, const carnn__rnn_input *in, uint64_t key) {
    carnn__rnn_base *base = &m->layer[l].base[b];
    const carnn__mat *x = carnn__rnn_masked(work, m, l, b, in, key);
    size_t count = in->inputs * x->columns;
    float *dx = in->x->d ? x->d : NULL;
    if (x != in->x) memset(x->d, 0, count * sizeof(float));
    carnn__cell_backward(&base->run[i], work->engine, base->dout, dx);
    if (in->c) carnn__cell_context_back(&base->run[i], work->engine, in->c->d);
    carnn__cell_project_back(&base->run[i], work->engine, dx);
    if (x == in->x || !dx) return;
    carnn__rnn_drop(work, m, l, b, dx, count, key);
    work->engine->k->add(dx, in->x->d, count);
}

static void carnn__rnn_backward(const carnn__work *work, carnn__rnn *m, carnn__rnn_input x,
                                uint64_t key) {
    size_t l, b, i;
    for (l = m->layers; l-- > 0;) {
        carnn__rnn_layer *layer = &m->layer[l];
        carnn__rnn_input in = carnn__rnn_below(m, l, &x);
        const carnn__mat *read = in.x;
        if (l + 1 == m->layers && m->drops_top)
            carnn__drop(work, layer->y.d, in.rows * layer->y.columns, key, m->drop + l);
        if (layer->projects) in.x = &layer->project.y;
        for (i = 0; i < m->directions; i++) {
            carnn__rnn_rows(work, m, layer, &in, i, 1);
            if (m->bases > 1) carnn__rnn_listen(work, &in, &layer->listener[i], i, NULL, 1);
            for (b = 0; b < m->bases; b++) carnn__rnn_base_backward(work, m, l, b, i, &in, key);
        }
        if (layer->projects) carnn__linear_backward(work, &layer->project, read, in.inputs);
        if (m->bases == 1 && read->d)
            carnn__rnn_drop(work, m, l, 0, read->d, in.inputs * read->columns, key);
    }
}

/* The texts of a batch: x (U, in) inputs, c (P, d) contexts or NULL; the output is (R, D). */
static carnn__rnn_input carnn__texts_read(const carnn__texts *t, const carnn__mat *x,
                                          const carnn__mat *c) {
    carnn__rnn_input in = {&t->packed, {t->index[0], t->index[1]}, t->reversed, x, t->inputs, c,
                           t->row, t->at[t->texts], NULL};
    return in;
}

/* --- pooling ------------------------------------------------------------------------------------
   Over the words of each text: the largest or smallest value of every column (the first of equal
   ones), the mean, or the last states: of [fw; bw] the last of fw and the first of bw. A text
   without words gives zeros. Several kinds stand side by side: y (S, kinds D). */

typedef enum carnn__pooling {
    CARNN__POOL_MAX,
    CARNN__POOL_MEAN,
    CARNN__POOL_MIN,
    CARNN__POOL_LAST,
    CARNN__POOL_COUNT
} carnn__pooling;

typedef struct carnn__pool_part {
    size_t kinds, directions;
    carnn__pooling kind[CARNN__POOL_COUNT];
    uint32_t *where; /* (S, kinds D) the row that a value of max, min or last is from */
    carnn__mat y;    /* (S, kinds D) */
} carnn__pool_part;

/* The kinds and their number are set before. D: columns of what is pooled. */
static void carnn__pool_plan(carnn__plan *p, carnn__pool_part *m, size_t D, size_t directions,
                             const carnn__texts *t) {
    size_t S = t->most_texts, width = m->kinds * D;
    m->directions = directions;
    m->y = carnn__plan_mat(p, S, width);
    if (p->arena) m->where = (uint32_t *)carnn__take(p->arena, S * width, sizeof(uint32_t));
}

/* The row of [from, to) that each column of a maximum, a minimum or the last states is from. */
static void carnn__pool_choose(const carnn__pool_part *m, carnn__pooling kind, const carnn__mat *x,
                               size_t from, size_t to, uint32_t *where) {
    size_t D = x->columns, r, j, backward = m->directions > 1 ? D / 2 : D;
    for (j = 0; j < D; j++)
        where[j] = (uint32_t)(kind == CARNN__POOL_LAST && j < backward ? to - 1 : from);
    for (r = from + 1; kind != CARNN__POOL_LAST && r < to; r++)
        for (j = 0; j < D; j++) {
            float value = x->x[r * D + j], best = x->x[where[j] * D + j];
            if (kind == CARNN__POOL_MAX ? value > best : value < best) where[j] = (uint32_t)r;
        }
}

static void carnn__pool_text(const carnn__work *work, const carnn__pool_part *m,
                             const carnn__texts *t, const carnn__mat *x, size_t s, size_t k,
                             int backward) {
    size_t D = x->columns, from = t->at[s], to = t->at[s + 1], at = (s * m->kinds + k) * D, r, j;
    float *y = m->y.x + at, *dy = backward ? m->y.d + at : NULL;
    uint32_t *where = m->where + at;
    if (!backward) memset(y, 0, D * sizeof(float));
    if (from == to) return;
    if (m->kind[k] == CARNN__POOL_MEAN) {
        for (r = from; !backward && r < to; r++) work->engine->k->add(x->x + r * D, y, D);
        work->engine->k->scale(backward ? dy : y, 1.0f / (float)(to - from), D);
        for (r = from; backward && r < to; r++) work->engine->k->add(dy, x->d + r * D, D);
        return;
    }
    if (!backward && !carnn__net_of(work)->holds)
        carnn__pool_choose(m, m->kind[k], x, from, to, where);
    for (j = 0; j < D; j++)
        if (backward) x->d[where[j] * D + j] += dy[j];
        else y[j] = x->x[where[j] * D + j];
}

static void carnn__pool_words(const carnn__work *work, carnn__pool_part *m, const carnn__texts *t,
                              const carnn__mat *x, int backward) {
    size_t i;
    if (!backward) carnn__mat_clear(&m->y, t->texts);
    for (i = 0; i < t->texts * m->kinds; i++)
        carnn__pool_text(work, m, t, x, i / m->kinds, i % m->kinds, backward);
}

/* --- additive attention over the words of each text ---------------------------------------------
   k (R, D) the words, q (S, D) a query of each text, which weighs the words of the other text of
   the pair:

     g_r = tanh(W1 k_r + W2 q)      w = softmax over the text of v . g_r      W1, W2 (h, D)   v (h)

   Backward, from dw: ds = w * (dw - w . dw), then through the three linear layers. */

typedef struct carnn__additive {
    carnn__linear keys, query, score; /* g (R, h); W2 q (S, h); w (R, 1) */
    int own; /* a query weighs the words of its own text instead */
} carnn__additive;

static void carnn__additive_plan(carnn__plan *p, carnn__additive *m, const char *name, size_t D,
                                 size_t h, const carnn__texts *t) {
    size_t R = t->most_rows;
    carnn__linear_plan(p, &m->keys, name, "weight", R, D, h, 0, CARNN__TANH);
    carnn__linear_plan(p, &m->query, name, "other", t->most_texts, D, h, 0, CARNN__IDENTITY);
    carnn__linear_plan(p, &m->score, name, "vector", R, h, 1, 0, CARNN__IDENTITY);
    m->keys.adds = 1;
}

static void carnn__additive_forward(const carnn__work *work, carnn__additive *m,
                                    const carnn__texts *t, const carnn__mat *k,
                                    const carnn__mat *q) {
    size_t h = m->keys.y.columns, R = carnn__texts_rows(t), s, r;
    carnn__linear_forward(work, &m->query, q, t->texts);
    for (s = 0; s < t->texts; s++)
        for (r = t->at[s]; r < t->at[s + 1]; r++)
            memcpy(m->keys.y.x + r * h, m->query.y.x + (m->own ? s : s ^ 1) * h,
                   h * sizeof(float));
    carnn__linear_forward(work, &m->keys, k, R);
    carnn__linear_forward(work, &m->score, &m->keys.y, R);
    for (s = 0; s < t->texts; s++)
        if (t->at[s + 1] > t->at[s])
            work->engine->k->softmax(m->score.y.x + t->at[s], t->at[s + 1] - t->at[s]);
}

static void carnn__additive_backward(const carnn__work *work, carnn__additive *m,
                                     const carnn__texts *t, const carnn__mat *k,
                                     const carnn__mat *q) {
    const carnn__kernels *kernels = work->engine->k;
    size_t h = m->keys.y.columns, R = carnn__texts_rows(t), s, r;
    for (s = 0; s < t->texts; s++)
        carnn__softmax_back(kernels, m->score.y.x + t->at[s], m->score.y.d + t->at[s],
                            t->at[s + 1] - t->at[s]);
    carnn__linear_backward(work, &m->score, &m->keys.y, R);
    carnn__linear_backward(work, &m->keys, k, R);
    for (s = 0; s < t->texts; s++)
        for (r = t->at[s]; r < t->at[s + 1]; r++)
            kernels->add(m->keys.y.d + r * h, m->query.y.d + (m->own ? s : s ^ 1) * h, h);
    carnn__linear_backward(work, &m->query, q, t->texts);
}

/* --- what each word adds to the states of its text ----------------------------------------------
   y (R, D) from x = [fw; bw]: [fw_i - fw_{i-1}; bw_i - bw_{i+1}], the states outside of the text
   being 0. */

static void carnn__differences(const carnn__texts *t, const carnn__mat *x, const carnn__mat *y,
                               int backward) {
    size_t D = x->columns, s, r, j;
    if (!backward) carnn__mat_clear(y, carnn__texts_rows(t));
    for (s = 0; s < t->texts; s++)
        for (r = t->at[s]; r < t->at[s + 1]; r++)
            for (j = 0; j < D; j++) {
                size_t i = r * D + j, next = j < D / 2 ? i - D : i + D;
                int has = j < D / 2 ? r > t->at[s] : r + 1 < t->at[s + 1];
                if (!backward) y->x[i] = x->x[i] - (has ? x->x[next] : 0.0f);
                else x->d[i] += y->d[i];
                if (backward && has) x->d[next] -= y->d[i];
            }
}

/* --- comparison of the two texts of a pair ------------------------------------------------------
   a_i = sum_j softmax_j(x_i . y_j) y_j, what word x_i of one text is aligned with in the other;
   f = sum_i w_i [p_i; o_i], or w_i o_i alone, by the decomposition of @@PART. A pair a thread. */

typedef struct carnn__compare {
    int orthogonal, backward;
    carnn__mat a, E, f; /* (R, D); the matrices of both texts of each pair; (B, 2 F) */
    float *share;       /* (R) */
    size_t *cell_at;    /* (B) where a pair's matrices are in E */
    const carnn__work *work; /* of the run at hand, and its texts, states, weights */
    const carnn__texts *t;
    const carnn__mat *x, *w;
} carnn__compare;

static void carnn__compare_plan(carnn__plan *p, carnn__compare *m, size_t D, int orthogonal,
                                const carnn__texts *t) {
    m->orthogonal = orthogonal;
    m->a = carnn__plan_mat(p, t->most_rows, D);
    m->E = carnn__plan_mat(p, p->arena ? carnn__corpus_of(p->work)->most_size[1] : 0, 1);
    m->f = carnn__plan_mat(p, t->most_items, (orthogonal ? 4 : 2) * D);
    if (!p->arena) return;
    m->share = carnn__floats(p->arena, 1, t->most_rows);
    m->cell_at = (size_t *)carnn__take(p->arena, t->most_items, sizeof(size_t));
}

static carnn__compose carnn__compare_text(const carnn__compare *m, size_t s) {
    size_t D = m->x->columns, at = m->t->at[s], F = m->f.columns / 2;
    carnn__compose c = {m->t->at[s + 1] - at, D, m->orthogonal, m->x->x + at * D, m->a.x + at * D,
                        m->w->x + at, m->share + at, m->f.x + s * F, NULL, NULL, NULL, NULL};
    if (!m->work->g) return c;
    c.df = m->f.d + s * F;
    c.dx = m->x->d + at * D;
    c.da = m->a.d + at * D;
    c.dweight = m->w->d + at;
    return c;
}

/* Backward, the decomposition sets dx, to which the alignment adds. */
static void carnn__compare_pair(void *job, size_t pair, size_t worker) {
    const carnn__compare *m = (const carnn__compare *)job;
    carnn__engine e = carnn__engine_of(m->work->engine, worker);
    const size_t *at = m->t->at;
    const carnn__mat *x = m->x, *a = &m->a, *E = &m->E;
    size_t D = x->columns, s, cell = m->cell_at[pair];
    carnn__compose c[2];
    for (s = 0; s < 2; s++) {
        c[s] = carnn__compare_text(m, 2 * pair + s);
        if (m->backward) e.k->compose_back(&c[s]);
    }
    for (s = 0; s < 2; s++, cell += c[0].rows * c[1].rows) {
        size_t mine = at[2 * pair + s] * D, other = at[2 * pair + 1 - s] * D;
        size_t n = c[s].rows, others = c[1 - s].rows;
        if (m->backward) {
            carnn__align_back(&e, n, others, D, x->x + mine, x->x + other, E->x + cell, a->d + mine,
                              E->d + cell, x->d + mine, x->d + other);
        } else {
            carnn__align(&e, n, others, D, x->x + mine, x->x + other, E->x + cell, a->x + mine);
            e.k->compose(&c[s]);
        }
    }
}

/* x (R, D) states, w (R, 1) weights; the output is m->f. The backward pass sets the gradients of x
   and w: it comes before what adds to them. */
static void carnn__compare_run(const carnn__work *work, carnn__compare *m, const carnn__texts *t,
                               const carnn__mat *x, const carnn__mat *w, int backward) {
    size_t b, cell = 0;
    m->backward = backward;
    m->work = work;
    m->t = t;
    m->x = x;
    m->w = w;
    for (b = 0; b < t->count; b++) {
        m->cell_at[b] = cell;
        cell += 2 * (t->at[2 * b + 1] - t->at[2 * b]) * (t->at[2 * b + 2] - t->at[2 * b + 1]);
    }
    carnn__parallel(work->engine->pool, t->count, carnn__compare_pair, m);
    if (!backward) carnn__mat_clear(&m->f, t->count);
}

/* The signs of x - y (n); held still where derivatives are checked. */
static void carnn__signs(const carnn__work *work, const float *x, const float *y, size_t n,
                         signed char *sign) {
    size_t i;
    for (i = 0; i < n && !carnn__net_of(work)->holds; i++)
        sign[i] = (signed char)((x[i] > y[i]) - (x[i] < y[i]));
}

/* --- Manhattan similarity -----------------------------------------------------------------------
   S = exp(-D) of two encodings a and b (s) with D = 8 mean_j |a_j - b_j| (Mueller and Thyagarajan
   2016), told as the K logits of the binomial distribution of K - 1 trials with the probability S:

     z_k = log (K - 1 over k) + k log S + (K - 1 - k) log(1 - S)     k = 0 .. K - 1
     dL/dD = -sum_k k dL/dz_k / (1 - S)

   So of two choices the second has the probability S; flips: the first. */

typedef struct carnn__manhattan {
    int flips;
    signed char *sign; /* (B, s) of a - b */
    carnn__mat z;      /* (B, K) */
} carnn__manhattan;

static void carnn__manhattan_plan(carnn__plan *p, carnn__manhattan *m, size_t s, size_t K,
                                  const carnn__texts *t) {
    m->z = carnn__plan_mat(p, t->most_items, K);
    if (!p->arena) return;
    if (!p->work->g) m->z.d = carnn__floats(p->arena, t->most_items, K);
    m->sign = (signed char *)carnn__take(p->arena, t->most_items * s, 1);
}

/* x (S, s): the encodings of texts 2 i and 2 i + 1. */
static void carnn__manhattan_run(const carnn__work *work, carnn__manhattan *m,
                                 const carnn__texts *t, const carnn__mat *x, int backward) {
    size_t s = x->columns, K = m->z.columns, i, j, a, b;
    double scale = 8.0 / (double)s;
    if (!backward) carnn__mat_clear(&m->z, t->count);
    for (i = 0; i < t->count; i++) {
        signed char *sign = m->sign + i * s;
        double D = 0.0, choose = 0.0, dD = 0.0, other;
        a = 2 * i * s;
        b = a + s;
        if (!backward) carnn__signs(work, x->x + a, x->x + b, s, sign);
        for (j = 0; j < s; j++)
            D += scale * (double)sign[j] * ((double)x->x[a + j] - (double)x->x[b + j]);
        other = fmax(-expm1(-D), 1e-7); /* 1 - S */
        for (j = 0; j < K; j++) {
            size_t at = i * K + (m->flips ? K - 1 - j : j);
            double rest = (double)(K - 1 - j);
            if (backward) dD -= (double)j * (double)m->z.d[at] / other;
            else m->z.x[at] = (float)(choose - (double)j * D + rest * log(other));
            choose += log(rest / (double)(j + 1));
        }
        for (j = 0; backward && j < s; j++) {
            x->d[a + j] += (float)(scale * dD * (double)sign[j]);
            x->d[b + j] -= (float)(scale * dD * (double)sign[j]);
        }
    }
}

/* --- weighted sums of the words of each text ----------------------------------------------------
   y_s = sum_r w_r x_r of the texts `from`, from + step, ...; x (R, D)  w (R, 1)  y (S, D or more,
   of which these are the first columns). */

static void carnn__weigh(const carnn__work *work, const carnn__texts *t, size_t from, size_t step,
                         const carnn__mat *x, const carnn__mat *w, const carnn__mat *y,
                         int backward) {
    carnn__engine *e = work->engine;
    size_t D = x->columns, s;
    for (s = from; s < t->texts; s += step) {
        size_t r = t->at[s], n = t->at[s + 1] - r;
        if (backward && n) {
            carnn__matmul(e, CARNN__NT | CARNN__ADD, n, 1, D, x->x + r * D, D, y->d + s * y->columns, D,
                          NULL, w->d + r, 1);
            carnn__matmul(e, CARNN__NN | CARNN__ADD, n, D, 1, w->x + r, 1, y->d + s * y->columns, D, NULL,
                          x->d + r * D, D);
        } else if (!backward) {
            memset(y->x + s * y->columns, 0, D * sizeof(float));
            if (n) carnn__matmul(e, CARNN__NN, 1, D, n, w->x + r, n, x->x + r * D, D, NULL,
                                 y->x + s * y->columns, D);
        }
    }
}

/* --- attentive pooling --------------------------------------------------------------------------
   dos Santos et al. 2016, Eq. 6 to 12. The words q_i (m, D) and a_j (n, D) of the texts of a pair
   weigh each other:

     G = tanh(q U a')      w_q = softmax_i(max_j G_ij)      w_a = softmax_j(max_i G_ij)

   Backward: dw through the softmax to the places of the maxima; dP = dG * (1 - G^2);
   dq += dP a U', dU += q' dP a, da += dP' q U. A pair a thread. */

typedef struct carnn__attentive {
    carnn__linear project; /* q U of all first texts, one after the other (R, D) */
    carnn__mat q, G, w;    /* (R, D); matrices of the pairs; (R, 1) */
    uint32_t *best;        /* (R) where the maximum of each word is in the other text */
    size_t rows, *row_at, *cell_at; /* of q; (B) where a pair begins in q, in G */
    int backward;
    const carnn__work *work; /* of the run at hand, and its texts and words */
    const carnn__texts *t;
    const carnn__mat *x;
} carnn__attentive;

static void carnn__attentive_plan(carnn__plan *p, carnn__attentive *m, const char *name, size_t D,
                                  const carnn__texts *t) {
    size_t R = t->most_rows, B = t->most_items;
    carnn__linear_plan(p, &m->project, name, "weight", R, D, D, 0, CARNN__IDENTITY);
    m->q = carnn__plan_mat(p, R, D);
    m->w = carnn__plan_mat(p, R, 1);
    m->G = carnn__plan_mat(p, p->arena ? carnn__corpus_of(p->work)->most_size[1] : 0, 1);
    if (!p->arena) return;
    m->best = (uint32_t *)carnn__take(p->arena, R, sizeof(uint32_t));
    m->row_at = (size_t *)carnn__take(p->arena, B, sizeof(size_t));
    m->cell_at = (size_t *)carnn__take(p->arena, B, sizeof(size_t));
}

/* The maxima of the rows of G, `step` apart, whose `n` columns are `next` apart. */
static void carnn__attentive_maxima(const carnn__attentive *m, const float *G, size_t row,
                                    size_t rows, size_t step, size_t n, size_t next) {
    size_t i, j;
    for (i = 0; i < rows; i++, row++) {
        uint32_t *best = &m->best[row];
        for (j = *best = 0; j < n && !carnn__net_of(m->work)->holds; j++)
            if (G[i * step + j * next] > G[i * step + *best * next]) *best = (uint32_t)j;
        m->w.x[row] = n ? G[i * step + *best * next] : 0.0f;
    }
}

static void carnn__attentive_pair(void *job, size_t pair, size_t worker) {
    const carnn__attentive *m = (const carnn__attentive *)job;
    carnn__engine e = carnn__engine_of(m->work->engine, worker);
    const size_t *at = m->t->at + 2 * pair;
    size_t D = m->x->columns, rows = at[1] - at[0], n = at[2] - at[1], i, cells = rows * n;
    size_t from = m->row_at[pair] * D, second = at[1] * D;
    float *G = m->G.x + m->cell_at[pair], *dG = m->G.d + (m->G.d ? m->cell_at[pair] : 0);
    if (!m->backward) {
        carnn__matmul(&e, CARNN__NT, rows, n, D, m->project.y.x + from, D, m->x->x + second, D,
                      NULL, G, n);
        e.k->tanh_n(G, G, cells);
        carnn__attentive_maxima(m, G, at[0], rows, n, n, 1);
        carnn__attentive_maxima(m, G, at[1], n, 1, rows, n);
        if (rows) e.k->softmax(m->w.x + at[0], rows);
        if (n) e.k->softmax(m->w.x + at[1], n);
        return;
    }
    if (!cells) return;
    carnn__softmax_back(e.k, m->w.x + at[0], m->w.d + at[0], rows);
    carnn__softmax_back(e.k, m->w.x + at[1], m->w.d + at[1], n);
    memset(dG, 0, cells * sizeof(float));
    for (i = 0; i < rows; i++) dG[i * n + m->best[at[0] + i]] += m->w.d[at[0] + i];
    for (i = 0; i < n; i++) dG[m->best[at[1] + i] * n + i] += m->w.d[at[1] + i];
    for (i = 0; i < cells; i++) dG[i] *= 1.0f - G[i] * G[i];
    carnn__matmul(&e, CARNN__NN | CARNN__ADD, rows, D, n, dG, n, m->x->x + second, D, NULL,
                  m->project.y.d + from, D);
    carnn__matmul(&e, CARNN__TN | CARNN__ADD, n, D, rows, dG, n, m->project.y.x + from, D, NULL,
                  m->x->d + second, D);
}

/* The rows of the first texts of x to q; backward from q to x. */
static void carnn__attentive_rows(const carnn__work *work, carnn__attentive *m,
                                  const carnn__texts *t, const carnn__mat *x, int backward) {
    size_t D = x->columns, b, row = 0, cell = 0;
    for (b = 0; b < t->count; b++) {
        size_t from = t->at[2 * b], n = t->at[2 * b + 1] - from;
        m->row_at[b] = row;
        m->cell_at[b] = cell;
        if (backward) work->engine->k->add(m->q.d + row * D, x->d + from * D, n * D);
        else memcpy(m->q.x + row * D, x->x + from * D, n * D * sizeof(float));
        row += n;
        cell += n * (t->at[2 * b + 2] - t->at[2 * b + 1]);
    }
    m->rows = row;
}

/* x (R, D); the output are the weights m->w. */
static void carnn__attentive_run(const carnn__work *work, carnn__attentive *m,
                                 const carnn__texts *t, const carnn__mat *x, int backward) {
    m->backward = backward;
    m->work = work;
    m->t = t;
    m->x = x;
    if (!backward) {
        carnn__attentive_rows(work, m, t, x, 0);
        carnn__mat_clear(&m->q, m->rows);
        carnn__mat_clear(&m->w, carnn__texts_rows(t));
        carnn__linear_forward(work, &m->project, &m->q, m->rows);
    }
    carnn__parallel(work->engine->pool, t->count, carnn__attentive_pair, m);
    if (!backward) return;
    carnn__linear_backward(work, &m->project, &m->q, m->rows);
    carnn__attentive_rows(work, m, t, x, 1);
}

/* --- similarity of the two texts of a pair ------------------------------------------------------
   Of the rows x, y of v (S, D): the cosine (@@PART), or the Manhattan similarity of Mueller and
   Thyagarajan 2016, S = exp(-|x - y|_1), as log S = -|x - y|_1, so that nothing underflows. */

typedef struct carnn__similarity {
    int manhattan;
    signed char *sign; /* (B, D) of x - y */
    carnn__mat z;      /* (B, 1) */
} carnn__similarity;

static void carnn__similarity_plan(carnn__plan *p, carnn__similarity *m, size_t D,
                                   const carnn__texts *t) {
    m->z = carnn__plan_mat(p, t->most_items, 1);
    if (!p->arena) return;
    if (!p->work->g) m->z.d = carnn__floats(p->arena, t->most_items, 1); /* losses work in it */
    if (m->manhattan) m->sign = (signed char *)carnn__take(p->arena, t->most_items * D, 1);
}

static void carnn__similarity_run(const carnn__work *work, const carnn__similarity *m,
                                  const carnn__texts *t, const carnn__mat *v, int backward) {
    size_t D = v->columns, b, j;
    for (b = 0; b < t->count; b++) {
        size_t x = 2 * b * D, y = x + D;
        if (!m->manhattan && backward)
            carnn__cosine_back(work->engine->k, D, v->x + x, v->x + y, m->z.d[b], v->d + x,
                               v->d + y);
        else if (!m->manhattan) m->z.x[b] = carnn__cosine(work->engine->k, D, v->x + x, v->x + y);
        else if (!backward) {
            carnn__signs(work, v->x + x, v->x + y, D, m->sign + b * D);
            m->z.x[b] = 0.0f;
        }
        for (j = 0; m->manhattan && j < D; j++) {
            float sign = (float)m->sign[b * D + j];
            if (!backward) {
                m->z.x[b] -= sign * (v->x[x + j] - v->x[y + j]);
            } else {
                v->d[x + j] -= sign * m->z.d[b];
                v->d[y + j] += sign * m->z.d[b];
            }
        }
    }
}

/* --- context alignment --------------------------------------------------------------------------
   CA-RNN, Chen et al. 2018. One text of each pair, X, is read by itself and pooled to H_X. The same
   RNN reads the other text, Y, but its state at a word y_j that is aligned with a word x_i is mixed
   with the state of X there, in the same direction (see carnn__state_gate):

     g = s(W_H H_X + W_h k_j + b)      h_j = k_j + g * (h_i^x - k_j)           Eq. 2 and 3

   W_H (h, 2h), W_h (h, h) and b are those of a direction. A word of Y is aligned with the same word
   of X, of several with the one nearest to its own place that no word before it has taken. */

typedef struct carnn__side { /* the texts of one role as sequences */
    carnn__rnn rnn;
    carnn__packed packed;
    size_t *start;                   /* (T + 2) */
    uint32_t *length, *order, *rank; /* (P) of each sequence; order: sequences by rank */
    uint32_t *sequence;              /* (B) of the text of each pair */
    uint32_t *reversed, *index[2];   /* (N) as in carnn__texts */
} carnn__side;

typedef struct carnn__aligned {
    size_t first;            /* the role of X */
    carnn__side side[2];     /* by role */
    uint32_t *row, *with;    /* (R) packed row; the row of the other text, or CARNN__NO_INDEX */
    uint32_t *mark;          /* (R) of a packed row of Y, the row that is aligned */
    carnn__mat s, H;         /* (R, D) states; (B, D) H_X */
    carnn__linear gate[2];   /* W_H H_X + b (B, h), by direction */
    size_t weight[2];        /* W_h */
    carnn__state_gate state[2];
} carnn__aligned;

static void carnn__side_plan(carnn__plan *p, carnn__side *m, carnn__rnn_shape shape, size_t drop,
                             const carnn__texts *t) {
    uint32_t **of_pair[] = {&m->length, &m->order, &m->rank, &m->sequence};
    uint32_t **of_row[] = {&m->reversed, &m->index[0], &m->index[1]};
    m->rnn.drop = drop;
    carnn__rnn_plan(p, &m->rnn, "cell", shape, t->most_inputs, t->most_rows, t->most_items);
    if (!p->arena) return;
    carnn__take_indices(p->arena, of_pair, CARNN__COUNT(of_pair), t->most_items);
    carnn__take_indices(p->arena, of_row, CARNN__COUNT(of_row), t->most_rows);
    m->start = (size_t *)carnn__take(p->arena, carnn__corpus_of(p->work)->most_steps + 2,
                                     sizeof(size_t));
}

static void carnn__gate_plan(carnn__plan *p, carnn__aligned *m, size_t i, size_t h,
                             const carnn__texts *t) {
    static const char *const name[] = {"align.forward", "align.backward"};
    carnn__state_gate *g = &m->state[i];
    uint32_t **of_row[] = {&g->row, &g->other, &g->pair};
    float **of_state[] = {&g->k, &g->g, &g->da, &g->dk};
    size_t R = t->most_rows, j;
    carnn__linear_plan(p, &m->gate[i], name[i], "context", t->most_items, 2 * h, h, 1,
                       CARNN__IDENTITY);
    m->weight[i] = carnn__declare(p->store, name[i], "weight", h, h, 0, CARNN__INIT_GLOROT, 0.0f);
    if (!p->arena) return;
    carnn__take_indices(p->arena, of_row, CARNN__COUNT(of_row), R);
    g->step = (size_t *)carnn__take(p->arena, carnn__corpus_of(p->work)->most_steps + 1,
                                    sizeof(size_t));
    for (j = 0; j < (p->work->g ? CARNN__COUNT(of_state) : 2u); j++)
        *of_state[j] = carnn__floats(p->arena, R, h);
}

/* `first` is set before. drop: a stream for each layer of either side. */
static void carnn__aligned_plan(carnn__plan *p, carnn__aligned *m, carnn__rnn_shape shape,
                                size_t drop, const carnn__texts *t) {
    uint32_t **of_row[] = {&m->row, &m->with, &m->mark};
    size_t number = p->store->count, end, i;
    carnn__side_plan(p, &m->side[0], shape, drop, t);
    end = p->store->count;
    if (p->arena) {
        p->store->count = number; /* the same weights again */
        carnn__side_plan(p, &m->side[1], shape, drop + CARNN__LAYERS_MAX, t);
        p->store->count = end;
        carnn__take_indices(p->arena, of_row, CARNN__COUNT(of_row), t->most_rows);
    }
    m->s = carnn__plan_mat(p, t->most_rows, 2 * shape.h);
    m->H = carnn__plan_mat(p, t->most_items, 2 * shape.h);
    for (i = 0; i < 2; i++) carnn__gate_plan(p, m, i, shape.h, t);
}

/* Packs the texts of a role; shares: those of consecutive pairs that are equal are one sequence. */
static void carnn__side_pack(carnn__side *m, const carnn__texts *t, size_t role, int shares,
                             uint32_t *row) {
    size_t P = 0, i, r, b;
    for (i = role; i < t->texts; i += 2) {
        if (!shares || !P || t->list[i] != t->list[i - 2])
            m->length[P++] = (uint32_t)(t->at[i + 1] - t->at[i]);
        m->sequence[i / 2] = (uint32_t)P - 1;
    }
    carnn__pack_sequences(&m->packed, m->length, P, m->order, m->start);
    carnn__reverse_index(&m->packed, m->reversed);
    for (b = 0; b < P; b++) m->rank[m->order[b]] = (uint32_t)b;
    for (i = role; i < t->texts; i += 2)
        for (r = t->at[i]; r < t->at[i + 1]; r++) {
            row[r] = (uint32_t)(m->start[r - t->at[i]] + m->rank[m->sequence[i / 2]]);
            m->index[0][row[r]] = m->index[1][m->reversed[row[r]]] = t->ids[r];
        }
}

/* Reads the texts of a role, x (U, in), to their rows of m->s; backward the gradient from there. */
static void carnn__side_run(const carnn__work *work, carnn__aligned *m, const carnn__texts *t,
                            const carnn__mat *x, size_t role, uint64_t key, int backward) {
    carnn__side *side = &m->side[role];
    const carnn__mat *y = carnn__rnn_output(&side->rnn);
    carnn__rnn_input in = {&side->packed, {side->index[0], side->index[1]}, side->reversed, x,
                           t->inputs, NULL, NULL, 0, NULL};
    size_t D = y->columns, i, r;
    if (!backward) carnn__rnn_forward(work, &side->rnn, in, key);
    for (i = role; i < t->texts; i += 2)
        for (r = t->at[i]; r < t->at[i + 1]; r++)
            if (backward) work->engine->k->add(m->s.d + r * D, y->d + m->row[r] * D, D);
            else memcpy(m->s.x + r * D, y->x + m->row[r] * D, D * sizeof(float));
    if (backward) carnn__rnn_backward(work, &side->rnn, in, key);
}

/* Aligns the words of each pair; same (V): equal for words that count as the same. */
static void carnn__aligned_find(const carnn__aligned *m, const carnn__texts *t,
                                const uint32_t *same) {
    size_t b, i, j;
    for (i = 0; i < carnn__texts_rows(t); i++) m->with[i] = CARNN__NO_INDEX;
    for (b = 0; b < t->count; b++) {
        size_t X = 2 * b + m->first, Y = X ^ 1, from = t->at[X], to = t->at[Y];
        for (j = to; j < t->at[Y + 1]; j++) {
            uint32_t word = same[t->input[t->ids[j]] / 2], best = CARNN__NO_INDEX;
            size_t place = from + j - to, least = SIZE_MAX;
            for (i = from; i < t->at[X + 1]; i++) {
                size_t steps = i > place ? i - place : place - i;
                if (m->with[i] != CARNN__NO_INDEX || steps >= least) continue;
                if (same[t->input[t->ids[i]] / 2] != word) continue;
                best = (uint32_t)i;
                least = steps;
            }
            m->with[j] = best;
            if (best != CARNN__NO_INDEX) m->with[best] = (uint32_t)j;
        }
    }
}

/* The aligned rows of Y in the order in which a direction packs them. */
static void carnn__aligned_list(const carnn__work *work, carnn__aligned *m, const carnn__texts *t,
                                size_t direction) {
    carnn__side *side = &m->side[m->first ^ 1];
    carnn__state_gate *g = &m->state[direction];
    size_t h = m->gate[direction].y.columns, step, row, s, r;
    for (row = 0; row < side->packed.rows; row++) m->mark[row] = CARNN__NO_INDEX;
    for (s = m->first ^ 1; s < t->texts; s += 2)
        for (r = t->at[s]; r < t->at[s + 1]; r++)
            m->mark[direction ? side->reversed[m->row[r]] : m->row[r]] = m->with[r];
    for (g->count = step = 0; step < side->packed.steps; step++) {
        g->step[step] = g->count;
        for (row = side->start[step]; row < side->start[step + 1]; row++) {
            if (m->mark[row] == CARNN__NO_INDEX) continue;
            g->row[g->count] = (uint32_t)row;
            g->other[g->count] = m->mark[row];
            g->pair[g->count++] = side->order[row - side->start[step]];
        }
    }
    g->step[step] = g->count;
    g->a = m->gate[direction].y.x;
    g->w = carnn__weight(work, m->weight[direction]);
    g->stride = 2 * h;
    g->x = m->s.x + direction * h;
    g->dx = work->g ? m->s.d + direction * h : NULL;
    side->rnn.layer[side->rnn.layers - 1].base[0].run[direction].gate = g;
}

/* x (U, in): inputs. pool: of one kind; the output are m->s and pool->y. */
static void carnn__aligned_forward(const carnn__work *work, carnn__aligned *m,
                                   const carnn__texts *t, const carnn__mat *x,
                                   carnn__pool_part *pool, const uint32_t *same, uint64_t key) {
    size_t D = m->s.columns, first = m->first, s, i;
    for (i = 0; i < 2; i++) carnn__side_pack(&m->side[i], t, i, i == first, m->row);
    carnn__mat_clear(&m->s, carnn__texts_rows(t));
    carnn__mat_clear(&m->H, t->count);
    carnn__mat_clear(&pool->y, t->texts);
    carnn__side_run(work, m, t, x, first, key, 0);
    for (s = first; s < t->texts; s += 2) {
        carnn__pool_text(work, pool, t, &m->s, s, 0, 0);
        memcpy(m->H.x + s / 2 * D, pool->y.x + s * D, D * sizeof(float));
    }
    carnn__aligned_find(m, t, same);
    for (i = 0; i < 2; i++) {
        carnn__linear_forward(work, &m->gate[i], &m->H, t->count);
        carnn__aligned_list(work, m, t, i);
    }
    carnn__side_run(work, m, t, x, first ^ 1, key, 0);
    for (s = first ^ 1; s < t->texts; s += 2) carnn__pool_text(work, pool, t, &m->s, s, 0, 0);
}

static void carnn__aligned_backward(const carnn__work *work, carnn__aligned *m,
                                    const carnn__texts *t, const carnn__mat *x,
                                    carnn__pool_part *pool, uint64_t key) {
    size_t D = m->s.columns, h = D / 2, first = m->first, s, i, j;
    for (s = first ^ 1; s < t->texts; s += 2) carnn__pool_text(work, pool, t, &m->s, s, 0, 1);
    carnn__side_run(work, m, t, x, first ^ 1, key, 1);
    for (i = 0; i < 2; i++) {
        const carnn__state_gate *g = &m->state[i];
        for (j = 0; j < g->count; j++)
            work->engine->k->add(g->da + j * h, m->gate[i].y.d + g->pair[j] * h, h);
        carnn__matmul(work->engine, CARNN__TN | CARNN__ADD, h, h, g->count, g->da, h, g->k, h, NULL,
                      carnn__gradient(work, m->weight[i]), h);
        carnn__linear_backward(work, &m->gate[i], &m->H, t->count);
    }
    for (s = first; s < t->texts; s += 2) {
        work->engine->k->add(m->H.d + s / 2 * D, pool->y.d + s * D, D);
        carnn__pool_text(work, pool, t, &m->s, s, 0, 1);
    }
    carnn__side_run(work, m, t, x, first, key, 1);
}

/* --- words that both texts of a pair have -------------------------------------------------------
   Two more inputs for every word: is it in the other text?, and that times its idf; and two for
   every pair: the share of the first text's words that are in the second, by number and by idf. */

#define CARNN__OVERLAPS 2

typedef struct carnn__overlap {
    size_t idf;     /* parameter (V), not trained */
    uint32_t *stem; /* (V) equal for words that count as one */
} carnn__overlap;

/* Comes after all that is trained. Words count as one if their first `most` letters are the same
   (lives, living); those below `unknown`, which stand for unknown words, if they are the same. */
static void carnn__overlap_plan(carnn__plan *p, carnn__overlap *m, size_t unknown, double most) {
    const carnn__names *words = &p->model->words;
    size_t i, w;
    m->idf = carnn__declare(p->store, "", "word.idf", 1, words->count, 0, CARNN__INIT_ZERO, 0.0f);
    if (p->arena) m->stem = (uint32_t *)carnn__take(p->arena, words->count, sizeof(uint32_t));
    for (w = 0; m->stem && w < words->count; w++) {
        const char *name = carnn__names_get(words, w);
        size_t length = carnn__names_length(words, w);
        double letters = 0.0;
        for (i = 0; i < length && w >= unknown; i++) {
            letters += ((unsigned char)name[i] & 0xC0) != 0x80; /* UTF-8: a letter begins */
            if (letters > most) break;
        }
        m->stem[w] = (uint32_t)carnn__hash(name, w < unknown ? length : i, 1);
    }
}

/* idf of a word that occurs k times among K words of training data: log(K / k) / log K. */
static void carnn__overlap_init(carnn_model *model, const carnn_dataset *data, size_t unknown,
                                uint32_t (*number)(const carnn_model *model, carnn__span word)) {
    float *idf = carnn__named(&model->params, "word.idf");
    size_t i, V = model->words.count;
    double all = 0.0;
    for (i = 0; i < data->text_count; i++) {
        carnn__span text = carnn__text(data, i);
        carnn__words w = carnn__words_of(CARNN__TOKENS, text.at, text.length);
        for (; carnn__next_word(&w); all += 1.0) idf[number(model, w.word)] += 1.0f;
    }
    for (i = 0; i < V; i++)
        idf[i] = i < unknown || idf[i] < 1.0f || all < 2.0
                     ? 1.0f : (float)(1.0 - log((double)idf[i]) / log(all));
}

/* Is the word, or one that counts as the same, in the other text? */
static unsigned carnn__overlap_flag(const carnn__texts *t, const carnn__overlap *m, size_t member,
                                    uint32_t word) {
    const carnn__corpus *c = carnn__corpus_of(t->work);
    size_t other = t->work->data->members[member].role ? member - 1 : member + 1;
    size_t list = c->list[other], i, end = c->tokens.at[list + 1];
    for (i = c->tokens.at[list]; i < end && m->stem[c->tokens.ids[i]] != m->stem[word];) i++;
    return i < end;
}

/* The last columns of the inputs x. */
static void carnn__overlap_inputs(const carnn__work *work, const carnn__overlap *m,
                                  const carnn__texts *t, const carnn__mat *x) {
    size_t i;
    for (i = 0; i < t->inputs; i++) {
        float *to = x->x + (i + 1) * x->columns - CARNN__OVERLAPS, both = (float)(t->input[i] & 1);
        to[0] = both;
        to[1] = both * carnn__weight(work, m->idf)[t->input[i] / 2];
    }
}

/* Those of a pair. */
static void carnn__overlap_pair(const carnn__work *work, const carnn__overlap *m,
                                const carnn__texts *t, size_t pair, float *to) {
    const float *idf = carnn__weight(work, m->idf);
    float sum = 0.0f, found = 0.0f, both = 0.0f;
    size_t i, from = t->at[2 * pair], end = t->at[2 * pair + 1];
    for (i = from; i < end; i++) {
        uint32_t input = t->input[t->ids[i]];
        sum += idf[input / 2];
        found += input & 1 ? idf[input / 2] : 0.0f;
        both += (float)(input & 1);
    }
    to[0] = end > from ? both / (float)(end - from) : 0.0f;
    to[1] = sum > 0.0f ? found / sum : 0.0f;
}

/* --- sequences of words, row by row -------------------------------------------------------------
   Packed sequences of any tokens, x_r = E w_r, each row with a dropout mask of its own. */

typedef struct carnn__sequences {
    size_t table, drop;              /* parameter of E; stream of dropout */
    carnn__packed packed;
    size_t *start;                   /* (steps + 2) */
    uint32_t *length, *order, *rank; /* (P) of each sequence; order: sequences by rank */
    uint32_t *ids;                   /* (N) */
    carnn__mat x;                    /* (N, e) */
} carnn__sequences;

static void carnn__sequences_plan(carnn__plan *p, carnn__sequences *m, size_t table, size_t drop,
                                  size_t P, size_t N, size_t steps) {
    uint32_t **of_sequence[] = {&m->length, &m->order, &m->rank};
    m->table = table;
    m->drop = drop;
    m->x = carnn__plan_mat(p, N, (size_t)p->model->desc.embedding);
    if (!p->arena) return;
    m->start = (size_t *)carnn__take(p->arena, steps + 2, sizeof(size_t));
    carnn__take_indices(p->arena, of_sequence, CARNN__COUNT(of_sequence), P);
    m->ids = (uint32_t *)carnn__take(p->arena, N, sizeof(uint32_t));
}

/* Packs `count` sequences whose lengths are set. */
static void carnn__sequences_pack(carnn__sequences *m, size_t count) {
    size_t b;
    carnn__pack_sequences(&m->packed, m->length, count, m->order, m->start);
    for (b = 0; b < count; b++) m->rank[m->order[b]] = (uint32_t)b;
}

/* Puts the tokens of sequence i into its rows of `rows` (N). */
static void carnn__sequences_put(const carnn__sequences *m, size_t i, const uint32_t *tokens,
                                 uint32_t *rows) {
    size_t t;
    for (t = 0; t < m->length[i]; t++) rows[m->start[t] + m->rank[i]] = tokens[t];
}

/* x (N, in) row by row, contexts c (P, d) or NULL. */
static carnn__rnn_input carnn__sequences_input(const carnn__sequences *m, const carnn__mat *x,
                                               const carnn__mat *c) {
    carnn__rnn_input in = {&m->packed, {NULL, NULL}, NULL, x, m->packed.rows, c, NULL, 0, NULL};
    return in;
}

static void carnn__sequences_forward(const carnn__work *work, carnn__sequences *m, uint64_t key) {
    size_t N = m->packed.rows, e = m->x.columns;
    carnn__gather_rows(m->x.x, carnn__weight(work, m->table), m->ids, N, e);
    carnn__drop(work, m->x.x, N * e, key, m->drop);
    carnn__mat_clear(&m->x, N);
}

static void carnn__sequences_backward(const carnn__work *work, carnn__sequences *m, uint64_t key) {
    size_t N = m->packed.rows, e = m->x.columns;
    carnn__drop(work, m->x.d, N * e, key, m->drop);
    carnn__scatter_rows(work->engine, carnn__gradient(work, m->table), m->x.d, m->ids, N, e);
}

/* [x_r; c_b] of every row; b is the rank of its sequence. Backward: dx_r and dc_b are added to. */
static void carnn__sequences_join(const carnn__work *work, const carnn__sequences *m,
                                  const carnn__mat *c, const carnn__mat *y, int backward) {
    const carnn__packed *p = &m->packed;
    size_t e = m->x.columns, h = c->columns, t, row;
    if (!backward) carnn__mat_clear(y, p->rows);
    for (t = 0; t < p->steps; t++)
        for (row = p->start[t]; row < p->start[t + 1]; row++) {
            size_t at = row * (e + h), b = row - p->start[t];
            if (backward) {
                work->engine->k->add(y->d + at, m->x.d + row * e, e);
                work->engine->k->add(y->d + at + e, c->d + b * h, h);
            } else {
                memcpy(y->x + at, m->x.x + row * e, e * sizeof(float));
                memcpy(y->x + at + e, c->x + b * h, h * sizeof(float));
            }
        }
}

/* --- last states --------------------------------------------------------------------------------
   c (B, h): the row of rank b of the sequences `to` is the last state of the same sequence of
   `from`, or the parameter `learned` where that has no rows, or from is NULL. */

static void carnn__last_states(const carnn__work *work, const carnn__sequences *from,
                               const carnn__mat *states, size_t learned,
                               const carnn__sequences *to, const carnn__mat *c, int backward) {
    size_t h = c->columns, b;
    for (b = 0; b < to->packed.sequences; b++) {
        size_t i = to->order[b], at;
        int has = from && from->length[i];
        at = has ? (from->start[from->length[i] - 1] + from->rank[i]) * h : 0;
        if (backward)
            work->engine->k->add(c->d + b * h,
                                 has ? states->d + at : carnn__gradient(work, learned), h);
        else
            memcpy(c->x + b * h, has ? states->x + at : carnn__weight(work, learned),
                   h * sizeof(float));
    }
    if (!backward) carnn__mat_clear(c, to->packed.sequences);
}

/* --- softmax over a vocabulary ------------------------------------------------------------------
   The layer that predicts words, and its loss. The logits (N, V) are never held whole: those of a
   block of rows become losses, gradients and products before the next block begins. So forward and
   backward are one loop:

     z = h W^T + b     dz = scale (softmax(z) - onehot)     dh = dz W    dW += dz^T h    db += dz */

#define CARNN__VOCABULARY_LOGITS ((size_t)1 << 22) /* of a block: what fits the cache */
#define CARNN__VOCABULARY_ROWS 16 /* rows of a block at least; in a session, at most */

typedef struct carnn__word_softmax {
    size_t weight, bias, V, block;
    float *z, *loss;            /* (block, V), (N) */
    uint32_t *target;           /* (N) */
    float *forward, *backward;  /* W packed for the two products; NULL: it is read as it is */
} carnn__word_softmax;

/* tied: the parameter that is W, too, or SIZE_MAX. A session does not pack W for its few rows. */
static void carnn__word_softmax_plan(carnn__plan *p, carnn__word_softmax *m, size_t tied, size_t N,
                                     size_t h, int session) {
    m->V = p->model->words.count;
    m->weight = tied;
    if (tied == SIZE_MAX)
        m->weight = carnn__declare(p->store, "output", "weight", m->V, h, 0, CARNN__INIT_GLOROT,
                                   0.0f);
    m->bias = carnn__declare(p->store, "output", "bias", 1, m->V, 1, CARNN__INIT_ZERO, 0.0f);
    if (!p->arena) return;
    m->block = session ? 0 : CARNN__VOCABULARY_LOGITS / m->V;
    m->block = carnn__min(N, carnn__max(CARNN__VOCABULARY_ROWS, m->block));
    m->z = carnn__floats(p->arena, m->block, m->V);
    m->loss = carnn__floats(p->arena, 1, N);
    m->target = (uint32_t *)carnn__take(p->arena, N, sizeof(uint32_t));
    if (!session) m->forward = carnn__floats(p->arena, 1, carnn__packed_size(m->V, h));
    if (p->work->g) m->backward = carnn__floats(p->arena, 1, carnn__packed_size(h, m->V));
}

/* Returns z of rows [from, from + rows) of h (N, h). */
static float *carnn__word_softmax_logits(const carnn__work *work, carnn__word_softmax *m,
                                         const carnn__mat *h, size_t from, size_t rows) {
    size_t D = h->columns;
    const float *x = h->x + from * D, *bias = carnn__weight(work, m->bias);
    const float *w = m->forward ? m->forward : carnn__weight(work, m->weight);
    carnn__matmul(work->engine, m->forward ? CARNN__PACKED : CARNN__NT, rows, m->V, D, x, D, w, D,
                  bias, m->z, m->V);
    return m->z;
}

/* The losses of N rows; in training their gradients, times `scale`, which replace h->d. */
static void carnn__word_softmax_run(const carnn__work *work, carnn__word_softmax *m,
                                    const carnn__mat *h, size_t N, float scale) {
    carnn__engine *e = work->engine;
    size_t D = h->columns, V = m->V, from, rows;
    const float *w = carnn__weight(work, m->weight);
    if (m->forward) carnn__pack(e, CARNN__NT, V, D, w, D, m->forward);
    if (work->g) carnn__pack(e, CARNN__NN, D, V, w, D, m->backward);
    for (from = 0; from < N; from += rows) {
        rows = carnn__min(m->block, N - from);
        carnn__word_softmax_logits(work, m, h, from, rows);
        carnn__losses(work, rows, V, m->z, m->target + from, scale, work->smoothing,
                      m->loss + from);
        if (!work->g) continue;
        carnn__matmul(e, CARNN__PACKED, rows, D, V, m->z, V, m->backward, 0, NULL, h->d + from * D,
                      D);
        carnn__matmul(e, CARNN__TN | CARNN__ADD, V, D, rows, m->z, V, h->x + from * D, D, NULL,
                      carnn__gradient(work, m->weight), D);
        carnn__column_sums(e, rows, V, m->z, V, carnn__gradient(work, m->bias));
    }
}

/* --- the output of a head: logits, for the loss, votes and predictions ----------------------- */

struct carnn__logits {
    carnn__output_kind kind;
    const carnn__mat *z;    /* (count, choices); a score has one column */
    size_t count;           /* decisions: one for each item, or for each word, ... */
    const size_t *of_item;  /* (B + 1) the first decision of each item; NULL: item i has number i */
    const uint32_t *item;   /* (B) in the data set */
    size_t items;           /* B */
    const uint32_t *target; /* (count) the right choice, or CARNN__NO_INDEX: none is known */
};

static size_t carnn__first_decision(const carnn__logits *o, size_t b) {
    return o->of_item ? o->of_item[b] : b;
}

/* Softmax cross entropy (@@PART) of the *known rows of z that have a target: returns the sum; z->d
   becomes the gradient of the mean, times `scale`. */
static double carnn__softmax_loss(const carnn__work *work, const carnn__mat *z, size_t rows,
                                  const uint32_t *target, double scale, double smoothing,
                                  size_t *known) {
    size_t i, n = z->columns;
    double sum = 0.0;
    float loss;
    for (*known = i = 0; i < rows; i++) *known += target[i] != CARNN__NO_INDEX;
    memcpy(z->d, z->x, rows * n * sizeof(float));
    scale /= (double)carnn__max(*known, 1);
    for (i = 0; i < rows; i++) {
        carnn__losses(work, 1, n, z->d + i * n, target + i, (float)scale, smoothing, &loss);
        sum += (double)loss;
    }
    return sum;
}

/* --- losses of scores z (B, 1) ------------------------------------------------------------------
   They return the sum; z->d becomes the gradient of the mean. */

static double carnn__right(const carnn__work *work, const carnn__texts *t, size_t b) {
    return work->data->items[t->item[b]].value > 0.0f ? 1.0 : 0.0;
}

/* Cross entropy of sigmoid(z), in which all right items and all wrong ones weigh the same; weight
   (2) is filled at the first call. */
static double carnn__pair_loss(const carnn__work *work, const carnn__texts *t, const carnn__mat *z,
                               float weight[2]) {
    double sum = 0.0, smoothing = work->g ? work->smoothing : 0.0, all, right = 0.0;
    size_t i;
    if (weight[0] <= 0.0f) {
        all = (double)work->data->item_count;
        for (i = 0; i < work->data->item_count; i++) right += work->data->items[i].value > 0.0f;
        if (right < 1.0 || right >= all) right = 0.5 * all; /* of one kind: weights of 1 */
        weight[0] = (float)(0.5 * all / (all - right));
        weight[1] = (float)(0.5 * all / right);
    }
    for (i = 0; i < t->count; i++) {
        double label = carnn__right(work, t, i), x = (double)z->x[i];
        double y = label * (1.0 - smoothing) + 0.5 * smoothing, w = (double)weight[label > 0.5];
        sum += w * (fmax(x, 0.0) - x * y + log1p(exp(-fabs(x))));
        work->engine->k->sigmoid_n(z->x + i, z->d + i, 1);
        z->d[i] = (float)(w * ((double)z->d[i] - y) / (double)t->count);
    }
    return sum;
}

/* Cross entropy where z is the logarithm of the probability S that an item is right:
   -y z - (1 - y) log(1 - S), whose derivative is -y + (1 - y) S / (1 - S). */
static double carnn__log_loss(const carnn__work *work, const carnn__texts *t, const carnn__mat *z) {
    const double least = 1e-7; /* of 1 - S, which is 0 where two texts are the same */
    double sum = 0.0, smoothing = work->g ? work->smoothing : 0.0;
    size_t i;
    for (i = 0; i < t->count; i++) {
        double y = carnn__right(work, t, i) * (1.0 - smoothing) + 0.5 * smoothing;
        double x = (double)z->x[i], other = fmax(-expm1(x), least);
        sum -= y * x + (1.0 - y) * log(other);
        z->d[i] = (float)((other > least ? (1.0 - y) * exp(x) / other : 0.0) - y) /
                  (float)t->count;
    }
    return sum;
}

/* Pairwise hinge of right items p against wrong ones n of their piece, of more than six so many
   drawn by the key: the mean over n of max(0, margin - z_p + z_n), or the largest of them.
   *counted: adds the number of these p. */

#define CARNN__HINGE_MOST 6
#define CARNN__HINGE_MARGIN 0.1

typedef struct carnn__hinge {
    int hardest;
    uint64_t key;
    unsigned char *on; /* (B, most) which terms are above 0, and are not outdone */
    uint32_t *wrong;   /* (B) */
} carnn__hinge;

static void carnn__hinge_plan(carnn__plan *p, carnn__hinge *m, size_t B) {
    if (!p->arena) return;
    m->on = (unsigned char *)carnn__take(p->arena, B * CARNN__HINGE_MOST, 1);
    m->wrong = (uint32_t *)carnn__take(p->arena, B, sizeof(uint32_t));
}

/* The terms of item p against one of the n in m->wrong each; adds their gradients. */
static double carnn__hinge_item(const carnn__work *work, const carnn__hinge *m, const carnn__mat *z,
                                size_t p, size_t n) {
    size_t most = carnn__min(n, CARNN__HINGE_MOST), i, best = 0, who[CARNN__HINGE_MOST];
    double term[CARNN__HINGE_MOST], sum = 0.0, share = m->hardest ? 1.0 : 1.0 / (double)most;
    unsigned char *on = m->on + p * CARNN__HINGE_MOST;
    for (i = 0; i < most; i++) {
        uint64_t drawn = n > most ? carnn__random(m->key, p * CARNN__HINGE_MOST + i) % n : i;
        who[i] = m->wrong[drawn];
        term[i] = CARNN__HINGE_MARGIN - (double)z->x[p] + (double)z->x[who[i]];
        if (term[i] > term[best]) best = i;
    }
    for (i = 0; i < most; i++) {
        if (!carnn__net_of(work)->holds) on[i] = term[i] > 0.0 && (!m->hardest || i == best);
        if (!on[i]) continue;
        sum += share * term[i];
        z->d[p] -= (float)share;
        z->d[who[i]] += (float)share;
    }
    return sum;
}

static double carnn__hinge_loss(const carnn__work *work, const carnn__hinge *m,
                                const carnn__texts *t, const carnn__mat *z, double *counted) {
    size_t from, end, i, n, right = 0;
    double sum = 0.0;
    memset(z->d, 0, t->count * sizeof(float));
    for (from = 0; from < t->count; from = end) {
        for (n = 0, end = from; end < t->count && t->piece[end] == t->piece[from]; end++)
            if (carnn__right(work, t, end) < 0.5) m->wrong[n++] = (uint32_t)end;
        for (i = from; n && i < end; i++)
            if (carnn__right(work, t, i) > 0.5) {
                sum += carnn__hinge_item(work, m, z, i, n);
                right++;
            }
    }
    if (right) work->engine->k->scale(z->d, 1.0f / (float)right, t->count);
    *counted += (double)right;
    return sum;
}

/* The loss of logits of choices: softmax cross entropy; sum[0] counts what is right. */
static double carnn__choices_loss(carnn__work *work, carnn__tally *tally) {
    carnn__logits o = work->model->task->output(work);
    size_t n = o.z->columns, known, b, i;
    double sum = carnn__softmax_loss(work, o.z, o.count, o.target, 1.0, work->smoothing, &known);
    for (b = 0; b < o.items; b++) {
        size_t first = carnn__first_decision(&o, b), end = carnn__first_decision(&o, b + 1);
        double right = 0.0;
        for (i = first; i < end; i++)
            right += work->engine->k->argmax(o.z->x + i * n, n) == o.target[i];
        tally->sum[0] += right;
        if (end > first) carnn__tell_part(work, right, (double)(end - first));
    }
    tally->examples += carnn__first_decision(&o, o.items);
    return sum;
}

static double carnn__net_loss(carnn__work *work, carnn__tally *tally) {
    const carnn__task *task = work->model->task;
    return (task->loss ? task->loss : carnn__choices_loss)(work, tally);
}

/* --- ranking by score ---------------------------------------------------------------------------
   A heap of numbers, that of the highest score on top, of equal ones the lowest number. */

static int carnn__heap_before(const float *score, size_t a, size_t b) {
    return score[a] > score[b] || (!(score[a] < score[b]) && a < b);
}

/* Lets number i sink. */
static void carnn__heap_sink(const float *score, uint32_t *heap, size_t i, size_t n) {
    uint32_t number = heap[i];
    size_t child;
    for (; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && carnn__heap_before(score, heap[child + 1], heap[child])) child++;
        if (!carnn__heap_before(score, heap[child], number)) break;
        heap[i] = heap[child];
    }
    heap[i] = number;
}

/* A heap of the numbers 0 .. n - 1. */
static void carnn__heap_make(const float *score, uint32_t *heap, size_t n) {
    size_t i;
    for (i = 0; i < n; i++) heap[i] = (uint32_t)i;
    for (i = n / 2; i-- > 0;) carnn__heap_sink(score, heap, i, n);
}

/* Takes the top off a heap of n and puts it behind the n - 1 that are left. */
static uint32_t carnn__heap_pop(const float *score, uint32_t *heap, size_t n) {
    uint32_t top = heap[0];
    heap[0] = heap[n - 1];
    heap[n - 1] = top;
    carnn__heap_sink(score, heap, 0, n - 1);
    return top;
}

/* --- ranks: mean average precision and mean reciprocal rank -------------------------------------
   Average precision AP is the mean over a group's right items of (right ones at or above it) / its
   rank; RR is one over the rank of the first right one. Of equal scores the wrong ones rank first.
   A group without a right item does not count. */

/* Sums of a tally; the last one counts losses of pieces, 0 where items have their own. */
enum { CARNN__RANKS_AP, CARNN__RANKS_RR, CARNN__RANKS_GROUPS, CARNN__RANKS_LOSSES };

typedef struct carnn__ranks {
    float *score[2];  /* (items) of this model, of a vote that it leads */
    float *moved;     /* (items) scratch */
    uint32_t *ranked; /* (items) scratch */
    uint32_t *first;  /* (items) first item of each one's group */
    double learnt;    /* groups with a loss in the step at hand, 0: it is one batch */
} carnn__ranks;

static void carnn__ranks_plan(carnn__plan *p, carnn__ranks *m) {
    const carnn__item *items;
    size_t i, n;
    if (!p->arena) return;
    items = p->work->data->items;
    n = p->work->data->item_count;
    for (i = 0; i < 2; i++) m->score[i] = carnn__floats(p->arena, 1, n);
    m->moved = carnn__floats(p->arena, 1, n);
    m->ranked = (uint32_t *)carnn__take(p->arena, n, sizeof(uint32_t));
    m->first = (uint32_t *)carnn__take(p->arena, n, sizeof(uint32_t));
    for (i = 0; m->first && i < n; i++)
        m->first[i] = i && items[i - 1].group == items[i].group ? m->first[i - 1] : (uint32_t)i;
}

/* Adds the ranking of n items to the tally. Wrong ones are moved before the right ones, so that of
   equal scores theirs are taken first. */
static void carnn__ranks_group(carnn__work *work, carnn__ranks *m, const float *score,
                               const carnn__item *items, size_t n, carnn__tally *tally) {
    double precision = 0.0, reciprocal = 0.0, right = 0.0;
    size_t i, wrong = 0, at;
    for (i = 0; i < n; i++)
        if (items[i].value <= 0.0f) m->moved[wrong++] = score[i];
    for (at = wrong, i = 0; i < n; i++)
        if (items[i].value > 0.0f) m->moved[at++] = score[i];
    carnn__heap_make(m->moved, m->ranked, n);
    for (i = 0; i < n; i++) {
        if (carnn__heap_pop(m->moved, m->ranked, n - i) < wrong) continue;
        right += 1.0;
        precision += right / (double)(i + 1);
        if (right < 1.5) reciprocal = 1.0 / (double)(i + 1);
    }
    if (right < 0.5) return;
    tally->sum[CARNN__RANKS_AP] += precision / right;
    tally->sum[CARNN__RANKS_RR] += reciprocal;
    tally->sum[CARNN__RANKS_GROUPS] += 1.0;
    carnn__tell_part(work, precision / right, 1.0);
}

/* The scores z (B) of a batch. A group is ranked after its last piece; in training each piece by
   itself, as a batch may be the first after a stop. */
static void carnn__ranks_count(carnn__work *work, carnn__ranks *m, const carnn__texts *t,
                               const float *z, carnn__tally *tally) {
    const carnn__item *items = work->data->items;
    float *score = m->score[work->as_vote];
    size_t b;
    for (b = 0; b < t->count; b++) {
        size_t i = t->item[b], end = i + 1, first = m->first[i];
        score[i] = z[b];
        if (work->asked && work->asked->ranked) {
            carnn_ranked told = {work->number, items[i].group, i - first, items[i].value > 0.0f,
                                 (double)z[b]};
            work->asked->ranked(&told, work->asked->user);
        }
        if (b + 1 < t->count && t->piece[b + 1] == t->piece[b]) continue; /* inside a piece */
        if (work->g) first = carnn__corpus_of(work)->pieces[t->piece[b]].first;
        if (work->g || end == work->data->item_count || items[end].group != items[i].group)
            carnn__ranks_group(work, m, score + first, items + first, end - first, tally);
    }
    tally->examples += t->count;
}

/* The right items of the group that begins with item `first`; *end: of its items. */
static double carnn__ranks_right(const carnn__work *work, const carnn__ranks *m, size_t first,
                                 size_t *end) {
    double right = 0.0;
    for (*end = first; *end < work->data->item_count && m->first[*end] == first; ++*end)
        right += work->data->items[*end].value > 0.0f;
    return right;
}

/* Has a group with so many right items among n a rank to learn? */
static int carnn__ranks_learns(double right, size_t n) {
    return right > 0.0 && right < (double)n;
}

/* Keeps the scores of a batch, whose groups go on in other batches of the step. */
static void carnn__ranks_keep(const carnn__work *work, carnn__ranks *m, const carnn__texts *t,
                              const float *z) {
    size_t b, end, count = work->data->item_count;
    for (b = 0; b < t->count; b++) {
        size_t item = t->item[b], first = m->first[item];
        double right;
        m->score[0][item] = z[b];
        if (item + 1 < count && m->first[item + 1] == first) continue; /* inside a group */
        right = carnn__ranks_right(work, m, first, &end);
        m->learnt += carnn__ranks_learns(right, end - first);
    }
}

/* Cross entropy of the softmax over each group with right and wrong items; the right ones share the
   target. A group may be in several batches: in training each adds the loss of its own items, of
   a softmax over all that the step has kept; else the last one adds that of all. *counted: adds
   the number of groups. */
static double carnn__rank_loss(const carnn__work *work, const carnn__ranks *m,
                               const carnn__texts *t, const carnn__mat *z, double *counted) {
    const float *score = m->score[work->as_vote];
    double sum = 0.0, smoothing = work->g ? work->smoothing : 0.0, learnt = 0.0;
    size_t from, to, i, end;
    memset(z->d, 0, t->count * sizeof(float));
    for (from = 0; from < t->count; from = to) {
        size_t first = m->first[t->item[from]], n;
        double right = carnn__ranks_right(work, m, first, &end), lse;
        for (to = from; to < t->count && m->first[t->item[to]] == first;) to++;
        n = end - first;
        i = work->g ? t->item[from] : first;
        if (t->item[to - 1] + 1 < end && !work->g) continue;
        if (!carnn__ranks_learns(right, n)) continue;
        learnt += t->item[to - 1] + 1 == end;
        memcpy(m->moved, score + first, n * sizeof(float));
        lse = (double)work->engine->k->softmax(m->moved, n);
        for (; i <= t->item[to - 1]; i++) {
            double y = work->data->items[i].value > 0.0f ? 1.0 / right : 0.0;
            y = y * (1.0 - smoothing) + smoothing / (double)n;
            sum += y * (lse - (double)score[i]);
            if (work->g)
                z->d[from + i - t->item[from]] = (float)((double)m->moved[i - first] - y);
        }
    }
    *counted += learnt;
    if (m->learnt > 0.0) learnt = m->learnt;
    if (learnt > 0.0) work->engine->k->scale(z->d, 1.0f / (float)learnt, t->count);
    return sum;
}

static void carnn__ranks_score(const carnn__tally *tally, carnn_scores *scores) {
    double groups = fmax(tally->sum[CARNN__RANKS_GROUPS], 1.0);
    double losses = tally->sum[CARNN__RANKS_LOSSES];
    if (losses > 0.0) scores->loss = tally->loss / losses;
    scores->metric[0].value = tally->sum[CARNN__RANKS_AP] / groups;
    scores->metric[1].value = tally->sum[CARNN__RANKS_RR] / groups;
}

/* --- grades --------------------------------------------------------------------------------------
   The value of an item is a number from 1 to K; logits z (B, K) are of a distribution over the
   whole ones, whose mean is told. The loss is the divergence from the distribution over the two
   numbers beside the value that has it as its mean (Tai, Socher and Manning 2015). */

enum { CARNN__GRADES_X, CARNN__GRADES_Y, CARNN__GRADES_XX, CARNN__GRADES_YY, CARNN__GRADES_XY,
       CARNN__GRADES_SPEARMAN, CARNN__GRADES_SUMS }; /* of a tally: x told, y right */

typedef struct carnn__grades {
    float *told[2], *right; /* (items) by this model, by a vote that it leads; their values */
    double *rank[2];        /* (items) of what was told, of what is right */
    uint32_t *order;        /* (items) scratch */
} carnn__grades;

static void carnn__grades_plan(carnn__plan *p, carnn__grades *m) {
    size_t i, n;
    if (!p->arena) return;
    n = p->work->data->item_count;
    m->right = carnn__floats(p->arena, 1, n);
    m->order = (uint32_t *)carnn__take(p->arena, n, sizeof(uint32_t));
    for (i = 0; i < 2; i++) {
        m->told[i] = carnn__floats(p->arena, 1, n);
        m->rank[i] = (double *)carnn__take(p->arena, n, sizeof(double));
    }
}

static void carnn__grades_add(double *sum, double x, double y) {
    sum[CARNN__GRADES_X] += x;
    sum[CARNN__GRADES_Y] += y;
    sum[CARNN__GRADES_XX] += x * x;
    sum[CARNN__GRADES_YY] += y * y;
    sum[CARNN__GRADES_XY] += x * y;
}

/* Pearson's r of n pairs of numbers from their sums; 0 where one of the two does not vary. */
static double carnn__pearson(const double *sum, double n) {
    double x = sum[CARNN__GRADES_X], y = sum[CARNN__GRADES_Y], least = 1e-10 * n;
    double xx = n * sum[CARNN__GRADES_XX] - x * x, yy = n * sum[CARNN__GRADES_YY] - y * y;
    if (!(xx > least * sum[CARNN__GRADES_XX] && yy > least * sum[CARNN__GRADES_YY])) return 0.0;
    return (n * sum[CARNN__GRADES_XY] - x * y) / sqrt(xx * yy);
}

/* Ranks of n numbers; equal ones have the mean of theirs. */
static void carnn__rank_numbers(const float *x, size_t n, uint32_t *order, double *rank) {
    size_t i, j, end;
    carnn__heap_make(x, order, n);
    for (i = n; i > 0; i--) carnn__heap_pop(x, order, i); /* the largest goes last */
    for (i = 0; i < n; i = end) {
        for (end = i + 1; end < n && x[order[end]] <= x[order[i]];) end++;
        for (j = i; j < end; j++) rank[order[j]] = 0.5 * (double)(i + end + 1);
    }
}

/* Pearson's r of the ranks. */
static double carnn__spearman(carnn__grades *m, int as_vote, size_t n) {
    double sum[CARNN__GRADES_SUMS] = {0.0};
    size_t i;
    carnn__rank_numbers(m->told[as_vote], n, m->order, m->rank[0]);
    carnn__rank_numbers(m->right, n, m->order, m->rank[1]);
    for (i = 0; i < n; i++) carnn__grades_add(sum, m->rank[0][i], m->rank[1][i]);
    return carnn__pearson(sum, (double)n);
}

/* Returns the sum of the losses, sum_k p_k log(p_k / q_k); the gradient of the mean goes to z->d.
   Spearman's correlation is known when all items have been graded. */
static double carnn__grades_loss(carnn__work *work, carnn__grades *m, const carnn__texts *t,
                                 const carnn__mat *z, carnn__tally *tally) {
    size_t K = z->columns, b, k, items = work->data->item_count;
    double loss = 0.0, smoothing = work->g ? work->smoothing : 0.0;
    for (b = 0; b < t->count; b++) {
        size_t item = t->item[b];
        const float *x = z->x + b * K;
        float *d = z->d + b * K;
        double y = (double)work->data->items[item].value, mean = 0.0, lse;
        memcpy(d, x, K * sizeof(float));
        lse = (double)work->engine->k->softmax(d, K);
        for (k = 0; k < K; k++) {
            double p = fmax(0.0, 1.0 - fabs(y - (double)(k + 1)));
            p = p * (1.0 - smoothing) + smoothing / (double)K;
            mean += (double)(k + 1) * (double)d[k];
            if (p > 0.0) loss += p * (log(p) + lse - (double)x[k]);
            d[k] = (float)(((double)d[k] - p) / (double)t->count);
        }
        m->told[work->as_vote][item] = (float)mean;
        m->right[item] = (float)y;
        carnn__grades_add(tally->sum, mean, y);
        carnn__tell_part(work, (mean - y) * (mean - y), 1.0);
    }
    tally->examples += t->count;
    if (!work->g && tally->examples == items)
        tally->sum[CARNN__GRADES_SPEARMAN] = carnn__spearman(m, work->as_vote, items);
    return loss;
}

/* pearson, spearman, mse */
static void carnn__grades_score(const carnn__tally *tally, carnn_scores *scores) {
    const double *sum = tally->sum;
    double n = (double)carnn__max(tally->examples, 1);
    scores->metric[0].value = carnn__pearson(sum, n);
    scores->metric[1].value = sum[CARNN__GRADES_SPEARMAN];
    scores->metric[2].value = (sum[CARNN__GRADES_XX] - 2.0 * sum[CARNN__GRADES_XY] +
                               sum[CARNN__GRADES_YY]) / n;
}

/* --- predictions ----------------------------------------------------------------------------- */

static carnn_prediction carnn__net_prediction(carnn__work *work, const carnn__logits *o, size_t b,
                                              size_t i) {
    carnn__net *net = carnn__net_of(work);
    size_t n = o->z->columns, first = carnn__first_decision(o, b), all, j;
    float *z = o->z->x + i * n, *p = o->z->d ? o->z->d + i * n : z; /* d is not in use */
    carnn_prediction told;
    memset(&told, 0, sizeof told);
    told.kind = o->kind == CARNN__OUTPUT_SOFTMAX ? CARNN_PREDICTS_CHOICES : CARNN_PREDICTS_SCORE;
    told.example = o->item[b];
    told.part = i - first;
    told.parts = carnn__first_decision(o, b + 1) - first;
    if (!told.parts) return told; /* an item without decisions */
    if (o->kind == CARNN__OUTPUT_SCORE) {
        told.score = (double)*z;
        return told;
    }
    if (net->name) { /* the first of its columns */
        told.candidate = net->name + i * n;
        for (all = n, n = 0; n < all && told.candidate[n].at;) n++;
        if (!n) return told;
    }
    if (p != z) memcpy(p, z, n * sizeof(float));
    work->engine->k->softmax(p, n);
    if (o->kind == CARNN__OUTPUT_GRADES) {
        for (j = 0; j < n; j++) told.score += (double)(j + 1) * (double)p[j];
        return told;
    }
    for (; told.count < carnn__min(net->top, n); told.count++) { /* of equal ones the first */
        size_t best = work->engine->k->argmax(p, n);
        if (told.count && !(p[best] >= 0.0f)) break; /* NaN */
        net->best[told.count] = best;
        net->probability[told.count] = (double)p[best];
        p[best] = -1.0f;
    }
    told.choice = net->best;
    told.probability = net->probability;
    told.unsure = told.count && net->best[0] == work->model->unsure;
    return told;
}

static void carnn__net_tell(carnn__work *work) {
    carnn__logits o = work->model->task->output(work);
    size_t b, i;
    for (b = 0; b < o.items; b++) {
        size_t first = carnn__first_decision(&o, b), end = carnn__first_decision(&o, b + 1);
        for (i = first; i < carnn__max(end, first + 1); i++) {
            carnn_prediction p = carnn__net_prediction(work, &o, b, i);
            work->wanted->example(&p, work->wanted->user);
        }
    }
}

/* --- words and choices of a new model -------------------------------------------------------- */

#ifndef CARNN_NO_TEXT

/* Adds the words of all texts in roles of this kind; each distinct text counts once. */
static void carnn__net_add_words(carnn__vocabulary *v, const carnn_model *model,
                                 const carnn_dataset *data, int labels, size_t times) {
    const carnn_allocator *a = &model->allocator;
    unsigned char *seen = (unsigned char *)carnn__alloc_zero(a, data->text_count, 1);
    size_t i;
    if (!seen) v->status = carnn__out_of_memory(v->error);
    for (i = 0; seen && !data->columns && i < data->member_count; i++) {
        const carnn__member *m = &data->members[i];
        const carnn__role *role = &model->task->roles[m->role];
        carnn__span text = carnn__text(data, m->text);
        if (role->labels != labels || seen[m->text]) continue;
        seen[m->text] = 1;
        carnn__vocabulary_add(v, role->tokenizer, text.at, text.length, times);
    }
    carnn__free(a, seen);
}

/* Opens the vocabulary of a new model: the reserved words of its task, and those of the model that
   it goes on from. */
static void carnn__model_vocabulary(carnn__vocabulary *v, const carnn_model *model,
                                    carnn_error *error) {
    carnn__vocabulary_open(v, &model->allocator, model->task->reserved,
                           model->task->reserved_count, error);
    if (model->desc.from) carnn__vocabulary_keep(v, &model->desc.from->words);
}

/* The choices of a new model: those of the model that it goes on from, then those of the data. */
static carnn_status carnn__model_choices(carnn_model *model, const carnn_dataset *data,
                                         carnn_error *error) {
    const carnn__names *old = model->desc.from ? &model->desc.from->choices : NULL;
    const carnn_allocator *a = &model->allocator;
    size_t olds = old ? old->count : 0, n = olds, i;
    carnn__span *s = (carnn__span *)carnn__alloc(a, olds + data->choice_count + 1, sizeof *s);
    const char *unsure = model->desc.unsure;
    carnn_status status;
    if (!s) return carnn__out_of_memory(error);
    for (i = 0; i < olds; i++) s[i] = carnn__string(old->bytes, old->at, i);
    for (i = 0; i < data->choice_count; i++) {
        s[n] = carnn__string(data->shown, data->shown_at, i);
        n += !old || carnn__names_find(old, s[n].at, s[n].length) == CARNN__NO_INDEX;
    }
    if (unsure && !(model->desc.from && model->desc.from->desc.unsure)) {
        s[n].at = unsure;
        s[n++].length = strlen(unsure);
    }
    status = carnn__names_build(&model->choices, a, s, n, error);
    carnn__free(a, s);
    return status;
}

/* Words: those of the training data and of the known data sets. Choices: the words in roles of
   labels, or else the targets. */
static carnn_status carnn__net_build(carnn_model *model, const carnn_dataset *data,
                                     carnn_error *error) {
    const carnn__task *task = model->task;
    carnn__vocabulary v;
    size_t least = (size_t)model->desc.min_count, i, labels = 0;
    carnn_status status;
    carnn__model_vocabulary(&v, model, error);
    carnn__net_add_words(&v, model, data, 0, 1);
    for (i = 0; model->desc.vector_count && i < model->desc.known_count; i++)
        if (model->desc.known[i])
            carnn__net_add_words(&v, model, model->desc.known[i], 0, least);
    status = carnn__vocabulary_close(&v, least, &model->words);
    if (status) return status;
    for (i = 0; task->roles[i].name; i++) labels += task->roles[i].labels != 0;
    if (!labels) return carnn__model_choices(model, data, error);
    carnn__vocabulary_init(&v, &model->allocator, error);
    if (model->desc.from) carnn__vocabulary_keep(&v, &model->desc.from->choices);
    carnn__net_add_words(&v, model, data, 1, 1);
    return carnn__vocabulary_close(&v, 1, &model->choices);
}

#endif

/* --- a head at work: what training, scoring and sessions call -------------------------------- */

/* Declares the weights of a new or loaded model. */
static carnn_status carnn__net_declare(carnn_model *model, carnn_error *error) {
    void *state = carnn__alloc_zero(&model->allocator, 1, model->task->state);
    carnn__plan p = {&model->params, NULL, NULL, model};
    if (!state) return carnn__out_of_memory(error);
    model->task->parts(&p, state);
    carnn__free(&model->allocator, state);
    return CARNN_OK;
}

static void carnn__net_close(carnn__work *work) {
    if (!work->state) return;
    carnn__disown(&carnn__corpus_of(work)->blocks, &work->allocator);
    carnn__free(&work->allocator, work->state);
    work->state = NULL;
}

/* Makes the data ready for the model, for all epochs. */
static carnn_status carnn__net_open(carnn__work *work, carnn_error *error) {
    const carnn__task *task = work->model->task;
    carnn_status status;
    work->state = carnn__alloc_zero(&work->allocator, 1, task->state);
    if (!work->state) return carnn__out_of_memory(error);
    status = carnn__corpus_tokens(work, error);
    if (!status) status = carnn__corpus_targets(work, error);
    if (!status) status = (task->pieces ? task->pieces : carnn__corpus_cut)(work, error);
    if (!status) carnn__corpus_most(work);
    else carnn__net_close(work);
    return status;
}

/* Takes the memory of a batch, again whenever another work has used the arena. */
static void carnn__net_carve(carnn__work *work, carnn__arena *arena) {
    size_t choices;
    carnn__net *net = carnn__net_of(work);
    carnn__store same; /* the weights get the numbers that they have in the model */
    carnn__plan p = {&same, arena, work, work->model};
    memset(&same, 0, sizeof same);
    work->model->task->parts(&p, work->state);
    choices = carnn__max(work->model->choices.count, net->columns);
    if (work->wanted) net->top = carnn__max(work->wanted->top, 1);
    net->best = (size_t *)carnn__take(arena, choices, sizeof(size_t));
    net->probability = (double *)carnn__take(arena, choices, sizeof(double));
}

/* One batch: adds to the tally and to the gradients, if there is work->g; `key` draws the dropout
   masks (0: none). */
static void carnn__net_batch(carnn__work *work, size_t number, uint64_t key, carnn__tally *tally) {
    const carnn__task *task = work->model->task;
    if (task->batch) {
        task->batch(work, number, key, tally);
        return;
    }
    carnn__net_of(work)->key = key;
    if (carnn__net_of(work)->texts.roles) carnn__texts_collect(&carnn__net_of(work)->texts, number);
    task->forward(work, key);
    tally->loss += carnn__net_loss(work, tally);
    if (work->g) task->backward(work, key);
    if (work->wanted) carnn__net_tell(work); /* after the loss: it uses the same memory */
}

/* One step of training, from batch `first` of `batches` on: one batch, or those that have a group
   in common whose loss is one. Of these all scores come first: a batch then knows those of its
   groups, however large. Returns the first batch of the next step. */
static size_t carnn__net_step(carnn__work *work, size_t first, size_t batches, uint64_t key,
                              carnn__tally *tally) {
    carnn__net *net = carnn__net_of(work);
    const carnn__corpus *c = &net->corpus;
    size_t end = first + 1, i;
    while (net->whole && end < batches && c->pieces[c->queue[c->batch_start[end]]].continues) end++;
    if (net->whole) net->whole->learnt = 0.0;
    if (end == first + 1) {
        carnn__net_batch(work, first, key, tally);
        return end;
    }
    for (i = first; i < end; i++) {
        carnn__texts_collect(&net->texts, i);
        work->model->task->forward(work, carnn__stream(key, i));
        carnn__ranks_keep(work, net->whole, &net->texts, work->model->task->output(work).z->x);
    }
    for (i = first; i < end; i++) carnn__net_batch(work, i, carnn__stream(key, i), tally);
    return end;
}

/* The vote of models on the batch that each has just worked on: the mean of their scores, or of
   their probabilities, as logits. */
static void carnn__net_vote(carnn__work *const *works, size_t count, size_t number,
                            carnn__tally *tally) {
    const carnn__task *task = works[0]->model->task;
    carnn__logits first;
    size_t i, j, m, n;
    if (task->vote) {
        task->vote(works, count, number, tally);
        return;
    }
    first = task->output(works[0]);
    n = first.z->columns;
    for (i = 0; i < first.count; i++) {
        float *z = first.z->x + i * n;
        for (m = 0; m < count; m++) {
            carnn__logits o = task->output(works[m]);
            if (o.kind != CARNN__OUTPUT_SCORE) works[m]->engine->k->softmax(o.z->x + i * n, n);
            if (m) works[0]->engine->k->add(o.z->x + i * n, z, n);
        }
        for (j = 0; j < n; j++)
            z[j] = first.kind == CARNN__OUTPUT_SCORE ? z[j] / (float)count
                                                     : logf(fmaxf(z[j] / (float)count, FLT_MIN));
    }
    tally->loss += carnn__net_loss(works[0], tally);
}

/* A vote by plurality on decision i: each model has a vote for its best choice; of those with most
   votes the one with the largest sum of probabilities wins. Logits become probabilities; *right is
   the mean one of `target`, if it is a choice. */
static size_t carnn__elect(carnn__work *const *works, size_t count, size_t i, size_t target,
                           double *right) {
    const carnn__kernels *k = works[0]->engine->k;
    carnn__net *net = carnn__net_of(works[0]);
    size_t m, n, best = 0, *votes = net->best, L = works[0]->model->choices.count;
    double *sum = net->probability;
    *right = 0.0;
    memset(votes, 0, L * sizeof *votes);
    memset(sum, 0, L * sizeof *sum);
    for (m = 0; m < count; m++) {
        float *p = works[m]->model->task->output(works[m]).z->x + i * L;
        k->softmax(p, L);
        votes[k->argmax(p, L)]++;
        for (n = 0; n < L; n++) sum[n] += (double)p[n];
        if (target < L) *right += (double)p[target] / (double)count;
    }
    for (n = 1; n < L; n++)
        if (votes[n] > votes[best] || (votes[n] == votes[best] && sum[n] > sum[best])) best = n;
    return best;
}

static void carnn__net_score(const carnn__task *task, const carnn__tally *tally,
                             carnn_scores *scores) {
    size_t i;
    if (task->score) {
        task->score(tally, scores);
        return;
    }
    for (i = 0; i < scores->count; i++)
        scores->metric[i].value = tally->sum[i] / (double)carnn__max(tally->examples, 1);
}

#endif
/* =============================================================================================
   @@SESSION   prediction one example at a time, and explanation

   A session is a batch of one item, whose texts come from the caller: the head's own parts in one
   block, and what the task keeps from one example to the next.
   ============================================================================================= */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

#define CARNN__WORD_TEXT 32      /* bytes of a word that are kept for explanations */
#define CARNN__TREE_BYTES 16384  /* of a tree that is read */

struct carnn_session {
    const carnn_model *model;
    void *own;               /* the block, where it is the session's */
    carnn__engine engine;
    carnn__work work;        /* its state is the head's */
    carnn_dataset data;      /* one item, which is one batch */
    carnn__item item;
    carnn__batch_piece piece;
    uint32_t queue, target;
    size_t batch_start[2];
    char (*word)[CARNN__WORD_TEXT]; /* (words) of the texts at hand, for explanations */
    double *share;           /* (D) */
    size_t parts;            /* of the last prediction; 0: there is nothing to explain */
    int spoken;              /* texts are tokenised as those of Switchboard are */
#ifndef CARNN_NO_TEXT
    carnn__parser parser;    /* of carnn_session_line */
#endif
};

/* What sessions of a task do. (*) may be NULL: the task does not have the call. */
struct carnn__session_kind {
    const char *calls;       /* for messages: "predict, explain" */
    size_t texts;            /* of an example, for carnn_session_predict */
    /* takes the memory of the corpus and what else the session needs beside the head's parts */
    void (*carve)(carnn_session *s, carnn__arena *arena);
    void (*reset)(carnn_session *s); /* (*) called once there is memory, too */
    void (*predict)(carnn_session *s, const carnn_text *texts, size_t top, carnn_prediction *p);
    /* reads a text that comes before the example, in this role; NULL: predict does */
    void (*hear)(carnn_session *s, uint32_t role, const char *text, size_t length);
    int talks;               /* carnn_session_hear and _reply */
    void (*generate)(carnn_session *s, const carnn_sampling *how, const char *prompt, size_t length,
                     char *text, size_t size); /* (*) */
    void (*explain)(carnn_session *s, size_t count, carnn_contribution *out,
                    carnn_explanation *e); /* (*) */
    const float *(*alignment)(const carnn_session *s, int of_second, size_t *rows,
                              size_t *columns); /* (*) */
};

static const carnn__session_kind *carnn__session_of(const carnn_session *s) {
    return s->model->task->session;
}

/* Keeps the first bytes of a text for explanations, as a string: a NUL becomes a blank. */
static void carnn__keep_text(char *to, size_t size, carnn__span text) {
    size_t n = carnn__min(text.length, size - 1), i;
    for (i = 0; i < n; i++) to[i] = text.at[i] ? text.at[i] : ' ';
    to[n] = 0;
}

/* The corpus of one item whose texts have as many words as they can have. */
static void carnn__net_session_carve(carnn_session *s, carnn__arena *arena) {
    carnn__corpus *c = carnn__corpus_of(&s->work);
    size_t T = carnn__session_of(s)->texts, W = carnn__session_words(s->model), i;
    carnn__member *members = (carnn__member *)carnn__take(arena, T, sizeof *members);
    c->tokens.count = T;
    c->tokens.ids = (uint32_t *)carnn__take(arena, T * W, sizeof(uint32_t));
    c->tokens.at = (size_t *)carnn__take(arena, T + 1, sizeof(size_t));
    c->list = (uint32_t *)carnn__take(arena, T, sizeof(uint32_t));
    s->word = (char (*)[CARNN__WORD_TEXT])carnn__take(arena, T * W, CARNN__WORD_TEXT);
    for (i = 0; members && i < T; i++) {
        members[i].text = c->list[i] = (uint32_t)i;
        members[i].role = (uint32_t)i;
    }
    c->target = &s->target;
    c->pieces = &s->piece;
    c->queue = &s->queue;
    c->batch_start = s->batch_start;
    s->target = CARNN__NO_INDEX;
    s->piece.count = 1;
    s->batch_start[1] = 1;
    c->most_items = 1;
    c->most_texts = T;
    c->most_steps = W;
    c->most_size[0] = T * W;
    c->most_size[1] = 2 * W * W;
    s->item.count = (uint32_t)T;
    s->data.members = members;
    s->data.items = &s->item;
    s->data.item_count = 1;
}

static void carnn__net_session_predict(carnn_session *s, const carnn_text *texts, size_t top,
                                       carnn_prediction *p) {
    carnn__net *net = carnn__net_of(&s->work);
    carnn__corpus *c = &net->corpus;
    size_t W = c->most_steps, i, at = 0, word;
    carnn__logits o;
    for (i = 0; i < carnn__session_of(s)->texts; i++) {
        carnn__words w = carnn__words_of(s->model->task->roles[i].tokenizer, texts[i].at,
                                         texts[i].length);
        c->tokens.at[i] = word = at;
        at += carnn__min(W, carnn__tokens(s->model, texts[i], (uint32_t)i, c->tokens.ids + at, W));
        for (; word < at && carnn__next_word(&w); word++)
            carnn__keep_text(s->word[word], sizeof s->word[word], w.word);
    }
    c->tokens.at[i] = at;
    if (net->texts.roles) carnn__texts_collect(&net->texts, 0);
    s->model->task->forward(&s->work, 0);
    o = s->model->task->output(&s->work);
    net->top = carnn__max(top, 1);
    *p = carnn__net_prediction(&s->work, &o, 0, 0);
}

/* --- explanation --------------------------------------------------------------------------------
   The states of the additive cells are weighted sums of their candidates (Tran et al. 2018, Eq. 4
   and 7): h_t = A_t h_{t-1} + w_t k_t. So a sum of states with weights al_t (0 .. 0, 1 for the last
   state; attention) is one, too:

     sum_t al_t (h_t + e_t) = sum_t [w_t R_t k_t + al_t e_t]     R_t = al_t + A_{t+1} R_{t+1}

   Its product with y is a sum over steps, exactly; the bias in k_t belongs to none of them. */

/* What row t, of the sequence of rank b, adds to y . sum_t al_t (h_t + e_t); of other cells it is
   al_t (h_t + e_t) . y. e (h) NULL: e_t = 0. share (h) is A_{t+1} R_{t+1} and becomes A_t R_t. What
   the biases add goes to *rest. */
static double carnn__step_score(const carnn__cell_run *r, size_t b, size_t t, const float *y,
                                double alpha, const float *e, double *share, double *rest) {
    size_t j, h = r->cell->h, slot = r->scan.index ? r->scan.index[t] : t;
    double score = 0.0;
    for (j = 0; j < h; j++) {
        double w, A, k, bias, R = alpha + share[j], input = e ? (double)e[j] : 0.0;
        if (carnn__cell_additive_step(r, b, t, slot, j, &w, &A, &k, &bias)) {
            score += (double)y[j] * (w * R * (k - bias) + alpha * input);
            *rest += (double)y[j] * w * R * bias;
            share[j] = A * R;
        } else {
            score += (double)y[j] * alpha * ((double)r->scan.out[t * h + j] + input);
        }
    }
    return score;
}

/* Adds what each of the n words of the sequence of rank b has in scale * y . h_n to its score or
   share in out[0 .. room), and takes it off *rest. backward: the run reads the last word first. */
static void carnn__explain_run(carnn_session *s, const carnn__cell_run *r, size_t b, size_t n,
                               int backward, const float *y, double scale, carnn_contribution *out,
                               size_t room, double *rest) {
    size_t step, j;
    for (j = 0; j < r->cell->h; j++) s->share[j] = scale;
    for (step = n; step-- > 0;) {
        size_t word = backward ? n - 1 - step : step;
        double biases = 0.0, value = carnn__step_score(r, b, r->scan.seq->start[step] + b, y, 0.0,
                                                       NULL, s->share, &biases);
        *rest -= value;
        if (word >= room) continue;
        if (out[word].has & CARNN_HAS_SCORE) out[word].score += value;
        else out[word].share += value;
    }
}

/* The words of all texts with their shares; weight (R) are their weights, or NULL. */
static void carnn__explain_words(carnn_session *s, const carnn__rnn *m, const float *weight,
                                 size_t count, carnn_contribution *out, carnn_explanation *e) {
    const carnn__texts *t = &carnn__net_of(&s->work)->texts;
    size_t text, i, j, r, h = m->h;
    e->count = carnn__texts_rows(t);
    e->exact = m->layers == 1 && m->bases == 1 &&
               carnn__cell_is_additive(m->layer[0].base[0].cell[0].kind);
    for (text = 0; text < t->texts; text++) {
        size_t n = t->at[text + 1] - t->at[text], from = carnn__min(t->at[text], count);
        size_t b = t->place[t->sequence[text]], last = n ? (t->start[n - 1] + b) * h : 0;
        double squares = 0.0;
        for (r = from; r < t->at[text + 1] && r < count; r++) {
            carnn_contribution c = {s->model->task->roles[text].name, s->word[r], CARNN_HAS_SHARE,
                                    0.0, weight ? (double)weight[r] : 0.0, 0.0};
            if (weight) c.has |= CARNN_HAS_ATTENTION;
            out[r] = c;
        }
        for (i = 0; n && i < m->directions; i++) {
            const float *v = m->layer[0].base[0].run[i].scan.out + last;
            for (j = 0; j < h; j++) squares += (double)v[j] * (double)v[j];
        }
        if (!(squares > 0.0)) continue;
        e->rest += 1.0;
        for (i = 0; m->bases == 1 && i < m->directions; i++) {
            const carnn__cell_run *run = &m->layer[0].base[0].run[i];
            carnn__explain_run(s, run, b, n, i == 1, run->scan.out + last, 1.0 / squares,
                               out + from, count - from, &e->rest);
        }
    }
}

/* --- drawing a choice by its logits ---------------------------------------------------------- */

/* Keeps the most probable choices, at most `most` (0: all) and no more than have the probability
   `mass` together (0: all), and sets the others to 0. heap (V) is scratch. */
static void carnn__sample_truncate(float *p, uint32_t *heap, size_t V, size_t most, double mass) {
    size_t left, i;
    double sum = 0.0;
    carnn__heap_make(p, heap, V);
    for (left = V; left && (!most || V - left < most) && (mass <= 0.0 || sum < mass); left--)
        sum += (double)p[carnn__heap_pop(p, heap, left)];
    for (i = 0; i < left; i++) p[heap[i]] = 0.0f;
}

/* Draws one of n by the logits z, never one with -FLT_MAX. z becomes probabilities; heap (n) is
   scratch; *drawn counts the random numbers that were used. */
static size_t carnn__sample(const carnn__kernels *k, const carnn_sampling *how, float *z,
                            uint32_t *heap, size_t n, uint64_t *drawn) {
    size_t most = how->top_k > 0 ? (size_t)how->top_k : 0, last = k->argmax(z, n), i;
    double temperature = how->temperature, sum = 0.0, best = (double)z[last], at;
    if (temperature < 0.0) return last;
    if (temperature == 0.0) temperature = 1.0;
    for (i = 0; i < n; i++)
        if (z[i] > -FLT_MAX) z[i] = (float)(((double)z[i] - best) / temperature);
    k->softmax(z, n);
    if ((most && most < n) || (how->top_p > 0.0 && how->top_p < 1.0))
        carnn__sample_truncate(z, heap, n, most, how->top_p);
    for (i = 0; i < n; i++) sum += (double)z[i];
    at = sum * (double)carnn__uniform(carnn__stream(how->seed, (*drawn)++), 0);
    for (i = 0; i < n; i++) {
        if (z[i] <= 0.0f) continue;
        last = i;
        at -= (double)z[i];
        if (at < 0.0) break;
    }
    return last;
}

/* --- what a program calls -------------------------------------------------------------------- */

/* Lays out a session; on a counting arena this is how its size is known. */
static void carnn__session_carve(carnn_session *s, const carnn__kernels *k, carnn__arena *arena) {
    const carnn_model *model = s->model;
    void *state;
    carnn__take(arena, 1, sizeof *s);
    state = carnn__take(arena, 1, model->task->state);
    if (state) s->work.state = memset(state, 0, model->task->state);
    carnn__engine_borrow(&s->engine, k, carnn__floats(arena, 1, CARNN__PANEL_SIZE));
    s->share = (double *)carnn__take(arena, (size_t)model->desc.hidden, sizeof(double));
    s->work.model = model;
    s->work.data = &s->data;
    s->work.engine = &s->engine;
    s->work.w = model->params.value;
    s->work.batch = 1;
    carnn__session_of(s)->carve(s, arena);
    carnn__net_carve(&s->work, arena);
}

CARNN_API size_t carnn_session_size(const carnn_model *model) {
    const carnn__kernels *k = carnn__simd_select(model->desc.simd);
    carnn__arena arena = {NULL, 0, 0, 0};
    carnn_session *s;
    if (!k || !model->task->session) return 0;
    s = (carnn_session *)carnn__alloc_zero(&model->allocator, 1, sizeof *s + model->task->state);
    if (!s) return 0;
    s->model = model;
    s->work.state = s + 1; /* scratch, while memory is counted */
    carnn__session_carve(s, k, &arena);
    carnn__free(&model->allocator, s);
    return arena.peak;
}

CARNN_API carnn_status carnn_session_open(carnn_session **out, const carnn_model *model,
                                          void *memory, carnn_error *error) {
    const carnn__kernels *k;
    carnn__arena arena = {NULL, 0, 0, 0};
    carnn_session *s;
    void *own = NULL;
    *out = NULL;
    if (carnn__simd_open(&k, model->desc.simd, error)) return CARNN_ERR_ARGUMENT;
    if (!model->task->session)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "the task %s has no sessions",
                           model->desc.task);
    arena.size = SIZE_MAX; /* the caller's memory is large enough */
    if (!memory) {
        arena.size = carnn_session_size(model);
        if (arena.size) memory = own = carnn__alloc_aligned(&model->allocator, arena.size, 1);
    }
    if (!memory) return carnn__out_of_memory(error);
    arena.base = (char *)memory;
    s = (carnn_session *)memory;
    memset(s, 0, sizeof *s);
    s->model = model;
    s->own = own;
    carnn__session_carve(s, k, &arena);
    carnn_session_reset(s);
    *out = s;
    return CARNN_OK;
}

CARNN_API void carnn_session_free(carnn_session *session) {
    carnn_allocator a;
    if (!session || !session->own) return;
    a = session->model->allocator;
    carnn__free_aligned(&a, session->own);
}

CARNN_API void carnn_session_reset(carnn_session *session) {
    session->parts = 0;
#ifndef CARNN_NO_TEXT
    memset(&session->parser, 0, sizeof session->parser);
#endif
    if (carnn__session_of(session)->reset) carnn__session_of(session)->reset(session);
}

static carnn_status carnn__no_such_call(const carnn_session *s, const char *call,
                                        carnn_error *error) {
    return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "a model of the task %s does not %s; it does "
                       "%s", s->model->desc.task, call, carnn__session_of(s)->calls);
}

CARNN_API carnn_status carnn_session_predict(carnn_session *session, const carnn_text *texts,
                                             size_t count, size_t top, carnn_prediction *prediction,
                                             carnn_error *error) {
    const carnn__session_kind *kind = carnn__session_of(session);
    if (count != kind->texts)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0,
                           "the task %s predicts from %zu text%s, not %zu",
                           session->model->desc.task, kind->texts, kind->texts == 1 ? "" : "s",
                           count);
    memset(prediction, 0, sizeof *prediction);
    prediction->parts = 1;
    kind->predict(session, texts, top, prediction);
    session->parts = prediction->parts;
    return CARNN_OK;
}

CARNN_API carnn_status carnn_session_part(carnn_session *session, size_t part,
                                          carnn_prediction *prediction, carnn_error *error) {
    carnn__logits o;
    if (!session->model->task->forward || part >= session->parts)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "the last prediction has no part %zu",
                           part);
    o = session->model->task->output(&session->work);
    *prediction = carnn__net_prediction(&session->work, &o, 0, part);
    return CARNN_OK;
}

CARNN_API carnn_status carnn_session_hear(carnn_session *session, carnn_speaker speaker,
                                          const char *text, size_t length, carnn_error *error) {
    if (!carnn__session_of(session)->talks) return carnn__no_such_call(session, "hear", error);
    if ((int)speaker < CARNN_USER || speaker > CARNN_FACT)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "there is no speaker %d", (int)speaker);
    carnn__session_of(session)->hear(session, (uint32_t)speaker, text, length);
    return CARNN_OK;
}

CARNN_API carnn_status carnn_session_reply(carnn_session *session, const char *user, size_t length,
                                           const char **reply, carnn_error *error) {
    const carnn__names *choices = &session->model->choices;
    const carnn__session_kind *kind = carnn__session_of(session);
    carnn_text text = {user, length};
    carnn_prediction p;
    *reply = "";
    if (!kind->talks) return carnn__no_such_call(session, "reply", error);
    kind->predict(session, &text, 1, &p);
    *reply = carnn__names_get(choices, p.choice[0]);
    if (!p.unsure) {
        kind->hear(session, CARNN_USER, user, length);
        kind->hear(session, CARNN_SYSTEM, *reply, carnn__names_length(choices, p.choice[0]));
    }
    session->parts = 1;
    return CARNN_OK;
}

CARNN_API carnn_status carnn_session_generate(carnn_session *session, const carnn_sampling *how,
                                              const char *prompt, size_t length, char *text,
                                              size_t size, carnn_error *error) {
    if (size) *text = 0;
    if (!carnn__session_of(session)->generate)
        return carnn__no_such_call(session, "generate", error);
    session->parts = 0;
    carnn__session_of(session)->generate(session, how, prompt, length, text, size);
    return CARNN_OK;
}

CARNN_API carnn_status carnn_session_explain(carnn_session *session, size_t count,
                                             carnn_contribution *out,
                                             carnn_explanation *explanation, carnn_error *error) {
    memset(explanation, 0, sizeof *explanation);
    if (!carnn__session_of(session)->explain)
        return carnn__no_such_call(session, "explain", error);
    if (session->parts) carnn__session_of(session)->explain(session, count, out, explanation);
    return CARNN_OK;
}

CARNN_API const float *carnn_session_alignment(const carnn_session *session, int of_second,
                                               size_t *rows, size_t *columns) {
    *rows = *columns = 0;
    if (!session->parts || !carnn__session_of(session)->alignment) return NULL;
    return carnn__session_of(session)->alignment(session, of_second, rows, columns);
}

#ifndef CARNN_NO_TEXT

CARNN_API carnn_status carnn_session_line(carnn_session *session, const char *line, size_t length,
                                          size_t number, size_t top, int *found,
                                          carnn_prediction *prediction, carnn_error *error) {
    const carnn__session_kind *kind = carnn__session_of(session);
    carnn__parser *p = &session->parser;
    carnn_text texts[CARNN__RECORD_TEXTS];
    carnn__record r;
    carnn_status status;
    char leaves[CARNN__TREE_BYTES];
    size_t i, count = 0;
    memset(&r, 0, sizeof r);
    *found = 0;
    p->error = error;
    p->lenient = 1;
    p->option = session->model->desc.option;
    p->lines.name = "standard input";
    p->lines.number = number;
    p->lines.line.at = line;
    p->lines.line.length = length;
    status = session->model->task->reader->line(p, &r);
    if (status || !r.count) return status;
    if (r.begins && kind->reset) kind->reset(session);
    session->spoken = r.spoken;
    for (; r.own + count < kind->texts; count++) /* has been heard */
        texts[count].at = "", texts[count].length = 0;
    for (i = 0; i < r.own; i++)
        if (!session->model->task->roles[r.role[i]].labels) texts[count++] = r.text[i];
    if (r.tree) {
        texts->length = carnn__min(texts->length, sizeof leaves);
        texts->length = carnn__leaves(*texts, leaves);
        texts->at = leaves;
    }
    *found = r.example;
    if (r.example)
        status = carnn_session_predict(session, texts, count, top, prediction, error);
    for (i = 0; !status && kind->hear && (kind->talks || !r.example) && i < r.count; i++)
        kind->hear(session, r.role[i], r.text[i].at, r.text[i].length);
    session->spoken = 0;
    return status;
}

CARNN_API carnn_status carnn_session_example(carnn_session *session, const carnn_dataset *data,
                                             size_t number, size_t top,
                                             carnn_prediction *prediction, carnn_error *error) {
    const carnn__session_kind *kind = carnn__session_of(session);
    carnn_text texts[CARNN__RECORD_TEXTS];
    const carnn__role *roles = session->model->task->roles;
    const carnn__item *x;
    size_t m, end, left = 0, count = 0;
    carnn_status status;
    if (data->columns)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "sessions read texts, the data set has "
                           "rows of numbers");
    if (carnn__same_task(session->model, data, error)) return CARNN_ERR_ARGUMENT;
    if (number >= data->item_count)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "the data set has only %zu examples",
                           data->item_count);
    x = &data->items[number];
    end = x->first + x->count;
    for (m = x->first; m < end; m++) left += !roles[data->members[m].role].labels;
    carnn_session_reset(session);
    for (m = x->first; m < end; m++) {
        carnn__span text = carnn__text(data, data->members[m].text);
        if (roles[data->members[m].role].labels) continue;
        if (left-- <= kind->texts) texts[count++] = text;
        else if (kind->hear) kind->hear(session, data->members[m].role, text.at, text.length);
        else kind->predict(session, &text, 1, prediction);
    }
    status = carnn_session_predict(session, texts, count, top, prediction, error);
    if (!status) prediction->example = number;
    return status;
}

#endif /* CARNN_NO_TEXT */

static const carnn__session_kind carnn__net_session = {
    "predict", 1, carnn__net_session_carve, NULL, carnn__net_session_predict, NULL, 0, NULL, NULL,
    NULL};

#endif
/* =============================================================================================
   @@HEAD dialog   choose the reply, given the dialog so far

   Tran et al. 2018, section 4.1. The position encoder turns every utterance of the history and
   every candidate into a vector. A cell reads the history; its context c is the user's latest
   utterance. Attention with a residual connection sums the history up (Eq. 8), and a product scores
   the candidates:

     e_m = enc(utterance m)     c = e_M      h_1 .. h_M = cell(e_1 .. e_M, c)
     al = softmax_m((h_m + e_m) . c)         o = sum_m al_m (h_m + e_m)                  (Eq. 8)
     P(y_l) = softmax_l(o . enc(y_l))                                                    (Eq. 9, 10)

   Every history begins with the utterance <start> and, unlike in Eq. 8, ends with the latest one.
   Every utterance ends with a word that names its speaker.

   A batch is whole dialogs, whose distinct utterances, and the candidates, are encoded once. Each
   turn has a scan, an attention and a row of the product with the candidates; turns are worked on
   in chunks of a bounded number of rows.
   ============================================================================================= */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

/* Bounds: utterances of a batch, which one dialog may exceed; rows and turns of a chunk, which has
   room for the longest history. */
#define CARNN__DIALOG_INPUTS 768
#define CARNN__DIALOG_ROWS 2048
#define CARNN__DIALOG_CHUNK 64

/* The most words of an utterance, with the speaker's, and the most utterances of a history. */
#define CARNN__UTTERANCE_WORDS 1024
#define CARNN__HISTORY_LINES 1024

/* Where the model may be unsure: one in so many turns of training has words that mean nothing, so
   many at most. */
#define CARNN__ODD_SHARE 8
#define CARNN__ODD_WORDS 9

/* --- options --------------------------------------------------------------------------------- */

enum { CARNN__DIALOG_HISTORY, CARNN__DIALOG_KB_ROWS, CARNN__DIALOG_EXCHANGE }; /* in .option */

static const carnn_option carnn__dialog_options[] = {
    CARNN__OPTION_WHOLE("history", CARNN__DIALOG_HISTORY, 0, 1e9, 1,
                        "history utterances read, the latest so many"),
    CARNN__OPTION_WHOLE("kb_rows", CARNN__DIALOG_KB_ROWS, 0, 1e9, 1,
                        "rows of a knowledge-base block, the first"),
    CARNN__OPTION_WHOLE("exchange", CARNN__DIALOG_EXCHANGE, 0, 1, 1,
                        "1: names are exchanged in training, so that it learns to copy them"),
    CARNN__OPTION_END};

/* Larger models want smaller steps. */
static void carnn__dialog_adapt(carnn_model_desc *model, carnn_train_desc *train) {
    if (train->lr == 0.0)
        train->lr = model->hidden <= 204 ? 0.005 : 1.024 / (double)model->hidden;
    carnn__option_default(model, CARNN__DIALOG_EXCHANGE, 1);
}

static carnn_status carnn__dialog_check(const carnn_model *model, carnn_error *error) {
    if (!model->choices.count)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "a dialog model needs candidates");
    if (model->desc.embedding != model->desc.hidden)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "embedding is %lld and hidden is %lld: "
                           "for a dialog model they are the same size (Eq. 8 adds h and e)",
                           (long long)model->desc.embedding, (long long)model->desc.hidden);
    if (model->desc.layers != 1)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "a dialog model has one recurrent layer");
    return CARNN_OK;
}

/* An option's number, at most `most`, which is also what none stands for. */
static size_t carnn__dialog_most(const carnn_model *model, size_t option, size_t most) {
    double number = carnn__option(model, option);
    return number < 0.0 ? most : carnn__min((size_t)number, most);
}

/* The speakers of carnn_speaker, and a role for <start>, which no text of a data set has. */
static const carnn__role carnn__dialog_roles[] = {
    {"user", CARNN__WORDS, 0}, {"bot", CARNN__WORDS, 0}, {"fact", CARNN__WORDS, 0},
    {"bot", CARNN__WORDS, 0}, {NULL, CARNN__WORDS, 0}};
enum { CARNN__DIALOG_STARTS = CARNN_FACT + 1 };

#define CARNN__UNSURE_WORD "$unsure" /* all that the candidate consists of, whatever it says */
static const char *const carnn__dialog_reserved[] = {"$start", "$user", "$system", "$fact"};
enum { CARNN__DIALOG_START = 1, CARNN__DIALOG_SPEAKER }; /* their numbers; the first speaker's */

/* The first words of the text, then the speaker's; of <start> one word. */
static size_t carnn__dialog_tokens(const carnn_model *model, carnn__span text, uint32_t role,
                                   uint32_t *ids, size_t max) {
    const size_t most = CARNN__UTTERANCE_WORDS - 1;
    size_t n = carnn__tokenize(&model->words, CARNN__WORDS, text.at, text.length, ids,
                               carnn__min(max, most));
    uint32_t last = CARNN__DIALOG_SPEAKER + role;
    n = carnn__min(n, most);
    if (role == CARNN__DIALOG_STARTS) {
        n = 0;
        last = CARNN__DIALOG_START;
    }
    if (n < max) ids[n] = last;
    return n + 1;
}

/* Lines from the end of the item before to the end of the next one: all lines of a dialog in sum,
   and <start>, so that models that keep different lines have the same batches to vote on. */
static void carnn__dialog_measure(const carnn__work *work, size_t item, size_t size[CARNN__SIZES]) {
    const carnn__item *x = &work->data->items[item], *next = x + 1;
    size_t begins = !item || x->group != x[-1].group;
    size_t end = item + 1 == work->data->item_count ? work->data->member_count
                 : next->group == x->group ? next->first + next->count : next->first;
    size[0] = end - x->first - (begins ? 0 : x->count) + begins;
    size[1] = 0;
}

#ifndef CARNN_NO_TEXT

/* Is every response among the candidates? `times` (texts) is zeros, also afterwards. */
static carnn_status carnn__dialog_check_responses(const carnn_dataset *data, size_t *times,
                                                  carnn_error *error) {
    char expected[64];
    size_t i, wrong;
    for (i = 0; i < data->choice_count; i++) times[data->choices[i]] = 1;
    for (wrong = 0; wrong < data->item_count && times[data->items[wrong].target];) wrong++;
    memset(times, 0, data->text_count * sizeof *times);
    if (wrong == data->item_count) return CARNN_OK;
    snprintf(expected, sizeof expected, "one of the %zu candidates as response",
             data->choice_count);
    return carnn__target_fail(data, wrong, expected, error);
}

static carnn_status carnn__dialog_build(carnn_model *model, const carnn_dataset *data,
                                        carnn_error *error) {
    const carnn_allocator *a = &model->allocator;
    size_t *times = (size_t *)carnn__alloc_zero(a, data->text_count, sizeof *times), i;
    carnn__vocabulary v;
    carnn_status status = times ? carnn__dialog_check_responses(data, times, error)
                                : carnn__out_of_memory(error);
    if (!status) status = carnn__model_choices(model, data, error);
    if (!status) {
        for (i = 0; i < data->member_count; i++) times[data->members[i].text]++;
        carnn__model_vocabulary(&v, model, error);
        if (model->desc.unsure) {
            carnn__vocabulary_add(&v, CARNN__SPACES, CARNN__UNSURE_WORD, 7, 0);
            v.reserved = v.words.count;
        }
        for (i = 0; i < data->text_count; i++) {
            carnn__span text = carnn__text(data, i);
            carnn__vocabulary_add(&v, CARNN__WORDS, text.at, text.length, carnn__max(times[i], 1));
        }
        status = carnn__vocabulary_close(&v, (size_t)model->desc.min_count, &model->words);
    }
    carnn__free(a, times);
    return status;
}

#endif

/* --- names that are exchanged in training -------------------------------------------------------
   A model that sees a name in few dialogs learns it by heart. So that it learns to copy names,
   those of a CLASS are permuted in a training dialog, by chance and anew in each epoch, in all of
   its lines and in its replies; a reply that is no candidate then is one in this batch. Classes are
   found in the data; two columns are one class that share half of the names, or of the places in
   candidates, that the smaller one has. Columns are

     the first words of facts "subject relation object", the objects of each relation, and the
     arguments of "api_call" in candidates, by their place.

   A relation is a word that stands in the middle of such facts and is said in no turn. No names are
   numbers, relations, words of two classes, and words that are not copied: more than one in twenty
   of the replies that have them come before they have been said ("you can ask for ..." where a
   restaurant is called ask). A class of which more than a fifth is not copied is none. Words that
   no dialog has are of the class whose names stand in their place in other candidates. */

#define CARNN__EXCHANGE_SLOTS 16   /* the subjects, then arguments of api_call */
#define CARNN__EXCHANGE_COLUMNS 64 /* the others are objects of relations, where there is room */

typedef struct carnn__exchange {
    size_t classes, *at; /* class c: name[at[c]] .. name[at[c + 1] - 1] */
    uint32_t *name;      /* words, class by class */
    uint32_t *of;        /* (V) the class of a word, or CARNN__NO_INDEX */
    unsigned char *list; /* (token lists) has it names? */
    size_t longest;      /* words of a candidate */
} carnn__exchange;

typedef struct carnn__columns { /* where words stand */
    const carnn__work *work;
    carnn__lists said;   /* words of the candidates, without a speaker's */
    uint32_t call;       /* "api_call", or CARNN__NO_INDEX */
    unsigned char *turn; /* (V) is a word said in a turn, api_calls aside? 2: in facts alone */
    uint64_t *in;        /* (V) bits: the columns of a word */
    uint32_t relation[CARNN__EXCHANGE_COLUMNS];
    size_t relations;
} carnn__columns;

static int carnn__exchange_calls(const carnn__columns *x, const uint32_t *ids, size_t n) {
    return n > 1 && ids[0] == x->call;
}

/* Where is each word said? */
static void carnn__exchange_turns(carnn__columns *x) {
    const carnn_dataset *data = x->work->data;
    const carnn__corpus *c = carnn__corpus_of(x->work);
    size_t i, k;
    for (i = 0; i < data->member_count; i++) {
        size_t list = c->list[i], at = c->tokens.at[list], n = carnn__list_length(&c->tokens, list);
        int turn = data->members[i].role != CARNN_FACT;
        if (carnn__exchange_calls(x, c->tokens.ids + at, n)) turn = 0;
        for (k = at; k < at + n; k++) {
            unsigned char *said = &x->turn[c->tokens.ids[k]];
            if (turn) *said = 1;
            else if (!*said) *said = 2;
        }
    }
}

/* The column of the objects of a relation; 0: there is no room. */
static size_t carnn__exchange_column(carnn__columns *x, uint32_t relation) {
    size_t r = 0;
    while (r < x->relations && x->relation[r] != relation) r++;
    if (r + CARNN__EXCHANGE_SLOTS == CARNN__EXCHANGE_COLUMNS) return 0;
    if (r == x->relations) x->relation[x->relations++] = relation;
    return CARNN__EXCHANGE_SLOTS + r;
}

/* Fills x->in. */
static void carnn__exchange_columns(carnn__columns *x) {
    const carnn_dataset *data = x->work->data;
    const carnn__corpus *c = carnn__corpus_of(x->work);
    const carnn__names *words = &x->work->model->words;
    size_t i, k;
    for (i = 0; i < data->member_count; i++) { /* three words, and the one of facts */
        const uint32_t *ids = c->tokens.ids + c->tokens.at[c->list[i]];
        size_t column;
        if (data->members[i].role != CARNN_FACT || ids[0] == x->call ||
            carnn__list_length(&c->tokens, c->list[i]) != 4 || x->turn[ids[1]] != 2 ||
            (column = carnn__exchange_column(x, ids[1])) == 0)
            continue;
        x->in[ids[0]] |= 1;
        x->in[ids[2]] |= (uint64_t)1 << column;
    }
    for (i = 0; i < x->said.count; i++) {
        const uint32_t *ids = x->said.ids + x->said.at[i];
        size_t n = carnn__list_length(&x->said, i);
        for (k = 1; carnn__exchange_calls(x, ids, n) && k < n && k < CARNN__EXCHANGE_SLOTS; k++)
            x->in[ids[k]] |= (uint64_t)1 << k;
    }
    x->in[0] = 0;
    for (i = 0; i < x->relations; i++) x->in[x->relation[i]] = 0;
    for (i = 0; i < words->count; i++) {
        carnn__span word = {carnn__names_get(words, i), carnn__names_length(words, i)};
        if (carnn__digits(word) == word.length) x->in[i] = 0;
    }
}

/* Adds to both[a][b] for each two bits a >= b. */
static void carnn__exchange_count(size_t both[][CARNN__EXCHANGE_COLUMNS], uint64_t bits) {
    size_t a, b;
    for (a = 0; bits && a < CARNN__EXCHANGE_COLUMNS; a++)
        for (b = 0; b <= a; b++) both[a][b] += bits >> a & bits >> b & 1;
}

/* Of columns that have half of their counts in common, class_of becomes the same. */
static void carnn__exchange_merge(size_t both[][CARNN__EXCHANGE_COLUMNS], uint32_t *class_of) {
    size_t a, b, k;
    for (a = 0; a < CARNN__EXCHANGE_COLUMNS; a++)
        for (b = 0; b < a; b++) {
            uint32_t low = class_of[a] < class_of[b] ? class_of[a] : class_of[b];
            uint32_t high = class_of[a] ^ class_of[b] ^ low;
            if (!both[a][b] || 2 * both[a][b] < carnn__min(both[a][a], both[b][b])) continue;
            for (k = 0; k < CARNN__EXCHANGE_COLUMNS; k++)
                if (class_of[k] == high) class_of[k] = low;
        }
}

/* The class of each word by its columns, where they are of one class. */
static void carnn__exchange_words(const carnn__columns *x, uint32_t *of) {
    size_t both[CARNN__EXCHANGE_COLUMNS][CARNN__EXCHANGE_COLUMNS], V, i, a;
    uint32_t class_of[CARNN__EXCHANGE_COLUMNS];
    V = x->work->model->words.count;
    memset(both, 0, sizeof both);
    for (a = 0; a < CARNN__EXCHANGE_COLUMNS; a++) class_of[a] = (uint32_t)a;
    for (i = 0; i < V; i++) carnn__exchange_count(both, x->in[i]);
    carnn__exchange_merge(both, class_of);
    for (i = 0; i < V; i++) {
        int classes = 0;
        for (a = 0; a < CARNN__EXCHANGE_COLUMNS; a++) {
            if (!(x->in[i] >> a & 1) || (classes && of[i] == class_of[a])) continue;
            of[i] = class_of[a];
            classes++;
        }
        if (classes != 1) of[i] = CARNN__NO_INDEX;
    }
}

/* Takes words out of their classes that replies have before they are said. times (3 V): zeros */
static void carnn__exchange_copied(const carnn__columns *x, uint32_t *of, uint64_t *times) {
    const carnn_dataset *data = x->work->data;
    const carnn__corpus *c = carnn__corpus_of(x->work);
    size_t V = x->work->model->words.count, i, k, line = 0;
    size_t asked[CARNN__EXCHANGE_COLUMNS] = {0}, missed[CARNN__EXCHANGE_COLUMNS] = {0};
    uint64_t *said = times, *replies = said + V, *copied = replies + V; /* said: in which dialog */
    for (i = 0; i < data->item_count; i++) {
        const carnn__item *item = &data->items[i];
        size_t target = c->target[i], dialog = (size_t)item->group + 1;
        if (!i || item->group != item[-1].group) line = item->first;
        for (; line < item->first + item->count; line++)
            for (k = c->tokens.at[c->list[line]]; k < c->tokens.at[c->list[line] + 1]; k++)
                said[c->tokens.ids[k]] = dialog;
        if (target == CARNN__NO_INDEX) continue;
        for (k = x->said.at[target]; k < x->said.at[target + 1]; k++) {
            replies[x->said.ids[k]]++;
            copied[x->said.ids[k]] += said[x->said.ids[k]] == dialog;
        }
    }
    for (i = 0; i < V; i++) {
        if (of[i] == CARNN__NO_INDEX) continue;
        asked[of[i]] += replies[i] > 0;
        if (20 * (replies[i] - copied[i]) <= replies[i]) continue;
        missed[of[i]]++;
        x->in[i] = 0;
    }
    for (i = 0; i < V; i++)
        if (of[i] != CARNN__NO_INDEX && (!x->in[i] || 5 * missed[of[i]] > asked[of[i]]))
            of[i] = CARNN__NO_INDEX;
}

/* The key of a place in a candidate, whose names and unknown words may be any. */
static uint64_t carnn__exchange_place(const carnn__columns *x, const uint32_t *of, size_t i,
                                      size_t k) {
    size_t n = carnn__list_length(&x->said, i), j;
    uint64_t key = carnn__stream(n, k);
    for (j = 0; j < n; j++) {
        uint32_t word = x->said.ids[x->said.at[i] + j];
        int any = of[word] != CARNN__NO_INDEX || !x->turn[word];
        key = carnn__stream(key, any ? UINT64_MAX : word);
    }
    return key;
}

/* Classes that share places in candidates become one; then words that no dialog has get theirs.
   table (2, slots): zeros; keys of places, and bits: the classes of the names there. */
static void carnn__exchange_places(const carnn__columns *x, uint32_t *of, uint64_t *table,
                                   size_t slots) {
    size_t both[CARNN__EXCHANGE_COLUMNS][CARNN__EXCHANGE_COLUMNS], i, k, pass;
    uint32_t class_of[CARNN__EXCHANGE_COLUMNS];
    uint64_t *there = table + slots;
    memset(both, 0, sizeof both);
    for (i = 0; i < CARNN__EXCHANGE_COLUMNS; i++) class_of[i] = (uint32_t)i;
    for (pass = 0; pass < 2; pass++) {
        for (i = 0; i < x->said.count; i++)
            for (k = x->said.at[i]; k < x->said.at[i + 1]; k++) {
                uint32_t word = x->said.ids[k], *of_word = &of[word];
                int named = *of_word != CARNN__NO_INDEX;
                uint64_t key;
                size_t slot;
                if (pass ? named || x->turn[word] : !named) continue;
                key = carnn__exchange_place(x, of, i, k - x->said.at[i]);
                slot = (size_t)key & (slots - 1);
                while (there[slot] && table[slot] != key) slot = (slot + 1) & (slots - 1);
                if (!pass) {
                    table[slot] = key;
                    there[slot] |= (uint64_t)1 << *of_word;
                } else if (there[slot]) {
                    for (*of_word = 0; !(there[slot] >> *of_word & 1);) ++*of_word;
                }
            }
        for (i = 0; !pass && i < slots; i++) carnn__exchange_count(both, there[i]);
    }
    carnn__exchange_merge(both, class_of);
    for (i = 0; i < x->work->model->words.count; i++)
        if (of[i] != CARNN__NO_INDEX) of[i] = class_of[of[i]];
}

/* Lists the names of each class that has two. */
static void carnn__exchange_list(carnn__exchange *e, const carnn__columns *x) {
    size_t V = x->work->model->words.count, n = 0, a, i;
    for (a = 0; a < CARNN__EXCHANGE_COLUMNS; a++) {
        for (e->at[e->classes] = n, i = 0; i < V; i++)
            if (e->of[i] == a) e->name[n++] = (uint32_t)i;
        if (n - e->at[e->classes] > 1) e->at[++e->classes] = n;
        else n = e->at[e->classes];
    }
    memset(e->of, 0xFF, V * sizeof *e->of);
    for (a = 0; a < e->classes; a++)
        for (i = e->at[a]; i < e->at[a + 1]; i++) e->of[e->name[i]] = (uint32_t)a;
}

static int carnn__exchange_has(const carnn__exchange *e, const carnn__lists *lists, size_t list) {
    size_t k;
    for (k = lists->at[list]; k < lists->at[list + 1]; k++)
        if (e->of[lists->ids[k]] != CARNN__NO_INDEX) return 1;
    return 0;
}

/* --- names at work, in a batch --------------------------------------------------------------- */

/* Streams of a step's random numbers; each chunk has its own, from the last one on. */
enum { CARNN__EXCHANGE_NAMES, CARNN__DROP_UTTERANCES, CARNN__DROP_SUMMARY };
#define CARNN__ODD_TURNS UINT64_MAX

typedef struct carnn__exchanged {
    const carnn__exchange *classes;
    const carnn__lists *own; /* candidates, then <start> */
    uint32_t *drawn;         /* (names) */
    uint32_t *image;         /* (V) what each word is in the dialog at hand; NULL: no exchange */
    carnn__lists said;       /* (U) the utterances of the batch */
    carnn__lists more;       /* (R) replies that are no candidates */
    uint32_t *slot;          /* (slots) candidates and these, by their words */
    size_t slots;            /* a power of two */
} carnn__exchanged;

static const uint32_t *carnn__exchanged_list(const carnn__exchanged *m, size_t i, size_t *n) {
    size_t L = m->own->count - 1;
    const carnn__lists *lists = i < L ? m->own : &m->more;
    i -= i < L ? 0 : L;
    *n = carnn__list_length(lists, i);
    return lists->ids + lists->at[i];
}

/* The slot of a list of words, or the free one where it belongs. */
static size_t carnn__exchanged_slot(const carnn__exchanged *m, const uint32_t *ids, size_t n) {
    uint64_t hash = n;
    size_t i, slot, length;
    for (i = 0; i < n; i++) hash = carnn__stream(hash, ids[i]);
    for (slot = (size_t)hash & (m->slots - 1); m->slot[slot] != CARNN__NO_INDEX;
         slot = (slot + 1) & (m->slots - 1)) {
        const uint32_t *other = carnn__exchanged_list(m, m->slot[slot], &length);
        if (length == n && !memcmp(ids, other, n * sizeof *ids)) break;
    }
    return slot;
}

static void carnn__exchanged_plan(carnn__plan *p, carnn__exchanged *m, const carnn__exchange *e,
                                  const carnn__lists *own, const carnn__corpus *c, size_t U,
                                  size_t R) {
    const carnn_dataset *data = p->work->data;
    size_t V = p->model->words.count, words = 0, L = own->count - 1, i, n;
    for (i = 0; i < data->member_count; i++) words += carnn__list_length(&c->tokens, c->list[i]);
    for (m->slots = 2; m->slots / 2 < L + R;) m->slots *= 2;
    m->classes = e;
    m->own = own;
    m->drawn = (uint32_t *)carnn__take(p->arena, V, sizeof(uint32_t));
    m->image = (uint32_t *)carnn__take(p->arena, V, sizeof(uint32_t));
    m->said.at = (size_t *)carnn__take(p->arena, U + 1, sizeof(size_t));
    m->said.ids = (uint32_t *)carnn__take(p->arena, carnn__min(words, U * c->most_steps) + 1,
                                          sizeof(uint32_t));
    m->more.at = (size_t *)carnn__take(p->arena, R + 1, sizeof(size_t));
    m->more.ids = (uint32_t *)carnn__take(p->arena, R * e->longest + 1, sizeof(uint32_t));
    m->slot = (uint32_t *)carnn__take(p->arena, m->slots, sizeof(uint32_t));
    if (!m->slot) return;
    for (i = 0; i < V; i++) m->image[i] = (uint32_t)i;
    memset(m->slot, 0xFF, m->slots * sizeof(uint32_t));
    for (i = 0; i < L; i++) {
        const uint32_t *ids = carnn__exchanged_list(m, i, &n);
        size_t slot = carnn__exchanged_slot(m, ids, n);
        if (m->slot[slot] == CARNN__NO_INDEX) m->slot[slot] = (uint32_t)i;
    }
}

/* Forgets the batch. What was put into the table last is taken out first. */
static void carnn__exchanged_clear(carnn__exchanged *m) {
    size_t n;
    while (m->more.count) {
        const uint32_t *ids = carnn__exchanged_list(m, m->own->count - 2 + m->more.count, &n);
        m->slot[carnn__exchanged_slot(m, ids, n)] = CARNN__NO_INDEX;
        m->more.count--;
    }
    m->more.at[0] = m->said.at[0] = m->said.count = 0;
}

/* Draws permutations of the names for a dialog, that of item `first`. */
static void carnn__exchanged_draw(carnn__exchanged *m, uint64_t key, size_t first) {
    const carnn__exchange *e = m->classes;
    size_t i;
    key = carnn__stream(carnn__stream(key, CARNN__EXCHANGE_NAMES), first);
    memcpy(m->drawn, e->name, e->at[e->classes] * sizeof *m->drawn);
    for (i = 0; i < e->classes; i++)
        carnn__shuffle(carnn__stream(key, i), m->drawn + e->at[i], e->at[i + 1] - e->at[i]);
    for (i = 0; i < e->at[e->classes]; i++) m->image[e->name[i]] = m->drawn[i];
}

/* Appends a list, with the names of the dialog at hand; returns its length. */
static size_t carnn__exchanged_add(const carnn__exchanged *m, carnn__lists *to,
                                   const carnn__lists *from, size_t list) {
    size_t at = to->at[to->count], n = carnn__list_length(from, list), k;
    for (k = 0; k < n; k++) to->ids[at + k] = m->image[from->ids[from->at[list] + k]];
    to->at[++to->count] = at + n;
    return n;
}

/* Appends an utterance; <start>, which has no list, is empty here. */
static void carnn__exchanged_say(carnn__exchanged *m, const carnn__lists *tokens, size_t list) {
    if (list < tokens->count) {
        carnn__exchanged_add(m, &m->said, tokens, list);
        return;
    }
    m->said.at[m->said.count + 1] = m->said.at[m->said.count];
    m->said.count++;
}

/* The number of a reply with these names among the candidates of the batch. */
static uint32_t carnn__exchanged_answer(carnn__exchanged *m, uint32_t target) {
    size_t n, slot, list;
    if (target == CARNN__NO_INDEX || !carnn__exchange_has(m->classes, m->own, target))
        return target;
    list = m->own->count - 1 + m->more.count;
    n = carnn__exchanged_add(m, &m->more, m->own, target);
    slot = carnn__exchanged_slot(m, m->more.ids + m->more.at[m->more.count - 1], n);
    if (m->slot[slot] == CARNN__NO_INDEX) m->slot[slot] = (uint32_t)list;
    else m->more.count--;
    return m->slot[slot];
}

/* --- parts --------------------------------------------------------------------------------------
   D: hidden size; L candidates; a batch has R turns and U utterances, a chunk B turns, N rows and T
   steps at most. */

typedef struct carnn__said { /* an utterance that a session keeps for explanations */
    uint32_t role;
    char text[160];          /* its first bytes */
} carnn__said;

typedef struct carnn__dialog {
    carnn__net net;
    carnn__list_encoder words;
    carnn__cell cell;
    carnn__cell_run run;
    carnn__lists own;        /* words of the candidates, then those of <start> */
    int ready;               /* where nothing is learnt: has been done what is done once */
    carnn__exchange exchange;
    /* of the data */
    uint32_t *seq;           /* the dialogs as token lists: <start>, then the lines that are kept */
    uint32_t *place;         /* of each of them, the number in the batch */
    uint32_t *first, *end;   /* (items) the history and the user's utterance: seq[first .. end] */
    /* of the batch at hand */
    uint32_t *local, *which; /* a token list's number in the batch, or none; its reverse (U) */
    uint32_t *turn;          /* (R) items */
    size_t inputs, turns;    /* U, R */
    uint32_t *answer;        /* (R) the right candidate */
    carnn__exchanged names;  /* while names are exchanged */
    carnn__lists odd;        /* (R) what is said without a meaning: rows of e from number U on */
    uint32_t *latest;        /* (R) what the user has said: a row of e */
    unsigned char *right;    /* (R) was the turn answered rightly? */
    unsigned char *declined; /* (R) was it not answered, as the model was unsure? */
    carnn__mat e, y, all;    /* utterances (U, D); candidates (L, D); logits (R, L), if asked for */
    float *packed_y;         /* where nothing is learnt: y, which is then a panel of it */
    /* of the chunk at hand, which begins with turn `from` of the batch */
    size_t from, *start;     /* start (T + 2) */
    carnn__packed packed;
    uint32_t *length, *rank, *context, *label, *index; /* (B), the last one (N) */
    carnn__mat c, o, weight; /* (B, D), (B, D), alpha (B, T) */
    float *dh, *z, *loss;    /* (N, D), (B, L) logits, then their gradient, (B) */
    /* of a session */
    size_t slots, heard;     /* rows of e; heard: slot 0 is the oldest, <start> at first */
    size_t projected, facts; /* so many are projected; facts in a row up to the latest one */
    carnn__said *said;       /* (slots) */
} carnn__dialog;

/* The words of the candidates, without a speaker's; returns their number. NULL: only counts. */
static size_t carnn__dialog_candidates(const carnn_model *model, uint32_t *ids, size_t *at) {
    const carnn__names *names = &model->choices;
    size_t n = 0, i;
    for (i = 0; i < names->count; i++) {
        if (ids) at[i] = n;
        if (i == model->unsure) {
            if (ids) ids[n] = carnn__names_find(&model->words, CARNN__UNSURE_WORD, 7);
            n++;
            continue;
        }
        n += carnn__dialog_tokens(model, carnn__string(names->bytes, names->at, i), 0,
                                  ids ? ids + n : NULL, ids ? SIZE_MAX : 0) - 1;
    }
    if (ids) at[names->count] = n;
    return n;
}

/* The words of the candidates, then those of <start>. */
static void carnn__dialog_plan_lists(carnn__plan *p, carnn__dialog *m) {
    size_t L = p->model->choices.count, n = carnn__dialog_candidates(p->model, NULL, NULL);
    m->own.count = L + 1;
    m->own.at = (size_t *)carnn__take(p->arena, L + 2, sizeof(size_t));
    m->own.ids = (uint32_t *)carnn__take(p->arena, n + 1, sizeof(uint32_t));
    if (!m->own.ids) return;
    carnn__dialog_candidates(p->model, m->own.ids, m->own.at);
    m->own.ids[n] = CARNN__DIALOG_START;
    m->own.at[L + 1] = n + 1;
}

/* Finds the classes of names, where they are exchanged, and cuts the data. */
static carnn_status carnn__dialog_pieces(carnn__work *work, carnn_error *error) {
    carnn__exchange *e = &((carnn__dialog *)work->state)->exchange;
    carnn__corpus *c = carnn__corpus_of(work);
    const carnn_allocator *a = &work->allocator;
    const carnn_model *model = work->model;
    size_t V = model->words.count, L = model->choices.count, lists = c->tokens.count, n, slots, i;
    void *scratch = NULL; /* carnn__own */
    uint64_t *table;
    carnn__columns x;
    if (!work->g || carnn__option(model, CARNN__DIALOG_EXCHANGE) <= 0.0)
        return carnn__corpus_cut(work, error);
    n = carnn__dialog_candidates(model, NULL, NULL);
    for (slots = 2; slots / 2 < n;) slots *= 2;
    memset(&x, 0, sizeof x);
    x.work = work;
    x.call = carnn__names_find(&model->words, "api_call", 8);
    x.said.count = L;
    x.said.at = (size_t *)carnn__own(&scratch, a, L + 1, sizeof(size_t));
    x.said.ids = (uint32_t *)carnn__own(&scratch, a, n + 1, sizeof(uint32_t));
    x.turn = (unsigned char *)carnn__own(&scratch, a, V, 1);
    x.in = (uint64_t *)carnn__own(&scratch, a, V, sizeof *x.in);
    table = (uint64_t *)carnn__own(&scratch, a, carnn__max(2 * slots, 3 * V), sizeof *table);
    e->at = (size_t *)carnn__own(&c->blocks, a, CARNN__EXCHANGE_COLUMNS + 1, sizeof *e->at);
    e->name = (uint32_t *)carnn__own(&c->blocks, a, V, sizeof *e->name);
    e->of = (uint32_t *)carnn__own(&c->blocks, a, V, sizeof *e->of);
    e->list = (unsigned char *)carnn__own(&c->blocks, a, lists + 1, 1);
    if (!x.said.at || !x.said.ids || !x.turn || !x.in || !table || !e->at || !e->name || !e->of ||
        !e->list) {
        carnn__disown(&scratch, a);
        return carnn__out_of_memory(error);
    }
    memset(x.turn, 0, V);
    memset(x.in, 0, V * sizeof *x.in);
    carnn__dialog_candidates(model, x.said.ids, x.said.at);
    if (model->unsure < L) x.turn[x.said.ids[x.said.at[model->unsure]]] = 1; /* no name */
    carnn__exchange_turns(&x);
    carnn__exchange_columns(&x);
    carnn__exchange_words(&x, e->of);
    memset(table, 0, 3 * V * sizeof *table);
    carnn__exchange_copied(&x, e->of, table);
    memset(table, 0, 2 * slots * sizeof *table);
    carnn__exchange_places(&x, e->of, table, slots);
    carnn__exchange_list(e, &x);
    for (i = 0; i < L; i++) e->longest = carnn__max(e->longest, carnn__list_length(&x.said, i));
    for (i = 0; i < lists; i++) e->list[i] = (unsigned char)carnn__exchange_has(e, &c->tokens, i);
    e->list[lists] = 0; /* <start> */
    carnn__disown(&scratch, a);
    return carnn__corpus_cut(work, error);
}

/* The dialogs without facts that are skipped, up to the last utterance that has an answer. */
static void carnn__dialog_plan_lines(carnn__plan *p, carnn__dialog *m) {
    const carnn_dataset *data = p->work->data;
    const carnn__corpus *c = &m->net.corpus;
    size_t history = carnn__dialog_most(p->model, CARNN__DIALOG_HISTORY, CARNN__HISTORY_LINES);
    size_t rows = carnn__dialog_most(p->model, CARNN__DIALOG_KB_ROWS, SIZE_MAX), items, i;
    size_t at = 0, start = 0, line = 0, facts = 0;
    uint32_t **of_item[] = {&m->first, &m->end};
    items = data->item_count;
    carnn__take_indices(p->arena, of_item, CARNN__COUNT(of_item), items);
    m->seq = (uint32_t *)carnn__take(p->arena, data->member_count + items, sizeof(uint32_t));
    m->place = (uint32_t *)carnn__take(p->arena, data->member_count + items, sizeof(uint32_t));
    for (i = 0; m->seq && i < items; i++) {
        const carnn__item *x = &data->items[i];
        if (!i || x->group != x[-1].group) {
            start = at;
            m->seq[at++] = (uint32_t)c->tokens.count; /* <start> is no text of the data */
            line = x->first;
            facts = 0;
        }
        for (; line < x->first + x->count; line++) {
            facts = data->members[line].role == CARNN_FACT ? facts + 1 : 0;
            if (facts <= rows) m->seq[at++] = c->list[line];
        }
        m->end[i] = (uint32_t)at - 1;
        m->first[i] = (uint32_t)(at - 1 - carnn__min(at - 1 - start, history));
    }
}

static void carnn__dialog_plan_batch(carnn__plan *p, carnn__dialog *m, size_t D, size_t L) {
    const carnn__corpus *c = &m->net.corpus;
    const carnn__work *work = p->work;
    size_t R = c->most_items, B = carnn__min(R, CARNN__DIALOG_CHUNK), lists = c->tokens.count + 1;
    size_t T = carnn__min(c->most_texts / carnn__max(R, 1), CARNN__HISTORY_LINES) + 1;
    size_t N = carnn__min(B * T, CARNN__DIALOG_ROWS), exchanges = work->g && m->exchange.classes;
    size_t U = exchanges ? c->most_size[0] : carnn__min(c->most_size[0], lists);
    size_t more = exchanges ? R : 0; /* candidates */
    size_t odd = work->g && p->model->unsure < L ? R : 0;
    uint32_t **indices[] = {&m->which, &m->turn, &m->length, &m->rank, &m->context, &m->label,
                            &m->index, &m->answer, &m->latest};
    if (exchanges) carnn__exchanged_plan(p, &m->names, &m->exchange, &m->own, c, U, R);
    carnn__take_indices(p->arena, indices, CARNN__COUNT(indices),
                        carnn__max(carnn__max(U, R), carnn__max(B, N)));
    m->local = (uint32_t *)carnn__take(p->arena, lists, sizeof(uint32_t));
    if (m->local) memset(m->local, 0xFF, lists * sizeof(uint32_t));
    m->right = (unsigned char *)carnn__take(p->arena, R, 1);
    m->declined = (unsigned char *)carnn__take(p->arena, R, 1);
    if (odd) {
        m->odd.at = (size_t *)carnn__take(p->arena, R + 1, sizeof(size_t));
        m->odd.ids = (uint32_t *)carnn__take(p->arena, R * (CARNN__ODD_WORDS + 1), sizeof(uint32_t));
    }
    m->start = (size_t *)carnn__take(p->arena, T + 2, sizeof(size_t));
    m->e = carnn__plan_mat(p, U + odd, D);
    m->y = carnn__plan_mat(p, work->g ? L + more : work->engine->k->tile_columns, D);
    m->packed_y = carnn__floats(p->arena, 1, work->g ? 0 : carnn__packed_size(L, D));
    if (work->voting || work->wanted) m->all = carnn__plan_mat(p, R, L);
    m->c = carnn__plan_mat(p, B, D);
    m->o = carnn__plan_mat(p, B, D);
    m->weight = carnn__plan_mat(p, B, T);
    m->z = carnn__floats(p->arena, B, L + more);
    m->loss = carnn__floats(p->arena, 1, B);
    m->dh = carnn__floats(p->arena, work->g ? N : 0, D);
    carnn__cell_plan(&m->run, &m->cell, &p->model->params, work->w, work->g, p->arena, U + odd,
                     N, B, NULL);
}

static void carnn__dialog_parts(carnn__plan *p, void *state) {
    carnn__dialog *m = (carnn__dialog *)state;
    size_t D = (size_t)p->model->desc.hidden;
    carnn__list_encoder_plan(p, &m->words, D);
    carnn__cell_declare(&m->cell, p->store, "cell", carnn__cell_number(p->model->desc.cell), D, D,
                        D);
    if (!p->arena) return;
    m->inputs = m->turns = m->names.more.count = m->odd.count = 0;
    m->ready = 0;
    carnn__dialog_plan_lists(p, m);
    carnn__dialog_plan_lines(p, m);
    carnn__dialog_plan_batch(p, m, D, p->model->choices.count);
}

/* Replaces what the user says in some turns of the batch by words that mean nothing, without an
   answer: mostly unknown words between words of other turns and of the vocabulary. */
static void carnn__dialog_odd(carnn__work *work, uint64_t key) {
    carnn__dialog *m = (carnn__dialog *)work->state;
    const carnn__lists *tokens = &m->net.corpus.tokens;
    size_t turn, k, n, most = work->data->item_count;
    m->odd.count = m->odd.at[0] = 0;
    for (turn = 0; turn < m->turns; turn++) {
        uint64_t own = carnn__stream(carnn__stream(key, CARNN__ODD_TURNS), m->turn[turn]);
        size_t unknown = 1 + (size_t)(carnn__random(own, 0) & 3); /* fourths of the words */
        uint32_t *ids = m->odd.ids + m->odd.at[m->odd.count];
        if (carnn__random(own, 1) % CARNN__ODD_SHARE) continue;
        n = 1 + (size_t)(carnn__random(own, 2) % CARNN__ODD_WORDS);
        for (k = 0; k < n; k++) {
            size_t item = (size_t)(carnn__random(own, 4 * k + 4) % most);
            size_t list = m->seq[m->end[item]], words = carnn__list_length(tokens, list) - 1;
            uint64_t drawn = carnn__random(own, 4 * k + 5), kind = carnn__random(own, 4 * k + 6);
            ids[k] = 0;
            if (n < 3 || (kind & 3) < unknown) continue;
            if (kind & 4) ids[k] = tokens->ids[drawn % tokens->at[tokens->count]];
            else if (words) ids[k] = tokens->ids[tokens->at[list] + drawn % words];
            if (ids[k] <= work->model->task->reserved_count) ids[k] = 0; /* speakers */
        }
        ids[n] = CARNN__DIALOG_SPEAKER + CARNN_USER;
        m->latest[turn] = (uint32_t)(m->inputs + m->odd.count);
        m->answer[turn] = work->model->unsure;
        m->odd.at[m->odd.count + 1] = m->odd.at[m->odd.count] + n + 1;
        m->odd.count++;
    }
}

/* Lists the turns of a batch and the distinct utterances of their dialogs; number 0 is <start>. By
   key names are exchanged: an utterance with names is another one in each dialog. */
static void carnn__dialog_collect(carnn__dialog *m, size_t number, uint64_t key) {
    const carnn__corpus *c = &m->net.corpus;
    carnn__exchanged *names = m->names.image ? &m->names : NULL;
    size_t i, j, at = 0; /* turns */
    for (i = 0; i < m->inputs; i++) m->local[m->which[i]] = CARNN__NO_INDEX;
    m->inputs = m->turns = 0;
    if (names) carnn__exchanged_clear(names);
    for (i = c->batch_start[number]; i < c->batch_start[number + 1]; i++) {
        const carnn__batch_piece *dialog = &c->pieces[c->queue[i]];
        size_t first = dialog->first, last = first + dialog->count - 1;
        size_t line = first ? m->end[first - 1] + 1 : 0;
        if (names) carnn__exchanged_draw(names, key, first);
        for (j = first; j <= last; j++) {
            m->answer[m->turns] = c->target[j];
            if (names) m->answer[m->turns] = carnn__exchanged_answer(names, c->target[j]);
            m->turn[m->turns++] = (uint32_t)j;
        }
        for (j = line; j <= m->end[last]; j++) {
            uint32_t *known = &m->local[m->seq[j]];
            if (*known == CARNN__NO_INDEX) {
                *known = (uint32_t)m->inputs;
                m->which[m->inputs++] = m->seq[j];
                if (names) carnn__exchanged_say(names, &c->tokens, m->seq[j]);
            }
            m->place[j] = *known;
        }
        for (j = first; j <= last; j++) m->latest[at++] = m->place[m->end[j]];
        for (j = line; names && j <= m->end[last]; j++)
            if (m->exchange.list[m->seq[j]]) m->local[m->seq[j]] = CARNN__NO_INDEX;
    }
}

static void carnn__dialog_utterances(const carnn__work *work, int backward) {
    const carnn__dialog *m = (const carnn__dialog *)work->state;
    carnn__encode_lists(work, &m->words, &m->own, m->own.count - 1, NULL, 1, &m->e, 0, backward);
    if (m->names.image)
        carnn__encode_lists(work, &m->words, &m->names.said, 1, NULL, m->inputs - 1, &m->e, 1,
                            backward);
    else
        carnn__encode_lists(work, &m->words, &m->net.corpus.tokens, 0, m->which + 1, m->inputs - 1,
                            &m->e, 1, backward);
    if (m->odd.count)
        carnn__encode_lists(work, &m->words, &m->odd, 0, NULL, m->odd.count, &m->e, m->inputs,
                            backward);
}

/* Packs the recurrent weights and encodes the candidates; where nothing is learnt only once, and
   the candidates are packed, too, panel by panel. */
static void carnn__dialog_ready(const carnn__work *work) {
    carnn__dialog *m = (carnn__dialog *)work->state;
    carnn__engine *e = work->engine;
    size_t L = m->own.count - 1, D = m->y.columns, width = work->g ? L : e->k->tile_columns, i, end;
    if (m->ready) return;
    carnn__cell_ready(&m->run, e);
    for (i = 0; i < L; i = end) {
        end = carnn__min(i + width, L);
        carnn__encode_lists(work, &m->words, &m->own, i, NULL, end - i, &m->y, 0, 0);
        if (!work->g) carnn__pack_columns(e, CARNN__NT, L, D, i, end, m->y.x, D, m->packed_y);
    }
    m->ready = !work->g;
}

/* --- a chunk of turns ------------------------------------------------------------------------ */

/* Packs the histories of as many turns from m->from on as fit into a chunk; returns how many. */
static size_t carnn__dialog_pack(carnn__dialog *m) {
    size_t B = 0, rows = 0, b, t;
    for (; m->from + B < m->turns && B < CARNN__DIALOG_CHUNK; B++) {
        size_t item = m->turn[m->from + B];
        m->length[B] = m->end[item] - m->first[item] + 1;
        rows += m->length[B];
        if (rows > CARNN__DIALOG_ROWS) break;
    }
    carnn__pack_sequences(&m->packed, m->length, B, m->rank, m->start);
    for (b = 0; b < B; b++) {
        size_t item = m->turn[m->from + m->rank[b]];
        for (t = 0; t < m->length[m->rank[b]]; t++)
            m->index[m->start[t] + b] = m->place[m->first[item] + t];
        m->context[b] = m->index[m->start[t - 1] + b] = m->latest[m->from + m->rank[b]];
        m->label[b] = m->answer[m->from + m->rank[b]];
    }
    return B;
}

static carnn__attention carnn__dialog_attention(const carnn__dialog *m) {
    carnn__attention a = {&m->packed, m->e.columns, m->index, m->run.scan.out, m->e.x, m->c.x,
                          m->weight.x, m->weight.d, m->o.x, m->o.d, m->dh, m->c.d};
    return a;
}

/* The candidates of the batch at hand, with those that exchanged names make. */
static size_t carnn__dialog_choices(const carnn__dialog *m) {
    return m->own.count - 1 + m->names.more.count;
}

/* From the packed histories to the logits of the candidates: z = o y^T. */
static void carnn__dialog_forward(carnn__work *work, uint64_t key) {
    carnn__dialog *m = (carnn__dialog *)work->state;
    carnn__engine *e = work->engine;
    carnn__attention a = carnn__dialog_attention(m);
    size_t B = m->packed.sequences, D = m->e.columns, L = carnn__dialog_choices(m);
    carnn__gather_rows(m->c.x, m->e.x, m->context, B, D);
    carnn__cell_context(&m->run, e, m->c.x, B);
    carnn__cell_forward(&m->run, e, &m->packed, m->index, NULL, NULL);
    carnn__split(e, e->k->attend, &a, B, 1, m->packed.rows * D);
    carnn__drop(work, m->o.x, B * D, key, CARNN__DROP_SUMMARY + m->from);
    if (work->g) carnn__matmul(e, CARNN__NT, B, L, D, m->o.x, D, m->y.x, D, NULL, m->z, L);
    else carnn__matmul(e, CARNN__PACKED, B, L, D, m->o.x, D, m->packed_y, 0, NULL, m->z, L);
}

/* From the gradient in z back to those of e and y: do = dz y, dy = dz^T o, where the first chunk of
   a batch sets dy and the others add to it. */
static void carnn__dialog_backward(carnn__work *work, uint64_t key) {
    carnn__dialog *m = (carnn__dialog *)work->state;
    carnn__engine *e = work->engine;
    carnn__attention a = carnn__dialog_attention(m);
    size_t B = m->packed.sequences, N = m->packed.rows, D = m->e.columns;
    size_t L = carnn__dialog_choices(m);
    carnn__matmul(e, CARNN__NN, B, D, L, m->z, L, m->y.x, D, NULL, m->o.d, D);
    carnn__matmul(e, m->from ? CARNN__TN | CARNN__ADD : CARNN__TN, L, D, B, m->z, L, m->o.x, D,
                  NULL, m->y.d, D);
    carnn__drop(work, m->o.d, B * D, key, CARNN__DROP_SUMMARY + m->from);
    carnn__mat_clear(&m->c, B);
    carnn__split(e, e->k->attend_back, &a, B, 1, N * D);
    carnn__scatter_rows(e, m->e.d, m->dh, m->index, N, D);
    carnn__cell_backward(&m->run, e, m->dh, m->e.d);
    carnn__cell_context_back(&m->run, e, m->c.d);
    carnn__scatter_rows(e, m->e.d, m->c.d, m->context, B, D);
}

enum { /* sums of a tally; KNOWN: turns whose response is a candidate */
    CARNN__DIALOG_RIGHT, CARNN__DIALOG_ALL_RIGHT, CARNN__DIALOG_DIALOGS, CARNN__DIALOG_KNOWN,
    CARNN__DIALOG_DECLINED, CARNN__DIALOG_UNSURE /* above 0: the model can decline */
};

static void carnn__dialog_count(const carnn__work *work, size_t number, carnn__tally *tally) {
    const carnn__dialog *m = (const carnn__dialog *)work->state;
    const carnn__corpus *c = &m->net.corpus;
    size_t i, at = 0, end = 0;
    for (i = c->batch_start[number]; i < c->batch_start[number + 1]; i++) {
        size_t turns = c->pieces[c->queue[i]].count, right = 0;
        for (end += turns; at < end; at++) {
            right += m->right[at];
            tally->sum[CARNN__DIALOG_DECLINED] += m->declined[at];
            tally->sum[CARNN__DIALOG_KNOWN] += c->target[m->turn[at]] != CARNN__NO_INDEX;
        }
        tally->examples += turns;
        tally->sum[CARNN__DIALOG_RIGHT] += (double)right;
        tally->sum[CARNN__DIALOG_ALL_RIGHT] += right == turns;
        tally->sum[CARNN__DIALOG_DIALOGS] += 1.0;
        tally->sum[CARNN__DIALOG_UNSURE] += work->model->unsure != CARNN__NO_INDEX;
        carnn__tell_part(work, (double)right, (double)turns);
    }
}

static carnn__logits carnn__dialog_output(const carnn__work *work) {
    const carnn__dialog *m = (const carnn__dialog *)work->state;
    carnn__logits o = {CARNN__OUTPUT_SOFTMAX, &m->all, m->turns, NULL, m->turn, m->turns, NULL};
    return o;
}

static void carnn__dialog_batch(carnn__work *work, size_t number, uint64_t key,
                                carnn__tally *tally) {
    carnn__dialog *m = (carnn__dialog *)work->state;
    const carnn__mat *e = &m->e;
    size_t B, b, own = m->own.count - 1, L, U;
    carnn__dialog_collect(m, number, key);
    if (m->odd.at) carnn__dialog_odd(work, key);
    U = m->inputs + m->odd.count;
    L = carnn__dialog_choices(m);
    carnn__dialog_ready(work);
    carnn__encode_lists(work, &m->words, &m->names.more, 0, NULL, L - own, &m->y, own, 0);
    carnn__dialog_utterances(work, 0);
    carnn__drop(work, e->x, U * e->columns, key, CARNN__DROP_UTTERANCES);
    carnn__cell_project(&m->run, work->engine, e->x, 0, U);
    carnn__mat_clear(e, U);
    for (m->from = 0; m->from < m->turns; m->from += B) {
        B = carnn__dialog_pack(m);
        carnn__dialog_forward(work, key);
        for (b = 0; b < B; b++) { /* before the loss makes gradients of the logits */
            size_t turn = m->from + m->rank[b], best = work->engine->k->argmax(m->z + b * L, L);
            m->right[turn] = best == m->label[b];
            m->declined[turn] = best == work->model->unsure;
            if (m->all.x) memcpy(m->all.x + turn * L, m->z + b * L, L * sizeof(float));
        }
        carnn__losses(work, B, L, m->z, m->label, 1.0f / (float)m->turns, work->smoothing, m->loss);
        for (b = 0; b < B; b++) tally->loss += (double)m->loss[b];
        if (work->g) carnn__dialog_backward(work, key);
    }
    carnn__dialog_count(work, number, tally);
    if (work->wanted) carnn__net_tell(work);
    if (!work->g) return;
    carnn__cell_project_back(&m->run, work->engine, e->d);
    carnn__drop(work, e->d, U * e->columns, key, CARNN__DROP_UTTERANCES);
    carnn__dialog_utterances(work, 1);
    carnn__encode_lists(work, &m->words, &m->own, 0, NULL, own, &m->y, 0, 1);
    carnn__encode_lists(work, &m->words, &m->names.more, 0, NULL, L - own, &m->y, own, 1);
}

/* By plurality. The loss is that of the mean probability of the right candidate. */
static void carnn__dialog_vote(carnn__work *const *works, size_t count, size_t number,
                               carnn__tally *tally) {
    carnn__dialog *m = (carnn__dialog *)works[0]->state;
    size_t i;
    for (i = 0; i < m->turns; i++) {
        uint32_t target = m->net.corpus.target[m->turn[i]];
        double right;
        size_t best = carnn__elect(works, count, i, target, &right);
        m->right[i] = best == target;
        m->declined[i] = best == works[0]->model->unsure;
        if (target != CARNN__NO_INDEX) tally->loss -= log(right > DBL_MIN ? right : DBL_MIN);
    }
    carnn__dialog_count(works[0], number, tally);
}

static void carnn__dialog_score(const carnn__tally *tally, carnn_scores *scores) {
    const double *sum = tally->sum;
    scores->loss = tally->loss / fmax(sum[CARNN__DIALOG_KNOWN], 1.0);
    scores->metric[0].value = sum[CARNN__DIALOG_RIGHT] / (double)carnn__max(tally->examples, 1);
    scores->metric[1].value = sum[CARNN__DIALOG_ALL_RIGHT] / fmax(sum[CARNN__DIALOG_DIALOGS], 1.0);
    scores->metric[2].value = sum[CARNN__DIALOG_DECLINED] / (double)carnn__max(tally->examples, 1);
    if (sum[CARNN__DIALOG_UNSURE] <= 0.0) scores->count = 2;
}

/* --- sessions -----------------------------------------------------------------------------------
   A batch of one turn, whose utterances keep their slots in e and its projections from turn to
   turn. */

static void carnn__dialog_carve(carnn_session *s, carnn__arena *arena) {
    carnn__dialog *m = (carnn__dialog *)s->work.state;
    carnn__corpus *c = &m->net.corpus;
    m->slots = 2 + carnn__dialog_most(s->model, CARNN__DIALOG_HISTORY, CARNN__HISTORY_LINES);
    m->said = (carnn__said *)carnn__take(arena, m->slots, sizeof *m->said);
    c->most_items = 1;
    c->most_texts = c->most_size[0] = c->tokens.count = m->slots;
    c->tokens.ids = (uint32_t *)carnn__take(arena, CARNN__UTTERANCE_WORDS, sizeof(uint32_t));
    c->tokens.at = (size_t *)carnn__take(arena, 2, sizeof(size_t));
    s->work.voting = 1; /* keep logits */
}

/* Encodes an utterance into the slot after the last, when there are `room` free slots: the oldest
   utterances are forgotten. */
static void carnn__dialog_utter(carnn_session *s, uint32_t role, const char *text, size_t length,
                                size_t room) {
    carnn__dialog *m = (carnn__dialog *)s->work.state;
    carnn__lists *words = &m->net.corpus.tokens;
    size_t D = m->e.columns, width = carnn__cells[m->cell.kind].gates * D;
    size_t gone = m->heard + room > m->slots ? m->heard + room - m->slots : 0;
    float *px = m->run.scan.px;
    carnn__said *said;
    carnn__span span = {text, length};
    m->heard -= gone;
    m->projected -= carnn__min(m->projected, gone);
    if (gone) {
        memmove(m->e.x, m->e.x + gone * D, m->heard * D * sizeof(float));
        memmove(px, px + gone * width, m->heard * width * sizeof(float));
        memmove(m->said, m->said + gone, m->heard * sizeof *m->said);
    }
    words->at[0] = 0;
    words->at[1] = carnn__dialog_tokens(s->model, span, role, words->ids, CARNN__UTTERANCE_WORDS);
    carnn__encode_lists(&s->work, &m->words, words, 0, NULL, 1, &m->e, m->heard, 0);
    said = &m->said[m->heard];
    said->role = role;
    carnn__keep_text(said->text, sizeof said->text, span);
}

static void carnn__dialog_reset(carnn_session *s) {
    carnn__dialog *m = (carnn__dialog *)s->work.state;
    carnn__dialog_ready(&s->work);
    m->turns = 1;
    m->turn[0] = 0;
    m->heard = m->projected = m->facts = 0;
    carnn__dialog_utter(s, CARNN__DIALOG_STARTS, "$start", 6, 1);
    m->heard = 1;
}

static void carnn__dialog_hear(carnn_session *s, uint32_t speaker, const char *text,
                               size_t length) {
    carnn__dialog *m = (carnn__dialog *)s->work.state;
    m->facts = speaker == CARNN_FACT ? m->facts + 1 : 0;
    if (m->facts > carnn__dialog_most(s->model, CARNN__DIALOG_KB_ROWS, SIZE_MAX)) return;
    carnn__dialog_utter(s, speaker, text, length, 1);
    m->heard++;
    s->parts = 0;
}

/* The user's words are in the slot after the last: what is heard next takes their place. */
static void carnn__dialog_predict(carnn_session *s, const carnn_text *texts, size_t top,
                                  carnn_prediction *p) {
    carnn__dialog *m = (carnn__dialog *)s->work.state;
    carnn__logits o = carnn__dialog_output(&s->work);
    size_t M, L = s->model->choices.count, t;
    carnn__dialog_utter(s, CARNN_USER, texts->at, texts->length, 2);
    M = carnn__min(m->heard + 1, m->slots - 1);
    m->length[0] = (uint32_t)M;
    carnn__pack_sequences(&m->packed, m->length, 1, m->rank, m->start);
    for (t = 0; t < M; t++) m->index[t] = (uint32_t)(m->heard + 1 - M + t);
    m->context[0] = (uint32_t)m->heard;
    carnn__cell_project(&m->run, &s->engine, m->e.x, m->projected, m->heard + 1);
    m->projected = m->heard;
    carnn__dialog_forward(&s->work, 0);
    memcpy(m->all.x, m->z, L * sizeof(float));
    m->net.top = carnn__max(top, 1);
    *p = carnn__net_prediction(&s->work, &o, 0, 0);
}

/* The logit o . y of the answer as a sum over the utterances. */
static void carnn__dialog_explain(carnn_session *s, size_t count, carnn_contribution *out,
                                  carnn_explanation *e) {
    const carnn__dialog *m = (const carnn__dialog *)s->work.state;
    size_t t, D = m->e.columns, best = m->net.best[0];
    carnn__encode_lists(&s->work, &m->words, &m->own, best, NULL, 1, &m->y, 0, 0);
    for (t = 0; t < D; t++) s->share[t] = 0.0;
    e->count = m->packed.rows;
    e->of = carnn__names_get(&s->model->choices, best);
    e->exact = carnn__cell_is_additive(m->cell.kind);
    for (t = e->count; t-- > 0;) {
        const carnn__said *said = &m->said[m->index[t]];
        double alpha = (double)m->weight.x[t];
        carnn_contribution c = {carnn__dialog_roles[said->role].name, said->text,
                                CARNN_HAS_SCORE | CARNN_HAS_ATTENTION, 0.0, alpha, 0.0};
        c.score = carnn__step_score(&m->run, 0, t, m->y.x, alpha, m->e.x + m->index[t] * D,
                                    s->share, &e->rest);
        if (t < count) out[t] = c;
    }
}

static const carnn__session_kind carnn__dialog_session = {
    "predict, hear, reply and explain", 1, carnn__dialog_carve, carnn__dialog_reset,
    carnn__dialog_predict, carnn__dialog_hear, 1, NULL, carnn__dialog_explain, NULL};

static const char *const carnn__dialog_variants[] = {
    "hidden=19", "hidden=19 cell=ncarnn history=3", "hidden=19 cell=lstm kb_rows=1", NULL};

/* As in bAbI task 6: 2,407 candidates, utterances of 8 words, 36 dialogs of 14 turns. */
static void carnn__dialog_bench_line(carnn__bench_text *t, unsigned i) {
    carnn__bench_print(t, "%s%u ", i && i % 14 == 0 ? "\n" : "", i % 14 + 1);
    carnn__bench_words(t, 1, i, 8);
    carnn__bench_print(t, "\t");
    carnn__bench_words(t, 2, i, 8); /* a candidate */
}

static const carnn__task_bench carnn__dialog_bench = {
    {1024, 128}, NULL, NULL, 32, "examples/s", "predicting", 504, 2407, carnn__dialog_bench_line,
    NULL};

static const carnn__task carnn__dialog_task = {
    "dialog", "choose the reply to the latest utterance, given the dialog so far",
    CARNN__TEXT_ONLY(&carnn__dialog_reader), carnn__dialog_roles,
    carnn__dialog_options,
    "cell=icarnn hidden=256 history=0 kb_rows=0 epochs=20 batch=48 lr_end=0.05 dropout=0.3 clip=5",
    carnn__dialog_adapt, "carnn.candidates", carnn__dialog_reserved,
    CARNN__COUNT(carnn__dialog_reserved), CARNN__TEXT_ONLY(carnn__dialog_build),
    carnn__dialog_check, sizeof(carnn__dialog), carnn__dialog_parts, NULL, carnn__dialog_tokens,
    {SIZE_MAX, {CARNN__DIALOG_INPUTS, 0}, 0}, carnn__dialog_measure,
    carnn__dialog_pieces, NULL, carnn__dialog_output, NULL, NULL, carnn__dialog_batch,
    carnn__dialog_vote,
    {{"accuracy", 0, 0}, {"dialog_accuracy", 0, 0}, {"declined", 1, 0}, {NULL, 0, 0}},
    carnn__dialog_score,
    &carnn__dialog_session, NULL,
    "1 hi\thello , what can i do\n2 some thai food please\twhere should it be\n"
    "3 thai_house R_phone 12\n4 thai_house R_area north\n"
    "5 in the north\tapi_call thai north\n6 thank you\tyou are welcome\n\n"
    "1 hi\thello , what can i do\n2 thank you\tyou are welcome\n",
    carnn__dialog_variants, CARNN__TRAIN_ONLY(&carnn__dialog_bench)};

#endif
/* =============================================================================================
   @@HEAD lm   predict the words of a sentence, given the sentence before it

   Tran et al. 2018, section 4.2. A sentence has the words w_1 .. w_n; its context c is the last
   state of an encoder, a CARNN without context, over the sentence before it, w'_1 .. w'_m. Both
   read the same word embedding.

     c = last state of ncarnn-free(w'_1 .. w'_m, </s>)                                (Eq. 11)
     h_0 .. h_n = cell(<s>, w_1 .. w_n; c)       P(w_{i+1}) = softmax(W h_i + b)
     loss = (1 - l) L_w + l L_l      L_l = -log softmax(W_c c + b_c)[label]       (Eq. 12, 13)
     W (words, h)   b (words)   W_c (labels, h)   b_c (labels)   h_i, c (h)

   L_w is the mean over the words of the batch, </s> among them; L_l the mean over the sentences
   with a label: the act of the sentence before, or the relation of this one to it. At the start of
   a document, and always with --context none, c is a learned vector. A cell without a context that
   is to have one reads [x_i; c].

   Perplexity is exp(sum of -log P / sum of (n + 1)): </s> is predicted and counted, <s> is neither.
   perplexity_n2 divides by n + 2, perplexity_macro is the exponential of the mean over sentences,
   perplexity_words leaves </s> out.
   ============================================================================================= */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

#define CARNN__LM_STEPS 256 /* longer sentences are read in pieces, each the context of the next */
#define CARNN__LM_ROWS 32   /* words of a batch for each of its examples, on average */

static const char *const carnn__lm_reserved[] = {"<s>", "</s>"};
enum { CARNN__LM_BEGIN = 1, CARNN__LM_END = 2 }; /* their numbers: <unk> is 0 */

/* --- options --------------------------------------------------------------------------------- */

enum { CARNN__LM_VOCAB, CARNN__LM_CONTEXT, CARNN__LM_LOWER, CARNN__LM_TIED, CARNN__LM_LABEL_WEIGHT,
       CARNN__LM_LABEL_ROW, CARNN__LM_ENCODER }; /* in carnn_model_desc.option */
enum { CARNN__LM_PREVIOUS = 1, CARNN__LM_OTHER }; /* the other context is none, the other row own */

static const char *const carnn__lm_context[] = {"previous", "none", NULL};
static const char *const carnn__lm_label_row[] = {"previous", "own", NULL};

static const carnn_option carnn__lm_options[] = {
    CARNN__OPTION_WHOLE("vocab", CARNN__LM_VOCAB, 0, 1e9, 1,
                        "words that are kept, the most frequent"),
    CARNN__OPTION_CHOICE("context", CARNN__LM_CONTEXT, carnn__lm_context,
                         "what the context is, previous or none"),
    CARNN__OPTION_WHOLE("lower", CARNN__LM_LOWER, 0, 1, 0, "1: upper case is folded to lower case"),
    CARNN__OPTION_WHOLE("tied", CARNN__LM_TIED, 0, 1, 0,
                        "1: embedding and output share their weights"),
    CARNN__OPTION_REAL("label_weight", CARNN__LM_LABEL_WEIGHT, 0, 1, 1,
                       "share of the labels in the loss, 0.1 where there are some"),
    CARNN__OPTION_CHOICE("label_row", CARNN__LM_LABEL_ROW, carnn__lm_label_row,
                         "whose label the context tells, previous or own"),
    CARNN__ENCODER_OPTIONS(CARNN__LM_ENCODER),
    CARNN__OPTION_END};

static void carnn__lm_adapt(carnn_model_desc *model, carnn_train_desc *train) {
    (void)train;
    carnn__option_default(model, CARNN__LM_CONTEXT, carnn__reads_context(model->cell)
                                                        ? CARNN__LM_PREVIOUS : CARNN__LM_OTHER);
}

/* Is an option on, or "previous"? */
static int carnn__lm_is(const carnn_model *m, size_t i) { return m->desc.option[i] == 1.0; }

static carnn_status carnn__lm_check(const carnn_model *model, carnn_error *error) {
    long long e = (long long)model->desc.embedding, h = (long long)model->desc.hidden;
    if (!carnn__lm_is(model, CARNN__LM_TIED) || e == h) return CARNN_OK;
    return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "--embedding is %lld and --hidden is %lld: a "
                       "tied output needs the same size", e, h);
}

static const carnn__role carnn__lm_roles[] = {{"sentence", CARNN__SPACES, 0},
                                              {NULL, CARNN__SPACES, 0}};

static carnn__tokenizer carnn__lm_tokenizer(const carnn_model *model) {
    return carnn__lm_is(model, CARNN__LM_LOWER) ? CARNN__LOWER : CARNN__SPACES;
}

/* <s> w_1 .. w_n </s> */
static size_t carnn__lm_tokens(const carnn_model *model, carnn__span text, uint32_t role,
                               uint32_t *ids, size_t max) {
    size_t n = carnn__tokenize(&model->words, carnn__lm_tokenizer(model), text.at, text.length,
                               max ? ids + 1 : NULL, max ? max - 1 : 0);
    (void)role;
    if (max) ids[0] = CARNN__LM_BEGIN;
    if (n + 1 < max) ids[n + 1] = CARNN__LM_END;
    return n + 2;
}

#ifndef CARNN_NO_TEXT

/* The words of the training data; its labels, where they are to be learnt. */
static carnn_status carnn__lm_build(carnn_model *model, const carnn_dataset *data,
                                    carnn_error *error) {
    double *option = model->desc.option, *weight = &option[CARNN__LM_LABEL_WEIGHT];
    carnn__vocabulary v;
    carnn_status status;
    size_t i;
    carnn__model_vocabulary(&v, model, error);
    for (i = 0; i < data->member_count; i++) {
        carnn__span text = carnn__text(data, data->members[i].text);
        carnn__vocabulary_add(&v, carnn__lm_tokenizer(model), text.at, text.length, 1);
    }
    v.most = (size_t)fmax(option[CARNN__LM_VOCAB], 0.0);
    status = carnn__vocabulary_close(&v, (size_t)model->desc.min_count, &model->words);
    if (*weight == 0.0) *weight = data->choice_count ? 0.1 : CARNN_NONE;
    if (!carnn__lm_is(model, CARNN__LM_CONTEXT)) *weight = CARNN_NONE;
    carnn__option_default(&model->desc, CARNN__LM_LABEL_ROW,
                          data->spoken ? CARNN__LM_PREVIOUS : CARNN__LM_OTHER);
    return status || *weight < 0.0 ? status : carnn__model_choices(model, data, error);
}

#endif

/* --- parts --------------------------------------------------------------------------------------
   A batch has B pieces of sentences, N words, and M words in the pieces before them. */

typedef struct carnn__lm {
    carnn__net net;
    size_t (*first)[2];      /* (pieces) where it begins among the tokens, and the one before it */
    size_t words, start;     /* parameters: E, the learned context */
    int encodes, contexts;   /* there is an encoder; there is a c, maybe always the learned one */
    carnn__sequences seq[2]; /* the pieces; those before them, of length 0 where there is none, */
    const carnn__sequences *before; /* which the encoder reads, or NULL */
    carnn__rnn encoder, cell;
    carnn__linear project;   /* (N, h) of x, where the cell needs that size */
    carnn__mat joined, c;    /* (N, e + h) [x; c], where the cell has no context; (B, h) by rank */
    const carnn__mat *x;     /* what the cell reads: one of project.y, joined, seq.x */
    carnn__word_softmax output;
    carnn__linear label;     /* (B, labels) */
    size_t labels;           /* how many there are */
    uint32_t *label_target, *piece; /* (B) by rank */
    double *nll;             /* (B) -log P of the pieces, in the order of the batch */
    carnn_prediction told;   /* of the sentence that is not yet complete */
    size_t at_hand[2];       /* of a session: `first` of its only piece, */
    float *state;            /* (layers, carnn__rnn_states, h) while it generates, */
    uint32_t *heap;          /* (V) scratch, */
    uint64_t drawn;          /* random numbers that were used */
} carnn__lm;

enum { CARNN__LM_DROP_BEFORE = 1, CARNN__LM_DROP_WORDS, CARNN__LM_DROP_STATES };

static int carnn__lm_in_session(const carnn__lm *m) { return !m->net.corpus.piece_count; }

static void carnn__lm_memory(carnn__plan *p, carnn__lm *m, size_t B, size_t h) {
    uint32_t **of_piece[] = {&m->label_target, &m->piece};
    carnn__take_indices(p->arena, of_piece, CARNN__COUNT(of_piece), B);
    m->nll = (double *)carnn__take(p->arena, B, sizeof(double));
    if (!carnn__lm_in_session(m)) return;
    m->state = carnn__floats(p->arena, m->cell.layers, carnn__rnn_states(&m->cell) * h);
    m->heap = (uint32_t *)carnn__take(p->arena, m->output.V, sizeof(uint32_t));
    m->at_hand[0] = CARNN__LM_STEPS + 1; /* behind the piece before */
    m->first = &m->at_hand;
}

static void carnn__lm_parts(carnn__plan *p, void *state) {
    carnn__lm *m = (carnn__lm *)state;
    const carnn_model_desc *d = &p->model->desc;
    size_t e = (size_t)d->embedding, h = (size_t)d->hidden, kind = carnn__cell_number(d->cell);
    size_t B = m->net.corpus.most_items, T = CARNN__LM_STEPS;
    int session = carnn__lm_in_session(m), sees = carnn__reads_context(d->cell);
    int tied = carnn__lm_is(p->model, CARNN__LM_TIED);
    size_t N = session ? T : m->net.corpus.most_size[0];
    size_t M = session ? T : m->net.corpus.most_size[1];
    carnn__rnn_shape encoder = {CARNN__CELL_ncarnn_free, 1, 1, e, h, 0, 0, 0, 0};
    carnn__rnn_shape cell = carnn__encoder_shape(p->model, CARNN__LM_ENCODER, 1, e, h);
    m->encodes = carnn__lm_is(p->model, CARNN__LM_CONTEXT);
    m->contexts = m->encodes || sees;
    m->x = &m->seq->x;
    m->words = carnn__declare_words(p);
    carnn__sequences_plan(p, &m->seq[0], m->words, CARNN__LM_DROP_WORDS, B, N, T);
    m->c = carnn__plan_mat(p, B, h);
    if (m->contexts)
        m->start = carnn__declare(p->store, "context", "start", 1, h, 1, CARNN__INIT_NORMAL, 0.1f);
    if (m->encodes) {
        carnn__sequences_plan(p, &m->seq[1], m->words, CARNN__LM_DROP_BEFORE, B, M, T);
        carnn__rnn_plan(p, &m->encoder, "context", encoder, M, M, B);
        m->before = &m->seq[1];
    }
    if ((carnn__cells[kind].flags & CARNN__INPUT_IS_CANDIDATE) && e != h) {
        carnn__linear_plan(p, &m->project, "word", "project", N, e, h, 0, CARNN__IDENTITY);
        m->x = &m->project.y;
    } else if (m->encodes && !sees) {
        m->joined = carnn__plan_mat(p, N, e + h);
        m->x = &m->joined;
    }
    cell.in = m->x->columns;
    m->cell.drop = CARNN__LM_DROP_STATES;
    m->cell.drops_top = 1;
    carnn__rnn_plan(p, &m->cell, "cell", cell, N, N, B);
    carnn__word_softmax_plan(p, &m->output, tied ? m->words : SIZE_MAX, N, h, session);
    m->labels = m->encodes ? p->model->choices.count : 0;
    if (m->labels)
        carnn__linear_plan(p, &m->label, "label", "weight", B, h, m->labels, 1, CARNN__LOGITS);
    if (p->arena) carnn__lm_memory(p, m, B, h);
}

/* --- pieces and batches -------------------------------------------------------------------------
   The sizes of a piece are its own words and those of the piece before, of which the first piece of
   a document has none. Batches are not sorted by length: the softmax is most of the work. */

/* The token list of an item's sentence; its inputs are all but the last token. */
static size_t carnn__lm_list(const carnn__work *work, size_t item) {
    const carnn__item *x = &work->data->items[item];
    return carnn__corpus_of(work)->list[x->first + x->count - 1];
}

static size_t carnn__lm_length(const carnn__work *work, size_t item) {
    return carnn__list_length(&carnn__corpus_of(work)->tokens, carnn__lm_list(work, item)) - 1;
}

/* Every piece is a group of its own, so that they are shuffled one by one. */
static carnn_status carnn__lm_pieces(carnn__work *work, carnn_error *error) {
    carnn__lm *m = (carnn__lm *)work->state;
    carnn__corpus *c = &m->net.corpus;
    size_t count = 0, i, from, n, j = 0;
    for (i = 0; i < work->data->item_count; i++)
        count += carnn__parts(carnn__lm_length(work, i), CARNN__LM_STEPS);
    m->first = (size_t (*)[2])carnn__own(&c->blocks, &work->allocator, count, sizeof *m->first);
    if (carnn__corpus_room(c, &work->allocator, count, error) || !m->first)
        return carnn__out_of_memory(error);
    for (i = 0; i < work->data->item_count; i++)
        for (from = 0, n = carnn__lm_length(work, i); from < n; from += CARNN__LM_STEPS, j++) {
            int follows = from || work->data->items[i].count > 1;
            size_t before = follows ? c->pieces[j - 1].size[0] : 0;
            carnn__batch_piece now = {i, 1, 0, {carnn__min(CARNN__LM_STEPS, n - from), before}};
            c->pieces[j] = now;
            m->first[j][0] = c->tokens.at[carnn__lm_list(work, i)] + from;
            m->first[j][1] = follows ? m->first[j - 1][0] : 0;
        }
    c->piece_count = j;
    return CARNN_OK;
}

static void carnn__lm_collect(carnn__work *work, size_t number) {
    carnn__lm *m = (carnn__lm *)work->state;
    const carnn__corpus *c = &m->net.corpus;
    const uint32_t *queue = c->queue + c->batch_start[number], *ids = c->tokens.ids;
    size_t B = c->batch_start[number + 1] - c->batch_start[number], i, k;
    for (k = 0; k <= (size_t)m->encodes; k++) {
        for (i = 0; i < B; i++) m->seq[k].length[i] = (uint32_t)c->pieces[queue[i]].size[k];
        carnn__sequences_pack(&m->seq[k], B);
        for (i = 0; i < B; i++) /* the encoder reads </s>, but not <s> */
            carnn__sequences_put(&m->seq[k], i, ids + m->first[queue[i]][k] + k, m->seq[k].ids);
    }
    for (i = 0; i < B; i++) {
        m->piece[m->seq->rank[i]] = queue[i];
        carnn__sequences_put(m->seq, i, ids + m->first[queue[i]][0] + 1, m->output.target);
    }
}

static void carnn__lm_context_forward(carnn__work *work, uint64_t key) {
    carnn__lm *m = (carnn__lm *)work->state;
    carnn__sequences *before = &m->seq[1];
    if (m->encodes) {
        carnn__sequences_forward(work, before, key);
        carnn__rnn_forward(work, &m->encoder, carnn__sequences_input(before, &before->x, NULL),
                           key);
    }
    if (m->contexts)
        carnn__last_states(work, m->before, &m->encoder.layer->y, m->start, m->seq, &m->c, 0);
}

static void carnn__lm_context_backward(carnn__work *work, uint64_t key) {
    carnn__lm *m = (carnn__lm *)work->state;
    carnn__sequences *before = &m->seq[1];
    if (m->contexts)
        carnn__last_states(work, m->before, &m->encoder.layer->y, m->start, m->seq, &m->c, 1);
    if (!m->encodes) return;
    carnn__rnn_backward(work, &m->encoder, carnn__sequences_input(before, &before->x, NULL), key);
    carnn__sequences_backward(work, before, key);
}

/* --- labels: one that the model does not know counts as wrong and gives no loss -------------- */

/* The label that the context of a piece tells: the number of labels if the model does not know it,
   CARNN__NO_INDEX if there is none. Only the first piece of a sentence has one. */
static size_t carnn__lm_label(const carnn__work *work, const carnn__batch_piece *p) {
    const carnn__corpus *c = carnn__corpus_of(work);
    const carnn__item *x = &work->data->items[p->first];
    if (x->count < 2 || (p > c->pieces && p[-1].first == p->first)) return CARNN__NO_INDEX;
    if (carnn__lm_is(work->model, CARNN__LM_LABEL_ROW)) x--;
    if (x->target == CARNN__NO_INDEX) return CARNN__NO_INDEX;
    return carnn__min(c->target[x - work->data->items], work->model->choices.count);
}

enum { CARNN__LM_NLL, CARNN__LM_END_NLL, CARNN__LM_MACRO, CARNN__LM_RIGHT, CARNN__LM_LABELS };

/* Returns the mean loss, whose gradient goes to the logits' d, times `share`. */
static double carnn__lm_label_forward(carnn__work *work, double share, carnn__tally *tally) {
    carnn__lm *m = (carnn__lm *)work->state;
    size_t B = m->seq->packed.sequences, K = m->labels, b, known;
    double sum;
    if (!K) return 0.0;
    carnn__linear_forward(work, &m->label, &m->c, B);
    for (b = 0; b < B; b++) {
        size_t label = carnn__lm_label(work, &m->net.corpus.pieces[m->piece[b]]);
        m->label_target[b] = label < K ? (uint32_t)label : CARNN__NO_INDEX;
        if (label == CARNN__NO_INDEX) continue;
        tally->sum[CARNN__LM_LABELS] += 1.0;
        tally->sum[CARNN__LM_RIGHT] += work->engine->k->argmax(m->label.y.x + b * K, K) == label;
    }
    sum = carnn__softmax_loss(work, &m->label.y, B, m->label_target, share, 0.0, &known);
    return sum / (double)carnn__max(known, 1);
}

static carnn__rnn_input carnn__lm_input_forward(carnn__work *work, uint64_t key) {
    carnn__lm *m = (carnn__lm *)work->state;
    carnn__sequences_forward(work, m->seq, key);
    if (m->x == &m->project.y)
        carnn__linear_forward(work, &m->project, &m->seq->x, m->seq->packed.rows);
    if (m->x == &m->joined) carnn__sequences_join(work, m->seq, &m->c, &m->joined, 0);
    return carnn__sequences_input(m->seq, m->x, m->contexts ? &m->c : NULL);
}

/* From tokens to losses and, where something is learnt, the gradients at the states. */
static void carnn__lm_forward(carnn__work *work, uint64_t key, double share) {
    carnn__lm *m = (carnn__lm *)work->state;
    size_t N = m->seq->packed.rows;
    carnn__rnn_forward(work, &m->cell, carnn__lm_input_forward(work, key), key);
    carnn__word_softmax_run(work, &m->output, carnn__rnn_output(&m->cell), N,
                            (float)(share / (double)N));
}

static void carnn__lm_backward(carnn__work *work, uint64_t key) {
    carnn__lm *m = (carnn__lm *)work->state;
    const carnn__mat *c = m->contexts ? &m->c : NULL;
    carnn__rnn_backward(work, &m->cell, carnn__sequences_input(m->seq, m->x, c), key);
    if (m->x == &m->joined) carnn__sequences_join(work, m->seq, &m->c, &m->joined, 1);
    if (m->x == &m->project.y)
        carnn__linear_backward(work, &m->project, &m->seq->x, m->seq->packed.rows);
    carnn__sequences_backward(work, m->seq, key);
}

/* --- a batch --------------------------------------------------------------------------------- */

/* Is piece p the last of its sentence? */
static int carnn__lm_ends(const carnn__corpus *c, const carnn__batch_piece *p) {
    return p + 1 == c->pieces + c->piece_count || p[1].first != p->first;
}

static void carnn__lm_count(const carnn__work *work, carnn__tally *tally) {
    const carnn__lm *m = (const carnn__lm *)work->state;
    size_t b, t;
    for (b = 0; b < m->seq->packed.sequences; b++) {
        const carnn__batch_piece *p = &m->net.corpus.pieces[m->piece[b]];
        double sum = 0.0;
        for (t = 0; t < p->size[0]; t++) sum += (double)m->output.loss[m->seq->start[t] + b];
        tally->sum[CARNN__LM_NLL] += sum;
        m->nll[m->seq->order[b]] = sum;
        carnn__tell_part(work, sum, (double)p->size[0]);
        tally->sum[CARNN__LM_MACRO] += sum / (double)carnn__lm_length(work, p->first);
        tally->tokens += p->size[0];
        if (!carnn__lm_ends(&m->net.corpus, p)) continue;
        tally->sum[CARNN__LM_END_NLL] += (double)m->output.loss[m->seq->start[t - 1] + b];
        tally->examples++;
    }
}

/* Tells of the sentences that end in a batch. */
static void carnn__lm_tell(const carnn__work *work) {
    carnn__lm *m = (carnn__lm *)work->state;
    size_t i;
    for (i = 0; i < m->seq->packed.sequences; i++) {
        const carnn__batch_piece *p = &m->net.corpus.pieces[m->piece[m->seq->rank[i]]];
        m->told.score += m->nll[i];
        m->told.tokens += p->size[0];
        if (!carnn__lm_ends(&m->net.corpus, p)) continue;
        m->told.kind = CARNN_PREDICTS_LIKELIHOOD;
        m->told.example = p->first;
        m->told.parts = 1;
        work->wanted->example(&m->told, work->wanted->user);
        memset(&m->told, 0, sizeof m->told);
    }
}

/* tally->loss is what is trained, in nats a word; without gradients that is the words' loss. */
static void carnn__lm_batch(carnn__work *work, size_t number, uint64_t key, carnn__tally *tally) {
    carnn__lm *m = (carnn__lm *)work->state;
    double before = tally->sum[CARNN__LM_NLL], share = 0.0, labels;
    if (work->g && m->labels) share = fmax(carnn__option(work->model, CARNN__LM_LABEL_WEIGHT), 0.0);
    carnn__lm_collect(work, number);
    carnn__lm_context_forward(work, key);
    labels = carnn__lm_label_forward(work, share, tally);
    carnn__lm_forward(work, key, 1.0 - share);
    carnn__lm_count(work, tally);
    if (work->wanted) carnn__lm_tell(work);
    tally->loss += (1.0 - share) * (tally->sum[CARNN__LM_NLL] - before) +
                   share * labels * (double)m->seq->packed.rows;
    if (!work->g) return;
    if (m->labels) carnn__linear_backward(work, &m->label, &m->c, m->seq->packed.sequences);
    carnn__lm_backward(work, key);
    carnn__lm_context_backward(work, key);
}

/* The mean of the models' probabilities of every word. Labels are not voted on. */
static void carnn__lm_vote(carnn__work *const *works, size_t count, size_t number,
                           carnn__tally *tally) {
    carnn__lm *m = (carnn__lm *)works[0]->state;
    double before = tally->sum[CARNN__LM_NLL];
    size_t row, i;
    (void)number;
    for (row = 0; row < m->seq->packed.rows; row++) {
        double p = 0.0;
        for (i = 0; i < count; i++)
            p += exp(-(double)((const carnn__lm *)works[i]->state)->output.loss[row]);
        m->output.loss[row] = (float)-log(fmax(p / (double)count, DBL_MIN));
    }
    carnn__lm_count(works[0], tally);
    tally->loss += tally->sum[CARNN__LM_NLL] - before;
}

static void carnn__lm_score(const carnn__tally *tally, carnn_scores *scores) {
    const double *sum = tally->sum;
    double tokens = (double)carnn__max(tally->tokens, 1);
    double sentences = (double)carnn__max(tally->examples, 1);
    double words = fmax(tokens - sentences, 1.0);
    scores->metric[0].value = exp(sum[CARNN__LM_NLL] / tokens);
    scores->metric[1].value = exp(sum[CARNN__LM_NLL] / (tokens + sentences));
    scores->metric[2].value = exp(sum[CARNN__LM_MACRO] / sentences);
    scores->metric[3].value = exp((sum[CARNN__LM_NLL] - sum[CARNN__LM_END_NLL]) / words);
    scores->metric[4].value = sum[CARNN__LM_RIGHT] / fmax(sum[CARNN__LM_LABELS], 1.0);
    if (sum[CARNN__LM_LABELS] <= 0.0) scores->count = 4; /* no labels, no accuracy */
}

/* --- sessions -----------------------------------------------------------------------------------
   A session reads sentence after sentence. Its corpus has one piece, the one at hand, whose tokens
   begin at number CARNN__LM_STEPS + 1; in front of them are those of the piece before. */

static size_t carnn__lm_session_words(const carnn_model *model) {
    (void)model;
    return 2 * (CARNN__LM_STEPS + 1);
}

/* The next sentence begins a document. */
static void carnn__lm_reset(carnn_session *s) { carnn__corpus_of(&s->work)->pieces->size[0] = 0; }

/* Adds a token to the piece at hand, or begins a piece with it, whose context is the one at hand.
   Returns how many targets the piece has. */
static size_t carnn__lm_push(carnn_session *s, uint32_t id, int begins) {
    const carnn__corpus *c = carnn__corpus_of(&s->work);
    uint32_t *ids = c->tokens.ids + CARNN__LM_STEPS + 1;
    size_t *size = c->pieces->size;
    if (begins) memcpy(c->tokens.ids, ids, (size[0] + 1) * sizeof *ids);
    if (begins) size[1] = size[0];
    size[0] = begins ? 0 : size[0] + 1;
    ids[size[0]] = id;
    return size[0];
}

static carnn__words carnn__lm_words(const carnn_session *s, const char *text, size_t length) {
    return carnn__words_of(s->spoken ? CARNN__SPOKEN : carnn__lm_tokenizer(s->model), text, length);
}

/* The number of the next word; </s> behind the last one. */
static uint32_t carnn__lm_next(const carnn_session *s, carnn__words *w, int *more) {
    uint32_t id = CARNN__LM_END;
    *more = carnn__next_word(w) != 0;
    if (*more)
        carnn__tokenize(&s->model->words, w->kind, w->word.at, w->word.length, &id, 1);
    return id;
}

/* Adds -log P of the piece at hand, which is complete. */
static void carnn__lm_score_piece(carnn_session *s, carnn_prediction *p) {
    const carnn__lm *m = (const carnn__lm *)s->work.state;
    double nll = 0.0;
    size_t t;
    carnn__lm_collect(&s->work, 0);
    carnn__lm_context_forward(&s->work, 0);
    carnn__lm_forward(&s->work, 0, 0.0);
    for (t = 0; t < m->seq->packed.rows; t++) nll += (double)m->output.loss[t];
    p->score += nll;
    p->tokens += t;
}

/* Reads a sentence; its last piece is the context of the next one. */
static void carnn__lm_predict(carnn_session *s, const carnn_text *texts, size_t top,
                              carnn_prediction *p) {
    carnn__words w = carnn__lm_words(s, texts->at, texts->length);
    uint32_t id = CARNN__LM_BEGIN;
    size_t steps;
    int more = 1;
    (void)top;
    p->kind = CARNN_PREDICTS_LIKELIHOOD;
    for (steps = carnn__lm_push(s, id, 1); more; steps = carnn__lm_push(s, id, 0)) {
        if (steps == CARNN__LM_STEPS) {
            carnn__lm_score_piece(s, p);
            carnn__lm_push(s, id, 1);
        }
        id = carnn__lm_next(s, &w, &more);
    }
    carnn__lm_score_piece(s, p);
}

/* Begins a piece with the input `id`: its context, states that are zero, a batch of one row. */
static void carnn__lm_generate_from(carnn_session *s, uint32_t id) {
    carnn__lm *m = (carnn__lm *)s->work.state;
    carnn__lm_push(s, id, 1);
    carnn__lm_collect(&s->work, 0);
    carnn__lm_context_forward(&s->work, 0);
    m->seq->length[0] = 1;
    carnn__sequences_pack(m->seq, 1);
    carnn__rnn_ready(&s->work, &m->cell);
    memset(m->state, 0, m->cell.layers * carnn__rnn_states(&m->cell) * m->cell.h * sizeof(float));
}

/* Draws a word after the last step; <s> and <unk> are never drawn. */
static uint32_t carnn__lm_draw(carnn_session *s, const carnn_sampling *how) {
    carnn__lm *m = (carnn__lm *)s->work.state;
    float *z = carnn__word_softmax_logits(&s->work, &m->output, carnn__rnn_output(&m->cell), 0, 1);
    z[0] = z[CARNN__LM_BEGIN] = -FLT_MAX;
    return (uint32_t)carnn__sample(s->engine.k, how, z, m->heap, m->output.V, &m->drawn);
}

static void carnn__lm_generate(carnn_session *s, const carnn_sampling *how, const char *prompt,
                               size_t length, char *text, size_t size) {
    carnn__lm *m = (carnn__lm *)s->work.state;
    carnn__words w = carnn__lm_words(s, prompt, length);
    size_t at = 0, most = how->words > 0 ? (size_t)how->words : 100, steps = 0;
    uint32_t id = CARNN__LM_BEGIN;
    int more = 1;
    for (carnn__lm_generate_from(s, id); id != CARNN__LM_END; steps = carnn__lm_push(s, id, 0)) {
        const char *word;
        carnn__rnn_input in;
        if (steps == CARNN__LM_STEPS) carnn__lm_generate_from(s, id);
        m->seq->ids[0] = id;
        in = carnn__lm_input_forward(&s->work, 0);
        in.state = m->state;
        carnn__rnn_forward(&s->work, &m->cell, in, 0);
        if (more) id = carnn__lm_next(s, &w, &more);
        if (!more) id = most-- ? carnn__lm_draw(s, how) : (uint32_t)CARNN__LM_END;
        word = carnn__names_get(&s->model->words, id);
        if (at + strlen(word) + 2 > size) size = 0; /* nor does what follows fit */
        if (size && id != CARNN__LM_END)
            at += (size_t)snprintf(text + at, size - at, "%s%s", at ? " " : "", word);
    }
}

/* The n words `ids` that `run` (NULL: none) has read, with their parts of scale * y . h_n. */
static void carnn__lm_explain_words(carnn_session *s, const carnn__cell_run *run, const float *y,
                                    double scale, const char *role, unsigned has,
                                    const uint32_t *ids, size_t n, carnn_contribution *out,
                                    size_t room, double *rest) {
    size_t i;
    for (i = 0; i < n && i < room; i++) {
        carnn_contribution c = {role, carnn__names_get(&s->model->words, ids[i]), has, 0, 0, 0};
        out[i] = c;
    }
    if (run) carnn__explain_run(s, run, 0, n, 0, y, scale, out, room, rest);
}

/* The logit W_y h_n + b_y of the likeliest next word is a sum over the words that were read; the
   context c = sum_t v_t one over the sentence before, of which a word has the share v_t c / c c. */
static void carnn__lm_explain(carnn_session *s, size_t count, carnn_contribution *out,
                              carnn_explanation *e) {
    carnn__lm *m = (carnn__lm *)s->work.state;
    const carnn__corpus *c = &m->net.corpus;
    const carnn__cell_run *run = m->cell.layer[m->cell.layers - 1].base[0].run;
    int additive = m->cell.bases == 1 && carnn__cell_is_additive(run->cell->kind);
    size_t first = m->contexts ? c->pieces->size[1] : 0, n = c->pieces->size[0], best, i;
    double squares = 0.0, biases = 0.0;
    float *z;
    for (i = 0; first && i < m->c.columns; i++) squares += (double)m->c.x[i] * (double)m->c.x[i];
    carnn__lm_explain_words(s, m->encodes ? m->encoder.layer->base->run : NULL, m->c.x,
                            squares > 0.0 ? 1.0 / squares : 0.0, "before", CARNN_HAS_SHARE,
                            c->tokens.ids + 1, first, out, count, &biases);
    z = carnn__word_softmax_logits(&s->work, &m->output, carnn__rnn_output(&m->cell), n - 1, 1);
    z[CARNN__LM_BEGIN] = -FLT_MAX;
    best = s->engine.k->argmax(z, m->output.V);
    e->of = carnn__names_get(&s->model->words, best);
    e->exact = additive;
    e->count = first + n;
    e->rest = (double)z[best];
    first = carnn__min(first, count);
    carnn__lm_explain_words(s, additive ? run : NULL,
                            carnn__weight(&s->work, m->output.weight) + best * m->c.columns, 1.0,
                            "word", CARNN_HAS_SCORE, c->tokens.ids + m->first[0][0], n,
                            out + first, count - first, &e->rest);
}

static const carnn__session_kind carnn__lm_session = {
    "predict, generate and explain", 1, carnn__net_session_carve, carnn__lm_reset,
    carnn__lm_predict, NULL, 0, carnn__lm_generate, carnn__lm_explain, NULL};

static const char *const carnn__lm_variants[] = {
    "hidden=19", "hidden=19 cell=icarnn layers=2 tied=1", "hidden=19 cell=scarnn embedding=13",
    "hidden=19 cell=lstm context=previous embedding=13",
    "hidden=19 cell=gru context=none embedding=13 layers=2",
    "hidden=19 cell=carnn-high context=none tied=1",
    "hidden=19 cell=icarnn embedding=13 layers=2 encoder=rcrn",
    "hidden=19 cell=rnn layers=2 skip=2", NULL};

/* 300 sentences of 34 words out of some 10,000, the usual small model with an exact softmax. */
static void carnn__lm_bench_line(carnn__bench_text *t, unsigned i) {
    unsigned j;
    for (j = 34 * i; j < 34 * i + 34; j++) carnn__bench_print(t, "w%u ", j * 7919 % 9998);
}

static const carnn__task_bench carnn__lm_bench = {
    {200, 0}, "lstm", "sgd", 20, "words/s", "predicting", 300, 0, carnn__lm_bench_line, NULL};

static const carnn__task carnn__lm_task = {
    "lm", "predict the words of a sentence, given the sentence before it",
    CARNN__TEXT_ONLY(&carnn__sentence_reader), carnn__lm_roles, carnn__lm_options,
    "cell=ncarnn hidden=256 min_count=2 vocab=10000 epochs=4 batch=64 lr=0.004 lr_end=0.02 "
    "dropout=0.3 clip=5 patience=3 encoder=rnn",
    carnn__lm_adapt, "carnn.labels", carnn__lm_reserved, CARNN__COUNT(carnn__lm_reserved),
    CARNN__TEXT_ONLY(carnn__lm_build), carnn__lm_check, sizeof(carnn__lm), carnn__lm_parts, NULL,
    carnn__lm_tokens, {1, {0, 0}, CARNN__LM_ROWS}, NULL, carnn__lm_pieces, NULL, NULL, NULL, NULL,
    carnn__lm_batch, carnn__lm_vote,
    {{"perplexity", 1, 0}, {"perplexity_n2", 1, 1}, {"perplexity_macro", 1, 1},
     {"perplexity_words", 1, 1}, {"label_accuracy", 0, 0}, {NULL, 0, 0}},
    carnn__lm_score, &carnn__lm_session, carnn__lm_session_words,
    "a b a b\tx\nb a c\ty\nc a\n\tx\nd b a\ty\n=\na c b b c\ty\nb a\tx\n",
    carnn__lm_variants, CARNN__TRAIN_ONLY(&carnn__lm_bench)};

#endif
/* =============================================================================================
   @@HEAD answer   rank sentences by how well they answer a question

   Tran et al. 2018, section 4.3: the inter-weighted alignment network (IWAN) of Shen, Yang and Deng
   2017, whose encoder is a bidirectional cell. The context of a CARNN that reads one sentence is
   the position encoding of the words of the other one, divided by their number; other cells read
   each sentence by itself.

     x_1 .. x_m = [fw; bw](P w_1 .. P w_m; enc(P w'_1 .. P w'_n) / n)       P projects words
     y_1 .. y_n = [fw; bw](P w'_1 .. P w'_n; enc(P w_1 .. P w_m) / m)
     a_i = sum_j softmax_j(x_i . y_j) y_j                                     alignment
     w = softmax_i(v . tanh(W1 x_i + W2 mean_j y_j))                          weights (attention)
     f = sum_i w_i [p_i; o_i]                                                 (see @@PART)
     score = W4 [tanh(W3 [f of the question; f of the sentence] + b3); overlap] + b4
     P (in, embedding + 2)   x_i (2h)   W1, W2 (h, 2h)   v (h)   f (F)   W3 (h, 2 F)   W4 (1, h + 2)

   F is 4h (orthogonal) or 2h (direct); b4 is there for pairs only. Overlap: see there in @@NET.
   `--weighting skip` weighs words by what they add to the states, [fw_i - fw_{i-1}; bw_i -
   bw_{i+1}], instead of x_i. `--model siamese` has the score W4 [cosine; overlap] + b4 of the two
   sentences' last states.

   Three models compare two vectors, which a bidirectional cell and pooling make of the sentences;
   their cells read no context, and the score has no weights of its own:

     ca       CA-RNN, Chen et al. 2018: score = log S = -|H_X - H_Y|_1, where states of the sentence
              are mixed with those of the question at words of both (see context alignment in
              @@NET); `--direction a2q` the other way round; `--alignment none` is its baseline, a
              plain bidirectional RNN
     ap       attentive pooling, dos Santos et al. 2016: score = cosine of r_q and r_a, the sums of
              the words by the weights that they give each other
     cosine   score = cosine, the ranking model of Tay et al. 2018

   ca and cosine pool by the maximum over the words; `--pooling attention` makes of the text that is
   read second the sum of its words by additive attention, whose query is the other one's maximum.

   Loss: of pairs, cross entropy of sigmoid(score), in which right and wrong sentences weigh the
   same in all, or of ca's S = exp(score); of ranks, cross entropy of the softmax over a question's
   sentences, whose target is shared by the right ones; hinge, of right ones against six wrong ones
   each (Tay et al. 2018), or against the hardest of the six (dos Santos et al.). A question without
   a right or a wrong one has no rank to learn. Questions of more sentences than a piece holds are
   worked on piece by piece: of ranks the softmax is still over all of them, for which they are
   scored twice, so that no number of sentences takes more memory; the six of a hinge are of the
   same piece.
   ============================================================================================= */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

/* Pairs of a piece; words, floats of alignment matrices of a batch, which one pair may exceed. */
#define CARNN__ANSWER_PIECE 64
#define CARNN__ANSWER_ROWS 3072
#define CARNN__ANSWER_CELLS ((size_t)1 << 18)

/* --- options --------------------------------------------------------------------------------- */

enum { CARNN__ANSWER_MODEL, CARNN__ANSWER_DECOMPOSITION, CARNN__ANSWER_WEIGHTING,
       CARNN__ANSWER_OVERLAP, CARNN__ANSWER_LOSS, CARNN__ANSWER_TUNE, CARNN__ANSWER_ENCODER,
       CARNN__ANSWER_POOLING = CARNN__ANSWER_ENCODER + 3, CARNN__ANSWER_ALIGNMENT,
       CARNN__ANSWER_DIRECTION }; /* in .option */
enum { CARNN__ANSWER_IWAN, CARNN__ANSWER_SIAMESE, CARNN__ANSWER_CA, CARNN__ANSWER_AP };
enum { CARNN__ANSWER_PAIR, CARNN__ANSWER_RANK, CARNN__ANSWER_HINGE, CARNN__ANSWER_HARDEST };

static const char *const carnn__answer_models[] = {"iwan", "siamese", "ca", "ap", "cosine", NULL};
static const char *const carnn__answer_decompositions[] = {"orthogonal", "direct", NULL};
static const char *const carnn__answer_weightings[] = {"attention", "skip", NULL};
static const char *const carnn__answer_losses[] = {"pair", "rank", "hinge", "hardest", NULL};
static const char *const carnn__answer_poolings[] = {"max", "attention", NULL};
static const char *const carnn__answer_alignments[] = {"overlap", "none", NULL};
static const char *const carnn__answer_directions[] = {"q2a", "a2q", NULL};

static const carnn_option carnn__answer_options[] = {
    CARNN__OPTION_CHOICE("model", CARNN__ANSWER_MODEL, carnn__answer_models,
                         "iwan, siamese, ca, ap or cosine"),
    CARNN__OPTION_CHOICE("decomposition", CARNN__ANSWER_DECOMPOSITION, carnn__answer_decompositions,
                         "orthogonal or direct"),
    CARNN__OPTION_CHOICE("weighting", CARNN__ANSWER_WEIGHTING, carnn__answer_weightings,
                         "what weighs the words, attention or skip"),
    CARNN__OPTION_WHOLE("overlap", CARNN__ANSWER_OVERLAP, 0, 1e9, 1,
                        "letters by which words of both are the same; 0: not told of them"),
    CARNN__OPTION_CHOICE("loss", CARNN__ANSWER_LOSS, carnn__answer_losses,
                         "of a pair, of the rank among others, or a hinge against six of them"),
    CARNN__OPTION_WHOLE("tune_vectors", CARNN__ANSWER_TUNE, 0, 1, 0,
                        "1: word vectors that were read are trained, too"),
    CARNN__ENCODER_OPTIONS(CARNN__ANSWER_ENCODER),
    CARNN__OPTION_CHOICE("pooling", CARNN__ANSWER_POOLING, carnn__answer_poolings,
                         "of ca and cosine, max or attention"),
    CARNN__OPTION_CHOICE("alignment", CARNN__ANSWER_ALIGNMENT, carnn__answer_alignments,
                         "of ca, overlap: words of both; none: no gates"),
    CARNN__OPTION_CHOICE("direction", CARNN__ANSWER_DIRECTION, carnn__answer_directions,
                         "of ca, which text reads the states of the other"),
    CARNN__OPTION_END};

/* iwan and siamese are told of words that both texts have and learn from ranks; the others read no
   context and are not told. */
static void carnn__answer_adapt(carnn_model_desc *model, carnn_train_desc *train) {
    static const int loss[] = {CARNN__ANSWER_RANK, CARNN__ANSWER_RANK, CARNN__ANSWER_PAIR,
                               CARNN__ANSWER_HINGE, CARNN__ANSWER_HINGE};
    size_t kind = (size_t)model->option[CARNN__ANSWER_MODEL] - 1;
    int matches = kind >= CARNN__ANSWER_CA;
    if (!model->cell) model->cell = matches ? "lstm" : "icarnn";
    if (!model->hidden) model->hidden = kind == CARNN__ANSWER_CA ? 50 : 150;
    if (train->lr == 0.0) train->lr = kind == CARNN__ANSWER_CA ? 0.003 : 0.001;
    carnn__option_default(model, CARNN__ANSWER_OVERLAP, matches ? CARNN_NONE : 4);
    carnn__option_default(model, CARNN__ANSWER_LOSS, 1 + loss[kind]);
    if (!model->vector_count) carnn__option_default(model, CARNN__ANSWER_TUNE, 1);
    if (train->dropout == 0.0) train->dropout = matches ? 0.2 : 0.5;
    if (!matches) return;
    carnn__option_default(model, CARNN__ANSWER_POOLING, 1);
    carnn__option_default(model, CARNN__ANSWER_ALIGNMENT, 1);
    carnn__option_default(model, CARNN__ANSWER_DIRECTION, 1);
}

static int carnn__answer_aligns(const carnn_model *model) {
    return carnn__chosen(model, CARNN__ANSWER_MODEL) == CARNN__ANSWER_CA &&
           !carnn__chosen(model, CARNN__ANSWER_ALIGNMENT);
}

static carnn_status carnn__answer_check(const carnn_model *model, carnn_error *error) {
    if (!carnn__answer_aligns(model) || !carnn__chosen(model, CARNN__ANSWER_ENCODER))
        return CARNN_OK;
    return carnn__fail(error, CARNN_ERR_ARGUMENT, 0,
                       "the model ca mixes the states of one RNN: encoder rnn, or alignment none");
}

static const carnn__role carnn__answer_roles[] = {
    {"question", CARNN__TOKENS, 0}, {"sentence", CARNN__TOKENS, 0}, {NULL, CARNN__TOKENS, 0}};

/* Words that the model does not know share these by their hash, so that a name that nobody has seen
   can still be found in both sentences. */
#define CARNN__UNKNOWN_WORDS                                                                       \
    "<unk.1>", "<unk.2>", "<unk.3>", "<unk.4>", "<unk.5>", "<unk.6>", "<unk.7>", "<unk.8>",        \
        "<unk.9>", "<unk.10>", "<unk.11>", "<unk.12>", "<unk.13>", "<unk.14>", "<unk.15>"
static const char *const carnn__answer_reserved[] = {CARNN__UNKNOWN_WORDS};
#define CARNN__UNKNOWN (CARNN__COUNT(carnn__answer_reserved) + 1)

static uint32_t carnn__answer_word(const carnn_model *model, carnn__span word) {
    uint32_t id = carnn__names_find_folded(&model->words, word.at, word.length, 1);
    if (id != CARNN__NO_INDEX) return id;
    return (uint32_t)(carnn__hash(word.at, word.length, 1) % CARNN__UNKNOWN);
}

static size_t carnn__answer_tokens(const carnn_model *model, carnn__span text, uint32_t role,
                                   uint32_t *ids, size_t max) {
    carnn__words w = carnn__words_of(CARNN__TOKENS, text.at, text.length);
    size_t n;
    (void)role;
    for (n = 0; n < CARNN__SENTENCE_WORDS && carnn__next_word(&w); n++)
        if (n < max) ids[n] = carnn__answer_word(model, w.word);
    return n;
}

/* --- parts ----------------------------------------------------------------------------------- */

typedef struct carnn__answer {
    carnn__net net;
    carnn__embed words;      /* (U, e + overlaps) */
    carnn__overlap overlap;
    carnn__linear project, hidden, output;
    carnn__position context;
    carnn__rnn encoder;      /* its output: states s (R, D), D = 2 h */
    size_t model, loss;      /* CARNN__ANSWER_IWAN, ...; CARNN__ANSWER_PAIR, ... */
    int siamese, skips;
    carnn__mat skip;         /* (R, D) what each word adds to the states */
    carnn__pool_part pool;   /* (S, D) mean, or the last states */
    carnn__additive attend;
    carnn__compare compare;
    carnn__mat top;          /* (B, h + overlaps) */
    float class_weight[2];   /* of wrong and right pairs; 0: not counted yet */
    carnn__ranks ranks;
    carnn__hinge hinge;
    /* of ca, ap and cosine */
    int matches, aligns, attends; /* attends: the texts are weighted sums of their words */
    carnn__aligned aligned;
    carnn__attentive attentive;
    carnn__mat sum;          /* (S, D) where it attends */
    float *heat;             /* (m, n) or (n, m) of a session */
    carnn__similarity match;
} carnn__answer;

static unsigned carnn__answer_flag(const carnn__texts *t, size_t member, uint32_t word) {
    return carnn__overlap_flag(t, &((const carnn__answer *)t->work->state)->overlap, member, word);
}

/* Rows, and floats of the alignment matrices. */
static void carnn__answer_measure(const carnn__work *work, size_t item,
                                  size_t size[CARNN__SIZES]) {
    const carnn__corpus *c = carnn__corpus_of(work);
    size_t first = work->data->items[item].first;
    size_t m = carnn__list_length(&c->tokens, c->list[first]);
    size_t n = carnn__list_length(&c->tokens, c->list[first + 1]);
    size[0] = m + n;
    size[1] = 2 * m * n;
}

/* Streams of a step's random numbers. */
enum { CARNN__ANSWER_NEGATIVES, CARNN__ANSWER_DROP_WORDS, CARNN__ANSWER_DROP_SUMS,
       CARNN__ANSWER_DROP_LAYERS };

/* The parts of ca, ap and cosine behind the inputs (h columns). */
static void carnn__answer_match_parts(carnn__plan *p, carnn__answer *m, carnn__rnn_shape shape) {
    const carnn__texts *t = &m->net.texts;
    size_t D = 2 * shape.h;
    m->attends = m->model == CARNN__ANSWER_AP ||
                 carnn__chosen(p->model, CARNN__ANSWER_POOLING) == 1;
    m->match.manhattan = m->model == CARNN__ANSWER_CA;
    m->aligned.first = carnn__chosen(p->model, CARNN__ANSWER_DIRECTION) == 1;
    if (m->aligns)
        carnn__aligned_plan(p, &m->aligned, shape, CARNN__ANSWER_DROP_LAYERS, t);
    if (m->attends) m->sum = carnn__plan_mat(p, t->most_texts, D);
    if (m->model == CARNN__ANSWER_AP) carnn__attentive_plan(p, &m->attentive, "attend", D, t);
    else if (m->attends) carnn__additive_plan(p, &m->attend, "attend", D, shape.h, t);
    carnn__similarity_plan(p, &m->match, D, t);
    if (p->arena && t->most_items == 1 && !p->work->g)
        m->heat = carnn__floats(p->arena, 1, m->net.corpus.most_size[1] / 2);
}

static void carnn__answer_parts(carnn__plan *p, void *state) {
    carnn__answer *m = (carnn__answer *)state;
    const carnn_model *model = p->model;
    carnn__texts *t = &m->net.texts;
    size_t more = carnn__option(model, CARNN__ANSWER_OVERLAP) > 0.0 ? CARNN__OVERLAPS : 0;
    size_t h = (size_t)model->desc.hidden, e = (size_t)model->desc.embedding;
    int siamese, matches = carnn__chosen(model, CARNN__ANSWER_MODEL) >= CARNN__ANSWER_CA;
    int reads = !matches && carnn__reads_context(model->desc.cell);
    int direct = carnn__chosen(model, CARNN__ANSWER_DECOMPOSITION) == 1;
    int fixed = carnn__option(model, CARNN__ANSWER_TUNE) <= 0.0;
    carnn__rnn_shape shape = carnn__encoder_shape(model, CARNN__ANSWER_ENCODER, 2, h,
                                                  matches ? 0 : h);
    m->model = carnn__chosen(model, CARNN__ANSWER_MODEL);
    m->loss = carnn__chosen(model, CARNN__ANSWER_LOSS);
    siamese = m->siamese = m->model == CARNN__ANSWER_SIAMESE;
    m->matches = matches;
    m->aligns = carnn__answer_aligns(model);
    carnn__texts_plan(p, t, 3, !reads && !more, more ? carnn__answer_flag : NULL);
    carnn__ranks_plan(p, &m->ranks);
    m->net.whole = m->loss == CARNN__ANSWER_RANK ? &m->ranks : NULL;
    m->hinge.hardest = m->loss == CARNN__ANSWER_HARDEST;
    carnn__hinge_plan(p, &m->hinge, t->most_items);
    if (!fixed) m->words.table = carnn__declare_words(p);
    carnn__embed_plan(p, &m->words, t, more);
    carnn__linear_plan(p, &m->project, "word", "project", t->most_inputs, e + more, h, 1,
                       CARNN__IDENTITY);
    m->encoder.drop = CARNN__ANSWER_DROP_LAYERS;
    m->encoder.drop_input = shape.rcrn ? CARNN__ANSWER_DROP_WORDS : 0; /* else it is on words */
    if (!m->aligns)
        carnn__rnn_plan(p, &m->encoder, "cell", shape, t->most_inputs, t->most_rows, t->most_texts);
    if (reads) carnn__position_plan(p, &m->context, h, t);
    m->pool.kinds = 1;
    m->pool.kind[0] = m->matches ? CARNN__POOL_MAX : siamese ? CARNN__POOL_LAST : CARNN__POOL_MEAN;
    carnn__pool_plan(p, &m->pool, 2 * h, 2, t);
    if (m->matches) carnn__answer_match_parts(p, m, shape);
    if (!siamese && !m->matches) {
        m->skips = carnn__chosen(model, CARNN__ANSWER_WEIGHTING) == 1;
        if (m->skips) m->skip = carnn__plan_mat(p, t->most_rows, 2 * h);
        carnn__additive_plan(p, &m->attend, "attend", 2 * h, h, t);
        carnn__compare_plan(p, &m->compare, 2 * h, !direct, t);
        carnn__linear_plan(p, &m->hidden, "hidden", "weight", t->most_items,
                           m->compare.f.columns, h, 1, CARNN__TANH);
    }
    if (!m->matches) {
        m->top = carnn__plan_mat(p, t->most_items, (siamese ? 1 : h) + more);
        carnn__linear_plan(p, &m->output, "output", "weight", t->most_items, m->top.columns, 1,
                           m->loss == CARNN__ANSWER_PAIR, CARNN__LOGITS);
    }
    p->store->fixed = 1;
    if (fixed) m->words.table = carnn__declare_words(p);
    carnn__overlap_plan(p, &m->overlap, CARNN__UNKNOWN,
                        m->matches && !more ? HUGE_VAL
                                            : carnn__option(model, CARNN__ANSWER_OVERLAP));
}

static void carnn__answer_init(carnn_model *model, const carnn_dataset *data) {
    float *top;
    size_t i;
    carnn__overlap_init(model, data, CARNN__UNKNOWN, carnn__answer_word);
    if (carnn__chosen(model, CARNN__ANSWER_MODEL) != CARNN__ANSWER_SIAMESE) return;
    top = carnn__named(&model->params, "output.weight");
    for (i = 0; i < (carnn__option(model, CARNN__ANSWER_OVERLAP) > 0.0 ? 1 + CARNN__OVERLAPS : 1);)
        top[i++] = 5.0f; /* a cosine is small for a sigmoid */
}

static const carnn__mat *carnn__answer_states(const carnn__answer *m) {
    return m->aligns ? &m->aligned.s : carnn__rnn_output(&m->encoder);
}

/* The weights of words (R, 1), NULL where they have none. */
static carnn__mat *carnn__answer_weights(carnn__answer *m) {
    if (m->siamese || (m->matches && !m->attends)) return NULL;
    return m->model == CARNN__ANSWER_AP ? &m->attentive.w : &m->attend.score.y;
}

/* What the texts of ca, ap and cosine have become (S, D). Of ca with attention, H_X is still the
   maximum, as it asks for the words of Y. */
static carnn__mat *carnn__answer_pooled(carnn__answer *m) {
    return m->attends ? &m->sum : &m->pool.y;
}

static void carnn__answer_match(carnn__work *work, carnn__answer *m, uint64_t key) {
    const carnn__texts *t = &m->net.texts;
    const carnn__mat *x = &m->project.y, *s = carnn__answer_states(m);
    size_t D = s->columns, i, Y = m->aligned.first ^ 1;
    if (m->aligns) {
        carnn__aligned_forward(work, &m->aligned, t, x, &m->pool, m->overlap.stem, key);
    } else {
        carnn__rnn_forward(work, &m->encoder, carnn__texts_read(t, x, NULL), key);
        carnn__pool_words(work, &m->pool, t, s, 0);
    }
    if (m->attends) carnn__mat_clear(&m->sum, t->texts);
    if (m->model == CARNN__ANSWER_AP) {
        carnn__attentive_run(work, &m->attentive, t, s, 0);
        carnn__weigh(work, t, 0, 1, s, &m->attentive.w, &m->sum, 0);
    } else if (m->attends) {
        carnn__additive_forward(work, &m->attend, t, s, &m->pool.y);
        carnn__weigh(work, t, Y, 2, s, &m->attend.score.y, &m->sum, 0);
        for (i = Y ^ 1; i < t->texts; i += 2)
            memcpy(m->sum.x + i * D, m->pool.y.x + i * D, D * sizeof(float));
    }
    carnn__similarity_run(work, &m->match, t, carnn__answer_pooled(m), 0);
}

static void carnn__answer_match_back(carnn__work *work, carnn__answer *m, uint64_t key) {
    const carnn__texts *t = &m->net.texts;
    const carnn__mat *x = &m->project.y, *s = carnn__answer_states(m);
    size_t D = s->columns, i, Y = m->aligned.first ^ 1;
    carnn__similarity_run(work, &m->match, t, carnn__answer_pooled(m), 1);
    if (m->model == CARNN__ANSWER_AP) {
        carnn__weigh(work, t, 0, 1, s, &m->attentive.w, &m->sum, 1);
        carnn__attentive_run(work, &m->attentive, t, s, 1);
    } else if (m->attends) {
        for (i = Y ^ 1; i < t->texts; i += 2)
            work->engine->k->add(m->sum.d + i * D, m->pool.y.d + i * D, D);
        carnn__weigh(work, t, Y, 2, s, &m->attend.score.y, &m->sum, 1);
        carnn__additive_backward(work, &m->attend, t, s, &m->pool.y);
    }
    if (m->aligns) {
        carnn__aligned_backward(work, &m->aligned, t, x, &m->pool, key);
    } else {
        carnn__pool_words(work, &m->pool, t, s, 1);
        carnn__rnn_backward(work, &m->encoder, carnn__texts_read(t, x, NULL), key);
    }
}

static void carnn__answer_forward(carnn__work *work, uint64_t key) {
    carnn__answer *m = (carnn__answer *)work->state;
    const carnn__texts *t = &m->net.texts;
    const carnn__mat *c = m->context.ramp ? &m->context.y : NULL;
    const carnn__mat *s = carnn__rnn_output(&m->encoder), *f = &m->compare.f;
    size_t p, width = m->top.columns, own = width - (t->flag ? CARNN__OVERLAPS : 0);
    size_t D = m->pool.y.columns;
    carnn__embed_forward(work, &m->words, t);
    if (t->flag) carnn__overlap_inputs(work, &m->overlap, t, &m->words.y);
    if (!m->encoder.drop_input)
        carnn__drop(work, m->words.y.x, t->inputs * m->words.y.columns, key,
                    CARNN__ANSWER_DROP_WORDS);
    carnn__linear_forward(work, &m->project, &m->words.y, t->inputs);
    m->hinge.key = carnn__stream(key, CARNN__ANSWER_NEGATIVES);
    if (m->matches) {
        carnn__answer_match(work, m, key);
        return;
    }
    if (c) carnn__position_run(work, &m->context, t, &m->project.y, 0);
    carnn__rnn_forward(work, &m->encoder, carnn__texts_read(t, &m->project.y, c), key);
    carnn__pool_words(work, &m->pool, t, s, 0);
    if (!m->siamese) {
        if (m->skips) carnn__differences(t, s, &m->skip, 0);
        carnn__additive_forward(work, &m->attend, t, m->skips ? &m->skip : s, &m->pool.y);
        carnn__compare_run(work, &m->compare, t, s, &m->attend.score.y, 0);
        carnn__drop(work, f->x, t->count * f->columns, key, CARNN__ANSWER_DROP_SUMS);
        carnn__linear_forward(work, &m->hidden, f, t->count);
    }
    for (p = 0; p < t->count; p++) {
        float *top = m->top.x + p * width, *v = m->pool.y.x + 2 * p * D;
        if (m->siamese) *top = carnn__cosine(work->engine->k, D, v, v + D);
        else memcpy(top, m->hidden.y.x + p * own, own * sizeof(float));
        if (t->flag) carnn__overlap_pair(work, &m->overlap, t, p, top + own);
    }
    carnn__mat_clear(&m->top, t->count);
    carnn__linear_forward(work, &m->output, &m->top, t->count);
}

static void carnn__answer_iwan_back(carnn__work *work, carnn__answer *m, uint64_t key) {
    const carnn__texts *t = &m->net.texts;
    const carnn__mat *c = m->context.ramp ? &m->context.y : NULL;
    const carnn__mat *s = carnn__rnn_output(&m->encoder), *f = &m->compare.f;
    size_t p, width = m->top.columns, own = width - (t->flag ? CARNN__OVERLAPS : 0);
    size_t D = m->pool.y.columns;
    carnn__linear_backward(work, &m->output, &m->top, t->count);
    for (p = 0; p < t->count; p++) {
        size_t v = 2 * p * D;
        if (m->siamese)
            carnn__cosine_back(work->engine->k, D, m->pool.y.x + v, m->pool.y.x + v + D,
                               m->top.d[p * width], m->pool.y.d + v, m->pool.y.d + v + D);
        else memcpy(m->hidden.y.d + p * own, m->top.d + p * width, own * sizeof(float));
    }
    if (!m->siamese) {
        carnn__linear_backward(work, &m->hidden, f, t->count);
        carnn__drop(work, f->d, t->count * f->columns, key, CARNN__ANSWER_DROP_SUMS);
        carnn__compare_run(work, &m->compare, t, s, &m->attend.score.y, 1);
        carnn__additive_backward(work, &m->attend, t, m->skips ? &m->skip : s, &m->pool.y);
        if (m->skips) carnn__differences(t, s, &m->skip, 1);
    }
    carnn__pool_words(work, &m->pool, t, s, 1);
    carnn__rnn_backward(work, &m->encoder, carnn__texts_read(t, &m->project.y, c), key);
    if (c) carnn__position_run(work, &m->context, t, &m->project.y, 1);
}

static void carnn__answer_backward(carnn__work *work, uint64_t key) {
    carnn__answer *m = (carnn__answer *)work->state;
    const carnn__texts *t = &m->net.texts;
    (m->matches ? carnn__answer_match_back : carnn__answer_iwan_back)(work, m, key);
    carnn__linear_backward(work, &m->project, &m->words.y, t->inputs);
    if (!m->encoder.drop_input)
        carnn__drop(work, m->words.y.d, t->inputs * m->words.y.columns, key,
                    CARNN__ANSWER_DROP_WORDS);
    carnn__embed_backward(work, &m->words, t);
}

static carnn__logits carnn__answer_output(const carnn__work *work) {
    const carnn__answer *m = (const carnn__answer *)work->state;
    const carnn__texts *t = &m->net.texts;
    carnn__logits o = {CARNN__OUTPUT_SCORE, m->matches ? &m->match.z : &m->output.y, t->count, NULL,
                       t->item, t->count, NULL};
    return o;
}

static double carnn__answer_loss(carnn__work *work, carnn__tally *tally) {
    carnn__answer *m = (carnn__answer *)work->state;
    const carnn__texts *t = &m->net.texts;
    const carnn__mat *z = carnn__answer_output(work).z;
    double *counted = &tally->sum[CARNN__RANKS_LOSSES];
    carnn__ranks_count(work, &m->ranks, t, z->x, tally);
    if (m->loss == CARNN__ANSWER_RANK) return carnn__rank_loss(work, &m->ranks, t, z, counted);
    if (m->loss >= CARNN__ANSWER_HINGE) return carnn__hinge_loss(work, &m->hinge, t, z, counted);
    if (m->model == CARNN__ANSWER_CA) return carnn__log_loss(work, t, z);
    return carnn__pair_loss(work, t, z, m->class_weight);
}

/* The share of each word in v . v, v what its text has become: of the columns whose maximum it is,
   or of its part of the weighted sum. */
static void carnn__answer_explain_match(carnn_session *s, size_t count, carnn_contribution *out,
                                        carnn_explanation *e) {
    carnn__answer *m = (carnn__answer *)s->work.state;
    const carnn__texts *t = &m->net.texts;
    const carnn__mat *x = carnn__answer_states(m), *v = carnn__answer_pooled(m);
    const carnn__mat *w = carnn__answer_weights(m);
    size_t D = x->columns, text, r, j;
    e->count = carnn__texts_rows(t);
    e->exact = 1;
    for (text = 0; text < t->texts; text++) {
        const float *y = v->x + text * D;
        const uint32_t *where = m->pool.where + text * D;
        int weighs = m->model == CARNN__ANSWER_AP || (w && text != m->aligned.first);
        double squares = (double)s->work.engine->k->dot(y, y, D);
        for (r = t->at[text]; r < t->at[text + 1] && r < count; r++) {
            carnn_contribution c = {s->model->task->roles[text].name, s->word[r], CARNN_HAS_SHARE,
                                    0.0, weighs ? (double)w->x[r] : 0.0, 0.0};
            double sum = 0.0;
            for (j = 0; j < D; j++)
                if (weighs) sum += c.attention * (double)x->x[r * D + j] * (double)y[j];
                else if (where[j] == r) sum += (double)y[j] * (double)y[j];
            if (weighs) c.has |= CARNN_HAS_ATTENTION;
            if (squares > 0.0) c.share = sum / squares;
            out[r] = c;
        }
    }
}

static void carnn__answer_explain(carnn_session *s, size_t count, carnn_contribution *out,
                                  carnn_explanation *e) {
    carnn__answer *m = (carnn__answer *)s->work.state;
    const carnn__mat *w = carnn__answer_weights(m);
    if (m->matches) carnn__answer_explain_match(s, count, out, e);
    else carnn__explain_words(s, &m->encoder, w ? w->x : NULL, count, out, e);
}

/* How much words have to do with each other: G of attentive pooling, the cosine of their states. */
static const float *carnn__answer_heat(const carnn_session *s, int of_second, size_t rows,
                                       size_t columns) {
    const carnn__answer *m = (const carnn__answer *)s->work.state;
    const carnn__mat *x = carnn__answer_states(m);
    size_t D = x->columns, i, j, mine = of_second ? columns : 0, other = of_second ? 0 : rows;
    for (i = 0; i < rows; i++)
        for (j = 0; j < columns; j++)
            m->heat[i * columns + j] =
                m->model == CARNN__ANSWER_AP
                    ? m->attentive.G.x[of_second ? j * rows + i : i * columns + j]
                    : carnn__cosine(s->work.engine->k, D, x->x + (mine + i) * D,
                                    x->x + (other + j) * D);
    return m->heat;
}

static const float *carnn__answer_alignment(const carnn_session *s, int of_second, size_t *rows,
                                            size_t *columns) {
    const carnn__answer *m = (const carnn__answer *)s->work.state;
    const size_t *at = m->net.texts.at;
    size_t first = at[1], second = at[2] - at[1];
    if (m->siamese) return NULL;
    *rows = of_second ? second : first;
    *columns = of_second ? first : second;
    if (m->matches) return carnn__answer_heat(s, of_second, *rows, *columns);
    return m->compare.E.x + (of_second ? first * second : 0);
}

static const carnn__session_kind carnn__answer_session = {
    "predict and explain", 2, carnn__net_session_carve, NULL, carnn__net_session_predict, NULL,
    0, NULL, carnn__answer_explain, carnn__answer_alignment};

static const char *const carnn__answer_variants[] = {
    "hidden=19 embedding=101",
    "hidden=19 embedding=101 cell=ncarnn decomposition=direct loss=pair",
    "hidden=19 embedding=101 cell=scarnn weighting=skip",
    "hidden=19 embedding=101 cell=lstm overlap=0",
    "hidden=19 embedding=101 cell=icarnn model=siamese",
    "hidden=19 embedding=101 cell=gru model=siamese overlap=0 loss=pair",
    "hidden=19 embedding=17 model=ca",
    "hidden=19 embedding=17 model=ca cell=gru pooling=attention direction=a2q loss=rank layers=2",
    "hidden=19 embedding=17 model=ca cell=rnn alignment=none overlap=3",
    "hidden=19 embedding=17 model=ca cell=icarnn loss=hinge",
    "hidden=19 embedding=17 model=ap", "hidden=19 embedding=17 model=ap encoder=rcrn loss=rank",
    "hidden=19 embedding=17 model=cosine loss=hardest",
    "hidden=19 embedding=17 model=cosine pooling=attention loss=pair",
    "hidden=19 embedding=101 cell=icarnn encoder=rcrn",
    "hidden=19 embedding=101 cell=scarnn encoder=rcrn layers=2 raw_output_gate=1", NULL};

/* 20 questions of 8 words with 20 sentences of 24 words each, one of which is right. */
static void carnn__answer_bench_line(carnn__bench_text *t, unsigned i) {
    unsigned j;
    carnn__bench_words(t, 1, i / 20, 8);
    for (j = 0; j < 3; j++) {
        carnn__bench_print(t, j ? " " : "\t");
        carnn__bench_words(t, 2, 3 * i + j, 8);
    }
    carnn__bench_print(t, "\t%d", i % 20 == 0);
}

static const carnn__task_bench carnn__answer_bench = {
    {150, 50}, "scarnn", NULL, 64, "pairs/s", "scoring", 400, 0, carnn__answer_bench_line,
    "model=ca cell=lstm"};

static const carnn__task carnn__answer_task = {
    "answer", "rank sentences by how well they answer a question",
    CARNN__TEXT_ONLY(&carnn__pair_reader), carnn__answer_roles,
    carnn__answer_options,
    "embedding=50 model=iwan decomposition=orthogonal weighting=attention epochs=5 batch=64 "
    "lr_end=0.05 clip=5 average=0.995 weight_decay=0.3 encoder=rnn",
    carnn__answer_adapt, NULL, carnn__answer_reserved,
    CARNN__COUNT(carnn__answer_reserved), CARNN__TEXT_ONLY(carnn__net_build), carnn__answer_check,
    sizeof(carnn__answer), carnn__answer_parts, carnn__answer_init, carnn__answer_tokens,
    {CARNN__ANSWER_PIECE, {CARNN__ANSWER_ROWS, CARNN__ANSWER_CELLS}, 0}, carnn__answer_measure,
    NULL, carnn__answer_forward, carnn__answer_output, carnn__answer_loss, carnn__answer_backward,
    NULL, NULL, {{"map", 0, 0}, {"mrr", 0, 0}, {NULL, 0, 0}}, carnn__ranks_score,
    &carnn__answer_session, NULL,
    "a b\tb a\t1\na b\te\t0\na b\tc e b\t0\nd c\td\t1\nd c\ta d b\t0\n",
    carnn__answer_variants, CARNN__TRAIN_ONLY(&carnn__answer_bench)};

#endif
/* =============================================================================================
   @@HEAD classify   which class is a text of?

     x_1 .. x_n = layers of [fw; bw](E w_1 .. E w_n)          E (V, e)   x_i (D)
     v = [max_i x_i; mean_i x_i; min_i x_i; last states]      those that --pooling names
     y = relu(W1 v + b1)    P(class) = softmax(W2 y + b2)     W1 (h, pools D)   W2 (classes, h)

   Dropout is on E w_i, between layers, and on v. Word vectors that were read are trained, too.
   ============================================================================================= */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

#define CARNN__CLASSIFY_ROWS 8192 /* words of a batch, which one text may exceed */

enum { /* in carnn_model_desc.option */
    CARNN__CLASSIFY_FINE = CARNN__CLASS_FINE,
    CARNN__CLASSIFY_DIRECTIONS,
    CARNN__CLASSIFY_POOLING,
    CARNN__CLASSIFY_WORDS,
    CARNN__CLASSIFY_CONTEXT,
    CARNN__CLASSIFY_ENCODER,
    CARNN__CLASSIFY_PHRASES = CARNN__CLASS_PHRASES
};

/* The first ones are the names of carnn__pooling. */
static const char *const carnn__poolings[] = {
    "max", "mean", "min", "last", "max,mean", "max,min", "max,last", "mean,min", "mean,last",
    "min,last", "max,mean,min", "max,mean,last", "max,min,last", "mean,min,last",
    "max,mean,min,last", NULL};

static const char *const carnn__classify_contexts[] = {"none", "text", NULL};

static const carnn_option carnn__classify_options[] = {
    CARNN__OPTION_WHOLE("fine", CARNN__CLASSIFY_FINE, 0, 1, 0,
                        "1: the class is all of COARSE:fine, not only COARSE"),
    CARNN__OPTION_WHOLE("directions", CARNN__CLASSIFY_DIRECTIONS, 1, 2, 0,
                        "2: texts are read backwards, too"),
    CARNN__OPTION_CHOICE("pooling", CARNN__CLASSIFY_POOLING, carnn__poolings,
                         "of the words' states: max, mean, min, last, or several with commas"),
    CARNN__OPTION_WHOLE("max_words", CARNN__CLASSIFY_WORDS, 1, 65536, 0,
                        "words of a text that are read, from its beginning"),
    CARNN__OPTION_CHOICE("context", CARNN__CLASSIFY_CONTEXT, carnn__classify_contexts,
                         "what the context is, none or the position encoding of the text"),
    CARNN__ENCODER_OPTIONS(CARNN__CLASSIFY_ENCODER),
    CARNN__OPTION_WHOLE("phrases", CARNN__CLASSIFY_PHRASES, 0, 1, 0,
                        "1: of trees every phrase is an example"),
    CARNN__OPTION_END};

static void carnn__classify_adapt(carnn_model_desc *model, carnn_train_desc *train) {
    (void)train;
    carnn__option_default(model, CARNN__CLASSIFY_CONTEXT,
                          model->option[CARNN__CLASSIFY_ENCODER] > 1.0 &&
                          carnn__reads_context(model->cell) ? 2 : 1);
}

static int carnn__classify_has_context(const carnn_model *model) {
    return carnn__chosen(model, CARNN__CLASSIFY_CONTEXT) == 1;
}

static carnn_status carnn__classify_check(const carnn_model *model, carnn_error *error) {
    if (!model->choices.count)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0,
                           "a classify model needs training data with classes");
    if (carnn__classify_has_context(model) && !carnn__reads_context(model->desc.cell))
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "context is text, which the cell %s does "
                           "not read", model->desc.cell);
    return CARNN_OK;
}

static const carnn__role carnn__classify_roles[] = {{"text", CARNN__WORDS, 0},
                                                    {NULL, CARNN__WORDS, 0}};

static size_t carnn__classify_words(const carnn_model *model) {
    return (size_t)carnn__option(model, CARNN__CLASSIFY_WORDS);
}

typedef struct carnn__classify {
    carnn__net net;
    carnn__embed words;
    carnn__position context;
    carnn__rnn encoder;
    carnn__pool_part pool;
    carnn__linear hidden, output;
    uint32_t *target;   /* (B) */
    uint32_t *count[2]; /* (classes, 3) told, there and rightly told so far; in a vote */
} carnn__classify;

enum { CARNN__CLASSIFY_DROP_WORDS = 1, CARNN__CLASSIFY_DROP_SUM, CARNN__CLASSIFY_DROP_LAYERS };

static void carnn__classify_parts(carnn__plan *p, void *state) {
    carnn__classify *m = (carnn__classify *)state;
    carnn__texts *t = &m->net.texts;
    const carnn_model_desc *d = &p->model->desc;
    const char *pooling = carnn__poolings[carnn__chosen(p->model, CARNN__CLASSIFY_POOLING)];
    size_t h = (size_t)d->hidden, e = (size_t)d->embedding, i;
    carnn__rnn_shape s = carnn__encoder_shape(p->model, CARNN__CLASSIFY_ENCODER,
                                              (size_t)d->option[CARNN__CLASSIFY_DIRECTIONS], e,
                                              carnn__classify_has_context(p->model) ? e : 0);
    size_t D = s.directions * h;
    carnn__texts_plan(p, t, 1, 1, NULL);
    m->words.table = carnn__declare_words(p);
    carnn__embed_plan(p, &m->words, t, 0);
    m->context.own = 1;
    if (s.d) carnn__position_plan(p, &m->context, e, t);
    m->encoder.drop_input = CARNN__CLASSIFY_DROP_WORDS;
    m->encoder.drop = CARNN__CLASSIFY_DROP_LAYERS;
    carnn__rnn_plan(p, &m->encoder, "cell", s, t->most_inputs, t->most_rows, t->most_texts);
    for (m->pool.kinds = i = 0; i < CARNN__POOL_COUNT; i++)
        if (strstr(pooling, carnn__poolings[i])) m->pool.kind[m->pool.kinds++] = (carnn__pooling)i;
    carnn__pool_plan(p, &m->pool, D, s.directions, t);
    carnn__linear_plan(p, &m->hidden, "hidden", "weight", t->most_items, m->pool.kinds * D, h, 1,
                       CARNN__RELU);
    carnn__linear_plan(p, &m->output, "output", "weight", t->most_items, h,
                       p->model->choices.count, 1, CARNN__LOGITS);
    if (!p->arena) return;
    m->target = (uint32_t *)carnn__take(p->arena, t->most_items, sizeof(uint32_t));
    for (i = 0; i < 2; i++)
        m->count[i] = (uint32_t *)carnn__take(p->arena, p->model->choices.count,
                                              3 * sizeof(uint32_t));
}

static void carnn__classify_forward(carnn__work *work, uint64_t key) {
    carnn__classify *m = (carnn__classify *)work->state;
    const carnn__texts *t = &m->net.texts;
    carnn__mat *x = &m->words.y, *v = &m->pool.y, *c = m->context.ramp ? &m->context.y : NULL;
    size_t i;
    for (i = 0; i < t->count; i++) m->target[i] = m->net.corpus.target[t->item[i]];
    carnn__embed_forward(work, &m->words, t);
    if (c) carnn__position_run(work, &m->context, t, x, 0);
    carnn__rnn_forward(work, &m->encoder, carnn__texts_read(t, x, c), key);
    carnn__pool_words(work, &m->pool, t, carnn__rnn_output(&m->encoder), 0);
    carnn__drop(work, v->x, t->count * v->columns, key, CARNN__CLASSIFY_DROP_SUM);
    carnn__linear_forward(work, &m->hidden, v, t->count);
    carnn__linear_forward(work, &m->output, &m->hidden.y, t->count);
}

static void carnn__classify_backward(carnn__work *work, uint64_t key) {
    carnn__classify *m = (carnn__classify *)work->state;
    const carnn__texts *t = &m->net.texts;
    carnn__mat *x = &m->words.y, *v = &m->pool.y, *c = m->context.ramp ? &m->context.y : NULL;
    carnn__linear_backward(work, &m->output, &m->hidden.y, t->count);
    carnn__linear_backward(work, &m->hidden, v, t->count);
    carnn__drop(work, v->d, t->count * v->columns, key, CARNN__CLASSIFY_DROP_SUM);
    carnn__pool_words(work, &m->pool, t, carnn__rnn_output(&m->encoder), 1);
    carnn__rnn_backward(work, &m->encoder, carnn__texts_read(t, x, c), key);
    if (c) carnn__position_run(work, &m->context, t, x, 1);
    carnn__embed_backward(work, &m->words, t);
}

static carnn__logits carnn__classify_output(const carnn__work *work) {
    const carnn__classify *m = (const carnn__classify *)work->state;
    const carnn__texts *t = &m->net.texts;
    carnn__logits o = {CARNN__OUTPUT_SOFTMAX, &m->output.y, t->count, NULL, t->item, t->count,
                       m->target};
    return o;
}

/* Cross entropy; and the mean over the classes of F1 = 2 rightly told / (told + there), of those
   that are told or there. */
static double carnn__classify_loss(carnn__work *work, carnn__tally *tally) {
    const carnn__classify *m = (const carnn__classify *)work->state;
    carnn__logits o = carnn__classify_output(work);
    size_t i, K = o.z->columns, classes = 0;
    uint32_t *count = m->count[work->as_vote];
    double sum, f1 = 0.0;
    if (!tally->examples) memset(count, 0, 3 * K * sizeof(uint32_t));
    sum = carnn__choices_loss(work, tally);
    for (i = 0; i < o.count; i++) {
        size_t told = work->engine->k->argmax(o.z->x + i * K, K);
        count[3 * told]++;
        if (m->target[i] < K) count[3 * m->target[i] + 1]++;
        count[3 * told + 2] += told == m->target[i];
    }
    for (i = 0; i < 3 * K; i += 3) {
        if (!count[i] && !count[i + 1]) continue;
        f1 += 2.0 * count[i + 2] / ((double)count[i] + (double)count[i + 1]);
        classes++;
    }
    tally->sum[1] = f1 / (double)classes * (double)tally->examples; /* as is divided by them */
    return sum;
}

static const char *const carnn__classify_variants[] = {
    "hidden=19 embedding=17", "hidden=19 embedding=17 cell=gru layers=2 pooling=max,mean,min",
    "hidden=19 embedding=17 cell=ncarnn-free directions=1 layers=3 pooling=last",
    "hidden=19 embedding=19 cell=ran pooling=mean", "hidden=19 embedding=17 encoder=rcrn",
    "hidden=19 embedding=17 encoder=rcrn cell=gru-after layers=2 directions=1 raw_output_gate=1",
    "hidden=19 embedding=17 encoder=rcrn cell=scarnn layers=2",
    "hidden=19 embedding=17 cell=ncarnn context=text",
    "hidden=19 embedding=17 encoder=rcrn cell=mi-lstm layers=2",
    "hidden=19 embedding=17 cell=lstm skip=2", "hidden=19 embedding=17 cell=mi-gru skip=3", NULL};

/* Texts of 20 words and six classes. */
static void carnn__classify_bench_line(carnn__bench_text *t, unsigned i) {
    carnn__bench_print(t, "c%u\t", i % 6);
    carnn__bench_words(t, 1, i, 20);
}

static const carnn__task_bench carnn__classify_bench = {
    {128, 0}, NULL, NULL, 32, "texts/s", "predicting", 600, 0, carnn__classify_bench_line, NULL};

static const carnn__task carnn__classify_task = {
    "classify", "tell which class a text is of",
    CARNN__TEXT_ONLY(&carnn__class_reader), carnn__classify_roles,
    carnn__classify_options,
    "cell=lstm hidden=100 embedding=50 directions=2 pooling=max,mean,min max_words=400 epochs=15 "
    "batch=32 lr=0.003 lr_end=0.05 dropout=0.4 clip=5 average=0.995 encoder=rnn",
    carnn__classify_adapt, "carnn.labels", NULL, 0,
    CARNN__TEXT_ONLY(carnn__net_build), carnn__classify_check, sizeof(carnn__classify),
    carnn__classify_parts, NULL, NULL,
    {1, {CARNN__CLASSIFY_ROWS, 0}, 0}, NULL, NULL,
    carnn__classify_forward, carnn__classify_output, carnn__classify_loss, carnn__classify_backward,
    NULL, NULL, {{"accuracy", 0, 0}, {"macro_f1", 0, 0}, {NULL, 0, 0}}, NULL,
    &carnn__net_session, carnn__classify_words,
    "x\ta b a b\ny\tb a c c d\nx\tb a\ny\td b a\ny\ta c b b c\nx\tb a\nz\tb a\n",
    carnn__classify_variants, CARNN__TRAIN_ONLY(&carnn__classify_bench)};

#endif
/* =============================================================================================
   @@HEAD pair   what one sentence says of another: entailment, paraphrase, relatedness

   Both sentences go through the same layers (Tay, Luu and Hui 2018, 4.2), which are RNNs or RCRNs:

     u_i = two highway layers of P [E w_i; overlap]        P (h, e + overlap)   u_i (h)
     x_1 .. x_n = [fw; bw](u_1 .. u_n; c)      s = [max_i x_i; mean_i x_i]      s (4h)
     z = W2 (two highway layers of W1 f + b1) + b2         f = [s1; s2; s1 * s2; s1 - s2]
     W1 (h, 16h)   W2 (K, h)

   The context c of a cell that has one is the position encoding of the other sentence's u_j divided
   by their number: each sentence is read in the light of the other. Other cells read it by itself.

   `--model manhattan` has the similarity S of s1 and s2 in their place (@@NET): the second class of
   two has the probability S, and the mean grade is 1 + (K - 1) S.
   ============================================================================================= */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

#define CARNN__PAIR_ROWS 8192 /* words of a batch, which one pair may exceed */

enum { CARNN__PAIR_MODEL = CARNN__PAIR_GRADES + 1, CARNN__PAIR_OVERLAP, CARNN__PAIR_TUNE,
       CARNN__PAIR_ENCODER };

static const char *const carnn__pair_targets[] = {"class", "relatedness", NULL};
static const char *const carnn__pair_models[] = {"highway", "manhattan", NULL};

static const carnn_option carnn__pair_options[] = {
    CARNN__OPTION_CHOICE("target", CARNN__PAIR_TARGET, carnn__pair_targets,
                         "what is told of a pair, class or relatedness"),
    CARNN__OPTION_WHOLE("grades", CARNN__PAIR_GRADES, 2, 100, 0,
                        "relatedness is a grade from 1 to this"),
    CARNN__OPTION_CHOICE("model", CARNN__PAIR_MODEL, carnn__pair_models, "highway or manhattan"),
    CARNN__OPTION_WHOLE("overlap", CARNN__PAIR_OVERLAP, 0, 1e9, 1,
                        "letters by which words of both are the same; 0: not told of them"),
    CARNN__OPTION_WHOLE("tune_vectors", CARNN__PAIR_TUNE, 0, 1, 0,
                        "1: word vectors that were read are trained, too"),
    CARNN__ENCODER_OPTIONS(CARNN__PAIR_ENCODER),
    CARNN__OPTION_END};

static void carnn__pair_adapt(carnn_model_desc *model, carnn_train_desc *train) {
    (void)train;
    if (!model->vector_count) carnn__option_default(model, CARNN__PAIR_TUNE, 1);
}

static const carnn__role carnn__pair_roles[] = {
    {"first", CARNN__TOKENS, 0}, {"second", CARNN__TOKENS, 0}, {NULL, CARNN__TOKENS, 0}};

#ifndef CARNN_NO_TEXT

static carnn_status carnn__pair_build(carnn_model *model, const carnn_dataset *data,
                                      carnn_error *error) {
    carnn_status status = carnn__net_build(model, data, error);
    if (status || carnn__pair_grades(model->desc.option) || !data->item_count) return status;
    if (model->choices.count > 1) return CARNN_OK;
    return carnn__target_fail(data, data->item_count - 1, "a second class to the end", error);
}

/* Every target has to be one that the model knows, but of pairs that are only to be predicted. */
static carnn_status carnn__pair_pieces(carnn__work *work, carnn_error *error) {
    const carnn_dataset *data = work->data;
    carnn__corpus *c = carnn__corpus_of(work);
    double grades = (double)carnn__pair_grades(work->model->desc.option);
    size_t i;
    for (i = 0; !work->wanted && i < data->item_count; i++) {
        double y = (double)data->items[i].value;
        if (grades > 0.0 ? y >= 1.0 && y <= grades : c->target[i] != CARNN__NO_INDEX) continue;
        return carnn__target_fail(data, i, grades > 0.0 ? "a grade that the model knows"
                                                      : "a class that the model knows", error);
    }
    return carnn__corpus_cut(work, error);
}

#endif

static carnn_status carnn__pair_check(const carnn_model *model, carnn_error *error) {
    size_t K = model->choices.count;
    int manhattan = carnn__chosen(model, CARNN__PAIR_MODEL) == 1;
    if (carnn__pair_grades(model->desc.option) || K == 2 || (K > 2 && !manhattan)) return CARNN_OK;
    return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "a pair model needs grades or two classes%s, "
                       "found %zu classes", manhattan ? "" : " or more", K);
}

/* --- parts ----------------------------------------------------------------------------------- */

typedef struct carnn__pair {
    carnn__net net;
    carnn__embed words;       /* (U, e + overlaps) */
    carnn__overlap overlap;
    carnn__linear project, join, output;
    carnn__highway below, above;
    carnn__position context;
    carnn__rnn encoder;
    carnn__pool_part pool;    /* (S, s) */
    carnn__mat f;             /* (B, 4 s) */
    carnn__manhattan manhattan;
    const carnn__mat *z;      /* (B, K) */
    size_t last;              /* of two classes the one whose name comes last: 1, yes, true */
    uint32_t *target;         /* (B) */
    carnn__grades grades;
} carnn__pair;

enum { CARNN__PAIR_DROP_WORDS = 1, CARNN__PAIR_DROP_SUM, CARNN__PAIR_DROP_LAYERS };

static unsigned carnn__pair_flag(const carnn__texts *t, size_t member, uint32_t word) {
    return carnn__overlap_flag(t, &((const carnn__pair *)t->work->state)->overlap, member, word);
}

static void carnn__pair_parts(carnn__plan *p, void *state) {
    carnn__pair *m = (carnn__pair *)state;
    const carnn_model_desc *d = &p->model->desc;
    carnn__texts *t = &m->net.texts;
    const carnn__names *classes = &p->model->choices;
    size_t more = d->option[CARNN__PAIR_OVERLAP] > 0.0 ? CARNN__OVERLAPS : 0, B;
    size_t h = (size_t)d->hidden, e = (size_t)d->embedding;
    size_t grades = carnn__pair_grades(d->option), K = grades ? grades : classes->count;
    int manhattan = carnn__chosen(p->model, CARNN__PAIR_MODEL) == 1;
    int reads = carnn__reads_context(d->cell), fixed = d->option[CARNN__PAIR_TUNE] <= 0.0;
    carnn__rnn_shape shape = carnn__encoder_shape(p->model, CARNN__PAIR_ENCODER, 2, h, h);
    if (!grades)
        m->last = strcmp(carnn__names_get(classes, 1), carnn__names_get(classes, 0)) > 0;
    carnn__texts_plan(p, t, 3, !reads && !more, more ? carnn__pair_flag : NULL);
    carnn__grades_plan(p, &m->grades);
    B = t->most_items;
    if (!fixed) m->words.table = carnn__declare_words(p);
    carnn__embed_plan(p, &m->words, t, more);
    carnn__linear_plan(p, &m->project, "word", "project", t->most_inputs, e + more, h, 1,
                       CARNN__IDENTITY);
    carnn__highway_plan(p, &m->below, "below", t->most_inputs, h);
    if (reads) carnn__position_plan(p, &m->context, h, t);
    m->encoder.drop = CARNN__PAIR_DROP_LAYERS;
    carnn__rnn_plan(p, &m->encoder, "cell", shape, t->most_inputs, t->most_rows, t->most_texts);
    m->pool.kinds = 2;
    m->pool.kind[0] = CARNN__POOL_MAX;
    m->pool.kind[1] = CARNN__POOL_MEAN;
    carnn__pool_plan(p, &m->pool, 2 * h, 2, t);
    m->z = manhattan ? &m->manhattan.z : &m->output.y;
    if (manhattan) {
        m->manhattan.flips = !grades && !m->last;
        carnn__manhattan_plan(p, &m->manhattan, m->pool.y.columns, K, t);
    } else {
        m->f = carnn__plan_mat(p, B, 4 * m->pool.y.columns);
        carnn__linear_plan(p, &m->join, "join", "weight", B, m->f.columns, h, 1, CARNN__IDENTITY);
        carnn__highway_plan(p, &m->above, "above", B, h);
        carnn__linear_plan(p, &m->output, "output", "weight", B, h, K, 1, CARNN__LOGITS);
    }
    p->store->fixed = 1;
    if (fixed) m->words.table = carnn__declare_words(p);
    if (more)
        carnn__overlap_plan(p, &m->overlap, CARNN__UNKNOWN, d->option[CARNN__PAIR_OVERLAP]);
    if (p->arena) m->target = (uint32_t *)carnn__take(p->arena, B, sizeof(uint32_t));
}

static void carnn__pair_init(carnn_model *model, const carnn_dataset *data) {
    if (carnn__option(model, CARNN__PAIR_OVERLAP) > 0.0)
        carnn__overlap_init(model, data, CARNN__UNKNOWN, carnn__answer_word);
}

/* --- from encodings to logits ---------------------------------------------------------------- */

/* f = [s1; s2; s1 * s2; s1 - s2] of every pair, or backward. */
static void carnn__pair_features(const carnn__pair *m, int backward) {
    size_t s = m->pool.y.columns, b, j;
    for (b = 0; b < m->net.texts.count; b++) {
        size_t at = 2 * b * s;
        const float *x = m->pool.y.x + at, *y = x + s;
        for (j = 0; j < s; j++) {
            float *f = m->f.x + 4 * b * s + j, *df = m->f.d + 4 * b * s + j;
            if (backward) {
                m->pool.y.d[at + j] += df[0] + df[2 * s] * y[j] + df[3 * s];
                m->pool.y.d[at + s + j] += df[s] + df[2 * s] * x[j] - df[3 * s];
            } else {
                f[0] = x[j];
                f[s] = y[j];
                f[2 * s] = x[j] * y[j];
                f[3 * s] = x[j] - y[j];
            }
        }
    }
    if (!backward) carnn__mat_clear(&m->f, m->net.texts.count);
}

static void carnn__pair_forward(carnn__work *work, uint64_t key) {
    carnn__pair *m = (carnn__pair *)work->state;
    const carnn__texts *t = &m->net.texts;
    const carnn__mat *c = m->context.ramp ? &m->context.y : NULL, *u = &m->below.y[1];
    carnn__mat *x = &m->words.y;
    size_t i;
    for (i = 0; i < t->count; i++) m->target[i] = m->net.corpus.target[t->item[i]];
    carnn__embed_forward(work, &m->words, t);
    if (t->flag) carnn__overlap_inputs(work, &m->overlap, t, x);
    carnn__drop(work, x->x, t->inputs * x->columns, key, CARNN__PAIR_DROP_WORDS);
    carnn__linear_forward(work, &m->project, x, t->inputs);
    carnn__highway_forward(work, &m->below, &m->project.y, t->inputs);
    if (c) carnn__position_run(work, &m->context, t, u, 0);
    carnn__rnn_forward(work, &m->encoder, carnn__texts_read(t, u, c), key);
    carnn__pool_words(work, &m->pool, t, carnn__rnn_output(&m->encoder), 0);
    if (m->z == &m->manhattan.z) {
        carnn__manhattan_run(work, &m->manhattan, t, &m->pool.y, 0);
        return;
    }
    carnn__pair_features(m, 0);
    carnn__drop(work, m->f.x, t->count * m->f.columns, key, CARNN__PAIR_DROP_SUM);
    carnn__linear_forward(work, &m->join, &m->f, t->count);
    carnn__highway_forward(work, &m->above, &m->join.y, t->count);
    carnn__linear_forward(work, &m->output, &m->above.y[1], t->count);
}

static void carnn__pair_backward(carnn__work *work, uint64_t key) {
    carnn__pair *m = (carnn__pair *)work->state;
    const carnn__texts *t = &m->net.texts;
    const carnn__mat *c = m->context.ramp ? &m->context.y : NULL, *u = &m->below.y[1];
    carnn__mat *x = &m->words.y;
    if (m->z == &m->manhattan.z) {
        carnn__manhattan_run(work, &m->manhattan, t, &m->pool.y, 1);
    } else {
        carnn__linear_backward(work, &m->output, &m->above.y[1], t->count);
        carnn__highway_backward(work, &m->above, &m->join.y, t->count);
        carnn__linear_backward(work, &m->join, &m->f, t->count);
        carnn__drop(work, m->f.d, t->count * m->f.columns, key, CARNN__PAIR_DROP_SUM);
        carnn__pair_features(m, 1);
    }
    carnn__pool_words(work, &m->pool, t, carnn__rnn_output(&m->encoder), 1);
    carnn__rnn_backward(work, &m->encoder, carnn__texts_read(t, u, c), key);
    if (c) carnn__position_run(work, &m->context, t, u, 1);
    carnn__highway_backward(work, &m->below, &m->project.y, t->inputs);
    carnn__linear_backward(work, &m->project, x, t->inputs);
    carnn__drop(work, x->d, t->inputs * x->columns, key, CARNN__PAIR_DROP_WORDS);
    carnn__embed_backward(work, &m->words, t);
}

static carnn__logits carnn__pair_output(const carnn__work *work) {
    const carnn__pair *m = (const carnn__pair *)work->state;
    const carnn__texts *t = &m->net.texts;
    carnn__logits o = {CARNN__OUTPUT_SOFTMAX, m->z, t->count, NULL, t->item, t->count, m->target};
    if (carnn__pair_grades(work->model->desc.option)) o.kind = CARNN__OUTPUT_GRADES;
    return o;
}

/* --- losses and scores ----------------------------------------------------------------------- */

/* Sums of a tally, behind that of what is right; how many metrics there are, of grades 3. */
enum { CARNN__PAIR_FOUND = 1, CARNN__PAIR_MARKED, CARNN__PAIR_METRICS = CARNN__GRADES_SUMS };

static double carnn__pair_losses(carnn__work *work, carnn__tally *tally) {
    carnn__pair *m = (carnn__pair *)work->state;
    carnn__logits o = carnn__pair_output(work);
    size_t b, K = o.z->columns;
    int grades = o.kind == CARNN__OUTPUT_GRADES;
    tally->sum[CARNN__PAIR_METRICS] = grades ? 3.0 : K == 2 ? 2.0 : 1.0;
    if (grades) return carnn__grades_loss(work, &m->grades, &m->net.texts, o.z, tally);
    for (b = 0; b < o.count; b++) {
        int told = work->engine->k->argmax(o.z->x + b * K, K) == m->last;
        int right = o.target[b] == m->last;
        tally->sum[CARNN__PAIR_FOUND] += told && right;
        tally->sum[CARNN__PAIR_MARKED] += told + right;
    }
    return carnn__choices_loss(work, tally);
}

static void carnn__pair_score(const carnn__tally *tally, carnn_scores *scores) {
    const double *sum = tally->sum;
    scores->count = (size_t)sum[CARNN__PAIR_METRICS];
    scores->metric[0].value = sum[0] / (double)carnn__max(tally->examples, 1);
    scores->metric[1].value = 2.0 * sum[CARNN__PAIR_FOUND] / fmax(sum[CARNN__PAIR_MARKED], 1.0);
    if (scores->count < 3) return;
    memmove(scores->metric, scores->metric + 2, 3 * sizeof *scores->metric);
    carnn__grades_score(tally, scores);
}

/* --- the entry ------------------------------------------------------------------------------- */

static void carnn__pair_explain(carnn_session *s, size_t count, carnn_contribution *out,
                                carnn_explanation *e) {
    const carnn__pair *m = (const carnn__pair *)s->work.state;
    carnn__explain_words(s, &m->encoder, NULL, count, out, e);
}

static const carnn__session_kind carnn__pair_session = {
    "predict and explain", 2, carnn__net_session_carve, NULL, carnn__net_session_predict, NULL,
    0, NULL, carnn__pair_explain, NULL};

static const char *const carnn__pair_variants[] = {
    "hidden=19 embedding=17", "hidden=19 embedding=17 cell=lstm overlap=0",
    "hidden=19 embedding=17 cell=gru model=manhattan overlap=0",
    "hidden=19 embedding=17 cell=scarnn model=manhattan target=relatedness grades=3",
    "hidden=19 embedding=17 cell=ncarnn target=relatedness encoder=rcrn", NULL};

/* Sentences of 10 words and three classes. */
static void carnn__pair_bench_line(carnn__bench_text *t, unsigned i) {
    carnn__bench_print(t, "c%u\t", i % 3);
    carnn__bench_words(t, 1, i, 10);
    carnn__bench_print(t, "\t");
    carnn__bench_words(t, 2, i, 10);
}

static const carnn__task_bench carnn__pair_bench = {
    {150, 0}, "lstm", NULL, 32, "pairs/s", "predicting", 600, 0, carnn__pair_bench_line,
    NULL};

static const carnn__task carnn__pair_task = {
    "pair", "tell what one sentence says of another: a class, or how related they are",
    CARNN__TEXT_ONLY(&carnn__labelled_reader), carnn__pair_roles, carnn__pair_options,
    "cell=icarnn hidden=100 embedding=50 target=class grades=5 model=highway overlap=4 epochs=15 "
    "batch=32 lr=0.002 lr_end=0.05 dropout=0.3 clip=5 average=0.995 encoder=rnn",
    carnn__pair_adapt, "carnn.labels", carnn__answer_reserved,
    CARNN__COUNT(carnn__answer_reserved), CARNN__TEXT_ONLY(carnn__pair_build), carnn__pair_check,
    sizeof(carnn__pair), carnn__pair_parts, carnn__pair_init, carnn__answer_tokens,
    {1, {CARNN__PAIR_ROWS, 0}, 0}, NULL, CARNN__TEXT_ONLY(carnn__pair_pieces),
    carnn__pair_forward, carnn__pair_output, carnn__pair_losses, carnn__pair_backward, NULL, NULL,
    {{"accuracy", 0, 0}, {"f1", 0, 0}, {"pearson", 0, 0}, {"spearman", 0, 0}, {"mse", 1, 0},
     {NULL, 0, 0}}, carnn__pair_score,
    &carnn__pair_session, NULL,
    "1\ta b a\tb a\n2\ta c c d\te\n1\tb\tb a d\n2\td b a\td a\n2\ta c b\tc d\n1\tb a\ta\n",
    carnn__pair_variants, CARNN__TRAIN_ONLY(&carnn__pair_bench)};

#endif
/* =============================================================================================
   @@HEAD cloze   which candidate is the word that is missing in a question about a text?

   The attention-sum reader of Kadlec et al. 2016, section 3: the text d_1 .. d_n and the question
   q_1 .. q_m are read by recurrent layers of their own, in both directions.

     f_i = [fw; bw](E d_1 .. E d_n) at i                           E (V, e)   f_i (D), D = 2h
     g = [fw_m; bw_1] of (E q_1 .. E q_m)                          g (D)
     s = softmax_i(f_i . g)    P(w) = sum_{i: d_i = w} s_i         (Eq. 1, 2)
     loss = -log P(answer)     ds_i = s_i - [d_i = answer] s_i / P(answer), at f_i . g

   The prediction is the candidate with the largest P, the first of equal ones. An answer that the
   text does not have has no loss to learn, and counts as wrong.

   `--model attentive`, Hermann et al. 2015 (Attentive Reader):

     s = softmax_i(v . tanh(W1 f_i + W2 g))    r = sum_i s_i f_i              (additive attention)
     P(c) = softmax_c(E_c . tanh(W3 [r; g]))                                  W3 (e, 2D)

   `--anonymous 1`: a candidate is read as one of the words <name.1> .. <name.16>, the same one in
   all of the example, and another one in every batch of training: all that a model can know of it
   is where it stands. Words that are not known share <unk> .. <unk.15> by their hash.
   ============================================================================================= */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

#define CARNN__CLOZE_ROWS 16384 /* words of the texts of a batch, which one text may exceed */

/* In carnn_model_desc.option. */
enum { CARNN__CLOZE_MODEL, CARNN__CLOZE_ANONYMOUS, CARNN__CLOZE_ENCODER };

static const char *const carnn__cloze_models[] = {"sum", "attentive", NULL};

static const carnn_option carnn__cloze_options[] = {
    CARNN__OPTION_CHOICE("model", CARNN__CLOZE_MODEL, carnn__cloze_models,
                         "sum (attention-sum reader) or attentive"),
    CARNN__OPTION_WHOLE("anonymous", CARNN__CLOZE_ANONYMOUS, 0, 1, 1,
                        "1: candidates are names without a meaning"),
    CARNN__ENCODER_OPTIONS(CARNN__CLOZE_ENCODER),
    CARNN__OPTION_END};

static const carnn__role carnn__cloze_roles[] = {
    {"text", CARNN__SPACES, 0}, {"question", CARNN__SPACES, 0}, {"candidates", CARNN__SPACES, 0},
    {NULL, CARNN__SPACES, 0}};

static const char *const carnn__cloze_reserved[] = {
    CARNN__UNKNOWN_WORDS,
    "<name.1>", "<name.2>", "<name.3>", "<name.4>", "<name.5>", "<name.6>", "<name.7>", "<name.8>",
    "<name.9>", "<name.10>", "<name.11>", "<name.12>", "<name.13>", "<name.14>", "<name.15>",
    "<name.16>"};
#define CARNN__CLOZE_NAMES 16u

/* --- words: unlike words have unlike numbers, known or not ----------------------------------- */

/* The number of a word; an unknown one has the number of words plus its hash. */
static uint32_t carnn__cloze_word(const carnn_model *model, carnn__span word) {
    uint32_t id = carnn__names_find(&model->words, word.at, word.length);
    uint32_t known = (uint32_t)model->words.count;
    if (id != CARNN__NO_INDEX) return id;
    return known + (uint32_t)(carnn__hash(word.at, word.length, 0) % (CARNN__NO_INDEX - known));
}

static size_t carnn__cloze_tokens(const carnn_model *model, carnn__span text, uint32_t role,
                                  uint32_t *ids, size_t max) {
    carnn__words w = carnn__words_of(CARNN__SPACES, text.at, text.length);
    size_t n, most = role == CARNN__CLOZE_TEXT ? CARNN__CLOZE_WORDS : CARNN__CLOZE_QUESTION;
    if (role == CARNN__CLOZE_LIST) {
        for (n = 0; n < CARNN__CLOZE_CANDIDATES && carnn__next_candidate(&text, &w.word); n++)
            if (n < max) ids[n] = carnn__cloze_word(model, w.word);
        return n;
    }
    for (n = 0; n < most && carnn__next_word(&w); n++)
        if (n < max) ids[n] = carnn__cloze_word(model, w.word);
    return n;
}

/* The candidates of an item: a token list. */
static const uint32_t *carnn__cloze_candidates(const carnn__work *work, size_t item,
                                               size_t *count) {
    const carnn__corpus *c = carnn__corpus_of(work);
    const carnn__item *x = &work->data->items[item];
    uint32_t list = c->list[x->first + x->count - 1];
    *count = carnn__list_length(&c->tokens, list);
    return c->tokens.ids + c->tokens.at[list];
}

/* Which candidate of the item a word is, or CARNN__NO_INDEX. */
static uint32_t carnn__cloze_candidate(const carnn__work *work, size_t item, uint32_t word) {
    size_t count, i;
    const uint32_t *candidate = carnn__cloze_candidates(work, item, &count);
    for (i = 0; i < count; i++)
        if (candidate[i] == word) return (uint32_t)i;
    return CARNN__NO_INDEX;
}

/* The row of E that a word of the item is read as. Candidate i has the name (a i + b) mod 16. */
static uint32_t carnn__cloze_read(const carnn__texts *t, size_t item, uint32_t word) {
    const carnn__net *net = carnn__net_of(t->work);
    uint32_t known = (uint32_t)t->work->model->words.count, i;
    if (carnn__option(t->work->model, CARNN__CLOZE_ANONYMOUS) > 0.0) {
        uint64_t r = net->key ? carnn__random(net->key, item) : 0;
        i = carnn__cloze_candidate(t->work, item, word);
        if (i < CARNN__CLOZE_NAMES)
            return (uint32_t)CARNN__UNKNOWN +
                   ((uint32_t)(r >> 8 | 1) * i + (uint32_t)r) % CARNN__CLOZE_NAMES;
    }
    return word < known ? word : (word - known) % (uint32_t)CARNN__UNKNOWN;
}

/* --- parts ----------------------------------------------------------------------------------- */

typedef struct carnn__cloze {
    carnn__net net;             /* its texts: those that are read */
    carnn__texts question;      /* (B) */
    carnn__embed words[2];      /* of the texts, of the questions */
    carnn__rnn reader[2];       /* f (R, D); states of the question */
    carnn__pool_part last;      /* g (B, D) */
    carnn__mat s;               /* (R, 1) attention */
    carnn__mat z;               /* (B, C) logits: log P of the pointer */
    uint32_t *candidate;        /* (R) which one each word of the texts is */
    uint32_t *target;           /* (B) */
    carnn_text *name;           /* (B, C) the candidates as they are written */
    int attentive;
    carnn__additive attend;
    carnn__mat sum;             /* (B, 2D) [r; g] */
    carnn__linear top;          /* (B, e) */
    int answered;               /* in a session: the next sentence begins a text */
    char told[CARNN__WORD_TEXT];
} carnn__cloze;

enum { CARNN__CLOZE_DROP_WORDS = 1, CARNN__CLOZE_DROP_LAYERS = 3 }; /* of texts, questions */

/* 0: the texts, 1: the questions. */
static carnn__texts *carnn__cloze_texts(carnn__cloze *m, size_t i) {
    return i ? &m->question : &m->net.texts;
}

/* Rows of the text and of the question. */
static void carnn__cloze_measure(const carnn__work *work, size_t item, size_t size[CARNN__SIZES]) {
    const carnn__corpus *c = carnn__corpus_of(work);
    const carnn__item *x = &work->data->items[item];
    size_t m, question = x->first + x->count - 2;
    for (size[0] = 0, m = x->first; m < question; m++)
        size[0] += carnn__list_length(&c->tokens, c->list[m]);
    size[0] = carnn__min(size[0], CARNN__CLOZE_WORDS);
    size[1] = carnn__list_length(&c->tokens, c->list[question]);
}

static void carnn__cloze_parts(carnn__plan *p, void *state) {
    static const char *const name[] = {"text", "question"};
    carnn__cloze *m = (carnn__cloze *)state;
    const carnn_model_desc *d = &p->model->desc;
    size_t h = (size_t)d->hidden, e = (size_t)d->embedding, C = CARNN__CLOZE_CANDIDATES, i, B;
    carnn__rnn_shape shape = carnn__encoder_shape(p->model, CARNN__CLOZE_ENCODER, 2, e, 0);
    m->attentive = carnn__chosen(p->model, CARNN__CLOZE_MODEL) == 1;
    m->words[0].table = m->words[1].table = carnn__declare_words(p);
    for (i = 0; i < 2; i++) {
        carnn__texts *t = carnn__cloze_texts(m, i);
        t->joined = i ? CARNN__CLOZE_QUESTION : CARNN__CLOZE_WORDS;
        t->bound = i;
        t->read = carnn__cloze_read;
        carnn__texts_plan(p, t, 1u << i, 0, NULL);
        carnn__embed_plan(p, &m->words[i], t, 0);
        m->reader[i].drop_input = CARNN__CLOZE_DROP_WORDS + i;
        m->reader[i].drop = CARNN__CLOZE_DROP_LAYERS + i * 4 * CARNN__LAYERS_MAX;
        carnn__rnn_plan(p, &m->reader[i], name[i], shape, t->most_inputs, t->most_rows,
                        t->most_texts);
    }
    B = m->net.texts.most_items;
    m->last.kinds = 1;
    m->last.kind[0] = CARNN__POOL_LAST;
    carnn__pool_plan(p, &m->last, 2 * h, 2, &m->question);
    if (m->attentive) {
        m->attend.own = 1;
        carnn__additive_plan(p, &m->attend, "attend", 2 * h, h, &m->net.texts);
        m->sum = carnn__plan_mat(p, B, 4 * h);
        carnn__linear_plan(p, &m->top, "hidden", "weight", B, 4 * h, e, 0, CARNN__TANH);
    } else m->s = carnn__plan_mat(p, m->net.texts.most_rows, 1);
    m->z = carnn__plan_mat(p, B, C);
    m->net.columns = C;
    if (!p->arena) return;
    if (!m->z.d) m->z.d = carnn__floats(p->arena, B, C);
    m->candidate = (uint32_t *)carnn__take(p->arena, m->net.texts.most_rows, sizeof(uint32_t));
    m->target = (uint32_t *)carnn__take(p->arena, B, sizeof(uint32_t));
    m->net.name = m->name = (carnn_text *)carnn__take(p->arena, B * C, sizeof *m->name);
}

/* Target, candidates and their places in the text, of every item of the batch. */
static void carnn__cloze_collect(carnn__work *work) {
    carnn__cloze *m = (carnn__cloze *)work->state;
    const carnn__texts *t = &m->net.texts;
    const carnn__corpus *c = &m->net.corpus;
    size_t b, i, k, r;
    for (b = 0; b < t->count; b++) {
        const carnn__item *x = &work->data->items[t->item[b]];
        size_t end = x->first + x->count - 2;
        carnn__span list, *name = m->name + b * CARNN__CLOZE_CANDIDATES;
        m->target[b] = x->value < 0.0f ? CARNN__NO_INDEX : (uint32_t)x->value;
        for (r = t->at[b], i = x->first; i < end; i++)
            for (k = c->tokens.at[c->list[i]];
                 k < c->tokens.at[c->list[i] + 1] && r < t->at[b + 1]; k++)
                m->candidate[r++] = carnn__cloze_candidate(work, t->item[b], c->tokens.ids[k]);
        if (!work->data->bytes) continue; /* a session has the names */
        list = carnn__text(work->data, work->data->members[end + 1].text);
        memset(name, 0, CARNN__CLOZE_CANDIDATES * sizeof *name);
        for (i = 0; i < CARNN__CLOZE_CANDIDATES && carnn__next_candidate(&list, name + i);) i++;
        if (i < CARNN__CLOZE_CANDIDATES) name[i].at = NULL;
    }
}

/* --- forward and backward -------------------------------------------------------------------- */

/* s of item b and log P of its candidates from f, g. */
static void carnn__cloze_point(carnn__work *work, const carnn__cloze *m, size_t b) {
    const size_t *at = m->net.texts.at;
    const carnn__mat *f = carnn__rnn_output(&m->reader[0]), *g = &m->last.y;
    size_t n = at[b + 1] - at[b], D = f->columns, r, i;
    float *s = m->s.x + at[b], *z = m->z.x + b * m->z.columns;
    carnn__matmul(work->engine, CARNN__NT, 1, n, D, g->x + b * D, D, f->x + at[b] * D, D, NULL, s,
                  n);
    if (n) work->engine->k->softmax(s, n);
    for (i = 0; i < m->z.columns; i++) z[i] = 0.0f;
    for (r = 0; r < n; r++)
        if (m->candidate[at[b] + r] < m->z.columns) z[m->candidate[at[b] + r]] += s[r];
    for (i = 0; i < m->z.columns; i++) z[i] = logf(fmaxf(z[i], FLT_MIN));
}

/* With e_i = f_i . g:  dP_c = dz_c / P_c;  de_i = s_i (dP of d_i - sum_c dz_c);  df_i += de_i g;
   dg += sum_i de_i f_i. */
static void carnn__cloze_point_back(carnn__work *work, const carnn__cloze *m, size_t b) {
    const size_t *at = m->net.texts.at;
    const carnn__mat *f = carnn__rnn_output(&m->reader[0]), *g = &m->last.y;
    size_t n = at[b + 1] - at[b], D = f->columns, r, i;
    const float *z = m->z.x + b * m->z.columns, *dz = m->z.d + b * m->z.columns;
    float *de = m->s.d + at[b], all = 0.0f;
    for (i = 0; i < m->z.columns; i++) all += dz[i];
    for (r = 0; r < n; r++) {
        size_t c = m->candidate[at[b] + r];
        float own = c < m->z.columns && dz[c] != 0.0f ? dz[c] / expf(z[c]) : 0.0f;
        de[r] = m->s.x[at[b] + r] * (own - all);
    }
    carnn__matmul(work->engine, CARNN__TN | CARNN__ADD, n, D, 1, de, n, g->x + b * D, D, NULL,
                  f->d + at[b] * D, D);
    carnn__matmul(work->engine, CARNN__NN | CARNN__ADD, 1, D, n, de, n, f->x + at[b] * D, D, NULL,
                  g->d + b * D, D);
}

/* z_c = E_c . y of every candidate of item b;  backward: dy += dz_c E_c;  dE_c += dz_c y */
static void carnn__cloze_choose(carnn__work *work, const carnn__cloze *m, size_t b, int backward) {
    size_t item = m->net.texts.item[b], e = m->top.y.columns, count, i, j;
    const uint32_t *candidate = carnn__cloze_candidates(work, item, &count);
    const float *y = m->top.y.x + b * e, *dz = m->z.d + b * m->z.columns;
    for (i = 0; !backward && i < m->z.columns; i++) m->z.x[b * m->z.columns + i] = -FLT_MAX;
    for (i = 0; i < count; i++) {
        size_t row = carnn__cloze_read(&m->net.texts, item, candidate[i]) * e;
        const float *E = carnn__weight(work, m->words[0].table) + row;
        if (!backward) m->z.x[b * m->z.columns + i] = work->engine->k->dot(E, y, e);
        for (j = 0; backward && j < e; j++) {
            m->top.y.d[b * e + j] += dz[i] * E[j];
            carnn__gradient(work, m->words[0].table)[row + j] += dz[i] * y[j];
        }
    }
}

/* [r; g] of every item. */
static void carnn__cloze_sum(carnn__work *work, const carnn__cloze *m, int backward) {
    const carnn__mat *f = carnn__rnn_output(&m->reader[0]);
    size_t D = f->columns, b;
    carnn__weigh(work, &m->net.texts, 0, 1, f, &m->attend.score.y, &m->sum, backward);
    for (b = 0; b < m->net.texts.count; b++) {
        size_t g = (2 * b + 1) * D;
        if (backward) work->engine->k->add(m->sum.d + g, m->last.y.d + b * D, D);
        else memcpy(m->sum.x + g, m->last.y.x + b * D, D * sizeof(float));
    }
}

static void carnn__cloze_forward(carnn__work *work, uint64_t key) {
    carnn__cloze *m = (carnn__cloze *)work->state;
    size_t i, b, B = m->net.texts.count;
    const carnn__mat *f = carnn__rnn_output(&m->reader[0]);
    carnn__texts_follow(&m->question, &m->net.texts);
    carnn__cloze_collect(work);
    for (i = 0; i < 2; i++) {
        const carnn__texts *t = carnn__cloze_texts(m, i);
        carnn__embed_forward(work, &m->words[i], t);
        carnn__rnn_forward(work, &m->reader[i], carnn__texts_read(t, &m->words[i].y, NULL), key);
    }
    carnn__pool_words(work, &m->last, &m->question, carnn__rnn_output(&m->reader[1]), 0);
    if (m->attentive) {
        carnn__additive_forward(work, &m->attend, &m->net.texts, f, &m->last.y);
        carnn__cloze_sum(work, m, 0);
        carnn__mat_clear(&m->sum, B);
        carnn__linear_forward(work, &m->top, &m->sum, B);
    }
    for (b = 0; b < B; b++)
        if (m->attentive) carnn__cloze_choose(work, m, b, 0);
        else carnn__cloze_point(work, m, b);
}

static void carnn__cloze_backward(carnn__work *work, uint64_t key) {
    carnn__cloze *m = (carnn__cloze *)work->state;
    size_t i, b, B = m->net.texts.count;
    const carnn__mat *f = carnn__rnn_output(&m->reader[0]);
    for (b = 0; b < B; b++)
        if (m->attentive) carnn__cloze_choose(work, m, b, 1);
        else carnn__cloze_point_back(work, m, b);
    if (m->attentive) {
        carnn__linear_backward(work, &m->top, &m->sum, B);
        carnn__cloze_sum(work, m, 1);
        carnn__additive_backward(work, &m->attend, &m->net.texts, f, &m->last.y);
    }
    carnn__pool_words(work, &m->last, &m->question, carnn__rnn_output(&m->reader[1]), 1);
    for (i = 2; i-- > 0;) {
        const carnn__texts *t = carnn__cloze_texts(m, i);
        carnn__rnn_backward(work, &m->reader[i], carnn__texts_read(t, &m->words[i].y, NULL), key);
        carnn__embed_backward(work, &m->words[i], t);
    }
}

static carnn__logits carnn__cloze_output(const carnn__work *work) {
    const carnn__cloze *m = (const carnn__cloze *)work->state;
    const carnn__texts *t = &m->net.texts;
    carnn__logits o = {CARNN__OUTPUT_SOFTMAX, &m->z, t->count, NULL, t->item, t->count, m->target};
    return o;
}

/* -log P of the answers; z->d becomes the gradient of the mean over those that are known. */
static double carnn__cloze_loss(carnn__work *work, carnn__tally *tally) {
    carnn__cloze *m = (carnn__cloze *)work->state;
    const carnn__texts *t = &m->net.texts;
    const float least = logf(FLT_MIN);
    size_t C = m->z.columns, b, count, known = 0;
    double sum = 0.0;
    float loss = 0.0f;
    memset(m->z.d, 0, t->count * C * sizeof(float));
    for (b = 0; b < t->count; b++)
        known += m->target[b] < C && (m->attentive || m->z.x[b * C + m->target[b]] > least);
    for (b = 0; b < t->count; b++) {
        float *z = m->z.x + b * C, *dz = m->z.d + b * C, scale = 1.0f / (float)known;
        double right;
        carnn__cloze_candidates(work, t->item[b], &count);
        right = count && work->engine->k->argmax(z, count) == m->target[b];
        tally->sum[0] += right;
        carnn__tell_part(work, right, 1.0);
        if (m->target[b] >= C || (!m->attentive && !(z[m->target[b]] > least))) continue;
        if (m->attentive) {
            memcpy(dz, z, count * sizeof(float));
            carnn__losses(work, 1, count, dz, m->target + b, scale, work->smoothing, &loss);
            sum += (double)loss;
        } else {
            sum -= (double)z[m->target[b]];
            dz[m->target[b]] = -scale;
        }
    }
    tally->examples += t->count;
    return sum;
}

/* --- sessions: a text comes sentence by sentence --------------------------------------------- */

static void carnn__cloze_carve(carnn_session *s, carnn__arena *arena) {
    const size_t most[] = {CARNN__CLOZE_WORDS, CARNN__CLOZE_QUESTION, CARNN__CLOZE_CANDIDATES};
    carnn__corpus *c = carnn__corpus_of(&s->work);
    carnn__net_session_carve(s, arena);
    c->tokens.ids = (uint32_t *)carnn__take(arena, most[0] + most[1] + most[2], sizeof(uint32_t));
    s->word = (char (*)[CARNN__WORD_TEXT])carnn__take(arena, most[0], CARNN__WORD_TEXT);
    c->most_size[0] = most[0];
    c->most_size[1] = most[1];
    s->item.value = -1.0f;
}

static void carnn__cloze_reset(carnn_session *s) {
    ((carnn__cloze *)s->work.state)->answered = 1;
}

/* A sentence of the text; the first one after a question begins a new text. */
static void carnn__cloze_hear(carnn_session *s, uint32_t role, const char *text, size_t length) {
    carnn__cloze *m = (carnn__cloze *)s->work.state;
    carnn__lists *l = &m->net.corpus.tokens;
    carnn__words w = carnn__words_of(CARNN__SPACES, text, length);
    (void)role;
    if (m->answered) l->at[0] = l->at[1] = 0;
    m->answered = 0;
    while (l->at[1] < CARNN__CLOZE_WORDS && carnn__next_word(&w)) {
        carnn__keep_text(s->word[l->at[1]], CARNN__WORD_TEXT, w.word);
        l->ids[l->at[1]++] = carnn__cloze_word(s->model, w.word);
    }
}

static void carnn__cloze_predict(carnn_session *s, const carnn_text *texts, size_t top,
                                 carnn_prediction *p) {
    carnn__cloze *m = (carnn__cloze *)s->work.state;
    carnn__lists *l = &m->net.corpus.tokens;
    carnn__span list = texts[2];
    carnn__logits o;
    size_t i;
    carnn__cloze_hear(s, CARNN__CLOZE_TEXT, texts[0].at, texts[0].length);
    l->at[2] = l->at[1] + carnn__cloze_tokens(s->model, texts[1], CARNN__CLOZE_ASKED,
                                              l->ids + l->at[1], CARNN__CLOZE_QUESTION);
    l->at[3] = l->at[2] + carnn__cloze_tokens(s->model, texts[2], CARNN__CLOZE_LIST,
                                              l->ids + l->at[2], CARNN__CLOZE_CANDIDATES);
    for (i = 0; i < CARNN__CLOZE_CANDIDATES && carnn__next_candidate(&list, m->name + i);) i++;
    if (i < CARNN__CLOZE_CANDIDATES) m->name[i].at = NULL;
    carnn__texts_collect(&m->net.texts, 0);
    carnn__cloze_forward(&s->work, 0);
    o = carnn__cloze_output(&s->work);
    m->net.top = carnn__max(top, 1);
    *p = carnn__net_prediction(&s->work, &o, 0, 0);
    m->told[0] = 0;
    if (p->count) carnn__keep_text(m->told, sizeof m->told, p->candidate[p->choice[0]]);
    m->answered = 1;
}

/* The words of the text: the attention s_i of each, which is also what it adds to P of the word. */
static void carnn__cloze_explain(carnn_session *s, size_t count, carnn_contribution *out,
                                 carnn_explanation *e) {
    const carnn__cloze *m = (const carnn__cloze *)s->work.state;
    const float *weight = m->attentive ? m->attend.score.y.x : m->s.x;
    size_t r, best = m->told[0] ? m->net.best[0] : SIZE_MAX;
    e->count = carnn__texts_rows(&m->net.texts);
    e->of = m->told;
    e->exact = !m->attentive;
    if (m->attentive && m->told[0]) e->rest = (double)m->z.x[best];
    for (r = 0; r < e->count && r < count; r++) {
        carnn_contribution c = {"text", s->word[r], CARNN_HAS_ATTENTION, 0.0, (double)weight[r],
                                0.0};
        if (!m->attentive) c.has |= CARNN_HAS_SCORE;
        if (!m->attentive && m->candidate[r] == best) c.score = c.attention;
        out[r] = c;
    }
}

static const carnn__session_kind carnn__cloze_session = {
    "predict and explain", 3, carnn__cloze_carve, carnn__cloze_reset, carnn__cloze_predict,
    carnn__cloze_hear, 0, NULL, carnn__cloze_explain, NULL};

/* --- words of a new model, the entry --------------------------------------------------------- */

#ifndef CARNN_NO_TEXT

/* Those of all texts and questions, and the candidates. */
static carnn_status carnn__cloze_build(carnn_model *model, const carnn_dataset *data,
                                       carnn_error *error) {
    const carnn_allocator *a = &model->allocator;
    unsigned char *seen = (unsigned char *)carnn__alloc_zero(a, data->text_count, 1);
    carnn__vocabulary v;
    size_t i;
    carnn__model_vocabulary(&v, model, error);
    if (!seen) v.status = carnn__out_of_memory(error);
    for (i = 0; seen && i < data->member_count; i++) {
        const carnn__member *m = &data->members[i];
        carnn__span text = carnn__text(data, m->text), candidate;
        if (seen[m->text]) continue;
        seen[m->text] = 1;
        if (m->role != CARNN__CLOZE_LIST)
            carnn__vocabulary_add(&v, CARNN__SPACES, text.at, text.length, 1);
        else while (carnn__next_candidate(&text, &candidate))
            carnn__vocabulary_add(&v, CARNN__SPACES, candidate.at, candidate.length, 1);
    }
    carnn__free(a, seen);
    return carnn__vocabulary_close(&v, (size_t)model->desc.min_count, &model->words);
}

#endif

static const char *const carnn__cloze_variants[] = {
    "hidden=19 embedding=17 anonymous=0", "hidden=19 embedding=17 cell=icarnn anonymous=1",
    "hidden=19 embedding=17 cell=lstm model=attentive anonymous=0",
    "hidden=19 embedding=17 layers=2 model=attentive anonymous=1 encoder=rcrn", NULL};

/* 21 lines an example: 20 sentences of 24 words, a question of 24. */
static void carnn__cloze_bench_line(carnn__bench_text *t, unsigned i) {
    unsigned j, number = i % 21 + 1;
    carnn__bench_print(t, "%u ", number);
    carnn__bench_words(t, 1, i, 23);
    if (number < 21) {
        carnn__bench_print(t, " c%u", i % 10);
        return;
    }
    carnn__bench_print(t, " XXXXX\tc%u\t\tc0", i % 10);
    for (j = 1; j < 10; j++) carnn__bench_print(t, "|c%u", j);
}

static const carnn__task_bench carnn__cloze_bench = {
    {128, 0}, NULL, NULL, 32, "questions/s", "predicting", 21 * 64, 0, carnn__cloze_bench_line,
    NULL};

static const carnn__task carnn__cloze_task = {
    "cloze", "find the word that a question about a text leaves out",
    CARNN__TEXT_ONLY(&carnn__cloze_reader), carnn__cloze_roles,
    carnn__cloze_options,
    "cell=gru hidden=128 embedding=64 model=sum anonymous=1 epochs=10 batch=32 lr=0.001 clip=10 "
    "dropout=0.2 encoder=rnn",
    NULL, NULL, carnn__cloze_reserved, CARNN__COUNT(carnn__cloze_reserved),
    CARNN__TEXT_ONLY(carnn__cloze_build), NULL, sizeof(carnn__cloze),
    carnn__cloze_parts, NULL, carnn__cloze_tokens,
    {1, {CARNN__CLOZE_ROWS, 0}, 0}, carnn__cloze_measure, NULL,
    carnn__cloze_forward, carnn__cloze_output, carnn__cloze_loss, carnn__cloze_backward,
    NULL, NULL, {{"accuracy", 0, 0}, {NULL, 0, 0}}, NULL,
    &carnn__cloze_session, NULL,
    "1 a b c d\n2 d e a\n3 b c\n4 XXXXX e b\ta\t\ta|b|d|x\n\n1 e c b\n2 c XXXXX e\tb\t\tb|e\n\n"
    "1 b b d\n2 e a b d\n3 d XXXXX\te\t\tb|d|e\n",
    carnn__cloze_variants, CARNN__TRAIN_ONLY(&carnn__cloze_bench)};

#endif
/* =============================================================================================
   @@TASKS   the table of tasks, options and their defaults, making a model
   ============================================================================================= */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

/* A program's own tasks: CARNN_EXTRA_HEADS(X) is X(task) for each, see examples/tagger.c. */
#ifdef CARNN_EXTRA_HEADS
#define CARNN__EXTRA_HEAD(task) extern const carnn__task task;
#define CARNN__EXTRA_ENTRY(task) &task,
CARNN_EXTRA_HEADS(CARNN__EXTRA_HEAD)
#endif

static const carnn__task *const carnn__tasks[] = {
    &carnn__dialog_task, &carnn__lm_task, &carnn__answer_task, &carnn__classify_task,
    &carnn__pair_task, &carnn__cloze_task,
#ifdef CARNN_EXTRA_HEADS
    CARNN_EXTRA_HEADS(CARNN__EXTRA_ENTRY)
#endif
};

static const carnn__task *carnn__task_at(size_t number) {
    return number < CARNN__COUNT(carnn__tasks) ? carnn__tasks[number] : NULL;
}

static const carnn__task *carnn__task_named(const char *name) {
    size_t i;
    for (i = 0; carnn__task_at(i); i++)
        if (!strcmp(carnn__task_at(i)->name, name)) return carnn__task_at(i);
    return NULL;
}

CARNN_API const char *carnn_task_name(size_t number) {
    return carnn__task_at(number) ? carnn__task_at(number)->name : NULL;
}

CARNN_API const char *carnn_task_title(size_t number) {
    return carnn__task_at(number) ? carnn__task_at(number)->title : NULL;
}

CARNN_API const char *carnn_task_data(size_t number) {
#ifdef CARNN_NO_TEXT
    (void)number;
    return NULL;
#else
    return carnn__task_at(number) ? carnn__task_at(number)->reader->help : NULL;
#endif
}

#ifndef CARNN_NO_TEXT
static const carnn__reader *carnn__reader_of(const char **task) {
    const carnn__task *found = carnn__task_named(*task);
    if (!found) return NULL;
    *task = found->name;
    return found->reader;
}
#endif

static size_t carnn__optimizer_number(const char *name) {
    size_t i = 0;
    while (i < CARNN__OPTIMIZER_COUNT && strcmp(carnn__optimizers[i].name, name)) i++;
    return i;
}

/* --- options --------------------------------------------------------------------------------- */

#define CARNN__MODEL_OPTION(field, kind, low, high, none, help)                                    \
    {#field, help, CARNN_OPTION_##kind, CARNN_OPTION_OF_MODEL, offsetof(carnn_model_desc, field),  \
     low, high, none, NULL}
#define CARNN__TRAIN_OPTION(field, kind, low, high, none, help)                                    \
    {#field, help, CARNN_OPTION_##kind, CARNN_OPTION_OF_TRAINING,                                  \
     offsetof(carnn_train_desc, field), low, high, none, NULL}

/* Those that all tasks have. */
static const carnn_option carnn__options[] = {
    CARNN__MODEL_OPTION(cell, NAME, 0, 0, 0, "recurrent cell"),
    CARNN__MODEL_OPTION(hidden, INTEGER, 1, 65536, 0, "size of the hidden state"),
    CARNN__MODEL_OPTION(embedding, INTEGER, 1, 65536, 0, "size of the word embeddings"),
    CARNN__MODEL_OPTION(layers, INTEGER, 1, CARNN__LAYERS_MAX, 0, "recurrent layers"),
    CARNN__MODEL_OPTION(min_count, INTEGER, 1, 1e9, 0, "rarer words become <unk>"),
    CARNN__MODEL_OPTION(seed, INTEGER, 0, 9007199254740992.0, 0,
                        "of the initial weights and all that is random"),
    CARNN__TRAIN_OPTION(epochs, INTEGER, 1, 1e9, 0, "passes over the training data"),
    CARNN__TRAIN_OPTION(batch, INTEGER, 1, 1e6, 0, "examples in a step"),
    CARNN__TRAIN_OPTION(lr, NUMBER, 1e-30, 1e6, 0, "learning rate"),
    CARNN__TRAIN_OPTION(lr_end, NUMBER, 0, 1, 1, "part of the learning rate left at the end"),
    CARNN__TRAIN_OPTION(lr_decay, NUMBER, 1e-6, 1, 0, "factor on the learning rate after an epoch"),
    CARNN__TRAIN_OPTION(optimizer, NAME, 0, 0, 0, "optimiser"),
    CARNN__TRAIN_OPTION(dropout, NUMBER, 0, 0.99, 1, "probability of a value to be dropped"),
    CARNN__TRAIN_OPTION(clip, NUMBER, 0, 1e30, 1, "bound on the global norm of the gradient"),
    CARNN__TRAIN_OPTION(weight_decay, NUMBER, 0, 1e3, 1, "decoupled weight decay"),
    CARNN__TRAIN_OPTION(smoothing, NUMBER, 0, 0.99, 1, "label smoothing"),
    CARNN__TRAIN_OPTION(average, NUMBER, 0, 0.999999, 1,
                        "what a moving average of the weights keeps of itself in a step"),
    CARNN__TRAIN_OPTION(patience, INTEGER, 0, 1e9, 1, "epochs without a better validation score"),
    CARNN__TRAIN_OPTION(threads, INTEGER, 0, 1024, 0, "threads; 0: one for each processor"),
    CARNN__TRAIN_OPTION(max_time, NUMBER, 0, 1e9, 0,
                        "seconds after which this run stops; 0: no limit"),
};

CARNN_API const carnn_option *carnn_option_at(const char *task, size_t number) {
    const carnn__task *t = task ? carnn__task_named(task) : NULL;
    size_t i, shared = CARNN__COUNT(carnn__options);
    if (number < shared) return &carnn__options[number];
    for (i = 0; t && t->options && t->options[i].name; i++)
        if (i == number - shared) return &t->options[i];
    return NULL;
}

CARNN_API const char *carnn_option_choice(const carnn_option *option, size_t number) {
    size_t i;
    if (option->kind != CARNN_OPTION_NAME) return NULL;
    if (option->place == CARNN_OPTION_OF_MODEL) return carnn_cell_name(number);
    if (option->place == CARNN_OPTION_OF_TRAINING) return carnn_optimizer_name(number);
    for (i = 0; option->choices[i] && i < number;) i++;
    return option->choices[i];
}

/* 1 + the number of the choice that has this name, CARNN_NONE: no choice has. */
static double carnn__choice_named(const carnn_option *option, const char *name) {
    size_t i;
    for (i = 0; carnn_option_choice(option, i); i++)
        if (!strcmp(carnn_option_choice(option, i), name)) return (double)(i + 1);
    return CARNN_NONE;
}

/* The name of a choice from its value, "" where nothing is chosen. */
static const char *carnn__choice_name(const carnn_option *option, double value) {
    return value > 0.0 ? carnn_option_choice(option, (size_t)value - 1) : "";
}

/* The value of an option as a number: of a name what carnn__choice_named says, 0 for NULL. */
static double carnn__option_value(const carnn_option *o, const carnn_model_desc *model,
                                  const carnn_train_desc *train) {
    const char *base = o->place == CARNN_OPTION_OF_TRAINING ? (const char *)train
                                                            : (const char *)model;
    const char *name;
    int64_t whole; /* also for uint64_t */
    double number;
    if (o->place == CARNN_OPTION_OF_TASK) return model->option[o->offset];
    if (o->kind == CARNN_OPTION_NAME) {
        memcpy(&name, base + o->offset, sizeof name);
        return name ? carnn__choice_named(o, name) : 0.0;
    }
    if (o->kind == CARNN_OPTION_NUMBER) {
        memcpy(&number, base + o->offset, sizeof number);
        return number;
    }
    memcpy(&whole, base + o->offset, sizeof whole);
    return (double)whole;
}

static void carnn__option_put(const carnn_option *o, carnn_model_desc *model,
                              carnn_train_desc *train, double value) {
    char *base = o->place == CARNN_OPTION_OF_TRAINING ? (char *)train : (char *)model;
    const char *name = value > 0.0 ? carnn__choice_name(o, value) : NULL;
    int64_t whole = (int64_t)value;
    if (o->place == CARNN_OPTION_OF_TASK) model->option[o->offset] = value;
    else if (o->kind == CARNN_OPTION_NAME) memcpy(base + o->offset, &name, sizeof name);
    else if (o->kind == CARNN_OPTION_NUMBER) memcpy(base + o->offset, &value, sizeof value);
    else memcpy(base + o->offset, &whole, sizeof whole);
}

CARNN_API carnn_status carnn_option_set(const carnn_option *option, carnn_model_desc *model,
                                        carnn_train_desc *train, const char *value,
                                        carnn_error *error) {
    int whole = option->kind == CARNN_OPTION_INTEGER;
    carnn__span text = {value, strlen(value)};
    double v;
    if (option->kind == CARNN_OPTION_NAME) {
        v = carnn__choice_named(option, value);
        if (v < 0.0)
            return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "unknown %s \"%.60s\"", option->name,
                               value);
    } else {
        if (!carnn__number(text, &v) || !(v >= option->low && v <= option->high) ||
            (whole && v != floor(v)))
            return carnn__fail(error, CARNN_ERR_ARGUMENT, 0,
                               "%s: expected %s from %.10g to %.10g, found \"%.60s\"", option->name,
                               whole ? "a whole number" : "a number", option->low, option->high,
                               value);
        if (v == 0.0 && option->none) v = CARNN_NONE;
    }
    carnn__option_put(option, model, train, v);
    return CARNN_OK;
}

CARNN_API const char *carnn_option_get(const carnn_option *option, const carnn_model_desc *model,
                                       const carnn_train_desc *train, char *text, size_t size) {
    double v = carnn__option_value(option, model, train);
    int digits = option->kind == CARNN_OPTION_INTEGER ? 17 : 6;
    if (option->kind == CARNN_OPTION_NAME) {
        snprintf(text, size, "%s", carnn__choice_name(option, v));
        return text;
    }
    if (option->none && v == CARNN_NONE) v = 0.0;
    do snprintf(text, size, "%.*g", digits, v); /* the shortest that reads as the same number */
    while (digits++ < 17 && strtod(text, NULL) != v);
    return text;
}

/* The option of a task that has this name, in which - is as good as _; or NULL. */
static const carnn_option *carnn__option_named(const char *task, const char *name) {
    const carnn_option *o;
    size_t i, j;
    for (i = 0; (o = carnn_option_at(task, i)) != NULL; i++) {
        for (j = 0; name[j] && o->name[j] == (name[j] == '-' ? '_' : name[j]);) j++;
        if (!name[j] && !o->name[j]) break;
    }
    return o;
}

CARNN_API carnn_status carnn_set(carnn_model_desc *model, carnn_train_desc *train, const char *name,
                                 const char *value, carnn_error *error) {
    const char *task = model->task ? model->task : carnn_task_name(0);
    const carnn_option *o = carnn__option_named(task, name);
    if (o && (train || o->place != CARNN_OPTION_OF_TRAINING))
        return carnn_option_set(o, model, train, value, error);
    return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "the task %.40s has no option \"%.40s\"", task,
                       name);
}

/* Sets the options that a text lists, "cell=gru layers=2"; unset: only those that are still 0. */
static carnn_status carnn__set_all(carnn_model_desc *model, carnn_train_desc *train, int unset,
                                   const char *text, carnn_error *error) {
    carnn__words w = carnn__words_of(CARNN__SPACES, text, strlen(text));
    carnn_status status = CARNN_OK;
    char name[64], *value;
    while (!status && carnn__next_word(&w)) {
        const carnn_option *o;
        snprintf(name, sizeof name, "%.*s", (int)w.word.length, w.word.at);
        value = strchr(name, '=');
        if (!value)
            return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "\"%s\" sets no option", name);
        *value++ = 0;
        o = unset ? carnn__option_named(model->task, name) : NULL;
        if (o && carnn__option_value(o, model, train) != 0.0) continue;
        status = carnn_set(model, train, name, value, error);
    }
    return status;
}

/* Is every number of a complete description in the range of its option? */
static carnn_status carnn__check_options(const carnn_model_desc *model,
                                         const carnn_train_desc *train, carnn_error *error) {
    const carnn_option *o;
    size_t i;
    for (i = 0; (o = carnn_option_at(model->task, i)) != NULL; i++) {
        double number;
        if ((o->place == CARNN_OPTION_OF_TRAINING && !train) || o->kind == CARNN_OPTION_NAME)
            continue;
        number = carnn__option_value(o, model, train);
        if (!(number >= o->low && number <= o->high) && !(o->none && number == CARNN_NONE))
            return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "%s is %.10g, not from %.10g to %.10g",
                               o->name, number, o->low, o->high);
    }
    return CARNN_OK;
}

CARNN_API carnn_status carnn_defaults(carnn_model_desc *model, carnn_train_desc *train,
                                      carnn_error *error) {
    static const char common[] = "layers=1 min_count=1 seed=1 lr_end=1 lr_decay=1 dropout=0 clip=0 "
                                 "weight_decay=0 smoothing=0 average=0 patience=0";
    const carnn__task *task = carnn__task_named(model->task ? model->task : carnn_task_name(0));
    size_t optimizer = CARNN__OPTIMIZER_adam;
    double lr;
    carnn_status status;
    if (!task)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "unknown task \"%.60s\"", model->task);
    if (train->optimizer) optimizer = carnn__optimizer_number(train->optimizer);
    if (optimizer == CARNN__OPTIMIZER_COUNT)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "unknown optimizer \"%.60s\"",
                           train->optimizer);
    model->task = task->name;
    train->optimizer = carnn__optimizers[optimizer].name;
    lr = carnn__optimizers[optimizer].lr;
    if (train->lr == 0.0 && optimizer != CARNN__OPTIMIZER_adam) train->lr = lr;
    status = carnn__set_all(model, train, 1, task->defaults, error);
    if (!model->embedding) model->embedding = model->hidden;
    if (!status && task->adapt) task->adapt(model, train);
    if (!status) status = carnn__set_all(model, train, 1, common, error);
    if (train->lr == 0.0) train->lr = lr;
    return status ? status : carnn__check_options(model, train, error);
}

/* --- making a model -------------------------------------------------------------------------- */

CARNN_API void carnn_model_free(carnn_model *model) {
    carnn_allocator a;
    if (!model) return;
    a = model->allocator;
    carnn__free_aligned(&a, model->block);
    carnn__names_free(&model->words, &a);
    carnn__names_free(&model->choices, &a);
    carnn__free(&a, model);
}

/* What a new model and a loaded one have in common once desc (complete), words and choices are
   there: checks desc, points its names into our tables, declares the parameters. */
static carnn_status carnn__model_declare(carnn_model *model, carnn_error *error) {
    const carnn__task *task = model->task = carnn__task_named(model->desc.task);
    const carnn_option *skip;
    size_t cell = carnn__cell_number(model->desc.cell), i;
    carnn_status status;
    if (!task)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "unknown task \"%.60s\"",
                           model->desc.task);
    if (cell == CARNN__CELL_COUNT)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "unknown cell \"%.60s\"",
                           model->desc.cell);
    model->desc.task = task->name;
    model->desc.cell = carnn__cells[cell].name;
    model->unsure = CARNN__NO_INDEX;
    if (model->desc.unsure) {
        model->unsure = carnn__names_find(&model->choices, model->desc.unsure,
                                          strlen(model->desc.unsure));
        if (model->unsure == CARNN__NO_INDEX ||
            carnn__names_find(&model->words, CARNN__UNSURE_WORD, 7) == CARNN__NO_INDEX)
            return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "nothing says that it is unsure");
        model->desc.unsure = carnn__names_get(&model->choices, model->unsure);
    }
    if (carnn__check_options(&model->desc, NULL, error)) return CARNN_ERR_ARGUMENT;
    skip = carnn__option_named(task->name, "skip");
    if (skip && !carnn__cells[cell].recurrent_gates &&
        carnn__option_value(skip, &model->desc, NULL) > 0.0)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "no gate of the cell %s reads a state, as "
                           "skip connections need", model->desc.cell);
    for (i = 0; i < task->reserved_count; i++)
        if (carnn__names_find(&model->words, task->reserved[i], strlen(task->reserved[i])) != i + 1)
            return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "word %zu of the vocabulary is not %s",
                               i + 1, task->reserved[i]);
    status = task->check ? task->check(model, error) : CARNN_OK;
    return status ? status : carnn__net_declare(model, error);
}

#ifndef CARNN_NO_TEXT

/* Reads the vectors of the model's words; an embedding whose size is left open has theirs. */
static carnn_status carnn__model_vectors_read(carnn_model *model, const carnn_model_desc *desc,
                                              carnn__vectors *v, carnn_error *error) {
    carnn_status status = CARNN_OK;
    size_t i;
    for (i = 0; !status && i < desc->vector_count; i++)
        status = carnn__vectors_read(v, &desc->vectors[i], &model->words, &model->allocator,
                                     error);
    if (status || !v->dimension) return status;
    if (!desc->embedding) model->desc.embedding = (int64_t)v->dimension;
    if (v->dimension == (size_t)model->desc.embedding) return CARNN_OK;
    return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "%s: the vectors have %zu numbers, the "
                       "embedding has %lld", desc->vectors[0].name, v->dimension,
                       (long long)model->desc.embedding);
}

/* Word vectors as rows of the word embedding; the random ones of other words become as long. */
static void carnn__model_vectors(carnn_model *model, const carnn__vectors *v) {
    const float deviation = 0.1f; /* of the random rows */
    float *rows = carnn__named(&model->params, "word.weight"), scale;
    double squares = 0.0;
    size_t i, j, D = v->dimension, V = model->words.count;
    if (!v->found) return;
    for (i = 0; i < V * D; i++) squares += (double)v->value[i] * (double)v->value[i];
    scale = (float)(sqrt(squares / (double)(v->found * D)) / (double)deviation);
    for (i = 0; i < V; i++)
        for (j = 0; j < D; j++)
            rows[i * D + j] = v->has[i] ? v->value[i * D + j] : scale * rows[i * D + j];
}

/* --- going on from a model -------------------------------------------------------------------
   Words and choices of the old model come first in the new one, so its weights are the first rows
   of the new arrays. Rows of new words and choices stay random, or their word vectors. */

static carnn_status carnn__from_options(carnn_model_desc *desc, carnn_error *error) {
    const carnn_model_desc *old = &desc->from->desc;
    const carnn_option *o;
    size_t i;
    if (desc->task && strcmp(desc->task, old->task))
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "the model to go on from is of the task "
                           "%s, not %.60s", old->task, desc->task);
    desc->task = old->task;
    for (i = 0; (o = carnn_option_at(old->task, i)) != NULL; i++)
        if (o->place != CARNN_OPTION_OF_TRAINING && carnn__option_value(o, desc, NULL) == 0.0)
            carnn__option_put(o, desc, NULL, carnn__option_value(o, old, NULL));
    if (!desc->unsure) desc->unsure = old->unsure;
    if (old->unsure && strcmp(desc->unsure, old->unsure))
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "unsure: the model to go on from says "
                           "\"%.60s\", not \"%.60s\"", old->unsure, desc->unsure);
    return CARNN_OK;
}

/* May a new model say this where it is unsure? */
static carnn_status carnn__check_unsure(const carnn_model *model, const carnn_dataset *data,
                                        carnn_error *error) {
    const carnn_model *from = model->desc.from;
    const char *text = model->desc.unsure;
    carnn__span own = {text, text ? strlen(text) : 0};
    size_t i, known;
    if (!text) return CARNN_OK;
    if (!model->task->session || !model->task->session->talks)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "unsure: a model of the task %s does not "
                           "reply", model->desc.task);
    if (!carnn__trim(own).length || carnn__trim(own).length != own.length || strpbrk(text, "\t\r\n"))
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "unsure: expected a line of text without "
                           "tabs and without blanks at its ends, found \"%.60s\"", text);
    known = from && !from->desc.unsure &&
            carnn__names_find(&from->choices, text, own.length) != CARNN__NO_INDEX;
    for (i = 0; i < data->choice_count; i++)
        known += (size_t)carnn__is(text, carnn__trim(carnn__string(data->shown, data->shown_at, i)), 0);
    if (!known) return CARNN_OK;
    return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "unsure: \"%.60s\" is one of the candidates",
                       text);
}

static carnn_status carnn__from_weights(carnn_model *model, const carnn_model *old,
                                        carnn_error *error) {
    size_t words = model->words.count - old->words.count, i;
    size_t choices = model->choices.count - old->choices.count;
    carnn_tensor to, from;
    for (i = 0; i < carnn__max(model->params.count, old->params.count); i++) {
        size_t more;
        int vector; /* grows by columns */
        to = carnn_model_tensor(model, i);
        from = carnn_model_tensor(old, i);
        if (!to.name || !from.name || strcmp(to.name, from.name))
            return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "an option makes another network than "
                               "the model to go on from: %s has no counterpart",
                               to.name ? to.name : from.name);
        vector = to.rows == 1 && from.rows == 1;
        more = vector ? to.columns - from.columns : to.rows - from.rows;
        if ((!vector && to.columns != from.columns) || (more && more != words && more != choices))
            return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "%s has %zu x %zu weights in the model "
                               "to go on from, but an option makes it %zu x %zu", to.name,
                               from.rows, from.columns, to.rows, to.columns);
        memcpy(carnn__piece(&model->params, model->params.value, i), from.value,
               from.rows * from.columns * sizeof *from.value);
    }
    return CARNN_OK;
}

CARNN_API carnn_status carnn_model_create(carnn_model **out, const carnn_model_desc *desc,
                                          const carnn_dataset *train, carnn_error *error) {
    carnn_allocator a = carnn__allocator(desc->allocator);
    const carnn__kernels *k;
    carnn_model *model;
    carnn_train_desc unused;
    carnn__vectors vectors;
    carnn_status status;
    *out = NULL;
    if (carnn__simd_open(&k, desc->simd, error)) return CARNN_ERR_ARGUMENT;
    model = (carnn_model *)carnn__alloc_zero(&a, 1, sizeof *model);
    if (!model) return carnn__out_of_memory(error);
    memset(&unused, 0, sizeof unused);
    memset(&vectors, 0, sizeof vectors);
    model->allocator = a;
    model->desc = *desc;
    model->desc.allocator = NULL;
    if (desc->simd) model->desc.simd = k->name; /* NULL stays: the best path when there is work */
    status = desc->from ? carnn__from_options(&model->desc, error) : CARNN_OK;
    if (!status) status = carnn_defaults(&model->desc, &unused, error);
    if (!status) status = carnn__same_task(model, train, error);
    if (!status) model->task = carnn__task_named(model->desc.task);
    if (!status) status = carnn__check_unsure(model, train, error);
    if (!status) status = model->task->build(model, train, error);
    if (!status) status = carnn__model_vectors_read(model, desc, &vectors, error);
    if (!status) status = carnn__model_declare(model, error);
    if (!status) status = carnn__store_alloc(&model->params, &a, error);
    model->block = model->params.value;
    if (!status) {
        carnn__store_init(&model->params, model->desc.seed);
        if (model->task->init) model->task->init(model, train);
        carnn__model_vectors(model, &vectors);
        if (desc->from) status = carnn__from_weights(model, desc->from, error);
    }
    carnn__vectors_free(&vectors, &a);
    model->desc.vectors = NULL;
    model->desc.known = NULL;
    model->desc.from = NULL;
    model->desc.vector_count = model->desc.known_count = 0;
    if (!status) *out = model;
    else carnn_model_free(model);
    return status;
}

#endif /* CARNN_NO_TEXT */

CARNN_API const carnn_model_desc *carnn_model_describe(const carnn_model *model) {
    return &model->desc;
}

CARNN_API const carnn_train_desc *carnn_model_training(const carnn_model *model) {
    return &model->trained;
}

CARNN_API const carnn_scores *carnn_model_scores(const carnn_model *model) {
    return &model->scores;
}

CARNN_API int64_t carnn_model_best_epoch(const carnn_model *model) { return model->best_epoch; }

CARNN_API size_t carnn_model_parameters(const carnn_model *model) {
    size_t i, sum = 0;
    for (i = 0; i < model->params.count; i++)
        sum += model->params.item[i].rows * model->params.item[i].columns;
    return sum;
}

CARNN_API carnn_tensor carnn_model_tensor(const carnn_model *model, size_t number) {
    carnn_tensor t = {NULL, 0, 0, NULL};
    if (number < model->params.count) {
        const carnn__param *p = &model->params.item[number];
        t.name = p->name;
        t.rows = p->rows;
        t.columns = p->columns;
        t.value = model->params.value + p->offset;
    }
    return t;
}

CARNN_API size_t carnn_model_word_count(const carnn_model *model) { return model->words.count; }

CARNN_API const char *carnn_model_word(const carnn_model *model, size_t number) {
    return number < model->words.count ? carnn__names_get(&model->words, number) : NULL;
}

CARNN_API size_t carnn_model_choice_count(const carnn_model *model) { return model->choices.count; }

CARNN_API const char *carnn_model_choice(const carnn_model *model, size_t number) {
    return number < model->choices.count ? carnn__names_get(&model->choices, number) : NULL;
}

/* Choices by name, or the score. */
CARNN_API size_t carnn_prediction_text(const carnn_model *model, const carnn_prediction *p,
                                       size_t top, char *text, size_t size) {
    size_t at = 0, i;
    if (size) *text = 0;
    if (p->kind == CARNN_PREDICTS_SCORE)
        return (size_t)snprintf(text, size, "%.9g", p->score);
    if (p->kind == CARNN_PREDICTS_LIKELIHOOD)
        return (size_t)snprintf(text, size, "%.9g\t%zu", p->score, p->tokens);
    for (i = 0; i < carnn__min(carnn__max(top, 1), p->count); i++) {
        const carnn_text *own = p->candidate ? &p->candidate[p->choice[i]] : NULL;
        char probability[32] = "";
        if (top) snprintf(probability, 32, "%s%.6g\t", i ? "\t" : "", p->probability[i]);
        at += (size_t)snprintf(at < size ? text + at : NULL, at < size ? size - at : 0, "%s%.*s",
                               probability, own ? (int)own->length : INT_MAX,
                               own ? own->at : carnn_model_choice(model, p->choice[i]));
    }
    return at;
}

#endif
/* =============================================================================================
   @@FILE   model files and checkpoints

   GGUF version 3, the format of ggml and llama.cpp. Everything is little-endian:

     "GGUF", u32 version, u64 number of tensors, u64 number of keys
     each key:     name, u32 type, value
     each tensor:  name, u32 dimensions, u64 sizes (the contiguous one first), u32 type, u64 offset
     zeros up to a multiple of 64, then the data, to which the offsets refer

   A string is a u64 length and its bytes. The data of a model is its flat parameter vector
   (@@PARAM) with its padding, so that a file in memory can be used in place; a checkpoint holds
   several such vectors. Options that change nothing of the result (threads, seconds) are left out:
   the same training gives the same bytes.
   ============================================================================================= */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

#define CARNN__GGUF_VERSION 3

enum { /* types of values, as GGUF numbers them */
    CARNN__GGUF_U32 = 4,
    CARNN__GGUF_STRING = 8,
    CARNN__GGUF_ARRAY = 9,
    CARNN__GGUF_U64 = 10,
    CARNN__GGUF_I64 = 11,
    CARNN__GGUF_F64 = 12
};

/* Whether floats are used as they are in the file; else they are converted byte by byte. */
#ifndef CARNN__LITTLE_ENDIAN
#if defined(_WIN32) ||                                                                             \
    (defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
#define CARNN__LITTLE_ENDIAN 1
#else
#define CARNN__LITTLE_ENDIAN 0
#endif
#endif

static inline uint32_t carnn__get32(const unsigned char *b) {
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}
static inline uint64_t carnn__get64(const unsigned char *b) {
    return (uint64_t)carnn__get32(b) | (uint64_t)carnn__get32(b + 4) << 32;
}
static inline void carnn__set64(unsigned char *b, uint64_t x) {
    size_t i;
    for (i = 0; i < 8; i++) b[i] = (unsigned char)(x >> 8 * i);
}

/* Floats to little-endian bytes, or such bytes to floats. */
static void carnn__swap_floats(void *to, const void *from, size_t count) {
    const unsigned char *bytes = (const unsigned char *)from;
    size_t i;
    for (i = 0; i < count; i++) {
        uint32_t bits = carnn__get32(bytes + 4 * i);
        memcpy((char *)to + 4 * i, &bits, sizeof bits);
    }
}

/* --- checksum -----------------------------------------------------------------------------------
   XXH64 (Collet 2012) with seed 0: verifying a file costs less than reading it. */

#define CARNN__SUM_1 0x9E3779B185EBCA87u
#define CARNN__SUM_2 0xC2B2AE3D27D4EB4Fu
#define CARNN__SUM_3 0x165667B19E3779F9u
#define CARNN__SUM_4 0x85EBCA77C2B2AE63u
#define CARNN__SUM_5 0x27D4EB2F165667C5u

typedef struct carnn__sum {
    uint64_t lane[4], total;
    unsigned char rest[32]; /* the last total % 32 bytes, until their stripe of 32 is complete */
} carnn__sum;

static inline uint64_t carnn__rotate(uint64_t x, unsigned by) { return x << by | x >> (64 - by); }

static inline uint64_t carnn__sum_round(uint64_t lane, uint64_t input) {
    return carnn__rotate(lane + input * CARNN__SUM_2, 31) * CARNN__SUM_1;
}

static void carnn__sum_start(carnn__sum *h) {
    memset(h, 0, sizeof *h);
    h->lane[0] = CARNN__SUM_1 + CARNN__SUM_2;
    h->lane[1] = CARNN__SUM_2;
    h->lane[3] = 0u - CARNN__SUM_1;
}

static void carnn__sum_stripes(carnn__sum *h, const unsigned char *b, size_t bytes) {
    uint64_t l0 = h->lane[0], l1 = h->lane[1], l2 = h->lane[2], l3 = h->lane[3];
    for (; bytes; bytes -= 32, b += 32) {
        l0 = carnn__sum_round(l0, carnn__get64(b));
        l1 = carnn__sum_round(l1, carnn__get64(b + 8));
        l2 = carnn__sum_round(l2, carnn__get64(b + 16));
        l3 = carnn__sum_round(l3, carnn__get64(b + 24));
    }
    h->lane[0] = l0, h->lane[1] = l1, h->lane[2] = l2, h->lane[3] = l3;
}

/* Adds n bytes; a carnn__sink. */
static int carnn__sum_add(void *sum, const void *bytes, size_t n) {
    carnn__sum *h = (carnn__sum *)sum;
    const unsigned char *b = (const unsigned char *)bytes;
    size_t held, count;
    for (; n; n -= count, b += count, h->total += count) {
        held = (size_t)(h->total % 32);
        count = held || n < 32 ? carnn__min(n, 32 - held) : n - n % 32;
        if (count >= 32) {
            carnn__sum_stripes(h, b, count);
        } else {
            memcpy(h->rest + held, b, count);
            if (held + count == 32) carnn__sum_stripes(h, h->rest, 32);
        }
    }
    return 1;
}

static void carnn__sum_add64(carnn__sum *h, uint64_t x) {
    unsigned char bytes[8];
    carnn__set64(bytes, x);
    carnn__sum_add(h, bytes, sizeof bytes);
}

static uint64_t carnn__sum_end(const carnn__sum *h) {
    const unsigned char *b = h->rest;
    size_t i, n = (size_t)(h->total % 32);
    uint64_t x = CARNN__SUM_5;
    if (h->total >= 32) {
        x = carnn__rotate(h->lane[0], 1) + carnn__rotate(h->lane[1], 7) +
            carnn__rotate(h->lane[2], 12) + carnn__rotate(h->lane[3], 18);
        for (i = 0; i < 4; i++)
            x = (x ^ carnn__sum_round(0, h->lane[i])) * CARNN__SUM_1 + CARNN__SUM_4;
    }
    x += h->total;
    for (; n >= 8; n -= 8, b += 8) {
        x ^= carnn__sum_round(0, carnn__get64(b));
        x = carnn__rotate(x, 27) * CARNN__SUM_1 + CARNN__SUM_4;
    }
    if (n >= 4) {
        x = carnn__rotate(x ^ carnn__get32(b) * CARNN__SUM_1, 23) * CARNN__SUM_2 + CARNN__SUM_3;
        n -= 4, b += 4;
    }
    for (; n; n--, b++) x = carnn__rotate(x ^ *b * CARNN__SUM_5, 11) * CARNN__SUM_1;
    x = (x ^ x >> 33) * CARNN__SUM_2;
    x = (x ^ x >> 29) * CARNN__SUM_3;
    return x ^ x >> 32;
}

/* --- a file that is written or read -------------------------------------------------------------
   The functions carnn__key_... do both: they write a value, or find it in the file and set it. So
   one function lists what a file contains.

   Writing. The list runs three times: to count the keys, for the checksum, and to write.
   Reading. The bytes may come from anyone: each count and length is compared with the rest of the
   file before it is used. Only the first error is reported; after it, reads give zeros. */

#define CARNN__GGUF_KEYS_MAX 128
#define CARNN__GGUF_ARRAY_OF(type) ((uint32_t)CARNN__GGUF_ARRAY << 8 | (type))

/* Takes the next bytes of a file; returns 0 on failure. */
typedef int (*carnn__sink)(void *to, const void *bytes, size_t size);

typedef struct carnn__gguf_kind {
    const char *architecture;
    uint32_t format;    /* raised when older readers would misunderstand the keys */
    const char *advice; /* where the format is another */
} carnn__gguf_kind;

typedef struct carnn__gguf_key {
    carnn__span name;
    uint32_t type;              /* of an array: CARNN__GGUF_ARRAY_OF the type of its elements */
    uint64_t count;             /* elements of an array; of others: 1 */
    const unsigned char *value; /* the first element; strings begin with their length */
} carnn__gguf_key;

typedef struct carnn__gguf {
    carnn_status status;
    size_t keys, size;          /* of the file; in writing: so far */
    /* writing */
    int writing;
    size_t all_keys;            /* these two are known after the first and the second run */
    uint64_t checksum;
    carnn__sink sink;           /* NULL: only count */
    void *to;
    /* reading */
    const char *name;           /* for messages */
    carnn_error *error;
    const unsigned char *bytes;
    size_t at;
    uint64_t tensors;
    carnn__gguf_key key[CARNN__GGUF_KEYS_MAX];
} carnn__gguf;

CARNN__PRINTF(2, 3)
static carnn_status carnn__gguf_fail(carnn__gguf *g, const char *format, ...) {
    char text[300];
    va_list arguments;
    if (g->status != CARNN_OK) return g->status;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    g->at = g->size;
    g->status = carnn__fail(g->error, CARNN_ERR_MODEL, 0, "%s: %s", g->name, text);
    return g->status;
}

/* --- writing --------------------------------------------------------------------------------- */

static void carnn__put_bytes(carnn__gguf *g, const void *bytes, size_t size) {
    if (g->sink && !g->status && !g->sink(g->to, bytes, size)) g->status = CARNN_ERR_IO;
    g->size += size;
}

static void carnn__put_number(carnn__gguf *g, uint64_t x, size_t size) {
    unsigned char bytes[8];
    carnn__set64(bytes, x);
    carnn__put_bytes(g, bytes, size);
}

static void carnn__put_string(carnn__gguf *g, const char *s, size_t length) {
    carnn__put_number(g, length, 8);
    carnn__put_bytes(g, s, length);
}

static void carnn__put_key(carnn__gguf *g, const char *name, uint32_t type) {
    carnn__put_string(g, name, strlen(name));
    carnn__put_number(g, type, 4);
    g->keys++;
}

static void carnn__put_key_text(carnn__gguf *g, const char *name, const char *text) {
    carnn__put_key(g, name, CARNN__GGUF_STRING);
    carnn__put_string(g, text, strlen(text));
}

/* A number of 4 or 8 bytes. */
static void carnn__put_key_number(carnn__gguf *g, const char *name, uint32_t type, uint64_t bits) {
    carnn__put_key(g, name, type);
    carnn__put_number(g, bits, type == CARNN__GGUF_U32 ? 4 : 8);
}

/* The data of one or more tensors. */
static void carnn__put_floats(carnn__gguf *g, const float *value, size_t count) {
    static const unsigned char zeros[CARNN__ALIGN] = {0};
    unsigned char block[4096];
    size_t n;
    carnn__put_bytes(g, zeros, carnn__round_up(g->size, CARNN__ALIGN) - g->size);
    if (CARNN__LITTLE_ENDIAN) {
        carnn__put_bytes(g, value, count * 4);
        return;
    }
    for (; count; count -= n, value += n) {
        n = carnn__min(count, sizeof block / 4);
        carnn__swap_floats(block, value, n);
        carnn__put_bytes(g, block, n * 4);
    }
}

/* Puts all of a file, the same each time. */
typedef void (*carnn__gguf_fill)(carnn__gguf *g, const void *from);

/* Writes a file to `sink`; returns its size, 0 if the sink fails. Without a sink it only counts. */
static size_t carnn__gguf_write(carnn__gguf_fill fill, const void *from, carnn__sink sink,
                                void *to) {
    carnn__gguf g;
    carnn__sum sum;
    int run;
    memset(&g, 0, sizeof g);
    g.writing = 1;
    carnn__sum_start(&sum);
    for (run = 0; run < (sink ? 3 : 1); run++) {
        g.all_keys = g.keys;
        g.keys = g.size = 0;
        g.sink = run == 0 ? NULL : run == 1 ? carnn__sum_add : sink;
        g.to = run == 1 ? &sum : to;
        if (run == 2) g.checksum = carnn__sum_end(&sum); /* in the second run it was 0 */
        fill(&g, from);
    }
    return g.status == CARNN_OK ? g.size : 0;
}

/* --- reading --------------------------------------------------------------------------------- */

/* The next `count` items of `size` bytes, or NULL. */
static const unsigned char *carnn__gguf_take(carnn__gguf *g, uint64_t count, size_t size) {
    const unsigned char *bytes = g->bytes + g->at;
    size_t left = g->size - g->at;
    if (g->status == CARNN_OK && count > left / size)
        carnn__gguf_fail(g, "cut off or damaged: %llu bytes expected at byte %zu, %zu are left",
                         (unsigned long long)count * size, g->at, left);
    if (g->status != CARNN_OK) return NULL;
    g->at += (size_t)count * size;
    return bytes;
}

/* A number of 4 or 8 bytes. */
static uint64_t carnn__gguf_number(carnn__gguf *g, size_t size) {
    const unsigned char *b = carnn__gguf_take(g, 1, size);
    if (!b) return 0;
    return size == 4 ? carnn__get32(b) : carnn__get64(b);
}

/* A string; at NULL on failure. */
static carnn__span carnn__gguf_string(carnn__gguf *g) {
    uint64_t length = carnn__gguf_number(g, 8);
    carnn__span s = {(const char *)carnn__gguf_take(g, length, 1), 0};
    if (s.at) s.length = (size_t)length;
    return s;
}

static const carnn__gguf_key *carnn__gguf_find(const carnn__gguf *g, const char *name,
                                               size_t length) {
    const carnn__gguf_key *key;
    for (key = g->key; key < g->key + g->keys; key++)
        if (key->name.length == length && memcmp(key->name.at, name, length) == 0) return key;
    return NULL;
}

static void carnn__gguf_take_key(carnn__gguf *g) {
    static const unsigned char size_of[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 0, 8, 8, 8}; /* 0: none */
    carnn__gguf_key *key = &g->key[g->keys];
    size_t size;
    uint64_t i;
    uint32_t type;
    key->name = carnn__gguf_string(g);
    if (key->name.at && carnn__gguf_find(g, key->name.at, key->name.length))
        carnn__gguf_fail(g, "damaged: the same key twice (number %zu)", g->keys);
    key->type = type = (uint32_t)carnn__gguf_number(g, 4);
    key->count = 1;
    if (type == CARNN__GGUF_ARRAY) {
        type = (uint32_t)carnn__gguf_number(g, 4);
        key->type = CARNN__GGUF_ARRAY_OF(type);
        key->count = carnn__gguf_number(g, 8);
    }
    key->value = g->bytes + g->at;
    size = type < CARNN__COUNT(size_of) ? size_of[type] : 0;
    if (!size) carnn__gguf_fail(g, "damaged: a value has type %u", (unsigned)type);
    else if (type != CARNN__GGUF_STRING) carnn__gguf_take(g, key->count, size);
    else for (i = 0; i < key->count && !g->status; i++) carnn__gguf_string(g);
    g->keys++;
}

/* A key of this type that is read; NULL (and failure) where there is none. */
static const carnn__gguf_key *carnn__gguf_need(carnn__gguf *g, const char *name, uint32_t type) {
    const carnn__gguf_key *key = carnn__gguf_find(g, name, strlen(name));
    if (!key) carnn__gguf_fail(g, "the key %s is missing", name);
    else if (key->type != type) carnn__gguf_fail(g, "the key %s has another type", name);
    return g->status == CARNN_OK ? key : NULL;
}

/* A number of 4 or 8 bytes; 0 on failure. */
static uint64_t carnn__gguf_key_number(carnn__gguf *g, const char *name, uint32_t type) {
    const carnn__gguf_key *key = carnn__gguf_need(g, name, type);
    if (!key) return 0;
    return type == CARNN__GGUF_U32 ? carnn__get32(key->value) : carnn__get64(key->value);
}

/* The checksum is that of the file with zeros in its place. */
static void carnn__gguf_verify(carnn__gguf *g) {
    const carnn__gguf_key *key = carnn__gguf_need(g, "carnn.checksum", CARNN__GGUF_U64);
    size_t at;
    carnn__sum sum;
    if (!key) return;
    at = (size_t)(key->value - g->bytes);
    carnn__sum_start(&sum);
    carnn__sum_add(&sum, g->bytes, at);
    carnn__sum_add64(&sum, 0);
    carnn__sum_add(&sum, key->value + 8, g->size - at - 8);
    if (carnn__sum_end(&sum) != carnn__get64(key->value))
        carnn__gguf_fail(g, "damaged: the checksum does not fit the contents");
}

static void carnn__gguf_count(carnn__gguf *g, size_t expected) {
    if (g->tensors != expected)
        carnn__gguf_fail(g, "%llu tensors, expected %zu", (unsigned long long)g->tensors, expected);
}

/* The data: exactly so many floats. NULL on failure. */
static const unsigned char *carnn__gguf_data(carnn__gguf *g, size_t floats) {
    size_t start = carnn__round_up(g->at, CARNN__ALIGN);
    if (start > g->size) carnn__gguf_fail(g, "cut off before the weights");
    else if ((g->size - start) % 4 || (g->size - start) / 4 != floats)
        carnn__gguf_fail(g, "%llu bytes of weights expected, %zu are there",
                         (unsigned long long)floats * 4, g->size - start);
    return g->status == CARNN_OK ? g->bytes + start : NULL;
}

/* --- both ------------------------------------------------------------------------------------ */

/* A number of 8 bytes: u64, i64 or f64. */
static void carnn__key_number(carnn__gguf *g, const char *name, uint32_t type, void *number) {
    uint64_t bits;
    memcpy(&bits, number, sizeof bits);
    if (g->writing) carnn__put_key_number(g, name, type, bits);
    else bits = carnn__gguf_key_number(g, name, type);
    memcpy(number, &bits, sizeof bits);
}

static void carnn__key_size(carnn__gguf *g, const char *name, size_t *size) {
    uint64_t x = *size;
    carnn__key_number(g, name, CARNN__GGUF_U64, &x);
    *size = (size_t)x;
}

/* A name of one of our tables; none is so long that it is cut. */
static void carnn__key_text(carnn__gguf *g, const char *name, char text[64]) {
    const carnn__gguf_key *key;
    if (g->writing) {
        carnn__put_key_text(g, name, text);
    } else if ((key = carnn__gguf_need(g, name, CARNN__GGUF_STRING)) != NULL) {
        uint64_t length = carnn__get64(key->value);
        snprintf(text, 64, "%.*s", (int)(length < 63 ? length : 63), (const char *)key->value + 8);
    }
}

/* The next tensor of the table. One that is read has to be exactly this one; `offset` in floats. */
static void carnn__key_tensor(carnn__gguf *g, const char *name, size_t rows, size_t columns,
                              size_t offset) {
    uint32_t dimensions = rows == 1 ? 1 : 2, found, type, i;
    uint64_t size[2] = {1, 1}, at;
    carnn__span known;
    if (g->writing) {
        carnn__put_string(g, name, strlen(name));
        carnn__put_number(g, dimensions, 4);
        carnn__put_number(g, columns, 8);
        if (dimensions == 2) carnn__put_number(g, rows, 8);
        carnn__put_number(g, 0, 4); /* F32 */
        carnn__put_number(g, (uint64_t)offset * 4, 8);
        return;
    }
    known = carnn__gguf_string(g);
    if (known.at && !carnn__is(name, known, 0))
        carnn__gguf_fail(g, "expected the weights %s, found \"%.*s\"", name,
                         (int)carnn__min(known.length, 60), known.at);
    found = (uint32_t)carnn__gguf_number(g, 4);
    for (i = 0; i < carnn__min(found, 2); i++) size[i] = carnn__gguf_number(g, 8);
    if (found != dimensions || size[0] != columns || size[1] != rows)
        carnn__gguf_fail(g, "%s: expected %zu by %zu weights, found %llu by %llu", name, rows,
                         columns, (unsigned long long)size[1], (unsigned long long)size[0]);
    type = (uint32_t)carnn__gguf_number(g, 4);
    at = carnn__gguf_number(g, 8);
    if (type != 0) carnn__gguf_fail(g, "%s: type %u, expected F32", name, (unsigned)type);
    if (at % 4 || at / 4 != offset) carnn__gguf_fail(g, "%s: misplaced in the file", name);
}

/* The beginning of a file; carnn__gguf_open reads it. */
static void carnn__put_start(carnn__gguf *g, const carnn__gguf_kind *kind, size_t tensors) {
    carnn__put_bytes(g, "GGUF", 4);
    carnn__put_number(g, CARNN__GGUF_VERSION, 4);
    carnn__put_number(g, tensors, 8);
    carnn__put_number(g, g->all_keys, 8);
    carnn__put_key_text(g, "general.architecture", kind->architecture);
    carnn__put_key_number(g, "general.alignment", CARNN__GGUF_U32, CARNN__ALIGN);
    carnn__put_key_number(g, "general.file_type", CARNN__GGUF_U32, 0); /* all tensors are F32 */
    carnn__put_key_number(g, "carnn.format", CARNN__GGUF_U32, kind->format);
    carnn__put_key_text(g, "carnn.version", CARNN_VERSION);
    carnn__put_key_number(g, "carnn.checksum", CARNN__GGUF_U64, g->checksum);
}

/* --- files on the disk --------------------------------------------------------------------------
   A file is written under another name in the same folder and renamed when it is complete and on
   the disk: whoever opens the name finds the old file or the new one, also after a crash. */

#ifndef CARNN_NO_STDIO

#include <errno.h>
#include <sys/stat.h>
#include <sys/types.h>
#if defined(_WIN32)
#include <fcntl.h>
#include <io.h>
#define CARNN__SYSTEM(name) _##name
#define CARNN__IS_REGULAR(mode) (((mode) & _S_IFMT) == _S_IFREG)
#define CARNN__IS_PIPE(mode) (((mode) & _S_IFMT) == _S_IFIFO)
#define CARNN__TARGET(name) ((char *)NULL) /* links are replaced */
#else
#include <dirent.h>
#include <fcntl.h>
#ifndef __cplusplus /* -std=c99 and feature macros may hide these */
int fsync(int file);
int(fileno)(FILE *file);
#if !defined(__USE_MISC) && !defined(__USE_XOPEN_EXTENDED) && !__USE_FORTIFY_LEVEL /* of glibc */
char *realpath(const char *name, char *path);
#endif
#endif
#define CARNN__SYSTEM(name) name
#define CARNN__IS_REGULAR(mode) S_ISREG(mode)
#define CARNN__IS_PIPE(mode) S_ISFIFO(mode)
#define CARNN__TARGET(name) realpath(name, NULL)
#endif

/* Type and permissions of a file; 0: there is none. */
static unsigned carnn__file_mode(const char *name) {
    struct CARNN__SYSTEM(stat) found;
    return CARNN__SYSTEM(stat)(name, &found) == 0 ? (unsigned)found.st_mode : 0;
}

static int carnn__is_special(unsigned mode) { return mode && !CARNN__IS_REGULAR(mode); }

#if defined(_WIN32)

static void carnn__remove_stale(const char *path, char *temporary, size_t room) {
    (void)path, (void)temporary, (void)room;
}

static void carnn__sync_folder(char *path) { (void)path; }
static int carnn__sync(FILE *file) { return fflush(file) == 0 && _commit(_fileno(file)) == 0; }

static int carnn__rename(const char *from, const char *to) {
    errno = EACCES;
    return MoveFileExA(from, to, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH) != 0;
}

/* msvcrt.dll knows no mode "wbx". */
static FILE *carnn__create(const char *name) {
    int file = _open(name, _O_WRONLY | _O_CREAT | _O_EXCL | _O_BINARY, _S_IREAD | _S_IWRITE);
    return file < 0 ? NULL : _fdopen(file, "wb");
}

#else

static int carnn__rename(const char *from, const char *to) { return rename(from, to) == 0; }
/* A new file; a name that is taken is refused. */
static FILE *carnn__create(const char *name) { return fopen(name, "wbx"); }

/* Asks the system to put what has been written on the disk. Some file systems cannot (EINVAL). */
static int carnn__sync(FILE *file) {
    return fflush(file) == 0 && (fsync(fileno(file)) == 0 || errno == EINVAL);
}

/* The folder of a path, which is cut. */
static const char *carnn__folder_of(char *path) {
    char *slash = strrchr(path, '/');
    if (slash) slash[slash == path] = '\0';
    return slash ? path : ".";
}

/* The new name is on the disk once the folder is. A failure loses nothing, so it does not count. */
static void carnn__sync_folder(char *path) {
    int folder = open(carnn__folder_of(path), O_RDONLY);
    if (folder < 0) return;
    fsync(folder);
    close(folder);
}

/* Removes temporary files that killed processes have left, which have not changed for an hour;
   `temporary` is scratch. */
static void carnn__remove_stale(const char *path, char *temporary, size_t room) {
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t length = strlen(base);
    struct dirent *entry;
    struct stat found;
    DIR *folder = opendir(carnn__folder_of(strcpy(temporary, path)));
    while (folder && (entry = readdir(folder)) != NULL) {
        const char *end = entry->d_name + length; /* ".xxxxxxxx.tmp" */
        if (strncmp(entry->d_name, base, length) || *end != '.' || strlen(end) != 13 ||
            strspn(end + 1, "0123456789abcdef") != 8 || strcmp(end + 9, ".tmp"))
            continue;
        snprintf(temporary, room, "%.*s%s", (int)(base - path), path, entry->d_name);
        if (stat(temporary, &found) == 0 && difftime(time(NULL), found.st_mtime) > 3600.0)
            remove(temporary);
    }
    if (folder) closedir(folder);
}

#endif

/* Opens a new file, `temporary`, beside an old one, whose mode it gets (0: there is none). */
static FILE *carnn__open_beside(const char *path, unsigned mode, char *temporary, size_t room) {
    double now = carnn__clock();
    uint64_t key;
    FILE *file;
    carnn__remove_stale(path, temporary, room);
    memcpy(&key, &now, sizeof key);
    key = carnn__random(key, (uintptr_t)temporary);
    snprintf(temporary, room, "%s.%08x.tmp", path, (unsigned)(key >> 32));
    file = carnn__create(temporary);
    if (file && mode) CARNN__SYSTEM(chmod)(temporary, mode & 0777);
    return file;
}

static int carnn__file_sink(void *file, const void *bytes, size_t size) {
    return fwrite(bytes, 1, size, (FILE *)file) == size;
}

/* Unless the file is complete and stays so to the end, no trace of it is left. Without `fill` it
   only tries whether the file could be written. */
static carnn_status carnn__gguf_save(carnn__gguf_fill fill, const void *from, const char *name,
                                     const carnn_allocator *allocator, carnn_error *error) {
    unsigned mode = carnn__file_mode(name);
    int special = carnn__is_special(mode), opened, complete, reason; /* special: written directly */
    char *target = CARNN__IS_REGULAR(mode) ? CARNN__TARGET(name) : NULL, *path, *temporary;
    size_t room = strlen(target ? target : name) + 16;
    FILE *file = NULL;
    if (!fill && CARNN__IS_PIPE(mode)) return CARNN_OK; /* its reader would end */
    path = (char *)carnn__alloc(allocator, room, 1); /* where symbolic links lead to */
    temporary = (char *)carnn__alloc(allocator, room, 1);
    if (path) strcpy(path, target ? target : name);
    free(target);
    if (!path || !temporary) {
        carnn__free(allocator, path);
        carnn__free(allocator, temporary);
        return carnn__out_of_memory(error);
    }
    if (special)
        file = fopen(name, "wb");
    else if (!*name)
        errno = ENOENT;
    else if (mode && (!(mode & 0222) || CARNN__SYSTEM(access)(path, 2) != 0))
        errno = EACCES; /* the folder would allow it */
    else
        file = carnn__open_beside(path, mode, temporary, room);
    opened = file != NULL;
    complete = file && fill && carnn__gguf_write(fill, from, carnn__file_sink, file) > 0 &&
               (special ? fflush(file) == 0 : carnn__sync(file));
    reason = errno;
    if (file && fclose(file) != 0 && complete) complete = 0, reason = errno;
    if (!special && complete && !carnn__rename(temporary, path)) complete = 0, reason = errno;
    if (!special && complete) carnn__sync_folder(path);
    else if (!special && opened) remove(temporary);
    carnn__free(allocator, path);
    carnn__free(allocator, temporary);
    if (complete || (!fill && opened)) return CARNN_OK;
    return carnn__fail(error, CARNN_ERR_IO, 0, "%s: cannot be written: %s", carnn__name_end(name),
                       strerror(reason));
}

/* A whole file in an aligned block, which the caller frees, also after a failure. */
static carnn_status carnn__read_file(const char *name, const carnn_allocator *allocator,
                                     void **block, size_t *size, carnn_error *error) {
    int special = carnn__is_special(carnn__file_mode(name)); /* opening a pipe could block */
    FILE *file = special ? NULL : fopen(name, "rb");
    long end = -1;
    carnn_status status = CARNN_OK;
    *block = NULL;
    if (!file)
        return carnn__io_error(error, name, special ? "not a regular file" : strerror(errno));
    if (fseek(file, 0, SEEK_END) == 0) end = ftell(file);
    *size = (size_t)end;
    if (end < 0 || fseek(file, 0, SEEK_SET) != 0)
        status = carnn__io_error(error, name, "not a regular file");
    else if (!(*block = carnn__alloc_aligned(allocator, *size, 1)))
        status = carnn__out_of_memory(error);
    else if (fread(*block, 1, *size, file) != *size)
        status = carnn__io_error(error, name, ferror(file) ? strerror(errno) : "it got shorter");
    fclose(file);
    return status;
}

#else

static carnn_status carnn__gguf_save(carnn__gguf_fill fill, const void *from, const char *file,
                                     const carnn_allocator *allocator, carnn_error *error) {
    (void)fill, (void)from, (void)allocator;
    return carnn__io_error(error, file, "built with CARNN_NO_STDIO: no files");
}

static carnn_status carnn__read_file(const char *name, const carnn_allocator *allocator,
                                     void **block, size_t *size, carnn_error *error) {
    *block = NULL;
    *size = 0;
    return carnn__gguf_save(NULL, NULL, name, allocator, error);
}

#endif

CARNN_API carnn_status carnn_file_check(const char *file, carnn_error *error) {
    carnn_allocator allocator = carnn__allocator(NULL);
    return carnn__gguf_save(NULL, NULL, file, &allocator, error);
}

/* Reads all of a file up to the table of tensors. If the source is not in memory, its file is read
   into *block, which the caller frees. */
static carnn_status carnn__gguf_open(carnn__gguf *g, const carnn__gguf_kind *kind,
                                     const carnn_source *source, const carnn_allocator *allocator,
                                     void **block, carnn_error *error) {
    char architecture[64];
    uint64_t keys, format;
    uint32_t version;
    memset(g, 0, sizeof *g);
    g->name = carnn__name_end(source->name ? source->name : "model in memory");
    g->bytes = (const unsigned char *)source->bytes;
    g->size = source->size;
    g->error = error;
    if (!g->bytes) {
        g->status = carnn__read_file(source->name, allocator, block, &g->size, error);
        g->bytes = (const unsigned char *)*block;
    }
    if (g->status) return g->status;
    if (g->size < 24 || memcmp(g->bytes, "GGUF", 4) != 0)
        return carnn__gguf_fail(g, "not a GGUF file");
    g->at = 4;
    version = (uint32_t)carnn__gguf_number(g, 4);
    if (version != CARNN__GGUF_VERSION)
        return carnn__gguf_fail(g, "GGUF of version %u, expected little-endian version %d",
                                (unsigned)version, CARNN__GGUF_VERSION);
    g->tensors = carnn__gguf_number(g, 8);
    keys = carnn__gguf_number(g, 8);
    if (keys > CARNN__GGUF_KEYS_MAX)
        return carnn__gguf_fail(g, "not a model of carnn: %llu keys", (unsigned long long)keys);
    for (; keys && !g->status; keys--) carnn__gguf_take_key(g);
    carnn__key_text(g, "general.architecture", architecture);
    if (!g->status && strcmp(architecture, kind->architecture) != 0)
        carnn__gguf_fail(g, "holds \"%.40s\", expected \"%s\"", architecture, kind->architecture);
    carnn__gguf_verify(g);
    format = carnn__gguf_key_number(g, "carnn.format", CARNN__GGUF_U32);
    if (format != kind->format)
        carnn__gguf_fail(g, "written by another version of carnn (format %u, this is %s with "
                         "format %u)%s", (unsigned)format, CARNN_VERSION, (unsigned)kind->format,
                         kind->advice);
    if (carnn__gguf_key_number(g, "general.alignment", CARNN__GGUF_U32) != CARNN__ALIGN)
        carnn__gguf_fail(g, "general.alignment is not %d", CARNN__ALIGN);
    return g->status;
}

/* --- keys of models and checkpoints ---------------------------------------------------------- */

/* How fast or for how long a training ran is not kept: it changes nothing of the result. */
static int carnn__option_kept(const carnn_option *o) {
    return strcmp(o->name, "threads") != 0 && strcmp(o->name, "max_time") != 0;
}

/* An option that the file does not have, as it is older, keeps its default. */
static void carnn__key_option(carnn__gguf *g, const carnn_option *o, carnn_model *model) {
    double value = carnn__option_value(o, &model->desc, &model->trained);
    char key[64], name[64];
    int64_t whole;
    snprintf(key, sizeof key, "carnn.%s", o->name);
    if (!carnn__option_kept(o)) return;
    if (!g->writing && !carnn__gguf_find(g, key, strlen(key))) return;
    if (o->kind == CARNN_OPTION_NAME) {
        snprintf(name, sizeof name, "%s", carnn__choice_name(o, value));
        carnn__key_text(g, key, name);
        value = *name || !strcmp(o->name, "cell") ? carnn__choice_named(o, name) : 0.0;
        if (value < 0.0) /* untrained models have no optimiser */
            carnn__gguf_fail(g, "unknown %s \"%s\"", o->name, name);
    } else if (o->kind == CARNN_OPTION_INTEGER) {
        whole = (int64_t)value;
        carnn__key_number(g, key, CARNN__GGUF_I64, &whole);
        value = (double)whole;
    } else {
        carnn__key_number(g, key, CARNN__GGUF_F64, &value);
    }
    carnn__option_put(o, &model->desc, &model->trained, value);
}

static void carnn__scores_add(carnn_scores *s, const carnn__metric *metric) {
    s->metric[s->count].name = metric->name;
    s->metric[s->count].lower_is_better = metric->lower_is_better;
    s->metric[s->count++].secondary = metric->secondary;
}

/* A model that has met no validation has no metrics. */
static void carnn__key_scores(carnn__gguf *g, const carnn__task *task, carnn_scores *s) {
    size_t i, count = s->count;
    char key[64];
    carnn__key_size(g, "carnn.score.examples", &s->examples);
    carnn__key_size(g, "carnn.score.tokens", &s->tokens);
    carnn__key_number(g, "carnn.score.loss", CARNN__GGUF_F64, &s->loss);
    for (s->count = i = 0; i < CARNN_SCORES_MAX && task->metric[i].name; i++) {
        snprintf(key, sizeof key, "carnn.score.%s", task->metric[i].name);
        if (g->writing ? s->count == count ||
                             strcmp(s->metric[s->count].name, task->metric[i].name) != 0
                       : !carnn__gguf_find(g, key, strlen(key)))
            continue;
        carnn__scores_add(s, &task->metric[i]);
        carnn__key_number(g, key, CARNN__GGUF_F64, &s->metric[s->count - 1].value);
    }
}

/* What a file says of a model and its training besides words and weights. */
static void carnn__key_model(carnn__gguf *g, carnn_model *model) {
    const carnn_option *o;
    size_t i;
    char name[64];
    snprintf(name, sizeof name, "%s", g->writing ? model->desc.task : "");
    carnn__key_text(g, "carnn.task", name);
    model->task = carnn__task_named(name);
    if (!model->task) carnn__gguf_fail(g, "unknown task \"%s\"", name);
    if (g->status) return;
    model->desc.task = model->task->name;
    if (!g->writing) carnn_defaults(&model->desc, &model->trained, NULL);
    for (i = 0; (o = carnn_option_at(model->desc.task, i)) != NULL; i++)
        carnn__key_option(g, o, model);
    if (!model->trained.optimizer) memset(&model->trained, 0, sizeof model->trained);
    carnn__key_number(g, "carnn.best_epoch", CARNN__GGUF_I64, &model->best_epoch);
    if (!g->writing && model->best_epoch < 0) carnn__gguf_fail(g, "carnn.best_epoch is below 0");
    carnn__key_scores(g, model->task, &model->scores);
}

/* --- models ---------------------------------------------------------------------------------- */

static const carnn__gguf_kind carnn__model_file = {"carnn", 1, ""};

/* A list of strings. The arrays for building one that is read are no larger than the file. */
static void carnn__key_names(carnn__gguf *g, const char *name, carnn__names *names,
                             const carnn_allocator *a) {
    const carnn__gguf_key *key;
    const unsigned char *at;
    carnn__span *text;
    size_t i, count;
    carnn_status status;
    if (g->writing) {
        carnn__put_key(g, name, CARNN__GGUF_ARRAY);
        carnn__put_number(g, CARNN__GGUF_STRING, 4);
        carnn__put_number(g, names->count, 8);
        for (i = 0; i < names->count; i++)
            carnn__put_string(g, carnn__names_get(names, i), carnn__names_length(names, i));
        return;
    }
    key = carnn__gguf_need(g, name, CARNN__GGUF_ARRAY_OF(CARNN__GGUF_STRING));
    if (!key || !key->count) return;
    at = key->value;
    count = (size_t)key->count;
    text = (carnn__span *)carnn__alloc(a, count, sizeof *text);
    status = text ? CARNN_OK : CARNN_ERR_MEMORY;
    for (i = 0; !status && i < count; at += text[i++].length) {
        text[i].length = (size_t)carnn__get64(at);
        at += 8;
        text[i].at = (const char *)at;
    }
    if (!status) status = carnn__names_build(names, a, text, count, NULL);
    if (status == CARNN_ERR_MODEL) carnn__gguf_fail(g, "%s: the same string twice", name);
    else if (status) g->status = carnn__out_of_memory(g->error);
    carnn__free(a, text);
}

/* The vocabulary and, where the task has them, its choices, and which of them it says for want of
   an answer. */
static void carnn__key_words(carnn__gguf *g, carnn_model *model) {
    const char *choices = model->task ? model->task->choices_key : NULL;
    uint64_t unsure = model->unsure;
    carnn__key_names(g, "carnn.words", &model->words, &model->allocator);
    if (choices) carnn__key_names(g, choices, &model->choices, &model->allocator);
    if (g->writing ? !model->desc.unsure : !carnn__gguf_find(g, "carnn.unsure", 12)) return;
    carnn__key_number(g, "carnn.unsure", CARNN__GGUF_U64, &unsure);
    if (unsure >= model->choices.count) carnn__gguf_fail(g, "carnn.unsure is not one of the choices");
    else model->desc.unsure = carnn__names_get(&model->choices, (size_t)unsure);
}

/* The table of tensors: one that is read has to be what the task declares for the model. */
static void carnn__key_params(carnn__gguf *g, const carnn__store *store) {
    const carnn__param *p;
    for (p = store->item; p < store->item + store->count && !g->status; p++)
        carnn__key_tensor(g, p->name, p->rows, p->columns, p->offset);
}

static void carnn__put_model(carnn__gguf *g, const void *from) {
    carnn_model model = *(const carnn_model *)from; /* carnn__key_model sets what it writes */
    const carnn__store *store = &model.params;
    char title[96];
    carnn__put_start(g, &carnn__model_file, store->count);
    snprintf(title, sizeof title, "%s %s", model.desc.task, model.desc.cell);
    carnn__put_key_text(g, "general.name", title);
    carnn__key_model(g, &model);
    carnn__key_words(g, &model);
    carnn__key_params(g, store);
    carnn__put_floats(g, store->value, store->size);
}

CARNN_API size_t carnn_model_size(const carnn_model *model) {
    return carnn__gguf_write(carnn__put_model, model, NULL, NULL);
}

static int carnn__memory_sink(void *to, const void *bytes, size_t size) {
    unsigned char **at = (unsigned char **)to;
    memcpy(*at, bytes, size);
    *at += size;
    return 1;
}

CARNN_API carnn_status carnn_model_write(const carnn_model *model, void *memory, size_t size,
                                         carnn_error *error) {
    size_t needed = carnn_model_size(model);
    unsigned char *at = (unsigned char *)memory;
    if (size < needed)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "the model takes %llu bytes, given %llu",
                           (unsigned long long)needed, (unsigned long long)size);
    carnn__gguf_write(carnn__put_model, model, carnn__memory_sink, &at);
    return CARNN_OK;
}

CARNN_API carnn_status carnn_model_save(const carnn_model *model, const char *file,
                                        carnn_error *error) {
    return carnn__gguf_save(carnn__put_model, model, file, &model->allocator, error);
}

/* Is every float finite? NaN and infinity have all bits of the exponent set, so that adding one
   more carries into the sign. Two at a time: `count` is even in all our flat arrays. */
static int carnn__finite(const float *x, size_t count) {
    uint64_t bits, carried = 0;
    size_t i;
    for (i = 0; i < count; i += 2) {
        memcpy(&bits, x + i, sizeof bits);
        carried |= (bits & 0x7FFFFFFF7FFFFFFFu) + 0x0080000000800000u;
    }
    return !(carried & 0x8000000080000000u);
}

/* The first matrix that is not finite in the first `size` floats of an array that is laid out like
   the store; NULL: all are. */
static const char *carnn__not_finite(const carnn__store *store, const float *array, size_t size) {
    size_t i, end;
    for (i = 0; i < store->count && store->item[i].offset < size; i++) {
        end = i + 1 < store->count ? store->item[i + 1].offset : store->size;
        if (!carnn__finite(array + store->item[i].offset, end - store->item[i].offset))
            return store->item[i].name;
    }
    return NULL;
}

static carnn_status carnn__model_open(carnn_model *model, const carnn_source *source,
                                      carnn_error *error) {
    const carnn_allocator *a = &model->allocator;
    carnn__gguf g;
    const unsigned char *data;
    const char *broken;
    carnn_error why;
    carnn_status status;
    carnn__gguf_open(&g, &carnn__model_file, source, a, &model->block, error);
    carnn__key_model(&g, model);
    carnn__key_words(&g, model);
    if (g.status) return g.status;
    status = carnn__model_declare(model, &why);
    if (!status && model->trained.optimizer)
        status = carnn__check_options(&model->desc, &model->trained, &why);
    if (status == CARNN_ERR_MEMORY) return carnn__out_of_memory(error);
    if (status) return carnn__gguf_fail(&g, "%s", why.message);
    /* its weights are used in place if this machine can, else copied */
    carnn__gguf_count(&g, model->params.count);
    carnn__key_params(&g, &model->params);
    data = carnn__gguf_data(&g, model->params.size);
    if (!data) return g.status;
    if (CARNN__LITTLE_ENDIAN && (uintptr_t)data % CARNN__ALIGN == 0) {
        model->params.value = (float *)(uintptr_t)data;
    } else {
        status = carnn__store_alloc(&model->params, a, error);
        if (status) return status;
        carnn__swap_floats(model->params.value, data, model->params.size);
        carnn__free_aligned(a, model->block);
        model->block = model->params.value;
    }
    broken = carnn__not_finite(&model->params, model->params.value, model->params.size);
    return broken ? carnn__gguf_fail(&g, "%s holds NaN or infinity", broken) : CARNN_OK;
}

CARNN_API carnn_status carnn_model_load(carnn_model **model, const carnn_source *source,
                                        const carnn_allocator *allocator, carnn_error *error) {
    carnn_allocator a = carnn__allocator(allocator);
    carnn_model *m;
    carnn_status status;
    *model = NULL;
    if (!source->bytes && !source->name)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "a model is loaded from a file or from "
                           "memory: neither is named");
    m = (carnn_model *)carnn__alloc_zero(&a, 1, sizeof *m);
    if (!m) return carnn__out_of_memory(error);
    m->allocator = a;
    status = carnn__model_open(m, source, error);
    if (status == CARNN_OK) *model = m;
    else carnn_model_free(m);
    return status;
}

#ifndef CARNN_NO_TRAIN

/* --- checkpoints: what a training needs to go on as if it had never stopped ------------------- */

static const carnn__gguf_kind carnn__checkpoint_file = {"carnn-checkpoint", 3, ": train anew"};

/* What has to be the same when a training goes on. */
enum { CARNN__SAME_NAMES, CARNN__SAME_VECTORS, CARNN__SAME_TRAIN, CARNN__SAME_VALID, CARNN__SAME };

static const char *const carnn__checkpoint_same[CARNN__SAME][2] = {
    {"carnn.names", "words or choices"},
    {"carnn.checkpoint.word_vectors", "word vectors"},
    {"carnn.checkpoint.training_data", "training data"},
    {"carnn.checkpoint.validation_data", "validation data"}};

typedef struct carnn__checkpoint {
    carnn_model *model;
    struct {
        const char *name;
        float *value;           /* (trained) */
    } array[5];
    size_t arrays;
    uint64_t same[CARNN__SAME]; /* checksums */
    uint64_t epoch, batch, step;
    carnn__tally tally;         /* of the epoch at hand */
    double power_a, power_b, best_value, seconds;
    double first_loss;          /* of the first batch that has targets */
} carnn__checkpoint;

/* Adds an array, unless it is NULL. */
static void carnn__checkpoint_array(carnn__checkpoint *c, const char *name, float *value) {
    if (!value) return;
    c->array[c->arrays].name = name;
    c->array[c->arrays++].value = value;
}

static void carnn__sum_list(carnn__sum *sum, const void *list, size_t count, size_t size) {
    carnn__sum_add64(sum, count);
    carnn__sum_add(sum, list, count * size);
}

static uint64_t carnn__names_sum(const carnn_model *model) {
    const carnn__names *words = &model->words, *choices = &model->choices;
    carnn__sum sum;
    carnn__sum_start(&sum);
    carnn__sum_list(&sum, words->at, words->count, sizeof(size_t));
    carnn__sum_list(&sum, words->bytes, words->count ? words->at[words->count] : 0, 1);
    carnn__sum_list(&sum, choices->at, choices->count, sizeof(size_t));
    carnn__sum_list(&sum, choices->bytes, choices->count ? choices->at[choices->count] : 0, 1);
    return carnn__sum_end(&sum);
}

static void carnn__key_position(carnn__gguf *g, carnn__checkpoint *c) {
    char key[64];
    size_t i;
    for (i = 0; i < CARNN__SAME; i++)
        carnn__key_number(g, carnn__checkpoint_same[i][0], CARNN__GGUF_U64, &c->same[i]);
    carnn__key_number(g, "carnn.checkpoint.epoch", CARNN__GGUF_U64, &c->epoch);
    carnn__key_number(g, "carnn.checkpoint.batch", CARNN__GGUF_U64, &c->batch);
    carnn__key_number(g, "carnn.checkpoint.step", CARNN__GGUF_U64, &c->step);
    carnn__key_size(g, "carnn.checkpoint.examples", &c->tally.examples);
    carnn__key_size(g, "carnn.checkpoint.tokens", &c->tally.tokens);
    carnn__key_number(g, "carnn.checkpoint.loss", CARNN__GGUF_F64, &c->tally.loss);
    for (i = 0; i < CARNN_SCORES_MAX; i++) {
        snprintf(key, sizeof key, "carnn.checkpoint.sum.%u", (unsigned)i);
        carnn__key_number(g, key, CARNN__GGUF_F64, &c->tally.sum[i]);
    }
    carnn__key_number(g, "carnn.checkpoint.power_a", CARNN__GGUF_F64, &c->power_a);
    carnn__key_number(g, "carnn.checkpoint.power_b", CARNN__GGUF_F64, &c->power_b);
    carnn__key_number(g, "carnn.checkpoint.best_value", CARNN__GGUF_F64, &c->best_value);
    carnn__key_number(g, "carnn.checkpoint.seconds", CARNN__GGUF_F64, &c->seconds);
    carnn__key_number(g, "carnn.checkpoint.first_loss", CARNN__GGUF_F64, &c->first_loss);
}

static void carnn__key_arrays(carnn__gguf *g, const carnn__checkpoint *c) {
    size_t i, size = c->model->params.trained;
    for (i = 0; i < c->arrays; i++) carnn__key_tensor(g, c->array[i].name, 1, size, i * size);
}

static void carnn__put_checkpoint(carnn__gguf *g, const void *from) {
    carnn__checkpoint c = *(const carnn__checkpoint *)from;
    carnn_model model = *c.model;
    size_t i;
    carnn__put_start(g, &carnn__checkpoint_file, c.arrays);
    carnn__key_model(g, &model);
    carnn__key_position(g, &c);
    carnn__key_arrays(g, &c);
    for (i = 0; i < c.arrays; i++) carnn__put_floats(g, c.array[i].value, model.params.trained);
}

/* All has to be as it was, but for how long a training goes on. */
static void carnn__checkpoint_compare(carnn__gguf *g, const carnn__checkpoint *c,
                                      const carnn_model *model, const carnn__checkpoint *found) {
    const char *task = c->model->desc.task;
    const carnn_option *o;
    char then[64], now[64];
    size_t i;
    if (strcmp(model->desc.task, task) != 0)
        carnn__gguf_fail(g, "checkpoint of the task %s, not %s", model->desc.task, task);
    for (i = 0; !g->status && (o = carnn_option_at(task, i)) != NULL; i++) {
        if (!carnn__option_kept(o) || !strcmp(o->name, "epochs") || !strcmp(o->name, "patience"))
            continue;
        carnn_option_get(o, &model->desc, &model->trained, then, sizeof then);
        carnn_option_get(o, &c->model->desc, &c->model->trained, now, sizeof now);
        if (strcmp(then, now) != 0)
            carnn__gguf_fail(g, "checkpoint of a training with %s = %s, not %s", o->name, then,
                             now);
    }
    for (i = 0; i < CARNN__SAME; i++)
        if (found->same[i] != c->same[i])
            carnn__gguf_fail(g, "checkpoint of a training with other %s",
                             carnn__checkpoint_same[i][1]);
}

/* Nothing of the training changes before all has been seen. */
static carnn_status carnn__checkpoint_load(carnn__checkpoint *c, const char *file,
                                           carnn_error *error) {
    const carnn_allocator *allocator = &c->model->allocator;
    carnn_source source = {file, NULL, 0};
    carnn__gguf g;
    carnn_model model;
    carnn__checkpoint found = *c;
    size_t i, size = c->model->params.trained;
    void *block = NULL;
    float *values;
    memset(&model, 0, sizeof model);
    carnn__gguf_open(&g, &carnn__checkpoint_file, &source, allocator, &block, error);
    if (g.status == CARNN_ERR_IO)
        carnn__io_error(error, file, "cannot be read: is the training done already?");
    carnn__key_model(&g, &model);
    carnn__key_position(&g, &found);
    if (!g.status) carnn__checkpoint_compare(&g, c, &model, &found);
    carnn__gguf_count(&g, c->arrays);
    carnn__key_arrays(&g, c);
    values = (float *)(uintptr_t)carnn__gguf_data(&g, c->arrays * size); /* in the block, aligned */
    if (values) carnn__swap_floats(values, values, c->arrays * size);
    for (i = 0; i < c->arrays; i++)
        if (values && !carnn__finite(values + i * size, size))
            carnn__gguf_fail(&g, "%s holds NaN or infinity", c->array[i].name);
    for (i = 0; !g.status && i < c->arrays; i++)
        memcpy(c->array[i].value, values + i * size, size * sizeof(float));
    carnn__free_aligned(allocator, block);
    if (g.status) return g.status;
    c->model->scores = model.scores;
    c->model->best_epoch = model.best_epoch;
    *c = found;
    return CARNN_OK;
}

#endif /* CARNN_NO_TRAIN */

#endif
/* =============================================================================================
   @@TRAIN   training and scoring
   ============================================================================================= */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

/* --- scoring --------------------------------------------------------------------------------- */

static void carnn__score(const carnn__task *task, const carnn__tally *tally, double seconds,
                         carnn_scores *scores) {
    memset(scores, 0, sizeof *scores);
    while (task->metric[scores->count].name)
        carnn__scores_add(scores, &task->metric[scores->count]);
    scores->examples = tally->examples;
    scores->tokens = tally->tokens;
    scores->loss = tally->loss / (double)carnn__max(carnn__tally_size(tally), 1);
    scores->seconds = seconds;
    carnn__net_score(task, tally, scores);
}

/* Streams of random numbers beside those of the parameters, which are numbered from 0. */
#define CARNN__SHUFFLE_STREAM 0x5348554646ACE5u
#define CARNN__STEP_STREAM 0x53544550ACE5u

#define CARNN__SCORING_BATCH 64 /* examples in a batch where nothing is learnt */

static carnn__work carnn__scoring_work(const carnn_model *model, const carnn_dataset *data,
                                       carnn__engine *engine) {
    carnn__work work;
    memset(&work, 0, sizeof work);
    work.model = model;
    work.data = data;
    work.engine = engine;
    work.allocator = model->allocator;
    work.w = model->params.value;
    work.batch = CARNN__SCORING_BATCH;
    return work;
}

/* What a model chooses among: its choices, or words, as in a task that has a vote of its own. */
static const carnn__names *carnn__choices(const carnn_model *model) {
    return model->choices.count && !model->task->vote ? &model->choices : &model->words;
}

/* Can all models read the data, and choose among the same answers, so that they can vote? */
static carnn_status carnn__same_candidates(const carnn_model *const *models, size_t count,
                                           const carnn_dataset *data, carnn_error *error) {
    const carnn__names *a = carnn__choices(models[0]), *b;
    size_t m;
    carnn_status status;
    for (m = 0; m < count; m++)
        if ((status = carnn__same_task(models[m], data, error)) != CARNN_OK) return status;
    for (m = 1; m < count; m++) {
        b = carnn__choices(models[m]);
        if (a->count != b->count ||
            (a->count && (memcmp(a->at, b->at, (a->count + 1) * sizeof *a->at) ||
                          memcmp(a->bytes, b->bytes, a->at[a->count]))))
            return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "models 1 and %zu cannot vote: their "
                               "candidates or words differ", m + 1);
    }
    return CARNN_OK;
}

/* Gives an arena on which all has been counted its memory. */
static carnn_status carnn__arena_open(carnn__arena *arena, const carnn_allocator *a,
                                      carnn_error *error) {
    arena->size = arena->peak;
    arena->used = 0;
    arena->base = (char *)carnn__alloc_aligned(a, arena->size, 1);
    return arena->base ? CARNN_OK : carnn__out_of_memory(error);
}

/* The memory of works that score the same data, each in its own part of the arena. Returns their
   tallies, (count + 1): the last one is the vote's. */
static carnn__tally *carnn__scoring_carve(carnn__work *const *works, size_t count,
                                          carnn__arena *arena) {
    size_t m;
    carnn__tally *tally;
    arena->used = 0;
    tally = (carnn__tally *)carnn__take(arena, count + 1, sizeof *tally);
    for (m = 0; m < count; m++) carnn__net_carve(works[m], arena);
    return tally;
}

/* Works on each batch with all models in turn, then lets them vote. Fills `scores`, of the models
   and of the vote of several, unless it is NULL. */
static void carnn__evaluate(carnn__work *const *works, size_t count, carnn__arena *arena,
                            carnn_scores *scores) {
    carnn__tally *tally = carnn__scoring_carve(works, count, arena);
    carnn__work *first = works[0];
    double started = carnn__clock();
    size_t m, i, batches = 0;
    memset(tally, 0, (count + 1) * sizeof *tally);
    for (m = 0; m < count; m++) batches = carnn__net_batches(works[m], 0);
    for (i = 0; i < batches; i++) {
        for (m = 0; m < count; m++) carnn__net_batch(works[m], i, 0, &tally[m]);
        if (count < 2) continue;
        first->number = count; /* speaks for all */
        first->as_vote = 1;
        carnn__net_vote(works, count, i, &tally[count]);
        first->as_vote = 0;
        first->number = 0;
    }
    for (m = 0; scores && m < count + (count > 1); m++)
        carnn__score(first->model->task, &tally[m], carnn__clock() - started, &scores[m]);
}

static double carnn__unknown_words(const carnn__work *work) {
    const carnn__corpus *c = carnn__corpus_of(work);
    const carnn__member *members = work->data->members;
    size_t i, k, words = 0, unknown = 0;
    for (i = 0; c->tokens.ids && i < work->data->member_count; i++) {
        const size_t *at = c->tokens.at + c->list[i];
        if (work->model->task->roles[members[i].role].labels) continue;
        for (k = at[0]; k < at[1]; k++, words++) { /* <unk>, <unk.1>, or unlike all words (cloze) */
            const char *word = carnn_model_word(work->model, c->tokens.ids[k]);
            unknown += !word || !strncmp(word, "<unk", 4);
        }
    }
    return (double)unknown / (double)carnn__max(words, 1);
}

/* All models on a data set, for one of the descriptions; scores may be NULL. */
static carnn_status carnn__test(const carnn_model *const *models, size_t count,
                                const carnn_dataset *data, const carnn_test_desc *asked,
                                const carnn_predict_desc *wanted, carnn_scores *scores,
                                carnn_error *error) {
    const carnn_allocator *a = &models[0]->allocator;
    carnn__engine engine;
    carnn__arena arena = {NULL, 0, 0, 0};
    carnn__work *work, **works;
    void *blocks = NULL; /* carnn__own */
    size_t m;
    carnn_status status = carnn__same_candidates(models, count, data, error);
    if (!status)
        status = carnn__engine_open(&engine, models[0]->desc.simd,
                                    carnn_thread_count(asked ? asked->threads : wanted->threads),
                                    *a, error);
    if (status) return status;
    work = (carnn__work *)carnn__own(&blocks, a, count, sizeof *work);
    works = (carnn__work **)carnn__own(&blocks, a, count, sizeof *works);
    if (!work || !works) status = carnn__out_of_memory(error);
    for (m = 0; !status && m < count; m++) {
        works[m] = &work[m];
        work[m] = carnn__scoring_work(models[m], data, &engine);
        work[m].voting = count > 1;
        work[m].asked = asked;
        work[m].wanted = wanted;
        work[m].number = m;
        status = carnn__net_open(&work[m], error);
    }
    if (!status) {
        carnn__scoring_carve(works, count, &arena);
        status = carnn__arena_open(&arena, a, error);
    }
    if (!status) carnn__evaluate(works, count, &arena, scores);
    while (m-- > 0) {
        if (!status && scores) scores[m].unknown = carnn__unknown_words(&work[m]);
        carnn__net_close(&work[m]);
    }
    carnn__free_aligned(a, arena.base);
    carnn__disown(&blocks, a);
    carnn__engine_close(&engine);
    return status;
}

CARNN_API carnn_status carnn_test_parts(const carnn_model *const *models, size_t count,
                                        const carnn_dataset *data, const carnn_test_desc *desc,
                                        carnn_scores *scores, carnn_error *error) {
    if (!count) return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "no model to test");
    if (!data->item_count)
        return carnn__fail(error, CARNN_ERR_DATA, 0, "there is no example to test on");
    return carnn__test(models, count, data, desc, NULL, scores, error);
}

CARNN_API carnn_status carnn_test(const carnn_model *const *models, size_t count,
                                  const carnn_dataset *data, int64_t threads,
                                  carnn_scores *scores, carnn_error *error) {
    carnn_test_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.threads = threads;
    return carnn_test_parts(models, count, data, &desc, scores, error);
}

CARNN_API carnn_status carnn_predict(const carnn_model *model, const carnn_dataset *data,
                                     const carnn_predict_desc *desc, carnn_error *error) {
    if (!desc->example)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "nobody to tell the predictions to");
    if (!data->item_count) return carnn__same_task(model, data, error);
    return carnn__test(&model, 1, data, NULL, desc, NULL, error);
}

#define CARNN__BOOTSTRAP 10000

/* Efron and Tibshirani 1993: parts are drawn with replacement; how often is the difference of the
   means as far from that of all parts as this one is from 0? */
CARNN_API double carnn_significance(size_t parts, const double *a, const double *b,
                                    const double *weight, uint64_t seed) {
    double found = 0.0, all = 0.0, extreme = 1.0;
    size_t i, draw;
    for (i = 0; i < parts; i++) {
        found += b[i] - a[i];
        all += weight[i];
    }
    if (parts < 2 || !(all > 0.0)) return 1.0;
    found /= all;
    for (draw = 0; draw < CARNN__BOOTSTRAP; draw++) {
        uint64_t key = carnn__stream(seed, draw);
        double sum = 0.0, drawn = 0.0;
        for (i = 0; i < parts; i++) {
            size_t part = (size_t)(carnn__random(key, i) % parts);
            sum += b[part] - a[part];
            drawn += weight[part];
        }
        if (!(fabs(sum / drawn - found) < fabs(found) - 1e-12)) extreme += 1.0; /* NaN: as far */
    }
    return extreme / (CARNN__BOOTSTRAP + 1.0);
}

#ifndef CARNN_NO_TRAIN

/* --- training -----------------------------------------------------------------------------------
   Each of the shuffled batches of an epoch is one step of the optimiser. After an epoch the
   validation set is scored, and the best weights so far are kept. The learning rate falls along
   half a cosine from lr to lr_end * lr over all epochs (Loshchilov and Hutter 2017), and by the
   factor lr_decay from epoch to epoch. All that is random is drawn from (seed, epoch) or (seed,
   step), so that a run that was stopped in an epoch can be resumed exactly. */

#define CARNN__PI 3.14159265358979323846

typedef struct carnn__training {
    carnn_model *model;
    carnn_train_desc desc; /* complete */
    carnn__engine engine;
    carnn__arena arena;    /* shared by training and scoring, which alternate */
    carnn__work train, valid; /* valid.data is NULL without a validation set */
    carnn__optimizer optimizer;
    float *gradient;        /* laid out like the store, of what is trained; zeros between steps */
    float *best;            /* weights of the best epoch, without validation of the last one */
    float *average;         /* moving average of the weights, or NULL */
    carnn__checkpoint at;   /* where the training is: finished epochs, batches, steps */
    carnn_status save;      /* of the last checkpoint */
    carnn_scores valid_scores;
    double started, reported, saved;
    double norm, rate_started;
    size_t rate_done;       /* examples or words before rate_started */
} carnn__training;

/* Tells data sets apart: a checkpoint goes on only with the data that it began with. */
static uint64_t carnn__fingerprint(const carnn_dataset *data) {
    carnn__sum sum;
    size_t i;
    if (!data) return 0;
    carnn__sum_start(&sum);
    carnn__sum_list(&sum, data->bytes, data->text_at[data->text_count], 1);
    carnn__sum_list(&sum, data->text_at, data->text_count, sizeof *data->text_at);
    carnn__sum_list(&sum, data->members, data->member_count, sizeof *data->members);
    for (i = 0; i < data->item_count; i++) /* without the padding behind the last field */
        carnn__sum_add(&sum, &data->items[i], offsetof(carnn__item, value) + sizeof(float));
    carnn__sum_list(&sum, data->choices, data->choice_count, sizeof *data->choices);
    carnn__sum_list(&sum, data->shown, data->shown_at[data->choice_count], 1);
    carnn__sum_add64(&sum, (uint64_t)data->spoken);
    carnn__sum_add64(&sum, data->columns);
    if (data->columns) {
        carnn__sum_list(&sum, data->row_at, data->row_count + 1, sizeof *data->row_at);
        carnn__sum_list(&sum, data->numbers, data->row_at[data->row_count] * data->columns,
                        sizeof *data->numbers);
    }
    return carnn__sum_end(&sum);
}

/* The arrays of a checkpoint, and the checksums of what must be the same when it is resumed. */
static void carnn__training_checkpoint(carnn__training *t) {
    const carnn__store *store = &t->model->params;
    carnn__sum fixed;
    t->at.model = t->model;
    carnn__checkpoint_array(&t->at, "weights", store->value);
    carnn__checkpoint_array(&t->at, "best", t->best);
    carnn__checkpoint_array(&t->at, "average", t->average);
    carnn__checkpoint_array(&t->at, "moment.1", t->optimizer.moment[0]);
    carnn__checkpoint_array(&t->at, "moment.2", t->optimizer.moment[1]);
    if (!t->desc.checkpoint) return;
    carnn__sum_start(&fixed);
    carnn__sum_list(&fixed, store->value + store->trained, store->size - store->trained,
                    sizeof(float));
    t->at.same[CARNN__SAME_NAMES] = carnn__names_sum(t->model);
    t->at.same[CARNN__SAME_VECTORS] = carnn__sum_end(&fixed);
    t->at.same[CARNN__SAME_TRAIN] = carnn__fingerprint(t->train.data);
    t->at.same[CARNN__SAME_VALID] = carnn__fingerprint(t->valid.data);
}

/* Takes all memory of a training, before its first step. */
static carnn_status carnn__training_open(carnn__training *t, const carnn_dataset *train,
                                         const carnn_dataset *valid, carnn_error *error) {
    carnn_model *model = t->model;
    const carnn_allocator *a = &model->allocator;
    carnn__work *scored = &t->valid;
    size_t size = model->params.trained, arrays = t->desc.average > 0.0 ? 3 : 2;
    carnn_status status = carnn__engine_open(&t->engine, model->desc.simd,
                                             carnn_thread_count(t->desc.threads), *a, error);
    if (status) return status;
    t->gradient = (float *)carnn__alloc_aligned(a, size, arrays * sizeof(float));
    if (!t->gradient) return carnn__out_of_memory(error);
    memset(t->gradient, 0, size * sizeof(float));
    t->best = t->gradient + size;
    memcpy(t->best, model->params.value, size * sizeof(float));
    if (arrays == 3) {
        t->average = t->best + size;
        memcpy(t->average, model->params.value, size * sizeof(float));
    }
    t->train = carnn__scoring_work(model, train, &t->engine);
    t->valid = carnn__scoring_work(model, valid, &t->engine);
    t->train.g = t->gradient;
    t->train.batch = t->desc.batch;
    t->train.dropout = fmax(t->desc.dropout, 0.0);
    t->train.smoothing = fmax(t->desc.smoothing, 0.0);
    status = carnn__optimizer_open(&t->optimizer, carnn__optimizer_number(t->desc.optimizer), size,
                                   a, error);
    if (!status) status = carnn__net_open(&t->train, error);
    if (!status && valid) status = carnn__net_open(&t->valid, error);
    if (status) return status;
    carnn__net_carve(&t->train, &t->arena);
    if (valid) carnn__scoring_carve(&scored, 1, &t->arena);
    carnn__training_checkpoint(t);
    return carnn__arena_open(&t->arena, a, error);
}

/* Writes the checkpoint, if one is wanted and the weights are numbers. */
static void carnn__training_save(carnn__training *t, carnn_error *error) {
    const carnn__store *store = &t->model->params;
    double before = t->at.seconds;
    if (!t->desc.checkpoint || carnn__not_finite(store, store->value, store->trained)) return;
    t->at.seconds += carnn__clock() - t->started;
    t->at.power_a = t->optimizer.power_a;
    t->at.power_b = t->optimizer.power_b;
    t->save = carnn__gguf_save(carnn__put_checkpoint, &t->at, t->desc.checkpoint,
                               &t->model->allocator, error);
    t->at.seconds = before;
    t->saved = carnn__clock();
}

/* --- reports --------------------------------------------------------------------------------- */

/* The mean over the epoch so far. */
static double carnn__training_loss(const carnn__training *t) {
    carnn_scores scores;
    carnn__score(t->model->task, &t->at.tally, 0.0, &scores);
    return scores.loss;
}

static double carnn__learning_rate(const carnn__training *t, double done) {
    const carnn_train_desc *d = &t->desc;
    double along = ((double)t->at.epoch + done) / (double)d->epochs;
    double end = fmax(d->lr_end, 0.0);
    double cosine = end + (1.0 - end) * 0.5 * (1.0 + cos(CARNN__PI * along));
    return d->lr * cosine * pow(d->lr_decay, (double)t->at.epoch);
}

/* Tells the callback how things are; returns what it says. */
static int carnn__report(carnn__training *t, double done, int epoch_ended) {
    carnn_progress p;
    double now = carnn__clock(), all, epochs_done;
    t->reported = now;
    if (!t->desc.progress) return 0;
    memset(&p, 0, sizeof p);
    p.epoch = (int64_t)t->at.epoch + !epoch_ended;
    p.epochs = t->desc.epochs;
    p.done = done;
    p.loss = carnn__training_loss(t);
    p.rate = (double)(carnn__tally_size(&t->at.tally) - t->rate_done) /
             (now - t->rate_started + 1e-9);
    p.lr = carnn__learning_rate(t, epoch_ended ? 0.0 : done);
    p.gradient_norm = t->norm;
    p.seconds = t->at.seconds + now - t->started;
    epochs_done = (double)t->at.epoch + (epoch_ended ? 0.0 : done);
    all = epochs_done > 0.0 ? p.seconds / epochs_done * (double)t->desc.epochs : 0.0;
    p.seconds_left = all > p.seconds ? all - p.seconds : 0.0;
    p.epoch_ended = epoch_ended;
    p.scores = epoch_ended && t->valid.data ? &t->valid_scores : NULL;
    p.best = t->model->scores.count ? &t->model->scores : NULL;
    p.best_epoch = t->model->best_epoch;
    return t->desc.progress(&p, t->desc.user);
}

/* --- the loop -------------------------------------------------------------------------------- */

/* `what` (of `name`) is not finite; NULL: the loss is too high. Advises the default learning rate,
   or where that is too high a tenth. */
static carnn_status carnn__diverged(const carnn__training *t, const char *what, const char *name,
                                    carnn_error *error) {
    carnn_model_desc model = t->model->desc;
    carnn_train_desc usual;
    char why[160];
    memset(&usual, 0, sizeof usual);
    usual.optimizer = t->desc.optimizer;
    carnn_defaults(&model, &usual, NULL);
    if (what) snprintf(why, sizeof why, "%s %s is not finite", what, name);
    else snprintf(why, sizeof why, "the loss is %.4g, it began with %.4g", carnn__training_loss(t),
                  t->at.first_loss);
    return carnn__fail(error, CARNN_ERR_DIVERGED, 0, "training diverged in epoch %llu, step %llu: "
                       "%s; try --lr %g", (unsigned long long)t->at.epoch + 1,
                       (unsigned long long)t->at.step, why,
                       t->desc.lr > usual.lr ? usual.lr : t->desc.lr / 10.0);
}

/* Is the loss so far above the first one, and that of a guess among all choices, that the weights
   of this epoch are worth nothing? A learning rate that is bearable doubles it at most. */
static int carnn__loss_exploded(const carnn__training *t) {
    double guess = log((double)carnn__max(t->model->choices.count, 1));
    return !(carnn__training_loss(t) <= 2.0 * fmax(t->at.first_loss, guess) + 4.0);
}

static void carnn__average_range(const void *training, size_t from, size_t to) {
    const carnn__training *t = (const carnn__training *)training;
    double step = (double)t->at.step, early = (1.0 + step) / (10.0 + step); /* of few steps */
    double keep = early < t->desc.average ? early : t->desc.average;
    t->engine.k->moving_average(t->model->params.value + from, t->average + from,
                                (float)(1.0 - keep), to - from);
}

static carnn_status carnn__training_step(carnn__training *t, size_t batches, carnn_error *error) {
    const carnn_train_desc *d = &t->desc;
    double lr = carnn__learning_rate(t, (double)t->at.batch / (double)batches);
    const carnn__store *store = &t->model->params;
    size_t size = store->trained;
    uint64_t key = carnn__stream(t->model->desc.seed ^ CARNN__STEP_STREAM, t->at.step);
    t->at.batch = carnn__net_step(&t->train, (size_t)t->at.batch, batches, key, &t->at.tally);
    t->norm = carnn__optimizer_step(&t->optimizer, &t->engine, store->value, t->gradient, lr,
                                    fmax(d->clip, 0.0), fmax(d->weight_decay, 0.0));
    if (!(t->at.first_loss > 0.0)) t->at.first_loss = carnn__training_loss(t); /* 0: no target */
    t->at.step++;
    if (!(t->norm <= DBL_MAX))
        return carnn__diverged(t, "the gradient of", carnn__not_finite(store, t->gradient, size),
                               error);
    if (t->average) carnn__split(&t->engine, carnn__average_range, t, size, 16, size);
    return CARNN_OK;
}

/* Scores the weights as they are and keeps them if they are the best. */
static carnn_status carnn__training_validate(carnn__training *t, int64_t epoch,
                                             carnn_error *error) {
    carnn_model *model = t->model;
    carnn__work *valid = &t->valid;
    int sign = model->task->metric[0].lower_is_better ? -1 : 1;
    double value;
    if (!t->valid.data) {
        carnn__score(model->task, &t->at.tally, 0.0, &model->scores);
    } else {
        carnn__evaluate(&valid, 1, &t->arena, &t->valid_scores);
        if (!(t->valid_scores.loss <= DBL_MAX))
            return carnn__diverged(t, "the loss on", "the validation data", error);
        value = sign * t->valid_scores.metric[0].value;
        if (model->best_epoch && !(value > t->at.best_value)) return CARNN_OK;
        t->at.best_value = value;
        model->scores = t->valid_scores;
    }
    model->best_epoch = epoch;
    memcpy(t->best, model->params.value, model->params.trained * sizeof(float));
    return CARNN_OK;
}

#ifndef CARNN__SECONDS_BETWEEN_SAVES /* a checkpoint writes all weights and moments */
#define CARNN__SECONDS_BETWEEN_SAVES 10.0
#endif

/* One epoch, or the rest of one. Sets *stop where the run is to end after it. A checkpoint that
   cannot be written does not end the training: only the last one counts. */
static carnn_status carnn__training_epoch(carnn__training *t, int *stop, carnn_error *error) {
    uint64_t key = carnn__stream(t->model->desc.seed ^ CARNN__SHUFFLE_STREAM, t->at.epoch + 1);
    const carnn__store *store = &t->model->params;
    const char *broken;
    size_t batches, bytes = store->trained * sizeof(float);
    int stopped;
    carnn_status status;
    t->arena.used = 0;
    carnn__net_carve(&t->train, &t->arena);
    batches = carnn__net_batches(&t->train, key ? key : 1);
    t->rate_started = carnn__clock();
    t->rate_done = carnn__tally_size(&t->at.tally);
    while (t->at.batch < batches && !*stop) {
        double now;
        if ((status = carnn__training_step(t, batches, error)) != CARNN_OK) return status;
        now = carnn__clock(); /* where it has been set back, fabs sees it */
        *stop = t->desc.max_time > 0.0 && now - t->started > t->desc.max_time;
        if (fabs(now - t->saved) > CARNN__SECONDS_BETWEEN_SAVES) carnn__training_save(t, NULL);
        if (t->at.batch < batches && fabs(now - t->reported) > 0.1 &&
            carnn__report(t, (double)t->at.batch / (double)batches, 0))
            return carnn__fail(error, CARNN_ERR_STOPPED, 0, "stopped in epoch %llu",
                               (unsigned long long)t->at.epoch + 1);
    }
    broken = carnn__not_finite(store, store->value, store->trained);
    if (broken || carnn__loss_exploded(t))
        return carnn__diverged(t, broken ? "a weight of" : NULL, broken, error);
    /* saved before the validation, which a run that is not stopped here does not have */
    if (t->at.batch < batches) carnn__training_save(t, error);
    if (t->average) { /* it takes the place of the weights, which are in the gradient meanwhile */
        memcpy(t->gradient, store->value, bytes);
        memcpy(store->value, t->average, bytes);
    }
    status = carnn__training_validate(t, (int64_t)t->at.epoch + 1, error);
    if (t->average) {
        memcpy(store->value, t->gradient, bytes);
        memset(t->gradient, 0, bytes); /* as between all steps */
    }
    if (status) return status;
    if (t->at.batch < batches) return CARNN_OK; /* the time is over: the epoch is not */
    t->at.epoch++;
    t->at.batch = 0;
    stopped = carnn__report(t, 1.0, 1);
    memset(&t->at.tally, 0, sizeof t->at.tally);
    if (!stopped) return CARNN_OK;
    return carnn__fail(error, CARNN_ERR_STOPPED, 0, "stopped after epoch %llu",
                       (unsigned long long)t->at.epoch);
}

static carnn_status carnn__training_run(carnn__training *t, carnn_error *error) {
    carnn_status status = CARNN_OK;
    int stop = 0;
    t->started = t->saved = carnn__clock();
    while (!status && !stop && t->at.epoch < (uint64_t)t->desc.epochs &&
           (!t->valid.data || t->desc.patience <= 0 ||
            (int64_t)t->at.epoch - t->model->best_epoch < t->desc.patience))
        status = carnn__training_epoch(t, &stop, error);
    /* where the time was over inside an epoch, that has been saved */
    if ((!status && !t->at.batch) || status == CARNN_ERR_STOPPED) carnn__training_save(t, error);
    if ((!status || status == CARNN_ERR_STOPPED) && t->save) status = t->save;
    if (status == CARNN_ERR_DIVERGED || (t->model->best_epoch && (t->valid.data || t->average)))
        memcpy(t->model->params.value, t->best, t->model->params.trained * sizeof(float));
    return status;
}

CARNN_API carnn_status carnn_train(carnn_model *model, const carnn_dataset *train,
                                   const carnn_dataset *valid, const carnn_train_desc *desc,
                                   carnn_error *error) {
    carnn_model_desc complete = model->desc; /* the model's own says what its weights are */
    carnn__training t;
    carnn_status status;
    memset(&t, 0, sizeof t);
    t.model = model;
    t.desc = *desc;
    if (!model->block)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "a model that is used in place in the "
                           "caller's memory cannot be trained");
    if ((status = carnn_defaults(&complete, &t.desc, error)) != CARNN_OK) return status;
    if ((status = carnn__same_task(model, train, error)) != CARNN_OK) return status;
    if (valid && (status = carnn__same_task(model, valid, error)) != CARNN_OK) return status;
    if (!train->item_count)
        return carnn__fail(error, CARNN_ERR_DATA, 0, "there is no example to train on");
    if (t.desc.resume && !t.desc.checkpoint)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "resume: no checkpoint file is named");
    memset(&model->scores, 0, sizeof model->scores);
    model->best_epoch = 0; /* of this training */
    model->trained = t.desc;
    model->trained.checkpoint = NULL;
    model->trained.progress = NULL;
    model->trained.user = NULL;
    model->trained.resume = 0;
    status = carnn__training_open(&t, train, valid, error);
    if (!status && t.desc.resume) {
        status = carnn__checkpoint_load(&t.at, t.desc.checkpoint, error);
        t.optimizer.power_a = t.at.power_a;
        t.optimizer.power_b = t.at.power_b;
    }
    if (!status) status = carnn__training_run(&t, error);
    carnn__net_close(&t.train);
    carnn__net_close(&t.valid);
    carnn__optimizer_close(&t.optimizer, &model->allocator);
    carnn__free_aligned(&model->allocator, t.gradient);
    carnn__free_aligned(&model->allocator, t.arena.base);
    carnn__engine_close(&t.engine);
    return status;
}

/* --- cross-validation ---------------------------------------------------------------------------
   Whole groups are in one fold, which is scored by a model of its own. Of the groups of the other
   folds, a tenth chooses the epoch, and the model is trained on the rest. */

#define CARNN__FOLD_STREAM 0x464F4C44ACE5u
#define CARNN__FOLD_CHOOSES 10 /* one in so many groups of a fold's training chooses the epoch */

enum { CARNN__FOLD_TRAINS, CARNN__FOLD_VALIDATES, CARNN__FOLD_TESTS, CARNN__FOLD_PARTS };

typedef struct carnn__validation {
    carnn_model_desc model;   /* complete */
    const carnn_train_desc *train;
    const carnn_dataset *data;
    const carnn_folds_desc *desc;
    carnn_allocator allocator;
    carnn_error *error;
    size_t count, groups;
    uint32_t *fold;           /* (groups) */
    uint32_t *part;           /* (groups) of the fold at hand: what each is for */
    uint32_t *order;          /* (groups) */
    carnn_scores *scores;     /* (count) */
    carnn__input by;          /* lines with names of folds */
    carnn__names names;       /* of folds */
} carnn__validation;

/* Reads the fold of each group. */
static carnn_status carnn__validation_read(void *job) {
    carnn__validation *f = (carnn__validation *)job;
    carnn__lines lines;
    carnn_status status = carnn__input_open(&f->by, f->desc->by, SIZE_MAX, &f->allocator,
                                            f->error);
    if (status) return status;
    for (lines = f->by.lines; carnn__next_line(&lines);) {
        carnn__span name = carnn__trim(lines.line);
        if (!name.length) return carnn__expected(f->error, &lines, "the name of a fold", name);
        if (lines.number > f->groups) continue;
        f->fold[lines.number - 1] = carnn__names_add(&f->names, name.at, name.length, 0);
    }
    f->count = f->names.count;
    if (lines.number != f->groups)
        return carnn__fail(f->error, CARNN_ERR_DATA, lines.number,
                           "%s: expected %zu lines with the name of a fold, one for each group of "
                           "the data, found %zu", carnn__name_end(lines.name), f->groups,
                           lines.number);
    if (f->count > 1) return CARNN_OK;
    return carnn__fail(f->error, CARNN_ERR_DATA, 1,
                       "%s:1: expected the names of two folds or more, found one",
                       carnn__name_end(lines.name));
}

static carnn_status carnn__validation_drop(void *job) {
    carnn__validation *f = (carnn__validation *)job;
    carnn__names_drop(&f->names);
    return CARNN_OK;
}

/* Folds of the same size, by chance. */
static carnn_status carnn__validation_draw(carnn__validation *f) {
    size_t i;
    if (f->desc->count < 2 || (uint64_t)f->desc->count > f->groups)
        return carnn__fail(f->error, CARNN_ERR_ARGUMENT, 0, "expected from 2 to %zu folds, as many "
                           "as there are groups, found %lld", f->groups, (long long)f->desc->count);
    f->count = (size_t)f->desc->count;
    for (i = 0; i < f->groups; i++) f->order[i] = (uint32_t)i;
    carnn__shuffle(carnn__stream(f->model.seed ^ CARNN__FOLD_STREAM, 0), f->order, f->groups);
    for (i = 0; i < f->groups; i++) f->fold[f->order[i]] = (uint32_t)(i % f->count);
    return CARNN_OK;
}

/* What each group is for in fold `number`. */
static carnn_status carnn__validation_part(carnn__validation *f, size_t number) {
    size_t i, n = 0;
    for (i = 0; i < f->groups; i++) {
        f->part[i] = f->fold[i] == number ? CARNN__FOLD_TESTS : CARNN__FOLD_TRAINS;
        if (f->fold[i] != number) f->order[n++] = (uint32_t)i;
    }
    if (n < 2)
        return carnn__fail(f->error, CARNN_ERR_ARGUMENT, 0, "fold %zu leaves %zu group for "
                           "training: expected one to learn from and one that chooses the epoch",
                           number + 1, n);
    carnn__shuffle(carnn__stream(f->model.seed ^ CARNN__FOLD_STREAM, number + 1), f->order, n);
    for (i = 0; i < carnn__max(n / CARNN__FOLD_CHOOSES, 1); i++)
        f->part[f->order[i]] = CARNN__FOLD_VALIDATES;
    return CARNN_OK;
}

/* Trains and scores the model of a fold. */
static carnn_status carnn__validation_run(carnn__validation *f, size_t number) {
    carnn_dataset *data[CARNN__FOLD_PARTS] = {NULL, NULL, NULL};
    carnn_model *model = NULL;
    const carnn_model *const *models = (const carnn_model *const *)&model;
    carnn_scores *scores = &f->scores[number];
    carnn_status status = carnn__validation_part(f, number);
    uint32_t i;
    for (i = 0; !status && i < CARNN__FOLD_PARTS; i++)
        status = carnn__dataset_subset(&data[i], f->data, f->part, i, f->error);
    if (!status) status = carnn_model_create(&model, &f->model, data[CARNN__FOLD_TRAINS], f->error);
    if (!status)
        status = carnn_train(model, data[CARNN__FOLD_TRAINS], data[CARNN__FOLD_VALIDATES], f->train,
                             f->error);
    if (!status)
        status = carnn_test(models, 1, data[CARNN__FOLD_TESTS], f->train->threads, scores,
                            f->error);
    if (!status && f->desc->fold) f->desc->fold(number, f->count, scores, f->desc->user);
    carnn_model_free(model);
    for (i = 0; i < CARNN__FOLD_PARTS; i++) carnn_dataset_free(data[i]);
    return status;
}

/* The loss, or metric k - 1. */
static double *carnn__validation_number(carnn_scores *scores, size_t k) {
    return k ? &scores->metric[k - 1].value : &scores->loss;
}

/* Mean and standard deviation over the folds. */
static void carnn__validation_score(const carnn__validation *f, carnn_scores *mean,
                                    carnn_scores *deviation) {
    size_t i, k;
    *mean = *deviation = f->scores[0]; /* names of metrics */
    deviation->examples = deviation->tokens = 0;
    deviation->seconds = 0.0;
    for (i = 1; i < f->count; i++) {
        mean->examples += f->scores[i].examples;
        mean->tokens += f->scores[i].tokens;
        mean->seconds += f->scores[i].seconds;
    }
    for (k = 0; k <= mean->count; k++) {
        double sum = 0.0, squares = 0.0, off;
        for (i = 0; i < f->count; i++) sum += *carnn__validation_number(&f->scores[i], k);
        *carnn__validation_number(mean, k) = sum /= (double)f->count;
        for (i = 0; i < f->count; i++) {
            off = *carnn__validation_number(&f->scores[i], k) - sum;
            squares += off * off;
        }
        *carnn__validation_number(deviation, k) = sqrt(squares / (double)(f->count - 1));
    }
}

CARNN_API carnn_status carnn_cross_validate(const carnn_model_desc *model,
                                            const carnn_train_desc *train,
                                            const carnn_dataset *data,
                                            const carnn_folds_desc *folds, carnn_scores *mean,
                                            carnn_scores *deviation, carnn_error *error) {
    carnn_model_desc complete = *model; /* for the seed alone: `size` may be that of vectors */
    carnn_train_desc unused = *train;
    carnn__validation f;
    carnn_status status;
    size_t i;
    if (train->checkpoint || train->resume)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "cross-validation has no checkpoints");
    if ((status = carnn_defaults(&complete, &unused, error)) != CARNN_OK) return status;
    memset(&f, 0, sizeof f);
    f.model = *model;
    f.model.seed = complete.seed;
    f.train = train;
    f.data = data;
    f.desc = folds;
    f.error = error;
    f.allocator = carnn__allocator(model->allocator);
    f.groups = data->group_count;
    f.fold = (uint32_t *)carnn__alloc(&f.allocator, f.groups, 3 * sizeof(uint32_t));
    if (!f.fold) return carnn__out_of_memory(error);
    f.part = f.fold + f.groups;
    f.order = f.part + f.groups;
    /* the folds */
    status = folds->by ? carnn__build(&f.allocator, carnn__validation_read, &f, error)
                       : carnn__validation_draw(&f);
    carnn__build(&f.allocator, carnn__validation_drop, &f, NULL);
    carnn__input_close(&f.by, &f.allocator);
    /* their models */
    f.scores = (carnn_scores *)carnn__alloc_zero(&f.allocator, f.count, sizeof *f.scores);
    if (!status && !f.scores) status = carnn__out_of_memory(error);
    for (i = 0; !status && i < f.count; i++) status = carnn__validation_run(&f, i);
    if (!status) carnn__validation_score(&f, mean, deviation);
    carnn__free(&f.allocator, f.scores);
    carnn__free(&f.allocator, f.fold);
    return status;
}

#endif /* CARNN_NO_TRAIN */

#endif
/* =============================================================================================
   @@CHECK   derivatives against central differences

   A "subject" is an entry of the table of cells, parts or tasks, in one of its variants: arrays of
   floats (inputs and weights), a loss L, and the derivatives that backward functions compute. The
   check moves all numbers of an array at once, each up or down by chance, which finds a few wrong
   derivatives anywhere, and then single ones:

     dL/dx = (8 (L(x+s) - L(x-s)) - (L(x+2s) - L(x-2s))) / 12 s + O(s^4)

   The forward pass is in floats, so L has an error of about 3e-8 and the slope one of 3e-8 / s,
   besides the s^4, which is large where L is strongly curved. Three steps s are tried and the best
   counts: a right derivative agrees with one of them, a wrong one with none.

   Errors are relative to the root mean square of the array plus 1/1000, since a slope is known to a
   few 1e-7. Right derivatives stay below 2e-4 over many seeds (of answer models below 1.2e-3), an
   array that is 2 % too large exceeds the limit, single wrong derivatives have errors of about 1.
   ============================================================================================= */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA) && !defined(CARNN_NO_TRAIN)

#define CARNN__CHECK_LIMIT 2e-3
#define CARNN__CHECK_FLOOR 1e-3
#ifndef CARNN__CHECK_SAMPLES
#define CARNN__CHECK_SAMPLES 24 /* numbers of an array that are moved alone */
#endif

/* Sizes: a full vector and a tail, and all three differ where the cell allows it. */
enum {
    CARNN__CHECK_H = 19,
    CARNN__CHECK_E = 17,
    CARNN__CHECK_D = 5,
    CARNN__CHECK_B = 4,    /* sequences, of lengths 3, 5, 0, 1 */
    CARNN__CHECK_STEPS = 5,
    CARNN__CHECK_ROWS = 9,
    CARNN__CHECK_INPUTS = 4, /* where rows share them */
    CARNN__CHECK_BATCH = 4   /* examples of a task */
};

typedef struct carnn__checked { /* one array */
    const char *name;
    float *value, *gradient; /* (count / columns, columns) */
    size_t count, columns;
} carnn__checked;

typedef struct carnn__subject carnn__subject;

struct carnn__subject {
    carnn__engine *engine;
    carnn__arena arena;
    carnn_error *error;
    carnn_check *check;     /* what is found is added here */
    uint64_t key, drawn;    /* of its numbers; arrays so far */
    size_t number, variant; /* in the table; of the entry */
    const char *how;        /* the variant, in words */
    void (*carve)(carnn__subject *s);  /* takes its memory from the arena */
    double (*loss)(carnn__subject *s); /* adds to the gradients, too; NULL: no such variant */
    carnn__checked array[CARNN__PARAMS_MAX + 8];
    size_t arrays;
    float *value, *gradient; /* copies of those of the array that is checked */
    size_t batch, batches;   /* of tasks: the batch whose loss it is, and how many there are */
    int holds;               /* the masks of relu and max stay as they are */
    /* sequences */
    carnn__packed seq;
    size_t start[CARNN__CHECK_STEPS + 2];
    uint32_t rank[CARNN__CHECK_B], index[CARNN__CHECK_ROWS];
    const uint32_t *shared; /* index, or NULL where row i has input i */
    size_t inputs;
    /* cells and parts: inputs, and the weights of the loss sum_i weight_i out_i */
    carnn__checked x, c, h, h0, c0, out;
    float *scratch, *scratch_back;
    float setting; /* of a part */
    carnn__store store;
    carnn__cell cell;
    carnn__cell_run run;
    /* tasks */
    carnn_dataset *data;
    carnn_model *model;
    carnn__work work;
};

/* An array with random numbers in [-range, range); if it has a name it is checked. */
static carnn__checked carnn__check_add(carnn__subject *s, const char *name, float *value,
                                       float *gradient, size_t rows, size_t columns, float range) {
    carnn__checked a = {name, value, gradient, rows * columns, columns};
    uint64_t key = carnn__stream(s->key, ++s->drawn);
    size_t i;
    for (i = 0; value && i < a.count; i++)
        value[i] = range * (2.0f * carnn__uniform(key, i) - 1.0f);
    if (name && a.count) s->array[s->arrays++] = a;
    return a;
}

/* The same with memory of its own. */
static carnn__checked carnn__check_array(carnn__subject *s, const char *name, size_t rows,
                                         size_t columns) {
    float *value = carnn__floats(&s->arena, rows, columns);
    float *gradient = carnn__floats(&s->arena, rows, columns);
    return carnn__check_add(s, name, value, gradient, rows, columns, 1.0f);
}

/* All matrices of a store as arrays; half as large as inputs, so that few gates saturate. */
static void carnn__check_store(carnn__subject *s, const carnn__store *store, float *w, float *g) {
    size_t i;
    for (i = 0; i < store->count && store->item[i].offset < store->trained; i++)
        carnn__check_add(s, store->item[i].name, w ? carnn__piece(store, w, i) : NULL,
                         g ? carnn__piece(store, g, i) : NULL, store->item[i].rows,
                         store->item[i].columns, 0.5f);
}

/* The loss, with its gradients. */
static double carnn__check_run(carnn__subject *s) {
    size_t i;
    for (i = 0; i < s->arrays; i++)
        memset(s->array[i].gradient, 0, s->array[i].count * sizeof(float));
    return s->loss(s);
}

/* The loss sum_i weight_i out_i of what a forward pass has put into `out`; its derivatives at
   `out` are the weights, which never change. */
static double carnn__check_sum(const carnn__checked *weight, const float *out) {
    double sum = 0.0;
    size_t i;
    for (i = 0; i < weight->count; i++) sum += (double)weight->value[i] * (double)out[i];
    return sum;
}

/* --- sequences ------------------------------------------------------------------------------- */

enum { CARNN__CHECK_OWN, CARNN__CHECK_SHARED, CARNN__CHECK_BACKWARD };

static const char *const carnn__check_readings[] = {
    "each row has an input of its own", "rows share inputs", "rows are read backwards", NULL};

static void carnn__check_sequences(carnn__subject *s, size_t reading) {
    static const uint32_t length[CARNN__CHECK_B] = {3, 5, 0, 1};
    const int shared = reading == CARNN__CHECK_SHARED;
    size_t t, b;
    carnn__pack_sequences(&s->seq, length, CARNN__CHECK_B, s->rank, s->start);
    for (t = 0; t < s->seq.steps; t++)
        for (b = 0; b < s->start[t + 1] - s->start[t]; b++)
            s->index[s->start[t] + b] = (uint32_t)(
                shared ? (3 * t + b) % CARNN__CHECK_INPUTS
                       : s->start[length[s->rank[b]] - 1 - t] + b);
    s->shared = reading == CARNN__CHECK_OWN ? NULL : s->index;
    s->inputs = shared ? (size_t)CARNN__CHECK_INPUTS : (size_t)CARNN__CHECK_ROWS;
}

/* --- cells ----------------------------------------------------------------------------------- */

static double carnn__check_cell_loss(carnn__subject *s) {
    carnn__cell_run *r = &s->run;
    int states = (int)(carnn__cells[s->number].flags & CARNN__HAS_CELL_STATE);
    carnn__cell_ready(r, s->engine);
    carnn__cell_project(r, s->engine, s->x.value, 0, s->inputs);
    if (s->c.count) carnn__cell_context(r, s->engine, s->c.value, CARNN__CHECK_B);
    carnn__cell_forward(r, s->engine, &s->seq, s->shared, s->h0.value, states ? s->c0.value : NULL);
    carnn__cell_backward(r, s->engine, s->out.value, s->x.gradient);
    if (s->c.count) carnn__cell_context_back(r, s->engine, s->c.gradient);
    carnn__cell_project_back(r, s->engine, s->x.gradient);
    memcpy(s->h0.gradient, r->scan.dh, s->h0.count * sizeof(float));
    if (states) memcpy(s->c0.gradient, r->scan.dc, s->c0.count * sizeof(float));
    return carnn__check_sum(&s->out, r->scan.out);
}

static void carnn__check_cell_carve(carnn__subject *s) {
    float *w = carnn__floats(&s->arena, 1, s->store.size);
    float *g = carnn__floats(&s->arena, 1, s->store.size), dummy = 0.0f;
    if (w) memset(w, 0, s->store.size * sizeof(float));
    carnn__check_store(s, &s->store, w, g);
    s->x = carnn__check_array(s, "x", s->inputs, s->cell.e);
    if (s->cell.d) s->c = carnn__check_array(s, "context", CARNN__CHECK_B, s->cell.d);
    s->h0 = carnn__check_array(s, "h0", CARNN__CHECK_B, CARNN__CHECK_H);
    if (carnn__cells[s->number].flags & CARNN__HAS_CELL_STATE)
        s->c0 = carnn__check_array(s, "c0", CARNN__CHECK_B, CARNN__CHECK_H);
    s->out = carnn__check_array(s, NULL, CARNN__CHECK_ROWS, CARNN__CHECK_H);
    carnn__cell_plan(&s->run, &s->cell, &s->store, w, g ? g : &dummy, &s->arena, s->inputs,
                     CARNN__CHECK_ROWS, CARNN__CHECK_B, NULL);
}

static carnn_status carnn__check_cell_open(carnn__subject *s) {
    const carnn__cell_kind *k = &carnn__cells[s->number];
    size_t e = k->flags & CARNN__INPUT_IS_CANDIDATE ? CARNN__CHECK_H : CARNN__CHECK_E;
    s->how = carnn__check_readings[s->variant];
    if (!s->how) return CARNN_OK;
    carnn__check_sequences(s, s->variant);
    carnn__cell_declare(&s->cell, &s->store, "", s->number, e, CARNN__CHECK_H, CARNN__CHECK_D);
    s->carve = carnn__check_cell_carve;
    s->loss = carnn__check_cell_loss;
    return CARNN_OK;
}

/* --- parts --------------------------------------------------------------------------------------
   Functions of @@MAT and @@PART by themselves. The parts of @@NET are checked as parts of models:
   the variants of the tasks have every one of them, in each of its kinds. */

/* Texts of 3, 0, 1 and 5 words out of 6; one of them is read twice. */
static double carnn__check_encoder_loss(carnn__subject *s) {
    static const uint32_t ids[] = {0, 1, 2, 3, 4, 4, 5, 1, 0}, which[] = {0, 1, 2, 3, 0};
    static const size_t at[] = {0, 3, 3, 4, 9};
    carnn__encoder e = {CARNN__COUNT(which), CARNN__CHECK_H, which, ids, at, s->scratch_back,
                        s->x.value, s->scratch, s->x.gradient, s->out.value};
    carnn__encoder_ramp(s->scratch_back, CARNN__CHECK_H);
    carnn__encode_texts(s->engine, &e);
    carnn__encode_texts_back(s->engine, &e);
    return carnn__check_sum(&s->out, s->scratch);
}

static double carnn__check_rows_loss(carnn__subject *s) {
    static const uint32_t index[] = {2, 0, 2, 1, 2};
    carnn__gather_rows(s->scratch, s->x.value, index, CARNN__COUNT(index), CARNN__CHECK_H);
    carnn__scatter_rows(s->engine, s->x.gradient, s->out.value, index, CARNN__COUNT(index),
                        CARNN__CHECK_H);
    return carnn__check_sum(&s->out, s->scratch);
}

/* y = x W^T + b forward, and the other two forms of a product backward. */
static double carnn__check_product_loss(carnn__subject *s) {
    enum { m = CARNN__CHECK_ROWS, n = CARNN__CHECK_H, k = CARNN__CHECK_E };
    carnn__matmul(s->engine, CARNN__NT, m, n, k, s->x.value, k, s->h.value, k, s->c.value,
                  s->scratch, n);
    carnn__matmul(s->engine, CARNN__NN, m, k, n, s->out.value, n, s->h.value, k, NULL,
                  s->x.gradient, k);
    carnn__matmul(s->engine, CARNN__TN, n, k, m, s->out.value, n, s->x.value, k, NULL,
                  s->h.gradient, k);
    carnn__column_sums(s->engine, m, n, s->out.value, n, s->c.gradient);
    return carnn__check_sum(&s->out, s->scratch);
}

static double carnn__check_attention_loss(carnn__subject *s) {
    carnn__attention a = {&s->seq, CARNN__CHECK_H, s->shared, s->h.value, s->x.value, s->c.value,
                          s->scratch_back, s->scratch_back + CARNN__CHECK_B * CARNN__CHECK_STEPS,
                          s->scratch, s->out.value, s->h.gradient, s->c.gradient};
    s->engine->k->attend(&a, 0, CARNN__CHECK_B);
    s->engine->k->attend_back(&a, 0, CARNN__CHECK_B);
    carnn__scatter_rows(s->engine, s->x.gradient, s->h.gradient, s->shared, CARNN__CHECK_ROWS,
                        CARNN__CHECK_H);
    return carnn__check_sum(&s->out, s->scratch);
}

/* The gradient replaces the logits; one row has no target. */
static double carnn__check_entropy_loss(carnn__subject *s) {
    static const uint32_t target[] = {3, 0, CARNN__NO_INDEX, CARNN__CHECK_H - 1};
    carnn__cross_entropy e = {CARNN__CHECK_H, s->x.gradient, target, 1, 0.5f, s->setting,
                              s->scratch};
    double sum = 0.0;
    size_t i;
    memcpy(s->x.gradient, s->x.value, s->x.count * sizeof(float));
    s->engine->k->cross_entropy(&e, 0, CARNN__COUNT(target));
    for (i = 0; i < CARNN__COUNT(target); i++) sum += 0.5 * (double)s->scratch[i];
    return sum;
}

/* Forward and backward draw the same mask. */
static double carnn__check_dropout_loss(carnn__subject *s) {
    memcpy(s->scratch, s->x.value, s->x.count * sizeof(float));
    memcpy(s->x.gradient, s->out.value, s->x.count * sizeof(float));
    carnn__dropout(s->engine, s->scratch, s->x.count, 0.3, s->key);
    carnn__dropout(s->engine, s->x.gradient, s->x.count, 0.3, s->key);
    return carnn__check_sum(&s->out, s->scratch);
}

static double carnn__check_align_loss(carnn__subject *s) {
    float E[20], dE[20];
    carnn__align(s->engine, 5, 4, CARNN__CHECK_H, s->x.value, s->h.value, E, s->scratch);
    carnn__align_back(s->engine, 5, 4, CARNN__CHECK_H, s->x.value, s->h.value, E, s->out.value, dE,
                      s->x.gradient, s->h.gradient);
    return carnn__check_sum(&s->out, s->scratch);
}

static double carnn__check_compose_loss(carnn__subject *s) {
    carnn__compose c = {5, CARNN__CHECK_H, s->setting > 0.0f, s->x.value, s->h.value, s->c.value,
                        s->scratch_back, s->scratch, s->out.value, s->x.gradient, s->h.gradient,
                        s->c.gradient};
    s->engine->k->compose(&c);
    s->engine->k->compose_back(&c);
    return carnn__check_sum(&s->out, s->scratch);
}

static double carnn__check_cosine_loss(carnn__subject *s) {
    *s->scratch = carnn__cosine(s->engine->k, CARNN__CHECK_H, s->x.value, s->h.value);
    carnn__cosine_back(s->engine->k, CARNN__CHECK_H, s->x.value, s->h.value, *s->out.value,
                       s->x.gradient, s->h.gradient);
    return carnn__check_sum(&s->out, s->scratch);
}

/* Rows and columns of the arrays that a part works on; without rows there is no array. */
typedef struct carnn__check_part {
    const char *name;
    double (*loss)(carnn__subject *s);
    float setting; /* label smoothing; 1: the decomposition is the orthogonal one */
    size_t x[2], h[2], c[2], out[2];
} carnn__check_part;

static const carnn__check_part carnn__check_parts[] = {
#define CARNN__H CARNN__CHECK_H
    {"position encoder", carnn__check_encoder_loss, 0.0f, {6, CARNN__H}, {0}, {0}, {5, CARNN__H}},
    {"rows by index", carnn__check_rows_loss, 0.0f, {3, CARNN__H}, {0}, {0}, {5, CARNN__H}},
    {"product", carnn__check_product_loss, 0.0f, {CARNN__CHECK_ROWS, CARNN__CHECK_E},
     {CARNN__H, CARNN__CHECK_E}, {1, CARNN__H}, {CARNN__CHECK_ROWS, CARNN__H}},
    {"attention", carnn__check_attention_loss, 0.0f, {CARNN__CHECK_INPUTS, CARNN__H},
     {CARNN__CHECK_ROWS, CARNN__H}, {CARNN__CHECK_B, CARNN__H}, {CARNN__CHECK_B, CARNN__H}},
    {"alignment", carnn__check_align_loss, 0.0f, {5, CARNN__H}, {4, CARNN__H}, {0}, {5, CARNN__H}},
    {"orthogonal decomposition", carnn__check_compose_loss, 1.0f, {5, CARNN__H}, {5, CARNN__H},
     {5, 1}, {1, 2 * CARNN__H}},
    {"direct decomposition", carnn__check_compose_loss, 0.0f, {5, CARNN__H}, {5, CARNN__H}, {5, 1},
     {1, CARNN__H}},
    {"cosine", carnn__check_cosine_loss, 0.0f, {1, CARNN__H}, {1, CARNN__H}, {0}, {1, 1}},
    {"cross entropy", carnn__check_entropy_loss, 0.0f, {4, CARNN__H}, {0}, {0}, {0}},
    {"smoothed cross entropy", carnn__check_entropy_loss, 0.3f, {4, CARNN__H}, {0}, {0}, {0}},
    {"dropout", carnn__check_dropout_loss, 0.0f, {3, CARNN__H}, {0}, {0}, {3, CARNN__H}},
#undef CARNN__H
};

static const char *carnn__check_part_name(size_t number) {
    return number < CARNN__COUNT(carnn__check_parts) ? carnn__check_parts[number].name : NULL;
}

static void carnn__check_part_carve(carnn__subject *s) {
    const carnn__check_part *p = &carnn__check_parts[s->number];
    s->scratch = carnn__floats(&s->arena, CARNN__CHECK_ROWS, 2 * CARNN__CHECK_H);
    s->scratch_back = carnn__floats(&s->arena, CARNN__CHECK_ROWS, CARNN__CHECK_H);
    s->x = carnn__check_array(s, "x", p->x[0], p->x[1]);
    s->h = carnn__check_array(s, "h", p->h[0], p->h[1]);
    s->c = carnn__check_array(s, "c", p->c[0], p->c[1]);
    s->out = carnn__check_array(s, NULL, p->out[0], p->out[1]);
}

static carnn_status carnn__check_part_open(carnn__subject *s) {
    if (s->variant) return CARNN_OK;
    carnn__check_sequences(s, CARNN__CHECK_SHARED);
    s->setting = carnn__check_parts[s->number].setting;
    s->carve = carnn__check_part_carve;
    s->loss = carnn__check_parts[s->number].loss;
    return CARNN_OK;
}

/* --- tasks --------------------------------------------------------------------------------------
   Small models of the task, with the options of a variant, on the sample of its entry, with dropout
   and label smoothing. Each batch is a loss of its own: the masks of relu and max are those of its
   first run, so that a step does not cross a kink, and a part has room for those of one batch. */

static double carnn__check_task_loss(carnn__subject *s) {
    carnn__tally tally;
    carnn_scores scores;
    memset(&tally, 0, sizeof tally);
    carnn__net_of(&s->work)->holds = s->holds;
    carnn__net_batch(&s->work, s->batch, s->key, &tally);
    carnn__score(s->model->task, &tally, 0.0, &scores);
    return scores.loss;
}

static void carnn__check_task_carve(carnn__subject *s) {
    float dummy = 0.0f;
    const carnn__store *store = &s->model->params;
    s->work.g = carnn__floats(&s->arena, 1, store->trained);
    carnn__check_store(s, store, store->value, s->work.g);
    if (!s->work.g) s->work.g = &dummy; /* counting memory: carve asks only whether it is there */
    carnn__net_carve(&s->work, &s->arena);
}

static carnn_status carnn__check_task_open(carnn__subject *s) {
    const carnn__task *task = carnn__task_at(s->number);
    carnn_source source = {"sample", task->sample, strlen(task->sample)};
    carnn_model_desc model;
    carnn_dataset_desc data = {task->name, &source, 1, NULL, 0, 0, NULL, &model};
    carnn_status status;
    s->how = task->variants[s->variant];
    if (!s->how) return CARNN_OK;
    memset(&model, 0, sizeof model);
    model.task = task->name;
    status = carnn__set_all(&model, NULL, 0, s->how, s->error);
    if (!status) status = carnn_dataset_load(&s->data, &data, s->error);
    if (!status) status = carnn_model_create(&s->model, &model, s->data, s->error);
    if (status) return status;
    s->carve = carnn__check_task_carve;
    s->loss = carnn__check_task_loss;
    s->work = carnn__scoring_work(s->model, s->data, s->engine);
    s->work.batch = CARNN__CHECK_BATCH;
    s->work.dropout = 0.25;
    s->work.smoothing = 0.1;
    status = carnn__net_open(&s->work, s->error);
    if (!status) s->batches = carnn__net_batches(&s->work, 0);
    return status;
}

/* --- the check ------------------------------------------------------------------------------- */

static const struct {
    const char *group;
    const char *(*name)(size_t number);
    carnn_status (*open)(carnn__subject *s);
} carnn__check_groups[] = {
    {"cell", carnn_cell_name, carnn__check_cell_open},
    {"part", carnn__check_part_name, carnn__check_part_open},
    {"head", carnn_task_name, carnn__check_task_open},
};

/* Up or down, by chance. */
static double carnn__check_sign(uint64_t key, size_t i) {
    return carnn__random(key, i) & 1 ? 1.0 : -1.0;
}

/* The slope of the loss along the `count` numbers from `first` on, each up or down. */
static double carnn__check_slope(carnn__subject *s, const carnn__checked *a, size_t first,
                                 size_t count, double step) {
    static const double at[4] = {2.0, 1.0, -1.0, -2.0}, share[4] = {-1.0, 8.0, -8.0, 1.0};
    double slope = 0.0;
    size_t i, p;
    for (p = 0; p < 4; p++) {
        for (i = first; i < first + count; i++)
            a->value[i] = (float)((double)s->value[i] +
                                  at[p] * step * carnn__check_sign(s->key, i));
        slope += share[p] * carnn__check_run(s) / (12.0 * step);
    }
    for (i = first; i < first + count; i++) a->value[i] = s->value[i];
    return slope;
}

/* Compares the derivative along these numbers of an array with the nearest of three slopes,
   relative to `size`, and notes the largest error of all; not a number is the largest. */
static void carnn__check_along(carnn__subject *s, const carnn__checked *a, size_t first,
                               size_t count, double size) {
    static const double step[3] = {1.0 / 64.0, 1.0 / 16.0, 1.0 / 4.0};
    double along = 0.0, nearest = 0.0, root = sqrt((double)count), error;
    carnn_check *check = s->check;
    char entry[64];
    size_t i;
    for (i = first; i < first + count; i++)
        along += carnn__check_sign(s->key, i) * (double)s->gradient[i];
    for (i = 0; i < 3; i++) {
        double slope = carnn__check_slope(s, a, first, count, step[i] / root);
        if (!i || !(fabs(slope - along) >= fabs(nearest - along))) nearest = slope;
    }
    error = fabs(nearest - along) / (root * (size + CARNN__CHECK_FLOOR));
    if (check->error != check->error || error <= check->error) return;
    check->error = error;
    snprintf(entry, sizeof entry, "(%zu, %zu)", first / a->columns, first % a->columns);
    snprintf(check->worst, sizeof check->worst, "%s %s: derivative %.4g, difference %.4g%s%s",
             a->name, count > 1 ? "all at once" : entry, along, nearest, s->how ? "; " : "",
             s->how ? s->how : "");
}

/* Checks an array: all numbers at once, then some alone. */
static void carnn__check_one(carnn__subject *s, const carnn__checked *a) {
    size_t i, n = a->count, samples = carnn__min(n, CARNN__CHECK_SAMPLES);
    double size = 0.0;
    carnn__check_run(s);
    memcpy(s->value, a->value, n * sizeof(float));
    memcpy(s->gradient, a->gradient, n * sizeof(float));
    for (i = 0; i < n; i++) size += (double)s->gradient[i] * (double)s->gradient[i];
    size = sqrt(size / (double)n);
    carnn__check_along(s, a, 0, n, size);
    for (i = 0; i < samples; i++)
        carnn__check_along(s, a, samples < n ? (size_t)(carnn__random(s->key, i) % n) : i, 1, size);
    s->check->numbers += samples;
}

/* Adds the subject's derivatives to the line of its entry. Memory is counted first, then taken. */
static carnn_status carnn__check_subject(carnn__subject *s) {
    const carnn_allocator *a = &s->engine->allocator;
    size_t i, most = 1;
    s->carve(s);
    for (i = 0; i < s->arrays; i++) most = carnn__max(most, s->array[i].count);
    if (carnn__arena_open(&s->arena, a, s->error)) return CARNN_ERR_MEMORY;
    s->value = (float *)carnn__alloc(a, 2 * most, sizeof(float));
    if (!s->value) return carnn__out_of_memory(s->error);
    s->gradient = s->value + most;
    memset(s->arena.base, 0, s->arena.size);
    s->arrays = 0;
    s->carve(s);
    for (s->batch = 0; s->batch < carnn__max(s->batches, 1); s->batch++) {
        s->holds = 0;
        carnn__check_run(s);
        s->holds = 1;
        for (i = 0; i < s->arrays; i++) carnn__check_one(s, &s->array[i]);
    }
    return CARNN_OK;
}

static void carnn__check_close(carnn__subject *s) {
    carnn__net_close(&s->work);
    carnn_model_free(s->model);
    carnn_dataset_free(s->data);
    carnn__free(&s->engine->allocator, s->value);
    carnn__free_aligned(&s->engine->allocator, s->arena.base);
}

CARNN_API carnn_status carnn_gradcheck(const char *only, uint64_t seed,
                                       int (*row)(const carnn_check *check, void *user),
                                       void *user, carnn_error *error) {
    const carnn_allocator a = carnn__allocator(NULL);
    carnn__subject *s = (carnn__subject *)carnn__alloc(&a, 1, sizeof *s);
    carnn__engine engine;
    size_t group, number, variant, found = 0;
    const char *name;
    carnn_status status;
    memset(&engine, 0, sizeof engine);
    status = s ? carnn__engine_open(&engine, NULL, 1, a, error) : carnn__out_of_memory(error);
    for (group = 0; group < CARNN__COUNT(carnn__check_groups); group++)
        for (number = 0; !status && (name = carnn__check_groups[group].name(number)); number++) {
            carnn_check check = {carnn__check_groups[group].group, name, 0, 0.0,
                                 CARNN__CHECK_LIMIT, 0, ""};
            if (only && strcmp(only, name) && strcmp(only, check.group)) continue;
            found++;
            for (variant = 0; !status && (!variant || s->loss); variant++) {
                memset(s, 0, sizeof *s);
                s->engine = &engine;
                s->error = error;
                s->check = &check;
                s->key = carnn__stream(seed, variant + 1);
                s->number = number;
                s->variant = variant;
                status = carnn__check_groups[group].open(s);
                if (!status && s->loss) status = carnn__check_subject(s);
                carnn__check_close(s);
            }
            check.passed = check.numbers > 0 && check.error <= check.limit;
            if (!status && row(&check, user))
                status = carnn__fail(error, CARNN_ERR_STOPPED, 0, "stopped after %s", name);
        }
    carnn__engine_close(&engine);
    carnn__free(&a, s);
    if (!status && !found)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "there is no cell, part or task called "
                           "\"%.60s\"", only);
    return status;
}

#endif
/* =============================================================================================
   @@BENCH   the benchmark

   Rows are what the machine can do at most ("peak"), kernels, every cell at three shapes, whole
   tasks. A value is the median of several runs in wall-clock time; its share says how much of the
   peak that bounds it was reached.
   ============================================================================================= */

#if defined(CARNN__ISA)

/* Multiply-adds that depend on nothing but themselves, in as many sums as a tile of a product has:
   nothing can be faster. The result keeps the compiler from leaving them out. */
static float CARNN__K(multiply_add)(size_t rounds) {
    carnn__v sum[CARNN__TILE_ROWS][CARNN__TILE_VECTORS], total = CARNN__V(zero)();
    carnn__v a = CARNN__V(set1)(0.999f), c = CARNN__V(set1)(0.001f);
    size_t i, j, round;
    for (i = 0; i < CARNN__TILE_ROWS; i++)
        for (j = 0; j < CARNN__TILE_VECTORS; j++) sum[i][j] = c;
    for (round = 0; round < rounds; round++) {
        CARNN__UNROLL for (i = 0; i < CARNN__TILE_ROWS; i++) {
            CARNN__UNROLL for (j = 0; j < CARNN__TILE_VECTORS; j++)
                sum[i][j] = CARNN__V(fma)(a, sum[i][j], c);
        }
    }
    for (i = 0; i < CARNN__TILE_ROWS; i++)
        for (j = 0; j < CARNN__TILE_VECTORS; j++) total = CARNN__V(add)(total, sum[i][j]);
    return CARNN__V(sum)(total);
}

#endif

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA) && !defined(CARNN_NO_TRAIN)

#define CARNN__BENCH_SAMPLES 15
#define CARNN__BENCH_SECONDS 0.4  /* of a row, once it has three samples */
#define CARNN__BENCH_SAMPLE 0.005 /* seconds that a sample lasts at least */
#define CARNN__BENCH_MIB 288      /* of memory, which all rows use in turn */

/* What may bound a row; each is measured when a row first asks for it. */
enum {
    CARNN__BOUND_FMA,
    CARNN__BOUND_READ_1,   /* reading so many MiB: the second level of most caches */
    CARNN__BOUND_READ_4,   /* a matrix of 1024 x 1024 */
    CARNN__BOUND_READ_256, /* memory */
    CARNN__UNBOUND
};

typedef struct carnn__bench {
    carnn__engine engine;
    const char *simd;
    int64_t threads;
    carnn__arena arena;
    double peak[CARNN__UNBOUND]; /* G a second; 0: not measured yet */
    carnn_allocator counting;    /* counts what is allocated through it */
    size_t live, most;           /* bytes */
    carnn_status status;
    carnn_error *error;
    /* the row at hand */
    const size_t *n;             /* its sizes */
    double amount;               /* of what the value counts in a call; "ms" is the time of 1 */
    double bounded;              /* G that a call takes of what bounds it; 0: see `cost` */
    double value;
    double sample[CARNN__BENCH_SAMPLES];
    size_t samples;
    float *x, *y, *z;
    carnn__optimizer optimizer;
    carnn__store store;
    carnn__cell cell;
    carnn__cell_run run;
    carnn__packed seq;
    float *c, *gradient, *dx, *dc;
    carnn_dataset *data;
    carnn_model *model;
    carnn_session *session;
    volatile long measured;      /* 0: the thread beside goes on */
} carnn__bench;

typedef struct carnn__bench_row {
    const char *group, *unit;
    char name[80];
    void (*open)(carnn__bench *b); /* makes ready and sets `amount`; sets `value` if that is all */
    void (*call)(carnn__bench *b); /* what is timed, or NULL */
    int bound;
    double cost; /* what a unit of the value takes of that bound; 0: `bounded` says it */
    size_t n[5]; /* sizes, see `open` */
} carnn__bench_row;

/* --- time and memory ------------------------------------------------------------------------- */

/* Adds a sample and keeps them in order: the value is their median. */
static void carnn__bench_sample(carnn__bench *b, double sample) {
    size_t i = b->samples++;
    for (; i && b->sample[i - 1] > sample; i--) b->sample[i] = b->sample[i - 1];
    b->sample[i] = sample;
    b->value = b->sample[b->samples / 2];
}

/* Are there enough samples of the row, after so many seconds? */
static int carnn__bench_enough(const carnn__bench *b, double seconds) {
    return b->samples == CARNN__BENCH_SAMPLES ||
           (b->samples >= 3 && seconds > CARNN__BENCH_SECONDS);
}

/* The value is the seconds of a call. The first call, which meets cold caches, does not count. */
static void carnn__bench_time(carnn__bench *b, void (*call)(carnn__bench *b)) {
    double before = carnn__clock(), began, once;
    size_t repeats, i;
    call(b);
    began = carnn__clock();
    once = began - before;
    repeats = once < CARNN__BENCH_SAMPLE ? (size_t)(CARNN__BENCH_SAMPLE / (once + 1e-7)) + 1 : 1;
    while (!carnn__bench_enough(b, carnn__clock() - began)) {
        before = carnn__clock();
        for (i = 0; i < repeats; i++) call(b);
        carnn__bench_sample(b, (carnn__clock() - before) / (double)repeats);
    }
}

/* `count` numbers in [-1, 1). */
static float *carnn__bench_floats(carnn__bench *b, size_t count) {
    size_t i, key = b->arena.used;
    float *x = carnn__floats(&b->arena, 1, count);
    for (i = 0; x && i < count; i++) x[i] = 2.0f * carnn__uniform(key, i) - 1.0f;
    return x;
}

/* The allocator that counts: each block remembers its size in front of itself. */
#define CARNN__BENCH_FRONT 64

static void *carnn__bench_realloc(void *block, size_t bytes, void *user) {
    carnn__bench *b = (carnn__bench *)user;
    char *front = block ? (char *)block - CARNN__BENCH_FRONT : NULL;
    size_t before = 0;
    if (front) memcpy(&before, front, sizeof before);
    front = (char *)realloc(front, bytes + CARNN__BENCH_FRONT);
    if (!front) return NULL;
    memcpy(front, &bytes, sizeof bytes);
    b->live = b->live - before + bytes;
    b->most = carnn__max(b->most, b->live);
    return front + CARNN__BENCH_FRONT;
}

static void *carnn__bench_alloc(size_t bytes, void *user) {
    return carnn__bench_realloc(NULL, bytes, user);
}

static void carnn__bench_free(void *block, void *user) {
    size_t bytes;
    if (!block) return;
    memcpy(&bytes, (char *)block - CARNN__BENCH_FRONT, sizeof bytes);
    ((carnn__bench *)user)->live -= bytes;
    free((char *)block - CARNN__BENCH_FRONT);
}

/* --- peaks, of all threads together ---------------------------------------------------------- */

#define CARNN__BENCH_ROUNDS 100000 /* of multiply-adds */

static void carnn__bench_fma_piece(void *job, size_t piece, size_t worker) {
    (void)piece;
    (void)worker;
    ((carnn__bench *)job)->engine.k->multiply_add(CARNN__BENCH_ROUNDS);
}

static void carnn__bench_fma_call(carnn__bench *b) {
    carnn__parallel(b->engine.pool, carnn__pool_threads(b->engine.pool), carnn__bench_fma_piece, b);
}

static void carnn__bench_fma(carnn__bench *b) {
    const carnn__kernels *k = b->engine.k;
    size_t sums = k->tile_rows * k->tile_columns * carnn__pool_threads(b->engine.pool);
    b->amount = 2e-9 * CARNN__BENCH_ROUNDS * (double)sums;
}

/* Reads by adding up 64 columns: four sums that do not wait for each other. */
static void carnn__bench_read_range(const void *job, size_t from, size_t to) {
    const carnn__bench *b = (const carnn__bench *)job;
    float sum[64] = {0};
    b->engine.k->column_sums(to - from, 64, b->x + from * 64, 64, sum);
}

static void carnn__bench_read_call(carnn__bench *b) {
    carnn__split(&b->engine, carnn__bench_read_range, b, b->n[0] << 12, 1, SIZE_MAX);
}

/* n: MiB to read. */
static void carnn__bench_read(carnn__bench *b) {
    b->x = carnn__bench_floats(b, b->n[0] << 18);
    b->amount = 1e-9 * (double)(b->n[0] << 20);
}

/* --- kernels --------------------------------------------------------------------------------- */

static void carnn__bench_matmul_call(carnn__bench *b) {
    size_t M = b->n[0], N = b->n[1], K = b->n[2];
    int form = (int)b->n[3];
    carnn__matmul(&b->engine, form, M, N, K, b->x, form & CARNN__TN ? M : K, b->y,
                  form & CARNN__NT ? K : N, NULL, b->z, N);
}

/* n: M, N, K, form. */
static void carnn__bench_matmul(carnn__bench *b) {
    size_t M = b->n[0], N = b->n[1], K = b->n[2];
    b->x = carnn__bench_floats(b, M * K);
    b->y = carnn__bench_floats(b, carnn__packed_size(N, K)); /* N K, rounded up */
    b->z = carnn__bench_floats(b, M * N);
    b->amount = 2e-9 * (double)M * (double)N * (double)K;
}

static void carnn__bench_exp(carnn__bench *b) { b->engine.k->exp_n(b->x, b->y, b->n[0]); }
static void carnn__bench_sigmoid(carnn__bench *b) { b->engine.k->sigmoid_n(b->x, b->y, b->n[0]); }
static void carnn__bench_tanh(carnn__bench *b) { b->engine.k->tanh_n(b->x, b->y, b->n[0]); }
static void carnn__bench_softmax(carnn__bench *b) { b->engine.k->softmax(b->x, b->n[0]); }

/* n: how many numbers, multiply-adds for each. One thread, whatever the engine has: the share is
   one of that thread's part of the peak. */
static void carnn__bench_math(carnn__bench *b) {
    b->x = carnn__bench_floats(b, b->n[0]);
    b->y = carnn__bench_floats(b, b->n[0]);
    b->amount = 1e-9 * (double)b->n[0];
    b->bounded = b->amount * 2.0 * (double)(b->n[1] * carnn__pool_threads(b->engine.pool));
}

static void carnn__bench_adam_call(carnn__bench *b) {
    carnn__optimizer_step(&b->optimizer, &b->engine, b->x, b->y, 0.001, 1.0, 0.01);
}

/* n: how many weights. */
static void carnn__bench_adam(carnn__bench *b) {
    b->x = carnn__bench_floats(b, b->n[0]);
    b->y = carnn__bench_floats(b, b->n[0]);
    b->status = carnn__optimizer_open(&b->optimizer, CARNN__OPTIMIZER_adam, b->n[0],
                                      &b->engine.allocator, b->error);
    b->amount = 1e-6 * (double)b->n[0];
}

/* --- cells ----------------------------------------------------------------------------------- */

/* A cell with B sequences of T steps, e inputs and h units; its gradients where it is to learn. */
static void carnn__bench_cell_open(carnn__bench *b, size_t kind, size_t B, size_t T, size_t e,
                                   size_t h, int learn) {
    size_t t, *start = (size_t *)carnn__take(&b->arena, T + 1, sizeof(size_t));
    carnn__packed seq = {B, T, B * T, start};
    memset(&b->store, 0, sizeof b->store);
    carnn__cell_declare(&b->cell, &b->store, "", kind, e, h, h);
    b->store.value = carnn__bench_floats(b, b->store.size);
    b->x = carnn__bench_floats(b, B * T * e);
    b->c = carnn__bench_floats(b, B * h);
    b->gradient = NULL;
    if (learn) {
        b->gradient = carnn__bench_floats(b, b->store.size);
        b->y = carnn__bench_floats(b, B * T * h);
        b->dx = carnn__bench_floats(b, B * T * e);
        b->dc = carnn__bench_floats(b, B * h);
    }
    carnn__store_init(&b->store, 1);
    for (t = 0; t <= T; t++) start[t] = t * B;
    b->seq = seq;
    carnn__cell_plan(&b->run, &b->cell, &b->store, b->store.value, b->gradient, &b->arena, B * T,
                     B * T, B, NULL);
}

/* What a training step does with a cell. */
static void carnn__bench_cell_call(carnn__bench *b) {
    carnn__engine *e = &b->engine;
    memset(b->gradient, 0, b->store.size * sizeof(float));
    memset(b->dx, 0, b->seq.rows * b->cell.e * sizeof(float));
    memset(b->dc, 0, b->seq.sequences * b->cell.h * sizeof(float));
    carnn__cell_ready(&b->run, e);
    carnn__cell_project(&b->run, e, b->x, 0, b->seq.rows);
    carnn__cell_context(&b->run, e, b->c, b->seq.sequences);
    carnn__cell_forward(&b->run, e, &b->seq, NULL, NULL, NULL);
    carnn__cell_backward(&b->run, e, b->y, b->dx);
    carnn__cell_context_back(&b->run, e, b->dc);
    carnn__cell_project_back(&b->run, e, b->dx);
}

/* n: kind, B, T, input, hidden. The share is that of the products alone, of which two thirds are
   backward. */
static void carnn__bench_cell(carnn__bench *b) {
    const carnn__cell_kind *k = &carnn__cells[b->n[0]];
    size_t B = b->n[1], T = b->n[2], h = b->n[4];
    size_t e = k->flags & CARNN__INPUT_IS_CANDIDATE ? h : b->n[3];
    carnn__bench_cell_open(b, b->n[0], B, T, e, h, 1);
    b->bounded = 6e-9 * ((double)(B * T * h) * (double)(k->gates * e + k->recurrent_gates * h) +
                         (double)(B * h) * (double)(k->context_gates * h));
}

static void carnn__bench_scan(carnn__bench *b) {
    carnn__cell_forward(&b->run, &b->engine, &b->seq, NULL, NULL, NULL);
}

/* The same as anybody would write it. */
static void carnn__bench_loop(carnn__bench *b) {
    const float *x = b->x, *px = b->run.scan.px, *pc = b->run.scan.pc, *before = b->run.zeros;
    float *out = b->run.scan.out;
    size_t i, j, h = b->cell.h;
    for (i = 0; i < b->seq.rows; i++, x += h, px += h, before = out, out += h)
        for (j = 0; j < h; j++) {
            float u = 1.0f / (1.0f + expf(-(px[j] + pc[j])));
            out[j] = u * x[j] + (1.0f - u) * before[j];
        }
}

/* n: T, h. The forward pass of the simplest cell over one sequence. */
static void carnn__bench_recurrence(carnn__bench *b) {
    carnn__bench_cell_open(b, CARNN__CELL_carnn_low, 1, b->n[0], b->n[1], b->n[1], 0);
    carnn__cell_project(&b->run, &b->engine, b->x, 0, b->seq.rows);
    carnn__cell_context(&b->run, &b->engine, b->c, 1);
    b->amount = 1e-6 * (double)b->n[0];
}

/* --- tasks: the rows of a task are made from the benchmark in its entry ---------------------- */

#define CARNN__BENCH_EXAMPLES 16 /* of a session, at most */

/* n: hidden, task. A model of the task, and its data set, from the texts of its entry. */
static void carnn__bench_task(carnn__bench *b) {
    const carnn__task *task = carnn__task_at(b->n[1]);
    carnn_source source[2] = {{"data", NULL, 0}, {"candidates", NULL, 0}};
    carnn_dataset_desc data = {task->name, source, 1, NULL, 0, 0, &b->counting, NULL};
    carnn_model_desc model;
    size_t i;
    b->live = b->most = 0;
    for (i = 0; i < 2; i++) {
        carnn__bench_text text = {(char *)carnn__take(&b->arena, CARNN__BENCH_TEXT, 1), 0};
        carnn__bench_data(&text, task->bench, i == 1);
        source[i].bytes = text.at;
        source[i].size = text.length;
    }
    if (source[1].size) data.candidates = &source[1];
    memset(&model, 0, sizeof model);
    model.task = task->name;
    model.cell = task->bench->cell;
    if (task->bench->other && b->n[0] == task->bench->hidden[1])
        b->status = carnn__set_all(&model, NULL, 0, task->bench->other, b->error);
    model.min_count = 1;
    model.hidden = (int64_t)b->n[0];
    model.simd = b->simd;
    model.allocator = &b->counting;
    if (!b->status) b->status = carnn_dataset_load(&b->data, &data, b->error);
    if (!b->status) b->status = carnn_model_create(&b->model, &model, b->data, b->error);
}

/* Notes the speed of each epoch, and stops when there are enough; memory is the same in all. */
static int carnn__bench_epoch(const carnn_progress *p, void *user) {
    carnn__bench *b = (carnn__bench *)user;
    if (p->epoch_ended) carnn__bench_sample(b, p->rate);
    return b->n[2] || carnn__bench_enough(b, 0.5 * p->seconds);
}

static void carnn__bench_train(carnn__bench *b, int64_t batch, const char *optimizer) {
    carnn_train_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.batch = batch;
    desc.optimizer = optimizer;
    desc.dropout = CARNN_NONE;
    desc.threads = b->threads;
    desc.progress = carnn__bench_epoch;
    desc.user = b;
    if (!b->status) b->status = carnn_train(b->model, b->data, NULL, &desc, b->error);
    if (b->status == CARNN_ERR_STOPPED) b->status = CARNN_OK;
    if (b->n[2]) b->value = (double)b->most / 1048576.0;
}

/* n: hidden, task, 1 for the memory instead of the speed. */
static void carnn__bench_training(carnn__bench *b) {
    const carnn__task_bench *bench = carnn__task_at(b->n[1])->bench;
    carnn__bench_task(b);
    carnn__bench_train(b, bench->batch, bench->optimizer);
}

/* n: hidden, layers of LSTMs (0: one of an RCRN), 1 for the memory. A classifier of texts of 16 to
   256 words; with 2 h numbers a word, an RCRN has as many weights as three layers. */
static void carnn__bench_encoder(carnn__bench *b) {
    carnn__bench_text text = {(char *)carnn__take(&b->arena, CARNN__BENCH_TEXT, 1), 0};
    carnn_source source = {"data", text.at, 0};
    carnn_dataset_desc data = {"classify", &source, 1, NULL, 0, 0, &b->counting, NULL};
    carnn_model_desc model;
    unsigned i;
    b->live = b->most = 0;
    for (i = 0; i < 64; i++) {
        carnn__bench_print(&text, "c%u\t", i % 6);
        carnn__bench_words(&text, 1, i, 16 + i * 37 % 241);
        carnn__bench_print(&text, "\n");
    }
    source.size = text.length;
    memset(&model, 0, sizeof model);
    model.task = data.task;
    model.hidden = (int64_t)b->n[0];
    model.embedding = 2 * model.hidden;
    model.layers = (int64_t)carnn__max(b->n[1], 1);
    model.simd = b->simd;
    model.allocator = &b->counting;
    b->status = carnn_set(&model, NULL, "encoder", b->n[1] ? "rnn" : "rcrn", b->error);
    if (!b->status) b->status = carnn_dataset_load(&b->data, &data, b->error);
    if (!b->status) b->status = carnn_model_create(&b->model, &model, b->data, b->error);
    carnn__bench_train(b, 32, NULL);
}

/* Piece 0 is the measurement, piece 1 another thread that keeps a processor busy meanwhile. */
static void carnn__bench_beside_piece(void *job, size_t piece, size_t worker) {
    carnn__bench *b = (carnn__bench *)job;
    (void)worker;
    while (piece && !carnn__get(&b->measured)) b->engine.k->multiply_add(CARNN__BENCH_ROUNDS);
    if (piece) return;
    carnn__bench_training(b);
    carnn__put(&b->measured, 1);
}

/* The same, on a machine that has something else to do. */
static void carnn__bench_beside(carnn__bench *b) {
    carnn__pool *pool;
    if (carnn__pool_create(&pool, 2, carnn__allocator(NULL))) {
        b->status = carnn__out_of_memory(b->error);
        return;
    }
    b->measured = 0;
    carnn__parallel(pool, 2, carnn__bench_beside_piece, b);
    carnn__pool_free(pool);
}

/* Counts what training counts: the words of texts whose likelihood is told, else examples. */
static void carnn__bench_prediction(const carnn_prediction *prediction, void *user) {
    carnn__bench *b = (carnn__bench *)user;
    if (prediction->kind == CARNN_PREDICTS_LIKELIHOOD) b->amount += (double)prediction->tokens;
    else b->amount += !prediction->part;
}

/* All examples, with what has to be made ready for them. */
static void carnn__bench_predict(carnn__bench *b) {
    carnn_predict_desc desc = {b->threads, 1, carnn__bench_prediction, b};
    b->amount = 0.0;
    if (!b->status) b->status = carnn_predict(b->model, b->data, &desc, b->error);
}

/* The examples of the first group in a session: where it replies, each reply comes after all that
   was said before, else each is predicted by itself. */
static void carnn__bench_session_call(carnn__bench *b) {
    const carnn_dataset *data = b->data;
    size_t most = carnn__min(data->item_count, CARNN__BENCH_EXAMPLES), i;
    carnn_prediction prediction;
    carnn_session_reset(b->session);
    for (i = 0; i < most && data->items[i].group == data->items[0].group; i++) {
        const char *reply;
        const char *user = carnn_dataset_text(data, i, carnn_dataset_text_count(data, i) - 1);
        if (b->n[2]) carnn_session_reply(b->session, user, strlen(user), &reply, NULL);
        else carnn_session_example(b->session, data, i, 1, &prediction, NULL);
    }
    b->amount = (double)i;
}

/* n: hidden, task, 1 for replies. */
static void carnn__bench_session(carnn__bench *b) {
    carnn__bench_task(b);
    if (!b->status) b->status = carnn_session_open(&b->session, b->model, NULL, b->error);
}

/* The rows of a task, for each size of its models. A unit that is NULL is in the task's entry. */
#define CARNN__BENCH_KIND(name, unit, open, call, flag)                                            \
    {"task", unit, name, carnn__bench_##open, call, CARNN__UNBOUND, 0.0, {0, 0, flag}},
static const carnn__bench_row carnn__bench_kinds[] = {
    CARNN__BENCH_KIND("training", NULL, training, NULL, 0)
    CARNN__BENCH_KIND("training beside a busy thread", NULL, beside, NULL, 0)
    CARNN__BENCH_KIND("", NULL, task, carnn__bench_predict, 0)
    CARNN__BENCH_KIND("one answer", "ms", session, carnn__bench_session_call, 1)
    CARNN__BENCH_KIND("one prediction in a session", "ms", session, carnn__bench_session_call, 0)
    CARNN__BENCH_KIND("memory of training", "MiB", training, NULL, 1)
};

/* Does the task have this kind of row for its models number `size`? */
static int carnn__bench_has(const carnn__task *task, size_t size, const carnn__bench_row *kind) {
    if (!task->bench || !task->bench->hidden[size]) return 0;
    if (kind->open == carnn__bench_beside) return size == 1 && !task->bench->other;
    if (kind->open != carnn__bench_session) return 1;
    return task->session && task->session->talks == (int)kind->n[2];
}

/* --- the table ------------------------------------------------------------------------------- */

#define CARNN__BENCH_ROW(group, name, unit, open, call, bound, cost, ...)                          \
    {group, unit, name, carnn__bench_##open, carnn__bench_##call, bound, cost, {__VA_ARGS__}},
#define CARNN__BENCH_PRODUCT(what, m, n, k, form)                                                  \
    CARNN__BENCH_ROW("kernel", "matmul " #m " x " #n " x " #k what, "GFLOP/s", matmul,             \
                     matmul_call, CARNN__BOUND_FMA, 1.0, m, n, k, form)
#define CARNN__BENCH_PRODUCTS(m, n, k)                                                             \
    CARNN__BENCH_PRODUCT(" A B", m, n, k, CARNN__NN)                                               \
    CARNN__BENCH_PRODUCT(" A B'", m, n, k, CARNN__NT)                                              \
    CARNN__BENCH_PRODUCT(" A' B", m, n, k, CARNN__TN)
#define CARNN__BENCH_MATH(name, operations)                                                        \
    CARNN__BENCH_ROW("kernel", #name, "G/s", math, name, CARNN__BOUND_FMA, 0.0, 4096, operations)
#define CARNN__BENCH_SHAPE(id, name, ...)                                                          \
    CARNN__BENCH_ROW("cell", name, "ms", cell, cell_call, CARNN__BOUND_FMA, 0.0,                   \
                     CARNN__CELL_##id, __VA_ARGS__)
#define CARNN__BENCH_CELL(id, functions, name, ...)                                                \
    CARNN__BENCH_SHAPE(id, name " A", 32, 50, 256, 1024)                                           \
    CARNN__BENCH_SHAPE(id, name " B", 32, 40, 300, 200)                                            \
    CARNN__BENCH_SHAPE(id, name " C", 1, 200, 128, 128)

/* The peaks come first, in the order of their numbers. A product with one row reads each weight
   once: 4 bytes for 2 operations. The functions take so many vector operations for 16 numbers, each
   in the place of a multiply-add. Adam with clipping reads five and writes four floats: more than
   the peak of memory where a large third level holds them. */
static const carnn__bench_row carnn__bench_rows[] = {
    CARNN__BENCH_ROW("peak", "multiply-add", "GFLOP/s", fma, fma_call, 0, 1.0, 0)
    CARNN__BENCH_ROW("peak", "read 1 MiB", "GB/s", read, read_call, 1, 1.0, 1)
    CARNN__BENCH_ROW("peak", "read 4 MiB", "GB/s", read, read_call, 2, 1.0, 4)
    CARNN__BENCH_ROW("peak", "read 256 MiB", "GB/s", read, read_call, 3, 1.0, 256)
    CARNN__BENCH_ROW("kernel", "gemv 1 x 1024 x 1024 A B", "GFLOP/s", matmul, matmul_call,
                     CARNN__BOUND_READ_4, 2.0, 1, 1024, 1024, CARNN__NN)
    CARNN__BENCH_ROW("kernel", "gemv 1 x 1024 x 1024 A B'", "GFLOP/s", matmul, matmul_call,
                     CARNN__BOUND_READ_4, 2.0, 1, 1024, 1024, CARNN__NT)
    CARNN__BENCH_PRODUCTS(32, 1024, 1024)
    CARNN__BENCH_PRODUCT(" packed", 32, 1024, 1024, CARNN__PACKED)
    CARNN__BENCH_PRODUCTS(32, 3072, 1024)
    CARNN__BENCH_PRODUCT(" packed", 32, 3072, 1024, CARNN__PACKED)
    CARNN__BENCH_PRODUCTS(20, 800, 200)
    CARNN__BENCH_PRODUCTS(64, 200, 200)
    CARNN__BENCH_PRODUCTS(512, 400, 300)
    CARNN__BENCH_PRODUCTS(800, 3072, 1024)
    CARNN__BENCH_PRODUCTS(2048, 2048, 2048)
    CARNN__BENCH_MATH(exp, 14)
    CARNN__BENCH_MATH(sigmoid, 19)
    CARNN__BENCH_MATH(tanh, 18)
    CARNN__BENCH_MATH(softmax, 18)
    CARNN__BENCH_ROW("kernel", "adam, clipping", "M weights/s", adam, adam_call,
                     CARNN__BOUND_READ_256, 0.036, 8000000)
    CARNN__CELLS(CARNN__BENCH_CELL)
    CARNN__BENCH_ROW("cell", "recurrence of 1000000 steps", "M steps/s", recurrence, scan,
                     CARNN__UNBOUND, 0.0, 1000000, 16)
    CARNN__BENCH_ROW("cell", "recurrence of 1000000 steps, plain loop", "M steps/s", recurrence,
                     loop, CARNN__UNBOUND, 0.0, 1000000, 16)
    {"encoder", "texts/s", "rcrn 200, training", carnn__bench_encoder, NULL, CARNN__UNBOUND, 0.0,
     {200, 0}},
    {"encoder", "texts/s", "lstm 200, 3 layers, training", carnn__bench_encoder, NULL,
     CARNN__UNBOUND, 0.0, {200, 3}},
    {"encoder", "MiB", "rcrn 200, memory of training", carnn__bench_encoder, NULL, CARNN__UNBOUND,
     0.0, {200, 0, 1}},
};

/* Row `number` of the benchmark: of the table, then of the tasks; 0: there is none. */
static int carnn__bench_row_at(size_t number, carnn__bench_row *row) {
    const size_t count = CARNN__COUNT(carnn__bench_rows);
    const carnn__task *task;
    size_t t, size, kind;
    if (number < count) *row = carnn__bench_rows[number];
    if (number < count) return 1;
    number -= count;
    for (t = 0; (task = carnn__task_at(t)) != NULL; t++)
        for (size = 0; size < 2; size++)
            for (kind = 0; kind < CARNN__COUNT(carnn__bench_kinds); kind++) {
                *row = carnn__bench_kinds[kind];
                if (!carnn__bench_has(task, size, row) || number--) continue;
                row->n[0] = task->bench->hidden[size];
                row->n[1] = t;
                snprintf(row->name, sizeof row->name, "%s %zu%s%.20s, %.40s", task->name,
                         row->n[0], size && task->bench->other ? " " : "",
                         size && task->bench->other ? task->bench->other : "",
                         row->call == carnn__bench_predict ? task->bench->predicting
                                                           : carnn__bench_kinds[kind].name);
                if (!row->unit) row->unit = task->bench->unit;
                return 1;
            }
    return 0;
}

/* Measures a row, and what bounds it where that is not known yet. */
static carnn_measure carnn__bench_measure(carnn__bench *b, const carnn__bench_row *row) {
    carnn_measure m = {row->group, row->name, row->unit, 0.0, 0.0, b->engine.k->name,
                       carnn__pool_threads(b->engine.pool)};
    double seconds, rate = 0.0, *peak;
    /* the value */
    b->n = row->n;
    b->amount = 1.0;
    b->bounded = b->value = 0.0;
    b->samples = b->arena.used = 0;
    row->open(b);
    if (row->call && !b->status) {
        carnn__bench_time(b, row->call);
        seconds = b->value;
        b->value = strcmp(row->unit, "ms") ? b->amount / seconds : 1e3 * seconds / b->amount;
        rate = row->cost > 0.0 ? row->cost * b->value : b->bounded / seconds;
    }
    m.value = b->value;
    carnn__optimizer_close(&b->optimizer, &b->engine.allocator);
    carnn_session_free(b->session);
    carnn_model_free(b->model);
    carnn_dataset_free(b->data);
    b->session = NULL;
    b->model = NULL;
    b->data = NULL;
    /* its share of the peak */
    if (b->status || row->bound == CARNN__UNBOUND) return m;
    peak = &b->peak[row->bound];
    if (!strcmp(row->group, "peak")) *peak = m.value;
    if (*peak <= 0.0) carnn__bench_measure(b, &carnn__bench_rows[row->bound]);
    m.share = rate / *peak;
    return m;
}

/* Does `only` ask for the row? The name of a row asks for that one alone, a part of it for all that
   have it. */
static int carnn__bench_asked(const char *only, const carnn__bench_row *row) {
    carnn__bench_row other;
    size_t i;
    if (!only || !strcmp(only, row->name)) return 1;
    for (i = 0; carnn__bench_row_at(i, &other); i++)
        if (!strcmp(only, other.name)) return 0;
    return !strcmp(only, row->group) || strstr(row->name, only) != NULL;
}

CARNN_API carnn_status carnn_bench(const char *only, const char *simd, int64_t threads,
                                   int (*row)(const carnn_measure *measure, void *user),
                                   void *user, carnn_error *error) {
    carnn_allocator a = carnn__allocator(NULL);
    carnn__bench *b = (carnn__bench *)carnn__alloc_zero(&a, 1, sizeof *b);
    carnn_allocator counting = {carnn__bench_alloc, carnn__bench_realloc, carnn__bench_free, b};
    carnn__bench_row r;
    size_t i, found = 0;
    carnn_status status;
    if (!b) return carnn__out_of_memory(error);
    b->simd = simd;
    b->threads = threads;
    b->error = error;
    b->counting = counting;
    b->arena.size = (size_t)CARNN__BENCH_MIB << 20;
    b->arena.base = (char *)carnn__alloc_aligned(&a, b->arena.size, 1);
    status = b->arena.base ? carnn__engine_open(&b->engine, simd, carnn_thread_count(threads), a,
                                                error)
                           : carnn__out_of_memory(error);
    for (i = 0; !status && carnn__bench_row_at(i, &r); i++) {
        carnn_measure m;
        if (!carnn__bench_asked(only, &r)) continue;
        found++;
        m = carnn__bench_measure(b, &r);
        status = b->status;
        if (!status && row(&m, user))
            status = carnn__fail(error, CARNN_ERR_STOPPED, 0, "stopped after %s", r.name);
    }
    carnn__engine_close(&b->engine);
    carnn__free_aligned(&a, b->arena.base);
    carnn__free(&a, b);
    if (!status && !found)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "no row of the benchmark has \"%.60s\" in "
                           "its name", only);
    return status;
}

#endif

/* =============================================================================================
   @@GRAPH   cyclic graphs of recurrent networks and their measures (Zhang 2019, 4.2 and 4.3)

   The measures are ratios of length (edges) and delay of cycles. Delay / length is the mean of the
   delays of a cycle's edges: Karp's algorithm for cycles of extreme mean finds them exactly, in
   integers and in O(nodes * edges) time. Graph and working memory are one block each.
   ============================================================================================= */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA) && !defined(CARNN_NO_TEXT)

/* With these limits all sums stay below 2^63: those of carnn__graph_cycle, which are the largest,
   below nodes * nodes * 3 * nodes * delay. */
#define CARNN__GRAPH_NODES 1024
#define CARNN__GRAPH_EDGES 8192
#define CARNN__GRAPH_LARGEST 1000000 /* delay or period */
#define CARNN__GRAPH_GRID 1000       /* either depth of a grid */

struct carnn_graph {
    carnn_allocator allocator;
    int64_t period;
    size_t node_count, edge_count;
    carnn_graph_node node[CARNN__GRAPH_NODES];
    carnn_graph_edge edge[CARNN__GRAPH_EDGES];
    int has[2]; /* forward, backward: are there such cycles? */
    carnn_graph_measures measures[2];
    uint32_t path[2][3][CARNN__GRAPH_NODES]; /* what attains each of them */
};

typedef struct carnn__mean { /* over / under; 0 / 0: there is none */
    int64_t over, under;
} carnn__mean;

typedef struct carnn__graph_work {
    carnn_graph *graph;
    carnn_error *error;
    carnn__input input;
    carnn__lines *lines; /* of the input */
    carnn__span word[5]; /* of the line; a word that is missing has no bytes */
    uint64_t reach[CARNN__GRAPH_NODES][CARNN__GRAPH_NODES / 64]; /* u to v, by an edge or more */
    uint32_t component[CARNN__GRAPH_NODES]; /* strongly connected, numbered by its first node */
    carnn__mean mean[2][CARNN__GRAPH_NODES]; /* (component) the least of its cycles' means of delay,
                                                and of -delay */
    carnn__mean worst[CARNN__GRAPH_NODES];
    int64_t a[CARNN__GRAPH_NODES], b[CARNN__GRAPH_NODES], c[CARNN__GRAPH_NODES];
    uint32_t via[CARNN__GRAPH_NODES]; /* the last edge of the shortest walk to a node */
    char used[CARNN__GRAPH_NODES];    /* the part of the graph that carnn__graph_relax sees */
} carnn__graph_work;

/* --- reading --------------------------------------------------------------------------------- */

/* The number of a node, `node_count` where there is none of that name. */
static size_t carnn__graph_find(const carnn_graph *g, carnn__span name) {
    size_t i;
    for (i = 0; i < g->node_count && !carnn__is(g->node[i].name, name, 0); i++) {}
    return i;
}

static void carnn__graph_add(carnn_graph *g, carnn__span name, int kind, int64_t time,
                             size_t line) {
    carnn_graph_node node = {"", (carnn_node_kind)kind, time, line};
    memcpy(node.name, name.at, name.length);
    g->node[g->node_count++] = node;
}

static carnn_status carnn__graph_expected(const carnn__graph_work *w, const char *what, int i) {
    return carnn__expected(w->error, w->lines, what, w->word[i]);
}

/* Reads word i as a whole number of [least, most]. */
static carnn_status carnn__graph_number(const carnn__graph_work *w, int i, int64_t least,
                                        int64_t most, int64_t *number) {
    carnn__span digits = w->word[i];
    int minus = carnn__minus(&digits);
    uint64_t size;
    char what[64];
    if (carnn__whole(digits, &size)) {
        *number = minus ? -(int64_t)size : (int64_t)size;
        if (*number >= least && *number <= most) return CARNN_OK;
    }
    snprintf(what, sizeof what, "a whole number from %ld to %ld", (long)least, (long)most);
    return carnn__graph_expected(w, what, i);
}

/* node NAME KIND TIME */
static carnn_status carnn__graph_read_node(const carnn__graph_work *w) {
    static const char *const kinds[] = {"in", "hidden", "out"};
    carnn_graph *g = w->graph;
    carnn__span name = w->word[1];
    int64_t time = 0;
    size_t i;
    int kind = 0;
    for (i = 0; i < name.length && (unsigned char)name.at[i] > ' '; i++) {}
    if (!i || i < name.length || i >= sizeof g->node->name)
        return carnn__graph_expected(w, "a name of at most 40 printable bytes", 1);
    if (carnn__graph_find(g, name) < g->node_count)
        return carnn__graph_expected(w, "a name that no node above has", 1);
    while (kind < 3 && !carnn__is(kinds[kind], w->word[2], 0)) kind++;
    if (kind == 3) return carnn__graph_expected(w, "in, hidden or out", 2);
    if (w->word[3].length && carnn__graph_number(w, 3, 0, g->period - 1, &time))
        return CARNN_ERR_DATA;
    if (g->node_count == CARNN__GRAPH_NODES)
        return carnn__misread(w->error, w->lines, "at most 1024 nodes", "one more");
    carnn__graph_add(g, name, kind, time, w->lines->number);
    return CARNN_OK;
}

/* edge FROM TO DELAY */
static carnn_status carnn__graph_read_edge(const carnn__graph_work *w) {
    carnn_graph *g = w->graph;
    carnn_graph_edge edge = {0, 0, 0, w->lines->number};
    edge.from = carnn__graph_find(g, w->word[1]);
    edge.to = carnn__graph_find(g, w->word[2]);
    if (edge.from == g->node_count || edge.to == g->node_count)
        return carnn__graph_expected(w, "the name of a node above",
                                     edge.from == g->node_count ? 1 : 2);
    if (carnn__graph_number(w, 3, -CARNN__GRAPH_LARGEST, CARNN__GRAPH_LARGEST, &edge.delay))
        return CARNN_ERR_DATA;
    if (g->edge_count == CARNN__GRAPH_EDGES)
        return carnn__misread(w->error, w->lines, "at most 8192 edges", "one more");
    g->edge[g->edge_count++] = edge;
    return CARNN_OK;
}

static carnn_status carnn__graph_read(carnn__graph_work *w) {
    carnn_status status = CARNN_OK;
    while (!status && carnn__next_line(w->lines)) {
        carnn__span line = w->lines->line;
        carnn__words words = carnn__words_of(CARNN__SPACES, line.at, line.length);
        int count = 0, most = 4;
        memset(w->word, 0, sizeof w->word);
        while (count < 5 && carnn__next_word(&words) && *words.word.at != '#')
            w->word[count++] = words.word;
        if (!count) continue;
        if (carnn__is("node", w->word[0], 0)) {
            status = carnn__graph_read_node(w);
        } else if (carnn__is("edge", w->word[0], 0)) {
            status = carnn__graph_read_edge(w);
        } else if (carnn__is("period", w->word[0], 0) && !w->graph->node_count) {
            status = carnn__graph_number(w, 1, 1, CARNN__GRAPH_LARGEST, &w->graph->period);
            most = 2;
        } else {
            return carnn__graph_expected(w, "period (before all nodes), node or edge", 0);
        }
        if (!status && count > most) return carnn__graph_expected(w, "the end of the line", most);
    }
    return status;
}

/* --- the graphs of the thesis ---------------------------------------------------------------- */

/* The node of that name, added if it is new: x is the input, y the output, others are hidden. */
static size_t carnn__graph_named(carnn_graph *g, const char *name, size_t length) {
    carnn__span span = {name, length};
    size_t node = carnn__graph_find(g, span);
    int kind = *name == 'x' ? 0 : *name == 'y' ? 2 : 1;
    if (node == g->node_count) carnn__graph_add(g, span, kind, 0, 0);
    return node;
}

static void carnn__graph_join(carnn_graph *g, size_t from, size_t to, int64_t delay) {
    carnn_graph_edge edge = {from, to, delay, 0};
    g->edge[g->edge_count++] = edge;
}

/* A chain h1 .. hn within a time step. The last one feeds, a step later, the one that is R - 1
   before it, and those before that feed themselves; the input enters F - 2 before the end. */
static void carnn__graph_grid(carnn_graph *g, size_t R, size_t F) {
    size_t n = carnn__max(R, F - 1), i;
    char name[24];
    for (i = 1; i <= n; i++)
        carnn__graph_named(g, name, (size_t)snprintf(name, sizeof name, "h%zu", i));
    carnn__graph_join(g, carnn__graph_named(g, "x", 1), n + 1 - F, 0);
    for (i = 0; i < n; i++) {
        if (i < n - R) carnn__graph_join(g, i, i, 1);
        carnn__graph_join(g, i, i + 1 < n ? i + 1 : n - R, i + 1 == n);
    }
    carnn__graph_join(g, n - 1, carnn__graph_named(g, "y", 1), 0);
}

#define CARNN__STACKED "xa0ab0by0aa1bb1"

/* Makes the graph of that name; 0: there is none. An edge is two nodes and a delay, 0, 1 or the K
   that follows a name with a colon. */
static int carnn__graph_known(carnn_graph *g, const char *name) {
    static const char *const known[][2] = {
        {"sh", "xa0aa1ay0"},
        {"st", CARNN__STACKED},
        {"bu", CARNN__STACKED "ab1"},
        {"td", CARNN__STACKED "ba1"},
        {"fig4.3a:", "xa0aa1ay0aaK"},
        {"fig4.3b:1:", CARNN__STACKED},
        {"fig4.3b:2:", CARNN__STACKED "abK"},
        {"fig4.3b:3:", CARNN__STACKED "baK"},
        {"fig4.3b:4:", CARNN__STACKED "aaKbbK"}};
    unsigned K = 1, R = 0, F = 0;
    size_t i, length = 0;
    int end = 0;
    const char *at;
    if (sscanf(name, "grid:%4ux%4u%n", &R, &F, &end) == 2 && !name[end] && R >= 1 && F >= 2 &&
        carnn__max(R, F) <= CARNN__GRAPH_GRID)
        return carnn__graph_grid(g, R, F), 1;
    for (i = 0; i < CARNN__COUNT(known); i++) {
        length = strlen(known[i][0]);
        if (!strncmp(name, known[i][0], length)) break;
    }
    if (i == CARNN__COUNT(known)) return 0;
    end = 0;
    if (name[length - 1] == ':' && sscanf(name + length, "%7u%n", &K, &end) != 1) return 0;
    if (name[length + (size_t)end] || K < 1 || K > CARNN__GRAPH_LARGEST) return 0;
    for (at = known[i][1]; *at; at += 3) {
        size_t from = carnn__graph_named(g, at, 1), to = carnn__graph_named(g, at + 1, 1);
        carnn__graph_join(g, from, to, at[2] == 'K' ? (int64_t)K : at[2] - '0');
    }
    return 1;
}

/* --- cycles of extreme mean ------------------------------------------------------------------ */

#define CARNN__UNREACHED INT64_MAX

static inline int carnn__reaches(const carnn__graph_work *w, size_t u, size_t v) {
    return (int)(w->reach[u][v / 64] >> v % 64 & 1);
}

/* Components from the transitive closure (Warshall 1962). */
static void carnn__graph_components(carnn__graph_work *w) {
    const carnn_graph *g = w->graph;
    size_t i, u, v;
    for (i = 0; i < g->edge_count; i++)
        w->reach[g->edge[i].from][g->edge[i].to / 64] |= (uint64_t)1 << g->edge[i].to % 64;
    for (v = 0; v < g->node_count; v++)
        for (u = 0; u < g->node_count; u++)
            for (i = 0; carnn__reaches(w, u, v) && i < CARNN__GRAPH_NODES / 64; i++)
                w->reach[u][i] |= w->reach[v][i];
    for (v = 0; v < g->node_count; v++) {
        for (u = 0; u < v && !(carnn__reaches(w, u, v) && carnn__reaches(w, v, u)); u++) {}
        w->component[v] = (uint32_t)u;
    }
}

static int carnn__mean_less(carnn__mean x, carnn__mean y) {
    return x.over * y.under < y.over * x.under;
}

/* The least weight (sign * delay) of walks of k edges to every node, within components and from
   their first nodes on: from that of k - 1 edges, or (NULL) for k = 0. */
static void carnn__graph_walk(const carnn__graph_work *w, int sign, const int64_t *before,
                              int64_t *now) {
    const carnn_graph *g = w->graph;
    size_t i;
    for (i = 0; i < g->node_count; i++)
        now[i] = !before && w->component[i] == i ? 0 : CARNN__UNREACHED;
    for (i = 0; before && i < g->edge_count; i++) {
        const carnn_graph_edge *e = &g->edge[i];
        if (before[e->from] != CARNN__UNREACHED && w->component[e->from] == w->component[e->to] &&
            before[e->from] + sign * e->delay < now[e->to])
            now[e->to] = before[e->from] + sign * e->delay;
    }
}

/* For every component the least mean of sign * delay over its cycles. With the least weight D_k(v)
   of walks of k edges to v, and N nodes,

     mean = min_v max_{k < N} (D_N(v) - D_k(v)) / (N - k)                     (Karp 1978, Theorem 1)

   N may exceed the size of the component: a walk of N edges is still a path and cycles. All D_k are
   computed twice, so that they need not be kept. */
static void carnn__graph_means(carnn__graph_work *w, int sign) {
    carnn__mean m, *mean = w->mean[sign < 0];
    size_t k, v, N = w->graph->node_count;
    int64_t *last = w->a, *now = w->b, *next = w->c, *swap;
    carnn__graph_walk(w, sign, NULL, last);
    for (k = 0; k < N; k++) {
        carnn__graph_walk(w, sign, last, next);
        swap = last, last = next, next = swap;
    }
    memset(w->worst, 0, sizeof w->worst);
    carnn__graph_walk(w, sign, NULL, now);
    for (k = 0; k < N; k++) {
        for (v = 0; v < N; v++) {
            if (last[v] == CARNN__UNREACHED || now[v] == CARNN__UNREACHED) continue;
            m.over = last[v] - now[v];
            m.under = (int64_t)(N - k);
            if (!w->worst[v].under || carnn__mean_less(w->worst[v], m)) w->worst[v] = m;
        }
        carnn__graph_walk(w, sign, now, next);
        swap = now, now = next, next = swap;
    }
    for (v = 0; v < N; v++) {
        size_t c = w->component[v];
        if (w->worst[v].under && (!mean[c].under || carnn__mean_less(w->worst[v], mean[c])))
            mean[c] = w->worst[v];
    }
}

/* --- cycles and paths ------------------------------------------------------------------------ */

/* A sweep of Bellman and Ford for shortest walks, over edges of weight a * delay + b between nodes
   that are used; w->a has the weights of walks so far. Returns the last node whose walk became
   shorter; CARNN__NO_INDEX: none did. */
static uint32_t carnn__graph_relax(carnn__graph_work *w, int64_t a, int64_t b) {
    const carnn_graph_edge *e = w->graph->edge;
    uint32_t i, changed = CARNN__NO_INDEX;
    for (i = 0; i < w->graph->edge_count; i++, e++) {
        int64_t weight = w->a[e->from];
        if (!w->used[e->from] || !w->used[e->to] || weight == CARNN__UNREACHED) continue;
        weight += a * e->delay + b;
        if (weight >= w->a[e->to]) continue;
        w->a[e->to] = weight;
        w->via[e->to] = i;
        changed = (uint32_t)e->to;
    }
    return changed;
}

/* The walk to node v by w->via, from v itself or from a node that no edge leads to. */
static void carnn__graph_trace(const carnn__graph_work *w, size_t v, uint32_t *path,
                               carnn_graph_value *value) {
    const carnn_graph_edge *edge = w->graph->edge;
    size_t u = v, i;
    memset(value, 0, sizeof *value);
    value->edge = path;
    do {
        value->length++;
        value->delay += edge[w->via[u]].delay;
        u = edge[w->via[u]].from;
    } while (u != v && w->via[u] != CARNN__NO_INDEX);
    for (i = value->length, u = v; i-- > 0; u = edge[path[i]].from) path[i] = w->via[u];
}

/* A cycle of component c with the least mean of sign * delay. With weights under * sign * delay -
   over its sum is 0, and no cycle has a smaller one. With (N + 1) times these weights - 1 only such
   cycles are negative, and w->via leads back to one from a node that the N-th sweep changes. */
static void carnn__graph_cycle(carnn__graph_work *w, uint32_t c, int sign, uint32_t *path,
                               carnn_graph_value *value) {
    carnn__mean mean = w->mean[sign < 0][c];
    size_t N = w->graph->node_count, scale = N + 1, i, v = c;
    memset(w->a, 0, sizeof w->a);
    for (i = 0; i < N; i++) w->used[i] = w->component[i] == c;
    for (i = 0; i < N; i++)
        v = carnn__graph_relax(w, (int64_t)scale * sign * mean.under,
                               -(int64_t)scale * mean.over - 1);
    for (i = 0; i < N; i++) v = w->graph->edge[w->via[v]].from;
    carnn__graph_trace(w, v, path, value);
}

/* --- measures -------------------------------------------------------------------------------- */

static void carnn__graph_fraction(carnn_graph_value *value, int64_t over, int64_t under) {
    int64_t a = over < 0 ? -over : over, b = under, rest;
    for (; b; a = b, b = rest) rest = a % b; /* Euclid */
    value->numerator = over / a;
    value->denominator = under / a;
}

/* d_f = max over paths from inputs to outputs of length - delay d_r            (Theorem 4.3.2.1)

   With the numerator P and the denominator Q of d_r, the weights P delay - Q are integers, and no
   cycle is negative. Components of the other direction are left out. */
static void carnn__graph_feedforward(carnn__graph_work *w, int backward, uint32_t *path,
                                     carnn_graph_measures *m) {
    int64_t P = m->recurrent_depth.numerator, Q = m->recurrent_depth.denominator;
    size_t i, N = w->graph->node_count, best = N;
    memset(w->via, 0xFF, sizeof w->via);
    for (i = 0; i < N; i++) {
        w->used[i] = w->mean[!backward][w->component[i]].over <= 0;
        w->a[i] = w->graph->node[i].kind == CARNN_NODE_IN ? 0 : CARNN__UNREACHED;
    }
    while (carnn__graph_relax(w, backward ? -P : P, -Q) != CARNN__NO_INDEX) {}
    for (i = 0; i < N; i++)
        if (w->graph->node[i].kind == CARNN_NODE_OUT && w->a[i] != CARNN__UNREACHED &&
            (best == N || w->a[i] < w->a[best]))
            best = i;
    if (best == N) return;
    carnn__graph_trace(w, best, path, &m->feedforward_depth);
    carnn__graph_fraction(&m->feedforward_depth, -w->a[best], Q);
}

/* d_r = max over cycles of length / delay; s = max of delay / length (Theorems 4.3.1.1, 4.3.3.1) */
static void carnn__graph_measures(carnn__graph_work *w, int backward) {
    carnn_graph *g = w->graph;
    carnn_graph_value *deep = &g->measures[backward].recurrent_depth;
    carnn_graph_value *skip = &g->measures[backward].skip_coefficient;
    const carnn__mean *least = w->mean[backward], *most = w->mean[!backward]; /* of -delay */
    int sign = backward ? -1 : 1;
    uint32_t c, slow = CARNN__NO_INDEX, fast = 0;
    for (c = 0; c < g->node_count; c++) {
        if (least[c].over <= 0) continue;
        if (slow == CARNN__NO_INDEX) slow = fast = c;
        if (carnn__mean_less(least[c], least[slow])) slow = c;
        if (carnn__mean_less(most[c], most[fast])) fast = c;
    }
    g->has[backward] = slow != CARNN__NO_INDEX;
    if (!g->has[backward]) return;
    carnn__graph_cycle(w, slow, sign, g->path[backward][0], deep);
    carnn__graph_fraction(deep, (int64_t)deep->length, sign * deep->delay);
    carnn__graph_cycle(w, fast, -sign, g->path[backward][1], skip);
    carnn__graph_fraction(skip, sign * skip->delay, (int64_t)skip->length);
    carnn__graph_feedforward(w, backward, g->path[backward][2], &g->measures[backward]);
}

/* --- the four conditions of Definition 4.2.1.1 ----------------------------------------------- */

static carnn_status carnn__graph_invalid(carnn__graph_work *w, size_t line, const char *expected,
                                         const char *found) {
    w->lines->number = line;
    return carnn__misread(w->error, w->lines, expected, found);
}

/* 1. A delay is the difference of both nodes' times, modulo the period. */
static carnn_status carnn__graph_check_delays(carnn__graph_work *w) {
    const carnn_graph *g = w->graph;
    char expected[80], found[32];
    size_t i;
    for (i = 0; i < g->edge_count; i++) {
        const carnn_graph_edge *e = &g->edge[i];
        int64_t apart = g->node[e->to].time - g->node[e->from].time;
        if ((e->delay - apart) % g->period == 0) continue;
        snprintf(expected, sizeof expected, "a delay of %ld modulo %ld (condition 1)",
                 (long)((apart + g->period) % g->period), (long)g->period);
        snprintf(found, sizeof found, "%ld", (long)e->delay);
        return carnn__graph_invalid(w, e->line, expected, found);
    }
    return CARNN_OK;
}

/* 2. There is a cycle. 3. No closed walk has a delay of 0: the delays of a component's cycles are
   all positive or all negative, since a walk through two cycles can repeat each. */
static carnn_status carnn__graph_check_cycles(carnn__graph_work *w) {
    carnn_graph *g = w->graph;
    carnn_graph_value low, high;
    char found[160];
    size_t cycles = 0, used;
    uint32_t c;
    for (c = 0; c < g->node_count; c++) {
        cycles += w->mean[0][c].under > 0;
        if (!w->mean[0][c].under || w->mean[0][c].over > 0 || w->mean[1][c].over > 0) continue;
        carnn__graph_cycle(w, c, 1, g->path[0][0], &low);
        carnn__graph_cycle(w, c, -1, g->path[0][1], &high);
        if (!high.delay) low = high;
        used = carnn__min(carnn_graph_path(g, &low, found, 75), 74);
        if (low.delay) {
            used += (size_t)snprintf(found + used, sizeof found - used, " and ");
            carnn_graph_path(g, &high, found + used, sizeof found - used);
        }
        return carnn__graph_invalid(w, g->edge[*low.edge].line,
                                    "no closed walk of delay 0 (condition 3)", found);
    }
    if (cycles) return CARNN_OK;
    return carnn__graph_invalid(w, carnn__max(w->lines->number, 1),
                                "a directed cycle (condition 2)", "none");
}

/* 4. No edge leads to an input or from an output, edges lead to and from every hidden node; there
   are nodes of each kind. */
static carnn_status carnn__graph_check_nodes(carnn__graph_work *w) {
    static const char *const expected[] = {"no edge to an input (condition 4)",
                                           "edges to and from a hidden node (condition 4)",
                                           "no edge from an output (condition 4)"};
    static const char *const kinds[] = {"an input", "a hidden node", "an output"};
    const carnn_graph *g = w->graph;
    char text[80];
    size_t i, k, seen[3] = {0, 0, 0};
    memset(w->a, 0, sizeof w->a);
    memset(w->b, 0, sizeof w->b);
    for (i = 0; i < g->edge_count; i++) w->a[g->edge[i].to]++, w->b[g->edge[i].from]++;
    for (i = 0; i < g->node_count; i++) {
        carnn_node_kind kind = g->node[i].kind;
        int64_t to = w->a[i], from = w->b[i];
        seen[kind] = 1;
        if (kind == CARNN_NODE_IN ? !to : kind == CARNN_NODE_OUT ? !from : to && from) continue;
        snprintf(text, sizeof text, "%s %s %s", kind == CARNN_NODE_HIDDEN ? "none" : "one",
                 kind == CARNN_NODE_OUT || (kind == CARNN_NODE_HIDDEN && to) ? "from" : "to",
                 g->node[i].name);
        return carnn__graph_invalid(w, g->node[i].line, expected[kind], text);
    }
    for (k = 0; k < 3 && seen[k]; k++) {}
    if (k == 3) return CARNN_OK;
    snprintf(text, sizeof text, "%s (condition 4)", kinds[k]);
    return carnn__graph_invalid(w, w->lines->number, text, "none");
}

static carnn_status carnn__graph_check(carnn__graph_work *w) {
    carnn_status status = carnn__graph_check_delays(w);
    if (status) return status;
    carnn__graph_components(w);
    carnn__graph_means(w, 1);
    carnn__graph_means(w, -1);
    status = carnn__graph_check_cycles(w);
    return status ? status : carnn__graph_check_nodes(w);
}

/* --- the interface --------------------------------------------------------------------------- */

/* Reads the graph, unless it is one of those known by name. */
static carnn_status carnn__graph_make(carnn__graph_work *w, const carnn_source *source) {
    carnn_status status;
    w->graph->period = 1;
    w->lines = &w->input.lines;
    if (!source->bytes && source->name && carnn__graph_known(w->graph, source->name))
        return CARNN_OK;
    status = carnn__input_open(&w->input, source, SIZE_MAX, &w->graph->allocator, w->error);
    if (status == CARNN_ERR_IO && w->error) {
        size_t used = strlen(w->error->message);
        snprintf(w->error->message + used, sizeof w->error->message - used, ", and not a graph "
                 "known by name: sh, st, bu, td, grid:RxF, fig4.3a:K, fig4.3b:N:K");
    }
    return status ? status : carnn__graph_read(w);
}

CARNN_API carnn_status carnn_graph_load(carnn_graph **graph, const carnn_source *source,
                                        const carnn_allocator *allocator, carnn_error *error) {
    carnn_allocator a = carnn__allocator(allocator);
    carnn_graph *g = (carnn_graph *)carnn__alloc_zero(&a, 1, sizeof *g);
    carnn__graph_work *w = (carnn__graph_work *)carnn__alloc_zero(&a, 1, sizeof *w);
    carnn_status status = CARNN_ERR_MEMORY;
    if (g && w) {
        w->graph = g;
        w->error = error;
        g->allocator = a;
        status = carnn__graph_make(w, source);
        if (!status) status = carnn__graph_check(w);
        if (!status) carnn__graph_measures(w, 0);
        if (!status) carnn__graph_measures(w, 1);
        carnn__input_close(&w->input, &a);
    } else carnn__out_of_memory(error);
    carnn__free(&a, w);
    if (status) carnn__free(&a, g);
    *graph = status ? NULL : g;
    return status;
}

CARNN_API void carnn_graph_free(carnn_graph *graph) {
    carnn_allocator a = carnn__allocator(graph ? &graph->allocator : NULL);
    carnn__free(&a, graph);
}

CARNN_API const carnn_graph_measures *carnn_graph_measure(const carnn_graph *graph, int backward) {
    return graph->has[backward != 0] ? &graph->measures[backward != 0] : NULL;
}

CARNN_API size_t carnn_graph_path(const carnn_graph *graph, const carnn_graph_value *value,
                                  char *text, size_t size) {
    size_t used = 0, i;
    if (size) *text = 0;
    for (i = 0; i < value->length; i++) {
        const carnn_graph_edge *e = &graph->edge[value->edge[i]];
        size_t room = used < size ? size - used : 0;
        used += (size_t)snprintf(room ? text + used : NULL, room, "%s -%ld-> %s",
                                 i ? "" : graph->node[e->from].name, (long)e->delay,
                                 graph->node[e->to].name);
    }
    return used;
}

CARNN_API int64_t carnn_graph_period(const carnn_graph *graph) { return graph->period; }
CARNN_API const carnn_graph_node *carnn_graph_node_at(const carnn_graph *graph, size_t number) {
    return number < graph->node_count ? &graph->node[number] : NULL;
}
CARNN_API const carnn_graph_edge *carnn_graph_edge_at(const carnn_graph *graph, size_t number) {
    return number < graph->edge_count ? &graph->edge[number] : NULL;
}

#endif
/* The end of a pass: the table of its kernels. */
#if defined(CARNN__ISA)

#define CARNN__STRING_(x) #x
#define CARNN__STRING(x) CARNN__STRING_(x)
#define CARNN__KERNEL_ENTRY(name, result, arguments) CARNN__K(name),
#define CARNN__CELL_SCAN(id, ...) {CARNN__K(id##_scan), CARNN__K(id##_scan_back)},
static const carnn__kernels CARNN__K(kernels) = {
    CARNN__STRING(CARNN__ISA),
    CARNN__TILE_ROWS,
    CARNN__TILE_COLUMNS,
    CARNN__KERNELS(CARNN__KERNEL_ENTRY){CARNN__CELLS(CARNN__CELL_SCAN)}};
/* what the next pass defines otherwise */
#undef CARNN__TILE_ROWS
#undef CARNN__TILE_VECTORS
#undef CARNN__TILE_WIDEST
#undef CARNN__TILE_WIDTHS
#undef CARNN__TILES
#undef CARNN__FETCH_TILES
#undef CARNN__FETCH_STEPS
#undef CARNN__DOT_ROWS
#undef CARNN__TILE_COLUMNS

#endif

/* The end of the header: what @@SIMD opened. */
#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)
#if defined(__clang__)
#pragma STDC FP_CONTRACT DEFAULT
#elif defined(__GNUC__)
#pragma GCC pop_options
#endif
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
#define CARNN__IMPLEMENTED
#ifdef __cplusplus
}
#endif
#endif
