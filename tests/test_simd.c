/* The choice of a path, how products are cut for it, and the fused multiply-add of plain C. */

#include "test.h"

#include <fenv.h>

/* A panel fits into its memory, whatever that is, and a strip of A into that of a large one; the
   parts of k are nearly equal. */
static void check_depth(const carnn__kernels *k) {
    size_t rows, size, wrong = 0;
    for (size = CARNN__PANEL_SIZE; size >= 16 * k->tile_columns; size -= 16 * k->tile_columns)
        for (rows = 0; rows < 3000; rows++) {
            carnn__engine e;
            size_t depth, parts;
            carnn__engine_borrow(&e, k, NULL, size);
            depth = carnn__depth(&e, rows);
            parts = (rows + depth - 1) / depth;
            wrong += !depth || depth * k->tile_columns > size;
            wrong += depth * k->tile_rows > CARNN__PANEL_SIZE;
            wrong += parts && rows - (parts - 1) * depth + 16 * parts <= depth;
        }
    CHECK_INT(wrong, 0);
    CHECK(k->tile_columns % 16 == 0);
}

static void check_choice(void) {
    const char *best = carnn_simd_name(0), *name;
    size_t i;
    unsetenv("CARNN_SIMD");
    CHECK(best != NULL);
    CHECK_TEXT(carnn__simd_select(NULL)->name, best);
    for (i = 0; (name = carnn_simd_name(i)) != NULL; i++) {
        CHECK_TEXT(carnn__simd_select(name)->name, name);
        check_depth(carnn__simd_select(name));
    }
    CHECK_TEXT(carnn_simd_name(i - 1), "portable");
    CHECK(carnn_simd_name(i + 1) == NULL);
    CHECK(carnn__simd_select("mmx") == NULL);
    setenv("CARNN_SIMD", "portable", 1);
    CHECK_TEXT(carnn__simd_select(NULL)->name, "portable");
    CHECK_TEXT(carnn__simd_select(best)->name, best); /* the call goes before the environment */
    setenv("CARNN_SIMD", "mmx", 1);
    CHECK(carnn__simd_select(NULL) == NULL);
    unsetenv("CARNN_SIMD");
}

static int same_float(float a, float b) { return !memcmp(&a, &b, sizeof a) || (a != a && b != b); }

/* Factors whose product is next to 1, and a sum that is next to the middle of two floats for that:
   rounded to a double it often is the middle. Where `small`, the floats are subnormal. */
static void near_middle(float *a, float *b, float *c, int small) {
    *a += 1.0f;
    *b = 1.0f / *a;
    *c = ldexpf(1.0f + *c, 24);
    if (!small) return;
    *a = ldexpf(*a, -75);
    *b = ldexpf(*b, -75);
    *c = ldexpf(*c, -151);
}

/* The portable multiply-add without the instruction must round once: against fmaf, on numbers that
   cancel, overflow, vanish, on sums next to the middle of two floats, and on all kinds of bits; a
   vector has numbers of one kind, or of all. */
static void check_fma(void) {
    uint64_t i, kind;
    long wrong = 0;
    int j, lane;
    for (i = 0; i < 250000; i++) {
        carnn__v_portable v[3], sum, difference;
        for (lane = 0; lane < CARNN__LANES; lane++) {
            kind = i % 16 < 8 ? i % 8 : (uint64_t)lane % 8;
            for (j = 0; j < 3; j++) {
                uint64_t at = (i * CARNN__LANES + (uint64_t)lane) * 3 + (uint64_t)j;
                uint32_t bits = (uint32_t)(carnn__random(5, at) >> 32);
                if (kind % 2) bits = (bits & 0x80ffffffu) | 0x3f000000u; /* of like size */
                if (kind == 1) /* often a product in the middle of two floats, and next to 0 */
                    bits = j == 2 ? bits - 0x1e000000u : bits & (j ? 0xfffff800u : 0xfffff000u);
                if (kind == 4) bits = (bits & 0x87ffffffu) | (j < 2 ? 0x1c000000u : 0u); /* small */
                if (kind == 6 && j != 1) bits = 0;
                memcpy(&v[j].x[lane], &bits, sizeof bits);
            }
            if (kind == 3) v[2].x[lane] = -v[0].x[lane] * v[1].x[lane]; /* nearly cancels */
            if (kind == 2 || kind == 5) {
                v[0].x[lane] = carnn__uniform(6, i * CARNN__LANES + (uint64_t)lane);
                v[2].x[lane] = carnn__uniform(7, i * CARNN__LANES + (uint64_t)lane);
                near_middle(&v[0].x[lane], &v[1].x[lane], &v[2].x[lane], kind == 5);
            }
        }
        sum = carnn__v_fma_portable(v[0], v[1], v[2]);
        difference = carnn__v_fnma_portable(v[0], v[1], v[2]);
        for (lane = 0; lane < CARNN__LANES; lane++) {
            float a = v[0].x[lane], b = v[1].x[lane], c = v[2].x[lane];
            wrong += !same_float(sum.x[lane], fmaf(a, b, c));
            wrong += !same_float(difference.x[lane], fmaf(-a, b, c));
        }
    }
#if defined(__MINGW32__)
    printf("left out: the fmaf of this C library rounds twice (%ld numbers)\n", wrong);
#else
    CHECK_INT(wrong, 0);
#endif
}

/* A process that rounds otherwise computes other numbers, and is refused. */
static void check_rounding(void) {
#if defined(__x86_64__)
    static const unsigned modes[] = {0x2000, 0x4000, 0x6000}; /* down, up, towards 0 */
    unsigned before = _mm_getcsr();
    carnn__engine e;
    carnn_error error;
    size_t i;
    for (i = 0; i < 3; i++) {
        _mm_setcsr(before | modes[i]);
        CHECK_INT(carnn__engine_open(&e, NULL, 1, carnn__allocator(NULL), &error),
                  CARNN_ERR_ARGUMENT);
        _mm_setcsr(before);
        CHECK(strstr(error.message, "does not round to the nearest number") != NULL);
    }
    CHECK_INT(carnn__engine_open(&e, NULL, 1, carnn__allocator(NULL), &error), CARNN_OK);
    carnn__engine_close(&e);
#endif
}

/* Programs that trap invalid operations can use a path: looking at it raises none. */
static void check_exceptions(void) {
#ifdef FE_INVALID /* WebAssembly has none */
    carnn__engine e;
    feclearexcept(FE_ALL_EXCEPT);
    CHECK_INT(carnn__engine_open(&e, NULL, 1, carnn__allocator(NULL), NULL), CARNN_OK);
    CHECK_INT(fetestexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW), 0);
    carnn__engine_close(&e);
#endif
}

int main(void) {
    check_choice();
    check_fma();
    check_rounding();
    check_exceptions();
    return test_end();
}
