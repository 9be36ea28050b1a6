#!/bin/sh
# symbols.sh ROOT NM ARCHIVE [SHARED]: what the libraries let the world see.
#
# Every external symbol of the archive begins with nd_; src/cmake/exports.map names the
# functions that the public headers declare; the shared library exports just these.
root=${1:?usage: symbols.sh ROOT NM ARCHIVE [SHARED]}
nm=$2
archive=$3
shared=${4:-}
bad=0

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# Functions declared in the headers: comments out, then every nd_word( outside a typedef.
cat "$root"/include/normdiff/*.h |
    awk '{ gsub(/\/\*[^*]*\*\//, "") }
         /\/\*/ { inside = 1 } !inside { print } /\*\// { inside = 0 }' |
    grep -vE '^ *typedef|^ *#' | grep -oE '\bnd_[a-z0-9_]+ *\(' | tr -d ' (' |
    sort -u >"$work/declared"
sed -n 's/^ *\(nd_[a-z0-9_]*\);$/\1/p' "$root/src/cmake/exports.map" | sort >"$work/map"
"$nm" -g --defined-only "$archive" | awk 'NF == 3 { print $3 }' | sort -u >"$work/archive"

for list in declared map archive; do
    [ -s "$work/$list" ] || { echo "no symbols in the list: $list"; exit 1; }
done

grep -v '^nd_' "$work/archive" >"$work/stray" &&
    { echo "external symbols without the prefix nd_:"; cat "$work/stray"; bad=1; }

# same TITLE FILE FILE: the lists agree.
same() {
    diff "$2" "$3" >"$work/difference" && return 0
    echo "$1 (<: only the first, >: only the second):"
    grep '^[<>]' "$work/difference"
    bad=1
}
same 'the public headers and src/cmake/exports.map' "$work/declared" "$work/map"
comm -23 "$work/map" "$work/archive" >"$work/undefined"
[ ! -s "$work/undefined" ] ||
    { echo "declared, but defined nowhere:"; cat "$work/undefined"; bad=1; }
if [ -n "$shared" ]; then
    "$nm" -D --defined-only "$shared" |
        awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u >"$work/shared"
    same 'exports.map and the shared library' "$work/map" "$work/shared"
fi
exit $bad
