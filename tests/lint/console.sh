#!/bin/sh
# console.sh ROOT TOOL FILE: the screens in a document are what the tool prints today.
#
# In a block marked ```console, a line "$ build/normdiff ..." is run from ROOT and must print
# the lines that follow it.  With UPDATE=1 the document is rewritten instead.
root=${1:?usage: console.sh ROOT TOOL FILE}
tool=$2
file=$3

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$root" || exit 1
unset NORMDIFF_LANG NORMDIFF_ISA LC_MESSAGES COLUMNS
export NO_COLOR=1 LC_ALL=C.UTF-8

awk -v tool="'$tool'" '
    /^```/ { inside = /^```console/; print; next }
    !inside { print; next }
    /^\$ build\/normdiff / {
        print
        runs++
        command = $0; sub(/^\$ build\/normdiff/, tool, command)
        command = command " 2>&1"
        while ((command | getline line) > 0) print line
        close(command)
    }
    END { if (!runs) { print "no screen in this document"; exit 1 } }' "$file" >"$work/now" ||
    { tail -n 1 "$work/now"; exit 1; }

if [ -n "${UPDATE:-}" ]; then
    cat "$work/now" >"$file"
else
    diff "$file" "$work/now" >"$work/difference" && exit 0
    echo "$file shows (<) what the tool does not print (>); UPDATE=1 renews it:"
    cat "$work/difference"
    exit 1
fi
