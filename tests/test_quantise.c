/* Weights of 8 bits (@@FILE): a quantised model's file has the numbers that the model computes
   with, read here by a decoder of its own, each next to what it was; and nothing else changes. */

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
    for (i = 0; i < 0x10000; i++)
        if ((i >> 10 & 31) != 31) wrong += (double)carnn__half_value(i) != quantise_half(i);
        else wrong += isfinite(carnn__half_value(i)) != 0;
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
   of them by 127, but for the rounding of half numbers, and the second time nothing changes. */
static void quantise_blocks(void) {
    size_t n, k, i, wrong = 0;
    for (k = 0; k < 4000; k++) {
        float w[CARNN__Q8_NUMBERS], was[CARNN__Q8_NUMBERS], once[CARNN__Q8_NUMBERS];
        double scale = pow(10.0, -11.0 + (double)(k % 170) / 10.0), largest = 0.0, d, most;
        unsigned char block[CARNN__Q8_BYTES], again[CARNN__Q8_BYTES];
        n = 1 + k % CARNN__Q8_NUMBERS;
        for (i = 0; i < n; i++) {
            w[i] = was[i] = (float)(scale * (double)carnn__normal(k, i));
            largest = fmax(largest, fabs((double)w[i]));
        }
        carnn__q8_round(w, n);
        carnn__q8_block(block, w, n);
        d = quantise_half(block[0] | (unsigned)block[1] << 8);
        most = d < 0x1p-14 ? 1.0 : 0.501; /* a denormal scale may be rounded twice */
        wrong += d > largest / 127.0 * (1.0 + 1.0 / 1024.0) + 0x1p-24;
        for (i = 0; i < n; i++) {
            double q = (double)(signed char)block[2 + i];
            wrong += (double)w[i] != d * q;
            wrong += fabs((double)w[i] - (double)was[i]) > most * fmax(d, 0x1p-24);
        }
        for (; i < CARNN__Q8_NUMBERS; i++) wrong += block[2 + i] != 0;
        memcpy(once, w, sizeof w);
        carnn__q8_round(w, n);
        carnn__q8_block(again, w, n);
        wrong += memcmp(once, w, n * sizeof *w) || memcmp(block, again, sizeof block);
    }
    CHECK_INT(wrong, 0);
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
    for (i = 0; (t = carnn_model_tensor(model, i)).name; i++) {
        uint32_t type;
        uint64_t shape[2];
        const unsigned char *data = quantise_tensor(bytes, small, t.name, &type, shape);
        was = carnn_model_tensor(before, i);
        CHECK_INT(was.bits, 32);
        CHECK_INT(type, t.bits == 8 ? 8 : 0);
        CHECK_INT(t.bits, t.rows > 1 && t.columns > 8 ? 8 : 32);
        CHECK_INT(shape[1], t.rows);
        if (t.bits == 32) {
            CHECK(!memcmp(t.value, was.value, t.rows * t.columns * sizeof(float)));
            CHECK(!memcmp(t.value, data, CARNN__LITTLE_ENDIAN * t.rows * t.columns * 4));
            continue;
        }
        matrices++;
        CHECK_INT(shape[0], (t.columns + 31) / 32 * 32);
        for (row = 0; row < t.rows; row++)
            for (j = 0; j < shape[0]; j++) {
                const unsigned char *block = data + (row * shape[0] + j) / 32 * 34;
                double d = quantise_half(block[0] | (unsigned)block[1] << 8);
                double w = d * (double)(signed char)block[2 + j % 32];
                if (j >= t.columns) wrong += w != 0.0;
                else wrong += w != (double)t.value[row * t.columns + j] ||
                              fabs(w - (double)was.value[row * t.columns + j]) > 0.501 * d;
            }
    }
    CHECK(matrices >= 4);
    CHECK_INT(wrong, 0);
    /* what is loaded computes with the same numbers, and is written as it was, by itself and when
       rounded once more */
    p = quantise_says(model);
    CHECK(p != quantise_says(before) && fabs(p - quantise_says(before)) < 0.02);
    for (i = 0; i < 4; i++) {
        unsigned char *from = bytes + (i & 1 ? 4 : 0); /* aligned, and not */
        if (i & 1) memmove(from, bytes, small);
        again = quantise_loaded(from, small);
        if (i & 1) memmove(bytes, from, small);
        if (i & 2) CHECK_INT(carnn_model_quantise(again, NULL), CARNN_OK);
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

/* In the caller's memory nothing changes; a model that is trained further has floats again; a
   weight that is too large is refused before anything is rounded. */
static void quantise_models(void) {
    carnn_model *model = quantise_trained("lstm", 9, 1), *other, *ensemble = NULL, *again;
    const carnn_model *both[2];
    carnn_ensemble_desc desc;
    size_t size, small, unrounded = 0, i;
    unsigned char *bytes = quantise_image(model, &size), *copy = quantise_image(model, &size);
    unsigned char *image;
    carnn_error error;
    float *w;
    double p;
    other = quantise_loaded(bytes, size);
    CHECK_INT(carnn_model_quantise(other, NULL), CARNN_OK);
    CHECK(!memcmp(bytes, copy, size));
    carnn__free_aligned(&quantise_memory, bytes);
    p = quantise_says(other);
    /* an ensemble of a quantised model and one that is not, then of two */
    memset(&desc, 0, sizeof desc);
    both[0] = model;
    both[1] = other;
    CHECK_INT(carnn_model_ensemble(&ensemble, both, 2, &desc, &error), CARNN_OK);
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
    /* trained further */
    {
        carnn_dataset *data = test_data("classify", "x\ta b\ny\tb c\n", 12, 0, 0);
        carnn_train_desc train;
        memset(&train, 0, sizeof train);
        train.epochs = train.threads = 1;
        CHECK_INT(carnn_train(other, data, NULL, &train, NULL), CARNN_OK);
        CHECK_INT(carnn_model_tensor(other, 0).bits, 32);
        CHECK_INT(carnn_model_size(other) / 64, size / 64);
        carnn_dataset_free(data);
    }
    carnn_model_free(other);
    /* too large: the last matrix, so that all others would have been rounded before */
    w = carnn__named(&model->params, "output.weight");
    w[0] = 127.0f * 65504.0f;
    CHECK_INT(carnn_model_quantise(model, &error), CARNN_OK);
    CHECK(w[0] == 127.0f * 65504.0f);
    w[0] = nextafterf(w[0], INFINITY);
    bytes = quantise_image(model, &small);
    CHECK_INT(carnn_model_quantise(model, &error), CARNN_ERR_ARGUMENT);
    CHECK(strstr(error.message, "too large for 8 bits") != NULL);
    /* a process that rounds otherwise is refused; how large vectors are does not matter */
    w[0] = 1.0f;
#if defined(FE_TOWARDZERO)
    fesetround(FE_TOWARDZERO);
    CHECK_INT(carnn_model_quantise(model, &error), CARNN_ERR_ARGUMENT);
    fesetround(FE_TONEAREST);
#endif
    carnn__named(&model->params, "output.bias")[0] = 1e9f;
    CHECK_INT(carnn_model_quantise(model, &error), CARNN_OK);
    CHECK(carnn__named(&model->params, "output.bias")[0] == 1e9f);
    carnn__free_aligned(&quantise_memory, bytes);
    carnn__free_aligned(&quantise_memory, copy);
    carnn_model_free(model);
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
    carnn__free_aligned(&quantise_memory, bytes);
    carnn_model_free(model);
}

/* Each allocation of a load fails once. */
static void quantise_no_memory(void) {
    carnn_model *model = quantise_trained("icarnn", 5, 0), *other = NULL;
    carnn_source source = {"image", NULL, 0};
    test_memory memory = {0, 0, 0};
    carnn_allocator failing = {test_alloc, test_realloc, test_free, &memory};
    carnn_status status = CARNN_ERR_MEMORY;
    size_t size;
    unsigned char *bytes;
    CHECK_INT(carnn_model_quantise(model, NULL), CARNN_OK);
    bytes = quantise_image(model, &size);
    source.bytes = bytes;
    source.size = size;
    while (status == CARNN_ERR_MEMORY && memory.fail_at < 1000) {
        memory.calls = 0;
        memory.fail_at++;
        status = carnn_model_load(&other, &source, &failing, NULL);
        if (status) CHECK_INT(memory.blocks, 0);
    }
    CHECK_INT(status, CARNN_OK);
    carnn_model_free(other);
    CHECK_INT(memory.blocks, 0);
    carnn__free_aligned(&quantise_memory, bytes);
    carnn_model_free(model);
}

int main(void) {
    quantise_halves();
    quantise_blocks();
    quantise_file();
    quantise_models();
    quantise_damage();
    quantise_no_memory();
    return test_end();
}
