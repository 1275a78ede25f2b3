#!/bin/sh
# Runs test programs (each argument is a command) from the top folder and adds up the closing lines
# `N passed, N failed` that they print. A program that ends badly without saying so counts as a
# failure. The last line is the sum.
passed=0
failed=0
for command in "$@"; do
    output=$(sh -c "$command" 2>&1)
    status=$?
    last=$(printf '%s\n' "$output" | grep -E '^[0-9]+ passed, [0-9]+ failed$' | tail -n 1)
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
        printf '%s\n' "$output"
        echo "$command: exit code $status"
    else
        printf '%s\n' "$output" | grep '^left out' # what could not be checked here is said
    fi
    printf '%6d passed, %d failed: %s\n' "$good" "$bad" "$command"
    passed=$((passed + good))
    failed=$((failed + bad))
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
