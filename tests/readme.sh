#!/bin/sh
# README.md and data/TASKS.md, from the top folder or one that looks like it: their commands run, the C
# program compiles and answers, and every other indented line is printed by one of the commands or is
# in a file of data/. What a command prints behind such a line (times) may differ.
. "$(dirname "$0")/check.sh"
cd "$folder" && ln -s "$top/carnn" "$top/carnn.h" "$top/data" . || exit 1
cat "$top/README.md" "$top/data/TASKS.md" > pages

sed -n '/^```c$/,/^```$/ { /^```/d; p; }' pages > bot.c
# The C program computes little: here it is built without SIMD and optimisation, in a fifth of the
# time. What both pages have runs once.
grep -E '^    (\./carnn|cc|cut|paste) ' pages | sed 's/^    //; s/^cc -O2 /cc -O0 -DCARNN_NO_SIMD /' |
    awk '!($0 in had) { had[$0]; print }' > commands
check 'the pages have commands' [ "$(wc -l < commands)" -gt 20 ]
while IFS= read -r command <&3; do
    sh -c "$command" >> printed 2> err
    code=$?
    check "$command: $(tail -n 1 err)" [ $code -eq 0 ]
done 3< commands
./a.out > out 2> err
code=$?
check "the C program: $(cat err)" [ $code -eq 0 ]
check "the C program answers: $(cat out)" grep -q 'A bike for two days' out

check "data/bike.svg: not what its command draws" cmp -s bike.svg data/bike.svg

cat data/*.txt data/*.tsv >> printed
grep -E '^    ' pages | grep -vE '^    (\./carnn|cc|cut|paste|make|\.\.\.)' | sed 's/^    //' > shown
check 'the pages show what commands print' [ "$(wc -l < shown)" -gt 20 ]
sed -n '/^```c$/,/^```$/p' pages > fenced
while IFS= read -r line <&3; do
    grep -qF -e "    $line" fenced && continue
    check "nothing prints: $line" \
        awk -v line="$line" 'index($0, line) == 1 { found = 1 } END { exit !found }' printed
done 3< shown

checked
