# A picture (SVG) of a conversation that explains itself: what was said, and below every answer a bar
# for what each utterance before added to its score, blue where it spoke for it, red where against.
#
#     ./carnn chat bot.gguf --explain < talk.txt | awk -f data/picture.awk > bot.svg

function escaped(text) {
    gsub(/&/, "\\&amp;", text)
    gsub(/</, "\\&lt;", text)
    return text
}

function write(x, size, weight, color, text) {
    body = body sprintf("<text x=\"%d\" y=\"%d\" font-size=\"%d\" font-weight=\"%s\" fill=\"%s\">%s</text>\n",
                        x, y, size, weight, color, escaped(text))
}

/^> / { # what the user says
    y += 34
    write(16, 16, "normal", "#57606a", substr($0, 3))
    next
}

/^ +score/ || /^$/ { next }

/^ +[-+][0-9]/ { # score, attention (not of rest and sum), who, text
    score = $1 + 0
    named = $2 ~ /^[0-9]/
    who = named ? $3 : $2
    if (who == "sum") next
    text = $0
    sub(/^ +[-+0-9.]+ +/, "", text)
    if (named) sub(/^[0-9.]+ +[^ ]+ +/, "", text)
    y += 19
    bar[++bars] = score
    at[bars] = y - 10
    if (score / 150 > unit) unit = score / 150 # there is room for 150 to the right, 45 to the left
    if (-score / 45 > unit) unit = -score / 45
    write(280, 12, "normal", "#57606a", (named ? who ": " : "") text)
    write(16, 12, "normal", "#57606a", sprintf("%+.2f", score))
    next
}

{ # the answer
    y += 24
    write(16, 16, "bold", "#1f2328", $0)
}

END {
    for (i = 1; i <= bars; i++) {
        width = unit ? bar[i] / unit : 0
        body = body sprintf("<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"12\" fill=\"%s\"/>\n",
                            width < 0 ? 110 + width : 110, at[i], width < 0 ? -width : width,
                            width < 0 ? "#cf5b4f" : "#4a86c5")
    }
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"%d\" font-family=\"sans-serif\">\n", y + 20
    print "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>"
    printf "%s</svg>\n", body
}
