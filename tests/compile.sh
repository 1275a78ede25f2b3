#!/bin/sh
# What must compile, without a warning, and link: gcc and clang, C99 and C++17, the declarations
# alone, all combinations of the option macros, two translation units. Compilers that are not there
# are named.
# The last line reads N passed, N failed.
strict='-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror'
passed=0
failed=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

check() { # what, command...
    what=$1
    shift
    if "$@" > "$work/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $what"
        head -n 20 "$work/log"
    fi
}

printf '#include "carnn.h"\nint main(void) { return carnn_status_text(CARNN_OK) == 0; }\n' > "$work/use.c"
printf '#define CARNN_IMPLEMENTATION\n#include "carnn.h"\n' > "$work/make.c"
cat "$work/make.c" "$work/make.c" "$work/use.c" > "$work/often.c"
cp "$work/use.c" "$work/use.cpp"
cp "$work/make.c" "$work/make.cpp"
{ cat "$work/make.c"; echo 'int main(void) { return 0; }'; } > "$work/alone.c"

for compiler in gcc clang; do
    if ! command -v $compiler > /dev/null; then
        echo "left out: $compiler is not installed"
        continue
    fi
    case $compiler in gcc) plus=g++ ;; *) plus=clang++ ;; esac
    check "$compiler, C99" $compiler -std=c99 -O1 $strict -I. -c "$work/make.c" -o "$work/make.o"
    check "$compiler, declarations" $compiler -std=c99 $strict -I. -c "$work/use.c" -o "$work/use.o"
    check "$compiler, included often" $compiler -std=c99 -O1 $strict -I. -fsyntax-only "$work/often.c"
    check "$compiler, two units link" $compiler "$work/make.o" "$work/use.o" -o "$work/two" -lm -lpthread
    check "$compiler, command line" $compiler -std=c99 -O1 $strict -I. -fsyntax-only cli.c
    check "$compiler, GNU C" $compiler -O2 -D_FORTIFY_SOURCE=2 $strict -I. -fsyntax-only cli.c
    check "$plus, C++17" $plus -std=c++17 -O1 $strict -I. -fsyntax-only "$work/make.cpp"
    check "$plus, declarations" $plus -std=c++17 $strict -I. -c "$work/use.cpp" -o "$work/usepp.o"
    check "$plus, C++ calls C" $plus "$work/make.o" "$work/usepp.o" -o "$work/three" -lm -lpthread
done

# Every combination of the option macros; each of them alone also as a program that links, where
# the optimiser looks at what is left.
options='CARNN_STATIC CARNN_NO_STDIO CARNN_NO_THREADS CARNN_NO_SIMD CARNN_NO_TRAIN CARNN_NO_TEXT'
number=0
while [ $number -lt 64 ]; do
    chosen= rest=$number
    for option in $options; do
        [ $((rest % 2)) -eq 1 ] && chosen="$chosen -D$option"
        rest=$((rest / 2))
    done
    check "options:$chosen" ${CC:-cc} -std=c99 $strict $chosen -I. -fsyntax-only "$work/alone.c"
    number=$((number + 1))
done
for option in $options; do
    check "$option links" ${CC:-cc} -std=c99 $strict -O1 -D$option -I. "$work/alone.c" \
        -o "$work/alone" -lm -lpthread
done
check "no optimisation" ${CC:-cc} -std=c99 $strict -O0 -I. -fsyntax-only "$work/make.c"
for option in -ffast-math -ffinite-math-only; do
    check "$option is refused" sh -c "! ${CC:-cc} -std=c99 $option -I. -fsyntax-only '$work/make.c'"
done
{ cat "$work/make.c"; echo 'static int nobody_calls(void) { return 0; }'; } > "$work/host.c"
check "warnings of the host stay" sh -c "! ${CC:-cc} -std=c99 $strict -DCARNN_NO_THREADS -I. \
    -c '$work/host.c' -o '$work/host.o'"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
