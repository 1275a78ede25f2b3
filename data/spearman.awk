# Rank correlation (Spearman's) of each two columns of numbers:  paste a b c | awk -f data/spearman.awk
{ for (c = 1; c <= NF; c++) x[c, NR] = $c; columns = NF }
function rank(c, i,    k, less, same) {
    for (k = 1; k <= NR; k++) {
        less += x[c, k] < x[c, i]
        same += x[c, k] == x[c, i]
    }
    return less + (same + 1) / 2
}
function correlation(a, b,    i, p, q, ab, aa, bb, middle) {
    middle = (NR + 1) / 2
    for (i = 1; i <= NR; i++) {
        p = rank(a, i) - middle
        q = rank(b, i) - middle
        ab += p * q
        aa += p * p
        bb += q * q
    }
    return aa * bb ? ab / sqrt(aa * bb) : 0
}
END {
    for (a = 1; a < columns; a++)
        for (b = a + 1; b <= columns; b++)
            printf "columns %d and %d  %.2f\n", a, b, correlation(a, b)
}
