# Aligns the words of two texts by what they mean:
#   awk -v column=N -f data/align.awk VECTORS PAIRS > PAIRS.align
# VECTORS: lines "word number ...", the most frequent words first (GloVe). PAIRS: tables with tabs, whose
# columns N and N + 1 are the texts, their words separated by blanks.
#
# One line for each pair, "0-0 1-2", for --alignment file: word 0 of the first text with word 0 of the
# second. Most similar words first, each word has at most one partner: the same word, or one whose
# vector has a cosine of at least 0.7; the 200 most frequent words are aligned with the same one only.

NR == FNR {
    norm = 0
    for (i = 2; i <= NF; i++) norm += $i * $i
    if (!norm) next # a vector of zeros is like no other
    for (i = 2; i <= NF; i++) vector[$1, i] = $i / sqrt(norm)
    if (NR > 200) size[$1] = NF
    next
}

function similar(a, b,    i, sum) {
    if (a == b) return 1
    if (!(a in size) || !(b in size)) return 0
    if ((a, b) in known) return known[a, b]
    for (i = 2; i <= size[a]; i++) sum += vector[a, i] * vector[b, i]
    return known[a, b] = sum
}

{
    split(tolower($0), field, "\t")
    n = split(field[column], first, " ")
    m = split(field[column + 1], second, " ")
    links = 0
    for (i = 1; i <= n; i++)
        for (j = 1; j <= m; j++)
            if ((s = similar(first[i], second[j])) >= 0.7) {
                links++
                from[links] = i
                to[links] = j
                value[links] = s - (i > j ? i - j : j - i) / 1e6 # of equal ones the nearest
            }
    split("", used)
    line = ""
    while (1) {
        best = 0
        for (k = 1; k <= links; k++)
            if (!(("a", from[k]) in used) && !(("b", to[k]) in used) &&
                (!best || value[k] > value[best])) best = k
        if (!best) break
        used["a", from[best]] = used["b", to[best]] = 1
        line = line (line == "" ? "" : " ") (from[best] - 1) "-" (to[best] - 1)
    }
    print line
}
