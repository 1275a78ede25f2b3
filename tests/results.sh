#!/bin/sh
# data/results.sh: sh tests/results.sh, from the top folder, after `make tools`. All of its commands run
# on tiny data sets in the published formats and under their names, for one epoch; data/RESULTS.md shows
# no command that it does not have.
. "$(dirname "$0")/check.sh"
ln -s "$top/data" "$top/tests" "$top/build" "$folder" && cd "$folder" || exit 1

# --- what data/RESULTS.md shows, without blanks: rows of the table are taken out, nothing stays ------
sh data/results.sh --list | sed 's/^[^|]* | //' | tr -d ' \t;\\' > rows
awk '/^```/ { picture = !picture }
    !picture && /^    / { block = block $0; next }
    block { print block; block = "" }
    END { if (block) print block }' data/RESULTS.md | tr -d ' \t;\\' > blocks
awk 'NR == FNR { row[++rows] = $0; next }
    {
        left = $0
        for (i = 1; i <= rows; i++)
            while (k = index(left, row[i]))
                left = substr(left, 1, k - 1) substr(left, k + length(row[i]))
        if (left != "" && left !~ /^makeresults/) print substr(left, 1, 90)
    }' rows blocks > unknown
check "not in data/results.sh: $(head -n 3 unknown)" [ ! -s unknown ]

# --- tiny data ----------------------------------------------------------------------------------------
for name in babi-dialog swda gdtb ptb trecqa wikiqa embeddings trec-qc sst/trees imdb amazon16 sick snli msrp cbt/derived \
    books; do mkdir -p all/$name; done
cat > all/babi-dialog/dialog-babi-task6-dstc2-trn.txt <<END
1 <SILENCE>${tab}Hello , welcome
2 cheap food in the west${tab}api_call R_cuisine west cheap
3 prezzo R_post_code prezzo_post_code
4 prezzo R_cuisine italian
5 prezzo R_location west
6 prezzo R_price cheap
7 <SILENCE>${tab}prezzo is a nice place in the west of town and the prices are cheap
8 bye${tab} you are welcome

1 <SILENCE>${tab}Hello , welcome
2 cheap food in the west${tab}prezzo is a nice restaurant in the west of town
3 bye${tab} you are welcome

1 <SILENCE>${tab}Hello , welcome
2 bye${tab} you are welcome

END
cd all/babi-dialog
cat dialog-babi-task6-dstc2-trn.txt dialog-babi-task6-dstc2-trn.txt > dialog-babi-task6-dstc2-dev.txt
cut -s -f 2 dialog-babi-task6-dstc2-trn.txt | sort -u | sed 's/^/1 /' \
    > dialog-babi-task6-dstc2-candidates.txt
sed -n 's/^[3-6] \(.* R_.*\)/1 \1/p' dialog-babi-task6-dstc2-trn.txt > dialog-babi-task6-dstc2-kb.txt
cp dialog-babi-task6-dstc2-candidates.txt dialog-babi-candidates.txt
for task in task1-API-calls task2-API-refine task3-options task4-phone-address task5-full-dialogs; do
    for part in trn dev; do
        cp dialog-babi-task6-dstc2-trn.txt dialog-babi-$task-$part.txt
    done
done
cd ../..

head -n 40 data/lm-train.txt > lm
for part in train dev; do
    awk -F '\t' '/^=/ { print "=== " NR; next } { print "A|" $1 "|" $2 }' lm > all/swda/swda-$part.txt
    awk -F '\t' '/^=/ { print "=== d" NR; next } { print $1 "\t" $2 "\t" $2 ".x\timplicit" }' lm \
        > all/gdtb/gdtb-$part.txt
done
grep -v '^=' lm | cut -f 1 | tee all/ptb/ptb.train.txt > all/ptb/ptb.valid.txt
sed 's/ /_/g; s/./& /g' all/ptb/ptb.valid.txt | tee all/ptb/ptb.char.valid.txt |
    gzip > all/ptb/ptb.char.train.txt.gz

sed 1d data/answer-train.tsv | awk -F '\t' '$1 != last { last = $1; n++ }
    n > 12 { exit }
    { print n "\t" $4 "\t" $2 "\t" $3 }' > all/trecqa/clean-dev.tsv
gzip < all/trecqa/clean-dev.tsv > all/trecqa/train-all.tsv.gz
awk '$1 < 9' all/trecqa/clean-dev.tsv | gzip > all/trecqa/train.tsv.gz
for part in train dev; do
    awk -F '\t' '{ print $3 "\t" $4 "\t" $2 }' all/trecqa/clean-dev.tsv |
        gzip > all/wikiqa/WikiQA-$part.txt.gz
done
for word in the town is; do
    echo "$word$(awk 'BEGIN { for (i = 0; i < 50; i++) printf " %g", i / 100 }')"
done | gzip | tee all/embeddings/glove.6B.50d.subset.txt.gz > all/embeddings/induced.50d.txt.gz

head -n 30 data/classify-train.tsv > letters
for part in train dev; do
    awk -F '\t' '{ print (NR % 2 ? "ABBR:" : "HUM:") $1 " " $2 }' letters > all/trec-qc/trec-$part.label
    awk -F '\t' '{ print NR % 2 " " $2 }' letters |
        tee all/sst/stsa.binary.$part > all/sst/stsa.fine.$part
    cp letters all/imdb/imdb-$part.tsv
done
awk '{ print "(" NR % 2 * 3 " (" NR % 5 " " $2 ") (1 (2 " $3 ") (4 " $4 ")))" }' letters \
    > all/sst/trees/train.txt
for name in books music; do cp letters all/amazon16/$name.task.train; done
head -n 40 data/pair-train.tsv | tee all/sick/SICK_train.txt > all/sick/SICK_trial.txt
for name in train-partial train-counterfactual dev; do
    awk -F '\t' -v OFS='\t' 'NR > 1 { print $5, $2, $3 }' all/sick/SICK_train.txt > all/snli/$name.tsv
done
awk -F '\t' -v OFS='\t' 'NR == 1 { print "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"; next }
    { print NR % 2, NR, NR + 1000, $2, $3 }' all/sick/SICK_train.txt > all/msrp/msr_paraphrase_train.txt
head -n 130 data/cloze-train.txt > cloze
for name in NE_train NE_valid CN_train; do
    gzip < cloze > all/cbt/derived/$name.txt.gz
done
awk '{ print } NR == 70 { for (i = 0; i < 5900; i++) print "" }' cloze |
    gzip > all/cbt/derived/CN_valid.txt.gz # the second book begins with line 5,941
for name in a wizard-of-oz secret-garden looking-glass just-so-stories; do
    sed '/XXXXX/d; s/^[0-9]* //; /^$/d' cloze > all/books/$name.txt
done

# --- programs: carnn for one epoch and two folds, few dimensions, no benchmark, few signals ----------
cat > carnn <<END
#!/bin/sh
less='--epochs 1 --threads 1'
case "\$*" in
*--embedding*) ;;
*) less="\$less --hidden 24" ;;
esac
case "\$*" in
bench*) exec "$top/carnn" "\$@" --help ;;
train*--folds\ [0-9]*) exec "$top/carnn" "\$@" \$less --folds 2 ;;
train*) exec "$top/carnn" "\$@" \$less ;;
esac
exec "$top/carnn" "\$@"
END
mkdir all/programs
printf '#!/bin/sh\nexec "%s/build/make_signal" "$1" "$2" 10 20\n' "$top" > all/programs/make_signal
printf '#!/bin/sh\necho P@1 0.5\n' > all/programs/fasttext
chmod +x carnn all/programs/*
names=$(sh data/results.sh --list | sed 's/ .*//' | sort -u | grep -v mnist)
CARNN=$PWD/carnn THREADS=1 DATA=all SEEDS=1 WORK=work sh data/results.sh $names > out 2>&1
code=$?
check "exit $code: $(grep -B 4 ', failed: ' out | head -n 12)" [ $code -eq 0 ]
check "commands: $(tail -n 1 out)" grep -q "commands, 0 failed" out
check "mean over seeds" grep -q "hinge MODEL=cosine --epochs 3, over seeds:  map [0-9.]* +- [0-9.]*" out
check "the yardstick's means" grep -q '^within .*mean' out
check "what vectors tell" [ "$(grep -c -e '^sick spearman' -e '^trec  accuracy' -e '^sst  accuracy' out)" -eq 15 ]
check "a name that is none" fails sh data/results.sh --list no-such-name
check "no data" fails sh data/results.sh
for name in $(QUICK=1 sh data/results.sh --list | sed 's/ .*//' | sort -u); do
    check "quick: $name" grep -q "^$name\( \|$\)" out
done

# --- meanings of replies: wordings of one, and what must stay apart -------------------------------------
same() {
    check "the same: $1: $2" [ "$(echo "$1" | awk -f data/meaning.awk)" = "$(echo "$2" |
        awk -f data/meaning.awk)" ]
}
apart() {
    check "not the same: $1: $2" [ "$(echo "$1" | awk -f data/meaning.awk)" != "$(echo "$2" |
        awk -f data/meaning.awk)" ]
}
same "cote is a nice place in the west of town" "cote is a great restaurant"
apart "cote is a nice place in the west of town" "nandos is a nice place in the west of town"
same "I'm sorry but there is no restaurant serving cheap thai food" \
    "Sorry there is no thai restaurant in the west of town"
apart "Sorry there is no thai restaurant in the west of town" \
    "Sorry there is no cuban restaurant in the west of town"
same "Sure , cote is on cote_address" "cote is on cote_address"
apart "The phone number of cote is cote_phone" "The post code of cote is cote_post_code"
same "cote is in the cheap price range" "The price range at cote is cheap ."
apart "cote is in the north part of town ." "cote is in the cheap price range"
same "What part of town do you have in mind?" \
    "There are restaurants serving thai . What area do you want?"
apart "What kind of food would you like?" "What part of town do you have in mind?"
apart "api_call thai west cheap" "api_call thai west R_price"
apart "You are looking for a thai restaurant right?" "You are looking for a cuban restaurant right?"

# --- words aligned: the same ones, then the rare ones with similar vectors ----------------------------
{ awk 'BEGIN { for (i = 1; i <= 200; i++) print "w" i, 1, 0 }'; printf 'cat 1 0\ndog 9 1\ncar 0 1\n'; } > vectors
printf '1\tw1 cat x\tw2 w1 Dog car x\n1\ta\tb\n' > pairs
check "aligned: $(awk -v column=2 -f data/align.awk vectors pairs)" \
    [ "$(awk -v column=2 -f data/align.awk vectors pairs)" = "0-1 2-4 1-2" ]

# --- standard errors by hand: right 1 of 2, 2 of 2, 0 of 2 turns: 50 +- sqrt(0 + 1 + 1) / 6 ------------
printf 'a\t1\t2\t1\t2\na\t2\t2\t2\t2\na\t3\t2\t0\t1\n' > counts
check "error: $(awk -f data/compare.awk counts)" \
    [ "$(awk -f data/compare.awk counts | head -n 1)" = "accuracy  a 50.00 +- 23.57" ]
check "no difference" \
    [ "$(awk -f data/compare.awk counts counts | head -n 1)" = "accuracy  a 0.00 +- 0.00" ]
printf 'a\t1\t2\t2\t2\na\t2\t2\t2\t2\na\t3\t2\t1\t1\n' > other
check "difference: $(awk -f data/compare.awk counts other)" \
    [ "$(awk -f data/compare.awk counts other | head -n 1)" = "accuracy  a 33.33 +- 13.61" ]

checked
