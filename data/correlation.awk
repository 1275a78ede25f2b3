# Correlations of each two columns of numbers, of their ranks (Spearman's) and of themselves (Pearson's):
#   paste a b c | awk -f data/correlation.awk
{ for (c = 1; c <= NF; c++) x[c, NR] = $c; columns = NF }
function rank(c, i,    k, less, same) {
    for (k = 1; k <= NR; k++) {
        less += x[c, k] < x[c, i]
        same += x[c, k] == x[c, i]
    }
    return less + (same + 1) / 2
}
function correlation(a, b,    i, am, bm, ab, aa, bb) {
    for (i = 1; i <= NR; i++) {
        am += a[i] / NR
        bm += b[i] / NR
    }
    for (i = 1; i <= NR; i++) {
        ab += (a[i] - am) * (b[i] - bm)
        aa += (a[i] - am) ^ 2
        bb += (b[i] - bm) ^ 2
    }
    return aa * bb ? ab / sqrt(aa * bb) : 0
}
function both(a, b,    i, p, q, rank_p, rank_q) {
    for (i = 1; i <= NR; i++) {
        p[i] = x[a, i]
        q[i] = x[b, i]
        rank_p[i] = rank(a, i)
        rank_q[i] = rank(b, i)
    }
    return sprintf("%.3f  pearson %.3f", correlation(rank_p, rank_q), correlation(p, q))
}
END {
    for (a = 1; a < columns; a++)
        for (b = a + 1; b <= columns; b++) print "columns " a " and " b "  spearman " both(a, b)
}
