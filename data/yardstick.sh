#!/bin/sh
# How settings do on dialogs of a manager that they were not trained on: bAbI dialog task 6.
#   sh data/yardstick.sh FOLDS CANDIDATES TRN DEV [option of carnn train]... > counts
# FOLDS has the name of a fold for each dialog of TRN and DEV (data/managers.awk writes such a file).
# A model is trained on the dialogs of the other folds, all its epochs, and then scored on those of each
# fold. Where FOLDS is the word dev it is trained on TRN, its epoch chosen and scored on DEV.
#   counts           a line for each dialog: fold, number, turns, right, right in their meaning
#   standard error   accuracy of each fold, and their mean; in meaning (data/meaning.awk: another
#                    wording of the right reply is right, too), and within: the share of these that
#                    have the right wording as well. All with standard errors over dialogs.
# MEMBERS=3 in front of the command: an ensemble of three models instead of one; CELLS="icarnn ncarnn":
# of a model of each of these cells; reduce=2 in the place of a cell: of one with the option --reduce 2;
# scarnn:hops=0:history=6: of one with this cell and these options. Their seeds are 1, 2, 3 and so on, or
# all that of --seed. It takes the mean of the probabilities.
# CARNN=PROGRAM: this one instead of ./carnn.
# The mean counts each fold alike, as nobody knows how many managers speak like which. Two such runs are
# compared, dialog by dialog, by
#   awk -f data/compare.awk counts other-counts
set -e
here=$(dirname "$0")
carnn=${CARNN:-./carnn}
members=${MEMBERS:-1}
[ $# -ge 4 ] || { sed -n 's/^#   sh/usage: sh/p' "$0" >&2; exit 2; }
folds=$1 candidates=$2 trn=$3 dev=$4
shift 4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM # else dash leaves the folder

# split FOLD: the dialogs of it go to held.txt, the others to train.txt
split() {
    awk -v fold="$1" -v train="$work/train.txt" -v held="$work/held.txt" '
        NR == FNR { name[++dialogs] = $1; next }
        FNR == 1 || !NF { if (lines) { print "" > file; number++ } lines = 0 }
        NF { lines++; file = name[number + 1] == fold ? held : train; print > file }
        END {
            if (lines) { print "" > file; number++ }
            if (number == dialogs) exit
            print "yardstick.sh: " dialogs " names of folds, but " number + 0 " dialogs" | "cat >&2"
            exit 2
        }' "$folds" "$trn" "$dev"
}

# count FOLD DIALOGS: a line for each dialog of how many replies of the model are right
count() {
    "$carnn" predict "$work/model.gguf" --data "$2" > "$work/said"
    cut -s -f 2 "$2" > "$work/right"
    awk -f "$here/meaning.awk" "$work/said" > "$work/said-meaning"
    awk -f "$here/meaning.awk" "$work/right" > "$work/right-meaning"
    awk -F '\t' '/^[0-9]+ / && $0 ~ /\t/ { print dialogs + 1 } !NF { dialogs++ }' "$2" |
        paste - "$work/right" "$work/said" "$work/right-meaning" "$work/said-meaning" |
        awk -F '\t' -v OFS='\t' -v fold="$1" '
            function trim(s) { gsub(/^ +| +$/, "", s); return s }
            function finish() { if (turns) print fold, dialog, turns, right, same }
            $1 != dialog { finish(); turns = right = same = 0; dialog = $1 }
            { turns++; right += trim($2) == trim($3); same += $4 == $5 }
            END { finish() }'
}

# train DIALOGS OPTION...: a model, or the mean of several; an ensemble is written when it is scored, on
# DIALOGS
train() {
    held=$1 number=0
    shift
    rm -f "$work"/member-*.gguf
    for member in ${CELLS:-default}; do
        model=
        for part in $(echo "$member" | tr : ' '); do
            case $part in
                default) ;;
                *=*) model="$model --${part%%=*} ${part#*=}" ;;
                *) model="$model --cell $part" ;;
            esac
        done
        end=$((number + members))
        while [ $number -lt $end ]; do
            number=$((number + 1))
            "$carnn" train --task dialog --candidates "$candidates" --out "$work/member-$number.gguf" \
                --quiet --seed $number "$@" $model > "$work/log" 2>&1 ||
                { cat "$work/log" >&2; exit 1; }
        done
    done
    cp "$work/member-1.gguf" "$work/model.gguf"
    [ $number -eq 1 ] || "$carnn" test "$work"/member-*.gguf --data "$held" --ensemble mean \
        --out "$work/model.gguf" > "$work/log"
}

if [ "$folds" = dev ]; then
    train "$dev" --train "$trn" --valid "$dev" "$@"
    count dev "$dev" > "$work/counts"
else
    for fold in $(sort -u "$folds"); do
        rm -f "$work/train.txt" "$work/held.txt"
        split "$fold"
        train "$work/held.txt" --train "$work/train.txt" "$@"
        count "$fold" "$work/held.txt"
    done > "$work/counts"
fi
cat "$work/counts"
awk -f "$here/compare.awk" "$work/counts" >&2
