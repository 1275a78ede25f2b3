/* carnn.h - context-dependent additive recurrent networks in one C99 file (MIT-0 or public domain)

   Recurrent networks that read a sequence under the control of a context: the CARNN family (Tran et
   al., NAACL 2018) beside LSTM, GRU and RAN, with hand-written backward passes, SIMD kernels chosen
   at run time, training that gives the same bytes for any number of threads, and a dialog model
   that chooses its replies and can say exactly what each earlier utterance contributed.

   DO THIS in ONE C or C++ file, and include the header without the #define anywhere else:

       #define CARNN_IMPLEMENTATION
       #include "carnn.h"

   Link with -lm and -lpthread. stb_ds.h (Debian: libstb-dev) must be on the include path of that
   one file.

   A PROGRAM that loads a dialog model and answers:

       carnn_error error;
       carnn_model *model;
       carnn_session *session;
       carnn_source file = {"bot.gguf", NULL, 0};
       if (carnn_model_load(&model, &file, NULL, &error) ||
           carnn_session_open(&session, model, NULL, &error)) {
           puts(error.message);
           exit(1);
       }
       puts(carnn_session_reply(session, "i want cheap thai food", 22));
       carnn_session_free(session);
       carnn_model_free(model);

   examples/ has complete programs: training, own memory, threads, C++, an own allocator, ranking
   sentences, a language model that scores and generates.

   CONTENTS: search for the tag.

       (declarations)  what a program can call: read this first
       @@BASE    status, allocator, arena, random numbers, clock, threads
       @@SIMD    one vector of 16 lanes on every machine; the choice of the instruction set
       @@MATH    exp, sigmoid, tanh, softmax
       @@MAT     matrix products
       @@PARAM   the parameter store, optimisers
       @@SEQ     packed batches, both directions, pooling
       @@CELL    linear recurrence, nCARNN, iCARNN, sCARNN, RAN, RNN, LSTM, GRU
       @@PART    position encoder, attention, cross entropy, dropout, alignment, cosine
       @@TEXT    tokenisers, lists of names, vocabularies, files, word vectors
       @@DATA    data sets and their readers
       @@MODEL   a model, what a task must provide
       @@HEAD    one part per task: dialog, lm, answer
       @@TASKS   the table of tasks, options
       @@FILE    model files and checkpoints
       @@TRAIN   training and scoring
       @@DEPLOY  sessions: answering and explaining; scoring and generating; matching
       @@CHECK   the gradient check
       @@BENCH   the benchmark

   Each part relies only on those above it. Adding a cell is adding one entry to CARNN__CELLS (and
   its two functions), adding a task is adding one entry to carnn__heads: help, gradient check,
   golden values, benchmark and model files follow from these tables.

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

   NOT HERE: GPUs, convolutions, transformers, automatic differentiation, half precision.

   CONVENTIONS. Matrices are row-major; a weight matrix is (out, in), as the papers write W x. A
   shape comment such as (N, h) says rows, then columns. Sequences of a batch are packed (@@SEQ).
   Backward functions ADD to gradients of weights and of shared inputs. Descriptions are zeroed
   structs in which 0 means the default and CARNN_NONE means "none". Losses are in nats.

   WHO FREES: what a function returns through a ** belongs to the caller and has a _free; strings
   returned belong to the object that was asked.

   THREADS. A const model may be used by any number of threads, each with its own session. A data
   set is read-only once it is loaded. Training uses threads of its own; no bit of its result
   depends on how many.

   ERRORS. Nothing here exits, aborts or prints. A call that can fail returns a carnn_status and
   fills a carnn_error with words: file, line, what was expected, what was found.

   MEMORY. Every object takes an allocator. Training takes all of its memory before the first step;
   a session is one block whose size is known before. Loading through stb_ds's arrays uses the same
   allocator.

   SAME BYTES. Every sum has one order: an element of a product adds over k upwards with fused
   multiply-add, a dot product has 16 partial sums, threads share outputs and never a sum; exp, tanh
   and the random numbers are our own. So a seed gives the same model file with AVX-512, AVX2, NEON
   and portable C, with any number of threads. Do not build with -ffast-math or a part of it.

   FILES are GGUF version 3: metadata (task, cell, options, seed, scores, vocabulary) and float32
   tensors, aligned so that a file in memory is used in place, and a checksum.

   PAPERS. Tran, Lai, Haffari, Zukerman, Bui, Bui: The Context-dependent Additive Recurrent Neural
   Net, NAACL 2018. Lee, Levy, Zettlemoyer: Recurrent Additive Networks, 2017. Bordes, Boureau,
   Weston: Learning End-to-End Goal-Oriented Dialog, ICLR 2017. Sukhbaatar et al.: End-To-End Memory
   Networks, NIPS 2015.
*/

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

/* ---------------------------------------------------------------------------------------------
   Status and errors. Every call that can fail returns a status; what went wrong in words goes to
   a carnn_error that the caller owns (NULL where the words are not wanted).
   --------------------------------------------------------------------------------------------- */

#define CARNN_STATUS_LIST(X)                                                                       \
    X(CARNN_OK, 0, "done")                                                                         \
    X(CARNN_ERR_MEMORY, -1, "out of memory")                                                       \
    X(CARNN_ERR_ARGUMENT, -2, "an argument is out of range or names something unknown")            \
    X(CARNN_ERR_IO, -3, "a file could not be read or written")                                     \
    X(CARNN_ERR_DATA, -4, "a data file does not follow its format")                                \
    X(CARNN_ERR_MODEL, -5, "a model file is damaged, of another version, or does not fit")         \
    X(CARNN_ERR_DIVERGED, -6, "training met NaN or infinity")                                      \
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

/* ---------------------------------------------------------------------------------------------
   Memory. Each object takes its memory from one allocator (NULL: malloc, realloc and free) and
   gives it back in its _free call. `realloc` with a NULL block allocates; results must be aligned
   as malloc's are.
   --------------------------------------------------------------------------------------------- */

typedef struct carnn_allocator {
    void *(*alloc)(size_t bytes, void *user);
    void *(*realloc)(void *block, size_t bytes, void *user);
    void (*free)(void *block, void *user);
    void *user;
} carnn_allocator;

/* ---------------------------------------------------------------------------------------------
   Sources: what can be read. Files packed by gzip are unpacked where the program gzip is at hand.
   --------------------------------------------------------------------------------------------- */

typedef struct carnn_source { /* a file by name, or bytes in memory */
    const char *name;         /* file name, or what errors should call the bytes */
    const void *bytes;        /* NULL: read the file `name` */
    size_t size;
} carnn_source;

/* ---------------------------------------------------------------------------------------------
   Descriptions. Zero-initialise them: a zero (NULL) field means the documented default, which may
   depend on the task. Where zero itself is a sensible choice, CARNN_NONE (-1) asks for it, e.g.
   `.dropout = CARNN_NONE`.
   --------------------------------------------------------------------------------------------- */

#define CARNN_NONE (-1)

typedef struct carnn_dataset carnn_dataset;

/* What a model is. All of it is kept in the model file. */
typedef struct carnn_model_desc {
    const char *task; /* "dialog", "lm", "answer" */
    const char *cell; /* "icarnn"; carnn_cell_name() lists all */
    int64_t hidden;   /* size of the hidden state */
    int64_t embedding; /* size of the word embeddings */
    int64_t layers;   /* recurrent layers, one on top of the other */
    int64_t min_count; /* words rarer than this in the training data become <unk> */
    int64_t vocab;    /* lm: the most frequent so many words are kept; CARNN_NONE: all */
    const char *context; /* lm: "previous", the sentence before, or "none" */
    int64_t lower;    /* lm: not 0: upper case (of ASCII) is folded to lower case */
    int64_t tied;     /* lm: not 0: the word embedding is the output's weights too */
    double label_weight; /* lm: share of the labels in the loss; CARNN_NONE: they are not learnt */
    const char *label_row; /* lm: the label that the context tells is that of the "previous"
                              sentence (dialog acts) or the sentence's "own" (relations) */
    int64_t history;  /* dialog: the last so many history utterances are kept, at most 1,024;
                         CARNN_NONE: as many */
    int64_t kb_rows;  /* dialog: of each block of knowledge-base lines, the first so many are kept;
                         CARNN_NONE: all */
    const char *model; /* answer: "iwan" or "siamese" */
    const char *decomposition; /* answer, iwan: "orthogonal" or "direct" */
    const char *weighting; /* answer, iwan: weights of words by "attention" or "skip" */
    int64_t overlap;  /* answer: the model is told which words both sentences have, where words are
                         the same if their first so many letters are; CARNN_NONE: it is not */
    const char *loss; /* answer: over every "pair", or over the "rank" of a question's answers */
    const carnn_source *vectors; /* files of word vectors (GloVe, word2vec, .vec) to start from, the
                         first that has a word wins; where `embedding` is 0 it is their size; read
                         when the model is created, not kept in the description */
    size_t vector_count;
    int64_t tune_vectors; /* answer: not 0: word vectors that were read are trained, too */
    const carnn_dataset *const *known; /* answer, with vectors: data sets whose words the model
                         learns to know beside those of the training data: the validation set;
                         entries may be NULL */
    size_t known_count;
    uint64_t seed;    /* of the initial weights and of everything random in training; to 2^53 */
    const char *simd; /* "avx512", "avx2", "neon", "portable"; NULL: $CARNN_SIMD or the best here */
    const carnn_allocator *allocator;
} carnn_model_desc;

/* One report of a running training. Valid during the callback only. */
typedef struct carnn_progress carnn_progress;

/* Called after every few batches and after every epoch; a result other than 0 stops the training
   after the checkpoint has been written, with CARNN_ERR_STOPPED. */
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

/* Both descriptions as a table, for command lines, bindings and forms: one entry per number or
   name that a user may choose, with the same names that the model file uses. */
typedef enum carnn_option_kind {
    CARNN_OPTION_INTEGER,
    CARNN_OPTION_NUMBER,
    CARNN_OPTION_NAME
} carnn_option_kind;

typedef struct carnn_option {
    const char *name;  /* "lr_decay"; a command line may spell it --lr-decay */
    const char *task;  /* the only task that has it; NULL: all have it */
    const char *help;
    carnn_option_kind kind;
    int of_training;   /* 0: in carnn_model_desc, 1: in carnn_train_desc */
    size_t offset;     /* of the field */
    double low, high;  /* inclusive range of numbers */
    int none;          /* zero is a choice: stored as CARNN_NONE */
} carnn_option;

/* The options, *count of them, in the order in which help should show them. */
CARNN_API const carnn_option *carnn_options(size_t *count);

/* What an option of the kind NAME may be: NULL past the last. */
CARNN_API const char *carnn_option_choice(const carnn_option *option, size_t number);

/* Sets one option from text ("256", "0.5", "icarnn") after checking kind and range. A NAME becomes
   the library's own string: `value` need not live on. CARNN_ERR_ARGUMENT: the message names the
   option and, of a number, the range. */
CARNN_API carnn_status carnn_option_set(const carnn_option *option, carnn_model_desc *model,
                                        carnn_train_desc *train, const char *value,
                                        carnn_error *error);

/* Fills every zero field with the default of the task (and, for the model, of the cell). */
CARNN_API carnn_status carnn_defaults(carnn_model_desc *model, carnn_train_desc *train,
                                      carnn_error *error);

/* Names in the tables of cells, tasks, optimisers and SIMD paths: NULL past the last. */
CARNN_API const char *carnn_cell_name(size_t number);
CARNN_API const char *carnn_cell_title(size_t number);
CARNN_API const char *carnn_task_name(size_t number);
CARNN_API const char *carnn_task_title(size_t number);
CARNN_API const char *carnn_optimizer_name(size_t number);
CARNN_API const char *carnn_simd_name(size_t number); /* those that this machine can run */

/* ---------------------------------------------------------------------------------------------
   Data sets. A data set is text read from files in one of the published formats; it knows nothing
   of a vocabulary and can be shared between models and threads.
   --------------------------------------------------------------------------------------------- */

typedef struct carnn_dataset_desc {
    const char *task;
    const carnn_source *sources; /* read one after the other */
    size_t source_count;
    const carnn_source *candidates; /* dialog: one candidate per line; NULL: the distinct
                                       responses of the data */
    int clean; /* answer: not 0: questions without a right or without a wrong answer are left out */
    int lenient; /* not 0: examples that are only to be predicted: responses, labels, words and line
                    numbers may be missing, and so may examples */
    const carnn_allocator *allocator;
} carnn_dataset_desc;

/* Reads the sources. On an error *dataset is NULL and the error names source, line and what was
   expected there. Free with carnn_dataset_free. */
CARNN_API carnn_status carnn_dataset_load(carnn_dataset **dataset, const carnn_dataset_desc *desc,
                                          carnn_error *error);
CARNN_API void carnn_dataset_free(carnn_dataset *dataset);
CARNN_API size_t carnn_dataset_examples(const carnn_dataset *dataset);
CARNN_API size_t carnn_dataset_left_out(const carnn_dataset *dataset); /* questions, by `clean` */

/* ---------------------------------------------------------------------------------------------
   Models, training and scores.
   --------------------------------------------------------------------------------------------- */

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
    size_t count;
    struct {
        const char *name; /* "accuracy" */
        double value;     /* rates are fractions between 0 and 1 */
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
#endif

/* Scores `count` models on a data set: scores[i] for each; where count > 1, scores[count] is
   their vote (plurality, ties by summed probability). */
CARNN_API carnn_status carnn_test(const carnn_model *const *models, size_t count,
                                  const carnn_dataset *data, int64_t threads,
                                  carnn_scores *scores, carnn_error *error);

/* A pair of a question and a sentence as a model has scored it; numbers are from 0. */
typedef struct carnn_pair_score {
    size_t model;    /* `count`: their vote */
    size_t question; /* its number in the data set */
    size_t sentence; /* its number among those of the question */
    int label;
    double score;
} carnn_pair_score;

/* carnn_test that tells more. What metric[0] is the mean of, sum of values / sum of weights, are
   parts: dialogs (turns answered rightly, turns), questions (average precision, 1), or pieces of
   sentences (-log P, words). All models have the same parts in the same order. */
typedef struct carnn_test_desc {
    int64_t threads;
    void (*part)(size_t model, double value, double weight, void *user); /* may be NULL */
    void (*pair)(const carnn_pair_score *pair, void *user); /* answer; in order; may be NULL */
    void *user;
} carnn_test_desc;

CARNN_API carnn_status carnn_test_parts(const carnn_model *const *models, size_t count,
                                        const carnn_dataset *data, const carnn_test_desc *desc,
                                        carnn_scores *scores, carnn_error *error);

/* What a model makes of an example. */
typedef struct carnn_prediction {
    size_t example;            /* its number in the data set, from 0 */
    size_t count;              /* dialog: of the most probable candidates */
    const size_t *candidate;   /* (count) the most probable one first */
    const double *probability; /* (count) */
    double score;              /* answer: of the sentence; lm: sum of -log P of the words */
    size_t tokens;             /* lm: how many words that are, the sentence's end among them */
} carnn_prediction;

typedef struct carnn_predict_desc {
    int64_t threads;
    size_t top; /* dialog: how many candidates are asked for [1] */
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

/* How the model was trained, as used (zeros for a new model), and the epoch of its weights. */
CARNN_API const carnn_train_desc *carnn_model_training(const carnn_model *model);
CARNN_API int64_t carnn_model_best_epoch(const carnn_model *model);

/* What a model is: the complete description, number of parameters, and the names it knows. */
CARNN_API const carnn_model_desc *carnn_model_describe(const carnn_model *model);
CARNN_API size_t carnn_model_parameters(const carnn_model *model);
CARNN_API size_t carnn_model_word_count(const carnn_model *model);
CARNN_API const char *carnn_model_word(const carnn_model *model, size_t number);
CARNN_API size_t carnn_model_candidate_count(const carnn_model *model);
CARNN_API const char *carnn_model_candidate(const carnn_model *model, size_t number);
CARNN_API const carnn_scores *carnn_model_scores(const carnn_model *model); /* of its best epoch */

/* One named array of weights, by number (name NULL past the last): `rows` by `columns` floats. */
typedef struct carnn_tensor {
    const char *name;
    size_t rows, columns;
    const float *value;
} carnn_tensor;
CARNN_API carnn_tensor carnn_model_tensor(const carnn_model *model, size_t number);

/* ---------------------------------------------------------------------------------------------
   Model files: GGUF version 3. Writing is atomic: a temporary file is written, synced, renamed.
   A load from memory that is aligned to 64 uses the weights in place: the bytes must outlive the
   model, which cannot be trained. Bytes that are not so aligned are copied.
   --------------------------------------------------------------------------------------------- */

CARNN_API carnn_status carnn_model_save(const carnn_model *model, const char *file,
                                        carnn_error *error);
CARNN_API carnn_status carnn_model_load(carnn_model **model, const carnn_source *source,
                                        const carnn_allocator *allocator, carnn_error *error);

/* Bytes of the model's file, and the file itself written into memory of at least that size. */
CARNN_API size_t carnn_model_size(const carnn_model *model);
CARNN_API carnn_status carnn_model_write(const carnn_model *model, void *memory, size_t size,
                                         carnn_error *error);

/* Could `file` be written? Tries with a temporary file beside it: to be asked before hours of
   training. */
CARNN_API carnn_status carnn_file_check(const char *file, carnn_error *error);

/* ---------------------------------------------------------------------------------------------
   Sessions: prediction. A session belongs to one thread; any number of sessions share one const
   model. All memory of a session lies in one block that the caller may own; no call below
   allocates.
   --------------------------------------------------------------------------------------------- */

typedef struct carnn_session carnn_session;

/* Bytes that a session of this model needs. */
CARNN_API size_t carnn_session_size(const carnn_model *model);

/* Opens a session in `memory` (carnn_session_size bytes, aligned to 64), or in memory of the
   model's allocator where it is NULL; carnn_session_free gives only the latter back. */
CARNN_API carnn_status carnn_session_open(carnn_session **session, const carnn_model *model,
                                          void *memory, carnn_error *error);
CARNN_API void carnn_session_free(carnn_session *session);

/* Forgets the dialog. */
CARNN_API void carnn_session_reset(carnn_session *session);

typedef enum carnn_speaker { CARNN_USER, CARNN_SYSTEM, CARNN_FACT } carnn_speaker;

/* Adds something said (or a knowledge-base fact) to the history. Any bytes; another speaker than
   those three is not heard. */
CARNN_API void carnn_session_hear(carnn_session *session, carnn_speaker speaker, const char *text,
                                  size_t length);

/* Ranks the candidates as answers to `user` after the history so far: the `count` best, most
   probable first, into candidate[] and probability[] (either may be NULL). Returns how many were
   written. The history is left as it was. */
CARNN_API size_t carnn_session_rank(carnn_session *session, const char *user, size_t length,
                                    size_t count, size_t *candidate, double *probability);

/* Answers `user` and adds both to the history. The reply belongs to the model. */
CARNN_API const char *carnn_session_reply(carnn_session *session, const char *user, size_t length);

/* What one history utterance contributed to an answer (see @@DEPLOY). */
typedef struct carnn_contribution {
    carnn_speaker speaker;
    const char *text; /* as heard, ends with a NUL, may be shortened; belongs to the session */
    double attention; /* alpha of Tran et al. 2018, Eq. 8 */
    double score;     /* what the utterance adds to the logit of the answer */
} carnn_contribution;

/* Explains the last carnn_session_reply, or carnn_session_rank until something else is heard, for
   its best candidate: one entry per utterance that the model read, oldest first, at most `count`
   into out[]; what no utterance accounts for (biases) goes to *rest. For the additive cells this is
   an identity, Eq. 4 and 7: the scores and the rest add up to the logit. Returns how many
   utterances there are. */
CARNN_API size_t carnn_session_explain(carnn_session *session, size_t count,
                                       carnn_contribution *out, double *rest);

/* Language models: sentence after sentence, each with the one before as context; after
   carnn_session_reset the next one begins a document. A sentence is a line of a data file: words
   with blanks between them and maybe a tab and a label, or speaker|text|act. */

/* Reads a sentence: the sum of -log P of its words and its end goes to *nll. Returns how many that
   are. */
CARNN_API size_t carnn_session_score(carnn_session *session, const char *text, size_t length,
                                     double *nll);

/* How words are drawn. Zero means the default. */
typedef struct carnn_sampling {
    double temperature; /* logits are divided by it [1]; CARNN_NONE: take the most probable word */
    int64_t top_k;      /* only among the most probable so many [all] */
    double top_p;       /* only among the most probable that have this probability together [all] */
    uint64_t seed;
    int64_t words;      /* at most so many are drawn for a sentence [100] */
} carnn_sampling;

/* Writes a sentence that begins with the words of `prompt` (may be empty) into text[0 .. size),
   with a NUL; from the first word that does not fit on they are left out. Returns its length. */
CARNN_API size_t carnn_session_generate(carnn_session *session, const carnn_sampling *how,
                                        const char *prompt, size_t length, char *text, size_t size);

/* carnn_session_explain of a language model is about the last piece of at most 256 words that was
   scored, and the most probable word after it, which carnn_session_next_word gives. First come the
   words of the sentence before (speaker CARNN_FACT; attention: their share in the context), then
   those of the piece itself (CARNN_USER; score: what they add to the logit of that word). Cells
   that are not additive leave everything to *rest. */
CARNN_API const char *carnn_session_next_word(const carnn_session *session);

/* Answer models: the score of a sentence as an answer to a question, of any bytes; the higher the
   better. What carnn_test computes for a pair of a data file, bit by bit. */
CARNN_API double carnn_session_match(carnn_session *session, const char *question,
                                     size_t question_length, const char *sentence,
                                     size_t sentence_length);

/* carnn_session_explain of an answer model is about the last match: the words of the question
   (speaker CARNN_USER), then those of the sentence (CARNN_SYSTEM). attention: their weights in
   IWAN, which are 1 in all for each of the two; score: their shares in the last states of the
   sentence's encoder. Of additive cells the shares and the rest, which is that of biases, are 1 in
   all for each of the two (*rest has the sum of both); other cells leave everything to the rest. */

/* What each word of the question (of_sentence 0), or of the sentence (1), of the last match is
   aligned with: (*rows, *columns), a row for each of its words, which is 1 in all, a column for each
   of the other's. NULL where the model has no alignment. Belongs to the session. */
CARNN_API const float *carnn_session_alignment(const carnn_session *session, int of_sentence,
                                               size_t *rows, size_t *columns);

/* ---------------------------------------------------------------------------------------------
   The linear recurrence of the additive cells by itself, over one sequence of any length:

     y_t = A_t * y_{t-1} + Z_t   elementwise;   backward: D_t = G_t + A_{t+1} * D_{t+1},
     dZ_t = D_t, dA_t = D_t * y_{t-1}, dy0 = A_0 * D_0, where G is the gradient at y.

   All arrays are (steps, columns); y0 and dy0 are (columns) and may be NULL (y0: zeros). y may be
   Z, dZ may be G. Threads share the steps; their number changes no bit. A long sequence can be fed
   in chunks: the last row of y is the y0 of the next.
   --------------------------------------------------------------------------------------------- */

CARNN_API carnn_status carnn_recurrence(size_t steps, size_t columns, const float *A,
                                        const float *Z, const float *y0, float *y, int64_t threads,
                                        carnn_error *error);
CARNN_API carnn_status carnn_recurrence_backward(size_t steps, size_t columns, const float *A,
                                                 const float *y, const float *y0, const float *G,
                                                 float *dA, float *dZ, float *dy0,
                                                 int64_t threads, carnn_error *error);

#ifndef CARNN_NO_TRAIN

/* ---------------------------------------------------------------------------------------------
   Self-checks and measurements: one call of `row` per line; its result other than 0 stops.
   --------------------------------------------------------------------------------------------- */

typedef struct carnn_check { /* one line of the gradient check */
    const char *group;       /* "cell", "part", "head" */
    const char *name;        /* "icarnn" */
    size_t numbers;          /* derivatives compared */
    double error;            /* largest relative error among them */
    double limit;
    int passed;
} carnn_check;

/* Compares derivatives with central differences: all entries of the tables, or those whose group
   or name is `only`. CARNN_ERR_ARGUMENT where nothing has that name. */
CARNN_API carnn_status carnn_gradcheck(const char *only, uint64_t seed,
                                       int (*row)(const carnn_check *check, void *user),
                                       void *user, carnn_error *error);

typedef struct carnn_measure { /* one line of the benchmark */
    const char *group;         /* "peak", "kernel", "cell", "task" */
    const char *name;          /* "matmul 32 x 1024 x 1024" */
    const char *unit;          /* "GFLOP/s" */
    double value;              /* median */
    double share;              /* of the measured peak of the machine, 0 where that says nothing */
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

#ifdef __cplusplus
extern "C" {
#endif

/* Blocks, and the matrices of the parameter store, begin at a line of the cache, which is also the
   widest vector. */
#define CARNN__ALIGN 64

#define CARNN__COUNT(array) (sizeof(array) / sizeof((array)[0]))

static inline size_t carnn__min(size_t a, size_t b) { return a < b ? a : b; }
static inline size_t carnn__max(size_t a, size_t b) { return a > b ? a : b; }
/* How many parts of `size` cover n. */
static inline size_t carnn__parts(size_t n, size_t size) { return (n + size - 1) / size; }
static inline size_t carnn__round_up(size_t n, size_t to) { return carnn__parts(n, to) * to; }
/* The size of each of `parts` equal parts that cover n, a multiple of `grain`. */
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

/* Fills `error` (if there is one) and returns `code`, so that callers can write
   `return carnn__fail(...)`. */
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
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

/* Products of sizes that come from files or callers are formed here; SIZE_MAX, which nobody has,
   stands for all that are larger. */
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

/* An aligned block remembers in front of itself where the allocator's block began. */
static void *carnn__alloc_aligned(const carnn_allocator *a, size_t count, size_t size) {
    size_t bytes = carnn__times(count, size);
    char *block, *aligned;
    if (bytes > SIZE_MAX / 2) return NULL;
    block = (char *)a->alloc(bytes + CARNN__ALIGN + sizeof(void *), a->user);
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

/* --- arena -----------------------------------------------------------------------------------
   One block, handed out from the front, given back by resetting `used` to an earlier value. A
   plan is made by running the same code on an arena without memory: it only counts, and `peak`
   then is the size to allocate. */

typedef struct carnn__arena {
    char *base; /* NULL: count only */
    size_t size, used, peak;
} carnn__arena;

/* `count` items of `size` bytes, aligned to a cache line. NULL from a counting arena and from a
   full one; a full one stays full, so one check after many calls is enough. */
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

/* --- random numbers --------------------------------------------------------------------------
   Counter based: number i of stream s is a hash of (seed, s, i). Nothing is carried from one
   number to the next, so any thread can produce any part of a stream. The mixing function is the
   finaliser of SplitMix64 (Steele, Lea and Flood 2014), applied three times. */

static inline uint64_t carnn__mix(uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/* A key for one stream of numbers: of a parameter, of the dropout of one step, of a shuffle. */
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

/* Normal with mean 0 and variance 1 up to the tails: a sum of twelve uniforms, which needs no
   function whose last bit differs between platforms. */
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

/* Seconds since some fixed moment. */
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
#else /* -std=c99 hides the clock that nobody can set; clock() counts all threads' work */
    struct timeval now;
    gettimeofday(&now, NULL);
    return (double)now.tv_sec + 1e-6 * (double)now.tv_usec;
#endif
}

/* --- threads ---------------------------------------------------------------------------------
   A pool runs a job of `count` independent pieces. Pieces are claimed one by one from a shared
   counter, by the workers and by the caller alike, so a worker that the system does not run
   delays nothing. Which thread works on a piece must not matter to its result: pieces split the
   OUTPUT of an operation, never a sum. */

typedef void (*carnn__job_fn)(void *job, size_t piece, size_t worker);

typedef struct carnn__pool carnn__pool;

/* Runs fn(job, piece, worker) for every piece in [0, count) and returns when all are done.
   `worker` is below carnn__pool_threads(pool): an index for scratch memory. A NULL pool runs all
   pieces in the calling thread. */
static void carnn__parallel(carnn__pool *pool, size_t count, carnn__job_fn fn, void *job);
static size_t carnn__pool_threads(const carnn__pool *pool);

/* How many threads would work on a job now: pieces are cut for them. */
static size_t carnn__pool_active(carnn__pool *pool);

/* How many processors the system has online; 1 where it cannot say. */
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

/* Bytes of a processor's second-level cache; 0 where the system cannot say. */
static size_t carnn__second_cache(void) {
#if defined(_SC_LEVEL2_CACHE_SIZE)
    long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return bytes > 0 ? (size_t)bytes : 0;
#else
    return 0;
#endif
}

/* 0: as many as there are processors. */
static size_t carnn__thread_count(int64_t threads) {
    return threads > 0 ? (size_t)threads : carnn__processors();
}

#ifdef CARNN_NO_THREADS

static carnn_status carnn__pool_create(carnn__pool **pool, size_t threads, carnn_allocator a) {
    (void)threads;
    (void)a;
    *pool = NULL;
    return CARNN_OK;
}

static void carnn__pool_free(carnn__pool *pool) { (void)pool; }

static size_t carnn__pool_threads(const carnn__pool *pool) {
    (void)pool;
    return 1;
}

static size_t carnn__pool_active(carnn__pool *pool) { return carnn__pool_threads(pool); }

#define carnn__get(p) (*(p))
#define carnn__put(p, value) ((void)(*(p) = (value)))

static void carnn__parallel(carnn__pool *pool, size_t count, carnn__job_fn fn, void *job) {
    size_t piece;
    (void)pool;
    for (piece = 0; piece < count; piece++) fn(job, piece, 0);
}

#else

/* The few words that the system's threads need, once for POSIX and once for Windows. All atomic
   operations are sequentially consistent; `carnn__cas` returns whether *p was `from`. */
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
#else
typedef pthread_t carnn__thread;
typedef pthread_mutex_t carnn__mutex;
typedef pthread_cond_t carnn__condition;
#define carnn__lock(m) ((void)pthread_mutex_lock(m))
#define carnn__unlock(m) ((void)pthread_mutex_unlock(m))
#define carnn__sleep(c, m) ((void)pthread_cond_wait((c), (m)))
#define carnn__wake(c) ((void)pthread_cond_broadcast(c))
#endif

typedef struct carnn__worker {
    carnn__pool *pool;
    size_t number; /* from 1: the caller is worker 0 */
    carnn__thread thread;
} carnn__worker;

/* The job fields are written by the caller while `left` is 0 and no piece is in progress, and read
   by whoever has claimed a piece, so `left` and `done` order all accesses to them. */
struct carnn__pool {
    carnn_allocator allocator;
    size_t threads; /* with the caller */
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
    volatile long active;  /* threads that work at present: numbers below it */
    /* of the caller, for carnn__pool_watch */
    long preemptions;                 /* seen at `watched` */
    double watched, hold, held_until; /* seconds */
    volatile long stop;
};

/* Seconds that a thread without pieces spins before it sleeps: as long as it takes to wake one.
   Steps of a recurrence follow each other within microseconds. */
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

/* Spins until *word is at least `least`, but not for long; returns whether it is. */
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

/* Claims and runs pieces until none is left, or `worker` is to rest. A `left` that was read during
   an earlier job may be right again by chance: then the piece claimed is one of the job at hand,
   whose fields are read after the claim. */
static void carnn__pool_work(carnn__pool *pool, size_t worker) {
    long left = carnn__get(&pool->left);
    while (left > 0 && carnn__pool_works(pool, worker)) {
        if (carnn__cas(&pool->left, left, left - 1)) {
            long count = pool->count;
            pool->fn(pool->job, (size_t)(count - left), worker);
            if (carnn__add(&pool->done, 1) == count && carnn__get(&pool->waiting)) {
                carnn__lock(&pool->mutex);
                carnn__wake(&pool->finished);
                carnn__unlock(&pool->mutex);
            }
        }
        left = carnn__get(&pool->left);
    }
}

/* Until there is a job, or a change of `active`; once more than needed does no harm. */
static void carnn__worker_sleep(carnn__worker *self) {
    carnn__pool *pool = self->pool;
    int active;
    carnn__lock(&pool->mutex);
    active = carnn__pool_works(pool, self->number);
    if (active) carnn__add(&pool->asleep, 1); /* before the look at `left`: see carnn__pool_run */
    if (!carnn__get(&pool->stop) && (!active || !carnn__get(&pool->left)))
        carnn__sleep(&pool->work, &pool->mutex);
    if (active) carnn__add(&pool->asleep, -1);
    carnn__unlock(&pool->mutex);
}

static void carnn__worker_loop(carnn__worker *self) {
    carnn__pool *pool = self->pool;
    while (!carnn__get(&pool->stop)) {
        if (carnn__pool_works(pool, self->number) && carnn__pool_spin(&pool->left, 1))
            carnn__pool_work(pool, self->number);
        else
            carnn__worker_sleep(self);
    }
}

#if defined(_WIN32)
static DWORD WINAPI carnn__worker_main(void *self) {
    carnn__worker_loop((carnn__worker *)self);
    return 0;
}
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
static void *carnn__worker_main(void *self) {
    carnn__worker_loop((carnn__worker *)self);
    return NULL;
}
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
    carnn__lock(&pool->mutex);
    carnn__wake(&pool->work);
    carnn__unlock(&pool->mutex);
    for (i = 1; i < pool->threads; i++) carnn__thread_join(&pool->workers[i - 1]);
    carnn__pool_unlocks(pool);
    carnn__free(&pool->allocator, pool);
}

/* Between jobs: how many threads work on the next ones. */
static void carnn__pool_resize(carnn__pool *pool, long active) {
    carnn__lock(&pool->mutex);
    carnn__put(&pool->active, active);
    carnn__wake(&pool->work);
    carnn__unlock(&pool->mutex);
}

/* A pool of `threads` threads with the caller: threads - 1 are started. 1 needs no pool: *pool is
   NULL then. Threads that the system does not give are done without. */
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

static size_t carnn__pool_threads(const carnn__pool *pool) { return pool ? pool->threads : 1; }

static size_t carnn__pool_active(carnn__pool *pool) {
    return pool ? (size_t)carnn__get(&pool->active) : 1;
}

/* How often the system has taken the processor from a thread of this program; 0 where it cannot
   say. */
static long carnn__preemptions(void) {
#if defined(RUSAGE_SELF)
    struct rusage use;
    return getrusage(RUSAGE_SELF, &use) ? 0 : use.ru_nivcsw;
#else
    return 0;
#endif
}

/* Beside a busy process a worker loses its processor for milliseconds, often with a piece half done
   for which all others wait. Preemptions show it: some tens of them a second are usual, hundreds
   mean that there are more threads than processors. One worker less works then, and comes back
   after a while; where that goes wrong again the while is doubled. Seconds. */
#define CARNN__WATCH 0.025
#define CARNN__PREEMPTIONS 300.0 /* a second */
#define CARNN__HOLD 0.2
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

/* Posts a job, works on it, and waits for the pieces of others. */
static void carnn__pool_run(carnn__pool *pool, long count, carnn__job_fn fn, void *job) {
    pool->fn = fn;
    pool->job = job;
    pool->count = count;
    carnn__put(&pool->done, 0);
    carnn__put(&pool->left, count);
    /* Either this sees the worker in `asleep`, or the worker, which looks at `left` after it has
       entered itself there, sees the job: no wake-up is lost. */
    if (carnn__get(&pool->asleep)) {
        carnn__lock(&pool->mutex);
        carnn__wake(&pool->work);
        carnn__unlock(&pool->mutex);
    }
    carnn__pool_work(pool, 0);
    if (carnn__pool_spin(&pool->done, count)) return;
    carnn__lock(&pool->mutex);
    carnn__put(&pool->waiting, 1);
    while (carnn__get(&pool->done) < count) carnn__sleep(&pool->finished, &pool->mutex);
    carnn__put(&pool->waiting, 0);
    carnn__unlock(&pool->mutex);
}

static void carnn__parallel(carnn__pool *pool, size_t count, carnn__job_fn fn, void *job) {
    if (count < 2 || count > LONG_MAX || carnn__pool_active(pool) == 1) {
        size_t piece;
        for (piece = 0; piece < count; piece++) fn(job, piece, 0);
    } else {
        carnn__pool_run(pool, (long)count, fn, job);
    }
    if (pool) carnn__pool_watch(pool); /* after one piece, too: where one thread works, all are */
}

#endif /* CARNN_NO_THREADS */

#endif /* CARNN_IMPLEMENTATION */
/* --- what the kernels work on ----------------------------------------------------------------
   The kernels of all parts are compiled once per instruction set (see @@SIMD), so the structs that
   they take are declared before them. */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

/* A kernel that works on the range [from, to) of the output that its job describes. */
typedef void (*carnn__range_fn)(const void *job, size_t from, size_t to);

/* One step of an optimiser (@@PARAM). */
typedef struct carnn__update {
    float *w;           /* weights */
    float *g;           /* gradients, same layout; zeros afterwards */
    float *moment[2];
    float clip;         /* factor that brings the gradient to the clipping norm */
    float keep;         /* 1 - lr weight_decay */
    float lr, a, a1, b, b1, eps; /* a1 = 1 - a, b1 = 1 - b */
    float correct;      /* Adam: 1 / sqrt(1 - b^t) */
} carnn__update;

/* The sequences of a batch without padding (@@SEQ): sorted by falling length and laid out time
   first, so that step t is the block of rows start[t] .. start[t + 1] - 1, and the sequence of
   rank b has row start[t] + b in it. */
typedef struct carnn__packed {
    size_t sequences;    /* B */
    size_t steps;        /* T: the longest length */
    size_t rows;         /* N: the sum of the lengths */
    const size_t *start; /* (T + 1) */
} carnn__packed;

/* A cell's way over a packed batch (@@CELL). B sequences, N rows, U distinct inputs, h columns.
   Gates lie side by side in a row: gate g of row r is at (r * gates + g) * h. */
typedef struct carnn__scan {
    const carnn__packed *seq;
    size_t first, end;     /* the ranks of the sequences that are run: [first, end) */
    size_t h;
    const uint32_t *index; /* (N) which input each row has; NULL: row r has input r */
    const float *x;        /* (U, h) the inputs, for cells whose candidate is the input itself */
    const float *px;       /* (U, gates h) input projections with biases */
    const float *pc;       /* (B, context gates h) context projections */
    float *ph;             /* (B, recurrent gates h) projections of h_{t-1} at the step at hand */
    const float *h0, *c0;  /* (B, h) initial states; never NULL: zeros where not given */
    float *tape;           /* (N, tape h) what backward needs of each row */
    float *out;            /* (N, h) hidden states */
    float *reset;          /* (B, h) of a GRU that resets before the product: r * h_{t-1}; backward
                              the gradient there */
    int stage;             /* of a step with two products */
    /* backward; the gradients of inputs and context projections are added to */
    const float *dout;     /* (N, h) gradient that reaches h_t from outside the recurrence */
    float *dh, *dc;        /* (B, h) gradient that reaches h_t, c_t from the steps after t */
    float *dx;             /* (U, h) */
    float *dpx;            /* (U, gates h) */
    float *dpc;            /* (B, context gates h) */
    float *dph;            /* (N, recurrent gates h) */
} carnn__scan;

/* Where the ranks end that are run at step t: their sequences may all be shorter. */
static inline size_t carnn__scan_end(const carnn__scan *s, size_t t) {
    size_t live = s->seq->start[t + 1] - s->seq->start[t];
    return carnn__max(carnn__min(s->end, live), s->first);
}

/* Steps [t0, t1) forwards (backwards: from t1 - 1 down to t0), columns [from, to). */
typedef void (*carnn__scan_fn)(const carnn__scan *s, size_t t0, size_t t1, size_t from, size_t to);

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

/* The words of a sentence beside their alignments (@@PART), taken apart and summed up. */
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

#define CARNN__NOWHERE UINT32_MAX

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

/* The table of optimisers, see @@PARAM.
   name, moments (arrays beside the weights), learning rate, a, b, eps */
#define CARNN__OPTIMIZERS(X)                                                                       \
    X(sgd, 0, 0.1, 0.0, 0.0, 0.0)                                                                  \
    X(adagrad, 1, 0.01, 0.0, 0.0, 1e-8)                                                            \
    X(rmsprop, 1, 0.001, 0.9, 0.0, 1e-8)                                                           \
    X(adadelta, 2, 1.0, 0.95, 0.0, 1e-6)                                                           \
    X(adam, 2, 0.001, 0.9, 0.999, 1e-8)

enum {
#define CARNN__OPTIMIZER_NUMBER(name, moments, lr, a, b, eps) CARNN__OPTIMIZER_##name,
    CARNN__OPTIMIZERS(CARNN__OPTIMIZER_NUMBER)
#undef CARNN__OPTIMIZER_NUMBER
    CARNN__OPTIMIZER_COUNT
};

/* The table of cells: one entry each, see @@CELL.
   id, name, title, then the number of gates: projected from the input, of these with a bias,
   projected from the context, projected from the hidden state (and whether with a bias); numbers
   of h floats on the tape; the gate whose bias does not start at 0, and where it starts; flags. */
#define CARNN__CELLS(X)                                                                            \
    X(rnn, "rnn", "vanilla RNN, tanh", 1, 1, 0, 1, 0, 0, 0, 0.0f, 0)                               \
    X(lstm, "lstm", "LSTM", 4, 4, 0, 4, 0, 5, 1, 1.0f, CARNN__HAS_CELL_STATE)                      \
    X(gru, "gru", "GRU, reset before the product", 3, 3, 0, 3, 0, 4, 0, 0.0f, CARNN__TWO_STAGES)   \
    X(gru_after, "gru-after", "GRU, reset after the product (two biases)", 3, 3, 0, 3, 1, 4, 0,    \
      0.0f, 0)                                                                                     \
    X(ran, "ran", "RAN, identity", 3, 2, 0, 2, 0, 2, 0, 0.0f, 0)                                   \
    X(ran_tanh, "ran-tanh", "RAN, tanh", 3, 2, 0, 2, 0, 3, 0, 0.0f, CARNN__HAS_CELL_STATE)         \
    X(ncarnn, "ncarnn", "CARNN whose gates read context, state and input", 3, 3, 2, 2, 0, 2, 0,    \
      0.0f, 0)                                                                                     \
    X(icarnn, "icarnn", "CARNN whose gates read context and input", 3, 3, 2, 0, 0, 0, 0, 0.0f, 0)  \
    X(scarnn, "scarnn", "iCARNN whose candidate is the input itself", 2, 2, 2, 0, 0, 0, 0, 0.0f,   \
      CARNN__INPUT_IS_CANDIDATE)                                                                   \
    X(carnn_low, "carnn-low", "sCARNN without the forget gate", 1, 1, 1, 0, 0, 0, 0, 0.0f,         \
      CARNN__INPUT_IS_CANDIDATE)                                                                   \
    X(carnn_high, "carnn-high", "LSTM whose gates read the context too", 4, 4, 3, 4, 0, 5, 1,      \
      1.0f, CARNN__HAS_CELL_STATE)                                                                 \
    X(ncarnn_free, "ncarnn-free", "nCARNN without a context", 3, 3, 0, 2, 0, 2, 0, 0.0f, 0)

enum {
    CARNN__INPUT_IS_CANDIDATE = 1, /* needs inputs of the size of the hidden state */
    CARNN__HAS_CELL_STATE = 2,     /* carries c beside h */
    CARNN__TWO_STAGES = 4          /* the last recurrent gate is projected from r * h_{t-1} */
};

enum {
#define CARNN__CELL_NUMBER(id, name, title, g, gb, gc, gh, gr, tape, gate, bias, flags)            \
    CARNN__CELL_##id,
    CARNN__CELLS(CARNN__CELL_NUMBER)
#undef CARNN__CELL_NUMBER
    CARNN__CELL_COUNT
};

#endif

/* =============================================================================================
   @@SIMD   vectors of sixteen floats, and the kernels compiled once per instruction set

   A kernel is written once, in terms of a vector of sixteen floats, and compiled once for each
   instruction set: this header includes itself with CARNN__ISA defined, and on such a pass only
   the kernel sections (#if defined(CARNN__ISA)) are left of it. The best set that the machine
   has is chosen when an engine is opened; no compiler flags are needed.

   Every path gives the same bits. Sixteen lanes are one register of AVX-512, two of AVX2, four
   of NEON and a plain array elsewhere, so no result can depend on the width; a multiply-add is
   always fused, everywhere; and sums over lanes are added in one fixed order.
   ============================================================================================= */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

#if !defined(CARNN_NO_SIMD) && defined(__GNUC__) && defined(__x86_64__)
#define CARNN__HAS_X86 1
#elif !defined(CARNN_NO_SIMD) && defined(__GNUC__) && defined(__aarch64__) &&                      \
    defined(__ARM_NEON) && !defined(__AARCH64EB__)
#define CARNN__HAS_NEON 1
#endif

#ifdef __cplusplus
} /* the system's headers bring their own linkage */
#endif
#if defined(CARNN__HAS_X86)
#if !defined(__clang__) /* gcc's header warns of a variable that it leaves undefined on purpose */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#elif defined(CARNN__HAS_NEON)
#include <arm_neon.h>
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* From here to the end of the header a * b + c is two roundings unless it says fma: whether a
   compiler would fuse it depends on flags, and the results must not. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC push_options
#pragma GCC optimize("fp-contract=off")
/* Passes of -O2 that find nothing in code which is vector operations already. */
#pragma GCC optimize("no-tree-pre", "no-tree-slp-vectorize")
#elif defined(_MSC_VER)
#pragma fp_contract(off)
#endif

/* Loops over the registers of a tile have constant bounds after inlining and are unrolled
   completely, which is what keeps arrays of vectors in registers; its steps go four at a time. */
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
#define CARNN__PREFETCH_2(address) __builtin_prefetch((address), 0, 2) /* into level 2, to be read */
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
    float *copy;            /* where the first rows of A leave a dense copy of a panel, or NULL */
    const float *start;     /* (n) start value of every row, NULL: zero */
    int add;                /* the start value is what c holds */
    float *c;               /* (m, n) */
    size_t c_row;
    size_t ahead;           /* distance from c to the tile that comes next, 0: the rows below */
    int fetch;              /* a packed b comes from afar: each panel is to be asked for in time */
} carnn__panel;

/* The kernels of an instruction set: name, type of the result, arguments. */
#define CARNN__KERNELS(X)                                                                          \
    /* @@MATH: y = f(x); y may be x */                                                             \
    X(exp_n, void, (const float *x, float *y, size_t n))                                           \
    X(sigmoid_n, void, (const float *x, float *y, size_t n))                                       \
    X(tanh_n, void, (const float *x, float *y, size_t n))                                          \
    /* the row becomes its softmax; returns the logarithm of the sum of exp(x[i]) */               \
    X(softmax, float, (float *row, size_t n))                                                      \
    /* y *= factor; y += x */                                                                      \
    X(scale, void, (float *y, float factor, size_t n))                                             \
    X(add, void, (const float *x, float *y, size_t n))                                             \
    /* y moves towards x by a share of the way */                                                  \
    X(approach, void, (const float *x, float *y, float share, size_t n))                           \
    /* the place of the largest number, of the first of equal ones */                              \
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
    /* @@CELL, on a range of blocks */                                                             \
    X(recur, void, (const void *job, size_t from, size_t to))                                      \
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
    size_t tile_rows;    /* of a product that are computed together */
    size_t tile_columns; /* likewise, a multiple of 16: the columns of a panel */
#define CARNN__KERNEL_FIELD(name, result, arguments) result(*name) arguments;
    CARNN__KERNELS(CARNN__KERNEL_FIELD)
#undef CARNN__KERNEL_FIELD
    carnn__range_fn optimize[CARNN__OPTIMIZER_COUNT]; /* @@PARAM */
    carnn__scan_fn cell_forward[CARNN__CELL_COUNT], cell_backward[CARNN__CELL_COUNT]; /* @@CELL */
} carnn__kernels;

/* --- the passes ------------------------------------------------------------------------------ */

#ifndef CARNN_FILE
#define CARNN_FILE "carnn.h" /* define it where the header goes by another name */
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

/* In plain C an operation is a loop over sixteen lanes. Inlined everywhere, these loops would keep
   the compiler busy for minutes; called, they are as fast, since vectors lie in memory anyway. */
#pragma push_macro("CARNN__INLINE")
#pragma push_macro("CARNN__UNROLL")
#pragma push_macro("CARNN__UNROLL_4")
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
#pragma pop_macro("CARNN__INLINE")
#pragma pop_macro("CARNN__UNROLL")
#pragma pop_macro("CARNN__UNROLL_4")

#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__) && !defined(__OPTIMIZE_SIZE__)
/* From here to the end of the header no loop counts that is not in the kernels: gcc needs half as
   long for it at -O1. Without expensive-optimizations it would leave out vzeroupper, and scalar
   code after a kernel would run at a sixth of its speed. */
#pragma GCC optimize("O1", "strict-aliasing", "expensive-optimizations")
#endif

/* --- the choice ------------------------------------------------------------------------------ */

/* The kernels that this machine can run, best first; NULL past the last. */
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

/* The path called `name`, or where it is NULL the one that $CARNN_SIMD names, or the best; NULL
   where there is no such path on this machine. */
static const carnn__kernels *carnn__simd_select(const char *name) {
    const carnn__kernels *k;
    size_t i;
    if (!name) name = getenv("CARNN_SIMD");
    for (i = 0; (k = carnn__simd_number(i)) != NULL; i++)
        if (!name || !*name || !strcmp(name, k->name)) return k;
    return NULL;
}

#endif /* CARNN_IMPLEMENTATION */

#if defined(CARNN__ISA)

/* --- the vector ------------------------------------------------------------------------------
   v(max)(a, b) is a > b ? a : b and v(min)(a, b) is a < b ? a : b on every path: where either is
   NaN the result is b, so v(max)(bound, x) lets a NaN in x through and v(max)(x, bound) does not.
   v(scale2)(v, n) is v * 2^n for |v| in [1/4, 4] and integral n in [-252, 252]; results below
   the normal range are rounded once; v(power2)(n) is 2^n for n in [-126, 127]. v(sum) adds lanes
   i and i + 8, then i + 4, i + 2, i + 1; v(largest) is the largest lane. v(fnma)(a, b, c) is
   c - a b, v(signed)(a, s) is |a| with the sign of s, v(if_less)(a, b, yes, no) chooses lane by
   lane, `no` where one of them is NaN.
   v(keep)(v, n) sets the lanes from n on to zero. The loads and stores that end in n touch only
   the first n floats; loadn fills up with zeros, loadf with `fill`. v(transpose) transposes the
   block of 16 by 16 floats whose rows are ld apart: lane i of out[j] is p[i * ld + j]. */

/* Does the compiler know that these are all lanes? Then a masked access becomes a plain one. */
#if defined(__GNUC__) && !defined(CARNN__PORTABLE)
#define CARNN__ALL(n) (__builtin_constant_p(n) && (n) == CARNN__LANES)
#else
#define CARNN__ALL(n) ((n) == CARNN__LANES)
#endif

#if defined(CARNN__AVX512)

typedef __m512 carnn__v;

#define CARNN__MASK(n) ((__mmask16)((1u << (n)) - 1u))
static CARNN__INLINE carnn__v CARNN__V(load)(const float *p) { return _mm512_loadu_ps(p); }
static CARNN__INLINE carnn__v CARNN__V(loadn)(const float *p, size_t n) {
    if (CARNN__ALL(n)) return CARNN__V(load)(p);
    return _mm512_maskz_loadu_ps(CARNN__MASK(n), p);
}
static CARNN__INLINE carnn__v CARNN__V(loadf)(const float *p, size_t n, float fill) {
    return _mm512_mask_loadu_ps(_mm512_set1_ps(fill), CARNN__MASK(n), p);
}
static CARNN__INLINE void CARNN__V(store)(float *p, carnn__v a) { _mm512_storeu_ps(p, a); }
static CARNN__INLINE void CARNN__V(storen)(float *p, size_t n, carnn__v a) {
    if (CARNN__ALL(n)) {
        CARNN__V(store)(p, a);
        return;
    }
    _mm512_mask_storeu_ps(p, CARNN__MASK(n), a);
}
static CARNN__INLINE carnn__v CARNN__V(keep)(carnn__v a, size_t n) {
    return _mm512_maskz_mov_ps(CARNN__MASK(n), a);
}
static CARNN__INLINE carnn__v CARNN__V(set1)(float x) { return _mm512_set1_ps(x); }
static CARNN__INLINE carnn__v CARNN__V(zero)(void) { return _mm512_setzero_ps(); }
static CARNN__INLINE carnn__v CARNN__V(add)(carnn__v a, carnn__v b) { return _mm512_add_ps(a, b); }
static CARNN__INLINE carnn__v CARNN__V(sub)(carnn__v a, carnn__v b) { return _mm512_sub_ps(a, b); }
static CARNN__INLINE carnn__v CARNN__V(mul)(carnn__v a, carnn__v b) { return _mm512_mul_ps(a, b); }
static CARNN__INLINE carnn__v CARNN__V(div)(carnn__v a, carnn__v b) { return _mm512_div_ps(a, b); }
static CARNN__INLINE carnn__v CARNN__V(sqrt)(carnn__v a) { return _mm512_sqrt_ps(a); }
static CARNN__INLINE carnn__v CARNN__V(max)(carnn__v a, carnn__v b) { return _mm512_max_ps(a, b); }
static CARNN__INLINE carnn__v CARNN__V(min)(carnn__v a, carnn__v b) { return _mm512_min_ps(a, b); }
static CARNN__INLINE carnn__v CARNN__V(fma)(carnn__v a, carnn__v b, carnn__v c) {
    return _mm512_fmadd_ps(a, b, c);
}
static CARNN__INLINE carnn__v CARNN__V(fnma)(carnn__v a, carnn__v b, carnn__v c) {
    return _mm512_fnmadd_ps(a, b, c);
}
static CARNN__INLINE carnn__v CARNN__V(scale2)(carnn__v a, carnn__v n) {
    return _mm512_scalef_ps(a, n);
}
static CARNN__INLINE carnn__v CARNN__V(power2)(carnn__v n) {
    return _mm512_scalef_ps(_mm512_set1_ps(1.0f), n);
}
static CARNN__INLINE carnn__v CARNN__V(abs)(carnn__v a) { return _mm512_abs_ps(a); }
static CARNN__INLINE carnn__v CARNN__V(signed)(carnn__v a, carnn__v sign) {
    __m512i bits = _mm512_set1_epi32(INT32_MIN); /* sign ? sign : a, bit by bit */
    return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(bits, _mm512_castps_si512(sign),
                                                         _mm512_castps_si512(a), 0xCA));
}
static CARNN__INLINE carnn__v CARNN__V(if_less)(carnn__v a, carnn__v b, carnn__v yes, carnn__v no) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), no, yes);
}
#define CARNN__HALVES(name, op)                                                                    \
    static CARNN__INLINE float CARNN__V(name)(carnn__v v) {                                        \
        __m256 a = _mm256_##op##_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));      \
        __m128 b = _mm_##op##_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));          \
        b = _mm_##op##_ps(b, _mm_movehl_ps(b, b));                                                 \
        return _mm_cvtss_f32(_mm_##op##_ss(b, _mm_movehdup_ps(b)));                                \
    }
CARNN__HALVES(sum, add)
CARNN__HALVES(largest, max)
#undef CARNN__HALVES

/* Four rounds that exchange rows at distance 1, 2, 4 and 8: 64 shuffles, all on one port, which is
   a quarter of a cycle for each number. Every cache line is read once, as a row: rows of matrices
   whose width is a power of two fall into the same few places of the first-level cache. */
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
    CARNN__UNROLL for (i = 0; i < 4; i++) { /* quarters of 4 rows to halves of 8 */
        b[i] = _mm512_shuffle_f32x4(a[i], a[i + 4], 0x88);
        b[i + 4] = _mm512_shuffle_f32x4(a[i], a[i + 4], 0xDD);
        b[i + 8] = _mm512_shuffle_f32x4(a[i + 8], a[i + 12], 0x88);
        b[i + 12] = _mm512_shuffle_f32x4(a[i + 8], a[i + 12], 0xDD);
    }
    CARNN__UNROLL for (i = 0; i < 8; i++) {
        out[i] = _mm512_shuffle_f32x4(b[i], b[i + 8], 0x88);
        out[i + 8] = _mm512_shuffle_f32x4(b[i], b[i + 8], 0xDD);
    }
}

#elif defined(CARNN__AVX2)

typedef struct CARNN__K(pair) {
    __m256 lo, hi;
} carnn__v;

static CARNN__INLINE carnn__v CARNN__V(make)(__m256 lo, __m256 hi) {
    carnn__v v;
    v.lo = lo;
    v.hi = hi;
    return v;
}
/* All ones in the lanes below n, counted from `first`. */
static CARNN__INLINE __m256i CARNN__V(below)(size_t n, int first) {
    __m256i lane = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                                    _mm256_set1_epi32(first));
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane);
}
static CARNN__INLINE carnn__v CARNN__V(load)(const float *p) {
    return CARNN__V(make)(_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8));
}
static CARNN__INLINE carnn__v CARNN__V(loadn)(const float *p, size_t n) {
    if (CARNN__ALL(n)) return CARNN__V(load)(p);
    return CARNN__V(make)(_mm256_maskload_ps(p, CARNN__V(below)(n, 0)),
                          _mm256_maskload_ps(p + 8, CARNN__V(below)(n, 8)));
}
static CARNN__INLINE carnn__v CARNN__V(loadf)(const float *p, size_t n, float fill) {
    carnn__v v = CARNN__V(loadn)(p, n);
    __m256 f = _mm256_set1_ps(fill);
    v.lo = _mm256_blendv_ps(f, v.lo, _mm256_castsi256_ps(CARNN__V(below)(n, 0)));
    v.hi = _mm256_blendv_ps(f, v.hi, _mm256_castsi256_ps(CARNN__V(below)(n, 8)));
    return v;
}
static CARNN__INLINE void CARNN__V(store)(float *p, carnn__v a) {
    _mm256_storeu_ps(p, a.lo);
    _mm256_storeu_ps(p + 8, a.hi);
}
static CARNN__INLINE void CARNN__V(storen)(float *p, size_t n, carnn__v a) {
    if (CARNN__ALL(n)) {
        CARNN__V(store)(p, a);
        return;
    }
    _mm256_maskstore_ps(p, CARNN__V(below)(n, 0), a.lo);
    _mm256_maskstore_ps(p + 8, CARNN__V(below)(n, 8), a.hi);
}
static CARNN__INLINE carnn__v CARNN__V(keep)(carnn__v a, size_t n) {
    a.lo = _mm256_and_ps(a.lo, _mm256_castsi256_ps(CARNN__V(below)(n, 0)));
    a.hi = _mm256_and_ps(a.hi, _mm256_castsi256_ps(CARNN__V(below)(n, 8)));
    return a;
}
static CARNN__INLINE carnn__v CARNN__V(set1)(float x) {
    __m256 v = _mm256_set1_ps(x);
    return CARNN__V(make)(v, v);
}
static CARNN__INLINE carnn__v CARNN__V(zero)(void) {
    return CARNN__V(make)(_mm256_setzero_ps(), _mm256_setzero_ps());
}
#define CARNN__LANEWISE(name, op)                                                                  \
    static CARNN__INLINE carnn__v CARNN__V(name)(carnn__v a, carnn__v b) {                         \
        return CARNN__V(make)(_mm256_##op##_ps(a.lo, b.lo), _mm256_##op##_ps(a.hi, b.hi));         \
    }
CARNN__LANEWISE(add, add)
CARNN__LANEWISE(sub, sub)
CARNN__LANEWISE(mul, mul)
CARNN__LANEWISE(div, div)
CARNN__LANEWISE(max, max)
CARNN__LANEWISE(min, min)
#undef CARNN__LANEWISE
static CARNN__INLINE carnn__v CARNN__V(sqrt)(carnn__v a) {
    return CARNN__V(make)(_mm256_sqrt_ps(a.lo), _mm256_sqrt_ps(a.hi));
}
static CARNN__INLINE carnn__v CARNN__V(fma)(carnn__v a, carnn__v b, carnn__v c) {
    return CARNN__V(make)(_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi));
}
static CARNN__INLINE carnn__v CARNN__V(fnma)(carnn__v a, carnn__v b, carnn__v c) {
    return CARNN__V(make)(_mm256_fnmadd_ps(a.lo, b.lo, c.lo), _mm256_fnmadd_ps(a.hi, b.hi, c.hi));
}
/* 2^n as two factors, each a normal float, since 2^n itself may not be one. */
static CARNN__INLINE __m256 CARNN__V(half_scale2)(__m256 a, __m256 n) {
    __m256i whole = _mm256_cvtps_epi32(n), first = _mm256_srai_epi32(whole, 1);
    __m256i second = _mm256_sub_epi32(whole, first), bias = _mm256_set1_epi32(127);
    first = _mm256_slli_epi32(_mm256_add_epi32(first, bias), 23);
    second = _mm256_slli_epi32(_mm256_add_epi32(second, bias), 23);
    return _mm256_mul_ps(_mm256_mul_ps(a, _mm256_castsi256_ps(first)),
                         _mm256_castsi256_ps(second));
}
static CARNN__INLINE __m256 CARNN__V(half_power2)(__m256 n) {
    __m256i biased = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
}
static CARNN__INLINE carnn__v CARNN__V(power2)(carnn__v n) {
    return CARNN__V(make)(CARNN__V(half_power2)(n.lo), CARNN__V(half_power2)(n.hi));
}
static CARNN__INLINE carnn__v CARNN__V(scale2)(carnn__v a, carnn__v n) {
    return CARNN__V(make)(CARNN__V(half_scale2)(a.lo, n.lo), CARNN__V(half_scale2)(a.hi, n.hi));
}
static CARNN__INLINE carnn__v CARNN__V(abs)(carnn__v a) {
    __m256 sign = _mm256_set1_ps(-0.0f);
    return CARNN__V(make)(_mm256_andnot_ps(sign, a.lo), _mm256_andnot_ps(sign, a.hi));
}
static CARNN__INLINE carnn__v CARNN__V(signed)(carnn__v a, carnn__v sign) {
    __m256 bit = _mm256_set1_ps(-0.0f);
    return CARNN__V(make)(
        _mm256_or_ps(_mm256_and_ps(bit, sign.lo), _mm256_andnot_ps(bit, a.lo)),
        _mm256_or_ps(_mm256_and_ps(bit, sign.hi), _mm256_andnot_ps(bit, a.hi)));
}
static CARNN__INLINE carnn__v CARNN__V(if_less)(carnn__v a, carnn__v b, carnn__v yes, carnn__v no) {
    return CARNN__V(make)(_mm256_blendv_ps(no.lo, yes.lo, _mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ)),
                          _mm256_blendv_ps(no.hi, yes.hi, _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ)));
}
#define CARNN__HALVES(name, op)                                                                    \
    static CARNN__INLINE float CARNN__V(name)(carnn__v v) {                                        \
        __m256 a = _mm256_##op##_ps(v.lo, v.hi);                                                   \
        __m128 b = _mm_##op##_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));          \
        b = _mm_##op##_ps(b, _mm_movehl_ps(b, b));                                                 \
        return _mm_cvtss_f32(_mm_##op##_ss(b, _mm_movehdup_ps(b)));                                \
    }
CARNN__HALVES(sum, add)
CARNN__HALVES(largest, max)
#undef CARNN__HALVES

/* Eight rows by four columns: lane L of a register holds rows 4 L .. 4 L + 3 of a column. */
static CARNN__INLINE void CARNN__V(transpose8)(const float *p, size_t ld, __m256 *out) {
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
}
static CARNN__INLINE void CARNN__V(transpose)(const float *p, size_t ld, carnn__v *out) {
    __m256 part[4];
    size_t i, j;
    for (j = 0; j < 16; j += 4) {
        CARNN__V(transpose8)(p + j, ld, part);
        CARNN__UNROLL for (i = 0; i < 4; i++) out[j + i].lo = part[i];
    }
    for (j = 0; j < 16; j += 4) {
        CARNN__V(transpose8)(p + 8 * ld + j, ld, part);
        CARNN__UNROLL for (i = 0; i < 4; i++) out[j + i].hi = part[i];
    }
}

/* y[i] continues its chain of fused multiply-adds with row i of b (8 groups, k) and x. A column of
   eight rows goes from the shuffles to its sum without a detour over memory, as it must in blocks
   of sixteen, and the groups' sums do not wait for each other. k is a multiple of 4. */
#define CARNN__DOT_ROWS 8
static CARNN__INLINE void CARNN__V(row_dots)(size_t groups, size_t k, const float *x,
                                                const float *b, size_t ld, float *y) {
    __m256 sum[3], column[4];
    size_t g, i, p;
    CARNN__UNROLL for (g = 0; g < groups; g++) sum[g] = _mm256_loadu_ps(y + 8 * g);
    for (p = 0; p < k; p += 4) {
        CARNN__UNROLL for (g = 0; g < groups; g++) {
            CARNN__V(transpose8)(b + 8 * g * ld + p, ld, column);
            CARNN__UNROLL for (i = 0; i < 4; i++)
                sum[g] = _mm256_fmadd_ps(_mm256_broadcast_ss(x + p + i), column[i], sum[g]);
        }
    }
    CARNN__UNROLL for (g = 0; g < groups; g++) _mm256_storeu_ps(y + 8 * g, sum[g]);
}

#else /* NEON: four registers; portable: sixteen floats */

#if defined(CARNN__NEON)
#define CARNN__PARTS 4
typedef float32x4_t CARNN__K(part);
#define CARNN__PART_LOAD(p) vld1q_f32(p)
#define CARNN__PART_STORE(p, a) vst1q_f32(p, a)
#define CARNN__PART_SET(x) vdupq_n_f32(x)
#define CARNN__PART_ADD(a, b) vaddq_f32(a, b)
#define CARNN__PART_SUB(a, b) vsubq_f32(a, b)
#define CARNN__PART_MUL(a, b) vmulq_f32(a, b)
#define CARNN__PART_DIV(a, b) vdivq_f32(a, b)
#define CARNN__PART_SQRT(a) vsqrtq_f32(a)
#define CARNN__PART_FMA(a, b, c) vfmaq_f32(c, a, b)
#define CARNN__PART_FNMA(a, b, c) vfmsq_f32(c, a, b)
#define CARNN__PART_ABS(a) vabsq_f32(a)
#define CARNN__PART_SIGNED(a, s) vbslq_f32(vdupq_n_u32(0x80000000u), s, a)
#define CARNN__PART_IF_LESS(a, b, yes, no) vbslq_f32(vcltq_f32(a, b), yes, no)
static CARNN__INLINE float32x4_t CARNN__V(part_power2)(float32x4_t n) {
    return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(vcvtq_s32_f32(n), vdupq_n_s32(127)), 23));
}
static CARNN__INLINE float32x4_t CARNN__V(part_scale2)(float32x4_t a, float32x4_t n) {
    int32x4_t whole = vcvtq_s32_f32(n), first = vshrq_n_s32(whole, 1);
    int32x4_t second = vsubq_s32(whole, first), bias = vdupq_n_s32(127);
    first = vshlq_n_s32(vaddq_s32(first, bias), 23);
    second = vshlq_n_s32(vaddq_s32(second, bias), 23);
    return vmulq_f32(vmulq_f32(a, vreinterpretq_f32_s32(first)), vreinterpretq_f32_s32(second));
}
#else
#define CARNN__PARTS 16
typedef float CARNN__K(part);
#define CARNN__PART_LOAD(p) (*(p))
#define CARNN__PART_STORE(p, a) (*(p) = (a))
#define CARNN__PART_SET(x) (x)
#define CARNN__PART_ADD(a, b) ((a) + (b))
#define CARNN__PART_SUB(a, b) ((a) - (b))
#define CARNN__PART_MUL(a, b) ((a) * (b))
#define CARNN__PART_DIV(a, b) ((a) / (b))
#define CARNN__PART_SQRT(a) sqrtf(a)
#define CARNN__PART_FMA(a, b, c) CARNN__K(fma)(a, b, c)
#define CARNN__PART_FNMA(a, b, c) CARNN__K(fma)(-(a), b, c)
#define CARNN__PART_ABS(a) fabsf(a)
#define CARNN__PART_SIGNED(a, s) copysignf(a, s)
#define CARNN__PART_IF_LESS(a, b, yes, no) ((a) < (b) ? (yes) : (no))
/* A fused multiply-add without the instruction. The product of two floats is exact in a double;
   the sum is rounded to odd there (where it is inexact its last bit is set), after which the
   rounding to float is the only one that counts (Boldo and Melquiond 2008). */
static inline float CARNN__K(fma)(float a, float b, float c) {
#if defined(FP_FAST_FMAF) || FLT_EVAL_METHOD != 0
    return fmaf(a, b, c);
#else
    double product = (double)a * b, sum = product + c, part = sum - product;
    double error = (product - (sum - part)) + ((double)c - part);
    int64_t bits, step;
    memcpy(&bits, &sum, sizeof bits);
    step = error * sum > 0 ? 1 : -1;
    step = error < 0 || error > 0 ? step : 0;
    bits += step & ((bits & 1) - 1); /* without branches: nobody could predict them */
    memcpy(&sum, &bits, sizeof bits);
    return (float)sum;
#endif
}
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
#endif

#define CARNN__PART_LANES (CARNN__LANES / CARNN__PARTS)
typedef struct CARNN__K(parts) {
    CARNN__K(part) x[CARNN__PARTS];
} carnn__v;

#define CARNN__EACH(expression)                                                                    \
    carnn__v v;                                                                                    \
    int i;                                                                                         \
    CARNN__UNROLL for (i = 0; i < CARNN__PARTS; i++) v.x[i] = expression;                          \
    return v
static CARNN__INLINE carnn__v CARNN__V(load)(const float *p) {
    CARNN__EACH(CARNN__PART_LOAD(p + i * CARNN__PART_LANES));
}
static CARNN__INLINE void CARNN__V(store)(float *p, carnn__v a) {
    int i;
    CARNN__UNROLL for (i = 0; i < CARNN__PARTS; i++)
        CARNN__PART_STORE(p + i * CARNN__PART_LANES, a.x[i]);
}
static CARNN__INLINE carnn__v CARNN__V(loadf)(const float *p, size_t n, float fill) {
    float lane[CARNN__LANES];
    size_t i;
    for (i = 0; i < CARNN__LANES; i++) lane[i] = i < n ? p[i] : fill;
    return CARNN__V(load)(lane);
}
static CARNN__INLINE carnn__v CARNN__V(loadn)(const float *p, size_t n) {
    if (CARNN__ALL(n)) return CARNN__V(load)(p);
    return CARNN__V(loadf)(p, n, 0);
}
static CARNN__INLINE void CARNN__V(storen)(float *p, size_t n, carnn__v a) {
    if (CARNN__ALL(n)) {
        CARNN__V(store)(p, a);
        return;
    }
    float lane[CARNN__LANES];
    size_t i;
    CARNN__V(store)(lane, a);
    for (i = 0; i < n; i++) p[i] = lane[i];
}
static CARNN__INLINE carnn__v CARNN__V(keep)(carnn__v a, size_t n) {
    float lane[CARNN__LANES];
    CARNN__V(store)(lane, a);
    return CARNN__V(loadn)(lane, n);
}
static CARNN__INLINE carnn__v CARNN__V(set1)(float x) { CARNN__EACH(CARNN__PART_SET(x)); }
static CARNN__INLINE carnn__v CARNN__V(zero)(void) { CARNN__EACH(CARNN__PART_SET(0)); }
#define CARNN__LANEWISE(name, expression)                                                          \
    static CARNN__INLINE carnn__v CARNN__V(name)(carnn__v a, carnn__v b) {                         \
        CARNN__EACH(expression);                                                                   \
    }
CARNN__LANEWISE(add, CARNN__PART_ADD(a.x[i], b.x[i]))
CARNN__LANEWISE(sub, CARNN__PART_SUB(a.x[i], b.x[i]))
CARNN__LANEWISE(mul, CARNN__PART_MUL(a.x[i], b.x[i]))
CARNN__LANEWISE(div, CARNN__PART_DIV(a.x[i], b.x[i]))
CARNN__LANEWISE(max, CARNN__PART_IF_LESS(b.x[i], a.x[i], a.x[i], b.x[i]))
CARNN__LANEWISE(min, CARNN__PART_IF_LESS(a.x[i], b.x[i], a.x[i], b.x[i]))
CARNN__LANEWISE(scale2, CARNN__V(part_scale2)(a.x[i], b.x[i]))
CARNN__LANEWISE(signed, CARNN__PART_SIGNED(a.x[i], b.x[i]))
#undef CARNN__LANEWISE
static CARNN__INLINE carnn__v CARNN__V(sqrt)(carnn__v a) { CARNN__EACH(CARNN__PART_SQRT(a.x[i])); }
static CARNN__INLINE carnn__v CARNN__V(power2)(carnn__v a) {
    CARNN__EACH(CARNN__V(part_power2)(a.x[i]));
}
static CARNN__INLINE carnn__v CARNN__V(abs)(carnn__v a) { CARNN__EACH(CARNN__PART_ABS(a.x[i])); }
static CARNN__INLINE carnn__v CARNN__V(fma)(carnn__v a, carnn__v b, carnn__v c) {
    CARNN__EACH(CARNN__PART_FMA(a.x[i], b.x[i], c.x[i]));
}
static CARNN__INLINE carnn__v CARNN__V(fnma)(carnn__v a, carnn__v b, carnn__v c) {
    CARNN__EACH(CARNN__PART_FNMA(a.x[i], b.x[i], c.x[i]));
}
static CARNN__INLINE carnn__v CARNN__V(if_less)(carnn__v a, carnn__v b, carnn__v yes, carnn__v no) {
    CARNN__EACH(CARNN__PART_IF_LESS(a.x[i], b.x[i], yes.x[i], no.x[i]));
}
#undef CARNN__EACH
static CARNN__INLINE float CARNN__V(sum)(carnn__v a) {
    float lane[CARNN__LANES];
    int half, i;
    CARNN__V(store)(lane, a);
    for (half = CARNN__LANES / 2; half; half /= 2)
        for (i = 0; i < half; i++) lane[i] += lane[i + half];
    return lane[0];
}
static CARNN__INLINE float CARNN__V(largest)(carnn__v a) {
    float lane[CARNN__LANES];
    int half, i;
    CARNN__V(store)(lane, a);
    for (half = CARNN__LANES / 2; half; half /= 2)
        for (i = 0; i < half; i++) lane[i] = lane[i] > lane[i + half] ? lane[i] : lane[i + half];
    return lane[0];
}

/* Blocks as large as a part: of 4 by 4 numbers on NEON, of one otherwise. */
static CARNN__INLINE void CARNN__V(transpose)(const float *p, size_t ld, carnn__v *out) {
    size_t i, j;
    for (i = 0; i < CARNN__PARTS; i++, p += ld * CARNN__PART_LANES) {
        for (j = 0; j < 16; j += CARNN__PART_LANES) {
#if defined(CARNN__NEON)
            float32x4_t r0 = vld1q_f32(p + j), r1 = vld1q_f32(p + ld + j);
            float32x4_t r2 = vld1q_f32(p + 2 * ld + j), r3 = vld1q_f32(p + 3 * ld + j);
            float32x4_t a = vtrn1q_f32(r0, r1), b = vtrn2q_f32(r0, r1);
            float32x4_t c = vtrn1q_f32(r2, r3), d = vtrn2q_f32(r2, r3);
            out[j].x[i] = vcombine_f32(vget_low_f32(a), vget_low_f32(c));
            out[j + 1].x[i] = vcombine_f32(vget_low_f32(b), vget_low_f32(d));
            out[j + 2].x[i] = vcombine_f32(vget_high_f32(a), vget_high_f32(c));
            out[j + 3].x[i] = vcombine_f32(vget_high_f32(b), vget_high_f32(d));
#else
            out[j].x[i] = p[j];
#endif
        }
    }
}

#endif

#undef CARNN__ALL

#endif /* CARNN__ISA */

/* =============================================================================================
   @@MATH   exp, sigmoid, tanh, softmax and loops over arrays

   All three functions rest on one polynomial. With n the integer nearest to x / ln 2 and
   r = x - n ln 2, |r| <= ln 2 / 2,

       exp(x) = 2^n exp(r),   exp(r) = 1 + r + r^2 q(r)

   where q is the polynomial of degree 4 that minimises the largest relative error of exp(r),
   found by the Remez exchange with each coefficient rounded to a float in turn and the others
   fitted again: the error is 4.6e-9, an eighth of half a unit in the last place. (Our own fit;
   one degree less would cost whole units.) Measured over every float: see tests/test_math.c.

   These loops are bound by the two vector ports in the first level of cache (14 operations for a
   vector of exp, 19 of the sigmoid, 18 of tanh; they reach four fifths of that, the sigmoid, whose
   division waits, three fifths) and by memory beyond it.
   ============================================================================================= */

#if defined(CARNN__ISA)

#define CARNN__C(value) CARNN__V(set1)(value)

/* n and r of x: adding 1.5 * 2^23 leaves the nearest integer in the last bits. |x| < 2^21. ln 2 is
   taken away in two parts, the first a float, so that r is good to its last bit. */
static CARNN__INLINE carnn__v CARNN__V(reduce)(carnn__v x, carnn__v *n) {
    carnn__v shift = CARNN__C(12582912.0f);
    *n = CARNN__V(sub)(CARNN__V(fma)(x, CARNN__C(1.44269502f), shift), shift);
    x = CARNN__V(fnma)(*n, CARNN__C(0.693147182f), x);
    return CARNN__V(fnma)(*n, CARNN__C(-1.90465421e-9f), x);
}

/* r q(r), so that exp(r) = 1 + r + r * this. */
static CARNN__INLINE carnn__v CARNN__V(exp_tail)(carnn__v r) {
    carnn__v q = CARNN__V(fma)(CARNN__C(0.00140372256f), r, CARNN__C(0.00837233569f));
    q = CARNN__V(fma)(q, r, CARNN__C(0.0416655503f));
    q = CARNN__V(fma)(q, r, CARNN__C(0.166664883f));
    q = CARNN__V(fma)(q, r, CARNN__C(0.5f));
    return CARNN__V(mul)(q, r);
}

/* exp of a bounded x. */
static CARNN__INLINE carnn__v CARNN__V(exp_bounded)(carnn__v x) {
    carnn__v n, r = CARNN__V(reduce)(x, &n), one = CARNN__C(1.0f);
    carnn__v p = CARNN__V(fma)(CARNN__V(exp_tail)(r), r, r);
    return CARNN__V(scale2)(CARNN__V(add)(one, p), n);
}

/* The bounds lie where the result has become infinite or zero; NaN passes them. */
static CARNN__INLINE carnn__v CARNN__V(exp)(carnn__v x) {
    x = CARNN__V(min)(CARNN__C(89.0f), x);
    return CARNN__V(exp_bounded)(CARNN__V(max)(CARNN__C(-104.0f), x));
}

/* 1 / (1 + exp(-x)) for x >= 0, e / (1 + e) with e = exp(x) for x < 0: e never overflows, and
   small results keep all their digits. */
static CARNN__INLINE carnn__v CARNN__V(sigmoid)(carnn__v x) {
    carnn__v bounded = CARNN__V(max)(CARNN__C(-104.0f), CARNN__V(signed)(x, CARNN__C(-1.0f)));
    carnn__v e = CARNN__V(exp_bounded)(bounded), one = CARNN__C(1.0f);
    return CARNN__V(div)(CARNN__V(if_less)(x, CARNN__V(zero)(), e, one), CARNN__V(add)(one, e));
}

/* With t = exp(-2 |x|) - 1, computed without cancellation as 2^n (exp(r) - 1) + (2^n - 1):
   tanh |x| = -t / (2 + t); beyond 10 it is 1. */
static CARNN__INLINE carnn__v CARNN__V(tanh)(carnn__v x) {
    carnn__v bounded = CARNN__V(min)(CARNN__C(10.0f), CARNN__V(abs)(x));
    carnn__v n, r = CARNN__V(reduce)(CARNN__V(mul)(bounded, CARNN__C(-2.0f)), &n);
    carnn__v power = CARNN__V(power2)(n);
    carnn__v p = CARNN__V(fma)(CARNN__V(exp_tail)(r), r, r);
    carnn__v t = CARNN__V(fma)(power, p, CARNN__V(sub)(power, CARNN__C(1.0f)));
    return CARNN__V(signed)(CARNN__V(div)(t, CARNN__V(add)(t, CARNN__C(2.0f))), x);
}

/* --- arrays ---------------------------------------------------------------------------------- */

/* One loop for y[i] = expression of v = x[i] (and of w = y[i]). */
#define CARNN__LOOP(load_y, expression)                                                            \
    size_t i;                                                                                      \
    carnn__v v, w = CARNN__V(zero)();                                                              \
    (void)w;                                                                                       \
    for (i = 0; i + CARNN__LANES <= n; i += CARNN__LANES) {                                        \
        v = CARNN__V(load)(x + i);                                                                 \
        if (load_y) w = CARNN__V(load)(y + i);                                                     \
        CARNN__V(store)(y + i, expression);                                                        \
    }                                                                                              \
    if (i < n) {                                                                                   \
        v = CARNN__V(loadn)(x + i, n - i);                                                         \
        if (load_y) w = CARNN__V(loadn)(y + i, n - i);                                             \
        CARNN__V(storen)(y + i, n - i, expression);                                                \
    }

static void CARNN__K(exp_n)(const float *x, float *y, size_t n) {
    CARNN__LOOP(0, CARNN__V(exp)(v))
}
static void CARNN__K(sigmoid_n)(const float *x, float *y, size_t n) {
    CARNN__LOOP(0, CARNN__V(sigmoid)(v))
}
static void CARNN__K(tanh_n)(const float *x, float *y, size_t n) {
    CARNN__LOOP(0, CARNN__V(tanh)(v))
}
static void CARNN__K(scale)(float *y, float factor, size_t n) {
    const float *x = y;
    CARNN__LOOP(0, CARNN__V(mul)(v, CARNN__C(factor)))
}
static void CARNN__K(add)(const float *x, float *y, size_t n) {
    CARNN__LOOP(1, CARNN__V(add)(v, w))
}
static void CARNN__K(approach)(const float *x, float *y, float share, size_t n) {
    CARNN__LOOP(1, CARNN__V(fma)(CARNN__C(share), CARNN__V(sub)(v, w), w))
}
#undef CARNN__LOOP

/* --- sums over an array: element i goes to partial sum i % 16 --------------------------------- */

static float CARNN__K(dot)(const float *x, const float *y, size_t n) {
    carnn__v sum = CARNN__V(zero)();
    size_t i;
    for (i = 0; i + CARNN__LANES <= n; i += CARNN__LANES)
        sum = CARNN__V(fma)(CARNN__V(load)(x + i), CARNN__V(load)(y + i), sum);
    if (i < n)
        sum = CARNN__V(fma)(CARNN__V(loadn)(x + i, n - i), CARNN__V(loadn)(y + i, n - i), sum);
    return CARNN__V(sum)(sum);
}

static float CARNN__K(row_sum)(const float *x, size_t n) {
    carnn__v sum = CARNN__V(zero)();
    size_t i;
    for (i = 0; i + CARNN__LANES <= n; i += CARNN__LANES)
        sum = CARNN__V(add)(sum, CARNN__V(load)(x + i));
    if (i < n) sum = CARNN__V(add)(sum, CARNN__V(loadn)(x + i, n - i));
    return CARNN__V(sum)(sum);
}

/* Blocks of 4096 are added up in a double: a gradient has millions of elements. Bound by memory. */
static double CARNN__K(sum_squares)(const float *x, size_t n) {
    double total = 0;
    size_t i;
    for (i = 0; i < n; i += 4096) {
        size_t block = n - i < 4096 ? n - i : 4096;
        total += (double)CARNN__K(dot)(x + i, x + i, block);
    }
    return total;
}

static float CARNN__K(maximum)(const float *x, size_t n) {
    carnn__v top = CARNN__C(-INFINITY);
    size_t i;
    for (i = 0; i + CARNN__LANES <= n; i += CARNN__LANES)
        top = CARNN__V(max)(CARNN__V(load)(x + i), top);
    if (i < n) top = CARNN__V(max)(CARNN__V(loadf)(x + i, n - i, -INFINITY), top);
    return CARNN__V(largest)(top);
}

static size_t CARNN__K(argmax)(const float *x, size_t n) {
    float top = CARNN__K(maximum)(x, n);
    size_t i;
    for (i = 0; i < n; i++)
        if (x[i] >= top) return i;
    return 0; /* all are NaN */
}

/* y = exp(x - top), and the sum of it. */
static CARNN__INLINE float CARNN__K(exp_sum)(const float *x, float top, float *y, size_t n) {
    carnn__v sum = CARNN__V(zero)(), shift = CARNN__C(top), e;
    size_t i;
    for (i = 0; i + CARNN__LANES <= n; i += CARNN__LANES) {
        e = CARNN__V(exp)(CARNN__V(sub)(CARNN__V(load)(x + i), shift));
        CARNN__V(store)(y + i, e);
        sum = CARNN__V(add)(sum, e);
    }
    if (i < n) {
        e = CARNN__V(exp)(CARNN__V(sub)(CARNN__V(loadn)(x + i, n - i), shift));
        CARNN__V(storen)(y + i, n - i, e);
        sum = CARNN__V(add)(sum, CARNN__V(keep)(e, n - i));
    }
    return CARNN__V(sum)(sum);
}

/* The natural logarithm of a positive normal number: x = m 2^e with m in [sqrt 1/2, sqrt 2) and
   log m = 2 artanh((m - 1) / (m + 1)), eleven terms of its series. Ours, because the last bit
   of log in C libraries differs. */
static double CARNN__K(log)(double x) {
    int exponent, term;
    double m = frexp(x, &exponent), t, square, sum = 0;
    if (!(x > 0) || x > DBL_MAX) return x; /* NaN, infinity and what no sum of exp can be */
    if (m < 0.70710678118654752) {
        m *= 2;
        exponent--;
    }
    t = (m - 1) / (m + 1);
    square = t * t;
    for (term = 21; term >= 1; term -= 2) sum = sum * square + 1.0 / term;
    return 2 * t * sum + exponent * 0.69314718055994531;
}

/* The row becomes its softmax but for a factor; returns the logarithm of the sum of exp(x[i]). Two
   passes over a row that the cache holds, bound by the exponentials of the second. */
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

   The loop is slow for two reasons: each multiply-add waits for the one before it, and each needs
   two loads. The engine below computes a tile of C at once, some rows by some vectors of columns,
   whose sums stay in registers and do not depend on each other; a number that is loaded serves a
   whole row or column of the tile. Each sum still adds its products in the order of p. It may rest
   in C between two blocks of p without losing a bit, so tiles, blocks, packing and threads are free
   choices that cannot be seen in the result.

   B is read in panels, as wide as a tile and some hundreds of rows deep, so that a panel stays in
   the first level of cache while all tiles of its columns use it. For few rows of A each panel is
   copied there (transposed, where B is stored (n, k)) when it is needed. For many rows a block of
   panels is packed into the second level first. A B that was packed before is used as it lies; where
   it is large it comes from memory, and the tiles prefetch the next panel meanwhile.
   ============================================================================================= */

#if defined(CARNN__ISA)

/* A tile needs a register for each of its sums, for the row of the panel and for an element of A;
   eight independent sums at least keep two multiply-add units with a latency of four busy. */
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

/* Of the panel that comes next, each of so many tiles fetches a part, every so many steps. */
#define CARNN__FETCH_TILES 4
#define CARNN__FETCH_STEPS 32

/* Where a tile finds its operands. */
typedef struct CARNN__K(place) {
    const float *a, *b, *start;
    const float *fetch; /* its part of the next panel, or NULL */
    size_t b_row, b_vector, columns;
    float *copy, *c;
} CARNN__K(place);

/* The sums of a tile go on for k steps. Where A and B are dense, the distances are constants after
   inlining (but for a_row, of an A in place): four steps at a time then are little else than
   multiply-adds and their loads, which counts where another thread of the same core (in the cloud:
   of somebody else) takes every second turn to issue instructions. With `fetch` a part of the next
   panel is asked for meanwhile, a row for every CARNN__FETCH_TILES steps. */
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

/* The sums of a tile from memory and back, `rest` (1 to 16) numbers of the last vector of a row. */
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

/* One tile: `rows` and `vectors` are constants after inlining. Bound by the multiply-add units as
   long as the panel comes from the first level of cache. */
static CARNN__INLINE void CARNN__K(tile)(size_t rows, size_t vectors, const carnn__panel *job,
                                         const CARNN__K(place) * at) {
    carnn__v sum[CARNN__TILE_ROWS][CARNN__TILE_WIDEST];
    const size_t width = vectors * CARNN__LANES, k = job->k, c_row = job->c_row;
    const size_t rest = at->columns - (width - CARNN__LANES);
    const int tall = 2 * rows > CARNN__TILE_ROWS; /* so is the first of several tiles: it copies */
    const int dense = tall && at->b_row == width && !at->copy;
    const float *from = job->add ? at->c : at->start;
    const size_t from_row = job->add ? c_row : 0;
    const float *ahead = at->c + (job->ahead ? job->ahead : rows * c_row);
    size_t i, j;
    /* the rows of C lie far apart, where nothing else would have them fetched */
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

/* Functions of their own: in a common one the compiler runs out of registers. */
#define CARNN__TILE_FUNCTION(rows, vectors)                                                        \
    static CARNN__NOINLINE void CARNN__K(tile_##rows##_##vectors)(const carnn__panel *job,         \
                                                                  const CARNN__K(place) * at) {    \
        CARNN__K(tile)(rows, vectors, job, at);                                                    \
    }
#define CARNN__TILE_CASE(rows, vectors)                                                            \
    case (rows) * 8 + (vectors): CARNN__K(tile_##rows##_##vectors)(job, at); break;

CARNN__TILES(CARNN__TILE_FUNCTION)
#undef CARNN__TILE_FUNCTION

/* All rows of A against one panel: so many tiles of `least` rows, or one more; `at` is the first. */
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

/* Vectors of a tile: where A has so few rows that the sums of a panel would wait for each other,
   those of panels side by side. */
static size_t CARNN__K(abreast)(const carnn__panel *job) {
    if (CARNN__TILE_VECTORS > 1 || job->copy || job->m > 3) return CARNN__TILE_VECTORS;
    if (job->m == 1) return CARNN__TILE_WIDEST;
    return CARNN__TILE_WIDEST == 4 || (CARNN__TILE_WIDEST == 2 && job->m == 2) ? 2 : 1;
}

/* All rows of A against the panels. With many rows only multiply-adds count: nine tenths of the
   peak and more (matmul 512 x 400 x 300 of `carnn bench`). With 32 rows every panel is copied or
   transposed for six tiles, which leaves two thirds to four fifths of it; packed before, more. One
   row takes half of what the cache that has B can be read at (gemv A B). */
static void CARNN__K(panel)(const carnn__panel *job) {
    CARNN__K(place) at;
    size_t tiles = carnn__parts(job->m, CARNN__TILE_ROWS), least = job->m / tiles;
    size_t step = CARNN__K(abreast)(job) * CARNN__LANES, j;
    for (j = 0; j < job->n; j += step) {
        at.columns = job->n - j < step ? job->n - j : step;
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

/* A strip of A: `rows` (at most a tile's) columns of the stored (k, m), column after column of A,
   in one dense stream. In place each of its k pieces lies on another page, and where the width is a
   power of two all of them fall into the same few places of the cache. Bound by these reads. */
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

/* packed (k, n rounded up to 16) = b (k, n), filled up with zeros. Bound by reading b from where it
   is, a line of the cache for each row of a narrow panel. */
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

/* Transposes the block of b (n, k) at row j and column p where it reaches beyond the edge of b: what
   lies outside counts as zero. */
static CARNN__NOINLINE void CARNN__K(transpose_edge)(size_t n, size_t k, const float *b, size_t ldb,
                                                     size_t j, size_t p, carnn__v *out) {
    float edge[CARNN__LANES * CARNN__LANES];
    size_t width = k - p < CARNN__LANES ? k - p : CARNN__LANES, i;
    for (i = 0; i < CARNN__LANES; i++)
        CARNN__V(store)(edge + i * CARNN__LANES,
                        j + i < n ? CARNN__V(loadn)(b + (j + i) * ldb + p, width)
                                  : CARNN__V(zero)());
    CARNN__V(transpose)(edge, CARNN__LANES, out);
}

/* packed (k, n rounded up to 16) = b (n, k) transposed, padded with zeros. Bound by the shuffles
   (see v(transpose)): A B' with few rows is slower than A B by their share. */
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

#if defined(CARNN__DOT_ROWS)
/* The product below as far as whole groups of rows reach: returns the rows that are done. Rows that
   lie 2 KiB or a multiple of it apart fall into the same few places of the first-level cache, which
   has room for one group of them. */
static size_t CARNN__K(gemv_groups)(size_t n, size_t k, const float *x, const float *b, size_t ldb,
                                    const float *start, float *y) {
    size_t j = 0, done = k % 4 ? 0 : n / CARNN__DOT_ROWS * CARNN__DOT_ROWS;
    if (!start) memset(y, 0, done * sizeof *y);
    else if (start != y) memcpy(y, start, done * sizeof *y);
    for (; ldb % 512 && j + 3 * CARNN__DOT_ROWS <= done; j += 3 * CARNN__DOT_ROWS)
        CARNN__V(row_dots)(3, k, x, b + j * ldb, ldb, y + j);
    for (; j < done; j += CARNN__DOT_ROWS)
        CARNN__V(row_dots)(1, k, x, b + j * ldb, ldb, y + j);
    return done;
}
#endif

/* y (n) = start + b (n, k) x: the product of one row with a B that is stored (n, k). Sixteen rows
   of b at a time are transposed in registers. Bound by the shuffles, at a third of what the cache
   can be read at (gemv A B'), and beyond the caches by memory. */
static void CARNN__K(gemv_nt)(size_t n, size_t k, const float *x, const float *b, size_t ldb,
                              const float *start, float *y) {
    size_t j = 0, p, s;
#if defined(CARNN__DOT_ROWS)
    j = CARNN__K(gemv_groups)(n, k, x, b, ldb, start, y);
#endif
    for (; j < n; j += CARNN__LANES) {
        size_t width = n - j < CARNN__LANES ? n - j : CARNN__LANES;
        carnn__v block[CARNN__LANES], sum = CARNN__V(zero)();
        if (start) sum = width < CARNN__LANES ? CARNN__V(loadn)(start + j, width)
                                              : CARNN__V(load)(start + j);
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
        if (width < CARNN__LANES)
            CARNN__V(storen)(y + j, width, sum);
        else
            CARNN__V(store)(y + j, sum);
    }
}

/* out[j] += sum over i of x[i][j], i ascending. Bound by memory: of each row four whole lines of
   the cache are read, and the sums stay in registers. The peaks of reading are measured by it. */
static void CARNN__K(column_sums)(size_t rows, size_t columns, const float *x, size_t ldx,
                                  float *out) {
    size_t i, j;
    for (j = 0; j + 4 * CARNN__LANES <= columns; j += 4 * CARNN__LANES) {
        carnn__v sum[4];
        size_t s;
        CARNN__UNROLL for (s = 0; s < 4; s++) sum[s] = CARNN__V(load)(out + j + s * CARNN__LANES);
        for (i = 0; i < rows; i++) {
            CARNN__UNROLL for (s = 0; s < 4; s++)
                sum[s] = CARNN__V(add)(sum[s], CARNN__V(load)(x + i * ldx + j + s * CARNN__LANES));
        }
        CARNN__UNROLL for (s = 0; s < 4; s++) CARNN__V(store)(out + j + s * CARNN__LANES, sum[s]);
    }
    for (; j < columns; j += CARNN__LANES) {
        size_t width = columns - j < CARNN__LANES ? columns - j : CARNN__LANES;
        carnn__v sum = CARNN__V(loadn)(out + j, width);
        for (i = 0; i < rows; i++)
            sum = CARNN__V(add)(sum, CARNN__V(loadn)(x + i * ldx + j, width));
        CARNN__V(storen)(out + j, width, sum);
    }
}

#endif /* CARNN__ISA */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

enum {
    CARNN__NN = 0,  /* C (m, n) = A (m, k) B (k, n) */
    CARNN__NT = 1,  /* B is stored (n, k) */
    CARNN__TN = 2,  /* A is stored (k, m) */
    CARNN__ADD = 4  /* C += instead of C = */
};

/* Floats of scratch memory for each worker: one panel, or a strip of A (48 KiB); and a block of
   panels (3/4 MiB). */
#define CARNN__PANEL_SIZE ((size_t)12288)
#define CARNN__BLOCK_SIZE ((size_t)196608)
#define CARNN__DEPTH_MOST 320 /* rows of a panel: 20 KiB at 16 columns */

/* What runs the arithmetic: a set of kernels, threads, and memory for panels. */
typedef struct carnn__engine {
    const carnn__kernels *k;
    carnn__pool *pool;         /* NULL: the calling thread alone */
    float *scratch;            /* CARNN__PANEL_SIZE floats for each worker */
    float *block;              /* CARNN__BLOCK_SIZE floats for each; NULL: panels one by one */
    size_t block_size;         /* floats of a block of panels: a part of the second-level cache */
    carnn_allocator allocator; /* of pool and scratch */
} carnn__engine;

/* Floats of a block of panels that takes up to five eighths of a second-level cache of so many
   bytes; the rest is for A and C that pass by. 0 bytes: unknown. */
static size_t carnn__block_floats(size_t cache) {
    size_t floats = cache ? cache / 8 * 5 / sizeof(float) : CARNN__BLOCK_SIZE / 2;
    return carnn__min(carnn__max(floats, CARNN__BLOCK_SIZE / 4), CARNN__BLOCK_SIZE);
}

/* Rows of a panel where B has k. */
static size_t carnn__depth(const carnn__kernels *kernels, size_t k) {
    size_t most = carnn__min(CARNN__PANEL_SIZE / kernels->tile_columns, CARNN__DEPTH_MOST);
    k = carnn__max(k, 1);
    return carnn__part(k, carnn__parts(k, most), CARNN__LANES);
}

/* Bytes of scratch memory, aligned to CARNN__ALIGN, for an engine of `threads` threads. */
static size_t carnn__engine_scratch(size_t threads) {
    return threads * CARNN__PANEL_SIZE * sizeof(float);
}

/* An engine of one thread in memory of the caller, for prediction, where products have few rows; it
   is not to be closed. */
static void carnn__engine_borrow(carnn__engine *e, const carnn__kernels *k, void *scratch) {
    memset(e, 0, sizeof *e);
    e->k = k;
    e->block_size = CARNN__BLOCK_SIZE;
    e->scratch = (float *)scratch;
}

static void carnn__engine_close(carnn__engine *e) {
    carnn__pool_free(e->pool);
    carnn__free_aligned(&e->allocator, e->scratch);
    carnn__free_aligned(&e->allocator, e->block);
    memset(e, 0, sizeof *e);
}

static carnn_status carnn__engine_open(carnn__engine *e, const char *simd, size_t threads,
                                       carnn_allocator a, carnn_error *error) {
    memset(e, 0, sizeof *e);
    e->allocator = a;
    e->k = carnn__simd_select(simd);
    if (!e->k)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0,
                           "simd: found \"%s\", expected one of the paths of this machine "
                           "(the best here is \"%s\")",
                           simd ? simd : getenv("CARNN_SIMD"), carnn_simd_name(0));
    e->block_size = carnn__block_floats(carnn__second_cache());
    if (carnn__pool_create(&e->pool, threads, a)) return carnn__out_of_memory(error);
    threads = carnn__pool_threads(e->pool);
    e->scratch = (float *)carnn__alloc_aligned(&a, 1, carnn__engine_scratch(threads));
    e->block = (float *)carnn__alloc_aligned(&a, threads, CARNN__BLOCK_SIZE * sizeof(float));
    if (e->scratch && e->block) return CARNN_OK;
    carnn__engine_close(e);
    return carnn__out_of_memory(error);
}

/* The engine of a worker that runs a job of carnn__parallel: one thread, its own scratch memory. */
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

/* Below this many elementary operations (some 20 microseconds) a loop stays in one thread. */
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

/* --- packed matrices -------------------------------------------------------------------------
   Blocks of carnn__depth rows one after the other; in each the panels one after the other; a
   panel is (rows of the block, tile columns), the last one only as wide as it must be, in 16s. */

/* Floats of a packed (k, n) matrix. */
static size_t carnn__packed_size(size_t n, size_t k) {
    return carnn__times(carnn__round_up(n, CARNN__LANES), k);
}

typedef struct carnn__product {
    const carnn__engine *e;
    int form;
    size_t m, n, k, depth;
    const float *a, *b, *packed, *bias;
    size_t lda, ldb, ldc;
    float *c;
    size_t piece_m, piece_n, pieces_n; /* rows and columns of a piece, pieces side by side */
} carnn__product;

/* Where column j of the block that begins at row p, `depth` rows deep, lies in a packed matrix. */
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

/* Packs columns [j0, j1) of B (k, n), or of (n, k) where `form` is CARNN__NT; j0 is a multiple of
   the width of a panel, `b` begins there. */
static void carnn__pack_columns(carnn__engine *e, int form, size_t n, size_t k, size_t j0,
                                size_t j1, const float *b, size_t ldb, float *packed) {
    carnn__product x;
    size_t most = carnn__depth(e->k, k), p, j;
    memset(&x, 0, sizeof x);
    x.e = e;
    x.form = form;
    x.b = b;
    x.ldb = ldb;
    for (p = 0; p < k; p += most) {
        size_t depth = carnn__min(k - p, most);
        for (j = j0; j < j1; j += e->k->tile_columns)
            carnn__pack_panel(&x, p, depth, j - j0, carnn__min(j1 - j, e->k->tile_columns),
                              packed + carnn__packed_at(n, depth, p, j));
    }
}

typedef struct carnn__packing {
    carnn__engine *e;
    int form;
    size_t n, k, ldb;
    const float *b;
    float *packed;
} carnn__packing;

static void carnn__pack_range(const void *job, size_t from, size_t to) {
    const carnn__packing *x = (const carnn__packing *)job;
    carnn__pack_columns(x->e, x->form, x->n, x->k, from, to,
                        x->b + from * (x->form & CARNN__NT ? x->ldb : 1), x->ldb, x->packed);
}

/* Packs all of B. Threads share the panels. */
static void carnn__pack(carnn__engine *e, int form, size_t n, size_t k, const float *b, size_t ldb,
                        float *packed) {
    carnn__packing x = {e, form, n, k, ldb, b, packed};
    carnn__split(e, carnn__pack_range, &x, n, e->k->tile_columns, n * k);
}

/* --- products -------------------------------------------------------------------------------- */

/* The panels of block p at columns j to j1 of C, rows i0 to i1. */
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
    panel.b = x->packed ? x->packed + carnn__packed_at(x->n, panel.k, p, j) : NULL;
    panel.start = x->bias ? x->bias + j : NULL;
    panel.add = p || (x->form & CARNN__ADD);
    panel.c = x->c + i0 * x->ldc + j;
    panel.c_row = x->ldc;
    return panel;
}

/* From so many floats on a packed matrix comes from afar: the last level of cache, or memory. */
#define CARNN__FAR ((size_t)1 << 20)

/* Few rows: panel by panel. A panel that needs no transposing or padding is copied on the way by
   the first tile that reads it. */
static void carnn__product_panels(const carnn__product *x, size_t i0, size_t i1, size_t j0,
                                  size_t j1, size_t p, size_t worker) {
    const carnn__kernels *k = x->e->k;
    float *scratch = x->e->scratch + worker * CARNN__PANEL_SIZE;
    size_t width = x->packed ? j1 - j0 : k->tile_columns, j;
    if (!x->packed && !(x->form & CARNN__NT) && i1 - i0 <= k->tile_rows) /* B is read once */
        width = carnn__max((j1 - j0) / CARNN__LANES, 1) * CARNN__LANES;
    for (j = j0; j < j1; j += width) {
        carnn__panel panel = carnn__panel_at(x, i0, i1, j, carnn__min(j + width, j1), p);
        if (!x->packed && !(x->form & CARNN__NT) && panel.n % CARNN__LANES == 0) {
            panel.b = x->b + p * x->ldb + j;
            panel.b_row = x->ldb;
            if (panel.m > k->tile_rows) panel.copy = scratch;
        } else if (!x->packed) {
            carnn__pack_panel(x, p, panel.k, j, panel.n, scratch);
            panel.b = scratch;
        }
        panel.fetch = x->packed && x->n * x->k >= CARNN__FAR && panel.m > k->tile_rows;
        k->panel(&panel);
    }
}

/* Many rows: all panels of the block are packed first (they stay in the second level of cache), and
   strip after strip of A (in the first level) passes them, which walks C along its rows: down its
   columns every row would be another page. */
static void carnn__product_strips(const carnn__product *x, size_t i0, size_t i1, size_t j0,
                                  size_t j1, size_t p, size_t worker) {
    const carnn__kernels *k = x->e->k;
    float *strip = x->e->scratch + worker * CARNN__PANEL_SIZE;
    float *block = x->e->block + worker * CARNN__BLOCK_SIZE;
    size_t depth = carnn__min(x->k - p, x->depth), i, j;
    for (j = j0; j < j1 && !x->packed; j += k->tile_columns)
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
        if (!x->packed) panel.b = block;
        k->panel(&panel);
    }
}

/* Packing a whole block of B pays where there is enough of both. */
#define CARNN__STRIPS_ROWS 96
#define CARNN__STRIPS_COLUMNS 128

static void carnn__product_piece(void *job, size_t piece, size_t worker) {
    const carnn__product *x = (const carnn__product *)job;
    size_t i0 = piece / x->pieces_n * x->piece_m, j0 = piece % x->pieces_n * x->piece_n;
    size_t j1 = carnn__min(j0 + x->piece_n, x->n), i1 = carnn__min(i0 + x->piece_m, x->m), p;
    size_t columns = x->e->k->tile_columns, most, width, end;
    if (x->m == 1 && x->form & CARNN__NT && !x->packed) { /* transposed in registers */
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

/* Below this many multiply-adds (some 20 microseconds of one core) a product stays in the calling
   thread: waking another one takes as long. */
#define CARNN__PARALLEL_FROM 1500000.0

/* What a cut of C into pieces of m rows and n columns costs `threads` threads, in multiply-adds:
   the pieces one of them works through, and a part of one for which it waits at the end. To pack a
   column of B is taken for the work of 8 rows, to read a row of A for that of 4 columns. */
static double carnn__cut_cost(const carnn__product *x, size_t threads, size_t m, size_t n) {
    size_t pieces = carnn__parts(x->m, m) * carnn__parts(x->n, n);
    double turns = (double)carnn__parts(pieces, threads) + 0.25;
    return turns * ((double)m * (double)n + 8.0 * (double)n + 4.0 * (double)m);
}

/* Cuts C into at most eight pieces for each thread. */
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

static void carnn__product_run(carnn__product *x) {
    size_t threads = carnn__pool_active(x->e->pool);
    x->depth = carnn__depth(x->e->k, x->k);
    x->piece_m = x->m;
    x->piece_n = x->n;
    if (!x->m || !x->n) return;
    if (threads > 1 && (double)x->m * (double)x->n * (double)x->k >= CARNN__PARALLEL_FROM)
        carnn__product_cut(x, threads);
    x->pieces_n = carnn__parts(x->n, x->piece_n);
    carnn__parallel(x->e->pool, x->pieces_n * carnn__parts(x->m, x->piece_m),
                    carnn__product_piece, x);
}

/* C = start + A B in the form given; `bias` (n) is the start value of every row, NULL for zero,
   and only without CARNN__ADD. */
static void carnn__matmul(carnn__engine *e, int form, size_t m, size_t n, size_t k, const float *a,
                          size_t lda, const float *b, size_t ldb, const float *bias, float *c,
                          size_t ldc) {
    carnn__product x;
    memset(&x, 0, sizeof x);
    x.e = e;
    x.form = form;
    x.m = m;
    x.n = n;
    x.k = k;
    x.a = a;
    x.lda = lda;
    x.b = b;
    x.ldb = ldb;
    x.bias = bias;
    x.c = c;
    x.ldc = ldc;
    carnn__product_run(&x);
}

/* The same with a B that carnn__pack has packed; flags is 0 or CARNN__ADD. */
static void carnn__matmul_packed(carnn__engine *e, int flags, size_t m, size_t n, size_t k,
                                 const float *a, size_t lda, const float *packed, const float *bias,
                                 float *c, size_t ldc) {
    carnn__product x;
    memset(&x, 0, sizeof x);
    x.e = e;
    x.form = flags & CARNN__ADD;
    x.m = m;
    x.n = n;
    x.k = k;
    x.a = a;
    x.lda = lda;
    x.packed = packed;
    x.bias = bias;
    x.c = c;
    x.ldc = ldc;
    carnn__product_run(&x);
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

/* out[j] += sum over i of x[i][j], i ascending. Threads share the columns. */
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
    CARNN__INIT_NORMAL, /* mean 0, standard deviation `scale` */
    CARNN__INIT_FILL    /* every weight is `scale` */
} carnn__init;

/* One named matrix (rows, columns) of the store; vectors have one row. */
typedef struct carnn__param {
    char name[48]; /* "cell.input.weight" */
    size_t rows, columns;
    size_t offset; /* of the first weight in the arrays, a multiple of 16 floats */
    size_t block;  /* rows that are one matrix to the initialiser: the gates of a stacked matrix */
    carnn__init init;
    float scale;
} carnn__param;

#define CARNN__PARAMS_MAX 96

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
    store->size += floats < room ? carnn__round_up(floats, CARNN__ALIGN / sizeof(float)) : room;
    if (!store->fixed) store->trained = store->size;
    return store->count++;
}

/* The weights of parameter `number` in an array that is laid out like the store. */
static inline float *carnn__piece(const carnn__store *store, float *array, size_t number) {
    return array + store->item[number].offset;
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
            case CARNN__INIT_FILL: w[i] = p->scale; break;
            default: w[i] = 0.0f;
            }
    }
}

#endif

/* --- optimisers ------------------------------------------------------------------------------
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

typedef struct carnn__optimizer_kind {
    const char *name;
    size_t moments;
    double lr, a, b, eps;
} carnn__optimizer_kind;

#define CARNN__OPTIMIZER_ENTRY(name, moments, lr, a, b, eps) {#name, moments, lr, a, b, eps},
static const carnn__optimizer_kind carnn__optimizers[] = {
    CARNN__OPTIMIZERS(CARNN__OPTIMIZER_ENTRY)};
#undef CARNN__OPTIMIZER_ENTRY

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
   weight, and clears the gradient for the next step. `number` is constant after inlining. Bound by
   memory: Adam reads four floats for each weight and writes them. */
static CARNN__INLINE void CARNN__K(update)(const carnn__update *u, int number, size_t from,
                                           size_t to) {
    const carnn__v a = every(u->a), a1 = every(u->a1), b = every(u->b), b1 = every(u->b1);
    const carnn__v clip = every(u->clip), keep = every(u->keep), lr = every(u->lr);
    const carnn__v eps = every(u->eps), correct = every(u->correct);
    float *const m0 = u->moment[0], *const m1 = u->moment[1];
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
#define CARNN__OPTIMIZER_FUNCTION(name, moments, lr, a, b, eps)                                    \
    static void CARNN__K(name)(const void *job, size_t from, size_t to) {                          \
        CARNN__K(update)((const carnn__update *)job, CARNN__OPTIMIZER_##name, from, to);           \
    }
CARNN__OPTIMIZERS(CARNN__OPTIMIZER_FUNCTION)
#undef CARNN__OPTIMIZER_FUNCTION

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
    size_t number; /* in carnn__optimizers */
    size_t size;   /* of the store */
    float *moment[2];
    double *partial; /* one per CARNN__FLAT_PIECE */
    double power_a, power_b; /* a^t and b^t after t steps */
} carnn__optimizer;

static void carnn__optimizer_close(carnn__optimizer *o, const carnn_allocator *allocator) {
    carnn__free_aligned(allocator, o->moment[0]);
    carnn__free_aligned(allocator, o->moment[1]);
    carnn__free_aligned(allocator, o->partial);
    memset(o, 0, sizeof *o);
}

static size_t carnn__flat_pieces(size_t size) {
    return carnn__parts(size, CARNN__FLAT_PIECE);
}

static carnn_status carnn__optimizer_open(carnn__optimizer *o, size_t number, size_t size,
                                          const carnn_allocator *allocator, carnn_error *error) {
    size_t i, moments = carnn__optimizers[number].moments;
    int failed = 0;
    memset(o, 0, sizeof *o);
    o->number = number;
    o->size = size;
    o->power_a = o->power_b = 1.0;
    for (i = 0; i < moments; i++) {
        o->moment[i] = (float *)carnn__alloc_aligned(allocator, size, sizeof(float));
        if (o->moment[i]) memset(o->moment[i], 0, size * sizeof(float));
        failed |= !o->moment[i];
    }
    o->partial = (double *)carnn__alloc_aligned(allocator, carnn__flat_pieces(size),
                                                sizeof(double));
    if (!failed && o->partial) return CARNN_OK;
    carnn__optimizer_close(o, allocator);
    return carnn__out_of_memory(error);
}

typedef struct carnn__norm_job {
    const carnn__kernels *k;
    const float *x;
    double *partial;
    size_t size;
} carnn__norm_job;

static void carnn__norm_range(const void *job_, size_t from, size_t to) {
    const carnn__norm_job *job = (const carnn__norm_job *)job_;
    size_t i;
    for (i = from; i < to; i++) {
        size_t first = i * CARNN__FLAT_PIECE;
        job->partial[i] = (double)job->k->sum_squares(
            job->x + first, carnn__min(CARNN__FLAT_PIECE, job->size - first));
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

/* The same of numbers whose squares are too large for a float: a gradient that explodes is clipped
   like any other. */
static double carnn__wide_norm(const float *x, size_t size) {
    double sum = 0.0;
    size_t i;
    for (i = 0; i < size; i++) sum += (double)x[i] * (double)x[i];
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
    if (!(norm <= DBL_MAX)) norm = carnn__wide_norm(g, o->size);
    if (!(norm <= DBL_MAX)) return norm;
    o->power_a *= kind->a;
    o->power_b *= kind->b;
    u.w = w;
    u.g = g;
    u.moment[0] = o->moment[0];
    u.moment[1] = o->moment[1];
    u.clip = clip > 0.0 && norm > clip ? (float)(clip / norm) : 1.0f;
    u.keep = (float)(1.0 - lr * weight_decay);
    u.a = (float)kind->a;
    u.a1 = (float)(1.0 - kind->a);
    u.b = (float)kind->b;
    u.b1 = (float)(1.0 - kind->b);
    u.eps = (float)kind->eps;
    u.lr = (float)lr;
    u.correct = 1.0f;
    if (o->number == CARNN__OPTIMIZER_adam) { /* the corrections of both moments, once */
        u.lr = (float)(lr / (1.0 - o->power_a));
        u.correct = (float)(1.0 / sqrt(1.0 - o->power_b));
    }
    carnn__split(e, e->k->optimize[o->number], &u, o->size, 16, o->size);
    return norm;
}

#endif
/* =============================================================================================
   @@SEQ   packed batches: sequences of unequal length without padding; both directions; pooling

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

/* Row of step t of the sequence of rank b when the sequence is read backwards. */
static inline size_t carnn__reversed_row(const carnn__packed *p, size_t length, size_t t,
                                         size_t b) {
    return p->start[length - 1 - t] + b;
}

/* Of every row, the row of the same sequence that the other direction reads at that step. A cell
   that reads backwards is a cell with this as its index. */
static void carnn__reverse_index(const carnn__packed *p, uint32_t *reversed) {
    size_t t, b, length, live = 0;
    for (b = p->steps ? p->start[1] : 0; b-- > 0;) {
        for (length = live; length < p->steps; length++) /* shorter sequences have higher ranks */
            if (b >= p->start[length + 1] - p->start[length]) break;
        live = length;
        for (t = 0; t < length; t++)
            reversed[p->start[t] + b] = (uint32_t)carnn__reversed_row(p, length, t, b);
    }
}

/* --- both directions -------------------------------------------------------------------------
   out_t = [fw_t; bw_t] (N, 2h) from the states of a cell that reads forwards and of one that reads
   backwards, both in the order in which they were made; backward takes the gradient apart. */

static void carnn__join_directions(const float *fw, const float *bw, const uint32_t *reversed,
                                   size_t rows, size_t h, float *out) {
    size_t row;
    for (row = 0; row < rows; row++) {
        memcpy(out + row * 2 * h, fw + row * h, h * sizeof(float));
        memcpy(out + row * 2 * h + h, bw + reversed[row] * h, h * sizeof(float));
    }
}

static void carnn__part_directions(const float *dout, const uint32_t *reversed, size_t rows,
                                   size_t h, float *dfw, float *dbw) {
    size_t row;
    for (row = 0; row < rows; row++) {
        memcpy(dfw + row * h, dout + row * 2 * h, h * sizeof(float));
        memcpy(dbw + reversed[row] * h, dout + row * 2 * h + h, h * sizeof(float));
    }
}

/* --- pooling ---------------------------------------------------------------------------------
   Over the steps of each sequence: the largest value of every column (the first of equal ones), to
   which backward returns the gradient, or the mean. A sequence without steps gives zeros. */

static void carnn__pool_max(const carnn__packed *p, size_t h, const float *x, float *out,
                            uint32_t *where) {
    size_t t, b, j;
    memset(out, 0, p->sequences * h * sizeof(float));
    for (t = 0; t < p->steps; t++)
        for (b = 0; b < p->start[t + 1] - p->start[t]; b++) {
            size_t row = p->start[t] + b;
            for (j = 0; j < h; j++)
                if (!t || x[row * h + j] > out[b * h + j]) {
                    out[b * h + j] = x[row * h + j];
                    where[b * h + j] = (uint32_t)row;
                }
        }
}

/* dx (N, h) is added to. */
static void carnn__pool_max_back(const carnn__packed *p, size_t h, const float *dout,
                                 const uint32_t *where, float *dx) {
    size_t b, j, live = p->steps ? p->start[1] : 0;
    for (b = 0; b < live; b++)
        for (j = 0; j < h; j++) dx[where[b * h + j] * h + j] += dout[b * h + j];
}

/* The sequence of rank b has count[b] steps. */
static void carnn__pool_mean(const carnn__packed *p, size_t h, const float *x,
                             const uint32_t *count, float *out) {
    size_t t, b, j;
    memset(out, 0, p->sequences * h * sizeof(float));
    for (t = 0; t < p->steps; t++)
        for (b = 0; b < p->start[t + 1] - p->start[t]; b++)
            for (j = 0; j < h; j++)
                out[b * h + j] += x[(p->start[t] + b) * h + j] / (float)count[b];
}

static void carnn__pool_mean_back(const carnn__packed *p, size_t h, const float *dout,
                                  const uint32_t *count, float *dx) {
    size_t t, b, j;
    for (t = 0; t < p->steps; t++)
        for (b = 0; b < p->start[t + 1] - p->start[t]; b++)
            for (j = 0; j < h; j++)
                dx[(p->start[t] + b) * h + j] += dout[b * h + j] / (float)count[b];
}

#endif
/* =============================================================================================
   @@CELL   recurrent cells

   A cell reads rows x_t (e), a context c (d) that is constant over a sequence, and its own last
   state h_{t-1} (h). Its gates lie side by side, so that each of these three is ONE product for
   all gates:

     px = x Wx^T + b    for all rows at once, before the loop over time   (input.weight, bias)
     pc = c Wc^T        for all sequences at once                         (context.weight)
     ph = h_{t-1} Wh^T  inside the loop, only in cells that look at their state
                                                                        (recurrent.weight)

   What is left of a cell is elementwise, and is written below as two functions on 16 columns of one
   row ("lanes"): forward makes the state from px, pc, ph; backward makes the gradients dpx, dpc,
   dph from the gradient D that reaches h_t. Names in the comments are those of the equations: s is
   the logistic sigmoid, * is elementwise, h' and c' are the state one step before.
   ============================================================================================= */

#if defined(CARNN__ISA)

/* One row of a scan: the row of the arrays of carnn__scan that belongs to one sequence and step. */
typedef struct CARNN__K(row) {
    size_t h;
    int stage;
    const float *x, *px, *pc, *ph, *before, *c_before, *dout;
    float *tape, *out, *reset, *dh, *dc, *dx, *dpx, *dpc, *dph;
} CARNN__K(row);

#define CARNN__GET(p) CARNN__V(loadn)((p) + j, n)
#define CARNN__PUT(p, v) CARNN__V(storen)((p) + j, n, v)
#define CARNN__ADD_TO(p, v) CARNN__PUT(p, CARNN__V(add)(CARNN__GET(p), v))
#define CARNN__ONE CARNN__V(set1)(1.0f)

/* Gradient at the pre-activation of a gate from the gradient at its value: g (1 - g) dg, and
   (1 - z^2) dz for tanh. */
static CARNN__INLINE carnn__v CARNN__K(through_sigmoid)(carnn__v g, carnn__v dg) {
    return CARNN__V(mul)(CARNN__V(mul)(dg, g), CARNN__V(sub)(CARNN__ONE, g));
}
static CARNN__INLINE carnn__v CARNN__K(through_tanh)(carnn__v z, carnn__v dz) {
    return CARNN__V(mul)(dz, CARNN__V(fnma)(z, z, CARNN__ONE));
}

/* The gradient at a gate that reads x and h' goes to both projections. */
static CARNN__INLINE void CARNN__K(gate_gradient)(const CARNN__K(row) * r, size_t j, size_t n,
                                                  size_t gate, carnn__v da) {
    CARNN__ADD_TO(r->dpx + gate * r->h, da);
    CARNN__PUT(r->dph + gate * r->h, da);
}

/* --- linear recurrence -----------------------------------------------------------------------
   The kernel of all additive cells: y_t = A_t * y_{t-1} + Z_t. Backward is the same recurrence in
   reverse: D_t = G_t + A_{t+1} * D_{t+1}; dZ_t = D_t; dA_t = D_t * y_{t-1}. A cell only says what
   A and Z are, and how their gradients reach its gates. */

#define CARNN__ADDITIVE(id)                                                                        \
    static CARNN__INLINE void CARNN__K(id##_forward_lanes)(const CARNN__K(row) * r, size_t j,      \
                                                           size_t n) {                             \
        carnn__v A, Z;                                                                             \
        CARNN__K(id##_gates)(r, j, n, &A, &Z);                                                     \
        CARNN__PUT(r->out, CARNN__V(fma)(A, CARNN__GET(r->before), Z));                            \
    }                                                                                              \
    static CARNN__INLINE void CARNN__K(id##_backward_lanes)(const CARNN__K(row) * r, size_t j,     \
                                                            size_t n) {                            \
        carnn__v D = CARNN__V(add)(CARNN__GET(r->dout), CARNN__GET(r->dh));                        \
        carnn__v A = CARNN__K(id##_gradient)(r, j, n, D, CARNN__GET(r->before));                   \
        CARNN__PUT(r->dh, CARNN__V(mul)(A, D));                                                    \
    }

/* By itself, over one sequence that is so long that threads should share its steps and not its
   columns: a block's state is linear in the one before it, y = product * before + end, so blocks
   run side by side from 0, the states between them follow one from the other, and a second pass
   adds what flows in. Blocks have a fixed length, so threads change no bit. Bound by memory. */

static CARNN__INLINE void CARNN__K(recur_lanes)(const carnn__recurrence *r, size_t block, size_t j,
                                                size_t n) {
    size_t step = block * CARNN__RECURRENCE_BLOCK, C = r->columns;
    size_t stop = step + CARNN__RECURRENCE_BLOCK < r->steps ? step + CARNN__RECURRENCE_BLOCK
                                                           : r->steps;
    carnn__v product = CARNN__V(set1)(1.0f), y = CARNN__V(zero)();
    if (r->carrying) y = CARNN__V(loadn)(r->end + block * C + j, n);
    else if (!block && r->first) y = CARNN__V(loadn)(r->first + j, n);
    for (; step < stop; step++) {
        size_t row = r->reverse ? r->steps - 1 - step : step;
        carnn__v A = CARNN__V(zero)(), old;
        if (!r->reverse) A = CARNN__V(loadn)(r->A + row * C + j, n);
        else if (step) A = CARNN__V(loadn)(r->A + (row + 1) * C + j, n);
        if (r->carrying) {
            y = CARNN__V(mul)(A, y);
            old = CARNN__V(loadn)(r->y + row * C + j, n);
            CARNN__V(storen)(r->y + row * C + j, n, CARNN__V(add)(old, y));
        } else {
            product = CARNN__V(mul)(product, A);
            y = CARNN__V(fma)(A, y, CARNN__V(loadn)(r->Z + row * C + j, n));
            CARNN__V(storen)(r->y + row * C + j, n, y);
        }
    }
    if (r->carrying) return;
    CARNN__V(storen)(r->end + block * C + j, n, y);
    CARNN__V(storen)(r->product + block * C + j, n, product);
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

/* --- nCARNN, iCARNN, sCARNN ------------------------------------------------------------------
   Tran et al. 2018, Eq. 3, 5 and 6; a_u and a_f are the sums of the projections of each.

     u = s(a_u)   f = s(a_f)   h = u * (f * k) + (1 - u) * h'        A = 1 - u, Z = u * f * k

   nCARNN's gates see c, h' and x, iCARNN's c and x; both have the linear candidate k = W x + b.
   sCARNN is iCARNN with k = x. carnn-low has no f. ncarnn-free sees no c (Eq. 11).

   Backward: du = dZ * f * k - dA,  df = dZ * u * k,  dk = dZ * u * f. */

static CARNN__INLINE void CARNN__K(carnn_mix)(carnn__v u, carnn__v f, carnn__v k, carnn__v *A,
                                              carnn__v *Z) {
    *A = CARNN__V(sub)(CARNN__ONE, u);
    *Z = CARNN__V(mul)(CARNN__V(mul)(u, f), k);
}

/* Gradients at a_u, a_f and k of D and y_{t-1}; returns A. */
static CARNN__INLINE carnn__v CARNN__K(carnn_unmix)(carnn__v u, carnn__v f, carnn__v k, carnn__v D,
                                                    carnn__v y, carnn__v *du, carnn__v *df,
                                                    carnn__v *dk) {
    carnn__v fk = CARNN__V(mul)(f, k), uD = CARNN__V(mul)(u, D);
    *du = CARNN__K(through_sigmoid)(u, CARNN__V(mul)(D, CARNN__V(sub)(fk, y)));
    *df = CARNN__K(through_sigmoid)(f, CARNN__V(mul)(uD, k));
    *dk = CARNN__V(mul)(uD, f);
    return CARNN__V(sub)(CARNN__ONE, u);
}

/* iCARNN and sCARNN compute their gates again in backward: that costs less than the memory they
   would need, and px, which identical inputs share, is in the cache. */

#define CARNN__GATE_XC(g)                                                                          \
    CARNN__V(sigmoid)(CARNN__V(add)(CARNN__GET(r->px + (g) * r->h), CARNN__GET(r->pc + (g) * r->h)))

static CARNN__INLINE void CARNN__K(icarnn_gates)(const CARNN__K(row) * r, size_t j, size_t n,
                                                 carnn__v *A, carnn__v *Z) {
    CARNN__K(carnn_mix)(CARNN__GATE_XC(0), CARNN__GATE_XC(1), CARNN__GET(r->px + 2 * r->h), A, Z);
}

static CARNN__INLINE carnn__v CARNN__K(icarnn_gradient)(const CARNN__K(row) * r, size_t j, size_t n,
                                                        carnn__v D, carnn__v y) {
    carnn__v du, df, dk;
    carnn__v A = CARNN__K(carnn_unmix)(CARNN__GATE_XC(0), CARNN__GATE_XC(1),
                                       CARNN__GET(r->px + 2 * r->h), D, y, &du, &df, &dk);
    CARNN__ADD_TO(r->dpx, du);
    CARNN__ADD_TO(r->dpx + r->h, df);
    CARNN__ADD_TO(r->dpx + 2 * r->h, dk);
    CARNN__ADD_TO(r->dpc, du);
    CARNN__ADD_TO(r->dpc + r->h, df);
    return A;
}
CARNN__ADDITIVE(icarnn)

static CARNN__INLINE void CARNN__K(scarnn_gates)(const CARNN__K(row) * r, size_t j, size_t n,
                                                 carnn__v *A, carnn__v *Z) {
    CARNN__K(carnn_mix)(CARNN__GATE_XC(0), CARNN__GATE_XC(1), CARNN__GET(r->x), A, Z);
}

static CARNN__INLINE carnn__v CARNN__K(scarnn_gradient)(const CARNN__K(row) * r, size_t j, size_t n,
                                                        carnn__v D, carnn__v y) {
    carnn__v du, df, dk;
    carnn__v A = CARNN__K(carnn_unmix)(CARNN__GATE_XC(0), CARNN__GATE_XC(1), CARNN__GET(r->x), D, y,
                                       &du, &df, &dk);
    CARNN__ADD_TO(r->dpx, du);
    CARNN__ADD_TO(r->dpx + r->h, df);
    CARNN__ADD_TO(r->dpc, du);
    CARNN__ADD_TO(r->dpc + r->h, df);
    CARNN__ADD_TO(r->dx, dk);
    return A;
}
CARNN__ADDITIVE(scarnn)

static CARNN__INLINE void CARNN__K(carnn_low_gates)(const CARNN__K(row) * r, size_t j, size_t n,
                                                    carnn__v *A, carnn__v *Z) {
    CARNN__K(carnn_mix)(CARNN__GATE_XC(0), CARNN__ONE, CARNN__GET(r->x), A, Z);
}

static CARNN__INLINE carnn__v CARNN__K(carnn_low_gradient)(const CARNN__K(row) * r, size_t j,
                                                           size_t n, carnn__v D, carnn__v y) {
    carnn__v du, df, dk;
    carnn__v A = CARNN__K(carnn_unmix)(CARNN__GATE_XC(0), CARNN__ONE, CARNN__GET(r->x), D, y, &du,
                                       &df, &dk);
    CARNN__ADD_TO(r->dpx, du);
    CARNN__ADD_TO(r->dpc, du);
    CARNN__ADD_TO(r->dx, dk);
    return A;
}
CARNN__ADDITIVE(carnn_low)

/* nCARNN keeps u and f on the tape: ph, which they need, is gone after the step. */

static CARNN__INLINE void CARNN__K(ncarnn_keep)(const CARNN__K(row) * r, size_t j, size_t n,
                                                carnn__v u, carnn__v f, carnn__v *A, carnn__v *Z) {
    CARNN__PUT(r->tape, u);
    CARNN__PUT(r->tape + r->h, f);
    CARNN__K(carnn_mix)(u, f, CARNN__GET(r->px + 2 * r->h), A, Z);
}

#define CARNN__GATE_XH(g)                                                                          \
    CARNN__V(add)(CARNN__GET(r->px + (g) * r->h), CARNN__GET(r->ph + (g) * r->h))
#define CARNN__GATE_XHC(g) CARNN__V(add)(CARNN__GATE_XH(g), CARNN__GET(r->pc + (g) * r->h))

static CARNN__INLINE void CARNN__K(ncarnn_gates)(const CARNN__K(row) * r, size_t j, size_t n,
                                                 carnn__v *A, carnn__v *Z) {
    CARNN__K(ncarnn_keep)(r, j, n, CARNN__V(sigmoid)(CARNN__GATE_XHC(0)),
                          CARNN__V(sigmoid)(CARNN__GATE_XHC(1)), A, Z);
}

static CARNN__INLINE void CARNN__K(ncarnn_free_gates)(const CARNN__K(row) * r, size_t j, size_t n,
                                                      carnn__v *A, carnn__v *Z) {
    CARNN__K(ncarnn_keep)(r, j, n, CARNN__V(sigmoid)(CARNN__GATE_XH(0)),
                          CARNN__V(sigmoid)(CARNN__GATE_XH(1)), A, Z);
}

static CARNN__INLINE carnn__v CARNN__K(ncarnn_free_gradient)(const CARNN__K(row) * r, size_t j,
                                                             size_t n, carnn__v D, carnn__v y) {
    carnn__v du, df, dk;
    carnn__v A = CARNN__K(carnn_unmix)(CARNN__GET(r->tape), CARNN__GET(r->tape + r->h),
                                       CARNN__GET(r->px + 2 * r->h), D, y, &du, &df, &dk);
    CARNN__K(gate_gradient)(r, j, n, 0, du);
    CARNN__K(gate_gradient)(r, j, n, 1, df);
    CARNN__ADD_TO(r->dpx + 2 * r->h, dk);
    return A;
}

static CARNN__INLINE carnn__v CARNN__K(ncarnn_gradient)(const CARNN__K(row) * r, size_t j, size_t n,
                                                        carnn__v D, carnn__v y) {
    carnn__v A = CARNN__K(ncarnn_free_gradient)(r, j, n, D, y);
    CARNN__ADD_TO(r->dpc, CARNN__GET(r->dph));
    CARNN__ADD_TO(r->dpc + r->h, CARNN__GET(r->dph + r->h));
    return A;
}
CARNN__ADDITIVE(ncarnn)
CARNN__ADDITIVE(ncarnn_free)

/* --- RAN -------------------------------------------------------------------------------------
   Tran et al. 2018, Eq. 2 (Lee et al. 2017): z = Wz x without bias, i = s(a_i), f = s(a_f) that see
   h' and x, c = i * z + f * c': the linear recurrence with A = f, Z = i * z. h = c (ran) or
   tanh(c) (ran-tanh).

   Backward, from the gradient D at c: di = D * z, df = D * c', dz = D * i. */

static CARNN__INLINE void CARNN__K(ran_gates)(const CARNN__K(row) * r, size_t j, size_t n,
                                              carnn__v *A, carnn__v *Z) {
    carnn__v i = CARNN__V(sigmoid)(CARNN__GATE_XH(0)), f = CARNN__V(sigmoid)(CARNN__GATE_XH(1));
    CARNN__PUT(r->tape, i);
    CARNN__PUT(r->tape + r->h, f);
    *A = f;
    *Z = CARNN__V(mul)(i, CARNN__GET(r->px + 2 * r->h));
}

static CARNN__INLINE carnn__v CARNN__K(ran_gradient)(const CARNN__K(row) * r, size_t j, size_t n,
                                                     carnn__v D, carnn__v y) {
    carnn__v i = CARNN__GET(r->tape), f = CARNN__GET(r->tape + r->h);
    carnn__v z = CARNN__GET(r->px + 2 * r->h);
    CARNN__K(gate_gradient)(r, j, n, 0, CARNN__K(through_sigmoid)(i, CARNN__V(mul)(D, z)));
    CARNN__K(gate_gradient)(r, j, n, 1, CARNN__K(through_sigmoid)(f, CARNN__V(mul)(D, y)));
    CARNN__ADD_TO(r->dpx + 2 * r->h, CARNN__V(mul)(D, i));
    return f;
}
CARNN__ADDITIVE(ran)

static CARNN__INLINE void CARNN__K(ran_tanh_forward_lanes)(const CARNN__K(row) * r, size_t j,
                                                           size_t n) {
    carnn__v A, Z, c;
    CARNN__K(ran_gates)(r, j, n, &A, &Z);
    c = CARNN__V(fma)(A, CARNN__GET(r->c_before), Z);
    CARNN__PUT(r->tape + 2 * r->h, c);
    CARNN__PUT(r->out, CARNN__V(tanh)(c));
}

static CARNN__INLINE void CARNN__K(ran_tanh_backward_lanes)(const CARNN__K(row) * r, size_t j,
                                                            size_t n) {
    carnn__v D = CARNN__V(add)(CARNN__GET(r->dout), CARNN__GET(r->dh)), f;
    D = CARNN__V(add)(CARNN__GET(r->dc), CARNN__K(through_tanh)(CARNN__GET(r->out), D));
    f = CARNN__K(ran_gradient)(r, j, n, D, CARNN__GET(r->c_before));
    CARNN__PUT(r->dc, CARNN__V(mul)(f, D));
    CARNN__PUT(r->dh, CARNN__V(zero)());
}

/* --- vanilla RNN -----------------------------------------------------------------------------
   h = tanh(a), a = Wx x + Wh h' + b; backward da = (1 - h^2) D. */

static CARNN__INLINE void CARNN__K(rnn_forward_lanes)(const CARNN__K(row) * r, size_t j, size_t n) {
    CARNN__PUT(r->out, CARNN__V(tanh)(CARNN__GATE_XH(0)));
}

static CARNN__INLINE void CARNN__K(rnn_backward_lanes)(const CARNN__K(row) * r, size_t j,
                                                       size_t n) {
    carnn__v D = CARNN__V(add)(CARNN__GET(r->dout), CARNN__GET(r->dh));
    CARNN__K(gate_gradient)(r, j, n, 0, CARNN__K(through_tanh)(CARNN__GET(r->out), D));
    CARNN__PUT(r->dh, CARNN__V(zero)());
}

/* --- LSTM and carnn-high ---------------------------------------------------------------------
   Tran et al. 2018, Eq. 1: i = s(a_i), f = s(a_f), o = s(a_o), z = tanh(a_z),
   c = i * z + f * c', h = o * tanh(c). carnn-high adds a context term to a_i, a_f and a_o
   (section 5.1, "LSTM with three gates that are functions of the context").
   Tape: i, f, o, z, c.

   Backward: do = D * tanh(c); the gradient at c is what comes from the step after and
   D * o * (1 - tanh(c)^2), in all Dc; di = Dc * z, df = Dc * c', dz = Dc * i, dc' = Dc * f. */

static CARNN__INLINE void CARNN__K(lstm_state)(const CARNN__K(row) * r, size_t j, size_t n,
                                               carnn__v a_i, carnn__v a_f, carnn__v a_o) {
    carnn__v i = CARNN__V(sigmoid)(a_i), f = CARNN__V(sigmoid)(a_f), o = CARNN__V(sigmoid)(a_o);
    carnn__v z = CARNN__V(tanh)(CARNN__GATE_XH(3));
    carnn__v c = CARNN__V(fma)(f, CARNN__GET(r->c_before), CARNN__V(mul)(i, z));
    CARNN__PUT(r->tape, i);
    CARNN__PUT(r->tape + r->h, f);
    CARNN__PUT(r->tape + 2 * r->h, o);
    CARNN__PUT(r->tape + 3 * r->h, z);
    CARNN__PUT(r->tape + 4 * r->h, c);
    CARNN__PUT(r->out, CARNN__V(mul)(o, CARNN__V(tanh)(c)));
}

static CARNN__INLINE void CARNN__K(lstm_forward_lanes)(const CARNN__K(row) * r, size_t j,
                                                       size_t n) {
    CARNN__K(lstm_state)(r, j, n, CARNN__GATE_XH(0), CARNN__GATE_XH(1), CARNN__GATE_XH(2));
}

static CARNN__INLINE void CARNN__K(carnn_high_forward_lanes)(const CARNN__K(row) * r, size_t j,
                                                             size_t n) {
    CARNN__K(lstm_state)(r, j, n, CARNN__GATE_XHC(0), CARNN__GATE_XHC(1), CARNN__GATE_XHC(2));
}

static CARNN__INLINE void CARNN__K(lstm_backward_lanes)(const CARNN__K(row) * r, size_t j,
                                                        size_t n) {
    carnn__v i = CARNN__GET(r->tape), f = CARNN__GET(r->tape + r->h);
    carnn__v o = CARNN__GET(r->tape + 2 * r->h), z = CARNN__GET(r->tape + 3 * r->h);
    carnn__v th = CARNN__V(tanh)(CARNN__GET(r->tape + 4 * r->h));
    carnn__v D = CARNN__V(add)(CARNN__GET(r->dout), CARNN__GET(r->dh));
    carnn__v Dc = CARNN__V(add)(CARNN__GET(r->dc),
                                CARNN__K(through_tanh)(th, CARNN__V(mul)(D, o)));
    CARNN__K(gate_gradient)(r, j, n, 0, CARNN__K(through_sigmoid)(i, CARNN__V(mul)(Dc, z)));
    CARNN__K(gate_gradient)
    (r, j, n, 1, CARNN__K(through_sigmoid)(f, CARNN__V(mul)(Dc, CARNN__GET(r->c_before))));
    CARNN__K(gate_gradient)(r, j, n, 2, CARNN__K(through_sigmoid)(o, CARNN__V(mul)(D, th)));
    CARNN__K(gate_gradient)(r, j, n, 3, CARNN__K(through_tanh)(z, CARNN__V(mul)(Dc, i)));
    CARNN__PUT(r->dc, CARNN__V(mul)(Dc, f));
    CARNN__PUT(r->dh, CARNN__V(zero)());
}

static CARNN__INLINE void CARNN__K(carnn_high_backward_lanes)(const CARNN__K(row) * r, size_t j,
                                                              size_t n) {
    size_t gate;
    CARNN__K(lstm_backward_lanes)(r, j, n);
    for (gate = 0; gate < 3; gate++)
        CARNN__ADD_TO(r->dpc + gate * r->h, CARNN__GET(r->dph + gate * r->h));
}

/* --- GRU -------------------------------------------------------------------------------------
   u = s(a_u), r = s(a_r) that see h' and x; h = (1 - u) * h' + u * z.
   gru:       z = tanh(Wz x + Uz (r * h') + b), two products in a step (Cho et al. 2014);
   gru-after: z = tanh(Wz x + b + r * (Uz h' + b')), one product (cuDNN, PyTorch). Those mix with
   u and 1 - u exchanged, which is the same cell with the signs of the weights of u turned.
   Tape: u, r, z, and k = r * h' (gru) or Uz h' + b' (gru-after).

   Backward: du = D * (z - h'), dz = D * u, dh' = (1 - u) * D and what comes through the products;
   gru: dk = Uz^T da_z, dr = dk * h', dh' += dk * r; gru-after: dr = da_z * k, dk = da_z * r. */

static CARNN__INLINE void CARNN__K(gru_mix)(const CARNN__K(row) * r, size_t j, size_t n, carnn__v u,
                                            carnn__v z) {
    carnn__v before = CARNN__GET(r->before);
    CARNN__PUT(r->tape + 2 * r->h, z);
    CARNN__PUT(r->out, CARNN__V(fma)(u, CARNN__V(sub)(z, before), before));
}

static CARNN__INLINE void CARNN__K(gru_forward_lanes)(const CARNN__K(row) * r, size_t j, size_t n) {
    if (r->stage == 0) {
        carnn__v reset = CARNN__V(sigmoid)(CARNN__GATE_XH(1));
        carnn__v k = CARNN__V(mul)(reset, CARNN__GET(r->before));
        CARNN__PUT(r->tape, CARNN__V(sigmoid)(CARNN__GATE_XH(0)));
        CARNN__PUT(r->tape + r->h, reset);
        CARNN__PUT(r->tape + 3 * r->h, k);
        CARNN__PUT(r->reset, k);
    } else {
        CARNN__K(gru_mix)(r, j, n, CARNN__GET(r->tape), CARNN__V(tanh)(CARNN__GATE_XH(2)));
    }
}

static CARNN__INLINE void CARNN__K(gru_after_forward_lanes)(const CARNN__K(row) * r, size_t j,
                                                            size_t n) {
    carnn__v u = CARNN__V(sigmoid)(CARNN__GATE_XH(0)), reset = CARNN__V(sigmoid)(CARNN__GATE_XH(1));
    carnn__v k = CARNN__GET(r->ph + 2 * r->h);
    CARNN__PUT(r->tape, u);
    CARNN__PUT(r->tape + r->h, reset);
    CARNN__PUT(r->tape + 3 * r->h, k);
    CARNN__K(gru_mix)
    (r, j, n, u, CARNN__V(tanh)(CARNN__V(fma)(reset, k, CARNN__GET(r->px + 2 * r->h))));
}

/* D through the mix: the gradient of u into both projections, (1 - u) D into dh; returns da_z. */
static CARNN__INLINE carnn__v CARNN__K(gru_unmix)(const CARNN__K(row) * r, size_t j, size_t n) {
    carnn__v D = CARNN__V(add)(CARNN__GET(r->dout), CARNN__GET(r->dh));
    carnn__v u = CARNN__GET(r->tape), z = CARNN__GET(r->tape + 2 * r->h);
    carnn__v du = CARNN__V(mul)(D, CARNN__V(sub)(z, CARNN__GET(r->before)));
    CARNN__K(gate_gradient)(r, j, n, 0, CARNN__K(through_sigmoid)(u, du));
    CARNN__PUT(r->dh, CARNN__V(fnma)(u, D, D));
    return CARNN__K(through_tanh)(z, CARNN__V(mul)(D, u));
}

static CARNN__INLINE void CARNN__K(gru_backward_lanes)(const CARNN__K(row) * r, size_t j,
                                                       size_t n) {
    if (r->stage == 1) {
        CARNN__K(gate_gradient)(r, j, n, 2, CARNN__K(gru_unmix)(r, j, n));
    } else { /* r->reset holds dk */
        carnn__v dk = CARNN__GET(r->reset), reset = CARNN__GET(r->tape + r->h);
        carnn__v dr = CARNN__V(mul)(dk, CARNN__GET(r->before));
        CARNN__K(gate_gradient)(r, j, n, 1, CARNN__K(through_sigmoid)(reset, dr));
        CARNN__PUT(r->dh, CARNN__V(fma)(dk, reset, CARNN__GET(r->dh)));
    }
}

static CARNN__INLINE void CARNN__K(gru_after_backward_lanes)(const CARNN__K(row) * r, size_t j,
                                                             size_t n) {
    carnn__v da = CARNN__K(gru_unmix)(r, j, n), reset = CARNN__GET(r->tape + r->h);
    carnn__v dr = CARNN__V(mul)(da, CARNN__GET(r->tape + 3 * r->h));
    CARNN__K(gate_gradient)(r, j, n, 1, CARNN__K(through_sigmoid)(reset, dr));
    CARNN__ADD_TO(r->dpx + 2 * r->h, da);
    CARNN__PUT(r->dph + 2 * r->h, CARNN__V(mul)(da, reset));
}

/* --- the loops around the lanes --------------------------------------------------------------
   Over steps, sequences and columns, the same for all cells: rows stream through the cache in the
   order in which they lie. Bound by the vector unit (two sigmoids a column) as long as the rows of
   a step stay in the second-level cache. */

static CARNN__INLINE CARNN__K(row)
    CARNN__K(scan_row)(const carnn__scan *s, size_t t, size_t b, size_t gates, size_t context_gates,
                       size_t recurrent_gates, size_t tape, size_t flags) {
    size_t h = s->h, row = s->seq->start[t] + b, input = s->index ? s->index[row] : row;
    size_t last = t ? s->seq->start[t - 1] + b : 0;
    CARNN__K(row) r;
    r.h = h;
    r.stage = s->stage;
    r.before = t ? s->out + last * h : s->h0 + b * h;
    r.out = s->out + row * h;
    r.px = s->px + input * gates * h;
    r.x = flags & CARNN__INPUT_IS_CANDIDATE ? s->x + input * h : NULL;
    r.pc = context_gates ? s->pc + b * context_gates * h : NULL;
    r.ph = recurrent_gates ? s->ph + b * recurrent_gates * h : NULL;
    r.tape = tape ? s->tape + row * tape * h : NULL;
    r.reset = flags & CARNN__TWO_STAGES ? s->reset + b * h : NULL;
    r.c_before = NULL;
    if (flags & CARNN__HAS_CELL_STATE) /* c stands last on the tape of its row */
        r.c_before = t ? s->tape + (last * tape + tape - 1) * h : s->c0 + b * h;
    r.dout = NULL;
    r.dh = r.dc = r.dx = r.dpx = r.dpc = r.dph = NULL;
    return r;
}

/* The same with the gradients. */
static CARNN__INLINE CARNN__K(row)
    CARNN__K(scan_gradient_row)(const carnn__scan *s, size_t t, size_t b, size_t gates,
                                size_t context_gates, size_t recurrent_gates, size_t tape,
                                size_t flags) {
    size_t h = s->h, row = s->seq->start[t] + b, input = s->index ? s->index[row] : row;
    CARNN__K(row) r = CARNN__K(scan_row)(s, t, b, gates, context_gates, recurrent_gates, tape,
                                         flags);
    r.dout = s->dout + row * h;
    r.dh = s->dh + b * h;
    r.dpx = s->dpx + input * gates * h;
    if (flags & CARNN__HAS_CELL_STATE) r.dc = s->dc + b * h;
    if (flags & CARNN__INPUT_IS_CANDIDATE) r.dx = s->dx + input * h;
    if (context_gates) r.dpc = s->dpc + b * context_gates * h;
    if (recurrent_gates) r.dph = s->dph + row * recurrent_gates * h;
    return r;
}

#define CARNN__SCAN(id, name, title, gates, gb, context_gates, recurrent_gates, gr, tape, gate,    \
                    bias, flags)                                                                   \
    static void CARNN__K(id##_forward)(const carnn__scan *s, size_t t0, size_t t1, size_t from,    \
                                       size_t to) {                                                \
        size_t t, b, j;                                                                            \
        for (t = t0; t < t1; t++)                                                                  \
            for (b = s->first; b < carnn__scan_end(s, t); b++) {                                   \
                const CARNN__K(row) r = CARNN__K(scan_row)(s, t, b, gates, context_gates,          \
                                                           recurrent_gates, tape, flags);          \
                for (j = from; j + 16 <= to; j += 16) CARNN__K(id##_forward_lanes)(&r, j, 16);     \
                if (j < to) CARNN__K(id##_forward_lanes)(&r, j, to - j);                           \
            }                                                                                      \
    }                                                                                              \
    static void CARNN__K(id##_backward)(const carnn__scan *s, size_t t0, size_t t1, size_t from,   \
                                        size_t to) {                                               \
        size_t t, b, j;                                                                            \
        for (t = t1; t-- > t0;)                                                                    \
            for (b = s->first; b < carnn__scan_end(s, t); b++) {                                   \
                const CARNN__K(row) r = CARNN__K(scan_gradient_row)(                               \
                    s, t, b, gates, context_gates, recurrent_gates, tape, flags);                  \
                for (j = from; j + 16 <= to; j += 16) CARNN__K(id##_backward_lanes)(&r, j, 16);    \
                if (j < to) CARNN__K(id##_backward_lanes)(&r, j, to - j);                          \
            }                                                                                      \
    }
CARNN__CELLS(CARNN__SCAN)

#undef CARNN__SCAN
#undef CARNN__GET
#undef CARNN__PUT
#undef CARNN__ADD_TO
#undef CARNN__ONE
#undef CARNN__ADDITIVE
#undef CARNN__GATE_XC
#undef CARNN__GATE_XH
#undef CARNN__GATE_XHC

#endif

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

typedef struct carnn__cell_kind {
    const char *name, *title;
    size_t gates, bias_gates, context_gates, recurrent_gates, recurrent_bias, tape;
    size_t open_gate;  /* the gate whose bias starts at open_bias, e.g. LSTM's forget gate at 1 */
    float open_bias;
    size_t flags;
} carnn__cell_kind;

#define CARNN__CELL_ENTRY(id, name, title, g, gb, gc, gh, gr, tape, gate, bias, flags)             \
    {name, title, g, gb, gc, gh, gr, tape, gate, bias, flags},
static const carnn__cell_kind carnn__cells[] = {CARNN__CELLS(CARNN__CELL_ENTRY)};
#undef CARNN__CELL_ENTRY

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
    size_t input, bias, context, recurrent, recurrent_bias; /* parameter numbers */
} carnn__cell;

/* Declares the weights: (gates h, e), (bias gates h), (context gates h, d), (recurrent gates h, h),
   each gate a matrix of its own to the initialiser. */
static void carnn__cell_declare(carnn__cell *cell, carnn__store *store, const char *prefix,
                                size_t kind, size_t e, size_t h, size_t d) {
    const carnn__cell_kind *k = &carnn__cells[kind];
    cell->kind = kind;
    cell->e = e;
    cell->h = h;
    cell->d = k->context_gates ? d : 0;
    cell->input = carnn__declare(store, prefix, "input.weight", k->gates * h, e, h,
                                 CARNN__INIT_GLOROT, 0.0f);
    cell->bias = carnn__declare(store, prefix, "bias", 1, k->bias_gates * h, 1, CARNN__INIT_ZERO,
                                0.0f);
    if (k->context_gates)
        cell->context = carnn__declare(store, prefix, "context.weight", k->context_gates * h, d, h,
                                       CARNN__INIT_GLOROT, 0.0f);
    if (k->recurrent_gates)
        cell->recurrent = carnn__declare(store, prefix, "recurrent.weight", k->recurrent_gates * h,
                                         h, h, CARNN__INIT_GLOROT, 0.0f);
    if (k->recurrent_bias)
        cell->recurrent_bias = carnn__declare(store, prefix, "recurrent.bias", 1,
                                              k->recurrent_gates * h, 1, CARNN__INIT_ZERO, 0.0f);
}

/* After carnn__store_init: the one bias that does not start at 0. */
static void carnn__cell_init_bias(const carnn__cell *cell, carnn__store *store) {
    const carnn__cell_kind *k = &carnn__cells[cell->kind];
    float *b = carnn__piece(store, store->value, cell->bias) + k->open_gate * cell->h;
    size_t i;
    for (i = 0; i < cell->h; i++) b[i] = k->open_bias;
}

/* --- a cell at work --------------------------------------------------------------------------
   The stages can be repeated: inputs are projected once, then any number of packed batches over
   them (each with its own context) run forward and backward, then the gradients of all of them go
   back through the input projection at once. */

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
    float *wh[2], *wh_back[2]; /* recurrent weights of each product of a step (a GRU has two),
                                  packed for h' Wh^T and for dph Wh */
    float *last;        /* (N, h): h_{t-1} of every row, for the gradient of Wh */
} carnn__cell_run;

/* The recurrent products of one step, and the gates that each makes. */
static size_t carnn__products(const carnn__cell_kind *k) {
    return !k->recurrent_gates ? 0 : k->flags & CARNN__TWO_STAGES ? 2 : 1;
}

static size_t carnn__product_gates(const carnn__cell_kind *k, size_t product) {
    if (!(k->flags & CARNN__TWO_STAGES)) return k->recurrent_gates;
    return product ? 1 : k->recurrent_gates - 1;
}

static size_t carnn__product_first_gate(const carnn__cell_kind *k, size_t product) {
    return product ? k->recurrent_gates - 1 : 0;
}

/* Takes the memory for at most U inputs, N rows, B sequences; `g` NULL: forward only. */
static void carnn__cell_plan(carnn__cell_run *r, const carnn__cell *cell, const carnn__store *store,
                             const float *w, float *g, carnn__arena *arena, size_t U, size_t N,
                             size_t B) {
    const carnn__cell_kind *k = &carnn__cells[cell->kind];
    size_t h = cell->h, recurrent = k->recurrent_gates, p;
    carnn__scan *s = &r->scan;
    memset(r, 0, sizeof *r);
    r->cell = cell;
    r->store = store;
    r->w = w;
    r->g = g;
    s->h = h;
    s->px = carnn__floats(arena, U, k->gates * h);
    if (k->context_gates) s->pc = carnn__floats(arena, B, k->context_gates * h);
    s->out = carnn__floats(arena, N, h);
    r->zeros = carnn__floats(arena, B, h);
    if (arena->base && r->zeros) memset((void *)r->zeros, 0, B * h * sizeof(float));
    if (k->tape) s->tape = carnn__floats(arena, N, k->tape * h);
    if (k->flags & CARNN__TWO_STAGES) s->reset = carnn__floats(arena, B, h);
    if (recurrent) {
        s->ph = carnn__floats(arena, B, recurrent * h);
        for (p = 0; p < carnn__products(k); p++)
            r->wh[p] = carnn__floats(arena, 1,
                                     carnn__packed_size(carnn__product_gates(k, p) * h, h));
    }
    if (!g) return;
    s->dh = carnn__floats(arena, B, h);
    s->dpx = carnn__floats(arena, U, k->gates * h);
    if (k->flags & CARNN__HAS_CELL_STATE) s->dc = carnn__floats(arena, B, h);
    if (k->context_gates) s->dpc = carnn__floats(arena, B, k->context_gates * h);
    if (recurrent) {
        s->dph = carnn__floats(arena, N, recurrent * h);
        r->last = carnn__floats(arena, N, h);
        for (p = 0; p < carnn__products(k); p++)
            r->wh_back[p] = carnn__floats(arena, 1,
                                          carnn__packed_size(h, carnn__product_gates(k, p) * h));
    }
}

static inline const float *carnn__cell_weight(const carnn__cell_run *r, size_t number) {
    return r->w + r->store->item[number].offset;
}

static inline float *carnn__cell_gradient(const carnn__cell_run *r, size_t number) {
    return carnn__piece(r->store, r->g, number);
}

/* Readies the recurrent weights: call it whenever the weights have changed. */
static void carnn__cell_ready(carnn__cell_run *r, carnn__engine *e) {
    const carnn__cell_kind *k = &carnn__cells[r->cell->kind];
    size_t h = r->cell->h, p;
    for (p = 0; p < carnn__products(k); p++) {
        const float *wh = carnn__cell_weight(r, r->cell->recurrent) +
                          carnn__product_first_gate(k, p) * h * h;
        size_t rows = carnn__product_gates(k, p) * h;
        carnn__pack(e, CARNN__NT, rows, h, wh, h, r->wh[p]);
        if (r->g) carnn__pack(e, CARNN__NN, h, rows, wh, h, r->wh_back[p]);
    }
}

/* px = x Wx^T + b for the inputs [from, to) of x (U, e); gates without a bias are a product of
   their own. */
static void carnn__cell_project(carnn__cell_run *r, carnn__engine *e, const float *x, size_t from,
                                size_t to) {
    const carnn__cell_kind *k = &carnn__cells[r->cell->kind];
    size_t h = r->cell->h, in = r->cell->e, width = k->gates * h, biased = k->bias_gates * h;
    const float *wx = carnn__cell_weight(r, r->cell->input);
    float *px = (float *)r->scan.px + from * width;
    r->x = r->scan.x = x;
    r->inputs = to;
    x += from * in;
    carnn__matmul(e, CARNN__NT, to - from, biased, in, x, in, wx, in,
                  carnn__cell_weight(r, r->cell->bias), px, width);
    if (biased < width)
        carnn__matmul(e, CARNN__NT, to - from, width - biased, in, x, in, wx + biased * in, in,
                      NULL, px + biased, width);
    if (r->g) memset(r->scan.dpx + from * width, 0, (to - from) * width * sizeof(float));
}

/* pc = c Wc^T for the contexts c (B, d) of the sequences, in the order of their ranks. */
static void carnn__cell_context(carnn__cell_run *r, carnn__engine *e, const float *c, size_t B) {
    const carnn__cell_kind *k = &carnn__cells[r->cell->kind];
    size_t d = r->cell->d, width = k->context_gates * r->cell->h;
    r->c = c;
    if (width)
        carnn__matmul(e, CARNN__NT, B, width, d, c, d, carnn__cell_weight(r, r->cell->context), d,
                      NULL, (float *)r->scan.pc, width);
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

/* Columns are independent of each other in everything elementwise, so threads share them; below
   about 16,000 states waking a thread costs more than it gives. */
static void carnn__scan_steps(carnn__engine *e, const carnn__scan *s, carnn__scan_fn fn, size_t t0,
                              size_t t1) {
    size_t threads = carnn__pool_active(e->pool);
    size_t states = (s->seq->start[t1] - s->seq->start[t0]) * s->h;
    carnn__scan_job job = {s, fn, t0, t1, s->h};
    if (threads > 1 && states >= 16384) job.columns = carnn__part(s->h, threads, CARNN__LANES);
    if (s->h)
        carnn__parallel(e->pool, carnn__parts(s->h, job.columns), carnn__scan_piece, &job);
}

/* The recurrent projections of step t: ph = h' Wh^T (+ b), for product p; a GRU's second product
   reads r * h'. */
static void carnn__cell_recur(carnn__cell_run *r, carnn__engine *e, size_t t, size_t p) {
    const carnn__cell_kind *k = &carnn__cells[r->cell->kind];
    const carnn__scan *s = &r->scan;
    size_t h = s->h, live = carnn__scan_end(s, t) - s->first;
    size_t gate = carnn__product_first_gate(k, p), width = k->recurrent_gates * h;
    const float *state = p ? s->reset : t ? s->out + s->seq->start[t - 1] * h : s->h0;
    const float *bias = k->recurrent_bias ? carnn__cell_weight(r, r->cell->recurrent_bias) : NULL;
    carnn__matmul_packed(e, 0, live, carnn__product_gates(k, p) * h, h, state + s->first * h, h,
                         r->wh[p], bias, s->ph + s->first * width + gate * h, width);
}

static void carnn__cell_steps(carnn__cell_run *r, carnn__engine *e) {
    carnn__scan_fn fn = e->k->cell_forward[r->cell->kind];
    size_t products = carnn__products(&carnn__cells[r->cell->kind]), t, p;
    for (t = 0; t < r->scan.seq->steps; t++)
        for (p = 0; p < products; p++) {
            carnn__cell_recur(r, e, t, p);
            r->scan.stage = (int)p;
            carnn__scan_steps(e, &r->scan, fn, t, t + 1);
        }
}

/* --- bands: sequences side by side in threads -------------------------------------------------
   Within a step threads would have to wait for each other after every product. Where the recurrent
   weights are small enough for the cache of each, a thread takes some of the sequences, a band of
   ranks, through all steps instead; but not where sequences share inputs, to whose gradients both
   would add. */

typedef void (*carnn__steps_fn)(carnn__cell_run *r, carnn__engine *e);

typedef struct carnn__bands {
    const carnn__cell_run *run;
    carnn__engine *e;
    carnn__steps_fn steps;
    size_t count;
} carnn__bands;

/* Recurrent weights up to here, 1 MiB, are read by each thread at every step. */
#define CARNN__BAND_WEIGHTS ((size_t)1 << 18)
/* Sequences that a band has at least, on average. */
#define CARNN__BAND_SEQUENCES 8
/* What reading the weights at one step costs, in rows of a product. */
#define CARNN__BAND_STEP 4

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
    job->steps(&run, &e);
}

/* Takes all sequences through all steps, in bands where that pays. */
static void carnn__bands_run(carnn__cell_run *r, carnn__engine *e, carnn__steps_fn steps) {
    const carnn__packed *seq = r->scan.seq;
    size_t weights = carnn__cells[r->cell->kind].recurrent_gates * r->scan.h * r->scan.h;
    size_t threads = carnn__pool_active(e->pool);
    carnn__bands job = {r, e, steps, 1};
    if (weights <= CARNN__BAND_WEIGHTS && !r->scan.index &&
        (double)weights * (double)seq->rows >= CARNN__PARALLEL_FROM)
        job.count = carnn__min(threads, seq->sequences / CARNN__BAND_SEQUENCES);
    if (job.count > 1)
        carnn__parallel(e->pool, job.count, carnn__band_run, &job);
    else
        steps(r, e);
}

/* Runs the packed batch `seq` over the projected inputs: row i has input index[i] (NULL: i).
   h0, c0 (B, h): initial states, NULL: 0. The states are then in r->scan.out (N, h). */
static void carnn__cell_forward(carnn__cell_run *r, carnn__engine *e, const carnn__packed *seq,
                                const uint32_t *index, const float *h0, const float *c0) {
    const carnn__cell_kind *k = &carnn__cells[r->cell->kind];
    carnn__scan *s = &r->scan;
    s->seq = seq;
    s->first = 0;
    s->end = seq->sequences;
    s->index = index;
    s->h0 = h0 ? h0 : r->zeros;
    s->c0 = c0 ? c0 : r->zeros;
    if (k->recurrent_gates)
        carnn__bands_run(r, e, carnn__cell_steps);
    else
        carnn__scan_steps(e, s, e->k->cell_forward[r->cell->kind], 0, seq->steps);
}

/* dh' += dph Wh at step t for product p; a GRU's second product leaves its dk in `reset`. */
static void carnn__cell_recur_back(carnn__cell_run *r, carnn__engine *e, size_t t, size_t p) {
    const carnn__cell_kind *k = &carnn__cells[r->cell->kind];
    const carnn__scan *s = &r->scan;
    size_t h = s->h, width = k->recurrent_gates * h, live = carnn__scan_end(s, t) - s->first;
    const float *dph = s->dph + (s->seq->start[t] + s->first) * width +
                       carnn__product_first_gate(k, p) * h;
    carnn__matmul_packed(e, p ? 0 : CARNN__ADD, live, h, carnn__product_gates(k, p) * h, dph, width,
                         r->wh_back[p], NULL, (p ? s->reset : s->dh) + s->first * h, h);
}

static void carnn__cell_steps_back(carnn__cell_run *r, carnn__engine *e) {
    carnn__scan_fn fn = e->k->cell_backward[r->cell->kind];
    size_t t, p;
    for (t = r->scan.seq->steps; t-- > 0;)
        for (p = carnn__products(&carnn__cells[r->cell->kind]); p-- > 0;) {
            r->scan.stage = (int)p;
            carnn__scan_steps(e, &r->scan, fn, t, t + 1);
            carnn__cell_recur_back(r, e, t, p);
        }
}

/* Gradient of the recurrent weights: dWh += dph^T H' over all rows, H' the states one step before
   (r * h' for a GRU's second product). */
static void carnn__cell_recurrent_gradient(carnn__cell_run *r, carnn__engine *e) {
    const carnn__cell_kind *k = &carnn__cells[r->cell->kind];
    const carnn__scan *s = &r->scan;
    size_t h = s->h, N = s->seq->rows, width = k->recurrent_gates * h, t, p, row;
    float *dwh = carnn__cell_gradient(r, r->cell->recurrent);
    for (p = 0; p < carnn__products(k); p++) {
        size_t first = carnn__product_first_gate(k, p) * h;
        for (t = 0; t < s->seq->steps; t++) {
            size_t live = s->seq->start[t + 1] - s->seq->start[t];
            const float *state = t ? s->out + s->seq->start[t - 1] * h : s->h0;
            float *last = r->last + s->seq->start[t] * h;
            if (!p) memcpy(last, state, live * h * sizeof(float));
            else /* k = r * h' stands last on the tape */
                for (row = 0; row < live; row++)
                    memcpy(last + row * h,
                           s->tape + ((s->seq->start[t] + row + 1) * k->tape - 1) * h,
                           h * sizeof(float));
        }
        carnn__matmul(e, CARNN__TN | CARNN__ADD, carnn__product_gates(k, p) * h, h, N,
                      s->dph + first, width, r->last, h, NULL, dwh + first * h, h);
    }
    if (k->recurrent_bias)
        carnn__column_sums(e, N, width, s->dph, width,
                           carnn__cell_gradient(r, r->cell->recurrent_bias));
}

/* Backward over the batch of the last forward. dout (N, h) is the gradient at the states; dx
   (U, e) is added to (only cells whose candidate is the input touch it here). Afterwards
   r->scan.dh and .dc (B, h) are the gradients of the initial states and .dpc that of the context
   projections; weights of the recurrent product have theirs added in g. */
static void carnn__cell_backward(carnn__cell_run *r, carnn__engine *e, const float *dout,
                                 float *dx) {
    const carnn__cell_kind *k = &carnn__cells[r->cell->kind];
    carnn__scan *s = &r->scan;
    size_t bytes = s->seq->sequences * s->h * sizeof(float);
    s->dout = dout;
    s->dx = dx;
    memset(s->dh, 0, bytes);
    if (s->dc) memset(s->dc, 0, bytes);
    if (s->dpc) memset(s->dpc, 0, k->context_gates * bytes);
    if (!k->recurrent_gates) {
        carnn__scan_steps(e, s, e->k->cell_backward[r->cell->kind], 0, s->seq->steps);
        return;
    }
    carnn__bands_run(r, e, carnn__cell_steps_back);
    carnn__cell_recurrent_gradient(r, e);
}

/* From dpc of the last backward: dc (B, d) += dpc Wc, dWc += dpc^T c. */
static void carnn__cell_context_back(carnn__cell_run *r, carnn__engine *e, float *dc) {
    const carnn__cell_kind *k = &carnn__cells[r->cell->kind];
    size_t d = r->cell->d, width = k->context_gates * r->cell->h, B = r->scan.seq->sequences;
    if (!width) return;
    carnn__matmul(e, CARNN__NN | CARNN__ADD, B, d, width, r->scan.dpc, width,
                  carnn__cell_weight(r, r->cell->context), d, NULL, dc, d);
    carnn__matmul(e, CARNN__TN | CARNN__ADD, width, d, B, r->scan.dpc, width, r->c, d, NULL,
                  carnn__cell_gradient(r, r->cell->context), d);
}

/* From dpx of all backwards since carnn__cell_project: dx (U, e) += dpx Wx, dWx += dpx^T x,
   db += sum of dpx. */
static void carnn__cell_project_back(carnn__cell_run *r, carnn__engine *e, float *dx) {
    const carnn__cell_kind *k = &carnn__cells[r->cell->kind];
    size_t h = r->cell->h, in = r->cell->e, width = k->gates * h, U = r->inputs;
    carnn__matmul(e, CARNN__NN | CARNN__ADD, U, in, width, r->scan.dpx, width,
                  carnn__cell_weight(r, r->cell->input), in, NULL, dx, in);
    carnn__matmul(e, CARNN__TN | CARNN__ADD, width, in, U, r->scan.dpx, width, r->x, in, NULL,
                  carnn__cell_gradient(r, r->cell->input), in);
    carnn__column_sums(e, U, k->bias_gates * h, r->scan.dpx, width,
                       carnn__cell_gradient(r, r->cell->bias));
}

/* --- the linear recurrence by itself ---------------------------------------------------------- */

/* What flows out of a block of that which flows into it. Where the product of its factors is no
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
        &e, NULL, work < CARNN__SPLIT_FROM ? 1 : carnn__thread_count(threads), a, error);
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

/* --- position encoder -------------------------------------------------------------------------
   Sukhbaatar et al. 2015. A text of J words w_1 .. w_J (rows of the embedding, D columns) becomes

     enc[k] = sum_j l_kj w_j[k]      l_kj = (1 - j/J) - (k/D)(1 - 2j/J)      j, k from 1

   which is a_j + b_j k/D with a_j = 1 - j/J and b_j = 2j/J - 1: two weighted bags of words, that
   of a and that of b, and ONE product with the ramp k/D. Backward: dw_j[k] += l_kj denc[k]. A text
   without words is the zero vector. */

#if defined(CARNN__ISA)

/* The statements for columns j .. j + n - 1 of [first, last), 16 at a time: n is the constant 16
   but for the last ones. */
#define CARNN__COLUMNS(first, last, ...)                                                           \
    for (j = (first); j + 16 <= (last); j += 16) {                                                 \
        const size_t n = 16;                                                                       \
        __VA_ARGS__                                                                                \
    }                                                                                              \
    if (j < (last)) {                                                                              \
        const size_t n = (last)-j;                                                                 \
        __VA_ARGS__                                                                                \
    }

/* Columns [j, j + 16 vectors) of a text, n of them in the last vector; `vectors` and mostly n are
   constants. Four vectors share the work for a word, of which the division is most. */
#define CARNN__ENCODE_VECTORS 4

static CARNN__INLINE void CARNN__K(encode_text)(const carnn__encoder *e, size_t i, size_t j,
                                                size_t vectors, size_t n) {
    size_t text = e->which ? e->which[i] : i, first = e->at[text], J = e->at[text + 1] - first;
    size_t w, v;
    carnn__v a[CARNN__ENCODE_VECTORS], b[CARNN__ENCODE_VECTORS];
    CARNN__UNROLL for (v = 0; v < vectors; v++) a[v] = b[v] = CARNN__V(zero)();
    for (w = 0; w < J; w++) {
        const float *word = e->table + e->ids[first + w] * e->D + j;
        float place = (float)(w + 1) / (float)J;
        carnn__v a_j = CARNN__V(set1)(1.0f - place), b_j = CARNN__V(set1)(2.0f * place - 1.0f);
        CARNN__UNROLL for (v = 0; v < vectors; v++) {
            carnn__v x = CARNN__V(loadn)(word + 16 * v, n);
            a[v] = CARNN__V(fma)(a_j, x, a[v]);
            b[v] = CARNN__V(fma)(b_j, x, b[v]);
        }
    }
    CARNN__UNROLL for (v = 0; v < vectors; v++) {
        carnn__v ramp = CARNN__V(loadn)(e->ramp + j + 16 * v, n);
        CARNN__V(storen)(e->out + i * e->D + j + 16 * v, n, CARNN__V(fma)(ramp, b[v], a[v]));
    }
}

/* Texts [from, to). Bound by reading the words from the cache: two multiply-adds for each number. */
static void CARNN__K(encode)(const void *job, size_t from, size_t to) {
    const carnn__encoder *e = (const carnn__encoder *)job;
    const size_t together = 16 * CARNN__ENCODE_VECTORS;
    size_t i, j;
    for (i = from; i < to; i++) {
        for (j = 0; j + together <= e->D; j += together)
            CARNN__K(encode_text)(e, i, j, CARNN__ENCODE_VECTORS, 16);
        CARNN__COLUMNS(j, e->D, CARNN__K(encode_text)(e, i, j, 1, n);)
    }
}
#undef CARNN__ENCODE_VECTORS

/* dw_j += l_j denc for the word at so much of the text: j/J. */
static CARNN__INLINE void CARNN__K(encode_back_word)(const carnn__encoder *e, size_t word,
                                                     float place, const float *dout) {
    float *dword = e->dtable + word * e->D;
    carnn__v a_j = CARNN__V(set1)(1.0f - place), b_j = CARNN__V(set1)(2.0f * place - 1.0f);
    size_t j;
    CARNN__COLUMNS(0, e->D, {
        carnn__v l = CARNN__V(fma)(b_j, CARNN__V(loadn)(e->ramp + j, n), a_j);
        carnn__v d = CARNN__V(loadn)(dout + j, n), sum = CARNN__V(loadn)(dword + j, n);
        CARNN__V(storen)(dword + j, n, CARNN__V(fma)(l, d, sum));
    })
}

/* The words are dealt to so many shares by the remainders of their numbers. */
#define CARNN__ENCODE_SHARES 8

/* All texts, but of their words those of shares [from, to) alone: so no row wanders from one core's
   cache to the other's. Each row gets its sums in the order of the texts, and rows of no word are
   not touched. Bound by reading and writing them: one multiply-add for each number. */
static void CARNN__K(encode_back)(const void *job, size_t from, size_t to) {
    const carnn__encoder *e = (const carnn__encoder *)job;
    size_t i, w;
    for (i = 0; i < e->texts; i++) {
        size_t text = e->which ? e->which[i] : i, first = e->at[text], J = e->at[text + 1] - first;
        for (w = 0; w < J; w++) {
            size_t word = e->ids[first + w], share = word % CARNN__ENCODE_SHARES;
            if (share >= from && share < to)
                CARNN__K(encode_back_word)(e, word, (float)(w + 1) / (float)J, e->dout + i * e->D);
        }
    }
}

/* --- rows by index ---------------------------------------------------------------------------
   to[index[i]] += from[i], in the order of i, columns [first, last). Bound by memory: two rows are
   read and one is written for an addition. */

static void CARNN__K(scatter_add)(const void *job, size_t first, size_t last) {
    const carnn__scatter *s = (const carnn__scatter *)job;
    size_t i, j;
    for (i = 0; i < s->rows; i++) {
        float *to = s->to + (size_t)s->index[i] * s->columns;
        const float *from = s->from + i * s->columns;
        CARNN__COLUMNS(first, last, {
            carnn__v sum = CARNN__V(add)(CARNN__V(loadn)(to + j, n), CARNN__V(loadn)(from + j, n));
            CARNN__V(storen)(to + j, n, sum);
        })
    }
}

/* --- attention over the history --------------------------------------------------------------
   Tran et al. 2018, Eq. 8: ht_m = h_m + e_m (a residual connection around the cell),
   al = softmax_m(ht_m . c), o = sum_m al_m ht_m. Backward, given do:

     dal_m = do . ht_m      ds_m = al_m (dal_m - sum_m al_m dal_m)
     dht_m = al_m do + ds_m c        dc += sum_m ds_m ht_m        dh_m = de_m = dht_m

   Sequences [b0, b1): each is a matter of its own. Bound by reading h and e, twice forwards (the
   second time from the second-level cache, where a history fits), three times backwards. */

static CARNN__INLINE const float *CARNN__K(attended_input)(const carnn__attention *a, size_t row) {
    return a->e + (a->index ? (size_t)a->index[row] : row) * a->D;
}

static CARNN__INLINE carnn__v CARNN__K(attended)(const float *h, const float *e, size_t j,
                                                 size_t n) {
    return CARNN__V(add)(CARNN__V(loadn)(h + j, n), CARNN__V(loadn)(e + j, n));
}

/* The states of one sequence from step t on: h and e of so many rows. A few at a time share what
   they have in common, and their sums do not wait for each other. */
#define CARNN__ATTEND_ROWS 4

typedef struct CARNN__K(attended_rows) {
    const float *h[CARNN__ATTEND_ROWS], *e[CARNN__ATTEND_ROWS];
} CARNN__K(attended_rows);

static CARNN__INLINE CARNN__K(attended_rows)
    CARNN__K(attended_from)(const carnn__attention *a, size_t b, size_t t, size_t rows) {
    CARNN__K(attended_rows) x;
    size_t i;
    memset(&x, 0, sizeof x);
    CARNN__UNROLL for (i = 0; i < rows; i++) {
        size_t row = a->seq->start[t + i] + b;
        x.h[i] = a->h + row * a->D;
        x.e[i] = CARNN__K(attended_input)(a, row);
    }
    return x;
}

/* out[i] = ht_i . v for `rows` steps from t on */
static CARNN__INLINE void CARNN__K(attention_dot)(const carnn__attention *a, size_t b, size_t t,
                                                  size_t rows, const float *v, float *out) {
    CARNN__K(attended_rows) x = CARNN__K(attended_from)(a, b, t, rows);
    carnn__v sum[CARNN__ATTEND_ROWS];
    size_t i, j;
    CARNN__UNROLL for (i = 0; i < rows; i++) sum[i] = CARNN__V(zero)();
    CARNN__COLUMNS(0, a->D, {
        carnn__v y = CARNN__V(loadn)(v + j, n);
        CARNN__UNROLL for (i = 0; i < rows; i++)
            sum[i] = CARNN__V(fma)(CARNN__K(attended)(x.h[i], x.e[i], j, n), y, sum[i]);
    })
    CARNN__UNROLL for (i = 0; i < rows; i++) out[i] = CARNN__V(sum)(sum[i]);
}

/* out += sum of scale[i] * ht_i over `rows` steps from t on */
static CARNN__INLINE void CARNN__K(attention_axpy)(const carnn__attention *a, size_t b, size_t t,
                                                   size_t rows, const float *scale, float *out) {
    CARNN__K(attended_rows) x = CARNN__K(attended_from)(a, b, t, rows);
    size_t i, j;
    CARNN__COLUMNS(0, a->D, {
        carnn__v o = CARNN__V(loadn)(out + j, n);
        CARNN__UNROLL for (i = 0; i < rows; i++)
            o = CARNN__V(fma)(CARNN__V(set1)(scale[i]),
                              CARNN__K(attended)(x.h[i], x.e[i], j, n), o);
        CARNN__V(storen)(out + j, n, o);
    })
}

/* The same for all M steps of a sequence. */
static void CARNN__K(attention_dots)(const carnn__attention *a, size_t b, size_t M, const float *v,
                                     float *out) {
    size_t t;
    for (t = 0; t + CARNN__ATTEND_ROWS <= M; t += CARNN__ATTEND_ROWS)
        CARNN__K(attention_dot)(a, b, t, CARNN__ATTEND_ROWS, v, out + t);
    for (; t < M; t++) CARNN__K(attention_dot)(a, b, t, 1, v, out + t);
}

static void CARNN__K(attention_sum)(const carnn__attention *a, size_t b, size_t M,
                                    const float *scale, float *out) {
    size_t t;
    for (t = 0; t + CARNN__ATTEND_ROWS <= M; t += CARNN__ATTEND_ROWS)
        CARNN__K(attention_axpy)(a, b, t, CARNN__ATTEND_ROWS, scale + t, out);
    for (; t < M; t++) CARNN__K(attention_axpy)(a, b, t, 1, scale + t, out);
}

/* Length of the sequence of rank b. */
static size_t CARNN__K(length)(const carnn__packed *seq, size_t b) {
    size_t t = 0;
    while (t < seq->steps && b < seq->start[t + 1] - seq->start[t]) t++;
    return t;
}

static void CARNN__K(attend)(const void *job, size_t b0, size_t b1) {
    const carnn__attention *a = (const carnn__attention *)job;
    size_t b;
    for (b = b0; b < b1; b++) {
        size_t M = CARNN__K(length)(a->seq, b);
        float *weight = a->weight + b * a->seq->steps, *o = a->o + b * a->D;
        CARNN__K(attention_dots)(a, b, M, a->c + b * a->D, weight);
        CARNN__K(softmax)(weight, M);
        memset(o, 0, a->D * sizeof(float));
        CARNN__K(attention_sum)(a, b, M, weight, o);
    }
}

static void CARNN__K(attend_back)(const void *job, size_t b0, size_t b1) {
    const carnn__attention *a = (const carnn__attention *)job;
    const size_t *start = a->seq->start;
    size_t b, t, j;
    for (b = b0; b < b1; b++) {
        size_t M = CARNN__K(length)(a->seq, b);
        const float *weight = a->weight + b * a->seq->steps, *c = a->c + b * a->D;
        const float *go = a->go + b * a->D;
        float *gweight = a->gweight + b * a->seq->steps, mean = 0.0f;
        CARNN__K(attention_dots)(a, b, M, go, gweight);
        for (t = 0; t < M; t++) mean += weight[t] * gweight[t];
        for (t = 0; t < M; t++) gweight[t] = weight[t] * (gweight[t] - mean);
        CARNN__K(attention_sum)(a, b, M, gweight, a->gc + b * a->D);
        for (t = 0; t < M; t++) {
            carnn__v al = CARNN__V(set1)(weight[t]), ds = CARNN__V(set1)(gweight[t]);
            float *gh = a->gh + (start[t] + b) * a->D;
            CARNN__COLUMNS(0, a->D, {
                carnn__v g = CARNN__V(mul)(ds, CARNN__V(loadn)(c + j, n));
                CARNN__V(storen)(gh + j, n, CARNN__V(fma)(al, CARNN__V(loadn)(go + j, n), g));
            })
        }
    }
}

/* --- softmax cross entropy -------------------------------------------------------------------
   Of rows of logits z against one target each: loss = lse(z) - z_target; the gradient
   scale * (softmax(z) - onehot) replaces z, unless the loss alone is wanted.
   CARNN__NOWHERE as a target gives no loss and no gradient. Label smoothing s puts s / columns of
   the target's mass on every column. Three passes over a row that the cache holds, bound by the
   exponentials of the second. */

static void CARNN__K(cross_entropy)(const void *job, size_t row0, size_t row1) {
    const carnn__cross_entropy *x = (const carnn__cross_entropy *)job;
    size_t i, j;
    for (i = row0; i < row1; i++) {
        float *z = x->z + i * x->columns, target, mean = 0.0f, lse, factor;
        carnn__v scale = CARNN__V(set1)(x->scale);
        carnn__v off = CARNN__V(set1)(-x->scale * x->smoothing / (float)x->columns);
        if (x->target[i] == CARNN__NOWHERE) {
            memset(z, 0, x->columns * sizeof(float));
            x->loss[i] = 0.0f;
            continue;
        }
        target = z[x->target[i]];
        if (x->smoothing > 0.0f) mean = CARNN__K(row_sum)(z, x->columns) / (float)x->columns;
        lse = CARNN__K(softmax_shape)(z, x->columns, &factor);
        x->loss[i] = lse - (1.0f - x->smoothing) * target - x->smoothing * mean;
        if (!x->learns) continue;
        CARNN__COLUMNS(0, x->columns, {
            carnn__v p = CARNN__V(mul)(CARNN__V(loadn)(z + j, n), CARNN__V(set1)(factor));
            CARNN__V(storen)(z + j, n, CARNN__V(fma)(scale, p, off));
        })
        z[x->target[i]] -= x->scale * (1.0f - x->smoothing);
    }
}

/* --- decomposition ---------------------------------------------------------------------------
   Shen, Yang, Deng 2017. A word x_i and what it is aligned with in the other sentence, a_i, are
   compared by their parallel and orthogonal parts, or directly; the words are summed up:

     s_i = x_i . a_i / a_i . a_i      p_i = s_i a_i      o_i = x_i - p_i      f = sum_i w_i [p_i; o_i]
     direct: s_i = 1                                                          f = sum_i w_i o_i

   Backward, with the halves of df and t = df_p - df_o (direct: t = -df_o, ds_i = 0):

     dw_i = s_i a_i . t + x_i . df_o          ds_i = w_i a_i . t
     dx_i = w_i df_o + ds_i a_i / a_i . a_i
     da_i = w_i s_i t + ds_i (x_i - 2 s_i a_i) / a_i . a_i

   An a_i shorter than 1e-6 has its square taken for 1e-12, which is then no function of it. Bound
   by reading x and a twice from the cache. */

#define CARNN__ALIGNED_LEAST 1e-12f

static void CARNN__K(compose)(const carnn__compose *c) {
    const size_t D = c->D;
    float *rest = c->f + (c->orthogonal ? D : 0);
    size_t i, j;
    memset(c->f, 0, (c->orthogonal ? 2 : 1) * D * sizeof(float));
    for (i = 0; i < c->rows; i++) {
        const float *x = c->x + i * D, *a = c->a + i * D;
        float share = 1.0f, square;
        if (c->orthogonal) {
            square = CARNN__K(dot)(a, a, D);
            share = CARNN__K(dot)(x, a, D);
            share /= square > CARNN__ALIGNED_LEAST ? square : CARNN__ALIGNED_LEAST;
        }
        c->share[i] = share;
        CARNN__COLUMNS(0, D, {
            carnn__v p = CARNN__V(mul)(CARNN__V(set1)(share), CARNN__V(loadn)(a + j, n));
            carnn__v o = CARNN__V(sub)(CARNN__V(loadn)(x + j, n), p);
            carnn__v w = CARNN__V(set1)(c->weight[i]), sum = CARNN__V(loadn)(rest + j, n);
            CARNN__V(storen)(rest + j, n, CARNN__V(fma)(w, o, sum));
            if (c->orthogonal) {
                sum = CARNN__V(loadn)(c->f + j, n);
                CARNN__V(storen)(c->f + j, n, CARNN__V(fma)(w, p, sum));
            }
        })
    }
}

/* dx_i = w_i df_o + of_x a_i and da_i = of_t t + of_x x_i + of_a a_i. */
static CARNN__INLINE void CARNN__K(compose_row_back)(const carnn__compose *c, size_t i,
                                                     float of_x, float of_a, float of_t) {
    const size_t D = c->D;
    const float *x = c->x + i * D, *a = c->a + i * D;
    const float *rest = c->df + (c->orthogonal ? D : 0);
    float *dx = c->dx + i * D, *da = c->da + i * D;
    size_t j;
    CARNN__COLUMNS(0, D, {
        carnn__v r = CARNN__V(loadn)(rest + j, n), t = CARNN__V(sub)(CARNN__V(zero)(), r);
        carnn__v va = CARNN__V(loadn)(a + j, n), vx = CARNN__V(loadn)(x + j, n);
        if (c->orthogonal) t = CARNN__V(sub)(CARNN__V(loadn)(c->df + j, n), r);
        CARNN__V(storen)(dx + j, n, CARNN__V(fma)(CARNN__V(set1)(of_x), va,
                                                  CARNN__V(mul)(CARNN__V(set1)(c->weight[i]), r)));
        t = CARNN__V(mul)(CARNN__V(set1)(of_t), t);
        t = CARNN__V(fma)(CARNN__V(set1)(of_x), vx, t);
        CARNN__V(storen)(da + j, n, CARNN__V(fma)(CARNN__V(set1)(of_a), va, t));
    })
}

static void CARNN__K(compose_back)(const carnn__compose *c) {
    const size_t D = c->D;
    const float *rest = c->df + (c->orthogonal ? D : 0);
    size_t i;
    for (i = 0; i < c->rows; i++) {
        const float *x = c->x + i * D, *a = c->a + i * D;
        float w = c->weight[i], s = c->share[i], ds = 0.0f, square, of_a = 0.0f;
        float a_t = -CARNN__K(dot)(a, rest, D);
        if (c->orthogonal) {
            a_t += CARNN__K(dot)(a, c->df, D);
            square = CARNN__K(dot)(a, a, D);
            ds = w * a_t / (square > CARNN__ALIGNED_LEAST ? square : CARNN__ALIGNED_LEAST);
            if (square > CARNN__ALIGNED_LEAST) of_a = -2.0f * s * ds;
        }
        c->dweight[i] = s * a_t + CARNN__K(dot)(x, rest, D);
        CARNN__K(compose_row_back)(c, i, ds, of_a, w * s);
    }
}

#undef CARNN__COLUMNS

#endif

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

/* --- the parts at work ----------------------------------------------------------------------- */

/* enc (texts, D) of texts, and the way back; see carnn__encoder. */
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

/* --- dropout ---------------------------------------------------------------------------------
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

/* --- alignment of two sentences ---------------------------------------------------------------
   Of the words x (m, D) of one sentence, each with a mean of the words y (n, D) of the other:

     E = softmax of the rows of x y'      a = E y
     dE = da y'      dM = E * (dE - rows' sums of E * dE)      dx += dM y      dy += dM' x + E' da */

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

/* --- cosine ----------------------------------------------------------------------------------
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
   @@TEXT   words of a text, lists of names, vocabularies, reading files, word vectors
   ============================================================================================= */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

/* --- tokenisers ------------------------------------------------------------------------------
   A text is any bytes, NUL too. Words are found one at a time and stay parts of the text; where a
   tokeniser folds upper to lower case (of ASCII), that is done when a word is hashed or compared,
   so that neither memory nor a longest word is needed. */

typedef enum carnn__tokenizer {
    CARNN__WORDS, /* runs of [A-Za-z0-9_] and bytes >= 0x80, folded, without the articles, as
                     MemN2N has them ("<SILENCE>" is the word silence), and each of . ? ! , ; as a
                     word of its own: it tells candidates apart that differ in nothing else */
    CARNN__SPACES, /* what stands between blanks, as it is */
    CARNN__LOWER,  /* the same, folded */
    CARNN__TOKENS  /* what stands between blanks, folded, with punctuation at its ends as words of
                      their own: leaves tokenised text alone, does what is needed to other text */
} carnn__tokenizer;

typedef struct carnn__span { /* a piece of a text */
    const char *at;
    size_t length;
} carnn__span;

typedef struct carnn__words {
    carnn__tokenizer kind;
    const char *rest, *end; /* of the text: what has not been looked at */
    const char *stop;       /* the end of the run of word bytes that `rest` is in */
    int marks;              /* what is left of the run are marks */
    carnn__span word;       /* the word that carnn__next_word found */
} carnn__words;

static inline int carnn__blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\v' || c == '\f';
}

static inline int carnn__digit(char c) { return c >= '0' && c <= '9'; }

/* Of ASCII. */
static inline int carnn__letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Without the blanks at both ends. */
static carnn__span carnn__trim(carnn__span s) {
    while (s.length && carnn__blank(s.at[s.length - 1])) s.length--;
    while (s.length && carnn__blank(*s.at)) {
        s.at++;
        s.length--;
    }
    return s;
}

static inline unsigned char carnn__folded(char c, int fold) {
    unsigned char byte = (unsigned char)c;
    return (unsigned char)(fold && byte >= 'A' && byte <= 'Z' ? byte + 'a' - 'A' : byte);
}

static inline int carnn__folds(carnn__tokenizer kind) { return kind != CARNN__SPACES; }

/* Does this byte belong to a word? */
static inline int carnn__word_byte(carnn__tokenizer kind, char c) {
    if (kind != CARNN__WORDS) return !carnn__blank(c);
    return carnn__letter(c) || carnn__digit(c) || c == '_' || (unsigned char)c >= 0x80;
}

/* Is this byte a word by itself? */
static inline int carnn__lone_byte(carnn__tokenizer kind, char c) {
    return kind == CARNN__WORDS && c && strchr(".?!,;", c) != NULL;
}

/* Is `known` the same as `s`, both of `length` bytes, when `s` is folded? */
static int carnn__equal(const char *known, const char *s, size_t length, int fold) {
    size_t i;
    if (!fold) return length == 0 || memcmp(known, s, length) == 0;
    for (i = 0; i < length; i++) {
        if ((unsigned char)known[i] != carnn__folded(s[i], 1)) return 0;
    }
    return 1;
}

static int carnn__article(carnn__span word) {
    return (word.length == 1 && carnn__equal("a", word.at, 1, 1)) ||
           (word.length == 2 && carnn__equal("an", word.at, 2, 1)) ||
           (word.length == 3 && carnn__equal("the", word.at, 3, 1));
}

static inline int carnn__mark(char c) { return c && strchr(".,;:?!\"()[]", c) != NULL; }

/* The first word of a piece between blanks: a run of one mark ("..."), or all but the marks at the
   end. A single period there belongs to an abbreviation ("mr.", "u.s."), unless the piece is the
   last one and has no other. A piece is searched from its end only once: *marks says that it was,
   so that what is left of it are marks. */
static size_t carnn__token_length(carnn__span piece, int last, int *marks) {
    size_t end = piece.length, run = 1;
    if (!*marks && (*piece.at == '.' || !carnn__mark(*piece.at))) { /* ".5" begins with a period */
        *marks = 1;
        while (end && carnn__mark(piece.at[end - 1])) {
            size_t dots = 0;
            while (dots < end && piece.at[end - 1 - dots] == '.') dots++;
            if (dots == 1 && (!last || memchr(piece.at, '.', end - 1))) break;
            end -= dots ? dots : 1;
        }
        if (end) return end;
    }
    while (run < piece.length && piece.at[run] == *piece.at) run++;
    return run;
}

static carnn__words carnn__words_of(carnn__tokenizer kind, const char *text, size_t length) {
    carnn__words words;
    while (length && carnn__blank(text[length - 1])) length--; /* readers of data drop them, too */
    if (!length) text = "";
    memset(&words, 0, sizeof words);
    words.kind = kind;
    words.rest = words.stop = text;
    words.end = text + length;
    return words;
}

/* Moves on to the next word; 0 when there is none. */
static int carnn__next_word(carnn__words *w) {
    do {
        if (w->rest >= w->stop) {
            while (w->rest < w->end && !carnn__word_byte(w->kind, *w->rest) &&
                   !carnn__lone_byte(w->kind, *w->rest))
                w->rest++;
            w->stop = w->rest;
            w->marks = 0;
            while (w->stop < w->end && carnn__word_byte(w->kind, *w->stop)) w->stop++;
            if (w->stop == w->rest && w->stop < w->end) w->stop++; /* a lone byte */
        }
        w->word.at = w->rest;
        w->word.length = (size_t)(w->stop - w->rest);
        if (w->kind == CARNN__TOKENS && w->word.length)
            w->word.length = carnn__token_length(w->word, w->stop == w->end, &w->marks);
        w->rest += w->word.length;
    } while (w->kind == CARNN__WORDS && carnn__article(w->word));
    return w->word.length > 0;
}

/* --- names -----------------------------------------------------------------------------------
   A list of distinct byte strings, numbered in the order in which they came, and found by hash:
   open addressing, at most half of the slots in use. Read-only once it is made, so any number of
   threads may look up. Each list hashes with a key of its own that nobody knows beforehand, so that
   no file can be made whose strings all want the same slot; numbers do not depend on it. */

typedef struct carnn__names {
    size_t count;
    char *bytes;    /* string i is at bytes + at[i], with a NUL behind it */
    size_t *at;     /* (count + 1) */
    uint32_t *slot; /* (slots) the number of a string, or CARNN__NOWHERE */
    size_t slots;   /* a power of two */
    uint64_t key;   /* of the hash */
} carnn__names;

#define CARNN__NOWHERE UINT32_MAX

/* Numbers of words, texts, lines and examples have 32 bits. A data set with more is refused. */
#ifndef CARNN__COUNT_LIMIT
#define CARNN__COUNT_LIMIT (CARNN__NOWHERE - 1)
#endif

static inline const char *carnn__names_get(const carnn__names *n, size_t i) {
    return n->bytes + n->at[i];
}

static inline size_t carnn__names_length(const carnn__names *n, size_t i) {
    return n->at[i + 1] - n->at[i] - 1;
}

/* A key for slots that begin at `slot`: of the moment and the place. */
static uint64_t carnn__names_key(const uint32_t *slot) {
    double now = carnn__clock();
    uint64_t bits;
    memcpy(&bits, &now, sizeof bits);
    return carnn__stream(bits, (uint64_t)(uintptr_t)slot);
}

/* Eight bytes at a time. */
static uint64_t carnn__names_hash(const carnn__names *n, const char *s, size_t length, int fold) {
    uint64_t hash = n->key ^ length, eight = 0;
    size_t i;
    for (i = 0; i < length; i++) {
        eight = eight << 8 | carnn__folded(s[i], fold);
        if (i % 8 == 7) hash = carnn__mix(hash ^ eight);
    }
    return length % 8 ? carnn__mix(hash ^ eight) : hash;
}

/* The slot that has `s`, or the free one where it belongs. */
static size_t carnn__names_slot(const carnn__names *n, const char *s, size_t length, int fold) {
    size_t slot = (size_t)carnn__names_hash(n, s, length, fold) & (n->slots - 1);
    for (; n->slot[slot] != CARNN__NOWHERE; slot = (slot + 1) & (n->slots - 1)) {
        size_t i = n->slot[slot];
        if (carnn__names_length(n, i) == length &&
            carnn__equal(carnn__names_get(n, i), s, length, fold))
            break;
    }
    return slot;
}

static uint32_t carnn__names_find_folded(const carnn__names *n, const char *s, size_t length,
                                         int fold) {
    return n->slots ? n->slot[carnn__names_slot(n, s, length, fold)] : CARNN__NOWHERE;
}

static uint32_t carnn__names_find(const carnn__names *n, const char *s, size_t length) {
    return carnn__names_find_folded(n, s, length, 0);
}

static void carnn__names_free(carnn__names *n, const carnn_allocator *a) {
    carnn__free(a, n->bytes);
    carnn__free(a, n->at);
    carnn__free(a, n->slot);
    memset(n, 0, sizeof *n);
}

/* Gives string `i`, which was just copied to its place, its slot; 0 if it has one already. */
static int carnn__names_enter(carnn__names *n, size_t i) {
    size_t slot = carnn__names_slot(n, carnn__names_get(n, i), carnn__names_length(n, i), 0);
    if (n->slot[slot] != CARNN__NOWHERE) return 0;
    n->slot[slot] = (uint32_t)i;
    return 1;
}

/* Makes a frozen list at once. CARNN_ERR_MODEL if the strings are not distinct. */
static carnn_status carnn__names_build(carnn__names *n, const carnn_allocator *a,
                                       const char *const *s, const size_t *length, size_t count,
                                       carnn_error *error) {
    size_t i, bytes = 0;
    memset(n, 0, sizeof *n);
    if (count > CARNN__COUNT_LIMIT)
        return carnn__fail(error, CARNN_ERR_MODEL, 0, "a list of %zu names is too long", count);
    for (i = 0; i < count; i++) bytes += length[i] + 1;
    for (n->slots = 2; n->slots / 2 < count; n->slots *= 2) {}
    n->bytes = (char *)carnn__alloc(a, bytes, 1);
    n->at = (size_t *)carnn__alloc(a, count + 1, sizeof *n->at);
    n->slot = (uint32_t *)carnn__alloc(a, n->slots, sizeof *n->slot);
    if (!n->bytes || !n->at || !n->slot) {
        carnn__names_free(n, a);
        return carnn__out_of_memory(error);
    }
    memset(n->slot, 0xFF, n->slots * sizeof *n->slot);
    n->key = carnn__names_key(n->slot);
    n->at[0] = 0;
    for (i = 0; i < count; i++) {
        if (length[i]) memcpy(n->bytes + n->at[i], s[i], length[i]);
        n->bytes[n->at[i] + length[i]] = 0;
        n->at[i + 1] = n->at[i] + length[i] + 1;
        if (!carnn__names_enter(n, i)) {
            carnn__names_free(n, a);
            return carnn__fail(error, CARNN_ERR_MODEL, 0,
                               "number %zu of a list of names stands there twice", i);
        }
    }
    n->count = count;
    return CARNN_OK;
}

/* The words of a text as numbers: returns how many there are and writes the first `max` of them;
   a word that is not in the list is number 0, <unk>. */
static size_t carnn__encode(const carnn__names *words, carnn__tokenizer kind, const char *text,
                            size_t length, uint32_t *ids, size_t max) {
    carnn__words w = carnn__words_of(kind, text, length);
    size_t count;
    for (count = 0; carnn__next_word(&w); count++) {
        if (count < max) {
            uint32_t id = carnn__names_find_folded(words, w.word.at, w.word.length,
                                                   carnn__folds(kind));
            ids[count] = id == CARNN__NOWHERE ? 0 : id;
        }
    }
    return count;
}

/* --- names of files in errors ---------------------------------------------------------------- */

/* The end of a name that might be too long for an error message. */
static const char *carnn__name_end(const char *name) {
    size_t length = strlen(name), most = 160;
    return length > most ? name + (length - most) : name;
}

static carnn_status carnn__io_error(carnn_error *error, const char *name, const char *reason) {
    return carnn__fail(error, CARNN_ERR_IO, 0, "%s: %s", carnn__name_end(name), reason);
}

#ifndef CARNN_NO_TEXT

/* --- stb_ds ----------------------------------------------------------------------------------
   Vocabularies and readers grow their lists with the dynamic arrays of stb_ds, and copy them into
   blocks of the right size when they are complete. They do without its hash tables, because those
   write during lookups, share one seed in the whole process when they are made (both are races
   between threads), and end string keys at a NUL; carnn__names, needed for frozen lists anyway,
   can grow as well.

   stb_ds does not check what realloc returns, so ours does not return without memory: it jumps
   back into carnn__build, which started the work. The jump leaves an array as it was before it
   was to grow, so the owner of the arrays frees them as always. Where this thread has no
   carnn__build under way (the host program uses the same copy of stb_ds), blocks are malloc's.
   A host that brings its own copy with CARNN_NO_STB_DS_IMPLEMENTATION also brings its realloc. */

#ifdef __cplusplus
} /* stb_ds.h has templates in C++, which cannot stand in extern "C" */
#endif

#include <errno.h>
#include <setjmp.h>

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

/* Runs work(job), which may grow lists of stb_ds, or give them back. CARNN_ERR_MEMORY where memory
   ran out: then the lists of `job` are as work left them. */
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

/* --- growing names ---------------------------------------------------------------------------
   Names that grow, in carnn__build only: their three arrays are stb_ds's. */

/* Doubles the slots of a growing list. */
static void carnn__names_widen(carnn__names *n) {
    size_t i, slots = n->slots ? 2 * n->slots : 16;
    stbds_arrsetlen(n->slot, slots);
    n->slots = slots;
    n->key = carnn__names_key(n->slot);
    memset(n->slot, 0xFF, slots * sizeof *n->slot);
    for (i = 0; i < n->count; i++) carnn__names_enter(n, i);
}

/* The number of `s`, which the list takes in (folded) where it is new; CARNN__NOWHERE where the
   list is full. */
static uint32_t carnn__names_add(carnn__names *n, const char *s, size_t length, int fold) {
    size_t slot, i;
    char *copy;
    if (n->slots / 2 <= n->count) carnn__names_widen(n);
    slot = carnn__names_slot(n, s, length, fold);
    if (n->slot[slot] != CARNN__NOWHERE || n->count >= CARNN__COUNT_LIMIT) return n->slot[slot];
    if (!n->at) stbds_arrput(n->at, 0);
    copy = stbds_arraddnptr(n->bytes, length + 1);
    for (i = 0; i < length; i++) copy[i] = (char)carnn__folded(s[i], fold);
    copy[length] = 0;
    stbds_arrput(n->at, n->at[n->count] + length + 1);
    n->slot[slot] = (uint32_t)n->count;
    return (uint32_t)n->count++;
}

static void carnn__names_drop(carnn__names *n) {
    stbds_arrfree(n->bytes);
    stbds_arrfree(n->at);
    stbds_arrfree(n->slot);
    memset(n, 0, sizeof *n);
}

/* A frozen copy of a list that has grown (and has something in it). */
static carnn_status carnn__names_freeze(carnn__names *n, const carnn_allocator *a,
                                        const carnn__names *grown, carnn_error *error) {
    *n = *grown;
    n->bytes = (char *)carnn__copy(a, grown->bytes, grown->at[grown->count], 1);
    n->at = (size_t *)carnn__copy(a, grown->at, grown->count + 1, sizeof *n->at);
    n->slot = (uint32_t *)carnn__copy(a, grown->slot, grown->slots, sizeof *n->slot);
    if (n->bytes && n->at && n->slot) return CARNN_OK;
    carnn__names_free(n, a);
    return carnn__out_of_memory(error);
}

/* --- vocabulary ------------------------------------------------------------------------------
   Open it with the reserved words, add texts, close it: the result is a frozen list with "<unk>"
   as number 0, then the reserved words, then the words that occurred often enough, in the order
   in which they first occurred. `most` may be set before it is closed: then only so many words,
   beside the reserved ones, are left, the most frequent ones (of equals the earliest). A vocabulary
   that failed, or is not closed, has to be freed. */

typedef struct carnn__vocabulary {
    carnn_allocator allocator;
    carnn__names words; /* growing */
    size_t *times;      /* stb_ds array (words.count): how often each has occurred */
    size_t reserved;    /* the first so many stay however rare they are */
    size_t most;        /* 0: no limit */
    carnn__names kept;  /* growing: what close leaves */
    size_t *sorted;     /* stb_ds array, while it closes */
} carnn__vocabulary;

/* The arguments of a call. */
typedef struct carnn__vocabulary_job {
    carnn__vocabulary *v;
    carnn__tokenizer kind;
    const char *const *reserved;
    const char *text;
    size_t length; /* of the text, or of the list `reserved` */
    size_t times;  /* how often the text occurs; at the end, the least count of a word */
    carnn_error *error;
} carnn__vocabulary_job;

static carnn_status carnn__vocabulary_word(carnn__vocabulary *v, const char *s, size_t length,
                                           int fold, size_t times, carnn_error *error) {
    uint32_t id = carnn__names_add(&v->words, s, length, fold);
    if (id == CARNN__NOWHERE)
        return carnn__fail(error, CARNN_ERR_DATA, 0, "more than %zu different words",
                           (size_t)CARNN__COUNT_LIMIT);
    if (id == stbds_arrlenu(v->times)) stbds_arrput(v->times, 0);
    v->times[id] += times;
    return CARNN_OK;
}

static carnn_status carnn__vocabulary_start(void *job) {
    carnn__vocabulary_job *j = (carnn__vocabulary_job *)job;
    carnn_status status = carnn__vocabulary_word(j->v, "<unk>", 5, 0, 0, j->error);
    size_t i;
    for (i = 0; !status && i < j->length; i++) {
        status = carnn__vocabulary_word(j->v, j->reserved[i], strlen(j->reserved[i]), 0, 0,
                                        j->error);
    }
    j->v->reserved = j->v->words.count;
    return status;
}

static carnn_status carnn__vocabulary_text(void *job) {
    carnn__vocabulary_job *j = (carnn__vocabulary_job *)job;
    carnn__words w = carnn__words_of(j->kind, j->text, j->length);
    carnn_status status = CARNN_OK;
    while (!status && carnn__next_word(&w)) {
        status = carnn__vocabulary_word(j->v, w.word.at, w.word.length, carnn__folds(j->kind),
                                        j->times, j->error);
    }
    return status;
}

static int carnn__falling(const void *a, const void *b) {
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* How often a word has to occur to be among the `most` most frequent ones, but at least
   `least` times; *last is how many that occur just so often are left. */
static size_t carnn__vocabulary_bar(carnn__vocabulary *v, size_t least, size_t *last) {
    size_t count = v->words.count - v->reserved, bar, i;
    *last = count;
    if (!v->most || v->most >= count) return least;
    stbds_arrsetlen(v->sorted, count);
    memcpy(v->sorted, v->times + v->reserved, count * sizeof *v->sorted);
    qsort(v->sorted, count, sizeof *v->sorted, carnn__falling);
    bar = v->sorted[v->most - 1];
    if (bar < least) return least;
    for (i = v->most; i && v->sorted[i - 1] == bar; i--) {}
    *last = v->most - i;
    return bar;
}

/* Copies what is frequent enough into the list `kept`. */
static carnn_status carnn__vocabulary_select(void *job) {
    carnn__vocabulary_job *j = (carnn__vocabulary_job *)job;
    carnn__vocabulary *v = j->v;
    size_t i, last, bar = carnn__vocabulary_bar(v, j->times, &last);
    for (i = 0; i < v->words.count; i++) {
        int keep = i < v->reserved || v->times[i] > bar;
        if (!keep && v->times[i] == bar && last) {
            keep = 1;
            last--;
        }
        if (keep)
            carnn__names_add(&v->kept, carnn__names_get(&v->words, i),
                             carnn__names_length(&v->words, i), 0);
    }
    return CARNN_OK;
}

static carnn_status carnn__vocabulary_drop(void *job) {
    carnn__vocabulary *v = (carnn__vocabulary *)job;
    carnn__names_drop(&v->words);
    carnn__names_drop(&v->kept);
    stbds_arrfree(v->times);
    stbds_arrfree(v->sorted);
    return CARNN_OK;
}

static carnn_status carnn__vocabulary_open(carnn__vocabulary *v, const carnn_allocator *a,
                                           const char *const *reserved, size_t count,
                                           carnn_error *error) {
    carnn__vocabulary_job job;
    memset(v, 0, sizeof *v);
    memset(&job, 0, sizeof job);
    v->allocator = carnn__allocator(a);
    job.v = v;
    job.reserved = reserved;
    job.length = count;
    job.error = error;
    return carnn__build(&v->allocator, carnn__vocabulary_start, &job, error);
}

/* Counts the words of a text that occurs `times` times. */
static carnn_status carnn__vocabulary_add(carnn__vocabulary *v, carnn__tokenizer kind,
                                          const char *text, size_t length, size_t times,
                                          carnn_error *error) {
    carnn__vocabulary_job job;
    memset(&job, 0, sizeof job);
    job.v = v;
    job.kind = kind;
    job.text = text;
    job.length = length;
    job.times = times;
    job.error = error;
    return carnn__build(&v->allocator, carnn__vocabulary_text, &job, error);
}

static void carnn__vocabulary_free(carnn__vocabulary *v) {
    carnn__build(&v->allocator, carnn__vocabulary_drop, v, NULL);
}

/* Freezes the words that occurred at least `min_count` times into *words and frees `v`, also when
   that fails. */
static carnn_status carnn__vocabulary_close(carnn__vocabulary *v, size_t min_count,
                                            carnn__names *words, carnn_error *error) {
    carnn__vocabulary_job job;
    carnn_status status;
    memset(&job, 0, sizeof job);
    job.v = v;
    job.times = min_count;
    status = carnn__build(&v->allocator, carnn__vocabulary_select, &job, error);
    if (!status) status = carnn__names_freeze(words, &v->allocator, &v->kept, error);
    carnn__vocabulary_free(v);
    return status;
}

/* --- feed ------------------------------------------------------------------------------------
   The bytes of a source from its beginning to its end, which a reader takes from the front: the
   caller's bytes, or a buffer that is filled from a file, so that pipes and devices will do. A
   file that begins like one of gzip is unpacked by the program of that name, which reads the file
   itself: no shell, and no file name on a command line. A pipe cannot be read twice, so what comes
   packed from one is refused. */

#if !defined(CARNN_NO_STDIO) && (defined(__unix__) || defined(__APPLE__)) &&                       \
    !defined(__EMSCRIPTEN__)
#define CARNN__GZIP
#ifdef __cplusplus
}
#endif
#include <fcntl.h>
#include <spawn.h>
#include <sys/types.h>
#include <sys/wait.h>
#ifdef __cplusplus
extern "C" {
#endif
extern char **environ;
#endif

typedef struct carnn__feed {
    const char *name; /* for errors */
    const char *at;   /* the bytes at hand */
    size_t left;      /* how many */
    int ended;        /* there are no more after them */
    char *buffer;     /* NULL: the caller's bytes */
    size_t room;
#ifndef CARNN_NO_STDIO
    FILE *file;
#endif
#ifdef CARNN__GZIP
    int pipe;   /* from gzip */
    pid_t gzip; /* 0: not in use */
#endif
} carnn__feed;

#ifndef CARNN__FIRST_READ
#define CARNN__FIRST_READ 65536
#endif

static inline int carnn__gzipped(const carnn__feed *f) {
    return f->left >= 2 && memcmp(f->at, "\x1F\x8B", 2) == 0;
}

#ifdef CARNN__GZIP
/* Starts gzip with the file as its input, a pipe to us as its output, and no voice. The file is not
   opened as 0 at once, since its name may be that of our standard input. */
static int carnn__gzip_start(carnn__feed *f, const int ends[2]) {
    char *const arguments[] = {(char *)"gzip", (char *)"-dc", NULL};
    posix_spawn_file_actions_t actions;
    int problem = posix_spawn_file_actions_init(&actions);
    if (problem) return problem;
    problem = posix_spawn_file_actions_addopen(&actions, ends[0], f->name, O_RDONLY, 0);
    if (!problem) problem = posix_spawn_file_actions_adddup2(&actions, ends[0], 0);
    if (!problem) problem = posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    if (!problem) problem = posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    if (!problem) problem = posix_spawnp(&f->gzip, "gzip", &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    return problem;
}

/* Reads what gzip makes of the file from now on. */
static carnn_status carnn__gzip_open(carnn__feed *f, carnn_error *error) {
    int ends[2], problem;
    if (pipe(ends)) return carnn__io_error(error, f->name, strerror(errno));
    fcntl(ends[0], F_SETFD, FD_CLOEXEC); /* else gzip would wait for itself */
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    problem = carnn__gzip_start(f, ends);
    close(ends[1]);
    f->pipe = ends[0];
    if (!problem) return CARNN_OK;
    close(ends[0]);
    f->gzip = 0;
    return carnn__fail(error, CARNN_ERR_IO, 0, "%s: cannot be unpacked, the program gzip: %s",
                       carnn__name_end(f->name), strerror(problem));
}

/* Ends gzip; 0 if it found the file to be damaged. Its code 2 is a warning. */
static int carnn__gzip_close(carnn__feed *f) {
    int code = 0;
    pid_t gzip = f->gzip;
    if (!gzip) return 1;
    f->gzip = 0;
    close(f->pipe);
    while (waitpid(gzip, &code, 0) < 0) {
        if (errno != EINTR) return 1; /* the host has taken the code of its own accord */
    }
    return WIFEXITED(code) && (WEXITSTATUS(code) == 0 || WEXITSTATUS(code) == 2);
}

/* Reads from gzip: 0 bytes at the end, an error where it stopped before that. */
static carnn_status carnn__gzip_read(carnn__feed *f, char *to, size_t room, size_t *got,
                                     carnn_error *error) {
    ssize_t bytes;
    do bytes = read(f->pipe, to, room);
    while (bytes < 0 && errno == EINTR);
    *got = bytes > 0 ? (size_t)bytes : 0;
    if (bytes < 0) return carnn__io_error(error, f->name, strerror(errno));
    if (bytes == 0 && !carnn__gzip_close(f))
        return carnn__io_error(error, f->name, "gzip cannot unpack it, it is damaged");
    return CARNN_OK;
}
#endif

static void carnn__feed_close(carnn__feed *f, const carnn_allocator *a) {
#ifdef CARNN__GZIP
    carnn__gzip_close(f);
#endif
#ifndef CARNN_NO_STDIO
    if (f->file) fclose(f->file);
#endif
    carnn__free(a, f->buffer);
    memset(f, 0, sizeof *f);
}

/* Reads on from the file; 0 bytes at its end. */
static carnn_status carnn__feed_read(carnn__feed *f, char *to, size_t room, size_t *got,
                                     carnn_error *error) {
    *got = 0;
#ifdef CARNN__GZIP
    if (f->gzip) return carnn__gzip_read(f, to, room, got, error);
#endif
#ifdef CARNN_NO_STDIO
    (void)to, (void)room;
    return carnn__io_error(error, f->name, "built without files (CARNN_NO_STDIO)");
#else
    errno = 0;
    *got = fread(to, 1, room, f->file);
    if (ferror(f->file))
        return carnn__io_error(error, f->name, errno ? strerror(errno) : "cannot be read");
    return CARNN_OK;
#endif
}

/* Makes room behind the bytes at hand: moves them to the front of the buffer where that frees half
   of it, and else doubles it. So a byte is moved a few times at most. */
static carnn_status carnn__feed_room(carnn__feed *f, const carnn_allocator *a,
                                     carnn_error *error) {
    size_t room = f->room ? 2 * f->room : CARNN__FIRST_READ;
    char *larger;
    if (f->buffer && f->at + f->left < f->buffer + f->room) return CARNN_OK;
    if (f->left) memmove(f->buffer, f->at, f->left);
    f->at = f->buffer;
    if (f->left < f->room - f->room / 2) return CARNN_OK;
    larger = room > f->room ? (char *)a->realloc(f->buffer, room, a->user) : NULL;
    if (!larger)
        return carnn__fail(error, CARNN_ERR_MEMORY, 0, "out of memory reading %s",
                           carnn__name_end(f->name));
    f->at = f->buffer = larger;
    f->room = room;
    return CARNN_OK;
}

/* Sees to it that `want` bytes are at hand, or all that is left. */
static carnn_status carnn__feed_want(carnn__feed *f, size_t want, const carnn_allocator *a,
                                     carnn_error *error) {
    carnn_status status = CARNN_OK;
    while (!status && !f->ended && f->left < want) {
        size_t got = 0;
        status = carnn__feed_room(f, a, error);
        if (!status) {
            char *to = f->buffer + (f->at - f->buffer) + f->left;
            status = carnn__feed_read(f, to, (size_t)(f->buffer + f->room - to), &got, error);
        }
        f->left += got;
        f->ended = !got;
    }
    return status;
}

static carnn_status carnn__feed_file(carnn__feed *f, const carnn_allocator *a,
                                     carnn_error *error) {
    carnn_status status = CARNN_OK;
#ifndef CARNN_NO_STDIO
    f->file = fopen(f->name, "rb");
    if (!f->file) status = carnn__io_error(error, f->name, strerror(errno));
#endif
    if (!status) status = carnn__feed_want(f, 2, a, error);
#ifdef CARNN__GZIP /* carnn__feed_open refuses what cannot be read twice */
    if (!status && carnn__gzipped(f) && !fseek(f->file, 0, SEEK_END)) {
        f->left = 0;
        f->ended = 0;
        status = carnn__gzip_open(f, error);
        if (!status) status = carnn__feed_want(f, 2, a, error);
    }
#endif
    return status;
}

/* Opens a source; on an error nothing is left open. */
static carnn_status carnn__feed_open(carnn__feed *f, const carnn_source *source,
                                     const carnn_allocator *a, carnn_error *error) {
    carnn_status status = CARNN_OK;
    memset(f, 0, sizeof *f);
    f->name = source->name ? source->name : "(memory)";
    if (source->bytes) {
        f->at = (const char *)source->bytes;
        f->left = source->size;
        f->ended = 1;
    } else if (!source->name) {
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "a source has neither a name nor bytes");
    } else {
        status = carnn__feed_file(f, a, error);
    }
    if (!status && carnn__gzipped(f))
        status = carnn__io_error(error, f->name, "is packed; unpack it first with gzip -d");
    if (status) carnn__feed_close(f, a);
    return status;
}

/* Takes `count` bytes off the front. */
static inline void carnn__feed_skip(carnn__feed *f, size_t count) {
    f->at += count;
    f->left -= count;
}

/* --- input: a source as a whole -------------------------------------------------------------- */

typedef struct carnn__input {
    const char *name; /* for errors */
    const char *bytes;
    size_t size;
    char *own; /* the block that holds a file */
} carnn__input;

static void carnn__input_close(carnn__input *in, const carnn_allocator *a) {
    carnn__free(a, in->own);
    memset(in, 0, sizeof *in);
}

static carnn_status carnn__input_open(carnn__input *in, const carnn_source *source,
                                      const carnn_allocator *a, carnn_error *error) {
    carnn__feed feed;
    carnn_status status = carnn__feed_open(&feed, source, a, error);
    memset(in, 0, sizeof *in);
    if (!status) status = carnn__feed_want(&feed, SIZE_MAX, a, error);
    if (!status) {
        in->name = feed.name;
        in->bytes = feed.at;
        in->size = feed.left;
        in->own = feed.buffer;
        feed.buffer = NULL;
    }
    carnn__feed_close(&feed, a);
    return status;
}

/* --- lines ----------------------------------------------------------------------------------- */

typedef struct carnn__lines {
    const char *name;       /* of the input */
    const char *rest, *end; /* what has not been read */
    carnn__span line;       /* the line that carnn__next_line found, without LF or CR LF */
    size_t number;          /* of the line, from 1 */
} carnn__lines;

static carnn__lines carnn__lines_of(const carnn__input *in) {
    carnn__lines lines;
    memset(&lines, 0, sizeof lines);
    lines.name = in->name;
    lines.rest = in->bytes;
    lines.end = in->size ? in->bytes + in->size : in->bytes;
    if (in->size >= 3 && memcmp(in->bytes, "\xEF\xBB\xBF", 3) == 0) lines.rest += 3; /* UTF-8 */
    return lines;
}

/* Moves on to the next line; 0 when there is none. */
static int carnn__next_line(carnn__lines *l) {
    const char *stop;
    if (l->rest == l->end) return 0;
    stop = (const char *)memchr(l->rest, '\n', (size_t)(l->end - l->rest));
    l->line.at = l->rest;
    l->line.length = (size_t)((stop ? stop : l->end) - l->rest);
    if (l->line.length && l->line.at[l->line.length - 1] == '\r') l->line.length--;
    l->rest = stop ? stop + 1 : l->end;
    l->number++;
    return 1;
}

/* Takes the part before the next `separator` off `s`. Returns 0, with all of `s` as the part, when
   there is none. */
static int carnn__cut(carnn__span *s, char separator, carnn__span *part) {
    const char *stop = s->length ? (const char *)memchr(s->at, separator, s->length) : NULL;
    *part = *s;
    if (!stop) {
        s->at += s->length;
        s->length = 0;
        return 0;
    }
    part->length = (size_t)(stop - s->at);
    s->length -= part->length + 1;
    s->at = stop + 1;
    return 1;
}

/* How many digits `s` begins with. */
static size_t carnn__digits(carnn__span s) {
    size_t i = 0;
    while (i < s.length && carnn__digit(s.at[i])) i++;
    return i;
}

/* Reads all of `s` as a whole number, at most UINT32_MAX + 1: what is larger is that, too. */
static int carnn__whole(carnn__span s, uint64_t *number) {
    size_t i, digits = carnn__digits(s);
    *number = 0;
    for (i = 0; i < digits; i++) {
        *number = *number * 10 + (uint64_t)(s.at[i] - '0');
        if (*number > UINT32_MAX) *number = (uint64_t)UINT32_MAX + 1;
    }
    return digits && digits == s.length;
}

/* Reads all of `s` as a decimal number, in every locale alike; 0 if it is none that a float can
   hold. Up to 19 digits count; with up to 15 digits and an exponent within +-22 the result is
   the double nearest to what is written, since both factors are exact. */
static int carnn__number(carnn__span s, double *number) {
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const int most = 100000000; /* of an exponent, so that an int holds ten times as much */
    const char *at = s.at, *end = s.length ? s.at + s.length : s.at;
    uint64_t digits = 0;
    int exponent = 0, written = 0, seen = 0, point = 0, negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+')) at++;
    for (; at < end && (carnn__digit(*at) || (*at == '.' && !point)); at++) {
        if (*at == '.') {
            point = 1;
            continue;
        }
        seen = 1;
        if (digits < 1000000000000000000u) {
            digits = digits * 10 + (uint64_t)(*at - '0');
            if (point && exponent > -most) exponent--;
        } else if (!point && exponent < most) {
            exponent++;
        }
    }
    if (seen && at < end && (*at == 'e' || *at == 'E')) {
        int minus = ++at < end && *at == '-';
        if (at < end && (*at == '-' || *at == '+')) at++;
        if (at == end) return 0;
        for (; at < end && carnn__digit(*at); at++)
            if (written < most) written = written * 10 + (*at - '0');
        exponent += minus ? -written : written;
    }
    if (!seen || at < end) return 0;
    *number = (double)digits;
    while (exponent > 0 && digits && *number <= FLT_MAX) {
        int step = exponent < 22 ? exponent : 22;
        *number *= powers[step];
        exponent -= step;
    }
    while (exponent < 0 && *number > 0) {
        int step = exponent > -22 ? -exponent : 22;
        *number /= powers[step];
        exponent += step;
    }
    if (*number > FLT_MAX) return 0;
    if (negative) *number = -*number;
    return 1;
}

#define CARNN__SHOWN 40

/* A text in quotes for an error message: shortened, with escapes for what is not ASCII. */
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

/* "trn.txt:381: expected a line number, found "abc"" */
static carnn_status carnn__expected(carnn_error *error, const carnn__lines *l, const char *what,
                                    carnn__span found) {
    char shown[4 * CARNN__SHOWN + 8];
    return carnn__fail(error, CARNN_ERR_DATA, l->number, "%s:%zu: expected %s, found %s",
                       carnn__name_end(l->name), l->number, what, carnn__show(shown, found));
}

#endif /* CARNN_NO_TEXT */

#endif
/* --- word vectors ----------------------------------------------------------------------------
   Of a file of word vectors, those of the words of a vocabulary. The file is read once from front
   to end and only lines of these words are turned into numbers. It may be

       GloVe      word SPACE number SPACE number ... LF; the word may have spaces in it
       word2vec   text, also fastText's .vec: the same after a line "words dimension"
       word2vec   binary: after a line "words dimension", word SPACE and `dimension` floats, little
                  end first, with or without LF behind them

   and is told by its beginning. */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA) && !defined(CARNN_NO_TEXT)

#define CARNN__DIMENSION_MAX 65536
#define CARNN__VECTOR_LINE_MAX ((size_t)1 << 24) /* bytes; binary garbage may have no LF at all */

typedef struct carnn__vectors {
    size_t dimension; /* 0 before the first file */
    size_t found;     /* words that have a vector */
    float *value;     /* (words, dimension); zero where none was found */
    char *has;        /* (words) */
} carnn__vectors;

/* A file of vectors while it is read. */
typedef struct carnn__vector_file {
    carnn__vectors *v;
    const carnn__names *words;
    const carnn_allocator *allocator;
    carnn_error *error;
    carnn__feed feed;
    carnn__lines lines; /* name, number and text of the line at hand */
    size_t dimension;
    size_t count; /* vectors that word2vec's first line promises */
    size_t read;  /* vectors so far */
} carnn__vector_file;

static void carnn__vectors_free(carnn__vectors *v, const carnn_allocator *a) {
    carnn__free_aligned(a, v->value);
    carnn__free(a, v->has);
    memset(v, 0, sizeof *v);
}

/* Which row a vector has to be read into; CARNN__NOWHERE if nobody asked for its word, or if the
   word has a vector. */
static uint32_t carnn__vector_row(const carnn__vector_file *f, carnn__span word) {
    uint32_t row = carnn__names_find(f->words, word.at, word.length);
    return row == CARNN__NOWHERE || f->v->has[row] ? CARNN__NOWHERE : row;
}

static void carnn__vector_done(carnn__vector_file *f, uint32_t row) {
    f->v->has[row] = 1;
    f->v->found++;
}

/* --- text ---------------------------------------------------------------------------------- */

static inline int carnn__gap(char c) { return c == ' ' || c == '\t'; }

/* Takes the last word, and the gap before it, off a line; empty where there is none. */
static carnn__span carnn__last_word(carnn__span *line) {
    carnn__span last = *line;
    while (line->length && !carnn__gap(line->at[line->length - 1])) line->length--;
    last.at += line->length;
    last.length -= line->length;
    while (line->length && carnn__gap(line->at[line->length - 1])) line->length--;
    return last;
}

/* Takes the numbers that a line ends with off it, at most `most`; returns how many. */
static size_t carnn__last_numbers(carnn__span *line, size_t most) {
    size_t count;
    for (count = 0; count < most; count++) {
        carnn__span rest = *line;
        double number;
        if (!carnn__number(carnn__last_word(&rest), &number)) break;
        *line = rest;
    }
    return count;
}

/* Finds the next line and leaves it on the feed; *taken is what it takes there, 0 at the end. */
static carnn_status carnn__vector_line(carnn__vector_file *f, size_t *taken) {
    carnn__feed *feed = &f->feed;
    carnn__span *line = &f->lines.line;
    const char *stop = NULL;
    carnn_status status = CARNN_OK;
    size_t looked = 0;
    for (;;) {
        if (feed->left > looked)
            stop = (const char *)memchr(feed->at + looked, '\n', feed->left - looked);
        looked = feed->left;
        if (stop || feed->ended || looked > CARNN__VECTOR_LINE_MAX) break;
        status = carnn__feed_want(feed, looked + 1, f->allocator, f->error);
        if (status) return status;
    }
    f->lines.number++;
    line->at = feed->at;
    line->length = stop ? (size_t)(stop - feed->at) : feed->left;
    *taken = line->length + (stop != NULL);
    while (line->length && carnn__blank(line->at[line->length - 1])) line->length--;
    if (stop || feed->ended) return CARNN_OK;
    return carnn__expected(f->error, &f->lines, "a word vector of at most 16 MB", *line);
}

static carnn_status carnn__vector_odd(carnn__vector_file *f) {
    char what[64];
    snprintf(what, sizeof what, "a word and %zu numbers", f->dimension);
    return carnn__expected(f->error, &f->lines, what, f->lines.line);
}

/* The word of the line at hand: what is before its last `dimension` words. Mostly there is one gap
   before each of these, and none in the word. */
static carnn_status carnn__vector_word(carnn__vector_file *f, carnn__span *word) {
    carnn__span rest = f->lines.line;
    double number;
    size_t i, gaps = 0;
    for (i = 0; i < rest.length; i++) gaps += (size_t)carnn__gap(rest.at[i]);
    *word = rest;
    if (gaps == f->dimension) {
        for (word->length = 0; !carnn__gap(word->at[word->length]); word->length++) {}
        return CARNN_OK;
    }
    for (i = 0; i < f->dimension; i++) carnn__last_word(&rest);
    *word = rest;
    if (!rest.length) return carnn__vector_odd(f); /* too few numbers, or too many: */
    if (carnn__number(carnn__last_word(&rest), &number) && rest.length) return carnn__vector_odd(f);
    return CARNN_OK;
}

/* Reads the line at hand. */
static carnn_status carnn__vector_text(carnn__vector_file *f) {
    carnn__span word, rest = f->lines.line;
    carnn_status status = carnn__vector_word(f, &word);
    uint32_t row = status ? CARNN__NOWHERE : carnn__vector_row(f, word);
    size_t i;
    f->read++;
    if (row == CARNN__NOWHERE) return status;
    rest.at += word.length;
    rest.length -= word.length;
    for (i = f->dimension; i-- > 0;) {
        carnn__span last = carnn__last_word(&rest);
        double number;
        if (!last.length) return carnn__vector_odd(f);
        if (!carnn__number(last, &number))
            return carnn__expected(f->error, &f->lines, "a number", last);
        f->v->value[row * f->dimension + i] = (float)number;
    }
    if (rest.length) return carnn__vector_odd(f);
    carnn__vector_done(f, row);
    return CARNN_OK;
}

static carnn_status carnn__vectors_text(carnn__vector_file *f) {
    carnn_status status = CARNN_OK;
    while (!status) {
        size_t taken;
        status = carnn__vector_line(f, &taken);
        if (!status && !taken) break;
        if (!status && f->lines.line.length) status = carnn__vector_text(f);
        if (!status) carnn__feed_skip(&f->feed, taken);
    }
    return status;
}

/* --- binary -------------------------------------------------------------------------------- */

static carnn_status carnn__vector_cut(carnn__vector_file *f, const char *found) {
    return carnn__fail(f->error, CARNN_ERR_DATA, 0,
                       "%s: expected %zu vectors of %zu floats, found %s in number %zu",
                       carnn__name_end(f->feed.name), f->count, f->dimension, found, f->read + 1);
}

/* Reads the vector at the front of the feed and takes it off. */
static carnn_status carnn__vector_binary(carnn__vector_file *f) {
    const size_t longest = 65536, bytes = 4 * f->dimension;
    carnn__feed *feed = &f->feed;
    carnn_status status = carnn__feed_want(feed, longest + bytes, f->allocator, f->error);
    carnn__span word, rest;
    uint32_t row;
    size_t i;
    if (status) return status;
    while (feed->left && *feed->at == '\n') carnn__feed_skip(feed, 1); /* of the vector before */
    rest.at = feed->at;
    rest.length = carnn__min(feed->left, longest);
    if (!carnn__cut(&rest, ' ', &word))
        return carnn__vector_cut(f, feed->left < longest ? "the end of the file" : "no word");
    carnn__feed_skip(feed, word.length + 1);
    if (feed->left < bytes) return carnn__vector_cut(f, "the end of the file");
    row = carnn__vector_row(f, word);
    for (i = 0; row != CARNN__NOWHERE && i < f->dimension; i++) {
        const unsigned char *b = (const unsigned char *)feed->at + 4 * i;
        uint32_t bits = b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
        if ((bits >> 23 & 255) == 255) return carnn__vector_cut(f, "NaN or infinity");
        memcpy(f->v->value + row * f->dimension + i, &bits, sizeof bits);
    }
    if (row != CARNN__NOWHERE) carnn__vector_done(f, row);
    carnn__feed_skip(feed, bytes);
    f->read++;
    return CARNN_OK;
}

/* Behind the counts: is the first vector binary? Text has its numbers there; where their number is
   wrong, what would be floats is at least printable. */
static carnn_status carnn__vector_sniff(carnn__vector_file *f, int *binary) {
    size_t i, window = 65536 + 32 * f->dimension;
    carnn_status status = carnn__feed_want(&f->feed, window, f->allocator, f->error);
    carnn__span rest, line, word, floats;
    rest.at = f->feed.at;
    rest.length = carnn__min(f->feed.left, window);
    floats = rest;
    carnn__cut(&rest, '\n', &line);
    line = carnn__trim(line);
    if (carnn__last_numbers(&line, f->dimension) == f->dimension) return status;
    carnn__cut(&floats, ' ', &word);
    floats.length = carnn__min(floats.length, 4 * f->dimension);
    for (i = 0; i < floats.length; i++) {
        char c = floats.at[i];
        if (!carnn__blank(c) && (c < ' ' || c > '~')) *binary = 1;
    }
    return status;
}

/* --- both ---------------------------------------------------------------------------------- */

/* Are these the counts that a file of word2vec begins with? */
static int carnn__vector_counts(carnn__span line, size_t *count, size_t *dimension) {
    uint64_t vectors, numbers;
    carnn__span last = carnn__last_word(&line);
    if (!carnn__whole(last, &numbers) || !carnn__whole(line, &vectors)) return 0;
    *count = (size_t)vectors;
    *dimension = (size_t)numbers;
    return 1;
}

/* Finds out what the file is from its first line, and takes the counts off the feed. */
static carnn_status carnn__vectors_begin(carnn__vector_file *f, int *binary) {
    carnn__span line;
    size_t taken;
    int counts;
    carnn_status status = carnn__vector_line(f, &taken);
    if (status) return status;
    line = f->lines.line;
    *binary = 0;
    counts = carnn__vector_counts(line, &f->count, &f->dimension);
    if (!counts) {
        f->dimension = carnn__last_numbers(&line, CARNN__DIMENSION_MAX + 1);
        if (f->dimension && !line.length) f->dimension--; /* the word looks like a number */
    }
    if (!f->dimension || f->dimension > CARNN__DIMENSION_MAX)
        return carnn__expected(f->error, &f->lines, "a word and up to 65536 numbers",
                               f->lines.line);
    if (f->v->dimension && f->v->dimension != f->dimension)
        return carnn__fail(f->error, CARNN_ERR_DATA, 1,
                           "%s:1: expected vectors of %zu numbers as before, found %zu numbers",
                           carnn__name_end(f->feed.name), f->v->dimension, f->dimension);
    if (!counts) {
        f->lines.number = 0; /* the line is read again, as a vector */
        return CARNN_OK;
    }
    carnn__feed_skip(&f->feed, taken);
    return carnn__vector_sniff(f, binary); /* this may move what `lines` points to */
}

/* Memory for the vectors of all words, when the first file has said how long they are. */
static carnn_status carnn__vectors_take(carnn__vector_file *f) {
    carnn__vectors *v = f->v;
    size_t words = f->words->count;
    if (v->dimension) return CARNN_OK;
    v->value = (float *)carnn__alloc_aligned(f->allocator, words,
                                             carnn__times(f->dimension, sizeof(float)));
    v->has = (char *)carnn__alloc_zero(f->allocator, words, 1);
    if (!v->value || !v->has) return carnn__out_of_memory(f->error);
    memset(v->value, 0, words * f->dimension * sizeof(float));
    v->dimension = f->dimension;
    return CARNN_OK;
}

static carnn_status carnn__vectors_file(carnn__vector_file *f) {
    int binary;
    carnn_status status = carnn__vectors_begin(f, &binary);
    if (!status) status = carnn__vectors_take(f);
    if (!status && !binary) status = carnn__vectors_text(f);
    while (!status && binary && f->read < f->count) status = carnn__vector_binary(f);
    if (!status && !f->read)
        return carnn__fail(f->error, CARNN_ERR_DATA, 1, "%s:1: expected word vectors, found none",
                           carnn__name_end(f->feed.name));
    return status;
}

/* Reads vectors of words that have none yet, so that of several files the first one goes first.
   `v` begins as zeros, and is freed by its owner, also after an error. */
static carnn_status carnn__vectors_read(carnn__vectors *v, const carnn_source *source,
                                        const carnn__names *words, const carnn_allocator *a,
                                        carnn_error *error) {
    carnn__vector_file f;
    carnn_status status;
    memset(&f, 0, sizeof f);
    f.v = v;
    f.words = words;
    f.allocator = a;
    f.error = error;
    status = carnn__feed_open(&f.feed, source, a, error);
    f.lines.name = f.feed.name;
    if (!status) status = carnn__vectors_file(&f);
    carnn__feed_close(&f.feed, a);
    return status;
}

#endif
/* =============================================================================================
   @@DATA   data sets and their readers, one per task
   ============================================================================================= */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

/* --- data sets -------------------------------------------------------------------------------
   Every distinct text of a data set is kept once, without the blanks at its ends, and goes by its
   number: what is said again and again (facts, stock replies) is encoded once. */

/* Something said, or a fact, of a dialog. */
typedef struct carnn__line {
    uint32_t text;
    uint32_t speaker; /* carnn_speaker */
} carnn__line;

/* An example of the task "dialog": what is the answer to line `line`, after the lines of the
   dialog before it? */
typedef struct carnn__turn {
    uint32_t dialog;
    uint32_t line;      /* the user's utterance; the one after it is the system's */
    uint32_t response;  /* text of the right answer */
    uint32_t candidate; /* its number among the candidates, or CARNN__NOWHERE */
    size_t source_line;
} carnn__turn;

/* A sentence of a language model's text, an example each: how probable are its words after the
   sentence before it in its document? */
typedef struct carnn__sentence {
    uint32_t document;
    uint32_t text;  /* words with blanks between them */
    uint32_t label; /* its number among the labels, or CARNN__NOWHERE */
} carnn__sentence;

/* An example of answer selection: does `answer` answer `question`? */
typedef struct carnn__pair {
    uint32_t group; /* the pairs of one question, which are ranked, are consecutive */
    uint32_t question, answer;
    uint32_t label; /* 1: it does */
} carnn__pair;

/* One source of a data set, so that examples can be named after the data is read. */
typedef struct carnn__origin {
    size_t name;    /* where its name begins in `origin_names` */
    size_t example; /* the first one that comes from it */
} carnn__origin;

struct carnn_dataset {
    carnn_allocator allocator;
    const char *task;
    size_t examples;
    size_t text_count; /* text i: bytes + text_at[i], text_at[i + 1] - text_at[i] - 1 long, NUL */
    char *bytes;
    size_t *text_at;
    size_t origin_count;
    carnn__origin *origins;
    char *origin_names;
    /* dialog */
    size_t line_count, dialog_count, turn_count, candidate_count;
    carnn__line *lines;
    size_t *dialog_start; /* (dialog_count + 1) its first line */
    carnn__turn *turns;
    uint32_t *candidates; /* their texts, in the order of the file */
    size_t *shown_at;     /* (candidate_count + 1) where a candidate is in `shown`, which has */
    char *shown;          /* them byte for byte, with blanks at their ends, and a NUL behind each */
    /* lm */
    size_t sentence_count, document_count, label_count;
    carnn__sentence *sentences;
    size_t *document_start; /* (document_count + 1) its first sentence */
    uint32_t *labels;       /* their texts, in the order in which they first occur */
    int spoken;             /* the sentences are turns of speakers, the labels dialog acts */
    /* answer */
    size_t pair_count, group_count;
    carnn__pair *pairs;
    size_t *group_start; /* (group_count + 1) its first pair */
    size_t groups_left_out;
};

/* Words of a question or an answer at most: pairs are compared word by word. */
#define CARNN__SENTENCE_WORDS 512

/* All lists of a data set: what is copied when a reader is done, and freed. */
#define CARNN__DATASET_LISTS(X)                                                                    \
    X(char, bytes)                                                                                 \
    X(size_t, text_at)                                                                             \
    X(carnn__origin, origins)                                                                      \
    X(char, origin_names)                                                                          \
    X(carnn__line, lines)                                                                          \
    X(size_t, dialog_start)                                                                        \
    X(carnn__turn, turns)                                                                          \
    X(uint32_t, candidates)                                                                        \
    X(size_t, shown_at)                                                                            \
    X(char, shown)                                                                                 \
    X(carnn__sentence, sentences)                                                                  \
    X(size_t, document_start)                                                                      \
    X(uint32_t, labels)                                                                            \
    X(carnn__pair, pairs)                                                                          \
    X(size_t, group_start)

static inline carnn__span carnn__text(const carnn_dataset *data, size_t i) {
    carnn__span text;
    text.at = data->bytes + data->text_at[i];
    text.length = data->text_at[i + 1] - data->text_at[i] - 1;
    return text;
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
    return dataset ? dataset->examples : 0;
}

CARNN_API size_t carnn_dataset_left_out(const carnn_dataset *dataset) {
    return dataset ? dataset->groups_left_out : 0;
}

#ifdef CARNN_NO_TEXT

CARNN_API carnn_status carnn_dataset_load(carnn_dataset **dataset, const carnn_dataset_desc *desc,
                                          carnn_error *error) {
    (void)desc;
    *dataset = NULL;
    return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "built without data sets (CARNN_NO_TEXT)");
}

#else

/* --- reading ---------------------------------------------------------------------------------
   A reader works in carnn__build on a draft, a data set whose lists are stb_ds's. Its lists are
   copied when all is well; either way the draft is dropped afterwards. */

typedef struct carnn__reading {
    const carnn_dataset_desc *desc;
    carnn_allocator allocator;
    carnn_error *error;
    carnn__input input;  /* the source that is being read */
    carnn__lines lines;  /* and where in it */
    carnn_dataset draft;
    carnn__names texts;  /* becomes bytes, text_at, text_count of the draft */
    uint32_t *listed;    /* (texts.count) the number of a text among the candidates, or labels */
    carnn__input columns[4]; /* files that stand side by side */
    char *scratch;           /* a path, or a sentence as words */
} carnn__reading;

/* The task of a reader, and what reads all sources of r->desc. */
typedef struct carnn__reader {
    const char *task;
    carnn_status (*read)(carnn__reading *r);
} carnn__reader;

static carnn_status carnn__unexpected(carnn__reading *r, const char *what, carnn__span found) {
    return carnn__expected(r->error, &r->lines, what, found);
}

/* Is there room for one line more? Its texts, lines and examples are numbered with 32 bits. */
static carnn_status carnn__reading_room(carnn__reading *r) {
    const size_t most = CARNN__COUNT_LIMIT - 4;
    size_t examples = stbds_arrlenu(r->draft.sentences) + stbds_arrlenu(r->draft.pairs);
    if (r->texts.count < most && stbds_arrlenu(r->draft.lines) < most && examples < most)
        return CARNN_OK;
    return carnn__fail(r->error, CARNN_ERR_DATA, r->lines.number,
                       "%s:%zu: expected no more than %zu lines in one data set",
                       carnn__name_end(r->lines.name), r->lines.number, most);
}

/* The number of a text, trimmed. */
static uint32_t carnn__reading_text(carnn__reading *r, carnn__span s) {
    uint32_t text;
    s = carnn__trim(s);
    text = carnn__names_add(&r->texts, s.at, s.length, 0);
    if (text == stbds_arrlenu(r->listed)) stbds_arrput(r->listed, CARNN__NOWHERE);
    return text;
}

/* The number of a text in a list of distinct ones, candidates or labels; a new one is added. */
static uint32_t carnn__reading_list(carnn__reading *r, uint32_t **list, uint32_t text) {
    if (r->listed[text] == CARNN__NOWHERE) {
        r->listed[text] = (uint32_t)stbds_arrlenu(*list);
        stbds_arrput(*list, text);
    }
    return r->listed[text];
}

/* A source without what it has to have: "f.txt:1: expected a dialog, found an empty file". */
static carnn_status carnn__reading_empty(carnn__reading *r, const char *what) {
    if (r->desc->lenient) return CARNN_OK;
    return carnn__fail(r->error, CARNN_ERR_DATA, 1, "%s:1: expected %s, found an empty file",
                       carnn__name_end(r->lines.name), what);
}

/* Opens a source for reading line by line. */
static carnn_status carnn__reading_open(carnn__reading *r, const carnn_source *source) {
    carnn_status status;
    carnn__input_close(&r->input, &r->allocator);
    status = carnn__input_open(&r->input, source, &r->allocator, r->error);
    if (!status) r->lines = carnn__lines_of(&r->input);
    return status;
}

/* Does the line at hand say something? In an example that is to be predicted a tab by itself
   does. */
static int carnn__reading_says(const carnn__reading *r) {
    carnn__span line = r->lines.line;
    if (r->desc->lenient && line.length && memchr(line.at, '\t', line.length)) return 1;
    return carnn__trim(line).length > 0;
}

/* Notes that the examples from number `example` on come from the source `name`. */
static void carnn__reading_origin(carnn__reading *r, const char *name, size_t example) {
    size_t bytes = strlen(name) + 1;
    carnn__origin origin;
    origin.name = stbds_arrlenu(r->draft.origin_names);
    origin.example = example;
    memcpy(stbds_arraddnptr(r->draft.origin_names, bytes), name, bytes);
    stbds_arrput(r->draft.origins, origin);
}

/* The name of the source that an example comes from. */
static const char *carnn__dataset_origin(const carnn_dataset *data, size_t example) {
    size_t i = data->origin_count - 1;
    while (i && data->origins[i].example > example) i--;
    return data->origin_names + data->origins[i].name;
}

/* --- dialog ----------------------------------------------------------------------------------
   The dialog bAbI format (Bordes, Boureau and Weston 2017):

       1 hello<TAB>what can I do for you ?     a turn: user, then system
       2 the_fork R_cuisine british            a fact
                                               an empty line ends the dialog, and so does a number
       1 hi<TAB>hello there                    less than the one before, or a second 1

   A third column is what the system said, where the right answer in column 2 is not its words but
   the name of a class of replies: the history then has column 3. */

/* Takes a line number and the one blank after it off the front of `s`: 1 if they are there, with
   the number in *number; 0 leaves `s` alone. */
static int carnn__numbered(carnn__span *s, uint64_t *number) {
    carnn__span digits = *s;
    size_t i = digits.length = carnn__digits(*s);
    if (!carnn__whole(digits, number)) return 0;
    if (i < s->length && !carnn__gap(s->at[i])) return 0;
    if (i < s->length && s->at[i] == ' ') i++; /* a tab already ends the user's empty words */
    s->at += i;
    s->length -= i;
    return 1;
}

/* Makes `text` a candidate if it is none; `shown` is how it was written. */
static uint32_t carnn__babi_candidate(carnn__reading *r, uint32_t text, carnn__span shown) {
    uint32_t number = carnn__reading_list(r, &r->draft.candidates, text);
    if (number == stbds_arrlenu(r->draft.shown_at)) {
        char *copy;
        stbds_arrput(r->draft.shown_at, stbds_arrlenu(r->draft.shown));
        copy = stbds_arraddnptr(r->draft.shown, shown.length + 1);
        memcpy(copy, shown.at, shown.length);
        copy[shown.length] = 0;
    }
    return number;
}

/* A line of a list of candidates without its number and the one blank after it; a number alone is
   a candidate. */
static carnn__span carnn__babi_unnumbered(carnn__span line) {
    size_t digits = carnn__digits(line);
    if (!digits || digits == line.length || !carnn__blank(line.at[digits])) return line;
    line.at += digits + 1;
    line.length -= digits + 1;
    return line;
}

/* One candidate a line, after an optional number and one blank. Of two that differ in the blanks
   at their ends only, the first one counts. */
static carnn_status carnn__babi_candidates(carnn__reading *r, const carnn_source *source) {
    carnn_status status = carnn__reading_open(r, source);
    while (!status && carnn__next_line(&r->lines)) {
        carnn__span line = carnn__babi_unnumbered(r->lines.line);
        if (!carnn__trim(r->lines.line).length) continue;
        if (!carnn__trim(line).length)
            return carnn__unexpected(r, "a candidate after the number", carnn__trim(line));
        status = carnn__reading_room(r);
        if (!status) carnn__babi_candidate(r, carnn__reading_text(r, line), line);
    }
    if (!status && !stbds_arrlenu(r->draft.candidates))
        return carnn__reading_empty(r, "candidates, one a line");
    return status;
}

static void carnn__babi_say(carnn__reading *r, carnn__span text, carnn_speaker speaker) {
    carnn__line line;
    line.text = carnn__reading_text(r, text);
    line.speaker = (uint32_t)speaker;
    stbds_arrput(r->draft.lines, line);
}

/* A turn: its columns without the line number. */
static carnn_status carnn__babi_turn(carnn__reading *r, carnn__span user, carnn__span rest) {
    carnn__span response, spoken = {NULL, 0};
    carnn__turn turn;
    if (carnn__cut(&rest, '\t', &response) && carnn__cut(&rest, '\t', &spoken) &&
        !r->desc->lenient)
        return carnn__unexpected(r, "at most three columns", r->lines.line);
    if (!carnn__trim(response).length && !r->desc->lenient)
        return carnn__unexpected(r, "a response after the tab", carnn__trim(response));
    turn.dialog = (uint32_t)(stbds_arrlenu(r->draft.dialog_start) - 1);
    turn.line = (uint32_t)stbds_arrlenu(r->draft.lines);
    turn.response = carnn__reading_text(r, response);
    turn.candidate = r->desc->candidates ? r->listed[turn.response]
                                         : carnn__babi_candidate(r, turn.response, response);
    turn.source_line = r->lines.number;
    carnn__babi_say(r, user, CARNN_USER);
    carnn__babi_say(r, carnn__trim(spoken).length ? spoken : response, CARNN_SYSTEM);
    stbds_arrput(r->draft.turns, turn);
    return CARNN_OK;
}

/* Is the line at hand, which is `line` behind its number, one of the format? */
static carnn_status carnn__babi_check(carnn__reading *r, int numbered, uint64_t number,
                                      carnn__span line) {
    if (!numbered) return carnn__unexpected(r, "a line number", line);
    if (number > UINT32_MAX)
        return carnn__unexpected(r, "a line number below 4294967296", r->lines.line);
    if (!carnn__trim(line).length && !memchr(r->lines.line.at, '\t', r->lines.line.length))
        return carnn__unexpected(r, "words after the line number", carnn__trim(line));
    return CARNN_OK;
}

/* A line of a dialog, *last being the number of the line before, -1 before the first one. One
   without a number goes on with the dialog. */
static carnn_status carnn__babi_line(carnn__reading *r, int64_t *last) {
    carnn__span line = r->lines.line, user;
    carnn_status status = carnn__reading_room(r);
    uint64_t number;
    int numbered = carnn__numbered(&line, &number);
    if (!status && !r->desc->lenient) status = carnn__babi_check(r, numbered, number, line);
    if (status) return status;
    if (*last < 0 || (numbered && ((int64_t)number < *last || (number == 1 && *last == 1))))
        stbds_arrput(r->draft.dialog_start, stbds_arrlenu(r->draft.lines));
    if (numbered) *last = (int64_t)number;
    else *last = *last < 0 ? 0 : *last;
    if (carnn__cut(&line, '\t', &user)) return carnn__babi_turn(r, user, line);
    carnn__babi_say(r, user, CARNN_FACT);
    return CARNN_OK;
}

static carnn_status carnn__babi_source(carnn__reading *r, const carnn_source *source) {
    carnn_status status = carnn__reading_open(r, source);
    size_t dialogs = stbds_arrlenu(r->draft.dialog_start);
    int64_t last = -1;
    if (status) return status;
    carnn__reading_origin(r, r->input.name, stbds_arrlenu(r->draft.turns));
    while (!status && carnn__next_line(&r->lines)) {
        if (carnn__reading_says(r)) status = carnn__babi_line(r, &last);
        else last = -1;
    }
    if (!status && stbds_arrlenu(r->draft.dialog_start) == dialogs)
        return carnn__reading_empty(r, "a dialog");
    return status;
}

static carnn_status carnn__babi_read(carnn__reading *r) {
    carnn_dataset *draft = &r->draft;
    carnn_status status = CARNN_OK;
    size_t i;
    if (r->desc->candidates) status = carnn__babi_candidates(r, r->desc->candidates);
    for (i = 0; !status && i < r->desc->source_count; i++)
        status = carnn__babi_source(r, &r->desc->sources[i]);
    if (status) return status;
    draft->line_count = stbds_arrlenu(draft->lines);
    draft->dialog_count = stbds_arrlenu(draft->dialog_start);
    draft->turn_count = draft->examples = stbds_arrlenu(draft->turns);
    draft->candidate_count = stbds_arrlenu(draft->candidates);
    stbds_arrput(draft->dialog_start, draft->line_count);
    stbds_arrput(draft->shown_at, stbds_arrlenu(draft->shown));
    if (draft->turn_count || r->desc->lenient) return CARNN_OK;
    return carnn__fail(r->error, CARNN_ERR_DATA, r->lines.number,
                       "%s:%zu: expected a turn (number, user, tab, response), found facts only",
                       carnn__name_end(r->input.name), r->lines.number);
}

/* Is every response among the candidates? CARNN_ERR_DATA names the first one that is not. */
static carnn_status carnn__dataset_check_candidates(const carnn_dataset *data,
                                                    carnn_error *error) {
    size_t i;
    for (i = 0; i < data->turn_count; i++) {
        const carnn__turn *turn = &data->turns[i];
        char shown[4 * CARNN__SHOWN + 8];
        if (turn->candidate != CARNN__NOWHERE) continue;
        return carnn__fail(error, CARNN_ERR_DATA, turn->source_line,
                           "%s:%zu: expected one of the %zu candidates as response, found %s",
                           carnn__name_end(carnn__dataset_origin(data, i)), turn->source_line,
                           data->candidate_count,
                           carnn__show(shown, carnn__text(data, turn->response)));
    }
    return CARNN_OK;
}

/* --- sentences -------------------------------------------------------------------------------
   Text for language models, a sentence a line; an empty line, or one that begins with "=", ends a
   document. Either

       words with blanks between them<TAB>label<TAB>what else there may be

   where all but the words may be missing, or, as in the Switchboard corpus, exactly two bars:

       speaker|What they said, as it is written.|dialog act

   Labels that say that there is none ("-1", "none") are none. */

/* The length of the word at the front of an utterance of Switchboard, 0 if there is none: what
   [A-Za-z0-9]+(?:'[A-Za-z]+)?|[.,?!] matches. */
static size_t carnn__spoken_word(carnn__span s) {
    size_t i = 0;
    if (*s.at && strchr(".,?!", *s.at)) return 1;
    while (i < s.length && (carnn__letter(s.at[i]) || carnn__digit(s.at[i]))) i++;
    if (i == 0 || i + 1 >= s.length || s.at[i] != '\'' || !carnn__letter(s.at[i + 1])) return i;
    for (i++; i < s.length && carnn__letter(s.at[i]); i++) {}
    return i;
}

/* An utterance of Switchboard as words in lower case with blanks between them, in scratch. */
static carnn__span carnn__spoken_words(carnn__reading *r, carnn__span text) {
    carnn__span words;
    stbds_arrsetlen(r->scratch, 0);
    while (text.length) {
        size_t i, length = carnn__spoken_word(text);
        for (i = 0; i < length; i++)
            stbds_arrput(r->scratch, (char)carnn__folded(text.at[i], 1));
        if (length) stbds_arrput(r->scratch, ' ');
        text.at += carnn__max(length, 1);
        text.length -= carnn__max(length, 1);
    }
    words.at = r->scratch;
    words.length = stbds_arrlenu(r->scratch);
    return words;
}

/* Does the line read speaker|text|act? Then *text and *act are set. */
static int carnn__spoken(carnn__span line, carnn__span *text, carnn__span *act) {
    carnn__span speaker, said, rest;
    if (memchr(line.at, '\t', line.length)) return 0;
    if (!carnn__cut(&line, '|', &speaker) || !carnn__cut(&line, '|', &said)) return 0;
    if (carnn__cut(&line, '|', &rest)) return 0;
    *text = said;
    *act = rest;
    return 1;
}

static uint32_t carnn__sentence_label(carnn__reading *r, carnn__span label) {
    label = carnn__trim(label);
    if (!label.length || (label.length == 2 && memcmp(label.at, "-1", 2) == 0) ||
        (label.length == 4 && memcmp(label.at, "none", 4) == 0))
        return CARNN__NOWHERE;
    return carnn__reading_list(r, &r->draft.labels, carnn__reading_text(r, label));
}

/* Adds the line at hand, in a new document if `fresh`. */
static void carnn__sentence_add(carnn__reading *r, int fresh) {
    carnn__span rest = r->lines.line, text, label = {NULL, 0};
    carnn__sentence sentence;
    if (carnn__spoken(rest, &text, &label)) {
        text = carnn__spoken_words(r, text);
        r->draft.spoken = 1;
    } else if (carnn__cut(&rest, '\t', &text)) {
        carnn__cut(&rest, '\t', &label);
    }
    if (fresh) stbds_arrput(r->draft.document_start, stbds_arrlenu(r->draft.sentences));
    sentence.document = (uint32_t)(stbds_arrlenu(r->draft.document_start) - 1);
    sentence.text = carnn__reading_text(r, text);
    sentence.label = carnn__sentence_label(r, label);
    stbds_arrput(r->draft.sentences, sentence);
}

static carnn_status carnn__sentences_source(carnn__reading *r, const carnn_source *source) {
    carnn_status status = carnn__reading_open(r, source);
    size_t before = stbds_arrlenu(r->draft.sentences);
    int fresh = 1;
    if (status) return status;
    carnn__reading_origin(r, r->input.name, before);
    while (!status && carnn__next_line(&r->lines)) {
        carnn__span line = r->lines.line;
        int ends = !carnn__trim(line).length || *line.at == '=';
        status = carnn__reading_room(r);
        if (!status && !ends) carnn__sentence_add(r, fresh);
        fresh = ends;
    }
    if (!status && stbds_arrlenu(r->draft.sentences) == before)
        return carnn__reading_empty(r, "a sentence");
    return status;
}

static carnn_status carnn__sentences_read(carnn__reading *r) {
    carnn_dataset *draft = &r->draft;
    carnn_status status = CARNN_OK;
    size_t i;
    for (i = 0; !status && i < r->desc->source_count; i++)
        status = carnn__sentences_source(r, &r->desc->sources[i]);
    draft->sentence_count = draft->examples = stbds_arrlenu(draft->sentences);
    draft->document_count = stbds_arrlenu(draft->document_start);
    draft->label_count = stbds_arrlenu(draft->labels);
    stbds_arrput(draft->document_start, draft->sentence_count);
    return status;
}

/* --- pairs -----------------------------------------------------------------------------------
   Questions and candidate answers, a pair a line. Columns lie between tabs: named by a first line
   that has at least "Question", "Sentence" or "Answer", and "Label", maybe "QuestionID"; or else

       question, answer, label      or      number, label, question, answer

   A folder has them as files: a.toks questions, b.toks answers, sim.txt labels, maybe id.txt
   numbers. Consecutive lines with the same number, or without numbers the same question, are the
   answers to one question. */

typedef struct carnn__pair_columns {
    size_t count; /* of all columns */
    size_t number, question, answer, label; /* which ones; SIZE_MAX: there is none */
} carnn__pair_columns;

/* A pair as it is written; `number` is the question where there are no numbers. */
typedef struct carnn__pair_text {
    carnn__span number, question, answer, label;
    const char *question_file, *answer_file; /* where they have files of their own, else NULL */
} carnn__pair_text;

static int carnn__column_is(carnn__span field, const char *name) {
    size_t length = strlen(name);
    field = carnn__trim(field);
    return field.length == length && carnn__equal(name, field.at, length, 1);
}

/* The columns of a file from its first line; *named if that only names them. */
static carnn_status carnn__pair_header(carnn__reading *r, carnn__pair_columns *c, int *named) {
    static const carnn__pair_columns none = {0, SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX};
    static const carnn__pair_columns three = {3, SIZE_MAX, 0, 1, 2}, four = {4, 0, 2, 3, 1};
    carnn__span rest = r->lines.line, field;
    int more = 1;
    for (*c = none; more; c->count++) {
        more = carnn__cut(&rest, '\t', &field);
        if (carnn__column_is(field, "questionid")) c->number = c->count;
        if (carnn__column_is(field, "question")) c->question = c->count;
        if (carnn__column_is(field, "sentence") || carnn__column_is(field, "answer"))
            c->answer = c->count;
        if (carnn__column_is(field, "label")) c->label = c->count;
    }
    *named = c->question != SIZE_MAX;
    if (*named && r->desc->lenient && c->answer == SIZE_MAX) c->answer = c->question + 1;
    if (*named && (c->answer == SIZE_MAX || (c->label == SIZE_MAX && !r->desc->lenient)))
        return carnn__unexpected(r, "columns Question, Sentence or Answer, and Label",
                                 r->lines.line);
    if (*named) return CARNN_OK;
    if (c->count != 3 && c->count != 4 && !r->desc->lenient)
        return carnn__unexpected(r, "three columns (question, answer, label) or four (number, "
                                    "label, question, answer)", r->lines.line);
    *c = c->count == 4 ? four : three;
    return CARNN_OK;
}

/* The columns of the line at hand. */
static carnn_status carnn__pair_fields(carnn__reading *r, const carnn__pair_columns *c,
                                       carnn__pair_text *pair) {
    carnn__span rest = r->lines.line, field;
    char what[64];
    size_t i = 0;
    int more = 1;
    memset(pair, 0, sizeof *pair);
    for (; more; i++) {
        more = carnn__cut(&rest, '\t', &field);
        if (i == c->number) pair->number = field;
        if (i == c->question) pair->question = field;
        if (i == c->answer) pair->answer = field;
        if (i == c->label) pair->label = field;
    }
    if (c->number == SIZE_MAX) pair->number = pair->question;
    if (i == c->count || r->desc->lenient) return CARNN_OK;
    snprintf(what, sizeof what, "%zu columns with tabs between them", c->count);
    return carnn__unexpected(r, what, r->lines.line);
}

/* A question or an answer has words, and not too many. */
static carnn_status carnn__pair_sentence(carnn__reading *r, const char *what, const char *file,
                                         carnn__span text, uint32_t *number) {
    carnn__words w = carnn__words_of(CARNN__TOKENS, text.at, text.length);
    char expected[64];
    size_t words = 0;
    while (words <= CARNN__SENTENCE_WORDS && carnn__next_word(&w)) words++;
    *number = carnn__reading_text(r, text);
    if (r->desc->lenient || (words && words <= CARNN__SENTENCE_WORDS)) return CARNN_OK;
    snprintf(expected, sizeof expected, "%s of 1 to %d words", what, CARNN__SENTENCE_WORDS);
    if (file) r->lines.name = file;
    return carnn__unexpected(r, expected, carnn__trim(text));
}

/* Adds a pair; *last is the number of the one before in the same source, or NULL. */
static carnn_status carnn__pair_add(carnn__reading *r, const carnn__pair_text *text,
                                    carnn__span *last) {
    carnn_status status = carnn__reading_room(r);
    carnn__span number = carnn__trim(text->number);
    carnn__pair pair;
    double label = 0.0;
    if (status) return status;
    if (!r->desc->lenient && (!carnn__number(carnn__trim(text->label), &label) ||
                              (label != 0 && label != 1)))
        return carnn__unexpected(r, "the label 0 or 1", text->label);
    if (!last->at || last->length != number.length ||
        !carnn__equal(last->at, number.at, number.length, 0))
        stbds_arrput(r->draft.group_start, stbds_arrlenu(r->draft.pairs));
    *last = number;
    pair.group = (uint32_t)(stbds_arrlenu(r->draft.group_start) - 1);
    pair.label = label > 0;
    status = carnn__pair_sentence(r, "a question", text->question_file, text->question,
                                  &pair.question);
    if (!status)
        status = carnn__pair_sentence(r, "an answer", text->answer_file, text->answer,
                                      &pair.answer);
    if (!status) stbds_arrput(r->draft.pairs, pair);
    return status;
}

/* Leaves out the groups from number `group` on that have no right or no wrong answer. */
static void carnn__pairs_clean(carnn_dataset *draft, size_t group) {
    size_t groups = stbds_arrlenu(draft->group_start), kept = group, i;
    size_t at = group < groups ? draft->group_start[group] : 0;
    stbds_arrput(draft->group_start, stbds_arrlenu(draft->pairs));
    for (; group < groups; group++) {
        size_t from = draft->group_start[group], to = draft->group_start[group + 1], right = 0;
        for (i = from; i < to; i++) right += draft->pairs[i].label;
        if (!right || right == to - from) continue;
        draft->group_start[kept] = at;
        for (i = from; i < to; i++) {
            draft->pairs[at] = draft->pairs[i];
            draft->pairs[at++].group = (uint32_t)kept;
        }
        kept++;
    }
    draft->groups_left_out += groups - kept;
    stbds_arrsetlen(draft->group_start, kept);
    if (groups) stbds_arrsetlen(draft->pairs, at);
}

static carnn_status carnn__pairs_table(carnn__reading *r) {
    carnn__pair_columns columns = {0, 0, 0, 0, 0};
    carnn__span last = {NULL, 0};
    carnn__pair_text pair;
    carnn_status status = CARNN_OK;
    while (!status && carnn__next_line(&r->lines)) {
        int named = 0;
        if (!carnn__reading_says(r)) continue;
        if (!columns.count) status = carnn__pair_header(r, &columns, &named);
        if (status || named) continue;
        status = carnn__pair_fields(r, &columns, &pair);
        if (!status) status = carnn__pair_add(r, &pair, &last);
    }
    return status;
}

/* The files of a folder: their places in carnn__reading.columns. */
enum { CARNN__QUESTIONS, CARNN__ANSWERS, CARNN__LABELS, CARNN__NUMBERS };

/* Is there nothing by this name? What is there and cannot be read is not absent: there is a reason
   to be told. */
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
    *found = 0;
    stbds_arrsetlen(r->scratch, 4 * length);
    for (i = 0; i < 4; i++) {
        int needed = i == CARNN__ANSWERS || i == CARNN__LABELS;
        char *path = r->scratch + i * length;
        carnn_source source = {NULL, NULL, 0};
        carnn_error error; /* not the caller's before it is known to be one */
        carnn_status status;
        snprintf(path, length, "%s/%s", folder, files[i]);
        source.name = path;
        carnn__input_close(&r->columns[i], &r->allocator);
        status = carnn__input_open(&r->columns[i], &source, &r->allocator, &error);
        if (!status) continue;
        if (needed || !carnn__absent(path)) {
            if (r->error) *r->error = error;
            return status;
        }
        if (i == CARNN__QUESTIONS) return CARNN_OK;
    }
    *found = 1;
    return CARNN_OK;
}

/* Moves on to the next line in all files of a folder; *done at the end of all. */
static carnn_status carnn__folder_next(carnn__reading *r, carnn__lines lines[4], int *done) {
    int found[4] = {0, 0, 0, 0};
    size_t i, count = lines[CARNN__NUMBERS].name ? 4 : 3, there = 0;
    for (i = 0; i < count; i++) there += (size_t)(found[i] = carnn__next_line(&lines[i]));
    *done = !there;
    if (!there || there == count) return CARNN_OK;
    for (i = 0; found[i]; i++) {}
    return carnn__fail(r->error, CARNN_ERR_DATA, lines[i].number + 1,
                       "%s:%zu: expected a line as in the files beside it, found the end",
                       carnn__name_end(lines[i].name), lines[i].number + 1);
}

static carnn_status carnn__pairs_folder(carnn__reading *r) {
    carnn__lines lines[4];
    carnn__span last = {NULL, 0};
    carnn_status status = CARNN_OK;
    size_t i;
    int done = 0;
    for (i = 0; i < 4; i++) lines[i] = carnn__lines_of(&r->columns[i]);
    while (!status && !done) {
        carnn__pair_text pair;
        status = carnn__folder_next(r, lines, &done);
        r->lines = lines[CARNN__LABELS];
        if (status || done) break;
        pair.question = lines[CARNN__QUESTIONS].line;
        pair.question_file = lines[CARNN__QUESTIONS].name;
        pair.answer = lines[CARNN__ANSWERS].line;
        pair.answer_file = lines[CARNN__ANSWERS].name;
        pair.label = lines[CARNN__LABELS].line;
        pair.number = lines[CARNN__NUMBERS].name ? lines[CARNN__NUMBERS].line : pair.question;
        status = carnn__pair_add(r, &pair, &last);
    }
    return status;
}

static carnn_status carnn__pairs_source(carnn__reading *r, const carnn_source *source) {
    carnn_status status = CARNN_OK;
    size_t before = stbds_arrlenu(r->draft.pairs), group = stbds_arrlenu(r->draft.group_start);
    int folder = 0;
    if (!source->bytes && source->name) status = carnn__folder_open(r, source->name, &folder);
    if (!status && !folder) status = carnn__reading_open(r, source);
    if (status) return status;
    carnn__reading_origin(r, folder ? source->name : r->input.name, before);
    status = folder ? carnn__pairs_folder(r) : carnn__pairs_table(r);
    if (!status && stbds_arrlenu(r->draft.pairs) == before)
        return carnn__reading_empty(r, "a question with an answer and a label");
    if (!status && r->desc->clean) carnn__pairs_clean(&r->draft, group);
    if (!status && stbds_arrlenu(r->draft.pairs) == before)
        return carnn__fail(r->error, CARNN_ERR_DATA, 0,
                           "%s: every question lacks a right or a wrong answer",
                           carnn__name_end(r->lines.name));
    return status;
}

static carnn_status carnn__pairs_read(carnn__reading *r) {
    carnn_dataset *draft = &r->draft;
    carnn_status status = CARNN_OK;
    size_t i;
    for (i = 0; !status && i < r->desc->source_count; i++)
        status = carnn__pairs_source(r, &r->desc->sources[i]);
    draft->pair_count = draft->examples = stbds_arrlenu(draft->pairs);
    draft->group_count = stbds_arrlenu(draft->group_start);
    stbds_arrput(draft->group_start, draft->pair_count);
    return status;
}

/* --- loading ---------------------------------------------------------------------------------*/

/* The table of readers: a task more is an entry more. */
static const carnn__reader carnn__readers[] = {
    {"dialog", carnn__babi_read}, {"lm", carnn__sentences_read}, {"answer", carnn__pairs_read}};

static carnn_status carnn__reading_work(void *job) {
    carnn__reading *r = (carnn__reading *)job;
    size_t i;
    for (i = 0; i < CARNN__COUNT(carnn__readers); i++) {
        if (strcmp(carnn__readers[i].task, r->desc->task) == 0) {
            r->draft.task = carnn__readers[i].task;
            return carnn__readers[i].read(r);
        }
    }
    return carnn__fail(r->error, CARNN_ERR_ARGUMENT, 0, "expected a task, found \"%.40s\"",
                       r->desc->task);
}

static carnn_status carnn__reading_drop(void *job) {
    carnn__reading *r = (carnn__reading *)job;
    size_t i;
    carnn__names_drop(&r->texts);
    stbds_arrfree(r->listed);
    stbds_arrfree(r->scratch);
#define CARNN__DROP_LIST(type, list) stbds_arrfree(r->draft.list);
    CARNN__DATASET_LISTS(CARNN__DROP_LIST)
#undef CARNN__DROP_LIST
    carnn__input_close(&r->input, &r->allocator);
    for (i = 0; i < CARNN__COUNT(r->columns); i++)
        carnn__input_close(&r->columns[i], &r->allocator);
    return CARNN_OK;
}

/* Copies a draft into a data set with lists of their final size. */
static carnn_status carnn__reading_finish(carnn_dataset **dataset, carnn__reading *r) {
    const carnn_allocator *a = &r->allocator;
    carnn_dataset *data = (carnn_dataset *)carnn__alloc(a, 1, sizeof *data);
    size_t count;
    int complete = 1;
    if (!data) return carnn__out_of_memory(r->error);
    r->draft.allocator = *a;
    r->draft.text_count = r->texts.count;
    r->draft.origin_count = stbds_arrlenu(r->draft.origins);
    r->draft.bytes = r->texts.bytes; /* the draft owns them now */
    r->draft.text_at = r->texts.at;
    r->texts.bytes = NULL;
    r->texts.at = NULL;
    *data = r->draft;
#define CARNN__COPY_LIST(type, list)                                                               \
    count = stbds_arrlenu(r->draft.list);                                                          \
    data->list = (type *)carnn__copy(a, r->draft.list, count, sizeof(type));                       \
    if (!data->list) complete = 0;
    CARNN__DATASET_LISTS(CARNN__COPY_LIST)
#undef CARNN__COPY_LIST
    if (complete) {
        *dataset = data;
        return CARNN_OK;
    }
    carnn_dataset_free(data);
    return carnn__out_of_memory(r->error);
}

CARNN_API carnn_status carnn_dataset_load(carnn_dataset **dataset, const carnn_dataset_desc *desc,
                                          carnn_error *error) {
    carnn__reading reading;
    carnn_status status;
    *dataset = NULL;
    if (!desc || !desc->task || !desc->sources || !desc->source_count)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "a data set needs a task and a source");
    memset(&reading, 0, sizeof reading);
    reading.desc = desc;
    reading.allocator = carnn__allocator(desc->allocator);
    reading.error = error;
    status = carnn__build(&reading.allocator, carnn__reading_work, &reading, error);
    if (!status) status = carnn__reading_finish(dataset, &reading);
    carnn__build(&reading.allocator, carnn__reading_drop, &reading, NULL);
    return status;
}

#endif /* CARNN_NO_TEXT */

#endif
/* =============================================================================================
   @@MODEL   a model, what a task must provide
   ============================================================================================= */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

typedef struct carnn__head carnn__head;

#define CARNN__LAYERS_MAX 8

/* What a language model has beside the word embedding and its layers: parameter numbers. */
typedef struct carnn__lm_params {
    carnn__cell encoder; /* of the sentence before */
    size_t start;        /* the context where there is no sentence before */
    int projects;        /* are words projected to the size of the hidden state? */
    size_t project;
    size_t output, bias;
    size_t label, label_bias;
} carnn__lm_params;

/* What an answer model has beside the word embedding and a cell for each direction: parameter
   numbers. */
typedef struct carnn__answer_params {
    size_t idf;                   /* of the words */
    size_t project, project_bias; /* from words to inputs of the cells */
    size_t attend, attend_other, attend_vector; /* the weights of words */
    size_t hidden, hidden_bias;
    size_t output, output_bias;
} carnn__answer_params;

struct carnn_model {
    carnn_allocator allocator;
    carnn_model_desc desc;    /* complete: defaults filled in; names point into our tables */
    carnn_train_desc trained; /* as used; file names and callbacks zeroed */
    const carnn__head *head;  /* its task */
    carnn__store params;
    void *block;              /* aligned memory that holds params.value: the array itself, or the
                                 whole file that was read; NULL: the caller's, read-only */
    carnn__names words;       /* vocabulary: word i has row i of the embedding; 0 is <unk> */
    carnn__names candidates;  /* dialog: the candidates, byte for byte */
    carnn__names labels;      /* lm: the labels that are learnt */
    carnn__cell cells[CARNN__LAYERS_MAX];
    carnn__lm_params lm;
    carnn__answer_params answer;
    size_t word_table;        /* parameter number of the word embedding */
    carnn_scores scores;      /* on the validation set, of the weights that were kept */
    int64_t best_epoch;
};

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

/* A model at work on a data set: training, scoring. A head keeps what it needs in `state`. */
typedef struct carnn__work {
    const carnn_model *model;
    const carnn_dataset *data;
    carnn__engine *engine;
    carnn_allocator allocator;
    const float *w; /* the weights, laid out like the store */
    float *g;       /* their gradients, added to; NULL: scoring only */
    double dropout, smoothing;
    int64_t batch;  /* examples in a batch */
    int voting;     /* keep what head->vote needs */
    const carnn_test_desc *asked; /* whom to tell of parts and pairs, or NULL */
    size_t number;  /* the model's, for them */
    const carnn_predict_desc *wanted; /* whom to tell of predictions, or NULL */
    void *state;
} carnn__work;

/* The words that a task reserves are the first ones behind <unk>, which a file may deny. */
static carnn_status carnn__reserved_check(const carnn_model *model, const char *const *reserved,
                                          size_t count, carnn_error *error) {
    size_t i;
    for (i = 0; i < count; i++)
        if (carnn__names_find(&model->words, reserved[i], strlen(reserved[i])) != i + 1)
            return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "word %zu of the vocabulary is not %s",
                               i + 1, reserved[i]);
    return CARNN_OK;
}

/* The weights of a matrix, and their gradient where work->g is there. */
static const float *carnn__weight(const carnn__work *work, size_t number) {
    return work->w + work->model->params.item[number].offset;
}

static float *carnn__gradient(const carnn__work *work, size_t number) {
    return work->g + work->model->params.item[number].offset;
}

/* Dropout on x in training; backward, on its gradient, with the same key and stream. */
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

/* Tells a test of a part. */
static void carnn__tell_part(const carnn__work *work, double value, double weight) {
    if (work->asked && work->asked->part)
        work->asked->part(work->number, value, weight, work->asked->user);
}

/* A task. Adding one is adding an entry to carnn__heads. */
struct carnn__head {
    const char *name, *title;
    const char *metric[CARNN_SCORES_MAX + 1]; /* metric[0] chooses the best epoch */
    int lower_is_better;
    void (*defaults)(carnn_model_desc *model, carnn_train_desc *train);
    /* words and candidates of a new model */
    carnn_status (*build)(carnn_model *model, const carnn_dataset *data, carnn_error *error);
    /* the parameters, from desc, words and candidates alone */
    carnn_status (*declare)(carnn_model *model, carnn_error *error);
    /* after the general initialisation */
    void (*init)(carnn_model *model, const carnn_dataset *data);
    /* readies the data for the model: long-lived memory, the same for every epoch */
    carnn_status (*open)(carnn__work *work, carnn_error *error);
    void (*close)(carnn__work *work);
    /* takes the memory of a batch; may be called again when another work has used the arena */
    void (*carve)(carnn__work *work, carnn__arena *arena);
    /* makes the batches of an epoch, shuffled by `key` (0: in the order of the data) */
    size_t (*plan)(carnn__work *work, uint64_t key);
    /* one batch: adds to the tally and, where there is work->g, to the gradients; `key` draws the
       dropout masks (0: none) */
    void (*batch)(carnn__work *work, size_t number, uint64_t key, carnn__tally *tally);
    /* the vote of several models on the batch that each has just worked on */
    void (*vote)(carnn__work *const *works, size_t count, size_t number, carnn__tally *tally);
    void (*score)(const carnn__tally *tally, carnn_scores *scores);
};

/* The entry `number` of the table of tasks, NULL past the last. */
static const carnn__head *carnn__head_at(size_t number);

/* Where the choice of a learning rate is left to the task: it knows only Adam's. */
static int carnn__is_adam(const carnn_train_desc *train) {
    return train->optimizer == NULL ||
           !strcmp(train->optimizer, carnn__optimizers[CARNN__OPTIMIZER_adam].name);
}

#endif
/* =============================================================================================
   @@HEAD dialog   choose the reply, given the dialog so far

   Tran et al. 2018, section 4.1. Every utterance of the history, and every candidate, is encoded by
   the position encoder; a cell whose context c is the latest user utterance reads the history;
   attention and a residual connection sum it up (Eq. 8); the candidates are scored by a product:

     e_m = enc(utterance m)     c = e_M      h_1 .. h_M = cell(e_1 .. e_M, c)
     o = sum_m al_m (h_m + e_m)              P(y_l) = softmax_l(o . enc(y_l))         (Eq. 9, 10)

   Every history begins with one constant <start> utterance; the
   cell reads the latest utterance as the last of the history, which Eq. 8 leaves out: README says
   what that is worth. Each utterance ends with a word that names the speaker.

   What is shared: a batch holds whole dialogs. Each distinct utterance in it is encoded and
   projected once, for all responses of all its dialogs; candidates are encoded once. What is done
   for each response is the scan, the attention and one row of the product with the candidates, in
   chunks of a bounded number of rows.
   ============================================================================================= */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

/* Bounds of a batch: distinct utterances (a single dialog may exceed it), and rows (a single
   history may exceed it) and responses of a chunk. */
#define CARNN__DIALOG_INPUTS 768
#define CARNN__DIALOG_ROWS 2048
#define CARNN__DIALOG_CHUNK 64

/* Words of an utterance that are read, with the speaker's, and utterances of a history. */
#define CARNN__UTTERANCE_WORDS 1024
#define CARNN__HISTORY_LINES 1024

static const char *const carnn__dialog_reserved[] = {"$start", "$user", "$system", "$fact"};
enum { CARNN__DIALOG_START = 1, CARNN__DIALOG_SPEAKER }; /* their numbers; the first speaker's */

/* Texts as lists of words: text i has ids[at[i]] .. ids[at[i + 1] - 1]. */
typedef struct carnn__bags {
    size_t count;
    uint32_t *ids;
    size_t *at;
} carnn__bags;

typedef struct carnn__dialog {
    carnn__bags utterances; /* distinct pairs of speaker and text; number 0 is <start> */
    carnn__bags candidates;
    uint32_t *seq;          /* the dialogs as utterance numbers: <start>, then the lines kept */
    size_t *seq_start;      /* (dialogs + 1) */
    size_t *turn_start;     /* (dialogs + 1) the turns of each dialog */
    uint32_t *end;          /* (turns) place of the user's utterance in seq */
    uint32_t *target;       /* (turns) the candidate that is right, or CARNN__NOWHERE */
    size_t history;         /* utterances before the latest that are read */
    uint32_t *order;        /* (dialogs) in this epoch */
    size_t *batch_start;    /* into order, one more than there are batches */
    uint32_t *local;        /* (utterances) number in the batch at hand, or CARNN__NOWHERE */
    uint32_t *which;        /* (U) the utterances of the batch at hand */
    size_t inputs;          /* U */
    float *ramp;            /* (D) */
    size_t max_lines, max_inputs, max_rows, max_turns, max_steps;
    /* of the batch at hand */
    uint32_t *turns;        /* (R) the batch's turns */
    size_t turn_count;
    unsigned char *right;   /* (R) was the turn answered rightly */
    float *probability;     /* (R, L) of the candidates, for a vote and for predictions */
    size_t top;             /* candidates of a prediction */
    size_t *best;           /* (top) */
    double *best_probability; /* (top) */
    float *e, *de;          /* (U, D) */
    float *y, *dy;          /* (L, D) candidates */
    float *packed;          /* the same, packed; in scoring, where one encoding serves all batches */
    int encoded;            /* it is done */
    /* of a chunk of B turns and N rows */
    carnn__packed seq_packed;
    size_t *start;          /* (T + 2) */
    uint32_t *length, *rank, *index, *context, *labels; /* (B), (B), (N), (B), (B) */
    float *c, *dc;          /* (B, D) */
    float *o, *go;          /* (B, D) */
    float *weight, *gweight; /* (B, T) alpha */
    float *gh;              /* (N, D) */
    float *z;               /* (B, L) logits, then probabilities or gradients */
    float *loss;            /* (B) */
    carnn__cell_run cell;
} carnn__dialog;

/* Chosen on a part of the training dialogs and on dev of bAbI task 6: README has the figures. */
static void carnn__dialog_defaults(carnn_model_desc *model, carnn_train_desc *train) {
    if (!model->cell) model->cell = "icarnn";
    if (!model->hidden) model->hidden = 256;
    if (!model->embedding) model->embedding = model->hidden;
    if (!model->layers) model->layers = 1;
    if (!model->min_count) model->min_count = 1;
    if (!model->history) model->history = CARNN_NONE;
    if (!model->kb_rows) model->kb_rows = CARNN_NONE;
    if (!train->epochs) train->epochs = 20;
    if (!train->batch) train->batch = 48;
    if (train->lr == 0.0 && carnn__is_adam(train)) /* larger models want smaller steps */
        train->lr = model->hidden <= 204 ? 0.005 : 1.024 / (double)model->hidden;
    if (train->lr_end == 0.0) train->lr_end = 0.05;
    if (train->dropout == 0.0) train->dropout = 0.3;
    if (train->clip == 0.0) train->clip = 5.0;
}

/* --- a new model ----------------------------------------------------------------------------- */

static carnn_status carnn__dialog_declare(carnn_model *model, carnn_error *error) {
    size_t D = (size_t)model->desc.hidden, kind = carnn__cell_number(model->desc.cell);
    carnn_status status = carnn__reserved_check(model, carnn__dialog_reserved,
                                                CARNN__COUNT(carnn__dialog_reserved), error);
    if (status) return status;
    if (!model->candidates.count)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "a dialog model needs candidates");
    if (model->desc.embedding != model->desc.hidden)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "embedding is %lld and hidden is %lld: "
                           "for a dialog model they are the same size (Eq. 8 adds h and e)",
                           (long long)model->desc.embedding, (long long)model->desc.hidden);
    if (model->desc.layers != 1)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "a dialog model has one recurrent layer");
    model->word_table = carnn__declare(&model->params, "", "word.weight", model->words.count, D, 0,
                                       CARNN__INIT_NORMAL, 0.1f);
    carnn__cell_declare(&model->cells[0], &model->params, "cell", kind, D, D, D);
    return CARNN_OK;
}

static void carnn__dialog_init(carnn_model *model, const carnn_dataset *data) {
    (void)data;
    carnn__cell_init_bias(&model->cells[0], &model->params);
}

#ifndef CARNN_NO_TEXT

/* The vocabulary is made of all texts of the training data, the candidates among them. */
static carnn_status carnn__dialog_words_build(carnn_model *model, const carnn_dataset *data,
                                              carnn_error *error) {
    carnn__vocabulary v;
    size_t *times = (size_t *)carnn__alloc_zero(&model->allocator, data->text_count, sizeof *times);
    carnn_status status = CARNN_OK;
    size_t i;
    if (!times) return carnn__out_of_memory(error);
    for (i = 0; i < data->line_count; i++) times[data->lines[i].text]++;
    status = carnn__vocabulary_open(&v, &model->allocator, carnn__dialog_reserved,
                                    CARNN__COUNT(carnn__dialog_reserved), error);
    for (i = 0; !status && i < data->text_count; i++) {
        carnn__span text = carnn__text(data, i);
        status = carnn__vocabulary_add(&v, CARNN__WORDS, text.at, text.length,
                                       carnn__max(times[i], 1), error);
    }
    carnn__free(&model->allocator, times);
    if (!status)
        return carnn__vocabulary_close(&v, (size_t)model->desc.min_count, &model->words, error);
    carnn__vocabulary_free(&v);
    return status;
}

#endif

/* A list of names from texts that stand one after the other, each with a NUL behind it; with the
   blanks at their ends or without. */
static carnn_status carnn__names_from(carnn__names *names, const char *bytes, const size_t *at,
                                      size_t count, int trim, const carnn_allocator *a,
                                      carnn_error *error) {
    const char **s = (const char **)carnn__alloc(a, count, sizeof *s);
    size_t *length = (size_t *)carnn__alloc(a, count, sizeof *length), i;
    carnn_status status = s && length ? CARNN_OK : carnn__out_of_memory(error);
    for (i = 0; !status && i < count; i++) {
        carnn__span text;
        text.at = bytes + at[i];
        text.length = at[i + 1] - at[i] - 1;
        if (trim) text = carnn__trim(text);
        s[i] = text.at;
        length[i] = text.length;
    }
    if (!status) status = carnn__names_build(names, a, s, length, count, error);
    carnn__free(a, s);
    carnn__free(a, length);
    return status;
}

#ifndef CARNN_NO_TEXT

static carnn_status carnn__dialog_build(carnn_model *model, const carnn_dataset *data,
                                        carnn_error *error) {
    carnn_status status = carnn__dataset_check_candidates(data, error);
    if (!status) status = carnn__dialog_words_build(model, data, error);
    if (!status)
        status = carnn__names_from(&model->candidates, data->shown, data->shown_at,
                                   data->candidate_count, 0, &model->allocator, error);
    return status;
}

#else
#define carnn__dialog_build NULL
#endif

/* --- data made ready for a model ------------------------------------------------------------- */

static void carnn__dialog_close(carnn__work *work) {
    carnn__dialog *d = (carnn__dialog *)work->state;
    const carnn_allocator *a = &work->allocator;
    if (!d) return;
    carnn__free(a, d->utterances.ids);
    carnn__free(a, d->utterances.at);
    carnn__free(a, d->candidates.ids);
    carnn__free(a, d->candidates.at);
    carnn__free(a, d->seq);
    carnn__free(a, d->seq_start);
    carnn__free(a, d->turn_start);
    carnn__free(a, d->end);
    carnn__free(a, d->target);
    carnn__free(a, d->order);
    carnn__free(a, d->batch_start);
    carnn__free(a, d->local);
    carnn__free(a, d->which);
    carnn__free(a, d->ramp);
    carnn__free(a, d);
    work->state = NULL;
}

/* The kept lines of each dialog as utterance numbers, numbering the distinct pairs of speaker and
   text by their first appearance; of each block of facts the first kb_rows are kept. */
static void carnn__dialog_lines(carnn__dialog *d, const carnn_model *model,
                                const carnn_dataset *data, uint32_t *number) {
    size_t most = model->desc.kb_rows < 0 ? SIZE_MAX : (size_t)model->desc.kb_rows;
    size_t dialog, line, turn = 0, at = 0, facts;
    for (line = 0; line < data->text_count * 3; line++) number[line] = CARNN__NOWHERE;
    d->utterances.count = 1;
    for (dialog = 0; dialog < data->dialog_count; dialog++) {
        d->seq_start[dialog] = at;
        d->turn_start[dialog] = turn;
        d->seq[at++] = 0;
        facts = 0;
        for (line = data->dialog_start[dialog]; line < data->dialog_start[dialog + 1]; line++) {
            const carnn__line *l = &data->lines[line];
            uint32_t *n = &number[(size_t)l->text * 3 + l->speaker];
            facts = l->speaker == CARNN_FACT ? facts + 1 : 0;
            if (facts > most) continue;
            if (*n == CARNN__NOWHERE) *n = (uint32_t)d->utterances.count++;
            if (turn < data->turn_count && data->turns[turn].line == line)
                d->end[turn++] = (uint32_t)at;
            d->seq[at++] = *n;
        }
    }
    d->seq_start[dialog] = at;
    d->turn_start[dialog] = turn;
}

/* The words of utterance (speaker, text): the first ones of the text, then the speaker's; returns
   their number. Only counts where `max` is 0. */
static size_t carnn__dialog_encode(const carnn_model *model, uint32_t speaker, const char *text,
                                   size_t length, uint32_t *ids, size_t max) {
    size_t n = carnn__encode(&model->words, CARNN__WORDS, text, length, ids, max);
    n = carnn__min(n, CARNN__UTTERANCE_WORDS - 1);
    if (n < max) ids[n] = CARNN__DIALOG_SPEAKER + speaker;
    return n + 1;
}

/* The words of all utterances. */
static carnn_status carnn__dialog_utterances(carnn__dialog *d, const carnn__work *work,
                                             const uint32_t *number, carnn_error *error) {
    const carnn_dataset *data = work->data;
    const carnn_allocator *a = &work->allocator;
    size_t i, total = 1, pairs = data->text_count * 3;
    d->utterances.at = (size_t *)carnn__alloc(a, d->utterances.count + 1, sizeof(size_t));
    if (!d->utterances.at) return carnn__out_of_memory(error);
    d->utterances.at[0] = 0;
    for (i = 0; i < pairs; i++) /* lengths first: numbers do not rise along i */
        if (number[i] != CARNN__NOWHERE) {
            carnn__span text = carnn__text(data, i / 3);
            size_t n = carnn__dialog_encode(work->model, (uint32_t)(i % 3), text.at, text.length,
                                            NULL, 0);
            d->utterances.at[number[i] + 1] = n;
            total += n;
        }
    d->utterances.at[1] = 1;
    for (i = 1; i <= d->utterances.count; i++) d->utterances.at[i] += d->utterances.at[i - 1];
    d->utterances.ids = (uint32_t *)carnn__alloc(a, total, sizeof(uint32_t));
    if (!d->utterances.ids) return carnn__out_of_memory(error);
    d->utterances.ids[0] = CARNN__DIALOG_START;
    for (i = 0; i < pairs; i++)
        if (number[i] != CARNN__NOWHERE) {
            carnn__span text = carnn__text(data, i / 3);
            size_t at = d->utterances.at[number[i]];
            carnn__dialog_encode(work->model, (uint32_t)(i % 3), text.at, text.length,
                                 d->utterances.ids + at, d->utterances.at[number[i] + 1] - at);
        }
    return CARNN_OK;
}

/* The words of the candidates, as many of each as a session reads. */
static carnn_status carnn__bags_of_names(carnn__bags *bags, const carnn_model *model,
                                         const carnn__names *names, const carnn_allocator *a,
                                         carnn_error *error) {
    size_t i, total = 0;
    bags->count = names->count;
    bags->at = (size_t *)carnn__alloc(a, names->count + 1, sizeof(size_t));
    if (!bags->at) return carnn__out_of_memory(error);
    for (i = 0; i < names->count; i++) {
        bags->at[i] = total;
        total += carnn__min(CARNN__UTTERANCE_WORDS,
                            carnn__encode(&model->words, CARNN__WORDS, carnn__names_get(names, i),
                                          carnn__names_length(names, i), NULL, 0));
    }
    bags->at[i] = total;
    bags->ids = (uint32_t *)carnn__alloc(a, total, sizeof(uint32_t));
    if (!bags->ids) return carnn__out_of_memory(error);
    for (i = 0; i < names->count; i++)
        carnn__encode(&model->words, CARNN__WORDS, carnn__names_get(names, i),
                      carnn__names_length(names, i), bags->ids + bags->at[i],
                      bags->at[i + 1] - bags->at[i]);
    return CARNN_OK;
}

/* Which candidate of the model each turn's response is, compared without blanks at the ends. */
static carnn_status carnn__dialog_targets(carnn__dialog *d, const carnn__work *work,
                                          carnn_error *error) {
    const carnn_dataset *data = work->data;
    carnn__names trimmed;
    size_t i;
    const carnn__names *candidates = &work->model->candidates;
    carnn_status status = carnn__names_from(&trimmed, candidates->bytes, candidates->at,
                                            candidates->count, 1, &work->allocator, error);
    if (status) return status;
    for (i = 0; i < data->turn_count; i++) {
        carnn__span text = carnn__text(data, data->turns[i].response);
        d->target[i] = carnn__names_find(&trimmed, text.at, text.length);
    }
    carnn__names_free(&trimmed, &work->allocator);
    return CARNN_OK;
}

/* Utterances before the latest that are read. */
static size_t carnn__dialog_kept(const carnn_model *model) {
    int64_t history = model->desc.history;
    return history < 0 ? CARNN__HISTORY_LINES : carnn__min((size_t)history, CARNN__HISTORY_LINES);
}

/* Utterances of a dialog with <start>, before any are left out: what batches are made by, so that
   models that keep different lines still have the same batches to vote on. */
static size_t carnn__dialog_line_count(const carnn_dataset *data, size_t dialog) {
    return data->dialog_start[dialog + 1] - data->dialog_start[dialog] + 1;
}

/* The largest batch and chunk that any order of the dialogs can make. */
static void carnn__dialog_limits(carnn__dialog *d, const carnn__work *work) {
    size_t i, dialogs = work->data->dialog_count, longest = 0, turns = 0, steps;
    for (i = 0; i < dialogs; i++) {
        longest = carnn__max(longest, carnn__dialog_line_count(work->data, i));
        turns = carnn__max(turns, d->turn_start[i + 1] - d->turn_start[i]);
    }
    steps = carnn__min(longest, d->history + 1);
    d->max_lines = carnn__max(longest, CARNN__DIALOG_INPUTS);
    d->max_inputs = carnn__min(d->max_lines, d->utterances.count);
    d->max_turns = (size_t)work->batch + turns;
    d->max_steps = steps;
    d->max_rows = carnn__max(steps, CARNN__DIALOG_ROWS);
}

static carnn_status carnn__dialog_open(carnn__work *work, carnn_error *error) {
    const carnn_model *model = work->model;
    const carnn_dataset *data = work->data;
    const carnn_allocator *a = &work->allocator;
    carnn__dialog *d = (carnn__dialog *)carnn__alloc_zero(a, 1, sizeof *d);
    uint32_t *number = (uint32_t *)carnn__alloc(a, data->text_count * 3, sizeof(uint32_t));
    carnn_status status = CARNN_OK;
    work->state = d;
    if (d) {
        size_t dialogs = data->dialog_count, turns = data->turn_count;
        d->history = carnn__dialog_kept(model);
        d->seq = (uint32_t *)carnn__alloc(a, data->line_count + dialogs, sizeof(uint32_t));
        d->seq_start = (size_t *)carnn__alloc(a, dialogs + 1, sizeof(size_t));
        d->turn_start = (size_t *)carnn__alloc(a, dialogs + 1, sizeof(size_t));
        d->end = (uint32_t *)carnn__alloc(a, turns, sizeof(uint32_t));
        d->target = (uint32_t *)carnn__alloc(a, turns, sizeof(uint32_t));
        d->order = (uint32_t *)carnn__alloc(a, dialogs, sizeof(uint32_t));
        d->batch_start = (size_t *)carnn__alloc(a, dialogs + 1, sizeof(size_t));
        d->ramp = (float *)carnn__alloc(a, (size_t)model->desc.hidden, sizeof(float));
    }
    if (!d || !number || !d->seq || !d->seq_start || !d->turn_start || !d->end || !d->target ||
        !d->order || !d->batch_start || !d->ramp)
        status = carnn__out_of_memory(error);
    if (!status) {
        carnn__dialog_lines(d, model, data, number);
        carnn__dialog_limits(d, work);
        carnn__encoder_ramp(d->ramp, (size_t)model->desc.hidden);
        d->which = (uint32_t *)carnn__alloc(a, d->max_inputs, sizeof(uint32_t));
        d->local = (uint32_t *)carnn__alloc(a, d->utterances.count, sizeof(uint32_t));
        if (d->local) memset(d->local, 0xFF, d->utterances.count * sizeof(uint32_t));
        status = d->local && d->which ? carnn__dialog_utterances(d, work, number, error)
                                      : carnn__out_of_memory(error);
    }
    if (!status) status = carnn__bags_of_names(&d->candidates, model, &model->candidates, a, error);
    if (!status) status = carnn__dialog_targets(d, work, error);
    carnn__free(a, number);
    if (status) carnn__dialog_close(work);
    return status;
}

static void carnn__dialog_carve(carnn__work *work, carnn__arena *arena) {
    carnn__dialog *d = (carnn__dialog *)work->state;
    const carnn_model *model = work->model;
    size_t D = (size_t)model->desc.hidden, L = model->candidates.count, U = d->max_inputs;
    size_t N = d->max_rows, T = d->max_steps, B = CARNN__DIALOG_CHUNK;
    d->turns = (uint32_t *)carnn__take(arena, d->max_turns, sizeof(uint32_t));
    d->right = (unsigned char *)carnn__take(arena, d->max_turns, 1);
    d->probability = work->voting || work->wanted ? carnn__floats(arena, d->max_turns, L) : NULL;
    if (work->wanted) {
        d->top = carnn__min(carnn__max(work->wanted->top, 1), L);
        d->best = (size_t *)carnn__take(arena, d->top, sizeof(size_t));
        d->best_probability = (double *)carnn__take(arena, d->top, sizeof(double));
    }
    d->start = (size_t *)carnn__take(arena, T + 2, sizeof(size_t));
    d->length = (uint32_t *)carnn__take(arena, B, sizeof(uint32_t));
    d->rank = (uint32_t *)carnn__take(arena, B, sizeof(uint32_t));
    d->context = (uint32_t *)carnn__take(arena, B, sizeof(uint32_t));
    d->labels = (uint32_t *)carnn__take(arena, B, sizeof(uint32_t));
    d->index = (uint32_t *)carnn__take(arena, N, sizeof(uint32_t));
    d->e = carnn__floats(arena, U, D);
    d->y = carnn__floats(arena, L, D);
    d->packed = work->g ? NULL : carnn__floats(arena, 1, carnn__packed_size(L, D));
    d->c = carnn__floats(arena, B, D);
    d->o = carnn__floats(arena, B, D);
    d->weight = carnn__floats(arena, B, T);
    d->z = carnn__floats(arena, B, L);
    d->loss = carnn__floats(arena, 1, B);
    carnn__cell_plan(&d->cell, &model->cells[0], &model->params, work->w, work->g, arena, U, N, B);
    if (!work->g) return;
    d->de = carnn__floats(arena, U, D);
    d->dy = carnn__floats(arena, L, D);
    d->dc = carnn__floats(arena, B, D);
    d->go = carnn__floats(arena, B, D);
    d->gh = carnn__floats(arena, N, D);
    d->gweight = carnn__floats(arena, B, T);
}

/* Whole dialogs, until there are enough turns or the next dialog's utterances may not fit. */
static size_t carnn__dialog_plan(carnn__work *work, uint64_t key) {
    carnn__dialog *d = (carnn__dialog *)work->state;
    size_t i, dialogs = work->data->dialog_count, batches = 0, turns = 0, inputs = 0;
    d->encoded = 0;
    for (i = 0; i < dialogs; i++) d->order[i] = (uint32_t)i;
    if (key) carnn__shuffle(key, d->order, dialogs);
    for (i = 0; i < dialogs; i++) {
        size_t dialog = d->order[i], lines = carnn__dialog_line_count(work->data, dialog);
        if (!i || turns >= (size_t)work->batch || inputs + lines > d->max_lines) {
            d->batch_start[batches++] = i;
            turns = inputs = 0;
        }
        turns += d->turn_start[dialog + 1] - d->turn_start[dialog];
        inputs += lines;
    }
    d->batch_start[batches] = dialogs;
    return batches;
}

/* --- one batch ------------------------------------------------------------------------------- */

/* Lists the turns of a batch and the distinct utterances that they read. */
static void carnn__dialog_collect(carnn__dialog *d, size_t number) {
    size_t i, j;
    for (i = 0; i < d->inputs; i++) d->local[d->which[i]] = CARNN__NOWHERE;
    d->inputs = d->turn_count = 0;
    for (i = d->batch_start[number]; i < d->batch_start[number + 1]; i++) {
        size_t dialog = d->order[i], turn = d->turn_start[dialog], last = d->turn_start[dialog + 1];
        if (turn == last) continue;
        for (; turn < last; turn++) d->turns[d->turn_count++] = (uint32_t)turn;
        for (j = d->seq_start[dialog]; j <= d->end[last - 1]; j++)
            if (d->local[d->seq[j]] == CARNN__NOWHERE) {
                d->local[d->seq[j]] = (uint32_t)d->inputs;
                d->which[d->inputs++] = d->seq[j];
            }
    }
}

static carnn__encoder carnn__dialog_encoder(const carnn__work *work, const carnn__bags *bags,
                                            const uint32_t *which, size_t texts, size_t table,
                                            float *out, const float *dout) {
    const carnn__dialog *d = (const carnn__dialog *)work->state;
    carnn__encoder x;
    x.texts = texts;
    x.D = (size_t)work->model->desc.hidden;
    x.which = which;
    x.ids = bags->ids;
    x.at = bags->at;
    x.ramp = d->ramp;
    x.table = carnn__weight(work, table);
    x.out = out;
    x.dtable = work->g ? carnn__gradient(work, table) : NULL;
    x.dout = dout;
    return x;
}

/* Streams of a step's random numbers. */
enum { CARNN__DROP_UTTERANCES = 1, CARNN__DROP_SUMMARY };

/* Encodes and projects the utterances of the batch, encodes the candidates: where nothing is learnt
   once for all batches. */
static void carnn__dialog_inputs(carnn__work *work, uint64_t key) {
    carnn__dialog *d = (carnn__dialog *)work->state;
    size_t D = (size_t)work->model->desc.hidden, L = d->candidates.count;
    carnn__encoder x = carnn__dialog_encoder(work, &d->utterances, d->which, d->inputs,
                                             work->model->word_table, d->e, NULL);
    carnn__encoder y = carnn__dialog_encoder(work, &d->candidates, NULL, L,
                                             work->model->word_table, d->y, NULL);
    carnn__encode_texts(work->engine, &x);
    if (work->g || !d->encoded) carnn__encode_texts(work->engine, &y);
    if (d->packed && !d->encoded) carnn__pack(work->engine, CARNN__NT, L, D, d->y, D, d->packed);
    d->encoded = 1;
    carnn__drop(work, d->e, d->inputs * D, key, CARNN__DROP_UTTERANCES);
    carnn__cell_ready(&d->cell, work->engine);
    carnn__cell_project(&d->cell, work->engine, d->e, 0, d->inputs);
    if (!work->g) return;
    memset(d->de, 0, d->inputs * D * sizeof(float));
}

/* The other way: from de and dy to the gradients of the weights. */
static void carnn__dialog_inputs_back(carnn__work *work, uint64_t key) {
    carnn__dialog *d = (carnn__dialog *)work->state;
    size_t D = (size_t)work->model->desc.hidden, L = d->candidates.count;
    carnn__encoder x = carnn__dialog_encoder(work, &d->utterances, d->which, d->inputs,
                                             work->model->word_table, NULL, d->de);
    carnn__encoder y = carnn__dialog_encoder(work, &d->candidates, NULL, L,
                                             work->model->word_table, NULL, d->dy);
    carnn__cell_project_back(&d->cell, work->engine, d->de);
    carnn__drop(work, d->de, d->inputs * D, key, CARNN__DROP_UTTERANCES);
    carnn__encode_texts_back(work->engine, &x);
    carnn__encode_texts_back(work->engine, &y);
}

/* The history of a turn: places [*first, *first + length) of seq; the last is its utterance. */
static size_t carnn__dialog_history(const carnn__work *work, size_t turn, size_t *first) {
    const carnn__dialog *d = (const carnn__dialog *)work->state;
    size_t before = d->end[turn] - d->seq_start[work->data->turns[turn].dialog];
    size_t kept = carnn__min(before, d->history);
    *first = d->end[turn] - kept;
    return kept + 1;
}

/* Packs as many turns from `from` on as fit into a chunk; returns how many. */
static size_t carnn__dialog_pack(carnn__work *work, size_t from) {
    carnn__dialog *d = (carnn__dialog *)work->state;
    size_t B = 0, rows = 0, b, t, first;
    for (; from + B < d->turn_count && B < CARNN__DIALOG_CHUNK; B++) {
        size_t turn = d->turns[from + B];
        size_t M = carnn__dialog_history(work, turn, &first);
        if (rows + M > d->max_rows) break;
        d->length[B] = (uint32_t)M;
        rows += M;
    }
    carnn__pack_sequences(&d->seq_packed, d->length, B, d->rank, d->start);
    for (b = 0; b < B; b++) {
        size_t turn = d->turns[from + d->rank[b]];
        size_t M = carnn__dialog_history(work, turn, &first);
        for (t = 0; t < M; t++) d->index[d->start[t] + b] = d->local[d->seq[first + t]];
        d->context[b] = d->local[d->seq[d->end[turn]]];
        d->labels[b] = d->target[turn];
    }
    return B;
}

static carnn__attention carnn__dialog_attention(const carnn__work *work) {
    const carnn__dialog *d = (const carnn__dialog *)work->state;
    carnn__attention a;
    a.seq = &d->seq_packed;
    a.D = (size_t)work->model->desc.hidden;
    a.index = d->index;
    a.h = d->cell.scan.out;
    a.e = d->e;
    a.c = d->c;
    a.weight = d->weight;
    a.gweight = d->gweight;
    a.o = d->o;
    a.go = d->go;
    a.gh = d->gh;
    a.gc = d->dc;
    return a;
}

/* Scores the candidates for the B turns of the chunk that begins at `from`: logits in z (B, L). */
static void carnn__dialog_forward(carnn__work *work, size_t from, size_t B, uint64_t key) {
    carnn__dialog *d = (carnn__dialog *)work->state;
    carnn__engine *e = work->engine;
    size_t D = (size_t)work->model->desc.hidden, L = d->candidates.count;
    carnn__attention a = carnn__dialog_attention(work);
    carnn__gather_rows(d->c, d->e, d->context, B, D);
    carnn__cell_context(&d->cell, e, d->c, B);
    carnn__cell_forward(&d->cell, e, &d->seq_packed, d->index, NULL, NULL);
    carnn__split(e, e->k->attend, &a, B, 1, d->seq_packed.rows * D);
    carnn__drop(work, d->o, B * D, key, CARNN__DROP_SUMMARY + from);
    if (d->packed) carnn__matmul_packed(e, 0, B, L, D, d->o, D, d->packed, NULL, d->z, L);
    else carnn__matmul(e, CARNN__NT, B, L, D, d->o, D, d->y, D, NULL, d->z, L);
}

/* From dz in z back to de and dy, which the first chunk begins. */
static void carnn__dialog_backward(carnn__work *work, size_t from, size_t B, uint64_t key) {
    carnn__dialog *d = (carnn__dialog *)work->state;
    carnn__engine *e = work->engine;
    size_t D = (size_t)work->model->desc.hidden, L = d->candidates.count, N = d->seq_packed.rows;
    carnn__attention a = carnn__dialog_attention(work);
    carnn__matmul(e, CARNN__NN, B, D, L, d->z, L, d->y, D, NULL, d->go, D);
    carnn__matmul(e, from ? CARNN__TN | CARNN__ADD : CARNN__TN, L, D, B, d->z, L, d->o, D, NULL,
                  d->dy, D);
    carnn__drop(work, d->go, B * D, key, CARNN__DROP_SUMMARY + from);
    memset(d->dc, 0, B * D * sizeof(float));
    carnn__split(e, e->k->attend_back, &a, B, 1, N * D);
    carnn__scatter_rows(e, d->de, d->gh, d->index, N, D);
    carnn__cell_backward(&d->cell, e, d->gh, d->de);
    carnn__cell_context_back(&d->cell, e, d->dc);
    carnn__scatter_rows(e, d->de, d->dc, d->context, B, D);
}

/* The largest of x below x[last] (n: of all), the first of equal ones; n where there is none. */
static size_t carnn__next_best(const carnn__kernels *k, const float *x, size_t n, size_t last) {
    size_t i, best = n;
    if (last == n) return k->argmax(x, n);
    for (i = 0; i < n; i++) {
        int after = x[i] < x[last] || (x[i] <= x[last] && i > last);
        if (after && (best == n || x[i] > x[best])) best = i;
    }
    return best;
}

/* The `count` most probable of n, with their probabilities; returns how many there are. */
static size_t carnn__ranking(const carnn__kernels *k, const float *p, size_t n, size_t count,
                             size_t *best, double *probability) {
    size_t i, last = n;
    for (i = 0; i < carnn__min(count, n); i++) {
        last = carnn__next_best(k, p, n, last);
        if (last == n) break; /* what is left is not a number */
        if (best) best[i] = last;
        if (probability) probability[i] = (double)p[last];
    }
    return i;
}

typedef struct carnn__dialog_chunk {
    carnn__work *work;
    size_t from; /* the place of its first turn in the batch */
} carnn__dialog_chunk;

/* What the logits of turns [b0, b1) of a chunk say, before the loss turns them into gradients. */
static void carnn__dialog_answers(const void *job, size_t b0, size_t b1) {
    const carnn__dialog_chunk *chunk = (const carnn__dialog_chunk *)job;
    carnn__dialog *d = (carnn__dialog *)chunk->work->state;
    const carnn__kernels *k = chunk->work->engine->k;
    size_t b, L = d->candidates.count;
    for (b = b0; b < b1; b++) {
        size_t turn = chunk->from + d->rank[b];
        d->right[turn] = k->argmax(d->z + b * L, L) == d->labels[b];
        if (d->probability) {
            memcpy(d->probability + turn * L, d->z + b * L, L * sizeof(float));
            k->softmax(d->probability + turn * L, L);
        }
    }
}

/* Adds a batch to the tally: turns answered rightly, dialogs with all turns right, dialogs. */
static void carnn__dialog_count(const carnn__work *work, size_t number, const unsigned char *right,
                                carnn__tally *tally) {
    const carnn__dialog *d = (const carnn__dialog *)work->state;
    size_t i, at = 0;
    for (i = d->batch_start[number]; i < d->batch_start[number + 1]; i++) {
        size_t turns = d->turn_start[d->order[i] + 1] - d->turn_start[d->order[i]], good = 0, j;
        for (j = 0; j < turns; j++) good += right[at + j];
        at += turns;
        tally->examples += turns;
        tally->sum[0] += (double)good;
        tally->sum[1] += turns && good == turns;
        tally->sum[2] += turns > 0;
        if (turns) carnn__tell_part(work, (double)good, (double)turns);
    }
}

/* Tells of the predictions of a batch. */
static void carnn__dialog_tell(const carnn__work *work) {
    const carnn__dialog *d = (const carnn__dialog *)work->state;
    size_t i, L = d->candidates.count;
    carnn_prediction p;
    memset(&p, 0, sizeof p);
    p.candidate = d->best;
    p.probability = d->best_probability;
    for (i = 0; i < d->turn_count; i++) {
        p.example = d->turns[i];
        p.count = carnn__ranking(work->engine->k, d->probability + i * L, L, d->top, d->best,
                                 d->best_probability);
        work->wanted->example(&p, work->wanted->user);
    }
}

static void carnn__dialog_batch(carnn__work *work, size_t number, uint64_t key,
                                carnn__tally *tally) {
    carnn__dialog *d = (carnn__dialog *)work->state;
    carnn__engine *e = work->engine;
    size_t from, B, b, L = d->candidates.count;
    carnn__dialog_collect(d, number);
    if (!d->turn_count) return;
    carnn__dialog_inputs(work, key);
    for (from = 0; from < d->turn_count; from += B) {
        carnn__dialog_chunk chunk = {work, from};
        B = carnn__dialog_pack(work, from);
        carnn__dialog_forward(work, from, B, key);
        carnn__split(e, carnn__dialog_answers, &chunk, B, 1, B * L);
        carnn__losses(work, B, L, d->z, d->labels, 1.0f / (float)d->turn_count, work->smoothing,
                      d->loss);
        for (b = 0; b < B; b++) tally->loss += (double)d->loss[b];
        if (work->g) carnn__dialog_backward(work, from, B, key);
    }
    if (work->g) carnn__dialog_inputs_back(work, key);
    carnn__dialog_count(work, number, d->right, tally);
    if (work->wanted) carnn__dialog_tell(work);
}

/* --- scores ---------------------------------------------------------------------------------- */

/* One vote for each model's best candidate; among those with most votes the largest sum of
   probabilities wins. Loss: of the mean probability of the right candidate. */
static size_t carnn__dialog_elect(carnn__work *const *works, size_t count, size_t turn,
                                  double *right, uint32_t target) {
    const carnn__dialog *first = (const carnn__dialog *)works[0]->state;
    const carnn__kernels *k = works[0]->engine->k;
    size_t L = first->candidates.count, m, n, best = 0, most = 0;
    double best_sum = 0.0;
    *right = 0.0;
    for (m = 0; m < count; m++) {
        const float *p = ((const carnn__dialog *)works[m]->state)->probability + turn * L;
        size_t mine = k->argmax(p, L), votes = 0;
        double sum = 0.0;
        for (n = 0; n < count; n++) {
            const float *q = ((const carnn__dialog *)works[n]->state)->probability + turn * L;
            votes += k->argmax(q, L) == mine;
            sum += (double)q[mine];
        }
        if (votes > most || (votes == most && sum > best_sum)) {
            best = mine;
            most = votes;
            best_sum = sum;
        }
        if (target != CARNN__NOWHERE) *right += (double)p[target] / (double)count;
    }
    return best;
}

static void carnn__dialog_vote(carnn__work *const *works, size_t count, size_t number,
                               carnn__tally *tally) {
    carnn__dialog *d = (carnn__dialog *)works[0]->state;
    size_t i;
    for (i = 0; i < d->turn_count; i++) {
        uint32_t target = d->target[d->turns[i]];
        double right;
        d->right[i] = carnn__dialog_elect(works, count, i, &right, target) == target;
        if (target != CARNN__NOWHERE) tally->loss -= log(right > DBL_MIN ? right : DBL_MIN);
    }
    carnn__dialog_count(works[0], number, d->right, tally);
}

static void carnn__dialog_score(const carnn__tally *tally, carnn_scores *scores) {
    double examples = (double)carnn__max(tally->examples, 1);
    scores->metric[0].value = tally->sum[0] / examples;
    scores->metric[1].value = tally->sum[2] > 0.0 ? tally->sum[1] / tally->sum[2] : 0.0;
}

#endif
/* =============================================================================================
   @@HEAD lm   predict the words of a sentence, given the sentence before it

   Tran et al. 2018, section 4.2. Sentence t has the words w_1 .. w_n; its context c is the last
   state of a CARNN without context over the sentence before it, which shares the word embedding:

     c = last state of ncarnn-free(w'_1 .. w'_m, </s>)                                (Eq. 11)
     h_0 .. h_n = cell(<s>, w_1 .. w_n; c)       P(w_{i+1}) = softmax(W h_i + b)
     loss = (1 - l) L_w + l L_l      L_l = -log softmax(W_c c + b_c)[label]       (Eq. 12, 13)
     W (words, h)   b (words)   W_c (labels, h)   b_c (labels)   h_i, c (h)

   L_w is the mean over the words of the batch, </s> among them: what perplexity weighs. L_l is the
   mean over the sentences with a label: the act of the sentence before, or the relation of this
   one to it. The gradient goes through c into its encoder and no farther. At the start of a
   document, and always with `--context none`, c is a learned vector. Cells without a context read
   [e_i; c] as input where a context is asked for. Published perplexities (nCARNN, iCARNN, sCARNN):
   Switchboard 30.2, 32.5, 31.5, with labels 29.7, 32.2, 31.5, of another tokenisation.

   Perplexity is exp(sum of -log P / sum of (n + 1)): </s> is predicted and counted, <s> is neither.
   Other counts differ more than models do, so three of them are reported beside it:
   perplexity_n2 divides by n + 2, perplexity_macro is the exponential of the mean over sentences,
   perplexity_words leaves </s> out.

   A sentence of more than CARNN__LM_STEPS words is read in pieces, each the context of the next.
   Rows of a batch are packed; the softmax works on blocks of rows, so that words times vocabulary
   is never held whole: it makes the logits, their loss and gradient, and both products of the way
   back of one block before the next.
   ============================================================================================= */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

#define CARNN__LM_STEPS 256
/* Rows of a batch for each of its sentences, on average; a batch that has more is cut short. */
#define CARNN__LM_ROWS 32
/* Floats of a block of logits: large enough for the products, small enough for the cache. */
#define CARNN__LM_LOGITS ((size_t)1 << 22)

static const char *const carnn__lm_reserved[] = {"<s>", "</s>"};
enum { CARNN__LM_BEGIN = 1, CARNN__LM_END = 2 }; /* their numbers: <unk> is 0 */

/* A piece of a sentence: inputs from tokens[first] on, and as targets the tokens one later. */
typedef struct carnn__lm_piece {
    size_t first;
    uint32_t steps, sentence_steps;
    uint32_t label;    /* what the context of the piece is to tell, or CARNN__NOWHERE */
    int starts, ends;  /* it is the first of a document, the last of its sentence */
} carnn__lm_piece;

/* What the sums of a tally are. */
enum {
    CARNN__LM_NLL,
    CARNN__LM_END_NLL,
    CARNN__LM_MACRO,
    CARNN__LM_LABELS_RIGHT,
    CARNN__LM_LABELS
};

typedef struct carnn__lm {
    uint32_t *tokens;       /* <s> w_1 .. w_n </s>, sentence after sentence */
    carnn__lm_piece *pieces;
    size_t count;           /* of pieces */
    uint32_t *order;        /* (pieces) in this epoch */
    size_t *batch_start;    /* into order, one more than there are batches */
    size_t max_rows, max_steps, max_pieces, block; /* block: rows of logits */
    /* of the batch at hand: B pieces, N rows; P pieces before them, M rows */
    carnn__packed seq, before;
    size_t *start, *before_start;                /* (steps + 2) */
    uint32_t *length, *rank, *piece, *source;    /* (B) source: rank among the P, or NOWHERE */
    uint32_t *before_length, *before_rank, *owner; /* (P) owner: place of the piece it precedes */
    uint32_t *place;                             /* (B) */
    uint32_t *ids, *target, *before_ids;         /* (N), (N), (M) */
    uint32_t *label;                             /* (B) */
    float *words, *before_words;                 /* (N, e), (M, e) */
    float *c, *dc;                               /* (B, h) */
    float *x[CARNN__LAYERS_MAX + 1];             /* (N, input) of each layer, then the output */
    float *d[2];                                 /* (N, widest) gradients on their way down */
    float *dbefore, *dbefore_words;              /* (M, h), (M, e) */
    float *z, *loss;                             /* (block, V), (N) */
    float *output, *output_back;                 /* packed: output^T (h, V), output (V, h) */
    float *label_z, *label_loss;                 /* (B, K), (B) */
    double *nll;                                 /* (B) of the pieces in order, for predictions */
    carnn_prediction told;                       /* the sentence that is told of next */
    carnn__cell_run cell[CARNN__LAYERS_MAX], encoder;
} carnn__lm;

/* --- a new model ----------------------------------------------------------------------------- */

static int carnn__cell_sees_context(const char *cell) {
    size_t kind = carnn__cell_number(cell);
    return kind < CARNN__CELL_COUNT && carnn__cells[kind].context_gates > 0;
}

static void carnn__lm_defaults(carnn_model_desc *model, carnn_train_desc *train) {
    if (!model->cell) model->cell = "ncarnn";
    if (!model->hidden) model->hidden = 256;
    if (!model->embedding) model->embedding = model->hidden;
    if (!model->layers) model->layers = 1;
    if (!model->min_count) model->min_count = 2; /* else <unk> would never be learnt */
    if (!model->vocab) model->vocab = 10000;
    if (!model->context)
        model->context = carnn__cell_sees_context(model->cell) ? "previous" : "none";
    if (!train->epochs) train->epochs = 4;
    if (!train->batch) train->batch = 64;
    if (train->lr == 0.0 && carnn__is_adam(train)) train->lr = 0.004;
    if (train->lr_end == 0.0) train->lr_end = 0.02;
    if (train->dropout == 0.0) train->dropout = 0.3;
    if (train->clip == 0.0) train->clip = 5.0;
    if (!train->patience) train->patience = 3;
}

/* Is the context made of the sentence before? */
static int carnn__lm_encodes(const carnn_model *model) {
    return !strcmp(model->desc.context, "previous");
}

static int carnn__lm_has_context(const carnn_model *model) {
    return carnn__lm_encodes(model) || carnn__cell_sees_context(model->desc.cell);
}

static carnn__tokenizer carnn__lm_tokenizer(const carnn_model *model) {
    return model->desc.lower ? CARNN__LOWER : CARNN__SPACES;
}

static carnn_status carnn__lm_check(const carnn_model_desc *d, carnn_error *error) {
    if (!d->context)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "context: \"previous\" or \"none\"");
    if (d->tied && d->embedding != d->hidden)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0,
                           "--embedding is %lld and --hidden is %lld: a tied output needs the same "
                           "size", (long long)d->embedding, (long long)d->hidden);
    return CARNN_OK;
}

static carnn_status carnn__lm_declare(carnn_model *model, carnn_error *error) {
    carnn__store *store = &model->params;
    carnn__lm_params *p = &model->lm;
    size_t e = (size_t)model->desc.embedding, h = (size_t)model->desc.hidden, i, in = e;
    size_t kind = carnn__cell_number(model->desc.cell), V = model->words.count;
    int sees = carnn__cell_sees_context(model->desc.cell);
    char prefix[24] = "cell";
    carnn_status status = carnn__lm_check(&model->desc, error);
    if (!status)
        status = carnn__reserved_check(model, carnn__lm_reserved,
                                       CARNN__COUNT(carnn__lm_reserved), error);
    if (status) return status;
    if (model->labels.count && (!carnn__lm_encodes(model) || !model->desc.label_row))
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0,
                           "labels need the context \"previous\" and a label_row, \"previous\" or "
                           "\"own\"");
    model->word_table = carnn__declare(store, "", "word.weight", V, e, 0, CARNN__INIT_NORMAL, 0.1f);
    if (carnn__lm_has_context(model))
        p->start = carnn__declare(store, "", "context.start", 1, h, 1, CARNN__INIT_NORMAL, 0.1f);
    if (carnn__lm_encodes(model))
        carnn__cell_declare(&p->encoder, store, "context", CARNN__CELL_ncarnn_free, e, h, 0);
    p->projects = (carnn__cells[kind].flags & CARNN__INPUT_IS_CANDIDATE) && e != h;
    if (p->projects) {
        p->project = carnn__declare(store, "", "word.project", h, e, h, CARNN__INIT_GLOROT, 0.0f);
        in = h;
    }
    if (carnn__lm_encodes(model) && !sees) in = e + h;
    for (i = 0; i < (size_t)model->desc.layers; i++, in = h) {
        if (i) snprintf(prefix, sizeof prefix, "cell.%u", (unsigned)i + 1);
        carnn__cell_declare(&model->cells[i], store, prefix, kind, in, h, h);
    }
    p->output = model->desc.tied ? model->word_table
                                 : carnn__declare(store, "", "output.weight", V, h, 0,
                                                  CARNN__INIT_GLOROT, 0.0f);
    p->bias = carnn__declare(store, "", "output.bias", 1, V, 1, CARNN__INIT_ZERO, 0.0f);
    if (!model->labels.count) return CARNN_OK;
    p->label = carnn__declare(store, "", "label.weight", model->labels.count, h, 0,
                              CARNN__INIT_GLOROT, 0.0f);
    p->label_bias = carnn__declare(store, "", "label.bias", 1, model->labels.count, 1,
                                   CARNN__INIT_ZERO, 0.0f);
    return CARNN_OK;
}

static void carnn__lm_init(carnn_model *model, const carnn_dataset *data) {
    size_t i;
    (void)data;
    for (i = 0; i < (size_t)model->desc.layers; i++)
        carnn__cell_init_bias(&model->cells[i], &model->params);
}

#ifndef CARNN_NO_TEXT

static carnn_status carnn__lm_words_build(carnn_model *model, const carnn_dataset *data,
                                          carnn_error *error) {
    carnn__vocabulary v;
    size_t i;
    carnn_status status = carnn__vocabulary_open(&v, &model->allocator, carnn__lm_reserved,
                                                 CARNN__COUNT(carnn__lm_reserved), error);
    for (i = 0; !status && i < data->sentence_count; i++) {
        carnn__span text = carnn__text(data, data->sentences[i].text);
        status = carnn__vocabulary_add(&v, carnn__lm_tokenizer(model), text.at, text.length, 1,
                                       error);
    }
    v.most = model->desc.vocab > 0 ? (size_t)model->desc.vocab : 0;
    if (!status)
        return carnn__vocabulary_close(&v, (size_t)model->desc.min_count, &model->words, error);
    carnn__vocabulary_free(&v);
    return status;
}

/* The labels of the data, where they are to be learnt: they are told from the encoded sentence. */
static carnn_status carnn__lm_labels_build(carnn_model *model, const carnn_dataset *data,
                                           carnn_error *error) {
    const char **s;
    size_t *length, i;
    carnn_status status;
    carnn_model_desc *d = &model->desc;
    if (d->label_weight == 0.0) d->label_weight = data->label_count ? 0.1 : CARNN_NONE;
    if (!carnn__lm_encodes(model)) d->label_weight = CARNN_NONE;
    if (!d->label_row) d->label_row = data->spoken ? "previous" : "own";
    if (d->label_weight < 0.0 || !data->label_count) return CARNN_OK;
    s = (const char **)carnn__alloc(&model->allocator, data->label_count, sizeof *s);
    length = (size_t *)carnn__alloc(&model->allocator, data->label_count, sizeof *length);
    status = s && length ? CARNN_OK : carnn__out_of_memory(error);
    for (i = 0; !status && i < data->label_count; i++) {
        carnn__span text = carnn__text(data, data->labels[i]);
        s[i] = text.at;
        length[i] = text.length;
    }
    if (!status)
        status = carnn__names_build(&model->labels, &model->allocator, s, length,
                                    data->label_count, error);
    carnn__free(&model->allocator, (void *)s);
    carnn__free(&model->allocator, length);
    return status;
}

static carnn_status carnn__lm_build(carnn_model *model, const carnn_dataset *data,
                                    carnn_error *error) {
    carnn_status status = carnn__lm_check(&model->desc, error);
    if (!status) status = carnn__lm_words_build(model, data, error);
    if (!status) status = carnn__lm_labels_build(model, data, error);
    return status;
}

#else
#define carnn__lm_build NULL
#endif

/* --- data made ready for a model ------------------------------------------------------------- */

static void carnn__lm_close(carnn__work *work) {
    carnn__lm *d = (carnn__lm *)work->state;
    const carnn_allocator *a = &work->allocator;
    if (!d) return;
    carnn__free(a, d->tokens);
    carnn__free(a, d->pieces);
    carnn__free(a, d->order);
    carnn__free(a, d->batch_start);
    carnn__free(a, d);
    work->state = NULL;
}

/* The words of sentence i, without <s> and </s>: counts, and writes at most `max`. */
static size_t carnn__lm_encode(const carnn__work *work, size_t i, uint32_t *ids, size_t max) {
    carnn__span text = carnn__text(work->data, work->data->sentences[i].text);
    return carnn__encode(&work->model->words, carnn__lm_tokenizer(work->model), text.at,
                         text.length, ids, max);
}

/* The label that the context of sentence i is to tell, which is not the first of its document: its
   number; CARNN__NOWHERE if there is none; the number of labels if the model does not know it. */
static uint32_t carnn__lm_label(const carnn__work *work, size_t i) {
    const carnn_model *model = work->model;
    const carnn__sentence *s = &work->data->sentences[i];
    carnn__span text;
    uint32_t label;
    if (!model->labels.count) return CARNN__NOWHERE;
    if (!strcmp(model->desc.label_row, "previous")) s--;
    if (s->label == CARNN__NOWHERE) return CARNN__NOWHERE;
    text = carnn__text(work->data, work->data->labels[s->label]);
    label = carnn__names_find(&model->labels, text.at, text.length);
    return label == CARNN__NOWHERE ? (uint32_t)model->labels.count : label;
}

/* Writes tokens and pieces of all sentences; both have room. */
static void carnn__lm_read(carnn__lm *d, const carnn__work *work, size_t room) {
    size_t i, at = 0, from;
    d->count = 0;
    for (i = 0; i < work->data->sentence_count; i++) {
        const carnn__sentence *s = &work->data->sentences[i];
        size_t n = carnn__lm_encode(work, i, d->tokens + at + 1, room - at - 1);
        int starts = !i || s[-1].document != s->document;
        d->tokens[at] = CARNN__LM_BEGIN;
        d->tokens[at + n + 1] = CARNN__LM_END;
        for (from = 0; from <= n; from += CARNN__LM_STEPS) {
            carnn__lm_piece *p = &d->pieces[d->count++];
            p->first = at + from;
            p->steps = (uint32_t)carnn__min(CARNN__LM_STEPS, n + 1 - from);
            p->sentence_steps = (uint32_t)(n + 1);
            p->starts = starts && !from;
            p->ends = from + p->steps == n + 1;
            p->label = from || starts ? CARNN__NOWHERE : carnn__lm_label(work, i);
        }
        at += n + 2;
    }
}

/* The largest batch that any order of the pieces can make. */
static void carnn__lm_limits(carnn__lm *d, const carnn__work *work) {
    size_t i, rows = 0, batch = (size_t)work->batch;
    d->max_steps = 1;
    for (i = 0; i < d->count; i++) {
        d->max_steps = carnn__max(d->max_steps, d->pieces[i].steps);
        rows += d->pieces[i].steps;
    }
    d->max_pieces = carnn__min(batch, d->count);
    d->max_rows = carnn__min(rows, carnn__max(d->max_steps, CARNN__LM_ROWS * batch));
    d->block = carnn__min(d->max_rows, carnn__max(16, CARNN__LM_LOGITS / work->model->words.count));
}

static carnn_status carnn__lm_open(carnn__work *work, carnn_error *error) {
    const carnn_allocator *a = &work->allocator;
    carnn__lm *d = (carnn__lm *)carnn__alloc_zero(a, 1, sizeof *d);
    size_t i, tokens = 0, pieces = 0;
    work->state = d;
    if (!d) return carnn__out_of_memory(error);
    for (i = 0; i < work->data->sentence_count; i++) {
        size_t n = carnn__lm_encode(work, i, NULL, 0);
        tokens += n + 2;
        pieces += n / CARNN__LM_STEPS + 1;
    }
    d->tokens = (uint32_t *)carnn__alloc(a, tokens, sizeof *d->tokens);
    d->pieces = (carnn__lm_piece *)carnn__alloc(a, pieces, sizeof *d->pieces);
    d->order = (uint32_t *)carnn__alloc(a, pieces, sizeof *d->order);
    d->batch_start = (size_t *)carnn__alloc(a, pieces + 1, sizeof *d->batch_start);
    if (!d->tokens || !d->pieces || !d->order || !d->batch_start) {
        carnn__lm_close(work);
        return carnn__out_of_memory(error);
    }
    carnn__lm_read(d, work, tokens);
    carnn__lm_limits(d, work);
    return CARNN_OK;
}

static void carnn__lm_carve_lists(carnn__lm *d, carnn__arena *arena) {
    size_t B = d->max_pieces, N = d->max_rows, i;
    uint32_t **of_piece[] = {&d->length, &d->rank, &d->piece, &d->source, &d->before_length,
                             &d->before_rank, &d->owner, &d->place, &d->label};
    d->start = (size_t *)carnn__take(arena, d->max_steps + 2, sizeof(size_t));
    d->before_start = (size_t *)carnn__take(arena, d->max_steps + 2, sizeof(size_t));
    for (i = 0; i < CARNN__COUNT(of_piece); i++)
        *of_piece[i] = (uint32_t *)carnn__take(arena, B, sizeof(uint32_t));
    d->ids = (uint32_t *)carnn__take(arena, N, sizeof(uint32_t));
    d->target = (uint32_t *)carnn__take(arena, N, sizeof(uint32_t));
    d->before_ids = (uint32_t *)carnn__take(arena, N, sizeof(uint32_t));
}

static void carnn__lm_carve(carnn__work *work, carnn__arena *arena) {
    carnn__lm *d = (carnn__lm *)work->state;
    const carnn_model *model = work->model;
    size_t B = d->max_pieces, N = d->max_rows, V = model->words.count, K = model->labels.count;
    size_t e = (size_t)model->desc.embedding, h = (size_t)model->desc.hidden, i;
    size_t layers = (size_t)model->desc.layers;
    carnn__lm_carve_lists(d, arena);
    d->words = carnn__floats(arena, N, e);
    d->c = carnn__floats(arena, B, h);
    d->z = carnn__floats(arena, d->block, V);
    d->output = carnn__floats(arena, 1, carnn__packed_size(V, h));
    if (work->g) d->output_back = carnn__floats(arena, 1, carnn__packed_size(h, V));
    d->loss = carnn__floats(arena, 1, N);
    d->nll = work->wanted ? (double *)carnn__take(arena, B, sizeof(double)) : NULL;
    for (i = 0; i <= layers; i++)
        d->x[i] = carnn__floats(arena, N, i < layers ? model->cells[i].e : h);
    for (i = 0; i < layers; i++)
        carnn__cell_plan(&d->cell[i], &model->cells[i], &model->params, work->w, work->g, arena, N,
                         N, B);
    if (carnn__lm_encodes(model)) {
        d->before_words = carnn__floats(arena, N, e);
        d->label_z = carnn__floats(arena, B, K);
        d->label_loss = carnn__floats(arena, 1, B);
        carnn__cell_plan(&d->encoder, &model->lm.encoder, &model->params, work->w, work->g, arena,
                         N, N, B);
    }
    if (!work->g) return;
    d->dc = carnn__floats(arena, B, h);
    for (i = 0; i < 2; i++) d->d[i] = carnn__floats(arena, N, e + h);
    if (!carnn__lm_encodes(model)) return;
    d->dbefore = carnn__floats(arena, N, h);
    d->dbefore_words = carnn__floats(arena, N, e);
}

/* Batches of so many pieces, or fewer where they or those before them have too many words. They
   are not sorted by length: the softmax is most of the work and does not care, and steps of all
   lengths make better gradients. */
static size_t carnn__lm_plan(carnn__work *work, uint64_t key) {
    carnn__lm *d = (carnn__lm *)work->state;
    size_t i, batches = 0, rows = 0, before = 0;
    memset(&d->told, 0, sizeof d->told);
    for (i = 0; i < d->count; i++) d->order[i] = (uint32_t)i;
    if (key) carnn__shuffle(key, d->order, d->count);
    for (i = 0; i < d->count; i++) {
        const carnn__lm_piece *p = &d->pieces[d->order[i]];
        size_t n = p->steps, m = p->starts ? 0 : p[-1].steps;
        if (!i || i - d->batch_start[batches - 1] == d->max_pieces || rows + n > d->max_rows ||
            before + m > d->max_rows) {
            d->batch_start[batches++] = i;
            rows = before = 0;
        }
        rows += n;
        before += m;
    }
    d->batch_start[batches] = d->count;
    return batches;
}

/* --- one batch ------------------------------------------------------------------------------- */

/* Packs the pieces that come before those of the batch. */
static void carnn__lm_pack_before(carnn__lm *d, const uint32_t *order) {
    size_t r, t, P = d->before.sequences;
    carnn__pack_sequences(&d->before, d->before_length, P, d->before_rank, d->before_start);
    for (r = 0; r < P; r++) {
        size_t i = d->owner[d->before_rank[r]];
        const carnn__lm_piece *p = &d->pieces[order[i] - 1];
        d->place[i] = (uint32_t)r;
        for (t = 0; t < p->steps; t++)
            d->before_ids[d->before_start[t] + r] = d->tokens[p->first + 1 + t];
    }
}

/* Packs a batch. */
static void carnn__lm_collect(carnn__work *work, size_t number) {
    carnn__lm *d = (carnn__lm *)work->state;
    const uint32_t *order = d->order + d->batch_start[number];
    size_t B = d->batch_start[number + 1] - d->batch_start[number], P = 0, i, b, t;
    for (i = 0; i < B; i++) {
        const carnn__lm_piece *p = &d->pieces[order[i]];
        d->length[i] = p->steps;
        d->place[i] = CARNN__NOWHERE;
        if (p->starts || !carnn__lm_encodes(work->model)) continue;
        d->owner[P] = (uint32_t)i;
        d->before_length[P++] = p[-1].steps;
    }
    d->before.sequences = P;
    carnn__lm_pack_before(d, order);
    carnn__pack_sequences(&d->seq, d->length, B, d->rank, d->start);
    for (b = 0; b < B; b++) {
        const carnn__lm_piece *p = &d->pieces[order[d->rank[b]]];
        d->piece[b] = order[d->rank[b]];
        d->source[b] = d->place[d->rank[b]];
        d->label[b] = p->label;
        for (t = 0; t < p->steps; t++) {
            d->ids[d->start[t] + b] = d->tokens[p->first + t];
            d->target[d->start[t] + b] = d->tokens[p->first + t + 1];
        }
    }
}

/* Streams of a step's random numbers. */
enum { CARNN__LM_DROP_BEFORE = 1, CARNN__LM_DROP_WORDS, CARNN__LM_DROP_STATES };

/* The row of the last state of the r-th sequence before. */
static size_t carnn__lm_last_row(const carnn__lm *d, size_t r) {
    return d->before_start[d->before_length[d->before_rank[r]] - 1] + r;
}

/* The contexts c (B, h): encoded sentences, or the learned vector. */
static void carnn__lm_contexts(carnn__work *work, uint64_t key) {
    carnn__lm *d = (carnn__lm *)work->state;
    carnn__engine *e = work->engine;
    size_t M = d->before.rows, h = (size_t)work->model->desc.hidden, b;
    size_t in = (size_t)work->model->desc.embedding;
    if (!carnn__lm_has_context(work->model)) return;
    if (carnn__lm_encodes(work->model)) {
        carnn__gather_rows(d->before_words, carnn__weight(work, work->model->word_table),
                           d->before_ids, M, in);
        carnn__drop(work, d->before_words, M * in, key, CARNN__LM_DROP_BEFORE);
        carnn__cell_ready(&d->encoder, e);
        carnn__cell_project(&d->encoder, e, d->before_words, 0, M);
        carnn__cell_forward(&d->encoder, e, &d->before, NULL, NULL, NULL);
    }
    for (b = 0; b < d->seq.sequences; b++) {
        const float *from = carnn__weight(work, work->model->lm.start);
        if (d->source[b] != CARNN__NOWHERE)
            from = d->encoder.scan.out + carnn__lm_last_row(d, d->source[b]) * h;
        memcpy(d->c + b * h, from, h * sizeof(float));
    }
}

static void carnn__lm_contexts_back(carnn__work *work, uint64_t key) {
    carnn__lm *d = (carnn__lm *)work->state;
    carnn__engine *e = work->engine;
    size_t M = d->before.rows, h = (size_t)work->model->desc.hidden, b;
    size_t in = (size_t)work->model->desc.embedding;
    if (!carnn__lm_has_context(work->model)) return;
    if (carnn__lm_encodes(work->model)) memset(d->dbefore, 0, M * h * sizeof(float));
    for (b = 0; b < d->seq.sequences; b++) {
        float *to = carnn__gradient(work, work->model->lm.start);
        if (d->source[b] != CARNN__NOWHERE)
            to = d->dbefore + carnn__lm_last_row(d, d->source[b]) * h;
        e->k->add(d->dc + b * h, to, h);
    }
    if (!carnn__lm_encodes(work->model)) return;
    memset(d->dbefore_words, 0, M * in * sizeof(float));
    carnn__cell_backward(&d->encoder, e, d->dbefore, d->dbefore_words);
    carnn__cell_project_back(&d->encoder, e, d->dbefore_words);
    carnn__drop(work, d->dbefore_words, M * in, key, CARNN__LM_DROP_BEFORE);
    carnn__scatter_rows(e, carnn__gradient(work, work->model->word_table), d->dbefore_words,
                        d->before_ids, M, in);
}

/* The input of the first layer from the words: themselves, their projection, or [word; context]. */
static void carnn__lm_input(carnn__work *work) {
    carnn__lm *d = (carnn__lm *)work->state;
    const carnn_model *model = work->model;
    size_t in = (size_t)model->desc.embedding, h = (size_t)model->desc.hidden, t, b;
    size_t N = d->seq.rows, width = model->cells[0].e;
    if (model->lm.projects) {
        carnn__matmul(work->engine, CARNN__NT, N, h, in, d->words, in,
                      carnn__weight(work, model->lm.project), in, NULL, d->x[0], h);
        return;
    }
    for (t = 0; t < d->seq.steps; t++)
        for (b = 0; b < d->start[t + 1] - d->start[t]; b++) {
            size_t row = d->start[t] + b;
            memcpy(d->x[0] + row * width, d->words + row * in, in * sizeof(float));
            if (width > in) memcpy(d->x[0] + row * width + in, d->c + b * h, h * sizeof(float));
        }
}

/* From dx (N, input) to `dwords` (N, e) and, where the context is part of the input, dc. */
static void carnn__lm_input_back(carnn__work *work, const float *dx, float *dwords) {
    carnn__lm *d = (carnn__lm *)work->state;
    const carnn_model *model = work->model;
    size_t in = (size_t)model->desc.embedding, h = (size_t)model->desc.hidden, t, b;
    size_t N = d->seq.rows, width = model->cells[0].e;
    if (model->lm.projects) {
        carnn__matmul(work->engine, CARNN__NN, N, in, h, dx, h,
                      carnn__weight(work, model->lm.project), in, NULL, dwords, in);
        carnn__matmul(work->engine, CARNN__TN | CARNN__ADD, h, in, N, dx, h, d->words, in, NULL,
                      carnn__gradient(work, model->lm.project), in);
        return;
    }
    for (t = 0; t < d->seq.steps; t++)
        for (b = 0; b < d->start[t + 1] - d->start[t]; b++) {
            size_t row = d->start[t] + b;
            memcpy(dwords + row * in, dx + row * width, in * sizeof(float));
            if (width > in) work->engine->k->add(dx + row * width + in, d->dc + b * h, h);
        }
}

/* From words to the states of the last layer, in x[layers]. */
static void carnn__lm_forward(carnn__work *work, uint64_t key) {
    carnn__lm *d = (carnn__lm *)work->state;
    const carnn_model *model = work->model;
    carnn__engine *e = work->engine;
    size_t N = d->seq.rows, h = (size_t)model->desc.hidden, i;
    size_t in = (size_t)model->desc.embedding;
    carnn__gather_rows(d->words, carnn__weight(work, model->word_table), d->ids, N, in);
    carnn__drop(work, d->words, N * in, key, CARNN__LM_DROP_WORDS);
    carnn__lm_input(work);
    for (i = 0; i < (size_t)model->desc.layers; i++) {
        carnn__cell_run *cell = &d->cell[i];
        carnn__cell_ready(cell, e);
        carnn__cell_project(cell, e, d->x[i], 0, N);
        carnn__cell_context(cell, e, d->c, d->seq.sequences);
        carnn__cell_forward(cell, e, &d->seq, NULL, NULL, NULL);
        memcpy(d->x[i + 1], cell->scan.out, N * h * sizeof(float));
        carnn__drop(work, d->x[i + 1], N * h, key, CARNN__LM_DROP_STATES + i);
    }
}

/* From the gradient at x[layers], in d[0], to those of all weights below, and dc. */
static void carnn__lm_backward(carnn__work *work, uint64_t key) {
    carnn__lm *d = (carnn__lm *)work->state;
    const carnn_model *model = work->model;
    carnn__engine *e = work->engine;
    size_t N = d->seq.rows, h = (size_t)model->desc.hidden, i;
    size_t in = (size_t)model->desc.embedding;
    float *above = d->d[0], *below = d->d[1], *swap;
    for (i = (size_t)model->desc.layers; i-- > 0;) {
        carnn__cell_run *cell = &d->cell[i];
        carnn__drop(work, above, N * h, key, CARNN__LM_DROP_STATES + i);
        memset(below, 0, N * cell->cell->e * sizeof(float));
        carnn__cell_backward(cell, e, above, below);
        carnn__cell_context_back(cell, e, d->dc);
        carnn__cell_project_back(cell, e, below);
        swap = above, above = below, below = swap;
    }
    carnn__lm_input_back(work, above, below);
    carnn__drop(work, below, N * in, key, CARNN__LM_DROP_WORDS);
    carnn__scatter_rows(e, carnn__gradient(work, model->word_table), below, d->ids, N, in);
}

/* The softmax over the vocabulary, block by block: the losses of all rows and, in training, their
   gradients, times `scale`, at the states (d[0]) and at the output's weights. */
static void carnn__lm_output(carnn__work *work, float scale) {
    carnn__lm *d = (carnn__lm *)work->state;
    const carnn_model *model = work->model;
    carnn__engine *e = work->engine;
    size_t N = d->seq.rows, h = (size_t)model->desc.hidden, V = model->words.count, from, rows;
    const float *w = carnn__weight(work, model->lm.output);
    const float *h_top = d->x[model->desc.layers];
    carnn__pack(e, CARNN__NT, V, h, w, h, d->output);
    if (work->g) carnn__pack(e, CARNN__NN, h, V, w, h, d->output_back);
    for (from = 0; from < N; from += rows) {
        const float *states = h_top + from * h;
        rows = carnn__min(d->block, N - from);
        carnn__matmul_packed(e, 0, rows, V, h, states, h, d->output,
                             carnn__weight(work, model->lm.bias), d->z, V);
        carnn__losses(work, rows, V, d->z, d->target + from, scale, work->smoothing,
                      d->loss + from);
        if (!work->g) continue;
        carnn__matmul_packed(e, 0, rows, h, V, d->z, V, d->output_back, NULL, d->d[0] + from * h,
                             h);
        carnn__matmul(e, CARNN__TN | CARNN__ADD, V, h, rows, d->z, V, states, h, NULL,
                      carnn__gradient(work, model->lm.output), h);
        carnn__column_sums(e, rows, V, d->z, V, carnn__gradient(work, model->lm.bias));
    }
}

/* The labels of the contexts: adds to the tally, returns the mean loss; in training adds the
   gradient, times `weight`, at the contexts. One that the model does not know is told wrongly. */
static double carnn__lm_labels(carnn__work *work, double weight, carnn__tally *tally) {
    carnn__lm *d = (carnn__lm *)work->state;
    const carnn_model *model = work->model;
    carnn__engine *e = work->engine;
    size_t B = d->seq.sequences, K = model->labels.count, h = (size_t)model->desc.hidden, b;
    size_t known = 0;
    const float *w;
    double loss = 0.0;
    if (!K) return 0.0;
    w = carnn__weight(work, model->lm.label);
    carnn__matmul(e, CARNN__NT, B, K, h, d->c, h, w, h,
                  carnn__weight(work, model->lm.label_bias), d->label_z, K);
    for (b = 0; b < B; b++) {
        if (d->label[b] == CARNN__NOWHERE) continue;
        tally->sum[CARNN__LM_LABELS] += 1.0;
        tally->sum[CARNN__LM_LABELS_RIGHT] += e->k->argmax(d->label_z + b * K, K) == d->label[b];
        if (d->label[b] == K) d->label[b] = CARNN__NOWHERE;
        else known++;
    }
    if (!known) return 0.0;
    carnn__losses(work, B, K, d->label_z, d->label, (float)(weight / (double)known), 0.0,
                  d->label_loss);
    for (b = 0; b < B; b++) loss += (double)d->label_loss[b];
    if (work->g) {
        carnn__matmul(e, CARNN__NN | CARNN__ADD, B, h, K, d->label_z, K, w, h, NULL, d->dc, h);
        carnn__matmul(e, CARNN__TN | CARNN__ADD, K, h, B, d->label_z, K, d->c, h, NULL,
                      carnn__gradient(work, model->lm.label), h);
        carnn__column_sums(e, B, K, d->label_z, K, carnn__gradient(work, model->lm.label_bias));
    }
    return loss / (double)known;
}

/* Adds the losses of a batch to the tally. The macro-average is one of sentences, not of pieces. */
static void carnn__lm_count(const carnn__work *work, carnn__tally *tally) {
    const carnn__lm *d = (const carnn__lm *)work->state;
    size_t b, t;
    for (b = 0; b < d->seq.sequences; b++) {
        const carnn__lm_piece *p = &d->pieces[d->piece[b]];
        double sum = 0.0;
        for (t = 0; t < p->steps; t++) sum += (double)d->loss[d->start[t] + b];
        tally->sum[CARNN__LM_NLL] += sum;
        if (work->wanted) d->nll[d->rank[b]] = sum;
        carnn__tell_part(work, sum, (double)p->steps);
        tally->sum[CARNN__LM_MACRO] += sum / (double)p->sentence_steps;
        tally->tokens += p->steps;
        if (!p->ends) continue;
        tally->sum[CARNN__LM_END_NLL] += (double)d->loss[d->start[p->steps - 1] + b];
        tally->examples++;
    }
}

/* Tells of the sentences that end in a batch. */
static void carnn__lm_tell(const carnn__work *work, size_t number) {
    carnn__lm *d = (carnn__lm *)work->state;
    size_t i, from = d->batch_start[number];
    for (i = 0; i < d->seq.sequences; i++) {
        const carnn__lm_piece *p = &d->pieces[d->order[from + i]];
        d->told.score += d->nll[i];
        d->told.tokens += p->steps;
        if (!p->ends) continue;
        work->wanted->example(&d->told, work->wanted->user);
        d->told.example++;
        d->told.score = 0.0;
        d->told.tokens = 0;
    }
}

/* tally->loss is what is trained, in nats a word; without gradients that is the words' loss. */
static void carnn__lm_batch(carnn__work *work, size_t number, uint64_t key, carnn__tally *tally) {
    carnn__lm *d = (carnn__lm *)work->state;
    double before = tally->sum[CARNN__LM_NLL], share = 0.0, labels, rows;
    carnn__lm_collect(work, number);
    rows = (double)d->seq.rows;
    if (work->g) {
        if (work->model->labels.count) share = fmax(work->model->desc.label_weight, 0.0);
        memset(d->dc, 0, d->seq.sequences * (size_t)work->model->desc.hidden * sizeof(float));
    }
    carnn__lm_contexts(work, key);
    labels = carnn__lm_labels(work, share, tally);
    carnn__lm_forward(work, key);
    carnn__lm_output(work, (float)((1.0 - share) / rows));
    carnn__lm_count(work, tally);
    if (work->wanted) carnn__lm_tell(work, number);
    tally->loss += (1.0 - share) * (tally->sum[CARNN__LM_NLL] - before) + share * labels * rows;
    if (!work->g) return;
    carnn__lm_backward(work, key);
    carnn__lm_contexts_back(work, key);
}

/* --- scores ---------------------------------------------------------------------------------- */

/* The mean of the models' probabilities of every word. Labels are not voted on. */
static void carnn__lm_vote(carnn__work *const *works, size_t count, size_t number,
                           carnn__tally *tally) {
    carnn__lm *d = (carnn__lm *)works[0]->state;
    size_t row, m;
    double before = tally->sum[CARNN__LM_NLL];
    (void)number;
    for (row = 0; row < d->seq.rows; row++) {
        double p = 0.0;
        for (m = 0; m < count; m++)
            p += exp(-(double)((const carnn__lm *)works[m]->state)->loss[row]);
        d->loss[row] = (float)-log(fmax(p / (double)count, DBL_MIN));
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
    if (sum[CARNN__LM_LABELS] > 0.0)
        scores->metric[4].value = sum[CARNN__LM_LABELS_RIGHT] / sum[CARNN__LM_LABELS];
    else
        scores->count = 4; /* no labels, no accuracy */
}

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

   F is 4h (orthogonal) or 2h (direct); without overlap the 2s are 0; b4 is there for pairs only.

   `--weighting skip` puts what word i adds to the states, [fw_i - fw_{i-1}; bw_i - bw_{i+1}], in the
   place of x_i in the weights. `--model siamese` has the score W4 [cosine; overlap] + b4 of the two
   sentences' last states instead.

   Overlap: an input more for every word, is it in the other sentence?, and that times its idf; and
   for every pair the share of the question's words that are in the sentence, by number and by idf.
   Words with the same first letters (`--overlap 4`) count as one there: lives, lived, living.

   Loss: of pairs, cross entropy of sigmoid(score), in which right and wrong sentences weigh the same
   in all; of ranks, cross entropy of the softmax over a question's sentences, whose target is
   shared by the right ones. A question without a right or a wrong one has no rank to learn.

   A batch holds whole questions, or pieces of one that has very many sentences. Each distinct word
   in it is looked up and projected once. All sentences are packed together, without padding; a
   question is a sequence for each of its sentences, or one for all where the cell reads no context
   and is told of no overlap. Behind the cells rows lie sentence by sentence, and pairs are
   independent: threads share them.
   ============================================================================================= */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

/* Bounds of a batch: pairs of a piece, words, and floats of the alignment matrices, which one pair
   may exceed. */
#define CARNN__ANSWER_PIECE 64
#define CARNN__ANSWER_ROWS 3072
#define CARNN__ANSWER_CELLS ((size_t)1 << 18)
/* Inputs beside a word's vector, and those of a pair beside its sentences. */
#define CARNN__OVERLAPS 2

/* Words that the model does not know share these by their hash, so that a name that nobody has seen
   can still be found in both sentences. */
static const char *const carnn__answer_reserved[] = {
    "<unk.1>", "<unk.2>", "<unk.3>", "<unk.4>", "<unk.5>", "<unk.6>", "<unk.7>", "<unk.8>",
    "<unk.9>", "<unk.10>", "<unk.11>", "<unk.12>", "<unk.13>", "<unk.14>", "<unk.15>"};
#define CARNN__UNKNOWN (CARNN__COUNT(carnn__answer_reserved) + 1)

/* Consecutive pairs with the same question. */
typedef struct carnn__answer_piece {
    size_t pair;
    uint32_t count;
} carnn__answer_piece;

/* What the sums of a tally are. */
enum { CARNN__ANSWER_AP, CARNN__ANSWER_RR, CARNN__ANSWER_QUESTIONS };

typedef struct carnn__answer {
    carnn__bags texts;         /* the words of each text of the data set */
    carnn__answer_piece *pieces;
    size_t *group_piece;       /* (groups + 1) the first piece of each question */
    uint32_t *order;           /* (groups) in this epoch */
    uint32_t *queue;           /* (pieces) in this epoch */
    size_t *batch_start;       /* into queue, one more than there are batches */
    float *score, *voted;      /* (all pairs) of this model, of a vote that it leads */
    uint32_t *ranked;          /* (largest group) */
    uint32_t *stem;            /* (V) equal for words that count as one in overlaps */
    uint32_t *local;           /* (2 V) the input that word v without, with overlap is */
    float *ramp;               /* (in) */
    float class_weight[2];     /* of wrong and right pairs */
    int shares;                /* one sequence serves all pairs of a question */
    size_t max_pairs, max_rows, max_cells, max_steps, max_inputs;
    /* of the batch at hand: P pairs; 2 P sentences, question and answer of each pair; R words of
       these; B sequences, N rows; U inputs */
    size_t pairs, sentences, inputs, piece_count;
    const uint32_t *piece;     /* the batch's pieces */
    uint32_t *pair;            /* (P) in the data set */
    uint32_t *input;           /* (U) 2 word + overlap */
    size_t *at;                /* (2 P + 1) the first row of each sentence */
    size_t *cell_at;           /* (P) its two alignment matrices */
    uint32_t *ids;             /* (R) input of each word */
    uint32_t *sequence, *first; /* (2 P) of a sentence; (B) the first sentence of a sequence */
    uint32_t *length, *rank, *place, *other; /* (B) rank: sequences by length, place: the reverse */
    size_t *start;             /* (T + 2) */
    carnn__packed packed;
    uint32_t *index[2];        /* (N) input of each row, by direction */
    uint32_t *reversed;        /* (N) */
    uint32_t *row[2];          /* (R) row of each word, by direction */
    float *overlap;            /* (P, CARNN__OVERLAPS) */
    float *words, *dwords;     /* (U, e + overlaps) */
    float *x, *dx;             /* (U, in) */
    float *c, *dc;             /* (B, in) */
    carnn__cell_run cell[2];
    float *dout[2];            /* (N, h) */
    /* iwan */
    float *s, *ds;             /* (R, D) states, D = 2 h */
    float *k, *dk;             /* (R, D) what the weights are made of, where that is not s */
    float *a, *da;             /* (R, D) alignments */
    float *E, *dE;             /* (cells) */
    float *share, *weight, *dweight; /* (R) */
    float *mean, *dmean;       /* (2 P, D) of the other sentence */
    float *bias, *dbias;       /* (2 P, h) */
    float *g, *dg;             /* (R, h) */
    float *attend;             /* W1, packed */
    float *f, *df;             /* (P, 2 F) */
    /* siamese */
    float *v, *dv;             /* (2 P, D) last states */
    /* both */
    float *top, *dtop;         /* (P, H + overlaps) */
    float *z, *dz;             /* (P) scores */
} carnn__answer;

/* --- a new model ----------------------------------------------------------------------------- */

static void carnn__answer_defaults(carnn_model_desc *model, carnn_train_desc *train) {
    if (!model->cell) model->cell = "icarnn";
    if (!model->hidden) model->hidden = 150;
    if (!model->embedding) model->embedding = 50;
    if (!model->layers) model->layers = 1;
    if (!model->min_count) model->min_count = 1;
    if (!model->model) model->model = "iwan";
    if (!model->decomposition) model->decomposition = "orthogonal";
    if (!model->weighting) model->weighting = "attention";
    if (!model->overlap) model->overlap = 4; /* writer is like writes, wrote is not */
    if (!model->loss) model->loss = "rank";
    if (!train->epochs) train->epochs = 5;
    if (!train->batch) train->batch = 64;
    if (train->lr == 0.0 && carnn__is_adam(train)) train->lr = 0.001;
    if (train->lr_end == 0.0) train->lr_end = 0.05;
    if (train->dropout == 0.0) train->dropout = 0.5;
    if (train->clip == 0.0) train->clip = 5.0;
    if (train->average == 0.0) train->average = 0.995;
    if (train->weight_decay == 0.0) train->weight_decay = 0.3;
}

static int carnn__answer_is_siamese(const carnn_model *model) {
    return !strcmp(model->desc.model, "siamese");
}

static int carnn__answer_is_direct(const carnn_model *model) {
    return !strcmp(model->desc.decomposition, "direct");
}

static int carnn__answer_skips(const carnn_model *model) {
    return !strcmp(model->desc.weighting, "skip");
}

static int carnn__answer_ranks(const carnn_model *model) {
    return !strcmp(model->desc.loss, "rank");
}

/* Inputs of a word, and of a pair, beside what they are. */
static size_t carnn__answer_overlaps(const carnn_model *model) {
    return model->desc.overlap > 0 ? CARNN__OVERLAPS : 0;
}

/* Does one sequence serve all pairs of a question? */
static int carnn__answer_shares(const carnn_model *model) {
    return !model->cells[0].d && !carnn__answer_overlaps(model);
}

/* Columns of the sum over a sentence, and of the layer below the score. */
static size_t carnn__answer_sum_width(const carnn_model *model) {
    return (carnn__answer_is_direct(model) ? 2 : 4) * (size_t)model->desc.hidden;
}

static size_t carnn__answer_top_width(const carnn_model *model) {
    return (carnn__answer_is_siamese(model) ? 1 : (size_t)model->desc.hidden) +
           carnn__answer_overlaps(model);
}

static carnn_status carnn__answer_check(const carnn_model *model, carnn_error *error) {
    const carnn_model_desc *d = &model->desc;
    if (!d->model || !d->decomposition || !d->weighting || !d->loss)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "an answer model needs model, "
                           "decomposition, weighting and loss");
    if (d->layers != 1)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "an answer model has one recurrent layer");
    return carnn__reserved_check(model, carnn__answer_reserved,
                                 CARNN__COUNT(carnn__answer_reserved), error);
}

/* What weighs the words, (h, 2h) twice and (h), and the layer over both sums, (h, 2 F). */
static void carnn__answer_declare_iwan(carnn_model *model) {
    carnn__store *store = &model->params;
    carnn__answer_params *p = &model->answer;
    size_t h = (size_t)model->desc.hidden, D = 2 * h;
    p->attend = carnn__declare(store, "", "attend.weight", h, D, 0, CARNN__INIT_GLOROT, 0.0f);
    p->attend_other = carnn__declare(store, "", "attend.other", h, D, 0, CARNN__INIT_GLOROT, 0.0f);
    p->attend_vector = carnn__declare(store, "", "attend.vector", 1, h, 0, CARNN__INIT_GLOROT,
                                      0.0f);
    p->hidden = carnn__declare(store, "", "hidden.weight", h, 2 * carnn__answer_sum_width(model), 0,
                               CARNN__INIT_GLOROT, 0.0f);
    p->hidden_bias = carnn__declare(store, "", "hidden.bias", 1, h, 1, CARNN__INIT_ZERO, 0.0f);
}

static carnn_status carnn__answer_declare(carnn_model *model, carnn_error *error) {
    carnn__store *store = &model->params;
    carnn__answer_params *p = &model->answer;
    size_t e = (size_t)model->desc.embedding, h = (size_t)model->desc.hidden;
    size_t kind = carnn__cell_number(model->desc.cell), V = model->words.count;
    size_t in = h, width;
    carnn_status status = carnn__answer_check(model, error);
    if (status) return status;
    width = carnn__answer_top_width(model);
    if (model->desc.tune_vectors)
        model->word_table = carnn__declare(store, "", "word.weight", V, e, 0, CARNN__INIT_NORMAL,
                                           0.1f);
    p->project = carnn__declare(store, "", "word.project", in, e + carnn__answer_overlaps(model), 0,
                                CARNN__INIT_GLOROT, 0.0f);
    p->project_bias = carnn__declare(store, "", "word.bias", 1, in, 1, CARNN__INIT_ZERO, 0.0f);
    carnn__cell_declare(&model->cells[0], store, "cell.forward", kind, in, h, in);
    carnn__cell_declare(&model->cells[1], store, "cell.backward", kind, in, h, in);
    if (!carnn__answer_is_siamese(model)) carnn__answer_declare_iwan(model);
    p->output = carnn__declare(store, "", "output.weight", 1, width, 0,
                               carnn__answer_is_siamese(model) ? CARNN__INIT_FILL
                                                               : CARNN__INIT_GLOROT, 5.0f);
    if (!carnn__answer_ranks(model)) /* a rank does not depend on it */
        p->output_bias = carnn__declare(store, "", "output.bias", 1, 1, 1, CARNN__INIT_ZERO, 0.0f);
    store->fixed = 1;
    if (!model->desc.tune_vectors)
        model->word_table = carnn__declare(store, "", "word.weight", V, e, 0, CARNN__INIT_NORMAL,
                                           0.1f);
    p->idf = carnn__declare(store, "", "word.idf", 1, V, 0, CARNN__INIT_ZERO, 0.0f);
    return CARNN_OK;
}

/* FNV-1a, whose weak upper bits are then mixed: the same for a word in every process. */
static uint64_t carnn__hash(const char *s, size_t length, int fold) {
    uint64_t hash = 0xCBF29CE484222325u;
    size_t i;
    for (i = 0; i < length; i++) hash = (hash ^ carnn__folded(s[i], fold)) * 0x100000001B3u;
    return carnn__mix(hash);
}

/* The number of a word; one that the model does not know has the number of its hash. */
static uint32_t carnn__answer_word(const carnn_model *model, carnn__span word) {
    uint32_t id = carnn__names_find_folded(&model->words, word.at, word.length, 1);
    if (id != CARNN__NOWHERE) return id;
    return (uint32_t)(carnn__hash(word.at, word.length, 1) % CARNN__UNKNOWN);
}

/* The words of a sentence, at most CARNN__SENTENCE_WORDS: their number; writes them where `ids` is
   not NULL. */
static size_t carnn__answer_words(const carnn_model *model, carnn__span text, uint32_t *ids) {
    carnn__words w = carnn__words_of(CARNN__TOKENS, text.at, text.length);
    size_t n;
    for (n = 0; n < CARNN__SENTENCE_WORDS && carnn__next_word(&w); n++)
        if (ids) ids[n] = carnn__answer_word(model, w.word);
    return n;
}

/* idf of a word that occurs k times among K words of training data: log(K / k) / log K. */
static void carnn__answer_init(carnn_model *model, const carnn_dataset *data) {
    carnn__store *store = &model->params;
    float *idf = carnn__piece(store, store->value, model->answer.idf);
    size_t i, V = model->words.count;
    double all = 0.0;
    for (i = 0; i < data->text_count; i++) {
        carnn__span text = carnn__text(data, i);
        carnn__words w = carnn__words_of(CARNN__TOKENS, text.at, text.length);
        for (; carnn__next_word(&w); all += 1.0) idf[carnn__answer_word(model, w.word)] += 1.0f;
    }
    for (i = 0; i < V; i++)
        idf[i] = i < CARNN__UNKNOWN || idf[i] < 1.0f || all < 2.0
                     ? 1.0f : (float)(1.0 - log((double)idf[i]) / log(all));
    carnn__cell_init_bias(&model->cells[0], store);
    carnn__cell_init_bias(&model->cells[1], store);
}

#ifndef CARNN_NO_TEXT

static carnn_status carnn__answer_add_words(carnn__vocabulary *v, const carnn_dataset *data,
                                            size_t times, carnn_error *error) {
    carnn_status status = CARNN_OK;
    size_t i;
    for (i = 0; !status && i < data->text_count; i++) {
        carnn__span text = carnn__text(data, i);
        status = carnn__vocabulary_add(v, CARNN__TOKENS, text.at, text.length, times, error);
    }
    return status;
}

static carnn_status carnn__answer_build(carnn_model *model, const carnn_dataset *data,
                                        carnn_error *error) {
    carnn__vocabulary v;
    size_t least = (size_t)model->desc.min_count, i;
    carnn_status status = carnn__vocabulary_open(&v, &model->allocator, carnn__answer_reserved,
                                                 CARNN__COUNT(carnn__answer_reserved), error);
    if (!model->desc.vector_count) model->desc.tune_vectors = 1;
    if (!status) status = carnn__answer_add_words(&v, data, 1, error);
    for (i = 0; !status && model->desc.vector_count && i < model->desc.known_count; i++)
        if (model->desc.known[i])
            status = carnn__answer_add_words(&v, model->desc.known[i], least, error);
    if (!status) return carnn__vocabulary_close(&v, least, &model->words, error);
    carnn__vocabulary_free(&v);
    return status;
}

#else
#define carnn__answer_build NULL
#endif

/* --- data made ready for a model ------------------------------------------------------------- */

static void carnn__answer_close(carnn__work *work) {
    carnn__answer *d = (carnn__answer *)work->state;
    const carnn_allocator *a = &work->allocator;
    if (!d) return;
    carnn__free(a, d->texts.ids);
    carnn__free(a, d->texts.at);
    carnn__free(a, d->pieces);
    carnn__free(a, d->group_piece);
    carnn__free(a, d->order);
    carnn__free(a, d->queue);
    carnn__free(a, d->batch_start);
    carnn__free(a, d->score);
    carnn__free(a, d->voted);
    carnn__free(a, d->ranked);
    carnn__free(a, d->stem);
    carnn__free(a, d->local);
    carnn__free(a, d->ramp);
    carnn__free(a, d);
    work->state = NULL;
}

/* The words of all texts. */
static carnn_status carnn__answer_texts(carnn__answer *d, const carnn__work *work,
                                        carnn_error *error) {
    const carnn_allocator *a = &work->allocator;
    const carnn_dataset *data = work->data;
    size_t i, total = 0;
    d->texts.count = data->text_count;
    d->texts.at = (size_t *)carnn__alloc(a, data->text_count + 1, sizeof(size_t));
    if (!d->texts.at) return carnn__out_of_memory(error);
    for (i = 0; i < data->text_count; i++) {
        d->texts.at[i] = total;
        total += carnn__answer_words(work->model, carnn__text(data, i), NULL);
    }
    d->texts.at[i] = total;
    d->texts.ids = (uint32_t *)carnn__alloc(a, total, sizeof(uint32_t));
    if (!d->texts.ids) return carnn__out_of_memory(error);
    for (i = 0; i < data->text_count; i++)
        carnn__answer_words(work->model, carnn__text(data, i), d->texts.ids + d->texts.at[i]);
    return CARNN_OK;
}

static size_t carnn__answer_length(const carnn__answer *d, size_t text) {
    return d->texts.at[text + 1] - d->texts.at[text];
}

/* Words of a pair, and floats of its alignment matrices. */
static size_t carnn__pair_rows(const carnn__answer *d, const carnn__pair *p) {
    return carnn__answer_length(d, p->question) + carnn__answer_length(d, p->answer);
}

static size_t carnn__pair_cells(const carnn__answer *d, const carnn__pair *p) {
    return 2 * carnn__answer_length(d, p->question) * carnn__answer_length(d, p->answer);
}

/* Cuts the groups into pieces; returns their number. Without memory for them it only counts. */
static size_t carnn__answer_cut(carnn__answer *d, const carnn_dataset *data) {
    size_t group, i, count = 0, rows = 0, cells = 0, first = 0;
    for (group = 0; group < data->group_count; group++) {
        if (d->pieces) d->group_piece[group] = count;
        for (i = data->group_start[group]; i < data->group_start[group + 1]; i++) {
            const carnn__pair *p = &data->pairs[i];
            size_t r = carnn__pair_rows(d, p), c = carnn__pair_cells(d, p);
            if (i == data->group_start[group] || p->question != p[-1].question ||
                i - first == CARNN__ANSWER_PIECE || rows + r > CARNN__ANSWER_ROWS ||
                cells + c > CARNN__ANSWER_CELLS) {
                first = i;
                rows = cells = 0;
                if (d->pieces) d->pieces[count].pair = i;
                count++;
            }
            if (d->pieces) d->pieces[count - 1].count = (uint32_t)(i - first + 1);
            rows += r;
            cells += c;
        }
    }
    if (d->pieces) d->group_piece[group] = count;
    return count;
}

/* The largest batch that any order of the questions can make. */
static void carnn__answer_limits(carnn__answer *d, const carnn__work *work) {
    const carnn_dataset *data = work->data;
    size_t i, rows = 0, cells = 0, longest_cells = 0;
    d->max_steps = 1;
    for (i = 0; i < data->pair_count; i++) {
        const carnn__pair *p = &data->pairs[i];
        size_t c = carnn__pair_cells(d, p);
        d->max_steps = carnn__max(d->max_steps, carnn__answer_length(d, p->question));
        d->max_steps = carnn__max(d->max_steps, carnn__answer_length(d, p->answer));
        longest_cells = carnn__max(longest_cells, c);
        rows += carnn__pair_rows(d, p);
        cells += c;
    }
    d->max_pairs = carnn__min(data->pair_count, (size_t)work->batch + CARNN__ANSWER_PIECE);
    d->max_rows = carnn__min(rows, CARNN__ANSWER_ROWS);
    d->max_cells = carnn__min(cells, carnn__max(CARNN__ANSWER_CELLS, longest_cells));
    d->max_inputs = carnn__min(d->max_rows, 2 * work->model->words.count);
}

/* Right and wrong pairs weigh the same in all, where there are both. */
static void carnn__answer_balance(carnn__answer *d, const carnn_dataset *data) {
    double right = 0.0, all = (double)data->pair_count;
    size_t i;
    for (i = 0; i < data->pair_count; i++) right += data->pairs[i].label;
    d->class_weight[0] = d->class_weight[1] = 1.0f;
    if (right < 1.0 || right >= all) return;
    d->class_weight[0] = (float)(0.5 * all / (all - right));
    d->class_weight[1] = (float)(0.5 * all / right);
}

/* Words are the same if their first letters are. Those that stand for words that the model does
   not know are the same only if they are one. */
static uint32_t carnn__answer_stem(const carnn_model *model, size_t word) {
    const char *name = carnn__names_get(&model->words, word);
    size_t length = carnn__names_length(&model->words, word), i;
    int64_t letters = 0;
    for (i = 0; i < length && word >= CARNN__UNKNOWN; i++) {
        letters += ((unsigned char)name[i] & 0xC0) != 0x80; /* UTF-8: bytes that begin a letter */
        if (letters > model->desc.overlap) break;
    }
    return (uint32_t)carnn__hash(name, word < CARNN__UNKNOWN ? length : i, 1);
}

/* What depends on the model alone. */
static void carnn__answer_ready(carnn__answer *d, const carnn_model *model) {
    size_t i, V = model->words.count;
    for (i = 0; i < V; i++) d->stem[i] = carnn__answer_stem(model, i);
    memset(d->local, 0xFF, 2 * V * sizeof(uint32_t));
    carnn__encoder_ramp(d->ramp, model->cells[0].e);
}

/* The lists that are not carved; all but those of texts. */
static carnn_status carnn__answer_lists(carnn__answer *d, const carnn__work *work,
                                        carnn_error *error) {
    const carnn_allocator *a = &work->allocator;
    const carnn_dataset *data = work->data;
    size_t pieces = carnn__answer_cut(d, data), largest = 0, i, V = work->model->words.count;
    for (i = 0; i < data->group_count; i++)
        largest = carnn__max(largest, data->group_start[i + 1] - data->group_start[i]);
    d->pieces = (carnn__answer_piece *)carnn__alloc(a, pieces, sizeof *d->pieces);
    d->group_piece = (size_t *)carnn__alloc(a, data->group_count + 1, sizeof(size_t));
    d->order = (uint32_t *)carnn__alloc(a, data->group_count, sizeof(uint32_t));
    d->queue = (uint32_t *)carnn__alloc(a, pieces, sizeof(uint32_t));
    d->batch_start = (size_t *)carnn__alloc(a, pieces + 1, sizeof(size_t));
    d->score = (float *)carnn__alloc(a, data->pair_count, sizeof(float));
    d->voted = (float *)carnn__alloc(a, data->pair_count, sizeof(float));
    d->ranked = (uint32_t *)carnn__alloc(a, largest, sizeof(uint32_t));
    d->stem = (uint32_t *)carnn__alloc(a, V, sizeof(uint32_t));
    d->local = (uint32_t *)carnn__alloc(a, 2 * V, sizeof(uint32_t));
    d->ramp = (float *)carnn__alloc(a, work->model->cells[0].e, sizeof(float));
    if (!d->pieces || !d->group_piece || !d->order || !d->queue || !d->batch_start || !d->score ||
        !d->voted || !d->ranked || !d->stem || !d->local || !d->ramp)
        return carnn__out_of_memory(error);
    carnn__answer_cut(d, data);
    carnn__answer_ready(d, work->model);
    return CARNN_OK;
}

static carnn_status carnn__answer_open(carnn__work *work, carnn_error *error) {
    carnn__answer *d = (carnn__answer *)carnn__alloc_zero(&work->allocator, 1, sizeof *d);
    carnn_status status;
    work->state = d;
    if (!d) return carnn__out_of_memory(error);
    status = carnn__answer_texts(d, work, error);
    if (!status) status = carnn__answer_lists(d, work, error);
    if (status) {
        carnn__answer_close(work);
        return status;
    }
    d->shares = carnn__answer_shares(work->model);
    carnn__answer_balance(d, work->data);
    carnn__answer_limits(d, work);
    return CARNN_OK;
}

static void carnn__answer_carve_lists(carnn__answer *d, carnn__arena *arena) {
    size_t P = d->max_pairs, S = 2 * P, R = d->max_rows, i;
    uint32_t **of_sentence[] = {&d->sequence, &d->first, &d->length, &d->rank, &d->place,
                                &d->other};
    uint32_t **of_row[] = {&d->ids, &d->index[0], &d->index[1], &d->reversed, &d->row[0],
                           &d->row[1]};
    d->pair = (uint32_t *)carnn__take(arena, P, sizeof(uint32_t));
    d->cell_at = (size_t *)carnn__take(arena, P, sizeof(size_t));
    d->input = (uint32_t *)carnn__take(arena, d->max_inputs, sizeof(uint32_t));
    d->at = (size_t *)carnn__take(arena, S + 1, sizeof(size_t));
    d->start = (size_t *)carnn__take(arena, d->max_steps + 2, sizeof(size_t));
    for (i = 0; i < CARNN__COUNT(of_sentence); i++)
        *of_sentence[i] = (uint32_t *)carnn__take(arena, S, sizeof(uint32_t));
    for (i = 0; i < CARNN__COUNT(of_row); i++)
        *of_row[i] = (uint32_t *)carnn__take(arena, R, sizeof(uint32_t));
}

static void carnn__answer_carve_iwan(carnn__answer *d, const carnn__work *work,
                                     carnn__arena *arena) {
    const carnn_model *model = work->model;
    size_t P = d->max_pairs, R = d->max_rows, h = (size_t)model->desc.hidden, D = 2 * h;
    size_t F = 2 * carnn__answer_sum_width(model);
    int skips = carnn__answer_skips(model);
    d->s = carnn__floats(arena, R, D);
    d->k = skips ? carnn__floats(arena, R, D) : d->s;
    d->a = carnn__floats(arena, R, D);
    d->E = carnn__floats(arena, 1, d->max_cells);
    d->share = carnn__floats(arena, 1, R);
    d->weight = carnn__floats(arena, 1, R);
    d->mean = carnn__floats(arena, 2 * P, D);
    d->bias = carnn__floats(arena, 2 * P, h);
    d->g = carnn__floats(arena, R, h);
    d->attend = carnn__floats(arena, 1, carnn__packed_size(h, D));
    d->f = carnn__floats(arena, P, F);
    if (!work->g) return;
    d->ds = carnn__floats(arena, R, D);
    d->dk = carnn__floats(arena, skips ? R : 0, D);
    d->da = carnn__floats(arena, R, D);
    d->dE = carnn__floats(arena, 1, d->max_cells);
    d->dweight = carnn__floats(arena, 1, R);
    d->dmean = carnn__floats(arena, 2 * P, D);
    d->dbias = carnn__floats(arena, 2 * P, h);
    d->dg = carnn__floats(arena, R, h);
    d->df = carnn__floats(arena, P, F);
}

static void carnn__answer_carve_siamese(carnn__answer *d, const carnn__work *work,
                                        carnn__arena *arena) {
    size_t S = 2 * d->max_pairs, D = 2 * (size_t)work->model->desc.hidden;
    d->v = carnn__floats(arena, S, D);
    if (work->g) d->dv = carnn__floats(arena, S, D);
}

static void carnn__answer_carve(carnn__work *work, carnn__arena *arena) {
    carnn__answer *d = (carnn__answer *)work->state;
    const carnn_model *model = work->model;
    size_t P = d->max_pairs, R = d->max_rows, U = d->max_inputs, in = model->cells[0].e, i;
    size_t e = (size_t)model->desc.embedding + carnn__answer_overlaps(model);
    size_t h = (size_t)model->desc.hidden, width = carnn__answer_top_width(model);
    carnn__answer_carve_lists(d, arena);
    d->overlap = carnn__floats(arena, P, CARNN__OVERLAPS);
    d->words = carnn__floats(arena, U, e);
    d->x = carnn__floats(arena, U, in);
    d->c = carnn__floats(arena, 2 * P, in);
    for (i = 0; i < 2; i++)
        carnn__cell_plan(&d->cell[i], &model->cells[i], &model->params, work->w, work->g, arena, U,
                         R, 2 * P);
    d->top = carnn__floats(arena, P, width);
    d->z = carnn__floats(arena, 1, P);
    if (work->g) {
        d->dwords = carnn__floats(arena, U, e);
        d->dx = carnn__floats(arena, U, in);
        d->dc = carnn__floats(arena, 2 * P, in);
        for (i = 0; i < 2; i++) d->dout[i] = carnn__floats(arena, R, h);
        d->dtop = carnn__floats(arena, P, width);
        d->dz = carnn__floats(arena, 1, P);
    }
    if (carnn__answer_is_siamese(model)) carnn__answer_carve_siamese(d, work, arena);
    else carnn__answer_carve_iwan(d, work, arena);
}

/* Whole questions, until there are enough pairs or the next piece may not fit. */
static size_t carnn__answer_plan(carnn__work *work, uint64_t key) {
    carnn__answer *d = (carnn__answer *)work->state;
    size_t i, j, groups = work->data->group_count, count = 0, batches = 0;
    size_t pairs = 0, rows = 0, cells = 0;
    for (i = 0; i < groups; i++) d->order[i] = (uint32_t)i;
    if (key) carnn__shuffle(key, d->order, groups);
    for (i = 0; i < groups; i++)
        for (j = d->group_piece[d->order[i]]; j < d->group_piece[d->order[i] + 1]; j++)
            d->queue[count++] = (uint32_t)j;
    for (i = 0; i < count; i++) {
        const carnn__answer_piece *piece = &d->pieces[d->queue[i]];
        size_t r = 0, c = 0;
        for (j = piece->pair; j < piece->pair + piece->count; j++) {
            r += carnn__pair_rows(d, &work->data->pairs[j]);
            c += carnn__pair_cells(d, &work->data->pairs[j]);
        }
        if (!i || pairs >= (size_t)work->batch || rows + r > d->max_rows ||
            cells + c > d->max_cells) {
            d->batch_start[batches++] = i;
            pairs = rows = cells = 0;
        }
        pairs += piece->count;
        rows += r;
        cells += c;
    }
    d->batch_start[batches] = count;
    return batches;
}

/* --- the words of a batch -------------------------------------------------------------------- */

static const float *carnn__answer_idf(const carnn__work *work) {
    return carnn__weight(work, work->model->answer.idf);
}

/* Is the word, or one that counts as the same, in the text? */
static unsigned carnn__answer_has(const carnn__answer *d, size_t text, uint32_t word) {
    size_t i, end = d->texts.at[text + 1];
    for (i = d->texts.at[text]; i < end && d->stem[d->texts.ids[i]] != d->stem[word];) i++;
    return i < end;
}

/* Adds a sentence, of which `beside` is the other one: its words become inputs of the batch. */
static void carnn__answer_sentence(carnn__work *work, size_t text, size_t beside) {
    carnn__answer *d = (carnn__answer *)work->state;
    size_t i, at = d->at[d->sentences];
    int told = carnn__answer_overlaps(work->model) > 0;
    for (i = d->texts.at[text]; i < d->texts.at[text + 1]; i++) {
        uint32_t word = d->texts.ids[i];
        uint32_t input = 2 * word + (told ? carnn__answer_has(d, beside, word) : 0);
        if (d->local[input] == CARNN__NOWHERE) {
            d->local[input] = (uint32_t)d->inputs;
            d->input[d->inputs++] = input;
        }
        d->ids[at++] = d->local[input];
    }
    d->at[++d->sentences] = at;
}

/* The share of the question's words that the answer has, by number and by idf. */
static void carnn__answer_overlap(carnn__work *work, size_t pair) {
    carnn__answer *d = (carnn__answer *)work->state;
    const float *idf = carnn__answer_idf(work);
    float *overlap = d->overlap + pair * CARNN__OVERLAPS, sum = 0.0f, found = 0.0f, both = 0.0f;
    size_t i, from = d->at[2 * pair], to = d->at[2 * pair + 1];
    for (i = from; i < to; i++) {
        uint32_t input = d->input[d->ids[i]];
        sum += idf[input / 2];
        if (!(input & 1)) continue;
        found += idf[input / 2];
        both += 1.0f;
    }
    overlap[0] = to > from ? both / (float)(to - from) : 0.0f;
    overlap[1] = sum > 0.0f ? found / sum : 0.0f;
}

/* A sequence for each sentence, or one for the question of all pairs of a piece. */
static void carnn__answer_sequences(carnn__answer *d) {
    size_t piece, i, pair = 0, B = 0, b, t;
    for (piece = 0; piece < d->piece_count; piece++)
        for (i = 0; i < d->pieces[d->piece[piece]].count; i++, pair++) {
            size_t s = 2 * pair;
            if (i && d->shares) d->sequence[s] = d->sequence[s - 2];
            else d->first[B] = (uint32_t)s, d->sequence[s] = (uint32_t)B++;
            d->first[B] = (uint32_t)s + 1, d->sequence[s + 1] = (uint32_t)B++;
        }
    for (b = 0; b < B; b++)
        d->length[b] = (uint32_t)(d->at[d->first[b] + 1] - d->at[d->first[b]]);
    carnn__pack_sequences(&d->packed, d->length, B, d->rank, d->start);
    carnn__reverse_index(&d->packed, d->reversed);
    for (b = 0; b < B; b++) {
        size_t s = d->first[d->rank[b]];
        d->place[d->rank[b]] = (uint32_t)b;
        d->other[b] = (uint32_t)(s ^ 1);
        for (t = 0; t < d->length[d->rank[b]]; t++)
            d->index[0][d->start[t] + b] = d->ids[d->at[s] + t];
    }
    for (i = 0; i < d->packed.rows; i++) d->index[1][i] = d->index[0][d->reversed[i]];
    for (i = 0; i < d->sentences; i++) {
        b = d->place[d->sequence[i]];
        for (t = 0; t < d->at[i + 1] - d->at[i]; t++) {
            d->row[0][d->at[i] + t] = (uint32_t)(d->start[t] + b);
            d->row[1][d->at[i] + t] = d->reversed[d->start[t] + b];
        }
    }
}

/* Lists the pairs, words and sequences of a batch. */
static void carnn__answer_collect(carnn__work *work, size_t number) {
    carnn__answer *d = (carnn__answer *)work->state;
    size_t i, j, cells = 0;
    d->pairs = d->sentences = d->inputs = d->at[0] = 0;
    d->piece = d->queue + d->batch_start[number];
    d->piece_count = d->batch_start[number + 1] - d->batch_start[number];
    for (i = 0; i < d->piece_count; i++) {
        const carnn__answer_piece *piece = &d->pieces[d->piece[i]];
        for (j = piece->pair; j < piece->pair + piece->count; j++) {
            const carnn__pair *p = &work->data->pairs[j];
            carnn__answer_sentence(work, p->question, p->answer);
            carnn__answer_sentence(work, p->answer, p->question);
            d->cell_at[d->pairs] = cells;
            cells += carnn__pair_cells(d, p);
            if (carnn__answer_overlaps(work->model)) carnn__answer_overlap(work, d->pairs);
            d->pair[d->pairs++] = (uint32_t)j;
        }
    }
    /* now: the next time another work may have used the arena, where the list of inputs is */
    for (i = 0; i < d->inputs; i++) d->local[d->input[i]] = CARNN__NOWHERE;
    carnn__answer_sequences(d);
}

/* Streams of a step's random numbers. */
enum { CARNN__ANSWER_DROP_WORDS = 1, CARNN__ANSWER_DROP_SUMS };

/* x (U, in): the words of the batch, projected. */
static void carnn__answer_inputs(carnn__work *work, uint64_t key) {
    carnn__answer *d = (carnn__answer *)work->state;
    const carnn_model *model = work->model;
    size_t e = (size_t)model->desc.embedding, more = carnn__answer_overlaps(model), i;
    size_t width = e + more, in = model->cells[0].e, U = d->inputs;
    const float *table = carnn__weight(work, model->word_table), *idf = carnn__answer_idf(work);
    for (i = 0; i < U; i++) {
        size_t word = d->input[i] / 2;
        float *to = d->words + i * width, both = d->input[i] & 1 ? 1.0f : 0.0f;
        memcpy(to, table + word * e, e * sizeof(float));
        if (!more) continue;
        to[e] = both;
        to[e + 1] = both * idf[word];
    }
    carnn__drop(work, d->words, U * width, key, CARNN__ANSWER_DROP_WORDS);
    carnn__matmul(work->engine, CARNN__NT, U, in, width, d->words, width,
                  carnn__weight(work, model->answer.project), width,
                  carnn__weight(work, model->answer.project_bias), d->x, in);
}

static void carnn__answer_inputs_back(carnn__work *work, uint64_t key) {
    carnn__answer *d = (carnn__answer *)work->state;
    const carnn_model *model = work->model;
    carnn__engine *e = work->engine;
    size_t columns = (size_t)model->desc.embedding, i, U = d->inputs;
    size_t width = columns + carnn__answer_overlaps(model), in = model->cells[0].e;
    carnn__matmul(e, CARNN__TN | CARNN__ADD, in, width, U, d->dx, in, d->words, width, NULL,
                  carnn__gradient(work, model->answer.project), width);
    carnn__column_sums(e, U, in, d->dx, in, carnn__gradient(work, model->answer.project_bias));
    if (!model->desc.tune_vectors) return;
    carnn__matmul(e, CARNN__NN, U, width, in, d->dx, in,
                  carnn__weight(work, model->answer.project), width, NULL, d->dwords, width);
    carnn__drop(work, d->dwords, U * width, key, CARNN__ANSWER_DROP_WORDS);
    for (i = 0; i < U; i++)
        e->k->add(d->dwords + i * width, carnn__gradient(work, model->word_table) +
                  (size_t)(d->input[i] / 2) * columns, columns);
}

/* --- the encoder ----------------------------------------------------------------------------- */

static carnn__encoder carnn__answer_encoder(const carnn__answer *d, size_t in) {
    carnn__encoder x;
    x.texts = d->packed.sequences;
    x.D = in;
    x.which = d->other;
    x.ids = d->ids;
    x.at = d->at;
    x.ramp = d->ramp;
    x.table = d->x;
    x.out = d->c;
    x.dtable = d->dx;
    x.dout = d->dc;
    return x;
}

/* From c to the mean of the words, or the way back: sums of 30 words shut the gates of a cell, and
   would tell it little more than how long the other sentence is. */
static void carnn__answer_average(carnn__answer *d, const carnn__kernels *k, float *c, size_t in) {
    size_t b;
    for (b = 0; b < d->packed.sequences; b++) {
        size_t words = d->at[d->other[b] + 1] - d->at[d->other[b]];
        if (words) k->scale(c + b * in, 1.0f / (float)words, in);
    }
}

/* States of both directions, in the order in which they are made, from x. */
static void carnn__answer_encode(carnn__work *work) {
    carnn__answer *d = (carnn__answer *)work->state;
    carnn__engine *e = work->engine;
    size_t i;
    if (d->cell[0].cell->d) {
        carnn__encoder x = carnn__answer_encoder(d, d->cell[0].cell->e);
        carnn__encode_texts(e, &x);
        carnn__answer_average(d, e->k, d->c, x.D);
    }
    for (i = 0; i < 2; i++) {
        carnn__cell_ready(&d->cell[i], e);
        carnn__cell_project(&d->cell[i], e, d->x, 0, d->inputs);
        carnn__cell_context(&d->cell[i], e, d->c, d->packed.sequences);
        carnn__cell_forward(&d->cell[i], e, &d->packed, d->index[i], NULL, NULL);
    }
}

/* From dout to dx and the gradients of the cells. */
static void carnn__answer_encode_back(carnn__work *work) {
    carnn__answer *d = (carnn__answer *)work->state;
    carnn__engine *e = work->engine;
    size_t in = d->cell[0].cell->e, i;
    memset(d->dx, 0, d->inputs * in * sizeof(float));
    memset(d->dc, 0, d->packed.sequences * in * sizeof(float));
    for (i = 0; i < 2; i++) {
        carnn__cell_backward(&d->cell[i], e, d->dout[i], d->dx);
        carnn__cell_context_back(&d->cell[i], e, d->dc);
        carnn__cell_project_back(&d->cell[i], e, d->dx);
    }
    if (d->cell[0].cell->d) {
        carnn__encoder x = carnn__answer_encoder(d, in);
        carnn__answer_average(d, e->k, d->dc, in);
        carnn__encode_texts_back(e, &x);
    }
}

/* --- iwan ------------------------------------------------------------------------------------ */

/* s (R, D): the states of both directions, sentence by sentence. */
static void carnn__answer_states(carnn__answer *d, size_t h) {
    size_t r, i;
    for (r = 0; r < d->at[d->sentences]; r++)
        for (i = 0; i < 2; i++)
            memcpy(d->s + (2 * r + i) * h, d->cell[i].scan.out + d->row[i][r] * h,
                   h * sizeof(float));
}

static void carnn__answer_states_back(carnn__answer *d, const carnn__kernels *k, size_t h) {
    size_t r, i;
    for (i = 0; i < 2; i++) memset(d->dout[i], 0, d->packed.rows * h * sizeof(float));
    for (r = 0; r < d->at[d->sentences]; r++)
        for (i = 0; i < 2; i++) k->add(d->ds + (2 * r + i) * h, d->dout[i] + d->row[i][r] * h, h);
}

/* What each word adds to the states of its sentence: k from s, and ds += from dk. */
static void carnn__answer_steps(carnn__answer *d, size_t h) {
    size_t i, r, j, D = 2 * h;
    for (i = 0; i < d->sentences; i++)
        for (r = d->at[i]; r < d->at[i + 1]; r++) {
            float *k = d->k + r * D;
            memcpy(k, d->s + r * D, D * sizeof(float));
            for (j = 0; j < h && r > d->at[i]; j++) k[j] -= d->s[(r - 1) * D + j];
            for (j = h; j < D && r + 1 < d->at[i + 1]; j++) k[j] -= d->s[(r + 1) * D + j];
        }
}

static void carnn__answer_steps_back(carnn__answer *d, size_t h) {
    size_t i, r, j, D = 2 * h;
    for (i = 0; i < d->sentences; i++)
        for (r = d->at[i]; r < d->at[i + 1]; r++) {
            const float *dk = d->dk + r * D;
            for (j = 0; j < D; j++) d->ds[r * D + j] += dk[j];
            for (j = 0; j < h && r > d->at[i]; j++) d->ds[(r - 1) * D + j] -= dk[j];
            for (j = h; j < D && r + 1 < d->at[i + 1]; j++) d->ds[(r + 1) * D + j] -= dk[j];
        }
}

/* The mean state of the sentence beside each one. */
static void carnn__answer_means(carnn__answer *d, const carnn__kernels *k, size_t D) {
    size_t i, r;
    memset(d->mean, 0, d->sentences * D * sizeof(float));
    for (i = 0; i < d->sentences; i++) {
        size_t n = d->at[(i ^ 1) + 1] - d->at[i ^ 1];
        for (r = d->at[i ^ 1]; r < d->at[(i ^ 1) + 1]; r++)
            k->add(d->s + r * D, d->mean + i * D, D);
        if (n) k->scale(d->mean + i * D, 1.0f / (float)n, D);
    }
}

static void carnn__answer_means_back(carnn__answer *d, const carnn__kernels *k, size_t D) {
    size_t i, r;
    for (i = 0; i < d->sentences; i++) {
        size_t n = d->at[(i ^ 1) + 1] - d->at[i ^ 1];
        if (n) k->scale(d->dmean + i * D, 1.0f / (float)n, D);
        for (r = d->at[i ^ 1]; r < d->at[(i ^ 1) + 1]; r++)
            k->add(d->dmean + i * D, d->ds + r * D, D);
    }
}

static carnn__compose carnn__answer_composer(const carnn__work *work, size_t sentence) {
    const carnn__answer *d = (const carnn__answer *)work->state;
    size_t D = 2 * (size_t)work->model->desc.hidden, at = d->at[sentence];
    size_t F = carnn__answer_sum_width(work->model);
    carnn__compose c;
    c.rows = d->at[sentence + 1] - at;
    c.D = D;
    c.orthogonal = !carnn__answer_is_direct(work->model);
    c.x = d->s + at * D;
    c.a = d->a + at * D;
    c.weight = d->weight + at;
    c.share = d->share + at;
    c.f = d->f + sentence * F;
    c.df = d->df + sentence * F;
    c.dx = d->ds + at * D;
    c.da = d->da + at * D;
    c.dweight = d->dweight + at;
    return c;
}

/* One pair: alignment, weights and sum of both sentences. */
static void carnn__answer_compare(void *job, size_t pair, size_t worker) {
    const carnn__work *work = (const carnn__work *)job;
    carnn__answer *d = (carnn__answer *)work->state;
    carnn__engine e = carnn__engine_of(work->engine, worker);
    size_t h = (size_t)work->model->desc.hidden, D = 2 * h, i;
    const float *v = carnn__weight(work, work->model->answer.attend_vector);
    float *E = d->E + d->cell_at[pair];
    for (i = 2 * pair; i < 2 * pair + 2; i++) {
        size_t at = d->at[i], m = d->at[i + 1] - at, to = d->at[i ^ 1];
        size_t n = d->at[(i ^ 1) + 1] - to;
        carnn__compose c = carnn__answer_composer(work, i);
        carnn__align(&e, m, n, D, d->s + at * D, d->s + to * D, E, d->a + at * D);
        E += m * n;
        carnn__matmul_packed(&e, 0, m, h, D, d->k + at * D, D, d->attend, d->bias + i * h,
                             d->g + at * h, h);
        e.k->tanh_n(d->g + at * h, d->g + at * h, m * h);
        carnn__matmul(&e, CARNN__NT, 1, m, h, v, h, d->g + at * h, h, NULL, d->weight + at, m);
        if (m) e.k->softmax(d->weight + at, m);
        e.k->compose(&c);
    }
}

/* The way back of a pair: from df to ds, dg, and dweight before the softmax. */
static void carnn__answer_compare_back(void *job, size_t pair, size_t worker) {
    const carnn__work *work = (const carnn__work *)job;
    carnn__answer *d = (carnn__answer *)work->state;
    carnn__engine e = carnn__engine_of(work->engine, worker);
    size_t h = (size_t)work->model->desc.hidden, D = 2 * h, cell = d->cell_at[pair], i, r, j;
    const float *v = carnn__weight(work, work->model->answer.attend_vector);
    for (i = 2 * pair; i < 2 * pair + 2; i++) {
        size_t at = d->at[i], m = d->at[i + 1] - at;
        carnn__compose c = carnn__answer_composer(work, i);
        e.k->compose_back(&c);
        carnn__softmax_back(e.k, d->weight + at, d->dweight + at, m);
        for (r = at; r < at + m; r++)
            for (j = 0; j < h; j++) {
                float g = d->g[r * h + j];
                d->dg[r * h + j] = d->dweight[r] * v[j] * (1.0f - g * g);
            }
    }
    for (i = 2 * pair; i < 2 * pair + 2; i++) {
        size_t at = d->at[i], m = d->at[i + 1] - at, to = d->at[i ^ 1];
        size_t n = d->at[(i ^ 1) + 1] - to;
        carnn__align_back(&e, m, n, D, d->s + at * D, d->s + to * D, d->E + cell, d->da + at * D,
                          d->dE + cell, d->ds + at * D, d->ds + to * D);
        cell += m * n;
    }
}

/* From states to the hidden layer in top. */
static void carnn__answer_iwan(carnn__work *work, uint64_t key) {
    carnn__answer *d = (carnn__answer *)work->state;
    const carnn_model *model = work->model;
    carnn__engine *e = work->engine;
    size_t h = (size_t)model->desc.hidden, D = 2 * h, F = 2 * carnn__answer_sum_width(model);
    size_t width = carnn__answer_top_width(model), p;
    carnn__answer_states(d, h);
    if (carnn__answer_skips(model)) carnn__answer_steps(d, h);
    carnn__answer_means(d, e->k, D);
    carnn__matmul(e, CARNN__NT, d->sentences, h, D, d->mean, D,
                  carnn__weight(work, model->answer.attend_other), D, NULL, d->bias, h);
    carnn__pack(e, CARNN__NT, h, D, carnn__weight(work, model->answer.attend), D, d->attend);
    carnn__parallel(e->pool, d->pairs, carnn__answer_compare, work);
    carnn__drop(work, d->f, d->pairs * F, key, CARNN__ANSWER_DROP_SUMS);
    carnn__matmul(e, CARNN__NT, d->pairs, h, F, d->f, F,
                  carnn__weight(work, model->answer.hidden), F,
                  carnn__weight(work, model->answer.hidden_bias), d->top, width);
    for (p = 0; p < d->pairs; p++)
        e->k->tanh_n(d->top + p * width, d->top + p * width, h);
}

/* The weights of words: from dg to ds and the gradients of W1, W2 and v. */
static void carnn__answer_weights_back(carnn__work *work) {
    carnn__answer *d = (carnn__answer *)work->state;
    const carnn__answer_params *p = &work->model->answer;
    carnn__engine *e = work->engine;
    size_t h = (size_t)work->model->desc.hidden, D = 2 * h, R = d->at[d->sentences], i, r;
    int skips = carnn__answer_skips(work->model);
    carnn__matmul(e, CARNN__TN | CARNN__ADD, 1, h, R, d->dweight, 1, d->g, h, NULL,
                  carnn__gradient(work, p->attend_vector), h);
    carnn__matmul(e, CARNN__TN | CARNN__ADD, h, D, R, d->dg, h, d->k, D, NULL,
                  carnn__gradient(work, p->attend), D);
    carnn__matmul(e, skips ? CARNN__NN : CARNN__NN | CARNN__ADD, R, D, h, d->dg, h,
                  carnn__weight(work, p->attend), D, NULL, skips ? d->dk : d->ds, D);
    if (skips) carnn__answer_steps_back(d, h);
    memset(d->dbias, 0, d->sentences * h * sizeof(float));
    for (i = 0; i < d->sentences; i++)
        for (r = d->at[i]; r < d->at[i + 1]; r++) e->k->add(d->dg + r * h, d->dbias + i * h, h);
    carnn__matmul(e, CARNN__TN | CARNN__ADD, h, D, d->sentences, d->dbias, h, d->mean, D, NULL,
                  carnn__gradient(work, p->attend_other), D);
    carnn__matmul(e, CARNN__NN, d->sentences, D, h, d->dbias, h,
                  carnn__weight(work, p->attend_other), D, NULL, d->dmean, D);
    carnn__answer_means_back(d, e->k, D);
}

/* From dtop to dout. */
static void carnn__answer_iwan_back(carnn__work *work, uint64_t key) {
    carnn__answer *d = (carnn__answer *)work->state;
    const carnn__answer_params *a = &work->model->answer;
    carnn__engine *e = work->engine;
    size_t h = (size_t)work->model->desc.hidden, F = 2 * carnn__answer_sum_width(work->model);
    size_t width = carnn__answer_top_width(work->model), p, j;
    for (p = 0; p < d->pairs; p++)
        for (j = 0; j < h; j++) {
            float y = d->top[p * width + j];
            d->dtop[p * width + j] *= 1.0f - y * y;
        }
    carnn__matmul(e, CARNN__TN | CARNN__ADD, h, F, d->pairs, d->dtop, width, d->f, F, NULL,
                  carnn__gradient(work, a->hidden), F);
    carnn__column_sums(e, d->pairs, h, d->dtop, width, carnn__gradient(work, a->hidden_bias));
    carnn__matmul(e, CARNN__NN, d->pairs, F, h, d->dtop, width, carnn__weight(work, a->hidden),
                  F, NULL, d->df, F);
    carnn__drop(work, d->df, d->pairs * F, key, CARNN__ANSWER_DROP_SUMS);
    carnn__parallel(e->pool, d->pairs, carnn__answer_compare_back, work);
    carnn__answer_weights_back(work);
    carnn__answer_states_back(d, e->k, h);
}

/* --- siamese --------------------------------------------------------------------------------- */

/* The row of the last state of a sentence, the same in both directions; CARNN__NOWHERE where it has
   no words. */
static uint32_t carnn__answer_last_row(const carnn__answer *d, size_t sentence) {
    size_t from = d->at[sentence], to = d->at[sentence + 1];
    return to > from ? d->row[0][to - 1] : CARNN__NOWHERE;
}

/* v (2 P, D), the last states of both directions, and the cosines of the pairs, in top. */
static void carnn__answer_siamese(carnn__work *work) {
    carnn__answer *d = (carnn__answer *)work->state;
    size_t h = (size_t)work->model->desc.hidden, width = carnn__answer_top_width(work->model), i, s;
    memset(d->v, 0, d->sentences * 2 * h * sizeof(float));
    for (s = 0; s < d->sentences; s++) {
        uint32_t row = carnn__answer_last_row(d, s);
        for (i = 0; i < 2 && row != CARNN__NOWHERE; i++)
            memcpy(d->v + (2 * s + i) * h, d->cell[i].scan.out + row * h, h * sizeof(float));
    }
    for (s = 0; s < d->pairs; s++)
        d->top[s * width] = carnn__cosine(work->engine->k, 2 * h, d->v + 4 * s * h,
                                          d->v + (4 * s + 2) * h);
}

static void carnn__answer_siamese_back(carnn__work *work) {
    carnn__answer *d = (carnn__answer *)work->state;
    const carnn__kernels *k = work->engine->k;
    size_t h = (size_t)work->model->desc.hidden, width = carnn__answer_top_width(work->model), i, s;
    memset(d->dv, 0, d->sentences * 2 * h * sizeof(float));
    for (s = 0; s < d->pairs; s++)
        carnn__cosine_back(k, 2 * h, d->v + 4 * s * h, d->v + (4 * s + 2) * h, d->dtop[s * width],
                           d->dv + 4 * s * h, d->dv + (4 * s + 2) * h);
    for (i = 0; i < 2; i++) memset(d->dout[i], 0, d->packed.rows * h * sizeof(float));
    for (s = 0; s < d->sentences; s++) {
        uint32_t row = carnn__answer_last_row(d, s);
        for (i = 0; i < 2 && row != CARNN__NOWHERE; i++)
            k->add(d->dv + (2 * s + i) * h, d->dout[i] + row * h, h);
    }
}

/* --- scores and losses ----------------------------------------------------------------------- */

/* The scores z of the batch. */
static void carnn__answer_forward(carnn__work *work, uint64_t key) {
    carnn__answer *d = (carnn__answer *)work->state;
    const carnn_model *model = work->model;
    size_t width = carnn__answer_top_width(model), more = carnn__answer_overlaps(model), p;
    carnn__answer_inputs(work, key);
    carnn__answer_encode(work);
    if (carnn__answer_is_siamese(model)) carnn__answer_siamese(work);
    else carnn__answer_iwan(work, key);
    for (p = 0; p < d->pairs; p++)
        memcpy(d->top + (p + 1) * width - more, d->overlap + p * CARNN__OVERLAPS,
               more * sizeof(float));
    carnn__matmul(work->engine, CARNN__NT, d->pairs, 1, width, d->top, width,
                  carnn__weight(work, model->answer.output), width,
                  carnn__answer_ranks(model) ? NULL
                                             : carnn__weight(work, model->answer.output_bias),
                  d->z, 1);
}

/* From dz to all gradients. */
static void carnn__answer_backward(carnn__work *work, uint64_t key) {
    carnn__answer *d = (carnn__answer *)work->state;
    const carnn_model *model = work->model;
    carnn__engine *e = work->engine;
    size_t width = carnn__answer_top_width(model);
    carnn__matmul(e, CARNN__TN | CARNN__ADD, 1, width, d->pairs, d->dz, 1, d->top, width, NULL,
                  carnn__gradient(work, model->answer.output), width);
    if (!carnn__answer_ranks(model))
        carnn__column_sums(e, d->pairs, 1, d->dz, 1,
                           carnn__gradient(work, model->answer.output_bias));
    carnn__matmul(e, CARNN__NN, d->pairs, width, 1, d->dz, 1,
                  carnn__weight(work, model->answer.output), width, NULL, d->dtop, width);
    if (carnn__answer_is_siamese(model)) carnn__answer_siamese_back(work);
    else carnn__answer_iwan_back(work, key);
    carnn__answer_encode_back(work);
    carnn__answer_inputs_back(work, key);
}

/* Cross entropy of sigmoid(z), summed over the batch; dz is the gradient of its mean. */
static double carnn__answer_pair_loss(carnn__work *work) {
    carnn__answer *d = (carnn__answer *)work->state;
    double sum = 0.0, smoothing = work->g ? work->smoothing : 0.0;
    size_t p;
    for (p = 0; p < d->pairs; p++) {
        uint32_t label = work->data->pairs[d->pair[p]].label;
        double z = (double)d->z[p], y = label * (1.0 - smoothing) + 0.5 * smoothing;
        double weight = (double)d->class_weight[label];
        sum += weight * (fmax(z, 0.0) - z * y + log1p(exp(-fabs(z))));
        if (work->g) {
            work->engine->k->sigmoid_n(d->z + p, d->dz + p, 1);
            d->dz[p] = (float)(weight * ((double)d->dz[p] - y) / (double)d->pairs);
        }
    }
    return sum;
}

/* The right ones of the `count` pairs from `from` on. */
static size_t carnn__answer_right(const carnn__work *work, size_t from, size_t count) {
    const carnn__answer *d = (const carnn__answer *)work->state;
    size_t p, right = 0;
    for (p = from; p < from + count; p++) right += work->data->pairs[d->pair[p]].label;
    return right;
}

/* Cross entropy of the softmax over the sentences of each question: the mean over questions, times
   the pairs of the batch; dz is the gradient of the mean. */
static double carnn__answer_rank_loss(carnn__work *work) {
    carnn__answer *d = (carnn__answer *)work->state;
    double sum = 0.0, smoothing = work->g ? work->smoothing : 0.0;
    size_t piece, p, from = 0, questions = 0;
    float *q = work->g ? d->dz : d->top; /* top has served */
    if (work->g) memset(d->dz, 0, d->pairs * sizeof(float));
    for (piece = 0; piece < d->piece_count; piece++) {
        size_t n = d->pieces[d->piece[piece]].count, right = carnn__answer_right(work, from, n);
        if (right && right < n) {
            double lse;
            memcpy(q + from, d->z + from, n * sizeof(float));
            lse = (double)work->engine->k->softmax(q + from, n);
            for (p = from; p < from + n; p++) {
                double y = work->data->pairs[d->pair[p]].label / (double)right;
                y = y * (1.0 - smoothing) + smoothing / (double)n;
                sum += y * (lse - (double)d->z[p]);
                q[p] = (float)((double)q[p] - y);
            }
            questions++;
        }
        from += n;
    }
    if (!questions) return 0.0;
    if (work->g) work->engine->k->scale(d->dz, 1.0f / (float)questions, d->pairs);
    return sum / (double)questions * (double)d->pairs;
}

/* --- metrics ---------------------------------------------------------------------------------
   As trec_eval has them: sentences by falling score; AP is the mean over the right ones of (right
   ones at or above it) / its rank, RR one over the rank of the first right one. Of equal scores the
   wrong ones go first. A question without a right one does not count. */

/* Does pair a stand before pair b? */
static int carnn__answer_before(const carnn__answer *d, const carnn_dataset *data, size_t a,
                                size_t b) {
    if (d->score[a] > d->score[b] || d->score[a] < d->score[b]) return d->score[a] > d->score[b];
    if (data->pairs[a].label != data->pairs[b].label)
        return data->pairs[a].label < data->pairs[b].label;
    return a < b;
}

/* Lets item `i` of a heap of n sink, in which the last one in the ranking is on top. */
static void carnn__answer_sink(const carnn__answer *d, const carnn_dataset *data, uint32_t *heap,
                               size_t i, size_t n) {
    uint32_t item = heap[i];
    size_t child;
    for (; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && carnn__answer_before(d, data, heap[child], heap[child + 1])) child++;
        if (!carnn__answer_before(d, data, item, heap[child])) break;
        heap[i] = heap[child];
    }
    heap[i] = item;
}

/* Pairs [from, to) in the order of their ranks: heap sort. */
static void carnn__answer_sort(carnn__answer *d, const carnn_dataset *data, size_t from,
                               size_t to) {
    uint32_t *heap = d->ranked, last;
    size_t i, n = to - from;
    for (i = 0; i < n; i++) heap[i] = (uint32_t)(from + i);
    for (i = n / 2; i-- > 0;) carnn__answer_sink(d, data, heap, i, n);
    while (n > 1) {
        last = heap[--n];
        heap[n] = heap[0];
        heap[0] = last;
        carnn__answer_sink(d, data, heap, 0, n);
    }
}

/* Tells of the pair `i`, which is the `sentence`-th of its question. */
static void carnn__answer_tell(const carnn__work *work, size_t i, size_t sentence) {
    double score = (double)((const carnn__answer *)work->state)->score[i];
    if (work->asked && work->asked->pair) {
        const carnn__pair *p = &work->data->pairs[i];
        carnn_pair_score told = {work->number, p->group, sentence, (int)p->label, score};
        work->asked->pair(&told, work->asked->user);
    }
    if (work->wanted) {
        carnn_prediction told = {i, 0, NULL, NULL, score, 0};
        work->wanted->example(&told, work->wanted->user);
    }
}

/* Adds the ranking of pairs [from, to) to the tally. */
static void carnn__answer_count(carnn__work *work, size_t from, size_t to, carnn__tally *tally) {
    carnn__answer *d = (carnn__answer *)work->state;
    const carnn_dataset *data = work->data;
    double precision = 0.0, reciprocal = 0.0, right = 0.0;
    size_t i;
    for (i = from; i < to; i++) carnn__answer_tell(work, i, i - from);
    carnn__answer_sort(d, data, from, to);
    for (i = 0; i < to - from; i++) {
        if (!data->pairs[d->ranked[i]].label) continue;
        right += 1.0;
        precision += right / (double)(i + 1);
        if (right < 1.5) reciprocal = 1.0 / (double)(i + 1);
    }
    if (right < 0.5) return;
    tally->sum[CARNN__ANSWER_AP] += precision / right;
    tally->sum[CARNN__ANSWER_RR] += reciprocal;
    tally->sum[CARNN__ANSWER_QUESTIONS] += 1.0;
    carnn__tell_part(work, precision / right, 1.0);
}

/* The questions of a batch: in scoring when their last piece is there, in training, where a batch
   may be the first after a stop, piece by piece. */
static void carnn__answer_tally(carnn__work *work, carnn__tally *tally) {
    carnn__answer *d = (carnn__answer *)work->state;
    const carnn_dataset *data = work->data;
    size_t i;
    for (i = 0; i < d->piece_count; i++) {
        const carnn__answer_piece *piece = &d->pieces[d->piece[i]];
        size_t group = data->pairs[piece->pair].group, end = piece->pair + piece->count;
        if (work->g) carnn__answer_count(work, piece->pair, end, tally);
        else if (end == data->group_start[group + 1])
            carnn__answer_count(work, data->group_start[group], end, tally);
    }
    tally->examples += d->pairs;
}

static double carnn__answer_loss(carnn__work *work) {
    return carnn__answer_ranks(work->model) ? carnn__answer_rank_loss(work)
                                            : carnn__answer_pair_loss(work);
}

static void carnn__answer_batch(carnn__work *work, size_t number, uint64_t key,
                                carnn__tally *tally) {
    carnn__answer *d = (carnn__answer *)work->state;
    size_t p;
    carnn__answer_collect(work, number);
    carnn__answer_forward(work, key);
    for (p = 0; p < d->pairs; p++) d->score[d->pair[p]] = d->z[p];
    tally->loss += carnn__answer_loss(work);
    if (work->g) carnn__answer_backward(work, key);
    carnn__answer_tally(work, tally);
}

/* The mean of the models' scores. */
static void carnn__answer_vote(carnn__work *const *works, size_t count, size_t number,
                               carnn__tally *tally) {
    carnn__answer *d = (carnn__answer *)works[0]->state;
    float *own = d->score;
    size_t p, m;
    (void)number;
    d->score = d->voted;
    for (p = 0; p < d->pairs; p++) {
        double sum = 0.0;
        for (m = 0; m < count; m++) sum += (double)((carnn__answer *)works[m]->state)->z[p];
        d->z[p] = d->score[d->pair[p]] = (float)(sum / (double)count);
    }
    tally->loss += carnn__answer_loss(works[0]);
    carnn__answer_tally(works[0], tally);
    d->score = own;
}

static void carnn__answer_score(const carnn__tally *tally, carnn_scores *scores) {
    double questions = fmax(tally->sum[CARNN__ANSWER_QUESTIONS], 1.0);
    scores->metric[0].value = tally->sum[CARNN__ANSWER_AP] / questions;
    scores->metric[1].value = tally->sum[CARNN__ANSWER_RR] / questions;
}

#endif
/* =============================================================================================
   @@TASKS   the table of tasks, options and their defaults, making a model
   ============================================================================================= */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

static const carnn__head carnn__heads[] = {
    {"dialog", "choose the reply to the latest utterance, given the dialog so far",
     {"accuracy", "dialog_accuracy", NULL}, 0,
     carnn__dialog_defaults, carnn__dialog_build, carnn__dialog_declare, carnn__dialog_init,
     carnn__dialog_open, carnn__dialog_close, carnn__dialog_carve, carnn__dialog_plan,
     carnn__dialog_batch, carnn__dialog_vote, carnn__dialog_score},
    {"lm", "predict the words of a sentence, given the sentence before it",
     {"perplexity", "perplexity_n2", "perplexity_macro", "perplexity_words", "label_accuracy",
      NULL}, 1,
     carnn__lm_defaults, carnn__lm_build, carnn__lm_declare, carnn__lm_init,
     carnn__lm_open, carnn__lm_close, carnn__lm_carve, carnn__lm_plan,
     carnn__lm_batch, carnn__lm_vote, carnn__lm_score},
    {"answer", "rank sentences by how well they answer a question",
     {"map", "mrr", NULL}, 0,
     carnn__answer_defaults, carnn__answer_build, carnn__answer_declare, carnn__answer_init,
     carnn__answer_open, carnn__answer_close, carnn__answer_carve, carnn__answer_plan,
     carnn__answer_batch, carnn__answer_vote, carnn__answer_score},
};

static const carnn__head *carnn__head_at(size_t number) {
    return number < CARNN__COUNT(carnn__heads) ? &carnn__heads[number] : NULL;
}

static const carnn__head *carnn__head_named(const char *name) {
    size_t i;
    for (i = 0; carnn__head_at(i); i++)
        if (!strcmp(carnn__head_at(i)->name, name)) return carnn__head_at(i);
    return NULL;
}

CARNN_API const char *carnn_task_name(size_t number) {
    return carnn__head_at(number) ? carnn__head_at(number)->name : NULL;
}

CARNN_API const char *carnn_task_title(size_t number) {
    return carnn__head_at(number) ? carnn__head_at(number)->title : NULL;
}

static size_t carnn__optimizer_number(const char *name) {
    size_t i = 0;
    while (i < CARNN__OPTIMIZER_COUNT && strcmp(carnn__optimizers[i].name, name)) i++;
    return i;
}

/* --- options --------------------------------------------------------------------------------- */

#define CARNN__OPTION(of_training, desc, task, field, kind, low, high, none, help)                 \
    {#field, task, help, CARNN_OPTION_##kind, of_training, offsetof(desc, field), low, high, none}
#define CARNN__MODEL_OPTION(field, kind, low, high, none, help)                                    \
    CARNN__OPTION(0, carnn_model_desc, NULL, field, kind, low, high, none, help)
#define CARNN__TASK_OPTION(task, field, kind, low, high, none, help)                               \
    CARNN__OPTION(0, carnn_model_desc, #task, field, kind, low, high, none, help)
#define CARNN__TRAIN_OPTION(field, kind, low, high, none, help)                                    \
    CARNN__OPTION(1, carnn_train_desc, NULL, field, kind, low, high, none, help)

static const carnn_option carnn__option_table[] = {
    CARNN__MODEL_OPTION(cell, NAME, 0, 0, 0, "recurrent cell"),
    CARNN__MODEL_OPTION(hidden, INTEGER, 1, 65536, 0, "size of the hidden state"),
    CARNN__MODEL_OPTION(embedding, INTEGER, 1, 65536, 0, "size of the word embeddings"),
    CARNN__MODEL_OPTION(layers, INTEGER, 1, CARNN__LAYERS_MAX, 0, "recurrent layers"),
    CARNN__MODEL_OPTION(min_count, INTEGER, 1, 1e9, 0, "rarer words become <unk>"),
    CARNN__TASK_OPTION(lm, vocab, INTEGER, 0, 1e9, 1, "words that are kept, the most frequent"),
    CARNN__TASK_OPTION(lm, context, NAME, 0, 0, 0, "what the context is, previous or none"),
    CARNN__TASK_OPTION(lm, lower, INTEGER, 0, 1, 0, "1: upper case is folded to lower case"),
    CARNN__TASK_OPTION(lm, tied, INTEGER, 0, 1, 0, "1: embedding and output share their weights"),
    CARNN__TASK_OPTION(lm, label_weight, NUMBER, 0, 1, 1,
                       "share of the labels in the loss, 0.1 where there are some"),
    CARNN__TASK_OPTION(lm, label_row, NAME, 0, 0, 0,
                       "whose label the context tells, previous or own"),
    CARNN__TASK_OPTION(dialog, history, INTEGER, 0, 1e9, 1,
                       "history utterances that are read, the latest so many"),
    CARNN__TASK_OPTION(dialog, kb_rows, INTEGER, 0, 1e9, 1,
                       "knowledge-base lines kept of each block, the first so many"),
    CARNN__TASK_OPTION(answer, model, NAME, 0, 0, 0, "iwan or siamese"),
    CARNN__TASK_OPTION(answer, decomposition, NAME, 0, 0, 0, "orthogonal or direct"),
    CARNN__TASK_OPTION(answer, weighting, NAME, 0, 0, 0,
                       "what weighs the words, attention or skip"),
    CARNN__TASK_OPTION(answer, overlap, INTEGER, 0, 1e9, 1,
                       "letters by which words of both are the same; 0: not told of them"),
    CARNN__TASK_OPTION(answer, loss, NAME, 0, 0, 0, "of a pair or of the rank among others"),
    CARNN__TASK_OPTION(answer, tune_vectors, INTEGER, 0, 1, 0,
                       "1: word vectors that were read are trained, too"),
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

CARNN_API const carnn_option *carnn_options(size_t *count) {
    *count = CARNN__COUNT(carnn__option_table);
    return carnn__option_table;
}

#define CARNN__TWO_NAMES(option, first, second)                                                    \
    static const char *carnn__##option##_name(size_t number) {                                     \
        return number == 0 ? first : number == 1 ? second : NULL;                                  \
    }
CARNN__TWO_NAMES(context, "previous", "none")
CARNN__TWO_NAMES(label_row, "previous", "own")
CARNN__TWO_NAMES(model, "iwan", "siamese")
CARNN__TWO_NAMES(decomposition, "orthogonal", "direct")
CARNN__TWO_NAMES(weighting, "attention", "skip")
CARNN__TWO_NAMES(loss, "pair", "rank")
#undef CARNN__TWO_NAMES

/* Where the value of an option stands in the description that has it. */
static void *carnn__option_field(const carnn_option *o, const carnn_model_desc *model,
                                 const carnn_train_desc *train) {
    return (char *)(uintptr_t)(o->of_training ? (const void *)train : (const void *)model) +
           o->offset;
}

/* What options that are names may be. */
static const struct {
    const char *option;
    const char *(*name)(size_t number);
} carnn__name_lists[] = {
    {"cell", carnn_cell_name},
    {"optimizer", carnn_optimizer_name},
    {"context", carnn__context_name},
    {"label_row", carnn__label_row_name},
    {"model", carnn__model_name},
    {"decomposition", carnn__decomposition_name},
    {"weighting", carnn__weighting_name},
    {"loss", carnn__loss_name},
};

static const char *carnn__choice(const char *option, size_t number) {
    size_t i;
    for (i = 0; i < CARNN__COUNT(carnn__name_lists); i++)
        if (!strcmp(option, carnn__name_lists[i].option)) return carnn__name_lists[i].name(number);
    return NULL;
}

CARNN_API const char *carnn_option_choice(const carnn_option *option, size_t number) {
    return carnn__choice(option->name, number);
}

/* A name of one of the tables, or NULL. */
static const char *carnn__known_name(const char *option, const char *value) {
    size_t i;
    const char *name;
    for (i = 0; (name = carnn__choice(option, i)) != NULL; i++)
        if (!strcmp(name, value)) return name;
    return NULL;
}

CARNN_API carnn_status carnn_option_set(const carnn_option *option, carnn_model_desc *model,
                                        carnn_train_desc *train, const char *value,
                                        carnn_error *error) {
    void *field = carnn__option_field(option, model, train);
    char *end;
    double number;
    if (option->kind == CARNN_OPTION_NAME) {
        const char *name = carnn__known_name(option->name, value);
        if (!name)
            return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "unknown %s \"%.60s\"", option->name,
                               value);
        memcpy(field, &name, sizeof name);
        return CARNN_OK;
    }
    number = strtod(value, &end);
    if (end == value || *end || !(number >= option->low && number <= option->high) ||
        (option->kind == CARNN_OPTION_INTEGER && number != floor(number)))
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0,
                           "%s: expected %s from %.10g to %.10g, found \"%.60s\"", option->name,
                           option->kind == CARNN_OPTION_INTEGER ? "a whole number" : "a number",
                           option->low, option->high, value);
    if (number == 0.0 && option->none) number = CARNN_NONE;
    if (option->kind == CARNN_OPTION_INTEGER) {
        int64_t whole = (int64_t)number;
        memcpy(field, &whole, sizeof whole); /* int64_t and uint64_t alike */
    } else {
        memcpy(field, &number, sizeof number);
    }
    return CARNN_OK;
}

/* Is every number of a complete description in the range of its option? */
static carnn_status carnn__check_options(const carnn_model_desc *model,
                                         const carnn_train_desc *train, carnn_error *error) {
    size_t i;
    for (i = 0; i < CARNN__COUNT(carnn__option_table); i++) {
        const carnn_option *o = &carnn__option_table[i];
        const void *field;
        double number;
        int64_t whole;
        if ((o->of_training && !train) || o->kind == CARNN_OPTION_NAME) continue;
        field = carnn__option_field(o, model, train);
        if (o->kind == CARNN_OPTION_INTEGER) {
            memcpy(&whole, field, sizeof whole);
            number = (double)whole;
        } else {
            memcpy(&number, field, sizeof number);
        }
        if (o->none && number == CARNN_NONE) continue;
        if (!(number >= o->low && number <= o->high))
            return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "%s is %.10g, not from %.10g to %.10g",
                               o->name, number, o->low, o->high);
    }
    return CARNN_OK;
}

CARNN_API carnn_status carnn_defaults(carnn_model_desc *model, carnn_train_desc *train,
                                      carnn_error *error) {
    const carnn__head *head = carnn__head_named(model->task ? model->task : "dialog");
    size_t optimizer;
    if (!head)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "unknown task \"%.60s\"", model->task);
    model->task = head->name;
    if (!model->seed) model->seed = 1;
    if (!train->optimizer) train->optimizer = carnn__optimizers[CARNN__OPTIMIZER_adam].name;
    head->defaults(model, train);
    optimizer = carnn__optimizer_number(train->optimizer);
    if (optimizer == CARNN__OPTIMIZER_COUNT)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "unknown optimizer \"%.60s\"",
                           train->optimizer);
    train->optimizer = carnn__optimizers[optimizer].name;
    if (train->lr == 0.0) train->lr = carnn__optimizers[optimizer].lr;
    if (train->lr_end == 0.0) train->lr_end = 1.0;
    if (train->lr_decay == 0.0) train->lr_decay = 1.0;
    if (train->dropout == 0.0) train->dropout = CARNN_NONE;
    if (train->clip == 0.0) train->clip = CARNN_NONE;
    if (train->weight_decay == 0.0) train->weight_decay = CARNN_NONE;
    if (train->smoothing == 0.0) train->smoothing = CARNN_NONE;
    if (train->average == 0.0) train->average = CARNN_NONE;
    if (!train->patience) train->patience = CARNN_NONE;
    return carnn__check_options(model, train, error);
}

/* --- making a model -------------------------------------------------------------------------- */

CARNN_API void carnn_model_free(carnn_model *model) {
    carnn_allocator a;
    if (!model) return;
    a = model->allocator;
    carnn__free_aligned(&a, model->block);
    carnn__names_free(&model->words, &a);
    carnn__names_free(&model->candidates, &a);
    carnn__names_free(&model->labels, &a);
    carnn__free(&a, model);
}

/* Names of the caller become ours, or NULL, which a task that needs one refuses. */
static void carnn__own_names(carnn_model_desc *model) {
    size_t i;
    for (i = 0; i < CARNN__COUNT(carnn__option_table); i++) {
        const carnn_option *o = &carnn__option_table[i];
        const char *name;
        void *field;
        if (o->of_training || o->kind != CARNN_OPTION_NAME) continue;
        field = carnn__option_field(o, model, NULL);
        memcpy(&name, field, sizeof name);
        if (name) name = carnn__known_name(o->name, name);
        memcpy(field, &name, sizeof name);
    }
}

/* What a new model and a loaded one have in common once desc (complete), words and candidates are
   there: checks desc, points its names into our tables, declares the parameters. */
static carnn_status carnn__model_declare(carnn_model *model, carnn_error *error) {
    size_t cell = carnn__cell_number(model->desc.cell);
    model->head = carnn__head_named(model->desc.task);
    if (!model->head)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "unknown task \"%.60s\"",
                           model->desc.task);
    if (cell == CARNN__CELL_COUNT)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "unknown cell \"%.60s\"",
                           model->desc.cell);
    model->desc.task = model->head->name;
    carnn__own_names(&model->desc);
    if (carnn__check_options(&model->desc, NULL, error)) return CARNN_ERR_ARGUMENT;
    return model->head->declare(model, error);
}

/* A name of the caller becomes one of ours; NULL stays: the best path when there is work. */
static carnn_status carnn__simd_choice(const char **simd, carnn_error *error) {
    const carnn__kernels *k = carnn__simd_select(*simd);
    if (!k)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "simd: \"%.60s\" is no path of "
                           "this machine (the best here is \"%s\")",
                           *simd ? *simd : getenv("CARNN_SIMD"), carnn_simd_name(0));
    if (*simd) *simd = k->name;
    return CARNN_OK;
}

static carnn_status carnn__same_task(const carnn_model *model, const carnn_dataset *data,
                                     carnn_error *error) {
    if (!strcmp(model->desc.task, data->task)) return CARNN_OK;
    return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "the data set is of the task %s, the model of "
                       "the task %s", data->task, model->desc.task);
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

/* Word vectors as the initial rows of the word embedding. The random ones of the other words become
   as long as they are. */
static void carnn__model_vectors(carnn_model *model, const carnn__vectors *v) {
    const carnn__param *table = &model->params.item[model->word_table];
    float *rows = carnn__piece(&model->params, model->params.value, model->word_table);
    double squares = 0.0;
    size_t i, j, D = v->dimension, n = table->rows * D;
    float scale;
    for (i = 0; i < n; i++) squares += (double)v->value[i] * (double)v->value[i];
    if (!v->found) return;
    scale = (float)(sqrt(squares / (double)(v->found * D)) / (double)table->scale);
    for (i = 0; i < table->rows; i++)
        for (j = 0; j < D; j++)
            rows[i * D + j] = v->has[i] ? v->value[i * D + j] : scale * rows[i * D + j];
}

CARNN_API carnn_status carnn_model_create(carnn_model **out, const carnn_model_desc *desc,
                                          const carnn_dataset *train, carnn_error *error) {
    carnn_allocator a = carnn__allocator(desc->allocator);
    carnn_model *model = (carnn_model *)carnn__alloc_zero(&a, 1, sizeof *model);
    carnn_train_desc unused;
    carnn__vectors vectors;
    carnn_status status;
    *out = NULL;
    if (!model) return carnn__out_of_memory(error);
    memset(&unused, 0, sizeof unused);
    memset(&vectors, 0, sizeof vectors);
    model->allocator = a;
    model->desc = *desc;
    model->desc.allocator = NULL;
    status = carnn__simd_choice(&model->desc.simd, error);
    if (!status) status = carnn_defaults(&model->desc, &unused, error);
    if (!status) status = carnn__same_task(model, train, error);
    model->head = carnn__head_named(model->desc.task);
    if (!status) status = model->head->build(model, train, error);
    if (!status) status = carnn__model_vectors_read(model, desc, &vectors, error);
    if (!status) status = carnn__model_declare(model, error);
    if (!status) status = carnn__store_alloc(&model->params, &a, error);
    model->block = model->params.value;
    if (!status) {
        carnn__store_init(&model->params, model->desc.seed);
        model->head->init(model, train);
        carnn__model_vectors(model, &vectors);
    }
    carnn__vectors_free(&vectors, &a);
    model->desc.vectors = NULL;
    model->desc.known = NULL;
    model->desc.vector_count = model->desc.known_count = 0;
    if (!status) *out = model;
    else carnn_model_free(model);
    return status;
}

#endif /* CARNN_NO_TEXT */

/* --- what a model is ------------------------------------------------------------------------- */

CARNN_API const carnn_model_desc *carnn_model_describe(const carnn_model *model) {
    return &model->desc;
}

CARNN_API const carnn_train_desc *carnn_model_training(const carnn_model *model) {
    return &model->trained;
}

CARNN_API const carnn_scores *carnn_model_scores(const carnn_model *model) {
    return &model->scores;
}

CARNN_API int64_t carnn_model_best_epoch(const carnn_model *model) {
    return model->best_epoch;
}

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

CARNN_API size_t carnn_model_word_count(const carnn_model *model) {
    return model->words.count;
}

CARNN_API const char *carnn_model_word(const carnn_model *model, size_t number) {
    return number < model->words.count ? carnn__names_get(&model->words, number) : NULL;
}

CARNN_API size_t carnn_model_candidate_count(const carnn_model *model) {
    return model->candidates.count;
}

CARNN_API const char *carnn_model_candidate(const carnn_model *model, size_t number) {
    return number < model->candidates.count ? carnn__names_get(&model->candidates, number) : NULL;
}

#endif
/* =============================================================================================
   @@FILE   model files and checkpoints

   GGUF version 3, the format of the ggml and llama.cpp world. Everything is little-endian:

     "GGUF", u32 version, u64 number of tensors, u64 number of keys
     each key:     name, u32 type, value
     each tensor:  name, u32 dimensions, u64 sizes (the contiguous one first), u32 type, u64 offset
     zeros up to a multiple of 64, then the data, to which the offsets refer

   where a name or any other string is a u64 length and its bytes. The data of a model is its flat
   parameter vector (@@PARAM), padding and all, so a file in memory is used as it lies there. A
   checkpoint has the same form and holds several such vectors.

   What depends on the machine or on the clock (threads, seconds) is not kept: the same training
   gives the same bytes.
   ============================================================================================= */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

#define CARNN__GGUF_VERSION 3
#define CARNN__FILE_FORMAT 1 /* of our keys: raised when older readers would misunderstand them */

enum { /* types of values, as GGUF numbers them */
    CARNN__GGUF_U32 = 4,
    CARNN__GGUF_STRING = 8,
    CARNN__GGUF_ARRAY = 9,
    CARNN__GGUF_U64 = 10,
    CARNN__GGUF_I64 = 11,
    CARNN__GGUF_F64 = 12,
    CARNN__GGUF_TYPES = 13
};

/* On a little-endian machine floats are used as they lie in the file. Elsewhere (or where the
   order is not known, or a test says 0) they are taken apart byte by byte, which is right on any
   machine. */
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

static inline void carnn__set32(unsigned char *b, uint32_t x) {
    size_t i;
    for (i = 0; i < 4; i++) b[i] = (unsigned char)(x >> 8 * i);
}

static inline void carnn__set64(unsigned char *b, uint64_t x) {
    carnn__set32(b, (uint32_t)x);
    carnn__set32(b + 4, (uint32_t)(x >> 32));
}

static void carnn__floats_to_bytes(unsigned char *to, const float *from, size_t count) {
    size_t i;
    uint32_t bits;
    for (i = 0; i < count; i++) {
        memcpy(&bits, from + i, sizeof bits);
        carnn__set32(to + 4 * i, bits);
    }
}

static void carnn__floats_from_bytes(float *to, const unsigned char *from, size_t count) {
    size_t i;
    uint32_t bits;
    for (i = 0; i < count; i++) {
        bits = carnn__get32(from + 4 * i);
        memcpy(to + i, &bits, sizeof bits);
    }
}

/* --- checksum --------------------------------------------------------------------------------
   XXH64 (Collet 2012) with seed 0. It needs no tables and runs at the speed of memory, so that
   verifying a file costs less than reading it. */

#define CARNN__SUM_1 0x9E3779B185EBCA87u
#define CARNN__SUM_2 0xC2B2AE3D27D4EB4Fu
#define CARNN__SUM_3 0x165667B19E3779F9u
#define CARNN__SUM_4 0x85EBCA77C2B2AE63u
#define CARNN__SUM_5 0x27D4EB2F165667C5u

typedef struct carnn__sum {
    uint64_t lane[4], total;
    unsigned char rest[32]; /* total % 32 bytes that wait for their stripe to be complete */
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

/* Whole stripes of 32 bytes; returns where the rest begins. */
static const unsigned char *carnn__sum_stripes(carnn__sum *h, const unsigned char *b, size_t n) {
    uint64_t l0 = h->lane[0], l1 = h->lane[1], l2 = h->lane[2], l3 = h->lane[3];
    for (; n >= 32; n -= 32, b += 32) {
        l0 = carnn__sum_round(l0, carnn__get64(b));
        l1 = carnn__sum_round(l1, carnn__get64(b + 8));
        l2 = carnn__sum_round(l2, carnn__get64(b + 16));
        l3 = carnn__sum_round(l3, carnn__get64(b + 24));
    }
    h->lane[0] = l0;
    h->lane[1] = l1;
    h->lane[2] = l2;
    h->lane[3] = l3;
    return b;
}

static void carnn__sum_add(carnn__sum *h, const void *bytes, size_t n) {
    const unsigned char *b = (const unsigned char *)bytes, *end = b + n;
    size_t held = (size_t)(h->total % 32), fits = carnn__min(n, 32 - held);
    h->total += n;
    if (held || n < 32) {
        if (fits) memcpy(h->rest + held, b, fits);
        b += fits;
        if (held + fits < 32) return;
        carnn__sum_stripes(h, h->rest, 32);
    }
    b = carnn__sum_stripes(h, b, (size_t)(end - b));
    if (b < end) memcpy(h->rest, b, (size_t)(end - b));
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

/* --- writer ----------------------------------------------------------------------------------
   The head of a file (all but the data) is put together in memory. As with an arena, running the
   same calls without memory tells how much of it is needed. */

#define CARNN__GGUF_ARRAYS_MAX 8

typedef struct carnn__gguf_writer {
    unsigned char *bytes; /* of the head; NULL: count only */
    size_t size;          /* of the head */
    size_t checksum_at;
    uint64_t keys, tensors;
    struct {
        const float *value;
        size_t count; /* a multiple of 16, as all our flat arrays */
    } array[CARNN__GGUF_ARRAYS_MAX]; /* the data, one after the other */
    size_t arrays;
} carnn__gguf_writer;

static void carnn__put_bytes(carnn__gguf_writer *w, const void *bytes, size_t size) {
    if (w->bytes && size) memcpy(w->bytes + w->size, bytes, size);
    w->size += size;
}

static void carnn__put32(carnn__gguf_writer *w, uint32_t x) {
    unsigned char b[4];
    carnn__set32(b, x);
    carnn__put_bytes(w, b, sizeof b);
}

static void carnn__put64(carnn__gguf_writer *w, uint64_t x) {
    unsigned char b[8];
    carnn__set64(b, x);
    carnn__put_bytes(w, b, sizeof b);
}

static void carnn__put_string(carnn__gguf_writer *w, const char *s, size_t length) {
    carnn__put64(w, length);
    carnn__put_bytes(w, s, length);
}

static void carnn__put_key(carnn__gguf_writer *w, const char *name, uint32_t type) {
    carnn__put_string(w, name, strlen(name));
    carnn__put32(w, type);
    w->keys++;
}

static void carnn__put_u32(carnn__gguf_writer *w, const char *name, uint32_t x) {
    carnn__put_key(w, name, CARNN__GGUF_U32);
    carnn__put32(w, x);
}

/* A number of 8 bytes: u64, i64 or f64, given by its bits. */
static void carnn__put_bits(carnn__gguf_writer *w, const char *name, uint32_t type,
                            const void *number) {
    uint64_t bits;
    memcpy(&bits, number, sizeof bits);
    carnn__put_key(w, name, type);
    carnn__put64(w, bits);
}

static void carnn__put_text(carnn__gguf_writer *w, const char *name, const char *text) {
    carnn__put_key(w, name, CARNN__GGUF_STRING);
    carnn__put_string(w, text, strlen(text));
}

static void carnn__put_names(carnn__gguf_writer *w, const char *name, const carnn__names *names) {
    size_t i;
    carnn__put_key(w, name, CARNN__GGUF_ARRAY);
    carnn__put32(w, CARNN__GGUF_STRING);
    carnn__put64(w, names->count);
    for (i = 0; i < names->count; i++)
        carnn__put_string(w, carnn__names_get(names, i), carnn__names_length(names, i));
}

/* What every file of ours begins with. */
static void carnn__put_start(carnn__gguf_writer *w, const char *architecture, uint64_t tensors) {
    carnn__put_bytes(w, "GGUF", 4);
    carnn__put32(w, CARNN__GGUF_VERSION);
    carnn__put64(w, tensors);
    carnn__put64(w, 0); /* the number of keys, which carnn__gguf_finish knows */
    carnn__put_text(w, "general.architecture", architecture);
    carnn__put_u32(w, "general.alignment", CARNN__ALIGN);
    carnn__put_u32(w, "general.file_type", 0); /* all tensors are F32 */
    carnn__put_u32(w, "carnn.format", CARNN__FILE_FORMAT);
    carnn__put_text(w, "carnn.version", CARNN_VERSION);
    carnn__put_key(w, "carnn.checksum", CARNN__GGUF_U64);
    w->checksum_at = w->size;
    carnn__put64(w, 0); /* what it counts as in the sum itself */
}

/* `offset` in floats. */
static void carnn__put_tensor(carnn__gguf_writer *w, const char *name, size_t rows,
                              size_t columns, size_t offset) {
    carnn__put_string(w, name, strlen(name));
    carnn__put32(w, rows == 1 ? 1 : 2);
    carnn__put64(w, columns);
    if (rows != 1) carnn__put64(w, rows);
    carnn__put32(w, 0); /* F32 */
    carnn__put64(w, (uint64_t)offset * 4);
}

static void carnn__put_data(carnn__gguf_writer *w, const float *value, size_t count) {
    w->array[w->arrays].value = value;
    w->array[w->arrays++].count = count;
}

/* Takes the next bytes of a file; 0 where it cannot. */
typedef int (*carnn__sink)(void *to, const void *bytes, size_t size);

/* Hands all bytes of the file to `sink`, in order. */
static int carnn__gguf_emit(const carnn__gguf_writer *w, carnn__sink sink, void *to) {
    unsigned char block[4096];
    size_t i, at, count;
    if (!sink(to, w->bytes, w->size)) return 0;
    for (i = 0; i < w->arrays; i++) {
        const float *value = w->array[i].value;
        if (CARNN__LITTLE_ENDIAN) {
            if (!sink(to, value, w->array[i].count * 4)) return 0;
            continue;
        }
        for (at = 0; at < w->array[i].count; at += count) {
            count = carnn__min(w->array[i].count - at, sizeof block / 4);
            carnn__floats_to_bytes(block, value + at, count);
            if (!sink(to, block, count * 4)) return 0;
        }
    }
    return 1;
}

static int carnn__sum_sink(void *to, const void *bytes, size_t size) {
    carnn__sum_add((carnn__sum *)to, bytes, size);
    return 1;
}

static size_t carnn__gguf_size(const carnn__gguf_writer *w) {
    size_t i, size = w->size;
    for (i = 0; i < w->arrays; i++) size += w->array[i].count * 4;
    return size;
}

/* Says what is in a file by calls of carnn__put_...; has to say the same when called again. */
typedef void (*carnn__gguf_fill)(carnn__gguf_writer *w, const void *from);

/* Runs `fill` and pads the head; without memory this counts. */
static void carnn__gguf_run(carnn__gguf_writer *w, carnn__gguf_fill fill, const void *from,
                            unsigned char *memory) {
    static const unsigned char zeros[CARNN__ALIGN] = {0};
    memset(w, 0, sizeof *w);
    w->bytes = memory;
    fill(w, from);
    carnn__put_bytes(w, zeros, carnn__round_up(w->size, CARNN__ALIGN) - w->size);
}

/* The same with what is known only at the end: the number of keys and the checksum. */
static void carnn__gguf_finish(carnn__gguf_writer *w, carnn__gguf_fill fill, const void *from,
                               unsigned char *memory) {
    carnn__sum sum;
    carnn__gguf_run(w, fill, from, memory);
    carnn__set64(memory + 16, w->keys);
    carnn__sum_start(&sum);
    carnn__gguf_emit(w, carnn__sum_sink, &sum);
    carnn__set64(memory + w->checksum_at, carnn__sum_end(&sum));
}

/* --- files -----------------------------------------------------------------------------------
   A file is written under another name in the same folder and renamed when it is complete and on
   the disk: whoever opens the name finds the old file or the new one, also after a crash. */

#ifndef CARNN_NO_STDIO

#include <errno.h>
#include <sys/stat.h>
#if defined(_WIN32)
#include <io.h>
#else
#include <fcntl.h>
#if defined(__STRICT_ANSI__) && !defined(__cplusplus) /* -std=c99 hides these two */
int fsync(int file);
int(fileno)(FILE *file);
#endif
#endif

typedef struct carnn__output {
    const carnn_allocator *allocator;
    const char *name;
    char *temporary; /* NULL: `name` is a device or a pipe, and written directly */
    FILE *file;
} carnn__output;

static carnn_status carnn__cannot_write(carnn_error *error, const char *name) {
    return carnn__fail(error, CARNN_ERR_IO, 0, "%s: cannot be written: %s", carnn__name_end(name),
                       strerror(errno));
}

/* Something is there by this name, and it is no regular file. */
static int carnn__is_special(const char *name) {
#if defined(_WIN32)
    DWORD attributes = GetFileAttributesA(name);
    return attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY);
#else
    struct stat found;
    return stat(name, &found) == 0 && !S_ISREG(found.st_mode);
#endif
}

static int carnn__is_pipe(const char *name) {
#if defined(_WIN32)
    (void)name;
    return 0;
#else
    struct stat found;
    return stat(name, &found) == 0 && S_ISFIFO(found.st_mode);
#endif
}

/* Opens a new file beside `name`. The mode "x" refuses a name that is taken. */
static carnn_status carnn__output_open(carnn__output *o, const char *name,
                                       const carnn_allocator *allocator, carnn_error *error) {
    size_t room = strlen(name) + 24;
    double now = carnn__clock();
    uint64_t key, attempt;
    o->allocator = allocator;
    o->name = name;
    o->temporary = NULL;
    if (carnn__is_special(name)) {
        o->file = fopen(name, "wb");
        return o->file ? CARNN_OK : carnn__cannot_write(error, name);
    }
    o->temporary = (char *)carnn__alloc(allocator, room, 1);
    if (!o->temporary) return carnn__out_of_memory(error);
    memcpy(&key, &now, sizeof key);
    for (attempt = 0; attempt < 64; attempt++) {
        unsigned tail = (unsigned)(carnn__random(key ^ (uintptr_t)o, attempt) >> 32);
        snprintf(o->temporary, room, "%s.%08x.tmp", name, tail);
        o->file = fopen(o->temporary, "wbx");
        if (o->file) return CARNN_OK;
        if (errno != EEXIST) break;
    }
    carnn__cannot_write(error, name);
    carnn__free(allocator, o->temporary);
    return CARNN_ERR_IO;
}

static int carnn__output_sink(void *to, const void *bytes, size_t size) {
    return fwrite(bytes, 1, size, ((carnn__output *)to)->file) == size;
}

/* Asks the system to put what has been written on the disk. Some file systems cannot (EINVAL). */
static int carnn__sync(FILE *file) {
    if (fflush(file) != 0) return 0;
#if defined(_WIN32)
    return _commit(_fileno(file)) == 0;
#else
    return fsync(fileno(file)) == 0 || errno == EINVAL;
#endif
}

static int carnn__rename(const char *from, const char *to) {
#if defined(_WIN32)
    return MoveFileExA(from, to, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH) != 0;
#else
    return rename(from, to) == 0;
#endif
}

/* The new name is on the disk once the folder is. Nothing is lost where that cannot be asked for,
   so failures do not count. `path` is a name in the folder and is cut. */
static void carnn__sync_folder(char *path) {
#if defined(_WIN32)
    (void)path;
#else
    char *slash = strrchr(path, '/');
    int folder;
    if (slash) slash[slash == path] = '\0';
    folder = open(slash ? path : ".", O_RDONLY);
    if (folder < 0) return;
    fsync(folder);
    close(folder);
#endif
}

/* Ends the writing. Where it `failed`, or anything fails here, no trace of the file is left. */
static carnn_status carnn__output_close(carnn__output *o, int failed, carnn_error *error) {
    int reason = errno;
    if (!failed && !(o->temporary ? carnn__sync(o->file) : fflush(o->file) == 0)) {
        reason = errno;
        failed = 1;
    }
    if (fclose(o->file) != 0 && !failed) {
        reason = errno;
        failed = 1;
    }
    if (o->temporary && !failed && !carnn__rename(o->temporary, o->name)) {
        reason = errno;
        failed = 1;
    }
    if (o->temporary && failed) remove(o->temporary);
    if (o->temporary && !failed) carnn__sync_folder(o->temporary);
    carnn__free(o->allocator, o->temporary);
    errno = reason;
    return failed ? carnn__cannot_write(error, o->name) : CARNN_OK;
}

CARNN_API carnn_status carnn_file_check(const char *file, carnn_error *error) {
    carnn_allocator allocator = carnn__allocator(NULL);
    carnn__output o;
    carnn_status status;
    if (carnn__is_pipe(file)) return CARNN_OK; /* its reader would see the end of it */
    status = carnn__output_open(&o, file, &allocator, error);
    if (status != CARNN_OK) return status;
    fclose(o.file);
    if (o.temporary) remove(o.temporary);
    carnn__free(&allocator, o.temporary);
    return CARNN_OK;
}

static carnn_status carnn__gguf_save(carnn__gguf_fill fill, const void *from, const char *file,
                                     const carnn_allocator *allocator, carnn_error *error) {
    carnn__gguf_writer w;
    carnn__output o;
    carnn_status status;
    unsigned char *head;
    carnn__gguf_run(&w, fill, from, NULL);
    head = (unsigned char *)carnn__alloc(allocator, w.size, 1);
    if (!head) return carnn__out_of_memory(error);
    status = carnn__output_open(&o, file, allocator, error);
    if (status == CARNN_OK) {
        carnn__gguf_finish(&w, fill, from, head);
        status = carnn__output_close(&o, !carnn__gguf_emit(&w, carnn__output_sink, &o), error);
    }
    carnn__free(allocator, head);
    return status;
}

/* A whole file in an aligned block, which is where its weights will be used. */
static carnn_status carnn__read_file(const char *name, const carnn_allocator *allocator,
                                     void **block, size_t *size, carnn_error *error) {
    const int special = carnn__is_special(name); /* to open a pipe could take for ever */
    FILE *file = special ? NULL : fopen(name, "rb");
    long end = -1;
    carnn_status status = CARNN_OK;
    *block = NULL;
    if (!file && !special) return carnn__io_error(error, name, strerror(errno));
    if (file && fseek(file, 0, SEEK_END) == 0) end = ftell(file);
    if (end < 0 || fseek(file, 0, SEEK_SET) != 0) {
        if (file) fclose(file);
        return carnn__fail(error, CARNN_ERR_IO, 0, "%s: not a regular file",
                           carnn__name_end(name));
    }
    *size = (size_t)end;
    *block = carnn__alloc_aligned(allocator, *size, 1);
    if (!*block) status = carnn__out_of_memory(error);
    else if (fread(*block, 1, *size, file) != *size)
        status = carnn__io_error(error, name, ferror(file) ? strerror(errno) : "it got shorter");
    fclose(file);
    if (status != CARNN_OK) {
        carnn__free_aligned(allocator, *block);
        *block = NULL;
    }
    return status;
}

#else

static carnn_status carnn__no_files(const char *name, carnn_error *error) {
    return carnn__fail(error, CARNN_ERR_IO, 0, "%s: built with CARNN_NO_STDIO: no files", name);
}

static carnn_status carnn__read_file(const char *name, const carnn_allocator *allocator,
                                     void **block, size_t *size, carnn_error *error) {
    (void)allocator;
    (void)size;
    *block = NULL;
    return carnn__no_files(name, error);
}

static carnn_status carnn__gguf_save(carnn__gguf_fill fill, const void *from, const char *file,
                                     const carnn_allocator *allocator, carnn_error *error) {
    (void)fill;
    (void)from;
    (void)allocator;
    return carnn__no_files(file, error);
}

CARNN_API carnn_status carnn_file_check(const char *file, carnn_error *error) {
    return carnn__no_files(file, error);
}

#endif

/* --- reader ----------------------------------------------------------------------------------
   The bytes may come from anyone. Each count and length is compared with what is left of the file
   before it is used. The first thing that is wrong is the one reported: after it every read gives
   zeros and `status` stays. */

#define CARNN__GGUF_KEYS_MAX 128

typedef struct carnn__gguf_key {
    const char *name;
    size_t length;
    uint32_t type;
    uint32_t element;           /* type of the elements of an array */
    uint64_t count;             /* elements of an array, bytes of a string */
    const unsigned char *value; /* the first of them, or the number */
} carnn__gguf_key;

typedef struct carnn__gguf {
    const char *file; /* name for messages */
    const unsigned char *bytes;
    size_t size, at;
    uint64_t tensors;
    carnn__gguf_key key[CARNN__GGUF_KEYS_MAX];
    size_t keys;
    carnn_status status;
    carnn_error *error;
} carnn__gguf;

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static carnn_status carnn__gguf_fail(carnn__gguf *g, const char *format, ...) {
    char text[300];
    va_list arguments;
    if (g->status != CARNN_OK) return g->status;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    g->at = g->size;
    g->status = carnn__fail(g->error, CARNN_ERR_MODEL, 0, "%s: %s", g->file, text);
    return g->status;
}

/* The next `count` items of `size` bytes, or NULL. */
static const unsigned char *carnn__gguf_take(carnn__gguf *g, uint64_t count, size_t size) {
    const unsigned char *bytes = g->bytes + g->at;
    size_t left = g->size - g->at;
    if (g->status != CARNN_OK) return NULL;
    if (count > left / size) {
        carnn__gguf_fail(g, "cut off or damaged: %llu bytes expected at byte %llu, %llu are left",
                         (unsigned long long)count * size, (unsigned long long)g->at,
                         (unsigned long long)left);
        return NULL;
    }
    g->at += (size_t)count * size;
    return bytes;
}

static uint32_t carnn__gguf_take32(carnn__gguf *g) {
    const unsigned char *b = carnn__gguf_take(g, 1, 4);
    return b ? carnn__get32(b) : 0;
}

static uint64_t carnn__gguf_take64(carnn__gguf *g) {
    const unsigned char *b = carnn__gguf_take(g, 1, 8);
    return b ? carnn__get64(b) : 0;
}

static const char *carnn__gguf_take_string(carnn__gguf *g, size_t *length) {
    uint64_t n = carnn__gguf_take64(g);
    const unsigned char *b = carnn__gguf_take(g, n, 1);
    *length = b ? (size_t)n : 0;
    return (const char *)b;
}

static const carnn__gguf_key *carnn__gguf_look(const carnn__gguf *g, const char *name,
                                               size_t length) {
    size_t i;
    for (i = 0; i < g->keys; i++)
        if (g->key[i].length == length && memcmp(g->key[i].name, name, length) == 0)
            return &g->key[i];
    return NULL;
}

/* Bytes of one value of each type; a string counts with its length, an array is no element. */
static size_t carnn__gguf_width(uint32_t type) {
    static const unsigned char width[CARNN__GGUF_TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 0, 8, 8, 8};
    return type < CARNN__GGUF_TYPES ? width[type] : 0;
}

static void carnn__gguf_take_value(carnn__gguf *g, carnn__gguf_key *key) {
    size_t width, i;
    key->type = carnn__gguf_take32(g);
    if (key->type == CARNN__GGUF_STRING) {
        size_t length;
        key->value = (const unsigned char *)carnn__gguf_take_string(g, &length);
        key->count = length;
        return;
    }
    if (key->type != CARNN__GGUF_ARRAY) {
        width = carnn__gguf_width(key->type);
        if (!width) carnn__gguf_fail(g, "damaged: a value has type %u", (unsigned)key->type);
        else key->value = carnn__gguf_take(g, 1, width);
        return;
    }
    key->element = carnn__gguf_take32(g);
    key->count = carnn__gguf_take64(g);
    width = carnn__gguf_width(key->element);
    if (!width) {
        carnn__gguf_fail(g, "damaged: an array of type %u", (unsigned)key->element);
        return;
    }
    key->value = carnn__gguf_take(g, key->count, width);
    if (key->element != CARNN__GGUF_STRING || !key->value) return;
    g->at = (size_t)(key->value - g->bytes); /* room for all lengths: now one after the other */
    for (i = 0; i < key->count && g->status == CARNN_OK; i++) {
        size_t length;
        carnn__gguf_take_string(g, &length);
    }
}

static void carnn__gguf_take_keys(carnn__gguf *g, uint64_t count) {
    uint64_t i;
    if (count > CARNN__GGUF_KEYS_MAX)
        carnn__gguf_fail(g, "not a model of carnn: %llu keys", (unsigned long long)count);
    for (i = 0; i < count && g->status == CARNN_OK; i++) {
        carnn__gguf_key *key = &g->key[g->keys];
        memset(key, 0, sizeof *key);
        key->name = carnn__gguf_take_string(g, &key->length);
        if (!key->name) return;
        if (carnn__gguf_look(g, key->name, key->length))
            carnn__gguf_fail(g, "damaged: the same key twice (number %u)", (unsigned)i);
        carnn__gguf_take_value(g, key);
        g->keys++;
    }
}

/* A key that has to be there, with this type; NULL (and failure) otherwise. */
static const carnn__gguf_key *carnn__gguf_need(carnn__gguf *g, const char *name, uint32_t type) {
    const carnn__gguf_key *key;
    if (g->status != CARNN_OK) return NULL;
    key = carnn__gguf_look(g, name, strlen(name));
    if (!key) carnn__gguf_fail(g, "the key %s is missing", name);
    else if (key->type != type) carnn__gguf_fail(g, "the key %s has another type", name);
    else return key;
    return NULL;
}

static uint32_t carnn__gguf_u32(carnn__gguf *g, const char *name) {
    const carnn__gguf_key *key = carnn__gguf_need(g, name, CARNN__GGUF_U32);
    return key ? carnn__get32(key->value) : 0;
}

/* The bits of a number of 8 bytes go to `number`, if the key is there. */
static void carnn__gguf_bits(carnn__gguf *g, const char *name, uint32_t type, void *number) {
    const carnn__gguf_key *key = carnn__gguf_need(g, name, type);
    uint64_t bits;
    if (!key) return;
    bits = carnn__get64(key->value);
    memcpy(number, &bits, sizeof bits);
}

static int carnn__gguf_is(const carnn__gguf_key *key, const char *text) {
    size_t length = strlen(text);
    return key && key->count == length && memcmp(key->value, text, length) == 0;
}

/* Everything but the eight bytes of the sum itself, for which zeros count. */
static void carnn__gguf_verify(carnn__gguf *g) {
    static const unsigned char zeros[8] = {0};
    const carnn__gguf_key *key = carnn__gguf_need(g, "carnn.checksum", CARNN__GGUF_U64);
    const unsigned char *after;
    carnn__sum sum;
    if (!key) return;
    after = key->value + sizeof zeros;
    carnn__sum_start(&sum);
    carnn__sum_add(&sum, g->bytes, (size_t)(key->value - g->bytes));
    carnn__sum_add(&sum, zeros, sizeof zeros);
    carnn__sum_add(&sum, after, g->size - (size_t)(after - g->bytes));
    if (carnn__sum_end(&sum) != carnn__get64(key->value))
        carnn__gguf_fail(g, "damaged: the checksum does not fit the contents");
}

/* Reads all up to the table of tensors. `architecture` says which of our files is wanted. */
static carnn_status carnn__gguf_open(carnn__gguf *g, const char *architecture, const char *file,
                                     const void *bytes, size_t size, carnn_error *error) {
    const carnn__gguf_key *found;
    uint32_t version;
    uint64_t keys;
    memset(g, 0, sizeof *g);
    g->file = carnn__name_end(file ? file : "model in memory");
    g->bytes = (const unsigned char *)bytes;
    g->size = size;
    g->error = error;
    if (size < 24 || memcmp(bytes, "GGUF", 4) != 0)
        return carnn__gguf_fail(g, "not a GGUF file");
    g->at = 4;
    version = carnn__gguf_take32(g);
    if (version != CARNN__GGUF_VERSION)
        return carnn__gguf_fail(g, "GGUF of version %u, expected little-endian version %d",
                                (unsigned)version, CARNN__GGUF_VERSION);
    g->tensors = carnn__gguf_take64(g);
    keys = carnn__gguf_take64(g);
    carnn__gguf_take_keys(g, keys);
    found = carnn__gguf_need(g, "general.architecture", CARNN__GGUF_STRING);
    if (found && !carnn__gguf_is(found, architecture))
        carnn__gguf_fail(g, "holds \"%.*s\", expected \"%s\"", (int)carnn__min(found->count, 40),
                         (const char *)found->value, architecture);
    carnn__gguf_verify(g);
    version = carnn__gguf_u32(g, "carnn.format");
    if (g->status == CARNN_OK && version != CARNN__FILE_FORMAT)
        carnn__gguf_fail(g, "written by another version of carnn (format %u, this is %s with "
                         "format %d)", (unsigned)version, CARNN_VERSION, CARNN__FILE_FORMAT);
    if (g->status == CARNN_OK && carnn__gguf_u32(g, "general.alignment") != CARNN__ALIGN)
        carnn__gguf_fail(g, "general.alignment is not %d", CARNN__ALIGN);
    return g->status;
}

static void carnn__gguf_count(carnn__gguf *g, size_t expected) {
    if (g->status == CARNN_OK && g->tensors != expected)
        carnn__gguf_fail(g, "%llu tensors, expected %llu", (unsigned long long)g->tensors,
                         (unsigned long long)expected);
}

/* The next tensor of the table has to be exactly this one; `offset` in floats. */
static void carnn__gguf_tensor(carnn__gguf *g, const char *name, size_t rows, size_t columns,
                               size_t offset) {
    size_t length, expected = rows == 1 ? 1 : 2;
    const char *found = carnn__gguf_take_string(g, &length);
    uint32_t dimensions = carnn__gguf_take32(g), type;
    uint64_t size[2] = {0, 1}, at;
    if (g->status != CARNN_OK) return;
    if (length != strlen(name) || memcmp(found, name, length) != 0) {
        carnn__gguf_fail(g, "expected the weights %s, found \"%.*s\"", name,
                         (int)carnn__min(length, 60), found);
        return;
    }
    if (dimensions == expected) {
        size[0] = carnn__gguf_take64(g);
        if (expected == 2) size[1] = carnn__gguf_take64(g);
    }
    if (dimensions != expected || size[0] != columns || size[1] != rows) {
        carnn__gguf_fail(g, "%s: expected %llu by %llu weights, found %llu by %llu", name,
                         (unsigned long long)rows, (unsigned long long)columns,
                         (unsigned long long)size[1], (unsigned long long)size[0]);
        return;
    }
    type = carnn__gguf_take32(g);
    at = carnn__gguf_take64(g);
    if (type != 0) carnn__gguf_fail(g, "%s: type %u, expected F32", name, (unsigned)type);
    else if (at % 4 || at / 4 != offset) carnn__gguf_fail(g, "%s: misplaced in the file", name);
}

/* The data: as many floats as that, no byte less or more. NULL on failure. */
static const unsigned char *carnn__gguf_data(carnn__gguf *g, size_t floats) {
    size_t start = carnn__round_up(g->at, CARNN__ALIGN);
    if (g->status == CARNN_OK && start > g->size) carnn__gguf_fail(g, "cut off before the weights");
    if (g->status != CARNN_OK) return NULL;
    if ((g->size - start) % 4 == 0 && (g->size - start) / 4 == floats) return g->bytes + start;
    carnn__gguf_fail(g, "%llu bytes of weights expected, %llu are there", (unsigned long long)floats
                     * 4, (unsigned long long)(g->size - start));
    return NULL;
}

/* Whether no float is NaN or infinite: those have all bits of the exponent set, so that one more
   carries into the sign. Two at a time; `count` is even, as in all our flat arrays. */
static int carnn__finite(const float *x, size_t count) {
    uint64_t bits, carried = 0;
    size_t i;
    for (i = 0; i < count; i += 2) {
        memcpy(&bits, x + i, sizeof bits);
        carried |= (bits & 0x7FFFFFFF7FFFFFFFu) + 0x0080000000800000u;
    }
    return !(carried & 0x8000000080000000u);
}

/* --- what is said of a model -----------------------------------------------------------------
   The options stand under the names of their table. */

/* What says how fast or how long, and not what, is not kept. */
static int carnn__option_kept(const carnn_option *o) {
    return strcmp(o->name, "threads") != 0 && strcmp(o->name, "max_time") != 0;
}

static void carnn__option_key(const carnn_option *o, char key[64]) {
    snprintf(key, 64, "carnn.%s", o->name);
}

static const char *carnn__option_name(const void *field) {
    const char *name;
    memcpy(&name, field, sizeof name);
    return name ? name : "";
}

static uint32_t carnn__option_type(const carnn_option *o) {
    return o->kind == CARNN_OPTION_NAME      ? CARNN__GGUF_STRING
           : o->kind == CARNN_OPTION_INTEGER ? CARNN__GGUF_I64
                                             : CARNN__GGUF_F64;
}

static void carnn__put_options(carnn__gguf_writer *w, const carnn_model_desc *model,
                               const carnn_train_desc *train) {
    size_t i, count;
    const carnn_option *o = carnn_options(&count);
    char key[64];
    carnn__put_text(w, "carnn.task", model->task);
    for (i = 0; i < count; i++, o++) {
        const void *field = carnn__option_field(o, model, train);
        if (!carnn__option_kept(o)) continue;
        carnn__option_key(o, key);
        if (o->kind == CARNN_OPTION_NAME) carnn__put_text(w, key, carnn__option_name(field));
        else carnn__put_bits(w, key, carnn__option_type(o), field);
    }
}

/* A name as text with an end; no name of ours is so long that it is cut. */
static void carnn__gguf_name(carnn__gguf *g, const char *key, char name[64]) {
    const carnn__gguf_key *found = carnn__gguf_need(g, key, CARNN__GGUF_STRING);
    size_t length = found ? (size_t)carnn__min(found->count, 63) : 0;
    if (length) memcpy(name, found->value, length);
    name[length] = '\0';
}

/* Names become those of our tables, which stay. A model that was never trained has no optimiser:
   an empty name. An option that came after the file has its default. */
static void carnn__gguf_options(carnn__gguf *g, carnn_model_desc *model, carnn_train_desc *train) {
    size_t i, count;
    const carnn_option *o = carnn_options(&count);
    const carnn__head *head;
    char key[64], name[64];
    carnn__gguf_name(g, "carnn.task", name);
    head = carnn__head_named(name);
    if (!head) carnn__gguf_fail(g, "unknown task \"%s\"", name);
    if (g->status) return;
    model->task = head->name;
    carnn_defaults(model, train, NULL);
    for (i = 0; i < count; i++, o++) {
        void *field = carnn__option_field(o, model, train);
        carnn__option_key(o, key);
        if (!carnn__option_kept(o) || !carnn__gguf_look(g, key, strlen(key))) continue;
        if (o->kind == CARNN_OPTION_NAME) {
            const char *known;
            carnn__gguf_name(g, key, name);
            known = carnn__known_name(o->name, name);
            if (!known && (*name || !strcmp(o->name, "cell")))
                carnn__gguf_fail(g, "unknown %s \"%s\"", o->name, name);
            memcpy(field, &known, sizeof known);
        } else {
            carnn__gguf_bits(g, key, carnn__option_type(o), field);
        }
    }
    if (!train->optimizer) memset(train, 0, sizeof *train);
}

static void carnn__put_scores(carnn__gguf_writer *w, const carnn_model *model) {
    const carnn_scores *s = &model->scores;
    uint64_t examples = s->examples, tokens = s->tokens;
    size_t i;
    char key[64];
    carnn__put_bits(w, "carnn.best_epoch", CARNN__GGUF_I64, &model->best_epoch);
    carnn__put_bits(w, "carnn.score.examples", CARNN__GGUF_U64, &examples);
    carnn__put_bits(w, "carnn.score.tokens", CARNN__GGUF_U64, &tokens);
    carnn__put_bits(w, "carnn.score.loss", CARNN__GGUF_F64, &s->loss);
    for (i = 0; i < s->count; i++) {
        snprintf(key, sizeof key, "carnn.score.%s", s->metric[i].name);
        carnn__put_bits(w, key, CARNN__GGUF_F64, &s->metric[i].value);
    }
}

/* The metrics of the task that are there; those of a model that has met no validation are not. */
static void carnn__gguf_scores(carnn__gguf *g, carnn_model *model) {
    carnn_scores *s = &model->scores;
    uint64_t examples = 0, tokens = 0;
    size_t i;
    char key[64];
    carnn__gguf_bits(g, "carnn.best_epoch", CARNN__GGUF_I64, &model->best_epoch);
    carnn__gguf_bits(g, "carnn.score.examples", CARNN__GGUF_U64, &examples);
    carnn__gguf_bits(g, "carnn.score.tokens", CARNN__GGUF_U64, &tokens);
    carnn__gguf_bits(g, "carnn.score.loss", CARNN__GGUF_F64, &s->loss);
    if (model->best_epoch < 0) carnn__gguf_fail(g, "carnn.best_epoch is below 0");
    s->examples = (size_t)examples;
    s->tokens = (size_t)tokens;
    s->count = 0;
    for (i = 0; i < CARNN_SCORES_MAX && model->head->metric[i]; i++) {
        const char *name = model->head->metric[i];
        snprintf(key, sizeof key, "carnn.score.%s", name);
        if (!carnn__gguf_look(g, key, strlen(key))) continue;
        s->metric[s->count].name = name;
        carnn__gguf_bits(g, key, CARNN__GGUF_F64, &s->metric[s->count++].value);
    }
}

/* --- models ---------------------------------------------------------------------------------- */

static void carnn__put_model(carnn__gguf_writer *w, const void *from) {
    const carnn_model *model = (const carnn_model *)from;
    const carnn__store *store = &model->params;
    size_t i;
    char title[96];
    carnn__put_start(w, "carnn", store->count);
    snprintf(title, sizeof title, "%s %s", model->desc.task, model->desc.cell);
    carnn__put_text(w, "general.name", title);
    carnn__put_options(w, &model->desc, &model->trained);
    carnn__put_scores(w, model);
    carnn__put_names(w, "carnn.words", &model->words);
    carnn__put_names(w, "carnn.candidates", &model->candidates);
    carnn__put_names(w, "carnn.labels", &model->labels);
    for (i = 0; i < store->count; i++) {
        const carnn__param *p = &store->item[i];
        carnn__put_tensor(w, p->name, p->rows, p->columns, p->offset);
    }
    carnn__put_data(w, store->value, store->size);
}

CARNN_API size_t carnn_model_size(const carnn_model *model) {
    carnn__gguf_writer w;
    carnn__gguf_run(&w, carnn__put_model, model, NULL);
    return carnn__gguf_size(&w);
}

static int carnn__memory_sink(void *to, const void *bytes, size_t size) {
    unsigned char **at = (unsigned char **)to;
    if (*at != bytes) memcpy(*at, bytes, size); /* the head stands where it belongs */
    *at += size;
    return 1;
}

CARNN_API carnn_status carnn_model_write(const carnn_model *model, void *memory, size_t size,
                                         carnn_error *error) {
    size_t needed = carnn_model_size(model);
    unsigned char *at = (unsigned char *)memory;
    carnn__gguf_writer w;
    if (size < needed)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "the model takes %llu bytes, given %llu",
                           (unsigned long long)needed, (unsigned long long)size);
    carnn__gguf_finish(&w, carnn__put_model, model, at);
    carnn__gguf_emit(&w, carnn__memory_sink, &at);
    return CARNN_OK;
}

CARNN_API carnn_status carnn_model_save(const carnn_model *model, const char *file,
                                        carnn_error *error) {
    return carnn__gguf_save(carnn__put_model, model, file, &model->allocator, error);
}

/* A list of strings. The table of pointers that is made on the way is not larger than the file. */
static carnn_status carnn__gguf_names(carnn__gguf *g, const char *name, carnn__names *names,
                                      const carnn_allocator *allocator) {
    const carnn__gguf_key *key = carnn__gguf_need(g, name, CARNN__GGUF_ARRAY);
    const char **text;
    size_t *length, i, count;
    carnn_status status;
    if (!key) return g->status;
    if (key->element != CARNN__GGUF_STRING)
        return carnn__gguf_fail(g, "the key %s has another type", name);
    count = (size_t)key->count;
    if (!count) return CARNN_OK;
    text = (const char **)carnn__alloc(allocator, count, sizeof *text);
    length = (size_t *)carnn__alloc(allocator, count, sizeof *length);
    if (text && length) {
        size_t table = g->at;
        g->at = (size_t)(key->value - g->bytes);
        for (i = 0; i < count; i++) text[i] = carnn__gguf_take_string(g, &length[i]);
        g->at = table;
        status = carnn__names_build(names, allocator, text, length, count, g->error);
        if (status == CARNN_ERR_MODEL)
            carnn__gguf_fail(g, "%s: the same string twice", name);
    } else status = carnn__out_of_memory(g->error);
    carnn__free(allocator, length);
    carnn__free(allocator, (void *)text);
    if (g->status == CARNN_OK) g->status = status;
    return status;
}

/* The table of tensors has to be the one that the task declares for this description. A product
   of sizes that overflows, or a matrix beyond the file, is found before anything relies on it. */
static const unsigned char *carnn__gguf_params(carnn__gguf *g, const carnn__store *store) {
    size_t i, offset = 0, most = g->size / 4;
    carnn__gguf_count(g, store->count);
    for (i = 0; i < store->count && g->status == CARNN_OK; i++) {
        const carnn__param *p = &store->item[i];
        size_t floats = carnn__times(p->rows, p->columns);
        if (floats > most || p->offset != offset) {
            carnn__gguf_fail(g, "cut off: the weights %s alone are larger than the file", p->name);
            return NULL;
        }
        offset += carnn__round_up(floats, CARNN__ALIGN / sizeof(float));
        most -= floats;
        carnn__gguf_tensor(g, p->name, p->rows, p->columns, p->offset);
    }
    return carnn__gguf_data(g, store->size);
}

/* Uses the weights where they lie, if this machine can, and takes a copy otherwise. */
static carnn_status carnn__model_weights(carnn_model *model, const unsigned char *data,
                                         carnn_error *error) {
    carnn_status status;
    void *file = model->block;
    if (CARNN__LITTLE_ENDIAN && (uintptr_t)data % CARNN__ALIGN == 0) {
        model->params.value = (float *)(uintptr_t)data;
        return CARNN_OK;
    }
    status = carnn__store_alloc(&model->params, &model->allocator, error);
    if (status != CARNN_OK) return status;
    carnn__floats_from_bytes(model->params.value, data, model->params.size);
    model->block = model->params.value;
    carnn__free_aligned(&model->allocator, file);
    return CARNN_OK;
}

static carnn_status carnn__model_open(carnn_model *model, const carnn_source *source,
                                      carnn_error *error) {
    carnn__gguf g;
    const unsigned char *data;
    const carnn__store *store = &model->params;
    carnn_error why;
    size_t i;
    carnn__gguf_open(&g, "carnn", source->name, source->bytes, source->size, error);
    carnn__gguf_options(&g, &model->desc, &model->trained);
    carnn__gguf_names(&g, "carnn.words", &model->words, &model->allocator);
    carnn__gguf_names(&g, "carnn.candidates", &model->candidates, &model->allocator);
    carnn__gguf_names(&g, "carnn.labels", &model->labels, &model->allocator);
    if (g.status != CARNN_OK) return g.status;
    if (carnn__model_declare(model, &why) != CARNN_OK ||
        (model->trained.optimizer &&
         carnn__check_options(&model->desc, &model->trained, &why) != CARNN_OK))
        return carnn__gguf_fail(&g, "%s", why.message);
    carnn__gguf_scores(&g, model);
    data = carnn__gguf_params(&g, store);
    if (!data) return g.status;
    g.status = carnn__model_weights(model, data, error);
    for (i = 0; i < store->count && g.status == CARNN_OK; i++) {
        size_t end = i + 1 < store->count ? store->item[i + 1].offset : store->size;
        size_t from = store->item[i].offset;
        if (!carnn__finite(store->value + from, end - from))
            carnn__gguf_fail(&g, "%s holds NaN or infinity", store->item[i].name);
    }
    return g.status;
}

CARNN_API carnn_status carnn_model_load(carnn_model **model, const carnn_source *source,
                                        const carnn_allocator *allocator, carnn_error *error) {
    carnn_allocator a = carnn__allocator(allocator);
    carnn_model *m = (carnn_model *)carnn__alloc_zero(&a, 1, sizeof *m);
    carnn_source bytes = *source;
    carnn_status status = CARNN_OK;
    *model = NULL;
    if (!m) return carnn__out_of_memory(error);
    m->allocator = a;
    if (!bytes.bytes) {
        status = carnn__read_file(bytes.name, &a, &m->block, &bytes.size, error);
        bytes.bytes = m->block;
    }
    if (status == CARNN_OK) status = carnn__model_open(m, &bytes, error);
    if (status == CARNN_OK) *model = m;
    else carnn_model_free(m);
    return status;
}

#ifndef CARNN_NO_TRAIN

/* --- checkpoints -----------------------------------------------------------------------------
   What a training needs to go on as if it had never stopped. The trainer lists its arrays (each of
   what is trained of the store) and its counters once, and the list serves both ways. */

typedef struct carnn__checkpoint {
    carnn_model *model; /* its description and names are compared, its scores are kept */
    const carnn_train_desc *train; /* complete */
    struct {
        const char *name;
        float *value;
    } array[CARNN__GGUF_ARRAYS_MAX];
    size_t arrays;
    struct {
        const char *name;
        uint64_t *whole; /* one of these two */
        double *real;
        int same; /* loading compares it (the training data, say) instead of setting it */
    } value[24];
    size_t values;
} carnn__checkpoint;

static void carnn__checkpoint_array(carnn__checkpoint *c, const char *name, float *value) {
    c->array[c->arrays].name = name;
    c->array[c->arrays++].value = value;
}

static void carnn__checkpoint_whole(carnn__checkpoint *c, const char *name, uint64_t *value,
                                    int same) {
    c->value[c->values].name = name;
    c->value[c->values].same = same;
    c->value[c->values++].whole = value;
}

static void carnn__checkpoint_real(carnn__checkpoint *c, const char *name, double *value) {
    c->value[c->values].name = name;
    c->value[c->values++].real = value;
}

static uint64_t carnn__names_sum(const carnn_model *model) {
    const carnn__names *names[2];
    carnn__sum sum;
    size_t i, j;
    unsigned char length[8];
    names[0] = &model->words;
    names[1] = &model->candidates;
    carnn__sum_start(&sum);
    for (i = 0; i < 2; i++)
        for (j = 0; j < names[i]->count; j++) {
            carnn__set64(length, carnn__names_length(names[i], j));
            carnn__sum_add(&sum, length, sizeof length);
            carnn__sum_add(&sum, carnn__names_get(names[i], j), carnn__names_length(names[i], j));
        }
    return carnn__sum_end(&sum);
}

/* A counter's name may be words, as in messages. */
static void carnn__checkpoint_key(char key[64], const char *name) {
    char *blank;
    snprintf(key, 64, "carnn.checkpoint.%s", name);
    while ((blank = strchr(key, ' ')) != NULL) *blank = '_';
}

static void carnn__put_checkpoint(carnn__gguf_writer *w, const void *from) {
    const carnn__checkpoint *c = (const carnn__checkpoint *)from;
    uint64_t names = carnn__names_sum(c->model);
    size_t i, size = c->model->params.trained;
    char key[64];
    carnn__put_start(w, "carnn-checkpoint", c->arrays);
    carnn__put_options(w, &c->model->desc, c->train);
    carnn__put_scores(w, c->model);
    carnn__put_bits(w, "carnn.names", CARNN__GGUF_U64, &names);
    for (i = 0; i < c->values; i++) {
        uint32_t type = c->value[i].whole ? CARNN__GGUF_U64 : CARNN__GGUF_F64;
        carnn__checkpoint_key(key, c->value[i].name);
        if (c->value[i].whole) carnn__put_bits(w, key, type, c->value[i].whole);
        else carnn__put_bits(w, key, type, c->value[i].real);
    }
    for (i = 0; i < c->arrays; i++)
        carnn__put_tensor(w, c->array[i].name, 1, size, i * size);
    for (i = 0; i < c->arrays; i++) carnn__put_data(w, c->array[i].value, size);
}

static carnn_status carnn__checkpoint_save(const carnn__checkpoint *c, const char *file,
                                           carnn_error *error) {
    return carnn__gguf_save(carnn__put_checkpoint, c, file, &c->model->allocator, error);
}

/* How long a training goes on may be chosen anew; everything else has to be as it was. */
static int carnn__option_may_differ(const carnn_option *o) {
    return strcmp(o->name, "epochs") == 0 || strcmp(o->name, "patience") == 0;
}

static void carnn__option_print(const carnn_option *o, const void *field, char *text,
                                size_t size) {
    int64_t whole;
    double number;
    if (o->kind == CARNN_OPTION_NAME) {
        snprintf(text, size, "%s", carnn__option_name(field));
    } else if (o->kind == CARNN_OPTION_INTEGER) {
        memcpy(&whole, field, sizeof whole);
        snprintf(text, size, "%lld", (long long)whole);
    } else {
        memcpy(&number, field, sizeof number);
        snprintf(text, size, "%.17g", number);
    }
}

static void carnn__checkpoint_options(carnn__gguf *g, const carnn__checkpoint *c) {
    carnn_model_desc model;
    carnn_train_desc train;
    uint64_t names = 0;
    size_t i, count;
    const carnn_option *o = carnn_options(&count);
    memset(&model, 0, sizeof model);
    memset(&train, 0, sizeof train);
    carnn__gguf_options(g, &model, &train);
    carnn__gguf_bits(g, "carnn.names", CARNN__GGUF_U64, &names);
    if (g->status != CARNN_OK) return;
    if (strcmp(model.task, c->model->desc.task) != 0)
        carnn__gguf_fail(g, "checkpoint of the task %s, not %s", model.task, c->model->desc.task);
    for (i = 0; i < count; i++, o++) {
        char then[64], now[64];
        if (!carnn__option_kept(o) || carnn__option_may_differ(o)) continue;
        carnn__option_print(o, carnn__option_field(o, &model, &train), then, sizeof then);
        carnn__option_print(o, carnn__option_field(o, &c->model->desc, c->train), now, sizeof now);
        if (strcmp(then, now) != 0)
            carnn__gguf_fail(g, "checkpoint of a training with %s = %s, not %s", o->name, then,
                             now);
    }
    if (names != carnn__names_sum(c->model))
        carnn__gguf_fail(g, "checkpoint of a training with other words or candidates");
}

/* Values that have to be the same are compared when `set` is 0, the others are set when it is 1:
   nothing of the trainer changes before all has been seen. */
static void carnn__checkpoint_values(carnn__gguf *g, const carnn__checkpoint *c, int set) {
    size_t i;
    char key[64];
    for (i = 0; i < c->values; i++) {
        void *to = c->value[i].whole ? (void *)c->value[i].whole : (void *)c->value[i].real;
        uint64_t found = 0;
        carnn__checkpoint_key(key, c->value[i].name);
        carnn__gguf_bits(g, key, c->value[i].whole ? CARNN__GGUF_U64 : CARNN__GGUF_F64, &found);
        if (g->status != CARNN_OK) return;
        if (!set && c->value[i].same && memcmp(&found, to, sizeof found) != 0)
            carnn__gguf_fail(g, "checkpoint of a training with other %s", c->value[i].name);
        if (set && !c->value[i].same) memcpy(to, &found, sizeof found);
    }
}

static carnn_status carnn__checkpoint_read(carnn__gguf *g, const carnn__checkpoint *c) {
    const unsigned char *data;
    float *values;
    size_t i, size = c->model->params.trained;
    carnn__checkpoint_options(g, c);
    carnn__checkpoint_values(g, c, 0);
    carnn__gguf_count(g, c->arrays);
    for (i = 0; i < c->arrays; i++)
        carnn__gguf_tensor(g, c->array[i].name, 1, size, i * size);
    data = carnn__gguf_data(g, c->arrays * size);
    if (!data) return g->status;
    carnn__gguf_scores(g, c->model);
    values = (float *)(uintptr_t)data; /* in the block of carnn__checkpoint_load, and aligned */
    carnn__floats_from_bytes(values, data, c->arrays * size);
    for (i = 0; i < c->arrays; i++)
        if (!carnn__finite(values + i * size, size))
            carnn__gguf_fail(g, "%s holds NaN or infinity", c->array[i].name);
    if (g->status != CARNN_OK) return g->status;
    for (i = 0; i < c->arrays; i++)
        memcpy(c->array[i].value, values + i * size, size * sizeof(float));
    carnn__checkpoint_values(g, c, 1);
    return CARNN_OK;
}

static carnn_status carnn__checkpoint_load(const carnn__checkpoint *c, const char *file,
                                           carnn_error *error) {
    const carnn_allocator *allocator = &c->model->allocator;
    carnn__gguf g;
    void *block;
    size_t size;
    carnn_status status = carnn__read_file(file, allocator, &block, &size, error);
    if (status != CARNN_OK) return status;
    status = carnn__gguf_open(&g, "carnn-checkpoint", file, block, size, error);
    if (status == CARNN_OK) status = carnn__checkpoint_read(&g, c);
    carnn__free_aligned(allocator, block);
    return status;
}

#endif /* CARNN_NO_TRAIN */

#endif
/* =============================================================================================
   @@TRAIN   training and scoring
   ============================================================================================= */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

/* --- scoring --------------------------------------------------------------------------------- */

static void carnn__score(const carnn__head *head, const carnn__tally *tally, double seconds,
                         carnn_scores *scores) {
    memset(scores, 0, sizeof *scores);
    while (head->metric[scores->count]) {
        scores->metric[scores->count].name = head->metric[scores->count];
        scores->count++;
    }
    scores->examples = tally->examples;
    scores->tokens = tally->tokens;
    scores->loss = tally->loss / (double)carnn__max(carnn__tally_size(tally), 1);
    scores->seconds = seconds;
    head->score(tally, scores);
}

static void carnn__evaluate(carnn__work *work, carnn__arena *arena, carnn_scores *scores) {
    const carnn__head *head = work->model->head;
    carnn__tally tally;
    double started = carnn__clock();
    size_t batches, i;
    memset(&tally, 0, sizeof tally);
    arena->used = 0;
    head->carve(work, arena);
    batches = head->plan(work, 0);
    for (i = 0; i < batches; i++) head->batch(work, i, 0, &tally);
    carnn__score(head, &tally, carnn__clock() - started, scores);
}

/* Streams of random numbers beside those of the parameters, which are numbered from 0. */
#define CARNN__SHUFFLE_STREAM 0x5348554646ACE5u
#define CARNN__STEP_STREAM 0x53544550ACE5u

/* Examples in a batch where nothing is learnt. */
#define CARNN__SCORING_BATCH 64

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

/* What a model chooses among: candidates, or words. */
static const carnn__names *carnn__choices(const carnn_model *model) {
    return model->candidates.count ? &model->candidates : &model->words;
}

/* Models can vote only if they choose among the same answers. */
static carnn_status carnn__same_candidates(const carnn_model *const *models, size_t count,
                                           carnn_error *error) {
    size_t m, i;
    for (m = 1; m < count; m++) {
        const carnn__names *a = carnn__choices(models[0]), *b = carnn__choices(models[m]);
        int same = models[0]->head == models[m]->head && a->count == b->count;
        for (i = 0; same && i < a->count; i++)
            same = !strcmp(carnn__names_get(a, i), carnn__names_get(b, i));
        if (!same)
            return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "models 1 and %zu cannot vote: their "
                               "tasks, candidates or words differ", m + 1);
    }
    return CARNN_OK;
}

/* Models at work on the same batch in turn, each in its own part of the arena. */
typedef struct carnn__testing {
    carnn_allocator allocator;
    carnn__engine engine;
    carnn__arena arena;
    size_t count, opened;
    carnn__work *work, **pointer; /* (count) */
    carnn__tally *tally;          /* (count + 1) the last one is the vote's */
} carnn__testing;

static void carnn__testing_close(carnn__testing *t) {
    const carnn_allocator *a = &t->allocator;
    while (t->opened-- > 0) t->work[t->opened].model->head->close(&t->work[t->opened]);
    carnn__free_aligned(a, t->arena.base);
    carnn__free(a, t->tally);
    carnn__free(a, t->pointer);
    carnn__free(a, t->work);
    carnn__engine_close(&t->engine);
}

/* The works of the models, and their memory; `like` has what all of them are asked. */
static carnn_status carnn__testing_open(carnn__testing *t, const carnn_model *const *models,
                                        const carnn__work *like, carnn_error *error) {
    const carnn_allocator *a = &t->allocator;
    size_t m;
    t->work = (carnn__work *)carnn__alloc_zero(a, t->count, sizeof *t->work);
    t->pointer = (carnn__work **)carnn__alloc(a, t->count, sizeof *t->pointer);
    t->tally = (carnn__tally *)carnn__alloc_zero(a, t->count + 1, sizeof *t->tally);
    if (!t->work || !t->pointer || !t->tally) return carnn__out_of_memory(error);
    for (; t->opened < t->count; t->opened++) {
        carnn__work *work = t->pointer[t->opened] = &t->work[t->opened];
        carnn_status status;
        *work = carnn__scoring_work(models[t->opened], like->data, &t->engine);
        work->voting = t->count > 1;
        work->asked = like->asked;
        work->wanted = like->wanted;
        work->number = t->opened;
        if ((status = work->model->head->open(work, error)) != CARNN_OK) return status;
        work->model->head->carve(work, &t->arena);
    }
    t->arena.size = t->arena.peak;
    t->arena.base = (char *)carnn__alloc_aligned(a, t->arena.size, 1);
    t->arena.used = 0;
    if (!t->arena.base) return carnn__out_of_memory(error);
    for (m = 0; m < t->count; m++) models[m]->head->carve(&t->work[m], &t->arena);
    return CARNN_OK;
}

static void carnn__testing_run(carnn__testing *t) {
    const carnn__head *head = t->work[0].model->head;
    size_t m, i, batches = 0;
    for (m = 0; m < t->count; m++) batches = head->plan(&t->work[m], 0);
    for (i = 0; i < batches; i++) {
        for (m = 0; m < t->count; m++) head->batch(&t->work[m], i, 0, &t->tally[m]);
        if (t->count < 2) continue;
        t->work[0].number = t->count; /* speaks for all */
        head->vote(t->pointer, t->count, i, &t->tally[t->count]);
        t->work[0].number = 0;
    }
}

/* All models on a data set; `like` has it and what they are asked. scores may be NULL. */
static carnn_status carnn__test(const carnn_model *const *models, size_t count,
                                const carnn__work *like, int64_t threads, carnn_scores *scores,
                                carnn_error *error) {
    carnn__testing t;
    double started;
    size_t m;
    carnn_status status = CARNN_OK;
    memset(&t, 0, sizeof t);
    for (m = 0; m < count && !status; m++) status = carnn__same_task(models[m], like->data, error);
    if (!status) status = carnn__same_candidates(models, count, error);
    if (status) return status;
    t.allocator = models[0]->allocator;
    t.count = count;
    status = carnn__engine_open(&t.engine, models[0]->desc.simd, carnn__thread_count(threads),
                                t.allocator, error);
    if (status) return status;
    status = carnn__testing_open(&t, models, like, error);
    if (!status) {
        started = carnn__clock();
        carnn__testing_run(&t);
        for (m = 0; scores && m < count + (count > 1); m++)
            carnn__score(models[0]->head, &t.tally[m], carnn__clock() - started, &scores[m]);
    }
    carnn__testing_close(&t);
    return status;
}

CARNN_API carnn_status carnn_test_parts(const carnn_model *const *models, size_t count,
                                        const carnn_dataset *data, const carnn_test_desc *desc,
                                        carnn_scores *scores, carnn_error *error) {
    carnn__work like;
    if (!count) return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "no model to test");
    if (!data->examples)
        return carnn__fail(error, CARNN_ERR_DATA, 0, "there is no example to test on");
    memset(&like, 0, sizeof like);
    like.data = data;
    like.asked = desc;
    return carnn__test(models, count, &like, desc->threads, scores, error);
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
    carnn__work like;
    memset(&like, 0, sizeof like);
    like.data = data;
    like.wanted = desc;
    if (!data->examples) return carnn__same_task(model, data, error);
    return carnn__test(&model, 1, &like, desc->threads, NULL, error);
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
    if (!(all > 0.0)) return 1.0;
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

/* --- training --------------------------------------------------------------------------------
   An epoch goes through the shuffled batches; each batch is one step of the optimiser. After an
   epoch the validation set is scored, and the best weights so far are kept. The learning rate goes
   down along half a cosine from lr to lr_end * lr over all epochs (Loshchilov and Hutter 2017), and
   by the factor lr_decay from epoch to epoch.

   All that is random is drawn from (seed, epoch) or (seed, step), so that a run that was stopped in
   the middle of an epoch goes on exactly as if it had not been. */

#define CARNN__PI 3.14159265358979323846

typedef struct carnn__training {
    carnn_model *model;
    carnn_train_desc desc; /* complete */
    const carnn_dataset *train_data, *valid_data;
    carnn__engine engine;
    carnn__arena arena;    /* training and scoring take turns in it */
    carnn__work train, valid;
    carnn__optimizer optimizer;
    float *gradient;        /* laid out like the store, of what is trained; zeros between steps */
    float *best;            /* weights of the best epoch, without validation of the last one */
    float *average;         /* of the weights of all steps, where one is asked for, or NULL */
    uint64_t epoch;         /* finished ones */
    uint64_t batch;         /* finished ones of the epoch at hand */
    uint64_t step;
    carnn__tally tally;     /* of the epoch at hand */
    carnn_scores valid_scores;
    double best_value;
    double seconds;         /* of earlier runs that this one resumes */
    double started, reported, saved;
    double norm, rate_started;
    size_t rate_done;       /* examples or words before rate_started */
} carnn__training;

static void carnn__training_close(carnn__training *t) {
    const carnn_allocator *a = &t->model->allocator;
    const carnn__head *head = t->model->head;
    if (t->train.state) head->close(&t->train);
    if (t->valid.state) head->close(&t->valid);
    carnn__optimizer_close(&t->optimizer, a);
    carnn__free_aligned(a, t->gradient);
    carnn__free_aligned(a, t->best);
    carnn__free_aligned(a, t->average);
    carnn__free_aligned(a, t->arena.base);
    carnn__engine_close(&t->engine);
}

/* All memory of a training, before its first step. */
static carnn_status carnn__training_open(carnn__training *t, carnn_error *error) {
    carnn_model *model = t->model;
    const carnn_allocator *a = &model->allocator;
    size_t size = model->params.trained;
    carnn_status status = carnn__engine_open(&t->engine, model->desc.simd,
                                             carnn__thread_count(t->desc.threads), *a, error);
    if (status) return status;
    t->gradient = (float *)carnn__alloc_aligned(a, size, sizeof(float));
    t->best = (float *)carnn__alloc_aligned(a, size, sizeof(float));
    if (t->desc.average > 0.0) t->average = (float *)carnn__alloc_aligned(a, size, sizeof(float));
    if (!t->gradient || !t->best || (t->desc.average > 0.0 && !t->average))
        return carnn__out_of_memory(error);
    memset(t->gradient, 0, size * sizeof(float));
    memcpy(t->best, model->params.value, size * sizeof(float));
    if (t->average) memcpy(t->average, model->params.value, size * sizeof(float));
    t->train = carnn__scoring_work(model, t->train_data, &t->engine);
    t->train.g = t->gradient;
    t->train.batch = t->desc.batch;
    t->train.dropout = t->desc.dropout > 0.0 ? t->desc.dropout : 0.0;
    t->train.smoothing = t->desc.smoothing > 0.0 ? t->desc.smoothing : 0.0;
    status = carnn__optimizer_open(&t->optimizer, carnn__optimizer_number(t->desc.optimizer), size,
                                   a, error);
    if (!status) status = model->head->open(&t->train, error);
    if (!status && t->valid_data) {
        t->valid = carnn__scoring_work(model, t->valid_data, &t->engine);
        status = model->head->open(&t->valid, error);
    }
    if (status) return status;
    model->head->carve(&t->train, &t->arena);
    t->arena.used = 0;
    if (t->valid_data) model->head->carve(&t->valid, &t->arena);
    t->arena.size = t->arena.peak;
    t->arena.base = (char *)carnn__alloc_aligned(a, t->arena.size, 1);
    return t->arena.base ? CARNN_OK : carnn__out_of_memory(error);
}

static const char *const carnn__sum_names[CARNN_SCORES_MAX] = {"sum.0", "sum.1", "sum.2", "sum.3",
                                                               "sum.4", "sum.5", "sum.6", "sum.7"};

/* Tells data sets apart: a checkpoint goes on only with the data that it began with. */
static uint64_t carnn__fingerprint(const carnn_dataset *data) {
    carnn__sum sum;
    if (!data) return 0;
    carnn__sum_start(&sum);
    carnn__sum_add(&sum, data->bytes, data->text_at[data->text_count]);
    carnn__sum_add(&sum, data->lines, data->line_count * sizeof *data->lines);
    carnn__sum_add(&sum, data->dialog_start, data->dialog_count * sizeof *data->dialog_start);
    carnn__sum_add(&sum, data->sentences, data->sentence_count * sizeof *data->sentences);
    carnn__sum_add(&sum, data->pairs, data->pair_count * sizeof *data->pairs);
    return carnn__sum_end(&sum);
}

/* Tells the weights apart that are not trained. */
static uint64_t carnn__fixed_sum(const carnn__store *store) {
    carnn__sum sum;
    carnn__sum_start(&sum);
    carnn__sum_add(&sum, store->value + store->trained,
                   (store->size - store->trained) * sizeof(float));
    return carnn__sum_end(&sum);
}

/* What of a checkpoint is no field of carnn__training: sums of what must not have changed, and
   counts of the tally. */
typedef struct carnn__checkpoint_counts {
    uint64_t train, valid, fixed, examples, tokens;
} carnn__checkpoint_counts;

/* What a resumed run needs, for the checkpoint file. The tally's sums are of the epoch at hand. */
static carnn__checkpoint carnn__training_checkpoint(carnn__training *t,
                                                    carnn__checkpoint_counts *n) {
    carnn__checkpoint c;
    size_t i;
    memset(&c, 0, sizeof c);
    c.model = t->model;
    c.train = &t->desc;
    carnn__checkpoint_array(&c, "weights", t->model->params.value);
    carnn__checkpoint_array(&c, "best", t->best);
    if (t->average) carnn__checkpoint_array(&c, "average", t->average);
    for (i = 0; i < 2; i++)
        if (t->optimizer.moment[i])
            carnn__checkpoint_array(&c, i ? "moment.2" : "moment.1", t->optimizer.moment[i]);
    carnn__checkpoint_whole(&c, "epoch", &t->epoch, 0);
    carnn__checkpoint_whole(&c, "batch", &t->batch, 0);
    carnn__checkpoint_whole(&c, "step", &t->step, 0);
    n->train = carnn__fingerprint(t->train_data);
    n->valid = carnn__fingerprint(t->valid_data);
    n->fixed = carnn__fixed_sum(&t->model->params);
    n->examples = (uint64_t)t->tally.examples;
    n->tokens = (uint64_t)t->tally.tokens;
    carnn__checkpoint_whole(&c, "word vectors", &n->fixed, 1);
    carnn__checkpoint_whole(&c, "training data", &n->train, 1);
    carnn__checkpoint_whole(&c, "validation data", &n->valid, 1);
    carnn__checkpoint_whole(&c, "examples", &n->examples, 0);
    carnn__checkpoint_whole(&c, "tokens", &n->tokens, 0);
    carnn__checkpoint_real(&c, "loss", &t->tally.loss);
    for (i = 0; i < CARNN__COUNT(carnn__sum_names); i++)
        carnn__checkpoint_real(&c, carnn__sum_names[i], &t->tally.sum[i]);
    carnn__checkpoint_real(&c, "power_a", &t->optimizer.power_a);
    carnn__checkpoint_real(&c, "power_b", &t->optimizer.power_b);
    carnn__checkpoint_real(&c, "best_value", &t->best_value);
    carnn__checkpoint_real(&c, "seconds", &t->seconds);
    return c;
}

static carnn_status carnn__training_save(carnn__training *t, carnn_error *error) {
    carnn__checkpoint_counts counts;
    double before = t->seconds;
    carnn__checkpoint c;
    carnn_status status;
    if (!t->desc.checkpoint) return CARNN_OK;
    t->seconds += carnn__clock() - t->started;
    c = carnn__training_checkpoint(t, &counts);
    status = carnn__checkpoint_save(&c, t->desc.checkpoint, error);
    t->seconds = before;
    t->saved = carnn__clock();
    return status;
}

static carnn_status carnn__training_resume(carnn__training *t, carnn_error *error) {
    carnn__checkpoint_counts counts;
    carnn__checkpoint c = carnn__training_checkpoint(t, &counts);
    carnn_status status = carnn__checkpoint_load(&c, t->desc.checkpoint, error);
    if (status) return status;
    t->tally.examples = (size_t)counts.examples;
    t->tally.tokens = (size_t)counts.tokens;
    return CARNN_OK;
}

/* --- reports --------------------------------------------------------------------------------- */

static double carnn__learning_rate(const carnn__training *t, double done) {
    const carnn_train_desc *d = &t->desc;
    double along = ((double)t->epoch + done) / (double)d->epochs;
    double end = d->lr_end > 0.0 ? d->lr_end : 0.0;
    double cosine = end + (1.0 - end) * 0.5 * (1.0 + cos(CARNN__PI * along));
    return d->lr * cosine * pow(d->lr_decay, (double)t->epoch);
}

/* Tells the callback how things are; returns what it says. */
static int carnn__report(carnn__training *t, double done, int epoch_ended) {
    carnn_progress p;
    double now = carnn__clock(), all, epochs_done;
    t->reported = now;
    if (!t->desc.progress) return 0;
    memset(&p, 0, sizeof p);
    p.epoch = (int64_t)t->epoch + !epoch_ended;
    p.epochs = t->desc.epochs;
    p.done = done;
    p.loss = t->tally.loss / (double)carnn__max(carnn__tally_size(&t->tally), 1);
    p.rate = (double)(carnn__tally_size(&t->tally) - t->rate_done) /
             (now - t->rate_started + 1e-9);
    p.lr = carnn__learning_rate(t, epoch_ended ? 0.0 : done);
    p.gradient_norm = t->norm;
    p.seconds = t->seconds + now - t->started;
    epochs_done = (double)t->epoch + (epoch_ended ? 0.0 : done);
    all = epochs_done > 0.0 ? p.seconds / epochs_done * (double)t->desc.epochs : 0.0;
    p.seconds_left = all > p.seconds ? all - p.seconds : 0.0;
    p.epoch_ended = epoch_ended;
    p.scores = epoch_ended && t->valid_data ? &t->valid_scores : NULL;
    p.best = t->model->scores.count ? &t->model->scores : NULL;
    p.best_epoch = t->model->best_epoch;
    return t->desc.progress(&p, t->desc.user);
}

/* --- the loop -------------------------------------------------------------------------------- */

/* The first matrix of what is trained with a NaN or an infinity in it, NULL if there is none. */
static const char *carnn__not_finite(const carnn__store *store, const float *array) {
    size_t i, j;
    for (i = 0; i < store->count && store->item[i].offset < store->trained; i++)
        for (j = 0; j < store->item[i].rows * store->item[i].columns; j++)
            if (!(fabsf(array[store->item[i].offset + j]) <= FLT_MAX)) return store->item[i].name;
    return NULL;
}

static carnn_status carnn__diverged(const carnn__training *t, const char *what, const char *name,
                                    carnn_error *error) {
    return carnn__fail(error, CARNN_ERR_DIVERGED, 0, "training diverged in epoch %llu, step %llu: "
                       "%s %s is not finite; try a lower learning rate than %g",
                       (unsigned long long)t->epoch + 1, (unsigned long long)t->step, what, name,
                       carnn__learning_rate(t, 0.0));
}

static void carnn__average_range(const void *training, size_t from, size_t to) {
    const carnn__training *t = (const carnn__training *)training;
    double now = (1.0 + (double)t->step) / (10.0 + (double)t->step); /* soon rid of the first */
    double keep = now < t->desc.average ? now : t->desc.average;
    t->engine.k->approach(t->model->params.value + from, t->average + from, (float)(1.0 - keep),
                          to - from);
}

static void carnn__training_average(carnn__training *t) {
    size_t size = t->model->params.trained;
    carnn__split(&t->engine, carnn__average_range, t, size, 16, size);
}

static carnn_status carnn__training_step(carnn__training *t, size_t batches, carnn_error *error) {
    const carnn_train_desc *d = &t->desc;
    double lr = carnn__learning_rate(t, (double)t->batch / (double)batches);
    t->model->head->batch(&t->train, (size_t)t->batch,
                          carnn__stream(t->model->desc.seed ^ CARNN__STEP_STREAM, t->step),
                          &t->tally);
    t->norm = carnn__optimizer_step(&t->optimizer, &t->engine, t->model->params.value, t->gradient,
                                    lr, d->clip > 0.0 ? d->clip : 0.0,
                                    d->weight_decay > 0.0 ? d->weight_decay : 0.0);
    t->step++;
    t->batch++;
    if (!(t->norm <= DBL_MAX))
        return carnn__diverged(t, "the gradient of",
                               carnn__not_finite(&t->model->params, t->gradient), error);
    if (t->average) carnn__training_average(t);
    return CARNN_OK;
}

/* Puts the average in the place of the weights, or the weights back. The gradient, which is zero
   between two steps, holds the weights meanwhile. */
static void carnn__training_swap(carnn__training *t, int back) {
    size_t bytes = t->model->params.trained * sizeof(float);
    if (!t->average) return;
    if (!back) memcpy(t->gradient, t->model->params.value, bytes);
    memcpy(t->model->params.value, back ? t->gradient : t->average, bytes);
    if (back) memset(t->gradient, 0, bytes);
}

/* Scores the weights as they are and keeps them if they are the best. */
static carnn_status carnn__training_validate(carnn__training *t, int64_t epoch,
                                             carnn_error *error) {
    carnn_model *model = t->model;
    int sign = model->head->lower_is_better ? -1 : 1;
    double value;
    if (!t->valid_data) {
        carnn__score(model->head, &t->tally, 0.0, &model->scores);
    } else {
        carnn__evaluate(&t->valid, &t->arena, &t->valid_scores);
        if (!(t->valid_scores.loss <= DBL_MAX))
            return carnn__diverged(t, "the loss on", "the validation data", error);
        value = sign * t->valid_scores.metric[0].value;
        if (model->best_epoch && !(value > t->best_value)) return CARNN_OK;
        t->best_value = value;
        model->scores = t->valid_scores;
    }
    model->best_epoch = epoch;
    memcpy(t->best, model->params.value, model->params.trained * sizeof(float));
    return CARNN_OK;
}

/* One epoch, or the rest of one. Sets *stop where the run is to end after it. */
static carnn_status carnn__training_epoch(carnn__training *t, int *stop, carnn_error *error) {
    const carnn__head *head = t->model->head;
    uint64_t key = carnn__stream(t->model->desc.seed ^ CARNN__SHUFFLE_STREAM, t->epoch + 1);
    const char *broken;
    size_t batches;
    int stopped;
    carnn_status status;
    t->arena.used = 0;
    head->carve(&t->train, &t->arena);
    batches = head->plan(&t->train, key ? key : 1);
    t->rate_started = carnn__clock();
    t->rate_done = carnn__tally_size(&t->tally);
    while (t->batch < batches) {
        if ((status = carnn__training_step(t, batches, error)) != CARNN_OK) return status;
        if (t->batch < batches && carnn__clock() - t->reported > 0.1 &&
            carnn__report(t, (double)t->batch / (double)batches, 0))
            return carnn__fail(error, CARNN_ERR_STOPPED, 0, "stopped in epoch %llu",
                               (unsigned long long)t->epoch + 1);
        if (t->desc.max_time > 0.0 && carnn__clock() - t->started > t->desc.max_time) {
            *stop = 1;
            if (t->batch < batches) break;
        }
    }
    broken = carnn__not_finite(&t->model->params, t->model->params.value);
    if (broken) return carnn__diverged(t, "a weight of", broken, error);
    if (t->batch < batches && (status = carnn__training_save(t, error)) != CARNN_OK)
        return status; /* what follows is no part of a run that goes on */
    carnn__training_swap(t, 0);
    status = carnn__training_validate(t, (int64_t)t->epoch + 1, error);
    carnn__training_swap(t, 1);
    if (status) return status;
    if (t->batch < batches) return CARNN_OK; /* the time is over: the epoch is not */
    t->epoch++;
    t->batch = 0;
    stopped = carnn__report(t, 1.0, 1);
    memset(&t->tally, 0, sizeof t->tally);
    if (!stopped) return CARNN_OK;
    return carnn__fail(error, CARNN_ERR_STOPPED, 0, "stopped after epoch %llu",
                       (unsigned long long)t->epoch);
}

/* Are there epochs left, and has one of the last `patience` epochs been the best? */
static int carnn__training_goes_on(const carnn__training *t) {
    if (t->epoch >= (uint64_t)t->desc.epochs) return 0;
    return !t->valid_data || t->desc.patience <= 0 ||
           (int64_t)t->epoch - t->model->best_epoch < t->desc.patience;
}

/* A checkpoint costs a write of all weights and moments, so short epochs share one. */
#define CARNN__SECONDS_BETWEEN_SAVES 10.0

static carnn_status carnn__training_run(carnn__training *t, carnn_error *error) {
    carnn_status status = CARNN_OK, saved;
    int stop = 0;
    t->started = t->saved = carnn__clock();
    while (!status && !stop && carnn__training_goes_on(t)) {
        status = carnn__training_epoch(t, &stop, error);
        if (!status && carnn__clock() - t->saved > CARNN__SECONDS_BETWEEN_SAVES)
            status = carnn__training_save(t, error);
    }
    /* inside an epoch the time was over: that has been saved */
    if ((status == CARNN_OK && !t->batch) || status == CARNN_ERR_STOPPED) {
        saved = carnn__training_save(t, status ? NULL : error);
        if (!status) status = saved;
    }
    if (status == CARNN_ERR_DIVERGED || (t->model->best_epoch && (t->valid_data || t->average)))
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
    t.train_data = train;
    t.valid_data = valid;
    if (!model->block)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "a model that is used in place in the "
                           "caller's memory cannot be trained");
    if ((status = carnn_defaults(&complete, &t.desc, error)) != CARNN_OK) return status;
    if ((status = carnn__same_task(model, train, error)) != CARNN_OK) return status;
    if (valid && (status = carnn__same_task(model, valid, error)) != CARNN_OK) return status;
    if (!train->examples)
        return carnn__fail(error, CARNN_ERR_DATA, 0, "there is no example to train on");
    if (t.desc.resume && !t.desc.checkpoint)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "resume: no checkpoint file is named");
    memset(&model->scores, 0, sizeof model->scores);
    model->best_epoch = 0; /* of this training */
    status = carnn__training_open(&t, error);
    if (!status && t.desc.resume) status = carnn__training_resume(&t, error);
    if (!status) status = carnn__training_run(&t, error);
    model->trained = t.desc;
    model->trained.checkpoint = NULL;
    model->trained.progress = NULL;
    model->trained.user = NULL;
    model->trained.resume = 0;
    carnn__training_close(&t);
    return status;
}

#endif /* CARNN_NO_TRAIN */

#endif
/* =============================================================================================
   @@DEPLOY   sessions: answering and explaining

   A session keeps the encoded and projected utterances of one dialog, so that an answer costs the
   encoding of what is new, one scan over the history, and one product with the candidates.
   ============================================================================================= */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

/* Bytes of an utterance that are kept for explanations. */
#define CARNN__SESSION_TEXT 160

typedef struct carnn__lm_session carnn__lm_session; /* @@DEPLOY lm */
typedef struct carnn__answer_session carnn__answer_session; /* @@DEPLOY answer */

struct carnn_session {
    const carnn_model *model;
    carnn__lm_session *lm; /* language models have all of theirs there; else NULL */
    carnn__answer_session *answer; /* so have answer models */
    void *own;           /* the block, where it is the session's */
    carnn__engine engine;
    carnn__cell_run cell;
    size_t capacity;     /* slots for utterances */
    size_t history;      /* utterances before the latest that are read */
    size_t count;        /* utterances heard; slot 0 is the oldest */
    size_t projected;    /* those whose input products are made; the others wait for an answer */
    size_t facts;        /* facts in a row up to the latest utterance */
    size_t first, read;  /* the last answer was to slots [first, first + read) */
    size_t best;         /* and was this candidate */
    uint32_t *speaker;   /* (slots) */
    char *text;          /* (slots, CARNN__SESSION_TEXT) */
    uint32_t *slot;      /* (slots) 0, 1, 2, ...: rows by index */
    size_t *start;       /* (slots + 2) 0, 1, 2, ...: one sequence */
    carnn__packed packed;
    uint32_t *ids;       /* (CARNN__UTTERANCE_WORDS) */
    float *ramp;         /* (D) */
    float *e;            /* (slots, D) */
    float *y;            /* (L, D) candidates, packed: they are read for every answer */
    float *some;         /* (tile columns, D) a few of them as they are */
    float *weight, *o;   /* (slots), (D) */
    float *z;            /* (L) probabilities */
    double *share;       /* (D) */
};

static int carnn__is_lm(const carnn_model *model);
static void carnn__lm_session_carve(carnn_session *s, carnn__arena *arena);
static void carnn__lm_session_ready(carnn_session *s);
static void carnn__lm_session_reset(carnn_session *s);
static size_t carnn__lm_session_explain(carnn_session *s, size_t count, carnn_contribution *out,
                                        double *rest);
static int carnn__is_answer(const carnn_model *model);
static void carnn__answer_session_carve(carnn_session *s, carnn__arena *arena);
static void carnn__answer_session_ready(carnn_session *s);
static size_t carnn__answer_session_explain(carnn_session *s, size_t count,
                                            carnn_contribution *out, double *rest);

/* Lays out a session; on a counting arena this is how its size is known. */
static void carnn__session_carve(carnn_session *s, const carnn_model *model,
                                 const carnn__kernels *k, carnn__arena *arena) {
    size_t D = (size_t)model->desc.hidden, L = model->candidates.count, slots = s->capacity;
    carnn__take(arena, 1, sizeof *s);
    carnn__engine_borrow(&s->engine, k, carnn__take(arena, 1, carnn__engine_scratch(1)));
    if (carnn__is_lm(model)) {
        carnn__lm_session_carve(s, arena);
        return;
    }
    if (carnn__is_answer(model)) {
        carnn__answer_session_carve(s, arena);
        return;
    }
    s->speaker = (uint32_t *)carnn__take(arena, slots, sizeof(uint32_t));
    s->text = (char *)carnn__take(arena, slots, CARNN__SESSION_TEXT);
    s->slot = (uint32_t *)carnn__take(arena, slots, sizeof(uint32_t));
    s->start = (size_t *)carnn__take(arena, slots + 2, sizeof(size_t));
    s->ids = (uint32_t *)carnn__take(arena, CARNN__UTTERANCE_WORDS, sizeof(uint32_t));
    s->share = (double *)carnn__take(arena, D, sizeof(double));
    s->ramp = carnn__floats(arena, 1, D);
    s->e = carnn__floats(arena, slots, D);
    s->y = carnn__floats(arena, 1, carnn__packed_size(L, D));
    s->some = carnn__floats(arena, k->tile_columns, D);
    s->weight = carnn__floats(arena, 1, slots);
    s->o = carnn__floats(arena, 1, D);
    s->z = carnn__floats(arena, 1, L);
    carnn__cell_plan(&s->cell, &model->cells[0], &model->params, model->params.value, NULL, arena,
                     slots, slots, 1);
}

/* Room for the history, the latest utterance and the answer. */
static void carnn__session_limits(carnn_session *s) {
    s->history = carnn__dialog_kept(s->model);
    s->capacity = s->history + 2;
}

CARNN_API size_t carnn_session_size(const carnn_model *model) {
    const carnn__kernels *k = carnn__simd_select(model->desc.simd);
    carnn__arena arena = {NULL, 0, 0, 0};
    carnn_session s;
    if (!k) return 0;
    memset(&s, 0, sizeof s);
    s.model = model;
    carnn__session_limits(&s);
    carnn__session_carve(&s, model, k, &arena);
    return arena.peak;
}

static const float *carnn__session_weight(const carnn_session *s, size_t number) {
    return s->model->params.value + s->model->params.item[number].offset;
}

static carnn__encoder carnn__session_encoder(const carnn_session *s, const size_t *at,
                                             const uint32_t *ids, size_t texts, float *out) {
    carnn__encoder x;
    memset(&x, 0, sizeof x);
    x.texts = texts;
    x.D = (size_t)s->model->desc.hidden;
    x.ids = ids;
    x.at = at;
    x.ramp = s->ramp;
    x.table = carnn__session_weight(s, s->model->word_table);
    x.out = out;
    return x;
}

/* Encodes candidate i. */
static void carnn__session_candidate(carnn_session *s, size_t i, float *out) {
    const carnn__names *names = &s->model->candidates;
    size_t at[2] = {0, 0};
    carnn__encoder x;
    at[1] = carnn__encode(&s->model->words, CARNN__WORDS, carnn__names_get(names, i),
                          carnn__names_length(names, i), s->ids, CARNN__UTTERANCE_WORDS);
    at[1] = carnn__min(at[1], CARNN__UTTERANCE_WORDS);
    x = carnn__session_encoder(s, at, s->ids, 1, out);
    carnn__encode_texts(&s->engine, &x);
}

/* Encodes the candidates one by one, since they need no list of their words then, and packs them
   panel by panel. */
static void carnn__session_candidates(carnn_session *s) {
    size_t D = (size_t)s->model->desc.hidden, L = s->model->candidates.count, i, j, end;
    for (j = 0; j < L; j = end) {
        end = carnn__min(j + s->engine.k->tile_columns, L);
        for (i = j; i < end; i++) carnn__session_candidate(s, i, s->some + (i - j) * D);
        carnn__pack_columns(&s->engine, CARNN__NT, L, D, j, end, s->some, D, s->y);
    }
}

CARNN_API carnn_status carnn_session_open(carnn_session **out, const carnn_model *model,
                                          void *memory, carnn_error *error) {
    const carnn__kernels *k = carnn__simd_select(model->desc.simd);
    size_t size = carnn_session_size(model), i;
    carnn__arena arena = {NULL, 0, 0, 0};
    carnn_session *s;
    void *own = NULL;
    *out = NULL;
    if (!k) return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "this machine cannot run the SIMD "
                               "path that was asked for");
    if (!memory) memory = own = carnn__alloc_aligned(&model->allocator, size, 1);
    if (!memory) return carnn__out_of_memory(error);
    arena.base = (char *)memory;
    arena.size = size;
    s = (carnn_session *)memory;
    memset(s, 0, sizeof *s);
    s->model = model;
    s->own = own;
    carnn__session_limits(s);
    carnn__session_carve(s, model, k, &arena);
    *out = s;
    if (s->lm) {
        carnn__lm_session_ready(s);
        return CARNN_OK;
    }
    if (s->answer) {
        carnn__answer_session_ready(s);
        return CARNN_OK;
    }
    carnn__encoder_ramp(s->ramp, (size_t)model->desc.hidden);
    for (i = 0; i < s->capacity; i++) s->slot[i] = (uint32_t)i;
    for (i = 0; i < s->capacity + 2; i++) s->start[i] = i;
    carnn__cell_ready(&s->cell, &s->engine);
    carnn__session_candidates(s);
    carnn_session_reset(s);
    return CARNN_OK;
}

CARNN_API void carnn_session_free(carnn_session *session) {
    carnn_allocator a;
    if (!session || !session->own) return;
    a = session->model->allocator;
    carnn__free_aligned(&a, session->own);
}

/* Encodes the words s->ids[0 .. n) into the slot after the last. */
static void carnn__session_place(carnn_session *s, size_t n, uint32_t speaker, const char *text,
                                 size_t length) {
    size_t D = (size_t)s->model->desc.hidden, at[2] = {0, n}, i;
    carnn__encoder x = carnn__session_encoder(s, at, s->ids, 1, s->e + s->count * D);
    char *kept = s->text + s->count * CARNN__SESSION_TEXT;
    carnn__encode_texts(&s->engine, &x);
    length = carnn__min(length, CARNN__SESSION_TEXT - 1);
    for (i = 0; i < length; i++) kept[i] = text[i] ? text[i] : ' ';
    kept[length] = 0;
    s->speaker[s->count] = speaker;
}

CARNN_API void carnn_session_reset(carnn_session *session) {
    const char *start = carnn__dialog_reserved[0];
    if (session->lm) {
        carnn__lm_session_reset(session);
        return;
    }
    if (session->answer) return;
    session->count = session->projected = session->facts = session->read = 0;
    session->ids[0] = CARNN__DIALOG_START;
    carnn__session_place(session, 1, CARNN_SYSTEM, start, strlen(start));
    session->count = 1;
}

/* Forgets the oldest utterances until there are `room` free slots. */
static void carnn__session_room(carnn_session *s, size_t room) {
    size_t D = (size_t)s->model->desc.hidden, width = carnn__cells[s->cell.cell->kind].gates * D;
    size_t gone = s->count + room > s->capacity ? s->count + room - s->capacity : 0;
    size_t left = s->count - gone;
    if (!gone) return;
    memmove(s->e, s->e + gone * D, left * D * sizeof(float));
    memmove((float *)s->cell.scan.px, s->cell.scan.px + gone * width, left * width * sizeof(float));
    memmove(s->speaker, s->speaker + gone, left * sizeof *s->speaker);
    memmove(s->text, s->text + gone * CARNN__SESSION_TEXT, left * CARNN__SESSION_TEXT);
    s->count = left;
    s->projected -= carnn__min(s->projected, gone);
    s->read = 0; /* nothing to explain any more */
}

static void carnn__session_utter(carnn_session *s, carnn_speaker speaker, const char *text,
                                 size_t length) {
    size_t n = carnn__dialog_encode(s->model, (uint32_t)speaker, text, length, s->ids,
                                    CARNN__UTTERANCE_WORDS);
    carnn__session_place(s, n, (uint32_t)speaker, text, length);
}

CARNN_API void carnn_session_hear(carnn_session *session, carnn_speaker speaker, const char *text,
                                  size_t length) {
    int64_t most = session->model->desc.kb_rows;
    if (session->lm || session->answer) return;
    if ((int)speaker < CARNN_USER || speaker > CARNN_FACT) return;
    session->facts = speaker == CARNN_FACT ? session->facts + 1 : 0;
    if (most >= 0 && session->facts > (size_t)most) return;
    carnn__session_room(session, 1);
    if (session->first + session->read > session->count)
        session->read = 0; /* the utterance that was ranked for makes room: nothing to explain */
    carnn__session_utter(session, speaker, text, length);
    session->count++;
}

/* Answers the utterance in the slot after the last: probabilities in z. What has been heard since
   the last answer is projected with it: the weights, most of the time, are read once. */
static void carnn__session_answer(carnn_session *s) {
    size_t D = (size_t)s->model->desc.hidden, L = s->model->candidates.count;
    carnn__attention a;
    s->read = carnn__min(s->count, s->history) + 1;
    s->first = s->count + 1 - s->read;
    s->packed.sequences = 1;
    s->packed.steps = s->packed.rows = s->read;
    s->packed.start = s->start;
    memset(&a, 0, sizeof a);
    a.seq = &s->packed;
    a.D = D;
    a.index = s->slot + s->first;
    a.h = s->cell.scan.out;
    a.e = s->e;
    a.c = s->e + s->count * D;
    a.weight = s->weight;
    a.o = s->o;
    carnn__cell_project(&s->cell, &s->engine, s->e, s->projected, s->count + 1);
    s->projected = s->count; /* the slot after the last may be filled anew */
    carnn__cell_context(&s->cell, &s->engine, a.c, 1);
    carnn__cell_forward(&s->cell, &s->engine, &s->packed, a.index, NULL, NULL);
    s->engine.k->attend(&a, 0, 1);
    carnn__matmul_packed(&s->engine, 0, 1, L, D, s->o, D, s->y, NULL, s->z, L);
    s->engine.k->softmax(s->z, L);
    s->best = s->engine.k->argmax(s->z, L);
}

CARNN_API size_t carnn_session_rank(carnn_session *session, const char *user, size_t length,
                                    size_t count, size_t *candidate, double *probability) {
    if (session->lm || session->answer) return 0;
    carnn__session_room(session, 2);
    carnn__session_utter(session, CARNN_USER, user, length);
    carnn__session_answer(session);
    return carnn__ranking(session->engine.k, session->z, session->model->candidates.count, count,
                          candidate, probability);
}

CARNN_API const char *carnn_session_reply(carnn_session *session, const char *user, size_t length) {
    const carnn__names *candidates = &session->model->candidates;
    const char *reply;
    if (session->lm || session->answer) return "";
    carnn_session_rank(session, user, length, 0, NULL, NULL);
    session->projected = ++session->count; /* the user's utterance stays */
    session->facts = 0;
    reply = carnn__names_get(candidates, session->best);
    carnn_session_hear(session, CARNN_SYSTEM, reply,
                       carnn__names_length(candidates, session->best));
    return reply;
}

/* --- explain ---------------------------------------------------------------------------------
   The states of the additive cells are weighted sums of their candidates (Tran et al. 2018, Eq. 4
   and 7), so o is one too. With h_t = A_t h_{t-1} + w_t k_t, and al_t from Eq. 8:

     o = sum_t al_t (h_t + e_t) = sum_t [w_t R_t k_t + al_t e_t]     R_t = al_t + A_{t+1} R_{t+1}

   The logit o . y of the answer is thus a sum over utterances, exactly; the part of k_t that is its
   bias belongs to none of them. For other cells the sum is over steps: al_t (h_t + e_t) . y. */

static double carnn__logistic(double x) {
    return 1.0 / (1.0 + exp(-x));
}

/* w_t, A_t and the bias of k_t in column j of row t (input `slot`) of the sequence of rank b; 0: the
   cell is not additive. */
static int carnn__additive_step(const carnn__cell_run *r, size_t b, size_t t, size_t slot, size_t j,
                                double *w, double *A, double *k, double *bias) {
    const carnn__cell_kind *kind = &carnn__cells[r->cell->kind];
    size_t h = r->cell->h;
    const float *px = r->scan.px + slot * kind->gates * h + j;
    const float *pc = r->scan.pc + b * kind->context_gates * h;
    const float *tape = kind->tape ? r->scan.tape + t * kind->tape * h + j : NULL;
    double u;
    *k = kind->flags & CARNN__INPUT_IS_CANDIDATE ? (double)r->x[slot * h + j] : (double)px[2 * h];
    *bias = kind->bias_gates > 2 ? (double)carnn__cell_weight(r, r->cell->bias)[2 * h + j] : 0.0;
    switch (r->cell->kind) {
    case CARNN__CELL_icarnn:
    case CARNN__CELL_scarnn:
        u = carnn__logistic((double)px[0] + (double)pc[j]);
        *w = u * carnn__logistic((double)px[h] + (double)pc[h + j]);
        *A = 1.0 - u;
        return 1;
    case CARNN__CELL_carnn_low:
        *w = carnn__logistic((double)px[0] + (double)pc[j]);
        *A = 1.0 - *w;
        return 1;
    case CARNN__CELL_ncarnn:
    case CARNN__CELL_ncarnn_free:
        *w = (double)tape[0] * (double)tape[h];
        *A = 1.0 - (double)tape[0];
        return 1;
    case CARNN__CELL_ran:
        *w = (double)tape[0];
        *A = (double)tape[h];
        return 1;
    default: return 0;
    }
}

/* What row t adds to the logit of the candidate in `some`; s->share (D) is A_{t+1} R_{t+1} and
   becomes A_t R_t. What is the biases' goes to *rest. */
static double carnn__row_score(const carnn_session *s, size_t t, double *rest) {
    size_t j, D = (size_t)s->model->desc.hidden, slot = s->first + t;
    const float *y = s->some, *e = s->e + slot * D, *h = s->cell.scan.out + t * D;
    double alpha = (double)s->weight[t], score = 0.0;
    for (j = 0; j < D; j++) {
        double w, A, k, bias, R = alpha + s->share[j];
        if (carnn__additive_step(&s->cell, 0, t, slot, j, &w, &A, &k, &bias)) {
            score += (double)y[j] * (w * R * (k - bias) + alpha * (double)e[j]);
            *rest += (double)y[j] * w * R * bias;
            s->share[j] = A * R;
        } else {
            score += (double)y[j] * alpha * ((double)h[j] + (double)e[j]);
        }
    }
    return score;
}

CARNN_API size_t carnn_session_explain(carnn_session *session, size_t count,
                                       carnn_contribution *out, double *rest) {
    const carnn_session *s = session;
    size_t t, j;
    double others = 0.0;
    if (s->lm) return carnn__lm_session_explain(session, count, out, rest);
    if (s->answer) return carnn__answer_session_explain(session, count, out, rest);
    carnn__session_candidate(session, s->best, s->some);
    for (j = 0; j < (size_t)s->model->desc.hidden; j++) s->share[j] = 0.0;
    for (t = s->read; t-- > 0;) {
        double score = carnn__row_score(s, t, &others);
        if (t >= count) continue;
        out[t].speaker = (carnn_speaker)s->speaker[s->first + t];
        out[t].text = s->text + (s->first + t) * CARNN__SESSION_TEXT;
        out[t].attention = (double)s->weight[t];
        out[t].score = score;
    }
    if (rest) *rest = others;
    return s->read;
}

#endif
/* =============================================================================================
   @@DEPLOY lm   sessions of language models: scoring, generating, explaining

   A session reads sentence after sentence. It keeps the piece (@@HEAD lm) that it has read last,
   which is encoded as context when the next one begins, so that both can still be explained.
   ============================================================================================= */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

/* Rows of logits at a time: enough to read the output's weights seldom. */
#define CARNN__LM_BLOCK 16

struct carnn__lm_session {
    carnn__cell_run cell[CARNN__LAYERS_MAX], encoder;
    carnn__packed packed;
    size_t *start;          /* (steps + 2) 0, 1, 2, ...: one sequence */
    uint32_t *ids, *before; /* (steps + 1) the piece at hand and its last target; the one before */
    size_t steps, before_steps; /* 0: there is none */
    uint32_t best;          /* the word that was explained */
    uint64_t drawn;         /* words that were drawn by chance */
    float *words;           /* (steps, e) */
    float *x[2];            /* (steps, widest input) */
    float *c;               /* (h) */
    float *h, *memory;      /* (layers, h) states after the last step */
    float *z;               /* (CARNN__LM_BLOCK, V) */
    float *top;             /* (rows, h) states of the last layer in the last run */
    double *share;          /* (h) */
};

static int carnn__is_lm(const carnn_model *model) { return !strcmp(model->desc.task, "lm"); }

static void carnn__lm_session_carve(carnn_session *s, carnn__arena *arena) {
    const carnn_model *model = s->model;
    carnn__lm_session *l = (carnn__lm_session *)carnn__take(arena, 1, sizeof *l), counting;
    size_t e = (size_t)model->desc.embedding, h = (size_t)model->desc.hidden, i;
    size_t layers = (size_t)model->desc.layers, T = CARNN__LM_STEPS;
    s->lm = l;
    if (!l) l = &counting;
    memset(l, 0, sizeof *l);
    l->start = (size_t *)carnn__take(arena, T + 2, sizeof(size_t));
    l->ids = (uint32_t *)carnn__take(arena, T + 1, sizeof(uint32_t));
    l->before = (uint32_t *)carnn__take(arena, T + 1, sizeof(uint32_t));
    l->share = (double *)carnn__take(arena, h, sizeof(double));
    l->words = carnn__floats(arena, T, e);
    for (i = 0; i < 2; i++) l->x[i] = carnn__floats(arena, T, e + h);
    l->c = carnn__floats(arena, 1, h);
    l->h = carnn__floats(arena, layers, h);
    l->memory = carnn__floats(arena, layers, h);
    l->z = carnn__floats(arena, CARNN__LM_BLOCK, model->words.count);
    for (i = 0; i < layers; i++)
        carnn__cell_plan(&l->cell[i], &model->cells[i], &model->params,
                         model->params.value, NULL, arena, T, T, 1);
    if (carnn__lm_encodes(model))
        carnn__cell_plan(&l->encoder, &model->lm.encoder, &model->params,
                         model->params.value, NULL, arena, T, T, 1);
}

static void carnn__lm_session_ready(carnn_session *s) {
    carnn__lm_session *l = s->lm;
    size_t i;
    for (i = 0; i < CARNN__LM_STEPS + 2; i++) l->start[i] = i;
    for (i = 0; i < (size_t)s->model->desc.layers; i++) carnn__cell_ready(&l->cell[i], &s->engine);
    if (carnn__lm_encodes(s->model)) carnn__cell_ready(&l->encoder, &s->engine);
}

/* The next sentence begins a document. */
static void carnn__lm_session_reset(carnn_session *s) { s->lm->steps = 0; }

/* --- reading --------------------------------------------------------------------------------- */

static void carnn__lm_steps(carnn__lm_session *l, size_t n) {
    l->packed.sequences = 1;
    l->packed.steps = l->packed.rows = n;
    l->packed.start = l->start;
}

/* Begins a piece whose first input is `first`; what was read before becomes its context. */
static void carnn__lm_begin(carnn_session *s, uint32_t first) {
    carnn__lm_session *l = s->lm;
    size_t h = (size_t)s->model->desc.hidden, e = (size_t)s->model->desc.embedding, i;
    size_t layers = (size_t)s->model->desc.layers, n = l->steps;
    const float *c = NULL;
    for (i = 0; i < n; i++) l->before[i] = l->ids[i + 1];
    l->before_steps = carnn__lm_has_context(s->model) ? n : 0;
    l->steps = 0;
    l->ids[0] = first;
    memset(l->h, 0, layers * h * sizeof(float));
    memset(l->memory, 0, layers * h * sizeof(float));
    if (!carnn__lm_has_context(s->model)) return;
    c = carnn__session_weight(s, s->model->lm.start);
    if (n && carnn__lm_encodes(s->model)) {
        carnn__gather_rows(l->words, carnn__session_weight(s, s->model->word_table), l->before, n,
                           e);
        carnn__lm_steps(l, n);
        carnn__cell_project(&l->encoder, &s->engine, l->words, 0, n);
        carnn__cell_forward(&l->encoder, &s->engine, &l->packed, NULL, NULL, NULL);
        c = l->encoder.scan.out + (n - 1) * h;
    }
    memcpy(l->c, c, h * sizeof(float));
}

/* The inputs ids[from .. from + n) as rows of x[0]. */
static void carnn__lm_session_input(carnn_session *s, size_t from, size_t n) {
    carnn__lm_session *l = s->lm;
    const carnn_model *model = s->model;
    size_t h = (size_t)model->desc.hidden, e = (size_t)model->desc.embedding, row;
    size_t width = model->cells[0].e;
    carnn__gather_rows(l->words, carnn__session_weight(s, model->word_table), l->ids + from, n, e);
    if (model->lm.projects) {
        carnn__matmul(&s->engine, CARNN__NT, n, h, e, l->words, e,
                      carnn__session_weight(s, model->lm.project), e, NULL, l->x[0], h);
        return;
    }
    for (row = 0; row < n; row++) {
        memcpy(l->x[0] + row * width, l->words + row * e, e * sizeof(float));
        if (width > e) memcpy(l->x[0] + row * width + e, l->c, h * sizeof(float));
    }
}

/* Reads the inputs ids[from .. from + n) and goes on from the states before them. */
static void carnn__lm_run(carnn_session *s, size_t from, size_t n) {
    carnn__lm_session *l = s->lm;
    size_t h = (size_t)s->model->desc.hidden, i;
    carnn__lm_session_input(s, from, n);
    carnn__lm_steps(l, n);
    for (i = 0; i < (size_t)s->model->desc.layers; i++) {
        carnn__cell_run *r = &l->cell[i];
        const carnn__cell_kind *k = &carnn__cells[r->cell->kind];
        float *states = l->h + i * h, *memory = l->memory + i * h;
        carnn__cell_project(r, &s->engine, l->x[i % 2], 0, n);
        carnn__cell_context(r, &s->engine, l->c, 1);
        carnn__cell_forward(r, &s->engine, &l->packed, NULL, states, memory);
        l->top = l->x[(i + 1) % 2];
        memcpy(l->top, r->scan.out, n * h * sizeof(float));
        memcpy(states, r->scan.out + (n - 1) * h, h * sizeof(float));
        if (k->flags & CARNN__HAS_CELL_STATE) /* c stands last on the tape of its row */
            memcpy(memory, r->scan.tape + (n * k->tape - 1) * h, h * sizeof(float));
    }
}

/* The logits after `rows` states of the last run, from row `from` on. */
static void carnn__lm_logits(carnn_session *s, size_t from, size_t rows) {
    size_t h = (size_t)s->model->desc.hidden, V = s->model->words.count;
    carnn__matmul(&s->engine, CARNN__NT, rows, V, h, s->lm->top + from * h, h,
                  carnn__session_weight(s, s->model->lm.output), h,
                  carnn__session_weight(s, s->model->lm.bias), s->lm->z, V);
}

/* Scores the piece at hand, which is complete: the sum of -log P of its targets. */
static double carnn__lm_score_piece(carnn_session *s) {
    carnn__lm_session *l = s->lm;
    size_t from, rows, i, V = s->model->words.count;
    double nll = 0.0;
    carnn__lm_run(s, 0, l->steps);
    for (from = 0; from < l->steps; from += rows) {
        float loss[CARNN__LM_BLOCK];
        carnn__cross_entropy x = {V, l->z, l->ids + from + 1, 0, 0.0f, 0.0f, loss};
        rows = carnn__min(CARNN__LM_BLOCK, l->steps - from);
        carnn__lm_logits(s, from, rows);
        s->engine.k->cross_entropy(&x, 0, rows);
        for (i = 0; i < rows; i++) nll += (double)loss[i];
    }
    return nll;
}

/* The words of a line of a data file: between blanks and before a tab, or, where it reads
   speaker|text|act, as Switchboard's are told apart. */
typedef struct carnn__lm_line {
    int spoken;
    carnn__words plain;
    carnn__span rest;
} carnn__lm_line;

static carnn__lm_line carnn__lm_line_of(const carnn_model *model, const char *text,
                                        size_t length) {
    carnn__lm_line line;
    const char *tab = length ? (const char *)memchr(text, '\t', length) : NULL;
    memset(&line, 0, sizeof line);
    if (tab) length = (size_t)(tab - text);
    line.plain = carnn__words_of(carnn__lm_tokenizer(model), text, length);
#ifndef CARNN_NO_TEXT
    if (!tab && length) {
        carnn__span all = {text, length}, act;
        line.spoken = carnn__spoken(all, &line.rest, &act);
    }
#endif
    return line;
}

/* Moves on to the next word and its number; 0 when there is none. */
static int carnn__lm_next(carnn__lm_line *line, const carnn__names *words, uint32_t *id) {
    carnn__span word;
    memset(&word, 0, sizeof word);
    if (!line->spoken) {
        if (!carnn__next_word(&line->plain)) return 0;
        word = line->plain.word;
    }
#ifndef CARNN_NO_TEXT
    while (line->spoken && !word.length) {
        if (!line->rest.length) return 0;
        word.at = line->rest.at;
        word.length = carnn__spoken_word(line->rest);
        line->rest.at += carnn__max(word.length, 1);
        line->rest.length -= carnn__max(word.length, 1);
    }
#endif
    *id = carnn__names_find_folded(words, word.at, word.length,
                                   line->spoken || carnn__folds(line->plain.kind));
    if (*id == CARNN__NOWHERE) *id = 0;
    return 1;
}

CARNN_API size_t carnn_session_score(carnn_session *session, const char *text, size_t length,
                                     double *nll) {
    carnn__lm_session *l = session->lm;
    carnn__lm_line line = carnn__lm_line_of(session->model, text, length);
    size_t tokens = 0;
    double sum = 0.0;
    int more = 1;
    if (nll) *nll = 0.0;
    if (!l) return 0;
    carnn__lm_begin(session, CARNN__LM_BEGIN);
    while (more) {
        uint32_t id = CARNN__LM_END;
        more = carnn__lm_next(&line, &session->model->words, &id);
        if (l->steps == CARNN__LM_STEPS) { /* the next piece of a long sentence */
            sum += carnn__lm_score_piece(session);
            carnn__lm_begin(session, l->ids[l->steps]);
        }
        l->ids[++l->steps] = id;
        tokens++;
    }
    sum += carnn__lm_score_piece(session);
    if (nll) *nll = sum;
    return tokens;
}

/* --- generating ------------------------------------------------------------------------------ */

/* Lets x[at] sink in a heap of n numbers, where none is above the one at half its place. */
static void carnn__lm_sink(float *x, size_t n, size_t at) {
    float value = x[at];
    size_t child;
    for (; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && x[child + 1] > x[child]) child++;
        if (x[child] <= value) break;
        x[at] = x[child];
    }
    x[at] = value;
}

/* Sets all but the most probable words to 0, of equal ones the later: at most `most` are kept (0:
   all), and no more than have the probability `mass` together (0: all). heap (V) is scratch. */
static void carnn__lm_truncate(float *p, float *heap, size_t V, size_t most, double mass) {
    size_t kept, equal = 0, i; /* equal: how many of those kept have the least probability */
    float least = FLT_MAX;
    double sum = 0.0;
    memcpy(heap, p, V * sizeof *p);
    for (i = V / 2; i-- > 0;) carnn__lm_sink(heap, V, i);
    for (kept = 0; kept < V && (!most || kept < most) && (mass <= 0.0 || sum < mass); kept++) {
        equal = heap[0] < least ? 1 : equal + 1;
        least = heap[0];
        sum += (double)least;
        heap[0] = heap[V - 1 - kept];
        carnn__lm_sink(heap, V - 1 - kept, 0);
    }
    for (i = 0; i < V; i++)
        if (p[i] < least || (p[i] <= least && !equal)) p[i] = 0.0f;
        else if (p[i] <= least) equal--;
}

/* Draws a word from the logits in z. <s> and <unk> are never drawn. */
static uint32_t carnn__lm_draw(carnn_session *s, const carnn_sampling *how) {
    float *p = s->lm->z;
    size_t V = s->model->words.count, i, last;
    double heat = how->temperature > 0.0 ? how->temperature : how->temperature < 0.0 ? 0.0 : 1.0;
    double sum = 0.0, at, best;
    p[0] = p[CARNN__LM_BEGIN] = -FLT_MAX;
    last = s->engine.k->argmax(p, V);
    if (heat <= 0.0) return (uint32_t)last;
    best = (double)p[last];
    for (i = CARNN__LM_END; i < V; i++) p[i] = (float)(((double)p[i] - best) / heat);
    s->engine.k->softmax(p, V);
    if ((how->top_k > 0 && (size_t)how->top_k < V) || (how->top_p > 0.0 && how->top_p < 1.0))
        carnn__lm_truncate(p, p + V, V, how->top_k > 0 ? (size_t)how->top_k : 0, how->top_p);
    for (i = 0; i < V; i++) sum += (double)p[i];
    at = sum * (double)carnn__uniform(carnn__stream(how->seed, s->lm->drawn++), 0);
    for (i = 0; i < V; i++) {
        if (p[i] <= 0.0f) continue;
        last = i;
        at -= (double)p[i];
        if (at < 0.0) break;
    }
    return (uint32_t)last;
}

/* Adds a word to the text of `size` bytes that has `*at` already; 0 where it does not fit. */
static int carnn__lm_write(const char *word, char *text, size_t size, size_t *at) {
    size_t length = strlen(word);
    if (*at + length + 2 > size) return 0;
    if (*at) text[(*at)++] = ' ';
    memcpy(text + *at, word, length + 1);
    *at += length;
    return 1;
}

CARNN_API size_t carnn_session_generate(carnn_session *session, const carnn_sampling *how,
                                        const char *prompt, size_t length, char *text,
                                        size_t size) {
    carnn__lm_session *l = session->lm;
    carnn__lm_line line = carnn__lm_line_of(session->model, prompt, length);
    size_t at = 0, most = how->words > 0 ? (size_t)how->words : 100, words = 0;
    uint32_t id = CARNN__LM_BEGIN;
    if (size) text[0] = 0;
    if (!l) return 0;
    carnn__lm_begin(session, id);
    while (id != CARNN__LM_END) {
        if (l->steps == CARNN__LM_STEPS) carnn__lm_begin(session, id);
        carnn__lm_run(session, l->steps, 1);
        if (!carnn__lm_next(&line, &session->model->words, &id)) {
            carnn__lm_logits(session, 0, 1);
            id = words++ < most ? carnn__lm_draw(session, how) : (uint32_t)CARNN__LM_END;
        }
        l->ids[++l->steps] = id;
        if (id != CARNN__LM_END &&
            !carnn__lm_write(carnn__names_get(&session->model->words, id), text, size, &at))
            size = 0; /* nor does what follows */
    }
    return at;
}

/* --- explaining ------------------------------------------------------------------------------
   What the last sentence's state has in favour of the most probable next word y is a sum over the
   words read (Tran et al. 2018, Eq. 4 and 7): with h_t = A_t h_{t-1} + w_t k_t,

     W_y h_T + b_y = sum_t W_y (w_t R_t k_t) + b_y       R_t = A_{t+1} R_{t+1}, R_T = 1

   In the same way the context is c = sum_t v_t over the words of the sentence before, of which each
   has the share v_t c / c c. Biases belong to no word. */

/* sum_j y_j w_tj R_tj (k_tj - bias_j) of row t, which has the input `slot` and belongs to the
   sequence of rank b; `share` (h) is R_t and becomes R_{t-1}. */
static double carnn__step_score(const carnn__cell_run *r, size_t b, size_t t, size_t slot,
                                const float *y, double *share) {
    size_t j;
    double score = 0.0;
    for (j = 0; j < r->cell->h; j++) {
        double w, A, k, bias;
        if (!carnn__additive_step(r, b, t, slot, j, &w, &A, &k, &bias)) return 0.0;
        score += (double)y[j] * w * share[j] * (k - bias);
        share[j] *= A;
    }
    return score;
}

static void carnn__lm_share_start(double *share, size_t h, double value) {
    size_t j;
    for (j = 0; j < h; j++) share[j] = value;
}

/* The words before: their shares in the context. */
static void carnn__lm_explain_before(carnn_session *s, size_t count, carnn_contribution *out) {
    carnn__lm_session *l = s->lm;
    size_t h = (size_t)s->model->desc.hidden, t, j;
    double squares = 0.0;
    for (j = 0; j < h; j++) squares += (double)l->c[j] * (double)l->c[j];
    carnn__lm_share_start(l->share, h, squares > 0.0 ? 1.0 / squares : 0.0);
    for (t = l->before_steps; t-- > 0;) {
        double share = 0.0;
        if (carnn__lm_encodes(s->model))
            share = carnn__step_score(&l->encoder, 0, t, t, l->c, l->share);
        if (t >= count) continue;
        out[t].speaker = CARNN_FACT;
        out[t].text = carnn__names_get(&s->model->words, l->before[t]);
        out[t].attention = share;
        out[t].score = 0.0;
    }
}

static size_t carnn__lm_session_explain(carnn_session *s, size_t count, carnn_contribution *out,
                                        double *rest) {
    carnn__lm_session *l = s->lm;
    const carnn__cell_run *r = &l->cell[s->model->desc.layers - 1];
    size_t h = (size_t)s->model->desc.hidden, first = l->before_steps, t;
    const float *y;
    double others;
    if (rest) *rest = 0.0;
    if (!l->steps || l->packed.rows != l->steps) return 0; /* nothing was scored */
    carnn__lm_explain_before(s, count, out);
    carnn__lm_logits(s, l->steps - 1, 1);
    l->z[CARNN__LM_BEGIN] = -FLT_MAX;
    l->best = (uint32_t)s->engine.k->argmax(l->z, s->model->words.count);
    y = carnn__session_weight(s, s->model->lm.output) + (size_t)l->best * h;
    others = (double)l->z[l->best];
    carnn__lm_share_start(l->share, h, 1.0);
    for (t = l->steps; t-- > 0;) {
        double score = carnn__step_score(r, 0, t, t, y, l->share);
        others -= score;
        if (first + t >= count) continue;
        out[first + t].speaker = CARNN_USER;
        out[first + t].text = carnn__names_get(&s->model->words, l->ids[t]);
        out[first + t].attention = 0.0;
        out[first + t].score = score;
    }
    if (rest) *rest = others;
    return first + l->steps;
}

CARNN_API const char *carnn_session_next_word(const carnn_session *session) {
    return session->lm ? carnn__names_get(&session->model->words, session->lm->best) : "";
}

#endif
/* =============================================================================================
   @@DEPLOY answer   sessions of answer models: matching and explaining

   A session works on a batch of one pair with the functions of @@HEAD answer, whose data set and
   lists lie in the session's block.
   ============================================================================================= */

#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)

#define CARNN__WORD_TEXT 32 /* bytes of a word that are kept for explanations */

struct carnn__answer_session {
    carnn__work work;
    carnn__answer head;
    carnn_dataset data;      /* two texts and a pair of them */
    carnn__pair pair;
    carnn__answer_piece piece;
    size_t group_start[2], at[3], batch_start[2];
    uint32_t queue[1];
    char (*text)[CARNN__WORD_TEXT]; /* (2 CARNN__SENTENCE_WORDS) */
    double *share;           /* (h) */
    size_t matches;
};

static int carnn__is_answer(const carnn_model *model) {
    return !strcmp(model->desc.task, "answer");
}

static void carnn__answer_session_carve(carnn_session *s, carnn__arena *arena) {
    const carnn_model *model = s->model;
    carnn__answer_session *a = (carnn__answer_session *)carnn__take(arena, 1, sizeof *a), counting;
    size_t V = model->words.count, W = CARNN__SENTENCE_WORDS;
    carnn__answer *d;
    s->answer = a;
    if (!a) a = &counting;
    memset(a, 0, sizeof *a);
    d = &a->head;
    a->work.model = model;
    a->work.data = &a->data;
    a->work.engine = &s->engine;
    a->work.w = model->params.value;
    a->work.state = d;
    d->max_pairs = 1;
    d->max_steps = W;
    d->max_rows = 2 * W;
    d->max_cells = 2 * W * W;
    d->max_inputs = carnn__min(2 * W, 2 * V);
    d->texts.ids = (uint32_t *)carnn__take(arena, 2 * W, sizeof(uint32_t));
    d->score = carnn__floats(arena, 1, 1);
    d->stem = (uint32_t *)carnn__take(arena, V, sizeof(uint32_t));
    d->local = (uint32_t *)carnn__take(arena, 2 * V, sizeof(uint32_t));
    d->ramp = carnn__floats(arena, 1, model->cells[0].e);
    a->text = (char (*)[CARNN__WORD_TEXT])carnn__take(arena, 2 * W, CARNN__WORD_TEXT);
    a->share = (double *)carnn__take(arena, (size_t)model->desc.hidden, sizeof(double));
    carnn__answer_carve(&a->work, arena);
}

static void carnn__answer_session_ready(carnn_session *s) {
    carnn__answer_session *a = s->answer;
    carnn__answer *d = &a->head;
    carnn__answer_ready(d, s->model);
    d->texts.at = a->at;
    d->pieces = &a->piece;
    d->queue = a->queue;
    d->batch_start = a->batch_start;
    d->shares = carnn__answer_shares(s->model);
    a->batch_start[1] = a->piece.count = 1;
    a->data.pairs = &a->pair;
    a->data.group_start = a->group_start;
    a->pair.answer = 1;
}

/* Reads text `number` of the pair, and keeps its words for explanations. */
static void carnn__answer_hear(carnn_session *s, size_t number, const char *text, size_t length) {
    carnn__answer_session *a = s->answer;
    carnn__span span = {text, length};
    carnn__words w = carnn__words_of(CARNN__TOKENS, text, length);
    size_t from = a->at[number], n, i;
    n = carnn__answer_words(s->model, span, a->head.texts.ids + from);
    a->at[number + 1] = from + n;
    for (i = 0; i < n && carnn__next_word(&w); i++) {
        char *kept = a->text[from + i];
        size_t bytes = carnn__min(w.word.length, CARNN__WORD_TEXT - 1), j;
        for (j = 0; j < bytes; j++) kept[j] = w.word.at[j] ? w.word.at[j] : ' ';
        kept[bytes] = 0;
    }
}

CARNN_API double carnn_session_match(carnn_session *session, const char *question,
                                     size_t question_length, const char *sentence,
                                     size_t sentence_length) {
    carnn__answer_session *a = session->answer;
    if (!a) return 0.0;
    carnn__answer_hear(session, 0, question, question_length);
    carnn__answer_hear(session, 1, sentence, sentence_length);
    carnn__answer_collect(&a->work, 0);
    carnn__answer_forward(&a->work, 0);
    a->matches++;
    return (double)*a->head.z;
}

CARNN_API const float *carnn_session_alignment(const carnn_session *session, int of_sentence,
                                               size_t *rows, size_t *columns) {
    const carnn__answer_session *a = session->answer;
    size_t m, n;
    *rows = *columns = 0;
    if (!a || !a->matches || carnn__answer_is_siamese(session->model)) return NULL;
    m = a->at[1];
    n = a->at[2] - m;
    *rows = of_sentence ? n : m;
    *columns = of_sentence ? m : n;
    return a->head.E + (of_sentence ? m * n : 0);
}

/* --- explaining ------------------------------------------------------------------------------
   The last states v = [fw_n; bw_1] of a sentence are sums over its words (Tran et al. 2018, Eq. 4
   and 7), and a word's part v_i has the share v_i . v / v . v in them. */

/* Adds the shares in one direction to those of the words in out, of which there are `count`. */
static void carnn__answer_shares_of(carnn_session *s, size_t sentence, size_t direction,
                                    double squares, size_t count, carnn_contribution *out,
                                    double *rest) {
    carnn__answer_session *a = s->answer;
    const carnn__answer *d = &a->head;
    const carnn__cell_run *r = &d->cell[direction];
    size_t h = r->cell->h, n = a->at[sentence + 1] - a->at[sentence], t, j;
    size_t b = d->place[d->sequence[sentence]];
    const float *v = r->scan.out + (d->start[n - 1] + b) * h;
    for (j = 0; j < h; j++) a->share[j] = 1.0 / squares;
    for (t = n; t-- > 0;) {
        size_t row = d->start[t] + b, word = a->at[sentence] + (direction ? n - 1 - t : t);
        double share = carnn__step_score(r, b, row, d->index[direction][row], v, a->share);
        *rest -= share;
        if (word < count) out[word].score += share;
    }
}

static size_t carnn__answer_session_explain(carnn_session *s, size_t count,
                                            carnn_contribution *out, double *rest) {
    carnn__answer_session *a = s->answer;
    const carnn__answer *d = &a->head;
    size_t sentence, i, j, h = (size_t)s->model->desc.hidden, words = a->at[2];
    int siamese = carnn__answer_is_siamese(s->model);
    double others = 0.0;
    for (i = 0; a->matches && i < words && i < count; i++) {
        out[i].speaker = i < a->at[1] ? CARNN_USER : CARNN_SYSTEM;
        out[i].text = a->text[i];
        out[i].attention = siamese ? 0.0 : (double)d->weight[i];
        out[i].score = 0.0;
    }
    for (sentence = 0; a->matches && sentence < 2; sentence++) {
        double squares = 0.0;
        uint32_t row = carnn__answer_last_row(d, sentence);
        if (row == CARNN__NOWHERE) continue;
        for (i = 0; i < 2; i++)
            for (j = 0; j < h; j++)
                squares += pow((double)d->cell[i].scan.out[row * h + j], 2.0);
        if (!(squares > 0.0)) continue;
        others += 1.0;
        for (i = 0; i < 2; i++)
            carnn__answer_shares_of(s, sentence, i, squares, count, out, &others);
    }
    if (rest) *rest = others;
    return words;
}

#endif
/* =============================================================================================
   @@CHECK   derivatives against central differences

   Every entry of the tables of cells, parts and tasks is a "subject": some arrays of floats (its
   inputs and weights), a loss, and what our backward functions say are the derivatives. The check
   moves one number at a time,

     dL/dx = (8 (L(x+s) - L(x-s)) - (L(x+2s) - L(x-2s))) / 12 s + O(s^4)

   and then all numbers of an array at once, each up or down by chance, which no single wrong
   derivative survives. The forward pass is in floats, so L, summed in doubles, is known to about
   3e-8: that leaves an error of 3e-8 / s beside the s^4 of the formula, which is large where the
   loss bends much or has a kink. So three steps are tried and the best counts: a right derivative
   agrees with one of them, a wrong one with none. Errors are relative to the root mean square of
   the derivatives of the array, and a thousandth more, since a slope is known to a few 1e-7. Over
   many seeds right ones stay below 2e-4 (of answer models below 1.2e-3). An array that is 2 % too
   large exceeds the limit; single wrong derivatives are off by about 1, by 1/10 where they are as
   small as 1e-4. An array whose derivatives are all zero has not been checked at all and counts as
   wrong.
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
    CARNN__CHECK_INPUTS = 4 /* where rows share them */
};

typedef struct carnn__checked { /* one array */
    float *value;
    float *gradient;
    size_t count;
} carnn__checked;

typedef struct carnn__subject carnn__subject;

struct carnn__subject {
    carnn__engine *engine;
    carnn__arena arena;
    uint64_t key;      /* of its numbers */
    uint64_t drawn;    /* arrays so far */
    size_t number, variant; /* in the table; of the entry */
    double (*loss)(carnn__subject *s); /* sets the gradients, too */
    carnn__checked array[CARNN__PARAMS_MAX + 8];
    size_t arrays;
    /* sequences */
    carnn__packed seq;
    size_t start[CARNN__CHECK_STEPS + 2];
    uint32_t rank[CARNN__CHECK_B], index[CARNN__CHECK_ROWS];
    const uint32_t *shared; /* index, or NULL where row i has input i */
    size_t inputs;
    /* cells and parts: inputs, and the weights of the loss sum_i weight_i out_i */
    carnn__checked x, c, h, h0, c0, out;
    float *scratch, *scratch_back;
    carnn__store store;
    carnn__cell cell;
    carnn__cell_run run;
    /* tasks */
    carnn_dataset *data;
    carnn_model *model;
    carnn__work work;
};

/* Numbers in [-1, 1). */
static void carnn__check_draw(carnn__subject *s, float *x, size_t count) {
    uint64_t key = carnn__stream(s->key, ++s->drawn);
    size_t i;
    for (i = 0; x && i < count; i++) x[i] = 2.0f * carnn__uniform(key, i) - 1.0f;
}

/* An array of the subject, with memory for its gradient. */
static carnn__checked carnn__check_array(carnn__subject *s, size_t rows, size_t columns) {
    carnn__checked a;
    a.value = carnn__floats(&s->arena, rows, columns);
    a.gradient = carnn__floats(&s->arena, rows, columns);
    a.count = rows * columns;
    carnn__check_draw(s, a.value, a.count);
    return a;
}

/* One whose derivatives are checked. */
static carnn__checked carnn__check_input(carnn__subject *s, size_t rows, size_t columns) {
    carnn__checked a = carnn__check_array(s, rows, columns);
    if (a.count) s->array[s->arrays++] = a;
    return a;
}

/* All matrices of a store as arrays; half as large as inputs, so that few gates saturate. */
static void carnn__check_store(carnn__subject *s, const carnn__store *store, float *w, float *g) {
    size_t i, j;
    for (i = 0; i < store->count && store->item[i].offset < store->trained; i++) {
        carnn__checked *a = &s->array[s->arrays++];
        a->count = store->item[i].rows * store->item[i].columns;
        a->value = w ? carnn__piece(store, w, i) : NULL;
        a->gradient = g ? carnn__piece(store, g, i) : NULL;
        carnn__check_draw(s, a->value, a->count);
        for (j = 0; a->value && j < a->count; j++) a->value[j] *= 0.5f;
    }
}

static void carnn__check_clear(const carnn__checked *a) {
    memset(a->gradient, 0, a->count * sizeof(float));
}

/* The loss sum_i weight_i out_i of what a forward pass has put into `out`; its derivatives at
   `out` are the weights, which never change. */
static double carnn__check_sum(const carnn__checked *weight, const float *out) {
    double sum = 0.0;
    size_t i;
    for (i = 0; i < weight->count; i++) sum += (double)weight->value[i] * (double)out[i];
    return sum;
}

/* --- sequences -------------------------------------------------------------------------------
   Variant 0: every row has its own input; 1: rows share inputs; 2: the rows are read backwards. */

static void carnn__check_sequences(carnn__subject *s) {
    static const uint32_t length[CARNN__CHECK_B] = {3, 5, 0, 1};
    size_t t, b;
    carnn__pack_sequences(&s->seq, length, CARNN__CHECK_B, s->rank, s->start);
    for (t = 0; t < s->seq.steps; t++)
        for (b = 0; b < s->start[t + 1] - s->start[t]; b++) {
            size_t row = s->start[t] + b;
            s->index[row] = (uint32_t)(
                s->variant == 1 ? (3 * t + b) % CARNN__CHECK_INPUTS
                                : carnn__reversed_row(&s->seq, length[s->rank[b]], t, b));
        }
    s->shared = s->variant ? s->index : NULL;
    s->inputs = s->variant == 1 ? (size_t)CARNN__CHECK_INPUTS : (size_t)CARNN__CHECK_ROWS;
}

/* --- cells ----------------------------------------------------------------------------------- */

static double carnn__check_cell_loss(carnn__subject *s) {
    carnn__cell_run *r = &s->run;
    int states = (int)(carnn__cells[s->number].flags & CARNN__HAS_CELL_STATE);
    memset(r->g, 0, s->store.size * sizeof(float));
    carnn__check_clear(&s->x);
    carnn__cell_ready(r, s->engine);
    carnn__cell_project(r, s->engine, s->x.value, 0, s->inputs);
    if (s->c.count) carnn__cell_context(r, s->engine, s->c.value, CARNN__CHECK_B);
    carnn__cell_forward(r, s->engine, &s->seq, s->shared, s->h0.value, states ? s->c0.value : NULL);
    carnn__cell_backward(r, s->engine, s->out.value, s->x.gradient);
    if (s->c.count) {
        carnn__check_clear(&s->c);
        carnn__cell_context_back(r, s->engine, s->c.gradient);
    }
    carnn__cell_project_back(r, s->engine, s->x.gradient);
    memcpy(s->h0.gradient, r->scan.dh, s->h0.count * sizeof(float));
    if (states) memcpy(s->c0.gradient, r->scan.dc, s->c0.count * sizeof(float));
    return carnn__check_sum(&s->out, r->scan.out);
}

static carnn_status carnn__check_cell_open(carnn__subject *s, carnn_error *error) {
    const carnn__cell_kind *k = &carnn__cells[s->number];
    size_t e = k->flags & CARNN__INPUT_IS_CANDIDATE ? CARNN__CHECK_H : CARNN__CHECK_E;
    (void)error;
    carnn__check_sequences(s);
    carnn__cell_declare(&s->cell, &s->store, "", s->number, e, CARNN__CHECK_H, CARNN__CHECK_D);
    s->loss = carnn__check_cell_loss;
    return CARNN_OK;
}

static void carnn__check_cell_carve(carnn__subject *s) {
    float *w = carnn__floats(&s->arena, 1, s->store.size);
    float *g = carnn__floats(&s->arena, 1, s->store.size), dummy = 0.0f;
    if (w) memset(w, 0, s->store.size * sizeof(float));
    carnn__check_store(s, &s->store, w, g);
    s->x = carnn__check_input(s, s->inputs, s->cell.e);
    if (s->cell.d) s->c = carnn__check_input(s, CARNN__CHECK_B, s->cell.d);
    s->h0 = carnn__check_input(s, CARNN__CHECK_B, CARNN__CHECK_H);
    if (carnn__cells[s->number].flags & CARNN__HAS_CELL_STATE)
        s->c0 = carnn__check_input(s, CARNN__CHECK_B, CARNN__CHECK_H);
    s->out = carnn__check_array(s, CARNN__CHECK_ROWS, CARNN__CHECK_H);
    carnn__cell_plan(&s->run, &s->cell, &s->store, w, g ? g : &dummy, &s->arena, s->inputs,
                     CARNN__CHECK_ROWS, CARNN__CHECK_B);
}

/* --- parts ----------------------------------------------------------------------------------- */

/* Texts of 3, 0, 1 and 5 words out of 6; one of them is read twice. */
static double carnn__check_encoder_loss(carnn__subject *s) {
    static const uint32_t ids[] = {0, 1, 2, 3, 4, 4, 5, 1, 0}, which[] = {0, 1, 2, 3, 0};
    static const size_t at[] = {0, 3, 3, 4, 9};
    carnn__encoder e;
    e.texts = CARNN__COUNT(which);
    e.D = CARNN__CHECK_H;
    e.which = which;
    e.ids = ids;
    e.at = at;
    e.ramp = s->scratch_back;
    e.table = s->x.value;
    e.out = s->scratch;
    e.dtable = s->x.gradient;
    e.dout = s->out.value;
    carnn__encoder_ramp(s->scratch_back, CARNN__CHECK_H);
    carnn__check_clear(&s->x);
    carnn__encode_texts(s->engine, &e);
    carnn__encode_texts_back(s->engine, &e);
    return carnn__check_sum(&s->out, s->scratch);
}

static double carnn__check_rows_loss(carnn__subject *s) {
    static const uint32_t index[] = {2, 0, 2, 1, 2};
    carnn__check_clear(&s->x);
    carnn__gather_rows(s->scratch, s->x.value, index, CARNN__COUNT(index), CARNN__CHECK_H);
    carnn__scatter_rows(s->engine, s->x.gradient, s->out.value, index, CARNN__COUNT(index),
                        CARNN__CHECK_H);
    return carnn__check_sum(&s->out, s->scratch);
}

/* y = x W' + b, and back with the other two forms of a product. */
static double carnn__check_product_loss(carnn__subject *s) {
    enum { m = CARNN__CHECK_ROWS, n = CARNN__CHECK_H, k = CARNN__CHECK_E };
    carnn__check_clear(&s->c0);
    carnn__matmul(s->engine, CARNN__NT, m, n, k, s->x.value, k, s->c.value, k, s->c0.value,
                  s->scratch, n);
    carnn__matmul(s->engine, CARNN__NN, m, k, n, s->out.value, n, s->c.value, k, NULL,
                  s->x.gradient, k);
    carnn__matmul(s->engine, CARNN__TN, n, k, m, s->out.value, n, s->x.value, k, NULL,
                  s->c.gradient, k);
    carnn__column_sums(s->engine, m, n, s->out.value, n, s->c0.gradient);
    return carnn__check_sum(&s->out, s->scratch);
}

static double carnn__check_attention_loss(carnn__subject *s) {
    size_t weights = CARNN__CHECK_B * CARNN__CHECK_STEPS;
    carnn__attention a;
    a.seq = &s->seq;
    a.D = CARNN__CHECK_H;
    a.index = s->shared;
    a.h = s->h.value;
    a.e = s->x.value;
    a.c = s->c.value;
    a.weight = s->scratch_back;
    a.gweight = s->scratch_back + weights;
    a.o = s->scratch;
    a.go = s->out.value;
    a.gh = s->h.gradient;
    a.gc = s->c.gradient;
    carnn__check_clear(&s->x);
    carnn__check_clear(&s->c);
    s->engine->k->attend(&a, 0, CARNN__CHECK_B);
    s->engine->k->attend_back(&a, 0, CARNN__CHECK_B);
    carnn__scatter_rows(s->engine, s->x.gradient, s->h.gradient, s->shared, CARNN__CHECK_ROWS,
                        CARNN__CHECK_H);
    return carnn__check_sum(&s->out, s->scratch);
}

/* The gradient replaces the logits; one row has no target. */
static double carnn__check_entropy(carnn__subject *s, float smoothing) {
    static const uint32_t target[] = {3, 0, CARNN__NOWHERE, CARNN__CHECK_H - 1};
    carnn__cross_entropy e = {CARNN__CHECK_H, s->x.gradient, target, 1, 0.5f, smoothing,
                              s->scratch};
    double sum = 0.0;
    size_t i;
    memcpy(s->x.gradient, s->x.value, s->x.count * sizeof(float));
    s->engine->k->cross_entropy(&e, 0, CARNN__COUNT(target));
    for (i = 0; i < CARNN__COUNT(target); i++) sum += 0.5 * (double)s->scratch[i];
    return sum;
}

static double carnn__check_hard_loss(carnn__subject *s) { return carnn__check_entropy(s, 0.0f); }
static double carnn__check_soft_loss(carnn__subject *s) { return carnn__check_entropy(s, 0.3f); }

/* Forward and backward draw the same mask. */
static double carnn__check_dropout_loss(carnn__subject *s) {
    memcpy(s->scratch, s->x.value, s->x.count * sizeof(float));
    memcpy(s->x.gradient, s->out.value, s->x.count * sizeof(float));
    carnn__dropout(s->engine, s->scratch, s->x.count, 0.3, s->key);
    carnn__dropout(s->engine, s->x.gradient, s->x.count, 0.3, s->key);
    return carnn__check_sum(&s->out, s->scratch);
}

/* The rows are moved apart, each time in another order: a step must not change which is largest. */
static double carnn__check_pool_max_loss(carnn__subject *s) {
    uint32_t where[CARNN__CHECK_B * CARNN__CHECK_H];
    size_t i;
    carnn__check_clear(&s->x);
    for (i = 0; i < s->x.count; i++)
        s->scratch_back[i] = s->x.value[i] + 4.0f * (float)((i / CARNN__CHECK_H * 4 + i) % 9);
    carnn__pool_max(&s->seq, CARNN__CHECK_H, s->scratch_back, s->scratch, where);
    carnn__pool_max_back(&s->seq, CARNN__CHECK_H, s->out.value, where, s->x.gradient);
    return carnn__check_sum(&s->out, s->scratch);
}

static double carnn__check_pool_mean_loss(carnn__subject *s) {
    static const uint32_t count[CARNN__CHECK_B] = {5, 3, 1, 0};
    carnn__check_clear(&s->x);
    carnn__pool_mean(&s->seq, CARNN__CHECK_H, s->x.value, count, s->scratch);
    carnn__pool_mean_back(&s->seq, CARNN__CHECK_H, s->out.value, count, s->x.gradient);
    return carnn__check_sum(&s->out, s->scratch);
}

static double carnn__check_align_loss(carnn__subject *s) {
    float E[20], dE[20];
    carnn__check_clear(&s->x);
    carnn__check_clear(&s->h);
    carnn__align(s->engine, 5, 4, CARNN__CHECK_H, s->x.value, s->h.value, E, s->scratch);
    carnn__align_back(s->engine, 5, 4, CARNN__CHECK_H, s->x.value, s->h.value, E, s->out.value, dE,
                      s->x.gradient, s->h.gradient);
    return carnn__check_sum(&s->out, s->scratch);
}

static double carnn__check_compose(carnn__subject *s, int orthogonal) {
    float share[CARNN__CHECK_ROWS];
    carnn__compose c;
    c.rows = s->x.count / CARNN__CHECK_H;
    c.D = CARNN__CHECK_H;
    c.orthogonal = orthogonal;
    c.x = s->x.value;
    c.a = s->h.value;
    c.weight = s->c.value;
    c.share = share;
    c.f = s->scratch;
    c.df = s->out.value;
    c.dx = s->x.gradient;
    c.da = s->h.gradient;
    c.dweight = s->c.gradient;
    s->engine->k->compose(&c);
    s->engine->k->compose_back(&c);
    return carnn__check_sum(&s->out, s->scratch);
}

static double carnn__check_orthogonal_loss(carnn__subject *s) { return carnn__check_compose(s, 1); }
static double carnn__check_direct_loss(carnn__subject *s) { return carnn__check_compose(s, 0); }

static double carnn__check_cosine_loss(carnn__subject *s) {
    carnn__check_clear(&s->x);
    carnn__check_clear(&s->h);
    *s->scratch = carnn__cosine(s->engine->k, CARNN__CHECK_H, s->x.value, s->h.value);
    carnn__cosine_back(s->engine->k, CARNN__CHECK_H, s->x.value, s->h.value, *s->out.value,
                       s->x.gradient, s->h.gradient);
    return carnn__check_sum(&s->out, s->scratch);
}

static double carnn__check_directions_loss(carnn__subject *s) {
    uint32_t reversed[CARNN__CHECK_ROWS];
    carnn__reverse_index(&s->seq, reversed);
    carnn__join_directions(s->x.value, s->h.value, reversed, CARNN__CHECK_ROWS, CARNN__CHECK_H,
                           s->scratch);
    carnn__part_directions(s->out.value, reversed, CARNN__CHECK_ROWS, CARNN__CHECK_H,
                           s->x.gradient, s->h.gradient);
    return carnn__check_sum(&s->out, s->scratch);
}

/* Rows and columns of the arrays that a part works on; without rows there is no array. */
static const struct {
    const char *name;
    double (*loss)(carnn__subject *s);
    size_t x[2], h[2], c[2], c0[2], out[2];
} carnn__check_parts[] = {
#define CARNN__H CARNN__CHECK_H
#define CARNN__E CARNN__CHECK_E
    {"position encoder", carnn__check_encoder_loss, {6, CARNN__H}, {0}, {0}, {0}, {5, CARNN__H}},
    {"rows by index", carnn__check_rows_loss, {3, CARNN__H}, {0}, {0}, {0}, {5, CARNN__H}},
    {"product", carnn__check_product_loss, {CARNN__CHECK_ROWS, CARNN__E}, {0},
     {CARNN__H, CARNN__E}, {1, CARNN__H}, {CARNN__CHECK_ROWS, CARNN__H}},
    {"attention", carnn__check_attention_loss, {CARNN__CHECK_INPUTS, CARNN__H},
     {CARNN__CHECK_ROWS, CARNN__H}, {CARNN__CHECK_B, CARNN__H}, {0}, {CARNN__CHECK_B, CARNN__H}},
    {"max pooling", carnn__check_pool_max_loss, {CARNN__CHECK_ROWS, CARNN__H}, {0}, {0}, {0},
     {CARNN__CHECK_B, CARNN__H}},
    {"mean pooling", carnn__check_pool_mean_loss, {CARNN__CHECK_ROWS, CARNN__H}, {0}, {0}, {0},
     {CARNN__CHECK_B, CARNN__H}},
    {"both directions", carnn__check_directions_loss, {CARNN__CHECK_ROWS, CARNN__H},
     {CARNN__CHECK_ROWS, CARNN__H}, {0}, {0}, {CARNN__CHECK_ROWS, 2 * CARNN__H}},
    {"alignment", carnn__check_align_loss, {5, CARNN__H}, {4, CARNN__H}, {0}, {0},
     {5, CARNN__H}},
    {"orthogonal decomposition", carnn__check_orthogonal_loss, {5, CARNN__H}, {5, CARNN__H},
     {5, 1}, {0}, {1, 2 * CARNN__H}},
    {"direct decomposition", carnn__check_direct_loss, {5, CARNN__H}, {5, CARNN__H}, {5, 1}, {0},
     {1, CARNN__H}},
    {"cosine", carnn__check_cosine_loss, {1, CARNN__H}, {1, CARNN__H}, {0}, {0}, {1, 1}},
    {"cross entropy", carnn__check_hard_loss, {4, CARNN__H}, {0}, {0}, {0}, {0}},
    {"smoothed cross entropy", carnn__check_soft_loss, {4, CARNN__H}, {0}, {0}, {0}, {0}},
    {"dropout", carnn__check_dropout_loss, {3, CARNN__H}, {0}, {0}, {0}, {3, CARNN__H}},
#undef CARNN__H
#undef CARNN__E
};

static const char *carnn__check_part_name(size_t number) {
    return number < CARNN__COUNT(carnn__check_parts) ? carnn__check_parts[number].name : NULL;
}

static carnn_status carnn__check_part_open(carnn__subject *s, carnn_error *error) {
    (void)error;
    s->variant = 1;
    carnn__check_sequences(s);
    s->loss = carnn__check_parts[s->number].loss;
    return CARNN_OK;
}

static void carnn__check_part_carve(carnn__subject *s) {
    size_t n = s->number;
    s->scratch = carnn__floats(&s->arena, CARNN__CHECK_ROWS, 2 * CARNN__CHECK_H);
    s->scratch_back = carnn__floats(&s->arena, CARNN__CHECK_ROWS, CARNN__CHECK_H);
    s->x = carnn__check_input(s, carnn__check_parts[n].x[0], carnn__check_parts[n].x[1]);
    s->h = carnn__check_input(s, carnn__check_parts[n].h[0], carnn__check_parts[n].h[1]);
    s->c = carnn__check_input(s, carnn__check_parts[n].c[0], carnn__check_parts[n].c[1]);
    s->c0 = carnn__check_input(s, carnn__check_parts[n].c0[0], carnn__check_parts[n].c0[1]);
    s->out = carnn__check_array(s, carnn__check_parts[n].out[0], carnn__check_parts[n].out[1]);
}

/* --- tasks -----------------------------------------------------------------------------------
   Small models of the task, from text to loss, with dropout and label smoothing. */

#define CARNN__CHECK_SENTENCES                                                                     \
    "a b a b\tx\nb a c\ty\nc a\n\tx\nd b a\ty\n=\na c b b c\ty\nb a\tx\n"

#define CARNN__CHECK_PAIRS                                                                         \
    "a b\tb a\t1\na b\te\t0\na b\tc e b\t0\nd c\td\t1\nd c\ta d b\t0\n"

static const struct {
    const char *task, *text;
    const char *options; /* of the model: names and values, with blanks between them */
} carnn__check_tasks[] = {
    {"lm", CARNN__CHECK_SENTENCES, ""},
    {"lm", CARNN__CHECK_SENTENCES, "cell icarnn layers 2 tied 1"},
    {"lm", CARNN__CHECK_SENTENCES, "cell scarnn embedding 13 layers 1"},
    {"lm", CARNN__CHECK_SENTENCES, "cell lstm context previous embedding 13 layers 1"},
    {"lm", CARNN__CHECK_SENTENCES, "cell gru context none embedding 13 layers 2"},
    {"lm", CARNN__CHECK_SENTENCES, "cell carnn-high context none layers 1 tied 1"},
    {"answer", CARNN__CHECK_PAIRS, "embedding 101"},
    {"answer", CARNN__CHECK_PAIRS, "embedding 101 cell ncarnn decomposition direct loss pair"},
    {"answer", CARNN__CHECK_PAIRS, "embedding 101 cell scarnn weighting skip"},
    {"answer", CARNN__CHECK_PAIRS, "embedding 101 cell lstm overlap 0"},
    {"answer", CARNN__CHECK_PAIRS, "embedding 101 cell icarnn model siamese"},
    {"answer", CARNN__CHECK_PAIRS, "embedding 101 cell gru model siamese overlap 0 loss pair"},
    {"dialog", "1 hi\thello , what can i do\n2 some thai food please\twhere should it be\n"
               "3 thai_house R_phone 12\n4 thai_house R_area north\n"
               "5 in the north\tapi_call thai north\n6 thank you\tyou are welcome\n\n"
               "1 hi\thello , what can i do\n2 thank you\tyou are welcome\n",
     ""},
};

#define CARNN__CHECK_TASK_VARIANTS 6

/* The entry of variant `variant` of a task; one past the last where it has none. */
static size_t carnn__check_task(const char *task, size_t variant) {
    size_t i;
    for (i = 0; i < CARNN__COUNT(carnn__check_tasks); i++)
        if (!strcmp(carnn__check_tasks[i].task, task) && !variant--) return i;
    return CARNN__COUNT(carnn__check_tasks);
}

static double carnn__check_task_loss(carnn__subject *s) {
    const carnn__head *head = s->model->head;
    size_t batches = head->plan(&s->work, 0), i;
    double sum = 0.0;
    memset(s->work.g, 0, s->model->params.trained * sizeof(float));
    for (i = 0; i < batches; i++) {
        carnn__tally tally;
        memset(&tally, 0, sizeof tally);
        head->batch(&s->work, i, s->key, &tally);
        sum += tally.loss / (double)carnn__max(carnn__tally_size(&tally), 1);
    }
    return sum;
}

/* Sets the options that a text names. */
static carnn_status carnn__check_options_of(const char *text, carnn_model_desc *model,
                                            carnn_error *error) {
    carnn__words w = carnn__words_of(CARNN__SPACES, text, strlen(text));
    carnn_status status = CARNN_OK;
    char name[32], value[32];
    size_t i;
    while (!status && carnn__next_word(&w)) {
        snprintf(name, sizeof name, "%.*s", (int)w.word.length, w.word.at);
        carnn__next_word(&w);
        snprintf(value, sizeof value, "%.*s", (int)w.word.length, w.word.at);
        for (i = 0; strcmp(carnn__option_table[i].name, name); i++) {}
        status = carnn_option_set(&carnn__option_table[i], model, NULL, value, error);
    }
    return status;
}

static carnn_status carnn__check_task_open(carnn__subject *s, carnn_error *error) {
    const char *task = carnn_task_name(s->number);
    carnn_dataset_desc data;
    carnn_model_desc model;
    carnn_source source;
    carnn_status status;
    size_t i = carnn__check_task(task, s->variant);
    if (i == CARNN__COUNT(carnn__check_tasks)) {
        if (s->variant) return CARNN_OK; /* no such variant: nothing to check */
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "carnn__check_tasks has no text for the "
                           "task %s", task);
    }
    memset(&data, 0, sizeof data);
    memset(&model, 0, sizeof model);
    source.name = "check";
    source.bytes = carnn__check_tasks[i].text;
    source.size = strlen(carnn__check_tasks[i].text);
    data.task = model.task = task;
    data.sources = &source;
    data.source_count = 1;
    model.hidden = CARNN__CHECK_H;
    status = carnn__check_options_of(carnn__check_tasks[i].options, &model, error);
    if (!status) status = carnn_dataset_load(&s->data, &data, error);
    if (!status) status = carnn_model_create(&s->model, &model, s->data, error);
    if (status) return status;
    s->loss = carnn__check_task_loss;
    s->work = carnn__scoring_work(s->model, s->data, s->engine);
    s->work.dropout = 0.25;
    s->work.smoothing = 0.1;
    return s->model->head->open(&s->work, error);
}

static void carnn__check_task_carve(carnn__subject *s) {
    float dummy = 0.0f;
    carnn__store *store;
    if (!s->model) return;
    store = &s->model->params;
    s->work.g = carnn__floats(&s->arena, 1, store->trained);
    carnn__check_store(s, store, store->value, s->work.g);
    if (!s->work.g) s->work.g = &dummy; /* counting memory: carve asks only whether it is there */
    s->model->head->carve(&s->work, &s->arena);
}

/* --- the check ------------------------------------------------------------------------------- */

static const struct {
    const char *group;
    const char *(*name)(size_t number);
    size_t variants;
    carnn_status (*open)(carnn__subject *s, carnn_error *error);
    void (*carve)(carnn__subject *s);
} carnn__check_groups[] = {
    {"cell", carnn_cell_name, 3, carnn__check_cell_open, carnn__check_cell_carve},
    {"part", carnn__check_part_name, 1, carnn__check_part_open, carnn__check_part_carve},
    {"head", carnn_task_name, CARNN__CHECK_TASK_VARIANTS, carnn__check_task_open,
     carnn__check_task_carve},
};

/* The larger error; not a number is the largest of all. */
static double carnn__check_worse(double a, double b) { return a != a || b <= a ? a : b; }

/* Up or down, by chance. */
static double carnn__check_sign(uint64_t key, size_t i) {
    return carnn__random(key, i) & 1 ? 1.0 : -1.0;
}

/* The slope of the loss along the `count` numbers from `first` on, each up or down. */
static double carnn__check_slope(carnn__subject *s, const carnn__checked *a, const float *value,
                                 size_t first, size_t count, double step) {
    static const double at[4] = {2.0, 1.0, -1.0, -2.0}, share[4] = {-1.0, 8.0, -8.0, 1.0};
    double slope = 0.0;
    size_t i, p;
    for (p = 0; p < 4; p++) {
        for (i = first; i < first + count; i++)
            a->value[i] = (float)((double)value[i] + at[p] * step * carnn__check_sign(s->key, i));
        slope += share[p] * s->loss(s) / (12.0 * step);
    }
    for (i = first; i < first + count; i++) a->value[i] = value[i];
    return slope;
}

/* How far the derivative along these numbers is off the nearest of the slopes. */
static double carnn__check_off(carnn__subject *s, const carnn__checked *a, const float *value,
                               const float *gradient, size_t first, size_t count) {
    static const double step[3] = {1.0 / 64.0, 1.0 / 16.0, 1.0 / 4.0};
    double along = 0.0, off = 0.0, root = sqrt((double)count);
    size_t i;
    for (i = first; i < first + count; i++)
        along += carnn__check_sign(s->key, i) * (double)gradient[i];
    for (i = 0; i < 3; i++) {
        double slope = carnn__check_slope(s, a, value, first, count, step[i] / root);
        if (!i || !(fabs(slope - along) >= off)) off = fabs(slope - along);
    }
    return off / root;
}

/* The largest relative error of an array; `value` and `gradient` are copies of it. */
static double carnn__check_one(carnn__subject *s, const carnn__checked *a, const float *value,
                               const float *gradient, size_t *numbers) {
    double squares = 0.0, worst, size;
    size_t i, n = a->count, samples = carnn__min(n, CARNN__CHECK_SAMPLES);
    for (i = 0; i < n; i++) squares += (double)gradient[i] * (double)gradient[i];
    size = sqrt(squares / (double)n);
    if (!(size > 0.0)) return 1.0; /* all zero, or not a number */
    worst = carnn__check_off(s, a, value, gradient, 0, n);
    for (i = 0; i < samples; i++) {
        size_t place = samples < n ? (size_t)(carnn__random(s->key, i) % n) : i;
        worst = carnn__check_worse(worst, carnn__check_off(s, a, value, gradient, place, 1));
    }
    *numbers += samples;
    return worst / (size + CARNN__CHECK_FLOOR);
}

/* Adds the subject's derivatives to the line of its entry. */
static carnn_status carnn__check_subject(carnn__subject *s, carnn_check *check,
                                         carnn_error *error) {
    const carnn_allocator *allocator = &s->engine->allocator;
    size_t i, most = 1;
    float *copy;
    if (!s->loss) return CARNN_OK; /* nothing was opened */
    s->loss(s);
    for (i = 0; i < s->arrays; i++) most = carnn__max(most, s->array[i].count);
    copy = (float *)carnn__alloc(allocator, 2 * most, sizeof(float));
    if (!copy) return carnn__out_of_memory(error);
    for (i = 0; i < s->arrays; i++) {
        const carnn__checked *a = &s->array[i];
        s->loss(s);
        memcpy(copy, a->value, a->count * sizeof(float));
        memcpy(copy + most, a->gradient, a->count * sizeof(float));
        check->error = carnn__check_worse(
            check->error, carnn__check_one(s, a, copy, copy + most, &check->numbers));
    }
    carnn__free(allocator, copy);
    return CARNN_OK;
}

/* Gives the subject its memory: planned first, then taken. */
static carnn_status carnn__check_carve(carnn__subject *s, void (*carve)(carnn__subject *s),
                                       carnn_error *error) {
    carve(s);
    s->arena.size = s->arena.peak;
    s->arena.base = (char *)carnn__alloc_aligned(&s->engine->allocator, s->arena.size, 1);
    if (!s->arena.base) return carnn__out_of_memory(error);
    memset(s->arena.base, 0, s->arena.size);
    s->arena.used = s->arrays = 0;
    carve(s);
    return CARNN_OK;
}

static void carnn__check_close(carnn__subject *s) {
    if (s->work.state) s->model->head->close(&s->work);
    carnn_model_free(s->model);
    carnn_dataset_free(s->data);
    carnn__free_aligned(&s->engine->allocator, s->arena.base);
}

/* Checks entry `number` of a group, in all variants. */
static carnn_status carnn__check_entry(carnn__engine *engine, size_t group, size_t number,
                                       uint64_t seed, carnn_check *check, carnn_error *error) {
    carnn__subject *s = (carnn__subject *)carnn__alloc(&engine->allocator, 1, sizeof *s);
    carnn_status status = s ? CARNN_OK : carnn__out_of_memory(error);
    size_t variant;
    check->group = carnn__check_groups[group].group;
    check->name = carnn__check_groups[group].name(number);
    check->limit = CARNN__CHECK_LIMIT;
    for (variant = 0; !status && variant < carnn__check_groups[group].variants; variant++) {
        memset(s, 0, sizeof *s);
        s->engine = engine;
        s->key = carnn__stream(seed, variant + 1);
        s->number = number;
        s->variant = variant;
        status = carnn__check_groups[group].open(s, error);
        if (!status) status = carnn__check_carve(s, carnn__check_groups[group].carve, error);
        if (!status) status = carnn__check_subject(s, check, error);
        carnn__check_close(s);
    }
    check->passed = check->numbers > 0 && check->error <= check->limit;
    carnn__free(&engine->allocator, s);
    return status;
}

CARNN_API carnn_status carnn_gradcheck(const char *only, uint64_t seed,
                                       int (*row)(const carnn_check *check, void *user),
                                       void *user, carnn_error *error) {
    carnn__engine engine;
    size_t group, number, found = 0;
    const char *name;
    carnn_status status = carnn__engine_open(&engine, NULL, 1, carnn__allocator(NULL), error);
    if (status) return status;
    for (group = 0; group < CARNN__COUNT(carnn__check_groups); group++)
        for (number = 0; !status && (name = carnn__check_groups[group].name(number)); number++) {
            carnn_check check;
            if (only && strcmp(only, name) && strcmp(only, carnn__check_groups[group].group))
                continue;
            found++;
            memset(&check, 0, sizeof check);
            status = carnn__check_entry(&engine, group, number, seed, &check, error);
            if (!status && row(&check, user))
                status = carnn__fail(error, CARNN_ERR_STOPPED, 0, "stopped after %s", name);
        }
    carnn__engine_close(&engine);
    if (!status && !found)
        return carnn__fail(error, CARNN_ERR_ARGUMENT, 0, "there is no cell, part or task called "
                           "\"%.60s\"", only);
    return status;
}

#endif
/* =============================================================================================
   @@BENCH   the benchmark

   A table of rows: what the machine can do at most ("peak"), the kernels, every cell at three
   shapes, a whole task. A row is the median of several runs; its share says how much of the peak
   that bounds it was reached. Times are those of the clock on the wall: a busy machine shows.
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
    /* the row at hand */
    const size_t *n;             /* its sizes */
    double rate;                 /* G a second of what bounds it, where the row knows better */
    carnn_status status;
    carnn_error *error;
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
    double sample[CARNN__BENCH_SAMPLES];
    size_t samples;
    volatile long measured; /* 0: the thread beside goes on */
    double beside;
} carnn__bench;

typedef struct carnn__bench_row {
    const char *group, *name, *unit;
    double (*run)(carnn__bench *b); /* returns the value */
    int bound;
    double cost; /* what a unit of the value takes of that bound; 0: `run` sets `rate` */
    size_t n[5]; /* sizes, see `run` */
} carnn__bench_row;

/* --- time and memory ------------------------------------------------------------------------- */

static double carnn__bench_median(carnn__bench *b) {
    double *x = b->sample, swap;
    size_t i, j;
    for (i = 1; i < b->samples; i++)
        for (j = i; j > 0 && x[j] < x[j - 1]; j--) {
            swap = x[j];
            x[j] = x[j - 1];
            x[j - 1] = swap;
        }
    return b->samples ? x[b->samples / 2] : 0.0;
}

/* Median of the seconds of a call. The first call, which meets cold caches, does not count. */
static double carnn__bench_seconds(carnn__bench *b, void (*call)(carnn__bench *b)) {
    double before = carnn__clock(), began, once;
    size_t repeats, i;
    call(b);
    began = carnn__clock();
    once = began - before;
    repeats = once < CARNN__BENCH_SAMPLE ? (size_t)(CARNN__BENCH_SAMPLE / (once + 1e-7)) + 1 : 1;
    for (b->samples = 0; b->samples < CARNN__BENCH_SAMPLES; b->samples++) {
        before = carnn__clock();
        if (b->samples >= 3 && before - began > CARNN__BENCH_SECONDS) break;
        for (i = 0; i < repeats; i++) call(b);
        b->sample[b->samples] = (carnn__clock() - before) / (double)repeats;
    }
    return carnn__bench_median(b);
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

static void carnn__bench_fma(carnn__bench *b) {
    carnn__parallel(b->engine.pool, carnn__pool_threads(b->engine.pool), carnn__bench_fma_piece, b);
}

/* Reads by adding up 64 columns: four sums that do not wait for each other. */
static void carnn__bench_read_range(const void *job, size_t from, size_t to) {
    const carnn__bench *b = (const carnn__bench *)job;
    float sum[64] = {0};
    b->engine.k->column_sums(to - from, 64, b->x + from * 64, 64, sum);
}

static void carnn__bench_read(carnn__bench *b) {
    carnn__split(&b->engine, carnn__bench_read_range, b, b->n[0] << 12, 1, SIZE_MAX);
}

/* n: MiB to read; 0: multiply-adds. */
static double carnn__bench_peak(carnn__bench *b) {
    const carnn__kernels *k = b->engine.k;
    size_t sums = k->tile_rows * k->tile_columns * carnn__pool_threads(b->engine.pool);
    if (!b->n[0])
        return 2e-9 * CARNN__BENCH_ROUNDS * (double)sums /
               carnn__bench_seconds(b, carnn__bench_fma);
    b->x = carnn__bench_floats(b, b->n[0] << 18);
    return 1e-9 * (double)(b->n[0] << 20) / carnn__bench_seconds(b, carnn__bench_read);
}

/* --- kernels --------------------------------------------------------------------------------- */

#define CARNN__PACKED_B 8 /* beside the forms of @@MAT: B is packed before */

static void carnn__bench_product(carnn__bench *b) {
    size_t M = b->n[0], N = b->n[1], K = b->n[2];
    int form = (int)b->n[3];
    if (form == CARNN__PACKED_B)
        carnn__matmul_packed(&b->engine, 0, M, N, K, b->x, K, b->y, NULL, b->z, N);
    else
        carnn__matmul(&b->engine, form, M, N, K, b->x, form & CARNN__TN ? M : K, b->y,
                      form & CARNN__NT ? K : N, NULL, b->z, N);
}

/* n: M, N, K, form. */
static double carnn__bench_matmul(carnn__bench *b) {
    size_t M = b->n[0], N = b->n[1], K = b->n[2];
    b->x = carnn__bench_floats(b, M * K);
    b->y = carnn__bench_floats(b, carnn__packed_size(N, K)); /* N K, rounded up */
    b->z = carnn__bench_floats(b, M * N);
    return 2e-9 * (double)M * (double)N * (double)K / carnn__bench_seconds(b, carnn__bench_product);
}

enum { CARNN__BENCH_EXP, CARNN__BENCH_SIGMOID, CARNN__BENCH_TANH, CARNN__BENCH_SOFTMAX };

static void carnn__bench_function(carnn__bench *b) {
    const carnn__kernels *k = b->engine.k;
    switch (b->n[0]) {
    case CARNN__BENCH_EXP: k->exp_n(b->x, b->y, b->n[1]); break;
    case CARNN__BENCH_SIGMOID: k->sigmoid_n(b->x, b->y, b->n[1]); break;
    case CARNN__BENCH_TANH: k->tanh_n(b->x, b->y, b->n[1]); break;
    default: k->softmax(b->x, b->n[1]); break;
    }
}

/* n: which function, how many numbers, multiply-adds for each. One thread, whatever the engine has:
   the share is one of that thread's part of the peak. */
static double carnn__bench_math(carnn__bench *b) {
    double value;
    b->x = carnn__bench_floats(b, b->n[1]);
    b->y = carnn__bench_floats(b, b->n[1]);
    value = 1e-9 * (double)b->n[1] / carnn__bench_seconds(b, carnn__bench_function);
    b->rate = value * 2.0 * (double)(b->n[2] * carnn__pool_threads(b->engine.pool));
    return value;
}

static void carnn__bench_step(carnn__bench *b) {
    carnn__optimizer_step(&b->optimizer, &b->engine, b->x, b->y, 0.001, 1.0, 0.01);
}

/* n: how many weights. */
static double carnn__bench_adam(carnn__bench *b) {
    double seconds = 1.0;
    b->x = carnn__bench_floats(b, b->n[0]);
    b->y = carnn__bench_floats(b, b->n[0]);
    b->status = carnn__optimizer_open(&b->optimizer, CARNN__OPTIMIZER_adam, b->n[0],
                                      &b->engine.allocator, b->error);
    if (!b->status) seconds = carnn__bench_seconds(b, carnn__bench_step);
    carnn__optimizer_close(&b->optimizer, &b->engine.allocator);
    return 1e-6 * (double)b->n[0] / seconds;
}

/* --- cells ----------------------------------------------------------------------------------- */

/* A cell with B sequences of T steps, e inputs and h units; its gradients where it is to learn. */
static void carnn__bench_cell_open(carnn__bench *b, size_t kind, size_t B, size_t T, size_t e,
                                   size_t h, int learn) {
    size_t t, *start = (size_t *)carnn__take(&b->arena, T + 1, sizeof(size_t));
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
    b->seq.sequences = B;
    b->seq.steps = T;
    b->seq.rows = B * T;
    b->seq.start = start;
    carnn__cell_plan(&b->run, &b->cell, &b->store, b->store.value, b->gradient, &b->arena, B * T,
                     B * T, B);
}

/* What a training step does with a cell. */
static void carnn__bench_cell_step(carnn__bench *b) {
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
static double carnn__bench_cell(carnn__bench *b) {
    const carnn__cell_kind *k = &carnn__cells[b->n[0]];
    size_t B = b->n[1], T = b->n[2], h = b->n[4];
    size_t e = k->flags & CARNN__INPUT_IS_CANDIDATE ? h : b->n[3];
    double products = (double)(B * T * h) * (double)(k->gates * e + k->recurrent_gates * h) +
                      (double)(B * h) * (double)(k->context_gates * h), seconds;
    carnn__bench_cell_open(b, b->n[0], B, T, e, h, 1);
    seconds = carnn__bench_seconds(b, carnn__bench_cell_step);
    b->rate = 6e-9 * products / seconds;
    return 1e3 * seconds;
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

/* n: T, h, 1 for the plain loop. The forward pass of the simplest cell over one sequence. */
static double carnn__bench_recurrence(carnn__bench *b) {
    carnn__bench_cell_open(b, CARNN__CELL_carnn_low, 1, b->n[0], b->n[1], b->n[1], 0);
    carnn__cell_project(&b->run, &b->engine, b->x, 0, b->seq.rows);
    carnn__cell_context(&b->run, &b->engine, b->c, 1);
    return 1e-6 * (double)b->n[0] /
           carnn__bench_seconds(b, b->n[2] ? carnn__bench_loop : carnn__bench_scan);
}

/* --- tasks -----------------------------------------------------------------------------------
   Dialogs like those of bAbI task 6: 2,407 candidates, utterances of 8 words out of 1,200, dialogs
   of 14 turns, so that a response has 14 utterances before it on average.

   Sentences of 34 words out of some 10,000, each of which occurs, read by an LSTM in batches of 20
   and learnt by SGD: the usual small word language model with an exact softmax.

   Questions of 8 words out of 1,200 with 20 sentences of 24 words each, one of which is right. */

#define CARNN__BENCH_DIALOGS 36
#define CARNN__BENCH_TURNS 14
#define CARNN__BENCH_CANDIDATES 2407
#define CARNN__BENCH_LINE 112 /* bytes: a number of two digits, two texts, three separators */
#define CARNN__BENCH_SENTENCES 300
#define CARNN__BENCH_WORDS 34
#define CARNN__BENCH_QUESTIONS 20
#define CARNN__BENCH_ANSWERS 20

/* Text `number` of a stream: eight words. Returns its end. */
static char *carnn__bench_text(char *at, uint64_t stream, uint64_t number) {
    uint64_t key = carnn__stream(stream, number), i;
    for (i = 0; i < 8; i++)
        at += snprintf(at, 8, "%sw%u", i ? " " : "", (unsigned)(carnn__random(key, i) % 1199));
    return at;
}

static void carnn__bench_dialogs(carnn__bench *b) {
    size_t turns = CARNN__BENCH_DIALOGS * CARNN__BENCH_TURNS, i;
    char *text = (char *)carnn__take(&b->arena, turns + 1, CARNN__BENCH_LINE), *at = text;
    carnn_source dialogs = {"dialogs", text, 0}, candidates = {"candidates", NULL, 0};
    carnn_dataset_desc desc = {"dialog", &dialogs, 1, &candidates, 0, 0, &b->counting};
    for (i = 0; i < turns; i++) {
        size_t number = i % CARNN__BENCH_TURNS + 1;
        at += snprintf(at, 8, "%s%u ", i && number == 1 ? "\n" : "", (unsigned)number);
        at = carnn__bench_text(at, 1, i);
        *at++ = '\t';
        at = carnn__bench_text(at, 2, i); /* a candidate */
        *at++ = '\n';
    }
    dialogs.size = (size_t)(at - text);
    text = at = (char *)carnn__take(&b->arena, CARNN__BENCH_CANDIDATES, CARNN__BENCH_LINE);
    for (i = 0; i < CARNN__BENCH_CANDIDATES; i++) {
        *at++ = '1';
        *at++ = ' ';
        at = carnn__bench_text(at, 2, i);
        *at++ = '\n';
    }
    candidates.bytes = text;
    candidates.size = (size_t)(at - text);
    b->status = carnn_dataset_load(&b->data, &desc, b->error);
}

static void carnn__bench_sentences(carnn__bench *b) {
    char *text = (char *)carnn__take(&b->arena, CARNN__BENCH_SENTENCES * CARNN__BENCH_WORDS, 8);
    char *at = text;
    carnn_source sentences = {"sentences", text, 0};
    carnn_dataset_desc desc = {"lm", &sentences, 1, NULL, 0, 0, &b->counting};
    unsigned i;
    for (i = 0; i < CARNN__BENCH_SENTENCES * CARNN__BENCH_WORDS; i++)
        at += snprintf(at, 8, "w%u%c", i * 7919 % 9998,
                       (i + 1) % CARNN__BENCH_WORDS ? ' ' : '\n');
    sentences.size = (size_t)(at - text);
    b->status = carnn_dataset_load(&b->data, &desc, b->error);
}

static void carnn__bench_pairs(carnn__bench *b) {
    size_t count = CARNN__BENCH_QUESTIONS * CARNN__BENCH_ANSWERS, i, j;
    char *text = (char *)carnn__take(&b->arena, count, 4 * CARNN__BENCH_LINE), *at = text;
    carnn_source pairs = {"pairs", text, 0};
    carnn_dataset_desc desc = {"answer", &pairs, 1, NULL, 0, 0, &b->counting};
    for (i = 0; i < count; i++) {
        at = carnn__bench_text(at, 1, i / CARNN__BENCH_ANSWERS);
        for (j = 0; j < 3; j++) {
            *at++ = j ? ' ' : '\t';
            at = carnn__bench_text(at, 2, 3 * i + j);
        }
        at += snprintf(at, 4, "\t%d\n", i % CARNN__BENCH_ANSWERS == 0);
    }
    pairs.size = (size_t)(at - text);
    b->status = carnn_dataset_load(&b->data, &desc, b->error);
}

enum { CARNN__BENCH_dialog, CARNN__BENCH_lm, CARNN__BENCH_answer };

static const struct {
    const char *name, *cell, *optimizer; /* NULL: the task's default */
    int64_t batch;
    void (*dataset)(carnn__bench *b);
} carnn__bench_tasks[] = {
    {"dialog", NULL, NULL, 32, carnn__bench_dialogs},
    {"lm", "lstm", "sgd", 20, carnn__bench_sentences},
    {"answer", "scarnn", NULL, 64, carnn__bench_pairs},
};

/* A model of b->n[0] units for the task b->n[1]. */
static void carnn__bench_task_open(carnn__bench *b) {
    carnn_model_desc desc;
    memset(&desc, 0, sizeof desc);
    b->live = b->most = 0;
    desc.task = carnn__bench_tasks[b->n[1]].name;
    desc.cell = carnn__bench_tasks[b->n[1]].cell;
    desc.min_count = 1;
    desc.hidden = (int64_t)b->n[0];
    desc.simd = b->simd;
    desc.allocator = &b->counting;
    carnn__bench_tasks[b->n[1]].dataset(b);
    if (!b->status) b->status = carnn_model_create(&b->model, &desc, b->data, b->error);
}

static void carnn__bench_task_close(carnn__bench *b) {
    carnn_session_free(b->session);
    carnn_model_free(b->model);
    carnn_dataset_free(b->data);
    b->session = NULL;
    b->model = NULL;
    b->data = NULL;
}

/* Notes the speed of each epoch, and stops when there are enough. */
static int carnn__bench_epoch(const carnn_progress *p, void *user) {
    carnn__bench *b = (carnn__bench *)user;
    if (p->epoch_ended) b->sample[b->samples++] = p->rate;
    return b->n[2] || b->samples == CARNN__BENCH_SAMPLES || /* memory is the same in all epochs */
           (b->samples >= 3 && p->seconds > 2 * CARNN__BENCH_SECONDS);
}

/* n: hidden, task, 1 for the memory instead of the speed. */
static double carnn__bench_training(carnn__bench *b) {
    carnn_train_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.batch = carnn__bench_tasks[b->n[1]].batch;
    desc.optimizer = carnn__bench_tasks[b->n[1]].optimizer;
    desc.dropout = CARNN_NONE;
    desc.threads = b->threads;
    desc.progress = carnn__bench_epoch;
    desc.user = b;
    b->samples = 0;
    carnn__bench_task_open(b);
    if (!b->status) b->status = carnn_train(b->model, b->data, NULL, &desc, b->error);
    if (b->status == CARNN_ERR_STOPPED) b->status = CARNN_OK;
    carnn__bench_task_close(b);
    return b->n[2] ? (double)b->most / 1048576.0 : carnn__bench_median(b);
}

/* Piece 0 is the measurement, piece 1 another thread that keeps a processor busy meanwhile. */
static void carnn__bench_beside_piece(void *job, size_t piece, size_t worker) {
    carnn__bench *b = (carnn__bench *)job;
    (void)worker;
    if (piece) {
        while (!carnn__get(&b->measured)) b->engine.k->multiply_add(CARNN__BENCH_ROUNDS);
        return;
    }
    b->beside = carnn__bench_training(b);
    carnn__put(&b->measured, 1);
}

/* The same, on a machine that has something else to do. */
static double carnn__bench_beside(carnn__bench *b) {
    carnn__pool *pool;
    if (carnn__pool_create(&pool, 2, carnn__allocator(NULL))) {
        b->status = carnn__out_of_memory(b->error);
        return 0.0;
    }
    b->measured = 0;
    carnn__parallel(pool, 2, carnn__bench_beside_piece, b);
    carnn__pool_free(pool);
    return b->beside;
}

/* A dialog, each answer after all that was said before. */
static void carnn__bench_dialog(carnn__bench *b) {
    size_t i;
    carnn_session_reset(b->session);
    for (i = 0; i < CARNN__BENCH_TURNS; i++) {
        carnn__span user = carnn__text(b->data, b->data->lines[2 * i].text);
        carnn_session_reply(b->session, user.at, user.length);
    }
}

/* n: hidden. */
static double carnn__bench_answer(carnn__bench *b) {
    double seconds = 0.0;
    carnn__bench_task_open(b);
    if (!b->status) b->status = carnn_session_open(&b->session, b->model, NULL, b->error);
    if (!b->status) seconds = carnn__bench_seconds(b, carnn__bench_dialog);
    carnn__bench_task_close(b);
    return 1e3 * seconds / CARNN__BENCH_TURNS;
}

static void carnn__bench_prediction(const carnn_prediction *prediction, void *user) {
    *(volatile size_t *)user = prediction->example;
}

static void carnn__bench_predict(carnn__bench *b) {
    size_t last;
    carnn_predict_desc desc = {b->threads, 1, carnn__bench_prediction, &last};
    if (!b->status) b->status = carnn_predict(b->model, b->data, &desc, b->error);
}

/* n: hidden, task. All examples, with what has to be made ready for them. */
static double carnn__bench_predicting(carnn__bench *b) {
    double seconds = 1.0;
    size_t examples;
    carnn__bench_task_open(b);
    examples = carnn_dataset_examples(b->data);
    if (!b->status) seconds = carnn__bench_seconds(b, carnn__bench_predict);
    carnn__bench_task_close(b);
    return (double)examples / seconds;
}

/* --- the table ------------------------------------------------------------------------------- */

#define CARNN__BENCH_PRODUCT(what, m, n, k, form)                                                  \
    {"kernel", "matmul " #m " x " #n " x " #k what, "GFLOP/s", carnn__bench_matmul,                \
     CARNN__BOUND_FMA, 1.0, {m, n, k, form, 0}},
#define CARNN__BENCH_PRODUCTS(m, n, k)                                                             \
    CARNN__BENCH_PRODUCT(" A B", m, n, k, CARNN__NN)                                               \
    CARNN__BENCH_PRODUCT(" A B'", m, n, k, CARNN__NT)                                              \
    CARNN__BENCH_PRODUCT(" A' B", m, n, k, CARNN__TN)
#define CARNN__BENCH_MATH(name, operations, function)                                              \
    {"kernel", name, "G/s", carnn__bench_math, CARNN__BOUND_FMA, 0.0,                              \
     {function, 4096, operations, 0, 0}},
#define CARNN__BENCH_CELL(id, name, title, g, gb, gc, gh, gr, tape, gate, bias, flags)             \
    {"cell", name " A", "ms", carnn__bench_cell, CARNN__BOUND_FMA, 0.0,                            \
     {CARNN__CELL_##id, 32, 50, 256, 1024}},                                                       \
    {"cell", name " B", "ms", carnn__bench_cell, CARNN__BOUND_FMA, 0.0,                            \
     {CARNN__CELL_##id, 32, 40, 300, 200}},                                                        \
    {"cell", name " C", "ms", carnn__bench_cell, CARNN__BOUND_FMA, 0.0,                            \
     {CARNN__CELL_##id, 1, 200, 128, 128}},
#define CARNN__BENCH_ROW(group, name, unit, run, bound, cost, n0, n1, n2, n3)                      \
    {group, name, unit, run, bound, cost, {n0, n1, n2, n3, 0}},
#define CARNN__BENCH_TASK(task, hidden, what, unit, run, memory)                                   \
    {"task", #task " " #hidden ", " what, unit, carnn__bench_##run, CARNN__UNBOUND, 0.0,           \
     {hidden, CARNN__BENCH_##task, memory, 0, 0}},

/* The peaks come first, in the order of their numbers. A product with one row reads each weight
   once: 4 bytes for 2 operations. The functions take so many vector operations for 16 numbers, each
   in the place of a multiply-add. Adam with clipping reads five and writes four floats: more than
   the peak of memory where a large third level holds them. */
static const carnn__bench_row carnn__bench_rows[] = {
    CARNN__BENCH_ROW("peak", "multiply-add", "GFLOP/s", carnn__bench_peak, 0, 1.0, 0, 0, 0, 0)
    CARNN__BENCH_ROW("peak", "read 1 MiB", "GB/s", carnn__bench_peak, 1, 1.0, 1, 0, 0, 0)
    CARNN__BENCH_ROW("peak", "read 4 MiB", "GB/s", carnn__bench_peak, 2, 1.0, 4, 0, 0, 0)
    CARNN__BENCH_ROW("peak", "read 256 MiB", "GB/s", carnn__bench_peak, 3, 1.0, 256, 0, 0, 0)
    CARNN__BENCH_ROW("kernel", "gemv 1 x 1024 x 1024 A B", "GFLOP/s", carnn__bench_matmul,
                     CARNN__BOUND_READ_4, 2.0, 1, 1024, 1024, CARNN__NN)
    CARNN__BENCH_ROW("kernel", "gemv 1 x 1024 x 1024 A B'", "GFLOP/s", carnn__bench_matmul,
                     CARNN__BOUND_READ_4, 2.0, 1, 1024, 1024, CARNN__NT)
    CARNN__BENCH_PRODUCTS(32, 1024, 1024)
    CARNN__BENCH_PRODUCT(" packed", 32, 1024, 1024, CARNN__PACKED_B)
    CARNN__BENCH_PRODUCTS(32, 3072, 1024)
    CARNN__BENCH_PRODUCT(" packed", 32, 3072, 1024, CARNN__PACKED_B)
    CARNN__BENCH_PRODUCTS(20, 800, 200)
    CARNN__BENCH_PRODUCTS(64, 200, 200)
    CARNN__BENCH_PRODUCTS(512, 400, 300)
    CARNN__BENCH_PRODUCTS(800, 3072, 1024)
    CARNN__BENCH_PRODUCTS(2048, 2048, 2048)
    CARNN__BENCH_MATH("exp", 14, CARNN__BENCH_EXP)
    CARNN__BENCH_MATH("sigmoid", 19, CARNN__BENCH_SIGMOID)
    CARNN__BENCH_MATH("tanh", 18, CARNN__BENCH_TANH)
    CARNN__BENCH_MATH("softmax", 18, CARNN__BENCH_SOFTMAX)
    CARNN__BENCH_ROW("kernel", "adam, clipping", "M weights/s", carnn__bench_adam,
                     CARNN__BOUND_READ_256, 0.036, 8000000, 0, 0, 0)
    CARNN__CELLS(CARNN__BENCH_CELL)
    CARNN__BENCH_ROW("cell", "recurrence of 1000000 steps", "M steps/s", carnn__bench_recurrence,
                     CARNN__UNBOUND, 0.0, 1000000, 16, 0, 0)
    CARNN__BENCH_ROW("cell", "recurrence of 1000000 steps, plain loop", "M steps/s",
                     carnn__bench_recurrence, CARNN__UNBOUND, 0.0, 1000000, 16, 1, 0)
    CARNN__BENCH_TASK(dialog, 1024, "training", "examples/s", training, 0)
    CARNN__BENCH_TASK(dialog, 128, "training", "examples/s", training, 0)
    CARNN__BENCH_TASK(dialog, 128, "training beside a busy thread", "examples/s", beside, 0)
    CARNN__BENCH_TASK(dialog, 1024, "predicting", "examples/s", predicting, 0)
    CARNN__BENCH_TASK(dialog, 128, "predicting", "examples/s", predicting, 0)
    CARNN__BENCH_TASK(dialog, 1024, "one answer", "ms", answer, 0)
    CARNN__BENCH_TASK(dialog, 128, "one answer", "ms", answer, 0)
    CARNN__BENCH_TASK(dialog, 1024, "memory of training", "MiB", training, 1)
    CARNN__BENCH_TASK(dialog, 128, "memory of training", "MiB", training, 1)
    CARNN__BENCH_TASK(lm, 200, "training", "words/s", training, 0)
    CARNN__BENCH_TASK(lm, 200, "memory of training", "MiB", training, 1)
    CARNN__BENCH_TASK(answer, 150, "training", "pairs/s", training, 0)
    CARNN__BENCH_TASK(answer, 150, "scoring", "pairs/s", predicting, 0)
    CARNN__BENCH_TASK(answer, 150, "memory of training", "MiB", training, 1)
};

static double carnn__bench_value(carnn__bench *b, const carnn__bench_row *row) {
    double value;
    b->n = row->n;
    b->rate = 0.0;
    b->arena.used = 0;
    value = row->run(b);
    if (row->cost > 0.0) b->rate = row->cost * value;
    return value;
}

static carnn_measure carnn__bench_measure(carnn__bench *b, const carnn__bench_row *row) {
    carnn_measure m = {row->group, row->name, row->unit, 0.0, 0.0};
    double rate;
    m.value = carnn__bench_value(b, row);
    rate = b->rate;
    if (b->status || row->bound == CARNN__UNBOUND) return m;
    if (b->peak[row->bound] <= 0.0)
        b->peak[row->bound] = row->run == carnn__bench_peak
                                  ? m.value
                                  : carnn__bench_value(b, &carnn__bench_rows[row->bound]);
    m.share = rate / b->peak[row->bound];
    return m;
}

/* Does `only` ask for the row? The name of a row asks for that one alone, a part of it for all that
   have it. */
static int carnn__bench_asked(const char *only, const carnn__bench_row *row) {
    size_t i;
    if (!only || !strcmp(only, row->name)) return 1;
    for (i = 0; i < CARNN__COUNT(carnn__bench_rows); i++)
        if (!strcmp(only, carnn__bench_rows[i].name)) return 0;
    return !strcmp(only, row->group) || strstr(row->name, only) != NULL;
}

CARNN_API carnn_status carnn_bench(const char *only, const char *simd, int64_t threads,
                                   int (*row)(const carnn_measure *measure, void *user),
                                   void *user, carnn_error *error) {
    carnn_allocator a = carnn__allocator(NULL);
    carnn__bench *b = (carnn__bench *)carnn__alloc_zero(&a, 1, sizeof *b);
    size_t i, found = 0;
    carnn_status status;
    if (!b) return carnn__out_of_memory(error);
    b->simd = simd;
    b->threads = threads;
    b->error = error;
    b->counting.alloc = carnn__bench_alloc;
    b->counting.realloc = carnn__bench_realloc;
    b->counting.free = carnn__bench_free;
    b->counting.user = b;
    b->arena.size = (size_t)CARNN__BENCH_MIB << 20;
    b->arena.base = (char *)carnn__alloc_aligned(&a, b->arena.size, 1);
    status = b->arena.base ? carnn__engine_open(&b->engine, simd, carnn__thread_count(threads), a,
                                                error)
                           : carnn__out_of_memory(error);
    for (i = 0; !status && i < CARNN__COUNT(carnn__bench_rows); i++) {
        const carnn__bench_row *r = &carnn__bench_rows[i];
        carnn_measure m;
        if (!carnn__bench_asked(only, r)) continue;
        found++;
        m = carnn__bench_measure(b, r);
        status = b->status;
        if (!status && row(&m, user))
            status = carnn__fail(error, CARNN_ERR_STOPPED, 0, "stopped after %s", r->name);
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

/* The end of a pass: the table of its kernels. */
#if defined(CARNN__ISA)

#define CARNN__STRING_(x) #x
#define CARNN__STRING(x) CARNN__STRING_(x)
#define CARNN__KERNEL_ENTRY(name, result, arguments) CARNN__K(name),
#define CARNN__OPTIMIZE(name, moments, lr, a, b, eps) CARNN__K(name),
#define CARNN__CELL_FORWARD(id, name, title, g, gb, gc, gh, gr, tape, gate, bias, flags)           \
    CARNN__K(id##_forward),
#define CARNN__CELL_BACKWARD(id, name, title, g, gb, gc, gh, gr, tape, gate, bias, flags)          \
    CARNN__K(id##_backward),
static const carnn__kernels CARNN__K(kernels) = {
    CARNN__STRING(CARNN__ISA),
    CARNN__TILE_ROWS,
    CARNN__TILE_COLUMNS,
    CARNN__KERNELS(CARNN__KERNEL_ENTRY){CARNN__OPTIMIZERS(CARNN__OPTIMIZE)},
    {CARNN__CELLS(CARNN__CELL_FORWARD)},
    {CARNN__CELLS(CARNN__CELL_BACKWARD)}};
#undef CARNN__OPTIMIZE
#undef CARNN__CELL_FORWARD
#undef CARNN__CELL_BACKWARD
#undef CARNN__KERNEL_ENTRY
#undef CARNN__STRING
#undef CARNN__STRING_
#undef CARNN__TILE_ROWS
#undef CARNN__TILE_VECTORS
#undef CARNN__TILE_WIDEST
#undef CARNN__TILE_WIDTHS
#undef CARNN__TILES
#undef CARNN__FETCH_TILES
#undef CARNN__FETCH_STEPS
#undef CARNN__DOT_ROWS
#undef CARNN__TILE_COLUMNS
#undef CARNN__MASK
#undef CARNN__PARTS
#undef CARNN__PART_LANES
#undef CARNN__PART_LOAD
#undef CARNN__PART_STORE
#undef CARNN__PART_SET
#undef CARNN__PART_ADD
#undef CARNN__PART_SUB
#undef CARNN__PART_MUL
#undef CARNN__PART_DIV
#undef CARNN__PART_SQRT
#undef CARNN__PART_FMA
#undef CARNN__PART_FNMA
#undef CARNN__PART_ABS
#undef CARNN__PART_SIGNED
#undef CARNN__PART_IF_LESS

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
#endif
#if defined(CARNN_IMPLEMENTATION) && !defined(CARNN__ISA)
#define CARNN__IMPLEMENTED
#ifdef __cplusplus
}
#endif
#endif
