# What the scripts of checks share; they begin with `. "$(dirname "$0")/check.sh"`, in the top
# folder, and end with `checked`. A failed check is a line; the last line reads N passed, N failed.

top=$PWD
folder=$(mktemp -d) || exit 1 # may be filled with anything
trap 'rm -rf "$folder"' EXIT
passed=0
failed=0
tab=$(printf '\t')

# check WHAT CONDITION...: the condition is a command
check() {
    what=$1
    shift
    if "$@"; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "${0##*/}: $what"
    fi
}

checked() {
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
}

# quiet COMMAND...: what it prints is only shown where it fails
quiet() {
    "$@" >"$folder/log" 2>&1 && return
    head -n 20 "$folder/log"
    return 1
}

fails() { ! "$@" >"$folder/log" 2>&1; }

# path PROGRAM: found from every folder
path() { case $1 in /*) echo "$1" ;; *) echo "$PWD/$1" ;; esac }

# run EXIT ARGUMENT...: runs $program; standard output to `out`, the rest to `err`
run() {
    expected=$1
    shift
    "$program" "$@" >out 2>err </dev/null
    code=$?
    command=$(printf %s "${program##*/} $*" | cut -c 1-200)
    check "exit $code, expected $expected: $command: $(head -n 1 err)" [ $code -eq "$expected" ]
}
