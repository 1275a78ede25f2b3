#!/bin/sh
# What must compile, without a warning, and link: gcc and clang, C99 and C++17, the declarations
# alone, option macros (any three of them in all combinations), each task alone, two translation
# units. Compilers that are not there are named.

. "$(dirname "$0")/check.sh"
strict='-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror'

# compiles WHAT COMMAND...
compiles() {
    what=$1
    shift
    check "$what" quiet "$@"
}

printf '#include "carnn.h"\nint main(void) { return carnn_status_text(CARNN_OK) == 0; }\n' \
    > "$folder/use.c"
printf '#define CARNN_IMPLEMENTATION\n#include "carnn.h"\n' > "$folder/make.c"
cat "$folder/make.c" "$folder/make.c" "$folder/use.c" > "$folder/often.c"
cp "$folder/use.c" "$folder/use.cpp"
cp "$folder/make.c" "$folder/make.cpp"
cat > "$folder/answer.c" << 'END'
#include "carnn.h"
#include <stdio.h>
static int answer(const char *name, carnn_error *error) {
    static char bytes[1 << 22];
    static const float row[8];
    FILE *file = fopen(name, "rb");
    carnn_source source = {"memory", bytes, 0};
    static const char words[] = "good morning , how are you", candidates[] = "how|you";
    carnn_text texts[3] = {{words, sizeof words - 1}, {words, sizeof words - 1},
                           {candidates, sizeof candidates - 1}};
    carnn_model *model = NULL;
    carnn_session *session = NULL;
    carnn_prediction p;
    size_t columns, count = 0; /* of numbers, of texts */
    carnn_status status;
    if (!file) return 2;
    source.size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    status = carnn_model_load(&model, &source, NULL, error);
    if (!status) status = carnn_session_open(&session, model, NULL, error);
    columns = session ? carnn_session_columns(session) : 0;
    if (columns) status = carnn_session_row(session, row, columns, 1, &p, error);
    else if (session)
        do status = carnn_session_predict(session, texts, ++count, 1, &p, error);
        while (status && count < 3);
    if (!status)
        printf("%.17g %.17g %zu %zu\n", p.score, p.count ? p.probability[0] : 0.0, p.tokens,
               p.columns);
    carnn_session_free(session);
    carnn_model_free(model);
    return status;
}
int main(int argc, char **argv) {
    carnn_error error = {CARNN_OK, 0, ""};
    int i, status = argc < 2;
    for (i = 1; i < argc && !status; i++)
        if ((status = answer(argv[i], &error)) != 0) puts(error.message);
    return status != 0;
}
END

cat > "$folder/train.c" << 'END'
#include "carnn.h"
int main(int argc, char **argv) {
    carnn_source file = {"data/lm-dev.txt", NULL, 0};
    carnn_dataset_desc data = {.task = "lm", .sources = &file, .source_count = 1};
    carnn_model_desc desc = {.task = "lm", .hidden = 21};
    carnn_train_desc train = {.epochs = 2, .average = 0.9, .weight_decay = 0.01};
    carnn_dataset *set;
    carnn_model *model;
    carnn_error error;
    return argc != 2 || carnn_dataset_load(&set, &data, &error) ||
           carnn_model_create(&model, &desc, set, &error) ||
           carnn_train(model, set, set, &train, &error) ||
           carnn_model_save(model, argv[1], &error);
}
END
mkdir "$folder/own"
cp /usr/include/stb/stb_ds.h "$folder/own" # whose macros are no system header's there
made_by=$(readlink -f "$(command -v "${CC:-cc}")") # make compiles the header with the same options
for compiler in gcc clang; do
    if ! command -v $compiler > /dev/null; then
        echo "left out: $compiler is not installed"
        continue
    fi
    case $compiler in gcc) plus=g++ ;; *) plus=clang++ ;; esac
    if [ "$(readlink -f "$(command -v $compiler)")" = "$made_by" ] &&
        [ build/carnn.o -nt carnn.h ]; then
        compiles "$compiler, C99: the object of make" cp build/carnn.o "$folder/make.o"
    else
        compiles "$compiler, C99" $compiler -std=c99 -O1 $strict -I. -c "$folder/make.c" \
            -o "$folder/make.o"
    fi
    compiles "$compiler, declarations" $compiler -std=c99 $strict -I. -c "$folder/use.c" \
        -o "$folder/use.o"
    compiles "$compiler, included often" $compiler -std=c99 -O1 $strict -I. -fsyntax-only \
        "$folder/often.c"
    compiles "$compiler, two units link" $compiler "$folder/make.o" "$folder/use.o" \
        -o "$folder/two" -lm -lpthread
    compiles "$compiler, a training" $compiler -std=c99 -I. "$folder/make.o" "$folder/train.c" \
        -o "$folder/train" -lm -lpthread
    check "$compiler, trains" "$folder/train" "$folder/$compiler.gguf"
    compiles "$compiler, command line" $compiler -std=c99 -O1 $strict -I. -fsyntax-only cli.c
    compiles "$compiler, GNU C" $compiler -O2 -D_FORTIFY_SOURCE=2 $strict -I. -fsyntax-only cli.c
    compiles "$compiler, stb_ds.h in a folder of one's own" $compiler -std=c99 $strict \
        -I"$folder/own" -I. -fsyntax-only "$folder/make.c"
    compiles "$plus, C++17" $plus -std=c++17 -O1 $strict -I. -fsyntax-only "$folder/make.cpp"
    compiles "$plus, C++20" $plus -std=c++20 -O1 $strict -I. -fsyntax-only "$folder/make.cpp"
    compiles "$plus, command line" $plus -std=c++17 -I. -x c++ -fsyntax-only cli.c
    compiles "$plus, declarations" $plus -std=c++17 $strict -I. -c "$folder/use.cpp" \
        -o "$folder/usepp.o"
    compiles "$plus, C++ calls C" $plus "$folder/make.o" "$folder/usepp.o" -o "$folder/three" \
        -lm -lpthread
done

if [ -s "$folder/gcc.gguf" ] && [ -s "$folder/clang.gguf" ]; then
    check "gcc and clang: other model files" cmp -s "$folder/gcc.gguf" "$folder/clang.gguf"
fi

# The option macros: none, all, and ten choices of three, so that any three of them occur in all
# eight combinations; the compilers take turns.
quickest=${CC:-cc}
command -v clang > /dev/null && quickest=clang # twice as fast without optimisation
options='CARNN_STATIC CARNN_NO_STDIO CARNN_NO_THREADS CARNN_NO_SIMD CARNN_NO_TRAIN CARNN_NO_TEXT'
alone="-std=c99 $strict -DCARNN_IMPLEMENTATION -I. $folder/answer.c" # with the implementation in it
compiler=$quickest
for row in 000000 001011 001110 010101 010110 011001 100011 100101 101100 110010 111000 111111; do
    chosen= rest=$row
    for option in $options; do
        case $rest in 1*) chosen="$chosen -D$option" ;; esac
        rest=${rest#?}
    done
    compiles "options:$chosen" $compiler $alone $chosen -fsyntax-only
    [ $compiler = $quickest ] && compiler=${CC:-cc} || compiler=$quickest
done

# Each of them alone as a program that answers by a model of each task, with the numbers of one
# whose implementation is optimised and has SIMD.
model=$folder/gcc.gguf
[ -s "$model" ] || model=$folder/clang.gguf
models=$model
for task in dialog answer classify pair cloze signal skip-thought; do
    from=$(ls data/$task-train.* data/story.txt 2> /dev/null | head -n 1)
    check "trains $task" quiet ./carnn train --task $task --train "$from" --hidden 9 --epochs 1 \
        --quiet --out "$folder/$task.gguf"
    models="$models $folder/$task.gguf"
done
compiles "declarations, then linked" ${CC:-cc} -std=c99 $strict -I. "$folder/answer.c" \
    "$folder/make.o" -o "$folder/answer" -lm -lpthread
"$folder/answer" $models > "$folder/says"
check "loads models and answers" [ $? -eq 0 ]
for option in $options; do
    compiles "$option links" $quickest $alone -O0 -D$option -DCARNN_NO_SIMD -o "$folder/answer" \
        -lm -lpthread
    "$folder/answer" $models > "$folder/$option.says"
    check "$option: loads models and answers" [ $? -eq 0 ]
    check "$option: another answer" cmp -s "$folder/$option.says" "$folder/says"
done
for task in answer classify pair cloze signal thought; do
    compiles "$task alone" $quickest $alone -DCARNN_NO_SIMD "-DCARNN_TASKS(X)=X($task)" \
        -fsyntax-only
done
for task in dialog lm; do
    compiles "$task alone" $quickest $alone -O0 -DCARNN_NO_SIMD -DCARNN_NO_TRAIN \
        "-DCARNN_TASKS(X)=X($task)" -o "$folder/$task" -lm -lpthread
done
"$folder/lm" "$model" > "$folder/CARNN_TASKS.says"
head -n 1 "$folder/says" > "$folder/lm.says"
check "lm alone: another answer" cmp -s "$folder/CARNN_TASKS.says" "$folder/lm.says"
check "dialog alone: refuses other models" \
    test "$("$folder/dialog" "$model")" = 'memory: unknown task "lm"'
compiles "examples/tagger.c by itself" ${CC:-cc} -std=c99 $strict -DCARNN_NO_SIMD -fsyntax-only \
    examples/tagger.c # test_tag.c runs it
{
    printf '#define CARNN_EXTRA_HEADS(X) X(tag_task)\n#include "cli.c"\n'
    sed '1,/^#include/d; /--- the program/,$d' examples/tagger.c
} > "$folder/own/tag.c"
compiles "the command line with a task of one's own" ${CC:-cc} -std=c99 $strict \
    -DCARNN_NO_SIMD -I. -fsyntax-only "$folder/own/tag.c"
cp carnn.h "$folder/own/renamed.h"
printf '#define CARNN_IMPLEMENTATION\n#define CARNN_FILE "renamed.h"\n#include "renamed.h"\n' \
    > "$folder/own/renamed.c"
compiles "CARNN_FILE" ${CC:-cc} -std=c99 $strict -I"$folder/own" -fsyntax-only \
    "$folder/own/renamed.c"
printf '#define STB_DS_IMPLEMENTATION\n#include "stb_ds.h"\n' > "$folder/own/host.c"
compiles "stb_ds of the host" $quickest -std=c99 -w -O0 -DCARNN_NO_SIMD \
    -DCARNN_NO_STB_DS_IMPLEMENTATION -I"$folder/own" -I. "$folder/make.c" \
    "$folder/own/host.c" "$folder/use.c" -o "$folder/host" -lm -lpthread
cat "$folder/own/host.c" "$folder/make.c" > "$folder/own/same.c"
compiles "stb_ds of the host, in the same file" $quickest -std=c99 -w -DCARNN_NO_SIMD \
    -DCARNN_NO_STB_DS_IMPLEMENTATION -I"$folder/own" -I. -fsyntax-only "$folder/own/same.c"
compiles "warnings that come with optimisation" gcc -std=c99 $strict -O2 -DCARNN_NO_SIMD -I. -c \
    "$folder/make.c" -o "$folder/warned.o"
compiles "no optimisation" ${CC:-cc} -std=c99 $strict -O0 -I. -fsyntax-only "$folder/make.c"
for option in -ffast-math -ffinite-math-only -freciprocal-math; do
    check "$option is refused" fails ${CC:-cc} -std=c99 -Wfatal-errors $option -I. \
        -fsyntax-only "$folder/make.c"
done
compiles "constants" gcc -w -DCARNN_NO_TEXT -I. -fsyntax-only "$folder/make.c"
check "single precision constants are refused" fails gcc -w -Wfatal-errors -DCARNN_NO_TEXT \
    -fsingle-precision-constant -I. -fsyntax-only "$folder/make.c"
check "excess precision is refused" fails gcc -Wfatal-errors -mfpmath=387 -I. -fsyntax-only \
    "$folder/make.c"
{
    cat "$folder/make.c"
    echo 'int main(void) {
        carnn__engine e;
    #ifndef CARNN_NO_SIMD /* a machine that runs no kernels has no multiply-add */
        if (!strcmp(carnn_simd_name(0), "portable")) return 0;
    #endif
        return !carnn__engine_open(&e, NULL, 1, carnn__allocator(NULL), NULL);
    }'
} > "$folder/fast.c"
if command -v clang > /dev/null; then # no macro tells these options
    for option in -ffp-contract=fast -funsafe-math-optimizations -fno-honor-nans; do
        simd=-DCARNN_NO_SIMD # in a tenth of the time; but kernels are what is fused
        [ $option != -ffp-contract=fast ] || simd=
        compiles "$option" clang $option $simd -w -O1 -DCARNN_STATIC -DCARNN_NO_TEXT \
            -DCARNN_NO_THREADS -DCARNN_NO_TRAIN -DCARNN_NO_STDIO "-DCARNN_TASKS(X)=X(lm)" -I. \
            "$folder/fast.c" -o "$folder/fast" -lm
        check "$option is refused" "$folder/fast"
    done
fi
if command -v clang > /dev/null; then # gcc's sanitizers let these pass
    sh tests/gather.sh test_tag test_from test_odd test_session test_file > "$folder/null.c"
    compiles "null pointers, numbers out of range" clang -std=c99 -w -g1 -DCARNN_NO_SIMD \
        -fsanitize=pointer-overflow,float-cast-overflow -fno-sanitize-recover=all -I. -Itests \
        "$folder/null.c" -o "$folder/null" -lm -lpthread
    for test in from odd session file; do
        check "null pointers: $test" quiet "$folder/null" $test
    done
fi
{ cat "$folder/make.c"; echo 'static int nobody_calls(void) { return 0; }'; } > "$folder/host.c"
check "warnings of the host stay" fails $quickest -std=c99 $strict -DCARNN_NO_THREADS \
    -DCARNN_NO_SIMD -DCARNN_NO_TRAIN -I. -c "$folder/host.c" -o "$folder/host.o"

checked
