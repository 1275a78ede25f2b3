/* Weights of 8 bits (@@FILE): a quantised model has numbers, read here by a decoder of its own,
   next to what they were, and computes with them as one does that has them as floats. */

#include "test.h"

#include <fenv.h>

static const carnn_allocator quantise_memory = {carnn__default_alloc, carnn__default_realloc,
                                                carnn__default_free, NULL};

static carnn_model *quantise_trained(const char *cell, int64_t hidden, int64_t epochs) {
    static const char lines[] = "x\ta b a b\ny\tb a c c d\nx\tb a\n"
                                "y\td b a\ny\ta c b b c\nx\tb a\n";
    carnn_dataset *data = test_data("classify", lines, sizeof lines - 1, 0, 0);
    carnn_model_desc desc;
    carnn_train_desc train;
    carnn_model *model = NULL;
    memset(&desc, 0, sizeof desc);
    memset(&train, 0, sizeof train);
    desc.task = "classify";
    desc.cell = cell;
    desc.hidden = hidden;
    desc.embedding = 50;
    desc.seed = 3;
    train.epochs = epochs;
    train.threads = 1;
    CHECK_INT(carnn_model_create(&model, &desc, data, NULL), CARNN_OK);
    if (epochs) CHECK_INT(carnn_train(model, data, NULL, &train, NULL), CARNN_OK);
    carnn_dataset_free(data);
    return model;
}

static double quantise_says(const carnn_model *model) {
    carnn_session *session = NULL;
    carnn_text text = {"b a c d", 7};
    carnn_prediction p;
    double x;
    CHECK_INT(carnn_session_open(&session, model, NULL, NULL), CARNN_OK);
    CHECK_INT(carnn_session_predict(session, &text, 1, 1, &p, NULL), CARNN_OK);
    x = p.probability[0];
    carnn_session_free(session);
    return x;
}

static unsigned char *quantise_image(const carnn_model *model, size_t *size) {
    unsigned char *bytes;
    *size = carnn_model_size(model);
    bytes = (unsigned char *)carnn__alloc_aligned(&quantise_memory, *size + 4, 1);
    CHECK_INT(carnn_model_write(model, bytes, *size, NULL), CARNN_OK);
    return bytes;
}

static carnn_model *quantise_loaded(const void *bytes, size_t size) {
    carnn_source source = {"image", NULL, 0};
    carnn_model *model = NULL;
    source.bytes = bytes;
    source.size = size;
    CHECK_INT(carnn_model_load(&model, &source, NULL, NULL), CARNN_OK);
    return model;
}

/* Binary16 from its definition, in double precision. */
static double quantise_half(unsigned bits) {
    double x = (double)(bits & 1023) / 1024.0;
    int exponent = (int)(bits >> 10 & 31), i;
    x = exponent ? x + 1.0 : 2.0 * x;
    for (i = exponent; i < 15; i++) x /= 2.0;
    for (i = exponent; i > 15; i--) x *= 2.0;
    return bits >> 15 ? -x : x;
}

/* Every half number is read as what it is, and is the smallest that is not below itself, nor below
   what lies between it and the one before. */
static void quantise_halves(void) {
    unsigned i;
    size_t wrong = 0;
    double between;
    for (i = 0; i < 0x10000; i++) {
        unsigned char block[2];
        block[0] = (unsigned char)i;
        block[1] = (unsigned char)(i >> 8);
        if ((i >> 10 & 31) != 31) wrong += (double)carnn__q8_scale(block) != quantise_half(i);
        else wrong += isfinite(carnn__q8_scale(block)) != 0;
    }
    for (i = 0; i < 0x7C00; i++) {
        wrong += carnn__half((float)quantise_half(i)) != i;
        if (!i) continue;
        between = (quantise_half(i) + quantise_half(i - 1)) / 2.0;
        wrong += carnn__half((float)between) != i;
        wrong += carnn__half(nextafterf((float)quantise_half(i - 1), 1e6f)) != i;
    }
    CHECK_INT(wrong, 0);
}

/* Blocks of numbers of all sizes: each becomes the nearest multiple of a scale which is the largest
   of them by 127, but for the rounding of half numbers. */
static void quantise_blocks(void) {
    size_t n, k, i, wrong = 0;
    for (k = 0; k < 4000; k++) {
        float w[CARNN__Q8_NUMBERS];
        double scale = pow(10.0, -11.0 + (double)(k % 170) / 10.0), largest = 0.0, d;
        unsigned char block[CARNN__Q8_BYTES];
        n = 1 + k % CARNN__Q8_NUMBERS;
        for (i = 0; i < n; i++) {
            w[i] = (float)(scale * (double)carnn__normal(k, i));
            largest = fmax(largest, fabs((double)w[i]));
        }
        carnn__q8_block(block, w, n);
        d = quantise_half(block[0] | (unsigned)block[1] << 8);
        wrong += d < largest / 127.0 || d > largest / 127.0 * (1.0 + 1.0 / 1024.0) + 0x1p-24;
        for (i = 0; i < n; i++)
            wrong += fabs(d * (double)(signed char)block[2 + i] - (double)w[i]) > 0.5000001 * d;
        for (; i < CARNN__Q8_NUMBERS; i++) wrong += block[2 + i] != 0;
    }
    CHECK_INT(wrong, 0);
}

/* A matrix (rows, columns) of random blocks, whose padding is not zero and whose scales are of all
   sizes and both signs; w: its numbers. */
static carnn__matrix quantise_matrix(size_t rows, size_t columns, float *w, unsigned char *q) {
    carnn__matrix m = {NULL, NULL, 0};
    size_t bytes = carnn__q8_row(columns), i, j;
    for (i = 0; i < rows * bytes; i++) q[i] = (unsigned char)carnn__random(rows, i);
    for (i = 0; i < rows * bytes / CARNN__Q8_BYTES; i++) /* scales below 2 */
        q[i * CARNN__Q8_BYTES + 1] &= (unsigned char)(i % 3 ? 0xBF : 0x83);
    for (i = 0; i < rows; i++)
        for (j = 0; j < columns; j++) {
            const unsigned char *block = q + i * bytes + j / 32 * 34;
            double d = quantise_half(block[0] | (unsigned)block[1] << 8);
            w[i * columns + j] = (float)(d * (double)(signed char)block[2 + j % 32]);
        }
    m.q = q;
    m.columns = columns;
    return m;
}

/* Products with blocks, by few rows and many, rows of them, and texts encoded with them have the
   bits of those with the numbers as floats, on every path. */
static void quantise_products(void) {
    enum { MOST_N = 150, MOST_K = 400, MOST_M = 130 };
    static const size_t many[] = {1, 2, 3, 4, 5, 8, 9, 40, MOST_M};
    float *w = (float *)malloc(MOST_N * MOST_K * sizeof *w), bias[MOST_N];
    float *a = (float *)malloc(MOST_M * MOST_K * sizeof *a);
    float *c = (float *)malloc(MOST_M * MOST_N * sizeof *c);
    float *right = (float *)malloc(MOST_M * MOST_N * sizeof *right);
    float *packed = (float *)malloc((MOST_N + 16) * MOST_K * sizeof *packed);
    unsigned char *q = (unsigned char *)malloc(MOST_N * (MOST_K / 32 + 1) * 34);
    size_t trial, path, i, wrong = 0;
    for (i = 0; i < MOST_M * MOST_K; i++) a[i] = carnn__normal(5, i);
    for (i = 0; i < MOST_N; i++) bias[i] = carnn__normal(6, i);
    for (path = 0; carnn_simd_name(path); path++) {
        carnn__engine e;
        CHECK_INT(carnn__engine_open(&e, carnn_simd_name(path), 2, quantise_memory, NULL),
                  CARNN_OK);
        for (trial = 0; trial < 60; trial++) {
            size_t m = many[trial % CARNN__COUNT(many)];
            size_t n = 1 + (size_t)(carnn__random(1, trial) % (trial % 4 ? 70 : MOST_N));
            size_t k = 1 + (size_t)(carnn__random(2, trial) % (trial % 5 ? 70 : MOST_K));
            int form = trial % 2 ? CARNN__NT : CARNN__NT | CARNN__ADD;
            carnn__matrix b = quantise_matrix(n, k, w, q);
            size_t size = m * n * sizeof *c;
            memcpy(right, a, size);
            memcpy(c, a, size);
            carnn__matmul(&e, form, m, n, k, a, k, w, k, trial % 3 ? bias : NULL, right, n);
            carnn__matmul_weights(&e, form, m, n, k, a, k, b, trial % 3 ? bias : NULL, c, n);
            wrong += memcmp(c, right, size) != 0;
            memcpy(c, a, size);
            carnn__pack(&e, CARNN__NT, n, k, b, packed);
            carnn__matmul(&e, CARNN__PACKED | (form & CARNN__ADD), m, n, k, a, k, packed, 0,
                          trial % 3 ? bias : NULL, c, n);
            wrong += memcmp(c, right, size) != 0;
            for (i = 0; i < n; i++) {
                uint32_t row = (uint32_t)i;
                carnn__matrix_rows(packed, b, &row, 1);
                wrong += memcmp(packed, w + i * k, k * sizeof *w) != 0;
            }
        }
        for (trial = 1; trial < 140; trial += 6) {
            static const uint32_t ids[] = {0, 3, 1, 1, 2, 0, 4};
            static const size_t at[] = {0, 3, 3, 7};
            carnn__matrix b = quantise_matrix(5, trial, w, q);
            carnn__encoding x = {3, trial, NULL, ids, at, packed, b, c, NULL, NULL};
            carnn__position_ramp(packed, trial);
            carnn__encode_texts(&e, &x);
            x.table = carnn__floats_of(w, trial);
            x.out = right;
            carnn__encode_texts(&e, &x);
            wrong += memcmp(c, right, 3 * trial * sizeof *c) != 0;
        }
        carnn__engine_close(&e);
    }
    CHECK_INT(wrong, 0);
    free(w), free(a), free(c), free(right), free(packed), free(q);
}

/* Products that threads share: pieces of some columns, and of few rows below others. */
static void quantise_pieces(void) {
    static const size_t shapes[][3] = {{4, 150, 2600}, {17, 30, 2950}};
    size_t i, j, path;
    for (i = 0; i < CARNN__COUNT(shapes); i++) {
        size_t m = shapes[i][0], n = shapes[i][1], k = shapes[i][2], bytes = m * n * sizeof(float);
        float *w = (float *)malloc(n * k * sizeof *w), *a = (float *)malloc(m * k * sizeof *a);
        float *c = (float *)malloc(bytes), *right = (float *)malloc(bytes);
        unsigned char *q = (unsigned char *)malloc(n * carnn__q8_row(k));
        carnn__matrix b = quantise_matrix(n, k, w, q);
        for (j = 0; j < m * k; j++) a[j] = carnn__normal(7, j);
        for (path = 0; carnn_simd_name(path); path++) {
            carnn__engine e;
            CHECK_INT(carnn__engine_open(&e, carnn_simd_name(path), 3, quantise_memory, NULL),
                      CARNN_OK);
            carnn__matmul(&e, CARNN__NT, m, n, k, a, k, w, k, NULL, right, n);
            carnn__matmul_weights(&e, CARNN__NT, m, n, k, a, k, b, NULL, c, n);
            CHECK(!memcmp(c, right, bytes));
            carnn__engine_close(&e);
        }
        free(w), free(a), free(c), free(right), free(q);
    }
}

/* Where the tensor's data begin, its type and its shape, as its entry in the file says. */
static const unsigned char *quantise_tensor(const unsigned char *bytes, size_t size,
                                            const char *name, uint32_t *type, uint64_t shape[2]) {
    const unsigned char *data = bytes, *at, *entry = NULL;
    size_t length = strlen(name), last = 0;
    for (at = bytes; !entry; at++)
        if (carnn__get64(at) == length && !memcmp(at + 8, name, length)) entry = at + 8 + length;
    shape[1] = 1;
    for (at = entry + 4, last = carnn__get32(entry); last; last--, at += 8)
        shape[carnn__get32(entry) - last] = carnn__get64(at);
    *type = carnn__get32(at);
    /* the entry of the last tensor of a classifier is that of output.bias */
    for (data = bytes; memcmp(data, "output.bias", 11); data++) {}
    data += 11 + 4 + 8 + 4 + 8;
    data = bytes + carnn__round_up((size_t)(data - bytes), 64);
    CHECK(data < bytes + size);
    return data + carnn__get64(at + 4);
}

/* The value of a key of 4 bytes in a file; -1: it has none. */
static long quantise_key(const unsigned char *bytes, size_t size, const char *name) {
    size_t at, length = strlen(name);
    for (at = 8; at + length + 8 <= size; at++)
        if (!memcmp(bytes + at, name, length) && carnn__get64(bytes + at - 8) == length)
            return (long)carnn__get32(bytes + at + length + 4);
    return -1;
}

static void quantise_file(void) {
    carnn_model *model = quantise_trained("icarnn", 21, 4), *again;
    carnn_model *before = quantise_trained("icarnn", 21, 4);
    size_t size, small, i, j, row, wrong = 0, matrices = 0;
    unsigned char *bytes, *same;
    carnn_tensor t, was;
    double p;
    size = carnn_model_size(model);
    CHECK_INT(carnn_model_quantise(model, NULL), CARNN_OK);
    bytes = quantise_image(model, &small);
    CHECK(small < size / 2);
    CHECK_INT(quantise_key(bytes, small, "general.file_type"), 7); /* mostly Q8_0 */
    CHECK_INT(quantise_key(bytes, small, "general.quantization_version"), 2);
    same = quantise_image(before, &size);
    CHECK_INT(quantise_key(same, size, "general.file_type"), 0);
    CHECK_INT(quantise_key(same, size, "general.quantization_version"), -1);
    carnn__free_aligned(&quantise_memory, same);
    for (i = 0; (t = carnn_model_tensor(model, i)).name; i++) {
        uint32_t type;
        uint64_t shape[2];
        const unsigned char *data = quantise_tensor(bytes, small, t.name, &type, shape);
        float numbers[256];
        was = carnn_model_tensor(before, i);
        CHECK(was.bits == 32 && was.value && !was.blocks);
        for (row = 0; row < was.rows; row++) {
            carnn_tensor_row(&was, row, numbers);
            CHECK(!memcmp(numbers, was.value + row * was.columns, was.columns * sizeof(float)));
        }
        CHECK_INT(type, t.bits == 8 ? 8 : 0);
        CHECK_INT(t.bits, t.rows > 3 && t.columns > 8 ? 8 : 32);
        CHECK(!t.value == (t.bits == 8) && !t.blocks == (t.bits == 32));
        CHECK_INT(shape[1], t.rows);
        CHECK(t.columns <= CARNN__COUNT(numbers));
        if (t.bits == 32) {
            CHECK(!memcmp(t.value, was.value, t.rows * t.columns * sizeof(float)));
            CHECK(!memcmp(t.value, data, CARNN__LITTLE_ENDIAN * t.rows * t.columns * 4));
            continue;
        }
        matrices++;
        CHECK_INT(shape[0], (t.columns + 31) / 32 * 32);
        CHECK(!memcmp(t.blocks, data, t.rows * shape[0] / 32 * 34));
        for (row = 0; row < t.rows; row++) {
            carnn_tensor_row(&t, row, numbers);
            for (j = 0; j < shape[0]; j++) {
                const unsigned char *block = data + (row * shape[0] + j) / 32 * 34;
                double d = quantise_half(block[0] | (unsigned)block[1] << 8);
                double w = d * (double)(signed char)block[2 + j % 32];
                if (j >= t.columns) wrong += w != 0.0;
                else wrong += w != (double)numbers[j] ||
                              fabs(w - (double)was.value[row * t.columns + j]) > 0.501 * d;
            }
        }
    }
    CHECK(matrices >= 3);
    CHECK_INT(wrong, 0);
    CHECK(carnn_model_scores(model)->loss > 0.0); /* the scores are those from before */
    CHECK(carnn_model_scores(model)->loss == carnn_model_scores(before)->loss);
    CHECK_INT(carnn_model_best_epoch(model), 4);
    /* what is loaded computes with the same numbers, and is written as it was, by itself and when
       rounded once more */
    p = quantise_says(model);
    CHECK(p != quantise_says(before) && fabs(p - quantise_says(before)) < 0.02);
    for (i = 0; i < 4; i++) {
        unsigned char *from = bytes + (i & 1 ? 4 : 0); /* aligned, and not */
        if (i & 1) memmove(from, bytes, small);
        again = quantise_loaded(from, small);
        t = carnn_model_tensor(again, 0);
        CHECK_INT((const unsigned char *)t.blocks > from &&
                      (const unsigned char *)t.blocks < from + small,
                  CARNN__LITTLE_ENDIAN && !(i & 1)); /* used in place */
        if (i & 1) memmove(bytes, from, small);
        if (i & 2) {
            CHECK_INT(carnn_model_quantise(again, NULL), CARNN_OK);
            t = carnn_model_tensor(again, 0); /* weights of its own */
            CHECK((const unsigned char *)t.blocks < bytes ||
                  (const unsigned char *)t.blocks >= bytes + small + 4);
        }
        CHECK(quantise_says(again) == p);
        same = quantise_image(again, &j);
        CHECK(j == small && !memcmp(same, bytes, small));
        carnn__free_aligned(&quantise_memory, same);
        carnn_model_free(again);
    }
    carnn__free_aligned(&quantise_memory, bytes);
    carnn_model_free(before);
    carnn_model_free(model);
}

/* The same model by way of its file. */
static carnn_model *quantise_copy(const carnn_model *model) {
    size_t size;
    unsigned char *bytes = quantise_image(model, &size);
    carnn_model *copy;
    memmove(bytes + 4, bytes, size); /* so that it is not used in place */
    copy = quantise_loaded(bytes + 4, size);
    carnn__free_aligned(&quantise_memory, bytes);
    return copy;
}

/* A quantised model of each task, in each variant of the gradient check, scores, predicts and
   explains with the bits of one that has the same numbers as floats. Returns how many examples both
   explain. */
static size_t quantise_twins(const carnn_model *model, const carnn_dataset *data) {
    static const float row[20] = {0.5f, -1.0f, 2.0f, 0.0f, 1.5f, -0.25f, 3.0f, 1.0f};
    carnn_model *twin = quantise_copy(model);
    carnn__store floats;
    carnn_scores a, b;
    test_answers all;
    carnn_session *s[2] = {NULL, NULL};
    size_t i, k, explained = 0;
    floats = twin->params; /* the same table */
    for (i = 0; i < floats.count; i++) floats.item[i].quantised = 0;
    carnn__store_lay_out(&floats);
    CHECK_INT(carnn__store_alloc(&floats, &twin->allocator, NULL), CARNN_OK);
    for (i = 0; i < floats.count; i++)
        carnn__matrix_rows(carnn__param_in(&floats, floats.value, i),
                           carnn__matrix_of(&model->params, i), NULL, floats.item[i].rows);
    carnn__free_aligned(&twin->allocator, twin->block);
    twin->params = floats;
    twin->block = floats.value;
    a = test_scores(model, data);
    b = test_scores(twin, data);
    CHECK(a.loss == b.loss && !memcmp(a.metric, b.metric, sizeof a.metric));
    all = test_predict_all(model, data, 1);
    for (i = 0; i < 2; i++)
        CHECK_INT(carnn_session_open(&s[i], i ? twin : model, NULL, NULL), CARNN_OK);
    for (i = 0; i < carnn__min(all.examples, 12); i++) {
        carnn_prediction p[2];
        carnn_explanation e[2];
        carnn_contribution part[2][24];
        carnn_status status[2];
        memset(p, 0, sizeof p);
        memset(part, 0, sizeof part);
        memset(e, 0, sizeof e);
        for (k = 0; k < 2; k++) {
            size_t columns = carnn_session_columns(s[k]);
            status[k] = columns ? carnn_session_row(s[k], row + i, columns, 3, &p[k], NULL)
                                : carnn_session_example(s[k], data, i, 3, &p[k], NULL);
            if (!status[k]) status[k] = carnn_session_explain(s[k], 24, part[k], &e[k], NULL);
        }
        CHECK(test_value(&p[0]) == test_value(&p[1]) && status[0] == status[1]);
        explained += status[0] == CARNN_OK;
        CHECK(e[0].count == e[1].count && e[0].rest == e[1].rest);
        for (k = 0; k < carnn__min(e[0].count, 24); k++)
            CHECK(part[0][k].score == part[1][k].score && part[0][k].share == part[1][k].share);
    }
    for (i = 0; i < 2; i++) carnn_session_free(s[i]);
    carnn_model_free(twin);
    return explained;
}

static void quantise_tasks(void) {
    size_t t, v, checked = 0, explained = 0;
    const carnn__task *task;
    for (t = 0; (task = carnn__task_at(t)) != NULL; t++)
        for (v = 0; task->variants[v]; v++, checked++) {
            carnn_source source = {"sample", task->sample, strlen(task->sample)};
            carnn_model_desc desc;
            carnn_dataset_desc lines = {task->name, &source, 1, NULL, 0, 0, NULL, &desc, NULL,
                                        NULL};
            carnn_dataset *data = NULL;
            carnn_model *model = NULL;
            memset(&desc, 0, sizeof desc);
            desc.task = task->name;
            desc.hidden = 19;
            if (strstr(task->defaults, "embedding=")) desc.embedding = 17;
            CHECK_INT(carnn__set_all(&desc, NULL, 0, task->variants[v], NULL), CARNN_OK);
            CHECK_INT(carnn_dataset_load(&data, &lines, NULL), CARNN_OK);
            CHECK_INT(carnn_model_create(&model, &desc, data, NULL), CARNN_OK);
            CHECK_INT(carnn_model_quantise(model, NULL), CARNN_OK);
            explained += quantise_twins(model, data);
            carnn_model_free(model);
            carnn_dataset_free(data);
        }
    CHECK(checked > 40 && explained > 100);
}

/* In the caller's memory nothing changes; a rounded model is not trained further, but a model that
   goes on from it has floats. */
static void quantise_models(void) {
    carnn_model *model = quantise_trained("lstm", 9, 1), *other, *ensemble = NULL, *again;
    const carnn_model *both[2];
    carnn_ensemble_desc desc;
    size_t size, small, rounded, unrounded = 0, i;
    unsigned char *bytes = quantise_image(model, &size), *copy = quantise_image(model, &size);
    unsigned char *image;
    carnn_error error;
    double p;
    other = quantise_loaded(bytes, size);
    CHECK_INT(carnn_model_quantise(other, NULL), CARNN_OK);
    CHECK(!memcmp(bytes, copy, size));
    carnn__free_aligned(&quantise_memory, bytes);
    carnn__free_aligned(&quantise_memory, copy);
    p = quantise_says(other);
    /* an ensemble of a quantised model and one that is not, then of two */
    memset(&desc, 0, sizeof desc);
    both[0] = model;
    both[1] = other;
    CHECK_INT(carnn_model_ensemble(&ensemble, both, 2, &desc, NULL), CARNN_OK);
    CHECK_INT(carnn_model_tensor(carnn_model_member(ensemble, 0), 0).bits, 32);
    CHECK_INT(carnn_model_tensor(carnn_model_member(ensemble, 1), 0).bits, 8);
    CHECK(quantise_says(carnn_model_member(ensemble, 1)) == p);
    for (i = 0; i < 2; i++) {
        double mean = quantise_says(ensemble);
        image = quantise_image(ensemble, &small);
        again = quantise_loaded(image, small);
        CHECK(quantise_says(again) == mean);
        carnn_model_free(again);
        carnn__free_aligned(&quantise_memory, image);
        CHECK(i ? small < unrounded : (unrounded = small) > size);
        CHECK_INT(carnn_model_quantise(ensemble, NULL), CARNN_OK);
    }
    CHECK(quantise_says(carnn_model_member(ensemble, 0)) == p);
    carnn_model_free(ensemble);
    /* gone on from, and not trained further */
    {
        carnn_dataset *data = test_data("classify", "x\ta b\ny\tb c\n", 12, 0, 0);
        carnn_train_desc train;
        carnn_model_desc from = *carnn_model_describe(other);
        from.from = other;
        CHECK_INT(carnn_model_create(&again, &from, data, NULL), CARNN_OK);
        CHECK_INT(carnn_model_tensor(again, 0).bits, 32);
        CHECK(quantise_says(again) == p);
        carnn_model_free(again);
        memset(&train, 0, sizeof train);
        train.epochs = train.threads = 1;
        image = quantise_image(other, &rounded);
        CHECK_INT(carnn_train(other, data, NULL, &train, &error), CARNN_ERR_ARGUMENT);
        CHECK(strstr(error.message, "8 bits is not trained") != NULL);
        copy = quantise_image(other, &small);
        CHECK(small == rounded && !memcmp(copy, image, rounded));
        carnn__free_aligned(&quantise_memory, copy);
        carnn__free_aligned(&quantise_memory, image);
        carnn_dataset_free(data);
    }
    carnn_model_free(other);
    carnn_model_free(model);
}

/* A weight that is too large is refused before anything is rounded, and so is a process that rounds
   otherwise; how large vectors are does not matter. */
static void quantise_refused(void) {
    carnn_model *model = quantise_trained("lstm", 9, 0);
    float *w = carnn__named(&model->params, "hidden.weight"), row[64];
    carnn_tensor t;
    size_t size = carnn_model_size(model), i = 0;
    carnn_error error;
    w[0] = nextafterf(127.0f * 65504.0f, INFINITY);
    carnn__named(&model->params, "output.bias")[0] = 1e9f;
    CHECK_INT(carnn_model_quantise(model, &error), CARNN_ERR_ARGUMENT);
    CHECK(strstr(error.message, "too large for 8 bits") != NULL);
    w[0] = 127.0f * 65504.0f;
#if defined(FE_TOWARDZERO)
    fesetround(FE_TOWARDZERO);
    CHECK_INT(carnn_model_quantise(model, &error), CARNN_ERR_ARGUMENT);
    fesetround(FE_TONEAREST);
#endif
    CHECK_INT(carnn_model_size(model), size);
    CHECK_INT(carnn_model_quantise(model, &error), CARNN_OK);
    CHECK(carnn_model_size(model) < size);
    while (strcmp((t = carnn_model_tensor(model, i)).name, "hidden.weight")) i++;
    CHECK_INT(t.bits, 8);
    carnn_tensor_row(&t, 0, row);
    CHECK(row[0] == 127.0f * 65504.0f);
    CHECK(carnn__named(&model->params, "output.bias")[0] == 1e9f);
    carnn_model_free(model);
}

/* What batch normalisation has counted is not rounded, though it has a row for every step. */
static void quantise_populations(void) {
    static const char text[] = "x\ta b a b a\ny\tb a\n";
    carnn_dataset *data = test_data("classify", text, sizeof text - 1, 0, 0);
    carnn_model *model = test_model("classify", "cell=lstm normalise=batch hidden=32", NULL, data);
    size_t i, counted = 0;
    CHECK_INT(carnn_model_quantise(model, NULL), CARNN_OK);
    for (i = 0; i < model->params.count; i++) {
        const carnn__param *p = &model->params.item[i];
        CHECK(!p->statistic || !p->quantised);
        counted += p->statistic && p->rows > CARNN__REDUCE_GATES && p->columns > 31;
    }
    CHECK(counted > 0);
    carnn_model_free(model);
    carnn_dataset_free(data);
}

/* Sealed files with one byte of the table of tensors, or of the first blocks, set to another value:
   refused, or a model of finite weights that can be written. The sanitizers watch. */
static void quantise_damage(void) {
    carnn_model *model = quantise_trained("icarnn", 5, 0), *other;
    unsigned char *bytes;
    carnn_source source = {"image", NULL, 0};
    carnn_error error;
    size_t size, at, from, v, refused = 0, loads = 0;
    CHECK_INT(carnn_model_quantise(model, NULL), CARNN_OK);
    bytes = quantise_image(model, &size);
    source.bytes = bytes;
    source.size = size;
    for (from = 0; memcmp(bytes + from, "word.weight", 11); from++) {}
    for (at = from; at < size && at < from + 1500; at++) {
        unsigned char was = bytes[at];
        static const unsigned char value[] = {0x00, 0x02, 0x08, 0x7F, 0xFF};
        for (v = 0; v < sizeof value; v++) {
            bytes[at] = value[v];
            test_seal(bytes, size);
            if (carnn_model_load(&other, &source, NULL, &error)) {
                refused++;
                CHECK_INT(error.code, CARNN_ERR_MODEL);
                continue;
            }
            loads++;
            CHECK(!carnn__not_finite(&other->params, other->params.value, other->params.size));
            carnn_model_size(other);
            carnn_model_free(other);
        }
        bytes[at] = was;
    }
    CHECK(refused > 500 && loads > 500);
    bytes[size - model->params.size * sizeof(float) + 1] = 0x7C; /* a scale that is infinite */
    test_seal(bytes, size);
    CHECK_INT(carnn_model_load(&other, &source, NULL, &error), CARNN_ERR_MODEL);
    CHECK_TEXT(error.message, "image: word.weight holds NaN or infinity");
    carnn__free_aligned(&quantise_memory, bytes);
    carnn_model_free(model);
}

/* Each allocation fails once: of a load, and of rounding an ensemble, which stays as it was. */
static void quantise_no_memory(void) {
    carnn_model *model = quantise_trained("icarnn", 5, 0), *other = NULL;
    const carnn_model *both[2];
    carnn_source source = {"image", NULL, 0};
    test_memory memory = {0, 0, 0};
    carnn_allocator failing = {test_alloc, test_realloc, test_free, &memory};
    carnn_ensemble_desc desc;
    carnn_status status = CARNN_ERR_MEMORY;
    size_t size;
    unsigned char *bytes;
    double p;
    memset(&desc, 0, sizeof desc);
    both[0] = both[1] = model;
    CHECK_INT(carnn_model_ensemble(&other, both, 2, &desc, NULL), CARNN_OK);
    bytes = quantise_image(other, &size);
    p = quantise_says(other);
    carnn_model_free(other);
    source.bytes = bytes;
    source.size = size;
    while (status == CARNN_ERR_MEMORY && memory.fail_at < 1000) {
        memory.calls = 0;
        memory.fail_at++;
        status = carnn_model_load(&other, &source, &failing, NULL);
        if (status) CHECK_INT(memory.blocks, 0);
    }
    CHECK_INT(status, CARNN_OK);
    for (memory.fail_at = 0; memory.fail_at < 1000;) {
        size_t blocks = (size_t)memory.blocks;
        memory.calls = 0;
        memory.fail_at++;
        status = carnn_model_quantise(other, NULL);
        if (status == CARNN_OK) break;
        CHECK_INT(status, CARNN_ERR_MEMORY);
        CHECK_INT(memory.blocks, blocks);
        memory.calls = -1000000;
        CHECK(carnn_model_size(other) == size && quantise_says(other) == p);
    }
    CHECK_INT(status, CARNN_OK);
    CHECK(memory.fail_at > 4 && carnn_model_size(other) < size);
    carnn_model_free(other);
    CHECK_INT(memory.blocks, 0);
    carnn__free_aligned(&quantise_memory, bytes);
    carnn_model_free(model);
}

int main(void) {
    quantise_halves();
    quantise_blocks();
    quantise_products();
    quantise_pieces();
    quantise_file();
    quantise_tasks();
    quantise_models();
    quantise_refused();
    quantise_populations();
    quantise_damage();
    quantise_no_memory();
    return test_end();
}
