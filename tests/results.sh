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
check "what vectors tell" \
    [ "$(grep -c -e '^sick  mse' -e '^sick spearman' -e '^trec  accuracy' -e '^sst  accuracy' out)" -eq 20 ]
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
apart "You are looking for a cheap restaurant right?" "Sorry would you like cheap food?"
apart "Sorry there is no other thai restaurant" "Sorry there is no thai restaurant"
apart "What kind of food would you like?" "Would you like something in the cheap or expensive price range?"
apart "cote is a great restaurant" "cote serves thai food"
same "Sorry , I can't hear you" "Could you please repeat that ?"

# --- words aligned: the same ones, then the rare ones with similar vectors ----------------------------
{ awk 'BEGIN { for (i = 1; i <= 200; i++) print "w" i, 1, 0 }'; printf 'cat 1 0\ndog 9 1\ncar 0 1\n'; } > vectors
printf '1\tw1 cat x\tw2 w1 Dog car x\n1\ta\tb\n' > pairs
check "aligned: $(awk -v column=2 -f data/align.awk vectors pairs)" \
    [ "$(awk -v column=2 -f data/align.awk vectors pairs)" = "0-1 2-4 1-2" ]
echo 'bat 3 4' >> vectors # cosine 0.6 with cat
printf 'cat x\tw1 x bat cat\ny z cat\tcat y z cat\nw200\tcat\ncat\tbat\ncat cat\tcat\n' > pairs
check "aligned, or not: $(awk -v column=1 -f data/align.awk vectors pairs)" \
    [ "$(awk -v column=1 -f data/align.awk vectors pairs | tr '\n' ,)" = "1-1 0-3,0-1 1-2 2-3,,,0-0," ]

# --- standard errors by hand: right 1 of 2, 2 of 2, 0 of 2 turns: 50 +- sqrt(0 + 1 + 1) / 6 ------------
printf 'a\t1\t2\t1\t2\na\t2\t2\t2\t2\na\t3\t2\t0\t1\n' > counts
check "error: $(awk -f data/compare.awk counts)" \
    [ "$(awk -f data/compare.awk counts | head -n 1)" = "accuracy  a 50.00 +- 23.57" ]
check "no difference" \
    [ "$(awk -f data/compare.awk counts counts | head -n 1)" = "accuracy  a 0.00 +- 0.00" ]
printf 'a\t1\t2\t2\t2\na\t2\t2\t2\t2\na\t3\t2\t1\t1\n' > other
check "difference: $(awk -f data/compare.awk counts other)" \
    [ "$(awk -f data/compare.awk counts other | head -n 1)" = "accuracy  a 33.33 +- 13.61" ]

# prints WHAT EXPECTED COMMAND...: these lines, with a comma behind each, a blank for blanks and tabs
prints() {
    what=$1
    expected=$2
    shift 2
    "$@" | tr '\t' ' ' | tr -s ' ' | tr '\n' , > printed
    check "$what: $(cat printed)" [ "$(cat printed)" = "$expected" ]
}
# right in meaning 2, 2, 1 of 2: 5/6 +- sqrt(1/9 + 1/9 + 4/9) / 6; of these 1, 2, 0 in their wording
printf 'b\t1\t4\t4\t4\n' | cat counts - > folds
prints "meaning, within and means by hand" "accuracy a 50.00 +- 23.57 b 100.00 +- 0.00 mean 75.00 +- 11.79,\
meaning a 83.33 +- 13.61 b 100.00 +- 0.00 mean 91.67 +- 6.80,\
within a 60.00 +- 20.40 b 100.00 +- 0.00 mean 80.00 +- 10.20," awk -f data/compare.awk folds

# --- the other scripts, by hand ---------------------------------------------------------------------------
printf '1 hi\tcote is a nice restaurant\n\n1 hi\tok\n\n\n1 hi\tcote is a nice place\n' > trn
printf '1 hi\tcote is a nice restaurant\n2 bye\tok\n\n' > dev
prints managers "restaurant,neither,place,restaurant," awk -f data/managers.awk trn dev
printf '(3 (2 (2 the) (4 best)) (1 (2 of) (0 bad)))\n(2 (0 best) (4 (3 good) (1 the)))\n' > trees
prints phrases "1 best,0 bad,0 of bad,1 the best of bad,1 good,1 good the," awk -f data/phrases.awk trees
printf '1 1\n2 9\n3 2\n4 2\n' > columns # ranks 1, 4, 2.5, 2.5: 1.5 / sqrt(5 * 4.5), -2 / sqrt(5 * 41)
prints correlations "columns 1 and 2 spearman 0.316 pearson -0.140," awk -f data/correlation.awk columns
printf '1\t5\t3\t-2\t4.5\n' > compared
prints features "4.5 2 7 3 -10," awk -f data/features.awk compared
printf 'who ?\nwhy ?\n' > asked
printf '1 a\tA\n2 b\tB\n\n1 c\tC\n2 a fact\n3 d\tD\n' > dialogs
prints "unsure" "1 who ? no,,1 c C,2 a fact,3 why ? no,," awk -v say=no -f data/unsure.awk asked dialogs
printf '> a < b & c\nno\n  %s  user  x\n  %s  user  y\n  %s  rest\n  %s  sum\n' \
    '-3.0000  0.5' '+15.0000  0.5' '-9.0000' '+3.0000' | awk -f data/picture.awk > picture
check "characters of SVG in a picture" grep -q '>a &lt; b &amp; c<' picture
prints "bars, 45 to the left, 150 to the right at most" "95.0 15.0,110.0 75.0,65.0 45.0," \
    sed -n 's/^<rect x="\([0-9.]*\)".* width="\([0-9.]*\)".*/\1 \2/p' picture

# --- the yardstick: of a bot that says "restaurant" for "place", and no blanks at the front -----------
cat > bot <<'END'
#!/bin/sh
echo "$*" >> calls
[ "$1" != predict ] || cut -s -f 2 "$4" | sed 's/^ *//; s/place/restaurant/'
while [ $# -gt 0 ]; do
    case $1 in
    --out) : > "$2" ;;
    --train) grep -c '^1 ' "$2" >> trained ;;
    esac
    shift
done
END
chmod +x bot
printf '1 hi\tcote is a nice place\n2 cote R_price cheap\n3 bye\t you are welcome\n\n1 hi\tok\n' > trn
printf '1 hi\tok\n2 so\tcote is a nice place\n\n' > dev
printf 'a\nb\na\n' > names
CARNN=./bot CELLS='lstm scarnn:reduce=2:history=6' MEMBERS=2 sh data/yardstick.sh names none trn dev > counts 2> err
prints "fold, dialog, turns, right, in meaning" "a 1 2 1 2,a 2 2 1 2,b 1 1 1 1," cat counts
prints "dialogs trained on" "1,1,1,1,2,2,2,2," cat trained
for option in '1 .*txt --cell lstm' '2 .*txt --cell lstm' \
    '3 .*txt --cell scarnn --reduce 2 --history 6' '4 .*txt --cell scarnn --reduce 2 --history 6'; do
    check "of both folds a member: $option" [ "$(grep -c -e "--seed $option\$" calls)" -eq 2 ]
done
check "an ensemble of four" grep -q '^test .*-1.* .*-4.gguf --data .*held.txt --ensemble mean' calls
echo b >> names
check "four names, three dialogs" fails env CARNN=./bot sh data/yardstick.sh names none trn dev

# --- what vectors tell: of lengths, with linear models that say what they read ------------------------
cat > lengths <<'END'
#!/bin/sh
case $1 in
train) while [ $# -gt 1 ]; do case $1 in --train | --valid) cat "$2" >> "read${1#-}" ;; esac; shift; done
    echo 'valid  accuracy 1' ;;
predict) case $2 in
    *sick.gguf) cut -f 2 ;;
    *) awk -v OFS='\t' '{ print length($0), 1 }' ;;
    esac ;;
esac
END
chmod +x lengths
{ echo 'id	a	b	score'; printf '1\taa\ta\t1\n2\taaaaa\ta\t3\n3\taaa\ta\t9\n'; } > SICK_trial.txt
head -n 2 SICK_trial.txt > SICK_train.txt # differences 1, 4, 2 of lengths: ranks 1, 3, 2 and 1, 2, 3
for part in train dev; do
    printf 'HUM:ind %s\n' $part > trec-$part.label
    printf '1 %s\n' $part$part > stsa.binary.$part
done
CARNN=./lengths sh data/transfer.sh model > told 2> err
prints transfer "sick accuracy 1,sick spearman 0.500 pearson 0.052,trec accuracy 1,sst accuracy 1," cat told
prints "trained on" "1 1 0 2 1,HUM 5 1,1 10 1," cat read-train
prints "scored on" "1 1 0 2 1,3 4 0 5 1,9 2 0 3 1,HUM 3 1,1 6 1," cat read-valid

# --- means and deviations over five seeds, 0.1 ... 0.5; a program that fails --------------------------------
cat > scores <<'END'
#!/bin/sh
[ "$1" = train ] || exit 3
echo "valid  accuracy 0.$(echo "$*" | sed 's/.*--seed \([0-9]\).*/\1/')  (1 s"
END
chmod +x scores
mkdir empty seeds
: > seeds/old.gguf
CARNN=$PWD/scores DATA=empty WORK=seeds sh data/results.sh task6-seeds > out 2>&1
check "a failure has another exit code" [ $? -eq 1 ]
check "failures: $(tail -n 1 out)" grep -q -x '20 commands, 5 failed' out
check "means over seeds" \
    [ "$(grep -c -x 'task6-seeds CELL=.*carnn, over seeds:  accuracy 0.3000 +- 0.1581' out)" -eq 3 ]
check "models of before" [ ! -e seeds/old.gguf ]
check "commands of two seeds" [ "$(SEEDS=2 sh data/results.sh --commands task6-seeds | wc -l)" -eq 8 ]
check "a command" [ "$(sh data/results.sh --commands task6-seeds | tail -n 1)" = "task6-seeds SEED=5 | ./carnn test \
icarnn-5.gguf ncarnn-5.gguf scarnn-5.gguf --data dialog-babi-task6-dstc2-dev.txt" ]

checked
