#!/bin/sh
# Writes one C file that holds the test programs named by the arguments (test_lm test_data ...), so
# that the header is compiled once: each main becomes a function, and the first argument of the
# program (lm) says which of them runs.
echo '#define CARNN_EXTRA_HEADS(X) X(tag_task) /* the task of test_tag.c */'
echo '#include "../tests/test.h"'
for test in "$@"; do
    printf '#define main main_of_%s\n#include "../tests/%s.c"\n#undef main\n' "$test" "$test"
done
echo 'int main(int argc, char **argv) {'
for test in "$@"; do
    printf '    if (argc == 2 && !strcmp(argv[1], "%s")) return main_of_%s();\n' \
        "${test#test_}" "$test"
done
printf '    puts("expected the name of a test:%s");\n    return 2;\n}\n' \
    "$(printf ' %s' "$@" | sed 's/test_//g')"
