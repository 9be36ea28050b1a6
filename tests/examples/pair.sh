#!/bin/sh
# pair.sh ROOT TOOL NAME: the report on examples/pairs/NAME is the one that lies beside it.
#
# examples/pairs/NAME/expected.txt holds the command, its output, and its exit status.  With
# UPDATE=1 it is written instead.
root=${1:?usage: pair.sh ROOT TOOL NAME}
tool=$2
pair=examples/pairs/$3

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$root" || exit 1
unset NORMDIFF_LANG NORMDIFF_ISA LC_MESSAGES COLUMNS
export NO_COLOR=1 LC_ALL=C.UTF-8

{
    echo "$ normdiff $pair/gpu.dump $pair/npu.dump"
    "$tool" "$pair/gpu.dump" "$pair/npu.dump" 2>&1
    echo "[exit status $?]"
} >"$work/now"

if [ -n "${UPDATE:-}" ]; then
    cat "$work/now" >"$pair/expected.txt"
    exit 0
fi
diff "$pair/expected.txt" "$work/now" && exit 0
echo "the report (>) is not the expected one (<); UPDATE=1 renews it"
exit 1
