#!/bin/sh
# Prints the figures of README.md and data/RESULTS.md anew, each with its command, seed and time.
#   make results DATA=FOLDER [QUICK=1]       all of them, which takes days; quick: those of ten minutes
#   DATA=FOLDER sh data/results.sh NAME...   some sections, from the top folder after `make tools`
#   sh data/results.sh --list [NAME...]      names of the sections, with their commands as shown there
#   sh data/results.sh --commands [NAME...]  the commands as they run, one for each cell, seed and so on
# FOLDER has a folder for each published data set (babi-dialog, swda, gdtb, ptb, trecqa, wikiqa, embeddings,
# trec-qc, sst, imdb, amazon16, sick, snli, msrp, cbt, books, mnist), whose files have the names that commands say.
# Commands run in build/results (or WORK), where all files are linked and build/ is in the PATH; a row may
# need what those above it in its section wrote there. Each section first removes *.gguf there. CARNN:
# another program than ./carnn. demo, adding, adding-long, copying, depth and bench read no published data:
# FOLDER may be empty.
#
# A row of the table: NAME LOOPS | quick or nothing | COMMAND. LOOPS are like "CELL=icarnn,lstm;SEED=1,2":
# the word CELL in the command takes each of the values. Where there is a SEED, mean and standard
# deviation over seeds are printed, too; with SEEDS=1 in the environment only the first is taken. A line
# "WORD = text" names a part that several commands share.

table() {
    cat <<'END'
BABI6 = dialog-babi-task6-dstc2
DIALOGS = --train BABI6-trn.txt --valid BABI6-dev.txt --candidates BABI6-candidates.txt
VECTORS = --vectors glove.6B.50d.subset.txt.gz --vectors induced.50d.txt.gz
TRECQA = --train train-all.tsv.gz --valid clean-dev.tsv VECTORS
QUESTIONS = --train others.tsv --test judged.tsv --test clean-dev.tsv --clean VECTORS
WIKIQA = --train WikiQA-train.txt.gz --valid WikiQA-dev.txt.gz --clean VECTORS
SICK = --train SICK_train.txt --valid SICK_trial.txt VECTORS
MSRP = --train msr_paraphrase_train.txt --vector-words 0 --folds 5 VECTORS
SWITCHBOARD = --train swda-train.txt --valid swda-dev.txt
GDTB = --train gdtb-train.txt --valid gdtb-dev.txt --lower 1 --min-count 1 --hidden 128 --lr 0.008 --epochs 30
CHARACTERS = --train ptb-train.txt --valid ptb-valid.txt --context none --embedding 32 --dropout 0
WHOLE = --train ptb.char.train.txt.gz --valid ptb.char.valid.txt --embedding 50 --batch 32 --dropout 0 --lr 0.005 --threads 1 --seed 1
PROBED = --train ptb.char.train.txt.gz --valid ptb.char.valid.txt --embedding 50 --batch 32 --dropout 0 --clip 0.1 --threads 1 --seed 1
MNIST = --train train-images --labels train-labels --valid dev-images --labels dev-labels
SMALL = --hidden 128 --embedding 128 --lr 0.005 --epochs 10
PROSE = --train read.prose --valid held.prose VECTORS --vocab 5000

demo | quick | ./carnn train --task dialog --train data/dialog-train.txt --valid data/dialog-dev.txt --candidates data/dialog-candidates.txt --epochs 40 --out demo.gguf
demo | quick | ./carnn test demo.gguf --data data/dialog-test.txt
demo OPTION=,--hops 0,--reduce 2 | quick | ./carnn train --task dialog --train data/dialog-train.txt --valid data/dialog-dev.txt --candidates data/dialog-candidates.txt --test data/dialog-test.txt OPTION --out demo.gguf

task6 CELL=icarnn,ncarnn,scarnn,carnn-low | quick | ./carnn train --task dialog --cell CELL DIALOGS --out CELL.gguf
task6 | quick | ./carnn test icarnn.gguf ncarnn.gguf scarnn.gguf --data BABI6-dev.txt
task6 CELL=carnn-high | | ./carnn train --task dialog --cell CELL DIALOGS --out CELL.gguf
task6 | | ./carnn train --task dialog --hops 0 --match 0 --told 0 --balance 0 --word-dropout 0 DIALOGS --out plain.gguf
task6-seeds CELL=icarnn,ncarnn,scarnn;SEED=1,2,3,4,5 | | ./carnn train --task dialog --cell CELL DIALOGS --seed SEED --out CELL-SEED.gguf
task6-seeds SEED=1,2,3,4,5 | | ./carnn test icarnn-SEED.gguf ncarnn-SEED.gguf scarnn-SEED.gguf --data BABI6-dev.txt

yardstick | quick | awk -f data/managers.awk BABI6-trn.txt BABI6-dev.txt > managers; awk '{ print "fold" NR % 3 }' managers > plain; rm -f *.differences
yardstick BY=dev,plain,managers | quick | sh data/yardstick.sh BY BABI6-candidates.txt BABI6-trn.txt BABI6-dev.txt SMALL > default.BY
yardstick | quick | ./carnn train --task dialog --train BABI6-trn.txt --train BABI6-dev.txt --candidates BABI6-candidates.txt SMALL --folds-by managers
yardstick OPTION=--seed 2,--balance 0 --word-dropout 0,--balance 0,--balance 1,--word-dropout 0,--word-dropout 0.2,--told 0,--match 0,--smoothing 0.1,--average 0.99,--epochs 5,--dropout 0.2,--dropout 0.5,--weight-decay 0.3,--lr 0.0025,--history 6,--kb-rows 5,--hidden 256 --embedding 256 --lr 0.004,--cell ncarnn,--cell scarnn;BY=dev,plain,managers | | sh data/yardstick.sh BY BABI6-candidates.txt BABI6-trn.txt BABI6-dev.txt SMALL OPTION > other.BY; awk -f data/compare.awk default.BY other.BY | tee -a BY.differences
yardstick BY=dev,plain,managers | | MEMBERS=3 sh data/yardstick.sh BY BABI6-candidates.txt BABI6-trn.txt BABI6-dev.txt SMALL > other.BY; awk -f data/compare.awk default.BY other.BY | tee -a BY.differences
yardstick NUMBER=5,8 | | MEMBERS=NUMBER sh data/yardstick.sh managers BABI6-candidates.txt BABI6-trn.txt BABI6-dev.txt SMALL > other.managers; awk -f data/compare.awk default.managers other.managers
yardstick | | for k in dev plain managers; do awk '/^accuracy/ { print $(NF - 2) }' $k.differences > $k.column; done; paste dev.column plain.column managers.column | awk -f data/correlation.awk

cells | quick | awk -f data/managers.awk BABI6-trn.txt BABI6-dev.txt > managers
cells MEMBER=icarnn,ncarnn,scarnn,reduce=2,icarnn ncarnn scarnn,icarnn ncarnn scarnn reduce=2;SEED=1,2,3 | | CELLS="MEMBER" sh data/yardstick.sh managers BABI6-candidates.txt BABI6-trn.txt BABI6-dev.txt --seed SEED > cells.managers
cells MEMBER=scarnn:hops=0:kb-rows=5,scarnn:history=6,reduce=2:kb-rows=5,icarnn ncarnn scarnn:hops=0:kb-rows=5,icarnn ncarnn scarnn:hops=0:kb-rows=5 scarnn:history=6,icarnn ncarnn scarnn:hops=0:kb-rows=5 scarnn:history=6 reduce=2:kb-rows=5;SEED=1,2,3 | | CELLS="MEMBER" sh data/yardstick.sh managers BABI6-candidates.txt BABI6-trn.txt BABI6-dev.txt --seed SEED > cells.managers
cells | | CELLS="icarnn ncarnn scarnn" sh data/yardstick.sh managers BABI6-candidates.txt BABI6-trn.txt BABI6-dev.txt > seeds.managers
cells | | CELLS="icarnn ncarnn scarnn reduce=2" sh data/yardstick.sh dev BABI6-candidates.txt BABI6-trn.txt BABI6-dev.txt --seed 1 > four.dev
cells | | MEMBERS=3 CELLS="icarnn ncarnn scarnn" sh data/yardstick.sh managers BABI6-candidates.txt BABI6-trn.txt BABI6-dev.txt > nine.managers
cells | | CELLS="icarnn ncarnn scarnn:hops=0:kb-rows=5 scarnn:history=6 reduce=2:kb-rows=5" sh data/yardstick.sh managers BABI6-candidates.txt BABI6-trn.txt BABI6-dev.txt > five.managers
cells MEMBER=icarnn ncarnn scarnn:hops=0:kb-rows=5,icarnn ncarnn scarnn:hops=0:kb-rows=5 scarnn:history=6 reduce=2:kb-rows=5 | | CELLS="MEMBER" sh data/yardstick.sh dev BABI6-candidates.txt BABI6-trn.txt BABI6-dev.txt --seed 1 > parts.dev

hops | quick | awk -f data/managers.awk BABI6-trn.txt BABI6-dev.txt > managers; mkdir -p reduced; babi_reduced BABI6-kb.txt BABI6-candidates.txt reduced BABI6-trn.txt BABI6-dev.txt > templates
hops OPTION=--cell icarnn --hops 0,--cell ncarnn --hops 0,--cell scarnn --hops 0,--cell icarnn,--cell ncarnn,--cell scarnn,--hops 3 --ages 1,--hops 3 --ages 1 --gated 1,--reduce 2;BY=dev,managers | | sh data/yardstick.sh BY BABI6-candidates.txt BABI6-trn.txt BABI6-dev.txt SMALL OPTION > hops.BY; sh data/yardstick.sh BY reduced/candidates.txt reduced/BABI6-trn.txt reduced/BABI6-dev.txt SMALL OPTION > hops.BY
hops | | ./carnn train --task dialog --reduce 2 DIALOGS --out qrn.gguf
hops MEMBER=icarnn,ncarnn,scarnn | | CELLS="MEMBER" sh data/yardstick.sh managers BABI6-candidates.txt BABI6-trn.txt BABI6-dev.txt --hops 0 > hops.managers

match | quick | awk -f data/managers.awk BABI6-trn.txt BABI6-dev.txt > managers
match CELL=icarnn,ncarnn,scarnn,lstm;BY=dev,managers | | for m in 0 1 2; do sh data/yardstick.sh BY BABI6-candidates.txt BABI6-trn.txt BABI6-dev.txt SMALL --match $m --cell CELL > $m.BY; done; awk -f data/compare.awk 0.BY 2.BY; awk -f data/compare.awk 1.BY 2.BY
match MEMBER=icarnn,ncarnn,scarnn,reduce=2,icarnn ncarnn scarnn,icarnn ncarnn scarnn reduce=2;SEED=1,2,3 | | CELLS="MEMBER" sh data/yardstick.sh managers BABI6-candidates.txt BABI6-trn.txt BABI6-dev.txt --match 0 --seed SEED > cells.managers

balance | quick | awk -f data/managers.awk BABI6-trn.txt BABI6-dev.txt > managers
balance CELL=icarnn,ncarnn,scarnn,lstm;BY=dev,managers | | sh data/yardstick.sh BY BABI6-candidates.txt BABI6-trn.txt BABI6-dev.txt SMALL --cell CELL --balance 0 --word-dropout 0 > before.BY; sh data/yardstick.sh BY BABI6-candidates.txt BABI6-trn.txt BABI6-dev.txt SMALL --cell CELL > after.BY; awk -f data/compare.awk before.BY after.BY
balance OPTION=--exchange 0,--match 0;BY=dev,managers | | mkdir -p reduced; babi_reduced BABI6-kb.txt BABI6-candidates.txt reduced BABI6-trn.txt BABI6-dev.txt > templates; sh data/yardstick.sh BY reduced/candidates.txt reduced/BABI6-trn.txt reduced/BABI6-dev.txt SMALL OPTION > before.BY; sh data/yardstick.sh BY reduced/candidates.txt reduced/BABI6-trn.txt reduced/BABI6-dev.txt SMALL > after.BY; awk -f data/compare.awk before.BY after.BY

synthetic TASK=task1-API-calls,task2-API-refine,task3-options,task4-phone-address,task5-full-dialogs;OPTION=,--match 0 --told 0,--match 0 --told 0 --exchange 0,--cell ncarnn,--cell scarnn,--reduce 2 | | sed -e 's/bombay/seoul/g; s/london/tokyo/g; s/madrid/beijing/g; s/paris/hanoi/g; s/rome/bangkok/g' -e 's/british/thai/g; s/french/korean/g; s/indian/japanese/g; s/italian/vietnamese/g' -e 's/spanish/cantonese/g' dialog-babi-TASK-dev.txt > unseen.txt; ./carnn train --task dialog --train dialog-babi-TASK-trn.txt --valid dialog-babi-TASK-dev.txt --candidates dialog-babi-candidates.txt OPTION --out task.gguf; ./carnn test task.gguf --data unseen.txt
synthetic TASK=task3-options;OPTION=--match 0 --hops 0,--match 0 --hops 0 --cell ncarnn,--match 0 --hops 0 --cell scarnn | | sed -e 's/bombay/seoul/g; s/london/tokyo/g; s/madrid/beijing/g; s/paris/hanoi/g; s/rome/bangkok/g' -e 's/british/thai/g; s/french/korean/g; s/indian/japanese/g; s/italian/vietnamese/g' -e 's/spanish/cantonese/g' dialog-babi-TASK-dev.txt > unseen.txt; ./carnn train --task dialog --train dialog-babi-TASK-trn.txt --valid dialog-babi-TASK-dev.txt --candidates dialog-babi-candidates.txt OPTION --out task.gguf; ./carnn test task.gguf --data unseen.txt

quantised | | ./carnn train --task dialog DIALOGS --out floats.gguf; ./carnn test floats.gguf --data BABI6-dev.txt --quantise --out eight.gguf; wc -c floats.gguf eight.gguf
quantised | | ./carnn train --task lm --tied 1 --cell ncarnn GDTB --dropout 0.5 --label-weight 0 --out floats.gguf; ./carnn test floats.gguf --data gdtb-dev.txt --quantise --out eight.gguf; wc -c floats.gguf eight.gguf
quantised | | ./carnn train --task classify --train trec-train.label --valid trec-dev.label VECTORS --out floats.gguf; ./carnn test floats.gguf --data trec-dev.label --quantise --out eight.gguf; wc -c floats.gguf eight.gguf
quantised | | ./carnn train --task pair SICK --out floats.gguf; ./carnn test floats.gguf --data SICK_trial.txt --quantise --out eight.gguf; wc -c floats.gguf eight.gguf
quantised | | ./carnn train --task answer TRECQA --out floats.gguf; ./carnn test floats.gguf --data clean-dev.tsv --quantise --out eight.gguf; wc -c floats.gguf eight.gguf

unsure | | sed 's/^[^ ]* //' trec-dev.label > trec.txt; for k in candidates dev; do ln -sf data/dialog-$k.txt sample-$k.txt; done; ln -sf data/dialog-train.txt sample-trn.txt
unsure SET=sample,BABI6;OPTION=,--unsure "I do not know ." | | ./carnn train --task dialog --train SET-trn.txt --valid SET-dev.txt --candidates SET-candidates.txt OPTION --out SET-u.gguf
unsure SET=sample,BABI6;QUESTIONS=data/unsure.txt,trec.txt | | awk -v say="I do not know ." -f data/unsure.awk QUESTIONS SET-dev.txt > odd.txt; cut -s -f 2 odd.txt > odd-replies; ./carnn predict SET-u.gguf --data odd.txt | paste odd-replies - | awk -F '\t' -v say="I do not know ." '$1 == say { n++; d += $2 == say } END { print d / n }'
unsure SET=sample,BABI6 | | cut -s -f 2 SET-dev.txt > replies; ./carnn predict SET-u.gguf --data SET-dev.txt --top 2 | paste replies - | awk -F '\t' -v say="I do not know ." '$1 == ($3 == say ? $5 : $3) { n++; d += $3 == say } END { print d / n }'
unsure OPTION=,--unsure "I do not know .";SEED=1,2,3 | | ./carnn train --task dialog --train sample-trn.txt --valid sample-dev.txt --candidates sample-candidates.txt OPTION --seed SEED --out u.gguf

reduced OPTION=,--merge | quick | mkdir -p reduced; babi_reduced OPTION BABI6-kb.txt BABI6-candidates.txt reduced BABI6-trn.txt BABI6-dev.txt

switchboard CELL=ncarnn --lr 0.008,icarnn --lr 0.008,scarnn --lr 0.004;LABELS=,--label-weight 0 | | ./carnn train --task lm --cell CELL SWITCHBOARD --epochs 1 --dropout 0.1 LABELS --out s.gguf
switchboard CELL=lstm --lr 0.008 --hidden 276 --embedding 256,gru --lr 0.004 --hidden 276 --embedding 256,lstm --lr 0.004 --context previous,gru --lr 0.004 --context previous | | ./carnn train --task lm --cell CELL SWITCHBOARD --epochs 1 --dropout 0.1 --label-weight 0 --out s.gguf
switchboard | | ./carnn train --task lm --cell ncarnn --lr 0.008 SWITCHBOARD --epochs 1 --dropout 0.1 --label-weight 0.5 --out s.gguf
switchboard-3 CELL=ncarnn,icarnn,lstm --hidden 276 --embedding 256 | | ./carnn train --task lm --cell CELL --lr 0.008 SWITCHBOARD --epochs 3 --dropout 0.2 --out s.gguf

gdtb CELL=ncarnn,icarnn,lstm --hidden 134,gru --hidden 134;DROPOUT=0.5,0.6 | | ./carnn train --task lm --tied 1 --cell CELL GDTB --dropout DROPOUT --label-weight 0 --out g.gguf
gdtb CELL=ncarnn --tied 1,ncarnn --tied 1 --context none,scarnn --label-weight 0 | | ./carnn train --task lm --cell CELL GDTB --dropout 0.5 --out g.gguf

memory CELL=icarnn,ncarnn;OPTION=,--memory 20;SEED=1,2 | | ./carnn train --task pair --cell CELL OPTION --folds 3 --train SICK_train.txt --train SICK_trial.txt VECTORS --seed SEED
memory | | ./carnn train --task lm --cell ncarnn --memory 10 --lr 0.008 SWITCHBOARD --epochs 1 --dropout 0.1 --out s.gguf
memory | | ./carnn train --task lm --tied 1 --cell ncarnn --memory 10 GDTB --dropout 0.5 --label-weight 0 --out g.gguf

ptb CELL=ncarnn --hidden 200,lstm --hidden 213 | | ./carnn train --task lm --cell CELL --train ptb.train.txt --valid ptb.valid.txt --epochs 2 --dropout 0.2 --out ptb.gguf

characters | | gzip -dc ptb.char.train.txt.gz | head -n 16000 > ptb-train.txt; head -n 8000 ptb-train.txt > half.txt; cp ptb.char.valid.txt ptb-valid.txt
characters CELL=lstm,mi-lstm,gru,mi-gru,rnn,mi-rnn;SEED=1,2 | | ./carnn train --task lm --cell CELL CHARACTERS --hidden 128 --epochs 3 --lr 0.016 --seed SEED --out c.gguf
characters CELL=lstm,mi-lstm,gru,mi-gru,rnn,mi-rnn | | ./carnn train --task lm --cell CELL --train half.txt --valid ptb-valid.txt --context none --embedding 32 --dropout 0 --hidden 128 --epochs 1 --lr 0.016 --out c.gguf
chunks CELL=rnn,mi-rnn | | ./carnn train --task lm --unit char --chunk 50 --cell CELL --hidden 256 --epochs 3 WHOLE --out m.gguf
chunks CELL=lstm,mi-lstm | | ./carnn train --task lm --unit char --chunk 50 --cell CELL --hidden 128 --epochs 1 WHOLE --out m.gguf
chunks CELL=rnn --hidden 512 --epochs 4,mi-rnn --hidden 512 --epochs 4,mi-rnn --hidden 780 --epochs 8 | | ./carnn train --task lm --unit char --chunk 50 --cell CELL --lr 0.001 PROBED --out m.gguf
chunks GRAPH=sh --hidden 780,st --hidden 460,bu --hidden 400,td --hidden 400 | | ./carnn train --task lm --unit char --chunk 50 --cell rnn --encoder graph --graph GRAPH --epochs 8 --lr 0.001 PROBED --out m.gguf
probes CELL=rnn,mi-rnn,mi-rnn-simple,lin-mi-rnn | | ./carnn train --task lm --unit char --chunk 50 --cell CELL --hidden 256 --epochs 6 --lr 0.001 PROBED --probe CELL.jsonl --out m.gguf
probes | | ./carnn plot rnn.jsonl mi-rnn.jsonl
probes-linear CELL=lin-rnn,lin-mi-rnn | | ./carnn train --task lm --unit char --chunk 50 --cell CELL --hidden 256 --epochs 3 --lr 0.0003 PROBED --probe CELL.jsonl --out m.gguf
input-range CELL=rnn,mi-rnn;R=0.02,0.1,0.3,0.6 | | ./carnn train --task lm --unit char --chunk 50 --cell CELL --hidden 256 --epochs 2 --lr 0.001 --input-range R PROBED --out m.gguf

answer-folds DATA=--train train-all.tsv.gz,--train WikiQA-train.txt.gz --clean;CELL=icarnn,ncarnn,scarnn,lstm,gru,ran-tanh,icarnn --memory 0,ncarnn --memory 0,scarnn --memory 0,lstm --memory 0,gru --memory 0,ran-tanh --memory 0,icarnn --memory 5 | | ./carnn train --task answer --traits 0 --place 0 --cell CELL --folds 5 --hidden 50 --epochs 3 DATA VECTORS
answer-folds DATA=--train train-all.tsv.gz,--train WikiQA-train.txt.gz --clean | | ./carnn train --task answer --traits 0 --place 0 --redundancy 0 --folds 5 --hidden 50 --epochs 3 DATA VECTORS
answer-folds DATA=--train train-all.tsv.gz,--train WikiQA-train.txt.gz --clean;CELL=icarnn,ncarnn,scarnn,lstm | | ./carnn train --task answer --cell CELL --folds 5 --hidden 50 --epochs 3 DATA VECTORS
answer-plain DATA=--train train-all.tsv.gz;CELL=icarnn,ncarnn,scarnn,lstm,carnn-high,gru,rnn,ran-tanh | | ./carnn train --task answer --overlap 0 --lr 0.001 --memory 0 --cell CELL --folds 5 --hidden 50 --epochs 3 DATA VECTORS
answer-plain DATA=--train WikiQA-train.txt.gz --clean;CELL=icarnn,ncarnn,scarnn,lstm,carnn-high,icarnn --memory 0,ncarnn --memory 0,scarnn --memory 0,lstm --memory 0 | | ./carnn train --task answer --overlap 0 --lr 0.001 --cell CELL --folds 5 --hidden 50 --epochs 3 DATA VECTORS
trecqa CELL=icarnn,ncarnn,scarnn,lstm | | ./carnn train --task answer --cell CELL TRECQA --out CELL.gguf
trecqa | | ./carnn test ncarnn.gguf icarnn.gguf scarnn.gguf --data clean-dev.tsv
trecqa CELL=icarnn,ncarnn,scarnn,lstm | | ./carnn train --task answer --traits 0 --place 0 --cell CELL TRECQA --out plain.gguf
questions | | gzip -dc train.tsv.gz > judged.tsv; gzip -dc train-all.tsv.gz | awk -F '\t' 'NR == FNR { asked[$3]; next } !($3 in asked)' judged.tsv - > others.tsv
questions CELL=icarnn,ncarnn,scarnn,lstm;SEED=1,2,3 | | ./carnn train --task answer --traits 0 --place 0 --cell CELL QUESTIONS --seed SEED --out CELL-SEED.gguf
questions SEED=1,2,3 | | ./carnn test icarnn-SEED.gguf ncarnn-SEED.gguf scarnn-SEED.gguf lstm-SEED.gguf --data judged.tsv --data clean-dev.tsv --clean
questions SEED=1,2,3 | | ./carnn test icarnn-SEED.gguf ncarnn-SEED.gguf scarnn-SEED.gguf --data judged.tsv --data clean-dev.tsv --clean
questions CELL=icarnn,ncarnn,scarnn,lstm;SEED=1,2,3 | | ./carnn train --task answer --cell CELL QUESTIONS --seed SEED --out CELL-SEED.gguf
questions SEED=1,2,3 | | ./carnn test icarnn-SEED.gguf ncarnn-SEED.gguf scarnn-SEED.gguf lstm-SEED.gguf --data judged.tsv --data clean-dev.tsv --clean
questions SEED=1,2,3 | | ./carnn test icarnn-SEED.gguf ncarnn-SEED.gguf scarnn-SEED.gguf --data judged.tsv --data clean-dev.tsv --clean
questions OPTION=--hidden 1;SEED=1,2,3 | | ./carnn train --task answer OPTION QUESTIONS --seed SEED --out o.gguf
questions OPTION=--traits 0 --place 0 --redundancy 0,--traits 0 --place 0 --lr 0.001,--traits 0 --place 0 --redundancy 0 --lr 0.001;SEED=1,2 | | ./carnn train --task answer OPTION QUESTIONS --seed SEED --out o.gguf
answer-settings | | gzip -dc train.tsv.gz > judged.tsv; gzip -dc train-all.tsv.gz | awk -F '\t' 'NR == FNR { asked[$3]; next } !($3 in asked)' judged.tsv - > others.tsv; rm -f settings
answer-settings FAST=--hidden 50 --epochs 3,--hidden 50 --epochs 3 --memory 0 --traits 0 --place 0;OPTION=,--redundancy 0,--overlap 0,--lr 0.001,--lr 0.002,--lr 0.00025,--epochs 1,--epochs 6,--dropout 0.3,--dropout 0.7,--weight-decay 0,--decomposition direct,--weighting skip,--model siamese,--cell lstm,--cell scarnn,--hidden 150,--loss pair,--average 0 | | for seed in 1 2; do ./carnn train --task answer FAST OPTION TRECQA --seed $seed --out o.gguf; ./carnn train --task answer FAST OPTION QUESTIONS --seed $seed --out o.gguf; done | tee scores-once; for data in 'train-all.tsv.gz' 'WikiQA-train.txt.gz --clean'; do ./carnn train --task answer FAST OPTION --folds 5 --train $data VECTORS; done | tee scores-folds; awk '/^valid/ { dev += $3 / 2 } /^test/ { asked += $3 / 2 } /^mean/ { fold[++n] = $3 } END { print dev, fold[1], asked, fold[2] }' scores-once scores-folds | tee -a settings
answer-settings | | head -n 19 settings | awk -f data/correlation.awk; tail -n 19 settings | awk -f data/correlation.awk
trecqa-helped OPTION=,--redundancy 0,--overlap 0,--overlap 20,--loss pair,--weight-decay 0,--dropout 0.3,--average 0,--epochs 5 | | ./carnn train --task answer --traits 0 --place 0 --hidden 50 --epochs 1 OPTION TRECQA --out a.gguf
trecqa-helped | | ./carnn train --task answer --traits 0 --place 0 --hidden 50 --epochs 8 --train train.tsv.gz --valid clean-dev.tsv VECTORS --out a.gguf
wikiqa CELL=icarnn,ncarnn,scarnn,lstm;OPTION=,--traits 0 --place 0,--traits 0 --place 0 --memory 0 | | ./carnn train --task answer --cell CELL OPTION WIKIQA --out w.gguf
answer-small PART=0,1,2,3,4;OPTION=,--traits 0,--hidden 64 --epochs 20 --lr 0.004,--traits 0 --hidden 64 --epochs 20 --lr 0.004 | | gzip -dc WikiQA-train.txt.gz | awk -F '\t' '$1 != asked { asked = $1; n++ } n % 5 == PART' > fifth.tsv; ./carnn train --task answer OPTION --train fifth.tsv --test WikiQA-dev.txt.gz --clean VECTORS --out s.gguf
wikiqa-folds | | gzip -dc WikiQA-train.txt.gz WikiQA-dev.txt.gz | awk -F '\t' '{ n = $1 == asked ? n + 1 : 1; asked = $1; all[n]++; right[n] += $3 } END { for (n = 1; n <= 12; n++) printf "%d %.3f\n", n, right[n] / all[n] }'
wikiqa-folds CELL=icarnn,ncarnn,scarnn,lstm;OPTION=,--seed 2,--hidden 250,--hidden 250 --seed 2 | | ./carnn train --task answer --cell CELL OPTION --folds 10 --train WikiQA-train.txt.gz --train WikiQA-dev.txt.gz --clean VECTORS
wikiqa-folds CELL=icarnn,ncarnn,scarnn,lstm,lstm --hidden 133,icarnn --hidden 250,ncarnn --hidden 250,scarnn --hidden 250,lstm --hidden 250,icarnn --memory 0,ncarnn --memory 0,scarnn --memory 0,lstm --memory 0 | | ./carnn train --task answer --traits 0 --place 0 --cell CELL --folds 10 --train WikiQA-train.txt.gz --train WikiQA-dev.txt.gz --clean VECTORS
wikiqa-folds CELL=icarnn,ncarnn,lstm,icarnn --memory 0,ncarnn --memory 0,icarnn --hidden 250,ncarnn --hidden 250,lstm --hidden 250 | | ./carnn train --task answer --traits 0 --place 0 --cell CELL --folds 10 --train WikiQA-train.txt.gz --train WikiQA-dev.txt.gz --clean --seed 2 VECTORS
ca DATA=TRECQA,WIKIQA;OPTION=,--alignment none,--pooling attention --loss rank,--pooling attention --loss rank --alignment none;SEED=1,2,3 | | ./carnn train --task answer --model ca OPTION --epochs 3 --seed SEED DATA --out ca.gguf
ca DATA=TRECQA,WIKIQA;SEED=1,2,3 | | ./carnn train --task answer --model ca --direction a2q --epochs 3 --seed SEED DATA --out ca.gguf
ca-semantic | | gzip -dc glove.6B.50d.subset.txt.gz > glove.txt; gzip -dc train-all.tsv.gz > train-all.tsv; for f in train-all.tsv clean-dev.tsv; do awk -v column=3 -f data/align.awk glove.txt $f > $f.align; done; for f in WikiQA-train.txt WikiQA-dev.txt; do gzip -dc $f.gz > $f; awk -v column=1 -f data/align.awk glove.txt $f > $f.align; done
ca-semantic DATA=--train train-all.tsv --valid clean-dev.tsv,--train WikiQA-train.txt --valid WikiQA-dev.txt --clean;OPTION=,--pooling attention --loss rank;SEED=1,2,3 | | ./carnn train --task answer --model ca --alignment file OPTION --epochs 3 --seed SEED DATA VECTORS --out ca.gguf
ca-options OPTION=--pooling attention,--pooling attention --alignment none,--loss rank,--loss rank --alignment none,--epochs 6,--weight-decay 0,--dropout 0.4,--tune-vectors 1 --epochs 2 | | ./carnn train --task answer --model ca --epochs 3 OPTION TRECQA --out ca.gguf
hinge MODEL=cosine --epochs 3,ap --epochs 3,ap --encoder rcrn --epochs 2;SEED=1,2,3 | | ./carnn train --task answer --model MODEL --hidden 50 --lr 0.003 --seed SEED TRECQA --out h.gguf

vector-words SET=trec-train.label,stsa.binary.train,stsa.fine.train;OPTION=,--vector-words 0;SEED=1,2,3 | | ./carnn train --task classify OPTION --folds 5 --train SET VECTORS --seed SEED
vector-words DATA=--train train-all.tsv.gz,--train WikiQA-train.txt.gz --clean;OPTION=,--vector-words 0;SEED=1,2,3 | | ./carnn train --task answer --traits 0 --place 0 --redundancy 0 --lr 0.001 --memory 0 OPTION --folds 5 --hidden 50 --epochs 3 DATA VECTORS --seed SEED
vector-words OPTION=,--vector-words 0;SEED=1,2,3 | | ./carnn train --task pair OPTION --folds 5 --train SICK_train.txt VECTORS --seed SEED

classification | | sh tests/fasttext.sh published
classification-last SET=trec-train.label --test trec-dev.label,stsa.binary.train --test stsa.binary.dev,stsa.fine.train --test stsa.fine.dev,imdb-train.tsv --test imdb-dev.tsv;SEED=1,2,3 | | ./carnn train --task classify --train SET VECTORS --seed SEED --out c.gguf
classification-rcrn SET=trec-train.label --valid trec-dev.label,stsa.binary.train --valid stsa.binary.dev;SEED=1,2,3 | | ./carnn train --task classify --encoder rcrn --train SET VECTORS --seed SEED --out c.gguf
classification-rcrn OPTION=,--encoder rcrn | | ./carnn train --task classify OPTION --train stsa.fine.train --valid stsa.fine.dev VECTORS --out c.gguf
classification-rcrn OPTION=--layers 3,--encoder rcrn --cell gru,--encoder rcrn --cell icarnn --context text,--encoder rcrn --cell icarnn,--encoder rcrn --raw-output-gate 1 | | ./carnn train --task classify OPTION --train trec-train.label --valid trec-dev.label VECTORS --out c.gguf
classification-phrases | | awk -f data/phrases.awk trees/train.txt > phrases.tsv
classification-phrases SET=phrases.tsv --valid stsa.binary.dev --epochs 6,trees/train.txt --phrases 1 --valid stsa.fine.dev --epochs 4;SEED=1,2,3 | | ./carnn train --task classify --train SET VECTORS --seed SEED --out c.gguf
classification-ngrams SET=trec-train.label,stsa.binary.train,stsa.fine.train;NGRAMS=0,2 | | ./carnn train --task classify --ngrams NGRAMS --folds 5 --train SET VECTORS
classification-ngrams OPTION=--smoothing 0.2,--weight-decay 0.3,--batch 64,--lr 0.001,--hidden 200,--epochs 5 | | ./carnn train --task classify OPTION --vector-words 0 --folds 5 --train stsa.fine.train VECTORS
classification-ngrams SET=trec-train.label --valid trec-dev.label,stsa.binary.train --valid stsa.binary.dev,stsa.fine.train --valid stsa.fine.dev,imdb-train.tsv --valid imdb-dev.tsv;SEED=1,2,3 | | ./carnn train --task classify --ngrams 2 --train SET VECTORS --seed SEED --out c.gguf
domains | | for f in *.task.train; do d=${f%.task.train}; awk 'NR % 10 != 7' $f > $d.training; awk 'NR % 10 == 7' $f > $d.held; done; cat *.training > all-domains
domains NGRAMS=0,2 | | for f in *.held; do d=${f%.held}; ./carnn train --task classify --ngrams NGRAMS --train $d.training --valid $f VECTORS --out c.gguf; done | awk '$1 == "valid" { n++; sum += $3 } END { print sum / n }'
domains NGRAMS=0,2 | | cat *.held > held; ./carnn train --task classify --ngrams NGRAMS --train all-domains --valid held VECTORS --epochs 8 --out c.gguf; for f in *.held; do ./carnn test c.gguf --data $f; done | awk '$1 == "c.gguf" { n++; sum += $3 } END { print sum / n }'
domains | | ./carnn train --task classify --encoder rcrn --lr 0.001 --epochs 4 --train all-domains --valid held VECTORS --out rcrn.gguf; cp rcrn.gguf c.gguf; for f in *.held; do ./carnn test c.gguf --data $f; done | awk '$1 == "c.gguf" { n++; sum += $3 } END { print sum / n }'
domains SIZE=--hidden 160,--layers 3 --hidden 79 | | ./carnn train --task classify SIZE --lr 0.001 --epochs 4 --train all-domains --valid held VECTORS --out c.gguf; for f in *.held; do ./carnn test c.gguf --data $f; done | awk '$1 == "c.gguf" { n++; sum += $3 } END { print sum / n }'; ./carnn test rcrn.gguf c.gguf --data held | sed -n 2p

equal | | for k in train dev; do cp trec-$k.label trec.$k; cp stsa.binary.$k sst2.$k; cp stsa.fine.$k sst5.$k; done; cp SICK_train.txt sick.train; cp SICK_trial.txt sick.dev; cat train-partial.tsv train-counterfactual.tsv > snli.train; cp dev.tsv snli.dev
equal SET=trec,sst2,sst5;SEED=1,2,3 | | ./carnn train --task classify --encoder rcrn --train SET.train --valid SET.dev VECTORS --seed SEED --out SET-SEED.gguf
equal SET=trec,sst2,sst5;SIZE=--hidden 160,--layers 3 --hidden 79;SEED=1,2,3 | | ./carnn train --task classify SIZE --train SET.train --valid SET.dev VECTORS --seed SEED --out l.gguf; ./carnn test SET-SEED.gguf l.gguf --data SET.dev | sed -n 2p
equal SET=sick,snli;SEED=1,2,3 | | ./carnn train --task pair --cell lstm --overlap 0 --encoder rcrn --train SET.train --valid SET.dev VECTORS --seed SEED --out SET-SEED.gguf
equal SET=sick,snli;SIZE=--hidden 134,--layers 3 --hidden 90;SEED=1,2,3 | | ./carnn train --task pair --cell lstm --overlap 0 SIZE --train SET.train --valid SET.dev VECTORS --seed SEED --out l.gguf; ./carnn test SET-SEED.gguf l.gguf --data SET.dev | sed -n 2p
equal SEED=1,2,3 | | ./carnn train --task answer --model ap --encoder rcrn --hidden 100 --epochs 3 --lr 0.003 WIKIQA --seed SEED --out wikiqa-SEED.gguf
equal SIZE=--hidden 161,--layers 3 --hidden 88;SEED=1,2,3 | | ./carnn train --task answer --model ap SIZE --epochs 3 --lr 0.003 WIKIQA --seed SEED --out l.gguf; ./carnn test wikiqa-SEED.gguf l.gguf --data WikiQA-dev.txt.gz | sed -n 2p
equal SEED=1,2,3 | | ./carnn train --task answer --model ap --encoder rcrn --hidden 100 --epochs 3 --lr 0.003 TRECQA --seed SEED --out trecqa-SEED.gguf
equal SIZE=--hidden 161,--layers 3 --hidden 88;SEED=1,2,3 | | ./carnn train --task answer --model ap SIZE --epochs 3 --lr 0.003 TRECQA --seed SEED --out l.gguf; ./carnn test trecqa-SEED.gguf l.gguf --data clean-dev.tsv | sed -n 2p
equal | | ./carnn train --task classify --encoder rcrn --lr 0.001 --train imdb-train.tsv --valid imdb-dev.tsv VECTORS --out imdb.gguf
equal SIZE=--hidden 160,--layers 3 --hidden 79 | | ./carnn train --task classify SIZE --lr 0.001 --train imdb-train.tsv --valid imdb-dev.tsv VECTORS --out l.gguf; ./carnn test imdb.gguf l.gguf --data imdb-dev.tsv | sed -n 2p
equal SIZE=--encoder rcrn,--hidden 160,--layers 3 --hidden 79;OPTION=,--lr 0.006,--pooling max | | ./carnn train --task classify SIZE OPTION --vector-words 0 --folds 3 --train trec.train VECTORS
equal SIZE=--encoder rcrn --cell ran-tanh --hidden 130,--hidden 160,--layers 3 --hidden 79;SET=sst2,sst5 | | ./carnn train --task classify SIZE --lr 0.006 --vector-words 0 --folds 3 --train SET.train VECTORS
equal SIZE=--encoder rcrn --cell gru --hidden 109 --lr 0.004,--cell lstm --hidden 134,--cell lstm --hidden 134 --lr 0.004,--cell lstm --layers 3 --hidden 90,--cell lstm --layers 3 --hidden 90 --lr 0.004;SET=sick | | ./carnn train --task pair --overlap 0 SIZE --vector-words 0 --folds 3 --train SET.train VECTORS
equal SIZE=--encoder rcrn --cell gru --hidden 109,--cell lstm --hidden 134,--cell lstm --layers 3 --hidden 90;SET=snli | | ./carnn train --task pair --overlap 0 SIZE --vector-words 0 --folds 3 --train SET.train VECTORS
equal SIZE=--encoder rcrn --hidden 100,--hidden 161,--layers 3 --hidden 88;DATA=--train train-all.tsv.gz,--train WikiQA-train.txt.gz --clean | | ./carnn train --task answer --model ap SIZE --epochs 3 --lr 0.003 --vector-words 0 --folds 3 DATA VECTORS
equal SET=trec;SEED=1,2,3 | | ./carnn train --task classify --encoder rcrn --pooling max --train SET.train --valid SET.dev VECTORS --seed SEED --out SET-chosen-SEED.gguf
equal SET=sst2,sst5;SEED=1,2,3 | | ./carnn train --task classify --encoder rcrn --cell ran-tanh --hidden 130 --lr 0.006 --train SET.train --valid SET.dev VECTORS --seed SEED --out SET-chosen-SEED.gguf
equal SET=trec;SIZE=--hidden 160,--layers 3 --hidden 79;SEED=1,2,3 | | ./carnn train --task classify SIZE --train SET.train --valid SET.dev VECTORS --seed SEED --out l.gguf; ./carnn test SET-chosen-SEED.gguf l.gguf --data SET.dev | sed -n 2p
equal SET=sst2,sst5;SIZE=--hidden 160,--layers 3 --hidden 79;SEED=1,2,3 | | ./carnn train --task classify SIZE --lr 0.006 --train SET.train --valid SET.dev VECTORS --seed SEED --out l.gguf; ./carnn test SET-chosen-SEED.gguf l.gguf --data SET.dev | sed -n 2p
equal SET=sick;SEED=1,2,3 | | ./carnn train --task pair --overlap 0 --encoder rcrn --cell gru --hidden 109 --lr 0.004 --train SET.train --valid SET.dev VECTORS --seed SEED --out SET-chosen-SEED.gguf
equal SET=sick;SIZE=--hidden 134 --lr 0.004,--layers 3 --hidden 90;SEED=1,2,3 | | ./carnn train --task pair --overlap 0 --cell lstm SIZE --train SET.train --valid SET.dev VECTORS --seed SEED --out l.gguf; ./carnn test SET-chosen-SEED.gguf l.gguf --data SET.dev | sed -n 2p

sick OPTION=,--cell ncarnn,--overlap 0,--cell lstm,--cell lstm --overlap 0,--cell lstm --overlap 0 --encoder rcrn,--alignment overlap,--alignment overlap --overlap 0;SEED=1,2,3 | | ./carnn train --task pair OPTION SICK --seed SEED --out p.gguf
relatedness OPTION=,--cell lstm;SEED=1 | | ./carnn train --task pair --target relatedness OPTION SICK --seed SEED --out p.gguf
relatedness OPTION=icarnn,lstm,lstm --alignment overlap;SEED=1,2,3 | | ./carnn train --task pair --target relatedness --model manhattan --cell OPTION SICK --seed SEED --out p.gguf
relatedness CELL=icarnn,lstm | | ./carnn train --task pair --target relatedness --model manhattan --cell CELL SICK --out CELL-r.gguf
relatedness | | ./carnn test icarnn-r.gguf lstm-r.gguf --data SICK_trial.txt
msrp OPTION=,--model manhattan,--cell lstm,--alignment overlap,--cell lstm --pooling attention,--alignment overlap --pooling attention,--cell lstm --overlap 0,--alignment overlap --overlap 0,--cell lstm --overlap 0 --pooling attention,--alignment overlap --direction r2l,--alignment overlap --direction r2l --overlap 0 | | ./carnn train --task pair OPTION MSRP
msrp | | gzip -dc glove.6B.50d.subset.txt.gz > glove.txt; { head -n 1 msr_paraphrase_train.txt; tail -n +2 msr_paraphrase_train.txt | LC_ALL=C tr -c 'A-Za-z0-9\t\n' ' '; } > plain.txt; awk -v column=4 -f data/align.awk glove.txt plain.txt | tail -n +2 > plain.txt.align
msrp OPTION=--cell lstm,--alignment overlap,--alignment file | | ./carnn train --task pair OPTION --overlap 0 --train plain.txt --vector-words 0 --folds 5 VECTORS

cloze | | books=$(ls books/*.txt | grep -Ev 'alice|pinocchio|looking-glass|just-so'); ./carnn cloze --sentences 4 $books > names4.txt; ./carnn cloze --sentences 8 $books > names8.txt; cat names4.txt names8.txt > names.txt; gzip -dc derived/CN_train.txt.gz | grep XXXXX | cut -f 4 | tr '|' '\n' | sort -u > list; ./carnn cloze --sentences 4 --asked list $books > nouns4.txt; ./carnn cloze --sentences 8 --stride 2 --asked list $books > nouns8.txt; cat nouns4.txt nouns8.txt > nouns.txt
cloze SEED=1,2,3 | | ./carnn train --task cloze --train names.txt --valid derived/NE_valid.txt.gz --out ne.gguf --hidden 64 --embedding 64 --epochs 6 --lr 0.003 --lr-end 0.05 --dropout 0.5 --average 0.99 --min-count 3 --seed SEED
cloze | | ./carnn train --task cloze --train nouns.txt --valid derived/CN_valid.txt.gz --out cn.gguf --hidden 64 --embedding 64 --epochs 5 --lr 0.003 --lr-end 0.05 --dropout 0.4 --average 0.99 --min-count 3 --anonymous 0
cloze SEED=1,2,3 | | ./carnn train --task cloze --train names.txt --train nouns.txt --test derived/CN_valid.txt.gz --out cn.gguf --hidden 64 --embedding 50 VECTORS --epochs 4 --lr 0.003 --lr-end 0.05 --dropout 0.4 --average 0.99 --min-count 3 --anonymous 0 --seed SEED
cloze | | gzip -dc derived/CN_valid.txt.gz > valid; head -n 5940 valid > first; tail -n +5941 valid > second
cloze HIDDEN=112,$((40 + 8 * s)) | | for s in 1 2 3 4 5 6 7 8; do ./carnn train --task cloze --train names.txt --train nouns.txt --out e$s.gguf --hidden HIDDEN --embedding 50 VECTORS --epochs 4 --lr 0.003 --lr-end 0.05 --dropout 0.4 --average 0.99 --min-count 3 --anonymous 0 --seed $s; done; ./carnn test e?.gguf --data valid --ensemble mean; ./carnn test e?.gguf --data second --ensemble greedy --valid first; ./carnn test e?.gguf --data first --ensemble greedy --valid second
cloze-normalised | | gzip -dc derived/NE_train.txt.gz | head -n 44000 > ne.txt
cloze-normalised CELL=lstm,lstm --normalise batch,mi-lstm,mi-lstm --normalise batch,mi-lstm --normalise everywhere;SEED=1,2,3 | | ./carnn train --task cloze --model attentive --cell CELL --train ne.txt --valid derived/NE_valid.txt.gz --out ne.gguf --hidden 64 --embedding 64 --epochs 24 --lr 0.002 --dropout 0.2 --min-count 5 --batch 64 --seed SEED --log ne.log
cloze-ensembles | | books=$(ls books/*.txt | grep -Ev 'alice|pinocchio|looking-glass|just-so|wizard-of-oz|secret-garden'); gzip -dc derived/CN_train.txt.gz | grep XXXXX | cut -f 4 | tr '|' '\n' | sort -u > list; ./carnn cloze --sentences 4 --asked list $books > nouns4.txt; ./carnn cloze --sentences 8 --stride 2 --asked list $books > nouns8.txt; cat nouns4.txt nouns8.txt > nouns.txt; ./carnn cloze --stride 3 --asked list books/wizard-of-oz.txt books/secret-garden.txt > hv; gzip -dc derived/CN_valid.txt.gz > valid; ./carnn cloze --sentences 4 $books > names4.txt; ./carnn cloze --sentences 8 $books > names8.txt; cat names4.txt names8.txt > names.txt; ./carnn cloze --stride 3 books/wizard-of-oz.txt books/secret-garden.txt > hn; gzip -dc derived/NE_valid.txt.gz > nvalid
cloze-ensembles | | for s in 1 2 3 4 5 6 7 8; do ./carnn train --task cloze --train nouns.txt --valid hv --lr 0.003 --lr-end 0.05 --average 0.99 --threads 1 --anonymous 0 --min-count 3 --out c$s.gguf --hidden $((40 + 8 * s)) --embedding 64 --epochs 3 --dropout 0.4 --seed $s --max-time 150; done; ./carnn test c?.gguf --data valid --ensemble mean; ./carnn test c?.gguf --data valid --ensemble greedy --valid hv --out nouns.gguf; ./carnn test nouns.gguf --data valid --counts
cloze-ensembles | | for s in 1 2 3 4 5 6 7 8; do ./carnn train --task cloze --train names.txt --valid hn --lr 0.003 --lr-end 0.05 --average 0.99 --threads 1 --min-count 3 --out n$s.gguf --hidden $((40 + 8 * s)) --embedding 64 --epochs 6 --dropout 0.5 --seed $s --max-time 150; done; ./carnn test n?.gguf --data nvalid --ensemble vote; ./carnn test n?.gguf --data nvalid --ensemble mean; ./carnn test n?.gguf --data nvalid --ensemble mean --share 0.7 --valid hn; ./carnn test n?.gguf --data nvalid --ensemble greedy --valid hn --out names.gguf; ./carnn test names.gguf --data nvalid --counts

adding T=100,200;CELL=icarnn --layers 2,icarnn --layers 1,icarnn --layers 1 --memory 100,ncarnn --layers 1,lstm --layers 1,gru --layers 1 | | make_signal . adding T 20000; ./carnn train --task signal --columns 2 --cell CELL --train adding-train.tsv --valid adding-dev.tsv --epochs 10 --out a.gguf
adding-long T=750,1000;CELL=ncarnn,ncarnn --skip 30,lstm,lstm --skip 30,icarnn --memory 500,lstm --memory 500 | | make_signal . adding T 10000; ./carnn train --task signal --columns 2 --layers 1 --cell CELL --train adding-train.tsv --valid adding-dev.tsv --epochs 5 --threads 1 --out a.gguf
adding-long | | make_signal . adding 750 10000; ./carnn train --task signal --columns 2 --layers 1 --cell lstm --skip 30 --train adding-train.tsv --valid adding-dev.tsv --epochs 15 --threads 1 --out a.gguf
copying CELL=gru,lstm,rnn,rnn --skip 40,rnn --skip 42,rnn --skip 70,lstm --skip 70 | | make_signal . copying 200 5000; awk -F '\t' -v OFS='\t' '{ gsub(/0/, "-", $1) } 1' copying-dev.tsv > recalled.tsv; ./carnn train --task signal --columns 10 --layers 1 --cell CELL --train copying-train.tsv --valid copying-dev.tsv --epochs 10 --out c.gguf; ./carnn test c.gguf --data copying-dev.tsv; ./carnn test c.gguf --data recalled.tsv
mnist | | gzip -dc train-images-idx3-ubyte.gz | tail -c +17 > images; gzip -dc train-labels-idx1-ubyte.gz | tail -c +9 > labels; { printf '\0\0\10\3\0\0\326\330\0\0\0\34\0\0\0\34'; head -c 43120000 images; } > train-images; { printf '\0\0\10\3\0\0\23\210\0\0\0\34\0\0\0\34'; tail -c 3920000 images; } > dev-images; { printf '\0\0\10\1\0\0\326\330'; head -c 55000 labels; } > train-labels; { printf '\0\0\10\1\0\0\23\210'; tail -c 5000 labels; } > dev-labels
mnist CELL=icarnn,lstm --layers 1 | | ./carnn train --task signal --columns 28 --cell CELL MNIST --epochs 10 --out m.gguf
mnist OPTION=--hidden 90 --epochs 8,--hidden 64 --skip 5 --epochs 24,--hidden 64 --skip 9 --epochs 24,--hidden 64 --skip 21 --epochs 20,--hidden 95 --skip 21 --epochs 24 | | ./carnn train --task signal --cell rnn --layers 1 --batch 50 --lr 0.0004 OPTION MNIST --out m.gguf
mnist OPTION=--hidden 90 --epochs 8,--hidden 64 --skip 5 --epochs 8,--hidden 64 --skip 9 --epochs 24,--hidden 95 --skip 11 --epochs 24 | | ./carnn train --task signal --cell rnn --layers 1 --batch 50 --lr 0.0004 OPTION MNIST --permutation permutation-92916.txt --out m.gguf
mnist OPTION=--epochs 14,--epochs 4 --permutation permutation-92916.txt | | ./carnn train --task signal --cell lstm --skip 5 --layers 1 --batch 50 --lr 0.0004 OPTION MNIST --out m.gguf
mnist OPTION=--cell ncarnn --epochs 20,--cell icarnn --epochs 6,--cell icarnn --memory 784 --epochs 6 | | ./carnn train --task signal --layers 1 --batch 50 OPTION MNIST --out m.gguf
mnist OPTION=,--memory 784 | | ./carnn train --task signal --layers 1 --batch 50 --cell ncarnn OPTION --epochs 8 MNIST --permutation permutation-92916.txt --out m.gguf
mnist GRAPH=fig4.3b:1:17,fig4.3b:2:17,fig4.3b:3:17,fig4.3b:4:17 | | ./carnn train --task signal --cell rnn --encoder graph --graph GRAPH --layers 1 --batch 50 --lr 0.0004 --epochs 4 MNIST --out m.gguf

depth | quick | ./carnn depth sh st bu td fig4.3a:17 fig4.3b:1:17 fig4.3b:2:17 fig4.3b:3:17 fig4.3b:4:17 grid:2x3 grid:3x9 data/graph.txt
bench ROW=cell --threads 1,lm --threads 1,beside,dialog --threads 1,encoder --threads 1,answer --threads 1,signal --threads 1 | quick | ./carnn bench ROW

skip-thought | | rm -f *.prose; for f in books/*.txt; do case $f in *looking-glass*) to=held ;; *just-so*) to=held ;; *) to=read ;; esac; { grep . $f; echo; } >> $to.prose; done
skip-thought CELL=gru-after,mi-gru;DECODER=gru-after,ncarnn | | ./carnn train --task skip-thought --cell CELL --decoder DECODER PROSE --epochs 4 --out CELL-DECODER.gguf
skip-thought | | ./carnn train --task skip-thought --train held.prose VECTORS --vocab 5000 --epochs 1 --lr 1e-9 --out untrained.gguf
skip-thought | | sh data/transfer.sh untrained.gguf
skip-thought CELL=gru-after,mi-gru;DECODER=gru-after,ncarnn | | sh data/transfer.sh CELL-DECODER.gguf
END
}

# expand NAME...: the rows of these sections, all without a name: row, name with its loops, command, tab
# between; with `shown` set, as they are in the table.
expand() {
    table | awk -v OFS='\t' -v names="$*" -v quick="$QUICK" -v seeds="$SEEDS" \
        -v shown="$shown" '
        # Each whole word `word` of `s` becomes `value`.
        function replace(s, word, value,    out, at, end) {
            while ((at = index(s, word)) > 0) {
                end = at + length(word)
                if (substr(s, at - 1, at > 1) ~ /[A-Za-z0-9_]/ || substr(s, end, 1) ~ /[A-Za-z0-9_]/)
                    out = out substr(s, 1, end - 1)
                else out = out substr(s, 1, at - 1) value
                s = substr(s, end)
            }
            return out s
        }
        function loop(loops, label, command,    rest, name, value, count, i) {
            if (loops == "") {
                for (i = parts; i > 0; i--) command = replace(command, part[i], text[i])
                gsub(/  +/, " ", command)
                print row, label, command
                return
            }
            rest = index(loops, ";") ? substr(loops, index(loops, ";") + 1) : ""
            sub(/;.*/, "", loops)
            name = substr(loops, 1, index(loops, "=") - 1)
            count = split(substr(loops, index(loops, "=") + 1), value, ",")
            if (name == "SEED" && seeds && seeds < count) count = seeds
            for (i = 1; i <= count; i++)
                loop(rest, label " " name "=" (value[i] == "" ? "none" : value[i]),
                     replace(command, name, value[i]))
        }
        BEGIN { wanted = split(names, want, " ") }
        /^[A-Z0-9]+ = / { part[++parts] = $1; text[parts] = substr($0, index($0, "=") + 2); next }
        match($0, /^[^|]*\|[^|]*\| /) {
            command = substr($0, RLENGTH + 1)
            loops = substr($0, length($1) + 2, index($0, " |") - length($1) - 2)
            take = !wanted && (!quick || $0 ~ /^[^|]*\| quick \|/)
            for (i = 1; i <= wanted; i++) if (want[i] == $1) take = found[i] = 1
            row++
            if (take && shown) print row, $1 (loops == "" ? "" : " " loops), command
            if (take && !shown) loop(loops, $1, command)
        }
        END {
            for (i = 1; i <= wanted; i++) if (!found[i]) {
                print "results.sh: no section " want[i] | "cat >&2"
                exit 2
            }
        }'
}

# means FILE: lines "label<TAB>what is printed" of one row; mean and deviation over the seeds of a label
means() {
    awk -F '\t' '{
        sub(/ SEED=[0-9]+/, "", $1)
        if (!($1 in labels)) { labels[$1] = ++count; label[count] = $1 }
        words = split($2, word, " ")
        for (i = 2; i < words; i += 2) {
            at = $1 SUBSEP word[i]
            if (!n[at]++) order[$1] = order[$1] " " word[i]
            sum[at] += word[i + 1]
            squares[at] += word[i + 1] * word[i + 1]
        }
    }
    END {
        for (k = 1; k <= count; k++) {
            printf "%s, over seeds:", label[k]
            words = split(order[label[k]], word, " ")
            for (i = 1; i <= words; i++) {
                at = label[k] SUBSEP word[i]
                mean = sum[at] / n[at]
                off = n[at] > 1 ? (squares[at] - n[at] * mean * mean) / (n[at] - 1) : 0
                printf "  %s %.4f +- %.4f", word[i], mean, sqrt(off > 0 ? off : 0)
            }
            print ""
        }
    }' "$1"
}

# run NAME...: each command, what it prints, and how long it took; all that went wrong at the end
run() {
    failed=0 last= section=
    while IFS="$tab" read -r row label command <&3; do
        if [ "$row" != "$last" ] && [ -s scores ]; then means scores; fi
        [ "$row" = "$last" ] || : > scores
        last=$row
        [ "${label%% *}" = "$section" ] || rm -f ./*.gguf ./*.gguf.resume
        section=${label%% *}
        printf '\n%s\n    %s\n' "$label" "$command"
        start=$(date +%s)
        sh -e -c "$command" > out 2> err < /dev/null
        code=$?
        cat out
        case $command in *yardstick.sh*|*babi_reduced*) cat err ;; esac
        [ $code -eq 0 ] || { tail -n 5 err; failed=$((failed + 1)); }
        memory=$(sed -n 's/.*  \([0-9]* MiB\)$/, \1/p' err | tail -n 1)
        echo "$(($(date +%s) - start)) s$memory$([ $code -eq 0 ] || echo ", failed: exit $code")"
        case $label in *SEED=*)
            sed -nE "s/  \(.*//; s/^(valid|test|mean|vote) /$label$tab&/p" out >> scores ;;
        esac
    done 3< commands
    [ ! -s scores ] || means scores
    echo
    echo "$(wc -l < commands | tr -d ' ') commands, $failed failed"
    [ "$failed" -eq 0 ]
}

tab=$(printf '\t')
shown=
case $1 in --list|--commands)
    [ "$1" = --commands ] || shown=1
    shift
    rows=$(expand "$@") || exit 2
    printf '%s\n' "$rows" | cut -f 2- | sed "s/$tab/ | /"
    exit ;;
esac
[ -d "$DATA" ] || { echo "results.sh: DATA=FOLDER is missing, or no folder: the data sets" >&2; exit 2; }
top=$PWD
carnn=${CARNN:-./carnn}
[ -x "$carnn" ] || { echo "results.sh: needs $carnn (make)" >&2; exit 2; }
case $carnn in /*) ;; *) carnn=$top/$carnn ;; esac
data=$(cd "$DATA" && pwd)
work=${WORK:-build/results}
mkdir -p "$work" && cd "$work" || exit 1
for file in "$data"/*/* "$data"/cbt/derived "$data"/books; do ln -sfn "$file" .; done
ln -sfn "$data" published
ln -sfn "$top/data" data
ln -sfn "$top/tests" tests
ln -sfn "$carnn" carnn
PATH=$PWD:$top/build:$PATH
echo "$(./carnn help | head -n 1); $(uname -m), $(getconf _NPROCESSORS_ONLN) processors"
expand "$@" > commands || exit 2
run
