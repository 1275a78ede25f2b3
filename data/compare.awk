# Accuracies from the counts that data/yardstick.sh writes, in percent, with standard errors over
# dialogs; of two files what the second has more than the first, dialog by dialog:
#   awk -f data/compare.awk counts [other-counts]
FNR == 1 { files++ }
{
    if (!($1 in dialogs)) order[++folds] = $1
    if (files == 1) dialogs[$1]++
    turns[$1] += files == 1 ? $3 : 0
    at = $1 SUBSEP $2
    n[at] = $3
    right[files, at] = $4
    same[files, at] = $5
}
function show(name, what,    f, d, k, at, value, sum, squares) {
    printf "%-8s", name
    for (f = 1; f <= folds; f++) {
        for (d = 1; d <= dialogs[order[f]]; d++) {
            at = order[f] SUBSEP d
            for (k = 1; k <= 2; k++) {
                over[k, at] = what == "same" ? same[k, at] : right[k, at]
                under[k, at] = what == "within" ? same[k, at] : n[at]
            }
        }
        value = estimate(order[f])
        sum += value
        squares += error * error
        printf "  %s %.2f +- %.2f", order[f], 100 * value, 100 * error
    }
    if (folds > 1) printf "  mean %.2f +- %.2f", 100 * sum / folds, 100 * sqrt(squares) / folds
    print ""
}
# The ratio of a fold, or the difference of two; `error` becomes its standard error. The deviations of
# the two are taken from each other dialog by dialog before they are squared.
function estimate(fold,    d, at, k, a, b, off, squares, value) {
    for (k = 1; k <= files; k++) {
        a[k] = b[k] = 0
        for (d = 1; d <= dialogs[fold]; d++) {
            a[k] += over[k, fold, d]
            b[k] += under[k, fold, d]
        }
        if (!b[k]) b[k] = 1
    }
    for (d = 1; d <= dialogs[fold]; d++) {
        off = 0
        for (k = 1; k <= files; k++)
            off += (k == files ? 1 : -1) * (over[k, fold, d] - a[k] / b[k] * under[k, fold, d]) / b[k]
        squares += off * off
    }
    error = sqrt(squares)
    value = a[files] / b[files]
    return files > 1 ? value - a[1] / b[1] : value
}
END {
    show("accuracy", "right")
    show("meaning", "same")
    show("within", "within")
}
