#!/bin/sh
# The reduced bAbI dialogs: sh tests/babi_reduced.sh [path of the program], from the top folder

. "$(dirname "$0")/check.sh"
program=$(path "${1:-build/babi_reduced}")
data=${CARNN_DATA:-$PWD/../shared/data}/babi-dialog
cd "$folder" || exit 1

says() { check "no \"$1\" in: $(head -n 1 err)" grep -q -F -e "$1" err; }
same() { check "$1 is not as expected: $(diff "$1" "$2" | sed -n 2p)" cmp -s "$1" "$2"; }
empty() { check "left behind: $(ls "$1")" [ -z "$(ls "$1")" ]; }

# ---- the rule, step by step: each answer with its template

cat >kb.txt <<'END'
1 pizza_hut R_cuisine italian
1 pizza_hut R_location south
1 pizza_hut R_price cheap
1 pizza_hut R_phone pizza_hut_phone
1 pizza_hut_city_centre R_location centre
1 ask R_address 12_Long_Acre
1 ask R_rating 7
END

cat >rule.txt <<'END'
  You  are   WELCOME | you are welcome
api_call cuban R_location moderate | api_call
api_call north_indian west R_price | api_call
Api_call thai | api_call
api_calls are made | api_calls are made
Call pizza_hut_phone | call <phone>
It is on Some_Where_address . | it is on <address>
Code: x_post_code! | code <post_code>
_phone and phone stay | _phone and phone stay
pizza_hut is nice | <name> is nice
Pizza Hut is nice | <name> is nice
pizza_hut City Centre is nice | <name> is nice
pizza_huts are no pizza_hut | pizza_huts are no <name>
la_raza is nice | <name> is nice
the cow pizza kitchen and bar is it | <name> is it
the_good_luck_chinese_food_takeaway is it | <name> is it
The River Bar Steakhouse and Grill is it | <name> is it
nandos_city_centre is it | <name> is it
ask is nice | <name> is nice
Call ask. | call <name>
You can ask for restaurants | you can ask for restaurants
ask forms an exception | <name> forms an exception
italian food, Spanish food | <food> food <food> food
cuban or north indian food | <food> or <food> food
modern_european or barbeque | <food> or <food>
crossover , panasian | <food> <food>
the americas, middle eastern | <food> <food>
northern_european | <food>
italians eat | italians eat
in the south , west or centre ? | in the <loc> <loc> or <loc>
cheap or moderate or expensive | <price> or <price> or expensive
at C.B 2, 1 D.P | at <post_code>
at C.B 2, 1 D.PX | at cb 2 1 dpx
on 12 Long Acre | on <address>
on 108 Regent Street City Centre | on <address> city <loc>
on 8 Milton Roads | on 8 milton roads
on Milton Road | on milton road
The address of ask is 7 Milton Road Chesterton . | the address of <name> is <address> chesterton
The address of ask is 9 Mill Road South . | the address of <name> is <address> <loc>
Sorry, I can't hear you; say it again? | sorry i cant hear you say it again
( Good - bye ) | good bye
food phone name R_cuisine | food phone name r_cuisine
END

# answers FILE: the answers of a rule, templates FILE: what they become
answers() { sed 's/ |[^|]*$//' "$1"; }
templates() { sed 's/.*| //' "$1"; }

# A dialog in which each answer is a turn, after a fact that alone knows of la_raza and spanish.
answers rule.txt | sed 's/^/1 /' >candidates.txt
{
    echo "1 la_raza R_cuisine Spanish"
    echo "2 api_call no result"
    answers rule.txt | awk '{ print NR + 2 " say it\t" $0 }'
    echo
    printf '1\tCall ask.\n'
} >dialog.txt
{
    sed 2q dialog.txt
    answers rule.txt >said
    templates rule.txt | paste - said | awk '{ print NR + 2 " say it\t" $0 }'
    echo
    printf '1\tcall <name>\tCall ask.\n'
} >expected.txt
templates rule.txt | awk '!seen[$0]++ { print "1 " $0 }' >templates.txt

mkdir made
run 0 kb.txt candidates.txt made dialog.txt
same made/candidates.txt templates.txt
same made/dialog.txt expected.txt
check "left behind: $(ls made)" [ "$(ls made | wc -l)" -eq 2 ]
check "standard output is not empty" [ ! -s out ]
answers=$(($(wc -l <rule.txt)))
distinct=$(($(wc -l <templates.txt)))
says "candidates.txt: $answers candidates, $distinct templates"
says "dialog.txt: $((answers + 1)) turns, $distinct templates occur"

run 0 --merge kb.txt candidates.txt made dialog.txt
sed 's/\(the address of <name> is <address>\).*/\1/' templates.txt | awk '!seen[$0]++' >merged.txt
same made/candidates.txt merged.txt
check "two answers share a template with --merge" \
    [ "$(grep -c "${tab}the address of <name> is <address>$tab" made/dialog.txt)" -eq 2 ]

# ---- files as they come: CRLF, no last newline, long lines, several files

sed "s/\$/$(printf '\r')/" dialog.txt >crlf.txt
printf '1 hi\tCall ask.' >open.txt
awk 'BEGIN { s = "1 "; while (length(s) < 300000) s = s "many words "; print s "\tCall ask." }' \
    >long.txt
run 0 kb.txt candidates.txt made/ dialog.txt ./crlf.txt open.txt long.txt
same made/dialog.txt expected.txt
same made/crlf.txt expected.txt
printf '1 hi\tcall <name>\tCall ask.\n' >expected.txt
same made/open.txt expected.txt
check "a long line is not whole" [ "$(wc -c <made/long.txt)" -eq $(($(wc -c <long.txt) + 12)) ]

# ---- what is wrong: nothing is written, and the message says where

mkdir none
printf '1 Hello\n' >hello.txt

# wrong_file LINES MESSAGE: as a file of dialogs; \t and \n as printf knows them
wrong_file() {
    printf "$1" >bad.txt
    run 3 kb.txt candidates.txt none dialog.txt bad.txt
    says "$2"
    empty none
}

# wrong_list LINES MESSAGE: as a list of candidates
wrong_list() {
    printf "$1" >bad.txt
    run 3 kb.txt bad.txt none dialog.txt
    says "$2"
    empty none
}

# wrong_kb LINES MESSAGE: as a knowledge base
wrong_kb() {
    printf "$1" >bad.txt
    run 3 bad.txt candidates.txt none dialog.txt
    says "$2"
    empty none
}

wrong_file 'hi\tCall ask.\n' 'bad.txt:1: expected a line number and a space, found "hi?Call ask."'
wrong_file '1 hi\tCall ask.\n2x\ty\n' 'bad.txt:2: expected a line number'
wrong_file '\n1\n' 'bad.txt:2: expected a line number and a space, found "1"'
wrong_file '1 hi there\n' "bad.txt:1: expected a tab after the user's words, or"
wrong_file '1 \n' 'found nothing'
wrong_file '1 pizza_hut is cheap\n' 'bad.txt:1: expected a tab'
wrong_file '1 pizza_hut R_price very cheap\n' 'bad.txt:1: expected a tab'
wrong_file '1 api_call no answer\n' 'bad.txt:1: expected a tab'
wrong_file '1 hi\t\n' 'bad.txt:1: expected an answer after the tab, found nothing'
wrong_file '1 hi\ta\tb\n' 'bad.txt:1: expected one tab in a turn'
wrong_file '1 hi\tCall ask.\n2 hi\t?!\n' 'bad.txt:2: expected an answer with a letter or a digit'
wrong_file '1 hi\tGood day\n' 'bad.txt:1: expected an answer with a template of the candidates'
wrong_file '1 hi\tapi_call cuban\n' 'bad.txt:1: expected an api_call with three arguments'
wrong_file '1 hi\tapi_call a b c d\n' 'bad.txt:1: expected an api_call of three arguments'
wrong_file '1 hi\tCall \000 ask.\n' 'bad.txt:1: expected text, found a NUL byte'
wrong_file '' 'bad.txt:0: expected a turn, found nothing'
wrong_file '1 ask R_price cheap\n' 'bad.txt:1: expected a turn, found nothing'
wrong_list 'Call ask.\n' 'bad.txt:1: expected a line number and a space, found "Call ask."'
wrong_list '1 Call ask.\n1 ...\n' 'bad.txt:2: expected an answer with a letter or a digit'
wrong_list '\n' 'bad.txt:1: expected a candidate, found nothing'
wrong_list '1 a\000b\n' 'bad.txt:1: expected text, found a NUL byte'
wrong_kb 'ask R_price cheap\n' 'bad.txt:1: expected a line number and a space'
wrong_kb '1 ask R_price\n' 'bad.txt:1: expected "name R_attribute value", found "ask R_price"'
wrong_kb '1 ask price cheap\n' 'bad.txt:1: expected "name R_attribute value"'

for missing in "absent.txt candidates.txt none dialog.txt" "kb.txt absent.txt none dialog.txt" \
    "kb.txt candidates.txt none dialog.txt absent.txt"; do
    run 3 $missing
    says 'absent.txt: cannot be read'
    empty none
done
run 3 kb.txt candidates.txt none none
says 'none: cannot be read'

run 1 kb.txt candidates.txt absent dialog.txt
if [ -c /dev/full ]; then
    ln -s /dev/full none/dialog.txt.tmp
    run 1 kb.txt candidates.txt none dialog.txt
    empty none
else
    echo "left out: a full disk (there is no /dev/full)"
fi

# ---- usage

for arguments in "" "--merge" "kb.txt candidates.txt none" "--merge kb.txt candidates.txt none" \
    "--marge kb.txt candidates.txt none dialog.txt"; do
    run 2 $arguments
    says 'usage: babi_reduced'
done
run 0 --help
check "--help says nothing" grep -q '^usage: babi_reduced' out
run 2 kb.txt candidates.txt none dialog.txt ./dialog.txt
says 'named twice'
run 2 kb.txt candidates.txt none a b c d e f g h i j k l m n o p
says 'expected at most 15 FILEs, found 16'
mkdir home
cp dialog.txt home
run 2 kb.txt candidates.txt home "$folder/home/dialog.txt"
says 'would be written over what is read'
same home/dialog.txt dialog.txt
check "left behind: $(ls home)" [ "$(ls home)" = dialog.txt ]

# ---- the published files

real=$data/dialog-babi-task6-dstc2
if [ -r "$real-kb.txt" ] && [ -r "$real-candidates.txt" ] && [ -r "$real-trn.txt" ] &&
    [ -r "$real-dev.txt" ]; then
    mkdir all merged one
    run 0 "$real-kb.txt" "$real-candidates.txt" all "$real-trn.txt" "$real-dev.txt"
    says 'candidates.txt: 2407 candidates, 78 templates'
    says 'trn.txt: 14404 turns, 58 templates occur, most often (12.8 %): api_call'
    says 'dev.txt: 4159 turns, 29 templates occur, most often (16.0 %): api_call'
    cut -f 1,3 "all/${real##*/}-trn.txt" >spoken.txt # a line without a tab stays whole
    same spoken.txt "$real-trn.txt"
    run 0 --merge "$real-kb.txt" "$real-candidates.txt" merged "$real-dev.txt"
    says 'candidates.txt: 2407 candidates, 76 templates'
    run 0 "$real-kb.txt" "$real-candidates.txt" one "$real-dev.txt"
    same one/candidates.txt all/candidates.txt
    same "one/${real##*/}-dev.txt" "all/${real##*/}-dev.txt"
else
    echo "left out: the published bAbI dialogs (not in $data)"
fi

checked
