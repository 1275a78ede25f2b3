# Replies of bAbI dialog task 6 that say the same in other words: what the system does, and about what.
#   awk -f data/meaning.awk FILE     a meaning for each line of FILE, which is a reply
# Names and values are kept; what an offer says besides is not: "X is a nice place in the west of town"
# and "X is a nice restaurant in the west of town serving thai food" both offer X.
function plain(s) {
    s = tolower(s)
    gsub(/'/, "", s)
    gsub(/[^a-z0-9_]+/, " ", s)
    gsub(/^ | $/, "", s)
    return s
}
# What is left of `s` without what fits; of the text before or behind the part that fits
function without(s, pattern) {
    gsub(pattern, "", s)
    gsub(/ +/, " ", s)
    gsub(/^ | $/, "", s)
    return s
}
function before(s, part) { return match(s, part) ? substr(s, 1, RSTART - 1) : s }
function after(s, part) { return match(s, part) ? substr(s, RSTART + RLENGTH) : s }
function last(s) { return after(s, ".* ") }

function meaning(s) {
    s = plain(s)
    if (s ~ /^api_call /) return s
    if (s ~ /^(the )?phone number of /) return "phone " last(s)
    if (s ~ /^(the )?post code of /) return "post code " last(s)
    if (s ~ /^((the )?address of|sure) | is on /) return "address " last(s)
    if (s ~ /^the price range at /) return "price of " before(after(s, "range at "), " is ")
    if (s ~ / there is no |^there is no /) return (s ~ / other / ? "no other " : "no ") missing(s)
    if (s ~ /^sorry would you like /)
        return "choose " without(after(s, "like "), "something|in the|the | food| price range| of town")
    if (s ~ /^(there are restaurants|what |would you like )/) return "which " asked(s)
    if (s ~ /^(did you say|let me confirm|ok a restaurant|you are looking for)/)
        return "confirm " without(after(s, "(looking for|ok) ?a?"), "restaurant|serving|in the|" \
            "in any part of town|of town|price range| right| is that|and | food")
    if (s ~ /^(sorry i (cant hear|am a bit confused)|could you please repeat)/) return "again"
    if (s ~ / is a (nice|great|good) /) return "offer " before(s, " is a ")
    if (s ~ / serves /) return "food of " before(s, " serves ")
    if (s ~ / is in the .* price range/) return "price of " before(s, " is in ")
    if (s ~ / is in the /) return "area of " before(s, " is in ")
    return s
}
# The food that there is none of; prices and areas are told by some wordings only.
function missing(s) {
    s = after(s, "there is no (other )?")
    s = s ~ / serving / ? after(s, " serving ") : before(s, "restaurant")
    return without(s, "(cheap|moderate|expensive)|restaurant| food.*")
}
# A question's end says what it asks for; before that stands what the guest has said.
function asked(s) {
    s = after(s, ".*(what|that|something) ")
    return s ~ /price ?range/ ? "price" : s ~ /^(area|part)/ ? "area" : "food"
}
{ print meaning($0) }
