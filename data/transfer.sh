#!/bin/sh
# What linear models read from the vectors of a skip-thought model: sh data/transfer.sh MODEL, in a folder
# that has SICK_train.txt, SICK_trial.txt, trec-train.label, trec-dev.label, stsa.binary.train and
# stsa.binary.dev (data/results.sh makes one). Scores on dev: relatedness of SICK, from the features of two
# vectors that data/features.awk makes; question types of TREC, coarse; sentiment of SST's sentences, binary.
# CARNN=PROGRAM in front of the command: this one instead of ./carnn.
set -e
LC_ALL=C # SST and TREC have bytes that are no UTF-8
export LC_ALL
here=$(dirname "$0")
carnn=${CARNN:-./carnn}
[ $# -eq 1 ] || { echo "usage: sh data/transfer.sh MODEL" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM # else dash leaves the folder
columns=$(echo a | "$carnn" predict "$1" | awk '{ print NF }')

# linear NAME COLUMNS OPTION...: a linear model of NAME-train, which its dev set chooses
linear() {
    name=$1 width=$2
    shift 2
    "$carnn" train --task signal --cell lin-rnn --layers 1 --hidden 16 --columns "$width" --lr 0.001 \
        --epochs 20 --quiet --train "$work/$name-train" --valid "$work/$name-dev" --out "$work/$name.gguf" \
        "$@" > "$work/log" # in a pipe a failure would go unnoticed
    sed -n "s/^valid/$name/p" "$work/log"
}

# vectors NAME FILE: lines "class text" become a class and a vector
vectors() {
    cut -d ' ' -f 2- "$2" | "$carnn" predict "$model" > "$work/vectors"
    sed 's/[: ].*//' "$2" | paste - "$work/vectors" > "$work/$1"
}

model=$1
for part in train trial; do
    to=$([ $part = train ] && echo train || echo dev)
    for k in 2 3; do
        sed 1d SICK_$part.txt | cut -f $k | "$carnn" predict "$model" > "$work/$k"
    done
    sed 1d SICK_$part.txt | cut -f 4 | paste "$work/2" "$work/3" - | awk -f "$here/features.awk" > "$work/sick-$to"
done
linear sick $((2 * columns)) --target-kind number
cut -f 2- "$work/sick-dev" | sed "s/^/?$(printf '\t')/" | "$carnn" predict "$work/sick.gguf" > "$work/told"
cut -f 1 "$work/sick-dev" | paste "$work/told" - | awk -f "$here/correlation.awk" | sed 's/^columns 1 and 2 /sick/'
vectors trec-train trec-train.label
vectors trec-dev trec-dev.label
linear trec "$columns"
vectors sst-train stsa.binary.train
vectors sst-dev stsa.binary.dev
linear sst "$columns" --target-kind class
