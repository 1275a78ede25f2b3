#!/bin/sh
# README.md, from the top folder or one that looks like it: its commands run, its C program compiles
# and answers, and every other indented line is printed by one of the commands or is in a file of
# data/. What a command prints behind such a line (times) may differ. Last line: N passed, N failed.
passed=0
failed=0
top=$PWD
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" && ln -s "$top/carnn" "$top/carnn.h" "$top/data" . || exit 1

# verdict STATUS WHAT
verdict() {
    if [ "$1" -eq 0 ]; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "FAILED: README.md: $2"
    fi
}

sed -n '/^```c$/,/^```$/ { /^```/d; p; }' "$top/README.md" > bot.c
grep -E '^    (\./carnn|cc|cut) ' "$top/README.md" | sed 's/^    //' > commands
while IFS= read -r command <&3; do
    sh -c "$command" >> printed 2> err
    verdict $? "$command: $(tail -n 1 err)"
done 3< commands
./a.out > out 2> err
verdict $? "the C program: $(cat err)"
grep -q 'A bike for two days' out
verdict $? "the C program answers: $(cat out)"

cat data/*.txt data/*.tsv >> printed
grep -E '^    ' "$top/README.md" | grep -vE '^    (\./carnn|cc|cut|make|\.\.\.)' | sed 's/^    //' > shown
sed -n '/^```c$/,/^```$/p' "$top/README.md" > fenced
while IFS= read -r line <&3; do
    grep -qF -e "    $line" fenced && continue
    awk -v line="$line" 'index($0, line) == 1 { found = 1 } END { exit !found }' printed
    verdict $? "nothing prints: $line"
done 3< shown

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
