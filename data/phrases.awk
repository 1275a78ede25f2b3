# The phrases of SST's trees that are negative (0) or positive (1), a line "class<TAB>phrase" for each;
# a text counts once, with the class that it has first.
#   awk -f data/phrases.awk train.txt
function join(a, b) { return a == "" ? b : a " " b }
{
    gsub(/[()]/, " & ")
    deep = 0
    for (i = 1; i <= NF; i++)
        if ($i == "(") {
            class[++deep] = $(++i)
            phrase[deep] = ""
        } else if ($i == ")") {
            text = phrase[deep]
            if (class[deep] != 2 && !(text in said)) print (class[deep] > 2) "\t" text
            said[text]
            if (--deep) phrase[deep] = join(phrase[deep], text)
        } else phrase[deep] = join(phrase[deep], $i)
}
