#!/bin/sh
# phrases_bite.sh ROOT: phrases.sh passes the tree as it is, and fails it once a text is lost,
# left over, or named but not there.
root=${1:?usage: phrases_bite.sh ROOT}
here=$(dirname "$0")
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
bad=0

fresh() {
    rm -rf "$work/src"
    mkdir "$work/src" && cp -R "$root/src/." "$work/src"
}
# fails WHAT FILE SED-COMMAND
fails() {
    fresh
    sed "$3" "$work/src/$2" >"$work/changed" && cp "$work/changed" "$work/src/$2"
    cmp -s "$work/src/$2" "$root/src/$2" && { echo "nothing was changed: $1"; bad=1; }
    sh "$here/phrases.sh" "$work" >/dev/null && { echo "not noticed: $1"; bad=1; }
}

fresh
sh "$here/phrases.sh" "$work" || { echo "the tree as it is fails"; bad=1; }
fails 'a page without one of its parts' text/pages_norm.def '/cause\.eps\.looks,/d'
fails 'a cause without phrases to search for' text/diagnosis.def '/cause\.eps\.search\.2,/d'
fails 'a text that nothing uses' text/diagnosis.def '$a ND_TEXT(finding.of.nobody, "a", "b")'
fails 'a phrase that is not there' checks/steps.c 's/step\.fp32\.open/step.fp32.opened/'
exit $bad
