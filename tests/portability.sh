#!/bin/sh
# Other machines: sh tests/portability.sh [TEST...], in the top folder after `make`. For each, the
# command line and the header must compile without a warning; under an emulator a model is trained,
# whose bytes must be those that ./carnn gives here, and the programs of tests/ (default: all) run.
# What is not at hand is not counted as passed.
# sh tests/portability.sh quick: aarch64 with a few tests, and the command line for Windows, in
# seconds.
#
# Debian: gcc-mingw-w64-x86-64-posix wine64 wine qemu-user emscripten gcc-arm-none-eabi
# libnewlib-arm-none-eabi qemu-system-arm, and gcc-* with libc6-dev-*-cross for i686-linux-gnu
# (i386), aarch64-linux-gnu (arm64), arm-linux-gnueabihf (armhf), s390x-linux-gnu.

. "$(dirname "$0")/check.sh"
case $1 in
quick) quick=yes tests='simd file from session' optimise=-O0 ;;
*) quick= tests=${*:-$(cd tests && ls test_*.c | sed 's/test_\(.*\)\.c/\1/')} optimise=-O1 ;;
esac
strict='-std=c99 -Wall -Wextra -Wpedantic -Wconversion -Werror'
WINEPREFIX=$top/build/wine WINEDEBUG=-all
export WINEPREFIX WINEDEBUG
# build, too: wine makes no folder in one that is not there
mkdir -p "$folder/include" "$folder/run" "$top/build"
ln -s /usr/include/stb "$folder/include/stb" # the one header that is not the compiler's own
ln -s "$top/data" "$folder/run/data"
echo '#include <stdio.h>' > "$folder/hello.c"
small='train --task dialog --train data/bike.txt --hidden 17 --embedding 17 --epochs 3 --quiet'
./carnn $small --out "$folder/here.gguf" > "$folder/log" 2>&1
sh tests/gather.sh test_tag $(echo "" $tests | sed 's/ tag / /; s/ / test_/g') > "$folder/tests.c"
printf '#define CARNN_IMPLEMENTATION\n#include "carnn.h"\n' > "$folder/make.c"

# ran RUNNER: the sums of all tests, or what ended without them. Each has so many seconds of a
# processor, however busy the machine is.
ran() {
    good=0 bad=0 lost=
    for test in $tests; do
        last=$(cd "$folder/run" && ulimit -t "${SECONDS_EACH:-600}" &&
            timeout 7200 $1 ../tests.exe "$test" 2> ../err | tail -n 1 | tr -d '\r')
        case $last in
        *' passed, '*' failed') ;;
        *) last="0 passed, 1 failed" lost="$lost $test" ;;
        esac
        one=${last#*, }
        [ "${one%% *}" -eq 0 ] || [ "$lost" != "${lost% $test}" ] || lost="$lost $test"
        good=$((good + ${last%% *}))
        bad=$((bad + ${one%% *}))
    done
}

# machine NAME COMPILER RUNNER FLAG...
machine() {
    name=$1 compiler=$2 runner=$3
    shift 3
    if ! "$compiler" -c -o "$folder/hello.o" "$folder/hello.c" 2> "$folder/log"; then
        echo "left out: $name: $compiler is not at hand"
        return
    fi
    build="$compiler $optimise $strict -isystem $folder/include -I."
    warned=$failed
    [ $quick ] || check "$name: the header" quiet $build "$@" -fsyntax-only "$folder/make.c"
    check "$name: the command line" quiet $build "$@" -static -o "$folder/carnn.exe" cli.c \
        -lm -lpthread
    [ -z "$tests" ] || check "$name: the tests" quiet $build -Itests "$@" -Wno-conversion -static \
        -o "$folder/tests.exe" "$folder/tests.c" -lm -lpthread
    built=yes
    [ "$failed" -eq "$warned" ] || built=no
    said=
    if [ -z "$tests" ] || [ $built = no ]; then
        :
    elif command -v "${runner:-true}" > "$folder/where"; then
        (cd "$folder/run" && rm -f there.gguf &&
            $runner ../carnn.exe $small --out there.gguf) > "$folder/log" 2>&1
        check "$name: a model with the same bytes" cmp "$folder/here.gguf" "$folder/run/there.gguf"
        ran "$runner"
        passed=$((passed + good)) failed=$((failed + bad))
        said="tests: $good passed, $bad failed${lost:+:$lost}"
    else
        echo "left out: $name: $runner is not at hand"
    fi
    printf '%-10s %-28s builds: %-4s %s\n' "$name" "$compiler" $built "$said"
}

# A microcontroller: no operating system, a program in flash. Runs examples/device.c as it does
# here.
device() {
    for tool in arm-none-eabi-gcc qemu-system-arm; do
        command -v $tool > "$folder/where" && continue
        echo "left out: Cortex-M7: $tool is not at hand"
        return
    done
    cat > "$folder/start.c" <<'END'
void _start(void);
static void reset(void) {
    *(volatile unsigned *)0xE000ED88 |= 0xFu << 20; /* turns on the FPU */
    _start();
}
__attribute__((section(".vectors"), used)) static void *const vectors[2] = {
    (void *)0x20400000, (void *)reset}; /* the stack's end, where the program begins */
END
    check "Cortex-M7: builds" quiet arm-none-eabi-gcc -Os $strict -Wno-pedantic -mthumb \
        -mcpu=cortex-m7 -mfloat-abi=hard -mfpu=fpv5-d16 --specs=rdimon.specs \
        -Wl,--section-start=.vectors=0 "$folder/start.c" examples/device.c \
        -o "$folder/device.elf" -lm
    check "the same here: builds" quiet ${CC:-cc} -std=c99 -o "$folder/device" examples/device.c -lm
    "$folder/device" < data/bike-chat.txt | sed '$d' > "$folder/here" # without the last line
    timeout 60 qemu-system-arm -M mps2-an500 -display none -serial none -monitor none \
        -semihosting-config enable=on,target=native -kernel "$folder/device.elf" \
        < data/bike-chat.txt > "$folder/there"
    check "Cortex-M7: says what is said here" \
        test "$(cat "$folder/here")" = "$(sed '$d' "$folder/there")"
    tail -n 1 "$folder/there" | sed 's/^/Cortex-M7  examples\/device.c: /'
}

if [ $quick ]; then
    machine aarch64 aarch64-linux-gnu-gcc qemu-aarch64
    tests=
    machine Windows x86_64-w64-mingw32-gcc wine
    checked
    exit
fi
machine Windows x86_64-w64-mingw32-gcc wine
machine i386 i686-linux-gnu-gcc '' -msse2 -mfpmath=sse
machine aarch64 aarch64-linux-gnu-gcc qemu-aarch64
# Without it readdir fails on file numbers of 64 bits.
machine armhf arm-linux-gnueabihf-gcc qemu-arm -D_FILE_OFFSET_BITS=64
machine s390x s390x-linux-gnu-gcc qemu-s390x -fexcess-precision=fast
# Without threads, as in a page that has none.
machine WebAssembly emcc node -DCARNN_NO_THREADS -Wno-unused-command-line-argument \
    -s SINGLE_FILE=1 -s NODERAWFS=1 -s EXIT_RUNTIME=1 -s ALLOW_MEMORY_GROWTH=1
device

checked
