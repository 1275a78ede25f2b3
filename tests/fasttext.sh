#!/bin/sh
# Text classification beside fastText: sh tests/fasttext.sh [FOLDER], from the top folder, with the
# published data in FOLDER [../shared/data]. Needs ./carnn and the program `fasttext` (Debian's
# package of that name); `make test` does not run it, it takes some minutes.
#
# One line for each data set: accuracy in percent on dev of fastText (25 epochs, learning rate 0.5,
# pairs of words) and of carnn as it is, mean and standard deviation over three seeds.

data=${1:-../shared/data}
program=${CARNN:-./carnn}
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
command -v fasttext >/dev/null || { echo "fasttext.sh: needs fasttext" >&2; exit 1; }
[ -x "$program" ] || { echo "fasttext.sh: needs $program (make)" >&2; exit 1; }

# fasttext_lines SCRIPT FILE: lines "__label__x text", shuffled, for fastText reads them in order
fasttext_lines() {
    LC_ALL=C sed "$1" "$2" | LC_ALL=C awk 'BEGIN { srand(1) } { print rand() "\t" $0 }' |
        LC_ALL=C sort -g | LC_ALL=C cut -f 2-
}

# percent NAME FILE: a hundred times the number of this name in a line of JSON
percent() { tr ',' '\n' <"$2" | awk -v name="\"$1\":" '$1 == name { print 100 * $2 }'; }

# compare NAME SCRIPT TRAIN DEV
compare() {
    fasttext_lines "$2" "$data/$3" >"$folder/train.txt"
    fasttext_lines "$2" "$data/$4" >"$folder/dev.txt"
    fasttext supervised -input "$folder/train.txt" -output "$folder/model" -epoch 25 -lr 0.5 \
        -wordNgrams 2 -thread 1 -verbose 0 >/dev/null 2>&1
    theirs=$(fasttext test "$folder/model.bin" "$folder/dev.txt" |
        awk '$1 == "P@1" { print 100 * $2 }')
    : >"$folder/ours"
    for seed in 1 2 3; do
        "$program" train --task classify --train "$data/$3" --valid "$data/$4" --seed $seed \
            --vectors "$data/embeddings/glove.6B.50d.subset.txt.gz" \
            --vectors "$data/embeddings/induced.50d.txt.gz" \
            --threads "${THREADS:-0}" --out "$folder/model.gguf" --quiet --json \
            >"$folder/json" || exit 1
        percent accuracy "$folder/json" >>"$folder/ours"
    done
    awk -v name="$1" -v theirs="$theirs" '{ sum += $1; squares += $1 * $1 } END {
        mean = sum / NR; variance = (squares - NR * mean * mean) / (NR - 1)
        printf "%-12s fasttext %5.1f   carnn %5.1f +- %.1f\n", name, theirs, mean,
               sqrt(variance > 0 ? variance : 0) }' "$folder/ours"
}

compare trec-qc 's/^\([A-Z]*\):[^ ]* /__label__\1 /' trec-qc/trec-train.label trec-qc/trec-dev.label
compare sst-binary 's/^/__label__/' sst/stsa.binary.train sst/stsa.binary.dev
compare sst-fine 's/^/__label__/' sst/stsa.fine.train sst/stsa.fine.dev
# Raw text: lower case, and marks as words of their own, as fastText's examples do it.
compare imdb 's/^\([^	]*\)	/__label__\1 /; s/\([.!?,()"'"'"'\/]\)/ \1 /g
    y/ABCDEFGHIJKLMNOPQRSTUVWXYZ/abcdefghijklmnopqrstuvwxyz/' imdb/imdb-train.tsv imdb/imdb-dev.tsv
