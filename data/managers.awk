# The folds of bAbI dialog task 6: one line for each dialog, with the wording that tells the managers of
# the system apart. `carnn train --folds-by` then holds out the dialogs of one manager after the other:
#   awk -f data/managers.awk TRN DEV > managers
#   carnn train --task dialog --train TRN --train DEV --candidates CANDIDATES --folds-by managers
function finish() {
    if (lines) print restaurant ? "restaurant" : place ? "place" : "neither"
    lines = place = restaurant = 0
}
FNR == 1 || !NF { finish() }
NF { lines++ }
/is a nice place/ { place = 1 }
/is a nice restaurant/ { restaurant = 1 }
END { finish() }
