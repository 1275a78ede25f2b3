#!/bin/sh
# The command line: sh tests/cli.sh [path of the program]

. "$(dirname "$0")/check.sh"
program=$(path "${1:-./carnn}")
carnn=$program
data=$(cd "$(dirname "$0")/../data" && pwd)
cd "$folder" || exit 1

# start FILE WORD ARGUMENT...: in the background, until WORD is in FILE or the program has ended
start() {
    file=$1
    word=$2
    shift 2
    : >err
    "$carnn" "$@" >out 2>err &
    process=$!
    while ! grep -q -e "$word" "$file" 2>grep && kill -0 $process 2>grep; do
        sleep 0.05 2>sleep || sleep 1
    done
}

# interrupt EXIT: what was started
interrupt() {
    kill -INT $process
    wait $process
    code=$?
    check "interrupted: exit $code, expected $1" [ $code -eq "$1" ]
}

says() { check "no \"$2\" in $1: $(head -n 1 "$1")" grep -q -e "$2" "$1"; }
lines() { check "$1 has $(wc -l <"$1") lines, expected $2" [ "$(wc -l <"$1")" -eq "$2" ]; }
empty() { check "$1 is not empty: $(head -n 1 "$1")" [ ! -s "$1" ]; }

# value FILE KEY: a number in flat JSON
value() { sed 's/.*"'"$2"'": \([^,}]*\).*/\1/' "$1"; }

small="--task dialog --hidden 16 --embedding 16 --valid $data/dialog-dev.txt"
train="train $small --train $data/dialog-train.txt --threads 1"

# ---- help and usage

run 0 help
says out '^usage: carnn COMMAND'
empty err
run 0 --help
names='train test predict chat explain ask cloze rank generate info plot depth gradcheck bench help version'
for name in $names; do
    run 0 help $name
    says out "^usage: carnn $name"
    says out '^examples:'
    empty err
    check "an option of help $name reaches column 80" [ -z "$(awk '/^  --/ && length > 79' out)" ]
    check "help $name has an option twice" \
        [ -z "$(sed '/^task/,$d' out | grep -o '^  --[a-z-]*' | sort | uniq -d)" ]
    sed -n '/^  --help /d;s/^  \(--[a-z-]*\).*/\1/p' out | while read -r option; do
        grep -q -e '^usage: .*\[options\]' -e "^usage: .*$option" out || echo "$option"
    done >missing
    check "usage of $name lacks $(tr '\n' ' ' <missing)" [ ! -s missing ]
    run 0 $name --help
done
run 0 help train
says out '--lr N .*\[0\.[0-9]*, [a-z]* 0\.[0-9]*'
check 'a default that is that of the tasks before' [ "$(tr '\n' ' ' <out | tr -s ' ' |
    grep -c '\[\([0-9.]*\),[^]]* \1[],]')" -eq 0 ]
says out 'icarnn'
for task in dialog lm answer classify pair cloze signal skip-thought; do
    says out "^task $task: "
    sed -n "/^task $task: /,/^\$/p" out >task
    says task '^  data: .'
    says task '^  --[a-z-]* \[*N.* \[[a-z0-9].*\]$'
done
check 'an option of one task is among those of another' \
    [ "$(sed -n '/^task lm: /,/^$/p' out | grep -c -e --overlap -e --pooling)" -eq 0 ]

# ---- the man page has what help has, and shells complete it

for name in $names; do
    run 0 help $name
    grep -o '^  --[a-z0-9-]*' out | sed 's/.*--/--/'
done | sort -u >options
run 0 help --man
sed 's/\\-/-/g' out >page
says page '^\.TH CARNN 1'
while IFS= read -r option <&3; do says page "^\.B $option\b"; done 3<options
check 'too few options are known' [ "$(wc -l <options)" -gt 60 ]
for word in 'task cloze: ' 'carnn chat' 'icarnn' 'EXIT STATUS'; do says page "$word"; done
for reader in 'groff -man -ww -Tutf8' 'mandoc -Tlint -Werror' 'man --warnings -l'; do
    command -v "${reader%% *}" >where || { echo "left out: ${reader%% *} reads the man page"; continue; }
    $reader out >read 2>err
    code=$?
    check "$reader: exit $code" [ $code -eq 0 ]
    empty err
done

# completes WORD EXPECTED ARGUMENT...: bash offers EXPECTED for an unfinished WORD behind ARGUMENTs
completes() {
    typed=$1
    offered=$2
    shift 2
    bash -c '. ./completion && COMP_WORDS=(carnn "$@") COMP_CWORD=$# && _carnn
        printf "%s\n" "${COMPREPLY[@]}"' bash "$@" "$typed" >out 2>err
    check "completion of $* $typed: $(tr '\n' ' ' <out)" [ "$(tr '\n' ' ' <out)" = "$offered " ]
    empty err
}

for shell in bash zsh fish; do
    run 0 help --complete $shell
    empty err
    mv out completion
    if command -v $shell >where; then check "$shell cannot read it" quiet $shell -n completion
    else echo "left out: $shell is not installed"; fi
    [ $shell != bash ] || ! command -v bash >where && continue
    completes tra train
    completes de depth help
    completes ver version
    completes --ma --man help
    completes ver version help
    completes clas classify help
    completes --dropo --dropout train
    completes --exp --explain chat model.gguf
    completes '' '' train --lr
    completes '' '' info
    completes --j --json info
    completes cl 'classify cloze' train --task
    completes icar icarnn train --task dialog --cell
    completes icar icarnn train --task dialog --cell =
    completes = 'sgd adagrad rmsprop adadelta adam' train --optimizer
    completes sia siamese train --model
done
if command -v zsh >where; then
    "$carnn" help --complete zsh >completion
    for word in '' --j --task=; do
        zsh -fc '_describe() { [[ -n ${(P)2} ]] && print -l -- ${(P)2}; }; _files() { print files; }
            compset() { :; }; words=(carnn info "$1"); CURRENT=3; . ./completion' zsh "$word"
    done >out 2>err
    check 'zsh offers files, options, then tasks' [ "$(cut -d : -f 1 out | sed 5q | tr '\n' ' ')" = \
        'files --json --help dialog lm ' ]
fi
if command -v fish >where; then
    "$carnn" help --complete fish >completion
    fish -c 'source completion; complete -C "carnn train --task cla"' >out 2>err
    says out '^classify'
fi
run 0 help classify
says out '^task classify: '
says out '^  --pooling NAME '
says out '^  --cell NAME .*\[lstm\]$'
says out '^examples:$'
check 'help of a task has options of another' [ "$(grep -c -e '--kb-rows' out)" -eq 0 ]
mv out classify.txt
run 0 train --task classify --help
check 'help of a task in two ways' cmp -s out classify.txt
for own in dialog:candidates dialog:unsure signal:labels signal:permutation answer:clean \
    lm:probe classify:probe signal:probe; do
    run 0 help ${own%:*}
    says out "^  --${own#*:} "
    check "help ${own%:*} names its task twice" [ "$(grep -c "^  --${own#*:} .* ${own%:*}[,:]" out)" -eq 0 ]
done
run 0 help pair
check 'help pair has options of other tasks' \
    [ "$(grep -c -e --candidates -e --unsure -e --labels -e --permutation -e --clean -e --probe out)" -eq 0 ]
run 0 help cloze # the name of a command and of a task
says out '^usage: carnn cloze '
says out '^task cloze: '
for name in generate predict gradcheck bench; do
    run 0 help $name
    check "$name has options of a training" [ "$(grep -c -e '^model:' -e '^training:' out)" -eq 0 ]
    says out '^  --seed N \|^  --threads N '
done
run 0 help cells
says out '^  icarnn  *CARNN whose gates read context and input$'
run 2 help clasify
says err 'unknown command "clasify"; did you mean "classify"?'
check 'a command and a task of one name are listed once' [ "$(grep -o 'cloze' err | wc -l)" -eq 1 ]
run 2 train --task clasify --help
says err 'unknown task "clasify"; did you mean "classify"?'
for words in 'help train' 'help cells' 'help lm' 'help --man' 'help --complete bash' version; do
    # shellcheck disable=SC2086  # words
    run 2 $words more
    says err '"more" is one too many\|expected one of NAME, --man and --complete SHELL$'
    empty out
done
run 2 help --complete zsh --man
run 2 help train --json
run 2 version --json
says err '.-json is an option of train, .*, not of version$'
run 2 test --man
says err '.-man is an option of help, not of test$'
run 2 gen
says err 'did you mean "generate"?'
run 2 versoin
says err 'did you mean "version"?'
run 2 help --complete zish
says err 'did you mean "zsh"? (bash, zsh, fish)'
run 2 help --complete

run 0 --version
says out '^carnn [0-9]'
run 0 -version
says out '^carnn [0-9]'
run 0 -help
says out '^usage: carnn COMMAND'
CARNN_SIMD=portable
export CARNN_SIMD
run 0 --version
says out '(portable)$'
run 0 bench exp
says out '^kernel  exp  *[0-9.]* G/s'
run 0 bench exp --json
says out '"simd": "portable", "threads": [1-9]'
says out '{"group": "kernel", "name": "exp", "unit": "G/s", "value": [0-9.]*'
CARNN_SIMD=nothing
run 2 --version
says err '^carnn: simd: "nothing" is no path of this machine (the best here is "'
run 2 bench exp --json
empty out
unset CARNN_SIMD
run 2 bench nosuch --json
empty out
run 2 bench icarm
says err 'did you mean "icarnn"?'
run 2 bench kernle
says err 'unknown name "kernle"; did you mean "kernel"? (peak, kernel, cell, encoder, task, rnn, '
run 2 bench icarnn --simd portabel
says err 'unknown simd "portabel"; did you mean "portable"? (.*portable)$'
run 2
empty out
says err '^usage: carnn COMMAND'
run 2 "$(printf 'a\tb\033')"
says err '^carnn: unknown command "a?b?" ('
run 2 trian
says err 'did you mean "train"?'
empty out
run 2 "$(printf '%0300d' 0)"
check 'a long word is taken for a command' [ "$(grep -c 'did you mean' err)" -eq 0 ]
run 2 train --droput 0.1
says err 'did you mean --dropout?'
run 2 train --minn-count 2
says err 'did you mean --min-count?'
run 2 train --cell icarn
says err 'did you mean "icarnn"?'
run 2 train --optimizer adm
says err 'did you mean "adam"?'
run 2 train --task dialogue --train x --out y
says err 'did you mean "dialog"?'
says err '(.*dialog, .*answer'
run 2 train --task zzz
says err 'unknown task "zzz" (.*dialog, .*answer'
run 2 train --cell LSTM
says err 'unknown cell "LSTM"; did you mean "lstm"?'
run 2 train --task signal --train x --out y --target_kind step
says err 'unknown target-kind "step"; did you mean "steps"?'
run 2 train -t 5
says err 'unknown option -t$'
run 2 train --task lm --train x --out y --overlap 0
says err '--overlap is an option of the tasks answer, pair, not of lm$'
run 2 train --max_words 5 --task lm --train x --out y
says err '--max-words is an option of the task classify, not of lm$'
run 2 train --overlap 0 --train x --out y
says err 'task is missing'
run 2 train --task answer --train x --out y --overlapp 0
says err 'unknown option --overlapp; did you mean --overlap?'
for words in 'chat x --data y' 'chat x --color' 'explain x --top 2' 'bench --seed 1' 'plot x --json' \
    'rank x --explain' 'generate x --top 2' 'cloze x --threads 1'; do
    # shellcheck disable=SC2086  # words
    run 2 $words
    says err 'is an option of .*, not of '
done
run 2 train --task lm --train x --out y --kb-rows 3
says err '--kb-rows is an option of the task dialog, not of lm$'
run 2 test x --data y --overlap 0
says err '--overlap is an option of train, not of test$'
run 2 predict x --quiet
says err '--quiet is an option of train, not of predict$'
run 2 train --task lm --train x --out y --batch-size 4
says err 'unknown option --batch-size; did you mean --batch?'
run 2 train --task lm --train x y --out z
says err '"y" is one too many; each file has its option: --train A --train B'
run 2 predict x y
says err '"y" is one too many; data are given by --data FILE'
for option in --train --out --vectors --from --log; do
    run 2 train --task lm "$option" ''
    says err "^carnn: $option: expected the name of a file, found \"\"\$"
done
for name in info test plot help; do
    run 2 $name ''
    says err "^carnn: $name: expected no empty argument\$"
done
# shellcheck disable=SC2046  # 65 words
for name in test plot depth; do
    run 2 $name $(seq 65) --out x
    says err "^carnn: $name: expected at most 64 files, found 65\$"
done
run 2 $train --told -1 --out d.gguf
says err '^carnn: --told: expected a whole number from 0 to 1, found "-1"$'
run 2 train --task answer --train x --out y --overlap much
says err 'overlap: expected a whole number'
for number in 0x10 ' 16' 1e400 16x; do
    run 2 generate a.gguf --words "$number"
    says err '^carnn: --words: expected a whole number from 1 to 1e+15, found "'
done
run 2 generate a.gguf --temperature 1e30
says err '^carnn: --temperature: expected a number from 0 to 1e+15, found "1e30"$'
run 2 train --lr
says err 'lr needs a value'
run 2 train --lr --json
says err 'lr needs a value'
run 2 train --lr fast
says err 'lr: expected a number'
run 2 train --dropout 7
says err 'dropout: expected a number'
run 2 train --json=yes
says err 'takes no value'
run 2 train --train x --out y
says err 'task is missing'
run 2 train --task dialog --out y
says err 'train FILE is missing'
run 2 train --task dialog --train x
says err 'out FILE is missing'
run 2 test
run 2 info a b
run 2 chat model --top 3
run 2 generate a.gguf --words 1.5
says err 'expected a whole number from 1 to 1e+15, found "1.5"'
run 0 predict a b --labels c --labels d --help
empty err

# ---- training

# shellcheck disable=SC2086  # the lists of arguments are meant to be split
{
run 0 $train --epochs 2 --out a.gguf
says out 'accuracy 0\.'
says err '^[0-9]* examples, [0-9]* words, [0-9]* choices, [0-9]* parameters; [a-z0-9]*, threads: 1$'
says err '^epoch 1/2 100%  loss .*accuracy .*best .* left  [0-9]*/s  lr 0\.00.* [1-9][0-9]* MiB$'
lines err 3
check 'a carriage return without a terminal' [ "$(tr -cd '\r' <err | wc -c)" -eq 0 ]
check 'the checkpoint was left' [ ! -e a.gguf.resume ]
check 'files were left' [ "$(echo a.gguf*)" = a.gguf ]
run 0 $train --epochs=2 -out b.gguf --json --quiet --log log.jsonl --test $data/dialog-test.txt
empty err
lines out 1
for key in task cell parameters examples seconds seed accuracy dialog_accuracy loss best_epoch \
    test; do
    says out "\"$key\": "
done
check 'training examples' [ "$(value out examples)" -gt 0 ]
lines log.jsonl 2
says log.jsonl '"epoch": 2, "loss": '
says log.jsonl '"lr": 0\.00[0-9]*, "gradient_norm": [0-9.]*, "rate": [1-9]'
cp log.jsonl kept.jsonl
run 1 train $small --train no-such-file --out f.gguf --log kept.jsonl
check 'the log was emptied for nothing' cmp -s log.jsonl kept.jsonl
if [ -c /dev/full ]; then
    run 1 $train --epochs 1 --out c.gguf --quiet --log /dev/full
    says err '/dev/full: cannot be written'
fi
"$carnn" $train --epochs 2 --out piped.gguf 2>&1 | head -n 1 >out
check 'progress that nobody reads ends a training' cmp -s piped.gguf b.gguf
check 'same seed, other bytes' cmp -s a.gguf b.gguf
run 0 train $small --train=$data/dialog-train.txt --threads=2 -epochs 2 --out b.gguf --quiet
check 'two threads, other bytes' cmp -s a.gguf b.gguf
CARNN_SIMD=portable
export CARNN_SIMD
run 0 $train --epochs 2 --out b.gguf --quiet
unset CARNN_SIMD
check 'portable, other bytes' cmp -s a.gguf b.gguf
run 0 $train --epochs 2 --out b.gguf --quiet --seed 2
check 'other seed, same bytes' [ "$(cmp -s a.gguf b.gguf; echo $?)" -eq 1 ]
run 0 $train --lr 0.01 --epochs 1 --out c.gguf --quiet
run 0 $train -lr 0.01 --epochs 1 --out d.gguf --quiet
check '-lr is not --lr' cmp -s c.gguf d.gguf
run 0 $train --out d.gguf --epochs 100000 --patience 0 --max-time 0.5 --quiet
says err 'the time is over'
check 'no checkpoint when the time is over' [ -s d.gguf.resume ]
run 0 $train --out d.gguf --epochs 100000 --patience 0 --max-time 1 --quiet --resume
check 'the checkpoint that it goes on from is said to be lost' \
    [ "$(grep -c 'will be overwritten' err)" -eq 0 ]
run 0 $train --out patient.gguf --epochs 9 --patience 1 --max-time 1000 --lr 1e-20 --quiet
check 'a training without patience goes on' [ ! -e patient.gguf.resume ]
empty err
run 5 $train --out e.gguf --epochs 2 --optimizer sgd --lr 1e6 --clip 0 --quiet
says err 'diverged'
for lr in 5 0.3; do
    run 5 $train --out new.gguf --epochs 1 --hidden 32 --embedding 32 --lr $lr --quiet
    says err 'diverged in epoch 1, step [0-9]*: the loss is [0-9.e+]*, it began with 5\.[0-9]*; try --lr 0\.005$'
    empty out
done
run 5 train --task lm --hidden 32 --embedding 32 --lr 0.3 --epochs 4 --quiet --out new.gguf \
    --train $data/lm-dev.txt
says err 'try --lr 0\.004$'
says err '^carnn: new.gguf has the weights of epoch 2$'
run 0 test new.gguf --data $data/lm-dev.txt
rm new.gguf

printf 'hello 1 2 3 4\nfood 4 3 2 1\n' >vectors.txt
four="--hidden 4 --embedding 4 --epochs 1 --lr 1e-20 --quiet"
run 0 $train $four --vectors vectors.txt --out e.gguf
run 0 $train $four --out f.gguf
check 'word vectors make no difference' [ "$(cmp -s e.gguf f.gguf; echo $?)" -eq 1 ]
rm f.gguf
run 2 $train --vectors vectors.txt --out f.gguf
says err 'vectors.txt: '
mv vectors.txt min_count.txt # what is called like an option is a file all the same
run 2 $train --vectors min_count.txt --out f.gguf
says err '^carnn: min_count.txt: '
mv min_count.txt vectors.txt

"$carnn" $train --epochs 2 --out d.gguf --log closed.jsonl >out 2>&-
check 'without standard error: another exit code' [ $? -eq 0 ]
lines closed.jsonl 2
run 0 train --task lm --train $data/lm-dev.txt --hidden 4 --epochs 1 --out d.gguf
says err '^no --valid: '
check 'the best of epochs that are not compared' [ "$(grep -c ' best [0-9]' err)" -eq 0 ]
"$carnn" $train --epochs 1 --quiet --out d.gguf >&- 2>err
check 'without standard output: another exit code' [ $? -eq 1 ]
mkdir d.gguf.resume
run 1 $train --epochs 100000 --patience 0 --max-time 0.1 --out d.gguf --quiet --seed 9
run 0 $train --epochs 1 --out d.gguf --quiet --seed 9 # that checkpoint is not needed
says err 'd.gguf.resume: cannot be written: '
check 'what is no checkpoint was removed' [ -d d.gguf.resume ]
says err 'd.gguf.resume: cannot be written: .*; so --resume cannot go on'
rmdir d.gguf.resume
run 0 $train --epochs 1 --max-time 0.001 --out d.gguf --quiet --seed 9
(ulimit -f 100 && "$carnn" $train --epochs 1 --out d.gguf --quiet --seed 9 --resume) >out 2>err
check 'the model was small enough' [ $? -eq 0 ]
says err 'd.gguf.resume: cannot be written: '
check 'an earlier checkpoint of a training that is done was left' [ ! -e d.gguf.resume ]
run 0 info d.gguf
says out '^seed  *9$'

# ---- going on from a model with new data

cp "$data/bike.txt" more.txt
printf '\n1 do you have tandems\tYes , two tandems .\n2 and helmets\tHelmets are free .\n' >>more.txt
run 0 train --task dialog --train "$data/bike.txt" --out old.gguf --hidden 250 --quiet
run 0 train --from old.gguf --train more.txt --out more.gguf --quiet --threads 1
run 0 train --from old.gguf --train more.txt --out again.gguf --quiet --threads 2
check 'other bytes when a model is trained on' cmp -s more.gguf again.gguf
printf 'do you have tandems\n\nhello there\n' | "$carnn" chat more.gguf >out
says out '^Yes , two tandems \.$'
says out '^Hello ! Do you want to borrow a bike ?$'
run 0 info more.gguf
says out '^hidden  *250$'
run 2 train --from old.gguf --task lm --train more.txt --out f.gguf
says err 'the model to go on from is of the task dialog, not lm'
run 2 train --from old.gguf --cell lstm --train more.txt --out f.gguf
says err 'cell and sizes are those of that model$'
run 2 train --from old.gguf --train more.txt --out old.gguf
says err 'old.gguf is to be written, and is named once more'
run 1 train --from no-such-model --train more.txt --out f.gguf
run 4 train --from more.txt --train more.txt --out f.gguf

# ---- a model that says where it has no answer

run 0 train --task dialog --train "$data/bike.txt" --unsure 'I do not know .' --out u.gguf --quiet
run 0 predict u.gguf --data "$data/bike-unsure.txt"
says out '^I do not know \.$'
printf 'can i pay by card ?\nhello\n' | "$carnn" chat u.gguf >out
check 'no answer, then one' [ "$(cat out)" = 'I do not know .
Hello ! Do you want to borrow a bike ?' ]
run 0 test u.gguf --data "$data/bike-unsure.txt"
says out 'declined 0\.5000'
run 0 info u.gguf
says out '^unsure  *I do not know \.$'
run 2 train --task lm --train "$data/lm-train.txt" --unsure 'I do not know .' --out f.gguf
says err 'unsure: a model of the task lm does not reply'
run 2 train --task dialog --train "$data/bike.txt" --unsure ' ' --out f.gguf
says err 'unsure: expected a line of text'
run 2 train --task dialog --train "$data/bike.txt" --unsure 'See you !' --out f.gguf
says err 'unsure: "See you !" is one of the candidates'
printf '1 hi\tsee min_count now\n' >quoted.txt # what is called like an option, and quoted
run 2 train --task dialog --train quoted.txt --unsure 'see min_count now' --out f.gguf
says err '"see min_count now" is one of the candidates'

# ---- what is found before the training starts

run 1 $train --out no-such-folder/m.gguf --epochs 100000
says err 'no-such-folder/m.gguf: cannot be written'
empty out
run 1 $train --out f.gguf --log no-such-folder/log
run 1 train $small --train no-such-file --out f.gguf
says err 'no-such-file: '
printf '1 hi\thello\nabc\tdef\n' >bad.txt
run 3 train $small --train bad.txt --out f.gguf
says err 'bad.txt:2: expected '
empty out
run 1 $train --out f.gguf --resume
says err '^carnn: f.gguf.resume: No such file or directory (is the training done already?)$'
mkdir f.gguf.resume
run 1 $train --out f.gguf --resume
says err '^carnn: f.gguf.resume: not a regular file$'
rmdir f.gguf.resume
check 'a failed training left a file' [ ! -e f.gguf ]
if [ "$(id -u)" = 0 ]; then
    : >owned.gguf
    chown 12345:23456 owned.gguf
    run 0 $train --epochs 1 --out owned.gguf
    ls -ln owned.gguf >out
    says out ' 12345 *23456 '
fi
ln -s no-such-folder/f.gguf f.gguf
run 1 $train --out f.gguf
says err 'f.gguf: cannot be written: No such file'
check 'a link was replaced' [ -h f.gguf ]
ln -s -f f.gguf f.gguf
run 1 $train --out f.gguf
says err 'f.gguf: cannot be written: .*symbolic link'
rm f.gguf

# ---- what is written is no file that is read or written, too

cp "$data/dialog-dev.txt" mine.txt
ln -s mine.txt link.txt
ln -s . same
kept="--task dialog --train mine.txt"
for names in '--out mine.txt' '--out same/link.txt' '--out f --log link.txt' '--out f --log f' \
    '--out f --log f.resume' '--out vectors.txt --vectors same/vectors.txt' \
    '--out f --log bad.txt --valid bad.txt' '--out f --log bad.txt --candidates bad.txt' \
    '--out f --log bad.txt --from bad.txt' '--out f --log bad.txt --permutation bad.txt' \
    '--log bad.txt --folds-by bad.txt'; do
    run 2 train $kept --epochs 1 $names
    says err 'are the same file\|is to be written, and is named once more'
done
"$carnn" $train --epochs 1 --candidates - --out f.gguf <"$data/dialog-candidates.txt" >out 2>err
check 'no candidates from standard input' [ $? -eq 0 ]
says err " $(sort -u "$data/dialog-candidates.txt" | wc -l) choices, "
rm f.gguf
run 2 train $kept --out f --log same/f.jsonl --probe f.jsonl
check 'a log of no training' [ ! -e f.jsonl ]
"$carnn" train --task dialog --train - --out mine.txt <mine.txt >out 2>err
check 'standard input as the model file' [ $? -eq 2 ]
run 2 test a.gguf --data mine.txt --run link.txt
says err 'link.txt and mine.txt are the same file'
run 2 test link.txt --data bad.txt --qrels mine.txt
run 2 test a.gguf --data mine.txt --qrels f --run f
run 2 test a.gguf --data mine.txt --qrels f --run ./f
says err 'f and ./f are the same file'
run 2 test a.gguf --data mine.txt --qrels f --run same/../f
run 2 plot log.jsonl --out same/log.jsonl
cp log.jsonl run.svg.resume
run 0 plot run.svg.resume --out run.svg # only a training writes a checkpoint
printf '{"epoch":%d,"loss":1,"valid":{"loss":1,"pearson":%s}}\n' 1 -0.25 2 0.15 >below.jsonl
run 0 plot below.jsonl
says out '^ *0 |'
check 'the mark of 0 is not 0' [ "$(grep -c e-17 out)" -eq 0 ]
mkdir qa
for name in qa/f qa/f.resume; do
    run 2 train --task answer --train qa --out "$name"
    says err 'is in the folder qa, which is read'
done
run 2 train --task answer --model ca --alignment file --train mine.txt --out mine.txt.align
run 2 train --task answer --model ca --alignment file --train bad.txt --valid mine.txt \
    --out mine.txt.align
says err 'mine.txt.align is to be written, and is named once more'
run 2 train --task answer --model ca --alignment file --train qa/ --out qa.align
says err 'qa.align is to be written, and is named once more'
run 2 train --task lm --cell lstm --encoder graph --graph link.txt --train bad.txt --out mine.txt
says err 'mine.txt and link.txt are the same file'
check 'data is lost' cmp -s mine.txt "$data/dialog-dev.txt"
check 'a refused run left a file' [ ! -e f ]
run 0 train $kept --hidden 4 --epochs 1 --quiet --out /dev/null --log /dev/null
run 2 train $kept --out f --log same/f
says err 'f and same/f are the same file'
mkdir shut # where not even "." can be looked up; root always can
other=
[ "$(id -u)" = 0 ] && other='setpriv --reuid=12345 --clear-groups'
(cd shut && chmod 0 . && exec $other "$carnn" train --task lm --train t --out f --log f) >out 2>err
code=$?
if [ $code -eq 126 ] || [ $code -eq 127 ]; then echo 'left out: a folder that cannot be searched'
else
    check "a folder that cannot be searched: exit $code" [ $code -eq 2 ]
    says err 'f is to be written, and is named once more'
fi
chmod 700 shut

# ---- interrupted, and resumed to the same bytes

run 0 $train --epochs 20 --patience 0 --out whole.gguf --quiet
start err '^epoch 2/' $train --epochs 20 --patience 0 --out parts.gguf --log parts.jsonl
kill -TERM $process # one more: timeout signals a process and its group
interrupt 130
check 'no checkpoint after an interrupt' [ -s parts.gguf.resume ]
cp parts.gguf.resume kept.resume
run 4 info parts.gguf.resume
says err 'expected "carnn": the checkpoint of a training, with which --resume goes on$'
check 'no model after an interrupt' [ -s parts.gguf ]
empty out
begins=$(sed -n '/^$/=' "$data/dialog-train.txt" | sed -n 20p) # a dialog that a file may begin with
head -n "$begins" "$data/dialog-train.txt" >first.txt
tail -n "+$((begins + 1))" "$data/dialog-train.txt" >last.txt
run 2 $train --epochs 20 --patience 0 --out parts.gguf --quiet --resume --hidden 17
run 4 $train --epochs 20 --patience 0 --out parts.gguf --quiet --resume --lr 0.002
says err 'parts.gguf.resume: checkpoint of a training with lr = '
run 4 $train --epochs 1 --patience 0 --out parts.gguf --quiet --resume
says err 'parts.gguf.resume: checkpoint after [0-9]* epochs\{0,1\}, which are more than 1$'
long=$(printf '%064d' 0) # the name of a column
printf "$long,a,b,label\n1,2,3,x\n2,1,3,y\n" >columns.csv
run 0 train --task signal --train columns.csv --target label --inputs $long,a --hidden 4 \
    --epochs 100000 --patience 0 --max-time 0.1 --out columns.gguf --quiet
run 4 train --task signal --train columns.csv --target label --inputs $long,b --hidden 4 \
    --epochs 100000 --patience 0 --out columns.gguf --quiet --resume
says err "checkpoint of a training with inputs = $long,a, not $long,b: "
printf '{"epoch": 9' >>parts.jsonl # as a full disk leaves it
run 0 train $small --train first.txt --train last.txt --threads 1 --epochs 20 --patience 0 \
    --out parts.gguf --quiet --resume --log parts.jsonl # the same data
check 'resumed, other bytes' cmp -s whole.gguf parts.gguf
check 'the checkpoint was left' [ ! -e parts.gguf.resume ]
check 'the log does not go on' [ "$(grep -c -e '^{"epoch": 1,' -e '^{"epoch": 20,' parts.jsonl)" -eq 2 ]
check 'a line that was cut off has none of its own' grep -q '^{"epoch": 9$' parts.jsonl

# Killed behind its last checkpoint, a run has logged epochs that are trained once more: in plots the
# later lines count.
"$carnn" plot parts.jsonl >plotted 2>err
resume() { # LOG
    cp kept.resume parts.gguf.resume
    run 0 $train --epochs 20 --patience 0 --out parts.gguf --quiet --resume --log "$1"
}
resume parts.jsonl
check 'a resumed run does not log' [ "$(grep -c '^{"epoch": 20,' parts.jsonl)" -eq 2 ]
run 0 plot parts.jsonl
check 'epochs that are logged twice are drawn otherwise' cmp -s plotted out
mkfifo pipe
cat pipe >piped &
resume pipe
wait $!
says piped '^{"epoch": 20,'
rm pipe

(trap '' HUP # as nohup does
    start err '^epoch 2/' $train --epochs 20 --patience 0 --out parts.gguf
    kill -HUP $process
    wait $process)
check 'a hangup ends what nohup has started' [ $? -eq 0 ]

signals='TERM HUP'
if { sh -c 'kill -HUP $$'; } 2>/dev/null; then
    signals=TERM
    echo 'left out: SIGHUP, which is ignored here, as below nohup'
fi
for signal in $signals; do
    start err '^epoch 2/' $train --epochs 100000 --patience 0 --out ended.gguf
    kill -$signal $process
    wait $process
    check "SIG$signal: another exit code" [ $? -eq 130 ]
    check "SIG$signal: no model" [ -s ended.gguf ]
    rm -f ended.gguf*
done
mkdir gone
start err '^epoch 2/' $train --epochs 100000 --patience 0 --out gone/m.gguf
rm -r gone
interrupt 1
awk '{ line[NR] = $0 } END { for (i = 0; i < 1000; i++) for (j = 1; j <= NR; j++) print line[j] }' \
    "$data/lm-test.txt" >long.txt
start scored.gguf GGUF train --task lm --hidden 8 --embedding 8 --epochs 1 --threads 1 --quiet \
    --train "$data/lm-test.txt" --test long.txt --out scored.gguf
interrupt 130
empty out

# In the last report of a training, which waits as the pipe is full: nothing is left to do.
mkfifo full
sleep 600 <>full &
opens=$!
yes >full &
fills=$!
start last.jsonl '"epoch": 1,' train --task classify --train "$data/classify-dev.tsv" --hidden 8 \
    --epochs 1 --threads 1 --out last.gguf --log last.jsonl --probe full
kill -INT $process
kill $fills
cat full >rest &
reads=$!
wait $process
code=$?
kill $opens
wait $reads
check "interrupted in the last report: exit $code" [ $code -eq 130 ]
says err '^carnn: last.gguf has the weights of epoch 1$'
says err '^carnn: interrupted when it was done: --resume has nothing to do$'
check 'a training that is done has left a checkpoint' [ ! -e last.gguf.resume ]
rm full
}

# ---- scores

start=$(date +%s)
run 0 test a.gguf --data "$data/dialog-test.txt"
check 'more seconds than have passed' awk -v most=$(($(date +%s) - start + 1)) '{
    sub(/ s\)$/, ""); exit ($NF > most) }' out
says out '^a.gguf  accuracy '
lines out 1
run 0 test a.gguf --data "$data/dialog-test.txt" --json
lines out 1
for key in task cell parameters examples seconds seed accuracy dialog_accuracy loss; do
    says out "\"$key\": "
done
accuracy=$(value out accuracy)
examples=$(value out examples)
run 0 test a.gguf b.gguf c.gguf --data "$data/dialog-test.txt" --json
says out '^{"models": \[{.*}, {.*}, {.*}\], "vote": {.*}}$'
run 0 test a.gguf b.gguf --data "$data/dialog-test.txt"
says out '^vote '
lines out 3
cp a.gguf 'ä€.gguf'
run 0 test 'ä€.gguf' b.gguf --data "$data/dialog-test.txt"
says out '^ä€.gguf  accuracy '
says out '^b.gguf   accuracy '
run 0 test a.gguf b.gguf --data "$data/dialog-test.txt" --json
says out '"vote": .*"cell": "icarnn", "parameters": [0-9]*, "seed": null, ' # of several there is none
for order in '-k 1' '-r'; do # the same classes, in other orders: no vote
    sort $order "$data/classify-dev.tsv" >classes.tsv
    run 0 train --task classify --train classes.tsv --hidden 4 --epochs 1 --quiet --out "class$order.gguf"
done
run 0 test class-*.gguf --data classes.tsv
says err '^carnn: no vote: class-k 1.gguf and class-r.gguf cannot be averaged: their candidates or classes differ, or stand in another order$'
lines out 2
run 0 test class-*.gguf --data classes.tsv --json
says out '^{"models": \[{.*}, {.*}\]}$'
(echo 'no number'; cat "$data/dialog-test.txt") >after
(read -r line; "$carnn" test a.gguf --data - --json) <after >out 2>err
check 'standard input is opened again' [ "$(value out accuracy)" = "$accuracy" ]
run 2 test a.gguf
run 1 test a.gguf --data no-such-file
run 1 test no-such-file --data "$data/dialog-test.txt"
run 3 test a.gguf --data bad.txt
dd if=a.gguf of=cut.gguf bs=1000 count=1 2>err
run 4 test cut.gguf --data "$data/dialog-test.txt"
says err 'cut.gguf: '
run 4 info "$data/dialog-test.txt"
says err 'not a GGUF file'

# ---- ensembles: one file that scores as the models together did, and is taken like a model

for rule in mean vote greedy; do
    run 0 test a.gguf b.gguf c.gguf --data "$data/dialog-test.txt" --ensemble $rule \
        --valid "$data/dialog-dev.txt" --out all.gguf
    lines out 4
    says err "^$rule on .*dialog-dev.txt: accuracy 0.*, members: "
    says out "^$rule "
    sed -n "s/^$rule *\(accuracy.*\)  (.*/\1/p" out >printed
    run 0 test all.gguf --data "$data/dialog-test.txt"
    check "another $rule from the file" grep -q -F -e "$(cat printed)" out
    echo hello | "$carnn" chat all.gguf --explain >out 2>err
    check "what $rule explains is said to be exact, or not to be" \
        [ "$(grep -c '^not exact: the models vote' out)" -eq "$([ $rule = vote ]; echo $((!$?)))" ]
done
run 0 test a.gguf b.gguf c.gguf --data "$data/dialog-test.txt" --ensemble mean --out all.gguf --json
says out '^{"models": \[{.*}, {.*}, {.*}\], "ensemble": {.*"rule": "mean", "members": \["a.gguf", '
cp all.gguf kept.gguf
run 1 test a.gguf b.gguf --data no-such-file --ensemble vote --out all.gguf
check 'an ensemble is replaced by one that is not scored' cmp -s all.gguf kept.gguf
run 0 test all.gguf --data "$data/dialog-test.txt" --counts
says out 'accuracy_top2 0.*accuracy_top5 '
run 0 info all.gguf
says out '^ensemble        mean$'
says out '^member 2 '
check 'options of one member' [ "$(grep -c '^cell ' out)" -eq 0 ]
run 0 info all.gguf --json
says out '"best_epoch": 0, "scores": ' # that of its members
says out '"members": \[{.*}, {.*}, {.*}\], '
says out '"parameters": [0-9]*, "scores": {"loss": [0-9.]*, "accuracy": [0-9.]*, '
run 0 predict all.gguf --data "$data/dialog-test.txt" --top 2
lines out "$examples"
"$carnn" predict all.gguf --top 2 <"$data/dialog-test.txt" | cmp -s - out
check 'an ensemble: other answers from standard input' [ $? -eq 0 ]
run 0 explain all.gguf --data "$data/dialog-test.txt" --example 2
says out ' sum$'
"$carnn" chat all.gguf --explain <"$data/demo-chat.txt" >out 2>err
check 'an ensemble does not chat' [ $? -eq 0 ]
check 'an ensemble says nothing' [ -s out ]
run 0 test a.gguf b.gguf --data "$data/dialog-test.txt" --ensemble mean --share 0.5 \
    --valid "$data/dialog-dev.txt"
check 'half of two models is not one' [ "$(sed 's/.*members://' err | wc -w)" -eq 1 ]
run 0 test a.gguf b.gguf --data "$data/dialog-test.txt" --ensemble mean --share 1 \
    --valid "$data/dialog-dev.txt"
check 'all of two models are not two' [ "$(sed 's/.*members://' err | wc -w)" -eq 2 ]
for share in 0 1.5; do
    run 2 test a.gguf b.gguf --data "$data/dialog-test.txt" --ensemble mean --share $share
    says err '.-share: expected a number above 0, up to 1'
done
run 2 test a.gguf --data "$data/dialog-test.txt" --ensemble meen
says err 'unknown rule "meen"; did you mean "mean"?'
run 2 test a.gguf b.gguf --data "$data/dialog-test.txt" --ensemble greedy
says err '.-valid FILE is missing'
run 2 test a.gguf b.gguf --data "$data/dialog-test.txt" --ensemble mean --share 0.5
says err '.-valid FILE is missing'
run 2 test a.gguf b.gguf --data "$data/dialog-test.txt" --share 0.5
says err '.-valid and --share go with --ensemble'
run 2 test a.gguf b.gguf --data "$data/dialog-test.txt" --out x.gguf
says err '.-out goes with --ensemble, or with --quantise and one model'
run 0 test a.gguf --data "$data/dialog-test.txt" --quantise --out eight.gguf
sed 's/^[^ ]* *\(accuracy.*\)  (.*/\1/' out >printed
check 'a file of 8 bits is no smaller' [ "$(wc -c <eight.gguf)" -lt "$(wc -c <a.gguf)" ]
run 0 test eight.gguf --data "$data/dialog-test.txt"
check 'another model from the file of 8 bits' grep -q -F -e "$(cat printed)" out
run 0 info eight.gguf
says out '^tensors         word.weight ([0-9]*, [0-9]*), 8 bits$'
run 0 info eight.gguf --json
says out '"name": "word.weight", "rows": [0-9]*, "columns": 16, "bits": 8}'
run 0 test a.gguf eight.gguf --data "$data/dialog-test.txt" --quantise --ensemble mean --out two.gguf
check 'an ensemble of 8 bits is no smaller' [ "$(wc -c <two.gguf)" -lt "$(wc -c <all.gguf)" ]
run 2 test a.gguf eight.gguf --data "$data/dialog-test.txt" --quantise --out x.gguf
run 0 chat eight.gguf <"$data/demo-chat.txt"
run 2 test a.gguf all.gguf --data "$data/dialog-test.txt" --ensemble mean
says err '^carnn: all.gguf is an ensemble itself'
run 2 test a.gguf b.gguf --data "$data/dialog-test.txt" --ensemble mean --out a.gguf
run 2 train --task dialog --train "$data/dialog-test.txt" --from all.gguf --out x.gguf --quiet
says err 'is an ensemble'
head -c 70000 all.gguf >cut.gguf
run 4 test cut.gguf --data "$data/dialog-test.txt"

# ---- predict

tab=$(printf '\t')
run 0 predict a.gguf --data "$data/dialog-test.txt"
lines out "$examples"
grep "$tab" "$data/dialog-test.txt" | cut -f 2 | paste - out |
    awk -F '\t' '{ right += $1 == $2 } END { printf "%.9g\n", right / NR }' >found
check "accuracy of predict is $(cat found), of test $accuracy" [ "$(cat found)" = "$accuracy" ]
cp out answers
"$carnn" predict a.gguf <"$data/dialog-test.txt" >out
check 'other answers from standard input' cmp -s answers out
"$carnn" predict a.gguf --data - <"$data/dialog-test.txt" >out
check 'other answers from -' cmp -s answers out
sed 's/$/\r/' "$data/dialog-test.txt" | "$carnn" predict a.gguf >out
check 'other answers with CR LF' cmp -s answers out
printf %s "$(cat "$data/dialog-test.txt")" | "$carnn" predict a.gguf >out
check 'other answers without a last newline' cmp -s answers out
printf '1 \t\n2 zzz qqq\tx\nno number\ty\n3\tz\n99999999999999999999 a\tb\n\t\n' >odd.txt
printf '1 hi\ta\tsome cheap food\twest town\n2 hi\ta\t \twest\n3 hi\ta\n' >>odd.txt
"$carnn" predict a.gguf --top 2 <odd.txt >odd
lines odd 9
run 0 predict a.gguf --data odd.txt --threads 2 --top 2
check 'odd lines: other answers from a file' cmp -s odd out
run 0 predict a.gguf --data /dev/null
empty out
says err 'nothing to answer: .* lines "N user<TAB>response"'
sed "s/$tab/ /" "$data/dialog-test.txt" >spaces.txt
run 3 test a.gguf --data spaces.txt
says err '^carnn: spaces.txt:[0-9]*: expected a tab between user and response'
awk '{ print NR, "foreign words", "\t", "yes" }' "$data/dialog-test.txt" >foreign.txt
run 0 test a.gguf --data foreign.txt
says err '^carnn: foreign.txt: [0-9]* % of the words are unknown, is this the right file?$'
says err '^carnn: foreign.txt: nothing is scored: the model knows no target, the texts do not have them, or no sentence is right$'
run 0 test a.gguf --data "$data/dialog-test.txt"
empty err
printf '1 hello\tx\n2 hi\tx\n1 hello\tx\n\n5 hello\tx\n' | "$carnn" predict a.gguf >out
check 'a number that does not increase, or an empty line, begins a dialog' \
    [ "$(sed -n '1p;3p;4p' out | sort -u | wc -l)" -eq 1 ]
run 0 predict a.gguf --data "$data/dialog-test.txt" --top 3
lines out "$examples"
check 'three pairs' [ "$(awk -F '\t' 'NF != 6 || $1 < $3 || $3 < $5' out | wc -l)" -eq 0 ]
cut -f 2 out >first
check 'the first of three is another answer' cmp -s answers first
# more than a pipe holds: what is read first is what has been written so far
check 'a part of a line is written' [ -z "$("$carnn" predict a.gguf --data "$data/dialog-test.txt" \
    --top 3 2>err | dd bs=1000000 count=1 2>dd | tail -c 1)" ]
"$carnn" predict a.gguf --top 3 <"$data/dialog-test.txt" | cmp -s - out
check 'other probabilities from standard input' [ $? -eq 0 ]
run 0 predict a.gguf --data "$data/dialog-test.txt" --top 1000000
check 'probabilities that do not add up to 1' awk -F '\t' '
    { sum = 0; for (i = 1; i < NF; i += 2) sum += $i; if (sum < 0.9999 || sum > 1.0001) exit 1 }' out
run 0 predict a.gguf
empty out
if [ -c /dev/full ]; then
    "$carnn" predict a.gguf --data "$data/dialog-test.txt" >/dev/full 2>err
    check 'a full disk goes unnoticed' [ $? -eq 1 ]
fi

# ---- chat, explain, info

printf 'hello\nsome cheap food\n\nhello\n' | "$carnn" chat a.gguf >out 2>err
lines out 3
empty err
check 'an empty line begins a new dialog' [ "$(sed -n '1p;3p' out | sort -u | wc -l)" -eq 1 ]
"$carnn" chat a.gguf <"$data/demo-chat.txt" >out 2>err # the same as data: facts have no reply
awk '/^\t/ { sub(/^\t/, ""); print ++n, $0; next } !NF { n = 0; print; next }
    { getline reply <"out"; print ++n, $0 "\t" reply }' "$data/demo-chat.txt" >chat.txt
check 'there are facts' [ "$(grep -c ' R_[a-z]* ' chat.txt)" -ge 3 ]
"$carnn" predict a.gguf --data chat.txt 2>err | cmp -s - out
check 'predict answers as chat does' [ $? -eq 0 ]
printf '\357\273\277hello\n\357\273\277some cheap food\nwest\nthai\n' |
    "$carnn" chat a.gguf --explain >out 2>err
check 'a byte order mark' [ "$(grep -c -e '^> hello$' -e '^> some cheap food$' out)" -eq 2 ]
check 'three rows, and the rest' awk '/^> / { n = total = 0 } /^ *[-+][0-9]/ {
    if ($NF == "sum") { if (n > 4 || (total - $1) ^ 2 > 1e-6) exit 1; sums++ }
    total += $1; n++ } END { exit sums != 4 || n != 5 }' out
printf 'who\0is\n' | "$carnn" chat a.gguf --explain >out 2>err
says out '^> who is$'
"$carnn" chat a.gguf <"$data/dialog-dev.txt" >out 2>err # data, in which there are replies, too
lines err 1
says err '^carnn: standard input:1: has a tab; each line is taken for what the user says'
run 0 explain a.gguf --data "$data/dialog-test.txt" --example 4
says out '^example 4: '
says out '^answer: .* (probability '
check 'more than one example' [ "$(grep -c '^example ' out)" -eq 1 ]
check 'the scores do not add up' awk '/^ *[-+]/ { if ($NF == "sum") exit !(total - $1 < 0.01 &&
    $1 - total < 0.01); total += $1 }' out
run 3 explain a.gguf --data "$data/dialog-test.txt" --example 1000000
run 1 explain a.gguf --data /
lines err 1
says err '^carnn: /: '
head -n 20 "$data/dialog-test.txt" >part.txt
run 0 explain a.gguf --data part.txt
"$carnn" explain a.gguf <part.txt | cmp -s - out
check 'another explanation from standard input' [ $? -eq 0 ]
check 'an exact explanation is said not to be' [ "$(grep -c 'not exact' out)" -eq 0 ]
run 0 info a.gguf
says out '^cell  *icarnn'
says out '^history  *'
check 'what had no effect on the training' [ "$(grep -c '^weight_decay' out)" -eq 0 ]
session=$(sed -n 's/^session *\([0-9]*\) bytes$/\1/p' out)
check 'options of other tasks' [ "$(grep -c -e '^overlap' -e '^tied' -e '^pooling' out)" -eq 0 ]
run 0 info a.gguf --json
lines out 1
for key in file task cell parameters words choices seed hidden training scores tensors; do
    says out "\"$key\": "
done
cp a.gguf 'a"\b.gguf'
"$carnn" info 'a"\b.gguf' --json | cut -d , -f 1 >quoted
check "a name in JSON: $(cat quoted)" [ "$(cat quoted)" = '{"file": "a\u0022\u005cb.gguf"' ]
check 'options of the model are among those of the training' \
    [ "$(sed 's/.*"training": {//; s/}.*//' out | grep -c '"cell"')" -eq 0 ]
check 'a number that is not JSON' [ "$(grep -c -i -e ': *-*nan' -e ': *-*inf' out)" -eq 0 ]
says out '"history": null' # no limit
check "another session than of $session bytes" [ "$(value out session)" = "$session" ]

# ---- answer selection

small="--task answer --hidden 12 --embedding 8 --threads 1 --quiet --train $data/answer-train.tsv"
# shellcheck disable=SC2086
{
run 0 train $small --valid "$data/answer-dev.tsv" --epochs 3 --out q.gguf --json
for key in task cell parameters examples seconds seed map mrr loss; do says out "\"$key\": "; done
run 0 train $small --epochs 1 --out r.gguf --cell lstm --model siamese --loss pair
run 2 train $small --model iwam --out s.gguf
says err 'did you mean "iwan"?'
run 2 train $small --model ca --alignment overlaps --out s.gguf
says err 'did you mean "overlap"?'
for options in '--model ca' '--model ca --pooling attention --direction a2q' '--model ap' \
    '--model cosine --loss hardest'; do
    run 0 train $small --epochs 1 $options --out m.gguf
    run 0 info m.gguf
    says out "^model *$(echo "$options" | cut -d ' ' -f 2)\$"
    says out '^cell  *lstm$'
    run 0 test m.gguf --data "$data/answer-test.tsv"
    says out '^m.gguf  map 0\.[0-9]*  mrr 0\.'
    run 0 explain m.gguf --data "$data/answer-test.tsv" --example 2
    says out '^alignment of the words of the sentence'
    check 'the shares do not add up' awk '/^alignment/ { exit } /^ *[-+][0-9.]+ / { total += $1 }
        END { exit !(total > 1.99 && total < 2.01) }' out
done
# alignments from files
head -n 61 "$data/answer-dev.tsv" >linked.tsv
run 1 train --task answer --model ca --alignment file --train linked.tsv --out f.gguf
says err 'linked.tsv.align: '
awk 'NR > 1 { print NR % 3 ? "0-0 1-1" : "" }' linked.tsv >linked.tsv.align
head -n 21 linked.tsv >linked2.tsv
head -n 20 linked.tsv.align >linked2.tsv.align
run 0 train --task answer --model ca --alignment file --train linked.tsv --train linked2.tsv \
    --valid linked2.tsv --epochs 1 --hidden 8 --embedding 8 --quiet --out f.gguf
run 0 info f.gguf
says out '^alignment *file$'
run 0 test q.gguf f.gguf --data linked.tsv # of which the second one reads alignments
run 0 predict f.gguf --data linked.tsv
lines out 60
run 0 explain f.gguf --data linked.tsv --example 3
"$carnn" predict f.gguf <linked.tsv >out 2>err
says err 'the model reads alignments'
run 2 test f.gguf --data -
says err 'standard input: alignments lie in a file beside the data'
echo >>linked.tsv.align
run 3 test f.gguf --data linked.tsv
says err 'linked.tsv.align:61: expected the end, as there are no more examples'
sed -i '$d;60d;2s/.*/0-0 99-1/' linked.tsv.align
run 3 test f.gguf --data linked.tsv
says err 'linked.tsv.align:2: expected i-j, word i of [0-9]* and j of [0-9]* from 0 on, found "99-1"'
sed -i '2s/.*//' linked.tsv.align
run 3 test f.gguf --data linked.tsv
says err 'linked.tsv.align:60: expected a line for every example, found the end'
run 2 train --task answer --train linked2.tsv --alignment file --out s.gguf
says err 'alignment has an effect only where model is one of these: ca$'
printf 'lives 1 0 0\ngoldbury 0 1 0\n' >three.txt
run 0 train --task answer --hidden 12 --threads 1 --quiet --train "$data/answer-train.tsv" \
    --epochs 1 --vectors three.txt --out s.gguf
run 0 info s.gguf
says out '^embedding  *3$'
{ printf 'period 1\nnode x in 0\nnode a hidden 0\nnode y out 0\nedge x a 0\nedge a y 0\n'
  seq 300 | sed 's/^/edge a a /'; } >edges.txt
run 2 train --task classify --encoder graph --graph edges.txt --cell rnn --vectors three.txt \
    --train "$data/classify-train.tsv" --out t.gguf
says err 'more than 224 weight matrices: use fewer layers, or a graph with fewer edges$'
}
run 0 test q.gguf --data "$data/answer-test.tsv" --qrels qrels --run ranking --json
examples=$(value out examples)
map=$(value out map)
lines qrels "$examples"
lines ranking "$examples"
# average precision of the two files by themselves; no scores are equal
check "the run's MAP is not $map" [ "$(paste -d ' ' qrels ranking | sort -k1,1n -k9,9gr |
    awk '{ if ($1 != q) { if (r) { s += a / r; n++ } q = $1; r = a = i = 0 } i++
           if ($4) a += ++r / i } END { s += a / r; printf "%.9g", s / (n + 1) }')" = "$map" ]
run 0 test q.gguf r.gguf --data "$data/answer-test.tsv"
says out '^r.gguf  map 0\.[0-9]* .* examples, .* s, p [01]\.[0-9]* against the first)'
lines out 3
run 0 test q.gguf r.gguf --data "$data/answer-test.tsv" --json
check 'the first model is compared, or another is not' [ "$(grep -o '"p_value": ' out | wc -l)" -eq 2 ]
says out '"vote": .*"cell": "mixed", "parameters": [0-9]*, "seed": 1, '
run 0 test q.gguf r.gguf --data "$data/answer-test.tsv" --ensemble mean --json
says out '"ensemble": .*"cell": "mixed", "parameters": [0-9]*, "seed": 1, '
run 0 test q.gguf r.gguf --data "$data/answer-test.tsv" --run votes # those of the vote
lines votes "$examples"
check 'the scores of the first model' [ "$(cmp -s ranking votes; echo $?)" -eq 1 ]
run 2 test a.gguf --data "$data/dialog-test.txt" --qrels none
says err 'for tasks that rank'
run 2 test q.gguf --data "$data/answer-test.tsv" --qrels none --report
check 'a refused run left a file' [ ! -e none ]
check 'a file of a ranking that there is not' [ ! -e none ]
run 2 test q.gguf --data "$data/answer-test.tsv" --report
says err 'needs a model that chooses'
empty out
run 2 test q.gguf a.gguf --data "$data/answer-test.tsv"
printf 'a\tb\t1\na\tc\t0\nd\te\t0\n' >pairs.tsv
tr '\t' , <pairs.tsv >pairs.csv
run 0 test q.gguf --data pairs.csv --clean
says err 'pairs.csv: groups left out.*: 1$'
run 0 test q.gguf --data pairs.tsv --clean --json
says err 'pairs.tsv: groups left out.*: 1$'
says out '"left_out": 1, '
run 0 test q.gguf r.gguf --data pairs.tsv --clean --ensemble mean --share 0.5 --valid pairs.tsv
check 'groups of --valid are not left out' [ "$(grep -c 'pairs.tsv: groups left out.*: 1$' err)" -eq 2 ]
sed 's/.$/0/' pairs.tsv >wrong.tsv
run 0 test q.gguf --data wrong.tsv
says err 'wrong.tsv: nothing is scored: .* no sentence is right$'
says out 'nothing scored  (3 examples'
run 0 test q.gguf r.gguf --data pairs.tsv --ensemble mean --valid wrong.tsv
says err '^mean on wrong.tsv: members: q.gguf r.gguf$'
run 2 test q.gguf r.gguf --data pairs.tsv --ensemble greedy --valid wrong.tsv
says err 'nothing is scored on these$'
run 0 train --task answer --train pairs.tsv --valid wrong.tsv --epochs 3 --hidden 4 --log wrong.jsonl --out q2.gguf
says out 'epoch 3, '
says out '^valid  nothing scored$'
check 'no metric is shown' [ "$(cat out err wrong.jsonl | grep -c 'map')" -eq 0 ]
run 2 train --task answer --train pairs.tsv --clean --out q2.gguf
says err '.-clean is for what is scored'
run 0 train --task answer --train pairs.tsv --test pairs.tsv --clean --epochs 1 --out q2.gguf
says err 'pairs.tsv: groups left out.*: 1$'
run 0 train --task answer --train pairs.tsv --valid pairs.tsv --clean --epochs 1 --out q2.gguf
check 'groups of --valid alone are left out' [ "$(grep -c 'pairs.tsv: groups left out.*: 1$' err)" -eq 1 ]
for q in a b c d; do printf '%s\tx %s\t1\n%s\ty\t0\n' $q $q $q; done | cat - pairs.tsv >folds.tsv
run 0 train --task answer --train folds.tsv --clean --folds 2 --hidden 4 --embedding 4 --epochs 1 --json
says err 'folds.tsv: groups left out.*: 1$'
says out '"examples": 10,' # of five questions, without that which has no right answer
check 'no model is kept' [ "$(grep -c '^no --valid' err)" -eq 0 ]
printf 'a\tb\t1\na\t\t0\n' >odd.tsv
run 3 test q.gguf --data odd.tsv
says err 'odd.tsv:2: expected an answer of 1 to 512 words, found nothing'
run 0 predict q.gguf --data "$data/answer-test.tsv"
lines out "$examples"
cut -d ' ' -f 5 ranking >scores
check 'predict and test score differently' cmp -s scores out
cut -f 2,3 "$data/answer-test.tsv" | tail -n +2 | "$carnn" predict q.gguf --stream >out
lines out "$examples"
check 'other sentences of a question do not count' [ "$(cmp -s scores out; echo $?)" -eq 1 ]
cut -f 2,3 "$data/answer-test.tsv" | tail -n +2 | "$carnn" predict q.gguf >out
check 'other scores without labels' cmp -s scores out
tail -n +2 "$data/answer-test.tsv" | awk -F '\t' '{ print $1 "\t" $4 "\t" $2 "\t" $3 }' |
    "$carnn" predict q.gguf --data - >out
check 'other scores of four columns' cmp -s scores out
tail -n +2 "$data/answer-test.tsv" >headless.tsv
run 3 test q.gguf --data headless.tsv
run 3 predict q.gguf --data headless.tsv
says err 'headless.tsv:1: expected the label 0 or 1, found "'
printf 'q\t\t0\n\t\t\nonly\n zz\377\tqq\t1\n' | tee odd.tsv | "$carnn" predict q.gguf >odd 2>err
lines odd 4
run 0 predict q.gguf --data odd.tsv
check 'odd pairs: other scores from a file' cmp -s odd out
mkfifo pipe # a model file is no pipe; what comes packed from one is refused, not waited for
run 1 info pipe
says err 'pipe: not a regular file'
gzip -c odd.tsv >odd.gz
{ cat odd.gz >pipe & } 2>/dev/null
run 3 predict q.gguf --data pipe
says err 'pipe: is packed; unpack it first with gzip -d'
head -c 40 odd.gz >cut.gz
run 3 predict q.gguf --data cut.gz
says err 'cut.gz: '
(trap '' CHLD; "$carnn" predict q.gguf --data cut.gz) >out 2>err
check 'a cut file is taken for whole where exit codes are lost' [ $? -eq 3 ]
printf 'Label\t Sentence\tQuestion \n1\tit rained .\twhere is it ?\n' >odd.tsv
"$carnn" predict q.gguf <odd.tsv >odd
lines odd 1
run 0 predict q.gguf --data odd.tsv
check 'blanks in a header: other scores from a file' cmp -s odd out
printf 'it rained .\nedith elster lives in goldbury .\n' >sentences
run 0 rank q.gguf --question 'where does edith elster live ?' --data sentences
lines out 2
says out "^[-0-9.e+]*${tab}it rained \.\$"
check 'the best is not first' [ "$(sort -gr out | cmp -s - out; echo $?)" -eq 0 ]
check 'other scores of sentences from standard input' [ "$("$carnn" rank q.gguf \
    --question 'where does edith elster live ?' <sentences)" = "$(cat out)" ]
gzip -c sentences >sentences.gz
cp out ranked
run 0 rank q.gguf --question 'where does edith elster live ?' --data sentences.gz
check 'other scores of packed sentences' cmp -s ranked out
run 0 rank q.gguf --question 'where does edith elster live ?' --data sentences --top 1
lines out 1
awk -F '\t' 'NR == 2 { asked = $2 } NR > 1 && $2 == asked { print $3 }' "$data/answer-test.tsv" >sentences
run 0 rank q.gguf --question "$(sed -n 2p "$data/answer-test.tsv" | cut -f 2)" --data sentences
head -n "$(wc -l <sentences)" scores | sort -gr >sorted
check 'rank and test score differently' [ "$(cut -f 1 out)" = "$(cat sorted)" ]
run 2 rank q.gguf --data sentences
run 2 rank a.gguf --question x --data sentences
for model in q r; do # of any cell: scores are what shares add
    run 0 explain $model.gguf --data "$data/answer-test.tsv" --example 2
    check 'the scores do not add up' awk '/^score / { score = $2 }
        $2 == "sum" { sum = $1 } /^ *[-+][0-9.]+ / && $2 != "sum" { total += $1 }
        END { exit !((total - sum) ^ 2 < 1e-5 && (score - sum) ^ 2 < 1e-5 && score) }' out
    says out '^     score      share'
    says out '^ *[-+][0-9.]*  *-*[0-9.]* .*  question  '
    says out '^ *[-+][0-9.]*  *-*[0-9.]* .*  sentence  '
    check 'an exact explanation is said not to be' [ "$(grep -c 'not exact' out)" -eq 0 ]
done
run 0 train $small --model iwan --cell lstm --overlap 0 --epochs 1 --out m.gguf
run 0 explain m.gguf --data "$data/answer-test.tsv" --example 2
says out '^     share  attention$'
says out '^what this model says is no sum of what its parts add: all is in the rest$'
run 0 explain q.gguf --data "$data/answer-test.tsv" --example 2
says out '^alignment of the words of the sentence'
mkdir folder
tail -n +2 "$data/answer-test.tsv" | cut -f 2 >folder/a.toks
tail -n +2 "$data/answer-test.tsv" | cut -f 3 >folder/b.toks
cp out explained
run 0 explain q.gguf --data folder --example 2
check 'another explanation from a folder' cmp -s explained out
echo >>folder/b.toks
run 3 explain q.gguf --data folder
says err 'folder/a.toks:[0-9]*: expected a line as in the files beside it'
check 'colours that nobody asked for' [ "$(grep -c "$(printf '\033')" out)" -eq 0 ]
run 0 explain q.gguf --data "$data/answer-test.tsv" --example 2 --color
check 'columns without words' [ "$(sed -n '/^alignment.*question/{n;s/ //g;p;}' out)" = \
    "$(sed -n 2p out | awk '{ for (i = 1; i <= NF; i++) printf "%s", substr($i, 1, 4) }')" ]
says out "$(printf '\033')\[48;5;228;.*$(printf '\033')\[48;5;17;"
check 'a matrix in one colour' [ "$(sed '1,/^alignment.*sentence/d' out | tr '\033' '\n' |
    sed -n 's/.*48;5;\([0-9]*\);.*/\1/p' | sort -u | wc -l)" -ge 6 ]
cp out colored
NO_COLOR=
export NO_COLOR
run 0 explain q.gguf --data "$data/answer-test.tsv" --example 2 --color
check 'NO_COLOR that is empty takes colours' cmp -s colored out
NO_COLOR=1
run 0 explain q.gguf --data "$data/answer-test.tsv" --example 2 --color
unset NO_COLOR
check 'colours in spite of NO_COLOR' cmp -s explained out

# ---- language models

small="--task lm --hidden 12 --embedding 8 --epochs 1 --threads 1 --quiet"
small="$small --train $data/lm-train.txt"
# shellcheck disable=SC2086
{
run 0 train $small --valid "$data/lm-dev.txt" --test "$data/lm-test.txt" --out l.gguf --json
for key in task cell parameters examples seconds seed perplexity tokens loss label_accuracy test; do
    says out "\"$key\": "
done
run 0 train $small --out n.gguf --cell lstm --context none
run 0 train $small --out u.gguf --lower 1 --vocab 50
run 5 train $small --out d.gguf --optimizer sgd --lr 1e6 --clip 0
says err 'diverged in epoch 1, step [0-9]*: the gradient of [a-z.]* is '
empty out
}
cut -f 1 "$data/lm-test.txt" >plain.txt
run 0 test l.gguf --data plain.txt --json
check 'label accuracy without labels' [ "$(grep -c label_accuracy out)" -eq 0 ]
sed "s/$tab.*/${tab}never seen/" "$data/lm-test.txt" >never.txt
run 0 test l.gguf --data never.txt --json
check 'unknown labels are told rightly' [ "$(value out label_accuracy)" = 0 ]
run 0 test l.gguf --data "$data/lm-test.txt" --json
lines out 1
for key in task cell parameters examples seconds seed perplexity perplexity_n2 perplexity_macro \
    perplexity_words tokens loss label_accuracy; do says out "\"$key\": "; done
perplexity=$(value out perplexity)
examples=$(value out examples)
run 0 test l.gguf --data "$data/lm-test.txt"
says out "perplexity [0-9.]*  label_accuracy 0\.[0-9]*  loss "
run 0 test l.gguf --data "$data/lm-test.txt" --counts
says out 'perplexity [0-9.]*  perplexity_n2 [0-9.]*  perplexity_macro [0-9.]*  perplexity_words '
run 0 test n.gguf --data "$data/lm-test.txt" --json
check 'label accuracy of a model without' [ "$(grep -c label_accuracy out)" -eq 0 ]
run 0 predict l.gguf --data "$data/lm-test.txt"
lines out "$examples"
check "predict does not add up to perplexity $perplexity" awk -v expected="$perplexity" -F '\t' '
    NF != 2 || $1 + 0 != $1 || $2 < 1 { exit 1 } { nll += $1; tokens += $2 }
    END { p = exp(nll / tokens); exit !(p > 0.99999 * expected && p < 1.00001 * expected) }' out
cp out scores
"$carnn" predict l.gguf <"$data/lm-test.txt" >out
check 'other scores from standard input' cmp -s scores out
sed 's/$/\r/' plain.txt | "$carnn" predict l.gguf --data - >out
check 'other scores without labels, with CR LF' cmp -s scores out
# of no words, of unknown ones, of any bytes: a line each; what ends a document has none
printf 'a b\n\tlabel\n\n= x\nzzz qqq qqq\nA|Oh, z!|x\n\377\376 \r\na' | "$carnn" predict l.gguf >out
check 'words and ends of odd sentences' [ "$(cut -f 2 out | tr '\n' ' ')" = '3 1 4 5 2 2 ' ]
printf 'where is it\n\nwhere is it\nwhere is it\n' | "$carnn" predict l.gguf >out
check 'the sentence before, or none, does not count' \
    [ "$(sed -n '1p;2p' out | sort -u | wc -l) $(sort -u out | wc -l)" = '1 2' ]
printf 'where is it\n\nWHERE Is iT\n' | "$carnn" predict u.gguf >out
check '--lower 1: another score in upper case' [ "$(sort -u out | wc -l)" -eq 1 ]
printf 'where is it\n\nWHERE Is iT\n' | "$carnn" predict l.gguf >out
check 'without --lower the same score in upper case' [ "$(sort -u out | wc -l)" -eq 2 ]
run 0 info u.gguf --json
check '--vocab 50' [ "$(value out words)" -eq 53 ] # <unk> <s> </s>
run 0 info l.gguf
says out '^task  *lm$'
says out '^scores  *epoch 1: perplexity '
check 'options without a value' [ "$(grep -c -e '^[a-z_]* *$' out)" -eq 0 ]
# shellcheck disable=SC2086
run 0 train $small --encoder rcrn --out gated.gguf
run 0 info gated.gguf
says out '^raw_output_gate 0$'
check 'values that are not below each other' [ "$(cut -c 16 out | sort -u)" = ' ' ]
run 0 explain l.gguf --data "$data/lm-test.txt" --example 2
says out '^example 2: '
says out '^next word: .'
says out '^ *[-+][0-9.]*   *word  '
says out '^  *[0-9.]*  before  '
check 'the scores do not add up' awk 'substr($0, 1, 10) ~ /[0-9]$/ {
    if ($NF == "sum") exit !(n > 3 && total - $1 < 0.01 && $1 - total < 0.01)
    total += $1; n++ }' out
run 2 generate l.gguf --words 1000001
says err 'words: expected up to 1000000$'
run 2 generate l.gguf --top-p 0
says err '.-top-p: expected a number above 0, up to 1$'
generate='generate l.gguf --sentences 20 --words 6'
# shellcheck disable=SC2086
{
run 0 $generate --seed 3
lines out 20
check 'a sentence of more than 6 words' awk 'NF > 6 { exit 1 }' out
cp out sampled
run 0 $generate --seed 3
check 'same seed, another text' cmp -s sampled out
run 0 $generate --seed 4
check 'another seed, the same text' [ "$(cmp -s sampled out; echo $?)" -eq 1 ]
run 0 $generate --seed 1
cp out sampled
run 0 $generate
check 'the seed is not 1' cmp -s sampled out
run 0 generate l.gguf
check 'sentences are cut' awk '{ n += NF > 10 } END { exit !n }' out
run 0 $generate --seed 3 --top-k 3 --top-p 0.5 --temperature 0.5
check 'another temperature, the same text' [ "$(cmp -s sampled out; echo $?)" -eq 1 ]
run 0 $generate --temperature 0
cp out sampled
for same in '--top-k 1' '--top-p 0.0001' '--temperature 0.0001'; do
    run 0 $generate --seed 5 $same
    check "$same is not the most probable" cmp -s sampled out
done
run 0 $generate --prompt 'where is zzz'
check 'the prompt is not at the front' [ "$(grep -c '^where is <unk>' out)" -eq 1 ]
says err '<unk> stands for words of --prompt that the model does not know$'
run 0 $generate --prompt 'where is'
empty err
prompt=$(awk 'BEGIN { for (i = 0; i < 3000; i++) printf "where is it " }')
run 0 $generate --prompt "$prompt" --sentences 1
check 'a long sentence is cut' [ "$(wc -w <out)" -ge 9000 ]
run 2 $generate --temperature hot
says err 'temperature: expected a number'
run 2 generate a.gguf
}
run 2 test l.gguf a.gguf --data "$data/lm-test.txt"
: >nothing
run 3 test l.gguf --data nothing
says err 'nothing:1: expected a sentence, found an empty file'
run 0 predict l.gguf --data nothing
empty out

# ---- classification, reports

awk 'BEGIN { for (i = 0; i < 120; i++) { c = i * 7 % 3; print "c" c "\t" (c == 0 ? "red" : c == 1 ? \
    "blue" : "green") " word" i % 11 } }' >classes.txt
small="--task classify --hidden 8 --embedding 8 --threads 1 --quiet --train classes.txt"
# shellcheck disable=SC2086
{
run 0 train $small --epochs 3 --valid classes.txt --out t.gguf --json
for key in task cell parameters examples seconds seed accuracy loss; do says out "\"$key\": "; done
}
run 0 test t.gguf --data classes.txt --json
accuracy=$(value out accuracy)
check 'classes that nobody asked for' [ "$(grep -c classes\" out)" -eq 0 ]
run 0 predict t.gguf --data classes.txt
lines out 120
cut -f 1 classes.txt | paste - out | awk '{ n += $1 == $2 } END { printf "%.9g\n", n / NR }' >found
check "accuracy of predict is $(cat found), of test $accuracy" [ "$(cat found)" = "$accuracy" ]
cp out answers
"$carnn" predict t.gguf <classes.txt | cmp -s - answers
check 'other classes from standard input' [ $? -eq 0 ]
# A table of texts and other columns, texts that begin as a class could, and a table without rows.
{ printf 'text\tid\n'; cut -f 2 classes.txt | awk '{ print $0 "\t" NR }'; } >ids.tsv
run 0 predict t.gguf --data ids.tsv
cmp -s out answers
check 'a table of texts and numbers' [ $? -eq 0 ]
"$carnn" predict t.gguf <ids.tsv | cmp -s - answers
check 'a table of texts and numbers from standard input' [ $? -eq 0 ]
printf 'text\tred\ntext\tblue\n' >texts.tsv # of a class that is called so
run 0 predict t.gguf --data texts.tsv
lines out 2
printf 'A:red word1\nblue word2\n' >begin.txt
run 0 predict t.gguf --data begin.txt
"$carnn" predict t.gguf <begin.txt | cmp -s - out
check 'a class that the model does not know' [ $? -eq 0 ]
printf '4 red\n(4 red)\n' >begin.txt
run 0 predict t.gguf --data begin.txt --top 1
for k in 1 2; do sed -n ${k}p begin.txt | "$carnn" predict t.gguf --top 1; done | cmp -s - out
check 'a number and a tree are no classes here' [ $? -eq 0 ]
printf 'label\ttext\n' >rowless.tsv
run 0 predict t.gguf --data rowless.tsv
lines out 0
printf 'label,text\n' >rowless.csv
run 0 predict t.gguf --data rowless.csv
lines out 0
run 3 test t.gguf --data rowless.csv
cut -f 1 classes.txt | paste -d ' ' - answers | sort | uniq -c >pairs # times, right, predicted
run 0 test t.gguf --data classes.txt --report
awk 'BEGIN { while ((getline <"pairs") > 0) { n[$2, $3] = $1; right[$2] += $1; chosen[$3] += $1 } }
    NF == 5 && $5 in right { p = chosen[$5] ? n[$5, $5] / chosen[$5] : 0; r = n[$5, $5] / right[$5]
        f = p + r ? 2 * p * r / (p + r) : 0; classes++
        if ($1 - p > 1e-4 || p - $1 > 1e-4 || $2 - r > 1e-4 || r - $2 > 1e-4 || $3 - f > 1e-4 ||
            f - $3 > 1e-4 || $4 != right[$5]) exit 1 }
    $1 == "right" { for (i = 4; i <= NF; i++) name[i - 2] = $i; columns = NF - 2 }
    NF == columns && $1 in right { rows++
        for (i = 2; i <= NF; i++) if ($i != n[$1, name[i]] + 0) exit 1 }
    END { exit !(classes == 3 && rows == 3) }' out
check 'the report is wrong' [ $? -eq 0 ]
printf 'ébauchées\ta\nautre\tb\n' >accents.txt
run 0 train --task classify --train accents.txt --hidden 4 --epochs 1 --out accents.gguf
run 0 test accents.gguf --data accents.txt --report
says out ' ébauchée\( \|$\)'
says out '^ébauchées \{19\}[01] '
run 0 test t.gguf --data classes.txt --report --json
lines out 1
says out '"classes": \[{"class": "c[0-2]", "count": 40, "precision": '
says out '"predicted": {"c[0-2]": '
check 'a class is missing' [ "$(grep -o '"class": "c[0-2]"' out | sort -u | wc -l)" -eq 3 ]
sed 's/^c0/new/' classes.txt >new.txt
run 0 test t.gguf --data new.txt --report
says out ' 40  (unknown)$'
run 0 test a.gguf --data "$data/dialog-test.txt" --report
says out '^times  right -> predicted$'
says out '^ *[0-9]*  .* -> '
check 'the most confused are not first' awk '/^times/ { seen = 1; next }
    seen { if (before && $1 > before) exit 1; before = $1 }' out
check 'two are confused twice' [ -z "$(grep ' -> ' out | sort | uniq -d)" ]
check 'what is right is confused' awk '/ -> / && sub(/^ *[0-9]+  /, "") { split($0, part, " -> ")
    if (part[1] == part[2]) exit 1 }' out
printf '1 hi\t yew is nice\n2 bye\tok then \n' >blanks.txt
run 0 train --task dialog --train blanks.txt --hidden 4 --epochs 1 --out blanks.gguf
run 0 test blanks.gguf --data blanks.txt --report
check 'a reply with blanks at its ends is not known' [ "$(grep -c unknown out)" -eq 0 ]
for classes in 20 21; do
    awk -v n=$classes 'BEGIN { for (i = 1; i <= n; i++) print "c" i "\tw" i }' >many.tsv
    run 0 train --task classify --train many.tsv --hidden 4 --embedding 4 --epochs 1 --out many.gguf
    run 0 test many.gguf --data many.tsv --report
    check "$classes classes in a matrix" [ "$(grep -c '^right . predicted' out)" -eq $((21 - classes)) ]
done
run 0 test t.gguf t.gguf --data classes.txt --report
check 'reports of which model' [ "$(grep -c '^t.gguf$' out)" -eq 2 ]
run 2 explain t.gguf --data classes.txt
says err 'a model of the task classify cannot explain; it can '
lines out 0
sed 's/\t.*/\tnever seen/' classes.txt >other.txt
run 0 train --task classify --hidden 8 --embedding 8 --threads 1 --quiet --train other.txt --epochs 1 \
    --out other.gguf
run 0 test t.gguf other.gguf --data classes.txt
says err 'classes.txt: 100 % of the words are unknown to other.gguf, is this the right file'
head -n 1 classes.txt >known.txt
{ cat known.txt; printf 'no class of this model\thello\n'; } >unknown.txt
run 0 test t.gguf --data known.txt --json
loss=$(value out loss)
run 0 test t.gguf --data unknown.txt --json
check "loss $loss, with an unknown class $(value out loss)" [ "$(value out loss)" = "$loss" ]
printf 'a\t1\t2\t3\nb\t4\t3\t2\na b -\t4\t3\t2\n' >steps.tsv
run 0 train --task signal --target-kind steps --train steps.tsv --epochs 1 --hidden 4 --out steps.gguf
run 2 train --task signal --target-kind steps --pooling max --train steps.tsv --epochs 1 --hidden 4 --out no.gguf
says err 'pooling has an effect only where target-kind is one of these: class number$'
run 0 test steps.gguf --data steps.tsv --report --json
says out '"class": "a"[^}]*"count": 4' # one word is the class of all rows
check 'rows of no class are reported' [ "$(grep -c unknown out)" -eq 0 ]
run 0 predict steps.gguf --data steps.tsv
check 'not a class for each of three rows' [ "$(grep -c -x '[ab] [ab] [ab]' out)" -eq 3 ]
printf -- '- - -\t1\t2\t3\n' >unscored.tsv
printf 'b\t4\t3\t2\n' >only.tsv # classes that are right or predicted: those of the matrix, too
run 0 test steps.gguf --data only.tsv --report
check 'a matrix of other classes' [ "$(awk 'NF == 5 && $1 ~ /^[01]\./ { printf " %s", $5 }' out)" = \
    "$(sed -n 's/^right . predicted//p' out | tr -s ' ')" ]
run 0 test steps.gguf --data unscored.tsv
says out 'steps.gguf  nothing scored  (0 examples'
says err 'unscored.tsv: nothing is scored'
run 0 test steps.gguf --data unscored.tsv --json
says out '"examples": 0, .*"loss": null, "file"'
head -n 2 steps.tsv >rows.tsv
for kind in class steps; do
    run 0 train --task signal --target-kind $kind --train rows.tsv --epochs 1 --hidden 4 --out $kind-rows.gguf
done
run 0 test class-rows.gguf steps-rows.gguf --data rows.tsv
says err '^carnn: no vote: .* not made with the same --target-kind$'
run 0 train --task pair --target relatedness --train "$data/pair-train.tsv" --epochs 1 --hidden 4 \
    --embedding 4 --out grades.gguf --json
says out '"spearman": null' # of weights that change there is none
says out '"scored_on": "train"'
run 2 generate t.gguf
run 2 chat t.gguf
says err 't.gguf is a model of the task classify, expected one of the task dialog'
run 2 rank t.gguf --question x
run 2 ask t.gguf --text classes.txt
run 2 explain t.gguf
says err 'a model of the task classify cannot explain; it can '
run 2 explain steps.gguf --data steps.tsv
says err 'a model of the task signal cannot explain; it can '
run 2 predict grades.gguf --data "$data/pair-dev.tsv" --top 2
says err '.--top is for models that choose; this one of the task pair does not'
gzip <classes.txt >classes.gz
"$carnn" predict t.gguf <classes.gz >out 2>err
check 'bytes of gzip are predicted' [ $? -eq 3 ]
says err 'is packed; unpack it first'
run 2 train --task classify --train classes.txt --fine 2 --hidden 4 --epochs 1 --out f.gguf
says err 'fine: expected'
run 0 train --task classify --train classes.txt --fine --hidden 4 --epochs 1 --out f.gguf
run 0 info f.gguf
says out '^fine *1$'
run 0 train --task classify --train classes.txt --fine 0 --hidden 4 --epochs 1 --out f.gguf
run 0 info f.gguf
says out '^fine *0$'
run 2 train --task classify --train classes.txt --hidden --out f.gguf
lines out 0
run 2 rank t.gguf --question x --data classes.txt
run 2 test t.gguf --data classes.txt --run none
check 'a file of a ranking that there is not' [ ! -e none ]

# ---- cross-validation

# shellcheck disable=SC2086
{
run 0 train $small --epochs 2 --folds 3
lines out 5
says out '^fold 1 of 3  accuracy 0\.[0-9]*  .*loss [0-9.]*  (40 examples)$'
says out '^fold 3 of 3  '
says out '^mean  accuracy 0\.'
says out '^sd    accuracy 0\.'
check 'mean and deviation of the folds' awk '$1 == "fold" { n++; s += $6; q += $6 * $6 }
    $1 == "mean" { mean = $3 } $1 == "sd" { sd = $3 }
    END { m = s / n; d = (q - n * m * m) / (n - 1); d = d > 0 ? sqrt(d) : 0
          exit !(m - mean < 1e-3 && mean - m < 1e-3 && d - sd < 1e-3 && sd - d < 1e-3) }' out
mean=$(awk '$1 == "mean" { print $3 }' out)
run 0 train $small --epochs 2 --folds 3 --json --log folds.jsonl --patience 5
lines out 1
says out '"folds": 3, "loss_sd": 0\.'
check 'not the time of all folds' [ "$(grep '"epoch": 2' folds.jsonl | sed 's/.*"seconds": \([^,]*\).*/\1/' |
    awk -v all="$(value out seconds)" '{ sum += $1 } END { print (sum - all) ^ 2 <= 1e-12 * all * all }')" -eq 1 ]
for key in task cell parameters examples seconds seed folds accuracy accuracy_sd loss; do
    says out "\"$key\": "
done
sed 's/, "each": .*//' out >all
check 'another mean as JSON' [ "$(printf %.4f "$(value all accuracy)")" = "$mean" ]
check 'the folds as JSON' [ "$(sed 's/.*"each": //' out | tr '{' '\n' | awk -v mean="$(value all accuracy)" '
    sub(/^"examples": 40, "loss": .*"accuracy": /, "") { sum += $0; n++ }
    END { print n == 3 && (sum / n - mean) ^ 2 < 1e-12 }')" -eq 1 ]
lines folds.jsonl 6
says folds.jsonl '^{"fold": 3, "epoch": 2, '
run 0 plot folds.jsonl # each fold is a run of its own
says out '^  a  folds.jsonl: fold 1, accuracy '
says out '^  c  folds.jsonl: fold 3, accuracy '
awk 'BEGIN { for (i = 1; i <= 65; i++) printf "{\"fold\": %d, \"epoch\": 1, \"loss\": 1}\n", i }' >many.jsonl
run 2 plot many.jsonl
says err 'many.jsonl:65: 64 runs and folds can be drawn together, not more'
awk '{ print NR % 2 ? "odd" : "even" }' classes.txt >by.txt
run 0 train $small --epochs 1 --folds-by by.txt
says out '^fold 2 of 2  .*(60 examples)$'
lines out 4
head -n 7 by.txt >short.txt
run 3 train $small --epochs 1 --folds-by short.txt
says err 'short.txt'
run 1 train $small --epochs 1 --folds-by no-such-file
run 2 train $small --folds 3 --folds-by by.txt
says err 'give one of them'
echo kept >kept.jsonl # what is refused leaves the log of the last run as it is
run 3 train $small --epochs 1 --folds-by short.txt --log kept.jsonl
run 2 train $small --epochs 1 --folds 600 --log kept.jsonl
says err 'expected from 2 to 120 folds'
head -n 1 classes.txt >one.txt
run 2 train --task classify --train one.txt --folds 2
says err 'expected three groups of data or more'
check 'a refused run has emptied a log' [ "$(cat kept.jsonl)" = kept ]
run 2 train $small --epochs 1 --folds 600 --log new.jsonl
check 'a refused run has left a new log' [ ! -e new.jsonl ]
run 2 train $small --folds 3 --max-time 1
says err '--folds has several'
if script -qec true typed >out 2>err </dev/null; then # on a terminal a message does not go on with the line of progress
    head -n 100000 long.txt >many.txt
    SHELL=/bin/sh script -qfec "echo \$\$ >process; exec '$carnn' train --task lm --train many.txt --hidden 32 --folds 3" \
        typed </dev/null >out 2>err &
    while ! grep -q 'fold 1' typed 2>grep && kill -0 $! 2>grep; do
        sleep 0.1 2>sleep || sleep 1
    done
    kill -INT "$(cat process)"
    wait $!
    tr '\r' '\n' <typed >out
    says out '^carnn: stopped in epoch 1'
else
    echo 'left out: there is no script -c, which gives a terminal'
fi
run 2 train $small --folds 1
run 2 train $small --folds 1000
run 2 train $small --folds 0
rm -f m.gguf
for other in '--out m.gguf' --resume '--valid classes.txt' '--test classes.txt'; do
    run 2 train $small --folds 3 $other
    says err 'do not go with --folds'
    run 2 train $small --folds-by by.txt $other
done
check 'cross-validation wrote a model' [ ! -e m.gguf ]
}

# ---- cloze questions

head -n 110 "$data/cloze-train.txt" >stories.txt # 11 questions
head -n 50 "$data/cloze-dev.txt" >asked.txt      # 5
small='--task cloze --hidden 8 --embedding 8 --threads 1 --quiet'
# shellcheck disable=SC2086
run 0 train $small --train stories.txt --valid asked.txt --epochs 2 --out z.gguf --json
for key in task cell parameters examples seconds seed accuracy loss; do says out "\"$key\": "; done
run 0 test z.gguf --data asked.txt --json
accuracy=$(value out accuracy)
run 0 predict z.gguf --data asked.txt
lines out 5
grep XXXXX asked.txt | cut -f 2 | paste - out | awk '{ n += $1 == $2 } END { print n / NR }' >found
check "accuracy of predict is $(cat found), of test $accuracy" [ "$(cat found)" = "$accuracy" ]
cp out answers
"$carnn" predict z.gguf <asked.txt | cmp -s - answers
check 'other candidates from standard input' [ $? -eq 0 ]
run 0 predict z.gguf --data asked.txt --top 2
check 'not two pairs' awk -F '\t' '{ n += NF != 4 } END { exit n }' out
run 0 explain z.gguf --data asked.txt --example 2
says out '^answer: [A-Z][a-z]* (probability 0'
says out ' text  [A-Z]'
says out '^example 2: .*XXXXX' # the text is in the table
check 'words with little attention' awk '$3 == "text" && $2 < 0.005 { exit 1 }' out
check 'no words with some attention' awk '$3 == "text" && $2 < 0.05 { n++ } END { exit !n }' out
run 2 test z.gguf --data asked.txt --report
printf '1 A b\n2 XXXXX c\tA\t\tB|C\n' >wrong.txt
run 3 test z.gguf --data wrong.txt
says err 'wrong.txt:2: expected an answer that is one of the candidates, found "A"'
printf '1 A b\n2 what\t\t\t\n' >none.txt
run 0 predict z.gguf --data none.txt
lines out 1
run 0 explain z.gguf --data none.txt

# ---- cloze: questions from a book, which a training reads

sed '/XXXXX/d; s/^[0-9]* //' "$data/cloze-train.txt" >tales.txt
run 0 cloze --sentences 3 --seed 7 tales.txt
mv out every.txt
run 0 cloze --sentences 3 --stride 50 --seed 7 tales.txt
cp out made.txt
check 'texts from every 50th sentence on are no fewer' \
    [ $(($(grep -c XXXXX every.txt) / 10)) -gt "$(grep -c XXXXX made.txt)" ]
check 'no questions' [ "$(grep -c '^4 .*XXXXX' made.txt)" -gt 9 ]
"$carnn" cloze --sentences 3 --stride 50 --seed 7 - <tales.txt | cmp -s - made.txt
check 'other questions from standard input' [ $? -eq 0 ]
# shellcheck disable=SC2086
run 0 train $small --train made.txt --epochs 1 --out made.gguf
printf 'basket\n' >things.txt
run 0 cloze --sentences 3 --asked things.txt tales.txt
check 'other words than those of the list' [ "$(grep XXXXX out | cut -f 2 | sort -u)" = basket ]
"$carnn" cloze --sentences 3 --asked - tales.txt <things.txt | cmp -s - out
check 'other words from standard input' [ $? -eq 0 ]
run 1 cloze no-such-file
run 2 cloze
run 2 cloze --sentences 0 tales.txt
run 2 cloze --length 3 tales.txt
run 2 hlep
says err 'did you mean "help"'
run 3 cloze /dev/null
echo 'no name is said .' >nameless.txt
run 3 cloze nameless.txt
says err 'nameless.txt: expected names (words with a capital within sentences, three times or more) that'
run 3 cloze --sentences 1000000 nameless.txt
says err ' within 1000001 sentences'
"$carnn" cloze - <nameless.txt >out 2>err
says err '^carnn: standard input: expected names .* that are said twice'
run 3 cloze --asked things.txt nameless.txt
says err 'nameless.txt: expected words of --asked that are said twice within 21 sentences'

# ---- ask: an answer line for each question; where it looked, where that is asked for

printf 'Mona lived by the sea.  They saw Felix -- with Greta'"'"'s dog.\n"hi," said Mona.\n' >tale.txt
printf 'they thanked XXXXX.\n\nno question\nwho? XXXXX\tAda|Greta\n' >typed.txt
"$carnn" ask z.gguf --text tale.txt <typed.txt >out 2>err
check 'ask fails' [ $? -eq 0 ]
lines out 3
check 'an answer that is no name' [ "$(sed -n 1p out | grep -c -x -e Mona -e Felix -e Greta)" -eq 1 ]
check 'an answer that is no candidate' [ "$(sed -n 3p out | grep -c -x -e Ada -e Greta)" -eq 1 ]
says err 'standard input:3: expected a question with XXXXX'
cp out answers
gzip -c tale.txt >tale.gz
"$carnn" ask z.gguf --text tale.gz <typed.txt >out 2>err
check 'other answers about a packed text' cmp -s answers out
"$carnn" ask z.gguf --text tale.txt --top 9 <typed.txt >out 2>err
check 'other names than three' [ "$(sed -n 1p out | tr '\t' '\n' | wc -l)" -eq 6 ]
printf 'who? XXXXX\tZoe\t\tAda|Greta\n' | "$carnn" ask z.gguf --text tale.txt --top 9 >out 2>err
check 'other candidates than those behind the last tab' \
    [ "$(tr '\t' '\n' <out | grep '[a-z]' | sort | tr '\n' ' ')" = 'Ada Greta ' ]
"$carnn" ask z.gguf --text tale.txt --explain --color <typed.txt >out 2>err
says out 'is what .* has in [12] place'
says out "$(printf '\033')"
yes 'it rained .' | head -n 60 | cat - tale.txt >long.txt
for text in tale long; do
    "$carnn" ask z.gguf --text $text.txt --explain <typed.txt >out 2>err
    check "sentences of $text.txt" awk '$1 ~ /^[0-9.]+$/ && !/ is what / && ($1 < 0.02 || /sea.* They/) {
        wrong = 1 } END { exit wrong }' out
done
NO_COLOR=1 "$carnn" ask z.gguf --text tale.txt --explain --color <typed.txt >out 2>err
check 'colour in spite of NO_COLOR' [ "$(grep -c "$(printf '\033')" out)" -eq 0 ]
printf 'XXXXX\n\tXXXXX\t\0\nXXXXX\t|\n' | "$carnn" ask z.gguf --text tale.txt >out 2>err
check 'odd questions' [ $? -eq 0 ]
printf 'who\0? XXXXX\tAda|Greta\n' | "$carnn" ask z.gguf --text tale.txt >out 2>err
check 'candidates behind a NUL are lost' [ "$(grep -c -x -e Ada -e Greta out)" -eq 1 ]
# shellcheck disable=SC2086
run 0 train $small --model attentive --train stories.txt --epochs 1 --out attentive.gguf
"$carnn" ask attentive.gguf --text tale.txt --explain <typed.txt >out 2>err
says out '^attention says where it looked'
run 2 ask z.gguf
says err '.-text FILE is missing'
run 2 ask z.gguf --text -
says err '.-text - is not a file'
run 1 ask z.gguf --text no-such-file
run 3 ask z.gguf --text /dev/null
echo 'x XXXXX' | "$carnn" ask a.gguf --text tale.txt >out 2>err
check 'a dialog model answers cloze questions' [ $? -eq 2 ]
run 0 test z.gguf z.gguf --data asked.txt --ensemble mean --out zz.gguf
"$carnn" ask zz.gguf --text tale.txt --explain <typed.txt >out 2>err
says out 'is what '

# ---- question files of CNN and Daily Mail

mkdir news
for i in 1 2 3; do
    printf 'u\n\n@entity%s met @entity%s by the sea\n\n@placeholder was met by @entity%s\n\n' \
        $i $((i + 1)) $i >news/$i.question
    printf '@entity%s\n\n@entity%s:Ann Lee\n@entity%s:Bob\n' $((i + 1)) $i $((i + 1)) >>news/$i.question
done
# shellcheck disable=SC2086
run 0 train $small --train news --epochs 40 --lr 0.02 --out news.gguf
run 0 test news.gguf --data news
says out ' (3 examples'
run 0 predict news.gguf --data news
check 'entities as answers' [ "$(grep -c '^@entity[1-4]$' out)" -eq 3 ]
run 0 predict news.gguf --data news/2.question
lines out 1
printf 'u\n\n@entity1\n\n@placeholder\n' >news/4.question
run 3 test news.gguf --data news
says err 'news/4.question:6: expected an answer such as @entity3, found the end'
mkdir none
run 3 test news.gguf --data none
says err 'none: expected files whose names end in .question, found none'

# ---- plot

run 0 plot log.jsonl
says out '^loss$'
says out '^accuracy$'
says out '  a  log.jsonl: accuracy 0\.[0-9]* at epoch [12]$'
sed 's/ log.jsonl:/ log.gz:/' out >plotted
gzip -c log.jsonl >log.gz
run 0 plot log.gz
check 'another plot of a packed log' cmp -s plotted out
"$carnn" plot - <log.jsonl | sed 's/ standard input:/ log.gz:/' | cmp -s - plotted
check 'another plot of standard input' [ $? -eq 0 ]
printf '{"epoch": 1, "loss": 4}\n{"epoch":2,"loss":9e9}\n{"epoch": 2, "loss": 3.0}\n' >'<a&b>'
printf '{"epoch": 3, "loss": 2, "who": "\\"\\\\", "valid": {"tokens": 1, "loss": null, "map": 0.5}}\r' \
    >>'<a&b>'
run 0 plot '<a&b>'
check 'a straight line from corner to corner' [ "$(sed -n '2p;17p' out | tr -d ' ' | tr '\n' ' ')" \
    = '4|aaa 2|aaa ' ]
run 0 plot '<a&b>' '<a&b>'
says out '\*\*\*$' # points of both
printf '{"epoch": 1, "loss": 1}\n{"epoch": 2, "loss": 19}\n' >wide.jsonl
printf '{"epoch": %d, "loss": 1, "valid": {"map": 0.%d}, "best_epoch": %d}\n' 1 5 1 2 7 2 3 6 2 >best.jsonl
run 0 plot best.jsonl
says out ' map 0\.7000 at epoch 2$'
for loss in '0.0005 5\.0e-04' '0.001 0\.0010' '1e15 1\.0000e+15'; do
    printf '{"epoch": 1, "loss": %s}\n' "${loss% *}" >small.jsonl
    run 0 plot small.jsonl
    says out " loss ${loss#* } at epoch 1\$"
done
run 0 plot wide.jsonl
for mark in 0 5 10 15 20; do says out "^ *$mark |"; done
sed 's/19/9/' wide.jsonl >half.jsonl
run 0 plot half.jsonl
for mark in 0 2 4 6 8 10; do says out "^ *$mark |"; done
for flat in 1 0.5 300 9.99999 1.00001 -4 0; do
    printf '{"epoch": 1, "loss": %s}\n' $flat >flat.jsonl
    run 0 plot flat.jsonl
    check "two marks are alike around $flat" \
        [ -z "$(sed -n 's/^ *\([-0-9.e]*\) |.*/\1/p' out | sort | uniq -d | grep .)" ]
done
control=$(printf 'a\001')
printf '{"epoch": 1, "loss": 2, "valid": {"loss": 1, "map": 0.5}, "best_epoch": 1}\n' >"$control"
run 0 plot "$control" --out f.svg
check 'a panel of one epoch' [ "$(grep -c -i -e nan -e inf f.svg)" -eq 0 ]
says f.svg '>a&#65533;: map ' # what is no character of XML
says f.svg 'r="5"'
check 'a point that has no value' [ "$(grep -c B out)" -eq 0 ]
run 0 plot '<a&b>' --out f.svg
empty out
empty err
run 0 plot '<a&b>' --out f.png
says err '^carnn: f.png is a picture in the format SVG'
cmp -s f.svg f.png
check 'another picture by another name' [ $? -eq 0 ]
cp f.svg kept.svg
(ulimit -f 1 && "$carnn" plot '<a&b>' --out f.svg) >out 2>err
check 'a picture is too large for the disk' [ $? -eq 1 ]
says err '^carnn: f.svg: cannot be written: '
check 'the old picture is lost' cmp -s f.svg kept.svg
says f.svg 'dasharray="5 3" points="0.0,0.0 190.0,130.0 380.0,260.0 "'
check 'marks within an epoch' [ "$(grep -c '>1\.5<' f.svg)" -eq 0 ]
run 0 plot '<a&b>' log.jsonl '<a&b>' --out f.svg
says f.svg '>&#60;a&#38;b&#62;: loss 2.0000 at epoch 3</text>'
check 'a panel for each metric' [ "$(grep -c 'font-weight="bold">' f.svg)" -eq 3 ]
check 'the picture is not closed' [ "$(tail -n 1 f.svg)" = '</svg>' ]
# ---- probes: the same model with and without; a line per epoch, which plot draws

chars="--task lm --unit char --chunk 20 --cell mi-rnn --hidden 6 --embedding 5 --epochs 2 --threads 1"
run 0 train $chars --train "$data/lm-dev.txt" --out unprobed.gguf
says err ' examples, [0-9]* characters, '
run 0 info unprobed.gguf
says out '^characters  *[0-9]*$'
printf '\316\261\316\262\n' >greek.txt
run 0 test unprobed.gguf --data greek.txt
says err 'greek.txt: .* % of the characters are unknown'
run 0 train --task lm --cell gru --hidden 4 --epochs 1 --quiet --train "$data/lm-dev.txt" --out words.gguf
printf 'a b c d\n' >short.txt # one piece of characters, and one sentence
for both in 'unprobed.gguf words.gguf' 'words.gguf unprobed.gguf'; do # pieces of characters, sentences
    run 0 test $both --data short.txt
    check 'a mean of words, one of characters' [ "$(grep -c against out)" -eq 0 ]
    run 0 test $both --data "$data/lm-test.txt"
    lines out 2
    check 'means of different things are compared' [ "$(grep -c against out)" -eq 0 ]
    run 0 test $both --data foreign.txt
    says err 'foreign.txt: [0-9]* % of the words are unknown'
done
run 0 train $chars --quiet --train "$data/lm-dev.txt" --out probed.gguf --probe probe.jsonl
check 'a probe changes the training' cmp unprobed.gguf probed.gguf
check 'a line per epoch' [ "$(wc -l <probe.jsonl)" -eq 2 ]
says probe.jsonl '^{"epoch": 2, "loss": [0-9.]*, "states": {"log_norm_1": -[0-9.]*, "log_norm_5": -[0-9.]*, '
check 'shares of activations' awk '{
    sub(/.*activations": \{/, "")
    for (n = split($0, part, ","); n; n--) { sub(/.*: /, "", part[n]); sum += part[n] } }
    END { exit !(sum > 1.9999 && sum < 2.0001) }' probe.jsonl
run 0 train --task lm --context none --hidden 4 --embedding 4 --epochs 1 --quiet \
    --train "$data/lm-dev.txt" --out words.gguf
run 0 test words.gguf --data "$data/lm-dev.txt" # models that read other pieces are scored on theirs
grep -o 'perplexity .*examples' out >alone
run 0 test unprobed.gguf --data "$data/lm-dev.txt"
grep -o 'perplexity .*examples' out >>alone
run 0 test words.gguf unprobed.gguf --data "$data/lm-dev.txt"
grep -o 'perplexity .*examples' out >together
check 'other scores beside another model' cmp alone together
run 0 plot probe.jsonl
check 'panels of a probe' [ "$(grep -c ' epoch$' out)" -eq 4 ]
says out '^log_norm_10$'
says out '^activations$'
says out '^ *-1  *1 value$'
run 0 plot probe.jsonl log.jsonl --out f.svg
check 'panels of a probe and a log' [ "$(grep -c 'font-weight="bold">' f.svg)" -eq 6 ]
check 'what is dashed is not the two losses of trainings' [ "$(grep -c dasharray f.svg)" -eq 2 ]
run 0 train --from probed.gguf --task lm --quiet --train "$data/lm-dev.txt" --out f.gguf --epochs 1 \
    --probe probe.jsonl --input-range 0.5
run 2 train --task lm --train x --out f.gguf --input-range -1
run 2 train --task pair --train "$data/pair-dev.tsv" --quiet --out f.gguf --probe f.jsonl
says err 'a probe is of the tasks lm, classify and signal'
run 2 train $chars --train "$data/lm-dev.txt" --out f.gguf --log f.jsonl --probe f.jsonl
says err 'f.jsonl is to be written, and is named once more'
"$carnn" plot - <log.jsonl >out 2>err
says out '^  a  standard input: accuracy '
"$carnn" plot - - <log.jsonl >out 2>err
check 'two runs from standard input' [ $? -eq 2 ]
says err 'standard input can be read only once'
run 1 train $chars --train "$data/lm-dev.txt" --out f.gguf --probe no-such-folder/f.jsonl
for bad in '' '{}' '{"epoch": 1}' '{"epoch": 0, "loss": 1}' 'epoch 1' \
    '{"epoch": 1, "loss": 1} x' '{"epoch": 1, "loss": inf}' '{"epoch": 1 "loss": 1}' '{"epoch"}' \
    '{"epoch": 1, "loss": "}' '{"epoch": 1, "loss": 1, "a": {"b": {}}}' \
    '{"epoch": 1e17, "loss": 1}' '{"epoch": 1, "loss": 1e30}' '{"fold": -1, "epoch": 1, "loss": 1}' \
    '{"epoch": 1, "loss": 1, "activations": {"1e29": 1}}' \
    '{"epoch": 1, "loss": 1, "activations": {"nan": 1}}' \
    "{$(printf '"%09d": 1, ' $(seq 5000)) \"epoch\": 1, \"loss\": 1}"; do
    printf '{"epoch": 1, "loss": 4}\n%s\n' "$bad" >bad.jsonl
    run 3 plot bad.jsonl --out g.svg
    says err '^carnn: bad.jsonl:2: expected an object with "epoch" and "loss"'
done
check 'bad data, but a picture' [ ! -e g.svg ]
printf '{"epoch": 1, "loss": 4}\n{"epoch": 2, "lo\n{"epoch": 2, "loss": 3, "valid": {"loss": 2}' >cut.jsonl
run 0 plot cut.jsonl # of runs that were killed
says out 'a  cut.jsonl: loss 4.0000 at epoch 1$'
says err '^carnn: cut.jsonl:2: the line is cut off, and left out$'
says err '^carnn: cut.jsonl:3: '
sed 1d cut.jsonl >all-cut.jsonl
run 3 plot all-cut.jsonl
says err '^carnn: all-cut.jsonl:1: expected an epoch, found none$'
run 3 plot log.jsonl nothing
says err 'nothing:1: expected an epoch, found an empty file'
run 3 plot -
says err '^carnn: standard input:1: expected an epoch, found an empty file'
run 1 plot "$(printf 'no\033-such\nfile')"
says err '^carnn: no?-such?file: '
run 1 plot /
lines err 1
run 1 plot log.jsonl --out no-such-folder/f.svg
run 2 plot

# ---- depth

run 0 depth td "$data/graph.txt"
lines out 8
empty err
says out '^td: valid, unidirectional, period 1, 4 nodes, 6 edges$'
says out '^  recurrent depth    3/2    length 3, delay 2: b -0-> c -1-> a -1-> b$'
says out '^  feedforward depth  7/2    length 5, delay 1: '
run 0 depth fig4.3b:3:17 --json
lines out 1
says out '"skip_coefficient": {"numerator": 17, "denominator": 2, '
printf 'node x in\nnode a hidden\nnode y out\nedge x a 0\nedge a y 0\nedge a a 1\n' >graph
printf 'node b hidden\nedge x b 0\nedge b b -1\n' | cat graph - >both
run 0 depth both
says out '^both: valid, bidirectional, '
says out '^ backward in time:$'
says out '^  feedforward depth  none   no path from an input to an output$'
run 0 depth both --json
says out '"feedforward_depth": null'
sed 's/edge a a 1/edge a a -1/' graph >backward
run 0 depth backward
says out '^ backward in time:$'
sed 's/edge a a 1/edge a a 6/' graph >six
run 0 depth six --out six.svg
check 'three edges, and those of eight steps' [ "$(grep -c marker-end six.svg)" -eq 21 ]
for color in 'd55e00 3' 'f0c000 5' '0072b2 3'; do # in the graph, its unfolding and the legend
    check "what attains the measure of ${color% *}" \
        [ "$(grep -c "#${color% *}.*opacity" six.svg)" -eq "${color#* }" ]
done
for period in 24 25; do
    { echo "period $period"; sed "s/edge a a 1/edge a a $period/; /^node/s/\$/ 0/" graph; } >long
    run $(((period - 24) * 2)) depth long --out long.svg
done
# shellcheck disable=SC2046  # 64 words
run 0 depth $(yes td | head -n 64)
lines out 256
cp graph network
run 0 train --task lm --cell lstm --encoder graph --graph network --train "$data/lm-dev.txt" \
    --hidden 4 --epochs 1 --quiet --out network.gguf
rm network
run 0 generate network.gguf --sentences 2
lines out 2
run 0 info network.gguf
says out '^graph           network$'
run 0 info network.gguf --json
says out '"graph": "network"'
run 2 train --task dialog --graph td --train x --out y
says err 'graph is an option of the tasks lm, answer, classify, pair, cloze'
run 2 train --task lm --cell rnn --encoder graph --graph both --train "$data/lm-dev.txt" --out y
run 1 train --task lm --cell rnn --encoder graph --graph tf --train "$data/lm-dev.txt" --out y
says err 'tf: No such file or directory, and not a graph known by name: sh, st, bu, td'
printf 'edge a a 0\n' | cat graph - >bad
run 3 depth sh bad
empty out
says err '^carnn: bad:7: expected no closed walk of delay 0 (condition 3), found a -0-> a$'
run 0 depth "$data/graph.txt" --out f.svg
lines out 4
check 'the edges of the graph and of five steps' [ "$(grep -c 'marker-end' f.svg)" -eq 30 ]
check 'the picture is not closed' [ "$(tail -n 1 f.svg)" = '</svg>' ]
run 2 depth td sh --out f.svg
run 1 depth td --out no-such-folder/f.svg
run 1 depth grid:0x1
says err 'known by name: sh, st, bu, td, grid:RxF (R from 1, F from 2, both up to 1000)'
run 2 depth
run 0 help depth
says out 'edge FROM TO DELAY'

# ---- rows of numbers

small='--task signal --columns 2 --hidden 16 --threads 1 --quiet'
run 0 train $small --train "$data/signal-train.tsv" --valid "$data/signal-dev.tsv" --epochs 3 \
    --out s.gguf --json
says out '"accuracy": 0\.[0-9]*, "best_epoch"'
run 0 test s.gguf --data "$data/signal-test.tsv" --json
says out '"task": "signal"'
cut -f 2- "$data/signal-test.tsv" | sed "s/^/?$(printf '\t')/" >asked.txt # what is right need not be known
run 0 predict s.gguf --data asked.txt
lines out 80
cp out told
"$carnn" predict s.gguf <asked.txt >out 2>err
check 'standard input tells the same' cmp -s out told
head -n 1 asked.txt | cut -f 2- | tr '\t' '\n' | paste - - >rows.txt
{ cat rows.txt; echo; cat rows.txt; } | "$carnn" predict s.gguf --stream >out 2>err
lines out $((2 * $(wc -l <rows.txt)))
{ cat rows.txt; echo; cat rows.txt; } | "$carnn" predict s.gguf --stream --data - 2>err | cmp -s - out
check 'other answers from -, line by line' [ $? -eq 0 ]
check 'the last row tells what the sequence does' [ "$(tail -n 1 out)" = "$(head -n 1 told)" ]
check 'another sequence tells the same' \
    [ "$(tail -n 1 out)" = "$(sed -n "$(wc -l <rows.txt)p" out)" ]
printf '1 2\n1 2 3\n' | "$carnn" predict s.gguf --stream >out 2>err
check 'a row that is too long' [ $? -eq 3 ]
says err '^carnn: standard input:2: expected a row of 2 numbers, found "1 2 3"$'
run 2 predict s.gguf --stream --data asked.txt
printf '<unk> 1 2\n' >vectors.txt
run 2 train $small --train "$data/signal-train.tsv" --vectors vectors.txt --out v.gguf
says err 'rows of numbers have no word vectors'
run 2 predict z.gguf --stream
printf 'trip,x,y,far\n1,0.5,1,2.5\n1,1,2,2.5\n2,3,1,7.25\n2,3,4,7.25\n3,1,1,3\n' >trips.csv
run 0 train $small --train trips.csv --group trip --target far --epochs 2 --out t.gguf
says out '^train  mse '
run 0 test t.gguf --data trips.csv --json # the model has the names of the columns
says out '"mse": [0-9]'
run 0 predict t.gguf --data trips.csv
lines out 3
cp out told
sed '1s/trip,x,y,far/ride,x,y,length/' trips.csv >rides.csv
run 0 predict t.gguf --data rides.csv --group ride --target length
check 'other names of the columns tell the same' cmp -s out told
run 3 test t.gguf --data rides.csv
says err 'rides.csv:1: expected a column "trip", found "ride,x,y,length"'
cut -d , -f 1,2,4 trips.csv >fewer.csv
run 3 predict t.gguf --data fewer.csv
says err 'fewer.csv: expected 2 columns of numbers, as [^ ]*.gguf was trained with, found 1$'
head -n 1 fewer.csv >header.csv
run 3 predict t.gguf --data header.csv
says err '^carnn: header.csv: expected 2 columns of numbers, as [^ ]*.gguf was trained with, found 1$'
printf 'x\t1\t2\ny\t3\t4\n' >two.tsv
for columns in 1 2; do
    run 0 train --task signal --train two.tsv --columns $columns --hidden 4 --epochs 1 --quiet \
        --out rows-$columns.gguf
done
run 2 test rows-1.gguf rows-2.gguf --data two.tsv
says err '^carnn: the data set has rows of 1 numbers, rows-2.gguf reads rows of 2 (embedding)$'
cut -d , -f 1-3 trips.csv >unknown.csv
run 0 predict t.gguf --data unknown.csv
check 'what is right need not be known in a table either' cmp -s out told
run 0 train $small --from t.gguf --train trips.csv --epochs 1 --out u.gguf
run 0 info u.gguf
says out '^group *trip$'
awk -F , -v OFS=, 'NR > 1 { $4 /= 1000 } 1' trips.csv >near.csv
run 0 train $small --train near.csv --group trip --target far --epochs 2 --out n.gguf
says out '^train  mse [1-9]\.[0-9]e-0[5-9]  loss [0-9]'
run 0 train ${small% --quiet} --train near.csv --valid near.csv --group trip --target far --epochs 2 \
    --out n.gguf --log near.jsonl
says err '^3 examples, numbers in a row: 2, targets are numbers, '
says err ' mse [1-9]\.[0-9]e-0[5-9]  best [1-9]\.[0-9]e-0[5-9] '
says out '^valid  mse [1-9]\.[0-9]e-0[5-9]  loss [0-9]'
awk -v OFS='\t' 'BEGIN { for (i = 1; i < 9; i++) print i "e19", i, 1 }' >far.tsv
run 0 train --task signal --target-kind number --train far.tsv --epochs 1 --hidden 4 --out n.gguf
says out '^train  mse [1-9]\.[0-9]*e+3[0-9]  loss [0-9]' # not the first digits of 40
run 0 test n.gguf --data far.tsv --json
says out '"mse": [1-9]\.[0-9]*e+3[0-9]'
run 0 predict n.gguf --data far.tsv
empty err
printf 'c d e\t1\t2\t3\n' >far.tsv # classes of rows that the model does not know
run 0 predict steps.gguf --data far.tsv
empty err
run 0 plot near.jsonl
says out ' mse [1-9]\.[0-9]e-0[5-9] at epoch [12]'
run 3 train $small --train trips.csv --group trip --target fare --out t.gguf
says err 'trips.csv:1: expected a column "fare", found "trip,x,y,far"'
run 2 train --task classify --train "$data/classify-train.tsv" --target far --out c.gguf
says err 'target is an option of the tasks pair, signal, not of classify'
run 2 test all.gguf --data "$data/dialog-dev.txt" --target far
says err 'the task dialog has no rows of numbers'
run 2 test g.gguf --data trips.csv --target "$(printf '%0256d' 0)"
says err 'target: a text of more than 255 bytes$'
printf '\000\000\010\003\000\000\000\002\000\000\000\001\000\000\000\002abcd' >images
printf '\000\000\010\001\000\000\000\002\001\002' >labels
printf '1\n0\n' >order
run 0 train $small --train images --valid images --labels labels --labels labels \
    --permutation order --epochs 1 --out i.gguf
run 0 predict i.gguf --data images
lines out 2
cp out told
"$carnn" predict i.gguf --labels labels <images >out 2>err
check 'labels of images from standard input' cmp -s out told
run 3 train $small --train images --out i.gguf
says err 'images:1: expected a file of labels beside the images (--labels), found none'
run 2 train $small --train images --labels i.gguf --out i.gguf
says err 'i.gguf is to be written, and is named once more'
# the files of labels are those of the images in the order in which both are named
printf '\000\000\010\003\000\000\000\002\000\000\000\001\000\000\000\002cdab' >swapped
printf '\000\000\010\001\000\000\000\002\002\001' >labels2
run 0 train $small --train images --labels labels --epochs 30 --lr 0.1 --out i.gguf
run 0 test i.gguf --data swapped --labels labels2
says out 'accuracy 1.0000'
run 0 train $small --test swapped --labels labels2 --train images --labels labels --epochs 30 --lr 0.1 \
    --out i.gguf
says out '^test  *accuracy 1.0000'
run 0 train $small --train images --labels labels --test images --labels labels2 --epochs 30 --lr 0.1 \
    --out i.gguf
says out '^test  *accuracy 0.0000'
"$carnn" predict i.gguf --stream --labels labels </dev/null >out 2>err
check 'labels of no file' [ $? -eq 2 ]
run 2 predict i.gguf --data images --labels labels --labels labels
says err 'expected a file for each file of images, found more'

# ---- what would have no effect is refused, what is doubtful is said

run 2 train --task answer --pooling max --train "$data/answer-train.tsv" --out f.gguf
says err 'pooling has an effect only where model is one of these: ca cosine$'
small='--hidden 4 --embedding 4 --epochs 1 --threads 1 --quiet --out f.gguf'
run 0 train --task answer --model cosine --pooling attention --direction a2q \
    --train "$data/answer-dev.tsv" $small
run 0 train --task pair --pooling attention --direction r2l --train "$data/pair-dev.tsv" $small
run 0 train --task pair --direction l2r --grades 5 --train "$data/pair-dev.tsv" $small
run 2 train --task pair --direction r2l --train "$data/pair-dev.tsv" $small
says err 'direction has an effect only where alignment or pooling is one of these: overlap file'
run 0 train --task pair --alignment overlap --direction r2l --train "$data/pair-dev.tsv" $small
for model in iwan ap cosine 'cosine --alignment overlap'; do
    run 2 train --task answer --model $model --direction a2q --train "$data/answer-dev.tsv" $small
done
run 2 train --task answer --model cosine --alignment overlap --train "$data/answer-dev.tsv" $small
says err 'alignment has an effect only where model is one of these: ca$'
run 2 train --task answer --model ap --pooling max --train "$data/answer-dev.tsv" $small
says err 'pooling has an effect only where model is one of these: ca cosine$'
run 2 train --task answer --model ca --alignment none --direction a2q \
    --train "$data/answer-dev.tsv" $small
run 0 train --task answer --model ca --direction a2q --train "$data/answer-dev.tsv" $small
for model in ca ap cosine; do # also where it compares words
    run 2 train --task answer --model $model --overlap 4 --traits 1 --train "$data/answer-dev.tsv" \
        $small
    says err 'traits has an effect only where model is one of these: iwan siamese$'
done
run 2 train --task answer --model ap --smoothing 0.1 --train "$data/answer-dev.tsv" $small
says err 'smoothing has an effect only where loss is one of these: pair rank$'
run 0 train --task answer --model ap --loss rank --smoothing 0.1 \
    --train "$data/answer-dev.tsv" $small
run 2 train --task cloze --smoothing 0.1 --train "$data/cloze-dev.txt" $small
says err 'smoothing has an effect only where model is one of these: attentive weighted$'
printf '1.5\t1\n2\t0\n' >numbers.tsv
run 2 train --task signal --smoothing 0.1 --train numbers.tsv --out f.gguf
says err 'smoothing has an effect only where target-kind is one of these: class steps$'
run 2 train --task pair --grades 7 --train "$data/pair-dev.tsv" $small
says err 'grades has an effect only where target is one of these: relatedness$'
run 2 train --task lm --raw-output-gate 1 --train "$data/lm-dev.txt" --out f.gguf
says err 'raw-output-gate has an effect only where encoder is one of these: rcrn'
run 2 train --task lm --cell lstm --label-weight 0.1 --train "$data/lm-dev.txt" --out f.gguf
says err 'label-weight has an effect only where context is one of these: previous$'
cut -f 1 "$data/lm-dev.txt" >unlabelled.txt
run 2 train --task lm --label-row own --train unlabelled.txt --out f.gguf
says err 'label-row has an effect only where label-weight is above 0$'
run 2 train --task answer --redundancy 1 --overlap 0 --train "$data/answer-dev.tsv" --out f.gguf
says err 'redundancy has an effect only where overlap is above 0$'
run 2 train --task answer --place 1 --model ca --train "$data/answer-dev.tsv" --out f.gguf
says err 'place has an effect only where model is one of these: iwan siamese$'
run 2 train --task signal --min-count 2 --columns 2 --train "$data/signal-dev.tsv" --out f.gguf
says err 'min-count has no effect in the task signal$'
run 2 train --task lm --patience 2 --train "$data/lm-dev.txt" --out f.gguf
says err 'patience needs --valid'
for task in dialog lm cloze; do # what is refused is not offered either
    run 2 train --task $task --vector-words 3 --vectors "$data/graph.txt" --out f.gguf \
        --train "$data/$task-dev.txt"
    says err "vector-words has no effect in the task $task"
    run 0 help $task
    check "help $task has --vector-words" [ "$(grep -c -e --vector-words out)" -eq 0 ]
done
run 0 help signal
check 'help signal has options of words' \
    [ "$(grep -c -e --min-count -e --vector-words -e --embedding out)" -eq 0 ]
run 0 help train # of an option the tasks where it has an effect have defaults
tr -s '\n ' ' ' <out >told
says told '--embedding N size of the word embeddings[^[]*\[[^]]*cloze 64, skip-thought 50\]'
run 2 train --task signal --train trips.csv --group trip --target far --columns 3 --out f.gguf
says err 'columns is 3, but the rows of the data have 2 numbers$'
run 0 help pair
says out '--vector-words N'
run 2 train --task pair --vector-words 3 --train "$data/pair-dev.tsv" --out f.gguf
says err 'vector-words needs --vectors'
run 2 train --task lm --train "$data/lm-dev.txt" --out -
says err '.-out: expected the name of a file to write, found "-"'
check 'a file called -' [ ! -e ./- ]
small='--task classify --hidden 8 --embedding 8 --epochs 1 --threads 1 --quiet'
printf 'x\ta b\ny\tb c\nx\ta\ny\tc\n' >two.txt
printf 'x\ta\nz\tb\n' >half.txt
printf 'p\ta\nq\tb\n' >other.txt
run 0 train $small --train two.txt --valid other.txt --test half.txt --out two.gguf
says err 'other.txt: nothing is scored: the model knows no target, the texts do not have them, or no sentence is right'
says err 'half.txt: 1 of 2 targets are not in the loss'
check 'classes that are none of the model name columns' [ "$(grep -c 'name columns' err)" -eq 0 ]
run 0 test two.gguf --data half.txt
says err 'half.txt: 1 of 2 targets'
{ printf 'z\ta\n'; yes 'x	b' | head -n 9; } >tenth.txt
run 0 test two.gguf --data tenth.txt
says err 'tenth.txt: 1 of 10 targets'
printf 'x\tb\n' >>tenth.txt
run 0 test two.gguf --data tenth.txt
check 'one of 11 targets' [ "$(grep -c ' of 11 targets' err)" -eq 0 ]
printf 'x\ta\nx\tb\n' >one.tsv
run 0 train --task classify --train one.tsv --epochs 1 --hidden 4 --embedding 4 --out one.gguf
says err 'one.tsv: examples: 2, classes: 1; is it as expected?'
printf 'answer\tleft\tright\nyes\ta\tb\nno\ta\tc\nno\tb\tc\nyes\tc\ta\nno\tc\tb\nno\ta\ta\n' >odd.tsv
run 0 train --task pair --train odd.tsv --epochs 1 --hidden 4 --embedding 4 --out odd.gguf
says err 'only the first example has the class answer; .* called label and sentence1, sentence2$'
printf 'A\302\200\337\277B\340\240\200\355\237\277\356\200\200C\360\220\200\200\364\217\277\277' >right
printf '\200\301\277\340\237\277\355\240\200\360\217\277\277\364\220\200\200\365\200\200\200\303' >wrong
{ cat right wrong; printf '\ta\ny\tb\nx\tc\n'; } >bytes.tsv
run 0 train --task classify --train bytes.tsv --epochs 1 --hidden 4 --embedding 4 --out bytes.gguf
run 0 test bytes.gguf --data bytes.tsv --report --json
none=$(LC_ALL=C tr '\000-\377' '[x*]' <wrong | sed 's/x/\\ufffd/g')
check 'characters, and bytes that are none' grep -q -F -e "\"class\": \"$(cat right)$none\"" out
printf 'x\t0.1\t0.2\ny\t0.3\t0.1\nx\t0.2\t0.2\n' >rows.tsv
run 0 train --task signal --train rows.tsv --epochs 1 --quiet --hidden 4 --out rows.gguf
run 0 predict rows.gguf --data rows.tsv
empty err
cut -f 2- rows.tsv >unlabelled.tsv
run 0 predict rows.gguf --data unlabelled.tsv
says err 'no line begins with a class that the model knows'
sed 's/^/\t/' unlabelled.tsv >empty.tsv
run 0 predict rows.gguf --data empty.tsv
empty err
lines out 3
printf '1 Ann went home .\n2 XXXXX slept .\tAnn\t\tAnn|Tom\n' >ann.txt
run 0 train --task cloze --train ann.txt --epochs 1 --quiet --hidden 4 --embedding 4 --out ann.gguf
mkdir news.question # a folder, whatever it is called
printf 'u\n\n@entity1 sat\n\n@placeholder sat\n\n@entity1\n\n@entity1:A\n@entity2:B\n' \
    >news.question/a.question
run 0 train --task cloze --train news.question --epochs 1 --hidden 4 --embedding 4 --out news.gguf
says err '^news.question: read as question files'
echo 'nobody was there .' >nobody.txt
printf 'XXXXX slept\nXXXXX slept\tTom|Bob\n' | "$carnn" ask ann.gguf --text nobody.txt >out 2>err
says err 'standard input:1: the text has no names; candidates can be written behind a tab'
says err 'standard input:2: the text has none of the candidates'
printf 'XXXXX slept\nXXXXX slept\t|\n' | "$carnn" ask ann.gguf --text "$data/story.txt" >out
check 'no candidate behind a tab, another answer' [ "$(uniq out | wc -l)" -eq 1 ]

# ---- explanations, unknown words and prompts

printf 'premise\thypothesis\tlabel\na\tb\tyes\na\tc\tno\nb\tc\tno\nc\ta\tyes\n' >pairs.tsv
run 0 train --task pair --cell gru --pooling attention --train pairs.tsv --epochs 1 --hidden 4 --embedding 4 \
    --out attends.gguf
tr '\t' , <pairs.tsv >pairs.csv
run 0 test attends.gguf --data pairs.csv
says out '4 examples'
run 0 explain attends.gguf --data pairs.tsv --example 1
says out 'share  attention'
says out '^ *[+-]0.0000 *rest'
run 0 train --from attends.gguf --vector-words 3 --train pairs.tsv --epochs 1 --out f.gguf
printf '1 aa bb\tyes\n2 cc\tno\n\n1 bb cc\tno\n2 aa\tyes\n' >known.txt
printf '1 zz\tyes\n2 qq\tno\n' >strange.txt
run 0 train --task dialog --train known.txt --epochs 1 --hidden 4 --embedding 4 --out known.gguf
run 0 test known.gguf --data strange.txt
says err 'strange.txt: 50 % of the words are unknown' # the replies are known
printf 'a b\n\nb a\n\na a\n' >alone.txt
run 0 train --task skip-thought --train alone.txt --epochs 1 --hidden 4 --embedding 4 --out alone.gguf
run 0 test alone.gguf --data alone.txt
says err 'alone.txt: nothing is scored'
check 'a loss that is none' [ "$(grep -c 'loss' out)" -eq 0 ]
run 0 train --task lm --train alone.txt --min-count 1 --epochs 1 --hidden 4 --embedding 4 --out alone.gguf
run 0 generate alone.gguf --sentences 1 --prompt 'a </s> b' --temperature 0
says out '^a </s> b'

# ---- files that are not what was meant

printf 'a b\tx y\na c\tx z\nb c\ty\n' >text.tsv
run 0 train --task classify --train text.tsv --epochs 1 --hidden 4 --embedding 4 --out text.gguf
says err 'text.tsv: examples: 3, classes: 3; is it as expected? ("class<TAB>text"'
printf 'x y\t1\nx z\t0\nx\t1\n' >behind.tsv
sed 's/\(.*\)\t\(.*\)/\2\t\1/' behind.tsv >before.tsv
for file in before behind; do
    [ $file = before ] && echo 'Label	text' >named.tsv || echo 'sentence	label' >named.tsv
    cat $file.tsv >>named.tsv
    run 0 train --task classify --train named.tsv --epochs 1 --hidden 4 --embedding 4 --threads 1 \
        --out $file.gguf
    says err '^3 examples, .* 2 choices'
    check 'two classes are too many' [ "$(grep -c 'is it as expected' err)" -eq 0 ]
    run 0 test $file.gguf --data named.tsv
done
check 'columns exchanged make a difference' cmp -s before.gguf behind.gguf
awk -F '\t' 'BEGIN { print "id\ttext\tnote\tlabel" } { print NR "\t" $1 "\tn\t" $2 }' behind.tsv >named.tsv
run 0 train --task classify --train named.tsv --epochs 1 --hidden 4 --embedding 4 --threads 1 \
    --out among.gguf
check 'other columns make a difference' cmp -s among.gguf behind.gguf
awk -F '\t' 'BEGIN { print "text;label" } { print "\"" $1 "\";" $2 }' behind.tsv | gzip >named.csv.gz
printf 'x\ta\n' >single.tsv
run 0 train --task classify --train single.tsv --epochs 1 --hidden 4 --embedding 4 --out single.gguf
says err '^1 example, 1 word, 1 choice, '
run 0 test single.gguf --data single.tsv
says out '(1 example, '
run 0 train --task classify --train named.csv.gz --epochs 1 --hidden 4 --embedding 4 --threads 1 \
    --out among.gguf
says err '^named.csv.gz: read as two columns (text, class)$'
check 'CSV makes a difference' cmp -s among.gguf behind.gguf
printf 'x;a b\ny\n' >short.csv
run 3 train --task classify --train short.csv --out no.gguf
says err 'short.csv:2: expected two columns (class, text), found "y"$'
cut -f 1-3 named.tsv >asked.tsv
run 0 predict among.gguf --data asked.tsv
lines out 3
for file in named.tsv asked.tsv; do
    "$carnn" predict among.gguf --top 2 --data $file >out 2>err
    "$carnn" predict among.gguf --top 2 <$file >twice 2>err
    check "$file from standard input" cmp -s out twice
done
cut -f 2 named.tsv >asked.tsv
run 0 predict among.gguf --data asked.tsv
lines out 3
echo "x${tab}text" >one.tsv
run 0 predict among.gguf --data one.tsv
lines out 1
run 2 test among.gguf --data named.tsv --counts
says err 'the metrics of classify have no other counts$'
sed 's/label/Thema/; s/text/Brief/' named.tsv | cut -f 2,4 >odd.tsv
awk -F '\t' '{ print $2 "\t" $1 } NR > 1 { print $2 "\t" $1 }' odd.tsv >foreign.tsv
run 0 train --task classify --train foreign.tsv --epochs 1 --hidden 4 --embedding 4 --out foreign.gguf
says err 'foreign.tsv: only the first example has the class Thema; does its line name columns?'
run 0 test among.gguf --data foreign.tsv # so does a file that is scored or predicted
says err 'foreign.tsv: only the first example has the class Thema; does its line name columns?'
run 0 predict among.gguf --data foreign.tsv
says err 'foreign.tsv: only the first example has the class Thema; does its line name columns?'
{ printf 'label\ttext\nrare\tit was so\n'; sed 1d foreign.tsv; } >rare.tsv
run 0 train --task classify --train rare.tsv --epochs 1 --hidden 4 --embedding 4 --out foreign.gguf
check 'names that are known are no doubt' [ "$(grep -c 'name columns' err)" -eq 0 ]
sed 1d foreign.tsv >plain.tsv
run 0 train --task classify --train plain.tsv --valid foreign.tsv --epochs 1 --hidden 4 --embedding 4 \
    --out foreign.gguf
says err 'foreign.tsv: only the first example has the class Thema; does its line name columns?'
run 0 test among.gguf --data plain.tsv
check 'a class of the model is no name of a column' [ "$(grep -c 'name columns' err)" -eq 0 ]
run 0 predict among.gguf --data plain.tsv
check 'a class of the model is no name of a column' [ "$(grep -c 'name columns' err)" -eq 0 ]
{ cat plain.tsv; printf 'x\tgro\337\n'; } >latin.tsv
run 0 predict among.gguf --data latin.tsv
says err "latin.tsv: example 7 is not UTF-8; iconv -f WINDOWS-1252 -t UTF-8 may convert"
{ cat plain.tsv; printf 'x\tgro\303\237\n'; } >utf8.tsv
run 0 predict among.gguf --data utf8.tsv
check 'UTF-8 is UTF-8' [ "$(grep -c 'not UTF-8' err)" -eq 0 ]

tiny='--epochs 1 --hidden 4 --threads 1 --out doubt.gguf'
awk -F '\t' '{ print $1 ",id " NR ",\"" $2 ", too\"" }' plain.tsv >table.csv
run 0 train --task classify --train table.csv $tiny
says err '^carnn: table.csv: the text of every example is 2 columns; a first line'
run 0 test doubt.gguf --data table.csv
{ echo label,id,text; cat table.csv; } >header.csv
awk -F '\t' '{ print $1 "," $2 (NR > 1 ? ", too" : "") }' plain.tsv >commas.csv # in texts
for file in header commas; do
    run 0 train --task classify --train $file.csv $tiny
    check "columns of $file.csv" [ "$(grep -c 'text of every' err)" -eq 0 ]
done
awk -F '\t' '{ print $2 "\t" $1 }' plain.tsv >swapped.tsv
run 0 predict among.gguf --data swapped.tsv
says err '^carnn: swapped.tsv: no example has a class that the model knows; is another column taken'
run 0 predict among.gguf --data plain.tsv
check 'a class of the model is known' [ "$(grep -c 'the model knows' err)" -eq 0 ]
printf 'Time,x,y,is\n1,0.1,2,a\n2,0.3,3,b\n3,0.2,2,a\n' >table.csv
run 0 train --task signal --train table.csv --target is $tiny
says err '^carnn: table.csv: each line is read as a sequence of 3 rows of one number; --columns 3 makes'
for columns in 1 2; do
    run 0 train --task signal --train table.csv --target is --inputs x,y --columns $columns $tiny
    check 'columns that are asked for' [ "$(grep -c 'table.csv: ' err)" -eq 0 ]
done
run 0 train --task signal --train table.csv --target is --group Time --inputs x,y $tiny
check 'rows of a group' [ "$(grep -c 'table.csv: ' err)" -eq 0 ]

printf 'a b\tc\t1\na b\tf\t0\nd e\tf\t0\na b\tg\t0\nd e\tg\t1\n' >shuffled.tsv
run 0 train --task answer --train shuffled.tsv --epochs 1 --hidden 4 --embedding 4 --out shuffled.gguf
says err 'shuffled.tsv: sentences: 5, questions: 4; do the lines of a question stand together?'
sort shuffled.tsv >sorted.tsv
run 0 train --task answer --train sorted.tsv --epochs 1 --hidden 4 --embedding 4 --out shuffled.gguf
check 'sorted questions are no doubt' [ "$(grep -c 'stand together' err)" -eq 0 ]
run 0 train --task answer --train sorted.tsv --valid shuffled.tsv --epochs 1 --hidden 4 --embedding 4 \
    --out shuffled.gguf
says err 'shuffled.tsv: sentences: 5, questions: 4; do the lines of a question stand together?'
run 0 test shuffled.gguf --data shuffled.tsv
says err 'shuffled.tsv: sentences: 5, questions: 4; do the lines of a question stand together?'
for from in 1 2; do # also of two sentences each
    sed -n "$from,\$p" sorted.tsv >some.tsv
    run 0 test shuffled.gguf --data some.tsv
    check 'sorted questions are no doubt' [ "$(grep -c 'stand together' err)" -eq 0 ]
done
printf 'a b\n\nc d\n\ne f\n' >spread.txt
run 0 train --task skip-thought --train spread.txt --epochs 1 --hidden 4 --embedding 4 --out spread.gguf
says err 'spread.txt: sentences: 3, documents: 3; each empty line ends a document$'
printf 'id,label,text\n1,x,yes, no\n' >commas.csv
run 3 train --task classify --train commas.csv --out none.gguf
says err 'commas.csv:2: expected 3 columns (here with tabs; a comma in one needs quotation marks), '
printf 'id,label,text\n1,x,yes\n2,x,yes, no\n' >commas.csv
run 3 predict among.gguf --data commas.csv # it would be answered from a part of its text
empty out
says err 'commas.csv:3: expected 3 columns (here with tabs; a comma in one needs quotation marks), '
printf '4\ty\tn\t\n' | cat named.tsv - >empty.tsv
run 3 test among.gguf --data empty.tsv
says err 'empty.tsv:5: expected a class, found "4\\ty\\tn\\t"$'
run 0 predict among.gguf --data empty.tsv
lines out 4
printf '4\ty\tn\n' >>named.tsv
run 3 test among.gguf --data named.tsv
says err 'named.tsv:5: expected the columns that the first line names, found "4\\ty\\tn"$'
run 0 predict among.gguf --data named.tsv
lines out 4
printf 'label\ttext\n' >named.tsv
run 0 train --task classify --train named.tsv --train before.tsv --epochs 1 --hidden 4 --embedding 4 \
    --out named.gguf
says err '^4 examples, .* 3 choices' # one line is no header
run 0 train --task pair --train pairs.tsv --epochs 1 --hidden 4 --embedding 4 --out pairs.gguf
says err '^4 examples, .* 2 choices'
printf '<unk> 5 6\nx 1 2\nq 3 4\n' >two.txt # <unk> is no word of the data
run 0 train --task classify --train before.tsv --vectors two.txt --epochs 1 --hidden 4 --out vectors.gguf
says err 'vectors of 1 of 3 in the data,'
check 'a warning in vain' [ "$(grep -c 'right file' err)" -eq 0 ]
says err '^before.tsv: read as class<TAB>text$'
run 0 train --task classify --train before.tsv --epochs 1 --hidden 4 --quiet --out vectors.gguf
empty err
printf '0\tq\n' >known.tsv
run 0 train --task classify --train before.tsv --test known.tsv --vectors two.txt --epochs 1 --hidden 4 \
    --out vectors.gguf
says err 'vectors of 2 of 4 in the data,'
sed 's/x/X/' two.txt >upper.txt
run 0 train --task classify --train before.tsv --vectors upper.txt --epochs 1 --hidden 4 --out vectors.gguf
says err 'upper.txt: of 3 words of the data 0 have a vector, is this the right file?'
printf '\377\376a\0\t\0b\0\n\0' >utf16.tsv
printf 'PK\003\004abc' >packed.zip
printf '\320\317\021\340\241' >office.xls
printf '%%PDF-1.4\n' >book.pdf
printf 'BZh61AY&SY\r\n' >packed.bz2
printf '\3757zXZ\0\n' >packed.xz
printf '\050\265/\375\n' >packed.zst
head -c 8 /dev/zero >zeros.txt # as all of /dev/zero, which has no end
for file in utf16.tsv:'is UTF-16' packed.zip:'is a zip archive' before.gguf:'is a model file' \
    office.xls:'is a document of an office program' book.pdf:'is a PDF, expected text' \
    packed.bz2:'is packed; unpack it first with bzip2' packed.xz:'is packed; unpack it first with xz' \
    packed.zst:'is packed; unpack it first with zstd' zeros.txt:'begins with NUL bytes'; do
    run 3 train --task lm --train "${file%:*}" --out no.gguf
    says err "${file%:*}: ${file#*:}"
done
printf '1\thi\thello\n2\tbye\tciao\n' >tabs.txt
run 3 train --task dialog --train tabs.txt --out no.gguf
says err 'tabs.txt:1: expected the user.s words behind the number and a blank'
run 0 train --task classify --train before.tsv --valid "$data/classify-dev.tsv" --epochs 1 --hidden 4 \
    --out unknown.gguf
says err 'classify-dev.tsv: [0-9]* % of the words are unknown'
run 0 test unknown.gguf --data before.tsv --data "$data/classify-dev.tsv"
says err '^carnn: before.tsv and 1 more: [0-9]* % of the words are unknown' # of both together
run 0 train --task classify --train before.tsv --valid before.tsv --epochs 1 --hidden 4 --json --out same.gguf
says err 'before.tsv is --train and --valid: its scores say nothing of other data'
says out '"best_epoch": 1, "scored_on": "valid"'
run 3 test same.gguf --data two.txt
says err 'the model is of the task classify, whose data are "class<TAB>text"'
printf 'q a\tx\t1\nq b\ty\t0\nq a\tz\t0\n' >apart.tsv
run 3 train --task answer --train apart.tsv --out no.gguf
says err 'here no two lines have the same question'
printf 'left' >unknown.gguf.resume
run 0 train --task classify --train before.tsv --epochs 1 --hidden 4 --out unknown.gguf
says err 'unknown.gguf.resume will be overwritten; --resume would go on with the training'
run 0 train --task answer --train "$data/answer-dev.tsv" --epochs 1 --hidden 4 --embedding 4 --out rank.gguf
run 0 rank rank.gguf --question who --data before.tsv
says err 'before.tsv: has tabs; each line is taken for one sentence'
: >nothing.txt
printf 'one\ntwo two\none\n' | "$carnn" rank rank.gguf --question who >out 2>err
check 'a sentence that is there twice' [ "$(cut -f 2 out | grep -c -x one)" -eq 2 ]
cp out twice
printf 'one\n\ntwo two\n \t\r\none\n\n' | "$carnn" rank rank.gguf --question who >out 2>err
check 'a blank line is ranked' cmp -s out twice
run 0 rank rank.gguf --question who --data nothing.txt
says err 'nothing.txt: has no sentences to rank'
printf 'one \n one\none' | "$carnn" rank rank.gguf --question who >out 2>err # the same words: one score
check 'sentences of one score in another order' \
    [ "$(cut -f 2 out | tr ' \n' '_ ')" = 'one_ _one one ' ]
printf 'zero \0 zero\n' | "$carnn" rank rank.gguf --question who | cut -f 2 | tr '\0' x >out
says out '^zero x zero$'
gzip -c before.tsv | "$carnn" rank rank.gguf --question who >out 2>err
says err '^carnn: standard input: is packed'
run 0 train --task dialog --train "$data/dialog-dev.txt" --epochs 1 --hidden 4 --embedding 4 --out talk.gguf
run 0 train --task dialog --train "$data/dialog-dev.txt" --epochs 1 --hidden 4 --embedding 4 --cell gru \
    --out gru.gguf
echo hello | "$carnn" chat gru.gguf --explain >out 2>err
says out '^not exact for the cell gru: '
if [ -c /dev/full ]; then
    { yes hello | head -n 50000; echo $? >written; } 2>where | "$carnn" chat talk.gguf >/dev/full 2>err
    check 'what is said to a full disk is read to its end' [ "$(cat written)" -ne 0 ]
    says err '^carnn: cannot write to standard output$'
    lines err 1
fi
echo hello | "$carnn" predict talk.gguf >out 2>err
says err 'nothing to answer: .*; a user.s line ends with its tab'
head -c 20000000 /dev/zero | "$carnn" chat talk.gguf >out 2>err
says err '^carnn: standard input:1: expected a line of at most 16 MiB'
head -c 1000 /dev/zero | "$carnn" test talk.gguf --data - >out 2>err
says err '^carnn: standard input: begins with NUL bytes'
printf '\377\376h\0i\0\n\0' | "$carnn" chat talk.gguf >out 2>err
check 'UTF-16 is talked to' [ $? -eq 3 ]
says err '^carnn: standard input: is UTF-16, expected UTF-8'
"$carnn" predict talk.gguf <talk.gguf >out 2>err
says err '^carnn: standard input: is a model file, expected data$'
run 3 explain talk.gguf --data "$data/dialog-dev.txt" --example 100000
says err 'dialog-dev.txt: has only [0-9]* examples'
echo hello | "$carnn" explain talk.gguf >out 2>err
check 'nothing is explained' [ $? -eq 3 ]
says err 'nothing to explain: .*; a user.s line ends with its tab'
printf '1 hello\tHi .\n' >one.txt
run 3 explain talk.gguf --data one.txt --example 2
says err 'one.txt: has only 1 example$'
"$carnn" explain talk.gguf --data - --example 100000 <"$data/dialog-dev.txt" >out 2>err
says err '^carnn: standard input: has only [0-9]* examples'

# ---- gradcheck

run 0 gradcheck icarnn
says out '^cell  *icarnn .* ok$'
run 2 gradcheck icarn
says err 'did you mean "icarnn"'
run 2 gradcheck haed
says err 'did you mean "head"? (cell, part, head, rnn, '
run 2 gradcheck dropuot
says err 'no cell, part or task called'
run 0 gradcheck dropout
mv out unseeded
run 0 gradcheck dropout --seed 1
check 'the seed is not 1' cmp -s out unseeded

checked
