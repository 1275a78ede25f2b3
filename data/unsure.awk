# Dialogs that end in something that the bot cannot answer, one for each dialog of a file: the dialog up
# to one of its turns, in which the user says a line of the first file instead, and the reply is `say`.
#   awk -v say="I do not know ." -f data/unsure.awk data/unsure.txt data/dialog-dev.txt > odd-dev.txt
function finish(    k) {
    if (turns) {
        k = turn[(dialogs * 7) % turns + 1]
        for (i = 1; i < k; i++) print line[i]
        sub(/ .*/, "", line[k])
        print line[k] " " question[dialogs % questions + 1] "\t" say "\n"
        dialogs++
    }
    lines = turns = 0
}
NR == FNR { question[++questions] = $0; next }
!NF { finish(); next }
{ line[++lines] = $0 }
/\t/ { turn[++turns] = lines }
END { finish() }
