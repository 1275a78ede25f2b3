# What a linear model compares two vectors by (Kiros et al. 2015): |a - b| and a b, number by number.
#   paste a b targets | awk -f data/features.awk
# A line has both vectors and the target, with tabs between them; the target comes out first.
BEGIN { FS = OFS = "\t" }
{
    n = (NF - 1) / 2
    line = $NF
    for (i = 1; i <= n; i++) line = line OFS ($i < $(n + i) ? $(n + i) - $i : $i - $(n + i))
    for (i = 1; i <= n; i++) line = line OFS $i * $(n + i)
    print line
}
