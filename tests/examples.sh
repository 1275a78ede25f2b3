#!/bin/sh
# The examples: run as their first lines say, on a model that the first of them trains.
# The last line reads N passed, N failed.
passed=0
failed=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
model=$work/model.gguf

# expect PATTERN COMMAND...: the command succeeds and prints a line that matches
expect() {
    pattern=$1
    shift
    if "$@" > "$work/out" 2> "$work/err" < "$work/in" && grep -q -e "$pattern" "$work/out"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $*: no line like $pattern"
        head -n 5 "$work/out" "$work/err"
    fi
}

printf 'hello\n\ngoodbye\n' > "$work/in"
expect '^bot: .' build/train "$model"
expect 'how can I help' build/answer "$model"
expect '^thank you -> .' build/threads "$model"
expect '^0\.[0-9]*  .*how can I help' build/embed "$model" hello
expect 'bytes of 67108864 used' build/allocator "$model"
printf 'the sea is blue .\nedith elster lives in goldbury .\n' > "$work/in"
expect '^best: edith elster lives' build/rank "$work/rank.gguf" 'where does edith elster live ?'
expect '^ *0\.[0-9]*  goldbury' build/rank "$work/rank.gguf" 'where does edith elster live ?'
printf 'hi how are you\nwhere is the map\n\nmap the is where\n' > "$work/in"
expect '^ *[0-9.]*  where is the map' build/language "$work/language.gguf"
expect '^says: [a-z]' build/language "$work/language.gguf" 2
expect '^mgu: .*: right' build/cell
expect '^4 of 4 first words' build/cell
expect '^row .* lift ' build/gesture
expect '^3 of 3 gestures told' build/gesture
expect '^derivatives of tag: right' build/tagger
expect '^labels: D N V$' build/tagger

for example in answer threads embed allocator rank language; do # without a model they say how to be called
    if build/$example > /dev/null 2>&1; then
        failed=$((failed + 1))
        echo "FAILED: $example without arguments succeeds"
    else
        passed=$((passed + 1))
    fi
done

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
