#!/bin/sh
# Questions made from plain text: sh tests/book_cloze.sh [path of the program], from the top folder,
# with ./carnn there

. "$(dirname "$0")/check.sh"
program=$(path "${1:-build/book_cloze}")
carnn=$PWD/carnn
cd "$folder" || exit 1

cat >book.txt <<'END'
Then came Mrs. Rat, and "where," said she, "is Mole's hat?"

"Here is Toad--and Mole!" said Rat.
But Toad had gone, and Mole with Toad; the toad-hole was shut.
So Mole and Rat and old Toad slept.
END
run 0 --sentences 3 q.txt book.txt
cat >expected.txt <<END
1 Then came Mrs. Rat , and " where , " said she , " is Mole 's hat ? "
2 " Here is Toad -- and Mole ! " said Rat .
3 But Toad had gone , and Mole with Toad ; the toad-hole was shut .
4 So XXXXX and Rat and old Toad slept .${tab}Mole$tab${tab}Mole|Rat|Toad
END
head -n 4 q.txt >found.txt
check "$(diff found.txt expected.txt | head -n 4)" cmp -s found.txt expected.txt
check 'not one question for each name' [ "$(grep -c XXXXX q.txt)" -eq 3 ]
printf 'hat\r\nToad\n' >list.txt
run 0 --sentences 3 --words list.txt l.txt book.txt
check 'not the words of the list' [ "$(cut -f 4 l.txt | tail -n 2 | head -n 1)" = 'Toad|hat' ]
run 0 --sentences 1 --seed 7 a.txt book.txt book.txt
run 0 --sentences 1 --seed 7 b.txt book.txt book.txt
check 'the same seed, other questions' cmp -s a.txt b.txt
check 'carnn cannot read them' quiet "$carnn" train --task cloze --train a.txt --out a.gguf --epochs 1 \
    --hidden 4 --embedding 4 --threads 1 --quiet
run 1 x.txt none.txt
run 2 x.txt
run 2 --sentences 0 x.txt book.txt
run 2 --length 3 x.txt book.txt
: >empty.txt
run 3 x.txt empty.txt
check 'something is left behind' [ -z "$(ls x.txt* 2>/dev/null)" ]

checked
