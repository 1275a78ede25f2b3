#!/bin/sh
# The examples: run as their first lines say, on a model that the first of them trains; tagger.c by
# test_tag.c. The sample data; what is installed.
. "$(dirname "$0")/check.sh"
model=$folder/model.gguf
linked=build/examples # built without the header's implementation (Makefile)

# expect PATTERN COMMAND...: the command succeeds and prints a line that matches
expect() {
    pattern=$1
    shift
    "$@" > "$folder/out" 2> "$folder/err" < "$folder/in"
    code=$?
    check "$*: exit $code: $(head -n 1 "$folder/err")" [ $code -eq 0 ]
    prints "$pattern"
}

# prints PATTERN: a line of what was printed last matches
prints() {
    check "no line like $1: $(head -n 1 "$folder/out")" grep -q -e "$1" "$folder/out"
}

printf 'hello\n\ngoodbye\n' > "$folder/in"
expect '^bot: .' $linked/train "$model"
expect 'how can I help' $linked/answer "$model"
expect '^thank you -> .' $linked/threads "$model"
expect '^0\.[0-9]*  .*how can I help' build/embed "$model" hello
expect 'bytes of 67108864 used' $linked/allocator "$model"
expect 'how can I help' build/page "$model"
prints '^[-+][0-9.]*	user	goodbye$'
printf 'the sea is blue .\nedith elster lives in goldbury .\n' > "$folder/in"
expect '^best: edith elster lives' $linked/rank "$folder/rank.gguf" 'where does edith elster live ?'
expect '^ *0\.[0-9]*  goldbury' $linked/rank "$folder/rank.gguf" 'where does edith elster live ?'
printf 'hi how are you\nwhere is the map\n\nmap the is where\n' > "$folder/in"
expect '^ *[0-9.]*  where is the map' $linked/language "$folder/language.gguf"
expect '^says: [a-z]' $linked/language "$folder/language.gguf" 2
cp data/bike-chat.txt "$folder/in"
expect '^A bike for two days is 20 euros' build/device
prints '^Booked'
prints '^[1-9][0-9]* of 57344 bytes used$'
expect '^mgu: .*: right' build/cell
prints '^4 of 4 first words'
expect '^row .* lift ' $linked/gesture
prints '^3 of 3 gestures told'
expect '^derivatives of tag: right' build/tests tag
prints '^labels: D N V$'

for example in $linked/answer $linked/threads build/embed $linked/allocator build/page \
    $linked/rank $linked/language; do # without a model
    check "$example without arguments succeeds" fails $example
done

# data/README.md: the bytes are the same on every machine
mkdir "$folder/data"
for generator in $(make -n data | sed -n 's/^for generator in \(.*\); do .*/\1/p'); do
    check "$generator" quiet "build/$generator" "$folder/data"
done
for file in data/*-train.* data/*-dev.* data/*-test.* data/dialog-candidates.txt; do
    check "make data makes another $file" cmp -s "$file" "$folder/$file"
done

umask 077 # as that of a careful root
check 'make install' quiet make install "DESTDIR=$folder/the root" PREFIX=/usr
check 'the header installed is another' cmp -s carnn.h "$folder/the root/usr/include/carnn.h"
check 'not installed' [ -x "$folder/the root/usr/bin/carnn" ]
check 'not for everybody to read' [ -z "$(find "$folder/the root" -type f ! -perm -044)" ]
check 'no manual' grep -q '^.TH CARNN' "$folder/the root/usr/share/man/man1/carnn.1"
share="$folder/the root/usr/share"
for file in bash:bash-completion/completions/carnn zsh:zsh/site-functions/_carnn \
    fish:fish/vendor_completions.d/carnn.fish; do
    ./carnn help --complete "${file%%:*}" > "$folder/out"
    check "another completion for ${file%%:*}" cmp -s "$folder/out" "$share/${file#*:}"
done
ln -s 'the root' "$folder/root"
sed "s|^prefix=|&$folder/root|" "$folder/root/usr/lib/pkgconfig/carnn.pc" > "$folder/carnn.pc"
check 'pkg-config knows another version' \
    [ "$(sed -n 's/^Version: //p' "$folder/carnn.pc")" = "$(./carnn version | cut -d ' ' -f 2)" ]
prefix=$(sed -n 's/^prefix=//p' "$folder/carnn.pc")
options=$(sed -n "s|\\\${prefix}|$prefix|; s/^Cflags: //p; s/^Libs: //p" "$folder/carnn.pc")
printf '#include <carnn.h>\nint main(void) { return !carnn_simd_name(0); }\n' > "$folder/host.c"
check 'a program by the options of pkg-config' quiet "${CC:-cc}" -std=c99 -o "$folder/host" \
    "$folder/host.c" build/carnn.o $options
check 'make uninstall' quiet make uninstall "DESTDIR=$folder/the root" PREFIX=/usr
check 'something is left' [ -z "$(find "$folder/the root" -type f)" ]
check 'make uninstall of nothing' quiet make uninstall "DESTDIR=$folder/no root" PREFIX=/usr

checked
