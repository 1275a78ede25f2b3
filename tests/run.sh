#!/bin/sh
# run.sh JOBS COMMAND...: runs test programs from the top folder, JOBS at a time, and adds up the
# closing lines `N passed, N failed` that they print. A program that ends badly without saying so
# counts as a failure. The output comes in the order of the commands; the last line is the sum.
jobs=$1
shift
top=$PWD
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
: "${CARNN_DATA:=$top/../shared/data}" # published data sets, where they are at hand
export CARNN_DATA

# Takes one command after the other that nobody has taken yet. Each runs in a folder of its own that
# looks like the top folder: what it writes there is in nobody's way.
worker() {
    number=0
    for command in "$@"; do
        number=$((number + 1))
        mkdir "$work/$number" 2> /dev/null || continue
        cd "$work/$number" && ln -s "$top"/* .
        sh -c "$command" > "$work/$number.output" 2>&1
        echo $? > "$work/$number.status.new"
        mv "$work/$number.status.new" "$work/$number.status"
    done
}

# report NUMBER COMMAND: what a command printed, if it failed, and its sum
report() {
    output=$work/$1.output
    status=$(cat "$work/$1.status")
    last=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$output" | tail -n 1)
    good=${last%% *}
    bad=${last#*, }
    bad=${bad%% *}
    if [ -z "$last" ]; then
        good=0
        bad=1
    elif [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then
        bad=1
    fi
    if [ "$bad" -ne 0 ]; then
        cat "$output"
        echo "$2: exit code $status"
    else
        grep '^left out' "$output" # what could not be checked here is said
    fi
    printf '%6d passed, %d failed: %s\n' "$good" "$bad" "$2"
}

i=0
while [ $((i += 1)) -le "$jobs" ]; do worker "$@" & done
passed=0
failed=0
number=0
for command in "$@"; do
    number=$((number + 1))
    until [ -f "$work/$number.status" ]; do sleep 0.2; done
    report $number "$command"
    passed=$((passed + good))
    failed=$((failed + bad))
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
