#!/bin/sh
# The examples: run as their first lines say, on a model that the first of them trains.
. "$(dirname "$0")/check.sh"
model=$folder/model.gguf

# expect PATTERN COMMAND...: the command succeeds and prints a line that matches
expect() {
    pattern=$1
    shift
    "$@" > "$folder/out" 2> "$folder/err" < "$folder/in"
    code=$?
    check "$*: exit $code: $(head -n 1 "$folder/err")" [ $code -eq 0 ]
    check "$*: no line like $pattern: $(head -n 1 "$folder/out")" \
        grep -q -e "$pattern" "$folder/out"
}

printf 'hello\n\ngoodbye\n' > "$folder/in"
expect '^bot: .' build/train "$model"
expect 'how can I help' build/answer "$model"
expect '^thank you -> .' build/threads "$model"
expect '^0\.[0-9]*  .*how can I help' build/embed "$model" hello
expect 'bytes of 67108864 used' build/allocator "$model"
expect 'how can I help' build/page "$model"
expect '^[-+][0-9.]*	user	goodbye$' build/page "$model"
printf 'the sea is blue .\nedith elster lives in goldbury .\n' > "$folder/in"
expect '^best: edith elster lives' build/rank "$folder/rank.gguf" 'where does edith elster live ?'
expect '^ *0\.[0-9]*  goldbury' build/rank "$folder/rank.gguf" 'where does edith elster live ?'
printf 'hi how are you\nwhere is the map\n\nmap the is where\n' > "$folder/in"
expect '^ *[0-9.]*  where is the map' build/language "$folder/language.gguf"
expect '^says: [a-z]' build/language "$folder/language.gguf" 2
cp data/bike-chat.txt "$folder/in"
expect '^A bike for two days is 20 euros' build/device
expect '^Booked' build/device
expect '^[1-9][0-9]* of 49152 bytes used$' build/device
expect '^mgu: .*: right' build/cell
expect '^4 of 4 first words' build/cell
expect '^row .* lift ' build/gesture
expect '^3 of 3 gestures told' build/gesture
expect '^derivatives of tag: right' build/tagger
expect '^labels: D N V$' build/tagger

for example in answer threads embed allocator page rank language; do # without a model
    check "$example without arguments succeeds" fails build/$example
done

checked
