#!/bin/sh
# phrases.sh ROOT: every phrase that a check names stands in the catalogue, and every cause
# has a title, a summary, advice, and something to search for.
cd "${1:?usage: phrases.sh ROOT}" || exit 1
missing=0
need() {
    grep -q "^ND_TEXT($1," src/text/*.def && return
    echo "no such phrase: $1"
    missing=1
}
phrases=$(grep -ohE '"(why|finding|advice|step|summary)\.[a-z_.]+"' src/checks/*.c | tr -d '"' |
    sort -u)
[ -n "$phrases" ] || { echo "no phrases found under src/checks: wrong ROOT?"; exit 1; }
for phrase in $phrases; do need "$phrase"; done
causes=$(grep -ohE '^ND_TEXT\(cause\.[a-z_]+\.title' src/text/diagnosis.def | sed "s,.*cause[.],,;s,[.]title,,")
for cause in $causes; do
    for part in advice search.1 search.2; do need "cause.$cause.$part"; done
    need "summary.$cause"
done
exit $missing
